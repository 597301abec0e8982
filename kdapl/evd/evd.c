// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Event Dispatchers: create, query, free, and the completion queues behind
 * them. What happens to events is in evd_poll.c, who is told in evd_upcall.c.
 *
 * An EVD that carries DTO or RMR streams owns a list of CQs, normally one. The
 * CQ is sized by what is attached, not by the consumer's queue length, so it
 * cannot overrun: an EP queue that does not fit brings another CQ. Each is several
 * times as large as all before it together, so that many EPs share a few CQs, and
 * what polling and arming cost does not grow with the number of EPs (D-93).
 * Completions that must be taken off a CQ before the consumer asks for them go into
 * the EVD's backlog, which grows with every attached queue for the same reason.
 */
#include <linux/export.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "evd.h"

#define EVD_FLAGS_ALL	(DAT_EVD_DEFAULT_FLAG | DAT_EVD_SOFTWARE_FLAG)
#define EVD_FLAGS_CQ	(DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG)
#define EVD_FLAGS_SOFTIRQ (EVD_FLAGS_CQ | DAT_EVD_SOFTWARE_FLAG)

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

/*
 * Give them back. A completion handler may still look at the EVD for a grace period, also when
 * the EVD is freed: its memory stays for as long (D-92).
 */
static void evd_put_cqs(struct list_head *cqs)
{
	struct kdapl_cq *cq, *next;

	list_for_each_entry_safe(cq, next, cqs, evd_node)
		kdapl_cq_put(cq);
}

/* Another CQ, with room for @slots at least. evd->mutex held. */
static struct kdapl_cq *evd_add_cq(struct kdapl_evd *evd, int slots)
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
		evd_put_cqs(&unused);
		INIT_LIST_HEAD(&unused);
		size = wanted;
	}
	evd_unlink_unused(evd, false, &unused);		/* too small, or failed */
	spin_lock_irq(&evd->lock);
	list_add(&cq->evd_node, &evd->cqs);
	spin_unlock_irq(&evd->lock);
	evd_put_cqs(&unused);
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
	return found ?: evd_add_cq(evd, slots);
}

static struct kdapl_event *evd_alloc_backlog(u32 size)
{
	/* the device may allow lengths that the machine has no memory for */
	return kvmalloc_array(size, sizeof(struct kdapl_event),
			      GFP_KERNEL | __GFP_NOWARN | __GFP_RETRY_MAYFAIL);
}

/*
 * Make room for a queue length and @more further parked completions. The store
 * has a share for events of other streams (qlen and one), one that drains for
 * the sake of posters may fill (qlen + reserve), and one for connections that end
 * (reserve). evd->mutex held.
 */
static int evd_grow_backlog(struct kdapl_evd *evd, u32 qlen, u32 more)
{
	u32 need = 2 * qlen + 1 + 2 * (evd->reserve + more);
	/* by so much that many EPs on one EVD do not make it a copy each */
	u32 size = max(need, evd->backlog_size + evd->backlog_size / 2);
	struct kdapl_event *slots, *old;
	u32 i;

	if (need <= evd->backlog_size)
		return 0;
	slots = evd_alloc_backlog(size);
	if (!slots) {
		size = need;
		slots = evd_alloc_backlog(size);
	}
	if (!slots)
		return -ENOMEM;
	spin_lock_irq(&evd->lock);
	for (i = 0; i < evd->backlog_count; i++)
		slots[i] = evd->slots[(evd->backlog_head + i) % evd->backlog_size];
	old = evd->slots;
	evd->slots = slots;
	evd->backlog_head = 0;
	evd->backlog_size = size;
	spin_unlock_irq(&evd->lock);
	kvfree(old);
	return 0;
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

	ret = evd_grow_backlog(evd, evd->qlen, slots);
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
	evd_put_cqs(&unused);
	if (slots)
		kfree(share);
}

/* What kdapl_obj_get() returns is used as the object itself. */
static_assert(!offsetof(struct kdapl_evd, obj));

static void evd_release(struct kdapl_obj *obj)
{
	struct kdapl_evd *evd = container_of(obj, struct kdapl_evd, obj);

	kfree_rcu(evd, obj.rcu);
}

static void evd_async_event(struct kdapl_obj *obj, struct kdapl_ia *ia, DAT_HANDLE handle,
			    u32 number, DAT_COUNT reason)
{
	struct kdapl_event ev = { .number = number, .signalled = true };

	ev.data.asynch_error_event_data.dat_handle = handle;
	ev.data.asynch_error_event_data.reason = reason;
	kdapl_evd_queue_async(container_of(obj, struct kdapl_evd, obj), ia, &ev);
}

static const struct kdapl_obj_ops evd_ops = {
	.release = evd_release,
	.async_event = evd_async_event,
};

/**
 * kdapl_evd_create - make an EVD, without a handle yet
 * @ia: owner
 * @qlen: events of connection, CR, async and software streams it can hold
 * @policy: anything but DAT_UPCALL_TEARDOWN
 * @upcall: copied; may be NULL with DAT_UPCALL_DISABLE
 * @flags: streams
 * @attr: checked; NULL for the defaults
 * @ret: DAT_RETURN of a failure
 *
 * Context: may sleep; inside kdapl_dev_enter().
 * Return: the EVD or NULL.
 */
struct kdapl_evd *kdapl_evd_create(struct kdapl_ia *ia, DAT_COUNT qlen, DAT_UPCALL_POLICY policy,
				   const DAT_UPCALL_OBJECT *upcall, DAT_EVD_FLAGS flags,
				   const struct kdat_evd_attr *attr, DAT_RETURN *ret)
{
	static const struct kdat_evd_attr defaults = KDAT_EVD_ATTR_INIT;
	struct kdapl_evd *evd;
	int err;

	*ret = kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	evd = kzalloc(sizeof(*evd), GFP_KERNEL);
	if (!evd)
		return NULL;
	kdapl_obj_init(&evd->obj, DAT_HANDLE_TYPE_EVD, ia, &evd_ops);
	evd->flags = flags;
	attr = attr ?: &defaults;
	evd->softirq = attr->context == KDAT_EVD_CONTEXT_DEFAULT ?
		       !(flags & ~EVD_FLAGS_CQ) : attr->context == KDAT_EVD_CONTEXT_SOFTIRQ;
	evd->vector = attr->comp_vector;
	evd->qlen = qlen;
	evd->policy = policy;
	kdapl_evd_set_default_policy(evd);
	if (upcall)
		evd->upcall = *upcall;
	mutex_init(&evd->mutex);
	spin_lock_init(&evd->lock);
	INIT_LIST_HEAD(&evd->ready);
	INIT_LIST_HEAD(&evd->cqs);
	INIT_LIST_HEAD(&evd->shares);
	kdapl_evd_engine_init(evd);
	if (policy == DAT_UPCALL_MANY)
		kdapl_evd_make_helpers(evd);

	err = evd_grow_backlog(evd, qlen, 0);
	if (!err && (flags & EVD_FLAGS_CQ))
		err = PTR_ERR_OR_ZERO(evd_add_cq(evd, 1));
	if (err) {
		if (err != -ENOMEM)
			*ret = kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEVD);
		kdapl_evd_destroy(evd);
		return NULL;
	}
	return evd;
}

/* Nobody who found the EVD when it was still there looks at it any more. */
static void evd_work_gone(struct work_struct *work)
{
	struct kdapl_evd *evd = container_of(to_rcu_work(work), struct kdapl_evd, gone_work);

	kdapl_evd_engine_stop(evd);
	kdapl_obj_put(&evd->obj);
}

/**
 * kdapl_evd_destroy - stop upcalls, free the CQs, drop the handle's reference
 * @evd: retired or never published, without users
 *
 * Context: may sleep, waits for a running upcall.
 */
void kdapl_evd_destroy(struct kdapl_evd *evd)
{
	struct kdapl_event *slots;
	struct kdapl_cq *cq;
	LIST_HEAD(cqs);

	mutex_lock(&evd->mutex);	/* calls that build something are through, or see it */
	spin_lock_irq(&evd->lock);
	evd->closing = true;
	kdapl_evd_set_default_policy(evd);
	slots = evd->slots;
	evd->slots = NULL;
	evd->backlog_size = 0;
	evd->backlog_count = 0;
	evd->backlog_signalled = 0;
	list_splice_init(&evd->cqs, &cqs);
	list_for_each_entry(cq, &cqs, evd_node)
		RCU_INIT_POINTER(cq->evd, NULL);
	evd->batch_pos = 0;
	evd->batch_n = 0;
	spin_unlock_irq(&evd->lock);
	mutex_unlock(&evd->mutex);
	kdapl_evd_wait_all(evd);	/* a runner that comes later sees that it is closing */
	kdapl_obj_gone(&evd->obj);
	kvfree(slots);
	evd_put_cqs(&cqs);
	/* a completion handler may be about to schedule it: nobody waits for that (D-92) */
	INIT_RCU_WORK(&evd->gone_work, evd_work_gone);
	queue_rcu_work(kdapl_reap_wq, &evd->gone_work);
}

/**
 * kdapl_evd_null - where completions go that no EVD was named for
 * @ia: the IA
 *
 * Context: may sleep; inside kdapl_dev_enter().
 * Return: the IA's null EVD, made at first use, or NULL.
 */
struct kdapl_evd *kdapl_evd_null(struct kdapl_ia *ia)
{
	unsigned int noio = memalloc_noio_save();	/* dat_ep_create() takes the mutex (D-32) */
	DAT_RETURN ret;

	mutex_lock(&ia->mutex);
	if (!ia->null_evd && !READ_ONCE(ia->closing)) {
		ia->null_evd = kdapl_evd_create(ia, 1, DAT_UPCALL_DISABLE, NULL,
						DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG, NULL,
						&ret);
		if (ia->null_evd) {
			ia->null_evd->discard = true;
			ia->null_evd->obj.live = true;	/* usable, though without handle */
		}
	}
	mutex_unlock(&ia->mutex);
	memalloc_noio_restore(noio);
	return ia->null_evd;
}

static bool evd_attr_valid(const struct kdat_evd_attr *attr, DAT_EVD_FLAGS flags)
{
	if (!attr)
		return true;
	if (attr->comp_vector < KDAT_EVD_VECTOR_ANY)
		return false;
	switch (attr->context) {
	case KDAT_EVD_CONTEXT_DEFAULT:
	case KDAT_EVD_CONTEXT_WORKQUEUE:
		return true;
	case KDAT_EVD_CONTEXT_SOFTIRQ:
		return !(flags & ~EVD_FLAGS_SOFTIRQ);
	}
	return false;
}

/* What the calls that make an EVD have in common; @evd_handle is their argument @handle_arg. */
static DAT_RETURN evd_kcreate(DAT_IA_HANDLE ia_handle, DAT_COUNT evd_min_qlen,
			      DAT_UPCALL_POLICY upcall_policy, const DAT_UPCALL_OBJECT *upcall,
			      DAT_EVD_FLAGS evd_flags, const struct kdat_evd_attr *attr,
			      DAT_EVD_HANDLE *evd_handle, int handle_arg)
{
	struct kdapl_ia *ia = kdapl_obj_get(ia_handle, DAT_HANDLE_TYPE_IA);
	struct kdapl_evd *evd;
	unsigned int noio;
	DAT_RETURN ret;
	int err;

	if (!ia)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (evd_min_qlen <= 0) {
		ret = kdapl_arg_err(2);
		goto out;
	}
	switch (upcall_policy) {
	case DAT_UPCALL_DISABLE:
		break;
	case DAT_UPCALL_SINGLE_INSTANCE:
	case DAT_UPCALL_NORIFY:
	case DAT_UPCALL_MANY:
		if (!upcall || !upcall->upcall_func) {
			ret = kdapl_arg_err(4);
			goto out;
		}
		break;
	default:
		ret = kdapl_arg_err(3);
		goto out;
	}
	if (!evd_flags || (evd_flags & ~EVD_FLAGS_ALL)) {
		ret = kdapl_arg_err(5);
		goto out;
	}
	if (!evd_attr_valid(attr, evd_flags)) {
		ret = kdapl_arg_err(6);
		goto out;
	}
	if (!evd_handle) {
		ret = kdapl_arg_err(handle_arg);
		goto out;
	}
	if (evd_min_qlen > ia->dev->attrs.max_cqe) {
		ret = kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEVD);
		goto out;
	}
	if (!kdapl_dev_enter(ia->dev)) {
		ret = kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
		goto out;
	}
	noio = memalloc_noio_save();	/* some make all anew to connect again (D-32) */
	evd = kdapl_evd_create(ia, evd_min_qlen, upcall_policy, upcall, evd_flags, attr, &ret);
	if (evd) {
		ret = DAT_SUCCESS;
		err = kdapl_obj_publish(&evd->obj);
		if (err) {
			ret = kdapl_publish_ret(err);
			kdapl_evd_destroy(evd);
		} else {
			*evd_handle = evd->obj.handle;
			kdapl_obj_put(&evd->obj);
		}
	}
	memalloc_noio_restore(noio);
	kdapl_dev_exit(ia->dev);
out:
	kdapl_obj_put(&ia->obj);
	return ret;
}

/**
 * dat_evd_kcreate - create an Event Dispatcher
 * @ia_handle: IA
 * @evd_min_qlen: events it must hold at least; completions of DTOs are never
 *	lost, whatever the length
 * @upcall_policy: DAT_UPCALL_DISABLE (take events with dat_evd_dequeue()) or
 *	another one of dat_evd_modify_upcall(); not DAT_UPCALL_TEARDOWN
 * @upcall: copied; NULL or a NULL function only with DAT_UPCALL_DISABLE
 * @evd_flags: event streams that may feed the EVD, any combination
 * @evd_handle: where the handle goes
 *
 * The upcalls of an EVD with no other flags than DTO and RMR_BIND run in
 * softirq and must not sleep; those of every other EVD run in a workqueue and
 * may. kdat_evd_create() lets the consumer choose.
 *
 * Context: may sleep.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE (IA); DAT_INVALID_PARAMETER (length,
 * policy, upcall, flags, NULL @evd_handle); DAT_INSUFFICIENT_RESOURCES
 * (subtype TEVD: longer than max_evd_qlen or no CQ left; MEMORY);
 * DAT_INTERNAL_ERROR (device removed).
 */
DAT_RETURN dat_evd_kcreate(DAT_IA_HANDLE ia_handle, DAT_COUNT evd_min_qlen,
			   DAT_UPCALL_POLICY upcall_policy, const DAT_UPCALL_OBJECT *upcall,
			   DAT_EVD_FLAGS evd_flags, DAT_EVD_HANDLE *evd_handle)
{
	return evd_kcreate(ia_handle, evd_min_qlen, upcall_policy, upcall, evd_flags, NULL,
			   evd_handle, 6);
}
EXPORT_SYMBOL(dat_evd_kcreate);

/**
 * kdat_evd_create - dat_evd_kcreate() with a say in how the EVD is served
 * @ia_handle: IA
 * @evd_min_qlen: as there
 * @upcall_policy: as there
 * @upcall: as there
 * @evd_flags: as there
 * @attr: context of the upcalls and completion vector; NULL for the defaults
 * @evd_handle: where the handle goes
 *
 * As dat_evd_kcreate() else. An extension of this provider.
 *
 * Context: may sleep.
 * Return: as dat_evd_kcreate(); DAT_INVALID_PARAMETER (@attr: unknown context, a
 * softirq for streams other than DTO, RMR_BIND and SOFTWARE, or a negative
 * vector that is not KDAT_EVD_VECTOR_ANY).
 */
DAT_RETURN kdat_evd_create(DAT_IA_HANDLE ia_handle, DAT_COUNT evd_min_qlen,
			   DAT_UPCALL_POLICY upcall_policy, const DAT_UPCALL_OBJECT *upcall,
			   DAT_EVD_FLAGS evd_flags, const struct kdat_evd_attr *attr,
			   DAT_EVD_HANDLE *evd_handle)
{
	return evd_kcreate(ia_handle, evd_min_qlen, upcall_policy, upcall, evd_flags, attr,
			   evd_handle, 7);
}
EXPORT_SYMBOL(kdat_evd_create);

/**
 * dat_evd_query - read the parameters of an EVD
 * @evd_handle: EVD
 * @evd_param_mask: DAT_EVD_FIELD_* bits of the members wanted; 0 is legal
 * @evd_param: filled entirely
 *
 * Policy and upcall are those in force; after DAT_UPCALL_TEARDOWN the policy is
 * DAT_UPCALL_DISABLE.
 *
 * Context: any.
 * Return: DAT_SUCCESS, DAT_INVALID_HANDLE, or DAT_INVALID_PARAMETER (undefined
 * mask bit, NULL @evd_param with a mask).
 */
DAT_RETURN dat_evd_query(DAT_EVD_HANDLE evd_handle, DAT_EVD_PARAM_MASK evd_param_mask,
			 DAT_EVD_PARAM *evd_param)
{
	struct kdapl_evd *evd = kdapl_obj_get(evd_handle, DAT_HANDLE_TYPE_EVD);
	DAT_RETURN ret;
	unsigned long flags;

	if (!evd)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	ret = kdapl_query_check(evd_param_mask, DAT_EVD_FIELD_ALL, evd_param);
	if (ret == DAT_SUCCESS && evd_param) {
		spin_lock_irqsave(&evd->lock, flags);
		evd_param->ia_handle = evd->obj.ia->obj.handle;
		evd_param->evd_qlen = evd->qlen;
		evd_param->upcall_policy = evd->policy;
		evd_param->upcall = evd->upcall;
		evd_param->evd_flags = evd->flags;
		spin_unlock_irqrestore(&evd->lock, flags);
	}
	kdapl_obj_put(&evd->obj);
	return ret;
}
EXPORT_SYMBOL(dat_evd_query);

/* evd->mutex held. */
static DAT_RETURN evd_set_qlen(struct kdapl_evd *evd, int qlen)
{
	int old = evd->qlen;
	bool fits;

	if (evd_grow_backlog(evd, qlen, 0))
		return kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	spin_lock_irq(&evd->lock);
	evd->qlen = max(old, qlen);
	spin_unlock_irq(&evd->lock);
	kdapl_evd_retire(evd);	/* what is on the CQs counts, as far as there is room */
	spin_lock_irq(&evd->lock);
	fits = evd->backlog_count <= qlen;
	evd->qlen = fits ? qlen : old;
	evd->overflow &= evd->backlog_others >= evd->qlen;
	spin_unlock_irq(&evd->lock);
	return fits ? DAT_SUCCESS : kdapl_err(DAT_INVALID_STATE, DAT_NO_SUBTYPE);
}

/**
 * dat_evd_resize - change the length of an EVD
 * @evd_handle: EVD
 * @evd_min_qlen: events it must hold at least
 *
 * No event is lost, whether it is queued or arrives meanwhile. Service points
 * refuse requests by the new length from then on.
 *
 * Context: may take mutexes; legal in upcalls that run in process context.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE; DAT_INVALID_PARAMETER (not positive,
 * or longer than max_evd_qlen); DAT_INVALID_STATE (more events than that are
 * queued); DAT_INSUFFICIENT_RESOURCES (MEMORY). After an error nothing has
 * changed.
 */
DAT_RETURN dat_evd_resize(DAT_EVD_HANDLE evd_handle, DAT_COUNT evd_min_qlen)
{
	struct kdapl_evd *evd = kdapl_obj_get(evd_handle, DAT_HANDLE_TYPE_EVD);
	unsigned int noio;
	DAT_RETURN ret;

	if (!evd)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	if (evd_min_qlen <= 0 || evd_min_qlen > evd->obj.ia->dev->attrs.max_cqe) {
		ret = kdapl_arg_err(2);
	} else {
		noio = memalloc_noio_save();	/* dat_ep_reset() takes the mutex (D-32) */
		mutex_lock(&evd->mutex);
		if (evd->closing)
			ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
		else if (evd_min_qlen == evd->qlen)
			ret = DAT_SUCCESS;
		else
			ret = evd_set_qlen(evd, evd_min_qlen);
		mutex_unlock(&evd->mutex);
		memalloc_noio_restore(noio);
	}
	kdapl_obj_put(&evd->obj);
	return ret;
}
EXPORT_SYMBOL(dat_evd_resize);

/**
 * dat_evd_post_se - queue a software event
 * @evd_handle: EVD with the SOFTWARE flag
 * @event: event_number must be DAT_SOFTWARE_EVENT; the pointer of
 *	software_event_data is handed on, evd_handle is not looked at
 *
 * The event is copied and starts an upcall like any signalled one. Events that
 * one context posts are delivered in that order. Works after the removal of the
 * device, too.
 *
 * Context: any, hard interrupts included.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE; DAT_INVALID_PARAMETER (the EVD has
 * no SOFTWARE flag, NULL @event, another event number); DAT_QUEUE_FULL (as many
 * events of other streams than DTO and RMR are queued as the EVD is long).
 */
DAT_RETURN dat_evd_post_se(DAT_EVD_HANDLE evd_handle, const DAT_EVENT *event)
{
	struct kdapl_event ev = { .number = DAT_SOFTWARE_EVENT, .signalled = true };
	DAT_RETURN ret = DAT_SUCCESS;
	struct kdapl_evd *evd;

	rcu_read_lock();
	evd = kdapl_handle_peek(evd_handle, DAT_HANDLE_TYPE_EVD);
	if (!evd) {
		ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	} else if (!(evd->flags & DAT_EVD_SOFTWARE_FLAG)) {
		ret = kdapl_arg_err(1);
	} else if (!event || event->event_number != DAT_SOFTWARE_EVENT) {
		ret = kdapl_arg_err(2);
	} else {
		ev.data.software_event_data = event->event_data.software_event_data;
		if (!kdapl_evd_queue(evd, &ev))
			ret = READ_ONCE(evd->closing) ?
			      kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1) :
			      kdapl_err(DAT_QUEUE_FULL, DAT_NO_SUBTYPE);
	}
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_evd_post_se);

/* There is no event. evd->lock held. */
static DAT_RETURN evd_empty(struct kdapl_evd *evd)
{
	if (evd->async_dead && evd->flags == DAT_EVD_ASYNC_FLAG)
		return kdapl_err(DAT_INVALID_STATE, DAT_NO_SUBTYPE);
	return kdapl_err(DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE);
}

/*
 * Returns true when it must be asked again: only silent completions so far, and
 * not yet as many as could be there when the consumer called.
 */
static bool evd_dequeue(struct kdapl_evd *evd, DAT_EVENT *event, u32 *looked, DAT_RETURN *ret)
{
	bool sched, again = false;
	enum kdapl_next next;
	unsigned long flags;
	u32 silent;

	spin_lock_irqsave(&evd->lock, flags);
	silent = evd->silent;
	next = kdapl_evd_fast(evd, event);
	if (next == KDAPL_NEXT_SLOW && kdapl_evd_take(evd, &evd->scratch)) {
		kdapl_event_fill(evd, &evd->scratch, event);
		kdapl_event_release(&evd->scratch);
		next = KDAPL_NEXT_FAST;
	}
	if (likely(next == KDAPL_NEXT_FAST)) {
		/* there is room now for what the engine counts */
		sched = evd->watching;
		*ret = DAT_SUCCESS;
	} else {
		*looked += evd->silent - silent;
		again = evd->again && *looked < kdapl_evd_depth(evd);
		/* the consumer of DAT_UPCALL_NOTIFY wants to be told of the next one */
		sched = evd->notified && !again;
		if (sched)
			evd->notified = false;
		*ret = evd_empty(evd);
	}
	spin_unlock_irqrestore(&evd->lock, flags);
	if (unlikely(sched))
		kdapl_evd_sched(evd);
	return again;
}

/*
 * Store by store: compilers make "rep stos" of a memset() of this size, which takes longer
 * to start (10 ns and more) than the eight stores take.
 */
static __always_inline void event_clear_extension(DAT_EVENT *event)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(event->event_extension_data); i++)
		WRITE_ONCE(event->event_extension_data[i], 0);
}

/**
 * dat_evd_dequeue - take the oldest event
 * @evd_handle: EVD
 * @event: filled with the event
 *
 * Legal under every upcall policy and inside the EVD's own upcall; each event
 * is delivered exactly once.
 *
 * Context: any.
 * Return: DAT_SUCCESS; DAT_QUEUE_EMPTY; DAT_INVALID_HANDLE;
 * DAT_INVALID_PARAMETER (NULL @event); DAT_INVALID_STATE (no event, and no
 * more will come: an EVD for the asynchronous stream alone was full).
 */
DAT_RETURN dat_evd_dequeue(DAT_EVD_HANDLE evd_handle, DAT_EVENT *event)
{
	struct kdapl_evd *evd;
	DAT_RETURN ret;
	u32 looked = 0;

	rcu_read_lock();
	evd = kdapl_handle_peek(evd_handle, DAT_HANDLE_TYPE_EVD);
	if (unlikely(!evd)) {
		ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	} else if (unlikely(!event)) {
		ret = kdapl_arg_err(2);
	} else {
		event_clear_extension(event);
		while (evd_dequeue(evd, event, &looked, &ret))
			;
	}
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_evd_dequeue);

/**
 * dat_evd_free - destroy an EVD
 * @evd_handle: EVD that no EP, service point or IA uses
 *
 * Events still queued are lost. Returns after the last upcall has returned.
 *
 * Context: may sleep; not inside an upcall of this EVD.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE; DAT_INVALID_STATE (subtype
 * EVD_IN_USE: something feeds it, or the call comes from its own upcall).
 */
DAT_RETURN dat_evd_free(DAT_EVD_HANDLE evd_handle)
{
	struct kdapl_evd *evd = kdapl_obj_get(evd_handle, DAT_HANDLE_TYPE_EVD);
	unsigned int noio;
	DAT_RETURN ret;
	int err;

	if (!evd)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	err = kdapl_evd_inside_upcall(evd) ? -EBUSY : kdapl_obj_retire(&evd->obj);
	if (!err) {
		noio = memalloc_noio_save();	/* some make all anew to connect again (D-32) */
		kdapl_evd_destroy(evd);
		memalloc_noio_restore(noio);
	}
	ret = kdapl_retire_ret(err, DAT_INVALID_STATE_EVD_IN_USE, DAT_INVALID_HANDLE1);
	kdapl_obj_put(&evd->obj);
	return ret;
}
EXPORT_SYMBOL(dat_evd_free);
