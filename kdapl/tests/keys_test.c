// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The table of keys by itself: whatever indexes a device hands out, in whatever order
 * they come and go, a key leads to its MR or to none, and the table stays as small as what
 * is in it.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/prandom.h>
#include <linux/sched.h>

#include "../ia/ia_api.h"
#include "kd_case.h"

#define KEYS_MANY	70000
#define KEYS_INDEXES	BIT(24)

/* The table, and MRs of which it knows the index only. */
struct keys_env {
	struct kdapl_keys keys;
	struct kdapl_mr *mr;
};

static int keys_init(struct kunit *test)
{
	struct keys_env *env = kunit_kzalloc(test, sizeof(*env), GFP_KERNEL);

	if (!env)
		return -ENOMEM;
	env->mr = kvcalloc(KEYS_MANY, sizeof(*env->mr), GFP_KERNEL);
	if (!env->mr)
		return -ENOMEM;
	kdapl_keys_init(&env->keys);
	test->priv = env;
	return 0;
}

static void keys_exit(struct kunit *test)
{
	struct keys_env *env = test->priv;

	kdapl_test_no_key_table = false;
	if (!env)
		return;
	kdapl_keys_destroy(&env->keys);
	synchronize_rcu();
	kvfree(env->mr);
}

static struct kdapl_mr *keys_find(struct keys_env *env, u32 index)
{
	struct kdapl_mr *mr;

	rcu_read_lock();
	mr = kdapl_keys_find(&env->keys, index << 8 | 0xa5);
	rcu_read_unlock();
	return mr;
}

static u32 keys_size(struct keys_env *env)
{
	u32 size;

	rcu_read_lock();
	size = rcu_dereference(env->keys.table)->mask + 1;
	rcu_read_unlock();
	return size;
}

static int keys_add(struct keys_env *env, u32 i, u32 index)
{
	env->mr[i].index = index;
	return kdapl_keys_insert(&env->keys, env->mr[i].index, &env->mr[i]);
}

static void keys_del(struct keys_env *env, u32 i)
{
	kdapl_keys_remove(&env->keys, env->mr[i].index, &env->mr[i]);
}

/* How many of the MRs from @from to @to - 1 are not found. */
static u32 keys_wrong(struct keys_env *env, u32 from, u32 to)
{
	u32 i, wrong = 0;

	for (i = from; i < to; i++)
		wrong += keys_find(env, env->mr[i].index) != &env->mr[i];
	return wrong;
}

static void keys_simple_test(struct kunit *test)
{
	struct keys_env *env = test->priv;
	struct kdapl_mr *a = &env->mr[0], *b = &env->mr[1];

	/* nothing in it, and nothing to be removed */
	KUNIT_EXPECT_NULL(test, keys_find(env, 0));
	KUNIT_EXPECT_NULL(test, keys_find(env, 1));
	KUNIT_EXPECT_NULL(test, keys_find(env, KEYS_INDEXES - 1));
	keys_del(env, 0);
	KUNIT_EXPECT_EQ(test, env->keys.count, 0U);

	/* 0, of the reserved LMR, is an index like others */
	KUNIT_EXPECT_EQ(test, keys_add(env, 0, 0), 0);
	KUNIT_EXPECT_EQ(test, keys_add(env, 1, KEYS_INDEXES - 1), 0);
	KUNIT_EXPECT_PTR_EQ(test, keys_find(env, 0), a);
	KUNIT_EXPECT_PTR_EQ(test, keys_find(env, KEYS_INDEXES - 1), b);
	KUNIT_EXPECT_NULL(test, keys_find(env, 1));
	KUNIT_EXPECT_EQ(test, env->keys.count, 2U);

	/* who has not got it cannot have it or take it away */
	KUNIT_EXPECT_EQ(test, keys_add(env, 2, 0), -EBUSY);
	KUNIT_EXPECT_EQ(test, kdapl_keys_insert(&env->keys, a->index, a), -EBUSY);
	keys_del(env, 2);
	KUNIT_EXPECT_PTR_EQ(test, keys_find(env, 0), a);
	KUNIT_EXPECT_EQ(test, env->keys.count, 2U);

	/* once and twice, and then somebody else */
	keys_del(env, 0);
	keys_del(env, 0);
	KUNIT_EXPECT_NULL(test, keys_find(env, 0));
	KUNIT_EXPECT_PTR_EQ(test, keys_find(env, KEYS_INDEXES - 1), b);
	KUNIT_EXPECT_EQ(test, env->keys.count, 1U);
	KUNIT_EXPECT_EQ(test, keys_add(env, 2, 0), 0);
	KUNIT_EXPECT_PTR_EQ(test, keys_find(env, 0), &env->mr[2]);
	keys_del(env, 0);
	KUNIT_EXPECT_PTR_EQ(test, keys_find(env, 0), &env->mr[2]);

	/* the low byte is no matter of the table */
	rcu_read_lock();
	KUNIT_EXPECT_PTR_EQ(test, kdapl_keys_find(&env->keys, 0xff), &env->mr[2]);
	KUNIT_EXPECT_PTR_EQ(test, kdapl_keys_find(&env->keys, U32_MAX), b);
	rcu_read_unlock();
}

static void keys_grow_test(struct kunit *test)
{
	struct keys_env *env = test->priv;
	struct rnd_state rnd;
	u32 i, wrong = 0, index;

	prandom_seed_state(&rnd, 76);
	for (i = 0; i < KEYS_MANY; i++) {
		/* random, no two the same, and up to the last */
		index = (i * 201 + 0xfedcba) % KEYS_INDEXES;
		KUNIT_ASSERT_EQ(test, keys_add(env, i, index), 0);
		wrong += keys_find(env, index) != &env->mr[i];
		index = prandom_u32_state(&rnd) % (i + 1);
		wrong += keys_find(env, env->mr[index].index) != &env->mr[index];
		if (!(i % 4096))
			cond_resched();
	}
	KUNIT_EXPECT_EQ(test, wrong, 0U);
	KUNIT_EXPECT_EQ(test, env->keys.count, (u32)KEYS_MANY);
	KUNIT_EXPECT_EQ(test, keys_wrong(env, 0, KEYS_MANY), 0U);
	KUNIT_EXPECT_GE(test, keys_size(env), 2U * KEYS_MANY);
	KUNIT_EXPECT_LT(test, keys_size(env), 4U * KEYS_MANY);
	/* what is not there is not found */
	for (i = 0; i < KEYS_MANY; i++)
		wrong += !!keys_find(env, (i * 201 + 0xfedcba + 100) % KEYS_INDEXES);
	KUNIT_EXPECT_EQ(test, wrong, 0U);
	/* and it shrinks again, as far as somebody comes at all */
	for (i = 10; i < KEYS_MANY; i++)
		keys_del(env, i);
	KUNIT_EXPECT_EQ(test, keys_wrong(env, 0, 10), 0U);
	for (i = 0; i < 4 * KEYS_MANY && keys_size(env) > 64; i++) {
		KUNIT_ASSERT_EQ(test, keys_add(env, 10, i), 0);
		keys_del(env, 10);
	}
	KUNIT_EXPECT_LE(test, keys_size(env), 64U);
	KUNIT_EXPECT_EQ(test, keys_wrong(env, 0, 10), 0U);
}

static void keys_churn_test(struct kunit *test)
{
	struct keys_env *env = test->priv;
	u32 i, slot, wrong = 0, most = 0;
	struct rnd_state rnd;

	prandom_seed_state(&rnd, 77);
	for (i = 0; i < 5; i++)
		KUNIT_ASSERT_EQ(test, keys_add(env, i, i), 0);
	for (i = 0; i < KD_TIMES(1000000); i++) {
		slot = prandom_u32_state(&rnd) % 5;
		keys_del(env, slot);
		wrong += !!keys_find(env, env->mr[slot].index);
		/* mostly new ones, sometimes the same again */
		if (i % 8)
			env->mr[slot].index = (5 + i) % KEYS_INDEXES;
		wrong += !!keys_add(env, slot, env->mr[slot].index);
		wrong += keys_find(env, env->mr[slot].index) != &env->mr[slot];
		if (!(i % 1024)) {
			most = max(most, keys_size(env));
			wrong += keys_wrong(env, 0, 5);
			cond_resched();
		}
	}
	KUNIT_EXPECT_EQ(test, env->keys.count, 5U);
	KUNIT_EXPECT_LE(test, most, 32U);
	/* the same one for ever needs no new table at all */
	kdapl_test_no_key_table = true;
	for (i = 0; i < 1000; i++) {
		keys_del(env, 0);
		wrong += !!keys_add(env, 0, env->mr[0].index);
	}
	KUNIT_EXPECT_EQ(test, wrong, 0U);
}

static void keys_memory_test(struct kunit *test)
{
	struct keys_env *env = test->priv;
	u32 n, size;

	kdapl_test_no_key_table = true;
	KUNIT_EXPECT_EQ(test, keys_add(env, 0, 3), -ENOMEM);
	KUNIT_EXPECT_NULL(test, keys_find(env, 3));
	KUNIT_EXPECT_EQ(test, env->keys.count, 0U);
	kdapl_test_no_key_table = false;
	KUNIT_EXPECT_EQ(test, keys_add(env, 0, 3), 0);
	kdapl_test_no_key_table = true;
	size = keys_size(env);
	for (n = 1; !keys_add(env, n, n * 5 + 3); n++)
		KUNIT_ASSERT_LT(test, n, size);
	KUNIT_EXPECT_EQ(test, n, size / 2);
	KUNIT_EXPECT_EQ(test, keys_add(env, n, n * 5 + 3), -ENOMEM);
	KUNIT_EXPECT_EQ(test, env->keys.count, n);
	KUNIT_EXPECT_EQ(test, keys_size(env), size);
	KUNIT_EXPECT_EQ(test, keys_wrong(env, 0, n), 0U);
	KUNIT_EXPECT_NULL(test, keys_find(env, n * 5 + 3));
	/* an index that is taken is still said to be */
	KUNIT_EXPECT_EQ(test, keys_add(env, n, 3), -EBUSY);
	kdapl_test_no_key_table = false;
	KUNIT_EXPECT_EQ(test, keys_add(env, n, n * 5 + 3), 0);
	KUNIT_EXPECT_EQ(test, keys_wrong(env, 0, n + 1), 0U);
}

#define RACE_FIXED	20
#define RACE_MOVING	1000
#define RACE_ROUNDS	50

struct keys_race {
	struct keys_env *env;
	unsigned long lookups;
	unsigned long lost;
	unsigned long wrong;
};

/* Those that stay are always found, the others or nothing. */
static int keys_race_reader(void *arg)
{
	struct keys_race *race = arg;
	struct keys_env *env = race->env;
	struct kdapl_mr *mr;
	u32 i;

	while (!kthread_should_stop()) {
		for (i = 0; i < RACE_FIXED; i++)
			race->lost += keys_find(env, env->mr[i].index) != &env->mr[i];
		for (; i < RACE_FIXED + RACE_MOVING; i++) {
			mr = keys_find(env, i * 64);
			race->wrong += mr && mr != &env->mr[i];
		}
		race->lookups++;
		cond_resched();
	}
	return 0;
}

static void keys_race_test(struct kunit *test)
{
	struct keys_env *env = test->priv;
	struct keys_race race = { .env = env };
	struct task_struct *reader;
	u32 round, i, bad = 0;

	for (i = 0; i < RACE_FIXED; i++)
		KUNIT_ASSERT_EQ(test, keys_add(env, i, i * 64), 0);
	reader = kthread_run(keys_race_reader, &race, "kdapl_keys");
	KUNIT_ASSERT_FALSE(test, IS_ERR(reader));
	/* longer if the reader has not had its turn */
	for (round = 0; round < RACE_ROUNDS ||
	     (READ_ONCE(race.lookups) <= 20 && round < 100 * RACE_ROUNDS); round++) {
		for (i = RACE_FIXED; i < RACE_FIXED + RACE_MOVING; i++) {
			bad += !!keys_add(env, i, i * 64);
			/* on one CPU the reader gets its turn only when we sleep */
			if (i % RACE_MOVING == round * 37 % RACE_MOVING)
				usleep_range(50, 100);
		}
		for (i = RACE_FIXED; i < RACE_FIXED + RACE_MOVING; i++) {
			keys_del(env, i);
			if (i % RACE_MOVING == round * 41 % RACE_MOVING)
				usleep_range(50, 100);
		}
		/* indexes nobody asks for, so that tables come and go */
		for (i = 0; i < 100; i++) {
			bad += !!keys_add(env, RACE_FIXED, 0x800000 + round * 100 + i);
			keys_del(env, RACE_FIXED);
		}
	}
	kthread_stop(reader);
	KUNIT_EXPECT_EQ(test, bad, 0U);
	KUNIT_EXPECT_EQ(test, race.lost, 0UL);
	KUNIT_EXPECT_EQ(test, race.wrong, 0UL);
	KUNIT_EXPECT_GT(test, race.lookups, 20UL);
}

static struct kunit_case keys_cases[] = {
	KD_CASE(keys_simple_test,
		"SIL-03,SIL-17: a key leads to its MR, index 0 too, and no other takes its place"),
	KD_CASE(keys_grow_test, "SIL-03: 70000 keys are found while the table grows and shrinks"),
	KD_CASE(keys_churn_test, "SIL-03: up to a million keys come and go in a table of 32"),
	KD_CASE(keys_memory_test, "SIL-03: a table that cannot grow stays as it was"),
	KD_CASE(keys_race_test, "SIL-03: keys are found while the table is replaced"),
	{}
};

static struct kunit_suite keys_suite = {
	.name = "kdapl-keys",
	.init = keys_init,
	.exit = keys_exit,
	.test_cases = keys_cases,
};

kunit_test_suite(keys_suite);
