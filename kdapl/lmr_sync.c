// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Memory between CPU and device: making it coherent, addresses of the device's,
 * and advice on what to register and how.
 */
#include <linux/dma-map-ops.h>
#include <linux/export.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/sizes.h>

#include "kdapl.h"

/* Bytes to look after with interrupts off. */
#define SYNC_PIECE	SZ_256K

typedef void sync_fn(struct ib_device *ibdev, u64 addr, size_t size);

/**
 * kdapl_mem_sync_needed - does a device see memory otherwise than the CPU?
 * @ibdev: the device
 *
 * Return: whether dat_lmr_sync_rdma_read() and _write() do something.
 */
bool kdapl_mem_sync_needed(struct ib_device *ibdev)
{
	return !ib_uses_virt_dma(ibdev) && !dev_is_dma_coherent(ibdev->dma_device);
}

static void sync_for_device(struct ib_device *ibdev, u64 addr, size_t size)
{
	ib_dma_sync_single_for_device(ibdev, addr, size, DMA_TO_DEVICE);
}

static void sync_for_cpu(struct ib_device *ibdev, u64 addr, size_t size)
{
	/* the CPU's own writes, if any, must not be lost with its cache */
	if (kdapl_mem_sync_needed(ibdev))
		ib_dma_sync_single_for_device(ibdev, addr, size, DMA_BIDIRECTIONAL);
	ib_dma_sync_single_for_cpu(ibdev, addr, size, DMA_FROM_DEVICE);
}

/* Bytes from @pos of a mapped list on, but not the entries before them. */
static void sync_list(const struct kdapl_mem *mem, struct ib_device *ibdev, u64 pos, u64 length,
		      sync_fn *fn)
{
	struct scatterlist *sg;
	unsigned int i;

	for_each_sg(mem->sgt.sgl, sg, mem->nents, i) {
		u32 part = sg_dma_len(sg);

		if (!length)
			break;
		if (pos >= part) {
			pos -= part;
			continue;
		}
		part = min_t(u64, part - pos, length);
		fn(ibdev, sg_dma_address(sg) + pos, part);
		length -= part;
		pos = 0;
	}
}

/*
 * One piece of a segment, if there is anything to do. The lock keeps the memory
 * mapped: keys are hidden under it before that ends. False: no such key, or outside of
 * what it stands for.
 */
static bool sync_piece(struct kdapl_ia *ia, u32 key, u64 addr, u64 length, sync_fn *fn)
{
	struct ib_device *ibdev = ia->dev->ibdev;
	struct kdapl_mr *mr = kdapl_keys_find(&ia->keys, key);
	struct kdapl_lmr *lmr;
	unsigned long flags;
	bool ok;

	if (!mr || mr->owner->type != DAT_HANDLE_TYPE_LMR)
		return false;
	lmr = container_of(mr, struct kdapl_lmr, mr);
	spin_lock_irqsave(&mr->lock, flags);
	ok = key && key == mr->lkey && length <= mr->span.length &&
	     addr - mr->span.start <= mr->span.length - length;
	length = min_t(u64, length, SYNC_PIECE);
	if (!ok || ib_uses_virt_dma(ibdev))
		goto out;
	if (lmr->reserved)
		fn(ibdev, addr, length);
	else
		sync_list(&lmr->mem, ibdev, addr - mr->span.start, length, fn);
out:
	spin_unlock_irqrestore(&mr->lock, flags);
	return ok;
}

static bool sync_segment(struct kdapl_ia *ia, const DAT_LMR_TRIPLET *seg, sync_fn *fn)
{
	u64 addr = seg->virtual_address, left = seg->segment_length;
	/* the first look is at all of it; where the CPU moves the data it is enough */
	u64 piece = ib_uses_virt_dma(ia->dev->ibdev) ? U32_MAX : SYNC_PIECE;

	while (left) {
		if (!sync_piece(ia, seg->lmr_context, addr, left, fn))
			return false;
		addr += min(left, piece);
		left -= min(left, piece);
	}
	return true;
}

static DAT_RETURN sync_call(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET *segments, u64 n,
			    sync_fn *fn)
{
	struct kdapl_ia *ia;
	DAT_RETURN ret;
	u64 i;

	rcu_read_lock();
	ia = kdapl_handle_peek(ia_handle, DAT_HANDLE_TYPE_IA);
	ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (!ia)
		goto out;
	ret = kdapl_arg_err(2);
	if (n && !segments)
		goto out;
	ret = kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	if (!kdapl_dev_enter(ia->dev))
		goto out;
	ret = DAT_SUCCESS;
	for (i = 0; i < n && ret == DAT_SUCCESS; i++) {
		if (!sync_segment(ia, &segments[i], fn))
			ret = kdapl_arg_err(2);
	}
	kdapl_dev_exit(ia->dev);
out:
	rcu_read_unlock();
	return ret;
}

/**
 * dat_lmr_sync_rdma_read - show local changes to the device
 * @ia_handle: IA
 * @local_segments: parts of LMRs of the IA, of any PZ; those of length 0 are not
 *	looked at
 * @num_segments: how many
 *
 * For memory that has been written locally and that a peer is going to read.
 * Needed only where the provider attribute lmr_sync_req is TRUE; elsewhere the
 * arguments are checked and nothing else happens.
 *
 * Context: any; does not sleep or allocate.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE (IA); DAT_INVALID_PARAMETER (NULL list, no
 * such LMR, or range outside of it: segments before it have been served);
 * DAT_INTERNAL_ERROR (device removed).
 */
DAT_RETURN dat_lmr_sync_rdma_read(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET *local_segments,
				  DAT_VLEN num_segments)
{
	return sync_call(ia_handle, local_segments, num_segments, sync_for_device);
}
EXPORT_SYMBOL(dat_lmr_sync_rdma_read);

/**
 * dat_lmr_sync_rdma_write - show what a peer has written to the CPU
 * @ia_handle: IA
 * @local_segments: parts of LMRs of the IA, of any PZ; those of length 0 are not
 *	looked at
 * @num_segments: how many
 *
 * For memory a peer has written, before it is read locally; and around local
 * changes of memory that peers write. Needed only where the provider attribute
 * lmr_sync_req is TRUE; elsewhere the arguments are checked and nothing else
 * happens.
 *
 * Context: any; does not sleep or allocate.
 * Return: as dat_lmr_sync_rdma_read().
 */
DAT_RETURN dat_lmr_sync_rdma_write(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET *local_segments,
				   DAT_VLEN num_segments)
{
	return sync_call(ia_handle, local_segments, num_segments, sync_for_cpu);
}
EXPORT_SYMBOL(dat_lmr_sync_rdma_write);

/* The smallest page with which so many bytes fit into one region, else the largest. */
static u64 hint_page(struct kdapl_device *dev, u64 length)
{
	u64 sizes = kdapl_mem_page_sizes(dev, false), best = PAGE_SIZE, size;
	unsigned int bit;

	for (bit = PAGE_SHIFT; bit < 32; bit++) {
		size = BIT_ULL(bit);
		if (!(sizes & size))
			continue;
		best = size;
		if (length <= dev->attrs.max_fast_reg_page_list_len * size)
			break;
	}
	return best;
}

/**
 * dat_ia_memtype_hint - how memory is registered best
 * @ia_handle: IA
 * @mem_type: what dat_lmr_kcreate() will be told
 * @length: the same: bytes; pages for the PHYSICAL types; of no meaning for LMR
 * @mem_optimization: the same
 * @preferred_length: where a length as good or better goes, in the same unit
 * @preferred_alignment: where the alignment of the first byte goes that suits a
 *	region of that length, if it is physically contiguous
 *
 * Advice only: memory of another length or alignment is registered all the same.
 * A longer region is advised only with DAT_MEM_OPTIMIZE_DONT_CARE or
 * DAT_MEM_OPTIMIZE_IA.
 *
 * Context: may sleep.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE; DAT_INVALID_PARAMETER (type, length 0,
 * optimization, NULL pointer); DAT_MODEL_NOT_SUPPORTED (BYPASS).
 */
DAT_RETURN dat_ia_memtype_hint(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE mem_type, DAT_VLEN length,
			       DAT_MEM_OPTIMIZE_FLAGS mem_optimization,
			       DAT_VLEN *preferred_length, DAT_VADDR *preferred_alignment)
{
	struct kdapl_ia *ia = kdapl_obj_get(ia_handle, DAT_HANDLE_TYPE_IA);
	bool pages = mem_type == DAT_MEM_TYPE_PHYSICAL ||
		     mem_type == DAT_MEM_TYPE_PHYSICAL_VAR_PAGES;
	u64 bytes = pages ? length << PAGE_SHIFT : length, page;
	DAT_RETURN ret = DAT_SUCCESS;

	if (!ia)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (!kdapl_mem_type_valid(mem_type))
		ret = kdapl_arg_err(2);
	else if (mem_type != DAT_MEM_TYPE_LMR &&
		 (!length || (pages && bytes >> PAGE_SHIFT != length)))
		ret = kdapl_arg_err(3);
	else if (mem_optimization & ~KDAPL_MEM_OPTS)
		ret = kdapl_arg_err(4);
	else if (!preferred_length)
		ret = kdapl_arg_err(5);
	else if (!preferred_alignment)
		ret = kdapl_arg_err(6);
	else if (mem_type == DAT_MEM_TYPE_BYPASS)
		ret = kdapl_err(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	if (ret != DAT_SUCCESS)
		goto out;
	page = mem_type == DAT_MEM_TYPE_LMR ? PAGE_SIZE : hint_page(ia->dev, bytes);
	if (!(mem_optimization & (DAT_MEM_OPTIMIZE_MIN_EXPOSURE |
				  DAT_MEM_OPTIMIZE_EXACT_EXPOSURE)) &&
	    mem_type != DAT_MEM_TYPE_LMR && bytes <= U64_MAX - page)
		bytes = round_up(bytes, page);
	*preferred_length = pages ? bytes >> PAGE_SHIFT : bytes;
	*preferred_alignment = page;
out:
	kdapl_obj_put(&ia->obj);
	return ret;
}
EXPORT_SYMBOL(dat_ia_memtype_hint);

/**
 * kdat_ia_mem_limits - what a consumer that registers memory has to know
 * @ia_handle: IA
 * @limits: filled entirely
 *
 * They belong to the device and do not change. An extension of this provider.
 *
 * Context: any.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE; DAT_INVALID_PARAMETER (NULL @limits);
 * DAT_INTERNAL_ERROR (device removed).
 */
DAT_RETURN kdat_ia_mem_limits(DAT_IA_HANDLE ia_handle, struct kdat_mem_limits *limits)
{
	struct kdapl_ia *ia = kdapl_obj_get(ia_handle, DAT_HANDLE_TYPE_IA);
	DAT_RETURN ret = DAT_SUCCESS;
	struct kdapl_device *dev;

	if (!ia)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	dev = ia->dev;
	if (!limits) {
		ret = kdapl_arg_err(2);
	} else if (!kdapl_dev_enter(dev)) {
		ret = kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	} else {
		memset(limits, 0, sizeof(*limits));
		limits->lmr_pages = dev->attrs.max_fast_reg_page_list_len;
		limits->rmr_pages = kdapl_rmr_pages(dev);
		limits->page_sizes = kdapl_mem_page_sizes(dev, false);
		limits->fmr_page_sizes = kdapl_mem_page_sizes(dev, true);
		limits->boundary = PAGE_SIZE;
		limits->numa_node = ibdev_to_node(dev->ibdev);
		limits->comp_vectors = dev->ibdev->num_comp_vectors;
		limits->post_list = KDAT_POST_LIST_MAX;
		kdapl_dev_exit(dev);
	}
	kdapl_obj_put(&ia->obj);
	return ret;
}
EXPORT_SYMBOL(kdat_ia_mem_limits);

/* Can a device take this memory in one piece? */
static bool dma_is_linear(const void *address, u64 length)
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

/**
 * kdat_ia_dma_map - the address by which a device knows memory
 * @ia_handle: IA
 * @address: kernel virtual address, of memory from kmalloc() or a page; vmalloc()ed
 *	memory is not contiguous for a device
 * @length: bytes
 * @ia_address: where the device's address goes
 *
 * For DAT_MEM_TYPE_IA, and for segments of the reserved LMR. The mapping lasts
 * until kdat_ia_dma_unmap(), which is due before the device can be removed:
 * after DAT_IA_CATASTROPHIC_ERROR it is too late. Where the provider attribute
 * lmr_sync_req is TRUE the sync calls work on such addresses, too. An extension
 * of this provider.
 *
 * Context: any.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE; DAT_INVALID_PARAMETER (address, length,
 * NULL @ia_address); DAT_INSUFFICIENT_RESOURCES (MEMORY: no mapping left);
 * DAT_INTERNAL_ERROR (device removed).
 */
DAT_RETURN kdat_ia_dma_map(DAT_IA_HANDLE ia_handle, DAT_PVOID address, DAT_VLEN length,
			   DAT_PADDR *ia_address)
{
	struct kdapl_ia *ia = kdapl_obj_get(ia_handle, DAT_HANDLE_TYPE_IA);
	struct ib_device *ibdev;
	DAT_RETURN ret;
	u64 addr;

	if (!ia)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	ret = kdapl_arg_err(3);
	if (!length || length > SIZE_MAX || (uintptr_t)address + length < (uintptr_t)address)
		goto out;
	ret = kdapl_arg_err(2);
	if (!dma_is_linear(address, length))
		goto out;
	ret = kdapl_arg_err(4);
	if (!ia_address)
		goto out;
	ret = kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	if (!kdapl_dev_enter(ia->dev))
		goto out;
	ibdev = ia->dev->ibdev;
	addr = ib_dma_map_single(ibdev, address, length, DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(ibdev, addr)) {
		ret = kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	} else {
		*ia_address = addr;
		ret = DAT_SUCCESS;
	}
	kdapl_dev_exit(ia->dev);
out:
	kdapl_obj_put(&ia->obj);
	return ret;
}
EXPORT_SYMBOL(kdat_ia_dma_map);

/**
 * kdat_ia_dma_unmap - end what kdat_ia_dma_map() began
 * @ia_handle: IA
 * @ia_address: from kdat_ia_dma_map()
 * @length: as it was given there
 *
 * No LMR made of it may be left, nor any request that names it. An extension of
 * this provider.
 *
 * Context: any.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE; DAT_INVALID_PARAMETER (length 0);
 * DAT_INTERNAL_ERROR (device removed).
 */
DAT_RETURN kdat_ia_dma_unmap(DAT_IA_HANDLE ia_handle, DAT_PADDR ia_address, DAT_VLEN length)
{
	struct kdapl_ia *ia = kdapl_obj_get(ia_handle, DAT_HANDLE_TYPE_IA);
	DAT_RETURN ret = DAT_SUCCESS;

	if (!ia)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (!length || length > SIZE_MAX) {
		ret = kdapl_arg_err(3);
	} else if (!kdapl_dev_enter(ia->dev)) {
		ret = kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	} else {
		ib_dma_unmap_single(ia->dev->ibdev, ia_address, length, DMA_BIDIRECTIONAL);
		kdapl_dev_exit(ia->dev);
	}
	kdapl_obj_put(&ia->obj);
	return ret;
}
EXPORT_SYMBOL(kdat_ia_dma_unmap);
