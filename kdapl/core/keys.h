/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * From a key to its MR.
 */
#ifndef KDAPL_CORE_KEYS_H
#define KDAPL_CORE_KEYS_H

/* Index of a free slot; those of keys have 24 bits. */
#define KDAPL_NO_INDEX	U32_MAX

/**
 * struct kdapl_key_slot - one slot of the table
 * @index: the upper 24 bits of a key; written once, KDAPL_NO_INDEX before
 * @mr: its MR; NULL where it has gone
 */
struct kdapl_key_slot {
	u32 index;
	struct kdapl_mr __rcu *mr;
};

/**
 * struct kdapl_key_table - the table proper, replaced as a whole when it is full
 * @rcu: readers may still look at it for a grace period
 * @bits: there are 2^bits slots
 * @mask: their number - 1
 * @left: free slots that may still be taken; at least half stay free
 * @slots: the slots
 */
struct kdapl_key_table {
	struct rcu_head rcu;
	u32 bits;
	u32 mask;
	u32 left;
	struct kdapl_key_slot slots[];
};

/**
 * struct kdapl_keys - the MRs of an IA by their keys
 * @table: never NULL; read under RCU
 * @count: MRs in it
 * @mutex: changing it
 */
struct kdapl_keys {
	struct kdapl_key_table __rcu *table;
	unsigned int count;
	struct mutex mutex;		/* all of it */
};

void kdapl_keys_init(struct kdapl_keys *keys);
void kdapl_keys_destroy(struct kdapl_keys *keys);
int kdapl_keys_insert(struct kdapl_keys *keys, u32 index, struct kdapl_mr *mr);
void kdapl_keys_remove(struct kdapl_keys *keys, u32 index, struct kdapl_mr *mr);

/*
 * The MR a key belongs to, whatever its low byte, or NULL; RCU read side. Whether the
 * key is valid the MR knows.
 */
static inline struct kdapl_mr *kdapl_keys_find(const struct kdapl_keys *keys, u32 key)
{
	const struct kdapl_key_table *table = rcu_dereference(keys->table);
	u32 index = key >> 8, i = hash_32(index, table->bits), found;

	for (;;) {
		found = READ_ONCE(table->slots[i].index);
		if (likely(found == index))
			return rcu_dereference(table->slots[i].mr);
		if (found == KDAPL_NO_INDEX)
			return NULL;
		i = (i + 1) & table->mask;
	}
}

#endif /* KDAPL_CORE_KEYS_H */
