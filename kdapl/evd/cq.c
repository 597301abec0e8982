// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The completion queues of an EVD, and what it promises to those that complete there.
 *
 * An EVD that carries DTO or RMR streams owns a list of CQs, normally one. The
 * CQ is sized by what is attached, not by the consumer's queue length, so it
 * cannot overrun: an EP queue that does not fit brings another CQ. Each is several
 * times as large as all before it together, so that many EPs share a few CQs, and
 * what polling and arming cost does not grow with the number of EPs (D-93).
 * Completions that must be taken off a CQ before the consumer asks for them go into
 * the EVD's backlog, which grows with every attached queue for the same reason.
 */
#include <linux/slab.h>

#include "evd.h"

#define EVD_FLAGS_CQ	(DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG)

#define CQ_MIN_ENTRIES	64	/* a device takes a page for fewer, too */
#define CQ_GROWTH	3	/* entries of a new CQ for each one there is */

static void kdapl_cq_comp(struct ib_cq *ibcq, void *context)
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

static void kdapl_cq_event(struct ib_event *event, void *context)
{
	struct kdapl_cq *cq = context;
	struct kdapl_evd *evd = kdapl_cq_evd_get(cq);

	WRITE_ONCE(cq->failed, true);	/* nobody else is to complete there */
	pr_err_ratelimited("%s: CQ error (%s): completions of an EVD are lost, disconnect and reset its EPs\n",
			   cq->dev->name, ib_event_msg(event->event));
	if (evd) {
		kdapl_ia_async(evd->obj.ia, evd->obj.handle, DAT_ASYNC_ERROR_EVD_OVERFLOW,
			       DAT_EVD_OVERFLOW_ERROR);
		kdapl_obj_put(&evd->obj);
	}
}

/* Nobody polls it any more. */
static void cq_destroy(struct kdapl_res *res)
{
	struct kdapl_cq *cq = container_of(res, struct kdapl_cq, res);
	struct kdapl_evd *evd = kdapl_cq_evd_get(cq);
	struct ib_cq *ibcq = cq->ibcq;

	if (evd) {
		spin_lock_irq(&evd->lock);
		cq->ibcq = NULL;
		spin_unlock_irq(&evd->lock);
		kdapl_obj_put(&evd->obj);
	}
	cq->ibcq = NULL;
	ib_destroy_cq(ibcq);
}

static struct kdapl_cq *kdapl_cq_create(struct kdapl_evd *evd, int size)
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
	cq->ibcq = __ib_create_cq(dev->ibdev, kdapl_cq_comp, kdapl_cq_event, cq, &attr,
				  evd->obj.ia->consumer);
	if (IS_ERR(cq->ibcq)) {
		int err = PTR_ERR(cq->ibcq);

		kfree(cq);
		return ERR_PTR(err);
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
 * Entries of a CQ that @slots completions need: for the other queue of an EP as well, for
 * what the consumer expects, and for many more EPs than there are. evd->mutex held.
 */
static int evd_cq_size(struct kdapl_evd *evd, int slots)
{
	u64 size = max3((u64)slots * 2, (u64)evd->qlen, (u64)CQ_MIN_ENTRIES);
	const struct kdapl_cq *cq;
	u64 there = 0;

	spin_lock_irq(&evd->lock);	/* polling reorders the list */
	list_for_each_entry(cq, &evd->cqs, evd_node)
		there += cq->used ? cq->size : 0;
	spin_unlock_irq(&evd->lock);
	size = max(size, there * CQ_GROWTH);
	return clamp_t(u64, size, slots, evd->obj.ia->dev->attrs.max_cqe);
}

/* The CQ that stays when nobody completes on any: the largest good one, of equals an unused one. */
static const struct kdapl_cq *evd_best_cq(const struct kdapl_evd *evd)
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

/*
 * Take the CQs off the EVD that nobody completes on any more, but for one that will be used
 * next, if @keep. Each of them costs all events of the EVD a look. evd->mutex held.
 */
static void evd_unlink_unused(struct kdapl_evd *evd, bool keep, struct list_head *unused)
{
	const struct kdapl_cq *best;
	struct kdapl_cq *cq, *next;

	spin_lock_irq(&evd->lock);
	best = keep ? evd_best_cq(evd) : NULL;
	list_for_each_entry_safe(cq, next, &evd->cqs, evd_node) {
		if (cq->used || cq == best)
			continue;
		RCU_INIT_POINTER(cq->evd, NULL);
		list_move(&cq->evd_node, unused);
	}
	spin_unlock_irq(&evd->lock);
}

/**
 * kdapl_evd_put_cqs - give CQs back
 * @cqs: taken off their EVD
 *
 * A completion handler may still look at the EVD for a grace period, also when the EVD is
 * freed: its memory stays for as long (D-92).
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
 * kdapl_evd_add_cq - one more CQ for an EVD
 * @evd: the EVD; evd->mutex held, or nobody knows it yet
 * @slots: completions it must have room for at least
 *
 * Context: may sleep; inside kdapl_dev_enter().
 * Return: the CQ or an ERR_PTR.
 */
struct kdapl_cq *kdapl_evd_add_cq(struct kdapl_evd *evd, int slots)
{
	int wanted = evd_cq_size(evd, slots), size = wanted;
	struct kdapl_cq *cq;
	LIST_HEAD(unused);

	if (slots > evd->obj.ia->dev->attrs.max_cqe)
		return ERR_PTR(-ENOSPC);
	for (;;) {
		cq = kdapl_cq_create(evd, size);
		if (!IS_ERR(cq))
			break;
		if (size > slots) {	/* what is there may not be in one piece */
			size = max(slots, size / 2);
			continue;
		}
		/* the device may have no more CQs: is there one that is too small? */
		evd_unlink_unused(evd, false, &unused);
		if (list_empty(&unused))
			return cq;
		kdapl_evd_put_cqs(&unused);
		INIT_LIST_HEAD(&unused);
		size = wanted;
	}
	evd_unlink_unused(evd, false, &unused);		/* too small, or failed */
	spin_lock_irq(&evd->lock);
	list_add(&cq->evd_node, &evd->cqs);
	spin_unlock_irq(&evd->lock);
	kdapl_evd_put_cqs(&unused);
	return cq;
}

/* A CQ with room for @slots more, an old or a new one. evd->mutex held. */
static struct kdapl_cq *evd_find_cq(struct kdapl_evd *evd, int slots)
{
	struct kdapl_cq *cq, *found = NULL;

	spin_lock_irq(&evd->lock);	/* polling reorders the list */
	list_for_each_entry(cq, &evd->cqs, evd_node) {
		if (READ_ONCE(cq->failed))
			continue;
		/* in the largest one, so that the small ones are used no more some day */
		if (cq->size - cq->used >= slots && (!found || cq->size > found->size))
			found = cq;
	}
	spin_unlock_irq(&evd->lock);
	return found ?: kdapl_evd_add_cq(evd, slots);
}

/* Does the connection that is about to be replaced complete here in this direction? */
static bool evd_replaced(const struct kdapl_evd *evd, const struct kdapl_conn *old, bool recv)
{
	return old && (recv ? old->recv_evd : old->request_evd) == evd;
}

/* FLAG-15..17: which completion flags may feed this EVD. evd->mutex held. */
static bool evd_accepts(struct kdapl_evd *evd, const struct kdapl_conn *old, bool recv,
			DAT_COMPLETION_FLAGS attr)
{
	unsigned int attached[2];

	attached[0] = evd->attached[0] - evd_replaced(evd, old, false);
	attached[1] = evd->attached[1] - evd_replaced(evd, old, true);
	if (evd->discard)
		return true;
	if (attr != DAT_COMPLETION_DEFAULT_FLAG && (evd->flags & ~EVD_FLAGS_CQ))
		return false;
	/* requests and binds are other streams; that the EVD could have some is no harm */
	if (attr == DAT_COMPLETION_SOLICITED_WAIT_FLAG && attached[0])
		return false;
	if (!recv && attached[1] && evd->attr[1] == DAT_COMPLETION_SOLICITED_WAIT_FLAG)
		return false;
	return !attached[recv] || evd->attr[recv] == attr;
}

/* evd->lock held. */
static void evd_set_attr(struct kdapl_evd *evd, bool recv, DAT_COMPLETION_FLAGS attr)
{
	evd->attr[recv] = attr;
	/* A receiver that ignores the solicited bit must notify every time (D-01). */
	evd->solicited = !evd->discard && evd->attached[1] &&
			 !evd->obj.ia->dev->caps.no_solicited &&
			 evd->attr[1] == DAT_COMPLETION_SOLICITED_WAIT_FLAG;
}

/*
 * All EPs that take their Receives from one SRQ and complete on this EVD share
 * a CQ and a part of the backlog: a buffer can be in one place only. When their CQ
 * has failed, those that come later share another one.
 */
struct evd_share {
	struct list_head node;
	struct kdapl_pool *pool;
	struct kdapl_cq *cq;
	unsigned int users;
};

/* Of those on @cq or, if that is NULL, on one that can take more. */
static struct evd_share *evd_find_share(struct kdapl_evd *evd, const struct kdapl_pool *pool,
					const struct kdapl_cq *cq)
{
	struct evd_share *share;

	list_for_each_entry(share, &evd->shares, node) {
		if (share->pool == pool &&
		    (cq ? share->cq == cq : !READ_ONCE(share->cq->failed)))
			return share;
	}
	return NULL;
}

/* Completions that can be there at once, of one work queue or of one SRQ. */
static int wq_completions(const struct kdapl_wq *wq)
{
	if (!wq->recv)
		return wq->slots + KDAPL_OWN_WRS;
	return wq->conn->pool ? wq->conn->pool->entries : wq->slots;
}

/* Room for the completions of a work queue or an SRQ, in a CQ and in the backlog. */
static struct kdapl_cq *evd_promise(struct kdapl_evd *evd, int slots)
{
	struct kdapl_cq *cq;
	int ret;

	ret = kdapl_evd_grow_backlog(evd, evd->qlen, slots);
	if (ret)
		return ERR_PTR(ret);
	cq = evd_find_cq(evd, slots);
	if (IS_ERR(cq))
		return cq;
	cq->used += slots;
	spin_lock_irq(&evd->lock);
	evd->reserve += slots;
	spin_unlock_irq(&evd->lock);
	return cq;
}

static struct kdapl_cq *evd_promise_shared(struct kdapl_evd *evd, struct kdapl_pool *pool)
{
	struct evd_share *share = evd_find_share(evd, pool, NULL);
	struct kdapl_cq *cq;

	if (share) {
		share->users++;
		return share->cq;
	}
	share = kzalloc(sizeof(*share), GFP_KERNEL);
	if (!share)
		return ERR_PTR(-ENOMEM);
	cq = evd_promise(evd, pool->entries);
	if (IS_ERR(cq)) {
		kfree(share);
		return cq;
	}
	share->pool = pool;
	share->cq = cq;
	share->users = 1;
	list_add(&share->node, &evd->shares);
	return cq;
}

/**
 * kdapl_evd_attach - an EP queue starts to complete on an EVD
 * @evd: the EVD, used by the EP
 * @wq: the queue
 * @attr: completion flags attribute of the EP for that direction
 *
 * Context: may sleep; inside kdapl_dev_enter().
 * Return: the CQ to complete on, referenced; -EBADRQC when the completion
 * flags do not go together with what the EVD already carries; another errno.
 */
struct kdapl_cq *kdapl_evd_attach(struct kdapl_evd *evd, struct kdapl_wq *wq,
				  DAT_COMPLETION_FLAGS attr)
{
	struct kdapl_cq *cq;

	mutex_lock(&evd->mutex);
	if (!evd_accepts(evd, wq->conn->replaces, wq->recv, attr))
		cq = ERR_PTR(-EBADRQC);		/* which no provider returns */
	else if (wq->recv && wq->conn->pool)
		cq = evd_promise_shared(evd, wq->conn->pool);
	else
		cq = evd_promise(evd, wq_completions(wq));
	if (IS_ERR(cq))
		goto out;
	refcount_inc(&cq->ref);
	spin_lock_irq(&evd->lock);
	evd->attached[wq->recv]++;
	evd_set_attr(evd, wq->recv, attr);
	spin_unlock_irq(&evd->lock);
out:
	mutex_unlock(&evd->mutex);
	if (!IS_ERR(cq))
		kdapl_evd_sched(evd);	/* arms the CQ */
	return cq;
}

/**
 * kdapl_evd_detach - undo kdapl_evd_attach()
 * @evd: the EVD
 * @wq: as attached; its reference on the CQ stays
 *
 * Context: may sleep.
 */
void kdapl_evd_detach(struct kdapl_evd *evd, struct kdapl_wq *wq)
{
	const struct kdapl_conn *old = wq->conn->replaces;
	struct evd_share *share = NULL;
	int slots = wq_completions(wq);
	DAT_COMPLETION_FLAGS attr;
	LIST_HEAD(unused);

	mutex_lock(&evd->mutex);
	attr = evd->attr[wq->recv];
	if (wq->recv && wq->conn->pool) {
		share = evd_find_share(evd, wq->conn->pool, wq->cq);
		if (--share->users)
			slots = 0;
		else
			list_del(&share->node);
	}
	wq->cq->used -= slots;
	spin_lock_irq(&evd->lock);
	evd->reserve -= slots;
	evd->attached[wq->recv]--;
	/* it could not be made: the connection it was to replace stays */
	if (evd_replaced(evd, old, wq->recv))
		attr = wq->recv ? old->attr.recv_completion_flags :
				    old->attr.request_completion_flags;
	evd_set_attr(evd, wq->recv, attr);
	spin_unlock_irq(&evd->lock);
	if (!wq->cq->used)
		evd_unlink_unused(evd, true, &unused);
	mutex_unlock(&evd->mutex);
	kdapl_evd_put_cqs(&unused);
	if (slots)
		kfree(share);
}
