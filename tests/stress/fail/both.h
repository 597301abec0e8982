/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Calls that are written in the same way by a consumer of DAT 2.0 and by one of 1.2. Each file
 * that includes this gets them with the types of its own version.
 */
#ifndef KDFAIL_BOTH_H
#define KDFAIL_BOTH_H

#include "kdfail.h"

static void nothing_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
}

static const DAT_UPCALL_OBJECT on_nothing __maybe_unused = { NULL, nothing_upcall };
static const DAT_CONTEXT cookie __maybe_unused = { .as_64 = 4711 };

static const DAT_EP_ATTR ep_attr __maybe_unused = {
	.max_message_size = 4096, .max_rdma_size = 4096, .max_recv_dtos = 8,
	.max_request_dtos = 8, .max_recv_iov = 1, .max_request_iov = 1,
	.srq_soft_hw = DAT_HW_DEFAULT,
};

/* Where queries put what nobody reads. */
static struct {
	DAT_PROVIDER_INFO info[4];
	DAT_PROVIDER_ATTR prov;
	DAT_IA_ATTR ia;
	DAT_EVD_HANDLE evd;
	union {
		DAT_EP_PARAM ep;
		DAT_EVD_PARAM evd_param;
		DAT_LMR_PARAM lmr;
		DAT_RMR_PARAM rmr;
	};
	DAT_COUNT n, span;
	DAT_RMR_CONTEXT key, rkey;
} q;

static DAT_PROVIDER_INFO *list[] __maybe_unused = {
	&q.info[0], &q.info[1], &q.info[2], &q.info[3]
};

static __maybe_unused DAT_LMR_TRIPLET *range(u32 at, u32 length)
{
	static DAT_LMR_TRIPLET iov;

	iov = (DAT_LMR_TRIPLET) {
		.virtual_address = (uintptr_t)kdf.mem + at, .segment_length = length,
		.lmr_context = kdf.key,
	};
	return &iov;
}

static __maybe_unused DAT_LMR_TRIPLET *segment(int page)
{
	return range(page * PAGE_SIZE, SIZE);
}

/* By one key; there are two at a time. */
static __maybe_unused const DAT_RMR_TRIPLET *remote(DAT_RMR_CONTEXT key)
{
	static DAT_RMR_TRIPLET ranges[2];
	static int n;
	DAT_RMR_TRIPLET *range = &ranges[n++ & 1];

	*range = (DAT_RMR_TRIPLET) { .rmr_context = key, .segment_length = SIZE };
#ifdef KDAPL_DAT_1_2
	range->target_address = (uintptr_t)kdf.mem + AT_TARGET * PAGE_SIZE;
#else
	range->virtual_address = (uintptr_t)kdf.mem + AT_TARGET * PAGE_SIZE;
#endif
	return range;
}

STEP(registry_list, dat_registry_list_providers(ARRAY_SIZE(list), &q.n, list))
STEP(ia_query,
	dat_ia_query(kdf.ia, &q.evd, DAT_IA_FIELD_ALL, &q.ia, DAT_PROVIDER_FIELD_ALL, &q.prov))
STEP(lmr_query, dat_lmr_query(kdf.lmr, DAT_LMR_FIELD_ALL, &q.lmr))
STEP(lmr_sync_read, dat_lmr_sync_rdma_read(kdf.ia, range(0, MEM), 1))
STEP(lmr_sync_write, dat_lmr_sync_rdma_write(kdf.ia, range(0, MEM), 1))
STEP(rmr_query, dat_rmr_query(kdf.out, DAT_RMR_FIELD_ALL, &q.rmr))

STEP(evd_query, dat_evd_query(kdf.out, DAT_EVD_FIELD_ALL, &q.evd_param))
STEP(evd_post, dat_evd_post_se(kdf.out, &(DAT_EVENT) { .event_number = DAT_SOFTWARE_EVENT }))
STEP(evd_with_event, kdf_evd_soft() ?: evd_post())
STEP(evd_dequeue, dat_evd_dequeue(kdf.out, &(DAT_EVENT) {}))

STEP(ep_create, dat_ep_create(kdf.ia, kdf.pz, kdf.dto, kdf.dto, kdf.conn, &ep_attr, &kdf.out))
STEP(ep_create_srq, dat_ep_create_with_srq(kdf.ia, kdf.pz, kdf.dto, kdf.dto, kdf.conn, kdf.srq,
					   &ep_attr, &kdf.out))
STEP(ep_query, dat_ep_query(kdf.near, DAT_EP_FIELD_ALL, &q.ep))
STEP(ep_grow, dat_ep_modify(kdf.out, DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS,
			    &(DAT_EP_PARAM) { .ep_attr.max_request_dtos = 32 }))

STEP(post_send, dat_ep_post_send(kdf.near, 1, segment(AT_OUT), cookie, 0))
STEP(recv_early, dat_ep_post_recv(kdf.out, 1, segment(AT_IN), cookie, 0))
STEP(rdma_write, dat_ep_post_rdma_write(kdf.near, 1, segment(AT_OUT), cookie, remote(kdf.rkey), 0))
STEP(rdma_read, dat_ep_post_rdma_read(kdf.near, 1, segment(AT_IN), cookie, remote(kdf.rkey), 0))
STEP(srq_recv, dat_srq_post_recv(kdf.out, 1, segment(AT_IN), cookie))

#endif
