// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Sweeps of the calls of DAT 1.2 that differ from their namesakes of 2.0.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <dat/kdat.h>

#include <linux/kernel.h>

#include "both.h"

STEP(ia_open, dat_ia_open(kdf.name, 8, &(DAT_EVD_HANDLE) { DAT_HANDLE_NULL }, &kdf.out))
STEP(ia_close, dat_ia_close(kdf.out, DAT_CLOSE_GRACEFUL_FLAG))
STEP(lmr_create,
	dat_lmr_kcreate(kdf.ia, DAT_MEM_TYPE_VIRTUAL,
			(DAT_REGION_DESCRIPTION) { .for_va = kdf.mem }, MEM, kdf.pz,
			DAT_MEM_PRIV_ALL_FLAG, DAT_MEM_OPTIMIZE_DONT_CARE, &kdf.out, NULL, NULL,
			NULL, NULL))
STEP(rmr_bind, dat_rmr_bind(kdf.out, segment(AT_TARGET), DAT_MEM_PRIV_REMOTE_READ_FLAG, kdf.near,
			    cookie, 0, &q.key))
STEP(evd_create, dat_evd_kcreate(kdf.ia, 16, DAT_UPCALL_MANY, &on_nothing,
				 DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG, &kdf.out))
STEP(evd_modify, dat_evd_modify_upcall(kdf.out, DAT_UPCALL_SINGLE_INSTANCE, &on_nothing))
STEP(cr_reject, dat_cr_reject(kdf.cr))

const struct sweep sweeps_of_12[] = {
	{ "dat12_registry_list_providers", NULL, registry_list, NULL, FRUGAL },
	{ "dat12_ia_openv", NULL, ia_open, ia_close },
	{ "dat12_ia_query", NULL, ia_query, NULL, NEEDY },
	{ "dat12_lmr_kcreate", NULL, lmr_create, kdf_lmr_free },
	{ "dat12_lmr_query", NULL, lmr_query, NULL, FRUGAL },
	{ "dat12_lmr_sync_rdma_read", NULL, lmr_sync_read, NULL, FRUGAL },
	{ "dat12_lmr_sync_rdma_write", NULL, lmr_sync_write, NULL, FRUGAL },
	{ "dat12_rmr_query", kdf_rmr_create, rmr_query, kdf_rmr_free, FRUGAL },
	{ "dat12_rmr_bind", kdf_rmr_create, rmr_bind, kdf_done_1_rmr, FRUGAL },
	{ "dat12_evd_kcreate", NULL, evd_create, kdf_evd_free },
	{ "dat12_evd_modify_upcall", evd_create, evd_modify, kdf_evd_free },
	{ "dat12_evd_query", evd_create, evd_query, kdf_evd_free, FRUGAL },
	{ "dat12_evd_post_se", kdf_evd_soft, evd_post, kdf_evd_free, FRUGAL },
	{ "dat12_evd_dequeue", evd_with_event, evd_dequeue, kdf_evd_free, FRUGAL },
	{ "dat12_ep_create", NULL, ep_create, kdf_ep_free },
	{ "dat12_ep_create_with_srq", NULL, ep_create_srq, kdf_ep_free },
	{ "dat12_ep_query", NULL, ep_query, NULL, FRUGAL },
	{ "dat12_ep_modify", kdf_ep_create, ep_grow, kdf_ep_free },
	{ "dat12_ep_post_send", kdf_post_far_recv, post_send, kdf_done_2, FRUGAL },
	{ "dat12_ep_post_recv", kdf_ep_create, recv_early, kdf_ep_free, FRUGAL },
	{ "dat12_ep_post_rdma_read", NULL, rdma_read, kdf_done_1, FRUGAL },
	{ "dat12_ep_post_rdma_write", NULL, rdma_write, kdf_done_1, FRUGAL },
	{ "dat12_srq_post_recv", kdf_srq_create, srq_recv, kdf_srq_free, FRUGAL },
	{ "dat12_cr_reject", kdf_request, cr_reject, kdf_after_reject, ANSWERS },
	{}
};
