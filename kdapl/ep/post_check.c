// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The slow path of posts: what is wrong with one.
 */
#include "post.h"

#define FLAGS_SEND	(KDAPL_FLAGS_RDMA | DAT_COMPLETION_SOLICITED_WAIT_FLAG)

/* Check one segment that is not empty, in the order of SIL-03. */
static DAT_RETURN check_segment(struct kdapl_ia *ia, const unsigned long *domain,
				   const DAT_LMR_TRIPLET *seg, DAT_MEM_PRIV_FLAGS need,
				     struct kdapl_post *post)
{
	bool write = need & DAT_MEM_PRIV_LOCAL_WRITE_FLAG;
	struct kdapl_range range;

	if (unlikely(!kdapl_key_find(ia, seg->lmr_context, &range)))
		return kdapl_err(DAT_PRIVILEGES_VIOLATION,
				 write ? DAT_PRIVILEGES_WRITE : DAT_PRIVILEGES_READ);
	if (unlikely((range.priv & need) != need))
		return kdapl_err(DAT_PRIVILEGES_VIOLATION, !write ? DAT_PRIVILEGES_READ :
				 range.priv & DAT_MEM_PRIV_LOCAL_WRITE_FLAG ?
				 DAT_PRIVILEGES_RDMA_WRITE : DAT_PRIVILEGES_WRITE);
	if (unlikely(range.domain != domain[0])) {
		if (range.domain && range.domain != domain[1])
			return kdapl_err(DAT_PROTECTION_VIOLATION,
					 write ? DAT_PROTECTION_WRITE : DAT_PROTECTION_READ);
		post->rewrite |= !range.domain;
	}
	if (unlikely(seg->segment_length > range.length ||
		     seg->virtual_address - range.start > range.length - seg->segment_length))
		return kdapl_arg_err(3);
	if (unlikely(!(range.priv & KDAPL_PRIV_DIRECT)))
		post->sync = true;
	return DAT_SUCCESS;
}

DAT_RETURN kdapl_post_check_iov(struct kdapl_ia *ia, const unsigned long *domain,
				 struct kdapl_post *post, DAT_MEM_PRIV_FLAGS need)
{
	DAT_RETURN ret;
	int i = 0;

	if (unlikely(!post->n)) {
		post->iov = NULL;	/* D-96 */
		return DAT_SUCCESS;
	}
	do {
		if (unlikely(!post->iov[i].segment_length)) {
			post->rewrite = true;	/* whatever else it says is not looked at */
			continue;
		}
		ret = check_segment(ia, domain, &post->iov[i], need, post);
		if (unlikely(ret != DAT_SUCCESS))
			return ret;
		post->length += post->iov[i].segment_length;
	} while (++i < post->n);
	return DAT_SUCCESS;
}

/*
 * Can the device not fence a request of this kind, by whatever means (D-95)? What an
 * operation on an LMR or RMR consists of is not known yet.
 */
static bool check_unfenceable(const struct kdapl_caps *caps, const struct kdapl_post *post)
{
	enum ib_wr_opcode opcode = IB_WR_REG_MR;

	if (likely(caps->fence_by != KDAPL_FENCE_NONE))
		return false;
	if (!kdapl_post_is_memop(post))
		opcode = kdapl_post_opcode(post);
	else if (post->op == DAT_DTO_LMR_INVALIDATE)
		opcode = IB_WR_LOCAL_INV;
	return caps->unfenced & BIT_ULL(opcode);
}

/* What GEN-10 (3) says of the flags, and whether there is a device. */
static DAT_RETURN check_flags(struct kdapl_ep *ep, const DAT_EP_ATTR *attr,
				      const struct kdapl_post *post, DAT_COMPLETION_FLAGS legal)
{
	if (unlikely(post->flags & ~legal))
		return kdapl_arg_err(post->flags_arg);
	if (unlikely((post->flags & DAT_COMPLETION_UNSIGNALLED_FLAG) &&
		     attr->request_completion_flags != DAT_COMPLETION_UNSIGNALLED_FLAG))
		return kdapl_arg_err(post->flags_arg);
	if (unlikely(READ_ONCE(ep->obj.ia->dead)))
		return kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	if (unlikely(kdapl_post_is_fenced(post) && check_unfenceable(&ep->obj.ia->dev->caps, post)))
		return kdapl_err(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	return DAT_SUCCESS;
}

static DAT_RETURN check_state(struct kdapl_ep *ep, struct kdapl_conn *conn)
{
	if (unlikely(!conn || READ_ONCE(conn->sq->mode) == KDAPL_WQ_REFUSE))
		return kdapl_state_err(READ_ONCE(ep->state));
	return DAT_SUCCESS;
}

/**
 * kdapl_post_check_common - flags and state for a request without segments
 * @ep: EP
 * @conn: its connection, or NULL
 * @post: request
 * @legal: flags it may have
 *
 * Context: any; RCU read side.
 * Return: DAT_SUCCESS, and @conn is one; or the error.
 */
DAT_RETURN kdapl_post_check_common(struct kdapl_ep *ep, struct kdapl_conn *conn,
			       const struct kdapl_post *post, DAT_COMPLETION_FLAGS legal)
{
	DAT_RETURN ret = check_flags(ep, kdapl_post_attr(ep, conn), post, legal);

	return ret == DAT_SUCCESS ? check_state(ep, conn) : ret;
}

/* Checks (2) and (3) of GEN-10 that all data transfer requests share. */
static DAT_RETURN check_args(struct kdapl_ep *ep, const DAT_EP_ATTR *attr,
				const struct kdapl_post *post, DAT_COUNT max_iov,
				DAT_COMPLETION_FLAGS legal)
{
	if (unlikely(post->n < 0 || post->n > max_iov))
		return kdapl_arg_err(2);
	if (unlikely(post->n && !post->iov))
		return kdapl_arg_err(3);
	if (unlikely(post->op != DAT_DTO_SEND && !post->remote))
		return kdapl_arg_err(5);
	return check_flags(ep, attr, post, legal);
}

/* Rights and range of what is transferred. */
static DAT_RETURN check_memory(struct kdapl_ep *ep, struct kdapl_conn *conn,
				       struct kdapl_post *post, u64 max_length)
{
	u64 remote_length = post->remote ? post->remote->segment_length : 0;
	DAT_MEM_PRIV_FLAGS need = DAT_MEM_PRIV_LOCAL_READ_FLAG;
	DAT_RETURN ret;

	if (post->op == DAT_DTO_RDMA_READ) {
		need = DAT_MEM_PRIV_LOCAL_WRITE_FLAG;
		if (ep->obj.ia->dev->iwarp)
			need |= DAT_MEM_PRIV_REMOTE_WRITE_FLAG;	/* D-22 */
	}
	ret = kdapl_post_check_iov(ep->obj.ia, conn->sq->domain, post, need);
	if (unlikely(ret != DAT_SUCCESS))
		return ret;
	if (post->op == DAT_DTO_RDMA_READ) {
		if (unlikely(remote_length > post->length))
			return kdapl_err(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE);
		/* the remote buffer says how much; the rest of the list stays untouched */
		if (remote_length < post->length) {
			post->rewrite = true;
			post->length = remote_length;
		}
	} else if (unlikely(post->remote && post->length > remote_length)) {
		return kdapl_err(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE);
	}
	return unlikely(post->length > max_length) ? kdapl_arg_err(3) : DAT_SUCCESS;
}

/* A Read on a connection without: the refusal alone tells too little of why (RDMAR-17). */
static noinline DAT_RETURN check_no_reads(struct kdapl_conn *conn)
{
	if (!atomic_xchg(&conn->reads_refused, 1)) {
		pr_warn_ratelimited("%s: EP %u: an RDMA Read is refused: max_rdma_read_out is %d here, and the peer takes %d\n",
				    conn->ep->obj.ia->name, kdapl_id(conn->handle),
				    conn->attr.max_rdma_read_out, conn->read_depth);
	}
	return kdapl_arg_err(1);
}

/**
 * kdapl_post_check - check a data transfer request
 * @ep: EP
 * @conn: its connection, or NULL
 * @post: request
 *
 * Context: any; RCU read side.
 * Return: DAT_SUCCESS or the error.
 */
DAT_RETURN kdapl_post_check(struct kdapl_ep *ep, struct kdapl_conn *conn,
				 struct kdapl_post *post)
{
	const DAT_EP_ATTR *attr = kdapl_post_attr(ep, conn);
	DAT_COMPLETION_FLAGS legal = KDAPL_FLAGS_RDMA;
	u64 max_length = attr->max_rdma_size;
	DAT_COUNT max_iov;
	DAT_RETURN ret;

	switch (post->op) {
	case DAT_DTO_SEND:
		legal = FLAGS_SEND;
		max_iov = attr->max_request_iov;
		max_length = attr->max_message_size;
		break;
	case DAT_DTO_RDMA_WRITE:
		max_iov = attr->max_rdma_write_iov;
		break;
	default:
		max_iov = attr->max_rdma_read_iov;
	}
	ret = check_args(ep, attr, post, max_iov, legal);
	if (unlikely(ret != DAT_SUCCESS))
		return ret;
	ret = check_state(ep, conn);
	if (unlikely(ret != DAT_SUCCESS))
		return ret;
	if (unlikely(post->op == DAT_DTO_RDMA_READ && !kdapl_conn_reads(conn)))
		return check_no_reads(conn);
	return check_memory(ep, conn, post, max_length);
}
