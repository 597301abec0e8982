// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Synchronising memory between CPU and device.
 */
#include <linux/highmem.h>
#include <linux/scatterlist.h>
#include <linux/vmalloc.h>

#include "mem.h"

/* Synchronise a piece without a base copy. */
static void sync_plain(struct kdapl_device *dev, u64 addr, size_t size, enum kdapl_sync why)
{
	switch (why) {
	case KDAPL_SYNC_SOURCE:
		kdapl_dma_for_device(dev, addr, size, DMA_TO_DEVICE);
		break;
	case KDAPL_SYNC_SINK:
		/* a bounce buffer is overwritten; a cache line must not be written back later */
		if (!dev->dma_coherent)
			kdapl_dma_for_device(dev, addr, size, DMA_BIDIRECTIONAL);
		break;
	case KDAPL_SYNC_SHARED:
		/* changes of the CPU must not be lost with its cache */
		if (!dev->dma_coherent)
			kdapl_dma_for_device(dev, addr, size, DMA_BIDIRECTIONAL);
		fallthrough;
	case KDAPL_SYNC_FILLED:
		kdapl_dma_for_cpu(dev, addr, size);
		break;
	case KDAPL_SYNC_FAILED:
		/* a bounce buffer is overwritten before it is sent; a cache may have old bytes */
		if (!dev->dma_coherent)
			kdapl_dma_for_cpu(dev, addr, size);
	}
}

/* Copy the changes of the CPU in a piece to the device, and no other byte. */
static void sync_changes(struct kdapl_device *dev, u64 addr, const u8 *now, u8 *base, u32 size)
{
	u32 from, to = 0;

	while (to < size) {
		for (from = to; from < size && now[from] == base[from]; from++)
			;
		for (to = from; to < size && now[to] != base[to]; to++)
			base[to] = now[to];
		if (from < to)
			kdapl_dma_for_device(dev, addr + from, to - from, DMA_TO_DEVICE);
	}
}

/* Merge the changes of CPU and device in a piece. */
static void sync_merge(struct kdapl_device *dev, u64 addr, u8 *now, u8 *base, u32 size, u8 *work)
{
	u32 i;

	if (!memcmp(now, base, size)) {
		kdapl_dma_for_cpu(dev, addr, size);
		memcpy(base, now, size);
		return;
	}
	memcpy(work, now, size);
	kdapl_dma_for_cpu(dev, addr, size);
	for (i = 0; i < size; i++) {
		u8 theirs = now[i];

		/* changed by the CPU only; if both have changed it, the device's byte is taken */
		if (work[i] != base[i] && theirs == base[i])
			now[i] = work[i];
		base[i] = theirs;
	}
	sync_changes(dev, addr, now, base, size);
}

/* Synchronise a piece with a base copy. */
static void sync_shared(struct kdapl_device *dev, u64 addr, u8 *now, u8 *base, u32 size,
			u8 *work, enum kdapl_sync why)
{
	switch (why) {
	case KDAPL_SYNC_SOURCE:
		sync_changes(dev, addr, now, base, size);
		break;
	case KDAPL_SYNC_SINK:
		sync_plain(dev, addr, size, why);
		break;
	case KDAPL_SYNC_FILLED:
		kdapl_dma_for_cpu(dev, addr, size);
		memcpy(base, now, size);
		break;
	case KDAPL_SYNC_FAILED:
		/*
		 * Nobody knows which bytes the device has written, so overwrite its whole copy.
		 * If it has none, it has written the memory itself: drop the CPU's cache.
		 */
		kdapl_dma_for_device(dev, addr, size, DMA_TO_DEVICE);
		if (!dev->dma_coherent)
			kdapl_dma_for_cpu(dev, addr, size);
		memcpy(base, now, size);
		break;
	case KDAPL_SYNC_SHARED:
		sync_merge(dev, addr, now, base, size, work);
	}
}

/**
 * kdapl_dma_sync - synchronise memory of which only the device's address is known
 * @dev: the device
 * @addr: first address
 * @length: bytes
 * @why: enum kdapl_sync
 *
 * Context: any; the device is there.
 */
void kdapl_dma_sync(struct kdapl_device *dev, u64 addr, u64 length, enum kdapl_sync why)
{
	while (length) {
		/* pages that are contiguous behind an IOMMU need not be so in memory */
		u32 part = min_t(u64, length, PAGE_SIZE - offset_in_page(addr));

		sync_plain(dev, addr, part, why);
		addr += part;
		length -= part;
	}
}

/* A position in a list: the entry, and the offset within it. */
struct list_pos {
	struct scatterlist *sg;
	u64 off;
};

static struct list_pos sync_pos_of_device(struct scatterlist *sgl, u64 pos)
{
	while (pos >= sg_dma_len(sgl)) {
		pos -= sg_dma_len(sgl);
		sgl = sg_next(sgl);
	}
	return (struct list_pos) { .sg = sgl, .off = pos };
}

static struct list_pos sync_pos_of_memory(struct scatterlist *sgl, u64 pos)
{
	while (pos >= sgl->length) {
		pos -= sgl->length;
		sgl = sg_next(sgl);
	}
	return (struct list_pos) { .sg = sgl, .off = pos };
}

static void sync_pos_advance(struct list_pos *pos, u32 part, u64 length)
{
	pos->off += part;
	if (pos->off == length) {
		pos->sg = sg_next(pos->sg);
		pos->off = 0;
	}
}

static void mem_sync_shared(struct kdapl_device *dev, struct kdapl_mem *mem, u64 pos, u64 length,
			    enum kdapl_sync why)
{
	struct list_pos theirs = sync_pos_of_device(mem->sgt.sgl, pos);
	struct list_pos ours = sync_pos_of_memory(mem->sgt.sgl, pos);
	u64 addr, offset;
	u32 part;
	u8 *page;

	while (length) {
		addr = sg_dma_address(theirs.sg) + theirs.off;
		offset = ours.sg->offset + ours.off;
		part = min_t(u64, length, PAGE_SIZE - offset_in_page(addr));
		part = min_t(u64, part, PAGE_SIZE - offset_in_page(offset));
		part = min_t(u64, part, sg_dma_len(theirs.sg) - theirs.off);
		part = min_t(u64, part, ours.sg->length - ours.off);
		page = kmap_local_page(pfn_to_page(page_to_pfn(sg_page(ours.sg)) +
						   (offset >> PAGE_SHIFT)));
		sync_shared(dev, addr, page + offset_in_page(offset), mem->base + pos, part,
			    mem->base + mem->base_size, why);
		kunmap_local(page);
		sync_pos_advance(&theirs, part, sg_dma_len(theirs.sg));
		sync_pos_advance(&ours, part, ours.sg->length);
		pos += part;
		length -= part;
	}
}

/**
 * kdapl_mem_sync - synchronise a part of a memory
 * @dev: the device
 * @mem: a mapped memory that needs synchronising; the caller keeps it mapped
 * @pos: first byte
 * @length: bytes, not beyond the end
 * @why: enum kdapl_sync
 *
 * Context: any; the device is there. One call at a time for each @mem.
 */
void kdapl_mem_sync(struct kdapl_device *dev, struct kdapl_mem *mem, u64 pos, u64 length,
		    enum kdapl_sync why)
{
	struct list_pos at;
	u64 part;

	if (!length || (mem->dir == DMA_TO_DEVICE && why != KDAPL_SYNC_SOURCE))
		return;
	if (mem->base) {
		mem_sync_shared(dev, mem, pos, length, why);
		return;
	}
	at = sync_pos_of_device(mem->sgt.sgl, pos);
	while (length) {
		part = min_t(u64, length, sg_dma_len(at.sg) - at.off);
		kdapl_dma_sync(dev, sg_dma_address(at.sg) + at.off, part, why);
		sync_pos_advance(&at, part, sg_dma_len(at.sg));
		length -= part;
	}
}

/**
 * kdapl_mem_alloc_base - allocate the base copy of a memory that CPU and device both write
 * @mem: without one
 * @length: most bytes it can have
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int kdapl_mem_alloc_base(struct kdapl_mem *mem, u64 length)
{
	if (length > SIZE_MAX - PAGE_SIZE)
		return -ENOMEM;
	mem->base = kvmalloc(length + PAGE_SIZE, GFP_KERNEL | __GFP_NOWARN);
	if (!mem->base)
		return -ENOMEM;
	mem->base_size = length;
	return 0;
}

/**
 * kdapl_mem_free_base - free the base copy
 * @mem: not mapped, or not to be synchronised
 *
 * Context: may sleep, since the copy may be from vmalloc().
 */
void kdapl_mem_free_base(struct kdapl_mem *mem)
{
	kvfree(mem->base);
	mem->base = NULL;
}

/**
 * kdapl_mem_fill_base - fill the base copy before a memory is mapped
 * @mem: with a base copy at least as long as itself
 *
 * Context: any.
 */
void kdapl_mem_fill_base(struct kdapl_mem *mem)
{
	sg_copy_to_buffer(mem->sgt.sgl, mem->used, mem->base, mem->base_size);
}
