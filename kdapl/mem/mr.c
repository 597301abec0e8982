// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Native MRs and their keys.
 *
 * A key has an index of 24 bits, which the device chooses and the MR keeps, and a low
 * byte, which every registration changes. An IA has a table of its MRs by index
 * (core/keys.c). The MR records what its key stands for; the posting calls read that under
 * RCU with a sequence count. So binding an MR again only stores: nothing is inserted
 * or allocated, and old keys are not found.
 *
 * The order of the low bytes is random, so that one key does not reveal the next (D-72).
 */
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/scatterlist.h>
#include <linux/sched/mm.h>

#include "mem.h"
#include "../core/trace.h"

/* Posts read one cache line of an MR. Lock debugging makes sequence counts larger. */
static_assert(!IS_ENABLED(CONFIG_64BIT) || IS_ENABLED(CONFIG_DEBUG_LOCK_ALLOC) ||
	      offsetofend(struct kdapl_mr, range) - offsetof(struct kdapl_mr, seq) <= 64);
static_assert(offsetof(struct kdapl_mr, seq) % L1_CACHE_BYTES == 0);

/**
 * kdapl_mr_access - convert rights to access flags of verbs
 * @priv: rights the consumer asked for
 *
 * Return: IB_ACCESS_*
 */
int kdapl_mr_access(DAT_MEM_PRIV_FLAGS priv)
{
	int access = 0;

	/* verbs want the local write right with the remote one */
	if (priv & (DAT_MEM_PRIV_LOCAL_WRITE_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG))
		access |= IB_ACCESS_LOCAL_WRITE;
	if (priv & DAT_MEM_PRIV_REMOTE_READ_FLAG)
		access |= IB_ACCESS_REMOTE_READ;
	if (priv & DAT_MEM_PRIV_REMOTE_WRITE_FLAG)
		access |= IB_ACCESS_REMOTE_WRITE;
	return access;
}

/*
 * The next low byte, from a linear congruential generator of full period (the step is odd): all
 * 256 are used before one is used again, so a late request does not find its key valid again.
 * The step is random for each MR. mr->lock held.
 */
static void mr_draw_key(struct kdapl_mr *mr)
{
	mr->next = 5 * mr->next + mr->step;
}

/**
 * kdapl_mr_init - initialise an MR
 * @mr: zeroed, part of @owner
 * @owner: LMR or RMR
 * @ops: callbacks of the owner
 * @pd: its PD, or NULL; a reference is taken
 */
void kdapl_mr_init(struct kdapl_mr *mr, struct kdapl_obj *owner, const struct kdapl_mr_ops *ops,
		   struct kdapl_pd *pd)
{
	mr->owner = owner;
	mr->ops = ops;
	mr->pd = pd;
	if (pd)
		refcount_inc(&pd->ref);
	INIT_LIST_HEAD(&mr->stale_node);
	spin_lock_init(&mr->lock);
	seqcount_spinlock_init(&mr->seq, &mr->lock);
}

static struct ib_mr *mr_alloc_any(struct kdapl_mr *mr)
{
	struct ib_mr *ibmr = ib_alloc_mr(mr->pd->pd, IB_MR_TYPE_MEM_REG, mr->pages);

	if (!IS_ERR(ibmr) && ibmr->lkey != ibmr->rkey) {
		pr_err_once("%s: lkey and rkey of an MR differ, which is not supported\n",
			    mr->pd->dev->name);
		ib_dereg_mr(ibmr);
		return ERR_PTR(-EOPNOTSUPP);
	}
	return ibmr;
}

/* Is the index of a key taken? Only an MR without an ib_mr can have the index of a new one. */
static bool mr_taken(struct kdapl_ia *ia, u32 key)
{
	bool taken;

	rcu_read_lock();
	taken = kdapl_mr_find(ia, key);
	rcu_read_unlock();
	return taken;
}

/* A new ib_mr of the same size. */
static struct ib_mr *mr_alloc(struct kdapl_mr *mr)
{
	struct ib_mr *ibmr = mr_alloc_any(mr), *other;

	if (IS_ERR(ibmr) || likely(!mr_taken(mr->owner->ia, ibmr->lkey)))
		return ibmr;
	other = mr_alloc_any(mr);	/* while the first one exists: it has another index */
	ib_dereg_mr(ibmr);
	return other;
}

/* Add it to the key table. */
static int mr_insert(struct kdapl_mr *mr, struct ib_mr *ibmr)
{
	spin_lock_irq(&mr->lock);
	mr->index = ibmr->lkey >> 8;
	mr->next = ibmr->lkey & 0xff;
	mr->step = get_random_u32() | 1;
	mr_draw_key(mr);
	spin_unlock_irq(&mr->lock);
	return kdapl_keys_insert(&mr->owner->ia->keys, mr->index, mr);
}

static void mr_unmap(struct kdapl_mr *mr)
{
	if (mr->ops->unmap)
		mr->ops->unmap(mr);
}

/*
 * Destroy MR and mapping. If the device is being removed, a stale MR need not be replaced any
 * more: release those that wait for it.
 */
static void mr_destroy(struct kdapl_res *res)
{
	struct kdapl_mr *mr = container_of(res, struct kdapl_mr, res);

	if (mr->ibmr)	/* none if it could not be replaced */
		ib_dereg_mr(mr->ibmr);
	mr->ibmr = NULL;
	mr_unmap(mr);
	if (READ_ONCE(mr->pd->dev->gone))
		kdapl_mrs_replace_stale(mr->owner->ia);
}

/**
 * kdapl_mr_create - allocate an MR, which has no valid key yet
 * @mr: initialised
 * @pages: most blocks it can map
 *
 * Context: may sleep; inside kdapl_dev_enter().
 * Return: 0 or an errno; the caller calls kdapl_mr_destroy() in any case.
 */
int kdapl_mr_create(struct kdapl_mr *mr, u32 pages)
{
	struct kdapl_device *dev = mr->pd->dev;
	struct ib_mr *ibmr;
	int ret;

	mr->pages = pages;
	ibmr = mr_alloc(mr);
	if (IS_ERR(ibmr))
		return PTR_ERR(ibmr);
	ret = mr_insert(mr, ibmr);
	if (ret) {
		ib_dereg_mr(ibmr);
		return ret;
	}
	mr->ibmr = ibmr;
	kdapl_res_add(dev, &mr->res, KDAPL_RES_MR, mr_destroy);
	return 0;
}

/**
 * kdapl_mr_create_local - give an MR a key that the device does not know
 * @mr: initialised
 * @shift: from the addresses of segments to those of the device
 *
 * Segments that name the key are posted with the local key of the PD. Its index is one that no
 * MR of the IA has; an ib_mr that the device gives the same index is not used (mr_alloc()).
 *
 * Context: may sleep; inside kdapl_dev_enter().
 * Return: 0 or -ENOMEM; the caller calls kdapl_mr_destroy() in any case.
 */
int kdapl_mr_create_local(struct kdapl_mr *mr, u64 shift)
{
	u32 key;
	int ret;

	mr->local = true;
	mr->shift = shift;
	do {
		key = get_random_u32();
		mr->index = key >> 8;
		ret = mr->index == KDAPL_RESERVED_CONTEXT >> 8 ? -EBUSY :
			kdapl_keys_insert(&mr->owner->ia->keys, mr->index, mr);
	} while (ret == -EBUSY);
	if (ret)
		return ret;
	mr->used = key;
	kdapl_res_add(mr->pd->dev, &mr->res, KDAPL_RES_MR, mr_destroy);
	return 0;
}

/**
 * kdapl_mr_set_stale - mark an MR whose registration was flushed
 * @mr: the MR, hidden
 *
 * The device may have carried out a flushed registration or not, so the key may be valid or
 * not. Invalidating a key that is not valid is an error. So the MR is replaced
 * (kdapl_mrs_replace_stale()) before the end of the connection is reported (D-74).
 *
 * Context: any, also with mr->lock held.
 */
void kdapl_mr_set_stale(struct kdapl_mr *mr)
{
	struct kdapl_ia *ia = mr->owner->ia;
	unsigned long flags;

	spin_lock_irqsave(&ia->stale_lock, flags);
	list_add_tail(&mr->stale_node, &ia->stale_mrs);
	spin_unlock_irqrestore(&ia->stale_lock, flags);
}

static void mr_not_stale(struct kdapl_mr *mr)
{
	struct kdapl_ia *ia = mr->owner->ia;

	spin_lock_irq(&ia->stale_lock);
	list_del_init(&mr->stale_node);
	spin_unlock_irq(&ia->stale_lock);
}

/* Destroy the ib_mr, and remove its key. */
static void mr_drop(struct kdapl_mr *mr)
{
	kdapl_keys_remove(&mr->owner->ia->keys, mr->index, mr);
	ib_dereg_mr(mr->ibmr);
	mr->ibmr = NULL;
}

/* Without memory for a new ib_mr the owner is left without one. */
static void mr_replace(struct kdapl_mr *mr)
{
	struct ib_mr *ibmr = mr_alloc(mr);
	int ret = PTR_ERR_OR_ZERO(ibmr);

	mr_drop(mr);
	if (!ret) {
		mr->ibmr = ibmr;
		ret = mr_insert(mr, ibmr) ?: kdapl_mr_prime(mr);
		if (ret)
			mr_drop(mr);
	}
	if (ret)
		pr_warn_ratelimited("%s: cannot replace the MR of an LMR or RMR (%pe), which is unusable now: free it\n",
				    mr->owner->ia->name, ERR_PTR(ret));
}

/**
 * kdapl_mrs_replace_stale - replace the stale MRs of an IA
 * @ia: IA
 *
 * Nothing is replaced while the device is being removed, which destroys all MRs.
 *
 * Context: may sleep.
 */
void kdapl_mrs_replace_stale(struct kdapl_ia *ia)
{
	struct kdapl_mr *mr;
	unsigned int noio;

	mutex_lock(&ia->stale_mutex);
	noio = memalloc_noio_save();	/* a block device may wait for this (D-32) */
	for (;;) {
		spin_lock_irq(&ia->stale_lock);
		mr = list_first_entry_or_null(&ia->stale_mrs, struct kdapl_mr, stale_node);
		spin_unlock_irq(&ia->stale_lock);
		if (!mr)
			break;
		if (kdapl_dev_enter(ia->dev)) {
			if (mr->ibmr)
				mr_replace(mr);
			kdapl_dev_exit(ia->dev);
		} else if (mr->ibmr) {
			break;
		}
		mr_not_stale(mr);
		mr->ops->resolved(mr);
	}
	memalloc_noio_restore(noio);
	mutex_unlock(&ia->stale_mutex);
}

/**
 * kdapl_mr_destroy - destroy an MR
 * @mr: MR of an LMR or RMR that is being destroyed; its memory outlives a grace period
 *
 * The key is invalidated before the MR is destroyed, so that a peer that still uses it
 * gets an error and never the memory of another region.
 *
 * Context: may sleep.
 */
void kdapl_mr_destroy(struct kdapl_mr *mr)
{
	struct kdapl_ia *ia = mr->owner->ia;
	struct kdapl_device *dev = ia->dev;

	mutex_lock(&ia->stale_mutex);
	mr_not_stale(mr);
	mutex_unlock(&ia->stale_mutex);
	spin_lock_irq(&mr->lock);
	kdapl_mr_hide(mr);
	spin_unlock_irq(&mr->lock);
	if (kdapl_dev_enter(dev)) {
		if (mr->live && kdapl_reg_invalidate(ia, mr->pd, mr->used))
			pr_warn_ratelimited("%s: a key could not be invalidated, so its MR is destroyed instead\n",
					    ia->name);
		kdapl_dev_exit(dev);
	}
	kdapl_keys_remove(&ia->keys, mr->index, mr);
	if (!kdapl_res_release(dev, &mr->res))
		mr_unmap(mr);	/* it was mapped before allocating the MR failed */
	if (mr->pd)
		kdapl_pd_put(mr->pd);
}

/**
 * kdapl_mr_map - fill in the page list of an MR
 * @mr: MR without a valid key
 * @sgl: list, mapped
 * @nents: its entries
 * @page_size: result of kdapl_mem_page_size()
 * @start: first address for peers and segments
 *
 * Context: any, if kdapl_mr_prime() was called and @page_size is one for fmr; may sleep
 * otherwise. The device is there.
 * Return: 0 or an errno.
 */
int kdapl_mr_map(struct kdapl_mr *mr, struct scatterlist *sgl, int nents, u32 page_size,
		 u64 start)
{
	int ret;

	/* A driver may read the address while it maps; ib_sg_to_pages() overwrites it. */
	mr->ibmr->iova = start;
	ret = ib_map_mr_sg(mr->ibmr, sgl, nents, NULL, page_size);
	if (ret != nents)
		return ret < 0 ? ret : -EINVAL;
	mr->ibmr->iova = start;
	return 0;
}

/**
 * kdapl_mr_prime - make sure that mapping does not allocate later
 * @mr: new MR
 *
 * A provider may allocate its page list when an MR is first mapped (D-24). For such a provider
 * a full list is mapped here.
 *
 * Context: may sleep; inside kdapl_dev_enter().
 * Return: 0 or an errno.
 */
int kdapl_mr_prime(struct kdapl_mr *mr)
{
	struct ib_device *ibdev = mr->pd->dev->ibdev;
	struct scatterlist *sg;
	struct sg_table sgt;
	int ret, nents, i;

	if (!mr->pd->dev->caps.map_allocates)
		return 0;
	ret = sg_alloc_table(&sgt, mr->pages, GFP_KERNEL);
	if (ret)
		return ret;
	for_each_sg(sgt.sgl, sg, mr->pages, i)
		sg_set_page(sg, ZERO_PAGE(0), PAGE_SIZE, 0);
	nents = ib_dma_map_sg(ibdev, sgt.sgl, mr->pages, DMA_TO_DEVICE);
	ret = -EIO;
	if (nents > 0) {
		ret = kdapl_mr_map(mr, sgt.sgl, nents, PAGE_SIZE, 0);
		ib_dma_unmap_sg(ibdev, sgt.sgl, mr->pages, DMA_TO_DEVICE);
	}
	sg_free_table(&sgt);
	return ret;
}

/**
 * kdapl_mr_publish - make keys valid
 * @mr: MR; mr->lock held
 * @lkey: key for segments; 0: none
 * @rkey: key for peers; 0: none
 * @range: what the keys stand for
 */
void kdapl_mr_publish(struct kdapl_mr *mr, u32 lkey, u32 rkey, const struct kdapl_range *range)
{
	write_seqcount_begin(&mr->seq);
	WRITE_ONCE(mr->lkey, lkey);
	WRITE_ONCE(mr->rkey, rkey);
	mr->range = *range;
	write_seqcount_end(&mr->seq);
	trace_kdapl_key_valid(mr->owner->handle, lkey ?: rkey, range->length, range->priv);
}

/**
 * kdapl_mr_hide - make the keys invalid
 * @mr: MR; mr->lock held
 */
void kdapl_mr_hide(struct kdapl_mr *mr)
{
	u32 key = mr->lkey ?: mr->rkey;

	write_seqcount_begin(&mr->seq);
	WRITE_ONCE(mr->lkey, 0);
	WRITE_ONCE(mr->rkey, 0);
	write_seqcount_end(&mr->seq);
	if (key)
		trace_kdapl_key_gone(mr->owner->handle, key, mr->range.length, mr->range.priv);
}

/**
 * kdapl_mr_next_key - the key of the next registration
 * @mr: MR; mr->lock held
 *
 * Return: the key.
 */
u32 kdapl_mr_next_key(struct kdapl_mr *mr)
{
	return mr->index << 8 | mr->next;
}

/**
 * kdapl_mr_skip_key - skip the next key
 * @mr: MR; mr->lock held
 *
 * Return: that key, which is not valid and will not be soon.
 */
u32 kdapl_mr_skip_key(struct kdapl_mr *mr)
{
	u32 key = kdapl_mr_next_key(mr);

	mr_draw_key(mr);
	return key;
}

/**
 * kdapl_mr_new_key - give the MR its next key
 * @mr: MR without a valid key, about to be registered; mr->lock held
 */
void kdapl_mr_new_key(struct kdapl_mr *mr)
{
	ib_update_fast_reg_key(mr->ibmr, mr->next);
	mr_draw_key(mr);
	mr->used = mr->ibmr->rkey;
	mr->live = true;
}

/**
 * kdapl_mr_invalidated - a peer's Send has invalidated a key
 * @ia: IA of the EP that received it
 * @caps: quirks of the device
 * @rkey: the key
 *
 * Only the valid key has an effect here. Soft-iWARP does not compare the low byte, so a
 * peer with a wrong key loses its connection, as it does on other devices (SINV-04);
 * otherwise it could try all of them. The MR is invalid then and still counts as bound
 * here, which is harmless (D-69).
 *
 * Context: any, under the lock of an EVD.
 * Return: whether the key was wrong.
 */
bool kdapl_mr_invalidated(struct kdapl_ia *ia, const struct kdapl_caps *caps, u32 rkey)
{
	struct kdapl_mr *mr;
	bool wrong;

	rcu_read_lock();
	mr = kdapl_keys_find(&ia->keys, rkey);
	wrong = mr && caps->inval_any_low_byte && READ_ONCE(mr->used) != rkey;
	if (mr && !wrong)
		mr->ops->invalidated(mr, rkey);
	rcu_read_unlock();
	return wrong;
}
