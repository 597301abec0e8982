// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The calls of DAT 1.2 that differ from those of 2.0. include/dat/kdat.h gives them
 * their names. Each converts its arguments and calls its counterpart of 2.0; errors are
 * found here only if 2.0 cannot express them. Objects may be used through the calls of
 * both versions. EVDs are in evd.c.
 *
 * Functions *_in() convert from 1.2 to 2.0, functions *_out() back.
 */
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>

#include <dat/dat12.h>
#include <dat2/kdat_ext.h>

#include "../version.h"
#include "evd.h"

#define DAT12_IOV	32	/* most segments, converted on the stack */

static_assert(sizeof(DAT12_LMR_TRIPLET) == 24);
static_assert(offsetof(DAT12_LMR_TRIPLET, virtual_address) == 8);
static_assert(sizeof(DAT12_RMR_TRIPLET) == 24);
static_assert(offsetof(DAT12_DTO_COMPLETION_EVENT_DATA, transfered_length) == 24 ||
	      sizeof(void *) == 4);
static_assert(sizeof(DAT12_CR_ARRIVAL_EVENT_DATA) == 32 || sizeof(void *) == 4);
static_assert(sizeof(DAT12_EVENT) == 48 || sizeof(void *) == 4);
static_assert(sizeof(DAT12_EP_ATTR) == 104 || sizeof(void *) == 4);

static DAT_RETURN dat12_arg_err(unsigned int n)
{
	return DAT_ERROR(DAT_INVALID_PARAMETER, (DAT_INVALID_ARG1 + n - 1));
}

/*
 * The mask for the query of 2.0, whose result is converted as a whole: 0, all bits, or,
 * if @mask has bits that 1.2 does not have, bits that 2.0 refuses.
 */
static u64 dat12_query_mask(u64 mask, u64 all12, u64 all20)
{
	if (!mask)
		return 0;
	return mask & ~all12 ? ~all20 : all20;
}

/*
 * The call of 2.0 has more parameters: convert the number of the argument it refuses.
 * @map has the number in 1.2 for each one in 2.0, 0 for none.
 */
static DAT_RETURN dat12_arg_ret(DAT_RETURN ret, const u8 map[10])
{
	u32 arg = DAT_GET_SUBTYPE(ret) - DAT_INVALID_ARG1;

	if (DAT_GET_TYPE(ret) != DAT_INVALID_PARAMETER || arg >= 10 || !map[arg])
		return ret;
	return dat12_arg_err(map[arg]);
}

/* ------------------------------------------------------------------ */
/* registry and IA                                                      */

/**
 * dat12_registry_list_providers - names of the IAs, as adapters of DAT 1.2
 * @max_to_return: as in dat_registry_list_providers()
 * @entries_returned: as in dat_registry_list_providers()
 * @dat_provider_list: as in dat_registry_list_providers()
 *
 * Context: that of dat_registry_list_providers().
 * Return: that of dat_registry_list_providers().
 */
DAT_RETURN dat12_registry_list_providers(DAT_COUNT max_to_return, DAT_COUNT *entries_returned,
					 DAT_PROVIDER_INFO **dat_provider_list)
{
	DAT_RETURN ret = dat_registry_list_providers(max_to_return, entries_returned,
						     dat_provider_list);
	DAT_COUNT i;

	if (ret != DAT_SUCCESS)
		return ret;
	for (i = 0; i < *entries_returned && i < max_to_return; i++) {
		dat_provider_list[i]->dapl_version_major = 1;
		dat_provider_list[i]->dapl_version_minor = 2;
	}
	return ret;
}
EXPORT_SYMBOL(dat12_registry_list_providers);

/**
 * dat12_ia_openv - open an Interface Adapter for a consumer of DAT 1.2
 * @provider: as in dat_ia_openv()
 * @asynch_evd_min_qlen: as in dat_ia_openv()
 * @asynch_evd_handle: as in dat_ia_openv()
 * @ia_handle: as in dat_ia_openv()
 * @dat_major: as in dat_ia_openv()
 * @dat_minor: as in dat_ia_openv()
 * @thread_safety: as in dat_ia_openv()
 * @consumer: name of the module that calls
 *
 * The versions 1.0 to 1.2 are served.
 *
 * Context: that of dat_ia_openv().
 * Return: that of dat_ia_openv().
 */
DAT_RETURN dat12_ia_openv(const DAT_NAME_PTR provider, DAT_COUNT asynch_evd_min_qlen,
			  DAT_EVD_HANDLE *asynch_evd_handle, DAT_IA_HANDLE *ia_handle,
			  DAT_UINT32 dat_major, DAT_UINT32 dat_minor, DAT_BOOLEAN thread_safety,
			  const char *consumer)
{
	/* 1.0, 1.1 and 1.2 become 2.0; others become versions that the call refuses */
	return kdat_ia_openv(provider, asynch_evd_min_qlen, asynch_evd_handle, ia_handle,
			     dat_major == 1 ? DAT_VERSION_MAJOR : 0,
			     dat_minor <= 2 ? 0 : DAT_VERSION_MINOR + 1, thread_safety, consumer);
}
EXPORT_SYMBOL(dat12_ia_openv);

static void dat12_ia_attr_out(DAT12_IA_ATTR *to, const DAT_IA_ATTR *from)
{
	memset(to, 0, sizeof(*to));
	memcpy(to->adapter_name, from->adapter_name, sizeof(to->adapter_name));
	memcpy(to->vendor_name, from->vendor_name, sizeof(to->vendor_name));
	to->hardware_version_major = from->hardware_version_major;
	to->hardware_version_minor = from->hardware_version_minor;
	to->firmware_version_major = from->firmware_version_major;
	to->firmware_version_minor = from->firmware_version_minor;
	to->ia_address_ptr = from->ia_address_ptr;
	to->max_eps = from->max_eps;
	to->max_dto_per_ep = from->max_dto_per_ep;
	to->max_rdma_read_per_ep_in = from->max_rdma_read_per_ep_in;
	to->max_rdma_read_per_ep_out = from->max_rdma_read_per_ep_out;
	to->max_evds = from->max_evds;
	to->max_evd_qlen = from->max_evd_qlen;
	to->max_iov_segments_per_dto = min(from->max_iov_segments_per_dto, DAT12_IOV);
	to->max_lmrs = from->max_lmrs;
	to->max_lmr_block_size = from->max_lmr_block_size;
	to->max_lmr_virtual_address = from->max_lmr_virtual_address;
	to->max_pzs = from->max_pzs;
	to->max_message_size = from->max_message_size;
	to->max_rdma_size = from->max_rdma_size;
	to->max_rmrs = from->max_rmrs;
	to->max_rmr_target_address = from->max_rmr_target_address;
	to->max_srqs = from->max_srqs;
	to->max_ep_per_srq = from->max_ep_per_srq;
	to->max_recv_per_srq = from->max_recv_per_srq;
	to->max_iov_segments_per_rdma_read = min(from->max_iov_segments_per_rdma_read, DAT12_IOV);
	to->max_iov_segments_per_rdma_write = min(from->max_iov_segments_per_rdma_write,
						  DAT12_IOV);
	to->max_rdma_read_in = from->max_rdma_read_in;
	to->max_rdma_read_out = from->max_rdma_read_out;
	to->max_rdma_read_per_ep_in_guaranteed = from->max_rdma_read_per_ep_in_guaranteed;
	to->max_rdma_read_per_ep_out_guaranteed = from->max_rdma_read_per_ep_out_guaranteed;
	to->num_transport_attr = from->num_transport_attr;
	to->transport_attr = from->transport_attr;
	to->num_vendor_attr = from->num_vendor_attr;
	to->vendor_attr = from->vendor_attr;
}

static void dat12_provider_attr_out(DAT12_PROVIDER_ATTR *to, const DAT_PROVIDER_ATTR *from)
{
	const size_t same = offsetofend(DAT12_PROVIDER_ATTR, rdma_write_for_rdma_read_req);

	static_assert(offsetofend(DAT12_PROVIDER_ATTR, rdma_write_for_rdma_read_req) ==
		      offsetofend(DAT_PROVIDER_ATTR, rdma_write_for_rdma_read_req));
	memset(to, 0, sizeof(*to));
	memcpy(to, from, same);		/* one member is const */
	to->dapl_version_major = 1;
	to->dapl_version_minor = 2;
	to->lmr_mem_types_supported &= ~DAT_MEM_TYPE_PHYSICAL_VAR_PAGES;
	to->completion_flags_supported &= ~DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG;
	to->num_provider_specific_attr = from->num_provider_specific_attr;
	to->provider_specific_attr = from->provider_specific_attr;
}

/**
 * dat12_ia_query - read the attributes of an IA and of its provider, in structures of 1.2
 * @ia_handle: as in dat_ia_query()
 * @async_evd_handle: as in dat_ia_query()
 * @ia_attr_mask: as in dat_ia_query()
 * @ia_attr: as in dat_ia_query()
 * @provider_attr_mask: as in dat_ia_query()
 * @provider_attr: as in dat_ia_query()
 *
 * Numbers of segments are at most 32, since the calls of 1.2 convert no more.
 *
 * Context: that of dat_ia_query().
 * Return: that of dat_ia_query(); DAT_INSUFFICIENT_RESOURCES (MEMORY: for the structures
 * of 2.0).
 */
DAT_RETURN dat12_ia_query(DAT_IA_HANDLE ia_handle, DAT_EVD_HANDLE *async_evd_handle,
			  DAT_IA_ATTR_MASK ia_attr_mask, DAT12_IA_ATTR *ia_attr,
			  DAT_PROVIDER_ATTR_MASK provider_attr_mask,
			  DAT12_PROVIDER_ATTR *provider_attr)
{
	struct {
		DAT_IA_ATTR ia;
		DAT_PROVIDER_ATTR provider;
	} *attr = kzalloc(sizeof(*attr), GFP_KERNEL);
	DAT_RETURN ret;

	if (!attr)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	ret = dat_ia_query(ia_handle, async_evd_handle,
			   dat12_query_mask(ia_attr_mask, DAT12_IA_FIELD_ALL, DAT_IA_FIELD_ALL),
			   ia_attr ? &attr->ia : NULL,
			   dat12_query_mask(provider_attr_mask, DAT12_PROVIDER_FIELD_ALL,
					    DAT_PROVIDER_FIELD_ALL),
			   provider_attr ? &attr->provider : NULL);
	if (ret == DAT_SUCCESS && ia_attr)
		dat12_ia_attr_out(ia_attr, &attr->ia);
	if (ret == DAT_SUCCESS && provider_attr)
		dat12_provider_attr_out(provider_attr, &attr->provider);
	kfree(attr);
	return ret;
}
EXPORT_SYMBOL(dat12_ia_query);

/* ------------------------------------------------------------------ */
/* memory                                                               */

/* The type says which member is valid. False: 1.2 does not have the type. */
static bool dat12_region_in(DAT_REGION_DESCRIPTION *to, const DAT12_REGION_DESCRIPTION *from,
			    DAT_MEM_TYPE type)
{
	memset(to, 0, sizeof(*to));
	switch (type) {
	case DAT_MEM_TYPE_VIRTUAL:
		to->for_va = from->for_va;
		return true;
	case DAT_MEM_TYPE_LMR:
		to->for_lmr_handle = from->for_lmr_handle;
		return true;
	case DAT_MEM_TYPE_PHYSICAL:
		to->for_physical = from->for_array;
		return true;
	case DAT_MEM_TYPE_PLATFORM:
	case DAT_MEM_TYPE_BYPASS:
		to->for_platform = from->for_pointer;
		return true;
	case DAT_MEM_TYPE_IA:
		to->for_ia = from->for_pa;
		return true;
	default:
		return false;
	}
}

static void dat12_region_out(DAT12_REGION_DESCRIPTION *to, const DAT_REGION_DESCRIPTION *from,
			     DAT_MEM_TYPE type)
{
	memset(to, 0, sizeof(*to));
	switch (type) {
	case DAT_MEM_TYPE_LMR:
		to->for_lmr_handle = from->for_lmr_handle;
		break;
	case DAT_MEM_TYPE_PHYSICAL:
		to->for_array = from->for_physical;
		break;
	case DAT_MEM_TYPE_PLATFORM:
		to->for_pointer = from->for_platform;
		break;
	case DAT_MEM_TYPE_IA:
		to->for_pa = from->for_ia;
		break;
	default:
		to->for_va = from->for_va;
	}
}

/**
 * dat12_lmr_kcreate - register memory
 * @ia_handle: as in dat_lmr_kcreate()
 * @mem_type: as in dat_lmr_kcreate()
 * @region_description: as in dat_lmr_kcreate()
 * @length: as in dat_lmr_kcreate()
 * @pz_handle: as in dat_lmr_kcreate()
 * @privileges: as in dat_lmr_kcreate()
 * @mem_optimization: as in dat_lmr_kcreate()
 * @lmr_handle: as in dat_lmr_kcreate()
 * @lmr_context: as in dat_lmr_kcreate()
 * @rmr_context: as in dat_lmr_kcreate()
 * @registered_length: as in dat_lmr_kcreate()
 * @registered_address: as in dat_lmr_kcreate()
 *
 * Addresses are virtual ones (DAT_VA_TYPE_VA), and there is no
 * DAT_MEM_TYPE_PHYSICAL_VAR_PAGES.
 *
 * Context: that of dat_lmr_kcreate().
 * Return: that of dat_lmr_kcreate().
 */
DAT_RETURN dat12_lmr_kcreate(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE mem_type,
			     DAT12_REGION_DESCRIPTION region_description, DAT_VLEN length,
			     DAT_PZ_HANDLE pz_handle, DAT_MEM_PRIV_FLAGS privileges,
			     DAT_MEM_OPTIMIZE_FLAGS mem_optimization, DAT_LMR_HANDLE *lmr_handle,
			     DAT_LMR_CONTEXT *lmr_context, DAT_RMR_CONTEXT *rmr_context,
			     DAT_VLEN *registered_length, DAT_VADDR *registered_address)
{
	static const u8 map[10] = { 1, 2, 3, 4, 5, 6, 0, 7, 8, 9 };
	DAT_REGION_DESCRIPTION region;

	if (!dat12_region_in(&region, &region_description, mem_type))
		mem_type = ~0;		/* refused after the handles have been checked */
	return dat12_arg_ret(dat_lmr_kcreate(ia_handle, mem_type, region, length, pz_handle,
					 privileges, DAT_VA_TYPE_VA, mem_optimization, lmr_handle,
					 lmr_context, rmr_context, registered_length,
					 registered_address), map);
}
EXPORT_SYMBOL(dat12_lmr_kcreate);

/**
 * dat12_lmr_query - read the parameters of an LMR
 * @lmr_handle: as in dat_lmr_query()
 * @lmr_param_mask: as in dat_lmr_query()
 * @lmr_param: as in dat_lmr_query()
 *
 * Context: that of dat_lmr_query().
 * Return: that of dat_lmr_query().
 */
DAT_RETURN dat12_lmr_query(DAT_LMR_HANDLE lmr_handle, DAT_LMR_PARAM_MASK lmr_param_mask,
			   DAT12_LMR_PARAM *lmr_param)
{
	DAT_LMR_PARAM param;
	DAT_RETURN ret;

	ret = dat_lmr_query(lmr_handle,
			    dat12_query_mask(lmr_param_mask, DAT12_LMR_FIELD_ALL,
					     DAT_LMR_FIELD_ALL),
			    lmr_param ? &param : NULL);
	if (ret != DAT_SUCCESS || !lmr_param)
		return ret;
	lmr_param->ia_handle = param.ia_handle;
	lmr_param->mem_type = param.mem_type;
	dat12_region_out(&lmr_param->region_desc, &param.region_desc, param.mem_type);
	lmr_param->length = param.length;
	lmr_param->pz_handle = param.pz_handle;
	lmr_param->mem_priv = param.mem_priv;
	lmr_param->lmr_context = param.lmr_context;
	lmr_param->rmr_context = param.rmr_context;
	lmr_param->registered_size = param.registered_size;
	lmr_param->registered_address = param.registered_address;
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat12_lmr_query);

static bool dat12_triplet_in(DAT_LMR_TRIPLET *to, const DAT12_LMR_TRIPLET *from)
{
	to->virtual_address = from->virtual_address;
	to->lmr_context = from->lmr_context;
	to->segment_length = from->segment_length;
	return from->segment_length <= U32_MAX;
}

static DAT_RETURN dat12_sync(DAT_RETURN (*sync)(DAT_IA_HANDLE, const DAT_LMR_TRIPLET *, DAT_VLEN),
			     DAT_IA_HANDLE ia_handle, const DAT12_LMR_TRIPLET *from, DAT_VLEN n)
{
	DAT_LMR_TRIPLET to;
	DAT_RETURN ret;
	DAT_VLEN i;

	if (!from || !n)
		return sync(ia_handle, NULL, n);
	for (i = 0; i < n; i++) {
		ret = dat12_triplet_in(&to, &from[i]) ? sync(ia_handle, &to, 1) : dat12_arg_err(2);
		if (ret != DAT_SUCCESS)
			return ret;
	}
	return DAT_SUCCESS;
}

/**
 * dat12_lmr_sync_rdma_read - make local changes visible to the peer's RDMA Reads
 * @ia_handle: as in dat_lmr_sync_rdma_read()
 * @local_segments: as in dat_lmr_sync_rdma_read()
 * @num_segments: as in dat_lmr_sync_rdma_read()
 *
 * Context: that of dat_lmr_sync_rdma_read().
 * Return: that of dat_lmr_sync_rdma_read().
 */
DAT_RETURN dat12_lmr_sync_rdma_read(DAT_IA_HANDLE ia_handle,
				    const DAT12_LMR_TRIPLET *local_segments,
				    DAT_VLEN num_segments)
{
	return dat12_sync(dat_lmr_sync_rdma_read, ia_handle, local_segments, num_segments);
}
EXPORT_SYMBOL(dat12_lmr_sync_rdma_read);

/**
 * dat12_lmr_sync_rdma_write - make the peer's RDMA Writes visible here
 * @ia_handle: as in dat_lmr_sync_rdma_write()
 * @local_segments: as in dat_lmr_sync_rdma_write()
 * @num_segments: as in dat_lmr_sync_rdma_write()
 *
 * Context: that of dat_lmr_sync_rdma_write().
 * Return: that of dat_lmr_sync_rdma_write().
 */
DAT_RETURN dat12_lmr_sync_rdma_write(DAT_IA_HANDLE ia_handle,
				     const DAT12_LMR_TRIPLET *local_segments,
				     DAT_VLEN num_segments)
{
	return dat12_sync(dat_lmr_sync_rdma_write, ia_handle, local_segments, num_segments);
}
EXPORT_SYMBOL(dat12_lmr_sync_rdma_write);

/**
 * dat12_rmr_query - read the parameters of an RMR
 * @rmr_handle: as in dat_rmr_query()
 * @rmr_param_mask: as in dat_rmr_query()
 * @rmr_param: as in dat_rmr_query()
 *
 * Context: that of dat_rmr_query().
 * Return: that of dat_rmr_query().
 */
DAT_RETURN dat12_rmr_query(DAT_RMR_HANDLE rmr_handle, DAT_RMR_PARAM_MASK rmr_param_mask,
			   DAT12_RMR_PARAM *rmr_param)
{
	DAT_RMR_PARAM param;
	DAT_RETURN ret;

	ret = dat_rmr_query(rmr_handle,
			    dat12_query_mask(rmr_param_mask, DAT12_RMR_FIELD_ALL,
					     DAT_RMR_FIELD_ALL),
			    rmr_param ? &param : NULL);
	if (ret != DAT_SUCCESS || !rmr_param)
		return ret;
	rmr_param->ia_handle = param.ia_handle;
	rmr_param->pz_handle = param.pz_handle;
	rmr_param->lmr_triplet = (DAT12_LMR_TRIPLET){
		.lmr_context = param.lmr_triplet.lmr_context,
		.virtual_address = param.lmr_triplet.virtual_address,
		.segment_length = param.lmr_triplet.segment_length,
	};
	rmr_param->mem_priv = param.mem_priv;
	rmr_param->rmr_context = param.rmr_context;
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat12_rmr_query);

/* The LMR with this context, of the IA of this RMR; NULL if there is none. */
static DAT_LMR_HANDLE dat12_lmr_by_context(DAT_RMR_HANDLE rmr_handle, DAT_LMR_CONTEXT context)
{
	DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
	DAT_RMR_PARAM param;

	if (dat_rmr_query(rmr_handle, DAT_RMR_FIELD_IA_HANDLE, &param) == DAT_SUCCESS)
		kdat_lmr_by_context(param.ia_handle, context, &lmr);
	return lmr;
}

/**
 * dat12_rmr_bind - open a window onto an LMR for peers, or close it
 * @rmr_handle: as in dat_rmr_bind()
 * @lmr_triplet: as in dat_rmr_bind()
 * @mem_priv: as in dat_rmr_bind()
 * @ep_handle: as in dat_rmr_bind()
 * @user_cookie: as in dat_rmr_bind()
 * @completion_flags: as in dat_rmr_bind()
 * @context: as in dat_rmr_bind()
 *
 * The LMR is the one that lmr_context of the triplet belongs to; without such an LMR the
 * call is DAT_INVALID_PARAMETER, argument 2. Addresses are virtual ones.
 *
 * Context: that of dat_rmr_bind().
 * Return: that of dat_rmr_bind().
 */
DAT_RETURN dat12_rmr_bind(DAT_RMR_HANDLE rmr_handle, const DAT12_LMR_TRIPLET *lmr_triplet,
			  DAT_MEM_PRIV_FLAGS mem_priv, DAT_EP_HANDLE ep_handle,
			  DAT_RMR_COOKIE user_cookie, DAT_COMPLETION_FLAGS completion_flags,
			  DAT_RMR_CONTEXT *context)
{
	static const u8 map[10] = { 1, 0, 2, 3, 0, 4, 5, 6, 7 };
	DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;
	DAT_LMR_TRIPLET triplet = {};
	DAT_RETURN ret;

	if (lmr_triplet) {
		if (!dat12_triplet_in(&triplet, lmr_triplet))
			return dat12_arg_err(2);
		if (triplet.segment_length)
			lmr = dat12_lmr_by_context(rmr_handle, triplet.lmr_context);
	}
	ret = dat_rmr_bind(rmr_handle, lmr, lmr_triplet ? &triplet : NULL, mem_priv,
			   DAT_VA_TYPE_VA, ep_handle, user_cookie, completion_flags, context);
	/* 1.2 has no LMR handle: what is wrong is the context of the triplet */
	if (DAT_GET_TYPE(ret) == DAT_INVALID_HANDLE &&
	    DAT_GET_SUBTYPE(ret) == DAT_INVALID_HANDLE_LMR)
		return dat12_arg_err(2);
	return dat12_arg_ret(ret, map);
}
EXPORT_SYMBOL(dat12_rmr_bind);

/* ------------------------------------------------------------------ */
/* Endpoints                                                            */

static bool dat12_ep_attr_in(DAT_EP_ATTR *to, const DAT12_EP_ATTR *from)
{
	to->service_type = from->service_type;
	to->qos = from->qos;
	to->recv_completion_flags = from->recv_completion_flags;
	to->request_completion_flags = from->request_completion_flags;
	to->max_recv_dtos = from->max_recv_dtos;
	to->max_request_dtos = from->max_request_dtos;
	to->max_recv_iov = from->max_recv_iov;
	to->max_request_iov = from->max_request_iov;
	to->max_rdma_read_in = from->max_rdma_read_in;
	to->max_rdma_read_out = from->max_rdma_read_out;
	to->srq_soft_hw = from->srq_soft_hw;
	to->max_rdma_read_iov = from->max_rdma_read_iov;
	to->max_rdma_write_iov = from->max_rdma_write_iov;
	to->ep_transport_specific_count = from->ep_transport_specific_count;
	to->ep_transport_specific = from->ep_transport_specific;
	to->ep_provider_specific_count = from->ep_provider_specific_count;
	to->ep_provider_specific = from->ep_provider_specific;
	to->max_message_size = from->max_message_size;
	to->max_rdma_size = from->max_rdma_size;
	return from->max_message_size <= U32_MAX && from->max_rdma_size <= U32_MAX &&
	       max(max(from->max_recv_iov, from->max_request_iov),
		   max(from->max_rdma_read_iov, from->max_rdma_write_iov)) <= DAT12_IOV;
}

static void dat12_ep_attr_out(DAT12_EP_ATTR *to, const DAT_EP_ATTR *from)
{
	to->service_type = from->service_type;
	to->qos = from->qos;
	to->recv_completion_flags = from->recv_completion_flags;
	to->request_completion_flags = from->request_completion_flags;
	to->max_recv_dtos = from->max_recv_dtos;
	to->max_request_dtos = from->max_request_dtos;
	to->max_recv_iov = from->max_recv_iov;
	to->max_request_iov = from->max_request_iov;
	to->max_rdma_read_in = from->max_rdma_read_in;
	to->max_rdma_read_out = from->max_rdma_read_out;
	to->srq_soft_hw = from->srq_soft_hw;
	to->max_rdma_read_iov = from->max_rdma_read_iov;
	to->max_rdma_write_iov = from->max_rdma_write_iov;
	to->ep_transport_specific_count = from->ep_transport_specific_count;
	to->ep_transport_specific = from->ep_transport_specific;
	to->ep_provider_specific_count = from->ep_provider_specific_count;
	to->ep_provider_specific = from->ep_provider_specific;
	to->max_message_size = from->max_message_size;
	to->max_rdma_size = from->max_rdma_size;
}

/**
 * dat12_ep_create - create an Endpoint
 * @ia_handle: as in dat_ep_create()
 * @pz_handle: as in dat_ep_create()
 * @recv_completion_evd_handle: as in dat_ep_create()
 * @request_completion_evd_handle: as in dat_ep_create()
 * @connect_evd_handle: as in dat_ep_create()
 * @ep_attributes: as in dat_ep_create()
 * @ep_handle: as in dat_ep_create()
 *
 * Sizes of 4 GiB and more, and more than 32 segments, are DAT_INVALID_PARAMETER, argument 6.
 *
 * Context: that of dat_ep_create().
 * Return: that of dat_ep_create().
 */
DAT_RETURN dat12_ep_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
			   DAT_EVD_HANDLE recv_completion_evd_handle,
			   DAT_EVD_HANDLE request_completion_evd_handle,
			   DAT_EVD_HANDLE connect_evd_handle, const DAT12_EP_ATTR *ep_attributes,
			   DAT_EP_HANDLE *ep_handle)
{
	DAT_EP_ATTR attr;

	if (ep_attributes && !dat12_ep_attr_in(&attr, ep_attributes))
		return dat12_arg_err(6);
	return dat_ep_create(ia_handle, pz_handle, recv_completion_evd_handle,
			     request_completion_evd_handle, connect_evd_handle,
			     ep_attributes ? &attr : NULL, ep_handle);
}
EXPORT_SYMBOL(dat12_ep_create);

/**
 * dat12_ep_create_with_srq - create an Endpoint whose Receives come from an SRQ
 * @ia_handle: as in dat_ep_create_with_srq()
 * @pz_handle: as in dat_ep_create_with_srq()
 * @recv_evd_handle: as in dat_ep_create_with_srq()
 * @request_evd_handle: as in dat_ep_create_with_srq()
 * @connect_evd_handle: as in dat_ep_create_with_srq()
 * @srq_handle: as in dat_ep_create_with_srq()
 * @ep_attributes: as in dat_ep_create_with_srq()
 * @ep_handle: as in dat_ep_create_with_srq()
 *
 * Sizes of 4 GiB and more, and more than 32 segments, are DAT_INVALID_PARAMETER, argument 7.
 *
 * Context: that of dat_ep_create_with_srq().
 * Return: that of dat_ep_create_with_srq().
 */
DAT_RETURN dat12_ep_create_with_srq(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
				    DAT_EVD_HANDLE recv_evd_handle,
				    DAT_EVD_HANDLE request_evd_handle,
				    DAT_EVD_HANDLE connect_evd_handle, DAT_SRQ_HANDLE srq_handle,
				    const DAT12_EP_ATTR *ep_attributes, DAT_EP_HANDLE *ep_handle)
{
	DAT_EP_ATTR attr;

	if (ep_attributes && !dat12_ep_attr_in(&attr, ep_attributes))
		return dat12_arg_err(7);
	return dat_ep_create_with_srq(ia_handle, pz_handle, recv_evd_handle, request_evd_handle,
				      connect_evd_handle, srq_handle,
				      ep_attributes ? &attr : NULL, ep_handle);
}
EXPORT_SYMBOL(dat12_ep_create_with_srq);

/* 2.0 has the communicator before the local address: move the bits up to the SRQ by one. */
static DAT_EP_PARAM_MASK dat12_ep_mask_in(DAT_EP_PARAM_MASK mask)
{
	const DAT_EP_PARAM_MASK moved = 0x7fc;

	if (mask & ~DAT12_EP_FIELD_ALL)
		return ~DAT_EP_FIELD_ALL;	/* refused by the call of 2.0 */
	return (mask & ~moved) | (mask & moved) << 1;
}

/**
 * dat12_ep_query - read the parameters of an Endpoint
 * @ep_handle: as in dat_ep_query()
 * @ep_param_mask: as in dat_ep_query()
 * @ep_param: as in dat_ep_query()
 *
 * Context: that of dat_ep_query().
 * Return: that of dat_ep_query().
 */
DAT_RETURN dat12_ep_query(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK ep_param_mask,
			  DAT12_EP_PARAM *ep_param)
{
	DAT_EP_PARAM param;
	DAT_RETURN ret;

	ret = dat_ep_query(ep_handle, dat12_ep_mask_in(ep_param_mask), ep_param ? &param : NULL);
	if (ret != DAT_SUCCESS || !ep_param)
		return ret;
	ep_param->ia_handle = param.ia_handle;
	ep_param->ep_state = param.ep_state;
	ep_param->local_ia_address_ptr = param.local_ia_address_ptr;
	ep_param->local_port_qual = param.local_port_qual;
	ep_param->remote_ia_address_ptr = param.remote_ia_address_ptr;
	ep_param->remote_port_qual = param.remote_port_qual;
	ep_param->pz_handle = param.pz_handle;
	ep_param->recv_evd_handle = param.recv_evd_handle;
	ep_param->request_evd_handle = param.request_evd_handle;
	ep_param->connect_evd_handle = param.connect_evd_handle;
	ep_param->srq_handle = param.srq_handle;
	dat12_ep_attr_out(&ep_param->ep_attr, &param.ep_attr);
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat12_ep_query);

/**
 * dat12_ep_modify - change parameters of an Endpoint
 * @ep_handle: as in dat_ep_modify()
 * @ep_param_mask: as in dat_ep_modify()
 * @ep_param: as in dat_ep_modify()
 *
 * Sizes of 4 GiB and more, and more than 32 segments, are DAT_INVALID_PARAMETER, argument 3.
 *
 * Context: that of dat_ep_modify().
 * Return: that of dat_ep_modify().
 */
DAT_RETURN dat12_ep_modify(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK ep_param_mask,
			   const DAT12_EP_PARAM *ep_param)
{
	DAT_EP_PARAM param = {};

	if (ep_param) {
		bool fits = dat12_ep_attr_in(&param.ep_attr, &ep_param->ep_attr);

		if (!fits && (ep_param_mask & (DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE |
					       DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE |
					       DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV |
					       DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV |
					       DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IOV |
					       DAT_EP_FIELD_EP_ATTR_MAX_RDMA_WRITE_IOV)))
			return dat12_arg_err(3);
		param.ia_handle = ep_param->ia_handle;
		param.ep_state = ep_param->ep_state;
		param.local_ia_address_ptr = ep_param->local_ia_address_ptr;
		param.local_port_qual = ep_param->local_port_qual;
		param.remote_ia_address_ptr = ep_param->remote_ia_address_ptr;
		param.remote_port_qual = ep_param->remote_port_qual;
		param.pz_handle = ep_param->pz_handle;
		param.recv_evd_handle = ep_param->recv_evd_handle;
		param.request_evd_handle = ep_param->request_evd_handle;
		param.connect_evd_handle = ep_param->connect_evd_handle;
		param.srq_handle = ep_param->srq_handle;
	}
	return dat_ep_modify(ep_handle, dat12_ep_mask_in(ep_param_mask), ep_param ? &param : NULL);
}
EXPORT_SYMBOL(dat12_ep_modify);

/* ------------------------------------------------------------------ */
/* posts                                                                */

/*
 * Only a number of segments or a length that cannot be converted is refused here, before the
 * handle is checked; the call of 2.0 checks everything else.
 */
static DAT_RETURN dat12_iov_in(DAT_LMR_TRIPLET to[DAT12_IOV], DAT_COUNT n,
			       const DAT12_LMR_TRIPLET *from)
{
	DAT_COUNT i;

	if (!from || n < 0)
		return DAT_SUCCESS;
	if (n > DAT12_IOV)
		return dat12_arg_err(2);
	for (i = 0; i < n; i++)
		if (!dat12_triplet_in(&to[i], &from[i]))
			return dat12_arg_err(3);
	return DAT_SUCCESS;
}

/**
 * dat12_ep_post_send - send a message
 * @ep_handle: as in dat_ep_post_send()
 * @num_segments: as in dat_ep_post_send()
 * @local_iov: as in dat_ep_post_send()
 * @user_cookie: as in dat_ep_post_send()
 * @completion_flags: as in dat_ep_post_send()
 *
 * More than 32 segments are DAT_INVALID_PARAMETER, argument 2; one of 4 GiB or more is
 * the same, argument 3.
 *
 * Context: that of dat_ep_post_send().
 * Return: that of dat_ep_post_send().
 */
DAT_RETURN dat12_ep_post_send(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
			      DAT12_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
			      DAT_COMPLETION_FLAGS completion_flags)
{
	DAT_LMR_TRIPLET iov[DAT12_IOV];
	DAT_RETURN ret = dat12_iov_in(iov, num_segments, local_iov);

	return ret ?: dat_ep_post_send(ep_handle, num_segments, local_iov ? iov : NULL,
				       user_cookie, completion_flags);
}
EXPORT_SYMBOL(dat12_ep_post_send);

/**
 * dat12_ep_post_recv - give a buffer for a message
 * @ep_handle: as in dat_ep_post_recv()
 * @num_segments: as in dat_ep_post_recv()
 * @local_iov: as in dat_ep_post_recv()
 * @user_cookie: as in dat_ep_post_recv()
 * @completion_flags: as in dat_ep_post_recv()
 *
 * More than 32 segments are DAT_INVALID_PARAMETER, argument 2; one of 4 GiB or more is
 * the same, argument 3.
 *
 * Context: that of dat_ep_post_recv().
 * Return: that of dat_ep_post_recv().
 */
DAT_RETURN dat12_ep_post_recv(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
			      DAT12_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
			      DAT_COMPLETION_FLAGS completion_flags)
{
	DAT_LMR_TRIPLET iov[DAT12_IOV];
	DAT_RETURN ret = dat12_iov_in(iov, num_segments, local_iov);

	return ret ?: dat_ep_post_recv(ep_handle, num_segments, local_iov ? iov : NULL,
				       user_cookie, completion_flags);
}
EXPORT_SYMBOL(dat12_ep_post_recv);

static DAT_RETURN dat12_remote_in(DAT_RMR_TRIPLET *to, const DAT12_RMR_TRIPLET *from)
{
	if (!from)
		return DAT_SUCCESS;	/* refused by the call of 2.0 */
	if (from->segment_length > U32_MAX)
		return dat12_arg_err(5);
	to->virtual_address = from->target_address;
	to->segment_length = from->segment_length;
	to->rmr_context = from->rmr_context;
	return DAT_SUCCESS;
}

/**
 * dat12_ep_post_rdma_read - read the peer's memory
 * @ep_handle: as in dat_ep_post_rdma_read()
 * @num_segments: as in dat_ep_post_rdma_read()
 * @local_iov: as in dat_ep_post_rdma_read()
 * @user_cookie: as in dat_ep_post_rdma_read()
 * @remote_iov: as in dat_ep_post_rdma_read()
 * @completion_flags: as in dat_ep_post_rdma_read()
 *
 * More than 32 segments are DAT_INVALID_PARAMETER, argument 2; one of 4 GiB or more is
 * the same, argument 3 (of the peer: 5).
 *
 * Context: that of dat_ep_post_rdma_read().
 * Return: that of dat_ep_post_rdma_read().
 */
DAT_RETURN dat12_ep_post_rdma_read(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
				   DAT12_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
				   const DAT12_RMR_TRIPLET *remote_iov,
				   DAT_COMPLETION_FLAGS completion_flags)
{
	DAT_LMR_TRIPLET iov[DAT12_IOV];
	DAT_RMR_TRIPLET remote;
	DAT_RETURN ret = dat12_iov_in(iov, num_segments, local_iov) ?:
			 dat12_remote_in(&remote, remote_iov);

	return ret ?: dat_ep_post_rdma_read(ep_handle, num_segments, local_iov ? iov : NULL,
					    user_cookie, remote_iov ? &remote : NULL,
					    completion_flags);
}
EXPORT_SYMBOL(dat12_ep_post_rdma_read);

/**
 * dat12_ep_post_rdma_write - write the peer's memory
 * @ep_handle: as in dat_ep_post_rdma_write()
 * @num_segments: as in dat_ep_post_rdma_write()
 * @local_iov: as in dat_ep_post_rdma_write()
 * @user_cookie: as in dat_ep_post_rdma_write()
 * @remote_iov: as in dat_ep_post_rdma_write()
 * @completion_flags: as in dat_ep_post_rdma_write()
 *
 * More than 32 segments are DAT_INVALID_PARAMETER, argument 2; one of 4 GiB or more is
 * the same, argument 3 (of the peer: 5).
 *
 * Context: that of dat_ep_post_rdma_write().
 * Return: that of dat_ep_post_rdma_write().
 */
DAT_RETURN dat12_ep_post_rdma_write(DAT_EP_HANDLE ep_handle, DAT_COUNT num_segments,
				    DAT12_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie,
				    const DAT12_RMR_TRIPLET *remote_iov,
				    DAT_COMPLETION_FLAGS completion_flags)
{
	DAT_LMR_TRIPLET iov[DAT12_IOV];
	DAT_RMR_TRIPLET remote;
	DAT_RETURN ret = dat12_iov_in(iov, num_segments, local_iov) ?:
			 dat12_remote_in(&remote, remote_iov);

	return ret ?: dat_ep_post_rdma_write(ep_handle, num_segments, local_iov ? iov : NULL,
					     user_cookie, remote_iov ? &remote : NULL,
					     completion_flags);
}
EXPORT_SYMBOL(dat12_ep_post_rdma_write);

/**
 * dat12_srq_post_recv - give a buffer for a message of any Endpoint of an SRQ
 * @srq_handle: as in dat_srq_post_recv()
 * @num_segments: as in dat_srq_post_recv()
 * @local_iov: as in dat_srq_post_recv()
 * @user_cookie: as in dat_srq_post_recv()
 *
 * More than 32 segments are DAT_INVALID_PARAMETER, argument 2; one of 4 GiB or more is
 * the same, argument 3.
 *
 * Context: that of dat_srq_post_recv().
 * Return: that of dat_srq_post_recv().
 */
DAT_RETURN dat12_srq_post_recv(DAT_SRQ_HANDLE srq_handle, DAT_COUNT num_segments,
			       DAT12_LMR_TRIPLET *local_iov, DAT_DTO_COOKIE user_cookie)
{
	DAT_LMR_TRIPLET iov[DAT12_IOV];
	DAT_RETURN ret = dat12_iov_in(iov, num_segments, local_iov);

	return ret ?: dat_srq_post_recv(srq_handle, num_segments, local_iov ? iov : NULL,
					user_cookie);
}
EXPORT_SYMBOL(dat12_srq_post_recv);

/**
 * dat12_cr_reject - refuse a connection, without private data
 * @cr_handle: as in dat_cr_reject()
 *
 * Context: that of dat_cr_reject().
 * Return: that of dat_cr_reject().
 */
DAT_RETURN dat12_cr_reject(DAT_CR_HANDLE cr_handle)
{
	return dat_cr_reject(cr_handle, 0, NULL);
}
EXPORT_SYMBOL(dat12_cr_reject);

static int __init dat12_init(void)
{
	return 0;
}

static void __exit dat12_exit(void)
{
	dat12_objects_exit();
}

module_init(dat12_init);
module_exit(dat12_exit);

MODULE_DESCRIPTION("DAT 1.2 for consumers of kDAPL that were written for it");
MODULE_AUTHOR("The kDAPL for Linux authors");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION(KDAPL_VERSION);
