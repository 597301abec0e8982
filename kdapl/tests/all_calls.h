/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Every call of the API, for the tests that ask something of all of them. Included more than
 * once, without a guard: a test defines those of the macros below that it needs, the others are
 * nothing. tools/check-api compares the rows with the headers.
 *
 * CALL(call, returns): what it may return beside DAT_SUCCESS by its documentation, as bits of
 * tests/stress/torture/outcomes.h.
 *
 * HANDLE_ARG(call, parameter, kind, subtype, expression): one of its handles, for each parameter
 * that is one. Anything but a live handle of this kind is refused with DAT_INVALID_HANDLE and
 * DAT_INVALID_HANDLE<subtype>. The expression is the call with the handle h there and all else in
 * order: GOOD(kind) are good handles, the other names are locals, see bad_handle_test.c.
 * NULL_ARG() is the same for one that may be NULL.
 *
 * IN_STATES(call, outcomes, expression): what comes of it for an EP in each state, for each call
 * that takes one; see calls_test.c.
 */
#ifndef CALL
#define CALL(...)
#endif
#ifndef HANDLE_ARG
#define HANDLE_ARG(...)
#endif
#ifndef NULL_ARG
#define NULL_ARG(...)
#endif
#ifndef IN_STATES
#define IN_STATES(...)
#endif

CALL(dat_cr_accept, HANDLE | PARAM | STATE | GONE)
HANDLE_ARG(dat_cr_accept, cr_handle, CR, _CR, dat_cr_accept(h, GOOD(EP), 0, NULL))
HANDLE_ARG(dat_cr_accept, ep_handle, EP, _EP, dat_cr_accept(GOOD(CR), h, 0, NULL))
IN_STATES(dat_cr_accept, "D  IS IS IS IS IS IS IS IS", call_accept(c))
CALL(dat_cr_handoff, HANDLE | PARAM | SCARCE | GONE)
HANDLE_ARG(dat_cr_handoff, cr_handle, CR, _CR, dat_cr_handoff(h, 7))
CALL(dat_cr_query, HANDLE | PARAM)
HANDLE_ARG(dat_cr_query, cr_handle, CR, _CR, dat_cr_query(h, 0, NULL))
CALL(dat_cr_reject, HANDLE | PARAM)
HANDLE_ARG(dat_cr_reject, cr_handle, CR, _CR, dat_cr_reject(h, 0, NULL))
CALL(dat_csp_create, HANDLE | PARAM | COMM | ADDRESS | TAKEN | SCARCE | GONE)
HANDLE_ARG(dat_csp_create, ia_handle, IA, _IA,
	dat_csp_create(h, &comm, (void *)&addr, GOOD(EVD), &out))
HANDLE_ARG(dat_csp_create, evd_handle, EVD, _EVD_CR,
	dat_csp_create(GOOD(IA), &comm, (void *)&addr, h, &out))
CALL(dat_csp_free, HANDLE)
HANDLE_ARG(dat_csp_free, csp_handle, CSP, _CSP, dat_csp_free(h))
CALL(dat_csp_query, HANDLE | PARAM)
HANDLE_ARG(dat_csp_query, csp_handle, CSP, _CSP, dat_csp_query(h, 0, NULL))
CALL(dat_ep_common_connect, HANDLE | PARAM | ADDRESS | MODEL | STATE | SCARCE | GONE)
HANDLE_ARG(dat_ep_common_connect, ep_handle, EP, _EP,
	dat_ep_common_connect(h, (void *)&addr, 1000000, 0, NULL))
IN_STATES(dat_ep_common_connect, "IA IS IS IS IS IS IS IS IS",
	dat_ep_common_connect(ep, (void *)&addr, 1000000, 0, NULL))
CALL(dat_ep_connect, HANDLE | PARAM | ADDRESS | MODEL | STATE | SCARCE | GONE)
HANDLE_ARG(dat_ep_connect, ep_handle, EP, _EP,
	dat_ep_connect(h, (void *)&addr, 7, 1000000, 0, NULL, 0, 0))
IN_STATES(dat_ep_connect, "IA IS IS IS IS IS IS IS IS",
	dat_ep_connect(ep, (void *)&addr, 7, 1000000, 0, NULL, 0, 0))
CALL(dat_ep_create, HANDLE | PARAM | MODEL | SCARCE | GONE)
HANDLE_ARG(dat_ep_create, ia_handle, IA, _IA, dat_ep_create(h, NULL, NULL, NULL, NULL, NULL, &out))
NULL_ARG(dat_ep_create, pz_handle, PZ, _PZ,
	dat_ep_create(GOOD(IA), h, NULL, NULL, NULL, NULL, &out))
NULL_ARG(dat_ep_create, recv_completion_evd_handle, EVD, _EVD_RECV,
	dat_ep_create(GOOD(IA), NULL, h, NULL, NULL, NULL, &out))
NULL_ARG(dat_ep_create, request_completion_evd_handle, EVD, _EVD_REQUEST,
	dat_ep_create(GOOD(IA), NULL, NULL, h, NULL, NULL, &out))
NULL_ARG(dat_ep_create, connect_evd_handle, EVD, _EVD_CONN,
	dat_ep_create(GOOD(IA), NULL, NULL, NULL, h, NULL, &out))
CALL(dat_ep_create_with_srq, HANDLE | PARAM | MODEL | SCARCE | GONE)
HANDLE_ARG(dat_ep_create_with_srq, ia_handle, IA, _IA,
	dat_ep_create_with_srq(h, NULL, NULL, NULL, NULL, GOOD(SRQ), NULL, &out))
NULL_ARG(dat_ep_create_with_srq, pz_handle, PZ, _PZ,
	dat_ep_create_with_srq(GOOD(IA), h, NULL, NULL, NULL, GOOD(SRQ), NULL, &out))
NULL_ARG(dat_ep_create_with_srq, recv_evd_handle, EVD, _EVD_RECV,
	dat_ep_create_with_srq(GOOD(IA), NULL, h, NULL, NULL, GOOD(SRQ), NULL, &out))
NULL_ARG(dat_ep_create_with_srq, request_evd_handle, EVD, _EVD_REQUEST,
	dat_ep_create_with_srq(GOOD(IA), NULL, NULL, h, NULL, GOOD(SRQ), NULL, &out))
NULL_ARG(dat_ep_create_with_srq, connect_evd_handle, EVD, _EVD_CONN,
	dat_ep_create_with_srq(GOOD(IA), NULL, NULL, NULL, h, GOOD(SRQ), NULL, &out))
HANDLE_ARG(dat_ep_create_with_srq, srq_handle, SRQ, _SRQ,
	dat_ep_create_with_srq(GOOD(IA), NULL, NULL, NULL, NULL, h, NULL, &out))
CALL(dat_ep_disconnect, HANDLE | PARAM | STATE | GONE)
HANDLE_ARG(dat_ep_disconnect, ep_handle, EP, _EP, dat_ep_disconnect(h, DAT_CLOSE_ABRUPT_FLAG))
IN_STATES(dat_ep_disconnect, "IS IS IS D  IS DP =  =  D",
	dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG))
IN_STATES(dat_ep_disconnect, "IS IS IS D  IS D  D  =  D",
	dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG))
CALL(dat_ep_dup_connect, HANDLE | PARAM | ADDRESS | MODEL | STATE | SCARCE | GONE)
HANDLE_ARG(dat_ep_dup_connect, ep_handle, EP, _EP,
	dat_ep_dup_connect(h, GOOD(EP), 1000000, 0, NULL, 0))
HANDLE_ARG(dat_ep_dup_connect, ep_dup_handle, EP, _EP,
	dat_ep_dup_connect(GOOD(EP), h, 1000000, 0, NULL, 0))
IN_STATES(dat_ep_dup_connect, "IA IS IS IS IS IS IS IS IS",
	dat_ep_dup_connect(ep, c->connected, 1000000, 0, NULL, 0))
IN_STATES(dat_ep_dup_connect, "IS IS IS IS IS IA IS IS IS",
	dat_ep_dup_connect(c->fresh, ep, 1000000, 0, NULL, 0))
CALL(dat_ep_free, HANDLE | STATE)
HANDLE_ARG(dat_ep_free, ep_handle, EP, _EP, dat_ep_free(h))
IN_STATES(dat_ep_free, "F  IS IS F  IS F  F  F  F", dat_ep_free(ep))
CALL(dat_ep_get_status, HANDLE)
HANDLE_ARG(dat_ep_get_status, ep_handle, EP, _EP, dat_ep_get_status(h, NULL, NULL, NULL))
IN_STATES(dat_ep_get_status, "=  =  =  =  =  =  =  =  =", dat_ep_get_status(ep, NULL, NULL, NULL))
CALL(dat_ep_modify, HANDLE | PARAM | STATE | MODEL | COMM | SCARCE | GONE)
HANDLE_ARG(dat_ep_modify, ep_handle, EP, _EP, dat_ep_modify(h, 0, NULL))
IN_STATES(dat_ep_modify, "=  IS IS IS =  IS IS IS IS",
	dat_ep_modify(ep, DAT_EP_FIELD_PZ_HANDLE, &param))
IN_STATES(dat_ep_modify, "=  =  =  IS =  IS IS IS IS", dat_ep_modify(ep, CALL_EVDS, &param))
IN_STATES(dat_ep_modify, "=  =  =  IS =  IS IS IS IS", dat_ep_modify(ep, CALL_SIZES, &param))
IN_STATES(dat_ep_modify, "=  =  =  =  =  =  =  =  =",
	dat_ep_modify(ep, DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW, &param))
IN_STATES(dat_ep_modify, "=  IS IS IS IS IS IS IS IS",
	dat_ep_modify(ep, DAT_EP_FIELD_EP_ATTR_NUM_TRANSPORT_ATTR, &param))
CALL(dat_ep_post_rdma_read, HANDLE | PARAM | STATE | RIGHTS | ZONE | LENGTH | SCARCE | GONE)
HANDLE_ARG(dat_ep_post_rdma_read, ep_handle, EP, _EP,
	dat_ep_post_rdma_read(h, 0, NULL, cookie, &rmr, 0))
IN_STATES(dat_ep_post_rdma_read, "IS IS IS IS IS =  IS =  IS",
	dat_ep_post_rdma_read(ep, 1, &iov, cookie, &rmr, 0))
CALL(dat_ep_post_rdma_read_to_rmr, HANDLE | PARAM | STATE | RIGHTS | ZONE | LENGTH | SCARCE | GONE)
HANDLE_ARG(dat_ep_post_rdma_read_to_rmr, ep_handle, EP, _EP,
	dat_ep_post_rdma_read_to_rmr(h, &rmr, cookie, &rmr, 0))
IN_STATES(dat_ep_post_rdma_read_to_rmr, "IS IS IS IS IS PV IS PV IS",
	dat_ep_post_rdma_read_to_rmr(ep, &rmr, cookie, &rmr, 0))
CALL(dat_ep_post_rdma_write, HANDLE | PARAM | STATE | RIGHTS | ZONE | LENGTH | SCARCE | GONE)
HANDLE_ARG(dat_ep_post_rdma_write, ep_handle, EP, _EP,
	dat_ep_post_rdma_write(h, 0, NULL, cookie, &rmr, 0))
IN_STATES(dat_ep_post_rdma_write, "IS IS IS IS IS =  IS =  IS",
	dat_ep_post_rdma_write(ep, 1, &iov, cookie, &rmr, 0))
CALL(dat_ep_post_recv, HANDLE | PARAM | STATE | RIGHTS | ZONE | SCARCE | GONE)
HANDLE_ARG(dat_ep_post_recv, ep_handle, EP, _EP, dat_ep_post_recv(h, 0, NULL, cookie, 0))
IN_STATES(dat_ep_post_recv, "=  =  =  =  =  =  =  =  =", dat_ep_post_recv(ep, 1, &iov, cookie, 0))
CALL(dat_ep_post_send, HANDLE | PARAM | STATE | RIGHTS | ZONE | SCARCE | GONE)
HANDLE_ARG(dat_ep_post_send, ep_handle, EP, _EP, dat_ep_post_send(h, 0, NULL, cookie, 0))
IN_STATES(dat_ep_post_send, "IS IS IS IS IS =  IS =  IS", dat_ep_post_send(ep, 1, &iov, cookie, 0))
CALL(dat_ep_post_send_with_invalidate, HANDLE | PARAM | STATE | RIGHTS | ZONE | SCARCE | GONE)
HANDLE_ARG(dat_ep_post_send_with_invalidate, ep_handle, EP, _EP,
	dat_ep_post_send_with_invalidate(h, 0, NULL, cookie, 0, DAT_FALSE, 0))
IN_STATES(dat_ep_post_send_with_invalidate, "IS IS IS IS IS =  IS =  IS",
	dat_ep_post_send_with_invalidate(ep, 1, &iov, cookie, 0, DAT_TRUE, 1))
CALL(dat_ep_query, HANDLE | PARAM)
HANDLE_ARG(dat_ep_query, ep_handle, EP, _EP, dat_ep_query(h, 0, NULL))
IN_STATES(dat_ep_query, "=  =  =  =  =  =  =  =  =", call_query(c))
CALL(dat_ep_recv_query, HANDLE)
HANDLE_ARG(dat_ep_recv_query, ep_handle, EP, _EP, dat_ep_recv_query(h, NULL, NULL))
IN_STATES(dat_ep_recv_query, "=  =  =  =  =  =  =  =  =", dat_ep_recv_query(ep, &count, &range))
CALL(dat_ep_reset, HANDLE | STATE | SCARCE | GONE)
HANDLE_ARG(dat_ep_reset, ep_handle, EP, _EP, dat_ep_reset(h))
IN_STATES(dat_ep_reset, "=  IS IS IS IS IS IS U  IS", dat_ep_reset(ep))
CALL(dat_ep_set_watermark, HANDLE | PARAM | MODEL | GONE)
HANDLE_ARG(dat_ep_set_watermark, ep_handle, EP, _EP, dat_ep_set_watermark(h, 1, 1))
IN_STATES(dat_ep_set_watermark, "MN MN MN MN MN MN MN MN MN", dat_ep_set_watermark(ep, 1, 1))
CALL(dat_evd_dequeue, HANDLE | PARAM | STATE | EMPTY)
HANDLE_ARG(dat_evd_dequeue, evd_handle, EVD, 1, dat_evd_dequeue(h, &event))
CALL(dat_evd_free, HANDLE | STATE)
HANDLE_ARG(dat_evd_free, evd_handle, EVD, 1, dat_evd_free(h))
CALL(dat_evd_kcreate, HANDLE | PARAM | SCARCE | GONE)
HANDLE_ARG(dat_evd_kcreate, ia_handle, IA, _IA,
	dat_evd_kcreate(h, 8, DAT_UPCALL_DISABLE, NULL, DAT_EVD_SOFTWARE_FLAG, &out))
CALL(dat_evd_modify_upcall, HANDLE | PARAM | STATE)
HANDLE_ARG(dat_evd_modify_upcall, evd_handle, EVD, 1,
	dat_evd_modify_upcall(h, DAT_UPCALL_DISABLE, NULL, 0))
CALL(dat_evd_post_se, HANDLE | PARAM | FULL)
HANDLE_ARG(dat_evd_post_se, evd_handle, EVD, 1, dat_evd_post_se(h, &event))
CALL(dat_evd_query, HANDLE | PARAM)
HANDLE_ARG(dat_evd_query, evd_handle, EVD, 1, dat_evd_query(h, 0, NULL))
CALL(dat_evd_resize, HANDLE | PARAM | STATE | SCARCE)
HANDLE_ARG(dat_evd_resize, evd_handle, EVD, 1, dat_evd_resize(h, 8))
CALL(dat_get_consumer_context, HANDLE | PARAM)
HANDLE_ARG(dat_get_consumer_context, dat_handle, ANY, 1, dat_get_consumer_context(h, &cookie))
CALL(dat_get_handle_type, HANDLE | PARAM)
HANDLE_ARG(dat_get_handle_type, dat_handle, ANY, 1, dat_get_handle_type(h, &kind))
IN_STATES(dat_get_handle_type, "=  =  =  =  =  =  =  =  =", call_any(c))
CALL(dat_ia_close, HANDLE | PARAM | STATE)
HANDLE_ARG(dat_ia_close, ia_handle, IA, _IA, dat_ia_close(h, DAT_CLOSE_ABRUPT_FLAG))
CALL(dat_ia_memtype_hint, HANDLE | PARAM | MODEL)
HANDLE_ARG(dat_ia_memtype_hint, ia_handle, IA, _IA,
	dat_ia_memtype_hint(h, DAT_MEM_TYPE_VIRTUAL, 1, 0, &length, &length))
CALL(dat_ia_openv, HANDLE | PARAM | ABSENT | SCARCE)
CALL(dat_ia_query, HANDLE | PARAM)
HANDLE_ARG(dat_ia_query, ia_handle, IA, _IA, dat_ia_query(h, NULL, 0, NULL, 0, NULL))
CALL(dat_ia_reserved_lmr, HANDLE | PARAM | SCARCE | GONE)
HANDLE_ARG(dat_ia_reserved_lmr, ia_handle, IA, _IA, dat_ia_reserved_lmr(h, &out, &context))
CALL(dat_lmr_allocate, HANDLE | PARAM | SCARCE | GONE)
HANDLE_ARG(dat_lmr_allocate, ia_handle, IA, _IA,
	dat_lmr_allocate(h, GOOD(PZ), 4, DAT_LMR_SCOPE_PZ, &out))
HANDLE_ARG(dat_lmr_allocate, pz_handle, PZ, _PZ,
	dat_lmr_allocate(GOOD(IA), h, 4, DAT_LMR_SCOPE_PZ, &out))
CALL(dat_lmr_fmr, HANDLE | RESERVED | PARAM | STATE | ZONE | SCARCE | GONE)
HANDLE_ARG(dat_lmr_fmr, lmr_handle, LMR, _LMR,
	dat_lmr_fmr(h, DAT_MEM_TYPE_PHYSICAL, region, 1, 1, 0, GOOD(EP), cookie, 0, NULL, NULL))
HANDLE_ARG(dat_lmr_fmr, ep_handle, EP, _EP,
	dat_lmr_fmr(GOOD(LMR), DAT_MEM_TYPE_PHYSICAL, region, 1, 1, 0, h, cookie, 0, NULL, NULL))
IN_STATES(dat_lmr_fmr, "IS IS IS IS IS =  IS =  IS", call_fmr(c))
CALL(dat_lmr_free, HANDLE | STATE | RESERVED)
HANDLE_ARG(dat_lmr_free, lmr_handle, LMR, _LMR, dat_lmr_free(h))
CALL(dat_lmr_invalidate, HANDLE | RESERVED | PARAM | STATE | ZONE | SCARCE | GONE)
HANDLE_ARG(dat_lmr_invalidate, lmr_handle, LMR, _LMR, dat_lmr_invalidate(h, GOOD(EP), cookie, 0))
HANDLE_ARG(dat_lmr_invalidate, ep_handle, EP, _EP, dat_lmr_invalidate(GOOD(LMR), h, cookie, 0))
IN_STATES(dat_lmr_invalidate, "IS IS IS IS IS =  IS LF IS",
	call_fmr(c) ?: dat_lmr_invalidate(c->fmr, ep, cookie, 0))
CALL(dat_lmr_kcreate, HANDLE | PARAM | STATE | RESERVED | MODEL | SCARCE | GONE)
HANDLE_ARG(dat_lmr_kcreate, ia_handle, IA, _IA,
	dat_lmr_kcreate(h, DAT_MEM_TYPE_VIRTUAL, region, 8, GOOD(PZ), 1, 0, 0, &out, NULL, NULL,
		NULL, NULL))
HANDLE_ARG(dat_lmr_kcreate, pz_handle, PZ, _PZ,
	dat_lmr_kcreate(GOOD(IA), DAT_MEM_TYPE_VIRTUAL, region, 8, h, 1, 0, 0, &out, NULL, NULL,
		NULL, NULL))
CALL(dat_lmr_query, HANDLE | PARAM)
HANDLE_ARG(dat_lmr_query, lmr_handle, LMR, _LMR, dat_lmr_query(h, 0, NULL))
CALL(dat_lmr_sync_rdma_read, HANDLE | PARAM | GONE)
HANDLE_ARG(dat_lmr_sync_rdma_read, ia_handle, IA, _IA, dat_lmr_sync_rdma_read(h, NULL, 0))
CALL(dat_lmr_sync_rdma_write, HANDLE | PARAM | GONE)
HANDLE_ARG(dat_lmr_sync_rdma_write, ia_handle, IA, _IA, dat_lmr_sync_rdma_write(h, NULL, 0))
CALL(dat_psp_create, HANDLE | PARAM | TAKEN | ADDRESS | SCARCE | GONE)
HANDLE_ARG(dat_psp_create, ia_handle, IA, _IA, dat_psp_create(h, 9, GOOD(EVD), 0, &out))
HANDLE_ARG(dat_psp_create, evd_handle, EVD, _EVD_CR, dat_psp_create(GOOD(IA), 9, h, 0, &out))
CALL(dat_psp_create_any, HANDLE | PARAM | TAKEN | ADDRESS | SCARCE | GONE)
HANDLE_ARG(dat_psp_create_any, ia_handle, IA, _IA, dat_psp_create_any(h, &qual, GOOD(EVD), 0, &out))
HANDLE_ARG(dat_psp_create_any, evd_handle, EVD, _EVD_CR,
	dat_psp_create_any(GOOD(IA), &qual, h, 0, &out))
CALL(dat_psp_free, HANDLE)
HANDLE_ARG(dat_psp_free, psp_handle, PSP, _PSP, dat_psp_free(h))
CALL(dat_psp_query, HANDLE | PARAM)
HANDLE_ARG(dat_psp_query, psp_handle, PSP, _PSP, dat_psp_query(h, 0, NULL))
CALL(dat_pz_create, HANDLE | PARAM | SCARCE | GONE)
HANDLE_ARG(dat_pz_create, ia_handle, IA, _IA, dat_pz_create(h, &out))
CALL(dat_pz_free, HANDLE | STATE)
HANDLE_ARG(dat_pz_free, pz_handle, PZ, _PZ, dat_pz_free(h))
CALL(dat_pz_query, HANDLE | PARAM)
HANDLE_ARG(dat_pz_query, pz_handle, PZ, _PZ, dat_pz_query(h, 0, NULL))
CALL(dat_registry_list_providers, PARAM)
CALL(dat_registry_providers_related, PARAM | ABSENT)
CALL(dat_rmr_bind, HANDLE | RESERVED | PARAM | STATE | ZONE | RIGHTS | SCARCE | GONE)
HANDLE_ARG(dat_rmr_bind, rmr_handle, RMR, _RMR,
	dat_rmr_bind(h, GOOD(LMR), &lmr, 1, 0, GOOD(EP), cookie, 0, &context))
HANDLE_ARG(dat_rmr_bind, lmr_handle, LMR, _LMR,
	dat_rmr_bind(GOOD(RMR), h, &(DAT_LMR_TRIPLET){ .segment_length = 8 }, 1, 0, GOOD(EP),
		cookie, 0, &context))
HANDLE_ARG(dat_rmr_bind, ep_handle, EP, _EP,
	dat_rmr_bind(GOOD(RMR), GOOD(LMR), &lmr, 1, 0, h, cookie, 0, &context))
IN_STATES(dat_rmr_bind, "IS IS IS IS IS =  IS =  IS",
	dat_rmr_bind(c->rmr, c->env->mem[KD_RW].lmr, &iov, DAT_MEM_PRIV_REMOTE_READ_FLAG, 0, ep,
		cookie, 0, &context))
CALL(dat_rmr_create, HANDLE | PARAM | SCARCE | GONE)
HANDLE_ARG(dat_rmr_create, pz_handle, PZ, _PZ, dat_rmr_create(h, &out))
CALL(dat_rmr_create_for_ep, HANDLE | PARAM | SCARCE | GONE)
HANDLE_ARG(dat_rmr_create_for_ep, pz_handle, PZ, _PZ, dat_rmr_create_for_ep(h, &out))
CALL(dat_rmr_free, HANDLE)
HANDLE_ARG(dat_rmr_free, rmr_handle, RMR, _RMR, dat_rmr_free(h))
CALL(dat_rmr_query, HANDLE | PARAM)
HANDLE_ARG(dat_rmr_query, rmr_handle, RMR, _RMR, dat_rmr_query(h, 0, NULL))
CALL(dat_rsp_create, HANDLE | PARAM | STATE | TAKEN | ADDRESS | SCARCE | GONE)
HANDLE_ARG(dat_rsp_create, ia_handle, IA, _IA, dat_rsp_create(h, 9, GOOD(EP), GOOD(EVD), &out))
NULL_ARG(dat_rsp_create, ep_handle, EP, _EP, dat_rsp_create(GOOD(IA), 9, h, GOOD(EVD), &out))
HANDLE_ARG(dat_rsp_create, evd_handle, EVD, _EVD_CR, dat_rsp_create(GOOD(IA), 9, GOOD(EP), h, &out))
IN_STATES(dat_rsp_create, "IA IS IS IS IS IS IS IS IS",
	dat_rsp_create(c->env->ia, 7, ep, c->cr_evd, &out))
CALL(dat_rsp_free, HANDLE)
HANDLE_ARG(dat_rsp_free, rsp_handle, RSP, _RSP, dat_rsp_free(h))
CALL(dat_rsp_query, HANDLE | PARAM)
HANDLE_ARG(dat_rsp_query, rsp_handle, RSP, _RSP, dat_rsp_query(h, 0, NULL))
CALL(dat_set_consumer_context, HANDLE)
HANDLE_ARG(dat_set_consumer_context, dat_handle, ANY, 1, dat_set_consumer_context(h, cookie))
CALL(dat_srq_create, HANDLE | PARAM | MODEL | SCARCE | GONE)
HANDLE_ARG(dat_srq_create, ia_handle, IA, _IA, dat_srq_create(h, GOOD(PZ), &srq, &out))
HANDLE_ARG(dat_srq_create, pz_handle, PZ, _PZ, dat_srq_create(GOOD(IA), h, &srq, &out))
CALL(dat_srq_free, HANDLE | STATE)
HANDLE_ARG(dat_srq_free, srq_handle, SRQ, _SRQ, dat_srq_free(h))
CALL(dat_srq_post_recv, HANDLE | PARAM | RIGHTS | ZONE | SCARCE | GONE)
HANDLE_ARG(dat_srq_post_recv, srq_handle, SRQ, _SRQ, dat_srq_post_recv(h, 0, NULL, cookie))
CALL(dat_srq_query, HANDLE | PARAM)
HANDLE_ARG(dat_srq_query, srq_handle, SRQ, _SRQ, dat_srq_query(h, 0, NULL))
CALL(dat_srq_resize, HANDLE | PARAM | STATE | SCARCE | GONE)
HANDLE_ARG(dat_srq_resize, srq_handle, SRQ, _SRQ, dat_srq_resize(h, 8))
CALL(dat_srq_set_lw, HANDLE | PARAM | GONE)
HANDLE_ARG(dat_srq_set_lw, srq_handle, SRQ, _SRQ, dat_srq_set_lw(h, 1))
CALL(dat_strerror, PARAM)
CALL(kdat_ep_drain, HANDLE | STATE)
HANDLE_ARG(kdat_ep_drain, ep_handle, EP, _EP, kdat_ep_drain(h))
IN_STATES(kdat_ep_drain, "=  IS IS D  IS D  -  =  D", kdat_ep_drain(ep))
CALL(kdat_ep_modify_conn, HANDLE | PARAM | STATE | GONE)
HANDLE_ARG(kdat_ep_modify_conn, ep_handle, EP, _EP, kdat_ep_modify_conn(h, &conn))
IN_STATES(kdat_ep_modify_conn, "=  =  =  IS =  IS IS IS IS", kdat_ep_modify_conn(ep, &conn))
CALL(kdat_ep_post_list, HANDLE | PARAM | STATE | RIGHTS | ZONE | LENGTH | RESERVED | SCARCE | GONE)
HANDLE_ARG(kdat_ep_post_list, ep_handle, EP, _EP, kdat_ep_post_list(h, &request, 1, NULL))
IN_STATES(kdat_ep_post_list, "IS IS IS IS IS =  IS =  IS", kdat_ep_post_list(ep, &request, 1, NULL))
CALL(kdat_ep_post_rdma_write_immed, HANDLE | PARAM | STATE | RIGHTS | ZONE | LENGTH | MODEL |
	SCARCE | GONE)
HANDLE_ARG(kdat_ep_post_rdma_write_immed, ep_handle, EP, _EP,
	kdat_ep_post_rdma_write_immed(h, 0, NULL, cookie, &rmr, 0, 0))
IN_STATES(kdat_ep_post_rdma_write_immed, "IS IS IS IS IS =  IS =  IS",
	kdat_ep_post_rdma_write_immed(ep, 1, &iov, cookie, &rmr, 0, 1))
CALL(kdat_ep_query_conn, HANDLE | PARAM)
HANDLE_ARG(kdat_ep_query_conn, ep_handle, EP, _EP, kdat_ep_query_conn(h, &conn))
IN_STATES(kdat_ep_query_conn, "=  =  =  =  =  =  =  =  =", kdat_ep_query_conn(ep, &conn))
CALL(kdat_ep_serialise_posts, HANDLE | STATE | GONE)
HANDLE_ARG(kdat_ep_serialise_posts, ep_handle, EP, _EP, kdat_ep_serialise_posts(h, DAT_FALSE))
IN_STATES(kdat_ep_serialise_posts, "=  =  =  IS =  IS IS IS IS",
	kdat_ep_serialise_posts(ep, DAT_FALSE))
CALL(kdat_evd_create, HANDLE | PARAM | SCARCE | GONE)
HANDLE_ARG(kdat_evd_create, ia_handle, IA, _IA,
	kdat_evd_create(h, 8, DAT_UPCALL_DISABLE, NULL, DAT_EVD_SOFTWARE_FLAG, NULL, &out))
CALL(kdat_ia_dma_map, HANDLE | PARAM | SCARCE | GONE)
HANDLE_ARG(kdat_ia_dma_map, ia_handle, IA, _IA, kdat_ia_dma_map(h, &map, &conn, 8))
CALL(kdat_ia_dma_unmap, HANDLE | PARAM)
HANDLE_ARG(kdat_ia_dma_unmap, ia_handle, IA, _IA, kdat_ia_dma_unmap(h, &map))
CALL(kdat_ia_device, HANDLE | PARAM | GONE)
HANDLE_ARG(kdat_ia_device, ia_handle, IA, _IA, kdat_ia_device(h, &parent))
CALL(kdat_ia_mem_limits, HANDLE | PARAM | GONE)
HANDLE_ARG(kdat_ia_mem_limits, ia_handle, IA, _IA, kdat_ia_mem_limits(h, &limits))
CALL(kdat_ia_pdata_limits, HANDLE | PARAM)
HANDLE_ARG(kdat_ia_pdata_limits, ia_handle, IA, _IA, kdat_ia_pdata_limits(h, &pdata))
CALL(kdat_ia_open_to, HANDLE | PARAM | ADDRESS | ABSENT | SCARCE)
CALL(kdat_lmr_by_context, HANDLE | PARAM)
HANDLE_ARG(kdat_lmr_by_context, ia_handle, IA, _IA, kdat_lmr_by_context(h, 1, &out))
CALL(kdat_lmr_fmr_sg, HANDLE | RESERVED | PARAM | STATE | ZONE | SCARCE | GONE)
HANDLE_ARG(kdat_lmr_fmr_sg, lmr_handle, LMR, _LMR,
	kdat_lmr_fmr_sg(h, &sg, 1, 0, GOOD(EP), cookie, 0, NULL, NULL, NULL))
HANDLE_ARG(kdat_lmr_fmr_sg, ep_handle, EP, _EP,
	kdat_lmr_fmr_sg(GOOD(LMR), &sg, 1, 0, h, cookie, 0, NULL, NULL, NULL))
IN_STATES(kdat_lmr_fmr_sg, "IS IS IS IS IS =  IS =  IS",
	kdat_lmr_fmr_sg(c->fmr, &sg, 1, 0, ep, cookie, 0, NULL, NULL, NULL))
CALL(kdat_lmr_next_contexts, HANDLE | RESERVED | STATE)
HANDLE_ARG(kdat_lmr_next_contexts, lmr_handle, LMR, _LMR,
	kdat_lmr_next_contexts(h, &context, &context))
CALL(kdat_wait_unused, HANDLE)
HANDLE_ARG(kdat_wait_unused, dat_handle, ANY, 1, kdat_wait_unused(h))
#undef CALL
#undef HANDLE_ARG
#undef NULL_ARG
#undef IN_STATES
