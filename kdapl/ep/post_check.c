// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The slow path of a post, first part: every check, in the order of GEN-10.
 */
#include "post.h"

/* Flags of a request that uses a Receive of the peer. */
#define FLAGS_SEND	(KDAPL_FLAGS_RDMA | DAT_COMPLETION_SOLICITED_WAIT_FLAG)

/*
 * Is this the key of a binding that none of the requests between ends? Only for a request with
 * @before.
 */
static bool check_bound_before(const struct kdapl_post *post, u32 key)
{
	const struct kdapl_post *first = post - post->before;

	while (post-- > first) {
		if (post->op == DAT_DTO_LMR_FMR && post->key == key)
			return true;
		if (post->op == DAT_DTO_LMR_INVALIDATE && post->inv_key == key)
			return false;
	}
	return false;
}

/* Check one segment that is not empty, in the order of SIL-03. */
static enum kdapl_verdict check_segment(struct kdapl_ia *ia, const unsigned long *domain,
					const DAT_LMR_TRIPLET *seg, DAT_MEM_PRIV_FLAGS need,
					struct kdapl_post *post)
{
	bool write = need & DAT_MEM_PRIV_LOCAL_WRITE_FLAG;
	struct kdapl_range range;

	if (unlikely(!kdapl_key_find(ia, seg->lmr_context, &range))) {
		if (check_bound_before(post, seg->lmr_context))
			return KDAPL_ACCEPTED;
		return write ? KDAPL_REFUSE_WRITE : KDAPL_REFUSE_READ;
	}
	if (unlikely((range.priv & need) != need))
		return !write ? KDAPL_REFUSE_READ :
		       range.priv & DAT_MEM_PRIV_LOCAL_WRITE_FLAG ?
		       KDAPL_REFUSE_RDMA_WRITE : KDAPL_REFUSE_WRITE;
	if (unlikely(range.domain != domain[0])) {
		if (range.domain && range.domain != domain[1])
			return write ? KDAPL_REFUSE_PZ_WRITE : KDAPL_REFUSE_PZ_READ;
		post->rewrite |= !range.domain;	/* the reserved LMR has another key there */
	}
	if (unlikely(seg->segment_length > range.length ||
		     seg->virtual_address - range.start > range.length - seg->segment_length))
		return KDAPL_REFUSE_MEMORY;
	if (unlikely(range.priv & KDAPL_PRIV_LOCAL)) {
		post->rewrite = true;
		post->local = ia;
	}
	if (unlikely(!(range.priv & KDAPL_PRIV_SAME)))
		post->sync = true;
	return KDAPL_ACCEPTED;
}

/**
 * kdapl_post_check_iov - check the segments of a post and count their bytes
 * @ia: IA
 * @domain: ids of PD and EP, whose keys may be used
 * @post: request or Receive with @length 0; @rewrite and @sync are set if need be
 * @need: rights it needs
 *
 * Context: any; RCU read side.
 * Return: KDAPL_ACCEPTED or the reason to refuse it.
 */
enum kdapl_verdict kdapl_post_check_iov(struct kdapl_ia *ia, const unsigned long *domain,
					struct kdapl_post *post, DAT_MEM_PRIV_FLAGS need)
{
	enum kdapl_verdict why;
	int i = 0;

	if (unlikely(!post->n)) {
		post->iov = NULL;	/* some devices would read the list (D-96) */
		return KDAPL_ACCEPTED;
	}
	do {
		if (unlikely(!post->iov[i].segment_length)) {
			post->rewrite = true;	/* leave it out: its key may be anything */
			continue;
		}
		why = check_segment(ia, domain, &post->iov[i], need, post);
		if (unlikely(why))
			return why;
		post->length += post->iov[i].segment_length;
	} while (++i < post->n);
	return KDAPL_ACCEPTED;
}

/*
 * Does the device have no means to fence this request (D-95)? A bind counts as a
 * registration, since its WRs are not known yet.
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

/* The flags, and whether there is a device. */
static enum kdapl_verdict check_flags(struct kdapl_ep *ep, const DAT_EP_ATTR *attr,
				      const struct kdapl_post *post, DAT_COMPLETION_FLAGS legal)
{
	if (unlikely(post->flags & ~legal))
		return KDAPL_REFUSE_FLAGS;
	if (unlikely((post->flags & DAT_COMPLETION_UNSIGNALLED_FLAG) &&
		     attr->request_completion_flags != DAT_COMPLETION_UNSIGNALLED_FLAG))
		return KDAPL_REFUSE_FLAGS;
	if (unlikely(READ_ONCE(ep->obj.ia->dead)))
		return KDAPL_REFUSE_NO_DEVICE;
	if (unlikely(kdapl_post_is_fenced(post) &&
		     check_unfenceable(&ep->obj.ia->dev->caps, post)))
		return KDAPL_REFUSE_NO_FENCE;
	if (unlikely(post->with_immed && ep->obj.ia->dev->caps.no_immed))
		return KDAPL_REFUSE_NO_IMMED;
	return KDAPL_ACCEPTED;
}

static enum kdapl_verdict check_state(struct kdapl_conn *conn)
{
	return unlikely(!conn || READ_ONCE(conn->sq->mode) == KDAPL_WQ_REFUSE) ?
	       KDAPL_REFUSE_STATE : KDAPL_ACCEPTED;
}

/**
 * kdapl_post_check_state - check flags and state only
 * @ep: EP
 * @conn: its connection, or NULL
 * @post: request, whose other arguments the caller checks
 * @legal: flags it may have
 *
 * Context: any; RCU read side.
 * Return: KDAPL_ACCEPTED, and @conn is not NULL; or the reason to refuse it.
 */
enum kdapl_verdict kdapl_post_check_state(struct kdapl_ep *ep, struct kdapl_conn *conn,
					  const struct kdapl_post *post,
					  DAT_COMPLETION_FLAGS legal)
{
	return check_flags(ep, kdapl_post_attr(ep, conn), post, legal) ?: check_state(conn);
}

/* Checks (2) and (3) of GEN-10: arguments, flags, device. */
static enum kdapl_verdict check_args(struct kdapl_ep *ep, const DAT_EP_ATTR *attr,
				     const struct kdapl_post *post, DAT_COUNT max_iov,
				     DAT_COMPLETION_FLAGS legal)
{
	if (unlikely(post->n < 0 || post->n > max_iov))
		return KDAPL_REFUSE_COUNT;
	if (unlikely(post->n && !post->iov))
		return KDAPL_REFUSE_MEMORY;
	if (unlikely(post->op != DAT_DTO_SEND && !post->remote))
		return KDAPL_REFUSE_REMOTE;
	return check_flags(ep, attr, post, legal);
}

/* Rights, ranges and lengths. */
static enum kdapl_verdict check_memory(struct kdapl_conn *conn, struct kdapl_post *post,
				       u64 max_length)
{
	u64 remote_length = post->remote ? post->remote->segment_length : 0;
	DAT_MEM_PRIV_FLAGS need = DAT_MEM_PRIV_LOCAL_READ_FLAG;
	const struct kdapl_wq *wq = conn->sq;
	enum kdapl_verdict why;

	if (post->op == DAT_DTO_RDMA_READ) {
		need = DAT_MEM_PRIV_LOCAL_WRITE_FLAG;
		if (conn->dev->iwarp)
			need |= DAT_MEM_PRIV_REMOTE_WRITE_FLAG;	/* the peer writes there (D-22) */
	}
	why = kdapl_post_check_iov(wq->ia, wq->domain, post, need);
	if (unlikely(why))
		return why;
	if (post->op == DAT_DTO_RDMA_READ) {
		if (unlikely(remote_length > post->length))
			return KDAPL_REFUSE_LENGTH;
		/* the remote buffer says how much; the rest of the list stays untouched */
		if (remote_length < post->length) {
			post->rewrite = true;
			post->length = remote_length;
		}
	} else if (unlikely(post->remote && post->length > remote_length)) {
		return KDAPL_REFUSE_LENGTH;
	}
	return unlikely(post->length > max_length) ? KDAPL_REFUSE_MEMORY : KDAPL_ACCEPTED;
}

/**
 * kdapl_post_no_reads - refuse a Read on a connection that allows none
 * @conn: connection
 *
 * The DAT code does not say why, so the first refusal of a connection is logged (RDMAR-17).
 *
 * Context: any; RCU read side.
 * Return: KDAPL_REFUSE_EP.
 */
enum kdapl_verdict kdapl_post_no_reads(struct kdapl_conn *conn)
{
	const struct kdapl_ia *ia = conn->ep->obj.ia;

	if (!atomic_xchg(&conn->reads_refused, 1)) {
		pr_warn_ratelimited("%s-%u: QP %u of %s: RDMA Read refused: negotiated read depth is %d (max_rdma_read_out here is %d)\n",
				    conn->dev->name, ia->port, conn->qpn, ia->consumer,
				    conn->read_depth, conn->attr.max_rdma_read_out);
	}
	return KDAPL_REFUSE_EP;
}

/**
 * kdapl_post_check - check a Send, Write or Read
 * @ep: EP
 * @conn: its connection, or NULL
 * @post: request
 *
 * Context: any; RCU read side.
 * Return: KDAPL_ACCEPTED or the reason to refuse it.
 */
enum kdapl_verdict kdapl_post_check(struct kdapl_ep *ep, struct kdapl_conn *conn,
				    struct kdapl_post *post)
{
	const DAT_EP_ATTR *attr = kdapl_post_attr(ep, conn);
	DAT_COMPLETION_FLAGS legal = KDAPL_FLAGS_RDMA;
	u64 max_length = attr->max_rdma_size;
	enum kdapl_verdict why;
	DAT_COUNT max_iov;

	switch (post->op) {
	case DAT_DTO_SEND:
		legal = FLAGS_SEND;
		max_iov = attr->max_request_iov;
		max_length = attr->max_message_size;
		break;
	case DAT_DTO_RDMA_WRITE:
		if (post->with_immed)
			legal = FLAGS_SEND;
		max_iov = attr->max_rdma_write_iov;
		break;
	default:
		max_iov = attr->max_rdma_read_iov;
	}
	why = check_args(ep, attr, post, max_iov, legal) ?: check_state(conn);
	if (unlikely(why))
		return why;
	if (unlikely(post->op == DAT_DTO_RDMA_READ && !kdapl_conn_allows_reads(conn)))
		return kdapl_post_no_reads(conn);
	return check_memory(conn, post, max_length);
}
