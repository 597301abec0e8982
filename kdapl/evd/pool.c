// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The buffers of a Shared Receive Queue.
 *
 * A buffer is in the pool's free list, with the device, or with the EP whose QP took it until
 * the consumer has the event; only then may it be posted again. So there are never more
 * completions than buffers, however many EPs and EVDs share the SRQ.
 *
 * A completion carries the QP that took the buffer. The pointer is looked up among the QPs of
 * the SRQ by value and never followed: the QP may be gone. A QP leaves the table only after it
 * was destroyed and its CQ polled once more, or if it was never connected; no QP enters the table
 * while another one of the same address is still in it.
 *
 * A QP that is destroyed in the middle of a message may keep the buffer it took, and some
 * devices never report that. When no QP is left on the SRQ, a missing buffer counts as lost if
 * one that was posted after it has been taken. It stays reserved, since the device may still
 * complete it, but a spare entry takes its place, so that reconnecting does not use up the SRQ
 * (D-15).
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "event.h"

#define SPARE_MIN	16

/**
 * kdapl_pool_spare - number of spare entries, which replace lost ones
 * @limit: how many the consumer may have outstanding
 *
 * Return: their number.
 */
u32 kdapl_pool_spare(u32 limit)
{
	return max_t(u32, limit / 4, SPARE_MIN);
}

/* A CQ must be able to hold the completions of all buffers. */
static u32 pool_max(struct kdapl_device *dev)
{
	return min_t(u32, dev->attrs.max_srq_wr, dev->attrs.max_cqe);
}

/* Entries of the native SRQ for a limit of the consumer. */
static u32 pool_size(struct kdapl_device *dev, u32 limit)
{
	return min_t(u32, roundup_pow_of_two(limit + kdapl_pool_spare(limit)), pool_max(dev));
}

/**
 * kdapl_pool_limits - fill in the IA attributes of SRQs
 * @dev: the device
 * @attr: IA attributes
 */
void kdapl_pool_limits(struct kdapl_device *dev, DAT_IA_ATTR *attr)
{
	u32 max = pool_max(dev);

	attr->max_srqs = dev->attrs.max_srq;
	if (max <= SPARE_MIN || attr->max_srqs <= 0) {
		attr->max_srqs = 0;
		attr->max_ep_per_srq = 0;
		attr->max_recv_per_srq = 0;
		return;
	}
	attr->max_ep_per_srq = attr->max_eps;
	/* the largest n with n + kdapl_pool_spare(n) <= max */
	attr->max_recv_per_srq = min_t(u32, max - SPARE_MIN, max - (max + 1) / 5);
}

/**
 * kdapl_pool_check_low - queue the event of the low watermark if it is due
 * @pool: pool->lock held
 */
void kdapl_pool_check_low(struct kdapl_pool *pool)
{
	struct kdapl_srq *srq = pool->srq;

	lockdep_assert_held(&pool->lock);
	if (likely(!pool->low_armed || pool->available >= pool->low))
		return;
	WRITE_ONCE(pool->low_armed, false);
	if (!srq)
		return;
	atomic_inc(&srq->low_fired);
	refcount_inc(&srq->obj.ref);
	if (!queue_work(kdapl_misc_wq, &srq->low_work))
		refcount_dec(&srq->obj.ref);	/* queued already, with a reference */
}

/**
 * kdapl_pool_outstanding - outstanding buffers, as the consumer counts them
 * @pool: pool->lock held
 *
 * Return: their number, without lost ones that have a replacement.
 */
u32 kdapl_pool_outstanding(const struct kdapl_pool *pool)
{
	return pool->outstanding - min(pool->lost, pool->entries - pool->limit);
}

/**
 * kdapl_buf_alloc - get a buffer to post
 * @pool: pool->lock held
 *
 * Return: the buffer, or NULL when as many are outstanding as may be.
 */
struct kdapl_buf *kdapl_buf_alloc(struct kdapl_pool *pool)
{
	struct kdapl_buf *buf;

	lockdep_assert_held(&pool->lock);
	if (kdapl_pool_outstanding(pool) >= pool->limit)
		return NULL;
	buf = pool->free;
	if (WARN_ON_ONCE(!buf))
		return NULL;
	pool->free = buf->next;
	buf->seq = ++pool->seq;
	pool->outstanding++;
	if (unlikely(pool->error || !pool->ibsrq)) {
		buf->state = KDAPL_BUF_DEAD;
	} else {
		buf->state = KDAPL_BUF_POSTED;
		pool->available++;
	}
	return buf;
}

/**
 * kdapl_buf_unalloc - undo kdapl_buf_alloc(): the device refused the buffer
 * @pool: pool->lock held since kdapl_buf_alloc()
 * @buf: the buffer
 */
void kdapl_buf_unalloc(struct kdapl_pool *pool, struct kdapl_buf *buf)
{
	lockdep_assert_held(&pool->lock);
	if (unlikely(pool->sinks))
		kdapl_sinks_forget(pool->sinks, buf->index);
	kdapl_pool_add_free(pool, buf);
	pool->outstanding--;
	pool->available--;
}

/**
 * kdapl_buf_taken - a buffer has completed
 * @buf: the buffer
 * @qp: QP that took it, a value only
 *
 * Context: any, pool->lock not held.
 * Return: the connection of that QP, or NULL when it has left the table.
 */
struct kdapl_conn *kdapl_buf_taken(struct kdapl_buf *buf, struct ib_qp *qp)
{
	struct kdapl_pool *pool = kdapl_buf_pool(buf);
	struct kdapl_conn *conn;
	unsigned long flags;

	spin_lock_irqsave(&pool->lock, flags);
	if (unlikely(buf->state == KDAPL_BUF_LOST))
		pool->lost--;
	else
		pool->available--;
	buf->state = KDAPL_BUF_TAKEN;
	if ((s32)(buf->seq - pool->newest) > 0)
		pool->newest = buf->seq;
	kdapl_pool_check_low(pool);
	conn = kdapl_pool_find(pool, qp);
	spin_unlock_irqrestore(&pool->lock, flags);
	return conn;
}

/**
 * kdapl_buf_is_event - will the completion of a buffer that was filled be an event?
 * @buf: the buffer
 * @qp: QP that took it, a value only
 *
 * Context: the lock of the connection's receive EVD held, pool->lock not held.
 * Return: true if it will; false if the slow path must find out.
 */
bool kdapl_buf_is_event(struct kdapl_buf *buf, struct ib_qp *qp)
{
	struct kdapl_pool *pool = kdapl_buf_pool(buf);
	struct kdapl_conn *conn;
	bool event;

	spin_lock(&pool->lock);
	conn = kdapl_pool_find(pool, qp);
	event = conn && !conn->rq->slow;
	spin_unlock(&pool->lock);
	return event;
}

/**
 * kdapl_buf_free - a buffer may be posted again
 * @buf: taken
 *
 * Context: any, pool->lock not held.
 */
void kdapl_buf_free(struct kdapl_buf *buf)
{
	struct kdapl_pool *pool = kdapl_buf_pool(buf);
	unsigned long flags;

	spin_lock_irqsave(&pool->lock, flags);
	kdapl_pool_add_free(pool, buf);
	pool->outstanding--;
	spin_unlock_irqrestore(&pool->lock, flags);
}

/**
 * kdapl_pool_owe - count events of buffers that may be posted again already
 * @pool: the pool
 * @n: events that the consumer does not have yet: 1 more, or 1 less (-1)
 *
 * Context: any, pool->lock not held.
 */
void kdapl_pool_owe(struct kdapl_pool *pool, int n)
{
	unsigned long flags;

	spin_lock_irqsave(&pool->lock, flags);
	pool->outstanding += n;
	spin_unlock_irqrestore(&pool->lock, flags);
}

/* The device will not fill a buffer any more, but may have written a part of it. */
static void pool_buf_failed(struct kdapl_pool *pool, const struct kdapl_buf *buf)
{
	lockdep_assert_held(&pool->lock);
	/* freeing the SRQ does this for all of them: kdapl_pool_fail_all() */
	if (unlikely(pool->sinks) && pool->srq)
		kdapl_sinks_failed(pool->sinks, buf->index, pool->srq->obj.ia);
}

/**
 * kdapl_buf_failed - synchronise a buffer whose contents do not count
 * @buf: taken; completed with an error, or by a QP that has left the table
 *
 * Context: any, pool->lock not held; the device is still there.
 */
void kdapl_buf_failed(struct kdapl_buf *buf)
{
	struct kdapl_pool *pool = kdapl_buf_pool(buf);
	unsigned long flags;

	spin_lock_irqsave(&pool->lock, flags);
	pool_buf_failed(pool, buf);
	spin_unlock_irqrestore(&pool->lock, flags);
}

/**
 * kdapl_pool_fail_all - synchronise all buffers an SRQ has left, as kdapl_buf_failed()
 * @pool: no QP takes buffers from it any more
 *
 * Context: may sleep.
 */
void kdapl_pool_fail_all(struct kdapl_pool *pool)
{
	u32 i;

	for (i = 0; pool->sinks && i < pool->entries; i++) {
		spin_lock_irq(&pool->lock);
		pool_buf_failed(pool, &pool->buf[i]);
		spin_unlock_irq(&pool->lock);
		cond_resched();
	}
}

/* Buffers looked at in one go, under the lock. */
#define POOL_PIECE	256

/*
 * No QP is left that could return a buffer: those overtaken by later ones are lost. Buffers that
 * are posted meanwhile, and what a new QP takes, are newer than @newest. Sleeps; returns how many
 * were lost.
 */
static u32 pool_count_lost(struct kdapl_pool *pool, u32 newest)
{
	struct kdapl_buf *buf;
	u32 i, n = 0;

	for (i = 0; i < pool->entries; i++) {
		if (!(i % POOL_PIECE)) {
			spin_unlock_irq(&pool->lock);
			cond_resched();
			spin_lock_irq(&pool->lock);
		}
		buf = &pool->buf[i];
		if (buf->state != KDAPL_BUF_POSTED || (s32)(newest - buf->seq) <= 0)
			continue;
		buf->state = KDAPL_BUF_LOST;
		pool_buf_failed(pool, buf);
		pool->available--;
		pool->lost++;
		n++;
	}
	kdapl_pool_check_low(pool);
	return n;
}

/*
 * Keep at least one bucket for each connection, so that lookups take the same time however many
 * there are. The table is only read under the lock, so the old one can be freed at once. Without
 * memory for a larger one it stays, and lookups take longer.
 */
static void pool_grow(struct kdapl_pool *pool)
{
	struct hlist_head *fresh, *old = NULL;
	struct kdapl_conn *conn;
	unsigned int bits;
	bool full;

	spin_lock_irq(&pool->lock);
	bits = pool->bits;
	full = pool->nconns >= 1U << bits;
	spin_unlock_irq(&pool->lock);
	if (!full)
		return;
	fresh = kvcalloc(2UL << bits, sizeof(*fresh), GFP_KERNEL | __GFP_NOWARN);
	if (!fresh)
		return;
	spin_lock_irq(&pool->lock);
	if (pool->bits == bits) {
		old = pool->by_qp;
		pool->by_qp = fresh;
		pool->bits = bits + 1;
		list_for_each_entry(conn, &pool->conns, pool_node) {
			hlist_del(&conn->qp_node);
			hlist_add_head(&conn->qp_node, kdapl_pool_bucket(pool, conn->pool_qp));
		}
	} else {
		old = fresh;	/* it has grown meanwhile */
	}
	spin_unlock_irq(&pool->lock);
	kvfree(old);
}

static bool pool_try_attach(struct kdapl_pool *pool, struct kdapl_conn *conn)
{
	bool ok;

	spin_lock_irq(&pool->lock);
	ok = !kdapl_pool_find(pool, conn->qp);
	if (ok) {
		conn->pool_qp = conn->qp;
		hlist_add_head(&conn->qp_node, kdapl_pool_bucket(pool, conn->qp));
		list_add_rcu(&conn->pool_node, &pool->conns);
		pool->nconns++;
	}
	spin_unlock_irq(&pool->lock);
	return ok;
}

/**
 * kdapl_pool_attach - enter the QP of a connection into the table
 * @pool: the pool
 * @conn: has its QP, which has not received anything yet
 *
 * Waits for an earlier QP of the same address to leave: its CQ may still have completions.
 *
 * Context: may sleep.
 */
void kdapl_pool_attach(struct kdapl_pool *pool, struct kdapl_conn *conn)
{
	pool_grow(pool);
	wait_event(pool->detached, pool_try_attach(pool, conn));
}

/**
 * kdapl_pool_detach - remove the QP of a connection from the table
 * @conn: its QP is destroyed and its CQ was polled once more; a second call is harmless
 *
 * Context: may sleep.
 */
void kdapl_pool_detach(struct kdapl_conn *conn)
{
	struct kdapl_pool *pool = conn->pool;
	u32 lost = 0, total;

	if (!pool)
		return;
	spin_lock_irq(&pool->lock);
	if (conn->pool_qp) {
		hlist_del_init(&conn->qp_node);
		list_del_rcu(&conn->pool_node);
		conn->pool_qp = NULL;
		if (!--pool->nconns)
			lost = pool_count_lost(pool, pool->newest);
	}
	total = pool->lost;
	spin_unlock_irq(&pool->lock);
	wake_up_all(&pool->detached);
	if (lost)
		pr_info_ratelimited("%s: %u buffers of an SRQ were lost with their connections (%u in all); spare ones take their place\n",
				    pool->dev->name, lost, total);
}

static void pool_event(struct ib_event *event, void *context)
{
	struct kdapl_pool *pool = context;
	struct kdapl_srq *srq;
	unsigned long flags;

	if (event->event != IB_EVENT_SRQ_ERR || pool->dev->caps.srq_err_empty)
		return;
	spin_lock_irqsave(&pool->lock, flags);
	pool->error = true;
	srq = pool->srq;
	if (srq && !refcount_inc_not_zero(&srq->obj.ref))
		srq = NULL;
	spin_unlock_irqrestore(&pool->lock, flags);
	pr_err_ratelimited("%s: an SRQ failed: connections that need buffers of it break, replace it\n",
			   pool->dev->name);
	if (srq) {
		kdapl_ia_async(srq->obj.ia, srq->obj.handle,
			       DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR, DAT_SRQ_TRANSFER_TO_ERROR);
		kdapl_obj_put(&srq->obj);
	}
}

/* Give the native SRQ back to the device. No QP uses it any more. */
static void pool_destroy(struct kdapl_res *res)
{
	struct kdapl_pool *pool = container_of(res, struct kdapl_pool, res);
	struct ib_srq *ibsrq;

	spin_lock_irq(&pool->lock);
	ibsrq = pool->ibsrq;
	pool->ibsrq = NULL;
	spin_unlock_irq(&pool->lock);
	ib_destroy_srq(ibsrq);
}

static void pool_free(struct kdapl_pool *pool)
{
	kvfree(pool->by_qp);
	kvfree(pool->scratch);
	kvfree(pool->sinks);
	kvfree(pool);
}

static void pool_free_rcu(struct rcu_head *rcu)
{
	struct kdapl_pool *pool = container_of(rcu, struct kdapl_pool, rcu);
	struct kdapl_device *dev = pool->dev;

	pool_free(pool);
	kdapl_device_put(dev);
}

/**
 * kdapl_pool_put - drop a reference; the last one destroys the native SRQ
 * @pool: the pool, or NULL
 *
 * Context: may sleep.
 */
void kdapl_pool_put(struct kdapl_pool *pool)
{
	struct kdapl_device *dev;

	if (!pool || !refcount_dec_and_test(&pool->ref))
		return;
	dev = pool->dev;
	kdapl_res_release(dev, &pool->res);
	kdapl_pd_put(pool->pd);
	call_rcu(&pool->rcu, pool_free_rcu);	/* posting calls may still use it */
}

/**
 * kdapl_pool_create - create the buffers of an SRQ, and the native SRQ
 * @srq: the SRQ
 * @limit: how many the consumer may have outstanding
 * @done: ib_cqe.done of the buffers
 *
 * Context: may sleep; inside kdapl_dev_enter().
 * Return: the pool, with one reference, or an ERR_PTR: -ENOMEM, or -ENOSPC if the device has no
 * room for the native SRQ.
 */
struct kdapl_pool *kdapl_pool_create(struct kdapl_srq *srq, u32 limit,
				     void (*done)(struct ib_cq *cq, struct ib_wc *wc))
{
	struct kdapl_device *dev = srq->obj.ia->dev;
	u32 entries = pool_size(dev, limit), i;
	struct ib_srq_init_attr init = {
		.event_handler = pool_event,
		.attr.max_wr = entries,
		.attr.max_sge = srq->max_recv_iov,
		.srq_type = IB_SRQT_BASIC,
	};
	struct kdapl_sinks *sinks;
	struct kdapl_pool *pool;
	struct ib_srq *ibsrq;

	pool = kvzalloc(struct_size(pool, buf, entries), GFP_KERNEL);
	if (!pool)
		return ERR_PTR(-ENOMEM);
	pool->bits = KDAPL_POOL_HASH_BITS;
	pool->by_qp = kvcalloc(1UL << pool->bits, sizeof(*pool->by_qp), GFP_KERNEL);
	pool->scratch = kvcalloc(srq->max_recv_iov, sizeof(*pool->scratch), GFP_KERNEL);
	sinks = kdapl_sinks_alloc(dev, entries, srq->max_recv_iov);
	if (!IS_ERR(sinks))
		pool->sinks = sinks;
	if (!pool->by_qp || !pool->scratch || IS_ERR(sinks)) {
		pool_free(pool);
		return ERR_PTR(-ENOMEM);
	}
	pool->dev = dev;
	pool->pd = srq->pz->pd;
	pool->entries = entries;
	pool->limit = limit;
	pool->srq = srq;
	refcount_set(&pool->ref, 1);
	spin_lock_init(&pool->lock);
	init_waitqueue_head(&pool->detached);
	INIT_LIST_HEAD(&pool->conns);
	for (i = entries; i--;) {
		pool->buf[i].cqe.done = done;
		pool->buf[i].index = i;
		kdapl_pool_add_free(pool, &pool->buf[i]);
	}
	init.srq_context = pool;
	ibsrq = ib_create_srq(pool->pd->pd, &init);
	if (IS_ERR(ibsrq)) {
		pool_free(pool);
		return ERR_PTR(kdapl_create_errno(PTR_ERR(ibsrq)));
	}
	pool->ibsrq = ibsrq;
	refcount_inc(&pool->pd->ref);
	refcount_inc(&dev->ref);
	kdapl_res_add(dev, &pool->res, KDAPL_RES_SRQ, pool_destroy);
	return pool;
}
