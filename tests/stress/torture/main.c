// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * kdapl_torture - random calls on random objects from all CPUs, and a model that knows what
 * each may return.
 *
 * Loading starts the threads; kdapl_torture/report in debugfs says how far they are and, in
 * the end, what came of it; unloading stops them.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpumask.h>
#include <linux/debugfs.h>
#include <linux/hash.h>
#include <linux/irqflags.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/random.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "kdtorture.h"

#define BAD_TOLD	20	/* violations that are described */

static char *ia_a, *ia_b;
static ulong seed;
static uint seconds = 10;
static uint threads;
static bool removable;

module_param(ia_a, charp, 0444);
MODULE_PARM_DESC(ia_a, "interface adapter, e.g. rxe0-1 (required)");
module_param(ia_b, charp, 0444);
MODULE_PARM_DESC(ia_b, "another one (default: none)");
module_param(removable, bool, 0444);
MODULE_PARM_DESC(removable, "the device of ia_a comes and goes meanwhile");
module_param(seed, ulong, 0444);
MODULE_PARM_DESC(seed, "of what is done at random (default: a new one, see the log)");
module_param(seconds, uint, 0444);
MODULE_PARM_DESC(seconds, "how long (default 10)");
module_param(threads, uint, 0444);
MODULE_PARM_DESC(threads, "how many threads (default: three per CPU)");

TEST_STATE;

struct tor_ia tor_ias[2];
unsigned int tor_nias;

#define CALL(name, outcomes)	{ #name, OK | (outcomes) },

static const struct {
	const char *name;
	u32 outcomes;
} tor_calls[] = {
#include "../../../kdapl/tests/all_calls.h"
};

static const char * const note_names[TOR_NOTES] = {
	[N_UP] = "connections", [N_END] = "ends", [N_MOVED] = "transfers",
	[N_FLUSHED] = "flushed", [N_EVENTS] = "events", [N_DEAD] = "devices lost",
	[N_WORLDS] = "worlds", [N_UNFIT] = "worlds without an adapter",
};

struct tor_counts {
	u64 made[TOR_CALLS], good[TOR_CALLS];
	u64 note[TOR_NOTES];
};

static struct tor_counts __percpu *counts;
static struct tor *tors;
static atomic_t bad, running;
static unsigned long deadline;
static bool stopping;
static struct dentry *dir;

/* ---- what was seen ---- */

void tor_bad(const struct tor *t, const char *fmt, ...)
{
	struct va_format vaf = { .fmt = fmt };
	va_list args;

	if (atomic_inc_return(&bad) > BAD_TOLD)
		return;
	va_start(args, fmt);
	vaf.va = &args;
	pr_err("FAULT: thread %u round %u step %u: %pV\n", t->id, t->round, t->step, &vaf);
	va_end(args);
}

u32 tor_documented(enum tor_call call)
{
	return tor_calls[call].outcomes;
}

/* Count a return, and look whether it is one of those that are allowed. True for success. */
bool tor_ret(struct tor *t, enum tor_call call, DAT_RETURN ret, u32 allowed)
{
	u32 bit = OUTCOME(DAT_GET_TYPE(ret));

	this_cpu_inc(counts->made[call]);
	if (ret == DAT_SUCCESS)
		this_cpu_inc(counts->good[call]);
	if (!(bit & allowed))
		tor_bad(t, "%s: %s %s, which is not among 0x%x", tor_calls[call].name,
			major_name(ret), minor_name(ret), allowed);
	else if (!(bit & tor_calls[call].outcomes))
		tor_bad(t, "%s: %s %s, which is not documented", tor_calls[call].name,
			major_name(ret), minor_name(ret));
	if (t->task && irqs_disabled() && !t->calm) {
		tor_bad(t, "%s: %s %s, and interrupts are off", tor_calls[call].name,
			major_name(ret), minor_name(ret));
		local_irq_enable();
	}
	return ret == DAT_SUCCESS;
}

void tor_note(u32 which)
{
	this_cpu_inc(counts->note[which]);
}

/* ---- threads ---- */

u32 tor_below(struct tor *t, u32 below)
{
	return prandom_u32_state(&t->rnd) % below;
}

/* hash_64() makes no more than 32 bits where a long has no more. */
static u64 tor_mix(u64 value)
{
	value *= GOLDEN_RATIO_64;
	return value ^ value >> 32;
}

/* From here on nothing depends on how the steps before have ended. */
void tor_begin(struct tor *t, u32 step)
{
	u64 mix = seed;

	t->step = step;
	mix = tor_mix(mix + t->id + 1) + t->round;
	mix = tor_mix(mix) + step;
	prandom_seed_state(&t->rnd, tor_mix(mix));
}

void tor_died(struct tor *t, DAT_HANDLE h)
{
	t->stale[t->nstale++ % TOR_STALE] = h;
}

/* Never one that lives: each number is given out once, so only all of its bits make it. */
DAT_HANDLE tor_bad_handle(struct tor *t, DAT_HANDLE live)
{
	u32 r = prandom_u32_state(&t->rnd);

	if (r % 4 == 0)
		return NULL;
	if (r % 4 == 1 || !t->nstale)
		return (DAT_HANDLE)((unsigned long)live ^ BIT((r >> 3) % BITS_PER_LONG));
	return t->stale[(r >> 3) % min_t(u32, t->nstale, TOR_STALE)];
}

bool tor_stop(void)
{
	return READ_ONCE(stopping) || time_after(jiffies, deadline);
}

static int tor_main(void *arg)
{
	struct tor *t = arg;

	for (t->round = 1; !tor_stop(); t->round++) {
		tor_begin(t, 0);
		if (tor_one_in(t, 3))
			commons_round(t);
		else
			world_round(t);
		cond_resched();
	}
	atomic_dec(&running);
	while (!kthread_should_stop()) {
		set_current_state(TASK_IDLE);
		if (!kthread_should_stop())
			schedule();
		__set_current_state(TASK_RUNNING);
	}
	return 0;
}

/* ---- the report ---- */

/* Of a counter in struct tor_counts, all CPUs. */
static u64 sum_of(const u64 __percpu *counter)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += *per_cpu_ptr(counter, cpu);
	return sum;
}

static int report_show(struct seq_file *m, void *v)
{
	int i;

	seq_printf(m, "%s seed %lu threads %u violations %d\n",
		   atomic_read(&running) ? "running" : "done", seed, threads, atomic_read(&bad));
	for (i = 0; i < TOR_NOTES; i++)
		seq_printf(m, "%s %llu\n", note_names[i], sum_of(&counts->note[i]));
	for (i = 0; i < TOR_CALLS; i++)
		seq_printf(m, "%-34s %9llu of %9llu\n", tor_calls[i].name, sum_of(&counts->good[i]),
			   sum_of(&counts->made[i]));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(report);

static void stop_all(void)
{
	unsigned int i;

	WRITE_ONCE(stopping, true);
	for (i = 0; tors && i < threads; i++) {
		if (tors[i].task)
			kthread_stop(tors[i].task);
	}
	commons_close();
	kfree(tors);
	free_percpu(counts);
}

static int __init tor_init(void)
{
	struct task_struct *task;
	unsigned int i;
	int err = -ENOMEM;

	if (!ia_a) {
		pr_err("ia_a= is missing\n");
		return -EINVAL;
	}
	if (!seed)
		seed = get_random_u32();
	if (!threads)
		threads = 3 * num_online_cpus();
	tor_ias[tor_nias++] = (struct tor_ia) { ia_a, removable };
	if (ia_b)
		tor_ias[tor_nias++] = (struct tor_ia) { ia_b, false };
	deadline = jiffies + seconds * HZ;
	counts = alloc_percpu(struct tor_counts);
	tors = kcalloc(threads, sizeof(*tors), GFP_KERNEL);
	if (counts && tors)
		err = commons_open();
	if (err)
		goto stop;
	pr_info("seed=%lu threads=%u cpus=%u seconds=%u\n", seed, threads, num_online_cpus(),
		seconds);
	atomic_set(&running, threads);
	for (i = 0; i < threads; i++) {
		tors[i].id = i;
		task = kthread_run(tor_main, &tors[i], "kdapl_torture/%u", i);
		err = PTR_ERR_OR_ZERO(task);
		if (err)
			goto stop;
		tors[i].task = task;
	}
	dir = debugfs_create_dir("kdapl_torture", NULL);
	debugfs_create_file("report", 0400, dir, NULL, &report_fops);
	return 0;
stop:
	stop_all();
	return err;
}

static void __exit tor_exit(void)
{
	u64 calls = 0, good = 0;
	int i;

	debugfs_remove_recursive(dir);
	for (i = 0; i < TOR_CALLS; i++) {
		good += sum_of(&counts->good[i]);
		calls += sum_of(&counts->made[i]);
	}
	pr_info("calls=%llu success=%llu connections=%llu transfers=%llu lost=%llu\n",
		calls, good, sum_of(&counts->note[N_UP]), sum_of(&counts->note[N_MOVED]),
		sum_of(&counts->note[N_DEAD]));
	stop_all();
	pr_info("%s seed=%lu violations=%d\n", atomic_read(&bad) ? "FAIL" : "PASS", seed,
		atomic_read(&bad));
}

module_init(tor_init);
module_exit(tor_exit);
MODULE_DESCRIPTION("kDAPL test: random calls, checked against a model");
MODULE_AUTHOR("The kDAPL for Linux authors");
MODULE_LICENSE("Dual BSD/GPL");
