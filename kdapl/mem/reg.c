// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The registration QP of a Protection Zone.
 *
 * Fast registration is a work request and needs a connected QP on the right
 * PD, but an LMR belongs to no connection. So every PD gets a QP of its own,
 * built when the first LMR needs it (D-21):
 *
 * InfiniBand and RoCE: one QP connected to itself by hand, without CM, path or
 * IP address. It never sends a packet. If the device refuses that, two QPs are
 * connected to each other in the same way. If it refuses any path to its own port,
 * there is no registration QP, and only the QPs of connections register memory.
 *
 * iWARP: a pair of QPs connected over the port's own address, since an iWARP QP
 * needs a socket. The listener accepts one request only, from its own address and
 * with a random nonce, and is destroyed before the pair is used.
 *
 * None of these QPs gives any remote access, except that the two of a pair on cxgb4 give
 * it to each other. Requests are checked before they are posted, since one bad request
 * kills the QP. If it fails nevertheless (the only
 * port of a pair goes down), another attempt builds a new one, once.
 */
#include <linux/random.h>
#include <linux/rcupdate.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "mem.h"
#include "../core/cm_reject.h"

#define REG_TIMEOUT	(5 * HZ)
#define REG_DEPTH	4

/**
 * struct kdapl_reg - registration QP
 * @dev: device of the listener; not set without one
 * @cq: completions of both QPs, in softirq
 * @qp: the QP that is posted on, and its peer if it has one
 * @id: cm_ids of the pair: active, passive
 * @listener: only while the pair is being built
 * @routed: the route of the active side is resolved
 * @up: both sides are connected
 * @sides: sides connected so far
 * @failed: an event has reported that the pair cannot be connected
 * @no_path: the device has refused a path to its own port, by any QP
 * @door: keeps others off the listener
 */
struct kdapl_reg {
	struct kdapl_device *dev;
	struct ib_cq *cq;
	struct ib_qp *qp[2];
	struct rdma_cm_id *id[2];
	struct rdma_cm_id *listener;
	struct completion routed;
	struct completion up;
	atomic_t sides;
	bool failed;
	bool no_path;
	struct kdapl_reg_door door;
};

struct reg_op {
	struct ib_cqe cqe;
	struct completion done;
	enum ib_wc_status status;
};

static void reg_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct reg_op *op = container_of(wc->wr_cqe, struct reg_op, cqe);

	op->status = wc->status;
	complete(&op->done);
}

static void reg_free(struct kdapl_reg *reg)
{
	int i;

	if (!reg)
		return;
	if (reg->listener)
		rdma_destroy_id(reg->listener);
	for (i = 0; i < 2; i++) {
		if (reg->id[i])
			rdma_destroy_id(reg->id[i]);
	}
	for (i = 0; i < 2; i++) {
		if (reg->qp[i])
			ib_destroy_qp(reg->qp[i]);
	}
	if (reg->cq) {
		/*
		 * ib_free_cq() waits until the core's handler has taken all completions, but not
		 * until it has armed the CQ. Nothing completes any more, so no other run follows.
		 */
		synchronize_rcu();
		ib_free_cq(reg->cq);
	}
	kfree(reg);
}

/**
 * kdapl_reg_destroy - free the registration QP of a PD
 * @pd: the PD; pd->lock held
 *
 * Context: may sleep.
 */
void kdapl_reg_destroy(struct kdapl_pd *pd)
{
	lockdep_assert_held(&pd->lock);
	reg_free(pd->reg);
	pd->reg = NULL;
}

static int reg_create_qp(struct kdapl_pd *pd, struct kdapl_reg *reg, int which)
{
	struct ib_qp_init_attr init = {
		.send_cq = reg->cq,
		.recv_cq = reg->cq,
		.cap = {
			.max_send_wr = REG_DEPTH,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
		.port_num = pd->port,
	};
	struct ib_qp_attr attr = { .qp_state = IB_QPS_INIT, .port_num = pd->port };
	struct ib_qp *qp = ib_create_qp(pd->pd, &init);

	if (IS_ERR(qp))
		return PTR_ERR(qp);
	reg->qp[which] = qp;
	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			    IB_QP_ACCESS_FLAGS);
}

/* A GID of the port; on RoCE one with a netdev, whose MAC is the destination. */
static int reg_own_gid(struct kdapl_pd *pd, struct rdma_ah_attr *ah, int gids)
{
	bool roce = ah->type == RDMA_AH_ATTR_TYPE_ROCE, found;
	const struct ib_gid_attr *gid;
	struct net_device *ndev;
	int i;

	for (i = 0; i < gids; i++) {
		gid = rdma_get_gid_attr(pd->dev->ibdev, pd->port, i);
		if (IS_ERR(gid))
			continue;
		rcu_read_lock();
		ndev = rcu_dereference(gid->ndev);
		if (roce && ndev)
			memcpy(ah->roce.dmac, ndev->dev_addr, ETH_ALEN);
		found = !roce || ndev;
		rcu_read_unlock();
		if (found)
			rdma_ah_set_grh(ah, (union ib_gid *)&gid->gid, 0, i, 64, 0);
		rdma_put_gid_attr(gid);
		if (found)
			return 0;
	}
	return -EADDRNOTAVAIL;
}

/* The address of the port itself: a LID, a GID or, where ports share a LID, both. */
static int reg_own_address(struct kdapl_pd *pd, struct rdma_ah_attr *ah)
{
	struct ib_device *ibdev = pd->dev->ibdev;
	struct ib_port_attr port;

	kdapl_port_attr(pd->dev, pd->port, &port);
	ah->type = rdma_ah_find_type(ibdev, pd->port);
	rdma_ah_set_port_num(ah, pd->port);
	if (ah->type != RDMA_AH_ATTR_TYPE_ROCE) {
		rdma_ah_set_dlid(ah, port.lid);
		if (!rdma_is_grh_required(ibdev, pd->port))
			return 0;
	}
	return reg_own_gid(pd, ah, port.gid_tbl_len);
}

/* Connect a QP to one of the same port, by hand. */
static int reg_connect_to(struct ib_qp *qp, u32 peer, const struct rdma_ah_attr *ah)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_RTR,
		.ah_attr = *ah,
		.path_mtu = IB_MTU_256,	/* fits every link; nothing is ever sent */
		.dest_qp_num = peer,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
	};
	int ret;

	ret = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
			   IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
	if (ret)
		return ret;
	attr.qp_state = IB_QPS_RTS;
	attr.timeout = 14;
	attr.retry_cnt = 6;
	attr.rnr_retry = 6;
	attr.max_rd_atomic = 1;
	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT |
			    IB_QP_RNR_RETRY | IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC);
}

/* Connect two QPs to each other, on a device that refuses to connect one to itself. */
static int reg_connect_two(struct kdapl_pd *pd, struct kdapl_reg *reg,
			   const struct rdma_ah_attr *ah)
{
	int ret = 0, i;

	ib_destroy_qp(reg->qp[0]);
	reg->qp[0] = NULL;
	for (i = 0; i < 2 && !ret; i++)
		ret = reg_create_qp(pd, reg, i);
	if (ret)
		return ret;
	for (i = 0; i < 2 && !ret; i++)
		ret = reg_connect_to(reg->qp[i], reg->qp[!i]->qp_num, ah);
	reg->no_path = ret;
	return ret;
}

static int reg_connect_self(struct kdapl_pd *pd, struct kdapl_reg *reg)
{
	struct rdma_ah_attr ah = {};
	int ret;

	ret = reg_own_address(pd, &ah);
	if (!ret)
		ret = reg_create_qp(pd, reg, 0);
	if (ret)
		return ret;
	if (reg_connect_to(reg->qp[0], reg->qp[0]->qp_num, &ah))
		ret = reg_connect_two(pd, reg, &ah);
	return ret;
}

static void reg_side_up(struct kdapl_reg *reg)
{
	if (atomic_inc_return(&reg->sides) == 2)
		complete(&reg->up);
}

static bool reg_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET6)
		return !memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr,
			       &((const struct sockaddr_in6 *)b)->sin6_addr,
			       sizeof(struct in6_addr));
	return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
	       ((const struct sockaddr_in *)b)->sin_addr.s_addr;
}

/**
 * kdapl_reg_admits - is this the request that the listener of a pair waits for?
 * @door: of the pair
 * @from: address of the peer
 * @pdata: private data of the request
 * @len: bytes of it
 *
 * Context: any.
 * Return: whether it is, for one request only.
 */
bool kdapl_reg_admits(struct kdapl_reg_door *door, const struct sockaddr_storage *from,
		      const void *pdata, u8 len)
{
	return len >= KDAPL_REG_NONCE && !memcmp(pdata, door->nonce, KDAPL_REG_NONCE) &&
	       reg_same_host(from, &door->addr) && !atomic_xchg(&door->taken, 1);
}

static int reg_request(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	const struct rdma_conn_param *asked = &event->param.conn;
	struct kdapl_reg *reg = id->context;
	struct rdma_conn_param param = {};

	if (!kdapl_reg_admits(&reg->door, &id->route.addr.dst_addr, asked->private_data,
			      asked->private_data_len))
		return kdapl_cm_reject_new(reg->dev, id, IB_CM_REJ_INVALID_SERVICE_ID) ? 0 : -EPERM;
	param.qp_num = reg->qp[1]->qp_num;
	if (rdma_accept(id, &param))
		return -ECONNABORTED;
	reg->id[1] = id;
	return 0;
}

/*
 * These handlers share the CM's workqueue with connections of block devices: allocate without I/O
 * (D-32).
 */
static int reg_passive_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	unsigned int noio;
	int ret;

	if (event->event == RDMA_CM_EVENT_ESTABLISHED)
		reg_side_up(id->context);
	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return 0;
	noio = memalloc_noio_save();
	ret = reg_request(id, event);
	memalloc_noio_restore(noio);
	return ret;
}

/* Wake the waiters, which check @failed. */
static void reg_failed(struct kdapl_reg *reg)
{
	WRITE_ONCE(reg->failed, true);
	complete(&reg->routed);
	complete(&reg->up);
}

static int reg_active_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct kdapl_reg *reg = id->context;
	unsigned int noio;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		noio = memalloc_noio_save();
		if (rdma_resolve_route(id, 2000))
			reg_failed(reg);
		memalloc_noio_restore(noio);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		complete(&reg->routed);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		reg_side_up(reg);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_REJECTED:
		reg_failed(reg);
		break;
	default:
		break;
	}
	return 0;
}

/*
 * Take back any access that connecting may have granted. cxgb4 refuses that on a connected QP, but
 * nobody else is at the other end.
 */
static void reg_revoke(struct ib_qp *qp)
{
	struct ib_qp_attr attr = {};

	ib_modify_qp(qp, &attr, IB_QP_ACCESS_FLAGS);
}

static int reg_connect_pair(struct kdapl_ia *ia, struct kdapl_pd *pd, struct kdapl_reg *reg)
{
	struct kdapl_reg_door *door = &reg->door;
	struct rdma_conn_param param = { .private_data = door->nonce,
					 .private_data_len = KDAPL_REG_NONCE };
	struct sockaddr_storage dst;
	struct net *net;
	int ret, i;

	ret = kdapl_ia_address(ia, NULL, &door->addr, &net);
	if (ret)
		return ret;
	for (i = 0; i < 2 && !ret; i++)
		ret = reg_create_qp(pd, reg, i);
	if (ret)
		goto out;
	get_random_bytes(door->nonce, KDAPL_REG_NONCE);
	reg->dev = ia->dev;
	reg->listener = rdma_create_id(net, reg_passive_handler, reg, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(reg->listener)) {
		ret = PTR_ERR(reg->listener);
		reg->listener = NULL;
		goto out;
	}
	ret = rdma_bind_addr(reg->listener, (struct sockaddr *)&door->addr);
	if (!ret && reg->listener->device != ia->dev->ibdev)
		ret = -EADDRNOTAVAIL;	/* another device has the same address */
	if (!ret)
		ret = rdma_listen(reg->listener, 1);
	if (ret)
		goto out;
	dst = reg->listener->route.addr.src_addr;
	reg->id[0] = rdma_create_id(net, reg_active_handler, reg, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(reg->id[0])) {
		ret = PTR_ERR(reg->id[0]);
		reg->id[0] = NULL;
		goto out;
	}
	ret = rdma_resolve_addr(reg->id[0], (struct sockaddr *)&door->addr,
				(struct sockaddr *)&dst, 2000);
	if (ret)
		goto out;
	ret = -ETIMEDOUT;
	if (!wait_for_completion_timeout(&reg->routed, REG_TIMEOUT) || READ_ONCE(reg->failed))
		goto out;
	param.qp_num = reg->qp[0]->qp_num;
	ret = rdma_connect(reg->id[0], &param);
	if (ret)
		goto out;
	if (!wait_for_completion_timeout(&reg->up, REG_TIMEOUT) || READ_ONCE(reg->failed))
		ret = -ETIMEDOUT;
	rdma_destroy_id(reg->listener);
	reg->listener = NULL;
	for (i = 0; i < 2 && !ret; i++)
		reg_revoke(reg->qp[i]);
out:
	put_net(net);
	return ret;
}

/* What the administrator can do about it, or has to live with. */
static const char *reg_advice(const struct kdapl_reg *reg, int err)
{
	if (reg->no_path)
		return " (the device cannot connect a QP to its own port: dat_lmr_kcreate fails)";
	if (err == -EADDRNOTAVAIL)
		return " (give the network device of the port an IP address)";
	return "";
}

static int reg_build(struct kdapl_ia *ia, struct kdapl_pd *pd)
{
	struct kdapl_reg *reg = kzalloc(sizeof(*reg), GFP_KERNEL);
	int ret;

	if (!reg)
		return -ENOMEM;
	init_completion(&reg->routed);
	init_completion(&reg->up);
	reg->cq = ib_alloc_cq(pd->dev->ibdev, reg, 2 * (REG_DEPTH + 1), 0, IB_POLL_SOFTIRQ);
	if (IS_ERR(reg->cq)) {
		ret = PTR_ERR(reg->cq);
		kfree(reg);
		return ret;
	}
	ret = pd->dev->iwarp ? reg_connect_pair(ia, pd, reg) : reg_connect_self(pd, reg);
	if (ret) {
		pr_err_ratelimited("%s: cannot build a registration QP: %pe%s\n", ia->name,
				   ERR_PTR(ret), reg_advice(reg, ret));
		reg_free(reg);
		return ret;
	}
	pd->reg = reg;
	return 0;
}

/* Post one request and wait for it. pd->lock held. */
static int reg_execute(struct kdapl_pd *pd, struct ib_send_wr *wr)
{
	struct reg_op op = { .cqe.done = reg_done };
	int ret;

	init_completion(&op.done);
	wr->wr_cqe = &op.cqe;
	wr->send_flags = IB_SEND_SIGNALED;
	ret = ib_post_send(pd->reg->qp[0], wr, NULL);
	if (!ret && !wait_for_completion_timeout(&op.done, REG_TIMEOUT))
		ret = -ETIMEDOUT;
	if (!ret && op.status != IB_WC_SUCCESS) {
		pr_warn_ratelimited("%s: a request on a registration QP failed: %s\n",
				    pd->dev->name, ib_wc_status_msg(op.status));
		ret = -EIO;
	}
	/* the request may still be outstanding and points to op on our stack */
	if (ret)
		kdapl_reg_destroy(pd);
	return ret;
}

/* -EAGAIN: the QP had failed, and another attempt builds a new one. */
static int reg_run(struct kdapl_ia *ia, struct kdapl_pd *pd, struct ib_send_wr *wr)
{
	int ret;

	mutex_lock(&pd->lock);
	ret = pd->pd ? 0 : -ENODEV;
	if (!ret && !pd->reg)
		ret = reg_build(ia, pd);
	if (!ret) {
		ret = reg_execute(pd, wr);
		/* if the device was only slow, it has done it: a key is not registered twice */
		if (ret && ret != -ETIMEDOUT)
			ret = -EAGAIN;
	}
	mutex_unlock(&pd->lock);
	return ret;
}

/**
 * kdapl_reg_mr - register a mapped MR
 * @ia: IA, for its address
 * @pd: PD of the MR
 * @mr: mapped, with a new key
 * @access: IB_ACCESS_*
 *
 * Context: may sleep; inside kdapl_dev_enter().
 * Return: 0; -EAGAIN: the registration QP had failed: map the MR anew and try again, once; or
 * another errno.
 */
int kdapl_reg_mr(struct kdapl_ia *ia, struct kdapl_pd *pd, struct ib_mr *mr, int access)
{
	struct ib_reg_wr wr = {
		.wr.opcode = IB_WR_REG_MR,
		.mr = mr,
		.key = mr->rkey,
		.access = access,
	};

	return reg_run(ia, pd, &wr.wr);
}

/**
 * kdapl_reg_invalidate - invalidate a key
 * @ia: IA, for its address
 * @pd: PD of the MR
 * @key: rkey
 *
 * Context: may sleep; inside kdapl_dev_enter().
 * Return: 0 or an errno.
 */
int kdapl_reg_invalidate(struct kdapl_ia *ia, struct kdapl_pd *pd, u32 key)
{
	struct ib_send_wr wr = {
		.opcode = IB_WR_LOCAL_INV,
		.ex.invalidate_rkey = key,
	};
	int ret = reg_run(ia, pd, &wr);

	return ret == -EAGAIN ? reg_run(ia, pd, &wr) : ret;
}
