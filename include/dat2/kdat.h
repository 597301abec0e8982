/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The kernel DAT API 2.0. A consumer includes this header and no other:
 *
 *	#include <dat2/kdat.h>
 *
 * This file declares the types and calls that exist only in the kernel; dat.h
 * declares those common to user level and kernel. Only implemented calls have
 * a prototype.
 */
#ifdef KDAPL_DAT_1_2
#error "one source file cannot include both <dat/kdat.h> and headers of <dat2/>"
#endif

#ifndef _KDAT_H_
#define _KDAT_H_

#include <dat2/kdat_config.h>
#include <dat2/dat_platform_specific.h>

/*
 * These four types differ from the user-level types of the same name. dat.h needs them.
 */

/* The kind of memory an LMR is created from. */
typedef enum dat_mem_type {
	DAT_MEM_TYPE_VIRTUAL		= 0x000,
	DAT_MEM_TYPE_LMR		= 0x001,
	DAT_MEM_TYPE_PHYSICAL		= 0x010,
	DAT_MEM_TYPE_PLATFORM		= 0x020,
	DAT_MEM_TYPE_IA			= 0x040,
	DAT_MEM_TYPE_BYPASS		= 0x080,
	DAT_MEM_TYPE_PHYSICAL_VAR_PAGES	= 0x100,
} DAT_MEM_TYPE;

typedef enum dat_handle_type {
	DAT_HANDLE_TYPE_CR,
	DAT_HANDLE_TYPE_EP,
	DAT_HANDLE_TYPE_EVD,
	DAT_HANDLE_TYPE_IA,
	DAT_HANDLE_TYPE_LMR,
	DAT_HANDLE_TYPE_PSP,
	DAT_HANDLE_TYPE_PZ,
	DAT_HANDLE_TYPE_RMR,
	DAT_HANDLE_TYPE_RSP,
	DAT_HANDLE_TYPE_SRQ,
	DAT_HANDLE_TYPE_CSP,
} DAT_HANDLE_TYPE;

typedef enum dat_evd_param_mask {
	DAT_EVD_FIELD_IA_HANDLE		= 0x01,
	DAT_EVD_FIELD_EVD_QLEN		= 0x02,
	DAT_EVD_FIELD_UPCALL_POLICY	= 0x04,
	DAT_EVD_FIELD_UPCALL		= 0x08,
	DAT_EVD_FIELD_EVD_FLAGS		= 0x10,
	DAT_EVD_FIELD_ALL		= 0x1f,
} DAT_EVD_PARAM_MASK;

typedef DAT_UINT64 DAT_PROVIDER_ATTR_MASK;

#include <dat2/dat.h>

/*
 * Memory
 */

/* Cookie of a dat_lmr_fmr() or dat_lmr_invalidate(). */
typedef DAT_CONTEXT DAT_LMR_COOKIE;

/* The Endpoints that may use an LMR of dat_lmr_allocate(). */
typedef enum dat_lmr_scope {
	DAT_LMR_SCOPE_EP,	/* one Endpoint at a time */
	DAT_LMR_SCOPE_PZ,	/* every Endpoint of its PZ */
	DAT_LMR_SCOPE_ANY,	/* either */
} DAT_LMR_SCOPE;

/**
 * struct dat_physical_var_pages - physical pages of a size chosen by the caller
 * @page_size: bytes per page, a power of two
 * @pages: array of DAT_PADDR, one per page
 */
typedef struct dat_physical_var_pages {
	DAT_VLEN page_size;
	void *pages;
} DAT_PHYSICAL_VAR_PAGES;

/**
 * union dat_region_description - where the memory of an LMR is
 * @for_va: VIRTUAL: kernel virtual address of the first byte
 * @for_lmr_handle: LMR: the LMR whose memory the new one shares
 * @for_platform: PLATFORM and BYPASS: platform-specific descriptor
 * @for_array: PHYSICAL_VAR_PAGES: physical pages of @for_array.page_size
 * @for_physical: PHYSICAL: array of physical addresses of PAGE_SIZE pages
 * @for_ia: IA: address that is already valid for the device
 *
 * The DAT_MEM_TYPE passed with it selects the member.
 */
typedef union dat_region_description {
	DAT_PVOID for_va;
	DAT_LMR_HANDLE for_lmr_handle;
	void *for_platform;
	DAT_PHYSICAL_VAR_PAGES for_array;
	DAT_PADDR *for_physical;
	DAT_PADDR for_ia;
} DAT_REGION_DESCRIPTION;

/**
 * struct dat_lmr_state - state of an LMR
 * @fmr_support: created by dat_lmr_allocate(), so usable with dat_lmr_fmr()
 * @bound: memory is registered with it now
 */
typedef struct dat_lmr_state {
	DAT_BOOLEAN fmr_support;
	DAT_BOOLEAN bound;
} DAT_LMR_STATE;

/**
 * struct dat_lmr_param - result of dat_lmr_query()
 * @ia_handle: the IA it was created on
 * @mem_type: kind of memory it was created from
 * @region_desc: where its memory is
 * @length: requested length
 * @pz_handle: its Protection Zone
 * @mem_priv: requested access rights
 * @va_type: how its memory is addressed
 * @lmr_context: key for local segments
 * @rmr_context: key for the peer; 0 without a remote access right
 * @registered_size: bytes actually registered
 * @registered_address: address of the first registered byte
 * @lmr_state: its state
 */
typedef struct dat_lmr_param {
	DAT_IA_HANDLE ia_handle;
	DAT_MEM_TYPE mem_type;
	DAT_REGION_DESCRIPTION region_desc;
	DAT_VLEN length;
	DAT_PZ_HANDLE pz_handle;
	DAT_MEM_PRIV_FLAGS mem_priv;
	DAT_VA_TYPE va_type;
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT rmr_context;
	DAT_VLEN registered_size;
	DAT_VADDR registered_address;
	DAT_LMR_STATE lmr_state;
} DAT_LMR_PARAM;

typedef enum dat_lmr_param_mask {
	DAT_LMR_FIELD_IA_HANDLE			= 0x001,
	DAT_LMR_FIELD_MEM_TYPE			= 0x002,
	DAT_LMR_FIELD_REGION_DESC		= 0x004,
	DAT_LMR_FIELD_LENGTH			= 0x008,
	DAT_LMR_FIELD_PZ_HANDLE			= 0x010,
	DAT_LMR_FIELD_MEM_PRIV			= 0x020,
	DAT_LMR_FIELD_VA_TYPE			= 0x040,
	DAT_LMR_FIELD_LMR_CONTEXT		= 0x080,
	DAT_LMR_FIELD_RMR_CONTEXT		= 0x100,
	DAT_LMR_FIELD_REGISTERED_SIZE		= 0x200,
	DAT_LMR_FIELD_REGISTERED_ADDRESS	= 0x400,
	DAT_LMR_FIELD_LMR_STATE			= 0x800,
	DAT_LMR_FIELD_ALL			= 0xfff,
} DAT_LMR_PARAM_MASK;

/*
 * Event Dispatchers and upcalls
 */

/* How many upcalls of one EVD may run concurrently. */
typedef enum dat_upcall_policy {
	DAT_UPCALL_TEARDOWN		= -1,	/* none; waits for running upcalls */
	DAT_UPCALL_DISABLE		= 0,	/* none */
	DAT_UPCALL_SINGLE_INSTANCE	= 1,	/* one, with an event */
	DAT_UPCALL_NOTIFY		= 2,	/* one, without an event; dequeue until empty */
	DAT_UPCALL_NORIFY		= 2,	/* spelling in the 2.0 header */
	DAT_UPCALL_MANY			= 100,	/* several, each with an event */
} DAT_UPCALL_POLICY;

/* Which events trigger upcalls after upcalls are enabled. */
typedef enum dat_upcall_flag {
	DAT_UPCALL_INVOC_NEW,	/* only events that arrive later */
	DAT_UPCALL_INVOC_ANY,	/* events already queued as well */
} DAT_UPCALL_FLAG;

/**
 * typedef DAT_UPCALL_FUNC - consumer function called for an event
 * @instance_data: instance_data of the DAT_UPCALL_OBJECT
 * @event: the event; read-only, valid until the function returns
 * @more_events: DAT_TRUE if this EVD held another event at the time of the
 *	call. That event triggers another upcall unless the consumer takes it
 *	with dat_evd_dequeue() first. An unsignalled event does so only once a
 *	signalled event is queued behind it.
 *
 * With DAT_UPCALL_NOTIFY, @event is NULL and @more_events is DAT_TRUE. The consumer
 * calls dat_evd_dequeue() until it returns DAT_QUEUE_EMPTY.
 *
 * Context: softirq if the EVD carries only DTO completions and RMR binds. Then the
 * function must not sleep, and process context must use the _bh variants for
 * spinlocks that it shares with the function. With any other stream (connection
 * requests, connections, asynchronous errors, software events) the function runs in
 * a workqueue and may sleep. kdat_evd_create() can choose the context. No lock of
 * the provider is held. The function may post, dequeue, query and disconnect.
 * Where it may sleep, it may also connect, accept, reject, and change the upcalls
 * and the length of an EVD. It must not free the EVD it was called for.
 */
typedef void (*DAT_UPCALL_FUNC)(DAT_PVOID instance_data, const DAT_EVENT *event,
				DAT_BOOLEAN more_events);

/**
 * struct dat_upcall_object - the upcall of an EVD
 * @instance_data: first argument of every upcall; the provider never interprets it
 * @upcall_func: the function to call
 */
typedef struct dat_upcall_object {
	DAT_PVOID instance_data;
	DAT_UPCALL_FUNC upcall_func;
} DAT_UPCALL_OBJECT;

/* This is an object, not a pointer. */
#define DAT_UPCALL_NULL		((DAT_UPCALL_OBJECT) { NULL, NULL })

/* This is a pointer. dat_evd_modify_upcall() keeps the current upcall object. */
#define DAT_UPCALL_SAME		((DAT_UPCALL_OBJECT *)NULL)

/**
 * struct dat_evd_param - result of dat_evd_query()
 * @ia_handle: the IA it was created on
 * @evd_qlen: its capacity in events, at least the requested one
 * @upcall_policy: how many upcalls may run concurrently
 * @upcall: its upcall
 * @evd_flags: the streams that may feed it
 */
typedef struct dat_evd_param {
	DAT_IA_HANDLE ia_handle;
	DAT_COUNT evd_qlen;
	DAT_UPCALL_POLICY upcall_policy;
	DAT_UPCALL_OBJECT upcall;
	DAT_EVD_FLAGS evd_flags;
} DAT_EVD_PARAM;

/*
 * Interface Adapters: the kernel-only part of the IA mask
 */

#define DAT_IA_FIELD_IA_RESERVED_LMR_SUPPORTED	UINT64_C(0x0100000000)

/**
 * struct dat_provider_attr - capabilities of the provider of an IA
 * @provider_name: name of the provider
 * @provider_version_major: version of the provider
 * @provider_version_minor: version of the provider
 * @dapl_version_major: version of the API it implements
 * @dapl_version_minor: version of the API it implements
 * @lmr_mem_types_supported: OR of the supported DAT_MEM_TYPE values
 * @iov_ownership_on_return: the owner of the iov array after a post
 * @dat_qos_supported: OR of the supported DAT_QOS values
 * @completion_flags_supported: OR of the supported completion flags
 * @is_thread_safe: concurrent calls on one object are serialised
 * @max_private_data_size: bytes of private data in a connection request
 * @supports_multipath: a connection may use more than one path
 * @ep_creator: whether a PSP creates Endpoints
 * @upcall_policy: highest policy of an EVD
 * @optimal_buffer_alignment: fastest buffer alignment, bytes
 * @evd_stream_merging_supported: whether two streams may share an EVD. Order
 *	of rows and columns: software, connection request, DTO completion,
 *	connection, RMR bind completion, asynchronous.
 * @srq_supported: SRQs are supported
 * @srq_watermarks_supported: SRQ low watermarks are supported
 * @srq_ep_pz_difference_supported: SRQ and Endpoint may be in different PZs
 * @srq_info_supported: the counts that dat_srq_query() returns
 * @ep_recv_info_supported: the counts that dat_ep_recv_query() returns
 * @lmr_sync_req: dat_lmr_sync_rdma_read() and _write() are required
 * @dto_async_return_guaranteed: a post never reports a completion itself
 * @rdma_write_for_rdma_read_req: the local memory of an RDMA Read needs
 *	DAT_MEM_PRIV_REMOTE_WRITE_FLAG (iWARP)
 * @rdma_read_lmr_rmr_context_exposure: an RDMA Read exposes the key of its local
 *	memory to the peer (iWARP)
 * @rmr_scope_supported: supported scopes of RMRs
 * @is_interrupt_safe: calls may be made from softirq where documented
 * @fmr_supported: dat_lmr_fmr() is supported
 * @lmr_for_fmr_scope_supported: supported scopes of dat_lmr_allocate()
 * @ha_supported: a connection survives the loss of a path
 * @ha_loadbalancing: how load is spread over paths
 * @num_provider_specific_attr: entries in @provider_specific_attr
 * @provider_specific_attr: further attributes of the provider
 */
typedef struct dat_provider_attr {
	char provider_name[DAT_NAME_MAX_LENGTH];
	DAT_UINT32 provider_version_major;
	DAT_UINT32 provider_version_minor;
	DAT_UINT32 dapl_version_major;
	DAT_UINT32 dapl_version_minor;
	DAT_MEM_TYPE lmr_mem_types_supported;
	DAT_IOV_OWNERSHIP iov_ownership_on_return;
	DAT_QOS dat_qos_supported;
	DAT_COMPLETION_FLAGS completion_flags_supported;
	DAT_BOOLEAN is_thread_safe;
	DAT_COUNT max_private_data_size;
	DAT_BOOLEAN supports_multipath;
	DAT_EP_CREATOR_FOR_PSP ep_creator;
	DAT_UPCALL_POLICY upcall_policy;
	DAT_UINT32 optimal_buffer_alignment;
	const DAT_BOOLEAN evd_stream_merging_supported[6][6];
	DAT_BOOLEAN srq_supported;
	DAT_COUNT srq_watermarks_supported;
	DAT_BOOLEAN srq_ep_pz_difference_supported;
	DAT_COUNT srq_info_supported;
	DAT_COUNT ep_recv_info_supported;
	DAT_BOOLEAN lmr_sync_req;
	DAT_BOOLEAN dto_async_return_guaranteed;
	DAT_BOOLEAN rdma_write_for_rdma_read_req;
	DAT_BOOLEAN rdma_read_lmr_rmr_context_exposure;
	DAT_RMR_SCOPE rmr_scope_supported;
	DAT_BOOLEAN is_interrupt_safe;
	DAT_BOOLEAN fmr_supported;
	DAT_LMR_SCOPE lmr_for_fmr_scope_supported;
	DAT_BOOLEAN ha_supported;
	DAT_HA_LB ha_loadbalancing;
	DAT_COUNT num_provider_specific_attr;
	DAT_NAMED_ATTR *provider_specific_attr;
} DAT_PROVIDER_ATTR;

#define DAT_PROVIDER_FIELD_PROVIDER_NAME		UINT64_C(0x000000001)
#define DAT_PROVIDER_FIELD_PROVIDER_VERSION_MAJOR	UINT64_C(0x000000002)
#define DAT_PROVIDER_FIELD_PROVIDER_VERSION_MINOR	UINT64_C(0x000000004)
#define DAT_PROVIDER_FIELD_DAPL_VERSION_MAJOR		UINT64_C(0x000000008)
#define DAT_PROVIDER_FIELD_DAPL_VERSION_MINOR		UINT64_C(0x000000010)
#define DAT_PROVIDER_FIELD_LMR_MEM_TYPE_SUPPORTED	UINT64_C(0x000000020)
#define DAT_PROVIDER_FIELD_IOV_OWNERSHIP		UINT64_C(0x000000040)
#define DAT_PROVIDER_FIELD_DAT_QOS_SUPPORTED		UINT64_C(0x000000080)
#define DAT_PROVIDER_FIELD_COMPLETION_FLAGS_SUPPORTED	UINT64_C(0x000000100)
#define DAT_PROVIDER_FIELD_IS_THREAD_SAFE		UINT64_C(0x000000200)
#define DAT_PROVIDER_FIELD_MAX_PRIVATE_DATA_SIZE	UINT64_C(0x000000400)
#define DAT_PROVIDER_FIELD_SUPPORTS_MULTIPATH		UINT64_C(0x000000800)
#define DAT_PROVIDER_FIELD_EP_CREATOR			UINT64_C(0x000001000)
#define DAT_PROVIDER_FIELD_UPCALL_POLICY		UINT64_C(0x000002000)
#define DAT_PROVIDER_FIELD_OPTIMAL_BUFFER_ALIGNMENT	UINT64_C(0x000004000)
#define DAT_PROVIDER_FIELD_EVD_STREAM_MERGING_SUPPORTED	UINT64_C(0x000008000)
#define DAT_PROVIDER_FIELD_SRQ_SUPPORTED		UINT64_C(0x000010000)
#define DAT_PROVIDER_FIELD_SRQ_WATERMARKS_SUPPORTED	UINT64_C(0x000020000)
#define DAT_PROVIDER_FIELD_SRQ_EP_PZ_DIFFERENCE_SUPPORTED	UINT64_C(0x000040000)
#define DAT_PROVIDER_FIELD_SRQ_INFO_SUPPORTED		UINT64_C(0x000080000)
#define DAT_PROVIDER_FIELD_EP_RECV_INFO_SUPPORTED	UINT64_C(0x000100000)
#define DAT_PROVIDER_FIELD_LMR_SYNC_REQ			UINT64_C(0x000200000)
#define DAT_PROVIDER_FIELD_DTO_ASYNC_RETURN_GUARANTEED	UINT64_C(0x000400000)
#define DAT_PROVIDER_FIELD_RDMA_WRITE_FOR_RDMA_READ_REQ	UINT64_C(0x000800000)
#define DAT_PROVIDER_FIELD_RDMA_READ_LMR_RMR_CONTEXT_EXPOSURE	UINT64_C(0x001000000)
#define DAT_PROVIDER_FIELD_RMR_SCOPE_SUPPORTED		UINT64_C(0x002000000)
#define DAT_PROVIDER_FIELD_IS_INTERRUPT_SAFE		UINT64_C(0x004000000)
#define DAT_PROVIDER_FIELD_FMR_SUPPORTED		UINT64_C(0x008000000)
#define DAT_PROVIDER_FIELD_LMR_FOR_FMR_SCOPE		UINT64_C(0x010000000)
#define DAT_PROVIDER_FIELD_HA_SUPPORTED			UINT64_C(0x020000000)
#define DAT_PROVIDER_FIELD_HA_LB			UINT64_C(0x040000000)
#define DAT_PROVIDER_FIELD_NUM_PROVIDER_SPECIFIC_ATTR	UINT64_C(0x080000000)
#define DAT_PROVIDER_FIELD_PROVIDER_SPECIFIC_ATTR	UINT64_C(0x100000000)
#define DAT_PROVIDER_FIELD_ALL				UINT64_C(0x1ffffffff)
#define DAT_PROVIDER_FIELD_NONE				UINT64_C(0x000000000)

/* Result of dat_registry_providers_related(). */
typedef enum dat_ha_relationship {
	DAT_HA_FALSE,
	DAT_HA_TRUE,
	DAT_HA_UNKNOWN,
	DAT_HA_CONFLICTING,
	DAT_HA_EXTENSION_BASE,
} DAT_HA_RELATIONSHIP;

/*
 * Calls that exist only in the kernel, or use types that do
 */

/* registry and Interface Adapter */
DAT_RETURN dat_registry_providers_related(const DAT_NAME_PTR name1, const DAT_NAME_PTR name2,
					  DAT_HA_RELATIONSHIP *answer);
DAT_RETURN dat_ia_openv(const DAT_NAME_PTR provider, DAT_COUNT asynch_evd_min_qlen,
			DAT_EVD_HANDLE *asynch_evd_handle, DAT_IA_HANDLE *ia_handle,
			DAT_UINT32 dat_major, DAT_UINT32 dat_minor, DAT_BOOLEAN thread_safety);

/*
 * The macro passes the name of the calling module, so that `rdma resource show` names the
 * consumer instead of kdapl. A pointer to dat_ia_openv still refers to the function.
 */
DAT_RETURN kdat_ia_openv(const DAT_NAME_PTR provider, DAT_COUNT asynch_evd_min_qlen,
			 DAT_EVD_HANDLE *asynch_evd_handle, DAT_IA_HANDLE *ia_handle,
			 DAT_UINT32 dat_major, DAT_UINT32 dat_minor, DAT_BOOLEAN thread_safety,
			 const char *consumer);
#define dat_ia_openv(...) kdat_ia_openv(__VA_ARGS__, KBUILD_MODNAME)

/* Open an IA for the API version described by this header. */
#define dat_ia_open(name, qlen, async_evd, ia)				\
	dat_ia_openv((name), (qlen), (async_evd), (ia),			\
		     DAT_VERSION_MAJOR, DAT_VERSION_MINOR, DAT_THREADSAFE)

DAT_RETURN dat_ia_query(DAT_IA_HANDLE ia_handle, DAT_EVD_HANDLE *async_evd_handle,
			DAT_IA_ATTR_MASK ia_attr_mask, DAT_IA_ATTR *ia_attr,
			DAT_PROVIDER_ATTR_MASK provider_attr_mask,
			DAT_PROVIDER_ATTR *provider_attr);
DAT_RETURN dat_ia_memtype_hint(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE mem_type, DAT_VLEN length,
			       DAT_MEM_OPTIMIZE_FLAGS mem_optimization,
			       DAT_VLEN *preferred_length, DAT_VADDR *preferred_alignment);
DAT_RETURN dat_ia_reserved_lmr(DAT_IA_HANDLE ia_handle, DAT_LMR_HANDLE *reserved_lmr_handle,
			       DAT_LMR_CONTEXT *reserved_lmr_context);

/* Local Memory Region */
DAT_RETURN dat_lmr_kcreate(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE mem_type,
			   DAT_REGION_DESCRIPTION region_description, DAT_VLEN length,
			   DAT_PZ_HANDLE pz_handle, DAT_MEM_PRIV_FLAGS privileges,
			   DAT_VA_TYPE va_type, DAT_MEM_OPTIMIZE_FLAGS mem_optimization,
			   DAT_LMR_HANDLE *lmr_handle, DAT_LMR_CONTEXT *lmr_context,
			   DAT_RMR_CONTEXT *rmr_context, DAT_VLEN *registered_length,
			   DAT_VADDR *registered_address);
DAT_RETURN dat_lmr_query(DAT_LMR_HANDLE lmr_handle, DAT_LMR_PARAM_MASK lmr_param_mask,
			 DAT_LMR_PARAM *lmr_param);
DAT_RETURN dat_lmr_allocate(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle, DAT_COUNT max_pages,
			    DAT_LMR_SCOPE lmr_scope, DAT_LMR_HANDLE *lmr_handle);
DAT_RETURN dat_lmr_fmr(DAT_LMR_HANDLE lmr_handle, DAT_MEM_TYPE mem_type,
		       DAT_REGION_DESCRIPTION region_description, DAT_VLEN num_pages,
		       DAT_MEM_PRIV_FLAGS mem_privileges, DAT_VA_TYPE va_type,
		       DAT_EP_HANDLE ep_handle, DAT_LMR_COOKIE user_cookie,
		       DAT_COMPLETION_FLAGS completion_flags, DAT_LMR_CONTEXT *lmr_context,
		       DAT_RMR_CONTEXT *rmr_context);
DAT_RETURN dat_lmr_invalidate(DAT_LMR_HANDLE lmr_handle, DAT_EP_HANDLE ep_handle,
			      DAT_LMR_COOKIE user_cookie, DAT_COMPLETION_FLAGS completion_flags);

/* Event Dispatcher */
DAT_RETURN dat_evd_kcreate(DAT_IA_HANDLE ia_handle, DAT_COUNT evd_min_qlen,
			   DAT_UPCALL_POLICY upcall_policy, const DAT_UPCALL_OBJECT *upcall,
			   DAT_EVD_FLAGS evd_flags, DAT_EVD_HANDLE *evd_handle);
DAT_RETURN dat_evd_modify_upcall(DAT_EVD_HANDLE evd_handle, DAT_UPCALL_POLICY upcall_policy,
				 const DAT_UPCALL_OBJECT *upcall, DAT_UPCALL_FLAG flag);
DAT_RETURN dat_evd_query(DAT_EVD_HANDLE evd_handle, DAT_EVD_PARAM_MASK evd_param_mask,
			 DAT_EVD_PARAM *evd_param);

/* Connection Request */
DAT_RETURN dat_cr_handoff(DAT_CR_HANDLE cr_handle, DAT_CONN_QUAL handoff);

#endif /* _KDAT_H_ */
