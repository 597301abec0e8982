// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Reserved Service Points: listeners that serve one request, for one EP.
 */
#include <linux/export.h>

#include "cm.h"

/* Reserve an EP for the one request; @state: see kdapl_ep_may(). */
static int rsp_reserve(struct kdapl_sp *rsp, struct kdapl_ep *ep, DAT_EP_STATE *state)
{
	int ret;

	mutex_lock(&ep->mutex);
	spin_lock_irq(&ep->lock);
	ret = kdapl_ep_may(ep, KDAPL_IN_RESERVE, state);
	if (!ret)
		kdapl_ep_step(ep, KDAPL_IN_RESERVE);
	spin_unlock_irq(&ep->lock);
	if (!ret) {
		refcount_inc(&ep->obj.ref);
		rsp->ep = ep;
	}
	mutex_unlock(&ep->mutex);
	return ret;
}

/* Everything but the state of @ep, which may be NULL, is checked. Inside kdapl_dev_enter(). */
static int rsp_create(struct kdapl_ia *ia, DAT_CONN_QUAL conn_qual, struct kdapl_ep *ep,
		      struct kdapl_evd *evd, DAT_RSP_HANDLE *handle, DAT_EP_STATE *state)
{
	struct kdapl_sp *rsp;
	int ret;

	rsp = kdapl_sp_alloc(ia, DAT_HANDLE_TYPE_RSP, evd);
	if (IS_ERR(rsp))
		return PTR_ERR(rsp);
	rsp->conn_qual = conn_qual;
	if (ep)
		ret = rsp_reserve(rsp, ep, state);
	else
		ret = kdapl_sp_makes_eps(rsp);
	if (ret) {
		kdapl_sp_destroy(rsp);
		return ret;
	}
	ret = kdapl_sp_start(rsp, handle);
	if (!ret)
		kdapl_obj_put(&rsp->obj);
	return ret;
}

static DAT_RETURN rsp_ret(int err, DAT_EP_STATE state)
{
	switch (err) {
	case -EBADF:
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	case -EBADFD:
		return kdapl_state_err(state);
	default:
		return kdapl_sp_ret(err);
	}
}

/**
 * dat_rsp_create - listen for one connection request, for one EP
 * @ia_handle: IA whose address is listened on
 * @conn_qual: port, 1 to 65535; below 1024 the caller needs CAP_NET_BIND_SERVICE
 * @ep_handle: EP in UNCONNECTED, which needs a PZ to be connected later; or NULL for a
 *	new one that comes with the request, as with DAT_PSP_PROVIDER_FLAG
 * @evd_handle: EVD with the CR flag; while it is full requests are refused and the RSP
 *	goes on waiting
 * @rsp_handle: where the handle goes
 *
 * The EP goes to RESERVED. When the request arrives it goes on to
 * PASSIVE_CONNECTION_PENDING and the RSP ends: its handle is invalid, its port is
 * free, and the event has no sp_handle. Then dat_cr_accept() with a NULL EP, or
 * dat_cr_reject(), decides what becomes of the EP.
 *
 * Context: may sleep; waits for RTNL where the driver does so to listen (irdma).
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE (IA, EP, EVD_CR);
 * DAT_INVALID_PARAMETER (qualifier, NULL @rsp_handle); DAT_INVALID_STATE
 * (subtype that of the EP); DAT_CONN_QUAL_IN_USE; DAT_CONN_QUAL_UNAVAILABLE (the
 * caller may not use that port); DAT_INVALID_ADDRESS (the port has no IP
 * address); DAT_INSUFFICIENT_RESOURCES (MEMORY; TEVD; DEVICE: the connection
 * manager has none); DAT_INTERNAL_ERROR (device removed). After an error the EP
 * is as it was.
 */
DAT_RETURN dat_rsp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
			  DAT_EP_HANDLE ep_handle, DAT_EVD_HANDLE evd_handle,
			  DAT_RSP_HANDLE *rsp_handle)
{
	struct kdapl_ia *ia = kdapl_obj_get(ia_handle, DAT_HANDLE_TYPE_IA);
	struct kdapl_evd *evd = NULL;
	struct kdapl_ep *ep = NULL;
	DAT_EP_STATE state = DAT_EP_STATE_UNCONNECTED;
	DAT_RETURN ret;
	int err;

	if (!ia)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (ep_handle != DAT_HANDLE_NULL) {
		ep = kdapl_obj_get(ep_handle, DAT_HANDLE_TYPE_EP);
		if (!ep || ep->obj.ia != ia) {
			ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
			goto out;
		}
	}
	ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CR);
	evd = kdapl_sp_evd(ia, evd_handle);
	if (!evd)
		goto out;
	if (!conn_qual || conn_qual > U16_MAX) {
		ret = kdapl_arg_err(2);
	} else if (!rsp_handle) {
		ret = kdapl_arg_err(5);
	} else if (!kdapl_dev_enter(ia->dev)) {
		ret = kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	} else {
		err = rsp_create(ia, conn_qual, ep, evd, rsp_handle, &state);
		ret = rsp_ret(err, state);
		kdapl_dev_exit(ia->dev);
	}
out:
	kdapl_obj_put(evd ? &evd->obj : NULL);
	kdapl_obj_put(ep ? &ep->obj : NULL);
	kdapl_obj_put(&ia->obj);
	return ret;
}
EXPORT_SYMBOL(dat_rsp_create);

/**
 * dat_rsp_query - read the parameters of a service point
 * @rsp_handle: RSP
 * @rsp_param_mask: DAT_RSP_FIELD_* bits of the members wanted; 0 is legal
 * @rsp_param: filled entirely
 *
 * These are what dat_rsp_create() was given. When the request arrives, the handle becomes
 * invalid.
 *
 * Context: any.
 * Return: DAT_SUCCESS, DAT_INVALID_HANDLE, or DAT_INVALID_PARAMETER (undefined
 * mask bit, NULL @rsp_param with a mask).
 */
DAT_RETURN dat_rsp_query(DAT_RSP_HANDLE rsp_handle, DAT_RSP_PARAM_MASK rsp_param_mask,
			 DAT_RSP_PARAM *rsp_param)
{
	struct kdapl_sp *rsp = kdapl_obj_get(rsp_handle, DAT_HANDLE_TYPE_RSP);
	DAT_RETURN ret;

	if (!rsp)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RSP);
	ret = kdapl_query_check(rsp_param_mask, DAT_RSP_FIELD_ALL, rsp_param);
	if (ret == DAT_SUCCESS && rsp_param) {
		rsp_param->ia_handle = rsp->obj.ia->obj.handle;
		rsp_param->conn_qual = rsp->conn_qual;
		rsp_param->evd_handle = rsp->evd_handle;
		rsp_param->ep_handle = rsp->ep ? rsp->ep->obj.handle : DAT_HANDLE_NULL;
	}
	kdapl_obj_put(&rsp->obj);
	return ret;
}
EXPORT_SYMBOL(dat_rsp_query);

/**
 * dat_rsp_free - stop listening before a request has arrived
 * @rsp_handle: RSP
 *
 * The EP is UNCONNECTED again.
 *
 * Context: may sleep.
 * Return: DAT_SUCCESS or DAT_INVALID_HANDLE (also if a request has arrived first: its
 * event is there or on its way).
 */
DAT_RETURN dat_rsp_free(DAT_RSP_HANDLE rsp_handle)
{
	if (kdapl_sp_free(rsp_handle, DAT_HANDLE_TYPE_RSP))
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RSP);
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_rsp_free);
