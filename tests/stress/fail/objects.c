// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Sweeps of adapters, PZs, EVDs, Endpoints without a connection, SRQs, LMRs and RMRs.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/io.h>
#include <linux/net.h>
#include <linux/scatterlist.h>
#include <linux/vmalloc.h>
#include <net/net_namespace.h>

#include "../../lib/consumer.h"
#include "kdfail.h"

static const DAT_EP_ATTR ep_attr = {
	.max_message_size = 4096, .max_rdma_size = 4096, .max_recv_dtos = 8,
	.max_request_dtos = 8, .max_recv_iov = 1, .max_request_iov = 1,
	.srq_soft_hw = DAT_HW_DEFAULT,
};

void kdf_nothing(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
}

static const DAT_UPCALL_OBJECT on_nothing = { NULL, kdf_nothing };

/* ---- adapters ---- */

static DAT_EVD_HANDLE async2;
static DAT_IA_HANDLE ia3;

static DAT_RETURN opened(DAT_RETURN ret)
{
	if (ret != DAT_SUCCESS)
		kdf.out = NULL;
	return ret;
}

STEP(no_async, ((async2 = DAT_HANDLE_NULL), DAT_SUCCESS))
STEP(ia_open, no_async() ?: opened(dat_ia_open(kdf.name, 8, &async2, &kdf.out)))
/* As a pointer it is the plain call. */
STEP(ia_open_plain,
	no_async() ?: opened((dat_ia_openv)(kdf.name, 8, &async2, &kdf.out, DAT_VERSION_MAJOR,
					 DAT_VERSION_MINOR, DAT_FALSE)))
STEP(ia_open_to_plain,
	no_async() ?: opened((kdat_ia_open_to)(&init_net, (struct sockaddr *)&kdf.addr, NULL, 8,
					       &async2, &kdf.out)))
STEP(ia_open_to,
	no_async() ?: opened(kdat_ia_open_to(&init_net, (struct sockaddr *)&kdf.addr, NULL, 8,
					     &async2, &kdf.out)))
STEP(ia_open_shared, dat_ia_open(kdf.name, 8, &(DAT_EVD_HANDLE) { async2 }, &ia3))
STEP(ia_close, dat_ia_close(kdf.out, DAT_CLOSE_ABRUPT_FLAG))
STEP(ia_close_graceful, dat_ia_close(kdf.out, DAT_CLOSE_GRACEFUL_FLAG))
STEP(ia_close_both, dat_ia_close(ia3, DAT_CLOSE_GRACEFUL_FLAG) ?: ia_close_graceful())

static DAT_RETURN lmr_make(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, DAT_MEM_TYPE type,
			   DAT_REGION_DESCRIPTION region, DAT_VLEN length, DAT_LMR_HANDLE *lmr)
{
	return dat_lmr_kcreate(ia, type, region, length, pz, DAT_MEM_PRIV_ALL_FLAG,
			       DAT_VA_TYPE_VA, 0, lmr, NULL, NULL, NULL, NULL);
}

/* One of everything, which an abrupt close takes down. */
static DAT_RETURN ia_fill(void)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 8, .max_recv_iov = 1 };
	DAT_HANDLE ia, pz, evd, h;
	DAT_CONN_QUAL any;
	DAT_RETURN ret = ia_open();

	ia = kdf.out;
	return ret ?: dat_pz_create(ia, &pz) ?:
	       dat_evd_kcreate(ia, 16, DAT_UPCALL_MANY, &on_nothing,
			       DAT_EVD_DEFAULT_FLAG | DAT_EVD_SOFTWARE_FLAG, &evd) ?:
	       dat_srq_create(ia, pz, &attr, &h) ?:
	       dat_ep_create_with_srq(ia, pz, evd, evd, evd, h, &ep_attr, &h) ?:
	       dat_ep_create(ia, pz, evd, evd, evd, &ep_attr, &h) ?:
	       lmr_make(ia, pz, DAT_MEM_TYPE_VIRTUAL,
			(DAT_REGION_DESCRIPTION) { .for_va = kdf.mem }, MEM, &h) ?:
	       dat_lmr_allocate(ia, pz, 16, DAT_LMR_SCOPE_PZ, &h) ?: dat_rmr_create(pz, &h) ?:
	       dat_psp_create_any(ia, &any, evd, DAT_PSP_PROVIDER_FLAG, &h);
}

/* Of an instance of its own: there is one of each, and it stays. */
STEP(ia_reserved, dat_ia_reserved_lmr(kdf.out, &(DAT_LMR_HANDLE) { NULL },
				      &(DAT_LMR_CONTEXT) { 0 }))

/* ---- any object ---- */

STEP(pz_create, dat_pz_create(kdf.ia, &kdf.out))
STEP(pz_free, dat_pz_free(kdf.out))

/* ---- EVDs ---- */

static DAT_RETURN evd_make(DAT_UPCALL_POLICY policy, DAT_EVD_FLAGS flags)
{
	return dat_evd_kcreate(kdf.ia, 100, policy, &on_nothing, flags, &kdf.out);
}

/* Its events stay until somebody takes them. */
STEP(evd_soft, evd_make(DAT_UPCALL_DISABLE, DAT_EVD_SOFTWARE_FLAG))
STEP(evd_many, evd_make(DAT_UPCALL_MANY, DAT_EVD_SOFTWARE_FLAG))
STEP(evd_dto, evd_make(DAT_UPCALL_SINGLE_INSTANCE, DAT_EVD_DTO_FLAG))
STEP(evd_all, evd_make(DAT_UPCALL_NOTIFY, DAT_EVD_DEFAULT_FLAG))

static const struct kdat_evd_attr evd_attr = {
	.context = KDAT_EVD_CONTEXT_WORKQUEUE, .comp_vector = 1,
};

STEP(evd_ext, kdat_evd_create(kdf.ia, 100, DAT_UPCALL_MANY, &on_nothing, DAT_EVD_DTO_FLAG,
			      &evd_attr, &kdf.out))
KDF(evd_free, dat_evd_free(kdf.out))
/* One that an Endpoint uses. */
STEP(evd_used, evd_dto() ?: kdf_ep(kdf.out, 1, &kdf.other))
STEP(evd_used_free, dat_ep_free(kdf.other) ?: kdf_evd_free())
STEP(evd_grow, dat_evd_resize(kdf.out, 1000))
STEP(evd_shrink, dat_evd_resize(kdf.out, 1))
STEP(evd_to_many,
	dat_evd_modify_upcall(kdf.out, DAT_UPCALL_MANY, &on_nothing, DAT_UPCALL_INVOC_ANY))
STEP(evd_to_single,
	dat_evd_modify_upcall(kdf.out, DAT_UPCALL_SINGLE_INSTANCE, &on_nothing,
			      DAT_UPCALL_INVOC_NEW))
STEP(evd_teardown,
	dat_evd_modify_upcall(kdf.out, DAT_UPCALL_TEARDOWN, NULL, DAT_UPCALL_INVOC_NEW))

/* ---- Endpoints ---- */

DAT_RETURN kdf_ep(DAT_EVD_HANDLE evd, DAT_COUNT reads, DAT_EP_HANDLE *ep)
{
	DAT_EP_ATTR attr = ep_attr;

	attr.max_rdma_read_in = reads;
	attr.max_rdma_read_out = reads;
	return dat_ep_create(kdf.ia, kdf.pz, evd, evd, kdf.conn, &attr, ep);
}

static DAT_RETURN ep_modify(DAT_EP_PARAM_MASK mask, DAT_EP_PARAM param)
{
	return dat_ep_modify(kdf.out, mask, &param);
}

#define EP_FIELD_QUEUES	(DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE |	\
			 DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE | \
			 DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS |				\
			 DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV |				\
			 DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS |			\
			 DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV)

KDF(ep_create, dat_ep_create(kdf.ia, kdf.pz, kdf.dto, kdf.dto, kdf.conn, &ep_attr, &kdf.out))
STEP(ep_create_srq, dat_ep_create_with_srq(kdf.ia, kdf.pz, kdf.dto, kdf.dto, kdf.conn, kdf.srq,
					   &ep_attr, &kdf.out))
STEP(ep_create_bare, dat_ep_create(kdf.ia, NULL, NULL, NULL, NULL, NULL, &kdf.out))
KDF(ep_free, dat_ep_free(kdf.out))

STEP(ep_grow, ep_modify(DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS,
			(DAT_EP_PARAM) { .ep_attr.max_request_dtos = 32 }))
STEP(ep_give_all, ep_modify(EP_FIELD_QUEUES, (DAT_EP_PARAM) {
		.pz_handle = kdf.pz, .recv_evd_handle = kdf.dto, .request_evd_handle = kdf.dto,
		.connect_evd_handle = kdf.conn, .ep_attr = ep_attr }))
STEP(ep_take_pz, ep_modify(DAT_EP_FIELD_PZ_HANDLE, (DAT_EP_PARAM) {}))
STEP(ep_other_evd, ep_modify(DAT_EP_FIELD_REQUEST_EVD_HANDLE,
			     (DAT_EP_PARAM) { .request_evd_handle = kdf.counted }))
STEP(ep_in_place, ep_modify(DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE,
			    (DAT_EP_PARAM) { .ep_attr.max_message_size = 1000 }))
STEP(ep_comm, ep_modify(DAT_EP_FIELD_COMM,
			(DAT_EP_PARAM) { .comm = { kdf.addr.ss_family, SOCK_STREAM, 0 } }))

/* ---- SRQs ---- */

static DAT_RETURN srq_make(DAT_SRQ_HANDLE *srq)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 8, .max_recv_iov = 1, .low_watermark = 0 };

	return dat_srq_create(kdf.ia, kdf.pz, &attr, srq);
}

KDF(srq_create, srq_make(&kdf.out))
KDF(srq_free, dat_srq_free(kdf.out))
STEP(srq_grow, dat_srq_resize(kdf.out, 500))
STEP(srq_shrink, dat_srq_resize(kdf.out, 2))

/* ---- LMRs and RMRs, as far as they need no connection ---- */

/* More pages than a page of a scatterlist has entries. */
#define SCATTERED	(200 * PAGE_SIZE)

static u8 *scattered;
static struct kdat_dma_map mapped;

#define LMR(type, member, value, length)					\
	lmr_make(kdf.ia, kdf.pz, DAT_MEM_TYPE_##type,				\
		 (DAT_REGION_DESCRIPTION) { .member = value }, length, &kdf.out)

STEP(lmr_virtual, LMR(VIRTUAL, for_va, kdf.mem, MEM))
STEP(lmr_scattered, LMR(VIRTUAL, for_va, scattered, SCATTERED))
STEP(lmr_of_lmr, LMR(LMR, for_lmr_handle, kdf.lmr, 0))

static DAT_RETURN lmr_physical(void)
{
	DAT_PADDR pages[2] = { virt_to_phys(kdf.mem), virt_to_phys(kdf.mem) + PAGE_SIZE };

	return LMR(PHYSICAL, for_physical, pages, 2);
}

static DAT_RETURN lmr_var_pages(void)
{
	DAT_PADDR page = virt_to_phys(kdf.mem);
	const DAT_PHYSICAL_VAR_PAGES array = { .page_size = PAGE_SIZE, .pages = &page };

	return LMR(PHYSICAL_VAR_PAGES, for_array, array, 1);
}

static DAT_RETURN lmr_platform(void)
{
	struct scatterlist sg[2];
	struct sg_table sgt = { .sgl = sg, .nents = 2, .orig_nents = 2 };

	sg_init_table(sg, 2);
	sg_set_buf(&sg[0], kdf.mem, PAGE_SIZE);
	sg_set_buf(&sg[1], kdf.mem + 2 * PAGE_SIZE, PAGE_SIZE);
	return LMR(PLATFORM, for_platform, &sgt, 2 * PAGE_SIZE);
}

STEP(dma_map, kdat_ia_dma_map(kdf.ia, &mapped, kdf.mem, PAGE_SIZE))
STEP(dma_unmap, kdat_ia_dma_unmap(kdf.ia, &mapped))
STEP(lmr_ia, LMR(IA, for_ia, mapped.address, PAGE_SIZE))
STEP(lmr_local, dat_lmr_kcreate(kdf.ia, DAT_MEM_TYPE_VIRTUAL,
				(DAT_REGION_DESCRIPTION) { .for_va = kdf.mem }, 64, kdf.pz,
				DAT_MEM_PRIV_LOCAL_READ_FLAG, DAT_VA_TYPE_VA, DAT_MEM_OPTIMIZE_IA,
				&kdf.out, NULL, NULL, NULL, NULL))
KDF(lmr_free, dat_lmr_free(kdf.out))
STEP(lmr_ia_free, kdf_lmr_free() ?: dma_unmap())

/* The first LMR of a PZ has the connection built that registers them. */
STEP(pz_other, dat_pz_create(kdf.ia, &kdf.other))
STEP(lmr_first, lmr_make(kdf.ia, kdf.other, DAT_MEM_TYPE_VIRTUAL,
			 (DAT_REGION_DESCRIPTION) { .for_va = kdf.mem }, MEM, &kdf.out))
STEP(lmr_first_free, kdf_lmr_free() ?: dat_pz_free(kdf.other))
KDF(lmr_allocate, dat_lmr_allocate(kdf.ia, kdf.pz, 16, DAT_LMR_SCOPE_PZ, &kdf.out))
STEP(lmr_allocate_large, dat_lmr_allocate(kdf.ia, kdf.pz, 200, DAT_LMR_SCOPE_EP, &kdf.out))
KDF(rmr_create, dat_rmr_create(kdf.pz, &kdf.out))
STEP(rmr_create_for_ep, dat_rmr_create_for_ep(kdf.pz, &kdf.out))
KDF(rmr_free, dat_rmr_free(kdf.out))

/* ---- all of them ---- */

const struct sweep sweeps_of_objects[] = {
	{ "dat_ia_openv", NULL, ia_open_plain, ia_close },
	{ "kdat_ia_openv", NULL, ia_open, ia_close },
	{ "dat_ia_openv, with an EVD", ia_open, ia_open_shared, ia_close_both },
	{ "dat_ia_close", ia_open, ia_close, NULL, FREES },
	{ "dat_ia_close, graceful", ia_open, ia_close_graceful, NULL, FREES },
	{ "dat_ia_close, with objects", ia_fill, ia_close, NULL, FREES },
	{ "dat_ia_reserved_lmr", ia_open, ia_reserved, ia_close },
	{ "kdat_ia_open_to", NULL, ia_open_to_plain, ia_close },
	{ "kdat_ia_open_to_as", NULL, ia_open_to, ia_close },

	{ "dat_pz_create", NULL, pz_create, pz_free },
	{ "dat_pz_free", pz_create, pz_free, NULL, FREES },

	{ "dat_evd_kcreate, SOFTWARE", NULL, evd_many, kdf_evd_free },
	{ "dat_evd_kcreate, DTO", NULL, evd_dto, kdf_evd_free },
	{ "dat_evd_kcreate, all", NULL, evd_all, kdf_evd_free },
	{ "kdat_evd_create", NULL, evd_ext, kdf_evd_free },
	{ "dat_evd_resize, SOFTWARE", evd_soft, evd_grow, kdf_evd_free },
	{ "dat_evd_resize, DTO", evd_dto, evd_grow, kdf_evd_free },
	{ "dat_evd_resize, in use", evd_used, evd_grow, evd_used_free },
	{ "dat_evd_resize, shrinking", evd_all, evd_shrink, kdf_evd_free },
	{ "dat_evd_modify_upcall, MANY", evd_all, evd_to_many, kdf_evd_free },
	{ "dat_evd_modify_upcall, SINGLE_INSTANCE", evd_many, evd_to_single, kdf_evd_free },
	{ "dat_evd_modify_upcall, TEARDOWN", evd_all, evd_teardown, kdf_evd_free },
	{ "dat_evd_free", evd_all, kdf_evd_free, NULL, FREES },
	{ "dat_evd_free, MANY", evd_many, kdf_evd_free, NULL, FREES },

	{ "dat_ep_create", NULL, kdf_ep_create, kdf_ep_free },
	{ "dat_ep_create, bare", NULL, ep_create_bare, kdf_ep_free },
	{ "dat_ep_create_with_srq", NULL, ep_create_srq, kdf_ep_free },
	{ "dat_ep_modify", kdf_ep_create, ep_grow, kdf_ep_free },
	{ "dat_ep_modify, SRQ", ep_create_srq, ep_grow, kdf_ep_free },
	{ "dat_ep_modify, PZ and EVDs", ep_create_bare, ep_give_all, kdf_ep_free },
	{ "dat_ep_modify, no PZ", kdf_ep_create, ep_take_pz, kdf_ep_free },
	{ "dat_ep_modify, an EVD", kdf_ep_create, ep_other_evd, kdf_ep_free },
	{ "dat_ep_modify, in place", kdf_ep_create, ep_in_place, kdf_ep_free },
	{ "dat_ep_modify, communicator", kdf_ep_create, ep_comm, kdf_ep_free },
	{ "dat_ep_free", kdf_ep_create, kdf_ep_free, NULL, FREES },
	{ "dat_ep_free, SRQ", ep_create_srq, kdf_ep_free, NULL, FREES },

	{ "dat_srq_create", NULL, kdf_srq_create, kdf_srq_free },
	{ "dat_srq_resize", kdf_srq_create, srq_grow, kdf_srq_free },
	{ "dat_srq_resize, shrinking", kdf_srq_create, srq_shrink, kdf_srq_free },
	{ "dat_srq_free", kdf_srq_create, kdf_srq_free, NULL, FREES },

	{ "dat_lmr_kcreate, first of a PZ", pz_other, lmr_first, lmr_first_free },
	{ "dat_lmr_kcreate, VIRTUAL", NULL, lmr_virtual, kdf_lmr_free },
	{ "dat_lmr_kcreate, VIRTUAL and scattered", NULL, lmr_scattered, kdf_lmr_free },
	{ "dat_lmr_kcreate, PHYSICAL", NULL, lmr_physical, kdf_lmr_free },
	{ "dat_lmr_kcreate, PHYSICAL_VAR_PAGES", NULL, lmr_var_pages, kdf_lmr_free },
	{ "dat_lmr_kcreate, PLATFORM", NULL, lmr_platform, kdf_lmr_free },
	{ "dat_lmr_kcreate, LMR", NULL, lmr_of_lmr, kdf_lmr_free },
	{ "dat_lmr_kcreate, IA", dma_map, lmr_ia, lmr_ia_free },
	{ "dat_lmr_kcreate, not registered", NULL, lmr_local, kdf_lmr_free },
	{ "dat_lmr_allocate", NULL, kdf_lmr_allocate, kdf_lmr_free },
	{ "dat_lmr_allocate, large", NULL, lmr_allocate_large, kdf_lmr_free },
	{ "dat_lmr_free", lmr_virtual, kdf_lmr_free, NULL, FREES },
	{ "dat_lmr_free, of dat_lmr_allocate", kdf_lmr_allocate, kdf_lmr_free, NULL, FREES },
	{ "dat_rmr_create", NULL, kdf_rmr_create, kdf_rmr_free },
	{ "dat_rmr_create_for_ep", NULL, rmr_create_for_ep, kdf_rmr_free },
	{ "dat_rmr_free", kdf_rmr_create, kdf_rmr_free, NULL, FREES },
	{}
};

/* ---- the ground ---- */

int objects_open(void)
{
	struct test_ia ia;
	int err = test_ia_open(&ia, kdf.name);

	kdf.ia = ia.h;
	kdf.pz = ia.pz;
	kdf.addr = ia.addr;
	kdf.mem = kzalloc(MEM, GFP_KERNEL);
	scattered = vzalloc(SCATTERED);
	if (!kdf.mem || !scattered)
		return fail("no memory");
	return err ?:
	       test_evd(&ia, 64, DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG, kdf_nothing, NULL,
			&kdf.dto) ?:
	       TRY(srq_make, &kdf.srq) ?:
	       test_lmr(&ia, kdf.pz, kdf.mem, MEM, DAT_MEM_PRIV_ALL_FLAG, &kdf.lmr, &kdf.key,
			&kdf.rkey);
}

/* A graceful close finds what a call that failed has left. */
void objects_close(void)
{
	FREE(dat_lmr_free, &kdf.lmr);
	FREE(dat_srq_free, &kdf.srq);
	FREE(dat_evd_free, &kdf.dto);
	FREE(dat_pz_free, &kdf.pz);
	if (kdf.ia && TRY(dat_ia_close, kdf.ia, DAT_CLOSE_GRACEFUL_FLAG))
		TRY(dat_ia_close, kdf.ia, DAT_CLOSE_ABRUPT_FLAG);
	vfree(scattered);
	kfree(kdf.mem);
}
