// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Protection Zones: one ib_pd each.
 */
#include <linux/export.h>
#include <linux/slab.h>

#include "mem.h"

/* Destroy the PD with its fence and its registration QP. Nothing else is left on it. */
static void pz_pd_destroy(struct kdapl_res *res)
{
	struct kdapl_pd *pd = container_of(res, struct kdapl_pd, res);

	mutex_lock(&pd->lock);
	kdapl_reg_destroy(pd);
	if (pd->fence)
		ib_dereg_mr(pd->fence);
	ib_dealloc_pd(pd->pd);
	pd->pd = NULL;
	mutex_unlock(&pd->lock);
}

/**
 * pz_pd_create - allocate a protection domain
 * @ia: IA, for device, port and consumer
 *
 * Context: may sleep; inside kdapl_dev_enter().
 * Return: the PD or an ERR_PTR.
 */
static struct kdapl_pd *pz_pd_create(struct kdapl_ia *ia)
{
	struct kdapl_device *dev = ia->dev;
	struct kdapl_pd *pd = kzalloc(sizeof(*pd), GFP_KERNEL);
	int ret;

	if (!pd)
		return ERR_PTR(-ENOMEM);
	pd->pd = __ib_alloc_pd(dev->ibdev, 0, ia->consumer);
	if (IS_ERR(pd->pd)) {
		ret = PTR_ERR(pd->pd);
		goto err_free;
	}
	if (dev->caps.fence_by == KDAPL_FENCE_INV) {
		pd->fence = ib_alloc_mr(pd->pd, IB_MR_TYPE_MEM_REG, 1);
		if (IS_ERR(pd->fence)) {
			ret = PTR_ERR(pd->fence);
			goto err_pd;
		}
	}
	pd->dev = dev;
	pd->port = ia->port;
	refcount_set(&pd->ref, 1);
	mutex_init(&pd->lock);
	refcount_inc(&dev->ref);
	kdapl_res_add(dev, &pd->res, KDAPL_RES_PD, pz_pd_destroy);
	return pd;

err_pd:
	ib_dealloc_pd(pd->pd);
err_free:
	kfree(pd);
	return ERR_PTR(ret);
}

/**
 * kdapl_pd_put - drop a reference; the last one frees the PD
 * @pd: the PD
 *
 * Context: may sleep.
 */
void kdapl_pd_put(struct kdapl_pd *pd)
{
	struct kdapl_device *dev = pd->dev;

	if (!refcount_dec_and_test(&pd->ref))
		return;
	kdapl_res_release(dev, &pd->res);
	kfree_rcu(pd, rcu);
	kdapl_device_put(dev);
}

KDAPL_OBJ_IS_FIRST(struct kdapl_pz);

static void pz_release(struct kdapl_obj *obj)
{
	struct kdapl_pz *pz = container_of(obj, struct kdapl_pz, obj);

	kfree_rcu(pz, obj.rcu);
}

static const struct kdapl_obj_ops pz_ops = {
	.release = pz_release,
};

/**
 * kdapl_pz_destroy - destroy a retired PZ
 * @pz: retired or never published
 *
 * Context: may sleep.
 */
void kdapl_pz_destroy(struct kdapl_pz *pz)
{
	kdapl_pd_put(pz->pd);
	kdapl_obj_put(&pz->obj);
}

/**
 * dat_pz_create - create a Protection Zone
 * @ia_handle: IA
 * @pz_handle: where the handle goes
 *
 * Memory and EPs must be of the same PZ to be used together, locally and by peers.
 * Memory that the peer of an EP must not access belongs in another PZ.
 *
 * Context: may sleep.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE (IA); DAT_INVALID_PARAMETER (NULL
 * @pz_handle); DAT_INSUFFICIENT_RESOURCES (subtype PROTECTION_DOMAIN or
 * MEMORY); DAT_INTERNAL_ERROR (device removed).
 */
DAT_RETURN dat_pz_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE *pz_handle)
{
	struct kdapl_ia *ia = kdapl_obj_get(ia_handle, DAT_HANDLE_TYPE_IA);
	struct kdapl_pz *pz;
	DAT_RETURN ret;
	int err;

	if (!ia)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	ret = kdapl_arg_err(2);
	if (!pz_handle)
		goto out;
	ret = kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	if (!kdapl_dev_enter(ia->dev))
		goto out;
	ret = kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	pz = kzalloc(sizeof(*pz), GFP_KERNEL);
	if (!pz)
		goto out_exit;
	pz->pd = pz_pd_create(ia);
	if (IS_ERR(pz->pd)) {
		if (PTR_ERR(pz->pd) != -ENOMEM)
			ret = kdapl_err(DAT_INSUFFICIENT_RESOURCES,
					DAT_RESOURCE_PROTECTION_DOMAIN);
		kfree(pz);
		goto out_exit;
	}
	kdapl_obj_init(&pz->obj, DAT_HANDLE_TYPE_PZ, ia, &pz_ops);
	err = kdapl_obj_publish(&pz->obj);
	if (err) {
		ret = kdapl_publish_ret(err);
		kdapl_pz_destroy(pz);
		goto out_exit;
	}
	*pz_handle = pz->obj.handle;
	kdapl_obj_put(&pz->obj);
	ret = DAT_SUCCESS;
out_exit:
	kdapl_dev_exit(ia->dev);
out:
	kdapl_obj_put(&ia->obj);
	return ret;
}
EXPORT_SYMBOL(dat_pz_create);

/**
 * dat_pz_query - read the parameters of a PZ
 * @pz_handle: PZ
 * @pz_param_mask: DAT_PZ_FIELD_* bits of the members wanted; 0 is legal
 * @pz_param: filled entirely
 *
 * The IA is the only parameter of a PZ.
 *
 * Context: any.
 * Return: DAT_SUCCESS, DAT_INVALID_HANDLE, or DAT_INVALID_PARAMETER (undefined
 * mask bit, NULL @pz_param with a mask).
 */
DAT_RETURN dat_pz_query(DAT_PZ_HANDLE pz_handle, DAT_PZ_PARAM_MASK pz_param_mask,
			DAT_PZ_PARAM *pz_param)
{
	struct kdapl_pz *pz = kdapl_obj_get(pz_handle, DAT_HANDLE_TYPE_PZ);
	DAT_RETURN ret;

	if (!pz)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	ret = kdapl_query_check(pz_param_mask, DAT_PZ_FIELD_ALL, pz_param);
	if (ret == DAT_SUCCESS && pz_param)
		pz_param->ia_handle = pz->obj.ia->obj.handle;
	kdapl_obj_put(&pz->obj);
	return ret;
}
EXPORT_SYMBOL(dat_pz_query);

/**
 * dat_pz_free - destroy a Protection Zone
 * @pz_handle: PZ
 *
 * EPs, LMRs, RMRs and SRQs keep their PZ in use.
 *
 * Context: may sleep.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE; DAT_INVALID_STATE (subtype PZ_IN_USE:
 * an object of it exists).
 */
DAT_RETURN dat_pz_free(DAT_PZ_HANDLE pz_handle)
{
	struct kdapl_pz *pz = kdapl_obj_get(pz_handle, DAT_HANDLE_TYPE_PZ);
	DAT_RETURN ret;

	if (!pz)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	ret = kdapl_retire_ret(kdapl_obj_retire(&pz->obj), DAT_INVALID_STATE_PZ_IN_USE,
			       DAT_INVALID_HANDLE_PZ);
	if (ret == DAT_SUCCESS)
		kdapl_pz_destroy(pz);
	kdapl_obj_put(&pz->obj);
	return ret;
}
EXPORT_SYMBOL(dat_pz_free);
