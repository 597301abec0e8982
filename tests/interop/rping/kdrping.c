// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * kdrping - either end of a connection with rping, the user-space tool of rdma-core.
 *
 *	client				server
 *	Send "my source"	->
 *				<-	RDMA Read of it, Send "go ahead"
 *	Send "my sink"		->
 *				<-	RDMA Write of the same, Send "go ahead"
 *
 * That is one ping; then the next one, until a side leaves. A message is 16 bytes,
 * big-endian; of "go ahead" only the length counts.
 *
 * A connection belongs to a work item and owns all it uses. What was seen of each
 * is checked when it is over: exactly one outcome, exactly one end if it was
 * established, every posted operation back exactly once. What was wrong is a line with
 * FAULT in the kernel log; what was done is counted, and parameters show it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/inet.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>

#define TEST_LONG	(120 * HZ)	/* for what must come without the peer's help */

#include "../../lib/consumer.h"

#define MIN_SIZE	23
#define MAX_SIZE	65536
#define LETTERS		('z' - 'A' + 1)		/* of the text of a ping */

static char *mode, *ia, *addr;
static ushort port = 7174;
static uint size = 64, count, connections = 1;
static bool reject;

module_param(mode, charp, 0444);
MODULE_PARM_DESC(mode, "server or client (required)");
module_param(ia, charp, 0444);
MODULE_PARM_DESC(ia, "interface adapter, e.g. rxe0-1 (required)");
module_param(addr, charp, 0444);
MODULE_PARM_DESC(addr, "client: the server's IPv4 or IPv6 address");
module_param(port, ushort, 0444);
MODULE_PARM_DESC(port, "connection qualifier (default 7174, that of rping)");
module_param(size, uint, 0444);
MODULE_PARM_DESC(size, "client: bytes per ping, 23..65536 (default 64)");
module_param(count, uint, 0444);
MODULE_PARM_DESC(count, "leave after so many pings (default 0: when the peer does)");
module_param(connections, uint, 0444);
MODULE_PARM_DESC(connections, "client: so many at the same time (default 1)");
module_param(reject, bool, 0444);
MODULE_PARM_DESC(reject, "server: reject all requests (default N)");

/* What happened so far. */
static uint requests, refused, established, ended, broken, cut, errors, pings, running;

module_param(requests, uint, 0444);
MODULE_PARM_DESC(requests, "result: connection requests, made or received");
module_param(refused, uint, 0444);
MODULE_PARM_DESC(refused, "result: of these no connection");
module_param(established, uint, 0444);
MODULE_PARM_DESC(established, "result: of these a connection");
module_param(ended, uint, 0444);
MODULE_PARM_DESC(ended, "result: connections that ended with DISCONNECTED");
module_param(broken, uint, 0444);
MODULE_PARM_DESC(broken, "result: connections that ended with BROKEN");
module_param(cut, uint, 0444);
MODULE_PARM_DESC(cut, "result: connections that ended in the middle of a ping");
module_param(errors, uint, 0444);
MODULE_PARM_DESC(errors, "result: operations neither successful nor flushed");
module_param(pings, uint, 0444);
MODULE_PARM_DESC(pings, "result: complete pings");
module_param(running, uint, 0444);
MODULE_PARM_DESC(running, "result: requests and connections not yet over");

static DEFINE_MUTEX(count_mutex);
static DEFINE_MUTEX(turn_mutex);

struct info {			/* what travels in a Send */
	__be64 addr;
	__be32 key;
	__be32 size;
};

static_assert(sizeof(struct info) == 16);

enum { RECV0, RECV1, DO_SEND, DO_READ, DO_WRITE, OPS };

struct op {			/* its address is the cookie */
	bool posted, done;
	DAT_DTO_COMPLETION_STATUS status;
	u32 len;
};

struct conn {
	struct work_struct work;
	int id;
	struct test_end end;
	DAT_EVD_HANDLE dto, cm;
	DAT_CR_HANDLE cr;		/* server */
	struct sockaddr_storage to;	/* client */
	struct op op[OPS];
	int next_recv;
	bool stray;			/* a completion of nothing that was posted */
	bool idle;			/* between two pings */
	u32 pings;
	struct test_mem in, out;		/* messages */
	struct test_mem data;		/* server: what was read; client: the source */
	struct test_mem sink;		/* client; server: only memory to compare with */
};

TEST_STATE;

static struct test_ia kdr;
static DAT_EVD_HANDLE kdr_cr;
static DAT_PSP_HANDLE kdr_psp;
static struct workqueue_struct *kdr_wq;
static bool kdr_client, kdr_stop;

static void add(uint *what, int n)
{
	mutex_lock(&count_mutex);
	WRITE_ONCE(*what, *what + n);
	mutex_unlock(&count_mutex);
}

/* ---- events ---- */

static void dto_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	struct op *op = dto->user_cookie.as_ptr;
	struct conn *conn = instance;

	if (event->event_number != DAT_DTO_COMPLETION_EVENT || dto->ep_handle != conn->end.ep ||
	    op < conn->op || op >= conn->op + OPS || !op->posted || op->done) {
		WRITE_ONCE(conn->stray, true);
	} else {
		op->status = dto->status;
		op->len = dto->transfered_length;
		/* pairs with is_done() */
		smp_store_release(&op->done, true);
	}
	wake_up_all(&test_wait);
}

static bool is_done(const struct op *op)
{
	return smp_load_acquire(&op->done);	/* pairs with dto_upcall() */
}

static bool in_flight(const struct conn *conn)
{
	int i;

	for (i = 0; i < OPS; i++) {
		if (conn->op[i].posted && !is_done(&conn->op[i]))
			return true;
	}
	return false;
}

/* ---- memory ---- */

/* The text of a ping, as rping writes it. */
static void text(u8 *p, u32 len, u32 n)
{
	u32 i, start = scnprintf(p, len, "rdma-ping-%u: ", n);

	for (i = start; i < len - 1; i++)
		p[i] = 'A' + (n + i - start) % LETTERS;
	p[len - 1] = '\0';
}

/* Like the other one, and nothing behind it. */
static int compare(const struct conn *conn, const struct test_mem *mem,
		   const struct test_mem *with, u32 len)
{
	u32 i;

	for (i = 0; i < len && mem->p[i] == with->p[i]; i++)
		;
	if (i < len)
		return fail("%d: ping %u: byte %u of %u is %02x, not %02x", conn->id, conn->pings,
			    i, len, mem->p[i], with->p[i]);
	if (memchr_inv(mem->p + len, 0, MAX_SIZE - len))
		return fail("%d: ping %u: something lies behind byte %u", conn->id, conn->pings,
			    len);
	return 0;
}

/* ---- operations ---- */

static int post(struct conn *conn, int n, const struct test_mem *mem, u32 off, u32 len,
		const DAT_RMR_TRIPLET *remote)
{
	DAT_LMR_TRIPLET iov = test_segment(mem, off, len);
	DAT_DTO_COOKIE cookie = test_cookie(&conn->op[n]);
	DAT_RETURN ret;

	conn->op[n].done = false;
	conn->op[n].posted = true;
	switch (n) {
	case DO_SEND:
		ret = dat_ep_post_send(conn->end.ep, 1, &iov, cookie, 0);
		break;
	case DO_READ:
		ret = dat_ep_post_rdma_read(conn->end.ep, 1, &iov, cookie, remote, 0);
		break;
	case DO_WRITE:
		ret = dat_ep_post_rdma_write(conn->end.ep, 1, &iov, cookie, remote, 0);
		break;
	default:
		ret = dat_ep_post_recv(conn->end.ep, 1, &iov, cookie, 0);
	}
	if (ret != DAT_SUCCESS)
		conn->op[n].posted = false;
	return check("post", ret);
}

/* Waits for an operation: -EINTR we are asked to stop, -ECONNRESET the connection is over. */
static int reap(struct conn *conn, int n)
{
	struct op *op = &conn->op[n];

	wait_event(test_wait, is_done(op) || READ_ONCE(kdr_stop));
	if (!is_done(op)) {
		pr_info("%d: no longer waits for operation %d\n", conn->id, n);
		return -EINTR;
	}
	op->posted = false;
	if (op->status == DAT_DTO_SUCCESS)
		return 0;
	if (op->status != DAT_DTO_ERR_FLUSHED) {
		pr_info("%d: operation %d: status %d\n", conn->id, n, op->status);
		add(&errors, 1);
	}
	return -ECONNRESET;
}

static int post_recv(struct conn *conn, int n)
{
	return post(conn, n, &conn->in, n * sizeof(struct info), sizeof(struct info), NULL);
}

/* The next message. Its Receive is posted again before the peer may send the next one. */
static int receive(struct conn *conn, struct info *info)
{
	int n = conn->next_recv, err = reap(conn, n);

	if (err)
		return err;
	if (conn->op[n].len != sizeof(*info)) {
		pr_info("%d: a message of %u bytes\n", conn->id, conn->op[n].len);
		return -EPROTO;
	}
	memcpy(info, conn->in.p + n * sizeof(*info), sizeof(*info));
	conn->next_recv = n == RECV0 ? RECV1 : RECV0;
	return post_recv(conn, n);
}

static int post_info(struct conn *conn, const struct test_mem *mem, u32 len)
{
	struct info *info = (struct info *)conn->out.p;

	info->addr = cpu_to_be64((uintptr_t)mem->p);
	info->key = cpu_to_be32(mem->rkey);
	info->size = cpu_to_be32(len);
	return post(conn, DO_SEND, &conn->out, 0, sizeof(*info), NULL);
}

/* ---- pings ---- */

static int get_remote(struct conn *conn, DAT_RMR_TRIPLET *remote)
{
	struct info info;
	int err = receive(conn, &info);

	if (err)
		return err;
	remote->virtual_address = be64_to_cpu(info.addr);
	remote->rmr_context = be32_to_cpu(info.key);
	remote->segment_length = be32_to_cpu(info.size);
	if (!remote->segment_length || remote->segment_length > MAX_SIZE) {
		pr_info("%d: the peer talks of %u bytes\n", conn->id, remote->segment_length);
		return -EPROTO;
	}
	return 0;
}

static int serve_ping(struct conn *conn)
{
	static const struct test_mem nothing;
	DAT_RMR_TRIPLET remote = {};
	u32 len;
	int err;

	conn->idle = true;
	err = get_remote(conn, &remote);
	if (err)
		return err;
	conn->idle = false;
	len = remote.segment_length;
	memset(conn->data.p, 0, MAX_SIZE);
	err = post(conn, DO_READ, &conn->data, 0, len, &remote) ?: reap(conn, DO_READ);
	if (err)
		return err;
	text(conn->sink.p, len, conn->pings);
	err = compare(conn, &conn->data, &conn->sink, len) ?:
	      post_info(conn, &nothing, 0) ?: reap(conn, DO_SEND) ?:
	      get_remote(conn, &remote);
	if (err)
		return err;
	if (remote.segment_length < len) {
		pr_info("%d: the sink has %u bytes\n", conn->id, remote.segment_length);
		return -EPROTO;
	}
	remote.segment_length = len;
	/* The message arrives after the data, so nobody waits in between. */
	err = post(conn, DO_WRITE, &conn->data, 0, len, &remote) ?:
	      post_info(conn, &nothing, 0) ?: reap(conn, DO_WRITE) ?: reap(conn, DO_SEND);
	/* A client that has had its last message may leave before both are acknowledged. */
	return err == -ECONNRESET ? 0 : err;
}

static int send_ping(struct conn *conn)
{
	struct info info;

	conn->idle = false;
	text(conn->data.p, size, conn->pings);
	memset(conn->sink.p, 0, MAX_SIZE);
	return post_info(conn, &conn->data, size) ?: reap(conn, DO_SEND) ?: receive(conn, &info) ?:
	       post_info(conn, &conn->sink, size) ?: reap(conn, DO_SEND) ?: receive(conn, &info) ?:
	       compare(conn, &conn->sink, &conn->data, size);
}

/* ---- connections ---- */

static int conn_open(struct conn *conn)
{
	const DAT_EP_ATTR attr = {
		.max_message_size = sizeof(struct info),
		.max_rdma_size = MAX_SIZE,
		.max_recv_dtos = 2, .max_recv_iov = 1,
		.max_request_dtos = 2, .max_request_iov = 1,
		/* The client is read from, the server reads. */
		.max_rdma_read_in = kdr_client, .max_rdma_read_out = !kdr_client,
		.srq_soft_hw = DAT_HW_DEFAULT,
	};
	DAT_MEM_PRIV_FLAGS data, sink;

	if (kdr_client) {
		data = DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_REMOTE_READ_FLAG;
		sink = DAT_MEM_PRIV_LOCAL_WRITE_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG;
	} else {
		/* On iWARP the answer to a Read is a kind of Write. */
		data = LOCAL_RIGHTS | (kdr.iwarp ? DAT_MEM_PRIV_REMOTE_WRITE_FLAG : 0);
		sink = LOCAL_RIGHTS;
	}
	return test_mem_open(&kdr, &conn->in, 2 * sizeof(struct info), LOCAL_RIGHTS) ?:
	       test_mem_open(&kdr, &conn->out, sizeof(struct info), LOCAL_RIGHTS) ?:
	       test_mem_open(&kdr, &conn->data, MAX_SIZE, data) ?:
	       test_mem_open(&kdr, &conn->sink, MAX_SIZE, sink) ?:
	       test_evd(&kdr, 8, DAT_EVD_DTO_FLAG, dto_upcall, conn, &conn->dto) ?:
	       test_evd(&kdr, 4, DAT_EVD_CONNECTION_FLAG, test_cm_upcall, NULL, &conn->cm) ?:
	       test_end_open(&kdr, &conn->end, conn->dto, conn->dto, conn->cm, &attr) ?:
	       post_recv(conn, RECV0) ?: post_recv(conn, RECV1);
}

static void conn_close(struct conn *conn)
{
	FREE(dat_ep_free, &conn->end.ep);
	FREE(dat_evd_free, &conn->cm);
	FREE(dat_evd_free, &conn->dto);
	test_mem_close(&conn->sink);
	test_mem_close(&conn->data);
	test_mem_close(&conn->out);
	test_mem_close(&conn->in);
	/* Now nothing can come any more. */
	if (conn->end.outcomes > 1 || conn->end.overs > 1)
		fail("%d: %d outcomes, %d ends", conn->id, conn->end.outcomes, conn->end.overs);
	if (conn->stray)
		fail("%d: a completion of nothing that was posted", conn->id);
	kfree(conn);
	add(&running, -1);
}

static void is_over(struct conn *conn)
{
	DAT_BOOLEAN recv_idle, request_idle;
	DAT_EP_STATE state;

	if (!wait_event_timeout(test_wait, !in_flight(conn), TEST_LONG))
		fail("%d: operations do not come back", conn->id);
	else if (!TRY(dat_ep_get_status, conn->end.ep, &state, &recv_idle, &request_idle) &&
		 (state != DAT_EP_STATE_DISCONNECTED || !recv_idle || !request_idle))
		fail("%d: state %d, idle %d, %d", conn->id, state, recv_idle, request_idle);
}

/* Pings until the peer leaves, or it is time to. */
static void talk(struct conn *conn)
{
	bool in_time = true;
	int err = 0;

	while (!err && (!count || conn->pings < count)) {
		err = kdr_client ? send_ping(conn) : serve_ping(conn);
		if (!err) {
			conn->idle = true;
			conn->pings++;
			add(&pings, 1);
		}
	}
	/* Whoever is asked to stop in the middle does not wait for what is posted. */
	if (err != -ECONNRESET)
		TRY(dat_ep_disconnect, conn->end.ep,
		    err ? DAT_CLOSE_ABRUPT_FLAG : DAT_CLOSE_GRACEFUL_FLAG);
	if (!wait_event_timeout(test_wait, READ_ONCE(conn->end.overs), TEST_LONG)) {
		in_time = false;
		fail("%d: no event ends the connection", conn->id);
		TRY(dat_ep_disconnect, conn->end.ep, DAT_CLOSE_ABRUPT_FLAG);
	}
	if (in_time)
		is_over(conn);
	if (err && !conn->idle)
		add(&cut, 1);
	add(conn->end.over == DAT_CONNECTION_EVENT_BROKEN ? &broken : &ended, in_time);
	pr_info("%d: %u pings, %s%s\n", conn->id, conn->pings, kdat_event_name(conn->end.over),
		err == -ECONNRESET ? "" : ", we have left");
}

static void work(struct work_struct *work)
{
	struct conn *conn = container_of(work, struct conn, work);
	int err = conn_open(conn);

	/* rping -s takes three requests at a time, and crashes when it gets that many. */
	if (kdr_client)
		mutex_lock(&turn_mutex);
	if (!err && kdr_client)
		err = TRY(dat_ep_connect, conn->end.ep, (DAT_IA_ADDRESS_PTR)&conn->to, port,
			  60 * USEC_PER_SEC, 0, NULL, DAT_QOS_BEST_EFFORT,
			  DAT_CONNECT_DEFAULT_FLAG);
	else if (!err)
		err = TRY(dat_cr_accept, conn->cr, conn->end.ep, 0, NULL);
	if (!err)
		wait_event(test_wait, READ_ONCE(conn->end.outcomes) || READ_ONCE(kdr_stop));
	if (kdr_client)
		mutex_unlock(&turn_mutex);
	if (err) {
		if (conn->cr)
			dat_cr_reject(conn->cr, 0, NULL);
		add(&refused, 1);
	} else if (conn->end.outcome == DAT_CONNECTION_EVENT_ESTABLISHED) {
		add(&established, 1);
		talk(conn);
	} else {
		add(&refused, 1);
		if (conn->end.outcome)
			is_over(conn);
		pr_info("%d: %s\n", conn->id, kdat_event_name(conn->end.outcome));
	}
	conn_close(conn);
}

static struct conn *conn_new(void)
{
	struct conn *conn = kzalloc(sizeof(*conn), GFP_KERNEL);

	if (!conn)
		return NULL;
	INIT_WORK(&conn->work, work);
	add(&running, 1);
	conn->id = requests;
	add(&requests, 1);
	return conn;
}

static void cr_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	static const char why[] = "not today";
	DAT_CR_HANDLE cr = event->event_data.cr_arrival_event_data.cr_handle;
	struct conn *conn;

	if (reject) {
		add(&requests, 1);
		if (!TRY(dat_cr_reject, cr, sizeof(why), (DAT_PVOID)why))
			add(&refused, 1);
		return;
	}
	conn = conn_new();
	if (!conn) {
		dat_cr_reject(cr, 0, NULL);
		return;
	}
	conn->cr = cr;
	queue_work(kdr_wq, &conn->work);
}

/* ---- the module ---- */

static void kdr_close(void)
{
	DAT_EVENT event;
	uint n = 0;

	FREE(dat_psp_free, &kdr_psp);
	FREE(dat_evd_free, &kdr_cr);
	WRITE_ONCE(kdr_stop, true);
	wake_up_all(&test_wait);
	if (kdr_wq)
		destroy_workqueue(kdr_wq);
	/* A connection that breaks may say so here as well, none of the others. */
	while (kdr.async && dat_evd_dequeue(kdr.async, &event) == DAT_SUCCESS) {
		if (event.event_number != DAT_ASYNC_ERROR_EP_BROKEN || ++n > broken)
			fail("asynchronous event 0x%x", event.event_number);
	}
	test_ia_close(&kdr);
}

static int kdr_open(void)
{
	int err;

	kdr_wq = alloc_workqueue("kdrping", WQ_UNBOUND, 0);
	if (!kdr_wq)
		return -ENOMEM;
	err = test_ia_open(&kdr, ia);
	if (err || kdr_client)
		return err;
	return test_evd(&kdr, 16, DAT_EVD_CR_FLAG, cr_upcall, NULL, &kdr_cr) ?:
	       TRY(dat_psp_create, kdr.h, port, kdr_cr, DAT_PSP_CONSUMER_FLAG, &kdr_psp);
}

static int __init kdr_init(void)
{
	struct sockaddr_storage to = {};
	struct conn *conn;
	int err;
	uint i;

	kdr_client = mode && !strcmp(mode, "client");
	if (!ia || !mode || (!kdr_client && strcmp(mode, "server")) || kdr_client != !!addr ||
	    size < MIN_SIZE || size > MAX_SIZE ||
	    (addr && inet_pton_with_scope(&init_net, AF_UNSPEC, addr, NULL, &to)))
		return -EINVAL;
	err = kdr_open();
	for (i = 0; !err && kdr_client && i < connections; i++) {
		conn = conn_new();
		if (conn) {
			conn->to = to;
			queue_work(kdr_wq, &conn->work);
		}
	}
	if (err)
		kdr_close();
	return err;
}

static void __exit kdr_exit(void)
{
	kdr_close();
}

module_init(kdr_init);
module_exit(kdr_exit);
MODULE_DESCRIPTION("kDAPL test: either end of a connection with rping");
MODULE_AUTHOR("The kDAPL for Linux authors");
MODULE_LICENSE("Dual BSD/GPL");
