/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The kernel DAT API 1.2, for consumers that were written for it:
 *
 *	#include <dat/kdat.h>
 *
 * It is a thin layer over 2.0. Types and calls that are the same in both versions come from
 * <dat2/kdat.h> and kdapl.ko. Those that differ come from dat12.h and kdapl_dat12.ko; this
 * header maps the names of 1.2 to them. A source file includes one of the two headers, never
 * both, but a module may contain files of either kind. See Documentation/porting-1.2.md.
 */
#ifndef _DAT_KDAT_H_
#define _DAT_KDAT_H_

#ifdef _KDAT_H_
#error "one source file cannot include both <dat/kdat.h> and <dat2/kdat.h>"
#endif

#include <dat/dat12.h>

#undef DAT_VERSION_MAJOR
#undef DAT_VERSION_MINOR
#define DAT_VERSION_MAJOR	1
#define DAT_VERSION_MINOR	2

/*
 * Types
 */
#define dat_lmr_triplet			dat12_lmr_triplet
#define dat_rmr_triplet			dat12_rmr_triplet
#define dat_rmr_param			dat12_rmr_param
#define dat_region_description		dat12_region_description
#define dat_lmr_param			dat12_lmr_param
#define dat_ia_attr			dat12_ia_attr
#define dat_provider_attr		dat12_provider_attr
#define dat_ep_attr			dat12_ep_attr
#define dat_ep_param			dat12_ep_param
#define dat_dto_completion_event_data	dat12_dto_completion_event_data
#define dat_sp_handle			dat12_sp_handle
#define dat_cr_arrival_event_data	dat12_cr_arrival_event_data
#define dat_event_data			dat12_event_data
#define dat_event			dat12_event
#define dat_upcall_object		dat12_upcall_object
#define dat_evd_param			dat12_evd_param

#define DAT_LMR_TRIPLET			DAT12_LMR_TRIPLET
#define DAT_RMR_TRIPLET			DAT12_RMR_TRIPLET
#define DAT_RMR_PARAM			DAT12_RMR_PARAM
#define DAT_REGION_DESCRIPTION		DAT12_REGION_DESCRIPTION
#define DAT_LMR_PARAM			DAT12_LMR_PARAM
#define DAT_IA_ATTR			DAT12_IA_ATTR
#define DAT_PROVIDER_ATTR		DAT12_PROVIDER_ATTR
#define DAT_EP_ATTR			DAT12_EP_ATTR
#define DAT_EP_PARAM			DAT12_EP_PARAM
#define DAT_DTO_COMPLETION_EVENT_DATA	DAT12_DTO_COMPLETION_EVENT_DATA
#define DAT_SP_HANDLE			DAT12_SP_HANDLE
#define DAT_CR_ARRIVAL_EVENT_DATA	DAT12_CR_ARRIVAL_EVENT_DATA
#define DAT_EVENT_DATA			DAT12_EVENT_DATA
#define DAT_EVENT			DAT12_EVENT
#define DAT_UPCALL_FUNC			DAT12_UPCALL_FUNC
#define DAT_UPCALL_OBJECT		DAT12_UPCALL_OBJECT
#define DAT_EVD_PARAM			DAT12_EVD_PARAM

/*
 * Masks with different values. Masks that exist only in 2.0 are undefined.
 */
#undef DAT_EP_FIELD_COMM
#undef DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR
#undef DAT_EP_FIELD_LOCAL_PORT_QUAL
#undef DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR
#undef DAT_EP_FIELD_REMOTE_PORT_QUAL
#undef DAT_EP_FIELD_PZ_HANDLE
#undef DAT_EP_FIELD_RECV_EVD_HANDLE
#undef DAT_EP_FIELD_REQUEST_EVD_HANDLE
#undef DAT_EP_FIELD_CONNECT_EVD_HANDLE
#undef DAT_EP_FIELD_SRQ_HANDLE
#undef DAT_EP_FIELD_ALL
#define DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR	UINT64_C(0x004)
#define DAT_EP_FIELD_LOCAL_PORT_QUAL		UINT64_C(0x008)
#define DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR	UINT64_C(0x010)
#define DAT_EP_FIELD_REMOTE_PORT_QUAL		UINT64_C(0x020)
#define DAT_EP_FIELD_PZ_HANDLE			UINT64_C(0x040)
#define DAT_EP_FIELD_RECV_EVD_HANDLE		UINT64_C(0x080)
#define DAT_EP_FIELD_REQUEST_EVD_HANDLE		UINT64_C(0x100)
#define DAT_EP_FIELD_CONNECT_EVD_HANDLE		UINT64_C(0x200)
#define DAT_EP_FIELD_SRQ_HANDLE			UINT64_C(0x400)
#define DAT_EP_FIELD_ALL			DAT12_EP_FIELD_ALL

#define DAT_LMR_FIELD_LMR_CONTEXT		0x040
#define DAT_LMR_FIELD_RMR_CONTEXT		0x080
#define DAT_LMR_FIELD_REGISTERED_SIZE		0x100
#define DAT_LMR_FIELD_REGISTERED_ADDRESS	0x200
#define DAT_LMR_FIELD_ALL			DAT12_LMR_FIELD_ALL

#define DAT_RMR_FIELD_ALL			DAT12_RMR_FIELD_ALL

#undef DAT_IA_FIELD_IA_ZB_SUPPORTED
#undef DAT_IA_FIELD_IA_RESERVED_LMR_SUPPORTED
#undef DAT_IA_FIELD_IA_NUM_TRANSPORT_ATTR
#undef DAT_IA_FIELD_IA_TRANSPORT_ATTR
#undef DAT_IA_FIELD_IA_NUM_VENDOR_ATTR
#undef DAT_IA_FIELD_IA_VENDOR_ATTR
#undef DAT_IA_FIELD_ALL
#define DAT_IA_FIELD_IA_NUM_TRANSPORT_ATTR	UINT64_C(0x080000000)
#define DAT_IA_FIELD_IA_TRANSPORT_ATTR		UINT64_C(0x100000000)
#define DAT_IA_FIELD_IA_NUM_VENDOR_ATTR		UINT64_C(0x200000000)
#define DAT_IA_FIELD_IA_VENDOR_ATTR		UINT64_C(0x400000000)
#define DAT_IA_FIELD_ALL			DAT12_IA_FIELD_ALL

#undef DAT_PROVIDER_FIELD_RDMA_READ_LMR_RMR_CONTEXT_EXPOSURE
#undef DAT_PROVIDER_FIELD_RMR_SCOPE_SUPPORTED
#undef DAT_PROVIDER_FIELD_IS_INTERRUPT_SAFE
#undef DAT_PROVIDER_FIELD_FMR_SUPPORTED
#undef DAT_PROVIDER_FIELD_LMR_FOR_FMR_SCOPE
#undef DAT_PROVIDER_FIELD_HA_SUPPORTED
#undef DAT_PROVIDER_FIELD_HA_LB
#undef DAT_PROVIDER_FIELD_NUM_PROVIDER_SPECIFIC_ATTR
#undef DAT_PROVIDER_FIELD_PROVIDER_SPECIFIC_ATTR
#undef DAT_PROVIDER_FIELD_ALL
#define DAT_PROVIDER_FIELD_NUM_PROVIDER_SPECIFIC_ATTR	UINT64_C(0x1000000)
#define DAT_PROVIDER_FIELD_PROVIDER_SPECIFIC_ATTR	UINT64_C(0x2000000)
#define DAT_PROVIDER_FIELD_ALL				DAT12_PROVIDER_FIELD_ALL

/*
 * Calls. dat_ia_open() is a macro over dat_ia_openv() and therefore requests 1.2.
 */
#define dat_registry_list_providers	dat12_registry_list_providers
#undef dat_ia_openv
#define dat_ia_openv(...)		dat12_ia_openv(__VA_ARGS__, KBUILD_MODNAME)
#define dat_ia_query			dat12_ia_query
#define dat_lmr_kcreate			dat12_lmr_kcreate
#define dat_lmr_query			dat12_lmr_query
#define dat_lmr_sync_rdma_read		dat12_lmr_sync_rdma_read
#define dat_lmr_sync_rdma_write		dat12_lmr_sync_rdma_write
#define dat_rmr_query			dat12_rmr_query
#define dat_rmr_bind			dat12_rmr_bind
#define dat_evd_kcreate			dat12_evd_kcreate
#define dat_evd_modify_upcall		dat12_evd_modify_upcall
#define dat_evd_query			dat12_evd_query
#define dat_evd_post_se			dat12_evd_post_se
#define dat_evd_dequeue			dat12_evd_dequeue
#define dat_ep_create			dat12_ep_create
#define dat_ep_create_with_srq		dat12_ep_create_with_srq
#define dat_ep_query			dat12_ep_query
#define dat_ep_modify			dat12_ep_modify
#define dat_ep_post_send		dat12_ep_post_send
#define dat_ep_post_recv		dat12_ep_post_recv
#define dat_ep_post_rdma_read		dat12_ep_post_rdma_read
#define dat_ep_post_rdma_write		dat12_ep_post_rdma_write
#define dat_srq_post_recv		dat12_srq_post_recv
#define dat_cr_reject			dat12_cr_reject

/* Calls that 2.0 added are not available to 1.2 consumers. */
#define dat_ep_common_connect		dat_ep_common_connect_is_not_in_1_2
#define dat_ep_post_send_with_invalidate dat_ep_post_send_with_invalidate_is_not_in_1_2
#define dat_ep_post_rdma_read_to_rmr	dat_ep_post_rdma_read_to_rmr_is_not_in_1_2
#define dat_rmr_create_for_ep		dat_rmr_create_for_ep_is_not_in_1_2
#define dat_csp_create			dat_csp_create_is_not_in_1_2
#define dat_csp_query			dat_csp_query_is_not_in_1_2
#define dat_csp_free			dat_csp_free_is_not_in_1_2
#define dat_lmr_allocate		dat_lmr_allocate_is_not_in_1_2
#define dat_lmr_fmr			dat_lmr_fmr_is_not_in_1_2
#define dat_lmr_invalidate		dat_lmr_invalidate_is_not_in_1_2
#define dat_ia_reserved_lmr		dat_ia_reserved_lmr_is_not_in_1_2
#define dat_registry_providers_related	dat_registry_providers_related_is_not_in_1_2

/* From here on, <dat2/kdat.h> and <dat2/kdat_ext.h> would see the names of 1.2. */
#define KDAPL_DAT_1_2

#endif /* _DAT_KDAT_H_ */
