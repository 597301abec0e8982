/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Return codes.
 *
 * A DAT_RETURN has three fields in one word:
 *
 *	31..30	class		error, warning or success
 *	29..16	type		one of DAT_RETURN_TYPE
 *	15..0	subtype		one of DAT_RETURN_SUBTYPE
 *
 * Compare a return value directly only with DAT_SUCCESS. For all other types use
 * DAT_GET_TYPE(), because the constants of the types do not include the class bits:
 *
 *	if (DAT_GET_TYPE(ret) == DAT_INVALID_HANDLE)
 */
#ifndef _DAT_ERROR_H_
#define _DAT_ERROR_H_

typedef DAT_UINT32 DAT_RETURN;

#define DAT_CLASS_ERROR		0x80000000U
#define DAT_CLASS_WARNING	0x40000000U
#define DAT_CLASS_SUCCESS	0x00000000U

#define DAT_TYPE_MASK		0x3fff0000U
#define DAT_SUBTYPE_MASK	0x0000ffffU

#define DAT_IS_WARNING(status)	((DAT_UINT32)(status) & DAT_CLASS_WARNING)
#define DAT_GET_TYPE(status)	((DAT_UINT32)(status) & DAT_TYPE_MASK)
#define DAT_GET_SUBTYPE(status)	((DAT_UINT32)(status) & DAT_SUBTYPE_MASK)

/*
 * Compose an error return from a type and a subtype. The definition is token for token that
 * of the reference implementation. It was private there, so many clients define it again, and
 * the compiler accepts that without a warning only if both definitions are identical. For the
 * same reason it lacks parentheses: put them around an argument that contains an operator.
 */
#define DAT_ERROR(Type, SubType) ((DAT_RETURN)(DAT_CLASS_ERROR | Type | SubType))

typedef enum dat_return_type {
	DAT_SUCCESS			= 0x00000000,
	/* aborted because the IA was closed or the EVD was destroyed */
	DAT_ABORT			= 0x00010000,
	/* the connection qualifier already has a listener */
	DAT_CONN_QUAL_IN_USE		= 0x00020000,
	/* out of memory, queue entries or device objects */
	DAT_INSUFFICIENT_RESOURCES	= 0x00030000,
	/* the provider itself failed; any call may return it */
	DAT_INTERNAL_ERROR		= 0x00040000,
	/* a handle is not a live object of the expected kind */
	DAT_INVALID_HANDLE		= 0x00050000,
	/* another argument is out of range or inconsistent */
	DAT_INVALID_PARAMETER		= 0x00060000,
	/* the state of the object forbids the call */
	DAT_INVALID_STATE		= 0x00070000,
	/* the destination is smaller than the source */
	DAT_LENGTH_ERROR		= 0x00080000,
	/* the provider does not support this optional model */
	DAT_MODEL_NOT_SUPPORTED		= 0x00090000,
	/* no IA with this name, version and thread safety */
	DAT_PROVIDER_NOT_FOUND		= 0x000a0000,
	/* the LMR is unknown or lacks the access right */
	DAT_PRIVILEGES_VIOLATION	= 0x000b0000,
	/* the Protection Zones differ */
	DAT_PROTECTION_VIOLATION	= 0x000c0000,
	/* the EVD holds no event */
	DAT_QUEUE_EMPTY			= 0x000d0000,
	/* the EVD cannot take the software event */
	DAT_QUEUE_FULL			= 0x000e0000,
	/* user level only */
	DAT_TIMEOUT_EXPIRED		= 0x000f0000,
	DAT_PROVIDER_ALREADY_REGISTERED	= 0x00100000,
	DAT_PROVIDER_IN_USE		= 0x00110000,
	/* the remote address is malformed, unsupported or unreachable */
	DAT_INVALID_ADDRESS		= 0x00120000,
	/* user level only */
	DAT_INTERRUPTED_CALL		= 0x00130000,
	/* no connection qualifier is free for dat_psp_create_any() */
	DAT_CONN_QUAL_UNAVAILABLE	= 0x00140000,
	/* not allowed on the reserved LMR */
	DAT_RESERVED_LMR		= 0x00150000,
	/* the IP port of a CSP is in use */
	DAT_PORT_IN_USE			= 0x00160000,
	/* the communicator triple is not supported */
	DAT_COMM_NOT_SUPPORTED		= 0x00170000,
	/* the call is not implemented */
	DAT_NOT_IMPLEMENTED		= 0x3fff0000,
} DAT_RETURN_TYPE;

/* 1.0 spelling */
#define DAT_NAME_NOT_FOUND	DAT_PROVIDER_NOT_FOUND

/*
 * DAT_INVALID_ARGn means the n-th parameter of the call, counted from 1.
 * DAT_INVALID_STATE_EP_* tells the state of the Endpoint.
 */
typedef enum dat_return_subtype {
	/* none; ABORT */
	DAT_NO_SUBTYPE				= 0,
	DAT_SUB_INTERRUPTED			= 1,
	/* INSUFFICIENT_RESOURCES */
	DAT_RESOURCE_MEMORY			= 2,
	DAT_RESOURCE_DEVICE			= 3,
	DAT_RESOURCE_TEP			= 4,
	DAT_RESOURCE_TEVD			= 5,
	DAT_RESOURCE_PROTECTION_DOMAIN		= 6,
	DAT_RESOURCE_MEMORY_REGION		= 7,
	DAT_RESOURCE_ERROR_HANDLER		= 8,
	DAT_RESOURCE_CREDITS			= 9,
	DAT_RESOURCE_SRQ			= 10,
	/* INVALID_HANDLE, by kind */
	DAT_INVALID_HANDLE_IA			= 11,
	DAT_INVALID_HANDLE_EP			= 12,
	DAT_INVALID_HANDLE_LMR			= 13,
	DAT_INVALID_HANDLE_RMR			= 14,
	DAT_INVALID_HANDLE_PZ			= 15,
	DAT_INVALID_HANDLE_PSP			= 16,
	DAT_INVALID_HANDLE_RSP			= 17,
	DAT_INVALID_HANDLE_CR			= 18,
	DAT_INVALID_HANDLE_CNO			= 19,
	DAT_INVALID_HANDLE_EVD_CR		= 20,
	DAT_INVALID_HANDLE_EVD_REQUEST		= 21,
	DAT_INVALID_HANDLE_EVD_RECV		= 22,
	DAT_INVALID_HANDLE_EVD_CONN		= 23,
	DAT_INVALID_HANDLE_EVD_ASYNC		= 24,
	DAT_INVALID_HANDLE_SRQ			= 25,
	DAT_INVALID_HANDLE_CSP			= 26,
	/* INVALID_HANDLE, by position */
	DAT_INVALID_HANDLE1			= 27,
	DAT_INVALID_HANDLE2			= 28,
	DAT_INVALID_HANDLE3			= 29,
	DAT_INVALID_HANDLE4			= 30,
	DAT_INVALID_HANDLE5			= 31,
	DAT_INVALID_HANDLE6			= 32,
	DAT_INVALID_HANDLE7			= 33,
	DAT_INVALID_HANDLE8			= 34,
	DAT_INVALID_HANDLE9			= 35,
	DAT_INVALID_HANDLE10			= 36,
	/* INVALID_PARAMETER */
	DAT_INVALID_ARG1			= 37,
	DAT_INVALID_ARG2			= 38,
	DAT_INVALID_ARG3			= 39,
	DAT_INVALID_ARG4			= 40,
	DAT_INVALID_ARG5			= 41,
	DAT_INVALID_ARG6			= 42,
	DAT_INVALID_ARG7			= 43,
	DAT_INVALID_ARG8			= 44,
	DAT_INVALID_ARG9			= 45,
	DAT_INVALID_ARG10			= 46,
	/* INVALID_STATE, EP */
	DAT_INVALID_STATE_EP_UNCONNECTED	= 47,
	DAT_INVALID_STATE_EP_ACTCONNPENDING	= 48,
	DAT_INVALID_STATE_EP_PASSCONNPENDING	= 49,
	DAT_INVALID_STATE_EP_TENTCONNPENDING	= 50,
	DAT_INVALID_STATE_EP_CONNECTED		= 51,
	DAT_INVALID_STATE_EP_DISCONNECTED	= 52,
	DAT_INVALID_STATE_EP_RESERVED		= 53,
	DAT_INVALID_STATE_EP_COMPLPENDING	= 54,
	DAT_INVALID_STATE_EP_DISCPENDING	= 55,
	DAT_INVALID_STATE_EP_PROVIDERCONTROL	= 56,
	DAT_INVALID_STATE_EP_NOTREADY		= 57,
	DAT_INVALID_STATE_EP_RECV_WATERMARK	= 58,
	DAT_INVALID_STATE_EP_PZ			= 59,
	DAT_INVALID_STATE_EP_EVD_REQUEST	= 60,
	DAT_INVALID_STATE_EP_EVD_RECV		= 61,
	DAT_INVALID_STATE_EP_EVD_CONNECT	= 62,
	DAT_INVALID_STATE_EP_UNCONFIGURED	= 63,
	DAT_INVALID_STATE_EP_UNCONFRESERVED	= 64,
	DAT_INVALID_STATE_EP_UNCONFPASSIVE	= 65,
	DAT_INVALID_STATE_EP_UNCONFTENTATIVE	= 66,
	/* INVALID_STATE, CNO (unused in kDAPL) */
	DAT_INVALID_STATE_CNO_IN_USE		= 67,
	DAT_INVALID_STATE_CNO_DEAD		= 68,
	/* INVALID_STATE, EVD */
	DAT_INVALID_STATE_EVD_OPEN		= 69,
	DAT_INVALID_STATE_EVD_ENABLED		= 70,
	DAT_INVALID_STATE_EVD_DISABLED		= 71,
	DAT_INVALID_STATE_EVD_WAITABLE		= 72,
	DAT_INVALID_STATE_EVD_UNWAITABLE	= 73,
	DAT_INVALID_STATE_EVD_IN_USE		= 74,
	DAT_INVALID_STATE_EVD_CONFIG_NOTIFY	= 75,
	DAT_INVALID_STATE_EVD_CONFIG_SOLICITED	= 76,
	DAT_INVALID_STATE_EVD_CONFIG_THRESHOLD	= 77,
	DAT_INVALID_STATE_EVD_WAITER		= 78,
	DAT_INVALID_STATE_EVD_ASYNC		= 79,
	/* INVALID_STATE, IA/LMR/PZ */
	DAT_INVALID_STATE_IA_IN_USE		= 80,
	DAT_INVALID_STATE_LMR_IN_USE		= 81,
	DAT_INVALID_STATE_LMR_FREE		= 82,
	DAT_INVALID_STATE_PZ_IN_USE		= 83,
	DAT_INVALID_STATE_PZ_FREE		= 84,
	/* INVALID_STATE, SRQ */
	DAT_INVALID_STATE_SRQ_OPERATIONAL	= 85,
	DAT_INVALID_STATE_SRQ_ERROR		= 86,
	DAT_INVALID_STATE_SRQ_IN_USE		= 87,
	/* PRIVILEGES_VIOLATION */
	DAT_PRIVILEGES_READ			= 88,
	DAT_PRIVILEGES_WRITE			= 89,
	DAT_PRIVILEGES_RDMA_READ		= 90,
	DAT_PRIVILEGES_RDMA_WRITE		= 91,
	/* PROTECTION_VIOLATION */
	DAT_PROTECTION_READ			= 92,
	DAT_PROTECTION_WRITE			= 93,
	DAT_PROTECTION_RDMA_READ		= 94,
	DAT_PROTECTION_RDMA_WRITE		= 95,
	/* INVALID_ADDRESS */
	DAT_INVALID_ADDRESS_UNSUPPORTED		= 96,
	DAT_INVALID_ADDRESS_UNREACHABLE		= 97,
	DAT_INVALID_ADDRESS_MALFORMED		= 98,
	/* PROVIDER_NOT_FOUND */
	DAT_NAME_NOT_REGISTERED			= 99,
	DAT_MAJOR_NOT_FOUND			= 100,
	DAT_MINOR_NOT_FOUND			= 101,
	DAT_THREAD_SAFETY_NOT_FOUND		= 102,
} DAT_RETURN_SUBTYPE;

#endif /* _DAT_ERROR_H_ */
