// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Public Service Points: listeners that serve any number of requests.
 */
#include <linux/export.h>

#include "cm.h"

/* Both creating calls. @conn_qual: the port; 0 asks for any, which is stored there. */
static int psp_create(struct kdapl_ia *ia, DAT_CONN_QUAL *conn_qual, struct kdapl_evd *evd,
		      DAT_PSP_FLAGS flags, DAT_PSP_HANDLE *handle)
{
	struct kdapl_sp *psp;
	int ret;

	if (!kdapl_dev_enter(ia->dev))
		return -ENODEV;
	psp = kdapl_sp_alloc(ia, DAT_HANDLE_TYPE_PSP, evd);
	if (IS_ERR(psp)) {
		ret = PTR_ERR(psp);
		goto out;
	}
	psp->conn_qual = *conn_qual;
	psp->flags = flags;
	if (flags == DAT_PSP_PROVIDER_FLAG) {
		ret = kdapl_sp_makes_eps(psp);
		if (ret) {
			kdapl_sp_destroy(psp);
			goto out;
		}
	}
	ret = kdapl_sp_start(psp, handle);
	if (!ret) {
		*conn_qual = psp->conn_qual;
		kdapl_obj_put(&psp->obj);
	}
out:
	kdapl_dev_exit(ia->dev);
	return ret;
}

static bool psp_flags_valid(DAT_PSP_FLAGS flags)
{
	return flags == DAT_PSP_CONSUMER_FLAG || flags == DAT_PSP_PROVIDER_FLAG;
}

/**
 * dat_psp_create - listen for connection requests
 * @ia_handle: IA whose address is listened on
 * @conn_qual: port, 1 to 65535; below 1024 the caller needs CAP_NET_BIND_SERVICE
 * @evd_handle: EVD with the CR flag; its length is the backlog: a request that
 *	does not fit is refused on the wire
 * @psp_flags: DAT_PSP_CONSUMER_FLAG: the consumer names an EP when it accepts;
 *	DAT_PSP_PROVIDER_FLAG: each request comes with a new EP in
 *	TENTATIVE_CONNECTION_PENDING, which dat_cr_query() tells; give it a PZ and
 *	EVDs with dat_ep_modify() before dat_cr_accept()
 * @psp_handle: where the handle goes
 *
 * Requests may arrive before the call returns.
 *
 * Context: may sleep; waits for RTNL where the driver does so to listen (irdma).
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE (IA, EVD_CR); DAT_INVALID_PARAMETER
 * (qualifier, flags, NULL @psp_handle); DAT_CONN_QUAL_IN_USE;
 * DAT_CONN_QUAL_UNAVAILABLE (the caller may not use that port);
 * DAT_INVALID_ADDRESS (the port has no IP address); DAT_INSUFFICIENT_RESOURCES
 * (MEMORY; TEVD; DEVICE: the connection manager has none); DAT_INTERNAL_ERROR
 * (device removed).
 */
DAT_RETURN dat_psp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
			  DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS psp_flags,
			  DAT_PSP_HANDLE *psp_handle)
{
	struct kdapl_ia *ia = kdapl_obj_get(ia_handle, DAT_HANDLE_TYPE_IA);
	struct kdapl_evd *evd;
	DAT_RETURN ret;

	if (!ia)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CR);
	evd = kdapl_sp_evd(ia, evd_handle);
	if (!evd)
		goto out;
	if (!conn_qual || conn_qual > U16_MAX)
		ret = kdapl_arg_err(2);
	else if (!psp_handle)
		ret = kdapl_arg_err(5);
	else if (!psp_flags_valid(psp_flags))
		ret = kdapl_arg_err(4);
	else
		ret = kdapl_sp_ret(psp_create(ia, &conn_qual, evd, psp_flags, psp_handle));
	kdapl_obj_put(&evd->obj);
out:
	kdapl_obj_put(&ia->obj);
	return ret;
}
EXPORT_SYMBOL(dat_psp_create);

/**
 * dat_psp_create_any - listen on a port that is free
 * @ia_handle: as for dat_psp_create()
 * @conn_qual: where the port goes, which is not a privileged one
 * @evd_handle: as for dat_psp_create()
 * @psp_flags: as for dat_psp_create()
 * @psp_handle: where the handle goes
 *
 * The port comes from the range that the administrator has reserved for that
 * (net.ipv4.ip_local_port_range).
 *
 * Context: may sleep; waits for RTNL where the driver does so to listen (irdma).
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE (IA, EVD_CR); DAT_INVALID_PARAMETER
 * (NULL @conn_qual or @psp_handle, flags); DAT_CONN_QUAL_UNAVAILABLE (none is
 * free); DAT_INVALID_ADDRESS (the port has no IP address);
 * DAT_INSUFFICIENT_RESOURCES (MEMORY; TEVD; DEVICE: the connection manager has
 * none); DAT_INTERNAL_ERROR (device removed). After an error both results are as
 * they were.
 */
DAT_RETURN dat_psp_create_any(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL *conn_qual,
			      DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS psp_flags,
			      DAT_PSP_HANDLE *psp_handle)
{
	struct kdapl_ia *ia = kdapl_obj_get(ia_handle, DAT_HANDLE_TYPE_IA);
	DAT_CONN_QUAL port = 0;
	struct kdapl_evd *evd;
	DAT_RETURN ret;
	int err;

	if (!ia)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CR);
	evd = kdapl_sp_evd(ia, evd_handle);
	if (!evd)
		goto out;
	if (!conn_qual) {
		ret = kdapl_arg_err(2);
	} else if (!psp_handle) {
		ret = kdapl_arg_err(5);
	} else if (!psp_flags_valid(psp_flags)) {
		ret = kdapl_arg_err(4);
	} else {
		err = psp_create(ia, &port, evd, psp_flags, psp_handle);
		ret = err == -EADDRINUSE ? kdapl_err(DAT_CONN_QUAL_UNAVAILABLE, DAT_NO_SUBTYPE) :
					   kdapl_sp_ret(err);
		if (!err)
			*conn_qual = port;
	}
	kdapl_obj_put(&evd->obj);
out:
	kdapl_obj_put(&ia->obj);
	return ret;
}
EXPORT_SYMBOL(dat_psp_create_any);

/**
 * dat_psp_query - read the parameters of a service point
 * @psp_handle: PSP
 * @psp_param_mask: DAT_PSP_FIELD_* bits of the members wanted; 0 is legal
 * @psp_param: filled entirely
 *
 * These are what dat_psp_create() was given, or what dat_psp_create_any() has chosen.
 *
 * Context: any.
 * Return: DAT_SUCCESS, DAT_INVALID_HANDLE, or DAT_INVALID_PARAMETER (undefined
 * mask bit, NULL @psp_param with a mask).
 */
DAT_RETURN dat_psp_query(DAT_PSP_HANDLE psp_handle, DAT_PSP_PARAM_MASK psp_param_mask,
			 DAT_PSP_PARAM *psp_param)
{
	struct kdapl_sp *psp = kdapl_obj_get(psp_handle, DAT_HANDLE_TYPE_PSP);
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
 * A request that has been delivered stays valid, with its CR and EP. Later ones are
 * refused as if there had never been a listener.
 *
 * Context: may sleep.
 * Return: DAT_SUCCESS or DAT_INVALID_HANDLE.
 */
DAT_RETURN dat_psp_free(DAT_PSP_HANDLE psp_handle)
{
	if (kdapl_sp_free(psp_handle, DAT_HANDLE_TYPE_PSP))
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PSP);
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_psp_free);
