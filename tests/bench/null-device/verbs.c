// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Control verbs of the device: attributes, and making and freeing of its objects. */
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <rdma/ib_mad.h>

#include "kdnull.h"

static int kdnull_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
			       struct ib_udata *udata)
{
	attr->device_cap_flags = IB_DEVICE_MEM_MGT_EXTENSIONS;
	attr->kernel_cap_flags = IBK_LOCAL_DMA_LKEY;
	attr->sys_image_guid = ibdev->node_guid;
	attr->page_size_cap = PAGE_SIZE;
	attr->max_mr_size = ~0ULL;
	attr->max_fast_reg_page_list_len = KDNULL_MAX_PAGES;
	attr->max_qp = BIT(20);
	attr->max_qp_wr = KDNULL_MAX_WR;
	attr->max_send_sge = KDNULL_MAX_SGE;
	attr->max_recv_sge = KDNULL_MAX_SGE;
	attr->max_sge_rd = KDNULL_MAX_SGE;
	attr->max_qp_rd_atom = KDNULL_MAX_READS;
	attr->max_qp_init_rd_atom = KDNULL_MAX_READS;
	attr->max_res_rd_atom = BIT(20);
	attr->max_cq = BIT(20);
	attr->max_cqe = KDNULL_MAX_CQE;
	attr->max_mr = BIT(20);
	attr->max_pd = BIT(20);
	attr->max_srq = BIT(20);
	attr->max_srq_wr = KDNULL_MAX_SRQ_WR;
	attr->max_srq_sge = KDNULL_MAX_SGE;
	return 0;
}

static int kdnull_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr)
{
	attr->gid_tbl_len = 1;
	attr->max_msg_sz = U32_MAX;
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = IB_MTU_4096;
	attr->state = IB_PORT_ACTIVE;
	attr->phys_state = IB_PORT_PHYS_STATE_LINK_UP;
	attr->port_cap_flags = IB_PORT_CM_SUP;
	attr->active_width = IB_WIDTH_4X;
	attr->active_speed = IB_SPEED_EDR;
	return 0;
}

static int kdnull_get_port_immutable(struct ib_device *ibdev, u32 port,
				     struct ib_port_immutable *immutable)
{
	immutable->gid_tbl_len = 1;
	immutable->core_cap_flags = RDMA_CORE_PORT_IWARP;
	return 0;
}

static int kdnull_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	return 0;
}

static int kdnull_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	return 0;
}

static void cq_tasklet(struct tasklet_struct *t)
{
	struct kdnull_cq *cq = from_tasklet(cq, t, tasklet);

	if (cq->ibcq.comp_handler)
		cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
}

/* Kernels differ in the last argument, which belongs to user space. */
static int kdnull_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr, void *unused)
{
	struct kdnull_cq *cq = to_kdnull_cq(ibcq);
	u32 size;

	if (attr->flags || !attr->cqe || attr->cqe > KDNULL_MAX_CQE)
		return -EINVAL;
	size = roundup_pow_of_two(attr->cqe);
	cq->ring = kvcalloc(size, sizeof(*cq->ring), GFP_KERNEL);
	if (!cq->ring)
		return -ENOMEM;
	spin_lock_init(&cq->lock);
	tasklet_setup(&cq->tasklet, cq_tasklet);
	cq->mask = size - 1;
	cq->depth = attr->cqe;
	ibcq->cqe = attr->cqe;
	return 0;
}

static int kdnull_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct kdnull_cq *cq = to_kdnull_cq(ibcq);

	tasklet_kill(&cq->tasklet);
	kvfree(cq->ring);
	return 0;
}

static int rq_init(struct kdnull_rq *rq, u32 depth, u32 max_sge)
{
	u32 size = roundup_pow_of_two(max(depth, 1U));

	rq->ring = kvcalloc(size, sizeof(*rq->ring), GFP_KERNEL);
	if (!rq->ring)
		return -ENOMEM;
	rq->mask = size - 1;
	rq->depth = depth;
	rq->max_sge = max_sge;
	return 0;
}

static int kdnull_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *attr,
			     struct ib_udata *udata)
{
	struct kdnull_srq *srq = to_kdnull_srq(ibsrq);

	if (attr->srq_type != IB_SRQT_BASIC)
		return -EOPNOTSUPP;
	if (!attr->attr.max_wr || attr->attr.max_wr > KDNULL_MAX_SRQ_WR ||
	    attr->attr.max_sge > KDNULL_MAX_SGE)
		return -EINVAL;
	spin_lock_init(&srq->lock);
	return rq_init(&srq->rq, attr->attr.max_wr, attr->attr.max_sge);
}

static int kdnull_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	kvfree(to_kdnull_srq(ibsrq)->rq.ring);
	return 0;
}

/* A post has broken the connection, or an SRQ gives no more Receives to the QP. */
static void qp_work(struct work_struct *work)
{
	struct kdnull_qp *qp = container_of(work, struct kdnull_qp, work);
	struct ib_event event = {
		.device = qp->ibqp.device,
		.element.qp = &qp->ibqp,
		.event = IB_EVENT_QP_LAST_WQE_REACHED,
	};

	kdnull_cm_break(qp);
	if (test_and_clear_bit(0, &qp->last_wqe) && qp->ibqp.event_handler)
		qp->ibqp.event_handler(&event, qp->ibqp.qp_context);
}

static int kdnull_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init,
			    struct ib_udata *udata)
{
	struct kdnull_dev *dev = to_kdnull_dev(ibqp->device);
	struct kdnull_qp *qp = to_kdnull_qp(ibqp);
	int ret;

	if (init->create_flags || init->qp_type != IB_QPT_RC)
		return -EOPNOTSUPP;
	if (init->cap.max_send_wr > KDNULL_MAX_WR || init->cap.max_recv_wr > KDNULL_MAX_WR ||
	    init->cap.max_send_sge > KDNULL_MAX_SGE ||
	    init->cap.max_recv_sge > KDNULL_MAX_SGE || init->cap.max_inline_data)
		return -EINVAL;
	qp->scq = to_kdnull_cq(init->send_cq);
	qp->rcq = to_kdnull_cq(init->recv_cq);
	qp->srq = init->srq ? to_kdnull_srq(init->srq) : NULL;
	qp->max_send_sge = init->cap.max_send_sge;
	qp->sig_all = init->sq_sig_type == IB_SIGNAL_ALL_WR;
	qp->cap = init->cap;
	qp->state = IB_QPS_INIT;
	refcount_set(&qp->ref, 1);
	init_completion(&qp->unused);
	INIT_WORK(&qp->work, qp_work);
	/* with an SRQ no Receive can be posted: the depth is 0 */
	ret = rq_init(&qp->rq, qp->srq ? 0 : init->cap.max_recv_wr, init->cap.max_recv_sge);
	if (ret)
		return ret;
	ret = xa_alloc_cyclic(&dev->qps, &ibqp->qp_num, qp, XA_LIMIT(1, 0xffffff),
			      &dev->next_qp, GFP_KERNEL);
	if (ret < 0) {
		kvfree(qp->rq.ring);
		return ret;
	}
	return 0;
}

/*
 * Connecting makes a QP live, and so does a consumer who wants to do without: his Sends
 * have no peer.
 */
static int kdnull_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
			    struct ib_udata *udata)
{
	struct kdnull_qp *qp = to_kdnull_qp(ibqp);

	if (!(mask & IB_QP_STATE))
		return 0;
	switch (attr->qp_state) {
	case IB_QPS_INIT:
	case IB_QPS_RTR:
		return 0;
	case IB_QPS_RTS:
		kdnull_cm_rts(qp);
		return 0;
	case IB_QPS_SQD:	/* how the connection manager asks for a graceful end */
	case IB_QPS_SQE:
	case IB_QPS_ERR:
		kdnull_cm_break(qp);
		return 0;
	default:
		return -EOPNOTSUPP;
	}
}

static int kdnull_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
			   struct ib_qp_init_attr *init)
{
	struct kdnull_qp *qp = to_kdnull_qp(ibqp);

	memset(attr, 0, sizeof(*attr));
	memset(init, 0, sizeof(*init));
	attr->qp_state = READ_ONCE(qp->state);
	attr->cur_qp_state = attr->qp_state;
	attr->cap = qp->cap;
	init->cap = qp->cap;
	init->sq_sig_type = qp->sig_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR;
	return 0;
}

/* Completions of the QP stay in its CQs. */
static int kdnull_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct kdnull_qp *qp = to_kdnull_qp(ibqp);

	xa_erase(&to_kdnull_dev(ibqp->device)->qps, ibqp->qp_num);
	kdnull_cm_break(qp);
	ibqp->device->ops.iw_rem_ref(ibqp);
	wait_for_completion(&qp->unused);
	cancel_work_sync(&qp->work);
	if (qp->linked)		/* a post of the peer's may be at it still */
		synchronize_rcu_expedited();
	kvfree(qp->rq.ring);
	return 0;
}

static struct ib_mr *mr_new(struct ib_pd *ibpd, u32 max_pages)
{
	struct kdnull_dev *dev = to_kdnull_dev(ibpd->device);
	u32 index;
	struct kdnull_mr *mr;
	int ret;

	mr = kzalloc(struct_size(mr, page, max_pages), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->max_pages = max_pages;
	ret = xa_alloc_cyclic(&dev->mrs, &index, mr, XA_LIMIT(1, KDNULL_MAX_KEY), &dev->next_mr,
			      GFP_KERNEL);
	if (ret < 0) {
		kfree(mr);
		return ERR_PTR(ret);
	}
	mr->key = index << 8;
	mr->ibmr.lkey = mr->key;
	mr->ibmr.rkey = mr->key;
	return &mr->ibmr;
}

static struct ib_mr *kdnull_get_dma_mr(struct ib_pd *ibpd, int access)
{
	struct ib_mr *ibmr = mr_new(ibpd, 0);

	if (!IS_ERR(ibmr))
		to_kdnull_mr(ibmr)->valid = true;
	return ibmr;
}

static struct ib_mr *kdnull_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type, u32 max_pages)
{
	if (type != IB_MR_TYPE_MEM_REG || max_pages > KDNULL_MAX_PAGES)
		return ERR_PTR(-EINVAL);
	return mr_new(ibpd, max_pages);
}

static int mr_set_page(struct ib_mr *ibmr, u64 addr)
{
	struct kdnull_mr *mr = to_kdnull_mr(ibmr);

	if (mr->pages == mr->max_pages)
		return -ENOMEM;
	mr->page[mr->pages++] = addr;
	return 0;
}

static int kdnull_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents,
			    unsigned int *offset)
{
	to_kdnull_mr(ibmr)->pages = 0;
	return ib_sg_to_pages(ibmr, sg, nents, offset, mr_set_page);
}

static int kdnull_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct kdnull_mr *mr = to_kdnull_mr(ibmr);

	xa_erase(&to_kdnull_dev(ibmr->device)->mrs, mr->key >> 8);
	kfree_rcu(mr, rcu);
	return 0;
}

/* The core takes a device without this for one that the kernel cannot use. */
static struct ib_mr *kdnull_no_user_mr(void)
{
	return ERR_PTR(-EOPNOTSUPP);
}

const struct ib_device_ops kdnull_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,

	.alloc_mr = kdnull_alloc_mr,
	.alloc_pd = kdnull_alloc_pd,
	.create_cq = (void *)kdnull_create_cq,
	.create_qp = kdnull_create_qp,
	.create_srq = kdnull_create_srq,
	.dealloc_pd = kdnull_dealloc_pd,
	.dereg_mr = kdnull_dereg_mr,
	.destroy_cq = kdnull_destroy_cq,
	.destroy_qp = kdnull_destroy_qp,
	.destroy_srq = kdnull_destroy_srq,
	.get_dma_mr = kdnull_get_dma_mr,
	.get_port_immutable = kdnull_get_port_immutable,
	.map_mr_sg = kdnull_map_mr_sg,
	.modify_qp = kdnull_modify_qp,
	.poll_cq = kdnull_poll_cq,
	.post_recv = kdnull_post_recv,
	.post_send = kdnull_post_send,
	.post_srq_recv = kdnull_post_srq_recv,
	.query_device = kdnull_query_device,
	.query_port = kdnull_query_port,
	.query_qp = kdnull_query_qp,
	.reg_user_mr = (void *)kdnull_no_user_mr,
	.req_notify_cq = kdnull_req_notify_cq,

	INIT_RDMA_OBJ_SIZE(ib_cq, kdnull_cq, ibcq),
	INIT_RDMA_OBJ_SIZE(ib_pd, kdnull_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_qp, kdnull_qp, ibqp),
	INIT_RDMA_OBJ_SIZE(ib_srq, kdnull_srq, ibsrq),
};
