/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What this provider offers beyond the kernel DAT API 2.0. A consumer that
 * wants to run on other providers does without; everything here has a default
 * that serves most.
 */
#ifndef _KDAT_EXT_H_
#define _KDAT_EXT_H_

#include <dat2/kdat.h>

/* Where the upcalls of an EVD run. */
enum kdat_evd_context {
	KDAT_EVD_CONTEXT_DEFAULT,	/* softirq for DTO and RMR_BIND only, else workqueue */
	KDAT_EVD_CONTEXT_SOFTIRQ,	/* must not sleep; one at a time */
	KDAT_EVD_CONTEXT_WORKQUEUE,	/* may sleep */
};

/* The provider spreads EVDs over the completion vectors of the device. */
#define KDAT_EVD_VECTOR_ANY	(-1)

/**
 * struct kdat_evd_attr - how an EVD is served
 * @context: where its upcalls run; softirq is for the streams DTO, RMR_BIND and
 *	SOFTWARE, since the events of the others belong where one may sleep
 * @comp_vector: completion vector of its CQs, modulo the number of vectors the
 *	device has, so that the number of a CPU is a good choice; or
 *	KDAT_EVD_VECTOR_ANY. Where the interrupt of a vector goes is up to the
 *	driver and the administrator.
 */
struct kdat_evd_attr {
	enum kdat_evd_context context;
	DAT_COUNT comp_vector;
};

#define KDAT_EVD_ATTR_INIT	{ .comp_vector = KDAT_EVD_VECTOR_ANY }

DAT_RETURN kdat_evd_create(DAT_IA_HANDLE ia_handle, DAT_COUNT evd_min_qlen,
			   DAT_UPCALL_POLICY upcall_policy, const DAT_UPCALL_OBJECT *upcall,
			   DAT_EVD_FLAGS evd_flags, const struct kdat_evd_attr *attr,
			   DAT_EVD_HANDLE *evd_handle);

/* The provider's choice, for each member of struct kdat_conn_attr. */
#define KDAT_CONN_DEFAULT	(-1)

/**
 * struct kdat_conn_attr - how a connection treats the network
 * @tos: type of service, 0 to 255, of the side that connects: the byte of the IP
 *	header on RoCE, and on iWARP if the driver does it (soft-iWARP does not);
 *	InfiniBand derives a service level from it
 * @ack_timeout: how long an acknowledgment may take, 1 to 31, meaning
 *	4.096 us * 2^n; not on iWARP
 * @retry_count: how often this EP sends a message again without one, 0 to 7; not
 *	on iWARP. 7 means for ever on soft-RoCE.
 * @rnr_retry_count: how often this EP sends it again because the peer has no
 *	Receive posted, 0 to 6, or 7 for ever; not on iWARP
 * @min_rnr_timer: how long the peer waits before it does so, 0 to 31, in the
 *	encoding of InfiniBand (12: 0.64 ms); not on iWARP
 *
 * On iWARP TCP does all that by itself.
 */
struct kdat_conn_attr {
	DAT_COUNT tos;
	DAT_COUNT ack_timeout;
	DAT_COUNT retry_count;
	DAT_COUNT rnr_retry_count;
	DAT_COUNT min_rnr_timer;
};

#define KDAT_CONN_ATTR_INIT	{			\
	.tos = KDAT_CONN_DEFAULT,			\
	.ack_timeout = KDAT_CONN_DEFAULT,		\
	.retry_count = KDAT_CONN_DEFAULT,		\
	.rnr_retry_count = KDAT_CONN_DEFAULT,		\
	.min_rnr_timer = KDAT_CONN_DEFAULT,		\
}

/**
 * struct kdat_pdata_limits - private data a transport carries, in bytes
 * @connect: with a request; the provider attribute max_private_data_size
 * @accept: with dat_cr_accept()
 * @reject: with dat_cr_reject()
 */
struct kdat_pdata_limits {
	DAT_COUNT connect;
	DAT_COUNT accept;
	DAT_COUNT reject;
};

DAT_RETURN kdat_ep_modify_conn(DAT_EP_HANDLE ep_handle, const struct kdat_conn_attr *attr);
DAT_RETURN kdat_ep_query_conn(DAT_EP_HANDLE ep_handle, struct kdat_conn_attr *attr);
DAT_RETURN kdat_ia_pdata_limits(DAT_IA_HANDLE ia_handle, struct kdat_pdata_limits *limits);

#endif /* _KDAT_EXT_H_ */
