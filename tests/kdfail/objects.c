// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Sweeps of adapters, PZs, EVDs, Endpoints without a connection, and SRQs.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/in.h>
#include <linux/in6.h>
#include <linux/kernel.h>
#include <linux/net.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "../calls.h"
#include "kdfail.h"

static void nothing_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
}

static const DAT_UPCALL_OBJECT on_nothing = { NULL, nothing_upcall };

static const DAT_EP_ATTR ep_attr = {
	.max_message_size = 4096, .max_rdma_size = 4096, .max_recv_dtos = 8,
	.max_request_dtos = 8, .max_recv_iov = 1, .max_request_iov = 1,
	.srq_soft_hw = DAT_HW_DEFAULT,
};

/* ---- adapters ---- */

static DAT_IA_HANDLE ia2;
static DAT_EVD_HANDLE async2;

static DAT_RETURN ia_open(void)
{
	DAT_RETURN ret;

	async2 = DAT_HANDLE_NULL;
	ret = dat_ia_open(kdf.name, 8, &async2, &ia2);
	if (ret == DAT_SUCCESS)
		kdf.out = ia2;
	return ret;
}

/* As a pointer it is the plain call. */
static DAT_RETURN ia_open_plain(void)
{
	DAT_RETURN ret;

	async2 = DAT_HANDLE_NULL;
	ret = (dat_ia_openv)(kdf.name, 8, &async2, &ia2, DAT_VERSION_MAJOR, DAT_VERSION_MINOR,
			     DAT_FALSE);
	if (ret == DAT_SUCCESS)
		kdf.out = ia2;
	return ret;
}

static DAT_IA_HANDLE ia3;

static DAT_RETURN ia_open_shared(void)
{
	DAT_EVD_HANDLE evd = async2;

	return dat_ia_open(kdf.name, 8, &evd, &ia3);
}

static DAT_RETURN ia_close(void)
{
	return dat_ia_close(ia2, DAT_CLOSE_ABRUPT_FLAG);
}

static DAT_RETURN ia_close_graceful(void)
{
	return dat_ia_close(ia2, DAT_CLOSE_GRACEFUL_FLAG);
}

static DAT_RETURN ia_close_both(void)
{
	return dat_ia_close(ia3, DAT_CLOSE_GRACEFUL_FLAG) ?: ia_close_graceful();
}

/* One of everything, which an abrupt close takes down. */
static DAT_RETURN ia_fill(void)
{
	const DAT_REGION_DESCRIPTION region = { .for_va = kdf.mem };
	const DAT_SRQ_ATTR srq_attr = { .max_recv_dtos = 8, .max_recv_iov = 1 };
	DAT_SRQ_ATTR attr = srq_attr;
	DAT_HANDLE pz, evd, h;
	DAT_CONN_QUAL any;

	return ia_open() ?: dat_pz_create(ia2, &pz) ?:
	       dat_evd_kcreate(ia2, 16, DAT_UPCALL_MANY, &on_nothing,
			       DAT_EVD_DEFAULT_FLAG | DAT_EVD_SOFTWARE_FLAG, &evd) ?:
	       dat_srq_create(ia2, pz, &attr, &h) ?:
	       dat_ep_create_with_srq(ia2, pz, evd, evd, evd, h, &ep_attr, &h) ?:
	       dat_ep_create(ia2, pz, evd, evd, evd, &ep_attr, &h) ?:
	       dat_lmr_kcreate(ia2, DAT_MEM_TYPE_VIRTUAL, region, MEM, pz, DAT_MEM_PRIV_ALL_FLAG,
			       DAT_VA_TYPE_VA, 0, &h, NULL, NULL, NULL, NULL) ?:
	       dat_lmr_allocate(ia2, pz, 16, DAT_LMR_SCOPE_PZ, &h) ?: dat_rmr_create(pz, &h) ?:
	       dat_psp_create_any(ia2, &any, evd, DAT_PSP_PROVIDER_FLAG, &h);
}

static DAT_RETURN ia_query(void)
{
	static DAT_PROVIDER_ATTR prov;
	static DAT_IA_ATTR attr;
	DAT_EVD_HANDLE evd;

	return dat_ia_query(kdf.ia, &evd, DAT_IA_FIELD_ALL, &attr, DAT_PROVIDER_FIELD_ALL, &prov);
}

static DAT_RETURN ia_hint(void)
{
	DAT_VLEN length;
	DAT_VADDR alignment;

	return dat_ia_memtype_hint(kdf.ia, DAT_MEM_TYPE_VIRTUAL, MEM, 0, &length, &alignment);
}

/* Of an instance of its own: there is one of each, and it stays. */
static DAT_RETURN ia_reserved(void)
{
	DAT_LMR_CONTEXT key;
	DAT_LMR_HANDLE lmr;

	return dat_ia_reserved_lmr(ia2, &lmr, &key);
}

static DAT_RETURN ia_mem_limits(void)
{
	struct kdat_mem_limits limits;

	return kdat_ia_mem_limits(kdf.ia, &limits);
}

static DAT_RETURN ia_pdata_limits(void)
{
	struct kdat_pdata_limits limits;

	return kdat_ia_pdata_limits(kdf.ia, &limits);
}

static DAT_RETURN registry_list(void)
{
	static DAT_PROVIDER_INFO info[4];
	DAT_PROVIDER_INFO *list[] = { &info[0], &info[1], &info[2], &info[3] };
	DAT_COUNT n;

	return dat_registry_list_providers(ARRAY_SIZE(list), &n, list);
}

static DAT_RETURN registry_related(void)
{
	DAT_HA_RELATIONSHIP answer;

	return dat_registry_providers_related(kdf.name, kdf.name, &answer);
}

/* ---- any object ---- */

static DAT_RETURN strerror(void)
{
	const char *major, *minor;

	return dat_strerror(DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP), &major, &minor);
}

static DAT_RETURN handle_type(void)
{
	DAT_HANDLE_TYPE type;

	return dat_get_handle_type(kdf.pz, &type);
}

static DAT_RETURN context_set(void)
{
	return dat_set_consumer_context(kdf.pz, (DAT_CONTEXT) { .as_64 = 4711 });
}

static DAT_RETURN context_get(void)
{
	DAT_CONTEXT context;

	return dat_get_consumer_context(kdf.pz, &context);
}

/* ---- PZs ---- */

static DAT_RETURN pz_create(void)
{
	return dat_pz_create(kdf.ia, &kdf.out);
}

static DAT_RETURN pz_query(void)
{
	DAT_PZ_PARAM param;

	return dat_pz_query(kdf.pz, DAT_PZ_FIELD_ALL, &param);
}

static DAT_RETURN pz_free(void)
{
	return dat_pz_free(kdf.out);
}

/* ---- EVDs ---- */

static DAT_RETURN evd_make(DAT_UPCALL_POLICY policy, DAT_EVD_FLAGS flags)
{
	return dat_evd_kcreate(kdf.ia, 100, policy, &on_nothing, flags, &kdf.out);
}

/* Its events stay until somebody takes them. */
DAT_RETURN kdf_evd_soft(void)
{
	return evd_make(DAT_UPCALL_DISABLE, DAT_EVD_SOFTWARE_FLAG);
}

static DAT_RETURN evd_many(void)
{
	return evd_make(DAT_UPCALL_MANY, DAT_EVD_SOFTWARE_FLAG);
}

static DAT_RETURN evd_dto(void)
{
	return evd_make(DAT_UPCALL_SINGLE_INSTANCE, DAT_EVD_DTO_FLAG);
}

static DAT_RETURN evd_all(void)
{
	return evd_make(DAT_UPCALL_NOTIFY, DAT_EVD_DEFAULT_FLAG);
}

static DAT_RETURN evd_ext(void)
{
	const struct kdat_evd_attr attr = {
		.context = KDAT_EVD_CONTEXT_WORKQUEUE, .comp_vector = 1,
	};

	return kdat_evd_create(kdf.ia, 100, DAT_UPCALL_MANY, &on_nothing, DAT_EVD_DTO_FLAG, &attr,
			       &kdf.out);
}

DAT_RETURN kdf_evd_free(void)
{
	return dat_evd_free(kdf.out);
}

/* One that an Endpoint uses. */
static DAT_RETURN evd_used(void)
{
	return evd_dto() ?: kdf_ep(kdf.out, 1, &kdf.other);
}

static DAT_RETURN evd_used_free(void)
{
	return dat_ep_free(kdf.other) ?: kdf_evd_free();
}

static DAT_RETURN evd_grow(void)
{
	return dat_evd_resize(kdf.out, 1000);
}

static DAT_RETURN evd_shrink(void)
{
	return dat_evd_resize(kdf.out, 1);
}

static DAT_RETURN evd_to_many(void)
{
	return dat_evd_modify_upcall(kdf.out, DAT_UPCALL_MANY, &on_nothing, DAT_UPCALL_INVOC_ANY);
}

static DAT_RETURN evd_to_single(void)
{
	return dat_evd_modify_upcall(kdf.out, DAT_UPCALL_SINGLE_INSTANCE, &on_nothing,
				     DAT_UPCALL_INVOC_NEW);
}

static DAT_RETURN evd_teardown(void)
{
	return dat_evd_modify_upcall(kdf.out, DAT_UPCALL_TEARDOWN, NULL, DAT_UPCALL_INVOC_NEW);
}

static DAT_RETURN evd_query(void)
{
	DAT_EVD_PARAM param;

	return dat_evd_query(kdf.dto, DAT_EVD_FIELD_ALL, &param);
}

static DAT_RETURN evd_post(void)
{
	const DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };

	return dat_evd_post_se(kdf.out, &event);
}

static DAT_RETURN evd_with_event(void)
{
	return kdf_evd_soft() ?: evd_post();
}

static DAT_RETURN evd_dequeue(void)
{
	DAT_EVENT event;

	return dat_evd_dequeue(kdf.out, &event);
}

/* ---- Endpoints ---- */

DAT_RETURN kdf_ep(DAT_EVD_HANDLE evd, DAT_COUNT reads, DAT_EP_HANDLE *ep)
{
	DAT_EP_ATTR attr = ep_attr;

	attr.max_rdma_read_in = reads;
	attr.max_rdma_read_out = reads;
	return dat_ep_create(kdf.ia, kdf.pz, evd, evd, kdf.conn, &attr, ep);
}

DAT_RETURN kdf_ep_create(void)
{
	return kdf_ep(kdf.dto, 0, &kdf.out);
}

static DAT_RETURN ep_create_bare(void)
{
	return dat_ep_create(kdf.ia, NULL, NULL, NULL, NULL, NULL, &kdf.out);
}

static DAT_RETURN ep_create_srq(void)
{
	return dat_ep_create_with_srq(kdf.ia, kdf.pz, kdf.dto, kdf.dto, kdf.conn, kdf.srq,
				      &ep_attr, &kdf.out);
}

DAT_RETURN kdf_ep_free(void)
{
	return dat_ep_free(kdf.out);
}

static DAT_RETURN ep_query(void)
{
	DAT_EP_PARAM param;

	return dat_ep_query(kdf.near, DAT_EP_FIELD_ALL, &param);
}

static DAT_RETURN ep_status(void)
{
	DAT_BOOLEAN recv, request;
	DAT_EP_STATE state;

	return dat_ep_get_status(kdf.near, &state, &recv, &request);
}

static DAT_RETURN ep_recv_query(void)
{
	DAT_COUNT n, span;

	return dat_ep_recv_query(kdf.near, &n, &span);
}

static DAT_RETURN ep_watermark(void)
{
	return dat_ep_set_watermark(kdf.out, 4, 6);
}

static DAT_RETURN ep_conn(void)
{
	struct kdat_conn_attr attr = KDAT_CONN_ATTR_INIT;

	attr.retry_count = 3;
	return kdat_ep_modify_conn(kdf.out, &attr);
}

static DAT_RETURN ep_query_conn(void)
{
	struct kdat_conn_attr attr;

	return kdat_ep_query_conn(kdf.out, &attr);
}

static DAT_RETURN ep_drain(void)
{
	return kdat_ep_drain(kdf.out);
}

static DAT_RETURN ep_serial(void)
{
	return kdat_ep_serialise_posts(kdf.out, DAT_TRUE);
}

static DAT_RETURN ep_grow(void)
{
	const DAT_EP_PARAM param = { .ep_attr.max_request_dtos = 32 };

	return dat_ep_modify(kdf.out, DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS, &param);
}

static DAT_RETURN ep_give_all(void)
{
	const DAT_EP_PARAM param = {
		.pz_handle = kdf.pz, .recv_evd_handle = kdf.dto, .request_evd_handle = kdf.dto,
		.connect_evd_handle = kdf.conn, .ep_attr = ep_attr,
	};

	return dat_ep_modify(kdf.out, DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE |
			     DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE |
			     DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS |
			     DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV |
			     DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS |
			     DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV, &param);
}

static DAT_RETURN ep_take_pz(void)
{
	const DAT_EP_PARAM param = { .pz_handle = NULL };

	return dat_ep_modify(kdf.out, DAT_EP_FIELD_PZ_HANDLE, &param);
}

static DAT_RETURN ep_other_evd(void)
{
	const DAT_EP_PARAM param = { .request_evd_handle = kdf.counted };

	return dat_ep_modify(kdf.out, DAT_EP_FIELD_REQUEST_EVD_HANDLE, &param);
}

static DAT_RETURN ep_in_place(void)
{
	const DAT_EP_PARAM param = { .ep_attr.max_message_size = 1000 };

	return dat_ep_modify(kdf.out, DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE, &param);
}

static DAT_RETURN ep_comm(void)
{
	const DAT_EP_PARAM param = { .comm = { kdf.addr.ss_family, SOCK_STREAM, 0 } };

	return dat_ep_modify(kdf.out, DAT_EP_FIELD_COMM, &param);
}

static DAT_RETURN ep_reset(void)
{
	return dat_ep_reset(kdf.out);
}

/* ---- SRQs ---- */

static DAT_RETURN srq_make(DAT_SRQ_HANDLE *srq)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 8, .max_recv_iov = 1, .low_watermark = 0 };

	return dat_srq_create(kdf.ia, kdf.pz, &attr, srq);
}

DAT_RETURN kdf_srq_create(void)
{
	return srq_make(&kdf.out);
}

DAT_RETURN kdf_srq_free(void)
{
	return dat_srq_free(kdf.out);
}

static DAT_RETURN srq_query(void)
{
	DAT_SRQ_PARAM param;

	return dat_srq_query(kdf.srq, DAT_SRQ_FIELD_ALL, &param);
}

static DAT_RETURN srq_grow(void)
{
	return dat_srq_resize(kdf.out, 500);
}

static DAT_RETURN srq_shrink(void)
{
	return dat_srq_resize(kdf.out, 2);
}

static DAT_RETURN srq_low(void)
{
	return dat_srq_set_lw(kdf.out, 2);
}

/* ---- all of them ---- */

const struct sweep sweeps_of_objects[] = {
	{ "dat_ia_openv", NULL, ia_open_plain, ia_close },
	{ "kdat_ia_openv", NULL, ia_open, ia_close },
	{ "dat_ia_openv, with an EVD", ia_open, ia_open_shared, ia_close_both },
	{ "dat_ia_close", ia_open, ia_close, NULL, FREES },
	{ "dat_ia_close, graceful", ia_open, ia_close_graceful, NULL, FREES },
	{ "dat_ia_close, with objects", ia_fill, ia_close, NULL, FREES },
	{ "dat_ia_query", NULL, ia_query, NULL, FRUGAL },
	{ "dat_ia_memtype_hint", NULL, ia_hint, NULL, FRUGAL },
	{ "dat_ia_reserved_lmr", ia_open, ia_reserved, ia_close },
	{ "kdat_ia_mem_limits", NULL, ia_mem_limits, NULL, FRUGAL },
	{ "kdat_ia_pdata_limits", NULL, ia_pdata_limits, NULL, FRUGAL },
	{ "dat_registry_list_providers", NULL, registry_list, NULL, FRUGAL },
	{ "dat_registry_providers_related", NULL, registry_related, NULL, FRUGAL },
	{ "dat_strerror", NULL, strerror, NULL, FRUGAL },
	{ "dat_get_handle_type", NULL, handle_type, NULL, FRUGAL },
	{ "dat_set_consumer_context", NULL, context_set, NULL, FRUGAL },
	{ "dat_get_consumer_context", NULL, context_get, NULL, FRUGAL },

	{ "dat_pz_create", NULL, pz_create, pz_free },
	{ "dat_pz_query", NULL, pz_query, NULL, FRUGAL },
	{ "dat_pz_free", pz_create, pz_free, NULL, FREES },

	{ "dat_evd_kcreate, SOFTWARE", NULL, evd_many, kdf_evd_free },
	{ "dat_evd_kcreate, DTO", NULL, evd_dto, kdf_evd_free },
	{ "dat_evd_kcreate, all", NULL, evd_all, kdf_evd_free },
	{ "kdat_evd_create", NULL, evd_ext, kdf_evd_free },
	{ "dat_evd_resize, SOFTWARE", kdf_evd_soft, evd_grow, kdf_evd_free },
	{ "dat_evd_resize, DTO", evd_dto, evd_grow, kdf_evd_free },
	{ "dat_evd_resize, in use", evd_used, evd_grow, evd_used_free },
	{ "dat_evd_resize, shrinking", evd_all, evd_shrink, kdf_evd_free },
	{ "dat_evd_modify_upcall, MANY", evd_all, evd_to_many, kdf_evd_free },
	{ "dat_evd_modify_upcall, SINGLE_INSTANCE", evd_many, evd_to_single, kdf_evd_free },
	{ "dat_evd_modify_upcall, TEARDOWN", evd_all, evd_teardown, kdf_evd_free },
	{ "dat_evd_query", NULL, evd_query, NULL, FRUGAL },
	{ "dat_evd_post_se", kdf_evd_soft, evd_post, kdf_evd_free, FRUGAL },
	{ "dat_evd_post_se, MANY", evd_many, evd_post, kdf_evd_free, FRUGAL },
	{ "dat_evd_dequeue", evd_with_event, evd_dequeue, kdf_evd_free, FRUGAL },
	{ "dat_evd_free", evd_all, kdf_evd_free, NULL, FREES },
	{ "dat_evd_free, MANY", evd_many, kdf_evd_free, NULL, FREES },

	{ "dat_ep_create", NULL, kdf_ep_create, kdf_ep_free },
	{ "dat_ep_create, bare", NULL, ep_create_bare, kdf_ep_free },
	{ "dat_ep_create_with_srq", NULL, ep_create_srq, kdf_ep_free },
	{ "dat_ep_query", NULL, ep_query, NULL, FRUGAL },
	{ "dat_ep_get_status", NULL, ep_status, NULL, FRUGAL },
	{ "dat_ep_recv_query", NULL, ep_recv_query, NULL, FRUGAL },
	{ "dat_ep_set_watermark", ep_create_srq, ep_watermark, kdf_ep_free, FRUGAL },
	{ "kdat_ep_modify_conn", kdf_ep_create, ep_conn, kdf_ep_free, FRUGAL },
	{ "kdat_ep_query_conn", kdf_ep_create, ep_query_conn, kdf_ep_free, FRUGAL },
	{ "kdat_ep_drain", kdf_ep_create, ep_drain, kdf_ep_free, FRUGAL },
	{ "kdat_ep_serialise_posts", kdf_ep_create, ep_serial, kdf_ep_free, FRUGAL },
	{ "dat_ep_modify", kdf_ep_create, ep_grow, kdf_ep_free },
	{ "dat_ep_modify, SRQ", ep_create_srq, ep_grow, kdf_ep_free },
	{ "dat_ep_modify, PZ and EVDs", ep_create_bare, ep_give_all, kdf_ep_free },
	{ "dat_ep_modify, no PZ", kdf_ep_create, ep_take_pz, kdf_ep_free },
	{ "dat_ep_modify, an EVD", kdf_ep_create, ep_other_evd, kdf_ep_free },
	{ "dat_ep_modify, in place", kdf_ep_create, ep_in_place, kdf_ep_free },
	{ "dat_ep_modify, communicator", kdf_ep_create, ep_comm, kdf_ep_free },
	{ "dat_ep_reset", kdf_ep_create, ep_reset, kdf_ep_free, FRUGAL },
	{ "dat_ep_free", kdf_ep_create, kdf_ep_free, NULL, FREES },
	{ "dat_ep_free, SRQ", ep_create_srq, kdf_ep_free, NULL, FREES },

	{ "dat_srq_create", NULL, kdf_srq_create, kdf_srq_free },
	{ "dat_srq_query", NULL, srq_query, NULL, FRUGAL },
	{ "dat_srq_resize", kdf_srq_create, srq_grow, kdf_srq_free },
	{ "dat_srq_resize, shrinking", kdf_srq_create, srq_shrink, kdf_srq_free },
	{ "dat_srq_set_lw", kdf_srq_create, srq_low, kdf_srq_free, FRUGAL },
	{ "dat_srq_free", kdf_srq_create, kdf_srq_free, NULL, FREES },
	{}
};

/* ---- the ground ---- */

static int address_find(void)
{
	DAT_IA_ATTR *attr = kzalloc(sizeof(*attr), GFP_KERNEL);
	int err;

	if (!attr)
		return -ENOMEM;
	err = TRY(dat_ia_query, kdf.ia, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, attr, 0, NULL);
	if (!err && attr->ia_address_ptr)
		memcpy(&kdf.addr, attr->ia_address_ptr,
		       attr->ia_address_ptr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
								     sizeof(struct sockaddr_in));
	kfree(attr);
	return err;
}

int objects_open(void)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;

	return TRY(dat_ia_open, kdf.name, 64, &async, &kdf.ia) ?: address_find() ?:
	       TRY(dat_pz_create, kdf.ia, &kdf.pz) ?:
	       TRY(dat_evd_kcreate, kdf.ia, 64, DAT_UPCALL_SINGLE_INSTANCE, &on_nothing,
		   DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG, &kdf.dto) ?:
	       TRY(srq_make, &kdf.srq);
}

/* A graceful close finds what a call that failed has left. */
void objects_close(void)
{
	if (kdf.srq)
		TRY(dat_srq_free, kdf.srq);
	if (kdf.dto)
		TRY(dat_evd_free, kdf.dto);
	if (kdf.pz)
		TRY(dat_pz_free, kdf.pz);
	if (kdf.ia && TRY(dat_ia_close, kdf.ia, DAT_CLOSE_GRACEFUL_FLAG))
		TRY(dat_ia_close, kdf.ia, DAT_CLOSE_ABRUPT_FLAG);
}
