// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * kdperf - the cost of kDAPL, compared with verbs alone.
 *
 * Both do the same job on one device in the same run, in alternating blocks. README.md
 * describes the parameters of a run, stats.c the evaluation of the samples. This file has
 * the common parts: orders, posters, and the clock.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/debugfs.h>
#include <linux/kthread.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/random.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "../../kdapl/version.h"
#include "kdperf.h"

#define MAX_SAMPLES	262144	/* of one kind, for one way, in a run */

char *perf_ia;
static ushort port = 4720;

module_param_named(ia, perf_ia, charp, 0444);
MODULE_PARM_DESC(ia, "interface adapter, connected to itself (required)");
module_param(port, ushort, 0444);
MODULE_PARM_DESC(port, "connection qualifier; verbs use the next one (default 4720)");

struct run run;
struct lane *lanes;
struct segment perf_seg[MAX_SEGS];
void *perf_mem[2];
DECLARE_WAIT_QUEUE_HEAD(perf_wait);

static DEFINE_MUTEX(perf_mutex);	/* one order at a time */
static atomic_t faults, arrived, awake;
static u32 runs;
static struct dentry *perf_dir;
static struct debugfs_blob_wrapper result_file, json_file;

static const char *const modes[] = { "post", "pingpong", "stream", "refuse", "conns", NULL };
static const char *const ops[] = { "send", "write", "read", "srq", NULL };
static const char *const ctxs[] = { "softirq", "workqueue", "poll", NULL };
static const char *const bads[] = { "garbage", "null", "stale", "type", "lkey", "range", "nothing",
				    NULL };
static const char *const unit_names[] = { "ns", "cycles", "insn", NULL };

/* The parameters of an order: one of some words (the first is the default), or a number. */
static const struct param {
	const char *name;
	u32 *value, deflt, min, max;
	const char *const *words;
} params[] = {
	{ "mode", &run.mode, .words = modes },
	{ "op", &run.op, .words = ops },
	{ "ctx", &run.ctx, .words = ctxs },
	{ "bad", &run.bad, .words = bads },
	{ "unit", &run.unit, .words = unit_names },
	{ "size", &run.size, U32_MAX, 0, 1 << 20 },	/* U32_MAX: depends on the mode */
	{ "segs", &run.segs, 1, 0, U32_MAX },		/* limited to the maximum of the device */
	{ "lmrs", &run.lmrs, 1, 1, 65536 },
	{ "random", &run.random, 0, 0, 1 },
	{ "eps", &run.eps, 1, 1, MAX_EPS },
	{ "batch", &run.batch, 0, 0, 65536 },
	{ "depth", &run.depth, 0, 0, 8192 },
	{ "signal", &run.signal, 1, 1, 64 },
	{ "posters", &run.posters, 1, 1, MAX_POSTERS },
	{ "shared", &run.shared, 0, 0, 1 },
	{ "serial", &run.serial, 0, 0, 1 },
	{ "bare", &run.bare, 0, 0, 1 },
	{ "churn", &run.churn, 0, 0, 1 },
	{ "irqs", &run.irqs, 1, 0, 1 },
	{ "evd", &run.evd, 0, 0, 1 << 20 },
	{ "ias", &run.ias, 1, 1, MAX_IAS },
	{ "window", &run.window, 16, 1, 1024 },
	{ "blocks", &run.blocks, 15, 3, MAX_BLOCKS },
	{ "groups", &run.groups, 64, 1, 65536 },
	{ "bound", &run.bound, 5, 1, 100 },
};

void params_print(struct text *text, bool json)
{
	const struct param *p;

	for (p = params; p < params + ARRAY_SIZE(params); p++) {
		if (p->words)
			say(text, json ? ",\"%s\":\"%s\"" : " %s=%s", p->name,
			    p->words[*p->value]);
		else
			say(text, json ? ",\"%s\":%u" : " %s=%u", p->name, *p->value);
	}
}

/* Set one "name=value" of an order. */
static int perf_param_set(const char *name, const char *value)
{
	const struct param *p;
	u32 i;

	for (p = params; p < params + ARRAY_SIZE(params); p++) {
		if (strcmp(p->name, name))
			continue;
		if (!p->words)
			return !strcmp(value, "max") ? (*p->value = p->max, 0) :
			       kstrtou32(value, 0, p->value) ?:
			       *p->value < p->min || *p->value > p->max ? -ERANGE : 0;
		for (i = 0; p->words[i]; i++) {
			if (!strcmp(p->words[i], value)) {
				*p->value = i;
				return 0;
			}
		}
	}
	return -EINVAL;
}

/* Nothing is posted in this mode. */
static int perf_conns_complete(void)
{
	if (run.op != OP_SEND || run.ctx != CTX_SOFTIRQ || run.segs < 1 || run.posters > 1 ||
	    run.ias > 1)
		return fail("mode=conns takes only eps, depth, segs, evd and window");
	if (run.size == U32_MAX)
		run.size = 64;
	run.depth = run.depth ?: 64;
	return 0;
}

/* Set missing parameters, and check that all of them are consistent. */
static int perf_run_complete(void)
{
	u32 all = run.eps * run.signal;

	/* Reading the clock takes a few ticks itself. */
	if (run.unit == UNIT_INSN && (perf_loop() < 2000 || perf_loop() > 2020))
		return fail("a loop of 2000 instructions takes %llu ticks of this clock",
			    perf_loop());
	if (run.mode == MODE_CONNS)
		return perf_conns_complete();
	if (run.size == U32_MAX)
		run.size = run.mode == MODE_STREAM ? 65536 : 64;
	if (run.mode != MODE_POST && (run.signal > 1 || run.eps > 1 || run.posters > 1))
		return fail("one EP, one poster, every operation signaled in this mode");
	if (!run.batch)
		run.batch = run.mode == MODE_STREAM ? 16 : 64;
	run.batch = roundup(run.batch, all);	/* the last one must have a completion */
	if (!run.depth)
		run.depth = max(2 * run.batch / run.eps, run.eps > 64 ? 4U : 16U);
	run.depth = roundup_pow_of_two(run.depth);
	if (run.depth < run.batch / run.eps)
		return fail("a batch does not fit into the queues");
	if (run.shared && run.eps > 1)
		return fail("posters share one EP");
	if (!is_power_of_2(run.eps) || !is_power_of_2(run.posters))
		return fail("EPs and posters are powers of two");
	if (run.posters + run.churn > num_online_cpus())
		return fail("there are %u CPUs", num_online_cpus());
	if (run.mode == MODE_REFUSE && (run.op != OP_SEND || run.segs < 1))
		return fail("mode=refuse needs op=send and at least one segment");
	if (run.churn && run.mode != MODE_POST)
		return fail("churn=1 needs mode=post");
	if (!run.irqs && (run.mode != MODE_POST || run.ctx != CTX_POLL))
		return fail("irqs=0 needs mode=post and ctx=poll");
	if (run.serial && run.shared)
		return fail("posts of posters that share an EP are not serialised");
	return 0;
}

/* The number of samples in a block. */
static u32 perf_run_samples(void)
{
	switch (run.mode) {
	case MODE_PINGPONG:	return run.groups * run.batch;
	case MODE_STREAM:
	case MODE_CONNS:	return 1;
	default:		return run.groups * run.posters;
	}
}

static void perf_make_segments(void)
{
	u32 i;

	if (!run.size)
		run.segs = 0;
	for (i = 0; i < run.segs; i++) {
		perf_seg[i].offset = i * (run.size / run.segs);
		perf_seg[i].length = run.size / run.segs;
	}
	if (run.segs)
		perf_seg[i - 1].length += run.size % run.segs;
}

void perf_shuffle(u32 *keys)
{
	u32 i;

	for (i = run.random ? run.lmrs : 0; i > 1; i--)
		swap(keys[i - 1], keys[get_random_u32() % i]);
}

int perf_fault(void)
{
	int n = atomic_inc_return(&faults);

	wake_up_all(&perf_wait);
	return n;
}

int perf_faults(void)
{
	return atomic_read(&faults);
}

/*
 * Ping-pong and stream: continue after a completion, in the upcall or done handler, as a
 * consumer would.
 */
static void perf_pingpong_next(struct side *side, bool recv)
{
	u32 all = run.groups * run.batch;
	struct lane *lane = side->lane;
	const struct way *way = lane->way;
	u64 now;

	if (perf_recvs() && !recv)
		return;		/* only the answer counts */
	if (side->index) {
		if (side->recvs == all || !way->recv(lane, 1, 1))
			way->post(lane, 1, 1);
		return;
	}
	now = perf_cycles();
	stats_add(lane->b, M_POST, lane->block, lane->started - 1, now - lane->start, 1);
	if (lane->started == all)
		return;
	lane->started++;
	if (perf_recvs() && way->recv(lane, 0, 1))
		return;
	lane->start = perf_cycles();
	way->post(lane, 0, 1);
}

/* Post messages until the window is full, Receives first. */
static void perf_stream_next(struct side *side, bool recv)
{
	struct lane *lane = side->lane;
	u32 all = run.groups * run.batch, done;

	spin_lock_bh(&lane->lock);
	done = READ_ONCE(lane->side[0].got);
	if (perf_recvs()) {
		done = min(done, READ_ONCE(lane->side[1].got));
		while (lane->side[1].recvs < min(all, lane->side[1].got + run.batch) &&
		       !perf_faults())
			lane->way->recv(lane, 1, 1);
	}
	while (lane->started < min(all, done + run.batch) && !perf_faults()) {
		lane->started++;
		lane->way->post(lane, 0, 1);
	}
	spin_unlock_bh(&lane->lock);
}

void perf_next(struct side *side, bool recv)
{
	if (run.mode == MODE_PINGPONG)
		perf_pingpong_next(side, recv);
	else if (run.mode == MODE_STREAM)
		perf_stream_next(side, recv);
}

/* What is timed is not to be interrupted by softirqs; with irqs=0, by nothing. */
static void perf_timed_begin(void)
{
	if (run.irqs)
		local_bh_disable();
	else
		local_irq_disable();
}

static void perf_timed_end(void)
{
	if (run.irqs)
		local_bh_enable();
	else
		local_irq_enable();
}

static bool perf_side_done(const struct side *side)
{
	return READ_ONCE(side->got) == READ_ONCE(side->want);
}

/* Wait for completions, on a slow machine as well: give up after LONG without any. */
static void perf_await_done(struct side *a, struct side *b)
{
	u32 got;

	do {
		got = READ_ONCE(a->got) + READ_ONCE(b->got);
		if (await(perf_side_done(a) && perf_side_done(b)))
			return;
	} while (!perf_faults() && got != READ_ONCE(a->got) + READ_ONCE(b->got));
}

/*
 * Wait for all completions of ends @from and @to. @spent: ticks of polls that found
 * completions, without the time in which the provider was at work.
 */
int perf_wait_done(struct lane *lane, u32 from, u32 to, u64 *spent)
{
	struct side *a = &lane->side[from], *b = &lane->side[to];
	unsigned long end = jiffies + LONG;
	u64 start;
	int n;

	if (run.ctx != CTX_POLL)
		perf_await_done(a, b);
	while (!(perf_side_done(a) && perf_side_done(b)) && !perf_faults()) {
		if (run.ctx != CTX_POLL || time_after(jiffies, end))
			return fault("%s: %u of %u and %u of %u completions", lane->way->name,
				     a->got, a->want, b->got, b->want);
		perf_timed_begin();
		start = perf_cycles();
		n = lane->way->poll(lane, from);
		if (from != to)
			n += lane->way->poll(lane, to);
		start = perf_cycles() - start;
		perf_timed_end();
		if (n) {
			*spent += start;
			end = jiffies + LONG;
		} else {
			schedule();	/* the provider may need this CPU */
		}
	}
	return perf_faults() ? -EIO : 0;
}

/* A barrier: no poster passes before all have arrived, then all start together. */
static void perf_lane_gate(struct lane *lane)
{
	int want = ++lane->gates * run.posters;

	if (run.posters == 1)
		return;
	atomic_inc(&arrived);
	wake_up_all(&perf_wait);
	/* Sleep: a provider may have work to do on this CPU, for another poster. */
	if (!await(atomic_read(&arrived) >= want))
		fault("not all posters arrived");
	atomic_inc(&awake);
	while (atomic_read(&awake) < want && !perf_faults())
		cpu_relax();
}

/* A batch: Receives, requests, completions; each between two readings of the clock. */
static int perf_lane_batch(struct lane *lane, u32 group)
{
	bool owner = !run.shared || !lane->n, recvs = perf_recvs() && lane->way->recv;
	u32 posts = run.batch * (run.shared ? run.posters : 1), events;
	u32 sample = group * run.posters + lane->n;
	u64 start, done, spent[2] = {};
	int err = 0;

	events = lane->way->recv ? posts / run.signal : 0;
	if (owner) {
		WRITE_ONCE(lane->side[0].want, lane->side[0].want + events);
		WRITE_ONCE(lane->side[1].want, lane->side[1].want + (recvs ? posts : 0));
	}
	if (owner && recvs) {
		perf_timed_begin();
		start = perf_cycles();
		err = lane->way->recv(lane, 1, posts);
		done = perf_cycles();
		perf_timed_end();
		stats_add(lane->b, M_RECV, lane->block, sample, done - start, posts);
	}
	perf_lane_gate(lane);
	if (err)
		return err;
	perf_timed_begin();
	start = perf_cycles();
	err = lane->way->post(lane, 0, run.batch);
	done = perf_cycles();
	stats_add(lane->b, M_POST, lane->block, sample, done - start, run.batch);
	perf_timed_end();
	if (err || !events || !owner)
		return err;
	if (run.ctx == CTX_POLL) {
		err = perf_wait_done(lane, 0, 0, &spent[0]) ?:
		      perf_wait_done(lane, 1, 1, &spent[1]);
		if (recvs && !run.shared)
			stats_add(lane->b, M_DONE2, lane->block, sample, spent[1], posts);
	} else {
		err = perf_wait_done(lane, 0, 1, NULL);
		spent[0] = perf_cycles() - done;
		events += recvs ? posts : 0;
	}
	/* of an upcall it cannot be told on which CPU it runs */
	if (run.posters == 1 || (run.ctx == CTX_POLL && !run.shared))
		stats_add(lane->b, M_DONE, lane->block, sample, spent[0], events);
	return err;
}

static int perf_lane_pingpong(struct lane *lane)
{
	u32 all = run.groups * run.batch;
	u64 spent;
	int err = 0;

	lane->side[0].want = perf_recvs() ? 2 * all : all;
	lane->side[1].want = perf_recvs() ? 2 * all : 0;
	local_bh_disable();
	if (perf_recvs())
		err = lane->way->recv(lane, 0, 1) ?: lane->way->recv(lane, 1, 1);
	lane->started = 1;
	lane->start = perf_cycles();
	err = err ?: lane->way->post(lane, 0, 1);
	local_bh_enable();
	return err ?: perf_wait_done(lane, 0, 1, &spent);
}

static int perf_lane_stream(struct lane *lane)
{
	u32 all = run.groups * run.batch;
	u64 start, spent;
	int err;

	lane->side[0].want = all;
	lane->side[1].want = perf_recvs() ? all : 0;
	start = perf_cycles();
	perf_stream_next(&lane->side[0], false);
	err = perf_wait_done(lane, 0, 1, &spent);
	stats_add(lane->b, M_POST, lane->block, 0, perf_cycles() - start, all);
	return err;
}

/* Run a block of one poster, on its CPU. */
static int perf_lane_main(void *data)
{
	struct lane *lane = data;
	u32 i;

	if (run.mode == MODE_PINGPONG)
		lane->err = perf_lane_pingpong(lane);
	else if (run.mode == MODE_STREAM)
		lane->err = perf_lane_stream(lane);
	for (i = 0; i < run.groups && !lane->err && !perf_faults() &&
	     (run.mode == MODE_POST || run.mode == MODE_REFUSE); i++)
		lane->err = perf_lane_batch(lane, i);
	kthread_complete_and_exit(lane->done, 0);
}

static void perf_lane_reset(struct lane *lane, const struct way *const *ways, u32 number)
{
	int i;

	for (i = 0; i < 2; i++) {
		struct side *side = &lane->side[i];

		memset(side, 0, sizeof(*side));
		side->index = i;
		side->lane = lane;
	}
	lane->b = number & 1;
	lane->way = ways[lane->b];
	lane->block = number / 2;
	lane->gates = 0;
	lane->started = 0;
	lane->err = 0;
}

/* Change what all EPs of the IA or PD have in common, but none of these posters uses. */
static int perf_churn_main(void *data)
{
	const struct way *way = data;

	while (!kthread_should_stop()) {
		if (way->churn())
			fault("%s: cannot register", way->name);
		cond_resched();
	}
	return 0;
}

static struct task_struct *perf_churn_start(const struct way *way)
{
	struct task_struct *task;

	if (!run.churn)
		return NULL;
	task = kthread_create(perf_churn_main, (void *)way, "kdperf/churn");
	if (!IS_ERR(task)) {
		kthread_bind(task, cpumask_nth(run.posters, cpu_online_mask));
		wake_up_process(task);
	}
	return task;
}

/*
 * Run block @number. @sums: sums of the numbers of all completed operations, which must be
 * the same in every block.
 */
static int perf_block(const struct way *const *ways, u32 number, u64 *sums)
{
	struct task_struct *churn = perf_churn_start(ways[number & 1]);
	DECLARE_COMPLETION_ONSTACK(done);
	u64 sum[2] = {};
	int err = 0;
	u32 n;

	if (IS_ERR(churn))
		return PTR_ERR(churn);
	atomic_set(&arrived, 0);
	atomic_set(&awake, 0);
	for (n = 0; n < run.posters; n++)
		perf_lane_reset(&lanes[n], ways, number);
	for (n = 0; n < run.posters; n++) {
		struct task_struct *task = kthread_create(perf_lane_main, &lanes[n], "kdperf/%u",
							  n);

		if (IS_ERR(task)) {
			perf_fault();	/* releases the others */
			err = PTR_ERR(task);
			break;
		}
		lanes[n].done = &done;
		kthread_bind(task, cpumask_nth(n, cpu_online_mask));
		wake_up_process(task);
	}
	while (n) {
		wait_for_completion(&done);
		n--;
		err = err ?: lanes[n].err;
	}
	if (churn)
		kthread_stop(churn);
	for (n = 0; n < run.posters; n++) {
		sum[0] += lanes[n].side[0].sum;
		sum[1] += lanes[n].side[1].sum;
	}
	if (!err && perf_faults())
		err = -EIO;
	if (!err && ways[number & 1]->recv && (sum[0] != sums[0] || sum[1] != sums[1])) {
		if (sums[0] | sums[1])
			err = fail("completions do not match the posts");
		sums[0] = sum[0];
		sums[1] = sum[1];
	}
	return err;
}

static int perf_blocks(const struct way *const *ways)
{
	u64 sums[2] = {};
	int err;
	u32 i;

	/* a warm-up round that does not count */
	err = perf_block(ways, 0, sums) ?: perf_block(ways, 1, sums);
	stats_clock(true);
	for (i = 0; i <= 2 * run.blocks && !err; i++) {
		err = perf_block(ways, i, sums);
		if (signal_pending(current))
			err = -EINTR;
	}
	stats_clock(false);
	return err;
}

static const struct way *const pairs[][2] = {
	{ &raw_way, &dapl_way }, { &accept_way, &refuse_way },
};

static int perf_measure_ops(const struct way *const *ways, const struct limits *limits)
{
	u32 i;

	perf_make_segments();
	for (i = 0; i < 2; i++) {
		perf_mem[i] = alloc_pages_exact(perf_bytes(), GFP_KERNEL | __GFP_ZERO);
		if (!perf_mem[i])
			return -ENOMEM;
	}
	lanes = kvcalloc(run.posters, sizeof(*lanes), GFP_KERNEL);
	if (!lanes)
		return -ENOMEM;
	for (i = 0; i < run.posters; i++) {
		lanes[i].n = i;
		spin_lock_init(&lanes[i].lock);
		perf_lane_reset(&lanes[i], pairs[0], 0);
	}
	return stats_open(perf_run_samples()) ?: dapl_open(port, &limits->addr) ?:
	       raw_open(&limits->addr, port + 1) ?: perf_blocks(ways);
}

static int perf_measure(void)
{
	const struct way *const *ways = pairs[run.mode == MODE_REFUSE];
	struct limits limits = {};
	int err;

	err = dapl_open_ia(perf_ia, &limits);
	if (err)
		return err;
	run.segs = min3(run.segs, limits.segs, (u32)MAX_SEGS);
	if (run.mode == MODE_CONNS)
		err = stats_open(perf_run_samples()) ?: conns_measure(&limits.addr, port);
	else
		err = perf_measure_ops(ways, &limits);
	if (!err)
		stats_tell(++runs, perf_ia, ways);
	return err;
}

static void perf_clean_up(int *err)
{
	int i, ret;

	raw_close();
	ret = dapl_close();
	*err = *err ?: ret;
	stats_close();
	kvfree(lanes);
	lanes = NULL;
	for (i = 0; i < 2; i++) {
		if (perf_mem[i])
			free_pages_exact(perf_mem[i], perf_bytes());
		perf_mem[i] = NULL;
	}
}

/* run NAME=VALUE...: parameters that are not named have their defaults. */
static int perf_do_run(char *args)
{
	const struct param *p;
	char *arg;
	int err = 0;

	for (p = params; p < params + ARRAY_SIZE(params); p++)
		*p->value = p->deflt;
	while (!err && (arg = strsep(&args, "\n "))) {
		char *name = strsep(&arg, "=");

		if (*name)
			err = arg ? perf_param_set(name, arg) : -EINVAL;
	}
	err = err ?: perf_run_complete();
	if (!err && (u64)perf_run_samples() * (run.blocks + 1) > MAX_SAMPLES)
		err = -E2BIG;
	if (err)
		return err;
	atomic_set(&faults, 0);
	err = perf_measure();
	perf_clean_up(&err);
	result_file.size = perf_result.len;
	json_file.size = perf_json.len;
	return err;
}

static ssize_t perf_order_write(struct file *file, const char __user *from, size_t len, loff_t *pos)
{
	char line[256], *args = line, *word;
	int err;

	if (len >= sizeof(line))
		return -EINVAL;
	if (copy_from_user(line, from, len))
		return -EFAULT;
	line[len] = '\0';
	word = strsep(&args, "\n ");
	mutex_lock(&perf_mutex);
	err = strcmp(word, "run") ? -EINVAL : perf_do_run(args);
	mutex_unlock(&perf_mutex);
	return err ?: len;
}

static const struct file_operations order_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = perf_order_write,
};

static int __init perf_init(void)
{
	if (!perf_ia)
		return -EINVAL;
	perf_result.buf = kvzalloc(TEXT_SIZE, GFP_KERNEL);
	perf_json.buf = kvzalloc(TEXT_SIZE, GFP_KERNEL);
	if (!perf_result.buf || !perf_json.buf) {
		kvfree(perf_result.buf);
		kvfree(perf_json.buf);
		return -ENOMEM;
	}
	result_file.data = perf_result.buf;
	json_file.data = perf_json.buf;
	perf_dir = debugfs_create_dir("kdperf", NULL);
	debugfs_create_file("do", 0200, perf_dir, NULL, &order_fops);
	debugfs_create_blob("result", 0444, perf_dir, &result_file);
	debugfs_create_blob("json", 0444, perf_dir, &json_file);
	return 0;
}

static void __exit perf_exit(void)
{
	debugfs_remove_recursive(perf_dir);
	kvfree(perf_result.buf);
	kvfree(perf_json.buf);
}

module_init(perf_init);
module_exit(perf_exit);
MODULE_DESCRIPTION("kDAPL example: its cost, compared with verbs alone");
MODULE_AUTHOR("The kDAPL for Linux authors");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION(KDAPL_VERSION);
