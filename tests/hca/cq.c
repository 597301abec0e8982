// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Completion queues. What a completion says of places that come free becomes true when it is
 * polled, as on devices whose driver moves the tail of a queue then.
 */
#include <linux/log2.h>
#include <linux/slab.h>

#include "kdhca.h"

static void cq_handler(struct kdhca_irq *irq)
{
	struct kdhca_cq *cq = container_of(irq, struct kdhca_cq, irq);

	if (cq->ibcq.comp_handler)
		cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
}

static void cq_event_handler(struct kdhca_irq *irq)
{
	struct kdhca_cq *cq = container_of(irq, struct kdhca_cq, event_irq);
	struct ib_event event = {
		.device = cq->ibcq.device,
		.element.cq = &cq->ibcq,
		.event = IB_EVENT_CQ_ERR,
	};

	if (cq->ibcq.event_handler)
		cq->ibcq.event_handler(&event, cq->ibcq.cq_context);
}

/* Kernels differ in the last argument, which belongs to user space. */
int kdhca_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr, void *unused)
{
	struct kdhca_dev *dev = to_dev(ibcq->device);
	struct kdhca_cq *cq = to_cq(ibcq);
	int ret = kdhca_sleeps(dev, KDHCA_CREATE);
	u32 size;

	if (ret)
		return ret;
	if (attr->flags || !attr->cqe || attr->cqe > dev->set.max_cqe)
		return -EINVAL;
	size = roundup_pow_of_two(attr->cqe);
	cq->ring = kvcalloc(size, sizeof(*cq->ring), GFP_KERNEL);
	if (!cq->ring)
		return -ENOMEM;
	spin_lock_init(&cq->lock);
	kdhca_irq_init(&cq->irq, dev->set.cq_ctx, cq_handler);
	kdhca_irq_init(&cq->event_irq, dev->set.event_ctx, cq_event_handler);
	cq->mask = size - 1;
	cq->depth = dev->set.round ? size : attr->cqe;
	ibcq->cqe = cq->depth;
	spin_lock_irq(&dev->cq_lock);
	list_add_tail(&cq->node, &dev->cqs);
	spin_unlock_irq(&dev->cq_lock);
	return 0;
}

int kdhca_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct kdhca_dev *dev = to_dev(ibcq->device);
	struct kdhca_cq *cq = to_cq(ibcq);

	kdhca_sleeps(dev, KDHCA_DESTROY);
	spin_lock_irq(&dev->cq_lock);
	list_del(&cq->node);
	spin_unlock_irq(&dev->cq_lock);
	kdhca_irq_kill(&cq->irq);
	kdhca_irq_kill(&cq->event_irq);
	kvfree(cq->ring);
	return 0;
}

/* The queue fails: it takes no completion any more, and says so. Context: any. */
void kdhca_cq_error(struct kdhca_cq *cq)
{
	WRITE_ONCE(cq->dead, true);
	kdhca_irq_raise(&cq->event_irq);
}

/* Something has completed. Context: any. */
void kdhca_cq_push(struct kdhca_cq *cq, const struct kdhca_cqe *cqe, bool solicited)
{
	bool failed = false, wake = false;
	unsigned long flags;

	spin_lock_irqsave(&cq->lock, flags);
	if (READ_ONCE(cq->dead)) {
		;
	} else if (cq->head - cq->tail >= cq->depth) {
		failed = true;
	} else {
		cq->ring[cq->head++ & cq->mask] = *cqe;
		wake = cq->armed == IB_CQ_NEXT_COMP ||
		       (cq->armed == IB_CQ_SOLICITED && (solicited || cqe->status));
		if (wake)
			cq->armed = 0;
	}
	spin_unlock_irqrestore(&cq->lock, flags);
	if (failed)
		kdhca_cq_error(cq);
	if (wake)
		kdhca_irq_raise(&cq->irq);
}

static void cqe_to_wc(const struct kdhca_cqe *cqe, struct ib_wc *wc)
{
	memset(wc, 0, sizeof(*wc));
	wc->wr_id = cqe->wr_id;
	wc->status = cqe->status;
	wc->qp = cqe->qp ? &cqe->qp->ibqp : NULL;
	if (cqe->status) {	/* nothing else is to be relied on */
		wc->opcode = 0x5a;
		wc->vendor_err = 0xbad;
		return;
	}
	wc->opcode = cqe->opcode;
	wc->byte_len = cqe->byte_len;
	wc->wc_flags = cqe->wc_flags;
	if (cqe->wc_flags & IB_WC_WITH_INVALIDATE)
		wc->ex.invalidate_rkey = cqe->ex;
	else if (cqe->wc_flags & IB_WC_WITH_IMM)
		wc->ex.imm_data = (__force __be32)cqe->ex;
	wc->src_qp = cqe->src_qp;
	wc->port_num = 1;
	wc->network_hdr_type = cqe->net;
}

int kdhca_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc)
{
	struct kdhca_cq *cq = to_cq(ibcq);
	const struct kdhca_cqe *cqe;
	unsigned long flags;
	int n;

	spin_lock_irqsave(&cq->lock, flags);
	for (n = 0; n < num && cq->tail != cq->head; n++) {
		cqe = &cq->ring[cq->tail++ & cq->mask];
		cqe_to_wc(cqe, &wc[n]);
		if (cqe->tail)
			atomic_add(cqe->frees, cqe->tail);
	}
	spin_unlock_irqrestore(&cq->lock, flags);
	return n;
}

/*
 * What is in the queue already is either reported, or causes an interrupt at once, as it does
 * where the device is told up to where the queue has been polled.
 */
int kdhca_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct kdhca_cq *cq = to_cq(ibcq);
	struct kdhca_dev *dev = to_dev(ibcq->device);
	unsigned long irqflags;
	bool missed, raise;

	spin_lock_irqsave(&cq->lock, irqflags);
	missed = cq->head != cq->tail;
	raise = missed && !dev->set.missed;
	cq->armed = raise ? 0 : flags & IB_CQ_SOLICITED_MASK;
	spin_unlock_irqrestore(&cq->lock, irqflags);
	if (raise)
		kdhca_irq_raise(&cq->irq);
	return missed && dev->set.missed && (flags & IB_CQ_REPORT_MISSED_EVENTS);
}

/* A queue pair goes, or is reset: its completions go, too. */
void kdhca_cq_purge(struct kdhca_cq *cq, struct kdhca_qp *qp)
{
	struct kdhca_cqe *cqe;
	unsigned long flags;
	u32 from, to;

	spin_lock_irqsave(&cq->lock, flags);
	for (from = to = cq->tail; from != cq->head; from++) {
		cqe = &cq->ring[from & cq->mask];
		if (cqe->qp == qp) {
			if (cqe->tail && qp->srq && cqe->tail == &qp->srq->rq.tail)
				atomic_add(cqe->frees, cqe->tail);
			cqe->tail = NULL;
			cqe->qp = NULL;
			if (qp->dev->set.purge)
				continue;
		}
		cq->ring[to++ & cq->mask] = *cqe;
	}
	cq->head = to;
	spin_unlock_irqrestore(&cq->lock, flags);
}
