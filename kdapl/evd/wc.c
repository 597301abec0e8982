// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Work completions: the slow path, which handles all of them. Events are made in report.c.
 *
 * Everything here runs under evd->lock. A work completion leads through its wr_cqe to the work
 * queue entry the post left behind and from there, by the entry's index, to the work queue and
 * the connection; wc->qp is never followed, since the QP may be gone.
 *
 * On devices that complete in order, a send completion for entry k reports k and reclaims
 * everything up to it: entries before k had no completion, so they were suppressed and
 * succeeded. There are three exceptions: on soft-iWARP this does not hold while a Read is under
 * way; what completes before ESTABLISHED is queued may not be reported yet; and what the end of a
 * connection has taken off the CQ may not fit into the backlog. In these cases the entry is marked
 * done, and the work queue is reported from its tail, in post order.
 */
#include "event.h"

/* An error completion ends the connection. */
static void wc_failed(struct kdapl_wq *wq, enum ib_wc_status status)
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

/* A message arrived before the CM has reported the connection. */
static void wc_early(struct kdapl_conn *conn, enum ib_wc_status status)
{
	if (status != IB_WC_SUCCESS || !READ_ONCE(conn->passive))
		return;
	/* TCP loses no MPA message: on iWARP the CM always reports the connection */
	if (!conn->dev->iwarp) {
		queue_delayed_work(kdapl_misc_wq, &conn->est_work, KDAPL_EST_TIME);
	} else if (conn->dev->caps.reply_overrun && !READ_ONCE(conn->spoken)) {
		/* set before the work is queued: est_work and a later CM event read it (D-86) */
		WRITE_ONCE(conn->spoken, true);
		mod_delayed_work(kdapl_misc_wq, &conn->est_work, 0);
	}
}

/*
 * What the message of a Receive has brought: the key that a Send has invalidated, or the immediate
 * data of a Write. That of a Send goes unreported. Returns a flag KDAPL_WQE_*, and the value.
 */
static noinline u8 wc_brought(struct kdapl_conn *conn, const struct ib_wc *wc, u32 *what)
{
	if (wc->wc_flags & IB_WC_WITH_INVALIDATE) {
		*what = wc->ex.invalidate_rkey;
		if (kdapl_mr_invalidated(conn->rq->ia, &conn->dev->caps, *what))
			kdapl_conn_end(conn, DAT_CONNECTION_EVENT_BROKEN);
		return KDAPL_WQE_INVALIDATED;
	}
	if (wc->opcode != IB_WC_RECV_RDMA_WITH_IMM)
		return 0;
	*what = be32_to_cpu(wc->ex.imm_data);
	return KDAPL_WQE_IMMED;
}

/*
 * A Receive. One that may not be reported yet, or does not fit into the backlog, is marked done and
 * stays in the work queue.
 */
static bool wc_recv(struct kdapl_evd *evd, struct kdapl_wq *wq, struct kdapl_wqe *wqe,
		    const struct ib_wc *wc, struct kdapl_event *ev)
{
	u32 pos = kdapl_wqe_pos(wq, wqe);
	bool visible;

	wq->reaped++;
	if (unlikely(wq->sinks))
		kdapl_wqe_sync(wq, wqe, wc->status == IB_WC_SUCCESS, kdapl_wc_filled(wc));
	wqe->status = kdapl_wc_recv_status(wc->status);
	if (likely(wc->status == IB_WC_SUCCESS)) {
		wqe->length = wc->byte_len;
		if (unlikely(wc->wc_flags & KDAPL_WC_BRINGS))
			wqe->flags |= wc_brought(wq->conn, wc, &wqe->key);
	}
	if (unlikely(READ_ONCE(wq->conn->state) < KDAPL_CONN_UP || pos != wq->tail ||
		     !kdapl_evd_room(evd))) {
		WRITE_ONCE(wqe->state, KDAPL_WQE_DONE);
		/* if the one at the tail is done, these are early and not out of order */
		if (pos != wq->tail &&
		    wq->wqe[wq->tail & wq->mask].state != KDAPL_WQE_DONE)
			wq->slow |= KDAPL_SLOW_ALWAYS;
		wc_early(wq->conn, wc->status);
		kdapl_wq_mark_ready(evd, wq);
		kdapl_wq_check_recv_end(evd, wq);
		return false;
	}
	visible = kdapl_wqe_event(wq, wqe, wqe->status, ev);
	kdapl_wq_advance(wq, wqe, pos + 1);
	/* one that was flushed out of order may wait behind it */
	if (unlikely(wq->wqe[wq->tail & wq->mask].state == KDAPL_WQE_DONE &&
		     wq->tail != READ_ONCE(wq->head)))
		kdapl_wq_mark_ready(evd, wq);
	kdapl_wq_check_recv_end(evd, wq);
	return visible;
}

/* A buffer of an SRQ, taken by the QP of one of the EPs that share it. */
static bool wc_buf(struct kdapl_evd *evd, const struct ib_wc *wc, struct kdapl_event *ev)
{
	struct kdapl_buf *buf = container_of(wc->wr_cqe, struct kdapl_buf, cqe);
	struct kdapl_conn *conn = kdapl_buf_taken(buf, wc->qp);

	if (unlikely(!conn || conn->dev->dma != KDAPL_DMA_SAME)) {
		kdapl_buf_sync(buf, conn, wc);
		if (!conn) {
			kdapl_buf_free(buf);
			return false;
		}
	}
	buf->flags = 0;
	if (unlikely(wc->status == IB_WC_SUCCESS && (wc->wc_flags & KDAPL_WC_BRINGS)))
		buf->flags = wc_brought(conn, wc, &buf->key);
	if (unlikely(READ_ONCE(conn->rq->ended) || READ_ONCE(conn->discard))) {
		kdapl_buf_free(buf);
		return false;
	}
	buf->status = kdapl_wc_recv_status(wc->status);
	buf->length = 0;
	if (likely(wc->status == IB_WC_SUCCESS))
		buf->length = wc->byte_len;
	else
		wc_failed(conn->rq, wc->status);
	conn->srq_bufs_held++;
	kdapl_conn_check_marks(conn);
	if (unlikely(READ_ONCE(conn->state) < KDAPL_CONN_UP || !list_empty(&conn->early) ||
		     !kdapl_evd_room(evd))) {
		list_add_tail(&buf->node, &conn->early);
		wc_early(conn, wc->status);
		kdapl_wq_mark_ready(evd, conn->rq);
		return false;
	}
	kdapl_buf_event(conn, buf, ev);
	return true;
}

/*
 * Does everything before this completion have an outcome? On soft-iWARP it does not while a Read
 * is under way, nor once a request has failed: requests posted meanwhile may be flushed before
 * others that wait in its queue.
 */
static bool wc_in_order(const struct kdapl_evd *evd, struct kdapl_wq *wq,
			const struct kdapl_wqe *wqe, unsigned int status)
{
	if (wq->ooo && status != DAT_DTO_SUCCESS)
		wq->slow |= KDAPL_SLOW_ALWAYS;
	if (unlikely(wqe->op == KDAPL_OP_MARKER || (wq->slow & KDAPL_SLOW_EARLY)))
		return false;
	if (unlikely(!kdapl_evd_room(evd))) {
		wq->slow |= KDAPL_SLOW_EARLY;	/* it waits in the work queue */
		return false;
	}
	if (likely(!wq->ooo))
		return true;
	/* in evd->ready: something before it has to be reported first */
	return wq->slow == KDAPL_SLOW_READS && kdapl_wq_no_reads(wq) && list_empty(&wq->ready);
}

/*
 * How many entries from the tail on, other than Reads, does a completion out of order prove to be
 * done? @before: how many are before it. A successful Read proves that these were sent; any other
 * completion proves itself as well. A failed Read proves nothing. A flush proves nothing either,
 * since it may overtake them, except that of the marker, which is posted when all has been flushed
 * (D-09b).
 */
static u32 wc_proves(const struct kdapl_wq *wq, const struct kdapl_wqe *wqe, u32 before,
		     unsigned int status)
{
	if (wqe->op == DAT_DTO_RDMA_READ)
		return status == DAT_DTO_SUCCESS ? before : 0;
	if (status == DAT_DTO_ERR_FLUSHED && wq->ooo &&
	    !(wqe->op == KDAPL_OP_MARKER && kdapl_conn_stopping(wq->conn)))
		return 0;
	return before + 1;
}

/*
 * Retire what a completion proves that cannot be reported yet. Who frees an LMR must not wait for
 * a consumer that does not dequeue, nor for a Read. @done_to: all before that index is proven.
 * What has a completion of its own is retired with that.
 */
static void wc_retire(struct kdapl_wq *wq, struct kdapl_wqe *wqe, u32 done_to)
{
	/* what lies before wq->done_to is retired */
	u32 pos = (s32)(wq->done_to - wq->tail) > 0 ? wq->done_to : wq->tail;

	for (; (s32)(done_to - pos) > 0; pos++) {
		struct kdapl_wqe *prev = &wq->wqe[pos & wq->mask];

		if (READ_ONCE(prev->state) == KDAPL_WQE_POSTED &&
		    !(prev->flags & KDAPL_WQE_SIGNALED))
			kdapl_wqe_retire(wq, prev, DAT_DTO_SUCCESS);
	}
	kdapl_wqe_retire(wq, wqe, wqe->status);
}

static bool wc_request(struct kdapl_evd *evd, struct kdapl_wq *wq, struct kdapl_wqe *wqe,
		       const struct ib_wc *wc, struct kdapl_event *ev)
{
	u32 pos = kdapl_wqe_pos(wq, wqe);
	unsigned int status = kdapl_wc_status(wc->status);
	u32 done_to = wq->tail;
	bool visible;

	if (unlikely(wq->sinks))
		kdapl_wq_sync_reads(wq, pos, status == DAT_DTO_SUCCESS);
	if (unlikely(!wc_in_order(evd, wq, wqe, status))) {
		wqe->status = status;
		WRITE_ONCE(wqe->state, KDAPL_WQE_DONE);
		done_to += wc_proves(wq, wqe, pos - wq->tail, status);
		/* before a marker some may not have been posted; the end retires all */
		if (unlikely(kdapl_wq_unretired(wq)) && wqe->op != KDAPL_OP_MARKER)
			wc_retire(wq, wqe, done_to);
		if ((s32)(done_to - wq->done_to) > 0)
			wq->done_to = done_to;
		if (wqe->op == KDAPL_OP_MARKER)
			wq->marker_done = true;
		kdapl_wq_check_marker(evd, wq);
		kdapl_wq_mark_ready(evd, wq);
		return false;
	}
	if (unlikely(kdapl_wq_unretired(wq)))
		kdapl_wq_retire_to(wq, pos, status);
	visible = kdapl_wqe_event(wq, wqe, status, ev);
	wq->done_to = pos + 1;
	kdapl_wq_advance(wq, wqe, pos + 1);
	return visible;
}

/**
 * kdapl_wc_event - process a work completion
 * @evd: EVD it was polled on; evd->lock held
 * @wc: the completion
 * @ev: filled if it is an event
 *
 * Return: false if it is no event, or not one that is due, or one that does not fit into the
 * backlog: that waits in its work queue.
 */
bool kdapl_wc_event(struct kdapl_evd *evd, struct ib_wc *wc, struct kdapl_event *ev)
{
	struct kdapl_wq *wq;
	struct kdapl_wqe *wqe;

	if (unlikely(wc->wr_cqe->done != kdapl_wqe_done)) {
		if (wc->wr_cqe->done == kdapl_buf_done)
			return wc_buf(evd, wc, ev);
		wc->wr_cqe->done(evd->cur, wc);
		return false;
	}
	wqe = container_of(wc->wr_cqe, struct kdapl_wqe, cqe);
	wq = kdapl_wqe_wq(wqe);
	if (WARN_ON_ONCE(wq->ended))	/* the device had given everything back */
		return false;
	/* even a marker that fails proves that everything before it is done (D-09) */
	if (unlikely(wc->status != IB_WC_SUCCESS && wqe->op != KDAPL_OP_MARKER)) {
		wc_failed(wq, wc->status);
		/* a bind whose old key could not be invalidated has failed, not been flushed */
		if (wqe->op == KDAPL_OP_INV && wc->status != IB_WC_WR_FLUSH_ERR)
			wq->wqe[(wqe->index + 1) & wq->mask].flags |= KDAPL_WQE_BROKEN;
	}
	return wq->recv ? wc_recv(evd, wq, wqe, wc, ev) : wc_request(evd, wq, wqe, wc, ev);
}

/* A helper of ib_core has polled our CQ: the event goes into the backlog. */
static void wc_polled_elsewhere(struct ib_cq *ibcq, struct ib_wc *wc)
{
	struct kdapl_cq *cq = ibcq->cq_context;
	struct kdapl_evd *evd = kdapl_cq_evd_get(cq);
	struct kdapl_event ev;
	unsigned long flags;

	if (!evd)
		return;
	flags = kdapl_evd_lock_irqsave(evd);
	if (kdapl_wc_event(evd, wc, &ev))
		kdapl_evd_backlog_keep(evd, &ev);
	spin_unlock_irqrestore(&evd->lock, flags);
	kdapl_evd_sched(evd);
	kdapl_obj_put(&evd->obj);
}

/**
 * kdapl_wqe_done - ib_cqe.done of our work queue entries
 * @cq: CQ
 * @wc: completion
 *
 * We poll the CQs ourselves and only compare this pointer. It is called only if ib_core polls the
 * CQ.
 */
void kdapl_wqe_done(struct ib_cq *cq, struct ib_wc *wc)
{
	wc_polled_elsewhere(cq, wc);
}

/**
 * kdapl_buf_done - ib_cqe.done of the buffers of an SRQ
 * @cq: CQ
 * @wc: completion
 *
 * As kdapl_wqe_done().
 */
void kdapl_buf_done(struct ib_cq *cq, struct ib_wc *wc)
{
	wc_polled_elsewhere(cq, wc);
}
