/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Conversion of errnos, statuses and states to codes of the API.
 */
#ifndef KDAPL_CORE_STATUS_H
#define KDAPL_CORE_STATUS_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>

#include <dat2/kdat.h>

/**
 * kdapl_err - compose an error return
 * @type: type of the error
 * @subtype: its subtype, or DAT_NO_SUBTYPE
 *
 * Context: Any.
 * Return: the return value of a call.
 */
static inline DAT_RETURN kdapl_err(DAT_RETURN_TYPE type, DAT_RETURN_SUBTYPE subtype)
{
	return DAT_ERROR(type, subtype);
}

/**
 * kdapl_arg_err - compose the return for a bad argument
 * @n: position of the argument, counted from 1
 *
 * Positions above 10 have no subtype.
 *
 * Context: Any.
 * Return: DAT_INVALID_PARAMETER with the position.
 */
static inline DAT_RETURN kdapl_arg_err(unsigned int n)
{
	if (n < 1 || n > 10)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_NO_SUBTYPE);
	return DAT_ERROR(DAT_INVALID_PARAMETER, (DAT_INVALID_ARG1 + n - 1));
}

DAT_RETURN kdapl_errno_ret(int err);
DAT_RETURN kdapl_publish_ret(int err);
DAT_RETURN kdapl_retire_ret(int err, DAT_RETURN_SUBTYPE in_use, DAT_RETURN_SUBTYPE handle);
DAT_RETURN kdapl_addr_ret(int err);
DAT_RETURN kdapl_query_check(u64 mask, u64 all, const void *param);
DAT_DTO_COMPLETION_STATUS kdapl_wc_status(enum ib_wc_status status);
DAT_DTO_COMPLETION_STATUS kdapl_wc_recv_status(enum ib_wc_status status);
u16 kdapl_state_subtype(DAT_EP_STATE state);

/**
 * kdapl_state_err - compose the return for an Endpoint in the wrong state
 * @state: state of the Endpoint
 *
 * Context: Any.
 * Return: DAT_INVALID_STATE with the state as subtype.
 */
static inline DAT_RETURN kdapl_state_err(DAT_EP_STATE state)
{
	return DAT_ERROR(DAT_INVALID_STATE, kdapl_state_subtype(state));
}

#endif /* KDAPL_CORE_STATUS_H */
