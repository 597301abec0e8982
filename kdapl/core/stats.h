/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * What the module has done, counted on each CPU.
 */
#ifndef KDAPL_CORE_STATS_H
#define KDAPL_CORE_STATS_H

/**
 * struct kdapl_stats - what one CPU has done since the module was loaded
 * @softirq: turns of upcalls in softirq
 * @work: turns of upcalls in work items
 * @upcalls: upcalls made in them; events of an EVD that goes, dropped
 * @full: turns that ended because as much was done as one may
 * @again: turns after which something was there when notification was asked for
 * @flushed: events of transfers that were flushed
 * @failed: events of transfers that failed
 * @refused: connection requests turned away before a consumer heard of them
 * @dropped: completions that were there when their EP was freed or reset, and nobody saw
 */
struct kdapl_stats {
	unsigned long softirq;
	unsigned long work;
	unsigned long upcalls;
	unsigned long full;
	unsigned long again;
	unsigned long flushed;
	unsigned long failed;
	unsigned long refused;
	unsigned long dropped;
};

DECLARE_PER_CPU(struct kdapl_stats, kdapl_stats);

/* Anywhere: one of them more, or n. */
#define kdapl_count(member)		this_cpu_inc(kdapl_stats.member)
#define kdapl_count_many(member, n)	this_cpu_add(kdapl_stats.member, n)

#endif /* KDAPL_CORE_STATS_H */
