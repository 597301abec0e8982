// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * DMA mappings, and memory that CPU and device see differently (D-87).
 *
 * On most machines both always see the same bytes, and only the mapping itself runs here.
 * But if the memory of a guest is encrypted, if the device cannot address all memory, or with
 * swiotlb=force, the device works on a copy (a bounce buffer); and if caches are not coherent,
 * device and CPU may see stale bytes of each other. A mapping of kDAPL lasts for many
 * transfers, so the bytes have to be synchronised for each transfer, by exact ranges: next to
 * a message that has just arrived there may be one that the CPU is about to write.
 *
 * Whole pages are mapped, because the kernel then aligns the copy to a page and the offset
 * within the page stays the same, which page lists need. Only the exact bytes are ever copied
 * back.
 *
 * If both CPU and peers write, neither copy is simply the newer one, and
 * dat_lmr_sync_rdma_write() is due after either has written. So if the device may write, the
 * copies are merged as in a three-way merge: a base copy keeps the bytes as they were when both
 * were last in sync. A byte in the CPU's memory that differs from it was changed by the CPU and
 * is copied to the device; all others are copied from the device.
 */
#include <linux/dma-mapping.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/sizes.h>

#include "core.h"

/* The operations a test has put in place of the kernel's DMA, or NULL. */
static inline const struct kdapl_dma_ops *dma_test_ops(const struct kdapl_device *dev)
{
#ifdef KDAPL_KUNIT
	return dev->dma_ops;
#else
	return NULL;
#endif
}

/* Does mapping a page for this device need a bounce buffer? Tried with one page. */
static bool dma_probe(struct kdapl_device *dev)
{
	struct device *dma = dev->ibdev->dma_device;
	struct page *page = alloc_page(GFP_KERNEL);
	bool sync = false;
	dma_addr_t addr;

	if (!page)
		return true;	/* the safe answer, which costs only performance */
	addr = dma_map_page(dma, page, 0, PAGE_SIZE, DMA_TO_DEVICE);
	if (!dma_mapping_error(dma, addr)) {
		sync = kdapl_compat_need_sync(dma, addr);
		dma_unmap_page(dma, addr, PAGE_SIZE, DMA_TO_DEVICE);
	}
	__free_page(page);
	return sync;
}

/* The longest piece of memory that can be mapped, a multiple of PAGE_SIZE. */
static u32 dma_max_entry(struct kdapl_device *dev)
{
	u64 max = min_t(u32, ib_dma_max_seg_size(dev->ibdev), SZ_1G);

	if (dma_test_ops(dev))
		max = min_t(u64, max, SZ_256K);
	else if (dev->dma == KDAPL_DMA_COPIES)
		max = min_t(u64, max, dma_max_mapping_size(dev->ibdev->dma_device));
	return max_t(u64, round_down(max, PAGE_SIZE), PAGE_SIZE);
}

/* How does the device see memory? */
static void dma_find_kind(struct kdapl_device *dev)
{
	struct device *dma = dev->ibdev->dma_device;

#ifdef KDAPL_KUNIT
	dev->dma_ops = kdapl_test_dma(dev->ibdev);
#endif
	dev->dma = KDAPL_DMA_SAME;
	dev->dma_coherent = true;
	if (dma_test_ops(dev)) {
		dev->dma = dma_test_ops(dev)->kind;
		dev->dma_coherent = dma_test_ops(dev)->coherent;
		return;
	}
	if (ib_uses_virt_dma(dev->ibdev))
		return;
	dev->dma_coherent = dev_is_dma_coherent(dma);
	if (!dev->dma_coherent)
		dev->dma = KDAPL_DMA_CACHES;
	/* the size of mappings is limited by bounce buffers only */
	if (dma_max_mapping_size(dma) != SIZE_MAX || (dev->dma_coherent && dma_probe(dev)))
		dev->dma = KDAPL_DMA_COPIES;
	if (dev->dma == KDAPL_DMA_COPIES)
		pr_info("%s: the device may need bounce buffers: each transfer is copied, lmr_sync_req is TRUE\n",
			dev_name(&dev->ibdev->dev));
}

/**
 * kdapl_dma_init - find out how a device sees memory
 * @dev: new device, with @ibdev set
 *
 * Context: may sleep.
 */
void kdapl_dma_init(struct kdapl_device *dev)
{
	dma_find_kind(dev);
	dev->dma_max_entry = dma_max_entry(dev);
}

/**
 * kdapl_dma_max_mapping - how much contiguous memory can be mapped at once
 * @dev: the device, entered
 *
 * Return: bytes, U64_MAX without a limit.
 */
u64 kdapl_dma_max_mapping(struct kdapl_device *dev)
{
	size_t size;

	if (dma_test_ops(dev))
		return SZ_256K;
	if (ib_uses_virt_dma(dev->ibdev))
		return U64_MAX;
	size = dma_max_mapping_size(dev->ibdev->dma_device);
	return size == SIZE_MAX ? U64_MAX : size;
}

/**
 * kdapl_dma_opt_mapping - up to which size mapping is fast
 * @dev: the device, entered
 *
 * Return: bytes, U64_MAX without a limit.
 */
u64 kdapl_dma_opt_mapping(struct kdapl_device *dev)
{
	size_t size;

	if (dma_test_ops(dev) || ib_uses_virt_dma(dev->ibdev))
		return kdapl_dma_max_mapping(dev);
	size = dma_opt_mapping_size(dev->ibdev->dma_device);
	return size == SIZE_MAX ? U64_MAX : size;
}

/**
 * kdapl_dma_map_sg - map a list of memory
 * @dev: the device
 * @sgl: list
 * @nents: its entries
 * @dir: enum dma_data_direction
 *
 * Context: any; the device is there.
 * Return: number of entries the device sees; 0 or less on failure.
 */
int kdapl_dma_map_sg(struct kdapl_device *dev, struct scatterlist *sgl, int nents, int dir)
{
	if (dma_test_ops(dev))
		return dma_test_ops(dev)->map_sg(dev->ibdev, sgl, nents, dir);
	return ib_dma_map_sg(dev->ibdev, sgl, nents, dir);
}

/**
 * kdapl_dma_unmap_sg - unmap a list of memory
 * @dev: the device
 * @sgl: list
 * @nents: its entries, as for kdapl_dma_map_sg()
 * @dir: the same
 *
 * Nothing is copied: the bytes were synchronised before, and the memory may be in use for
 * something else by now.
 *
 * Context: any; the device is there.
 */
void kdapl_dma_unmap_sg(struct kdapl_device *dev, struct scatterlist *sgl, int nents, int dir)
{
	if (dma_test_ops(dev))
		dma_test_ops(dev)->unmap_sg(dev->ibdev, sgl, nents, dir);
	else
		ib_dma_unmap_sg_attrs(dev->ibdev, sgl, nents, dir, DMA_ATTR_SKIP_CPU_SYNC);
}

/**
 * kdapl_dma_map_single - map a piece of memory for both directions
 * @dev: the device
 * @address: linear memory
 * @size: bytes
 * @addr: out: the device's address
 *
 * Context: any; the device is there.
 * Return: 0 or -EIO.
 */
int kdapl_dma_map_single(struct kdapl_device *dev, void *address, size_t size, u64 *addr)
{
	if (dma_test_ops(dev)) {
		*addr = dma_test_ops(dev)->map_single(dev->ibdev, address, size, DMA_BIDIRECTIONAL);
		return *addr ? 0 : -EIO;
	}
	*addr = ib_dma_map_single(dev->ibdev, address, size, DMA_BIDIRECTIONAL);
	return ib_dma_mapping_error(dev->ibdev, *addr) ? -EIO : 0;
}

/**
 * kdapl_dma_unmap_single - unmap a piece of memory
 * @dev: the device
 * @addr: of kdapl_dma_map_single()
 * @size: bytes, as there
 *
 * Nothing is copied, as with kdapl_dma_unmap_sg().
 *
 * Context: any; the device is there.
 */
void kdapl_dma_unmap_single(struct kdapl_device *dev, u64 addr, size_t size)
{
	if (dma_test_ops(dev))
		dma_test_ops(dev)->unmap_single(dev->ibdev, addr, size, DMA_BIDIRECTIONAL);
	else if (!ib_uses_virt_dma(dev->ibdev))
		dma_unmap_single_attrs(dev->ibdev->dma_device, addr, size, DMA_BIDIRECTIONAL,
				       DMA_ATTR_SKIP_CPU_SYNC);
}

/**
 * kdapl_dma_need_sync - does this memory have to be synchronised?
 * @dev: the device
 * @addr: mapped
 *
 * Context: any; the device is there.
 * Return: whether the device may see other bytes at this address than the CPU.
 */
bool kdapl_dma_need_sync(struct kdapl_device *dev, u64 addr)
{
	if (dma_test_ops(dev))
		return dma_test_ops(dev)->need_sync(dev->ibdev, addr);
	return !ib_uses_virt_dma(dev->ibdev) &&
	       kdapl_compat_need_sync(dev->ibdev->dma_device, addr);
}

/**
 * kdapl_dma_for_device - synchronise memory the CPU has written for the device to read
 * @dev: the device
 * @addr: mapped
 * @size: bytes
 * @dir: enum dma_data_direction
 *
 * Context: any; the device is there.
 */
void kdapl_dma_for_device(struct kdapl_device *dev, u64 addr, size_t size, int dir)
{
	if (dma_test_ops(dev))
		dma_test_ops(dev)->sync(dev->ibdev, addr, size, dir, false);
	else
		ib_dma_sync_single_for_device(dev->ibdev, addr, size, dir);
}

/**
 * kdapl_dma_for_cpu - synchronise memory the device has written for the CPU to read
 * @dev: the device
 * @addr: mapped
 * @size: bytes
 *
 * Context: any; the device is there.
 */
void kdapl_dma_for_cpu(struct kdapl_device *dev, u64 addr, size_t size)
{
	if (dma_test_ops(dev))
		dma_test_ops(dev)->sync(dev->ibdev, addr, size, DMA_FROM_DEVICE, true);
	else
		ib_dma_sync_single_for_cpu(dev->ibdev, addr, size, DMA_FROM_DEVICE);
}
