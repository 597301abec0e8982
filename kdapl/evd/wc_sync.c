// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Before a completion is reported, memory that the device has written is synchronised for the
 * CPU. If DMA does not need that, ->sinks is NULL and nothing here is called.
 */
#include "event.h"

/**
 * kdapl_wqe_sync - synchronise the memory of one entry
 * @wq: work queue with sinks; evd->lock held
 * @wqe: a Receive or an RDMA Read
 * @done: it has succeeded
 * @length: bytes that were written then
 */
void kdapl_wqe_sync(struct kdapl_wq *wq, const struct kdapl_wqe *wqe, bool done, u32 length)
{
	struct kdapl_ia *ia = wq->ia;

	if (done)
		kdapl_sinks_filled(wq->sinks, wqe->index, ia, length);
	else
		kdapl_sinks_failed(wq->sinks, wqe->index, ia);
}

/**
 * kdapl_wq_sync_reads - synchronise the memory of Reads up to a completion
 * @wq: send work queue with sinks; evd->lock held
 * @end: index of the entry that has completed
 * @done: it has succeeded
 *
 * On a device that completes in order, suppressed Reads before it have succeeded as well.
 */
void kdapl_wq_sync_reads(struct kdapl_wq *wq, u32 end, bool done)
{
	u32 pos = wq->ooo ? end : wq->synced;

	for (; (s32)(end - pos) >= 0; pos++) {
		const struct kdapl_wqe *wqe = &wq->wqe[pos & wq->mask];

		if (wqe->op == DAT_DTO_RDMA_READ)
			kdapl_wqe_sync(wq, wqe, pos != end || done, wqe->length);
	}
	wq->synced = end + 1;
}

/**
 * kdapl_wq_sync_rest - synchronise what has had no completion
 * @wq: work queue with sinks that has ended: the device writes nothing any more
 */
void kdapl_wq_sync_rest(struct kdapl_wq *wq)
{
	/* pairs with the release of the poster: entries before head are complete */
	u32 head = smp_load_acquire(&wq->head);
	unsigned int status;
	bool done;
	u32 pos;

	for (pos = wq->tail; pos != head; pos++) {
		const struct kdapl_wqe *wqe = &wq->wqe[pos & wq->mask];

		done = kdapl_wqe_outcome(wq, wqe, &status) && status == DAT_DTO_SUCCESS;
		if (wq->recv || wqe->op == DAT_DTO_RDMA_READ)
			kdapl_wqe_sync(wq, wqe, done, wqe->length);
	}
}

/**
 * kdapl_buf_sync - synchronise a buffer of an SRQ
 * @buf: the buffer
 * @conn: connection that took it, or NULL
 * @wc: its completion
 */
void kdapl_buf_sync(struct kdapl_buf *buf, struct kdapl_conn *conn, const struct ib_wc *wc)
{
	struct kdapl_sinks *sinks = kdapl_buf_pool(buf)->sinks;

	if (!sinks)
		return;
	if (conn && wc->status == IB_WC_SUCCESS)
		kdapl_sinks_filled(sinks, buf->index, conn->rq->ia, kdapl_wc_filled(wc));
	else
		kdapl_buf_failed(buf);
}
