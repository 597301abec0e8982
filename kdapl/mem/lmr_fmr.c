// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Fast memory registration: LMRs that are bound and unbound on an EP.
 *
 * dat_lmr_allocate() makes the MR of such an LMR and allocates its list. dat_lmr_fmr() maps the
 * memory (kdapl_fmr_begin()) and posts the registration, dat_lmr_invalidate() posts the
 * invalidation (both ep/ep_fmr.c). The states of the binding are in lmr_state.c.
 */
#include <linux/export.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "mem.h"

/**
 * struct fmr_list - builds the list of an LMR from pieces of memory
 * @next: where the next entry goes, or the link to the rest of the list
 * @used: entries before it
 * @max_used: entries there are
 * @max_entry: bytes of an entry at most
 * @start: of the first piece
 * @end: of the last piece; before the first one, no page boundary
 * @length: of all pieces
 */
struct fmr_list {
	struct scatterlist *next;
	u32 used;
	u32 max_used;
	u32 max_entry;
	phys_addr_t start;
	phys_addr_t end;
	u64 length;
};

/* The entry here, or where a link leads: sg_next() without a call. */
static inline struct scatterlist *fmr_sg_at(struct scatterlist *sg)
{
	return unlikely(sg_is_chain(sg)) ? sg_chain_ptr(sg) : sg;
}

/* Make the last entry longer, as far as it can be. Returns by how much. */
static u32 fmr_list_grow(struct fmr_list *list, u32 length)
{
	struct scatterlist *last = list->next - 1;
	u32 part = min(length, list->max_entry - last->offset - last->length);

	last->length += part;
	return part;
}

/* Add a piece. False: it does not fit, or there would be a gap inside a page before it. */
static __always_inline bool fmr_list_add(struct fmr_list *list, phys_addr_t addr, u32 length)
{
	struct scatterlist *sg;
	u32 part = 0;

	if (unlikely(!list->used))
		list->start = addr;
	else if (unlikely(list->end == addr))
		part = fmr_list_grow(list, length);
	else if (unlikely((addr | list->end) & ~PAGE_MASK))
		return false;
	list->end = addr + length;
	while (length > part) {
		addr += part;
		length -= part;
		if (unlikely(list->used == list->max_used))
			return false;
		sg = fmr_sg_at(list->next);
		part = min(length, list->max_entry - (u32)offset_in_page(addr));
		sg_set_page(sg, pfn_to_page(PHYS_PFN(addr)), part, offset_in_page(addr));
		list->next = sg + 1;
		list->used++;
	}
	return true;
}

/*
 * Add a whole entry as it is, if it begins and ends with a page and is not the continuation of the
 * one before, as most are; else change nothing.
 */
static __always_inline bool fmr_list_add_pages(struct fmr_list *list, struct scatterlist *in,
					       u64 left)
{
	struct scatterlist *sg = list->next;
	u32 length = in->length;
	phys_addr_t addr;

	if (in->offset || ((length | list->end) & ~PAGE_MASK) || !length || length > left ||
	    length > list->max_entry || list->used == list->max_used || sg_is_chain(sg) ||
	    !sg_page(in))
		return false;
	addr = sg_phys(in);
	if (list->end == addr)
		return false;
	sg_set_page(sg, sg_page(in), length, 0);
	list->next = sg + 1;
	list->used++;
	list->end = addr + length;
	return true;
}

static int fmr_fill_pages(const struct kdapl_fmr *fmr, struct fmr_list *list)
{
	u64 page_size = PAGE_SIZE, pos;
	const DAT_PADDR *pages = fmr->region.for_physical;
	DAT_VLEN i;

	if (fmr->mem_type == DAT_MEM_TYPE_PHYSICAL_VAR_PAGES) {
		page_size = fmr->region.for_array.page_size;
		pages = fmr->region.for_array.pages;
	}
	for (i = 0; i < fmr->num_pages; i++) {
		if (!IS_ALIGNED(pages[i], page_size) || pages[i] + page_size < pages[i] ||
		    (phys_addr_t)pages[i] != pages[i])
			return -EINVAL;
		/* checked once per 2 MiB: memory is not hot-plugged in smaller blocks */
		for (pos = 0; pos < page_size; pos += SZ_2M) {
			if (!pfn_valid(PHYS_PFN(pages[i] + pos)))
				return -EINVAL;
		}
		if (!fmr_list_add(list, pages[i], page_size))
			return -EINVAL;
	}
	list->length = fmr->num_pages * page_size;
	return 0;
}

static int fmr_fill_sg(const struct kdapl_fmr *fmr, struct fmr_list *list)
{
	u64 skip = fmr->sg->offset, left = fmr->sg->length;
	struct scatterlist *sg = fmr->sg->sgl;
	int n = fmr->sg->nents;
	u32 chunk;

	list->length = left;
	for (;;) {
		if (likely(!skip && fmr_list_add_pages(list, sg, left))) {
			left -= sg->length;
		} else if (skip >= sg->length) {
			skip -= sg->length;
		} else {
			if (!sg_page(sg))
				return -EINVAL;
			chunk = min_t(u64, sg->length - skip, left);
			if (!fmr_list_add(list, sg_phys(sg) + skip, chunk))
				return -EINVAL;
			skip = 0;
			left -= chunk;
		}
		if (!left)
			return 0;
		if (!--n || sg_is_last(sg))
			return -EINVAL;
		sg = fmr_sg_at(sg + 1);
	}
}

/* Unmap the memory again: it has had no valid key, so the device has not used it. */
static void fmr_take_back(struct kdapl_lmr *lmr)
{
	lmr->mem.sync = false;
	kdapl_mem_unmap(&lmr->mem, lmr->obj.ia->dev);
}

/*
 * The block size for the list. Its pieces meet at page boundaries. If the mapping keeps pages
 * whole, the list has as many blocks as pages and need not be looked at. An IOMMU whose pages are
 * smaller than the kernel's does not keep them whole, which the first address shows.
 */
static u32 fmr_page_size(const struct kdapl_lmr *lmr, const struct fmr_list *list, u64 start)
{
	struct kdapl_device *dev = lmr->obj.ia->dev;
	const struct kdapl_mem *mem = &lmr->mem;
	u32 max_blocks = lmr->mr.pages, blocks;

	if (likely(dev->dma == KDAPL_DMA_SAME && list->length <= kdapl_mem_max_length(dev) &&
		   !offset_in_page(start ^ sg_dma_address(mem->sgt.sgl)))) {
		if (dev->caps.any_page_size ?
		    mem->nents <= max_blocks && list->length <= S32_MAX :
		    offset_in_page(list->start) + list->length <= (u64)max_blocks << PAGE_SHIFT)
			return PAGE_SIZE;
	}
	return kdapl_mem_page_size(dev, mem->sgt.sgl, mem->nents, start,
				   kdapl_mem_page_sizes(dev, true), max_blocks, &blocks);
}

/* Map the memory and fill the page list of the MR. The LMR is claimed. */
static int fmr_map(struct kdapl_lmr *lmr, const struct fmr_list *list, u64 start,
		   DAT_MEM_PRIV_FLAGS priv)
{
	struct kdapl_ia *ia = lmr->obj.ia;
	struct kdapl_mem *mem = &lmr->mem;
	u32 page_size;
	int err;

	mem->used = list->used;
	if (unlikely(mem->base)) {
		if (list->length > mem->base_size)
			return -E2BIG;
		kdapl_mem_fill_base(mem);
	}
	err = kdapl_mem_map(mem, ia->dev, priv);
	if (err)
		return err;
	page_size = fmr_page_size(lmr, list, start);
	if (page_size) {
		err = kdapl_mr_map(&lmr->mr, mem->sgt.sgl, mem->nents, page_size, start);
	} else {
		pr_err_ratelimited("%s: %llu bytes do not fit into the %u pages an LMR was allocated for\n",
				   ia->name, list->length, lmr->mr.pages);
		err = -E2BIG;
	}
	if (err)
		fmr_take_back(lmr);
	return err;
}

/* Give the binding its key and publish it; skip the key unless @live. The LMR is claimed. */
static enum kdapl_verdict fmr_publish(struct kdapl_fmr *fmr, const struct fmr_list *list,
				      unsigned long ep, bool live)
{
	enum kdapl_verdict why = KDAPL_ACCEPTED;
	struct kdapl_lmr *lmr = fmr->lmr;
	struct kdapl_mr *mr = &lmr->mr;
	unsigned long flags;

	spin_lock_irqsave(&mr->lock, flags);
	if (lmr->state == KDAPL_LMR_DEAD) {
		why = KDAPL_REFUSE_NO_LMR;
	} else if (live) {
		lmr->mem.start = list->start;
		lmr->mem.length = list->length;
		lmr->priv = fmr->priv;
		lmr->va_type = fmr->va_type;
		lmr->mem_type = fmr->sg ? DAT_MEM_TYPE_PLATFORM : fmr->mem_type;
		lmr->region = fmr->region;
		lmr->length = fmr->sg ? fmr->sg->length : fmr->num_pages;
		lmr->ep = ep;
		kdapl_mr_new_key(mr);
		fmr->key = mr->used;
		kdapl_lmr_publish(lmr);
	} else {
		fmr->key = kdapl_mr_skip_key(mr);
	}
	spin_unlock_irqrestore(&mr->lock, flags);
	return why;
}

/*
 * Map the memory and publish the keys: requests may name them before the registration has been
 * carried out, since they come after it in the queue. The LMR is claimed.
 */
static enum kdapl_verdict fmr_bind(struct kdapl_fmr *fmr, unsigned long ep, bool live)
{
	struct kdapl_lmr *lmr = fmr->lmr;
	struct fmr_list list = {
		.next = lmr->mem.sgt.sgl,
		.max_used = lmr->mem.sgt.orig_nents,
		.max_entry = lmr->obj.ia->dev->dma_max_entry,
		.end = 1,
	};
	enum kdapl_verdict why;
	int err;

	if (fmr->sg ? fmr_fill_sg(fmr, &list) : fmr_fill_pages(fmr, &list))
		return KDAPL_REFUSE_MEMORY;
	fmr->start = fmr->va_type == DAT_VA_TYPE_ZB ? 0 : list.start;
	if (fmr->va_type == DAT_VA_TYPE_ZB && (list.start & ~PAGE_MASK))
		return KDAPL_REFUSE_MEMORY;
	if (live) {
		err = fmr_map(lmr, &list, fmr->start, fmr->priv);
		if (err)
			return err == -E2BIG ? KDAPL_REFUSE_COUNT : KDAPL_REFUSE_NO_MR;
	}
	why = fmr_publish(fmr, &list, ep, live);
	if (unlikely(why))	/* dat_lmr_free() waits for the claim */
		fmr_take_back(lmr);
	return why;
}

/**
 * kdapl_fmr_begin - carry out a binding, up to posting the registration
 * @fmr: what the LMR is to be bound to
 * @ep: id of the EP the request is going to be posted on
 * @owner: the connection it is going to be posted on
 * @live: the connection is established; otherwise the request will be flushed, nothing is
 *	mapped and nothing changes (FMR-07)
 * @seq: out: for kdapl_lmr_op_done(), which must be called on success
 *
 * Context: any; RCU read side, the device is there.
 * Return: KDAPL_ACCEPTED or the reason to refuse it.
 */
enum kdapl_verdict kdapl_fmr_begin(struct kdapl_fmr *fmr, unsigned long ep,
				   struct kdapl_op_owner *owner, bool live, u32 *seq)
{
	enum kdapl_verdict why;

	why = kdapl_lmr_claim(fmr->lmr, KDAPL_LMR_REG, ep, owner, live, seq);
	if (why)
		return why;
	why = fmr_bind(fmr, ep, live);
	if (why)
		kdapl_lmr_op_done(fmr->lmr, KDAPL_LMR_REG, *seq, KDAPL_NEVER);
	return why;
}

/**
 * kdapl_fmr_key_back - let the next binding have the key of one that was not posted
 * @lmr: LMR
 * @key: of the binding; the consumer has not seen it, except from kdat_lmr_next_contexts(),
 *	whose answer stays right in this way
 * @seq: number of the operation, as for kdapl_lmr_op_done()
 *
 * The key comes back whether it was published or only skipped. If the operation has ended
 * meanwhile, another one may have the LMR: then nothing happens.
 *
 * Context: any; before kdapl_lmr_op_done().
 */
void kdapl_fmr_key_back(struct kdapl_lmr *lmr, u32 key, u32 seq)
{
	unsigned long flags;

	spin_lock_irqsave(&lmr->mr.lock, flags);
	if (lmr->op[KDAPL_LMR_REG] && seq == lmr->seq[KDAPL_LMR_REG])
		lmr->mr.next = key & 0xff;
	spin_unlock_irqrestore(&lmr->mr.lock, flags);
}

static DAT_RETURN fmr_next_key(struct kdapl_lmr *lmr, u32 *key)
{
	int err = kdapl_lmr_check(lmr);
	unsigned long flags;
	bool stale;

	if (err)
		return kdapl_lmr_check_ret(err);
	if (!lmr->fmr)
		return kdapl_err(DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE);
	spin_lock_irqsave(&lmr->mr.lock, flags);
	*key = kdapl_mr_next_key(&lmr->mr);
	stale = lmr->state == KDAPL_LMR_STALE;	/* its next MR has other keys */
	spin_unlock_irqrestore(&lmr->mr.lock, flags);
	return stale ? kdapl_err(DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE) : DAT_SUCCESS;
}

/**
 * kdat_lmr_next_contexts - the keys the next binding of an LMR will have
 * @lmr_handle: LMR of dat_lmr_allocate()
 * @lmr_context: where the key for local segments goes; may be NULL
 * @rmr_context: where the key for peers goes, if there will be remote rights; may be
 *	NULL
 *
 * For messages that carry the key and are posted in one list with the binding, see
 * kdat_ep_post_list(). The keys are not valid before that. An extension of this provider.
 *
 * Context: any.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE; DAT_RESERVED_LMR; DAT_INVALID_STATE
 * (subtype LMR_IN_USE: not of dat_lmr_allocate(), or its last binding was flushed and
 * the end of that connection has not been reported yet).
 */
DAT_RETURN kdat_lmr_next_contexts(DAT_LMR_HANDLE lmr_handle, DAT_LMR_CONTEXT *lmr_context,
				  DAT_RMR_CONTEXT *rmr_context)
{
	DAT_RETURN ret;
	u32 key;

	rcu_read_lock();
	ret = fmr_next_key(kdapl_handle_peek(lmr_handle, DAT_HANDLE_TYPE_LMR), &key);
	rcu_read_unlock();
	if (ret != DAT_SUCCESS)
		return ret;
	if (lmr_context)
		*lmr_context = key;
	if (rmr_context)
		*rmr_context = key;
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(kdat_lmr_next_contexts);

/* ------------------------------------------------------------------ */
/* dat_lmr_allocate                                                     */

static int lmr_allocate(struct kdapl_lmr *lmr, u32 pages)
{
	int ret;

	ret = sg_alloc_table(&lmr->mem.sgt, pages, GFP_KERNEL);
	if (!ret)
		ret = kdapl_lmr_spare_list(lmr, pages);
	if (!ret && lmr->obj.ia->dev->dma == KDAPL_DMA_COPIES)
		ret = kdapl_mem_alloc_base(&lmr->mem, (u64)pages << PAGE_SHIFT);
	if (!ret)
		ret = kdapl_mr_create(&lmr->mr, pages);
	if (!ret)
		ret = kdapl_mr_prime(&lmr->mr);
	if (!ret)
		ret = kdapl_obj_publish(&lmr->obj);
	return ret;
}

/**
 * dat_lmr_allocate - make an LMR for dat_lmr_fmr()
 * @ia_handle: IA
 * @pz_handle: PZ
 * @max_pages: pages it can be bound to, see kdat_ia_mem_limits()
 * @lmr_scope: DAT_LMR_SCOPE_EP: only the EP a binding is made on may use it;
 *	DAT_LMR_SCOPE_PZ, DAT_LMR_SCOPE_ANY: every EP of the PZ may
 * @lmr_handle: where the handle goes
 *
 * The LMR is not bound yet and has no keys. Everything that dat_lmr_fmr() needs is allocated
 * here, so that it need not allocate.
 *
 * Context: may sleep.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE (IA, PZ); DAT_INVALID_PARAMETER (not
 * positive or more pages than a region can have, scope, NULL @lmr_handle);
 * DAT_INSUFFICIENT_RESOURCES (subtype MEMORY_REGION or MEMORY);
 * DAT_INTERNAL_ERROR (device removed).
 */
DAT_RETURN dat_lmr_allocate(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle, DAT_COUNT max_pages,
			    DAT_LMR_SCOPE lmr_scope, DAT_LMR_HANDLE *lmr_handle)
{
	struct kdapl_ia *ia = kdapl_obj_get(ia_handle, DAT_HANDLE_TYPE_IA);
	struct kdapl_pz *pz = NULL;
	struct kdapl_lmr *lmr;
	DAT_RETURN ret;
	int err;

	if (!ia)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	pz = kdapl_obj_get(pz_handle, DAT_HANDLE_TYPE_PZ);
	if (!pz || pz->obj.ia != ia) {
		ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
		goto out;
	}
	ret = kdapl_arg_err(3);
	if (max_pages <= 0 || max_pages > ia->dev->attrs.max_fast_reg_page_list_len)
		goto out;
	ret = kdapl_arg_err(4);
	if ((unsigned int)lmr_scope > DAT_LMR_SCOPE_ANY)
		goto out;
	ret = kdapl_arg_err(5);
	if (!lmr_handle)
		goto out;
	ret = kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	if (!kdapl_dev_enter(ia->dev))
		goto out;
	lmr = kdapl_lmr_alloc(ia, pz, pz_handle);
	if (IS_ERR(lmr)) {
		ret = kdapl_lmr_ret(PTR_ERR(lmr));
		goto out_exit;
	}
	lmr->fmr = true;
	lmr->scope = lmr_scope;
	err = lmr_allocate(lmr, max_pages);
	if (err) {
		ret = kdapl_lmr_ret(err);
		kdapl_lmr_destroy(lmr);
		goto out_exit;
	}
	*lmr_handle = lmr->obj.handle;
	kdapl_obj_put(&lmr->obj);
	ret = DAT_SUCCESS;
out_exit:
	kdapl_dev_exit(ia->dev);
out:
	if (pz)
		kdapl_obj_put(&pz->obj);
	kdapl_obj_put(&ia->obj);
	return ret;
}
EXPORT_SYMBOL(dat_lmr_allocate);
