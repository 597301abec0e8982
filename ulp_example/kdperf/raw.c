// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The job with verbs alone, as a kernel consumer does it: connections by the RDMA CM, a CQ
 * of ib_alloc_cq() for each end, a request structure with an ib_cqe for each operation, and
 * work requests on the stack, posted one by one.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": raw: " fmt

#include <linux/err.h>
#include <linux/in.h>
#include <linux/mm.h>
#include <linux/nsproxy.h>
#include <linux/scatterlist.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "kdperf.h"

#define PORTS	4	/* number of ports to try for a connection */

struct raw_req {
	struct ib_cqe cqe;
	u32 n;
};

/* One end of an EP, as one poster uses it. */
struct raw_end {
	struct ib_qp *qp;
	struct raw_req *req, *recv;	/* one per entry of the queue */
	u32 reqs, recvs;		/* posted so far */
};

struct raw_ep {
	struct raw_end end[2];
	struct rdma_cm_id *id[2];
	bool up[2], down[2];
	bool refused;			/* by TCP, because of its port */
};

struct raw_lane {
	struct ib_cq *cq[2];
	struct ib_srq *srq;
	struct raw_req *pool;		/* of the SRQ */
	u32 pools;
	struct raw_ep *ep;
};

static struct {
	struct ib_device *dev;
	struct rdma_cm_id *bound, *listener;
	struct ib_pd *pd;
	struct scatterlist sg[2];
	bool mapped[2];
	u64 dma[2];		/* address of the memory in work requests */
	struct ib_mr **mr;	/* of the requests' memory, and one of the other end */
	u32 *keys;		/* of the requests' MRs, in order of use */
	struct ib_cqe cqe;	/* for registrations */
	bool closing;
	struct raw_lane lane[MAX_POSTERS];
	struct raw_ep *accepting;
} *all;

static struct ib_mr *raw_remote_mr(void)
{
	return all->mr[run.lmrs];
}

static void raw_completed(struct ib_cq *cq, struct ib_wc *wc, bool recv)
{
	struct raw_req *req = container_of(wc->wr_cqe, struct raw_req, cqe);

	if (unlikely(wc->status != IB_WC_SUCCESS)) {
		if (!READ_ONCE(all->closing))
			fault("%s: %s", recv ? "receive" : "request",
			      ib_wc_status_msg(wc->status));
		return;
	}
	perf_done(cq->cq_context, req->n, recv);
}

static void raw_request_done(struct ib_cq *cq, struct ib_wc *wc)
{
	raw_completed(cq, wc, false);
}

static void raw_recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	raw_completed(cq, wc, true);
}

static int raw_post(struct lane *lane, u32 side, u32 n)
{
	struct raw_ep *eps = all->lane[lane->n].ep;
	struct turn *turn = &lane->side[side].turn;
	u64 base = all->dma[0];
	struct ib_sge sge[MAX_SEGS];	/* outside the loop, since many kernels zero it */
	int err;
	u32 i;

	while (n--) {
		struct raw_end *end = &eps[turn->ep].end[side];
		struct raw_req *req = &end->req[end->reqs++ & (run.depth - 1)];
		struct ib_rdma_wr wr = {
			.wr = {
				.wr_cqe = &req->cqe,
				.sg_list = sge,
				.num_sge = run.segs,
				.send_flags = turn_signaled(turn) ? IB_SEND_SIGNALED : 0,
			},
		};

		req->n = turn->n;
		for (i = 0; i < run.segs; i++) {
			sge[i].addr = base + perf_seg[i].offset;
			sge[i].length = perf_seg[i].length;
			sge[i].lkey = turn_key(turn, all->keys);
		}
		switch (run.op) {
		case OP_WRITE:
		case OP_READ:
			wr.wr.opcode = run.op == OP_READ ? IB_WR_RDMA_READ : IB_WR_RDMA_WRITE;
			wr.remote_addr = all->dma[1];
			wr.rkey = raw_remote_mr()->rkey;
			break;
		default:
			wr.wr.opcode = IB_WR_SEND;
		}
		err = ib_post_send(end->qp, &wr.wr, NULL);
		if (unlikely(err))
			return fault("ib_post_send: %pe", ERR_PTR(err));
		turn_next(turn);
	}
	return 0;
}

static int raw_recv(struct lane *lane, u32 side, u32 n)
{
	struct raw_lane *l = &all->lane[lane->n];
	u32 *recvs = &lane->side[side].recvs, ep = *recvs % run.eps;
	int err;

	while (n--) {
		struct raw_end *end = &l->ep[ep].end[side];
		struct ib_sge sge = {
			.addr = all->dma[side],
			.length = run.size,
			.lkey = side ? raw_remote_mr()->lkey : all->keys[0],
		};
		struct ib_recv_wr wr = { .sg_list = &sge, .num_sge = !!run.size };
		struct raw_req *req;

		if (side && l->srq)
			req = &l->pool[l->pools++ & (run.depth * run.eps - 1)];
		else
			req = &end->recv[end->recvs++ & (perf_requests() - 1)];
		req->n = (*recvs)++;
		wr.wr_cqe = &req->cqe;
		if (side && l->srq)
			err = ib_post_srq_recv(l->srq, &wr, NULL);
		else
			err = ib_post_recv(end->qp, &wr, NULL);
		if (unlikely(err))
			return fault("ib_post_recv: %pe", ERR_PTR(err));
		if (++ep == run.eps)
			ep = 0;
	}
	return 0;
}

static int raw_poll(struct lane *lane, u32 side)
{
	return ib_process_cq_direct(all->lane[lane->n].cq[side], -1);
}

static int raw_churn(void)
{
	struct ib_mr *mr = ib_alloc_mr(all->pd, IB_MR_TYPE_MEM_REG, 1);

	return IS_ERR(mr) ? PTR_ERR(mr) : ib_dereg_mr(mr);
}

const struct way raw_way = {
	.name = "verbs", .post = raw_post, .recv = raw_recv, .poll = raw_poll,
	.churn = raw_churn,
};

/* The depth that kDAPL requests from the device for such an EP, so that both are the same. */
u32 raw_sq_entries(struct ib_device *dev, u32 port)
{
	u32 depth = perf_requests(), slots = depth + depth / 4 - 1;

	if (run.op == OP_READ && rdma_protocol_iwarp(dev, port))
		slots *= 2;
	return slots + 3;
}

static u32 raw_entries(void)
{
	return raw_sq_entries(all->dev, all->bound->port_num);
}

struct raw_req *raw_make_reqs(u32 n, void (*done)(struct ib_cq *cq, struct ib_wc *wc))
{
	struct raw_req *reqs = kvcalloc(n, sizeof(*reqs), GFP_KERNEL);

	while (reqs && n--)
		reqs[n].cqe.done = done;
	return reqs;
}

static int raw_make_end(struct raw_end *end, struct ib_qp *qp)
{
	end->qp = qp;
	end->req = end->req ?: raw_make_reqs(run.depth, raw_request_done);
	end->recv = end->recv ?: raw_make_reqs(perf_requests(), raw_recv_done);
	return end->req && end->recv ? 0 : -ENOMEM;
}

static int raw_make_qp(struct raw_ep *ep, u32 side)
{
	struct raw_lane *l = all->lane;
	struct ib_qp_init_attr attr = {
		.cap = {
			.max_send_wr = raw_entries(),
			.max_recv_wr = perf_requests() + 1,	/* ib_drain_qp() */
			.max_send_sge = max(run.segs, 1U),
			.max_recv_sge = 1,
		},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
	};

	while (ep < l->ep || ep >= l->ep + run.eps)
		l++;
	attr.send_cq = l->cq[side];
	attr.recv_cq = l->cq[side];
	if (side && l->srq) {
		attr.srq = l->srq;
		attr.cap.max_recv_wr = 0;
		attr.cap.max_recv_sge = 0;
	}
	return rdma_create_qp(ep->id[side], all->pd, &attr) ?:
	       raw_make_end(&ep->end[side], ep->id[side]->qp);
}

static struct rdma_conn_param raw_conn_param(void)
{
	u32 reads = min(rdma_protocol_iwarp(all->dev, all->bound->port_num) ? 128 : 16,
			all->dev->attrs.max_qp_rd_atom);

	return (struct rdma_conn_param) {
		.responder_resources = reads, .initiator_depth = reads,
		.retry_count = 7, .rnr_retry_count = 6,
	};
}

static int raw_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct rdma_conn_param param = raw_conn_param();
	struct raw_ep *ep = id->context;
	u32 side = ep && id == ep->id[1];
	int err = 0;

	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		ep = xchg(&all->accepting, NULL);
		if (!ep)
			return -EBUSY;
		ep->id[1] = id;
		err = raw_make_qp(ep, 1) ?: rdma_accept(id, &param);
		if (err) {
			if (id->qp)
				rdma_destroy_qp(id);
			ep->id[1] = NULL;
			fault("rdma_accept: %pe", ERR_PTR(err));
			return err;
		}
		id->context = ep;
		return 0;
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		err = rdma_resolve_route(id, 10000);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		err = raw_make_qp(ep, 0) ?: rdma_connect_locked(id, &param);
		if (err == -EADDRNOTAVAIL && id->qp) {
			WRITE_ONCE(ep->refused, true);
			err = 0;
		}
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		WRITE_ONCE(ep->up[side], true);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		rdma_disconnect(id);
		WRITE_ONCE(ep->down[side], true);
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		err = event->status ?: -EIO;
		break;
	}
	if (err)
		fault("%s: %pe", rdma_event_msg(event->event), ERR_PTR(err));
	wake_up_all(&perf_wait);
	return 0;
}

static struct rdma_cm_id *raw_make_id(void *context)
{
	return rdma_create_id(current->nsproxy->net_ns, raw_handler, context, RDMA_PS_TCP,
			      IB_QPT_RC);
}

static int raw_connect_once(struct raw_ep *ep, const struct sockaddr_storage *addr, u16 port)
{
	struct sockaddr_storage from = *addr, to = *addr;
	int err;

	((struct sockaddr_in *)&from)->sin_port = 0;
	((struct sockaddr_in *)&to)->sin_port = htons(port);
	ep->id[0] = raw_make_id(ep);
	if (IS_ERR(ep->id[0]))
		return PTR_ERR(ep->id[0]);
	err = rdma_resolve_addr(ep->id[0], (struct sockaddr *)&from, (struct sockaddr *)&to,
				10000);
	if (!err && !await(READ_ONCE(ep->refused) ||
			   (READ_ONCE(ep->up[0]) && READ_ONCE(ep->up[1]))))
		err = fault("not connected");
	return err;
}

/*
 * TCP refuses a port for a minute after a connection from it to the same peer. If the CM
 * has picked such a port, try another one, as kDAPL does.
 */
static int raw_connect(struct raw_ep *ep, const struct sockaddr_storage *addr, u16 port)
{
	int tries = PORTS, err;

	all->accepting = ep;
	while (!(err = raw_connect_once(ep, addr, port)) && ep->refused && --tries) {
		rdma_destroy_qp(ep->id[0]);
		rdma_destroy_id(ep->id[0]);
		ep->id[0] = NULL;
		ep->refused = false;
	}
	return err ?: ep->refused ? fault("no port") : 0;
}

static void raw_registered(struct ib_cq *cq, struct ib_wc *wc)
{
	struct side *side = cq->cq_context;

	if (wc->status != IB_WC_SUCCESS)
		fault("registration: %s", ib_wc_status_msg(wc->status));
	WRITE_ONCE(side->got, side->got + 1);
	wake_up_all(&perf_wait);
}

/* Register the memory of one end by a fast registration, as an LMR does. */
static int raw_make_mr(struct ib_mr **mr, u32 side, int access)
{
	struct ib_reg_wr wr = {
		.wr = {
			.wr_cqe = &all->cqe, .opcode = IB_WR_REG_MR,
			.send_flags = IB_SEND_SIGNALED,
		},
		.access = access,
	};
	u32 pages = perf_bytes() >> PAGE_SHIFT;
	u64 spent;
	int err;

	*mr = ib_alloc_mr(all->pd, IB_MR_TYPE_MEM_REG, pages);
	if (IS_ERR(*mr))
		return PTR_ERR(*mr);
	err = ib_map_mr_sg(*mr, &all->sg[side], 1, NULL, PAGE_SIZE);
	if (err != 1)
		return err < 0 ? err : -EIO;
	all->dma[side] = (*mr)->iova;
	wr.mr = *mr;
	wr.key = (*mr)->rkey;
	lanes[0].side[0].want++;
	return ib_post_send(all->lane[0].ep[0].end[0].qp, &wr.wr, NULL) ?:
	       perf_wait_done(&lanes[0], 0, 0, &spent);
}

static int raw_make_mrs(void)
{
	int access = IB_ACCESS_LOCAL_WRITE, err = 0;
	u32 i;

	if (run.op == OP_READ && rdma_protocol_iwarp(all->dev, all->bound->port_num))
		access |= IB_ACCESS_REMOTE_WRITE;
	for (i = 0; i < 2; i++) {
		sg_init_one(&all->sg[i], perf_mem[i], perf_bytes());
		all->mapped[i] = ib_dma_map_sg(all->dev, &all->sg[i], 1, DMA_BIDIRECTIONAL);
		if (!all->mapped[i])
			return -EIO;
	}
	for (i = 0; i < run.lmrs && !err; i++) {
		err = raw_make_mr(&all->mr[i], 0, access);
		if (!err)
			all->keys[i] = all->mr[i]->lkey;
		cond_resched();
	}
	perf_shuffle(all->keys);
	return err ?: raw_make_mr(&all->mr[i], 1, IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
				  IB_ACCESS_REMOTE_READ);
}

static int raw_make_lane(struct raw_lane *l, u32 n)
{
	static const enum ib_poll_context ctx[] = {
		[CTX_SOFTIRQ] = IB_POLL_SOFTIRQ, [CTX_WORK] = IB_POLL_WORKQUEUE,
		[CTX_POLL] = IB_POLL_DIRECT,
	};
	struct ib_srq_init_attr attr = {
		.attr = { .max_wr = run.depth * run.eps, .max_sge = 1 },
	};
	u32 side, cqes = run.eps * (raw_entries() + perf_requests() + 1);

	l->ep = kvcalloc(run.eps, sizeof(*l->ep), GFP_KERNEL);
	if (!l->ep)
		return -ENOMEM;
	if (n >= perf_owners())
		return 0;
	if (cqes > all->dev->attrs.max_cqe)
		return fail("a CQ has %d entries at most, and %u are needed",
			    all->dev->attrs.max_cqe, cqes);
	for (side = 0; side < 2; side++) {
		l->cq[side] = ib_alloc_cq(all->dev, &lanes[n].side[side], cqes,
					  n % all->dev->num_comp_vectors, ctx[run.ctx]);
		if (IS_ERR(l->cq[side]))
			return PTR_ERR(l->cq[side]);
	}
	if (run.op != OP_SRQ)
		return 0;
	l->pool = raw_make_reqs(run.depth * run.eps, raw_recv_done);
	l->srq = ib_create_srq(all->pd, &attr);
	return l->pool ? PTR_ERR_OR_ZERO(l->srq) : -ENOMEM;
}

/* Later posters use the QP of the first one, with their own requests. */
static int raw_share(struct raw_lane *l)
{
	return raw_make_end(&l->ep->end[0], all->lane[0].ep->end[0].qp) ?:
	       raw_make_end(&l->ep->end[1], all->lane[0].ep->end[1].qp);
}

static int raw_make_all(const struct sockaddr_storage *addr, u16 port)
{
	struct sockaddr_storage to = *addr;
	int err = 0;
	u32 n, i;

	all->dev = all->bound->device;
	all->pd = ib_alloc_pd(all->dev, 0);
	if (IS_ERR(all->pd))
		return PTR_ERR(all->pd);
	for (n = 0; n < run.posters && !err; n++)
		err = raw_make_lane(&all->lane[n], n);
	if (err)
		return err;
	all->listener = raw_make_id(NULL);
	if (IS_ERR(all->listener))
		return PTR_ERR(all->listener);
	((struct sockaddr_in *)&to)->sin_port = htons(port);
	err = rdma_bind_addr(all->listener, (struct sockaddr *)&to) ?:
	      rdma_listen(all->listener, 4);
	for (n = 0; n < perf_owners() && !err; n++) {
		for (i = 0; i < run.eps && !err; i++)
			err = raw_connect(&all->lane[n].ep[i], addr, port);
	}
	for (; n < run.posters && !err; n++)
		err = raw_share(&all->lane[n]);
	return err ?: raw_make_mrs();
}

/* Create connections of the device with that address to itself. */
int raw_open(const struct sockaddr_storage *addr, u16 port)
{
	struct sockaddr_storage any = *addr;
	int err;

	all = kzalloc(sizeof(*all), GFP_KERNEL);
	if (!all)
		return -ENOMEM;
	all->cqe.done = raw_registered;
	all->mr = kvcalloc(run.lmrs + 1, sizeof(*all->mr), GFP_KERNEL);
	all->keys = kvcalloc(run.lmrs, sizeof(*all->keys), GFP_KERNEL);
	all->bound = raw_make_id(NULL);
	if (!all->mr || !all->keys || IS_ERR(all->bound))
		return -ENOMEM;
	((struct sockaddr_in *)&any)->sin_port = 0;
	err = rdma_bind_addr(all->bound, (struct sockaddr *)&any);
	if (!err)
		err = all->bound->device ? raw_make_all(addr, port) : -ENODEV;
	return err ? fail("%pe", ERR_PTR(err)) : 0;
}

static void raw_close_ep(struct raw_ep *ep)
{
	u32 side;

	for (side = 0; side < 2; side++) {
		struct rdma_cm_id *id = ep->id[side];

		if (IS_ERR_OR_NULL(id))
			continue;
		if (id->qp) {
			/* With CTX_POLL the CQ is no longer polled, and draining would be slow. */
			if (run.op == OP_SRQ && run.ctx != CTX_POLL)
				ib_drain_sq(id->qp);
			else if (run.ctx != CTX_POLL)
				ib_drain_qp(id->qp);
			rdma_destroy_qp(id);
		}
		rdma_destroy_id(id);
	}
}

static void raw_close_lane(struct raw_lane *l)
{
	u32 i;

	for (i = 0; i < run.eps && l->ep; i++) {
		if (l->ep[i].up[0])
			rdma_disconnect(l->ep[i].id[0]);
	}
	for (i = 0; i < run.eps && l->ep; i++) {
		struct raw_ep *ep = &l->ep[i];

		if (ep->up[0] && !perf_faults() &&
		    !await(READ_ONCE(ep->down[0]) && READ_ONCE(ep->down[1])))
			fault("not disconnected");
		raw_close_ep(ep);
	}
	if (!IS_ERR_OR_NULL(l->srq))
		ib_destroy_srq(l->srq);
	for (i = 0; i < 2; i++) {
		if (!IS_ERR_OR_NULL(l->cq[i]))
			ib_free_cq(l->cq[i]);
	}
}

/* Called when no operation can complete any more. */
static void raw_free_lane(struct raw_lane *l)
{
	u32 i;

	for (i = 0; i < 2 * run.eps && l->ep; i++) {
		kvfree(l->ep[i / 2].end[i & 1].req);
		kvfree(l->ep[i / 2].end[i & 1].recv);
	}
	kvfree(l->pool);
	kvfree(l->ep);
}

void raw_close(void)
{
	u32 i;

	if (!all)
		return;
	WRITE_ONCE(all->closing, true);
	if (!IS_ERR_OR_NULL(all->listener))
		rdma_destroy_id(all->listener);
	for (i = 0; i < run.posters; i++)
		raw_close_lane(&all->lane[i]);
	for (i = 0; i < run.posters; i++)
		raw_free_lane(&all->lane[i]);
	for (i = 0; all->mr && i <= run.lmrs; i++) {
		if (!IS_ERR_OR_NULL(all->mr[i]))
			ib_dereg_mr(all->mr[i]);
	}
	for (i = 0; i < 2; i++) {
		if (all->mapped[i])
			ib_dma_unmap_sg(all->dev, &all->sg[i], 1, DMA_BIDIRECTIONAL);
	}
	if (!IS_ERR_OR_NULL(all->pd))
		ib_dealloc_pd(all->pd);
	if (!IS_ERR_OR_NULL(all->bound))
		rdma_destroy_id(all->bound);
	kvfree(all->mr);
	kvfree(all->keys);
	kfree(all);
	all = NULL;
}
