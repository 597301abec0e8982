// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Connection events of EPs, and the end of a connection as the EP sees it.
 */
#include "ep.h"
#include "../core/trace.h"

#ifdef KDAPL_KUNIT
/* An event is due, and not queued yet. */
void (*kdapl_test_ep_event)(struct kdapl_ep *ep);
#endif

/**
 * kdapl_ep_queue_event - queue an event on the connect EVD of an EP
 * @ep: the EP
 * @ev: the event
 *
 * Once the EP has been freed, nothing is queued.
 *
 * Context: any, without evd->lock.
 */
void kdapl_ep_queue_event(struct kdapl_ep *ep, const struct kdapl_event *ev)
{
	struct kdapl_evd *evd;

	kdapl_test_point(kdapl_test_ep_event, ep);
	/* before there is a connection, dat_ep_modify() may replace the EVD, which is then freed */
	rcu_read_lock();
	evd = READ_ONCE(ep->connect_evd);
	if (evd)
		kdapl_evd_queue_of(evd, ev, &ep->obj);
	rcu_read_unlock();
}

/**
 * kdapl_ep_drop_events - drop the events that an EP has on its connect EVD
 * @ep: EP that is being freed
 *
 * Context: any, without evd->lock.
 */
void kdapl_ep_drop_events(struct kdapl_ep *ep)
{
	struct kdapl_evd *evd;

	rcu_read_lock();	/* as above */
	evd = READ_ONCE(ep->connect_evd);
	if (evd)
		kdapl_evd_drop(evd, NULL, ep->obj.handle);
	rcu_read_unlock();
}

/**
 * kdapl_ep_forget_pdata - take the private data out of the events that a connection has queued
 * @conn: connection that has ended and is being replaced; the data goes with it
 *
 * Context: any, without evd->lock.
 */
void kdapl_ep_forget_pdata(struct kdapl_conn *conn)
{
	struct kdapl_evd *evd;

	rcu_read_lock();	/* as above */
	evd = READ_ONCE(conn->ep->connect_evd);
	if (evd)
		kdapl_evd_forget_pdata(evd, conn);
	rcu_read_unlock();
}

/**
 * kdapl_ep_event - tell the consumer of a connection event
 * @conn: the connection it is about
 * @number: the event
 *
 * Context: any, without evd->lock.
 */
void kdapl_ep_event(struct kdapl_conn *conn, u32 number)
{
	struct kdapl_event ev = { .conn = conn, .number = number, .signalled = true };
	DAT_CONNECTION_EVENT_DATA *data = &ev.data.connect_event_data;

	if (READ_ONCE(conn->discard))
		return;
	WRITE_ONCE(conn->last_event, number);
	trace_kdapl_conn_event(conn->handle, conn->qpn, number);
	data->ep_handle = conn->handle;
	if ((number == DAT_CONNECTION_EVENT_ESTABLISHED && !conn->passive) ||
	    number == DAT_CONNECTION_EVENT_PEER_REJECTED) {
		data->private_data = conn->pdata_len ? conn->pdata : NULL;
		data->private_data_size = conn->pdata_len;
	}
	kdapl_ep_queue_event(conn->ep, &ev);
}

/* Tell the administrator of a connection that broke. */
static void ep_log_broken(const struct kdapl_conn *conn)
{
	const struct kdapl_ia *ia = conn->ep->obj.ia;
	unsigned int error = kdapl_conn_error(conn);
	const char *why = "no request has failed";

	if (READ_ONCE(conn->dev->gone))
		why = "the device was removed";
	else if (READ_ONCE(conn->dev->fatal))
		why = "the device has failed";
	else if (READ_ONCE(conn->by_hand))
		why = "it was ended by hand";
	else if (error)
		why = kdat_dto_status_name(error);
	/* not ia->name: an IA may have been opened by its address */
	pr_warn_ratelimited("%s-%u: QP %u of %s: the connection to %pISpc broke: %s\n",
			    conn->dev->name, ia->port, conn->qpn, ia->consumer, &conn->remote, why);
}

/**
 * kdapl_ep_ended - move the EP of a connection that has ended, and tell the consumer
 * @conn: the connection; the device has given back everything
 *
 * Context: may sleep.
 */
void kdapl_ep_ended(struct kdapl_conn *conn)
{
	struct kdapl_ep *ep = conn->ep;
	int reason = atomic_read(&conn->reason);
	int old = KDAPL_EP_NO_STEP;

	spin_lock_irq(&ep->lock);
	if (rcu_access_pointer(ep->conn) == conn && reason != KDAPL_END_NO_EVENT)
		old = kdapl_ep_step(ep, KDAPL_IN_ENDED);
	spin_unlock_irq(&ep->lock);
	if (reason == KDAPL_END_PEER)
		reason = DAT_CONNECTION_EVENT_DISCONNECTED;
	/* if it broke before it was established, that is the outcome of the attempt */
	if (reason == DAT_CONNECTION_EVENT_BROKEN && !READ_ONCE(ep->obj.ia->dead) &&
	    !READ_ONCE(conn->dev->fatal)) {
		if (old == DAT_EP_STATE_ACTIVE_CONNECTION_PENDING)
			reason = DAT_CONNECTION_EVENT_NON_PEER_REJECTED;
		else if (old == DAT_EP_STATE_COMPLETION_PENDING)
			reason = DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR;
	}
	if (reason == DAT_CONNECTION_EVENT_BROKEN && conn->remote.ss_family)
		ep_log_broken(conn);
	if (reason > KDAPL_END_NO_EVENT)
		kdapl_ep_event(conn, reason);
}
