/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Every argument of every call that is a handle, with the kind it must have, and the call with
 * all else in order: a bad handle h there must be the only thing that is said. g[] are good
 * handles, out what a call might write to. Included more than once, as all_calls.h.
 */
PROBE(dat_cr_accept, CR, dat_cr_accept(h, g[DAT_HANDLE_TYPE_EP], 0, NULL))
PROBE(dat_cr_handoff, CR, dat_cr_handoff(h, 7))
PROBE(dat_cr_query, CR, dat_cr_query(h, 0, NULL))
PROBE(dat_cr_reject, CR, dat_cr_reject(h, 0, NULL))
PROBE(dat_csp_create, IA, dat_csp_create(h, &comm, (void *)&addr, g[DAT_HANDLE_TYPE_EVD], &out))
PROBE(dat_csp_free, CSP, dat_csp_free(h))
PROBE(dat_csp_query, CSP, dat_csp_query(h, 0, NULL))
PROBE(dat_ep_common_connect, EP, dat_ep_common_connect(h, (void *)&addr, 1000000, 0, NULL))
PROBE(dat_ep_connect, EP, dat_ep_connect(h, (void *)&addr, 7, 1000000, 0, NULL, 0, 0))
PROBE(dat_ep_create, IA, dat_ep_create(h, g[DAT_HANDLE_TYPE_PZ], NULL, NULL, NULL, NULL, &out))
PROBE(dat_ep_disconnect, EP, dat_ep_disconnect(h, DAT_CLOSE_ABRUPT_FLAG))
PROBE(dat_ep_dup_connect, EP, dat_ep_dup_connect(h, g[DAT_HANDLE_TYPE_EP], 1000000, 0, NULL, 0))
PROBE(dat_ep_free, EP, dat_ep_free(h))
PROBE(dat_ep_get_status, EP, dat_ep_get_status(h, NULL, NULL, NULL))
PROBE(dat_ep_modify, EP, dat_ep_modify(h, 0, NULL))
PROBE(dat_ep_post_rdma_read, EP, dat_ep_post_rdma_read(h, 0, NULL, cookie, &rmr, 0))
PROBE(dat_ep_post_rdma_read_to_rmr, EP, dat_ep_post_rdma_read_to_rmr(h, &rmr, cookie, &rmr, 0))
PROBE(dat_ep_post_rdma_write, EP, dat_ep_post_rdma_write(h, 0, NULL, cookie, &rmr, 0))
PROBE(dat_ep_post_recv, EP, dat_ep_post_recv(h, 0, NULL, cookie, 0))
PROBE(dat_ep_post_send, EP, dat_ep_post_send(h, 0, NULL, cookie, 0))
PROBE(dat_ep_post_send_with_invalidate, EP,
	dat_ep_post_send_with_invalidate(h, 0, NULL, cookie, 0, DAT_FALSE, 0))
PROBE(dat_ep_query, EP, dat_ep_query(h, 0, NULL))
PROBE(dat_ep_recv_query, EP, dat_ep_recv_query(h, NULL, NULL))
PROBE(dat_ep_reset, EP, dat_ep_reset(h))
PROBE(dat_ep_set_watermark, EP, dat_ep_set_watermark(h, 1, 1))
PROBE(dat_evd_dequeue, EVD, dat_evd_dequeue(h, &event))
PROBE(dat_evd_free, EVD, dat_evd_free(h))
PROBE(dat_evd_kcreate, IA,
	dat_evd_kcreate(h, 8, DAT_UPCALL_DISABLE, NULL, DAT_EVD_SOFTWARE_FLAG, &out))
PROBE(dat_evd_modify_upcall, EVD, dat_evd_modify_upcall(h, DAT_UPCALL_DISABLE, NULL, 0))
PROBE(dat_evd_post_se, EVD, dat_evd_post_se(h, &event))
PROBE(dat_evd_query, EVD, dat_evd_query(h, 0, NULL))
PROBE(dat_evd_resize, EVD, dat_evd_resize(h, 8))
PROBE(dat_get_consumer_context, ANY, dat_get_consumer_context(h, &cookie))
PROBE(dat_get_handle_type, ANY, dat_get_handle_type(h, &kind))
PROBE(dat_ia_close, IA, dat_ia_close(h, DAT_CLOSE_ABRUPT_FLAG))
PROBE(dat_ia_memtype_hint, IA,
	dat_ia_memtype_hint(h, DAT_MEM_TYPE_VIRTUAL, 1, 0, &length, &length))
PROBE(dat_ia_query, IA, dat_ia_query(h, NULL, 0, NULL, 0, NULL))
PROBE(dat_ia_reserved_lmr, IA, dat_ia_reserved_lmr(h, &out, &context))
PROBE(dat_lmr_allocate, IA,
	dat_lmr_allocate(h, g[DAT_HANDLE_TYPE_PZ], 4, DAT_LMR_SCOPE_PZ, &out))
PROBE(dat_lmr_allocate, PZ,
	dat_lmr_allocate(g[DAT_HANDLE_TYPE_IA], h, 4, DAT_LMR_SCOPE_PZ, &out))
PROBE(dat_lmr_free, LMR, dat_lmr_free(h))
PROBE(dat_lmr_invalidate, LMR, dat_lmr_invalidate(h, g[DAT_HANDLE_TYPE_EP], cookie, 0))
PROBE(dat_lmr_kcreate, IA,
	dat_lmr_kcreate(h, DAT_MEM_TYPE_VIRTUAL, region, 8, g[DAT_HANDLE_TYPE_PZ], 1, 0, 0, &out,
		NULL, NULL, NULL, NULL))
PROBE(dat_lmr_kcreate, PZ,
	dat_lmr_kcreate(g[DAT_HANDLE_TYPE_IA], DAT_MEM_TYPE_VIRTUAL, region, 8, h, 1, 0, 0, &out,
		NULL, NULL, NULL, NULL))
PROBE(dat_lmr_query, LMR, dat_lmr_query(h, 0, NULL))
PROBE(dat_lmr_sync_rdma_read, IA, dat_lmr_sync_rdma_read(h, NULL, 0))
PROBE(dat_lmr_sync_rdma_write, IA, dat_lmr_sync_rdma_write(h, NULL, 0))
PROBE(dat_psp_create, IA, dat_psp_create(h, 9, g[DAT_HANDLE_TYPE_EVD], 0, &out))
PROBE(dat_psp_create, EVD, dat_psp_create(g[DAT_HANDLE_TYPE_IA], 9, h, 0, &out))
PROBE(dat_psp_create_any, IA, dat_psp_create_any(h, &qual, g[DAT_HANDLE_TYPE_EVD], 0, &out))
PROBE(dat_psp_free, PSP, dat_psp_free(h))
PROBE(dat_psp_query, PSP, dat_psp_query(h, 0, NULL))
PROBE(dat_pz_create, IA, dat_pz_create(h, &out))
PROBE(dat_pz_free, PZ, dat_pz_free(h))
PROBE(dat_pz_query, PZ, dat_pz_query(h, 0, NULL))
PROBE(dat_rmr_bind, RMR,
	dat_rmr_bind(h, g[DAT_HANDLE_TYPE_LMR], &lmr, 1, 0, g[DAT_HANDLE_TYPE_EP], cookie, 0,
		   &context))
PROBE(dat_rmr_create, PZ, dat_rmr_create(h, &out))
PROBE(dat_rmr_create_for_ep, PZ, dat_rmr_create_for_ep(h, &out))
PROBE(dat_rmr_free, RMR, dat_rmr_free(h))
PROBE(dat_rmr_query, RMR, dat_rmr_query(h, 0, NULL))
PROBE(dat_rsp_create, IA,
	dat_rsp_create(h, 9, g[DAT_HANDLE_TYPE_EP], g[DAT_HANDLE_TYPE_EVD], &out))
PROBE(dat_rsp_free, RSP, dat_rsp_free(h))
PROBE(dat_rsp_query, RSP, dat_rsp_query(h, 0, NULL))
PROBE(dat_set_consumer_context, ANY, dat_set_consumer_context(h, cookie))
PROBE(dat_srq_create, IA, dat_srq_create(h, g[DAT_HANDLE_TYPE_PZ], &srq, &out))
PROBE(dat_srq_create, PZ, dat_srq_create(g[DAT_HANDLE_TYPE_IA], h, &srq, &out))
PROBE(dat_srq_free, SRQ, dat_srq_free(h))
PROBE(dat_srq_post_recv, SRQ, dat_srq_post_recv(h, 0, NULL, cookie))
PROBE(dat_srq_query, SRQ, dat_srq_query(h, 0, NULL))
PROBE(dat_srq_resize, SRQ, dat_srq_resize(h, 8))
PROBE(dat_srq_set_lw, SRQ, dat_srq_set_lw(h, 1))
PROBE(kdat_ep_drain, EP, kdat_ep_drain(h))
PROBE(kdat_ep_modify_conn, EP, kdat_ep_modify_conn(h, &conn))
PROBE(kdat_ep_post_list, EP, kdat_ep_post_list(h, &request, 1, NULL))
PROBE(kdat_ep_query_conn, EP, kdat_ep_query_conn(h, &conn))
PROBE(kdat_ep_serialise_posts, EP, kdat_ep_serialise_posts(h, DAT_FALSE))
PROBE(kdat_evd_create, IA,
	kdat_evd_create(h, 8, DAT_UPCALL_DISABLE, NULL, DAT_EVD_SOFTWARE_FLAG, NULL, &out))
PROBE(kdat_ia_dma_map, IA, kdat_ia_dma_map(h, &conn, 8, &address))
PROBE(kdat_ia_mem_limits, IA, kdat_ia_mem_limits(h, &limits))
PROBE(kdat_ia_pdata_limits, IA, kdat_ia_pdata_limits(h, &pdata))
PROBE(kdat_lmr_by_context, IA, kdat_lmr_by_context(h, 1, &out))
PROBE(kdat_lmr_fmr_sg, LMR,
	kdat_lmr_fmr_sg(h, &sg, 1, 0, g[DAT_HANDLE_TYPE_EP], cookie, 0, NULL, NULL, NULL))
PROBE(kdat_lmr_next_contexts, LMR, kdat_lmr_next_contexts(h, &context, &context))
PROBE(dat_lmr_fmr, LMR,
	dat_lmr_fmr(h, DAT_MEM_TYPE_PHYSICAL, region, 1, 1, 0, g[DAT_HANDLE_TYPE_EP], cookie, 0,
		  NULL, NULL))
