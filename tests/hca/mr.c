// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Memory regions, and the way from a key and an address to DMA addresses. A region is valid
 * from REG_MR to an invalidation. Whoever moves data is a user of it meanwhile; an invalidation
 * waits for users, so that nothing moves after it has completed.
 */
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "kdhca.h"

static struct kdhca_mr *mr_new(struct ib_pd *ibpd, u32 max_pages)
{
	struct kdhca_dev *dev = to_dev(ibpd->device);
	struct kdhca_mr *mr;
	u32 index;
	int ret = -ENOMEM;

	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	if (max_pages) {
		mr->list = kvcalloc(2 * (size_t)max_pages, sizeof(u64), GFP_KERNEL);
		if (!mr->list)
			goto err;
		mr->live = mr->list + max_pages;
	}
	mr->dev = dev;
	mr->max_pages = max_pages;
	mr->last_byte = -1;
	spin_lock_init(&mr->lock);
	init_waitqueue_head(&mr->idle);
	refcount_set(&mr->ref, 1);
	init_completion(&mr->unused);
	ret = xa_alloc_cyclic(&dev->mrs, &index, mr, XA_LIMIT(0x100, 0xffffff), &dev->next_mr,
			      GFP_KERNEL);
	if (ret < 0)
		goto err;
	mr->key = index << 8;
	mr->ibmr.lkey = mr->key;
	mr->ibmr.rkey = mr->key;
	return mr;
err:
	kvfree(mr->list);
	kfree(mr);
	return ERR_PTR(ret);
}

struct ib_mr *kdhca_get_dma_mr(struct ib_pd *ibpd, int access)
{
	struct kdhca_mr *mr = mr_new(ibpd, 0);

	if (IS_ERR(mr))
		return ERR_CAST(mr);
	mr->all = true;
	mr->valid = true;
	mr->access = access;
	mr->length = U64_MAX;
	return &mr->ibmr;
}

struct ib_mr *kdhca_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type, u32 max_pages)
{
	struct kdhca_dev *dev = to_dev(ibpd->device);
	struct kdhca_mr *mr;
	int ret = kdhca_sleeps(dev, KDHCA_ALLOC);

	if (ret)
		return ERR_PTR(ret);
	if (type != IB_MR_TYPE_MEM_REG || !max_pages || max_pages > dev->set.max_pages)
		return ERR_PTR(-EINVAL);
	mr = mr_new(ibpd, max_pages);
	return IS_ERR(mr) ? ERR_CAST(mr) : &mr->ibmr;
}

static int mr_set_page(struct ib_mr *ibmr, u64 addr)
{
	struct kdhca_mr *mr = to_mr(ibmr);

	if (mr->pages == mr->max_pages)
		return -ENOMEM;
	mr->list[mr->pages++] = addr;
	return 0;
}

int kdhca_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents, unsigned int *offset)
{
	struct kdhca_mr *mr = to_mr(ibmr);
	int ret;

	if (!is_power_of_2(ibmr->page_size) ||
	    !(ibmr->page_size & mr->dev->ibdev.attrs.page_size_cap))
		return -EINVAL;
	mr->pages = 0;
	ret = ib_sg_to_pages(ibmr, sg, nents, offset, mr_set_page);
	mr->start = ibmr->iova;
	return ret;
}

static void mr_unref(struct kdhca_mr *mr)
{
	if (refcount_dec_and_test(&mr->ref))
		complete(&mr->unused);
}

static void mr_free(struct kdhca_mr *mr)
{
	xa_erase(&mr->dev->mrs, mr->key >> 8);
	mr_unref(mr);
	wait_for_completion(&mr->unused);
	synchronize_rcu_expedited();
	kvfree(mr->list);
	kfree(mr);
}

int kdhca_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct kdhca_mr *mr = to_mr(ibmr);
	int ret = kdhca_sleeps(mr->dev, KDHCA_DEREG);

	if (ret)
		return ret;
	if (READ_ONCE(mr->written) && mr->dev->set.flush_ms)
		msleep(get_random_u32() % mr->dev->set.flush_ms);
	mr_free(mr);
	return 0;
}

/*
 * Free regions of a device that is gone.
 * There are none, but where dereg_mr has failed.
 */
void kdhca_mrs_free(struct kdhca_dev *dev)
{
	struct kdhca_mr *mr;
	unsigned long index;

	WARN_ON(!dev->set.dereg_fail && !xa_empty(&dev->mrs));
	xa_for_each(&dev->mrs, index, mr)
		mr_free(mr);
}

/* The MR of a key, whatever the low byte, to be given back by mr_unref(). */
static struct kdhca_mr *mr_find(struct kdhca_dev *dev, u32 key)
{
	struct kdhca_mr *mr;

	rcu_read_lock();
	mr = xa_load(&dev->mrs, key >> 8);
	if (mr && !refcount_inc_not_zero(&mr->ref))
		mr = NULL;
	rcu_read_unlock();
	return mr;
}

/* REG_MR. Returns -EINVAL if the region cannot be registered. */
int kdhca_mr_reg(struct kdhca_qp *qp, struct kdhca_wqe *wqe)
{
	struct kdhca_mr *mr = wqe->reg.mr;
	unsigned long flags;
	int ret = -EINVAL;

	if ((wqe->reg.iova ^ mr->start) & (wqe->reg.page_size - 1))
		kdhca_complain(qp->dev, KDHCA_OFFSET, "REG_MR", wqe->reg.iova);
	if (mr->last_byte == (wqe->reg.key & 0xff))
		kdhca_complain(qp->dev, KDHCA_KEY_AGAIN, "REG_MR", wqe->reg.key);
	if (mr->ibmr.pd != qp->ibqp.pd || mr->all || wqe->reg.key >> 8 != mr->key >> 8)
		return ret;
	spin_lock_irqsave(&mr->lock, flags);
	if (!mr->valid) {
		mr->last_byte = wqe->reg.key & 0xff;
		mr->key = wqe->reg.key;
		mr->access = wqe->reg.access;
		mr->iova = wqe->reg.iova;
		mr->length = wqe->reg.mr_length;
		mr->page_size = wqe->reg.page_size;
		memcpy(mr->live, mr->list, wqe->reg.pages * sizeof(u64));
		mr->written = false;
		mr->valid = true;
		ret = 0;
	}
	spin_unlock_irqrestore(&mr->lock, flags);
	return ret;
}

/* Make a region invalid, and wait for its users. Context: may sleep. */
int kdhca_mr_invalidate(struct kdhca_qp *qp, u32 key, bool remote)
{
	struct kdhca_mr *mr = mr_find(qp->dev, key);
	int ret = -EINVAL;

	if (!mr)
		return ret;
	spin_lock_irq(&mr->lock);
	if (mr->key == key && mr->ibmr.pd == qp->ibqp.pd && !mr->all && (mr->valid || !remote)) {
		mr->valid = false;
		ret = 0;
	}
	spin_unlock_irq(&mr->lock);
	if (!ret)
		wait_event(mr->idle, !READ_ONCE(mr->users));
	mr_unref(mr);
	return ret;
}

static bool mr_covers(const struct kdhca_mr *mr, u32 key, u64 addr, u32 length, int access)
{
	return mr->valid && mr->key == key && (mr->access & access) == access &&
	       (mr->all || (addr >= mr->iova && addr - mr->iova <= mr->length &&
			    length <= mr->length - (addr - mr->iova)));
}

/* Become a user of memory in which @access, IB_ACCESS_*, is allowed. */
int kdhca_span_get(struct kdhca_span *span, struct ib_pd *pd, u32 key, u64 addr, u32 length,
		   int access)
{
	struct kdhca_dev *dev = to_dev(pd->device);
	struct kdhca_mr *mr;
	int ret = -EACCES;

	*span = (struct kdhca_span){ .dev = dev, .addr = addr, .length = length };
	if (key == KDHCA_DMA_LKEY && dev->set.dma_lkey)
		return access & ~IB_ACCESS_LOCAL_WRITE ? -EACCES : 0;
	mr = mr_find(dev, key);
	if (!mr)
		return -EACCES;
	spin_lock_irq(&mr->lock);
	if (mr->ibmr.pd == pd && mr_covers(mr, key, addr, length, access)) {
		mr->users++;
		if (access & IB_ACCESS_REMOTE_WRITE)
			mr->written = true;
		ret = 0;
	}
	spin_unlock_irq(&mr->lock);
	if (!ret)
		span->mr = mr;
	else
		mr_unref(mr);
	return ret;
}

/* Become a user of all that a list of segments names, or of nothing. */
int kdhca_spans_get(struct kdhca_spans *spans, struct ib_pd *pd, const struct ib_sge *sge,
		    int n, int access)
{
	int i, ret;

	spans->n = 0;
	for (i = 0; i < n; i++) {
		if (!sge[i].length)
			continue;
		ret = kdhca_span_get(&spans->span[spans->n], pd, sge[i].lkey, sge[i].addr,
				     sge[i].length, access);
		if (ret) {
			kdhca_spans_put(spans);
			return ret;
		}
		spans->n++;
	}
	return 0;
}

/* Be no user of it any more. */
void kdhca_spans_put(struct kdhca_spans *spans)
{
	struct kdhca_mr *mr;
	int i;

	for (i = 0; i < spans->n; i++) {
		mr = spans->span[i].mr;
		if (!mr)
			continue;
		spin_lock_irq(&mr->lock);
		if (!--mr->users)
			wake_up(&mr->idle);
		spin_unlock_irq(&mr->lock);
		mr_unref(mr);
	}
	spans->n = 0;
}

/* DMA address of a byte of a span. @run is made smaller if not as many follow there. */
u64 kdhca_span_dma(const struct kdhca_span *span, u32 offset, u32 *run)
{
	const struct kdhca_mr *mr = span->mr;
	u64 at;
	u32 in_page;

	if (!mr || mr->all)
		return span->addr + offset;
	at = span->addr + offset - (mr->iova & ~((u64)mr->page_size - 1));
	in_page = at & (mr->page_size - 1);
	*run = min_t(u64, *run, (u64)mr->page_size - in_page);
	return mr->live[at >> ilog2(mr->page_size)] + in_page;
}
