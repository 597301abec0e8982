/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * What the posting files share: a post on its way, and the steps of the fast path, which are
 * inline.
 */
#ifndef KDAPL_EP_POST_H
#define KDAPL_EP_POST_H

#include <linux/mm.h>
#include <linux/overflow.h>

#include "ep.h"
#include "../core/trace.h"

#define KDAPL_FLAGS_RDMA	(DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_UNSIGNALLED_FLAG | \
				 DAT_COMPLETION_BARRIER_FENCE_FLAG)

/**
 * struct kdapl_post - one request or Receive to be posted
 * @iov: local segments
 * @n: how many
 * @cookie: the consumer's
 * @flags: completion flags
 * @op: DAT_DTOS; DAT_DTO_BIND_MW for an RMR
 * @invalidate: the peer is to invalidate @inv_key with the message
 * @with_immed: a Write that carries @immed
 * @rewrite: the device cannot use @iov as it is
 * @sync: some of the memory has to be synchronised
 * @unposted: out: did not reach the device, will be reported FLUSHED
 * @fence: another WR fences it
 * @rebinds: an invalidation of @inv_key goes before it
 * @before: requests of its list, right before it in memory, whose keys it may use although they
 *	are not published, since none of the list reaches the device
 * @opcode: enum ib_wr_opcode; like @fence and @rebinds, set when it is posted
 * @remote: remote buffer of RDMA
 * @length: bytes to transfer
 * @obj: LMR or RMR whose state the request changes
 * @mr: MR to be registered
 * @key: the key it gets
 * @access: the rights it gets
 * @inv_key: key to be invalidated, first
 * @immed: immediate data
 * @seq: which operation on the LMR it is
 * @local: with @rewrite: IA whose keys without an MR may be in @iov, or NULL
 * @behind: with @sync: the same memory as @iov, by keys of LMRs; NULL: @iov itself
 */
struct kdapl_post {
	const DAT_LMR_TRIPLET *iov;
	DAT_COUNT n;
	DAT_DTO_COOKIE cookie;
	DAT_COMPLETION_FLAGS flags;
	u8 op;
	bool invalidate;
	bool with_immed;
	bool rewrite;
	bool sync;
	bool unposted;
	bool fence;
	bool rebinds;
	u8 before;
	u8 opcode;
	const DAT_RMR_TRIPLET *remote;
	u64 length;
	struct kdapl_obj *obj;
	struct ib_mr *mr;
	u32 key;
	int access;
	u32 inv_key;
	u32 immed;
	u32 seq;
	struct kdapl_ia *local;
	const DAT_LMR_TRIPLET *behind;
};

/* The posting calls, as kdapl_post_ret() tells them apart. */
enum kdapl_call {
	KDAPL_CALL_SEND,	/* with or without an invalidation */
	KDAPL_CALL_RDMA,	/* Write, with or without immediate data, or Read */
	KDAPL_CALL_READ_TO_RMR,
	KDAPL_CALL_RECV,
	KDAPL_CALL_SRQ_RECV,
	KDAPL_CALL_LIST,
	KDAPL_CALL_LMR_FMR,
	KDAPL_CALL_LMR_FMR_SG,
	KDAPL_CALL_LMR_INVALIDATE,
	KDAPL_CALL_RMR_BIND,
};

/* post_ret.c */
DAT_RETURN kdapl_post_ret(enum kdapl_verdict why, const struct kdapl_ep *ep,
			  enum kdapl_call call);
DAT_RETURN kdapl_post_trace_no_ep(DAT_EP_HANDLE ep_handle, u8 op, DAT_DTO_COOKIE cookie);

/* Refuse a post whose handle is not that of an EP. */
static __always_inline DAT_RETURN kdapl_post_no_ep(DAT_EP_HANDLE ep_handle, u8 op,
						   DAT_DTO_COOKIE cookie)
{
	if (trace_kdapl_post_refused_enabled())
		return kdapl_post_trace_no_ep(ep_handle, op, cookie);
	return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
}

/* post_check.c */
enum kdapl_verdict kdapl_post_check_iov(struct kdapl_ia *ia, const unsigned long *domain,
					struct kdapl_post *post, DAT_MEM_PRIV_FLAGS need);
enum kdapl_verdict kdapl_post_check_state(struct kdapl_ep *ep, struct kdapl_conn *conn,
					  const struct kdapl_post *post,
					  DAT_COMPLETION_FLAGS legal);
enum kdapl_verdict kdapl_post_no_reads(struct kdapl_conn *conn);
enum kdapl_verdict kdapl_post_check(struct kdapl_ep *ep, struct kdapl_conn *conn,
				    struct kdapl_post *post);

/* post_wr.c */
bool kdapl_wq_look_for_room(struct kdapl_wq *wq, u32 dtos, u32 wrs);
bool kdapl_wq_count_room(struct kdapl_wq *wq);
void kdapl_wqe_fill_unposted(struct kdapl_wq *wq, struct kdapl_wqe *wqe,
			     const struct kdapl_post *post);
struct ib_sge *kdapl_post_rewrite_list(struct ib_sge *scratch, const struct kdapl_post *post,
				       const struct kdapl_pd *pd, u64 length, int *num);
void kdapl_post_sync(struct kdapl_ia *ia, const struct kdapl_post *post);
void kdapl_post_flush(struct kdapl_wq *wq);
void kdapl_post_refused(struct kdapl_conn *conn);
enum kdapl_verdict kdapl_post_requests(struct kdapl_conn *conn, struct kdapl_post *posts, int n);

/* ep_fmr.c */
enum kdapl_verdict kdapl_lmr_op_begin(struct kdapl_ep *ep, struct kdapl_conn *conn,
				      const struct kdat_request *in, struct kdapl_post *post);
void kdapl_lmr_op_undo(const struct kdapl_post *post);

/* Attributes of a connection do not change; those of an EP may while it has no connection. */
static inline const DAT_EP_ATTR *kdapl_post_attr(struct kdapl_ep *ep, struct kdapl_conn *conn)
{
	return likely(conn) ? &conn->attr : &ep->conf.attr;
}

/* Does the connection allow RDMA Reads? */
static inline bool kdapl_conn_allows_reads(const struct kdapl_conn *conn)
{
	return conn->attr.max_rdma_read_out &&
	       (READ_ONCE(conn->sq->mode) != KDAPL_WQ_LIVE || conn->read_depth);
}

/* Does it change an LMR or RMR? */
static inline bool kdapl_post_is_memop(const struct kdapl_post *post)
{
	return post->op >= DAT_DTO_BIND_MW;
}

static inline bool kdapl_post_is_fenced(const struct kdapl_post *post)
{
	return post->flags & (DAT_COMPLETION_BARRIER_FENCE_FLAG |
			      DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG);
}

/* The WR opcode of a Send, Write or Read. */
static __always_inline enum ib_wr_opcode kdapl_dto_opcode(u8 op)
{
	return op == DAT_DTO_SEND ? IB_WR_SEND :
	       op == DAT_DTO_RDMA_WRITE ? IB_WR_RDMA_WRITE : IB_WR_RDMA_READ;
}

/* The WR opcode of any request. */
static inline enum ib_wr_opcode kdapl_post_opcode(const struct kdapl_post *post)
{
	if (likely(post->op <= DAT_DTO_RDMA_READ))
		return post->invalidate ? IB_WR_SEND_WITH_INV :
		       post->with_immed ? IB_WR_RDMA_WRITE_WITH_IMM : kdapl_dto_opcode(post->op);
	if (post->mr)
		return IB_WR_REG_MR;
	/* an unbind of an RMR that is not bound: an empty Write, so that it completes in order */
	return post->inv_key ? IB_WR_LOCAL_INV : IB_WR_RDMA_WRITE;
}

/*
 * The list for the device; NULL if it is empty, since some devices would read it (D-96). Empty
 * segments are left out, the list ends after @length bytes, and the keys of the reserved LMR and
 * of LMRs without an MR are replaced by that of this PD. The lock that protects @scratch is held.
 */
static __always_inline struct ib_sge *kdapl_post_sg_list(struct ib_sge *scratch,
							 const struct kdapl_post *post,
							 const struct kdapl_pd *pd, u64 length,
							 int *num)
{
	if (unlikely(post->rewrite))
		return kdapl_post_rewrite_list(scratch, post, pd, length, num);
	*num = post->n;
	return (struct ib_sge *)post->iov;
}

/*
 * Requests of the consumer that may be outstanding. wq->lock held. Suppressed requests may be
 * done without a completion that says so, so some more are allowed while there are any (D-09).
 */
static inline u32 kdapl_wq_dto_limit(struct kdapl_wq *wq)
{
	if ((s32)(wq->last_sup - wq->cached_tail) >= 0)
		return wq->depth + wq->interval - 1;
	wq->last_sup = wq->cached_tail - 1;	/* keep it near: indexes wrap */
	return wq->depth;
}

/* Will no request of our own be posted any more? wq->lock held; not live. */
static inline bool kdapl_wq_own_posted(const struct kdapl_wq *wq)
{
	return READ_ONCE(wq->marker) == KDAPL_MARKER_LAST || wq->no_marker ||
	       READ_ONCE(wq->ended);
}

/* Is there room for @wrs WRs that are @dtos requests of the consumer? wq->lock held. */
static inline bool kdapl_wq_has_room(struct kdapl_wq *wq, u32 dtos, u32 wrs)
{
	u32 limit = kdapl_wq_dto_limit(wq);
	u32 max_wrs = wq->max_wrs;

	/*
	 * Requests that are not for the device may take the entries of our own requests, too, but
	 * not that of a marker to come.
	 */
	if (wq->mode == KDAPL_WQ_FLUSHING && kdapl_wq_own_posted(wq))
		max_wrs += KDAPL_OWN_WQES;
	return wq->dtos + dtos - wq->cached_done <= limit &&
	       wq->head + wrs - wq->cached_tail <= max_wrs;
}

/* The same, counting completions anew if need be. What the fast path knew is void then. */
static inline bool kdapl_wq_make_room(struct kdapl_wq *wq, u32 dtos, u32 wrs)
{
	wq->room = 0;
	return likely(kdapl_wq_has_room(wq, dtos, wrs)) || kdapl_wq_look_for_room(wq, dtos, wrs);
}

/* Is there room for @reads? Some devices limit the Reads under way. wq->lock held. */
static __always_inline bool kdapl_wq_has_reads(const struct kdapl_wq *wq, u32 reads)
{
	return likely(!wq->max_reads || wq->mode != KDAPL_WQ_LIVE) ||
	       wq->reads - READ_ONCE(wq->reads_done) + reads <= wq->max_reads;
}

/*
 * Do these completion flags give a request a completion of its own? It may need one for other
 * reasons. wq->lock held.
 */
static __always_inline bool kdapl_wq_signals(struct kdapl_wq *wq, u8 flags, u32 pos)
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

/* Must its completion retire suppressed operations on LMRs before it? wq->lock held. */
static __always_inline bool kdapl_wq_retires(struct kdapl_wq *wq, bool signaled)
{
	if (likely(!wq->memops_before) || !signaled)
		return false;
	wq->memops_before = false;
	return true;
}

/* Fill the entry of a request or Receive. */
static __always_inline void kdapl_wqe_fill(struct kdapl_wqe *wqe, u8 op, u64 cookie, u32 length,
					   u8 flags, enum kdapl_wqe_state state)
{
	wqe->cookie = cookie;
	wqe->length = length;
	wqe->op = op;
	wqe->flags = flags;
	wqe->state = state;
}

/*
 * Must a Send, Write or Read have a completion whatever its flags say? A Read must if Reads
 * complete out of order. A request of a page or more must if the network sends requests without a
 * completion straight from their pages. Otherwise the consumer could not reuse the pages after
 * the next completion, but would have to wait for the peer.
 */
static __always_inline bool kdapl_dto_must_signal(const struct kdapl_wq *wq, u8 op, u64 length)
{
	return (wq->ooo && op == DAT_DTO_RDMA_READ) ||
	       (length >= PAGE_SIZE && wq->conn->dev->caps.lends_pages);
}

/* Requests up to this size are copied by the device; the driver's own limit is lower. */
#define KDAPL_SHORT_SEND	64

/*
 * Soft-iWARP copies a short request of one segment into the header of the packet, and gets it
 * wrong if the segment crosses a page: the peer gets bytes from beyond the page. Two segments
 * are sent correctly.
 */
static __always_inline bool kdapl_dto_is_short(u64 addr, u32 length)
{
	return length <= KDAPL_SHORT_SEND && offset_in_page(addr) + length > PAGE_SIZE;
}

/* Completion flags that few requests have. */
#define KDAPL_FLAGS_RARE	(DAT_COMPLETION_SOLICITED_WAIT_FLAG | \
				 DAT_COMPLETION_BARRIER_FENCE_FLAG)

/* The send flags of a Send, Write or Read. @fence: the flag by which the device fences it. */
static __always_inline int kdapl_dto_send_flags(u8 op, u8 flags, bool signaled, int fence)
{
	int send_flags = signaled ? IB_SEND_SIGNALED : 0;

	if (unlikely(flags & KDAPL_FLAGS_RARE)) {
		OPTIMIZER_HIDE_VAR(send_flags);	/* or gcc computes both for each post */
		if (op == DAT_DTO_SEND && (flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG))
			send_flags |= IB_SEND_SOLICITED;
		if (flags & DAT_COMPLETION_BARRIER_FENCE_FLAG)
			send_flags |= fence;
	}
	return send_flags;
}

/*
 * Fill the entry of a Send, Write or Read. wq->lock held, unless the consumer serialises its
 * posts.
 */
static __always_inline void kdapl_dto_fill(struct kdapl_wq *wq, struct kdapl_wqe *wqe, u8 op,
					   u64 cookie, u8 flags, u32 length, bool signaled)
{
	kdapl_wqe_fill(wqe, op, cookie, length, flags | (signaled ? KDAPL_WQE_SIGNALED : 0),
		       KDAPL_WQE_POSTED);
	wqe->retires = kdapl_wq_retires(wq, signaled);
	wqe->seq = ++wq->dtos;
	if (op == DAT_DTO_RDMA_READ)
		WRITE_ONCE(wq->reads, wq->reads + 1);
}

/* The WR of a Send, Write or Read. */
static __always_inline struct ib_send_wr
kdapl_dto_send_wr(struct kdapl_wqe *wqe, enum ib_wr_opcode opcode, struct ib_sge *sgl,
		  int num_sge, int send_flags, u32 inv_key)
{
	return (struct ib_send_wr) {
		.next = NULL,
		.wr_cqe = &wqe->cqe,
		.sg_list = sgl,
		.num_sge = num_sge,
		.opcode = opcode,
		.send_flags = send_flags,
		.ex.invalidate_rkey = inv_key,
	};
}

/* The same, and where the peer's memory is; @remote may be NULL. */
static __always_inline struct ib_rdma_wr
kdapl_dto_wr(struct kdapl_wqe *wqe, enum ib_wr_opcode opcode, struct ib_sge *sgl, int num_sge,
	     const DAT_RMR_TRIPLET *remote, int send_flags, u32 inv_key)
{
	return (struct ib_rdma_wr) {
		.wr = kdapl_dto_send_wr(wqe, opcode, sgl, num_sge, send_flags, inv_key),
		.remote_addr = remote ? remote->virtual_address : 0,
		.rkey = remote ? remote->rmr_context : 0,
	};
}

/*
 * The fast path runs inside one of these sections. RCU waits for them as for its own read
 * sections, and they cost less. If spinlocks may sleep, it is an ordinary read section.
 */
static __always_inline void kdapl_fast_begin(void)
{
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		rcu_read_lock();
	else
		rcu_read_lock_sched();
}

static __always_inline void kdapl_fast_end(void)
{
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		rcu_read_unlock();
	else
		rcu_read_unlock_sched();
}

/* What the fast path makes of a post. */
enum kdapl_fast {
	KDAPL_FAST_DONE,
	KDAPL_FAST_REFUSED,	/* by the device; for the consumer it is posted (D-07) */
	KDAPL_FAST_SLOW,	/* nothing has changed: take the slow path */
};

/* May the fast path use this segment? It must not be empty, and needs the rights @need. */
static __always_inline bool
kdapl_fast_check_segment(const struct kdapl_key_table *table, const unsigned long *domain,
			 const DAT_LMR_TRIPLET *seg, u64 length, u32 need)
{
	const struct kdapl_mr *mr = kdapl_key_table_find(table, seg->lmr_context);
	unsigned int seq;
	u64 left;
	bool good;

	if (unlikely(!mr))
		return false;
	seq = raw_seqcount_begin(&mr->seq);
	/* one subtraction compares and yields what is left; length - 1: 0 is refused, too */
	good = READ_ONCE(mr->lkey) == seg->lmr_context && !(need & ~mr->range.priv) &&
	       (mr->range.domain == domain[0] || mr->range.domain == domain[1]) &&
	       !check_sub_overflow(mr->range.length, seg->virtual_address - mr->range.start,
				   &left) &&
	       length - 1 < left;
	return likely(good && !read_seqcount_retry(&mr->seq, seq));
}

/* The same for a list, whose bytes are counted. */
static __always_inline bool kdapl_fast_check_iov(struct kdapl_ia *ia, const unsigned long *domain,
						 const DAT_LMR_TRIPLET *iov, DAT_COUNT n, u32 need,
						 u64 *length)
{
	const struct kdapl_key_table *table = kdapl_keys_table(&ia->keys);
	const DAT_LMR_TRIPLET *end = iov + n;
	u64 sum = 0;

	for (; iov != end; iov++) {
		u64 bytes = iov->segment_length;

#ifndef KDAPL_UNCHECKED
		if (!kdapl_fast_check_segment(table, domain, iov, bytes, need))
			return false;
#endif
		sum += bytes;
	}
	*length = sum;
	return true;
}

#endif /* KDAPL_EP_POST_H */
