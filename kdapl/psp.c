// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Public Service Points: listeners on the address of their IA.
 */
#include <linux/export.h>
#include <linux/slab.h>

#include "kdapl.h"

/*
 * What the transport may hold back for us. More than the length of the EVD, which
 * decides about requests when they arrive: soft-iWARP forgets connections beyond
 * its backlog, and when the peer then closes one, it closes the listener.
 */
#define PSP_MIN_BACKLOG	128
#define PSP_MAX_BACKLOG	1024	/* some allocate for it */

/*
 * Events of the listening id. A request comes with an id of its own, whose
 * context is the listener's until the CR takes it over; returning non-zero
 * destroys that id.
 */
static int psp_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct kdapl_psp *psp = id->context;
	struct kdapl_event ev = {
		.number = DAT_CONNECTION_REQUEST_EVENT,
		.signalled = true,
	};
	DAT_CR_ARRIVAL_EVENT_DATA *data = &ev.data.cr_arrival_event_data;
	struct kdapl_cr *cr;
	bool queued;

	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return 0;
	cr = kdapl_cr_create(psp, id, event);
	if (IS_ERR(cr))
		goto refuse;
	data->sp_handle.psp_handle = psp->obj.handle;
	data->local_ia_address_ptr = (DAT_IA_ADDRESS_PTR)&cr->local;
	data->conn_qual = psp->conn_qual;
	data->cr_handle = cr->obj.handle;
	data->truncate_flag = DAT_FALSE;
	queued = kdapl_evd_queue(psp->evd, &ev);
	if (queued || kdapl_obj_retire(&cr->obj)) {	/* or dat_ia_close() has it */
		kdapl_obj_put(&cr->obj);
		return 0;
	}
	/* nobody has its handle yet, so nobody waits for this handler with the lock held */
	mutex_lock_nested(&cr->mutex, SINGLE_DEPTH_NESTING);
	queued = !cr->cm_id;		/* removal of the device was faster */
	cr->cm_id = NULL;
	mutex_unlock(&cr->mutex);
	kdapl_obj_put(&cr->obj);	/* the handle's */
	kdapl_obj_put(&cr->obj);
	if (queued)
		return 0;
refuse:
	/* not the reason of dat_cr_reject: the peer must see NON_PEER_REJECTED */
	rdma_reject(id, NULL, 0, IB_CM_REJ_NO_RESOURCES);
	return -ECONNREFUSED;
}

static void psp_release(struct kdapl_obj *obj)
{
	struct kdapl_psp *psp = container_of(obj, struct kdapl_psp, obj);

	kfree_rcu(psp, obj.rcu);
}

/**
 * kdapl_psp_destroy_verbs - stop listening
 * @psp: the service point
 *
 * Context: may sleep; waits for a handler that runs.
 */
void kdapl_psp_destroy_verbs(struct kdapl_psp *psp)
{
	struct rdma_cm_id *id;

	mutex_lock(&psp->mutex);
	id = psp->cm_id;
	psp->cm_id = NULL;
	mutex_unlock(&psp->mutex);
	if (id)
		rdma_destroy_id(id);
}

/**
 * kdapl_psp_destroy - destroy a retired service point
 * @psp: retired or never published
 *
 * Context: may sleep.
 */
void kdapl_psp_destroy(struct kdapl_psp *psp)
{
	kdapl_psp_destroy_verbs(psp);
	kdapl_obj_unuse(&psp->evd->obj);
	kdapl_obj_put(&psp->obj);
}

static DAT_RETURN psp_listen(struct kdapl_psp *psp)
{
	struct kdapl_ia *ia = psp->obj.ia;
	struct sockaddr_storage addr;
	struct rdma_cm_id *id;
	struct net *net;
	int ret;

	if (kdapl_ia_address(ia, &addr, &net)) {
		pr_err("%s: the port has no IP address to listen on: give its network device one\n",
		       ia->name);
		return kdapl_err(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE);
	}
	id = rdma_create_id(net, psp_handler, psp, RDMA_PS_TCP, IB_QPT_RC);
	put_net(net);
	if (IS_ERR(id))
		return kdapl_errno_ret(PTR_ERR(id));
	kdapl_addr_set_port(&addr, psp->conn_qual);
	ret = rdma_bind_addr(id, (struct sockaddr *)&addr);
	if (!ret)
		ret = rdma_listen(id, clamp(psp->evd->qlen, PSP_MIN_BACKLOG, PSP_MAX_BACKLOG));
	if (!ret) {
		psp->cm_id = id;
		return DAT_SUCCESS;
	}
	rdma_destroy_id(id);
	if (ret == -EADDRINUSE)
		return kdapl_err(DAT_CONN_QUAL_IN_USE, DAT_NO_SUBTYPE);
	pr_err("%s: cannot listen on %pISpc: %pe\n", ia->name, &addr, ERR_PTR(ret));
	if (ret == -EADDRNOTAVAIL)
		return kdapl_err(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE);
	return kdapl_errno_ret(ret);
}

/**
 * dat_psp_create - listen for connection requests
 * @ia_handle: IA whose address is listened on
 * @conn_qual: port, 1 to 65535
 * @evd_handle: EVD with the CR flag; its length is the backlog: a request that
 *	does not fit is refused on the wire
 * @psp_flags: DAT_PSP_CONSUMER_FLAG
 * @psp_handle: where the handle goes
 *
 * Requests may arrive before the call returns.
 *
 * Context: may sleep.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE (IA, EVD_CR); DAT_INVALID_PARAMETER
 * (qualifier, flags, NULL @psp_handle); DAT_MODEL_NOT_SUPPORTED (provider
 * flag, see provider attribute ep_creator); DAT_CONN_QUAL_IN_USE;
 * DAT_INVALID_ADDRESS (the port has no IP address); DAT_INSUFFICIENT_RESOURCES;
 * DAT_INTERNAL_ERROR (device removed).
 */
DAT_RETURN dat_psp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
			  DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS psp_flags,
			  DAT_PSP_HANDLE *psp_handle)
{
	struct kdapl_ia *ia = kdapl_obj_get(ia_handle, DAT_HANDLE_TYPE_IA);
	struct kdapl_evd *evd = NULL;
	struct kdapl_psp *psp;
	DAT_RETURN ret;
	int err;

	if (!ia)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	evd = kdapl_obj_get(evd_handle, DAT_HANDLE_TYPE_EVD);
	if (!evd || evd->obj.ia != ia || !(evd->flags & DAT_EVD_CR_FLAG)) {
		ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CR);
		goto out;
	}
	if (!conn_qual || conn_qual > U16_MAX) {
		ret = kdapl_arg_err(2);
		goto out;
	}
	if (psp_flags != DAT_PSP_CONSUMER_FLAG && psp_flags != DAT_PSP_PROVIDER_FLAG) {
		ret = kdapl_arg_err(4);
		goto out;
	}
	if (!psp_handle) {
		ret = kdapl_arg_err(5);
		goto out;
	}
	if (psp_flags == DAT_PSP_PROVIDER_FLAG) {
		ret = kdapl_err(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
		goto out;
	}
	if (!kdapl_dev_enter(ia->dev)) {
		ret = kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
		goto out;
	}
	ret = kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	psp = kzalloc(sizeof(*psp), GFP_KERNEL);
	if (!psp)
		goto out_exit;
	if (kdapl_obj_use(&evd->obj)) {
		ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CR);
		kfree(psp);
		goto out_exit;
	}
	kdapl_obj_init(&psp->obj, DAT_HANDLE_TYPE_PSP, ia, psp_release);
	mutex_init(&psp->mutex);
	psp->conn_qual = conn_qual;
	psp->flags = psp_flags;
	psp->evd = evd;
	psp->evd_handle = evd_handle;
	/* the handle first: the first request may name it before we return */
	err = kdapl_obj_publish(&psp->obj);
	if (err) {
		ret = kdapl_publish_ret(err);
		kdapl_psp_destroy(psp);
		goto out_exit;
	}
	*psp_handle = psp->obj.handle;
	mutex_lock(&psp->mutex);
	if (psp->obj.live)
		ret = psp_listen(psp);
	else	/* closed under our hands */
		ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	mutex_unlock(&psp->mutex);
	if (ret != DAT_SUCCESS && !kdapl_obj_retire(&psp->obj))
		kdapl_psp_destroy(psp);
	kdapl_obj_put(&psp->obj);
out_exit:
	kdapl_dev_exit(ia->dev);
out:
	if (evd)
		kdapl_obj_put(&evd->obj);
	kdapl_obj_put(&ia->obj);
	return ret;
}
EXPORT_SYMBOL(dat_psp_create);

/**
 * dat_psp_query - read the parameters of a service point
 * @psp_handle: PSP
 * @psp_param_mask: DAT_PSP_FIELD_* bits of the members wanted; 0 is legal
 * @psp_param: filled entirely
 *
 * Context: any.
 * Return: DAT_SUCCESS, DAT_INVALID_HANDLE, or DAT_INVALID_PARAMETER (undefined
 * mask bit, NULL @psp_param with a mask).
 */
DAT_RETURN dat_psp_query(DAT_PSP_HANDLE psp_handle, DAT_PSP_PARAM_MASK psp_param_mask,
			 DAT_PSP_PARAM *psp_param)
{
	struct kdapl_psp *psp = kdapl_obj_get(psp_handle, DAT_HANDLE_TYPE_PSP);
	DAT_RETURN ret;

	if (!psp)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PSP);
	ret = kdapl_query_check(psp_param_mask, DAT_PSP_FIELD_ALL, psp_param);
	if (ret == DAT_SUCCESS && psp_param) {
		psp_param->ia_handle = psp->obj.ia->obj.handle;
		psp_param->conn_qual = psp->conn_qual;
		psp_param->evd_handle = psp->evd_handle;
		psp_param->psp_flags = psp->flags;
	}
	kdapl_obj_put(&psp->obj);
	return ret;
}
EXPORT_SYMBOL(dat_psp_query);

/**
 * dat_psp_free - stop listening
 * @psp_handle: PSP
 *
 * A request that has been delivered stays valid, with its CR; later ones are
 * refused as if nobody had ever listened.
 *
 * Context: may sleep.
 * Return: DAT_SUCCESS or DAT_INVALID_HANDLE.
 */
DAT_RETURN dat_psp_free(DAT_PSP_HANDLE psp_handle)
{
	struct kdapl_psp *psp = kdapl_obj_get(psp_handle, DAT_HANDLE_TYPE_PSP);
	DAT_RETURN ret = DAT_SUCCESS;

	if (!psp)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PSP);
	if (kdapl_obj_retire(&psp->obj))
		ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PSP);
	else
		kdapl_psp_destroy(psp);
	kdapl_obj_put(&psp->obj);
	return ret;
}
EXPORT_SYMBOL(dat_psp_free);
