// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Endpoints: the calls that end a connection and that wait for its last completion. How a graceful
 * end waits is in conn_teardown.c (kdapl_conn_drain_sq()) and evd/wq_end.c.
 */
#include <linux/export.h>

#include "ep.h"

/**
 * dat_ep_disconnect - end a connection or give up an attempt
 * @ep_handle: EP
 * @close_flags: DAT_CLOSE_ABRUPT_FLAG, or DAT_CLOSE_GRACEFUL_FLAG to let the
 *	requests under way finish first
 *
 * From now on requests are refused. What is posted is reported FLUSHED, except that a
 * graceful end lets requests finish first. Then the connect EVD gets one DISCONNECTED
 * event. An abrupt call cuts a graceful one short. In DISCONNECTED the call succeeds
 * without effect.
 *
 * Context: any.
 * Return: DAT_SUCCESS (the end is under way, and an event will report it);
 * DAT_INVALID_HANDLE; DAT_INVALID_PARAMETER (flags);
 * DAT_INVALID_STATE (subtype its state: there is nothing to disconnect);
 * DAT_INTERNAL_ERROR (device removed, the connection has ended already).
 */
DAT_RETURN dat_ep_disconnect(DAT_EP_HANDLE ep_handle, DAT_CLOSE_FLAGS close_flags)
{
	enum kdapl_ep_input input = close_flags == DAT_CLOSE_GRACEFUL_FLAG ? KDAPL_IN_GRACEFUL :
									     KDAPL_IN_ABRUPT;
	DAT_RETURN ret = DAT_SUCCESS;
	struct kdapl_conn *conn;
	struct kdapl_ep *ep;
	unsigned long flags;
	int old, state;

	rcu_read_lock();
	ep = kdapl_handle_peek(ep_handle, DAT_HANDLE_TYPE_EP);
	if (!ep) {
		ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
		goto out;
	}
	if (close_flags != DAT_CLOSE_ABRUPT_FLAG && close_flags != DAT_CLOSE_GRACEFUL_FLAG) {
		ret = kdapl_arg_err(2);
		goto out;
	}
	if (READ_ONCE(ep->obj.ia->dead)) {
		ret = kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
		goto out;
	}
	spin_lock_irqsave(&ep->lock, flags);
	conn = rcu_dereference(ep->conn);
	old = kdapl_ep_step(ep, input);
	state = ep->state;
	spin_unlock_irqrestore(&ep->lock, flags);
	if (old == KDAPL_EP_NO_STEP)
		ret = kdapl_state_err(state);
	else if (old == DAT_EP_STATE_CONNECTED && input == KDAPL_IN_GRACEFUL)
		kdapl_conn_drain_sq(conn);
	else if (old != DAT_EP_STATE_DISCONNECTED &&
		 !(old == DAT_EP_STATE_DISCONNECT_PENDING && input == KDAPL_IN_GRACEFUL))
		kdapl_conn_end(conn, DAT_CONNECTION_EVENT_DISCONNECTED);
out:
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_ep_disconnect);

/* What kdat_ep_drain() waits for, referenced. */
struct ep_drain {
	struct kdapl_conn *conn;
	struct kdapl_evd *evd[2];
	bool inside[2];		/* the caller is in an upcall of that EVD */
};

static void ep_drain_put(struct ep_drain *drain)
{
	int i;

	for (i = 0; i < 2; i++)
		kdapl_obj_put(drain->evd[i] ? &drain->evd[i]->obj : NULL);
	if (drain->conn)
		kdapl_conn_put(drain->conn);
}

/* If an EP has no connection or is being destroyed, there is nothing to wait for. */
static void ep_drain_get(struct kdapl_ep *ep, struct ep_drain *drain)
{
	struct kdapl_conn *conn;
	int i;

	memset(drain, 0, sizeof(*drain));
	rcu_read_lock();
	conn = rcu_dereference(ep->conn);
	if (conn) {
		refcount_inc(&conn->ref);	/* the reaper keeps its own for a grace period */
		drain->conn = conn;
		drain->evd[0] = conn->request_evd;
		drain->evd[1] = conn->recv_evd;
		for (i = 0; i < 2; i++) {
			if (!refcount_inc_not_zero(&drain->evd[i]->obj.ref))
				drain->evd[i] = NULL;
		}
	}
	rcu_read_unlock();
	for (i = 0; i < 2; i++)
		drain->inside[i] = drain->evd[i] && kdapl_evd_inside_upcall(drain->evd[i]);
}

/*
 * Would the caller wait for an upcall that cannot start before its own has returned, or for a
 * concurrent one that may be waiting as well?
 */
static bool ep_drain_deadlocks(struct ep_drain *drain, bool ended)
{
	bool owes = false;
	int i;

	for (i = 0; i < 2 && !owes; i++) {
		if (!drain->inside[i])
			continue;
		if (drain->evd[i]->softirq || !ended)
			return true;
		kdapl_evd_lock_irq(drain->evd[i]);
		owes = kdapl_evd_owes(drain->evd[i], drain->conn) ||
		       kdapl_evd_other_upcall(drain->evd[i], drain->conn->handle);
		spin_unlock_irq(&drain->evd[i]->lock);
	}
	return owes;
}

/**
 * kdat_ep_drain - wait until every completion of an EP has been delivered
 * @ep_handle: EP in any state but RESERVED, PASSIVE_ and TENTATIVE_CONNECTION_PENDING
 *
 * For a consumer that is about to free or reset an EP and wants to see all its completions
 * first, as with ib_drain_qp(). A connection or an attempt ends abruptly, as by
 * dat_ep_disconnect(), but a graceful disconnect that is under way may finish. When the call
 * returns, every DTO and RMR operation posted before it has had its completion, if it has
 * one: successful, failed or flushed. With an SRQ the same is true of every buffer the EP
 * had taken, except those the device has lost.
 * If the EVD makes upcalls, the last of them has returned; unsignalled completions start
 * them, too. If the consumer dequeues (DAT_UPCALL_DISABLE, DAT_UPCALL_NOTIFY), all
 * completions are in the EVD: take them until DAT_QUEUE_EMPTY before the EP goes.
 *
 * In UNCONNECTED nothing happens, and Receives stay posted. The call does not wait for
 * connection events. It may miss posts made meanwhile.
 *
 * Legal in upcalls that run in process context, such as that of DISCONNECTED. In an upcall
 * of the EP's recv or request EVD it is legal only once the connection has ended and that
 * EVD has no other completion of the EP.
 *
 * An extension of this provider.
 *
 * Context: may sleep; waits for upcalls of the consumer, so hold no lock that they take.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE; DAT_INVALID_STATE (subtype its state; EVD_IN_USE:
 * the call would wait for itself, and nothing has happened: it comes from an upcall of the
 * EP's recv or request EVD that is in softirq, or before the connection has ended, or while
 * that EVD has another completion of the EP, queued or in a concurrent upcall
 * (DAT_UPCALL_MANY)).
 */
DAT_RETURN kdat_ep_drain(DAT_EP_HANDLE ep_handle)
{
	struct kdapl_ep *ep = kdapl_obj_get(ep_handle, DAT_HANDLE_TYPE_EP);
	DAT_RETURN ret = DAT_SUCCESS;
	struct ep_drain drain;
	int state, i;

	if (!ep)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	ep_drain_get(ep, &drain);
	state = READ_ONCE(ep->state);
	if (kdapl_ep_next_state(state, KDAPL_IN_FREE) == KDAPL_EP_NO_STEP) {
		ret = kdapl_state_err(state);
		goto out;
	}
	if (!drain.conn || (state == DAT_EP_STATE_UNCONNECTED && !kdapl_conn_spent(drain.conn)))
		goto out;
	/* ENDED comes before the end event, in whose upcall we may be; conn->ended after it */
	if (ep_drain_deadlocks(&drain, READ_ONCE(drain.conn->state) == KDAPL_CONN_ENDED)) {
		ret = kdapl_err(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
		goto out;
	}
	/*
	 * The disconnect is refused if another call, or removal of the device, has ended the
	 * connection first; or if the attempt has failed and left the connection idle, so that
	 * there is no end to wait for.
	 */
	if (state != DAT_EP_STATE_DISCONNECTED && state != DAT_EP_STATE_DISCONNECT_PENDING &&
	    dat_ep_disconnect(ep_handle, DAT_CLOSE_ABRUPT_FLAG) != DAT_SUCCESS &&
	    READ_ONCE(drain.conn->state) == KDAPL_CONN_IDLE)
		goto out;
	wait_for_completion(&drain.conn->ended);
	for (i = 0; i < 2; i++) {
		if (drain.evd[i] && !drain.inside[i])
			kdapl_evd_wait_delivered(drain.evd[i], drain.conn);
	}
out:
	ep_drain_put(&drain);
	kdapl_obj_put(&ep->obj);
	return ret;
}
EXPORT_SYMBOL(kdat_ep_drain);
