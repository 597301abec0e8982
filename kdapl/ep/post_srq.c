// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 */
#include <linux/export.h>

#include "post.h"

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
	wr.sg_list = kdapl_post_sg_list(pool->scratch, post, pool->pd, post->length, &wr.num_sge);
	if (unlikely(ib_post_srq_recv(pool->ibsrq, &wr, NULL))) {
		kdapl_buf_unalloc(pool, buf);
		ret = kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ);
	}
out:
	spin_unlock_irqrestore(&pool->lock, flags);
	return ret;
}

static DAT_RETURN srq_call(DAT_SRQ_HANDLE srq_handle, struct kdapl_post *post)
{
	struct kdapl_srq *srq = kdapl_handle_peek(srq_handle, DAT_HANDLE_TYPE_SRQ);
	unsigned long domain[2] = {};
	DAT_RETURN ret;

	if (unlikely(!srq))
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	if (unlikely((u32)post->n - 1 >= srq->max_recv_iov || !post->iov) && post->n)
		return kdapl_arg_err(post->n < 0 || post->n > srq->max_recv_iov ? 2 : 3);
	if (unlikely(READ_ONCE(srq->obj.ia->dead)))
		return kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	domain[0] = kdapl_pd_domain(srq->pz->pd);
	ret = kdapl_post_check_iov(srq->obj.ia, domain, post, DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
	if (unlikely(ret != DAT_SUCCESS))
		return ret;
	if (unlikely(post->sync))
		kdapl_post_sync(srq->obj.ia, post);
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
	ret = srq_call(srq_handle, &post);
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_srq_post_recv);
