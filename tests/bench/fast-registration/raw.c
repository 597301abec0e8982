// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The chain by the verbs alone, as a storage protocol does it: memory and page list are
 * mapped, the key is changed, REG_MR, SEND and LOCAL_INV are posted, and only the last of
 * them has a completion, where the memory is unmapped.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": raw: " fmt

#include <linux/err.h>
#include <linux/in.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include "kdreg.h"

/* As many as an Endpoint of the usual attributes has. */
#define SENDS	80
#define DTOS	64
#define IOVS	4

struct net *raw_net;

struct raw_slot {
	struct ib_mr *mr;
	struct scatterlist sgl[MAX_PAGES];
	struct ib_cqe reg, send, inv, reply;
};

struct raw_recv {
	struct ib_cqe cqe;
	struct raw_end *end;
};

struct raw_end {
	struct rdma_cm_id *id;
	struct ib_cq *cq;
	struct msgs *msgs;
	u64 dma;		/* of msgs */
	struct raw_recv recv[RECVS];
	bool up, down;
};

static struct {
	struct rdma_cm_id *listener;
	struct ib_pd *pd;
	bool closing;
	struct raw_end end[2];
	struct raw_slot slot[MAX_SLOTS];
} *all;

static bool completed(const struct ib_wc *wc, const char *what)
{
	if (wc->status == IB_WC_SUCCESS)
		return true;
	if (!READ_ONCE(all->closing))
		fault("%s: %s", what, ib_wc_status_msg(wc->status));
	return false;
}

static struct ib_sge sge_of(struct raw_end *end, struct msg *msg)
{
	return (struct ib_sge) {
		.addr = end->dma + ((void *)msg - (void *)end->msgs),
		.length = sizeof(*msg),
		.lkey = all->pd->local_dma_lkey,
	};
}

static int post_recv(struct raw_end *end, u32 i)
{
	struct ib_sge sge = sge_of(end, &end->msgs->recv[i]);
	struct ib_recv_wr wr = { .wr_cqe = &end->recv[i].cqe, .sg_list = &sge, .num_sge = 1 };

	return ib_post_recv(end->id->qp, &wr, NULL);
}

static void unmap(struct raw_slot *s)
{
	ib_dma_unmap_sg(all->pd->device, s->sgl, plan.pages, DMA_FROM_DEVICE);
}

static void reg_done(struct ib_cq *cq, struct ib_wc *wc)
{
	completed(wc, "REG_MR");
}

static void send_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct raw_slot *s = container_of(wc->wr_cqe, struct raw_slot, send);

	if (completed(wc, "SEND") && plan.peer)
		reg_part(s - all->slot);
}

static void inv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct raw_slot *s = container_of(wc->wr_cqe, struct raw_slot, inv);

	if (!completed(wc, "LOCAL_INV"))
		return;
	unmap(s);
	reg_part(s - all->slot);
}

static void reply_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct raw_slot *s = container_of(wc->wr_cqe, struct raw_slot, reply);

	if (completed(wc, "SEND_WITH_INV"))
		reg_part(s - all->slot);
}

static int reply(struct raw_slot *s, u32 key)
{
	struct raw_end *end = &all->end[1];
	struct msg *msg = &end->msgs->send[s - all->slot];
	struct ib_sge sge = sge_of(end, msg);
	struct ib_send_wr wr = {
		.wr_cqe = &s->reply, .sg_list = &sge, .num_sge = 1,
		.opcode = IB_WR_SEND_WITH_INV, .send_flags = IB_SEND_SIGNALED,
		.ex.invalidate_rkey = key,
	};

	msg->slot = s - all->slot;
	msg->key = key;
	return ib_post_send(end->id->qp, &wr, NULL);
}

static void recv_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct raw_recv *r = container_of(wc->wr_cqe, struct raw_recv, cqe);
	struct raw_end *end = r->end;
	u32 i = r - end->recv;
	struct raw_slot *s;
	struct msg msg;

	if (!completed(wc, "RECV"))
		return;
	msg = reg_received(end->msgs, i, all->slot[0].mr->rkey);
	s = &all->slot[msg.slot % MAX_SLOTS];
	if (wc->byte_len != sizeof(msg) || msg.slot >= MAX_SLOTS || msg.key != s->mr->rkey) {
		fault("message of %u bytes, slot %u, key 0x%x", wc->byte_len, msg.slot, msg.key);
		return;
	}
	if (post_recv(end, i))
		fault("ib_post_recv");
	if (end == &all->end[0]) {
		if (!(wc->wc_flags & IB_WC_WITH_INVALIDATE) ||
		    wc->ex.invalidate_rkey != msg.key)
			fault("the answer invalidates 0x%x, not 0x%x", wc->ex.invalidate_rkey,
			      msg.key);
		unmap(s);
	} else if (plan.peer && reply(s, msg.key)) {
		fault("ib_post_send of an answer");
	}
	if (end == &all->end[0] || !plan.peer)
		reg_part(msg.slot);
}

/* What comes before the posting: memory, page list, key and message. */
static int map(struct raw_slot *s, struct msg *msg)
{
	struct scatterlist *from = plan.sgl;
	u32 i;
	int n;

	for (i = 0; i < plan.pages; i++, from = sg_next(from))
		sg_set_page(&s->sgl[i], sg_page(from), from->length, from->offset);
	if (!ib_dma_map_sg(all->pd->device, s->sgl, plan.pages, DMA_FROM_DEVICE))
		return fault("ib_dma_map_sg");
	n = ib_map_mr_sg(s->mr, s->sgl, plan.pages, NULL, PAGE_SIZE);
	if (n != plan.pages)
		return fault("ib_map_mr_sg: %d", n);
	ib_update_fast_reg_key(s->mr, ib_inc_rkey(s->mr->rkey));
	msg->slot = s - all->slot;
	msg->key = s->mr->rkey;
	return 0;
}

static int start(u32 slot, bool list)
{
	struct raw_end *end = &all->end[0];
	struct msg *msg = &end->msgs->send[slot];
	struct raw_slot *s = &all->slot[slot];
	struct ib_sge sge = sge_of(end, msg);
	struct ib_reg_wr reg = {
		.wr = { .wr_cqe = &s->reg, .opcode = IB_WR_REG_MR },
	};
	struct ib_send_wr send = {
		.wr_cqe = &s->send, .sg_list = &sge, .num_sge = 1, .opcode = IB_WR_SEND,
	};
	struct ib_send_wr inv = {
		.wr_cqe = &s->inv, .opcode = IB_WR_LOCAL_INV, .send_flags = IB_SEND_SIGNALED,
	};
	int err = map(s, msg);

	if (err)
		return err;
	reg.mr = s->mr;
	reg.key = s->mr->rkey;
	reg.access = IB_ACCESS_REMOTE_READ;
	inv.ex.invalidate_rkey = s->mr->rkey;
	if (plan.peer)
		send.send_flags = IB_SEND_SIGNALED;
	if (list) {
		reg.wr.next = &send;
		if (!plan.peer)
			send.next = &inv;
		err = ib_post_send(end->id->qp, &reg.wr, NULL);
	} else {
		err = ib_post_send(end->id->qp, &reg.wr, NULL) ?:
		      ib_post_send(end->id->qp, &send, NULL);
		if (!err && !plan.peer)
			err = ib_post_send(end->id->qp, &inv, NULL);
	}
	return err ? fault("ib_post_send: %pe", ERR_PTR(err)) : 0;
}

int raw_start_list(u32 slot)
{
	return start(slot, true);
}

int raw_start_calls(u32 slot)
{
	return start(slot, false);
}

static int make_qp(struct raw_end *end, struct rdma_cm_id *id)
{
	struct ib_qp_init_attr attr = {
		.cap = {
			.max_send_wr = SENDS, .max_recv_wr = DTOS,
			.max_send_sge = IOVS, .max_recv_sge = IOVS,
		},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
		.send_cq = end->cq,
		.recv_cq = end->cq,
	};

	return rdma_create_qp(id, all->pd, &attr);
}

static int raw_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct rdma_conn_param param = {
		.responder_resources = 4, .initiator_depth = 4,
		.retry_count = 6, .rnr_retry_count = 6,
	};
	struct raw_end *end = id->context;
	int err = 0;

	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		end = &all->end[1];
		if (end->id)
			return -EBUSY;
		err = make_qp(end, id) ?: rdma_accept(id, &param);
		if (err) {
			fault("rdma_accept: %pe", ERR_PTR(err));
			if (id->qp)
				rdma_destroy_qp(id);
			return err;
		}
		id->context = end;
		WRITE_ONCE(end->id, id);
		return 0;
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		err = rdma_resolve_route(id, 10000);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		err = make_qp(end, id) ?: rdma_connect_locked(id, &param);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		WRITE_ONCE(end->up, true);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		rdma_disconnect(id);
		WRITE_ONCE(end->down, true);
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		err = event->status ?: -EIO;
		break;
	}
	if (err)
		fault("%s: %pe", rdma_event_msg(event->event), ERR_PTR(err));
	wake_up_all(&test_wait);
	return 0;
}

static int raw_connect(const struct sockaddr_storage *addr, u16 port)
{
	struct sockaddr_storage from = *addr, to = *addr;
	struct rdma_cm_id *id;
	int err;

	((struct sockaddr_in *)&from)->sin_port = 0;
	((struct sockaddr_in *)&to)->sin_port = htons(port);
	err = rdma_bind_addr(all->listener, (struct sockaddr *)&to) ?:
	      rdma_listen(all->listener, 4);
	if (err)
		return err;
	id = rdma_create_id(raw_net, raw_handler, &all->end[0], RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	all->end[0].id = id;
	err = rdma_resolve_addr(id, (struct sockaddr *)&from, (struct sockaddr *)&to, 10000);
	if (!err && !in_order(READ_ONCE(all->end[0].up) && READ_ONCE(all->end[1].up)))
		err = -ETIMEDOUT;
	return err;
}

static int make_msgs(struct raw_end *end, struct ib_device *dev)
{
	end->msgs = kzalloc(sizeof(*end->msgs), GFP_KERNEL);
	if (!end->msgs)
		return -ENOMEM;
	end->dma = ib_dma_map_single(dev, end->msgs, sizeof(*end->msgs), DMA_BIDIRECTIONAL);
	if (!ib_dma_mapping_error(dev, end->dma))
		return 0;
	end->dma = 0;
	return -EIO;
}

static int raw_alloc(struct ib_device *dev)
{
	int err, e;
	u32 i;

	all->pd = ib_alloc_pd(dev, 0);
	if (IS_ERR(all->pd))
		return PTR_ERR(all->pd);
	for (e = 0, err = 0; e < 2 && !err; e++) {
		all->end[e].cq = ib_alloc_cq(dev, NULL, SENDS + DTOS, 0, IB_POLL_SOFTIRQ);
		err = PTR_ERR_OR_ZERO(all->end[e].cq) ?: make_msgs(&all->end[e], dev);
		for (i = 0; i < RECVS; i++) {
			all->end[e].recv[i].cqe.done = recv_done;
			all->end[e].recv[i].end = &all->end[e];
		}
	}
	for (i = 0; i < MAX_SLOTS && !err; i++) {
		struct raw_slot *s = &all->slot[i];

		sg_init_table(s->sgl, MAX_PAGES);
		s->reg.done = reg_done;
		s->send.done = send_done;
		s->inv.done = inv_done;
		s->reply.done = reply_done;
		s->mr = ib_alloc_mr(all->pd, IB_MR_TYPE_MEM_REG, MAX_PAGES);
		err = PTR_ERR_OR_ZERO(s->mr);
	}
	return err;
}

/* A connection of the device with that address to itself. */
int raw_open(const struct sockaddr_storage *addr, u16 port)
{
	struct sockaddr_storage any = *addr;
	struct rdma_cm_id *id;
	int err;
	u32 i;

	all = kzalloc(sizeof(*all), GFP_KERNEL);
	if (!all)
		return -ENOMEM;
	((struct sockaddr_in *)&any)->sin_port = 0;
	id = rdma_create_id(raw_net, raw_handler, NULL, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	err = rdma_bind_addr(id, (struct sockaddr *)&any);
	if (!err && !id->device)
		err = -ENODEV;
	if (!err)
		err = raw_alloc(id->device);
	all->listener = rdma_create_id(raw_net, raw_handler, NULL, RDMA_PS_TCP, IB_QPT_RC);
	if (!err)
		err = PTR_ERR_OR_ZERO(all->listener) ?: raw_connect(addr, port);
	for (i = 0; i < 2 * RECVS && !err; i++)
		err = post_recv(&all->end[i & 1], i / 2);
	rdma_destroy_id(id);
	return err ? fail("%pe", ERR_PTR(err)) : 0;
}

static void end_close(struct raw_end *end)
{
	if (end->id) {
		if (end->id->qp) {
			ib_drain_qp(end->id->qp);
			rdma_destroy_qp(end->id);
		}
		rdma_destroy_id(end->id);
	}
	if (!IS_ERR_OR_NULL(end->cq))
		ib_free_cq(end->cq);
	if (end->dma)
		ib_dma_unmap_single(all->pd->device, end->dma, sizeof(*end->msgs),
				    DMA_BIDIRECTIONAL);
	kfree(end->msgs);
}

void raw_close(void)
{
	u32 i;

	if (!all)
		return;
	WRITE_ONCE(all->closing, true);
	if (!IS_ERR_OR_NULL(all->listener))
		rdma_destroy_id(all->listener);
	if (all->end[0].up) {
		rdma_disconnect(all->end[0].id);
		wait_event_timeout(test_wait, READ_ONCE(all->end[0].down) &&
				   READ_ONCE(all->end[1].down), 10 * HZ);
	}
	end_close(&all->end[0]);
	end_close(&all->end[1]);
	for (i = 0; i < MAX_SLOTS; i++) {
		if (!IS_ERR_OR_NULL(all->slot[i].mr))
			ib_dereg_mr(all->slot[i].mr);
	}
	if (!IS_ERR_OR_NULL(all->pd))
		ib_dealloc_pd(all->pd);
	kfree(all);
	all = NULL;
}
