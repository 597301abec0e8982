// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Remote Memory Regions: windows onto LMRs, opened and closed on an EP (ep/ep_bind.c).
 *
 * The kernel's verbs have no memory windows. An RMR is a pair of fast-registration MRs that take
 * turns: a bind registers the free one for the new range and invalidates the other, in one
 * chain. With a single MR the new page list would have to be written while peers may still use
 * the old key, and would expose the new memory to them too early.
 *
 * At most one bind of an RMR is outstanding. kdapl_rmr_op_done() is called exactly once for each,
 * however it ends.
 */
#include <linux/export.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "mem.h"

/* Each RMR has two page lists of this size. */
#define RMR_PAGES	512

/**
 * kdapl_rmr_pages - scattered pages an RMR can be bound to
 * @dev: the device
 *
 * Return: how many.
 */
u32 kdapl_rmr_pages(struct kdapl_device *dev)
{
	return clamp(dev->attrs.max_fast_reg_page_list_len, 1U, (u32)RMR_PAGES);
}

/* ------------------------------------------------------------------ */
/* the end of a bind                                                    */

/* Local requests may not use the key any more; peers still may. rmr->lock held. */
static void rmr_binding_hide(const struct kdapl_binding *binding)
{
	unsigned long flags;

	if (!binding->mr)
		return;
	spin_lock_irqsave(&binding->mr->lock, flags);
	kdapl_mr_hide(binding->mr);
	spin_unlock_irqrestore(&binding->mr->lock, flags);
}

/* End a binding: its memory is not reached any more. Returns its LMR. rmr->lock held. */
static struct kdapl_lmr *rmr_binding_end(struct kdapl_binding *binding)
{
	struct kdapl_lmr *lmr = binding->lmr;

	rmr_binding_hide(binding);
	if (binding->mr)
		binding->mr->live = false;
	*binding = (struct kdapl_binding) {};
	return lmr;
}

/* rmr->lock held. */
static void rmr_binding_publish(const struct kdapl_binding *binding)
{
	unsigned long flags;

	if (!binding->mr)
		return;
	spin_lock_irqsave(&binding->mr->lock, flags);
	kdapl_mr_publish(binding->mr, 0, binding->context, &binding->range);
	spin_unlock_irqrestore(&binding->mr->lock, flags);
}

/* Whether the key of a binding is valid is unknown. rmr->lock held. */
static void rmr_binding_stale(struct kdapl_rmr *rmr, const struct kdapl_binding *binding)
{
	rmr_binding_hide(binding);
	binding->mr->live = false;
	rmr->stale++;
	kdapl_mr_set_stale(binding->mr);
}

/* The MR was stale and has been replaced. */
static void rmr_mr_resolved(struct kdapl_mr *mr)
{
	struct kdapl_rmr *rmr = container_of(mr->owner, struct kdapl_rmr, obj);
	struct kdapl_lmr *gone = NULL;
	unsigned long flags;

	spin_lock_irqsave(&rmr->lock, flags);
	rmr->stale--;
	if (rmr->now.mr == mr)
		gone = rmr_binding_end(&rmr->now);
	else if (rmr->next.mr == mr)
		gone = rmr_binding_end(&rmr->next);
	spin_unlock_irqrestore(&rmr->lock, flags);
	if (gone)
		kdapl_lmr_unbound_rmr(gone);
}

/**
 * kdapl_rmr_inv_done - the invalidation before a bind has ended
 * @rmr: RMR
 * @outcome: how
 *
 * Context: any, under the lock of an EVD; before kdapl_rmr_op_done().
 */
void kdapl_rmr_inv_done(struct kdapl_rmr *rmr, enum kdapl_outcome outcome)
{
	unsigned long flags;

	spin_lock_irqsave(&rmr->lock, flags);
	rmr->inv_done = outcome == KDAPL_DONE;
	rmr->inv_failed = outcome == KDAPL_FAILED;
	spin_unlock_irqrestore(&rmr->lock, flags);
}

/**
 * kdapl_rmr_op_done - a bind has ended
 * @rmr: RMR
 * @outcome: how
 *
 * Context: any, under the lock of an EVD.
 */
void kdapl_rmr_op_done(struct kdapl_rmr *rmr, enum kdapl_outcome outcome)
{
	bool done = outcome == KDAPL_DONE;
	struct kdapl_lmr *gone[2] = {};
	unsigned long flags;
	bool wake;
	int i;

	spin_lock_irqsave(&rmr->lock, flags);
	rmr->op = NULL;
	if (done) {
		gone[0] = rmr_binding_end(&rmr->now);
		swap(rmr->now, rmr->next);
		if (rmr->next_gone)	/* the peer has invalidated it before this completion */
			gone[1] = rmr_binding_end(&rmr->now);
	} else {
		/* an unbind is that invalidation itself */
		if (outcome == KDAPL_FAILED && !rmr->next.mr)
			rmr->inv_failed = true;
		if (outcome != KDAPL_NEVER && rmr->next.mr)
			rmr_binding_stale(rmr, &rmr->next);
		else
			gone[0] = rmr_binding_end(&rmr->next);
		if (rmr->inv_done)
			gone[1] = rmr_binding_end(&rmr->now);
		else if (rmr->inv_failed && rmr->now.mr)
			rmr_binding_stale(rmr, &rmr->now);
		else
			rmr_binding_publish(&rmr->now);
	}
	wake = rmr->dead;
	spin_unlock_irqrestore(&rmr->lock, flags);
	for (i = 0; i < ARRAY_SIZE(gone); i++) {
		if (gone[i])
			kdapl_lmr_unbound_rmr(gone[i]);
	}
	if (wake)
		wake_up(&rmr->obj.ia->unused);
}

/* A peer's Send has invalidated a key. */
static void rmr_mr_invalidated(struct kdapl_mr *mr, u32 rkey)
{
	struct kdapl_rmr *rmr = container_of(mr->owner, struct kdapl_rmr, obj);
	struct kdapl_lmr *gone = NULL;
	unsigned long flags;

	spin_lock_irqsave(&rmr->lock, flags);
	if (rmr->now.mr == mr && rmr->now.context == rkey) {
		gone = rmr_binding_end(&rmr->now);
	} else if (rmr->op && rmr->next.mr == mr && rmr->next.context == rkey) {
		rmr->next_gone = true;
		rmr_binding_hide(&rmr->next);
	}
	spin_unlock_irqrestore(&rmr->lock, flags);
	if (gone)
		kdapl_lmr_unbound_rmr(gone);
}

/* The mapping is the LMR's: there is nothing to unmap. */
static const struct kdapl_mr_ops rmr_mr_ops = {
	.invalidated = rmr_mr_invalidated,
	.resolved = rmr_mr_resolved,
};

/**
 * kdapl_rmr_behind - translate a range of an RMR to its LMR
 * @rmr: RMR
 * @seg: range, by one of the RMR's keys
 * @behind: out: the same range, by key and addresses of the LMR
 *
 * Context: any, without the lock of an MR; RCU read side.
 * Return: false if the RMR is not bound by that key.
 */
bool kdapl_rmr_behind(struct kdapl_rmr *rmr, const DAT_LMR_TRIPLET *seg, DAT_LMR_TRIPLET *behind)
{
	const struct kdapl_binding *binding = &rmr->now;
	unsigned long flags;
	bool bound;

	spin_lock_irqsave(&rmr->lock, flags);
	if (binding->context != seg->lmr_context)
		binding = &rmr->next;
	bound = binding->lmr && binding->context == seg->lmr_context;
	if (bound) {
		*behind = binding->triplet;
		behind->virtual_address += seg->virtual_address - binding->range.start;
		behind->segment_length = seg->segment_length;
	}
	spin_unlock_irqrestore(&rmr->lock, flags);
	return bound;
}

/* ------------------------------------------------------------------ */
/* the start of a bind                                                  */

/* RMR-07: remote rights need the local ones. */
static enum kdapl_verdict rmr_check_rights(const struct kdapl_lmr *lmr, DAT_MEM_PRIV_FLAGS priv)
{
	if (priv & DAT_MEM_PRIV_REMOTE_READ_FLAG && !(lmr->priv & DAT_MEM_PRIV_LOCAL_READ_FLAG))
		return KDAPL_REFUSE_READ;
	if (priv & DAT_MEM_PRIV_REMOTE_WRITE_FLAG && !(lmr->priv & DAT_MEM_PRIV_LOCAL_WRITE_FLAG))
		return KDAPL_REFUSE_WRITE;
	return KDAPL_ACCEPTED;
}

/* Is it a part of the LMR as it is now? mr.lock of the LMR held. */
static enum kdapl_verdict rmr_check_part(const struct kdapl_bind *bind)
{
	const DAT_LMR_TRIPLET *part = bind->part;
	const struct kdapl_lmr *lmr = bind->lmr;
	u64 offset = part->virtual_address - kdapl_lmr_start(lmr);
	enum kdapl_verdict why;

	if (lmr->state != KDAPL_LMR_BOUND || lmr->mr.lkey != part->lmr_context)
		return KDAPL_REFUSE_MEMORY;
	why = rmr_check_rights(lmr, bind->priv);
	if (why)
		return why;
	if (lmr->fmr && lmr->scope == DAT_LMR_SCOPE_EP && lmr->ep != bind->ep)
		return KDAPL_REFUSE_PZ;
	if (part->segment_length > lmr->mem.length ||
	    offset > lmr->mem.length - part->segment_length)
		return KDAPL_REFUSE_MEMORY;
	if (bind->va_type == DAT_VA_TYPE_ZB && ((lmr->mem.start + offset) & ~PAGE_MASK))
		return KDAPL_REFUSE_MEMORY;
	return KDAPL_ACCEPTED;
}

/* With @take the RMR counts as a window of the LMR from now on, so that the LMR stays as it is. */
static enum kdapl_verdict rmr_check_lmr(const struct kdapl_rmr *rmr,
					const struct kdapl_bind *bind, bool take)
{
	struct kdapl_lmr *lmr = bind->lmr;
	enum kdapl_verdict why;
	unsigned long flags;

	if (lmr->mr.pd != rmr->mr[0].pd)
		return KDAPL_REFUSE_PZ;
	spin_lock_irqsave(&lmr->mr.lock, flags);
	why = rmr_check_part(bind);
	if (!why && take)
		lmr->windows++;
	spin_unlock_irqrestore(&lmr->mr.lock, flags);
	return why;
}

/* Put the part of the LMR into the RMR's own list. Returns its entries, or -E2BIG. */
static int rmr_slice(struct kdapl_rmr *rmr, const struct kdapl_lmr *lmr, u64 offset, u64 length)
{
	struct scatterlist *sg, *out = rmr->sgl;
	int n = 0, i;
	u32 chunk;

	for_each_sg(lmr->mem.sgt.sgl, sg, lmr->mem.nents, i) {
		if (!length)
			break;
		if (offset >= sg_dma_len(sg)) {
			offset -= sg_dma_len(sg);
			continue;
		}
		if (n == rmr->mr[0].pages)
			return -E2BIG;
		chunk = min_t(u64, sg_dma_len(sg) - offset, length);
		sg_dma_address(out) = sg_dma_address(sg) + offset;
		sg_dma_len(out) = chunk;
		offset = 0;
		length -= chunk;
		out++;
		n++;
	}
	return n;
}

static int rmr_map(struct kdapl_rmr *rmr, struct kdapl_mr *mr, const struct kdapl_lmr *lmr,
		   u64 offset, const struct kdapl_range *range)
{
	struct kdapl_device *dev = rmr->obj.ia->dev;
	u32 page_size, blocks;
	int n;

	n = rmr_slice(rmr, lmr, offset, range->length);
	if (n <= 0)
		return n ?: -EINVAL;
	page_size = kdapl_mem_page_size(dev, rmr->sgl, n, range->start,
					kdapl_mem_page_sizes(dev, true), mr->pages, &blocks);
	return page_size ? kdapl_mr_map(mr, rmr->sgl, n, page_size, range->start) : -E2BIG;
}

/* Fill @rmr->next and map it. The RMR is claimed, and a window of the LMR. */
static int rmr_prepare(struct kdapl_rmr *rmr, struct kdapl_bind *bind)
{
	const DAT_LMR_TRIPLET *part = bind->part;
	struct kdapl_mr *mr = bind->mr;
	struct kdapl_binding next = {
		.lmr = bind->lmr,
		.mr = mr,
		.range = {
			.domain = rmr->scope == DAT_RMR_SCOPE_EP ?
				  bind->ep : kdapl_pd_domain(mr->pd),
			.start = bind->va_type == DAT_VA_TYPE_ZB ? 0 : part->virtual_address,
			.length = part->segment_length,
			.priv = bind->priv & KDAPL_PRIV_REMOTE,
		},
		.triplet = *part,
		.priv = bind->priv,
		.va_type = bind->va_type,
	};
	unsigned long flags;
	int err;

	err = rmr_map(rmr, mr, bind->lmr, part->virtual_address - kdapl_lmr_start(bind->lmr),
		      &next.range);
	if (err) {
		pr_err_ratelimited("%s: %u bytes are too much for an RMR: it takes %u scattered pages\n",
				   rmr->obj.ia->name, part->segment_length, mr->pages);
		return err;
	}
	spin_lock_irqsave(&rmr->lock, flags);
	spin_lock(&mr->lock);
	kdapl_mr_new_key(mr);
	next.context = mr->used;
	spin_unlock(&mr->lock);
	rmr->next = next;
	rmr->ep = bind->ep;
	spin_unlock_irqrestore(&rmr->lock, flags);
	bind->context = next.context;
	return 0;
}

/* Begin a bind if that is allowed. rmr->lock held. */
static enum kdapl_verdict rmr_claim(struct kdapl_rmr *rmr, struct kdapl_bind *bind,
				    struct kdapl_op_owner *owner)
{
	if (rmr->dead)
		return KDAPL_REFUSE_NO_RMR;
	if (rmr->op || rmr->stale)
		return KDAPL_REFUSE_RMR_IN_USE;
	if (!rmr->mr[0].ibmr || !rmr->mr[1].ibmr)	/* it could not be replaced */
		return KDAPL_REFUSE_NO_MR;
	if (rmr->scope == DAT_RMR_SCOPE_EP && rmr->now.mr && rmr->ep != bind->ep)
		return KDAPL_REFUSE_PZ;
	rmr->op = owner;
	bind->mr = &rmr->mr[rmr->now.mr == &rmr->mr[0]];
	rmr->inv_done = false;
	rmr->inv_failed = false;
	rmr->next_gone = false;
	return KDAPL_ACCEPTED;
}

/**
 * kdapl_rmr_claim - begin a bind
 * @rmr: RMR
 * @bind: what it is to be bound to
 * @owner: the connection the bind is going to be posted on
 *
 * If another bind is outstanding, its completions are polled once.
 *
 * Context: any; RCU read side.
 * Return: KDAPL_ACCEPTED: kdapl_rmr_op_done() must be called; or the reason to refuse it.
 */
enum kdapl_verdict kdapl_rmr_claim(struct kdapl_rmr *rmr, struct kdapl_bind *bind,
				   struct kdapl_op_owner *owner)
{
	enum kdapl_verdict why;
	struct kdapl_op_evd from;
	bool polled = false;
	unsigned long flags;

	if (bind->lmr) {
		why = rmr_check_lmr(rmr, bind, false);
		if (why)
			return why;
	}
	if (!kdapl_dev_there(rmr->obj.ia->dev))
		return KDAPL_REFUSE_NO_DEVICE;
again:
	from.evd = NULL;
	spin_lock_irqsave(&rmr->lock, flags);
	why = rmr_claim(rmr, bind, owner);
	if (why && !polled)
		from = kdapl_op_evd_get(rmr->op);
	spin_unlock_irqrestore(&rmr->lock, flags);
	if (from.evd) {
		kdapl_op_evd_poll(from, false);
		polled = true;
		goto again;
	}
	return why;
}

/**
 * kdapl_rmr_begin - carry out a bind, up to posting the request
 * @rmr: RMR claimed
 * @bind: what it is to be bound to
 *
 * From now on requests of this side can name the RMR by the new key, and not by the old one. Call
 * this with an established connection only: otherwise the request will be flushed, and nothing
 * may change.
 *
 * Context: any; RCU read side, the device is there.
 * Return: KDAPL_ACCEPTED or the reason to refuse it.
 */
enum kdapl_verdict kdapl_rmr_begin(struct kdapl_rmr *rmr, struct kdapl_bind *bind)
{
	enum kdapl_verdict why;
	unsigned long flags;

	if (bind->lmr) {
		why = rmr_check_lmr(rmr, bind, true);
		if (why)
			return why;
		if (rmr_prepare(rmr, bind)) {
			kdapl_lmr_unbound_rmr(bind->lmr);
			return KDAPL_REFUSE_NO_MR;
		}
	}
	spin_lock_irqsave(&rmr->lock, flags);
	if (rmr->now.mr)
		bind->old = rmr->now.context;
	rmr_binding_hide(&rmr->now);
	rmr_binding_publish(&rmr->next);
	spin_unlock_irqrestore(&rmr->lock, flags);
	return KDAPL_ACCEPTED;
}

/* ------------------------------------------------------------------ */
/* the object                                                           */

KDAPL_OBJ_IS_FIRST(struct kdapl_rmr);

static void rmr_release(struct kdapl_obj *obj)
{
	struct kdapl_rmr *rmr = container_of(obj, struct kdapl_rmr, obj);

	kfree_rcu(rmr, obj.rcu);
}

static const struct kdapl_obj_ops rmr_ops = {
	.release = rmr_release,
};

/**
 * kdapl_rmr_destroy - destroy a retired RMR
 * @rmr: retired, or never published
 *
 * Context: may sleep.
 */
void kdapl_rmr_destroy(struct kdapl_rmr *rmr)
{
	struct kdapl_lmr *gone[2];
	int i;

	spin_lock_irq(&rmr->lock);
	rmr->dead = true;
	spin_unlock_irq(&rmr->lock);
	kdapl_op_wait(rmr->obj.ia, &rmr->lock, &rmr->op);
	for (i = 0; i < ARRAY_SIZE(rmr->mr); i++)
		kdapl_mr_destroy(&rmr->mr[i]);
	/* by now a Receive that invalidates a key may have completed */
	spin_lock_irq(&rmr->lock);
	gone[0] = rmr_binding_end(&rmr->now);
	gone[1] = rmr_binding_end(&rmr->next);
	spin_unlock_irq(&rmr->lock);
	for (i = 0; i < ARRAY_SIZE(gone); i++) {
		if (gone[i])
			kdapl_lmr_unbound_rmr(gone[i]);
	}
	kvfree(rmr->sgl);	/* may sleep, unlike rmr_release() */
	kdapl_obj_unuse(&rmr->pz->obj);
	kdapl_obj_put(&rmr->obj);
}

static int rmr_make(struct kdapl_rmr *rmr)
{
	u32 pages = kdapl_rmr_pages(rmr->obj.ia->dev);
	int ret, i;

	rmr->sgl = kvcalloc(pages, sizeof(*rmr->sgl), GFP_KERNEL);
	if (!rmr->sgl)
		return -ENOMEM;
	sg_init_table(rmr->sgl, pages);
	for (i = 0; i < ARRAY_SIZE(rmr->mr); i++) {
		ret = kdapl_mr_create(&rmr->mr[i], pages);
		if (!ret)
			ret = kdapl_mr_prime(&rmr->mr[i]);
		if (ret)
			return ret;
	}
	return kdapl_obj_publish(&rmr->obj);
}

static DAT_RETURN rmr_create(DAT_PZ_HANDLE pz_handle, DAT_RMR_SCOPE scope,
			     DAT_RMR_HANDLE *rmr_handle)
{
	struct kdapl_pz *pz = kdapl_obj_get(pz_handle, DAT_HANDLE_TYPE_PZ);
	struct kdapl_rmr *rmr;
	struct kdapl_ia *ia;
	DAT_RETURN ret;
	int err, i;

	if (!pz)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	ia = pz->obj.ia;
	ret = kdapl_arg_err(2);
	if (!rmr_handle)
		goto out;
	ret = kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	if (!kdapl_dev_enter(ia->dev))
		goto out;
	ret = kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	rmr = kdapl_zalloc_aligned(sizeof(*rmr));
	if (!rmr)
		goto out_exit;
	if (kdapl_obj_use(&pz->obj)) {
		ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
		kfree(rmr);
		goto out_exit;
	}
	kdapl_obj_init(&rmr->obj, DAT_HANDLE_TYPE_RMR, ia, &rmr_ops);
	spin_lock_init(&rmr->lock);
	for (i = 0; i < ARRAY_SIZE(rmr->mr); i++)
		kdapl_mr_init(&rmr->mr[i], &rmr->obj, &rmr_mr_ops, pz->pd);
	rmr->pz = pz;
	rmr->pz_handle = pz_handle;
	rmr->scope = scope;
	err = rmr_make(rmr);
	if (err) {
		ret = kdapl_lmr_ret(err);
		kdapl_rmr_destroy(rmr);
		goto out_exit;
	}
	*rmr_handle = rmr->obj.handle;
	kdapl_obj_put(&rmr->obj);
	ret = DAT_SUCCESS;
out_exit:
	kdapl_dev_exit(ia->dev);
out:
	kdapl_obj_put(&pz->obj);
	return ret;
}

/**
 * dat_rmr_create - make an RMR for all EPs of a PZ
 * @pz_handle: PZ
 * @rmr_handle: where the handle goes
 *
 * The RMR is not bound yet. What binds need is allocated here, so that they need not allocate.
 *
 * Context: may sleep.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE (PZ); DAT_INVALID_PARAMETER (NULL);
 * DAT_INSUFFICIENT_RESOURCES (subtype MEMORY_REGION or MEMORY); DAT_INTERNAL_ERROR
 * (device removed).
 */
DAT_RETURN dat_rmr_create(DAT_PZ_HANDLE pz_handle, DAT_RMR_HANDLE *rmr_handle)
{
	return rmr_create(pz_handle, DAT_RMR_SCOPE_PZ, rmr_handle);
}
EXPORT_SYMBOL(dat_rmr_create);

/**
 * dat_rmr_create_for_ep - make an RMR that one EP uses at a time
 * @pz_handle: PZ
 * @rmr_handle: where the handle goes
 *
 * While it is bound, only the EP that has bound it may bind it again or unbind it.
 *
 * Context: may sleep.
 * Return: as dat_rmr_create().
 */
DAT_RETURN dat_rmr_create_for_ep(DAT_PZ_HANDLE pz_handle, DAT_RMR_HANDLE *rmr_handle)
{
	return rmr_create(pz_handle, DAT_RMR_SCOPE_EP, rmr_handle);
}
EXPORT_SYMBOL(dat_rmr_create_for_ep);

/**
 * dat_rmr_query - read the parameters of an RMR
 * @rmr_handle: RMR
 * @rmr_param_mask: DAT_RMR_FIELD_* bits of the members wanted; 0 is legal
 * @rmr_param: filled entirely; the members of the binding are 0 while it is not bound
 *
 * The binding is that of the last bind that has completed, not of an outstanding one.
 *
 * Context: any.
 * Return: DAT_SUCCESS, DAT_INVALID_HANDLE, or DAT_INVALID_PARAMETER (undefined
 * mask bit, NULL @rmr_param with a mask).
 */
DAT_RETURN dat_rmr_query(DAT_RMR_HANDLE rmr_handle, DAT_RMR_PARAM_MASK rmr_param_mask,
			 DAT_RMR_PARAM *rmr_param)
{
	struct kdapl_rmr *rmr = kdapl_obj_get(rmr_handle, DAT_HANDLE_TYPE_RMR);
	unsigned long flags;
	DAT_RETURN ret;

	if (!rmr)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR);
	ret = kdapl_query_check(rmr_param_mask, DAT_RMR_FIELD_ALL, rmr_param);
	if (ret == DAT_SUCCESS && rmr_param) {
		memset(rmr_param, 0, sizeof(*rmr_param));
		rmr_param->ia_handle = rmr->obj.ia->obj.handle;
		rmr_param->pz_handle = rmr->pz_handle;
		rmr_param->rmr_scope = rmr->scope;
		spin_lock_irqsave(&rmr->lock, flags);
		rmr_param->lmr_triplet = rmr->now.triplet;
		rmr_param->mem_priv = rmr->now.priv;
		rmr_param->rmr_context = rmr->now.context;
		rmr_param->va_type = rmr->now.va_type;
		spin_unlock_irqrestore(&rmr->lock, flags);
	}
	kdapl_obj_put(&rmr->obj);
	return ret;
}
EXPORT_SYMBOL(dat_rmr_query);

/**
 * dat_rmr_free - end an RMR, bound or not
 * @rmr_handle: RMR
 *
 * After the return peers do not reach memory through it. The call waits for an
 * outstanding bind; if its EP completes no request for 5 s, the connection is ended with
 * BROKEN.
 *
 * Context: may sleep; not in an upcall of an EVD on which binds of it complete.
 * Return: DAT_SUCCESS or DAT_INVALID_HANDLE.
 */
DAT_RETURN dat_rmr_free(DAT_RMR_HANDLE rmr_handle)
{
	struct kdapl_rmr *rmr = kdapl_obj_get(rmr_handle, DAT_HANDLE_TYPE_RMR);
	DAT_RETURN ret = DAT_SUCCESS;

	if (!rmr)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR);
	if (kdapl_obj_retire(&rmr->obj))
		ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR);
	else
		kdapl_rmr_destroy(rmr);
	kdapl_obj_put(&rmr->obj);
	return ret;
}
EXPORT_SYMBOL(dat_rmr_free);
