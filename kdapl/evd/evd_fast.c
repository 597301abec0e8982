// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Ordinary completions, from the CQ to the consumer.
 *
 * Most completions are of a request or Receive that succeeded, whose turn it is in its
 * work queue, and that is an event; and most of the time an EVD has nothing else to consider. Here
 * is what becomes of those, without a detour: the event is made where the consumer looks at
 * it. Whatever else there is, evd_poll.c and evd_upcall.c know about. Both ways take from
 * the same places under the same lock, so that it does not matter which of them it was.
 */
#include <linux/prefetch.h>

#include "event.h"
#include "../core/trace.h"

/* Flags of requests and Receives whose success is not simply an event that is due. */
#define WQE_SLOW	(DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_UNSIGNALLED_FLAG | \
			 KDAPL_WQE_BROKEN | KDAPL_WQE_INVALIDATED)

/*
 * Is this a completion without anything special about it: of a request or Receive that
 * succeeded, that is an event, and that ends the turn of no other?
 */
static __always_inline bool wc_is_fast(const struct ib_wc *wc, struct kdapl_wq **of)
{
	struct kdapl_wqe *wr = container_of(wc->wr_cqe, struct kdapl_wqe, cqe);
	struct kdapl_wq *wq;

	if (unlikely(wc->wr_cqe->done != kdapl_wqe_done || wc->status != IB_WC_SUCCESS))
		return false;
	if (unlikely(wr->op > DAT_DTO_RECEIVE || (wr->flags & WQE_SLOW)))
		return false;
	wq = kdapl_wqe_wq(wr);
	*of = wq;
	if (unlikely(wq->slow))
		return false;
	if (!wq->recv)
		return !wr->retires;
	return !(wc->wc_flags & IB_WC_WITH_INVALIDATE) &&
	       wr->index == (wq->tail & wq->done_mask);
}

/* Report it. */
static __always_inline void fast_event(struct kdapl_evd *evd, struct kdapl_wq *wq,
				       const struct ib_wc *wc, DAT_EVENT *event)
{
	DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	const struct kdapl_wqe *wr = container_of(wc->wr_cqe, struct kdapl_wqe, cqe);
	u32 tail = wq->tail;

	event->event_number = DAT_DTO_COMPLETION_EVENT;
	event->evd_handle = evd->obj.handle;
	dto->ep_handle = wq->handle;
	dto->user_cookie.as_64 = wr->cookie;
	dto->status = DAT_DTO_SUCCESS;
	dto->transfered_length = wr->length;
	dto->operation = wr->op;
	dto->rmr_context = 0;
	if (wq->recv) {
		dto->transfered_length = wc->byte_len;
		wq->reaped++;
	} else {
		wq->dtos_done = wr->seq;
		tail += (wr->index - tail) & wq->done_mask;
	}
	/* tail last: pairs with the acquire of the poster, which reads it first */
	smp_store_release(&wq->tail, tail + 1);
}

/* The work queue of a completion that is still some way off, cold if there are many EPs. */
static __always_inline void fast_prefetch(const struct kdapl_evd *evd, int pos)
{
	const struct ib_cqe *cqe;

	if (pos >= evd->batch_n)
		return;
	cqe = evd->batch[pos].wr_cqe;
	if (likely(cqe->done == kdapl_wqe_done))
		prefetchw(&kdapl_wqe_wq(container_of(cqe, struct kdapl_wqe, cqe))->handle);
}

/* Is there an event behind the one in hand? @polled: the CQs have just been looked at. */
static __always_inline bool fast_more(struct kdapl_evd *evd, bool polled)
{
	struct kdapl_wq *wq;

	if (evd->batch_pos == evd->batch_n && (polled || !kdapl_evd_refill(evd)))
		return false;
	return likely(wc_is_fast(&evd->batch[evd->batch_pos], &wq)) || kdapl_evd_more(evd);
}

/* Tracing is done on the slow path. */
static __always_inline bool evd_traced(void)
{
	return trace_kdapl_completion_enabled() || trace_kdapl_upcall_enabled();
}

static __always_inline enum kdapl_next evd_fast(struct kdapl_evd *evd, DAT_EVENT *event,
						bool *more)
{
	struct kdapl_wq *wq;
	const struct ib_wc *wc;
	bool polled = false;

	lockdep_assert_held(&evd->lock);
	if (unlikely(evd->backlog_count || !list_empty(&evd->ready)) || evd_traced())
		return KDAPL_NEXT_SLOW;
	if (evd->batch_pos == evd->batch_n) {
		if (!kdapl_evd_refill(evd)) {
			evd->again = false;
			return KDAPL_NEXT_NONE;
		}
		/* fewer than asked for: these were all, if there are no other CQs */
		polled = evd->batch_n < KDAPL_BATCH && list_is_singular(&evd->cqs);
	}
	wc = &evd->batch[evd->batch_pos];
	if (unlikely(!wc_is_fast(wc, &wq)))
		return KDAPL_NEXT_SLOW;
	evd->batch_pos++;
	fast_prefetch(evd, evd->batch_pos + 1);
	fast_event(evd, wq, wc, event);
	if (more)
		*more = fast_more(evd, polled);
	return KDAPL_NEXT_FAST;
}

/**
 * kdapl_evd_fast - take the next event if it is an ordinary completion
 * @evd: the EVD; evd->lock held
 * @event: filled with it, but for what lies behind the data of the event
 *
 * Return: what was found. Unless that is an ordinary completion nothing has changed.
 */
enum kdapl_next kdapl_evd_fast(struct kdapl_evd *evd, DAT_EVENT *event)
{
	return evd_fast(evd, event, NULL);
}

/**
 * kdapl_evd_run_fast - upcalls for ordinary completions, as long as there is nothing else
 * @evd: the EVD; evd->lock held, and dropped around the upcalls
 * @run: the runner
 * @budget: how many at most
 * @none: set if there is no event left
 *
 * Return: how many; less than @budget, and not @none, if something else comes next.
 */
int kdapl_evd_run_fast(struct kdapl_evd *evd, struct kdapl_upcall *run, int budget, bool *none)
{
	enum kdapl_next next = KDAPL_NEXT_SLOW;
	DAT_UPCALL_OBJECT upcall;
	bool more;
	int n = 0;

	if (unlikely(evd->nrunning))
		return 0;
	evd->nrunning = 1;
	/* helpers of another policy may have begun meanwhile, and not be back yet */
	while (n < budget && likely(evd->default_policy && evd->nrunning == 1)) {
		next = evd_fast(evd, &run->event, &more);
		if (next != KDAPL_NEXT_FAST)
			break;
		run->ep = run->event.event_data.dto_completion_event_data.ep_handle;
		run->seq = ++evd->upcall_seq;
		upcall = evd->upcall;
		spin_unlock_irq(&evd->lock);

		upcall.upcall_func(upcall.instance_data, &run->event, more ? DAT_TRUE : DAT_FALSE);

		spin_lock_irq(&evd->lock);
		n++;
		/* what has come since is told by arming (D-79) */
		if (!more) {
			next = KDAPL_NEXT_NONE;
			break;
		}
		/* waiters queue up under the lock */
		if (unlikely(waitqueue_active(&evd->upcall_over)))
			break;
	}
	kdapl_evd_called(evd, run);
	*none = next == KDAPL_NEXT_NONE;
	return n;
}
