/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Names of states, operations and events, for trace.h and debugfs.c. The user of a list
 * defines kn(), and kn_end() for its last entry.
 */

#ifndef KDAPL_CORE_NAMES_H
#define KDAPL_CORE_NAMES_H

#define KDAPL_EP_STATE_NAMES(kn, kn_end)			\
	kn(EP_STATE_, UNCONNECTED)				\
	kn(EP_STATE_, UNCONFIGURED_UNCONNECTED)		\
	kn(EP_STATE_, RESERVED)				\
	kn(EP_STATE_, UNCONFIGURED_RESERVED)			\
	kn(EP_STATE_, PASSIVE_CONNECTION_PENDING)		\
	kn(EP_STATE_, UNCONFIGURED_PASSIVE)			\
	kn(EP_STATE_, ACTIVE_CONNECTION_PENDING)		\
	kn(EP_STATE_, TENTATIVE_CONNECTION_PENDING)		\
	kn(EP_STATE_, UNCONFIGURED_TENTATIVE)			\
	kn(EP_STATE_, CONNECTED)				\
	kn(EP_STATE_, DISCONNECT_PENDING)			\
	kn(EP_STATE_, DISCONNECTED)				\
	kn_end(EP_STATE_, COMPLETION_PENDING)

#define KDAPL_DTO_NAMES(kn, kn_end)				\
	kn(DTO_, SEND)					\
	kn(DTO_, RDMA_WRITE)					\
	kn(DTO_, RDMA_READ)					\
	kn(DTO_, RECEIVE)					\
	kn(DTO_, RECEIVE_WITH_INVALIDATE)			\
	kn(DTO_, BIND_MW)					\
	kn(DTO_, LMR_FMR)					\
	kn_end(DTO_, LMR_INVALIDATE)

#define KDAPL_STATUS_NAMES(kn, kn_end)			\
	kn(DTO_, SUCCESS)					\
	kn(DTO_ERR_, FLUSHED)					\
	kn(DTO_ERR_, LOCAL_LENGTH)				\
	kn(DTO_ERR_, LOCAL_EP)				\
	kn(DTO_ERR_, LOCAL_PROTECTION)			\
	kn(DTO_ERR_, BAD_RESPONSE)				\
	kn(DTO_ERR_, REMOTE_ACCESS)				\
	kn(DTO_ERR_, REMOTE_RESPONDER)			\
	kn(DTO_ERR_, TRANSPORT)				\
	kn(DTO_ERR_, RECEIVER_NOT_READY)			\
	kn(DTO_ERR_, PARTIAL_PACKET)				\
	kn(RMR_, OPERATION_FAILED)				\
	kn_end(DTO_ERR_, LOCAL_MM_ERROR)

#define KDAPL_EVENT_NAMES(kn, kn_end)			\
	kn(, DTO_COMPLETION_EVENT)				\
	kn(, RMR_BIND_COMPLETION_EVENT)			\
	kn(, CONNECTION_REQUEST_EVENT)			\
	kn(CONNECTION_EVENT_, ESTABLISHED)			\
	kn(CONNECTION_EVENT_, PEER_REJECTED)			\
	kn(CONNECTION_EVENT_, NON_PEER_REJECTED)		\
	kn(CONNECTION_EVENT_, ACCEPT_COMPLETION_ERROR)	\
	kn(CONNECTION_EVENT_, DISCONNECTED)			\
	kn(CONNECTION_EVENT_, BROKEN)				\
	kn(CONNECTION_EVENT_, TIMED_OUT)			\
	kn(CONNECTION_EVENT_, UNREACHABLE)			\
	kn(ASYNC_ERROR_, EVD_OVERFLOW)			\
	kn(ASYNC_ERROR_, IA_CATASTROPHIC)			\
	kn(ASYNC_ERROR_, EP_BROKEN)				\
	kn(ASYNC_ERROR_, TIMED_OUT)				\
	kn(ASYNC_ERROR_, PROVIDER_INTERNAL_ERROR)		\
	kn_end(, SOFTWARE_EVENT)

/* Reasons of kdapl_conn_end() other than DAT_CONNECTION_EVENT_*. */
#define KDAPL_END_NONE		0
/*
 * An unexpected flush, a refused post or kick, or the last WQE event. It may be no more than the
 * peer's disconnect; it becomes BROKEN if the CM does not report one in time (D-08).
 */
#define KDAPL_END_SUSPECT	1
#define KDAPL_END_NO_EVENT	2	/* the EP is being freed, or replaces it: no event */
#define KDAPL_END_PEER		3	/* told by the CM: DISCONNECTED unless an error is seen */

#endif /* KDAPL_CORE_NAMES_H */
