// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Local Memory Regions.
 *
 * Every LMR is a fast-registration MR, registered once, on the registration QP
 * of its PZ (lmr_reg.c). Its I/O virtual address is the consumer's address, so
 * that segments and remote peers name memory as the consumer does; a zero
 * based region starts at 0 instead, for which it must start on a page.
 */
#include <linux/export.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "kdapl.h"

#define MEM_OPT_ALL	(DAT_MEM_OPTIMIZE_IA | DAT_MEM_OPTIMIZE_MIN_EXPOSURE | \
			 DAT_MEM_OPTIMIZE_EXACT_EXPOSURE)
#define MEM_TYPE_ALL	(DAT_MEM_TYPE_VIRTUAL | DAT_MEM_TYPE_LMR | DAT_MEM_TYPE_PHYSICAL | \
			 DAT_MEM_TYPE_PLATFORM | DAT_MEM_TYPE_IA | DAT_MEM_TYPE_BYPASS | \
			 DAT_MEM_TYPE_PHYSICAL_VAR_PAGES)

/* is_vmalloc_or_module_addr() is not exported by every kernel. */
static bool lmr_needs_walk(const void *addr)
{
#ifdef MODULES_VADDR
	if ((unsigned long)addr >= MODULES_VADDR && (unsigned long)addr < MODULES_END)
		return true;
#endif
	return is_vmalloc_addr(addr);
}

/* The page behind a kernel address: linear mapping, vmalloc or module data. */
static struct page *lmr_page(const void *addr)
{
	if (lmr_needs_walk(addr))
		return vmalloc_to_page(addr);
	return virt_addr_valid(addr) ? virt_to_page(addr) : NULL;
}

static int lmr_build_sg(struct kdapl_lmr *lmr, void *va, u64 length, unsigned int npages)
{
	unsigned int offset = offset_in_page(va);
	struct scatterlist *sg;
	unsigned int i;
	int ret;

	ret = sg_alloc_table(&lmr->sgt, npages, GFP_KERNEL);
	if (ret)
		return ret;
	for_each_sg(lmr->sgt.sgl, sg, npages, i) {
		unsigned int chunk = min_t(u64, length, PAGE_SIZE - offset);
		struct page *page = lmr_page(va);

		if (!page)
			return -EFAULT;
		sg_set_page(sg, page, chunk, offset);
		va += chunk;
		length -= chunk;
		offset = 0;
	}
	return 0;
}

static int lmr_access(DAT_MEM_PRIV_FLAGS priv)
{
	int access = 0;

	/* a region the peer may write must be writable for the device anyway */
	if (priv & (DAT_MEM_PRIV_LOCAL_WRITE_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG))
		access |= IB_ACCESS_LOCAL_WRITE;
	if (priv & DAT_MEM_PRIV_REMOTE_READ_FLAG)
		access |= IB_ACCESS_REMOTE_READ;
	if (priv & DAT_MEM_PRIV_REMOTE_WRITE_FLAG)
		access |= IB_ACCESS_REMOTE_WRITE;
	return access;
}

static int lmr_register(struct kdapl_lmr *lmr, unsigned int npages)
{
	struct kdapl_ia *ia = lmr->obj.ia;
	struct ib_device *ibdev = ia->dev->ibdev;
	int nents, ret;

	lmr->mr = ib_alloc_mr(lmr->pd->pd, IB_MR_TYPE_MEM_REG, npages);
	if (IS_ERR(lmr->mr)) {
		ret = PTR_ERR(lmr->mr);
		lmr->mr = NULL;
		return ret;
	}
	nents = ib_dma_map_sg(ibdev, lmr->sgt.sgl, lmr->sgt.orig_nents, DMA_BIDIRECTIONAL);
	if (nents <= 0) {
		ret = -EIO;
		goto err_mr;
	}
	ret = ib_map_mr_sg(lmr->mr, lmr->sgt.sgl, nents, NULL, PAGE_SIZE);
	if (ret != nents) {
		ret = ret < 0 ? ret : -EINVAL;
		goto err_map;
	}
	lmr->mr->iova = lmr->start;
	ib_update_fast_reg_key(lmr->mr, get_random_u32());
	ret = kdapl_reg_mr(ia, lmr->pd, lmr->mr, lmr_access(lmr->priv));
	if (ret)
		goto err_map;
	lmr->key = lmr->mr->lkey;
	if (lmr->priv & (DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG))
		lmr->rmr_context = lmr->mr->rkey;
	mutex_lock(&ia->dev->lock);
	list_add_tail(&lmr->dev_node, &ia->dev->mrs);
	mutex_unlock(&ia->dev->lock);
	return 0;

err_map:
	ib_dma_unmap_sg(ibdev, lmr->sgt.sgl, lmr->sgt.orig_nents, DMA_BIDIRECTIONAL);
err_mr:
	ib_dereg_mr(lmr->mr);
	lmr->mr = NULL;
	return ret;
}

/**
 * kdapl_lmr_destroy_verbs - free MR and mapping, if still there
 * @lmr: LMR
 *
 * Context: may sleep.
 */
void kdapl_lmr_destroy_verbs(struct kdapl_lmr *lmr)
{
	struct kdapl_device *dev = lmr->obj.ia->dev;

	mutex_lock(&lmr->mutex);
	if (lmr->mr) {
		ib_dereg_mr(lmr->mr);
		lmr->mr = NULL;
		ib_dma_unmap_sg(dev->ibdev, lmr->sgt.sgl, lmr->sgt.orig_nents,
				DMA_BIDIRECTIONAL);
	}
	mutex_unlock(&lmr->mutex);
	mutex_lock(&dev->lock);
	list_del_init(&lmr->dev_node);
	wake_up(&dev->idle);
	mutex_unlock(&dev->lock);
}

static void lmr_release(struct kdapl_obj *obj)
{
	struct kdapl_lmr *lmr = container_of(obj, struct kdapl_lmr, obj);

	sg_free_table(&lmr->sgt);
	kfree_rcu(lmr, obj.rcu);
}

/**
 * kdapl_lmr_destroy - destroy a retired LMR
 * @lmr: retired, or complete and never published
 *
 * The key is invalidated before the MR goes, so that a peer that still uses it
 * gets an error and never somebody else's memory.
 *
 * Context: may sleep.
 */
void kdapl_lmr_destroy(struct kdapl_lmr *lmr)
{
	struct kdapl_ia *ia = lmr->obj.ia;

	kdapl_key_remove(ia, lmr);
	if (kdapl_dev_enter(ia->dev)) {
		if (lmr->mr && kdapl_reg_invalidate(ia, lmr->pd, lmr->key))
			pr_warn_ratelimited("%s: key of an LMR could not be invalidated, its MR is destroyed all the same\n",
					    ia->name);
		kdapl_dev_exit(ia->dev);
	}
	/* removal of the device waits while it finds us at this */
	kdapl_lmr_destroy_verbs(lmr);
	kdapl_pd_put(lmr->pd);
	kdapl_obj_unuse(&lmr->pz->obj);
	kdapl_obj_put(&lmr->obj);
}

static DAT_RETURN lmr_errno_ret(int err)
{
	if (err == -EFAULT)
		return kdapl_arg_err(3);
	if (err == -ESHUTDOWN)
		return kdapl_publish_ret(err);
	if (err == -ENOMEM)
		return kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	return kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY_REGION);
}

static DAT_RETURN lmr_check(struct kdapl_ia *ia, DAT_MEM_TYPE mem_type, void *va, u64 length,
			    DAT_MEM_PRIV_FLAGS priv, DAT_VA_TYPE va_type,
			    DAT_MEM_OPTIMIZE_FLAGS opt, DAT_LMR_HANDLE *lmr_handle,
			    unsigned int *npages)
{
	u64 pages;

	if (mem_type & ~MEM_TYPE_ALL || (mem_type && !is_power_of_2(mem_type)))
		return kdapl_arg_err(2);
	if (!length || (unsigned long)va + length - 1 < (unsigned long)va || length > ULONG_MAX)
		return kdapl_arg_err(4);
	if (priv & ~DAT_MEM_PRIV_ALL_FLAG)
		return kdapl_arg_err(6);
	if (va_type != DAT_VA_TYPE_VA && va_type != DAT_VA_TYPE_ZB)
		return kdapl_arg_err(7);
	if (opt & ~MEM_OPT_ALL)
		return kdapl_arg_err(8);
	if (!lmr_handle)
		return kdapl_arg_err(9);
	if (mem_type != DAT_MEM_TYPE_VIRTUAL)
		return kdapl_err(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	if (va_type == DAT_VA_TYPE_ZB && offset_in_page(va))
		return kdapl_arg_err(3);
	pages = (offset_in_page(va) + length + PAGE_SIZE - 1) >> PAGE_SHIFT;
	if (pages > ia->dev->attrs.max_fast_reg_page_list_len) {
		pr_err_ratelimited("%s: region of %llu bytes needs %llu pages, the device takes %u in one region\n",
				   ia->name, length, pages,
				   ia->dev->attrs.max_fast_reg_page_list_len);
		return kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY_REGION);
	}
	*npages = pages;
	return DAT_SUCCESS;
}

/**
 * dat_lmr_kcreate - register memory
 * @ia_handle: IA
 * @mem_type: DAT_MEM_TYPE_VIRTUAL
 * @region_description: for_va: kernel virtual address: kmalloc, vmalloc, or
 *	data of a module
 * @length: bytes, at most max_lmr_block_size with the start on a page
 * @pz_handle: PZ
 * @privileges: exactly these rights are given; a sink of RDMA Reads needs the
 *	remote write right too where the provider attribute
 *	rdma_write_for_rdma_read_req says so
 * @va_type: DAT_VA_TYPE_VA: segments and peers name the memory by virtual
 *	address; DAT_VA_TYPE_ZB: from 0, for memory that starts on a page
 * @mem_optimization: any; the registered range is always exact
 * @lmr_handle: where the handle goes
 * @lmr_context: where the key for local segments goes; may be NULL
 * @rmr_context: where the key for peers goes, 0 without remote rights; may be
 *	NULL
 * @registered_length: where the length registered goes; may be NULL
 * @registered_address: where the first address goes, as segments name it; may
 *	be NULL
 *
 * The memory must stay allocated until dat_lmr_free().
 *
 * Context: may sleep.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE (IA, PZ); DAT_INVALID_PARAMETER;
 * DAT_MODEL_NOT_SUPPORTED (memory type); DAT_INSUFFICIENT_RESOURCES (subtype
 * MEMORY_REGION: more pages than the device takes, numbers in the kernel log,
 * or no MR left; MEMORY); DAT_INTERNAL_ERROR (device removed).
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
	void *va = region_description.for_va;
	struct kdapl_pz *pz = NULL;
	struct kdapl_lmr *lmr;
	unsigned int npages;
	DAT_RETURN ret;
	int err;

	if (!ia)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	pz = kdapl_obj_get(pz_handle, DAT_HANDLE_TYPE_PZ);
	if (!pz || pz->obj.ia != ia) {
		ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
		goto out;
	}
	ret = lmr_check(ia, mem_type, va, length, privileges, va_type, mem_optimization,
			lmr_handle, &npages);
	if (ret != DAT_SUCCESS)
		goto out;
	ret = kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	if (!kdapl_dev_enter(ia->dev))
		goto out;
	ret = kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	lmr = kzalloc(sizeof(*lmr), GFP_KERNEL);
	if (!lmr)
		goto out_exit;
	if (kdapl_obj_use(&pz->obj)) {
		ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
		kfree(lmr);
		goto out_exit;
	}
	kdapl_obj_init(&lmr->obj, DAT_HANDLE_TYPE_LMR, ia, lmr_release);
	mutex_init(&lmr->mutex);
	INIT_LIST_HEAD(&lmr->dev_node);
	lmr->pz = pz;
	lmr->pz_handle = pz_handle;
	lmr->priv = privileges;
	lmr->start = va_type == DAT_VA_TYPE_VA ? (unsigned long)va : 0;
	lmr->length = length;
	lmr->mem_type = mem_type;
	lmr->region = region_description;
	lmr->va_type = va_type;
	lmr->pd = pz->pd;
	refcount_inc(&lmr->pd->ref);

	err = lmr_build_sg(lmr, va, length, npages);
	if (!err)
		err = lmr_register(lmr, npages);
	if (!err)
		err = kdapl_key_insert(ia, lmr);
	if (!err)
		err = kdapl_obj_publish(&lmr->obj);
	if (err) {
		ret = lmr_errno_ret(err);
		kdapl_lmr_destroy(lmr);
		goto out_exit;
	}
	*lmr_handle = lmr->obj.handle;
	if (lmr_context)
		*lmr_context = lmr->key;
	if (rmr_context)
		*rmr_context = lmr->rmr_context;
	if (registered_length)
		*registered_length = lmr->length;
	if (registered_address)
		*registered_address = lmr->start;
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

/**
 * dat_lmr_query - read the parameters of an LMR
 * @lmr_handle: LMR
 * @lmr_param_mask: DAT_LMR_FIELD_* bits of the members wanted; 0 is legal
 * @lmr_param: filled entirely
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
	if (ret == DAT_SUCCESS && lmr_param) {
		lmr_param->ia_handle = lmr->obj.ia->obj.handle;
		lmr_param->mem_type = lmr->mem_type;
		lmr_param->region_desc = lmr->region;
		lmr_param->length = lmr->length;
		lmr_param->pz_handle = lmr->pz_handle;
		lmr_param->mem_priv = lmr->priv;
		lmr_param->va_type = lmr->va_type;
		lmr_param->lmr_context = lmr->key;
		lmr_param->rmr_context = lmr->rmr_context;
		lmr_param->registered_size = lmr->length;
		lmr_param->registered_address = lmr->start;
		lmr_param->lmr_state.fmr_support = DAT_FALSE;
		lmr_param->lmr_state.bound = DAT_TRUE;
	}
	kdapl_obj_put(&lmr->obj);
	return ret;
}
EXPORT_SYMBOL(dat_lmr_query);

/**
 * dat_lmr_free - end a registration
 * @lmr_handle: LMR
 *
 * The memory itself is the consumer's and stays. After the return neither
 * local segments nor peers reach it through the keys of this LMR.
 *
 * Context: may sleep.
 * Return: DAT_SUCCESS or DAT_INVALID_HANDLE.
 */
DAT_RETURN dat_lmr_free(DAT_LMR_HANDLE lmr_handle)
{
	struct kdapl_lmr *lmr = kdapl_obj_get(lmr_handle, DAT_HANDLE_TYPE_LMR);
	DAT_RETURN ret = DAT_SUCCESS;

	if (!lmr)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	if (kdapl_obj_retire(&lmr->obj))
		ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	else
		kdapl_lmr_destroy(lmr);
	kdapl_obj_put(&lmr->obj);
	return ret;
}
EXPORT_SYMBOL(dat_lmr_free);
