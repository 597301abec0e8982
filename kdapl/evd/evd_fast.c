// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The fast path of completions, from the CQ to the consumer.
 *
 * Most completions are of a request or Receive that succeeded, is next in its work queue or
 * comes from an SRQ, and is an event; and usually the EVD has nothing else to report. These are
 * handled here: the event is filled in where the consumer reads it. Everything else takes the
 * slow path (poll.c, evd_upcall.c). Both take completions from the same places under the same
 * lock, so they can take turns.
 */
#include <linux/prefetch.h>

#include "event.h"
#include "../core/trace.h"

/* Flags that send even a successful completion to the slow path. */
#define FAST_EXCLUDES	(DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_UNSIGNALLED_FLAG | \
			 KDAPL_WQE_BROKEN | KDAPL_WQE_INVALIDATED)

/*
 * Is this the completion of a request or Receive that succeeded and is an event, and does it report
 * only this entry, so that no earlier one has to be reported or retired with it?
 */
static __always_inline bool fast_is_wqe(const struct ib_wc *wc, struct kdapl_wq **wqp)
{
	struct kdapl_wqe *wqe = container_of(wc->wr_cqe, struct kdapl_wqe, cqe);
	struct kdapl_wq *wq;

	if (unlikely(wc->wr_cqe->done != kdapl_wqe_done || wc->status != IB_WC_SUCCESS))
		return false;
	if (unlikely(wqe->op > DAT_DTO_RECEIVE || (wqe->flags & FAST_EXCLUDES)))
		return false;
	wq = kdapl_wqe_wq(wqe);
	*wqp = wq;
	if (unlikely(wq->slow))
		return false;
	if (!wq->recv)
		return !wqe->retires;
	return !(wc->wc_flags & IB_WC_WITH_INVALIDATE) &&
	       wqe->index == (wq->tail & wq->done_mask);
}

static __always_inline void fast_fill(const struct kdapl_evd *evd, DAT_EVENT *event,
				      DAT_EP_HANDLE ep, u64 cookie, unsigned int op, u32 length)
{
	event->event_number = DAT_DTO_COMPLETION_EVENT;
	event->evd_handle = evd->obj.handle;
	kdapl_event_dto(&event->event_data.dto_completion_event_data, ep, cookie, op,
			DAT_DTO_SUCCESS, length, 0);
}

/* Report a completion for which fast_is_wqe() is true. */
static __always_inline void fast_wqe(struct kdapl_evd *evd, struct kdapl_wq *wq,
				     const struct ib_wc *wc, DAT_EVENT *event)
{
	const struct kdapl_wqe *wqe = container_of(wc->wr_cqe, struct kdapl_wqe, cqe);
	u32 length = wqe->length;
	u32 tail = wq->tail;

	if (wq->recv) {
		length = wc->byte_len;
		wq->reaped++;
	} else {
		wq->dtos_done = wqe->seq;
		tail += (wqe->index - tail) & wq->done_mask;
	}
	fast_fill(evd, event, wq->handle, wqe->cookie, wqe->op, length);
	/* tail last: pairs with the acquire of the poster, which reads it first */
	smp_store_release(&wq->tail, tail + 1);
}

/* Is this a buffer of an SRQ that was filled? */
static __always_inline bool fast_is_buf(const struct ib_wc *wc)
{
	return wc->wr_cqe->done == kdapl_buf_done && wc->status == IB_WC_SUCCESS &&
	       !(wc->wc_flags & IB_WC_WITH_INVALIDATE);
}

/*
 * Report a buffer of an SRQ if the fast path may; otherwise change nothing. @look: set @more
 * if the next completion of the batch is known to be an event.
 */
static __always_inline bool fast_buf(const struct kdapl_evd *evd, DAT_EVENT *event, bool look,
				     bool *more)
{
	const struct ib_wc *wc = &evd->batch[evd->batch_pos], *next = NULL;
	struct kdapl_conn *conn;
	u64 cookie;

	if (unlikely(!fast_is_buf(wc)))
		return false;
	/* read now: after kdapl_buf_pass() the buffer may be posted again */
	cookie = kdapl_wc_buf(wc)->cookie;
	if (look && evd->batch_pos + 1 < evd->batch_n && fast_is_buf(wc + 1))
		next = wc + 1;
	conn = kdapl_buf_pass(wc, next, evd->watching, more);
	if (unlikely(!conn))
		return false;
	fast_fill(evd, event, conn->handle, cookie, DAT_DTO_RECEIVE, wc->byte_len);
	return true;
}

/* Prefetch the work queue of a later completion: with many EPs it is cold. */
static __always_inline void fast_prefetch(const struct kdapl_evd *evd, int pos)
{
	const struct ib_cqe *cqe;

	if (pos >= evd->batch_n)
		return;
	cqe = evd->batch[pos].wr_cqe;
	if (likely(cqe->done == kdapl_wqe_done))
		prefetchw(&kdapl_wqe_wq(container_of(cqe, struct kdapl_wqe, cqe))->handle);
}

/* Is there an event in the batch or behind it, if the next completion is not fast_is_wqe()? */
static noinline bool fast_more_slow(struct kdapl_evd *evd)
{
	const struct ib_wc *wc = &evd->batch[evd->batch_pos];

	if (fast_is_buf(wc) && kdapl_buf_is_event(kdapl_wc_buf(wc), wc->qp))
		return true;
	return kdapl_evd_more(evd);
}

/*
 * Is there an event after the one in hand? @pos: of the next completion in the batch;
 * @polled: the CQs have just been polled.
 */
static __always_inline bool fast_more(struct kdapl_evd *evd, int pos, bool polled)
{
	struct kdapl_wq *wq;

	if (pos == evd->batch_n) {
		if (polled || !kdapl_evd_refill(evd))
			return false;
		pos = 0;
	}
	return likely(fast_is_wqe(&evd->batch[pos], &wq)) || fast_more_slow(evd);
}

/* Tracing is done on the slow path. */
static __always_inline bool fast_traced(void)
{
	return trace_kdapl_completion_enabled() || trace_kdapl_upcall_enabled();
}

/* Take the next completion if it is that of an SRQ buffer that the fast path may report. */
static __always_inline enum kdapl_next fast_next_buf(struct kdapl_evd *evd, DAT_EVENT *event,
						     bool look, bool polled)
{
	bool more;

	if (!fast_buf(evd, event, look, &more))
		return KDAPL_NEXT_SLOW;
	evd->batch_pos++;
	return !look || more || fast_more(evd, evd->batch_pos, polled) ? KDAPL_NEXT_MORE :
									KDAPL_NEXT_LAST;
}

/* The same for dat_evd_dequeue(), out of line: other completions are shorter for it. */
static noinline enum kdapl_next fast_dequeue_buf(struct kdapl_evd *evd, DAT_EVENT *event)
{
	return fast_next_buf(evd, event, false, false);
}

/*
 * Take the next event if it is an ordinary completion. @look: find out whether it is the last one;
 * without it KDAPL_NEXT_MORE means that nobody has looked.
 */
static __always_inline enum kdapl_next fast_next(struct kdapl_evd *evd, DAT_EVENT *event,
						 bool look)
{
	struct kdapl_wq *wq;
	const struct ib_wc *wc;
	bool polled = false;
	int pos;

	lockdep_assert_held(&evd->lock);
	if (unlikely(evd->backlog_count || !list_empty(&evd->ready)) || fast_traced())
		return KDAPL_NEXT_SLOW;
	if (evd->batch_pos == evd->batch_n) {
		if (!kdapl_evd_refill(evd)) {
			evd->again = false;
			return KDAPL_NEXT_NONE;
		}
		/* fewer than asked for: these were all, if there are no other CQs */
		polled = look && evd->batch_n < KDAPL_BATCH && list_is_singular(&evd->cqs);
	}
	pos = evd->batch_pos;
	wc = &evd->batch[pos];
	if (unlikely(!fast_is_wqe(wc, &wq)))
		return look ? fast_next_buf(evd, event, true, polled) :
			      fast_dequeue_buf(evd, event);
	evd->batch_pos = ++pos;
	fast_prefetch(evd, pos + 1);
	fast_wqe(evd, wq, wc, event);
	return !look || fast_more(evd, pos, polled) ? KDAPL_NEXT_MORE : KDAPL_NEXT_LAST;
}

/**
 * kdapl_evd_fast - take the next event if it is an ordinary completion
 * @evd: the EVD; evd->lock held
 * @event: filled in, except event_extension_data
 *
 * Return: what was found. Nothing has changed unless that is an ordinary completion.
 */
enum kdapl_next kdapl_evd_fast(struct kdapl_evd *evd, DAT_EVENT *event)
{
	return fast_next(evd, event, false);
}

/**
 * kdapl_evd_run_fast - make upcalls for ordinary completions until something else comes
 * @evd: the EVD; evd->lock held, and dropped around the upcalls
 * @runner: the runner
 * @budget: how many at most
 * @none: set if there is no event left
 *
 * Return: number of upcalls made. If it is less than @budget and @none is false, the caller must
 * take the slow path.
 */
int kdapl_evd_run_fast(struct kdapl_evd *evd, struct kdapl_runner *runner, int budget, bool *none)
{
	enum kdapl_next next = KDAPL_NEXT_SLOW;
	DAT_UPCALL_OBJECT upcall;
	int n = 0;

	if (unlikely(evd->nrunning))
		return 0;
	evd->nrunning = 1;
	/* helpers of another policy may have started, and not returned yet */
	while (n < budget && likely(evd->default_policy && evd->nrunning == 1)) {
		next = fast_next(evd, &runner->event, true);
		if (next != KDAPL_NEXT_MORE && next != KDAPL_NEXT_LAST)
			break;
		runner->ep = runner->event.event_data.dto_completion_event_data.ep_handle;
		runner->seq = ++evd->upcall_seq;
		upcall = evd->upcall;
		spin_unlock_irq(&evd->lock);

		upcall.upcall_func(upcall.instance_data, &runner->event,
				   next == KDAPL_NEXT_MORE ? DAT_TRUE : DAT_FALSE);

		spin_lock_irq(&evd->lock);
		n++;
		/* arming reports what has arrived since (D-79) */
		if (next == KDAPL_NEXT_LAST)
			break;
		/* waiters queue up under the lock */
		if (unlikely(waitqueue_active(&evd->upcall_over)))
			break;
	}
	kdapl_evd_called(evd, runner);
	*none = next == KDAPL_NEXT_NONE || next == KDAPL_NEXT_LAST;
	return n;
}
