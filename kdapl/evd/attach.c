// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Attaching work queues to an EVD: which may complete there together, and the room that is
 * reserved for their completions, on a CQ and in the backlog.
 */
#include <linux/slab.h>

#include "event.h"

/* The completion flags of a connection in this direction; constant. */
static DAT_COMPLETION_FLAGS attach_attr(const struct kdapl_conn *conn, bool recv)
{
	return recv ? conn->attr.recv_completion_flags : conn->attr.request_completion_flags;
}

/* Does the connection that is to be replaced complete here in this direction? */
static bool attach_replaced(const struct kdapl_evd *evd, const struct kdapl_conn *old, bool recv)
{
	return old && (recv ? old->recv_evd : old->request_evd) == evd;
}

/* How many work queues are attached in this direction, without that of the connection @old? */
static unsigned int attach_others(const struct kdapl_evd *evd, const struct kdapl_conn *old,
				  bool recv)
{
	return evd->attached[recv] - attach_replaced(evd, old, recv);
}

/* Of those, how many have these completion flags? */
static unsigned int attach_others_with(const struct kdapl_evd *evd, const struct kdapl_conn *old,
				       bool recv, DAT_COMPLETION_FLAGS attr)
{
	return evd->attached_with[recv][attr] -
	       (attach_replaced(evd, old, recv) && attach_attr(old, recv) == attr);
}

/*
 * May work queues with these completion flags feed this EVD? (FLAG-15..17) A connection and the one
 * that is to replace it are both attached until it is known which of them stays. Until then both
 * keep out what does not go with them. evd->mutex held.
 */
static bool attach_accepts(const struct kdapl_evd *evd, const struct kdapl_conn *old, bool recv,
			   DAT_COMPLETION_FLAGS attr)
{
	const DAT_COMPLETION_FLAGS wait = DAT_COMPLETION_SOLICITED_WAIT_FLAG;

	if (evd->discard)
		return true;
	if (attr != DAT_COMPLETION_DEFAULT_FLAG && (evd->flags & ~KDAPL_EVD_CQ_FLAGS))
		return false;
	/* requests and binds are other streams, but only attached ones count */
	if (attr == wait && attach_others(evd, old, false))
		return false;
	if (!recv && attach_others_with(evd, old, true, wait))
		return false;
	return attach_others(evd, old, recv) == attach_others_with(evd, old, recv, attr);
}

/* Count a work queue that comes (1) or goes (-1). evd->mutex and evd->lock held. */
static void attach_count(struct kdapl_evd *evd, const struct kdapl_wq *wq, int n)
{
	const unsigned int *receives = evd->attached_with[1];

	evd->attached[wq->recv] += n;
	evd->attached_with[wq->recv][attach_attr(wq->conn, wq->recv)] += n;
	/*
	 * Only if all may wait. A device that ignores the solicited bit of messages must notify
	 * every time (D-01).
	 */
	evd->solicited = !evd->discard && !evd->obj.ia->dev->caps.no_solicited &&
			 !evd->attached[0] && evd->attached[1] &&
			 receives[DAT_COMPLETION_SOLICITED_WAIT_FLAG] == evd->attached[1];
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
 * @old: connection that its connection is to replace, or NULL
 *
 * Context: may sleep; inside kdapl_dev_enter().
 * Return: the CQ to complete on, referenced, or an ERR_PTR: -EINVAL if the completion flags do
 * not match those of work queues that are attached already; -ENOMEM; -ENOSPC if the device has no
 * room for the completions.
 */
struct kdapl_cq *kdapl_evd_attach(struct kdapl_evd *evd, struct kdapl_wq *wq,
				  const struct kdapl_conn *old)
{
	struct kdapl_cq *cq;

	mutex_lock(&evd->mutex);
	if (!attach_accepts(evd, old, wq->recv, attach_attr(wq->conn, wq->recv)))
		cq = ERR_PTR(-EINVAL);
	else if (wq->recv && wq->conn->pool)
		cq = attach_reserve_shared(evd, wq->conn->pool);
	else
		cq = attach_reserve(evd, attach_completions(wq));
	if (IS_ERR(cq))
		goto out;
	refcount_inc(&cq->ref);
	kdapl_evd_lock_irq(evd);
	attach_count(evd, wq, 1);
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
	struct attach_share *share = NULL;
	int entries = attach_completions(wq);
	LIST_HEAD(unused);

	mutex_lock(&evd->mutex);
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
	attach_count(evd, wq, -1);
	spin_unlock_irq(&evd->lock);
	if (!wq->cq->used)
		kdapl_evd_unlink_cqs(evd, true, &unused);
	mutex_unlock(&evd->mutex);
	kdapl_evd_put_cqs(&unused);
	if (entries)
		kfree(share);
}
