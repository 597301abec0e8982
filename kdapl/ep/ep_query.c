// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Endpoints: the calls that read the parameters of one, and what is outstanding on it.
 */
#include <linux/export.h>

#include "ep.h"

static void query_peer(DAT_EP_PARAM *param, struct sockaddr_storage *local,
		       struct sockaddr_storage *remote)
{
	if (!param->comm.domain)
		param->comm.domain = remote->ss_family;
	param->local_ia_address_ptr = (DAT_IA_ADDRESS_PTR)local;
	param->local_port_qual = kdapl_addr_port(local);
	param->remote_ia_address_ptr = (DAT_IA_ADDRESS_PTR)remote;
	param->remote_port_qual = kdapl_addr_port(remote);
}

/**
 * dat_ep_query - read the parameters of an EP
 * @ep_handle: EP
 * @ep_param_mask: DAT_EP_FIELD_* bits of the members wanted; 0 is legal
 * @ep_param: filled entirely; its address pointers are valid until the EP
 *	changes its connection state or is freed
 *
 * The attributes are those granted. Addresses and ports are those of the
 * connection, or of the request the EP came with; without either they are NULL
 * and 0.
 *
 * Context: any.
 * Return: DAT_SUCCESS, DAT_INVALID_HANDLE, or DAT_INVALID_PARAMETER (undefined
 * mask bit, NULL @ep_param with a mask).
 */
DAT_RETURN dat_ep_query(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK ep_param_mask,
			DAT_EP_PARAM *ep_param)
{
	struct kdapl_ep *ep = kdapl_obj_get(ep_handle, DAT_HANDLE_TYPE_EP);
	struct kdapl_conn *conn;
	unsigned long flags;
	DAT_RETURN ret;

	if (!ep)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	ret = kdapl_query_check(ep_param_mask, DAT_EP_FIELD_ALL, ep_param);
	if (ret != DAT_SUCCESS || !ep_param)
		goto out;
	memset(ep_param, 0, sizeof(*ep_param));
	ep_param->ia_handle = ep->obj.ia->obj.handle;
	ep_param->ep_state = READ_ONCE(ep->state);
	ep_param->comm = ep->comm;
	ep_param->srq_handle = ep->srq_handle;
	spin_lock_irqsave(&ep->lock, flags);
	conn = rcu_dereference_protected(ep->conn, lockdep_is_held(&ep->lock));
	if (ep->cr)
		query_peer(ep_param, &ep->cr->local, &ep->cr->remote);
	else if (conn && conn->remote.ss_family)
		query_peer(ep_param, &conn->local, &conn->remote);
	ep_param->pz_handle = ep->pz_handle;
	ep_param->recv_evd_handle = ep->recv_handle;
	ep_param->request_evd_handle = ep->request_handle;
	ep_param->connect_evd_handle = ep->connect_handle;
	ep_param->ep_attr = ep->conf.attr;
	ep_param->ep_attr.srq_soft_hw = READ_ONCE(ep->marks.soft.value);
	spin_unlock_irqrestore(&ep->lock, flags);
out:
	kdapl_obj_put(&ep->obj);
	return ret;
}
EXPORT_SYMBOL(dat_ep_query);

/* Requests are counted as the consumer posts them: our own do not make a queue busy. */
static bool query_busy(struct kdapl_wq *wq)
{
	return wq->recv ? READ_ONCE(wq->head) != READ_ONCE(wq->tail) :
			  READ_ONCE(wq->dtos) != READ_ONCE(wq->dtos_done);
}

static DAT_BOOLEAN query_idle(struct kdapl_wq *wq)
{
	if (query_busy(wq))
		kdapl_wq_poll_cq(wq);
	return query_busy(wq) ? DAT_FALSE : DAT_TRUE;
}

/**
 * dat_ep_get_status - state and idleness of an EP
 * @ep_handle: EP
 * @ep_state: where the state goes; may be NULL
 * @recv_idle: where DAT_TRUE goes if no Receive is outstanding; may be NULL
 * @request_idle: the same for requests; may be NULL. A suppressed request
 *	counts as outstanding until a later one has completed
 *
 * A snapshot. Completions that wait to be dequeued do not make a queue busy.
 *
 * Context: any.
 * Return: DAT_SUCCESS or DAT_INVALID_HANDLE.
 */
DAT_RETURN dat_ep_get_status(DAT_EP_HANDLE ep_handle, DAT_EP_STATE *ep_state,
			     DAT_BOOLEAN *recv_idle, DAT_BOOLEAN *request_idle)
{
	struct kdapl_conn *conn;
	struct kdapl_ep *ep;

	rcu_read_lock();
	ep = kdapl_handle_peek(ep_handle, DAT_HANDLE_TYPE_EP);
	if (!ep) {
		rcu_read_unlock();
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	}
	conn = rcu_dereference(ep->conn);
	if (recv_idle)
		*recv_idle = conn ? query_idle(conn->rq) : DAT_TRUE;
	if (request_idle)
		*request_idle = conn ? query_idle(conn->sq) : DAT_TRUE;
	if (ep_state)
		*ep_state = READ_ONCE(ep->state);
	rcu_read_unlock();
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_ep_get_status);

/* Entries between tail and head. RCU read side. */
static u32 query_count(struct kdapl_wq *wq)
{
	u32 tail = smp_load_acquire(&wq->tail);	/* first: it follows head */

	return READ_ONCE(wq->head) - tail;
}

/**
 * dat_ep_recv_query - how many Receive buffers an EP has
 * @ep_handle: EP in any state
 * @nbufs_allocated: where the count goes; may be NULL. With an SRQ: buffers
 *	taken from it that the consumer does not have back yet; otherwise:
 *	Receives posted that have not completed
 * @bufs_alloc_span: where the number of Receives that can still complete with them
 *	goes, the same number, since every message takes one buffer; may be NULL
 *
 * A snapshot. Completions are polled first, as in dat_evd_dequeue().
 *
 * Context: any.
 * Return: DAT_SUCCESS or DAT_INVALID_HANDLE.
 */
DAT_RETURN dat_ep_recv_query(DAT_EP_HANDLE ep_handle, DAT_COUNT *nbufs_allocated,
			     DAT_COUNT *bufs_alloc_span)
{
	struct kdapl_conn *conn;
	struct kdapl_ep *ep;
	DAT_COUNT n = 0;

	rcu_read_lock();
	ep = kdapl_handle_peek(ep_handle, DAT_HANDLE_TYPE_EP);
	if (!ep) {
		rcu_read_unlock();
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	}
	conn = rcu_dereference(ep->conn);
	if (conn) {
		kdapl_wq_poll_cq(conn->rq);
		n = conn->pool ? READ_ONCE(conn->srq_bufs_held) : query_count(conn->rq);
	}
	rcu_read_unlock();
	if (nbufs_allocated)
		*nbufs_allocated = n;
	if (bufs_alloc_span)
		*bufs_alloc_span = n;
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_ep_recv_query);
