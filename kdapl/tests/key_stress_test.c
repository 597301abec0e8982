// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The lookup of keys under fire: some tasks bind, invalidate, free and have their
 * keys taken away by the peer, others post with these keys, and a model says of
 * every answer whether it was allowed.
 *
 * The model of a slot (an LMR or RMR) is the list of all states it was in. Who is
 * about to change it writes down the next state and raises @hi, makes the call, and
 * raises @lo when the change is certain. So a call that saw @lo before and @hi after
 * it was answered by one of the states in between. A torn read (the key of one state
 * with the range of another) shows as an answer none of them gives.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/prandom.h>
#include <linux/random.h>

#include "kd_mem.h"

#define KS_HISTORY	256
#define KS_OWNERS	2
#define KS_LOOKERS	3
#define KS_SLOTS	(KS_OWNERS * 2)
#define KS_TIME		HZ	/* at least, and at most: */
#define KS_LONG		(20 * HZ)
#define KS_ENOUGH	50

enum ks_kind { KS_FMR, KS_RMR, KS_KINDS };

enum ks_phase { KS_NOTHING, KS_BOUND, KS_UNKNOWN };

/* What a call answers, as bits. */
#define KS_OK		BIT(0)
#define KS_RANGE	BIT(1)
#define KS_KEY		BIT(2)
#define KS_OTHER	BIT(3)

struct ks_state {
	enum ks_phase phase;
	u32 key;
	u64 start;
	u64 length;
};

/* An LMR or RMR; a state at least as new as @lo is in effect, and none newer than @hi. */
struct ks_slot {
	enum ks_kind kind;
	DAT_LMR_HANDLE lmr;
	DAT_RMR_HANDLE rmr;
	unsigned long lo;
	unsigned long hi;
	struct ks_state history[KS_HISTORY];
};

struct ks;

/**
 * struct ks_task - a task, with an EP of its own
 * @ks: all of it
 * @done: it has ended
 * @rnd: its random numbers
 * @env: its EP, and where that completes
 * @slots: an owner's
 * @count: what it did, or the answers it got, by bit number
 * @sure: answers of which only one was allowed
 * @wrong: what must not be
 * @what: the first of that
 */
struct ks_task {
	struct ks *ks;
	struct completion done;
	struct rnd_state rnd;
	struct kd_env env;
	struct ks_slot *slots;
	unsigned long count[4];
	unsigned long sure;
	unsigned int wrong;
	char what[128];
};

struct ks {
	struct km *km;
	bool stop;
	struct ks_slot slot[KS_SLOTS];
	struct ks_task task[KS_OWNERS + KS_LOOKERS];
};

static void ks_wrong(struct ks_task *t, const char *what, const struct ks_slot *slot, u32 a, u32 b)
{
	if (!t->wrong++)
		snprintf(t->what, sizeof(t->what), "%s: kind %d, %#x, %#x", what, slot->kind, a, b);
}

/* The next state of a slot, from now on possible. */
static void ks_announce(struct ks_slot *slot, enum ks_phase phase, u32 key, u64 start, u64 length)
{
	slot->history[(slot->hi + 1) % KS_HISTORY] = (struct ks_state) {
		.phase = phase, .key = key, .start = start, .length = length,
	};
	smp_store_release(&slot->hi, slot->hi + 1);	/* pairs with ks_allowed() */
	smp_mb();	/* before the call */
}

/* From now on it is the only one. */
static void ks_settle(struct ks_slot *slot)
{
	smp_mb();	/* after the call */
	WRITE_ONCE(slot->lo, slot->hi);
}

/* Let others run, also where nobody is preempted, @n times at the average. */
static void ks_breathe(struct ks_task *t, int n)
{
	n = prandom_u32_state(&t->rnd) % (2 * n + 1);
	while (n--)
		schedule();
}

/* Everything posted on the EP of a task is done and has been reported. */
static void ks_finish(struct ks_task *t, struct ks_slot *slot)
{
	DAT_EVENT event;

	fake_ib_complete_all(t->env.qp, false, IB_WC_SUCCESS);
	while (kd_next(t->env.req, &event)) {
		if (event.event_number == DAT_DTO_COMPLETION_EVENT &&
		    event.event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS)
			ks_wrong(t, "status", slot,
				 event.event_data.dto_completion_event_data.status, 0);
	}
}

static void ks_expect_ok(struct ks_task *t, struct ks_slot *slot, DAT_RETURN ret, const char *what)
{
	if (ret != DAT_SUCCESS)
		ks_wrong(t, what, slot, ret, 0);
}

/* The key is taken away by the peer. */
static void ks_remote_inv(struct ks_task *t, struct ks_slot *slot, u32 key)
{
	DAT_LMR_TRIPLET iov = kd_seg(&t->ks->km->env, KD_WO, 0, 64);
	DAT_EVENT event;

	ks_expect_ok(t, slot, kd_post(t->env.ep, KD_RECV, 1, &iov, 1, NULL, 0), "receive");
	ks_announce(slot, KS_NOTHING, 0, 0, 0);
	if (fake_ib_recv_inv(t->env.qp, 12, key))
		ks_wrong(t, "no receive", slot, key, 0);
	while (!kd_next(t->env.recv, &event))
		cond_resched();
	ks_settle(slot);
}

static void ks_own_fmr(struct ks_task *t, struct ks_slot *slot)
{
	u32 r = prandom_u32_state(&t->rnd), n = 1 + r % 3, first = (r >> 4) % (KM_PAGES - 3);
	struct km *km = t->ks->km;
	DAT_REGION_DESCRIPTION region = { .for_physical = km->pa + first };
	DAT_LMR_COOKIE cookie = {};
	struct km_keys keys, ahead;

	ks_expect_ok(t, slot, kdat_lmr_next_contexts(slot->lmr, &ahead.lmr, &ahead.rmr), "next");
	ks_announce(slot, KS_BOUND, ahead.lmr, km->pa[first], n * PAGE_SIZE);
	ks_expect_ok(t, slot, dat_lmr_fmr(slot->lmr, DAT_MEM_TYPE_PHYSICAL, region, n,
					  DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, t->env.ep, cookie,
					  0, &keys.lmr, &keys.rmr), "fmr");
	ks_settle(slot);
	if (keys.lmr != ahead.lmr)
		ks_wrong(t, "keys", slot, keys.lmr, ahead.lmr);
	ks_finish(t, slot);
	ks_breathe(t, 4);
	if (r & BIT(10)) {
		ks_remote_inv(t, slot, keys.rmr);
	} else {
		ks_announce(slot, KS_NOTHING, 0, 0, 0);
		ks_expect_ok(t, slot, dat_lmr_invalidate(slot->lmr, t->env.ep, cookie, 0),
			     "invalidate");
		ks_settle(slot);
	}
	ks_finish(t, slot);
	if ((r >> 12) % 64)
		return;
	ks_expect_ok(t, slot, dat_lmr_free(slot->lmr), "free");
	ks_expect_ok(t, slot, dat_lmr_allocate(km->env.ia, km->env.pz, 3, DAT_LMR_SCOPE_PZ,
					       &slot->lmr), "allocate");
}

static void ks_own_rmr(struct ks_task *t, struct ks_slot *slot)
{
	u32 r = prandom_u32_state(&t->rnd), offset = r % 1000, length = 1 + (r >> 10) % 1000;
	struct kd_mem *mem = &t->ks->km->env.mem[KD_RW];
	DAT_LMR_TRIPLET part = { mem->addr + offset, length, mem->lmr_context };
	DAT_RMR_COOKIE cookie = {};
	DAT_RMR_CONTEXT key = 0;

	/* the key is known afterwards only; until then anything may be */
	ks_announce(slot, KS_UNKNOWN, 0, 0, 0);
	ks_expect_ok(t, slot, dat_rmr_bind(slot->rmr, mem->lmr, &part, KM_REMOTE, DAT_VA_TYPE_VA,
					   t->env.ep, cookie, 0, &key), "bind");
	ks_announce(slot, KS_BOUND, key, mem->addr + offset, length);
	ks_settle(slot);
	ks_finish(t, slot);
	ks_breathe(t, 4);
	if (r & BIT(20))
		return;
	if (r & BIT(21)) {
		ks_remote_inv(t, slot, key);
		return;
	}
	part.segment_length = 0;
	ks_announce(slot, KS_NOTHING, 0, 0, 0);
	ks_expect_ok(t, slot, dat_rmr_bind(slot->rmr, mem->lmr, &part, 0, DAT_VA_TYPE_VA, t->env.ep,
					   cookie, 0, &key), "unbind");
	ks_settle(slot);
	ks_finish(t, slot);
}

static int ks_owner(void *data)
{
	struct ks_task *t = data;
	u32 n;

	while (!READ_ONCE(t->ks->stop)) {
		n = prandom_u32_state(&t->rnd) % 3 == 0;
		t->count[n]++;
		if (n == KS_RMR)
			ks_own_rmr(t, &t->slots[n]);
		else
			ks_own_fmr(t, &t->slots[n]);
		ks_breathe(t, 1);
	}
	complete(&t->done);
	return 0;
}

/* What the states from @from to @to may answer; false: too long ago to know. */
static bool ks_allowed(const struct ks_slot *slot, unsigned long from, unsigned long to, u32 key,
		       u64 addr, u64 length, unsigned int *allowed)
{
	unsigned long i;

	*allowed = 0;
	for (i = from; i <= to && to - from < KS_HISTORY / 2; i++) {
		const struct ks_state *s = &slot->history[i % KS_HISTORY];

		if (s->phase == KS_UNKNOWN)
			*allowed |= KS_OK | KS_RANGE | KS_KEY;
		else if (s->phase == KS_NOTHING || s->key != key)
			*allowed |= KS_KEY;
		else if (length <= s->length && addr - s->start <= s->length - length)
			*allowed |= KS_OK;
		else
			*allowed |= KS_RANGE;
	}
	smp_rmb();	/* the states before what tells whether they still are those */
	return READ_ONCE(slot->hi) - from < KS_HISTORY / 2;
}

static unsigned int ks_answer(DAT_RETURN ret)
{
	if (ret == DAT_SUCCESS)
		return KS_OK;
	if (DAT_GET_TYPE(ret) == DAT_INVALID_PARAMETER)
		return KS_RANGE;
	return DAT_GET_TYPE(ret) == DAT_PRIVILEGES_VIOLATION ? KS_KEY : KS_OTHER;
}

/* One call that looks a key up. */
static DAT_RETURN ks_call(struct ks_task *t, enum ks_kind kind, u32 key, u64 addr, u32 length)
{
	DAT_RMR_TRIPLET sink = kd_remote(addr, length, key), source = kd_remote(0, length, 1);
	DAT_LMR_TRIPLET iov = { addr, length, key };
	DAT_DTO_COOKIE cookie = {};

	if (kind == KS_RMR)
		return dat_ep_post_rdma_read_to_rmr(t->env.ep, &sink, cookie, &source, 0);
	return dat_ep_post_send(t->env.ep, 1, &iov, cookie, 0);
}

static void ks_look(struct ks_task *t, struct ks_slot *slot)
{
	u32 r = prandom_u32_state(&t->rnd), length;
	unsigned int answer, allowed;
	unsigned long from, to;
	struct ks_state s;
	u64 addr;

	/* a state of just now, or of a moment ago, and perhaps slightly wrong */
	to = smp_load_acquire(&slot->hi);	/* pairs with ks_announce() */
	s = slot->history[(to - (r & 3)) % KS_HISTORY];
	if (s.phase != KS_BOUND || !s.length)
		return;
	addr = s.start + (r >> 8) % s.length;
	length = 1 + (r >> 12) % (s.length - (addr - s.start));
	switch ((r >> 2) & 15) {
	case 0:
		length = s.length - (addr - s.start) + 1;
		break;
	case 1:
		addr = s.start - 1;
		break;
	case 2:
		s.key ^= 1;
		break;
	case 3:
		addr = s.start;
		length = s.length;
		break;
	}
	from = READ_ONCE(slot->lo);
	smp_mb();	/* before the call */
	answer = ks_answer(ks_call(t, slot->kind, s.key, addr, length));
	smp_mb();	/* after the call */
	to = smp_load_acquire(&slot->hi);	/* pairs with ks_announce() */
	t->count[ilog2(answer)]++;
	if (ks_allowed(slot, from, to, s.key, addr, length, &allowed)) {
		if (!(answer & allowed))
			ks_wrong(t, "answer", slot, answer, allowed);
		t->sure += is_power_of_2(allowed);
	}
	if (answer == KS_OK)
		ks_finish(t, slot);
}

static int ks_looker(void *data)
{
	struct ks_task *t = data;

	while (!READ_ONCE(t->ks->stop)) {
		ks_look(t, &t->ks->slot[prandom_u32_state(&t->rnd) % KS_SLOTS]);
		if (!(prandom_u32_state(&t->rnd) % 16))
			ks_breathe(t, 1);
	}
	complete(&t->done);
	return 0;
}

/* An EP for a task, with EVDs of its own. */
static void ks_task_open(struct ks *ks, struct ks_task *t, u32 seed)
{
	struct kunit *test = ks->km->env.test;

	t->ks = ks;
	t->env = ks->km->env;
	init_completion(&t->done);
	prandom_seed_state(&t->rnd, seed);
	KD_ASSERT_OK(test, dat_evd_kcreate(t->env.ia, 64, DAT_UPCALL_DISABLE, NULL,
					   DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG,
					   &t->env.req));
	KD_ASSERT_OK(test, dat_evd_kcreate(t->env.ia, 64, DAT_UPCALL_DISABLE, NULL,
					   DAT_EVD_DTO_FLAG, &t->env.recv));
	kd_ep(&t->env, NULL);
	kd_connect(&t->env);
}

static void ks_task_close(struct ks *ks, struct ks_task *t)
{
	struct kunit *test = ks->km->env.test;

	kd_ep_free(&t->env);
	KD_EXPECT_OK(test, dat_evd_free(t->env.req));
	KD_EXPECT_OK(test, dat_evd_free(t->env.recv));
}

/* Has each answer come often enough? On a slow machine that takes its time. */
static bool ks_enough(struct ks *ks)
{
	unsigned long sum, sure = 0;
	int i, j;

	for (j = 0; j < 3; j++) {
		for (i = KS_OWNERS, sum = 0; i < ARRAY_SIZE(ks->task); i++)
			sum += READ_ONCE(ks->task[i].count[j]);
		if (sum <= KS_ENOUGH)
			return false;
	}
	for (i = KS_OWNERS; i < ARRAY_SIZE(ks->task); i++)
		sure += READ_ONCE(ks->task[i].sure);
	return sure > KS_ENOUGH;
}

static void ks_test(struct kunit *test)
{
	struct km *km = km_open(test, NULL);
	unsigned long count[4] = {}, sure = 0, began;
	u32 seed = get_random_u32();
	struct ks *ks;
	int i, j;

	kunit_info(test, "seed %#x\n", seed);
	ks = kunit_kzalloc(test, sizeof(*ks), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, ks);
	ks->km = km;
	fake_ib_lax_keys(km->env.dev, true);
	for (i = 0; i < KS_SLOTS; i++) {
		ks->slot[i].kind = i % KS_KINDS;
		if (ks->slot[i].kind == KS_RMR)
			ks->slot[i].rmr = km_rmr(km, false);
		else
			KD_ASSERT_OK(test, dat_lmr_allocate(km->env.ia, km->env.pz, 3,
							    DAT_LMR_SCOPE_PZ, &ks->slot[i].lmr));
	}
	for (i = 0; i < ARRAY_SIZE(ks->task); i++) {
		ks_task_open(ks, &ks->task[i], seed + i);
		if (i < KS_OWNERS)
			ks->task[i].slots = &ks->slot[KS_KINDS * i];
	}
	began = jiffies;
	for (i = 0; i < ARRAY_SIZE(ks->task); i++) {
		struct ks_task *t = &ks->task[i];

		if (IS_ERR(kthread_run(i < KS_OWNERS ? ks_owner : ks_looker, t, "kdapl-keys%d",
				       i))) {
			KUNIT_FAIL(test, "no task");
			complete(&t->done);
		}
	}
	do {
		msleep(100);
	} while (time_before(jiffies, began + KS_TIME) ||
		 (!ks_enough(ks) && time_before(jiffies, began + KS_LONG)));
	WRITE_ONCE(ks->stop, true);
	for (i = 0; i < ARRAY_SIZE(ks->task); i++) {
		struct ks_task *t = &ks->task[i];

		wait_for_completion(&t->done);
		KUNIT_EXPECT_EQ_MSG(test, t->wrong, 0U, "task %d: %s", i, t->what);
		if (i < KS_OWNERS) {
			kunit_info(test, "owner: %lu %lu\n", t->count[0], t->count[1]);
			continue;
		}
		for (j = 0; j < 4; j++)
			count[j] += t->count[j];
		sure += t->sure;
	}
	kunit_info(test, "answers: %lu ok, %lu range, %lu key, %lu other; %lu sure\n", count[0],
		   count[1], count[2], count[3], sure);
	/* each answer came, so each was put to the test */
	for (j = 0; j < 3; j++)
		KUNIT_EXPECT_GT(test, count[j], (unsigned long)KS_ENOUGH);
	KUNIT_EXPECT_EQ(test, count[3], 0UL);
	KUNIT_EXPECT_GT(test, sure, (unsigned long)KS_ENOUGH);
	for (i = 0; i < ARRAY_SIZE(ks->task); i++)
		ks_task_close(ks, &ks->task[i]);
	for (i = 0; i < KS_SLOTS; i += KS_KINDS)
		KD_EXPECT_OK(test, dat_lmr_free(ks->slot[i].lmr));
	fake_ib_lax_keys(km->env.dev, false);
}

static struct kunit_case key_stress_cases[] = {
	KD_CASE(ks_test,
		"SIL-03,EP-POST-22,FMR-04,RMR-06,SINV-03: keys looked up while they change"),
	{}
};

KD_SUITE("kdapl-key-stress", key_stress_cases, km_init, km_exit);
