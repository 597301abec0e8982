// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The table that leads from a key to its MR.
 *
 * Posts look into it once per segment, so it is a hash table that most of the time
 * gives the answer with one slot of one cache line: open addressing, linear probing,
 * half of the slots taken at most. Readers hold nothing but the RCU read lock.
 *
 * What makes that simple: the index of a slot is written once in the life of a table.
 * A slot goes from free to "this index, that MR" and may lose its MR, and get another
 * one of the same index; it never stands for another index. So a reader that
 * meets its index has the right slot, and one that meets a free slot has seen them all.
 * The price is that slots without MR stay taken. They go with the table: where no slot
 * may be taken any more, a new one replaces it that has four slots or more for each MR
 * there is, which may well be smaller than the old one.
 *
 * The hash is multiplicative because devices like to count. A hash that keeps the order
 * of indexes puts them side by side without a collision, until two such runs meet on
 * the same slots: then every key of the second is looked for all along the first.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "core.h"

#define KEYS_MIN_BITS	5

/* Four slots to a cache line of 64 bytes, none in two. */
static_assert(!IS_ENABLED(CONFIG_64BIT) ||
	      offsetof(struct kdapl_key_table, slots) % sizeof(struct kdapl_key_slot) == 0);

/* What all IAs without MRs have, so that nobody looks for a NULL; never written. */
static struct kdapl_key_table keys_none = {
	.bits = 1,
	.mask = 1,
	.slots = { { .index = KDAPL_NO_INDEX }, { .index = KDAPL_NO_INDEX } },
};

#ifdef KDAPL_KUNIT
bool kdapl_test_no_key_table;
#else
#define kdapl_test_no_key_table	false
#endif

/* For @count MRs and as many more, or a few. */
static struct kdapl_key_table *keys_alloc(unsigned int count)
{
	unsigned int bits = max_t(unsigned int, order_base_2(4 * count), KEYS_MIN_BITS);
	struct kdapl_key_table *table;
	u32 i;

	if (kdapl_test_no_key_table)
		return NULL;
	table = kvmalloc(struct_size(table, slots, BIT(bits)), GFP_KERNEL);
	if (!table)
		return NULL;
	table->bits = bits;
	table->mask = BIT(bits) - 1;
	table->left = BIT(bits) / 2;
	for (i = 0; i <= table->mask; i++) {
		table->slots[i].index = KDAPL_NO_INDEX;
		RCU_INIT_POINTER(table->slots[i].mr, NULL);
	}
	return table;
}

static void keys_free(struct kdapl_key_table *table)
{
	if (table != &keys_none)
		kvfree_rcu(table, rcu);
}

static struct kdapl_key_table *keys_table(struct kdapl_keys *keys)
{
	return rcu_dereference_protected(keys->table, lockdep_is_held(&keys->mutex));
}

static struct kdapl_mr *keys_mr(struct kdapl_keys *keys, const struct kdapl_key_slot *slot)
{
	return rcu_dereference_protected(slot->mr, lockdep_is_held(&keys->mutex));
}

/* The slot of an index, or the free one it would get: there always is one. */
static struct kdapl_key_slot *keys_slot(struct kdapl_key_table *table, u32 index)
{
	u32 i = hash_32(index, table->bits);

	while (table->slots[i].index != index && table->slots[i].index != KDAPL_NO_INDEX)
		i = (i + 1) & table->mask;
	return &table->slots[i];
}

static void keys_take(struct kdapl_key_table *table, struct kdapl_key_slot *slot,
		      struct kdapl_mr *mr, u32 index)
{
	if (slot->index == KDAPL_NO_INDEX) {
		WRITE_ONCE(slot->index, index);
		table->left--;
	}
	rcu_assign_pointer(slot->mr, mr);
}

/* A table with room for one more takes the place of the present one. */
static struct kdapl_key_table *keys_replace(struct kdapl_keys *keys)
{
	struct kdapl_key_table *old = keys_table(keys), *table = keys_alloc(keys->count);
	const struct kdapl_key_slot *slot;
	struct kdapl_mr *mr;

	if (!table)
		return NULL;
	for (slot = old->slots; slot <= &old->slots[old->mask]; slot++) {
		mr = keys_mr(keys, slot);
		if (mr)
			keys_take(table, keys_slot(table, slot->index), mr, slot->index);
	}
	rcu_assign_pointer(keys->table, table);
	keys_free(old);
	return table;
}

/**
 * kdapl_keys_insert - an MR is found by its index from now on
 * @keys: of its IA
 * @index: the upper 24 bits of its keys
 * @mr: not in the table
 *
 * Context: may sleep.
 * Return: 0; -EBUSY when another MR has the index; -ENOMEM, and all is as it was.
 */
int kdapl_keys_insert(struct kdapl_keys *keys, u32 index, struct kdapl_mr *mr)
{
	struct kdapl_key_table *table;
	struct kdapl_key_slot *slot;
	unsigned int noio;
	int ret = 0;

	/*
	 * For every holder of the mutex: some callers must not wait for I/O (D-32), and
	 * would do so by waiting for a holder that does.
	 */
	noio = memalloc_noio_save();
	mutex_lock(&keys->mutex);
	table = keys_table(keys);
	slot = keys_slot(table, index);
	if (keys_mr(keys, slot)) {
		ret = -EBUSY;
		goto out;
	}
	if (slot->index == KDAPL_NO_INDEX && !table->left) {
		table = keys_replace(keys);
		if (!table) {
			ret = -ENOMEM;
			goto out;
		}
		slot = keys_slot(table, index);
	}
	keys_take(table, slot, mr, index);
	keys->count++;
out:
	mutex_unlock(&keys->mutex);
	memalloc_noio_restore(noio);
	return ret;
}

/**
 * kdapl_keys_remove - an MR is not found any more
 * @keys: of its IA
 * @index: as it was inserted
 * @mr: in the table or not; another MR may have the index
 *
 * Readers may go on to use it until a grace period has passed.
 *
 * Context: may sleep, allocates nothing.
 */
void kdapl_keys_remove(struct kdapl_keys *keys, u32 index, struct kdapl_mr *mr)
{
	struct kdapl_key_slot *slot;

	mutex_lock(&keys->mutex);
	slot = keys_slot(keys_table(keys), index);
	if (keys_mr(keys, slot) == mr) {
		RCU_INIT_POINTER(slot->mr, NULL);
		keys->count--;
	}
	mutex_unlock(&keys->mutex);
}

/**
 * kdapl_keys_init - an empty table, which takes no memory
 * @keys: of an IA
 */
void kdapl_keys_init(struct kdapl_keys *keys)
{
	RCU_INIT_POINTER(keys->table, &keys_none);
	keys->count = 0;
	mutex_init(&keys->mutex);
}

/**
 * kdapl_keys_destroy - the end of a table
 * @keys: of an IA that is not in use, but maybe still looked at
 *
 * Context: any.
 */
void kdapl_keys_destroy(struct kdapl_keys *keys)
{
	struct kdapl_key_table *table = rcu_dereference_protected(keys->table, true);

	RCU_INIT_POINTER(keys->table, &keys_none);
	keys_free(table);
}
