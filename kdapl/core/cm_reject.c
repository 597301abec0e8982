// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Refusing connection requests, at once or a little later.
 *
 * After soft-iWARP has reported a request, its thread unlocks the request's endpoint and then
 * wakes the waiters for that lock. Refusing the request frees the endpoint, perhaps between these
 * two steps. Once the thread has slept it does not touch the endpoint again, so the refusal waits
 * until then (D-60).
 */
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "core.h"
#include "cm_reject.h"

#define REJECT_DELAY	20	/* ms */

/**
 * struct reject - a request to be refused later
 * @entry: in reject_list
 * @dev: device of the request
 * @id: cm_id of the request
 * @reason: reason of the rejection
 * @len: bytes of @pdata
 * @pdata: private data for the peer
 */
struct reject {
	struct list_head entry;
	struct kdapl_device *dev;
	struct rdma_cm_id *id;
	u8 reason;
	u8 len;
	u8 pdata[];
};

static LIST_HEAD(reject_list);
static DEFINE_SPINLOCK(reject_lock);	/* reject_list */

/* The peer may still go, which does not matter. */
static int reject_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	return 0;
}

static void reject_now(struct kdapl_device *dev, struct rdma_cm_id *id, const void *pdata, u8 len,
		       u8 reason)
{
	/* fails if the peer has gone, which does not matter */
	rdma_reject(id, pdata, len, reason);
	rdma_destroy_id(id);
	kdapl_device_id_gone(dev);
}

static void reject_work_all(struct work_struct *work)
{
	unsigned int noio = memalloc_noio_save();	/* reconnects may wait for this (D-32) */
	struct reject *one, *next;
	LIST_HEAD(mine);

	spin_lock(&reject_lock);
	list_splice_init(&reject_list, &mine);
	spin_unlock(&reject_lock);
	synchronize_rcu_tasks();	/* every thread has slept, or left the kernel */
	list_for_each_entry_safe(one, next, &mine, entry) {
		reject_now(one->dev, one->id, one->pdata, one->len, one->reason);
		kfree(one);
	}
	memalloc_noio_restore(noio);
}

static DECLARE_DELAYED_WORK(reject_work, reject_work_all);

/* Take over the id, which is already counted. False: no delay needed, or no memory. */
static bool reject_later(struct kdapl_device *dev, struct rdma_cm_id *id, const void *pdata,
			 u8 len, u8 reason)
{
	struct reject *one;

	if (!dev->caps.reject_unsafe)
		return false;
	one = kmalloc(struct_size(one, pdata, len), GFP_NOIO);
	if (!one)
		return false;
	one->dev = dev;
	one->id = id;
	one->reason = reason;
	one->len = len;
	if (len)
		memcpy(one->pdata, pdata, len);
	id->context = NULL;
	id->event_handler = reject_handler;
	spin_lock(&reject_lock);
	list_add_tail(&one->entry, &reject_list);
	spin_unlock(&reject_lock);
	queue_delayed_work(kdapl_misc_wq, &reject_work, msecs_to_jiffies(REJECT_DELAY));
	return true;
}

/**
 * kdapl_cm_reject - refuse a request
 * @dev: its device
 * @id: cm_id of the request, counted by kdapl_device_id_made(); taken over
 * @pdata: private data for the peer
 * @len: bytes of it
 * @reason: reason of the rejection
 *
 * Context: may sleep; not in the id's handler.
 */
void kdapl_cm_reject(struct kdapl_device *dev, struct rdma_cm_id *id, const void *pdata, u8 len,
		     u8 reason)
{
	if (!reject_later(dev, id, pdata, len, reason))
		reject_now(dev, id, pdata, len, reason);
}

/**
 * kdapl_cm_reject_new - refuse a request in the handler of its event
 * @dev: its device
 * @id: cm_id of the request
 * @reason: reason of the rejection
 *
 * Context: the listener's handler.
 * Return: whether the id was taken over; otherwise the caller destroys it.
 */
bool kdapl_cm_reject_new(struct kdapl_device *dev, struct rdma_cm_id *id, u8 reason)
{
	kdapl_count(refused);
	kdapl_device_id_made(dev);
	if (reject_later(dev, id, NULL, 0, reason))
		return true;
	kdapl_device_id_gone(dev);
	rdma_reject(id, NULL, 0, reason);
	return false;
}

/**
 * kdapl_cm_reject_stop - refuse the remaining requests
 *
 * Context: unload; no service point and no request is left.
 */
void kdapl_cm_reject_stop(void)
{
	flush_delayed_work(&reject_work);
}
