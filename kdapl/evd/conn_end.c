// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Ending a connection: completions, posts, the connection manager and the consumer record the
 * reason here. A work item acts on it (ep/conn_teardown.c).
 */
#include "evd.h"

#define SUSPECT_TIMEOUT	HZ	/* for the CM to report the peer's disconnect (D-08) */

/**
 * kdapl_conn_end_in - end a connection or attempt after a delay
 * @conn: the connection
 * @reason: the connection event it stands for, or KDAPL_END_*
 * @delay: jiffies
 *
 * A device may report a peer's bad request before it has sent the NAK, and our disconnect must
 * not overtake that.
 *
 * Context: any.
 */
void kdapl_conn_end_in(struct kdapl_conn *conn, int reason, unsigned long delay)
{
	int old = atomic_read(&conn->reason);

	do {
		if (!kdapl_conn_reason_wins(old, reason))
			return;
	} while (!atomic_try_cmpxchg(&conn->reason, &old, reason));
	mod_delayed_work(kdapl_misc_wq, &conn->end_work, delay);
}

/**
 * kdapl_conn_end - end a connection or attempt
 * @conn: the connection
 * @reason: the connection event it stands for, or KDAPL_END_*
 *
 * kdapl_conn_reason_wins() chooses among several reasons.
 *
 * Context: any.
 */
void kdapl_conn_end(struct kdapl_conn *conn, int reason)
{
	kdapl_conn_end_in(conn, reason, reason == KDAPL_END_SUSPECT ? SUSPECT_TIMEOUT : 0);
}

/**
 * kdapl_conn_end_drained - end a connection that a graceful disconnect has drained
 * @conn: the connection
 *
 * A consumer may disconnect as soon as it has received a message, before its device has
 * sent the ACK. If a QP in ERR sends none any more, the end is delayed: otherwise the peer
 * would see FLUSHED for a message that was received (D-85). The delay includes a grace period,
 * in which each CPU has run: in a guest whose host is busy, the driver's task may be on a CPU
 * that stands still.
 *
 * Context: any.
 */
void kdapl_conn_end_drained(struct kdapl_conn *conn)
{
	/* conn_work_end() starts it: up to 6.12 that is not allowed with interrupts off */
	if (conn->dev->caps.late_ack)
		WRITE_ONCE(conn->ack_gp, get_state_synchronize_rcu());
	kdapl_conn_end_in(conn, DAT_CONNECTION_EVENT_DISCONNECTED,
			  conn->dev->caps.late_ack ? KDAPL_ACK_TIME : 0);
}

#ifdef KDAPL_KUNIT
/* What has happened is recorded, and the state not looked at. */
void (*kdapl_test_conn_early)(struct kdapl_conn *conn);
#endif

/**
 * kdapl_conn_early - is a connection that has failed not up yet?
 * @conn: @wc_failed or @last_wqe was set just now
 *
 * The failure is recorded before the state is read. Otherwise the connection could come up in
 * between, and nobody would end it.
 *
 * Context: any.
 * Return: true if kdapl_conn_established() will see the failure; false if the caller has to end
 * the connection.
 */
bool kdapl_conn_early(struct kdapl_conn *conn)
{
	kdapl_test_point(kdapl_test_conn_early, conn);
	smp_mb();	/* pairs with the one in kdapl_conn_established() */
	return READ_ONCE(conn->state) < KDAPL_CONN_UP;
}

/* A watermark has fired: the rest is done without locks. */
static void conn_mark_fired(struct kdapl_marks *marks)
{
	refcount_inc(&marks->ep->ref);
	if (!queue_work(kdapl_misc_wq, &marks->fired_work))
		refcount_dec(&marks->ep->ref);	/* queued already, with a reference */
}

/**
 * kdapl_conn_check_marks - check the watermarks of the buffers an EP holds of its SRQ
 * @conn: @srq_bufs_held may have become larger, or a watermark smaller
 *
 * Context: any.
 */
void kdapl_conn_check_marks(struct kdapl_conn *conn)
{
	u32 held = READ_ONCE(conn->srq_bufs_held);
	struct kdapl_marks *marks = conn->marks;

	if (unlikely(kdapl_watermark_above(&marks->soft, held))) {
		atomic_inc(&marks->soft.fired);
		conn_mark_fired(marks);
	}
	/* the hard one does not apply to a connection that is ending anyway */
	if (READ_ONCE(conn->state) <= KDAPL_CONN_UP &&
	    unlikely(kdapl_watermark_above(&marks->hard, held))) {
		WRITE_ONCE(conn->wc_failed, true);	/* BROKEN once it is up */
		if (!kdapl_conn_early(conn))
			kdapl_conn_end(conn, DAT_CONNECTION_EVENT_BROKEN);
		conn_mark_fired(marks);
	}
}
