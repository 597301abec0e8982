// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * kdreads - a queue pair of the verbs and an Endpoint that read from each other.
 *
 * The queue pair belongs to a plain user of the RDMA CM, in the network namespace of
 * whoever loads the module; the Endpoint to kDAPL. In each round either of them connects
 * to the other. What both ask for is chosen at random: read depths (beyond what the device
 * has, too), retries, private data. The connection must be made, the depths that are agreed
 * must be those that both sides can keep, and then both read from each other as fast as they
 * may. The rounds are run by loading the module, which fails if one of them does.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/prandom.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/wait.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>
#include <dat2/kdat_ext.h>

#include "../../lib/peer.h"

#define LONG		(60 * HZ)
#define RESOLVE_MS	10000
#define READS		64		/* each side has under way at once */
#define PIECE		4096		/* bytes of each */
#define SIZE		(READS * PIECE)
#define IB_PDATA	56		/* of a request, beside the header of the RDMA CM */
#define IW_PDATA	128
#define HELLO		16		/* bytes of the message that each side sends first */

static char *ia, *address, *peer;
static ushort port = 4720;
static uint rounds = 40;
static ulong seed;

module_param(ia, charp, 0444);
MODULE_PARM_DESC(ia, "interface adapter of the Endpoint, e.g. rxe0-1 (required)");
module_param(address, charp, 0444);
MODULE_PARM_DESC(address, "its IP address (required)");
module_param(peer, charp, 0444);
MODULE_PARM_DESC(peer, "IP address of the queue pair (required)");
module_param(port, ushort, 0444);
MODULE_PARM_DESC(port, "where both listen, the queue pair on the next one (default 4720)");
module_param(rounds, uint, 0444);
MODULE_PARM_DESC(rounds, "connections (default 40)");
module_param(seed, ulong, 0444);
MODULE_PARM_DESC(seed, "of what is done at random (default: a new one, see the log)");

#define fail(fmt, ...)	({ pr_err("FAIL round %u: " fmt "\n", round, ##__VA_ARGS__); -EIO; })

static uint round;
static struct rnd_state rnd_state;
static DECLARE_WAIT_QUEUE_HEAD(changed);

/* What is asked for in a round. */
static struct {
	bool raw_connects;
	u8 raw_in, raw_out, ep_in, ep_out;
	u8 retry, rnr_retry;			/* of the queue pair */
	struct kdat_conn_attr conn;		/* of the Endpoint */
	u8 ask[IW_PDATA], reply[IW_PDATA];
	int ask_len, reply_len;
	bool raw_leaves;
} plan;

/* The side that is a queue pair. */
static struct {
	struct net *net;
	struct sockaddr_storage addr, to;
	struct rdma_cm_id *listener, *id;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp;
	u8 *mem;		/* what the other one reads, then where to read */
	u64 dma;
	int status;
	u8 in, out;		/* what has been agreed, as it sees it */
	u8 req_in, req_out;	/* as the other one has asked */
	u8 pdata[256];
	int pdata_len;
	enum ib_wc_status error;
	struct {
		bool routed, asked, up, down, failed;
		int sent, received, read, bad;
	} now;			/* in this round */
} raw;

/* The side that is an Endpoint. */
static struct {
	struct peer_ia ia;
	struct peer_mem mem;
	struct peer_end end;
	DAT_CR_HANDLE request;
	int max_in, max_out, max_pdata, max_reply;
	DAT_DTO_COMPLETION_STATUS error;
	struct {
		int sent, received, read, bad;
	} now;
} ours;

enum { COOKIE_SEND, COOKIE_RECV, COOKIE_READ };

static u32 rnd(u32 below)
{
	return prandom_u32_state(&rnd_state) % below;
}

static u8 pattern(bool of_raw, u32 i)
{
	return (of_raw ? 0x55 : 0xaa) ^ (i * 7) ^ (i >> 8) ^ round;
}

#define until(cond, what)						\
	(wait_event_timeout(changed, cond, LONG) ? 0 : fail("%s: it does not come", what))

/* ---- the queue pair ---- */

static void raw_done(struct ib_cq *cq, struct ib_wc *wc);
static struct ib_cqe raw_send_cqe = { .done = raw_done }, raw_recv_cqe = { .done = raw_done },
		     raw_read_cqe = { .done = raw_done };

static void raw_done(struct ib_cq *cq, struct ib_wc *wc)
{
	if (wc->status) {
		if (!raw.now.bad++)
			raw.error = wc->status;
	} else if (wc->wr_cqe == &raw_send_cqe) {
		raw.now.sent++;
	} else if (wc->wr_cqe == &raw_recv_cqe) {
		raw.now.received++;
	} else {
		raw.now.read++;
	}
	wake_up_all(&changed);
}

static void raw_pdata(const struct rdma_conn_param *conn)
{
	raw.pdata_len = min_t(int, conn->private_data_len, sizeof(raw.pdata));
	if (raw.pdata_len)
		memcpy(raw.pdata, conn->private_data, raw.pdata_len);
}

static int raw_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	const struct rdma_conn_param *conn = &event->param.conn;

	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (rdma_resolve_route(id, RESOLVE_MS))
			WRITE_ONCE(raw.now.failed, true);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		WRITE_ONCE(raw.now.routed, true);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (plan.raw_connects) {
			raw_pdata(conn);
			raw.in = conn->responder_resources;
			raw.out = conn->initiator_depth;
		}
		WRITE_ONCE(raw.now.up, true);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		WRITE_ONCE(raw.now.down, true);
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		raw.status = event->status;
		pr_info("%s, %d\n", rdma_event_msg(event->event), event->status);
		WRITE_ONCE(raw.now.failed, true);
		break;
	}
	wake_up_all(&changed);
	return 0;
}

static int raw_listens(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	const struct rdma_conn_param *conn = &event->param.conn;

	if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		return 0;
	raw_pdata(conn);
	raw.req_in = conn->responder_resources;
	raw.req_out = conn->initiator_depth;
	id->event_handler = raw_handler;
	raw.id = id;
	WRITE_ONCE(raw.now.asked, true);
	wake_up_all(&changed);
	return 0;
}

/* Queue pair and memory, once the device is known; one Receive is posted. */
static int raw_open(void)
{
	struct ib_qp_init_attr attr = {
		.cap = {
			.max_send_wr = READS + 1, .max_recv_wr = 1,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.qp_type = IB_QPT_RC,
	};
	struct ib_recv_wr recv = { .wr_cqe = &raw_recv_cqe, .num_sge = 1 };
	struct ib_device *dev = raw.id->device;
	struct ib_sge sge;
	int err;

	raw.pd = ib_alloc_pd(dev, IB_PD_UNSAFE_GLOBAL_RKEY);
	if (IS_ERR(raw.pd))
		return fail("no PD: %pe", raw.pd);
	raw.cq = ib_alloc_cq(dev, NULL, READS + 2, 0, IB_POLL_WORKQUEUE);
	if (IS_ERR(raw.cq))
		return fail("no CQ: %pe", raw.cq);
	attr.send_cq = raw.cq;
	attr.recv_cq = raw.cq;
	err = rdma_create_qp(raw.id, raw.pd, &attr);
	if (err)
		return fail("no queue pair: %pe", ERR_PTR(err));
	raw.qp = raw.id->qp;
	raw.dma = ib_dma_map_single(dev, raw.mem, 2 * SIZE, DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(dev, raw.dma)) {
		raw.dma = 0;
		return fail("its memory cannot be mapped");
	}
	sge = (struct ib_sge){ raw.dma + SIZE, HELLO, raw.pd->local_dma_lkey };
	recv.sg_list = &sge;
	return ib_post_recv(raw.qp, &recv, NULL) ? fail("no Receive") : 0;
}

static void raw_close(void)
{
	struct ib_device *dev = raw.id ? raw.id->device : NULL;

	if (raw.qp)
		rdma_destroy_qp(raw.id);
	if (!IS_ERR_OR_NULL(raw.cq))
		ib_free_cq(raw.cq);
	if (raw.dma)
		ib_dma_unmap_single(dev, raw.dma, 2 * SIZE, DMA_BIDIRECTIONAL);
	if (!IS_ERR_OR_NULL(raw.pd))
		ib_dealloc_pd(raw.pd);
	if (raw.id)
		rdma_destroy_id(raw.id);
	raw.qp = NULL;
	raw.cq = NULL;
	raw.dma = 0;
	raw.pd = NULL;
	raw.id = NULL;
}

static void raw_param(struct rdma_conn_param *param, const u8 *pdata, int len)
{
	*param = (struct rdma_conn_param){
		.private_data = pdata,
		.private_data_len = len,
		.responder_resources = plan.raw_in,
		.initiator_depth = plan.raw_out,
		.retry_count = plan.retry,
		.rnr_retry_count = plan.rnr_retry,
		.flow_control = 1,
	};
}

static int raw_connect(void)
{
	struct sockaddr_storage to = raw.to;
	struct rdma_conn_param param;
	struct rdma_cm_id *id;
	int err;

	((struct sockaddr_in *)&to)->sin_port = htons(port);
	id = rdma_create_id(raw.net, raw_handler, NULL, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return fail("no id: %pe", id);
	raw.id = id;
	err = rdma_resolve_addr(id, (struct sockaddr *)&raw.addr, (struct sockaddr *)&to,
				RESOLVE_MS);
	if (err)
		return fail("resolve: %pe", ERR_PTR(err));
	err = until(READ_ONCE(raw.now.routed) || READ_ONCE(raw.now.failed), "the route") ?:
	      raw_open();
	if (err)
		return err;
	raw_param(&param, plan.ask, plan.ask_len);
	err = rdma_connect(id, &param);
	return err ? fail("rdma_connect: %pe", ERR_PTR(err)) : 0;
}

/* It does what a decent peer does: no more than it has been asked for, or than there is. */
static int raw_accept(void)
{
	struct rdma_conn_param param;
	int err = until(READ_ONCE(raw.now.asked), "the request") ?: raw_open();

	if (err)
		return err;
	raw_param(&param, plan.reply, plan.reply_len);
	if (!ours.ia.iwarp) {
		param.responder_resources = min3(plan.raw_in, raw.req_in, (u8)ours.max_in);
		param.initiator_depth = min3(plan.raw_out, raw.req_out, (u8)ours.max_out);
	}
	raw.in = param.responder_resources;
	raw.out = param.initiator_depth;
	rdma_lock_handler(raw.id);
	err = rdma_accept(raw.id, &param);
	rdma_unlock_handler(raw.id);
	return err ? fail("rdma_accept: %pe", ERR_PTR(err)) : 0;
}

static int raw_post(bool read, int n)
{
	struct ib_sge sge = { raw.dma, HELLO, raw.pd->local_dma_lkey };
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_cqe = read ? &raw_read_cqe : &raw_send_cqe,
			.opcode = read ? IB_WR_RDMA_READ : IB_WR_SEND,
			.send_flags = IB_SEND_SIGNALED,
			.sg_list = &sge,
			.num_sge = 1,
		},
		.remote_addr = (uintptr_t)ours.mem.p + n * PIECE,
		.rkey = ours.mem.rctx,
	};
	int err;

	if (read) {
		sge.addr = raw.dma + SIZE + n * PIECE;
		sge.length = PIECE;
		/* the answer is a Write of the peer's there */
		if (ours.ia.iwarp)
			sge.lkey = raw.pd->unsafe_global_rkey;
	}
	err = ib_post_send(raw.qp, &wr.wr, NULL);
	return err ? fail("ib_post_send: %pe", ERR_PTR(err)) : 0;
}

/* ---- the Endpoint ---- */

static void dto_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;

	if (dto->status != DAT_DTO_SUCCESS) {
		if (!ours.now.bad++)
			ours.error = dto->status;
	} else if (dto->user_cookie.as_64 == COOKIE_SEND) {
		ours.now.sent++;
	} else if (dto->user_cookie.as_64 == COOKIE_RECV) {
		ours.now.received++;
	} else {
		ours.now.read++;
	}
	wake_up_all(&changed);
}

static void cr_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	WRITE_ONCE(ours.request, event->event_data.cr_arrival_event_data.cr_handle);
	wake_up_all(&changed);
}

static int ours_post(int what, int n)
{
	DAT_LMR_TRIPLET iov = { (uintptr_t)ours.mem.p, HELLO, ours.mem.lctx };
	DAT_RMR_TRIPLET from = { raw.dma + n * PIECE, PIECE, 0 };
	DAT_DTO_COOKIE cookie = { .as_64 = what };

	switch (what) {
	case COOKIE_SEND:
		return TRY(dat_ep_post_send, ours.end.ep, 1, &iov, cookie, 0);
	case COOKIE_RECV:
		iov.virtual_address += SIZE;
		return TRY(dat_ep_post_recv, ours.end.ep, 1, &iov, cookie, 0);
	default:
		from.rmr_context = raw.pd->unsafe_global_rkey;
		iov.virtual_address += SIZE + n * PIECE;
		iov.segment_length = PIECE;
		return TRY(dat_ep_post_rdma_read, ours.end.ep, 1, &iov, cookie, &from, 0);
	}
}

static int ours_open(void)
{
	const DAT_EP_ATTR attr = {
		.max_message_size = HELLO,
		.max_rdma_size = PIECE,
		.max_recv_dtos = 1, .max_recv_iov = 1,
		.max_request_dtos = READS + 1, .max_request_iov = 1,
		.max_rdma_read_in = min_t(int, plan.ep_in, ours.max_in),
		.max_rdma_read_out = min_t(int, plan.ep_out, ours.max_out),
		.srq_soft_hw = DAT_HW_DEFAULT,
	};

	plan.ep_in = attr.max_rdma_read_in;
	plan.ep_out = attr.max_rdma_read_out;
	return TRY(peer_end_open, &ours.ia, &ours.end, &attr, &changed, dto_upcall, NULL) ?:
	       TRY(kdat_ep_modify_conn, ours.end.ep, &plan.conn) ?: ours_post(COOKIE_RECV, 0);
}

static int ours_connect(void)
{
	return TRY(peer_connect, &ours.end, &raw.addr, port + 1, 60 * USEC_PER_SEC, plan.ask_len,
		   plan.ask);
}

static int same(const char *whose, const u8 *got, int len, const u8 *want, int want_len)
{
	/* IB pads with zeros */
	if (len < want_len || memcmp(got, want, want_len))
		return fail("%s private data are not what was sent: %d bytes of %d", whose, len,
			    want_len);
	return 0;
}

static int ours_accept(void)
{
	DAT_CR_PARAM param;
	int err = until(READ_ONCE(ours.request) || READ_ONCE(raw.now.failed), "the CR");

	if (err || !ours.request)
		return err ?: fail("the request has failed");
	err = TRY(dat_cr_query, ours.request, DAT_CR_FIELD_ALL, &param);
	if (err)
		return err;
	err = same("its", param.private_data, param.private_data_size, plan.ask, plan.ask_len);
	return err ?: TRY(dat_cr_accept, ours.request, ours.end.ep, plan.reply_len, plan.reply);
}

/* ---- a round ---- */

static u8 a_depth(int most)
{
	static const u8 edge[] = { 0, 1, 2, 16, 127, 128, 129, 255 };
	u8 n = rnd(2) ? edge[rnd(ARRAY_SIZE(edge))] : rnd(3) ? rnd(20) : rnd(256);

	return min_t(int, n, most);
}

/* A guest that stands still for a while must not end what goes over its software. */
static u8 a_retry(void)
{
	return strstarts(ia, "kdhca") ? rnd(8) : 2 + rnd(6);
}

static DAT_COUNT perhaps(u32 below)
{
	return rnd(2) ? KDAT_CONN_DEFAULT : (DAT_COUNT)rnd(below);
}

static void make_plan(void)
{
	int max = ours.ia.iwarp ? IW_PDATA : IB_PDATA, i;

	memset(&plan, 0, sizeof(plan));
	plan.raw_connects = rnd(2);
	/*
	 * Providers of iWARP themselves refuse to ask for more than they have. On others whoever
	 * connects gets what he has asked for, as far as the peer has it.
	 */
	plan.raw_in = a_depth(ours.ia.iwarp || ours.max_out > ours.max_in ? ours.max_in : U8_MAX);
	plan.raw_out = a_depth(ours.ia.iwarp || ours.max_in > ours.max_out ? ours.max_out : U8_MAX);
	plan.ep_in = a_depth(U8_MAX);
	plan.ep_out = a_depth(U8_MAX);
	plan.retry = a_retry();
	plan.rnr_retry = rnd(8);
	plan.conn = (struct kdat_conn_attr){
		.tos = KDAT_CONN_DEFAULT, .ack_timeout = KDAT_CONN_DEFAULT,
		.retry_count = rnd(2) ? KDAT_CONN_DEFAULT : a_retry(),
		.rnr_retry_count = perhaps(8),
		.min_rnr_timer = perhaps(32),
	};
	plan.raw_leaves = rnd(2);
	plan.ask_len = rnd(min(max, ours.max_pdata) + 1);
	plan.reply_len = rnd(min(max, ours.max_reply) + 1);
	for (i = 0; i < IW_PDATA; i++) {
		plan.ask[i] = rnd(256);
		plan.reply[i] = rnd(256);
	}
	memset(&raw.now, 0, sizeof(raw.now));
	memset(&ours.now, 0, sizeof(ours.now));
	ours.request = NULL;
	for (i = 0; i < SIZE; i++) {
		raw.mem[i] = pattern(true, i);
		ours.mem.p[i] = pattern(false, i);
	}
	memset(raw.mem + SIZE, 0, SIZE);
	memset(ours.mem.p + SIZE, 0, SIZE);
}

static int compare(const char *who, const u8 *got, bool of_raw)
{
	u32 i;

	for (i = 0; i < SIZE; i++) {
		if (got[i] != pattern(of_raw, i))
			return fail("%s has read %02x, not %02x, at %u", who, got[i],
				    pattern(of_raw, i), i);
	}
	return 0;
}

/*
 * What one side has under way the other one has agreed to answer. soft-iWARP negotiates as
 * it likes (D-14).
 */
static int check_depths(void)
{
	u8 in = min_t(u8, plan.ep_in, plan.raw_out), out = min_t(u8, plan.ep_out, plan.raw_in);

	if (ours.ia.iwarp)
		return 0;
	if (plan.raw_connects && (raw.out != in || raw.in != out))
		return fail("agreed on %u/%u, not %u/%u", raw.in, raw.out, out, in);
	if (!plan.raw_connects && (raw.req_in != plan.ep_out || raw.req_out != plan.ep_in))
		return fail("a request for %u/%u, not %u/%u", raw.req_in, raw.req_out,
			    plan.ep_out, plan.ep_in);
	return 0;
}

/* As a peer that keeps what has been agreed: no Read without a depth. */
static bool raw_may_read(void)
{
	return ours.ia.iwarp ? plan.raw_out && plan.ep_in : raw.out;
}

static bool ours_may_read(void)
{
	return ours.ia.iwarp ? plan.ep_out && plan.raw_in : min(raw.in, plan.ep_out);
}

#define BROKEN	(raw.now.bad || ours.now.bad || READ_ONCE(raw.now.down) || peer_ended(&ours.end))

static int finished(const char *what)
{
	if (!BROKEN)
		return 0;
	fail("the queue pair: %d sent, %d received, %d read, %d failed (%s)", raw.now.sent,
	     raw.now.received, raw.now.read, raw.now.bad,
	     raw.now.bad ? ib_wc_status_msg(raw.error) : "none");
	return fail("%s: the Endpoint: %d sent, %d received, %d read, %d failed (%s), %s", what,
		    ours.now.sent, ours.now.received, ours.now.read, ours.now.bad,
		    kdat_dto_status_name(ours.now.bad ? ours.error : 0),
		    kdat_event_name(ours.end.end));
}

/* The side that connects speaks first, as iWARP wants it. */
static int greet(void)
{
	int err;

	if (plan.raw_connects)
		err = raw_post(false, 0) ?:
		      until(ours.now.received || BROKEN, "the message of the queue pair") ?:
		      finished("the first message") ?: ours_post(COOKIE_SEND, 0);
	else
		err = ours_post(COOKIE_SEND, 0) ?:
		      until(raw.now.received || BROKEN, "the message of the Endpoint") ?:
		      finished("the first message") ?: raw_post(false, 0);
	return err ?: until((raw.now.sent && raw.now.received && ours.now.sent &&
			     ours.now.received) || BROKEN, "the messages") ?:
	       finished("the messages");
}

/*
 * As many at a time as there are; on iWARP no more than have been agreed, since soft-iWARP stands
 * still for ever when both sides wait for their turn (D-14).
 */
static int read_all(void)
{
	int want_raw = raw_may_read() ? READS : 0, want_ours = ours_may_read() ? READS : 0;
	int max_raw = ours.ia.iwarp ? min(plan.raw_out, plan.ep_in) : READS;
	int max_ours = ours.ia.iwarp ? min(plan.ep_out, plan.raw_in) : READS;
	int raws = 0, our = 0, err = 0;

	while (!err && (raw.now.read < want_raw || ours.now.read < want_ours)) {
		if (raws < want_raw && raws - raw.now.read < max_raw)
			err = raw_post(true, raws++);
		else if (our < want_ours && our - ours.now.read < max_ours)
			err = ours_post(COOKIE_READ, our++);
		else
			err = until((raws < want_raw && raws - raw.now.read < max_raw) ||
				    (our < want_ours && our - ours.now.read < max_ours) ||
				    (raw.now.read == want_raw && ours.now.read == want_ours) ||
				    BROKEN, "the Reads") ?: finished("the Reads");
	}
	if (!err && want_raw)
		err = compare("the queue pair", raw.mem + SIZE, false);
	if (!err && want_ours)
		err = compare("the Endpoint", ours.mem.p + SIZE, true);
	return err;
}

static int leave(void)
{
	int err = 0;

	if (plan.raw_leaves)
		err = rdma_disconnect(raw.id);
	else
		err = TRY(dat_ep_disconnect, ours.end.ep, DAT_CLOSE_ABRUPT_FLAG);
	return err ?: until(peer_ended(&ours.end), "the end of the Endpoint") ?:
	       until(READ_ONCE(raw.now.down), "the end of the queue pair");
}

/* Which round it was, and where both sides stand now. */
static void tell_round(void)
{
	struct ib_qp_init_attr init;
	struct ib_qp_attr attr = {};
	DAT_EP_STATE state = 0;

	pr_info("%s connects, %s leaves; the queue pair %u/%u, the Endpoint %u/%u\n",
		plan.raw_connects ? "the queue pair" : "the Endpoint",
		plan.raw_leaves ? "the queue pair" : "the Endpoint", plan.raw_in, plan.raw_out,
		plan.ep_in, plan.ep_out);
	if (ours.end.ep)
		TRY(dat_ep_get_status, ours.end.ep, &state, NULL, NULL);
	if (raw.qp)
		ib_query_qp(raw.qp, &attr, IB_QP_STATE, &init);
	pr_info("the queue pair: state %u, up %d, down %d, %d read, %d failed; the Endpoint: state %u, %s, %s, %d read, %d failed\n",
		attr.qp_state, raw.now.up, raw.now.down, raw.now.read, raw.now.bad, state,
		kdat_event_name(ours.end.outcome), kdat_event_name(ours.end.end), ours.now.read,
		ours.now.bad);
}

static int one_round(void)
{
	int err;

	make_plan();
	err = ours_open();
	if (!err && plan.raw_connects)
		err = raw_connect() ?: ours_accept();
	else if (!err)
		err = ours_connect() ?: raw_accept();
	err = err ?:
	      until((peer_answered(&ours.end) && READ_ONCE(raw.now.up)) ||
		    READ_ONCE(raw.now.failed),
		    "the connection");
	if (!err && (ours.end.outcome != DAT_CONNECTION_EVENT_ESTABLISHED || raw.now.failed))
		err = fail("%s connects, %u/%u, to %u/%u: %s, %d", plan.raw_connects ?
			   "the queue pair" : "the Endpoint",
			   plan.raw_connects ? plan.raw_in : plan.ep_in,
			   plan.raw_connects ? plan.raw_out : plan.ep_out,
			   plan.raw_connects ? plan.ep_in : plan.raw_in,
			   plan.raw_connects ? plan.ep_out : plan.raw_out,
			   kdat_event_name(ours.end.outcome), raw.status);
	err = err ?: check_depths() ?:
	      (plan.raw_connects ?
	       same("our", raw.pdata, raw.pdata_len, plan.reply, plan.reply_len) :
	       same("our", raw.pdata, raw.pdata_len, plan.ask, plan.ask_len) ?:
	       same("its", ours.end.pdata, ours.end.pdata_size, plan.reply,
		    plan.reply_len)) ?:
	      greet() ?: read_all() ?: leave();
	if (err)
		tell_round();
	TRY(peer_end_close, &ours.end);
	raw_close();
	return err;
}

/* ---- the module ---- */

static int ours_begin(void)
{
	struct kdat_pdata_limits limits;
	int err;

	err = TRY(peer_ia_open, &ours.ia, ia) ?: TRY(kdat_ia_pdata_limits, ours.ia.ia, &limits);
	if (err)
		return err;
	ours.max_in = min(ours.ia.reads_in, U8_MAX);
	ours.max_out = min(ours.ia.reads_out, U8_MAX);
	ours.max_pdata = limits.connect;
	ours.max_reply = limits.accept;
	return TRY(peer_mem_open, &ours.ia, &ours.mem, ours.mem.p, 2 * SIZE,
		   DAT_MEM_PRIV_ALL_FLAG) ?:
	       TRY(peer_ia_listen, &ours.ia, port, cr_upcall, NULL);
}

static void ours_finish(void)
{
	if (ours.ia.ia)
		TRY(dat_ia_close, ours.ia.ia, DAT_CLOSE_ABRUPT_FLAG);
	kvfree(ours.mem.p);
}

static int raw_begin(void)
{
	struct sockaddr_storage at = raw.addr;
	struct rdma_cm_id *id;
	int err;

	((struct sockaddr_in *)&at)->sin_port = htons(port + 1);
	id = rdma_create_id(raw.net, raw_listens, NULL, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return fail("no id: %pe", id);
	raw.listener = id;
	err = rdma_bind_addr(id, (struct sockaddr *)&at) ?: rdma_listen(id, 4);
	return err ? fail("cannot listen: %pe", ERR_PTR(err)) : 0;
}

static void raw_finish(void)
{
	if (raw.listener)
		rdma_destroy_id(raw.listener);
	kfree(raw.mem);
	put_net(raw.net);
}

static int __init reads_init(void)
{
	uint raw_rounds = 0;
	int err;

	if (!ia || !address || !peer)
		return -EINVAL;
	if (!seed)
		seed = get_random_u32();
	prandom_seed_state(&rnd_state, seed);
	raw.net = get_net(current->nsproxy->net_ns);
	raw.mem = kmalloc(2 * SIZE, GFP_KERNEL);
	ours.mem.p = kvmalloc(2 * SIZE, GFP_KERNEL);
	err = raw.mem && ours.mem.p ? 0 : -ENOMEM;
	err = err ?: inet_pton_with_scope(raw.net, AF_UNSPEC, address, NULL, &raw.to) ?:
	      inet_pton_with_scope(raw.net, AF_UNSPEC, peer, NULL, &raw.addr) ?:
	      ours_begin() ?: raw_begin();
	for (round = 0; !err && round < rounds; round++) {
		err = one_round();
		raw_rounds += plan.raw_connects;
	}
	pr_info("seed=%lu: %u rounds, in %u of them the queue pair connected: %s\n", seed, round,
		raw_rounds, err ? "FAIL" : "PASS");
	ours_finish();
	raw_finish();
	return err;
}

static void __exit reads_exit(void)
{
}

module_init(reads_init);
module_exit(reads_exit);
MODULE_DESCRIPTION("kDAPL test: a queue pair and an Endpoint that read from each other");
MODULE_AUTHOR("The kdapl authors");
MODULE_LICENSE("Dual BSD/GPL");
