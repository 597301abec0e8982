// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The passive side as far as it takes no peer: service points of every kind, what a request tells,
 * and every way to answer it. The peers are made up (kd_conn.c), so an accepted request always
 * ends with ACCEPT_COMPLETION_ERROR. With real ones see kdtest-cr and kdtest-rsp.
 */
#include "kd_conn.h"
#include "kd_upcall.h"

#define PA_QUAL		100
#define PA_OTHER	200

static const char pa_pdata[] = "what the peer has to say";

static void pa_expect_address(struct kd_env *env, DAT_IA_ADDRESS_PTR address, u32 want)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)address;

	KUNIT_ASSERT_NOT_NULL(env->test, in);
	KUNIT_EXPECT_EQ(env->test, ntohl(in->sin_addr.s_addr), want);
}

/* The request is there, all of it. Returns the CR. */
static DAT_CR_HANDLE pa_expect_cr(struct kd_env *env, DAT_EVD_HANDLE evd, DAT_HANDLE sp,
				  DAT_CONN_QUAL qual)
{
	const DAT_CR_ARRIVAL_EVENT_DATA *data;
	struct kunit *test = env->test;
	DAT_CONTEXT context;
	DAT_CR_PARAM param;
	DAT_EVENT event;

	kd_expect_event(env, evd, DAT_CONNECTION_REQUEST_EVENT, &event);
	data = &event.event_data.cr_arrival_event_data;
	KUNIT_EXPECT_PTR_EQ(test, data->sp_handle.psp_handle, sp);
	KUNIT_EXPECT_EQ(test, (u64)data->conn_qual, (u64)qual);
	KUNIT_EXPECT_EQ(test, (int)data->truncate_flag, (int)DAT_FALSE);
	pa_expect_address(env, data->local_ia_address_ptr, 0x0a000001);
	memset(&param, 0, sizeof(param));
	KD_EXPECT_OK(test, dat_cr_query(data->cr_handle, DAT_CR_FIELD_ALL, &param));
	pa_expect_address(env, param.remote_ia_address_ptr, 0x0a000002);
	KUNIT_EXPECT_EQ(test, (u64)param.remote_port_qual, (u64)KD_PEER_PORT);
	KUNIT_ASSERT_EQ(test, (int)param.private_data_size, (int)sizeof(pa_pdata));
	KUNIT_EXPECT_EQ(test, memcmp(param.private_data, pa_pdata, sizeof(pa_pdata)), 0);
	context.as_64 = 1;
	KD_EXPECT_OK(test, dat_get_consumer_context(data->cr_handle, &context));
	KUNIT_EXPECT_EQ(test, context.as_64, 0ULL);
	return data->cr_handle;
}

static DAT_CR_HANDLE pa_request(struct kd_env *env, DAT_HANDLE sp, DAT_EVD_HANDLE evd,
				DAT_CONN_QUAL qual, bool rsp)
{
	KUNIT_ASSERT_TRUE(env->test, kd_request(env, sp, pa_pdata, sizeof(pa_pdata)));
	return pa_expect_cr(env, evd, rsp ? DAT_HANDLE_NULL : sp, qual);
}

static void pa_expect_dead(struct kd_env *env, DAT_HANDLE handle)
{
	DAT_HANDLE_TYPE type;

	KD_BAD_HANDLE(env->test, dat_get_handle_type(handle, &type), 1);
}

/* The EP was accepted, and nobody was there. */
static void pa_expect_no_peer(struct kd_env *env, DAT_EP_HANDLE ep)
{
	DAT_EVENT event;

	kd_expect_event(env, env->conn, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR, &event);
	KUNIT_EXPECT_PTR_EQ(env->test, event.event_data.connect_event_data.ep_handle, ep);
	KD_EXPECT_STATE(env, ep, DISCONNECTED);
	KD_EXPECT_EMPTY(env->test, env->conn);
}

static DAT_RETURN pa_accept(DAT_CR_HANDLE cr, DAT_EP_HANDLE ep)
{
	return dat_cr_accept(cr, ep, 0, NULL);
}

static void pa_expect_peer(struct kd_env *env, const DAT_EP_PARAM *param)
{
	pa_expect_address(env, param->remote_ia_address_ptr, 0x0a000002);
	KUNIT_EXPECT_EQ(env->test, (u64)param->remote_port_qual, (u64)KD_PEER_PORT);
	pa_expect_address(env, param->local_ia_address_ptr, 0x0a000001);
	KUNIT_EXPECT_EQ(env->test, (u64)param->local_port_qual, (u64)PA_QUAL);
}

/* What a request came through, and what becomes of it. */
enum pa_kind { PA_PSP, PA_PSP_PROVIDER, PA_RSP, PA_RSP_PROVIDER, PA_KINDS };
enum pa_way { PA_ACCEPT, PA_REJECT, PA_HANDOFF, PA_HANDOFF_FULL, PA_WAYS };

/**
 * struct pa - a case with service points for requests that are passed on
 * @env: the usual
 * @cr_evd: EVD of the one under test
 * @evds: theirs
 * @psps: PSPs with the consumer's and with the provider's EPs, and one without room
 */
struct pa {
	struct kd_env *env;
	DAT_EVD_HANDLE cr_evd;
	DAT_EVD_HANDLE evds[3];
	DAT_PSP_HANDLE psps[3];
};

static DAT_HANDLE pa_sp(struct kd_env *env, DAT_EVD_HANDLE cr_evd, enum pa_kind kind)
{
	bool provider = kind & 1;

	if (kind >= PA_RSP)
		return kd_rsp(env, cr_evd, PA_QUAL, provider ? DAT_HANDLE_NULL : env->ep);
	return kd_psp(env, cr_evd, PA_QUAL,
		      provider ? DAT_PSP_PROVIDER_FLAG : DAT_PSP_CONSUMER_FLAG);
}

/* A provider's EP as it came, with nothing of its own; then with all it needs. */
static void pa_made(struct pa *pa, DAT_CR_HANDLE cr, DAT_EP_HANDLE ep)
{
	static const DAT_HANDLE none[5];
	struct kunit *test = pa->env->test;
	DAT_CONTEXT context = { .as_64 = 1 };
	DAT_EP_PARAM param;

	KD_EXPECT_OK(test, dat_get_consumer_context(ep, &context));
	KUNIT_EXPECT_EQ(test, context.as_64, 0ULL);
	kd_query(pa->env, ep, &param);
	KUNIT_EXPECT_PTR_EQ(test, param.ia_handle, pa->env->ia);
	KUNIT_EXPECT_EQ(test, memcmp(&param.pz_handle, none, sizeof(none)), 0);
	/* usable as it is, and what the request asks for */
	KUNIT_EXPECT_GT(test, param.ep_attr.max_recv_dtos, 0);
	KUNIT_EXPECT_GT(test, param.ep_attr.max_request_dtos, 0);
	KUNIT_EXPECT_GT(test, param.ep_attr.max_recv_iov, 0);
	KUNIT_EXPECT_GT(test, param.ep_attr.max_request_iov, 0);
	KUNIT_EXPECT_EQ(test, (int)param.ep_attr.max_rdma_read_in, KD_PEER_READS_OUT);
	KUNIT_EXPECT_EQ(test, (int)param.ep_attr.max_rdma_read_out, KD_PEER_READS_IN);
	/* not with another EP, nor by its name, nor before it can be used */
	KD_BAD_HANDLE(test, pa_accept(cr, pa->env->ep), _EP);
	KD_BAD_HANDLE(test, pa_accept(cr, ep), _EP);
	KD_BAD_HANDLE(test, pa_accept(cr, NULL), _EP);
	KD_EXPECT_OK(test, kd_configure(pa->env, ep));
	KD_EXPECT_OK(test, kd_post(ep, KD_RECV, 0, NULL, 1, NULL, 0));
	KD_EXPECT_STATE(pa->env, ep, TENTATIVE_CONNECTION_PENDING);
}

/* On to @psp at @qual, where it comes with an EP or not. Returns the new CR. */
static DAT_CR_HANDLE pa_pass(struct kd_env *env, DAT_CR_HANDLE cr, DAT_PSP_HANDLE psp,
			     DAT_EVD_HANDLE evd, DAT_CONN_QUAL qual, bool made)
{
	DAT_EP_HANDLE old = kd_cr_ep(env, cr), ep;
	DAT_CR_HANDLE next;

	KD_EXPECT_OK(env->test, dat_cr_handoff(cr, qual));
	next = pa_expect_cr(env, evd, psp, qual);
	pa_expect_dead(env, cr);
	if (old && old != env->ep)
		pa_expect_dead(env, old);
	KD_EXPECT_STATE(env, env->ep, UNCONNECTED);
	ep = kd_cr_ep(env, next);
	KUNIT_EXPECT_EQ(env->test, !!ep, made);
	if (ep)
		KD_EXPECT_STATE(env, ep, TENTATIVE_CONNECTION_PENDING);
	return next;
}

/* Where no request can go; to where it came from; to every kind of PSP. */
static DAT_CR_HANDLE pa_pass_all(struct pa *pa, enum pa_kind kind, DAT_HANDLE sp, DAT_CR_HANDLE cr)
{
	static const DAT_CONN_QUAL nobody[] = {
		0, 1, PA_QUAL + 1, 65536 + PA_OTHER, ~0ULL, PA_OTHER + 3, PA_OTHER + 4,
		PA_OTHER + 5, PA_QUAL,
	};
	struct kd_env *env = pa->env;
	struct kunit *test = env->test;
	DAT_RSP_HANDLE rsp = kd_rsp(env, pa->cr_evd, PA_OTHER + 3, DAT_HANDLE_NULL);
	DAT_CSP_HANDLE csp = kd_csp(env, pa->cr_evd, PA_OTHER + 4);
	int i;

	for (i = 0; i < ARRAY_SIZE(nobody); i++)
		if (kind >= PA_RSP || nobody[i] != PA_QUAL)	/* that of an RSP is free by now */
			KD_BAD_ARG(test, dat_cr_handoff(cr, nobody[i]), 2);
	if (kind < PA_RSP)
		cr = pa_pass(env, cr, sp, pa->cr_evd, PA_QUAL, kind & 1);
	for (i = 0; i < 4; i++)
		cr = pa_pass(env, cr, pa->psps[i & 1], pa->evds[i & 1], PA_OTHER + (i & 1), i & 1);
	KD_EXPECT_OK(test, dat_rsp_free(rsp));
	KD_EXPECT_OK(test, dat_csp_free(csp));
	return cr;
}

/* No room there: refused without a trace here, as one from the network would be. */
static void pa_pass_full(struct pa *pa, DAT_CR_HANDLE cr)
{
	unsigned long refused = kd_stat(refused);
	struct kd_env *env = pa->env;

	KUNIT_EXPECT_TRUE(env->test, kd_request(env, pa->psps[2], pa_pdata, sizeof(pa_pdata)));
	KD_EXPECT_OK(env->test, dat_cr_handoff(cr, PA_OTHER + 2));
	KUNIT_EXPECT_EQ(env->test, kd_stat(refused), refused + 1);
	KD_EXPECT_EMPTY(env->test, env->async);
	cr = pa_expect_cr(env, pa->evds[2], pa->psps[2], PA_OTHER + 2);
	KD_EXPECT_OK(env->test, dat_cr_reject(cr, 0, NULL));
}

/* One request, one answer. */
static void pa_answer_one(struct pa *pa, enum pa_kind kind, enum pa_way way)
{
	static const int states[] = {
		DAT_EP_STATE_UNCONNECTED, DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING,
		DAT_EP_STATE_PASSIVE_CONNECTION_PENDING, DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING,
	};
	bool provider = kind & 1, rsp = kind >= PA_RSP, own = kind != PA_PSP;
	struct kd_env *env = pa->env;
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	struct kunit *test = env->test;
	DAT_EP_PARAM param;
	DAT_CR_HANDLE cr;
	DAT_EP_HANDLE ep;
	DAT_HANDLE sp;

	kd_ep(env, NULL);
	KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, 1, NULL, 0));
	sp = pa_sp(env, pa->cr_evd, kind);
	cr = pa_request(env, sp, pa->cr_evd, PA_QUAL, rsp);
	ep = kd_cr_ep(env, cr);
	if (!provider)
		KUNIT_EXPECT_PTR_EQ(test, ep, rsp ? env->ep : DAT_HANDLE_NULL);
	ep = ep ?: env->ep;
	kd_query(env, ep, &param);
	KUNIT_EXPECT_EQ_MSG(test, (int)param.ep_state, states[kind], "kind %d", kind);
	if (provider)
		pa_made(pa, cr, ep);
	if (own)	/* the pointers are good as long as the state is the same */
		pa_expect_peer(env, &param);
	if (rsp)	/* used up, and dead before the event was there */
		KD_BAD_HANDLE(test, dat_rsp_free(sp), _RSP);
	else if (way != PA_HANDOFF)	/* it lives on without what it came through */
		KD_EXPECT_OK(test, dat_psp_free(sp));
	if (way == PA_ACCEPT) {
		KD_BAD_HANDLE(test, pa_accept(cr, own ? ep : NULL), _EP);
		KD_EXPECT_OK(test, pa_accept(cr, own ? NULL : ep));
		pa_expect_no_peer(env, ep);
		kd_expect_dto(test, env->recv, 1, DAT_DTO_ERR_FLUSHED);
		KD_EXPECT_OK(test, dat_ep_reset(ep));
		kd_query(env, ep, &param);
		KUNIT_EXPECT_EQ(test, (int)param.ep_state, (int)DAT_EP_STATE_UNCONNECTED);
		KUNIT_EXPECT_NULL(test, param.remote_ia_address_ptr);
	} else if (way == PA_HANDOFF_FULL) {
		pa_pass_full(pa, cr);
	} else {
		if (way == PA_HANDOFF)
			cr = pa_pass_all(pa, kind, sp, cr);
		KD_EXPECT_OK(test, dat_cr_reject(cr, 0, NULL));
	}
	pa_expect_dead(env, cr);
	KD_EXPECT_EMPTY(test, env->conn);
	KD_EXPECT_EMPTY(test, pa->cr_evd);
	if (provider && way == PA_ACCEPT) {
		KD_EXPECT_OK(test, dat_ep_free(ep));	/* one like any other */
	} else if (provider) {
		pa_expect_dead(env, ep);
	} else if (way != PA_ACCEPT) {
		/* as before, Receive and all, and it can be connected */
		KD_EXPECT_STATE(env, ep, UNCONNECTED);
		KUNIT_EXPECT_EQ(test, fake_ib_outstanding(env->qp, true), 1U);
		kd_connect(env);
	}
	KD_EXPECT_EMPTY(test, env->recv);
	kd_ep_free(env);
	if (!rsp && way == PA_HANDOFF)
		KD_EXPECT_OK(test, dat_psp_free(sp));
}

static void pa_answer_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct pa pa = { .env = env, .cr_evd = kd_cr_evd(env, 8) };
	DAT_PSP_HANDLE early = kd_psp(env, pa.cr_evd, 0, DAT_PSP_CONSUMER_FLAG);
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	struct kd_env other = *env;
	enum pa_kind kind;
	enum pa_way way;
	int i;

	other.ia = kd_ia_more(env, &async);
	kd_psp(&other, kd_cr_evd(&other, 8), PA_OTHER + 5, DAT_PSP_CONSUMER_FLAG);
	for (i = 0; i < 3; i++) {
		pa.evds[i] = kd_cr_evd(env, i == 2 ? 1 : 8);
		pa.psps[i] = kd_psp(env, pa.evds[i], PA_OTHER + i,
				    i == 1 ? DAT_PSP_PROVIDER_FLAG : DAT_PSP_CONSUMER_FLAG);
	}
	for (kind = 0; kind < PA_KINDS; kind++)
		for (way = 0; way < PA_WAYS; way++)
			pa_answer_one(&pa, kind, way);
	KD_EXPECT_OK(test, dat_psp_free(early));
	KD_EXPECT_OK(test, dat_ia_close(other.ia, DAT_CLOSE_ABRUPT_FLAG));
	for (i = 0; i < 3; i++) {
		KD_EXPECT_OK(test, dat_psp_free(pa.psps[i]));
		KD_EXPECT_EMPTY(test, pa.evds[i]);
		KD_EXPECT_OK(test, dat_evd_free(pa.evds[i]));
	}
	KD_EXPECT_OK(test, dat_evd_free(pa.cr_evd));
}

/* The RSP before its request: query and free; an EP that gets its EVD late. */
static void pa_rsp_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	DAT_EVD_HANDLE cr_evd = kd_cr_evd(env, 8);
	DAT_EP_PARAM want = {};
	DAT_RSP_PARAM param = {};
	DAT_RSP_HANDLE rsp;
	DAT_CR_HANDLE cr;

	kd_ep(env, NULL);
	KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, 1, NULL, 0));
	rsp = kd_rsp(env, cr_evd, PA_QUAL, env->ep);
	KD_EXPECT_OK(test, dat_rsp_query(rsp, DAT_RSP_FIELD_ALL, &param));
	KUNIT_EXPECT_PTR_EQ(test, param.ia_handle, env->ia);
	KUNIT_EXPECT_EQ(test, (u64)param.conn_qual, (u64)PA_QUAL);
	KUNIT_EXPECT_PTR_EQ(test, param.evd_handle, cr_evd);
	KUNIT_EXPECT_PTR_EQ(test, param.ep_handle, env->ep);
	KD_BAD_STATE(test, dat_evd_free(cr_evd), EVD_IN_USE);
	KD_EXPECT_OK(test, dat_rsp_free(rsp));
	KD_BAD_HANDLE(test, dat_rsp_free(rsp), _RSP);
	KD_EXPECT_STATE(env, env->ep, UNCONNECTED);
	KUNIT_EXPECT_EQ(test, fake_ib_outstanding(env->qp, true), 1U);

	rsp = kd_rsp(env, cr_evd, PA_QUAL, env->ep);
	KD_EXPECT_OK(test, dat_ep_modify(env->ep, DAT_EP_FIELD_CONNECT_EVD_HANDLE, &want));
	cr = pa_request(env, rsp, cr_evd, PA_QUAL, true);
	KD_BAD_HANDLE(test, pa_accept(cr, NULL), _EP);
	KD_EXPECT_STATE(env, env->ep, PASSIVE_CONNECTION_PENDING);
	want.connect_evd_handle = env->conn;
	KD_EXPECT_OK(test, dat_ep_modify(env->ep, DAT_EP_FIELD_CONNECT_EVD_HANDLE, &want));
	KD_EXPECT_OK(test, pa_accept(cr, NULL));
	pa_expect_no_peer(env, env->ep);
	kd_expect_dto(test, env->recv, 1, DAT_DTO_ERR_FLUSHED);
	kd_ep_free(env);
	KD_EXPECT_OK(test, dat_evd_free(cr_evd));
}

/* No room for the event: the request is refused, and what listens goes on listening. */
static void pa_full(struct kd_env *env, enum pa_kind kind)
{
	DAT_EVD_HANDLE cr_evd = kd_cr_evd(env, 1);
	DAT_PSP_HANDLE filler = kd_psp(env, cr_evd, PA_OTHER, DAT_PSP_CONSUMER_FLAG);
	unsigned long refused = kd_stat(refused);
	struct kunit *test = env->test;
	bool rsp = kind >= PA_RSP;
	DAT_CR_HANDLE cr;
	DAT_HANDLE sp;
	int i;

	kd_ep(env, NULL);
	sp = pa_sp(env, cr_evd, kind);
	KUNIT_EXPECT_TRUE(test, kd_request(env, filler, pa_pdata, sizeof(pa_pdata)));
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_FALSE(test, kd_request(env, sp, pa_pdata, sizeof(pa_pdata)));
	flush_workqueue(kdapl_misc_wq);
	KUNIT_EXPECT_EQ(test, kd_stat(refused), refused + 3);
	KD_EXPECT_EMPTY(test, env->async);
	KUNIT_EXPECT_EQ(test, (int)kd_state(env, env->ep), (int)(kind == PA_RSP ?
			DAT_EP_STATE_RESERVED : DAT_EP_STATE_UNCONNECTED));
	cr = pa_expect_cr(env, cr_evd, filler, PA_OTHER);
	KD_EXPECT_EMPTY(test, cr_evd);
	KD_EXPECT_OK(test, dat_cr_reject(cr, 0, NULL));
	cr = pa_request(env, sp, cr_evd, PA_QUAL, rsp);
	KD_EXPECT_OK(test, dat_cr_reject(cr, 0, NULL));
	if (!rsp)
		KD_EXPECT_OK(test, dat_psp_free(sp));
	KD_EXPECT_OK(test, dat_psp_free(filler));
	KD_EXPECT_OK(test, dat_evd_free(cr_evd));
	kd_ep_free(env);
}

static void pa_full_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	enum pa_kind kind;

	for (kind = 0; kind < PA_KINDS; kind++)
		pa_full(env, kind);
}

/*
 * Two RSPs whose requests arrive at the same time, and room for one event: one request is reported,
 * the other one refused as if it had come later. Its RSP goes on listening, or it would end without
 * a word.
 */
static void pa_full_rsps_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_EVD_HANDLE cr_evd = kd_cr_evd(env, 1);
	unsigned long refused = kd_stat(refused);
	struct kdapl_sp *sp;
	DAT_RSP_HANDLE rsp[2];
	DAT_CR_HANDLE cr;
	int i;

	kd_ep(env, NULL);
	rsp[0] = kd_rsp(env, cr_evd, PA_QUAL, DAT_HANDLE_NULL);
	rsp[1] = kd_rsp(env, cr_evd, PA_OTHER, env->ep);
	sp = kdapl_obj_get(rsp[0], DAT_HANDLE_TYPE_RSP);
	KUNIT_ASSERT_NOT_NULL(test, sp);
	mutex_lock(&sp->mutex);		/* its listener cannot be destroyed yet */
	KUNIT_EXPECT_TRUE(test, kd_request(env, rsp[0], pa_pdata, sizeof(pa_pdata)));
	KUNIT_EXPECT_FALSE(test, kd_request(env, rsp[1], pa_pdata, sizeof(pa_pdata)));
	/* what has its place cannot be made to have none */
	KD_EXPECT_OK(test, dat_evd_resize(cr_evd, 2));
	KUNIT_EXPECT_TRUE(test, kd_request(env, kd_psp(env, cr_evd, PA_OTHER + 1,
						       DAT_PSP_CONSUMER_FLAG),
					   pa_pdata, sizeof(pa_pdata)));
	KD_EXPECT_TYPE(test, dat_evd_resize(cr_evd, 1), DAT_INVALID_STATE);
	mutex_unlock(&sp->mutex);
	kdapl_obj_put(&sp->obj);
	flush_workqueue(kdapl_misc_wq);
	KUNIT_EXPECT_EQ(test, kd_stat(refused), refused + 1);
	KD_EXPECT_STATE(env, env->ep, RESERVED);
	for (i = 0; i < 2; i++) {
		DAT_EVENT event;

		kd_expect_event(env, cr_evd, DAT_CONNECTION_REQUEST_EVENT, &event);
		cr = event.event_data.cr_arrival_event_data.cr_handle;
		KD_EXPECT_OK(test, dat_cr_reject(cr, 0, NULL));
	}
	/* the place is free again; one that is freed before its request keeps none */
	KD_EXPECT_OK(test, dat_evd_resize(cr_evd, 1));
	cr = pa_request(env, rsp[1], cr_evd, PA_OTHER, true);
	KD_EXPECT_OK(test, dat_cr_reject(cr, 0, NULL));
	KD_EXPECT_STATE(env, env->ep, UNCONNECTED);
	KD_EXPECT_EMPTY(test, cr_evd);
	kd_ep_free(env);
	KD_EXPECT_OK(test, dat_ia_close(kd_forget(env), DAT_CLOSE_ABRUPT_FLAG));
}

/*
 * What the CM would have the queue pair do is what the peer has asked for: it gets what has been
 * agreed, and our own retries.
 */
static void pa_qp_attr(struct kunit *test, const struct kdapl_conn *conn)
{
	static const struct ib_qp_attr asked = {
		.max_dest_rd_atomic = 255, .max_rd_atomic = 129, .retry_cnt = 7, .rnr_retry = 7,
		.timeout = 31,
	};
	static const u8 timeouts[][2] = {
		{ 0, 12 }, { 1, 12 }, { 12, 12 }, { 16, 16 }, { 20, 20 }, { 21, 20 }, { 31, 20 },
	};
	struct kdapl_conn *own = kunit_kzalloc(test, sizeof(*own), GFP_KERNEL);
	struct ib_qp_attr attr = asked;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, own);
	kdapl_conn_qp_attr(conn, IB_QP_MAX_DEST_RD_ATOMIC, &attr);
	KUNIT_EXPECT_EQ(test, (int)attr.max_dest_rd_atomic, (int)conn->read_in);
	KUNIT_EXPECT_EQ(test, (int)attr.max_rd_atomic, 129);
	KUNIT_EXPECT_EQ(test, (int)attr.retry_cnt, 7);
	attr = asked;
	kdapl_conn_qp_attr(conn, IB_QP_MAX_QP_RD_ATOMIC | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY, &attr);
	KUNIT_EXPECT_EQ(test, (int)attr.max_dest_rd_atomic, 255);
	KUNIT_EXPECT_EQ(test, (int)attr.max_rd_atomic, (int)conn->read_depth);
	KUNIT_EXPECT_EQ(test, (int)attr.retry_cnt, KDAPL_RETRY_COUNT);
	KUNIT_EXPECT_EQ(test, (int)attr.rnr_retry, KDAPL_RNR_RETRY_COUNT);
	KUNIT_EXPECT_EQ(test, (int)attr.timeout, 31);
	for (i = 0; i < ARRAY_SIZE(timeouts); i++) {
		attr.timeout = timeouts[i][0];
		kdapl_conn_qp_attr(conn, IB_QP_TIMEOUT, &attr);
		KUNIT_EXPECT_EQ(test, (int)attr.timeout, (int)timeouts[i][1]);
	}
	/* what the consumer has set has been filled in already */
	own->net_attr = conn->net_attr;
	own->net_attr.ack_timeout = 31;
	attr.timeout = 31;
	kdapl_conn_qp_attr(own, IB_QP_TIMEOUT, &attr);
	KUNIT_EXPECT_EQ(test, (int)attr.timeout, 31);
}

/* What an EP of these depths has when it accepts. */
static void pa_depth(struct kd_env *env, DAT_PSP_HANDLE psp, DAT_EVD_HANDLE cr_evd, int in, int out,
		     bool unsaid)
{
	int want_in = unsaid ? in : min(in, KD_PEER_READS_OUT);
	int want_out = unsaid ? out : min(out, KD_PEER_READS_IN);
	struct kdapl_device *dev = kd_ia(env)->dev;
	struct kunit *test = env->test;
	struct kdapl_conn *conn;
	DAT_EP_PARAM param;
	DAT_CR_HANDLE cr;
	DAT_EP_ATTR attr;

	kd_attr(&attr);
	attr.max_rdma_read_in = in;
	attr.max_rdma_read_out = out;
	kd_ep(env, &attr);
	conn = kd_conn_of(env);
	kdapl_quirks_derive(dev, unsaid);	/* iWARP, which the port does not say */
	cr = pa_request(env, psp, cr_evd, PA_QUAL, false);
	kdapl_quirks_derive(dev, false);
	KD_EXPECT_OK(test, pa_accept(cr, env->ep));
	KUNIT_EXPECT_EQ(test, (int)conn->read_in, want_in);
	KUNIT_EXPECT_EQ(test, (int)conn->read_out, want_out);
	if (!unsaid) {
		KUNIT_EXPECT_EQ(test, (int)conn->read_depth, want_out);
		pa_qp_attr(test, conn);
	}
	/* what the consumer has asked for is not changed (EP-CREATE-10) */
	kd_query(env, env->ep, &param);
	KUNIT_EXPECT_EQ(test, (int)param.ep_attr.max_rdma_read_in, in);
	KUNIT_EXPECT_EQ(test, (int)param.ep_attr.max_rdma_read_out, out);
	pa_expect_no_peer(env, env->ep);
	kd_ep_free(env);
}

/*
 * Reads in both directions: what this EP would like, within what the peer does. Where the driver
 * does not tell what the peer has asked for, the EP gets what it wants.
 */
static void pa_depth_test(struct kunit *test)
{
	static const struct fake_ib_caps caps[] = { {}, { .driver = RDMA_DRIVER_IRDMA } };
	DAT_EVD_HANDLE cr_evd;
	DAT_PSP_HANDLE psp;
	struct kd_env *env;
	int i, unsaid;

	for (unsaid = 0; unsaid < 2; unsaid++) {
		env = kd_open(test, &caps[unsaid]);
		cr_evd = kd_cr_evd(env, 8);
		psp = kd_psp(env, cr_evd, PA_QUAL, DAT_PSP_CONSUMER_FLAG);
		for (i = 0; i < 25; i++)
			if (!unsaid || i == 24)
				pa_depth(env, psp, cr_evd, i / 5, i % 5, unsaid);
		KD_EXPECT_OK(test, dat_psp_free(psp));
		KD_EXPECT_OK(test, dat_evd_free(cr_evd));
		kd_again(test);
	}
}

/* Requests that nobody has taken outlive their listener. Those of an EVD that is freed stay. */
static void pa_untaken_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_EVD_HANDLE cr_evd;
	DAT_PSP_HANDLE psp;
	DAT_CR_HANDLE cr;
	DAT_EVENT event;
	int i, answered;

	for (answered = 1; answered >= 0; answered--) {
		cr_evd = kd_cr_evd(env, 8);
		psp = kd_psp(env, cr_evd, PA_QUAL, DAT_PSP_CONSUMER_FLAG);
		for (i = 0; i < 3; i++)
			KUNIT_ASSERT_TRUE(test, kd_request(env, psp, pa_pdata, sizeof(pa_pdata)));
		KD_EXPECT_OK(test, dat_psp_free(psp));
		KD_EXPECT_OK(test, dat_evd_modify_upcall(cr_evd, DAT_UPCALL_TEARDOWN,
							 DAT_UPCALL_SAME,
							 DAT_UPCALL_INVOC_NEW));
		for (i = 0; answered && i < 3; i++) {
			KD_ASSERT_OK(test, dat_evd_dequeue(cr_evd, &event));
			cr = event.event_data.cr_arrival_event_data.cr_handle;
			KD_EXPECT_OK(test, dat_cr_reject(cr, 0, NULL));
		}
		KD_EXPECT_OK(test, dat_evd_free(cr_evd));
	}
	kd_again(test);		/* closing the IA refuses those of the second round */
}

/* A bond has failed over: the queue pair has the old address for ever. */
static void pa_address_test(struct kunit *test)
{
	struct rdma_cm_event change = {
		.event = RDMA_CM_EVENT_ADDR_CHANGE, .status = -ETIMEDOUT,
	};
	struct kd_env *env = kd_connected(test, NULL);
	struct rdma_cm_id *id = kd_cm_id(env, PA_QUAL);

	KUNIT_ASSERT_FALSE(test, IS_ERR(id));
	id->context = kd_conn_of(env);
	KUNIT_EXPECT_EQ(test, kdapl_cm_handler(id, &change), 0);
	KD_EXPECT_END(env, BROKEN);
	rdma_destroy_id(id);
}

/* A device goes that the CM has chosen by mistake; our own goes by the ib_client. */
static void pa_other_device_test(struct kunit *test)
{
	struct rdma_cm_event removal = { .event = RDMA_CM_EVENT_DEVICE_REMOVAL };
	struct kd_env *env = kd_open(test, NULL);
	struct ib_device *other = kunit_kzalloc(test, sizeof(*other), GFP_KERNEL);
	struct kdapl_conn *conn;
	struct rdma_cm_id *id;

	KUNIT_ASSERT_NOT_NULL(test, other);
	kd_ep(env, NULL);
	kd_reach(env, DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	conn = kd_conn_of(env);
	id = kd_cm_id(env, PA_QUAL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(id));
	id->context = conn;
	mutex_lock(&conn->lock);
	conn->cm_id = id;
	mutex_unlock(&conn->lock);
	KUNIT_EXPECT_EQ(test, kdapl_cm_handler(id, &removal), 0);
	flush_workqueue(kdapl_misc_wq);
	KUNIT_EXPECT_PTR_EQ(test, READ_ONCE(conn->cm_id), id);
	KD_EXPECT_STATE(env, env->ep, ACTIVE_CONNECTION_PENDING);
	KD_EXPECT_EMPTY(test, env->conn);
	id->device = other;
	KUNIT_EXPECT_EQ(test, kdapl_cm_handler(id, &removal), 0);
	KD_EXPECT_END(env, UNREACHABLE);
	/* what its removal waits for */
	KD_WAIT(test, !READ_ONCE(conn->cm_id));
}

/* An EP whose QP dies while it waits: it goes where it belongs when it need not wait any more. */
static void pa_broken_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	DAT_EVD_HANDLE cr_evd = kd_cr_evd(env, 8);
	DAT_CR_HANDLE cr = DAT_HANDLE_NULL;
	DAT_RSP_HANDLE rsp;
	DAT_EVENT event;
	int i;

	/* without a request; with one that is rejected; accepted before; still waiting */
	for (i = 0; i < 4; i++) {
		kd_ep(env, NULL);
		rsp = kd_rsp(env, cr_evd, PA_QUAL, env->ep);
		if (i)
			cr = pa_request(env, rsp, cr_evd, PA_QUAL, true);
		/* the device refuses a Receive, which shows that the QP is dead */
		fake_ib_fail(env->dev, FAKE_IB_POST_RECV, 1, -EINVAL);
		KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, 1, NULL, 0));
		kd_next_wait(env, env->recv, &event);
		KUNIT_EXPECT_EQ(test, (int)event.event_data.dto_completion_event_data.status,
				(int)DAT_DTO_ERR_FLUSHED);
		KD_WAIT(test, kd_conn_of(env)->state == KDAPL_CONN_ENDED);
		KUNIT_EXPECT_EQ(test, (int)kd_state(env, env->ep), (int)(i ?
				DAT_EP_STATE_PASSIVE_CONNECTION_PENDING : DAT_EP_STATE_RESERVED));
		/* it cannot be accepted, but the peer can be told */
		if (i > 1)
			KD_EXPECT_TYPE(test, pa_accept(cr, NULL), DAT_INVALID_STATE);
		if (i == 3)
			break;
		KD_EXPECT_OK(test, i ? dat_cr_reject(cr, 0, NULL) : dat_rsp_free(rsp));
		KD_EXPECT_STATE(env, env->ep, DISCONNECTED);
		kd_reset(env);
		kd_drain(env->conn);
		kd_connect(env);
		kd_ep_free(env);
	}
	KD_EXPECT_OK(test, dat_ia_close(kd_forget(env), DAT_CLOSE_ABRUPT_FLAG));
}

/* A request that has an answer before its EP hears of it: that goes on waiting. */
static void pa_late_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_EVD_HANDLE cr_evd = kd_cr_evd(env, 8);
	DAT_PSP_HANDLE psp = kd_psp(env, cr_evd, PA_OTHER, DAT_PSP_CONSUMER_FLAG);
	DAT_CR_HANDLE handle = kd_cr(env, psp, cr_evd);
	struct kdapl_cr *cr = kdapl_obj_get(handle, DAT_HANDLE_TYPE_CR);
	DAT_RSP_HANDLE rsp;

	KUNIT_ASSERT_NOT_NULL(test, cr);
	KD_EXPECT_OK(test, dat_cr_reject(handle, 0, NULL));
	kd_ep(env, NULL);
	rsp = kd_rsp(env, cr_evd, PA_QUAL, env->ep);
	kdapl_ep_request(env->kep, cr);
	KUNIT_EXPECT_NULL(test, env->kep->cr);
	KD_EXPECT_STATE(env, env->ep, RESERVED);
	kdapl_obj_put(&cr->obj);
	KD_EXPECT_OK(test, dat_rsp_free(rsp));
	KD_EXPECT_STATE(env, env->ep, UNCONNECTED);
	KD_EXPECT_OK(test, dat_psp_free(psp));
	kd_ep_free(env);
	KD_EXPECT_OK(test, dat_evd_free(cr_evd));
}

/*
 * The device goes while EPs without a connection wait for the answers to their requests. Each has
 * an event of that, which goes with the EP.
 */
static void pa_gone_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	const DAT_EP_PARAM param = { .connect_evd_handle = env->conn };
	DAT_EVD_HANDLE cr_evd = kd_cr_evd(env, 8);
	DAT_CR_HANDLE cr[3];
	DAT_EP_HANDLE ep[3];
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;
	int i;

	psp = kd_psp(env, cr_evd, PA_QUAL, DAT_PSP_PROVIDER_FLAG);
	for (i = 0; i < ARRAY_SIZE(ep); i++) {
		cr[i] = kd_cr(env, psp, cr_evd);
		ep[i] = kd_cr_ep(env, cr[i]);
		KD_EXPECT_OK(test, dat_ep_modify(ep[i], DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param));
	}
	fake_ib_unplug(env->dev);
	KD_EXPECT_OK(test, dat_ep_free(ep[0]));
	KD_EXPECT_OK(test, dat_cr_reject(cr[1], 0, NULL));
	kd_expect_event(env, env->conn, DAT_CONNECTION_EVENT_BROKEN, &event);
	KUNIT_EXPECT_PTR_EQ(test, event.event_data.connect_event_data.ep_handle, ep[2]);
	KD_EXPECT_EMPTY(test, env->conn);
	KD_EXPECT_OK(test, dat_ia_close(kd_forget(env), DAT_CLOSE_ABRUPT_FLAG));
}

static struct kunit_case pa_cases[] = {
	KD_CASE(pa_answer_test,
		"EPSM-02..04,RSP-04..06,CR-ACC-01,CR-REJ-02,CR-HO-01..02,EP-QRY-02: answers"),
	KD_CASE(pa_rsp_test, "RSP-01,RSP-05,RSP-07,CR-ACC-06,GEN-08,GEN-11: RSPs"),
	KD_CASE(pa_full_test, "EVD-OVF-05,PSP-02,RSP-05: refused, and asked again"),
	KD_CASE(pa_full_rsps_test, "EVD-OVF-05,RSP-04,RSP-08: two at once, and room for one"),
	KD_CASE(pa_untaken_test, "PSP-08,EVD-FREE-02: requests that nobody has taken"),
	KD_CASE(pa_other_device_test, "CONN-01: removal of the device that was taken for ours"),
	KD_CASE(pa_address_test, "EPSM-17: a bond that fails over breaks the connection"),
	KD_CASE(pa_depth_test, "CR-ACC-09,CONN-11,EP-CREATE-10: Reads outstanding"),
	KD_CASE(pa_broken_test, "EP-POST-01,RSP-07,CR-REJ-02: the QP dies while the EP waits"),
	KD_CASE(pa_late_test, "RSP-05,IA-CLOSE-02: a request that ends before its EP hears of it"),
	KD_CASE(pa_gone_test, "EPSM-24,EP-FREE-03: EPs that wait without a QP, and no device"),
	{}
};

KD_SUITE("kdapl-passive", pa_cases, kd_init, kd_exit);
