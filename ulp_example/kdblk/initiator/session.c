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
 * and then builds new ones, on the same adapter if that is still there (adapter.c). Commands wait
 * meanwhile; after the last attempt they fail.
 */
#define pr_fmt(fmt) "kdblk: " fmt

#include <linux/random.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include "kdblk.h"
#include "trace.h"

u8 kdblk_start_id[KDBLK_START_LEN];

/* As in configfs and in uevents. */
const char *kdblk_state_name(enum kdblk_state state)
{
	static const char * const name[] = {
		[KDBLK_IDLE] = "idle",
		[KDBLK_CONNECTING] = "connecting",
		[KDBLK_LIVE] = "live",
		[KDBLK_RECOVERING] = "recovering",
		[KDBLK_FAILED] = "failed",
	};

	return name[state];
}

/* Keep the reason for a failure, which is logged later, in words. Return @err. */
int kdblk_why(struct kdblk_disk *disk, int err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(disk->reason, sizeof(disk->reason), fmt, args);
	va_end(args);
	return err;
}

/* Log the reason at once: a request of the administrator is refused. */
int kdblk_refuse(struct kdblk_disk *disk, int err)
{
	pr_err("%s: %s\n", kdblk_name(disk), disk->reason);
	return err;
}

/* Called from any context. Only the first loss of a connection is reported. */
void kdblk_lost(struct kdblk_disk *disk, const char *why)
{
	cmpxchg(&disk->lost_why, NULL, why);
	WRITE_ONCE(disk->broken, true);
	/* cmpxchg() orders this store before the state change: see kdblk_live(). */
	if (cmpxchg(&disk->state, KDBLK_LIVE, KDBLK_RECOVERING) == KDBLK_LIVE) {
		trace_kdblk_lost(disk, why);
		queue_delayed_work(kdblk_wq, &disk->recover, 0);
	}
	wake_up_all(&disk->wait);
}

void kdblk_conn_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
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
		return kdblk_why(disk, -ENOENT, "the target has no disk '%s'", disk->config.disk);
	case KDBLK_STATUS_DENIED:
		return kdblk_why(disk, -EACCES, "the target denies disk '%s' to initiator '%s'",
				 disk->config.disk, disk->config.initiator);
	case KDBLK_STATUS_UNPROVEN:
		return kdblk_why(disk, -EKEYREJECTED,
				 "the target wants a proof that we are initiator '%s': is the secret right on both sides?",
				 disk->config.initiator);
	case KDBLK_STATUS_IN_USE:
		return kdblk_why(disk, -ENOTUNIQ,
				 "another initiator with our id is connected to disk '%s' on path %u, or is another machine: each machine needs its own id, each path of it its own number",
				 disk->config.disk, disk->config.path);
	case KDBLK_STATUS_FULL:
		return kdblk_why(disk, -EUSERS, "the target takes no more sessions");
	case KDBLK_STATUS_RESOURCE:
		return kdblk_why(disk, -EBUSY, "the target has no memory for a session");
	case KDBLK_STATUS_OFFLINE:
		return kdblk_why(disk, -ENODEV, "disk '%s' is not enabled at the target",
				 disk->config.disk);
	default:
		return kdblk_why(disk, -EIO, "the target refused the login with status %u", status);
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

	if (memchr_inv(geo->reserved, 0, sizeof(geo->reserved)) || (flags & ~KDBLK_DISK_FLAGS))
		return false;
	if (!geo->session || (block != 512 && block != 4096))
		return false;
	/* It becomes names in sysfs and /dev. */
	if (!kdblk_text_fits(geo->serial, sizeof(geo->serial)))
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

/* Apart from its size. */
static bool kdblk_same_disk(const struct kdblk_login_rsp *a, const struct kdblk_login_rsp *b)
{
	return a->block_size == b->block_size &&
	       a->max_io == b->max_io && a->max_range == b->max_range && a->flags == b->flags &&
	       !memcmp(a->serial, b->serial, sizeof(a->serial));
}

static int kdblk_geometry(struct kdblk_disk *disk)
{
	const struct kdblk_login_rsp *geo = &disk->answer;
	u64 pages = disk->limits.lmr_pages, capacity = le64_to_cpu(geo->capacity);
	u32 i;

	if (!kdblk_geometry_fits(geo, disk->nr_queues))
		return kdblk_why(disk, -EPROTO, "the target sent invalid properties of its disk");
	if (!disk->connects) {
		disk->geometry = *geo;
		disk->nr_queues = le16_to_cpu(geo->queues);
		for (i = disk->nr_queues; i < disk->nr_alloc; i++)
			kdblk_queue_free(&disk->queues[i]);
		/* an unaligned buffer needs one more page */
		disk->max_io = min3((u64)le32_to_cpu(geo->max_io), (pages - 1) * PAGE_SIZE,
				    round_down(disk->limits.max_mapping, PAGE_SIZE));
		kdblk_path_known(disk);
	} else if (!kdblk_same_disk(&disk->geometry, geo)) {
		return kdblk_why(disk, -ESTALE,
				 "disk '%s' at the target differs from the one before",
				 disk->config.disk);
	} else if (capacity < disk->capacity) {
		return kdblk_why(disk, -ESTALE,
				 "disk '%s' at the target has shrunk from %llu to %llu bytes",
				 disk->config.disk, disk->capacity, capacity);
	} else if (le16_to_cpu(geo->queues) < disk->nr_queues) {
		return kdblk_why(disk, -EBUSY, "the target now grants %u queues, before %u",
				 le16_to_cpu(geo->queues), disk->nr_queues);
	}
	kdblk_compare_boot(disk, geo);
	disk->session = le64_to_cpu(geo->session);
	WRITE_ONCE(disk->capacity, capacity);
	schedule_work(&disk->grow);
	return 0;
}

/* The target must know our secret, too. */
static int kdblk_target_proven(struct kdblk_disk *disk)
{
	struct kdblk_login_rsp copy = disk->answer;
	u8 proof[KDBLK_PROOF_LEN];
	int err;

	if (!disk->secret.length)
		return 0;
	memset(copy.proof, 0, sizeof(copy.proof));
	err = kdblk_secret_prove(&disk->secret, KDBLK_ROLE_TARGET,
				 kdblk_login_msg(&disk->queues[0])->nonce, &copy.session,
				 KDBLK_PROVEN_LEN, proof);
	if (err || !kdblk_proof_same(proof, disk->answer.proof, sizeof(disk->answer.proof)))
		return kdblk_why(disk, -EKEYREJECTED,
				 "the target did not prove that it knows our secret");
	return 0;
}

static int kdblk_login(struct kdblk_disk *disk)
{
	struct kdblk_queue *q = &disk->queues[0];
	struct kdblk_login *login = kdblk_login_msg(q);
	int err;

	memset(login, 0, sizeof(*login));
	memcpy(login->id, disk->id, sizeof(login->id));
	strscpy(login->initiator, disk->config.initiator, sizeof(login->initiator));
	strscpy(login->disk, disk->config.disk, sizeof(login->disk));
	login->keepalive_ms = cpu_to_le32(disk->config.keepalive_ms);
	login->queues = cpu_to_le16(disk->nr_queues);
	login->path = cpu_to_le16(disk->config.path);
	memcpy(login->instance, disk->instance, sizeof(login->instance));
	get_random_bytes(login->nonce, sizeof(login->nonce));
	err = disk->secret.length ?
		kdblk_secret_prove(&disk->secret, KDBLK_ROLE_INITIATOR, q->accept.nonce, login,
				   sizeof(*login), login->proof) : 0;
	if (err)
		return kdblk_why(disk, err, "the proof of the secret cannot be computed");
	kdblk_login_sent(disk);
	err = kdblk_queue_admin(q, KDBLK_OP_LOGIN, 0);
	if (err)
		return READ_ONCE(disk->broken) ? -ECONNRESET :
		       kdblk_why(disk, err, "the login could not be sent");
	/* the acquire pairs with kdblk_admin_answered() */
	if (!wait_event_timeout(disk->wait, !smp_load_acquire(&disk->admin_busy) ||
				READ_ONCE(disk->broken) || READ_ONCE(disk->stopping),
				KDBLK_LOGIN_TIMEOUT +
				2 * msecs_to_jiffies(disk->config.keepalive_ms)))
		return kdblk_why(disk, -ETIMEDOUT, "the target did not answer the login");
	if (READ_ONCE(disk->admin_busy))
		return READ_ONCE(disk->stopping) ? -EINTR : -ECONNRESET;
	return kdblk_login_status(disk) ?: kdblk_target_proven(disk) ?: kdblk_geometry(disk);
}

/* ---- keepalive ---- */

static void kdblk_keepalive_work(struct work_struct *work)
{
	struct kdblk_disk *disk = container_of(to_delayed_work(work), struct kdblk_disk,
					       keepalive);
	bool heard;

	if (READ_ONCE(disk->state) != KDBLK_LIVE)
		return;
	mutex_lock(&disk->fence);
	/* A keepalive may be late behind commands of a slow disk; their answers count as well. */
	heard = xchg(&disk->heard, false);
	if (READ_ONCE(disk->admin_busy) && !heard)
		kdblk_lost(disk, "the target did not answer a keepalive");
	else if (!READ_ONCE(disk->admin_busy) &&
		 kdblk_queue_admin(&disk->queues[0], KDBLK_OP_KEEPALIVE, 0))
		kdblk_lost(disk, "a keepalive could not be sent");
	else
		queue_delayed_work(kdblk_wq, &disk->keepalive,
				   msecs_to_jiffies(disk->config.keepalive_ms));
	mutex_unlock(&disk->fence);
}

/* ---- the connection as a whole ---- */

/* Afterwards nothing of the connection is left. The adapter stays. */
static void kdblk_close(struct kdblk_disk *disk)
{
	u32 i;

	cancel_delayed_work_sync(&disk->keepalive);
	kdblk_part(disk);
	for (i = 0; i < disk->nr_queues; i++)
		kdblk_queue_disconnect(&disk->queues[i]);
	for (i = 0; i < disk->nr_queues; i++)
		kdblk_queue_close(&disk->queues[i]);
	disk->admin_busy = false;
}

/* Make one attempt. On failure, the caller calls kdblk_close(). */
static int kdblk_connect(struct kdblk_disk *disk)
{
	struct kdblk_queue *first = &disk->queues[0];
	u16 depth;
	u32 i;
	int err;

	/* one that starts because an adapter has appeared does not count for reconnect_max */
	if (!time_before(jiffies, disk->due))
		disk->attempts++;
	disk->reason[0] = 0;
	WRITE_ONCE(disk->lost_why, NULL);
	WRITE_ONCE(disk->broken, false);
	disk->answered = false;
	disk->alive = false;
	err = kdblk_attach(disk);
	if (err)
		return err;
	err = kdblk_queue_connect(first);
	disk->unanswered_there = !kdblk_queue_peer_there(first);
	err = err ?: kdblk_login(disk);
	for (i = 1; !err && i < disk->nr_queues; i++) {
		disk->queues[i].polled = i >= disk->nr_queues - kdblk_polled(disk);
		err = kdblk_queue_connect(&disk->queues[i]);
	}
	if (err)
		return err;

	for (depth = first->depth, i = 1; i < disk->nr_queues; i++)
		depth = min(depth, disk->queues[i].depth);
	if (!disk->connects) {
		disk->depth = depth;
	} else if (depth < disk->depth) {
		return kdblk_why(disk, -EBUSY, "the target now grants a depth of %u, before %u",
				 depth, disk->depth);
	}
	for (i = 0; !err && i < disk->nr_queues; i++)
		err = kdblk_queue_memory(&disk->queues[i], disk->max_io);
	return err ?: kdblk_join(disk);
}

static void kdblk_tell_live(struct kdblk_disk *disk)
{
	struct kdblk_place place;

	kdblk_ia_place(disk->ia, &place);
	pr_info("%s: connected to disk '%s' at %pISpc through %s, %u queues of depth %u\n",
		kdblk_name(disk), disk->config.disk, &disk->address,
		place.adapter[0] ? place.adapter : disk->config.ia, disk->nr_queues, disk->depth);
}

static void kdblk_live(struct kdblk_disk *disk)
{
	disk->attempts = 0;
	disk->last_error = 0;
	disk->told[0] = 0;
	disk->connects++;
	if (__ratelimit(&disk->log))
		kdblk_tell_live(disk);
	disk->was_live = true;
	cancel_delayed_work_sync(&disk->fast_fail);
	disk->fences = 0;
	queue_delayed_work(kdblk_wq, &disk->keepalive,
			   msecs_to_jiffies(disk->config.keepalive_ms));
	kdblk_sysfs_adapter(disk);	/* the event of this state makes the link */
	/*
	 * kdblk_lost() starts recovery if it sees LIVE. A loss before this store has set
	 * broken, which is tested next.
	 */
	smp_store_mb(disk->state, KDBLK_LIVE);
	if (READ_ONCE(disk->broken))
		kdblk_lost(disk, "the connection broke at once");
	/* If commands were failing, they wait until this is done, and then are sent. */
	kdblk_disk_quiesce(disk);
	WRITE_ONCE(disk->failing, false);
	kdblk_disk_release(disk);
}

static void kdblk_fail_commands(struct kdblk_disk *disk)
{
	WRITE_ONCE(disk->failing, true);
	kdblk_disk_release(disk);
}

/*
 * Fail the commands: recovery has given up, or a multipath driver is to use another path soon.
 * Between two questions to the target the work item ends, since recovery of the other path may
 * need the thread.
 */
static void kdblk_fast_fail_work(struct work_struct *work)
{
	struct kdblk_disk *disk = container_of(to_delayed_work(work), struct kdblk_disk,
					       fast_fail);
	int state = READ_ONCE(disk->state), err;

	if (state != KDBLK_RECOVERING && state != KDBLK_FAILED)
		return;
	if (READ_ONCE(disk->failing)) {
		kdblk_disk_release(disk);	/* the attempts have ended: tell user space */
		return;
	}
	/* Before there is a block device, and when it has gone, no command is left to fail. */
	err = kdblk_disk_exists(disk) ? kdblk_fence(disk) : 0;
	if (err == -EAGAIN && ++disk->fences == KDBLK_FENCES_TOLD && __ratelimit(&disk->log))
		pr_warn("%s: commands of the lost connection do not fail yet, as the target may still execute them\n",
			kdblk_name(disk));
	/* After -EINTR too: if the disk is connected again, kdblk_live() cancels this. */
	if (err == -EAGAIN || err == -EINTR) {
		queue_delayed_work(kdblk_wq, &disk->fast_fail, msecs_to_jiffies(KDBLK_AGAIN_MS));
		return;
	}
	if (state == KDBLK_RECOVERING && __ratelimit(&disk->log))
		pr_warn("%s: no connection for %u ms: commands fail from now on, attempts go on\n",
			kdblk_name(disk), disk->config.fast_io_fail_ms);
	kdblk_fail_commands(disk);
}

/*
 * The disk has become larger. A uevent tells programs that watch it. That needs locks whose
 * holders may wait for this very disk, so nothing that recovery needs is held here: neither @gate
 * nor a thread of its workqueue.
 */
static void kdblk_grow_work(struct work_struct *work)
{
	struct kdblk_disk *disk = container_of(work, struct kdblk_disk, grow);
	sector_t sectors = READ_ONCE(disk->capacity) >> SECTOR_SHIFT;
	struct gendisk *gendisk;

	mutex_lock(&disk->gate);
	gendisk = disk->gendisk;
	if (gendisk)
		get_device(disk_to_dev(gendisk));
	mutex_unlock(&disk->gate);
	if (!gendisk)
		return;
	if (sectors > get_capacity(gendisk)) {
		pr_info("%s: the disk has grown from %llu to %llu bytes\n", kdblk_name(disk),
			(u64)get_capacity(gendisk) << SECTOR_SHIFT, (u64)sectors << SECTOR_SHIFT);
		set_capacity_and_notify(gendisk, sectors);
	}
	put_disk(gendisk);
}

/* Commands fail when the target has ended them, even if the administrator has given up. */
static void kdblk_give_up(struct kdblk_disk *disk)
{
	kdblk_detach(disk);
	WRITE_ONCE(disk->state, KDBLK_FAILED);
	mod_delayed_work(kdblk_wq, &disk->fast_fail, 0);
}

/* Give a failed attempt a reason in words, if it has none. */
static void kdblk_explain(struct kdblk_disk *disk, int err)
{
	const char *lost = READ_ONCE(disk->lost_why);

	if (disk->reason[0])
		return;
	switch (err) {
	case -ECONNREFUSED:
		kdblk_why(disk, err, "%pISpc: nothing listens there", &disk->address);
		break;
	case -EHOSTUNREACH:
		kdblk_why(disk, err, "%pISpc: no route there, or no answer", &disk->address);
		break;
	case -ETIMEDOUT:
		kdblk_why(disk, err, "%pISpc: no answer", &disk->address);
		break;
	case -ECONNRESET:
		kdblk_why(disk, err, "%pISpc: the connection ended at once: %s", &disk->address,
			  lost ?: "the target does not say why");
		break;
	case -EINTR:
		kdblk_why(disk, err, "it was disconnected meanwhile");
		break;
	case -ENOMEM:
		kdblk_why(disk, err, "out of memory");
		break;
	case -ENOSPC:
		kdblk_why(disk, err, "the adapter has no more of what a queue needs");
		break;
	default:
		kdblk_why(disk, err, "see the lines before this one in the kernel log");
		break;
	}
}

/* After an attempt because an adapter has appeared, the next one is due when it was before. */
static void kdblk_attempt_later(struct kdblk_disk *disk)
{
	unsigned long delay = msecs_to_jiffies(disk->config.reconnect_delay_ms), now = jiffies;

	if (!time_before(now, disk->due))
		disk->due = now + delay;
	queue_delayed_work(kdblk_wq, &disk->recover, disk->due - now);
}

/* A failed attempt is logged if it is the first, 2nd, 4th, 8th..., or fails in another way. */
static void kdblk_attempt_failed(struct kdblk_disk *disk, int err)
{
	bool first = READ_ONCE(disk->state) == KDBLK_CONNECTING, changed;

	kdblk_explain(disk, err);
	changed = strcmp(disk->reason, disk->told);
	strscpy(disk->told, disk->reason, sizeof(disk->told));
	disk->last_error = err;
	if (READ_ONCE(disk->stopping)) {
		kdblk_give_up(disk);
	} else if (first) {
		pr_err("%s: cannot connect to disk '%s': %s (%pe)\n", kdblk_name(disk),
		       disk->config.disk, disk->reason, ERR_PTR(err));
		kdblk_give_up(disk);
	} else if (disk->attempts >= disk->config.reconnect_max) {
		pr_err("%s: attempt %u of %u failed: %s (%pe); giving up, commands fail from now on (write 1 to connect to try again)\n",
		       kdblk_name(disk), disk->attempts, disk->config.reconnect_max, disk->reason,
		       ERR_PTR(err));
		kdblk_give_up(disk);
	} else {
		if (changed || is_power_of_2(disk->attempts))
			pr_warn("%s: attempt %u of %u failed: %s (%pe); next one in %u ms\n",
				kdblk_name(disk), disk->attempts, disk->config.reconnect_max,
				disk->reason, ERR_PTR(err), disk->config.reconnect_delay_ms);
		kdblk_attempt_later(disk);
	}
}

/* Commands wait from here on. After fast_io_fail_ms they fail, and go on to do so. */
static void kdblk_hold_commands(struct kdblk_disk *disk)
{
	if (READ_ONCE(disk->failing))
		return;
	kdblk_disk_quiesce(disk);
	/* kdblk_fast_fail_work() may have come first. */
	if (READ_ONCE(disk->failing))
		kdblk_disk_release(disk);
}

static void kdblk_recover_work(struct work_struct *work)
{
	struct kdblk_disk *disk = container_of(to_delayed_work(work), struct kdblk_disk, recover);
	unsigned int noio = memalloc_noio_save();
	int err = -EINTR, state = READ_ONCE(disk->state);
	bool lost = state == KDBLK_RECOVERING && disk->was_live, fruitless = false;

	/* An adapter appeared during the last attempt, which has connected or was the last one. */
	if (state == KDBLK_LIVE || (state == KDBLK_FAILED && !READ_ONCE(disk->stopping)))
		goto out;
	disk->was_live = false;
	if (lost) {
		disk->losses++;
		kdblk_why(disk, 0, "connection lost: %s",
			  READ_ONCE(disk->lost_why) ?: "it has ended");
		if (__ratelimit(&disk->log))
			pr_warn("%s: %s\n", kdblk_name(disk), disk->reason);
	}
	kdblk_hold_commands(disk);
	if (lost && disk->config.fast_io_fail_ms)
		queue_delayed_work(kdblk_wq, &disk->fast_fail,
				   msecs_to_jiffies(disk->config.fast_io_fail_ms));
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
		disk->due = jiffies;
	}
	if (!READ_ONCE(disk->stopping))
		err = fruitless ? -ECONNRESET : kdblk_connect(disk);
	trace_kdblk_attempt(disk, err);
	if (!err) {
		kdblk_live(disk);
	} else {
		kdblk_close(disk);
		kdblk_attempt_failed(disk, err);
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
		err = kdblk_queue_alloc(&disk->queues[i], config);
	}
	if (err)
		kdblk_free_queues(disk);
	return err;
}

static int kdblk_parse_address(struct kdblk_disk *disk)
{
	const struct kdblk_config *config = &disk->config;

	if (!config->disk[0] || !config->address[0] || !config->initiator[0])
		return kdblk_why(disk, -EINVAL, "address, disk and initiator have to be set first");
	if (inet_pton_with_scope(&init_net, AF_UNSPEC, config->address, NULL, &disk->address))
		return kdblk_why(disk, -EINVAL, "'%s' is not an IPv4 or IPv6 address",
				 config->address);
	((struct sockaddr_in *)&disk->address)->sin_port = cpu_to_be16(config->port);
	return 0;
}

/* Connect, create the block device the first time, and wait for the outcome. */
int kdblk_start(struct kdblk_disk *disk)
{
	int err;

	if (disk->state != KDBLK_IDLE && disk->state != KDBLK_FAILED)
		return kdblk_refuse(disk, kdblk_why(disk, -EALREADY,
						    "it is connected, or tries to connect"));
	err = kdblk_parse_address(disk);
	if (err)
		return kdblk_refuse(disk, err);
	if (!disk->queues)
		err = kdblk_alloc_queues(disk);
	err = err ?: kdblk_paths_add(disk);
	if (err) {
		if (disk->state == KDBLK_IDLE)
			kdblk_free_queues(disk);
		return kdblk_refuse(disk, kdblk_why(disk, err, "out of memory"));
	}
	if (disk->state == KDBLK_IDLE)	/* else it is watching */
		kdblk_adapter_watch(disk);
	disk->stopping = false;
	disk->attempts = 0;
	disk->fruitless = 0;
	disk->due = jiffies;
	disk->state = KDBLK_CONNECTING;
	queue_delayed_work(kdblk_wq, &disk->recover, 0);
	flush_delayed_work(&disk->recover);
	err = disk->last_error;
	if (!err && !disk->gendisk) {
		err = kdblk_disk_add(disk);
		if (err)
			disk->last_error =
				kdblk_refuse(disk, kdblk_why(disk, err,
							     "no block device can be made (%pe)",
							     ERR_PTR(err)));
		else
			schedule_work(&disk->grow);	/* in case it has grown meanwhile */
	}
	if (err && !disk->gendisk)
		kdblk_stop(disk);
	return err == -EINTR ? -ECANCELED : err;	/* the write is not to be tried again */
}

/**
 * kdblk_interrupt - make no further attempt to connect
 * @disk: disk that is about to be disconnected
 *
 * Called without @admin: kdblk_start() may hold it, and wait for an answer of the target or for
 * the partition table. Otherwise it has no effect that kdblk_stop() does not have.
 */
void kdblk_interrupt(struct kdblk_disk *disk)
{
	WRITE_ONCE(disk->stopping, true);
	wake_up_all(&disk->wait);
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
	kdblk_adapter_unwatch(disk);
	cancel_delayed_work_sync(&disk->recover);
	cancel_delayed_work_sync(&disk->fast_fail);
	cancel_work_sync(&disk->grow);
	kdblk_sysfs_no_adapter(disk);
	kdblk_paths_del(disk);
	kdblk_free_queues(disk);
	disk->connects = 0;
	disk->adapters = 0;
	disk->fences = 0;
	disk->failing = false;
	disk->lost_why = NULL;
	disk->told[0] = 0;
	disk->last_error = err;
	if (!err)
		disk->reason[0] = 0;
	disk->state = KDBLK_IDLE;
}

void kdblk_session_init(struct kdblk_disk *disk)
{
	get_random_bytes(disk->id, sizeof(disk->id));
	get_random_bytes(disk->instance, sizeof(disk->instance));
	memcpy(disk->instance, kdblk_start_id, sizeof(kdblk_start_id));
	ratelimit_state_init(&disk->log, 60 * HZ, 20);
	ratelimit_set_flags(&disk->log, RATELIMIT_MSG_ON_RELEASE);
	mutex_init(&disk->admin);
	mutex_init(&disk->gate);
	mutex_init(&disk->fence);
	INIT_LIST_HEAD(&disk->paths);
	INIT_LIST_HEAD(&disk->mates);
	init_waitqueue_head(&disk->wait);
	INIT_DELAYED_WORK(&disk->recover, kdblk_recover_work);
	INIT_DELAYED_WORK(&disk->keepalive, kdblk_keepalive_work);
	INIT_DELAYED_WORK(&disk->fast_fail, kdblk_fast_fail_work);
	INIT_WORK(&disk->grow, kdblk_grow_work);
}
