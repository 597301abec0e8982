// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Upcalls that run while something else happens: further events, another policy
 * or object, TEARDOWN, the end of the EVD; and the calls made inside them.
 */
#include <linux/delay.h>

#include "kd_upcall.h"

#define UP_QLEN		64

/* How many may run at a time, where they may sleep. */
static int up_most(DAT_UPCALL_POLICY policy)
{
	return policy == DAT_UPCALL_MANY ? num_online_cpus() : 1;
}

/* An EVD for software events, and a sink in which nothing has happened yet. */
static DAT_EVD_HANDLE up_evd(struct kd_env *env, DAT_UPCALL_POLICY policy, struct kd_sink *sink,
			     enum kdat_evd_context context)
{
	DAT_EVD_HANDLE evd;

	kd_sink_init(sink);
	KD_ASSERT_OK(env->test, kd_evd_create(env, UP_QLEN, policy, sink, DAT_EVD_SOFTWARE_FLAG,
					      context, &evd));
	return evd;
}

static void up_post(struct kunit *test, DAT_EVD_HANDLE evd, u32 from, u32 n)
{
	for (; n--; from++)
		KD_EXPECT_OK(test, kd_post_se(evd, KD_ID(1, from)));
}

/* Hold as many upcalls as there may be; returns how many. */
static int up_hold(struct kunit *test, DAT_EVD_HANDLE evd, struct kd_sink *sink,
		   DAT_UPCALL_POLICY policy)
{
	int n = up_most(policy);

	kd_sink_pass(sink, 0);
	up_post(test, evd, 0, n);
	KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, n, 0));
	return n;
}

/* One upcall, number @n from 0, returns; another one begins, and no more. */
static void up_next(struct kunit *test, struct kd_sink *sink, int n, int started)
{
	kd_sink_pass(sink, n + 1);
	KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, started, n + 1));
	kd_pause();
	KUNIT_EXPECT_EQ(test, sink->started, started);
}

static void up_expect_policy(struct kunit *test, DAT_EVD_HANDLE evd, DAT_UPCALL_POLICY policy,
			     struct kd_sink *sink)
{
	DAT_EVD_PARAM param;

	KD_EXPECT_OK(test, dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
	KUNIT_EXPECT_EQ(test, (int)param.upcall_policy, (int)policy);
	KUNIT_EXPECT_PTR_EQ(test, param.upcall.instance_data, (void *)sink);
}

/* Events [0, n) came once each, in whatever order, but for one. */
static void up_expect_each(struct kunit *test, struct kd_sink *sink, int n, int but)
{
	int i, j, found;

	for (i = 0; i < n; i++) {
		for (found = 0, j = 0; j < sink->started; j++)
			found += sink->seen[j].id == KD_ID(1, i);
		KUNIT_EXPECT_EQ_MSG(test, found, i != but, "event %d", i);
	}
}

/* As many as may run do, with the oldest events; one returns, one starts. */
static void up_running_test(struct kunit *test)
{
	static const DAT_UPCALL_POLICY policies[] = {
		DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_MANY,
	};
	struct kd_env *env = kd_open(test, NULL);
	struct kd_sink *sink = kd_sink(test);
	DAT_EVD_HANDLE evd;
	int p, n, i;

	for (p = 0; p < ARRAY_SIZE(policies); p++) {
		evd = up_evd(env, policies[p], sink, KDAT_EVD_CONTEXT_DEFAULT);
		n = up_hold(test, evd, sink, policies[p]);
		up_post(test, evd, n, 4);
		kd_pause();
		KUNIT_EXPECT_EQ(test, sink->started, n);
		/* dequeue is legal beside them and takes the next one */
		kd_expect_id(test, evd, KD_ID(1, n));
		up_next(test, sink, 0, n + 1);
		kd_sink_pass(sink, INT_MAX);
		kd_sink_expect(test, sink, n + 3);
		KUNIT_EXPECT_EQ(test, sink->most, n);
		KD_EXPECT_EMPTY(test, evd);
		up_expect_each(test, sink, n + 4, n);
		for (i = 1; !p && i < 4; i++) {
			KUNIT_EXPECT_EQ(test, sink->seen[i].id, KD_ID(1, 1 + i));
			KUNIT_EXPECT_EQ(test, sink->seen[i].more, i < 3);
		}
		KD_EXPECT_OK(test, dat_evd_free(evd));
	}
}

/* Two run when only one may: no third before both have returned. */
static void up_many_to_single_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kd_sink *sink = kd_sink(test);
	DAT_EVD_HANDLE evd = up_evd(env, DAT_UPCALL_MANY, sink, KDAT_EVD_CONTEXT_DEFAULT);
	int i, n = up_hold(test, evd, sink, DAT_UPCALL_MANY);

	up_post(test, evd, n, 2);
	KD_EXPECT_OK(test, kd_policy(evd, DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_INVOC_NEW));
	if (n > 1)
		up_next(test, sink, n - 2, n);
	up_post(test, evd, n + 2, 1);
	kd_pause();
	KUNIT_EXPECT_EQ(test, sink->started, n);
	up_next(test, sink, n - 1, n + 1);
	kd_sink_pass(sink, INT_MAX);
	kd_sink_expect(test, sink, n + 3);
	for (i = n; i < n + 3; i++)
		KUNIT_EXPECT_EQ(test, sink->seen[i].id, KD_ID(1, i));
	KD_EXPECT_OK(test, dat_evd_free(evd));
}

static DAT_RETURN up_teardown(DAT_HANDLE evd)
{
	return kd_policy(evd, DAT_UPCALL_TEARDOWN, DAT_UPCALL_INVOC_NEW);
}

static void up_expect_gone(struct kunit *test, DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;

	KD_BAD_HANDLE(test, dat_evd_dequeue(evd, &event), 1);
	KD_BAD_HANDLE(test, kd_post_se(evd, 0), 1);
	KD_BAD_HANDLE(test, kd_policy(evd, DAT_UPCALL_DISABLE, DAT_UPCALL_INVOC_NEW), 1);
	KD_BAD_HANDLE(test, dat_evd_resize(evd, 7), 1);
}

/* Let somebody wait for the upcalls that run. Drops the reference. */
static void up_waited_for(struct kunit *test, struct kdapl_evd *evd)
{
	/* without a barrier: KD_WAIT() looks again */
	KD_WAIT(test, waitqueue_active(&evd->upcall_over));
	kdapl_obj_put(&evd->obj);
}

/* TEARDOWN, twice at once, or dat_evd_free() waits for all that run, and none starts. */
static void up_waits(struct kunit *test, DAT_UPCALL_POLICY policy, bool free)
{
	struct kd_env *env = test->priv;
	struct kd_sink *sink = kd_sink(test);
	DAT_EVD_HANDLE evd = up_evd(env, policy, sink, KDAT_EVD_CONTEXT_DEFAULT);
	int i, n = up_hold(test, evd, sink, policy), calls = free ? 1 : 2;
	struct kdapl_evd *kevd = kdapl_obj_get(evd, DAT_HANDLE_TYPE_EVD);
	struct kd_aside aside[2];

	KUNIT_ASSERT_NOT_NULL(test, kevd);
	up_post(test, evd, n, 3);
	for (i = 0; i < calls; i++)
		kd_aside_call(test, &aside[i], free ? dat_evd_free : up_teardown, evd);
	up_waited_for(test, kevd);
	for (i = 0; i < calls; i++)
		KUNIT_EXPECT_FALSE(test, kd_aside_returned(&aside[i], KD_MOMENT));
	if (free)
		up_expect_gone(test, evd);
	else	/* this one does not wait */
		KD_EXPECT_OK(test, kd_policy(evd, DAT_UPCALL_DISABLE, DAT_UPCALL_INVOC_NEW));
	if (n > 1) {
		up_next(test, sink, n - 2, n);
		KUNIT_EXPECT_FALSE(test, kd_aside_returned(&aside[0], KD_MOMENT));
	}
	kd_sink_pass(sink, INT_MAX);
	for (i = 0; i < calls; i++) {
		KUNIT_EXPECT_TRUE(test, kd_aside_wait(&aside[i]));
		KD_EXPECT_OK(test, aside[i].ret);
	}
	KUNIT_EXPECT_EQ(test, sink->ended, n);
	if (!free) {
		up_expect_policy(test, evd, DAT_UPCALL_DISABLE, sink);
		up_post(test, evd, n + 3, 1);
		kd_settle(evd);
		/* nothing to wait for */
		KD_EXPECT_OK(test, up_teardown(evd));
		KUNIT_EXPECT_EQ(test, kd_drain(evd), policy == DAT_UPCALL_NOTIFY ? 5 : 4);
		KD_EXPECT_OK(test, dat_evd_free(evd));
	}
	kd_sink_expect(test, sink, n);
}

static void up_waits_test(struct kunit *test)
{
	int i;

	kd_open(test, NULL);
	for (i = 0; i < 2 * KD_CALLING; i++)
		up_waits(test, kd_calling[i / 2], i & 1);
}

/* It waits for what runs when it is called, not for what others allow later. */
static void up_teardown_overtaken_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kd_sink *sink = kd_sink(test);
	DAT_EVD_HANDLE evd = up_evd(env, DAT_UPCALL_SINGLE_INSTANCE, sink,
				    KDAT_EVD_CONTEXT_DEFAULT);
	struct kdapl_evd *kevd = kdapl_obj_get(evd, DAT_HANDLE_TYPE_EVD);
	struct kd_aside aside;

	KUNIT_ASSERT_NOT_NULL(test, kevd);
	up_hold(test, evd, sink, DAT_UPCALL_SINGLE_INSTANCE);
	kd_aside_call(test, &aside, up_teardown, evd);
	up_waited_for(test, kevd);
	KUNIT_EXPECT_FALSE(test, kd_aside_returned(&aside, KD_MOMENT));
	KD_EXPECT_OK(test, kd_policy(evd, DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_INVOC_NEW));
	up_post(test, evd, 1, 1);
	up_next(test, sink, 0, 2);
	/* the second one is still held */
	KUNIT_EXPECT_TRUE(test, kd_aside_wait(&aside));
	KD_EXPECT_OK(test, aside.ret);
	kd_sink_pass(sink, INT_MAX);
	kd_sink_expect(test, sink, 2);
	KD_EXPECT_OK(test, dat_evd_free(evd));
}

/* What an upcall tries, the first time, and what came of it. */
struct up_try {
	DAT_EVD_HANDLE evd;
	DAT_UPCALL_OBJECT object;
	DAT_UPCALL_POLICY policy;	/* that one, with @object */
	bool free;			/* or the end of the EVD */
	int n;
	DAT_RETURN ret;
};

static void up_inside(struct kd_sink *sink, const DAT_EVENT *event, bool more)
{
	struct up_try *try = sink->arg;

	if (try->n++)
		return;
	try->ret = try->free ? dat_evd_free(try->evd) :
		   dat_evd_modify_upcall(try->evd, try->policy, &try->object,
					 DAT_UPCALL_INVOC_NEW);
}

/* TEARDOWN and dat_evd_free() would wait for themselves: refused, nothing has changed. */
static void up_refused_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kd_sink *sink = kd_sink(test), *other = kd_sink(test);
	DAT_UPCALL_POLICY policy;
	struct up_try try;
	int i;

	for (i = 0; i < 4 * KD_CALLING; i++) {
		policy = kd_calling[i / 4];
		try = (struct up_try) {
			.policy = DAT_UPCALL_TEARDOWN, .object = kd_sink_object(other),
			.free = i & 2,
		};
		try.evd = up_evd(env, policy, sink, kd_contexts[i % 2]);
		sink->inside = up_inside;
		sink->arg = &try;
		up_post(test, try.evd, 0, 1);
		kd_sink_expect(test, sink, 1);
		KD_BAD_STATE(test, try.ret, EVD_IN_USE);
		up_expect_policy(test, try.evd, policy, sink);
		/* and it goes on as before */
		KUNIT_EXPECT_EQ(test, kd_drain(try.evd), policy == DAT_UPCALL_NOTIFY);
		up_post(test, try.evd, 1, 1);
		kd_sink_expect(test, sink, 2);
		KUNIT_EXPECT_EQ(test, other->started, 0);
		/* outside it is legal */
		KD_EXPECT_OK(test, up_teardown(try.evd));
		KD_EXPECT_OK(test, dat_evd_free(try.evd));
	}
}

/* The object changes, inside and outside: an upcall that runs finishes with the old one. */
static void up_object_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kd_sink *a = kd_sink(test), *b = kd_sink(test);
	struct up_try try;
	int i, n;

	for (i = 0; i < 4; i++) {
		try = (struct up_try) {
			.policy = i & 2 ? DAT_UPCALL_MANY : DAT_UPCALL_SINGLE_INSTANCE,
			.object = kd_sink_object(b),
		};
		kd_sink_init(b);
		try.evd = up_evd(env, try.policy, a, KDAT_EVD_CONTEXT_DEFAULT);
		b->evd = try.evd;
		a->inside = i & 1 ? up_inside : NULL;
		a->arg = &try;
		kd_sink_pass(a, 0);
		up_post(test, try.evd, 0, 1);
		KUNIT_EXPECT_TRUE(test, kd_sink_wait(a, 1, 0));
		if (!a->inside)
			try.ret = dat_evd_modify_upcall(try.evd, try.policy, &try.object,
							DAT_UPCALL_INVOC_NEW);
		KD_EXPECT_OK(test, try.ret);
		up_post(test, try.evd, 1, 2);
		n = up_most(try.policy) > 1 ? 2 : 0;
		KUNIT_EXPECT_TRUE(test, kd_sink_wait(b, n, n));
		kd_pause();
		KUNIT_EXPECT_EQ(test, b->started, n);
		kd_sink_pass(a, INT_MAX);
		kd_sink_expect(test, a, 1);
		kd_sink_expect(test, b, 2);
		up_expect_policy(test, try.evd, try.policy, b);
		KD_EXPECT_OK(test, dat_evd_free(try.evd));
	}
}

/* What a consumer tries inside its upcalls. */
struct up_busy {
	struct kd_env *env;
	DAT_EVD_HANDLE evd;
	DAT_EP_HANDLE ep;
	bool sleeps;		/* where it may */
	int n;
	int wrong;
};

static void up_inside_all(struct kd_sink *sink, const DAT_EVENT *event, bool more)
{
	struct up_busy *busy = sink->arg;
	DAT_LMR_TRIPLET iov = kd_seg(busy->env, KD_RW, 0, 8);
	DAT_BOOLEAN recv_idle, request_idle;
	DAT_CONTEXT context = { .as_64 = 1 };
	DAT_EVD_PARAM evd_param;
	DAT_EP_PARAM ep_param;
	DAT_EP_STATE state;
	DAT_EVENT ev;

	if (busy->n++)
		return;
	busy->wrong += !!kd_post(busy->ep, KD_SEND, 1, &iov, KD_ID(2, 0), NULL, 0);
	busy->wrong += !!kd_post(busy->ep, KD_RECV, 1, &iov, KD_ID(2, 1), NULL, 0);
	busy->wrong += !!dat_ep_get_status(busy->ep, &state, &recv_idle, &request_idle);
	busy->wrong += !!dat_ep_query(busy->ep, DAT_EP_FIELD_ALL, &ep_param);
	busy->wrong += !!dat_evd_query(busy->evd, DAT_EVD_FIELD_ALL, &evd_param);
	busy->wrong += !!dat_set_consumer_context(busy->evd, context);
	busy->wrong += DAT_GET_TYPE(dat_evd_dequeue(busy->evd, &ev)) != DAT_QUEUE_EMPTY;
	busy->wrong += !!kd_post_se(busy->evd, KD_ID(3, 0));
	busy->wrong += !!dat_evd_dequeue(busy->evd, &ev);
	if (busy->sleeps) {
		busy->wrong += !!dat_evd_resize(busy->evd, 2 * UP_QLEN);
		busy->wrong += !!kd_policy(busy->evd, DAT_UPCALL_MANY, DAT_UPCALL_INVOC_ANY);
		usleep_range(10, 20);
	}
	busy->wrong += !!dat_ep_disconnect(busy->ep, DAT_CLOSE_ABRUPT_FLAG);
}

/* No lock is held that a call would need. */
static void up_inside_all_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kd_sink *sink = kd_sink(test);
	struct up_busy busy;
	struct ib_qp *qp;
	DAT_EVENT event;
	int c;

	for (c = 0; c < KD_CONTEXTS; c++) {
		kd_sink_init(sink);
		sink->inside = up_inside_all;
		sink->arg = &busy;
		busy = (struct up_busy) {
			.env = env, .sleeps = kd_contexts[c] == KDAT_EVD_CONTEXT_WORKQUEUE,
		};
		KD_ASSERT_OK(test, kd_evd_create(env, UP_QLEN, DAT_UPCALL_SINGLE_INSTANCE, sink,
						 DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG,
						 kd_contexts[c], &busy.evd));
		qp = kd_more_ep(env, env->recv, busy.evd, NULL, &busy.ep);
		kd_sent(env, busy.ep, qp, KD_ID(1, 0), 0);
		/* the Send posted inside comes back flushed */
		kd_sink_expect(test, sink, 2);
		KUNIT_EXPECT_EQ(test, busy.wrong, 0);
		KUNIT_EXPECT_EQ(test, sink->seen[1].id, KD_ID(2, 0));
		KUNIT_EXPECT_EQ(test, sink->seen[0].softirq, !busy.sleeps);
		KD_WAIT(test, kd_next(env->conn, &event));
		KUNIT_EXPECT_EQ(test, (u32)event.event_number,
				(u32)DAT_CONNECTION_EVENT_DISCONNECTED);
		KD_EXPECT_OK(test, dat_ep_free(busy.ep));
		KD_EXPECT_OK(test, dat_evd_free(busy.evd));
		kd_drain(env->recv);
	}
}

static struct kunit_case up_cases[] = {
	KD_CASE(up_running_test,
		"EVD-UP-01,EVD-UP-02,EVD-UP-06,EVD-UP-07,EVD-DQ-02,SIL-38,SIL-41: as many as may"),
	KD_CASE(up_many_to_single_test, "EVD-UP-06,EVD-MOD-06: from MANY to SINGLE while two run"),
	KD_CASE(up_waits_test,
		"EVD-UP-08,EVD-MOD-05,EVD-FREE-02,EVD-FREE-03: TEARDOWN, freed while upcalls run"),
	KD_CASE(up_teardown_overtaken_test, "EVD-UP-08: TEARDOWN does not wait for later ones"),
	KD_CASE(up_refused_test,
		"EVD-MOD-07,EVD-MOD-08,EVD-FREE-03: TEARDOWN, freed inside an upcall"),
	KD_CASE(up_object_test, "EVD-CR-05,EVD-MOD-01,EVD-MOD-05: another upcall object"),
	KD_CASE(up_inside_all_test, "EVD-UP-11,EVD-UP-13,CTX-02,CTX-03: calls inside an upcall"),
	{}
};

KD_SUITE("kdapl-upcall", up_cases, kd_init, kd_exit);
