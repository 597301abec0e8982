// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Memory that CPU and device do not see alike.
 *
 * Mostly they do, and nothing here runs but the mapping itself. But where memory of a guest
 * is encrypted, where the device cannot address all of it, or where somebody boots with
 * swiotlb=force, a device is given a copy (a bounce buffer), and where caches are not
 * coherent it may see what the CPU has long changed, or the other way round. A mapping of
 * kDAPL lasts for many transfers, so the bytes have to be synchronised for each of them, by
 * exact ranges: next to a message that has just arrived there may be one that the CPU is
 * about to write.
 *
 * A copy is made of whole pages: the kernel places it on a page then, so that the offset in
 * the page stays what it was, which page lists need. Nothing but the exact bytes is ever
 * copied back.
 *
 * Where both CPU and peers write, neither copy is simply the newer one, and
 * dat_lmr_sync_rdma_write() is due after either has written. So with a copy that the device
 * may write, a third one is kept: the bytes as they were when both agreed last. A byte that
 * differs from it in the CPU's memory was changed there and is shown to the device; all
 * others are taken from the device.
 */
#include <linux/dma-mapping.h>
#include <linux/highmem.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/sizes.h>

#include "kdapl.h"

/* What a test has put in place of the kernel's DMA. */
static inline const struct kdapl_dma_ops *test_dma(const struct kdapl_device *dev)
{
#ifdef KDAPL_KUNIT
	return dev->dma_ops;
#else
	return NULL;
#endif
}

/* Is a page copied for the device, on this machine, as far as one page can tell? */
static bool dma_probe(struct kdapl_device *dev)
{
	struct device *dma = dev->ibdev->dma_device;
	struct page *page = alloc_page(GFP_KERNEL);
	bool sync = false;
	dma_addr_t addr;

	if (!page)
		return true;	/* assume the worst: that only costs performance */
	addr = dma_map_page(dma, page, 0, PAGE_SIZE, DMA_TO_DEVICE);
	if (!dma_mapping_error(dma, addr)) {
		sync = kdapl_compat_need_sync(dma, addr);
		dma_unmap_page(dma, addr, PAGE_SIZE, DMA_TO_DEVICE);
	}
	__free_page(page);
	return sync;
}

/**
 * kdapl_dma_init - find out how a device sees memory
 * @dev: new device, with @ibdev set
 *
 * Context: may sleep.
 */
void kdapl_dma_init(struct kdapl_device *dev)
{
	struct device *dma = dev->ibdev->dma_device;

#ifdef KDAPL_KUNIT
	dev->dma_ops = kdapl_test_dma(dev->ibdev);
#endif
	dev->dma = KDAPL_DMA_SAME;
	dev->dma_coherent = true;
	if (test_dma(dev)) {
		dev->dma = test_dma(dev)->kind;
		dev->dma_coherent = test_dma(dev)->coherent;
		return;
	}
	if (ib_uses_virt_dma(dev->ibdev))
		return;
	dev->dma_coherent = dev_is_dma_coherent(dma);
	if (!dev->dma_coherent)
		dev->dma = KDAPL_DMA_CACHES;
	/* only copies have a size that mappings are limited to */
	if (dma_max_mapping_size(dma) != SIZE_MAX || (dev->dma_coherent && dma_probe(dev)))
		dev->dma = KDAPL_DMA_COPIES;
	if (dev->dma == KDAPL_DMA_COPIES)
		pr_info("%s: the device may be given copies of memory: each transfer is copied, lmr_sync_req is TRUE\n",
			dev_name(&dev->ibdev->dev));
}

/**
 * kdapl_dma_max_entry - the longest piece of memory that can be mapped
 * @dev: the device
 *
 * Return: bytes, a multiple of PAGE_SIZE.
 */
u32 kdapl_dma_max_entry(struct kdapl_device *dev)
{
	u64 max = min_t(u32, ib_dma_max_seg_size(dev->ibdev), SZ_1G);

	if (test_dma(dev))
		max = min_t(u64, max, SZ_256K);
	else if (dev->dma == KDAPL_DMA_COPIES)
		max = min_t(u64, max, dma_max_mapping_size(dev->ibdev->dma_device));
	return max_t(u64, round_down(max, PAGE_SIZE), PAGE_SIZE);
}

/**
 * kdapl_dma_map_sg - show a list of memory to a device
 * @dev: the device
 * @sgl: list
 * @nents: its entries
 * @dir: enum dma_data_direction
 *
 * Context: any; the device is there.
 * Return: entries the device sees, 0 or less if it does not work.
 */
int kdapl_dma_map_sg(struct kdapl_device *dev, struct scatterlist *sgl, int nents, int dir)
{
	if (test_dma(dev))
		return test_dma(dev)->map_sg(dev->ibdev, sgl, nents, dir);
	return ib_dma_map_sg(dev->ibdev, sgl, nents, dir);
}

/**
 * kdapl_dma_unmap_sg - the end of it
 * @dev: the device
 * @sgl: list
 * @nents: its entries, as for kdapl_dma_map_sg()
 * @dir: the same
 *
 * Nothing is copied: what there is to be seen has been, and the memory may have other
 * contents by now.
 *
 * Context: any; the device is there.
 */
void kdapl_dma_unmap_sg(struct kdapl_device *dev, struct scatterlist *sgl, int nents, int dir)
{
	if (test_dma(dev))
		test_dma(dev)->unmap_sg(dev->ibdev, sgl, nents, dir);
	else
		ib_dma_unmap_sg_attrs(dev->ibdev, sgl, nents, dir, DMA_ATTR_SKIP_CPU_SYNC);
}

/**
 * kdapl_dma_map_single - show a piece of memory to a device, for both directions
 * @dev: the device
 * @address: linear memory
 * @size: bytes
 * @addr: where the device's address goes
 *
 * Context: any; the device is there.
 * Return: 0 or -EIO.
 */
int kdapl_dma_map_single(struct kdapl_device *dev, void *address, size_t size, u64 *addr)
{
	if (test_dma(dev)) {
		*addr = test_dma(dev)->map_single(dev->ibdev, address, size, DMA_BIDIRECTIONAL);
		return *addr ? 0 : -EIO;
	}
	*addr = ib_dma_map_single(dev->ibdev, address, size, DMA_BIDIRECTIONAL);
	return ib_dma_mapping_error(dev->ibdev, *addr) ? -EIO : 0;
}

/**
 * kdapl_dma_unmap_single - the end of it
 * @dev: the device
 * @addr: of kdapl_dma_map_single()
 * @size: bytes, as there
 *
 * Nothing is copied, as in kdapl_dma_unmap_sg().
 *
 * Context: any; the device is there.
 */
void kdapl_dma_unmap_single(struct kdapl_device *dev, u64 addr, size_t size)
{
	if (test_dma(dev))
		test_dma(dev)->unmap_single(dev->ibdev, addr, size, DMA_BIDIRECTIONAL);
	else if (!ib_uses_virt_dma(dev->ibdev))
		dma_unmap_single_attrs(dev->ibdev->dma_device, addr, size, DMA_BIDIRECTIONAL,
				       DMA_ATTR_SKIP_CPU_SYNC);
}

/**
 * kdapl_dma_need_sync - may a device see other bytes at an address than the CPU?
 * @dev: the device
 * @addr: mapped
 *
 * Context: any; the device is there.
 */
bool kdapl_dma_need_sync(struct kdapl_device *dev, u64 addr)
{
	if (test_dma(dev))
		return test_dma(dev)->need_sync(dev->ibdev, addr);
	return !ib_uses_virt_dma(dev->ibdev) &&
	       kdapl_compat_need_sync(dev->ibdev->dma_device, addr);
}

static void dma_for_device(struct kdapl_device *dev, u64 addr, size_t size, int dir)
{
	if (test_dma(dev))
		test_dma(dev)->sync(dev->ibdev, addr, size, dir, false);
	else
		ib_dma_sync_single_for_device(dev->ibdev, addr, size, dir);
}

static void dma_for_cpu(struct kdapl_device *dev, u64 addr, size_t size)
{
	if (test_dma(dev))
		test_dma(dev)->sync(dev->ibdev, addr, size, DMA_FROM_DEVICE, true);
	else
		ib_dma_sync_single_for_cpu(dev->ibdev, addr, size, DMA_FROM_DEVICE);
}

/* All of a piece, without a third copy of it. */
static void sync_plain(struct kdapl_device *dev, u64 addr, size_t size, enum kdapl_sync why)
{
	switch (why) {
	case KDAPL_SYNC_SOURCE:
		dma_for_device(dev, addr, size, DMA_TO_DEVICE);
		break;
	case KDAPL_SYNC_SINK:
		/* a copy is overwritten; a line of the cache must not be written back later */
		if (!dev->dma_coherent)
			dma_for_device(dev, addr, size, DMA_BIDIRECTIONAL);
		break;
	case KDAPL_SYNC_SHARED:
		/* what the CPU has changed must not be lost with its cache */
		if (!dev->dma_coherent)
			dma_for_device(dev, addr, size, DMA_BIDIRECTIONAL);
		fallthrough;
	case KDAPL_SYNC_FILLED:
		dma_for_cpu(dev, addr, size);
		break;
	case KDAPL_SYNC_FAILED:
		/* a copy is overwritten before it is sent; a cache may know what was there */
		if (!dev->dma_coherent)
			dma_for_cpu(dev, addr, size);
	}
}

/* Show what the CPU has changed of a piece to the device, and not a byte more. */
static void sync_changes(struct kdapl_device *dev, u64 addr, const u8 *now, u8 *common, u32 size)
{
	u32 from, to = 0;

	while (to < size) {
		for (from = to; from < size && now[from] == common[from]; from++)
			;
		for (to = from; to < size && now[to] != common[to]; to++)
			common[to] = now[to];
		if (from < to)
			dma_for_device(dev, addr + from, to - from, DMA_TO_DEVICE);
	}
}

/* Take from the device what it has changed of a piece, and show it what the CPU has. */
static void sync_merge(struct kdapl_device *dev, u64 addr, u8 *now, u8 *common, u32 size, u8 *work)
{
	u32 i;

	if (!memcmp(now, common, size)) {
		dma_for_cpu(dev, addr, size);
		memcpy(common, now, size);
		return;
	}
	memcpy(work, now, size);
	dma_for_cpu(dev, addr, size);
	for (i = 0; i < size; i++) {
		u8 theirs = now[i];

		/* changed here and not there; what both have changed is the device's */
		if (work[i] != common[i] && theirs == common[i])
			now[i] = work[i];
		common[i] = theirs;
	}
	sync_changes(dev, addr, now, common, size);
}

/* The same as sync_plain(), of memory with a third copy. */
static void sync_shared(struct kdapl_device *dev, u64 addr, u8 *now, u8 *common, u32 size,
			u8 *work, enum kdapl_sync why)
{
	switch (why) {
	case KDAPL_SYNC_SOURCE:
		sync_changes(dev, addr, now, common, size);
		break;
	case KDAPL_SYNC_SINK:
		sync_plain(dev, addr, size, why);
		break;
	case KDAPL_SYNC_FILLED:
		dma_for_cpu(dev, addr, size);
		memcpy(common, now, size);
		break;
	case KDAPL_SYNC_FAILED:
		/*
		 * What the device has is not known, so that no byte of it can be told from a
		 * change: have it forget all of them. Where it has no copy that is the cache's.
		 */
		dma_for_device(dev, addr, size, DMA_TO_DEVICE);
		if (!dev->dma_coherent)
			dma_for_cpu(dev, addr, size);
		memcpy(common, now, size);
		break;
	case KDAPL_SYNC_SHARED:
		sync_merge(dev, addr, now, common, size, work);
	}
}

/**
 * kdapl_dma_sync - synchronise memory that is known by its address for the device only
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
		/* pages that follow each other behind an IOMMU need not do so in memory */
		u32 part = min_t(u64, length, PAGE_SIZE - offset_in_page(addr));

		sync_plain(dev, addr, part, why);
		addr += part;
		length -= part;
	}
}

/* A place in a list, and how far it is into the entry. */
struct list_pos {
	struct scatterlist *sg;
	u64 off;
};

static struct list_pos pos_of_device(struct scatterlist *sgl, u64 pos)
{
	while (pos >= sg_dma_len(sgl)) {
		pos -= sg_dma_len(sgl);
		sgl = sg_next(sgl);
	}
	return (struct list_pos) { .sg = sgl, .off = pos };
}

static struct list_pos pos_of_memory(struct scatterlist *sgl, u64 pos)
{
	while (pos >= sgl->length) {
		pos -= sgl->length;
		sgl = sg_next(sgl);
	}
	return (struct list_pos) { .sg = sgl, .off = pos };
}

static void pos_advance(struct list_pos *pos, u32 part, u64 length)
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
	struct list_pos theirs = pos_of_device(mem->sgt.sgl, pos);
	struct list_pos ours = pos_of_memory(mem->sgt.sgl, pos);
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
		sync_shared(dev, addr, page + offset_in_page(offset), mem->common + pos, part,
			    mem->common + mem->common_size, why);
		kunmap_local(page);
		pos_advance(&theirs, part, sg_dma_len(theirs.sg));
		pos_advance(&ours, part, ours.sg->length);
		pos += part;
		length -= part;
	}
}

/**
 * kdapl_mem_sync - synchronise a part of a memory
 * @dev: the device
 * @mem: mapped, and nobody unmaps it now; needs to be synchronised
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
	if (mem->common) {
		mem_sync_shared(dev, mem, pos, length, why);
		return;
	}
	at = pos_of_device(mem->sgt.sgl, pos);
	while (length) {
		part = min_t(u64, length, sg_dma_len(at.sg) - at.off);
		kdapl_dma_sync(dev, sg_dma_address(at.sg) + at.off, part, why);
		pos_advance(&at, part, sg_dma_len(at.sg));
		length -= part;
	}
}

/**
 * kdapl_mem_share - get what is needed where CPU and device both write a memory
 * @mem: without
 * @length: bytes it has at most
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int kdapl_mem_share(struct kdapl_mem *mem, u64 length)
{
	if (length > SIZE_MAX - PAGE_SIZE)
		return -ENOMEM;
	mem->common = kvmalloc(length + PAGE_SIZE, GFP_KERNEL | __GFP_NOWARN);
	if (!mem->common)
		return -ENOMEM;
	mem->common_size = length;
	return 0;
}

/**
 * kdapl_mem_unshare - give it back
 * @mem: not mapped, or not to be synchronised
 *
 * Context: may sleep, since such memory may be vmalloc()ed.
 */
void kdapl_mem_unshare(struct kdapl_mem *mem)
{
	kvfree(mem->common);
	mem->common = NULL;
}

/**
 * kdapl_mem_agree - CPU and device are about to see the same bytes
 * @mem: with kdapl_mem_share(), about to be mapped; not longer than said there
 *
 * Context: any.
 */
void kdapl_mem_agree(struct kdapl_mem *mem)
{
	sg_copy_to_buffer(mem->sgt.sgl, mem->used, mem->common, mem->common_size);
}
