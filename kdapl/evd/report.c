// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The event of a finished work queue entry or SRQ buffer, and reporting a work queue from its
 * tail. Everything here runs under evd->lock.
 */
#include "event.h"
#include "../core/trace.h"

/* A failed operation on memory was no transfer: it has its own status, unless it was flushed. */
static unsigned int report_memop_status(const struct kdapl_wqe *wqe, unsigned int status)
{
	if (status == DAT_DTO_SUCCESS ||
	    (status == DAT_DTO_ERR_FLUSHED && !(wqe->flags & KDAPL_WQE_BROKEN)))
		return status;
	return wqe->op == DAT_DTO_BIND_MW ? DAT_RMR_OPERATION_FAILED : DAT_DTO_ERR_LOCAL_MM_ERROR;
}

/* Count and trace a completion that is an event. */
static void report_note(struct kdapl_wq *wq, unsigned int op, u64 cookie, u32 length,
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

static void report_bind(struct kdapl_event *ev, struct kdapl_wq *wq, const struct kdapl_wqe *wqe,
			unsigned int status)
{
	DAT_RMR_BIND_COMPLETION_EVENT_DATA *bind = &ev->data.rmr_completion_event_data;

	ev->number = DAT_RMR_BIND_COMPLETION_EVENT;
	bind->rmr_handle = wq->memop[wqe->index].handle;
	bind->user_cookie.as_64 = wqe->cookie;
	bind->status = status;
	report_note(wq, wqe->op, wqe->cookie, 0, status);
}

static void report_wqe(struct kdapl_event *ev, struct kdapl_wq *wq, const struct kdapl_wqe *wqe,
		       unsigned int status)
{
	u8 brought = wq->recv ? wqe->flags & KDAPL_WQE_BROUGHT : 0;
	unsigned int op = brought & KDAPL_WQE_INVALIDATED ? DAT_DTO_RECEIVE_WITH_INVALIDATE :
							    wqe->op;
	u32 length = wqe->length;

	ev->conn = wq->conn;
	ev->buf = NULL;
	ev->immed = brought & KDAPL_WQE_IMMED;
	ev->number = DAT_DTO_COMPLETION_EVENT;
	ev->signalled = status != DAT_DTO_SUCCESS ||
			!(wqe->flags & DAT_COMPLETION_UNSIGNALLED_FLAG);
	if (unlikely(wqe->op >= DAT_DTO_BIND_MW)) {
		status = report_memop_status(wqe, status);
		length = 0;
	}
	if (unlikely(wqe->op == DAT_DTO_BIND_MW)) {
		report_bind(ev, wq, wqe, status);
		return;
	}
	if (status != DAT_DTO_SUCCESS)
		length = 0;
	kdapl_event_dto(&ev->data.dto_completion_event_data, wq->conn->handle, wqe->cookie, op,
			status, length, brought ? wqe->key : 0);
	report_note(wq, op, wqe->cookie, length, status);
}

/**
 * kdapl_buf_event - the event of a buffer of an SRQ
 * @conn: connection that took it
 * @buf: the buffer, with status and length
 * @ev: filled
 *
 * Receives from an SRQ are always signalled (SRQ-POST-05); a solicited wait is a matter of
 * arming.
 */
void kdapl_buf_event(struct kdapl_conn *conn, struct kdapl_buf *buf, struct kdapl_event *ev)
{
	unsigned int op = buf->flags & KDAPL_WQE_INVALIDATED ? DAT_DTO_RECEIVE_WITH_INVALIDATE :
							       DAT_DTO_RECEIVE;

	ev->conn = conn;
	ev->buf = buf;
	ev->immed = buf->flags & KDAPL_WQE_IMMED;
	ev->number = DAT_DTO_COMPLETION_EVENT;
	ev->signalled = true;
	kdapl_event_dto(&ev->data.dto_completion_event_data, conn->handle, buf->cookie, op,
			buf->status, buf->length, buf->flags ? buf->key : 0);
	report_note(conn->rq, op, buf->cookie, buf->length, buf->status);
}

/**
 * kdapl_wqe_reported - would a finished entry be an event?
 * @wqe: the entry
 * @status: how it has ended
 *
 * Return: false for our own requests, and suppressed ones that succeeded.
 */
bool kdapl_wqe_reported(const struct kdapl_wqe *wqe, unsigned int status)
{
	if (wqe->op >= KDAPL_OP_INV)
		return false;
	return status != DAT_DTO_SUCCESS || !(wqe->flags & DAT_COMPLETION_SUPPRESS_FLAG);
}

/**
 * kdapl_wqe_event - the event of a finished entry
 * @wq: its work queue
 * @wqe: the entry
 * @status: how it has ended
 * @ev: filled if it is an event
 *
 * Return: false if there is none.
 */
bool kdapl_wqe_event(struct kdapl_wq *wq, const struct kdapl_wqe *wqe, unsigned int status,
		     struct kdapl_event *ev)
{
	struct kdapl_conn *conn = wq->conn;

	if (!kdapl_wqe_reported(wqe, status))
		return false;
	if (unlikely(READ_ONCE(conn->discard))) {
		atomic_inc(&conn->dropped);
		return false;
	}
	report_wqe(ev, wq, wqe, status);
	return true;
}

/* The next buffer of an SRQ that was filled before the connection was known. */
static bool report_early(struct kdapl_conn *conn, struct kdapl_event *ev)
{
	struct kdapl_buf *buf;

	while (READ_ONCE(conn->state) >= KDAPL_CONN_UP) {
		buf = list_first_entry_or_null(&conn->early, struct kdapl_buf, node);
		if (!buf)
			break;
		list_del(&buf->node);
		kdapl_buf_event(conn, buf, ev);
		if (!READ_ONCE(conn->discard))
			return true;
		kdapl_event_release(ev);
		atomic_inc(&conn->dropped);
	}
	return false;
}

/**
 * kdapl_wq_next - report the next entry of a work queue from its tail
 * @wq: the work queue
 * @ev: filled on success
 *
 * Used when completions do not map one to one to entries: devices that complete out of order,
 * what is held until ESTABLISHED, the end.
 *
 * Return: false if there is no event, or none that is known yet.
 */
bool kdapl_wq_next(struct kdapl_wq *wq, struct kdapl_event *ev)
{
	if (unlikely(wq->recv && wq->conn->pool))
		return report_early(wq->conn, ev);
	/* pairs with the release of the poster: entries before head are complete */
	while (wq->tail != smp_load_acquire(&wq->head)) {
		struct kdapl_wqe *wqe = &wq->wqe[wq->tail & wq->mask];
		unsigned int status;
		bool visible;

		if (!kdapl_wqe_outcome(wq, wqe, &status))
			return false;
		/* done before the connection is known */
		if (READ_ONCE(wqe->state) == KDAPL_WQE_DONE &&
		    READ_ONCE(wq->conn->state) < KDAPL_CONN_UP)
			return false;
		kdapl_wqe_retire(wq, wqe, status);
		visible = kdapl_wqe_event(wq, wqe, status, ev);
		if (wqe->op == DAT_DTO_RDMA_READ && !wq->recv)
			wq->reads_done++;
		kdapl_wq_advance(wq, wqe, wq->tail + 1);
		if (visible)
			return true;
	}
	return false;
}
