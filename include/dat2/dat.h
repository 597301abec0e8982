/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Types and calls common to the user-level and the kernel API. Consumers include
 * <dat2/kdat.h>, which includes this header.
 *
 * Enumerations of bit values are written in hexadecimal.
 */
#ifndef _DAT_H_
#define _DAT_H_

#ifndef _KDAT_H_
#error "include <dat2/kdat.h>, not <dat2/dat.h>"
#endif

#include <dat2/dat_error.h>

/*
 * Scalars
 */

typedef char *DAT_NAME_PTR;

#define DAT_NAME_MAX_LENGTH	256	/* including the terminating NUL */

/**
 * struct dat_named_attr - an attribute without a field of its own in the API
 * @name: name of the attribute
 * @value: its value as text
 */
typedef struct dat_named_attr {
	const char *name;
	const char *value;
} DAT_NAMED_ATTR;

typedef enum dat_boolean {
	DAT_FALSE,
	DAT_TRUE,
} DAT_BOOLEAN;

typedef DAT_UINT32 DAT_TIMEOUT;		/* microseconds */

#define DAT_TIMEOUT_INFINITE	((DAT_TIMEOUT)~0)

/* The caller owns the address; its size is that of its address family. */
typedef struct sockaddr *DAT_IA_ADDRESS_PTR;

typedef DAT_UINT64 DAT_CONN_QUAL;
typedef DAT_UINT64 DAT_PORT_QUAL;

/* Addresses are in host byte order and may be wider than a pointer. */
typedef DAT_UINT64 DAT_VADDR;
typedef DAT_UINT64 DAT_VLEN;
typedef DAT_UINT32 DAT_SEG_LENGTH;

/* Local and remote key of memory, in host byte order. */
typedef DAT_UINT32 DAT_LMR_CONTEXT;
typedef DAT_UINT32 DAT_RMR_CONTEXT;

/**
 * union dat_context - eight bytes that belong to the consumer
 * @as_ptr: as a pointer
 * @as_64: as 64 bits
 * @as_index: as the longest integer
 *
 * The provider returns all 64 bits unchanged and never interprets them.
 */
typedef union dat_context {
	DAT_PVOID as_ptr;
	DAT_UINT64 as_64;
	DAT_UVERYLONG as_index;
} DAT_CONTEXT;

typedef DAT_CONTEXT DAT_DTO_COOKIE;
typedef DAT_CONTEXT DAT_RMR_COOKIE;

/* Buffer alignment in bytes that performs well on every provider. */
#ifndef DAT_OPTIMAL_ALIGNMENT
#define DAT_OPTIMAL_ALIGNMENT	256
#endif

/*
 * Byte order. Triplets passed to a call are always in host byte order. These
 * macros are for keys, addresses and lengths that consumers write into messages:
 * LSB is little-endian, MSB is big-endian, and each is its own inverse.
 */
#define DAT_LMRC_TO_LSB(x)	((__force DAT_LMR_CONTEXT)cpu_to_le32((DAT_LMR_CONTEXT)(x)))
#define DAT_LMRC_TO_MSB(x)	((__force DAT_LMR_CONTEXT)cpu_to_be32((DAT_LMR_CONTEXT)(x)))
#define DAT_RMRC_TO_LSB(x)	((__force DAT_RMR_CONTEXT)cpu_to_le32((DAT_RMR_CONTEXT)(x)))
#define DAT_RMRC_TO_MSB(x)	((__force DAT_RMR_CONTEXT)cpu_to_be32((DAT_RMR_CONTEXT)(x)))
#define DAT_VADDR_TO_LSB(x)	((__force DAT_VADDR)cpu_to_le64((DAT_VADDR)(x)))
#define DAT_VADDR_TO_MSB(x)	((__force DAT_VADDR)cpu_to_be64((DAT_VADDR)(x)))
#define DAT_VLEN_TO_LSB(x)	((__force DAT_VLEN)cpu_to_le64((DAT_VLEN)(x)))
#define DAT_VLEN_TO_MSB(x)	((__force DAT_VLEN)cpu_to_be64((DAT_VLEN)(x)))

/*
 * Handles are opaque values of pointer type and must not be dereferenced. NULL,
 * a stale handle and any value that is not a handle return DAT_INVALID_HANDLE.
 */
typedef DAT_PVOID DAT_HANDLE;
typedef DAT_HANDLE DAT_CR_HANDLE;
typedef DAT_HANDLE DAT_CSP_HANDLE;
typedef DAT_HANDLE DAT_EP_HANDLE;
typedef DAT_HANDLE DAT_EVD_HANDLE;
typedef DAT_HANDLE DAT_IA_HANDLE;
typedef DAT_HANDLE DAT_LMR_HANDLE;
typedef DAT_HANDLE DAT_PSP_HANDLE;
typedef DAT_HANDLE DAT_PZ_HANDLE;
typedef DAT_HANDLE DAT_RMR_HANDLE;
typedef DAT_HANDLE DAT_RSP_HANDLE;
typedef DAT_HANDLE DAT_SRQ_HANDLE;

#define DAT_HANDLE_NULL		((DAT_HANDLE)NULL)

/* For consumers that store IA handles as integers. */
#define DAT_IA_HANDLE_TO_UL(a)	((unsigned long)(a))
#define DAT_UL_TO_IA_HANDLE(a)	((DAT_IA_HANDLE)(a))

/*
 * Flags and small enumerations
 */

typedef enum dat_completion_flags {
	/* each completion makes an event, and the event triggers an upcall */
	DAT_COMPLETION_DEFAULT_FLAG		= 0x00,
	/* requests: no event on success */
	DAT_COMPLETION_SUPPRESS_FLAG		= 0x01,
	/* Send: the completion of the peer's Receive notifies the peer */
	DAT_COMPLETION_SOLICITED_WAIT_FLAG	= 0x02,
	/* the event does not trigger an upcall */
	DAT_COMPLETION_UNSIGNALLED_FLAG		= 0x04,
	/* requests: wait for all RDMA Reads posted earlier */
	DAT_COMPLETION_BARRIER_FENCE_FLAG	= 0x08,
	/* user level only */
	DAT_COMPLETION_EVD_THRESHOLD_FLAG	= 0x10,
	/* dat_lmr_invalidate(): wait for all requests posted earlier */
	DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG = 0x20,
} DAT_COMPLETION_FLAGS;

typedef enum dat_connect_flags {
	/* one path */
	DAT_CONNECT_DEFAULT_FLAG		= 0x00,
	/* several paths if the provider supports it */
	DAT_CONNECT_MULTIPATH_REQUESTED_FLAG	= 0x01,
	/* several paths, or fail */
	DAT_CONNECT_MULTIPATH_REQUIRED_FLAG	= 0x02,
} DAT_CONNECT_FLAGS;

/* 1.2 spelling */
#define DAT_CONNECT_MULTIPATH_FLAG	DAT_CONNECT_MULTIPATH_REQUESTED_FLAG

typedef enum dat_close_flags {
	DAT_CLOSE_ABRUPT_FLAG	= 0x00,	/* immediately; outstanding work is flushed */
	DAT_CLOSE_GRACEFUL_FLAG	= 0x01,	/* finish first; for an IA: fail while it has objects */
} DAT_CLOSE_FLAGS;

#define DAT_CLOSE_DEFAULT	DAT_CLOSE_ABRUPT_FLAG

/* The event streams that may feed an EVD. */
typedef enum dat_evd_flags {
	DAT_EVD_SOFTWARE_FLAG	= 0x001,	/* dat_evd_post_se() */
	DAT_EVD_CR_FLAG		= 0x010,	/* connection requests of service points */
	DAT_EVD_DTO_FLAG	= 0x020,	/* completions of Endpoints */
	DAT_EVD_CONNECTION_FLAG	= 0x040,	/* connections of Endpoints: outcome and end */
	DAT_EVD_RMR_BIND_FLAG	= 0x080,	/* completions of binds */
	DAT_EVD_ASYNC_FLAG	= 0x100,	/* errors of an IA and its objects */
	DAT_EVD_DEFAULT_FLAG	= 0x1f0,	/* all except software */
} DAT_EVD_FLAGS;

/* The source of the Endpoint of a connection request. */
typedef enum dat_psp_flags {
	DAT_PSP_CONSUMER_FLAG	= 0x00,	/* the consumer names one in dat_cr_accept() */
	DAT_PSP_PROVIDER_FLAG	= 0x01,	/* the service point creates one per request */
} DAT_PSP_FLAGS;

typedef enum dat_qos {
	DAT_QOS_BEST_EFFORT	= 0x00,
	DAT_QOS_HIGH_THROUGHPUT	= 0x01,
	DAT_QOS_LOW_LATENCY	= 0x02,
	DAT_QOS_ECONOMY		= 0x04,
	DAT_QOS_PREMIUM		= 0x08,
} DAT_QOS;

typedef enum dat_mem_priv_flags {
	DAT_MEM_PRIV_NONE_FLAG		= 0x00,
	DAT_MEM_PRIV_LOCAL_READ_FLAG	= 0x01,	/* source of Sends and RDMA Writes */
	DAT_MEM_PRIV_REMOTE_READ_FLAG	= 0x02,	/* source of the peer's RDMA Reads */
	DAT_MEM_PRIV_LOCAL_WRITE_FLAG	= 0x10,	/* sink of Receives and RDMA Reads */
	DAT_MEM_PRIV_REMOTE_WRITE_FLAG	= 0x20,	/* sink of the peer's RDMA Writes */
	DAT_MEM_PRIV_ALL_FLAG		= 0x33,
} DAT_MEM_PRIV_FLAGS;

/* 1.0 spelling: local and remote combined */
#define DAT_MEM_PRIV_READ_FLAG \
	(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_REMOTE_READ_FLAG)
#define DAT_MEM_PRIV_WRITE_FLAG \
	(DAT_MEM_PRIV_LOCAL_WRITE_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG)

/* How a memory region is addressed. */
typedef enum dat_va_type {
	DAT_VA_TYPE_VA		= 0x0,	/* by virtual address */
	DAT_VA_TYPE_ZB		= 0x1,	/* zero-based: by offset from its start */
} DAT_VA_TYPE;

/* How much memory may be registered beyond the requested range. */
typedef enum dat_mem_optimize_flags {
	DAT_MEM_OPTIMIZE_DONT_CARE	= 0x00,
	DAT_MEM_OPTIMIZE_IA		= 0x01,	/* as much as suits the device */
	DAT_MEM_OPTIMIZE_MIN_EXPOSURE	= 0x02,	/* as little as possible */
	DAT_MEM_OPTIMIZE_EXACT_EXPOSURE	= 0x04,	/* none */
} DAT_MEM_OPTIMIZE_FLAGS;

#define DAT_MEM_OPT	DAT_MEM_OPTIMIZE_FLAGS

/* The Endpoints that may use an RMR. */
typedef enum dat_rmr_scope {
	DAT_RMR_SCOPE_EP,	/* one Endpoint at a time */
	DAT_RMR_SCOPE_PZ,	/* every Endpoint of its PZ */
	DAT_RMR_SCOPE_ANY,	/* either */
} DAT_RMR_SCOPE;

/* The owner of a post's iov array after the call has returned. */
typedef enum dat_iov_ownership {
	DAT_IOV_CONSUMER	= 0x0,	/* the consumer */
	DAT_IOV_PROVIDER_NOMOD	= 0x1,	/* the provider, which only reads it */
	DAT_IOV_PROVIDER_MOD	= 0x2,	/* the provider, which may modify it */
} DAT_IOV_OWNERSHIP;

typedef enum dat_ep_creator_for_psp {
	DAT_PSP_CREATES_EP_NEVER,
	DAT_PSP_CREATES_EP_IFASKED,
	DAT_PSP_CREATES_EP_ALWAYS,
} DAT_EP_CREATOR_FOR_PSP;

typedef enum dat_service_type {
	DAT_SERVICE_TYPE_RC,	/* reliable connected */
} DAT_SERVICE_TYPE;

/* The operation that a completion reports. */
typedef enum dat_dtos {
	DAT_DTO_SEND,
	DAT_DTO_RDMA_WRITE,
	DAT_DTO_RDMA_READ,
	DAT_DTO_RECEIVE,
	DAT_DTO_RECEIVE_WITH_INVALIDATE,
	DAT_DTO_BIND_MW,
	DAT_DTO_LMR_FMR,
	DAT_DTO_LMR_INVALIDATE,
} DAT_DTOS;

typedef DAT_UINT32 DAT_HA_LB;

#define DAT_HA_LB_NONE		((DAT_HA_LB)0)
#define DAT_HA_LB_INTERCOMM	((DAT_HA_LB)1)
#define DAT_HA_LB_INTRACOMM	((DAT_HA_LB)2)

typedef enum dat_extension {
	DAT_EXTENSION_NONE,
	DAT_EXTENSION_IB,
	DAT_EXTENSION_IW,
} DAT_EXTENSION;

/*
 * Memory segments, as passed to the posting calls
 */

/**
 * struct dat_lmr_triplet - a segment of local memory
 * @virtual_address: where it starts
 * @segment_length: bytes; if 0, the other two members are ignored
 * @lmr_context: key of the LMR that contains it
 */
typedef struct dat_lmr_triplet {
	DAT_VADDR virtual_address;
	DAT_SEG_LENGTH segment_length;
	DAT_LMR_CONTEXT lmr_context;
} DAT_LMR_TRIPLET;

/**
 * struct dat_rmr_triplet - a segment of the peer's memory
 * @virtual_address: where it starts
 * @segment_length: bytes
 * @rmr_context: key, as received from the peer
 */
typedef struct dat_rmr_triplet {
	DAT_VADDR virtual_address;
	DAT_SEG_LENGTH segment_length;
	DAT_RMR_CONTEXT rmr_context;
} DAT_RMR_TRIPLET;

/**
 * struct dat_rmr_param - result of dat_rmr_query()
 * @ia_handle: the IA it was created on
 * @pz_handle: its Protection Zone
 * @lmr_triplet: the memory it is bound to; undefined while unbound
 * @mem_priv: access rights of the binding; undefined while unbound
 * @rmr_context: key for the peer; undefined while unbound
 * @rmr_scope: the Endpoints that may use it
 * @va_type: how the bound memory is addressed
 */
typedef struct dat_rmr_param {
	DAT_IA_HANDLE ia_handle;
	DAT_PZ_HANDLE pz_handle;
	DAT_LMR_TRIPLET lmr_triplet;
	DAT_MEM_PRIV_FLAGS mem_priv;
	DAT_RMR_CONTEXT rmr_context;
	DAT_RMR_SCOPE rmr_scope;
	DAT_VA_TYPE va_type;
} DAT_RMR_PARAM;

typedef enum dat_rmr_param_mask {
	DAT_RMR_FIELD_IA_HANDLE		= 0x01,
	DAT_RMR_FIELD_PZ_HANDLE		= 0x02,
	DAT_RMR_FIELD_LMR_TRIPLET	= 0x04,
	DAT_RMR_FIELD_MEM_PRIV		= 0x08,
	DAT_RMR_FIELD_RMR_CONTEXT	= 0x10,
	DAT_RMR_FIELD_RMR_SCOPE		= 0x20,
	DAT_RMR_FIELD_VA_TYPE		= 0x40,
	DAT_RMR_FIELD_ALL		= 0x7f,
} DAT_RMR_PARAM_MASK;

/**
 * struct dat_pz_param - result of dat_pz_query()
 * @ia_handle: the IA it was created on
 */
typedef struct dat_pz_param {
	DAT_IA_HANDLE ia_handle;
} DAT_PZ_PARAM;

typedef enum dat_pz_param_mask {
	DAT_PZ_FIELD_IA_HANDLE	= 0x01,
	DAT_PZ_FIELD_ALL	= 0x01,
} DAT_PZ_PARAM_MASK;

/*
 * Interface Adapters
 */

/* Member names of older versions. As macros, they replace any identifier of that name. */
#define max_rdma_read_per_ep	max_rdma_read_per_ep_in
#define max_mtu_size		max_message_size

/**
 * struct dat_ia_attr - limits and properties of an IA
 * @adapter_name: name of the device
 * @vendor_name: name of its vendor
 * @hardware_version_major: version of the hardware
 * @hardware_version_minor: version of the hardware
 * @firmware_version_major: version of the firmware
 * @firmware_version_minor: version of the firmware
 * @ia_address_ptr: address of the IA, valid while it is open
 * @max_eps: Endpoints
 * @max_dto_per_ep: outstanding DTOs per queue of an Endpoint, for any number of segments
 * @max_rdma_read_per_ep_in: incoming RDMA Reads an Endpoint may have in flight
 * @max_rdma_read_per_ep_out: outgoing RDMA Reads an Endpoint may have in flight
 * @max_evds: EVDs
 * @max_evd_qlen: events per EVD
 * @max_iov_segments_per_dto: segments per Send or Receive
 * @max_lmrs: LMRs
 * @max_lmr_block_size: bytes per LMR
 * @max_lmr_virtual_address: highest address inside an LMR
 * @max_pzs: Protection Zones
 * @max_message_size: bytes per message
 * @max_rdma_size: bytes per RDMA transfer
 * @max_rmrs: RMRs
 * @max_rmr_target_address: highest address inside an RMR
 * @max_srqs: SRQs
 * @max_ep_per_srq: Endpoints per SRQ
 * @max_recv_per_srq: Receives per SRQ
 * @max_iov_segments_per_rdma_read: local segments per RDMA Read
 * @max_iov_segments_per_rdma_write: local segments per RDMA Write
 * @max_rdma_read_in: incoming RDMA Reads in flight, all Endpoints together
 * @max_rdma_read_out: outgoing RDMA Reads in flight, all Endpoints together
 * @max_rdma_read_per_ep_in_guaranteed: every Endpoint can reach that limit
 * @max_rdma_read_per_ep_out_guaranteed: every Endpoint can reach that limit
 * @zb_supported: zero-based memory regions are supported
 * @reserved_lmr_supported: dat_ia_reserved_lmr() is supported
 * @num_transport_attr: entries in @transport_attr
 * @transport_attr: further attributes of the transport
 * @num_vendor_attr: entries in @vendor_attr
 * @vendor_attr: further attributes of the vendor
 */
typedef struct dat_ia_attr {
	char adapter_name[DAT_NAME_MAX_LENGTH];
	char vendor_name[DAT_NAME_MAX_LENGTH];
	DAT_UINT32 hardware_version_major;
	DAT_UINT32 hardware_version_minor;
	DAT_UINT32 firmware_version_major;
	DAT_UINT32 firmware_version_minor;
	DAT_IA_ADDRESS_PTR ia_address_ptr;
	DAT_COUNT max_eps;
	DAT_COUNT max_dto_per_ep;
	DAT_COUNT max_rdma_read_per_ep_in;
	DAT_COUNT max_rdma_read_per_ep_out;
	DAT_COUNT max_evds;
	DAT_COUNT max_evd_qlen;
	DAT_COUNT max_iov_segments_per_dto;
	DAT_COUNT max_lmrs;
	DAT_SEG_LENGTH max_lmr_block_size;
	DAT_VADDR max_lmr_virtual_address;
	DAT_COUNT max_pzs;
	DAT_SEG_LENGTH max_message_size;
	DAT_SEG_LENGTH max_rdma_size;
	DAT_COUNT max_rmrs;
	DAT_VADDR max_rmr_target_address;
	DAT_COUNT max_srqs;
	DAT_COUNT max_ep_per_srq;
	DAT_COUNT max_recv_per_srq;
	DAT_COUNT max_iov_segments_per_rdma_read;
	DAT_COUNT max_iov_segments_per_rdma_write;
	DAT_COUNT max_rdma_read_in;
	DAT_COUNT max_rdma_read_out;
	DAT_BOOLEAN max_rdma_read_per_ep_in_guaranteed;
	DAT_BOOLEAN max_rdma_read_per_ep_out_guaranteed;
	DAT_BOOLEAN zb_supported;
	DAT_BOOLEAN reserved_lmr_supported;
	DAT_COUNT num_transport_attr;
	DAT_NAMED_ATTR *transport_attr;
	DAT_COUNT num_vendor_attr;
	DAT_NAMED_ATTR *vendor_attr;
} DAT_IA_ATTR;

typedef DAT_UINT64 DAT_IA_ATTR_MASK;

#define DAT_IA_FIELD_IA_ADAPTER_NAME				UINT64_C(0x0000000001)
#define DAT_IA_FIELD_IA_VENDOR_NAME				UINT64_C(0x0000000002)
#define DAT_IA_FIELD_IA_HARDWARE_MAJOR_VERSION			UINT64_C(0x0000000004)
#define DAT_IA_FIELD_IA_HARDWARE_MINOR_VERSION			UINT64_C(0x0000000008)
#define DAT_IA_FIELD_IA_FIRMWARE_MAJOR_VERSION			UINT64_C(0x0000000010)
#define DAT_IA_FIELD_IA_FIRMWARE_MINOR_VERSION			UINT64_C(0x0000000020)
#define DAT_IA_FIELD_IA_ADDRESS_PTR				UINT64_C(0x0000000040)
#define DAT_IA_FIELD_IA_MAX_EPS					UINT64_C(0x0000000080)
#define DAT_IA_FIELD_IA_MAX_DTO_PER_EP				UINT64_C(0x0000000100)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_IN			UINT64_C(0x0000000200)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_OUT		UINT64_C(0x0000000400)
#define DAT_IA_FIELD_IA_MAX_EVDS				UINT64_C(0x0000000800)
#define DAT_IA_FIELD_IA_MAX_EVD_QLEN				UINT64_C(0x0000001000)
#define DAT_IA_FIELD_IA_MAX_IOV_SEGMENTS_PER_DTO		UINT64_C(0x0000002000)
#define DAT_IA_FIELD_IA_MAX_LMRS				UINT64_C(0x0000004000)
#define DAT_IA_FIELD_IA_MAX_LMR_BLOCK_SIZE			UINT64_C(0x0000008000)
#define DAT_IA_FIELD_IA_MAX_LMR_VIRTUAL_ADDRESS			UINT64_C(0x0000010000)
#define DAT_IA_FIELD_IA_MAX_PZS					UINT64_C(0x0000020000)
#define DAT_IA_FIELD_IA_MAX_MESSAGE_SIZE			UINT64_C(0x0000040000)
#define DAT_IA_FIELD_IA_MAX_RDMA_SIZE				UINT64_C(0x0000080000)
#define DAT_IA_FIELD_IA_MAX_RMRS				UINT64_C(0x0000100000)
#define DAT_IA_FIELD_IA_MAX_RMR_TARGET_ADDRESS			UINT64_C(0x0000200000)
#define DAT_IA_FIELD_IA_MAX_SRQS				UINT64_C(0x0000400000)
#define DAT_IA_FIELD_IA_MAX_EP_PER_SRQ				UINT64_C(0x0000800000)
#define DAT_IA_FIELD_IA_MAX_RECV_PER_SRQ			UINT64_C(0x0001000000)
#define DAT_IA_FIELD_IA_MAX_IOV_SEGMENTS_PER_RDMA_READ		UINT64_C(0x0002000000)
#define DAT_IA_FIELD_IA_MAX_IOV_SEGMENTS_PER_RDMA_WRITE		UINT64_C(0x0004000000)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_IN			UINT64_C(0x0008000000)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_OUT			UINT64_C(0x0010000000)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_IN_GUARANTEED	UINT64_C(0x0020000000)
#define DAT_IA_FIELD_IA_MAX_RDMA_READ_PER_EP_OUT_GUARANTEED	UINT64_C(0x0040000000)
#define DAT_IA_FIELD_IA_ZB_SUPPORTED				UINT64_C(0x0080000000)
#define DAT_IA_FIELD_IA_NUM_TRANSPORT_ATTR			UINT64_C(0x0800000000)
#define DAT_IA_FIELD_IA_TRANSPORT_ATTR				UINT64_C(0x1000000000)
#define DAT_IA_FIELD_IA_NUM_VENDOR_ATTR				UINT64_C(0x2000000000)
#define DAT_IA_FIELD_IA_VENDOR_ATTR				UINT64_C(0x4000000000)
#define DAT_IA_FIELD_ALL					UINT64_C(0x7fffffffff)
#define DAT_IA_FIELD_NONE					UINT64_C(0x0000000000)

#define DAT_IA_ALL			DAT_IA_FIELD_ALL
#define DAT_IA_FIELD_IA_MAX_MTU_SIZE	DAT_IA_FIELD_IA_MAX_MESSAGE_SIZE
#define DAT_IA_FIELD_IA_MAX_DTO_PER_OP	DAT_IA_FIELD_IA_MAX_DTO_PER_EP

/**
 * struct dat_provider_info - one entry of dat_registry_list_providers()
 * @ia_name: name to pass to dat_ia_openv()
 * @dapl_version_major: version of the API
 * @dapl_version_minor: version of the API
 * @is_thread_safe: concurrent calls on one object are serialised
 */
typedef struct dat_provider_info {
	char ia_name[DAT_NAME_MAX_LENGTH];
	DAT_UINT32 dapl_version_major;
	DAT_UINT32 dapl_version_minor;
	DAT_BOOLEAN is_thread_safe;
} DAT_PROVIDER_INFO;

/*
 * Endpoints
 */

typedef enum dat_ep_state {
	DAT_EP_STATE_UNCONNECTED,
	DAT_EP_STATE_UNCONFIGURED_UNCONNECTED,
	DAT_EP_STATE_RESERVED,
	DAT_EP_STATE_UNCONFIGURED_RESERVED,
	DAT_EP_STATE_PASSIVE_CONNECTION_PENDING,
	DAT_EP_STATE_UNCONFIGURED_PASSIVE,
	DAT_EP_STATE_ACTIVE_CONNECTION_PENDING,
	DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING,
	DAT_EP_STATE_UNCONFIGURED_TENTATIVE,
	DAT_EP_STATE_CONNECTED,
	DAT_EP_STATE_DISCONNECT_PENDING,
	DAT_EP_STATE_DISCONNECTED,
	DAT_EP_STATE_COMPLETION_PENDING,
	DAT_EP_STATE_CONNECTED_SINGLE_PATH,
	DAT_EP_STATE_CONNECTED_MULTI_PATH,
} DAT_EP_STATE;

/* 1.0 spelling */
#define DAT_EP_STATE_ERROR	DAT_EP_STATE_DISCONNECTED

#define DAT_WATERMARK_INFINITE	((DAT_COUNT)~0)
#define DAT_HW_DEFAULT		DAT_WATERMARK_INFINITE
#define DAT_SRQ_LW_DEFAULT	0x0
#define DAT_VALUE_UNKNOWN	(((DAT_COUNT)~0) - 1)

/**
 * struct dat_ep_attr - limits and properties of an Endpoint
 * @service_type: DAT_SERVICE_TYPE_RC
 * @max_message_size: bytes per Send that is posted here; a Receive may be longer
 * @max_rdma_size: bytes per RDMA transfer that is posted here, not of one by the peer
 * @qos: quality of service
 * @recv_completion_flags: DEFAULT, UNSIGNALLED (a Receive may ask for an event
 *	without an upcall) or SOLICITED_WAIT (the peer's Send decides)
 * @request_completion_flags: DEFAULT, or UNSIGNALLED (a request may ask for an
 *	event without an upcall)
 * @max_recv_dtos: outstanding Receives
 * @max_request_dtos: outstanding requests
 * @max_recv_iov: segments per Receive
 * @max_request_iov: segments per Send
 * @max_rdma_read_in: RDMA Reads the peer may have in flight
 * @max_rdma_read_out: RDMA Reads this Endpoint may have in flight
 * @srq_soft_hw: soft high watermark of the Receives taken from an SRQ
 * @max_rdma_read_iov: segments per RDMA Read; 0 means @max_request_iov
 * @max_rdma_write_iov: segments per RDMA Write; 0 means @max_request_iov
 * @ep_transport_specific_count: entries in @ep_transport_specific
 * @ep_transport_specific: further attributes, for the transport
 * @ep_provider_specific_count: entries in @ep_provider_specific
 * @ep_provider_specific: further attributes, for the provider
 */
typedef struct dat_ep_attr {
	DAT_SERVICE_TYPE service_type;
	DAT_SEG_LENGTH max_message_size;
	DAT_SEG_LENGTH max_rdma_size;
	DAT_QOS qos;
	DAT_COMPLETION_FLAGS recv_completion_flags;
	DAT_COMPLETION_FLAGS request_completion_flags;
	DAT_COUNT max_recv_dtos;
	DAT_COUNT max_request_dtos;
	DAT_COUNT max_recv_iov;
	DAT_COUNT max_request_iov;
	DAT_COUNT max_rdma_read_in;
	DAT_COUNT max_rdma_read_out;
	DAT_COUNT srq_soft_hw;
	DAT_COUNT max_rdma_read_iov;
	DAT_COUNT max_rdma_write_iov;
	DAT_COUNT ep_transport_specific_count;
	DAT_NAMED_ATTR *ep_transport_specific;
	DAT_COUNT ep_provider_specific_count;
	DAT_NAMED_ATTR *ep_provider_specific;
} DAT_EP_ATTR;

/**
 * struct dat_ep_param - result of dat_ep_query()
 * @ia_handle: the IA it was created on
 * @ep_state: its state
 * @comm: communicator of dat_ep_common_connect()
 * @local_ia_address_ptr: address of this end, once connected
 * @local_port_qual: port of this end
 * @remote_ia_address_ptr: address of the peer
 * @remote_port_qual: port of the peer
 * @pz_handle: its Protection Zone
 * @recv_evd_handle: EVD of Receive completions
 * @request_evd_handle: EVD of request completions
 * @connect_evd_handle: EVD of connection events
 * @srq_handle: the SRQ that supplies its Receives
 * @ep_attr: its limits and properties
 */
typedef struct dat_ep_param {
	DAT_IA_HANDLE ia_handle;
	DAT_EP_STATE ep_state;
	DAT_COMM comm;
	DAT_IA_ADDRESS_PTR local_ia_address_ptr;
	DAT_PORT_QUAL local_port_qual;
	DAT_IA_ADDRESS_PTR remote_ia_address_ptr;
	DAT_PORT_QUAL remote_port_qual;
	DAT_PZ_HANDLE pz_handle;
	DAT_EVD_HANDLE recv_evd_handle;
	DAT_EVD_HANDLE request_evd_handle;
	DAT_EVD_HANDLE connect_evd_handle;
	DAT_SRQ_HANDLE srq_handle;
	DAT_EP_ATTR ep_attr;
} DAT_EP_PARAM;

typedef DAT_UINT64 DAT_EP_PARAM_MASK;

#define DAT_EP_FIELD_IA_HANDLE				UINT64_C(0x00000001)
#define DAT_EP_FIELD_EP_STATE				UINT64_C(0x00000002)
#define DAT_EP_FIELD_COMM				UINT64_C(0x00000004)
#define DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR		UINT64_C(0x00000008)
#define DAT_EP_FIELD_LOCAL_PORT_QUAL			UINT64_C(0x00000010)
#define DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR		UINT64_C(0x00000020)
#define DAT_EP_FIELD_REMOTE_PORT_QUAL			UINT64_C(0x00000040)
#define DAT_EP_FIELD_PZ_HANDLE				UINT64_C(0x00000080)
#define DAT_EP_FIELD_RECV_EVD_HANDLE			UINT64_C(0x00000100)
#define DAT_EP_FIELD_REQUEST_EVD_HANDLE			UINT64_C(0x00000200)
#define DAT_EP_FIELD_CONNECT_EVD_HANDLE			UINT64_C(0x00000400)
#define DAT_EP_FIELD_SRQ_HANDLE				UINT64_C(0x00000800)
#define DAT_EP_FIELD_EP_ATTR_SERVICE_TYPE		UINT64_C(0x00001000)
#define DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE		UINT64_C(0x00002000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE		UINT64_C(0x00004000)
#define DAT_EP_FIELD_EP_ATTR_QOS			UINT64_C(0x00008000)
#define DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS	UINT64_C(0x00010000)
#define DAT_EP_FIELD_EP_ATTR_REQUEST_COMPLETION_FLAGS	UINT64_C(0x00020000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS		UINT64_C(0x00040000)
#define DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS		UINT64_C(0x00080000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV		UINT64_C(0x00100000)
#define DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV		UINT64_C(0x00200000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IN		UINT64_C(0x00400000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_OUT		UINT64_C(0x00800000)
#define DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW		UINT64_C(0x01000000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IOV		UINT64_C(0x02000000)
#define DAT_EP_FIELD_EP_ATTR_MAX_RDMA_WRITE_IOV		UINT64_C(0x04000000)
#define DAT_EP_FIELD_EP_ATTR_NUM_TRANSPORT_ATTR		UINT64_C(0x08000000)
#define DAT_EP_FIELD_EP_ATTR_TRANSPORT_SPECIFIC_ATTR	UINT64_C(0x10000000)
#define DAT_EP_FIELD_EP_ATTR_NUM_PROVIDER_ATTR		UINT64_C(0x20000000)
#define DAT_EP_FIELD_EP_ATTR_PROVIDER_SPECIFIC_ATTR	UINT64_C(0x40000000)
#define DAT_EP_FIELD_EP_ATTR_ALL			UINT64_C(0x7ffff000)
#define DAT_EP_FIELD_ALL				UINT64_C(0x7fffffff)

/*
 * Shared Receive Queues
 */

typedef enum dat_srq_state {
	DAT_SRQ_STATE_OPERATIONAL,
	DAT_SRQ_STATE_ERROR,
} DAT_SRQ_STATE;

/**
 * struct dat_srq_attr - size of an SRQ
 * @max_recv_dtos: outstanding Receives
 * @max_recv_iov: segments per Receive
 * @low_watermark: fewer Receives than this raise an asynchronous event
 */
typedef struct dat_srq_attr {
	DAT_COUNT max_recv_dtos;
	DAT_COUNT max_recv_iov;
	DAT_COUNT low_watermark;
} DAT_SRQ_ATTR;

/**
 * struct dat_srq_param - result of dat_srq_query()
 * @ia_handle: the IA it was created on
 * @srq_state: its state
 * @pz_handle: its Protection Zone
 * @max_recv_dtos: outstanding Receives
 * @max_recv_iov: segments per Receive
 * @low_watermark: fewer Receives than this raise an asynchronous event
 * @available_dto_count: Receives that no Endpoint has taken yet
 * @outstanding_dto_count: those, plus the taken ones whose completion the
 *	consumer has not received yet
 */
typedef struct dat_srq_param {
	DAT_IA_HANDLE ia_handle;
	DAT_SRQ_STATE srq_state;
	DAT_PZ_HANDLE pz_handle;
	DAT_COUNT max_recv_dtos;
	DAT_COUNT max_recv_iov;
	DAT_COUNT low_watermark;
	DAT_COUNT available_dto_count;
	DAT_COUNT outstanding_dto_count;
} DAT_SRQ_PARAM;

typedef enum dat_srq_param_mask {
	DAT_SRQ_FIELD_IA_HANDLE			= 0x001,
	DAT_SRQ_FIELD_SRQ_STATE			= 0x002,
	DAT_SRQ_FIELD_PZ_HANDLE			= 0x004,
	DAT_SRQ_FIELD_MAX_RECV_DTO		= 0x008,
	DAT_SRQ_FIELD_MAX_RECV_IOV		= 0x010,
	DAT_SRQ_FIELD_LOW_WATERMARK		= 0x020,
	DAT_SRQ_FIELD_AVAILABLE_DTO_COUNT	= 0x040,
	DAT_SRQ_FIELD_OUTSTANDING_DTO_COUNT	= 0x080,
	DAT_SRQ_FIELD_ALL			= 0x0ff,
} DAT_SRQ_PARAM_MASK;

/*
 * Service points and connection requests
 */

/**
 * struct dat_psp_param - result of dat_psp_query()
 * @ia_handle: the IA it was created on
 * @conn_qual: connection qualifier it listens on
 * @evd_handle: EVD of its connection requests
 * @psp_flags: the source of the Endpoint
 */
typedef struct dat_psp_param {
	DAT_IA_HANDLE ia_handle;
	DAT_CONN_QUAL conn_qual;
	DAT_EVD_HANDLE evd_handle;
	DAT_PSP_FLAGS psp_flags;
} DAT_PSP_PARAM;

typedef enum dat_psp_param_mask {
	DAT_PSP_FIELD_IA_HANDLE		= 0x01,
	DAT_PSP_FIELD_CONN_QUAL		= 0x02,
	DAT_PSP_FIELD_EVD_HANDLE	= 0x04,
	DAT_PSP_FIELD_PSP_FLAGS		= 0x08,
	DAT_PSP_FIELD_ALL		= 0x0f,
} DAT_PSP_PARAM_MASK;

/**
 * struct dat_rsp_param - result of dat_rsp_query()
 * @ia_handle: the IA it was created on
 * @conn_qual: connection qualifier it listens on
 * @evd_handle: EVD of its connection request
 * @ep_handle: the Endpoint reserved for it
 */
typedef struct dat_rsp_param {
	DAT_IA_HANDLE ia_handle;
	DAT_CONN_QUAL conn_qual;
	DAT_EVD_HANDLE evd_handle;
	DAT_EP_HANDLE ep_handle;
} DAT_RSP_PARAM;

typedef enum dat_rsp_param_mask {
	DAT_RSP_FIELD_IA_HANDLE		= 0x01,
	DAT_RSP_FIELD_CONN_QUAL		= 0x02,
	DAT_RSP_FIELD_EVD_HANDLE	= 0x04,
	DAT_RSP_FIELD_EP_HANDLE		= 0x08,
	DAT_RSP_FIELD_ALL		= 0x0f,
} DAT_RSP_PARAM_MASK;

/**
 * struct dat_csp_param - result of dat_csp_query()
 * @ia_handle: the IA it was created on
 * @comm: its communicator
 * @address_ptr: address and port it listens on
 * @evd_handle: EVD of its connection requests
 */
typedef struct dat_csp_param {
	DAT_IA_HANDLE ia_handle;
	DAT_COMM *comm;
	DAT_IA_ADDRESS_PTR address_ptr;
	DAT_EVD_HANDLE evd_handle;
} DAT_CSP_PARAM;

typedef enum dat_csp_param_mask {
	DAT_CSP_FIELD_IA_HANDLE		= 0x01,
	DAT_CSP_FIELD_COMM		= 0x02,
	DAT_CSP_FIELD_IA_ADDRESS	= 0x04,
	DAT_CSP_FIELD_EVD_HANDLE	= 0x08,
	DAT_CSP_FIELD_ALL		= 0x0f,
} DAT_CSP_PARAM_MASK;

/**
 * struct dat_cr_param - result of dat_cr_query()
 * @remote_ia_address_ptr: address of the peer that wants to connect
 * @remote_port_qual: its port
 * @private_data_size: bytes at @private_data
 * @private_data: private data from the peer; read-only, valid as long as the request
 * @local_ep_handle: the Endpoint supplied by the service point, or NULL
 */
typedef struct dat_cr_param {
	DAT_IA_ADDRESS_PTR remote_ia_address_ptr;
	DAT_PORT_QUAL remote_port_qual;
	DAT_COUNT private_data_size;
	DAT_PVOID private_data;
	DAT_EP_HANDLE local_ep_handle;
} DAT_CR_PARAM;

typedef enum dat_cr_param_mask {
	DAT_CR_FIELD_REMOTE_IA_ADDRESS_PTR	= 0x01,
	DAT_CR_FIELD_REMOTE_PORT_QUAL		= 0x02,
	DAT_CR_FIELD_PRIVATE_DATA_SIZE		= 0x04,
	DAT_CR_FIELD_PRIVATE_DATA		= 0x08,
	DAT_CR_FIELD_LOCAL_EP_HANDLE		= 0x10,
	DAT_CR_FIELD_ALL			= 0x1f,
} DAT_CR_PARAM_MASK;

/*
 * Events
 */

typedef enum dat_event_number {
	DAT_DTO_COMPLETION_EVENT			= 0x00001,
	DAT_RMR_BIND_COMPLETION_EVENT			= 0x01001,
	DAT_CONNECTION_REQUEST_EVENT			= 0x02001,
	DAT_CONNECTION_EVENT_ESTABLISHED		= 0x04001,
	DAT_CONNECTION_EVENT_PEER_REJECTED		= 0x04002,
	DAT_CONNECTION_EVENT_NON_PEER_REJECTED		= 0x04003,
	DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR	= 0x04004,
	DAT_CONNECTION_EVENT_DISCONNECTED		= 0x04005,
	DAT_CONNECTION_EVENT_BROKEN			= 0x04006,
	DAT_CONNECTION_EVENT_TIMED_OUT			= 0x04007,
	DAT_CONNECTION_EVENT_UNREACHABLE		= 0x04008,
	DAT_ASYNC_ERROR_EVD_OVERFLOW			= 0x08001,
	DAT_ASYNC_ERROR_IA_CATASTROPHIC			= 0x08002,
	DAT_ASYNC_ERROR_EP_BROKEN			= 0x08003,
	DAT_ASYNC_ERROR_TIMED_OUT			= 0x08004,
	DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR		= 0x08005,
	DAT_HA_DOWN_TO_1				= 0x08101,
	DAT_HA_UP_TO_MULTI_PATH				= 0x08102,
	DAT_SOFTWARE_EVENT				= 0x10001,
} DAT_EVENT_NUMBER;

/* The outcome of a DTO, a bind or a memory operation. */
typedef enum dat_dto_completion_status {
	DAT_DTO_SUCCESS,
	/* not executed: the connection has ended */
	DAT_DTO_ERR_FLUSHED,
	/* the message is longer than the Receive */
	DAT_DTO_ERR_LOCAL_LENGTH,
	/* the Endpoint's queue is inconsistent */
	DAT_DTO_ERR_LOCAL_EP,
	/* wrong key, PZ or range of the local memory */
	DAT_DTO_ERR_LOCAL_PROTECTION,
	/* the peer sent an unexpected response */
	DAT_DTO_ERR_BAD_RESPONSE,
	/* wrong key, PZ, range or access right of the remote memory */
	DAT_DTO_ERR_REMOTE_ACCESS,
	/* the peer could not execute it */
	DAT_DTO_ERR_REMOTE_RESPONDER,
	/* retries exhausted, or the transport failed */
	DAT_DTO_ERR_TRANSPORT,
	/* the peer had no Receive posted */
	DAT_DTO_ERR_RECEIVER_NOT_READY,
	/* reported by stream transports only */
	DAT_DTO_ERR_PARTIAL_PACKET,
	/* the RMR could not be bound */
	DAT_RMR_OPERATION_FAILED,
	/* dat_lmr_fmr() or dat_lmr_invalidate() failed */
	DAT_DTO_ERR_LOCAL_MM_ERROR,
} DAT_DTO_COMPLETION_STATUS;

/* 1.0 and 1.2 spellings */
#define DAT_DTO_LENGTH_ERROR		DAT_DTO_ERR_LOCAL_LENGTH
#define DAT_DTO_FAILURE			DAT_DTO_ERR_FLUSHED
#define DAT_RMR_BIND_COMPLETION_STATUS	DAT_DTO_COMPLETION_STATUS
#define DAT_RMR_BIND_SUCCESS		DAT_DTO_SUCCESS
#define DAT_RMR_BIND_FAILURE		DAT_DTO_ERR_FLUSHED

/**
 * struct dat_dto_completion_event_data - a DTO has ended
 * @ep_handle: the Endpoint it was posted on
 * @user_cookie: cookie of the post
 * @status: its outcome
 * @transfered_length: bytes transferred; defined for DAT_DTO_SUCCESS
 * @operation: kind of the operation, whatever @status is; a Receive is
 *	DAT_DTO_RECEIVE_WITH_INVALIDATE only if it has succeeded
 * @rmr_context: the key that was invalidated; defined for
 *	DAT_DTO_RECEIVE_WITH_INVALIDATE
 */
typedef struct dat_dto_completion_event_data {
	DAT_EP_HANDLE ep_handle;
	DAT_DTO_COOKIE user_cookie;
	DAT_DTO_COMPLETION_STATUS status;
	DAT_SEG_LENGTH transfered_length;
	DAT_DTOS operation;
	DAT_RMR_CONTEXT rmr_context;
} DAT_DTO_COMPLETION_EVENT_DATA;

/**
 * struct dat_rmr_bind_completion_event_data - an RMR bind has ended
 * @rmr_handle: the RMR
 * @user_cookie: cookie of the bind
 * @status: its outcome
 */
typedef struct dat_rmr_bind_completion_event_data {
	DAT_RMR_HANDLE rmr_handle;
	DAT_RMR_COOKIE user_cookie;
	DAT_RMR_BIND_COMPLETION_STATUS status;
} DAT_RMR_BIND_COMPLETION_EVENT_DATA;

/**
 * union dat_sp_handle - the service point of a connection request
 * @rsp_handle: a Reserved Service Point
 * @psp_handle: a Public Service Point
 * @csp_handle: a Common Service Point
 */
typedef union dat_sp_handle {
	DAT_RSP_HANDLE rsp_handle;
	DAT_PSP_HANDLE psp_handle;
	DAT_CSP_HANDLE csp_handle;
} DAT_SP_HANDLE;

/**
 * struct dat_cr_arrival_event_data - a peer wants to connect
 * @sp_handle: the service point; NULL for an RSP, which serves one request only
 * @local_ia_address_ptr: local address the request was sent to
 * @conn_qual: connection qualifier the request was sent to
 * @cr_handle: the request, to be accepted or rejected
 * @truncate_flag: the private data of the peer was truncated
 */
typedef struct dat_cr_arrival_event_data {
	DAT_SP_HANDLE sp_handle;
	DAT_IA_ADDRESS_PTR local_ia_address_ptr;
	DAT_CONN_QUAL conn_qual;
	DAT_CR_HANDLE cr_handle;
	DAT_BOOLEAN truncate_flag;
} DAT_CR_ARRIVAL_EVENT_DATA;

/**
 * struct dat_connection_event_data - a connection was established, failed or ended
 * @ep_handle: the Endpoint
 * @private_data_size: bytes at @private_data
 * @private_data: private data of the peer's accept or reject; read-only, valid
 *	until dat_ep_reset() or dat_ep_free()
 */
typedef struct dat_connection_event_data {
	DAT_EP_HANDLE ep_handle;
	DAT_COUNT private_data_size;
	DAT_PVOID private_data;
} DAT_CONNECTION_EVENT_DATA;

/* Reasons of asynchronous errors; the type of the handle selects the list. */
typedef enum ia_async_error_reason {
	DAT_IA_CATASTROPHIC_ERROR,
	DAT_IA_OTHER_ERROR,
} DAT_IA_ASYNC_ERROR_REASON;

typedef enum ep_async_error_reason {
	DAT_EP_TRANSFER_TO_ERROR,
	DAT_EP_OTHER_ERROR,
	DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT,
} DAT_EP_ASYNC_ERROR_REASON;

typedef enum evd_async_error_reason {
	DAT_EVD_OVERFLOW_ERROR,
	DAT_EVD_OTHER_ERROR,
} DAT_EVD_ASYNC_ERROR_REASON;

typedef enum srq_async_error_reason {
	DAT_SRQ_TRANSFER_TO_ERROR,
	DAT_SRQ_OTHER_ERROR,
	DAT_SRQ_LOW_WATERMARK_EVENT,
} DAT_SRQ_ASYNC_ERROR_REASON;

typedef enum lmr_async_error_reason {
	DAT_LMR_OTHER_ERROR,
} DAT_LMR_ASYNC_ERROR_REASON;

typedef enum rmr_async_error_reason {
	DAT_RMR_OTHER_ERROR,
} DAT_RMR_ASYNC_ERROR_REASON;

typedef enum pz_async_error_reason {
	DAT_PZ_OTHER_ERROR,
} DAT_PZ_ASYNC_ERROR_REASON;

/**
 * struct dat_asynch_error_event_data - an error that no call has reported
 * @dat_handle: the affected object
 * @reason: one of the reasons above
 */
typedef struct dat_asynch_error_event_data {
	DAT_HANDLE dat_handle;
	DAT_COUNT reason;
} DAT_ASYNCH_ERROR_EVENT_DATA;

/**
 * struct dat_software_event_data - event of dat_evd_post_se()
 * @pointer: belongs to the consumer; the provider never dereferences it
 */
typedef struct dat_software_event_data {
	DAT_PVOID pointer;
} DAT_SOFTWARE_EVENT_DATA;

/**
 * union dat_event_data - details of an event
 * @dto_completion_event_data: DAT_DTO_COMPLETION_EVENT
 * @rmr_completion_event_data: DAT_RMR_BIND_COMPLETION_EVENT
 * @cr_arrival_event_data: DAT_CONNECTION_REQUEST_EVENT
 * @connect_event_data: every DAT_CONNECTION_EVENT_*
 * @asynch_error_event_data: every DAT_ASYNC_ERROR_* and DAT_HA_*
 * @software_event_data: DAT_SOFTWARE_EVENT
 */
typedef union dat_event_data {
	DAT_DTO_COMPLETION_EVENT_DATA dto_completion_event_data;
	DAT_RMR_BIND_COMPLETION_EVENT_DATA rmr_completion_event_data;
	DAT_CR_ARRIVAL_EVENT_DATA cr_arrival_event_data;
	DAT_CONNECTION_EVENT_DATA connect_event_data;
	DAT_ASYNCH_ERROR_EVENT_DATA asynch_error_event_data;
	DAT_SOFTWARE_EVENT_DATA software_event_data;
} DAT_EVENT_DATA;

/**
 * struct dat_event - an event
 * @event_number: what happened
 * @evd_handle: the EVD it was taken from
 * @event_data: details; @event_number selects the member
 * @event_extension_data: for extensions, see kdat_event_immed(); zero otherwise
 */
typedef struct dat_event {
	DAT_EVENT_NUMBER event_number;
	DAT_EVD_HANDLE evd_handle;
	DAT_EVENT_DATA event_data;
	DAT_UINT64 event_extension_data[8];
} DAT_EVENT;

/*
 * Calls. Each has a manual page, for example dat_psp_create(9), made from the kernel-doc at its
 * definition.
 */

/* registry and Interface Adapter */
DAT_RETURN dat_registry_list_providers(DAT_COUNT max_to_return, DAT_COUNT *entries_returned,
				       DAT_PROVIDER_INFO **dat_provider_list);
DAT_RETURN dat_ia_close(DAT_IA_HANDLE ia_handle, DAT_CLOSE_FLAGS close_flags);

/* any handle */
DAT_RETURN dat_set_consumer_context(DAT_HANDLE dat_handle, DAT_CONTEXT context);
DAT_RETURN dat_get_consumer_context(DAT_HANDLE dat_handle, DAT_CONTEXT *context);
DAT_RETURN dat_get_handle_type(DAT_HANDLE dat_handle, DAT_HANDLE_TYPE *handle_type);
DAT_RETURN dat_strerror(DAT_RETURN value, const char **major_message, const char **minor_message);

/* Protection Zone */
DAT_RETURN dat_pz_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE *pz_handle);
DAT_RETURN dat_pz_query(DAT_PZ_HANDLE pz_handle, DAT_PZ_PARAM_MASK pz_param_mask,
			DAT_PZ_PARAM *pz_param);
DAT_RETURN dat_pz_free(DAT_PZ_HANDLE pz_handle);

/* Local Memory Region */
DAT_RETURN dat_lmr_free(DAT_LMR_HANDLE lmr_handle);
DAT_RETURN dat_lmr_sync_rdma_read(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET *local_segments,
				  DAT_VLEN num_segments);
DAT_RETURN dat_lmr_sync_rdma_write(DAT_IA_HANDLE ia_handle,
				   const DAT_LMR_TRIPLET *local_segments,
				   DAT_VLEN num_segments);

/* Remote Memory Region */
DAT_RETURN dat_rmr_create(DAT_PZ_HANDLE pz_handle, DAT_RMR_HANDLE *rmr_handle);
DAT_RETURN dat_rmr_create_for_ep(DAT_PZ_HANDLE pz_handle, DAT_RMR_HANDLE *rmr_handle);
DAT_RETURN dat_rmr_query(DAT_RMR_HANDLE rmr_handle, DAT_RMR_PARAM_MASK rmr_param_mask,
			 DAT_RMR_PARAM *rmr_param);
DAT_RETURN dat_rmr_bind(DAT_RMR_HANDLE rmr_handle, DAT_LMR_HANDLE lmr_handle,
			const DAT_LMR_TRIPLET *lmr_triplet, DAT_MEM_PRIV_FLAGS mem_priv,
			DAT_VA_TYPE va_type, DAT_EP_HANDLE ep_handle, DAT_RMR_COOKIE user_cookie,
			DAT_COMPLETION_FLAGS completion_flags, DAT_RMR_CONTEXT *context);
DAT_RETURN dat_rmr_free(DAT_RMR_HANDLE rmr_handle);

/* Event Dispatcher */
DAT_RETURN dat_evd_resize(DAT_EVD_HANDLE evd_handle, DAT_COUNT evd_min_qlen);
DAT_RETURN dat_evd_post_se(DAT_EVD_HANDLE evd_handle, const DAT_EVENT *event);
DAT_RETURN dat_evd_dequeue(DAT_EVD_HANDLE evd_handle, DAT_EVENT *event);
DAT_RETURN dat_evd_free(DAT_EVD_HANDLE evd_handle);

/* Endpoint */
DAT_RETURN dat_ep_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
			 DAT_EVD_HANDLE recv_completion_evd_handle,
			 DAT_EVD_HANDLE request_completion_evd_handle,
			 DAT_EVD_HANDLE connect_evd_handle, const DAT_EP_ATTR *ep_attributes,
			 DAT_EP_HANDLE *ep_handle);
DAT_RETURN dat_ep_create_with_srq(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
				  DAT_EVD_HANDLE recv_evd_handle,
				  DAT_EVD_HANDLE request_evd_handle,
				  DAT_EVD_HANDLE connect_evd_handle, DAT_SRQ_HANDLE srq_handle,
				  const DAT_EP_ATTR *ep_attributes, DAT_EP_HANDLE *ep_handle);
DAT_RETURN dat_ep_query(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK ep_param_mask,
			DAT_EP_PARAM *ep_param);
DAT_RETURN dat_ep_modify(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK ep_param_mask,
			 const DAT_EP_PARAM *ep_param);
DAT_RETURN dat_ep_get_status(DAT_EP_HANDLE ep_handle, DAT_EP_STATE *ep_state,
			     DAT_BOOLEAN *recv_idle, DAT_BOOLEAN *request_idle);
DAT_RETURN dat_ep_recv_query(DAT_EP_HANDLE ep_handle, DAT_COUNT *nbufs_allocated,
			     DAT_COUNT *bufs_alloc_span);
DAT_RETURN dat_ep_set_watermark(DAT_EP_HANDLE ep_handle, DAT_COUNT soft_high_watermark,
				DAT_COUNT hard_high_watermark);
DAT_RETURN dat_ep_connect(DAT_EP_HANDLE ep_handle, DAT_IA_ADDRESS_PTR remote_ia_address,
			  DAT_CONN_QUAL remote_conn_qual, DAT_TIMEOUT timeout,
			  DAT_COUNT private_data_size, const DAT_PVOID private_data,
			  DAT_QOS quality_of_service, DAT_CONNECT_FLAGS connect_flags);
DAT_RETURN dat_ep_dup_connect(DAT_EP_HANDLE ep_handle, DAT_EP_HANDLE ep_dup_handle,
			      DAT_TIMEOUT timeout, DAT_COUNT private_data_size,
			      const DAT_PVOID private_data, DAT_QOS quality_of_service);
DAT_RETURN dat_ep_common_connect(DAT_EP_HANDLE ep_handle, DAT_IA_ADDRESS_PTR remote_ia_address,
				 DAT_TIMEOUT timeout, DAT_COUNT private_data_size,
				 const DAT_PVOID private_data);
DAT_RETURN dat_ep_disconnect(DAT_EP_HANDLE ep_handle, DAT_CLOSE_FLAGS close_flags);
DAT_RETURN dat_ep_reset(DAT_EP_HANDLE ep_handle);
DAT_RETURN dat_ep_free(DAT_EP_HANDLE ep_handle);

/* data transfer */
DAT_RETURN dat_ep_post_send(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
			    const DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
			    DAT_COMPLETION_FLAGS completion_flags);
DAT_RETURN dat_ep_post_recv(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
			    const DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
			    DAT_COMPLETION_FLAGS completion_flags);
DAT_RETURN dat_ep_post_rdma_read(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
				 const DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
				 const DAT_RMR_TRIPLET *remote_iov,
				 DAT_COMPLETION_FLAGS completion_flags);
DAT_RETURN dat_ep_post_rdma_write(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
				  const DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
				  const DAT_RMR_TRIPLET *remote_iov,
				  DAT_COMPLETION_FLAGS completion_flags);
DAT_RETURN dat_ep_post_send_with_invalidate(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
					    const DAT_LMR_TRIPLET *local_iov,
					    DAT_DTO_COOKIE user_cookie,
					    DAT_COMPLETION_FLAGS completion_flags,
					    DAT_BOOLEAN invalidate_flag,
					    DAT_RMR_CONTEXT rmr_context);
DAT_RETURN dat_ep_post_rdma_read_to_rmr(DAT_EP_HANDLE ep_handle, const DAT_RMR_TRIPLET *local_iov,
					DAT_DTO_COOKIE user_cookie,
					const DAT_RMR_TRIPLET *remote_iov,
					DAT_COMPLETION_FLAGS completion_flags);

/* Shared Receive Queue */
DAT_RETURN dat_srq_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
			  const DAT_SRQ_ATTR *srq_attr, DAT_SRQ_HANDLE *srq_handle);
DAT_RETURN dat_srq_post_recv(DAT_SRQ_HANDLE srq_handle, DAT_COUNT num_segments,
			     const DAT_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie);
DAT_RETURN dat_srq_query(DAT_SRQ_HANDLE srq_handle, DAT_SRQ_PARAM_MASK srq_param_mask,
			 DAT_SRQ_PARAM *srq_param);
DAT_RETURN dat_srq_resize(DAT_SRQ_HANDLE srq_handle, DAT_COUNT srq_max_recv_dto);
DAT_RETURN dat_srq_set_lw(DAT_SRQ_HANDLE srq_handle, DAT_COUNT low_watermark);
DAT_RETURN dat_srq_free(DAT_SRQ_HANDLE srq_handle);

/* Public Service Point and connection request */
DAT_RETURN dat_psp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
			  DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS psp_flags,
			  DAT_PSP_HANDLE *psp_handle);
DAT_RETURN dat_psp_create_any(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL *conn_qual,
			      DAT_EVD_HANDLE evd_handle, DAT_PSP_FLAGS psp_flags,
			      DAT_PSP_HANDLE *psp_handle);
DAT_RETURN dat_psp_query(DAT_PSP_HANDLE psp_handle, DAT_PSP_PARAM_MASK psp_param_mask,
			 DAT_PSP_PARAM *psp_param);
DAT_RETURN dat_psp_free(DAT_PSP_HANDLE psp_handle);
DAT_RETURN dat_rsp_create(DAT_IA_HANDLE ia_handle, DAT_CONN_QUAL conn_qual,
			  DAT_EP_HANDLE ep_handle, DAT_EVD_HANDLE evd_handle,
			  DAT_RSP_HANDLE *rsp_handle);
DAT_RETURN dat_rsp_query(DAT_RSP_HANDLE rsp_handle, DAT_RSP_PARAM_MASK rsp_param_mask,
			 DAT_RSP_PARAM *rsp_param);
DAT_RETURN dat_rsp_free(DAT_RSP_HANDLE rsp_handle);
DAT_RETURN dat_csp_create(DAT_IA_HANDLE ia_handle, DAT_COMM *comm, DAT_IA_ADDRESS_PTR address_ptr,
			  DAT_EVD_HANDLE evd_handle, DAT_CSP_HANDLE *csp_handle);
DAT_RETURN dat_csp_query(DAT_CSP_HANDLE csp_handle, DAT_CSP_PARAM_MASK csp_param_mask,
			 DAT_CSP_PARAM *csp_param);
DAT_RETURN dat_csp_free(DAT_CSP_HANDLE csp_handle);
DAT_RETURN dat_cr_query(DAT_CR_HANDLE cr_handle, DAT_CR_PARAM_MASK cr_param_mask,
			DAT_CR_PARAM *cr_param);
DAT_RETURN dat_cr_accept(DAT_CR_HANDLE cr_handle, DAT_EP_HANDLE ep_handle,
			 DAT_COUNT private_data_size, const DAT_PVOID private_data);
DAT_RETURN dat_cr_reject(DAT_CR_HANDLE cr_handle, DAT_COUNT private_data_size,
			 const DAT_PVOID private_data);

#endif /* _DAT_H_ */
