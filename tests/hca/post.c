// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Posting: a request is copied to the queue, and the engine told. */
#include "kdhca.h"

static bool qp_may_send(const struct kdhca_qp *qp)
{
	switch (READ_ONCE(qp->state)) {
	case IB_QPS_RTS:
	case IB_QPS_ERR:
		return true;
	case IB_QPS_SQD:
		return !qp->dev->set.iwarp;	/* there the connection is closing */
	default:
		return false;
	}
}

static const struct kdhca_op ops[] = {
	[IB_WR_SEND]			= { IB_WC_SEND, 1, 3 },
	[IB_WR_SEND_WITH_IMM]		= { IB_WC_SEND, 1, 1 },
	[IB_WR_SEND_WITH_INV]		= { IB_WC_SEND, 1, 3 },
	[IB_WR_RDMA_WRITE]		= { IB_WC_RDMA_WRITE, 2, 3, true },
	[IB_WR_RDMA_WRITE_WITH_IMM]	= { IB_WC_RDMA_WRITE, 2, 1, true },
	[IB_WR_RDMA_READ]		= { IB_WC_RDMA_READ, 4, 3, true },
	[IB_WR_RDMA_READ_WITH_INV]	= { IB_WC_RDMA_READ, 4, 2, true },
	[IB_WR_LOCAL_INV]		= { IB_WC_LOCAL_INV, 8, 3 },
	[IB_WR_REG_MR]			= { IB_WC_REG_MR, 16, 3 },
};

/* What there is to know of a kind of request; of one nobody has, .on is 0. */
const struct kdhca_op *kdhca_op(enum ib_wr_opcode opcode)
{
	static const struct kdhca_op none;

	return opcode < ARRAY_SIZE(ops) ? &ops[opcode] : &none;
}

static int copy_inline(struct kdhca_qp *qp, struct kdhca_wqe *wqe, const struct ib_send_wr *wr)
{
	u8 *to = wqe->inl;
	int i;

	if (wqe->length > qp->cap.max_inline_data || kdhca_is_read(wr->opcode))
		return -EINVAL;
	for (i = 0; i < wr->num_sge; i++) {
		memcpy(to, (void *)(unsigned long)wr->sg_list[i].addr, wr->sg_list[i].length);
		to += wr->sg_list[i].length;
	}
	return 0;
}

static void copy_reg(struct kdhca_wqe *wqe, const struct ib_send_wr *wr)
{
	struct kdhca_mr *mr = to_mr(reg_wr(wr)->mr);

	wqe->reg.mr = mr;
	wqe->reg.key = reg_wr(wr)->key;
	wqe->reg.access = reg_wr(wr)->access;
	wqe->reg.iova = mr->ibmr.iova;
	wqe->reg.mr_length = mr->ibmr.length;
	wqe->reg.page_size = mr->ibmr.page_size;
	wqe->reg.pages = mr->pages;
}

static void copy_ud(struct kdhca_wqe *wqe, const struct ib_send_wr *wr)
{
	const struct kdhca_ah *ah = to_ah(ud_wr(wr)->ah);

	wqe->ud.dgid = ah->dgid;
	wqe->ud.sgid = ah->sgid;
	wqe->ud.v4 = ah->v4;
	wqe->ud.qpn = ud_wr(wr)->remote_qpn;
}

/* One request. sq->lock held. */
static int post_one(struct kdhca_qp *qp, const struct ib_send_wr *wr)
{
	const struct kdhca_op *op = kdhca_op(wr->opcode);
	struct kdhca_sq *sq = &qp->sq;
	struct kdhca_wqe *wqe;
	u64 length = 0;
	int i;

	kdhca_check_list(qp->dev, wr->sg_list, wr->num_sge);
	if (!qp_may_send(qp) || !(op->on & (qp->dev->set.iwarp ? 2 : 1)) ||
	    wr->num_sge > sq->max_sge ||
	    (kdhca_is_read(wr->opcode) && wr->num_sge > qp->dev->set.max_sge_rd))
		return -EINVAL;
	if (sq->head - (u32)atomic_read(&sq->tail) >= sq->depth)
		return -ENOMEM;
	for (i = 0; i < wr->num_sge; i++)
		length += wr->sg_list[i].length;
	if (length > BIT(31))
		return -EINVAL;
	wqe = kdhca_wqe(sq, sq->head);
	wqe->wr_id = wr->wr_id;
	wqe->opcode = wr->opcode;
	wqe->flags = wr->send_flags;
	if (qp->sig_all)
		wqe->flags |= IB_SEND_SIGNALED;
	if (wqe->flags & IB_SEND_FENCE && !(qp->dev->set.fence & op->fence)) {
		kdhca_complain(qp->dev, KDHCA_FENCE, "post_send", wr->opcode);
		wqe->flags &= ~IB_SEND_FENCE;
	}
	wqe->num_sge = wr->num_sge;
	wqe->length = length;
	wqe->state = KDHCA_POSTED;
	wqe->status = IB_WC_SUCCESS;
	wqe->ex = wr->ex.invalidate_rkey;
	if (wr->send_flags & IB_SEND_INLINE) {
		if (copy_inline(qp, wqe, wr))
			return -EINVAL;
	} else if (wr->num_sge) {
		memcpy(wqe->sge, wr->sg_list, wr->num_sge * sizeof(*wr->sg_list));
	}
	if (qp->ibqp.qp_type == IB_QPT_GSI) {
		copy_ud(wqe, wr);
	} else if (wr->opcode == IB_WR_REG_MR) {
		copy_reg(wqe, wr);
	} else if (op->remote) {
		wqe->remote_addr = rdma_wr(wr)->remote_addr;
		wqe->rkey = rdma_wr(wr)->rkey;
	}
	sq->head++;
	return 0;
}

/* c4iw_post_send() of T5 looks at the first segment of both before it looks at their number. */
static void check_pair(struct kdhca_dev *dev, const struct ib_send_wr *wr)
{
	const struct ib_send_wr *next = wr->next;

	if (dev->set.pair && next && !next->next && wr->opcode == IB_WR_RDMA_WRITE &&
	    (next->opcode == IB_WR_SEND || next->opcode == IB_WR_SEND_WITH_INV) &&
	    (!wr->sg_list || !next->sg_list))
		kdhca_complain(dev, KDHCA_PAIR, "post_send", next->opcode);
}

int kdhca_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		    const struct ib_send_wr **bad)
{
	struct kdhca_qp *qp = to_qp(ibqp);
	unsigned long flags;
	int ret = 0;

	if (ibqp->qp_type == IB_QPT_RC)
		kdhca_check_late(qp->dev);
	if (wr)
		check_pair(qp->dev, wr);
	spin_lock_irqsave(&qp->sq.lock, flags);
	for (; wr; wr = wr->next) {
		ret = post_one(qp, wr);
		if (ret) {
			*bad = wr;
			break;
		}
	}
	spin_unlock_irqrestore(&qp->sq.lock, flags);
	kdhca_qp_kick(qp);
	return ret;
}

int kdhca_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		    const struct ib_recv_wr **bad)
{
	struct kdhca_qp *qp = to_qp(ibqp);
	int ret;

	if (ibqp->qp_type == IB_QPT_RC)
		kdhca_check_late(qp->dev);
	if (qp->srq || READ_ONCE(qp->state) == IB_QPS_RESET) {
		*bad = wr;
		return -EINVAL;
	}
	ret = kdhca_rq_post(qp->dev, &qp->rq, wr, bad);
	if (READ_ONCE(qp->state) == IB_QPS_ERR)
		kdhca_qp_kick(qp);
	return ret;
}
