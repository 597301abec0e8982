// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Local Memory Regions: dat_lmr_kcreate() and the common part of all LMRs.
 *
 * Nearly every LMR has a fast-registration MR. An LMR of dat_lmr_kcreate() is registered
 * once, on the registration QP of its PZ (reg.c), or not at all (D-107). An LMR of
 * dat_lmr_allocate() is registered for each binding, on an EP of its consumer (ep_fmr.c).
 * The I/O virtual address is the consumer's address, so segments and peers name memory
 * as the consumer does. A zero-based region starts at 0 instead; its memory must start
 * on a page.
 */
#include <linux/export.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "mem.h"

KDAPL_OBJ_IS_FIRST(struct kdapl_lmr);

/* The last reference may be dropped with interrupts off, under the lock of an EVD. */
static void lmr_release(struct kdapl_obj *obj)
{
	struct kdapl_lmr *lmr = container_of(obj, struct kdapl_lmr, obj);

	kdapl_mem_free(&lmr->mem);
	kdapl_mem_free(&lmr->old);
	kfree_rcu(lmr, obj.rcu);
}

static const struct kdapl_obj_ops lmr_ops = {
	.release = lmr_release,
};

/**
 * kdapl_lmr_alloc - allocate an LMR without MR and memory
 * @ia: IA
 * @pz: PZ, which gets a user; NULL for the reserved LMR
 * @handle: handle of the PZ
 *
 * Context: may sleep.
 * Return: the LMR, for kdapl_lmr_destroy(), or an ERR_PTR: -ENOMEM; -ESTALE: the PZ has
 * been freed.
 */
struct kdapl_lmr *kdapl_lmr_alloc(struct kdapl_ia *ia, struct kdapl_pz *pz, DAT_PZ_HANDLE handle)
{
	struct kdapl_lmr *lmr = kdapl_zalloc_aligned(sizeof(*lmr));

	if (!lmr)
		return ERR_PTR(-ENOMEM);
	if (pz && kdapl_obj_use(&pz->obj)) {
		kfree(lmr);
		return ERR_PTR(-ESTALE);
	}
	kdapl_obj_init(&lmr->obj, DAT_HANDLE_TYPE_LMR, ia, &lmr_ops);
	kdapl_lmr_state_init(lmr, pz ? pz->pd : NULL);
	lmr->pz = pz;
	lmr->pz_handle = handle;
	return lmr;
}

/* May posts name this memory by the local key of their PD, without any registration? */
static bool lmr_needs_no_mr(const struct kdapl_lmr *lmr, DAT_MEM_OPTIMIZE_FLAGS opt)
{
	const struct kdapl_mem *mem = &lmr->mem;
	u64 end = sg_dma_address(mem->sgt.sgl);
	struct scatterlist *sg;
	unsigned int i;

	if (!(opt & DAT_MEM_OPTIMIZE_IA) || lmr->priv & KDAPL_PRIV_REMOTE)
		return false;
	for_each_sg(mem->sgt.sgl, sg, mem->nents, i) {
		if (sg_dma_address(sg) != end)
			return false;
		end += sg_dma_len(sg);
	}
	return true;
}

static int lmr_make_local(struct kdapl_lmr *lmr)
{
	struct kdapl_mr *mr = &lmr->mr;
	int ret;

	ret = kdapl_mr_create_local(mr, sg_dma_address(lmr->mem.sgt.sgl) - kdapl_lmr_start(lmr));
	if (ret)
		return ret;
	spin_lock_irq(&mr->lock);
	kdapl_lmr_publish(lmr);
	spin_unlock_irq(&mr->lock);
	return 0;
}

/*
 * Map the MR, and register it by its new key. A driver may change the page list when it posts it
 * (cxgb4 swaps its bytes), so the list of an attempt that has failed is not posted again.
 */
static int lmr_post(struct kdapl_lmr *lmr, u32 page_size)
{
	struct kdapl_mem *mem = &lmr->mem;
	struct kdapl_mr *mr = &lmr->mr;
	int ret;

	ret = kdapl_mr_map(mr, mem->sgt.sgl, mem->nents, page_size, kdapl_lmr_start(lmr));
	return ret ?: kdapl_reg_mr(lmr->obj.ia, mr->pd, mr->ibmr, kdapl_mr_access(lmr->priv));
}

static int lmr_register(struct kdapl_lmr *lmr, DAT_MEM_OPTIMIZE_FLAGS opt)
{
	struct kdapl_ia *ia = lmr->obj.ia;
	struct kdapl_device *dev = ia->dev;
	struct kdapl_mem *mem = &lmr->mem;
	struct kdapl_mr *mr = &lmr->mr;
	u64 start = kdapl_lmr_start(lmr);
	u32 max = dev->attrs.max_fast_reg_page_list_len, page_size, blocks;
	int ret;

	if (dev->dma == KDAPL_DMA_COPIES && !mem->foreign && lmr->priv & DAT_MEM_PRIV_WRITE_FLAG) {
		ret = kdapl_mem_alloc_base(mem, mem->length);
		if (ret)
			return ret;
		kdapl_mem_fill_base(mem);
	}
	ret = kdapl_mem_map(mem, dev, lmr->priv);
	if (ret)
		return ret;
	if (!mem->sync)
		kdapl_mem_free_base(mem);
	if (lmr_needs_no_mr(lmr, opt))
		return lmr_make_local(lmr);
	if (mem->length > kdapl_mem_max_length(dev)) {
		pr_err_ratelimited("%s: region of %llu bytes is too long: the device takes %llu bytes in one region\n",
				   ia->name, mem->length, kdapl_mem_max_length(dev));
		return -E2BIG;
	}
	page_size = kdapl_mem_page_size(dev, mem->sgt.sgl, mem->nents, start,
					kdapl_mem_page_sizes(dev, false), max, &blocks);
	if (!page_size) {
		pr_err_ratelimited("%s: region of %llu bytes is too scattered: the device takes %u pages in one region\n",
				   ia->name, mem->length, max);
		return -E2BIG;
	}
	ret = kdapl_mr_create(mr, blocks);
	if (ret)
		return ret;
	spin_lock_irq(&mr->lock);
	kdapl_mr_new_key(mr);
	spin_unlock_irq(&mr->lock);
	ret = lmr_post(lmr, page_size);
	if (ret == -EAGAIN)
		ret = lmr_post(lmr, page_size);
	spin_lock_irq(&mr->lock);
	if (ret)
		mr->live = false;
	else
		kdapl_lmr_publish(lmr);
	spin_unlock_irq(&mr->lock);
	return ret;
}

/**
 * kdapl_lmr_destroy - destroy a retired LMR
 * @lmr: retired, or never published
 *
 * Context: may sleep.
 */
void kdapl_lmr_destroy(struct kdapl_lmr *lmr)
{
	kdapl_lmr_quiesce(lmr);
	kdapl_mr_destroy(&lmr->mr);
	kdapl_mem_free_base(&lmr->mem);
	if (lmr->pz)
		kdapl_obj_unuse(&lmr->pz->obj);
	kdapl_obj_put(&lmr->obj);
}

/**
 * kdapl_lmr_ret - return value of a call that has failed to make an LMR or RMR
 * @err: -ESTALE: the PZ has been freed; -ESHUTDOWN: the IA is being closed; -ENOMEM; any
 *	other: the device cannot
 *
 * Return: the error.
 */
DAT_RETURN kdapl_lmr_ret(int err)
{
	switch (err) {
	case -ESTALE:
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	case -ESHUTDOWN:
		return kdapl_publish_ret(err);
	case -ENOMEM:
		return kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	default:
		return kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY_REGION);
	}
}

static bool lmr_is_length(DAT_MEM_TYPE mem_type)
{
	return mem_type == DAT_MEM_TYPE_VIRTUAL || mem_type == DAT_MEM_TYPE_IA;
}

/* The arguments of dat_lmr_kcreate(), except IA, PZ and source. */
static DAT_RETURN lmr_check(DAT_MEM_TYPE mem_type, const DAT_REGION_DESCRIPTION *region, u64 length,
			    DAT_MEM_PRIV_FLAGS priv, DAT_VA_TYPE va_type,
			    DAT_MEM_OPTIMIZE_FLAGS opt, DAT_LMR_HANDLE *lmr_handle)
{
	u64 start = mem_type == DAT_MEM_TYPE_IA ? region->for_ia : (uintptr_t)region->for_va;

	if (!kdapl_mem_type_valid(mem_type))
		return kdapl_arg_err(2);
	if (mem_type != DAT_MEM_TYPE_LMR && !length)
		return kdapl_arg_err(4);
	if (lmr_is_length(mem_type) && start + length - 1 < start)
		return kdapl_arg_err(4);
	if (mem_type == DAT_MEM_TYPE_VIRTUAL && start + length - 1 > ULONG_MAX)
		return kdapl_arg_err(4);
	if (priv & ~DAT_MEM_PRIV_ALL_FLAG)
		return kdapl_arg_err(6);
	if (va_type != DAT_VA_TYPE_VA && va_type != DAT_VA_TYPE_ZB)
		return kdapl_arg_err(7);
	if (opt & ~KDAPL_MEM_OPTS)
		return kdapl_arg_err(8);
	if (!lmr_handle)
		return kdapl_arg_err(9);
	if (mem_type == DAT_MEM_TYPE_BYPASS)
		return kdapl_err(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	return DAT_SUCCESS;
}

/*
 * May another LMR be made of the memory of this one? As kdapl_lmr_check(); -EBUSY: this is an LMR
 * of dat_lmr_allocate(), whose memory comes and goes (D-67).
 */
static int lmr_check_source(struct kdapl_ia *ia, DAT_LMR_HANDLE handle)
{
	struct kdapl_lmr *source = kdapl_obj_get(handle, DAT_HANDLE_TYPE_LMR);
	int ret = -EBADF;

	if (!source)
		return ret;
	if (source->obj.ia == ia)
		ret = kdapl_lmr_check(source);
	if (!ret && source->fmr)
		ret = -EBUSY;
	kdapl_obj_put(&source->obj);
	return ret;
}

static DAT_RETURN lmr_source_ret(int err)
{
	if (err == -EBUSY)
		return kdapl_err(DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_FREE);
	return kdapl_lmr_check_ret(err);
}

/* -EFAULT: the region is wrong; -EINVAL: its length is; or an errno of kdapl_lmr_ret(). */
static int lmr_make(struct kdapl_lmr *lmr, DAT_MEM_OPTIMIZE_FLAGS opt)
{
	int ret;

	ret = kdapl_mem_build(&lmr->mem, lmr->obj.ia, lmr->mem_type, &lmr->region, lmr->length);
	if (ret)
		return ret;
	if (lmr->va_type == DAT_VA_TYPE_ZB && lmr->mem.start & ~PAGE_MASK)
		return -EFAULT;
	ret = lmr_register(lmr, opt);
	if (ret)	/* the provider's -EINVAL or -EFAULT is not about an argument */
		return ret == -ENOMEM || ret == -E2BIG ? ret : -EIO;
	return kdapl_obj_publish(&lmr->obj);
}

static DAT_RETURN lmr_make_ret(int err)
{
	switch (err) {
	case -EFAULT:
		return kdapl_arg_err(3);
	case -EINVAL:
		return kdapl_arg_err(4);
	default:
		return kdapl_lmr_ret(err);
	}
}

/**
 * dat_lmr_kcreate - register memory
 * @ia_handle: IA
 * @mem_type: the type of @region_description
 *	DAT_MEM_TYPE_VIRTUAL: for_va, kernel virtual memory: kmalloc, vmalloc, or data
 *	of a module; named by its virtual address.
 *	DAT_MEM_TYPE_PHYSICAL: for_physical, an array of physical addresses of pages of
 *	PAGE_SIZE; named by the address of the first page, as if the others followed it.
 *	DAT_MEM_TYPE_PHYSICAL_VAR_PAGES: for_array, the same for larger pages.
 *	DAT_MEM_TYPE_PLATFORM: for_platform, a struct sg_table that is not mapped for
 *	DMA; named by the physical address of its first byte.
 *	DAT_MEM_TYPE_IA: for_ia, an address of the device, for example from
 *	kdat_ia_dma_map().
 *	DAT_MEM_TYPE_LMR: for_lmr_handle, the memory of another LMR, by the address it
 *	has there; that LMR may be freed later.
 *	DAT_MEM_TYPE_BYPASS: refused, since it would open memory without any key.
 * @region_description: the memory; read during the call only
 * @length: bytes; pages for the PHYSICAL types; ignored for an LMR
 * @pz_handle: PZ
 * @privileges: exactly these rights are given; a sink of RDMA Reads also needs the
 *	remote write right if the provider attribute rdma_write_for_rdma_read_req is
 *	TRUE
 * @va_type: DAT_VA_TYPE_VA: segments and peers name the memory by the address
 *	given above; DAT_VA_TYPE_ZB: from 0, for memory that starts on a page
 * @mem_optimization: DAT_MEM_OPTIMIZE_IA: memory with local rights only that is
 *	contiguous for the device is not registered; any other: it is. The range is always
 *	exact
 * @lmr_handle: where the handle goes
 * @lmr_context: where the key for local segments goes; may be NULL
 * @rmr_context: where the key for peers goes, 0 without remote rights; may be
 *	NULL
 * @registered_length: where the registered length goes; may be NULL
 * @registered_address: where the first address goes, as segments name it; may
 *	be NULL
 *
 * Memory must have struct pages, except for type IA. If it is not contiguous, each
 * piece must end, and the next one start, at a page boundary. Memory of type IA that
 * is a bounce buffer can be registered for reading only. Regions up to
 * max_lmr_block_size fit however scattered they are; larger ones fit if they are
 * contiguous enough for the larger page sizes of the device.
 *
 * Memory that is not registered takes no registration queue pair and no resource of the
 * device, which has no key for it. Posts check it like any other memory, but the device
 * does not check it again. So requests that name it must have completed before
 * dat_lmr_free(): they would reach the memory afterwards.
 *
 * The memory must stay allocated until dat_lmr_free().
 *
 * Context: may sleep; on iWARP the first call for a PZ makes a listener, for which the
 * driver may wait for RTNL (irdma).
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE (IA; PZ; LMR that is to be the
 * source); DAT_INVALID_PARAMETER (type, length 0 or wrapping around, rights,
 * address type, optimization, NULL @lmr_handle; ARG3: gaps, no struct page,
 * page addresses that are not aligned, DAT_VA_TYPE_ZB for memory that does not
 * start on a page); DAT_INVALID_STATE (subtype LMR_FREE: the source is an LMR of
 * dat_lmr_allocate()); DAT_RESERVED_LMR (the source is the reserved LMR);
 * DAT_MODEL_NOT_SUPPORTED (BYPASS); DAT_INSUFFICIENT_RESOURCES (subtype
 * MEMORY_REGION: more pages than the device takes, with the numbers in the kernel
 * log, or no MR left; MEMORY); DAT_INTERNAL_ERROR (device removed).
 */
DAT_RETURN dat_lmr_kcreate(DAT_IA_HANDLE ia_handle, DAT_MEM_TYPE mem_type,
			   DAT_REGION_DESCRIPTION region_description, DAT_VLEN length,
			   DAT_PZ_HANDLE pz_handle, DAT_MEM_PRIV_FLAGS privileges,
			   DAT_VA_TYPE va_type, DAT_MEM_OPTIMIZE_FLAGS mem_optimization,
			   DAT_LMR_HANDLE *lmr_handle, DAT_LMR_CONTEXT *lmr_context,
			   DAT_RMR_CONTEXT *rmr_context, DAT_VLEN *registered_length,
			   DAT_VADDR *registered_address)
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
	ret = DAT_SUCCESS;
	if (mem_type == DAT_MEM_TYPE_LMR)
		ret = lmr_source_ret(lmr_check_source(ia, region_description.for_lmr_handle));
	if (ret == DAT_SUCCESS)
		ret = lmr_check(mem_type, &region_description, length, privileges, va_type,
				mem_optimization, lmr_handle);
	if (ret != DAT_SUCCESS)
		goto out;
	ret = kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	if (!kdapl_dev_enter(ia->dev))
		goto out;
	lmr = kdapl_lmr_alloc(ia, pz, pz_handle);
	if (IS_ERR(lmr)) {
		ret = kdapl_lmr_ret(PTR_ERR(lmr));
		goto out_exit;
	}
	lmr->priv = privileges;
	lmr->va_type = va_type;
	lmr->scope = DAT_LMR_SCOPE_PZ;
	lmr->mem_type = mem_type;
	lmr->region = region_description;
	lmr->length = length;
	err = lmr_make(lmr, mem_optimization);
	if (err) {
		ret = lmr_make_ret(err);
		kdapl_lmr_destroy(lmr);
		goto out_exit;
	}
	*lmr_handle = lmr->obj.handle;
	if (lmr_context)
		*lmr_context = lmr->mr.used;
	if (rmr_context)
		*rmr_context = privileges & KDAPL_PRIV_REMOTE ? lmr->mr.used : 0;
	if (registered_length)
		*registered_length = lmr->mem.length;
	if (registered_address)
		*registered_address = kdapl_lmr_start(lmr);
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
EXPORT_SYMBOL(dat_lmr_kcreate);

static void lmr_fill_param(struct kdapl_lmr *lmr, DAT_LMR_PARAM *param)
{
	struct kdapl_mr *mr = &lmr->mr;
	unsigned long flags;

	memset(param, 0, sizeof(*param));
	param->ia_handle = lmr->obj.ia->obj.handle;
	param->pz_handle = lmr->pz_handle;
	spin_lock_irqsave(&mr->lock, flags);
	param->mem_type = lmr->mem_type;
	param->region_desc = lmr->region;
	param->length = lmr->length;
	param->mem_priv = lmr->priv;
	param->va_type = lmr->va_type;
	param->lmr_context = mr->lkey;
	param->rmr_context = mr->rkey;
	param->registered_size = lmr->mem.length;
	param->registered_address = kdapl_lmr_start(lmr);
	param->lmr_state.fmr_support = lmr->fmr ? DAT_TRUE : DAT_FALSE;
	param->lmr_state.bound = lmr->state == KDAPL_LMR_BOUND ||
				 lmr->state == KDAPL_LMR_ENDING ? DAT_TRUE : DAT_FALSE;
	spin_unlock_irqrestore(&mr->lock, flags);
}

/**
 * dat_lmr_query - read the parameters of an LMR
 * @lmr_handle: LMR
 * @lmr_param_mask: DAT_LMR_FIELD_* bits of the members wanted; 0 is legal
 * @lmr_param: filled entirely
 *
 * For an LMR of dat_lmr_allocate() they are those of the last dat_lmr_fmr();
 * lmr_state tells whether that binding is in effect.
 *
 * Context: any.
 * Return: DAT_SUCCESS, DAT_INVALID_HANDLE, or DAT_INVALID_PARAMETER (undefined
 * mask bit, NULL @lmr_param with a mask).
 */
DAT_RETURN dat_lmr_query(DAT_LMR_HANDLE lmr_handle, DAT_LMR_PARAM_MASK lmr_param_mask,
			 DAT_LMR_PARAM *lmr_param)
{
	struct kdapl_lmr *lmr = kdapl_obj_get(lmr_handle, DAT_HANDLE_TYPE_LMR);
	DAT_RETURN ret;

	if (!lmr)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	ret = kdapl_query_check(lmr_param_mask, DAT_LMR_FIELD_ALL, lmr_param);
	if (ret == DAT_SUCCESS && lmr_param)
		lmr_fill_param(lmr, lmr_param);
	kdapl_obj_put(&lmr->obj);
	return ret;
}
EXPORT_SYMBOL(dat_lmr_query);

/**
 * kdat_lmr_by_context - find the LMR of a key for local segments
 * @ia_handle: IA
 * @lmr_context: the key; one that is not valid at the moment belongs to no LMR
 * @lmr_handle: where the handle goes
 *
 * For consumers that store keys only. An extension of this provider.
 *
 * Context: any.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE (IA); DAT_INVALID_PARAMETER (no LMR of this IA
 * has the key, NULL @lmr_handle).
 */
DAT_RETURN kdat_lmr_by_context(DAT_IA_HANDLE ia_handle, DAT_LMR_CONTEXT lmr_context,
			       DAT_LMR_HANDLE *lmr_handle)
{
	DAT_RETURN ret = DAT_SUCCESS;
	const struct kdapl_mr *mr;
	struct kdapl_ia *ia;

	rcu_read_lock();
	ia = kdapl_handle_peek(ia_handle, DAT_HANDLE_TYPE_IA);
	mr = ia ? kdapl_mr_find(ia, lmr_context) : NULL;
	if (!ia)
		ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	else if (!lmr_context || !mr || READ_ONCE(mr->lkey) != lmr_context ||
		 mr->owner->type != DAT_HANDLE_TYPE_LMR)
		ret = kdapl_arg_err(2);
	else if (!lmr_handle)
		ret = kdapl_arg_err(3);
	else
		*lmr_handle = mr->owner->handle;
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(kdat_lmr_by_context);

/*
 * As kdapl_obj_retire(). RMRs are counted in windows, since they bind and unbind under locks
 * inside which ia->lock must not be taken.
 */
static int lmr_retire(struct kdapl_lmr *lmr)
{
	int ret = 0;

	spin_lock_irq(&lmr->mr.lock);
	if (lmr->windows)
		ret = -EBUSY;
	else
		lmr->state = KDAPL_LMR_DEAD;
	spin_unlock_irq(&lmr->mr.lock);
	return ret ?: kdapl_obj_retire(&lmr->obj);
}

/**
 * dat_lmr_free - end a registration
 * @lmr_handle: LMR
 *
 * The memory itself belongs to the consumer and stays. After the return neither local
 * segments nor peers reach it through the keys of this LMR. There is one exception: if
 * another call is just freeing it, the return is DAT_INVALID_HANDLE and that call may not
 * be done. The call waits for outstanding requests of dat_lmr_fmr() and
 * dat_lmr_invalidate(); if the EP completes no request for 5 s, its connection is ended
 * with BROKEN.
 *
 * Context: may sleep; not in an upcall of an EVD that such operations complete on.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE; DAT_INVALID_STATE (subtype LMR_IN_USE: an
 * RMR is bound to it); DAT_RESERVED_LMR.
 */
DAT_RETURN dat_lmr_free(DAT_LMR_HANDLE lmr_handle)
{
	struct kdapl_lmr *lmr = kdapl_obj_get(lmr_handle, DAT_HANDLE_TYPE_LMR);
	DAT_RETURN ret = kdapl_err(DAT_RESERVED_LMR, DAT_NO_SUBTYPE);

	if (!lmr)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	if (lmr->reserved)
		goto out;
	ret = kdapl_retire_ret(lmr_retire(lmr), DAT_INVALID_STATE_LMR_IN_USE,
			       DAT_INVALID_HANDLE_LMR);
	if (ret == DAT_SUCCESS)
		kdapl_lmr_destroy(lmr);
out:
	kdapl_obj_put(&lmr->obj);
	return ret;
}
EXPORT_SYMBOL(dat_lmr_free);
