// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The completion queues of an EVD.
 *
 * An EVD that carries DTO or RMR streams owns a list of CQs, normally one. A CQ is sized by the
 * work queues attached to it, not by the consumer's queue length, so it cannot overrun: a work
 * queue that does not fit gets another CQ. Each is several times as large as all before it
 * together, so that many EPs share a few CQs and the cost of polling and arming does not grow
 * with the number of EPs (D-93).
 */
#include <linux/slab.h>

#include "event.h"

#define CQ_MIN_ENTRIES	64	/* a device takes a page for fewer, too */
#define CQ_GROWTH	3	/* entries of a new CQ for each existing one */

static void cq_comp(struct ib_cq *ibcq, void *context)
{
	struct kdapl_cq *cq = context;
	struct kdapl_evd *evd;

	/* Some providers call with their CQ lock held: only schedule. */
	rcu_read_lock();
	evd = rcu_dereference(cq->evd);
	if (evd)
		kdapl_evd_sched(evd);
	rcu_read_unlock();
}

static void cq_event(struct ib_event *event, void *context)
{
	struct kdapl_cq *cq = context;
	struct kdapl_evd *evd = kdapl_cq_evd_get(cq);

	WRITE_ONCE(cq->failed, true);	/* attach no other work queue */
	pr_err_ratelimited("%s: CQ error (%s): completions of an EVD are lost, disconnect and reset its EPs\n",
			   cq->dev->name, ib_event_msg(event->event));
	if (evd) {
		if (evd->discard)	/* the consumer has no handle of it */
			kdapl_ia_async(evd->obj.ia, evd->obj.ia->obj.handle,
				       DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR,
				       DAT_IA_OTHER_ERROR);
		else
			kdapl_ia_async(evd->obj.ia, evd->obj.handle, DAT_ASYNC_ERROR_EVD_OVERFLOW,
				       DAT_EVD_OVERFLOW_ERROR);
		kdapl_obj_put(&evd->obj);
	}
}

/* Give the CQ back to the device: first make sure that it is polled no more. */
static void cq_destroy(struct kdapl_res *res)
{
	struct kdapl_cq *cq = container_of(res, struct kdapl_cq, res);
	struct kdapl_evd *evd = kdapl_cq_evd_get(cq);
	struct ib_cq *ibcq = cq->ibcq;

	if (evd) {
		kdapl_evd_lock_irq(evd);
		cq->ibcq = NULL;
		spin_unlock_irq(&evd->lock);
		kdapl_obj_put(&evd->obj);
	}
	cq->ibcq = NULL;
	ib_destroy_cq(ibcq);
}

static struct kdapl_cq *cq_create(struct kdapl_evd *evd, int size)
{
	static atomic_t vector = ATOMIC_INIT(0);
	struct kdapl_device *dev = evd->obj.ia->dev;
	struct ib_cq_init_attr attr = { .cqe = size };
	struct kdapl_cq *cq;

	cq = kzalloc(sizeof(*cq), GFP_KERNEL);
	if (!cq)
		return ERR_PTR(-ENOMEM);
	cq->dev = dev;
	refcount_set(&cq->ref, 1);
	RCU_INIT_POINTER(cq->evd, evd);
	attr.comp_vector = evd->vector != KDAT_EVD_VECTOR_ANY ? evd->vector :
			   atomic_inc_return(&vector) & INT_MAX;
	attr.comp_vector %= max(dev->ibdev->num_comp_vectors, 1);
	cq->ibcq = __ib_create_cq(dev->ibdev, cq_comp, cq_event, cq, &attr,
				  evd->obj.ia->consumer);
	if (IS_ERR(cq->ibcq)) {
		int err = PTR_ERR(cq->ibcq);

		kfree(cq);
		return ERR_PTR(kdapl_create_errno(err));
	}
	cq->size = size;
	refcount_inc(&dev->ref);
	kdapl_res_add(dev, &cq->res, KDAPL_RES_CQ, cq_destroy);
	return cq;
}

/**
 * kdapl_cq_put - drop a reference; the last one destroys the CQ
 * @cq: the CQ
 *
 * Context: may sleep.
 */
void kdapl_cq_put(struct kdapl_cq *cq)
{
	struct kdapl_device *dev = cq->dev;

	if (!refcount_dec_and_test(&cq->ref))
		return;
	kdapl_res_release(dev, &cq->res);
	kfree_rcu(cq, rcu);
	kdapl_device_put(dev);
}

/**
 * kdapl_cq_evd_get - the EVD of a CQ, unless it has been freed
 * @cq: the CQ
 *
 * Return: the EVD, to be put, or NULL.
 */
struct kdapl_evd *kdapl_cq_evd_get(struct kdapl_cq *cq)
{
	struct kdapl_evd *evd;

	rcu_read_lock();
	evd = rcu_dereference(cq->evd);
	if (evd && !refcount_inc_not_zero(&evd->obj.ref))
		evd = NULL;
	rcu_read_unlock();
	return evd;
}

/*
 * Entries of a new CQ: room for both work queues of an EP that needs @entries, for the length the
 * consumer asked for, and for many more EPs than there are. evd->mutex held.
 */
static int cq_size(struct kdapl_evd *evd, int entries)
{
	u64 size = max3((u64)entries * 2, kdapl_evd_expected(evd), (u64)CQ_MIN_ENTRIES);
	const struct kdapl_cq *cq;
	u64 existing = 0;

	kdapl_evd_lock_irq(evd);	/* polling reorders the list */
	list_for_each_entry(cq, &evd->cqs, evd_node)
		existing += cq->used ? cq->size : 0;
	spin_unlock_irq(&evd->lock);
	size = max(size, existing * CQ_GROWTH);
	return clamp_t(u64, size, entries, evd->obj.ia->dev->attrs.max_cqe);
}

/* The CQ to keep: the largest that has not failed; among equals, an unused one. */
static const struct kdapl_cq *cq_best(const struct kdapl_evd *evd)
{
	const struct kdapl_cq *cq, *best = NULL;

	list_for_each_entry(cq, &evd->cqs, evd_node) {
		if (READ_ONCE(cq->failed))
			continue;
		if (!best || cq->size > best->size || (cq->size == best->size && !cq->used))
			best = cq;
	}
	return best;
}

/**
 * kdapl_evd_unlink_cqs - take unused CQs off an EVD
 * @evd: the EVD; evd->mutex held
 * @keep: leave one that the next work queue can use
 * @unused: where they go
 *
 * Polling and arming look at each CQ of the list.
 */
void kdapl_evd_unlink_cqs(struct kdapl_evd *evd, bool keep, struct list_head *unused)
{
	const struct kdapl_cq *best;
	struct kdapl_cq *cq, *next;

	kdapl_evd_lock_irq(evd);
	best = keep ? cq_best(evd) : NULL;
	list_for_each_entry_safe(cq, next, &evd->cqs, evd_node) {
		if (cq->used || cq == best)
			continue;
		RCU_INIT_POINTER(cq->evd, NULL);
		list_move(&cq->evd_node, unused);
	}
	spin_unlock_irq(&evd->lock);
}

/**
 * kdapl_evd_put_cqs - drop the EVD's references on CQs
 * @cqs: taken off their EVD
 *
 * A completion handler may use the EVD for another grace period, even when the EVD is freed,
 * so the EVD's memory stays that long (D-92).
 *
 * Context: may sleep.
 */
void kdapl_evd_put_cqs(struct list_head *cqs)
{
	struct kdapl_cq *cq, *next;

	list_for_each_entry_safe(cq, next, cqs, evd_node)
		kdapl_cq_put(cq);
}

/**
 * kdapl_evd_add_cq - give an EVD one more CQ
 * @evd: the EVD; evd->mutex held, or not published yet
 * @entries: completions it must have room for at least
 *
 * Context: may sleep; inside kdapl_dev_enter().
 * Return: the CQ or an ERR_PTR.
 */
struct kdapl_cq *kdapl_evd_add_cq(struct kdapl_evd *evd, int entries)
{
	int wanted = cq_size(evd, entries), size = wanted;
	struct kdapl_cq *cq;
	LIST_HEAD(unused);

	if (entries > evd->obj.ia->dev->attrs.max_cqe)
		return ERR_PTR(-ENOSPC);
	for (;;) {
		cq = cq_create(evd, size);
		if (!IS_ERR(cq))
			break;
		if (size > entries) {	/* the device may have room for a smaller one */
			size = max(entries, size / 2);
			continue;
		}
		/* the device may have no more CQs: free the ones that are too small */
		kdapl_evd_unlink_cqs(evd, false, &unused);
		if (list_empty(&unused))
			return cq;
		kdapl_evd_put_cqs(&unused);
		INIT_LIST_HEAD(&unused);
		size = wanted;
	}
	kdapl_evd_unlink_cqs(evd, false, &unused);	/* too small, or failed */
	kdapl_evd_lock_irq(evd);
	list_add(&cq->evd_node, &evd->cqs);
	spin_unlock_irq(&evd->lock);
	kdapl_evd_put_cqs(&unused);
	return cq;
}

/**
 * kdapl_evd_find_cq - a CQ with room for more completions, an existing or a new one
 * @evd: the EVD; evd->mutex held
 * @entries: completions
 *
 * Context: may sleep; inside kdapl_dev_enter().
 * Return: the CQ or an ERR_PTR.
 */
struct kdapl_cq *kdapl_evd_find_cq(struct kdapl_evd *evd, int entries)
{
	struct kdapl_cq *cq, *found = NULL;

	kdapl_evd_lock_irq(evd);	/* polling reorders the list */
	list_for_each_entry(cq, &evd->cqs, evd_node) {
		if (READ_ONCE(cq->failed))
			continue;
		/* the largest one, so that the small ones become unused in time */
		if (cq->size - cq->used >= entries && (!found || cq->size > found->size))
			found = cq;
	}
	spin_unlock_irq(&evd->lock);
	return found ?: kdapl_evd_add_cq(evd, entries);
}
