// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Native MRs and their keys.
 *
 * A key is an index of 24 bits, which the device chose and which stays with the
 * MR for its life, and a low byte that every registration changes. An IA has a
 * table of its MRs by index (keys.c). What the key of an MR stands for is in the MR; the
 * posting calls read it under RCU, and a sequence count tells them that it did
 * not change meanwhile. Binding an MR anew is thus a matter of stores: there is
 * nothing to insert, nothing to allocate, and a key of yesterday is not found.
 *
 * The order of the low bytes is random, so that knowing one key does not reveal the next.
 */
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/scatterlist.h>
#include <linux/sched/mm.h>

#include "mem.h"
#include "../core/trace.h"

/* What posts read of an MR is in one cache line; lock debugging makes sequence counts big. */
static_assert(!IS_ENABLED(CONFIG_64BIT) || IS_ENABLED(CONFIG_DEBUG_LOCK_ALLOC) ||
	      offsetofend(struct kdapl_mr, range) - offsetof(struct kdapl_mr, seq) <= 64);
static_assert(offsetof(struct kdapl_mr, seq) % L1_CACHE_BYTES == 0);

/**
 * kdapl_mr_access - rights as verbs know them
 * @priv: as the consumer asked for them
 *
 * Return: IB_ACCESS_*
 */
int kdapl_mr_access(DAT_MEM_PRIV_FLAGS priv)
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

/*
 * The next low byte: all of them come by before one comes again, so that what is late
 * does not meet its own number, in an order only we know. mr->lock held.
 */
static void mr_draw_key(struct kdapl_mr *mr)
{
	mr->next = 5 * mr->next + mr->step;
}

/**
 * kdapl_mr_init - before anything else
 * @mr: zeroed, part of @owner
 * @owner: LMR or RMR
 * @ops: what it is told
 * @pd: PD it will live on, NULL for none; a reference is taken
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

/* A fresh ib_mr of the same size. */
static struct ib_mr *mr_alloc(struct kdapl_mr *mr)
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

/* It is known by its keys from now on. */
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
 * MR and mapping go. With the last MR of a device that goes, nobody has to replace a stale one
 * any more, and what waits for that goes on.
 */
static void mr_destroy(struct kdapl_res *res)
{
	struct kdapl_mr *mr = container_of(res, struct kdapl_mr, res);

	if (mr->ibmr)	/* there is none if it could not be replaced */
		ib_dereg_mr(mr->ibmr);
	mr->ibmr = NULL;
	mr_unmap(mr);
	if (READ_ONCE(mr->pd->dev->gone))
		kdapl_mrs_replace_stale(mr->owner->ia);
}

/**
 * kdapl_mr_create - allocate an MR whose keys stand for nothing yet
 * @mr: initialised
 * @pages: blocks it is to map at most
 *
 * Context: may sleep; inside kdapl_dev_enter().
 * Return: 0 or an errno; kdapl_mr_destroy() is due in any case.
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
 * kdapl_mr_set_stale - nobody knows whether a key is valid
 * @mr: MR whose registration came back flushed; hidden
 *
 * Devices flush what they have carried out already as well as what they have not. To
 * invalidate the key is no way out: where it is not valid that is an error. So the MR
 * is replaced (kdapl_mrs_replace_stale()), before the end of the connection is reported.
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

/* The MR in hand goes, and its key with it. */
static void mr_drop(struct kdapl_mr *mr)
{
	kdapl_keys_remove(&mr->owner->ia->keys, mr->index, mr);
	ib_dereg_mr(mr->ibmr);
	mr->ibmr = NULL;
}

/* Without memory for a new one the owner is left without. */
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
 * kdapl_mrs_replace_stale - replace the MRs of an IA that may be valid or not
 * @ia: IA
 *
 * Where the device is going this is left to its removal, which takes all MRs back.
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
 * kdapl_mr_destroy - the end of an MR
 * @mr: of an LMR or RMR that is being destroyed; its memory outlives a grace period
 *
 * The key is invalidated before the MR goes, so that a peer that still uses it
 * gets an error and never somebody else's memory.
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
			pr_warn_ratelimited("%s: a key could not be invalidated, its MR is destroyed all the same\n",
					    ia->name);
		kdapl_dev_exit(dev);
	}
	kdapl_keys_remove(&ia->keys, mr->index, mr);
	if (!kdapl_res_release(dev, &mr->res))
		mr_unmap(mr);	/* mapped, and then there was no MR to be had */
	if (mr->pd)
		kdapl_pd_put(mr->pd);
}

/**
 * kdapl_mr_map - put the page list of an MR together
 * @mr: MR that is not valid
 * @sgl: as the device sees it
 * @nents: its entries
 * @page_size: of kdapl_mem_page_size()
 * @start: first address as peers and segments name it
 *
 * Context: any, if kdapl_mr_prime() was called and @page_size is one for fmr; may sleep
 * otherwise. The device is there.
 * Return: 0 or an errno.
 */
int kdapl_mr_map(struct kdapl_mr *mr, struct scatterlist *sgl, int nents, u32 page_size,
		 u64 start)
{
	int ret;

	/* A driver may look at the address while it maps; ib_sg_to_pages() overwrites it. */
	mr->ibmr->iova = start;
	ret = ib_map_mr_sg(mr->ibmr, sgl, nents, NULL, page_size);
	if (ret != nents)
		return ret < 0 ? ret : -EINVAL;
	mr->ibmr->iova = start;
	return 0;
}

/**
 * kdapl_mr_prime - see to it that mapping does not allocate later
 * @mr: fresh
 *
 * A provider may get the memory for its page list when it is used first (D-24). There it
 * is used here, as long as it can be.
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
 * kdapl_mr_publish - what the keys stand for from now on
 * @mr: MR; mr->lock held
 * @lkey: for segments; 0: none
 * @rkey: for peers; 0: none
 * @range: what for
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
 * kdapl_mr_hide - the keys stand for nothing from now on
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
 * kdapl_mr_next_key - the key the next registration will give
 * @mr: MR; mr->lock held
 *
 * Return: the key.
 */
u32 kdapl_mr_next_key(struct kdapl_mr *mr)
{
	return mr->index << 8 | mr->next;
}

/**
 * kdapl_mr_skip_key - the same, and it will not be
 * @mr: MR; mr->lock held
 *
 * Return: a key that is not valid and will not be soon.
 */
u32 kdapl_mr_skip_key(struct kdapl_mr *mr)
{
	u32 key = kdapl_mr_next_key(mr);

	mr_draw_key(mr);
	return key;
}

/**
 * kdapl_mr_new_key - give the MR that key
 * @mr: MR that is not valid, about to be registered; mr->lock held
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
 * @caps: what is special about the device
 * @rkey: the key
 *
 * Only the very key that is valid counts. Soft-iWARP does not look at its low byte:
 * a peer that gets it wrong has to lose the connection, as it does elsewhere (SINV-04), so
 * that it cannot try them all. The MR it has made invalid passes for bound here; what
 * is believed to be reachable although it is not does no harm.
 *
 * Context: any, under the lock of an EVD.
 * Return: whether the peer has got the key wrong.
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
