// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * kdhammer - keys that are taken away while a peer uses them.
 *
 * A line written to kdhammer/do in debugfs is an order; the write fails when
 * something was wrong, and the log says what. The orders are at the end.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpumask.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/vmalloc.h>

#include "kdhammer.h"
#include "../../lib/orders.h"

static char *ia_a, *ia_b;
static ulong seed;

module_param(ia_a, charp, 0444);
MODULE_PARM_DESC(ia_a, "interface adapter of the owner, e.g. rxe0-1 (required)");
module_param(ia_b, charp, 0444);
MODULE_PARM_DESC(ia_b, "interface adapter of the peer (default: the same)");
module_param(seed, ulong, 0444);
MODULE_PARM_DESC(seed, "of what is done at random (default: a new one, see the log)");

TEST_STATE;

struct test_ia ham_owner, ham_peer;
struct rnd_state ham_rnd;
bool ham_exact;
u64 ham_moved, ham_slack;

static struct dentry *ham_dir;

u32 number(const char *arg)
{
	u32 n;

	return kstrtouint(arg, 10, &n) ? 1 : n;
}

/* ---- areas ---- */

int area_open(struct area *area, u32 size)
{
	memset(area, 0, sizeof(*area));
	area->size = size;
	area->vmalloc = ham_below(2);
	area->p = area->vmalloc ? vmalloc(size) : kmalloc(size, GFP_KERNEL);
	if (!area->p)
		return -ENOMEM;
	area_window(area, 0, size, WINDOW);
	return 0;
}

void area_close(struct area *area)
{
	kvfree(area->p);
	area->p = NULL;
}

/* All else is guarded. */
void area_window(struct area *area, u32 at, u32 length, u8 value)
{
	memset(area->p, GUARD, area->size);
	area->at = at;
	area->length = length;
	memset(area->p + at, value, length);
}

/* The window as a scatterlist: pages of its own. */
int area_sg(struct area *area)
{
	u8 *p = area->p + area->at;
	u32 left = area->length, chunk;

	sg_init_table(area->sg, ARRAY_SIZE(area->sg));
	for (area->nents = 0; left; area->nents++, p += chunk, left -= chunk) {
		if (area->nents == ARRAY_SIZE(area->sg))
			return fail("the window is too long");
		chunk = min_t(u32, left, PAGE_SIZE - offset_in_page(p));
		sg_set_page(&area->sg[area->nents],
			    is_vmalloc_addr(p) ? vmalloc_to_page(p) : virt_to_page(p), chunk,
			    offset_in_page(p));
	}
	return 0;
}

void area_secret(struct area *area)
{
	memset(area->p + area->at, SECRET, area->length);
}

int area_is(const struct area *area, u32 at, u32 length, u8 value, const char *what)
{
	const u8 *bad = memchr_inv(area->p + at, value, length);

	if (bad)
		return fail("%s: byte %d of %u is 0x%02x", what, (int)(bad - area->p) - at, length,
			    *bad);
	return 0;
}

int area_check_guards(struct area *area, const char *when)
{
	u32 end = area->at + area->length;

	if (memchr_inv(area->p, GUARD, area->at))
		return fail("%s: bytes before the window have changed", when);
	if (memchr_inv(area->p + end, GUARD, area->size - end))
		return fail("%s: bytes behind the window have changed", when);
	return 0;
}

/* Not one byte has moved; where a copy is not alone one segment may have (D-26). */
int area_check_secret(struct area *area, const char *when)
{
	u32 i, first = ~0, last = 0;

	for (i = area->at; i < area->at + area->length; i++) {
		if (area->p[i] == SECRET)
			continue;
		if (!(area->p[i] & PEER))
			return fail("%s: a byte is 0x%02x", when, area->p[i]);
		first = min(first, i);
		last = i;
	}
	if (first > last)
		return 0;
	if (ham_exact || last - first >= MESSAGE)
		return fail("%s: bytes %u to %u have been written to afterwards", when,
			    first - area->at, last - area->at);
	ham_slack++;
	return 0;
}

int area_check(struct area *area, const char *when)
{
	return area_check_guards(area, when) ?: area_check_secret(area, when);
}

/* Whatever is left goes with it. */
static void side_close(struct test_ia *side)
{
	if (side->h)
		dat_ia_close(side->h, DAT_CLOSE_ABRUPT_FLAG);
	side->h = NULL;
}

static const struct order orders[] = {
	{ "invalidate", do_invalidate },
	{ "free", do_free },
	{ "rebind", do_rebind },
	{ "remote", do_remote },
	{ "register", do_register },
	{ "registering", do_registering },
	{ "registered", do_registered },
	{}
};

static void close_all(void)
{
	reg_close();
	links_close();
	side_close(&ham_owner);
	side_close(&ham_peer);
}

static int __init ham_init(void)
{
	int err;

	if (!ia_a) {
		pr_err("ia_a= is missing\n");
		return -EINVAL;
	}
	if (!seed)
		seed = get_random_u32();
	prandom_seed_state(&ham_rnd, seed);
	ham_exact = num_online_cpus() == 1 && !IS_ENABLED(CONFIG_PREEMPTION);
	pr_info("seed=%lu cpus=%d%s\n", seed, num_online_cpus(), ham_exact ? " exact" : "");
	err = test_ia_open(&ham_owner, ia_a) ?: test_ia_open(&ham_peer, ia_b ?: ia_a) ?:
	      links_open();
	if (err) {
		close_all();
		return err;
	}
	ham_dir = orders_open("kdhammer", orders);
	return 0;
}

static void __exit ham_exit(void)
{
	debugfs_remove_recursive(ham_dir);
	close_all();
	pr_info("%s seed=%lu messages=%llu late=%llu\n", failed() ? "FAIL" : "PASS", seed,
		ham_moved, ham_slack);
}

module_init(ham_init);
module_exit(ham_exit);
MODULE_DESCRIPTION("kDAPL test: keys taken away under fire");
MODULE_AUTHOR("The kDAPL for Linux authors");
MODULE_LICENSE("Dual BSD/GPL");
