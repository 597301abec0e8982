// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The reserved LMR of an IA: all memory, by addresses of the device, for local
 * segments only (D-71).
 *
 * It has no MR. Its context is an entry in the key table of the IA, which the posting
 * calls replace by the local key of their PD. So it gives peers no access on any PD.
 */
#include <linux/export.h>
#include <linux/sched/mm.h>

#include "mem.h"

#define RESERVED_INDEX	(KDAPL_RESERVED_CONTEXT >> 8)

static struct kdapl_lmr *reserved_create(struct kdapl_ia *ia, int *err)
{
	struct kdapl_range range = {
		.length = U64_MAX,
		.priv = DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG,
	};
	struct kdapl_lmr *lmr = kdapl_lmr_alloc(ia, NULL, DAT_HANDLE_NULL);

	if (IS_ERR(lmr)) {
		*err = PTR_ERR(lmr);
		return NULL;
	}
	lmr->reserved = true;
	lmr->priv = range.priv;
	if (ia->dev->dma == KDAPL_DMA_SAME)
		range.priv = kdapl_priv_direct(range.priv);
	lmr->va_type = DAT_VA_TYPE_VA;
	lmr->mem_type = DAT_MEM_TYPE_IA;
	lmr->length = range.length;
	lmr->mem.length = range.length;
	lmr->mr.index = RESERVED_INDEX;
	*err = kdapl_handle_alloc(lmr, DAT_HANDLE_TYPE_LMR, &lmr->obj.handle);
	if (*err)
		goto err_lmr;
	spin_lock_irq(&lmr->mr.lock);
	lmr->state = KDAPL_LMR_BOUND;
	kdapl_mr_publish(&lmr->mr, KDAPL_RESERVED_CONTEXT, 0, &range);
	spin_unlock_irq(&lmr->mr.lock);
	*err = kdapl_keys_insert(&ia->keys, lmr->mr.index, &lmr->mr);
	if (*err)
		goto err_handle;
	return lmr;

err_handle:
	kdapl_handle_free(lmr->obj.handle);
err_lmr:
	kdapl_lmr_destroy(lmr);
	return NULL;
}

/**
 * kdapl_lmr_reserved_destroy - destroy the reserved LMR, if there is one
 * @ia: IA being closed
 *
 * Context: may sleep.
 */
void kdapl_lmr_reserved_destroy(struct kdapl_ia *ia)
{
	struct kdapl_lmr *lmr;

	mutex_lock(&ia->mutex);
	lmr = ia->reserved;	/* closing is set, so no new one will be made */
	ia->reserved = NULL;
	mutex_unlock(&ia->mutex);
	if (!lmr)
		return;
	kdapl_handle_free(lmr->obj.handle);
	kdapl_lmr_destroy(lmr);
}

static int reserved_get(struct kdapl_ia *ia, DAT_LMR_HANDLE *handle)
{
	unsigned int noio = memalloc_noio_save();	/* dat_ep_create() takes the mutex (D-32) */
	bool closing;
	int err = 0;

	mutex_lock(&ia->mutex);
	spin_lock_irq(&ia->lock);
	closing = ia->closing;
	spin_unlock_irq(&ia->lock);
	if (closing)
		err = -ESHUTDOWN;
	else if (!ia->reserved)
		ia->reserved = reserved_create(ia, &err);
	if (!err)
		*handle = ia->reserved->obj.handle;
	mutex_unlock(&ia->mutex);
	memalloc_noio_restore(noio);
	return err;
}

/**
 * dat_ia_reserved_lmr - get the LMR that covers all memory
 * @ia_handle: IA
 * @reserved_lmr_handle: where the handle goes; always the same one
 * @reserved_lmr_context: where the context for local segments goes
 *
 * Segments with this context name memory by addresses of the device
 * (kdat_ia_dma_map()), on EPs and SRQs of every PZ of the IA. They are checked for
 * wrapping around only: a wrong address overwrites whatever is there. The context has
 * the local rights to read and write, and gives peers no access.
 *
 * The LMR cannot be freed, bound, invalidated or the source of another one
 * (DAT_RESERVED_LMR). It is destroyed with the IA, and does not count as one of its
 * objects.
 *
 * Context: may sleep.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE; DAT_INVALID_PARAMETER (NULL pointer);
 * DAT_INSUFFICIENT_RESOURCES (MEMORY); DAT_INTERNAL_ERROR (device removed).
 */
DAT_RETURN dat_ia_reserved_lmr(DAT_IA_HANDLE ia_handle, DAT_LMR_HANDLE *reserved_lmr_handle,
			       DAT_LMR_CONTEXT *reserved_lmr_context)
{
	struct kdapl_ia *ia = kdapl_obj_get(ia_handle, DAT_HANDLE_TYPE_IA);
	DAT_RETURN ret;
	int err;

	if (!ia)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	ret = kdapl_arg_err(2);
	if (!reserved_lmr_handle)
		goto out;
	ret = kdapl_arg_err(3);
	if (!reserved_lmr_context)
		goto out;
	ret = kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	if (!kdapl_dev_enter(ia->dev))
		goto out;
	err = reserved_get(ia, reserved_lmr_handle);
	ret = DAT_SUCCESS;
	if (err)
		ret = kdapl_lmr_ret(err);
	else
		*reserved_lmr_context = KDAPL_RESERVED_CONTEXT;
	kdapl_dev_exit(ia->dev);
out:
	kdapl_obj_put(&ia->obj);
	return ret;
}
EXPORT_SYMBOL(dat_ia_reserved_lmr);
