// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Taking events: the store, the rings, the batch, the CQs.
 *
 * Everything here runs under evd->lock. A work completion leads through its
 * wr_cqe to the ring entry the post left behind and from there, by the entry's
 * index, to the ring and the transport half; wc->qp is never looked at, since
 * the QP may be gone.
 *
 * On devices that complete in order, a send completion for entry k reports k
 * and reclaims everything up to it: what lies before k had no completion, so
 * it was suppressed and succeeded. Where that does not hold (soft-iWARP
 * completes Reads out of order), or where a completion may not be reported yet
 * (a message that arrived before ESTABLISHED), the entry is marked done and
 * the ring is reported from its tail, in post order.
 */
#include <linux/prefetch.h>
#include <linux/rcupdate.h>

#include "kdapl.h"
#include "trace.h"

/* Silent completions looked at in one go, under the lock. */
#define MAX_SILENT	256

/* Events moved into the store in one go, under the lock. */
#define SETTLE_PIECE	64

static void event_bind(struct kdapl_event *ev, const struct kdapl_ring *ring,
		       const struct kdapl_wr *wr, unsigned int status)
{
	DAT_RMR_BIND_COMPLETION_EVENT_DATA *bind = &ev->data.rmr_completion_event_data;

	ev->number = DAT_RMR_BIND_COMPLETION_EVENT;
	bind->rmr_handle = ring->slot[wr->index].handle;
	bind->user_cookie.as_64 = wr->cookie;
	bind->status = status;
}

/* What failed was no transfer: say so, unless it was not tried. */
static unsigned int memop_status(const struct kdapl_wr *wr, unsigned int status)
{
	if (status == DAT_DTO_SUCCESS ||
	    (status == DAT_DTO_ERR_FLUSHED && !(wr->flags & KDAPL_WR_BROKEN)))
		return status;
	return wr->op == DAT_DTO_BIND_MW ? DAT_RMR_OPERATION_FAILED : DAT_DTO_ERR_LOCAL_MM_ERROR;
}

/* A completion the consumer hears of. Under the lock of the EVD. */
static void event_note(struct kdapl_ring *ring, unsigned int op, u64 cookie, u32 length,
		       unsigned int status)
{
	DAT_EP_HANDLE ep = ring->half->handle;

	if (likely(status == DAT_DTO_SUCCESS)) {
		trace_kdapl_completion(ep, op, cookie, length, status);
	} else if (status == DAT_DTO_ERR_FLUSHED) {
		WRITE_ONCE(ring->flushed, ring->flushed + 1);
		kdapl_count(flushed);
		trace_kdapl_completion_flushed(ep, op, cookie, 0, status);
	} else {
		WRITE_ONCE(ring->failed, ring->failed + 1);
		kdapl_count(failed);
		if (!ring->error)
			WRITE_ONCE(ring->error, status);
		trace_kdapl_completion_failed(ep, op, cookie, 0, status);
	}
}

static void event_dto(struct kdapl_event *ev, struct kdapl_ring *ring, const struct kdapl_wr *wr,
		      unsigned int status)
{
	DAT_DTO_COMPLETION_EVENT_DATA *dto = &ev->data.dto_completion_event_data;
	u32 length = wr->length;

	ev->half = ring->half;
	ev->buf = NULL;
	ev->number = DAT_DTO_COMPLETION_EVENT;
	ev->signalled = status != DAT_DTO_SUCCESS ||
			!(wr->flags & DAT_COMPLETION_UNSIGNALLED_FLAG);
	if (unlikely(wr->op >= DAT_DTO_BIND_MW)) {
		status = memop_status(wr, status);
		length = 0;
	}
	if (unlikely(wr->op == DAT_DTO_BIND_MW)) {
		event_bind(ev, ring, wr, status);
		event_note(ring, wr->op, wr->cookie, 0, status);
		return;
	}
	dto->ep_handle = ring->half->handle;
	dto->user_cookie.as_64 = wr->cookie;
	dto->status = status;
	dto->transfered_length = status == DAT_DTO_SUCCESS ? length : 0;
	dto->operation = wr->op;
	dto->rmr_context = 0;
	if (unlikely(ring->recv && (wr->flags & KDAPL_WR_INVALIDATED))) {
		dto->operation = DAT_DTO_RECEIVE_WITH_INVALIDATE;
		dto->rmr_context = wr->key;
	}
	event_note(ring, dto->operation, wr->cookie, dto->transfered_length, status);
}

static void event_buf(struct kdapl_event *ev, struct kdapl_half *half, struct kdapl_buf *buf)
{
	DAT_DTO_COMPLETION_EVENT_DATA *dto = &ev->data.dto_completion_event_data;
	bool inv = buf->flags & KDAPL_WR_INVALIDATED;

	ev->half = half;
	ev->buf = buf;
	ev->number = DAT_DTO_COMPLETION_EVENT;
	ev->signalled = true;	/* SRQ-POST-05; solicited wait is a matter of arming */
	dto->ep_handle = half->handle;
	dto->user_cookie.as_64 = buf->cookie;
	dto->status = buf->status;
	dto->transfered_length = buf->length;
	dto->operation = inv ? DAT_DTO_RECEIVE_WITH_INVALIDATE : DAT_DTO_RECEIVE;
	dto->rmr_context = inv ? buf->key : 0;
	event_note(half->rq, dto->operation, buf->cookie, buf->length, buf->status);
}

/**
 * kdapl_event_release - the consumer has the event, or will never have it
 * @ev: taken; the lock of its EVD held
 *
 * A buffer of an SRQ may be posted anew from here.
 */
void kdapl_event_release(const struct kdapl_event *ev)
{
	if (likely(!ev->buf))
		return;
	ev->half->held--;
	kdapl_buf_free(ev->buf);
}

/* Would this finished entry be an event? */
static bool wr_reported(const struct kdapl_wr *wr, unsigned int status)
{
	if (wr->op >= KDAPL_OP_INV)
		return false;
	return status != DAT_DTO_SUCCESS || !(wr->flags & DAT_COMPLETION_SUPPRESS_FLAG);
}

/* Does it become one? */
static bool wr_visible(const struct kdapl_ring *ring, const struct kdapl_wr *wr,
		       unsigned int status)
{
	struct kdapl_half *half = ring->half;

	if (!wr_reported(wr, status))
		return false;
	if (likely(!READ_ONCE(half->discard)))
		return true;
	atomic_inc(&half->dropped);
	return false;
}

/*
 * An operation on an LMR or RMR has come back, or never will: whoever it was for
 * learns how it ended, once.
 */
static void wr_settle(struct kdapl_ring *ring, struct kdapl_wr *wr, unsigned int status)
{
	enum kdapl_outcome outcome = KDAPL_UNKNOWN;
	union kdapl_slot *slot;
	struct kdapl_obj *obj;

	if (ring->recv || likely(!(wr->flags & KDAPL_WR_UNSETTLED)))
		return;
	wr->flags &= ~KDAPL_WR_UNSETTLED;
	slot = &ring->slot[wr->index];
	obj = slot->obj;
	slot->handle = obj->handle;
	ring->memops_done++;
	if (status == DAT_DTO_SUCCESS)
		outcome = KDAPL_DONE;
	else if (READ_ONCE(wr->state) == KDAPL_WR_SOFT)
		outcome = KDAPL_NEVER;
	if (wr->op == DAT_DTO_LMR_FMR)
		kdapl_lmr_settle(container_of(obj, struct kdapl_lmr, obj), KDAPL_LMR_REG,
				 wr->length, outcome);
	else if (wr->op == DAT_DTO_LMR_INVALIDATE)
		kdapl_lmr_settle(container_of(obj, struct kdapl_lmr, obj), KDAPL_LMR_INV,
				 wr->length, outcome);
	else
		kdapl_rmr_settle(container_of(obj, struct kdapl_rmr, obj), wr->op, outcome);
	kdapl_obj_put(obj);
}

static bool ring_unsettled(const struct kdapl_ring *ring)
{
	return ring->memops_done != READ_ONCE(ring->memops);
}

/* Give an entry back to the poster. */
static void ring_advance(struct kdapl_ring *ring, const struct kdapl_wr *wr, u32 tail)
{
	if (!ring->recv)
		ring->dtos_done = wr->seq;
	/* tail last: pairs with the acquire of the poster, which reads it first */
	smp_store_release(&ring->tail, tail);
}

static void ring_mark_ready(struct kdapl_evd *evd, struct kdapl_ring *ring)
{
	if (list_empty(&ring->ready) && likely(!ring->dead))
		list_add_tail(&ring->ready, &evd->ready);
}

/* What an entry was to fill it has filled, or not. */
static void ring_show(struct kdapl_ring *ring, const struct kdapl_wr *wr, bool done, u32 length)
{
	struct kdapl_ia *ia = ring->half->ep->obj.ia;

	if (done)
		kdapl_sinks_filled(ring->sinks, wr->index, ia, length);
	else
		kdapl_sinks_failed(ring->sinks, wr->index, ia);
}

/*
 * How the entry at the tail ended, or one behind it in a ring that has ended.
 * False: not known yet.
 */
static bool wr_outcome(const struct kdapl_ring *ring, const struct kdapl_wr *wr,
		       unsigned int *status)
{
	*status = DAT_DTO_SUCCESS;
	switch (READ_ONCE(wr->state)) {
	case KDAPL_WR_DONE:
		*status = wr->status;
		break;
	case KDAPL_WR_SOFT:
		if (!ring->ended)
			return false;
		*status = DAT_DTO_ERR_FLUSHED;
		break;
	default:
		if (ring->ended) {
			/* No completion, so it was suppressed and succeeded. */
			if (ring->lost || (wr->flags & KDAPL_WR_SIGNALED) || ring->recv)
				*status = DAT_DTO_ERR_FLUSHED;
		} else if (!ring->ooo || (wr->flags & KDAPL_WR_SIGNALED) ||
			   (s32)(ring->sent - ring->tail) <= 0) {
			return false;
		}
	}
	return true;
}

/* Whoever frees an LMR must not wait for a consumer that does not dequeue. */
static void ring_settle_all(struct kdapl_ring *ring)
{
	/* pairs with the release of the poster: entries before head are complete */
	u32 head = smp_load_acquire(&ring->head);
	unsigned int status;
	u32 pos;

	for (pos = ring->tail; pos != head && ring_unsettled(ring); pos++) {
		struct kdapl_wr *wr = &ring->wr[pos & ring->mask];

		wr_outcome(ring, wr, &status);
		wr_settle(ring, wr, status);
	}
}

/* The device has let go of what it was to fill and has not given back, in a ring that has ended. */
static void ring_show_rest(struct kdapl_ring *ring)
{
	/* pairs with the release of the poster: entries before head are complete */
	u32 head = smp_load_acquire(&ring->head);
	unsigned int status;
	bool done;
	u32 pos;

	for (pos = ring->tail; pos != head; pos++) {
		const struct kdapl_wr *wr = &ring->wr[pos & ring->mask];

		done = wr_outcome(ring, wr, &status) && status == DAT_DTO_SUCCESS;
		if (ring->recv || wr->op == DAT_DTO_RDMA_READ)
			ring_show(ring, wr, done, wr->length);
	}
}

static void ring_end(struct kdapl_evd *evd, struct kdapl_ring *ring)
{
	if (ring->ended)
		return;
	WRITE_ONCE(ring->ended, true);
	ring->odd |= KDAPL_ODD_EVER;
	smp_mb();	/* before head is read again; pairs with the one in post_flush() */
	ring_settle_all(ring);
	if (unlikely(ring->sinks))
		ring_show_rest(ring);
	ring_mark_ready(evd, ring);
	mod_delayed_work(kdapl_wq, &ring->half->end_work, 0);
}

/* A receive queue has ended when the device gave back all it was given. */
static void ring_check_recv_end(struct kdapl_evd *evd, struct kdapl_ring *ring)
{
	/* pairs with the release in kdapl_ring_set_mode(): native is final then */
	if (smp_load_acquire(&ring->mode) == KDAPL_RING_SOFT && !ring->half->pool &&
	    READ_ONCE(ring->half->stopping) && ring->reaped == READ_ONCE(ring->native))
		ring_end(evd, ring);
}

/*
 * The marker has completed: is everything posted before it done? Where Reads
 * complete late, some may still be under way.
 */
static void ring_check_marker(struct kdapl_evd *evd, struct kdapl_ring *ring)
{
	const struct kdapl_wr *wr;
	u32 pos;

	if (!ring->marker_done)
		return;
	for (pos = ring->tail; ring->ooo && pos != ring->marker_pos; pos++) {
		wr = &ring->wr[pos & ring->mask];
		if (wr->state == KDAPL_WR_NATIVE && (wr->flags & KDAPL_WR_SIGNALED))
			return;
	}
	ring->marker_done = false;
	if (READ_ONCE(ring->half->stopping)) {
		ring_end(evd, ring);	/* marker stays set: nobody may post another */
	} else {
		WRITE_ONCE(ring->marker, false);
		kdapl_half_drained(ring->half);
	}
}

/* The next buffer of an SRQ that was filled before the connection was known. */
static bool early_next(struct kdapl_half *half, struct kdapl_event *ev)
{
	struct kdapl_buf *buf;

	while (READ_ONCE(half->phase) >= KDAPL_HALF_UP) {
		buf = list_first_entry_or_null(&half->early, struct kdapl_buf, node);
		if (!buf)
			break;
		list_del(&buf->node);
		event_buf(ev, half, buf);
		if (!READ_ONCE(half->discard))
			return true;
		kdapl_event_release(ev);
		atomic_inc(&half->dropped);
	}
	return false;
}

/*
 * Report the next entry of a ring from its tail. Used when completions do not
 * map one to one to entries: out of order devices, held receives, the end.
 */
static bool ring_next(struct kdapl_ring *ring, struct kdapl_event *ev)
{
	if (unlikely(ring->recv && ring->half->pool))
		return early_next(ring->half, ev);
	/* pairs with the release of the poster: entries before head are complete */
	while (ring->tail != smp_load_acquire(&ring->head)) {
		struct kdapl_wr *wr = &ring->wr[ring->tail & ring->mask];
		unsigned int status;
		bool visible;

		if (!wr_outcome(ring, wr, &status))
			return false;
		/* received before the connection is known */
		if (ring->recv && READ_ONCE(wr->state) == KDAPL_WR_DONE &&
		    READ_ONCE(ring->half->phase) < KDAPL_HALF_UP)
			return false;
		wr_settle(ring, wr, status);
		visible = wr_visible(ring, wr, status);
		if (visible)
			event_dto(ev, ring, wr, status);
		if (wr->op == DAT_DTO_RDMA_READ && !ring->recv)
			ring->reads_done++;
		ring_advance(ring, wr, ring->tail + 1);
		if (visible)
			return true;
	}
	return false;
}

static void wr_failed(struct kdapl_ring *ring, enum ib_wc_status status)
{
	struct kdapl_half *half = ring->half;

	/* our own move to ERR flushes; anything else happened before it */
	if (READ_ONCE(half->stopping) && status == IB_WC_WR_FLUSH_ERR)
		return;
	if (READ_ONCE(half->phase) < KDAPL_HALF_UP) {
		/* The CM decides how the attempt ends; remember it if it succeeds. */
		if (status != IB_WC_WR_FLUSH_ERR || !half->dev->iwarp)
			WRITE_ONCE(half->wc_failed, true);
		return;
	}
	if (status == IB_WC_WR_FLUSH_ERR && half->dev->iwarp)
		kdapl_half_end(half, KDAPL_END_SUSPECT);
	else
		kdapl_half_end(half, DAT_CONNECTION_EVENT_BROKEN);
}

/* A message before the CM's word that there is a connection. */
static void early_recv(struct kdapl_half *half, enum ib_wc_status status)
{
	if (status != IB_WC_SUCCESS || !READ_ONCE(half->passive))
		return;
	/* TCP loses no answer: on iWARP the CM's word always comes */
	if (!half->dev->iwarp) {
		queue_delayed_work(kdapl_wq, &half->est_work, KDAPL_EST_TIME);
	} else if (half->dev->caps.reply_overrun && !READ_ONCE(half->spoken)) {
		/* before the work: it, or the CM's handler after it, sees this (D-86) */
		WRITE_ONCE(half->spoken, true);
		mod_delayed_work(kdapl_wq, &half->est_work, 0);
	}
}

static bool recv_done(struct kdapl_evd *evd, struct kdapl_ring *ring, struct kdapl_wr *wr,
		      const struct ib_wc *wc, struct kdapl_event *ev)
{
	u32 pos = ring->tail + ((wr->index - ring->tail) & ring->mask);
	bool visible;

	ring->reaped++;
	if (unlikely(ring->sinks))
		ring_show(ring, wr, wc->status == IB_WC_SUCCESS, wc->byte_len);
	wr->status = kdapl_wc_recv_status(wc->status);
	if (likely(wc->status == IB_WC_SUCCESS)) {
		wr->length = wc->byte_len;
		if (unlikely(wc->wc_flags & IB_WC_WITH_INVALIDATE)) {
			wr->flags |= KDAPL_WR_INVALIDATED;
			wr->key = wc->ex.invalidate_rkey;
			kdapl_mr_invalidated(ring->half, wr->key);
		}
	}
	if (unlikely(READ_ONCE(ring->half->phase) < KDAPL_HALF_UP || pos != ring->tail)) {
		WRITE_ONCE(wr->state, KDAPL_WR_DONE);
		/* with the one at the tail done they are just early, and will be drained */
		if (pos != ring->tail &&
		    ring->wr[ring->tail & ring->mask].state != KDAPL_WR_DONE)
			ring->odd |= KDAPL_ODD_EVER;
		early_recv(ring->half, wc->status);
		ring_mark_ready(evd, ring);
		ring_check_recv_end(evd, ring);
		return false;
	}
	visible = wr_visible(ring, wr, wr->status);
	if (visible)
		event_dto(ev, ring, wr, wr->status);
	ring_advance(ring, wr, pos + 1);
	/* one that was flushed out of order may wait behind it */
	if (unlikely(ring->wr[ring->tail & ring->mask].state == KDAPL_WR_DONE &&
		     ring->tail != READ_ONCE(ring->head)))
		ring_mark_ready(evd, ring);
	ring_check_recv_end(evd, ring);
	return visible;
}

/* A buffer on a device that does not see memory as the CPU does. */
static noinline void buf_sync(struct kdapl_buf *buf, struct kdapl_half *half,
			      const struct ib_wc *wc)
{
	struct kdapl_sinks *sinks = kdapl_buf_pool(buf)->sinks;

	if (!sinks)
		return;
	if (half && wc->status == IB_WC_SUCCESS)
		kdapl_sinks_filled(sinks, buf->index, half->ep->obj.ia, wc->byte_len);
	else
		kdapl_buf_failed(buf);
}

/* A buffer of an SRQ comes back, taken by the QP of one of the EPs that use it. */
static bool buf_done(struct kdapl_evd *evd, const struct ib_wc *wc, struct kdapl_event *ev)
{
	struct kdapl_buf *buf = container_of(wc->wr_cqe, struct kdapl_buf, cqe);
	struct kdapl_half *half = kdapl_buf_taken(buf, wc->qp);

	if (unlikely(!half || half->dev->dma != KDAPL_DMA_SAME)) {
		buf_sync(buf, half, wc);
		if (!half) {
			kdapl_buf_free(buf);
			return false;
		}
	}
	buf->flags = 0;
	if (unlikely(wc->status == IB_WC_SUCCESS && (wc->wc_flags & IB_WC_WITH_INVALIDATE))) {
		buf->flags = KDAPL_WR_INVALIDATED;
		buf->key = wc->ex.invalidate_rkey;
		kdapl_mr_invalidated(half, buf->key);
	}
	if (unlikely(READ_ONCE(half->rq->ended) || READ_ONCE(half->discard))) {
		kdapl_buf_free(buf);
		return false;
	}
	buf->status = kdapl_wc_recv_status(wc->status);
	buf->length = 0;
	if (likely(wc->status == IB_WC_SUCCESS))
		buf->length = wc->byte_len;
	else
		wr_failed(half->rq, wc->status);
	half->held++;
	kdapl_ep_held(half);
	if (unlikely(READ_ONCE(half->phase) < KDAPL_HALF_UP || !list_empty(&half->early))) {
		list_add_tail(&buf->node, &half->early);
		early_recv(half, wc->status);
		ring_mark_ready(evd, half->rq);
		return false;
	}
	event_buf(ev, half, buf);
	return true;
}

/* What lies before the one that has completed was suppressed and succeeded. */
static void ring_settle_to(struct kdapl_ring *ring, u32 end, unsigned int status)
{
	u32 pos;

	for (pos = ring->tail; pos != end; pos++)
		wr_settle(ring, &ring->wr[pos & ring->mask], DAT_DTO_SUCCESS);
	wr_settle(ring, &ring->wr[end & ring->mask], status);
}

/*
 * Show the CPU what Reads up to the one that has completed have brought; those before it have
 * no completion of their own, if the device completes in order.
 */
static void ring_show_reads(struct kdapl_ring *ring, u32 end, bool done)
{
	u32 pos = ring->ooo ? end : ring->shown;

	for (; (s32)(end - pos) >= 0; pos++) {
		const struct kdapl_wr *wr = &ring->wr[pos & ring->mask];

		if (wr->op == DAT_DTO_RDMA_READ)
			ring_show(ring, wr, pos != end || done, wr->length);
	}
	ring->shown = end + 1;
}

static bool request_done(struct kdapl_evd *evd, struct kdapl_ring *ring, struct kdapl_wr *wr,
			 const struct ib_wc *wc, struct kdapl_event *ev)
{
	u32 pos = ring->tail + ((wr->index - ring->tail) & ring->mask);
	unsigned int status = kdapl_wc_status(wc->status);
	u32 sent = ring->tail;
	bool visible;

	if (unlikely(ring->sinks))
		ring_show_reads(ring, pos, status == DAT_DTO_SUCCESS);
	if (unlikely(ring->ooo || wr->op == KDAPL_OP_MARKER)) {
		wr->status = status;
		WRITE_ONCE(wr->state, KDAPL_WR_DONE);
		/* A Read whose answer came was sent after everything before it. */
		if (wr->op != DAT_DTO_RDMA_READ)
			sent = pos + 1;
		else if (status == DAT_DTO_SUCCESS)
			sent = pos;
		if ((s32)(sent - ring->sent) > 0)
			ring->sent = sent;
		if (wr->op == KDAPL_OP_MARKER)
			ring->marker_done = true;
		ring_check_marker(evd, ring);
		ring_mark_ready(evd, ring);
		return false;
	}
	if (unlikely(ring_unsettled(ring)))
		ring_settle_to(ring, pos, status);
	visible = wr_visible(ring, wr, status);
	if (visible)
		event_dto(ev, ring, wr, status);
	ring_advance(ring, wr, pos + 1);
	return visible;
}

static bool wc_event(struct kdapl_evd *evd, struct ib_wc *wc, struct kdapl_event *ev)
{
	struct kdapl_ring *ring;
	struct kdapl_wr *wr;

	if (unlikely(wc->wr_cqe->done != kdapl_wr_done)) {
		if (wc->wr_cqe->done == kdapl_buf_done)
			return buf_done(evd, wc, ev);
		wc->wr_cqe->done(evd->cur, wc);
		return false;
	}
	wr = container_of(wc->wr_cqe, struct kdapl_wr, cqe);
	ring = kdapl_wr_ring(wr);
	if (WARN_ON_ONCE(ring->ended))	/* the device had given everything back */
		return false;
	/* a marker proves what it has to whatever its status is (D-09) */
	if (unlikely(wc->status != IB_WC_SUCCESS && wr->op != KDAPL_OP_MARKER)) {
		wr_failed(ring, wc->status);
		/* with the old key's end the bind has failed, not just not been tried */
		if (wr->op == KDAPL_OP_INV && wc->status != IB_WC_WR_FLUSH_ERR)
			ring->wr[(wr->index + 1) & ring->mask].flags |= KDAPL_WR_BROKEN;
	}
	return ring->recv ? recv_done(evd, ring, wr, wc, ev) :
			    request_done(evd, ring, wr, wc, ev);
}

/* Another batch, from one CQ; the last one is used up. */
static bool evd_poll_cq(struct kdapl_evd *evd, struct kdapl_cq *cq)
{
	int n = cq->ibcq ? ib_poll_cq(cq->ibcq, KDAPL_BATCH, evd->batch) : 0;

	if (n <= 0)
		return false;
	evd->cur = cq->ibcq;
	evd->batch_pos = 0;
	evd->batch_n = n;
	/* with many EPs these are cold, and in nobody's order */
	while (n--)
		prefetch(evd->batch[n].wr_cqe);
	return true;
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
		if (!evd_poll_cq(evd, cq))
			continue;
		list_move_tail(&cq->evd_node, &evd->cqs);	/* the others' turn next */
		return true;
	}
	return false;
}

/**
 * kdapl_evd_poll - take the next event that is not in the store
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
			struct kdapl_ring *ring = list_first_entry(&evd->ready, struct kdapl_ring,
								   ready);

			if (ring_next(ring, ev))
				return true;
			list_del_init(&ring->ready);
			if (READ_ONCE(ring->half->phase) >= KDAPL_HALF_UP)
				ring->odd &= ~KDAPL_ODD_EARLY;
		}
		if (evd->batch_pos == evd->batch_n && !kdapl_evd_refill(evd))
			return false;
		if (wc_event(evd, &evd->batch[evd->batch_pos++], ev))
			return true;
		if (++evd->silent - silent == MAX_SILENT) {
			evd->again = true;
			return false;
		}
	}
}

static bool event_other(const struct kdapl_event *ev)
{
	return ev->number != DAT_DTO_COMPLETION_EVENT &&
	       ev->number != DAT_RMR_BIND_COMPLETION_EVENT;
}

/**
 * kdapl_evd_room - can the store take another completion?
 * @evd: the EVD; evd->lock held
 *
 * Completions and events of other streams have a share each; the one entry
 * between them is for the last word of the asynchronous stream.
 */
bool kdapl_evd_room(struct kdapl_evd *evd)
{
	u32 others = max_t(int, evd->qlen - (int)evd->store_others, 0);

	return evd->store_count + others + 1 < evd->store_size;
}

/* evd->lock held. */
static void evd_append(struct kdapl_evd *evd, const struct kdapl_event *ev)
{
	u32 pos = evd->store_head + evd->store_count;

	if (pos >= evd->store_size)
		pos -= evd->store_size;
	kdapl_event_copy(&evd->slots[pos], ev);
	evd->store_count++;
	evd->store_others += event_other(ev);
	evd->store_signalled += ev->signalled;
}

/* evd->lock held: no room for an event of another stream than DTO and RMR */
static bool evd_others_full(const struct kdapl_evd *evd)
{
	return evd->store_others >= evd->qlen || evd->closing;
}

/**
 * kdapl_evd_store - append an event to the store
 * @evd: the EVD; evd->lock held
 * @ev: the event
 *
 * Return: false when it does not fit: the store is full or, for events of
 * other streams than DTO and RMR, the consumer's queue length is reached.
 */
bool kdapl_evd_store(struct kdapl_evd *evd, const struct kdapl_event *ev)
{
	lockdep_assert_held(&evd->lock);
	if (event_other(ev)) {
		if (evd_others_full(evd))
			return false;
	} else if (!kdapl_evd_room(evd)) {
		return false;
	}
	evd_append(evd, ev);
	return true;
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
	if (!evd->store_count)
		return kdapl_evd_poll(evd, ev);
	kdapl_event_copy(ev, &evd->slots[evd->store_head]);
	if (++evd->store_head == evd->store_size)
		evd->store_head = 0;
	evd->store_count--;
	evd->store_signalled -= ev->signalled;
	if (event_other(ev)) {
		evd->store_others--;
		evd->overflow = false;
	}
	return true;
}

/**
 * kdapl_evd_more - is another event queued at this moment?
 * @evd: the EVD; evd->lock held
 *
 * One that is found on a CQ goes into the store.
 *
 * Return: true if there is one.
 */
bool kdapl_evd_more(struct kdapl_evd *evd)
{
	u32 silent = evd->silent;

	if (evd->store_count)
		return true;
	do {
		if (kdapl_evd_poll(evd, &evd->scratch))
			return kdapl_evd_store(evd, &evd->scratch);
	} while (evd->again && evd->silent - silent < kdapl_evd_depth(evd));
	return false;
}

/**
 * kdapl_evd_full - is there no room for an event of another stream than DTO or RMR?
 * @evd: the EVD
 *
 * Context: any, without evd->lock.
 * Return: what kdapl_evd_queue() would have found.
 */
bool kdapl_evd_full(struct kdapl_evd *evd)
{
	unsigned long flags;
	bool full;

	spin_lock_irqsave(&evd->lock, flags);
	full = evd_others_full(evd);
	spin_unlock_irqrestore(&evd->lock, flags);
	return full;
}

/**
 * kdapl_evd_queue - an event of another stream than DTO or RMR arrives
 * @evd: the EVD
 * @ev: the event
 *
 * A connection event that does not fit is lost, which the IA's asynchronous EVD
 * is told once until there was room again. Requests and software events are
 * the caller's to refuse, asynchronous ones go through kdapl_evd_queue_async().
 *
 * Context: any, without evd->lock.
 * Return: false when the EVD is full and the event was dropped.
 */
bool kdapl_evd_queue(struct kdapl_evd *evd, const struct kdapl_event *ev)
{
	bool stored, report = false;
	unsigned long flags;

	spin_lock_irqsave(&evd->lock, flags);
	stored = kdapl_evd_store(evd, ev);
	if (!stored && kdapl_event_connection(ev) && !evd->closing) {
		report = !evd->overflow;
		evd->overflow = true;
	}
	spin_unlock_irqrestore(&evd->lock, flags);
	if (stored) {
		kdapl_evd_sched(evd);
	} else if (report) {
		trace_kdapl_evd_overflow(evd->obj.handle, ev->number, evd->qlen);
		pr_err_ratelimited("%s: an EVD is full (%d events), connection events are lost: dequeue them or make it longer\n",
				   evd->obj.ia->name, evd->qlen);
		kdapl_ia_async(evd->obj.ia, evd->obj.handle, DAT_ASYNC_ERROR_EVD_OVERFLOW,
			       DAT_EVD_OVERFLOW_ERROR);
	}
	return stored;
}

/**
 * kdapl_evd_queue_async - an asynchronous event arrives
 * @evd: the EVD
 * @ia: IA the event comes from
 * @ev: the event
 *
 * One that does not fit ends the asynchronous stream of the EVD: the consumer
 * finds IA_CATASTROPHIC in its place and none after it.
 *
 * Context: any, without evd->lock.
 */
void kdapl_evd_queue_async(struct kdapl_evd *evd, struct kdapl_ia *ia,
			   const struct kdapl_event *ev)
{
	struct kdapl_event last = {
		.number = DAT_ASYNC_ERROR_IA_CATASTROPHIC,
		.signalled = true,
	};
	unsigned long flags;
	bool died = false;

	last.data.asynch_error_event_data.dat_handle = ia->obj.handle;
	last.data.asynch_error_event_data.reason = DAT_IA_CATASTROPHIC_ERROR;
	spin_lock_irqsave(&evd->lock, flags);
	if (!evd->async_dead && !evd->closing && !kdapl_evd_store(evd, ev)) {
		evd->async_dead = true;
		died = true;
		evd_append(evd, &last);
	}
	spin_unlock_irqrestore(&evd->lock, flags);
	if (died) {
		trace_kdapl_evd_overflow(evd->obj.handle, ev->number, evd->qlen);
		pr_err("%s: asynchronous EVD is full (%d events), no more of them are reported: close the IA, open it with a longer EVD, and dequeue it\n",
		       ia->name, evd->qlen);
	}
	kdapl_evd_sched(evd);
}

/* May a sweep put another completion into the store? */
static bool evd_may_park(struct kdapl_evd *evd, bool teardown)
{
	if (!kdapl_evd_room(evd))
		return false;
	return teardown || evd->store_count - evd->store_others < evd->qlen + evd->reserve;
}

/**
 * kdapl_evd_sweep_locked - move completions into the store
 * @evd: the EVD; evd->lock held
 * @budget: events to move at most
 * @teardown: use the part of the store that is reserved for ending halves;
 *	sweeps for the sake of a poster stop before it
 */
void kdapl_evd_sweep_locked(struct kdapl_evd *evd, int budget, bool teardown)
{
	struct kdapl_event ev;

	while (budget-- > 0) {
		if (!evd->discard && !evd_may_park(evd, teardown))
			break;
		if (!kdapl_evd_poll(evd, &ev))
			break;
		if (evd->discard)
			kdapl_event_release(&ev);
		else
			kdapl_evd_store(evd, &ev);
	}
}

/**
 * kdapl_evd_sweep - the same, and tell the engine if it should run
 * @evd: the EVD
 * @budget: events to move at most
 * @teardown: see kdapl_evd_sweep_locked()
 *
 * Context: any, without any lock of an EP.
 */
void kdapl_evd_sweep(struct kdapl_evd *evd, int budget, bool teardown)
{
	unsigned long flags;
	bool sched;

	spin_lock_irqsave(&evd->lock, flags);
	kdapl_evd_sweep_locked(evd, budget, teardown);
	sched = kdapl_evd_calls(evd) && evd->store_signalled;
	spin_unlock_irqrestore(&evd->lock, flags);
	if (sched)
		kdapl_evd_sched(evd);
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
 * kdapl_evd_settle - move what has arrived by now into the store
 * @evd: the EVD
 *
 * A piece at a time, and not more than its CQs can hold when the call begins;
 * what arrives meanwhile may stay where it is.
 *
 * Context: may sleep.
 */
void kdapl_evd_settle(struct kdapl_evd *evd)
{
	bool more;
	u32 count;
	int left;

	spin_lock_irq(&evd->lock);
	left = kdapl_evd_depth(evd);
	do {
		count = evd->store_count;
		kdapl_evd_sweep_locked(evd, SETTLE_PIECE, false);
		more = evd->store_count != count || evd->again;
		left -= SETTLE_PIECE;
		spin_unlock_irq(&evd->lock);
		cond_resched();
		spin_lock_irq(&evd->lock);
	} while (more && left > 0);
	spin_unlock_irq(&evd->lock);
}

/**
 * kdapl_ring_sweep - take a few completions off the CQ of a ring
 * @ring: looks full, or is asked about (D-05)
 *
 * Context: any, without any lock of an EP; RCU read side.
 */
void kdapl_ring_sweep(struct kdapl_ring *ring)
{
	struct kdapl_evd *evd = rcu_dereference(ring->cq->evd);

	if (evd)
		kdapl_evd_sweep(evd, KDAPL_BATCH, false);
}

/**
 * kdapl_evd_ending - a half starts or stops waiting for its last completions
 * @evd: the EVD
 * @delta: 1 or -1
 *
 * While any half waits, the engine takes completions off the CQs even if
 * upcalls are disabled.
 *
 * Context: any, without any lock of an EP.
 */
void kdapl_evd_ending(struct kdapl_evd *evd, int delta)
{
	unsigned long flags;

	spin_lock_irqsave(&evd->lock, flags);
	evd->ending += delta;
	spin_unlock_irqrestore(&evd->lock, flags);
	if (delta > 0)
		kdapl_evd_sched(evd);
}

/* Connection events outlive their half, so the EP tells whose they are. */
static bool event_connection_of(const struct kdapl_event *ev, DAT_EP_HANDLE ep)
{
	return kdapl_event_connection(ev) && kdapl_event_ep(ev) == ep;
}

static void ring_goes_odd(struct kdapl_evd *evd, struct kdapl_ring *ring)
{
	unsigned long flags;

	spin_lock_irqsave(&evd->lock, flags);
	ring->odd |= KDAPL_ODD_EVER;
	spin_unlock_irqrestore(&evd->lock, flags);
}

/**
 * kdapl_half_discard - completions that are taken from now on are nobody's
 * @half: of an EP that is freed or reset, still attached to its EVDs
 *
 * From the first one that is dropped on all are: there is no gap in what is reported.
 *
 * Context: any, without any lock of an EVD.
 */
void kdapl_half_discard(struct kdapl_half *half)
{
	/* first: the fast path does not check ->discard */
	ring_goes_odd(half->request_evd, half->sq);
	ring_goes_odd(half->recv_evd, half->rq);
	if (READ_ONCE(half->phase) == KDAPL_HALF_ENDED && !half->discard)
		WRITE_ONCE(half->owed, true);
	WRITE_ONCE(half->discard, true);
}

/**
 * kdapl_evd_drop - forget the stored events of a half
 * @evd: the EVD
 * @half: whose events
 * @all_events: connection events too, not only DTO and RMR completions
 */
void kdapl_evd_drop(struct kdapl_evd *evd, struct kdapl_half *half, bool all_events)
{
	struct kdapl_buf *buf, *next;
	struct kdapl_event ev;
	unsigned long flags;
	bool overflow;
	u32 n;

	spin_lock_irqsave(&evd->lock, flags);
	overflow = evd->overflow;
	/* One turn of the store: take each event and put back what stays. */
	for (n = evd->store_count; n; n--) {
		kdapl_evd_take(evd, &ev);
		if (event_other(&ev)) {
			if (all_events && event_connection_of(&ev, half->handle))
				continue;
		} else if (ev.half == half) {
			kdapl_event_release(&ev);
			atomic_inc(&half->dropped);
			continue;
		}
		evd_append(evd, &ev);
	}
	evd->overflow = overflow && evd->store_others >= evd->qlen;
	if (half->pool && evd == half->recv_evd) {
		list_for_each_entry_safe(buf, next, &half->early, node) {
			list_del(&buf->node);
			half->held--;
			kdapl_buf_free(buf);
			atomic_inc(&half->dropped);
		}
	}
	spin_unlock_irqrestore(&evd->lock, flags);
}

/* A completion of a DTO or RMR operation of this half. */
static bool event_of(const struct kdapl_event *ev, const struct kdapl_half *half)
{
	return ev->half == half && !event_other(ev);
}

/* Has this ring of a half that has ended something to report? evd->lock held. */
static bool ring_owes(const struct kdapl_ring *ring)
{
	unsigned int status;
	u32 pos, head;

	if (ring->recv && ring->half->pool)
		return !list_empty(&ring->half->early);
	/* pairs with the release of the poster */
	head = smp_load_acquire(&ring->head);
	for (pos = ring->tail; pos != head; pos++) {
		const struct kdapl_wr *wr = &ring->wr[pos & ring->mask];

		if (wr_outcome(ring, wr, &status) && wr_reported(wr, status))
			return true;
	}
	return false;
}

/**
 * kdapl_evd_owes - is a completion of a half on its way to an upcall?
 * @evd: one of its EVDs; evd->lock held
 * @half: half that has ended, or is to be discarded
 *
 * What a consumer dequeues without upcalls is as good as delivered.
 *
 * Return: whether there is one.
 */
bool kdapl_evd_owes(struct kdapl_evd *evd, const struct kdapl_half *half)
{
	u32 i;

	lockdep_assert_held(&evd->lock);
	if (evd->closing || evd->discard || READ_ONCE(half->discard) ||
	    evd->policy == DAT_UPCALL_DISABLE || evd->policy == DAT_UPCALL_NOTIFY)
		return false;
	if ((evd == half->request_evd && ring_owes(half->sq)) ||
	    (evd == half->recv_evd && ring_owes(half->rq)))
		return true;
	for (i = 0; i < evd->store_count; i++) {
		if (event_of(&evd->slots[(evd->store_head + i) % evd->store_size], half))
			return true;
	}
	return false;
}

/**
 * kdapl_evd_hurry - what there is of a half starts upcalls, signalled or not
 * @evd: one of its EVDs
 * @half: half that has ended
 *
 * Context: any, without evd->lock.
 */
void kdapl_evd_hurry(struct kdapl_evd *evd, const struct kdapl_half *half)
{
	struct kdapl_event *ev;
	unsigned long flags;
	u32 i, end = 0;

	spin_lock_irqsave(&evd->lock, flags);
	kdapl_evd_sweep_locked(evd, SETTLE_PIECE, false);
	for (i = 0; i < evd->store_count; i++) {
		if (event_of(&evd->slots[(evd->store_head + i) % evd->store_size], half))
			end = i + 1;
	}
	for (i = 0; i < end; i++) {
		ev = &evd->slots[(evd->store_head + i) % evd->store_size];
		evd->store_signalled += !ev->signalled;
		ev->signalled = true;
	}
	spin_unlock_irqrestore(&evd->lock, flags);
	kdapl_evd_sched(evd);
}

/**
 * kdapl_ring_bury - nothing of a ring will be reported any more
 * @ring: of a half that has ended
 *
 * What posting calls put there later is nobody's.
 *
 * Context: may sleep.
 * Return: how many completions it had to report.
 */
u32 kdapl_ring_bury(struct kdapl_ring *ring)
{
	struct kdapl_evd *evd = kdapl_cq_evd_get(ring->cq);
	unsigned int status;
	u32 pos, n = 0;

	if (!evd)
		return 0;
	spin_lock_irq(&evd->lock);
	ring->dead = true;
	list_del_init(&ring->ready);
	for (pos = ring->tail; pos != READ_ONCE(ring->head); pos++) {
		const struct kdapl_wr *wr = &ring->wr[pos & ring->mask];

		n += !evd->discard && wr_outcome(ring, wr, &status) && wr_reported(wr, status);
	}
	spin_unlock_irq(&evd->lock);
	kdapl_obj_put(&evd->obj);
	return n;
}

/**
 * kdapl_evd_arm - ask for an interrupt with the next completion
 * @evd: the EVD
 *
 * Return: true when something is there already and the engine must run again.
 */
bool kdapl_evd_arm(struct kdapl_evd *evd)
{
	enum ib_cq_notify_flags flags = IB_CQ_REPORT_MISSED_EVENTS;
	bool missed = false;
	struct kdapl_cq *cq;

	spin_lock_irq(&evd->lock);
	if (evd->closing)
		goto out;
	if (!kdapl_evd_calls(evd) && !evd->discard) {
		if (!(evd->ending || evd->watching) || !evd_may_park(evd, evd->ending))
			goto out;
	} else if (kdapl_evd_held_up(evd)) {
		goto out;
	} else if (evd->store_signalled) {
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
out:
	spin_unlock_irq(&evd->lock);
	return missed;
}

/**
 * kdapl_ring_ready - a ring may have entries to report
 * @ring: the ring
 *
 * Context: any, without ring->lock.
 */
void kdapl_ring_ready(struct kdapl_ring *ring)
{
	struct kdapl_evd *evd;
	unsigned long flags;

	rcu_read_lock();
	evd = rcu_dereference(ring->cq->evd);
	if (evd) {
		spin_lock_irqsave(&evd->lock, flags);
		ring_mark_ready(evd, ring);
		spin_unlock_irqrestore(&evd->lock, flags);
		kdapl_evd_sched(evd);
	}
	rcu_read_unlock();
}

/* The EVD is freed: nobody reports, and nobody else looks at the ring. */
static void ring_orphan_end(struct kdapl_ring *ring)
{
	WRITE_ONCE(ring->ended, true);
	ring_settle_all(ring);
	if (unlikely(ring->sinks))
		ring_show_rest(ring);
}

/**
 * kdapl_ring_ended - no native completion of this ring will come any more?
 * @ring: a ring of a half that is stopping
 *
 * Also finds the end where no completion announces it: nothing was posted.
 *
 * Context: may sleep.
 */
bool kdapl_ring_ended(struct kdapl_ring *ring)
{
	struct kdapl_evd *evd = kdapl_cq_evd_get(ring->cq);

	if (!evd) {
		ring_orphan_end(ring);
		return true;
	}
	spin_lock_irq(&evd->lock);
	ring->odd |= KDAPL_ODD_EVER;	/* each completion may be the last one now */
	if (ring->recv)
		ring_check_recv_end(evd, ring);
	else if (READ_ONCE(ring->drained) || ring->tail == READ_ONCE(ring->head))
		ring_end(evd, ring);
	spin_unlock_irq(&evd->lock);
	kdapl_evd_sched(evd);	/* receives that came before the connection may wait */
	kdapl_obj_put(&evd->obj);
	return READ_ONCE(ring->ended);
}

/* Store an event that is in hand already. Returns false when it is lost. */
static bool evd_keep(struct kdapl_evd *evd, const struct kdapl_event *ev)
{
	if (!evd->discard && kdapl_evd_store(evd, ev))
		return true;
	kdapl_event_release(ev);
	return evd->discard;
}

/*
 * Take off a CQ what it holds now, even if nobody has dequeued for so long that
 * the store is full. Returns false when something was lost. evd->lock held.
 */
static bool evd_drain(struct kdapl_evd *evd, struct kdapl_cq *cq)
{
	int left = cq->size;
	struct kdapl_event ev;
	bool kept = true;

	for (;;) {
		while (evd->batch_pos != evd->batch_n) {
			if (wc_event(evd, &evd->batch[evd->batch_pos++], &ev))
				kept &= evd_keep(evd, &ev);
		}
		/* other QPs may go on completing there */
		if (left <= 0 || !evd_poll_cq(evd, cq))
			return kept;
		left -= evd->batch_n;
	}
}

/**
 * kdapl_ring_force_end - the QP is destroyed: take what is left on the CQ
 * @ring: a ring of a stopped half
 * @lost: what had no completion may not have happened: report it FLUSHED
 *
 * Context: may sleep.
 */
void kdapl_ring_force_end(struct kdapl_ring *ring, bool lost)
{
	struct kdapl_evd *evd = kdapl_cq_evd_get(ring->cq);
	struct kdapl_event ev;
	bool kept;

	if (!evd) {
		ring_orphan_end(ring);
		return;
	}
	spin_lock_irq(&evd->lock);
	/* the batch and the CQ still point into the ring, or the SRQ */
	kept = evd_drain(evd, ring->cq);
	/* messages that waited for the connection come before its end */
	while (ring->recv && kdapl_evd_room(evd) && ring_next(ring, &ev))
		kept &= evd_keep(evd, &ev);
	ring->lost |= lost;
	ring_end(evd, ring);
	spin_unlock_irq(&evd->lock);
	if (!kept) {
		pr_err_ratelimited("%s: an EVD nobody dequeues is full, completions are lost\n",
				   evd->obj.ia->name);
		kdapl_ia_async(evd->obj.ia, evd->obj.handle, DAT_ASYNC_ERROR_EVD_OVERFLOW,
			       DAT_EVD_OVERFLOW_ERROR);
	}
	kdapl_evd_sched(evd);
	kdapl_obj_put(&evd->obj);
}

/* A core helper polls the CQ and calls back: put the event in its place. */
static void evd_foreign_wc(struct ib_cq *cq, struct ib_wc *wc)
{
	struct kdapl_cq *kcq = cq->cq_context;
	struct kdapl_evd *evd = kdapl_cq_evd_get(kcq);
	struct kdapl_event ev;
	unsigned long flags;

	if (!evd)
		return;
	spin_lock_irqsave(&evd->lock, flags);
	if (wc_event(evd, wc, &ev))
		evd_keep(evd, &ev);
	spin_unlock_irqrestore(&evd->lock, flags);
	kdapl_evd_sched(evd);
	kdapl_obj_put(&evd->obj);
}

/**
 * kdapl_wr_done - completion of one of our work requests outside the EVD's loop
 * @cq: CQ
 * @wc: completion
 *
 * Normally only compared with; called when a core helper polls the CQ.
 */
void kdapl_wr_done(struct ib_cq *cq, struct ib_wc *wc)
{
	evd_foreign_wc(cq, wc);
}

/**
 * kdapl_buf_done - the same for a buffer of an SRQ
 * @cq: CQ
 * @wc: completion
 */
void kdapl_buf_done(struct ib_cq *cq, struct ib_wc *wc)
{
	evd_foreign_wc(cq, wc);
}

/**
 * kdapl_evd_watch - must the receive EVD of a half be polled without being asked?
 * @half: half with an SRQ
 *
 * Watermarks count buffers as they arrive, also while nobody dequeues.
 *
 * Context: any, without any lock of an EP or EVD.
 */
void kdapl_evd_watch(struct kdapl_half *half)
{
	struct kdapl_evd *evd = half->recv_evd;
	unsigned long flags;
	bool want;

	spin_lock_irqsave(&evd->lock, flags);
	want = !READ_ONCE(half->discard) &&
	       (READ_ONCE(half->pool->low_armed) ||
		READ_ONCE(half->ep->soft.value) != DAT_WATERMARK_INFINITE ||
		READ_ONCE(half->ep->hard.value) != DAT_WATERMARK_INFINITE);
	if (want != half->watched) {
		evd->watching += want ? 1 : -1;
		half->watched = want;
		kdapl_evd_set_plain(evd);
	}
	spin_unlock_irqrestore(&evd->lock, flags);
	if (want)
		kdapl_evd_sched(evd);
}
