// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Evaluation of the samples. The blocks of a run are V K V K ... V: V with verbs, K with
 * kDAPL. The value of a block is the median of its samples, so that an interrupt does not
 * count. Each block of kDAPL is compared with the mean of its two neighbours, which cancels
 * drift. Each V is compared with the next V, which shows the noise of the machine.
 */
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/sort.h>
#include <linux/stdarg.h>
#include <linux/string.h>
#include <linux/utsname.h>

#include "kdperf.h"

struct text perf_result, perf_json;

static u64 *samples[2][METRICS];	/* thousandths of a tick, or byte, per operation */
static bool used[METRICS];
static u64 *scratch;
static u32 per_block;
static u64 ticks, nsecs;		/* between the two calls of stats_clock() */
static u64 loop;			/* ticks of perf_loop() */

static const char *const names[][METRICS] = {
	[MODE_POST] = { "post", "post of a receive", "completion", "receive completion" },
	[MODE_PINGPONG] = { "round trip" },
	[MODE_STREAM] = { "message" },
	[MODE_REFUSE] = { "call" },
	[MODE_CONNS] = { "EP", "free of an EP", "connection", "end of a connection", "memory" },
};

static const char *const units[] = { "ns", "cycles", "instructions" };

static bool stats_is_bytes(enum metric m)
{
	return run.mode == MODE_CONNS && m == M_MEMORY;
}

static const char *stats_unit(enum metric m)
{
	return stats_is_bytes(m) ? "bytes" : units[run.unit];
}

__printf(2, 3) void say(struct text *text, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	text->len += vscnprintf(text->buf + text->len, TEXT_SIZE - text->len, fmt, args);
	va_end(args);
}

int stats_open(u32 n)
{
	size_t all = (size_t)n * (run.blocks + 1);
	int side, m;

	per_block = n;
	memset(used, 0, sizeof(used));
	scratch = kvcalloc(all, sizeof(u64), GFP_KERNEL);
	if (!scratch)
		return -ENOMEM;
	for (side = 0; side < 2; side++) {
		for (m = 0; m < METRICS; m++) {
			if (!names[run.mode][m])
				continue;
			samples[side][m] = kvcalloc(all, sizeof(u64), GFP_KERNEL);
			if (!samples[side][m])
				return -ENOMEM;
		}
	}
	return 0;
}

void stats_close(void)
{
	int side, m;

	for (side = 0; side < 2; side++) {
		for (m = 0; m < METRICS; m++) {
			kvfree(samples[side][m]);
			samples[side][m] = NULL;
		}
	}
	kvfree(scratch);
	scratch = NULL;
}

void stats_add(int side, enum metric m, u32 block, u32 i, u64 t, u32 ops)
{
	if (!samples[side][m])
		return;
	/* the first counted block overwrites the warm-up block */
	samples[side][m][block * per_block + i] = div_u64(t * 1000, max(ops, 1U));
	WRITE_ONCE(used[m], true);
}

/* Ticks of a loop of 2,000 instructions, the shortest of several runs. */
u64 perf_loop(void)
{
	u64 start, shortest = U64_MAX;
	int tries;

	for (tries = 0; tries < 5; tries++) {
#ifdef CONFIG_X86_64
		u32 i = 1000;

		start = perf_cycles();
		asm volatile("1: dec %0; jnz 1b" : "+r" (i));
#else
		start = perf_cycles();
#endif
		shortest = min(shortest, perf_cycles() - start);
	}
	return shortest;
}

void stats_clock(bool start)
{
	static u64 ticks0, nsecs0;

	if (start) {
		ticks0 = perf_cycles();
		nsecs0 = ktime_get_ns();
	} else {
		ticks = max(perf_cycles() - ticks0, 1ULL);
		nsecs = ktime_get_ns() - nsecs0;
		loop = perf_loop();
	}
}

static int stats_by_size(const void *a, const void *b)
{
	const s64 *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static s64 stats_in_unit(enum metric m, s64 v)
{
	u64 size = abs(v);

	if (run.unit == UNIT_NS && !stats_is_bytes(m))
		size = mul_u64_u64_div_u64(size, nsecs, ticks);
	return v < 0 ? -(s64)size : size;
}

struct median {
	s64 low, median, high;
};

/* The median of @v and the values @ranks away, in thousandths of the unit. Sorts @v. */
static struct median stats_median(enum metric m, s64 *v, u32 n, u32 ranks)
{
	u32 mid = (n - 1) / 2;

	sort(v, n, sizeof(*v), stats_by_size, NULL);
	return (struct median) {
		stats_in_unit(m, v[mid - min(mid, ranks)]), stats_in_unit(m, v[mid]),
		stats_in_unit(m, v[min(mid + ranks, n - 1)]),
	};
}

/* The 95 per cent confidence interval of a median, in ranks. */
static u32 stats_ranks95(u32 n)
{
	return int_sqrt(n) + 1;
}

struct outcome {
	struct median way[2];		/* medians of the blocks, with quartiles */
	s64 p99[2];
	struct median diff, noise;	/* with confidence intervals */
	u32 percent;			/* difference of the verbs from themselves */
};

static s64 stats_p99(int side, enum metric m, u32 n)
{
	memcpy(scratch, samples[side][m], n * sizeof(*scratch));
	sort(scratch, n, sizeof(*scratch), stats_by_size, NULL);
	return stats_in_unit(m, scratch[min(n - 1, n / 100 * 99 + n % 100 * 99 / 100)]);
}

static void stats_reckon(enum metric m, struct outcome *o)
{
	static s64 block[2][MAX_BLOCKS + 1], v[MAX_BLOCKS + 1];
	u32 n = run.blocks, b;
	int side;

	for (side = 0; side < 2; side++) {
		u32 blocks = n + !side;

		for (b = 0; b < blocks; b++) {
			memcpy(scratch, samples[side][m] + b * per_block,
			       per_block * sizeof(*scratch));
			sort(scratch, per_block, sizeof(*scratch), stats_by_size, NULL);
			block[side][b] = scratch[(per_block - 1) / 2];
		}
		memcpy(v, block[side], blocks * sizeof(*v));
		o->way[side] = stats_median(m, v, blocks, blocks / 4);
		o->p99[side] = stats_p99(side, m, blocks * per_block);
	}
	for (b = 0; b < n; b++)
		v[b] = block[1][b] - (block[0][b] + block[0][b + 1]) / 2;
	o->diff = stats_median(m, v, n, stats_ranks95(n));
	for (b = 0; b < n; b++)
		v[b] = block[0][b + 1] - block[0][b];
	o->noise = stats_median(m, v, n, stats_ranks95(n));
	/* A machine whose speed changes during the run counts as noisy as well. */
	o->percent = div64_u64(100 * max3(abs(o->noise.low), abs(o->noise.high),
					  (o->way[0].high - o->way[0].low) / 2),
			       max_t(s64, o->way[0].median, 1));
}

/* "-1.234" */
static const char *stats_decimal(s64 v)
{
	static char rooms[8][24];
	static u32 next;
	char *to = rooms[next++ % ARRAY_SIZE(rooms)];
	u32 rest;
	u64 whole = div_u64_rem(abs(v), 1000, &rest);

	snprintf(to, sizeof(rooms[0]), "%s%llu.%03u", v < 0 ? "-" : "", whole, rest);
	return to;
}

static void stats_tell_text(enum metric m, const struct outcome *o,
			    const struct way *const *ways)
{
	const char *what = names[run.mode][m], *unit = stats_unit(m);
	struct text *t = &perf_result;
	int side;

	for (side = 0; side < 2; side++)
		say(t, "  %-18s %-8s %12s %s (blocks %s to %s; 99 %% of samples below %s)\n",
		    side ? "" : what, ways[side]->name, stats_decimal(o->way[side].median), unit,
		    stats_decimal(o->way[side].low), stats_decimal(o->way[side].high),
		    stats_decimal(o->p99[side]));
	say(t, "  %-18s %s - %s %12s (%s to %s); %s - %s: %s (%s to %s)\n", "", ways[1]->name,
	    ways[0]->name, stats_decimal(o->diff.median), stats_decimal(o->diff.low),
	    stats_decimal(o->diff.high), ways[0]->name, ways[0]->name,
	    stats_decimal(o->noise.median), stats_decimal(o->noise.low),
	    stats_decimal(o->noise.high));
	if (o->percent > run.bound)
		say(t, "  %-18s too noisy: %s differs from itself by %u %% (bound %u %%)\n", "",
		    ways[0]->name, o->percent, run.bound);
	else if (o->diff.low > o->noise.high || o->diff.high < o->noise.low)
		say(t, "  %-18s verdict: %s takes %s %s %s\n", "", ways[1]->name,
		    stats_decimal(abs(o->diff.median)), unit, o->diff.median < 0 ? "less" : "more");
	else
		say(t, "  %-18s verdict: no difference beyond that of %s from itself\n", "",
		    ways[0]->name);
}

static void stats_tell_three(const char *name, const struct median *m)
{
	say(&perf_json, ",\"%s\":[%s,%s,%s]", name, stats_decimal(m->low), stats_decimal(m->median),
	    stats_decimal(m->high));
}

static void stats_tell_json(const struct outcome *o, const struct way *const *ways)
{
	int side;

	for (side = 0; side < 2; side++) {
		stats_tell_three(ways[side]->name, &o->way[side]);
		say(&perf_json, ",\"%s p99\":%s", ways[side]->name, stats_decimal(o->p99[side]));
	}
	stats_tell_three("difference", &o->diff);
	stats_tell_three("noise", &o->noise);
	say(&perf_json, ",\"too noisy\":%s}", o->percent > run.bound ? "true" : "false");
}

/* Write the two texts about a run. */
void stats_tell(u32 number, const char *ia, const struct way *const *ways)
{
	struct outcome *o = kmalloc(sizeof(*o), GFP_KERNEL);
	int m;

	if (!o)
		return;
	say(&perf_result, "run %u: %s", number, ia);
	params_print(&perf_result, false);
	say(&perf_json, "{\"run\":%u,\"kernel\":\"%s\",\"ia\":\"%s\",\"cpus\":%u", number,
	    utsname()->release, ia, num_online_cpus());
	say(&perf_json, ",\"khz\":%llu,\"loop\":%llu",
	    div64_u64(ticks * 1000000, max(nsecs, 1ULL)), loop);
	params_print(&perf_json, true);
	say(&perf_result, "\n");
	for (m = 0; m < METRICS; m++) {
		if (!used[m])
			continue;
		stats_reckon(m, o);
		stats_tell_text(m, o, ways);
		if (run.mode == MODE_STREAM && run.unit == UNIT_NS && o->way[0].median)
			say(&perf_result, "  %-18s that is %llu and %llu MB/s\n", "",
			    div64_u64(run.size * 1000000ULL, o->way[0].median),
			    div64_u64(run.size * 1000000ULL, max_t(s64, o->way[1].median, 1)));
		say(&perf_json, ",\"%s\":{\"unit\":\"%s\"", names[run.mode][m], stats_unit(m));
		stats_tell_json(o, ways);
	}
	say(&perf_json, "}\n");
	kfree(o);
}
