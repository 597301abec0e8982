// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Many connections with verbs alone, as a kernel consumer makes them: address and route are
 * resolved, a QP is made on the cm_id, and it is drained before it is destroyed. It keeps a
 * structure with an ib_cqe for each entry of its queues. The QPs of a side have as many CQs as
 * the device needs for all their completions.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": raw: " fmt

#include <linux/err.h>
#include <linux/in.h>
#include <linux/mm.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "kdperf.h"

/* One end of a connection. */
struct conns_end {
	struct rdma_cm_id *id;
	struct ib_qp *qp;
	struct raw_req *req, *recv;	/* one per entry of the queue */
};

static struct {
	struct ib_device *dev;
	u32 dev_port;
	struct rdma_cm_id *bound, *listener;
	struct ib_pd *pd;
	struct ib_cq **cq;
	u32 cqs, per_cq;		/* CQs; ends that complete on each */
	struct sockaddr_storage addr;
	u16 port;
	struct conns_end *end;		/* active ones, then passive ones */
	atomic_t taken;			/* passive ends that have a request */
	atomic_t up, down;		/* ends */
} *all;

static void conns_done(struct ib_cq *cq, struct ib_wc *wc)
{
	fault("a completion, though nothing was posted");
}

static u32 conns_cqes(void)
{
	return raw_sq_entries(all->dev, all->dev_port) + perf_requests() + 1;
}

static int conns_make_reqs(struct conns_end *end)
{
	end->req = raw_make_reqs(run.depth, conns_done);
	end->recv = raw_make_reqs(run.depth, conns_done);
	return end->req && end->recv ? 0 : -ENOMEM;
}

static void conns_free_reqs(struct conns_end *end)
{
	kvfree(end->req);
	kvfree(end->recv);
	end->req = NULL;
	end->recv = NULL;
}

static struct ib_qp_init_attr conns_qp_attr(const struct conns_end *end)
{
	struct ib_cq *cq = all->cq[(end - all->end) / all->per_cq];

	return (struct ib_qp_init_attr) {
		.cap = {
			.max_send_wr = raw_sq_entries(all->dev, all->dev_port),
			.max_recv_wr = perf_requests() + 1,	/* ib_drain_qp() */
			.max_send_sge = run.segs,
			.max_recv_sge = 1,
		},
		.send_cq = cq,
		.recv_cq = cq,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
		.port_num = all->dev_port,
	};
}

/* A QP on a cm_id. */
static int conns_make_end(struct conns_end *end, struct rdma_cm_id *id)
{
	struct ib_qp_init_attr attr = conns_qp_attr(end);
	int err = rdma_create_qp(id, all->pd, &attr);

	if (err)
		return err;
	end->qp = id->qp;
	return conns_make_reqs(end);
}

/* A QP without a cm_id, in the state that rdma_create_qp() brings it to. */
static int conns_make_qp(struct conns_end *end)
{
	struct ib_qp_init_attr init = conns_qp_attr(end);
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = all->dev_port,
	};
	struct ib_qp *qp = ib_create_qp(all->pd, &init);

	if (IS_ERR(qp))
		return PTR_ERR(qp);
	end->qp = qp;
	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			    IB_QP_ACCESS_FLAGS) ?: conns_make_reqs(end);
}

static struct rdma_conn_param conns_param(void)
{
	u32 reads = min(rdma_protocol_iwarp(all->dev, all->dev_port) ? 128 : 16,
			all->dev->attrs.max_qp_rd_atom);

	return (struct rdma_conn_param) {
		.responder_resources = reads, .initiator_depth = reads,
		.retry_count = 7, .rnr_retry_count = 6,
	};
}

static int conns_request(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = conns_param();
	u32 n = atomic_inc_return(&all->taken) - 1;
	struct conns_end *end = &all->end[run.eps + n];
	int err;

	if (n >= run.eps)
		return fault("a connection too many");
	end->id = id;
	err = conns_make_end(end, id) ?: rdma_accept(id, &param);
	if (err) {
		if (id->qp)
			rdma_destroy_qp(id);
		end->qp = NULL;
		end->id = NULL;
		fault("rdma_accept: %pe", ERR_PTR(err));
	}
	return err;
}

static int conns_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct rdma_conn_param param = conns_param();
	int err = 0;

	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return conns_request(id);
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		err = rdma_resolve_route(id, 10000);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		err = conns_make_end(id->context, id) ?: rdma_connect_locked(id, &param);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		atomic_inc(&all->up);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		rdma_disconnect(id);
		atomic_inc(&all->down);
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		err = event->status ?: -EIO;
	}
	if (err)
		fault("%s: %pe", rdma_event_msg(event->event), ERR_PTR(err));
	wake_up_all(&perf_wait);
	return 0;
}

static struct rdma_cm_id *conns_make_id(struct conns_end *end)
{
	return rdma_create_id(current->nsproxy->net_ns, conns_handler, end, RDMA_PS_TCP,
			      IB_QPT_RC);
}

/* An id that listens at a port or, if that is 0, tells the device of the address. */
static int conns_bind(struct rdma_cm_id **out, u16 port)
{
	struct sockaddr_storage addr = all->addr;
	struct rdma_cm_id *id = conns_make_id(NULL);

	if (IS_ERR(id))
		return PTR_ERR(id);
	*out = id;
	((struct sockaddr_in *)&addr)->sin_port = htons(port);
	return rdma_bind_addr(id, (struct sockaddr *)&addr) ?: port ? rdma_listen(id, 128) : 0;
}

static int conns_make_cqs(void)
{
	u32 i, ends = 2 * run.eps;

	all->per_cq = clamp_t(u32, all->dev->attrs.max_cqe / conns_cqes(), 1, run.eps);
	all->cqs = DIV_ROUND_UP(ends, all->per_cq);
	all->cq = kvcalloc(all->cqs, sizeof(*all->cq), GFP_KERNEL);
	if (!all->cq)
		return -ENOMEM;
	for (i = 0; i < all->cqs; i++) {
		struct ib_cq *cq = ib_alloc_cq(all->dev, NULL, all->per_cq * conns_cqes(), 0,
					       IB_POLL_SOFTIRQ);

		if (IS_ERR(cq))
			return PTR_ERR(cq);
		all->cq[i] = cq;
	}
	return 0;
}

static int conns_open(const struct sockaddr_storage *addr, u16 port)
{
	int err;

	all = kzalloc(sizeof(*all), GFP_KERNEL);
	if (!all)
		return -ENOMEM;
	all->addr = *addr;
	all->port = port;
	all->end = kvcalloc(2 * run.eps, sizeof(*all->end), GFP_KERNEL);
	if (!all->end)
		return -ENOMEM;
	err = conns_bind(&all->bound, 0);
	if (err)
		return err;
	all->dev = all->bound->device;
	all->dev_port = all->bound->port_num;
	if (!all->dev)
		return -ENODEV;
	all->pd = ib_alloc_pd(all->dev, 0);
	if (IS_ERR(all->pd))
		return PTR_ERR(all->pd);
	return conns_make_cqs() ?: conns_bind(&all->listener, port);
}

static int raw_conns_open(const struct sockaddr_storage *addr, u16 port)
{
	int err = conns_open(addr, port);

	return err ? fail("%pe", ERR_PTR(err)) : 0;
}

static int raw_conns_create(void)
{
	int err = 0;
	u32 i;

	for (i = 0; i < 2 * run.eps && !err; i++) {
		err = conns_make_qp(&all->end[i]);
		cond_resched();
	}
	return err ? fault("ib_create_qp: %pe", ERR_PTR(err)) : 0;
}

static int raw_conns_free(void)
{
	u32 i;

	for (i = 0; i < 2 * run.eps; i++) {
		struct conns_end *end = &all->end[i];

		ib_destroy_qp(end->qp);
		end->qp = NULL;
		conns_free_reqs(end);
		cond_resched();
	}
	return 0;
}

static int conns_begin(struct conns_end *end)
{
	struct sockaddr_storage from = all->addr, to = all->addr;

	((struct sockaddr_in *)&from)->sin_port = 0;
	((struct sockaddr_in *)&to)->sin_port = htons(all->port);
	end->id = conns_make_id(end);
	if (IS_ERR(end->id))
		return PTR_ERR(end->id);
	return rdma_resolve_addr(end->id, (struct sockaddr *)&from, (struct sockaddr *)&to, 10000);
}

static int raw_conns_connect(void)
{
	int err = 0;
	u32 i;

	for (i = 0; i < run.eps && !err; i++) {
		if (!await(i < run.window + atomic_read(&all->up) / 2))
			return fault("%u ends of %u connections are up", atomic_read(&all->up), i);
		err = conns_begin(&all->end[i]);
	}
	if (err)
		return fault("connect: %pe", ERR_PTR(err));
	if (!await(atomic_read(&all->up) == 2 * run.eps))
		return fault("%u ends of %u connections are up", atomic_read(&all->up), i);
	return 0;
}

static void conns_end_free(struct conns_end *end)
{
	if (!IS_ERR_OR_NULL(end->id)) {
		if (end->id->qp) {
			ib_drain_qp(end->id->qp);
			rdma_destroy_qp(end->id);
		}
		rdma_destroy_id(end->id);
	} else if (end->qp) {
		ib_destroy_qp(end->qp);
	}
	end->id = NULL;
	end->qp = NULL;
	conns_free_reqs(end);
}

static void conns_free_all(void)
{
	u32 i;

	for (i = 0; all->end && i < 2 * run.eps; i++) {
		/* both ends of a connection, one after the other */
		conns_end_free(&all->end[i / 2 + (i & 1) * run.eps]);
		cond_resched();
	}
}

static int raw_conns_disconnect(void)
{
	u32 i;

	for (i = 0; i < run.eps; i++)
		rdma_disconnect(all->end[i].id);
	if (!await(atomic_read(&all->down) == 2 * run.eps))
		return fault("%u ends of %u connections are down", atomic_read(&all->down), i);
	conns_free_all();
	return 0;
}

static int raw_conns_close(void)
{
	u32 i;

	if (!all)
		return 0;
	if (all->listener)
		rdma_destroy_id(all->listener);
	conns_free_all();
	for (i = 0; all->cq && i < all->cqs; i++) {
		if (all->cq[i])
			ib_free_cq(all->cq[i]);
	}
	if (!IS_ERR_OR_NULL(all->pd))
		ib_dealloc_pd(all->pd);
	if (all->bound)
		rdma_destroy_id(all->bound);
	kvfree(all->cq);
	kvfree(all->end);
	kfree(all);
	all = NULL;
	return 0;
}

const struct conns_way raw_conns = {
	.open = raw_conns_open,
	.create = raw_conns_create,
	.free = raw_conns_free,
	.connect = raw_conns_connect,
	.disconnect = raw_conns_disconnect,
	.close = raw_conns_close,
};
