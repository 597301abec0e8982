// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The states of an LMR.
 *
 * A binding of an LMR of dat_lmr_allocate() begins with dat_lmr_fmr(). It ends when the
 * completion of dat_lmr_invalidate() is polled, or that of a Receive whose sender has
 * invalidated the key. The memory is unmapped then, not earlier: until then the device may use
 * it. A flushed invalidation ends nothing, since the device may not have carried it out. After one
 * that has failed the MR is replaced, as after a flushed registration (D-74).
 *
 * Completions are polled with interrupts off, so a large region is unmapped a little later.
 * Nothing waits for that: an LMR that can have such regions has two lists, and the next binding
 * uses the other one.
 *
 * An operation that changes the binding is first recorded in lmr->op, under mr.lock. From then
 * on it owns list and MR, and dat_lmr_free() waits for it. kdapl_lmr_op_done() is called exactly
 * once for each, however it ends.
 */
#include <linux/bottom_half.h>
#include <linux/scatterlist.h>
#include <linux/sizes.h>

#include "mem.h"

/* Regions of up to this size are unmapped at once, with interrupts off. */
#define UNMAP_AT_ONCE	SZ_1M

/*
 * Unmap the memory of the previous, large binding, unless another CPU does. No lock is held
 * meanwhile, and interrupts stay as the caller has them. Preemption is off, so that the list is
 * free again before the next binding ends. The device is there.
 */
static void lmr_unmap_old(struct kdapl_lmr *lmr)
{
	struct kdapl_mr *mr = &lmr->mr;
	bool bh = !irqs_disabled();
	struct kdapl_mem mem;
	unsigned long flags;

	if (bh)
		local_bh_disable();
	spin_lock_irqsave(&mr->lock, flags);
	mem = lmr->old;
	lmr->old.nents = 0;
	spin_unlock_irqrestore(&mr->lock, flags);
	if (!mem.nents)
		goto out;
	kdapl_mem_unmap(&mem, lmr->obj.ia->dev);
	spin_lock_irqsave(&mr->lock, flags);
	lmr->unmapping = false;
	/* under the lock: lmr_mr_unmap() takes it before the LMR can be freed */
	wake_up(&lmr->obj.ia->unused);
	spin_unlock_irqrestore(&mr->lock, flags);
out:
	if (bh)
		local_bh_enable();
}

/*
 * The MR has gone: unmap the memory. kdapl_lmr_unbound_rmr() or lmr_mr_resolved() may run at the
 * same time, and must find it unmapped: what they left for later would stay mapped, since after
 * removal nobody unmaps it. So the memory is taken away first.
 */
static void lmr_mr_unmap(struct kdapl_mr *mr)
{
	struct kdapl_lmr *lmr = container_of(mr, struct kdapl_lmr, mr);
	struct kdapl_mem mem;

	spin_lock_irq(&lmr->mr.lock);
	mem = lmr->mem;
	lmr->mem.nents = 0;
	spin_unlock_irq(&lmr->mr.lock);
	lmr_unmap_old(lmr);
	wait_event(lmr->obj.ia->unused, !READ_ONCE(lmr->unmapping));
	/* whoever has woken us holds the lock of the LMR, which may be freed next */
	spin_lock_irq(&lmr->mr.lock);
	spin_unlock_irq(&lmr->mr.lock);
	if (lmr->fmr)
		kdapl_mem_unmap(&mem, lmr->obj.ia->dev);
	else
		kdapl_mem_unmap_source(&mem, lmr->obj.ia->dev);
}

static void lmr_work_unmap(struct work_struct *work)
{
	struct kdapl_lmr *lmr = container_of(work, struct kdapl_lmr, unmap_work);

	/* after removal everything is unmapped */
	if (kdapl_dev_enter(lmr->obj.ia->dev)) {
		lmr_unmap_old(lmr);
		kdapl_dev_exit(lmr->obj.ia->dev);
	}
	kdapl_obj_put(&lmr->obj);
}

/**
 * kdapl_lmr_spare_list - allocate the second list, if the regions of an LMR can be large
 * @lmr: new LMR
 * @pages: pages it can be bound to
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int kdapl_lmr_spare_list(struct kdapl_lmr *lmr, u32 pages)
{
	if ((u64)pages << PAGE_SHIFT <= UNMAP_AT_ONCE)
		return 0;
	return sg_alloc_table(&lmr->old.sgt, pages, GFP_KERNEL);
}

/*
 * Is the region so large that it is unmapped later? An LMR of few pages has no second list: it is
 * the number of pages that takes time, not their size. mr.lock held.
 */
static bool lmr_unmaps_later(const struct kdapl_lmr *lmr)
{
	return lmr->mem.nents && lmr->mem.length > UNMAP_AT_ONCE && lmr->old.sgt.sgl &&
	       !lmr->unmapping;
}

/* Leave the mapped list to lmr_unmap_old() and take the other one. mr.lock held. */
static void lmr_unmap_later(struct kdapl_lmr *lmr)
{
	struct scatterlist *spare = lmr->old.sgt.sgl;

	if (lmr->mem.sync)
		kdapl_mem_sync(lmr->obj.ia->dev, &lmr->mem, 0, lmr->mem.length,
			       KDAPL_SYNC_SHARED);
	lmr->mem.sync = false;
	lmr->old = lmr->mem;
	lmr->old.base = NULL;
	lmr->mem.sgt.sgl = spare;
	lmr->mem.nents = 0;
	lmr->unmapping = true;
	refcount_inc(&lmr->obj.ref);
	if (!queue_work(kdapl_misc_wq, &lmr->unmap_work))
		refcount_dec(&lmr->obj.ref);	/* not the last: the caller has one */
}

/*
 * End a binding: its memory is not reached any more. Interrupts are off, so a large region is
 * unmapped later, by a work item or the next binding, unless the previous one is still being
 * unmapped. Either way the CPU sees what the device has written. mr.lock held.
 */
static void lmr_unbind(struct kdapl_lmr *lmr)
{
	struct kdapl_device *dev = lmr->obj.ia->dev;

	lmr->mr.live = false;
	if (!lmr->fmr || lmr->windows) {
		/* it stays mapped, but the consumer has no key to synchronise it by */
		if (lmr->mem.nents && lmr->mem.sync)
			kdapl_mem_sync(dev, &lmr->mem, 0, lmr->mem.length, KDAPL_SYNC_SHARED);
		lmr->state = lmr->fmr ? KDAPL_LMR_MAPPED : KDAPL_LMR_UNBOUND;
	} else {
		lmr->state = KDAPL_LMR_UNBOUND;
		if (lmr_unmaps_later(lmr))
			lmr_unmap_later(lmr);
		else
			kdapl_mem_unmap(&lmr->mem, dev);
	}
}

/* Whether the key is valid is unknown, so the memory stays mapped. mr.lock held. */
static void lmr_set_stale(struct kdapl_lmr *lmr)
{
	lmr->mr.live = false;
	lmr->state = KDAPL_LMR_STALE;
	kdapl_mr_set_stale(&lmr->mr);
}

/**
 * kdapl_lmr_publish - let posts and peers use the keys of an LMR
 * @lmr: LMR whose MR has its key; mr.lock held
 */
void kdapl_lmr_publish(struct kdapl_lmr *lmr)
{
	struct kdapl_mr *mr = &lmr->mr;
	struct kdapl_range range = {
		.domain = lmr->scope == DAT_LMR_SCOPE_EP ? lmr->ep : kdapl_pd_domain(mr->pd),
		.start = kdapl_lmr_start(lmr),
		.length = lmr->mem.length,
		.priv = lmr->priv,
	};

	if (unlikely(mr->local))
		range.priv |= KDAPL_PRIV_LOCAL | (lmr->mem.sync ? 0 : KDAPL_PRIV_SAME);
	else if (likely(!lmr->mem.sync))
		range.priv = kdapl_priv_direct(range.priv);
	lmr->state = KDAPL_LMR_BOUND;
	kdapl_mr_publish(mr, mr->used, lmr->priv & KDAPL_PRIV_REMOTE ? mr->used : 0, &range);
}

/* May dat_lmr_fmr() bind it? mr.lock held. */
static enum kdapl_verdict lmr_may_bind(const struct kdapl_lmr *lmr)
{
	if (lmr->state == KDAPL_LMR_DEAD)
		return KDAPL_REFUSE_NO_LMR;
	if (lmr->state != KDAPL_LMR_UNBOUND || lmr->op[KDAPL_LMR_REG] || lmr->op[KDAPL_LMR_INV])
		return KDAPL_REFUSE_LMR_IN_USE;
	if (!lmr->mr.ibmr)	/* it was stale and could not be replaced */
		return KDAPL_REFUSE_NO_MR;
	return KDAPL_ACCEPTED;
}

/* May dat_lmr_invalidate() unbind it on this EP? mr.lock held. */
static enum kdapl_verdict lmr_may_end(const struct kdapl_lmr *lmr, unsigned long ep,
				      const struct kdapl_op_owner *owner)
{
	const struct kdapl_op_owner *reg = lmr->op[KDAPL_LMR_REG];

	if (lmr->state == KDAPL_LMR_DEAD)
		return KDAPL_REFUSE_NO_LMR;
	if (lmr->state != KDAPL_LMR_BOUND || lmr->op[KDAPL_LMR_INV])
		return KDAPL_REFUSE_LMR_FREE;
	if (lmr->scope == DAT_LMR_SCOPE_EP && lmr->ep != ep)
		return KDAPL_REFUSE_PZ;
	/* on another connection the invalidation could overtake the registration */
	if (lmr->windows || (reg && reg != owner))
		return KDAPL_REFUSE_LMR_IN_USE;
	return KDAPL_ACCEPTED;
}

/**
 * kdapl_lmr_claim - begin an operation on an LMR
 * @lmr: LMR of dat_lmr_allocate()
 * @op: its kind
 * @ep: id of the EP it is going to be posted on
 * @owner: the connection it is going to be posted on
 * @live: the connection is established; otherwise an invalidation changes nothing
 * @seq: out: for kdapl_lmr_op_done(), which must be called then
 *
 * If the LMR is in use, the completions of the operation that uses it are polled once.
 *
 * Context: any; RCU read side.
 * Return: KDAPL_ACCEPTED or the reason to refuse it.
 */
enum kdapl_verdict kdapl_lmr_claim(struct kdapl_lmr *lmr, enum kdapl_lmr_op op, unsigned long ep,
				   struct kdapl_op_owner *owner, bool live, u32 *seq)
{
	struct kdapl_mr *mr = &lmr->mr;
	enum kdapl_verdict why;
	struct kdapl_op_evd from;
	bool polled = false;
	unsigned long flags;

	*seq = 0;
again:
	from.evd = NULL;
	spin_lock_irqsave(&mr->lock, flags);
	why = op == KDAPL_LMR_REG ? lmr_may_bind(lmr) : lmr_may_end(lmr, ep, owner);
	if (!why && (live || op == KDAPL_LMR_REG)) {
		lmr->op[op] = owner;
		*seq = ++lmr->seq[op];
		if (op == KDAPL_LMR_INV) {
			kdapl_mr_hide(mr);
			lmr->state = KDAPL_LMR_ENDING;
		}
	} else if (why == KDAPL_REFUSE_LMR_IN_USE && !polled) {
		from = kdapl_op_evd_get(lmr->op[KDAPL_LMR_REG] ?: lmr->op[KDAPL_LMR_INV] ?: owner);
	}
	spin_unlock_irqrestore(&mr->lock, flags);
	if (from.evd) {
		kdapl_op_evd_poll(from, false);
		polled = true;
		goto again;
	}
	/* before the binding that begins here needs the other list */
	if (unlikely(READ_ONCE(lmr->unmapping)) && op == KDAPL_LMR_REG)
		lmr_unmap_old(lmr);
	return why;
}

/**
 * kdapl_lmr_op_done - an operation on an LMR has ended
 * @lmr: LMR
 * @op: its kind
 * @seq: its number, from kdapl_lmr_claim()
 * @outcome: how
 *
 * Context: any, under the lock of an EVD.
 */
void kdapl_lmr_op_done(struct kdapl_lmr *lmr, enum kdapl_lmr_op op, u32 seq,
		       enum kdapl_outcome outcome)
{
	bool done = outcome == KDAPL_DONE, wake = false;
	struct kdapl_mr *mr = &lmr->mr;
	unsigned long flags;

	spin_lock_irqsave(&mr->lock, flags);
	if (!lmr->op[op] || seq != lmr->seq[op])
		goto out;	/* lmr_mr_invalidated() has ended it */
	lmr->op[op] = NULL;
	wake = lmr->state == KDAPL_LMR_DEAD;
	if (wake) {
		/* being freed: all that matters is whether the key must be invalidated */
		if (op == KDAPL_LMR_REG ? !done : done || outcome == KDAPL_FAILED)
			mr->live = false;
	} else if (op == KDAPL_LMR_REG) {
		if (!done && lmr->state != KDAPL_LMR_UNBOUND) {
			kdapl_mr_hide(mr);
			if (outcome != KDAPL_NEVER)
				lmr_set_stale(lmr);
			else
				lmr_unbind(lmr);
		}
	} else if (lmr->state == KDAPL_LMR_ENDING) {
		if (done)
			lmr_unbind(lmr);
		else if (outcome == KDAPL_FAILED)
			lmr_set_stale(lmr);	/* the next one might end its connection, too */
		else
			kdapl_lmr_publish(lmr);
	}
out:
	spin_unlock_irqrestore(&mr->lock, flags);
	if (wake)
		wake_up(&lmr->obj.ia->unused);
}

/* A peer's Send has invalidated a key. */
static void lmr_mr_invalidated(struct kdapl_mr *mr, u32 rkey)
{
	struct kdapl_lmr *lmr = container_of(mr, struct kdapl_lmr, mr);
	unsigned long flags;

	spin_lock_irqsave(&mr->lock, flags);
	if (mr->live && rkey == mr->used) {
		kdapl_mr_hide(mr);
		if (lmr->state == KDAPL_LMR_BOUND || lmr->state == KDAPL_LMR_ENDING)
			lmr_unbind(lmr);
		mr->live = false;
		/* this proves the registration done; its own completion may be suppressed */
		lmr->op[KDAPL_LMR_REG] = NULL;
	}
	spin_unlock_irqrestore(&mr->lock, flags);
}

/* The MR was stale and has been replaced. */
static void lmr_mr_resolved(struct kdapl_mr *mr)
{
	struct kdapl_lmr *lmr = container_of(mr, struct kdapl_lmr, mr);
	unsigned long flags;

	spin_lock_irqsave(&mr->lock, flags);
	if (lmr->state == KDAPL_LMR_STALE)
		lmr_unbind(lmr);
	spin_unlock_irqrestore(&mr->lock, flags);
}

static const struct kdapl_mr_ops lmr_mr_ops = {
	.invalidated = lmr_mr_invalidated,
	.resolved = lmr_mr_resolved,
	.unmap = lmr_mr_unmap,
};

/**
 * kdapl_lmr_state_init - initialise the state of an LMR
 * @lmr: new LMR
 * @pd: PD of its MR, NULL for none
 */
void kdapl_lmr_state_init(struct kdapl_lmr *lmr, struct kdapl_pd *pd)
{
	kdapl_mr_init(&lmr->mr, &lmr->obj, &lmr_mr_ops, pd);
	INIT_WORK(&lmr->unmap_work, lmr_work_unmap);
}

/**
 * kdapl_lmr_unbound_rmr - an RMR is not bound to an LMR any more
 * @lmr: LMR
 *
 * Context: any.
 */
void kdapl_lmr_unbound_rmr(struct kdapl_lmr *lmr)
{
	struct kdapl_ia *ia = lmr->obj.ia;	/* the RMR's, too */
	unsigned long flags;
	bool wake;

	spin_lock_irqsave(&lmr->mr.lock, flags);
	lmr->windows--;
	if (lmr->state == KDAPL_LMR_MAPPED)
		lmr_unbind(lmr);
	wake = !lmr->windows;
	spin_unlock_irqrestore(&lmr->mr.lock, flags);
	if (wake)
		wake_up(&ia->unused);
}

/**
 * kdapl_lmr_quiesce - wait until nothing changes an LMR any more
 * @lmr: LMR that is being freed
 *
 * Context: may sleep.
 */
void kdapl_lmr_quiesce(struct kdapl_lmr *lmr)
{
	struct kdapl_mr *mr = &lmr->mr;
	int i;

	spin_lock_irq(&mr->lock);
	kdapl_mr_hide(mr);
	lmr->state = KDAPL_LMR_DEAD;
	spin_unlock_irq(&mr->lock);
	/* there are RMRs only if the IA is being closed while another call frees them */
	wait_event(lmr->obj.ia->unused, !READ_ONCE(lmr->windows));
	for (i = 0; i < KDAPL_LMR_OPS; i++)
		kdapl_op_wait(lmr->obj.ia, &mr->lock, &lmr->op[i]);
}
