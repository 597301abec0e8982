// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Which context makes the upcalls of an EVD, whether they may be made, and starting that.
 * What the runners do is in evd_upcall.c.
 */
#include "evd.h"

/**
 * kdapl_evd_calls - may an event start an upcall now?
 * @evd: the EVD; evd->lock held
 *
 * Return: false when upcalls are disabled or the consumer has been notified.
 */
bool kdapl_evd_calls(const struct kdapl_evd *evd)
{
	return evd->policy != DAT_UPCALL_DISABLE && !evd->notified;
}

/**
 * kdapl_evd_held_up - must the next upcall wait for one that runs?
 * @evd: the EVD; evd->lock held
 *
 * Upcalls of another policy may still run when the policy has changed. The last
 * of them looks after the EVD when it is back.
 *
 * Return: true when as many upcalls run as the policy allows.
 */
bool kdapl_evd_held_up(const struct kdapl_evd *evd)
{
	return evd->nrunning >= (kdapl_evd_many(evd) ? evd->nhelpers : 1);
}

/**
 * kdapl_evd_wake_helper - have one more helper look for events
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
	/* All run: each of them looks again before it is idle. */
}

/* Upcalls that bring completions have a queue of their own: others may wait for them. */
static struct workqueue_struct *evd_wq(const struct kdapl_evd *evd)
{
	return evd->flags & (DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG) ? kdapl_upcall_wq :
									 kdapl_event_wq;
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
	/* evd_work_gone() comes after us, and cancels the work */
	rcu_read_lock();
	if (READ_ONCE(evd->closing))
		goto out;
	if (unlikely(kdapl_evd_many(evd)))
		kdapl_evd_wake_helper(evd);
	else
		queue_work(evd_wq(evd), &evd->work);
out:
	rcu_read_unlock();
}

/**
 * kdapl_evd_set_default_policy - is there nothing to be considered but completions and one runner?
 * @evd: the EVD; something this depends on has changed; evd->lock held
 */
void kdapl_evd_set_default_policy(struct kdapl_evd *evd)
{
	evd->default_policy = evd->policy == DAT_UPCALL_SINGLE_INSTANCE && !evd->closing &&
		     !evd->discard && !evd->watching;
}
