// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * What a post costs: calls of the device, allocations, sleeps. Each post is
 * made with interrupts off and watched by the kernel's own trace points, so an
 * allocation or a switch to another task would be seen on every kernel; those
 * with DEBUG_ATOMIC_SLEEP complain of mere readiness to sleep.
 */
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/tracepoint.h>

#include "kd_test.h"

#define COST_KEY	0x4242
#define COST_DEPTH	8

/**
 * struct cost_watch - what one task does while it is watched
 * @task: the task
 * @on: it is being watched now
 * @allocs: allocations of memory, of any kind
 * @sleeps: times it gave up the CPU
 * @attached: trace points found
 */
struct cost_watch {
	struct task_struct *task;
	bool on;
	unsigned int allocs;
	unsigned int sleeps;
	unsigned int attached;
};

static struct cost_watch cost_watch;

/**
 * struct cost - of one call
 * @ret: what it returned
 * @verbs: verbs that can fail, all together
 * @send: of these, posts to a send queue
 * @recv: posts to a receive queue
 * @srq: posts to an SRQ
 * @polls: CQs polled or armed
 * @wrs: work requests the device got
 * @allocs: allocations
 * @sleeps: sleeps
 */
struct cost {
	DAT_RETURN ret;
	unsigned int verbs;
	unsigned int send;
	unsigned int recv;
	unsigned int srq;
	unsigned int polls;
	unsigned int wrs;
	unsigned int allocs;
	unsigned int sleeps;
};

/* The arguments of the trace points differ by kernel and do not matter. */
static void cost_on_alloc(void *data)
{
	struct cost_watch *watch = data;

	if (READ_ONCE(watch->on) && current == watch->task && in_task())
		watch->allocs++;
}

/* Called by the task that gives up the CPU. */
static void cost_on_switch(void *data)
{
	struct cost_watch *watch = data;

	if (READ_ONCE(watch->on) && current == watch->task)
		watch->sleeps++;
}

static const struct {
	const char *name;
	void (*probe)(void *data);
} cost_points[] = {
	{ "kmalloc", cost_on_alloc },
	{ "kmalloc_node", cost_on_alloc },
	{ "kmem_cache_alloc", cost_on_alloc },
	{ "kmem_cache_alloc_node", cost_on_alloc },
	{ "mm_page_alloc", cost_on_alloc },
	{ "sched_switch", cost_on_switch },
};

static void cost_attach(struct tracepoint *tp, void *priv)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(cost_points); i++)
		if (!strcmp(tp->name, cost_points[i].name) &&
		    !tracepoint_probe_register(tp, (void *)cost_points[i].probe, priv))
			cost_watch.attached++;
}

static void cost_detach(struct tracepoint *tp, void *priv)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(cost_points); i++)
		if (!strcmp(tp->name, cost_points[i].name))
			tracepoint_probe_unregister(tp, (void *)cost_points[i].probe, priv);
}

/* Trace points cost every allocation of the kernel something: only while needed. */
static int cost_init(struct kunit *test)
{
	int ret = kd_init(test);

	if (ret)
		return ret;
	memset(&cost_watch, 0, sizeof(cost_watch));
	cost_watch.task = current;
	if (IS_ENABLED(CONFIG_TRACEPOINTS))
		for_each_kernel_tracepoint(cost_attach, &cost_watch);
	return 0;
}

static void cost_exit(struct kunit *test)
{
	if (IS_ENABLED(CONFIG_TRACEPOINTS))
		for_each_kernel_tracepoint(cost_detach, &cost_watch);
	tracepoint_synchronize_unregister();
	kd_exit(test);
}

static void cost_count(struct kd_env *env, struct cost *cost, int sign)
{
	cost->verbs += sign * fake_ib_count(env->dev, FAKE_IB_ANY);
	cost->send += sign * fake_ib_count(env->dev, FAKE_IB_POST_SEND);
	cost->recv += sign * fake_ib_count(env->dev, FAKE_IB_POST_RECV);
	cost->srq += sign * fake_ib_count(env->dev, FAKE_IB_POST_SRQ_RECV);
	cost->polls += sign * (fake_ib_count(env->dev, FAKE_IB_POLL_CQ) +
			       fake_ib_count(env->dev, FAKE_IB_NOTIFY_CQ));
	if (env->qp)
		cost->wrs += sign * (fake_ib_posted(env->qp, false) +
				     fake_ib_posted(env->qp, true));
}

static void cost_begin(struct kd_env *env, struct cost *cost)
{
	memset(cost, 0, sizeof(*cost));
	cost_watch.allocs = 0;
	cost_watch.sleeps = 0;
	cost_count(env, cost, -1);
}

static void cost_end(struct kd_env *env, struct cost *cost)
{
	cost_count(env, cost, 1);
	cost->allocs = cost_watch.allocs;
	cost->sleeps = cost_watch.sleeps;
}

/* One post; its memory and its list are untouched by it. */
static struct cost cost_post(struct kd_env *env, DAT_EP_HANDLE ep, enum kd_call call, int num,
			     DAT_LMR_TRIPLET *iov, DAT_RMR_TRIPLET *remote, int flags)
{
	DAT_LMR_TRIPLET iov_before[FAKE_IB_MAX_SGE];
	DAT_RMR_TRIPLET remote_before;
	size_t size = clamp(num, 0, FAKE_IB_MAX_SGE) * sizeof(*iov);
	unsigned long irq;
	struct cost cost;

	if (iov)
		memcpy(iov_before, iov, size);
	if (remote)
		remote_before = *remote;
	cost_begin(env, &cost);
	local_irq_save(irq);
	WRITE_ONCE(cost_watch.on, true);
	cost.ret = kd_post(ep, call, num, iov, 0x1234, remote, flags);
	WRITE_ONCE(cost_watch.on, false);
	local_irq_restore(irq);
	cost_end(env, &cost);
	KUNIT_EXPECT_EQ(env->test, cost.allocs, 0U);
	KUNIT_EXPECT_EQ(env->test, cost.sleeps, 0U);
	if (iov)
		KUNIT_EXPECT_EQ(env->test, memcmp(iov_before, iov, size), 0);
	if (remote)
		KUNIT_EXPECT_EQ(env->test, memcmp(&remote_before, remote, sizeof(*remote)), 0);
	return cost;
}

/* Exactly one call of the device, the right one, with so many work requests. */
static void cost_expect_native(struct kd_env *env, enum kd_call call, const struct cost *cost,
			       unsigned int wrs, const char *what)
{
	bool recv = kd_is_recv(call);

	KUNIT_EXPECT_EQ_MSG(env->test, (u32)cost->ret, (u32)DAT_SUCCESS, "%s: %s",
			    kd_call_names[call], what);
	KUNIT_EXPECT_EQ_MSG(env->test, cost->verbs, 1U, "%s: %s", kd_call_names[call], what);
	KUNIT_EXPECT_EQ_MSG(env->test, cost->send, recv ? 0U : 1U, "%s: %s", kd_call_names[call],
			    what);
	KUNIT_EXPECT_EQ_MSG(env->test, cost->recv, recv ? 1U : 0U, "%s: %s", kd_call_names[call],
			    what);
	KUNIT_EXPECT_EQ_MSG(env->test, cost->wrs, wrs, "%s: %s", kd_call_names[call], what);
}

/* No call of the device at all. */
static void cost_expect_none(struct kd_env *env, enum kd_call call, const struct cost *cost,
			     DAT_RETURN ret, const char *what)
{
	KUNIT_EXPECT_EQ_MSG(env->test, (u32)cost->ret, (u32)ret, "%s: %s", kd_call_names[call],
			    what);
	KUNIT_EXPECT_EQ_MSG(env->test, cost->verbs, 0U, "%s: %s", kd_call_names[call], what);
	KUNIT_EXPECT_EQ_MSG(env->test, cost->wrs, 0U, "%s: %s", kd_call_names[call], what);
}

static void cost_drain(struct kd_env *env, enum kd_call call)
{
	DAT_EVENT event;

	fake_ib_complete_all(env->qp, kd_is_recv(call), IB_WC_SUCCESS);
	while (kd_next(kd_evd_of(env, call), &event))
		;
}

static int cost_max_iov(enum kd_call call)
{
	return call == KD_READ ? 3 : 4;
}

static int cost_flags(enum kd_call call)
{
	switch (call) {
	case KD_SEND:
		return 0x0f;
	case KD_RECV:
		return DAT_COMPLETION_UNSIGNALLED_FLAG;
	default:
		return 0x0d;
	}
}

/* Does the instrument see anything? A deliberate allocation, a deliberate sleep. */
static void cost_sanity_test(struct kunit *test)
{
	struct cost_watch *watch = &cost_watch;
	struct kmem_cache *cache;
	void *p;

	if (!watch->attached) {
		kunit_skip(test, "this kernel has no trace points");
		return;
	}
	WRITE_ONCE(watch->on, true);
	p = kmalloc(64, GFP_KERNEL);
	OPTIMIZER_HIDE_VAR(p);
	WRITE_ONCE(watch->on, false);
	kfree(p);
	/* the slab may need a list of its own for the first */
	KUNIT_EXPECT_GE(test, watch->allocs, 1U);
	KUNIT_EXPECT_EQ(test, watch->sleeps, 0U);

	/* GFP_ATOMIC, and of a size only known at run time */
	watch->allocs = 0;
	WRITE_ONCE(watch->on, true);
	p = kzalloc(100 + (get_random_u32() & 63), GFP_ATOMIC);
	OPTIMIZER_HIDE_VAR(p);
	WRITE_ONCE(watch->on, false);
	kfree(p);
	KUNIT_EXPECT_GE(test, watch->allocs, 1U);

	cache = kmem_cache_create("kdapl_cost_test", 200, 0, 0, NULL);
	KUNIT_ASSERT_NOT_NULL(test, cache);
	watch->allocs = 0;
	WRITE_ONCE(watch->on, true);
	p = kmem_cache_alloc(cache, GFP_KERNEL);
	WRITE_ONCE(watch->on, false);
	if (p)
		kmem_cache_free(cache, p);
	kmem_cache_destroy(cache);
	KUNIT_EXPECT_GE(test, watch->allocs, 1U);

	watch->allocs = 0;
	WRITE_ONCE(watch->on, true);
	p = (void *)__get_free_page(GFP_KERNEL);
	WRITE_ONCE(watch->on, false);
	free_page((unsigned long)p);
	KUNIT_EXPECT_GE(test, watch->allocs, 1U);

	WRITE_ONCE(watch->on, true);
	usleep_range(100, 200);
	WRITE_ONCE(watch->on, false);
	KUNIT_EXPECT_GE(test, watch->sleeps, 1U);
}

static struct kd_env *cost_env(struct kunit *test, const struct fake_ib_caps *caps)
{
	struct kd_env *env = kd_open(test, caps);
	struct kdapl_ia *ia = kdapl_obj_get(env->ia, DAT_HANDLE_TYPE_IA);
	DAT_EP_ATTR attr;

	KUNIT_ASSERT_NOT_NULL(test, ia);
	kd_attr(&attr);
	attr.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	if (caps && caps->iwarp) {
		kdapl_quirks_derive(ia->dev, true);
		attr.max_rdma_read_iov = 1;
	}
	kdapl_obj_put(&ia->obj);
	kd_ep(env, &attr);
	kd_connect(env);
	return env;
}

/* Segments so that some are empty: bit i of @empty makes the i-th one so. */
static u32 cost_iov(struct kd_env *env, DAT_LMR_TRIPLET *iov, int num, int empty)
{
	u32 sum = 0;
	int i;

	for (i = 0; i < num; i++) {
		iov[i] = kd_seg(env, KD_RW, 100 * i, empty & BIT(i) ? 0 : 10 + i);
		sum += iov[i].segment_length;
	}
	return sum;
}

/* 0 to the largest number of segments, every choice of empty ones, every flag. */
static void cost_connected_test(struct kunit *test)
{
	struct kd_env *env = cost_env(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 0, COST_KEY);
	DAT_LMR_TRIPLET iov[FAKE_IB_MAX_SGE];
	int num, empty, flags, posts = 0;
	enum kd_call call;
	struct cost cost;
	char what[64];

	for (call = 0; call < KD_NR_CALLS; call++) {
		for (num = 0; num <= cost_max_iov(call); num++) {
			for (empty = 0; empty < BIT(num); empty++) {
				remote.segment_length = cost_iov(env, iov, num, empty);
				for (flags = 0; flags < 16; flags++) {
					if (flags & ~cost_flags(call))
						continue;
					snprintf(what, sizeof(what), "%d segments, empty %#x, %#x",
						 num, empty, flags);
					cost = cost_post(env, env->ep, call, num, num ? iov : NULL,
							 &remote, flags);
					cost_expect_native(env, call, &cost, 1, what);
					/* nor does it look at completions while there is room */
					KUNIT_EXPECT_EQ(test, cost.polls, 0U);
					KD_EXPECT_EMPTY(test, kd_evd_of(env, call));
					cost_drain(env, call);
					posts++;
				}
			}
		}
	}
	kunit_info(test, "%d posts: 1 call of the device each, 0 allocations, 0 sleeps", posts);
}

/* A Read longer than its source is trimmed: that is no second call either. */
static void cost_trim_test(struct kunit *test)
{
	struct kd_env *env = cost_env(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 0, COST_KEY);
	DAT_LMR_TRIPLET iov[FAKE_IB_MAX_SGE];
	struct cost cost;
	u32 sum, len;

	sum = cost_iov(env, iov, 3, 0);
	for (len = 0; len <= sum; len++) {
		remote.segment_length = len;
		cost = cost_post(env, env->ep, KD_READ, 3, iov, &remote, 0);
		cost_expect_native(env, KD_READ, &cost, 1, "shorter source");
		cost_drain(env, KD_READ);
	}
}

/* A fenced Read is two work requests on iWARP and still one call. */
static void cost_fence_test(struct kunit *test)
{
	static const struct fake_ib_caps caps = { .iwarp = true };
	struct kd_env *env = cost_env(test, &caps);
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 0, COST_KEY);
	DAT_LMR_TRIPLET iov[FAKE_IB_MAX_SGE];
	enum kd_call call;
	struct cost cost;
	int flags, num;

	for (call = 0; call < KD_NR_CALLS; call++) {
		for (num = 0; num <= 1; num++) {
			remote.segment_length = cost_iov(env, iov, num, 0);
			for (flags = 0; flags < 16; flags++) {
				bool pair = call == KD_READ &&
					    (flags & DAT_COMPLETION_BARRIER_FENCE_FLAG);

				if (flags & ~cost_flags(call))
					continue;
				cost = cost_post(env, env->ep, call, num, iov, &remote, flags);
				cost_expect_native(env, call, &cost, pair ? 2 : 1, "iWARP");
				KUNIT_EXPECT_EQ(test, cost.polls, 0U);
				cost_drain(env, call);
			}
		}
	}
	kdapl_quirks_derive(env->kep->obj.ia->dev, false);
}

/* Flushed by the provider: the device is not asked. */
static void cost_disconnected_test(struct kunit *test)
{
	struct kd_env *env = cost_env(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 0, COST_KEY);
	DAT_LMR_TRIPLET iov[FAKE_IB_MAX_SGE];
	int num, empty, flags;
	enum kd_call call;
	struct cost cost;
	DAT_EVENT event;

	kd_end(env, DAT_CONNECTION_EVENT_DISCONNECTED);
	for (call = 0; call < KD_NR_CALLS; call++) {
		for (num = 0; num <= cost_max_iov(call); num++) {
			for (empty = 0; empty < BIT(num); empty += num < 3 ? 1 : 5) {
				remote.segment_length = cost_iov(env, iov, num, empty);
				for (flags = 0; flags < 16; flags++) {
					if (flags & ~cost_flags(call))
						continue;
					cost = cost_post(env, env->ep, call, num, num ? iov : NULL,
							 &remote, flags);
					cost_expect_none(env, call, &cost, DAT_SUCCESS,
							 "disconnected");
					/* suppressed or not: a flush is no success */
					KUNIT_ASSERT_TRUE(test, kd_next(kd_evd_of(env, call),
									&event));
					KUNIT_EXPECT_EQ(test, (int)event.event_data
							.dto_completion_event_data.status,
							(int)DAT_DTO_ERR_FLUSHED);
				}
			}
		}
		/* a full queue, which nobody empties */
		for (num = 0; num < COST_DEPTH; num++)
			cost_post(env, env->ep, call, 0, NULL, &remote, 0);
		while (kd_next(kd_evd_of(env, call), &event))
			;
	}
}

/* Everything that is refused, in both states. */
static void cost_refused_test(struct kunit *test)
{
	struct kd_env *env = cost_env(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 8, COST_KEY);
	DAT_LMR_TRIPLET good = kd_seg(env, KD_RW, 0, 8), bad;
	DAT_RMR_TRIPLET shorter = kd_remote(0x1000, 7, COST_KEY);
	DAT_RMR_TRIPLET longer = kd_remote(0x1000, 9, COST_KEY);
	int round, sub, arg;
	enum kd_call call;
	struct cost cost;

	for (round = 0; round < 2; round++) {
		for (call = 0; call < KD_NR_CALLS; call++) {
			bool sink = call == KD_RECV || call == KD_READ;

			arg = call == KD_SEND || call == KD_RECV ? DAT_INVALID_ARG5 :
								   DAT_INVALID_ARG6;
			cost = cost_post(env, NULL, call, 1, &good, &remote, 0);
			cost_expect_none(env, call, &cost,
					 DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP),
					 "no handle");
			cost = cost_post(env, env->pz, call, 1, &good, &remote, 0);
			cost_expect_none(env, call, &cost,
					 DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP),
					 "handle of another kind");
			cost = cost_post(env, env->ep, call, -1, &good, &remote, 0);
			cost_expect_none(env, call, &cost,
					 DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2),
					 "negative count");
			cost = cost_post(env, env->ep, call, 1, NULL, &remote, 0);
			cost_expect_none(env, call, &cost,
					 DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3),
					 "no list");
			cost = cost_post(env, env->ep, call, 1, &good, &remote, 0x10);
			cost_expect_none(env, call, &cost,
					 DAT_ERROR(DAT_INVALID_PARAMETER, arg), "flags");
			bad = good;
			bad.lmr_context ^= 0x100;
			sub = sink ? DAT_PRIVILEGES_WRITE : DAT_PRIVILEGES_READ;
			cost = cost_post(env, env->ep, call, 1, &bad, &remote, 0);
			cost_expect_none(env, call, &cost,
					 DAT_ERROR(DAT_PRIVILEGES_VIOLATION, sub), "key");
			bad = kd_seg(env, sink ? KD_RO : KD_WO, 0, 8);
			cost = cost_post(env, env->ep, call, 1, &bad, &remote, 0);
			cost_expect_none(env, call, &cost,
					 DAT_ERROR(DAT_PRIVILEGES_VIOLATION, sub), "right");
			bad = kd_seg(env, KD_FOREIGN, 0, 8);
			sub = sink ? DAT_PROTECTION_WRITE : DAT_PROTECTION_READ;
			cost = cost_post(env, env->ep, call, 1, &bad, &remote, 0);
			cost_expect_none(env, call, &cost,
					 DAT_ERROR(DAT_PROTECTION_VIOLATION, sub), "PZ");
			bad = kd_seg(env, KD_RW, KD_MEM_SIZE - 4, 8);
			cost = cost_post(env, env->ep, call, 1, &bad, &remote, 0);
			cost_expect_none(env, call, &cost,
					 DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3),
					 "range");
			if (call != KD_WRITE && call != KD_READ)
				continue;
			cost = cost_post(env, env->ep, call, 1, &good, NULL, 0);
			cost_expect_none(env, call, &cost,
					 DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5),
					 "no remote range");
			cost = cost_post(env, env->ep, call, 1, &good,
					 call == KD_READ ? &longer : &shorter, 0);
			cost_expect_none(env, call, &cost,
					 DAT_ERROR(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE), "length");
		}
		if (!round)
			kd_end(env, DAT_CONNECTION_EVENT_DISCONNECTED);
	}
}

/* A state without requests: refused without a look at anything else. */
static void cost_state_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 8, COST_KEY);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	enum kd_call call;
	struct cost cost;

	kd_ep(env, NULL);
	for (call = 0; call < KD_NR_CALLS; call++) {
		cost = cost_post(env, env->ep, call, 1, &iov, &remote, 0);
		if (kd_is_recv(call))
			cost_expect_native(env, call, &cost, 1, "unconnected");
		else
			cost_expect_none(env, call, &cost,
					 DAT_ERROR(DAT_INVALID_STATE,
						   DAT_INVALID_STATE_EP_UNCONNECTED),
					 "unconnected");
	}
}

/* A full queue is looked at once more, by one poll, and then refuses. */
static void cost_full_test(struct kunit *test)
{
	struct kd_env *env = cost_env(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 8, COST_KEY);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	enum kd_call call;
	struct cost cost;
	int i;

	for (call = 0; call < KD_NR_CALLS; call++) {
		for (i = 0; i < COST_DEPTH; i++) {
			cost = cost_post(env, env->ep, call, 1, &iov, &remote, 0);
			cost_expect_native(env, call, &cost, 1, "room");
		}
		for (i = 0; i < 3; i++) {
			cost = cost_post(env, env->ep, call, 1, &iov, &remote, 0);
			cost_expect_none(env, call, &cost,
					 DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP),
					 "full");
			KUNIT_EXPECT_LE(test, cost.polls, 1U);
		}
		/* room again, which the post finds out by itself */
		fake_ib_complete(env->qp, kd_is_recv(call), IB_WC_SUCCESS);
		cost = cost_post(env, env->ep, call, 1, &iov, &remote, 0);
		cost_expect_native(env, call, &cost, 1, "room again");
		KUNIT_EXPECT_GE(test, cost.polls, 1U);
		KUNIT_EXPECT_LE(test, cost.polls, 2U);
		cost_drain(env, call);
	}
}

/* The device says no: one call, success, and the work goes on elsewhere. */
static void cost_device_refuses_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 8, COST_KEY);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	enum kd_call call;
	struct cost cost;
	DAT_EVENT event;
	int i;

	for (call = 0; call < KD_NR_CALLS; call++) {
		kd_ep(env, NULL);
		kd_connect(env);
		fake_ib_fail(env->dev, kd_is_recv(call) ? FAKE_IB_POST_RECV : FAKE_IB_POST_SEND,
			     1, -ENOTCONN);
		cost = cost_post(env, env->ep, call, 1, &iov, &remote, 0);
		KD_EXPECT_OK(test, cost.ret);
		KUNIT_EXPECT_EQ(test, cost.send + cost.recv, 1U);
		KUNIT_EXPECT_EQ(test, cost.wrs, 0U);
		for (i = 0; i < 5000 && !kd_next(kd_evd_of(env, call), &event); i++)
			kd_pause();
		KUNIT_ASSERT_LT(test, i, 5000);
		KUNIT_EXPECT_EQ(test, (int)event.event_data.dto_completion_event_data.status,
				(int)DAT_DTO_ERR_FLUSHED);
		kd_ep_free(env);
		while (kd_next(env->conn, &event))
			;
	}
}

/* The same for buffers of an SRQ: one call, or none where it is refused. */
static struct cost cost_srq_post(struct kd_env *env, DAT_SRQ_HANDLE srq, int num,
				 DAT_LMR_TRIPLET *iov)
{
	DAT_DTO_COOKIE cookie = { .as_64 = 0x1234 };
	DAT_LMR_TRIPLET before[FAKE_IB_MAX_SGE];
	size_t size = clamp(num, 0, FAKE_IB_MAX_SGE) * sizeof(*iov);
	unsigned long irq;
	struct cost cost;

	if (iov)
		memcpy(before, iov, size);
	cost_begin(env, &cost);
	local_irq_save(irq);
	WRITE_ONCE(cost_watch.on, true);
	cost.ret = dat_srq_post_recv(srq, num, iov, cookie);
	WRITE_ONCE(cost_watch.on, false);
	local_irq_restore(irq);
	cost_end(env, &cost);
	KUNIT_EXPECT_EQ(env->test, cost.allocs, 0U);
	KUNIT_EXPECT_EQ(env->test, cost.sleeps, 0U);
	KUNIT_EXPECT_EQ(env->test, cost.polls, 0U);
	if (iov)
		KUNIT_EXPECT_EQ(env->test, memcmp(before, iov, size), 0);
	return cost;
}

static void cost_srq_expect(struct kd_env *env, const struct cost *cost, DAT_RETURN ret,
			    unsigned int calls, const char *what)
{
	KUNIT_EXPECT_EQ_MSG(env->test, (u32)cost->ret, (u32)ret, "%s", what);
	KUNIT_EXPECT_EQ_MSG(env->test, cost->verbs, calls, "%s", what);
	KUNIT_EXPECT_EQ_MSG(env->test, cost->srq, calls, "%s", what);
}

static void cost_srq_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 64, .max_recv_iov = 4 };
	DAT_LMR_TRIPLET iov[FAKE_IB_MAX_SGE], bad;
	int num, empty, posts = 0, round;
	DAT_SRQ_HANDLE srq;
	struct ib_srq *ib;
	struct cost cost;
	DAT_EP_ATTR ep;

	KD_ASSERT_OK(test, dat_srq_create(env->ia, env->pz, &attr, &srq));
	ib = fake_ib_newest_srq(env->dev);
	kd_attr(&ep);
	KD_ASSERT_OK(test, dat_ep_create_with_srq(env->ia, env->pz, env->recv, env->req, env->conn,
						  srq, &ep, &env->ep));
	env->kep = kdapl_obj_get(env->ep, DAT_HANDLE_TYPE_EP);
	KUNIT_ASSERT_NOT_NULL(test, env->kep);
	env->qp = fake_ib_newest_qp(env->dev);
	/* with the SRQ's EPs unconnected, connected, disconnected */
	for (round = 0; round < 3; round++) {
		for (num = 0; num <= 4; num++) {
			for (empty = 0; empty < BIT(num); empty += round ? 5 : 1) {
				cost_iov(env, iov, num, empty);
				cost = cost_srq_post(env, srq, num, num ? iov : NULL);
				cost_srq_expect(env, &cost, DAT_SUCCESS, 1, "room");
				posts++;
			}
		}
		KUNIT_EXPECT_EQ(test, fake_ib_srq_posted(ib), (unsigned int)posts);
		cost_iov(env, iov, 1, 0);
		cost = cost_srq_post(env, NULL, 1, iov);
		cost_srq_expect(env, &cost, DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ),
				0, "no handle");
		cost = cost_srq_post(env, srq, 5, iov);
		cost_srq_expect(env, &cost, DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2), 0,
				"count");
		cost = cost_srq_post(env, srq, 1, NULL);
		cost_srq_expect(env, &cost, DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3), 0,
				"no list");
		bad = kd_seg(env, KD_RO, 0, 8);
		cost = cost_srq_post(env, srq, 1, &bad);
		cost_srq_expect(env, &cost, DAT_ERROR(DAT_PRIVILEGES_VIOLATION,
						      DAT_PRIVILEGES_WRITE), 0, "right");
		bad = kd_seg(env, KD_FOREIGN, 0, 8);
		cost = cost_srq_post(env, srq, 1, &bad);
		cost_srq_expect(env, &cost, DAT_ERROR(DAT_PROTECTION_VIOLATION,
						      DAT_PROTECTION_WRITE), 0, "PZ");
		bad = kd_seg(env, KD_RW, KD_MEM_SIZE - 4, 8);
		cost = cost_srq_post(env, srq, 1, &bad);
		cost_srq_expect(env, &cost, DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3), 0,
				"range");
		fake_ib_fail(env->dev, FAKE_IB_POST_SRQ_RECV, 1, -ENOMEM);
		cost = cost_srq_post(env, srq, 1, iov);
		cost_srq_expect(env, &cost, DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
						      DAT_RESOURCE_SRQ), 1, "the device says no");
		if (!round) {
			kd_connect(env);
		} else if (round == 1) {
			kd_end(env, DAT_CONNECTION_EVENT_DISCONNECTED);
			env->qp = NULL;		/* it has gone with the connection */
		}
	}
	kunit_info(test, "%d posts: 1 call of the device each, 0 allocations, 0 sleeps", posts);
	while (posts++ < 64)
		KD_EXPECT_OK(test, dat_srq_post_recv(srq, 1, iov, (DAT_DTO_COOKIE) {}));
	for (num = 0; num < 3; num++) {
		cost = cost_srq_post(env, srq, 1, iov);
		cost_srq_expect(env, &cost, DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
						      DAT_RESOURCE_SRQ), 0, "full");
	}
	/* in error nothing reaches the device */
	KD_EXPECT_OK(test, dat_ep_free(env->ep));
	kdapl_obj_put(&env->kep->obj);
	env->kep = NULL;
	env->ep = NULL;
	KD_EXPECT_OK(test, dat_srq_free(srq));
	KD_ASSERT_OK(test, dat_srq_create(env->ia, env->pz, &attr, &srq));
	fake_ib_srq_event(fake_ib_newest_srq(env->dev), IB_EVENT_SRQ_ERR);
	kd_ep(env, NULL);
	cost = cost_srq_post(env, srq, 1, iov);
	cost_srq_expect(env, &cost, DAT_SUCCESS, 0, "SRQ in error");
	KD_EXPECT_OK(test, dat_srq_free(srq));
}

/* An upcall that would notice being called from inside a post. */
struct cost_upcall {
	struct task_struct *poster;
	int during;
	int n;
};

static void cost_upcall_fn(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct cost_upcall *up = data;

	if (READ_ONCE(up->poster) == current)
		up->during++;
	WRITE_ONCE(up->n, up->n + 1);
}

/* The device finishes inside the post: the consumer still hears of it later. */
static void cost_synchronous_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct cost_upcall *up = kunit_kzalloc(test, sizeof(*up), GFP_KERNEL);
	DAT_UPCALL_OBJECT object = { .instance_data = up, .upcall_func = cost_upcall_fn };
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 8, COST_KEY);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	DAT_EVD_FLAGS others;
	enum kd_call call;
	DAT_RETURN ret;
	int i, n, end;

	KUNIT_ASSERT_NOT_NULL(test, up);
	/* upcalls in softirq, then in a work item */
	for (others = 0; ; others = DAT_EVD_CONNECTION_FLAG) {
		KD_ASSERT_OK(test, dat_evd_free(env->req));
		KD_ASSERT_OK(test, dat_evd_free(env->recv));
		env->req = NULL;
		env->recv = NULL;
		KD_ASSERT_OK(test, dat_evd_kcreate(env->ia, 64, DAT_UPCALL_SINGLE_INSTANCE,
						   &object, DAT_EVD_DTO_FLAG | others,
						   &env->req));
		KD_ASSERT_OK(test, dat_evd_kcreate(env->ia, 64, DAT_UPCALL_SINGLE_INSTANCE,
						   &object, DAT_EVD_DTO_FLAG | others,
						   &env->recv));
		kd_ep(env, NULL);
		kd_connect(env);
		fake_ib_instant(env->dev, true);
		for (end = 0; end < 2; end++) {
			for (call = 0; call < KD_NR_CALLS; call++) {
				n = READ_ONCE(up->n);
				local_bh_disable();
				WRITE_ONCE(up->poster, current);
				ret = kd_post(env->ep, call, 1, &iov, 1, &remote, 0);
				WRITE_ONCE(up->poster, NULL);
				local_bh_enable();
				KD_EXPECT_OK(test, ret);
				for (i = 0; i < 5000 && READ_ONCE(up->n) == n; i++)
					kd_pause();
				KUNIT_EXPECT_EQ(test, READ_ONCE(up->n), n + 1);
				KUNIT_EXPECT_EQ(test, up->during, 0);
			}
			if (!end) {
				fake_ib_instant(env->dev, false);
				kd_end(env, DAT_CONNECTION_EVENT_DISCONNECTED);
			}
		}
		kd_ep_free(env);
		if (others)
			break;
	}
}

/* A consumer's function that does nothing. */
static void cost_no_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
}

static DAT_RETURN cost_software(struct kd_env *env, DAT_EVD_HANDLE evd, const DAT_EVENT *event,
				const char *what)
{
	unsigned long irq;
	struct cost cost;

	cost_begin(env, &cost);
	local_irq_save(irq);
	WRITE_ONCE(cost_watch.on, true);
	cost.ret = dat_evd_post_se(evd, event);
	WRITE_ONCE(cost_watch.on, false);
	local_irq_restore(irq);
	cost_end(env, &cost);
	KUNIT_EXPECT_EQ_MSG(env->test, cost.allocs, 0U, "%s", what);
	KUNIT_EXPECT_EQ_MSG(env->test, cost.sleeps, 0U, "%s", what);
	return cost.ret;
}

/* Software events are posted from anywhere, hard interrupts and spinlocks included. */
static void cost_software_test(struct kunit *test)
{
	static const struct {
		DAT_UPCALL_POLICY policy;
		enum kdat_evd_context context;
		const char *what;
	} rows[] = {
		{ DAT_UPCALL_DISABLE, KDAT_EVD_CONTEXT_WORKQUEUE, "disabled" },
		{ DAT_UPCALL_SINGLE_INSTANCE, KDAT_EVD_CONTEXT_SOFTIRQ, "softirq" },
		{ DAT_UPCALL_SINGLE_INSTANCE, KDAT_EVD_CONTEXT_WORKQUEUE, "workqueue" },
		{ DAT_UPCALL_NOTIFY, KDAT_EVD_CONTEXT_SOFTIRQ, "notify, softirq" },
		{ DAT_UPCALL_NOTIFY, KDAT_EVD_CONTEXT_WORKQUEUE, "notify, workqueue" },
		{ DAT_UPCALL_MANY, KDAT_EVD_CONTEXT_WORKQUEUE, "many" },
	};
	struct kd_env *env = kd_open(test, NULL);
	DAT_UPCALL_OBJECT object = { .upcall_func = cost_no_upcall };
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };
	DAT_EVD_HANDLE evd;
	int i, n, full;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct kdat_evd_attr attr = KDAT_EVD_ATTR_INIT;

		attr.context = rows[i].context;
		KD_ASSERT_OK(test, kdat_evd_create(env->ia, 8, rows[i].policy, &object,
						   DAT_EVD_SOFTWARE_FLAG, &attr, &evd));
		/* more than fit, if nobody takes them */
		for (full = 0, n = 0; n < 20; n++) {
			DAT_RETURN ret = cost_software(env, evd, &event, rows[i].what);

			if (ret == DAT_SUCCESS)
				continue;
			full++;
			KD_EXPECT_RET(test, ret, DAT_QUEUE_FULL, DAT_NO_SUBTYPE);
		}
		if (rows[i].policy == DAT_UPCALL_DISABLE)
			KUNIT_EXPECT_EQ(test, full, 12);
		KD_EXPECT_RET(test, cost_software(env, evd, NULL, "refused"),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		KD_EXPECT_RET(test, cost_software(env, env->req, &event, "refused"),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
		KD_EXPECT_OK(test, dat_evd_free(evd));
		KD_EXPECT_RET(test, cost_software(env, evd, &event, "stale"),
			      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	}
}

/* The provider never looks into the memory a post names, before or after. */
static void cost_memory_test(struct kunit *test)
{
	struct kd_env *env = cost_env(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, KD_MEM_SIZE, COST_KEY);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, KD_MEM_SIZE);
	u8 *before = kunit_kmalloc(test, KD_NR_MEMS * KD_MEM_SIZE, GFP_KERNEL);
	enum kd_call call;
	DAT_EVENT event;
	int fail;

	KUNIT_ASSERT_NOT_NULL(test, before);
	get_random_bytes(env->buf, KD_NR_MEMS * KD_MEM_SIZE);
	memcpy(before, env->buf, KD_NR_MEMS * KD_MEM_SIZE);
	for (fail = 0; fail < 2; fail++) {
		for (call = 0; call < KD_NR_CALLS; call++) {
			DAT_LMR_TRIPLET list = iov;
			DAT_RMR_TRIPLET range = remote;

			KD_EXPECT_OK(test, kd_post(env->ep, call, 1, &list, 1, &range, 0));
			/* list and range are ours again */
			memset(&list, 0xff, sizeof(list));
			memset(&range, 0xff, sizeof(range));
			KUNIT_EXPECT_EQ(test, memcmp(before, env->buf,
						     KD_NR_MEMS * KD_MEM_SIZE), 0);
			if (fail)
				continue;
			fake_ib_complete_all(env->qp, kd_is_recv(call), IB_WC_SUCCESS);
			KUNIT_ASSERT_TRUE(test, kd_next(kd_evd_of(env, call), &event));
		}
	}
	/* and in failures nothing is put there either */
	kd_end(env, DAT_CONNECTION_EVENT_BROKEN);
	while (kd_next(env->req, &event) || kd_next(env->recv, &event))
		KUNIT_EXPECT_NE(test, (int)event.event_data.dto_completion_event_data.status,
				(int)DAT_DTO_SUCCESS);
	KUNIT_EXPECT_EQ(test, memcmp(before, env->buf, KD_NR_MEMS * KD_MEM_SIZE), 0);
}

/* Any call between two others, with interrupts off and watched. */
static struct {
	struct kd_env *env;
	unsigned long irq;
	struct cost cost;
} cost_around;

static DAT_RETURN cost_enter(void)
{
	cost_begin(cost_around.env, &cost_around.cost);
	local_irq_save(cost_around.irq);
	WRITE_ONCE(cost_watch.on, true);
	return DAT_SUCCESS;
}

/* What it costs: verbs, requests. All of it is done afterwards. */
static void cost_leave(DAT_RETURN ret, unsigned int verbs, unsigned int wrs)
{
	struct kd_env *env = cost_around.env;
	struct cost *cost = &cost_around.cost;
	DAT_EVENT event;

	WRITE_ONCE(cost_watch.on, false);
	local_irq_restore(cost_around.irq);
	cost_end(env, cost);
	KD_EXPECT_OK(env->test, ret);
	KUNIT_EXPECT_EQ(env->test, cost->allocs, 0U);
	KUNIT_EXPECT_EQ(env->test, cost->sleeps, 0U);
	KUNIT_EXPECT_EQ(env->test, cost->verbs, verbs);
	KUNIT_EXPECT_EQ(env->test, cost->send, wrs ? 1U : 0U);
	KUNIT_EXPECT_EQ(env->test, cost->wrs, wrs);
	fake_ib_complete_all(env->qp, false, IB_WC_SUCCESS);
	while (kd_next(env->req, &event))
		;
}

#define COST_EXPECT(call, verbs, wrs)	cost_leave(cost_enter() ?: (call), verbs, wrs)

/* Memory operations: one mapping where something is mapped, one post. */
static void cost_register_test(struct kunit *test)
{
	struct kd_env *env = kd_connected(test, NULL);
	struct page *page = alloc_pages(GFP_KERNEL, 3);
	DAT_LMR_TRIPLET part = kd_seg(env, KD_RW, 8, 64), none = {};
	DAT_MEM_PRIV_FLAGS all = DAT_MEM_PRIV_ALL_FLAG;
	DAT_PADDR pages[8];
	DAT_REGION_DESCRIPTION region = { .for_physical = pages };
	DAT_LMR_HANDLE lmr, fixed = env->mem[KD_RW].lmr;
	DAT_RMR_COOKIE cookie = {};
	DAT_LMR_PARAM lmr_param;
	DAT_RMR_PARAM rmr_param;
	struct scatterlist sgl;
	struct kdat_sg sg = { .sgl = &sgl, .nents = 1, .length = 100 };
	struct kdat_request list[3] = {
		{ .op = KDAT_REQUEST_LMR_FMR, .sg = &sg, .mem_privileges = all },
		{ .op = KDAT_REQUEST_SEND, .num_segments = 1, .local_iov = &part },
		{ .op = KDAT_REQUEST_LMR_INVALIDATE },
	};
	DAT_RMR_CONTEXT rkey;
	DAT_LMR_CONTEXT key;
	DAT_RMR_HANDLE rmr;
	DAT_VADDR addr;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, page);
	for (i = 0; i < 8; i++)
		pages[i] = page_to_phys(page + 7 - i);
	sg_init_table(&sgl, 1);
	sg_set_page(&sgl, page, 200, 50);
	KD_ASSERT_OK(test, dat_lmr_allocate(env->ia, env->pz, 8, DAT_LMR_SCOPE_PZ, &lmr));
	KD_ASSERT_OK(test, dat_rmr_create(env->pz, &rmr));
	list[0].lmr_handle = lmr;
	list[2].lmr_handle = lmr;
	cost_around.env = env;
	for (i = 1; i <= 8; i++) {
		COST_EXPECT(dat_lmr_fmr(lmr, DAT_MEM_TYPE_PHYSICAL, region, i, all, DAT_VA_TYPE_VA,
					env->ep, cookie, 0, &key, &rkey), 2, 1);
		COST_EXPECT(dat_lmr_invalidate(lmr, env->ep, cookie, 0), 1, 1);
		COST_EXPECT(kdat_lmr_fmr_sg(lmr, &sg, all, DAT_VA_TYPE_VA, env->ep, cookie, 0,
					    &key, &rkey, &addr), 2, 1);
		COST_EXPECT(kdat_lmr_next_contexts(lmr, &key, &rkey), 0, 0);
		COST_EXPECT(dat_lmr_query(lmr, DAT_LMR_FIELD_ALL, &lmr_param), 0, 0);
		COST_EXPECT(dat_lmr_invalidate(lmr, env->ep, cookie, 0x20), 1, 1);
		COST_EXPECT(dat_rmr_bind(rmr, fixed, &part, all, DAT_VA_TYPE_VA, env->ep,
					 cookie, 0, &rkey), 2, 1);
		COST_EXPECT(dat_rmr_bind(rmr, fixed, &part, all, DAT_VA_TYPE_VA, env->ep,
					 cookie, 0, &rkey), 2, 2);
		COST_EXPECT(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &rmr_param), 0, 0);
		COST_EXPECT(dat_rmr_bind(rmr, DAT_HANDLE_NULL, &none, all, DAT_VA_TYPE_VA,
					 env->ep, cookie, 0, &rkey), 1, 1);
		COST_EXPECT(dat_rmr_bind(rmr, DAT_HANDLE_NULL, &none, all, DAT_VA_TYPE_VA,
					 env->ep, cookie, 0, &rkey), 1, 1);
		COST_EXPECT(kdat_ep_post_list(env->ep, list, 3, NULL), 2, 3);
		COST_EXPECT(dat_lmr_sync_rdma_read(env->ia, &part, 1), 0, 0);
		COST_EXPECT(dat_lmr_sync_rdma_write(env->ia, &part, 1), 0, 0);
	}
	KD_EXPECT_OK(test, dat_rmr_free(rmr));
	KD_EXPECT_OK(test, dat_lmr_free(lmr));
	__free_pages(page, 3);
}

static struct kunit_case cost_cases[] = {
	KD_CASE(cost_sanity_test, "CTX-01: allocations and sleeps are seen"),
	KD_CASE(cost_connected_test,
		"EP-POST-01..02,CTX-01,SEND-13..15,RECV-08..09,RDMAW-07..08,RDMAR-08..09: 1 call"),
	KD_CASE(cost_trim_test, "RDMAR-03,RDMAR-08,RDMAR-09: one call for a trimmed Read"),
	KD_CASE(cost_fence_test, "EP-POST-02,RDMAR-09,FLAG-09: one call for a fenced Read"),
	KD_CASE(cost_disconnected_test,
		"EP-POST-02,EP-POST-11,CTX-01,SEND-18,RECV-15: no call in DISCONNECTED"),
	KD_CASE(cost_refused_test, "EP-POST-02,GEN-07,CTX-01: no call for what is refused"),
	KD_CASE(cost_state_test, "EP-POST-02,EP-POST-10,CTX-01: no call in the wrong state"),
	KD_CASE(cost_full_test, "EP-POST-02,EP-POST-17,CTX-01: one poll when full"),
	KD_CASE(cost_device_refuses_test, "EP-POST-02,EP-POST-06,CTX-01: the device says no"),
	KD_CASE(cost_srq_test,
		"SRQ-POST-10,SRQ-POST-11,SRQ-POST-15,EP-POST-02,CTX-01: buffers of an SRQ"),
	KD_CASE(cost_synchronous_test, "EP-POST-06,CTX-02: completions inside the post come later"),
	KD_CASE(cost_software_test, "EVD-SE-03,CTX-03: software events, from hard interrupts"),
	KD_CASE(cost_register_test,
		"CTX-01,EP-POST-02,FMR-02,FMR-10,RMR-02: memory operations map, post, no more"),
	KD_CASE(cost_memory_test,
		"EP-POST-04..05,SEND-13,RECV-08,RECV-11,RDMAW-07,RDMAR-08: lists and memory"),
	{}
};

static struct kunit_suite cost_suite = {
	.name = "kdapl-cost",
	.suite_init = kd_suite_init,
	.suite_exit = kd_suite_exit,
	.init = cost_init,
	.exit = cost_exit,
	.test_cases = cost_cases,
};

kunit_test_suite(cost_suite);
