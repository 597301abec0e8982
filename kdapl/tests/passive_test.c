// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The passive side: service points of every kind, requests and the EPs they come
 * with, and every way to answer them. The peers are made up (kd_conn.c), so an
 * accepted request always ends with ACCEPT_COMPLETION_ERROR.
 */
#include <linux/in.h>

#include "kd_conn.h"

#define PA_QUAL		100
#define PA_OTHER	200

static const char pa_pdata[] = "what the peer has to say";

static void pa_query(struct kd_env *env, DAT_EP_HANDLE ep, DAT_EP_PARAM *param)
{
	memset(param, 0, sizeof(*param));
	KD_EXPECT_OK(env->test, dat_ep_query(ep, DAT_EP_FIELD_ALL, param));
}

/* The request is there, all of it. Returns the CR. */
static DAT_CR_HANDLE pa_expect_cr(struct kd_env *env, DAT_EVD_HANDLE evd, DAT_HANDLE sp,
				  DAT_CONN_QUAL qual)
{
	const DAT_CR_ARRIVAL_EVENT_DATA *data;
	struct kunit *test = env->test;
	const struct sockaddr_in *in;
	DAT_CONTEXT context;
	DAT_CR_PARAM param;
	DAT_EVENT event;

	kd_next_wait(env, evd, &event);
	KUNIT_ASSERT_EQ(test, (u32)event.event_number, (u32)DAT_CONNECTION_REQUEST_EVENT);
	KUNIT_EXPECT_PTR_EQ(test, event.evd_handle, evd);
	data = &event.event_data.cr_arrival_event_data;
	KUNIT_EXPECT_PTR_EQ(test, data->sp_handle.psp_handle, sp);
	KUNIT_EXPECT_EQ(test, (u64)data->conn_qual, (u64)qual);
	KUNIT_EXPECT_EQ(test, (int)data->truncate_flag, (int)DAT_FALSE);
	in = (const struct sockaddr_in *)data->local_ia_address_ptr;
	KUNIT_EXPECT_EQ(test, ntohl(in->sin_addr.s_addr), 0x0a000001U);
	memset(&param, 0, sizeof(param));
	KD_EXPECT_OK(test, dat_cr_query(data->cr_handle, DAT_CR_FIELD_ALL, &param));
	in = (const struct sockaddr_in *)param.remote_ia_address_ptr;
	KUNIT_EXPECT_EQ(test, ntohl(in->sin_addr.s_addr), 0x0a000002U);
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

	KD_EXPECT_RET(env->test, dat_get_handle_type(handle, &type), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE1);
}

static void pa_expect_cr_dead(struct kd_env *env, DAT_CR_HANDLE cr)
{
	struct kunit *test = env->test;
	DAT_CR_PARAM param;

	pa_expect_dead(env, cr);
	KD_EXPECT_RET(test, dat_cr_query(cr, DAT_CR_FIELD_ALL, &param), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_CR);
	KD_EXPECT_RET(test, dat_cr_accept(cr, NULL, 0, NULL), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_CR);
	KD_EXPECT_RET(test, dat_cr_reject(cr, 0, NULL), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_CR);
	KD_EXPECT_RET(test, dat_cr_handoff(cr, PA_QUAL), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_CR);
}

/* The EP was accepted, and nobody was there. */
static void pa_expect_no_peer(struct kd_env *env, DAT_EP_HANDLE ep)
{
	struct kunit *test = env->test;
	DAT_EVENT event;

	kd_next_wait(env, env->conn, &event);
	KUNIT_EXPECT_EQ(test, (u32)event.event_number,
			(u32)DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	KUNIT_EXPECT_PTR_EQ(test, event.event_data.connect_event_data.ep_handle, ep);
	KUNIT_EXPECT_EQ(test, (int)kd_state(env, ep), (int)DAT_EP_STATE_DISCONNECTED);
	KD_EXPECT_EMPTY(test, env->conn);
}

static DAT_RETURN pa_accept(DAT_CR_HANDLE cr, DAT_EP_HANDLE ep)
{
	return dat_cr_accept(cr, ep, 0, NULL);
}

static void pa_expect_peer(struct kd_env *env, const DAT_EP_PARAM *param)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)param->remote_ia_address_ptr;
	struct kunit *test = env->test;

	KUNIT_ASSERT_NOT_NULL(test, in);
	KUNIT_EXPECT_EQ(test, ntohl(in->sin_addr.s_addr), 0x0a000002U);
	KUNIT_EXPECT_EQ(test, (u64)param->remote_port_qual, (u64)KD_PEER_PORT);
	in = (const struct sockaddr_in *)param->local_ia_address_ptr;
	KUNIT_ASSERT_NOT_NULL(test, in);
	KUNIT_EXPECT_EQ(test, ntohl(in->sin_addr.s_addr), 0x0a000001U);
	KUNIT_EXPECT_EQ(test, (u64)param->local_port_qual, (u64)PA_QUAL);
}

/* What a request came through, and what becomes of it. */
enum pa_kind { PA_PSP, PA_PSP_PROVIDER, PA_RSP, PA_RSP_PROVIDER, PA_KINDS };
enum pa_way { PA_ACCEPT, PA_REJECT, PA_FREE_SP, PA_HANDOFF, PA_HANDOFF_FULL, PA_WAYS };

/**
 * struct pa - a case with service points for requests that are passed on
 * @env: the usual
 * @cr_evd: EVD of the one under test
 * @evds: theirs
 * @psps: PSPs with the consumer's and with the provider's EPs, and one without room
 * @pz: PZ of a provider's EP that is configured
 */
struct pa {
	struct kd_env *env;
	DAT_EVD_HANDLE cr_evd;
	DAT_EVD_HANDLE evds[3];
	DAT_PSP_HANDLE psps[3];
	DAT_PZ_HANDLE pz;
};

static DAT_HANDLE pa_sp(struct kd_env *env, DAT_EVD_HANDLE cr_evd, enum pa_kind kind)
{
	bool provider = kind & 1;

	if (kind >= PA_RSP)
		return kd_rsp(env, cr_evd, PA_QUAL, provider ? DAT_HANDLE_NULL : env->ep);
	return kd_psp(env, cr_evd, PA_QUAL,
		      provider ? DAT_PSP_PROVIDER_FLAG : DAT_PSP_CONSUMER_FLAG);
}

/* A provider's EP as it came; @configured: then with all it needs, step by step. */
static void pa_made(struct pa *pa, DAT_CR_HANDLE cr, DAT_EP_HANDLE ep, bool configured)
{
	struct kunit *test = pa->env->test;
	DAT_CONTEXT context = { .as_64 = 1 };
	DAT_EP_PARAM param, want = { .ep_attr.max_recv_dtos = 5 };
	int i;

	KD_EXPECT_OK(test, dat_get_consumer_context(ep, &context));
	KUNIT_EXPECT_EQ(test, context.as_64, 0ULL);
	pa_query(pa->env, ep, &param);
	KUNIT_EXPECT_PTR_EQ(test, param.ia_handle, pa->env->ia);
	KUNIT_EXPECT_NULL(test, param.pz_handle);
	KUNIT_EXPECT_NULL(test, param.recv_evd_handle);
	KUNIT_EXPECT_NULL(test, param.request_evd_handle);
	KUNIT_EXPECT_NULL(test, param.connect_evd_handle);
	KUNIT_EXPECT_NULL(test, param.srq_handle);
	/* usable as it is, and what the request asks for */
	KUNIT_EXPECT_GT(test, param.ep_attr.max_recv_dtos, 0);
	KUNIT_EXPECT_GT(test, param.ep_attr.max_request_dtos, 0);
	KUNIT_EXPECT_GT(test, param.ep_attr.max_recv_iov, 0);
	KUNIT_EXPECT_GT(test, param.ep_attr.max_request_iov, 0);
	KUNIT_EXPECT_EQ(test, (int)param.ep_attr.max_rdma_read_in, KD_PEER_READS_OUT);
	KUNIT_EXPECT_EQ(test, (int)param.ep_attr.max_rdma_read_out, KD_PEER_READS_IN);
	/* not with another EP, nor by its name, nor before it can be used */
	KD_EXPECT_RET(test, pa_accept(cr, pa->env->ep), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	for (i = 0; i < 3; i++) {
		KD_EXPECT_RET(test, pa_accept(cr, ep), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
		KD_EXPECT_RET(test, pa_accept(cr, NULL), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE_EP);
		if (!configured)
			return;
		if (!i)
			KD_ASSERT_OK(test, dat_pz_create(pa->env->ia, &pa->pz));
		want.pz_handle = i ? DAT_HANDLE_NULL : pa->pz;
		want.connect_evd_handle = i ? pa->env->conn : DAT_HANDLE_NULL;
		KD_EXPECT_OK(test, dat_ep_modify(ep, DAT_EP_FIELD_PZ_HANDLE |
						 DAT_EP_FIELD_CONNECT_EVD_HANDLE |
						 DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &want));
	}
	KD_EXPECT_OK(test, kd_configure(pa->env, ep));
	want.pz_handle = pa->pz;
	KD_EXPECT_OK(test, dat_ep_modify(ep, DAT_EP_FIELD_PZ_HANDLE, &want));
	KD_EXPECT_RET(test, dat_pz_free(pa->pz), DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE);
	KD_EXPECT_OK(test, kd_post(ep, KD_RECV, 0, NULL, 1, NULL, 0));
	pa_query(pa->env, ep, &param);
	KUNIT_EXPECT_EQ(test, (int)param.ep_state, (int)DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
	KUNIT_EXPECT_PTR_EQ(test, param.pz_handle, pa->pz);
	KUNIT_EXPECT_PTR_EQ(test, param.connect_evd_handle, pa->env->conn);
	KUNIT_EXPECT_EQ(test, (int)param.ep_attr.max_recv_dtos, 5);
}

/* On to @psp at @qual, where it comes with an EP or not. Returns the new CR. */
static DAT_CR_HANDLE pa_pass(struct kd_env *env, DAT_CR_HANDLE cr, DAT_PSP_HANDLE psp,
			     DAT_EVD_HANDLE evd, DAT_CONN_QUAL qual, bool made)
{
	DAT_EP_HANDLE old = kd_cr_ep(env, cr), ep;
	struct kunit *test = env->test;
	DAT_CR_HANDLE next;

	KD_EXPECT_OK(test, dat_cr_handoff(cr, qual));
	next = pa_expect_cr(env, evd, psp, qual);
	KUNIT_EXPECT_PTR_NE(test, cr, next);
	pa_expect_cr_dead(env, cr);
	if (old && old != env->ep)
		pa_expect_dead(env, old);
	KUNIT_EXPECT_EQ(test, (int)kd_state(env, env->ep), (int)DAT_EP_STATE_UNCONNECTED);
	ep = kd_cr_ep(env, next);
	KUNIT_EXPECT_EQ(test, !!ep, made);
	if (ep)
		KUNIT_EXPECT_EQ(test, (int)kd_state(env, ep),
				(int)DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
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
			KD_EXPECT_RET(test, dat_cr_handoff(cr, nobody[i]), DAT_INVALID_PARAMETER,
				      DAT_INVALID_ARG2);
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
	struct kunit *test = env->test;

	KUNIT_EXPECT_TRUE(test, kd_request(env, pa->psps[2], pa_pdata, sizeof(pa_pdata)));
	KD_EXPECT_OK(test, dat_cr_handoff(cr, PA_OTHER + 2));
	KUNIT_EXPECT_EQ(test, kd_stat(refused), refused + 1);
	KD_EXPECT_EMPTY(test, env->async);
	cr = pa_expect_cr(env, pa->evds[2], pa->psps[2], PA_OTHER + 2);
	KD_EXPECT_EMPTY(test, pa->evds[2]);
	KD_EXPECT_OK(test, dat_cr_reject(cr, 0, NULL));
}

/* One request, one answer; @configured: a provider's EP has what it needs, and a Receive. */
static void pa_answer_one(struct pa *pa, enum pa_kind kind, enum pa_way way, bool configured)
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
	DAT_EVENT event;
	DAT_HANDLE sp;

	kd_ep(env, NULL);
	KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, 1, NULL, 0));
	sp = pa_sp(env, pa->cr_evd, kind);
	cr = pa_request(env, sp, pa->cr_evd, PA_QUAL, rsp);
	ep = kd_cr_ep(env, cr);
	if (!provider)
		KUNIT_EXPECT_PTR_EQ(test, ep, rsp ? env->ep : DAT_HANDLE_NULL);
	ep = ep ?: env->ep;
	pa_query(env, ep, &param);
	KUNIT_EXPECT_EQ_MSG(test, (int)param.ep_state, states[kind], "kind %d", kind);
	if (own)
		pa_expect_peer(env, &param);
	if (provider)
		pa_made(pa, cr, ep, configured);
	if (own)	/* the pointers are good as long as the state is the same */
		pa_expect_peer(env, &param);
	if (rsp)	/* used up, and dead before the event was there */
		KD_EXPECT_RET(test, dat_rsp_free(sp), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RSP);
	if (way == PA_FREE_SP && !rsp) {
		KD_EXPECT_OK(test, dat_psp_free(sp));
		pa_expect_dead(env, sp);
	}
	if (way == PA_ACCEPT) {
		KD_EXPECT_RET(test, pa_accept(cr, own ? ep : NULL), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE_EP);
		KD_EXPECT_OK(test, pa_accept(cr, own ? NULL : ep));
		pa_expect_no_peer(env, ep);
		KUNIT_ASSERT_TRUE(test, kd_next(env->recv, &event));
		KUNIT_EXPECT_EQ(test, (int)event.event_data.dto_completion_event_data.status,
				(int)DAT_DTO_ERR_FLUSHED);
		KD_EXPECT_OK(test, dat_ep_reset(ep));
		pa_query(env, ep, &param);
		KUNIT_EXPECT_EQ(test, (int)param.ep_state, (int)DAT_EP_STATE_UNCONNECTED);
		KUNIT_EXPECT_NULL(test, param.remote_ia_address_ptr);
	} else if (way == PA_HANDOFF_FULL) {
		pa_pass_full(pa, cr);
	} else {
		if (way == PA_HANDOFF)
			cr = pa_pass_all(pa, kind, sp, cr);
		KD_EXPECT_OK(test, dat_cr_reject(cr, 0, NULL));
	}
	pa_expect_cr_dead(env, cr);
	KD_EXPECT_EMPTY(test, env->conn);
	KD_EXPECT_EMPTY(test, pa->cr_evd);
	if (provider && way == PA_ACCEPT) {
		KD_EXPECT_OK(test, dat_ep_free(ep));	/* one like any other */
	} else if (provider) {
		pa_expect_dead(env, ep);
		KD_EXPECT_RET(test, dat_ep_free(ep), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	} else if (way != PA_ACCEPT) {
		/* as before, Receive and all, and it can be connected */
		KUNIT_EXPECT_EQ_MSG(test, (int)kd_state(env, ep), (int)DAT_EP_STATE_UNCONNECTED,
				    "kind %d, way %d", kind, way);
		KUNIT_EXPECT_EQ(test, fake_ib_outstanding(env->qp, true), 1U);
		kd_connect(env);
	}
	if (provider && configured)	/* not in use any more */
		KD_EXPECT_OK(test, dat_pz_free(pa->pz));
	KD_EXPECT_EMPTY(test, env->recv);
	kd_ep_free(env);
	if (!rsp && way != PA_FREE_SP)
		KD_EXPECT_OK(test, dat_psp_free(sp));
}

static void pa_answer_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct pa pa = { .env = env, .cr_evd = kd_cr_evd(env, 8) };
	DAT_PSP_HANDLE early = kd_psp(env, pa.cr_evd, 0, DAT_PSP_CONSUMER_FLAG);
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	char name[DAT_NAME_MAX_LENGTH];
	struct kd_env other = *env;
	enum pa_kind kind;
	enum pa_way way;
	int i;

	/* one of another instance */
	snprintf(name, sizeof(name), "%s-1", fake_ib_name(env->dev));
	KD_ASSERT_OK(test, dat_ia_open(name, 8, &async, &other.ia));
	kd_psp(&other, kd_cr_evd(&other, 8), PA_OTHER + 5, DAT_PSP_CONSUMER_FLAG);
	for (i = 0; i < 3; i++) {
		pa.evds[i] = kd_cr_evd(env, i == 2 ? 1 : 8);
		pa.psps[i] = kd_psp(env, pa.evds[i], PA_OTHER + i,
				    i == 1 ? DAT_PSP_PROVIDER_FLAG : DAT_PSP_CONSUMER_FLAG);
	}
	for (kind = 0; kind < PA_KINDS; kind++) {
		for (way = 0; way < PA_WAYS; way++) {
			pa_answer_one(&pa, kind, way, true);
			if (way != PA_ACCEPT && (kind & 1))
				pa_answer_one(&pa, kind, way, false);
		}
	}
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
	DAT_RSP_PARAM param;
	DAT_RSP_HANDLE rsp;
	DAT_CR_HANDLE cr;
	DAT_EVENT event;

	kd_ep(env, NULL);
	KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, 1, NULL, 0));
	rsp = kd_rsp(env, cr_evd, PA_QUAL, env->ep);
	memset(&param, 0, sizeof(param));
	KD_EXPECT_OK(test, dat_rsp_query(rsp, DAT_RSP_FIELD_ALL, &param));
	KUNIT_EXPECT_PTR_EQ(test, param.ia_handle, env->ia);
	KUNIT_EXPECT_EQ(test, (u64)param.conn_qual, (u64)PA_QUAL);
	KUNIT_EXPECT_PTR_EQ(test, param.evd_handle, cr_evd);
	KUNIT_EXPECT_PTR_EQ(test, param.ep_handle, env->ep);
	KD_EXPECT_RET(test, dat_evd_free(cr_evd), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_EVD_IN_USE);
	KD_EXPECT_OK(test, dat_rsp_free(rsp));
	pa_expect_dead(env, rsp);
	KD_EXPECT_RET(test, dat_rsp_free(rsp), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RSP);
	KUNIT_EXPECT_EQ(test, (int)kd_state(env, env->ep), (int)DAT_EP_STATE_UNCONNECTED);
	KUNIT_EXPECT_EQ(test, fake_ib_outstanding(env->qp, true), 1U);

	rsp = kd_rsp(env, cr_evd, PA_QUAL, env->ep);
	KD_EXPECT_OK(test, dat_ep_modify(env->ep, DAT_EP_FIELD_CONNECT_EVD_HANDLE, &want));
	cr = pa_request(env, rsp, cr_evd, PA_QUAL, true);
	KD_EXPECT_RET(test, pa_accept(cr, NULL), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	KUNIT_EXPECT_EQ(test, (int)kd_state(env, env->ep),
			(int)DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	want.connect_evd_handle = env->conn;
	KD_EXPECT_OK(test, dat_ep_modify(env->ep, DAT_EP_FIELD_CONNECT_EVD_HANDLE, &want));
	KD_EXPECT_OK(test, pa_accept(cr, NULL));
	pa_expect_no_peer(env, env->ep);
	KUNIT_EXPECT_TRUE(test, kd_next(env->recv, &event));
	kd_ep_free(env);
	KD_EXPECT_OK(test, dat_evd_free(cr_evd));
}

/* No room for the event: the request is refused, and what listens goes on listening. */
static void pa_full(struct kd_env *env, enum pa_kind kind)
{
	DAT_EVD_HANDLE cr_evd = kd_cr_evd(env, 1);
	DAT_PSP_HANDLE filler = kd_psp(env, cr_evd, PA_OTHER, DAT_PSP_CONSUMER_FLAG);
	unsigned long refused = kd_stat(refused);
	bool rsp = kind >= PA_RSP;
	struct kunit *test = env->test;
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
	KUNIT_EXPECT_EQ(test, (int)kd_state(env, env->ep),
			(int)(kind == PA_RSP ? DAT_EP_STATE_RESERVED : DAT_EP_STATE_UNCONNECTED));
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
 * What the CM would have the queue pair do is what the peer has asked for: it gets what has been
 * agreed, and our own retries.
 */
static void pa_qp_attr(struct kunit *test, const struct kdapl_conn *conn)
{
	static const struct ib_qp_attr asked = {
		.max_dest_rd_atomic = 255, .max_rd_atomic = 129, .retry_cnt = 7, .rnr_retry = 7,
	};
	struct ib_qp_attr attr = asked;

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
}

/* What an EP of these depths has when it accepts. */
static void pa_depth(struct kd_env *env, DAT_PSP_HANDLE psp, DAT_EVD_HANDLE cr_evd, int in, int out,
		     bool unsaid)
{
	int want_in = unsaid ? in : min(in, KD_PEER_READS_OUT);
	int want_out = unsaid ? out : min(out, KD_PEER_READS_IN);
	struct kunit *test = env->test;
	struct kdapl_device *dev;
	struct kdapl_conn *conn;
	DAT_EP_PARAM param;
	DAT_CR_HANDLE cr;
	DAT_EP_ATTR attr;

	kd_attr(&attr);
	attr.max_rdma_read_in = in;
	attr.max_rdma_read_out = out;
	kd_ep(env, &attr);
	conn = kd_conn_of(env);
	dev = env->kep->obj.ia->dev;
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
	pa_query(env, env->ep, &param);
	KUNIT_EXPECT_EQ(test, (int)param.ep_attr.max_rdma_read_in, in);
	KUNIT_EXPECT_EQ(test, (int)param.ep_attr.max_rdma_read_out, out);
	pa_expect_no_peer(env, env->ep);
	kd_ep_free(env);
}

/* Reads in both directions: what this EP would like, within what the peer does. */
static void pa_depth_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_EVD_HANDLE cr_evd = kd_cr_evd(env, 8);
	DAT_PSP_HANDLE psp = kd_psp(env, cr_evd, PA_QUAL, DAT_PSP_CONSUMER_FLAG);
	int i;

	for (i = 0; i < 25; i++)
		pa_depth(env, psp, cr_evd, i / 5, i % 5, false);
	KD_EXPECT_OK(test, dat_psp_free(psp));
	KD_EXPECT_OK(test, dat_evd_free(cr_evd));
}

/* A driver that does not tell what the peer has asked for: the EP gets what it wants. */
static void pa_depth_unsaid_test(struct kunit *test)
{
	static const struct fake_ib_caps caps = { .driver = RDMA_DRIVER_IRDMA };
	struct kd_env *env = kd_open(test, &caps);
	DAT_EVD_HANDLE cr_evd = kd_cr_evd(env, 8);
	DAT_PSP_HANDLE psp = kd_psp(env, cr_evd, PA_QUAL, DAT_PSP_CONSUMER_FLAG);

	pa_depth(env, psp, cr_evd, KD_PEER_READS_OUT + 1, KD_PEER_READS_IN + 1, true);
	KD_EXPECT_OK(test, dat_psp_free(psp));
	KD_EXPECT_OK(test, dat_evd_free(cr_evd));
}

/* A bond has failed over: the queue pair has the old address for ever. */
static void pa_address_test(struct kunit *test)
{
	struct rdma_cm_event change = {
		.event = RDMA_CM_EVENT_ADDR_CHANGE, .status = -ETIMEDOUT,
	};
	struct kd_env *env = kd_connected(test, NULL);
	struct rdma_cm_id *id = kd_cm_id(env, PA_QUAL);
	DAT_EVENT event;

	KUNIT_ASSERT_FALSE(test, IS_ERR(id));
	id->context = kd_conn_of(env);
	while (kd_next(env->conn, &event))
		;
	KUNIT_EXPECT_EQ(test, kdapl_cm_handler(id, &change), 0);
	kd_next_wait(env, env->conn, &event);
	KUNIT_EXPECT_EQ(test, (u32)event.event_number, (u32)DAT_CONNECTION_EVENT_BROKEN);
	KUNIT_EXPECT_EQ(test, (int)kd_state(env, env->ep), (int)DAT_EP_STATE_DISCONNECTED);
	KD_EXPECT_EMPTY(test, env->conn);
	rdma_destroy_id(id);
}

/* One of each kind, with requests at every stage. */
struct pa_zoo {
	DAT_EVD_HANDLE cr_evd;
	DAT_PSP_HANDLE psp[2];
	DAT_RSP_HANDLE rsp[2];
	DAT_CR_HANDLE cr[4];
	DAT_EP_HANDLE reserved, passive, tentative[2];
};

static DAT_EP_HANDLE pa_ep(struct kd_env *env)
{
	DAT_EP_HANDLE ep;
	DAT_EP_ATTR attr;

	kd_attr(&attr);
	KD_ASSERT_OK(env->test, dat_ep_create(env->ia, env->pz, env->recv, env->req, env->conn,
					      &attr, &ep));
	return ep;
}

static void pa_zoo(struct kd_env *env, struct pa_zoo *zoo)
{
	DAT_RSP_HANDLE rsp;

	zoo->cr_evd = kd_cr_evd(env, 16);
	zoo->psp[0] = kd_psp(env, zoo->cr_evd, PA_QUAL, DAT_PSP_CONSUMER_FLAG);
	zoo->psp[1] = kd_psp(env, zoo->cr_evd, PA_QUAL + 1, DAT_PSP_PROVIDER_FLAG);
	zoo->cr[0] = pa_request(env, zoo->psp[0], zoo->cr_evd, PA_QUAL, false);
	/* a provider's EP as it came, and one that was given something to do */
	zoo->cr[1] = pa_request(env, zoo->psp[1], zoo->cr_evd, PA_QUAL + 1, false);
	zoo->tentative[0] = kd_cr_ep(env, zoo->cr[1]);
	zoo->cr[2] = pa_request(env, zoo->psp[1], zoo->cr_evd, PA_QUAL + 1, false);
	zoo->tentative[1] = kd_cr_ep(env, zoo->cr[2]);
	KD_EXPECT_OK(env->test, kd_configure(env, zoo->tentative[1]));
	zoo->passive = pa_ep(env);
	rsp = kd_rsp(env, zoo->cr_evd, PA_QUAL + 2, zoo->passive);
	zoo->cr[3] = pa_request(env, rsp, zoo->cr_evd, PA_QUAL + 2, true);
	zoo->reserved = pa_ep(env);
	zoo->rsp[0] = kd_rsp(env, zoo->cr_evd, PA_QUAL + 3, zoo->reserved);
	zoo->rsp[1] = kd_rsp(env, zoo->cr_evd, PA_QUAL + 4, DAT_HANDLE_NULL);
}

static void pa_close_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct pa_zoo zoo;
	int i;

	pa_zoo(env, &zoo);
	KD_EXPECT_RET(test, dat_ia_close(env->ia, DAT_CLOSE_GRACEFUL_FLAG), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_IA_IN_USE);
	/* refused, so all of it works as before */
	KUNIT_EXPECT_EQ(test, (int)kd_state(env, zoo.reserved), (int)DAT_EP_STATE_RESERVED);
	KUNIT_EXPECT_TRUE(test, kd_request(env, zoo.psp[0], pa_pdata, sizeof(pa_pdata)));
	KD_EXPECT_OK(test, dat_ia_close(kd_forget(env), DAT_CLOSE_ABRUPT_FLAG));
	for (i = 0; i < 4; i++)
		pa_expect_dead(env, zoo.cr[i]);
	for (i = 0; i < 2; i++) {
		pa_expect_dead(env, zoo.psp[i]);
		pa_expect_dead(env, zoo.rsp[i]);
		pa_expect_dead(env, zoo.tentative[i]);
	}
	pa_expect_dead(env, zoo.passive);
	pa_expect_dead(env, zoo.reserved);
}

/* The device goes; then nothing can be answered, everything can be freed. */
static void pa_unplug_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	int i, broken[2] = {};
	struct pa_zoo zoo;
	DAT_EVENT event;

	pa_zoo(env, &zoo);
	fake_ib_unplug(env->dev);
	KUNIT_EXPECT_EQ(test, (int)kd_state(env, zoo.reserved), (int)DAT_EP_STATE_RESERVED);
	KUNIT_EXPECT_EQ(test, (int)kd_state(env, zoo.passive), (int)DAT_EP_STATE_DISCONNECTED);
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_EQ(test, (int)kd_state(env, zoo.tentative[i]),
				(int)DAT_EP_STATE_DISCONNECTED);
	/* one BROKEN for each that is to hear of it */
	while (kd_next(env->conn, &event)) {
		KUNIT_EXPECT_EQ(test, (u32)event.event_number,
				(u32)DAT_CONNECTION_EVENT_BROKEN);
		broken[0] += event.event_data.connect_event_data.ep_handle == zoo.passive;
		broken[1] += event.event_data.connect_event_data.ep_handle == zoo.tentative[1];
	}
	KUNIT_EXPECT_EQ(test, broken[0], 1);
	KUNIT_EXPECT_EQ(test, broken[1], 1);
	KUNIT_ASSERT_TRUE(test, kd_next(env->async, &event));
	KUNIT_EXPECT_EQ(test, (u32)event.event_number, (u32)DAT_ASYNC_ERROR_IA_CATASTROPHIC);
	KD_EXPECT_EMPTY(test, env->async);
	/* nobody can be answered any more */
	for (i = 0; i < 4; i++) {
		KD_EXPECT_RET(test, dat_cr_handoff(zoo.cr[i], PA_QUAL), DAT_INTERNAL_ERROR,
			      DAT_NO_SUBTYPE);
		KUNIT_EXPECT_EQ(test, (u32)DAT_GET_TYPE(dat_cr_accept(zoo.cr[i], i ? NULL :
								      zoo.reserved, 0, NULL)),
				(u32)DAT_INTERNAL_ERROR);
	}
	/* a CR can be got rid of: an EP made for it goes with it, others stay where they are */
	for (i = 0; i < 4; i++) {
		KD_EXPECT_OK(test, dat_cr_reject(zoo.cr[i], 0, NULL));
		pa_expect_cr_dead(env, zoo.cr[i]);
	}
	for (i = 0; i < 2; i++)
		KD_EXPECT_RET(test, dat_ep_free(zoo.tentative[i]), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE_EP);
	KUNIT_EXPECT_EQ(test, (int)kd_state(env, zoo.passive), (int)DAT_EP_STATE_DISCONNECTED);
	KD_EXPECT_RET(test, dat_ep_free(zoo.reserved), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_EP_RESERVED);
	for (i = 0; i < 2; i++) {
		KD_EXPECT_OK(test, dat_rsp_free(zoo.rsp[i]));
		KD_EXPECT_OK(test, dat_psp_free(zoo.psp[i]));
	}
	KUNIT_EXPECT_EQ(test, (int)kd_state(env, zoo.reserved), (int)DAT_EP_STATE_UNCONNECTED);
	KD_EXPECT_OK(test, dat_ep_free(zoo.reserved));
	KD_EXPECT_OK(test, dat_ep_free(zoo.passive));
	KD_EXPECT_OK(test, dat_evd_free(zoo.cr_evd));
}

/* An EP whose QP dies while it waits: it goes where it belongs when it need not wait any more. */
static void pa_broken_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	DAT_EVD_HANDLE cr_evd = kd_cr_evd(env, 8);
	DAT_RSP_HANDLE rsp;
	DAT_CR_HANDLE cr;
	DAT_EVENT event;
	int i, k;

	for (i = 0; i < 4; i++) {
		kd_ep(env, NULL);
		rsp = kd_rsp(env, cr_evd, PA_QUAL, env->ep);
		cr = i ? pa_request(env, rsp, cr_evd, PA_QUAL, true) : DAT_HANDLE_NULL;
		/* the device refuses a Receive, which shows that the QP is dead */
		fake_ib_fail(env->dev, FAKE_IB_POST_RECV, 1, -EINVAL);
		KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, 1, NULL, 0));
		kd_next_wait(env, env->recv, &event);
		KUNIT_EXPECT_EQ(test, (int)event.event_data.dto_completion_event_data.status,
				(int)DAT_DTO_ERR_FLUSHED);
		for (k = 0; k < 15000 && kd_conn_of(env)->state != KDAPL_CONN_ENDED; k++)
			kd_pause();
		KUNIT_EXPECT_EQ(test, (int)kd_state(env, env->ep),
				(int)(i ? DAT_EP_STATE_PASSIVE_CONNECTION_PENDING :
				      DAT_EP_STATE_RESERVED));
		if (i == 0) {
			KD_EXPECT_OK(test, dat_rsp_free(rsp));
		} else if (i == 1) {
			KD_EXPECT_OK(test, dat_cr_reject(cr, 0, NULL));
		} else {
			/* it cannot be accepted, but the peer can be told */
			KUNIT_EXPECT_EQ(test, (u32)DAT_GET_TYPE(pa_accept(cr, NULL)),
					(u32)DAT_INVALID_STATE);
			if (i == 2)
				KD_EXPECT_OK(test, dat_cr_reject(cr, 0, NULL));
		}
		if (i < 3) {
			KUNIT_EXPECT_EQ(test, (int)kd_state(env, env->ep),
					(int)DAT_EP_STATE_DISCONNECTED);
			KD_EXPECT_OK(test, dat_ep_reset(env->ep));
			KUNIT_EXPECT_EQ(test, (int)kd_state(env, env->ep),
					(int)DAT_EP_STATE_UNCONNECTED);
			env->qp = kd_conn_of(env)->qp;
			while (kd_next(env->conn, &event))
				;
			kd_connect(env);
			kd_ep_free(env);
		}
	}
	/* the last one waits until the IA is closed */
	KD_EXPECT_OK(test, dat_ia_close(kd_forget(env), DAT_CLOSE_ABRUPT_FLAG));
}

static struct kunit_case pa_cases[] = {
	KD_CASE(pa_answer_test,
		"EPSM-02..04,RSP-04..06,CR-ACC-01,CR-REJ-02,CR-HO-01..02,EP-QRY-02: answers"),
	KD_CASE(pa_rsp_test, "RSP-01,RSP-05,RSP-07,CR-ACC-06,GEN-08,GEN-11: RSPs"),
	KD_CASE(pa_full_test, "EVD-OVF-05,PSP-02,RSP-05: refused, and asked again"),
	KD_CASE(pa_address_test, "EPSM-17: a bond that fails over breaks the connection"),
	KD_CASE(pa_depth_test, "CR-ACC-09,CONN-11,EP-CREATE-10: Reads outstanding"),
	KD_CASE(pa_depth_unsaid_test, "CONN-11: the driver does not tell the peer's read depths"),
	KD_CASE(pa_close_test, "IA-CLOSE-01,IA-CLOSE-02,CR-LIFE-01: the IA is closed over them"),
	KD_CASE(pa_unplug_test, "EPSM-24,ASY-22,EP-FREE-04: the device goes, requests and all"),
	KD_CASE(pa_broken_test, "EP-POST-01,RSP-07,CR-REJ-02: the QP dies while the EP waits"),
	{}
};

static struct kunit_suite pa_suite = {
	.name = "kdapl-passive",
	.suite_init = kd_suite_init,
	.suite_exit = kd_suite_exit,
	.init = kd_init,
	.exit = kd_exit,
	.test_cases = pa_cases,
};

kunit_test_suite(pa_suite);
