// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Work queues: their memory, and what becomes of posts.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "ep.h"

/*
 * What a post reads is one line and what it writes another, and completions have a third:
 * where lines have 64 bytes and locks four, that is.
 */
#define IN_LINE(type, first, last) \
	(SMP_CACHE_BYTES != 64 || !IS_ENABLED(CONFIG_SMP) || sizeof(spinlock_t) > 4 || \
	 offsetof(type, first) / 64 == (offsetofend(type, last) - 1) / 64)

static_assert(IN_LINE(struct kdapl_wq, ia, sink));
static_assert(IN_LINE(struct kdapl_wq, lock, interval));
static_assert(IN_LINE(struct kdapl_wq, handle, ready));
static_assert(IN_LINE(struct kdapl_wq, wr[0], wr[1]));
static_assert(IN_LINE(struct kdapl_conn, sq, qp));

/**
 * kdapl_wq_free - free the memory of a work queue
 * @wq: nobody looks at it any more; may be NULL
 */
void kdapl_wq_free(struct kdapl_wq *wq)
{
	if (!wq)
		return;
	kvfree(wq->sinks);
	kvfree(wq->slot);
	kvfree(wq->chain);
	kvfree(wq->scratch);
	kvfree(wq);
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
	wq->scratch = kvcalloc(lists * wq->stride, sizeof(*wq->scratch), GFP_KERNEL);
	if (!wq->scratch)
		return -ENOMEM;
	if (wq->recv)
		return 0;
	wq->slot = kvcalloc(size, sizeof(*wq->slot), GFP_KERNEL);
	wq->chain = kvcalloc(KDAT_POST_LIST_MAX * KDAPL_NATIVE_MAX, sizeof(*wq->chain),
			     GFP_KERNEL);
	return wq->slot && wq->chain ? 0 : -ENOMEM;
}

/**
 * kdapl_wq_alloc - the memory of a work queue
 * @conn: connection it belongs to
 * @recv: for Receives
 * @slots: work requests the consumer may have in it
 * @max_sge: segments of one
 *
 * Context: may sleep.
 * Return: the work queue or NULL.
 */
struct kdapl_wq *kdapl_wq_alloc(struct kdapl_conn *conn, bool recv, u32 slots, u32 max_sge)
{
	u32 size = roundup_pow_of_two(slots + KDAPL_MARKERS);
	struct kdapl_wq *wq;
	u32 i;

	wq = kvzalloc(struct_size(wq, wr, size), GFP_KERNEL);
	if (!wq)
		return NULL;
	wq->conn = conn;
	wq->handle = conn->handle;
	wq->recv = recv;
	wq->mask = size - 1;
	wq->done_mask = wq->mask;
	wq->slow = recv ? KDAPL_SLOW_EARLY : 0;
	wq->slots = slots;
	wq->max_sge = max_sge;
	wq->stride = max(max_sge, 2U);	/* two: wr_split_short() */
	wq->last_sup = -1;
	wq->mode = recv ? KDAPL_WQ_LIVE : KDAPL_WQ_REFUSE;
	spin_lock_init(&wq->lock);
	INIT_LIST_HEAD(&wq->ready);
	for (i = 0; i < size; i++) {
		wq->wr[i].cqe.done = kdapl_wqe_done;
		wq->wr[i].index = i;
	}
	if (wq_alloc_lists(wq, size)) {
		kdapl_wq_free(wq);
		return NULL;
	}
	return wq;
}

/**
 * kdapl_wq_set_mode - decide what becomes of posts
 * @wq: the work queue
 * @mode: enum kdapl_wq_mode
 *
 * After the return no post to the device is under way in another mode, but for a work queue
 * whose consumer serialises its posts: see kdapl_wq_quiesce().
 */
void kdapl_wq_set_mode(struct kdapl_wq *wq, enum kdapl_wq_mode mode)
{
	unsigned long flags;

	spin_lock_irqsave(&wq->lock, flags);
	/* pairs with the acquire in wq_check_recv_end() */
	smp_store_release(&wq->mode, mode);
	spin_unlock_irqrestore(&wq->lock, flags);
}

/**
 * kdapl_wq_quiesce - wait for the last post that does not hold the lock
 * @wq: a work queue that is not live any more
 *
 * Where the consumer serialises its posts they take no lock, but they are inside an RCU
 * section, and look at the mode there. Expedited, since somebody waits for the end of the
 * connection.
 *
 * Context: may sleep.
 */
void kdapl_wq_quiesce(struct kdapl_wq *wq)
{
	if (wq->serial)
		synchronize_rcu_expedited();
}
