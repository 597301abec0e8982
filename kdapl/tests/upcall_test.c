// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Upcalls that run while something else happens: further events, changes of
 * policy and object, TEARDOWN, the end of the EVD or of an EP.
 */
#include <linux/bottom_half.h>
#include <linux/delay.h>

#include "kd_upcall.h"

#define UP_QLEN		64

static const DAT_UPCALL_POLICY up_enabled[] = {
	DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_NOTIFY, DAT_UPCALL_MANY,
};

static const enum kdat_evd_context up_contexts[] = {
	KDAT_EVD_CONTEXT_SOFTIRQ, KDAT_EVD_CONTEXT_WORKQUEUE,
};

static int up_cpus(void)
{
	return num_online_cpus();
}

/* An EVD for software events. */
static DAT_EVD_HANDLE up_evd(struct kd_env *env, DAT_UPCALL_POLICY policy, struct kd_sink *sink,
			     enum kdat_evd_context context)
{
	DAT_EVD_HANDLE evd;

	KD_ASSERT_OK(env->test, kd_evd_create(env, UP_QLEN, policy, sink, DAT_EVD_SOFTWARE_FLAG,
					      context, &evd));
	return evd;
}

static void up_post(struct kunit *test, DAT_EVD_HANDLE evd, u32 from, u32 n)
{
	for (; n--; from++)
		KD_EXPECT_OK(test, kd_post_se(evd, KD_ID(1, from)));
}

static void up_expect_policy(struct kunit *test, DAT_EVD_HANDLE evd, DAT_UPCALL_POLICY policy,
			     struct kd_sink *sink)
{
	DAT_EVD_PARAM param;

	KD_EXPECT_OK(test, dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
	KUNIT_EXPECT_EQ(test, (int)param.upcall_policy, (int)policy);
	KUNIT_EXPECT_PTR_EQ(test, param.upcall.instance_data, (void *)sink);
}

/* Upcalls [from, from + n) had the events with these numbers, in this order. */
static void up_expect_ids(struct kunit *test, struct kd_sink *sink, int from, u32 first, int n)
{
	int i;

	for (i = 0; i < n; i++)
		KUNIT_EXPECT_EQ(test, sink->seen[from + i].id, KD_ID(1, first + i));
}

/* Each of the first n events came once, in whatever order. */
static void up_expect_each(struct kunit *test, struct kd_sink *sink, int n)
{
	int i, j, found;

	for (i = 0; i < n; i++) {
		for (found = 0, j = 0; j < min(sink->started, KD_SEEN); j++)
			found += sink->seen[j].id == KD_ID(1, i);
		KUNIT_EXPECT_EQ_MSG(test, found, 1, "event %d", i);
	}
}

/* MANY means one per CPU: another event waits until one of them returns. */
static void up_many_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kd_sink *sink = kd_sink(test);
	DAT_EVD_HANDLE evd = up_evd(env, DAT_UPCALL_MANY, sink, KDAT_EVD_CONTEXT_DEFAULT);
	int n = up_cpus();

	kd_sink_pass(sink, 0);
	up_post(test, evd, 0, n + 3);
	KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, n, 0));
	kd_pause();
	KUNIT_EXPECT_EQ(test, sink->started, n);
	/* dequeue is legal beside them and takes the next one */
	KUNIT_EXPECT_EQ(test, kd_drain(evd), 3);
	up_post(test, evd, n, 3);
	/* one returns, one starts */
	kd_sink_pass(sink, 1);
	KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, n + 1, 1));
	kd_pause();
	KUNIT_EXPECT_EQ(test, sink->started, n + 1);
	kd_sink_pass(sink, INT_MAX);
	kd_sink_expect(test, sink, n + 3);
	up_expect_each(test, sink, n + 3);
	KUNIT_EXPECT_EQ(test, sink->most, n);
	KD_EXPECT_OK(test, dat_evd_free(evd));
}

struct up_flood {
	DAT_EVD_HANDLE evd;
	u32 stream;
	u32 n;
	int refused;
	struct completion *go;
};

static void up_flood(void *arg)
{
	struct up_flood *flood = arg;
	u32 i = 0;
	u32 type;

	wait_for_completion(flood->go);
	while (i < flood->n) {
		type = DAT_GET_TYPE(kd_post_se(flood->evd, KD_ID(flood->stream, i)));
		if (type == DAT_SUCCESS)
			i++;
		else if (type == DAT_QUEUE_FULL)
			usleep_range(10, 20);
		else
			flood->refused++, i++;
	}
}

/* What came so far of each stream. */
struct up_streams {
	u32 next[KD_STREAMS];
	int wrong;
	int busy;
	int together;
};

static void up_in_order(struct kd_sink *sink, const DAT_EVENT *event, bool more)
{
	struct up_streams *streams = sink->arg;
	u64 id = kd_event_id(event);

	streams->together += streams->busy++;
	udelay(5);
	if ((u32)id != streams->next[KD_STREAM(id)]++)
		streams->wrong++;
	streams->busy--;
}

/* In softirq there is never more than one, whatever the policy and the load. */
static void up_one_at_a_time_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct up_streams *streams = kunit_kzalloc(test, sizeof(*streams), GFP_KERNEL);
	DAT_UPCALL_POLICY policies[] = { DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_MANY };
	struct up_flood flood[3];
	struct kd_aside aside[3];
	struct completion go;
	struct kd_sink *sink = kd_sink(test);
	DAT_EVD_HANDLE evd;
	int p, c, i;

	KUNIT_ASSERT_NOT_NULL(test, streams);
	for (c = 0; c < ARRAY_SIZE(up_contexts); c++) {
		for (p = 0; p < ARRAY_SIZE(policies); p++) {
			if (up_contexts[c] == KDAT_EVD_CONTEXT_WORKQUEUE && p)
				continue;	/* there two may run */
			memset(streams, 0, sizeof(*streams));
			kd_sink_init(sink);
			sink->inside = up_in_order;
			sink->arg = streams;
			evd = up_evd(env, policies[p], sink, up_contexts[c]);
			init_completion(&go);
			for (i = 0; i < ARRAY_SIZE(flood); i++) {
				flood[i] = (struct up_flood) {
					.evd = evd, .stream = i, .n = 300, .go = &go,
				};
				kd_aside(test, &aside[i], up_flood, &flood[i]);
			}
			complete_all(&go);
			for (i = 0; i < ARRAY_SIZE(flood); i++) {
				KUNIT_EXPECT_TRUE(test, kd_aside_wait(&aside[i]));
				KUNIT_EXPECT_EQ(test, flood[i].refused, 0);
			}
			kd_sink_expect(test, sink, 3 * 300);
			KUNIT_EXPECT_EQ(test, sink->most, 1);
			KUNIT_EXPECT_EQ(test, streams->together, 0);
			KUNIT_EXPECT_EQ(test, streams->wrong, 0);
			KD_EXPECT_OK(test, dat_evd_free(evd));
		}
	}
}

/* The next one starts when this one has returned, with what is the oldest then. */
static void up_single_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kd_sink *sink = kd_sink(test);
	DAT_EVD_HANDLE evd;
	DAT_EVENT event;

	evd = up_evd(env, DAT_UPCALL_SINGLE_INSTANCE, sink, KDAT_EVD_CONTEXT_DEFAULT);
	kd_sink_pass(sink, 0);
	up_post(test, evd, 0, 5);
	KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, 1, 0));
	kd_pause();
	KUNIT_EXPECT_EQ(test, sink->started, 1);
	KUNIT_ASSERT_TRUE(test, kd_next(evd, &event));
	KUNIT_EXPECT_EQ(test, kd_event_id(&event), KD_ID(1, 1));
	KUNIT_EXPECT_PTR_EQ(test, event.evd_handle, evd);
	kd_sink_pass(sink, 1);
	KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, 2, 1));
	kd_pause();
	KUNIT_EXPECT_EQ(test, sink->started, 2);
	kd_sink_pass(sink, INT_MAX);
	kd_sink_expect(test, sink, 4);
	up_expect_ids(test, sink, 0, 0, 1);
	up_expect_ids(test, sink, 1, 2, 3);
	KUNIT_EXPECT_EQ(test, sink->most, 1);
	KUNIT_EXPECT_TRUE(test, sink->seen[1].more);
	KUNIT_EXPECT_TRUE(test, sink->seen[2].more);
	KUNIT_EXPECT_FALSE(test, sink->seen[3].more);
	KD_EXPECT_EMPTY(test, evd);
	KD_EXPECT_OK(test, dat_evd_free(evd));
}

/* Two run when only one may: no third before both have returned. */
static void up_many_to_single_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kd_sink *sink = kd_sink(test);
	DAT_EVD_HANDLE evd = up_evd(env, DAT_UPCALL_MANY, sink, KDAT_EVD_CONTEXT_DEFAULT);
	int n = up_cpus();

	if (n < 2) {
		KD_EXPECT_OK(test, dat_evd_free(evd));
		kunit_skip(test, "needs two CPUs");
	}
	kd_sink_pass(sink, 0);
	up_post(test, evd, 0, n);
	KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, n, 0));
	up_post(test, evd, n, 2);
	KD_EXPECT_OK(test, kd_policy(evd, DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_INVOC_NEW));
	kd_sink_pass(sink, n - 1);
	KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, n, n - 1));
	up_post(test, evd, n + 2, 1);
	kd_pause();
	KUNIT_EXPECT_EQ(test, sink->started, n);
	kd_sink_pass(sink, n);
	KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, n + 1, n));
	kd_pause();
	KUNIT_EXPECT_EQ(test, sink->started, n + 1);
	kd_sink_pass(sink, INT_MAX);
	kd_sink_expect(test, sink, n + 3);
	up_expect_ids(test, sink, n, n, 3);
	KUNIT_EXPECT_EQ(test, sink->most, n);
	KD_EXPECT_OK(test, dat_evd_free(evd));
}

/* What an upcall tries, once, and what came of it. */
struct up_try {
	DAT_EVD_HANDLE evd;
	DAT_UPCALL_POLICY policy;
	DAT_UPCALL_OBJECT *upcall;
	int when;
	int n;
	DAT_RETURN ret;
};

static void up_try_modify(struct kd_sink *sink, const DAT_EVENT *event, bool more)
{
	struct up_try *try = sink->arg;

	if (try->n++ == try->when)
		try->ret = dat_evd_modify_upcall(try->evd, try->policy, try->upcall,
						 DAT_UPCALL_INVOC_NEW);
}

/* It would wait for itself, and is told so wherever it asks. */
static void up_teardown_inside_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kd_sink *sink = kd_sink(test), *other = kd_sink(test);
	DAT_UPCALL_OBJECT object = kd_sink_object(other);
	struct up_try try;
	int i, p;

	for (i = 0; i < 2 * (int)ARRAY_SIZE(up_enabled); i++) {
		p = i / 2;
		kd_sink_init(sink);
		sink->inside = up_try_modify;
		sink->arg = &try;
		try = (struct up_try) { .policy = DAT_UPCALL_TEARDOWN, .upcall = &object };
		try.evd = up_evd(env, up_enabled[p], sink, up_contexts[i % 2]);
		up_post(test, try.evd, 0, 1);
		kd_sink_expect(test, sink, 1);
		KUNIT_EXPECT_EQ(test, (u32)DAT_GET_TYPE(try.ret), (u32)DAT_INVALID_STATE);
		up_expect_policy(test, try.evd, up_enabled[p], sink);
		/* and it goes on as before */
		if (up_enabled[p] == DAT_UPCALL_NOTIFY)
			KUNIT_EXPECT_EQ(test, kd_drain(try.evd), 1);
		up_post(test, try.evd, 1, 1);
		kd_sink_expect(test, sink, 2);
		KUNIT_EXPECT_EQ(test, other->started, 0);
		/* outside it is legal */
		KD_EXPECT_OK(test, kd_policy(try.evd, DAT_UPCALL_TEARDOWN, DAT_UPCALL_INVOC_NEW));
		KD_EXPECT_OK(test, dat_evd_free(try.evd));
	}
}

struct up_call {
	DAT_HANDLE handle;
	DAT_RETURN ret;
};

static void up_teardown(void *arg)
{
	struct up_call *call = arg;

	call->ret = kd_policy(call->handle, DAT_UPCALL_TEARDOWN, DAT_UPCALL_INVOC_NEW);
}

static void up_evd_free(void *arg)
{
	struct up_call *call = arg;

	call->ret = dat_evd_free(call->handle);
}

static void up_ep_free(void *arg)
{
	struct up_call *call = arg;

	call->ret = dat_ep_free(call->handle);
}

/* Hold as many upcalls as there may be. Returns how many. */
static int up_hold(struct kunit *test, DAT_EVD_HANDLE evd, struct kd_sink *sink,
		   DAT_UPCALL_POLICY policy)
{
	int n = policy == DAT_UPCALL_MANY ? up_cpus() : 1;

	kd_sink_pass(sink, 0);
	up_post(test, evd, 0, n);
	KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, n, 0));
	return n;
}

/* Waits for all that run, starts none, and is DISABLE then. */
static void up_teardown_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kd_sink *sink = kd_sink(test);
	struct up_call call[2];
	struct kd_aside aside[2];
	int p, i, n;

	for (p = 0; p < ARRAY_SIZE(up_enabled); p++) {
		kd_sink_init(sink);
		call[0].handle = up_evd(env, up_enabled[p], sink, KDAT_EVD_CONTEXT_DEFAULT);
		call[1] = call[0];
		n = up_hold(test, call[0].handle, sink, up_enabled[p]);
		up_post(test, call[0].handle, n, 3);
		/* two at once, and a third who does not wait */
		for (i = 0; i < 2; i++)
			kd_aside(test, &aside[i], up_teardown, &call[i]);
		KUNIT_EXPECT_FALSE(test, kd_aside_returned(&aside[0], KD_MOMENT));
		KUNIT_EXPECT_FALSE(test, kd_aside_returned(&aside[1], KD_MOMENT));
		KD_EXPECT_OK(test, kd_policy(call[0].handle, DAT_UPCALL_DISABLE,
					     DAT_UPCALL_INVOC_NEW));
		if (n > 1) {
			kd_sink_pass(sink, n - 1);
			KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, n, n - 1));
			KUNIT_EXPECT_FALSE(test, kd_aside_returned(&aside[0], KD_MOMENT));
		}
		kd_sink_pass(sink, INT_MAX);
		for (i = 0; i < 2; i++) {
			KUNIT_EXPECT_TRUE(test, kd_aside_wait(&aside[i]));
			KD_EXPECT_OK(test, call[i].ret);
		}
		up_expect_policy(test, call[0].handle, DAT_UPCALL_DISABLE, sink);
		up_post(test, call[0].handle, n + 3, 1);
		kd_settle(call[0].handle);
		kd_sink_expect(test, sink, n);
		/* nothing to wait for */
		up_teardown(&call[0]);
		KD_EXPECT_OK(test, call[0].ret);
		KUNIT_EXPECT_EQ(test, kd_drain(call[0].handle),
				up_enabled[p] == DAT_UPCALL_NOTIFY ? 5 : 4);
		KD_EXPECT_OK(test, dat_evd_free(call[0].handle));
	}
}

/* It waits for what runs when it is called, not for what others allow later. */
static void up_teardown_overtaken_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kd_sink *sink = kd_sink(test);
	struct up_call call;
	struct kd_aside aside;

	call.handle = up_evd(env, DAT_UPCALL_SINGLE_INSTANCE, sink, KDAT_EVD_CONTEXT_DEFAULT);
	up_hold(test, call.handle, sink, DAT_UPCALL_SINGLE_INSTANCE);
	kd_aside(test, &aside, up_teardown, &call);
	KUNIT_EXPECT_FALSE(test, kd_aside_returned(&aside, KD_MOMENT));
	KD_EXPECT_OK(test, kd_policy(call.handle, DAT_UPCALL_SINGLE_INSTANCE,
				     DAT_UPCALL_INVOC_NEW));
	up_post(test, call.handle, 1, 1);
	kd_sink_pass(sink, 1);
	KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, 2, 1));
	/* the second one is still held */
	KUNIT_EXPECT_TRUE(test, kd_aside_wait(&aside));
	KD_EXPECT_OK(test, call.ret);
	kd_sink_pass(sink, INT_MAX);
	kd_sink_expect(test, sink, 2);
	KD_EXPECT_OK(test, dat_evd_free(call.handle));
}

/* Inside an upcall: what comes after it follows the new policy. */
static void up_modify_inside_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kd_sink *sink = kd_sink(test);
	struct up_try try = { .policy = DAT_UPCALL_DISABLE, .upcall = DAT_UPCALL_SAME, .when = 1 };
	int notified = 0, left, i;

	sink->inside = up_try_modify;
	sink->arg = &try;
	try.evd = up_evd(env, DAT_UPCALL_DISABLE, sink, KDAT_EVD_CONTEXT_DEFAULT);
	up_post(test, try.evd, 0, 5);
	/* the second of five switches upcalls off */
	KD_EXPECT_OK(test, kd_policy(try.evd, DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_INVOC_ANY));
	KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, 2, 2));
	kd_settle(try.evd);
	KD_EXPECT_OK(test, try.ret);
	kd_sink_expect(test, sink, 2);
	up_expect_policy(test, try.evd, DAT_UPCALL_DISABLE, sink);
	/* the rest waits for another event, the first upcall then asks for notifications */
	try.n = 0;
	try.when = 0;
	try.policy = DAT_UPCALL_NOTIFY;
	KD_EXPECT_OK(test, kd_policy(try.evd, DAT_UPCALL_MANY, DAT_UPCALL_INVOC_NEW));
	kd_settle(try.evd);
	KUNIT_EXPECT_EQ(test, sink->started, 2);
	/* with one more upcall the policy is NOTIFY; others of MANY, even all, may have begun */
	up_post(test, try.evd, 5, 1);
	KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, 4, 4));
	kd_settle(try.evd);
	KD_EXPECT_OK(test, try.ret);
	for (i = 2; i < sink->started; i++)
		notified += sink->seen[i].id == KD_NO_EVENT;
	left = 6 - (sink->started - notified);
	KUNIT_EXPECT_EQ(test, notified, left > 0 ? 1 : 0);
	KUNIT_EXPECT_EQ(test, kd_drain(try.evd), left);
	KD_EXPECT_OK(test, dat_evd_free(try.evd));
}

/* The object changes, inside and outside: who runs finishes with the old one. */
static void up_object_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kd_sink *a = kd_sink(test), *b = kd_sink(test);
	DAT_UPCALL_OBJECT object = kd_sink_object(b);
	struct up_try try = { .upcall = &object };
	int p, n;

	for (p = 0; p < ARRAY_SIZE(up_enabled); p++) {
		if (up_enabled[p] == DAT_UPCALL_NOTIFY)
			continue;
		/* inside */
		kd_sink_init(a);
		kd_sink_init(b);
		a->inside = up_try_modify;
		a->arg = &try;
		try.n = 0;
		try.policy = up_enabled[p];
		try.evd = up_evd(env, up_enabled[p], a, KDAT_EVD_CONTEXT_DEFAULT);
		b->evd = try.evd;
		up_post(test, try.evd, 0, 1);
		KUNIT_EXPECT_TRUE(test, kd_sink_wait(a, 1, 1));
		up_post(test, try.evd, 1, 3);
		kd_sink_expect(test, a, 1);
		kd_sink_expect(test, b, 3);
		KD_EXPECT_OK(test, try.ret);
		up_expect_policy(test, try.evd, up_enabled[p], b);
		KD_EXPECT_OK(test, dat_evd_free(try.evd));

		/* outside, while it runs */
		kd_sink_init(a);
		kd_sink_init(b);
		try.evd = up_evd(env, up_enabled[p], a, KDAT_EVD_CONTEXT_DEFAULT);
		b->evd = try.evd;
		kd_sink_pass(a, 0);
		up_post(test, try.evd, 0, 1);
		KUNIT_EXPECT_TRUE(test, kd_sink_wait(a, 1, 0));
		KD_EXPECT_OK(test, dat_evd_modify_upcall(try.evd, up_enabled[p], &object,
							 DAT_UPCALL_INVOC_NEW));
		up_post(test, try.evd, 1, 2);
		n = up_enabled[p] == DAT_UPCALL_MANY && up_cpus() > 1 ? 2 : 0;
		KUNIT_EXPECT_TRUE(test, kd_sink_wait(b, n, n));
		kd_pause();
		KUNIT_EXPECT_EQ(test, b->started, n);
		kd_sink_pass(a, INT_MAX);
		kd_sink_expect(test, a, 1);
		kd_sink_expect(test, b, 2);
		KD_EXPECT_OK(test, dat_evd_free(try.evd));
	}
}

/* Freed while upcalls run: returns after the last one, none starts any more. */
static void up_free_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kd_sink *sink = kd_sink(test);
	struct up_call call;
	struct kd_aside aside;
	DAT_EVENT event;
	int p, n;

	for (p = 0; p < ARRAY_SIZE(up_enabled); p++) {
		kd_sink_init(sink);
		call.handle = up_evd(env, up_enabled[p], sink, KDAT_EVD_CONTEXT_DEFAULT);
		n = up_hold(test, call.handle, sink, up_enabled[p]);
		up_post(test, call.handle, n, 3);
		kd_aside(test, &aside, up_evd_free, &call);
		KUNIT_EXPECT_FALSE(test, kd_aside_returned(&aside, KD_MOMENT));
		/* nobody can name it any more */
		KD_EXPECT_RET(test, dat_evd_dequeue(call.handle, &event), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE1);
		KD_EXPECT_RET(test, kd_post_se(call.handle, 0), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE1);
		KD_EXPECT_RET(test, kd_policy(call.handle, DAT_UPCALL_DISABLE,
					      DAT_UPCALL_INVOC_NEW),
			      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
		KD_EXPECT_RET(test, dat_evd_resize(call.handle, 7), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE1);
		if (n > 1) {
			kd_sink_pass(sink, n - 1);
			KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, n, n - 1));
			KUNIT_EXPECT_FALSE(test, kd_aside_returned(&aside, KD_MOMENT));
		}
		kd_sink_pass(sink, INT_MAX);
		KUNIT_EXPECT_TRUE(test, kd_aside_wait(&aside));
		KD_EXPECT_OK(test, call.ret);
		KUNIT_EXPECT_EQ(test, sink->started, n);
		KUNIT_EXPECT_EQ(test, sink->ended, n);
		KUNIT_EXPECT_EQ(test, sink->changed, 0);
	}
}

static void up_try_free(struct kd_sink *sink, const DAT_EVENT *event, bool more)
{
	struct up_try *try = sink->arg;

	if (!try->n++)
		try->ret = dat_evd_free(try->evd);
}

/* Freed by itself: refused, and nothing has changed. */
static void up_free_inside_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kd_sink *sink = kd_sink(test);
	struct up_try try;
	int p, c;

	for (c = 0; c < ARRAY_SIZE(up_contexts); c++) {
		for (p = 0; p < ARRAY_SIZE(up_enabled); p++) {
			kd_sink_init(sink);
			sink->inside = up_try_free;
			sink->arg = &try;
			try = (struct up_try) { .ret = DAT_SUCCESS };
			try.evd = up_evd(env, up_enabled[p], sink, up_contexts[c]);
			up_post(test, try.evd, 0, 1);
			kd_sink_expect(test, sink, 1);
			KD_EXPECT_RET(test, try.ret, DAT_INVALID_STATE,
				      DAT_INVALID_STATE_EVD_IN_USE);
			up_expect_policy(test, try.evd, up_enabled[p], sink);
			if (up_enabled[p] == DAT_UPCALL_NOTIFY)
				KUNIT_EXPECT_EQ(test, kd_drain(try.evd), 1);
			up_post(test, try.evd, 1, 1);
			kd_sink_expect(test, sink, 2);
			KD_EXPECT_OK(test, dat_evd_free(try.evd));
		}
	}
}

/* An EP whose requests complete on an EVD of the case, with upcalls that may sleep. */
static struct ib_qp *up_ep(struct kd_env *env, DAT_EVD_HANDLE evd, DAT_EP_HANDLE *ep)
{
	DAT_EP_ATTR attr;

	kd_attr(&attr);
	KD_ASSERT_OK(env->test, dat_ep_create(env->ia, env->pz, env->recv, evd, env->conn, &attr,
					      ep));
	env->ep = *ep;
	env->qp = fake_ib_newest_qp(env->dev);
	env->kep = kdapl_obj_get(*ep, DAT_HANDLE_TYPE_EP);
	KUNIT_ASSERT_NOT_NULL(env->test, env->kep);
	kd_connect(env);
	kdapl_obj_put(&env->kep->obj);
	env->kep = NULL;
	env->ep = NULL;
	return env->qp;
}

static void up_send(struct kd_env *env, DAT_EP_HANDLE ep, struct ib_qp *qp, u32 stream, u32 n)
{
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);

	KD_EXPECT_OK(env->test, kd_post(ep, KD_SEND, 1, &iov, KD_ID(stream, n), NULL, 0));
	KUNIT_EXPECT_EQ(env->test, fake_ib_complete(qp, false, IB_WC_SUCCESS), 0);
}

/* An EP is freed from outside: waits for upcalls that have its events, for no others. */
static void up_ep_free_outside_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kd_sink *sink = kd_sink(test);
	DAT_EP_HANDLE ep[2];
	struct ib_qp *qp[2];
	struct up_call call;
	struct kd_aside aside;
	DAT_EVD_HANDLE evd;
	int p, i, n;

	for (p = 0; p < ARRAY_SIZE(up_enabled); p++) {
		if (up_enabled[p] == DAT_UPCALL_NOTIFY)
			continue;	/* has no event in hand */
		n = up_enabled[p] == DAT_UPCALL_MANY ? min(up_cpus(), 2) : 1;
		kd_sink_init(sink);
		KD_ASSERT_OK(test, kd_evd_create(env, UP_QLEN, up_enabled[p], sink,
						 DAT_EVD_DTO_FLAG, KDAT_EVD_CONTEXT_WORKQUEUE,
						 &evd));
		for (i = 0; i < 2; i++)
			qp[i] = up_ep(env, evd, &ep[i]);
		kd_sink_pass(sink, 0);
		for (i = 0; i < n; i++) {
			up_send(env, ep[i], qp[i], i, 0);
			KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, i + 1, 0));
		}
		/* this one goes with its EP, that one stays */
		up_send(env, ep[0], qp[0], 0, 1);
		up_send(env, ep[1], qp[1], 1, 1);
		call.handle = ep[0];
		kd_aside(test, &aside, up_ep_free, &call);
		KUNIT_EXPECT_FALSE(test, kd_aside_returned(&aside, 500));
		kd_sink_pass(sink, 1);
		KUNIT_EXPECT_TRUE(test, kd_aside_wait(&aside));
		KD_EXPECT_OK(test, call.ret);
		kd_sink_pass(sink, INT_MAX);
		KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, n + 1, n + 1));
		kd_settle(evd);
		for (i = 0; i < sink->started; i++)
			KUNIT_EXPECT_NE(test, sink->seen[i].id, KD_ID(0, 1));
		kd_sink_expect(test, sink, n + 1);
		KD_EXPECT_OK(test, dat_ep_free(ep[1]));
		KD_EXPECT_OK(test, dat_evd_free(evd));
	}
}

static void up_try_ep_free(struct kd_sink *sink, const DAT_EVENT *event, bool more)
{
	struct up_call *call = sink->arg;
	DAT_HANDLE ep = xchg(&call->handle, DAT_HANDLE_NULL);	/* of MANY the first one */

	if (ep)
		call->ret = dat_ep_free(ep);
}

/* An EP is freed inside an upcall with its event. Its other events go with it. */
static void up_ep_free_inside_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kd_sink *sink = kd_sink(test);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	DAT_UPCALL_POLICY policy;
	DAT_EVD_HANDLE evd;
	struct up_call call;
	DAT_EP_HANDLE ep;
	struct ib_qp *qp;
	DAT_RETURN ret;
	int p, c, i;

	for (c = 0; c < ARRAY_SIZE(up_contexts); c++) {
		for (p = 0; p < ARRAY_SIZE(up_enabled); p++) {
			policy = up_enabled[p];
			kd_sink_init(sink);
			sink->inside = up_try_ep_free;
			sink->arg = &call;
			call.ret = DAT_NOT_IMPLEMENTED;
			KD_ASSERT_OK(test, kd_evd_create(env, UP_QLEN, DAT_UPCALL_DISABLE, sink,
							 DAT_EVD_DTO_FLAG, up_contexts[c], &evd));
			qp = up_ep(env, evd, &ep);
			call.handle = ep;
			for (i = 0; i < 3; i++)
				up_send(env, ep, qp, 0, i);
			KD_EXPECT_OK(test, kd_policy(evd, policy, DAT_UPCALL_INVOC_ANY));
			KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, 1, 1));
			kd_settle(evd);
			KD_EXPECT_OK(test, call.ret);
			/* its handle died inside; another of MANY may have begun before that */
			KD_EXPECT_RET(test, kd_post(ep, KD_SEND, 1, &iov, 0, NULL, 0),
				      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
			KUNIT_EXPECT_EQ(test, kd_drain(evd), 0);
			KUNIT_EXPECT_EQ(test, sink->started, sink->ended);
			if (policy != DAT_UPCALL_MANY)
				KUNIT_EXPECT_EQ(test, sink->started, 1);
			/* it ends in the background, the EVD is in use until then */
			for (i = 0; i < 5000; i++) {
				ret = dat_evd_free(evd);
				if (!ret)
					break;
				KD_EXPECT_RET(test, ret, DAT_INVALID_STATE,
					      DAT_INVALID_STATE_EVD_IN_USE);
				kd_pause();
			}
			KD_EXPECT_OK(test, ret);
		}
	}
}

/* The device goes while upcalls run: nobody waits for ever, and the end is told. */
static void up_unplug(void *arg)
{
	fake_ib_unplug(arg);
}

static void up_unplug_test(struct kunit *test)
{
	struct kd_env *env = test->priv;
	struct kd_sink *sink = kd_sink(test);
	DAT_LMR_TRIPLET iov;
	DAT_EVD_HANDLE evd;
	struct kd_aside aside;
	DAT_EP_HANDLE ep;
	struct ib_qp *qp;
	int p, i, n;

	for (p = 0; p < ARRAY_SIZE(up_enabled); p++) {
		if (up_enabled[p] == DAT_UPCALL_NOTIFY)
			continue;
		kd_sink_init(sink);
		kd_open(test, NULL);
		KD_ASSERT_OK(test, kd_evd_create(env, UP_QLEN, up_enabled[p], sink,
						 DAT_EVD_DTO_FLAG, KDAT_EVD_CONTEXT_WORKQUEUE,
						 &evd));
		qp = up_ep(env, evd, &ep);
		n = up_enabled[p] == DAT_UPCALL_MANY ? up_cpus() : 1;
		kd_sink_pass(sink, 0);
		for (i = 0; i < n; i++)
			up_send(env, ep, qp, 1, i);
		KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, n, 0));
		iov = kd_seg(env, KD_RW, 0, 8);
		KD_EXPECT_OK(test, kd_post(ep, KD_SEND, 1, &iov, KD_ID(1, n), NULL, 0));
		kd_aside(test, &aside, up_unplug, env->dev);
		kd_aside_returned(&aside, KD_MOMENT);	/* it may wait for them or not */
		kd_sink_pass(sink, INT_MAX);
		KUNIT_EXPECT_TRUE(test, kd_aside_wait(&aside));
		kd_sink_expect(test, sink, n + 1);
		up_expect_each(test, sink, n + 1);
		KD_EXPECT_OK(test, dat_ep_free(ep));
		KD_EXPECT_OK(test, dat_evd_free(evd));
		kd_exit(test);
		memset(env, 0, sizeof(*env));
		env->test = test;
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
	DAT_EP_STATE state;
	DAT_EVD_PARAM evd_param;
	DAT_EP_PARAM ep_param;
	DAT_CONTEXT context = { .as_64 = 1 };
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
	int c, i;

	for (c = 0; c < ARRAY_SIZE(up_contexts); c++) {
		kd_sink_init(sink);
		sink->inside = up_inside_all;
		sink->arg = &busy;
		busy = (struct up_busy) {
			.env = env, .sleeps = up_contexts[c] == KDAT_EVD_CONTEXT_WORKQUEUE,
		};
		KD_ASSERT_OK(test, kd_evd_create(env, UP_QLEN, DAT_UPCALL_SINGLE_INSTANCE, sink,
						 DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG,
						 up_contexts[c], &busy.evd));
		qp = up_ep(env, busy.evd, &busy.ep);
		up_send(env, busy.ep, qp, 1, 0);
		/* the Send posted inside comes back flushed */
		kd_sink_expect(test, sink, 2);
		KUNIT_EXPECT_EQ(test, busy.wrong, 0);
		KUNIT_EXPECT_EQ(test, sink->seen[1].id, KD_ID(2, 0));
		KUNIT_EXPECT_EQ(test, sink->seen[0].softirq, !busy.sleeps);
		for (i = 0; i < 5000 && !kd_next(env->conn, &event); i++)
			kd_pause();
		KUNIT_EXPECT_EQ(test, (u32)event.event_number,
				(u32)DAT_CONNECTION_EVENT_DISCONNECTED);
		KD_EXPECT_OK(test, dat_ep_free(busy.ep));
		KD_EXPECT_OK(test, dat_evd_free(busy.evd));
		kd_drain(env->recv);
	}
}

/* One notification, and none before the consumer has found the queue empty. */
static void up_notify_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kd_sink *sink = kd_sink(test);
	DAT_EVD_HANDLE evd;
	DAT_EVENT event;
	int c, i;

	for (c = 0; c < ARRAY_SIZE(up_contexts); c++) {
		kd_sink_init(sink);
		evd = up_evd(env, DAT_UPCALL_NOTIFY, sink, up_contexts[c]);
		for (i = 0; i < 4; i++) {
			up_post(test, evd, 0, 1);
			kd_settle(evd);
			KUNIT_EXPECT_EQ(test, sink->started, i + 1);
			KUNIT_EXPECT_EQ(test, sink->seen[i].id, KD_NO_EVENT);
			KUNIT_EXPECT_TRUE(test, sink->seen[i].more);
			/* more events, and some taken: not a word */
			up_post(test, evd, 1, 2);
			kd_settle(evd);
			KUNIT_ASSERT_TRUE(test, kd_next(evd, &event));
			KUNIT_EXPECT_EQ(test, kd_event_id(&event), KD_ID(1, 0));
			up_post(test, evd, 3, 1);
			kd_settle(evd);
			KUNIT_EXPECT_EQ(test, kd_drain(evd), 3);
			kd_settle(evd);
			KUNIT_EXPECT_EQ(test, sink->started, i + 1);
		}
		kd_sink_expect(test, sink, 4);
		KD_EXPECT_OK(test, dat_evd_free(evd));
	}
}

static void up_notified(struct kd_sink *sink, const DAT_EVENT *event, bool more)
{
	struct up_streams *streams = sink->arg;
	DAT_EVENT ev;

	while (kd_next(sink->evd, &ev)) {
		if (kd_event_id(&ev) != KD_ID(1, streams->next[1]++))
			streams->wrong++;
		/* while the consumer takes them, more arrive, the last one after empty */
		if (streams->busy < 5)
			kd_post_se(sink->evd, KD_ID(1, 10 + streams->busy++));
	}
	if (streams->busy == 5)
		kd_post_se(sink->evd, KD_ID(1, 10 + streams->busy++));
}

/* The consumer dequeues inside; what arrives after it has seen the end is told anew. */
static void up_notify_inside_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kd_sink *sink = kd_sink(test);
	struct up_streams *streams = kunit_kzalloc(test, sizeof(*streams), GFP_KERNEL);
	DAT_EVD_HANDLE evd;
	int c;

	KUNIT_ASSERT_NOT_NULL(test, streams);
	for (c = 0; c < ARRAY_SIZE(up_contexts); c++) {
		kd_sink_init(sink);
		sink->inside = up_notified;
		sink->arg = streams;
		memset(streams, 0, sizeof(*streams));
		evd = up_evd(env, DAT_UPCALL_DISABLE, sink, up_contexts[c]);
		up_post(test, evd, 0, 10);
		KD_EXPECT_OK(test, kd_policy(evd, DAT_UPCALL_NOTIFY, DAT_UPCALL_INVOC_ANY));
		kd_sink_expect(test, sink, 2);
		kd_settle(evd);
		KUNIT_EXPECT_EQ(test, sink->started, 2);
		KUNIT_EXPECT_EQ(test, streams->wrong, 0);
		KUNIT_EXPECT_EQ(test, streams->next[1], 16U);
		KD_EXPECT_EMPTY(test, evd);
		KD_EXPECT_OK(test, dat_evd_free(evd));
	}
}

static struct kunit_case up_cases[] = {
	KD_CASE(up_many_test, "EVD-UP-07,SIL-38,SIL-41: MANY, one per CPU"),
	KD_CASE(up_one_at_a_time_test, "EVD-UP-06,EVD-UP-07,EVD-SE-04: never two in softirq"),
	KD_CASE(up_single_test, "EVD-UP-01,EVD-UP-02,EVD-UP-06,EVD-DQ-02: one after the other"),
	KD_CASE(up_many_to_single_test, "EVD-UP-06,EVD-MOD-06: from MANY to SINGLE while two run"),
	KD_CASE(up_teardown_inside_test, "EVD-MOD-07,EVD-MOD-08: TEARDOWN inside an upcall"),
	KD_CASE(up_teardown_test, "EVD-UP-08,EVD-MOD-05: TEARDOWN waits for all that run"),
	KD_CASE(up_teardown_overtaken_test, "EVD-UP-08: TEARDOWN does not wait for later ones"),
	KD_CASE(up_modify_inside_test, "EVD-UP-11,EVD-MOD-02: policies changed inside an upcall"),
	KD_CASE(up_object_test, "EVD-CR-05,EVD-MOD-01,EVD-MOD-05: another upcall object"),
	KD_CASE(up_free_test, "EVD-FREE-02,EVD-FREE-03: freed while upcalls run"),
	KD_CASE(up_free_inside_test, "EVD-FREE-03: freed inside an upcall"),
	KD_CASE(up_ep_free_outside_test, "EP-FREE-03,EVD-UP-07: an EP goes while upcalls run"),
	KD_CASE(up_ep_free_inside_test, "SIL-46,EVD-UP-11: an EP goes inside an upcall"),
	KD_CASE(up_unplug_test, "EPSM-24,SIL-27,EVD-UP-07: the device goes while upcalls run"),
	KD_CASE(up_inside_all_test, "EVD-UP-11,EVD-UP-13,CTX-02,CTX-03: calls inside an upcall"),
	KD_CASE(up_notify_test, "EVD-UP-09,SIL-25: one notification at a time"),
	KD_CASE(up_notify_inside_test, "EVD-UP-09,EVD-UP-12,EVD-UP-13: dequeued inside"),
	{}
};

static struct kunit_suite up_suite = {
	.name = "kdapl-upcall",
	.suite_init = kd_suite_init,
	.suite_exit = kd_suite_exit,
	.init = kd_init,
	.exit = kd_exit,
	.test_cases = up_cases,
};

kunit_test_suite(up_suite);
