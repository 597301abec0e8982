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
 */
#define pr_fmt(fmt) "kdblk: " fmt

#include "kdblk.h"

/*
 * Protects the lists of mates and changes of boot ids. A FLUSH takes it only if there are other
 * paths; a write never does.
 */
static DEFINE_SPINLOCK(kdblk_mates_lock);

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

/* At a LOGIN: has the target's machine restarted, and may writes be lost that it answered? */
void kdblk_compare_boot(struct kdblk_disk *disk, const struct kdblk_login_rsp *geo)
{
	struct kdblk_login_rsp *known = &disk->geometry;
	struct kdblk_disk *mate;
	unsigned long flags;
	bool lost = false;

	spin_lock_irqsave(&kdblk_mates_lock, flags);
	/* Paths with another boot id have not noticed the restart yet, if this one has. */
	list_for_each_entry(mate, &disk->mates, mates) {
		if (!kdblk_same_boot(&mate->geometry, geo) &&
		    (kdblk_same_boot(&mate->geometry, known) || !READ_ONCE(mate->joined)))
			lost |= xchg(&mate->dirty, false);
	}
	if (!kdblk_same_boot(known, geo))
		lost |= xchg(&disk->dirty, false);
	memcpy(known->boot, geo->boot, sizeof(known->boot));
	lost &= !!(le16_to_cpu(geo->flags) & KDBLK_DISK_CACHE);
	if (lost)
		kdblk_lose_cache(disk, true);
	spin_unlock_irqrestore(&kdblk_mates_lock, flags);
	if (lost)
		pr_err("%s: the target's machine has restarted, and writes that it had answered were not flushed: they may be lost, so the next flush fails\n",
		       kdblk_name(disk));
}

/**
 * kdblk_flush_covers - take note of a FLUSH that is about to be sent
 * @disk: path that it is sent on
 *
 * Context: any.
 * Return: whether there are writes that it covers. If it does not succeed, @disk is dirty again.
 */
bool kdblk_flush_covers(struct kdblk_disk *disk)
{
	bool covers = xchg(&disk->dirty, false);
	struct kdblk_disk *mate;
	unsigned long flags;

	if (list_empty(&disk->mates))
		return covers;
	spin_lock_irqsave(&kdblk_mates_lock, flags);
	list_for_each_entry(mate, &disk->mates, mates) {
		if (kdblk_same_boot(&mate->geometry, &disk->geometry))
			covers |= xchg(&mate->dirty, false);
	}
	spin_unlock_irqrestore(&kdblk_mates_lock, flags);
	return covers;
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
