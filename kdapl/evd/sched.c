// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Scheduling the upcalls of an EVD: whether they may be made, and in which context. The runners
 * are in evd_upcall.c.
 */
#include "event.h"

/**
 * kdapl_evd_wake_helper - wake one more helper, if one is idle
 * @evd: an EVD with helpers
 *
 * Context: any.
 */
void kdapl_evd_wake_helper(struct kdapl_evd *evd)
{
	unsigned long idle;

	while ((idle = READ_ONCE(evd->idle))) {
		if (!test_and_clear_bit(__ffs(idle), &evd->idle))
			continue;
		queue_work(kdapl_many_wq, &evd->helpers[__ffs(idle)].work);
		return;
	}
	/* All run, and each checks the EVD again before it is idle. */
}

/* Upcalls with completions have a workqueue of their own: other upcalls may wait for them. */
static struct workqueue_struct *sched_wq(const struct kdapl_evd *evd)
{
	return evd->flags & KDAPL_EVD_CQ_FLAGS ? kdapl_upcall_wq : kdapl_event_wq;
}

/**
 * kdapl_evd_sched - something may have arrived
 * @evd: the EVD
 *
 * Takes no lock: some providers hold that of their CQ.
 *
 * Context: any.
 */
void kdapl_evd_sched(struct kdapl_evd *evd)
{
	if (evd->softirq) {
		irq_poll_sched(&evd->iop);	/* does nothing once disabled */
		return;
	}
	/* evd_work_gone() waits for a grace period, and cancels the work */
	rcu_read_lock();
	if (READ_ONCE(evd->closing))
		goto out;
	if (unlikely(kdapl_evd_many(evd)))
		kdapl_evd_wake_helper(evd);
	else
		queue_work(sched_wq(evd), &evd->work);
out:
	rcu_read_unlock();
}

/**
 * kdapl_evd_set_default_policy - update evd->default_policy
 * @evd: the EVD; something this depends on has changed; evd->lock held
 */
void kdapl_evd_set_default_policy(struct kdapl_evd *evd)
{
	evd->default_policy = evd->policy == DAT_UPCALL_SINGLE_INSTANCE && !evd->closing &&
		     !evd->discard && !evd->watching;
}
