// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Attaching work queues to an EVD: which may complete there together, and the room that is
 * reserved for their completions, on a CQ and in the backlog.
 */
#include <linux/slab.h>

#include "event.h"

/* Does the connection that is to be replaced complete here in this direction? */
static bool attach_replaced(const struct kdapl_evd *evd, const struct kdapl_conn *old, bool recv)
{
	return old && (recv ? old->recv_evd : old->request_evd) == evd;
}

/* May work queues with these completion flags feed this EVD? (FLAG-15..17) evd->mutex held. */
static bool attach_accepts(struct kdapl_evd *evd, const struct kdapl_conn *old, bool recv,
			   DAT_COMPLETION_FLAGS attr)
{
	unsigned int attached[2];

	attached[0] = evd->attached[0] - attach_replaced(evd, old, false);
	attached[1] = evd->attached[1] - attach_replaced(evd, old, true);
	if (evd->discard)
		return true;
	if (attr != DAT_COMPLETION_DEFAULT_FLAG && (evd->flags & ~KDAPL_EVD_CQ_FLAGS))
		return false;
	/* requests and binds are other streams, but only attached ones count */
	if (attr == DAT_COMPLETION_SOLICITED_WAIT_FLAG && attached[0])
		return false;
	if (!recv && attached[1] && evd->attr[1] == DAT_COMPLETION_SOLICITED_WAIT_FLAG)
		return false;
	return !attached[recv] || evd->attr[recv] == attr;
}

/* evd->lock held. */
static void attach_set_attr(struct kdapl_evd *evd, bool recv, DAT_COMPLETION_FLAGS attr)
{
	evd->attr[recv] = attr;
	/* A device that ignores the solicited bit of messages must notify every time (D-01). */
	evd->solicited = !evd->discard && evd->attached[1] &&
			 !evd->obj.ia->dev->caps.no_solicited &&
			 evd->attr[1] == DAT_COMPLETION_SOLICITED_WAIT_FLAG;
}

/*
 * EPs that take their Receives from one SRQ and complete on this EVD share a CQ and a part of
 * the backlog, since a buffer can complete only once. When their CQ has failed, EPs that are
 * attached later share another one.
 */
struct attach_share {
	struct list_head node;
	struct kdapl_pool *pool;
	struct kdapl_cq *cq;
	unsigned int users;
};

/* The share on @cq or, if that is NULL, on a CQ that has not failed. */
static struct attach_share *attach_find_share(struct kdapl_evd *evd,
					      const struct kdapl_pool *pool,
					      const struct kdapl_cq *cq)
{
	struct attach_share *share;

	list_for_each_entry(share, &evd->shares, node) {
		if (share->pool == pool &&
		    (cq ? share->cq == cq : !READ_ONCE(share->cq->failed)))
			return share;
	}
	return NULL;
}

/* Completions that one work queue or one SRQ can have on a CQ at once. */
static int attach_completions(const struct kdapl_wq *wq)
{
	if (!wq->recv)
		return wq->max_wrs + KDAPL_OWN_WRS;
	return wq->conn->pool ? wq->conn->pool->entries : wq->max_wrs;
}

/* Reserve room for completions, on a CQ and in the backlog. */
static struct kdapl_cq *attach_reserve(struct kdapl_evd *evd, int entries)
{
	struct kdapl_cq *cq;
	int ret;

	ret = kdapl_evd_grow_backlog(evd, evd->qlen, entries);
	if (ret)
		return ERR_PTR(ret);
	cq = kdapl_evd_find_cq(evd, entries);
	if (IS_ERR(cq))
		return cq;
	cq->used += entries;
	kdapl_evd_lock_irq(evd);
	evd->reserve += entries;
	spin_unlock_irq(&evd->lock);
	return cq;
}

static struct kdapl_cq *attach_reserve_shared(struct kdapl_evd *evd, struct kdapl_pool *pool)
{
	struct attach_share *share = attach_find_share(evd, pool, NULL);
	struct kdapl_cq *cq;

	if (share) {
		share->users++;
		return share->cq;
	}
	share = kzalloc(sizeof(*share), GFP_KERNEL);
	if (!share)
		return ERR_PTR(-ENOMEM);
	cq = attach_reserve(evd, pool->entries);
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
 * kdapl_evd_attach - attach a work queue to an EVD
 * @evd: the EVD, used by the EP
 * @wq: the work queue
 * @attr: completion flags attribute of the EP for that direction
 *
 * Context: may sleep; inside kdapl_dev_enter().
 * Return: the CQ to complete on, referenced, or an ERR_PTR: -EINVAL if the completion flags do
 * not match those of work queues that are attached already; -ENOMEM; -ENOSPC if the device has no
 * room for the completions.
 */
struct kdapl_cq *kdapl_evd_attach(struct kdapl_evd *evd, struct kdapl_wq *wq,
				  DAT_COMPLETION_FLAGS attr)
{
	struct kdapl_cq *cq;

	mutex_lock(&evd->mutex);
	if (!attach_accepts(evd, wq->conn->replaces, wq->recv, attr))
		cq = ERR_PTR(-EINVAL);
	else if (wq->recv && wq->conn->pool)
		cq = attach_reserve_shared(evd, wq->conn->pool);
	else
		cq = attach_reserve(evd, attach_completions(wq));
	if (IS_ERR(cq))
		goto out;
	refcount_inc(&cq->ref);
	kdapl_evd_lock_irq(evd);
	evd->attached[wq->recv]++;
	attach_set_attr(evd, wq->recv, attr);
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
	struct attach_share *share = NULL;
	int entries = attach_completions(wq);
	DAT_COMPLETION_FLAGS attr;
	LIST_HEAD(unused);

	mutex_lock(&evd->mutex);
	attr = evd->attr[wq->recv];
	if (wq->recv && wq->conn->pool) {
		share = attach_find_share(evd, wq->conn->pool, wq->cq);
		if (--share->users)
			entries = 0;
		else
			list_del(&share->node);
	}
	wq->cq->used -= entries;
	kdapl_evd_lock_irq(evd);
	evd->reserve -= entries;
	evd->attached[wq->recv]--;
	/* the new connection could not be made: the old one stays */
	if (attach_replaced(evd, old, wq->recv))
		attr = wq->recv ? old->attr.recv_completion_flags :
				  old->attr.request_completion_flags;
	attach_set_attr(evd, wq->recv, attr);
	spin_unlock_irq(&evd->lock);
	if (!wq->cq->used)
		kdapl_evd_unlink_cqs(evd, true, &unused);
	mutex_unlock(&evd->mutex);
	kdapl_evd_put_cqs(&unused);
	if (entries)
		kfree(share);
}
