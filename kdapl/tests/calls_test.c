// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Table 5.1 of the requirements: every call on an EP in every state, what it
 * returns and where the EP is then; and that a refused one has changed nothing.
 */
#include <linux/scatterlist.h>

#include "kd_conn.h"
#include "kd_upcall.h"

#define CALL_QUAL	7

/**
 * struct calls - what the calls work with
 * @env: the usual; its EP is the one under test
 * @cr_evd: EVD for requests
 * @psp: PSP for them, with the consumer's EPs
 * @connected: another EP, in CONNECTED
 * @fresh: another EP, in UNCONNECTED
 * @fmr: LMR that is not bound
 * @rmr: RMR that is not bound
 */
struct calls {
	struct kd_env *env;
	DAT_EVD_HANDLE cr_evd;
	DAT_PSP_HANDLE psp;
	DAT_EP_HANDLE connected;
	DAT_EP_HANDLE fresh;
	DAT_LMR_HANDLE fmr;
	DAT_RMR_HANDLE rmr;
};

static DAT_RETURN call_accept(struct calls *c)
{
	DAT_CR_HANDLE cr = kd_cr(c->env, c->psp, c->cr_evd);
	DAT_RETURN ret = dat_cr_accept(cr, c->env->ep, 0, NULL);

	/* whatever was wrong, the request can still be answered (CR-ACC-05) */
	if (ret != DAT_SUCCESS)
		KD_EXPECT_OK(c->env->test, dat_cr_reject(cr, 0, NULL));
	else
		KD_BAD_HANDLE(c->env->test, dat_cr_reject(cr, 0, NULL), _CR);
	return ret;
}

static DAT_RETURN call_query(struct calls *c)
{
	DAT_BOOLEAN recv, request;
	DAT_EP_PARAM param;
	DAT_EP_STATE state;

	KD_EXPECT_OK(c->env->test, dat_ep_query(c->env->ep, 0, NULL));
	KD_EXPECT_OK(c->env->test, dat_ep_get_status(c->env->ep, &state, &recv, &request));
	KD_EXPECT_OK(c->env->test, dat_ep_query(c->env->ep, DAT_EP_FIELD_ALL, &param));
	KUNIT_EXPECT_EQ(c->env->test, (int)param.ep_state, (int)state);
	return DAT_SUCCESS;
}

/* What any object can be asked. */
static DAT_RETURN call_any(struct calls *c)
{
	DAT_CONTEXT context = { .as_64 = 0x1122334455667788ULL };
	DAT_HANDLE_TYPE type = 0;

	KD_EXPECT_OK(c->env->test, dat_set_consumer_context(c->env->ep, context));
	context.as_64 = 0;
	KD_EXPECT_OK(c->env->test, dat_get_consumer_context(c->env->ep, &context));
	KUNIT_EXPECT_EQ(c->env->test, context.as_64, 0x1122334455667788ULL);
	KD_EXPECT_OK(c->env->test, dat_get_handle_type(c->env->ep, &type));
	KUNIT_EXPECT_EQ(c->env->test, (int)type, (int)DAT_HANDLE_TYPE_EP);
	return DAT_SUCCESS;
}

static DAT_RETURN call_fmr(struct calls *c)
{
	DAT_PADDR page = virt_to_phys(c->env->buf) & PAGE_MASK;
	DAT_REGION_DESCRIPTION region = { .for_physical = &page };

	return dat_lmr_fmr(c->fmr, DAT_MEM_TYPE_PHYSICAL, region, 1, DAT_MEM_PRIV_ALL_FLAG,
			   DAT_VA_TYPE_VA, c->env->ep, (DAT_DTO_COOKIE) {}, 0, NULL, NULL);
}

#define CALL_EVDS	(DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_REQUEST_EVD_HANDLE | \
			 DAT_EP_FIELD_CONNECT_EVD_HANDLE)
#define CALL_SIZES	(DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE | DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IN)

static noinline DAT_RETURN call_make(struct calls *c, int line)
{
	DAT_LMR_TRIPLET iov = kd_seg(c->env, KD_RW, 0, 8);
	DAT_RMR_TRIPLET rmr = kd_remote(0x1000, 8, 1);
	struct kdat_conn_attr conn = KDAT_CONN_ATTR_INIT;
	struct kdat_request request = {
		.op = KDAT_REQUEST_SEND, .num_segments = 1, .local_iov = &iov,
	};
	struct scatterlist list;
	struct kdat_sg sg = { .sgl = &list, .nents = 1, .length = 8 };
	DAT_DTO_COOKIE cookie = { .as_64 = 5 };
	struct sockaddr_in addr = kd_peer;
	DAT_EP_HANDLE ep = c->env->ep;
	DAT_RMR_CONTEXT context;
	DAT_COUNT count, range;
	DAT_EP_PARAM param;
	DAT_HANDLE out;

	sg_init_one(&list, c->env->buf, 8);
	KD_EXPECT_OK(c->env->test, dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	switch (line) {
#define IN_STATES(call, outcomes, ...)	case __LINE__: return __VA_ARGS__;
#include "all_calls.h"
	}
	return DAT_SUCCESS;
}

/*
 * In the columns of IN_STATES(), U R P A T C DP D CP:
 *
 *   letters	success, and that is where the EP is then
 *   =		success, and the EP is where it was
 *   F		success, and the handle is dead
 *   IS		DAT_INVALID_STATE, subtype the state; nothing has changed
 *   IA		DAT_INVALID_ADDRESS: the state was right, but the fake device has no
 *		address; nothing has changed
 *	MN		DAT_MODEL_NOT_SUPPORTED: the EP has no SRQ
 *	PV		DAT_PRIVILEGES_VIOLATION: the state was right, the key is none
 *	LF		the state was right, but the LMR is free again: the binding was flushed
 *	-		it would wait for what the case holds back
 *
 * An accepted request leads to D by way of CP: there is no peer.
 */
static const struct call_row {
	const char *name;
	const char *want;
	int line;
} call_rows[] = {
#define IN_STATES(call, outcomes, ...)	{ #__VA_ARGS__, outcomes, __LINE__ },
#include "all_calls.h"
};

static int call_state(const char *letter)
{
	int i;

	for (i = 0; i < KD_STATES; i++)
		if (!strcmp(kd_states[i].letter, letter))
			return kd_states[i].state;
	return -1;
}

/* Nothing happened: parameters, Receives and events are as before. */
static void call_unchanged(struct calls *c, const DAT_EP_PARAM *before, unsigned int recvs,
			   const char *name, const char *from)
{
	struct kd_env *env = c->env;
	DAT_EP_PARAM after;

	kd_query(env, env->ep, &after);
	KUNIT_EXPECT_EQ_MSG(env->test, memcmp(before, &after, sizeof(after)), 0, "%s in %s", name,
			    from);
	KUNIT_EXPECT_EQ_MSG(env->test, fake_ib_outstanding(env->qp, true), recvs, "%s in %s", name,
			    from);
	KD_EXPECT_EMPTY(env->test, env->conn);
	KD_EXPECT_EMPTY(env->test, env->async);
}

/* One call in one state. */
static void call_one(struct calls *c, const struct call_row *row, int state)
{
	static const struct {
		const char *word;
		DAT_RETURN ret;
	} refusals[] = {
		{ "IS", DAT_ERROR(DAT_INVALID_STATE, 0) },
		{ "IA", DAT_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE) },
		{ "MN", DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE) },
		{ "PV", DAT_ERROR(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE) },
		{ "LF", DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_FREE) },
	};
	const char *from = kd_states[state].letter;
	struct kd_env *env = c->env;
	struct kunit *test = env->test;
	DAT_EP_PARAM before;
	unsigned int recvs;
	DAT_RETURN ret;
	char want[8];
	int i;

	kd_word(row->want, state, want, sizeof(want));
	if (!strcmp(want, "-"))
		return;
	kd_query(env, env->ep, &before);
	KUNIT_EXPECT_EQ(test, (int)before.ep_state, (int)kd_states[state].state);
	recvs = fake_ib_outstanding(env->qp, true);
	if (!strcmp(want, "DP"))	/* keeps it there */
		KD_EXPECT_OK(test, dat_ep_post_send(env->ep, 0, NULL, (DAT_DTO_COOKIE) {}, 0));
	ret = call_make(c, row->line);
	for (i = 0; i < ARRAY_SIZE(refusals); i++) {
		if (strcmp(want, refusals[i].word))
			continue;
		KUNIT_EXPECT_EQ_MSG(test, (u32)ret, (u32)refusals[i].ret |
				    (i ? 0 : kd_states[state].subtype), "%s in %s", row->name,
				    from);
		call_unchanged(c, &before, recvs, row->name, from);
		return;
	}
	KUNIT_EXPECT_EQ_MSG(test, (u32)ret, (u32)DAT_SUCCESS, "%s in %s", row->name, from);
	if (!strcmp(want, "F")) {
		KD_BAD_HANDLE(test, dat_ep_free(env->ep), _EP);
		env->ep = DAT_HANDLE_NULL;
	} else {
		i = strcmp(want, "=") ? call_state(want) : (int)kd_states[state].state;
		KD_WAIT(test, kd_state(env, env->ep) == i);
		KUNIT_EXPECT_EQ_MSG(test, (int)kd_state(env, env->ep), i, "%s in %s", row->name,
				    from);
		/* the one event that tells how it ended, if it did now, and no other */
		if (i == DAT_EP_STATE_DISCONNECTED && strcmp(want, "="))
			KUNIT_EXPECT_EQ_MSG(test, kd_expect_end(env),
					    (u32)(strncmp(row->name, "call_accept", 11) ?
					    DAT_CONNECTION_EVENT_DISCONNECTED :
					    DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR),
					    "%s in %s", row->name, from);
	}
	KD_EXPECT_EMPTY(test, env->conn);
	KD_EXPECT_EMPTY(test, env->async);
}

static void call_reach(struct kd_env *env, DAT_EP_STATE state)
{
	kd_reach(env, state);
	if (state == DAT_EP_STATE_CONNECTED)
		memcpy(&kd_conn_of(env)->remote, &kd_peer, sizeof(kd_peer));
}

static DAT_EP_HANDLE call_other_ep(struct kd_env *env, DAT_EP_STATE state)
{
	kd_ep(env, NULL);
	call_reach(env, state);
	return kd_ep_give(env);
}

static void call_free_mem(struct calls *c)
{
	if (c->rmr)
		KD_EXPECT_OK(c->env->test, dat_rmr_free(c->rmr));
	if (c->fmr)
		KD_EXPECT_OK(c->env->test, dat_lmr_free(c->fmr));
}

static void call_fresh(struct calls *c, int state)
{
	struct kd_env *env = c->env;

	kd_ep_free(env);
	kd_drain(env->conn);
	kd_drain(env->recv);
	kd_drain(env->req);
	call_free_mem(c);
	KD_ASSERT_OK(env->test, dat_lmr_allocate(env->ia, env->pz, 4, DAT_LMR_SCOPE_PZ, &c->fmr));
	KD_ASSERT_OK(env->test, dat_rmr_create(env->pz, &c->rmr));
	kd_ep(env, NULL);
	KD_EXPECT_OK(env->test, dat_ep_post_recv(env->ep, 0, NULL, (DAT_DTO_COOKIE) {}, 0));
	call_reach(env, kd_states[state].state);
}

static void call_open(struct kunit *test, struct calls *c)
{
	c->env = kd_open(test, NULL);
	c->cr_evd = kd_cr_evd(c->env, 8);
	c->psp = kd_psp(c->env, c->cr_evd, CALL_QUAL, DAT_PSP_CONSUMER_FLAG);
	c->connected = call_other_ep(c->env, DAT_EP_STATE_CONNECTED);
	c->fresh = call_other_ep(c->env, DAT_EP_STATE_UNCONNECTED);
}

static void call_close(struct calls *c)
{
	struct kunit *test = c->env->test;

	kd_ep_free(c->env);
	call_free_mem(c);
	/* nobody has touched the others */
	KD_EXPECT_STATE(c->env, c->connected, CONNECTED);
	KD_EXPECT_STATE(c->env, c->fresh, UNCONNECTED);
	KD_EXPECT_OK(test, dat_ep_free(c->connected));
	KD_EXPECT_OK(test, dat_ep_free(c->fresh));
	KD_EXPECT_OK(test, dat_psp_free(c->psp));
	KD_EXPECT_EMPTY(test, c->cr_evd);
	KD_EXPECT_OK(test, dat_evd_free(c->cr_evd));
}

static void call_table_test(struct kunit *test)
{
	struct calls c = {};
	int s, i;

	call_open(test, &c);
	for (s = 0; s < KD_STATES; s++) {
		for (i = 0; i < ARRAY_SIZE(call_rows); i++) {
			call_fresh(&c, s);
			call_one(&c, &call_rows[i], s);
		}
	}
	call_close(&c);
}

/* An abrupt disconnect does not wait: the time until the last flush is DISCONNECT_PENDING. */
static void call_window_test(struct kunit *test)
{
	struct kd_env *env = kd_connected(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	unsigned long flags;
	DAT_RETURN ret;

	KD_EXPECT_OK(test, kd_post(env->ep, KD_SEND, 1, &iov, 1, NULL, 0));
	KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, 2, NULL, 0));
	fake_ib_hold_flush(env->dev, true);
	local_irq_save(flags);
	ret = dat_ep_disconnect(env->ep, DAT_CLOSE_ABRUPT_FLAG);
	local_irq_restore(flags);
	KD_EXPECT_OK(test, ret);
	KD_EXPECT_STATE(env, env->ep, DISCONNECT_PENDING);
	KD_WAIT(test, fake_ib_qp_state(env->qp) == IB_QPS_ERR);
	/* the device has not given them back */
	KD_EXPECT_EMPTY(test, env->conn);
	KD_EXPECT_EMPTY(test, env->req);
	KD_EXPECT_EMPTY(test, env->recv);
	KD_EXPECT_STATE(env, env->ep, DISCONNECT_PENDING);
	KD_BAD_STATE(test, kd_post(env->ep, KD_SEND, 1, &iov, 3, NULL, 0), EP_DISCPENDING);
	KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, 4, NULL, 0));
	KD_BAD_STATE(test, dat_ep_reset(env->ep), EP_DISCPENDING);
	fake_ib_hold_flush(env->dev, false);
	fake_ib_flush(env->qp);
	KD_EXPECT_END(env, DISCONNECTED);
	/* and all of it is there when that is known */
	kd_expect_dtos(test, env->req, 1, 1, DAT_DTO_ERR_FLUSHED);
	kd_expect_dto(test, env->recv, 2, DAT_DTO_ERR_FLUSHED);
	kd_expect_dtos(test, env->recv, 4, 1, DAT_DTO_ERR_FLUSHED);
	KD_EXPECT_OK(test, dat_ep_reset(env->ep));
}

/* Without a connect EVD nobody hears of it, and the states are the same. */
static void call_no_evd_test(struct kunit *test)
{
	static const DAT_EP_STATE from[] = {
		DAT_EP_STATE_ACTIVE_CONNECTION_PENDING, DAT_EP_STATE_COMPLETION_PENDING,
		DAT_EP_STATE_CONNECTED,
	};
	struct kd_env *env = kd_open(test, NULL);
	DAT_EVD_HANDLE conn = env->conn;
	int i;

	for (i = 0; i < ARRAY_SIZE(from); i++) {
		env->conn = DAT_HANDLE_NULL;
		kd_ep(env, NULL);
		if (from[i] == DAT_EP_STATE_CONNECTED)
			kd_bring_up(env);
		else
			kd_reach(env, from[i]);
		KUNIT_EXPECT_EQ(test, (int)kd_state(env, env->ep), (int)from[i]);
		kd_end(env, DAT_CONNECTION_EVENT_DISCONNECTED);
		kd_reset(env);
		kd_ep_free(env);
		env->conn = conn;
		KD_EXPECT_EMPTY(test, env->conn);
		KD_EXPECT_EMPTY(test, env->async);
	}
}

/* The connection is established, with private data of the peer. */
static struct kdapl_conn *call_up_with_pdata(struct kd_env *env)
{
	struct kdapl_conn *conn = kd_conn_of(env);

	conn->pdata = kmemdup("from the peer", 14, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(env->test, conn->pdata);
	conn->pdata_len = 14;
	kd_bring_up(env);
	return conn;
}

/* Reset frees the private data of the connection: no more, and once. */
static void call_reset_pdata_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kdapl_conn *conn;
	DAT_EVENT event;
	int i;

	kd_ep(env, NULL);
	for (i = 0; i < 3; i++) {
		conn = call_up_with_pdata(env);
		KUNIT_ASSERT_TRUE(test, kd_next(env->conn, &event));
		KUNIT_EXPECT_EQ(test, event.event_data.connect_event_data.private_data_size, 14);
		/* until the reset, whatever happens to the connection */
		kd_end(env, DAT_CONNECTION_EVENT_DISCONNECTED);
		KUNIT_EXPECT_STREQ(test, (char *)event.event_data.connect_event_data.private_data,
				   "from the peer");
		/* the state comes a moment before the event */
		kd_next_wait(env, env->conn, &event);
		refcount_inc(&conn->ref);
		KD_EXPECT_OK(test, dat_ep_reset(env->ep));
		/* the old connection is held by this test alone, soon */
		KD_WAIT(test, refcount_read(&conn->ref) == 1);
		kdapl_conn_put(conn);
		KUNIT_EXPECT_NULL(test, kd_conn_of(env)->pdata);
		env->qp = kd_conn_of(env)->qp;
	}
}

/* An event that is queued across a reset comes without the private data, which is gone. */
static void call_reset_queued_test(struct kunit *test)
{
	DAT_CONNECTION_EVENT_DATA *data;
	struct kd_env *env = kd_open(test, NULL);
	struct kdapl_conn *conn;
	DAT_EVENT event;
	int i;

	kd_ep(env, NULL);
	for (i = 0; i < 2; i++) {
		conn = call_up_with_pdata(env);
		if (i)
			break;
		kd_end(env, DAT_CONNECTION_EVENT_DISCONNECTED);
		wait_for_completion(&conn->ended);
		KD_EXPECT_OK(test, dat_ep_reset(env->ep));
		env->qp = kd_conn_of(env)->qp;
	}
	data = &event.event_data.connect_event_data;
	for (i = 0; i < 3; i++) {
		KUNIT_ASSERT_TRUE(test, kd_next(env->conn, &event));
		KUNIT_EXPECT_EQ(test, (u32)event.event_number,
				i == 1 ? (u32)DAT_CONNECTION_EVENT_DISCONNECTED :
					 (u32)DAT_CONNECTION_EVENT_ESTABLISHED);
		KUNIT_EXPECT_PTR_EQ(test, data->ep_handle, env->ep);
		if (i < 2) {
			KUNIT_EXPECT_NULL(test, data->private_data);
			KUNIT_EXPECT_EQ(test, data->private_data_size, 0);
		}
	}
	/* that of the next connection */
	KUNIT_EXPECT_EQ(test, data->private_data_size, 14);
	KUNIT_EXPECT_PTR_EQ(test, (void *)data->private_data, kd_conn_of(env)->pdata);
}

static struct kunit_case call_cases[] = {
	KD_CASE(call_table_test,
		"EP-DIS-04..07,EP-POST-10,SEND-17,RECV-13,RDMAW-10,RDMAR-11,CONN-12: calls"),
	KD_CASE(call_window_test, "SIL-13,EP-DIS-01,EP-DIS-07,EPSM-15: an abrupt one waits"),
	KD_CASE(call_no_evd_test, "EPSM-33: connections nobody is told of"),
	KD_CASE(call_reset_pdata_test, "EP-RST-04: private data lives until the reset"),
	KD_CASE(call_reset_queued_test, "EP-RST-04: not even in an event that is still queued"),
	{}
};

KD_SUITE("kdapl-calls", call_cases, kd_init, kd_exit);
