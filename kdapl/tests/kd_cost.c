// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * What a call costs.
 */
#include <linux/slab.h>
#include <linux/tracepoint.h>

#include "kd_cost.h"

/* What one task does while it is watched. */
static struct {
	struct task_struct *task;
	bool on;
	unsigned int allocs;
	unsigned int sleeps;
	unsigned int attached;		/* trace points found */
} cost_watch;

/* The arguments of the trace points differ by kernel and do not matter. */
static void cost_on_alloc(void *data)
{
	if (READ_ONCE(cost_watch.on) && current == cost_watch.task && in_task())
		cost_watch.allocs++;
}

/* Called by the task that gives up the CPU. */
static void cost_on_switch(void *data)
{
	if (READ_ONCE(cost_watch.on) && current == cost_watch.task)
		cost_watch.sleeps++;
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

/*
 * kd_init(), and trace points from here to kd_cost_exit(). They cost every allocation of the
 * kernel something: only while needed.
 */
int kd_cost_init(struct kunit *test)
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

/* The counterpart of kd_cost_init(). */
void kd_cost_exit(struct kunit *test)
{
	if (IS_ENABLED(CONFIG_TRACEPOINTS))
		for_each_kernel_tracepoint(cost_detach, &cost_watch);
	tracepoint_synchronize_unregister();
	kd_exit(test);
}

/* Begin or end to watch this task. Return: whether the kernel has trace points. */
bool kd_cost_watch(bool on, unsigned int *allocs, unsigned int *sleeps)
{
	if (on) {
		cost_watch.allocs = 0;
		cost_watch.sleeps = 0;
	}
	WRITE_ONCE(cost_watch.on, on);
	if (allocs)
		*allocs = cost_watch.allocs;
	if (sleeps)
		*sleeps = cost_watch.sleeps;
	return cost_watch.attached;
}

static void cost_count(struct kd_env *env, struct kd_cost *cost, int sign)
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

/* What is being counted, and where. */
static struct kd_env *cost_env;
static struct kd_cost *cost_now;

/* Turn interrupts off and begin to count. */
DAT_RETURN kd_cost_enter(struct kd_env *env, struct kd_cost *cost)
{
	memset(cost, 0, sizeof(*cost));
	cost_env = env;
	cost_now = cost;
	cost_count(env, cost, -1);
	local_irq_save(cost->irq);
	kd_cost_watch(true, NULL, NULL);
	return DAT_SUCCESS;
}

/* The counterpart of kd_cost_enter(). Allocations and sleeps fail the case. */
DAT_RETURN kd_cost_leave(DAT_RETURN ret)
{
	struct kd_cost *cost = cost_now;

	kd_cost_watch(false, &cost->allocs, &cost->sleeps);
	local_irq_restore(cost->irq);
	cost_count(cost_env, cost, 1);
	KUNIT_EXPECT_EQ(cost_env->test, cost->allocs, 0U);
	KUNIT_EXPECT_EQ(cost_env->test, cost->sleeps, 0U);
	return ret;
}
