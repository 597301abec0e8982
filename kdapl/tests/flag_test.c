// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Completion flags: which EPs may share an EVD because of them, and which
 * completions start upcalls.
 */
#include "kd_upcall.h"

#define FLAG_KEY	0x4711

static DAT_RETURN flag_post(struct kd_env *env, enum kd_call call, u64 cookie, int flags)
{
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 8, FLAG_KEY);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);

	return kd_post(env->ep, call, 1, &iov, cookie, &remote, flags);
}

/* An EP with these attributes; bit 0: its receives complete on the shared EVD, bit 1: requests. */
struct flag_use {
	int queues;
	int recv;
	int req;
};

/* All there are: 3 sets of queues, 3 attributes of receives, 2 of requests. */
#define FLAG_USES	18

static struct flag_use flag_use(int code)
{
	static const int attrs[] = {
		DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_UNSIGNALLED_FLAG,
		DAT_COMPLETION_SOLICITED_WAIT_FLAG,
	};

	return (struct flag_use) { 1 + code % 3, attrs[code / 3 % 3], attrs[code / 9] };
}

/* May EPs like these be together on an EVD? Alone, too. */
static bool flag_may_share(const struct flag_use *a, const struct flag_use *b)
{
	const int wait = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	bool solicited = (a->queues & 1 && a->recv == wait) || (b->queues & 1 && b->recv == wait);

	if (solicited && (a->queues | b->queues) & 2)
		return false;
	if (a->queues & b->queues & 1 && a->recv != b->recv)
		return false;
	return !(a->queues & b->queues & 2) || a->req == b->req;
}

static DAT_RETURN flag_make(struct kd_env *env, DAT_EVD_HANDLE evd, const struct flag_use *use,
			    DAT_EP_HANDLE *ep)
{
	DAT_EP_ATTR attr;

	kd_attr(&attr);
	attr.recv_completion_flags = use->recv;
	attr.request_completion_flags = use->req;
	return dat_ep_create(env->ia, env->pz, use->queues & 1 ? evd : DAT_HANDLE_NULL,
			     use->queues & 2 ? evd : DAT_HANDLE_NULL, env->conn, &attr, ep);
}

/* An EP is made, and freed, or refused. */
static void flag_expect(struct kd_env *env, DAT_EVD_HANDLE evd, const struct flag_use *use, bool ok,
			int other)
{
	DAT_EP_HANDLE ep;
	u32 ret = flag_make(env, evd, use, &ep);
	u32 want = ok ? 0 : (u32)DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);

	KUNIT_EXPECT_EQ_MSG(env->test, ret, want,
			    "%d/%#x/%#x beside %d", use->queues, use->recv, use->req, other);
	if (ret == DAT_SUCCESS)
		KD_EXPECT_OK(env->test, dat_ep_free(ep));
}

/*
 * Every pair of EPs on one EVD, made in both orders; the rule holds for as long as one of them
 * lives. That the EVD could have binds, and in which context it makes upcalls, is all the same.
 */
static void flag_share_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct flag_use a, b;
	DAT_EP_HANDLE ep;
	DAT_EVD_HANDLE evd;
	int c, i, j;

	for (c = 0; c < 2 * KD_CONTEXTS; c++) {
		KD_ASSERT_OK(test, kd_evd_create(env, 64, DAT_UPCALL_DISABLE, NULL,
						 DAT_EVD_DTO_FLAG |
						 (c & 1 ? DAT_EVD_RMR_BIND_FLAG : 0),
						 kd_contexts[c / 2], &evd));
		for (i = 0; i < FLAG_USES; i++) {
			a = flag_use(i);
			flag_expect(env, evd, &a, flag_may_share(&a, &a), -1);
			if (!flag_may_share(&a, &a))
				continue;
			KD_ASSERT_OK(test, flag_make(env, evd, &a, &ep));
			for (j = 0; j < FLAG_USES; j++) {
				b = flag_use(j);
				flag_expect(env, evd, &b, flag_may_share(&a, &b), i);
			}
			KD_EXPECT_OK(test, dat_ep_free(ep));
		}
		KD_EXPECT_OK(test, dat_evd_free(evd));
	}
}

/* An EVD for other streams too: no attribute but the default. */
static void flag_streams_test(struct kunit *test)
{
	static const DAT_EVD_FLAGS others[] = {
		DAT_EVD_SOFTWARE_FLAG, DAT_EVD_CR_FLAG, DAT_EVD_CONNECTION_FLAG,
		DAT_EVD_ASYNC_FLAG, DAT_EVD_SOFTWARE_FLAG | DAT_EVD_CONNECTION_FLAG,
	};
	struct kd_env *env = kd_open(test, NULL);
	struct flag_use use;
	DAT_EVD_HANDLE evd;
	int i, j;

	for (i = 0; i < ARRAY_SIZE(others); i++) {
		evd = kd_evd(env, 64, DAT_EVD_DTO_FLAG | others[i]);
		for (j = 0; j < FLAG_USES; j++) {
			use = flag_use(j);
			flag_expect(env, evd, &use, (!(use.queues & 1) || !use.recv) &&
				    (!(use.queues & 2) || !use.req), -1);
		}
		KD_EXPECT_OK(test, dat_evd_free(evd));
	}
}

/* A connected EP one of whose queues has this attribute; nobody has seen an upcall yet. */
static void flag_ep(struct kd_env *env, struct kd_upcalls *up, bool recv, int flags)
{
	DAT_EP_ATTR attr;

	kd_attr(&attr);
	if (recv)
		attr.recv_completion_flags = flags;
	else
		attr.request_completion_flags = flags;
	kd_ep(env, &attr);
	kd_connect(env);
	kd_settle(up->evd);	/* the engine has armed the queue */
	up->n = 0;
}

/*
 * By default one upcall per completion, of every call; failures notify whatever was asked for,
 * and so does what is flushed behind them.
 */
static void flag_notify_test(struct kunit *test)
{
	const int sup = DAT_COMPLETION_SUPPRESS_FLAG, uns = DAT_COMPLETION_UNSIGNALLED_FLAG;
	const struct {
		int attr;
		int post;		/* of the one that fails */
		enum kd_call first, last;
	} rows[] = {
		{ 0, 0, KD_SEND, KD_READ },
		{ uns, uns, KD_RECV, KD_RECV },
		{ uns, uns | sup, KD_SEND, KD_READ },
		{ DAT_COMPLETION_SOLICITED_WAIT_FLAG, 0, KD_RECV, KD_RECV },
	};
	struct kd_env *env = kd_open(test, NULL);
	struct kd_upcalls *up[2], *u;
	enum kd_call call;
	int i, n;

	up[0] = kd_upcalls_on(env, &env->req, DAT_EVD_DTO_FLAG);
	up[1] = kd_upcalls_on(env, &env->recv, DAT_EVD_DTO_FLAG);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		for (call = rows[i].first; call <= rows[i].last; call++) {
			bool recv = kd_is_recv(call);

			if (recv && rows[i].post & sup)
				continue;
			u = up[recv];
			flag_ep(env, u, recv, rows[i].attr);
			for (n = 0; n < 9 && !rows[i].attr; n++) {
				KD_EXPECT_OK(test, flag_post(env, call, n, 0));
				if (n % 3 < 2)
					continue;
				fake_ib_complete_all(env->qp, recv, IB_WC_SUCCESS);
				KUNIT_EXPECT_EQ(test, kd_upcalls_wait(u, n + 1), n + 1);
			}
			u->n = 0;
			KD_EXPECT_OK(test, flag_post(env, call, 77, rows[i].post));
			KD_EXPECT_OK(test, flag_post(env, call, 78, rows[i].post));
			fake_ib_complete(env->qp, recv, IB_WC_LOC_PROT_ERR);
			KUNIT_EXPECT_EQ_MSG(test, kd_upcalls_wait(u, 2), 2, "row %d, %s", i,
					    kd_call_names[call]);
			KUNIT_EXPECT_EQ(test, kd_event_id(&u->events[0]), 77ULL);
			KUNIT_EXPECT_EQ(test, kd_event_id(&u->events[1]), 78ULL);
			KUNIT_EXPECT_EQ(test, (int)u->events[1].event_data
					.dto_completion_event_data.status,
					(int)DAT_DTO_ERR_FLUSHED);
			KD_EXPECT_END(env, BROKEN);
			kd_ep_free(env);
		}
	}
}

/* The table of receive notifications: attribute, flag of the post, flag of the Send. */
static void flag_recv_table_test(struct kunit *test)
{
	static const struct {
		int attr;
		int post;
		int notified[2];	/* Send without, with solicited wait; -1: refused */
	} rows[] = {
		{ DAT_COMPLETION_DEFAULT_FLAG, 0, { 1, 1 } },
		{ DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_UNSIGNALLED_FLAG, { -1, -1 } },
		{ DAT_COMPLETION_UNSIGNALLED_FLAG, 0, { 1, 1 } },
		{ DAT_COMPLETION_UNSIGNALLED_FLAG, DAT_COMPLETION_UNSIGNALLED_FLAG, { 0, 0 } },
		{ DAT_COMPLETION_SOLICITED_WAIT_FLAG, 0, { 0, 1 } },
		{ DAT_COMPLETION_SOLICITED_WAIT_FLAG, DAT_COMPLETION_UNSIGNALLED_FLAG, { -1, -1 } },
	};
	struct kd_env *env = kd_open(test, NULL);
	struct kd_upcalls *up = kd_upcalls_on(env, &env->recv, DAT_EVD_DTO_FLAG);
	int i, send, want;

	for (i = 0; i < 2 * (int)ARRAY_SIZE(rows); i++) {
		send = i % 2;
		want = rows[i / 2].notified[send];
		flag_ep(env, up, true, rows[i / 2].attr);
		if (want < 0) {
			KD_BAD_ARG(test, flag_post(env, KD_RECV, 5, rows[i / 2].post), 5);
		} else {
			KD_EXPECT_OK(test, flag_post(env, KD_RECV, 5, rows[i / 2].post));
			fake_ib_recv(env->qp, 3, send);
			KUNIT_EXPECT_EQ_MSG(test, kd_upcalls_wait(up, want), want,
					    "row %d, solicited %d", i / 2, send);
			/* without a notification it is there all the same */
			if (!want)
				kd_expect_dto(test, env->recv, 5, DAT_DTO_SUCCESS);
		}
		kd_ep_free(env);
	}
}

/* The table of request notifications: attribute, flags of the post. */
static void flag_request_table_test(struct kunit *test)
{
	const int sup = DAT_COMPLETION_SUPPRESS_FLAG, uns = DAT_COMPLETION_UNSIGNALLED_FLAG;
	const int sol = DAT_COMPLETION_SOLICITED_WAIT_FLAG;	/* which is for the peer */
	const struct {
		int attr;
		int post;
		int event;		/* -1: refused */
		int notified;
	} rows[] = {
		{ 0, 0, 1, 1 },
		{ uns, 0, 1, 1 },
		{ 0, sup, 0, 0 },
		{ uns, sup, 0, 0 },
		{ 0, uns, -1, 0 },
		{ 0, uns | sup, -1, 0 },
		{ uns, uns, 1, 0 },
		{ uns, uns | sup, 0, 0 },
		{ 0, sol, 1, 1 },
		{ 0, sol | sup, 0, 0 },
	};
	struct kd_env *env = kd_open(test, NULL);
	struct kd_upcalls *up = kd_upcalls_on(env, &env->req, DAT_EVD_DTO_FLAG);
	enum kd_call call;
	DAT_RETURN ret;
	int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		flag_ep(env, up, false, rows[i].attr);
		for (call = 0; call < KD_NR_CALLS; call++) {
			if (kd_is_recv(call) || ((rows[i].post & sol) && call != KD_SEND))
				continue;
			up->n = 0;
			ret = flag_post(env, call, 5, rows[i].post);
			if (rows[i].event < 0) {
				KD_EXPECT_TYPE(test, ret, DAT_INVALID_PARAMETER);
				continue;
			}
			KD_EXPECT_OK(test, ret);
			fake_ib_complete_all(env->qp, false, IB_WC_SUCCESS);
			KUNIT_EXPECT_EQ_MSG(test, kd_upcalls_wait(up, rows[i].notified),
					    rows[i].notified, "row %d, %s", i, kd_call_names[call]);
			KUNIT_EXPECT_EQ_MSG(test, kd_drain(env->req),
					    rows[i].event - rows[i].notified, "row %d, %s", i,
					    kd_call_names[call]);
		}
		kd_ep_free(env);
	}
}

/* A suppressed request fails and there is no EVD: BROKEN is all that is heard. */
static void flag_null_evd_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_EVD_HANDLE req = env->req, recv = env->recv;
	enum kd_call call;

	env->req = DAT_HANDLE_NULL;
	env->recv = DAT_HANDLE_NULL;
	for (call = 0; call < KD_NR_CALLS; call++) {
		int i;

		kd_ep(env, NULL);
		kd_connect(env);
		/* successes first: many more than the queue is long */
		for (i = 0; i < 40; i++) {
			KD_EXPECT_OK(test, flag_post(env, call, i, 0));
			fake_ib_complete_all(env->qp, kd_is_recv(call), IB_WC_SUCCESS);
		}
		KD_EXPECT_OK(test, flag_post(env, call, 1, kd_is_recv(call) ? 0 :
					     DAT_COMPLETION_SUPPRESS_FLAG));
		fake_ib_complete(env->qp, kd_is_recv(call), IB_WC_REM_INV_REQ_ERR);
		KD_EXPECT_END(env, BROKEN);
		/* and posts in DISCONNECTED vanish as well */
		for (i = 0; i < 40; i++)
			KD_EXPECT_OK(test, flag_post(env, call, i, 0));
		kd_ep_free(env);
	}
	KD_EXPECT_EMPTY(test, req);
	KD_EXPECT_EMPTY(test, recv);
	KD_EXPECT_EMPTY(test, env->async);
	env->req = req;
	env->recv = recv;
}

/* What the provider says of the flags: one device's receiver ignores solicited wait. */
static void flag_supported_test(struct kunit *test)
{
	static const enum rdma_driver_id drivers[] = {
		RDMA_DRIVER_UNKNOWN, RDMA_DRIVER_MLX5, RDMA_DRIVER_RXE, RDMA_DRIVER_SIW,
	};
	struct kd_env *env = test->priv;
	struct fake_ib_caps caps = {};
	DAT_PROVIDER_ATTR provider;
	DAT_EP_ATTR attr;
	int i, want;

	for (i = 0; i < ARRAY_SIZE(drivers); i++) {
		caps.driver = drivers[i];
		kd_open(test, &caps);
		want = DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_UNSIGNALLED_FLAG |
		       DAT_COMPLETION_BARRIER_FENCE_FLAG |
		       DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG;
		if (drivers[i] != RDMA_DRIVER_SIW)
			want |= DAT_COMPLETION_SOLICITED_WAIT_FLAG;
		KD_EXPECT_OK(test, dat_ia_query(env->ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL,
						&provider));
		KUNIT_EXPECT_EQ(test, (int)provider.completion_flags_supported, want);
		KUNIT_EXPECT_EQ(test, (int)provider.iov_ownership_on_return,
				(int)DAT_IOV_CONSUMER);
		/* accepted by all the same */
		kd_attr(&attr);
		attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
		kd_ep(env, &attr);
		kd_again(test);
	}
}

static struct kunit_case flag_cases[] = {
	KD_CASE(flag_share_test, "FLAG-15,FLAG-16,EP-CREATE-16: every pair of EPs on one EVD"),
	KD_CASE(flag_streams_test, "FLAG-17,EP-CREATE-16: EVDs with other streams"),
	KD_CASE(flag_notify_test, "FLAG-01,FLAG-07: by default each notifies, and failures always"),
	KD_CASE(flag_recv_table_test,
		"FLAG-20,FLAG-05,RECV-07: which successful receives notify"),
	KD_CASE(flag_request_table_test,
		"FLAG-21,FLAG-02,FLAG-04..06,FLAG-08,SEND-06..09: which requests notify"),
	KD_CASE(flag_supported_test, "FLAG-13,EP-POST-04: what the provider says of it"),
	KD_CASE(flag_null_evd_test, "SIL-45,EP-CREATE-03: completions without an EVD"),
	{}
};

KD_SUITE("kdapl-flag", flag_cases, kd_init, kd_exit);
