// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * kdstorm - a million events, each of them seen exactly once and in order.
 *
 * A consumer module for kernels with and without KUnit: whoever loads it waits
 * while events rain from all CPUs, and the load fails if anything was wrong. What
 * was checked, how often, and how it went, is in the kernel log.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpumask.h>
#include <linux/module.h>
#include <linux/random.h>

#include "kdstorm.h"

#define FAULTS	20	/* that are described, of each kind */

static char *ia_a, *ia_b;
static uint events = 1000000, dto = 25, limit = 1200;
static ulong seed;

module_param(ia_a, charp, 0444);
MODULE_PARM_DESC(ia_a, "interface adapter, e.g. rxe0-1 (required)");
module_param(ia_b, charp, 0444);
MODULE_PARM_DESC(ia_b, "interface adapter it can reach (default: the same)");
module_param(events, uint, 0444);
MODULE_PARM_DESC(events, "events in all, at least (default 1000000)");
module_param(dto, uint, 0444);
MODULE_PARM_DESC(dto, "so many of 100 events come from data transfers (default 25)");
module_param(limit, uint, 0444);
MODULE_PARM_DESC(limit, "seconds it may take (default 1200)");
module_param(seed, ulong, 0444);
MODULE_PARM_DESC(seed, "of what is done at random (default: a new one, see the log)");

TEST_STATE;

struct test_ia storm_a, storm_b;
int storm_cpus;
u64 storm_total;

static atomic64_t checked[STORM_CHECKS];
static atomic_t faults[STORM_CHECKS];
static unsigned long start;

static const char *const names[STORM_CHECKS] = {
	[STORM_ONCE] = "once", [STORM_WAKE] = "wake", [STORM_ORDER] = "order",
	[STORM_SINGLE] = "single", [STORM_TEARDOWN] = "teardown", [STORM_MORE] = "more",
	[STORM_NOTIFY] = "notify", [STORM_CONTEXT] = "context", [STORM_FULL] = "full",
	[STORM_REFUSED] = "refused", [STORM_DATA] = "data",
	[STORM_FREE] = "free",
};

void storm_checked(enum storm_check check, u64 times)
{
	atomic64_add(times, &checked[check]);
}

void storm_fault(enum storm_check check, const char *fmt, ...)
{
	struct va_format vaf = { .fmt = fmt };
	va_list args;

	if (atomic_inc_return(&faults[check]) > FAULTS)
		return;
	va_start(args, fmt);
	vaf.va = &args;
	pr_err("FAULT %s: %pV\n", names[check], &vaf);
	va_end(args);
}

bool storm_failed(void)
{
	int i;

	for (i = 0; i < STORM_CHECKS; i++) {
		if (atomic_read(&faults[i]))
			return true;
	}
	return false;
}

bool storm_overtime(void)
{
	return time_after(jiffies, start + limit * HZ);
}

int storm_cpu(int n)
{
	int cpu;

	n %= num_online_cpus();
	for_each_online_cpu(cpu) {
		if (!n--)
			return cpu;
	}
	return 0;
}

/* A sequence of its own for each thread, the same one for the same seed. */
void storm_rnd_init(struct rnd_state *rnd)
{
	static u64 n;

	prandom_seed_state(rnd, seed + n++ * 0x9e3779b97f4a7c15ULL);
}

static int thread_main(void *arg)
{
	struct storm_thread *t = arg;

	t->fn(t);
	complete_all(&t->done);
	wait_event_idle(test_wait, kthread_should_stop());
	return 0;
}

int storm_thread_start(struct storm_thread *t, const char *name, void (*fn)(struct storm_thread *),
		       void *arg, int index, int cpu)
{
	struct task_struct *task;

	init_completion(&t->done);
	t->fn = fn;
	t->arg = arg;
	t->index = index;
	storm_rnd_init(&t->rnd);
	task = kthread_create(thread_main, t, "storm-%s/%d", name, index);
	if (IS_ERR(task))
		return PTR_ERR(task);
	if (cpu >= 0)
		kthread_bind(task, cpu);
	t->task = task;
	wake_up_process(task);
	return 0;
}

void storm_thread_stop(struct storm_thread *t)
{
	if (t->task)
		kthread_stop(t->task);
	t->task = NULL;
}

/* ---- the whole ---- */

static void report(void)
{
	int i;

	for (i = 0; i < STORM_CHECKS; i++) {
		if (atomic_read(&faults[i]))
			pr_err("check %s FAIL %d\n", names[i], atomic_read(&faults[i]));
		else if (atomic64_read(&checked[i]))
			pr_info("check %s ok %lld\n", names[i], atomic64_read(&checked[i]));
	}
	pr_info("%s seed=%lu events=%llu cpus=%d seconds=%u\n", storm_failed() ? "FAIL" : "PASS",
		seed, storm_total, storm_cpus, jiffies_to_msecs(jiffies - start) / 1000);
}

static int __init kdstorm_init(void)
{
	u32 share = events / 100 * min(dto, 100U);
	int err;

	if (!ia_a) {
		pr_err("ia_a= is missing\n");
		return -EINVAL;
	}
	if (!seed)
		seed = get_random_u32();
	start = jiffies;
	storm_cpus = min_t(int, num_online_cpus(), STORM_CPUS);
	pr_info("seed=%lu cpus=%d events=%u dto=%u\n", seed, storm_cpus, events, dto);
	err = test_ia_open(&storm_a, ia_a) ?: test_ia_open(&storm_b, ia_b ?: ia_a) ?:
	      storm_freed() ?: storm_soft(events - share) ?: storm_dto(share);
	if (storm_overtime())
		storm_fault(STORM_WAKE, "not done after %u seconds", limit);
	else if (!err && storm_total < events && !storm_failed())
		storm_fault(STORM_ONCE, "%llu events only", storm_total);
	test_ia_quiet(&storm_a);
	test_ia_quiet(&storm_b);
	test_ia_close(&storm_b);
	test_ia_close(&storm_a);
	report();
	return storm_failed() ? -EIO : err;
}

static void __exit kdstorm_exit(void)
{
}

module_init(kdstorm_init);
module_exit(kdstorm_exit);
MODULE_DESCRIPTION("kDAPL test: events from all CPUs, seen once and in order");
MODULE_AUTHOR("The kDAPL for Linux authors");
MODULE_LICENSE("Dual BSD/GPL");
