// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Service points: what PSP, RSP and CSP have in common, which is a listener and the handling of
 * the requests it receives.
 *
 * A request comes with a cm_id of its own, in the listener's handler. The handler cannot destroy
 * the listener, but an RSP serves one request only: a work item destroys its listener, so that the
 * qualifier is free again, and then reports the request.
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "cm.h"
#include "../core/cm_reject.h"

/*
 * Requests that the transport may queue. The minimum may be more than the length of the EVD, which
 * decides about a request when it arrives. A short backlog is dangerous: soft-iWARP forgets
 * connections beyond it, and when the peer closes one of them it closes the listener.
 */
#define SP_MIN_BACKLOG	128
#define SP_MAX_BACKLOG	1024	/* some drivers allocate memory for it */

#define SP_ANY_TRIES	64	/* ports to try, if each turns out to be taken */

#ifdef KDAPL_KUNIT
/* A service point has been published, and does not listen yet. */
void (*kdapl_test_sp_start)(struct kdapl_sp *sp);
#endif

/*
 * The one request of an RSP is there: free the qualifier, then report the request. Inside
 * kdapl_dev_enter().
 */
static void sp_work_used(struct work_struct *work)
{
	struct kdapl_sp *sp = container_of(work, struct kdapl_sp, used_work);
	struct kdapl_device *dev = sp->obj.ia->dev;
	unsigned int noio = memalloc_noio_save();	/* reconnects under writeback (D-32) */
	struct kdapl_evd *evd = sp->evd;
	struct kdapl_cr *cr = sp->cr;

	refcount_inc(&sp->obj.ref);
	refcount_inc(&evd->obj.ref);
	/* first: when the consumer sees the event, the RSP must not use anything any more */
	kdapl_sp_destroy(sp);
	if (!kdapl_cr_announce(sp, evd, cr, true))
		kdapl_cr_refuse(cr);
	kdapl_obj_put(&cr->obj);
	kdapl_obj_put(&evd->obj);
	kdapl_obj_put(&sp->obj);
	kdapl_dev_exit(dev);	/* removal has waited for it, so dev still exists */
	memalloc_noio_restore(noio);
}

/* Give an RSP its one request. False: the request is to be refused. */
static bool sp_use_up(struct kdapl_sp *sp, struct kdapl_cr *cr)
{
	if (!kdapl_dev_enter(sp->obj.ia->dev))
		return false;
	/* when the event can be queued, others may have filled the EVD, and the RSP is gone */
	if (!kdapl_evd_promise(sp->evd))
		goto exit;
	if (kdapl_obj_retire(&sp->obj)) {	/* freed, or used up already */
		kdapl_evd_unpromise(sp->evd);
		goto exit;
	}
	if (sp->ep)
		kdapl_ep_request(sp->ep, cr);
	refcount_inc(&cr->obj.ref);
	sp->cr = cr;
	queue_work(kdapl_misc_wq, &sp->used_work);
	return true;

exit:
	kdapl_dev_exit(sp->obj.ia->dev);
	return false;
}

/*
 * Take the id back from a request that cannot be reported. False: dat_ia_close() or removal of the
 * device has taken it.
 */
static bool sp_take_back(struct kdapl_cr *cr)
{
	bool mine;

	if (kdapl_obj_retire(&cr->obj))
		return false;
	/* its handle is not known yet, so no one waits for this handler with the lock held */
	mutex_lock_nested(&cr->mutex, SINGLE_DEPTH_NESTING);
	mine = cr->cm_id;
	cr->cm_id = NULL;
	mutex_unlock(&cr->mutex);
	if (mine)
		kdapl_device_id_gone(cr->obj.ia->dev);
	if (cr->made)
		kdapl_ep_take_back(cr->ep, false);
	kdapl_obj_put(&cr->obj);	/* the handle's */
	return mine;
}

/*
 * Give the consumer the handle: when the creating call has succeeded, or earlier with the first
 * request, which may be reported before that call returns. Never if the call fails.
 */
static void sp_give_handle(struct kdapl_sp *sp)
{
	struct kdapl_ia *ia = sp->obj.ia;

	spin_lock_irq(&ia->lock);
	if (sp->out)
		*sp->out = sp->obj.handle;
	sp->out = NULL;
	spin_unlock_irq(&ia->lock);
}

/**
 * kdapl_sp_request - report a request that has arrived, or refuse it
 * @sp: service point it came through
 * @id: the request's own cm_id
 * @param: what the peer says
 *
 * Context: the listener's handler.
 * Return: true if the id belongs to the CR now, or if a refusal, dat_ia_close() or removal of the
 * device has taken it; false if the request is refused and the caller has to destroy the id.
 */
bool kdapl_sp_request(struct kdapl_sp *sp, struct rdma_cm_id *id,
		      const struct rdma_conn_param *param)
{
	struct kdapl_device *dev = sp->obj.ia->dev;
	bool mine = true, reported = false;
	struct kdapl_cr *cr;

	/* removal takes the ids of all requests it finds, and waits for this one */
	if (!kdapl_dev_enter(dev))
		goto refuse;
	if (kdapl_evd_full(sp->evd))	/* the RSP, if it is one, goes on waiting */
		goto exit;
	cr = kdapl_cr_create(sp, id, param);
	if (!IS_ERR(cr)) {
		sp_give_handle(sp);
		if (sp->obj.type == DAT_HANDLE_TYPE_RSP)
			reported = sp_use_up(sp, cr);
		else
			reported = kdapl_cr_announce(sp, sp->evd, cr, false);
		if (!reported)
			mine = sp_take_back(cr);
		kdapl_obj_put(&cr->obj);
	}
exit:
	kdapl_dev_exit(dev);
	if (reported || !mine)
		return true;
refuse:
	/* not the reason of dat_cr_reject(): the peer must see NON_PEER_REJECTED */
	return kdapl_cm_reject_new(dev, id, IB_CM_REJ_NO_RESOURCES);
}

/*
 * Handle events of the listener. A request comes with an id of its own, which has the context of
 * the listener until the CR takes it over; a return value other than 0 destroys that id.
 */
static int sp_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	unsigned int noio;
	bool taken;

	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return 0;
	noio = memalloc_noio_save();	/* reconnects under writeback (D-32) */
	taken = kdapl_sp_request(id->context, id, &event->param.conn);
	memalloc_noio_restore(noio);
	return taken ? 0 : -ECONNREFUSED;
}

KDAPL_OBJ_IS_FIRST(struct kdapl_sp);

static void sp_release(struct kdapl_obj *obj)
{
	struct kdapl_sp *sp = container_of(obj, struct kdapl_sp, obj);

	kdapl_obj_put(sp->ep ? &sp->ep->obj : NULL);
	kdapl_obj_put(sp->null_evd ? &sp->null_evd->obj : NULL);
	kfree_rcu(sp, obj.rcu);
}

/* Stop listening. May sleep. */
static void sp_destroy_verbs(struct kdapl_sp *sp)
{
	struct rdma_cm_id *id;

	mutex_lock(&sp->mutex);
	id = sp->cm_id;
	sp->cm_id = NULL;
	mutex_unlock(&sp->mutex);
	if (!id)
		return;
	rdma_destroy_id(id);
	kdapl_device_id_gone(sp->obj.ia->dev);
}

static bool sp_has_id(const struct kdapl_obj *obj)
{
	return READ_ONCE(container_of(obj, struct kdapl_sp, obj)->cm_id);
}

static void sp_device_lost(struct kdapl_obj *obj)
{
	sp_destroy_verbs(container_of(obj, struct kdapl_sp, obj));
}

static const struct kdapl_obj_ops sp_ops = {
	.release = sp_release,
	.has_id = sp_has_id,
	.device_lost = sp_device_lost,
};

/**
 * kdapl_sp_destroy - destroy a retired service point
 * @sp: retired or never published
 *
 * Context: may sleep.
 */
void kdapl_sp_destroy(struct kdapl_sp *sp)
{
	sp_destroy_verbs(sp);
	if (sp->ep && !sp->cr)
		kdapl_ep_leave(sp->ep, KDAPL_IN_UNRESERVE);
	kdapl_obj_unuse(&sp->evd->obj);
	kdapl_obj_put(&sp->obj);
}

/**
 * kdapl_sp_evd - look up the EVD of a new service point
 * @ia: its IA
 * @handle: as the consumer gave it
 *
 * Return: the EVD, to be put, or NULL if @handle is no EVD of the IA with the CR flag.
 */
struct kdapl_evd *kdapl_sp_evd(struct kdapl_ia *ia, DAT_EVD_HANDLE handle)
{
	struct kdapl_evd *evd = kdapl_obj_get(handle, DAT_HANDLE_TYPE_EVD);

	if (evd && evd->obj.ia == ia && (evd->flags & DAT_EVD_CR_FLAG))
		return evd;
	kdapl_obj_put(evd ? &evd->obj : NULL);
	return NULL;
}

/**
 * kdapl_sp_alloc - make a service point that does not listen yet
 * @ia: its IA
 * @type: DAT_HANDLE_TYPE_PSP, _RSP or _CSP
 * @evd: EVD, referenced by the caller
 *
 * Return: the service point, for kdapl_sp_start(), or an ERR_PTR: -ENOMEM, or -ESTALE if the EVD
 * has been freed.
 */
struct kdapl_sp *kdapl_sp_alloc(struct kdapl_ia *ia, unsigned int type, struct kdapl_evd *evd)
{
	struct kdapl_sp *sp = kzalloc(sizeof(*sp), GFP_KERNEL);

	if (!sp)
		return ERR_PTR(-ENOMEM);
	if (kdapl_obj_use(&evd->obj)) {
		kfree(sp);
		return ERR_PTR(-ESTALE);
	}
	kdapl_obj_init(&sp->obj, type, ia, &sp_ops);
	mutex_init(&sp->mutex);
	INIT_WORK(&sp->used_work, sp_work_used);
	sp->evd = evd;
	sp->evd_handle = evd->obj.handle;
	return sp;
}

/**
 * kdapl_sp_makes_eps - have a new service point make an EP for each request
 * @sp: from kdapl_sp_alloc()
 *
 * Context: may sleep; inside kdapl_dev_enter().
 * Return: 0, or an errno of kdapl_evd_null().
 */
int kdapl_sp_makes_eps(struct kdapl_sp *sp)
{
	struct kdapl_evd *null_evd = kdapl_evd_null(sp->obj.ia);

	if (IS_ERR(null_evd))
		return PTR_ERR(null_evd);
	sp->null_evd = null_evd;
	return 0;
}

/* Does the port of the IA still have the address? */
static bool sp_has_address(struct kdapl_sp *sp, struct sockaddr_storage *addr)
{
	struct sockaddr_storage full;
	struct net *net;

	if (!kdapl_ia_owns(sp->obj.ia, (struct sockaddr *)addr, &full, &net))
		return false;
	put_net(net);
	return true;
}

static struct rdma_cm_id *sp_try(struct kdapl_sp *sp, struct net *net,
				 struct sockaddr_storage *addr)
{
	struct kdapl_ia *ia = sp->obj.ia;
	struct rdma_cm_id *id;
	int ret;

	id = __rdma_create_kernel_id(net, sp_handler, sp, RDMA_PS_TCP, IB_QPT_RC, ia->consumer);
	if (IS_ERR(id))
		return id;
	ret = rdma_bind_addr(id, (struct sockaddr *)addr);
	if (ret == -EADDRNOTAVAIL && sp_has_address(sp, addr))
		ret = -EADDRINUSE;	/* another listener has the port for all addresses */
	if (!ret && (id->device != ia->dev->ibdev || id->port_num != ia->port))
		ret = -ENODEV;	/* another device has that address as well */
	if (!ret) {
		/* a request may be there before rdma_listen() returns */
		sp->conn_qual = kdapl_addr_port(&id->route.addr.src_addr);
		ret = rdma_listen(id, clamp(sp->evd->qlen, SP_MIN_BACKLOG, SP_MAX_BACKLOG));
	}
	if (!ret)
		return id;
	rdma_destroy_id(id);
	return ERR_PTR(ret);
}

/*
 * What an errno of the RDMA CM means here. -ENODEV is about an address that another device has as
 * well. A driver's -ENOBUFS (cxgb4) must not be taken for ours: see kdapl_sp_ret().
 */
static int sp_errno(int err)
{
	switch (err) {
	case -ENODEV:
		return -EADDRNOTAVAIL;
	case -ENOBUFS:
		return -EAGAIN;
	default:
		return err;
	}
}

/* Listen; errnos as for kdapl_sp_start(). sp->mutex held. */
static int sp_listen(struct kdapl_sp *sp)
{
	DAT_CONN_QUAL want = sp->conn_qual;
	struct kdapl_ia *ia = sp->obj.ia;
	struct sockaddr_storage addr;
	int tries = want ? 1 : SP_ANY_TRIES;
	struct rdma_cm_id *id;
	struct net *net;
	bool found;

	if (sp->obj.type == DAT_HANDLE_TYPE_CSP)
		found = kdapl_ia_owns(ia, (struct sockaddr *)&sp->addr, &addr, &net);
	else
		found = !kdapl_ia_address(ia, NULL, &addr, &net);
	if (!found) {
		pr_err("%s: the port has no %s to listen on: give its network device one\n",
		       ia->name, sp->addr.ss_family ? "such IP address" : "IP address");
		return -EADDRNOTAVAIL;
	}
	kdapl_addr_set_port(&addr, want);
	do {
		id = sp_try(sp, net, &addr);
	} while (--tries && id == ERR_PTR(-EADDRINUSE));
	put_net(net);	/* the id keeps its own reference */
	if (!IS_ERR(id)) {
		sp->cm_id = id;
		kdapl_device_id_made(ia->dev);
		return 0;
	}
	if (id == ERR_PTR(-EADDRINUSE) || (id == ERR_PTR(-EADDRNOTAVAIL) && !want))
		return -EADDRINUSE;
	pr_err("%s: cannot listen on %pISpc: %pe\n", ia->name, &addr, id);
	return sp_errno(PTR_ERR(id));
}

/**
 * kdapl_sp_start - give a service point its handle and listen
 * @sp: from kdapl_sp_alloc(), complete but for the listener; conn_qual 0 asks
 *	for any port; referenced by the caller on success only
 * @handle: where the handle goes; not written on failure
 *
 * Context: may sleep; inside kdapl_dev_enter().
 * Return: 0; otherwise nothing is left of @sp: -EADDRINUSE if the port, or every port, is taken;
 * -EADDRNOTAVAIL if the IA has no such address; -EACCES if the caller may not use that port;
 * -ESHUTDOWN if the IA is being closed; -ENOMEM; another errno of the RDMA CM.
 */
int kdapl_sp_start(struct kdapl_sp *sp, DAT_HANDLE *handle)
{
	unsigned int noio;
	int ret;

	/* before it listens: the first request may name the handle before we return */
	sp->out = handle;
	ret = kdapl_obj_publish(&sp->obj);
	if (ret) {
		kdapl_sp_destroy(sp);
		return ret == -ENOSPC ? -ENOMEM : ret;	/* no handle is left */
	}
	kdapl_test_point(kdapl_test_sp_start, sp);
	noio = memalloc_noio_save();	/* work items take the mutex (D-32) */
	mutex_lock(&sp->mutex);
	if (sp->obj.live)
		ret = sp_listen(sp);
	else	/* dat_ia_close() was faster */
		ret = -ESHUTDOWN;
	mutex_unlock(&sp->mutex);
	memalloc_noio_restore(noio);
	if (!ret) {
		sp_give_handle(sp);
		return 0;
	}
	if (!kdapl_obj_retire(&sp->obj))
		kdapl_sp_destroy(sp);
	kdapl_obj_put(&sp->obj);
	return ret;
}

/**
 * kdapl_sp_ret - what a call that makes a service point returns
 * @err: 0, or an errno of kdapl_sp_alloc() or kdapl_sp_start(); -ENOBUFS if the IA has no null EVD
 *
 * The codes are those for a port that the consumer has chosen on an address of the IA.
 *
 * Return: DAT_SUCCESS or the error.
 */
DAT_RETURN kdapl_sp_ret(int err)
{
	switch (err) {
	case -ESTALE:
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CR);
	case -ESHUTDOWN:
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	case -ENOBUFS:
		return kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEVD);
	case -EACCES:	/* a port below 1024 */
		return kdapl_err(DAT_CONN_QUAL_UNAVAILABLE, DAT_NO_SUBTYPE);
	default:
		return kdapl_errno_ret(err);
	}
}

/**
 * kdapl_sp_free - free a service point
 * @handle: any bit pattern
 * @type: the type it must have
 *
 * Context: may sleep.
 * Return: 0, or -ESTALE if there is no such service point, or not any more.
 */
int kdapl_sp_free(DAT_HANDLE handle, unsigned int type)
{
	struct kdapl_sp *sp = kdapl_obj_get(handle, type);
	int ret;

	if (!sp)
		return -ESTALE;
	ret = kdapl_obj_retire(&sp->obj);
	if (!ret)
		kdapl_sp_destroy(sp);
	kdapl_obj_put(&sp->obj);
	return ret;
}
