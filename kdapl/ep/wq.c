// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Work queues: their memory, what becomes of posts, and the requests we post ourselves.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "ep.h"

/*
 * A post reads one cache line and writes another, and completions have a third, if cache lines
 * have 64 bytes and spinlocks four.
 */
#define IN_LINE(type, first, last) \
	(SMP_CACHE_BYTES != 64 || !IS_ENABLED(CONFIG_SMP) || sizeof(spinlock_t) > 4 || \
	 offsetof(type, first) / 64 == (offsetofend(type, last) - 1) / 64)

static_assert(IN_LINE(struct kdapl_wq, ia, sink));
static_assert(IN_LINE(struct kdapl_wq, lock, room));
static_assert(IN_LINE(struct kdapl_wq, handle, ready));
static_assert(IN_LINE(struct kdapl_wq, wqe[0], wqe[1]));
static_assert(IN_LINE(struct kdapl_conn, sq, qp));

/**
 * kdapl_wq_free - free the memory of a work queue
 * @wq: unused, or NULL
 */
void kdapl_wq_free(struct kdapl_wq *wq)
{
	if (!wq)
		return;
	kvfree(wq->sinks);
	kvfree(wq->memop);
	kvfree(wq->chain);
	kvfree(wq->scratch);
	kvfree(wq);
}

/* An array in cache lines of its own: work queues of several CPUs must not share one. */
static void *wq_alloc_array(size_t n, size_t size)
{
	size_t bytes = array_size(n, size);

	if (bytes < PAGE_SIZE)
		bytes = max_t(size_t, roundup_pow_of_two(bytes), SMP_CACHE_BYTES);
	return kvzalloc(bytes, GFP_KERNEL);
}

static int wq_alloc_lists(struct kdapl_wq *wq, u32 size)
{
	u32 lists = wq->recv ? 1 : KDAT_POST_LIST_MAX;
	struct kdapl_sinks *sinks = kdapl_sinks_alloc(wq->conn->dev, size, wq->max_sge);

	if (IS_ERR(sinks))
		return PTR_ERR(sinks);
	wq->sinks = sinks;
	if (sinks)
		wq->slow |= KDAPL_SLOW_SYNC;
	wq->scratch = wq_alloc_array(lists * wq->stride, sizeof(*wq->scratch));
	if (!wq->scratch)
		return -ENOMEM;
	if (wq->recv)
		return 0;
	wq->memop = wq_alloc_array(size, sizeof(*wq->memop));
	wq->chain = wq_alloc_array(KDAT_POST_LIST_MAX * KDAPL_MAX_WRS, sizeof(*wq->chain));
	return wq->memop && wq->chain ? 0 : -ENOMEM;
}

/**
 * kdapl_wq_alloc - allocate a work queue
 * @conn: connection it belongs to
 * @recv: for Receives
 * @max_wrs: WRs the consumer may have in it
 * @max_sge: segments of each
 *
 * Context: may sleep.
 * Return: the work queue or NULL.
 */
struct kdapl_wq *kdapl_wq_alloc(struct kdapl_conn *conn, bool recv, u32 max_wrs, u32 max_sge)
{
	/* we post no Receives of our own */
	u32 size = roundup_pow_of_two(recv ? max(max_wrs, 1U) : max_wrs + KDAPL_OWN_WQES);
	struct kdapl_wq *wq;
	u32 i;

	wq = kvzalloc(struct_size(wq, wqe, size), GFP_KERNEL);
	if (!wq)
		return NULL;
	wq->conn = conn;
	wq->handle = conn->handle;
	wq->recv = recv;
	wq->mask = size - 1;
	wq->done_mask = wq->mask;
	wq->slow = KDAPL_SLOW_EARLY;
	wq->max_wrs = max_wrs;
	wq->max_sge = max_sge;
	wq->stride = max(max_sge, 2U);	/* two: wr_split_short() */
	wq->last_sup = -1;
	/* no flag yet: an empty request looks at these only, and may meet ESTABLISHED */
	memset(wq->not_flags, 0xff, sizeof(wq->not_flags));
	wq->mode = recv ? KDAPL_WQ_LIVE : KDAPL_WQ_REFUSE;
	spin_lock_init(&wq->lock);
	INIT_LIST_HEAD(&wq->ready);
	for (i = 0; i < size; i++) {
		wq->wqe[i].cqe.done = kdapl_wqe_done;
		wq->wqe[i].index = i;
	}
	if (wq_alloc_lists(wq, size)) {
		kdapl_wq_free(wq);
		return NULL;
	}
	return wq;
}

/**
 * kdapl_wq_set_mode - set what becomes of posts
 * @wq: the work queue
 * @mode: enum kdapl_wq_mode
 *
 * On return no post to the device is under way in another mode, unless the consumer serialises
 * its posts: see kdapl_wq_quiesce().
 */
void kdapl_wq_set_mode(struct kdapl_wq *wq, enum kdapl_wq_mode mode)
{
	unsigned long flags;

	spin_lock_irqsave(&wq->lock, flags);
	/* pairs with the acquire in kdapl_wq_check_recv_end() */
	smp_store_release(&wq->mode, mode);
	if (!wq->serial)
		wq->room = 0;	/* the fast path looks at the mode when it counts again */
	spin_unlock_irqrestore(&wq->lock, flags);
}

/**
 * kdapl_wq_quiesce - wait for the last post that does not hold the lock
 * @wq: a work queue that is not live any more
 *
 * Posts that the consumer serialises take no lock, but look at the mode inside an RCU section. The
 * grace period is expedited, because it delays the end of the connection.
 *
 * Context: may sleep.
 */
void kdapl_wq_quiesce(struct kdapl_wq *wq)
{
	if (wq->serial)
		synchronize_rcu_expedited();
}

/**
 * kdapl_wq_post_own - post a request of our own
 * @wq: send work queue; wq->lock held
 * @op: KDAPL_OP_MARKER or KDAPL_OP_KICK
 *
 * It is a signaled zero-length RDMA Write, which moves no byte and is not checked against any
 * key.
 *
 * Return: 0, or the errno of the device.
 */
int kdapl_wq_post_own(struct kdapl_wq *wq, u8 op)
{
	struct kdapl_wqe *wqe = &wq->wqe[wq->head & wq->mask];
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_cqe = &wqe->cqe,
			.opcode = IB_WR_RDMA_WRITE,
			.send_flags = IB_SEND_SIGNALED,
		},
	};
	int ret;

	wqe->op = op;
	wqe->flags = KDAPL_WQE_SIGNALED;
	wqe->state = KDAPL_WQE_POSTED;
	wqe->seq = wq->dtos;
	wq->room = 0;
	/* pairs with the acquire in kdapl_wq_next() */
	smp_store_release(&wq->head, wq->head + 1);
	ret = ib_post_send(wq->conn->qp, &wr.wr, NULL);
	if (ret)
		WRITE_ONCE(wqe->state, KDAPL_WQE_UNPOSTED);
	return ret;
}

/**
 * kdapl_wq_post_marker - post the marker
 * @wq: send work queue; wq->lock held
 * @why: what follows when it has completed; KDAPL_MARKER_LAST takes over one that is under way
 *
 * When the marker completes, in whatever way, everything before it is done.
 *
 * Return: 0 if there is a marker to wait for; 1 if there is nothing to wait for; the errno of
 * the device.
 */
int kdapl_wq_post_marker(struct kdapl_wq *wq, enum kdapl_wq_marker why)
{
	int ret;

	/* pairs with the release in kdapl_wq_advance() */
	if (smp_load_acquire(&wq->tail) == wq->head)
		return 1;
	if (cmpxchg(&wq->marker, KDAPL_MARKER_DRAIN, why) != KDAPL_MARKER_NONE)
		return 0;
	WRITE_ONCE(wq->marker, why);
	wq->marker_pos = wq->head;
	ret = kdapl_wq_post_own(wq, KDAPL_OP_MARKER);
	if (ret)
		WRITE_ONCE(wq->marker, KDAPL_MARKER_NONE);
	return ret;
}
