// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * What ends a connection: the reason is noted here, by completions, posts, the
 * connection manager and the consumer alike. A work item acts on it (ep/conn_teardown.c).
 */
#include "evd.h"

#define SUSPECT_TIMEOUT	HZ		/* D-08 */

/**
 * kdapl_conn_end_in - as kdapl_conn_end(), to be acted on later
 * @conn: the connection
 * @reason: the connection event it stands for, or KDAPL_END_*
 * @delay: jiffies
 *
 * A device may tell of a peer's bad request before it has answered it; our
 * disconnect must not be there first.
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
 * kdapl_conn_end - something ended the connection or the attempt
 * @conn: the connection
 * @reason: the connection event it stands for, or KDAPL_END_*
 *
 * The better reason stays: kdapl_conn_reason_wins().
 *
 * Context: any.
 */
void kdapl_conn_end(struct kdapl_conn *conn, int reason)
{
	kdapl_conn_end_in(conn, reason, reason == KDAPL_END_SUSPECT ? SUSPECT_TIMEOUT : 0);
}

/**
 * kdapl_conn_drained - what a graceful disconnect has waited for is done
 * @conn: the connection
 *
 * A consumer that has its answer may leave before its device has acknowledged that. Where a
 * queue pair in ERR does not do it any more, it lives on for a moment: otherwise the peer would
 * see a message FLUSHED that was received (D-85).
 *
 * Context: any.
 */
void kdapl_conn_drained(struct kdapl_conn *conn)
{
	kdapl_conn_end_in(conn, DAT_CONNECTION_EVENT_DISCONNECTED,
			  conn->dev->caps.late_ack ? KDAPL_ANSWER_TIME : 0);
}

/**
 * kdapl_conn_held - look whether an EP holds too many buffers of its SRQ
 * @conn: conn->held may have become larger, or a watermark smaller
 *
 * Context: any.
 */
void kdapl_conn_held(struct kdapl_conn *conn)
{
	u32 held = READ_ONCE(conn->held);
	struct kdapl_marks *marks = conn->marks;

	if (unlikely(kdapl_watermark_above(&marks->soft, held))) {
		atomic_inc(&marks->soft.fired);
		refcount_inc(&marks->ep->ref);
		if (!queue_work(kdapl_misc_wq, &marks->soft_work))
			refcount_dec(&marks->ep->ref);	/* the one that is queued has its own */
	}
	/* a connection that is ending is not what the hard one waits for */
	if (READ_ONCE(conn->state) <= KDAPL_CONN_UP &&
	    unlikely(kdapl_watermark_above(&marks->hard, held))) {
		if (READ_ONCE(conn->state) < KDAPL_CONN_UP)
			WRITE_ONCE(conn->wc_failed, true);	/* BROKEN once it is up */
		else
			kdapl_conn_end(conn, DAT_CONNECTION_EVENT_BROKEN);
	}
}
