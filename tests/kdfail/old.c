// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Sweeps of the calls of DAT 1.2 that differ from their namesakes of 2.0.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <dat/kdat.h>

#include <linux/kernel.h>

#include "kdfail.h"

#define SIZE	512

static void nothing_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
}

static const DAT_UPCALL_OBJECT on_nothing = { NULL, nothing_upcall };
static const DAT_CONTEXT cookie = { .as_64 = 4711 };

static const DAT_EP_ATTR ep_attr = {
	.max_message_size = 4096, .max_rdma_size = 4096, .max_recv_dtos = 8,
	.max_request_dtos = 8, .max_recv_iov = 1, .max_request_iov = 1,
	.max_rdma_read_in = 1, .max_rdma_read_out = 1, .srq_soft_hw = DAT_HW_DEFAULT,
};

/* ---- adapters ---- */

static DAT_RETURN registry_list(void)
{
	static DAT_PROVIDER_INFO info[4];
	DAT_PROVIDER_INFO *list[] = { &info[0], &info[1], &info[2], &info[3] };
	DAT_COUNT n;

	return dat_registry_list_providers(ARRAY_SIZE(list), &n, list);
}

static DAT_RETURN ia_open(void)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;

	return dat_ia_open(kdf.name, 8, &async, &kdf.out);
}

static DAT_RETURN ia_close(void)
{
	return dat_ia_close(kdf.out, DAT_CLOSE_GRACEFUL_FLAG);
}

static DAT_RETURN ia_query(void)
{
	static DAT_PROVIDER_ATTR prov;
	static DAT_IA_ATTR attr;
	DAT_EVD_HANDLE evd;

	return dat_ia_query(kdf.ia, &evd, DAT_IA_FIELD_ALL, &attr, DAT_PROVIDER_FIELD_ALL, &prov);
}

/* ---- memory ---- */

static DAT_LMR_TRIPLET segment(int page)
{
	return (DAT_LMR_TRIPLET) {
		.virtual_address = (uintptr_t)kdf.mem + page * PAGE_SIZE, .segment_length = SIZE,
		.lmr_context = kdf.key,
	};
}

static DAT_RETURN lmr_create(void)
{
	const DAT_REGION_DESCRIPTION region = { .for_va = kdf.mem };

	return dat_lmr_kcreate(kdf.ia, DAT_MEM_TYPE_VIRTUAL, region, MEM, kdf.pz,
			       DAT_MEM_PRIV_ALL_FLAG, DAT_MEM_OPTIMIZE_DONT_CARE, &kdf.out, NULL,
			       NULL, NULL, NULL);
}

static DAT_RETURN lmr_query(void)
{
	DAT_LMR_PARAM param;

	return dat_lmr_query(kdf.lmr, DAT_LMR_FIELD_ALL, &param);
}

static DAT_RETURN lmr_sync_read(void)
{
	const DAT_LMR_TRIPLET iov = segment(0);

	return dat_lmr_sync_rdma_read(kdf.ia, &iov, 1);
}

static DAT_RETURN lmr_sync_write(void)
{
	const DAT_LMR_TRIPLET iov = segment(0);

	return dat_lmr_sync_rdma_write(kdf.ia, &iov, 1);
}

static DAT_RETURN rmr_query(void)
{
	DAT_RMR_PARAM param;

	return dat_rmr_query(kdf.out, DAT_RMR_FIELD_ALL, &param);
}

static DAT_RETURN rmr_bind(void)
{
	const DAT_LMR_TRIPLET part = segment(2);
	DAT_RMR_CONTEXT key;

	return dat_rmr_bind(kdf.out, &part, DAT_MEM_PRIV_REMOTE_READ_FLAG, kdf.near, cookie, 0,
			    &key);
}

/* ---- EVDs ---- */

static DAT_RETURN evd_create(void)
{
	return dat_evd_kcreate(kdf.ia, 16, DAT_UPCALL_MANY, &on_nothing,
			       DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG, &kdf.out);
}

static DAT_RETURN evd_modify(void)
{
	return dat_evd_modify_upcall(kdf.out, DAT_UPCALL_SINGLE_INSTANCE, &on_nothing);
}

static DAT_RETURN evd_query(void)
{
	DAT_EVD_PARAM param;

	return dat_evd_query(kdf.out, DAT_EVD_FIELD_ALL, &param);
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

static DAT_RETURN ep_create(void)
{
	return dat_ep_create(kdf.ia, kdf.pz, kdf.dto, kdf.dto, kdf.conn, &ep_attr, &kdf.out);
}

static DAT_RETURN ep_create_srq(void)
{
	return dat_ep_create_with_srq(kdf.ia, kdf.pz, kdf.dto, kdf.dto, kdf.conn, kdf.srq,
				      &ep_attr, &kdf.out);
}

static DAT_RETURN ep_query(void)
{
	DAT_EP_PARAM param;

	return dat_ep_query(kdf.near, DAT_EP_FIELD_ALL, &param);
}

static DAT_RETURN ep_modify(void)
{
	const DAT_EP_PARAM param = { .ep_attr.max_request_dtos = 32 };

	return dat_ep_modify(kdf.out, DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS, &param);
}

static DAT_RETURN cr_reject(void)
{
	return dat_cr_reject(kdf.cr);
}

/* ---- posts ---- */

static DAT_RETURN post_send(void)
{
	DAT_LMR_TRIPLET iov = segment(0);

	return dat_ep_post_send(kdf.near, 1, &iov, cookie, 0);
}

static DAT_RETURN post_recv(void)
{
	DAT_LMR_TRIPLET iov = segment(1);

	return dat_ep_post_recv(kdf.out, 1, &iov, cookie, 0);
}

static DAT_RMR_TRIPLET remote(void)
{
	return (DAT_RMR_TRIPLET) {
		.target_address = (uintptr_t)kdf.mem + 2 * PAGE_SIZE, .segment_length = SIZE,
		.rmr_context = kdf.rkey,
	};
}

static DAT_RETURN rdma_read(void)
{
	const DAT_RMR_TRIPLET from = remote();
	DAT_LMR_TRIPLET iov = segment(1);

	return dat_ep_post_rdma_read(kdf.near, 1, &iov, cookie, &from, 0);
}

static DAT_RETURN rdma_write(void)
{
	const DAT_RMR_TRIPLET to = remote();
	DAT_LMR_TRIPLET iov = segment(0);

	return dat_ep_post_rdma_write(kdf.near, 1, &iov, cookie, &to, 0);
}

static DAT_RETURN srq_recv(void)
{
	DAT_LMR_TRIPLET iov = segment(1);

	return dat_srq_post_recv(kdf.out, 1, &iov, cookie);
}

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
	{ "dat12_ep_modify", kdf_ep_create, ep_modify, kdf_ep_free },
	{ "dat12_ep_post_send", kdf_post_far_recv, post_send, kdf_done_2, FRUGAL },
	{ "dat12_ep_post_recv", kdf_ep_create, post_recv, kdf_ep_free, FRUGAL },
	{ "dat12_ep_post_rdma_read", NULL, rdma_read, kdf_done_1, FRUGAL },
	{ "dat12_ep_post_rdma_write", NULL, rdma_write, kdf_done_1, FRUGAL },
	{ "dat12_srq_post_recv", kdf_srq_create, srq_recv, kdf_srq_free, FRUGAL },
	{ "dat12_cr_reject", kdf_request, cr_reject, kdf_after_reject, ANSWERS },
	{}
};
