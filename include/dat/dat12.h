/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The types and calls that differ in DAT 1.2, with a prefix of dat12, so that one
 * source file can use both versions. Only <dat/kdat.h>, which maps the original
 * names to these, and the module include this header. Consumers include <dat/kdat.h>.
 *
 * The layouts are those of DAT 1.2. A member without a description here has the same
 * meaning as in the corresponding structure of <dat2/kdat.h>.
 */
#ifndef _DAT12_H_
#define _DAT12_H_

#include <dat2/kdat.h>

/**
 * struct dat12_lmr_triplet - a segment of local memory
 * @lmr_context: key of the LMR that contains it
 * @pad: ignored
 * @virtual_address: where it starts
 * @segment_length: bytes, less than 4 GiB
 */
typedef struct dat12_lmr_triplet {
	DAT_LMR_CONTEXT lmr_context;
	DAT_UINT32 pad;
	DAT_VADDR virtual_address;
	DAT_VLEN segment_length;
} DAT12_LMR_TRIPLET;

/**
 * struct dat12_rmr_triplet - a segment of the peer's memory
 * @rmr_context: key, as received from the peer
 * @pad: ignored
 * @target_address: where it starts
 * @segment_length: bytes, less than 4 GiB
 */
typedef struct dat12_rmr_triplet {
	DAT_RMR_CONTEXT rmr_context;
	DAT_UINT32 pad;
	DAT_VADDR target_address;
	DAT_VLEN segment_length;
} DAT12_RMR_TRIPLET;

typedef struct dat12_rmr_param {
	DAT_IA_HANDLE ia_handle;
	DAT_PZ_HANDLE pz_handle;
	DAT12_LMR_TRIPLET lmr_triplet;
	DAT_MEM_PRIV_FLAGS mem_priv;
	DAT_RMR_CONTEXT rmr_context;
} DAT12_RMR_PARAM;

/**
 * union dat12_region_description - where the memory of an LMR is
 * @for_va: VIRTUAL: kernel virtual address of the first byte
 * @for_lmr_handle: LMR: the LMR whose memory the new one shares
 * @for_pointer: PLATFORM and BYPASS: platform-specific descriptor
 * @for_array: PHYSICAL: DAT_PADDR array of PAGE_SIZE pages
 * @for_pa: IA: address that is already valid for the device
 */
typedef union dat12_region_description {
	DAT_PVOID for_va;
	DAT_LMR_HANDLE for_lmr_handle;
	void *for_pointer;
	void *for_array;
	DAT_PADDR for_pa;
} DAT12_REGION_DESCRIPTION;

typedef struct dat12_lmr_param {
	DAT_IA_HANDLE ia_handle;
	DAT_MEM_TYPE mem_type;
	DAT12_REGION_DESCRIPTION region_desc;
	DAT_VLEN length;
	DAT_PZ_HANDLE pz_handle;
	DAT_MEM_PRIV_FLAGS mem_priv;
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT rmr_context;
	DAT_VLEN registered_size;
	DAT_VADDR registered_address;
} DAT12_LMR_PARAM;

typedef struct dat12_ia_attr {
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
	DAT_VLEN max_lmr_block_size;
	DAT_VADDR max_lmr_virtual_address;
	DAT_COUNT max_pzs;
	DAT_VLEN max_message_size;
	DAT_VLEN max_rdma_size;
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
	DAT_COUNT num_transport_attr;
	DAT_NAMED_ATTR *transport_attr;
	DAT_COUNT num_vendor_attr;
	DAT_NAMED_ATTR *vendor_attr;
} DAT12_IA_ATTR;

typedef struct dat12_provider_attr {
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
	DAT_COUNT num_provider_specific_attr;
	DAT_NAMED_ATTR *provider_specific_attr;
} DAT12_PROVIDER_ATTR;

typedef struct dat12_ep_attr {
	DAT_SERVICE_TYPE service_type;
	DAT_VLEN max_message_size;
	DAT_VLEN max_rdma_size;
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
} DAT12_EP_ATTR;

typedef struct dat12_ep_param {
	DAT_IA_HANDLE ia_handle;
	DAT_EP_STATE ep_state;
	DAT_IA_ADDRESS_PTR local_ia_address_ptr;
	DAT_PORT_QUAL local_port_qual;
	DAT_IA_ADDRESS_PTR remote_ia_address_ptr;
	DAT_PORT_QUAL remote_port_qual;
	DAT_PZ_HANDLE pz_handle;
	DAT_EVD_HANDLE recv_evd_handle;
	DAT_EVD_HANDLE request_evd_handle;
	DAT_EVD_HANDLE connect_evd_handle;
	DAT_SRQ_HANDLE srq_handle;
	DAT12_EP_ATTR ep_attr;
} DAT12_EP_PARAM;

typedef struct dat12_dto_completion_event_data {
	DAT_EP_HANDLE ep_handle;
	DAT_DTO_COOKIE user_cookie;
	DAT_DTO_COMPLETION_STATUS status;
	DAT_VLEN transfered_length;
} DAT12_DTO_COMPLETION_EVENT_DATA;

typedef union dat12_sp_handle {
	DAT_RSP_HANDLE rsp_handle;
	DAT_PSP_HANDLE psp_handle;
} DAT12_SP_HANDLE;

typedef struct dat12_cr_arrival_event_data {
	DAT12_SP_HANDLE sp_handle;
	DAT_IA_ADDRESS_PTR local_ia_address_ptr;
	DAT_CONN_QUAL conn_qual;
	DAT_CR_HANDLE cr_handle;
} DAT12_CR_ARRIVAL_EVENT_DATA;

typedef union dat12_event_data {
	DAT12_DTO_COMPLETION_EVENT_DATA dto_completion_event_data;
	DAT_RMR_BIND_COMPLETION_EVENT_DATA rmr_completion_event_data;
	DAT12_CR_ARRIVAL_EVENT_DATA cr_arrival_event_data;
	DAT_CONNECTION_EVENT_DATA connect_event_data;
	DAT_ASYNCH_ERROR_EVENT_DATA asynch_error_event_data;
	DAT_SOFTWARE_EVENT_DATA software_event_data;
} DAT12_EVENT_DATA;

typedef struct dat12_event {
	DAT_EVENT_NUMBER event_number;
	DAT_EVD_HANDLE evd_handle;
	DAT12_EVENT_DATA event_data;
} DAT12_EVENT;

typedef void (*DAT12_UPCALL_FUNC)(DAT_PVOID instance_data, const DAT12_EVENT *event,
				  DAT_BOOLEAN more_events);

typedef struct dat12_upcall_object {
	DAT_PVOID instance_data;
	DAT12_UPCALL_FUNC upcall_func;
} DAT12_UPCALL_OBJECT;

typedef struct dat12_evd_param {
	DAT_IA_HANDLE ia_handle;
	DAT_COUNT evd_qlen;
	DAT_UPCALL_POLICY upcall_policy;
	DAT12_UPCALL_OBJECT upcall;
	DAT_EVD_FLAGS evd_flags;
} DAT12_EVD_PARAM;

/*
 * Masks: the lowest bits are the same as in 2.0; some of the higher ones are missing.
 */
#define DAT12_EP_FIELD_ALL		UINT64_C(0x7ffff7ff)
#define DAT12_LMR_FIELD_ALL		0x3ff
#define DAT12_RMR_FIELD_ALL		0x1f
#define DAT12_IA_FIELD_ALL		UINT64_C(0x7ffffffff)
#define DAT12_PROVIDER_FIELD_ALL	UINT64_C(0x3ffffff)

DAT_RETURN dat12_registry_list_providers(DAT_COUNT max_to_return, DAT_COUNT *entries_returned,
					 DAT_PROVIDER_INFO **dat_provider_list);
DAT_RETURN dat12_ia_openv(const DAT_NAME_PTR provider, DAT_COUNT asynch_evd_min_qlen,
			  DAT_EVD_HANDLE *asynch_evd_handle, DAT_IA_HANDLE *ia_handle,
			  DAT_UINT32 dat_major, DAT_UINT32 dat_minor, DAT_BOOLEAN thread_safety,
			  const char *consumer);
DAT_RETURN dat12_ia_query(DAT_IA_HANDLE ia_handle, DAT_EVD_HANDLE *async_evd_handle,
			  DAT_IA_ATTR_MASK ia_attr_mask, DAT12_IA_ATTR *ia_attr,
			  DAT_PROVIDER_ATTR_MASK provider_attr_mask,
			  DAT12_PROVIDER_ATTR *provider_attr);
DAT_RETURN dat12_lmr_kcreate(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE mem_type,
			     DAT12_REGION_DESCRIPTION region_description, DAT_VLEN length,
			     DAT_PZ_HANDLE pz_handle, DAT_MEM_PRIV_FLAGS privileges,
			     DAT_MEM_OPTIMIZE_FLAGS mem_optimization, DAT_LMR_HANDLE *lmr_handle,
			     DAT_LMR_CONTEXT *lmr_context, DAT_RMR_CONTEXT *rmr_context,
			     DAT_VLEN *registered_length, DAT_VADDR *registered_address);
DAT_RETURN dat12_lmr_query(DAT_LMR_HANDLE lmr_handle, DAT_LMR_PARAM_MASK lmr_param_mask,
			   DAT12_LMR_PARAM *lmr_param);
DAT_RETURN dat12_lmr_sync_rdma_read(DAT_IA_HANDLE ia_handle,
				    const DAT12_LMR_TRIPLET *local_segments,
				    DAT_VLEN num_segments);
DAT_RETURN dat12_lmr_sync_rdma_write(DAT_IA_HANDLE ia_handle,
				     const DAT12_LMR_TRIPLET *local_segments,
				     DAT_VLEN num_segments);
DAT_RETURN dat12_rmr_query(DAT_RMR_HANDLE rmr_handle, DAT_RMR_PARAM_MASK rmr_param_mask,
			   DAT12_RMR_PARAM *rmr_param);
DAT_RETURN dat12_rmr_bind(DAT_RMR_HANDLE rmr_handle, const DAT12_LMR_TRIPLET *lmr_triplet,
			  DAT_MEM_PRIV_FLAGS mem_priv, DAT_EP_HANDLE ep_handle,
			  DAT_RMR_COOKIE user_cookie, DAT_COMPLETION_FLAGS completion_flags,
			  DAT_RMR_CONTEXT *context);
DAT_RETURN dat12_evd_kcreate(DAT_IA_HANDLE ia_handle, DAT_COUNT evd_min_qlen,
			     DAT_UPCALL_POLICY upcall_policy, const DAT12_UPCALL_OBJECT *upcall,
			     DAT_EVD_FLAGS evd_flags, DAT_EVD_HANDLE *evd_handle);
DAT_RETURN dat12_evd_modify_upcall(DAT_EVD_HANDLE evd_handle, DAT_UPCALL_POLICY upcall_policy,
				   const DAT12_UPCALL_OBJECT *upcall);
DAT_RETURN dat12_evd_query(DAT_EVD_HANDLE evd_handle, DAT_EVD_PARAM_MASK evd_param_mask,
			   DAT12_EVD_PARAM *evd_param);
DAT_RETURN dat12_evd_post_se(DAT_EVD_HANDLE evd_handle, const DAT12_EVENT *event);
DAT_RETURN dat12_evd_dequeue(DAT_EVD_HANDLE evd_handle, DAT12_EVENT *event);
DAT_RETURN dat12_ep_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
			   DAT_EVD_HANDLE recv_completion_evd_handle,
			   DAT_EVD_HANDLE request_completion_evd_handle,
			   DAT_EVD_HANDLE connect_evd_handle, const DAT12_EP_ATTR *ep_attributes,
			   DAT_EP_HANDLE *ep_handle);
DAT_RETURN dat12_ep_create_with_srq(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
				    DAT_EVD_HANDLE recv_evd_handle,
				    DAT_EVD_HANDLE request_evd_handle,
				    DAT_EVD_HANDLE connect_evd_handle, DAT_SRQ_HANDLE srq_handle,
				    const DAT12_EP_ATTR *ep_attributes, DAT_EP_HANDLE *ep_handle);
DAT_RETURN dat12_ep_query(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK ep_param_mask,
			  DAT12_EP_PARAM *ep_param);
DAT_RETURN dat12_ep_modify(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK ep_param_mask,
			   const DAT12_EP_PARAM *ep_param);
DAT_RETURN dat12_ep_post_send(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
			      DAT12_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
			      DAT_COMPLETION_FLAGS completion_flags);
DAT_RETURN dat12_ep_post_recv(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
			      DAT12_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
			      DAT_COMPLETION_FLAGS completion_flags);
DAT_RETURN dat12_ep_post_rdma_read(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
				   DAT12_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
				   const DAT12_RMR_TRIPLET *remote_iov,
				   DAT_COMPLETION_FLAGS completion_flags);
DAT_RETURN dat12_ep_post_rdma_write(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
				    DAT12_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
				    const DAT12_RMR_TRIPLET *remote_iov,
				    DAT_COMPLETION_FLAGS completion_flags);
DAT_RETURN dat12_srq_post_recv(DAT_SRQ_HANDLE srq_handle, DAT_COUNT num_segments,
			       DAT12_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie);
DAT_RETURN dat12_cr_reject(DAT_CR_HANDLE cr_handle);

#endif /* _DAT12_H_ */
