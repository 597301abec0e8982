// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Opaque handles.
 *
 * A handle is a number, never a pointer: a tag bit (so that it cannot be mistaken
 * for an aligned pointer), a table index, a generation and the object type.
 * Callers may pass any bit pattern: it is compared with the word in its table
 * entry and refused unless they are equal, which costs two dependent loads and
 * touches no memory of a freed object.
 *
 * The table is one array of chunks that are never freed before module exit,
 * so readers need RCU only for the object itself. Entries are reused first in,
 * first out, and every handle takes a new number from one generation counter:
 * a stale handle is refused until that counter has wrapped and the same entry
 * happens to get the same number again.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "core.h"

/* Every call reads the first pointer, so nothing that is written may share its cache line. */
struct kdapl_handle_entry *kdapl_handle_chunks[KDAPL_HANDLE_CHUNKS] ____cacheline_aligned_in_smp;
static DEFINE_SPINLOCK(handle_lock);	/* everything below, and all writing */
static unsigned long handle_gen;
static unsigned long handle_nr_chunks;
static unsigned long handle_free_first;	/* valid when handle_nr_free > 0 */
static unsigned long handle_free_last;
static unsigned long handle_nr_free;

/* Keep some entries free, so that an entry is not reused right after it was freed. */
#define HANDLE_MIN_FREE		64

/* The entry with this index, below the limit; NULL if its chunk has not been made. */
static struct kdapl_handle_entry *handle_entry(unsigned long index)
{
	struct kdapl_handle_entry *chunk = kdapl_handle_chunk(index);

	return chunk ? &chunk[index % KDAPL_HANDLE_CHUNK] : NULL;
}

/* The object of a word that may not be a handle: that of a free entry has bit 0 clear. */
static void *handle_find(unsigned long word)
{
	return word & 1 ? kdapl_handle_read(word) : NULL;
}

static void handle_free_add(unsigned long index)
{
	if (handle_nr_free++)
		WRITE_ONCE(handle_entry(handle_free_last)->word, index << 1);
	else
		handle_free_first = index;
	handle_free_last = index;
}

static int handle_grow(void)
{
	struct kdapl_handle_entry *chunk = (void *)get_zeroed_page(GFP_KERNEL);
	unsigned long first, i;

	if (!chunk)
		return -ENOMEM;
	spin_lock_irq(&handle_lock);
	if (handle_nr_chunks == KDAPL_HANDLE_CHUNKS) {
		spin_unlock_irq(&handle_lock);
		free_page((unsigned long)chunk);
		return -ENOSPC;
	}
	first = handle_nr_chunks * KDAPL_HANDLE_CHUNK;
	/* pairs with the acquire in kdapl_handle_chunk() */
	smp_store_release(&kdapl_handle_chunks[handle_nr_chunks], chunk);
	handle_nr_chunks++;
	for (i = !first; i < KDAPL_HANDLE_CHUNK; i++)	/* index 0 stands for no object */
		handle_free_add(first + i);
	spin_unlock_irq(&handle_lock);
	return 0;
}

/**
 * kdapl_handle_alloc - give an object a handle
 * @obj: the object
 * @type: enum dat_handle_type
 * @handle: out: the handle, stored before it can be looked up
 *
 * Context: may sleep.
 * Return: 0, -ENOMEM, or -ENOSPC when the table has reached its limit.
 */
int kdapl_handle_alloc(void *obj, unsigned int type, DAT_HANDLE *handle)
{
	struct kdapl_handle_entry *entry;
	unsigned long index, gen;
	int ret;

	spin_lock_irq(&handle_lock);
	while (handle_nr_free <= HANDLE_MIN_FREE) {
		spin_unlock_irq(&handle_lock);
		ret = handle_grow();
		if (ret == -ENOMEM)
			return ret;
		spin_lock_irq(&handle_lock);
		if (ret == -ENOSPC) {
			/* the table is full: use the reserve as well */
			if (handle_nr_free)
				break;
			spin_unlock_irq(&handle_lock);
			return ret;
		}
	}
	index = handle_free_first;
	entry = handle_entry(index);
	handle_free_first = entry->word >> 1;
	handle_nr_free--;

	gen = ++handle_gen & (BIT(KDAPL_HANDLE_GEN_BITS) - 1);
	*handle = (DAT_HANDLE)(((unsigned long)type << KDAPL_HANDLE_TYPE_SHIFT) |
			       gen << KDAPL_HANDLE_GEN_SHIFT | index << 1 | 1);
	/* @obj before @word, see struct kdapl_handle_entry; pairs with kdapl_handle_read() */
	smp_store_release(&entry->obj, obj);
	/* the entry is complete; pairs with kdapl_handle_read() */
	smp_store_release(&entry->word, (unsigned long)*handle);
	spin_unlock_irq(&handle_lock);
	return 0;
}

/**
 * kdapl_handle_free - free a handle, so that its object is no longer found
 * @handle: a live handle; the caller makes sure that it is freed only once
 *
 * Readers may use the object for another grace period.
 */
void kdapl_handle_free(DAT_HANDLE handle)
{
	unsigned long word = (unsigned long)handle;
	unsigned long index = word >> 1 & (BIT(KDAPL_HANDLE_INDEX_BITS) - 1);
	struct kdapl_handle_entry *entry = handle_entry(index);
	unsigned long flags;

	spin_lock_irqsave(&handle_lock, flags);
	if (!WARN_ON_ONCE(!entry || entry->word != word)) {
		WRITE_ONCE(entry->word, 0);
		/* @word before @obj; pairs with kdapl_handle_read() */
		smp_store_release(&entry->obj, NULL);
		handle_free_add(index);
	}
	spin_unlock_irqrestore(&handle_lock, flags);
}

/**
 * kdapl_handle_peek_any - look up a handle of any type
 * @handle: any bit pattern
 * @type: out: its type
 *
 * Context: inside rcu_read_lock(), to which the result is bound.
 * Return: the object, or NULL if @handle names no live one.
 */
void *kdapl_handle_peek_any(DAT_HANDLE handle, unsigned int *type)
{
	unsigned long word = (unsigned long)handle;

	*type = word >> KDAPL_HANDLE_TYPE_SHIFT;
	return handle_find(word);
}

/**
 * kdapl_handle_next - walk the table
 * @index: in: first entry to look at; out: entry of the object
 * @end: first entry not to look at; ULONG_MAX: look at all
 *
 * Context: inside rcu_read_lock(), to which the result is bound.
 * Return: the next live object. NULL if there is none before @end, and @index is @end; or if the
 * table ends first, and @index is below @end.
 */
struct kdapl_obj *kdapl_handle_next(unsigned long *index, unsigned long end)
{
	struct kdapl_handle_entry *entry;
	void *obj;

	end = min(end, BIT(KDAPL_HANDLE_INDEX_BITS));
	for (; *index < end; ++*index) {
		entry = handle_entry(*index);
		if (!entry)
			break;
		obj = handle_find(READ_ONCE(entry->word));
		if (obj)
			return obj;
	}
	return NULL;
}

/**
 * kdapl_handles_exit - free the table at module exit
 */
void kdapl_handles_exit(void)
{
	unsigned long i;

	for (i = 0; i < handle_nr_chunks; i++) {
		free_page((unsigned long)kdapl_handle_chunks[i]);
		kdapl_handle_chunks[i] = NULL;
	}
	handle_nr_chunks = 0;
	handle_nr_free = 0;
}
