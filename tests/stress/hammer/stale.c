// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Keys that nobody has given out: each ends in an error of the peer's connection, and in
 * nothing else. Keys that were good once, or are for something else, are kdtest's.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "kdhammer.h"

#define SIZE	1024	/* of the window */

static int no_key(struct area *area, DAT_LMR_HANDLE *lmr, DAT_RMR_CONTEXT *rkey)
{
	*rkey = 0;
	return 0;
}

/* Another key of the same index. */
static int guessed(struct area *area, DAT_LMR_HANDLE *lmr, DAT_RMR_CONTEXT *rkey)
{
	int err = lmr_over(area, false, DAT_MEM_PRIV_ALL_FLAG, lmr, NULL, rkey);

	*rkey = (*rkey & ~0xff) | ((*rkey + 1 + ham_below(255)) & 0xff);
	return err;
}

/* The next one of an LMR that is not bound. */
static int foretold(struct area *area, DAT_LMR_HANDLE *lmr, DAT_RMR_CONTEXT *rkey)
{
	DAT_LMR_CONTEXT lkey;
	struct test_op op;
	u64 addr;

	test_op_init(&op, NULL, NULL);
	return fmr_new(lmr) ?: fmr_over(&ham_link, *lmr, area, &lkey, rkey, &addr) ?:
	       TRY(dat_lmr_invalidate, *lmr, ham_link.owner.conn.ep, test_cookie(&op), 0) ?:
	       test_op_good(&op, "invalidate") ?:
	       TRY(kdat_lmr_next_contexts, *lmr, &lkey, rkey);
}

static const struct {
	const char *name;
	int (*make)(struct area *area, DAT_LMR_HANDLE *lmr, DAT_RMR_CONTEXT *rkey);
} kinds[] = {
	{ "key 0", no_key },
	{ "a key that was guessed", guessed },
	{ "a key that an LMR will have", foretold },
};

static int stale_key(int kind)
{
	bool read = ham_below(2);
	DAT_LMR_HANDLE lmr = NULL;
	DAT_RMR_CONTEXT rkey;
	struct area area;
	struct test_op op;
	u64 addr;
	int err = area_open(&area, 3 * PAGE_SIZE);

	if (err)
		return err;
	area_window(&area, 1 + ham_below(2 * PAGE_SIZE - 2), SIZE, SECRET);
	addr = (uintptr_t)area.p + area.at;
	test_op_init(&op, NULL, NULL);
	err = kinds[kind].make(&area, &lmr, &rkey) ?:
	      (read ? peer_read : peer_write)(&ham_link, &op, rkey, addr, SIZE) ?:
	      test_op_wait(&op, "a request");
	/* Soft-iWARP is content once it has sent a Write. */
	if (!err && op.status == DAT_DTO_SUCCESS && (read || !ham_peer.iwarp))
		err = fail("the peer has succeeded");
	err = err ?: link_over(&ham_link);
	if (err)
		return err;	/* the memory may be in use */
	err = area_check_guards(&area, "stale key") ?:
	      area_is(&area, area.at, SIZE, SECRET, "stale key") ?:
	      link_again(&ham_link) ?: FREE(dat_lmr_free, &lmr);
	area_close(&area);
	return err;
}

static int one_stale(void *p)
{
	int kind, err = 0;

	for (kind = 0; kind < ARRAY_SIZE(kinds) && !err; kind++) {
		test_now = kinds[kind].name;
		err = stale_key(kind) ?: link_talk(&ham_other) ?: failed() ? -EIO : 0;
	}
	test_now = NULL;
	return err;
}

/* stale N */
int do_stale(char *arg)
{
	return rounds("stale", arg, one_stale, NULL);
}
