// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The posting calls.
 *
 * A post runs inside one RCU read section: handle, connection and LMRs are looked up
 * without taking references. It allocates nothing, sleeps nowhere and hands at
 * most one chain to the provider, under the lock of its work queue, which makes work queue
 * order and queue order the same; or without it, if the consumer promised that
 * posts come one at a time (D-78).
 *
 * Everything that can be known here is checked before anything is posted: a
 * request the provider refuses can cost a queue slot for ever (soft-iWARP) or
 * hang. A post that passed the checks succeeds; should the provider refuse it
 * all the same, the connection ends and the request is reported FLUSHED (D-07).
 *
 * A DAT triplet has the layout of a struct ib_sge, so the consumer's list goes
 * through as it is unless a segment is empty or the list must be shortened.
 *
 * What is posted most, a Send, Write, Read or Receive that has nothing special and
 * nothing wrong about it, takes a fast path (fast_post(), fast_recv()). It
 * changes nothing before it knows that all is well; whatever it does not like it leaves to
 * the slow path, which knows all rules and all errors (D-77).
 */
#include <linux/export.h>
#include <linux/mm.h>

#include "ep.h"
#include "../core/trace.h"

static_assert(sizeof(DAT_LMR_TRIPLET) == sizeof(struct ib_sge));
static_assert(offsetof(DAT_LMR_TRIPLET, virtual_address) == offsetof(struct ib_sge, addr));
static_assert(offsetof(DAT_LMR_TRIPLET, segment_length) == offsetof(struct ib_sge, length));
static_assert(offsetof(DAT_LMR_TRIPLET, lmr_context) == offsetof(struct ib_sge, lkey));

#define FLAGS_RECV	DAT_COMPLETION_UNSIGNALLED_FLAG
#define FLAGS_SEND	(KDAPL_FLAGS_RDMA | DAT_COMPLETION_SOLICITED_WAIT_FLAG)

/**
 * struct kdapl_user - the PD and EP of a post, as the key table knows them
 * @domain: ids of PD and EP, 0 for an EP that is none
 */
struct kdapl_user {
	unsigned long domain[2];
};

static struct kdapl_user post_user(const struct kdapl_pd *pd, DAT_EP_HANDLE ep)
{
	return (struct kdapl_user) { .domain = { kdapl_pd_domain(pd), (unsigned long)ep } };
}

/* Check one segment that is not empty, in the order of SIL-03. */
static DAT_RETURN post_check_segment(struct kdapl_ia *ia, const struct kdapl_user *user,
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
	if (unlikely(range.domain != user->domain[0])) {
		if (range.domain && range.domain != user->domain[1])
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

static DAT_RETURN post_check_iov(struct kdapl_ia *ia, const struct kdapl_user *user,
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
		ret = post_check_segment(ia, user, &post->iov[i], need, post);
		if (unlikely(ret != DAT_SUCCESS))
			return ret;
		post->length += post->iov[i].segment_length;
	} while (++i < post->n);
	return DAT_SUCCESS;
}

static noinline struct ib_sge *post_write_list(struct ib_sge *scratch,
					       const struct kdapl_post *post,
					       const struct kdapl_pd *pd, u64 length, int *num)
{
	struct ib_sge *sge = scratch;
	u64 left = length;
	int i;

	for (i = 0; i < post->n && left; i++) {
		if (!post->iov[i].segment_length)
			continue;
		sge->addr = post->iov[i].virtual_address;
		sge->length = min_t(u64, post->iov[i].segment_length, left);
		sge->lkey = post->iov[i].lmr_context == KDAPL_RESERVED_CONTEXT ?
			    pd->pd->local_dma_lkey : post->iov[i].lmr_context;
		left -= sge->length;
		sge++;
	}
	*num = sge - scratch;
	return *num ? scratch : NULL;
}

/*
 * The list for the provider, NULL if nothing is in it (D-96). Empty segments are left
 * out, the list ends after @length bytes, and the reserved LMR gets the name it has on
 * this PD. The lock that the scratch list belongs to is held.
 */
static __always_inline struct ib_sge *post_sg_list(struct ib_sge *scratch,
						   const struct kdapl_post *post,
						   const struct kdapl_pd *pd, u64 length, int *num)
{
	if (unlikely(post->rewrite))
		return post_write_list(scratch, post, pd, length, num);
	*num = post->n;
	return (struct ib_sge *)post->iov;
}

/* Segments of LMRs that a request with @sync is about. */
static const DAT_LMR_TRIPLET *post_memory(const struct kdapl_post *post)
{
	return post->behind ?: post->iov;
}

/*
 * The memory is not seen alike by CPU and device: show it to the device as it is now. Without
 * a device there is nobody to see it, and what is posted will be flushed.
 */
static noinline void post_sync(struct kdapl_ia *ia, const struct kdapl_post *post)
{
	bool sink = post->op == DAT_DTO_RDMA_READ || post->op == DAT_DTO_RECEIVE;

	if (kdapl_dev_there(ia->dev))
		kdapl_sync_segments(ia, post_memory(post), post->n, post->length,
				    sink ? KDAPL_SYNC_SINK : KDAPL_SYNC_SOURCE);
}

/*
 * Is there room for @wrs work requests, @dtos of them a consumer's? wq->lock
 * held. With suppressed requests in the work queue some that are done may not have
 * been noticed yet, so a few more are let in (D-09).
 */
static __always_inline bool wq_has_room(struct kdapl_wq *wq, u32 dtos, u32 wrs)
{
	u32 limit = wq->depth;
	u32 slots = wq->slots;

	if ((s32)(wq->last_sup - wq->cached_tail) >= 0)
		limit += wq->interval - 1;
	else
		wq->last_sup = wq->cached_tail - 1;	/* keep it near: indexes wrap */
	/* behind a marker, which is not the consumer's, nothing reaches the device */
	if (wq->mode == KDAPL_WQ_SOFT)
		slots += KDAPL_MARKERS;
	return wq->dtos + dtos - wq->cached_done <= limit &&
	       wq->head + wrs - wq->cached_tail <= slots;
}

static noinline bool wq_look_for_room(struct kdapl_wq *wq, u32 dtos, u32 wrs)
{
	/* tail first: pairs with the release in wq_advance() */
	wq->cached_tail = smp_load_acquire(&wq->tail);
	wq->cached_done = READ_ONCE(wq->dtos_done);
	return wq_has_room(wq, dtos, wrs);
}

static __always_inline bool wq_make_room(struct kdapl_wq *wq, u32 dtos, u32 wrs)
{
	return likely(wq_has_room(wq, dtos, wrs)) || wq_look_for_room(wq, dtos, wrs);
}

static bool recv_has_room(struct kdapl_wq *wq)
{
	if (likely(wq->head - wq->cached_tail < wq->depth))
		return true;
	/* pairs with the release in wq_advance() */
	wq->cached_tail = smp_load_acquire(&wq->tail);
	return wq->head - wq->cached_tail < wq->depth;
}

/* An entry that never reached the device is in the work queue: see that it is reported. */
static void post_flush(struct kdapl_wq *wq)
{
	smp_mb();	/* head is stored before ended is read; pairs with wq_end() */
	if (READ_ONCE(wq->ended))
		kdapl_wq_ready(wq);
}

/*
 * The device refused a legal request. iWARP ones do so when the peer has just
 * disconnected: the CM may still say that nothing worse happened (D-08).
 */
static void post_refused(struct kdapl_conn *conn)
{
	kdapl_conn_end(conn, conn->dev->iwarp ? KDAPL_END_SUSPECT : DAT_CONNECTION_EVENT_BROKEN);
}

/* Every post leaves its entry in the work queue by this. */
static __always_inline void wqe_fill(struct kdapl_wqe *wr, u8 op, u64 cookie, u32 length,
				     u8 flags, enum kdapl_wqe_state state)
{
	wr->cookie = cookie;
	wr->length = length;
	wr->op = op;
	wr->flags = flags;
	wr->state = state;
}

/* The entry of a post that never reaches the device. */
static void wqe_fill_soft(struct kdapl_wq *wq, struct kdapl_wqe *wr,
			  const struct kdapl_post *post)
{
	wqe_fill(wr, post->op, post->cookie.as_64, post->length, post->flags, KDAPL_WQE_SOFT);
	trace_kdapl_post(wq->conn->handle, post->op, wr->cookie, wr->length, post->flags, true);
}

/*
 * Does a request with these completion flags, and nothing else to it, get a completion of
 * its own? wq->lock held.
 */
static __always_inline bool wq_signals(struct kdapl_wq *wq, u8 flags, u32 pos)
{
	bool suppress = flags & DAT_COMPLETION_SUPPRESS_FLAG;

	if (unlikely(suppress))
		wq->last_sup = pos;
	if (likely(!suppress) || wq->unsignaled + 1 >= wq->interval) {
		wq->unsignaled = 0;
		return true;
	}
	wq->unsignaled++;
	return false;
}

/* Must its completion look after suppressed operations on LMRs? wq->lock held. */
static __always_inline bool wq_retires(struct kdapl_wq *wq, bool signaled)
{
	bool retires = signaled && wq->memops_before;

	if (unlikely(retires))
		wq->memops_before = false;
	return retires;
}

/*
 * Must a Send, Write or Read have a completion whatever its flags say? Where Reads complete
 * out of order, a Read. Where the network reads the pages of a request that has no completion
 * instead of a copy, one from a page on: the consumer would have to wait for the peer, not
 * for the next completion, before using them again.
 */
static __always_inline bool dto_must_signal(const struct kdapl_wq *wq, u8 op, u64 length)
{
	return (wq->ooo && op == DAT_DTO_RDMA_READ) ||
	       (length >= PAGE_SIZE && wq->conn->dev->caps.lends_pages);
}

/* Does this request get a completion of its own? wq->lock held. */
static bool request_signaled(struct kdapl_wq *wq, const struct kdapl_post *post, u32 pos)
{
	bool must = dto_must_signal(wq, post->op, post->length) ||
		    post->op == DAT_DTO_LMR_INVALIDATE || post->op == DAT_DTO_BIND_MW ||
		    (wq->serial && post->op == DAT_DTO_LMR_FMR);

	if (must)
		wq->unsignaled = wq->interval;	/* the next one is due */
	return wq_signals(wq, post->flags, pos);
}

/* What a Send, Write or Read is to the device. */
static __always_inline enum ib_wr_opcode dto_opcode(u8 op)
{
	return op == DAT_DTO_SEND ? IB_WR_SEND :
	       op == DAT_DTO_RDMA_WRITE ? IB_WR_RDMA_WRITE : IB_WR_RDMA_READ;
}

static enum ib_wr_opcode request_opcode(const struct kdapl_post *post)
{
	if (likely(post->op <= DAT_DTO_RDMA_READ))
		return post->invalidate ? IB_WR_SEND_WITH_INV : dto_opcode(post->op);
	if (post->mr)
		return IB_WR_REG_MR;
	/* nothing to bind and nothing to unbind: an empty Write takes its place */
	return post->inv_key ? IB_WR_LOCAL_INV : IB_WR_RDMA_WRITE;
}

/* Is it about an LMR or RMR? */
static bool request_memop(const struct kdapl_post *post)
{
	return post->op >= DAT_DTO_BIND_MW;
}

static bool request_fenced(const struct kdapl_post *post)
{
	return post->flags & (DAT_COMPLETION_BARRIER_FENCE_FLAG |
			      DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG);
}

/* The flag with which a request of this kind is fenced, if it can be. */
static int request_fence_flag(const struct kdapl_conn *conn, enum ib_wr_opcode opcode)
{
	const struct kdapl_caps *caps = &conn->dev->caps;

	return caps->fence_by == KDAPL_FENCE_INV || (caps->unfenced & BIT_ULL(opcode)) ?
		0 : IB_SEND_FENCE;
}

/*
 * Decide once which native requests a request takes, and return how many.
 *
 * An RMR that is bound anew is invalidated first, for its old key must not outlive the next
 * binding (D-25). Where the device does not fence the first of the two itself, another request
 * keeps it from starting before earlier Reads are done (D-14, D-83, D-95).
 */
static u32 request_plan(const struct kdapl_conn *conn, struct kdapl_post *post)
{
	enum ib_wr_opcode first;

	post->opcode = request_opcode(post);
	post->rebinds = post->mr && post->inv_key;
	first = post->rebinds ? IB_WR_LOCAL_INV : post->opcode;
	post->fence = unlikely(request_fenced(post)) &&
		      (conn->dev->caps.unfenced & BIT_ULL(first));
	return 1 + post->fence + post->rebinds;
}

/*
 * Record the object whose state this request changes, so that its completion can update it.
 * wq->lock held.
 */
static void wr_set_memop(struct kdapl_wq *wq, struct kdapl_wqe *wr,
			 const struct kdapl_post *post)
{
	wr->flags |= KDAPL_WQE_OP_PENDING;
	wr->length = post->seq;
	refcount_inc(&post->obj->ref);
	wq->slot[wr->index].obj = post->obj;
	WRITE_ONCE(wq->memops, wq->memops + 1);
}

/* Begin a native request of our own at @pos. wq->lock held. */
static struct kdapl_wqe *request_begin(struct kdapl_wq *wq, u32 pos,
				       union kdapl_native_wr *native)
{
	struct kdapl_wqe *wr = &wq->wr[pos & wq->mask];

	wr->flags = 0;
	wr->state = KDAPL_WQE_NATIVE;
	wr->seq = wq->dtos;
	memset(native, 0, sizeof(*native));
	native->wr.wr_cqe = &wr->cqe;
	return wr;
}

/* What fences the request behind it. wq->lock held. */
static void request_build_fence(struct kdapl_wq *wq, u32 pos, union kdapl_native_wr *native)
{
	struct kdapl_wqe *wr = request_begin(wq, pos, native);
	const struct kdapl_conn *conn = wq->conn;

	wr->op = KDAPL_OP_FENCE;
	if (conn->dev->caps.fence_by == KDAPL_FENCE_INV) {
		native->wr.opcode = IB_WR_LOCAL_INV;
		native->wr.ex.invalidate_rkey = conn->pd->fence->rkey;
	} else {
		native->wr.opcode = IB_WR_RDMA_WRITE;
		native->wr.send_flags = IB_SEND_FENCE;
	}
}

/* The key an RMR had goes before the new one comes. wq->lock held. */
static void request_build_inv(struct kdapl_wq *wq, const struct kdapl_post *post, u32 pos,
			      union kdapl_native_wr *native)
{
	struct kdapl_wqe *wr = request_begin(wq, pos, native);

	wr->op = KDAPL_OP_INV;
	wr->flags = KDAPL_WQE_SIGNALED;
	wr_set_memop(wq, wr, post);
	native->wr.opcode = IB_WR_LOCAL_INV;
	native->wr.send_flags = IB_SEND_SIGNALED |
				request_fence_flag(wq->conn, IB_WR_LOCAL_INV);
	native->wr.ex.invalidate_rkey = post->inv_key;
}

/* Requests up to this size may go through the broken copy; it takes less. */
#define SHORT_SEND	64

/*
 * Soft-iWARP copies a short request of one segment into the packet's header, and
 * counts wrong when the segment crosses a page: the peer gets bytes from beyond
 * the page. Two segments take another path. wq->lock held.
 */
static __always_inline bool dto_is_short(u64 addr, u32 length)
{
	return length <= SHORT_SEND && offset_in_page(addr) + length > PAGE_SIZE;
}

static void post_split_short(struct ib_sge *scratch, struct ib_send_wr *wr)
{
	struct ib_sge one;
	u32 first;

	if (wr->num_sge != 1 || wr->opcode == IB_WR_RDMA_READ ||
	    !dto_is_short(wr->sg_list[0].addr, wr->sg_list[0].length))
		return;
	one = wr->sg_list[0];
	first = PAGE_SIZE - offset_in_page(one.addr);
	scratch[0] = one;
	scratch[0].length = first;
	scratch[1] = one;
	scratch[1].addr += first;
	scratch[1].length -= first;
	wr->sg_list = scratch;
	wr->num_sge = 2;
}

/* What an RDMA Read needs that has no byte to bring. */
static void request_empty_read(const struct kdapl_conn *conn, struct ib_sge *scratch,
			       struct ib_send_wr *wr)
{
	if (conn->dev->caps.empty_read_stale) {
		/* an empty Write does what an empty Read should */
		wr->opcode = IB_WR_RDMA_WRITE;
	} else if (conn->dev->caps.read_has_segment) {
		scratch[0] = (struct ib_sge) {};
		wr->sg_list = scratch;
		wr->num_sge = 1;
	}
}

/*
 * The entry of a Send, Write or Read in the work queue. Returns the flags of the native
 * request, but for the fence. wq->lock held, or the consumer's word.
 */
static __always_inline int dto_entry(struct kdapl_wq *wq, struct kdapl_wqe *wr, u8 op, u64 cookie,
				     u8 flags, u32 length, bool signaled)
{
	int send_flags = signaled ? IB_SEND_SIGNALED : 0;

	wqe_fill(wr, op, cookie, length, flags | (signaled ? KDAPL_WQE_SIGNALED : 0),
		 KDAPL_WQE_NATIVE);
	wr->retires = wq_retires(wq, signaled);
	wr->seq = ++wq->dtos;
	if (op == DAT_DTO_RDMA_READ)
		wq->reads++;
	if (op == DAT_DTO_SEND && (flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG))
		send_flags |= IB_SEND_SOLICITED;
	return send_flags;
}

/* The native request for it, of the fast as of the slow path. */
static __always_inline struct ib_rdma_wr dto_native(struct kdapl_wqe *wr, enum ib_wr_opcode opcode,
						    struct ib_sge *sgl, int num_sge,
						    const DAT_RMR_TRIPLET *remote, int send_flags,
						    u32 inv_key)
{
	return (struct ib_rdma_wr) {
		.wr = {
			.wr_cqe = &wr->cqe,
			.sg_list = sgl,
			.num_sge = num_sge,
			.opcode = opcode,
			.send_flags = send_flags,
			.ex.invalidate_rkey = inv_key,
		},
		.remote_addr = remote ? remote->virtual_address : 0,
		.rkey = remote ? remote->rmr_context : 0,
	};
}

/* Build a request about an LMR or RMR. wq->lock held. */
static noinline void memop_build(struct kdapl_wq *wq, const struct kdapl_post *post,
				 struct kdapl_wqe *wr, union kdapl_native_wr *native,
				 bool signaled, int fence)
{
	memset(native, 0, sizeof(*native));
	native->wr.wr_cqe = &wr->cqe;
	native->wr.opcode = post->opcode;
	native->wr.send_flags = (signaled ? IB_SEND_SIGNALED : 0) | fence;
	wqe_fill(wr, post->op, post->cookie.as_64, post->length,
		 post->flags | (signaled ? KDAPL_WQE_SIGNALED : 0), KDAPL_WQE_NATIVE);
	wr->retires = wq_retires(wq, signaled);
	wr->seq = ++wq->dtos;
	wr_set_memop(wq, wr, post);
	wq->memops_before |= !signaled;
	if (post->opcode == IB_WR_REG_MR) {
		native->reg.mr = post->mr;
		native->reg.key = post->key;
		native->reg.access = post->access;
	} else {
		native->wr.ex.invalidate_rkey = post->inv_key;
	}
}

/*
 * Fill the entry at @pos and the native request for it. @scratch: room for its
 * segments. wq->lock held.
 */
static void request_build(struct kdapl_wq *wq, const struct kdapl_post *post, u32 pos,
			  struct ib_sge *scratch, union kdapl_native_wr *native)
{
	struct kdapl_wqe *ctx = &wq->wr[pos & wq->mask];
	struct kdapl_conn *conn = wq->conn;
	struct ib_sge *sgl;
	int fence = 0, n;
	bool signaled;

	if (unlikely(request_fenced(post)))
		fence = request_fence_flag(conn, post->opcode);
	signaled = request_signaled(wq, post, pos);
	trace_kdapl_post(conn->handle, post->op, post->cookie.as_64, post->length, post->flags,
			 false);
	if (unlikely(request_memop(post))) {
		memop_build(wq, post, ctx, native, signaled, fence);
		return;
	}
	sgl = post_sg_list(scratch, post, conn->pd, post->length, &n);
	fence |= dto_entry(wq, ctx, post->op, post->cookie.as_64, post->flags, post->length,
			   signaled);
	native->rdma = dto_native(ctx, post->opcode, sgl, n, post->remote, fence,
				  post->invalidate ? post->inv_key : 0);
	if (unlikely(conn->dev->caps.short_page_bug))
		post_split_short(scratch, &native->wr);
	if (post->op == DAT_DTO_RDMA_READ) {
		if (unlikely(post->sync))
			kdapl_sinks_keep(wq->sinks, ctx->index, post_memory(post), post->n,
					 post->length);
		if (unlikely(!n))
			request_empty_read(conn, scratch, &native->wr);
	}
}

/* The device took the requests before @bad, and not the others. wq->lock held. */
static void request_refused(struct kdapl_wq *wq, const struct ib_send_wr *bad)
{
	struct kdapl_wqe *wr;

	for (; bad; bad = bad->next) {
		wr = container_of(bad->wr_cqe, struct kdapl_wqe, cqe);
		WRITE_ONCE(wr->state, KDAPL_WQE_SOFT);
	}
	/* pairs with the acquire in wq_check_recv_end() */
	smp_store_release(&wq->mode, KDAPL_WQ_SOFT);
}

/*
 * Two requests of which the first is a Write, for a device that looks at the lists of such
 * a pair without their counts (D-96): one after the other.
 */
static int request_post_pair(struct ib_qp *qp, struct ib_send_wr *first,
			     const struct ib_send_wr **bad)
{
	const struct ib_send_wr *second = first->next;
	int ret;

	first->next = NULL;
	ret = ib_post_send(qp, first, NULL);
	first->next = (struct ib_send_wr *)second;
	if (ret) {
		*bad = first;
		return ret;
	}
	*bad = second;
	return ib_post_send(qp, second, NULL);
}

static int request_hand_over(struct kdapl_wq *wq, struct ib_send_wr *wr,
			     const struct ib_send_wr **bad)
{
	if (unlikely(wq->conn->dev->caps.pairs_peeked) && wr->opcode == IB_WR_RDMA_WRITE &&
	    wr->next && !wr->next->next)
		return request_post_pair(wq->qp, wr, bad);
	return ib_post_send(wq->qp, wr, bad);
}

/* Hand requests to the device, in one call; wq->lock held. */
static int request_post_native(struct kdapl_wq *wq, const struct kdapl_post *posts, int n)
{
	union kdapl_native_wr *native = wq->chain, *next = native;
	const struct ib_send_wr *bad = NULL;
	struct ib_sge *scratch = wq->scratch;
	u32 pos = wq->head;
	int ret, i;

	for (i = 0; i < n; i++, scratch += wq->stride) {
		if (unlikely(posts[i].fence)) {
			request_build_fence(wq, pos++, next);
			next->wr.next = &next[1].wr;
			next++;
		}
		if (unlikely(posts[i].rebinds)) {
			request_build_inv(wq, &posts[i], pos++, next);
			next->wr.next = &next[1].wr;
			next++;
		}
		request_build(wq, &posts[i], pos++, scratch, next);
		if (i < n - 1)
			next->wr.next = &next[1].wr;
		next++;
	}
	/* pairs with the acquire in wq_next() */
	smp_store_release(&wq->head, pos);

	ret = request_hand_over(wq, &native->wr, &bad);
	if (unlikely(ret))
		request_refused(wq, bad ?: &native->wr);
	return ret;
}

/* Put a request into the work queue only, to be reported FLUSHED; wq->lock held. */
static void request_post_soft(struct kdapl_wq *wq, struct kdapl_post *post)
{
	struct kdapl_wqe *ctx = &wq->wr[wq->head & wq->mask];

	wqe_fill_soft(wq, ctx, post);
	post->soft = true;
	if (post->obj)
		wq->slot[ctx->index].handle = post->obj->handle;
	if (post->op == DAT_DTO_RDMA_READ)
		wq->reads++;
	ctx->seq = ++wq->dtos;
	/* pairs with the acquire in wq_next() */
	smp_store_release(&wq->head, wq->head + 1);
}

/* Some devices take so many Reads and no more: is there room for @reads? wq->lock held. */
static __always_inline bool wq_has_reads(const struct kdapl_wq *wq, u32 reads)
{
	return likely(!wq->max_reads || wq->mode != KDAPL_WQ_LIVE) ||
	       wq->reads - READ_ONCE(wq->reads_done) + reads <= wq->max_reads;
}

static DAT_RETURN request_post(struct kdapl_ep *ep, struct kdapl_conn *conn,
			       struct kdapl_post *posts, int n)
{
	struct kdapl_wq *wq = conn->sq;
	bool drained = false, soft = false;
	DAT_RETURN ret = DAT_SUCCESS;
	unsigned long flags;
	int err = 0, i;
	u32 wrs = 0, reads = 0;

	for (i = 0; i < n; i++) {
		reads += posts[i].op == DAT_DTO_RDMA_READ;
		wrs += request_plan(conn, &posts[i]);
		if (unlikely(posts[i].sync))
			post_sync(ep->obj.ia, &posts[i]);
	}
again:
	spin_lock_irqsave(&wq->lock, flags);
	if (unlikely(wq->mode == KDAPL_WQ_REFUSE)) {
		ret = kdapl_state_err(READ_ONCE(ep->state));
	} else if (unlikely(!wq_make_room(wq, n, wrs) || !wq_has_reads(wq, reads))) {
		ret = kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP);
	} else if (likely(wq->mode == KDAPL_WQ_LIVE)) {
		err = request_post_native(wq, posts, n);
	} else {
		for (i = 0; i < n; i++)
			request_post_soft(wq, &posts[i]);
		soft = true;
	}
	spin_unlock_irqrestore(&wq->lock, flags);

	if (unlikely(ret != DAT_SUCCESS && !drained &&
		     DAT_GET_TYPE(ret) == DAT_INSUFFICIENT_RESOURCES)) {
		kdapl_wq_drain_cq(wq);
		drained = true;
		ret = DAT_SUCCESS;
		goto again;
	}
	if (unlikely(soft))
		post_flush(wq);
	if (unlikely(err))
		post_refused(conn);
	return ret;
}

/**
 * kdapl_request_post - post one request that has been checked
 * @ep: EP
 * @conn: its connection
 * @post: request; says on return whether it is a soft one
 *
 * Context: any; RCU read side.
 * Return: DAT_SUCCESS; DAT_INVALID_STATE; DAT_INSUFFICIENT_RESOURCES.
 */
DAT_RETURN kdapl_request_post(struct kdapl_ep *ep, struct kdapl_conn *conn,
			      struct kdapl_post *post)
{
	return request_post(ep, conn, post, 1);
}

/**
 * kdapl_request_post_list - post several of them, or none
 * @ep: EP
 * @conn: its connection
 * @posts: requests, all soft or none on return
 * @n: how many, at most KDAT_POST_LIST_MAX
 *
 * Context: any; RCU read side.
 * Return: DAT_SUCCESS; DAT_INVALID_STATE; DAT_INSUFFICIENT_RESOURCES.
 */
DAT_RETURN kdapl_request_post_list(struct kdapl_ep *ep, struct kdapl_conn *conn,
				   struct kdapl_post *posts, int n)
{
	return request_post(ep, conn, posts, n);
}

/* Attributes of a connection do not change; those of an EP may, while it has none. */
static const DAT_EP_ATTR *post_attr(struct kdapl_ep *ep, struct kdapl_conn *conn)
{
	return likely(conn) ? &conn->attr : &ep->conf.attr;
}

/*
 * Can the device not fence a request of this kind, by whatever means (D-95)? What an
 * operation on an LMR or RMR consists of is not known yet.
 */
static bool request_unfenceable(const struct kdapl_caps *caps, const struct kdapl_post *post)
{
	enum ib_wr_opcode opcode = IB_WR_REG_MR;

	if (likely(caps->fence_by != KDAPL_FENCE_NONE))
		return false;
	if (!request_memop(post))
		opcode = request_opcode(post);
	else if (post->op == DAT_DTO_LMR_INVALIDATE)
		opcode = IB_WR_LOCAL_INV;
	return caps->unfenced & BIT_ULL(opcode);
}

/* What GEN-10 (3) says of the flags, and whether there is a device. */
static DAT_RETURN request_check_flags(struct kdapl_ep *ep, const DAT_EP_ATTR *attr,
				      const struct kdapl_post *post, DAT_COMPLETION_FLAGS legal)
{
	if (unlikely(post->flags & ~legal))
		return kdapl_arg_err(post->flags_arg);
	if (unlikely((post->flags & DAT_COMPLETION_UNSIGNALLED_FLAG) &&
		     attr->request_completion_flags != DAT_COMPLETION_UNSIGNALLED_FLAG))
		return kdapl_arg_err(post->flags_arg);
	if (unlikely(READ_ONCE(ep->obj.ia->dead)))
		return kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	if (unlikely(request_fenced(post) && request_unfenceable(&ep->obj.ia->dev->caps, post)))
		return kdapl_err(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	return DAT_SUCCESS;
}

static DAT_RETURN request_check_state(struct kdapl_ep *ep, struct kdapl_conn *conn)
{
	if (unlikely(!conn || READ_ONCE(conn->sq->mode) == KDAPL_WQ_REFUSE))
		return kdapl_state_err(READ_ONCE(ep->state));
	return DAT_SUCCESS;
}

/**
 * kdapl_request_check - flags and state for a request without segments
 * @ep: EP
 * @conn: its connection, or NULL
 * @post: request
 * @legal: flags it may have
 *
 * Context: any; RCU read side.
 * Return: DAT_SUCCESS, and @conn is one; or the error.
 */
DAT_RETURN kdapl_request_check(struct kdapl_ep *ep, struct kdapl_conn *conn,
			       const struct kdapl_post *post, DAT_COMPLETION_FLAGS legal)
{
	DAT_RETURN ret = request_check_flags(ep, post_attr(ep, conn), post, legal);

	return ret == DAT_SUCCESS ? request_check_state(ep, conn) : ret;
}

/* Checks (2) and (3) of GEN-10 that all data transfer requests share. */
static DAT_RETURN request_check(struct kdapl_ep *ep, const DAT_EP_ATTR *attr,
				const struct kdapl_post *post, DAT_COUNT max_iov,
				DAT_COMPLETION_FLAGS legal)
{
	if (unlikely(post->n < 0 || post->n > max_iov))
		return kdapl_arg_err(2);
	if (unlikely(post->n && !post->iov))
		return kdapl_arg_err(3);
	if (unlikely(post->op != DAT_DTO_SEND && !post->remote))
		return kdapl_arg_err(5);
	return request_check_flags(ep, attr, post, legal);
}

/* Rights and range of what is transferred. */
static DAT_RETURN request_check_memory(struct kdapl_ep *ep, struct kdapl_conn *conn,
				       struct kdapl_post *post, u64 max_length)
{
	u64 remote_length = post->remote ? post->remote->segment_length : 0;
	struct kdapl_user user = post_user(conn->pd, ep->obj.handle);
	DAT_MEM_PRIV_FLAGS need = DAT_MEM_PRIV_LOCAL_READ_FLAG;
	DAT_RETURN ret;

	if (post->op == DAT_DTO_RDMA_READ) {
		need = DAT_MEM_PRIV_LOCAL_WRITE_FLAG;
		if (ep->obj.ia->dev->iwarp)
			need |= DAT_MEM_PRIV_REMOTE_WRITE_FLAG;	/* D-22 */
	}
	ret = post_check_iov(ep->obj.ia, &user, post, need);
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

/* May this connection have Reads at all? */
static bool conn_reads(const struct kdapl_conn *conn)
{
	return conn->attr.max_rdma_read_out &&
	       (READ_ONCE(conn->sq->mode) != KDAPL_WQ_LIVE || conn->read_depth);
}

/* A Read on a connection without: the refusal alone tells too little of why (RDMAR-17). */
static noinline DAT_RETURN request_no_reads(struct kdapl_conn *conn)
{
	if (!atomic_xchg(&conn->reads_refused, 1)) {
		pr_warn_ratelimited("%s: EP %u: an RDMA Read is refused: max_rdma_read_out is %d here, and the peer takes %d\n",
				    conn->ep->obj.ia->name, kdapl_id(conn->handle),
				    conn->attr.max_rdma_read_out, conn->read_depth);
	}
	return kdapl_arg_err(1);
}

/**
 * kdapl_request_prepare - check a data transfer request
 * @ep: EP
 * @conn: its connection, or NULL
 * @post: request
 *
 * Context: any; RCU read side.
 * Return: DAT_SUCCESS or the error.
 */
DAT_RETURN kdapl_request_prepare(struct kdapl_ep *ep, struct kdapl_conn *conn,
				 struct kdapl_post *post)
{
	const DAT_EP_ATTR *attr = post_attr(ep, conn);
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
	ret = request_check(ep, attr, post, max_iov, legal);
	if (unlikely(ret != DAT_SUCCESS))
		return ret;
	ret = request_check_state(ep, conn);
	if (unlikely(ret != DAT_SUCCESS))
		return ret;
	if (unlikely(post->op == DAT_DTO_RDMA_READ && !conn_reads(conn)))
		return request_no_reads(conn);
	return request_check_memory(ep, conn, post, max_length);
}

static DAT_RETURN request_checked(DAT_EP_HANDLE ep_handle, struct kdapl_post *post)
{
	struct kdapl_conn *conn;
	struct kdapl_ep *ep;
	DAT_RETURN ret;

	rcu_read_lock();
	ep = kdapl_handle_peek(ep_handle, DAT_HANDLE_TYPE_EP);
	ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (likely(ep)) {
		conn = rcu_dereference(ep->conn);
		ret = kdapl_request_prepare(ep, conn, post);
		if (likely(ret == DAT_SUCCESS))
			ret = kdapl_request_post(ep, conn, post);
	}
	rcu_read_unlock();
	if (unlikely(ret != DAT_SUCCESS))
		trace_kdapl_post_refused(ep_handle, post->op, post->cookie.as_64, ret);
	return ret;
}

static noinline DAT_RETURN request_slow(DAT_EP_HANDLE ep_handle, u8 op,
					const DAT_LMR_TRIPLET *iov, DAT_COUNT n,
					const DAT_RMR_TRIPLET *remote, DAT_DTO_COOKIE cookie,
					DAT_COMPLETION_FLAGS flags)
{
	struct kdapl_post post = {
		.iov = iov,
		.n = n,
		.cookie = cookie,
		.flags = flags,
		.op = op,
		.flags_arg = op == DAT_DTO_SEND ? 5 : 6,
		.remote = remote,
	};

	return request_checked(ep_handle, &post);
}

/* Is this segment one without anything special or wrong about it? */
static __always_inline bool fast_segment(const struct kdapl_wq *wq, struct kdapl_ia *ia,
					 const DAT_LMR_TRIPLET *seg, u32 need)
{
	const struct kdapl_mr *mr = kdapl_mr_find(ia, seg->lmr_context);
	u64 length = seg->segment_length;
	unsigned int seq;
	bool good;

	if (unlikely(!mr))
		return false;
	seq = raw_seqcount_begin(&mr->seq);
	good = READ_ONCE(mr->lkey) == seg->lmr_context && !(need & ~mr->range.priv) &&
	       (mr->range.domain == wq->domain[0] || mr->range.domain == wq->domain[1]) &&
	       length && length <= mr->range.length &&
	       seg->virtual_address - mr->range.start <= mr->range.length - length;
	return likely(good && !read_seqcount_retry(&mr->seq, seq));
}

static __always_inline bool fast_memory(const struct kdapl_wq *wq,
					const DAT_LMR_TRIPLET *iov, DAT_COUNT n, u32 need,
					u64 *length)
{
	struct kdapl_ia __maybe_unused *ia = wq->ia;
	u64 sum = 0;
	DAT_COUNT i;

	for (i = 0; i < n; i++) {
#ifndef KDAPL_UNCHECKED
		if (!fast_segment(wq, ia, &iov[i], need))
			return false;
#endif
		sum += iov[i].segment_length;
	}
	*length = sum;
	return true;
}

/* The same for the lengths of a request. */
static __always_inline bool fast_length(const struct kdapl_wq *wq, u8 op, u64 length,
					const DAT_RMR_TRIPLET *remote)
{
	switch (op) {
	case DAT_DTO_SEND:
		return length <= wq->max_message;
	case DAT_DTO_RDMA_WRITE:
		return length <= wq->max_rdma && length <= remote->segment_length;
	default:
		/* an empty one is something special */
		return length && length <= wq->max_rdma &&
		       length == remote->segment_length;
	}
}

enum fast_result {
	FAST_DONE,
	FAST_REFUSED,	/* by the device; the post is done all the same (D-07) */
	FAST_NO_EP,
	FAST_NOT,		/* has to go the slow path; nothing has changed */
};

/* There is room and the device takes it. */
static __always_inline enum fast_result fast_hand_over(struct kdapl_wq *wq, u8 op,
						       const DAT_LMR_TRIPLET *iov, DAT_COUNT n,
						       const DAT_RMR_TRIPLET *remote, u64 cookie,
						       u8 flags, u32 length)
{
	int fence = flags & DAT_COMPLETION_BARRIER_FENCE_FLAG ? IB_SEND_FENCE : 0;
	struct kdapl_wqe *wr = &wq->wr[wq->head & wq->mask];
	bool signaled = wq_signals(wq, flags, wq->head);
	int send_flags = dto_entry(wq, wr, op, cookie, flags, length, signaled);
	/* with all its members at once, or it is cleared before (INIT_STACK_ALL_ZERO) */
	struct ib_rdma_wr native = dto_native(wr, dto_opcode(op), (struct ib_sge *)iov, n, remote,
					      send_flags | fence, 0);

	/* pairs with the acquire in wq_next() */
	smp_store_release(&wq->head, wq->head + 1);
	if (likely(!ib_post_send(wq->qp, &native.wr, NULL)))
		return FAST_DONE;
	WRITE_ONCE(wr->state, KDAPL_WQE_SOFT);
	return FAST_REFUSED;
}

/* Into work queue and device; wq->lock held, or else the consumer's word. */
static __always_inline enum fast_result fast_put(struct kdapl_wq *wq, u8 op,
						 const DAT_LMR_TRIPLET *iov, DAT_COUNT n,
						 const DAT_RMR_TRIPLET *remote, u64 cookie,
						 u8 flags, u32 length, bool careful)
{
	if (unlikely(READ_ONCE(wq->mode) != KDAPL_WQ_LIVE || !wq_make_room(wq, 1, 1)))
		return FAST_NOT;
	if (careful && unlikely(!wq_has_reads(wq, op == DAT_DTO_RDMA_READ)))
		return FAST_NOT;
	return fast_hand_over(wq, op, iov, n, remote, cookie, flags, length);
}

/* The device has refused something. wq->lock held. */
static void wq_refused(struct kdapl_wq *wq)
{
	/* the connection may have ended meanwhile, since no lock is held: its reason wins */
	if (wq->mode == KDAPL_WQ_LIVE)
		/* pairs with the acquire in wq_check_recv_end() */
		smp_store_release(&wq->mode, KDAPL_WQ_SOFT);
}

static noinline void serial_refused(struct kdapl_wq *wq)
{
	unsigned long irq;

	spin_lock_irqsave(&wq->lock, irq);
	wq_refused(wq);
	spin_unlock_irqrestore(&wq->lock, irq);
}

/* Must this device get the request in another form, or with a completion? */
static __always_inline bool careful_refuses(const struct kdapl_wq *wq, u8 op,
					    const DAT_LMR_TRIPLET *iov, DAT_COUNT n,
					    DAT_COMPLETION_FLAGS flags, u64 length)
{
	if (n == 1 && op != DAT_DTO_RDMA_READ &&
	    unlikely(dto_is_short(iov->virtual_address, length)))
		return true;
	return unlikely(flags & DAT_COMPLETION_SUPPRESS_FLAG) &&
	       dto_must_signal(wq, op, length);
}

/*
 * Check the memory, and post if there is nothing wrong with it. @careful, known when this is
 * compiled: the device has limits that others do not have.
 */
static __always_inline enum fast_result fast_request(struct kdapl_conn *conn, u8 op,
						     const DAT_LMR_TRIPLET *iov, DAT_COUNT n,
						     const DAT_RMR_TRIPLET *remote, u64 cookie,
						     DAT_COMPLETION_FLAGS flags, bool careful)
{
	struct kdapl_wq *wq = conn->sq;
	u32 need = KDAPL_PRIV_SOURCE;
	enum fast_result result;
	unsigned long irq;
	u64 length;

	if (op == DAT_DTO_RDMA_READ)
		need = wq->sink;
	if (!fast_memory(wq, iov, n, need, &length) ||
	    unlikely(!fast_length(wq, op, length, remote)))
		return FAST_NOT;
	if (careful && careful_refuses(wq, op, iov, n, flags, length))
		return FAST_NOT;
	if (!careful && wq->serial) {
		result = fast_put(wq, op, iov, n, remote, cookie, flags, length, false);
		if (unlikely(result == FAST_REFUSED))
			serial_refused(wq);
	} else {
		spin_lock_irqsave(&wq->lock, irq);
		result = fast_put(wq, op, iov, n, remote, cookie, flags, length, careful);
		if (unlikely(result == FAST_REFUSED))
			wq_refused(wq);
		spin_unlock_irqrestore(&wq->lock, irq);
	}
	if (unlikely(result == FAST_REFUSED))
		post_refused(conn);
	return result;
}

/* The same for devices that allow no request without a closer look. RCU read side. */
static __always_inline enum fast_result careful_post(struct kdapl_conn *conn, u8 op,
						     const DAT_LMR_TRIPLET *iov, DAT_COUNT n,
						     const DAT_RMR_TRIPLET *remote, u64 cookie,
						     DAT_COMPLETION_FLAGS flags)
{
	struct kdapl_wq *wq = conn->sq;

	/* pairs with the barrier in conn_open_requests() */
	if ((u32)n - 1 >= smp_load_acquire(&wq->careful_iov[op]) || !iov ||
	    (flags & ~(u32)wq->flags[op]) || (op != DAT_DTO_SEND && !remote))
		return FAST_NOT;
	return fast_request(conn, op, iov, n, remote, cookie, flags, true);
}

/* A copy for each, out of the way of the devices that do without. */
static noinline enum fast_result careful_send(struct kdapl_conn *conn, const DAT_LMR_TRIPLET *iov,
					      DAT_COUNT n, u64 cookie, DAT_COMPLETION_FLAGS flags)
{
	return careful_post(conn, DAT_DTO_SEND, iov, n, NULL, cookie, flags);
}

static noinline enum fast_result careful_write(struct kdapl_conn *conn,
					       const DAT_LMR_TRIPLET *iov, DAT_COUNT n,
					       const DAT_RMR_TRIPLET *remote, u64 cookie,
					       DAT_COMPLETION_FLAGS flags)
{
	return careful_post(conn, DAT_DTO_RDMA_WRITE, iov, n, remote, cookie, flags);
}

static noinline enum fast_result careful_read(struct kdapl_conn *conn, const DAT_LMR_TRIPLET *iov,
					      DAT_COUNT n, const DAT_RMR_TRIPLET *remote,
					      u64 cookie, DAT_COMPLETION_FLAGS flags)
{
	return careful_post(conn, DAT_DTO_RDMA_READ, iov, n, remote, cookie, flags);
}

/* Check, and post if there is nothing to say. RCU read side. */
static __always_inline enum fast_result fast_post(DAT_EP_HANDLE ep_handle, u8 op,
						  const DAT_LMR_TRIPLET *iov, DAT_COUNT n,
						  const DAT_RMR_TRIPLET *remote, u64 cookie,
						  DAT_COMPLETION_FLAGS flags)
{
	struct kdapl_ep *ep = kdapl_handle_peek(ep_handle, DAT_HANDLE_TYPE_EP);
	struct kdapl_conn *conn;
	struct kdapl_wq *wq;

	if (unlikely(!ep))
		return FAST_NO_EP;
	conn = rcu_dereference(ep->conn);
	if (unlikely(!conn) || trace_kdapl_post_enabled())
		return FAST_NOT;
	wq = conn->sq;
	if (unlikely(READ_ONCE(wq->ia->dead)))
		return FAST_NOT;
	/* pairs with the barrier in conn_open_requests() */
	if (unlikely((u32)n - 1 >= smp_load_acquire(&wq->max_iov[op]) ||
		     (flags & ~(u32)wq->flags[op]) || !iov ||
		     (op != DAT_DTO_SEND && !remote))) {
		if (n && op == DAT_DTO_SEND)
			return careful_send(conn, iov, n, cookie, flags);
		if (n && op == DAT_DTO_RDMA_WRITE)
			return careful_write(conn, iov, n, remote, cookie, flags);
		if (n)
			return careful_read(conn, iov, n, remote, cookie, flags);
		if ((flags & ~(u32)wq->flags[op]) || (op != DAT_DTO_SEND && !remote))
			return FAST_NOT;
		/* empty: no device has a limit that concerns it (D-96) */
		iov = NULL;
	}
	return fast_request(conn, op, iov, n, remote, cookie, flags, false);
}

/* Not even that it is an EP is known. */
static noinline DAT_RETURN post_no_ep(DAT_EP_HANDLE ep_handle, u8 op, DAT_DTO_COOKIE cookie)
{
	DAT_RETURN ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);

	trace_kdapl_post_refused(ep_handle, op, cookie.as_64, ret);
	return ret;
}

/* A Send, Write or Read, the one way or the other. */
static __always_inline DAT_RETURN request_call(DAT_EP_HANDLE ep_handle, u8 op,
					       const DAT_LMR_TRIPLET *iov, DAT_COUNT n,
					       const DAT_RMR_TRIPLET *remote, DAT_DTO_COOKIE cookie,
					       DAT_COMPLETION_FLAGS flags)
{
	enum fast_result result;

	rcu_read_lock();
	result = fast_post(ep_handle, op, iov, n, remote, cookie.as_64, flags);
	rcu_read_unlock();
	if (likely(result <= FAST_REFUSED))
		return DAT_SUCCESS;
	if (result == FAST_NO_EP)
		return post_no_ep(ep_handle, op, cookie);
	return request_slow(ep_handle, op, iov, n, remote, cookie, flags);
}

/**
 * dat_ep_post_send - send a message
 * @ep_handle: EP in CONNECTED; in DISCONNECTED the Send is flushed at once
 * @num_segments: segments in @local_iov, 0 for an empty message
 * @local_iov: gathered in order, NULL for an empty message; the array is the
 *	caller's again on return, the memory it names after the completion
 * @user_cookie: comes back with the completion; any value, also one that is in use
 * @completion_flags: SUPPRESS, SOLICITED_WAIT, BARRIER_FENCE; UNSIGNALLED if the
 *	EP is configured for it
 *
 * The message takes one Receive of the peer, which has to be as long at least.
 * The completion comes on the request EVD, with operation DAT_DTO_SEND and the
 * number of bytes sent. Requests start, and are reported, in the order of
 * posting. A suppressed Send that succeeds has no event: its memory is the
 * caller's with the next completion of this queue.
 *
 * No alignment is needed; optimal_buffer_alignment of the provider attributes,
 * at most DAT_OPTIMAL_ALIGNMENT, is the fastest.
 *
 * Context: any; does not sleep or allocate.
 * Return: DAT_SUCCESS (the Send will complete); DAT_INVALID_HANDLE (EP);
 * DAT_INVALID_PARAMETER (count, NULL list, range outside its LMR, more bytes
 * than max_message_size, flags); DAT_INVALID_STATE (subtype that of the EP:
 * neither CONNECTED nor DISCONNECTED); DAT_PRIVILEGES_VIOLATION (no such LMR, or
 * no local read right); DAT_PROTECTION_VIOLATION (LMR of another PZ);
 * DAT_INSUFFICIENT_RESOURCES (max_request_dtos are outstanding, or completions
 * nobody dequeues fill the EVD); DAT_INTERNAL_ERROR (device removed).
 */
DAT_RETURN dat_ep_post_send(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
			    DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
			    DAT_COMPLETION_FLAGS completion_flags)
{
	return request_call(ep_handle, DAT_DTO_SEND, local_iov, num_segments, NULL, user_cookie,
			    completion_flags);
}
EXPORT_SYMBOL(dat_ep_post_send);

/**
 * dat_ep_post_rdma_write - write into the peer's memory
 * @ep_handle: EP in CONNECTED; in DISCONNECTED the request is flushed at once
 * @num_segments: segments in @local_iov
 * @local_iov: gathered in order; the array is the caller's again on return, the
 *	memory it names after the completion
 * @user_cookie: comes back with the completion; any value, also one that is in use
 * @remote_iov: target; at least as long as the local data. Read during the call
 * @completion_flags: SUPPRESS, BARRIER_FENCE; UNSIGNALLED if the EP is
 *	configured for it
 *
 * The completion comes on the request EVD, with operation DAT_DTO_RDMA_WRITE; on
 * iWARP it says that the data has left, not that it has arrived. The peer's
 * consumer is not told. A Send posted later on the same EP arrives after the
 * data. A suppressed Write that succeeds has no event: its memory is the
 * caller's with the next completion of this queue.
 *
 * No alignment is needed; optimal_buffer_alignment of the provider attributes,
 * at most DAT_OPTIMAL_ALIGNMENT, is the fastest.
 *
 * Context: any; does not sleep or allocate.
 * Return: DAT_SUCCESS (the Write will complete); DAT_INVALID_HANDLE (EP);
 * DAT_INVALID_PARAMETER (count, NULL @local_iov or @remote_iov, range outside
 * its LMR, more bytes than max_rdma_size, flags); DAT_INVALID_STATE (subtype
 * that of the EP: neither CONNECTED nor DISCONNECTED); DAT_PRIVILEGES_VIOLATION
 * (no such LMR, or no local read right); DAT_PROTECTION_VIOLATION (LMR of
 * another PZ); DAT_LENGTH_ERROR (more local data than @remote_iov takes);
 * DAT_INSUFFICIENT_RESOURCES (max_request_dtos are outstanding, or completions
 * nobody dequeues fill the EVD); DAT_MODEL_NOT_SUPPORTED (BARRIER_FENCE on a
 * device that cannot fence a Write); DAT_INTERNAL_ERROR (device removed). What
 * only the peer can check (its key, range, right, PZ) fails the completion
 * instead.
 */
DAT_RETURN dat_ep_post_rdma_write(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
				  DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
				  const DAT_RMR_TRIPLET *remote_iov,
				  DAT_COMPLETION_FLAGS completion_flags)
{
	return request_call(ep_handle, DAT_DTO_RDMA_WRITE, local_iov, num_segments, remote_iov,
			    user_cookie, completion_flags);
}
EXPORT_SYMBOL(dat_ep_post_rdma_write);

/**
 * dat_ep_post_rdma_read - read from the peer's memory
 * @ep_handle: EP in CONNECTED; in DISCONNECTED the request is flushed at once
 * @num_segments: segments in @local_iov, at most max_rdma_read_iov of the EP
 * @local_iov: filled in order; what is beyond the remote length stays untouched
 * @user_cookie: comes back with the completion; any value, also one that is in use
 * @remote_iov: source; its length is what is transferred. Read during the call
 * @completion_flags: SUPPRESS, BARRIER_FENCE; UNSIGNALLED if the EP is
 *	configured for it
 *
 * The completion comes on the request EVD, with operation DAT_DTO_RDMA_READ. The
 * peer's consumer is not told. More Reads than the read depth of the connection
 * wait their turn in the queue (soft-iWARP refuses them). Requests posted later
 * may start before the data is there: DAT_COMPLETION_BARRIER_FENCE_FLAG makes
 * one wait.
 *
 * Where the provider attribute rdma_write_for_rdma_read_req is TRUE (iWARP) the
 * local LMRs need the remote write right as well. The contents of @local_iov are
 * undefined until the completion says DAT_DTO_SUCCESS, and if it says anything
 * else.
 *
 * No alignment is needed; optimal_buffer_alignment of the provider attributes,
 * at most DAT_OPTIMAL_ALIGNMENT, is the fastest.
 *
 * Context: any; does not sleep or allocate.
 * Return: DAT_SUCCESS (the Read will complete); DAT_INVALID_HANDLE (EP);
 * DAT_INVALID_PARAMETER (count, NULL @local_iov or @remote_iov, range outside
 * its LMR, more bytes than max_rdma_size, flags; ARG1: the connection allows no
 * Reads, max_rdma_read_out here or max_rdma_read_in at the peer being 0);
 * DAT_INVALID_STATE (subtype that of the EP: neither CONNECTED nor
 * DISCONNECTED); DAT_PRIVILEGES_VIOLATION (no such LMR, or no local write right;
 * on iWARP, no remote write right); DAT_PROTECTION_VIOLATION (LMR of another
 * PZ); DAT_LENGTH_ERROR (@local_iov takes less than the length of @remote_iov);
 * DAT_INSUFFICIENT_RESOURCES (max_request_dtos are outstanding, or completions
 * nobody dequeues fill the EVD; on soft-iWARP, as many Reads as it takes are);
 * DAT_MODEL_NOT_SUPPORTED (BARRIER_FENCE on a device that cannot fence a Read);
 * DAT_INTERNAL_ERROR (device removed). What only the peer can check (its key,
 * range, right, PZ) fails the completion instead.
 */
DAT_RETURN dat_ep_post_rdma_read(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
				 DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
				 const DAT_RMR_TRIPLET *remote_iov,
				 DAT_COMPLETION_FLAGS completion_flags)
{
	return request_call(ep_handle, DAT_DTO_RDMA_READ, local_iov, num_segments, remote_iov,
			    user_cookie, completion_flags);
}
EXPORT_SYMBOL(dat_ep_post_rdma_read);

/**
 * dat_ep_post_send_with_invalidate - send a message that takes a key away from the peer
 * @ep_handle: EP in CONNECTED; in DISCONNECTED the Send is flushed at once
 * @num_segments: segments in @local_iov, 0 for an empty message
 * @local_iov: as for dat_ep_post_send()
 * @user_cookie: comes back with the completion
 * @completion_flags: as for dat_ep_post_send()
 * @invalidate_flag: DAT_FALSE makes it a plain Send
 * @rmr_context: key of the peer's memory, which the peer has handed out
 *
 * When the peer's Receive is reported, as DAT_DTO_RECEIVE_WITH_INVALIDATE, the key is
 * dead and the peer's LMR or RMR unbound. A key the peer does not have ends the
 * connection. The completion here is that of a Send.
 *
 * Context: any; does not sleep or allocate.
 * Return: as dat_ep_post_send().
 */
DAT_RETURN dat_ep_post_send_with_invalidate(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
					    DAT_LMR_TRIPLET *local_iov,
					    DAT_DTO_COOKIE user_cookie,
					    DAT_COMPLETION_FLAGS completion_flags,
					    DAT_BOOLEAN invalidate_flag,
					    DAT_RMR_CONTEXT rmr_context)
{
	struct kdapl_post post = {
		.iov = local_iov,
		.n = num_segments,
		.cookie = user_cookie,
		.flags = completion_flags,
		.op = DAT_DTO_SEND,
		.flags_arg = 5,
		.invalidate = invalidate_flag,
		.inv_key = rmr_context,
	};

	return request_checked(ep_handle, &post);
}
EXPORT_SYMBOL(dat_ep_post_send_with_invalidate);

/* The segment behind an rmr_context, which says no more than a peer may know. */
static DAT_RETURN read_sink(struct kdapl_ep *ep, struct kdapl_conn *conn,
			    const DAT_RMR_TRIPLET *sink, DAT_LMR_TRIPLET *seg)
{
	struct kdapl_user user = post_user(conn->pd, ep->obj.handle);
	struct kdapl_range range;

	if (!kdapl_rkey_find(ep->obj.ia, sink->rmr_context, &range))
		return kdapl_err(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE);
	if (!(range.priv & DAT_MEM_PRIV_REMOTE_WRITE_FLAG))
		return kdapl_err(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_RDMA_WRITE);
	if (range.domain != user.domain[0] && range.domain != user.domain[1])
		return kdapl_err(DAT_PROTECTION_VIOLATION, DAT_PROTECTION_WRITE);
	if (sink->segment_length > range.length ||
	    sink->virtual_address - range.start > range.length - sink->segment_length)
		return kdapl_arg_err(2);
	seg->virtual_address = sink->virtual_address;
	seg->segment_length = sink->segment_length;
	seg->lmr_context = sink->rmr_context;	/* the keys of an MR are one (mr.c) */
	return DAT_SUCCESS;
}

/* The memory behind that, if it is an RMR's: the LMR's, by its own addresses. */
static void read_sink_behind(struct kdapl_ia *ia, struct kdapl_post *post,
			     const DAT_LMR_TRIPLET *seg, DAT_LMR_TRIPLET *behind)
{
	struct kdapl_mr *mr = kdapl_mr_find(ia, seg->lmr_context);

	post->sync = true;
	if (mr && mr->owner->type == DAT_HANDLE_TYPE_RMR &&
	    kdapl_rmr_behind(container_of(mr->owner, struct kdapl_rmr, obj), seg, behind))
		post->behind = behind;
}

static DAT_RETURN read_to_rmr(struct kdapl_ep *ep, struct kdapl_conn *conn,
			      const DAT_RMR_TRIPLET *sink, struct kdapl_post *post)
{
	DAT_LMR_TRIPLET seg = {}, behind;
	DAT_RETURN ret;

	if (!sink)
		return kdapl_arg_err(2);
	if (!post->remote)
		return kdapl_arg_err(4);
	ret = kdapl_request_check(ep, conn, post, KDAPL_FLAGS_RDMA);
	if (ret != DAT_SUCCESS)
		return ret;
	if (!conn_reads(conn))
		return kdapl_arg_err(1);
	if (sink->segment_length) {
		ret = read_sink(ep, conn, sink, &seg);
		if (ret != DAT_SUCCESS)
			return ret;
	}
	if (post->remote->segment_length > sink->segment_length)
		return kdapl_err(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE);
	if (post->remote->segment_length > conn->attr.max_rdma_size)
		return kdapl_arg_err(4);
	post->length = post->remote->segment_length;
	seg.segment_length = post->length;
	if (unlikely(conn->dev->dma != KDAPL_DMA_SAME) && post->length)
		read_sink_behind(ep->obj.ia, post, &seg, &behind);
	post->iov = post->length ? &seg : NULL;
	post->n = !!post->length;
	return kdapl_request_post(ep, conn, post);
}

/**
 * dat_ep_post_rdma_read_to_rmr - read from the peer's memory into an RMR
 * @ep_handle: EP in CONNECTED; in DISCONNECTED the request is flushed at once
 * @local_iov: where to, by an rmr_context of this side that has the remote write
 *	right: of an RMR or an LMR
 * @user_cookie: comes back with the completion
 * @remote_iov: source; its length is what is transferred
 * @completion_flags: SUPPRESS, BARRIER_FENCE; UNSIGNALLED if the EP is
 *	configured for it
 *
 * As dat_ep_post_rdma_read() else. On iWARP the peer sees the key, as it does with
 * that call.
 *
 * Context: any; does not sleep or allocate.
 * Return: as dat_ep_post_rdma_read(); DAT_PRIVILEGES_VIOLATION (no such
 * rmr_context, or no remote write right).
 */
DAT_RETURN dat_ep_post_rdma_read_to_rmr(DAT_EP_HANDLE ep_handle, const DAT_RMR_TRIPLET *local_iov,
					DAT_DTO_COOKIE user_cookie,
					const DAT_RMR_TRIPLET *remote_iov,
					DAT_COMPLETION_FLAGS completion_flags)
{
	struct kdapl_post post = {
		.cookie = user_cookie,
		.flags = completion_flags,
		.op = DAT_DTO_RDMA_READ,
		.flags_arg = 5,
		.remote = remote_iov,
	};
	struct kdapl_ep *ep;
	DAT_RETURN ret;

	rcu_read_lock();
	ep = kdapl_handle_peek(ep_handle, DAT_HANDLE_TYPE_EP);
	if (ep)
		ret = read_to_rmr(ep, rcu_dereference(ep->conn), local_iov, &post);
	else
		ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_ep_post_rdma_read_to_rmr);

/* A Receive into work queue and device, which has room; wq->lock held. */
static __always_inline int recv_put(struct kdapl_wq *wq, struct ib_sge *sgl, int num_sge,
				    u64 cookie, u8 flags, u32 length)
{
	struct kdapl_wqe *ctx = &wq->wr[wq->head & wq->mask];
	struct ib_recv_wr wr = { .wr_cqe = &ctx->cqe, .sg_list = sgl, .num_sge = num_sge };
	int ret;

	wqe_fill(ctx, DAT_DTO_RECEIVE, cookie, length, flags | KDAPL_WQE_SIGNALED,
		 KDAPL_WQE_NATIVE);
	/* pairs with the acquire in wq_next() */
	smp_store_release(&wq->head, wq->head + 1);
	wq->native++;
	ret = ib_post_recv(wq->qp, &wr, NULL);
	if (unlikely(ret)) {
		wq->native--;
		WRITE_ONCE(ctx->state, KDAPL_WQE_SOFT);
		/* pairs with the acquire in wq_check_recv_end() */
		smp_store_release(&wq->mode, KDAPL_WQ_SOFT);
	}
	return ret;
}

static int recv_post_native(struct kdapl_wq *wq, const struct kdapl_post *post)
{
	struct ib_sge *sgl;
	int num_sge;

	if (unlikely(post->sync))
		kdapl_sinks_keep(wq->sinks, wq->head & wq->mask, post->iov, post->n,
				 post->length);
	sgl = post_sg_list(wq->scratch, post, wq->conn->pd, post->length, &num_sge);
	trace_kdapl_post(wq->conn->handle, post->op, post->cookie.as_64, post->length,
			 post->flags, false);
	return recv_put(wq, sgl, num_sge, post->cookie.as_64, post->flags, post->length);
}

/* False: the EP has another connection by now. */
static bool recv_post(struct kdapl_conn *conn, struct kdapl_post *post, DAT_RETURN *ret)
{
	struct kdapl_wq *wq = conn->rq;
	struct kdapl_wqe *ctx;
	bool drained = false, room, soft = false;
	unsigned long flags;
	int err = 0;

	*ret = DAT_SUCCESS;
again:
	spin_lock_irqsave(&wq->lock, flags);
	room = recv_has_room(wq);
	if (unlikely(wq->mode == KDAPL_WQ_MOVED)) {
		spin_unlock_irqrestore(&wq->lock, flags);
		return false;
	}
	if (unlikely(!room)) {
		err = 0;
	} else if (likely(wq->mode == KDAPL_WQ_LIVE)) {
		err = recv_post_native(wq, post);
	} else {
		ctx = &wq->wr[wq->head & wq->mask];
		wqe_fill_soft(wq, ctx, post);
		/* pairs with the acquire in wq_next() */
		smp_store_release(&wq->head, wq->head + 1);
		soft = true;
	}
	spin_unlock_irqrestore(&wq->lock, flags);

	if (unlikely(!room && !drained)) {
		kdapl_wq_drain_cq(wq);
		drained = true;
		goto again;
	}
	if (unlikely(!room))
		*ret = kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP);
	if (unlikely(soft))
		post_flush(wq);
	if (unlikely(err))
		post_refused(conn);
	return true;
}

static DAT_RETURN recv_checked(DAT_EP_HANDLE ep_handle, struct kdapl_post *post)
{
	const DAT_EP_ATTR *attr;
	struct kdapl_conn *conn;
	struct kdapl_user user;
	struct kdapl_ep *ep;
	DAT_RETURN ret;

	ep = kdapl_handle_peek(ep_handle, DAT_HANDLE_TYPE_EP);
	if (unlikely(!ep))
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (unlikely(ep->srq))		/* RECV-17 */
		return kdapl_state_err(READ_ONCE(ep->state));
again:
	conn = rcu_dereference(ep->conn);
	attr = post_attr(ep, conn);
	if (unlikely(post->n < 0 || post->n > attr->max_recv_iov))
		return kdapl_arg_err(2);
	if (unlikely(post->n && !post->iov))
		return kdapl_arg_err(3);
	if (unlikely(post->flags & ~FLAGS_RECV))
		return kdapl_arg_err(5);
	if (unlikely(post->flags &&
		     attr->recv_completion_flags != DAT_COMPLETION_UNSIGNALLED_FLAG))
		return kdapl_arg_err(5);
	if (unlikely(READ_ONCE(ep->obj.ia->dead)))
		return kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	if (unlikely(!conn))	/* no PZ yet (D-10), or being reset */
		return kdapl_err(DAT_PROTECTION_VIOLATION, DAT_PROTECTION_WRITE);
	post->length = 0;
	post->rewrite = false;
	user = post_user(conn->pd, ep_handle);
	ret = post_check_iov(ep->obj.ia, &user, post, DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
	if (unlikely(ret != DAT_SUCCESS))
		return ret;
	if (unlikely(post->sync))
		post_sync(ep->obj.ia, post);
	/* a connection is marked and replaced under one lock: the next look finds the new one */
	if (unlikely(!recv_post(conn, post, &ret)))
		goto again;
	return ret;
}

static noinline DAT_RETURN recv_slow(DAT_EP_HANDLE ep_handle, const DAT_LMR_TRIPLET *iov,
				     DAT_COUNT n, DAT_DTO_COOKIE cookie,
				     DAT_COMPLETION_FLAGS flags)
{
	struct kdapl_post post = {
		.iov = iov,
		.n = n,
		.cookie = cookie,
		.flags = flags,
		.op = DAT_DTO_RECEIVE,
	};
	DAT_RETURN ret;

	rcu_read_lock();
	ret = recv_checked(ep_handle, &post);
	rcu_read_unlock();
	if (unlikely(ret != DAT_SUCCESS))
		trace_kdapl_post_refused(ep_handle, post.op, cookie.as_64, ret);
	return ret;
}

/* As fast_post(), for a Receive. */
static __always_inline enum fast_result fast_recv(DAT_EP_HANDLE ep_handle,
						  const DAT_LMR_TRIPLET *iov, DAT_COUNT n,
						  u64 cookie, DAT_COMPLETION_FLAGS flags)
{
	struct kdapl_ep *ep = kdapl_handle_peek(ep_handle, DAT_HANDLE_TYPE_EP);
	struct kdapl_conn *conn;
	struct kdapl_wq *wq;
	unsigned long irq;
	u64 length;
	int ret;

	if (unlikely(!ep))
		return FAST_NO_EP;
	conn = rcu_dereference(ep->conn);
	if (unlikely(!conn) || trace_kdapl_post_enabled())
		return FAST_NOT;
	wq = conn->rq;
	if (unlikely(READ_ONCE(wq->ia->dead)))
		return FAST_NOT;
	if (unlikely((u32)n - 1 >= wq->max_iov[0] || (flags & ~(u32)wq->flags[0]) || !iov)) {
		if (n || (flags & ~(u32)wq->flags[0]))
			return FAST_NOT;
		iov = NULL;	/* an empty Receive has no list (D-96) */
	}
	if (!fast_memory(wq, iov, n, wq->sink, &length))
		return FAST_NOT;
	spin_lock_irqsave(&wq->lock, irq);
	if (unlikely(wq->mode != KDAPL_WQ_LIVE || !recv_has_room(wq))) {
		spin_unlock_irqrestore(&wq->lock, irq);
		return FAST_NOT;
	}
	ret = recv_put(wq, (struct ib_sge *)iov, n, cookie, flags, length);
	spin_unlock_irqrestore(&wq->lock, irq);
	if (unlikely(ret))
		post_refused(conn);
	return FAST_DONE;
}

/**
 * dat_ep_post_recv - provide memory for one incoming message
 * @ep_handle: EP in any state; in DISCONNECTED the Receive is flushed at once
 * @num_segments: segments in @local_iov, 0 for a message without data
 * @local_iov: filled in order, NULL for a message without data; the array is the
 *	caller's again on return, the memory it names after the completion
 * @user_cookie: comes back with the completion; any value, also one that is in use
 * @completion_flags: UNSIGNALLED if the EP is configured for it
 *
 * The completion comes on the recv EVD, in the order of posting, with operation
 * DAT_DTO_RECEIVE and the length of the message. Segments are filled one after
 * the other; what the message does not reach stays untouched. A longer message
 * fails the Receive with DAT_DTO_ERR_LOCAL_LENGTH and ends the connection. If
 * the status is not DAT_DTO_SUCCESS the contents are undefined.
 *
 * The completion starts an upcall unless it is UNSIGNALLED or, on an EP with
 * DAT_COMPLETION_SOLICITED_WAIT_FLAG as recv_completion_flags, the Send did not
 * ask for it (soft-iWARP cannot tell: it always does).
 *
 * Post Receives before connecting or accepting: the peer may send at once, and a
 * message that finds none ends the connection, on iWARP at once.
 *
 * No alignment is needed; optimal_buffer_alignment of the provider attributes,
 * at most DAT_OPTIMAL_ALIGNMENT, is the fastest.
 *
 * Context: any; does not sleep or allocate.
 * Return: DAT_SUCCESS (the Receive will complete); DAT_INVALID_HANDLE (EP);
 * DAT_INVALID_PARAMETER (count, NULL list, range outside its LMR, flags);
 * DAT_INVALID_STATE (EP with an SRQ); DAT_PRIVILEGES_VIOLATION (no such LMR, or
 * no local write right); DAT_PROTECTION_VIOLATION (LMR of another PZ, or EP
 * without PZ); DAT_INSUFFICIENT_RESOURCES (max_recv_dtos are outstanding, or
 * completions nobody dequeues fill the EVD); DAT_INTERNAL_ERROR (device
 * removed).
 */
DAT_RETURN dat_ep_post_recv(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
			    DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
			    DAT_COMPLETION_FLAGS completion_flags)
{
	enum fast_result result;

	rcu_read_lock();
	result = fast_recv(ep_handle, local_iov, num_segments, user_cookie.as_64,
			   completion_flags);
	rcu_read_unlock();
	if (likely(result == FAST_DONE))
		return DAT_SUCCESS;
	if (result == FAST_NO_EP)
		return post_no_ep(ep_handle, DAT_DTO_RECEIVE, user_cookie);
	return recv_slow(ep_handle, local_iov, num_segments, user_cookie, completion_flags);
}
EXPORT_SYMBOL(dat_ep_post_recv);

static DAT_RETURN srq_post(struct kdapl_srq *srq, struct kdapl_post *post)
{
	DAT_RETURN ret = DAT_SUCCESS;
	struct ib_recv_wr wr = {};
	struct kdapl_pool *pool;
	struct kdapl_buf *buf;
	unsigned long flags;

again:
	pool = rcu_dereference(srq->pool);
	if (unlikely(!pool))	/* being freed */
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	spin_lock_irqsave(&pool->lock, flags);
	if (unlikely(pool->replaced)) {
		/* marked and replaced under one lock: the next look finds the new one */
		spin_unlock_irqrestore(&pool->lock, flags);
		goto again;
	}
	buf = kdapl_buf_alloc(pool);
	if (unlikely(!buf)) {
		ret = kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ);
		goto out;
	}
	buf->cookie = post->cookie.as_64;
	if (unlikely(buf->state == KDAPL_BUF_DEAD))
		goto out;
	wr.wr_cqe = &buf->cqe;
	if (unlikely(post->sync))
		kdapl_sinks_keep(pool->sinks, buf->index, post->iov, post->n, post->length);
	wr.sg_list = post_sg_list(pool->scratch, post, pool->pd, post->length, &wr.num_sge);
	if (unlikely(ib_post_srq_recv(pool->ibsrq, &wr, NULL))) {
		kdapl_buf_unalloc(pool, buf);
		ret = kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ);
	}
out:
	spin_unlock_irqrestore(&pool->lock, flags);
	return ret;
}

static DAT_RETURN __srq_call(DAT_SRQ_HANDLE srq_handle, struct kdapl_post *post)
{
	struct kdapl_srq *srq = kdapl_handle_peek(srq_handle, DAT_HANDLE_TYPE_SRQ);
	struct kdapl_user user;
	DAT_RETURN ret;

	if (unlikely(!srq))
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	if (unlikely((u32)post->n - 1 >= srq->max_recv_iov || !post->iov) && post->n)
		return kdapl_arg_err(post->n < 0 || post->n > srq->max_recv_iov ? 2 : 3);
	if (unlikely(READ_ONCE(srq->obj.ia->dead)))
		return kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	user = post_user(srq->pz->pd, DAT_HANDLE_NULL);
	ret = post_check_iov(srq->obj.ia, &user, post, DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
	if (unlikely(ret != DAT_SUCCESS))
		return ret;
	if (unlikely(post->sync))
		post_sync(srq->obj.ia, post);
	return srq_post(srq, post);
}

/**
 * dat_srq_post_recv - provide memory for one incoming message of any EP of an SRQ
 * @srq_handle: SRQ in any state
 * @num_segments: segments in @local_iov, 0 for a message without data
 * @local_iov: filled in order, of LMRs of the SRQ's PZ, NULL for a message without
 *	data; the array is the caller's again on return, the memory it names after
 *	the completion
 * @user_cookie: comes back with the completion; any value, also one that is in use
 *
 * The completion comes on the recv EVD of the EP that took the buffer, with that
 * EP's handle. Completions of one EP come in the order of the peer's Sends;
 * buffers need not be taken in the order of posting. A buffer counts as
 * outstanding until the consumer has its event. It starts an upcall unless the
 * EP has DAT_COMPLETION_SOLICITED_WAIT_FLAG as recv_completion_flags and the
 * Send did not ask for it.
 *
 * Each buffer has to be as long as the longest message of any EP: a longer one
 * fails it with DAT_DTO_ERR_LOCAL_LENGTH and ends that connection. If the status
 * is not DAT_DTO_SUCCESS the contents are undefined.
 *
 * EPs take buffers in CONNECTED and DISCONNECT_PENDING. One that was being filled
 * when the connection ended comes back with DAT_DTO_ERR_FLUSHED if the device
 * gives it back, else with the SRQ; those nobody has taken stay for others. In the
 * SRQ state ERROR the buffer is accepted and stays outstanding until the SRQ is
 * freed. Segments need no alignment, optimal_buffer_alignment is the fast one.
 *
 * Context: any; does not sleep or allocate.
 * Return: DAT_SUCCESS (the SRQ has it); DAT_INVALID_HANDLE (SRQ);
 * DAT_INVALID_PARAMETER (count, NULL list, range outside its LMR);
 * DAT_PRIVILEGES_VIOLATION (no such LMR, or no local write right);
 * DAT_PROTECTION_VIOLATION (LMR of another PZ than the SRQ's);
 * DAT_INSUFFICIENT_RESOURCES (max_recv_dtos are outstanding, or the device
 * refuses); DAT_INTERNAL_ERROR (device removed).
 */
DAT_RETURN dat_srq_post_recv(DAT_SRQ_HANDLE srq_handle, DAT_COUNT num_segments,
			     DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie)
{
	struct kdapl_post post = {
		.iov = local_iov,
		.n = num_segments,
		.cookie = user_cookie,
		.op = DAT_DTO_RECEIVE,
	};
	DAT_RETURN ret;

	rcu_read_lock();
	ret = __srq_call(srq_handle, &post);
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_srq_post_recv);
