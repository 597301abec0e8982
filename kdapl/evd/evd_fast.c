// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The fast path of completions, from the CQ to the consumer.
 *
 * Most completions are of a request or Receive that succeeded, is next in its work queue or
 * comes from an SRQ, and is an event; and usually the EVD has nothing else to report. These are
 * handled here. Everything else takes the slow path (poll.c, evd_upcall.c). Both take completions
 * from the same places under the same lock, so they can take turns.
 *
 * For upcalls a batch of completions is taken under one lock (D-108). The upcall of the first one
 * begins under the lock. Before each of the others the runner stores in runner->ep whose event it
 * is, and lowers evd->untold by one. If that fails, another context has taken the lock, and the
 * rest is in the backlog: kdapl_evd_give_back(). So a change of policy, the freeing of an EP and
 * dat_evd_dequeue() find every event whose upcall has not begun.
 */
#include <linux/prefetch.h>

#include "event.h"
#include "../core/trace.h"

/* Flags that send even a successful completion to the slow path. */
#define FAST_EXCLUDES	(DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_UNSIGNALLED_FLAG | \
			 KDAPL_WQE_BROKEN | KDAPL_WQE_INVALIDATED)

/*
 * Is this the completion of a request or Receive that succeeded and is an event? It must be the
 * only entry to report: no earlier one has to be reported or retired with it.
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
	if (unlikely(wq->slow) && (wq->slow != KDAPL_SLOW_READS || !kdapl_wq_no_reads(wq)))
		return false;
	if (!wq->recv)
		return !wqe->retires;
	return !(wc->wc_flags & KDAPL_WC_BRINGS) &&
	       wqe->index == (wq->tail & wq->done_mask);
}

/* Take a completion for which fast_is_wqe() is true. */
static __always_inline void fast_take_wqe(struct kdapl_wq *wq, const struct ib_wc *wc,
					  struct kdapl_taken *taken)
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
		wq->done_to = tail + 1;
	}
	taken->ep = wq->handle;
	taken->cookie = wqe->cookie;
	taken->wq = wq;
	taken->length = length;
	taken->op = wqe->op;
	/* tail last: pairs with the acquire of the poster, which reads it first */
	smp_store_release(&wq->tail, tail + 1);
}

/* Is this a buffer of an SRQ that was filled? */
static __always_inline bool fast_is_buf(const struct ib_wc *wc)
{
	return wc->wr_cqe->done == kdapl_buf_done && wc->status == IB_WC_SUCCESS &&
	       !(wc->wc_flags & KDAPL_WC_BRINGS);
}

/* Take the completion of a buffer of an SRQ if the fast path may; otherwise change nothing. */
static __always_inline bool fast_take_buf(const struct kdapl_evd *evd, const struct ib_wc *wc,
					  struct kdapl_taken *taken)
{
	struct kdapl_conn *conn;

	if (unlikely(!fast_is_buf(wc)))
		return false;
	/* read now: after kdapl_buf_pass() the buffer may be posted again */
	taken->cookie = kdapl_wc_buf(wc)->cookie;
	conn = kdapl_buf_pass(wc, evd->watching);
	if (unlikely(!conn))
		return false;
	taken->ep = conn->handle;
	taken->wq = conn->rq;
	taken->length = wc->byte_len;
	taken->op = DAT_DTO_RECEIVE;
	return true;
}

/* Prefetch the work queue of a later completion. */
static __always_inline void fast_prefetch(const struct ib_wc *wc)
{
	const struct ib_cqe *cqe = wc->wr_cqe;

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

/* Is there an event after the one in hand? @polled: the CQs are known to be empty. */
static __always_inline bool fast_more(struct kdapl_evd *evd, bool polled)
{
	struct kdapl_wq *wq;

	if (evd->batch_pos == evd->batch_n && (polled || !kdapl_evd_refill(evd)))
		return false;
	return likely(fast_is_wqe(&evd->batch[evd->batch_pos], &wq)) || fast_more_slow(evd);
}

/* Must the slow path look first? Tracing is done there. */
static __always_inline bool fast_excluded(const struct kdapl_evd *evd)
{
	return unlikely(evd->backlog_count || !list_empty(&evd->ready)) ||
	       trace_kdapl_completion_enabled() || trace_kdapl_upcall_enabled();
}

/* Fill in the event of what was taken. */
static __always_inline void fast_fill(const struct kdapl_evd *evd, DAT_EVENT *event,
				      const struct kdapl_taken *taken)
{
	event->event_number = DAT_DTO_COMPLETION_EVENT;
	event->evd_handle = evd->obj.handle;
	kdapl_event_taken(&event->event_data.dto_completion_event_data, taken);
}

/* Out of line, to keep dat_evd_dequeue() short for other completions. */
static noinline enum kdapl_next fast_dequeue_buf(struct kdapl_evd *evd, DAT_EVENT *event)
{
	struct kdapl_taken taken;

	if (!fast_take_buf(evd, &evd->batch[evd->batch_pos], &taken))
		return KDAPL_NEXT_SLOW;
	evd->batch_pos++;
	fast_fill(evd, event, &taken);
	return KDAPL_NEXT_EVENT;
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
	struct kdapl_taken taken;
	const struct ib_wc *wc;
	struct kdapl_wq *wq;

	lockdep_assert_held(&evd->lock);
	if (fast_excluded(evd))
		return KDAPL_NEXT_SLOW;
	if (evd->batch_pos == evd->batch_n && !kdapl_evd_refill(evd)) {
		evd->again = false;
		return KDAPL_NEXT_NONE;
	}
	wc = &evd->batch[evd->batch_pos];
	if (unlikely(!fast_is_wqe(wc, &wq)))
		return fast_dequeue_buf(evd, event);
	if (++evd->batch_pos + 1 < evd->batch_n && kdapl_evd_cold(evd))
		fast_prefetch(wc + 2);
	fast_take_wqe(wq, wc, &taken);
	fast_fill(evd, event, &taken);
	return KDAPL_NEXT_EVENT;
}

/*
 * Take ordinary completions of the batch, which is not empty, until @n are in hand. Returns how
 * many are.
 */
static __always_inline int fast_take_batch(struct kdapl_evd *evd, int have, int n)
{
	int pos = evd->batch_pos, end = min(pos + n - have, evd->batch_n);
	int warm = kdapl_evd_cold(evd) ? evd->batch_n - 2 : 0;
	struct kdapl_taken *taken = &evd->taken[have];
	const struct ib_wc *wc = &evd->batch[pos];
	struct kdapl_wq *wq;

	have -= pos;
	do {
		if (likely(fast_is_wqe(wc, &wq))) {
			if (pos < warm)
				fast_prefetch(wc + 2);
			fast_take_wqe(wq, wc, taken);
		} else if (!fast_take_buf(evd, wc, taken)) {
			break;
		}
		wc++;
		taken++;
	} while (++pos != end);
	evd->batch_pos = pos;
	return have + pos;
}

/*
 * Take ordinary completions until up to @n are in hand, with the one left from last time: at least
 * two, if there are. @polled: set if the CQs are empty. Returns how many; evd->lock held.
 */
static __always_inline int fast_take(struct kdapl_evd *evd, int n, bool *polled)
{
	int have = 0;

	*polled = false;
	if (atomic_read(&evd->untold)) {
		evd->taken[0] = evd->taken[evd->ntaken - 1];
		have = 1;
	}
	if (fast_excluded(evd))
		n = have;
	while (have < n) {
		if (evd->batch_pos == evd->batch_n) {
			if (*polled || have > 1)
				break;
			*polled = !kdapl_evd_refill(evd);
			if (*polled)
				break;
			*polled = evd->drained;
		}
		have = fast_take_batch(evd, have, n);
		/* the next one is for the slow path, or not needed */
		if (evd->batch_pos != evd->batch_n)
			break;
	}
	evd->ntaken = have;
	return have;
}

/* The next upcall of a runner is that of @taken. evd->lock held. */
static __always_inline void fast_next(const struct kdapl_evd *evd, struct kdapl_runner *runner,
				      const struct kdapl_taken *taken)
{
	fast_fill(evd, &runner->event, taken);
	runner->ep = taken->ep;
}

/* Make that upcall, alone. evd->lock held, and dropped meanwhile. */
static __always_inline void fast_tell(struct kdapl_evd *evd, struct kdapl_runner *runner, bool more)
{
	const DAT_UPCALL_OBJECT upcall = evd->upcall;

	runner->seq = ++evd->upcall_seq;
	spin_unlock_irq(&evd->lock);

	upcall.upcall_func(upcall.instance_data, &runner->event, more ? DAT_TRUE : DAT_FALSE);

	spin_lock_irq(&evd->lock);
}

/*
 * Make the upcalls of the completions in hand, at least two, except the last one: whether an event
 * follows it is found out when its turn comes. evd->lock held, and dropped meanwhile. Returns how
 * many were made; the others were given back if evd->untold is 0.
 */
static __always_inline int fast_tell_all(struct kdapl_evd *evd, struct kdapl_runner *runner)
{
	DAT_DTO_COMPLETION_EVENT_DATA *dto = &runner->event.event_data.dto_completion_event_data;
	const DAT_UPCALL_OBJECT upcall = evd->upcall;
	const struct kdapl_taken *taken = evd->taken;
	int left = evd->ntaken - 1;
	DAT_EP_HANDLE ep;

	fast_next(evd, runner, taken);
	runner->seq = evd->upcall_seq + 1;
	evd->upcall_seq += left;
	atomic_set(&evd->untold, left);
	spin_unlock_irq(&evd->lock);

	for (;;) {
		upcall.upcall_func(upcall.instance_data, &runner->event, DAT_TRUE);
		taken++;
		if (left == 1)
			break;
		ep = taken->ep;
		/*
		 * Before the claim, so that a holder of the lock sees whose upcall it is. A
		 * release, so that a waiter that sees it knows that the last one has returned.
		 */
		smp_store_release(&runner->ep, ep);
		/* after a failure nobody else writes evd->taken: evd->nrunning says one runs */
		if (unlikely(!atomic_try_cmpxchg(&evd->untold, &left, left - 1)))
			break;
		left--;
		dto->ep_handle = ep;
		dto->user_cookie.as_64 = taken->cookie;
		dto->operation = taken->op;
		dto->transfered_length = taken->length;
	}
	spin_lock_irq(&evd->lock);
	return taken - evd->taken;
}

/* After so many rounds without giving back, several are taken at a time again. */
#define FAST_AGAIN	64

/* kdapl_evd_run_fast(), with nrunning counted. */
static noinline int fast_run(struct kdapl_evd *evd, struct kdapl_runner *runner, int budget,
			     bool *none) __must_hold(&evd->lock)
{
	bool polled, more;
	int have, n = 0;

	/* helpers of another policy may have started, and not returned yet */
	while (n < budget && likely(evd->default_policy && evd->nrunning == 1)) {
		have = fast_take(evd, min(budget - n, evd->take), &polled);
		if (have > 1) {
			n += fast_tell_all(evd, runner);
		} else if (have) {
			fast_next(evd, runner, evd->taken);
			more = fast_more(evd, polled);
			atomic_set(&evd->untold, 0);
			fast_tell(evd, runner, more);
			n++;
			/* arming reports what has arrived since (D-79) */
			*none = !more;
		} else {
			*none = polled && evd->batch_pos == evd->batch_n;
			break;
		}
		if (unlikely(evd->take != KDAPL_TAKE && ++evd->take_good == FAST_AGAIN))
			evd->take = KDAPL_TAKE;
		/* waiters queue up under the lock */
		if (*none || unlikely(waitqueue_active(&evd->upcall_over)))
			break;
	}
	kdapl_evd_settle(evd);
	return n;
}

/* So few completions are quicker one by one. */
#define FAST_FEW	3

static __always_inline bool fast_few(const struct kdapl_evd *evd)
{
	return evd->batch_n <= FAST_FEW && evd->batch_pos != evd->batch_n;
}

/* The same for the few completions of a short batch. @polled: the CQs have just been polled. */
static __always_inline int fast_run_few(struct kdapl_evd *evd, struct kdapl_runner *runner,
					bool polled, bool *none)
{
	struct kdapl_taken taken;
	const struct ib_wc *wc;
	struct kdapl_wq *wq;
	bool more;
	int n = 0;

	do {
		wc = &evd->batch[evd->batch_pos];
		if (likely(fast_is_wqe(wc, &wq)))
			fast_take_wqe(wq, wc, &taken);
		else if (!fast_take_buf(evd, wc, &taken))
			break;
		evd->batch_pos++;
		fast_next(evd, runner, &taken);
		more = fast_more(evd, polled && !n);
		fast_tell(evd, runner, more);
		n++;
		*none = !more;
		/* waiters queue up under the lock */
		if (!more || unlikely(waitqueue_active(&evd->upcall_over)))
			break;
	} while (fast_few(evd) && n < FAST_FEW && evd->default_policy && evd->nrunning == 1 &&
		 !fast_excluded(evd));
	return n;
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
	int n = 0;

	lockdep_assert_held(&evd->lock);
	if (unlikely(evd->nrunning))
		return 0;
	evd->nrunning = 1;
	if (unlikely(!evd->default_policy || fast_excluded(evd)))
		goto out;
	if (evd->batch_pos == evd->batch_n) {
		if (!kdapl_evd_refill(evd)) {
			evd->again = false;
			*none = true;
			goto out;
		}
		if (evd->batch_n <= min(budget, FAST_FEW)) {
			n = fast_run_few(evd, runner, evd->drained, none);
			/* the first one is for the slow path, or there is no other one */
			if (!n || *none)
				goto out;
			/* waiters come first */
			if (unlikely(waitqueue_active(&evd->upcall_over)))
				goto dropped;
		}
	}
	n += fast_run(evd, runner, budget - n, none);
dropped:
	/* completions may have arrived while the lock was dropped, and others may have polled */
	if (n)
		evd->drained = false;
out:
	kdapl_evd_called(evd, runner);
	return n;
}
