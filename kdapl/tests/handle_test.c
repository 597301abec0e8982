// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The handle table: whatever bit pattern is presented, a handle names the
 * object it was made for or nothing.
 */
#include <linux/delay.h>
#include <linux/random.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "kd_upcall.h"

#define SOME_HANDLES	300
#define TYPE		DAT_HANDLE_TYPE_EP

/* The layout of a handle, on purpose repeated here: tag, index, generation, type. */
#ifdef CONFIG_64BIT
#define INDEX_BITS	20
#define GEN_BITS	36
#else
#define INDEX_BITS	16
#define GEN_BITS	11
#endif

static unsigned long handle_index(DAT_HANDLE handle)
{
	return (unsigned long)handle >> 1 & (BIT(INDEX_BITS) - 1);
}

static unsigned long handle_generation(DAT_HANDLE handle)
{
	return (unsigned long)handle >> (1 + INDEX_BITS) & (BIT(GEN_BITS) - 1);
}

static void *handle_find(unsigned long word, unsigned int type)
{
	void *obj;

	rcu_read_lock();
	obj = kdapl_handle_peek((DAT_HANDLE)word, type);
	rcu_read_unlock();
	return obj;
}

/* Make SOME_HANDLES handles of all types; object i is &handles[i]. */
static DAT_HANDLE *handle_some(struct kunit *test)
{
	DAT_HANDLE *handles = kunit_kcalloc(test, SOME_HANDLES, sizeof(*handles), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, handles);
	for (i = 0; i < SOME_HANDLES; i++)
		KUNIT_ASSERT_EQ(test, kdapl_handle_alloc(&handles[i], i % KDAPL_NTYPES,
							 &handles[i]), 0);
	return handles;
}

static void handle_free_some(DAT_HANDLE *handles)
{
	int i;

	for (i = 0; i < SOME_HANDLES; i++)
		kdapl_handle_free(handles[i]);
}

static void handle_random_garbage_test(struct kunit *test)
{
	DAT_HANDLE *handles = handle_some(test);
	unsigned long near, word = 0, mask;
	int i, hits = 0, wrong = 0;
	unsigned int type;
	void *obj;

	for (i = 0; i < KD_TIMES(1000000); i++) {
		near = (unsigned long)handles[i % SOME_HANDLES];
		get_random_bytes(&word, sizeof(word));
		/* a third anywhere, a third with right type and index, a third by generation */
		mask = i % 3 == 0 ? ~0UL : i % 3 == 1 ? (BIT(GEN_BITS) - 1) << (1 + INDEX_BITS) :
							(BIT(INDEX_BITS) - 1) << 1;
		word = (near & ~mask) | (word & mask);
		rcu_read_lock();
		obj = kdapl_handle_peek_any((DAT_HANDLE)word, &type);
		rcu_read_unlock();
		hits += !!obj;
		wrong += obj && (DAT_HANDLE)word != *(DAT_HANDLE *)obj;
	}
	/* picking up a live handle by chance is no error, but it does not happen often */
	KUNIT_EXPECT_EQ(test, wrong, 0);
	KUNIT_EXPECT_LT(test, hits, 2000);
	handle_free_some(handles);
}

static void handle_stale_test(struct kunit *test)
{
	DAT_HANDLE *handles = handle_some(test);
	DAT_HANDLE *old = kunit_kcalloc(test, SOME_HANDLES, sizeof(*old), GFP_KERNEL);
	int i, round;

	KUNIT_ASSERT_NOT_NULL(test, old);
	memcpy(old, handles, SOME_HANDLES * sizeof(*old));
	handle_free_some(handles);
	for (round = 0; round < 4; round++) {
		/* the slots find new owners, of other types too */
		for (i = 0; i < SOME_HANDLES; i++) {
			KUNIT_EXPECT_NULL(test, handle_find((unsigned long)old[i],
							    i % KDAPL_NTYPES));
			KUNIT_ASSERT_EQ(test, kdapl_handle_alloc(&handles[i], (i + round) %
								 KDAPL_NTYPES, &handles[i]), 0);
		}
		for (i = 0; i < SOME_HANDLES; i++)
			KUNIT_EXPECT_NULL(test, handle_find((unsigned long)old[i],
							    i % KDAPL_NTYPES));
		handle_free_some(handles);
	}
}

/* A freed slot waits behind the other free ones, and its generation goes forward until it wraps. */
static void handle_reuse_test(struct kunit *test)
{
	const unsigned long mask = BIT(GEN_BITS) - 1;
	unsigned long gen, last = 0, first = 0;
	int i, repeats = 0, early = 0;
	DAT_HANDLE handle;

	for (i = 0; i < 200000; i++) {
		KUNIT_ASSERT_EQ(test, kdapl_handle_alloc(test, i % KDAPL_NTYPES, &handle), 0);
		gen = handle_generation(handle);
		repeats += i && ((gen - last) & mask) - 1 >= mask / 2;
		early += i && i <= 50 && handle_index(handle) == first;
		last = gen;
		if (!i)
			first = handle_index(handle);
		kdapl_handle_free(handle);
	}
	KUNIT_EXPECT_EQ(test, repeats, 0);
	KUNIT_EXPECT_EQ(test, early, 0);
}

/* Last, since the table keeps its size until the module goes. */
static void handle_exhaustion_test(struct kunit *test)
{
	const unsigned long limit = BIT(21);
	DAT_HANDLE *handles = vmalloc(limit * sizeof(*handles));
	unsigned long n, i, wrong = 0;
	DAT_HANDLE handle;
	int err = 0;

	KUNIT_ASSERT_NOT_NULL(test, handles);
	for (n = 0; n < limit; n++) {
		err = kdapl_handle_alloc(&handles[n], TYPE, &handles[n]);
		if (err)
			break;
		if (!(n % 4096))
			cond_resched();
	}
	/* plenty, and then a clean refusal, twice */
	KUNIT_EXPECT_EQ(test, err, -ENOSPC);
	KUNIT_EXPECT_GE(test, n, 65536UL);
	KUNIT_EXPECT_EQ(test, kdapl_handle_alloc(test, TYPE, &handle), -ENOSPC);
	for (i = 0; i < n; i++)
		if (handle_find((unsigned long)handles[i], TYPE) != &handles[i])
			wrong++;
	KUNIT_EXPECT_EQ(test, wrong, 0UL);
	/* one place is enough to go on */
	if (n) {
		kdapl_handle_free(handles[--n]);
		KUNIT_EXPECT_EQ(test, kdapl_handle_alloc(test, TYPE, &handle), 0);
		KUNIT_EXPECT_PTR_NE(test, handle, handles[n]);
		kdapl_handle_free(handle);
	}
	for (i = 0; i < n; i++)
		kdapl_handle_free(handles[i]);
	vfree(handles);
	KUNIT_EXPECT_EQ(test, kdapl_handle_alloc(test, TYPE, &handle), 0);
	kdapl_handle_free(handle);
}

/* A walk that stops where it is told goes on there, and meets each object once. */
static void handle_walk_test(struct kunit *test)
{
	DAT_HANDLE *handles = handle_some(test);
	unsigned long index = 0, end, stops = 0;
	int met = 0;
	void *obj;

	for (end = 7; index < BIT(INDEX_BITS); end += 7) {
		rcu_read_lock();
		for (; (obj = kdapl_handle_next(&index, end)); index++) {
			if (index >= end)
				break;
			met += obj >= (void *)handles && obj < (void *)(handles + SOME_HANDLES);
		}
		rcu_read_unlock();
		if (index != end)	/* at the end of the table */
			break;
		stops++;
	}
	KUNIT_EXPECT_NULL(test, obj);
	KUNIT_EXPECT_LT(test, index, end);
	KUNIT_EXPECT_EQ(test, met, SOME_HANDLES);
	KUNIT_EXPECT_GE(test, stops, (unsigned long)SOME_HANDLES / 7);
	handle_free_some(handles);
}

static struct kunit_case handle_cases[] = {
	KD_CASE(handle_random_garbage_test,
		"GEN-04: up to a million random patterns are refused"),
	KD_CASE(handle_stale_test, "GEN-05: freed handles stay dead while their slots live on"),
	KD_CASE(handle_reuse_test, "GEN-05: no slot at once, no value twice in 200000 handles"),
	KD_CASE(handle_walk_test, "GEN-04: a walk of the table in steps"),
	KD_CASE(handle_exhaustion_test, "GEN-04,GEN-06: a full table refuses and recovers"),
	{}
};

KD_SUITE("kdapl-handle", handle_cases, NULL, NULL);
