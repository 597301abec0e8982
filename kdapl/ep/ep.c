// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Endpoints as objects: how a call or a connection request creates one, and how it is destroyed.
 *
 * The objects and attributes of an EP are in ep_conf.c and ep_attr.c. The calls that change an EP
 * are in ep_modify.c, those that read it in ep_query.c. Its connection is in conn.c, posting in
 * post.c; the calls that connect are in cm/.
 */
#include <linux/export.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "ep_conf.h"

static void ep_work_free(struct work_struct *work);
static void ep_work_fired(struct work_struct *work);

KDAPL_OBJ_IS_FIRST(struct kdapl_ep);

static void ep_release(struct kdapl_obj *obj)
{
	struct kdapl_ep *ep = container_of(obj, struct kdapl_ep, obj);

	kfree_rcu(ep, obj.rcu);
}

static bool ep_has_id(const struct kdapl_obj *obj)
{
	const struct kdapl_ep *ep = container_of(obj, struct kdapl_ep, obj);

	return kdapl_ep_next_state(READ_ONCE(ep->state), KDAPL_IN_REMOVED) != KDAPL_EP_NO_STEP;
}

/* The device has gone or failed, and with it the request that the EP belongs to. */
static void ep_device_lost(struct kdapl_obj *obj)
{
	struct kdapl_ep *ep = container_of(obj, struct kdapl_ep, obj);
	struct kdapl_event ev = {
		.number = DAT_CONNECTION_EVENT_BROKEN,
		.signalled = true,
		.data.connect_event_data.ep_handle = ep->obj.handle,
	};
	int old = KDAPL_EP_NO_STEP;
	struct kdapl_conn *conn;

	/*
	 * This keeps the EVD, should dat_ep_free() come now. ep->mutex would not do: who holds it
	 * may wait for a work item of the queue we may be on.
	 */
	rcu_read_lock();
	spin_lock_irq(&ep->lock);
	conn = rcu_dereference_protected(ep->conn, lockdep_is_held(&ep->lock));
	if (READ_ONCE(ep->obj.live))
		old = kdapl_ep_step(ep, KDAPL_IN_REMOVED);
	if (old != KDAPL_EP_NO_STEP) {
		ep->cr = NULL;
		if (conn)	/* its end is an event, once everything has come back */
			kdapl_conn_end(conn, DAT_CONNECTION_EVENT_BROKEN);
	}
	spin_unlock_irq(&ep->lock);
	if (old != KDAPL_EP_NO_STEP && !conn)
		kdapl_ep_queue_event(ep, &ev);
	rcu_read_unlock();
}

static const struct kdapl_obj_ops ep_ops = {
	.release = ep_release,
	.has_id = ep_has_id,
	.device_lost = ep_device_lost,
};

/* One EP less, whose memory no device reaches any more. */
static void ep_uncount(struct kdapl_ia *ia)
{
	if (atomic_dec_and_test(&ia->eps))
		wake_up(&ia->unused);
}

/* Make an EP, with its handle and referenced, but without a connection. */
static int ep_new(struct kdapl_ia *ia, const struct kdapl_ep_named *named,
		  const struct kdapl_ep_conf *conf, struct kdapl_cr *cr, struct kdapl_ep **out)
{
	static const struct kdat_conn_attr defaults = KDAT_CONN_ATTR_INIT;
	struct kdapl_ep_uses uses;
	struct kdapl_ep *ep;
	int ret;

	ep = kzalloc(sizeof(*ep), GFP_KERNEL);
	if (!ep)
		return -ENOMEM;
	kdapl_ep_conf_apply(ep, named, conf);
	ep->srq = named->srq;
	ep->srq_handle = named->srq ? named->srq->obj.handle : DAT_HANDLE_NULL;
	ep->state = cr ? DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING : DAT_EP_STATE_UNCONNECTED;
	ep->cr = cr;
	ep->comm.type = SOCK_STREAM;
	ep->net_attr = defaults;
	spin_lock_init(&ep->lock);
	mutex_init(&ep->mutex);
	INIT_WORK(&ep->free_work, ep_work_free);
	INIT_WORK(&ep->marks.fired_work, ep_work_fired);
	ep->marks.ep = &ep->obj;
	kdapl_watermark_set(&ep->marks.soft, conf->attr.srq_soft_hw);
	kdapl_watermark_set(&ep->marks.hard, DAT_WATERMARK_INFINITE);
	kdapl_ep_uses(&uses, conf, named->connect, named->srq);
	ret = kdapl_ep_use(&uses);
	if (ret) {
		kfree(ep);
		return ret;
	}
	kdapl_obj_init(&ep->obj, DAT_HANDLE_TYPE_EP, ia, &ep_ops);
	atomic_inc(&ia->eps);
	ret = kdapl_obj_publish(&ep->obj);
	if (ret) {
		ep_uncount(ia);
		kdapl_ep_unuse(&uses);
		kdapl_obj_put(&ep->obj);
		return ret == -ENOSPC ? -ENOMEM : ret;	/* no handle is left */
	}
	*out = ep;
	return 0;
}

/**
 * kdapl_ep_tentative - make an EP that comes with a request
 * @ia: IA
 * @null_evd: its null EVD
 * @cr: the request, which tells how many Reads the peer wants to have outstanding and to answer
 *
 * Context: may sleep; the listener's handler, or with the lock of a CR held.
 * Return: the EP, without PZ, EVDs and connection, referenced, or an ERR_PTR: -ENOMEM, or
 * -ESHUTDOWN when the IA is being closed.
 */
struct kdapl_ep *kdapl_ep_tentative(struct kdapl_ia *ia, struct kdapl_evd *null_evd,
				    struct kdapl_cr *cr)
{
	struct kdapl_ep_conf conf = { .recv_evd = null_evd, .request_evd = null_evd };
	const struct kdapl_ep_named named = {};
	DAT_IA_ATTR *limits;
	struct kdapl_ep *ep;
	int ret;

	limits = kzalloc(sizeof(*limits), GFP_NOIO);
	if (!limits)
		return ERR_PTR(-ENOMEM);
	kdapl_ia_limits(ia, limits);
	kdapl_ep_attr_default(limits, true, true, &conf.attr);
	conf.attr.max_rdma_read_in = min_t(int, cr->read_in, limits->max_rdma_read_per_ep_in);
	conf.attr.max_rdma_read_out = min_t(int, cr->read_out, limits->max_rdma_read_per_ep_out);
	kdapl_ep_attr_grant(limits, &conf.attr);
	kfree(limits);
	ret = ep_new(ia, &named, &conf, cr, &ep);
	if (ret > 0)	/* the null EVD, which goes with the IA only */
		ret = -ESHUTDOWN;
	return ret ? ERR_PTR(ret) : ep;
}

/**
 * kdapl_ep_request - the request an EP was reserved for has arrived
 * @ep: EP of an RSP that was retired for it
 * @cr: the request, with a reference to the EP
 *
 * If dat_ia_close() has destroyed the request already, nobody would take it back from the EP.
 *
 * Context: any.
 */
void kdapl_ep_request(struct kdapl_ep *ep, struct kdapl_cr *cr)
{
	unsigned long flags;

	spin_lock_irqsave(&ep->lock, flags);
	/* it dies before kdapl_ep_leave() takes the lock */
	if (READ_ONCE(cr->obj.live) && kdapl_ep_step(ep, KDAPL_IN_REQUEST) != KDAPL_EP_NO_STEP)
		ep->cr = cr;
	spin_unlock_irqrestore(&ep->lock, flags);
}

/**
 * kdapl_ep_leave - an EP stops waiting for a request
 * @ep: EP
 * @input: KDAPL_IN_UNRESERVE or KDAPL_IN_DECLINE
 *
 * If its connection has ended meanwhile, the EP goes on to DISCONNECTED.
 *
 * Context: any.
 */
void kdapl_ep_leave(struct kdapl_ep *ep, enum kdapl_ep_input input)
{
	struct kdapl_conn *conn;
	unsigned long flags;

	spin_lock_irqsave(&ep->lock, flags);
	if (kdapl_ep_step(ep, input) != KDAPL_EP_NO_STEP) {
		ep->cr = NULL;
		conn = rcu_dereference_protected(ep->conn, lockdep_is_held(&ep->lock));
		if (conn && READ_ONCE(conn->state) == KDAPL_CONN_ENDED &&
		    atomic_read(&conn->reason) != KDAPL_END_NO_EVENT)
			kdapl_ep_step(ep, KDAPL_IN_ENDED);
	}
	spin_unlock_irqrestore(&ep->lock, flags);
}

/* A high watermark has fired. */
static void ep_work_fired(struct work_struct *work)
{
	struct kdapl_ep *ep = container_of(work, struct kdapl_ep, marks.fired_work);
	struct kdapl_conn *conn;

	while (atomic_dec_if_positive(&ep->marks.soft.fired) >= 0) {
		if (READ_ONCE(ep->obj.live))
			kdapl_ia_async(ep->obj.ia, ep->obj.handle,
				       DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR,
				       DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT);
	}
	rcu_read_lock();
	conn = rcu_dereference(ep->conn);
	if (conn && conn->pool)
		kdapl_evd_watch(conn);
	rcu_read_unlock();
	kdapl_obj_put(&ep->obj);
}

/* Begin to end the connection of an EP that is going to be destroyed. */
static void ep_begin_destroy(struct kdapl_ep *ep)
{
	struct kdapl_conn *conn;

	/* a control call has either finished, or is going to see that the EP is dead */
	mutex_lock(&ep->mutex);
	conn = kdapl_ep_conn(ep);
	if (conn) {
		kdapl_conn_discard(conn);
		kdapl_conn_end(conn, KDAPL_END_NO_EVENT);
	}
	mutex_unlock(&ep->mutex);
}

/*
 * Drop what the EVDs of a dead EP still have for its consumer. An EP without a connection may have
 * an event as well: ep_device_lost().
 */
static void ep_drop_events(struct kdapl_ep *ep, struct kdapl_conn *conn)
{
	if (conn)
		kdapl_conn_drop_events(conn, true);
	else
		kdapl_ep_drop_events(ep);
}

/*
 * Wait for the end of the connection and for upcalls, and take the connection out of the EP. Hold
 * no lock meanwhile: the upcall may be in a call that names the EP.
 */
static void ep_unlink(struct kdapl_ep *ep)
{
	DAT_EP_HANDLE handle = ep->obj.handle;

	ep->last_conn = rcu_dereference_protected(ep->conn, !ep->obj.live);
	if (ep->last_conn)
		wait_for_completion(&ep->last_conn->ended);
	ep_drop_events(ep, ep->last_conn);
	kdapl_evd_wait_upcall(ep->conf.recv_evd, handle);
	kdapl_evd_wait_upcall(ep->conf.request_evd, handle);
	if (ep->connect_evd)
		kdapl_evd_wait_upcall(ep->connect_evd, handle);
	spin_lock_irq(&ep->lock);
	rcu_assign_pointer(ep->conn, NULL);
	spin_unlock_irq(&ep->lock);
}

/* Destroy the rest of an EP; the reaper has its connection. */
static void ep_finish_destroy(struct kdapl_ep *ep)
{
	struct kdapl_ep_uses uses;

	if (ep->last_conn)
		kdapl_conn_put(ep->last_conn);
	ep_uncount(ep->obj.ia);	/* dat_ia_close() still waits for what the EP uses */
	kdapl_ep_uses(&uses, &ep->conf, ep->connect_evd, ep->srq);
	kdapl_ep_unuse(&uses);
	kdapl_obj_put(&ep->obj);
}

/* Hand the last connection of an EP to the reaper. The EP does not point to it any more. */
static void ep_reap_last(struct kdapl_ep *ep)
{
	if (!ep->last_conn)
		return;
	refcount_inc(&ep->last_conn->ref);
	kdapl_conn_reap(ep->last_conn);
}

/**
 * kdapl_eps_destroy - destroy retired EPs, all at once
 * @eps: list of them, by obj.node; the handles' references go with them
 *
 * Context: may sleep; waits until the QPs have given everything back.
 */
void kdapl_eps_destroy(struct list_head *eps)
{
	struct kdapl_ep *ep, *next;

	list_for_each_entry(ep, eps, obj.node)
		ep_begin_destroy(ep);
	list_for_each_entry(ep, eps, obj.node)
		ep_unlink(ep);
	list_for_each_entry(ep, eps, obj.node)
		ep_reap_last(ep);
	list_for_each_entry_safe(ep, next, eps, obj.node) {
		list_del_init(&ep->obj.node);
		if (ep->last_conn)
			kdapl_conn_wait_reaped(ep->last_conn);
		ep_finish_destroy(ep);
	}
}

static void ep_destroy(struct kdapl_ep *ep)
{
	LIST_HEAD(eps);

	list_add(&ep->obj.node, &eps);
	kdapl_eps_destroy(&eps);
}

/* The same from a work item, which does not wait for the reaper. */
static void ep_work_free(struct work_struct *work)
{
	struct kdapl_ep *ep = container_of(work, struct kdapl_ep, free_work);
	unsigned int noio = memalloc_noio_save();	/* reconnects may wait for this (D-32) */

	ep_begin_destroy(ep);
	ep_unlink(ep);
	ep_reap_last(ep);
	ep_finish_destroy(ep);
	memalloc_noio_restore(noio);
}

static bool ep_inside_upcall(struct kdapl_ep *ep)
{
	struct kdapl_evd *connect;
	bool inside;

	rcu_read_lock();	/* dat_ep_modify() may exchange and free them */
	connect = READ_ONCE(ep->connect_evd);
	inside = kdapl_evd_inside_upcall(READ_ONCE(ep->conf.recv_evd)) ||
		 kdapl_evd_inside_upcall(READ_ONCE(ep->conf.request_evd)) ||
		 (connect && kdapl_evd_inside_upcall(connect));
	rcu_read_unlock();
	return inside;
}

/* Destroy a retired EP, or have it destroyed if this is an upcall of one of its EVDs. */
static void ep_dispose(struct kdapl_ep *ep)
{
	struct kdapl_conn *conn;
	unsigned int noio;

	if (!ep_inside_upcall(ep)) {
		noio = memalloc_noio_save();	/* part of reconnecting with another EP (D-32) */
		ep_destroy(ep);
		memalloc_noio_restore(noio);
		return;
	}
	rcu_read_lock();
	conn = rcu_dereference(ep->conn);
	ep_drop_events(ep, conn);
	rcu_read_unlock();
	queue_work(kdapl_event_wq, &ep->free_work);
}

/**
 * kdapl_ep_take_back - destroy an EP with the request it was made for
 * @ep: EP in TENTATIVE_CONNECTION_PENDING, or in DISCONNECTED after the device has gone
 * @wait: wait until it is destroyed, unless this is an upcall of one of its EVDs
 *
 * Context: may sleep if @wait; inside an upcall of one of its EVDs it does not.
 */
void kdapl_ep_take_back(struct kdapl_ep *ep, bool wait)
{
	unsigned long flags;
	int ret;

	spin_lock_irqsave(&ep->lock, flags);
	ep->cr = NULL;
	ret = kdapl_obj_retire(&ep->obj);
	spin_unlock_irqrestore(&ep->lock, flags);
	if (ret)
		return;		/* dat_ep_free() or dat_ia_close() was faster */
	if (wait)
		ep_dispose(ep);
	else
		queue_work(kdapl_event_wq, &ep->free_work);
}

/*
 * Make an EP with its connection, referenced, from arguments that have been checked. Returns 0, a
 * negative errno, or the enum kdapl_ep_part that has been freed meanwhile. Inside
 * kdapl_dev_enter().
 */
static int ep_make(struct kdapl_ia *ia, struct kdapl_ep_named *named,
		   const DAT_EP_ATTR *attr, struct kdapl_ep **out)
{
	struct kdapl_conn *conn = NULL;
	struct kdapl_ep_conf conf;
	struct kdapl_ep *ep;
	int ret;

	ret = kdapl_ep_conf_init(&conf, ia, named, attr);
	if (ret)
		return ret;
	/* the connection needs the handle, for its events */
	ret = ep_new(ia, named, &conf, NULL, &ep);
	if (ret)
		return ret;
	mutex_lock(&ep->mutex);
	if (!ep->obj.live)	/* dat_ia_close() was faster */
		conn = ERR_PTR(-ESHUTDOWN);
	else if (conf.pz)
		conn = kdapl_conn_create(ep, &conf, NULL);
	if (!IS_ERR(conn))
		rcu_assign_pointer(ep->conn, conn);
	mutex_unlock(&ep->mutex);
	if (IS_ERR(conn)) {
		if (!kdapl_obj_retire(&ep->obj))
			ep_destroy(ep);
		kdapl_obj_put(&ep->obj);
		return PTR_ERR(conn);
	}
	*out = ep;
	return 0;
}

/*
 * Both creating calls; @srq is NULL for the one without an SRQ. Returns 0, the enum kdapl_ep_part
 * whose handle is bad, or an errno, see ep_create_ret().
 */
static int ep_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
		     DAT_EVD_HANDLE recv_evd_handle, DAT_EVD_HANDLE request_evd_handle,
		     DAT_EVD_HANDLE connect_evd_handle, const DAT_SRQ_HANDLE *srq,
		     const DAT_EP_ATTR *ep_attributes, DAT_EP_HANDLE *ep_handle)
{
	struct kdapl_ia *ia = kdapl_obj_get(ia_handle, DAT_HANDLE_TYPE_IA);
	struct kdapl_ep_named named = {};
	DAT_IA_ATTR *limits;
	struct kdapl_ep *ep;
	unsigned int noio;
	DAT_EP_ATTR attr;
	int ret;

	if (!ia)
		return -ESHUTDOWN;
	ret = -ENOMEM;
	limits = kzalloc(sizeof(*limits), GFP_NOIO);
	if (!limits)
		goto out;
	kdapl_ia_limits(ia, limits);
	ret = kdapl_ep_named_get(&named, ia, pz_handle, recv_evd_handle, request_evd_handle,
				 connect_evd_handle, srq);
	if (ret)
		goto out;
	ret = -EFAULT;
	if (!ep_handle)
		goto out;
	ret = -EINVAL;
	if (srq && !ep_attributes)
		goto out;
	ret = -EXDEV;
	if (!kdapl_ep_pz_fits_srq(named.pz, named.srq))
		goto out;
	if (ep_attributes) {
		attr = *ep_attributes;
		ret = kdapl_ep_attr_check(ia->dev, limits, &attr, named.recv, named.request,
					  srq);
		if (ret)
			goto out;
	} else {
		kdapl_ep_attr_default(limits, named.recv, named.request, &attr);
	}
	kdapl_ep_attr_grant(limits, &attr);
	ret = -ENODEV;
	if (!kdapl_dev_enter(ia->dev))
		goto out;
	/* consumers may reconnect with a new EP, and resets take the mutexes of EVDs (D-32) */
	noio = memalloc_noio_save();
	ret = ep_make(ia, &named, &attr, &ep);
	memalloc_noio_restore(noio);
	if (!ret) {
		*ep_handle = ep->obj.handle;
		kdapl_obj_put(&ep->obj);
	}
	kdapl_dev_exit(ia->dev);
out:
	kdapl_ep_named_put(&named);
	kfree(limits);
	kdapl_obj_put(&ia->obj);
	return ret;
}

static const DAT_RETURN_SUBTYPE ep_part_subtypes[KDAPL_EP_PARTS] = {
	[KDAPL_EP_PZ] = DAT_INVALID_HANDLE_PZ,
	[KDAPL_EP_RECV_EVD] = DAT_INVALID_HANDLE_EVD_RECV,
	[KDAPL_EP_REQUEST_EVD] = DAT_INVALID_HANDLE_EVD_REQUEST,
	[KDAPL_EP_CONNECT_EVD] = DAT_INVALID_HANDLE_EVD_CONN,
	[KDAPL_EP_SRQ] = DAT_INVALID_HANDLE_SRQ,
};

/*
 * What a creating call returns. @attr_arg: the position of the attributes among its arguments; the
 * pointer for the handle follows them, and the PZ is the second argument of both calls.
 */
static DAT_RETURN ep_create_ret(int err, int attr_arg)
{
	if (err > 0)
		return kdapl_err(DAT_INVALID_HANDLE, ep_part_subtypes[err]);
	switch (err) {
	case 0:
		return DAT_SUCCESS;
	case -ESHUTDOWN:	/* no such IA, or it is being closed */
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	case -EXDEV:		/* PZ other than that of the SRQ */
		return kdapl_arg_err(2);
	case -EINVAL:		/* attributes */
		return kdapl_arg_err(attr_arg);
	case -EFAULT:		/* NULL pointer for the handle */
		return kdapl_arg_err(attr_arg + 1);
	case -EOPNOTSUPP:	/* quality of service */
		return kdapl_err(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	case -ENODEV:
		return kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	case -ENOMEM:
		return kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	case -ENOBUFS:		/* no null EVD */
		return kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEVD);
	default:		/* no connection */
		return kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP);
	}
}

/**
 * dat_ep_create - create an Endpoint
 * @ia_handle: IA
 * @pz_handle: PZ of the LMRs that may be used over the EP; NULL leaves it open
 * @recv_evd_handle: EVD with the DTO flag for Receives; NULL: not interested
 * @request_evd_handle: EVD with the DTO flag for Sends and RDMA; NULL: not
 *	interested
 * @connect_evd_handle: EVD with the CONNECTION flag; needed for connecting
 * @ep_attributes: copied; NULL for defaults
 * @ep_handle: where the handle goes
 *
 * Receives can be posted as soon as the EP exists, if it has a PZ. The default
 * attributes are 64 requests and 64 Receives (0 of a kind without EVD) of up to 4
 * segments, and 4 RDMA Reads under way in each direction. If the IA has less, that is
 * what the EP gets. Messages and RDMA may be as long as the IA allows. dat_ep_query()
 * tells what was granted.
 *
 * Context: may sleep.
 * Return: DAT_SUCCESS, the EP is UNCONNECTED; DAT_INVALID_HANDLE (IA, PZ,
 * EVD_RECV, EVD_REQUEST, EVD_CONN); DAT_INVALID_PARAMETER (attributes: beyond
 * those of the IA, a queue of length 0 with an EVD, except that Receives with an SRQ have no
 * queue, or completion flags that conflict with an EVD); DAT_MODEL_NOT_SUPPORTED (quality of
 * service);
 * DAT_INSUFFICIENT_RESOURCES (subtype TEP, TEVD or MEMORY); DAT_INTERNAL_ERROR
 * (device removed).
 */
DAT_RETURN dat_ep_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
			 DAT_EVD_HANDLE recv_evd_handle, DAT_EVD_HANDLE request_evd_handle,
			 DAT_EVD_HANDLE connect_evd_handle, const DAT_EP_ATTR *ep_attributes,
			 DAT_EP_HANDLE *ep_handle)
{
	int err = ep_create(ia_handle, pz_handle, recv_evd_handle, request_evd_handle,
			    connect_evd_handle, NULL, ep_attributes, ep_handle);

	return ep_create_ret(err, 6);
}
EXPORT_SYMBOL(dat_ep_create);

/**
 * dat_ep_create_with_srq - create an Endpoint that takes its Receives from an SRQ
 * @ia_handle: IA
 * @pz_handle: PZ of the LMRs of its requests; that of the SRQ, unless the
 *	provider attribute srq_ep_pz_difference_supported is TRUE; NULL leaves it
 *	open
 * @recv_evd_handle: EVD with the DTO flag for Receives; NULL: not interested
 * @request_evd_handle: as for dat_ep_create()
 * @connect_evd_handle: as for dat_ep_create()
 * @srq_handle: SRQ of the same IA, for the life of the EP
 * @ep_attributes: copied; max_recv_iov is ignored, max_recv_dtos not used and may be 0
 * @ep_handle: where the handle goes
 *
 * Otherwise as dat_ep_create(). Receives are posted with dat_srq_post_recv() only.
 * A message takes one from the SRQ, which is reported on the recv EVD of the EP that
 * the message arrived on.
 *
 * Context: may sleep.
 * Return: as dat_ep_create(); DAT_INVALID_HANDLE (SRQ); DAT_INVALID_PARAMETER
 * (NULL @ep_attributes; ARG2: PZs of SRQ and EP that must not differ);
 * DAT_INSUFFICIENT_RESOURCES (more EPs than the device has QPs).
 */
DAT_RETURN dat_ep_create_with_srq(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
				  DAT_EVD_HANDLE recv_evd_handle,
				  DAT_EVD_HANDLE request_evd_handle,
				  DAT_EVD_HANDLE connect_evd_handle, DAT_SRQ_HANDLE srq_handle,
				  const DAT_EP_ATTR *ep_attributes, DAT_EP_HANDLE *ep_handle)
{
	int err = ep_create(ia_handle, pz_handle, recv_evd_handle, request_evd_handle,
			    connect_evd_handle, &srq_handle, ep_attributes, ep_handle);

	return ep_create_ret(err, 7);
}
EXPORT_SYMBOL(dat_ep_create_with_srq);

/**
 * dat_ep_free - destroy an Endpoint
 * @ep_handle: EP in any state but RESERVED (free the RSP first) and PASSIVE_ or
 *	TENTATIVE_CONNECTION_PENDING (answer the request first)
 *
 * A connection ends abruptly, and an attempt is aborted. What is posted produces no
 * more events, and events that the EVDs still hold are withdrawn. Completions that the
 * consumer has not taken are lost, and with them the buffers that came from an SRQ:
 * call kdat_ep_drain() first to see them all.
 * Inside an upcall of one of the EP's EVDs the handle becomes invalid at once and the rest
 * happens after the upcall; the EVDs and the PZ stay in use until then. Elsewhere the
 * call waits for an upcall that is handling an event of this EP: hold no lock that
 * such an upcall takes.
 *
 * Context: may sleep; inside an upcall of one of its EVDs it does not sleep.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE; DAT_INVALID_STATE (subtype its state).
 */
DAT_RETURN dat_ep_free(DAT_EP_HANDLE ep_handle)
{
	struct kdapl_ep *ep = kdapl_obj_get(ep_handle, DAT_HANDLE_TYPE_EP);
	DAT_RETURN ret = DAT_SUCCESS;
	unsigned long flags;

	if (!ep)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	spin_lock_irqsave(&ep->lock, flags);
	if (kdapl_ep_next_state(ep->state, KDAPL_IN_FREE) == KDAPL_EP_NO_STEP)
		ret = kdapl_state_err(ep->state);
	else if (kdapl_obj_retire(&ep->obj))
		ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	spin_unlock_irqrestore(&ep->lock, flags);
	if (ret == DAT_SUCCESS)
		ep_dispose(ep);
	kdapl_obj_put(&ep->obj);
	return ret;
}
EXPORT_SYMBOL(dat_ep_free);
