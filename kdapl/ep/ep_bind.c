// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Posting the request that binds an RMR. What it does to the RMR is in mem/rmr.c.
 */
#include <linux/export.h>

#include "post.h"

/* Post the bind of a claimed RMR. */
static enum kdapl_verdict bind_post(struct kdapl_rmr *rmr, struct kdapl_bind *bind,
				    struct kdapl_conn *conn, struct kdapl_post *post)
{
	enum kdapl_verdict why = KDAPL_ACCEPTED;

	post->obj = &rmr->obj;
	/* otherwise it will be flushed: nothing changes */
	if (READ_ONCE(conn->sq->mode) == KDAPL_WQ_LIVE) {
		why = kdapl_rmr_begin(rmr, bind);
		if (bind->lmr) {
			post->mr = bind->mr->ibmr;
			post->key = bind->context;
			post->access = kdapl_mr_access(bind->priv & KDAPL_PRIV_REMOTE);
		}
		post->inv_key = bind->old;
	}
	if (!why)
		why = kdapl_post_requests(conn, post, 1);
	if (why || post->unposted)
		kdapl_rmr_op_done(rmr, KDAPL_NEVER);
	return why;
}

static enum kdapl_verdict bind_check(const struct kdapl_bind *bind, const DAT_RMR_CONTEXT *context)
{
	if (!bind->part)
		return KDAPL_REFUSE_MEMORY;
	if (bind->priv & ~DAT_MEM_PRIV_ALL_FLAG)
		return KDAPL_REFUSE_PRIV;
	if (bind->va_type != DAT_VA_TYPE_VA && bind->va_type != DAT_VA_TYPE_ZB)
		return KDAPL_REFUSE_VA_TYPE;
	return context ? KDAPL_ACCEPTED : KDAPL_REFUSE_OUT;
}

/* Look the LMR up. An unbind has none, whatever handle it comes with. */
static enum kdapl_verdict bind_find_lmr(struct kdapl_bind *bind, const struct kdapl_rmr *rmr,
					DAT_LMR_HANDLE handle)
{
	if (bind->part && !bind->part->segment_length)
		return KDAPL_ACCEPTED;
	bind->lmr = kdapl_handle_peek(handle, DAT_HANDLE_TYPE_LMR);
	if (!bind->lmr || bind->lmr->obj.ia != rmr->obj.ia)
		return KDAPL_REFUSE_NO_LMR;
	return bind->lmr->reserved ? KDAPL_REFUSE_RESERVED_LMR : KDAPL_ACCEPTED;
}

static enum kdapl_verdict bind_call(struct kdapl_bind *bind, struct kdapl_post *post,
				    struct kdapl_rmr *rmr, DAT_LMR_HANDLE lmr_handle,
				    struct kdapl_ep *ep, const DAT_RMR_CONTEXT *context)
{
	enum kdapl_verdict why;
	struct kdapl_conn *conn;

	if (!rmr)
		return KDAPL_REFUSE_NO_RMR;
	why = bind_find_lmr(bind, rmr, lmr_handle);
	if (why)
		return why;
	if (!ep)
		return KDAPL_REFUSE_NO_EP;
	conn = rcu_dereference(ep->conn);
	why = bind_check(bind, context) ?: kdapl_post_check_state(ep, conn, post, KDAPL_FLAGS_RDMA);
	if (why)
		return why;
	if (rmr->mr[0].pd != conn->pd)
		return KDAPL_REFUSE_PZ;
	bind->ep = (unsigned long)conn->handle;
	return kdapl_rmr_claim(rmr, bind, &conn->op_owner) ?: bind_post(rmr, bind, conn, post);
}

/**
 * dat_rmr_bind - open a window onto an LMR for peers, or close it
 * @rmr_handle: RMR
 * @lmr_handle: LMR; ignored if the window is to be closed
 * @lmr_triplet: which part of it; length 0 closes the window. Read during the call
 * @mem_priv: REMOTE_READ (the LMR must have LOCAL_READ) and REMOTE_WRITE
 *	(LOCAL_WRITE); local rights are ignored
 * @va_type: DAT_VA_TYPE_VA: peers use the addresses of @lmr_triplet;
 *	DAT_VA_TYPE_ZB: peers count from 0, and the part must start on a page
 * @ep_handle: EP in CONNECTED, of the PZ of both; in DISCONNECTED the bind is flushed
 * @user_cookie: comes back with the completion
 * @completion_flags: SUPPRESS, BARRIER_FENCE; UNSIGNALLED if the EP is configured
 *	for it
 * @context: where the key for peers goes; without meaning if the window is closed
 *
 * The completion is a DAT_RMR_BIND_COMPLETION_EVENT on the request EVD. No request
 * that is posted later on the EP starts before the bind is done, so a Send may carry
 * the key at once. When the completion comes, the key of the previous bind is invalid.
 * The previous LMR is in use until then, the new one from the return of the call. At
 * most one bind of an RMR may be outstanding. If the RMR is already bound, the bind
 * takes two places of the request queue, unless the request EVD of the EP has
 * DAT_EVD_RMR_BIND_FLAG: then the queue has room for both.
 *
 * Context: any; does not sleep or allocate.
 * Return: DAT_SUCCESS (the bind will complete);
 * DAT_INVALID_HANDLE (RMR, LMR, EP); DAT_RESERVED_LMR;
 * DAT_INVALID_PARAMETER (range outside the LMR, LMR that is not bound,
 * lmr_context that is not the LMR's, rights, flags, NULL); DAT_INVALID_STATE
 * (subtype that of the EP); DAT_PROTECTION_VIOLATION (not all of one PZ; RMR of
 * dat_rmr_create_for_ep() with another EP); DAT_PRIVILEGES_VIOLATION
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
	};
	struct kdapl_bind bind = {
		.part = lmr_triplet,
		.priv = mem_priv,
		.va_type = va_type,
	};
	enum kdapl_verdict why;
	struct kdapl_ep *ep;
	DAT_RETURN ret;

	rcu_read_lock();
	ep = kdapl_handle_peek(ep_handle, DAT_HANDLE_TYPE_EP);
	why = bind_call(&bind, &post, kdapl_handle_peek(rmr_handle, DAT_HANDLE_TYPE_RMR),
			lmr_handle, ep, context);
	ret = kdapl_post_ret(why, ep, KDAPL_CALL_RMR_BIND);
	rcu_read_unlock();
	if (ret == DAT_SUCCESS)
		*context = bind.context;
	return ret;
}
EXPORT_SYMBOL(dat_rmr_bind);
