// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Memory that consumers map for the device themselves.
 *
 * Each mapping is recorded, so that the removal of the device undoes those that are left: the
 * device may go before its consumers unmap, and afterwards they cannot. So does closing the IA.
 */
#include <linux/export.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "mem.h"

/**
 * struct dma_map - memory that a consumer has mapped
 * @node: in ia->maps; ia->maps_lock
 * @addr: the device's address
 * @length: bytes
 */
struct dma_map {
	struct rb_node node;
	u64 addr;
	u64 length;
};

/* The same memory may be mapped more than once, at the same address. */
static int map_compare(u64 addr, u64 length, const struct dma_map *map)
{
	if (addr != map->addr)
		return addr < map->addr ? -1 : 1;
	if (length != map->length)
		return length < map->length ? -1 : 1;
	return 0;
}

static bool map_less(struct rb_node *node, const struct rb_node *other)
{
	const struct dma_map *map = rb_entry(node, struct dma_map, node);

	return map_compare(map->addr, map->length, rb_entry(other, struct dma_map, node)) < 0;
}

/* False: the IA is being closed. */
static bool map_insert(struct kdapl_ia *ia, struct dma_map *map)
{
	unsigned long flags;
	bool closed;

	spin_lock_irqsave(&ia->maps_lock, flags);
	closed = ia->maps_closed;
	if (!closed)
		rb_add(&map->node, &ia->maps, map_less);
	spin_unlock_irqrestore(&ia->maps_lock, flags);
	return !closed;
}

/* The record of a mapping, for the caller to free; NULL if there is none. */
static struct dma_map *map_take(struct kdapl_ia *ia, u64 addr, u64 length)
{
	struct dma_map *map = NULL;
	unsigned long flags;
	struct rb_node *node;
	int order;

	spin_lock_irqsave(&ia->maps_lock, flags);
	node = ia->maps.rb_node;
	while (node) {
		map = rb_entry(node, struct dma_map, node);
		order = map_compare(addr, length, map);
		if (!order)
			break;
		node = order < 0 ? node->rb_left : node->rb_right;
	}
	if (node)
		rb_erase(node, &ia->maps);
	spin_unlock_irqrestore(&ia->maps_lock, flags);
	return node ? map : NULL;
}

/* Undo all mappings that are left. The device is there. */
static void map_end_all(struct kdapl_res *res)
{
	struct kdapl_ia *ia = container_of(res, struct kdapl_ia, maps_res);
	struct dma_map *map, *next;
	struct rb_root maps;

	spin_lock_irq(&ia->maps_lock);
	maps = ia->maps;
	ia->maps = RB_ROOT;
	ia->maps_closed = true;
	spin_unlock_irq(&ia->maps_lock);
	rbtree_postorder_for_each_entry_safe(map, next, &maps, node) {
		kdapl_dma_unmap_single(ia->dev, map->addr, map->length);
		kfree(map);
	}
}

/**
 * kdapl_maps_open - let the consumer of an IA map memory
 * @ia: new IA
 *
 * Context: may sleep; inside kdapl_dev_enter().
 */
void kdapl_maps_open(struct kdapl_ia *ia)
{
	ia->maps = RB_ROOT;
	spin_lock_init(&ia->maps_lock);
	kdapl_res_add(ia->dev, &ia->maps_res, KDAPL_RES_MAPS, map_end_all);
}

/**
 * kdapl_maps_close - unmap what the consumer of an IA has left mapped
 * @ia: IA that is being closed, without LMRs and connections
 *
 * Context: may sleep.
 */
void kdapl_maps_close(struct kdapl_ia *ia)
{
	kdapl_res_release(ia->dev, &ia->maps_res);
}

/* Is this memory contiguous for a device? */
static bool map_is_linear(const void *address, u64 length)
{
	u64 pos = (uintptr_t)address, end = pos + length;

	if (!length || end < pos || end != (uintptr_t)end)
		return false;
	for (; pos < end; pos = round_down(pos, PAGE_SIZE) + PAGE_SIZE) {
		const void *va = (const void *)(uintptr_t)pos;

		if (is_vmalloc_addr(va) || !virt_addr_valid(va))
			return false;
	}
	return true;
}

/* -ENOMEM: no mapping or no memory left; -ESHUTDOWN: the IA is being closed. */
static int map_begin(struct kdapl_ia *ia, void *address, u64 length, u64 *addr)
{
	/* the IOMMU's drivers allocate like that, too */
	struct dma_map *map = kmalloc(sizeof(*map), GFP_ATOMIC);

	if (!map)
		return -ENOMEM;
	map->length = length;
	if (kdapl_dma_map_single(ia->dev, address, length, &map->addr)) {
		kfree(map);
		return -ENOMEM;
	}
	*addr = map->addr;
	if (map_insert(ia, map))
		return 0;
	kdapl_dma_unmap_single(ia->dev, map->addr, length);
	kfree(map);
	return -ESHUTDOWN;
}

/**
 * kdat_ia_dma_map - map memory and get the device's address of it
 * @ia_handle: IA
 * @address: kernel virtual address, of memory from kmalloc() or of a page; memory from
 *	vmalloc() is not contiguous for a device
 * @length: bytes
 * @ia_address: where the device's address goes
 *
 * For DAT_MEM_TYPE_IA, and for segments of the reserved LMR. The mapping lasts until
 * kdat_ia_dma_unmap(); the removal of the device and dat_ia_close() undo those that are
 * left. If the provider attribute lmr_sync_req is TRUE, the sync calls work on such
 * addresses, too. An extension of this provider.
 *
 * Context: any.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE; DAT_INVALID_PARAMETER (address, length,
 * NULL @ia_address); DAT_INSUFFICIENT_RESOURCES (MEMORY: no mapping left, or no memory to
 * record it); DAT_INTERNAL_ERROR (device removed).
 */
DAT_RETURN kdat_ia_dma_map(DAT_IA_HANDLE ia_handle, DAT_PVOID address, DAT_VLEN length,
			   DAT_PADDR *ia_address)
{
	struct kdapl_ia *ia = kdapl_obj_get(ia_handle, DAT_HANDLE_TYPE_IA);
	DAT_RETURN ret;
	u64 addr;
	int err;

	if (!ia)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	ret = kdapl_arg_err(3);
	if (!length || length > SIZE_MAX || (uintptr_t)address + length < (uintptr_t)address)
		goto out;
	ret = kdapl_arg_err(2);
	if (!map_is_linear(address, length))
		goto out;
	ret = kdapl_arg_err(4);
	if (!ia_address)
		goto out;
	ret = kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	if (!kdapl_dev_enter(ia->dev))
		goto out;
	err = map_begin(ia, address, length, &addr);
	ret = DAT_SUCCESS;
	if (err)
		ret = kdapl_lmr_ret(err);
	else
		*ia_address = addr;
	kdapl_dev_exit(ia->dev);
out:
	kdapl_obj_put(&ia->obj);
	return ret;
}
EXPORT_SYMBOL(kdat_ia_dma_map);

/* End a mapping. -ENOENT: there is none. The device is there. */
static int map_end(struct kdapl_ia *ia, u64 addr, u64 length)
{
	struct dma_map *map = map_take(ia, addr, length);

	if (!map)
		return -ENOENT;
	kdapl_dma_unmap_single(ia->dev, addr, length);
	kfree(map);
	return 0;
}

/**
 * kdat_ia_dma_unmap - unmap memory mapped by kdat_ia_dma_map()
 * @ia_handle: IA it was mapped with
 * @ia_address: address from kdat_ia_dma_map()
 * @length: length given there
 *
 * Before the call free the LMRs over this memory, and wait for the requests that
 * name it. Once the device has gone nothing is mapped any more, and the call succeeds. An
 * extension of this provider.
 *
 * Context: any.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE; DAT_INVALID_PARAMETER (length 0; ARG2: not
 * mapped with this instance and length).
 */
DAT_RETURN kdat_ia_dma_unmap(DAT_IA_HANDLE ia_handle, DAT_PADDR ia_address, DAT_VLEN length)
{
	struct kdapl_ia *ia = kdapl_obj_get(ia_handle, DAT_HANDLE_TYPE_IA);
	DAT_RETURN ret = DAT_SUCCESS;

	if (!ia)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (!length || length > SIZE_MAX) {
		ret = kdapl_arg_err(3);
	} else if (kdapl_dev_enter(ia->dev)) {
		if (map_end(ia, ia_address, length))
			ret = kdapl_arg_err(2);
		kdapl_dev_exit(ia->dev);
	}
	kdapl_obj_put(&ia->obj);
	return ret;
}
EXPORT_SYMBOL(kdat_ia_dma_unmap);
