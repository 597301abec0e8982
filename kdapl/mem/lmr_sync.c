// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Calls about memory of LMRs: synchronising it, limits and advice for registering; and
 * synchronising the memory of requests.
 */
#include <linux/export.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/sizes.h>

#include "mem.h"

/* Bytes to synchronise at a time with interrupts off. */
#define SYNC_PIECE	SZ_256K

/**
 * struct sync_call - segments to be synchronised
 * @ia: IA of their keys
 * @why: enum kdapl_sync
 * @own: they are segments of a posted request: its memory stays mapped until it completes,
 *	even if the key is no longer valid for new requests
 */
struct sync_call {
	struct kdapl_ia *ia;
	enum kdapl_sync why;
	bool own;
};

/*
 * May a posted request still use this key? Not after its registration has ended: the memory was
 * synchronised then and belongs to the consumer. But an RMR bound to the LMR has a registration
 * of its own, and a stale registration may or may not have ended.
 */
static bool sync_reached(const struct kdapl_lmr *lmr, u32 key)
{
	return key == lmr->mr.used &&
	       (lmr->mr.live || lmr->windows || lmr->state == KDAPL_LMR_STALE);
}

/* Does a key cover a range, now or for requests posted before? mr->lock held. */
static bool sync_may(const struct sync_call *call, const struct kdapl_lmr *lmr, u32 key, u64 addr,
		     u64 length)
{
	const struct kdapl_mr *mr = &lmr->mr;

	if (!key || (key != mr->lkey && !(call->own && sync_reached(lmr, key))))
		return false;
	return length <= mr->range.length && addr - mr->range.start <= mr->range.length - length;
}

/*
 * Is memory of the reserved LMR synchronised? Nothing is done to a bounce buffer that may be
 * shared with peers, since no peer reaches it by this LMR; nor after a failure, since the
 * consumer may have unmapped the memory.
 */
static bool sync_reserved(const struct kdapl_device *dev, enum kdapl_sync why)
{
	if (why == KDAPL_SYNC_FAILED)
		return false;
	return dev->dma == KDAPL_DMA_CACHES ||
	       (dev->dma == KDAPL_DMA_COPIES && why != KDAPL_SYNC_SHARED);
}

/*
 * Synchronise one piece of a segment, if necessary. The lock keeps the memory mapped: a region
 * is hidden under it before it is unmapped. False: the key does not cover @addr and @length.
 */
static bool sync_piece(const struct sync_call *call, u32 key, u64 addr, u64 length)
{
	struct kdapl_device *dev = call->ia->dev;
	struct kdapl_mr *mr = kdapl_keys_find(&call->ia->keys, key);
	struct kdapl_lmr *lmr;
	unsigned long flags;
	bool ok;

	if (!mr || mr->owner->type != DAT_HANDLE_TYPE_LMR)
		return false;
	lmr = container_of(mr, struct kdapl_lmr, mr);
	spin_lock_irqsave(&mr->lock, flags);
	ok = sync_may(call, lmr, key, addr, length);
	length = min_t(u64, length, SYNC_PIECE);
	if (ok && lmr->reserved) {
		if (sync_reserved(dev, call->why))
			kdapl_dma_sync(dev, addr, length, call->why);
	} else if (ok && lmr->mem.nents && lmr->mem.sync) {
		kdapl_mem_sync(dev, &lmr->mem, addr - mr->range.start, length, call->why);
	}
	spin_unlock_irqrestore(&mr->lock, flags);
	return ok;
}

static bool sync_segment(const struct sync_call *call, const DAT_LMR_TRIPLET *seg, u64 left)
{
	/* if nothing has to be synchronised, the whole segment is checked at once */
	u64 piece = call->ia->dev->dma == KDAPL_DMA_SAME ? U32_MAX : SYNC_PIECE;
	u64 addr = seg->virtual_address;

	while (left) {
		if (!sync_piece(call, seg->lmr_context, addr, left))
			return false;
		addr += min(left, piece);
		left -= min(left, piece);
	}
	return true;
}

/**
 * kdapl_sync_segments - synchronise the memory of a request
 * @ia: IA
 * @seg: its segments, checked
 * @n: how many
 * @length: bytes to synchronise, from the first segment on
 * @why: enum kdapl_sync
 *
 * Context: any; the device is there.
 */
void kdapl_sync_segments(struct kdapl_ia *ia, const DAT_LMR_TRIPLET *seg, int n, u64 length,
			 enum kdapl_sync why)
{
	const struct sync_call call = { .ia = ia, .why = why, .own = true };
	u64 part;

	rcu_read_lock();
	for (; n && length; n--, seg++) {
		part = min_t(u64, seg->segment_length, length);
		sync_segment(&call, seg, part);
		length -= part;
	}
	rcu_read_unlock();
}

/**
 * kdapl_sinks_alloc - allocate room for the sinks of outstanding requests
 * @dev: the device
 * @requests: how many there can be
 * @width: most segments of one; there is room for one in any case, since a Read into an
 *	RMR has one that no attribute counts
 *
 * Context: may sleep.
 * Return: the sinks, for kvfree(); NULL if nothing has to be synchronised; or an ERR_PTR.
 */
struct kdapl_sinks *kdapl_sinks_alloc(struct kdapl_device *dev, u32 requests, u32 width)
{
	struct kdapl_sinks *sinks;

	if (likely(dev->dma == KDAPL_DMA_SAME) || !requests)
		return NULL;
	width = max(width, 1U);
	sinks = kvzalloc(struct_size(sinks, seg, array_size(requests, width)), GFP_KERNEL);
	if (!sinks)
		return ERR_PTR(-ENOMEM);
	sinks->width = width;
	return sinks;
}

/**
 * kdapl_sinks_keep - store the sinks of a request that is about to be posted
 * @sinks: sinks of its queue
 * @index: index of the request
 * @seg: segments it will fill
 * @n: how many
 * @length: most bytes it can fill
 *
 * Context: any.
 */
void kdapl_sinks_keep(struct kdapl_sinks *sinks, u32 index, const DAT_LMR_TRIPLET *seg, int n,
		      u64 length)
{
	DAT_LMR_TRIPLET *to = &sinks->seg[index * sinks->width];
	u32 i;

	for (i = 0; n && length && i < sinks->width; n--, seg++) {
		if (!seg->segment_length)
			continue;
		to[i] = *seg;
		to[i].segment_length = min_t(u64, seg->segment_length, length);
		length -= to[i++].segment_length;
	}
	if (i < sinks->width)
		to[i].lmr_context = 0;
}

static void sync_sinks_over(struct kdapl_sinks *sinks, u32 index, struct kdapl_ia *ia, u64 length,
			    enum kdapl_sync why)
{
	DAT_LMR_TRIPLET *seg = &sinks->seg[index * sinks->width];
	int n = 0;

	while (n < sinks->width && seg[n].lmr_context)
		n++;
	if (n)
		kdapl_sync_segments(ia, seg, n, length, why);
	kdapl_sinks_forget(sinks, index);
}

/**
 * kdapl_sinks_filled - synchronise the sinks of a request that has succeeded
 * @sinks: sinks of its queue
 * @index: index of the request, which may have none
 * @ia: IA
 * @length: bytes the device has written
 *
 * Context: any; the device is there.
 */
void kdapl_sinks_filled(struct kdapl_sinks *sinks, u32 index, struct kdapl_ia *ia, u64 length)
{
	sync_sinks_over(sinks, index, ia, length, KDAPL_SYNC_FILLED);
}

/**
 * kdapl_sinks_failed - synchronise the sinks of a request that has failed or was lost
 * @sinks: sinks of its queue
 * @index: index of the request, which may have none
 * @ia: IA
 *
 * The device may have written any of these bytes, and must not send them later.
 *
 * Context: any; the device is there, or no longer uses any memory.
 */
void kdapl_sinks_failed(struct kdapl_sinks *sinks, u32 index, struct kdapl_ia *ia)
{
	sync_sinks_over(sinks, index, ia, U64_MAX, KDAPL_SYNC_FAILED);
}

/**
 * kdapl_sinks_forget - clear the sinks of an entry that is being reused
 * @sinks: sinks of its queue
 * @index: index of the entry
 *
 * Context: any.
 */
void kdapl_sinks_forget(struct kdapl_sinks *sinks, u32 index)
{
	sinks->seg[index * sinks->width].lmr_context = 0;
}

/* -EBADF: there is no such IA; -EINVAL: no such memory; -ENODEV: the device has gone. */
static int sync_list(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET *segments, u64 n,
		     enum kdapl_sync why)
{
	struct sync_call call = { .why = why };
	int ret = 0;
	u64 i;

	rcu_read_lock();
	call.ia = kdapl_handle_peek(ia_handle, DAT_HANDLE_TYPE_IA);
	if (!call.ia)
		ret = -EBADF;
	else if (n && !segments)
		ret = -EINVAL;
	else if (!kdapl_dev_there(call.ia->dev))
		ret = -ENODEV;
	for (i = 0; i < n && !ret; i++) {
		if (!sync_segment(&call, &segments[i], segments[i].segment_length))
			ret = -EINVAL;
	}
	rcu_read_unlock();
	return ret;
}

static DAT_RETURN sync_ret(int err)
{
	switch (err) {
	case -EBADF:
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	case -EINVAL:
		return kdapl_arg_err(2);
	default:
		return kdapl_errno_ret(err);
	}
}

/**
 * dat_lmr_sync_rdma_read - make local changes visible to the device
 * @ia_handle: IA
 * @local_segments: parts of LMRs of the IA, of any PZ; segments of length 0 are
 *	ignored
 * @num_segments: how many
 *
 * For memory that was written locally and that a peer is going to read. Only
 * needed if the provider attribute lmr_sync_req is TRUE; otherwise the call checks
 * its arguments and does nothing else.
 *
 * Context: any; does not sleep or allocate.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE (IA); DAT_INVALID_PARAMETER (NULL list, no
 * such LMR, or a range outside of it; segments before it have been synchronised);
 * DAT_INTERNAL_ERROR (device removed).
 */
DAT_RETURN dat_lmr_sync_rdma_read(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET *local_segments,
				  DAT_VLEN num_segments)
{
	return sync_ret(sync_list(ia_handle, local_segments, num_segments, KDAPL_SYNC_SOURCE));
}
EXPORT_SYMBOL(dat_lmr_sync_rdma_read);

/**
 * dat_lmr_sync_rdma_write - make changes by peers visible to the CPU
 * @ia_handle: IA
 * @local_segments: parts of LMRs of the IA, of any PZ; segments of length 0 are
 *	ignored
 * @num_segments: how many
 *
 * For memory that a peer has written, before it is read locally; and for local
 * changes of memory that a peer is going to write, before the peer does. If both
 * have changed bytes, the changes of both are kept; a byte that both have changed
 * gets the peer's value. Only needed if the provider attribute lmr_sync_req is TRUE;
 * otherwise the call checks its arguments and does nothing else.
 *
 * Context: any; does not sleep or allocate.
 * Return: as dat_lmr_sync_rdma_read().
 */
DAT_RETURN dat_lmr_sync_rdma_write(DAT_IA_HANDLE ia_handle, const DAT_LMR_TRIPLET *local_segments,
				   DAT_VLEN num_segments)
{
	return sync_ret(sync_list(ia_handle, local_segments, num_segments, KDAPL_SYNC_SHARED));
}
EXPORT_SYMBOL(dat_lmr_sync_rdma_write);

/* The smallest page size with which so many bytes fit into one region, or the largest one. */
static u64 sync_hint_page(struct kdapl_device *dev, u64 length)
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
 * dat_ia_memtype_hint - advice on the length and alignment of a region
 * @ia_handle: IA
 * @mem_type: as for dat_lmr_kcreate()
 * @length: as for dat_lmr_kcreate(): bytes; pages for the PHYSICAL types; ignored for
 *	LMR
 * @mem_optimization: as for dat_lmr_kcreate()
 * @preferred_length: where a length goes that is as good or better, in the same unit
 * @preferred_alignment: where the best alignment of a physically contiguous region of
 *	that length goes
 *
 * Memory of another length or alignment can be registered as well. A longer region
 * is recommended only with DAT_MEM_OPTIMIZE_DONT_CARE or DAT_MEM_OPTIMIZE_IA.
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
	page = mem_type == DAT_MEM_TYPE_LMR ? PAGE_SIZE : sync_hint_page(ia->dev, bytes);
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
 * kdat_ia_mem_limits - limits for registering memory
 * @ia_handle: IA
 * @limits: filled entirely
 *
 * They are limits of the device and do not change. An extension of this provider.
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
		limits->max_mapping = kdapl_dma_max_mapping(dev);
		limits->opt_mapping = kdapl_dma_opt_mapping(dev);
		kdapl_dev_exit(dev);
	}
	kdapl_obj_put(&ia->obj);
	return ret;
}
EXPORT_SYMBOL(kdat_ia_mem_limits);
