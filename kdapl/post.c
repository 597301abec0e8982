// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The posting calls.
 *
 * A post runs inside one RCU read section: handle, half and LMRs are looked up
 * without taking references. It allocates nothing, sleeps nowhere and hands at
 * most one chain to the provider, under the lock of its ring, which makes ring
 * order and queue order the same.
 *
 * Everything that can be known here is checked before anything is posted: a
 * request the provider refuses can cost a queue slot for ever (soft-iWARP) or
 * hang. A post that passed the checks succeeds; should the provider refuse it
 * all the same, the connection ends and the request is reported FLUSHED (D-07).
 *
 * A DAT triplet has the layout of a struct ib_sge, so the consumer's list goes
 * through as it is unless a segment is empty or the list must be shortened.
 */
#include <linux/export.h>
#include <linux/mm.h>

#include "kdapl.h"

static_assert(sizeof(DAT_LMR_TRIPLET) == sizeof(struct ib_sge));
static_assert(offsetof(DAT_LMR_TRIPLET, virtual_address) == offsetof(struct ib_sge, addr));
static_assert(offsetof(DAT_LMR_TRIPLET, segment_length) == offsetof(struct ib_sge, length));
static_assert(offsetof(DAT_LMR_TRIPLET, lmr_context) == offsetof(struct ib_sge, lkey));

#define FLAGS_RECV	DAT_COMPLETION_UNSIGNALLED_FLAG
#define FLAGS_RDMA	(DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_UNSIGNALLED_FLAG | \
			 DAT_COMPLETION_BARRIER_FENCE_FLAG)
#define FLAGS_SEND	(FLAGS_RDMA | DAT_COMPLETION_SOLICITED_WAIT_FLAG)

/**
 * struct kdapl_post - one posting call
 * @iov: local segments
 * @n: how many
 * @cookie: the consumer's
 * @flags: completion flags
 * @op: DAT_DTOS
 * @flags_arg: position of the flags among the arguments
 * @remote: remote buffer of RDMA
 * @length: bytes to transfer
 * @rewrite: the list cannot go through as it is
 */
struct kdapl_post {
	const DAT_LMR_TRIPLET *iov;
	DAT_COUNT n;
	DAT_DTO_COOKIE cookie;
	DAT_COMPLETION_FLAGS flags;
	u8 op;
	u8 flags_arg;
	const DAT_RMR_TRIPLET *remote;
	u64 length;
	bool rewrite;
};

/* Check one segment that is not empty, in the order of SIL-03. */
static DAT_RETURN post_check_segment(struct kdapl_ia *ia, const struct kdapl_pd *pd,
				     const DAT_LMR_TRIPLET *seg, DAT_MEM_PRIV_FLAGS need)
{
	const struct kdapl_lmr *lmr = kdapl_key_find(ia, seg->lmr_context);
	bool write = need & DAT_MEM_PRIV_LOCAL_WRITE_FLAG;

	if (unlikely(!lmr || (lmr->priv & need) != need)) {
		if (lmr && (lmr->priv & DAT_MEM_PRIV_LOCAL_WRITE_FLAG) && write)
			return kdapl_err(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_RDMA_WRITE);
		return kdapl_err(DAT_PRIVILEGES_VIOLATION,
				 write ? DAT_PRIVILEGES_WRITE : DAT_PRIVILEGES_READ);
	}
	if (unlikely(lmr->pd != pd))
		return kdapl_err(DAT_PROTECTION_VIOLATION,
				 write ? DAT_PROTECTION_WRITE : DAT_PROTECTION_READ);
	if (unlikely(seg->segment_length > lmr->length ||
		     seg->virtual_address - lmr->start > lmr->length - seg->segment_length))
		return kdapl_arg_err(3);
	return DAT_SUCCESS;
}

static DAT_RETURN post_check_iov(struct kdapl_ia *ia, const struct kdapl_pd *pd,
				 struct kdapl_post *post, DAT_MEM_PRIV_FLAGS need)
{
	DAT_RETURN ret;
	int i;

	for (i = 0; i < post->n; i++) {
		if (unlikely(!post->iov[i].segment_length)) {
			post->rewrite = true;	/* whatever else it says is not looked at */
			continue;
		}
		ret = post_check_segment(ia, pd, &post->iov[i], need);
		if (unlikely(ret != DAT_SUCCESS))
			return ret;
		post->length += post->iov[i].segment_length;
	}
	return DAT_SUCCESS;
}

/*
 * The list for the provider. Empty segments are left out and the list ends
 * after @length bytes. The lock that the scratch list belongs to is held.
 */
static struct ib_sge *post_sg_list(struct ib_sge *scratch, const struct kdapl_post *post,
				   u64 length, int *num)
{
	struct ib_sge *sge = scratch;
	u64 left = length;
	int i;

	if (likely(!post->rewrite)) {
		*num = post->n;
		return (struct ib_sge *)post->iov;
	}
	for (i = 0; i < post->n && left; i++) {
		if (!post->iov[i].segment_length)
			continue;
		sge->addr = post->iov[i].virtual_address;
		sge->length = min_t(u64, post->iov[i].segment_length, left);
		sge->lkey = post->iov[i].lmr_context;
		left -= sge->length;
		sge++;
	}
	*num = sge - scratch;
	return scratch;
}

/*
 * Is there room for @wrs work requests, one of them a consumer's? ring->lock
 * held. With suppressed requests in the ring some that are done may not have
 * been noticed yet, so a few more are let in (D-09).
 */
static bool ring_has_room(struct kdapl_ring *ring, u32 wrs)
{
	u32 limit = ring->depth;
	u32 slots = ring->slots;

	if ((s32)(ring->last_sup - ring->cached_tail) >= 0)
		limit += ring->interval - 1;
	else
		ring->last_sup = ring->cached_tail - 1;	/* keep it near: indexes wrap */
	/* behind a marker, which is not the consumer's, nothing reaches the device */
	if (ring->mode == KDAPL_RING_SOFT)
		slots += KDAPL_MARKERS;
	return ring->dtos - ring->cached_done < limit &&
	       ring->head + wrs - ring->cached_tail <= slots;
}

static bool ring_make_room(struct kdapl_ring *ring, u32 wrs)
{
	if (likely(ring_has_room(ring, wrs)))
		return true;
	/* tail first: pairs with the release in ring_advance() */
	ring->cached_tail = smp_load_acquire(&ring->tail);
	ring->cached_done = READ_ONCE(ring->dtos_done);
	return ring_has_room(ring, wrs);
}

static bool recv_has_room(struct kdapl_ring *ring)
{
	if (likely(ring->head - ring->cached_tail < ring->depth))
		return true;
	/* pairs with the release in ring_advance() */
	ring->cached_tail = smp_load_acquire(&ring->tail);
	return ring->head - ring->cached_tail < ring->depth;
}

/* An entry that never reached the device is in the ring: who reports it? */
static void post_flush(struct kdapl_ring *ring)
{
	smp_mb();	/* head is stored before ended is read; pairs with ring_end() */
	if (READ_ONCE(ring->ended))
		kdapl_ring_ready(ring);
}

/*
 * The device refused a legal request. iWARP ones do so when the peer has just
 * disconnected: the CM may still say that nothing worse happened (D-08).
 */
static void post_refused(struct kdapl_half *half)
{
	kdapl_half_end(half, half->dev->iwarp ? KDAPL_END_SUSPECT : DAT_CONNECTION_EVENT_BROKEN);
}

static void wr_fill(struct kdapl_ring *ring, struct kdapl_wr *wr, const struct kdapl_post *post,
		    u8 flags, enum kdapl_wr_state state)
{
	wr->cookie = post->cookie.as_64;
	wr->length = post->length;
	wr->op = post->op;
	wr->flags = flags;
	wr->state = state;
}

/* Does this request get a completion of its own? ring->lock held. */
static bool request_signaled(struct kdapl_ring *ring, const struct kdapl_post *post)
{
	if (!(post->flags & DAT_COMPLETION_SUPPRESS_FLAG) ||
	    (ring->ooo && post->op == DAT_DTO_RDMA_READ) ||
	    ring->unsignaled + 1 >= ring->interval) {
		ring->unsignaled = 0;
		return true;
	}
	ring->unsignaled++;
	return false;
}

static enum ib_wr_opcode request_opcode(u8 op)
{
	switch (op) {
	case DAT_DTO_RDMA_WRITE:
		return IB_WR_RDMA_WRITE;
	case DAT_DTO_RDMA_READ:
		return IB_WR_RDMA_READ;
	default:
		return IB_WR_SEND;
	}
}

/*
 * What keeps later work from starting before earlier Reads are done, where the
 * device cannot fence a Read itself: an empty fenced Write before it (D-14).
 */
static void request_add_fence(struct kdapl_ring *ring, struct ib_rdma_wr *fence,
			      struct ib_send_wr *next)
{
	struct kdapl_wr *wr = &ring->wr[ring->head & ring->mask];

	wr->op = KDAPL_OP_FENCE;
	wr->flags = 0;
	wr->state = KDAPL_WR_NATIVE;
	wr->seq = ring->dtos;
	*fence = (struct ib_rdma_wr) {
		.wr = {
			.next = next,
			.wr_cqe = &wr->cqe,
			.opcode = IB_WR_RDMA_WRITE,
			.send_flags = IB_SEND_FENCE,
		},
	};
}

/* Requests up to this size may go through the broken copy; it takes less. */
#define SIW_SHORT	64

/*
 * Soft-iWARP copies a short request of one segment into the packet's header, and
 * counts wrong when the segment crosses a page: the peer gets bytes from beyond
 * the page. Two segments take another path. ring->lock held.
 */
static void siw_split_short(struct kdapl_ring *ring, struct ib_send_wr *wr)
{
	struct ib_sge one;
	u32 first;

	if (wr->num_sge != 1 || wr->opcode == IB_WR_RDMA_READ ||
	    wr->sg_list[0].length > SIW_SHORT)
		return;
	one = wr->sg_list[0];
	first = PAGE_SIZE - offset_in_page(one.addr);
	if (first >= one.length)
		return;
	ring->scratch[0] = one;
	ring->scratch[0].length = first;
	ring->scratch[1] = one;
	ring->scratch[1].addr += first;
	ring->scratch[1].length -= first;
	wr->sg_list = ring->scratch;
	wr->num_sge = 2;
}

/* Hand a request to the device; ring->lock held. */
static int request_post_native(struct kdapl_ring *ring, struct kdapl_post *post, bool fence_wr)
{
	struct ib_sge empty = {};
	struct ib_rdma_wr fence, wr = {};
	struct ib_send_wr *first = &wr.wr;
	struct kdapl_wr *ctx;
	u8 flags = post->flags;
	u32 pos = ring->head;
	int ret;

	if (unlikely(fence_wr)) {
		pos++;
		request_add_fence(ring, &fence, &wr.wr);
		first = &fence.wr;
	} else if (post->flags & DAT_COMPLETION_BARRIER_FENCE_FLAG) {
		wr.wr.send_flags |= IB_SEND_FENCE;
	}
	ctx = &ring->wr[pos & ring->mask];
	wr.wr.wr_cqe = &ctx->cqe;
	wr.wr.opcode = request_opcode(post->op);
	wr.wr.sg_list = post_sg_list(ring->scratch, post, post->length, &wr.wr.num_sge);
	if (unlikely(ring->half->dev->siw))
		siw_split_short(ring, &wr.wr);
	if (post->flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG)
		wr.wr.send_flags |= IB_SEND_SOLICITED;
	if (post->remote) {
		wr.remote_addr = post->remote->virtual_address;
		wr.rkey = post->remote->rmr_context;
	}
	if (post->op == DAT_DTO_RDMA_READ) {
		ring->reads++;
		if (unlikely(!wr.wr.num_sge && ring->half->dev->siw)) {
			/* a busy soft-iWARP answers an empty Read with old bytes */
			wr.wr.opcode = IB_WR_RDMA_WRITE;
		} else if (unlikely(!wr.wr.num_sge && ring->half->dev->iwarp)) {
			wr.wr.sg_list = &empty;	/* iWARP Reads have exactly one */
			wr.wr.num_sge = 1;
		}
	}
	if (post->flags & DAT_COMPLETION_SUPPRESS_FLAG)
		ring->last_sup = pos;
	if (request_signaled(ring, post)) {
		wr.wr.send_flags |= IB_SEND_SIGNALED;
		flags |= KDAPL_WR_SIGNALED;
	}
	wr_fill(ring, ctx, post, flags, KDAPL_WR_NATIVE);
	ctx->seq = ++ring->dtos;
	/* pairs with the acquire in ring_next() */
	smp_store_release(&ring->head, pos + 1);

	ret = ib_post_send(ring->half->qp, first, NULL);
	if (unlikely(ret)) {
		WRITE_ONCE(ctx->state, KDAPL_WR_SOFT);
		/* pairs with the acquire in ring_check_recv_end() */
		smp_store_release(&ring->mode, KDAPL_RING_SOFT);
	}
	return ret;
}

/* Put a request into the ring only, to be reported FLUSHED; ring->lock held. */
static void request_post_soft(struct kdapl_ring *ring, const struct kdapl_post *post)
{
	struct kdapl_wr *ctx = &ring->wr[ring->head & ring->mask];

	wr_fill(ring, ctx, post, post->flags, KDAPL_WR_SOFT);
	if (post->op == DAT_DTO_RDMA_READ)
		ring->reads++;
	ctx->seq = ++ring->dtos;
	/* pairs with the acquire in ring_next() */
	smp_store_release(&ring->head, ring->head + 1);
}

static DAT_RETURN request_post(struct kdapl_ep *ep, struct kdapl_half *half,
			       struct kdapl_post *post)
{
	struct kdapl_ring *ring = half->sq;
	bool fence_wr = half->dev->iwarp && post->op == DAT_DTO_RDMA_READ &&
			(post->flags & DAT_COMPLETION_BARRIER_FENCE_FLAG);
	DAT_RETURN ret = DAT_SUCCESS;
	bool swept = false, soft = false;
	unsigned long flags;
	int err = 0;

again:
	spin_lock_irqsave(&ring->lock, flags);
	if (unlikely(ring->mode == KDAPL_RING_REFUSE)) {
		ret = kdapl_state_err(READ_ONCE(ep->state));
	} else if (unlikely(!ring_make_room(ring, fence_wr ? 2 : 1) ||
			    (ring->max_reads && post->op == DAT_DTO_RDMA_READ &&
			     ring->mode == KDAPL_RING_LIVE &&
			     ring->reads - READ_ONCE(ring->reads_done) >= ring->max_reads))) {
		ret = kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP);
	} else if (likely(ring->mode == KDAPL_RING_LIVE)) {
		err = request_post_native(ring, post, fence_wr);
	} else {
		request_post_soft(ring, post);
		soft = true;
	}
	spin_unlock_irqrestore(&ring->lock, flags);

	if (unlikely(ret != DAT_SUCCESS && !swept &&
		     DAT_GET_TYPE(ret) == DAT_INSUFFICIENT_RESOURCES)) {
		kdapl_ring_sweep(ring);
		swept = true;
		ret = DAT_SUCCESS;
		goto again;
	}
	if (unlikely(soft))
		post_flush(ring);
	if (unlikely(err))
		post_refused(half);
	return ret;
}

/* Attributes of a half do not change; those of an EP may, while it has none. */
static const DAT_EP_ATTR *post_attr(struct kdapl_ep *ep, struct kdapl_half *half)
{
	return likely(half) ? &half->attr : &ep->conf.attr;
}

/* Checks (2) and (3) of GEN-10 that all requests share. */
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
	if (unlikely(post->flags & ~legal))
		return kdapl_arg_err(post->flags_arg);
	if (unlikely((post->flags & DAT_COMPLETION_UNSIGNALLED_FLAG) &&
		     attr->request_completion_flags != DAT_COMPLETION_UNSIGNALLED_FLAG))
		return kdapl_arg_err(post->flags_arg);
	if (unlikely(READ_ONCE(ep->obj.ia->dead)))
		return kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	return DAT_SUCCESS;
}

static DAT_RETURN __request_call(DAT_EP_HANDLE ep_handle, struct kdapl_post *post)
{
	DAT_COMPLETION_FLAGS legal = FLAGS_RDMA;
	DAT_MEM_PRIV_FLAGS need = DAT_MEM_PRIV_LOCAL_READ_FLAG;
	u64 remote_length = post->remote ? post->remote->segment_length : 0;
	const DAT_EP_ATTR *attr;
	struct kdapl_half *half;
	struct kdapl_ep *ep;
	DAT_COUNT max_iov;
	DAT_RETURN ret;
	u64 max_length;

	ep = kdapl_handle_peek(ep_handle, DAT_HANDLE_TYPE_EP);
	if (unlikely(!ep))
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	half = rcu_dereference(ep->half);
	attr = post_attr(ep, half);
	max_length = attr->max_rdma_size;
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
		need = DAT_MEM_PRIV_LOCAL_WRITE_FLAG;
		if (ep->obj.ia->dev->iwarp)
			need |= DAT_MEM_PRIV_REMOTE_WRITE_FLAG;	/* D-22 */
	}
	ret = request_check(ep, attr, post, max_iov, legal);
	if (unlikely(ret != DAT_SUCCESS))
		return ret;
	if (unlikely(!half || READ_ONCE(half->sq->mode) == KDAPL_RING_REFUSE))
		return kdapl_state_err(READ_ONCE(ep->state));
	if (unlikely(post->op == DAT_DTO_RDMA_READ &&
		     (!attr->max_rdma_read_out ||
		      (READ_ONCE(half->sq->mode) == KDAPL_RING_LIVE && !half->read_depth))))
		return kdapl_arg_err(1);
	ret = post_check_iov(ep->obj.ia, half->pd, post, need);
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
	if (unlikely(post->length > max_length))
		return kdapl_arg_err(3);
	return request_post(ep, half, post);
}

static DAT_RETURN request_call(DAT_EP_HANDLE ep_handle, struct kdapl_post *post)
{
	DAT_RETURN ret;

	rcu_read_lock();
	ret = __request_call(ep_handle, post);
	rcu_read_unlock();
	return ret;
}

/**
 * dat_ep_post_send - send a message
 * @ep_handle: EP in CONNECTED; in DISCONNECTED the Send is flushed at once
 * @num_segments: segments in @local_iov, 0 for an empty message
 * @local_iov: gathered in order; the array is the caller's again on return, the
 *	memory it names after the completion
 * @user_cookie: comes back with the completion
 * @completion_flags: SUPPRESS, SOLICITED_WAIT, BARRIER_FENCE; UNSIGNALLED if the
 *	EP is configured for it
 *
 * The completion comes on the request EVD, with operation DAT_DTO_SEND.
 *
 * Context: any; does not sleep or allocate.
 * Return: DAT_SUCCESS: the Send will complete; DAT_INVALID_HANDLE (EP);
 * DAT_INVALID_PARAMETER (count, NULL list, range outside its LMR, more bytes
 * than max_message_size, flags); DAT_INVALID_STATE;
 * DAT_PRIVILEGES_VIOLATION (no such LMR, or no local read right);
 * DAT_PROTECTION_VIOLATION (LMR of another PZ); DAT_INSUFFICIENT_RESOURCES
 * (max_request_dtos are outstanding); DAT_INTERNAL_ERROR (device removed).
 */
DAT_RETURN dat_ep_post_send(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
			    DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
			    DAT_COMPLETION_FLAGS completion_flags)
{
	struct kdapl_post post = {
		.iov = local_iov,
		.n = num_segments,
		.cookie = user_cookie,
		.flags = completion_flags,
		.op = DAT_DTO_SEND,
		.flags_arg = 5,
	};

	return request_call(ep_handle, &post);
}
EXPORT_SYMBOL(dat_ep_post_send);

/**
 * dat_ep_post_rdma_write - write into the peer's memory
 * @ep_handle: EP in CONNECTED; in DISCONNECTED the request is flushed at once
 * @num_segments: segments in @local_iov
 * @local_iov: gathered in order; the array is the caller's again on return, the
 *	memory it names after the completion
 * @user_cookie: comes back with the completion
 * @remote_iov: target; at least as long as the local data. Read during the call
 * @completion_flags: SUPPRESS, BARRIER_FENCE; UNSIGNALLED if the EP is
 *	configured for it
 *
 * The peer's consumer is not told. A Send posted later on the same EP arrives
 * after the data.
 *
 * Context: any; does not sleep or allocate.
 * Return: as dat_ep_post_send(), with max_rdma_size for the limit; and
 * DAT_LENGTH_ERROR (more local data than the remote buffer takes). What only
 * the peer can check (key, right, range) fails the completion instead.
 */
DAT_RETURN dat_ep_post_rdma_write(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
				  DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
				  const DAT_RMR_TRIPLET *remote_iov,
				  DAT_COMPLETION_FLAGS completion_flags)
{
	struct kdapl_post post = {
		.iov = local_iov,
		.n = num_segments,
		.cookie = user_cookie,
		.flags = completion_flags,
		.op = DAT_DTO_RDMA_WRITE,
		.flags_arg = 6,
		.remote = remote_iov,
	};

	return request_call(ep_handle, &post);
}
EXPORT_SYMBOL(dat_ep_post_rdma_write);

/**
 * dat_ep_post_rdma_read - read from the peer's memory
 * @ep_handle: EP in CONNECTED; in DISCONNECTED the request is flushed at once
 * @num_segments: segments in @local_iov, at most max_rdma_read_iov of the EP
 * @local_iov: filled in order; what is beyond the remote length stays untouched
 * @user_cookie: comes back with the completion
 * @remote_iov: source; its length is what is transferred. Read during the call
 * @completion_flags: SUPPRESS, BARRIER_FENCE; UNSIGNALLED if the EP is
 *	configured for it
 *
 * Where the provider attribute rdma_write_for_rdma_read_req is TRUE (iWARP) the
 * local LMRs need the remote write right as well.
 *
 * Context: any; does not sleep or allocate.
 * Return: as dat_ep_post_send(), with local write for the right needed;
 * DAT_LENGTH_ERROR (the local list is shorter than the remote buffer);
 * DAT_INVALID_PARAMETER also when the connection allows no Reads
 * (max_rdma_read_out here, max_rdma_read_in at the peer).
 */
DAT_RETURN dat_ep_post_rdma_read(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
				 DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
				 const DAT_RMR_TRIPLET *remote_iov,
				 DAT_COMPLETION_FLAGS completion_flags)
{
	struct kdapl_post post = {
		.iov = local_iov,
		.n = num_segments,
		.cookie = user_cookie,
		.flags = completion_flags,
		.op = DAT_DTO_RDMA_READ,
		.flags_arg = 6,
		.remote = remote_iov,
	};

	return request_call(ep_handle, &post);
}
EXPORT_SYMBOL(dat_ep_post_rdma_read);

static int recv_post_native(struct kdapl_ring *ring, const struct kdapl_post *post)
{
	struct kdapl_wr *ctx = &ring->wr[ring->head & ring->mask];
	struct ib_recv_wr wr = { .wr_cqe = &ctx->cqe };
	int ret;

	wr.sg_list = post_sg_list(ring->scratch, post, post->length, &wr.num_sge);
	wr_fill(ring, ctx, post, post->flags | KDAPL_WR_SIGNALED, KDAPL_WR_NATIVE);
	/* pairs with the acquire in ring_next() */
	smp_store_release(&ring->head, ring->head + 1);
	ring->native++;
	ret = ib_post_recv(ring->half->qp, &wr, NULL);
	if (unlikely(ret)) {
		ring->native--;
		WRITE_ONCE(ctx->state, KDAPL_WR_SOFT);
		/* pairs with the acquire in ring_check_recv_end() */
		smp_store_release(&ring->mode, KDAPL_RING_SOFT);
	}
	return ret;
}

/* False: the EP has another half by now. */
static bool recv_post(struct kdapl_half *half, struct kdapl_post *post, DAT_RETURN *ret)
{
	struct kdapl_ring *ring = half->rq;
	struct kdapl_wr *ctx;
	bool swept = false, room, soft = false;
	unsigned long flags;
	int err = 0;

	*ret = DAT_SUCCESS;
again:
	spin_lock_irqsave(&ring->lock, flags);
	room = recv_has_room(ring);
	if (unlikely(ring->mode == KDAPL_RING_MOVED)) {
		spin_unlock_irqrestore(&ring->lock, flags);
		return false;
	}
	if (unlikely(!room)) {
		err = 0;
	} else if (likely(ring->mode == KDAPL_RING_LIVE)) {
		err = recv_post_native(ring, post);
	} else {
		ctx = &ring->wr[ring->head & ring->mask];
		wr_fill(ring, ctx, post, post->flags, KDAPL_WR_SOFT);
		/* pairs with the acquire in ring_next() */
		smp_store_release(&ring->head, ring->head + 1);
		soft = true;
	}
	spin_unlock_irqrestore(&ring->lock, flags);

	if (unlikely(!room && !swept)) {
		kdapl_ring_sweep(ring);
		swept = true;
		goto again;
	}
	if (unlikely(!room))
		*ret = kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP);
	if (unlikely(soft))
		post_flush(ring);
	if (unlikely(err))
		post_refused(half);
	return true;
}

static DAT_RETURN __recv_call(DAT_EP_HANDLE ep_handle, struct kdapl_post *post)
{
	const DAT_EP_ATTR *attr;
	struct kdapl_half *half;
	struct kdapl_ep *ep;
	DAT_RETURN ret;

	ep = kdapl_handle_peek(ep_handle, DAT_HANDLE_TYPE_EP);
	if (unlikely(!ep))
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (unlikely(ep->srq))		/* RECV-17 */
		return kdapl_state_err(READ_ONCE(ep->state));
again:
	half = rcu_dereference(ep->half);
	attr = post_attr(ep, half);
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
	if (unlikely(!half))	/* no PZ yet (D-10), or being reset */
		return kdapl_err(DAT_PROTECTION_VIOLATION, DAT_PROTECTION_WRITE);
	post->length = 0;
	post->rewrite = false;
	ret = post_check_iov(ep->obj.ia, half->pd, post, DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
	if (unlikely(ret != DAT_SUCCESS))
		return ret;
	/* a half is marked and replaced under one lock: the next look finds the new one */
	if (unlikely(!recv_post(half, post, &ret)))
		goto again;
	return ret;
}

static DAT_RETURN recv_call(DAT_EP_HANDLE ep_handle, struct kdapl_post *post)
{
	DAT_RETURN ret;

	rcu_read_lock();
	ret = __recv_call(ep_handle, post);
	rcu_read_unlock();
	return ret;
}

/**
 * dat_ep_post_recv - provide memory for one incoming message
 * @ep_handle: EP in any state; in DISCONNECTED the Receive is flushed at once
 * @num_segments: segments in @local_iov, 0 for a message without data
 * @local_iov: filled in order; the array is the caller's again on return, the
 *	memory it names after the completion
 * @user_cookie: comes back with the completion
 * @completion_flags: UNSIGNALLED if the EP is configured for it
 *
 * The completion comes on the recv EVD, in the order of posting, with operation
 * DAT_DTO_RECEIVE and the length of the message.
 *
 * Context: any; does not sleep or allocate.
 * Return: DAT_SUCCESS: the Receive will complete; DAT_INVALID_HANDLE (EP);
 * DAT_INVALID_PARAMETER (count, NULL list, range outside its LMR, flags);
 * DAT_PRIVILEGES_VIOLATION (no such LMR, or no local write right);
 * DAT_PROTECTION_VIOLATION (LMR of another PZ, or EP without PZ);
 * DAT_INSUFFICIENT_RESOURCES (max_recv_dtos are outstanding);
 * DAT_INTERNAL_ERROR (device removed).
 */
DAT_RETURN dat_ep_post_recv(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
			    DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
			    DAT_COMPLETION_FLAGS completion_flags)
{
	struct kdapl_post post = {
		.iov = local_iov,
		.n = num_segments,
		.cookie = user_cookie,
		.flags = completion_flags,
		.op = DAT_DTO_RECEIVE,
	};

	return recv_call(ep_handle, &post);
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
	wr.sg_list = post_sg_list(pool->scratch, post, post->length, &wr.num_sge);
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
	DAT_RETURN ret;

	if (unlikely(!srq))
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	if (unlikely(post->n < 0 || post->n > srq->max_recv_iov))
		return kdapl_arg_err(2);
	if (unlikely(post->n && !post->iov))
		return kdapl_arg_err(3);
	if (unlikely(READ_ONCE(srq->obj.ia->dead)))
		return kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	ret = post_check_iov(srq->obj.ia, srq->pz->pd, post, DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
	if (unlikely(ret != DAT_SUCCESS))
		return ret;
	return srq_post(srq, post);
}

/**
 * dat_srq_post_recv - provide memory for one incoming message of any EP of an SRQ
 * @srq_handle: SRQ in any state
 * @num_segments: segments in @local_iov, 0 for a message without data
 * @local_iov: filled in order, of LMRs of the SRQ's PZ; the array is the
 *	caller's again on return, the memory it names after the completion
 * @user_cookie: comes back with the completion
 *
 * The completion comes on the recv EVD of the EP that took the buffer, with
 * that EP's handle. Completions of one EP come in the order of the peer's
 * Sends; buffers need not be taken in the order of posting. A buffer counts as
 * outstanding until the consumer has its event.
 *
 * In the SRQ state ERROR the buffer is accepted and stays outstanding until the
 * SRQ is freed.
 *
 * Context: any; does not sleep or allocate.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE (SRQ); DAT_INVALID_PARAMETER (count,
 * NULL list, range outside its LMR); DAT_PRIVILEGES_VIOLATION (no such LMR, or
 * no local write right); DAT_PROTECTION_VIOLATION (LMR of another PZ than the
 * SRQ's); DAT_INSUFFICIENT_RESOURCES (max_recv_dtos are outstanding, or the
 * device refuses); DAT_INTERNAL_ERROR (device removed).
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
