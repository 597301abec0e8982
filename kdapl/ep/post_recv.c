// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Posting Receives: as post.c does it for requests, with a fast path and a slow one.
 *
 * Receives may be posted in every state of an EP, so a post may meet the moment when the EP
 * gets another connection.
 */
#include <linux/export.h>

#include "post.h"

#define FLAGS_RECV	DAT_COMPLETION_UNSIGNALLED_FLAG

/* wq->lock held. */
static bool recv_has_room(struct kdapl_wq *wq)
{
	if (likely(wq->head - wq->cached_tail < wq->depth))
		return true;
	/* pairs with the release in kdapl_wq_advance() */
	wq->cached_tail = smp_load_acquire(&wq->tail);
	return wq->head - wq->cached_tail < wq->depth;
}

/* Put a Receive into work queue and device. There is room; wq->lock held. */
static __always_inline int recv_put(struct kdapl_wq *wq, struct ib_sge *sgl, int num_sge,
				    u64 cookie, u8 flags, u32 length)
{
	struct kdapl_wqe *wqe = &wq->wqe[wq->head & wq->mask];
	struct ib_recv_wr wr = { .wr_cqe = &wqe->cqe, .sg_list = sgl, .num_sge = num_sge };
	int ret;

	kdapl_wqe_fill(wqe, DAT_DTO_RECEIVE, cookie, length, flags | KDAPL_WQE_SIGNALED,
		       KDAPL_WQE_POSTED);
	/* pairs with the acquire in kdapl_wq_next() */
	smp_store_release(&wq->head, wq->head + 1);
	wq->posted++;
	ret = ib_post_recv(wq->qp, &wr, NULL);
	if (unlikely(ret)) {
		wq->posted--;
		WRITE_ONCE(wqe->state, KDAPL_WQE_UNPOSTED);
		/* pairs with the acquire in kdapl_wq_check_recv_end() */
		smp_store_release(&wq->mode, KDAPL_WQ_FLUSHING);
	}
	return ret;
}

static int recv_put_slow(struct kdapl_wq *wq, const struct kdapl_post *post)
{
	struct ib_sge *sgl;
	int num_sge;

	if (unlikely(post->sync))
		kdapl_sinks_keep(wq->sinks, wq->head & wq->mask, post->iov, post->n,
				 post->length);
	sgl = kdapl_post_sg_list(wq->scratch, post, wq->conn->pd, post->length, &num_sge);
	trace_kdapl_post(wq->conn->handle, post->op, post->cookie.as_64, post->length,
			 post->flags, false);
	return recv_put(wq, sgl, num_sge, post->cookie.as_64, post->flags, post->length);
}

/* Put a Receive into the work queue only, to be reported FLUSHED. wq->lock held. */
static void recv_put_unposted(struct kdapl_wq *wq, struct kdapl_post *post)
{
	kdapl_wqe_fill_unposted(wq, &wq->wqe[wq->head & wq->mask], post);
	post->unposted = true;
	/* pairs with the acquire in kdapl_wq_next() */
	smp_store_release(&wq->head, wq->head + 1);
}

/* False: the EP has another connection by now. */
static bool recv_post(struct kdapl_conn *conn, struct kdapl_post *post, enum kdapl_verdict *why)
{
	struct kdapl_wq *wq = conn->rq;
	bool polled = false, room;
	unsigned long flags;
	int err = 0;

again:
	spin_lock_irqsave(&wq->lock, flags);
	room = recv_has_room(wq);
	if (unlikely(wq->mode == KDAPL_WQ_MOVED)) {
		spin_unlock_irqrestore(&wq->lock, flags);
		return false;
	}
	if (likely(room)) {
		if (likely(wq->mode == KDAPL_WQ_LIVE))
			err = recv_put_slow(wq, post);
		else
			recv_put_unposted(wq, post);
	}
	spin_unlock_irqrestore(&wq->lock, flags);

	if (unlikely(!room && !polled)) {
		kdapl_wq_poll_cq(wq);
		polled = true;
		goto again;
	}
	*why = room ? KDAPL_ACCEPTED : KDAPL_REFUSE_QUEUE_FULL;
	if (unlikely(post->unposted))
		kdapl_post_flush(wq);
	if (unlikely(err))
		kdapl_post_refused(conn);
	return true;
}

static enum kdapl_verdict recv_check(struct kdapl_ep *ep, struct kdapl_conn *conn,
				     struct kdapl_post *post)
{
	const DAT_EP_ATTR *attr = kdapl_post_attr(ep, conn);

	if (unlikely(post->n < 0 || post->n > attr->max_recv_iov))
		return KDAPL_REFUSE_COUNT;
	if (unlikely(post->n && !post->iov))
		return KDAPL_REFUSE_MEMORY;
	if (unlikely(post->flags & ~FLAGS_RECV))
		return KDAPL_REFUSE_FLAGS;
	if (unlikely(post->flags &&
		     attr->recv_completion_flags != DAT_COMPLETION_UNSIGNALLED_FLAG))
		return KDAPL_REFUSE_FLAGS;
	if (unlikely(READ_ONCE(ep->obj.ia->dead)))
		return KDAPL_REFUSE_NO_DEVICE;
	if (unlikely(!conn))	/* no PZ yet (D-10), or being reset */
		return KDAPL_REFUSE_PZ_WRITE;
	post->length = 0;
	post->rewrite = false;
	return kdapl_post_check_iov(ep->obj.ia, conn->rq->domain, post,
				    DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
}

static enum kdapl_verdict recv_checked(struct kdapl_ep *ep, struct kdapl_post *post)
{
	enum kdapl_verdict why;
	struct kdapl_conn *conn;

	if (unlikely(ep->srq))		/* its Receives come from the SRQ (RECV-17) */
		return KDAPL_REFUSE_STATE;
	/* a connection is marked and replaced under one lock: the next look finds the new one */
	do {
		conn = rcu_dereference(ep->conn);
		why = recv_check(ep, conn, post);
		if (unlikely(why))
			return why;
		if (unlikely(post->sync))
			kdapl_post_sync(ep->obj.ia, post);
	} while (unlikely(!recv_post(conn, post, &why)));
	return why;
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
	DAT_RETURN ret = DAT_SUCCESS;
	enum kdapl_verdict why;
	struct kdapl_ep *ep;

	rcu_read_lock();
	ep = kdapl_handle_peek(ep_handle, DAT_HANDLE_TYPE_EP);
	if (unlikely(!ep)) {
		ret = kdapl_post_no_ep(ep_handle, DAT_DTO_RECEIVE, cookie);
		goto out;
	}
	why = recv_checked(ep, &post);
	if (unlikely(why)) {
		ret = kdapl_post_ret(why, ep, KDAPL_CALL_RECV);
		trace_kdapl_post_refused(ep_handle, post.op, cookie.as_64, ret);
	}
out:
	rcu_read_unlock();
	return ret;
}

/* Post it, or leave it to the slow path. Inside kdapl_fast_begin(). */
static __always_inline enum kdapl_fast recv_fast(struct kdapl_ep *ep,
						 const DAT_LMR_TRIPLET *iov, DAT_COUNT n,
						 u64 cookie, DAT_COMPLETION_FLAGS flags)
{
	struct kdapl_conn *conn = rcu_dereference_check(ep->conn, rcu_read_lock_sched_held());
	struct kdapl_wq *wq;
	unsigned long irq;
	u64 length;
	int ret;

	if (unlikely(!conn) || trace_kdapl_post_enabled())
		return KDAPL_FAST_SLOW;
	wq = conn->rq;
	if (unlikely(READ_ONCE(wq->ia->dead)))
		return KDAPL_FAST_SLOW;
	if (unlikely((u32)n - 1 >= wq->max_iov[0] || (flags & wq->not_flags[0]) || !iov)) {
		if (n || (flags & wq->not_flags[0]))
			return KDAPL_FAST_SLOW;
		iov = NULL;	/* some devices would read the list (D-96) */
	}
	if (!kdapl_fast_check_iov(wq->ia, wq->domain, iov, n, wq->sink, &length))
		return KDAPL_FAST_SLOW;
	spin_lock_irqsave(&wq->lock, irq);
	if (unlikely(wq->mode != KDAPL_WQ_LIVE || !recv_has_room(wq))) {
		spin_unlock_irqrestore(&wq->lock, irq);
		return KDAPL_FAST_SLOW;
	}
	ret = recv_put(wq, (struct ib_sge *)iov, n, cookie, flags, length);
	spin_unlock_irqrestore(&wq->lock, irq);
	if (unlikely(ret))
		kdapl_post_refused(wq->conn);
	return KDAPL_FAST_DONE;
}

/**
 * dat_ep_post_recv - provide memory for one incoming message
 * @ep_handle: EP in any state; in DISCONNECTED the Receive is flushed at once
 * @num_segments: segments in @local_iov, 0 for a message without data
 * @local_iov: filled in order; NULL for a message without data. The array may be reused on
 *	return, the memory after the completion
 * @user_cookie: returned with the completion; any value, need not be unique
 * @completion_flags: UNSIGNALLED if the EP is configured for it
 *
 * The completion comes on the recv EVD, in the order of posting, with operation
 * DAT_DTO_RECEIVE and the length of the message. Memory beyond the message stays untouched. A
 * message that is longer than the Receive fails it with DAT_DTO_ERR_LOCAL_LENGTH and ends the
 * connection. If the status is not DAT_DTO_SUCCESS, the contents are undefined.
 *
 * The completion starts an upcall unless it is UNSIGNALLED or, on an EP with
 * DAT_COMPLETION_SOLICITED_WAIT_FLAG as recv_completion_flags, the Send has not asked for one.
 * (On soft-iWARP every Send asks for one.)
 *
 * Post Receives before connecting or accepting: the peer may send at once, and a message
 * without a Receive ends the connection, on iWARP immediately.
 *
 * Segments need no alignment. The fastest is optimal_buffer_alignment of the provider
 * attributes, which is at most DAT_OPTIMAL_ALIGNMENT.
 *
 * Context: any; does not sleep or allocate.
 * Return: DAT_SUCCESS (the Receive will complete); DAT_INVALID_HANDLE (EP);
 * DAT_INVALID_PARAMETER (count, NULL list, range outside its LMR, flags);
 * DAT_INVALID_STATE (EP with an SRQ); DAT_PRIVILEGES_VIOLATION (no such LMR, or
 * no local write right); DAT_PROTECTION_VIOLATION (LMR of another PZ, or EP
 * without PZ); DAT_INSUFFICIENT_RESOURCES (max_recv_dtos are outstanding, or
 * the EVD is full of completions that have not been dequeued); DAT_INTERNAL_ERROR (device
 * removed).
 */
DAT_RETURN dat_ep_post_recv(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
			    const DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
			    DAT_COMPLETION_FLAGS completion_flags)
{
	struct kdapl_ep *ep;

	if (unlikely(!kdapl_handle_is(ep_handle, DAT_HANDLE_TYPE_EP)))
		return kdapl_post_no_ep(ep_handle, DAT_DTO_RECEIVE, user_cookie);
	kdapl_fast_begin();
	ep = kdapl_handle_peek(ep_handle, DAT_HANDLE_TYPE_EP);
	if (unlikely(!ep)) {
		kdapl_fast_end();
		return kdapl_post_no_ep(ep_handle, DAT_DTO_RECEIVE, user_cookie);
	}
	if (likely(recv_fast(ep, local_iov, num_segments, user_cookie.as_64,
			     completion_flags) != KDAPL_FAST_SLOW)) {
		kdapl_fast_end();
		return DAT_SUCCESS;
	}
	kdapl_fast_end();
	return recv_slow(ep_handle, local_iov, num_segments, user_cookie, completion_flags);
}
EXPORT_SYMBOL(dat_ep_post_recv);
