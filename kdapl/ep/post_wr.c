// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The slow path of a post, second part: from a checked post to its WRs, and into
 * the work queue and the device; also what Receives and buffers of an SRQ share with requests.
 *
 * One request of the consumer may take several WRs: what fences it, and the
 * invalidation before a new bind of an RMR, go before it in the same chain.
 */
#include "post.h"
#include "../core/trace.h"

/**
 * kdapl_wq_look_for_room - kdapl_wq_has_room(), once completions have been counted anew
 * @wq: work queue; wq->lock held, unless the consumer serialises its posts
 * @dtos: requests of the consumer
 * @wrs: WRs that they take
 *
 * Return: true if there is room.
 */
bool kdapl_wq_look_for_room(struct kdapl_wq *wq, u32 dtos, u32 wrs)
{
	/* tail first: pairs with the release in kdapl_wq_advance() */
	wq->cached_tail = smp_load_acquire(&wq->tail);
	wq->cached_done = READ_ONCE(wq->dtos_done);
	return kdapl_wq_has_room(wq, dtos, wrs);
}

/**
 * kdapl_wq_count_room - count the requests that the fast path may post
 * @wq: work queue of requests; wq->lock held, unless the consumer serialises its posts
 *
 * The number in wq->room is right until other requests are posted. It may be too small once
 * there are completions.
 *
 * Return: true if there is room for one, and the work queue is live.
 */
bool kdapl_wq_count_room(struct kdapl_wq *wq)
{
	if (READ_ONCE(wq->mode) != KDAPL_WQ_LIVE || !kdapl_wq_make_room(wq, 1, 1))
		return false;
	wq->room = min(kdapl_wq_dto_limit(wq) - (wq->dtos - wq->cached_done),
		       wq->max_wrs - (wq->head - wq->cached_tail));
	return true;
}

/* Name the memory by the key of the PD if the device does not know this one. RCU read side. */
static void wr_local_key(struct ib_sge *sge, struct kdapl_ia *ia, const struct kdapl_pd *pd)
{
	const struct kdapl_mr *mr = ia ? kdapl_mr_find(ia, sge->lkey) : NULL;

	if (mr && mr->local)
		sge->addr += mr->shift;
	else if (sge->lkey != KDAPL_RESERVED_CONTEXT)
		return;
	sge->lkey = pd->pd->local_dma_lkey;
}

/**
 * kdapl_post_rewrite_list - the slow part of kdapl_post_sg_list()
 * @scratch: where the list goes; the lock that protects it is held
 * @post: request or Receive
 * @pd: PD it is posted on
 * @length: bytes the list is to have
 * @num: out: segments in it
 *
 * Return: @scratch, or NULL for an empty list.
 */
struct ib_sge *kdapl_post_rewrite_list(struct ib_sge *scratch, const struct kdapl_post *post,
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
		sge->lkey = post->iov[i].lmr_context;
		wr_local_key(sge, post->local, pd);
		left -= sge->length;
		sge++;
	}
	*num = sge - scratch;
	return *num ? scratch : NULL;
}

/* The memory of a request with @sync, by keys of LMRs. */
static const DAT_LMR_TRIPLET *wr_memory(const struct kdapl_post *post)
{
	return post->behind ?: post->iov;
}

/**
 * kdapl_post_sync - synchronise the memory of a post for the device
 * @ia: IA
 * @post: request or Receive with @sync: CPU and device may see its memory differently
 *
 * Does nothing once the device has gone: the post will be flushed.
 *
 * Context: any; RCU read side.
 */
void kdapl_post_sync(struct kdapl_ia *ia, const struct kdapl_post *post)
{
	bool sink = post->op == DAT_DTO_RDMA_READ || post->op == DAT_DTO_RECEIVE;

	if (kdapl_dev_there(ia->dev))
		kdapl_sync_segments(ia, wr_memory(post), post->n, post->length,
				    sink ? KDAPL_SYNC_SINK : KDAPL_SYNC_SOURCE);
}

/**
 * kdapl_post_flush - have unposted entries reported
 * @wq: work queue that an entry was added to which the device never gets
 *
 * Context: any, without wq->lock; RCU read side.
 */
void kdapl_post_flush(struct kdapl_wq *wq)
{
	smp_mb();	/* head is stored before ended is read; pairs with kdapl_wq_end() */
	if (READ_ONCE(wq->ended))
		kdapl_wq_ready(wq);
}

/**
 * kdapl_post_refused - end a connection whose device has refused a legal post
 * @conn: connection
 *
 * iWARP devices refuse posts when the peer has just disconnected. That is no error, so the CM
 * gets time to report it (D-08).
 *
 * Context: any.
 */
void kdapl_post_refused(struct kdapl_conn *conn)
{
	kdapl_conn_end(conn, conn->dev->iwarp ? KDAPL_END_SUSPECT : DAT_CONNECTION_EVENT_BROKEN);
}

/**
 * kdapl_wqe_fill_unposted - fill the entry of a post that never reaches the device
 * @wq: work queue; wq->lock held
 * @wqe: its entry
 * @post: request or Receive
 */
void kdapl_wqe_fill_unposted(struct kdapl_wq *wq, struct kdapl_wqe *wqe,
			     const struct kdapl_post *post)
{
	kdapl_wqe_fill(wqe, post->op, post->cookie.as_64, post->length, post->flags,
		       KDAPL_WQE_UNPOSTED);
	trace_kdapl_post(wq->conn->handle, post->op, wqe->cookie, wqe->length, post->flags, true);
}

/* Does this request get a completion of its own? wq->lock held. */
static bool wr_signaled(struct kdapl_wq *wq, const struct kdapl_post *post, u32 pos)
{
	bool must = kdapl_dto_must_signal(wq, post->op, post->length) ||
		    post->op == DAT_DTO_LMR_INVALIDATE || post->op == DAT_DTO_BIND_MW ||
		    (wq->serial && post->op == DAT_DTO_LMR_FMR);

	if (must)
		wq->unsignaled = wq->interval;	/* the next one is due */
	return kdapl_wq_signals(wq, post->flags, pos);
}

/* The flag by which the device itself fences a request of this kind, if it can. */
static int wr_fence_flag(const struct kdapl_conn *conn, enum ib_wr_opcode opcode)
{
	const struct kdapl_caps *caps = &conn->dev->caps;

	return caps->fence_by == KDAPL_FENCE_INV || (caps->unfenced & BIT_ULL(opcode)) ?
		0 : IB_SEND_FENCE;
}

/*
 * Decide which WRs a request takes. Returns how many.
 *
 * The old key of an RMR is invalidated before the next bind, so that it does not outlive it
 * (D-25). If the device cannot fence the first of these WRs, another one before
 * it does, which waits for earlier Reads (D-14, D-83, D-95).
 */
static u32 wr_plan(const struct kdapl_conn *conn, struct kdapl_post *post)
{
	enum ib_wr_opcode first;

	post->opcode = kdapl_post_opcode(post);
	post->rebinds = post->mr && post->inv_key;
	first = post->rebinds ? IB_WR_LOCAL_INV : post->opcode;
	post->fence = unlikely(kdapl_post_is_fenced(post)) &&
		      (conn->dev->caps.unfenced & BIT_ULL(first));
	return 1 + post->fence + post->rebinds;
}

/*
 * Record the object whose state this request changes, so that its completion can update it.
 * wq->lock held.
 */
static void wr_set_memop(struct kdapl_wq *wq, struct kdapl_wqe *wqe,
			 const struct kdapl_post *post)
{
	wqe->flags |= KDAPL_WQE_OP_PENDING;
	wqe->length = post->seq;
	refcount_inc(&post->obj->ref);
	wq->memop[wqe->index].obj = post->obj;
	WRITE_ONCE(wq->memops, wq->memops + 1);
}

/* Start a WR of our own and its entry, at @pos. wq->lock held. */
static struct kdapl_wqe *wr_begin(struct kdapl_wq *wq, u32 pos,
				  union kdapl_wr *wr)
{
	struct kdapl_wqe *wqe = &wq->wqe[pos & wq->mask];

	wqe->flags = 0;
	wqe->state = KDAPL_WQE_POSTED;
	wqe->seq = wq->dtos;
	memset(wr, 0, sizeof(*wr));
	wr->send.wr_cqe = &wqe->cqe;
	return wqe;
}

/* The request that fences the one behind it. wq->lock held. */
static void wr_build_fence(struct kdapl_wq *wq, u32 pos, union kdapl_wr *wr)
{
	struct kdapl_wqe *wqe = wr_begin(wq, pos, wr);
	const struct kdapl_conn *conn = wq->conn;

	wqe->op = KDAPL_OP_FENCE;
	if (conn->dev->caps.fence_by == KDAPL_FENCE_INV) {
		wr->send.opcode = IB_WR_LOCAL_INV;
		wr->send.ex.invalidate_rkey = conn->pd->fence->rkey;
	} else {
		wr->send.opcode = IB_WR_RDMA_WRITE;
		wr->send.send_flags = IB_SEND_FENCE;
	}
}

/* The invalidation of the old key of an RMR, before a new bind. wq->lock held. */
static void wr_build_inv(struct kdapl_wq *wq, const struct kdapl_post *post, u32 pos,
			 union kdapl_wr *wr)
{
	struct kdapl_wqe *wqe = wr_begin(wq, pos, wr);

	wqe->op = KDAPL_OP_INV;
	wqe->flags = KDAPL_WQE_SIGNALED;
	wr_set_memop(wq, wqe, post);
	wr->send.opcode = IB_WR_LOCAL_INV;
	wr->send.send_flags = IB_SEND_SIGNALED |
				wr_fence_flag(wq->conn, IB_WR_LOCAL_INV);
	wr->send.ex.invalidate_rkey = post->inv_key;
}

/* Keep soft-iWARP from copying a short request: kdapl_dto_is_short(). wq->lock held. */
static void wr_split_short(struct ib_sge *scratch, struct ib_send_wr *wr)
{
	struct ib_sge one;
	u32 first;

	if (wr->num_sge != 1 || wr->opcode == IB_WR_RDMA_READ ||
	    !kdapl_dto_is_short(wr->sg_list[0].addr, wr->sg_list[0].length))
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

/* A Read of no bytes, where the device needs one in another form. wq->lock held. */
static void wr_empty_read(const struct kdapl_conn *conn, struct ib_sge *scratch,
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

/* A Write with immediate data uses a Receive, so it can solicit an event, as a Send can. */
static void wr_add_immed(struct ib_send_wr *wr, const struct kdapl_post *post)
{
	wr->ex.imm_data = cpu_to_be32(post->immed);
	if (post->flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG)
		wr->send_flags |= IB_SEND_SOLICITED;
}

/* Build a request about an LMR or RMR. wq->lock held. */
static noinline void wr_build_memop(struct kdapl_wq *wq, const struct kdapl_post *post,
				    struct kdapl_wqe *wqe, union kdapl_wr *wr,
				    bool signaled, int fence)
{
	wr->send = (struct ib_send_wr) {
		.wr_cqe = &wqe->cqe,
		.opcode = post->opcode,
		.send_flags = (signaled ? IB_SEND_SIGNALED : 0) | fence,
	};
	kdapl_wqe_fill(wqe, post->op, post->cookie.as_64, post->length,
		       post->flags | (signaled ? KDAPL_WQE_SIGNALED : 0), KDAPL_WQE_POSTED);
	wqe->retires = kdapl_wq_retires(wq, signaled);
	wqe->seq = ++wq->dtos;
	wr_set_memop(wq, wqe, post);
	wq->memops_before |= !signaled;
	if (post->opcode == IB_WR_REG_MR) {
		wr->reg.mr = post->mr;
		wr->reg.key = post->key;
		wr->reg.access = post->access;
	} else if (post->opcode == IB_WR_LOCAL_INV) {
		wr->send.ex.invalidate_rkey = post->inv_key;
	} else {
		/* an empty Write: do not send what an earlier request has left here */
		wr->rdma.remote_addr = 0;
		wr->rdma.rkey = 0;
	}
}

/* Fill the entry at @pos and the WR for it. wq->lock held. */
static void wr_build(struct kdapl_wq *wq, const struct kdapl_post *post, u32 pos,
		     struct ib_sge *scratch, union kdapl_wr *wr)
{
	struct kdapl_wqe *wqe = &wq->wqe[pos & wq->mask];
	struct kdapl_conn *conn = wq->conn;
	struct ib_sge *sgl;
	int fence = 0, n;
	bool signaled;

	if (unlikely(kdapl_post_is_fenced(post)))
		fence = wr_fence_flag(conn, post->opcode);
	signaled = wr_signaled(wq, post, pos);
	trace_kdapl_post(conn->handle, post->op, post->cookie.as_64, post->length, post->flags,
			 false);
	if (unlikely(kdapl_post_is_memop(post))) {
		wr_build_memop(wq, post, wqe, wr, signaled, fence);
		return;
	}
	sgl = kdapl_post_sg_list(scratch, post, conn->pd, post->length, &n);
	kdapl_dto_fill(wq, wqe, post->op, post->cookie.as_64, post->flags, post->length, signaled);
	fence |= kdapl_dto_send_flags(post->op, post->flags, signaled, 0);
	wr->rdma = kdapl_dto_wr(wqe, post->opcode, sgl, n, post->remote, fence,
				post->invalidate ? post->inv_key : 0);
	if (unlikely(post->with_immed))
		wr_add_immed(&wr->send, post);
	if (unlikely(conn->dev->caps.short_page_bug))
		wr_split_short(scratch, &wr->send);
	if (post->op == DAT_DTO_RDMA_READ) {
		if (unlikely(post->sync))
			kdapl_sinks_keep(wq->sinks, wqe->index, wr_memory(post), post->n,
					 post->length);
		if (unlikely(!n))
			wr_empty_read(conn, scratch, &wr->send);
	}
}

/* The device has refused @bad and all requests behind it. wq->lock held. */
static void wr_refused(struct kdapl_wq *wq, const struct ib_send_wr *bad)
{
	struct kdapl_wqe *wqe;

	for (; bad; bad = bad->next) {
		wqe = container_of(bad->wr_cqe, struct kdapl_wqe, cqe);
		WRITE_ONCE(wqe->state, KDAPL_WQE_UNPOSTED);
	}
	/* pairs with the acquire in kdapl_wq_check_recv_end() */
	smp_store_release(&wq->mode, KDAPL_WQ_FLUSHING);
}

/*
 * Post a Write and the request behind it by two calls, for a device that reads the first segment
 * of both even if there is none (D-96).
 */
static int wr_post_pair(struct ib_qp *qp, struct ib_send_wr *first,
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

static int wr_hand_over(struct kdapl_wq *wq, struct ib_send_wr *wr,
			const struct ib_send_wr **bad)
{
	if (unlikely(wq->conn->dev->caps.pairs_peeked) && wr->opcode == IB_WR_RDMA_WRITE &&
	    wr->next && !wr->next->next)
		return wr_post_pair(wq->qp, wr, bad);
	return ib_post_send(wq->qp, wr, bad);
}

/* Build the WRs and hand them to the device as one chain. wq->lock held. */
static int wr_post_chain(struct kdapl_wq *wq, const struct kdapl_post *posts, int n)
{
	union kdapl_wr *wr = wq->chain, *next = wr;
	const struct ib_send_wr *bad = NULL;
	struct ib_sge *scratch = wq->scratch;
	u32 pos = wq->head;
	int ret, i;

	for (i = 0; i < n; i++, scratch += wq->stride) {
		if (unlikely(posts[i].fence)) {
			wr_build_fence(wq, pos++, next);
			next->send.next = &next[1].send;
			next++;
		}
		if (unlikely(posts[i].rebinds)) {
			wr_build_inv(wq, &posts[i], pos++, next);
			next->send.next = &next[1].send;
			next++;
		}
		wr_build(wq, &posts[i], pos++, scratch, next);
		if (i < n - 1)
			next->send.next = &next[1].send;
		next++;
	}
	/* pairs with the acquire in kdapl_wq_next() */
	smp_store_release(&wq->head, pos);

	ret = wr_hand_over(wq, &wr->send, &bad);
	if (unlikely(ret))
		wr_refused(wq, bad ?: &wr->send);
	return ret;
}

/* Put a request into the work queue only, to be reported FLUSHED. wq->lock held. */
static void wr_put_unposted(struct kdapl_wq *wq, struct kdapl_post *post)
{
	struct kdapl_wqe *wqe = &wq->wqe[wq->head & wq->mask];

	kdapl_wqe_fill_unposted(wq, wqe, post);
	post->unposted = true;
	if (post->obj)
		wq->memop[wqe->index].handle = post->obj->handle;
	if (post->op == DAT_DTO_RDMA_READ)
		WRITE_ONCE(wq->reads, wq->reads + 1);
	wqe->seq = ++wq->dtos;
	/* pairs with the acquire in kdapl_wq_next() */
	smp_store_release(&wq->head, wq->head + 1);
}

/* Put requests into work queue and device, or into the work queue only. wq->lock held. */
static enum kdapl_verdict wr_post(struct kdapl_wq *wq, struct kdapl_post *posts, int n, u32 wrs,
				  u32 reads, int *err)
{
	int i;

	if (unlikely(wq->mode == KDAPL_WQ_REFUSE))
		return KDAPL_REFUSE_STATE;
	if (unlikely(!kdapl_wq_make_room(wq, n, wrs) || !kdapl_wq_has_reads(wq, reads)))
		return KDAPL_REFUSE_QUEUE_FULL;
	if (likely(wq->mode == KDAPL_WQ_LIVE)) {
		*err = wr_post_chain(wq, posts, n);
	} else {
		for (i = 0; i < n; i++)
			wr_put_unposted(wq, &posts[i]);
	}
	return KDAPL_ACCEPTED;
}

/**
 * kdapl_post_requests - post requests that have been checked, all of them or none
 * @conn: connection
 * @posts: requests; on return all or none of them are unposted
 * @n: how many, at most KDAT_POST_LIST_MAX
 *
 * Completions that have not been polled yet may make room: they are polled once.
 *
 * Context: any; RCU read side.
 * Return: KDAPL_ACCEPTED, KDAPL_REFUSE_STATE or KDAPL_REFUSE_QUEUE_FULL.
 */
enum kdapl_verdict kdapl_post_requests(struct kdapl_conn *conn, struct kdapl_post *posts, int n)
{
	struct kdapl_wq *wq = conn->sq;
	enum kdapl_verdict why;
	u32 wrs = 0, reads = 0;
	bool polled = false;
	unsigned long flags;
	int err = 0, i;

	for (i = 0; i < n; i++) {
		reads += posts[i].op == DAT_DTO_RDMA_READ;
		wrs += wr_plan(conn, &posts[i]);
		if (unlikely(posts[i].sync))
			kdapl_post_sync(wq->ia, &posts[i]);
	}
again:
	spin_lock_irqsave(&wq->lock, flags);
	why = wr_post(wq, posts, n, wrs, reads, &err);
	spin_unlock_irqrestore(&wq->lock, flags);
	if (unlikely(why == KDAPL_REFUSE_QUEUE_FULL && !polled)) {
		kdapl_wq_poll_cq(wq);
		polled = true;
		goto again;
	}
	if (unlikely(!why && posts[0].unposted))
		kdapl_post_flush(wq);
	if (unlikely(err))
		kdapl_post_refused(conn);
	return why;
}
