/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Extensions of this provider to the kernel DAT API 2.0. A consumer that must
 * run on other providers cannot use them. The default of each extension suits
 * most consumers.
 */
#ifdef KDAPL_DAT_1_2
#error "one source file cannot include both <dat/kdat.h> and headers of <dat2/>"
#endif

#ifndef _KDAT_EXT_H_
#define _KDAT_EXT_H_

#include <dat2/kdat.h>

/*
 * The version of kdapl whose extensions are declared here: 100 * MAJOR + MINOR. 0.9 declares those
 * of 1.0; earlier versions do not define it.
 */
#define KDAT_EXT_VERSION	100

const char *kdat_event_name(DAT_EVENT_NUMBER number);
const char *kdat_async_reason_name(const DAT_EVENT *event);
const char *kdat_dto_status_name(DAT_DTO_COMPLETION_STATUS status);
const char *kdat_ep_state_name(DAT_EP_STATE state);
int kdat_errno(DAT_RETURN ret);

/* Actions of a notifier_block, which ignores others: see kdat_register_ia_notifier(). */
#define KDAT_IA_ADDED		1
#define KDAT_IA_REMOVED		2

struct notifier_block;
int kdat_register_ia_notifier(struct notifier_block *nb);
int kdat_unregister_ia_notifier(struct notifier_block *nb);

DAT_RETURN kdat_wait_unused(DAT_HANDLE dat_handle);

/*
 * Initial attributes of an EP: all sizes and counts are 0. Set what the EP needs: at least
 * max_message_size, max_recv_dtos, max_request_dtos, max_recv_iov and max_request_iov. With an
 * SRQ, leave max_recv_dtos and max_recv_iov at 0. The side that posts RDMA sets max_rdma_size,
 * and for Reads max_rdma_read_out. The side whose memory is read sets max_rdma_read_in.
 */
#define KDAT_EP_ATTR_INIT	{			\
	.service_type = DAT_SERVICE_TYPE_RC,		\
	.qos = DAT_QOS_BEST_EFFORT,			\
	.recv_completion_flags = DAT_COMPLETION_DEFAULT_FLAG,	\
	.request_completion_flags = DAT_COMPLETION_DEFAULT_FLAG,	\
	.srq_soft_hw = DAT_HW_DEFAULT,			\
}

struct device;
struct net;
struct scatterlist;
struct sockaddr;

DAT_RETURN kdat_ia_open_to(struct net *net, const struct sockaddr *dst,
			   const struct sockaddr *src, DAT_COUNT asynch_evd_min_qlen,
			   DAT_EVD_HANDLE *asynch_evd_handle, DAT_IA_HANDLE *ia_handle);
/* Like the macro of dat_ia_openv(), this one passes the name of the calling module. */
DAT_RETURN kdat_ia_open_to_as(struct net *net, const struct sockaddr *dst,
			      const struct sockaddr *src, DAT_COUNT asynch_evd_min_qlen,
			      DAT_EVD_HANDLE *asynch_evd_handle, DAT_IA_HANDLE *ia_handle,
			      const char *consumer);
#define kdat_ia_open_to(...) kdat_ia_open_to_as(__VA_ARGS__, KBUILD_MODNAME)

/* The context of an EVD's upcalls. */
enum kdat_evd_context {
	KDAT_EVD_CONTEXT_DEFAULT,	/* softirq if only DTO and RMR_BIND, else workqueue */
	KDAT_EVD_CONTEXT_SOFTIRQ,	/* must not sleep; one at a time */
	KDAT_EVD_CONTEXT_WORKQUEUE,	/* may sleep */
};

/* The provider spreads EVDs over the completion vectors of the device. */
#define KDAT_EVD_VECTOR_ANY	(-1)

/**
 * struct kdat_evd_attr - upcall context and completion vector of an EVD
 * @context: context of its upcalls. Softirq is limited to the streams DTO,
 *	RMR_BIND and SOFTWARE; the other events need a handler that may sleep.
 * @comp_vector: completion vector of its CQs, or KDAT_EVD_VECTOR_ANY. It is taken
 *	modulo the number of vectors of the device, so a CPU number is a good
 *	choice. The driver and the administrator decide which CPU handles the
 *	interrupt of a vector.
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

/* For each member of struct kdat_conn_attr: the provider chooses the value. */
#define KDAT_CONN_DEFAULT	(-1)

/**
 * struct kdat_conn_attr - network parameters of a connection
 * @tos: type of service of the connecting side, 0 to 255; takes precedence over the quality
 *	of service. On RoCE it is the byte in the IP header, and on iWARP too if the driver
 *	supports it (soft-iWARP does not). Over InfiniBand the subnet manager derives a
 *	service level from it, with IPv4 addresses only.
 * @ack_timeout: time limit for an acknowledgment, 1 to 31; n means 4.096 us * 2^n;
 *	not on iWARP
 * @retry_count: how often this EP retransmits a message that is not acknowledged,
 *	0 to 7; not on iWARP. On soft-RoCE, 7 means without limit.
 * @rnr_retry_count: how often this EP retransmits a message because the peer had
 *	no Receive posted, 0 to 6, or 7 for no limit; not on iWARP
 * @min_rnr_timer: how long the peer waits before that retransmission, 0 to 31, in
 *	the encoding of InfiniBand (12: 0.64 ms); not on iWARP
 *
 * On iWARP, TCP handles acknowledgment and retransmission itself.
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
 * struct kdat_pdata_limits - limits on private data, in bytes
 * @connect: with a request; equals the provider attribute max_private_data_size
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
 * struct kdat_mem_limits - limits on registered memory, and device properties
 * @lmr_pages: scattered pages of PAGE_SIZE in one LMR, including dat_lmr_allocate()
 * @rmr_pages: the same for the memory an RMR is bound to
 * @page_sizes: OR of the page sizes that dat_lmr_kcreate() accepts
 * @fmr_page_sizes: the same of the device's list behind dat_lmr_fmr() and dat_rmr_bind()
 * @boundary: alignment of the gaps in a scatterlist. If two neighbouring entries are
 *	not contiguous, the first must end and the second must start on a multiple
 *	of it. Subtract 1 for blk_queue_virt_boundary().
 * @numa_node: NUMA node of the device, or NUMA_NO_NODE
 * @comp_vectors: number of completion vectors, see struct kdat_evd_attr
 * @post_list: highest number of requests in one kdat_ep_post_list()
 * @max_mapping: bytes of contiguous memory that can be mapped for DMA at once, ~0 without a
 *	limit. Bounce buffers (swiotlb) take 256 KiB. Block and SCSI hosts limit the size of
 *	their commands to it
 * @opt_mapping: bytes up to which a mapping is fast, ~0 without a limit
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
	DAT_VLEN max_mapping;
	DAT_VLEN opt_mapping;
};

DAT_RETURN kdat_ia_mem_limits(DAT_IA_HANDLE ia_handle, struct kdat_mem_limits *limits);
DAT_RETURN kdat_ia_device(DAT_IA_HANDLE ia_handle, struct device **parent);
DAT_BOOLEAN kdat_ia_lost(DAT_IA_HANDLE ia_handle);

/**
 * struct kdat_sg - a range of memory, described as in the block layer
 * @sgl: scatterlist, not mapped for DMA; read only during the call
 * @nents: number of its entries
 * @offset: bytes to skip at its start
 * @length: length of the range in bytes; the scatterlist may be longer
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

/* The call that an entry of kdat_ep_post_list() replaces. */
enum kdat_request_op {
	KDAT_REQUEST_SEND,		/* dat_ep_post_send() */
	KDAT_REQUEST_SEND_INVALIDATE,	/* dat_ep_post_send_with_invalidate() */
	KDAT_REQUEST_RDMA_WRITE,	/* dat_ep_post_rdma_write() */
	KDAT_REQUEST_RDMA_READ,		/* dat_ep_post_rdma_read() */
	KDAT_REQUEST_LMR_FMR,		/* kdat_lmr_fmr_sg() */
	KDAT_REQUEST_LMR_INVALIDATE,	/* dat_lmr_invalidate() */
	KDAT_REQUEST_RDMA_WRITE_IMMED,	/* kdat_ep_post_rdma_write_immed() */
};

/**
 * struct kdat_request - one entry of kdat_ep_post_list()
 * @op: the call it replaces; the other members are arguments of that call
 * @completion_flags: for every @op
 * @user_cookie: for every @op
 * @num_segments: for data transfers: segments in @local_iov
 * @local_iov: for data transfers
 * @remote_iov: for RDMA
 * @rmr_context: for SEND_INVALIDATE: the peer's key to invalidate
 * @lmr_handle: for LMR_FMR and LMR_INVALIDATE
 * @sg: for LMR_FMR: the memory to register
 * @mem_privileges: for LMR_FMR
 * @va_type: for LMR_FMR
 * @immed: for RDMA_WRITE_IMMED: the immediate data
 */
struct kdat_request {
	enum kdat_request_op op;
	DAT_COMPLETION_FLAGS completion_flags;
	DAT_CONTEXT user_cookie;
	DAT_COUNT num_segments;
	const DAT_LMR_TRIPLET *local_iov;
	const DAT_RMR_TRIPLET *remote_iov;
	DAT_RMR_CONTEXT rmr_context;
	DAT_LMR_HANDLE lmr_handle;
	const struct kdat_sg *sg;
	DAT_MEM_PRIV_FLAGS mem_privileges;
	DAT_VA_TYPE va_type;
	DAT_UINT32 immed;
};

/* Upper limit of requests in one call of kdat_ep_post_list(). A later version may allow more. */
#define KDAT_POST_LIST_MAX	8

DAT_RETURN kdat_ep_post_list(DAT_EP_HANDLE ep_handle, const struct kdat_request *requests,
			     DAT_COUNT num_requests, DAT_COUNT *failed);

/*
 * Name of an attribute in provider_specific_attr, the same as in the InfiniBand extension of the
 * reference provider. dat_ia_query() returns "TRUE" if kdat_ep_post_rdma_write_immed() works on
 * the IA, as on InfiniBand and RoCE, else "FALSE".
 */
#define KDAT_ATTR_IMMED_DATA	"DAT_IB_IMMED_DATA"

DAT_RETURN kdat_ep_post_rdma_write_immed(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
					 const DAT_LMR_TRIPLET *local_iov,
					 DAT_DTO_COOKIE user_cookie,
					 const DAT_RMR_TRIPLET *remote_iov,
					 DAT_COMPLETION_FLAGS completion_flags, DAT_UINT32 immed);

/**
 * struct kdat_immed - immediate data from the peer, in event_extension_data
 * @present: 1 if a Write with immediate data used this Receive, 0 if a Send did
 * @data: immediate data that the peer passed to kdat_ep_post_rdma_write_immed()
 * @length: bytes that the Write placed at its remote_iov
 */
struct kdat_immed {
	DAT_UINT32 present;
	DAT_UINT32 data;
	DAT_UINT64 length;
};

/**
 * kdat_event_immed - the immediate data that came with an event
 * @event: event of dat_evd_dequeue() or an upcall
 *
 * Such an event completes a Receive without writing to its memory: transfered_length is 0, as
 * for an empty Send.
 *
 * Context: any.
 * Return: the immediate data, inside @event, or NULL if there is none.
 */
static inline const struct kdat_immed *kdat_event_immed(const DAT_EVENT *event)
{
	const struct kdat_immed *immed = (const struct kdat_immed *)event->event_extension_data;

	return immed->present ? immed : NULL;
}

/**
 * struct kdat_dma_map - a mapping of kdat_ia_dma_map()
 * @address: address of the memory for the device
 * @length: its length in bytes
 *
 * The consumer allocates the structure and zeroes it before the first use. From
 * kdat_ia_dma_map() until kdat_ia_dma_unmap() or dat_ia_close() returns, it belongs to the
 * provider: the consumer may read it, but must not change, move or free it.
 */
struct kdat_dma_map {
	DAT_PADDR address;
	DAT_VLEN length;
	/* private: */
	DAT_IA_HANDLE owner;
	struct hlist_node node;
};

DAT_RETURN kdat_ia_dma_map(DAT_IA_HANDLE ia_handle, struct kdat_dma_map *map, DAT_PVOID address,
			   DAT_VLEN length);
DAT_RETURN kdat_ia_dma_unmap(DAT_IA_HANDLE ia_handle, struct kdat_dma_map *map);

#endif /* _KDAT_EXT_H_ */
