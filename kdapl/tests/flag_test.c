// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Completion flags: which of them an EP may have, which EPs may share an EVD,
 * and which completions start upcalls.
 */
#include <linux/delay.h>

#include "kd_test.h"

#define FLAG_KEY	0x4711

static const int flag_recv_attrs[] = {
	DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_UNSIGNALLED_FLAG,
	DAT_COMPLETION_SOLICITED_WAIT_FLAG,
};

static const int flag_req_attrs[] = {
	DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_UNSIGNALLED_FLAG,
};

static DAT_RETURN flag_post(struct kd_env *env, enum kd_call call, u64 cookie, int flags)
{
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 8, FLAG_KEY);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);

	return kd_post(env->ep, call, 1, &iov, cookie, &remote, flags);
}

/* Every value of both attributes. */
static void flag_attr_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	bool recv_ok, req_ok, ok;
	int value, role, bit;
	DAT_EP_HANDLE ep;
	DAT_EP_ATTR attr;
	DAT_RETURN ret;

	for (bit = 0; bit < 256 + 24; bit++) {
		value = bit < 256 ? bit : 1 << (bit - 256 + 8);
		recv_ok = value == 0 || value == 2 || value == 4;
		req_ok = value == 0 || value == 4;
		for (role = 0; role < 2; role++) {
			kd_attr(&attr);
			if (role)
				attr.request_completion_flags = value;
			else
				attr.recv_completion_flags = value;
			ok = role ? req_ok : recv_ok;
			ret = dat_ep_create(env->ia, env->pz, env->recv, env->req, env->conn,
					    &attr, &ep);
			if (ok) {
				KUNIT_EXPECT_EQ_MSG(test, (u32)ret, (u32)DAT_SUCCESS, "%#x",
						    value);
				KD_EXPECT_OK(test, dat_ep_free(ep));
			} else {
				KUNIT_EXPECT_EQ_MSG(test, (u32)ret,
						    (u32)DAT_ERROR(DAT_INVALID_PARAMETER,
								   DAT_INVALID_ARG6),
						    "%#x", value);
			}
		}
	}
}

/* Which queues of an EP complete on the shared EVD: bit 0 receives, bit 1 requests. */
struct flag_use {
	int queues;
	int recv;
	int req;
};

/* May an EP like @b join an EVD that EPs like @a feed (or none, if NULL)? */
static bool flag_may_share(const struct flag_use *a, const struct flag_use *b)
{
	const struct flag_use *u[2] = { a, b };
	bool solicited = false, requests = false;
	int i;

	for (i = 0; i < 2; i++) {
		if (!u[i])
			continue;
		solicited |= (u[i]->queues & 1) && u[i]->recv == DAT_COMPLETION_SOLICITED_WAIT_FLAG;
		requests |= u[i]->queues & 2;
	}
	if (solicited && requests)
		return false;
	if (!a)
		return true;
	if ((a->queues & b->queues & 1) && a->recv != b->recv)
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

static void flag_use_of(int code, struct flag_use *use)
{
	use->queues = 1 + code % 3;
	use->recv = flag_recv_attrs[code / 3 % 3];
	use->req = flag_req_attrs[code / 9];
}

/* Every pair of EPs on one EVD, made in both orders. */
static void flag_share_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct flag_use a, b;
	DAT_EP_HANDLE ep[3];
	DAT_EVD_HANDLE evd;
	DAT_RETURN ret;
	int i, j;

	KD_ASSERT_OK(test, dat_evd_kcreate(env->ia, 64, DAT_UPCALL_DISABLE, NULL,
					   DAT_EVD_DTO_FLAG, &evd));
	for (i = 0; i < 18; i++) {
		flag_use_of(i, &a);
		ret = flag_make(env, evd, &a, &ep[0]);
		if (!flag_may_share(NULL, &a)) {
			KD_EXPECT_RET(test, ret, DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
			continue;
		}
		KD_ASSERT_OK(test, ret);
		for (j = 0; j < 18; j++) {
			flag_use_of(j, &b);
			ret = flag_make(env, evd, &b, &ep[1]);
			if (flag_may_share(&a, &b)) {
				KUNIT_EXPECT_EQ_MSG(test, (u32)ret, (u32)DAT_SUCCESS,
						    "%d/%#x/%#x and %d/%#x/%#x", a.queues, a.recv,
						    a.req, b.queues, b.recv, b.req);
				/* the rule holds for as long as one of them lives */
				if (!ret)
					KD_EXPECT_OK(test, dat_ep_free(ep[1]));
				continue;
			}
			KUNIT_EXPECT_EQ_MSG(test, (u32)ret,
					    (u32)DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6),
					    "%d/%#x/%#x and %d/%#x/%#x", a.queues, a.recv, a.req,
					    b.queues, b.recv, b.req);
			if (ret == DAT_SUCCESS)
				dat_ep_free(ep[1]);
		}
		KD_EXPECT_OK(test, dat_ep_free(ep[0]));
	}
	KD_EXPECT_OK(test, dat_evd_free(evd));
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
	DAT_EP_HANDLE ep;
	DAT_RETURN ret;
	int i, j;

	for (i = 0; i < ARRAY_SIZE(others); i++) {
		KD_ASSERT_OK(test, dat_evd_kcreate(env->ia, 64, DAT_UPCALL_DISABLE, NULL,
						   DAT_EVD_DTO_FLAG | others[i], &evd));
		for (j = 0; j < 18; j++) {
			flag_use_of(j, &use);
			ret = flag_make(env, evd, &use, &ep);
			if ((!(use.queues & 1) || !use.recv) && (!(use.queues & 2) || !use.req)) {
				KD_ASSERT_OK(test, ret);
				KD_EXPECT_OK(test, dat_ep_free(ep));
			} else {
				KD_EXPECT_RET(test, ret, DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
			}
		}
		KD_EXPECT_OK(test, dat_evd_free(evd));
	}
}

/*
 * Binds complete where requests do: that an EVD could have some forbids nothing, solicited
 * wait neither; requests do, and forbid them to come.
 */
static void flag_rmr_test(struct kunit *test)
{
	static const enum kdat_evd_context contexts[] = {
		KDAT_EVD_CONTEXT_DEFAULT, KDAT_EVD_CONTEXT_SOFTIRQ, KDAT_EVD_CONTEXT_WORKQUEUE,
	};
	struct kd_env *env = kd_open(test, NULL);
	struct flag_use use;
	DAT_EVD_HANDLE evd;
	const struct flag_use requests = { .queues = 2 };
	DAT_EP_HANDLE ep, other;
	DAT_RETURN ret;
	int c, i, rmr;

	for (c = 0; c < 2 * (int)ARRAY_SIZE(contexts); c++) {
		struct kdat_evd_attr attr = KDAT_EVD_ATTR_INIT;

		rmr = c & 1 ? DAT_EVD_RMR_BIND_FLAG : 0;
		attr.context = contexts[c / 2];
		KD_ASSERT_OK(test, kdat_evd_create(env->ia, 64, DAT_UPCALL_DISABLE, NULL,
						   DAT_EVD_DTO_FLAG | rmr, &attr, &evd));
		for (i = 0; i < 18; i++) {
			flag_use_of(i, &use);
			ret = flag_make(env, evd, &use, &ep);
			if (!flag_may_share(NULL, &use)) {
				KD_EXPECT_RET(test, ret, DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
			} else {
				KD_ASSERT_OK(test, ret);
				if (rmr && use.recv == DAT_COMPLETION_SOLICITED_WAIT_FLAG &&
				    use.queues == 1) {
					ret = flag_make(env, evd, &requests, &other);
					KD_EXPECT_RET(test, ret, DAT_INVALID_PARAMETER,
						      DAT_INVALID_ARG6);
				}
				KD_EXPECT_OK(test, dat_ep_free(ep));
			}
		}
		KD_EXPECT_OK(test, dat_evd_free(evd));
	}
}

/* Default flags: one upcall per completion, successful or not, of every call. */
static void flag_default_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kd_upcalls *up[2];
	enum kd_call call;
	int i, n, round;

	up[0] = kd_upcalls_on(env, &env->req, DAT_EVD_DTO_FLAG);
	up[1] = kd_upcalls_on(env, &env->recv, DAT_EVD_DTO_FLAG);
	for (call = 0; call < KD_NR_CALLS; call++) {
		struct kd_upcalls *u = up[kd_is_recv(call)];

		kd_ep(env, NULL);
		kd_connect(env);
		n = u->n;
		for (round = 0; round < 3; round++) {
			for (i = 0; i < 3; i++)
				KD_EXPECT_OK(test, flag_post(env, call, 10 * call + i, 0));
			fake_ib_complete_all(env->qp, kd_is_recv(call), IB_WC_SUCCESS);
			n += 3;
			KUNIT_EXPECT_EQ(test, kd_upcalls_wait(u, n), n);
		}
		u->n = 0;
		KD_EXPECT_OK(test, flag_post(env, call, 77, 0));
		KD_EXPECT_OK(test, flag_post(env, call, 78, 0));
		fake_ib_complete(env->qp, kd_is_recv(call), IB_WC_LOC_PROT_ERR);
		KUNIT_EXPECT_EQ(test, kd_upcalls_wait(u, 2), 2);
		for (i = 0; i < 2; i++)
			KUNIT_EXPECT_EQ(test, u->events[i].event_data.dto_completion_event_data
					.user_cookie.as_64, 77ULL + i);
		KUNIT_EXPECT_EQ(test, (int)u->events[1].event_data.dto_completion_event_data.status,
				(int)DAT_DTO_ERR_FLUSHED);
		KUNIT_EXPECT_EQ(test, kd_expect_end(env), (u32)DAT_CONNECTION_EVENT_BROKEN);
		kd_ep_free(env);
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
	DAT_EP_ATTR attr;
	DAT_EVENT event;
	int i, send, want;
	DAT_RETURN ret;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		for (send = 0; send < 2; send++) {
			kd_attr(&attr);
			attr.recv_completion_flags = rows[i].attr;
			kd_ep(env, &attr);
			kd_connect(env);
			msleep(20);	/* the engine has armed the queue */
			up->n = 0;
			ret = flag_post(env, KD_RECV, 5, rows[i].post);
			if (rows[i].notified[send] < 0) {
				KD_EXPECT_RET(test, ret, DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
				kd_ep_free(env);
				continue;
			}
			KD_EXPECT_OK(test, ret);
			fake_ib_recv(env->qp, 3, send);
			want = rows[i].notified[send];
			KUNIT_EXPECT_EQ_MSG(test, kd_upcalls_wait(up, want), want,
					    "row %d, solicited %d", i, send);
			/* without a notification it is there all the same */
			if (!want) {
				KUNIT_ASSERT_TRUE(test, kd_next(env->recv, &event));
				KUNIT_EXPECT_EQ(test, event.event_data.dto_completion_event_data
						.user_cookie.as_64, 5ULL);
			}
			kd_ep_free(env);
			kd_pause();
		}
	}
}

/* The table of request notifications: attribute, flags of the post. */
static void flag_request_table_test(struct kunit *test)
{
	const int sup = DAT_COMPLETION_SUPPRESS_FLAG, uns = DAT_COMPLETION_UNSIGNALLED_FLAG;
	const struct {
		int attr;
		int post;
		int event;		/* -1: refused */
		int notified;
	} rows[] = {
		{ DAT_COMPLETION_DEFAULT_FLAG, 0, 1, 1 },
		{ DAT_COMPLETION_UNSIGNALLED_FLAG, 0, 1, 1 },
		{ DAT_COMPLETION_DEFAULT_FLAG, sup, 0, 0 },
		{ DAT_COMPLETION_UNSIGNALLED_FLAG, sup, 0, 0 },
		{ DAT_COMPLETION_DEFAULT_FLAG, uns, -1, 0 },
		{ DAT_COMPLETION_DEFAULT_FLAG, uns | sup, -1, 0 },
		{ DAT_COMPLETION_UNSIGNALLED_FLAG, uns, 1, 0 },
		{ DAT_COMPLETION_UNSIGNALLED_FLAG, uns | sup, 0, 0 },
	};
	struct kd_env *env = kd_open(test, NULL);
	struct kd_upcalls *up = kd_upcalls_on(env, &env->req, DAT_EVD_DTO_FLAG);
	enum kd_call call;
	DAT_EP_ATTR attr;
	DAT_EVENT event;
	DAT_RETURN ret;
	int i, n;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		kd_attr(&attr);
		attr.request_completion_flags = rows[i].attr;
		kd_ep(env, &attr);
		kd_connect(env);
		for (call = 0; call < KD_NR_CALLS; call++) {
			if (kd_is_recv(call))
				continue;
			up->n = 0;
			ret = flag_post(env, call, 5, rows[i].post);
			if (rows[i].event < 0) {
				KUNIT_EXPECT_EQ(test, (u32)DAT_GET_TYPE(ret),
						(u32)DAT_INVALID_PARAMETER);
				continue;
			}
			KD_EXPECT_OK(test, ret);
			fake_ib_complete_all(env->qp, false, IB_WC_SUCCESS);
			n = kd_upcalls_wait(up, rows[i].notified);
			KUNIT_EXPECT_EQ_MSG(test, n, rows[i].notified, "row %d, %s", i,
					    kd_call_names[call]);
			for (n = 0; kd_next(env->req, &event); n++)
				;
			KUNIT_EXPECT_EQ_MSG(test, n, rows[i].event - rows[i].notified,
					    "row %d, %s", i, kd_call_names[call]);
		}
		kd_ep_free(env);
	}
}

/* The sender's wish for a notification changes nothing on its own side. */
static void flag_solicited_sender_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kd_upcalls *up = kd_upcalls_on(env, &env->req, DAT_EVD_DTO_FLAG);
	int flags;

	kd_ep(env, NULL);
	kd_connect(env);
	for (flags = 0; flags < 2; flags++) {
		up->n = 0;
		KD_EXPECT_OK(test, flag_post(env, KD_SEND, 1, DAT_COMPLETION_SOLICITED_WAIT_FLAG |
					     (flags ? DAT_COMPLETION_SUPPRESS_FLAG : 0)));
		fake_ib_complete_all(env->qp, false, IB_WC_SUCCESS);
		KUNIT_EXPECT_EQ(test, kd_upcalls_wait(up, !flags), !flags);
	}
}

/* Failures notify whatever was asked for, on either queue. */
static void flag_failure_test(struct kunit *test)
{
	const int uns = DAT_COMPLETION_UNSIGNALLED_FLAG;
	struct kd_env *env = kd_open(test, NULL);
	struct kd_upcalls *up[2];
	enum kd_call call;
	DAT_EP_ATTR attr;
	int flags, post;

	up[0] = kd_upcalls_on(env, &env->req, DAT_EVD_DTO_FLAG);
	up[1] = kd_upcalls_on(env, &env->recv, DAT_EVD_DTO_FLAG);
	for (call = 0; call < KD_NR_CALLS; call++) {
		struct kd_upcalls *u = up[kd_is_recv(call)];

		for (flags = 0; flags < 2; flags++) {
			kd_attr(&attr);
			attr.recv_completion_flags = uns;
			attr.request_completion_flags = uns;
			kd_ep(env, &attr);
			kd_connect(env);
			msleep(20);
			u->n = 0;
			post = uns;
			if (flags && !kd_is_recv(call))
				post |= DAT_COMPLETION_SUPPRESS_FLAG;
			KD_EXPECT_OK(test, flag_post(env, call, 9, post));
			fake_ib_complete(env->qp, kd_is_recv(call), IB_WC_LOC_QP_OP_ERR);
			KUNIT_EXPECT_EQ(test, kd_upcalls_wait(u, 1), 1);
			KUNIT_EXPECT_EQ(test, kd_expect_end(env),
					(u32)DAT_CONNECTION_EVENT_BROKEN);
			kd_ep_free(env);
		}
	}
}

/* What was not dequeued before a reset or a free is gone, and nothing else is. */
static void flag_drop_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_EP_HANDLE other, old;
	struct ib_qp *other_qp;
	int round, i, n;
	DAT_EP_ATTR attr;
	DAT_EVENT event;

	/* another EP on the same EVDs, whose events must stay */
	kd_attr(&attr);
	KD_ASSERT_OK(test, dat_ep_create(env->ia, env->pz, env->recv, env->req, env->conn, &attr,
					 &other));
	other_qp = fake_ib_newest_qp(env->dev);
	for (round = 0; round < 4; round++) {
		DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);

		KD_EXPECT_OK(test, kd_post(other, KD_RECV, 1, &iov, 1000 + round, NULL, 0));
		kd_ep(env, NULL);
		old = env->ep;
		kd_connect(env);
		for (i = 0; i < 3; i++) {
			KD_EXPECT_OK(test, flag_post(env, KD_SEND, i, 0));
			KD_EXPECT_OK(test, flag_post(env, KD_RECV, i, 0));
		}
		fake_ib_complete(env->qp, false, IB_WC_SUCCESS);
		fake_ib_recv(env->qp, 1, false);
		/* some are still in the CQ, some have been looked at */
		if (round & 1)
			KUNIT_EXPECT_TRUE(test, kd_next(env->req, &event));
		if (round & 2) {
			kd_ep_free(env);
		} else {
			kd_end(env, DAT_CONNECTION_EVENT_DISCONNECTED);
			KUNIT_EXPECT_EQ(test, kd_expect_end(env),
					(u32)DAT_CONNECTION_EVENT_DISCONNECTED);
			KD_EXPECT_OK(test, dat_ep_reset(env->ep));
			env->qp = fake_ib_newest_qp(env->dev);
		}
		msleep(20);
		KD_EXPECT_EMPTY(test, env->req);
		KD_EXPECT_EMPTY(test, env->recv);
		KD_EXPECT_EMPTY(test, env->conn);
		if (env->ep) {
			/* the reset one works, and only new events come */
			KD_EXPECT_OK(test, flag_post(env, KD_RECV, 500, 0));
			kd_connect(env);
			fake_ib_recv(env->qp, 1, false);
			for (n = 0; kd_next(env->recv, &event); n++) {
				KUNIT_EXPECT_EQ(test, event.event_data.dto_completion_event_data
						.user_cookie.as_64, 500ULL);
				KUNIT_EXPECT_PTR_EQ(test, event.event_data
						    .dto_completion_event_data.ep_handle, old);
			}
			KUNIT_EXPECT_EQ(test, n, 1);
			kd_ep_free(env);
		}
	}
	KUNIT_EXPECT_EQ(test, fake_ib_outstanding(other_qp, true), 4U);
	KD_EXPECT_OK(test, dat_ep_free(other));
}

/* No segment of a Send counts against an EP that has none. */
static void flag_no_iov_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 0, FLAG_KEY);
	struct fake_ib_wr wr;
	enum kd_call call;
	DAT_EP_ATTR attr;
	DAT_EVENT event;

	kd_attr(&attr);
	attr.max_request_iov = 0;
	attr.max_recv_iov = 0;
	attr.max_rdma_read_iov = 0;
	attr.max_rdma_write_iov = 0;
	kd_ep(env, &attr);
	kd_connect(env);
	for (call = 0; call < KD_NR_CALLS; call++) {
		KD_EXPECT_OK(test, kd_post(env->ep, call, 0, NULL, 3, &remote, 0));
		KUNIT_ASSERT_TRUE(test, fake_ib_last_wr(env->qp, kd_is_recv(call), &wr));
		KUNIT_EXPECT_EQ(test, wr.num_sge, 0);
		KD_EXPECT_RET(test, kd_post(env->ep, call, 1, &iov, 3, &remote, 0),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		fake_ib_complete_all(env->qp, kd_is_recv(call), IB_WC_SUCCESS);
		KUNIT_EXPECT_TRUE(test, kd_next(kd_evd_of(env, call), &event));
		KUNIT_EXPECT_EQ(test, (u32)event.event_data.dto_completion_event_data
				.transfered_length, 0U);
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
		KUNIT_EXPECT_EQ(test, kd_expect_end(env), (u32)DAT_CONNECTION_EVENT_BROKEN);
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

/* What a Receive needs is the right to write; to read is neither needed nor enough. */
static void flag_recv_right_test(struct kunit *test)
{
	struct kd_env *env = kd_connected(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_WO, 0, 8);

	KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, 0, NULL, 0));
	iov = kd_seg(env, KD_RO, 0, 8);
	KD_EXPECT_RET(test, kd_post(env->ep, KD_RECV, 1, &iov, 0, NULL, 0),
		      DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE);
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
		kd_exit(test);
		memset(env, 0, sizeof(*env));
		env->test = test;
	}
}

static struct kunit_case flag_cases[] = {
	KD_CASE(flag_attr_test, "FLAG-12,FLAG-14,EP-CREATE-08: every value of the attributes"),
	KD_CASE(flag_share_test, "FLAG-15,FLAG-16,EP-CREATE-16: every pair of EPs on one EVD"),
	KD_CASE(flag_streams_test, "FLAG-17,EP-CREATE-16: EVDs with other streams"),
	KD_CASE(flag_rmr_test, "FLAG-15..17: EVDs for binds too, and every context"),
	KD_CASE(flag_default_test, "FLAG-01: by default each completion notifies, once"),
	KD_CASE(flag_recv_table_test,
		"FLAG-20,FLAG-05,RECV-07: which successful receives notify"),
	KD_CASE(flag_request_table_test,
		"FLAG-21,FLAG-02,FLAG-04..06,SEND-06,SEND-07,SEND-09: which requests notify"),
	KD_CASE(flag_solicited_sender_test, "SEND-08,FLAG-08: solicited wait is for the peer"),
	KD_CASE(flag_supported_test, "FLAG-13,EP-POST-04: what the provider says of it"),
	KD_CASE(flag_failure_test, "FLAG-07: failures notify"),
	KD_CASE(flag_drop_test, "FLUSH-05,EP-RST-02,EP-FREE-03: events of an end are dropped"),
	KD_CASE(flag_no_iov_test, "SIL-44,SEND-02,SEND-03: no segments on an EP that has none"),
	KD_CASE(flag_null_evd_test, "SIL-45,EP-CREATE-03: completions without an EVD"),
	KD_CASE(flag_recv_right_test, "SIL-42,RECV-16: local write for receives"),
	{}
};

static struct kunit_suite flag_suite = {
	.name = "kdapl-flag",
	.suite_init = kd_suite_init,
	.suite_exit = kd_suite_exit,
	.init = kd_init,
	.exit = kd_exit,
	.test_cases = flag_cases,
};

kunit_test_suite(flag_suite);
