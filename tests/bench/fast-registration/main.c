// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * kdreg - fast registrations per second, with kDAPL and with the verbs alone.
 *
 * A chain is what a storage protocol does for one request: memory is registered, its
 * key sent to the peer, and invalidated. Several slots have a chain under way each; what
 * ends the last part of one, in softirq, begins the next. Orders, as in ../../lib/orders.h, are
 * at the end.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/gfp.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <linux/sort.h>
#include <linux/string.h>
#include <net/net_namespace.h>

#include "../../lib/orders.h"
#include "kdreg.h"

#define BLOCKS	64	/* of a bench, at most */
#define SHORTEST	(20 * NSEC_PER_MSEC)	/* block worth measuring */

static char *ia;
static ushort port = 4716;
static uint bound = 15;
bool reg_blind;

module_param(ia, charp, 0444);
MODULE_PARM_DESC(ia, "interface adapter, connected to itself (required)");
module_param(port, ushort, 0444);
MODULE_PARM_DESC(port, "connection qualifier, and the next one for the verbs (default 4716)");
module_param(bound, uint, 0444);
MODULE_PARM_DESC(bound, "per cent that the verbs may differ from themselves (default 15)");
module_param_named(blind, reg_blind, bool, 0444);
MODULE_PARM_DESC(blind, "the device moves no bytes: one slot only, and messages are not compared");

/*
 * What is compared, in the order of the first round. The verbs take part twice with the
 * same, far from each other: what lies between those two is noise.
 */
static const struct way ways[] = {
	{ "verbs, one call", raw_start_list },
	{ "kDAPL, one list", dapl_start_list },
	{ "verbs, call by call", raw_start_calls },
	{ "verbs, one call again", raw_start_list },
	{ "kDAPL, call by call", dapl_start_calls },
};

enum { RAW_LIST, DAPL_LIST, RAW_CALLS, RAW_AGAIN, DAPL_CALLS, WAYS };

struct plan plan;
TEST_STATE;

static struct page *memory;
static struct scatterlist sgl[MAX_PAGES];
static struct dentry *reg_dir;
static bool is_open;

/* The block under way. */
static const struct way *way;
static atomic_t parts[MAX_SLOTS];	/* of its chain, still to come */
static u64 in_calls[MAX_SLOTS];		/* nanoseconds */
static atomic_t left;			/* chains to begin */
static atomic_t idle;			/* slots without one */

/* Nanoseconds per chain of each block; of that, in the calls that begin it. */
static u32 took[WAYS][BLOCKS], calls[WAYS][BLOCKS];

static void next_chain(u32 slot)
{
	u64 start;

	if (failed() || atomic_dec_return(&left) < 0) {
		atomic_inc(&idle);
		wake_up_all(&test_wait);
		return;
	}
	/* its local end and the message; or Send, answer, and the end of the answer */
	atomic_set(&parts[slot], plan.peer ? 3 : 2);
	start = ktime_get_ns();
	way->start(slot);
	in_calls[slot] += ktime_get_ns() - start;
}

void reg_part(u32 slot)
{
	if (slot >= MAX_SLOTS)
		fault("slot %u", slot);
	else if (atomic_dec_and_test(&parts[slot]))
		next_chain(slot);
}

/* One block: so many chains, so many of them at a time. */
static int block(const struct way *w, u32 chains, u32 slots, u32 *ns, u32 *ns_calls)
{
	u64 start, sum = 0;
	u32 i;

	way = w;
	atomic_set(&left, chains);
	atomic_set(&idle, 0);
	memset(in_calls, 0, sizeof(in_calls));
	start = ktime_get_ns();
	for (i = 0; i < slots; i++) {
		local_bh_disable();
		next_chain(i);
		local_bh_enable();
	}
	if (!in_order(atomic_read(&idle) == slots))
		return fail("%s: %d of %u slots are idle, %d of %u chains left", w->name,
			    atomic_read(&idle), slots, atomic_read(&left), chains);
	*ns = div_u64(ktime_get_ns() - start, chains);
	for (i = 0; i < slots; i++)
		sum += in_calls[i];
	*ns_calls = div_u64(sum, chains);
	return 0;
}

static int by_size(const void *a, const void *b)
{
	const u32 *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

struct median {
	u32 low, median, high;
};

/* The middle one, and those so many ranks from it on either side. */
static struct median median(const u32 *values, u32 n, u32 ranks)
{
	u32 v[BLOCKS];

	memcpy(v, values, n * sizeof(*v));
	sort(v, n, sizeof(*v), by_size, NULL);
	return (struct median) {
		v[n / 2 - min(n / 2, ranks)], v[n / 2], v[min(n / 2 + ranks, n - 1)],
	};
}

static struct median quartiles(const u32 *values, u32 n)
{
	return median(values, n, n / 4);
}

/*
 * Thousandths that a takes of b, round by round, and between what the middle is with a
 * certainty of 95 per cent, however the rounds are distributed.
 */
static struct median ratio(int a, int b, u32 n)
{
	u32 v[BLOCKS], i;

	for (i = 0; i < n; i++)
		v[i] = div_u64(took[a][i] * 1000ULL, max(took[b][i], 1U));
	return median(v, n, int_sqrt(n));
}

/* "1.234" */
static const char *decimal(char *to, u32 thousandths)
{
	snprintf(to, 16, "%u.%03u", thousandths / 1000, thousandths % 1000);
	return to;
}

static void tell_verdict(const char *what, int a, int b, u32 blocks)
{
	const struct median r = ratio(a, b, blocks);
	char d[3][16];

	pr_info("bench %s: kDAPL takes %s of the time of the verbs (%s to %s)\n", what,
		decimal(d[0], r.median), decimal(d[1], r.low), decimal(d[2], r.high));
}

static void tell(u32 blocks)
{
	const struct median noise = ratio(RAW_AGAIN, RAW_LIST, blocks);
	u32 spread = max(noise.high, 1000U) - min(noise.low, 1000U), i;
	char head[64], what[96], d[16];

	snprintf(head, sizeof(head), "%s, pages %u, slots %u", plan.peer ? "peer" : "local",
		 plan.pages, plan.slots);
	for (i = 0; i < WAYS; i++) {
		const struct median t = quartiles(took[i], blocks);
		const struct median c = quartiles(calls[i], blocks);

		pr_info("bench %s: %-21s %7u per s, %6u ns (%u to %u), %5u ns in the calls, %s\n",
			head, ways[i].name, (u32)(NSEC_PER_SEC / max(t.median, 1U)), t.median,
			t.low, t.high, c.median, decimal(d, ratio(i, RAW_LIST, blocks).median));
	}
	if (spread > bound * 10) {
		pr_info("bench %s: no verdict: the verbs differ from themselves by %u %% (bound %u %%)\n",
			head, spread / 10, bound);
		return;
	}
	snprintf(what, sizeof(what), "%s, one list", head);
	tell_verdict(what, DAPL_LIST, RAW_LIST, blocks);
	snprintf(what, sizeof(what), "%s, call by call", head);
	tell_verdict(what, DAPL_CALLS, RAW_CALLS, blocks);
}

/* The rest of an order, after its first number, which goes to @n. */
static int set_plan(char *arg, u32 *n, u32 *chains)
{
	char *first = strsep(&arg, " ");
	u32 pages, slots;
	char who[8];

	if (!is_open || !arg || kstrtou32(first, 0, n) ||
	    sscanf(arg, "%u %u %u %7s", chains, &pages, &slots, who) != 4 || !*chains ||
	    !pages || pages > MAX_PAGES || !slots || slots > (reg_blind ? 1 : MAX_SLOTS))
		return -EINVAL;
	plan.pages = pages;
	plan.slots = slots;
	plan.peer = !strcmp(who, "peer");
	return plan.peer || !strcmp(who, "local") ? 0 : -EINVAL;
}

/* bench BLOCKS CHAINS PAGES SLOTS local|peer: each way has so many blocks, in turn. */
static int do_bench(char *arg)
{
	u32 blocks, chains, i, n;
	int err = set_plan(arg, &blocks, &chains);

	if (!err && (!blocks || blocks > BLOCKS))
		err = -EINVAL;
	/* a round nobody counts; then each round begins with another one */
	for (i = 0; i < WAYS && !err; i++)
		err = block(&ways[i], chains, plan.slots, &took[i][0], &calls[i][0]);
	if (!err)
		chains = max_t(u32, chains, SHORTEST / max(took[RAW_LIST][0], 1U));
	for (i = 0; i < blocks * WAYS && !err; i++) {
		n = (i % WAYS + i / WAYS) % WAYS;
		err = block(&ways[n], chains, plan.slots, &took[n][i / WAYS],
			    &calls[n][i / WAYS]);
		if (signal_pending(current))
			err = -EINTR;
	}
	if (!err)
		tell(blocks);
	return err;
}

static void close_all(int *err)
{
	raw_close();
	*err = dapl_close();
	is_open = false;
}

/* open: a connection with kDAPL and one without. */
static int do_open(char *arg)
{
	struct sockaddr_storage addr = {};
	int err, ignored;

	if (is_open)
		return -EBUSY;
	atomic_set(&test_faults, 0);
	err = dapl_open(ia, port, &addr) ?: raw_open(&addr, port + 1);
	is_open = !err;
	if (err)
		close_all(&ignored);
	return err;
}

/* close: and nothing may be left. */
static int do_close(char *arg)
{
	int err;

	close_all(&err);
	return err ?: failed() ? -EIO : 0;
}

static const struct order orders[] = {
	{ "open", do_open },
	{ "bench", do_bench },		/* BLOCKS CHAINS PAGES SLOTS local|peer */
	{ "close", do_close },
	{}
};

static int __init reg_init(void)
{
	u32 i;

	if (!ia)
		return -EINVAL;
	memory = alloc_pages(GFP_KERNEL | __GFP_ZERO, get_order(2 * MAX_PAGES * PAGE_SIZE));
	if (!memory)
		return -ENOMEM;
	/* every other page, so that nobody can make larger ones of them */
	sg_init_table(sgl, MAX_PAGES);
	for (i = 0; i < MAX_PAGES; i++)
		sg_set_page(&sgl[i], memory + 2 * i, PAGE_SIZE, 0);
	plan.sgl = sgl;
	raw_net = get_net(current->nsproxy->net_ns);
	reg_dir = orders_open("kdreg", orders);
	return 0;
}

static void __exit reg_exit(void)
{
	int ignored;

	debugfs_remove_recursive(reg_dir);
	close_all(&ignored);
	put_net(raw_net);
	__free_pages(memory, get_order(2 * MAX_PAGES * PAGE_SIZE));
}

module_init(reg_init);
module_exit(reg_exit);
MODULE_DESCRIPTION("kDAPL test: fast registrations per second");
MODULE_AUTHOR("The kDAPL for Linux authors");
MODULE_LICENSE("Dual BSD/GPL");
