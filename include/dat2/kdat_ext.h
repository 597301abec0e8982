/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * What this provider offers beyond the kernel DAT API 2.0. A consumer that
 * wants to run on other providers does without; everything here has a default
 * that serves most.
 */
#ifdef KDAPL_DAT_1_2
#error "one source file cannot include both <dat/kdat.h> and headers of <dat2/>"
#endif

#ifndef _KDAT_EXT_H_
#define _KDAT_EXT_H_

#include <dat2/kdat.h>

struct scatterlist;

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
DAT_RETURN kdat_ep_drain(DAT_EP_HANDLE ep_handle);
DAT_RETURN kdat_ep_serialise_posts(DAT_EP_HANDLE ep_handle, DAT_BOOLEAN serial);
DAT_RETURN kdat_ia_pdata_limits(DAT_IA_HANDLE ia_handle, struct kdat_pdata_limits *limits);

/**
 * struct kdat_mem_limits - what a consumer that registers memory has to know
 * @lmr_pages: scattered pages of PAGE_SIZE in one LMR, also of dat_lmr_allocate()
 * @rmr_pages: the same for what an RMR can be bound to
 * @page_sizes: union of the page sizes dat_lmr_kcreate() takes
 * @fmr_page_sizes: the same for dat_lmr_fmr()
 * @boundary: where two neighbours of a scatterlist meet: the first has to end and
 *	the second to start on a multiple of it (unless one goes on where the other
 *	ends); fit for blk_queue_virt_boundary() after subtracting 1
 * @numa_node: of the device, or NUMA_NO_NODE
 * @comp_vectors: completion vectors there are, see struct kdat_evd_attr
 * @post_list: requests kdat_ep_post_list() takes at a time
 */
struct kdat_mem_limits {
	DAT_COUNT lmr_pages;
	DAT_COUNT rmr_pages;
	DAT_UINT64 page_sizes;
	DAT_UINT64 fmr_page_sizes;
	DAT_VLEN boundary;
	DAT_COUNT numa_node;
	DAT_COUNT comp_vectors;
	DAT_COUNT post_list;
};

DAT_RETURN kdat_ia_mem_limits(DAT_IA_HANDLE ia_handle, struct kdat_mem_limits *limits);

/**
 * struct kdat_sg - a piece of memory, as the block layer describes it
 * @sgl: scatterlist that nobody has mapped for DMA; read during the call only
 * @nents: its entries
 * @offset: bytes to leave out at its beginning
 * @length: bytes that count
 */
struct kdat_sg {
	struct scatterlist *sgl;
	DAT_COUNT nents;
	DAT_VLEN offset;
	DAT_VLEN length;
};

DAT_RETURN kdat_lmr_fmr_sg(DAT_LMR_HANDLE lmr_handle, const struct kdat_sg *sg,
			   DAT_MEM_PRIV_FLAGS mem_privileges, DAT_VA_TYPE va_type,
			   DAT_EP_HANDLE ep_handle, DAT_LMR_COOKIE user_cookie,
			   DAT_COMPLETION_FLAGS completion_flags, DAT_LMR_CONTEXT *lmr_context,
			   DAT_RMR_CONTEXT *rmr_context, DAT_VADDR *address);
DAT_RETURN kdat_lmr_next_contexts(DAT_LMR_HANDLE lmr_handle, DAT_LMR_CONTEXT *lmr_context,
				  DAT_RMR_CONTEXT *rmr_context);
DAT_RETURN kdat_lmr_by_context(DAT_IA_HANDLE ia_handle, DAT_LMR_CONTEXT lmr_context,
			       DAT_LMR_HANDLE *lmr_handle);

/* What an entry of kdat_ep_post_list() stands for. */
enum kdat_request_op {
	KDAT_REQUEST_SEND,		/* dat_ep_post_send() */
	KDAT_REQUEST_SEND_INVALIDATE,	/* dat_ep_post_send_with_invalidate() */
	KDAT_REQUEST_RDMA_WRITE,	/* dat_ep_post_rdma_write() */
	KDAT_REQUEST_RDMA_READ,		/* dat_ep_post_rdma_read() */
	KDAT_REQUEST_LMR_FMR,		/* kdat_lmr_fmr_sg() */
	KDAT_REQUEST_LMR_INVALIDATE,	/* dat_lmr_invalidate() */
};

/**
 * struct kdat_request - one entry of kdat_ep_post_list()
 * @op: which call it stands for; the others are that call's arguments
 * @completion_flags: as there
 * @user_cookie: as there
 * @num_segments: data transfer: segments in @local_iov
 * @local_iov: data transfer
 * @remote_iov: RDMA
 * @rmr_context: SEND_INVALIDATE: key the peer loses
 * @lmr_handle: LMR_FMR and LMR_INVALIDATE
 * @sg: LMR_FMR: what to bind
 * @mem_privileges: LMR_FMR
 * @va_type: LMR_FMR
 */
struct kdat_request {
	enum kdat_request_op op;
	DAT_COMPLETION_FLAGS completion_flags;
	DAT_CONTEXT user_cookie;
	DAT_COUNT num_segments;
	DAT_LMR_TRIPLET *local_iov;
	const DAT_RMR_TRIPLET *remote_iov;
	DAT_RMR_CONTEXT rmr_context;
	DAT_LMR_HANDLE lmr_handle;
	const struct kdat_sg *sg;
	DAT_MEM_PRIV_FLAGS mem_privileges;
	DAT_VA_TYPE va_type;
};

/* At most so many requests in one call of kdat_ep_post_list(). */
#define KDAT_POST_LIST_MAX	8

DAT_RETURN kdat_ep_post_list(DAT_EP_HANDLE ep_handle, const struct kdat_request *requests,
			     DAT_COUNT num_requests, DAT_COUNT *failed);

DAT_RETURN kdat_ia_dma_map(DAT_IA_HANDLE ia_handle, DAT_PVOID address, DAT_VLEN length,
			   DAT_PADDR *ia_address);
DAT_RETURN kdat_ia_dma_unmap(DAT_IA_HANDLE ia_handle, DAT_PADDR ia_address, DAT_VLEN length);

#endif /* _KDAT_EXT_H_ */
