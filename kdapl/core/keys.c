// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The table that leads from a key to its MR (D-76).
 *
 * Posts look up a key for each segment, so this is a hash table in which most lookups
 * touch one slot of one cache line: open addressing, linear probing, at most half of the
 * slots taken. Readers hold only the RCU read lock.
 *
 * The index of a slot is written once in the life of a table. A slot may lose its MR and
 * get another one with the same index, but it never gets another index. So a reader that
 * meets its index has found the slot, and one that meets a free slot knows that there is
 * none. The price is that a slot without an MR stays taken until the whole table is replaced.
 * That happens when no more slots may be taken. The new table has at least four slots for
 * each MR, and may be smaller than the old one.
 *
 * The hash is multiplicative because devices hand out consecutive indexes. A hash that
 * keeps their order would place them side by side without a collision, until two such runs
 * meet: then each lookup of the second run probes all of the first one.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "core.h"

#define KEYS_MIN_BITS	5

/* A cache line of 64 bytes holds four slots, and no slot crosses one. */
static_assert(!IS_ENABLED(CONFIG_64BIT) ||
	      offsetof(struct kdapl_key_table, slots) % sizeof(struct kdapl_key_slot) == 0);

/* The table of all IAs without MRs, so that readers need not test for NULL; never written. */
static struct kdapl_key_table keys_none = {
	.shift = 31,
	.mask = 1,
	.slots = { { .index = KDAPL_NO_INDEX }, { .index = KDAPL_NO_INDEX } },
};

#ifdef KDAPL_KUNIT
bool kdapl_test_no_key_table;
#else
#define kdapl_test_no_key_table	false
#endif

/* A table for twice @count MRs, or more. */
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
	table->shift = 32 - bits;
	table->mask = BIT(bits) - 1;
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

/* The slot of an index, or the free one it would get. There always is one. */
static struct kdapl_key_slot *keys_slot(struct kdapl_key_table *table, u32 index)
{
	u32 i = kdapl_keys_hash(table, index);

	while (table->slots[i].index != index && table->slots[i].index != KDAPL_NO_INDEX)
		i = (i + 1) & table->mask;
	return &table->slots[i];
}

static void keys_take(struct kdapl_keys *keys, struct kdapl_key_slot *slot, struct kdapl_mr *mr,
		      u32 index)
{
	if (slot->index == KDAPL_NO_INDEX) {
		WRITE_ONCE(slot->index, index);
		keys->left--;
	}
	rcu_assign_pointer(slot->mr, mr);
}

/* Replace the table by one with room for at least one more. */
static struct kdapl_key_table *keys_replace(struct kdapl_keys *keys)
{
	struct kdapl_key_table *old = keys_table(keys), *table = keys_alloc(keys->count);
	const struct kdapl_key_slot *slot;
	struct kdapl_mr *mr;

	if (!table)
		return NULL;
	keys->left = (table->mask + 1) / 2;
	for (slot = old->slots; slot <= &old->slots[old->mask]; slot++) {
		mr = keys_mr(keys, slot);
		if (mr)
			keys_take(keys, keys_slot(table, slot->index), mr, slot->index);
	}
	rcu_assign_pointer(keys->table, table);
	keys_free(old);
	return table;
}

/**
 * kdapl_keys_insert - add an MR
 * @keys: table of its IA
 * @index: the upper 24 bits of its keys
 * @mr: the MR, not in the table
 *
 * Context: may sleep.
 * Return: 0; -EBUSY if another MR has the index; -ENOMEM.
 */
int kdapl_keys_insert(struct kdapl_keys *keys, u32 index, struct kdapl_mr *mr)
{
	struct kdapl_key_table *table;
	struct kdapl_key_slot *slot;
	unsigned int noio;
	int ret = 0;

	/*
	 * Some callers must not wait for I/O (D-32). They may wait for this mutex, so no
	 * holder of it may wait for I/O either.
	 */
	noio = memalloc_noio_save();
	mutex_lock(&keys->mutex);
	table = keys_table(keys);
	slot = keys_slot(table, index);
	if (keys_mr(keys, slot)) {
		ret = -EBUSY;
		goto out;
	}
	if (slot->index == KDAPL_NO_INDEX && !keys->left) {
		table = keys_replace(keys);
		if (!table) {
			ret = -ENOMEM;
			goto out;
		}
		slot = keys_slot(table, index);
	}
	keys_take(keys, slot, mr, index);
	keys->count++;
out:
	mutex_unlock(&keys->mutex);
	memalloc_noio_restore(noio);
	return ret;
}

/**
 * kdapl_keys_remove - remove an MR
 * @keys: table of its IA
 * @index: index it was inserted with
 * @mr: the MR; nothing happens if it is not in the table
 *
 * Readers may use it for another grace period.
 *
 * Context: may sleep, does not allocate.
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
 * kdapl_keys_init - begin with an empty table, which takes no memory
 * @keys: table of an IA
 */
void kdapl_keys_init(struct kdapl_keys *keys)
{
	RCU_INIT_POINTER(keys->table, &keys_none);
	keys->count = 0;
	keys->left = 0;
	mutex_init(&keys->mutex);
}

/**
 * kdapl_keys_destroy - free a table
 * @keys: table of an IA that is no longer in use; readers may still look at it
 *
 * Context: any.
 */
void kdapl_keys_destroy(struct kdapl_keys *keys)
{
	struct kdapl_key_table *table = rcu_dereference_protected(keys->table, true);

	RCU_INIT_POINTER(keys->table, &keys_none);
	keys->left = 0;
	keys_free(table);
}
