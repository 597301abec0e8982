// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Names of return values, and the conversion of errnos, completion statuses and
 * Endpoint states to the codes of the API.
 *
 * Inside the module functions return errnos. The exported calls turn them into
 * codes of the API with the functions here.
 *
 * Nothing here has state or takes a lock. Every function works in every
 * context. The tables are complete; for a value that a newer kernel may add, each
 * function documents its result.
 */

/* The first include, so that every build shows that <dat2/kdat.h> needs no other. */
#include "dat_layout.h"

#include <linux/errno.h>
#include <linux/export.h>
#include <linux/kernel.h>

#include "status.h"

#define NAME(code)	{ code, #code }

static const struct kdapl_name kdapl_types[] = {
	NAME(DAT_SUCCESS),
	NAME(DAT_ABORT),
	NAME(DAT_CONN_QUAL_IN_USE),
	NAME(DAT_INSUFFICIENT_RESOURCES),
	NAME(DAT_INTERNAL_ERROR),
	NAME(DAT_INVALID_HANDLE),
	NAME(DAT_INVALID_PARAMETER),
	NAME(DAT_INVALID_STATE),
	NAME(DAT_LENGTH_ERROR),
	NAME(DAT_MODEL_NOT_SUPPORTED),
	NAME(DAT_PROVIDER_NOT_FOUND),
	NAME(DAT_PRIVILEGES_VIOLATION),
	NAME(DAT_PROTECTION_VIOLATION),
	NAME(DAT_QUEUE_EMPTY),
	NAME(DAT_QUEUE_FULL),
	NAME(DAT_TIMEOUT_EXPIRED),
	NAME(DAT_PROVIDER_ALREADY_REGISTERED),
	NAME(DAT_PROVIDER_IN_USE),
	NAME(DAT_INVALID_ADDRESS),
	NAME(DAT_INTERRUPTED_CALL),
	NAME(DAT_CONN_QUAL_UNAVAILABLE),
	NAME(DAT_RESERVED_LMR),
	NAME(DAT_PORT_IN_USE),
	NAME(DAT_COMM_NOT_SUPPORTED),
	NAME(DAT_NOT_IMPLEMENTED),
};

static const struct kdapl_name kdapl_subtypes[] = {
	{ DAT_NO_SUBTYPE, "" },
	NAME(DAT_SUB_INTERRUPTED),
	NAME(DAT_RESOURCE_MEMORY),
	NAME(DAT_RESOURCE_DEVICE),
	NAME(DAT_RESOURCE_TEP),
	NAME(DAT_RESOURCE_TEVD),
	NAME(DAT_RESOURCE_PROTECTION_DOMAIN),
	NAME(DAT_RESOURCE_MEMORY_REGION),
	NAME(DAT_RESOURCE_ERROR_HANDLER),
	NAME(DAT_RESOURCE_CREDITS),
	NAME(DAT_RESOURCE_SRQ),
	NAME(DAT_INVALID_HANDLE_IA),
	NAME(DAT_INVALID_HANDLE_EP),
	NAME(DAT_INVALID_HANDLE_LMR),
	NAME(DAT_INVALID_HANDLE_RMR),
	NAME(DAT_INVALID_HANDLE_PZ),
	NAME(DAT_INVALID_HANDLE_PSP),
	NAME(DAT_INVALID_HANDLE_RSP),
	NAME(DAT_INVALID_HANDLE_CR),
	NAME(DAT_INVALID_HANDLE_CNO),
	NAME(DAT_INVALID_HANDLE_EVD_CR),
	NAME(DAT_INVALID_HANDLE_EVD_REQUEST),
	NAME(DAT_INVALID_HANDLE_EVD_RECV),
	NAME(DAT_INVALID_HANDLE_EVD_CONN),
	NAME(DAT_INVALID_HANDLE_EVD_ASYNC),
	NAME(DAT_INVALID_HANDLE_SRQ),
	NAME(DAT_INVALID_HANDLE_CSP),
	NAME(DAT_INVALID_HANDLE1),
	NAME(DAT_INVALID_HANDLE2),
	NAME(DAT_INVALID_HANDLE3),
	NAME(DAT_INVALID_HANDLE4),
	NAME(DAT_INVALID_HANDLE5),
	NAME(DAT_INVALID_HANDLE6),
	NAME(DAT_INVALID_HANDLE7),
	NAME(DAT_INVALID_HANDLE8),
	NAME(DAT_INVALID_HANDLE9),
	NAME(DAT_INVALID_HANDLE10),
	NAME(DAT_INVALID_ARG1),
	NAME(DAT_INVALID_ARG2),
	NAME(DAT_INVALID_ARG3),
	NAME(DAT_INVALID_ARG4),
	NAME(DAT_INVALID_ARG5),
	NAME(DAT_INVALID_ARG6),
	NAME(DAT_INVALID_ARG7),
	NAME(DAT_INVALID_ARG8),
	NAME(DAT_INVALID_ARG9),
	NAME(DAT_INVALID_ARG10),
	NAME(DAT_INVALID_STATE_EP_UNCONNECTED),
	NAME(DAT_INVALID_STATE_EP_ACTCONNPENDING),
	NAME(DAT_INVALID_STATE_EP_PASSCONNPENDING),
	NAME(DAT_INVALID_STATE_EP_TENTCONNPENDING),
	NAME(DAT_INVALID_STATE_EP_CONNECTED),
	NAME(DAT_INVALID_STATE_EP_DISCONNECTED),
	NAME(DAT_INVALID_STATE_EP_RESERVED),
	NAME(DAT_INVALID_STATE_EP_COMPLPENDING),
	NAME(DAT_INVALID_STATE_EP_DISCPENDING),
	NAME(DAT_INVALID_STATE_EP_PROVIDERCONTROL),
	NAME(DAT_INVALID_STATE_EP_NOTREADY),
	NAME(DAT_INVALID_STATE_EP_RECV_WATERMARK),
	NAME(DAT_INVALID_STATE_EP_PZ),
	NAME(DAT_INVALID_STATE_EP_EVD_REQUEST),
	NAME(DAT_INVALID_STATE_EP_EVD_RECV),
	NAME(DAT_INVALID_STATE_EP_EVD_CONNECT),
	NAME(DAT_INVALID_STATE_EP_UNCONFIGURED),
	NAME(DAT_INVALID_STATE_EP_UNCONFRESERVED),
	NAME(DAT_INVALID_STATE_EP_UNCONFPASSIVE),
	NAME(DAT_INVALID_STATE_EP_UNCONFTENTATIVE),
	NAME(DAT_INVALID_STATE_CNO_IN_USE),
	NAME(DAT_INVALID_STATE_CNO_DEAD),
	NAME(DAT_INVALID_STATE_EVD_OPEN),
	NAME(DAT_INVALID_STATE_EVD_ENABLED),
	NAME(DAT_INVALID_STATE_EVD_DISABLED),
	NAME(DAT_INVALID_STATE_EVD_WAITABLE),
	NAME(DAT_INVALID_STATE_EVD_UNWAITABLE),
	NAME(DAT_INVALID_STATE_EVD_IN_USE),
	NAME(DAT_INVALID_STATE_EVD_CONFIG_NOTIFY),
	NAME(DAT_INVALID_STATE_EVD_CONFIG_SOLICITED),
	NAME(DAT_INVALID_STATE_EVD_CONFIG_THRESHOLD),
	NAME(DAT_INVALID_STATE_EVD_WAITER),
	NAME(DAT_INVALID_STATE_EVD_ASYNC),
	NAME(DAT_INVALID_STATE_IA_IN_USE),
	NAME(DAT_INVALID_STATE_LMR_IN_USE),
	NAME(DAT_INVALID_STATE_LMR_FREE),
	NAME(DAT_INVALID_STATE_PZ_IN_USE),
	NAME(DAT_INVALID_STATE_PZ_FREE),
	NAME(DAT_INVALID_STATE_SRQ_OPERATIONAL),
	NAME(DAT_INVALID_STATE_SRQ_ERROR),
	NAME(DAT_INVALID_STATE_SRQ_IN_USE),
	NAME(DAT_PRIVILEGES_READ),
	NAME(DAT_PRIVILEGES_WRITE),
	NAME(DAT_PRIVILEGES_RDMA_READ),
	NAME(DAT_PRIVILEGES_RDMA_WRITE),
	NAME(DAT_PROTECTION_READ),
	NAME(DAT_PROTECTION_WRITE),
	NAME(DAT_PROTECTION_RDMA_READ),
	NAME(DAT_PROTECTION_RDMA_WRITE),
	NAME(DAT_INVALID_ADDRESS_UNSUPPORTED),
	NAME(DAT_INVALID_ADDRESS_UNREACHABLE),
	NAME(DAT_INVALID_ADDRESS_MALFORMED),
	NAME(DAT_NAME_NOT_REGISTERED),
	NAME(DAT_MAJOR_NOT_FOUND),
	NAME(DAT_MINOR_NOT_FOUND),
	NAME(DAT_THREAD_SAFETY_NOT_FOUND),
};

/**
 * kdapl_name_find - look up the name of a code
 * @table: codes and their names
 * @n: how many
 * @code: the code
 *
 * Context: Any.
 * Return: the name, or NULL.
 */
const char *kdapl_name_find(const struct kdapl_name *table, size_t n, u32 code)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (table[i].code == code)
			return table[i].name;
	return NULL;
}

/**
 * dat_strerror - name the type and the subtype of a return value
 * @value: return value of a call
 * @major_message: where the name of the type goes
 * @minor_message: where the name of the subtype goes, empty if there is none; may be
 *	NULL
 *
 * The names are those of the header. They are static: do not free or change
 * them.
 *
 * Context: any.
 * Return: DAT_SUCCESS; DAT_INVALID_PARAMETER (NULL @major_message, or a type or
 * subtype that does not exist; nothing is written then).
 */
DAT_RETURN dat_strerror(DAT_RETURN value, const char **major_message, const char **minor_message)
{
	const char *major, *minor;

	if (!major_message)
		return kdapl_arg_err(2);

	major = kdapl_name_find(kdapl_types, ARRAY_SIZE(kdapl_types), DAT_GET_TYPE(value));
	minor = kdapl_name_find(kdapl_subtypes, ARRAY_SIZE(kdapl_subtypes), DAT_GET_SUBTYPE(value));
	if (!major || !minor)
		return kdapl_arg_err(1);
	/* Success is exactly 0, without class and subtype. */
	if (DAT_GET_TYPE(value) == DAT_SUCCESS && value != DAT_SUCCESS)
		return kdapl_arg_err(1);

	*major_message = major;
	if (minor_message)
		*minor_message = minor;
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_strerror);

struct kdapl_errno_map {
	int err;
	DAT_RETURN ret;
};

static const struct kdapl_errno_map kdapl_errno_map[] = {
	{ 0,			DAT_SUCCESS },
	{ -ENOMEM,		DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY) },
	{ -EAGAIN,		DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE) },
	{ -EDQUOT,		DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE) },
	{ -EMFILE,		DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE) },
	{ -ENFILE,		DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE) },
	{ -ENOBUFS,		DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE) },
	{ -ENOSPC,		DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE) },
	{ -EADDRINUSE,		DAT_ERROR(DAT_CONN_QUAL_IN_USE, DAT_NO_SUBTYPE) },
	{ -EADDRNOTAVAIL,	DAT_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE) },
	{ -EHOSTUNREACH,	DAT_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE) },
	{ -ENETDOWN,		DAT_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE) },
	{ -ENETUNREACH,		DAT_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE) },
	{ -EAFNOSUPPORT,	DAT_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED) },
	{ -EOPNOTSUPP,		DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE) },
	{ -EPROTONOSUPPORT,	DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE) },
};

/**
 * kdapl_errno_ret - turn an errno of the kernel into a return value
 * @err: 0 or a negative errno
 *
 * -EINVAL is DAT_INTERNAL_ERROR: arguments of calls are checked before the kernel
 * is asked for anything, so an argument the kernel refuses is a fault of this
 * module. -ENODEV, from a device that was removed, is the same.
 *
 * Context: Any.
 * Return: the DAT_RETURN, DAT_INTERNAL_ERROR for every errno without a better
 * one.
 */
DAT_RETURN kdapl_errno_ret(int err)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(kdapl_errno_map); i++)
		if (kdapl_errno_map[i].err == err)
			return kdapl_errno_map[i].ret;
	return kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
}

/**
 * kdapl_publish_ret - what a create call returns when kdapl_obj_publish() has failed
 * @err: the errno
 *
 * Context: Any.
 * Return: DAT_INVALID_HANDLE when the IA is being closed, else
 * DAT_INSUFFICIENT_RESOURCES.
 */
DAT_RETURN kdapl_publish_ret(int err)
{
	if (err == -ESHUTDOWN)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	return kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
}

/**
 * kdapl_retire_ret - what a free call returns
 * @err: result of kdapl_obj_retire()
 * @in_use: subtype if other objects use the object
 * @handle: subtype if another caller has retired it first
 *
 * Context: Any.
 * Return: DAT_SUCCESS, DAT_INVALID_STATE or DAT_INVALID_HANDLE.
 */
DAT_RETURN kdapl_retire_ret(int err, DAT_RETURN_SUBTYPE in_use, DAT_RETURN_SUBTYPE handle)
{
	if (!err)
		return DAT_SUCCESS;
	if (err == -EBUSY)
		return kdapl_err(DAT_INVALID_STATE, in_use);
	return kdapl_err(DAT_INVALID_HANDLE, handle);
}

/**
 * kdapl_addr_ret - what a call returns for the address it was given
 * @err: result of kdapl_addr_check()
 *
 * Context: Any.
 * Return: DAT_SUCCESS or DAT_INVALID_ADDRESS.
 */
DAT_RETURN kdapl_addr_ret(int err)
{
	if (err == -EINVAL)
		return kdapl_err(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED);
	return kdapl_errno_ret(err);
}

/**
 * kdapl_query_check - check the mask and the structure of a query call
 * @mask: second argument: the members wanted
 * @all: the bits there are
 * @param: third argument: the structure to fill; may be NULL if nothing is wanted
 *
 * Context: Any.
 * Return: DAT_SUCCESS or DAT_INVALID_PARAMETER.
 */
DAT_RETURN kdapl_query_check(u64 mask, u64 all, const void *param)
{
	if (mask & ~all)
		return kdapl_arg_err(2);
	return mask && !param ? kdapl_arg_err(3) : DAT_SUCCESS;
}

static const u8 kdapl_wc_map[] = {
	[IB_WC_SUCCESS]			= DAT_DTO_SUCCESS,
	[IB_WC_LOC_LEN_ERR]		= DAT_DTO_ERR_LOCAL_LENGTH,
	[IB_WC_LOC_QP_OP_ERR]		= DAT_DTO_ERR_LOCAL_EP,
	[IB_WC_LOC_EEC_OP_ERR]		= DAT_DTO_ERR_LOCAL_EP,
	[IB_WC_LOC_PROT_ERR]		= DAT_DTO_ERR_LOCAL_PROTECTION,
	[IB_WC_WR_FLUSH_ERR]		= DAT_DTO_ERR_FLUSHED,
	[IB_WC_MW_BIND_ERR]		= DAT_RMR_OPERATION_FAILED,
	[IB_WC_BAD_RESP_ERR]		= DAT_DTO_ERR_BAD_RESPONSE,
	[IB_WC_LOC_ACCESS_ERR]		= DAT_DTO_ERR_LOCAL_PROTECTION,
	[IB_WC_REM_INV_REQ_ERR]		= DAT_DTO_ERR_REMOTE_RESPONDER,
	[IB_WC_REM_ACCESS_ERR]		= DAT_DTO_ERR_REMOTE_ACCESS,
	[IB_WC_REM_OP_ERR]		= DAT_DTO_ERR_REMOTE_RESPONDER,
	[IB_WC_RETRY_EXC_ERR]		= DAT_DTO_ERR_TRANSPORT,
	[IB_WC_RNR_RETRY_EXC_ERR]	= DAT_DTO_ERR_RECEIVER_NOT_READY,
	[IB_WC_LOC_RDD_VIOL_ERR]	= DAT_DTO_ERR_LOCAL_PROTECTION,
	[IB_WC_REM_INV_RD_REQ_ERR]	= DAT_DTO_ERR_REMOTE_RESPONDER,
	[IB_WC_REM_ABORT_ERR]		= DAT_DTO_ERR_REMOTE_RESPONDER,
	[IB_WC_INV_EECN_ERR]		= DAT_DTO_ERR_TRANSPORT,
	[IB_WC_INV_EEC_STATE_ERR]	= DAT_DTO_ERR_TRANSPORT,
	[IB_WC_FATAL_ERR]		= DAT_DTO_ERR_TRANSPORT,
	[IB_WC_RESP_TIMEOUT_ERR]	= DAT_DTO_ERR_RECEIVER_NOT_READY,
	[IB_WC_GENERAL_ERR]		= DAT_DTO_ERR_TRANSPORT,
};

/**
 * kdapl_wc_status - turn the status of a work completion into a DTO status
 * @status: status of the work completion
 *
 * For requests; Receives have kdapl_wc_recv_status().
 *
 * Context: Any.
 * Return: the DTO status, DAT_DTO_ERR_TRANSPORT for an unknown one.
 */
DAT_DTO_COMPLETION_STATUS kdapl_wc_status(enum ib_wc_status status)
{
	if ((size_t)status >= ARRAY_SIZE(kdapl_wc_map))
		return DAT_DTO_ERR_TRANSPORT;
	return kdapl_wc_map[status];
}

/**
 * kdapl_wc_recv_status - turn the status of a completed Receive into a DTO status
 * @status: status of the work completion
 *
 * If a message is longer than its Receive, soft-RoCE reports an operation error of
 * the QP, and other drivers report a length error. Keys and ranges of a Receive are
 * checked when it is posted, so for Receives both mean the same.
 *
 * Context: Any.
 * Return: the DTO status, DAT_DTO_ERR_TRANSPORT for an unknown one.
 */
DAT_DTO_COMPLETION_STATUS kdapl_wc_recv_status(enum ib_wc_status status)
{
	if (status == IB_WC_LOC_QP_OP_ERR)
		return DAT_DTO_ERR_LOCAL_LENGTH;
	return kdapl_wc_status(status);
}

static const u8 kdapl_state_map[] = {
	[DAT_EP_STATE_UNCONNECTED]		= DAT_INVALID_STATE_EP_UNCONNECTED,
	[DAT_EP_STATE_UNCONFIGURED_UNCONNECTED]	= DAT_INVALID_STATE_EP_UNCONFIGURED,
	[DAT_EP_STATE_RESERVED]			= DAT_INVALID_STATE_EP_RESERVED,
	[DAT_EP_STATE_UNCONFIGURED_RESERVED]	= DAT_INVALID_STATE_EP_UNCONFRESERVED,
	[DAT_EP_STATE_PASSIVE_CONNECTION_PENDING] = DAT_INVALID_STATE_EP_PASSCONNPENDING,
	[DAT_EP_STATE_UNCONFIGURED_PASSIVE]	= DAT_INVALID_STATE_EP_UNCONFPASSIVE,
	[DAT_EP_STATE_ACTIVE_CONNECTION_PENDING] = DAT_INVALID_STATE_EP_ACTCONNPENDING,
	[DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING] = DAT_INVALID_STATE_EP_TENTCONNPENDING,
	[DAT_EP_STATE_UNCONFIGURED_TENTATIVE]	= DAT_INVALID_STATE_EP_UNCONFTENTATIVE,
	[DAT_EP_STATE_CONNECTED]		= DAT_INVALID_STATE_EP_CONNECTED,
	[DAT_EP_STATE_DISCONNECT_PENDING]	= DAT_INVALID_STATE_EP_DISCPENDING,
	[DAT_EP_STATE_DISCONNECTED]		= DAT_INVALID_STATE_EP_DISCONNECTED,
	[DAT_EP_STATE_COMPLETION_PENDING]	= DAT_INVALID_STATE_EP_COMPLPENDING,
	[DAT_EP_STATE_CONNECTED_SINGLE_PATH]	= DAT_INVALID_STATE_EP_CONNECTED,
	[DAT_EP_STATE_CONNECTED_MULTI_PATH]	= DAT_INVALID_STATE_EP_CONNECTED,
};

/**
 * kdapl_state_subtype - the subtype for an Endpoint state
 * @state: state of the Endpoint
 *
 * Context: Any.
 * Return: the subtype for DAT_INVALID_STATE, DAT_NO_SUBTYPE if there is no such
 * state.
 */
u16 kdapl_state_subtype(DAT_EP_STATE state)
{
	if ((size_t)state >= ARRAY_SIZE(kdapl_state_map))
		return DAT_NO_SUBTYPE;
	return kdapl_state_map[state];
}
