// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Posting buffers to a Shared Receive Queue. Its control calls are in srq.c, the buffers in
 * evd/pool.c.
 */
#include <linux/export.h>

#include "post.h"

/*
 * Put a buffer into pool and device. @slow: the post, if @iov must be rewritten for the device or
 * its memory synchronised; else NULL. RCU read side.
 */
static __always_inline enum kdapl_verdict srq_put(struct kdapl_srq *srq,
						  const DAT_LMR_TRIPLET *iov, DAT_COUNT n,
						  u64 cookie, const struct kdapl_post *slow)
{
	struct ib_recv_wr wr = { .sg_list = (struct ib_sge *)iov, .num_sge = n };
	enum kdapl_verdict why = KDAPL_ACCEPTED;
	struct kdapl_pool *pool;
	struct kdapl_buf *buf;
	unsigned long flags;

again:
	pool = rcu_dereference_check(srq->pool, rcu_read_lock_sched_held());
	if (unlikely(!pool))	/* being freed */
		return KDAPL_REFUSE_NO_SRQ;
	spin_lock_irqsave(&pool->lock, flags);
	if (unlikely(pool->replaced)) {
		/* marked and replaced under one lock: the next look finds the new one */
		spin_unlock_irqrestore(&pool->lock, flags);
		goto again;
	}
	buf = kdapl_buf_alloc(pool);
	if (unlikely(!buf)) {
		why = KDAPL_REFUSE_SRQ_FULL;
		goto out;
	}
	buf->cookie = cookie;
	if (unlikely(buf->state == KDAPL_BUF_DEAD))
		goto out;
	wr.wr_cqe = &buf->cqe;
	if (slow) {
		if (slow->sync)
			kdapl_sinks_keep(pool->sinks, buf->index, iov, n, slow->length);
		wr.sg_list = kdapl_post_sg_list(pool->scratch, slow, pool->pd, slow->length,
						&wr.num_sge);
	}
	if (unlikely(ib_post_srq_recv(pool->ibsrq, &wr, NULL))) {
		kdapl_buf_unalloc(pool, buf);
		why = KDAPL_REFUSE_SRQ_FULL;
	}
out:
	spin_unlock_irqrestore(&pool->lock, flags);
	return why;
}

/* A list that the fast path does not take: find out what is wrong or special about it. */
static noinline enum kdapl_verdict srq_slow(struct kdapl_srq *srq, unsigned long pd,
					    const DAT_LMR_TRIPLET *iov, DAT_COUNT n, u64 cookie)
{
	const unsigned long domain[] = { pd, pd };
	struct kdapl_post post = {
		.iov = iov,
		.n = n,
		.op = DAT_DTO_RECEIVE,
	};
	enum kdapl_verdict why;

	rcu_read_lock();
	why = kdapl_post_check_iov(srq->obj.ia, domain, &post, DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
	if (!why && post.sync)
		kdapl_post_sync(srq->obj.ia, &post);
	why = why ?: srq_put(srq, iov, n, cookie, &post);
	rcu_read_unlock();
	return why;
}

/* Inside kdapl_fast_begin(). */
static __always_inline enum kdapl_verdict srq_post(DAT_SRQ_HANDLE srq_handle,
						   const DAT_LMR_TRIPLET *iov, DAT_COUNT n,
						   u64 cookie)
{
	struct kdapl_srq *srq = kdapl_handle_peek(srq_handle, DAT_HANDLE_TYPE_SRQ);
	unsigned long domain[2];	/* the keys of the PD only: there is no EP */
	u64 length;

	if (unlikely(!srq))
		return KDAPL_REFUSE_NO_SRQ;
	if (unlikely((u32)n - 1 >= srq->max_recv_iov || !iov)) {
		if (n)
			return n < 0 || n > srq->max_recv_iov ? KDAPL_REFUSE_COUNT :
								KDAPL_REFUSE_MEMORY;
		iov = NULL;	/* some devices would read the list (D-96) */
	}
	if (unlikely(READ_ONCE(srq->obj.ia->dead)))
		return KDAPL_REFUSE_NO_DEVICE;
	domain[0] = kdapl_pd_domain(srq->pz->pd);
	domain[1] = domain[0];
	if (unlikely(!kdapl_fast_check_iov(srq->obj.ia, domain, iov, n,
					   DAT_MEM_PRIV_LOCAL_WRITE_FLAG | KDAPL_PRIV_DIRECT,
					   &length)))
		return srq_slow(srq, domain[0], iov, n, cookie);
	return srq_put(srq, iov, n, cookie, NULL);
}

/**
 * dat_srq_post_recv - provide memory for one incoming message of any EP of an SRQ
 * @srq_handle: SRQ in any state
 * @num_segments: segments in @local_iov, 0 for a message without data
 * @local_iov: filled in order, of LMRs of the SRQ's PZ; NULL for a message without data. The
 *	array may be reused on return, the memory after the completion
 * @user_cookie: returned with the completion; any value, need not be unique
 *
 * The completion comes on the recv EVD of the EP that has taken the buffer, with the handle of
 * that EP. Completions of one EP come in the order of the peer's Sends; buffers may be taken in
 * an order other than that of posting. A buffer is outstanding until the consumer has its event.
 * The completion starts an upcall unless the EP has DAT_COMPLETION_SOLICITED_WAIT_FLAG as
 * recv_completion_flags and the Send has not asked for one.
 *
 * Each buffer must be as long as the longest message of any EP: a longer message fails the buffer
 * with DAT_DTO_ERR_LOCAL_LENGTH and ends that connection. If the status is not DAT_DTO_SUCCESS,
 * the contents are undefined.
 *
 * EPs take buffers in CONNECTED and DISCONNECT_PENDING. A buffer that was being filled when the
 * connection ended is reported DAT_DTO_ERR_FLUSHED if the device returns it; otherwise its
 * memory may be reused once the SRQ is freed. Buffers that no EP has taken stay in the SRQ. In
 * the SRQ state ERROR a buffer is accepted and stays outstanding until the SRQ is freed.
 *
 * Segments need no alignment. The fastest is optimal_buffer_alignment of the provider
 * attributes.
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
			     const DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie)
{
	enum kdapl_verdict why;

	kdapl_fast_begin();
	why = srq_post(srq_handle, local_iov, num_segments, user_cookie.as_64);
	kdapl_fast_end();
	return likely(!why) ? DAT_SUCCESS : kdapl_post_ret(why, NULL, KDAPL_CALL_SRQ_RECV);
}
EXPORT_SYMBOL(dat_srq_post_recv);
