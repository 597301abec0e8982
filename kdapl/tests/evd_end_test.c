// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Objects that are freed, reset and closed from several sides while an upcall
 * has something of theirs in hand. Who promised that it is over waits for it;
 * nobody waits for ever; what stays is delivered.
 */
#include <linux/delay.h>

#include "kd_upcall.h"

#define END_QLEN	64		/* one CQ has room for all EPs */
#define END_EPS		2

/* An EVD with upcalls that can be held, and EPs whose requests complete there. */
struct end {
	struct kd_env *env;
	struct kd_sink *sink;
	DAT_EVD_HANDLE evd;
	DAT_EP_HANDLE ep[END_EPS];
	struct ib_qp *qp[END_EPS];
};

static struct end *end_open(struct kunit *test, DAT_UPCALL_POLICY policy, bool unsignalled)
{
	struct end *end = kunit_kzalloc(test, sizeof(*end), GFP_KERNEL);
	struct kd_env *env = kd_open(test, NULL);
	DAT_EP_ATTR attr;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, end);
	end->env = env;
	end->sink = kd_sink(test);
	KD_ASSERT_OK(test, kd_evd_create(env, END_QLEN, policy, end->sink, DAT_EVD_DTO_FLAG,
					 KDAT_EVD_CONTEXT_WORKQUEUE, &end->evd));
	kd_attr(&attr);
	if (unsignalled)
		attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	for (i = 0; i < END_EPS; i++) {
		KD_ASSERT_OK(test, dat_ep_create(env->ia, env->pz, env->recv, end->evd, env->conn,
						 &attr, &end->ep[i]));
		end->qp[i] = fake_ib_newest_qp(env->dev);
		env->ep = end->ep[i];
		env->qp = end->qp[i];
		env->kep = kdapl_obj_get(env->ep, DAT_HANDLE_TYPE_EP);
		KUNIT_ASSERT_NOT_NULL(test, env->kep);
		kd_connect(env);
		kdapl_obj_put(&env->kep->obj);
		env->kep = NULL;
		env->ep = NULL;
		env->qp = NULL;
	}
	return end;
}

static void end_send(struct end *end, int i, u32 n, int flags)
{
	DAT_LMR_TRIPLET iov = kd_seg(end->env, KD_RW, 0, 8);

	KD_EXPECT_OK(end->env->test, kd_post(end->ep[i], KD_SEND, 1, &iov, KD_ID(i, n), NULL,
					     flags));
	KUNIT_EXPECT_EQ(end->env->test, fake_ib_complete(end->qp[i], false, IB_WC_SUCCESS), 0);
}

struct end_call {
	DAT_HANDLE handle;
	DAT_RETURN ret;
};

static void end_ep_free(void *arg)
{
	struct end_call *call = arg;

	call->ret = dat_ep_free(call->handle);
}

static void end_evd_free(void *arg)
{
	struct end_call *call = arg;

	call->ret = dat_evd_free(call->handle);
}

static void end_ia_close(void *arg)
{
	struct end_call *call = arg;

	call->ret = dat_ia_close(call->handle, DAT_CLOSE_ABRUPT_FLAG);
}

/* ANY made all events due. The youngest goes with its EP, the others stay due. */
static void end_due_test(struct kunit *test)
{
	const int uns = DAT_COMPLETION_UNSIGNALLED_FLAG;
	struct end *end = end_open(test, DAT_UPCALL_SINGLE_INSTANCE, true);
	struct kd_sink *sink = end->sink;

	kd_sink_pass(sink, 0);
	end_send(end, 0, 0, 0);
	KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, 1, 0));
	end_send(end, 0, 1, uns);
	end_send(end, 0, 2, uns);
	end_send(end, 1, 0, uns);
	KD_EXPECT_OK(test, kd_policy(end->evd, DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_INVOC_ANY));
	KD_EXPECT_OK(test, dat_ep_free(end->ep[1]));
	kd_sink_pass(sink, INT_MAX);
	kd_sink_expect(test, sink, 3);
	kd_settle(end->evd);
	kd_sink_expect(test, sink, 3);
	KUNIT_EXPECT_EQ(test, sink->seen[1].id, KD_ID(0, 1));
	KUNIT_EXPECT_EQ(test, sink->seen[2].id, KD_ID(0, 2));
	KD_EXPECT_OK(test, dat_ep_free(end->ep[0]));
	KD_EXPECT_OK(test, dat_evd_free(end->evd));
}

/* The upcall's event is of a connection before the last reset. It is the EP's all the same. */
static void end_reset_test(struct kunit *test)
{
	struct end *end = end_open(test, DAT_UPCALL_MANY, false);
	struct kd_env *env = end->env;
	struct kd_sink *sink = end->sink;
	struct end_call call;
	struct kd_aside aside;
	DAT_EVENT event;
	int i;

	kd_sink_pass(sink, 0);
	end_send(end, 0, 0, 0);
	KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, 1, 0));
	KD_EXPECT_OK(test, dat_ep_disconnect(end->ep[0], DAT_CLOSE_ABRUPT_FLAG));
	/* where one upcall is all there can be it holds up the end for a while */
	for (i = 0; i < 10000 && !kd_next(env->conn, &event); i++)
		kd_pause();
	KUNIT_EXPECT_EQ(test, (u32)event.event_number, (u32)DAT_CONNECTION_EVENT_DISCONNECTED);
	KD_EXPECT_OK(test, dat_ep_reset(end->ep[0]));
	call.handle = end->ep[0];
	kd_aside(test, &aside, end_ep_free, &call);
	KUNIT_EXPECT_FALSE(test, kd_aside_returned(&aside, 1000));
	KUNIT_EXPECT_EQ(test, sink->ended, 0);
	/* that of another EP is nobody's hindrance */
	KD_EXPECT_OK(test, dat_ep_free(end->ep[1]));
	kd_sink_pass(sink, INT_MAX);
	KUNIT_EXPECT_TRUE(test, kd_aside_wait(&aside));
	KD_EXPECT_OK(test, call.ret);
	KUNIT_EXPECT_EQ(test, sink->ended, sink->started);
	KD_EXPECT_OK(test, dat_evd_free(end->evd));
}

/* An upcall uses its EP while another thread frees it. */
struct end_user {
	DAT_EP_HANDLE ep;
	int n;
	bool gone;
};

static void end_use(struct kd_sink *sink, const DAT_EVENT *event, bool more)
{
	struct end_user *user = sink->arg;
	DAT_EP_PARAM param = {};
	u32 type = DAT_SUCCESS;
	int i;

	/* calls that take the EP for themselves, until there is none */
	for (i = 0; i < 100000 && type != DAT_INVALID_HANDLE; i++) {
		kd_attr(&param.ep_attr);
		if (i & 1)
			type = dat_ep_modify(user->ep, DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE,
					     &param);
		else
			type = dat_ep_disconnect(user->ep, DAT_CLOSE_GRACEFUL_FLAG);
		type = DAT_GET_TYPE(type);
		WRITE_ONCE(user->n, i + 1);
		if (!(i % 8))
			usleep_range(10, 20);
	}
	user->gone = type == DAT_INVALID_HANDLE;
}

static void end_use_test(struct kunit *test)
{
	struct kd_env *env = test->priv;
	struct end_user user;
	struct end_call call;
	struct kd_aside aside;
	struct end *end;
	int round, i;

	for (round = 0; round < 10; round++) {
		end = end_open(test, DAT_UPCALL_SINGLE_INSTANCE, false);
		user = (struct end_user) { .ep = end->ep[0] };
		end->sink->inside = end_use;
		end->sink->arg = &user;
		end_send(end, 0, 0, 0);
		for (i = 0; i < 5000 && READ_ONCE(user.n) < 3 * round + 1; i++)
			usleep_range(20, 50);
		call.handle = end->ep[0];
		kd_aside(test, &aside, end_ep_free, &call);
		KUNIT_EXPECT_TRUE(test, kd_aside_wait(&aside));
		KD_EXPECT_OK(test, call.ret);
		KUNIT_EXPECT_TRUE(test, user.gone);
		KUNIT_EXPECT_EQ(test, end->sink->started, end->sink->ended);
		KD_EXPECT_OK(test, dat_ep_free(end->ep[1]));
		KD_EXPECT_OK(test, dat_evd_free(end->evd));
		kd_exit(test);
		memset(env, 0, sizeof(*env));
		env->test = test;
	}
}

/* An upcall that waits, then tries to close its IA. */
struct end_closer {
	DAT_IA_HANDLE ia;
	DAT_RETURN ret;
	struct completion begun;
	struct completion go;
};

static void end_closer(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct end_closer *closer = data;

	complete(&closer->begun);
	wait_for_completion(&closer->go);
	closer->ret = dat_ia_close(closer->ia, DAT_CLOSE_ABRUPT_FLAG);
	complete(&closer->begun);
	wait_for_completion(&closer->go);
}

/* An EVD is on its way out while its last upcall runs: the IA waits for that, too. */
static void end_close_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct end_closer closer = { .ret = DAT_SUCCESS };
	DAT_UPCALL_OBJECT object = { .instance_data = &closer, .upcall_func = end_closer };
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	struct end_call free, close;
	struct kd_aside aside[2];
	char name[DAT_NAME_MAX_LENGTH];

	init_completion(&closer.begun);
	init_completion(&closer.go);
	snprintf(name, sizeof(name), "%s-1", fake_ib_name(env->dev));
	KD_ASSERT_OK(test, dat_ia_open(name, 8, &async, &closer.ia));
	close.handle = closer.ia;
	KD_ASSERT_OK(test, dat_evd_kcreate(closer.ia, END_QLEN, DAT_UPCALL_SINGLE_INSTANCE, &object,
					   DAT_EVD_SOFTWARE_FLAG, &free.handle));
	KD_EXPECT_OK(test, kd_post_se(free.handle, 0));
	KUNIT_EXPECT_TRUE(test, wait_for_completion_timeout(&closer.begun, KD_LONG));
	kd_aside(test, &aside[0], end_evd_free, &free);
	KUNIT_EXPECT_FALSE(test, kd_aside_returned(&aside[0], 1000));
	/* from inside it would wait for itself */
	complete(&closer.go);
	KUNIT_EXPECT_TRUE(test, wait_for_completion_timeout(&closer.begun, KD_LONG));
	KUNIT_EXPECT_EQ(test, (u32)DAT_GET_TYPE(closer.ret), (u32)DAT_INVALID_STATE);
	/* from outside it waits */
	kd_aside(test, &aside[1], end_ia_close, &close);
	KUNIT_EXPECT_FALSE(test, kd_aside_returned(&aside[1], 1000));
	KUNIT_EXPECT_FALSE(test, kd_aside_returned(&aside[0], 1000));
	complete(&closer.go);
	KUNIT_EXPECT_TRUE(test, kd_aside_wait(&aside[0]));
	KUNIT_EXPECT_TRUE(test, kd_aside_wait(&aside[1]));
	KD_EXPECT_OK(test, free.ret);
	KD_EXPECT_OK(test, close.ret);
}

/* Software events come while a longer queue is refused again and again. */
struct end_poster {
	DAT_EVD_HANDLE evd;
	u32 n;
	bool stop;
};

static void end_poster(void *arg)
{
	struct end_poster *poster = arg;

	while (!READ_ONCE(poster->stop)) {
		if (!kd_post_se(poster->evd, KD_ID(9, poster->n)))
			poster->n++;
		else
			usleep_range(5, 15);
	}
}

/* A refused length leaves nothing behind: all that was accepted comes, once, in order. */
static void end_refused_length_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	struct end_poster poster = {};
	struct kd_aside aside;
	u32 completions = 0, others = 0, wrong = 0;
	int i, n, accepted = 0, round, refused = 0;
	DAT_EVD_PARAM param;
	DAT_EVENT event;

	KD_EXPECT_OK(test, dat_evd_free(env->req));
	env->req = DAT_HANDLE_NULL;
	KD_ASSERT_OK(test, dat_evd_kcreate(env->ia, 4, DAT_UPCALL_DISABLE, NULL,
					   DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG, &env->req));
	kd_ep(env, NULL);
	kd_connect(env);
	for (round = 0; round < 100; round++) {
		for (n = 0; !kd_post(env->ep, KD_SEND, 1, &iov, KD_ID(1, accepted), NULL, 0); n++)
			accepted++;
		if (!n)
			break;
		fake_ib_complete_all(env->qp, false, IB_WC_SUCCESS);
	}
	poster.evd = env->req;
	kd_aside(test, &aside, end_poster, &poster);
	for (i = 0; i < 5000 && READ_ONCE(poster.n) < 4; i++)
		kd_pause();
	for (i = 0; i < 2000; i++) {
		refused += dat_evd_resize(env->req, 5 + i % (accepted - 5)) != DAT_SUCCESS;
		if (!(i % 32))
			usleep_range(10, 20);
	}
	WRITE_ONCE(poster.stop, true);
	KUNIT_EXPECT_TRUE(test, kd_aside_wait(&aside));
	KUNIT_EXPECT_EQ(test, refused, 2000);
	KD_EXPECT_OK(test, dat_evd_query(env->req, DAT_EVD_FIELD_ALL, &param));
	KUNIT_EXPECT_EQ(test, (int)param.evd_qlen, 4);
	/* the end parks all it finds */
	kd_end(env, DAT_CONNECTION_EVENT_DISCONNECTED);
	kd_settle(env->req);
	while (kd_next(env->req, &event)) {
		if (event.event_number == DAT_SOFTWARE_EVENT)
			wrong += kd_event_id(&event) != KD_ID(9, others++);
		else
			wrong += kd_event_id(&event) != KD_ID(1, completions++);
	}
	KUNIT_EXPECT_EQ(test, wrong, 0U);
	KUNIT_EXPECT_EQ(test, (int)completions, accepted);
	KUNIT_EXPECT_EQ(test, others, poster.n);
	KUNIT_EXPECT_GE(test, others, 4U);
}

/*
 * An EP is being freed: from the first completion that is not reported on, none is. Not even
 * one that would go the short way while the other had to go the long one.
 */
static void end_gap_test(struct kunit *test)
{
	struct kd_env *env = kd_connected(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	struct kdapl_conn *conn = kd_conn_of(env);
	struct end_call call = { .handle = env->ep };
	struct kd_aside aside;
	int i;

	KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, 1, NULL, 0));
	KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, 2, NULL, 0));
	KD_EXPECT_EMPTY(test, env->recv);
	kdapl_obj_put(&env->kep->obj);
	env->kep = NULL;
	env->ep = DAT_HANDLE_NULL;
	mutex_lock(&conn->lock);	/* its end does not come before that */
	kd_aside(test, &aside, end_ep_free, &call);
	for (i = 0; i < 5000 && !READ_ONCE(conn->discard); i++)
		kd_pause();
	KUNIT_EXPECT_TRUE(test, conn->discard);
	KUNIT_EXPECT_EQ(test, fake_ib_recv_inv(env->qp, 8, 1), 0);
	KD_EXPECT_EMPTY(test, env->recv);
	KUNIT_EXPECT_EQ(test, fake_ib_recv(env->qp, 8, false), 0);
	KD_EXPECT_EMPTY(test, env->recv);
	mutex_unlock(&conn->lock);
	KUNIT_EXPECT_TRUE(test, kd_aside_wait(&aside));
	KD_EXPECT_OK(test, call.ret);
	KD_EXPECT_EMPTY(test, env->recv);
}

static struct kunit_case end_cases[] = {
	KD_CASE(end_due_test, "EVD-MOD-03,EVD-MOD-06,EP-FREE-03: due events of which some go"),
	KD_CASE(end_reset_test, "EP-FREE-03,EP-RST-02,EVD-UP-07: reset and freed under an upcall"),
	KD_CASE(end_use_test, "EVD-UP-11,EP-FREE-03,GEN-05: freed while an upcall uses it"),
	KD_CASE(end_gap_test, "EP-FREE-03,STAT-05: no gap in what an EP being freed reports"),
	KD_CASE(end_close_test, "EVD-FREE-03,IA-CLOSE-02: closed while an EVD is being freed"),
	KD_CASE(end_refused_length_test, "EVD-RSZ-01,EVD-RSZ-02: lengths refused under load"),
	{}
};

static struct kunit_suite end_suite = {
	.name = "kdapl-evd-end",
	.suite_init = kd_suite_init,
	.suite_exit = kd_suite_exit,
	.init = kd_init,
	.exit = kd_exit,
	.test_cases = end_cases,
};

kunit_test_suite(end_suite);
