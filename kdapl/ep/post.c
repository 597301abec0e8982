// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Posting requests: Send, RDMA Write, RDMA Read. Receives are posted in post_recv.c, buffers of
 * an SRQ in post_srq.c, lists in post_list.c, operations on LMRs and RMRs in ep_fmr.c and
 * ep_bind.c.
 *
 * A post is one RCU read section, on the fast path one with preemption off: handle, connection
 * and LMRs are looked up without taking references. It does not allocate or sleep. It hands at
 * most one chain to the device, under the lock of its work queue, so that the entries are in the
 * order of the device's queue. The lock is not taken if the consumer has promised to serialise
 * its posts (D-78).
 *
 * Everything that can be checked here is checked before anything is posted: a request that the
 * provider refuses may hang, or cost a queue slot for ever (soft-iWARP). A post that has passed
 * the checks succeeds. If the provider refuses it all the same, the connection ends and the
 * request is reported FLUSHED (D-07).
 *
 * A DAT triplet has the layout of a struct ib_sge, so the consumer's list is handed on as it is
 * unless a segment is empty or the list must be shortened.
 *
 * Common posts take a fast path. It changes nothing until it knows that the post is good.
 * Anything unusual is left to the slow path (post_check.c, post_wr.c), which knows every rule and
 * every error (D-77).
 */
#include <linux/export.h>

#include "post.h"

static_assert(sizeof(DAT_LMR_TRIPLET) == sizeof(struct ib_sge));
static_assert(offsetof(DAT_LMR_TRIPLET, virtual_address) == offsetof(struct ib_sge, addr));
static_assert(offsetof(DAT_LMR_TRIPLET, segment_length) == offsetof(struct ib_sge, length));
static_assert(offsetof(DAT_LMR_TRIPLET, lmr_context) == offsetof(struct ib_sge, lkey));

/* The slow path, once the EP is found. RCU read side. */
static DAT_RETURN post_checked(struct kdapl_ep *ep, struct kdapl_post *post, enum kdapl_call call)
{
	struct kdapl_conn *conn = rcu_dereference(ep->conn);
	enum kdapl_verdict why;
	DAT_RETURN ret;

	why = kdapl_post_check(ep, conn, post) ?: kdapl_post_requests(conn, post, 1);
	if (likely(!why))
		return DAT_SUCCESS;
	ret = kdapl_post_ret(why, ep, call);
	trace_kdapl_post_refused(ep->obj.handle, post->op, post->cookie.as_64, ret);
	return ret;
}

/* The slow path. */
static DAT_RETURN post_one(DAT_EP_HANDLE ep_handle, struct kdapl_post *post, enum kdapl_call call)
{
	struct kdapl_ep *ep;
	DAT_RETURN ret;

	rcu_read_lock();
	ep = kdapl_handle_peek(ep_handle, DAT_HANDLE_TYPE_EP);
	ret = likely(ep) ? post_checked(ep, post, call) :
			   kdapl_post_no_ep(ep_handle, post->op, post->cookie);
	rcu_read_unlock();
	return ret;
}

static noinline DAT_RETURN post_slow(DAT_EP_HANDLE ep_handle, u8 op, const DAT_LMR_TRIPLET *iov,
				     DAT_COUNT n, const DAT_RMR_TRIPLET *remote,
				     DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags)
{
	struct kdapl_post post = {
		.iov = iov,
		.n = n,
		.cookie = cookie,
		.flags = flags,
		.op = op,
		.remote = remote,
	};

	return post_one(ep_handle, &post, op == DAT_DTO_SEND ? KDAPL_CALL_SEND : KDAPL_CALL_RDMA);
}

/* Does the fast path take a request of this length? An empty Read is left to the slow path. */
static __always_inline bool post_fast_length(const struct kdapl_wq *wq, u8 op, u64 length,
					     const DAT_RMR_TRIPLET *remote)
{
	switch (op) {
	case DAT_DTO_SEND:
		return length <= wq->max_message;
	case DAT_DTO_RDMA_WRITE:
		return length <= wq->max_rdma && length <= remote->segment_length;
	default:
		return length && length <= wq->max_rdma &&
		       length == remote->segment_length;
	}
}

/* Put a request into the work queue and hand it to the device. The caller has checked the room. */
static __always_inline enum kdapl_fast post_fast_hand_over(struct kdapl_wq *wq, u8 op,
							   const DAT_LMR_TRIPLET *iov, DAT_COUNT n,
							   const DAT_RMR_TRIPLET *remote,
							   u64 cookie, u8 flags, u32 length)
{
	u32 pos = wq->head;
	struct kdapl_wqe *wqe = &wq->wqe[pos & wq->mask];
	bool signaled = kdapl_wq_signals(wq, flags, pos);
	int send_flags, ret;

	OPTIMIZER_HIDE_VAR(wqe);	/* or gcc computes the address for each member */
	kdapl_dto_fill(wq, wqe, op, cookie, flags, length, signaled);
	send_flags = kdapl_dto_send_flags(op, flags, signaled, IB_SEND_FENCE);
	/* pairs with the acquire in kdapl_wq_next() */
	smp_store_release(&wq->head, pos + 1);
	/* initialised by one expression each: otherwise INIT_STACK_ALL_ZERO clears it first */
	if (op == DAT_DTO_SEND) {
		struct ib_send_wr wr = kdapl_dto_send_wr(wqe, IB_WR_SEND, (struct ib_sge *)iov, n,
							 send_flags, 0);

		ret = ib_post_send(wq->qp, &wr, NULL);
	} else {
		struct ib_rdma_wr wr = kdapl_dto_wr(wqe, kdapl_dto_opcode(op),
						    (struct ib_sge *)iov, n, remote,
						    send_flags, 0);

		ret = ib_post_send(wq->qp, &wr.wr, NULL);
	}
	if (likely(!ret))
		return KDAPL_FAST_DONE;
	WRITE_ONCE(wqe->state, KDAPL_WQE_UNPOSTED);
	return KDAPL_FAST_REFUSED;
}

/* Hand over a request if there is room. wq->lock held, unless @serial. */
static __always_inline enum kdapl_fast post_fast_put(struct kdapl_wq *wq, u8 op,
						     const DAT_LMR_TRIPLET *iov, DAT_COUNT n,
						     const DAT_RMR_TRIPLET *remote, u64 cookie,
						     u8 flags, u32 length, bool quirky,
						     bool serial)
{
	/* in other modes there is no room; a serialised post must look, as it holds no lock */
	if (serial && unlikely(READ_ONCE(wq->mode) != KDAPL_WQ_LIVE))
		return KDAPL_FAST_SLOW;
	if (quirky && unlikely(!kdapl_wq_has_reads(wq, op == DAT_DTO_RDMA_READ)))
		return KDAPL_FAST_SLOW;
	if (unlikely(!wq->room) && !kdapl_wq_count_room(wq))
		return KDAPL_FAST_SLOW;
	wq->room--;
	return post_fast_hand_over(wq, op, iov, n, remote, cookie, flags, length);
}

/* The device has refused a request: nothing more goes to it. wq->lock held. */
static void post_stop(struct kdapl_wq *wq)
{
	/* serialised posts take no lock: the connection may have ended and set another mode */
	if (wq->mode == KDAPL_WQ_LIVE)
		/* pairs with the acquire in kdapl_wq_check_recv_end() */
		smp_store_release(&wq->mode, KDAPL_WQ_FLUSHING);
	wq->room = 0;
}

static noinline void post_stop_serial(struct kdapl_wq *wq)
{
	unsigned long irq;

	spin_lock_irqsave(&wq->lock, irq);
	post_stop(wq);
	spin_unlock_irqrestore(&wq->lock, irq);
}

/* Does a quirky device need this request in another form, or with a completion? */
static __always_inline bool post_quirky_needs_slow(const struct kdapl_wq *wq, u8 op,
						   const DAT_LMR_TRIPLET *iov, DAT_COUNT n,
						   DAT_COMPLETION_FLAGS flags, u64 length)
{
	if (n == 1 && op != DAT_DTO_RDMA_READ &&
	    unlikely(kdapl_dto_is_short(iov->virtual_address, length)))
		return true;
	return unlikely(flags & DAT_COMPLETION_SUPPRESS_FLAG) &&
	       kdapl_dto_must_signal(wq, op, length);
}

/*
 * Check the memory and post. @quirky, a constant: the device has limits of its own, see
 * kdapl_caps_post_quirks().
 */
static __always_inline enum kdapl_fast post_fast_request(struct kdapl_wq *wq, u8 op,
							 const DAT_LMR_TRIPLET *iov, DAT_COUNT n,
							 const DAT_RMR_TRIPLET *remote,
							 u64 cookie, DAT_COMPLETION_FLAGS flags,
							 bool quirky)
{
	u32 need = KDAPL_PRIV_SOURCE;
	enum kdapl_fast result;
	unsigned long irq;
	u64 length;

	if (op == DAT_DTO_RDMA_READ)
		need = wq->sink;
	if (!kdapl_fast_check_iov(wq->ia, wq->domain, iov, n, need, &length) ||
	    unlikely(!post_fast_length(wq, op, length, remote)))
		return KDAPL_FAST_SLOW;
	if (quirky && post_quirky_needs_slow(wq, op, iov, n, flags, length))
		return KDAPL_FAST_SLOW;
	if (!quirky && wq->serial) {
		result = post_fast_put(wq, op, iov, n, remote, cookie, flags, length, false,
				       true);
		if (unlikely(result == KDAPL_FAST_REFUSED))
			post_stop_serial(wq);
	} else {
		spin_lock_irqsave(&wq->lock, irq);
		result = post_fast_put(wq, op, iov, n, remote, cookie, flags, length, quirky,
				       false);
		if (unlikely(result == KDAPL_FAST_REFUSED))
			post_stop(wq);
		spin_unlock_irqrestore(&wq->lock, irq);
	}
	if (unlikely(result == KDAPL_FAST_REFUSED))
		kdapl_post_refused(wq->conn);
	return result;
}

/* Post a request by the fast path of a quirky device. Inside kdapl_fast_begin(). */
static __always_inline enum kdapl_fast post_quirky(struct kdapl_wq *wq, u8 op,
						   const DAT_LMR_TRIPLET *iov, DAT_COUNT n,
						   const DAT_RMR_TRIPLET *remote, u64 cookie,
						   DAT_COMPLETION_FLAGS flags)
{
	/* pairs with the barrier in conn_set_fast_limits() */
	if ((u32)n - 1 >= smp_load_acquire(&wq->quirky_iov[op]) || !iov ||
	    (flags & wq->not_flags[op]) || (op != DAT_DTO_SEND && !remote))
		return KDAPL_FAST_SLOW;
	return post_fast_request(wq, op, iov, n, remote, cookie, flags, true);
}

/* These are out of line to keep the posting calls short for other devices. */
static noinline enum kdapl_fast post_quirky_send(struct kdapl_wq *wq,
						 const DAT_LMR_TRIPLET *iov, DAT_COUNT n,
						 u64 cookie, DAT_COMPLETION_FLAGS flags)
{
	return post_quirky(wq, DAT_DTO_SEND, iov, n, NULL, cookie, flags);
}

static noinline enum kdapl_fast post_quirky_write(struct kdapl_wq *wq,
						  const DAT_LMR_TRIPLET *iov, DAT_COUNT n,
						  const DAT_RMR_TRIPLET *remote, u64 cookie,
						  DAT_COMPLETION_FLAGS flags)
{
	return post_quirky(wq, DAT_DTO_RDMA_WRITE, iov, n, remote, cookie, flags);
}

static noinline enum kdapl_fast post_quirky_read(struct kdapl_wq *wq,
						 const DAT_LMR_TRIPLET *iov, DAT_COUNT n,
						 const DAT_RMR_TRIPLET *remote, u64 cookie,
						 DAT_COMPLETION_FLAGS flags)
{
	return post_quirky(wq, DAT_DTO_RDMA_READ, iov, n, remote, cookie, flags);
}

/* Post it, or leave it to the slow path. Inside kdapl_fast_begin(). */
static __always_inline enum kdapl_fast post_fast(struct kdapl_ep *ep, u8 op,
						 const DAT_LMR_TRIPLET *iov, DAT_COUNT n,
						 const DAT_RMR_TRIPLET *remote, u64 cookie,
						 DAT_COMPLETION_FLAGS flags)
{
	struct kdapl_conn *conn = rcu_dereference_check(ep->conn, rcu_read_lock_sched_held());
	struct kdapl_wq *wq;

	if (unlikely(!conn) || trace_kdapl_post_enabled())
		return KDAPL_FAST_SLOW;
	wq = conn->sq;
	/*
	 * max_iov[] is 0 on a device with quirks and before ESTABLISHED, so such posts go on below.
	 * Pairs with the barrier in conn_set_fast_limits().
	 */
	if (unlikely((u32)n - 1 >= smp_load_acquire(&wq->max_iov[op]) ||
		     (flags & wq->not_flags[op]) || !iov ||
		     (op != DAT_DTO_SEND && !remote))) {
		if (n && op == DAT_DTO_SEND)
			return post_quirky_send(wq, iov, n, cookie, flags);
		if (n && op == DAT_DTO_RDMA_WRITE)
			return post_quirky_write(wq, iov, n, remote, cookie, flags);
		if (n)
			return post_quirky_read(wq, iov, n, remote, cookie, flags);
		if ((flags & wq->not_flags[op]) || (op != DAT_DTO_SEND && !remote))
			return KDAPL_FAST_SLOW;
		/* the quirks concern segments, and an empty request has none (D-96) */
		iov = NULL;
	}
	return post_fast_request(wq, op, iov, n, remote, cookie, flags, false);
}

static __always_inline DAT_RETURN post_call(DAT_EP_HANDLE ep_handle, u8 op,
					    const DAT_LMR_TRIPLET *iov, DAT_COUNT n,
					    const DAT_RMR_TRIPLET *remote, DAT_DTO_COOKIE cookie,
					    DAT_COMPLETION_FLAGS flags)
{
	struct kdapl_ep *ep;

	if (unlikely(!kdapl_handle_is(ep_handle, DAT_HANDLE_TYPE_EP)))
		return kdapl_post_no_ep(ep_handle, op, cookie);
	kdapl_fast_begin();
	ep = kdapl_handle_peek(ep_handle, DAT_HANDLE_TYPE_EP);
	if (unlikely(!ep)) {
		kdapl_fast_end();
		return kdapl_post_no_ep(ep_handle, op, cookie);
	}
	if (likely(post_fast(ep, op, iov, n, remote, cookie.as_64, flags) != KDAPL_FAST_SLOW)) {
		kdapl_fast_end();
		return DAT_SUCCESS;
	}
	kdapl_fast_end();
	return post_slow(ep_handle, op, iov, n, remote, cookie, flags);
}

/**
 * dat_ep_post_send - send a message
 * @ep_handle: EP in CONNECTED; in DISCONNECTED the Send is flushed at once
 * @num_segments: segments in @local_iov, 0 for an empty message
 * @local_iov: data, gathered in order; NULL for an empty message. The array may be reused on
 *	return, the memory after the completion
 * @user_cookie: returned with the completion; any value, need not be unique
 * @completion_flags: SUPPRESS, SOLICITED_WAIT, BARRIER_FENCE; UNSIGNALLED if the
 *	EP is configured for it
 *
 * The message consumes one Receive of the peer, which must be at least as long. The
 * completion comes on the request EVD, with operation DAT_DTO_SEND and the number of bytes
 * sent. Requests start, and are reported, in the order of posting. A suppressed Send that
 * succeeds has no event: its memory may be reused after the next completion of this queue.
 *
 * Segments need no alignment. The fastest is optimal_buffer_alignment of the provider
 * attributes, which is at most DAT_OPTIMAL_ALIGNMENT.
 *
 * Context: any; does not sleep or allocate.
 * Return: DAT_SUCCESS (the Send will complete); DAT_INVALID_HANDLE (EP);
 * DAT_INVALID_PARAMETER (count, NULL list, range outside its LMR, more bytes
 * than max_message_size, flags); DAT_INVALID_STATE (subtype that of the EP:
 * neither CONNECTED nor DISCONNECTED); DAT_PRIVILEGES_VIOLATION (no such LMR, or
 * no local read right); DAT_PROTECTION_VIOLATION (LMR of another PZ);
 * DAT_INSUFFICIENT_RESOURCES (max_request_dtos are outstanding, or the EVD
 * is full of completions that have not been dequeued); DAT_INTERNAL_ERROR (device removed).
 */
DAT_RETURN dat_ep_post_send(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
			    const DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
			    DAT_COMPLETION_FLAGS completion_flags)
{
	return post_call(ep_handle, DAT_DTO_SEND, local_iov, num_segments, NULL, user_cookie,
			 completion_flags);
}
EXPORT_SYMBOL(dat_ep_post_send);

/**
 * dat_ep_post_rdma_write - write into the peer's memory
 * @ep_handle: EP in CONNECTED; in DISCONNECTED the request is flushed at once
 * @num_segments: segments in @local_iov
 * @local_iov: data, gathered in order. The array may be reused on return, the memory after
 *	the completion
 * @user_cookie: returned with the completion; any value, need not be unique
 * @remote_iov: target, at least as long as the local data; read during the call
 * @completion_flags: SUPPRESS, BARRIER_FENCE; UNSIGNALLED if the EP is
 *	configured for it
 *
 * The completion comes on the request EVD, with operation DAT_DTO_RDMA_WRITE. On iWARP it
 * means that the data has been sent, not that it has arrived. The peer's consumer gets no
 * event. A Send posted later on the same EP arrives after the data. A suppressed Write that
 * succeeds has no event: its memory may be reused after the next completion of this queue.
 *
 * Segments need no alignment. The fastest is optimal_buffer_alignment of the provider
 * attributes, which is at most DAT_OPTIMAL_ALIGNMENT.
 *
 * Context: any; does not sleep or allocate.
 * Return: DAT_SUCCESS (the Write will complete); DAT_INVALID_HANDLE (EP);
 * DAT_INVALID_PARAMETER (count, NULL @local_iov or @remote_iov, range outside
 * its LMR, more bytes than max_rdma_size, flags); DAT_INVALID_STATE (subtype
 * that of the EP: neither CONNECTED nor DISCONNECTED); DAT_PRIVILEGES_VIOLATION
 * (no such LMR, or no local read right); DAT_PROTECTION_VIOLATION (LMR of
 * another PZ); DAT_LENGTH_ERROR (more local data than @remote_iov takes);
 * DAT_INSUFFICIENT_RESOURCES (max_request_dtos are outstanding, or the EVD
 * is full of completions that have not been dequeued); DAT_MODEL_NOT_SUPPORTED (BARRIER_FENCE on a
 * device that cannot fence a Write); DAT_INTERNAL_ERROR (device removed). Errors
 * that only the peer can find (its key, range, rights, PZ) fail the completion instead.
 */
DAT_RETURN dat_ep_post_rdma_write(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
				  const DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
				  const DAT_RMR_TRIPLET *remote_iov,
				  DAT_COMPLETION_FLAGS completion_flags)
{
	return post_call(ep_handle, DAT_DTO_RDMA_WRITE, local_iov, num_segments, remote_iov,
			 user_cookie, completion_flags);
}
EXPORT_SYMBOL(dat_ep_post_rdma_write);

/**
 * dat_ep_post_rdma_read - read from the peer's memory
 * @ep_handle: EP in CONNECTED; in DISCONNECTED the request is flushed at once
 * @num_segments: segments in @local_iov, at most max_rdma_read_iov of the EP
 * @local_iov: filled in order; memory beyond the remote length stays untouched
 * @user_cookie: returned with the completion; any value, need not be unique
 * @remote_iov: source; its length is the length of the transfer. Read during the call
 * @completion_flags: SUPPRESS, BARRIER_FENCE; UNSIGNALLED if the EP is
 *	configured for it
 *
 * The completion comes on the request EVD, with operation DAT_DTO_RDMA_READ. The peer's
 * consumer gets no event. Reads beyond the read depth of the connection wait in the queue
 * (soft-iWARP refuses them). Requests posted later may start before the data has arrived;
 * DAT_COMPLETION_BARRIER_FENCE_FLAG makes a request wait.
 *
 * If the provider attribute rdma_write_for_rdma_read_req is TRUE (iWARP), the local LMRs need
 * the remote write right as well. The contents of @local_iov are undefined before the
 * completion, and after one that is not DAT_DTO_SUCCESS.
 *
 * Segments need no alignment. The fastest is optimal_buffer_alignment of the provider
 * attributes, which is at most DAT_OPTIMAL_ALIGNMENT.
 *
 * Context: any; does not sleep or allocate.
 * Return: DAT_SUCCESS (the Read will complete); DAT_INVALID_HANDLE (EP);
 * DAT_INVALID_PARAMETER (count, NULL @local_iov or @remote_iov, range outside
 * its LMR, more bytes than max_rdma_size, flags; ARG1: the connection allows no
 * Reads, since max_rdma_read_out here or max_rdma_read_in at the peer is 0);
 * DAT_INVALID_STATE (subtype that of the EP: neither CONNECTED nor
 * DISCONNECTED); DAT_PRIVILEGES_VIOLATION (no such LMR, or no local write right;
 * on iWARP, no remote write right); DAT_PROTECTION_VIOLATION (LMR of another
 * PZ); DAT_LENGTH_ERROR (@local_iov takes less than the length of @remote_iov);
 * DAT_INSUFFICIENT_RESOURCES (max_request_dtos are outstanding; the EVD is full of
 * completions that have not been dequeued; on soft-iWARP, the read depth is used up);
 * DAT_MODEL_NOT_SUPPORTED (BARRIER_FENCE on a device that cannot fence a Read);
 * DAT_INTERNAL_ERROR (device removed). Errors that only the peer can
 * find (its key, range, rights, PZ) fail the completion instead.
 */
DAT_RETURN dat_ep_post_rdma_read(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
				 const DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
				 const DAT_RMR_TRIPLET *remote_iov,
				 DAT_COMPLETION_FLAGS completion_flags)
{
	return post_call(ep_handle, DAT_DTO_RDMA_READ, local_iov, num_segments, remote_iov,
			 user_cookie, completion_flags);
}
EXPORT_SYMBOL(dat_ep_post_rdma_read);

/**
 * dat_ep_post_send_with_invalidate - send a message that invalidates a key of the peer
 * @ep_handle: EP in CONNECTED; in DISCONNECTED the Send is flushed at once
 * @num_segments: segments in @local_iov, 0 for an empty message
 * @local_iov: as for dat_ep_post_send()
 * @user_cookie: comes back with the completion
 * @completion_flags: as for dat_ep_post_send()
 * @invalidate_flag: DAT_FALSE makes it a plain Send
 * @rmr_context: key that the peer has handed out
 *
 * When the peer's Receive is reported, as DAT_DTO_RECEIVE_WITH_INVALIDATE, the key is invalid
 * and the peer's LMR or RMR unbound. A key the peer does not have ends the connection. The
 * completion here is that of a Send.
 *
 * Context: any; does not sleep or allocate.
 * Return: as dat_ep_post_send().
 */
DAT_RETURN dat_ep_post_send_with_invalidate(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
					    const DAT_LMR_TRIPLET *local_iov,
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
		.invalidate = invalidate_flag,
		.inv_key = rmr_context,
	};

	return post_one(ep_handle, &post, KDAPL_CALL_SEND);
}
EXPORT_SYMBOL(dat_ep_post_send_with_invalidate);

/**
 * kdat_ep_post_rdma_write_immed - write into the peer's memory, and notify the peer
 * @ep_handle: EP in CONNECTED; in DISCONNECTED the request is flushed at once
 * @num_segments: segments in @local_iov, 0 for a Write of no bytes
 * @local_iov: as for dat_ep_post_rdma_write()
 * @user_cookie: returned with the completion
 * @remote_iov: target, at least as long as the local data; read during the call
 * @completion_flags: SUPPRESS, SOLICITED_WAIT, BARRIER_FENCE; UNSIGNALLED if the EP is
 *	configured for it
 * @immed: a number for the peer, which gets the same value whatever its byte order
 *
 * The Write also consumes one Receive of the peer, from its SRQ if it has one. The Receive may
 * have any length, 0 included, and nothing is written to its memory. It completes when the data
 * is in place, in order with the Sends and the other such Writes of the connection, as
 * DAT_DTO_RECEIVE with transfered_length 0. kdat_event_immed() finds @immed and the length of
 * the Write in the event; a peer that does not look takes it for an empty Send. If the peer has
 * no Receive posted, the Write waits for one, as a Send does.
 *
 * The completion here is that of a Write, with operation DAT_DTO_RDMA_WRITE.
 *
 * InfiniBand and RoCE only: provider_specific_attr of dat_ia_query() has an attribute
 * KDAT_ATTR_IMMED_DATA, which tells. If a peer that does not use kDAPL sends Writes with
 * immediate data, they are reported in the same way, without being asked for. So are those that
 * some iWARP adapters can receive.
 *
 * An extension of this provider, after dat_ib_post_rdma_write_immed() of the reference
 * provider's InfiniBand extension.
 *
 * Context: any; does not sleep or allocate.
 * Return: as dat_ep_post_rdma_write(); DAT_MODEL_NOT_SUPPORTED (also: an iWARP device).
 */
DAT_RETURN kdat_ep_post_rdma_write_immed(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
					 const DAT_LMR_TRIPLET *local_iov,
					 DAT_DTO_COOKIE user_cookie,
					 const DAT_RMR_TRIPLET *remote_iov,
					 DAT_COMPLETION_FLAGS completion_flags, DAT_UINT32 immed)
{
	struct kdapl_post post = {
		.iov = local_iov,
		.n = num_segments,
		.cookie = user_cookie,
		.flags = completion_flags,
		.op = DAT_DTO_RDMA_WRITE,
		.remote = remote_iov,
		.with_immed = true,
		.immed = immed,
	};

	return post_one(ep_handle, &post, KDAPL_CALL_RDMA);
}
EXPORT_SYMBOL(kdat_ep_post_rdma_write_immed);

/*
 * Check the sink as an RDMA Write of a peer would be checked (key, right, PZ, range), and make a
 * segment of it.
 */
static enum kdapl_verdict post_sink(struct kdapl_conn *conn, const DAT_RMR_TRIPLET *sink,
				    DAT_LMR_TRIPLET *seg)
{
	const struct kdapl_wq *wq = conn->sq;
	struct kdapl_range range;

	if (!kdapl_rkey_find(wq->ia, sink->rmr_context, &range))
		return KDAPL_REFUSE_WRITE;
	if (!(range.priv & DAT_MEM_PRIV_REMOTE_WRITE_FLAG))
		return KDAPL_REFUSE_RDMA_WRITE;
	if (range.domain != wq->domain[0] && range.domain != wq->domain[1])
		return KDAPL_REFUSE_PZ_WRITE;
	if (sink->segment_length > range.length ||
	    sink->virtual_address - range.start > range.length - sink->segment_length)
		return KDAPL_REFUSE_MEMORY;
	seg->virtual_address = sink->virtual_address;
	seg->segment_length = sink->segment_length;
	seg->lmr_context = sink->rmr_context;	/* lkey and rkey of an MR are the same (mr.c) */
	return KDAPL_ACCEPTED;
}

/*
 * Mark the sink @seg for DMA sync. If its key is an RMR's, @behind gets the same memory by the key
 * of the LMR.
 */
static void post_sink_sync(struct kdapl_ia *ia, struct kdapl_post *post,
			   const DAT_LMR_TRIPLET *seg, DAT_LMR_TRIPLET *behind)
{
	struct kdapl_mr *mr = kdapl_mr_find(ia, seg->lmr_context);

	post->sync = true;
	if (mr && mr->owner->type == DAT_HANDLE_TYPE_RMR &&
	    kdapl_rmr_behind(container_of(mr->owner, struct kdapl_rmr, obj), seg, behind))
		post->behind = behind;
}

static enum kdapl_verdict post_read_to_rmr(struct kdapl_ep *ep, struct kdapl_conn *conn,
					   const DAT_RMR_TRIPLET *sink, struct kdapl_post *post)
{
	DAT_LMR_TRIPLET seg = {}, behind;
	enum kdapl_verdict why;

	if (!sink)
		return KDAPL_REFUSE_MEMORY;
	if (!post->remote)
		return KDAPL_REFUSE_REMOTE;
	why = kdapl_post_check_state(ep, conn, post, KDAPL_FLAGS_RDMA);
	if (why)
		return why;
	if (!kdapl_conn_allows_reads(conn))
		return kdapl_post_no_reads(conn);
	if (sink->segment_length) {
		why = post_sink(conn, sink, &seg);
		if (why)
			return why;
	}
	if (post->remote->segment_length > sink->segment_length)
		return KDAPL_REFUSE_LENGTH;
	if (post->remote->segment_length > conn->attr.max_rdma_size)
		return KDAPL_REFUSE_REMOTE;
	post->length = post->remote->segment_length;
	seg.segment_length = post->length;
	if (unlikely(conn->dev->dma != KDAPL_DMA_SAME) && post->length)
		post_sink_sync(ep->obj.ia, post, &seg, &behind);
	post->iov = post->length ? &seg : NULL;
	post->n = !!post->length;
	return kdapl_post_requests(conn, post, 1);
}

/**
 * dat_ep_post_rdma_read_to_rmr - read from the peer's memory into an RMR
 * @ep_handle: EP in CONNECTED; in DISCONNECTED the request is flushed at once
 * @local_iov: target, named by an rmr_context of this side that has the remote write right, of
 *	an RMR or an LMR
 * @user_cookie: comes back with the completion
 * @remote_iov: source; its length is the length of the transfer
 * @completion_flags: SUPPRESS, BARRIER_FENCE; UNSIGNALLED if the EP is
 *	configured for it
 *
 * Otherwise as dat_ep_post_rdma_read(). On iWARP the peer sees the key, as it does with that
 * call.
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
		.remote = remote_iov,
	};
	enum kdapl_verdict why = KDAPL_REFUSE_NO_EP;
	struct kdapl_ep *ep;
	DAT_RETURN ret;

	rcu_read_lock();
	ep = kdapl_handle_peek(ep_handle, DAT_HANDLE_TYPE_EP);
	if (likely(ep))
		why = post_read_to_rmr(ep, rcu_dereference(ep->conn), local_iov, &post);
	ret = kdapl_post_ret(why, ep, KDAPL_CALL_READ_TO_RMR);
	rcu_read_unlock();
	if (unlikely(why))
		trace_kdapl_post_refused(ep_handle, post.op, user_cookie.as_64, ret);
	return ret;
}
EXPORT_SYMBOL(dat_ep_post_rdma_read_to_rmr);
