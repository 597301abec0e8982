// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The events of one connection in an EVD: watched, made due, counted, dropped.
 */
#include "event.h"

/* Events of a connection that are made due in one go, under the lock. */
#define CONN_MAKE_DUE	64

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

	flags = kdapl_evd_lock_irqsave(evd);
	evd->ending += delta;
	spin_unlock_irqrestore(&evd->lock, flags);
	if (delta > 0)
		kdapl_evd_sched(evd);
}

/**
 * kdapl_evd_watch - start or stop polling the receive EVD of a connection without being asked
 * @conn: connection with an SRQ
 *
 * Watermarks count buffers as they arrive, even while the consumer does not dequeue. To be called
 * when one was set, and when one has fired.
 *
 * Context: any, without any lock of an EP or EVD.
 */
void kdapl_evd_watch(struct kdapl_conn *conn)
{
	struct kdapl_evd *evd = conn->recv_evd;
	unsigned long flags;
	bool want;

	flags = kdapl_evd_lock_irqsave(evd);
	want = !READ_ONCE(conn->discard) &&
	       (READ_ONCE(conn->pool->low_armed) || kdapl_marks_armed(conn->marks));
	if (want != conn->watched) {
		evd->watching += want ? 1 : -1;
		conn->watched = want;
		kdapl_evd_set_default_policy(evd);
	}
	spin_unlock_irqrestore(&evd->lock, flags);
	if (want)
		kdapl_evd_sched(evd);
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
		flags = kdapl_evd_lock_irqsave(evd);
		kdapl_wq_mark_ready(evd, wq);
		spin_unlock_irqrestore(&evd->lock, flags);
		kdapl_evd_sched(evd);
	}
	rcu_read_unlock();
}

static void conn_wq_slow(struct kdapl_evd *evd, struct kdapl_wq *wq)
{
	unsigned long flags;

	flags = kdapl_evd_lock_irqsave(evd);
	wq->slow |= KDAPL_SLOW_ALWAYS;
	spin_unlock_irqrestore(&evd->lock, flags);
}

/**
 * kdapl_conn_discard - drop all completions that are taken from now on
 * @conn: of an EP that is freed or reset, still attached to its EVDs
 *
 * Once one is dropped, all later ones are: there is no gap in what is reported.
 *
 * Context: any, without any lock of an EVD.
 */
void kdapl_conn_discard(struct kdapl_conn *conn)
{
	/* first: the fast path does not check ->discard */
	conn_wq_slow(conn->request_evd, conn->sq);
	conn_wq_slow(conn->recv_evd, conn->rq);
	if (READ_ONCE(conn->state) == KDAPL_CONN_ENDED && !conn->discard)
		WRITE_ONCE(conn->owed, true);
	WRITE_ONCE(conn->discard, true);
}

/* A connection event. It may outlive its connection, so it is known by its EP. */
static bool conn_event_of_ep(const struct kdapl_event *ev, DAT_EP_HANDLE ep)
{
	return kdapl_event_connection(ev) && kdapl_event_ep(ev) == ep;
}

/* A completion of a DTO or RMR operation of this connection. */
static bool conn_completion(const struct kdapl_event *ev, const struct kdapl_conn *conn)
{
	return ev->conn == conn && !kdapl_event_other(ev);
}

/**
 * kdapl_evd_drop - drop the events of a connection from the backlog
 * @evd: the EVD
 * @conn: the connection, whose DTO and RMR completions are dropped, or NULL
 * @ep: the EP whose connection events are dropped, or NULL
 *
 * Context: any, without any lock of an EVD.
 */
void kdapl_evd_drop(struct kdapl_evd *evd, struct kdapl_conn *conn, DAT_EP_HANDLE ep)
{
	struct kdapl_buf *buf, *next;
	struct kdapl_event ev;
	unsigned long flags;
	bool overflow;
	u32 n;

	flags = kdapl_evd_lock_irqsave(evd);
	overflow = evd->overflow;
	/* Once around: take each event and put back the others. */
	for (n = evd->backlog_count; n; n--) {
		kdapl_evd_backlog_take(evd, &ev);
		if (conn && conn_completion(&ev, conn)) {
			kdapl_event_release(&ev);
			atomic_inc(&conn->dropped);
		} else if (!ep || !conn_event_of_ep(&ev, ep)) {
			kdapl_evd_backlog_put(evd, &ev);
		}
	}
	evd->overflow = overflow && evd->backlog_others >= evd->qlen;
	if (conn && conn->pool && evd == conn->recv_evd) {
		list_for_each_entry_safe(buf, next, &conn->early, node) {
			list_del(&buf->node);
			conn->srq_bufs_held--;
			kdapl_buf_free(buf);
			atomic_inc(&conn->dropped);
		}
	}
	spin_unlock_irqrestore(&evd->lock, flags);
}

/**
 * kdapl_evd_forget_pdata - take the private data out of the queued events of a connection
 * @evd: its connect EVD
 * @conn: the connection, which frees the data
 *
 * Context: any, without evd->lock.
 */
void kdapl_evd_forget_pdata(struct kdapl_evd *evd, const struct kdapl_conn *conn)
{
	DAT_CONNECTION_EVENT_DATA *data;
	struct kdapl_event *ev;
	unsigned long flags;
	u32 i;

	flags = kdapl_evd_lock_irqsave(evd);
	for (i = 0; i < evd->backlog_count; i++) {
		ev = kdapl_evd_backlog_at(evd, i);
		if (ev->conn != conn || !kdapl_event_connection(ev))
			continue;
		data = &ev->data.connect_event_data;
		data->private_data = NULL;
		data->private_data_size = 0;
	}
	spin_unlock_irqrestore(&evd->lock, flags);
}

/* Has this work queue of a connection that has ended something to report? evd->lock held. */
static bool conn_wq_owes(const struct kdapl_wq *wq)
{
	unsigned int status;
	u32 pos, head;

	if (wq->recv && wq->conn->pool)
		return !list_empty(&wq->conn->early);
	/* pairs with the release of the poster */
	head = smp_load_acquire(&wq->head);
	for (pos = wq->tail; pos != head; pos++) {
		const struct kdapl_wqe *wqe = &wq->wqe[pos & wq->mask];

		if (kdapl_wqe_outcome(wq, wqe, &status) && kdapl_wqe_reported(wqe, status))
			return true;
	}
	return false;
}

/**
 * kdapl_evd_owes - is a completion of a connection on its way to an upcall?
 * @evd: one of its EVDs; evd->lock held
 * @conn: connection that has ended, or is to be discarded
 *
 * Completions that the consumer dequeues without upcalls count as delivered.
 *
 * Return: true if there is one.
 */
bool kdapl_evd_owes(struct kdapl_evd *evd, const struct kdapl_conn *conn)
{
	u32 i;

	lockdep_assert_held(&evd->lock);
	kdapl_evd_settle(evd);	/* the waiter has slept since it took the lock */
	if (evd->closing || evd->discard || READ_ONCE(conn->discard) ||
	    evd->policy == DAT_UPCALL_DISABLE || evd->policy == DAT_UPCALL_NOTIFY)
		return false;
	if ((evd == conn->request_evd && conn_wq_owes(conn->sq)) ||
	    (evd == conn->recv_evd && conn_wq_owes(conn->rq)))
		return true;
	for (i = 0; i < evd->backlog_count; i++) {
		if (conn_completion(kdapl_evd_backlog_at(evd, i), conn))
			return true;
	}
	return false;
}

/**
 * kdapl_evd_make_due - make all completions of a connection due for upcalls, signalled or not
 * @evd: one of its EVDs
 * @conn: connection that has ended
 *
 * Context: any, without evd->lock.
 */
void kdapl_evd_make_due(struct kdapl_evd *evd, const struct kdapl_conn *conn)
{
	struct kdapl_event *ev;
	unsigned long flags;
	u32 i, end = 0;

	flags = kdapl_evd_lock_irqsave(evd);
	kdapl_evd_poll_ahead_locked(evd, CONN_MAKE_DUE, false);
	for (i = 0; i < evd->backlog_count; i++) {
		if (conn_completion(kdapl_evd_backlog_at(evd, i), conn))
			end = i + 1;
	}
	for (i = 0; i < end; i++) {
		ev = kdapl_evd_backlog_at(evd, i);
		evd->backlog_signalled += !ev->signalled;
		ev->signalled = true;
	}
	spin_unlock_irqrestore(&evd->lock, flags);
	kdapl_evd_sched(evd);
}
