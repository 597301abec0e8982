// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Writes that the target has answered may be in a volatile cache there. If its machine restarts
 * before a FLUSH, they may be lost, and the next FLUSH of the user has to fail, once.
 *
 * All paths to a disk share that cache, and a user above them, such as a multipath driver, writes
 * on one and flushes on another. So a FLUSH covers what was written on any path. The first path
 * that connects after a restart finds what all have lost, and the next FLUSH fails, on whichever
 * path it is sent.
 *
 * A path may notice the restart after another one has logged in again, and have writes to report
 * only then: those of a FLUSH that was not answered, or whose answers were not polled for.
 */
#define pr_fmt(fmt) "kdblk: " fmt

#include "kdblk.h"

/*
 * Protects the lists of mates, changes of boot ids, FLUSHes under way, and what is not flushed. Of
 * the commands each FLUSH takes it, and the first write after one.
 */
static DEFINE_SPINLOCK(kdblk_mates_lock);
static u64 kdblk_logins;

/* Are both from the same start of the target's machine? */
static bool kdblk_same_boot(const struct kdblk_login_rsp *a, const struct kdblk_login_rsp *b)
{
	return !memcmp(a->boot, b->boot, sizeof(a->boot));
}

static void kdblk_lose_cache(struct kdblk_disk *disk, bool lost)
{
	struct kdblk_disk *mate;

	WRITE_ONCE(disk->cache_lost, lost);
	list_for_each_entry(mate, &disk->mates, mates)
		WRITE_ONCE(mate->cache_lost, lost);
}

/* From now on @disk and @mate, with those it has already, are paths to one disk. */
void kdblk_mates_add(struct kdblk_disk *disk, struct kdblk_disk *mate)
{
	unsigned long flags;

	spin_lock_irqsave(&kdblk_mates_lock, flags);
	WRITE_ONCE(disk->cache_lost, mate->cache_lost);
	list_add(&disk->mates, &mate->mates);
	spin_unlock_irqrestore(&kdblk_mates_lock, flags);
}

/* A path is disconnected. A FLUSH on another one has to cover what was written on it. */
void kdblk_mates_del(struct kdblk_disk *disk)
{
	struct kdblk_disk *mate;
	unsigned long flags;

	spin_lock_irqsave(&kdblk_mates_lock, flags);
	mate = list_first_entry(&disk->mates, struct kdblk_disk, mates);
	if (mate != disk && xchg(&disk->dirty, false)) {
		if (kdblk_same_boot(&disk->geometry, &mate->geometry))
			WRITE_ONCE(mate->dirty, true);
		else
			kdblk_lose_cache(disk, true);
	}
	list_del_init(&disk->mates);
	disk->dirty = false;
	disk->cache_lost = false;
	spin_unlock_irqrestore(&kdblk_mates_lock, flags);
}

static void kdblk_tell_cache_lost(struct kdblk_disk *disk)
{
	pr_err("%s: the target's machine has restarted, and writes that it had answered were not flushed: they may be lost, so the next flush fails\n",
	       kdblk_name(disk));
}

/* Has another path logged in since, to a machine that had restarted? */
static bool kdblk_outdated(const struct kdblk_disk *disk)
{
	const struct kdblk_disk *mate;

	list_for_each_entry(mate, &disk->mates, mates) {
		if (mate->login > disk->login && !kdblk_same_boot(&mate->geometry, &disk->geometry))
			return true;
	}
	return false;
}

/**
 * kdblk_unflushed - take note of writes that the target has answered, and may have in its cache
 * @disk: path of the writes, or of a FLUSH that was to cover them and has failed
 *
 * Context: any.
 */
void kdblk_unflushed(struct kdblk_disk *disk)
{
	bool outdated, lost;
	unsigned long flags;

	spin_lock_irqsave(&kdblk_mates_lock, flags);
	outdated = kdblk_outdated(disk);
	lost = outdated && le16_to_cpu(disk->geometry.flags) & KDBLK_DISK_CACHE;
	if (lost)
		kdblk_lose_cache(disk, true);
	if (!outdated)
		WRITE_ONCE(disk->dirty, true);
	spin_unlock_irqrestore(&kdblk_mates_lock, flags);
	if (lost)
		kdblk_tell_cache_lost(disk);
}

/* A path has not noticed a restart: has it lost writes, or is about to? */
static bool kdblk_mate_loses(struct kdblk_disk *mate)
{
	mate->covering_lost = mate->covering;
	return xchg(&mate->dirty, false) || mate->covering;
}

/**
 * kdblk_login_sent - take note of a LOGIN that is about to be sent
 * @disk: path that it is sent on
 *
 * Its answer is newer than those to all LOGINs before it.
 *
 * Context: any.
 */
void kdblk_login_sent(struct kdblk_disk *disk)
{
	unsigned long flags;

	spin_lock_irqsave(&kdblk_mates_lock, flags);
	disk->login_after = kdblk_logins;
	spin_unlock_irqrestore(&kdblk_mates_lock, flags);
}

/*
 * The boot id of another path is not that of a LOGIN. Has it not noticed the restart? This path is
 * new or has noticed one, or the other one is not connected.
 */
static bool kdblk_late(const struct kdblk_disk *disk, const struct kdblk_disk *mate,
		       const struct kdblk_login_rsp *geo)
{
	if (!disk->connects || !READ_ONCE(mate->joined))
		return true;
	return !kdblk_same_boot(&disk->geometry, geo) &&
	       (kdblk_same_boot(&mate->geometry, &disk->geometry) ||
		mate->login <= disk->login_after);
}

/* At a LOGIN: has the target's machine restarted, and may writes be lost that it answered? */
void kdblk_compare_boot(struct kdblk_disk *disk, const struct kdblk_login_rsp *geo)
{
	struct kdblk_login_rsp *known = &disk->geometry;
	struct kdblk_disk *mate;
	unsigned long flags;
	bool lost = false;

	spin_lock_irqsave(&kdblk_mates_lock, flags);
	list_for_each_entry(mate, &disk->mates, mates) {
		if (!kdblk_same_boot(&mate->geometry, geo) && kdblk_late(disk, mate, geo))
			lost |= kdblk_mate_loses(mate);
	}
	if (!kdblk_same_boot(known, geo))
		lost |= xchg(&disk->dirty, false);
	memcpy(known->boot, geo->boot, sizeof(known->boot));
	disk->login = ++kdblk_logins;
	lost &= !!(le16_to_cpu(geo->flags) & KDBLK_DISK_CACHE);
	if (lost)
		kdblk_lose_cache(disk, true);
	spin_unlock_irqrestore(&kdblk_mates_lock, flags);
	if (lost)
		kdblk_tell_cache_lost(disk);
}

/**
 * kdblk_flush_covers - take note of a FLUSH that is about to be sent
 * @disk: path that it is sent on
 *
 * Context: any.
 * Return: whether there are writes that it covers. kdblk_flush_over() must follow then.
 */
bool kdblk_flush_covers(struct kdblk_disk *disk)
{
	struct kdblk_disk *mate;
	unsigned long flags;
	bool covers;

	spin_lock_irqsave(&kdblk_mates_lock, flags);
	covers = xchg(&disk->dirty, false);
	list_for_each_entry(mate, &disk->mates, mates) {
		if (kdblk_same_boot(&mate->geometry, &disk->geometry))
			covers |= xchg(&mate->dirty, false);
	}
	disk->covering += covers;
	spin_unlock_irqrestore(&kdblk_mates_lock, flags);
	return covers;
}

/**
 * kdblk_flush_over - a FLUSH that covers writes is over
 * @disk: path that it was sent on
 * @failed: the writes are unflushed again
 *
 * Context: any.
 */
void kdblk_flush_over(struct kdblk_disk *disk, bool failed)
{
	unsigned long flags;

	spin_lock_irqsave(&kdblk_mates_lock, flags);
	failed = failed && !disk->covering_lost;	/* another path has told already */
	if (!--disk->covering)
		disk->covering_lost = false;
	spin_unlock_irqrestore(&kdblk_mates_lock, flags);
	if (failed)
		kdblk_unflushed(disk);
}

/* Return whether a FLUSH has to fail, since writes before it were lost. */
bool kdblk_flush_fails(struct kdblk_disk *disk)
{
	unsigned long flags;
	bool fails;

	if (likely(!READ_ONCE(disk->cache_lost)))
		return false;
	spin_lock_irqsave(&kdblk_mates_lock, flags);
	fails = disk->cache_lost;
	kdblk_lose_cache(disk, false);
	spin_unlock_irqrestore(&kdblk_mates_lock, flags);
	return fails;
}
