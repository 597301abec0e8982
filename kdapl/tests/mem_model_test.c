// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Random lives of LMRs and RMRs: bound, unbound, windowed, invalidated from the
 * other side, flushed and failed at random moments, on one connection after the
 * other. Whenever all is quiet, what the provider says has to be what the device
 * does; and the device complains of every misuse of a region all the time.
 */
#include <linux/mm.h>
#include <linux/prandom.h>
#include <linux/random.h>

#include "kd_mem.h"

#define MM_LMRS		4
#define MM_RMRS		3
#define MM_STEPS	6000

/* An LMR of dat_lmr_allocate(), and what its last fmr gave. */
struct mm_lmr {
	DAT_LMR_HANDLE h;
	u32 key;
	u64 start;
	u32 length;
};

/* An RMR: the last bind, and the one before that may be in effect still. */
struct mm_rmr {
	DAT_RMR_HANDLE h;
	u32 key[2];
	int over[2];		/* number of the LMR each was for */
};

struct mm {
	struct km *km;
	struct rnd_state rnd;
	struct mm_lmr lmr[MM_LMRS];
	struct mm_rmr rmr[MM_RMRS];
	unsigned int step;
	unsigned int fmrs, invs, binds, peers, frees, ends;
};

static u32 mm_random(struct mm *mm, u32 n)
{
	return prandom_u32_state(&mm->rnd) % n;
}

/* What a call may say in a state that nobody has looked at. */
static bool mm_ok(struct mm *mm, DAT_RETURN ret, const char *what)
{
	switch (DAT_GET_TYPE(ret)) {
	case DAT_SUCCESS:
	case DAT_INVALID_STATE:
	case DAT_INSUFFICIENT_RESOURCES:
	case DAT_INVALID_PARAMETER:
		return ret == DAT_SUCCESS;
	default:
		KUNIT_FAIL(mm->km->env.test, "step %u: %s: %#x", mm->step, what, ret);
		return false;
	}
}

static void mm_allocate(struct mm *mm, struct mm_lmr *lmr)
{
	*lmr = (struct mm_lmr) { .h = km_lmr(mm->km, 3, DAT_LMR_SCOPE_PZ) };
}

static void mm_fmr(struct mm *mm)
{
	struct mm_lmr *lmr = &mm->lmr[mm_random(mm, MM_LMRS)];
	u32 n = 1 + mm_random(mm, 3), first = mm_random(mm, KM_PAGES - 3);
	int flags = mm_random(mm, 3) ? 0 : DAT_COMPLETION_SUPPRESS_FLAG;
	struct km_keys keys;

	if (!mm_ok(mm, km_try_fmr(mm->km, lmr->h, first, n, KM_ALL, flags, 1, &keys),
		   "fmr"))
		return;
	lmr->key = keys.lmr;
	lmr->start = mm->km->pa[first];
	lmr->length = n * PAGE_SIZE;
	mm->fmrs++;
}

static void mm_inv(struct mm *mm)
{
	static const int flags[] = {
		0, DAT_COMPLETION_SUPPRESS_FLAG, DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG,
	};

	mm->invs += mm_ok(mm, km_try_inv(mm->km, mm->lmr[mm_random(mm, MM_LMRS)].h,
					 flags[mm_random(mm, 3)], 2), "invalidate");
}

static void mm_bind(struct mm *mm)
{
	struct mm_rmr *rmr = &mm->rmr[mm_random(mm, MM_RMRS)];
	int over = mm_random(mm, MM_LMRS);
	struct mm_lmr *lmr = &mm->lmr[over];
	bool bind = mm_random(mm, 3) && lmr->length;
	u32 offset = bind ? mm_random(mm, lmr->length) : 0;
	DAT_RMR_CONTEXT key;

	if (!mm_ok(mm, km_try_rmr(mm->km, rmr->h, lmr->h, lmr->start + offset,
				  bind ? 1 + mm_random(mm, lmr->length - offset) : 0, lmr->key,
				  KM_REMOTE, 0, 3, &key), "bind"))
		return;
	mm->binds++;
	if (!bind)
		return;
	/* the one before, unless it has come to nothing */
	if (km_valid(mm->km, rmr->key[0])) {
		rmr->key[1] = rmr->key[0];
		rmr->over[1] = rmr->over[0];
	}
	rmr->key[0] = key;
	rmr->over[0] = over;
}

/* The peer takes a key away, if it works. */
static void mm_peer(struct mm *mm)
{
	u32 i = mm_random(mm, MM_LMRS + MM_RMRS);
	u32 key = i < MM_LMRS ? mm->lmr[i].key : mm->rmr[i - MM_LMRS].key[mm_random(mm, 2)];
	struct kd_env *env = &mm->km->env;
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_WO, 0, 64);

	if (!key || !fake_ib_mr_valid(env->dev, key) ||
	    kd_post(env->ep, KD_RECV, 1, &iov, 4, NULL, 0) != DAT_SUCCESS)
		return;
	KUNIT_EXPECT_EQ(env->test, fake_ib_recv_inv(env->qp, 12, key), 0);
	mm->peers++;
	if (mm_random(mm, 2))
		km_drain(env->recv);
}

static void mm_drain(struct mm *mm)
{
	km_drain(mm->km->env.req);
	km_drain(mm->km->env.recv);
}

/* Everything that is under way ends well, and is noticed. */
static void mm_settle(struct mm *mm)
{
	struct kd_env *env = &mm->km->env;
	struct kd_mem *mem = &env->mem[KD_RW];

	fake_ib_complete_all(env->qp, false, IB_WC_SUCCESS);
	mm_drain(mm);
	/* the end of this one tells of those that said nothing */
	KD_EXPECT_OK(env->test, km_send(mm->km, mem->lmr_context, mem->addr, 1, 5));
	fake_ib_complete_all(env->qp, false, IB_WC_SUCCESS);
	mm_drain(mm);
}

/* The connection ends, in one of three ways, and another one begins. */
static void mm_end(struct mm *mm)
{
	struct km *km = mm->km;
	struct kd_env *env = &km->env;
	bool failed = fake_ib_outstanding(env->qp, false) && mm_random(mm, 2);

	if (failed) {
		km_done(km, IB_WC_LOC_PROT_ERR);
		mm_drain(mm);
	} else {
		if (mm_random(mm, 2))
			mm_drain(mm);
		KD_EXPECT_OK(env->test, dat_ep_disconnect(env->ep, DAT_CLOSE_ABRUPT_FLAG));
	}
	KUNIT_EXPECT_EQ(env->test, kd_expect_end(env),
			(u32)(failed ? DAT_CONNECTION_EVENT_BROKEN :
			      DAT_CONNECTION_EVENT_DISCONNECTED));
	mm_drain(mm);
	km_ep_free(km, 0);
	mm_drain(mm);
	km_join(km, 0, NULL);
	mm->ends++;
}

static bool mm_valid(struct mm *mm, u32 key)
{
	return key && km_valid(mm->km, key);
}

/* All is quiet: does the provider say what the device does? */
static void mm_check(struct mm *mm)
{
	struct kunit *test = mm->km->env.test;
	int i, j, valid = KD_NR_MEMS;
	DAT_LMR_PARAM param;

	for (i = 0; i < MM_LMRS; i++) {
		struct mm_lmr *lmr = &mm->lmr[i];
		bool bound = mm_valid(mm, lmr->key);

		km_param(mm->km, lmr->h, &param);
		KUNIT_EXPECT_EQ_MSG(test, !!param.lmr_state.bound, bound, "step %u", mm->step);
		KUNIT_EXPECT_EQ_MSG(test, param.lmr_context, bound ? lmr->key : 0, "step %u",
				    mm->step);
		KUNIT_EXPECT_EQ_MSG(test, km_send(mm->km, lmr->key, lmr->start, 1, 6) ==
				    DAT_SUCCESS, bound, "step %u", mm->step);
		valid += bound;
	}
	for (i = 0; i < MM_RMRS; i++) {
		for (j = 0; j < 2; j++)
			valid += mm_valid(mm, mm->rmr[i].key[j]);
		KUNIT_EXPECT_FALSE(test, mm_valid(mm, mm->rmr[i].key[0]) &&
				   mm_valid(mm, mm->rmr[i].key[1]));
	}
	KUNIT_EXPECT_EQ_MSG(test, fake_ib_valid_mrs(mm->km->env.dev), valid, "step %u", mm->step);
	mm_settle(mm);
}

/* Freeing an LMR works unless an RMR is bound over it. */
static void mm_free_lmr(struct mm *mm, int i)
{
	struct kunit *test = mm->km->env.test;
	bool held = false;
	int r, j;

	for (r = 0; r < MM_RMRS; r++)
		for (j = 0; j < 2; j++)
			held |= mm->rmr[r].over[j] == i && mm_valid(mm, mm->rmr[r].key[j]);
	if (held) {
		KD_BAD_STATE(test, dat_lmr_free(mm->lmr[i].h), LMR_IN_USE);
		return;
	}
	km_drop_lmr(mm->km, mm->lmr[i].h);
	KUNIT_EXPECT_FALSE(test, mm_valid(mm, mm->lmr[i].key));
	mm_allocate(mm, &mm->lmr[i]);
	mm->frees++;
}

static void mm_free_rmr(struct mm *mm, int i)
{
	struct kunit *test = mm->km->env.test;
	struct mm_rmr *rmr = &mm->rmr[i];

	km_drop_rmr(mm->km, rmr->h);
	KUNIT_EXPECT_FALSE(test, mm_valid(mm, rmr->key[0]) || mm_valid(mm, rmr->key[1]));
	*rmr = (struct mm_rmr) { .h = km_rmr(mm->km, false) };
	mm->frees++;
}

static void mm_step(struct mm *mm)
{
	struct kd_env *env = &mm->km->env;
	u32 r = mm_random(mm, 1000);

	if (r < 250)
		mm_fmr(mm);
	else if (r < 420)
		mm_inv(mm);
	else if (r < 600)
		mm_bind(mm);
	else if (r < 660)
		mm_peer(mm);
	else if (r < 860)
		fake_ib_complete(env->qp, false, IB_WC_SUCCESS);
	else if (r < 910)
		fake_ib_complete_all(env->qp, false, IB_WC_SUCCESS);
	else if (r < 960)
		mm_drain(mm);
	else if (r < 972)
		mm_end(mm);
	if (r < 960)
		return;
	mm_settle(mm);
	mm_check(mm);
	if (r >= 990)
		mm_free_lmr(mm, mm_random(mm, MM_LMRS));
	else if (r >= 985)
		mm_free_rmr(mm, mm_random(mm, MM_RMRS));
}

static void mm_model_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	struct mm *mm = kunit_kzalloc(test, sizeof(*mm), GFP_KERNEL);
	u32 seed = get_random_u32();
	int i;

	KUNIT_ASSERT_NOT_NULL(test, mm);
	kunit_info(test, "seed %#x\n", seed);
	prandom_seed_state(&mm->rnd, seed);
	mm->km = km;
	for (i = 0; i < MM_LMRS; i++)
		mm_allocate(mm, &mm->lmr[i]);
	for (i = 0; i < MM_RMRS; i++)
		mm->rmr[i].h = km_rmr(km, false);
	for (mm->step = 0; mm->step < MM_STEPS; mm->step++) {
		mm_step(mm);
		if (fake_ib_violations(km->env.dev)) {
			KUNIT_FAIL(test, "step %u: %s", mm->step,
				   fake_ib_last_violation(km->env.dev));
			break;
		}
	}
	kunit_info(test, "%u bound, %u invalidated, %u windows, %u by the peer, %u freed, %u ends\n",
		   mm->fmrs, mm->invs, mm->binds, mm->peers, mm->frees, mm->ends);
	KUNIT_EXPECT_GT(test, mm->fmrs, 100U);
	KUNIT_EXPECT_GT(test, mm->invs, 50U);
	KUNIT_EXPECT_GT(test, mm->binds, 50U);
	KUNIT_EXPECT_GT(test, mm->peers, 20U);
	KUNIT_EXPECT_GT(test, mm->frees, 10U);
}

static struct kunit_case mem_model_cases[] = {
	KD_CASE(mm_model_test,
		"FMR-10,FMR-13,FMR-15,RMR-06,RMR-10,RMR-13,RMR-14,SINV-03: random lives"),
	{}
};

KD_SUITE("kdapl-mem-model", mem_model_cases, km_init, km_exit);
