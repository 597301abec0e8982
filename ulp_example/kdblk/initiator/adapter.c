// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The adapter that the connections of a disk go through: its IA, PZ, Event Dispatchers and the
 * memory of its messages. A connection that is lost leaves them as they are, so the next one
 * needs only an Endpoint and memory to lend. They are given up when the adapter has gone, when it
 * has reported a fault, when another one leads to the target, and with the disk.
 *
 * An adapter that appears is reported, and starts an attempt at once.
 */
#define pr_fmt(fmt) "kdblk: " fmt

#include <net/net_namespace.h>
#include "kdblk.h"

/* Process context. Connections report their own errors. */
static void kdblk_async_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct kdblk_disk *disk = instance;

	switch (event->event_number) {
	case DAT_ASYNC_ERROR_IA_CATASTROPHIC:
		kdblk_lost(disk, "the adapter has gone");
		break;
	case DAT_ASYNC_ERROR_EVD_OVERFLOW:
		WRITE_ONCE(disk->faulty, true);
		kdblk_lost(disk, "an event queue of the adapter has failed");
		break;
	default:
		break;
	}
}

/* Give up the adapter. There is no connection any more. */
void kdblk_detach(struct kdblk_disk *disk)
{
	u32 i;

	for (i = 0; i < disk->nr_alloc; i++)
		kdblk_queue_detach(&disk->queues[i]);
	if (disk->conn_evd)
		dat_evd_free(disk->conn_evd);
	disk->conn_evd = NULL;
	if (disk->pz)
		dat_pz_free(disk->pz);
	disk->pz = NULL;
	if (disk->ia)
		dat_ia_close(disk->ia, DAT_CLOSE_ABRUPT_FLAG);
	disk->ia = NULL;
	disk->faulty = false;
	disk->unanswered_there = false;
}

/* Open the adapter by its name, or the one that leads to the target. */
static int kdblk_open_ia(struct kdblk_disk *disk, DAT_IA_HANDLE *ia, DAT_EVD_HANDLE *async_evd)
{
	char *name = disk->config.ia;
	DAT_RETURN ret;

	*async_evd = DAT_HANDLE_NULL;
	if (name[0])
		ret = dat_ia_open(name, 8, async_evd, ia);
	else
		ret = kdat_ia_open_to(&init_net, (struct sockaddr *)&disk->address, NULL, 8,
				      async_evd, ia);
	if (DAT_GET_TYPE(ret) == DAT_PROVIDER_NOT_FOUND)	/* unplugged; it may come back */
		return name[0] ? kdblk_why(disk, -ENODEV, "adapter %s does not exist", name) :
				 kdblk_why(disk, -ENODEV, "no adapter leads to %pISpc",
					   &disk->address);
	if (DAT_GET_TYPE(ret) == DAT_INVALID_ADDRESS)
		return kdblk_why(disk, kdat_errno(ret), "%pISpc: no route there, or no answer",
				 &disk->address);
	return kdblk_check(kdblk_name(disk), "dat_ia_open", ret);
}

/* Do both lead to the same place: the same adapter, from the same address? */
static bool kdblk_same_adapter(DAT_IA_HANDLE a, DAT_IA_HANDLE b)
{
	struct kdblk_place at_a, at_b;

	return kdblk_ia_place(a, &at_a) && kdblk_ia_place(b, &at_b) &&
	       kdblk_same_place(&at_a, &at_b);
}

/* If a peer has answered on it, or if its name stands for nothing else, the adapter is right. */
static bool kdblk_adapter_right(struct kdblk_disk *disk)
{
	struct kdblk_place at;

	return disk->ia && (!disk->unanswered_there ||
			    (disk->config.ia[0] && kdblk_ia_place(disk->ia, &at)));
}

/* The most tags that an Endpoint and its EVDs on this adapter can serve: see queue.c. */
static u32 kdblk_most_tags(const DAT_IA_ATTR *attr)
{
	return max(min(attr->max_dto_per_ep, attr->max_evd_qlen) / KDBLK_TAG_DTOS - 1, 0);
}

/* The queues get as many tags as the first adapter can serve. A later one must serve as many. */
static int kdblk_limit_depth(struct kdblk_disk *disk, const DAT_IA_ATTR *attr)
{
	u32 i, most = kdblk_most_tags(attr), asked = disk->queues[0].asked;

	if (asked <= most)
		return 0;
	if (disk->connects)
		return kdblk_why(disk, -EOPNOTSUPP,
				 "adapter %s can do a depth of %u, the one before could do %u",
				 attr->adapter_name, most, asked);
	if (!most)
		return kdblk_why(disk, -EOPNOTSUPP, "adapter %s can do too few requests",
				 attr->adapter_name);
	pr_info("%s: adapter %s can do a depth of %u, not %u\n", kdblk_name(disk),
		attr->adapter_name, most, asked);
	for (i = 0; i < disk->nr_alloc; i++)
		disk->queues[i].asked = most;
	return 0;
}

/* The block device was made for the limits of the first adapter. */
static int kdblk_limit(struct kdblk_disk *disk)
{
	const char *name = kdblk_name(disk);
	struct kdat_mem_limits limits;
	DAT_IA_ATTR attr;
	int err;

	err = KDBLK_TRY(name, kdat_ia_mem_limits, disk->ia, &limits) ?:
	      KDBLK_TRY(name, dat_ia_query, disk->ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL);
	if (err)
		return err;
	if (disk->connects && (limits.boundary > disk->limits.boundary ||
			       (limits.lmr_pages - 1ull) * PAGE_SIZE < disk->max_io ||
			       limits.max_mapping < disk->max_io))
		return kdblk_why(disk, -EOPNOTSUPP,
				 "adapter %s cannot do what the one before could",
				 attr.adapter_name);
	disk->limits = limits;
	disk->read_depth = min(attr.max_rdma_read_per_ep_in, 16);
	return kdblk_limit_depth(disk, &attr);
}

/* Make what outlives connections. @ia belongs to the disk from now on, even after a failure. */
static int kdblk_take(struct kdblk_disk *disk, DAT_IA_HANDLE ia, DAT_EVD_HANDLE async_evd)
{
	const DAT_UPCALL_OBJECT async = { disk, kdblk_async_upcall };
	const DAT_UPCALL_OBJECT conn = { disk, kdblk_conn_upcall };
	const char *name = kdblk_name(disk);

	disk->ia = ia;
	disk->adapters++;
	return KDBLK_TRY(name, dat_evd_modify_upcall, async_evd, DAT_UPCALL_SINGLE_INSTANCE,
			 &async, DAT_UPCALL_INVOC_ANY) ?:
	       kdblk_limit(disk) ?:
	       KDBLK_TRY(name, dat_pz_create, ia, &disk->pz) ?:
	       KDBLK_TRY(name, dat_evd_kcreate, ia, 4 * disk->nr_alloc + 4,
			 DAT_UPCALL_SINGLE_INSTANCE, &conn, DAT_EVD_CONNECTION_FLAG,
			 &disk->conn_evd);
}

/**
 * kdblk_attach - get the adapter that leads to the target
 * @disk: disk without a connection
 *
 * If the last attempt had no answer, another adapter may lead to the target now, because the route
 * has changed or an address has moved. Otherwise the adapter stays.
 *
 * Context: may sleep; does not wait for RTNL.
 * Return: 0 or -errno.
 */
int kdblk_attach(struct kdblk_disk *disk)
{
	DAT_EVD_HANDLE async_evd;
	DAT_IA_HANDLE ia;
	int err;

	if (disk->ia && (kdat_ia_lost(disk->ia) || READ_ONCE(disk->faulty)))
		kdblk_detach(disk);
	if (kdblk_adapter_right(disk))
		return 0;
	err = kdblk_open_ia(disk, &ia, &async_evd);
	if (err)
		return err;
	if (disk->ia && kdblk_same_adapter(disk->ia, ia)) {
		dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
		return 0;
	}
	kdblk_detach(disk);
	err = kdblk_take(disk, ia, async_evd);
	if (err)
		kdblk_detach(disk);
	return err;
}

/* While recovery waits for its next attempt, an adapter that appears may be what it needs. */
static int kdblk_adapter_notified(struct notifier_block *nb, unsigned long action, void *name)
{
	struct kdblk_disk *disk = container_of(nb, struct kdblk_disk, adapter_nb);

	/* If an attempt is being made and succeeds, the work item will do nothing. */
	if (action == KDAT_IA_ADDED && READ_ONCE(disk->state) == KDBLK_RECOVERING)
		mod_delayed_work(kdblk_wq, &disk->recover, 0);
	return NOTIFY_OK;
}

/* From now on adapters that appear are reported. */
void kdblk_adapter_watch(struct kdblk_disk *disk)
{
	disk->adapter_nb.notifier_call = kdblk_adapter_notified;
	kdat_register_ia_notifier(&disk->adapter_nb);
}

/* Afterwards nothing here queues the work item. */
void kdblk_adapter_unwatch(struct kdblk_disk *disk)
{
	kdat_unregister_ia_notifier(&disk->adapter_nb);
}
