// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Several paths of this machine to one disk of a target: disks with the same id and different
 * path numbers, joined by a multipath driver.
 *
 * When commands of a path fail because its connection was lost, the multipath driver sends
 * them on another one. The target may not have finished the first copies, and would overwrite
 * newer data with them later. So before they fail, the target is asked over another path to end
 * what is left of the lost one, until it says that nothing is (FENCE). If there is no other path
 * at that moment, the next path that connects does it before it takes commands. What is to be
 * fenced is remembered even if the lost path is disconnected meanwhile.
 */
#define pr_fmt(fmt) "kdblk: " fmt

#include <linux/slab.h>
#include "kdblk.h"
#include "trace.h"

/* Commands of a lost path that the target may not have finished. */
struct kdblk_stray {
	struct list_head node;	/* kdblk_strays, until the target has finished them */
	u64 turn;		/* the loss that left them */
	bool orphan;		/* the path has been disconnected */
	u8 id[KDBLK_ID_LEN];
	char disk[KDBLK_NAME_LEN];
	char serial[KDBLK_SERIAL_LEN];
	u16 path;
};

/*
 * Protects both lists, strays, and the members joined, fencing and known of the disks. Not held
 * while a target is asked: one that does not answer holds up the paths to its own disk only.
 */
static DEFINE_MUTEX(kdblk_paths_lock);
static LIST_HEAD(kdblk_paths);
static LIST_HEAD(kdblk_strays);
static u64 kdblk_turn;

static bool kdblk_other_path(const struct kdblk_disk *a, const struct kdblk_disk *b)
{
	return a->config.path != b->config.path && !memcmp(a->id, b->id, sizeof(a->id)) &&
	       !strcmp(a->config.disk, b->config.disk) &&
	       !memcmp(a->geometry.serial, b->geometry.serial, sizeof(a->geometry.serial));
}

static bool kdblk_stray_of(const struct kdblk_stray *stray, const struct kdblk_disk *disk)
{
	return !memcmp(stray->id, disk->id, sizeof(stray->id)) &&
	       !strcmp(stray->disk, disk->config.disk) &&
	       !memcmp(stray->serial, disk->geometry.serial, sizeof(stray->serial));
}

static void kdblk_settle(struct kdblk_stray *stray)
{
	lockdep_assert_held(&kdblk_paths_lock);
	list_del_init(&stray->node);
	if (stray->orphan)
		kfree(stray);
}

/* The target has finished what that loss had left; another path may have seen that already. */
static void kdblk_settled(u64 turn)
{
	struct kdblk_stray *stray;

	mutex_lock(&kdblk_paths_lock);
	list_for_each_entry(stray, &kdblk_strays, node) {
		if (stray->turn == turn) {
			kdblk_settle(stray);
			break;
		}
	}
	mutex_unlock(&kdblk_paths_lock);
}

/* Commands of a disk without a connection are to fail. Return the number of the loss. */
static u64 kdblk_go_astray(struct kdblk_disk *disk)
{
	struct kdblk_stray *stray = disk->stray;

	lockdep_assert_held(&kdblk_paths_lock);
	if (!list_empty(&stray->node))
		return stray->turn;
	stray->turn = ++kdblk_turn;
	memcpy(stray->id, disk->id, sizeof(stray->id));
	strscpy(stray->disk, disk->config.disk, sizeof(stray->disk));
	memcpy(stray->serial, disk->geometry.serial, sizeof(stray->serial));
	stray->path = disk->config.path;
	list_add_tail(&stray->node, &kdblk_strays);
	return stray->turn;
}

/* @by cannot be asked any more, or need not be: @disk is connected again. */
static bool kdblk_fence_over(const struct kdblk_disk *by, const struct kdblk_disk *disk)
{
	return READ_ONCE(by->broken) || READ_ONCE(by->stopping) ||
	       (disk && READ_ONCE(disk->joined));
}

/*
 * Ask the target of @by to end @path, that of @disk or of an earlier disk (NULL). Nothing else uses
 * the administration tag of @by.
 * Return: 0 if nothing of that path is left, -EAGAIN if it is ending, or another error.
 */
static int kdblk_fence_ask(struct kdblk_disk *by, u16 path, const struct kdblk_disk *disk)
{
	long limit = msecs_to_jiffies(by->config.keepalive_ms);
	int err;

	/* A keepalive may be under way. */
	if (!wait_event_timeout(by->wait, !READ_ONCE(by->admin_busy) || kdblk_fence_over(by, disk),
				limit))
		return -ETIMEDOUT;
	if (kdblk_fence_over(by, disk))
		return -ECONNRESET;
	err = kdblk_queue_admin(&by->queues[0], KDBLK_OP_FENCE, path);
	if (err)
		return err;
	/* the acquire pairs with kdblk_admin_answered() */
	if (!wait_event_timeout(by->wait, !smp_load_acquire(&by->admin_busy) ||
				kdblk_fence_over(by, disk), limit))
		return -ETIMEDOUT;
	if (READ_ONCE(by->admin_busy))
		return -ECONNRESET;
	switch (le16_to_cpu(by->answer.rsp.status)) {
	case KDBLK_STATUS_OK:
		return 0;
	case KDBLK_STATUS_RESOURCE:
		return -EAGAIN;
	default:
		kdblk_lost(by, "the target refused to end another path");
		return -EPROTO;
	}
}

static int kdblk_fence_once(struct kdblk_disk *by, u16 path, const struct kdblk_disk *disk)
{
	int err = kdblk_fence_ask(by, path, disk);

	trace_kdblk_fence(by, path, err);
	return err;
}

static void kdblk_unpin(struct kdblk_disk *by)
{
	lockdep_assert_held(&kdblk_paths_lock);
	if (!--by->fencing)
		wake_up_all(&by->wait);
}

/* The next path that takes commands. It stays connected, and in the list, until it is unpinned. */
static struct kdblk_disk *kdblk_pin_next(struct kdblk_disk *disk, struct kdblk_disk *last)
{
	struct kdblk_disk *by, *found = NULL;

	mutex_lock(&kdblk_paths_lock);
	by = list_prepare_entry(last, &kdblk_paths, paths);
	list_for_each_entry_continue(by, &kdblk_paths, paths) {
		if (by->joined && kdblk_other_path(disk, by)) {
			by->fencing++;
			found = by;
			break;
		}
	}
	if (last)
		kdblk_unpin(last);
	mutex_unlock(&kdblk_paths_lock);
	return found;
}

/*
 * FENCE by a path that takes commands. Return: -ENOENT if there is none. One that is just being
 * connected or lost, or does not answer, is tried again until it answers or is closed.
 */
static int kdblk_fence_by_another(struct kdblk_disk *disk)
{
	struct kdblk_disk *by = NULL;
	int err, ret = -ENOENT;

	while ((by = kdblk_pin_next(disk, by))) {
		err = -EAGAIN;
		/* Others may ask for long, or send a KEEPALIVE. */
		if (mutex_trylock(&by->fence)) {
			if (READ_ONCE(by->state) == KDBLK_LIVE)
				err = kdblk_fence_once(by, disk->config.path, disk);
			mutex_unlock(&by->fence);
		}
		ret = -EAGAIN;
		if (!err)
			break;
	}
	if (!by)
		return ret;
	mutex_lock(&kdblk_paths_lock);
	kdblk_unpin(by);
	mutex_unlock(&kdblk_paths_lock);
	return 0;
}

/**
 * kdblk_fence - ask whether the target has finished the commands of a lost connection
 * @disk: disk without a connection, whose commands are to fail
 *
 * Context: may sleep, but not until they are finished; allocates nothing.
 * Return: -EAGAIN if they are not; ask again after KDBLK_AGAIN_MS. -EINTR if the disk is
 * connected again, or the lost connection is not closed yet. Otherwise the commands may fail: they
 * are finished, or no other path can take them now.
 */
int kdblk_fence(struct kdblk_disk *disk)
{
	u64 turn = 0;
	int err;

	mutex_lock(&kdblk_paths_lock);
	if (!disk->joined)
		turn = kdblk_go_astray(disk);
	mutex_unlock(&kdblk_paths_lock);
	if (!turn)
		return -EINTR;
	err = kdblk_fence_by_another(disk);
	if (!err)
		kdblk_settled(turn);
	return err;
}

/* What is left of other paths to this disk. What was left of this one ended with its LOGIN. */
static struct kdblk_stray *kdblk_first_stray(struct kdblk_disk *disk)
{
	struct kdblk_stray *stray, *next, *found = NULL;

	lockdep_assert_held(&kdblk_paths_lock);
	list_for_each_entry_safe(stray, next, &kdblk_strays, node) {
		if (!kdblk_stray_of(stray, disk))
			continue;
		if (stray->path == disk->config.path)
			kdblk_settle(stray);
		else if (!found)
			found = stray;
	}
	return found;
}

/* A path is connected again: nobody need wait for an answer about it. */
static void kdblk_wake_fences(void)
{
	struct kdblk_disk *by;

	lockdep_assert_held(&kdblk_paths_lock);
	list_for_each_entry(by, &kdblk_paths, paths) {
		if (by->fencing)
			wake_up_all(&by->wait);
	}
}

/**
 * kdblk_join - let a path take commands
 * @disk: disk that has logged in
 *
 * The target has finished the commands of earlier sessions of this path. If there is another
 * path whose commands have failed unfenced, it has to finish those, too.
 *
 * Return: 0 or -errno, with the reason in words.
 */
int kdblk_join(struct kdblk_disk *disk)
{
	unsigned long end = jiffies + KDBLK_LOGIN_TIMEOUT;
	struct kdblk_stray *stray;
	u64 turn = 0;
	u16 path = 0;
	int err;

	for (;;) {
		mutex_lock(&kdblk_paths_lock);
		stray = kdblk_first_stray(disk);
		if (stray) {
			turn = stray->turn;
			path = stray->path;
		} else {
			WRITE_ONCE(disk->joined, true);
			kdblk_wake_fences();
		}
		mutex_unlock(&kdblk_paths_lock);
		if (!stray)
			return 0;
		err = kdblk_fence_once(disk, path, NULL);
		if (!err)
			kdblk_settled(turn);
		else if (READ_ONCE(disk->broken) || READ_ONCE(disk->stopping))
			return READ_ONCE(disk->broken) ? -ECONNRESET : -EINTR;
		else if (err != -EAGAIN)
			return kdblk_why(disk, err, "the target does not answer about path %u",
					 path);
		else if (time_after(jiffies, end))
			return kdblk_why(disk, -ETIMEDOUT,
					 "the target has not finished commands of path %u", path);
		else
			wait_event_timeout(disk->wait, READ_ONCE(disk->broken) ||
					   READ_ONCE(disk->stopping),
					   msecs_to_jiffies(KDBLK_AGAIN_MS));
	}
}

/* The connection is to be closed. Afterwards no other path uses it. */
void kdblk_part(struct kdblk_disk *disk)
{
	mutex_lock(&kdblk_paths_lock);
	WRITE_ONCE(disk->joined, false);
	mutex_unlock(&kdblk_paths_lock);
	/* It is broken or stopping, so the paths that use it will stop. */
	wait_event(disk->wait, !READ_ONCE(disk->fencing));
}

/* The first LOGIN has told which disk it is: find the other paths to it. */
void kdblk_path_known(struct kdblk_disk *disk)
{
	struct kdblk_disk *other;

	mutex_lock(&kdblk_paths_lock);
	disk->known = true;
	list_for_each_entry(other, &kdblk_paths, paths) {
		if (other->known && kdblk_other_path(disk, other)) {
			kdblk_mates_add(disk, other);
			break;
		}
	}
	mutex_unlock(&kdblk_paths_lock);
}

int kdblk_paths_add(struct kdblk_disk *disk)
{
	struct kdblk_stray *stray = disk->stray ? NULL : kzalloc(sizeof(*stray), GFP_KERNEL);

	if (!disk->stray && !stray)
		return -ENOMEM;
	if (stray)
		INIT_LIST_HEAD(&stray->node);
	mutex_lock(&kdblk_paths_lock);
	if (stray)
		disk->stray = stray;
	if (list_empty(&disk->paths))
		list_add_tail(&disk->paths, &kdblk_paths);
	mutex_unlock(&kdblk_paths_lock);
	return 0;
}

/* The disk is disconnected. Remember what the target may have left of it. */
void kdblk_paths_del(struct kdblk_disk *disk)
{
	struct kdblk_stray *stray, *next;

	mutex_lock(&kdblk_paths_lock);
	list_del_init(&disk->paths);
	kdblk_mates_del(disk);
	disk->known = false;
	if (disk->stray && list_empty(&disk->stray->node)) {
		kfree(disk->stray);
	} else if (disk->stray) {
		list_for_each_entry_safe(stray, next, &kdblk_strays, node) {
			if (stray->orphan && stray->path == disk->stray->path &&
			    kdblk_stray_of(stray, disk))
				kdblk_settle(stray);
		}
		disk->stray->orphan = true;
	}
	disk->stray = NULL;
	mutex_unlock(&kdblk_paths_lock);
}

/* After another load of the module the target takes this for another start of the machine. */
void kdblk_paths_exit(void)
{
	struct kdblk_stray *stray, *next;

	list_for_each_entry_safe(stray, next, &kdblk_strays, node)
		kfree(stray);
}
