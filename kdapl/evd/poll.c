// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Taking the next event of an EVD: from the backlog, from work queues that are ready, from the
 * rest of the batch, from the CQs; and arming the CQs when there is none.
 */
#include <linux/prefetch.h>

#include "event.h"

/* Silent completions processed in one go, under the lock. */
#define POLL_SILENT	256

/* Inline, because every completion that comes alone needs it. */
static __always_inline bool poll_cq(struct kdapl_evd *evd, struct kdapl_cq *cq)
{
	int n = cq->ibcq ? ib_poll_cq(cq->ibcq, KDAPL_BATCH, evd->batch) : 0;

	if (n <= 0)
		return false;
	evd->cur = cq->ibcq;
	evd->batch_pos = 0;
	evd->batch_n = n;
	/* fewer than asked for: these were all, if there are no other CQs (D-79) */
	evd->drained = n < KDAPL_BATCH && list_is_singular(&evd->cqs);
	if (kdapl_evd_cold(evd)) {
		while (n--)
			prefetch(evd->batch[n].wr_cqe);
	}
	return true;
}

/**
 * kdapl_evd_poll_cq - get a batch of completions from one CQ
 * @evd: the EVD; evd->lock held, the last batch used up
 * @cq: one of its CQs
 *
 * Return: false if there is none.
 */
bool kdapl_evd_poll_cq(struct kdapl_evd *evd, struct kdapl_cq *cq)
{
	return poll_cq(evd, cq);
}

/**
 * kdapl_evd_refill - get another batch of completions
 * @evd: the EVD; evd->lock held, the last batch used up
 *
 * Return: false if there is none.
 */
bool kdapl_evd_refill(struct kdapl_evd *evd)
{
	struct kdapl_cq *cq;

	list_for_each_entry(cq, &evd->cqs, evd_node) {
		if (!poll_cq(evd, cq))
			continue;
		if (!list_is_last(&cq->evd_node, &evd->cqs))
			list_move_tail(&cq->evd_node, &evd->cqs);	/* round robin */
		return true;
	}
	return false;
}

/**
 * kdapl_evd_poll - take the next event that is not in the backlog
 * @evd: the EVD; evd->lock held
 * @ev: filled on success
 *
 * Return: false when there is none, or when so many silent completions were
 * seen that evd->again asks for another turn.
 */
bool kdapl_evd_poll(struct kdapl_evd *evd, struct kdapl_event *ev)
{
	u32 silent = evd->silent;

	lockdep_assert_held(&evd->lock);
	evd->again = false;
	for (;;) {
		while (unlikely(!list_empty(&evd->ready))) {
			struct kdapl_wq *wq = list_first_entry(&evd->ready, struct kdapl_wq,
							       ready);
			/* read first: if it comes up later, early messages may still wait */
			bool up = READ_ONCE(wq->conn->state) >= KDAPL_CONN_UP;

			if (kdapl_wq_next(wq, ev))
				return true;
			list_del_init(&wq->ready);
			if (up)
				wq->slow &= ~KDAPL_SLOW_EARLY;
		}
		if (evd->batch_pos == evd->batch_n && !kdapl_evd_refill(evd))
			return false;
		if (kdapl_wc_event(evd, &evd->batch[evd->batch_pos++], ev))
			return true;
		if (++evd->silent - silent == POLL_SILENT) {
			evd->again = true;
			return false;
		}
	}
}

/**
 * kdapl_evd_take - take the oldest event
 * @evd: the EVD; evd->lock held
 * @ev: filled on success
 *
 * Return: false when there is none.
 */
bool kdapl_evd_take(struct kdapl_evd *evd, struct kdapl_event *ev)
{
	lockdep_assert_held(&evd->lock);
	if (!evd->backlog_count)
		return kdapl_evd_poll(evd, ev);
	kdapl_evd_backlog_take(evd, ev);
	return true;
}

/**
 * kdapl_evd_more - is another event queued at this moment?
 * @evd: the EVD; evd->lock held
 *
 * One that is found on a CQ goes into the backlog.
 *
 * Return: true if there is one.
 */
bool kdapl_evd_more(struct kdapl_evd *evd)
{
	u32 silent = evd->silent;

	if (evd->backlog_count)
		return true;
	do {
		if (kdapl_evd_poll(evd, &evd->scratch))
			return kdapl_evd_backlog_add(evd, &evd->scratch);
	} while (evd->again && evd->silent - silent < kdapl_evd_depth(evd));
	return false;
}

/**
 * kdapl_evd_depth - completions that can be on the CQs of an EVD
 * @evd: the EVD; evd->lock held
 *
 * Return: the sum of their sizes.
 */
u32 kdapl_evd_depth(const struct kdapl_evd *evd)
{
	struct kdapl_cq *cq;
	u32 depth = 0;

	list_for_each_entry(cq, &evd->cqs, evd_node)
		depth += cq->size;
	return depth;
}

/**
 * kdapl_evd_arm - ask for an interrupt with the next completion
 * @evd: the EVD; evd->lock held
 *
 * Return: true when something is there already and the engine must run again.
 */
bool kdapl_evd_arm(struct kdapl_evd *evd)
{
	enum ib_cq_notify_flags flags = IB_CQ_REPORT_MISSED_EVENTS;
	bool missed = false;
	struct kdapl_cq *cq;

	lockdep_assert_held(&evd->lock);
	if (evd->closing)
		return false;
	if (!kdapl_evd_calls(evd) && !evd->discard) {
		if (!(evd->ending || evd->watching) || !kdapl_evd_may_poll_ahead(evd, evd->ending))
			return false;
	} else if (kdapl_evd_held_up(evd)) {
		return false;
	} else if (evd->backlog_signalled) {
		missed = true;
	}
	flags |= evd->solicited && !evd->ending && !evd->watching ? IB_CQ_SOLICITED :
								    IB_CQ_NEXT_COMP;
	list_for_each_entry(cq, &evd->cqs, evd_node) {
		if (cq->ibcq && ib_req_notify_cq(cq->ibcq, flags) > 0)
			missed = true;
	}
	if (evd->again || !list_empty(&evd->ready) || evd->batch_pos != evd->batch_n)
		missed = true;
	return missed;
}
