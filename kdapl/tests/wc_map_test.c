// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * What a work completion becomes: events, their contents and their order,
 * suppression and the slots it must give back, failures and the end.
 */
#include "kd_cost.h"

#define WC_KEY		0x4711

static const DAT_DTOS wc_ops[KD_NR_CALLS] = {
	[KD_SEND] = DAT_DTO_SEND,
	[KD_RECV] = DAT_DTO_RECEIVE,
	[KD_WRITE] = DAT_DTO_RDMA_WRITE,
	[KD_READ] = DAT_DTO_RDMA_READ,
};

static DAT_RETURN wc_post(struct kd_env *env, enum kd_call call, u64 cookie, u32 length, int flags)
{
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, length, WC_KEY);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, length);

	return kd_post(env->ep, call, 1, &iov, cookie, &remote, flags);
}

/* The next event is this completion. */
static void wc_expect(struct kd_env *env, enum kd_call call, u64 cookie, int status, u32 length)
{
	struct kunit *test = env->test;
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;

	dto = &event.event_data.dto_completion_event_data;
	KUNIT_ASSERT_TRUE_MSG(test, kd_next(kd_evd_of(env, call), &event),
			      "%s: no event for cookie %llx", kd_call_names[call], cookie);
	KUNIT_EXPECT_EQ(test, (u32)event.event_number, (u32)DAT_DTO_COMPLETION_EVENT);
	KUNIT_EXPECT_PTR_EQ(test, event.evd_handle, kd_evd_of(env, call));
	KUNIT_EXPECT_PTR_EQ(test, dto->ep_handle, env->ep);
	KUNIT_EXPECT_EQ(test, (u64)dto->user_cookie.as_64, cookie);
	KUNIT_EXPECT_EQ(test, (int)dto->status, status);
	KUNIT_EXPECT_EQ(test, (u32)dto->operation, (u32)wc_ops[call]);
	if (status == DAT_DTO_SUCCESS)
		KUNIT_EXPECT_EQ(test, (u32)dto->transfered_length, length);
}

/* Every status for every operation, each on an EP of its own. */
static void wc_status_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	enum kd_call call;
	int status;
	bool recv;
	u64 i;

	for (call = 0; call < KD_NR_CALLS; call++) {
		recv = kd_is_recv(call);
		for (status = IB_WC_SUCCESS + 1; status <= IB_WC_GENERAL_ERR; status++) {
			kd_ep(env, NULL);
			kd_connect(env);
			for (i = 1; i <= 3; i++)
				KD_EXPECT_OK(test, wc_post(env, call, i, 64, 0));
			fake_ib_complete(env->qp, recv, IB_WC_SUCCESS);
			fake_ib_complete(env->qp, recv, status);
			wc_expect(env, call, 1, DAT_DTO_SUCCESS, 64);
			wc_expect(env, call, 2, recv ? kdapl_wc_recv_status(status) :
						       kdapl_wc_status(status), 0);
			/* on InfiniBand a flush nobody asked for is a broken connection too */
			KD_EXPECT_END(env, BROKEN);
			KUNIT_EXPECT_EQ(test, (int)fake_ib_qp_state(env->qp), (int)IB_QPS_ERR);
			wc_expect(env, call, 3, DAT_DTO_ERR_FLUSHED, 0);
			KD_EXPECT_EMPTY(test, kd_evd_of(env, call));
			kd_ep_free(env);
		}
	}
}

/*
 * Suppressed requests of each kind: silent when they succeed; the k-th of eight that fails is
 * reported, and the others behind it are flushed.
 */
static void wc_suppress_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	enum kd_call call;
	int i, k;

	for (call = 0; call < KD_NR_CALLS; call++) {
		if (kd_is_recv(call))
			continue;
		for (k = 0; k < 8; k++) {
			kd_ep(env, NULL);
			kd_connect(env);
			for (i = 0; i < 8; i++)
				KD_EXPECT_OK(test, wc_post(env, call, i, 8, i == 7 ? 0 :
							   DAT_COMPLETION_SUPPRESS_FLAG));
			fake_ib_complete_all(env->qp, false, IB_WC_SUCCESS);
			wc_expect(env, call, 7, DAT_DTO_SUCCESS, 8);
			KD_EXPECT_EMPTY(test, env->req);
			KUNIT_EXPECT_EQ(test, kd_wq_used(kd_conn_of(env)->sq), 0U);
			for (i = 0; i < 8; i++)
				KD_EXPECT_OK(test, wc_post(env, call, 100 + i, 8,
							   DAT_COMPLETION_SUPPRESS_FLAG));
			for (i = 0; i < k; i++)
				fake_ib_complete(env->qp, false, IB_WC_SUCCESS);
			fake_ib_complete(env->qp, false, IB_WC_REM_ACCESS_ERR);
			wc_expect(env, call, 100 + k, DAT_DTO_ERR_REMOTE_ACCESS, 0);
			KD_EXPECT_END(env, BROKEN);
			for (i = k + 1; i < 8; i++)
				wc_expect(env, call, 100 + i, DAT_DTO_ERR_FLUSHED, 0);
			KD_EXPECT_EMPTY(test, env->req);
			kd_ep_free(env);
		}
	}
}

/*
 * Exactly N requests, up to an interval more when suppressed; no run of unsignaled ones is
 * longer than that, so slots come back by themselves.
 */
static void wc_depth_test(struct kunit *test)
{
	static const int depths[] = { 1, 2, 3, 4, 8, 9, 40 };
	struct kd_env *env = kd_open(test, NULL);
	int d, i, n, got, run, longest, interval;
	struct fake_ib_wr wr;
	struct ib_qp_cap cap;
	DAT_EP_ATTR attr;
	bool suppress;

	for (d = 0; d < 2 * ARRAY_SIZE(depths); d++) {
		n = depths[d / 2];
		suppress = d & 1;
		interval = max(1, n / 4);
		kd_attr(&attr);
		attr.max_request_dtos = n;
		attr.max_recv_dtos = n;
		kd_ep(env, &attr);
		kd_connect(env);
		fake_ib_qp_caps(env->qp, &cap);
		KUNIT_EXPECT_GE(test, (int)cap.max_send_wr, n + 1);
		/* a marker, and the first message where a device needs one */
		KUNIT_EXPECT_LE(test, (int)cap.max_send_wr, n + interval + 2);
		KUNIT_EXPECT_EQ(test, (int)cap.max_recv_wr, n);
		for (got = 0; got < 3 * n + 3; got++)
			if (wc_post(env, KD_SEND, got, 8,
				    suppress ? DAT_COMPLETION_SUPPRESS_FLAG : 0) != DAT_SUCCESS)
				break;
		KUNIT_EXPECT_GE_MSG(test, got, n, "depth %d", n);
		KUNIT_EXPECT_LT_MSG(test, got, n + (suppress ? interval : 1), "depth %d", n);
		for (got = 0; got < 3 * n + 3; got++)
			if (wc_post(env, KD_RECV, got, 8, 0) != DAT_SUCCESS)
				break;
		KUNIT_EXPECT_EQ_MSG(test, got, n, "receives, depth %d", n);
		/* all of it done, all of it free again, without anybody dequeuing */
		fake_ib_complete_all(env->qp, false, IB_WC_SUCCESS);
		if (!suppress)
			for (got = 0; got < n; got++)
				KD_EXPECT_OK(test, wc_post(env, KD_SEND, got, 8, 0));
		fake_ib_complete_all(env->qp, false, IB_WC_SUCCESS);
		/* paced by the peer, ten queues' worth of suppressed requests get through */
		for (i = 0; i < 10 * n && suppress; i++) {
			KD_EXPECT_OK(test, wc_post(env, i & 1 ? KD_WRITE : KD_SEND, i, 8,
						   DAT_COMPLETION_SUPPRESS_FLAG));
			if (fake_ib_outstanding(env->qp, false) >= n)
				fake_ib_complete(env->qp, false, IB_WC_SUCCESS);
		}
		got = fake_ib_posted(env->qp, false);
		for (i = max(0, got - 64), run = 0, longest = 0; i < got; i++) {
			KUNIT_ASSERT_TRUE(test, fake_ib_wr(env->qp, false, i, &wr));
			run = wr.send_flags & IB_SEND_SIGNALED ? 0 : run + 1;
			longest = max(longest, run);
		}
		KUNIT_EXPECT_LE_MSG(test, longest, interval, "depth %d", n);
		if (suppress) {
			fake_ib_complete_all(env->qp, false, IB_WC_SUCCESS);
			KD_EXPECT_EMPTY(test, env->req);
		}
		kd_ep_free(env);
	}
}

static void wc_end_flush_test(struct kunit *test)
{
	static const enum kd_call order[] = { KD_SEND, KD_WRITE, KD_READ, KD_SEND, KD_READ };
	struct kd_env *env = kd_connected(test, NULL);
	int i;

	/* two of five done, three and all receives under way */
	for (i = 0; i < 5; i++)
		KD_EXPECT_OK(test, wc_post(env, order[i], i, 8,
					   i == 0 || i == 3 ? DAT_COMPLETION_SUPPRESS_FLAG : 0));
	for (i = 0; i < 4; i++)
		KD_EXPECT_OK(test, wc_post(env, KD_RECV, i, 8, 0));
	fake_ib_complete(env->qp, false, IB_WC_SUCCESS);
	fake_ib_complete(env->qp, false, IB_WC_SUCCESS);
	fake_ib_recv(env->qp, 5, false);
	kd_end(env, DAT_CONNECTION_EVENT_DISCONNECTED);
	/* posted after the end: flushed, behind the others; suppressed or not */
	for (i = 0; i < 3; i++) {
		KD_EXPECT_OK(test, wc_post(env, order[i], 100 + i, 8,
					   i ? DAT_COMPLETION_SUPPRESS_FLAG : 0));
		KD_EXPECT_OK(test, wc_post(env, KD_RECV, 4 + i, 8, 0));
	}
	KD_EXPECT_END(env, DISCONNECTED);
	wc_expect(env, KD_WRITE, 1, DAT_DTO_SUCCESS, 8);
	for (i = 2; i < 5; i++)
		wc_expect(env, order[i], i, DAT_DTO_ERR_FLUSHED, 0);
	for (i = 0; i < 3; i++)
		wc_expect(env, order[i], 100 + i, DAT_DTO_ERR_FLUSHED, 0);
	KD_EXPECT_EMPTY(test, env->req);
	wc_expect(env, KD_RECV, 0, DAT_DTO_SUCCESS, 5);
	kd_expect_dtos(test, env->recv, 1, 6, DAT_DTO_ERR_FLUSHED);
}

/* The device refuses a post that passed our checks: the consumer hears it later. */
static void wc_post_fails_test(struct kunit *test)
{
	static const int errs[] = { -ENOMEM, -EINVAL, -ENOTCONN };
	struct kd_env *env = kd_open(test, NULL);
	struct kd_cost cost;
	enum kd_call call;
	int i;

	for (call = 0; call < KD_NR_CALLS; call++) {
		for (i = 0; i < ARRAY_SIZE(errs); i++) {
			kd_ep(env, NULL);
			kd_connect(env);
			KD_EXPECT_OK(test, wc_post(env, call, 1, 8, 0));
			fake_ib_fail(env->dev, kd_is_recv(call) ? FAKE_IB_POST_RECV :
				     FAKE_IB_POST_SEND, 1, errs[i]);
			KD_EXPECT_OK(test, KD_COST(env, &cost, wc_post(env, call, 2, 8, 0)));
			KUNIT_EXPECT_EQ(test, cost.send + cost.recv, 1U);
			KUNIT_EXPECT_EQ(test, cost.wrs, 0U);
			KD_EXPECT_OK(test, wc_post(env, call, 3, 8, DAT_COMPLETION_DEFAULT_FLAG));
			KD_EXPECT_END(env, BROKEN);
			kd_expect_dtos(test, kd_evd_of(env, call), 1, 3, DAT_DTO_ERR_FLUSHED);
			kd_ep_free(env);
		}
	}
}

/* Idle is what has completed, dequeued or not. */
static void wc_idle(struct kd_env *env, bool recv, bool request)
{
	DAT_BOOLEAN recv_idle = -1, request_idle = -1, alone = -1;
	DAT_EP_STATE state = -1;

	KD_EXPECT_OK(env->test, dat_ep_get_status(env->ep, &state, &recv_idle, &request_idle));
	KD_EXPECT_OK(env->test, dat_ep_get_status(env->ep, NULL, &alone, NULL));
	KUNIT_EXPECT_EQ(env->test, (int)state, (int)DAT_EP_STATE_CONNECTED);
	KUNIT_EXPECT_EQ(env->test, (int)recv_idle, (int)(recv ? DAT_TRUE : DAT_FALSE));
	KUNIT_EXPECT_EQ(env->test, (int)request_idle, (int)(request ? DAT_TRUE : DAT_FALSE));
	KUNIT_EXPECT_EQ(env->test, (int)alone, (int)recv_idle);
}

static void wc_status_query_test(struct kunit *test)
{
	struct kd_env *env = kd_connected(test, NULL);

	wc_idle(env, true, true);
	KD_EXPECT_OK(test, wc_post(env, KD_SEND, 1, 8, 0));
	wc_idle(env, true, false);
	KD_EXPECT_OK(test, wc_post(env, KD_RECV, 2, 8, 0));
	wc_idle(env, false, false);
	fake_ib_complete_all(env->qp, false, IB_WC_SUCCESS);
	wc_idle(env, false, true);
	fake_ib_complete_all(env->qp, true, IB_WC_SUCCESS);
	wc_idle(env, true, true);
}

/* Much goes wrong at once, on both queues and from outside: one end, and no second. */
static void wc_one_end_test(struct kunit *test)
{
	static const struct {
		bool event, recv;
		int what;		/* IB_EVENT_* or IB_WC_* */
	} rows[] = {
		{ false, true, IB_WC_LOC_LEN_ERR }, { false, false, IB_WC_REM_OP_ERR },
		{ true, false, IB_EVENT_QP_FATAL }, { false, false, IB_WC_RETRY_EXC_ERR },
		{ true, false, IB_EVENT_QP_ACCESS_ERR }, { false, true, IB_WC_WR_FLUSH_ERR },
	};
	struct kd_env *env = kd_open(test, NULL);
	enum kd_call call;
	int round, i;

	for (round = 0; round < ARRAY_SIZE(rows); round++) {
		kd_ep(env, NULL);
		kd_connect(env);
		for (i = 0; i < 2; i++)
			for (call = 0; call < KD_NR_CALLS; call++)
				KD_EXPECT_OK(test, wc_post(env, call, i, 8, 0));
		fake_ib_hold_flush(env->dev, true);
		for (i = round; i < ARRAY_SIZE(rows); i++)
			if (rows[i].event)
				fake_ib_qp_event(env->qp, rows[i].what);
			else
				fake_ib_complete(env->qp, rows[i].recv, rows[i].what);
		/* a late call of the consumer's changes nothing */
		dat_ep_disconnect(env->ep, DAT_CLOSE_ABRUPT_FLAG);
		fake_ib_hold_flush(env->dev, false);
		KD_WAIT(test, fake_ib_qp_state(env->qp) == IB_QPS_ERR);
		fake_ib_flush(env->qp);
		/* nobody had looked at the flush of the last round before the disconnect */
		KUNIT_EXPECT_EQ(test, kd_expect_end(env), (u32)(round == 5 ?
				DAT_CONNECTION_EVENT_DISCONNECTED : DAT_CONNECTION_EVENT_BROKEN));
		fake_ib_qp_event(env->qp, IB_EVENT_QP_FATAL);
		flush_workqueue(kdapl_misc_wq);
		KD_EXPECT_EMPTY(test, env->conn);
		/* and every request is reported, once */
		KUNIT_EXPECT_EQ(test, kd_drain(env->req), 6);
		KUNIT_EXPECT_EQ(test, kd_drain(env->recv), 2);
		kd_ep_free(env);
		kd_drain(env->async);
	}
}

/* Attempts that come to nothing: one event, then or before it the Receives flushed. */
static void wc_attempt_test(struct kunit *test)
{
	static const struct {
		enum kdapl_ep_input input;
		u32 event;
		u32 reason;		/* if that is another one */
	} ends[] = {
		{ KDAPL_IN_CONNECT, DAT_CONNECTION_EVENT_UNREACHABLE },
		{ KDAPL_IN_CONNECT, DAT_CONNECTION_EVENT_TIMED_OUT },
		{ KDAPL_IN_ACCEPT, DAT_CONNECTION_EVENT_DISCONNECTED },
		/* what does not exist yet does not break */
		{ KDAPL_IN_CONNECT, DAT_CONNECTION_EVENT_NON_PEER_REJECTED,
		  DAT_CONNECTION_EVENT_BROKEN },
		{ KDAPL_IN_ACCEPT, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR,
		  DAT_CONNECTION_EVENT_BROKEN },
	};
	struct kd_env *env = kd_open(test, NULL);
	int i, k;

	for (i = 0; i < ARRAY_SIZE(ends); i++) {
		kd_ep(env, NULL);
		for (k = 0; k < 5; k++)
			KD_EXPECT_OK(test, wc_post(env, KD_RECV, k, 8, 0));
		spin_lock_irq(&env->kep->lock);
		kdapl_ep_step(env->kep, ends[i].input);
		spin_unlock_irq(&env->kep->lock);
		KD_EXPECT_OK(test, wc_post(env, KD_RECV, 5, 8, 0));
		KD_EXPECT_EMPTY(test, env->recv);
		kdapl_conn_end(kd_conn_of(env), ends[i].reason ?: ends[i].event);
		/* a later reason is not heard any more */
		kdapl_conn_end(kd_conn_of(env), DAT_CONNECTION_EVENT_DISCONNECTED);
		KUNIT_EXPECT_EQ(test, kd_expect_end(env), ends[i].event);
		KD_EXPECT_OK(test, wc_post(env, KD_RECV, 6, 8, 0));
		kd_expect_dtos(test, env->recv, 0, 7, DAT_DTO_ERR_FLUSHED);
		/* requests are flushed there, too */
		KD_EXPECT_OK(test, wc_post(env, KD_SEND, 1, 8, 0));
		wc_expect(env, KD_SEND, 1, DAT_DTO_ERR_FLUSHED, 0);
		kd_ep_free(env);
	}
}

static struct kunit_case wc_map_cases[] = {
	KD_CASE(wc_status_test,
		"STAT-01,STAT-02,STAT-05,EPSM-17,EPSM-31,EPSM-32: every failure of every call"),
	KD_CASE(wc_suppress_test,
		"FLAG-02,FLAG-03,FLAG-07,SEND-07,SEND-18: suppressed success, suppressed failure"),
	KD_CASE(wc_depth_test,
		"EP-POST-17,EP-CREATE-10,FLAG-11: how many requests fit, and how slots come back"),
	KD_CASE(wc_end_flush_test,
		"FLUSH-01,FLUSH-03,FLUSH-04,FLUSH-10,EP-POST-11: order of flushes at the end"),
	KD_CASE(wc_post_fails_test,
		"SEND-19,RECV-16,EPSM-17,EP-POST-02,EP-POST-06: the device refuses a legal post"),
	KD_CASE(wc_status_query_test, "EP-STA-01,EP-STA-02,EP-STA-03: idle or not"),
	KD_CASE(wc_one_end_test,
		"STAT-01,STAT-05,EPSM-31,FLUSH-08: much goes wrong, and ends once"),
	KD_CASE(wc_attempt_test,
		"FLUSH-02,FLUSH-03,EPSM-06..10,EPSM-12..13,EPSM-30,EPSM-34: attempts that fail"),
	{}
};

KD_SUITE("kdapl-wc-map", wc_map_cases, kd_cost_init, kd_cost_exit);
