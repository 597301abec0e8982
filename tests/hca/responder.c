// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What happens at the peer of a queue pair. The engine of the one who asks does it, with the
 * rx of the peer held, so that one message arrives after the other.
 */
#include "kdhca.h"

/*
 * The peer, with its rx held, if it takes what comes from @qp. One that has failed of a request
 * of @qp still answers the Reads before it: on a wire it has done so.
 */
static struct kdhca_qp *peer_lock(struct kdhca_qp *qp)
{
	struct kdhca_qp *peer = kdhca_qp_get(qp->attr.dest_qp_num);
	bool ok;

	if (!peer)
		return NULL;
	mutex_lock(&peer->rx);
	ok = (peer->state == IB_QPS_RTR || peer->state == IB_QPS_RTS ||
	      peer->state == IB_QPS_SQD || (peer->state == IB_QPS_ERR && qp->nak)) &&
	     peer->attr.dest_qp_num == qp->ibqp.qp_num &&
	     kdhca_dev_up(qp->dev) && kdhca_dev_up(peer->dev);
	if (ok && !qp->dev->set.iwarp && (rdma_ah_get_ah_flags(&qp->attr.ah_attr) & IB_AH_GRH))
		ok = kdhca_dev_has_gid(peer->dev, &qp->attr.ah_attr.grh.dgid);
	if (!ok) {
		mutex_unlock(&peer->rx);
		kdhca_qp_put(peer);
		return NULL;
	}
	if (!peer->established) {
		peer->established = true;
		if (peer->state == IB_QPS_RTR && peer->dev->set.comm_est)
			kdhca_irq_event(&peer->irq, IB_EVENT_COMM_EST);
	}
	return peer;
}

static void peer_unlock(struct kdhca_qp *peer)
{
	mutex_unlock(&peer->rx);
	kdhca_qp_put(peer);
}

/* The peer fails, and says so; whoever has asked is told @status. */
static enum kdhca_answer peer_fails(struct kdhca_qp *peer, struct kdhca_wqe *wqe,
				    enum ib_event_type event, enum ib_wc_status status)
{
	kdhca_qp_error(peer);
	kdhca_irq_event(&peer->irq, event);
	wqe->status = status;
	return KDHCA_NAK;
}

static bool peer_allows(const struct kdhca_qp *peer, int access)
{
	return peer->dev->set.iwarp || (peer->attr.qp_access_flags & access);
}

/* What a request brings along. Whether its keys are good. */
static bool source_get(struct kdhca_qp *qp, struct kdhca_wqe *wqe)
{
	if (!(wqe->flags & IB_SEND_INLINE))
		return !kdhca_spans_get(&qp->from, qp->ibqp.pd, wqe->sge, wqe->num_sge, 0);
	qp->from.n = 1;
	qp->from.span[0] = (struct kdhca_span){
		.dev = qp->dev,
		.inl = wqe->inl,
		.length = wqe->length,
	};
	return true;
}

static void both_put(struct kdhca_qp *qp)
{
	kdhca_spans_put(&qp->to);
	kdhca_spans_put(&qp->from);
}

/* A Receive of the peer's ends with an error, and so does the peer. */
static enum kdhca_answer recv_fails(struct kdhca_qp *qp, struct kdhca_qp *peer,
				    struct kdhca_wqe *wqe, enum ib_wc_status here,
				    enum ib_wc_status there)
{
	struct kdhca_cqe cqe = { .status = here };

	kdhca_recv_done(peer, qp->rqe, &cqe, true);
	return peer_fails(peer, wqe, IB_EVENT_QP_REQ_ERR, there);
}

static u64 recv_room(const struct kdhca_rqe *rqe)
{
	u64 room = 0;
	u32 i;

	for (i = 0; i < rqe->num_sge; i++)
		room += rqe->sge[i].length;
	return room;
}

static enum kdhca_answer no_recv(struct kdhca_qp *qp, struct kdhca_qp *peer, struct kdhca_wqe *wqe)
{
	if (!peer->dev->set.iwarp) {
		qp->rnr_timer = peer->attr.min_rnr_timer & 31;
		return KDHCA_RNR;
	}
	return peer_fails(peer, wqe, IB_EVENT_QP_FATAL, IB_WC_REM_OP_ERR);
}

static enum kdhca_answer send_in(struct kdhca_qp *qp, struct kdhca_qp *peer, struct kdhca_wqe *wqe)
{
	struct kdhca_cqe cqe = { .opcode = IB_WC_RECV, .byte_len = wqe->length };
	int ret;

	if (!kdhca_recv_take(peer, qp->rqe))
		return no_recv(qp, peer, wqe);
	if (recv_room(qp->rqe) < wqe->length)
		return recv_fails(qp, peer, wqe, IB_WC_LOC_LEN_ERR, IB_WC_REM_INV_REQ_ERR);
	ret = kdhca_spans_get(&qp->to, peer->srq ? peer->srq->ibsrq.pd : peer->ibqp.pd,
			      qp->rqe->sge, qp->rqe->num_sge, IB_ACCESS_LOCAL_WRITE);
	if (!ret)
		ret = kdhca_copy(&qp->to, &qp->from, wqe->length);
	both_put(qp);
	if (ret)
		return recv_fails(qp, peer, wqe, IB_WC_LOC_PROT_ERR, IB_WC_REM_OP_ERR);
	cqe.ex = wqe->ex;
	if (wqe->opcode == IB_WR_SEND_WITH_IMM)
		cqe.wc_flags = IB_WC_WITH_IMM;
	if (wqe->opcode == IB_WR_SEND_WITH_INV) {
		if (kdhca_mr_invalidate(peer, wqe->ex, true))
			return recv_fails(qp, peer, wqe, IB_WC_LOC_PROT_ERR, IB_WC_REM_ACCESS_ERR);
		cqe.wc_flags = IB_WC_WITH_INVALIDATE;
	}
	kdhca_recv_done(peer, qp->rqe, &cqe, wqe->flags & IB_SEND_SOLICITED);
	return KDHCA_ACK;
}

static enum kdhca_answer write_in(struct kdhca_qp *qp, struct kdhca_qp *peer,
				  struct kdhca_wqe *wqe)
{
	struct kdhca_cqe cqe = {
		.opcode = IB_WC_RECV_RDMA_WITH_IMM,
		.byte_len = wqe->length,
		.wc_flags = IB_WC_WITH_IMM,
		.ex = wqe->ex,
	};
	bool imm = wqe->opcode == IB_WR_RDMA_WRITE_WITH_IMM, taken = false;
	int ret = 0;

	if (!peer_allows(peer, IB_ACCESS_REMOTE_WRITE))
		return peer_fails(peer, wqe, IB_EVENT_QP_REQ_ERR, IB_WC_REM_INV_REQ_ERR);
	qp->to.n = 0;
	if (wqe->length) {
		ret = kdhca_span_get(&qp->to.span[0], peer->ibqp.pd, wqe->rkey, wqe->remote_addr,
				     wqe->length, IB_ACCESS_REMOTE_WRITE);
		qp->to.n = !ret;
	}
	if (!ret && imm) {
		taken = kdhca_recv_take(peer, qp->rqe);
		if (!taken)
			return no_recv(qp, peer, wqe);
	}
	if (!ret)
		ret = kdhca_copy(&qp->to, &qp->from, wqe->length);
	if (ret && taken) {
		cqe = (struct kdhca_cqe){ .status = IB_WC_WR_FLUSH_ERR };
		kdhca_recv_done(peer, qp->rqe, &cqe, true);
	}
	if (ret)
		return peer_fails(peer, wqe, IB_EVENT_QP_ACCESS_ERR, IB_WC_REM_ACCESS_ERR);
	if (imm)
		kdhca_recv_done(peer, qp->rqe, &cqe, wqe->flags & IB_SEND_SOLICITED);
	return KDHCA_ACK;
}

/* A Send or Write arrives. */
enum kdhca_answer kdhca_deliver(struct kdhca_qp *qp, struct kdhca_wqe *wqe)
{
	enum kdhca_answer answer;
	struct kdhca_qp *peer;

	if (!source_get(qp, wqe)) {
		wqe->status = IB_WC_LOC_PROT_ERR;
		return KDHCA_NAK;
	}
	peer = peer_lock(qp);
	if (!peer) {
		both_put(qp);
		return KDHCA_NOBODY;
	}
	if (wqe->opcode == IB_WR_RDMA_WRITE || wqe->opcode == IB_WR_RDMA_WRITE_WITH_IMM)
		answer = write_in(qp, peer, wqe);
	else
		answer = send_in(qp, peer, wqe);
	both_put(qp);
	peer_unlock(peer);
	return answer;
}

/* What a Read reads, if it may. */
static enum kdhca_answer read_source(struct kdhca_qp *qp, struct kdhca_qp *peer,
				     struct kdhca_wqe *wqe)
{
	qp->from.n = 0;
	if (!wqe->length)
		return KDHCA_ACK;
	if (kdhca_span_get(&qp->from.span[0], peer->ibqp.pd, wqe->rkey, wqe->remote_addr,
			   wqe->length, IB_ACCESS_REMOTE_READ))
		return peer_fails(peer, wqe, IB_EVENT_QP_ACCESS_ERR, IB_WC_REM_ACCESS_ERR);
	qp->from.n = 1;
	return KDHCA_ACK;
}

/* A Read arrives. KDHCA_ACK: the peer has a place for it until it is answered. */
enum kdhca_answer kdhca_read_ask(struct kdhca_qp *qp, struct kdhca_wqe *wqe)
{
	enum kdhca_answer answer;
	struct kdhca_qp *peer;

	if (!qp->attr.max_rd_atomic) {
		wqe->status = IB_WC_LOC_QP_OP_ERR;
		return KDHCA_NAK;
	}
	peer = peer_lock(qp);
	if (!peer)
		return KDHCA_NOBODY;
	if (qp->reading >= peer->attr.max_dest_rd_atomic ||
	    !peer_allows(peer, IB_ACCESS_REMOTE_READ))
		answer = peer_fails(peer, wqe, IB_EVENT_QP_REQ_ERR, IB_WC_REM_INV_REQ_ERR);
	else
		answer = read_source(qp, peer, wqe);
	kdhca_spans_put(&qp->from);
	peer_unlock(peer);
	return answer;
}

/* A Read is answered. */
enum kdhca_answer kdhca_read_answer(struct kdhca_qp *qp, struct kdhca_wqe *wqe)
{
	/* iWARP: the answer is a Write of the peer's */
	int access = qp->dev->set.iwarp ? IB_ACCESS_REMOTE_WRITE : IB_ACCESS_LOCAL_WRITE;
	struct kdhca_qp *peer = peer_lock(qp);
	enum kdhca_answer answer;

	if (!peer)
		return KDHCA_NOBODY;
	answer = read_source(qp, peer, wqe);
	if (answer == KDHCA_ACK &&
	    (kdhca_spans_get(&qp->to, qp->ibqp.pd, wqe->sge, wqe->num_sge, access) ||
	     kdhca_copy(&qp->to, &qp->from, wqe->length))) {
		wqe->status = IB_WC_LOC_PROT_ERR;
		answer = KDHCA_NAK;
	}
	both_put(qp);
	peer_unlock(peer);
	if (answer == KDHCA_ACK && wqe->opcode == IB_WR_RDMA_READ_WITH_INV &&
	    kdhca_mr_invalidate(qp, wqe->sge[0].lkey, false)) {
		wqe->status = IB_WC_LOC_PROT_ERR;
		answer = KDHCA_NAK;
	}
	return answer;
}

/* The Receives of a QP in error come back. */
void kdhca_flush_recvs(struct kdhca_qp *qp)
{
	struct kdhca_cqe cqe = { .status = IB_WC_WR_FLUSH_ERR };

	mutex_lock(&qp->rx);
	while (!qp->srq && kdhca_rq_take(&qp->rq, qp->rqe))
		kdhca_recv_done(qp, qp->rqe, &cqe, true);
	if (qp->srq && !qp->last_told) {
		qp->last_told = true;
		kdhca_irq_event(&qp->irq, IB_EVENT_QP_LAST_WQE_REACHED);
	}
	mutex_unlock(&qp->rx);
}
