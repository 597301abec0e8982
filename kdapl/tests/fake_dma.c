// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * DMA by copies, or past caches, for the fake device, see fake_dma.h.
 */
#include <linux/dma-direction.h>
#include <linux/irqflags.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "../ia/ia_api.h"
#include "fake_dma.h"

/* A piece of memory and its copy. */
struct fake_copy {
	struct list_head node;
	u8 *memory;
	u8 *copy;
	size_t size;
	int dir;
};

void fake_dma_init(struct fake_dma *dma, bool caches)
{
	dma->same = caches;
	dma->caches = caches;
	spin_lock_init(&dma->lock);
	INIT_LIST_HEAD(&dma->maps);
}

static void copy_free(struct fake_copy *map)
{
	if (map->copy != map->memory) {
		memset(map->copy, 0xdb, map->size);
		free_pages_exact(map->copy, map->size);
	}
	kfree(map);
}

int fake_dma_exit(struct fake_dma *dma)
{
	struct fake_copy *map, *next;
	int wrong = dma->wrong;

	list_for_each_entry_safe(map, next, &dma->maps, node) {
		copy_free(map);
		wrong++;
	}
	INIT_LIST_HEAD(&dma->maps);
	return wrong;
}

static u64 copy_make(struct fake_dma *dma, void *memory, size_t size, int dir)
{
	struct fake_copy *map;
	unsigned long flags;
	bool fail;

	spin_lock_irqsave(&dma->lock, flags);
	fail = dma->fail && !--dma->fail;
	spin_unlock_irqrestore(&dma->lock, flags);
	map = fail || size > SZ_256K ? NULL : kzalloc(sizeof(*map), GFP_ATOMIC);
	if (!map)
		return 0;
	*map = (struct fake_copy) {
		.memory = memory, .size = size, .dir = dir,
		.copy = dma->same ? memory : alloc_pages_exact(size, GFP_ATOMIC),
	};
	if (!map->copy) {
		kfree(map);
		return 0;
	}
	if (map->copy != map->memory)
		memcpy(map->copy, memory, size);
	spin_lock_irqsave(&dma->lock, flags);
	list_add(&map->node, &dma->maps);
	spin_unlock_irqrestore(&dma->lock, flags);
	return (uintptr_t)map->copy;
}

static struct fake_copy *copy_find(struct fake_dma *dma, u64 addr, size_t size)
{
	struct fake_copy *map;

	lockdep_assert_held(&dma->lock);
	list_for_each_entry(map, &dma->maps, node) {
		u64 start = (uintptr_t)map->copy;

		if (addr >= start && addr - start + size <= map->size)
			return map;
	}
	return NULL;
}

static void copy_end(struct fake_dma *dma, u64 addr, size_t size, int dir)
{
	struct fake_copy *map;
	unsigned long flags;

	spin_lock_irqsave(&dma->lock, flags);
	map = copy_find(dma, addr, size);
	if (map && (uintptr_t)map->copy == addr && map->size == size && map->dir == dir)
		list_del(&map->node);
	else
		map = NULL;
	dma->wrong += !map;
	if (irqs_disabled_flags(flags))
		dma->dark_pages += PFN_UP(size);
	spin_unlock_irqrestore(&dma->lock, flags);
	if (map)
		copy_free(map);
}

static void fake_unmap_sg(struct ib_device *ibdev, struct scatterlist *sgl, int nents, int dir)
{
	struct fake_dma *dma = fake_ib_dma(ibdev);
	fake_dma_fn *fn = xchg(&dma->at_unmap, NULL);
	struct scatterlist *sg;
	int i;

	if (fn)
		fn(dma->arg);
	for_each_sg(sgl, sg, nents, i)
		copy_end(dma, sg_dma_address(sg), sg_dma_len(sg), dir);
}

static int fake_map_sg(struct ib_device *ibdev, struct scatterlist *sgl, int nents, int dir)
{
	struct fake_dma *dma = fake_ib_dma(ibdev);
	struct scatterlist *sg;
	int i;

	for_each_sg(sgl, sg, nents, i) {
		dma->parts += !IS_ALIGNED(sg->offset | sg->length, PAGE_SIZE);
		sg_dma_address(sg) = copy_make(dma, sg_virt(sg), sg->length, dir);
		sg_dma_len(sg) = sg->length;
		if (!sg_dma_address(sg)) {
			fake_unmap_sg(ibdev, sgl, i, dir);
			return 0;
		}
	}
	return nents;
}

static u64 fake_map_single(struct ib_device *ibdev, void *address, size_t size, int dir)
{
	struct fake_dma *dma = fake_ib_dma(ibdev);
	u64 addr = copy_make(dma, address, size, dir);
	fake_dma_fn *fn = xchg(&dma->at_map, NULL);

	if (fn)
		fn(dma->arg);
	return addr;
}

static void fake_unmap_single(struct ib_device *ibdev, u64 addr, size_t size, int dir)
{
	copy_end(fake_ib_dma(ibdev), addr, size, dir);
}

static bool fake_need_sync(struct ib_device *ibdev, u64 addr)
{
	struct fake_dma *dma = fake_ib_dma(ibdev);
	struct fake_copy *map;
	unsigned long flags;
	bool need;

	spin_lock_irqsave(&dma->lock, flags);
	map = copy_find(dma, addr, 1);
	need = map && (dma->caches || map->copy != map->memory);
	spin_unlock_irqrestore(&dma->lock, flags);
	return need;
}

static void fake_sync(struct ib_device *ibdev, u64 addr, size_t size, int dir, bool for_cpu)
{
	struct fake_dma *dma = fake_ib_dma(ibdev);
	struct fake_copy *map;
	unsigned long flags;
	u64 offset;

	spin_lock_irqsave(&dma->lock, flags);
	if (dma->nsyncs < FAKE_SYNCS)
		dma->syncs[dma->nsyncs] = (struct fake_sync) { addr, size, dir, for_cpu };
	dma->nsyncs++;
	map = copy_find(dma, addr, size);
	if (!map || !size || (for_cpu && map->dir == DMA_TO_DEVICE)) {
		dma->wrong++;
	} else if (map->copy != map->memory) {
		offset = addr - (uintptr_t)map->copy;
		if (for_cpu)
			memcpy(map->memory + offset, map->copy + offset, size);
		else
			memcpy(map->copy + offset, map->memory + offset, size);
	}
	spin_unlock_irqrestore(&dma->lock, flags);
}

#define FAKE_DMA_OPS(how, is_coherent)			\
{							\
	.kind = (how),					\
	.coherent = (is_coherent),			\
	.map_sg = fake_map_sg,				\
	.unmap_sg = fake_unmap_sg,			\
	.map_single = fake_map_single,			\
	.unmap_single = fake_unmap_single,		\
	.need_sync = fake_need_sync,			\
	.sync = fake_sync,				\
}

const struct kdapl_dma_ops fake_copies_ops = FAKE_DMA_OPS(KDAPL_DMA_COPIES, true);
const struct kdapl_dma_ops fake_caches_ops = FAKE_DMA_OPS(KDAPL_DMA_CACHES, false);
