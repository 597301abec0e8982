// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Shared Receive Queues: create, query, resize, watermark, free, and the pool
 * of buffers behind them. Posting is in post.c, what becomes of a completion
 * in evd_poll.c.
 *
 * A buffer belongs to the pool's free list, to the device, or to the EP whose
 * QP took it, until the consumer has the event; only then it may be posted
 * again. So there can never be more completions than buffers, however many EPs
 * and EVDs share the SRQ, and every count is a matter of bookkeeping.
 *
 * A completion says which QP took the buffer. Its address is looked up among
 * the QPs of the SRQ by value and never followed: the QP may be gone. A QP
 * leaves the table only after it was destroyed and its CQ polled once more, or
 * when it was never connected; none enters it while another of the same address
 * is still there.
 *
 * A QP that goes in the middle of a message may keep the buffer it took, and
 * some devices never say so. When no QP is left on the SRQ, a buffer that is
 * still missing though one posted after it has been taken counts as lost. It
 * stays reserved, since a device may after all complete it, but spare entries
 * take its place, so that reconnecting does not wear the SRQ out (D-15).
 */
#include <linux/export.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "ep.h"

#define SPARE_MIN	16

static u32 pool_spare(u32 limit)
{
	return max_t(u32, limit / 4, SPARE_MIN);
}

/* A CQ must be able to hold the completions of all buffers. */
static u32 pool_max(struct kdapl_device *dev)
{
	return min_t(u32, dev->attrs.max_srq_wr, dev->attrs.max_cqe);
}

/* How many buffers the native SRQ gets for so many of the consumer's. */
static u32 pool_size(struct kdapl_device *dev, u32 limit)
{
	return min_t(u32, roundup_pow_of_two(limit + pool_spare(limit)), pool_max(dev));
}

/**
 * kdapl_srq_limits - fill in what an IA says of SRQs
 * @dev: the device
 * @attr: IA attributes
 */
void kdapl_srq_limits(struct kdapl_device *dev, DAT_IA_ATTR *attr)
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
	/* the largest n with n + pool_spare(n) <= max */
	attr->max_recv_per_srq = min_t(u32, max - SPARE_MIN, max - max / 5);
}

static struct hlist_head *pool_bucket(struct kdapl_pool *pool, struct ib_qp *qp)
{
	return &pool->by_qp[hash_ptr(qp, pool->bits)];
}

static struct kdapl_conn *pool_find(struct kdapl_pool *pool, struct ib_qp *qp)
{
	struct kdapl_conn *conn;

	hlist_for_each_entry(conn, pool_bucket(pool, qp), qp_node) {
		if (conn->pool_qp == qp)
			return conn;
	}
	return NULL;
}

/* Is the low watermark due? */
static void pool_check_low(struct kdapl_pool *pool)
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
		refcount_dec(&srq->obj.ref);	/* the one that is queued has its own */
}

static void srq_low_work(struct work_struct *work)
{
	struct kdapl_srq *srq = container_of(work, struct kdapl_srq, low_work);

	while (atomic_dec_if_positive(&srq->low_fired) >= 0) {
		if (READ_ONCE(srq->obj.live))
			kdapl_ia_async(srq->obj.ia, srq->obj.handle,
				       DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR,
				       DAT_SRQ_LOW_WATERMARK_EVENT);
	}
	kdapl_obj_put(&srq->obj);
}

/* Occupied entries as the consumer counts them. */
static u32 pool_outstanding(const struct kdapl_pool *pool)
{
	return pool->outstanding - min(pool->lost, pool->entries - pool->limit);
}

/**
 * kdapl_buf_alloc - a buffer to post
 * @pool: pool->lock held
 *
 * Return: the buffer, or NULL when as many are outstanding as may be.
 */
struct kdapl_buf *kdapl_buf_alloc(struct kdapl_pool *pool)
{
	struct kdapl_buf *buf;

	lockdep_assert_held(&pool->lock);
	if (pool_outstanding(pool) >= pool->limit)
		return NULL;
	buf = list_first_entry_or_null(&pool->free, struct kdapl_buf, node);
	if (WARN_ON_ONCE(!buf))
		return NULL;
	buf->seq = ++pool->seq;
	pool->outstanding++;
	if (unlikely(pool->error || !pool->ibsrq)) {
		buf->state = KDAPL_BUF_DEAD;
		list_del_init(&buf->node);
	} else {
		buf->state = KDAPL_BUF_NATIVE;
		pool->available++;
		list_move_tail(&buf->node, &pool->native);
	}
	return buf;
}

/**
 * kdapl_buf_unalloc - the device refused the buffer
 * @pool: pool->lock held since kdapl_buf_alloc()
 * @buf: the buffer
 */
void kdapl_buf_unalloc(struct kdapl_pool *pool, struct kdapl_buf *buf)
{
	lockdep_assert_held(&pool->lock);
	if (unlikely(pool->sinks))
		kdapl_sinks_forget(pool->sinks, buf->index);
	buf->state = KDAPL_BUF_FREE;
	pool->outstanding--;
	pool->available--;
	list_move(&buf->node, &pool->free);
}

/**
 * kdapl_buf_taken - a QP took a buffer: a completion came for it
 * @buf: the buffer, off pool->native on return
 * @qp: which QP, a value only
 *
 * Context: any, pool->lock not held.
 * Return: the connection of that QP, or NULL when it is not known any more.
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
	list_del_init(&buf->node);
	if ((s32)(buf->seq - pool->newest) > 0)
		pool->newest = buf->seq;
	pool_check_low(pool);
	conn = pool_find(pool, qp);
	spin_unlock_irqrestore(&pool->lock, flags);
	return conn;
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
	buf->state = KDAPL_BUF_FREE;
	pool->outstanding--;
	list_add(&buf->node, &pool->free);	/* first: it is in the cache */
	spin_unlock_irqrestore(&pool->lock, flags);
}

/* The device is not going to fill a buffer any more, and may have filled some of it. */
static void pool_buf_failed(struct kdapl_pool *pool, const struct kdapl_buf *buf)
{
	lockdep_assert_held(&pool->lock);
	/* an SRQ that is freed has done it for all of them */
	if (unlikely(pool->sinks) && pool->srq)
		kdapl_sinks_failed(pool->sinks, buf->index, pool->srq->obj.ia);
}

/**
 * kdapl_buf_failed - what a buffer has been filled with is nothing
 * @buf: taken, come back with an error or from a QP that nobody knows
 *
 * Context: any, pool->lock not held; the device is there.
 */
void kdapl_buf_failed(struct kdapl_buf *buf)
{
	struct kdapl_pool *pool = kdapl_buf_pool(buf);
	unsigned long flags;

	spin_lock_irqsave(&pool->lock, flags);
	pool_buf_failed(pool, buf);
	spin_unlock_irqrestore(&pool->lock, flags);
}

/* The same for all that an SRQ has left, which no QP takes buffers from any more. */
static void pool_fail_all(struct kdapl_pool *pool)
{
	u32 i;

	for (i = 0; pool->sinks && i < pool->entries; i++) {
		spin_lock_irq(&pool->lock);
		pool_buf_failed(pool, &pool->buf[i]);
		spin_unlock_irq(&pool->lock);
		cond_resched();
	}
}

/* No QP is left that could have a buffer in hand: those overtaken are lost. */
static u32 pool_count_lost(struct kdapl_pool *pool)
{
	struct kdapl_buf *buf, *next;
	u32 n = 0;

	list_for_each_entry_safe(buf, next, &pool->native, node) {
		if ((s32)(pool->newest - buf->seq) <= 0)
			break;
		buf->state = KDAPL_BUF_LOST;
		pool_buf_failed(pool, buf);
		list_del_init(&buf->node);
		pool->available--;
		pool->lost++;
		n++;
	}
	pool_check_low(pool);
	return n;
}

/*
 * Have a bucket for each connection, so that a completion finds its own at once however many
 * there are. Nobody looks there but under the lock, so the old table can go at once; without
 * memory for a larger one it stays, and looking lasts longer.
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
			hlist_add_head(&conn->qp_node, pool_bucket(pool, conn->pool_qp));
		}
	} else {
		old = fresh;	/* somebody else was faster */
	}
	spin_unlock_irq(&pool->lock);
	kvfree(old);
}

static bool pool_try_attach(struct kdapl_pool *pool, struct kdapl_conn *conn)
{
	bool ok;

	spin_lock_irq(&pool->lock);
	ok = !pool_find(pool, conn->qp);
	if (ok) {
		conn->pool_qp = conn->qp;
		hlist_add_head(&conn->qp_node, pool_bucket(pool, conn->qp));
		list_add_rcu(&conn->pool_node, &pool->conns);
		pool->nconns++;
	}
	spin_unlock_irq(&pool->lock);
	return ok;
}

/**
 * kdapl_pool_attach - completions of a QP belong to this connection from now on
 * @pool: the pool
 * @conn: has its QP, which nothing was received on yet
 *
 * A predecessor that had the same address may not have been polled dry yet.
 *
 * Context: may sleep.
 */
void kdapl_pool_attach(struct kdapl_pool *pool, struct kdapl_conn *conn)
{
	pool_grow(pool);
	wait_event(pool->detached, pool_try_attach(pool, conn));
}

/**
 * kdapl_pool_detach - no completion of this connection's QP can come any more
 * @conn: its QP is destroyed and its CQ was polled dry; a second call is
 *	harmless
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
			lost = pool_count_lost(pool);
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

	if (event->event != IB_EVENT_SRQ_ERR)
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

/* No QP uses it any more. */
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
	call_rcu(&pool->rcu, pool_free_rcu);	/* posting calls may still look at it */
}

/* Inside kdapl_dev_enter(). */
static struct kdapl_pool *pool_create(struct kdapl_srq *srq, u32 limit)
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
	INIT_LIST_HEAD(&pool->free);
	INIT_LIST_HEAD(&pool->native);
	INIT_LIST_HEAD(&pool->conns);
	for (i = 0; i < entries; i++) {
		pool->buf[i].cqe.done = kdapl_buf_done;
		pool->buf[i].index = i;
		list_add_tail(&pool->buf[i].node, &pool->free);
	}
	init.srq_context = pool;
	ibsrq = ib_create_srq(pool->pd->pd, &init);
	if (IS_ERR(ibsrq)) {
		pool_free(pool);
		return ERR_CAST(ibsrq);
	}
	pool->ibsrq = ibsrq;
	refcount_inc(&pool->pd->ref);
	refcount_inc(&dev->ref);
	kdapl_res_add(dev, &pool->res, KDAPL_RES_SRQ, pool_destroy);
	return pool;
}

/**
 * kdapl_srq_pool_get - the pool new EPs of an SRQ take their buffers from
 * @srq: in use by the caller's EP, so that it does not change any more
 *
 * Return: the pool, referenced.
 */
struct kdapl_pool *kdapl_srq_pool_get(struct kdapl_srq *srq)
{
	struct kdapl_pool *pool;

	mutex_lock(&srq->mutex);
	pool = rcu_dereference_protected(srq->pool, lockdep_is_held(&srq->mutex));
	refcount_inc(&pool->ref);
	mutex_unlock(&srq->mutex);
	return pool;
}

/* What kdapl_obj_get() returns is used as the object itself. */
static_assert(!offsetof(struct kdapl_srq, obj));

static void srq_release(struct kdapl_obj *obj)
{
	struct kdapl_srq *srq = container_of(obj, struct kdapl_srq, obj);

	kfree_rcu(srq, obj.rcu);
}

static const struct kdapl_obj_ops srq_ops = {
	.release = srq_release,
};

/**
 * kdapl_srq_destroy - destroy a retired SRQ
 * @srq: retired or never published
 *
 * Context: may sleep.
 */
void kdapl_srq_destroy(struct kdapl_srq *srq)
{
	struct kdapl_pool *pool;

	mutex_lock(&srq->mutex);	/* a resize may be under way */
	pool = rcu_replace_pointer(srq->pool, NULL, lockdep_is_held(&srq->mutex));
	mutex_unlock(&srq->mutex);
	pool_fail_all(pool);
	spin_lock_irq(&pool->lock);
	pool->srq = NULL;
	spin_unlock_irq(&pool->lock);
	kdapl_pool_put(pool);
	kdapl_obj_unuse(&srq->pz->obj);
	kdapl_obj_put(&srq->obj);
}

static DAT_RETURN srq_check_attr(struct kdapl_ia *ia, const DAT_SRQ_ATTR *attr)
{
	DAT_IA_ATTR *limits = kzalloc(sizeof(*limits), GFP_KERNEL);
	DAT_RETURN ret = DAT_SUCCESS;

	if (!limits)
		return kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	kdapl_ia_limits(ia, limits);
	if (!limits->max_srqs)
		ret = kdapl_err(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	else if (attr->max_recv_dtos <= 0 || attr->max_recv_dtos > limits->max_recv_per_srq ||
		 attr->max_recv_iov <= 0 ||
		 attr->max_recv_iov > limits->max_iov_segments_per_dto ||
		 attr->low_watermark < 0 || attr->low_watermark > attr->max_recv_dtos)
		ret = kdapl_arg_err(3);
	kfree(limits);
	if (ret == DAT_SUCCESS && attr->max_recv_iov > ia->dev->attrs.max_srq_sge) {
		pr_info("%s: no SRQ with %d segments per buffer: the device takes %d\n",
			ia->name, attr->max_recv_iov, ia->dev->attrs.max_srq_sge);
		ret = kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ);
	}
	return ret;
}

static DAT_RETURN srq_pool_ret(long err)
{
	return kdapl_err(DAT_INSUFFICIENT_RESOURCES,
			 err == -ENOMEM ? DAT_RESOURCE_MEMORY : DAT_RESOURCE_SRQ);
}

/* Everything is checked. Inside kdapl_dev_enter(). */
static DAT_RETURN srq_make(struct kdapl_pz *pz, const DAT_SRQ_ATTR *attr, DAT_SRQ_HANDLE *handle)
{
	DAT_RETURN ret = kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	struct kdapl_pool *pool;
	struct kdapl_srq *srq;
	int err;

	srq = kzalloc(sizeof(*srq), GFP_KERNEL);
	if (!srq)
		return ret;
	if (kdapl_obj_use(&pz->obj)) {
		kfree(srq);
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	}
	srq->pz = pz;
	srq->pz_handle = pz->obj.handle;
	srq->max_recv_iov = attr->max_recv_iov;
	mutex_init(&srq->mutex);
	INIT_WORK(&srq->low_work, srq_low_work);
	kdapl_obj_init(&srq->obj, DAT_HANDLE_TYPE_SRQ, pz->obj.ia, &srq_ops);
	pool = pool_create(srq, attr->max_recv_dtos);
	if (IS_ERR(pool)) {
		kdapl_obj_unuse(&pz->obj);
		kdapl_obj_put(&srq->obj);
		return srq_pool_ret(PTR_ERR(pool));
	}
	rcu_assign_pointer(srq->pool, pool);
	err = kdapl_obj_publish(&srq->obj);
	if (err) {
		kdapl_srq_destroy(srq);
		return kdapl_publish_ret(err);
	}
	*handle = srq->obj.handle;
	if (attr->low_watermark)
		dat_srq_set_lw(srq->obj.handle, attr->low_watermark);
	kdapl_obj_put(&srq->obj);
	return DAT_SUCCESS;
}

/**
 * dat_srq_create - create a Shared Receive Queue
 * @ia_handle: IA
 * @pz_handle: PZ of the LMRs its buffers are made of
 * @srq_attr: buffers, segments of one, low watermark. A low watermark other
 *	than DAT_SRQ_LW_DEFAULT is above the empty queue: its event comes at once
 * @srq_handle: where the handle goes
 *
 * The SRQ is empty, in the state OPERATIONAL, and used by no EP.
 *
 * Context: may sleep.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE (IA, PZ); DAT_INVALID_PARAMETER
 * (attributes, NULL pointers); DAT_MODEL_NOT_SUPPORTED (the device has no
 * SRQs); DAT_INSUFFICIENT_RESOURCES (subtype SRQ, also for more segments than
 * the device takes in an SRQ, or MEMORY); DAT_INTERNAL_ERROR (device removed).
 */
DAT_RETURN dat_srq_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
			  DAT_SRQ_ATTR *srq_attr, DAT_SRQ_HANDLE *srq_handle)
{
	struct kdapl_ia *ia = kdapl_obj_get(ia_handle, DAT_HANDLE_TYPE_IA);
	struct kdapl_pz *pz = NULL;
	DAT_SRQ_ATTR attr;
	DAT_RETURN ret;

	if (!ia)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	pz = kdapl_obj_get(pz_handle, DAT_HANDLE_TYPE_PZ);
	ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	if (!pz || pz->obj.ia != ia)
		goto out;
	ret = kdapl_arg_err(3);
	if (!srq_attr)
		goto out;
	ret = kdapl_arg_err(4);
	if (!srq_handle)
		goto out;
	attr = *srq_attr;
	ret = srq_check_attr(ia, &attr);
	if (ret != DAT_SUCCESS)
		goto out;
	ret = kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	if (!kdapl_dev_enter(ia->dev))
		goto out;
	ret = srq_make(pz, &attr, srq_handle);
	kdapl_dev_exit(ia->dev);
out:
	if (pz)
		kdapl_obj_put(&pz->obj);
	kdapl_obj_put(&ia->obj);
	return ret;
}
EXPORT_SYMBOL(dat_srq_create);

/* Take completions off the CQs, so that the counts are of now. RCU read side. */
static void pool_drain_cqs(struct kdapl_pool *pool)
{
	struct kdapl_conn *conn;

	list_for_each_entry_rcu(conn, &pool->conns, pool_node)
		kdapl_wq_drain_cq(conn->rq);
}

/**
 * dat_srq_query - read the parameters of an SRQ
 * @srq_handle: SRQ
 * @srq_param_mask: DAT_SRQ_FIELD_* bits of the members wanted; 0 is legal
 * @srq_param: filled entirely. available_dto_count: buffers waiting for
 *	messages; outstanding_dto_count: those, and the filled ones whose events
 *	the consumer does not have yet
 *
 * A snapshot. The device is looked at first if the counts are asked for.
 *
 * Context: any.
 * Return: DAT_SUCCESS, DAT_INVALID_HANDLE, or DAT_INVALID_PARAMETER (undefined
 * mask bit, NULL @srq_param with a mask).
 */
DAT_RETURN dat_srq_query(DAT_SRQ_HANDLE srq_handle, DAT_SRQ_PARAM_MASK srq_param_mask,
			 DAT_SRQ_PARAM *srq_param)
{
	struct kdapl_srq *srq = kdapl_obj_get(srq_handle, DAT_HANDLE_TYPE_SRQ);
	struct kdapl_pool *pool;
	unsigned long flags;
	DAT_RETURN ret;

	if (!srq)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	ret = kdapl_query_check(srq_param_mask, DAT_SRQ_FIELD_ALL, srq_param);
	if (ret != DAT_SUCCESS || !srq_param)
		goto out;
	srq_param->ia_handle = srq->obj.ia->obj.handle;
	srq_param->pz_handle = srq->pz_handle;
	srq_param->max_recv_iov = srq->max_recv_iov;
	rcu_read_lock();
	pool = rcu_dereference(srq->pool);
	if (!pool) {
		ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
		goto out_unlock;
	}
	if (srq_param_mask & (DAT_SRQ_FIELD_AVAILABLE_DTO_COUNT |
			      DAT_SRQ_FIELD_OUTSTANDING_DTO_COUNT))
		pool_drain_cqs(pool);
	spin_lock_irqsave(&pool->lock, flags);
	srq_param->srq_state = pool->error ? DAT_SRQ_STATE_ERROR : DAT_SRQ_STATE_OPERATIONAL;
	srq_param->max_recv_dtos = pool->limit;
	srq_param->low_watermark = pool->low;
	srq_param->available_dto_count = pool->available;
	srq_param->outstanding_dto_count = pool_outstanding(pool);
	spin_unlock_irqrestore(&pool->lock, flags);
out_unlock:
	rcu_read_unlock();
out:
	kdapl_obj_put(&srq->obj);
	return ret;
}
EXPORT_SYMBOL(dat_srq_query);

/*
 * Put a pool of another size into the place of one that nothing is posted to.
 * srq->mutex held. False: something is.
 */
static bool srq_swap_pool(struct kdapl_srq *srq, struct kdapl_pool *old, struct kdapl_pool *fresh)
{
	bool idle;

	spin_lock_irq(&old->lock);
	idle = !old->outstanding;
	if (idle) {
		fresh->low = old->low;
		fresh->low_armed = old->low_armed;
		old->low_armed = false;
		old->srq = NULL;
		old->replaced = true;	/* posting calls look again */
		rcu_assign_pointer(srq->pool, fresh);
	}
	spin_unlock_irq(&old->lock);
	return idle;
}

static DAT_RETURN srq_resize(struct kdapl_srq *srq, u32 limit)
{
	struct kdapl_pool *pool = rcu_dereference_protected(srq->pool,
							    lockdep_is_held(&srq->mutex));
	struct kdapl_pool *fresh;
	DAT_RETURN ret = DAT_SUCCESS;
	bool fits;

	spin_lock_irq(&pool->lock);
	fits = limit + pool_spare(limit) <= pool->entries || limit <= pool->limit;
	if (limit < pool_outstanding(pool) || limit < pool->low)
		ret = kdapl_err(DAT_INVALID_STATE, pool->error ? DAT_INVALID_STATE_SRQ_ERROR :
						   DAT_INVALID_STATE_SRQ_OPERATIONAL);
	else if (fits)
		pool->limit = limit;
	spin_unlock_irq(&pool->lock);
	if (ret != DAT_SUCCESS || fits)
		return ret;
	/* The pool of EPs does not change under them. */
	if (refcount_read(&pool->ref) > 1)
		return kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ);
	fresh = pool_create(srq, limit);
	if (IS_ERR(fresh))
		return srq_pool_ret(PTR_ERR(fresh));
	if (!srq_swap_pool(srq, pool, fresh)) {
		kdapl_pool_put(fresh);
		return kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ);
	}
	kdapl_pool_put(pool);
	return DAT_SUCCESS;
}

/**
 * dat_srq_resize - change how many buffers an SRQ takes
 * @srq_handle: SRQ in any state
 * @srq_max_recv_dto: buffers that may be outstanding
 *
 * No buffer and no message is lost. Shrinking changes only the limit. Growing
 * works to the size the native queue was rounded up to, and beyond it while no
 * EP uses the SRQ and nothing is posted to it.
 *
 * Context: may sleep; legal in upcalls that run in process context.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE; DAT_INVALID_PARAMETER (not positive,
 * beyond max_recv_per_srq); DAT_INVALID_STATE (less than are outstanding, or
 * than the low watermark); DAT_INSUFFICIENT_RESOURCES (subtype SRQ: cannot grow
 * now; MEMORY); DAT_INTERNAL_ERROR (device removed). After an error nothing has
 * changed.
 */
DAT_RETURN dat_srq_resize(DAT_SRQ_HANDLE srq_handle, DAT_COUNT srq_max_recv_dto)
{
	struct kdapl_srq *srq = kdapl_obj_get(srq_handle, DAT_HANDLE_TYPE_SRQ);
	unsigned int noio;
	DAT_SRQ_ATTR attr;
	DAT_RETURN ret;

	if (!srq)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	attr = (DAT_SRQ_ATTR) {
		.max_recv_dtos = srq_max_recv_dto,
		.max_recv_iov = srq->max_recv_iov,
	};
	ret = srq_check_attr(srq->obj.ia, &attr);
	if (DAT_GET_TYPE(ret) == DAT_INVALID_PARAMETER)
		ret = kdapl_arg_err(2);
	if (ret != DAT_SUCCESS)
		goto out;
	ret = kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	if (!kdapl_dev_enter(srq->obj.ia->dev))
		goto out;
	noio = memalloc_noio_save();	/* dat_ep_reset() takes the mutex (D-32) */
	mutex_lock(&srq->mutex);
	if (READ_ONCE(srq->obj.live))
		ret = srq_resize(srq, srq_max_recv_dto);
	else
		ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	mutex_unlock(&srq->mutex);
	memalloc_noio_restore(noio);
	kdapl_dev_exit(srq->obj.ia->dev);
out:
	kdapl_obj_put(&srq->obj);
	return ret;
}
EXPORT_SYMBOL(dat_srq_resize);

/**
 * dat_srq_set_lw - set and arm the low watermark
 * @srq_handle: SRQ in any state
 * @low_watermark: buffers, at most max_recv_dtos of the SRQ; 0 disables
 *
 * The first time fewer buffers than that wait for messages, one asynchronous
 * event DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR with the SRQ's handle and
 * reason DAT_SRQ_LOW_WATERMARK_EVENT is queued; possibly during the call. It
 * comes once for each call of this function.
 *
 * Context: any.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE; DAT_INVALID_PARAMETER (negative, or
 * more than max_recv_dtos); DAT_INTERNAL_ERROR (device removed).
 */
DAT_RETURN dat_srq_set_lw(DAT_SRQ_HANDLE srq_handle, DAT_COUNT low_watermark)
{
	struct kdapl_srq *srq = kdapl_obj_get(srq_handle, DAT_HANDLE_TYPE_SRQ);
	DAT_RETURN ret = DAT_SUCCESS;
	struct kdapl_conn *conn;
	struct kdapl_pool *pool;
	unsigned long flags;

	if (!srq)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	rcu_read_lock();
again:
	pool = rcu_dereference(srq->pool);
	if (!pool) {
		ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
		goto out;
	}
	spin_lock_irqsave(&pool->lock, flags);
	if (pool->replaced) {
		spin_unlock_irqrestore(&pool->lock, flags);
		goto again;
	}
	if (low_watermark < 0 || low_watermark > pool->limit) {
		ret = kdapl_arg_err(2);
	} else if (READ_ONCE(srq->obj.ia->dead)) {
		ret = kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	} else {
		pool->low = low_watermark;
		WRITE_ONCE(pool->low_armed, low_watermark > 0);
		pool_check_low(pool);
	}
	spin_unlock_irqrestore(&pool->lock, flags);
	if (ret == DAT_SUCCESS) {
		list_for_each_entry_rcu(conn, &pool->conns, pool_node)
			kdapl_evd_watch(conn);
	}
out:
	rcu_read_unlock();
	kdapl_obj_put(&srq->obj);
	return ret;
}
EXPORT_SYMBOL(dat_srq_set_lw);

/**
 * dat_srq_free - destroy a Shared Receive Queue
 * @srq_handle: SRQ in any state that no EP uses
 *
 * Buffers still posted are the consumer's again, without completions.
 *
 * Context: may sleep.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE; DAT_INVALID_STATE (subtype
 * SRQ_IN_USE: an EP of it exists).
 */
DAT_RETURN dat_srq_free(DAT_SRQ_HANDLE srq_handle)
{
	struct kdapl_srq *srq = kdapl_obj_get(srq_handle, DAT_HANDLE_TYPE_SRQ);
	DAT_RETURN ret;

	if (!srq)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	ret = kdapl_retire_ret(kdapl_obj_retire(&srq->obj), DAT_INVALID_STATE_SRQ_IN_USE,
			       DAT_INVALID_HANDLE_SRQ);
	if (ret == DAT_SUCCESS)
		kdapl_srq_destroy(srq);
	kdapl_obj_put(&srq->obj);
	return ret;
}
EXPORT_SYMBOL(dat_srq_free);
