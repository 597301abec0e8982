// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * A disk's session with its target.
 *
 *	IDLE --connect--> CONNECTING --> LIVE <---------------+
 *	  ^                   |           | kdblk_lost()      | attempt
 *	  |                   v           v                   |
 *	  +--disconnect--- FAILED <-- RECOVERING -------------+
 *			      limit, disconnect
 *
 * One work item makes all transitions except LIVE -> RECOVERING, which can happen in any
 * context. It closes the connections, so that the old session can no longer access memory,
 * and then builds new ones. Commands wait meanwhile; after the last attempt they fail.
 */
#define pr_fmt(fmt) "kdblk: " fmt

#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include "kdblk.h"

/* Called from any context. Only the first loss of a connection is reported. */
void kdblk_lost(struct kdblk_disk *disk, const char *why)
{
	WRITE_ONCE(disk->broken, true);
	/* cmpxchg() orders this store before the state change: see kdblk_live(). */
	if (cmpxchg(&disk->state, KDBLK_LIVE, KDBLK_RECOVERING) == KDBLK_LIVE) {
		disk->lost_why = why;
		queue_delayed_work(kdblk_wq, &disk->recover, 0);
	}
	wake_up_all(&disk->wait);
}

static void kdblk_conn_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	DAT_EP_HANDLE ep = event->event_data.connect_event_data.ep_handle;
	struct kdblk_disk *disk = instance;
	u32 i;

	for (i = 0; i < disk->nr_queues; i++)
		if (disk->queues[i].ep == ep)
			kdblk_queue_conn_event(&disk->queues[i], event);
	if (event->event_number == DAT_CONNECTION_EVENT_DISCONNECTED)
		kdblk_lost(disk, "the target has disconnected");
	else if (event->event_number == DAT_CONNECTION_EVENT_BROKEN)
		kdblk_lost(disk, "the connection broke");
	wake_up_all(&disk->wait);
}

/* ---- logging in ---- */

static int kdblk_login_status(struct kdblk_disk *disk)
{
	u16 status = le16_to_cpu(disk->answer.rsp.status);

	switch (status) {
	case KDBLK_STATUS_OK:
		return 0;
	case KDBLK_STATUS_NO_DISK:
		pr_err("%s: the target has no disk '%s'\n", kdblk_name(disk), disk->config.disk);
		return -ENOENT;
	case KDBLK_STATUS_DENIED:
		pr_err("%s: the target denies disk '%s' to initiator '%s'\n",
		       kdblk_name(disk), disk->config.disk, disk->config.initiator);
		return -EACCES;
	case KDBLK_STATUS_RESOURCE:
		return -EBUSY;
	case KDBLK_STATUS_OFFLINE:
		return -ENODEV;
	default:
		pr_err("%s: the target refused the login with status %u\n", kdblk_name(disk),
		       status);
		return -EIO;
	}
}

/* Never trust numbers from a peer. */
static bool kdblk_geometry_fits(const struct kdblk_login_rsp *geo, u32 queues)
{
	u32 block = le32_to_cpu(geo->block_size), io = le32_to_cpu(geo->max_io);
	u32 granularity = le32_to_cpu(geo->discard_granularity);
	u32 range = le32_to_cpu(geo->max_range);
	u32 physical = le32_to_cpu(geo->physical_block_size);
	u64 capacity = le64_to_cpu(geo->capacity);
	u16 flags = le16_to_cpu(geo->flags);

	if (memchr_inv(geo->reserved, 0, sizeof(geo->reserved)) || (flags & ~KDBLK_DISK_FLAGS) ||
	    geo->serial[KDBLK_SERIAL_LEN - 1])
		return false;
	if (!geo->session || (block != 512 && block != 4096))
		return false;
	if (!capacity || (capacity & (block - 1)) || capacity > LLONG_MAX)
		return false;
	if (physical < block || !is_power_of_2(physical) || physical > KDBLK_MAX_IO)
		return false;
	if (io < PAGE_SIZE || io > KDBLK_MAX_IO || (io & (block - 1)))
		return false;
	if ((flags & (KDBLK_DISK_DISCARD | KDBLK_DISK_WRITE_ZEROES)) &&
	    (range < block || (range & (block - 1))))
		return false;
	if ((flags & KDBLK_DISK_DISCARD) && (granularity < block || granularity & (block - 1)))
		return false;
	return le16_to_cpu(geo->queues) && le16_to_cpu(geo->queues) <= queues;
}

static bool kdblk_same_disk(const struct kdblk_login_rsp *a, const struct kdblk_login_rsp *b)
{
	return a->capacity == b->capacity && a->block_size == b->block_size &&
	       a->max_io == b->max_io && a->max_range == b->max_range && a->flags == b->flags &&
	       !memcmp(a->serial, b->serial, sizeof(a->serial));
}

static int kdblk_geometry(struct kdblk_disk *disk)
{
	const struct kdblk_login_rsp *geo = &disk->answer;
	u32 pages = disk->limits.lmr_pages;

	if (!kdblk_geometry_fits(geo, disk->nr_queues)) {
		pr_err("%s: the target sent invalid properties of its disk\n",
		       kdblk_name(disk));
		return -EPROTO;
	}
	if (disk->connects && !kdblk_same_disk(&disk->geometry, geo)) {
		pr_err("%s: disk '%s' at the target differs from the one before\n",
		       kdblk_name(disk), disk->config.disk);
		return -ESTALE;
	}
	if (disk->connects && le16_to_cpu(geo->queues) < disk->nr_queues) {
		pr_err("%s: the target now grants %u queues, before %u\n", kdblk_name(disk),
		       le16_to_cpu(geo->queues), disk->nr_queues);
		return -EBUSY;
	}
	if (!disk->connects) {
		disk->geometry = *geo;
		disk->nr_queues = le16_to_cpu(geo->queues);
		/* an unaligned buffer needs one more page */
		disk->max_io = min_t(u64, le32_to_cpu(geo->max_io), (pages - 1ull) * PAGE_SIZE);
	}
	disk->session = le64_to_cpu(geo->session);
	return 0;
}

static int kdblk_login(struct kdblk_disk *disk)
{
	struct kdblk_queue *q = &disk->queues[0];
	struct kdblk_login *login = q->login;
	int err;

	memset(login, 0, sizeof(*login));
	memcpy(login->id, disk->id, sizeof(login->id));
	strscpy(login->initiator, disk->config.initiator, sizeof(login->initiator));
	strscpy(login->disk, disk->config.disk, sizeof(login->disk));
	login->keepalive_ms = cpu_to_le32(disk->config.keepalive_ms);
	login->queues = cpu_to_le16(disk->nr_queues);
	err = kdblk_queue_admin(q, KDBLK_OP_LOGIN);
	if (err)
		return err;
	/* the acquire pairs with kdblk_admin_answered() */
	if (!wait_event_timeout(disk->wait, !smp_load_acquire(&disk->admin_busy) ||
				READ_ONCE(disk->broken) || READ_ONCE(disk->stopping),
				KDBLK_LOGIN_TIMEOUT))
		return -ETIMEDOUT;
	if (READ_ONCE(disk->admin_busy))
		return READ_ONCE(disk->stopping) ? -EINTR : -ECONNRESET;
	return kdblk_login_status(disk) ?: kdblk_geometry(disk);
}

/* ---- keepalive ---- */

static void kdblk_keepalive_work(struct work_struct *work)
{
	struct kdblk_disk *disk = container_of(to_delayed_work(work), struct kdblk_disk,
					       keepalive);
	bool heard;

	if (READ_ONCE(disk->state) != KDBLK_LIVE)
		return;
	/* A keepalive may be late behind commands of a slow disk; their answers count as well. */
	heard = xchg(&disk->heard, false);
	if (READ_ONCE(disk->admin_busy) && !heard)
		kdblk_lost(disk, "the target did not answer a keepalive");
	else if (!READ_ONCE(disk->admin_busy) &&
		 kdblk_queue_admin(&disk->queues[0], KDBLK_OP_KEEPALIVE))
		kdblk_lost(disk, "a keepalive could not be sent");
	else
		queue_delayed_work(kdblk_wq, &disk->keepalive,
				   msecs_to_jiffies(disk->config.keepalive_ms));
}

/* ---- the connection as a whole ---- */

/* Free users before what they use. Afterwards nothing of the connection is left. */
static void kdblk_close(struct kdblk_disk *disk)
{
	u32 i;

	cancel_delayed_work_sync(&disk->keepalive);
	for (i = 0; i < disk->nr_queues; i++)
		kdblk_queue_disconnect(&disk->queues[i]);
	for (i = 0; i < disk->nr_queues; i++)
		kdblk_queue_close(&disk->queues[i]);
	disk->admin_busy = false;
	if (disk->conn_evd)
		dat_evd_free(disk->conn_evd);
	disk->conn_evd = NULL;
	if (disk->pz)
		dat_pz_free(disk->pz);
	disk->pz = NULL;
	if (disk->ia)
		dat_ia_close(disk->ia, DAT_CLOSE_ABRUPT_FLAG);
	disk->ia = NULL;
}

static int kdblk_open(struct kdblk_disk *disk)
{
	const DAT_UPCALL_OBJECT upcall = { disk, kdblk_conn_upcall };
	const char *name = kdblk_name(disk);
	DAT_EVD_HANDLE async_evd = NULL;
	DAT_LMR_HANDLE all;
	DAT_LMR_CONTEXT lkey;
	DAT_IA_ATTR attr;
	DAT_RETURN ret;
	u32 i;
	int err;

	ret = dat_ia_open(disk->config.ia, 8, &async_evd, &disk->ia);
	if (DAT_GET_TYPE(ret) == DAT_PROVIDER_NOT_FOUND)
		return -ENODEV;		/* unplugged; it may come back */
	err = kdblk_check(name, "dat_ia_open", ret) ?:
	      KDBLK_TRY(name, kdat_ia_mem_limits, disk->ia, &disk->limits) ?:
	      KDBLK_TRY(name, dat_ia_query, disk->ia, NULL,
			DAT_IA_FIELD_ALL, &attr, 0, NULL) ?:
	      KDBLK_TRY(name, dat_ia_reserved_lmr, disk->ia, &all, &lkey) ?:
	      KDBLK_TRY(name, dat_pz_create, disk->ia, &disk->pz) ?:
	      KDBLK_TRY(name, dat_evd_kcreate, disk->ia, 4 * disk->nr_queues + 4,
			DAT_UPCALL_SINGLE_INSTANCE, &upcall, DAT_EVD_CONNECTION_FLAG,
			&disk->conn_evd);
	if (err)
		return err;
	disk->read_depth = min(attr.max_rdma_read_per_ep_in, 16);
	disk->request_iov = min(attr.max_iov_segments_per_dto, 1 + KDBLK_INLINE_SEGS);
	for (i = 0; i < disk->nr_queues; i++)
		disk->queues[i].all_lkey = lkey;
	return 0;
}

/* Make one attempt. On failure, the caller calls kdblk_close(). */
static int kdblk_connect(struct kdblk_disk *disk)
{
	u16 depth;
	u32 i;
	int err;

	disk->attempts++;
	WRITE_ONCE(disk->broken, false);
	disk->answered = false;
	disk->alive = false;
	err = kdblk_open(disk) ?: kdblk_queue_connect(&disk->queues[0]) ?: kdblk_login(disk);
	for (i = 1; !err && i < disk->nr_queues; i++) {
		disk->queues[i].polled = i >= disk->nr_queues - kdblk_polled(disk);
		err = kdblk_queue_connect(&disk->queues[i]);
	}
	if (err)
		return err;

	for (depth = disk->queues[0].depth, i = 1; i < disk->nr_queues; i++)
		depth = min(depth, disk->queues[i].depth);
	if (!disk->connects) {
		disk->depth = depth;
	} else if (depth < disk->depth) {
		pr_err("%s: the target now grants a depth of %u, before %u\n",
		       kdblk_name(disk), depth, disk->depth);
		return -EBUSY;
	}
	for (i = 0; !err && i < disk->nr_queues; i++)
		err = kdblk_queue_memory(&disk->queues[i], disk->max_io);
	return err;
}

static void kdblk_live(struct kdblk_disk *disk)
{
	disk->attempts = 0;
	disk->last_error = 0;
	disk->connects++;
	WRITE_ONCE(disk->failing, false);
	pr_info("%s: connected to disk '%s' at %pISpc through %s, %u queues of depth %u\n",
		kdblk_name(disk), disk->config.disk, &disk->address, disk->config.ia,
		disk->nr_queues, disk->depth);
	queue_delayed_work(kdblk_wq, &disk->keepalive,
			   msecs_to_jiffies(disk->config.keepalive_ms));
	/*
	 * kdblk_lost() starts recovery if it sees LIVE. A loss before this store has set
	 * broken, which is tested next.
	 */
	smp_store_mb(disk->state, KDBLK_LIVE);
	if (READ_ONCE(disk->broken))
		kdblk_lost(disk, "the connection broke at once");
	kdblk_disk_unquiesce(disk);
}

static void kdblk_give_up(struct kdblk_disk *disk)
{
	WRITE_ONCE(disk->failing, true);
	WRITE_ONCE(disk->state, KDBLK_FAILED);
	kdblk_disk_unquiesce(disk);
}

static void kdblk_recover_work(struct work_struct *work)
{
	struct kdblk_disk *disk = container_of(to_delayed_work(work), struct kdblk_disk, recover);
	bool first = READ_ONCE(disk->state) == KDBLK_CONNECTING, fruitless = false;
	unsigned int noio = memalloc_noio_save();
	bool lost = disk->lost_why;
	int err = -EINTR;

	if (lost) {
		disk->losses++;
		pr_warn("%s: connection lost: %s\n", kdblk_name(disk), disk->lost_why);
		disk->lost_why = NULL;
	}
	kdblk_disk_quiesce(disk);
	disk->unanswered = 0;
	kdblk_close(disk);
	/*
	 * Count a session as a failed attempt if none of its commands was answered, or if it
	 * was lost before the first keepalive was answered.
	 */
	if (lost) {
		fruitless = !disk->answered && (disk->unanswered || !disk->alive);
		disk->fruitless = fruitless ? disk->fruitless + 1 : 0;
		disk->attempts = disk->fruitless;
	}
	if (!READ_ONCE(disk->stopping))
		err = fruitless ? -ECONNRESET : kdblk_connect(disk);
	if (!err) {
		kdblk_live(disk);
		goto out;
	}
	kdblk_close(disk);
	disk->last_error = err;
	if (READ_ONCE(disk->stopping)) {
		kdblk_give_up(disk);
	} else if (first) {
		pr_err("%s: cannot connect to disk '%s' at %pISpc through %s: %pe\n",
		       kdblk_name(disk), disk->config.disk, &disk->address, disk->config.ia,
		       ERR_PTR(err));
		kdblk_give_up(disk);
	} else if (disk->attempts >= disk->config.reconnect_max) {
		pr_err("%s: attempt %u of %u failed: %pe; giving up, commands fail from now on (write 1 to connect to try again)\n",
		       kdblk_name(disk), disk->attempts, disk->config.reconnect_max, ERR_PTR(err));
		kdblk_give_up(disk);
	} else {
		pr_warn("%s: attempt %u of %u failed: %pe; next one in %u ms, commands wait\n",
			kdblk_name(disk), disk->attempts, disk->config.reconnect_max,
			ERR_PTR(err), disk->config.reconnect_delay_ms);
		queue_delayed_work(kdblk_wq, &disk->recover,
				   msecs_to_jiffies(disk->config.reconnect_delay_ms));
	}
out:
	memalloc_noio_restore(noio);
}

/* ---- requests of the administrator, with @admin held ---- */

static void kdblk_free_queues(struct kdblk_disk *disk)
{
	u32 i;

	for (i = 0; disk->queues && i < disk->nr_alloc; i++)
		kdblk_queue_free(&disk->queues[i]);
	kvfree(disk->queues);
	disk->queues = NULL;
}

static int kdblk_alloc_queues(struct kdblk_disk *disk)
{
	const struct kdblk_config *config = &disk->config;
	/* The block layer cannot use more than one per CPU. */
	u32 i, n = min(config->queues, nr_cpu_ids) + min(config->poll_queues, nr_cpu_ids);
	int err = 0;

	disk->queues = kvcalloc(n, sizeof(*disk->queues), GFP_KERNEL);
	if (!disk->queues)
		return -ENOMEM;
	disk->nr_queues = n;
	disk->nr_alloc = n;
	for (i = 0; !err && i < n; i++) {
		disk->queues[i].disk = disk;
		disk->queues[i].index = i;
		err = kdblk_queue_alloc(&disk->queues[i], config->depth);
	}
	if (err)
		kdblk_free_queues(disk);
	return err;
}

static int kdblk_parse_address(struct kdblk_disk *disk)
{
	const struct kdblk_config *config = &disk->config;

	if (!config->ia[0] || !config->disk[0] || !config->address[0]) {
		pr_err("%s: ia, address and disk have to be set before it can connect\n",
		       kdblk_name(disk));
		return -EINVAL;
	}
	if (inet_pton_with_scope(&init_net, AF_UNSPEC, config->address, NULL, &disk->address)) {
		pr_err("%s: '%s' is not an IPv4 or IPv6 address\n", kdblk_name(disk),
		       config->address);
		return -EINVAL;
	}
	((struct sockaddr_in *)&disk->address)->sin_port = cpu_to_be16(config->port);
	return 0;
}

/* Connect, create the block device the first time, and wait for the outcome. */
int kdblk_start(struct kdblk_disk *disk)
{
	int err;

	if (disk->state != KDBLK_IDLE && disk->state != KDBLK_FAILED)
		return -EALREADY;
	err = kdblk_parse_address(disk);
	if (!err && !disk->queues)
		err = kdblk_alloc_queues(disk);
	if (err)
		return err;
	disk->stopping = false;
	disk->attempts = 0;
	disk->fruitless = 0;
	disk->state = KDBLK_CONNECTING;
	queue_delayed_work(kdblk_wq, &disk->recover, 0);
	flush_delayed_work(&disk->recover);
	err = disk->last_error;
	if (!err && !disk->gendisk)
		err = kdblk_disk_add(disk);
	if (err && !disk->gendisk)
		kdblk_stop(disk);
	return err;
}

void kdblk_stop(struct kdblk_disk *disk)
{
	int err = disk->last_error;

	WRITE_ONCE(disk->stopping, true);
	wake_up_all(&disk->wait);
	/* Data written back now still goes out if connected; otherwise it fails. */
	if (READ_ONCE(disk->state) != KDBLK_LIVE)
		mod_delayed_work(kdblk_wq, &disk->recover, 0);
	kdblk_disk_remove(disk);
	/* From now on the end of the connection does not count as a loss. */
	cmpxchg(&disk->state, KDBLK_LIVE, KDBLK_FAILED);
	/*
	 * The work item closes the connection, which ends all upcalls. Until then, an upcall
	 * that saw a loss may have queued the item again, so cancel it afterwards.
	 */
	if (disk->queues) {
		mod_delayed_work(kdblk_wq, &disk->recover, 0);
		flush_delayed_work(&disk->recover);
	}
	cancel_delayed_work_sync(&disk->recover);
	kdblk_free_queues(disk);
	disk->connects = 0;
	disk->failing = false;
	disk->lost_why = NULL;
	disk->last_error = err;
	disk->state = KDBLK_IDLE;
}

void kdblk_session_init(struct kdblk_disk *disk)
{
	get_random_bytes(disk->id, sizeof(disk->id));
	mutex_init(&disk->admin);
	mutex_init(&disk->gate);
	init_waitqueue_head(&disk->wait);
	INIT_DELAYED_WORK(&disk->recover, kdblk_recover_work);
	INIT_DELAYED_WORK(&disk->keepalive, kdblk_keepalive_work);
}
