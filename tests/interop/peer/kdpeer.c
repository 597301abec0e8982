// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * kdpeer - a peer that is not ours, and means no good.
 *
 * It speaks to the RDMA CM and the verbs alone: nothing here is kDAPL. Orders, one
 * line each, go to the file kdpeer/do in debugfs; a write returns when the order
 * has been carried out, and fails, with the reason in the kernel log, when what
 * the victim did cannot be. The orders are at the end.
 *
 * It lives in the network namespace of whoever loads it. RoCE needs no queue pair
 * to ask for a connection: the numbers of those that are asked with are made up.
 * iWARP does.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/inet.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/prandom.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#define TEST_LONG	(240 * HZ)	/* for anything that must happen */

#include "../../lib/faults.h"
#include "../../lib/orders.h"
#include "talk.h"

#define RESOLVE_MS	10000
#define IB_PDATA	56		/* of a request, beside the header of the RDMA CM */
#define IW_PDATA	128

static char *address, *source;
static ushort port = 4712;
static ulong seed;
static int pending, alive, established;

module_param(address, charp, 0444);
MODULE_PARM_DESC(address, "IP address of the victim (required)");
module_param(source, charp, 0444);
MODULE_PARM_DESC(source, "own IP address (default: what routing says)");
module_param(port, ushort, 0444);
MODULE_PARM_DESC(port, "the victim's port (default 4712)");
module_param(seed, ulong, 0444);
MODULE_PARM_DESC(seed, "of what is done at random (default: a new one, see the log)");
module_param(pending, int, 0444);
MODULE_PARM_DESC(pending, "requests under way that have no answer");
module_param(alive, int, 0444);
MODULE_PARM_DESC(alive, "requests that have not been given up");
module_param(established, int, 0444);
MODULE_PARM_DESC(established, "of those, connections");

/* What becomes of a request. */
enum kind {
	KIND_FLOOD,		/* whatever may be done with an answer, at random */
	KIND_DIE_CONNECT,	/* gone once it has been sent */
	KIND_DIE_REP,		/* gone once it was accepted */
	KIND_MUTE,		/* accepted, and nothing more is heard of us */
	KIND_REJECT_REP,	/* the answer is rejected */
	KIND_DIE_EST,		/* gone once connected, without a word */
	KIND_LEAVE,		/* disconnected once connected */
	KIND_HOLD,		/* kept, until the order to die */
	KIND_DEPTHS,		/* absurd parameters */
};

static const char *const kind_names[] = {
	"flood", "die-connect", "die-rep", "mute", "reject-rep", "die-est", "leave", "hold",
	"depths",
};

struct req {
	struct rdma_cm_id *id;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
	enum kind kind;
	u32 number;
	/* under peer_lock */
	struct list_head entry;
	bool answered, up, closing;
	int answers;
	u8 reads_in, reads_out;		/* that were asked for */
	struct work_struct connect, leave, close;
};

static DEFINE_SPINLOCK(peer_lock);
static LIST_HEAD(reqs);
static struct workqueue_struct *peer_wq;
static struct net *peer_net;
static struct sockaddr_storage peer_to, peer_from;
static struct dentry *peer_dir;
static struct rnd_state peer_rnd;
static u32 peer_number;		/* of requests, ever */
static bool peer_iwarp;		/* which gives up on a request that nobody answers */
static struct {
	u32 accepted, rejected, refused, unreachable, local;
	u32 reason[256];
} stat;

/* A flood that goes on while other orders are carried out. */
static struct {
	struct work_struct work;
	enum kind kind;
	u32 count, window, done;
	bool busy, stop;
} flood;

TEST_STATE;

static u32 rnd(u32 below)
{
	u32 n;

	spin_lock_bh(&peer_lock);
	n = prandom_u32_state(&peer_rnd) % below;
	spin_unlock_bh(&peer_lock);
	return n;
}

static bool is_iwarp(struct rdma_cm_id *id)
{
	return rdma_protocol_iwarp(id->device, id->port_num);
}

/* ---- one request ---- */

static int qp_open(struct req *req)
{
	struct ib_qp_init_attr attr = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.qp_type = IB_QPT_RC,
	};

	req->pd = ib_alloc_pd(req->id->device, 0);
	if (IS_ERR(req->pd))
		return PTR_ERR(req->pd);
	req->cq = ib_alloc_cq(req->id->device, NULL, 16, 0, IB_POLL_DIRECT);
	if (IS_ERR(req->cq))
		return PTR_ERR(req->cq);
	attr.send_cq = req->cq;
	attr.recv_cq = req->cq;
	req->qp = ib_create_qp(req->pd, &attr);
	return PTR_ERR_OR_ZERO(req->qp);
}

static void qp_close(struct req *req)
{
	if (!IS_ERR_OR_NULL(req->qp))
		ib_destroy_qp(req->qp);
	if (!IS_ERR_OR_NULL(req->cq))
		ib_free_cq(req->cq);
	if (!IS_ERR_OR_NULL(req->pd))
		ib_dealloc_pd(req->pd);
	req->qp = NULL;
	req->cq = NULL;
	req->pd = NULL;
}

static void req_close(struct work_struct *work)
{
	struct req *req = container_of(work, struct req, close);

	cancel_work_sync(&req->connect);
	cancel_work_sync(&req->leave);
	/*
	 * Either order is legal: the queue pair does not belong to the id. But siw_qp_cm_drop()
	 * uses the end of the connection while that, about to close, is freed.
	 */
	if (!peer_iwarp && rnd(2))
		qp_close(req);
	if (req->id)
		rdma_destroy_id(req->id);
	qp_close(req);
	spin_lock_bh(&peer_lock);
	alive--;
	spin_unlock_bh(&peer_lock);
	kfree(req);
	wake_up_all(&test_wait);
}

static void req_leave(struct work_struct *work)
{
	struct req *req = container_of(work, struct req, leave);

	rdma_disconnect(req->id);	/* DISCONNECTED follows */
}

/* The request is given up, whatever state it is in. */
static void req_die_locked(struct req *req)
{
	if (req->closing)
		return;
	req->closing = true;
	list_del(&req->entry);
	if (!req->answered)
		pending--;
	if (req->up)
		established--;
	queue_work(peer_wq, &req->close);
}

static void req_die(struct req *req)
{
	spin_lock_bh(&peer_lock);
	req_die_locked(req);
	spin_unlock_bh(&peer_lock);
	wake_up_all(&test_wait);
}

/* The first answer is the one; after it a connection may only end. */
static void req_answered(struct req *req, u32 *counter)
{
	spin_lock_bh(&peer_lock);
	if (!req->answered) {
		(*counter)++;
		if (!req->closing)
			pending--;
	}
	req->answered = true;
	spin_unlock_bh(&peer_lock);
	wake_up_all(&test_wait);
}

static void req_up(struct req *req)
{
	spin_lock_bh(&peer_lock);
	if (!req->closing && !req->up) {
		req->up = true;
		established++;
	}
	spin_unlock_bh(&peer_lock);
	wake_up_all(&test_wait);
}

static void connect_work(struct work_struct *work)
{
	struct req *req = container_of(work, struct req, connect);
	bool iwarp = is_iwarp(req->id);
	u8 pdata[IW_PDATA];
	struct rdma_conn_param param = {
		.private_data = pdata,
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = rnd(8),
		.rnr_retry_count = rnd(8),
		.flow_control = rnd(2),
		.srq = rnd(2),
		.qp_num = (req->number * 7 + 1) & 0xffffff,
	};
	int err = iwarp ? qp_open(req) : 0;

	peer_iwarp = iwarp;
	if (req->qp)
		param.qp_num = req->qp->qp_num;
	/* junk of all lengths */
	get_random_bytes(pdata, sizeof(pdata));
	param.private_data_len = req->number % ((iwarp ? IW_PDATA : IB_PDATA) + 1);
	if (req->kind == KIND_LEAVE) {
		memcpy(pdata, TALK_LEAVE, sizeof(TALK_LEAVE));
		param.private_data_len = sizeof(TALK_LEAVE);
	} else if (req->kind == KIND_DEPTHS) {
		/* siw itself refuses to ask for more than it has */
		param.responder_resources = iwarp ? 128 : rnd(2) ? 255 : rnd(256);
		param.initiator_depth = iwarp ? 128 : rnd(2) ? 255 : rnd(256);
	}
	req->reads_in = param.responder_resources;
	req->reads_out = param.initiator_depth;
	if (!err)
		err = rdma_connect(req->id, &param);
	if (err) {
		req_answered(req, &stat.local);
		req_die(req);
	} else if (req->kind == KIND_DIE_CONNECT) {
		req_die(req);
	}
}

static void junk_reject(struct rdma_cm_id *id, u8 reason)
{
	u8 pdata[64];

	get_random_bytes(pdata, sizeof(pdata));
	rdma_reject(id, pdata, rnd(sizeof(pdata) + 1), reason);
}

/* RoCE: the victim has accepted, and waits for our last word. */
static void accepted(struct req *req, struct rdma_cm_id *id, const struct rdma_conn_param *conn)
{
	if (conn->responder_resources != min_t(u8, req->reads_in, VICTIM_READS) ||
	    conn->initiator_depth != min_t(u8, req->reads_out, VICTIM_READS))
		fail("request %u: %u and %u RDMA Reads are granted, %u and %u were asked for",
		     req->number, conn->responder_resources, conn->initiator_depth,
		     req->reads_in, req->reads_out);
	switch (req->kind) {
	case KIND_DIE_REP:
		req_die(req);
		return;
	case KIND_MUTE:
		return;
	case KIND_REJECT_REP:
		/* not TIMEOUT, which says by other means whom it is for */
		junk_reject(id, rnd(2) ? IB_CM_REJ_CONSUMER_DEFINED :
					 IB_CM_REJ_TIMEOUT + 1 + rnd(40));
		req_die(req);
		return;
	case KIND_FLOOD:
		if (!rnd(3)) {
			req_die(req);
			return;
		}
		break;
	default:
		break;
	}
	if (rdma_accept(id, NULL)) {
		req_die(req);
		return;
	}
	req_up(req);
	switch (req->kind) {
	case KIND_HOLD:
		break;
	case KIND_FLOOD:
		if (rnd(2))
			rdma_disconnect(id);
		else
			req_die(req);
		break;
	case KIND_DIE_EST:
		req_die(req);
		break;
	default:
		rdma_disconnect(id);
		break;
	}
}

/* iWARP: there is no such step, the connection is up. */
static void connected(struct req *req, struct rdma_cm_id *id)
{
	req_up(req);
	if (req->kind == KIND_HOLD || req->kind == KIND_MUTE)
		return;
	if (req->kind == KIND_LEAVE || rnd(2))
		rdma_disconnect(id);
	else
		req_die(req);
}

static int req_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct req *req = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (rdma_resolve_route(id, RESOLVE_MS)) {
			req_answered(req, &stat.local);
			req_die(req);
		}
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		spin_lock_bh(&peer_lock);
		if (!req->closing)
			queue_work(peer_wq, &req->connect);
		spin_unlock_bh(&peer_lock);
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		if (req->answers++)
			fail("request %u is accepted after an answer", req->number);
		req_answered(req, &stat.accepted);
		accepted(req, id, &event->param.conn);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (!is_iwarp(id))
			break;
		if (req->answers++)
			fail("request %u is accepted after an answer", req->number);
		if (event->status) {
			req_answered(req, &stat.refused);
			req_die(req);
			break;
		}
		req_answered(req, &stat.accepted);
		connected(req, id);
		break;
	case RDMA_CM_EVENT_REJECTED:
		/* A REJ is also how a server gives up on what it has accepted. */
		if (!req->answers++) {
			spin_lock_bh(&peer_lock);
			stat.reason[abs(event->status) & 255]++;
			spin_unlock_bh(&peer_lock);
			req_answered(req, !is_iwarp(id) && event->status ==
				     IB_CM_REJ_CONSUMER_DEFINED ? &stat.rejected : &stat.refused);
		}
		req_die(req);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		rdma_disconnect(id);
		req_die(req);
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:	/* ADDR_ERROR, ROUTE_ERROR, UNREACHABLE, CONNECT_ERROR, DEVICE_REMOVAL */
		req_answered(req, event->event == RDMA_CM_EVENT_UNREACHABLE ? &stat.unreachable :
									       &stat.local);
		req_die(req);
		break;
	}
	return 0;
}

static struct req *req_new(enum kind kind)
{
	struct req *req = kzalloc(sizeof(*req), GFP_KERNEL);

	if (!req)
		return NULL;
	INIT_WORK(&req->connect, connect_work);
	INIT_WORK(&req->leave, req_leave);
	INIT_WORK(&req->close, req_close);
	req->kind = kind;
	spin_lock_bh(&peer_lock);
	req->number = peer_number++;
	pending++;
	alive++;
	list_add_tail(&req->entry, &reqs);
	spin_unlock_bh(&peer_lock);
	return req;
}

static int resolve(struct rdma_cm_id *id)
{
	return rdma_resolve_addr(id, source ? (struct sockaddr *)&peer_from : NULL,
				 (struct sockaddr *)&peer_to, RESOLVE_MS);
}

static int begin(enum kind kind)
{
	struct req *req = req_new(kind);
	struct rdma_cm_id *id;
	int err;

	if (!req)
		return -ENOMEM;
	id = rdma_create_id(peer_net, req_handler, req, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id)) {
		req_answered(req, &stat.local);
		req_die(req);
		return PTR_ERR(id);
	}
	req->id = id;
	err = resolve(id);
	if (err) {
		req_answered(req, &stat.local);
		req_die(req);
	}
	return err;
}

/* ---- orders about requests ---- */

static void flood_work(struct work_struct *work)
{
	u32 n;

	for (n = 0; n < flood.count && !READ_ONCE(flood.stop); n++) {
		if (!wait_event_idle_timeout(test_wait, READ_ONCE(alive) < flood.window ||
					     READ_ONCE(flood.stop), TEST_LONG)) {
			fail("request %u of the flood waits for the others", n);
			break;
		}
		begin(flood.kind);
		WRITE_ONCE(flood.done, n + 1);
	}
	WRITE_ONCE(flood.busy, false);
	wake_up_all(&test_wait);
}

/* start KIND COUNT WINDOW: so many requests, so many of them at a time. */
static int do_start(char *arg)
{
	char name[16];
	u32 count, window;
	int i;

	if (READ_ONCE(flood.busy) || sscanf(arg, "%15s %u %u", name, &count, &window) != 3)
		return -EINVAL;
	i = match_string(kind_names, ARRAY_SIZE(kind_names), name);
	if (i < 0 || !window)
		return -EINVAL;
	spin_lock_bh(&peer_lock);
	memset(&stat, 0, sizeof(stat));
	spin_unlock_bh(&peer_lock);
	flood.kind = i;
	flood.count = count;
	flood.window = window;
	flood.done = 0;
	flood.busy = true;
	queue_work(peer_wq, &flood.work);
	return 0;
}

static void report(void)
{
	char text[256];
	int i, n = 0;

	text[0] = '\0';
	for (i = 0; i < 256; i++) {
		if (stat.reason[i])
			n += scnprintf(text + n, sizeof(text) - n, " %u:%u", i, stat.reason[i]);
	}
	pr_info("accepted %u rejected %u refused %u unreachable %u failed %u, reasons%s\n",
		stat.accepted, stat.rejected, stat.refused, stat.unreachable, stat.local, text);
}

/*
 * answered [LEFT]: all but so many have their answer, or the transport's word that
 * there is none; each has exactly one.
 */
static int do_answered(char *arg)
{
	u32 left = 0, sum;

	if (*arg && kstrtou32(arg, 0, &left))
		return -EINVAL;
	if (!await(!READ_ONCE(flood.busy) && (READ_ONCE(pending) == left ||
					      (peer_iwarp && READ_ONCE(pending) < left)))) {
		report();
		return fail("%d of %u requests have no answer", pending, flood.done);
	}
	report();
	if (peer_iwarp)
		return failed() ? -EIO : 0;
	sum = stat.accepted + stat.rejected + stat.refused + stat.unreachable + stat.local;
	if (sum + left != flood.count && flood.kind != KIND_DIE_CONNECT)
		return fail("%u answers for %u requests", sum, flood.count);
	return failed() ? -EIO : 0;
}

/* gone: nothing is left of any request. */
static int do_gone(char *arg)
{
	if (!await(!READ_ONCE(flood.busy) && !READ_ONCE(alive))) {
		report();
		return fail("%d requests are left, %d without an answer, %d connections", alive,
			    pending, established);
	}
	report();
	return failed() ? -EIO : 0;
}

/* up COUNT: so many connections are there. */
static int do_up(char *arg)
{
	u32 count;

	if (kstrtou32(arg, 0, &count))
		return -EINVAL;
	if (!await(READ_ONCE(established) >= count))
		return fail("%d of %u connections", established, count);
	return 0;
}

/* count WHAT N */
static int do_count(char *arg)
{
	char what[16];
	u32 n, is;

	if (sscanf(arg, "%15s %u", what, &n) != 2)
		return -EINVAL;
	is = !strcmp(what, "refused") ? stat.refused : !strcmp(what, "rejected") ? stat.rejected :
	     !strcmp(what, "accepted") ? stat.accepted : stat.unreachable;
	return is == n ? 0 : fail("%u are %s, not %u", is, what, n);
}

/* die: all that is left is given up at once. */
static int do_die(char *arg)
{
	struct req *req, *next;

	WRITE_ONCE(flood.stop, true);
	wake_up_all(&test_wait);
	flush_work(&flood.work);
	WRITE_ONCE(flood.stop, false);
	spin_lock_bh(&peer_lock);
	list_for_each_entry_safe(req, next, &reqs, entry)
		req_die_locked(req);
	spin_unlock_bh(&peer_lock);
	wake_up_all(&test_wait);
	return 0;
}

/* leave: all connections are disconnected, in order. */
static int do_leave(char *arg)
{
	struct req *req;

	spin_lock_bh(&peer_lock);
	list_for_each_entry(req, &reqs, entry) {
		if (req->up)
			queue_work(peer_wq, &req->leave);
	}
	spin_unlock_bh(&peer_lock);
	return 0;
}

/* ---- all orders ---- */

static const struct order orders[] = {
	{ "start", do_start },		/* KIND COUNT WINDOW */
	{ "answered", do_answered },	/* [LEFT] */
	{ "count", do_count },		/* WHAT N */
	{ "up", do_up },		/* COUNT */
	{ "leave", do_leave },
	{ "die", do_die },
	{ "gone", do_gone },
	{}
};

static int __init peer_init(void)
{
	int err;

	if (!address)
		return -EINVAL;
	if (!seed)
		seed = get_random_u32();
	prandom_seed_state(&peer_rnd, seed);
	pr_info("seed=%lu\n", seed);
	INIT_WORK(&flood.work, flood_work);
	peer_net = get_net(current->nsproxy->net_ns);
	err = inet_pton_with_scope(peer_net, AF_UNSPEC, address, NULL, &peer_to);
	if (!err && source)
		err = inet_pton_with_scope(peer_net, AF_UNSPEC, source, NULL, &peer_from);
	if (!err) {
		((struct sockaddr_in *)&peer_to)->sin_port = htons(port);
		peer_wq = alloc_workqueue("kdpeer", WQ_UNBOUND, 0);
		err = peer_wq ? 0 : -ENOMEM;
	}
	if (err) {
		put_net(peer_net);
		return err;
	}
	peer_dir = orders_open("kdpeer", orders);
	return 0;
}

static void __exit peer_exit(void)
{
	debugfs_remove_recursive(peer_dir);
	do_die(NULL);
	wait_event_idle(test_wait, !READ_ONCE(alive));
	destroy_workqueue(peer_wq);
	put_net(peer_net);
}

module_init(peer_init);
module_exit(peer_exit);
MODULE_DESCRIPTION("kDAPL test: a hostile peer, without kDAPL");
MODULE_AUTHOR("The kDAPL for Linux authors");
MODULE_LICENSE("Dual BSD/GPL");
