// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Polling ahead: moving completions from CQs to the backlog before the consumer asks for them,
 * for posters that need room, connections that end, and changes of policy and length.
 */
#include <linux/rcupdate.h>

#include "event.h"

/* Events moved into the backlog in one go, under the lock. */
#define AHEAD_PIECE	64

/**
 * kdapl_evd_poll_ahead_locked - move completions to the backlog
 * @evd: the EVD; evd->lock held
 * @budget: events to move at most
 * @teardown: also fill the part of the backlog that is reserved for connections that end
 *
 * Return: how many were moved.
 */
int kdapl_evd_poll_ahead_locked(struct kdapl_evd *evd, int budget, bool teardown)
{
	struct kdapl_event ev;
	int n;

	for (n = 0; n < budget; n++) {
		if (!evd->discard && !kdapl_evd_may_poll_ahead(evd, teardown))
			break;
		if (!kdapl_evd_poll(evd, &ev))
			break;
		if (evd->discard)
			kdapl_event_release(&ev);
		else
			kdapl_evd_backlog_add(evd, &ev);
	}
	return n;
}

/**
 * kdapl_evd_poll_ahead - the same, and schedule the engine if an upcall is due
 * @evd: the EVD
 * @budget: events to move at most
 *
 * Context: any, without any lock of an EP.
 */
void kdapl_evd_poll_ahead(struct kdapl_evd *evd, int budget)
{
	unsigned long flags;
	bool sched;

	flags = kdapl_evd_lock_irqsave(evd);
	kdapl_evd_poll_ahead_locked(evd, budget, false);
	sched = kdapl_evd_calls(evd) && evd->backlog_signalled;
	spin_unlock_irqrestore(&evd->lock, flags);
	if (sched)
		kdapl_evd_sched(evd);
}

/*
 * Move all completions that have arrived, a piece at a time, and not more than the CQs can hold
 * when this begins; what arrives meanwhile may stay on the CQs.
 */
static void ahead_poll_all(struct kdapl_evd *evd, bool teardown)
{
	bool more;
	int left;

	kdapl_evd_lock_irq(evd);
	left = kdapl_evd_depth(evd);
	do {
		more = kdapl_evd_poll_ahead_locked(evd, AHEAD_PIECE, teardown) == AHEAD_PIECE;
		/* fewer: the CQs were empty, and what has come since has come later */
		more |= evd->again;
		left -= AHEAD_PIECE;
		spin_unlock_irq(&evd->lock);
		cond_resched();
		kdapl_evd_lock_irq(evd);
	} while (more && left > 0);
	spin_unlock_irq(&evd->lock);
}

/**
 * kdapl_evd_poll_all - move all completions that have arrived to the backlog
 * @evd: the EVD
 *
 * Context: may sleep.
 */
void kdapl_evd_poll_all(struct kdapl_evd *evd)
{
	ahead_poll_all(evd, false);
}

/**
 * kdapl_wq_poll_cq - take a few completions off the CQ of a work queue
 * @wq: looks full, or its state is queried (D-05)
 *
 * Context: any, without any lock of an EP; RCU read side.
 */
void kdapl_wq_poll_cq(struct kdapl_wq *wq)
{
	struct kdapl_evd *evd = rcu_dereference(wq->cq->evd);

	if (evd)
		kdapl_evd_poll_ahead(evd, KDAPL_BATCH);
}

/*
 * Empty a CQ, or all of them (NULL), even if the backlog is full because the consumer does not
 * dequeue: what does not fit waits in its work queue. evd->lock held, and dropped in between.
 */
static void ahead_empty_cq(struct kdapl_evd *evd, struct kdapl_cq *cq)
{
	int left = cq ? cq->size : kdapl_evd_depth(evd), batches = 0;
	struct kdapl_event ev;

	for (;;) {
		while (evd->batch_pos != evd->batch_n) {
			if (kdapl_wc_event(evd, &evd->batch[evd->batch_pos++], &ev))
				kdapl_evd_backlog_keep(evd, &ev);
		}
		/* other QPs may go on completing there */
		if (left <= 0 || !(cq ? kdapl_evd_poll_cq(evd, cq) : kdapl_evd_refill(evd)))
			return;
		left -= evd->batch_n;
		if (++batches % (AHEAD_PIECE / KDAPL_BATCH))
			continue;
		spin_unlock_irq(&evd->lock);
		cond_resched();
		kdapl_evd_lock_irq(evd);
	}
}

/**
 * kdapl_evd_poll_waiting - take what has completed, for somebody who waits for one of these
 * @evd: the EVD
 *
 * However much comes before that, and even if the consumer does not dequeue.
 *
 * Context: may sleep.
 */
void kdapl_evd_poll_waiting(struct kdapl_evd *evd)
{
	ahead_poll_all(evd, true);
	kdapl_evd_lock_irq(evd);
	if (!evd->discard && !kdapl_evd_may_poll_ahead(evd, true))
		ahead_empty_cq(evd, NULL);
	spin_unlock_irq(&evd->lock);
	kdapl_evd_sched(evd);
}

/**
 * kdapl_wq_force_end - the QP is destroyed: take what is left on the CQ
 * @wq: a work queue of a stopped connection
 * @flush_unsignaled: report unsignaled requests without a completion FLUSHED, too, instead of
 *	taking them as successful
 *
 * Context: may sleep.
 */
void kdapl_wq_force_end(struct kdapl_wq *wq, bool flush_unsignaled)
{
	struct kdapl_evd *evd = kdapl_cq_evd_get(wq->cq);
	struct kdapl_event ev;

	if (!evd) {
		kdapl_wq_end_orphan(wq);
		return;
	}
	kdapl_evd_lock_irq(evd);
	/* the batch and the CQ still point into the work queue, or the SRQ */
	ahead_empty_cq(evd, wq->cq);
	/* messages that waited for the connection come before its end */
	while (wq->recv && kdapl_evd_room(evd) && kdapl_wq_next(wq, &ev))
		kdapl_evd_backlog_keep(evd, &ev);
	wq->flush_unsignaled |= flush_unsignaled;
	kdapl_wq_end(evd, wq);
	spin_unlock_irq(&evd->lock);
	kdapl_evd_sched(evd);
	kdapl_obj_put(&evd->obj);
}

/**
 * kdapl_wq_report_rest - move what is left in a work queue that has ended to the backlog
 * @wq: the work queue
 *
 * The event of the end, which is queued next, must not overtake it.
 *
 * Context: may sleep.
 */
void kdapl_wq_report_rest(struct kdapl_wq *wq)
{
	struct kdapl_evd *evd = kdapl_cq_evd_get(wq->cq);
	struct kdapl_event ev;

	if (!evd)
		return;
	kdapl_evd_lock_irq(evd);
	/* the null EVD drops it by itself */
	while (!evd->discard && kdapl_evd_room(evd) && kdapl_wq_next(wq, &ev))
		kdapl_evd_backlog_add(evd, &ev);
	spin_unlock_irq(&evd->lock);
	kdapl_evd_sched(evd);
	kdapl_obj_put(&evd->obj);
}
