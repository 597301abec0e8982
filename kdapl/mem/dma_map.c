// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Memory that consumers map for the device themselves.
 *
 * Each mapping has a record, so that removal of the device can undo the mappings that are left:
 * afterwards their consumers cannot. Closing the IA does the same. The record belongs to the
 * consumer, since one that maps for each transfer must not wait for memory. A record on the list
 * of its IA is mapped, and its device is there: removal empties the list first.
 */
#include <linux/export.h>
#include <linux/mm.h>
#include <linux/sched.h>

#include "mem.h"

/* Undo a mapping whose device is there, though it may be going. ia->maps_lock held. */
static void map_undo(struct kdapl_ia *ia, struct kdat_dma_map *map)
{
	lockdep_assert_held(&ia->maps_lock);
	hlist_del_init(&map->node);
	kdapl_dma_unmap_single(ia->dev, map->address, map->length);
}

/* Undo all mappings that are left. The device is there. */
static void map_end_all(struct kdapl_res *res)
{
	struct kdapl_ia *ia = container_of(res, struct kdapl_ia, maps_res);
	struct kdat_dma_map *map;

	spin_lock_irq(&ia->maps_lock);
	ia->maps_closed = true;
	while (!hlist_empty(&ia->maps)) {
		map = hlist_entry(ia->maps.first, struct kdat_dma_map, node);
		map_undo(ia, map);
		spin_unlock_irq(&ia->maps_lock);
		cond_resched();
		spin_lock_irq(&ia->maps_lock);
	}
	spin_unlock_irq(&ia->maps_lock);
}

/**
 * kdapl_maps_open - let the consumer of an IA map memory
 * @ia: new IA
 *
 * Context: may sleep; inside kdapl_dev_enter().
 */
void kdapl_maps_open(struct kdapl_ia *ia)
{
	INIT_HLIST_HEAD(&ia->maps);
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

/*
 * The device is there. -ENOMEM: no mapping left; -ESHUTDOWN: the IA is being closed. Then the
 * record is as it was.
 */
static int map_begin(struct kdapl_ia *ia, struct kdat_dma_map *map, void *address, u64 length)
{
	unsigned long flags;
	bool closed;
	u64 addr;

	if (kdapl_dma_map_single(ia->dev, address, length, &addr))
		return -ENOMEM;
	spin_lock_irqsave(&ia->maps_lock, flags);
	closed = ia->maps_closed;
	if (!closed) {
		map->address = addr;
		map->length = length;
		map->owner = ia->obj.handle;
		hlist_add_head(&map->node, &ia->maps);
	}
	spin_unlock_irqrestore(&ia->maps_lock, flags);
	if (!closed)
		return 0;
	kdapl_dma_unmap_single(ia->dev, addr, length);
	return -ESHUTDOWN;
}

/**
 * kdat_ia_dma_map - map memory and get its address for the device
 * @ia_handle: IA
 * @map: record of the mapping, zeroed or unmapped; its member address gets the device's address.
 *	It must stay where it is until kdat_ia_dma_unmap() or dat_ia_close() returns
 * @address: kernel virtual address, of memory from kmalloc() or of a page; memory from
 *	vmalloc() is not contiguous for a device
 * @length: bytes
 *
 * For DAT_MEM_TYPE_IA, and for segments of the reserved LMR. The mapping lasts until
 * kdat_ia_dma_unmap(); the removal of the device and dat_ia_close() undo those that are
 * left. If the provider attribute lmr_sync_req is TRUE, the sync calls work on such
 * addresses, too. The call allocates nothing, but the driver of an IOMMU may. An extension of
 * this provider.
 *
 * Context: any.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE; DAT_INVALID_PARAMETER (@map: NULL, or mapped already;
 * address; length); DAT_INSUFFICIENT_RESOURCES (MEMORY: no mapping left); DAT_INTERNAL_ERROR
 * (device removed). After an error the record is as it was.
 */
DAT_RETURN kdat_ia_dma_map(DAT_IA_HANDLE ia_handle, struct kdat_dma_map *map, DAT_PVOID address,
			   DAT_VLEN length)
{
	struct kdapl_ia *ia = kdapl_obj_get(ia_handle, DAT_HANDLE_TYPE_IA);
	DAT_RETURN ret;
	int err;

	if (!ia)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	ret = kdapl_arg_err(2);
	if (!map || !hlist_unhashed_lockless(&map->node))
		goto out;
	ret = kdapl_arg_err(4);
	if (!length || length > SIZE_MAX || (uintptr_t)address + length < (uintptr_t)address)
		goto out;
	ret = kdapl_arg_err(3);
	if (!map_is_linear(address, length))
		goto out;
	ret = kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	if (!kdapl_dev_enter(ia->dev))
		goto out;
	err = map_begin(ia, map, address, length);
	ret = err ? kdapl_lmr_ret(err) : DAT_SUCCESS;
	kdapl_dev_exit(ia->dev);
out:
	kdapl_obj_put(&ia->obj);
	return ret;
}
EXPORT_SYMBOL(kdat_ia_dma_map);

/*
 * End a mapping, or forget one that the removal of the device has ended. @entered: the device
 * cannot go meanwhile, so the lock is dropped while the IOMMU works. -ENOENT: there is none.
 */
static int map_end(struct kdapl_ia *ia, struct kdat_dma_map *map, bool entered)
{
	u64 addr = 0, length = 0;
	unsigned long flags;
	int ret = -ENOENT;

	spin_lock_irqsave(&ia->maps_lock, flags);
	if (map->owner == ia->obj.handle) {
		ret = 0;
		map->owner = DAT_HANDLE_NULL;
		if (!hlist_unhashed(&map->node) && entered) {
			hlist_del_init(&map->node);
			addr = map->address;
			length = map->length;
		} else if (!hlist_unhashed(&map->node)) {
			map_undo(ia, map);
		}
	}
	spin_unlock_irqrestore(&ia->maps_lock, flags);
	if (length)
		kdapl_dma_unmap_single(ia->dev, addr, length);
	return ret;
}

/**
 * kdat_ia_dma_unmap - unmap memory mapped by kdat_ia_dma_map()
 * @ia_handle: IA it was mapped with
 * @map: record of the mapping
 *
 * Before the call, free the LMRs over this memory and wait for the requests that name it.
 * Once the device has gone nothing is mapped any more, and the call succeeds once for each
 * record. Afterwards the record can be used again, or freed. An extension of this provider.
 *
 * Context: any.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE; DAT_INVALID_PARAMETER (@map: NULL, or not mapped
 * with this instance).
 */
DAT_RETURN kdat_ia_dma_unmap(DAT_IA_HANDLE ia_handle, struct kdat_dma_map *map)
{
	struct kdapl_ia *ia = kdapl_obj_get(ia_handle, DAT_HANDLE_TYPE_IA);
	DAT_RETURN ret = DAT_SUCCESS;
	bool entered;

	if (!ia)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	entered = kdapl_dev_enter(ia->dev);
	if (!map || map_end(ia, map, entered))
		ret = kdapl_arg_err(2);
	if (entered)
		kdapl_dev_exit(ia->dev);
	kdapl_obj_put(&ia->obj);
	return ret;
}
EXPORT_SYMBOL(kdat_ia_dma_unmap);
