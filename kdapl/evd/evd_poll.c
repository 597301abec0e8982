// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Taking events: the backlog, the work queues, the batch, the CQs.
 *
 * Everything here runs under evd->lock. A work completion leads through its
 * wr_cqe to the work queue entry the post left behind and from there, by the entry's
 * index, to the work queue and the connection; wc->qp is never looked at, since
 * the QP may be gone.
 *
 * On devices that complete in order, a send completion for entry k reports k
 * and reclaims everything up to it: what lies before k had no completion, so
 * it was suppressed and succeeded. Where that does not hold (soft-iWARP
 * completes Reads out of order), or where a completion may not be reported yet
 * (a message that arrived before ESTABLISHED), the entry is marked done and
 * the work queue is reported from its tail, in post order.
 */
#include <linux/prefetch.h>
#include <linux/rcupdate.h>

#include "evd.h"
#include "../core/trace.h"

/* Silent completions looked at in one go, under the lock. */
#define MAX_SILENT	256

/* Events moved into the backlog in one go, under the lock. */
#define RETIRE_PIECE	64

static void event_bind(struct kdapl_event *ev, const struct kdapl_wq *wq,
		       const struct kdapl_wqe *wr, unsigned int status)
{
	DAT_RMR_BIND_COMPLETION_EVENT_DATA *bind = &ev->data.rmr_completion_event_data;

	ev->number = DAT_RMR_BIND_COMPLETION_EVENT;
	bind->rmr_handle = wq->slot[wr->index].handle;
	bind->user_cookie.as_64 = wr->cookie;
	bind->status = status;
}

/* What failed was no transfer: say so, unless it was not tried. */
static unsigned int memop_status(const struct kdapl_wqe *wr, unsigned int status)
{
	if (status == DAT_DTO_SUCCESS ||
	    (status == DAT_DTO_ERR_FLUSHED && !(wr->flags & KDAPL_WQE_BROKEN)))
		return status;
	return wr->op == DAT_DTO_BIND_MW ? DAT_RMR_OPERATION_FAILED : DAT_DTO_ERR_LOCAL_MM_ERROR;
}

/* A completion the consumer hears of. Under the lock of the EVD. */
static void event_note(struct kdapl_wq *wq, unsigned int op, u64 cookie, u32 length,
		       unsigned int status)
{
	DAT_EP_HANDLE ep = wq->conn->handle;

	if (likely(status == DAT_DTO_SUCCESS)) {
		trace_kdapl_completion(ep, op, cookie, length, status);
	} else if (status == DAT_DTO_ERR_FLUSHED) {
		WRITE_ONCE(wq->flushed, wq->flushed + 1);
		kdapl_count(flushed);
		trace_kdapl_completion_flushed(ep, op, cookie, 0, status);
	} else {
		WRITE_ONCE(wq->failed, wq->failed + 1);
		kdapl_count(failed);
		if (!wq->error)
			WRITE_ONCE(wq->error, status);
		trace_kdapl_completion_failed(ep, op, cookie, 0, status);
	}
}

static void event_dto(struct kdapl_event *ev, struct kdapl_wq *wq, const struct kdapl_wqe *wr,
		      unsigned int status)
{
	DAT_DTO_COMPLETION_EVENT_DATA *dto = &ev->data.dto_completion_event_data;
	u32 length = wr->length;

	ev->conn = wq->conn;
	ev->buf = NULL;
	ev->number = DAT_DTO_COMPLETION_EVENT;
	ev->signalled = status != DAT_DTO_SUCCESS ||
			!(wr->flags & DAT_COMPLETION_UNSIGNALLED_FLAG);
	if (unlikely(wr->op >= DAT_DTO_BIND_MW)) {
		status = memop_status(wr, status);
		length = 0;
	}
	if (unlikely(wr->op == DAT_DTO_BIND_MW)) {
		event_bind(ev, wq, wr, status);
		event_note(wq, wr->op, wr->cookie, 0, status);
		return;
	}
	dto->ep_handle = wq->conn->handle;
	dto->user_cookie.as_64 = wr->cookie;
	dto->status = status;
	dto->transfered_length = status == DAT_DTO_SUCCESS ? length : 0;
	dto->operation = wr->op;
	dto->rmr_context = 0;
	if (unlikely(wq->recv && (wr->flags & KDAPL_WQE_INVALIDATED))) {
		dto->operation = DAT_DTO_RECEIVE_WITH_INVALIDATE;
		dto->rmr_context = wr->key;
	}
	event_note(wq, dto->operation, wr->cookie, dto->transfered_length, status);
}

static void event_buf(struct kdapl_event *ev, struct kdapl_conn *conn, struct kdapl_buf *buf)
{
	DAT_DTO_COMPLETION_EVENT_DATA *dto = &ev->data.dto_completion_event_data;
	bool inv = buf->flags & KDAPL_WQE_INVALIDATED;

	ev->conn = conn;
	ev->buf = buf;
	ev->number = DAT_DTO_COMPLETION_EVENT;
	ev->signalled = true;	/* SRQ-POST-05; solicited wait is a matter of arming */
	dto->ep_handle = conn->handle;
	dto->user_cookie.as_64 = buf->cookie;
	dto->status = buf->status;
	dto->transfered_length = buf->length;
	dto->operation = inv ? DAT_DTO_RECEIVE_WITH_INVALIDATE : DAT_DTO_RECEIVE;
	dto->rmr_context = inv ? buf->key : 0;
	event_note(conn->rq, dto->operation, buf->cookie, buf->length, buf->status);
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
	ev->conn->held--;
	kdapl_buf_free(ev->buf);
}

/* Would this finished entry be an event? */
static bool wr_reported(const struct kdapl_wqe *wr, unsigned int status)
{
	if (wr->op >= KDAPL_OP_INV)
		return false;
	return status != DAT_DTO_SUCCESS || !(wr->flags & DAT_COMPLETION_SUPPRESS_FLAG);
}

/* Does it become one? */
static bool wr_visible(const struct kdapl_wq *wq, const struct kdapl_wqe *wr,
		       unsigned int status)
{
	struct kdapl_conn *conn = wq->conn;

	if (!wr_reported(wr, status))
		return false;
	if (likely(!READ_ONCE(conn->discard)))
		return true;
	atomic_inc(&conn->dropped);
	return false;
}

/*
 * An operation on an LMR or RMR has completed, or never will: report to the object how it
 * ended, once.
 */
static void wqe_retire(struct kdapl_wq *wq, struct kdapl_wqe *wr, unsigned int status)
{
	enum kdapl_outcome outcome = KDAPL_UNKNOWN;
	union kdapl_memop *slot;
	struct kdapl_obj *obj;

	if (wq->recv || likely(!(wr->flags & KDAPL_WQE_OP_PENDING)))
		return;
	wr->flags &= ~KDAPL_WQE_OP_PENDING;
	slot = &wq->slot[wr->index];
	obj = slot->obj;
	slot->handle = obj->handle;
	wq->memops_done++;
	if (status == DAT_DTO_SUCCESS)
		outcome = KDAPL_DONE;
	else if (READ_ONCE(wr->state) == KDAPL_WQE_SOFT)
		outcome = KDAPL_NEVER;
	if (wr->op == DAT_DTO_LMR_FMR)
		kdapl_lmr_op_done(container_of(obj, struct kdapl_lmr, obj), KDAPL_LMR_REG,
				  wr->length, outcome);
	else if (wr->op == DAT_DTO_LMR_INVALIDATE)
		kdapl_lmr_op_done(container_of(obj, struct kdapl_lmr, obj), KDAPL_LMR_INV,
				  wr->length, outcome);
	else if (wr->op == KDAPL_OP_INV)
		kdapl_rmr_inv_done(container_of(obj, struct kdapl_rmr, obj), outcome);
	else
		kdapl_rmr_op_done(container_of(obj, struct kdapl_rmr, obj), outcome);
	kdapl_obj_put(obj);
}

static bool wq_unretired(const struct kdapl_wq *wq)
{
	return wq->memops_done != READ_ONCE(wq->memops);
}

/* Give an entry back to the poster. */
static void wq_advance(struct kdapl_wq *wq, const struct kdapl_wqe *wr, u32 tail)
{
	if (!wq->recv)
		wq->dtos_done = wr->seq;
	/* tail last: pairs with the acquire of the poster, which reads it first */
	smp_store_release(&wq->tail, tail);
}

static void wq_mark_ready(struct kdapl_evd *evd, struct kdapl_wq *wq)
{
	if (list_empty(&wq->ready) && likely(!wq->dead))
		list_add_tail(&wq->ready, &evd->ready);
}

/* What an entry was to fill it has filled, or not. */
static void wq_show(struct kdapl_wq *wq, const struct kdapl_wqe *wr, bool done, u32 length)
{
	struct kdapl_ia *ia = wq->ia;

	if (done)
		kdapl_sinks_filled(wq->sinks, wr->index, ia, length);
	else
		kdapl_sinks_failed(wq->sinks, wr->index, ia);
}

/*
 * How the entry at the tail ended, or one behind it in a work queue that has ended.
 * False: not known yet.
 */
static bool wr_outcome(const struct kdapl_wq *wq, const struct kdapl_wqe *wr,
		       unsigned int *status)
{
	*status = DAT_DTO_SUCCESS;
	switch (READ_ONCE(wr->state)) {
	case KDAPL_WQE_DONE:
		*status = wr->status;
		break;
	case KDAPL_WQE_SOFT:
		if (!wq->ended)
			return false;
		*status = DAT_DTO_ERR_FLUSHED;
		break;
	default:
		if (wq->ended) {
			/* No completion, so it was suppressed and succeeded. */
			if (wq->lost || (wr->flags & KDAPL_WQE_SIGNALED) || wq->recv)
				*status = DAT_DTO_ERR_FLUSHED;
		} else if (!wq->ooo || (wr->flags & KDAPL_WQE_SIGNALED) ||
			   (s32)(wq->sent - wq->tail) <= 0) {
			return false;
		}
	}
	return true;
}

/* Freeing an LMR must not wait for a consumer that does not dequeue. */
static void wq_retire_all(struct kdapl_wq *wq)
{
	/* pairs with the release of the poster: entries before head are complete */
	u32 head = smp_load_acquire(&wq->head);
	unsigned int status;
	u32 pos;

	for (pos = wq->tail; pos != head && wq_unretired(wq); pos++) {
		struct kdapl_wqe *wr = &wq->wr[pos & wq->mask];

		wr_outcome(wq, wr, &status);
		wqe_retire(wq, wr, status);
	}
}

/*
 * The device has let go of what it was to fill and has not given back, in a work queue that has
 * ended.
 */
static void wq_show_rest(struct kdapl_wq *wq)
{
	/* pairs with the release of the poster: entries before head are complete */
	u32 head = smp_load_acquire(&wq->head);
	unsigned int status;
	bool done;
	u32 pos;

	for (pos = wq->tail; pos != head; pos++) {
		const struct kdapl_wqe *wr = &wq->wr[pos & wq->mask];

		done = wr_outcome(wq, wr, &status) && status == DAT_DTO_SUCCESS;
		if (wq->recv || wr->op == DAT_DTO_RDMA_READ)
			wq_show(wq, wr, done, wr->length);
	}
}

static void wq_end(struct kdapl_evd *evd, struct kdapl_wq *wq)
{
	if (wq->ended)
		return;
	WRITE_ONCE(wq->ended, true);
	wq->slow |= KDAPL_SLOW_EVER;
	smp_mb();	/* before head is read again; pairs with the one in post_flush() */
	wq_retire_all(wq);
	if (unlikely(wq->sinks))
		wq_show_rest(wq);
	wq_mark_ready(evd, wq);
	mod_delayed_work(kdapl_misc_wq, &wq->conn->end_work, 0);
}

/* A receive queue has ended when the device gave back all it was given. */
static void wq_check_recv_end(struct kdapl_evd *evd, struct kdapl_wq *wq)
{
	/* pairs with the release in kdapl_wq_set_mode(): native is final then */
	if (smp_load_acquire(&wq->mode) == KDAPL_WQ_SOFT && !wq->conn->pool &&
	    kdapl_conn_stopping(wq->conn) && wq->reaped == READ_ONCE(wq->native))
		wq_end(evd, wq);
}

/*
 * The marker has completed: is everything posted before it done? Where Reads
 * complete late, some may still be under way.
 */
static void wq_check_marker(struct kdapl_evd *evd, struct kdapl_wq *wq)
{
	const struct kdapl_wqe *wr;
	u32 pos;

	if (!wq->marker_done)
		return;
	for (pos = wq->tail; wq->ooo && pos != wq->marker_pos; pos++) {
		wr = &wq->wr[pos & wq->mask];
		if (wr->state == KDAPL_WQE_NATIVE && (wr->flags & KDAPL_WQE_SIGNALED))
			return;
	}
	wq->marker_done = false;
	if (kdapl_conn_stopping(wq->conn)) {
		wq_end(evd, wq);	/* marker stays set: nobody may post another */
	} else {
		WRITE_ONCE(wq->marker, false);
		kdapl_conn_drained(wq->conn);
	}
}

/* The next buffer of an SRQ that was filled before the connection was known. */
static bool early_next(struct kdapl_conn *conn, struct kdapl_event *ev)
{
	struct kdapl_buf *buf;

	while (READ_ONCE(conn->state) >= KDAPL_CONN_UP) {
		buf = list_first_entry_or_null(&conn->early, struct kdapl_buf, node);
		if (!buf)
			break;
		list_del(&buf->node);
		event_buf(ev, conn, buf);
		if (!READ_ONCE(conn->discard))
			return true;
		kdapl_event_release(ev);
		atomic_inc(&conn->dropped);
	}
	return false;
}

/*
 * Report the next entry of a work queue from its tail. Used when completions do not
 * map one to one to entries: out of order devices, held receives, the end.
 */
static bool wq_next(struct kdapl_wq *wq, struct kdapl_event *ev)
{
	if (unlikely(wq->recv && wq->conn->pool))
		return early_next(wq->conn, ev);
	/* pairs with the release of the poster: entries before head are complete */
	while (wq->tail != smp_load_acquire(&wq->head)) {
		struct kdapl_wqe *wr = &wq->wr[wq->tail & wq->mask];
		unsigned int status;
		bool visible;

		if (!wr_outcome(wq, wr, &status))
			return false;
		/* received before the connection is known */
		if (wq->recv && READ_ONCE(wr->state) == KDAPL_WQE_DONE &&
		    READ_ONCE(wq->conn->state) < KDAPL_CONN_UP)
			return false;
		wqe_retire(wq, wr, status);
		visible = wr_visible(wq, wr, status);
		if (visible)
			event_dto(ev, wq, wr, status);
		if (wr->op == DAT_DTO_RDMA_READ && !wq->recv)
			wq->reads_done++;
		wq_advance(wq, wr, wq->tail + 1);
		if (visible)
			return true;
	}
	return false;
}

static void wr_failed(struct kdapl_wq *wq, enum ib_wc_status status)
{
	struct kdapl_conn *conn = wq->conn;

	/* our own move to ERR flushes; anything else happened before it */
	if (kdapl_conn_stopping(conn) && status == IB_WC_WR_FLUSH_ERR)
		return;
	if (READ_ONCE(conn->state) < KDAPL_CONN_UP) {
		/* The CM decides how the attempt ends; remember it if it succeeds. */
		if (status != IB_WC_WR_FLUSH_ERR || !conn->dev->iwarp)
			WRITE_ONCE(conn->wc_failed, true);
		return;
	}
	if (status == IB_WC_WR_FLUSH_ERR && conn->dev->iwarp)
		kdapl_conn_end(conn, KDAPL_END_SUSPECT);
	else
		kdapl_conn_end(conn, DAT_CONNECTION_EVENT_BROKEN);
}

/* A message before the CM's word that there is a connection. */
static void early_recv(struct kdapl_conn *conn, enum ib_wc_status status)
{
	if (status != IB_WC_SUCCESS || !READ_ONCE(conn->passive))
		return;
	/* TCP loses no answer: on iWARP the CM's word always comes */
	if (!conn->dev->iwarp) {
		queue_delayed_work(kdapl_misc_wq, &conn->est_work, KDAPL_EST_TIME);
	} else if (conn->dev->caps.reply_overrun && !READ_ONCE(conn->spoken)) {
		/* before the work: it, or the CM's handler after it, sees this (D-86) */
		WRITE_ONCE(conn->spoken, true);
		mod_delayed_work(kdapl_misc_wq, &conn->est_work, 0);
	}
}

/* A Send of the peer has invalidated a key. */
static noinline void recv_invalidated(struct kdapl_conn *conn, u32 rkey)
{
	if (kdapl_mr_invalidated(conn->rq->ia, &conn->dev->caps, rkey))
		kdapl_conn_end(conn, DAT_CONNECTION_EVENT_BROKEN);
}

static bool recv_done(struct kdapl_evd *evd, struct kdapl_wq *wq, struct kdapl_wqe *wr,
		      const struct ib_wc *wc, struct kdapl_event *ev)
{
	u32 pos = wq->tail + ((wr->index - wq->tail) & wq->mask);
	bool visible;

	wq->reaped++;
	if (unlikely(wq->sinks))
		wq_show(wq, wr, wc->status == IB_WC_SUCCESS, wc->byte_len);
	wr->status = kdapl_wc_recv_status(wc->status);
	if (likely(wc->status == IB_WC_SUCCESS)) {
		wr->length = wc->byte_len;
		if (unlikely(wc->wc_flags & IB_WC_WITH_INVALIDATE)) {
			wr->flags |= KDAPL_WQE_INVALIDATED;
			wr->key = wc->ex.invalidate_rkey;
			recv_invalidated(wq->conn, wr->key);
		}
	}
	if (unlikely(READ_ONCE(wq->conn->state) < KDAPL_CONN_UP || pos != wq->tail)) {
		WRITE_ONCE(wr->state, KDAPL_WQE_DONE);
		/* with the one at the tail done they are just early, and will be drained */
		if (pos != wq->tail &&
		    wq->wr[wq->tail & wq->mask].state != KDAPL_WQE_DONE)
			wq->slow |= KDAPL_SLOW_EVER;
		early_recv(wq->conn, wc->status);
		wq_mark_ready(evd, wq);
		wq_check_recv_end(evd, wq);
		return false;
	}
	visible = wr_visible(wq, wr, wr->status);
	if (visible)
		event_dto(ev, wq, wr, wr->status);
	wq_advance(wq, wr, pos + 1);
	/* one that was flushed out of order may wait behind it */
	if (unlikely(wq->wr[wq->tail & wq->mask].state == KDAPL_WQE_DONE &&
		     wq->tail != READ_ONCE(wq->head)))
		wq_mark_ready(evd, wq);
	wq_check_recv_end(evd, wq);
	return visible;
}

/* A buffer on a device that does not see memory as the CPU does. */
static noinline void buf_sync(struct kdapl_buf *buf, struct kdapl_conn *conn,
			      const struct ib_wc *wc)
{
	struct kdapl_sinks *sinks = kdapl_buf_pool(buf)->sinks;

	if (!sinks)
		return;
	if (conn && wc->status == IB_WC_SUCCESS)
		kdapl_sinks_filled(sinks, buf->index, conn->rq->ia, wc->byte_len);
	else
		kdapl_buf_failed(buf);
}

/* A buffer of an SRQ comes back, taken by the QP of one of the EPs that use it. */
static bool buf_done(struct kdapl_evd *evd, const struct ib_wc *wc, struct kdapl_event *ev)
{
	struct kdapl_buf *buf = container_of(wc->wr_cqe, struct kdapl_buf, cqe);
	struct kdapl_conn *conn = kdapl_buf_taken(buf, wc->qp);

	if (unlikely(!conn || conn->dev->dma != KDAPL_DMA_SAME)) {
		buf_sync(buf, conn, wc);
		if (!conn) {
			kdapl_buf_free(buf);
			return false;
		}
	}
	buf->flags = 0;
	if (unlikely(wc->status == IB_WC_SUCCESS && (wc->wc_flags & IB_WC_WITH_INVALIDATE))) {
		buf->flags = KDAPL_WQE_INVALIDATED;
		buf->key = wc->ex.invalidate_rkey;
		recv_invalidated(conn, buf->key);
	}
	if (unlikely(READ_ONCE(conn->rq->ended) || READ_ONCE(conn->discard))) {
		kdapl_buf_free(buf);
		return false;
	}
	buf->status = kdapl_wc_recv_status(wc->status);
	buf->length = 0;
	if (likely(wc->status == IB_WC_SUCCESS))
		buf->length = wc->byte_len;
	else
		wr_failed(conn->rq, wc->status);
	conn->held++;
	kdapl_conn_held(conn);
	if (unlikely(READ_ONCE(conn->state) < KDAPL_CONN_UP || !list_empty(&conn->early))) {
		list_add_tail(&buf->node, &conn->early);
		early_recv(conn, wc->status);
		wq_mark_ready(evd, conn->rq);
		return false;
	}
	event_buf(ev, conn, buf);
	return true;
}

/* What lies before the one that has completed was suppressed and succeeded. */
static void wq_retire_to(struct kdapl_wq *wq, u32 end, unsigned int status)
{
	u32 pos;

	for (pos = wq->tail; pos != end; pos++)
		wqe_retire(wq, &wq->wr[pos & wq->mask], DAT_DTO_SUCCESS);
	wqe_retire(wq, &wq->wr[end & wq->mask], status);
}

/*
 * Show the CPU what Reads up to the one that has completed have brought; those before it have
 * no completion of their own, if the device completes in order.
 */
static void wq_show_reads(struct kdapl_wq *wq, u32 end, bool done)
{
	u32 pos = wq->ooo ? end : wq->shown;

	for (; (s32)(end - pos) >= 0; pos++) {
		const struct kdapl_wqe *wr = &wq->wr[pos & wq->mask];

		if (wr->op == DAT_DTO_RDMA_READ)
			wq_show(wq, wr, pos != end || done, wr->length);
	}
	wq->shown = end + 1;
}

static bool request_done(struct kdapl_evd *evd, struct kdapl_wq *wq, struct kdapl_wqe *wr,
			 const struct ib_wc *wc, struct kdapl_event *ev)
{
	u32 pos = wq->tail + ((wr->index - wq->tail) & wq->mask);
	unsigned int status = kdapl_wc_status(wc->status);
	u32 sent = wq->tail;
	bool visible;

	if (unlikely(wq->sinks))
		wq_show_reads(wq, pos, status == DAT_DTO_SUCCESS);
	if (unlikely(wq->ooo || wr->op == KDAPL_OP_MARKER)) {
		wr->status = status;
		WRITE_ONCE(wr->state, KDAPL_WQE_DONE);
		/* A Read whose answer came was sent after everything before it. */
		if (wr->op != DAT_DTO_RDMA_READ)
			sent = pos + 1;
		else if (status == DAT_DTO_SUCCESS)
			sent = pos;
		if ((s32)(sent - wq->sent) > 0)
			wq->sent = sent;
		if (wr->op == KDAPL_OP_MARKER)
			wq->marker_done = true;
		wq_check_marker(evd, wq);
		wq_mark_ready(evd, wq);
		return false;
	}
	if (unlikely(wq_unretired(wq)))
		wq_retire_to(wq, pos, status);
	visible = wr_visible(wq, wr, status);
	if (visible)
		event_dto(ev, wq, wr, status);
	wq_advance(wq, wr, pos + 1);
	return visible;
}

static bool wc_event(struct kdapl_evd *evd, struct ib_wc *wc, struct kdapl_event *ev)
{
	struct kdapl_wq *wq;
	struct kdapl_wqe *wr;

	if (unlikely(wc->wr_cqe->done != kdapl_wqe_done)) {
		if (wc->wr_cqe->done == kdapl_buf_done)
			return buf_done(evd, wc, ev);
		wc->wr_cqe->done(evd->cur, wc);
		return false;
	}
	wr = container_of(wc->wr_cqe, struct kdapl_wqe, cqe);
	wq = kdapl_wqe_wq(wr);
	if (WARN_ON_ONCE(wq->ended))	/* the device had given everything back */
		return false;
	/* a marker proves what it has to whatever its status is (D-09) */
	if (unlikely(wc->status != IB_WC_SUCCESS && wr->op != KDAPL_OP_MARKER)) {
		wr_failed(wq, wc->status);
		/* with the old key's end the bind has failed, not just not been tried */
		if (wr->op == KDAPL_OP_INV && wc->status != IB_WC_WR_FLUSH_ERR)
			wq->wr[(wr->index + 1) & wq->mask].flags |= KDAPL_WQE_BROKEN;
	}
	return wq->recv ? recv_done(evd, wq, wr, wc, ev) :
			    request_done(evd, wq, wr, wc, ev);
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

			if (wq_next(wq, ev))
				return true;
			list_del_init(&wq->ready);
			if (READ_ONCE(wq->conn->state) >= KDAPL_CONN_UP)
				wq->slow &= ~KDAPL_SLOW_EARLY;
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
 * kdapl_evd_room - can the backlog take another completion?
 * @evd: the EVD; evd->lock held
 *
 * Completions and events of other streams have a share each; the one entry
 * between them is for the last word of the asynchronous stream.
 */
bool kdapl_evd_room(struct kdapl_evd *evd)
{
	u32 others = max_t(int, evd->qlen - (int)evd->backlog_others, 0);

	return evd->backlog_count + others + 1 < evd->backlog_size;
}

/* evd->lock held. */
static void evd_append(struct kdapl_evd *evd, const struct kdapl_event *ev)
{
	u32 pos = evd->backlog_head + evd->backlog_count;

	if (pos >= evd->backlog_size)
		pos -= evd->backlog_size;
	kdapl_event_copy(&evd->slots[pos], ev);
	evd->backlog_count++;
	evd->backlog_others += event_other(ev);
	evd->backlog_signalled += ev->signalled;
}

/* evd->lock held: no room for an event of another stream than DTO and RMR */
static bool evd_others_full(const struct kdapl_evd *evd)
{
	return evd->backlog_others >= evd->qlen || evd->closing;
}

/**
 * kdapl_evd_backlog_add - append an event to the backlog
 * @evd: the EVD; evd->lock held
 * @ev: the event
 *
 * Return: false when it does not fit: the backlog is full or, for events of
 * other streams than DTO and RMR, the consumer's queue length is reached.
 */
bool kdapl_evd_backlog_add(struct kdapl_evd *evd, const struct kdapl_event *ev)
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
	if (!evd->backlog_count)
		return kdapl_evd_poll(evd, ev);
	kdapl_event_copy(ev, &evd->slots[evd->backlog_head]);
	if (++evd->backlog_head == evd->backlog_size)
		evd->backlog_head = 0;
	evd->backlog_count--;
	evd->backlog_signalled -= ev->signalled;
	if (event_other(ev)) {
		evd->backlog_others--;
		evd->overflow = false;
	}
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
	stored = kdapl_evd_backlog_add(evd, ev);
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
	if (!evd->async_dead && !evd->closing && !kdapl_evd_backlog_add(evd, ev)) {
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

/* May a drain put another completion into the backlog? */
static bool evd_may_park(struct kdapl_evd *evd, bool teardown)
{
	if (!kdapl_evd_room(evd))
		return false;
	return teardown || evd->backlog_count - evd->backlog_others < evd->qlen + evd->reserve;
}

/**
 * kdapl_evd_drain_cqs_locked - move completions into the backlog
 * @evd: the EVD; evd->lock held
 * @budget: events to move at most
 * @teardown: use the part of the backlog that is reserved for ending connections;
 *	drains for the sake of a poster stop before it
 */
void kdapl_evd_drain_cqs_locked(struct kdapl_evd *evd, int budget, bool teardown)
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
			kdapl_evd_backlog_add(evd, &ev);
	}
}

/**
 * kdapl_evd_drain_cqs - the same, and tell the engine if it should run
 * @evd: the EVD
 * @budget: events to move at most
 * @teardown: see kdapl_evd_drain_cqs_locked()
 *
 * Context: any, without any lock of an EP.
 */
void kdapl_evd_drain_cqs(struct kdapl_evd *evd, int budget, bool teardown)
{
	unsigned long flags;
	bool sched;

	spin_lock_irqsave(&evd->lock, flags);
	kdapl_evd_drain_cqs_locked(evd, budget, teardown);
	sched = kdapl_evd_calls(evd) && evd->backlog_signalled;
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
 * kdapl_evd_retire - move what has arrived by now into the backlog
 * @evd: the EVD
 *
 * A piece at a time, and not more than its CQs can hold when the call begins;
 * what arrives meanwhile may stay where it is.
 *
 * Context: may sleep.
 */
void kdapl_evd_retire(struct kdapl_evd *evd)
{
	bool more;
	u32 count;
	int left;

	spin_lock_irq(&evd->lock);
	left = kdapl_evd_depth(evd);
	do {
		count = evd->backlog_count;
		kdapl_evd_drain_cqs_locked(evd, RETIRE_PIECE, false);
		more = evd->backlog_count != count || evd->again;
		left -= RETIRE_PIECE;
		spin_unlock_irq(&evd->lock);
		cond_resched();
		spin_lock_irq(&evd->lock);
	} while (more && left > 0);
	spin_unlock_irq(&evd->lock);
}

/**
 * kdapl_wq_drain_cq - take a few completions off the CQ of a work queue
 * @wq: looks full, or is asked about (D-05)
 *
 * Context: any, without any lock of an EP; RCU read side.
 */
void kdapl_wq_drain_cq(struct kdapl_wq *wq)
{
	struct kdapl_evd *evd = rcu_dereference(wq->cq->evd);

	if (evd)
		kdapl_evd_drain_cqs(evd, KDAPL_BATCH, false);
}

/**
 * kdapl_evd_ending - a connection starts or stops waiting for its last completions
 * @evd: the EVD
 * @delta: 1 or -1
 *
 * While any connection waits, the engine takes completions off the CQs even if
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

/* Connection events outlive their connection, so the EP tells whose they are. */
static bool event_connection_of(const struct kdapl_event *ev, DAT_EP_HANDLE ep)
{
	return kdapl_event_connection(ev) && kdapl_event_ep(ev) == ep;
}

static void wq_goes_slow(struct kdapl_evd *evd, struct kdapl_wq *wq)
{
	unsigned long flags;

	spin_lock_irqsave(&evd->lock, flags);
	wq->slow |= KDAPL_SLOW_EVER;
	spin_unlock_irqrestore(&evd->lock, flags);
}

/**
 * kdapl_conn_discard - completions that are taken from now on are nobody's
 * @conn: of an EP that is freed or reset, still attached to its EVDs
 *
 * From the first one that is dropped on all are: there is no gap in what is reported.
 *
 * Context: any, without any lock of an EVD.
 */
void kdapl_conn_discard(struct kdapl_conn *conn)
{
	/* first: the fast path does not check ->discard */
	wq_goes_slow(conn->request_evd, conn->sq);
	wq_goes_slow(conn->recv_evd, conn->rq);
	if (READ_ONCE(conn->state) == KDAPL_CONN_ENDED && !conn->discard)
		WRITE_ONCE(conn->owed, true);
	WRITE_ONCE(conn->discard, true);
}

/**
 * kdapl_evd_drop - forget the stored events of a connection
 * @evd: the EVD
 * @conn: whose events
 * @all_events: connection events too, not only DTO and RMR completions
 */
void kdapl_evd_drop(struct kdapl_evd *evd, struct kdapl_conn *conn, bool all_events)
{
	struct kdapl_buf *buf, *next;
	struct kdapl_event ev;
	unsigned long flags;
	bool overflow;
	u32 n;

	spin_lock_irqsave(&evd->lock, flags);
	overflow = evd->overflow;
	/* One turn of the backlog: take each event and put back what stays. */
	for (n = evd->backlog_count; n; n--) {
		kdapl_evd_take(evd, &ev);
		if (event_other(&ev)) {
			if (all_events && event_connection_of(&ev, conn->handle))
				continue;
		} else if (ev.conn == conn) {
			kdapl_event_release(&ev);
			atomic_inc(&conn->dropped);
			continue;
		}
		evd_append(evd, &ev);
	}
	evd->overflow = overflow && evd->backlog_others >= evd->qlen;
	if (conn->pool && evd == conn->recv_evd) {
		list_for_each_entry_safe(buf, next, &conn->early, node) {
			list_del(&buf->node);
			conn->held--;
			kdapl_buf_free(buf);
			atomic_inc(&conn->dropped);
		}
	}
	spin_unlock_irqrestore(&evd->lock, flags);
}

/* A completion of a DTO or RMR operation of this connection. */
static bool event_of(const struct kdapl_event *ev, const struct kdapl_conn *conn)
{
	return ev->conn == conn && !event_other(ev);
}

/* Has this work queue of a connection that has ended something to report? evd->lock held. */
static bool wq_owes(const struct kdapl_wq *wq)
{
	unsigned int status;
	u32 pos, head;

	if (wq->recv && wq->conn->pool)
		return !list_empty(&wq->conn->early);
	/* pairs with the release of the poster */
	head = smp_load_acquire(&wq->head);
	for (pos = wq->tail; pos != head; pos++) {
		const struct kdapl_wqe *wr = &wq->wr[pos & wq->mask];

		if (wr_outcome(wq, wr, &status) && wr_reported(wr, status))
			return true;
	}
	return false;
}

/**
 * kdapl_evd_owes - is a completion of a connection on its way to an upcall?
 * @evd: one of its EVDs; evd->lock held
 * @conn: connection that has ended, or is to be discarded
 *
 * What a consumer dequeues without upcalls is as good as delivered.
 *
 * Return: whether there is one.
 */
bool kdapl_evd_owes(struct kdapl_evd *evd, const struct kdapl_conn *conn)
{
	u32 i;

	lockdep_assert_held(&evd->lock);
	if (evd->closing || evd->discard || READ_ONCE(conn->discard) ||
	    evd->policy == DAT_UPCALL_DISABLE || evd->policy == DAT_UPCALL_NOTIFY)
		return false;
	if ((evd == conn->request_evd && wq_owes(conn->sq)) ||
	    (evd == conn->recv_evd && wq_owes(conn->rq)))
		return true;
	for (i = 0; i < evd->backlog_count; i++) {
		if (event_of(&evd->slots[(evd->backlog_head + i) % evd->backlog_size], conn))
			return true;
	}
	return false;
}

/**
 * kdapl_evd_hurry - what there is of a connection starts upcalls, signalled or not
 * @evd: one of its EVDs
 * @conn: connection that has ended
 *
 * Context: any, without evd->lock.
 */
void kdapl_evd_hurry(struct kdapl_evd *evd, const struct kdapl_conn *conn)
{
	struct kdapl_event *ev;
	unsigned long flags;
	u32 i, end = 0;

	spin_lock_irqsave(&evd->lock, flags);
	kdapl_evd_drain_cqs_locked(evd, RETIRE_PIECE, false);
	for (i = 0; i < evd->backlog_count; i++) {
		if (event_of(&evd->slots[(evd->backlog_head + i) % evd->backlog_size], conn))
			end = i + 1;
	}
	for (i = 0; i < end; i++) {
		ev = &evd->slots[(evd->backlog_head + i) % evd->backlog_size];
		evd->backlog_signalled += !ev->signalled;
		ev->signalled = true;
	}
	spin_unlock_irqrestore(&evd->lock, flags);
	kdapl_evd_sched(evd);
}

/**
 * kdapl_wq_bury - nothing of a work queue will be reported any more
 * @wq: of a connection that has ended
 *
 * What posting calls put there later is nobody's.
 *
 * Context: may sleep.
 * Return: how many completions it had to report.
 */
u32 kdapl_wq_bury(struct kdapl_wq *wq)
{
	struct kdapl_evd *evd = kdapl_cq_evd_get(wq->cq);
	unsigned int status;
	u32 pos, n = 0;

	if (!evd)
		return 0;
	spin_lock_irq(&evd->lock);
	wq->dead = true;
	list_del_init(&wq->ready);
	for (pos = wq->tail; pos != READ_ONCE(wq->head); pos++) {
		const struct kdapl_wqe *wr = &wq->wr[pos & wq->mask];

		n += !evd->discard && wr_outcome(wq, wr, &status) && wr_reported(wr, status);
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
out:
	spin_unlock_irq(&evd->lock);
	return missed;
}

/**
 * kdapl_wq_ready - a work queue may have entries to report
 * @wq: the work queue
 *
 * Context: any, without wq->lock.
 */
void kdapl_wq_ready(struct kdapl_wq *wq)
{
	struct kdapl_evd *evd;
	unsigned long flags;

	rcu_read_lock();
	evd = rcu_dereference(wq->cq->evd);
	if (evd) {
		spin_lock_irqsave(&evd->lock, flags);
		wq_mark_ready(evd, wq);
		spin_unlock_irqrestore(&evd->lock, flags);
		kdapl_evd_sched(evd);
	}
	rcu_read_unlock();
}

/* The EVD is freed: nobody reports, and nobody else looks at the work queue. */
static void wq_orphan_end(struct kdapl_wq *wq)
{
	WRITE_ONCE(wq->ended, true);
	wq_retire_all(wq);
	if (unlikely(wq->sinks))
		wq_show_rest(wq);
}

/**
 * kdapl_wq_ended - no native completion of this work queue will come any more?
 * @wq: a work queue of a connection that is stopping
 *
 * Also finds the end where no completion announces it: nothing was posted.
 *
 * Context: may sleep.
 */
bool kdapl_wq_ended(struct kdapl_wq *wq)
{
	struct kdapl_evd *evd = kdapl_cq_evd_get(wq->cq);

	if (!evd) {
		wq_orphan_end(wq);
		return true;
	}
	spin_lock_irq(&evd->lock);
	wq->slow |= KDAPL_SLOW_EVER;	/* each completion may be the last one now */
	if (wq->recv)
		wq_check_recv_end(evd, wq);
	else if (READ_ONCE(wq->drained) || wq->tail == READ_ONCE(wq->head))
		wq_end(evd, wq);
	spin_unlock_irq(&evd->lock);
	kdapl_evd_sched(evd);	/* receives that came before the connection may wait */
	kdapl_obj_put(&evd->obj);
	return READ_ONCE(wq->ended);
}

/* Store an event that is in hand already. Returns false when it is lost. */
static bool evd_keep(struct kdapl_evd *evd, const struct kdapl_event *ev)
{
	if (!evd->discard && kdapl_evd_backlog_add(evd, ev))
		return true;
	kdapl_event_release(ev);
	return evd->discard;
}

/*
 * Take off a CQ what it holds now, even if nobody has dequeued for so long that
 * the backlog is full. Returns false when something was lost. evd->lock held.
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
 * kdapl_wq_force_end - the QP is destroyed: take what is left on the CQ
 * @wq: a work queue of a stopped connection
 * @lost: what had no completion may not have happened: report it FLUSHED
 *
 * Context: may sleep.
 */
void kdapl_wq_force_end(struct kdapl_wq *wq, bool lost)
{
	struct kdapl_evd *evd = kdapl_cq_evd_get(wq->cq);
	struct kdapl_event ev;
	bool kept;

	if (!evd) {
		wq_orphan_end(wq);
		return;
	}
	spin_lock_irq(&evd->lock);
	/* the batch and the CQ still point into the work queue, or the SRQ */
	kept = evd_drain(evd, wq->cq);
	/* messages that waited for the connection come before its end */
	while (wq->recv && kdapl_evd_room(evd) && wq_next(wq, &ev))
		kept &= evd_keep(evd, &ev);
	wq->lost |= lost;
	wq_end(evd, wq);
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
 * kdapl_wqe_done - completion of one of our work requests outside the EVD's loop
 * @cq: CQ
 * @wc: completion
 *
 * Normally only compared with; called when a core helper polls the CQ.
 */
void kdapl_wqe_done(struct ib_cq *cq, struct ib_wc *wc)
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
 * kdapl_evd_watch - must the receive EVD of a connection be polled without being asked?
 * @conn: connection with an SRQ
 *
 * Watermarks count buffers as they arrive, also while nobody dequeues.
 *
 * Context: any, without any lock of an EP or EVD.
 */
void kdapl_evd_watch(struct kdapl_conn *conn)
{
	struct kdapl_evd *evd = conn->recv_evd;
	unsigned long flags;
	bool want;

	spin_lock_irqsave(&evd->lock, flags);
	want = !READ_ONCE(conn->discard) &&
	       (READ_ONCE(conn->pool->low_armed) ||
		READ_ONCE(conn->marks->soft.value) != DAT_WATERMARK_INFINITE ||
		READ_ONCE(conn->marks->hard.value) != DAT_WATERMARK_INFINITE);
	if (want != conn->watched) {
		evd->watching += want ? 1 : -1;
		conn->watched = want;
		kdapl_evd_set_default_policy(evd);
	}
	spin_unlock_irqrestore(&evd->lock, flags);
	if (want)
		kdapl_evd_sched(evd);
}
