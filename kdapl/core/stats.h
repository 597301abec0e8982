/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Statistics of the module, per CPU.
 */
#ifndef KDAPL_CORE_STATS_H
#define KDAPL_CORE_STATS_H

/**
 * struct kdapl_stats - what one CPU has done since the module was loaded
 * @softirq: turns of an EVD in softirq
 * @work: turns of an EVD in a work item
 * @upcalls: upcalls made in them, including events dropped because their EVD is going away
 * @full: turns that ended because their budget was used up
 * @again: turns after which arming the CQs reported missed completions
 * @flushed: completion events with the status FLUSHED
 * @failed: completion events with another error
 * @refused: connection requests refused before they were reported to a consumer
 * @dropped: completions that were not taken before their EP was freed or reset
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

/* Any context. */
#define kdapl_count(member)		this_cpu_inc(kdapl_stats.member)
#define kdapl_count_many(member, n)	this_cpu_add(kdapl_stats.member, n)

#endif /* KDAPL_CORE_STATS_H */
