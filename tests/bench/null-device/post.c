// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Posting and polling: what a bench on this device measures.
 *
 * Modelled is what every provider does on the CPU of who posts: one lock, taken with
 * interrupts off, over each call; fields of the work request and all segments copied to
 * where a device would look for them; the end of the request as a CQ entry of 32 bytes, if
 * it is signaled; room in the CQ and the receive queue checked. A request is done when its
 * post returns, in order. Polling takes the lock of the CQ once and returns as many
 * completions as are asked for.
 *
 * That lock is the one of the CQ on which the queue completes. So queues with a CQ of
 * their own have nothing in common, and a post takes one lock, not two; queues that share
 * a CQ contend for it, unlike those of a device that writes completions by itself.
 *
 * Not modelled: the doorbell (an MMIO write, 100 ns and more), the time a device takes and
 * the interrupt after it, bytes (nothing is moved, and no key, right or range is looked
 * at), the depth of the send queue (its entries are free at once).
 *
 * A Send consumes a Receive of the peer at once and makes its completion, at the cost of
 * a second lock, the one of the peer's CQ (and a third, if the Receive is an SRQ's). There is no
 * flow control: without a Receive, or with
 * one that is too short, the connection breaks, as it does on iWARP.
 *
 * The handler of an armed CQ is called from a tasklet, since that must not happen inside
 * of a post. It is the only thing here that costs time later.
 */
#include "kdnull.h"

static_assert(!IS_ENABLED(CONFIG_64BIT) || sizeof(struct kdnull_cqe) == 32);

/* What to do with a request, and the opcode of its completion. */
#define WR_VALID	0x100
#define WR_SEND		0x200
#define WR_RDMA		0x400
#define WR_KEY		0x800

static const u16 wr_kind[] = {
	[IB_WR_RDMA_WRITE]		= WR_VALID | WR_RDMA | IB_WC_RDMA_WRITE,
	[IB_WR_RDMA_WRITE_WITH_IMM]	= WR_VALID | WR_RDMA | WR_SEND | IB_WC_RDMA_WRITE,
	[IB_WR_SEND]			= WR_VALID | WR_SEND | IB_WC_SEND,
	[IB_WR_SEND_WITH_IMM]		= WR_VALID | WR_SEND | IB_WC_SEND,
	[IB_WR_RDMA_READ]		= WR_VALID | WR_RDMA | IB_WC_RDMA_READ,
	[IB_WR_SEND_WITH_INV]		= WR_VALID | WR_SEND | IB_WC_SEND,
	[IB_WR_RDMA_READ_WITH_INV]	= WR_VALID | WR_RDMA | IB_WC_RDMA_READ,
	[IB_WR_LOCAL_INV]		= WR_VALID | WR_KEY | IB_WC_LOCAL_INV,
	[IB_WR_REG_MR]			= WR_VALID | WR_KEY | IB_WC_REG_MR,
};

/* Write a CQ entry. cq->lock held. */
static __always_inline int cq_put(struct kdnull_cq *cq, struct kdnull_qp *qp, u64 wr_id,
				  u8 status, u8 opcode, u32 len, u32 ex, u8 flags,
				  bool solicited)
{
	struct kdnull_cqe *cqe = &cq->ring[cq->head & cq->mask];

	if (unlikely(cq->head - cq->tail >= cq->depth)) {
		pr_err_ratelimited("%s: a CQ of %u entries is full\n",
				   dev_name(&cq->ibcq.device->dev), cq->depth);
		return -ENOMEM;
	}
	cqe->wr_id = wr_id;
	cqe->qp = &qp->ibqp;
	cqe->byte_len = len;
	cqe->ex = ex;
	cqe->status = status;
	cqe->opcode = opcode;
	cqe->wc_flags = flags;
	cq->head++;
	if (unlikely(cq->armed) &&
	    (cq->armed == IB_CQ_NEXT_COMP || solicited || status != IB_WC_SUCCESS)) {
		cq->armed = 0;
		tasklet_schedule(&cq->tasklet);
	}
	return 0;
}

static __always_inline bool rq_take(struct kdnull_rq *rq, struct kdnull_recv *recv)
{
	if (unlikely(rq->tail == rq->head))
		return false;
	*recv = rq->ring[rq->tail++ & rq->mask];
	return true;
}

static __always_inline int rq_put(struct kdnull_rq *rq, const struct ib_recv_wr *wr)
{
	struct kdnull_recv *recv = &rq->ring[rq->head & rq->mask];
	u32 len = 0;
	int i;

	if (unlikely(rq->head - rq->tail >= rq->depth))
		return -ENOMEM;
	if (unlikely(wr->num_sge < 0 || wr->num_sge > rq->max_sge))
		return -EINVAL;
	for (i = 0; i < wr->num_sge; i++)
		len += wr->sg_list[i].length;
	recv->wr_id = wr->wr_id;
	recv->length = len;
	rq->head++;
	return 0;
}

/* A key is not valid any more, in order with what is posted around it. */
static void mr_invalidate(struct kdnull_dev *dev, u32 key)
{
	struct kdnull_mr *mr;

	rcu_read_lock();
	mr = xa_load(&dev->mrs, key >> 8);
	if (mr && mr->key == key)
		mr->valid = false;
	rcu_read_unlock();
}

/* Not inline, as what delivers: a plain post needs no room on the stack for them. */
static noinline void mr_update(struct kdnull_qp *qp, const struct ib_send_wr *wr)
{
	struct kdnull_mr *mr;

	if (wr->opcode == IB_WR_REG_MR) {
		mr = to_kdnull_mr(reg_wr(wr)->mr);
		mr->key = reg_wr(wr)->key;
		mr->access = reg_wr(wr)->access;
		mr->valid = true;
	} else {
		mr_invalidate(to_kdnull_dev(qp->ibqp.device), wr->ex.invalidate_rkey);
	}
}

/* Have a message, or a Write with immediate data, consume a Receive of the peer. Its status. */
static u8 peer_receive(struct kdnull_qp *peer, const struct ib_send_wr *wr, u32 len)
{
	bool write = wr->opcode == IB_WR_RDMA_WRITE_WITH_IMM;
	struct kdnull_cq *cq = peer->rcq;
	struct kdnull_recv recv;
	u8 flags = 0, status = IB_WC_SUCCESS, ret = IB_WC_SUCCESS;
	u32 ex = 0;
	bool got;

	spin_lock(&cq->lock);
	if (unlikely(peer->dead))
		goto out;	/* lost, as on a wire */
	if (peer->srq) {
		spin_lock(&peer->srq->lock);
		got = rq_take(&peer->srq->rq, &recv);
		spin_unlock(&peer->srq->lock);
	} else {
		got = rq_take(&peer->rq, &recv);
	}
	if (unlikely(!got)) {
		ret = IB_WC_RNR_RETRY_EXC_ERR;
		goto out;
	}
	if (unlikely(len > recv.length && !write)) {
		status = IB_WC_LOC_LEN_ERR;
		ret = IB_WC_REM_INV_REQ_ERR;
	} else if (wr->opcode == IB_WR_SEND_WITH_INV) {
		ex = wr->ex.invalidate_rkey;
		flags = IB_WC_WITH_INVALIDATE;
		mr_invalidate(to_kdnull_dev(peer->ibqp.device), ex);
	} else if (write || wr->opcode == IB_WR_SEND_WITH_IMM) {
		ex = (__force u32)wr->ex.imm_data;
		flags = IB_WC_WITH_IMM;
	}
	cq_put(cq, peer, recv.wr_id, status, write ? IB_WC_RECV_RDMA_WITH_IMM : IB_WC_RECV, len,
	       ex, flags, wr->send_flags & IB_SEND_SOLICITED);
out:
	spin_unlock(&cq->lock);
	return ret;
}

/*
 * Hand a Send to the peer. cq->lock held, dropped meanwhile: nobody holds the locks of two
 * CQs. The status of the Send.
 */
static noinline u8 send_deliver(struct kdnull_qp *qp, struct kdnull_cq *cq,
				struct kdnull_qp *peer, const struct ib_send_wr *wr, u32 len)
{
	u8 status;

	rcu_read_lock();	/* the peer is not freed before the end of this */
	spin_unlock(&cq->lock);
	status = peer_receive(peer, wr, len);
	spin_lock(&cq->lock);
	rcu_read_unlock();
	if (unlikely(qp->mode != KDNULL_QP_LIVE))
		return IB_WC_WR_FLUSH_ERR;
	if (unlikely(status != IB_WC_SUCCESS)) {
		qp->mode = KDNULL_QP_DEAD;
		schedule_work(&qp->work);	/* breaks the connection */
	}
	return status;
}

/* The request as a device would want it; how many bytes it moves. */
static __always_inline u32 wqe_write(struct kdnull_qp *qp, const struct ib_send_wr *wr,
				     u32 kind)
{
	const struct ib_sge *sg = wr->sg_list, *end = sg + wr->num_sge;
	struct ib_sge *to = qp->wqe.sge;
	u32 len = 0;

	qp->wqe.wr_id = wr->wr_id;
	qp->wqe.opcode = wr->opcode;
	qp->wqe.flags = wr->send_flags;
	if (kind & WR_RDMA) {
		qp->wqe.remote_addr = rdma_wr(wr)->remote_addr;
		qp->wqe.rkey = rdma_wr(wr)->rkey;
	}
	for (; sg < end; sg++) {
		len += sg->length;
		*to++ = *sg;
	}
	return len;
}

static __always_inline int send_one(struct kdnull_qp *qp, struct kdnull_cq *cq,
				    const struct ib_send_wr *wr)
{
	u32 kind = wr->opcode < ARRAY_SIZE(wr_kind) ? wr_kind[wr->opcode] : 0;
	u8 status = IB_WC_SUCCESS;
	u32 len;

	if (unlikely(!kind || wr->num_sge < 0 || wr->num_sge > qp->max_send_sge))
		return -EINVAL;
	if (unlikely(qp->mode != KDNULL_QP_LIVE)) {
		if (qp->mode == KDNULL_QP_IDLE)
			return -EINVAL;
		return cq_put(cq, qp, wr->wr_id, IB_WC_WR_FLUSH_ERR, kind & 0xff, 0, 0, 0,
			      false);
	}
	len = wqe_write(qp, wr, kind);
	if (kind & (WR_SEND | WR_KEY)) {
		if (kind & WR_KEY)
			mr_update(qp, wr);
		else if (qp->peer)
			status = send_deliver(qp, cq, qp->peer, wr, len);
	}
	if (!(wr->send_flags & IB_SEND_SIGNALED) && !qp->sig_all &&
	    likely(status == IB_WC_SUCCESS))
		return 0;
	return cq_put(cq, qp, wr->wr_id, status, kind & 0xff, len, 0, 0, false);
}

int kdnull_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		     const struct ib_send_wr **bad)
{
	struct kdnull_qp *qp = to_kdnull_qp(ibqp);
	struct kdnull_cq *cq = qp->scq;
	unsigned long flags;
	int ret = 0;

	spin_lock_irqsave(&cq->lock, flags);
	for (; wr; wr = wr->next) {
		ret = send_one(qp, cq, wr);
		if (unlikely(ret)) {
			*bad = wr;
			break;
		}
	}
	spin_unlock_irqrestore(&cq->lock, flags);
	return ret;
}

int kdnull_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		     const struct ib_recv_wr **bad)
{
	struct kdnull_qp *qp = to_kdnull_qp(ibqp);
	struct kdnull_cq *cq = qp->rcq;
	unsigned long flags;
	int ret = 0;

	spin_lock_irqsave(&cq->lock, flags);
	for (; wr; wr = wr->next) {
		if (unlikely(qp->dead))
			ret = cq_put(cq, qp, wr->wr_id, IB_WC_WR_FLUSH_ERR, IB_WC_RECV, 0, 0, 0,
				     false);
		else
			ret = rq_put(&qp->rq, wr);
		if (unlikely(ret)) {
			*bad = wr;
			break;
		}
	}
	spin_unlock_irqrestore(&cq->lock, flags);
	return ret;
}

int kdnull_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
			 const struct ib_recv_wr **bad)
{
	struct kdnull_srq *srq = to_kdnull_srq(ibsrq);
	unsigned long flags;
	int ret = 0;

	spin_lock_irqsave(&srq->lock, flags);
	for (; wr; wr = wr->next) {
		ret = rq_put(&srq->rq, wr);
		if (unlikely(ret)) {
			*bad = wr;
			break;
		}
	}
	spin_unlock_irqrestore(&srq->lock, flags);
	return ret;
}

int kdnull_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc)
{
	struct kdnull_cq *cq = to_kdnull_cq(ibcq);
	unsigned long flags;
	u32 tail, end;
	int n;

	spin_lock_irqsave(&cq->lock, flags);
	tail = cq->tail;
	n = min_t(u32, num, cq->head - tail);
	for (end = tail + n; tail != end; tail++, wc++) {
		const struct kdnull_cqe *cqe = &cq->ring[tail & cq->mask];

		wc->wr_id = cqe->wr_id;
		wc->status = cqe->status;
		wc->opcode = cqe->opcode;
		wc->vendor_err = 0;
		wc->byte_len = cqe->byte_len;
		wc->qp = cqe->qp;
		wc->ex.invalidate_rkey = cqe->ex;	/* or imm_data, of the same size */
		wc->src_qp = 0;
		wc->wc_flags = cqe->wc_flags;
		wc->pkey_index = 0;
		wc->port_num = 1;
	}
	cq->tail = tail;
	spin_unlock_irqrestore(&cq->lock, flags);
	return n;
}

int kdnull_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct kdnull_cq *cq = to_kdnull_cq(ibcq);
	unsigned long irq;
	int ret;

	spin_lock_irqsave(&cq->lock, irq);
	/* a second call may ask for more, not for less */
	if (cq->armed != IB_CQ_NEXT_COMP)
		cq->armed = flags & IB_CQ_SOLICITED_MASK;
	ret = (flags & IB_CQ_REPORT_MISSED_EVENTS) && cq->tail != cq->head;
	spin_unlock_irqrestore(&cq->lock, irq);
	return ret;
}

/* Let requests be posted. @peer: who receives the Sends, NULL: nobody. */
void kdnull_qp_live(struct kdnull_qp *qp, struct kdnull_qp *peer)
{
	spin_lock_irq(&qp->scq->lock);
	if (qp->mode == KDNULL_QP_IDLE) {
		qp->mode = KDNULL_QP_LIVE;
		qp->peer = peer;
	}
	spin_unlock_irq(&qp->scq->lock);
}

/* Flush what is posted, and what will be. */
void kdnull_qp_dead(struct kdnull_qp *qp)
{
	struct kdnull_recv recv;
	bool was_dead;

	spin_lock_irq(&qp->scq->lock);
	qp->mode = KDNULL_QP_DEAD;
	qp->peer = NULL;
	spin_unlock_irq(&qp->scq->lock);

	spin_lock_irq(&qp->rcq->lock);
	was_dead = qp->dead;
	qp->dead = true;
	while (!was_dead && !qp->srq && rq_take(&qp->rq, &recv))
		cq_put(qp->rcq, qp, recv.wr_id, IB_WC_WR_FLUSH_ERR, IB_WC_RECV, 0, 0, 0, false);
	spin_unlock_irq(&qp->rcq->lock);
	if (qp->srq && !was_dead) {
		set_bit(0, &qp->last_wqe);
		schedule_work(&qp->work);
	}
}
