// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Common Service Points: listeners on a socket address.
 */
#include <linux/export.h>

#include "cm.h"

/* Everything is checked. Inside kdapl_dev_enter(). */
static int csp_create(struct kdapl_ia *ia, const DAT_COMM *comm, const struct sockaddr *addr,
		      struct kdapl_evd *evd, DAT_CSP_HANDLE *handle)
{
	struct kdapl_sp *csp;
	int ret;

	csp = kdapl_sp_alloc(ia, DAT_HANDLE_TYPE_CSP, evd);
	if (IS_ERR(csp))
		return PTR_ERR(csp);
	csp->comm = *comm;
	memcpy(&csp->addr, addr, kdapl_addr_len(addr));
	csp->conn_qual = kdapl_addr_port(&csp->addr);
	ret = kdapl_sp_start(csp, handle);
	if (!ret)
		kdapl_obj_put(&csp->obj);
	return ret;
}

/* What dat_csp_create() returns. The port is a part of the address, not a qualifier. */
static DAT_RETURN csp_ret(int err)
{
	switch (err) {
	case -EADDRINUSE:
		return kdapl_err(DAT_PORT_IN_USE, DAT_NO_SUBTYPE);
	case -EACCES:
		return kdapl_err(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE);
	default:
		return kdapl_sp_ret(err);
	}
}

static DAT_RETURN csp_check(const DAT_COMM *comm, const struct sockaddr *addr,
			    const DAT_CSP_HANDLE *handle)
{
	DAT_RETURN ret;

	if (!comm)
		return kdapl_arg_err(2);
	if (!addr)
		return kdapl_arg_err(3);
	if (!handle)
		return kdapl_arg_err(5);
	if (!kdapl_comm_supported(comm))
		return kdapl_err(DAT_COMM_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	if (addr->sa_family != comm->domain)
		return kdapl_err(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED);
	ret = kdapl_addr_ret(kdapl_addr_check(addr));
	if (ret == DAT_SUCCESS && !kdapl_addr_port((const struct sockaddr_storage *)addr))
		ret = kdapl_err(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED);
	return ret;
}

/**
 * dat_csp_create - listen on a socket address
 * @ia_handle: IA
 * @comm: AF_INET or AF_INET6, SOCK_STREAM, protocol 0 or IPPROTO_TCP; copied
 * @address_ptr: one of the addresses of the IA's port, of that family, with a
 *	port number; copied
 * @evd_handle: EVD with the CR flag, as for dat_psp_create()
 * @csp_handle: where the handle goes
 *
 * Requests are like those of a PSP with DAT_PSP_CONSUMER_FLAG; conn_qual of their
 * event is the port number. If a port has several addresses, a CSP can listen on
 * any of them, while a PSP listens on the IA's own.
 *
 * Context: may sleep; waits for RTNL where the driver does so to listen (irdma).
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE (IA, EVD_CR); DAT_INVALID_PARAMETER
 * (NULL argument); DAT_COMM_NOT_SUPPORTED (@comm is not as said above);
 * DAT_INVALID_ADDRESS (family other than that of @comm, wildcard, multicast, no
 * port number, not one of this port); DAT_PORT_IN_USE;
 * DAT_INSUFFICIENT_RESOURCES (MEMORY; or the connection manager has none);
 * DAT_INTERNAL_ERROR (device removed).
 */
DAT_RETURN dat_csp_create(DAT_IA_HANDLE ia_handle, DAT_COMM *comm, DAT_IA_ADDRESS_PTR address_ptr,
			  DAT_EVD_HANDLE evd_handle, DAT_CSP_HANDLE *csp_handle)
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
	ret = csp_check(comm, address_ptr, csp_handle);
	if (ret != DAT_SUCCESS)
		goto out;
	ret = kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	if (kdapl_dev_enter(ia->dev)) {
		ret = csp_ret(csp_create(ia, comm, address_ptr, evd, csp_handle));
		kdapl_dev_exit(ia->dev);
	}
out:
	kdapl_obj_put(evd ? &evd->obj : NULL);
	kdapl_obj_put(&ia->obj);
	return ret;
}
EXPORT_SYMBOL(dat_csp_create);

/**
 * dat_csp_query - read the parameters of a service point
 * @csp_handle: CSP
 * @csp_param_mask: DAT_CSP_FIELD_* bits of the members wanted; 0 is legal
 * @csp_param: filled entirely; its pointers are valid until the CSP is freed
 *
 * These are what dat_csp_create() was given.
 *
 * Context: any.
 * Return: DAT_SUCCESS, DAT_INVALID_HANDLE, or DAT_INVALID_PARAMETER (undefined
 * mask bit, NULL @csp_param with a mask).
 */
DAT_RETURN dat_csp_query(DAT_CSP_HANDLE csp_handle, DAT_CSP_PARAM_MASK csp_param_mask,
			 DAT_CSP_PARAM *csp_param)
{
	struct kdapl_sp *csp = kdapl_obj_get(csp_handle, DAT_HANDLE_TYPE_CSP);
	DAT_RETURN ret;

	if (!csp)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CSP);
	ret = kdapl_query_check(csp_param_mask, DAT_CSP_FIELD_ALL, csp_param);
	if (ret == DAT_SUCCESS && csp_param) {
		csp_param->ia_handle = csp->obj.ia->obj.handle;
		csp_param->comm = &csp->comm;
		csp_param->address_ptr = (DAT_IA_ADDRESS_PTR)&csp->addr;
		csp_param->evd_handle = csp->evd_handle;
	}
	kdapl_obj_put(&csp->obj);
	return ret;
}
EXPORT_SYMBOL(dat_csp_query);

/**
 * dat_csp_free - stop listening
 * @csp_handle: CSP
 *
 * As dat_psp_free().
 *
 * Context: may sleep.
 * Return: DAT_SUCCESS or DAT_INVALID_HANDLE.
 */
DAT_RETURN dat_csp_free(DAT_CSP_HANDLE csp_handle)
{
	if (kdapl_sp_free(csp_handle, DAT_HANDLE_TYPE_CSP))
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CSP);
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_csp_free);
