// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The request that binds an RMR: checked, begun, posted. What it does to the RMR is in rmr.c.
 */
#include <linux/export.h>

#include "post.h"

/* Post it on a connection. The claim is ours. */
static DAT_RETURN bind_post(struct kdapl_rmr *rmr, struct kdapl_bind *bind, struct kdapl_ep *ep,
			    struct kdapl_conn *conn, struct kdapl_post *post)
{
	DAT_RETURN ret = DAT_SUCCESS;

	post->obj = &rmr->obj;
	/* without a connection it will be flushed: nothing changes */
	if (READ_ONCE(conn->sq->mode) == KDAPL_WQ_LIVE) {
		ret = kdapl_rmr_begin(rmr, bind);
		if (bind->lmr) {
			post->mr = bind->mr->ibmr;
			post->key = bind->context;
			post->access = kdapl_mr_access(bind->priv & KDAPL_PRIV_REMOTE);
		}
		post->inv_key = bind->old;
	}
	if (ret == DAT_SUCCESS)
		ret = kdapl_post_requests(ep, conn, post, 1);
	if (ret != DAT_SUCCESS || post->soft)
		kdapl_rmr_op_done(rmr, KDAPL_NEVER);
	return ret;
}

static DAT_RETURN bind_check(const struct kdapl_bind *bind, const DAT_RMR_CONTEXT *context)
{
	if (!bind->part)
		return kdapl_arg_err(3);
	if (bind->priv & ~DAT_MEM_PRIV_ALL_FLAG)
		return kdapl_arg_err(4);
	if (bind->va_type != DAT_VA_TYPE_VA && bind->va_type != DAT_VA_TYPE_ZB)
		return kdapl_arg_err(5);
	return context ? DAT_SUCCESS : kdapl_arg_err(9);
}

/* The LMR of a bind; NULL for an unbind, where it does not matter. */
static DAT_RETURN bind_find_lmr(struct kdapl_bind *bind, const struct kdapl_rmr *rmr,
				DAT_LMR_HANDLE handle)
{
	if (bind->part && !bind->part->segment_length)
		return DAT_SUCCESS;
	bind->lmr = kdapl_handle_peek(handle, DAT_HANDLE_TYPE_LMR);
	if (!bind->lmr || bind->lmr->obj.ia != rmr->obj.ia)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	if (bind->lmr->reserved)
		return kdapl_err(DAT_RESERVED_LMR, DAT_NO_SUBTYPE);
	return DAT_SUCCESS;
}

static DAT_RETURN bind_call(struct kdapl_bind *bind, struct kdapl_post *post,
			    DAT_RMR_HANDLE rmr_handle, DAT_LMR_HANDLE lmr_handle,
			    DAT_EP_HANDLE ep_handle, DAT_RMR_CONTEXT *context)
{
	struct kdapl_rmr *rmr = kdapl_handle_peek(rmr_handle, DAT_HANDLE_TYPE_RMR);
	struct kdapl_ep *ep = kdapl_handle_peek(ep_handle, DAT_HANDLE_TYPE_EP);
	struct kdapl_conn *conn;
	DAT_RETURN ret;

	if (!rmr)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR);
	ret = bind_find_lmr(bind, rmr, lmr_handle);
	if (ret != DAT_SUCCESS)
		return ret;
	if (!ep)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	conn = rcu_dereference(ep->conn);
	ret = bind_check(bind, context);
	if (ret == DAT_SUCCESS)
		ret = kdapl_post_check_common(ep, conn, post, KDAPL_FLAGS_RDMA);
	if (ret == DAT_SUCCESS && rmr->mr[0].pd != conn->pd)
		ret = kdapl_err(DAT_PROTECTION_VIOLATION, DAT_NO_SUBTYPE);
	if (ret != DAT_SUCCESS)
		return ret;
	bind->ep = (unsigned long)conn->handle;
	ret = kdapl_rmr_claim(rmr, bind, &conn->op_owner);
	if (ret == DAT_SUCCESS)
		ret = bind_post(rmr, bind, ep, conn, post);
	return ret;
}

/**
 * dat_rmr_bind - open a window onto an LMR for peers, or close it
 * @rmr_handle: RMR
 * @lmr_handle: LMR; does not matter when the window is to be closed
 * @lmr_triplet: which part of it; length 0 closes the window. Read during the call
 * @mem_priv: REMOTE_READ (the LMR must have LOCAL_READ) and REMOTE_WRITE
 *	(LOCAL_WRITE); local rights do not matter
 * @va_type: DAT_VA_TYPE_VA: peers name the memory by the addresses of @lmr_triplet;
 *	DAT_VA_TYPE_ZB: from 0, for a part that starts on a page
 * @ep_handle: EP in CONNECTED, of the PZ of both; in DISCONNECTED the bind is flushed
 * @user_cookie: comes back with the completion
 * @completion_flags: SUPPRESS, BARRIER_FENCE; UNSIGNALLED if the EP is configured
 *	for it
 * @context: where the key for peers goes; of no meaning when the window is closed
 *
 * The completion is a DAT_RMR_BIND_COMPLETION_EVENT on the request EVD. Nothing that
 * is posted later on the EP starts before the bind is done, so a Send may carry the
 * key at once. The key of the previous bind is dead when the completion comes; the
 * previous LMR is in use until then, the new one from the return of the call. One
 * bind of an RMR may be under way at a time. Where an RMR is bound already the bind
 * takes two places of the request queue, unless the request EVD of the EP has
 * DAT_EVD_RMR_BIND_FLAG: then there is room for both.
 *
 * Context: any; does not sleep or allocate.
 * Return: DAT_SUCCESS (the bind will complete);
 * DAT_INVALID_HANDLE (RMR, LMR, EP); DAT_RESERVED_LMR;
 * DAT_INVALID_PARAMETER (range outside the LMR, LMR that is not bound,
 * lmr_context that is not the LMR's, rights, flags, NULL); DAT_INVALID_STATE
 * (subtype that of the EP); DAT_PROTECTION_VIOLATION (not all of one PZ; of
 * dat_rmr_create_for_ep() and bound on another EP); DAT_PRIVILEGES_VIOLATION
 * (the LMR lacks the local right); DAT_INSUFFICIENT_RESOURCES (a bind is under
 * way; max_request_dtos are outstanding; subtype MEMORY_REGION: more scattered
 * pages than kdat_ia_mem_limits() says); DAT_MODEL_NOT_SUPPORTED (BARRIER_FENCE on a
 * device that cannot fence a registration); DAT_INTERNAL_ERROR (device removed).
 */
DAT_RETURN dat_rmr_bind(DAT_RMR_HANDLE rmr_handle, DAT_LMR_HANDLE lmr_handle,
			const DAT_LMR_TRIPLET *lmr_triplet, DAT_MEM_PRIV_FLAGS mem_priv,
			DAT_VA_TYPE va_type, DAT_EP_HANDLE ep_handle, DAT_RMR_COOKIE user_cookie,
			DAT_COMPLETION_FLAGS completion_flags, DAT_RMR_CONTEXT *context)
{
	struct kdapl_post post = {
		.cookie = user_cookie,
		.flags = completion_flags,
		.op = DAT_DTO_BIND_MW,
		.flags_arg = 8,
	};
	struct kdapl_bind bind = {
		.part = lmr_triplet,
		.priv = mem_priv,
		.va_type = va_type,
	};
	DAT_RETURN ret;

	rcu_read_lock();
	ret = bind_call(&bind, &post, rmr_handle, lmr_handle, ep_handle, context);
	rcu_read_unlock();
	if (ret == DAT_SUCCESS)
		*context = bind.context;
	return ret;
}
EXPORT_SYMBOL(dat_rmr_bind);
