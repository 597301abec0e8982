// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Receive queues, shared or not. */
#include <linux/log2.h>
#include <linux/slab.h>

#include "kdhca.h"

static struct kdhca_rqe *rqe_at(struct kdhca_rq *rq, u32 index)
{
	return rq->ring + (index & rq->mask) * rq->stride;
}

/* Make a receive queue. */
int kdhca_rq_init(struct kdhca_rq *rq, u32 depth, u32 max_sge)
{
	u32 size = roundup_pow_of_two(max(depth, 1U));

	spin_lock_init(&rq->lock);
	rq->stride = struct_size((struct kdhca_rqe *)NULL, sge, max_sge);
	rq->ring = kvcalloc(size, rq->stride, GFP_KERNEL);
	if (!rq->ring)
		return -ENOMEM;
	rq->mask = size - 1;
	rq->depth = depth;
	rq->max_sge = max_sge;
	return 0;
}

/* Add Receives. */
int kdhca_rq_post(struct kdhca_dev *dev, struct kdhca_rq *rq, const struct ib_recv_wr *wr,
		  const struct ib_recv_wr **bad)
{
	struct kdhca_rqe *rqe;
	unsigned long flags;
	int ret = 0;

	spin_lock_irqsave(&rq->lock, flags);
	for (; wr; wr = wr->next) {
		kdhca_check_list(dev, wr->sg_list, wr->num_sge);
		if (wr->num_sge > rq->max_sge)
			ret = -EINVAL;
		else if (rq->head - (u32)atomic_read(&rq->tail) >= rq->depth)
			ret = -ENOMEM;
		if (ret) {
			*bad = wr;
			break;
		}
		rqe = rqe_at(rq, rq->head);
		rqe->wr_id = wr->wr_id;
		rqe->num_sge = wr->num_sge;
		if (wr->num_sge)
			memcpy(rqe->sge, wr->sg_list, wr->num_sge * sizeof(*wr->sg_list));
		rq->head++;
	}
	spin_unlock_irqrestore(&rq->lock, flags);
	return ret;
}

/* A message takes the next Receive, if there is one. */
bool kdhca_rq_take(struct kdhca_rq *rq, struct kdhca_rqe *rqe)
{
	const struct kdhca_rqe *from;
	bool found;

	spin_lock_irq(&rq->lock);
	found = rq->next != rq->head;
	if (found) {
		from = rqe_at(rq, rq->next++);
		rqe->wr_id = from->wr_id;
		rqe->num_sge = from->num_sge;
		memcpy(rqe->sge, from->sge, from->num_sge * sizeof(*from->sge));
	}
	spin_unlock_irq(&rq->lock);
	return found;
}

/* Forget all Receives. */
void kdhca_rq_reset(struct kdhca_rq *rq)
{
	spin_lock_irq(&rq->lock);
	rq->head = 0;
	rq->next = 0;
	atomic_set(&rq->tail, 0);
	spin_unlock_irq(&rq->lock);
}

static void srq_handler(struct kdhca_irq *irq)
{
	struct kdhca_srq *srq = container_of(irq, struct kdhca_srq, irq);
	struct ib_event event = { .device = srq->ibsrq.device, .element.srq = &srq->ibsrq };

	while (kdhca_irq_next(irq, &event)) {
		if (srq->ibsrq.event_handler)
			srq->ibsrq.event_handler(&event, srq->ibsrq.srq_context);
	}
}

/* Fewer Receives than the limit are left: say so, once. */
static void srq_check_limit(struct kdhca_srq *srq)
{
	bool low = false;

	spin_lock_irq(&srq->rq.lock);
	if (srq->limit && srq->rq.head - srq->rq.next < srq->limit) {
		srq->limit = 0;
		low = true;
	}
	spin_unlock_irq(&srq->rq.lock);
	if (low)
		kdhca_irq_event(&srq->irq, IB_EVENT_SRQ_LIMIT_REACHED);
}

int kdhca_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *attr, struct ib_udata *udata)
{
	struct kdhca_dev *dev = to_dev(ibsrq->device);
	struct kdhca_srq *srq = to_srq(ibsrq);
	u32 depth = attr->attr.max_wr;
	int ret = kdhca_sleeps(dev, KDHCA_CREATE);

	if (ret)
		return ret;
	if (attr->srq_type != IB_SRQT_BASIC)
		return -EOPNOTSUPP;
	if (!depth || depth > dev->set.max_srq_wr || attr->attr.max_sge > dev->set.max_srq_sge)
		return -EINVAL;
	if (dev->set.round)
		depth = roundup_pow_of_two(depth);
	ret = kdhca_rq_init(&srq->rq, depth, attr->attr.max_sge);
	if (ret)
		return ret;
	srq->limit = attr->attr.srq_limit;
	attr->attr.max_wr = depth;
	kdhca_irq_init(&srq->irq, dev->set.event_ctx, srq_handler);
	return 0;
}

int kdhca_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		     struct ib_udata *udata)
{
	struct kdhca_srq *srq = to_srq(ibsrq);

	kdhca_sleeps(to_dev(ibsrq->device), KDHCA_MODIFY);
	if (mask & IB_SRQ_MAX_WR)
		return -EINVAL;
	if (!(mask & IB_SRQ_LIMIT))
		return 0;
	if (attr->srq_limit > srq->rq.depth)
		return -EINVAL;
	spin_lock_irq(&srq->rq.lock);
	srq->limit = attr->srq_limit;
	spin_unlock_irq(&srq->rq.lock);
	srq_check_limit(srq);
	return 0;
}

int kdhca_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	struct kdhca_srq *srq = to_srq(ibsrq);

	attr->max_wr = srq->rq.depth;
	attr->max_sge = srq->rq.max_sge;
	attr->srq_limit = srq->limit;
	return 0;
}

int kdhca_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct kdhca_srq *srq = to_srq(ibsrq);

	kdhca_sleeps(to_dev(ibsrq->device), KDHCA_DESTROY);
	kdhca_irq_kill(&srq->irq);
	kvfree(srq->rq.ring);
	return 0;
}

int kdhca_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
			const struct ib_recv_wr **bad)
{
	kdhca_check_late(to_dev(ibsrq->device));
	return kdhca_rq_post(to_dev(ibsrq->device), &to_srq(ibsrq)->rq, wr, bad);
}

/* A message takes the next Receive of a QP, its rx held. */
bool kdhca_recv_take(struct kdhca_qp *qp, struct kdhca_rqe *rqe)
{
	struct kdhca_srq *srq = qp->srq;
	bool found = kdhca_rq_take(srq ? &srq->rq : &qp->rq, rqe);

	if (found && srq)
		srq_check_limit(srq);
	return found;
}

/* A Receive of a QP, its rx held, completes; @cqe is filled in but for what is known here. */
void kdhca_recv_done(struct kdhca_qp *qp, const struct kdhca_rqe *rqe, struct kdhca_cqe *cqe,
		     bool solicited)
{
	cqe->wr_id = rqe->wr_id;
	cqe->qp = qp;
	cqe->tail = qp->srq ? &qp->srq->rq.tail : &qp->rq.tail;
	cqe->frees = 1;
	kdhca_cq_push(qp->rcq, cqe, solicited);
}
