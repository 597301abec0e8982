// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Several requests in one call: each is checked as if it had been posted alone, then all are
 * handed to the device as one chain, with one doorbell.
 */
#include <linux/export.h>

#include "post.h"

static const struct {
	u8 op;
	u8 call;	/* the one that posts it alone */
} list_ops[] = {
	[KDAT_REQUEST_SEND] = { DAT_DTO_SEND, KDAPL_CALL_SEND },
	[KDAT_REQUEST_SEND_INVALIDATE] = { DAT_DTO_SEND, KDAPL_CALL_SEND },
	[KDAT_REQUEST_RDMA_WRITE] = { DAT_DTO_RDMA_WRITE, KDAPL_CALL_RDMA },
	[KDAT_REQUEST_RDMA_READ] = { DAT_DTO_RDMA_READ, KDAPL_CALL_RDMA },
	[KDAT_REQUEST_LMR_FMR] = { DAT_DTO_LMR_FMR, KDAPL_CALL_LMR_FMR_SG },
	[KDAT_REQUEST_LMR_INVALIDATE] = { DAT_DTO_LMR_INVALIDATE, KDAPL_CALL_LMR_INVALIDATE },
	[KDAT_REQUEST_RDMA_WRITE_IMMED] = { DAT_DTO_RDMA_WRITE, KDAPL_CALL_RDMA },
};

/* Check one request and begin it, up to the posting. */
static enum kdapl_verdict list_begin(struct kdapl_ep *ep, struct kdapl_conn *conn,
				     const struct kdat_request *req, struct kdapl_post *post)
{
	*post = (struct kdapl_post) {
		.cookie = req->user_cookie,
		.flags = req->completion_flags,
	};
	if ((unsigned int)req->op >= ARRAY_SIZE(list_ops))
		return KDAPL_REFUSE_REQUEST;
	post->op = list_ops[req->op].op;
	if (kdapl_post_is_memop(post))
		return kdapl_lmr_op_begin(ep, conn, req, post);
	post->iov = req->local_iov;
	post->n = req->num_segments;
	if (post->op == DAT_DTO_SEND) {
		post->invalidate = req->op == KDAT_REQUEST_SEND_INVALIDATE;
		post->inv_key = post->invalidate ? req->rmr_context : 0;
	} else {
		post->remote = req->remote_iov;
		post->with_immed = req->op == KDAT_REQUEST_RDMA_WRITE_IMMED;
		post->immed = post->with_immed ? req->immed : 0;
	}
	return kdapl_post_check(ep, conn, post);
}

static void list_undo(const struct kdapl_post *posts, int n)
{
	while (n--)
		kdapl_lmr_op_undo(&posts[n]);
}

/* The invalidation of an LMR that is not bound: may it end a binding earlier in the list? */
static enum kdapl_verdict list_begin_inv(struct kdapl_obj *obj, struct kdapl_post *post)
{
	const struct kdapl_post *first = post - post->before, *prev = post;

	while (prev-- > first) {
		if (!prev->obj || prev->obj != obj)
			continue;
		if (prev->op != DAT_DTO_LMR_FMR)
			break;
		post->obj = obj;
		post->inv_key = prev->key;
		return KDAPL_ACCEPTED;
	}
	return KDAPL_REFUSE_LMR_FREE;
}

/*
 * A request has been refused for @why. On a work queue that only flushes, the fmrs before it have
 * not bound their LMRs (FMR-07). It may name their keys and end their bindings all the same, so
 * check it again. The memory behind these keys is not checked, since nothing reaches the device:
 * the work queue cannot become live again.
 */
static noinline enum kdapl_verdict list_begin_again(struct kdapl_ep *ep, struct kdapl_conn *conn,
						    const struct kdat_request *req,
						    struct kdapl_post *post, int before,
						    enum kdapl_verdict why)
{
	if (why != KDAPL_REFUSE_READ && why != KDAPL_REFUSE_WRITE && why != KDAPL_REFUSE_LMR_FREE)
		return why;
	if (READ_ONCE(conn->sq->mode) == KDAPL_WQ_LIVE)
		return why;
	post->before = before;
	if (why == KDAPL_REFUSE_LMR_FREE)
		return list_begin_inv(kdapl_handle_peek(req->lmr_handle, DAT_HANDLE_TYPE_LMR),
				      post);
	post->length = 0;
	return kdapl_post_check(ep, conn, post);
}

static enum kdapl_call list_call_of(const struct kdat_request *req)
{
	return (unsigned int)req->op < ARRAY_SIZE(list_ops) ? list_ops[req->op].call :
							      KDAPL_CALL_LIST;
}

static DAT_RETURN list_post(struct kdapl_ep *ep, struct kdapl_conn *conn,
			    const struct kdat_request *requests, int n, DAT_COUNT *failed)
{
	struct kdapl_post posts[KDAT_POST_LIST_MAX] __uninitialized;	/* most lists are short */
	enum kdapl_verdict why;
	DAT_RETURN ret;
	int i;

	for (i = 0; i < n; i++) {
		why = list_begin(ep, conn, &requests[i], &posts[i]);
		if (unlikely(why))
			why = list_begin_again(ep, conn, &requests[i], &posts[i], i, why);
		if (unlikely(why)) {
			*failed = i;
			list_undo(posts, i);
			goto refused;
		}
	}
	why = kdapl_post_requests(conn, posts, n);
	if (why || posts[0].unposted)
		list_undo(posts, n);
	if (likely(!why))
		return DAT_SUCCESS;
	*failed = 0;
refused:
	ret = kdapl_post_ret(why, ep, list_call_of(&requests[*failed]));
	trace_kdapl_post_refused(ep->obj.handle, posts[*failed].op, posts[*failed].cookie.as_64,
				 ret);
	return ret;
}

static DAT_RETURN list_call(DAT_EP_HANDLE ep_handle, const struct kdat_request *requests,
			    DAT_COUNT n, DAT_COUNT *failed)
{
	struct kdapl_ep *ep = kdapl_handle_peek(ep_handle, DAT_HANDLE_TYPE_EP);
	struct kdapl_conn *conn;

	*failed = 0;
	if (!ep)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (!requests)
		return kdapl_arg_err(2);
	if (n <= 0 || n > KDAT_POST_LIST_MAX)
		return kdapl_arg_err(3);
	conn = rcu_dereference(ep->conn);
	if (READ_ONCE(ep->obj.ia->dead))
		return kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	if (!conn)
		return kdapl_state_err(READ_ONCE(ep->state));
	if (!kdapl_dev_there(conn->dev))
		return kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	return list_post(ep, conn, requests, n, failed);
}

/**
 * kdat_ep_post_list - post several requests in one call
 * @ep_handle: EP in CONNECTED; in DISCONNECTED the requests are flushed at once
 * @requests: in the order in which to carry them out; read during the call only
 * @num_requests: how many, at most KDAT_POST_LIST_MAX
 * @failed: where the index of the bad request goes after an error, counted from 0; 0 also
 *	if the error concerns the whole list; may be NULL
 *
 * The effect is that of one call for each request, except that either all are posted or
 * none. A request may use the key of an LMR bound earlier in the list:
 * kdat_lmr_next_contexts() tells that key in advance. There is one doorbell for all. Each
 * request completes by its own flags. An extension of this provider.
 *
 * Context: any; does not sleep or allocate.
 * Return: DAT_SUCCESS; what the call that the bad request replaces would have
 * returned; DAT_INVALID_HANDLE (EP); DAT_INVALID_PARAMETER (ARG2: NULL,
 * operation; ARG3: count); DAT_INSUFFICIENT_RESOURCES (not enough room in the
 * queue for all of them).
 */
DAT_RETURN kdat_ep_post_list(DAT_EP_HANDLE ep_handle, const struct kdat_request *requests,
			     DAT_COUNT num_requests, DAT_COUNT *failed)
{
	DAT_COUNT ignored;
	DAT_RETURN ret;

	rcu_read_lock();
	ret = list_call(ep_handle, requests, num_requests, failed ?: &ignored);
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(kdat_ep_post_list);
