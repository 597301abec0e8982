// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Connection Requests: what a listener received and nobody has answered yet.
 */
#include <linux/export.h>
#include <linux/slab.h>

#include "kdapl.h"

static void cr_release(struct kdapl_obj *obj)
{
	struct kdapl_cr *cr = container_of(obj, struct kdapl_cr, obj);

	kfree_rcu(cr, obj.rcu);
}

/**
 * kdapl_cr_handler - events of an id that waits for its answer
 * @id: cm_id
 * @event: what happened
 *
 * The peer may have gone; who accepts then finds out.
 *
 * Return: 0, always.
 */
static int kdapl_cr_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	return 0;
}

/**
 * kdapl_cr_create - a request has arrived
 * @psp: listener
 * @id: the request's own cm_id; taken over on success
 * @event: the request
 *
 * Context: the listener's handler.
 * Return: the CR, with handle, or an ERR_PTR.
 */
struct kdapl_cr *kdapl_cr_create(struct kdapl_psp *psp, struct rdma_cm_id *id,
				 struct rdma_cm_event *event)
{
	const struct rdma_conn_param *param = &event->param.conn;
	struct kdapl_cr *cr;
	int ret;

	cr = kzalloc(struct_size(cr, pdata, param->private_data_len), GFP_KERNEL);
	if (!cr)
		return ERR_PTR(-ENOMEM);
	kdapl_obj_init(&cr->obj, DAT_HANDLE_TYPE_CR, psp->obj.ia, cr_release);
	mutex_init(&cr->mutex);
	cr->cm_id = id;
	cr->local = id->route.addr.src_addr;
	cr->remote = id->route.addr.dst_addr;
	cr->read_in = param->responder_resources;
	cr->read_out = param->initiator_depth;
	cr->pdata_len = param->private_data_len;
	if (cr->pdata_len)
		memcpy(cr->pdata, param->private_data, cr->pdata_len);
	ret = kdapl_obj_publish(&cr->obj);
	if (ret) {
		kdapl_obj_put(&cr->obj);
		return ERR_PTR(ret);
	}
	id->context = cr;
	id->event_handler = kdapl_cr_handler;
	return cr;
}

/**
 * kdapl_cr_destroy_verbs - refuse the request, as if nobody had listened
 * @cr: the request
 *
 * Context: may sleep; not in the id's handler.
 */
void kdapl_cr_destroy_verbs(struct kdapl_cr *cr)
{
	struct rdma_cm_id *id;

	mutex_lock(&cr->mutex);
	id = cr->cm_id;
	cr->cm_id = NULL;
	mutex_unlock(&cr->mutex);
	if (id) {
		rdma_reject(id, NULL, 0, IB_CM_REJ_NO_RESOURCES);
		rdma_destroy_id(id);
	}
}

/**
 * kdapl_cr_destroy - destroy a retired request
 * @cr: the request
 *
 * Context: may sleep.
 */
void kdapl_cr_destroy(struct kdapl_cr *cr)
{
	kdapl_cr_destroy_verbs(cr);
	kdapl_obj_put(&cr->obj);
}

/**
 * dat_cr_query - read a connection request
 * @cr_handle: CR
 * @cr_param_mask: DAT_CR_FIELD_* bits of the members wanted; 0 is legal
 * @cr_param: filled entirely; its pointers are valid until the CR is answered
 *
 * On InfiniBand and RoCE the private data has the fixed size of the transport,
 * filled up with zeros: consumers carry a length of their own.
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
		cr_param->local_ep_handle = DAT_HANDLE_NULL;
	}
	kdapl_obj_put(&cr->obj);
	return ret;
}
EXPORT_SYMBOL(dat_cr_query);

/**
 * dat_cr_accept - accept a connection request
 * @cr_handle: CR; dead after success
 * @ep_handle: EP in UNCONNECTED, with PZ and connect EVD
 * @private_data_size: bytes for the peer's ESTABLISHED event
 * @private_data: copied during the call
 *
 * The EP goes to COMPLETION_PENDING; ESTABLISHED or ACCEPT_COMPLETION_ERROR on
 * its connect EVD tells how it ended.
 *
 * Context: may sleep; legal in upcalls that run in process context.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE (CR, EP: also when it lacks PZ or
 * connect EVD); DAT_INVALID_PARAMETER (private data); DAT_INVALID_STATE;
 * DAT_INTERNAL_ERROR (device removed). After an error nothing has changed.
 */
DAT_RETURN dat_cr_accept(DAT_CR_HANDLE cr_handle, DAT_EP_HANDLE ep_handle,
			 DAT_COUNT private_data_size, const DAT_PVOID private_data)
{
	struct kdapl_cr *cr = kdapl_obj_get(cr_handle, DAT_HANDLE_TYPE_CR);
	struct kdapl_half *half;
	struct kdapl_ep *ep;
	DAT_RETURN ret;

	if (!cr)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
	ep = kdapl_obj_get(ep_handle, DAT_HANDLE_TYPE_EP);
	if (!ep || ep->obj.ia != cr->obj.ia) {
		ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
		goto out;
	}
	if (private_data_size < 0 || private_data_size > kdapl_ia_max_pdata(cr->obj.ia)) {
		ret = kdapl_arg_err(3);
		goto out;
	}
	if (private_data_size && !private_data) {
		ret = kdapl_arg_err(4);
		goto out;
	}
	if (!kdapl_dev_enter(cr->obj.ia->dev)) {
		ret = kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
		goto out;
	}
	mutex_lock(&ep->mutex);
	mutex_lock(&cr->mutex);
	half = kdapl_ep_half(ep);
	if (!half || !ep->connect_evd || !ep->obj.live) {
		ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
		goto out_unlock;
	}
	if (!cr->cm_id) {
		ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
		goto out_unlock;
	}
	spin_lock_irq(&ep->lock);
	if (ep->state == DAT_EP_STATE_UNCONNECTED && kdapl_half_spent(half))
		ret = kdapl_err(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_DISCONNECTED);
	else if (kdapl_ep_step(ep, KDAPL_IN_ACCEPT) == KDAPL_EP_REFUSED)
		ret = kdapl_state_err(ep->state);
	else
		ret = DAT_SUCCESS;
	spin_unlock_irq(&ep->lock);
	if (ret != DAT_SUCCESS)
		goto out_unlock;
	if (kdapl_obj_retire(&cr->obj)) {
		spin_lock_irq(&ep->lock);
		kdapl_ep_step(ep, KDAPL_IN_UNDO);
		spin_unlock_irq(&ep->lock);
		ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
		goto out_unlock;
	}
	/* from here on the peer gets an answer and the CR is used up (D-16) */
	if (kdapl_cm_accept(half, cr, private_data, private_data_size))
		kdapl_half_end(half, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	kdapl_obj_put(&cr->obj);
out_unlock:
	mutex_unlock(&cr->mutex);
	mutex_unlock(&ep->mutex);
	kdapl_dev_exit(cr->obj.ia->dev);
out:
	if (ep)
		kdapl_obj_put(&ep->obj);
	kdapl_obj_put(&cr->obj);
	return ret;
}
EXPORT_SYMBOL(dat_cr_accept);

/**
 * dat_cr_reject - refuse a connection request
 * @cr_handle: CR; dead after success
 * @private_data_size: bytes for the peer's PEER_REJECTED event
 * @private_data: copied during the call
 *
 * Context: may sleep; legal in upcalls that run in process context.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE; DAT_INVALID_PARAMETER (private
 * data); DAT_INTERNAL_ERROR (device removed).
 */
DAT_RETURN dat_cr_reject(DAT_CR_HANDLE cr_handle, DAT_COUNT private_data_size,
			 const DAT_PVOID private_data)
{
	struct kdapl_cr *cr = kdapl_obj_get(cr_handle, DAT_HANDLE_TYPE_CR);
	struct rdma_cm_id *id;
	DAT_RETURN ret = DAT_SUCCESS;

	if (!cr)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
	if (private_data_size < 0 || private_data_size > kdapl_ia_max_pdata(cr->obj.ia)) {
		ret = kdapl_arg_err(2);
		goto out;
	}
	if (private_data_size && !private_data) {
		ret = kdapl_arg_err(3);
		goto out;
	}
	if (!kdapl_dev_enter(cr->obj.ia->dev)) {
		ret = kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
		goto out;
	}
	mutex_lock(&cr->mutex);
	id = cr->cm_id;
	if (!id || kdapl_obj_retire(&cr->obj)) {
		ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
		id = NULL;
	} else {
		cr->cm_id = NULL;
	}
	mutex_unlock(&cr->mutex);
	if (id) {
		/* a peer that has gone cannot be told: that is success, too */
		rdma_reject(id, private_data, private_data_size, IB_CM_REJ_CONSUMER_DEFINED);
		rdma_destroy_id(id);
		kdapl_obj_put(&cr->obj);
	}
	kdapl_dev_exit(cr->obj.ia->dev);
out:
	kdapl_obj_put(&cr->obj);
	return ret;
}
EXPORT_SYMBOL(dat_cr_reject);
