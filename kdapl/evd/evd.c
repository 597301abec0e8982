// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The calls of Event Dispatchers: create, query, resize, post, dequeue, free.
 */
#include <linux/export.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "event.h"

#define EVD_FLAGS_ALL	(DAT_EVD_DEFAULT_FLAG | DAT_EVD_SOFTWARE_FLAG)
#define EVD_FLAGS_SOFTIRQ (KDAPL_EVD_CQ_FLAGS | DAT_EVD_SOFTWARE_FLAG)

KDAPL_OBJ_IS_FIRST(struct kdapl_evd);

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

/* With room for the completions that are to be expected, so as not to grow with each EP. */
static int evd_first_backlog(struct kdapl_evd *evd)
{
	u32 more = evd->flags & KDAPL_EVD_CQ_FLAGS ? kdapl_evd_expected(evd) : 0;

	return kdapl_evd_grow_backlog(evd, evd->qlen, more) ?
	       kdapl_evd_grow_backlog(evd, evd->qlen, 0) : 0;
}

/**
 * kdapl_evd_create - create an EVD, without a handle yet
 * @ia: owner
 * @qlen: events of connection, CR, async and software streams it can hold
 * @policy: anything but DAT_UPCALL_TEARDOWN
 * @upcall: copied; may be NULL with DAT_UPCALL_DISABLE
 * @flags: streams
 * @attr: checked; NULL for the defaults
 *
 * Context: may sleep; inside kdapl_dev_enter().
 * Return: the EVD; -ENOMEM; or -ENOSPC if the device gives it no CQ.
 */
struct kdapl_evd *kdapl_evd_create(struct kdapl_ia *ia, DAT_COUNT qlen, DAT_UPCALL_POLICY policy,
				   const DAT_UPCALL_OBJECT *upcall, DAT_EVD_FLAGS flags,
				   const struct kdat_evd_attr *attr)
{
	static const struct kdat_evd_attr defaults = KDAT_EVD_ATTR_INIT;
	struct kdapl_evd *evd;
	int err;

	evd = kzalloc(sizeof(*evd), GFP_KERNEL);
	if (!evd)
		return ERR_PTR(-ENOMEM);
	kdapl_obj_init(&evd->obj, DAT_HANDLE_TYPE_EVD, ia, &evd_ops);
	evd->flags = flags;
	attr = attr ?: &defaults;
	evd->softirq = attr->context == KDAT_EVD_CONTEXT_DEFAULT ?
		       !(flags & ~KDAPL_EVD_CQ_FLAGS) : attr->context == KDAT_EVD_CONTEXT_SOFTIRQ;
	evd->vector = attr->comp_vector;
	evd->qlen = qlen;
	evd->policy = policy;
	kdapl_evd_set_default_policy(evd);
	if (upcall)
		evd->upcall = *upcall;
	mutex_init(&evd->mutex);
	spin_lock_init(&evd->lock);
	evd->take = KDAPL_TAKE;
	INIT_LIST_HEAD(&evd->ready);
	INIT_LIST_HEAD(&evd->cqs);
	INIT_LIST_HEAD(&evd->shares);
	kdapl_evd_engine_init(evd);
	if (policy == DAT_UPCALL_MANY)
		kdapl_evd_make_helpers(evd);

	err = evd_first_backlog(evd);
	if (!err && (flags & KDAPL_EVD_CQ_FLAGS))
		err = PTR_ERR_OR_ZERO(kdapl_evd_add_cq(evd, 1));
	if (err) {
		kdapl_evd_destroy(evd);
		return ERR_PTR(err);
	}
	return evd;
}

static DAT_RETURN evd_create_ret(int err)
{
	if (!err)
		return DAT_SUCCESS;
	return kdapl_err(DAT_INSUFFICIENT_RESOURCES,
			 err == -ENOMEM ? DAT_RESOURCE_MEMORY : DAT_RESOURCE_TEVD);
}

/* A grace period later: no reader can use the EVD any more. */
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
	struct kdapl_event *backlog;
	struct kdapl_cq *cq;
	LIST_HEAD(cqs);

	mutex_lock(&evd->mutex);	/* calls that hold it are done; later ones see ->closing */
	kdapl_evd_lock_irq(evd);
	evd->closing = true;
	kdapl_evd_set_default_policy(evd);
	backlog = evd->backlog;
	evd->backlog = NULL;
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
	kdapl_evd_wait_all(evd);	/* later runners see ->closing */
	kdapl_obj_evd_gone(&evd->obj);
	kvfree(backlog);
	kdapl_evd_put_cqs(&cqs);
	/* a completion handler may be about to schedule it: free it a grace period later (D-92) */
	INIT_RCU_WORK(&evd->gone_work, evd_work_gone);
	queue_rcu_work(kdapl_reap_wq, &evd->gone_work);
}

/**
 * kdapl_evd_null - the EVD for completions of EPs that name none
 * @ia: the IA
 *
 * Context: may sleep; inside kdapl_dev_enter().
 * Return: the IA's null EVD, made at first use, referenced: dat_ia_close() does not wait for a
 * caller that does not use it yet. Or an ERR_PTR: -ENOBUFS if it cannot be made, -ESHUTDOWN when
 * the IA is being closed.
 */
struct kdapl_evd *kdapl_evd_null(struct kdapl_ia *ia)
{
	unsigned int noio = memalloc_noio_save();	/* dat_ep_create() takes the mutex (D-32) */
	struct kdapl_evd *evd;

	mutex_lock(&ia->mutex);
	evd = ia->null_evd;
	if (READ_ONCE(ia->closing)) {
		/* it may be destroyed as soon as the mutex is free, or may be already */
		evd = ERR_PTR(-ESHUTDOWN);
	} else if (!evd) {
		evd = kdapl_evd_create(ia, 1, DAT_UPCALL_DISABLE, NULL,
				       DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG, NULL);
		if (IS_ERR(evd)) {
			evd = ERR_PTR(-ENOBUFS);
		} else {
			evd->discard = true;
			evd->obj.live = true;	/* usable, though without a handle */
			ia->null_evd = evd;
		}
	}
	if (!IS_ERR(evd))
		refcount_inc(&evd->obj.ref);
	mutex_unlock(&ia->mutex);
	memalloc_noio_restore(noio);
	return evd;
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

static bool evd_policy_valid(DAT_UPCALL_POLICY policy)
{
	switch (policy) {
	case DAT_UPCALL_DISABLE:
	case DAT_UPCALL_SINGLE_INSTANCE:
	case DAT_UPCALL_NOTIFY:
	case DAT_UPCALL_MANY:
		return true;
	default:
		return false;
	}
}

static bool evd_upcall_valid(const DAT_UPCALL_OBJECT *upcall, DAT_UPCALL_POLICY policy)
{
	return policy == DAT_UPCALL_DISABLE || (upcall && upcall->upcall_func);
}

static bool evd_flags_valid(DAT_EVD_FLAGS flags)
{
	return flags && !(flags & ~EVD_FLAGS_ALL);
}

/*
 * Create an EVD and its handle, from checked arguments. Returns -ENODEV when the device was
 * removed, -ESHUTDOWN when the IA is being closed, or an error of kdapl_evd_create().
 */
static int evd_make(struct kdapl_ia *ia, DAT_COUNT qlen, DAT_UPCALL_POLICY policy,
		    const DAT_UPCALL_OBJECT *upcall, DAT_EVD_FLAGS flags,
		    const struct kdat_evd_attr *attr, DAT_EVD_HANDLE *handle)
{
	struct kdapl_evd *evd;
	unsigned int noio;
	int err;

	if (qlen > ia->dev->attrs.max_cqe)
		return -ENOSPC;
	if (!kdapl_dev_enter(ia->dev))
		return -ENODEV;
	noio = memalloc_noio_save();	/* consumers recreate EVDs to reconnect (D-32) */
	evd = kdapl_evd_create(ia, qlen, policy, upcall, flags, attr);
	err = PTR_ERR_OR_ZERO(evd);
	if (!err) {
		err = kdapl_obj_publish(&evd->obj);
		if (err) {
			err = err == -ESHUTDOWN ? -ESHUTDOWN : -ENOMEM;
			kdapl_evd_destroy(evd);
		} else {
			*handle = evd->obj.handle;
			kdapl_obj_put(&evd->obj);
		}
	}
	memalloc_noio_restore(noio);
	kdapl_dev_exit(ia->dev);
	return err;
}

static DAT_RETURN evd_make_ret(int err)
{
	switch (err) {
	case -ENODEV:
		return kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	case -ESHUTDOWN:
		return kdapl_publish_ret(err);
	default:
		return evd_create_ret(err);
	}
}

/* The arguments that both creating calls have, in the same places. */
static DAT_RETURN evd_check_args(DAT_COUNT qlen, DAT_UPCALL_POLICY policy,
				 const DAT_UPCALL_OBJECT *upcall, DAT_EVD_FLAGS flags)
{
	if (qlen <= 0)
		return kdapl_arg_err(2);
	if (!evd_policy_valid(policy))
		return kdapl_arg_err(3);
	if (!evd_upcall_valid(upcall, policy))
		return kdapl_arg_err(4);
	return evd_flags_valid(flags) ? DAT_SUCCESS : kdapl_arg_err(5);
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
 * The upcalls of an EVD with no flags other than DTO and RMR_BIND run in
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
	struct kdapl_ia *ia = kdapl_obj_get(ia_handle, DAT_HANDLE_TYPE_IA);
	DAT_RETURN ret;

	if (!ia)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	ret = evd_check_args(evd_min_qlen, upcall_policy, upcall, evd_flags);
	if (ret == DAT_SUCCESS && !evd_handle)
		ret = kdapl_arg_err(6);
	if (ret == DAT_SUCCESS)
		ret = evd_make_ret(evd_make(ia, evd_min_qlen, upcall_policy, upcall, evd_flags,
					    NULL, evd_handle));
	kdapl_obj_put(&ia->obj);
	return ret;
}
EXPORT_SYMBOL(dat_evd_kcreate);

/**
 * kdat_evd_create - dat_evd_kcreate() with a choice of context and completion vector
 * @ia_handle: IA
 * @evd_min_qlen: as there
 * @upcall_policy: as there
 * @upcall: as there
 * @evd_flags: as there
 * @attr: context of the upcalls and completion vector; NULL for the defaults
 * @evd_handle: where the handle goes
 *
 * Otherwise as dat_evd_kcreate(). An extension of this provider.
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
	struct kdapl_ia *ia = kdapl_obj_get(ia_handle, DAT_HANDLE_TYPE_IA);
	DAT_RETURN ret;

	if (!ia)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	ret = evd_check_args(evd_min_qlen, upcall_policy, upcall, evd_flags);
	if (ret == DAT_SUCCESS && !evd_attr_valid(attr, evd_flags))
		ret = kdapl_arg_err(6);
	if (ret == DAT_SUCCESS && !evd_handle)
		ret = kdapl_arg_err(7);
	if (ret == DAT_SUCCESS)
		ret = evd_make_ret(evd_make(ia, evd_min_qlen, upcall_policy, upcall, evd_flags,
					    attr, evd_handle));
	kdapl_obj_put(&ia->obj);
	return ret;
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
		flags = kdapl_evd_lock_irqsave(evd);
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

/*
 * Returns -ENOMEM, or -EBUSY if more events are queued than @qlen, or have a place kept for them.
 * evd->mutex held.
 */
static int evd_set_qlen(struct kdapl_evd *evd, int qlen)
{
	int err, old = evd->qlen;
	bool fits;

	err = kdapl_evd_grow_backlog(evd, qlen, 0);
	if (err)
		return err;
	kdapl_evd_lock_irq(evd);
	evd->qlen = max(old, qlen);
	spin_unlock_irq(&evd->lock);
	kdapl_evd_poll_all(evd);	/* completions on the CQs count, as far as there is room */
	kdapl_evd_lock_irq(evd);
	fits = evd->backlog_count + evd->promised <= qlen;
	evd->qlen = fits ? qlen : old;
	evd->overflow &= evd->backlog_others >= evd->qlen;
	spin_unlock_irq(&evd->lock);
	return fits ? 0 : -EBUSY;
}

/**
 * dat_evd_resize - change the length of an EVD
 * @evd_handle: EVD
 * @evd_min_qlen: events it must hold at least
 *
 * No event is lost, whether it is queued or arrives meanwhile. From then on service
 * points refuse requests that do not fit into the new length.
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
	DAT_RETURN ret = DAT_SUCCESS;
	unsigned int noio;
	int err = 0;

	if (!evd)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	if (evd_min_qlen <= 0 || evd_min_qlen > evd->obj.ia->dev->attrs.max_cqe) {
		ret = kdapl_arg_err(2);
		goto out;
	}
	noio = memalloc_noio_save();	/* dat_ep_reset() takes the mutex (D-32) */
	mutex_lock(&evd->mutex);
	if (evd->closing)
		ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	else if (evd_min_qlen != evd->qlen)
		err = evd_set_qlen(evd, evd_min_qlen);
	mutex_unlock(&evd->mutex);
	memalloc_noio_restore(noio);
	if (err == -EBUSY)
		ret = kdapl_err(DAT_INVALID_STATE, DAT_NO_SUBTYPE);
	else if (err)
		ret = kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
out:
	kdapl_obj_put(&evd->obj);
	return ret;
}
EXPORT_SYMBOL(dat_evd_resize);

/**
 * dat_evd_post_se - queue a software event
 * @evd_handle: EVD with the SOFTWARE flag
 * @event: event_number must be DAT_SOFTWARE_EVENT; the pointer of
 *	software_event_data is passed on, evd_handle is ignored
 *
 * The event is copied and starts an upcall like any signalled one. Events that
 * one context posts are delivered in that order. Works after the removal of the
 * device, too.
 *
 * Context: any, hard interrupts included.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE; DAT_INVALID_PARAMETER (the EVD has
 * no SOFTWARE flag, NULL @event, another event number); DAT_QUEUE_FULL (the EVD is
 * full of events of streams other than DTO and RMR).
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

/* Will no event ever come again? evd->lock held. */
static bool evd_dead(const struct kdapl_evd *evd)
{
	return evd->async_dead && evd->flags == DAT_EVD_ASYNC_FLAG;
}

/*
 * Returns -ENODATA if there is no event, -ESHUTDOWN if none will ever come again, and -EAGAIN to
 * be called again: there were only silent completions so far, and fewer than could be there when
 * the consumer called.
 */
static int evd_dequeue(struct kdapl_evd *evd, DAT_EVENT *event, u32 *skipped)
{
	enum kdapl_next next;
	unsigned long flags;
	bool sched, again;
	int err = 0;
	u32 silent;

	flags = kdapl_evd_lock_irqsave(evd);
	silent = evd->silent;
	next = kdapl_evd_fast(evd, event);
	if (next == KDAPL_NEXT_SLOW && kdapl_evd_take(evd, &evd->scratch)) {
		kdapl_event_fill(evd, &evd->scratch, event);
		kdapl_event_release(&evd->scratch);
		next = KDAPL_NEXT_EVENT;
	}
	if (likely(next == KDAPL_NEXT_EVENT)) {
		/* the engine can poll ahead again: there is room */
		sched = evd->watching;
	} else {
		*skipped += evd->silent - silent;
		again = evd->again && *skipped < kdapl_evd_depth(evd);
		err = evd_dead(evd) ? -ESHUTDOWN : -ENODATA;
		if (again)
			err = -EAGAIN;
		/* the consumer of DAT_UPCALL_NOTIFY is to be notified of the next one */
		sched = evd->notified && !again;
		if (sched)
			evd->notified = false;
	}
	spin_unlock_irqrestore(&evd->lock, flags);
	if (unlikely(sched))
		kdapl_evd_sched(evd);
	return err;
}

/*
 * Compilers turn a memset() of this size into "rep stos", which takes longer to start (10 ns
 * and more) than eight single writes take.
 */
static __always_inline void evd_clear_extension(DAT_EVENT *event)
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
	u32 skipped = 0;
	int err;

	rcu_read_lock();
	evd = kdapl_handle_peek(evd_handle, DAT_HANDLE_TYPE_EVD);
	if (unlikely(!evd)) {
		ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	} else if (unlikely(!event)) {
		ret = kdapl_arg_err(2);
	} else {
		evd_clear_extension(event);
		do {
			err = evd_dequeue(evd, event, &skipped);
		} while (unlikely(err == -EAGAIN));
		if (likely(!err))
			ret = DAT_SUCCESS;
		else if (err == -ESHUTDOWN)
			ret = kdapl_err(DAT_INVALID_STATE, DAT_NO_SUBTYPE);
		else
			ret = kdapl_err(DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE);
	}
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_evd_dequeue);

/**
 * dat_evd_free - destroy an EVD
 * @evd_handle: EVD that no EP, service point or IA uses
 *
 * Events still queued are lost; connection requests among them stay unanswered until
 * dat_ia_close(), so dequeue and reject them first. The call waits for the last upcall.
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
		noio = memalloc_noio_save();	/* consumers recreate EVDs to reconnect (D-32) */
		kdapl_evd_destroy(evd);
		memalloc_noio_restore(noio);
	}
	ret = kdapl_retire_ret(err, DAT_INVALID_STATE_EVD_IN_USE, DAT_INVALID_HANDLE1);
	kdapl_obj_put(&evd->obj);
	return ret;
}
EXPORT_SYMBOL(dat_evd_free);
