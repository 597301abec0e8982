// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Wake-ups: events that arrive just when nobody looks, solicited ones behind
 * others that are not, and EVDs that wait for their turn behind a busy one.
 */
#include <linux/bottom_half.h>
#include <linux/preempt.h>

#include "kd_upcall.h"

#define ARM_DEPTH	32

/* How a device tells of what came before its CQ was armed: by the call, or by an interrupt. */
static const struct fake_ib_caps arm_devices[] = {
	{ .raises = false }, { .raises = true },
};

#define ARM_KINDS	(ARRAY_SIZE(arm_devices) * KD_CONTEXTS)

/* What is going on when the second event arrives. */
enum arm_trigger {
	ARM_EVENT,		/* the first one is delivered */
	ARM_ENABLE_NEW,		/* upcalls are enabled */
	ARM_ENABLE_ANY,
	ARM_DEQUEUE,		/* somebody finds the queue empty */
	ARM_TRIGGERS,
};

/* An EVD for the requests of the EP of the environment. */
static void arm_open(struct kd_env *env, DAT_UPCALL_POLICY policy, struct kd_sink *sink,
		     enum kdat_evd_context context, const DAT_EP_ATTR *attr, bool recv)
{
	DAT_EVD_HANDLE *evd = recv ? &env->recv : &env->req;

	kd_evd_replace(env, evd, 64, policy, sink, DAT_EVD_DTO_FLAG, context);
	kd_ep(env, attr);
	kd_connect(env);
	kd_settle(*evd);
}

static void arm_send(struct kd_env *env, u32 n)
{
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);

	KD_EXPECT_OK(env->test, kd_post(env->ep, KD_SEND, 1, &iov, KD_ID(1, n), NULL, 0));
}

static void arm_late(void *arg)
{
	struct kd_env *env = arg;

	fake_ib_complete(env->qp, false, IB_WC_SUCCESS);
}

/* Notified once more for what is there; all of it is taken. Returns how many. */
static int arm_take_notified(struct kd_env *env, struct kd_sink *sink, int *notified)
{
	kd_settle(env->req);
	if (sink->started == *notified)
		return 0;
	KUNIT_EXPECT_EQ(env->test, sink->started, *notified + 1);
	*notified = sink->started;
	return kd_drain(env->req);
}

static void arm_moment(struct kd_env *env, struct kd_sink *sink, DAT_UPCALL_POLICY policy,
		       enum arm_trigger trigger, enum fake_ib_moment moment, int nth)
{
	bool enable = trigger == ARM_ENABLE_NEW || trigger == ARM_ENABLE_ANY;
	int n = trigger == ARM_DEQUEUE ? 1 : 2, before, got = 0, round;
	bool notify = policy == DAT_UPCALL_NOTIFY;
	struct kunit *test = env->test;

	KD_EXPECT_OK(test, kd_policy(env->req, enable ? DAT_UPCALL_DISABLE : policy,
				     DAT_UPCALL_INVOC_ANY));
	kd_settle(env->req);
	KD_EXPECT_EMPTY(test, env->req);
	kd_settle(env->req);
	before = sink->started;
	arm_send(env, 0);
	if (n == 2)
		arm_send(env, 1);
	if (enable)
		fake_ib_complete(env->qp, false, IB_WC_SUCCESS);
	fake_ib_at(env->dev, moment, nth, arm_late, env);
	if (trigger == ARM_EVENT)
		fake_ib_complete(env->qp, false, IB_WC_SUCCESS);
	else if (trigger == ARM_DEQUEUE)
		KD_EXPECT_EMPTY(test, env->req);
	else
		KD_EXPECT_OK(test, kd_policy(env->req, policy, trigger == ARM_ENABLE_NEW ?
					     DAT_UPCALL_INVOC_NEW : DAT_UPCALL_INVOC_ANY));
	/* with notifications the consumer looks, and may find nothing just then */
	if (notify)
		got = arm_take_notified(env, sink, &before);
	else
		kd_settle(env->req);
	/* the moment did not come: now, then */
	fake_ib_at(env->dev, moment, 0, NULL, NULL);
	if (fake_ib_outstanding(env->qp, false))
		fake_ib_complete(env->qp, false, IB_WC_SUCCESS);
	kd_settle(env->req);
	for (round = 0; notify && round < 3; round++)
		got += arm_take_notified(env, sink, &before);
	if (!notify)
		got = sink->started - before;
	KUNIT_EXPECT_EQ_MSG(test, got, n, "%s, trigger %d, moment %d, time %d",
			    kd_policy_name(policy), trigger, moment, nth);
	KUNIT_EXPECT_EQ(test, kd_drain(env->req), n - got);
}

static void arm_moments(struct kd_env *env, enum kdat_evd_context context, bool raises)
{
	struct kd_sink *sink = kd_sink(env->test);
	unsigned long again = kd_stat(again);
	int i, row = KD_CALLING * ARM_TRIGGERS * FAKE_IB_MOMENTS;

	arm_open(env, DAT_UPCALL_DISABLE, sink, context, NULL, false);
	while (row--)
		for (i = 1; i <= 4; i++)
			arm_moment(env, sink, kd_calling[row % KD_CALLING],
				   row / KD_CALLING % ARM_TRIGGERS,
				   row / KD_CALLING / ARM_TRIGGERS, i);
	if (!raises)
		KUNIT_EXPECT_GT(env->test, kd_stat(again), again);
	KD_EXPECT_OK(env->test, kd_policy(env->req, DAT_UPCALL_TEARDOWN, DAT_UPCALL_INVOC_NEW));
}

/* An event arrives between a look that finds nothing and the arming of the CQ, ... */
static void arm_moment_test(struct kunit *test)
{
	int k;

	kd_pin();
	for (k = 0; k < ARM_KINDS; k++) {
		kd_open(test, &arm_devices[k / 2]);
		arm_moments(test->priv, kd_contexts[k % 2], arm_devices[k / 2].raises);
		kd_again(test);
	}
}

static void arm_recv(struct kd_env *env, u32 n, bool solicited)
{
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);

	KD_EXPECT_OK(env->test, kd_post(env->ep, KD_RECV, 1, &iov, KD_ID(1, n), NULL, 0));
	KUNIT_EXPECT_EQ(env->test, fake_ib_recv(env->qp, 1, solicited), 0);
}

/* Messages, S the solicited ones; all but so many have been delivered then. */
static void arm_recvs(struct kd_env *env, struct kd_sink *sink, u32 *n, const char *messages,
		      u32 left)
{
	for (; *messages; messages++)
		arm_recv(env, (*n)++, *messages == 'S');
	kd_settle(env->recv);
	KUNIT_EXPECT_EQ_MSG(env->test, (u32)sink->started, *n - left, "after %u", *n);
}

/* Plain messages call nobody, a solicited one brings all before it along. */
static void arm_solicited_test(struct kunit *test)
{
	static const struct {
		DAT_UPCALL_POLICY policy;
		DAT_UPCALL_FLAG flag;
		const char *off;	/* messages while upcalls are off */
		const char *on;		/* and when they are on again */
		u32 left;
	} rows[] = {
		{ DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_INVOC_NEW, "", "...", 3 },
		{ DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_INVOC_ANY, "", "", 0 },
		{ DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_INVOC_NEW, "", ".S..S", 0 },
		/* they arrive while upcalls are off, and wait for another one */
		{ DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_INVOC_NEW, ".S", ".", 3 },
		{ DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_INVOC_NEW, "", "S", 0 },
		/* or for nobody */
		{ DAT_UPCALL_MANY, DAT_UPCALL_INVOC_ANY, ".", "", 0 },
		{ DAT_UPCALL_MANY, DAT_UPCALL_INVOC_NEW, "", ".", 1 },
		{ DAT_UPCALL_MANY, DAT_UPCALL_INVOC_ANY, "", "", 0 },
	};
	struct kd_env *env = test->priv;
	struct kd_sink *sink;
	DAT_EP_ATTR attr;
	int c, i;
	u32 n;

	kd_attr(&attr);
	attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	attr.max_recv_dtos = ARM_DEPTH;
	kd_pin();
	for (c = 0; c < ARM_KINDS; c++) {
		n = 0;
		sink = kd_sink(test);
		kd_open(test, &arm_devices[c / 2]);
		arm_open(env, DAT_UPCALL_SINGLE_INSTANCE, sink, kd_contexts[c % 2], &attr, true);
		for (i = 0; i < ARRAY_SIZE(rows); i++) {
			KD_EXPECT_OK(test, kd_policy(env->recv, DAT_UPCALL_DISABLE,
						     DAT_UPCALL_INVOC_NEW));
			arm_recvs(env, sink, &n, rows[i].off, n + strlen(rows[i].off) -
				  sink->started);
			KD_EXPECT_OK(test, kd_policy(env->recv, rows[i].policy, rows[i].flag));
			kd_settle(env->recv);	/* armed */
			arm_recvs(env, sink, &n, rows[i].on, rows[i].left);
		}
		kd_sink_expect(test, sink, n);
		for (i = 0; i < n; i++)
			KUNIT_EXPECT_EQ(test, sink->seen[i].id, KD_ID(1, i));
		KD_EXPECT_OK(test, kd_policy(env->recv, DAT_UPCALL_TEARDOWN,
					     DAT_UPCALL_INVOC_NEW));
		kd_again(test);
	}
}

/* How far the busy EVD was when the other one had its turn. */
struct arm_turns {
	struct kd_sink *busy;
	int at;
};

static void arm_other(struct kd_sink *sink, const DAT_EVENT *event, bool more)
{
	struct arm_turns *turns = sink->arg;

	turns->at = turns->busy->started;
}

/* A busy EVD lets the others have their turn. */
static void arm_budget_test(struct kunit *test)
{
	const int events = 1000;
	struct kd_env *env = kd_open(test, NULL);
	struct kd_sink *sink[2] = { kd_sink(test), kd_sink(test) };
	unsigned long full = kd_stat(full), upcalls = kd_stat(upcalls);
	struct arm_turns turns = { .busy = sink[0] };
	DAT_EVD_HANDLE evd[2];
	int c, i;

	kd_pin();
	for (c = 0; c < KD_CONTEXTS; c++) {
		kd_sink_init(sink[0]);
		kd_sink_init(sink[1]);
		sink[1]->inside = arm_other;
		sink[1]->arg = &turns;
		for (i = 0; i < 2; i++)
			KD_ASSERT_OK(test, kd_evd_create(env, events, DAT_UPCALL_DISABLE, sink[i],
							 DAT_EVD_SOFTWARE_FLAG, kd_contexts[c],
							 &evd[i]));
		for (i = 0; i < events - 1; i++)
			KD_EXPECT_OK(test, kd_post_se(evd[0], KD_ID(1, i)));
		/* due from the last event on, which comes at the same time as that of the other */
		for (i = 0; i < 2; i++)
			KD_EXPECT_OK(test, kd_policy(evd[i], DAT_UPCALL_SINGLE_INSTANCE,
						     DAT_UPCALL_INVOC_NEW));
		kd_settle(evd[0]);
		kd_settle(evd[1]);
		KUNIT_EXPECT_EQ(test, sink[0]->started, 0);
		local_bh_disable();
		preempt_disable();
		KD_EXPECT_OK(test, kd_post_se(evd[0], KD_ID(1, i)));
		KD_EXPECT_OK(test, kd_post_se(evd[1], KD_ID(1, i)));
		preempt_enable();
		local_bh_enable();
		kd_sink_expect(test, sink[0], events);
		kd_sink_expect(test, sink[1], 1);
		KUNIT_EXPECT_LE(test, turns.at, 256);
		for (i = 0; i < 2; i++)
			KD_EXPECT_OK(test, dat_evd_free(evd[i]));
		KUNIT_EXPECT_GE(test, kd_stat(full), full + events / 256);
		full = kd_stat(full);
	}
	KUNIT_EXPECT_EQ(test, kd_stat(upcalls), upcalls + c * (events + 1));
}

#define ARM_MANY	768

/* So many unsignalled completions take several turns; a signalled one brings all of them along. */
static void arm_unsignalled(struct kd_env *env, DAT_UPCALL_POLICY policy,
			    enum kdat_evd_context context)
{
	bool notify = policy == DAT_UPCALL_NOTIFY;
	struct kunit *test = env->test;
	struct kd_sink *sink = kd_sink(test);
	unsigned long again;
	DAT_EP_ATTR attr;
	int i;

	kd_attr(&attr);
	attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	attr.max_request_dtos = ARM_MANY + 1;
	kd_evd_replace(env, &env->req, ARM_MANY + 1, policy, sink, DAT_EVD_DTO_FLAG, context);
	kd_ep(env, &attr);
	kd_connect(env);
	kd_settle(env->req);
	again = kd_stat(again);
	fake_ib_hold_irq(env->dev, true);
	for (i = 0; i < ARM_MANY; i++)
		kd_sent(env, env->ep, env->qp, KD_ID(1, i), DAT_COMPLETION_UNSIGNALLED_FLAG);
	fake_ib_hold_irq(env->dev, false);
	kd_settle(env->req);
	again = kd_stat(again) - again;
	KUNIT_EXPECT_GE_MSG(test, again, 2UL, "%s, context %d", kd_policy_name(policy), context);
	KUNIT_EXPECT_EQ(test, sink->started, 0);
	kd_sent(env, env->ep, env->qp, KD_ID(1, i), 0);
	kd_settle(env->req);
	kd_sink_expect(test, sink, notify ? 1 : ARM_MANY + 1);
	KUNIT_EXPECT_EQ(test, kd_drain(env->req), notify ? ARM_MANY + 1 : 0);
	KD_EXPECT_OK(test, kd_policy(env->req, DAT_UPCALL_TEARDOWN, DAT_UPCALL_INVOC_NEW));
}

static void arm_unsignalled_test(struct kunit *test)
{
	static const struct fake_ib_caps caps = { .max_qp_wr = 4 * ARM_MANY };
	int i;

	kd_pin();
	for (i = 0; i < KD_CALLING * KD_CONTEXTS; i++) {
		kd_open(test, &caps);
		arm_unsignalled(test->priv, kd_calling[i / KD_CONTEXTS],
				kd_contexts[i % KD_CONTEXTS]);
		kd_again(test);
	}
}

/* No upcall before there is an event; the EVD of dat_ia_openv starts without. */
static void arm_birth_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kd_sink *sink = kd_sink(test);
	DAT_UPCALL_OBJECT object = kd_sink_object(sink);
	struct kdapl_ia *ia;
	DAT_EVD_PARAM param;
	DAT_EVD_HANDLE evd;
	int p;

	for (p = 0; p < KD_CALLING; p++) {
		KD_ASSERT_OK(test, kd_evd_create(env, 8, kd_calling[p], sink,
						 DAT_EVD_DEFAULT_FLAG | DAT_EVD_SOFTWARE_FLAG,
						 KDAT_EVD_CONTEXT_DEFAULT, &evd));
		kd_settle(evd);
		KD_EXPECT_OK(test, kd_policy(evd, kd_calling[p], DAT_UPCALL_INVOC_ANY));
		kd_settle(evd);
		KUNIT_EXPECT_EQ(test, sink->started, 0);
		KD_EXPECT_OK(test, dat_evd_free(evd));
	}
	KD_EXPECT_OK(test, dat_evd_query(env->async, DAT_EVD_FIELD_ALL, &param));
	KUNIT_EXPECT_EQ(test, (int)param.upcall_policy, (int)DAT_UPCALL_DISABLE);
	ia = kdapl_obj_get(env->ia, DAT_HANDLE_TYPE_IA);
	KUNIT_ASSERT_NOT_NULL(test, ia);
	kdapl_ia_async(ia, env->ia, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR, 1);
	kdapl_obj_put(&ia->obj);
	sink->evd = env->async;
	KD_EXPECT_OK(test, dat_evd_modify_upcall(env->async, DAT_UPCALL_SINGLE_INSTANCE, &object,
						 DAT_UPCALL_INVOC_ANY));
	kd_sink_expect(test, sink, 1);
	KUNIT_EXPECT_FALSE(test, sink->seen[0].softirq);
	KD_EXPECT_OK(test, dat_evd_resize(env->async, 2 * param.evd_qlen));
	KD_EXPECT_OK(test, kd_policy(env->async, DAT_UPCALL_TEARDOWN, DAT_UPCALL_INVOC_NEW));
}

static struct kunit_case arm_cases[] = {
	KD_CASE(arm_moment_test,
		"EVD-CQ-03,EVD-DQ-06,EVD-MOD-02,EVD-UP-03,EVD-UP-09: no wake-up is lost"),
	KD_CASE(arm_solicited_test, "FLAG-16,FLAG-20,SIL-07,EVD-MOD-02,EVD-DQ-06: solicited wait"),
	KD_CASE(arm_budget_test, "SIL-39: a busy EVD and another one, counted"),
	KD_CASE(arm_unsignalled_test, "SIL-07,SIL-39: many completions that call nobody"),
	KD_CASE(arm_birth_test, "EVD-UP-14,IA-OPEN-03,CTX-04: no upcall before its time"),
	{}
};

KD_SUITE("kdapl-evd-arm", arm_cases, kd_init, kd_exit);
