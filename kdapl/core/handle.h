/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Opaque handles.
 */
#ifndef KDAPL_CORE_HANDLE_H
#define KDAPL_CORE_HANDLE_H

int kdapl_handle_alloc(void *obj, unsigned int type, DAT_HANDLE *handle);
void kdapl_handle_free(DAT_HANDLE handle);

#ifdef CONFIG_64BIT
#define KDAPL_HANDLE_INDEX_BITS	20
#define KDAPL_HANDLE_GEN_BITS	36
#else
#define KDAPL_HANDLE_INDEX_BITS	16
#define KDAPL_HANDLE_GEN_BITS	11
#endif
#define KDAPL_HANDLE_GEN_SHIFT	(1 + KDAPL_HANDLE_INDEX_BITS)
#define KDAPL_HANDLE_TYPE_SHIFT	(KDAPL_HANDLE_GEN_SHIFT + KDAPL_HANDLE_GEN_BITS)

/**
 * struct kdapl_handle_entry - one slot of the table
 * @obj: the object; NULL while the entry is free
 * @word: the handle; while the entry is free, index of the next free one << 1
 *
 * Readers load @obj first and @word second. Freeing clears @word before @obj, and
 * allocating stores @obj before @word, so a reader never pairs an old handle with a
 * new object.
 */
struct kdapl_handle_entry {
	void *obj;
	unsigned long word;
};

#define KDAPL_HANDLE_CHUNK	(PAGE_SIZE / sizeof(struct kdapl_handle_entry))
#define KDAPL_HANDLE_CHUNKS	(BIT(KDAPL_HANDLE_INDEX_BITS) / KDAPL_HANDLE_CHUNK)

/* kdapl_handle_read() masks a byte offset */
static_assert(!(sizeof(struct kdapl_handle_entry) & (sizeof(struct kdapl_handle_entry) - 1)));

extern struct kdapl_handle_entry *kdapl_handle_chunks[KDAPL_HANDLE_CHUNKS];

/* The chunk with this index, which may come from any bit pattern; NULL if there is none. */
static __always_inline struct kdapl_handle_entry *kdapl_handle_chunk(unsigned long index)
{
	index = index / KDAPL_HANDLE_CHUNK % KDAPL_HANDLE_CHUNKS;
	/* pairs with the release in handle_grow() */
	return smp_load_acquire(&kdapl_handle_chunks[index]);
}

/* The object of a handle, or NULL. The caller has made sure that bit 0 is set. */
static __always_inline void *kdapl_handle_read(unsigned long word)
{
	struct kdapl_handle_entry *entry = kdapl_handle_chunk(word >> 1);
	void *obj;

	if (unlikely(!entry))
		return NULL;
	/* entry += (word >> 1) % KDAPL_HANDLE_CHUNK, by one shift less */
	entry = (void *)entry + (word * (sizeof(*entry) / 2) &
				 (KDAPL_HANDLE_CHUNK - 1) * sizeof(*entry));
	/* @obj first, then @word; pairs with the releases of the writers */
	obj = smp_load_acquire(&entry->obj);
	/* and @obj once more, after @word */
	if (unlikely(smp_load_acquire(&entry->word) != word))
		return NULL;
	/* a handle guessed before it is allocated could pair with the previous object */
	if (unlikely(READ_ONCE(entry->obj) != obj))
		return NULL;
	return obj;
}

/* May this value be a handle of that type? */
static inline bool kdapl_handle_is(DAT_HANDLE handle, unsigned int type)
{
	return (unsigned long)handle >> KDAPL_HANDLE_TYPE_SHIFT == type;
}

/**
 * kdapl_handle_peek - look up a handle
 * @handle: any bit pattern
 * @type: the type it must have
 *
 * Context: inside rcu_read_lock(), to which the result is bound.
 * Return: the object, or NULL if @handle does not name a live one of @type.
 */
static inline void *kdapl_handle_peek(DAT_HANDLE handle, unsigned int type)
{
	if (unlikely(!kdapl_handle_is(handle, type)))
		return NULL;
	/* the word of a free entry has bit 0 clear, and type 0 */
	if (!type && !((unsigned long)handle & 1))
		return NULL;
	return kdapl_handle_read((unsigned long)handle);
}

void *kdapl_handle_peek_any(DAT_HANDLE handle, unsigned int *type);
struct kdapl_obj *kdapl_handle_next(unsigned long *index, unsigned long end);

/* The id of an object in traces and debugfs, unique while the object lives; 0 for none. */
static inline u32 kdapl_id(DAT_HANDLE handle)
{
	return (unsigned long)handle >> 1 & (BIT(KDAPL_HANDLE_INDEX_BITS) - 1);
}

void kdapl_handles_exit(void);

#endif /* KDAPL_CORE_HANDLE_H */
