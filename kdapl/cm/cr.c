// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Connection Requests: those that a listener has received, and the calls that answer them.
 */
#include <linux/export.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "cm.h"
#include "../core/cm_reject.h"
#include "../core/trace.h"

static void cr_destroy_verbs(struct kdapl_cr *cr);

KDAPL_OBJ_IS_FIRST(struct kdapl_cr);

static void cr_release(struct kdapl_obj *obj)
{
	struct kdapl_cr *cr = container_of(obj, struct kdapl_cr, obj);

	kdapl_obj_put(cr->ep ? &cr->ep->obj : NULL);
	kfree_rcu(cr, obj.rcu);
}

static bool cr_has_id(const struct kdapl_obj *obj)
{
	return READ_ONCE(container_of(obj, struct kdapl_cr, obj)->cm_id);
}

static void cr_device_lost(struct kdapl_obj *obj)
{
	cr_destroy_verbs(container_of(obj, struct kdapl_cr, obj));
}

static const struct kdapl_obj_ops cr_ops = {
	.release = cr_release,
	.has_id = cr_has_id,
	.device_lost = cr_device_lost,
};

/* The id of a request that waits for its answer. If the peer goes, dat_cr_accept() finds out. */
static int cr_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	return 0;
}

static struct kdapl_cr *cr_alloc(struct kdapl_ia *ia, struct rdma_cm_id *id, const void *pdata,
				 u32 pdata_len)
{
	struct kdapl_cr *cr;

	cr = kzalloc(struct_size(cr, pdata, pdata_len), GFP_KERNEL);
	if (!cr)
		return NULL;
	kdapl_obj_init(&cr->obj, DAT_HANDLE_TYPE_CR, ia, &cr_ops);
	mutex_init(&cr->mutex);
	cr->cm_id = id;
	cr->pdata_len = pdata_len;
	if (pdata_len)
		memcpy(cr->pdata, pdata, pdata_len);
	return cr;
}

/* Give the request its handle, and before that an EP if it is to come with one. */
static int cr_publish(struct kdapl_cr *cr, struct kdapl_sp *sp)
{
	struct kdapl_ep *made = NULL;
	int ret;

	if (sp->null_evd) {
		made = kdapl_ep_tentative(sp->obj.ia, sp->null_evd, cr);
		if (IS_ERR(made))
			return PTR_ERR(made);
		cr->ep = made;
		cr->made = true;
	} else if (sp->ep) {
		refcount_inc(&sp->ep->obj.ref);
		cr->ep = sp->ep;
	}
	ret = kdapl_obj_publish(&cr->obj);
	if (ret && made)
		kdapl_ep_take_back(made, false);
	if (!ret)
		trace_kdapl_cr_arrived(cr->obj.handle, sp->obj.handle);
	return ret;
}

/* The read depths that the peer has asked for, as far as the driver tells. */
static void cr_depths(struct kdapl_cr *cr, const struct rdma_conn_param *param)
{
	const struct kdapl_device *dev = cr->obj.ia->dev;

	if (dev->caps.no_asked_depths) {
		cr->read_in = min_t(int, dev->attrs.max_qp_rd_atom, U8_MAX);
		cr->read_out = min_t(int, dev->attrs.max_qp_init_rd_atom, U8_MAX);
	} else {
		cr->read_in = param->responder_resources;
		cr->read_out = param->initiator_depth;
	}
}

/**
 * kdapl_cr_create - make a CR for a request that has arrived
 * @sp: listener
 * @id: the request's own cm_id; taken over on success
 * @param: what the peer says
 *
 * Context: the listener's handler.
 * Return: the CR, with its handle and referenced, or an ERR_PTR.
 */
struct kdapl_cr *kdapl_cr_create(struct kdapl_sp *sp, struct rdma_cm_id *id,
				 const struct rdma_conn_param *param)
{
	struct kdapl_cr *cr;
	int ret;

	cr = cr_alloc(sp->obj.ia, id, param->private_data, param->private_data_len);
	if (!cr)
		return ERR_PTR(-ENOMEM);
	cr->local = id->route.addr.src_addr;
	cr->remote = id->route.addr.dst_addr;
	cr_depths(cr, param);
	kdapl_device_id_made(cr->obj.ia->dev);
	ret = cr_publish(cr, sp);
	if (ret) {
		kdapl_device_id_gone(cr->obj.ia->dev);
		kdapl_obj_put(&cr->obj);
		return ERR_PTR(ret);
	}
	id->context = NULL;	/* no CR: dat_cr_handoff() moves the id to another one */
	id->event_handler = cr_handler;
	return cr;
}

/*
 * Release the EP of a request that is not accepted: the EP of an RSP is the consumer's again, one
 * that was made for the request is destroyed.
 */
static void cr_leave_ep(struct kdapl_cr *cr)
{
	if (cr->made)
		kdapl_ep_take_back(cr->ep, true);
	else if (cr->ep)
		kdapl_ep_leave(cr->ep, KDAPL_IN_DECLINE);
}

/**
 * kdapl_cr_announce - report a request to the consumer
 * @sp: service point it came through; an RSP is not live any more
 * @evd: its EVD
 * @cr: the request
 * @promised: a place in the EVD is kept for it
 *
 * Context: may sleep.
 * Return: true if there was room in the EVD; otherwise the caller has to refuse the request.
 */
bool kdapl_cr_announce(struct kdapl_sp *sp, struct kdapl_evd *evd, struct kdapl_cr *cr,
		       bool promised)
{
	struct kdapl_event ev = {
		.number = DAT_CONNECTION_REQUEST_EVENT,
		.signalled = true,
	};
	DAT_CR_ARRIVAL_EVENT_DATA *data = &ev.data.cr_arrival_event_data;

	if (sp->obj.type == DAT_HANDLE_TYPE_CSP)
		data->sp_handle.csp_handle = sp->obj.handle;
	else if (sp->obj.type == DAT_HANDLE_TYPE_PSP)
		data->sp_handle.psp_handle = sp->obj.handle;
	data->local_ia_address_ptr = (DAT_IA_ADDRESS_PTR)&cr->local;
	data->conn_qual = sp->conn_qual;
	data->cr_handle = cr->obj.handle;
	data->truncate_flag = DAT_FALSE;
	return promised ? kdapl_evd_queue_promised(evd, &ev) : kdapl_evd_queue(evd, &ev);
}

/**
 * kdapl_cr_refuse - refuse a request that could not be reported
 * @cr: the request
 *
 * The reason on the wire is not that of dat_cr_reject(): the peer must see NON_PEER_REJECTED.
 *
 * Context: may sleep; not in the id's handler.
 */
void kdapl_cr_refuse(struct kdapl_cr *cr)
{
	if (kdapl_obj_retire(&cr->obj))
		return;
	kdapl_count(refused);
	kdapl_cr_destroy(cr);
}

/* Refuse the request, unless it has an answer. */
static void cr_answer_no(struct kdapl_cr *cr, const void *pdata, u8 len, u8 reason)
{
	struct kdapl_device *dev = cr->obj.ia->dev;
	struct rdma_cm_id *id;

	mutex_lock(&cr->mutex);
	id = cr->cm_id;
	cr->cm_id = NULL;
	mutex_unlock(&cr->mutex);
	if (id)
		kdapl_cm_reject(dev, id, pdata, len, reason);
}

/* Refuse the request, as if there had been no listener. May sleep. */
static void cr_destroy_verbs(struct kdapl_cr *cr)
{
	cr_answer_no(cr, NULL, 0, IB_CM_REJ_NO_RESOURCES);
}

/**
 * kdapl_cr_destroy - destroy a retired request
 * @cr: the request
 *
 * Context: may sleep.
 */
void kdapl_cr_destroy(struct kdapl_cr *cr)
{
	cr_destroy_verbs(cr);
	cr_leave_ep(cr);
	kdapl_obj_put(&cr->obj);
}

/**
 * dat_cr_query - read a connection request
 * @cr_handle: CR
 * @cr_param_mask: DAT_CR_FIELD_* bits of the members wanted; 0 is legal
 * @cr_param: filled entirely; its pointers are valid until the CR is answered
 *
 * The peer's address and port, its private data, and the EP the service point has
 * supplied, if any. May be called any number of times until the CR is answered. On
 * InfiniBand and RoCE private data has the fixed size of the transport, padded with
 * zeros: it should carry a length of its own.
 *
 * Context: any.
 * Return: DAT_SUCCESS, DAT_INVALID_HANDLE, or DAT_INVALID_PARAMETER (undefined
 * mask bit, NULL @cr_param with a mask).
 */
DAT_RETURN dat_cr_query(DAT_CR_HANDLE cr_handle, DAT_CR_PARAM_MASK cr_param_mask,
			DAT_CR_PARAM *cr_param)
{
	struct kdapl_cr *cr = kdapl_obj_get(cr_handle, DAT_HANDLE_TYPE_CR);
	DAT_RETURN ret;

	if (!cr)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
	ret = kdapl_query_check(cr_param_mask, DAT_CR_FIELD_ALL, cr_param);
	if (ret == DAT_SUCCESS && cr_param) {
		cr_param->remote_ia_address_ptr = (DAT_IA_ADDRESS_PTR)&cr->remote;
		cr_param->remote_port_qual = kdapl_addr_port(&cr->remote);
		cr_param->private_data_size = cr->pdata_len;
		cr_param->private_data = cr->pdata_len ? cr->pdata : NULL;
		cr_param->local_ep_handle = cr->ep ? cr->ep->obj.handle : DAT_HANDLE_NULL;
	}
	kdapl_obj_put(&cr->obj);
	return ret;
}
EXPORT_SYMBOL(dat_cr_query);

/*
 * Retire the request and move the EP to COMPLETION_PENDING, or change nothing. -ESTALE: the request
 * has an answer; -ENODEV: the device has failed and taken the id; -EBADF: the EP has been freed, or
 * lacks a PZ or a connect EVD; -EBADFD: @state forbids it. ep->mutex and cr->mutex held.
 */
static int cr_begin(struct kdapl_cr *cr, struct kdapl_ep *ep, DAT_EP_STATE *state)
{
	enum kdapl_ep_input input = cr->ep ? KDAPL_IN_ACCEPT_OWN : KDAPL_IN_ACCEPT;
	int ret;

	if (!kdapl_ep_conn(ep) || !ep->connect_evd)
		return -EBADF;
	if (!cr->cm_id)		/* who gives an answer retires the request first */
		return READ_ONCE(cr->obj.live) ? -ENODEV : -ESTALE;
	spin_lock_irq(&ep->lock);
	ret = kdapl_ep_may(ep, input, state);
	if (!ret && kdapl_obj_retire(&cr->obj))
		ret = -ESTALE;
	if (!ret) {
		kdapl_ep_step(ep, input);
		ep->cr = NULL;
	}
	spin_unlock_irq(&ep->lock);
	return ret;
}

/* Everything but handles and the state has been checked. Inside kdapl_dev_enter(). */
static int cr_accept(struct kdapl_cr *cr, struct kdapl_ep *ep, const void *pdata, u8 len,
		     DAT_EP_STATE *state)
{
	int ret;

	mutex_lock(&ep->mutex);
	mutex_lock(&cr->mutex);
	ret = cr_begin(cr, ep, state);
	if (!ret) {
		/* now the peer gets an answer in any case, and the CR is used up (D-16) */
		if (kdapl_cm_accept(kdapl_ep_conn(ep), cr, pdata, len))
			kdapl_conn_end(kdapl_ep_conn(ep), READ_ONCE(cr->obj.ia->dev->fatal) ?
				       DAT_CONNECTION_EVENT_BROKEN :
				       DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	}
	mutex_unlock(&cr->mutex);
	mutex_unlock(&ep->mutex);
	if (!ret)
		kdapl_obj_put(&cr->obj);	/* the handle's */
	return ret;
}

static DAT_RETURN cr_accept_ret(int err, DAT_EP_STATE state)
{
	switch (err) {
	case 0:
		return DAT_SUCCESS;
	case -ENODEV:
		return kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	case -EBADF:
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	case -EBADFD:
		return kdapl_state_err(state);
	default:
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
	}
}

/**
 * dat_cr_accept - accept a connection request
 * @cr_handle: CR; invalid after success
 * @ep_handle: EP in UNCONNECTED; NULL if the request came with one, which
 *	dat_cr_query() tells. In both cases the EP needs a PZ and a connect EVD
 * @private_data_size: bytes for the peer's ESTABLISHED event, see
 *	kdat_ia_pdata_limits()
 * @private_data: copied during the call
 *
 * The EP goes to COMPLETION_PENDING, and an event on its connect EVD tells the outcome:
 * ESTABLISHED or ACCEPT_COMPLETION_ERROR, or BROKEN if the device goes.
 *
 * Context: may sleep; legal in upcalls that run in process context.
 * Return: DAT_SUCCESS (the answer is under way, and an event will report its outcome);
 * DAT_INVALID_HANDLE (CR; EP, also if it lacks PZ or
 * connect EVD, or if both or neither of CR and call supply one);
 * DAT_INVALID_PARAMETER (private data: too long, or NULL); DAT_INVALID_STATE
 * (subtype that of the EP); DAT_INTERNAL_ERROR (device removed). After an error
 * nothing has changed.
 */
DAT_RETURN dat_cr_accept(DAT_CR_HANDLE cr_handle, DAT_EP_HANDLE ep_handle,
			 DAT_COUNT private_data_size, const DAT_PVOID private_data)
{
	struct kdapl_cr *cr = kdapl_obj_get(cr_handle, DAT_HANDLE_TYPE_CR);
	struct kdat_pdata_limits limits;
	struct kdapl_ep *ep = NULL;
	DAT_EP_STATE state = DAT_EP_STATE_UNCONNECTED;
	DAT_RETURN ret;
	int err;

	if (!cr)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
	if (ep_handle != DAT_HANDLE_NULL)
		ep = kdapl_obj_get(ep_handle, DAT_HANDLE_TYPE_EP);
	/* exactly one EP, that of the request or that of the call */
	if (cr->ep ? ep_handle != DAT_HANDLE_NULL : !ep || ep->obj.ia != cr->obj.ia) {
		ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
		goto out;
	}
	kdapl_ia_pdata(cr->obj.ia, &limits);
	ret = kdapl_arg_err(3);
	if (private_data_size < 0 || private_data_size > limits.accept)
		goto out;
	ret = kdapl_arg_err(4);
	if (private_data_size && !private_data)
		goto out;
	ret = kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	if (!kdapl_dev_enter(cr->obj.ia->dev))
		goto out;
	err = cr_accept(cr, cr->ep ?: ep, private_data, private_data_size, &state);
	ret = cr_accept_ret(err, state);
	if (ret == DAT_SUCCESS)
		trace_kdapl_cr_accepted(cr_handle, (cr->ep ?: ep)->obj.handle);
	kdapl_dev_exit(cr->obj.ia->dev);
out:
	kdapl_obj_put(ep ? &ep->obj : NULL);
	kdapl_obj_put(&cr->obj);
	return ret;
}
EXPORT_SYMBOL(dat_cr_accept);

/**
 * dat_cr_reject - refuse a connection request
 * @cr_handle: CR; invalid after success
 * @private_data_size: bytes for the peer's PEER_REJECTED event, see
 *	kdat_ia_pdata_limits()
 * @private_data: copied during the call
 *
 * The EP of an RSP is UNCONNECTED again; one that was made for the request is destroyed.
 * The call also works after the device has been removed.
 *
 * Context: may sleep; legal in upcalls that run in process context.
 * Return: DAT_SUCCESS (also when the peer or the device has gone);
 * DAT_INVALID_HANDLE; DAT_INVALID_PARAMETER (private data: too long, or NULL).
 */
DAT_RETURN dat_cr_reject(DAT_CR_HANDLE cr_handle, DAT_COUNT private_data_size,
			 const DAT_PVOID private_data)
{
	struct kdapl_cr *cr = kdapl_obj_get(cr_handle, DAT_HANDLE_TYPE_CR);
	struct kdat_pdata_limits limits;
	DAT_RETURN ret = DAT_SUCCESS;
	unsigned int noio;
	bool mine;

	if (!cr)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
	kdapl_ia_pdata(cr->obj.ia, &limits);
	if (private_data_size < 0 || private_data_size > limits.reject) {
		ret = kdapl_arg_err(2);
		goto out;
	}
	if (private_data_size && !private_data) {
		ret = kdapl_arg_err(3);
		goto out;
	}
	mutex_lock(&cr->mutex);		/* not in the middle of a handoff */
	mine = !kdapl_obj_retire(&cr->obj);
	mutex_unlock(&cr->mutex);
	if (!mine) {
		ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
		goto out;
	}
	trace_kdapl_cr_rejected(cr_handle, cr->ep ? cr->ep->obj.handle : DAT_HANDLE_NULL);
	noio = memalloc_noio_save();	/* an RSP with the same EP may wait for it (D-32) */
	cr_answer_no(cr, private_data, private_data_size, IB_CM_REJ_CONSUMER_DEFINED);
	cr_leave_ep(cr);
	memalloc_noio_restore(noio);
	kdapl_obj_put(&cr->obj);	/* the handle's */
out:
	kdapl_obj_put(&cr->obj);
	return ret;
}
EXPORT_SYMBOL(dat_cr_reject);

/* The PSP of the IA on a qualifier, and its EVD, both referenced; or NULL. */
static struct kdapl_sp *cr_find_psp(struct kdapl_ia *ia, DAT_CONN_QUAL conn_qual,
				    struct kdapl_evd **evd)
{
	struct kdapl_sp *psp, *found = NULL;

	spin_lock_irq(&ia->lock);
	list_for_each_entry(psp, &ia->objs[DAT_HANDLE_TYPE_PSP], obj.node) {
		/* one that is still being made may fail to listen */
		if (psp->out || psp->conn_qual != conn_qual)
			continue;
		/* while the PSP is on the list, it uses the EVD */
		refcount_inc(&psp->obj.ref);
		refcount_inc(&psp->evd->obj.ref);
		*evd = psp->evd;
		found = psp;
		break;
	}
	spin_unlock_irq(&ia->lock);
	return found;
}

/*
 * Make a new CR, which comes through another service point and takes over the id of the old one.
 * @retired: the caller has to destroy the old one; if false, dat_ia_close() destroys both. An
 * ERR_PTR: -ESTALE if the request has an answer, -ENODEV if the device has failed and taken the id,
 * or an errno of kdapl_obj_publish(). cr->mutex held. Inside kdapl_dev_enter().
 */
static struct kdapl_cr *cr_hand_over(struct kdapl_cr *cr, struct kdapl_sp *psp, bool *retired)
{
	struct kdapl_cr *next;
	int ret;

	if (!READ_ONCE(cr->obj.live))
		return ERR_PTR(-ESTALE);
	if (!cr->cm_id)
		return ERR_PTR(-ENODEV);
	next = cr_alloc(cr->obj.ia, cr->cm_id, cr->pdata, cr->pdata_len);
	if (!next)
		return ERR_PTR(-ENOMEM);
	next->local = cr->local;
	next->remote = cr->remote;
	next->read_in = cr->read_in;
	next->read_out = cr->read_out;
	ret = cr_publish(next, psp);
	if (ret) {
		kdapl_obj_put(&next->obj);
		return ERR_PTR(ret);
	}
	cr->cm_id = NULL;
	*retired = !kdapl_obj_retire(&cr->obj);
	return next;
}

static DAT_RETURN cr_handoff_ret(int err)
{
	if (err == -ESTALE)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
	if (err == -ENODEV)
		return kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	return err ? kdapl_publish_ret(err) : DAT_SUCCESS;
}

/**
 * dat_cr_handoff - pass a connection request on to another service point
 * @cr_handle: CR; invalid after success
 * @handoff: qualifier of a PSP of the same IA instance
 *
 * The PSP's EVD gets an event with a new CR, which has the same peer and private data.
 * If that EVD is full, the request is refused as any other would be. The EP of an RSP is
 * UNCONNECTED again; one that was made for the request is destroyed.
 *
 * Context: may sleep; legal in upcalls that run in process context.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE; DAT_INVALID_PARAMETER (no PSP has
 * this qualifier); DAT_INSUFFICIENT_RESOURCES (MEMORY); DAT_INTERNAL_ERROR
 * (device removed). After an error nothing has changed.
 */
DAT_RETURN dat_cr_handoff(DAT_CR_HANDLE cr_handle, DAT_CONN_QUAL handoff)
{
	struct kdapl_cr *cr = kdapl_obj_get(cr_handle, DAT_HANDLE_TYPE_CR);
	struct kdapl_evd *evd = NULL;
	struct kdapl_sp *psp = NULL;
	struct kdapl_cr *next;
	bool retired = false;
	unsigned int noio;
	DAT_RETURN ret;

	if (!cr)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
	ret = kdapl_arg_err(2);
	if (!handoff)	/* not a port */
		goto out;
	psp = cr_find_psp(cr->obj.ia, handoff, &evd);
	if (!psp)
		goto out;
	ret = kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	if (!kdapl_dev_enter(cr->obj.ia->dev))
		goto out;
	noio = memalloc_noio_save();	/* as if the request had just arrived (D-32) */
	mutex_lock(&cr->mutex);
	next = cr_hand_over(cr, psp, &retired);
	mutex_unlock(&cr->mutex);
	ret = cr_handoff_ret(PTR_ERR_OR_ZERO(next));
	if (!IS_ERR(next)) {
		if (retired)
			kdapl_cr_destroy(cr);	/* before the event: its EP must be free then */
		if (!kdapl_cr_announce(psp, evd, next, false))
			kdapl_cr_refuse(next);
		kdapl_obj_put(&next->obj);
	}
	memalloc_noio_restore(noio);
	kdapl_dev_exit(cr->obj.ia->dev);
out:
	kdapl_obj_put(evd ? &evd->obj : NULL);
	kdapl_obj_put(psp ? &psp->obj : NULL);
	kdapl_obj_put(&cr->obj);
	return ret;
}
EXPORT_SYMBOL(dat_cr_handoff);
