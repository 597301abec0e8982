// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The memory of LMRs, from the consumer's description to a list the device can use.
 *
 * Every description becomes a scatterlist with one entry for each run of physically
 * contiguous memory, however many pages the run has. Two walks build it: the first
 * counts, the second fills it in. Nothing is stored per page, and the first walk stops
 * as soon as there are more runs than any device takes.
 *
 * All blocks of a page list have the same size, so runs must meet at block
 * boundaries. The block size is chosen when the list has been mapped
 * (kdapl_mem_page_size()): the smallest with which the list fits. It has no effect
 * on what peers may access: the bounds of a region are exact to the byte.
 */
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/scatterlist.h>
#include <linux/sizes.h>
#include <linux/vmalloc.h>

#include "mem.h"

/**
 * struct mem_walk - one of the two walks
 * @sg: entry to fill in next; NULL while counting
 * @last: last entry filled in
 * @room: entries left from @sg on
 * @max_entry: longest entry, a multiple of PAGE_SIZE
 * @max_runs: most runs the device takes
 * @runs: contiguous runs, including the current one
 * @entries: entries of all runs before the current one
 * @addr: start of the current run
 * @length: bytes of the current run
 * @total: bytes of all runs
 * @pages: pages visited so far
 */
struct mem_walk {
	struct scatterlist *sg;
	struct scatterlist *last;
	unsigned int room;
	u64 max_entry;
	unsigned int max_runs;
	unsigned int runs;
	unsigned int entries;
	phys_addr_t addr;
	u64 length;
	u64 total;
	unsigned long pages;
};

typedef int mem_walk_fn(struct mem_walk *walk, const void *region, u64 length);

static void mem_walk_resched(struct mem_walk *walk)
{
	if (!(++walk->pages % 1024))
		cond_resched();
}

/* The current run is complete. */
static int mem_walk_flush(struct mem_walk *walk)
{
	while (walk->length) {
		u32 chunk = min(walk->length, walk->max_entry - offset_in_page(walk->addr));

		if (walk->sg) {
			if (!walk->room)	/* the list has changed since the first walk */
				return -EFAULT;
			walk->room--;
			sg_set_page(walk->sg, pfn_to_page(PHYS_PFN(walk->addr)), chunk,
				    offset_in_page(walk->addr));
			walk->last = walk->sg;
			if (walk->room)
				walk->sg = sg_next(walk->sg);
		}
		walk->entries++;
		walk->addr += chunk;
		walk->length -= chunk;
	}
	return 0;
}

/* Add a piece of memory. */
static int mem_walk_add(struct mem_walk *walk, phys_addr_t addr, u64 length)
{
	int ret;

	if (walk->runs && walk->addr + walk->length == addr) {
		walk->length += length;
	} else {
		if (walk->runs && offset_in_page(walk->addr + walk->length))
			return -EFAULT;
		if (walk->runs && offset_in_page(addr))
			return -EFAULT;
		if (walk->runs == walk->max_runs)
			return -E2BIG;
		ret = mem_walk_flush(walk);
		if (ret)
			return ret;
		walk->addr = addr;
		walk->length = length;
		walk->runs++;
	}
	walk->total += length;
	return 0;
}

/* Add a piece of memory if all of it has struct pages. */
static int mem_walk_add_checked(struct mem_walk *walk, phys_addr_t addr, u64 length)
{
	unsigned long pfn = PHYS_PFN(addr), last = PHYS_PFN(addr + length - 1);

	if (addr + length < addr)
		return -EFAULT;
	do {
		if (!pfn_valid(pfn))
			return -EFAULT;
		mem_walk_resched(walk);
	} while (pfn++ < last);
	return mem_walk_add(walk, addr, length);
}

/* is_vmalloc_or_module_addr() is not exported by every kernel. */
static bool mem_needs_walk(const void *addr)
{
#ifdef MODULES_VADDR
	if ((unsigned long)addr >= MODULES_VADDR && (unsigned long)addr < MODULES_END)
		return true;
#endif
	return is_vmalloc_addr(addr);
}

/* The page behind a kernel address: linear mapping, vmalloc or module data. */
static struct page *mem_page(const void *addr)
{
	struct page *page;

	if (mem_needs_walk(addr)) {
		page = vmalloc_to_page(addr);
		/* memory of ioremap() has none */
		return page && pfn_valid(page_to_pfn(page)) ? page : NULL;
	}
	return virt_addr_valid(addr) ? virt_to_page(addr) : NULL;
}

static int mem_walk_virtual(struct mem_walk *walk, const void *region, u64 length)
{
	const void *va = region;
	int ret;

	while (length) {
		u32 chunk = min_t(u64, length, PAGE_SIZE - offset_in_page(va));
		struct page *page = mem_page(va);

		if (!page)
			return -EFAULT;
		ret = mem_walk_add(walk, page_to_phys(page) + offset_in_page(va), chunk);
		if (ret)
			return ret;
		mem_walk_resched(walk);
		va += chunk;
		length -= chunk;
	}
	return 0;
}

static int mem_walk_pages(struct mem_walk *walk, const void *region, u64 length)
{
	const DAT_PHYSICAL_VAR_PAGES *array = region;
	const DAT_PADDR *pages = array->pages;
	u64 i;
	int ret;

	for (i = 0; i < length; i++) {
		if (!IS_ALIGNED(pages[i], array->page_size) ||
		    (phys_addr_t)pages[i] != pages[i])
			return -EFAULT;
		ret = mem_walk_add_checked(walk, pages[i], array->page_size);
		if (ret)
			return ret;
	}
	return 0;
}

static int mem_walk_sgt(struct mem_walk *walk, const void *region, u64 length)
{
	const struct sg_table *sgt = region;
	struct scatterlist *sg;
	unsigned int i;
	int ret;

	for_each_sg(sgt->sgl, sg, sgt->orig_nents, i) {
		u32 chunk = min_t(u64, length, sg->length);

		if (!chunk)
			continue;
		if (!sg_page(sg))
			return -EFAULT;
		ret = mem_walk_add_checked(walk, sg_phys(sg), chunk);
		if (ret)
			return ret;
		length -= chunk;
	}
	return length ? -EINVAL : 0;
}

/* Is it too long even with the largest possible blocks? */
static bool mem_too_long(struct kdapl_ia *ia, u64 length)
{
	return (length - 1) >> 31 >= ia->dev->attrs.max_fast_reg_page_list_len;
}

/* Build the list in two walks. */
static int mem_walk(struct kdapl_mem *mem, struct kdapl_ia *ia, mem_walk_fn *fn,
		    const void *region, u64 length)
{
	struct mem_walk walk = {
		.max_entry = ia->dev->dma_max_entry,
		.max_runs = max(ia->dev->attrs.max_fast_reg_page_list_len, 1U),
	};
	struct mem_walk fill = walk;
	int ret;

	ret = fn(&walk, region, length) ?: mem_walk_flush(&walk);
	if (ret)
		return ret;
	ret = sg_alloc_table(&mem->sgt, walk.entries, GFP_KERNEL);
	if (ret)
		return ret;
	fill.sg = mem->sgt.sgl;
	fill.room = walk.entries;
	ret = fn(&fill, region, length) ?: mem_walk_flush(&fill);
	if (ret)
		return ret;
	if (fill.entries != walk.entries || fill.total != walk.total)
		return -EFAULT;
	mem->used = fill.entries;
	mem->length = fill.total;
	return 0;
}

static int mem_pages(struct kdapl_mem *mem, struct kdapl_ia *ia,
		     const DAT_PHYSICAL_VAR_PAGES *array, u64 npages)
{
	if (!array->pages)
		return -EFAULT;
	if (!is_power_of_2(array->page_size) ||
	    !(array->page_size & kdapl_mem_page_sizes(ia->dev, false)))
		return -EFAULT;
	if (npages > U64_MAX >> ilog2(array->page_size))
		return -EINVAL;
	/* do not read an array that long */
	if (mem_too_long(ia, npages * array->page_size))
		return -E2BIG;
	mem->start = *(const DAT_PADDR *)array->pages;
	return mem_walk(mem, ia, mem_walk_pages, array, npages);
}

static int mem_platform(struct kdapl_mem *mem, struct kdapl_ia *ia, const struct sg_table *sgt,
			u64 length)
{
	struct scatterlist *sg;
	unsigned int i;
	int ret;

	if (!sgt || !sgt->sgl)
		return -EFAULT;
	ret = mem_walk(mem, ia, mem_walk_sgt, sgt, length);
	if (ret)
		return ret;
	for_each_sg(sgt->sgl, sg, sgt->orig_nents, i) {
		if (sg->length)
			break;
	}
	mem->start = sg_phys(sg);
	return 0;
}

/* Memory that is given by an address of the device. */
static int mem_ia(struct kdapl_mem *mem, struct kdapl_ia *ia, u64 addr, u64 length)
{
	u64 max_entry = ia->dev->dma_max_entry, end = addr + length, pos, entries;
	struct scatterlist *sg;
	unsigned long pages = 0;
	unsigned int i;
	int ret;

	if (end < addr || (dma_addr_t)(end - 1) != end - 1)
		return -EFAULT;
	if (ib_uses_virt_dma(ia->dev->ibdev)) {
		for (pos = addr; pos < end; pos = round_down(pos, PAGE_SIZE) + PAGE_SIZE) {
			const void *va = (const void *)(uintptr_t)pos;

			if (mem_needs_walk(va) || !virt_addr_valid(va))
				return -EFAULT;
			if (!(++pages % 1024))
				cond_resched();
		}
	}
	if (mem_too_long(ia, length))
		return -E2BIG;
	entries = DIV_ROUND_UP_ULL(offset_in_page(addr) + length, max_entry);
	ret = sg_alloc_table(&mem->sgt, entries, GFP_KERNEL);
	if (ret)
		return ret;
	pos = addr;
	for_each_sg(mem->sgt.sgl, sg, entries, i) {
		u32 chunk = min(end - pos, max_entry - offset_in_page(pos));

		sg->length = chunk;
		sg_dma_address(sg) = pos;
		sg_dma_len(sg) = chunk;
		pos += chunk;
	}
	mem->foreign = true;
	mem->used = entries;
	mem->start = addr;
	mem->length = length;
	return 0;
}

/* Serialises copying a list and mem_widen(). */
static DEFINE_MUTEX(source_mutex);

static bool mem_widens(const struct kdapl_mem *mem)
{
	return mem->head | mem->tail;
}

static void mem_copy_list(struct kdapl_mem *mem, const struct kdapl_mem *from)
{
	struct scatterlist *in = from->sgt.sgl, *out;
	unsigned int i;

	for_each_sg(mem->sgt.sgl, out, from->used, i) {
		if (from->foreign) {
			out->length = in->length;
			sg_dma_address(out) = sg_dma_address(in);
			sg_dma_len(out) = sg_dma_len(in);
		} else {
			sg_set_page(out, sg_page(in), in->length, in->offset);
		}
		in = sg_next(in);
		if (!(i % 1024))
			cond_resched();
	}
}

/* Copy the list of another LMR, which may be freed meanwhile. */
static int mem_copy(struct kdapl_mem *mem, const struct kdapl_mem *from)
{
	int ret;

	if (!from->used)
		return -EFAULT;
	ret = sg_alloc_table(&mem->sgt, from->used, GFP_KERNEL);
	if (ret)
		return ret;
	if (unlikely(mem_widens(from))) {
		mutex_lock(&source_mutex);
		mem_copy_list(mem, from);
		mutex_unlock(&source_mutex);
	} else {
		mem_copy_list(mem, from);
	}
	mem->foreign = from->foreign;
	mem->used = from->used;
	mem->start = from->start;
	mem->length = from->length;
	return 0;
}

static int mem_lmr(struct kdapl_mem *mem, struct kdapl_ia *ia, DAT_LMR_HANDLE handle)
{
	struct kdapl_lmr *lmr = kdapl_obj_get(handle, DAT_HANDLE_TYPE_LMR);
	int ret = -EFAULT;

	if (lmr && lmr->obj.ia == ia)
		ret = mem_copy(mem, &lmr->mem);
	if (lmr)
		kdapl_obj_put(&lmr->obj);
	return ret;
}

static int mem_build(struct kdapl_mem *mem, struct kdapl_ia *ia, DAT_MEM_TYPE mem_type,
		     const DAT_REGION_DESCRIPTION *region, u64 length)
{
	const DAT_PHYSICAL_VAR_PAGES physical = {
		.page_size = PAGE_SIZE,
		.pages = region->for_physical,
	};
	uintptr_t va = (uintptr_t)region->for_va;

	switch (mem_type) {
	case DAT_MEM_TYPE_VIRTUAL:
		if (length > UINTPTR_MAX || va + length - 1 < va)
			return -EINVAL;
		mem->start = va;
		return mem_walk(mem, ia, mem_walk_virtual, region->for_va, length);
	case DAT_MEM_TYPE_PHYSICAL:
		return mem_pages(mem, ia, &physical, length);
	case DAT_MEM_TYPE_PHYSICAL_VAR_PAGES:
		return mem_pages(mem, ia, &region->for_array, length);
	case DAT_MEM_TYPE_PLATFORM:
		return mem_platform(mem, ia, region->for_platform, length);
	case DAT_MEM_TYPE_IA:
		return mem_ia(mem, ia, region->for_ia, length);
	case DAT_MEM_TYPE_LMR:
		return mem_lmr(mem, ia, region->for_lmr_handle);
	default:
		return -EFAULT;
	}
}

/**
 * kdapl_mem_build - build the list of a memory
 * @mem: zeroed
 * @ia: IA whose device is to use the memory
 * @mem_type: type of @region: VIRTUAL, PHYSICAL, PHYSICAL_VAR_PAGES, PLATFORM, IA, or
 *	LMR, whose source has the same IA and is neither the reserved LMR nor one of
 *	dat_lmr_allocate()
 * @region: the memory; read during the call only
 * @length: bytes, not 0; pages for PHYSICAL and PHYSICAL_VAR_PAGES; ignored for LMR
 *
 * Context: may sleep; inside kdapl_dev_enter().
 * Return: 0; -EFAULT: @region is wrong: no struct page, a gap, an address that is not
 * aligned, a page size the device does not have, no such LMR; -EINVAL: @length is
 * wrong: 0, beyond the end of the address space or of the table; -E2BIG: more runs than
 * the device takes, with a line in the log; -ENOMEM. The caller calls kdapl_mem_free()
 * in any case.
 */
int kdapl_mem_build(struct kdapl_mem *mem, struct kdapl_ia *ia, DAT_MEM_TYPE mem_type,
		    const DAT_REGION_DESCRIPTION *region, u64 length)
{
	int ret = -EINVAL;

	if (length || mem_type == DAT_MEM_TYPE_LMR)
		ret = mem_build(mem, ia, mem_type, region, length);
	if (ret == -E2BIG)
		pr_err_ratelimited("%s: region of %llu %s has more pieces than the %u the device takes in one region\n",
				   ia->name, length,
				   mem_type == DAT_MEM_TYPE_PHYSICAL ||
				   mem_type == DAT_MEM_TYPE_PHYSICAL_VAR_PAGES ? "pages" : "bytes",
				   ia->dev->attrs.max_fast_reg_page_list_len);
	return ret;
}

/* Without any right to write, the device only reads the memory. */
static int mem_direction(DAT_MEM_PRIV_FLAGS priv)
{
	return priv & DAT_MEM_PRIV_WRITE_FLAG ? DMA_BIDIRECTIONAL : DMA_TO_DEVICE;
}

/* The n-th entry of the list. */
static struct scatterlist *mem_entry(struct kdapl_mem *mem, unsigned int n)
{
	struct scatterlist *sg = mem->sgt.sgl;

	while (n--)
		sg = sg_next(sg);
	return sg;
}

/*
 * If bounce buffers are possible, the first and the last page are mapped as a whole: a copy of
 * whole pages starts on a page, too. If caches are not coherent, the kernel may copy memory that
 * is not a multiple of a cache line (CONFIG_DMA_BOUNCE_UNALIGNED_KMALLOC), but never whole pages.
 */
static void mem_widen(struct kdapl_mem *mem)
{
	struct scatterlist *first = mem->sgt.sgl, *last = mem_entry(mem, mem->used - 1);

	first->offset -= mem->head;
	first->length += mem->head;
	last->length += mem->tail;
}

static void mem_narrow(struct kdapl_mem *mem)
{
	struct scatterlist *first = mem->sgt.sgl, *last = mem_entry(mem, mem->used - 1);

	first->offset += mem->head;
	first->length -= mem->head;
	last->length -= mem->tail;
}

/* The same for the DMA addresses; DMA lengths may be the same fields as those of the memory. */
static void mem_move_ends(struct kdapl_mem *mem, int nents, bool narrow)
{
	struct scatterlist *first = mem->sgt.sgl;

	sg_dma_address(first) += narrow ? mem->head : -(u64)mem->head;
	if (IS_ENABLED(CONFIG_NEED_SG_DMA_LENGTH)) {
		struct scatterlist *last = mem_entry(mem, nents - 1);

		sg_dma_len(first) += narrow ? -mem->head : mem->head;
		sg_dma_len(last) += narrow ? -mem->tail : mem->tail;
	}
}

static int mem_map_list(struct kdapl_mem *mem, struct kdapl_device *dev)
{
	struct scatterlist *last;
	int nents;

	mem->head = 0;
	mem->tail = 0;
	if (likely(dev->dma == KDAPL_DMA_SAME))
		return kdapl_dma_map_sg(dev, mem->sgt.sgl, mem->used, mem->dir);
	last = mem_entry(mem, mem->used - 1);
	mem->head = offset_in_page(mem->sgt.sgl->offset);
	mem->tail = PAGE_ALIGN(last->offset + last->length) - (last->offset + last->length);
	mem_widen(mem);
	nents = kdapl_dma_map_sg(dev, mem->sgt.sgl, mem->used, mem->dir);
	mem_narrow(mem);
	if (nents > 0)
		mem_move_ends(mem, nents, true);
	return nents;
}

static void mem_unmap_list(struct kdapl_mem *mem, struct kdapl_device *dev)
{
	if (likely(!mem_widens(mem))) {
		kdapl_dma_unmap_sg(dev, mem->sgt.sgl, mem->used, mem->dir);
		return;
	}
	mem_move_ends(mem, mem->nents, false);
	mem_widen(mem);
	kdapl_dma_unmap_sg(dev, mem->sgt.sgl, mem->used, mem->dir);
	mem_narrow(mem);
}

/* Does this mapping have to be synchronised? */
static bool mem_needs_sync(struct kdapl_mem *mem, struct kdapl_device *dev)
{
	struct scatterlist *sg;
	unsigned int i;

	if (likely(dev->dma == KDAPL_DMA_SAME))
		return kdapl_dma_need_sync(dev, sg_dma_address(mem->sgt.sgl));
	for_each_sg(mem->sgt.sgl, sg, mem->nents, i) {
		if (kdapl_dma_need_sync(dev, sg_dma_address(sg)))
			return true;
	}
	return false;
}

/* Can this mapping be synchronised to the byte? */
static int mem_check_sync(const struct kdapl_mem *mem, struct kdapl_device *dev)
{
	if (dev->dma == KDAPL_DMA_SAME) {
		pr_err_ratelimited("%s: memory is refused: it needs a bounce buffer, and the device needed none when kdapl was loaded; reload kdapl\n",
				   dev->name);
		return -EIO;
	}
	if (dev->dma == KDAPL_DMA_COPIES && mem->foreign && mem->dir != DMA_TO_DEVICE) {
		pr_err_ratelimited("%s: memory of type IA is refused: it is a bounce buffer of unknown memory; register that memory by its virtual address\n",
				   dev->name);
		return -EIO;
	}
	return 0;
}

/**
 * kdapl_mem_map - map memory for the device
 * @mem: built, not mapped
 * @dev: the device
 * @priv: rights it will have
 *
 * If bounce buffers are possible, kdapl_mem_alloc_base() comes first.
 *
 * Context: any; the device is there.
 * Return: 0 or -EIO.
 */
int kdapl_mem_map(struct kdapl_mem *mem, struct kdapl_device *dev, DAT_MEM_PRIV_FLAGS priv)
{
	int nents = mem->used, ret = 0;

	mem->dir = mem_direction(priv);
	if (!mem->foreign)
		nents = mem_map_list(mem, dev);
	if (nents <= 0)
		return -EIO;
	mem->nents = nents;
	mem->sync = mem_needs_sync(mem, dev);
	if (unlikely(mem->sync))
		ret = mem_check_sync(mem, dev);
	if (unlikely(ret)) {
		mem->sync = false;	/* nothing to copy back: the device has not seen it */
		kdapl_mem_unmap(mem, dev);
	}
	return ret;
}

/**
 * kdapl_mem_unmap - unmap memory
 * @mem: mapped or not
 * @dev: the device
 *
 * The CPU gets the bytes the device has written, and keeps those it has written itself.
 *
 * Context: any; the device is there.
 */
void kdapl_mem_unmap(struct kdapl_mem *mem, struct kdapl_device *dev)
{
	if (unlikely(mem->nents && mem->sync))
		kdapl_mem_sync(dev, mem, 0, mem->length, KDAPL_SYNC_SHARED);
	if (mem->nents && !mem->foreign)
		mem_unmap_list(mem, dev);
	mem->nents = 0;
	mem->sync = false;
}

/**
 * kdapl_mem_unmap_source - unmap memory that may be the source of another LMR
 * @mem: of dat_lmr_kcreate(), mapped or not
 * @dev: the device
 *
 * Context: may sleep; the device is there.
 */
void kdapl_mem_unmap_source(struct kdapl_mem *mem, struct kdapl_device *dev)
{
	if (likely(!mem_widens(mem))) {
		kdapl_mem_unmap(mem, dev);
		return;
	}
	mutex_lock(&source_mutex);
	kdapl_mem_unmap(mem, dev);
	mutex_unlock(&source_mutex);
}

/**
 * kdapl_mem_free - free the list
 * @mem: zeroed, or built and not mapped; kdapl_mem_free_base() comes first
 *
 * Context: any but hard interrupts, also with interrupts off.
 */
void kdapl_mem_free(struct kdapl_mem *mem)
{
	sg_free_table(&mem->sgt);
	mem->used = 0;
}

/**
 * kdapl_mem_max_length - how long a registered region can be
 * @dev: the device
 *
 * Return: bytes, U64_MAX without a limit but that of the page list.
 */
u64 kdapl_mem_max_length(const struct kdapl_device *dev)
{
	return unlikely(dev->caps.short_length) ? U32_MAX : U64_MAX;
}

/**
 * kdapl_mem_page_size - choose the block size for a list
 * @dev: the device
 * @sgl: list, mapped
 * @nents: its entries
 * @start: address of its first byte for peers and segments
 * @sizes: union of the sizes to choose from, see kdapl_mem_page_sizes()
 * @max_blocks: most blocks there may be
 * @blocks: out: number of blocks, if there is a size
 *
 * Runs must meet at block boundaries, and the offset within the first block must be
 * that of @start.
 *
 * Soft-iWARP has no blocks: it stores the list as it is, with entries of any length,
 * and only their number counts. It merges neighbours, to entries of at most 2 GiB.
 *
 * Context: any; does not sleep.
 * Return: the smallest size that fits, or 0.
 */
u32 kdapl_mem_page_size(struct kdapl_device *dev, struct scatterlist *sgl, unsigned int nents,
			u64 start, u64 sizes, u32 max_blocks, u32 *blocks)
{
	u64 first = sg_dma_address(sgl), end = first, edges = start ^ first, total = 0, run = 0;
	struct scatterlist *sg;
	unsigned int i, bit;
	u64 longest = 0;

	for_each_sg(sgl, sg, nents, i) {
		u64 addr = sg_dma_address(sg);
		u32 length = sg_dma_len(sg);

		if (addr != end) {
			edges |= addr | end;
			run = 0;
		}
		run += length;
		longest = max(longest, run);
		total += length;
		end = addr + length;
	}
	if (unlikely(total > kdapl_mem_max_length(dev)))
		return 0;
	if (dev->caps.any_page_size) {
		*blocks = nents;
		return offset_in_page(edges) || nents > max_blocks || longest > S32_MAX ?
			0 : PAGE_SIZE;
	}
	for (bit = PAGE_SHIFT; bit < 32; bit++) {
		u64 size = 1ULL << bit, n;

		if (edges & (size - 1))
			break;
		if (!(sizes & size))
			continue;
		/* all inner edges are on blocks, so the runs count as one */
		n = ((first & (size - 1)) + total + size - 1) >> bit;
		if (n > max_blocks)
			continue;
		*blocks = n;
		return size;
	}
	return 0;
}

/**
 * kdapl_mem_page_sizes - block sizes of a device
 * @dev: the device
 * @fmr: the list is mapped where nothing can be allocated
 *
 * Return: union of the sizes, PAGE_SIZE and larger.
 */
u64 kdapl_mem_page_sizes(struct kdapl_device *dev, bool fmr)
{
	/* entries have any length */
	if (dev->caps.any_page_size)
		return GENMASK_ULL(30, PAGE_SHIFT);
	/* larger pages make the provider allocate memory (D-24) */
	if (dev->caps.map_allocates && fmr)
		return PAGE_SIZE;
	return PAGE_SIZE | (dev->attrs.page_size_cap & PAGE_MASK & U32_MAX);
}
