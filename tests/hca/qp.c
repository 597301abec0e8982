// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Queue pairs: making, changing, freeing them. What they do is in engine.c and responder.c. */
#include <linux/log2.h>
#include <linux/slab.h>

#include "kdhca.h"

#define MAD_QPN		1
#define FIRST_QPN	2
#define UNIT		64		/* bytes of a send queue whose size depends on segments */

DEFINE_XARRAY_ALLOC(kdhca_qps);		/* by number, those of all devices */
static u32 next_qpn;

static void qp_handler(struct kdhca_irq *irq)
{
	struct kdhca_qp *qp = container_of(irq, struct kdhca_qp, irq);
	struct ib_event event = { .device = qp->ibqp.device, .element.qp = &qp->ibqp };

	while (kdhca_irq_next(irq, &event)) {
		if (qp->ibqp.event_handler)
			qp->ibqp.event_handler(&event, qp->ibqp.qp_context);
	}
}

/* There is something to do for the engine. Context: any. */
void kdhca_qp_kick(struct kdhca_qp *qp)
{
	mod_delayed_work(kdhca_wq, &qp->work, 0);
}

/* The QP of a number, to be put, or NULL. */
struct kdhca_qp *kdhca_qp_get(u32 number)
{
	struct kdhca_qp *qp;

	rcu_read_lock();
	qp = xa_load(&kdhca_qps, number);
	if (qp && !refcount_inc_not_zero(&qp->ref))
		qp = NULL;
	rcu_read_unlock();
	return qp;
}

void kdhca_qp_put(struct kdhca_qp *qp)
{
	if (refcount_dec_and_test(&qp->ref))
		complete(&qp->unused);
}

/* The first QP of a device from @number on, to be put, or NULL; @number is its own then. */
struct kdhca_qp *kdhca_qp_next(struct kdhca_dev *dev, u32 *number)
{
	unsigned long index = *number;
	struct kdhca_qp *qp;

	rcu_read_lock();
	xa_for_each_start(&kdhca_qps, index, qp, *number) {
		if (qp->dev != dev || !refcount_inc_not_zero(&qp->ref))
			continue;
		*number = index;
		break;
	}
	rcu_read_unlock();
	return qp;
}

/*
 * The QP fails, or is told to.
 * What has been posted is flushed by the engine.
 */
void kdhca_qp_error(struct kdhca_qp *qp)
{
	lockdep_assert_held(&qp->rx);
	WRITE_ONCE(qp->state, IB_QPS_ERR);
	kdhca_qp_kick(qp);
}

/* As many units as a request with so many segments takes. */
static u32 wqe_units(u32 sges, u32 inl)
{
	u32 bytes = 32 + max_t(u32, 16 * sges, inl);

	return roundup_pow_of_two(DIV_ROUND_UP(bytes, UNIT));
}

static int qp_check_cap(const struct kdhca_set *set, const struct ib_qp_init_attr *init)
{
	const struct ib_qp_cap *cap = &init->cap;

	if (cap->max_send_wr > set->max_qp_wr || cap->max_send_sge > set->max_send_sge ||
	    cap->max_inline_data > set->max_inline)
		return -EINVAL;
	if (!init->srq &&
	    (cap->max_recv_wr > set->max_qp_wr || cap->max_recv_sge > set->max_recv_sge))
		return -EINVAL;
	if (set->sq_units && roundup_pow_of_two(max(cap->max_send_wr, 1U)) *
			     wqe_units(cap->max_send_sge, cap->max_inline_data) > set->sq_units)
		return -ENOMEM;
	return 0;
}

static int sq_init(struct kdhca_sq *sq, u32 depth, u32 max_sge, u32 inl)
{
	u32 size = roundup_pow_of_two(max(depth, 1U)), i;
	struct kdhca_wqe *wqe;

	spin_lock_init(&sq->lock);
	sq->stride = ALIGN(struct_size(wqe, sge, max_sge) + inl, 8);
	sq->ring = kvcalloc(size, sq->stride, GFP_KERNEL);
	if (!sq->ring)
		return -ENOMEM;
	sq->mask = size - 1;
	sq->depth = depth;
	sq->max_sge = max_sge;
	for (i = 0; i < size; i++) {
		wqe = kdhca_wqe(sq, i);
		wqe->inl = (u8 *)&wqe->sge[max_sge];
	}
	return 0;
}

static int qp_number(struct kdhca_qp *qp)
{
	if (qp->ibqp.qp_type == IB_QPT_GSI) {
		qp->ibqp.qp_num = MAD_QPN;
		mutex_lock(&qp->dev->gsi_lock);
		qp->dev->gsi = qp;
		mutex_unlock(&qp->dev->gsi_lock);
		return 0;
	}
	return xa_alloc_cyclic(&kdhca_qps, &qp->ibqp.qp_num, qp, XA_LIMIT(FIRST_QPN, 0xffffff),
			       &next_qpn, GFP_KERNEL);
}

int kdhca_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init, struct ib_udata *udata)
{
	struct kdhca_dev *dev = to_dev(ibqp->device);
	bool mad = init->qp_type == IB_QPT_GSI;
	struct kdhca_qp *qp = to_qp(ibqp);
	int ret = mad ? 0 : kdhca_sleeps(dev, KDHCA_CREATE);

	if (ret)
		return ret;
	if (init->create_flags || (!mad && init->qp_type != IB_QPT_RC) ||
	    (mad && dev->set.iwarp))
		return -EOPNOTSUPP;
	ret = mad ? 0 : qp_check_cap(&dev->set, init);
	if (ret)
		return ret;
	if (dev->set.round && !mad) {
		init->cap.max_send_wr = roundup_pow_of_two(max(init->cap.max_send_wr, 1U));
		init->cap.max_recv_wr = roundup_pow_of_two(max(init->cap.max_recv_wr, 1U));
	}
	if (init->srq) {
		init->cap.max_recv_wr = 0;
		init->cap.max_recv_sge = 0;
	}
	qp->dev = dev;
	qp->scq = to_cq(init->send_cq);
	qp->rcq = to_cq(init->recv_cq);
	qp->srq = init->srq ? to_srq(init->srq) : NULL;
	qp->cap = init->cap;
	qp->sig_all = init->sq_sig_type == IB_SIGNAL_ALL_WR;
	qp->state = dev->set.iwarp ? IB_QPS_INIT : IB_QPS_RESET;
	mutex_init(&qp->rx);
	INIT_DELAYED_WORK(&qp->work, kdhca_engine);
	kdhca_irq_init(&qp->irq, dev->set.event_ctx, qp_handler);
	refcount_set(&qp->ref, 1);
	init_completion(&qp->unused);
	ret = -ENOMEM;
	qp->rqe = kzalloc(struct_size(qp->rqe, sge, KDHCA_SEGS), GFP_KERNEL);
	if (!qp->rqe)
		return ret;
	ret = sq_init(&qp->sq, init->cap.max_send_wr, init->cap.max_send_sge,
		      init->cap.max_inline_data);
	if (!ret)
		ret = kdhca_rq_init(&qp->rq, init->cap.max_recv_wr, init->cap.max_recv_sge);
	if (!ret)
		ret = qp_number(qp);
	if (ret < 0) {
		kvfree(qp->rq.ring);
		kvfree(qp->sq.ring);
		kfree(qp->rqe);
		return ret;
	}
	return 0;
}

/* Where the peer is: what a device may refuse of it. */
static int qp_check_path(struct kdhca_qp *qp, const struct ib_qp_attr *attr)
{
	const struct kdhca_set *set = &qp->dev->set;
	const struct rdma_ah_attr *ah = &attr->ah_attr;

	if (!(rdma_ah_get_ah_flags(ah) & IB_AH_GRH))
		return set->grh ? -EINVAL : 0;
	if (!set->loop && kdhca_dev_has_gid(qp->dev, &rdma_ah_read_grh(ah)->dgid))
		return -EINVAL;
	if (!set->self && attr->dest_qp_num == qp->ibqp.qp_num)
		return -EINVAL;
	return 0;
}

static int qp_check_attr(struct kdhca_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	const struct kdhca_set *set = &qp->dev->set;

	if ((mask & IB_QP_MAX_QP_RD_ATOMIC) && attr->max_rd_atomic > set->rd_out)
		return -EINVAL;
	if ((mask & IB_QP_MAX_DEST_RD_ATOMIC) && attr->max_dest_rd_atomic > set->rd_in)
		return -EINVAL;
	if ((mask & IB_QP_PORT) && attr->port_num != 1)
		return -EINVAL;
	if ((mask & IB_QP_PKEY_INDEX) && attr->pkey_index)
		return -EINVAL;
	return mask & IB_QP_AV && qp->ibqp.qp_type == IB_QPT_RC ? qp_check_path(qp, attr) : 0;
}

#define KEEP(bit, field) \
	{ bit, offsetof(struct ib_qp_attr, field), sizeof_field(struct ib_qp_attr, field) }

static const struct {
	int bit;
	size_t at, size;
} qp_kept[] = {
	KEEP(IB_QP_ACCESS_FLAGS, qp_access_flags),
	KEEP(IB_QP_PKEY_INDEX, pkey_index),
	KEEP(IB_QP_PORT, port_num),
	KEEP(IB_QP_QKEY, qkey),
	KEEP(IB_QP_AV, ah_attr.type),
	KEEP(IB_QP_AV, ah_attr.ah_flags),
	KEEP(IB_QP_AV, ah_attr.grh.dgid),
	KEEP(IB_QP_PATH_MTU, path_mtu),
	KEEP(IB_QP_TIMEOUT, timeout),
	KEEP(IB_QP_RETRY_CNT, retry_cnt),
	KEEP(IB_QP_RNR_RETRY, rnr_retry),
	KEEP(IB_QP_RQ_PSN, rq_psn),
	KEEP(IB_QP_SQ_PSN, sq_psn),
	KEEP(IB_QP_MAX_QP_RD_ATOMIC, max_rd_atomic),
	KEEP(IB_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic),
	KEEP(IB_QP_MIN_RNR_TIMER, min_rnr_timer),
	KEEP(IB_QP_DEST_QPN, dest_qp_num),
};

static void qp_keep_attr(struct kdhca_qp *qp, const struct ib_qp_attr *attr, int mask)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(qp_kept); i++)
		if (mask & qp_kept[i].bit)
			memcpy((void *)&qp->attr + qp_kept[i].at, (void *)attr + qp_kept[i].at,
			       qp_kept[i].size);
}

/* Everything posted is forgotten. */
static void qp_reset(struct kdhca_qp *qp)
{
	mutex_lock(&qp->rx);
	WRITE_ONCE(qp->state, IB_QPS_RESET);
	mutex_unlock(&qp->rx);
	cancel_delayed_work_sync(&qp->work);
	kdhca_cq_purge(qp->scq, qp);
	if (qp->rcq != qp->scq)
		kdhca_cq_purge(qp->rcq, qp);
	kdhca_rq_reset(&qp->rq);
	spin_lock_irq(&qp->sq.lock);
	qp->sq.head = 0;
	qp->sq.next = 0;
	qp->sq.done = 0;
	qp->sq.freed = 0;
	atomic_set(&qp->sq.tail, 0);
	spin_unlock_irq(&qp->sq.lock);
	qp->reading = 0;
	qp->waits = false;
	qp->nak = false;
	qp->established = false;
	qp->last_told = false;
}

static int qp_modify_ib(struct kdhca_qp *qp, struct ib_qp_attr *attr, int mask)
{
	enum ib_qp_state cur = READ_ONCE(qp->state), next;
	int ret = 0;

	if (mask & IB_QP_CUR_STATE)
		cur = attr->cur_qp_state;
	next = mask & IB_QP_STATE ? attr->qp_state : cur;
	if (!ib_modify_qp_is_ok(cur, next, qp->ibqp.qp_type, mask))
		return -EINVAL;
	qp_keep_attr(qp, attr, mask);
	if (!(mask & IB_QP_STATE))
		return 0;
	if (next == IB_QPS_RESET) {
		qp_reset(qp);
		return 0;
	}
	mutex_lock(&qp->rx);
	if (next == IB_QPS_ERR) {
		kdhca_qp_error(qp);
	} else if (READ_ONCE(qp->state) == IB_QPS_ERR) {	/* it has failed meanwhile */
		ret = -EINVAL;
	} else {
		WRITE_ONCE(qp->state, next);
		qp->retries = qp->attr.retry_cnt;
		qp->rnr_retries = qp->attr.rnr_retry;
		kdhca_qp_kick(qp);
	}
	mutex_unlock(&qp->rx);
	return ret;
}

/* The connection manager moves these; a consumer may only end them. */
static int qp_modify_iw(struct kdhca_qp *qp, struct ib_qp_attr *attr, int mask)
{
	if (mask & IB_QP_ACCESS_FLAGS && !qp->dev->set.access_late &&
	    READ_ONCE(qp->state) > IB_QPS_INIT)
		return -EIO;
	qp_keep_attr(qp, attr, mask & IB_QP_ACCESS_FLAGS);
	if (!(mask & IB_QP_STATE))
		return 0;
	switch (attr->qp_state) {
	case IB_QPS_SQD:
	case IB_QPS_SQE:
		mutex_lock(&qp->rx);
		if (qp->state == IB_QPS_RTS) {
			WRITE_ONCE(qp->state, IB_QPS_SQD);
			kdhca_qp_kick(qp);
		}
		mutex_unlock(&qp->rx);
		return 0;
	case IB_QPS_ERR:
		kdhca_iw_break(qp);
		return 0;
	default:
		return 0;
	}
}

int kdhca_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	struct kdhca_qp *qp = to_qp(ibqp);
	int ret = 0;

	if (ibqp->qp_type == IB_QPT_RC) {
		ret = kdhca_sleeps(qp->dev, KDHCA_MODIFY);
		/* what ends a QP does not fail: a device that could not has failed itself */
		if (mask & IB_QP_STATE && attr->qp_state == IB_QPS_ERR)
			ret = 0;
	}
	if (!ret)
		ret = qp_check_attr(qp, attr, mask);
	if (ret)
		return ret;
	return qp->dev->set.iwarp ? qp_modify_iw(qp, attr, mask) : qp_modify_ib(qp, attr, mask);
}

int kdhca_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		   struct ib_qp_init_attr *init)
{
	struct kdhca_qp *qp = to_qp(ibqp);

	memset(init, 0, sizeof(*init));
	*attr = qp->attr;
	attr->qp_state = READ_ONCE(qp->state);
	attr->cur_qp_state = attr->qp_state;
	attr->cap = qp->cap;
	init->cap = qp->cap;
	init->sq_sig_type = qp->sig_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR;
	return 0;
}

int kdhca_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct kdhca_qp *qp = to_qp(ibqp);

	if (ibqp->qp_type == IB_QPT_RC) {
		kdhca_sleeps(qp->dev, KDHCA_DESTROY);
		xa_erase(&kdhca_qps, ibqp->qp_num);
		if (qp->dev->set.iwarp)
			kdhca_iw_break(qp);
	} else {
		mutex_lock(&qp->dev->gsi_lock);
		qp->dev->gsi = NULL;
		mutex_unlock(&qp->dev->gsi_lock);
	}
	kdhca_qp_put(qp);
	wait_for_completion(&qp->unused);
	synchronize_rcu_expedited();
	qp_reset(qp);
	kdhca_irq_kill(&qp->irq);
	kvfree(qp->rq.ring);
	kvfree(qp->sq.ring);
	kfree(qp->rqe);
	return 0;
}
