/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The table that leads from a key to its MR.
 */
#ifndef KDAPL_CORE_KEYS_H
#define KDAPL_CORE_KEYS_H

/* Index of a free slot; those of keys have 24 bits. */
#define KDAPL_NO_INDEX	U32_MAX

/**
 * struct kdapl_key_slot - one slot of the table
 * @index: the upper 24 bits of a key; written once, KDAPL_NO_INDEX before that
 * @mr: its MR; NULL if it has been removed
 */
struct kdapl_key_slot {
	u32 index;
	struct kdapl_mr __rcu *mr;
};

/* kdapl_key_table_find() masks a byte offset */
static_assert(!(sizeof(struct kdapl_key_slot) & (sizeof(struct kdapl_key_slot) - 1)));

/**
 * struct kdapl_key_table - the slots, replaced as a whole when they are full
 * @rcu: readers may look at it for another grace period
 * @shift: 32 - the number of bits in the number of a slot
 * @mask: the number of slots - 1
 * @slots: the slots
 */
struct kdapl_key_table {
	struct rcu_head rcu;
	u32 shift;
	u32 mask;
	struct kdapl_key_slot slots[] __aligned(2 * sizeof(void *));
};

/**
 * struct kdapl_keys - the MRs of an IA by their keys
 * @table: never NULL; read under RCU
 * @mutex: serialises changes
 * @count: MRs in it
 * @left: how many more slots may be taken; at least half of them stay free
 *
 * Posts on all EPs read @table. Registering memory writes the rest, in another cache line.
 */
struct kdapl_keys {
	struct kdapl_key_table __rcu *table;

	struct mutex mutex ____cacheline_aligned_in_smp;	/* all of it */
	unsigned int count;
	u32 left;
};

void kdapl_keys_init(struct kdapl_keys *keys);
void kdapl_keys_destroy(struct kdapl_keys *keys);
int kdapl_keys_insert(struct kdapl_keys *keys, u32 index, struct kdapl_mr *mr);
void kdapl_keys_remove(struct kdapl_keys *keys, u32 index, struct kdapl_mr *mr);

/* Where the search for an index begins: hash_32(), with the shift ready. */
static inline u32 kdapl_keys_hash(const struct kdapl_key_table *table, u32 index)
{
	return __hash_32(index) >> table->shift;
}

/* The table, for several searches; RCU read side. */
static inline const struct kdapl_key_table *kdapl_keys_table(const struct kdapl_keys *keys)
{
	return rcu_dereference_check(keys->table, rcu_read_lock_sched_held());
}

/*
 * The MR with the index of this key, or NULL; RCU read side. The MR knows whether the key is
 * valid.
 */
static inline struct kdapl_mr *kdapl_key_table_find(const struct kdapl_key_table *table, u32 key)
{
	u32 index = key >> 8, found;
	const struct kdapl_key_slot *slot;
	unsigned long at;		/* of the slot, in bytes */

	at = kdapl_keys_hash(table, index) * sizeof(*slot);
	for (;;) {
		OPTIMIZER_HIDE_VAR(at);	/* or gcc computes the address twice */
		slot = (const void *)table->slots + at;
		found = READ_ONCE(slot->index);
		if (likely(found == index))
			return rcu_dereference_check(slot->mr, rcu_read_lock_sched_held());
		if (found == KDAPL_NO_INDEX)
			return NULL;
		at = (at + sizeof(*slot)) & (table->mask * sizeof(*slot));
	}
}

static inline struct kdapl_mr *kdapl_keys_find(const struct kdapl_keys *keys, u32 key)
{
	return kdapl_key_table_find(kdapl_keys_table(keys), key);
}

#endif /* KDAPL_CORE_KEYS_H */
