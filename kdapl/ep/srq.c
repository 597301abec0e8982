// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Shared Receive Queues: create, query, resize, watermark, free. Their buffers are
 * in evd/pool.c, posting is in post_srq.c, and their completions are taken in evd/wc.c.
 */
#include <linux/export.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "ep.h"

/* The low watermark of the pool was set or has fired. RCU read side. */
static void srq_watch(struct kdapl_pool *pool)
{
	struct kdapl_conn *conn;

	list_for_each_entry_rcu(conn, &pool->conns, pool_node)
		kdapl_evd_watch(conn);
}

static void srq_low_work(struct work_struct *work)
{
	struct kdapl_srq *srq = container_of(work, struct kdapl_srq, low_work);
	struct kdapl_pool *pool;

	while (atomic_dec_if_positive(&srq->low_fired) >= 0) {
		if (READ_ONCE(srq->obj.live))
			kdapl_ia_async(srq->obj.ia, srq->obj.handle,
				       DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR,
				       DAT_SRQ_LOW_WATERMARK_EVENT);
	}
	rcu_read_lock();
	pool = rcu_dereference(srq->pool);
	if (pool)
		srq_watch(pool);
	rcu_read_unlock();
	kdapl_obj_put(&srq->obj);
}

/**
 * kdapl_srq_pool_get - the pool that new EPs of an SRQ take their buffers from
 * @srq: in use by the caller's EP, so that the pool is not replaced any more
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

KDAPL_OBJ_IS_FIRST(struct kdapl_srq);

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
	kdapl_pool_fail_all(pool);
	spin_lock_irq(&pool->lock);
	pool->srq = NULL;
	spin_unlock_irq(&pool->lock);
	kdapl_pool_put(pool);
	kdapl_obj_unuse(&srq->pz->obj);
	kdapl_obj_put(&srq->obj);
}

/*
 * -EINVAL: an attribute is invalid or beyond the limit of the IA; -EOPNOTSUPP: the device has no
 * SRQs; -ENOSPC: it has none with so many segments.
 */
static int srq_check_attr(struct kdapl_ia *ia, const DAT_SRQ_ATTR *attr)
{
	DAT_IA_ATTR *limits = kzalloc(sizeof(*limits), GFP_KERNEL);
	int ret = 0;

	if (!limits)
		return -ENOMEM;
	kdapl_ia_limits(ia, limits);
	if (!limits->max_srqs)
		ret = -EOPNOTSUPP;
	else if (attr->max_recv_dtos <= 0 || attr->max_recv_dtos > limits->max_recv_per_srq ||
		 attr->max_recv_iov <= 0 ||
		 attr->max_recv_iov > limits->max_iov_segments_per_dto ||
		 attr->low_watermark < 0 || attr->low_watermark > attr->max_recv_dtos)
		ret = -EINVAL;
	kfree(limits);
	if (!ret && attr->max_recv_iov > ia->dev->attrs.max_srq_sge) {
		pr_info("%s: no SRQ with %d segments per buffer: the device takes %d\n",
			ia->name, attr->max_recv_iov, ia->dev->attrs.max_srq_sge);
		ret = -ENOSPC;
	}
	return ret;
}

/* Everything is checked. Inside kdapl_dev_enter(). */
static int srq_make(struct kdapl_pz *pz, const DAT_SRQ_ATTR *attr, DAT_SRQ_HANDLE *handle)
{
	struct kdapl_pool *pool;
	struct kdapl_srq *srq;
	int ret;

	srq = kzalloc(sizeof(*srq), GFP_KERNEL);
	if (!srq)
		return -ENOMEM;
	ret = kdapl_obj_use(&pz->obj);
	if (ret) {
		kfree(srq);
		return ret;
	}
	srq->pz = pz;
	srq->pz_handle = pz->obj.handle;
	srq->max_recv_iov = attr->max_recv_iov;
	mutex_init(&srq->mutex);
	INIT_WORK(&srq->low_work, srq_low_work);
	kdapl_obj_init(&srq->obj, DAT_HANDLE_TYPE_SRQ, pz->obj.ia, &srq_ops);
	pool = kdapl_pool_create(srq, attr->max_recv_dtos, kdapl_buf_done);
	if (IS_ERR(pool)) {
		kdapl_obj_unuse(&pz->obj);
		kdapl_obj_put(&srq->obj);
		return PTR_ERR(pool);
	}
	rcu_assign_pointer(srq->pool, pool);
	ret = kdapl_obj_publish(&srq->obj);
	if (ret) {
		kdapl_srq_destroy(srq);
		return ret == -ENOSPC ? -ENOMEM : ret;	/* no handle is left */
	}
	*handle = srq->obj.handle;
	if (attr->low_watermark)
		dat_srq_set_lw(srq->obj.handle, attr->low_watermark);
	kdapl_obj_put(&srq->obj);
	return 0;
}

/* What creating and resizing return. @arg: the position of attributes or size. */
static DAT_RETURN srq_ret(int err, int arg)
{
	switch (err) {
	case 0:
		return DAT_SUCCESS;
	case -EINVAL:
		return kdapl_arg_err(arg);
	case -EOPNOTSUPP:
		return kdapl_err(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	case -ESTALE:
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	case -ESHUTDOWN:
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	case -EBUSY:
		return kdapl_err(DAT_INVALID_STATE, DAT_INVALID_STATE_SRQ_OPERATIONAL);
	case -EIO:
		return kdapl_err(DAT_INVALID_STATE, DAT_INVALID_STATE_SRQ_ERROR);
	case -ENOMEM:
		return kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	default:
		return kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ);
	}
}

/**
 * dat_srq_create - create a Shared Receive Queue
 * @ia_handle: IA
 * @pz_handle: PZ of the LMRs its buffers are made of
 * @srq_attr: buffers, segments of each, low watermark. The queue is empty, so the
 *	event of a low watermark other than DAT_SRQ_LW_DEFAULT comes at once
 * @srq_handle: where the handle goes
 *
 * The new SRQ is empty and in the state OPERATIONAL.
 *
 * Context: may sleep.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE (IA, PZ); DAT_INVALID_PARAMETER
 * (attributes, NULL pointers); DAT_MODEL_NOT_SUPPORTED (the device has no
 * SRQs); DAT_INSUFFICIENT_RESOURCES (subtype SRQ, also for more segments than
 * the device takes in an SRQ, or MEMORY); DAT_INTERNAL_ERROR (device removed).
 */
DAT_RETURN dat_srq_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
			  const DAT_SRQ_ATTR *srq_attr, DAT_SRQ_HANDLE *srq_handle)
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
	ret = srq_ret(srq_check_attr(ia, &attr), 3);
	if (ret != DAT_SUCCESS)
		goto out;
	ret = kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	if (!kdapl_dev_enter(ia->dev))
		goto out;
	ret = srq_ret(srq_make(pz, &attr, srq_handle), 3);
	kdapl_dev_exit(ia->dev);
out:
	if (pz)
		kdapl_obj_put(&pz->obj);
	kdapl_obj_put(&ia->obj);
	return ret;
}
EXPORT_SYMBOL(dat_srq_create);

/* Poll the CQs of all EPs of the pool, so that its counts are up to date. RCU read side. */
static void srq_poll_cqs(struct kdapl_pool *pool)
{
	struct kdapl_conn *conn;

	list_for_each_entry_rcu(conn, &pool->conns, pool_node)
		kdapl_wq_poll_cq(conn->rq);
}

/**
 * dat_srq_query - read the parameters of an SRQ
 * @srq_handle: SRQ
 * @srq_param_mask: DAT_SRQ_FIELD_* bits of the members wanted; 0 is legal
 * @srq_param: filled entirely. available_dto_count: buffers waiting for
 *	messages; outstanding_dto_count: the same, and filled buffers whose events
 *	the consumer does not have yet
 *
 * A snapshot. If the counts are asked for, completions are polled first.
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
		srq_poll_cqs(pool);
	spin_lock_irqsave(&pool->lock, flags);
	srq_param->srq_state = pool->error ? DAT_SRQ_STATE_ERROR : DAT_SRQ_STATE_OPERATIONAL;
	srq_param->max_recv_dtos = pool->limit;
	srq_param->low_watermark = pool->low;
	srq_param->available_dto_count = pool->available;
	srq_param->outstanding_dto_count = kdapl_pool_outstanding(pool);
	spin_unlock_irqrestore(&pool->lock, flags);
out_unlock:
	rcu_read_unlock();
out:
	kdapl_obj_put(&srq->obj);
	return ret;
}
EXPORT_SYMBOL(dat_srq_query);

/*
 * Replace a pool by one of another size. False: buffers are outstanding in the old one.
 * srq->mutex held.
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

/*
 * -EBUSY: more buffers are outstanding, or the low watermark is higher; -EIO: the same, and the
 * SRQ is in the state ERROR. srq->mutex held.
 */
static int srq_resize(struct kdapl_srq *srq, u32 limit)
{
	struct kdapl_pool *pool = rcu_dereference_protected(srq->pool,
							    lockdep_is_held(&srq->mutex));
	struct kdapl_pool *fresh;
	bool fits;
	int ret = 0;

	rcu_read_lock();
	srq_poll_cqs(pool);	/* counts buffers that were taken for upcalls */
	rcu_read_unlock();
	spin_lock_irq(&pool->lock);
	fits = limit + kdapl_pool_spare(limit) <= pool->entries || limit <= pool->limit;
	if (limit < kdapl_pool_outstanding(pool) || limit < pool->low)
		ret = pool->error ? -EIO : -EBUSY;
	else if (fits)
		pool->limit = limit;
	spin_unlock_irq(&pool->lock);
	if (ret || fits)
		return ret;
	/* EPs keep their pool, because a QP cannot be moved to another native SRQ */
	if (refcount_read(&pool->ref) > 1)
		return -ENOSPC;
	fresh = kdapl_pool_create(srq, limit, kdapl_buf_done);
	if (IS_ERR(fresh))
		return PTR_ERR(fresh);
	if (!srq_swap_pool(srq, pool, fresh)) {
		kdapl_pool_put(fresh);
		return -ENOSPC;
	}
	kdapl_pool_put(pool);
	return 0;
}

/**
 * dat_srq_resize - change how many buffers an SRQ takes
 * @srq_handle: SRQ in any state
 * @srq_max_recv_dto: buffers that may be outstanding
 *
 * No buffer and no message is lost. Shrinking changes the limit only. Growing works up
 * to the size that the native queue was rounded up to, and beyond that while no EP uses
 * the SRQ and nothing is posted to it.
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
	ret = srq_ret(srq_check_attr(srq->obj.ia, &attr), 2);
	if (ret != DAT_SUCCESS)
		goto out;
	ret = kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	if (!kdapl_dev_enter(srq->obj.ia->dev))
		goto out;
	noio = memalloc_noio_save();	/* dat_ep_reset() takes the mutex (D-32) */
	mutex_lock(&srq->mutex);
	if (READ_ONCE(srq->obj.live))
		ret = srq_ret(srq_resize(srq, srq_max_recv_dto), 2);
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
 * The first time that fewer buffers wait for messages, one asynchronous event
 * DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR with the SRQ's handle and reason
 * DAT_SRQ_LOW_WATERMARK_EVENT is queued, possibly during the call. The event comes once
 * for each call of this function.
 *
 * Context: any.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE; DAT_INVALID_PARAMETER (negative, or
 * more than max_recv_dtos); DAT_INTERNAL_ERROR (device removed).
 */
DAT_RETURN dat_srq_set_lw(DAT_SRQ_HANDLE srq_handle, DAT_COUNT low_watermark)
{
	struct kdapl_srq *srq = kdapl_obj_get(srq_handle, DAT_HANDLE_TYPE_SRQ);
	DAT_RETURN ret = DAT_SUCCESS;
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
		kdapl_pool_check_low(pool);
	}
	spin_unlock_irqrestore(&pool->lock, flags);
	if (ret == DAT_SUCCESS)
		srq_watch(pool);
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
 * Buffers that are still posted belong to the consumer again, without completions.
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
