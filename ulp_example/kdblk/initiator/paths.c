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
 * at that moment, the lost one is marked unfenced, and the next path that connects does it
 * before it takes commands.
 */
#define pr_fmt(fmt) "kdblk: " fmt

#include "kdblk.h"

/* Protects the list, and the members joined and unfenced of its disks. */
static DEFINE_MUTEX(kdblk_paths_lock);
static LIST_HEAD(kdblk_paths);

static bool kdblk_other_path(const struct kdblk_disk *a, const struct kdblk_disk *b)
{
	return a->config.path != b->config.path && !memcmp(a->id, b->id, sizeof(a->id)) &&
	       !strcmp(a->config.disk, b->config.disk) &&
	       !memcmp(a->geometry.serial, b->geometry.serial, sizeof(a->geometry.serial));
}

/*
 * Ask the target of @by to end another path. Nothing else uses the administration tag of @by.
 * Return: 0 if nothing of that path is left, -EAGAIN if it is ending, or another error.
 */
static int kdblk_fence_once(struct kdblk_disk *by, u16 path)
{
	long limit = msecs_to_jiffies(by->config.keepalive_ms);
	int err;

	/* A keepalive may be under way. */
	if (!wait_event_timeout(by->wait, !READ_ONCE(by->admin_busy) || READ_ONCE(by->broken) ||
				READ_ONCE(by->stopping), limit))
		return -ETIMEDOUT;
	if (READ_ONCE(by->broken) || READ_ONCE(by->stopping))
		return -ECONNRESET;
	err = kdblk_queue_admin(&by->queues[0], KDBLK_OP_FENCE, path);
	if (err)
		return err;
	/* the acquire pairs with kdblk_admin_answered() */
	if (!wait_event_timeout(by->wait, !smp_load_acquire(&by->admin_busy) ||
				READ_ONCE(by->broken) || READ_ONCE(by->stopping), limit))
		return -ETIMEDOUT;
	if (READ_ONCE(by->admin_busy))
		return -ECONNRESET;
	switch (le16_to_cpu(by->answer.rsp.status)) {
	case KDBLK_STATUS_OK:
		return 0;
	case KDBLK_STATUS_RESOURCE:
		return -EAGAIN;
	default:
		return -EPROTO;
	}
}

/*
 * The same, by a path that takes commands. Return: -ENOENT if there is none. One that is just
 * being connected or lost, or does not answer, is tried again until it answers or is closed.
 */
static int kdblk_fence_by_another(struct kdblk_disk *disk)
{
	struct kdblk_disk *by;
	int err, ret = -ENOENT;

	lockdep_assert_held(&kdblk_paths_lock);
	list_for_each_entry(by, &kdblk_paths, paths) {
		if (!by->joined || !kdblk_other_path(disk, by))
			continue;
		err = -EAGAIN;
		mutex_lock(&by->fence);
		if (READ_ONCE(by->state) == KDBLK_LIVE)
			err = kdblk_fence_once(by, disk->config.path);
		mutex_unlock(&by->fence);
		if (!err || err == -EPROTO)
			return err;
		ret = -EAGAIN;
	}
	return ret;
}

/**
 * kdblk_fence - ask whether the target has finished the commands of a lost connection
 * @disk: disk without a connection, whose commands are to fail
 *
 * Context: may sleep, but not until they are finished; allocates nothing.
 * Return: -EAGAIN if they are not; ask again after KDBLK_AGAIN_MS. -EINTR if the disk is
 * connected again, or is to be disconnected. Otherwise the commands may fail: they are
 * finished, or no other path can take them now.
 */
int kdblk_fence(struct kdblk_disk *disk)
{
	int err = -EINTR;

	mutex_lock(&kdblk_paths_lock);
	if (!disk->joined && !READ_ONCE(disk->stopping)) {
		disk->unfenced = true;
		err = kdblk_fence_by_another(disk);
	}
	if (!err)
		disk->unfenced = false;
	mutex_unlock(&kdblk_paths_lock);
	return err;
}

static struct kdblk_disk *kdblk_unfenced(struct kdblk_disk *disk)
{
	struct kdblk_disk *other;

	lockdep_assert_held(&kdblk_paths_lock);
	list_for_each_entry(other, &kdblk_paths, paths) {
		if (other->unfenced && kdblk_other_path(disk, other))
			return other;
	}
	return NULL;
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
	struct kdblk_disk *other;
	int err = 0;

	for (;;) {
		mutex_lock(&kdblk_paths_lock);
		disk->unfenced = false;
		other = kdblk_unfenced(disk);
		if (other)
			err = kdblk_fence_once(disk, other->config.path);
		else
			disk->joined = true;
		if (other && !err)
			other->unfenced = false;
		mutex_unlock(&kdblk_paths_lock);
		if (!other)
			return 0;
		if (err == -EAGAIN && time_after(jiffies, end))
			return kdblk_why(disk, -ETIMEDOUT,
					 "the target has not finished commands of another path");
		if (err && err != -EAGAIN)
			return err;
		if (err)
			wait_event_timeout(disk->wait, READ_ONCE(disk->broken) ||
					   READ_ONCE(disk->stopping),
					   msecs_to_jiffies(KDBLK_AGAIN_MS));
	}
}

/* The connection is to be closed. Afterwards no other path uses it. */
void kdblk_part(struct kdblk_disk *disk)
{
	mutex_lock(&kdblk_paths_lock);
	disk->joined = false;
	mutex_unlock(&kdblk_paths_lock);
}

void kdblk_paths_add(struct kdblk_disk *disk)
{
	mutex_lock(&kdblk_paths_lock);
	if (list_empty(&disk->paths))
		list_add_tail(&disk->paths, &kdblk_paths);
	mutex_unlock(&kdblk_paths_lock);
}

void kdblk_paths_del(struct kdblk_disk *disk)
{
	mutex_lock(&kdblk_paths_lock);
	list_del_init(&disk->paths);
	disk->unfenced = false;
	mutex_unlock(&kdblk_paths_lock);
}
