// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The same connections with nothing but the RDMA CM and the verbs: what there is to
 * compare with. A queue pair exists before it is connected, and is not used again.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": raw: " fmt

#include <linux/ktime.h>
#include <linux/vmalloc.h>
#include <net/net_namespace.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "kdscale.h"

#define DTOS	64	/* as in an Endpoint of the usual attributes */
#define IOVS	4

struct net *raw_net;

struct raw {
	u32 n;
	struct ib_qp *qp[2];
	struct rdma_cm_id *id[2];
};

static struct {
	struct rdma_cm_id *probe, *listener;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct raw *raw;
	u32 count;
	bool iwarp;
	atomic_t up[2], down[2], errors;
} all;

#define in_step(condition)	\
	(in_order((condition) || atomic_read(&all.errors)) && !atomic_read(&all.errors))

static void broken(const char *what, int err)
{
	if (!atomic_fetch_inc(&all.errors))
		fail("%s: %pe", what, ERR_PTR(err));
}

static int to_state(struct rdma_cm_id *id, struct ib_qp *qp, enum ib_qp_state state)
{
	struct ib_qp_attr attr = { .qp_state = state };
	int mask, err = rdma_init_qp_attr(id, &attr, &mask);

	return err ?: ib_modify_qp(qp, &attr, mask);
}

static int to_rts(struct rdma_cm_id *id, struct ib_qp *qp)
{
	if (all.iwarp)
		return 0;
	return to_state(id, qp, IB_QPS_INIT) ?: to_state(id, qp, IB_QPS_RTR) ?:
	       to_state(id, qp, IB_QPS_RTS);
}

static struct rdma_conn_param conn_param(struct ib_qp *qp, const u32 *n)
{
	return (struct rdma_conn_param) {
		.responder_resources = 4, .initiator_depth = 4,
		.retry_count = 6, .rnr_retry_count = 6,
		.qp_num = qp->qp_num,
		.private_data = n, .private_data_len = n ? sizeof(*n) : 0,
	};
}

static void ended(struct raw *r, int side)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };

	ib_modify_qp(r->qp[side], &attr, IB_QP_STATE);
	rdma_disconnect(r->id[side]);
	atomic_inc(&all.down[side]);
}

static int raw_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct rdma_conn_param param;
	struct raw *r = id->context;
	int side = r && id == r->id[1];
	int err = 0;
	u32 n;

	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		if (event->param.conn.private_data_len < sizeof(n))
			return -EINVAL;
		memcpy(&n, event->param.conn.private_data, sizeof(n));
		if (n >= all.count)
			return -EINVAL;
		r = &all.raw[n];
		r->id[1] = id;
		id->context = r;
		param = conn_param(r->qp[1], NULL);
		err = to_rts(id, r->qp[1]) ?: rdma_accept(id, &param);
		break;
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		err = rdma_resolve_route(id, 10000);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		param = conn_param(r->qp[0], &r->n);
		err = rdma_connect_locked(id, &param);
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		err = to_rts(id, r->qp[0]) ?: rdma_accept(id, NULL);
		if (!err)
			atomic_inc(&all.up[0]);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		atomic_inc(&all.up[side]);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		ended(r, side);
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		err = event->status ?: -EIO;
		break;
	}
	if (err)
		broken(rdma_event_msg(event->event), err);
	wake_up_all(&test_wait);
	return 0;
}

static struct ib_qp *new_qp(void)
{
	struct ib_qp_init_attr attr = {
		.cap = {
			.max_send_wr = DTOS, .max_recv_wr = DTOS,
			.max_send_sge = IOVS, .max_recv_sge = IOVS,
		},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
		.send_cq = all.cq,
		.recv_cq = all.cq,
	};

	return ib_create_qp(all.pd, &attr);
}

static void raw_free(void)
{
	u32 i;
	int s;

	for (i = 0; i < all.count && all.raw; i++) {
		for (s = 0; s < 2; s++) {
			if (all.raw[i].id[s])
				rdma_destroy_id(all.raw[i].id[s]);
			if (!IS_ERR_OR_NULL(all.raw[i].qp[s]))
				ib_destroy_qp(all.raw[i].qp[s]);
		}
	}
}

void raw_close(void)
{
	raw_free();
	if (all.listener)
		rdma_destroy_id(all.listener);
	if (!IS_ERR_OR_NULL(all.cq))
		ib_free_cq(all.cq);
	if (!IS_ERR_OR_NULL(all.pd))
		ib_dealloc_pd(all.pd);
	if (all.probe)
		rdma_destroy_id(all.probe);
	vfree(all.raw);
	memset(&all, 0, sizeof(all));
}

/* The device with that address, and what queue pairs on it need. */
static int raw_begin(const struct sockaddr_storage *addr, u32 count)
{
	struct sockaddr_storage any = test_addr_port(addr, 0);
	struct rdma_cm_id *id;
	int err;

	memset(&all, 0, sizeof(all));
	id = rdma_create_id(raw_net, raw_handler, NULL, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	all.probe = id;
	err = rdma_bind_addr(id, (struct sockaddr *)&any);
	if (err)
		return err;
	if (!id->device)
		return -ENODEV;
	all.iwarp = rdma_protocol_iwarp(id->device, id->port_num);
	all.count = count;
	all.raw = vzalloc(array_size(count, sizeof(*all.raw)));
	all.pd = ib_alloc_pd(id->device, 0);
	if (IS_ERR(all.pd) || !all.raw)
		return -ENOMEM;
	all.cq = ib_alloc_cq(id->device, NULL, 256, 0, IB_POLL_DIRECT);
	return PTR_ERR_OR_ZERO(all.cq);
}

static int raw_listen(const struct sockaddr_storage *addr, u16 port)
{
	struct sockaddr_storage at = test_addr_port(addr, port);
	struct rdma_cm_id *id;

	id = rdma_create_id(raw_net, raw_handler, NULL, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	all.listener = id;
	return rdma_bind_addr(id, (struct sockaddr *)&at) ?: rdma_listen(id, 1024);
}

static int raw_connect(const struct sockaddr_storage *addr, u16 port, u32 window)
{
	struct sockaddr_storage from = test_addr_port(addr, 0), to = test_addr_port(addr, port);
	int err = 0;
	u32 i;

	for (i = 0; i < all.count && !err; i++) {
		struct raw *r = &all.raw[i];
		struct rdma_cm_id *id;

		if (!in_step(i < window + atomic_read(&all.up[0])))
			return -ETIMEDOUT;
		id = rdma_create_id(raw_net, raw_handler, r, RDMA_PS_TCP, IB_QPT_RC);
		if (IS_ERR(id))
			return PTR_ERR(id);
		r->id[0] = id;
		err = rdma_resolve_addr(id, (struct sockaddr *)&from, (struct sockaddr *)&to,
					10000);
	}
	if (!err && !in_step(atomic_read(&all.up[0]) == all.count &&
			     atomic_read(&all.up[1]) == all.count))
		err = -ETIMEDOUT;
	return err;
}

/* count connections from one device to itself; all is gone afterwards. */
int raw_block(const struct sockaddr_storage *addr, u16 port, u32 count, u32 window,
	      struct scale_times *times)
{
	int err = raw_begin(addr, count) ?: raw_listen(addr, port), s;
	u64 start = ktime_get_ns();
	u32 i;

	for (i = 0; i < count && !err; i++) {
		all.raw[i].n = i;
		for (s = 0; s < 2 && !err; s++) {
			struct ib_qp_attr attr = { .qp_state = IB_QPS_INIT, .port_num = 1 };

			all.raw[i].qp[s] = new_qp();
			err = PTR_ERR_OR_ZERO(all.raw[i].qp[s]);
			if (!err)
				err = ib_modify_qp(all.raw[i].qp[s], &attr, IB_QP_STATE |
						   IB_QP_PKEY_INDEX | IB_QP_PORT |
						   IB_QP_ACCESS_FLAGS);
		}
	}
	times->create = ktime_get_ns() - start;
	start = ktime_get_ns();
	err = err ?: raw_connect(addr, port, window);
	times->connect = ktime_get_ns() - start;
	start = ktime_get_ns();
	for (i = 0; i < count && !err; i++)
		rdma_disconnect(all.raw[i].id[i % 2]);
	if (!err && !in_step(atomic_read(&all.down[0]) == count &&
			     atomic_read(&all.down[1]) == count))
		err = -ETIMEDOUT;
	times->disconnect = ktime_get_ns() - start;
	start = ktime_get_ns();
	raw_free();
	all.count = 0;
	times->destroy = ktime_get_ns() - start;
	raw_close();
	return err ? fail("%pe", ERR_PTR(err)) : 0;
}
