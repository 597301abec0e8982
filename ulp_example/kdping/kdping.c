// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * kdping - the smallest complete kDAPL program, made to be copied from.
 *
 *	client				server
 *	connect			->	connection request (CR): accept
 *	Send "hello, n bytes"	->	register n bytes for remote access
 *	Receive			<-	Send "here: key, address, length"
 *	RDMA Write a pattern	->	(the server's CPU sees nothing of this,
 *	RDMA Read it back	<-	 nor of this)
 *	compare; again, count times
 *	Send "bye, checksum"	->	checksum of what really lies in memory
 *	Receive			<-	Send that checksum
 *	disconnect		->	give everything back
 *
 * Control flow is straight-line code in process context: post one operation,
 * sleep until its completion. Upcalls do nothing but wake it. (A fast program
 * keeps many operations in flight and works from its upcalls.)
 *
 * A connection owns all it uses: EP, two EVDs, memory. So no event outlives
 * what its cookie points to: dat_ep_free() ends the streams of events,
 * dat_evd_free() waits for the upcall that still runs.
 *
 * When a connection ends, for whatever reason, each operation posted on it
 * completes with DAT_DTO_ERR_FLUSHED: waiting for a completion always ends.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/crc32.h>
#include <linux/inet.h>
#include <linux/ktime.h>
#include <linux/list.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>

#include <dat2/kdat.h>

#define KDPING_MAX_SIZE	(1024 * 1024)
#define KDPING_MAGIC	0x676e6970		/* "ping" */
#define KDPING_WAIT	(10 * HZ)

static char *mode, *ia, *address;
static ushort port = 4711;
static uint size = 65536, count = 16;
module_param(mode, charp, 0444);
MODULE_PARM_DESC(mode, "server, client, or loop: both at once on one adapter (required)");
module_param(ia, charp, 0444);
MODULE_PARM_DESC(ia, "interface adapter, e.g. rxe0-1 (default: the first one)");
module_param(address, charp, 0444);
MODULE_PARM_DESC(address, "client: the server's IPv4 or IPv6 address");
module_param(port, ushort, 0444);
MODULE_PARM_DESC(port, "connection qualifier, 1..65535 (default 4711)");
module_param(size, uint, 0444);
MODULE_PARM_DESC(size, "client: bytes per operation, 1..1048576 (default 65536)");
module_param(count, uint, 0444);
MODULE_PARM_DESC(count, "client: rounds of write and read back (default 16)");

/* What travels in a Send. The peer may have the other byte order, so fields say theirs. */
struct kdping_msg {
	__le32 magic;
	__le32 length;		/* hello: bytes wanted; its answer: bytes lent */
	__le64 address;		/* answer: where they are, in the server's address space */
	__le32 rmr_context;	/* answer: the key that opens them */
	__le32 crc;		/* bye and its answer: the buffer as the sender sees it */
};

static_assert(sizeof(struct kdping_msg) == 24);

/* Memory the adapter may touch. */
struct kdping_mem {
	void *addr;
	DAT_SEG_LENGTH length;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT lmr_context;	/* names it in our own posts */
	DAT_RMR_CONTEXT rmr_context;	/* names it in the peer's, 0 if it has no right to it */
};

/* One operation in flight; its address is the cookie. */
struct kdping_op {
	struct completion done;
	DAT_DTO_COMPLETION_STATUS status;
};

struct kdping_conn {
	DAT_EVD_HANDLE dto_evd, conn_evd;
	DAT_EP_HANDLE ep;
	DAT_EVENT_NUMBER event;		/* the last thing conn_evd said */
	struct completion up, down;	/* outcome of the attempt; end of the connection */
	struct kdping_op recv, request;
	struct kdping_mem msg;		/* one message to send, one received */
	struct kdping_mem buf, back;	/* client: source and read sink; server: buf is lent */
	struct sockaddr_storage peer;
	DAT_CR_HANDLE cr;		/* server only, like the next two */
	struct work_struct work;
	struct list_head link;		/* kdping_conns */
};

static char kdping_name[DAT_NAME_MAX_LENGTH];
static DAT_IA_HANDLE kdping_ia;
static DAT_EVD_HANDLE kdping_async_evd, kdping_cr_evd;
static DAT_PZ_HANDLE kdping_pz;
static DAT_PSP_HANDLE kdping_psp;
static bool kdping_iwarp;		/* read sinks must be open to the peer */
static struct workqueue_struct *kdping_wq;
static DEFINE_MUTEX(kdping_lock);	/* protects the two below */
static LIST_HEAD(kdping_conns);
static bool kdping_stopping;

/* ---- errors -------------------------------------------------------------------------- */

/* Only DAT_SUCCESS is compared as it is; all else goes through DAT_GET_TYPE(). */
static int kdping_check(const char *what, DAT_RETURN ret)
{
	const char *major = "unknown error", *minor = "";

	if (ret == DAT_SUCCESS)
		return 0;
	dat_strerror(ret, &major, &minor);
	pr_err("%s: %s %s (0x%08x)\n", what, major, minor, ret);
	switch (DAT_GET_TYPE(ret)) {
	case DAT_PROVIDER_NOT_FOUND:		return -ENODEV;
	case DAT_INSUFFICIENT_RESOURCES:	return -ENOMEM;
	case DAT_INVALID_ADDRESS:		return -EADDRNOTAVAIL;
	case DAT_CONN_QUAL_IN_USE:		return -EADDRINUSE;
	case DAT_MODEL_NOT_SUPPORTED:		return -EOPNOTSUPP;
	case DAT_INVALID_STATE:			return -ENOTCONN;
	case DAT_INVALID_PARAMETER:		return -EINVAL;
	default:				return -EIO;
	}
}

static int kdping_conn_errno(DAT_EVENT_NUMBER event)
{
	switch (event) {
	case DAT_CONNECTION_EVENT_ESTABLISHED:		return 0;
	case DAT_CONNECTION_EVENT_PEER_REJECTED:	return -EACCES;
	case DAT_CONNECTION_EVENT_NON_PEER_REJECTED:	return -ECONNREFUSED;
	case DAT_CONNECTION_EVENT_UNREACHABLE:		return -EHOSTUNREACH;
	case DAT_CONNECTION_EVENT_TIMED_OUT:		return -ETIMEDOUT;
	case DAT_CONNECTION_EVENT_DISCONNECTED:		return -ECONNABORTED;
	default:					return -ECONNRESET;
	}
}

static void kdping_report(const struct sockaddr_storage *peer, int err)
{
	if (err)
		pr_err("FAIL ia=%s peer=%pISpc error %pe\n", kdping_name, peer, ERR_PTR(err));
}

/* Asynchronous events have no upcall here: they wait until somebody looks. */
static void kdping_look_for_async_events(void)
{
	DAT_EVENT event;

	while (dat_evd_dequeue(kdping_async_evd, &event) == DAT_SUCCESS)
		pr_warn("%s: %s (event 0x%x)\n", kdping_name,
			event.event_number == DAT_ASYNC_ERROR_IA_CATASTROPHIC ?
			"adapter is gone, only freeing works now" : "asynchronous error",
			event.event_number);
}

/* ---- upcalls --------------------------------------------------------------------------- */

/* This EVD carries DTO completions only: softirq context, no sleeping. */
static void kdping_dto_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct kdping_op *op = event->event_data.dto_completion_event_data.user_cookie.as_ptr;

	op->status = event->event_data.dto_completion_event_data.status;
	complete(&op->done);
}

/* Exactly one outcome per attempt, exactly one end per established connection. */
static void kdping_conn_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct kdping_conn *conn = instance;

	conn->event = event->event_number;
	if (conn->event != DAT_CONNECTION_EVENT_ESTABLISHED)
		complete_all(&conn->down);
	complete_all(&conn->up);
}

/* ---- memory ---------------------------------------------------------------------------- */

static int kdping_mem_create(struct kdping_mem *mem, u32 length, DAT_MEM_PRIV_FLAGS rights)
{
	DAT_REGION_DESCRIPTION region = {};
	int err;

	mem->addr = kvzalloc(length, GFP_KERNEL);
	if (!mem->addr)
		return -ENOMEM;
	mem->length = length;
	region.for_va = mem->addr;
	/* Ask for no right that is not needed: exactly these are granted. */
	err = kdping_check("dat_lmr_kcreate",
			   dat_lmr_kcreate(kdping_ia, DAT_MEM_TYPE_VIRTUAL, region, length,
					   kdping_pz, rights, DAT_VA_TYPE_VA,
					   DAT_MEM_OPTIMIZE_DONT_CARE, &mem->lmr, &mem->lmr_context,
					   &mem->rmr_context, NULL, NULL));
	if (err)
		mem->lmr = DAT_HANDLE_NULL;
	return err;
}

/* Registration first: from then on no peer reaches the memory, and it may be freed. */
static void kdping_mem_destroy(struct kdping_mem *mem)
{
	if (mem->lmr)
		dat_lmr_free(mem->lmr);
	kvfree(mem->addr);
}

/* ---- operations ------------------------------------------------------------------------ */

/* In slices, since the kernel takes one sleep of minutes for a hang. */
static void kdping_sleep(struct completion *done)
{
	while (!wait_for_completion_timeout(done, KDPING_WAIT))
		;
}

static int kdping_wait(struct kdping_op *op, const char *what)
{
	kdping_sleep(&op->done);
	if (op->status != DAT_DTO_SUCCESS)
		pr_err("%s: completed with status %d\n", what, op->status);
	return op->status == DAT_DTO_SUCCESS ? 0 :
	       op->status == DAT_DTO_ERR_FLUSHED ? -ECONNRESET : -EIO;
}

static int kdping_post_recv(struct kdping_conn *conn)
{
	struct kdping_msg *msg = conn->msg.addr;
	DAT_LMR_TRIPLET iov = { (uintptr_t)&msg[1], sizeof(*msg), conn->msg.lmr_context };
	DAT_DTO_COOKIE cookie = { .as_ptr = &conn->recv };

	return kdping_check("dat_ep_post_recv", dat_ep_post_recv(conn->ep, 1, &iov, cookie, 0));
}

static int kdping_wait_msg(struct kdping_conn *conn, struct kdping_msg *copy)
{
	int err = kdping_wait(&conn->recv, "receive");

	*copy = ((struct kdping_msg *)conn->msg.addr)[1];
	return err ?: copy->magic == cpu_to_le32(KDPING_MAGIC) ? 0 : -EPROTO;
}

static int kdping_send(struct kdping_conn *conn, u32 length, u32 crc)
{
	struct kdping_msg *msg = conn->msg.addr;
	DAT_LMR_TRIPLET iov = { (uintptr_t)msg, sizeof(*msg), conn->msg.lmr_context };
	DAT_DTO_COOKIE cookie = { .as_ptr = &conn->request };

	msg->magic = cpu_to_le32(KDPING_MAGIC);
	msg->length = cpu_to_le32(length);
	msg->address = cpu_to_le64((uintptr_t)conn->buf.addr);
	msg->rmr_context = cpu_to_le32(conn->buf.rmr_context);
	msg->crc = cpu_to_le32(crc);
	return kdping_check("dat_ep_post_send", dat_ep_post_send(conn->ep, 1, &iov, cookie, 0)) ?:
	       kdping_wait(&conn->request, "send");
}

/* Write conn->buf to the server, or read the server's buffer into conn->back. */
static int kdping_rdma(struct kdping_conn *conn, bool write, const DAT_RMR_TRIPLET *remote, u64 *ns)
{
	struct kdping_mem *mem = write ? &conn->buf : &conn->back;
	DAT_LMR_TRIPLET iov = { (uintptr_t)mem->addr, mem->length, mem->lmr_context };
	DAT_DTO_COOKIE cookie = { .as_ptr = &conn->request };
	u64 start = ktime_get_ns();
	int err;

	if (write)
		err = kdping_check("dat_ep_post_rdma_write",
				   dat_ep_post_rdma_write(conn->ep, 1, &iov, cookie, remote, 0));
	else
		err = kdping_check("dat_ep_post_rdma_read",
				   dat_ep_post_rdma_read(conn->ep, 1, &iov, cookie, remote, 0));
	err = err ?: kdping_wait(&conn->request, write ? "RDMA Write" : "RDMA Read");
	*ns += ktime_get_ns() - start;
	return err;
}

/* An address belongs to the object it came from, and dies with it: copy. */
static void kdping_set_address(struct sockaddr_storage *to, DAT_IA_ADDRESS_PTR from, u16 qual)
{
	memcpy(to, from, from->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
						       sizeof(struct sockaddr_in));
	((struct sockaddr_in *)to)->sin_port = cpu_to_be16(qual);	/* same place in v6 */
}

/* ---- connection ------------------------------------------------------------------------ */

static struct kdping_conn *kdping_conn_alloc(void)
{
	struct kdping_conn *conn = kzalloc(sizeof(*conn), GFP_KERNEL);

	if (conn) {
		init_completion(&conn->up);
		init_completion(&conn->down);
		init_completion(&conn->recv.done);
		init_completion(&conn->request.done);
		INIT_LIST_HEAD(&conn->link);
	}
	return conn;
}

/* Everything up to an EP that can connect or accept. On failure too: kdping_conn_destroy(). */
static int kdping_conn_setup(struct kdping_conn *conn)
{
	const DAT_UPCALL_OBJECT dto = { conn, kdping_dto_upcall };
	const DAT_UPCALL_OBJECT cm = { conn, kdping_conn_upcall };
	const DAT_EP_ATTR attr = {
		.max_message_size = sizeof(struct kdping_msg),
		.max_rdma_size = KDPING_MAX_SIZE,
		.max_recv_dtos = 2, .max_recv_iov = 1,
		.max_request_dtos = 2, .max_request_iov = 1,
		/* Both ends must ask for reads, the default depth is 0. */
		.max_rdma_read_in = 1, .max_rdma_read_out = 1,
		.srq_soft_hw = DAT_HW_DEFAULT,
	};
	int err;

	err = kdping_mem_create(&conn->msg, 2 * sizeof(struct kdping_msg),
				DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
	if (!err)
		err = kdping_check("DTO EVD",
				   dat_evd_kcreate(kdping_ia, 4, DAT_UPCALL_SINGLE_INSTANCE, &dto,
						   DAT_EVD_DTO_FLAG, &conn->dto_evd));
	if (!err)
		err = kdping_check("connection EVD",
				   dat_evd_kcreate(kdping_ia, 4, DAT_UPCALL_SINGLE_INSTANCE, &cm,
						   DAT_EVD_CONNECTION_FLAG, &conn->conn_evd));
	if (!err)
		err = kdping_check("dat_ep_create",
				   dat_ep_create(kdping_ia, kdping_pz, conn->dto_evd, conn->dto_evd,
						 conn->conn_evd, &attr, &conn->ep));
	/* Before there is a connection, so that the peer's first Send finds it. */
	return err ?: kdping_post_recv(conn);
}

/* Users before what they use. Freeing a connected EP disconnects it. */
static void kdping_conn_destroy(struct kdping_conn *conn)
{
	if (conn->ep)
		dat_ep_free(conn->ep);
	if (conn->conn_evd)
		dat_evd_free(conn->conn_evd);
	if (conn->dto_evd)
		dat_evd_free(conn->dto_evd);
	kdping_mem_destroy(&conn->back);
	kdping_mem_destroy(&conn->buf);
	kdping_mem_destroy(&conn->msg);
	kfree(conn);
}

/* ---- client ---------------------------------------------------------------------------- */

static int kdping_rounds(struct kdping_conn *conn)
{
	u64 write_ns = 1, read_ns = 1, bytes = (u64)size * count;
	u8 *p = conn->buf.addr;
	DAT_RMR_TRIPLET remote;
	struct kdping_msg msg;
	u32 crc = 0, i, n;
	int err;

	err = kdping_send(conn, size, 0) ?: kdping_wait_msg(conn, &msg);
	if (err)
		return err;
	remote.virtual_address = le64_to_cpu(msg.address);
	remote.segment_length = le32_to_cpu(msg.length);
	remote.rmr_context = le32_to_cpu(msg.rmr_context);
	pr_info("connected; the server lends %u bytes, key 0x%08x\n", remote.segment_length,
		remote.rmr_context);

	for (n = 0; n < count; n++) {
		for (i = 0; i < size; i++)	/* a pattern new in each place and round */
			p[i] = (i * 2654435761u + n * 40503u) >> 13;
		crc = crc32_le(~0, p, size);
		memset(conn->back.addr, 0, size);
		/* A Read sees what earlier Writes of the same EP left. */
		err = kdping_rdma(conn, true, &remote, &write_ns) ?:
		      kdping_rdma(conn, false, &remote, &read_ns);
		if (err)
			return err;
		if (crc32_le(~0, conn->back.addr, size) != crc) {
			pr_err("round %u: what was read back differs\n", n);
			return -EBADMSG;
		}
		cond_resched();
	}

	err = kdping_post_recv(conn) ?: kdping_send(conn, size, crc) ?: kdping_wait_msg(conn, &msg);
	if (!err && le32_to_cpu(msg.crc) != crc)
		err = -EBADMSG;
	if (!err)
		pr_info("PASS ia=%s peer=%pISpc rounds=%u size=%u write=%lluMB/s read=%lluMB/s crc=0x%08x\n",
			kdping_name, &conn->peer, count, size, div64_u64(bytes * 1000, write_ns),
			div64_u64(bytes * 1000, read_ns), crc);
	return err;
}

static int kdping_client(const struct sockaddr_storage *server)
{
	struct kdping_conn *conn = kdping_conn_alloc();
	/* iWARP answers a Read with a kind of Write: its sink must be open to the peer. */
	DAT_MEM_PRIV_FLAGS sink = DAT_MEM_PRIV_LOCAL_WRITE_FLAG |
				  (kdping_iwarp ? DAT_MEM_PRIV_REMOTE_WRITE_FLAG : 0);
	int err;

	if (!conn)
		return -ENOMEM;
	conn->peer = *server;
	err = kdping_conn_setup(conn) ?:
	      kdping_mem_create(&conn->buf, size, DAT_MEM_PRIV_LOCAL_READ_FLAG) ?:
	      kdping_mem_create(&conn->back, size, sink);
	if (!err)
		err = kdping_check("dat_ep_connect",
				   dat_ep_connect(conn->ep, (DAT_IA_ADDRESS_PTR)&conn->peer, port,
						  10 * USEC_PER_SEC, 0, NULL, DAT_QOS_BEST_EFFORT,
						  DAT_CONNECT_DEFAULT_FLAG));
	if (!err) {
		pr_info("%s: connecting to %pISpc, %u rounds of %u bytes\n", kdping_name,
			&conn->peer, count, size);
		kdping_sleep(&conn->up);
		err = kdping_conn_errno(conn->event) ?: kdping_rounds(conn);
	}
	if (!err) {
		/* Graceful: what is posted is finished first. The event says when it is over. */
		err = kdping_check("dat_ep_disconnect",
				   dat_ep_disconnect(conn->ep, DAT_CLOSE_GRACEFUL_FLAG));
		if (!err)
			kdping_sleep(&conn->down);
	}
	kdping_conn_destroy(conn);
	return err;
}

/* ---- server ---------------------------------------------------------------------------- */

static int kdping_talk(struct kdping_conn *conn)
{
	struct kdping_msg msg;
	u32 length, crc;
	int err;

	kdping_sleep(&conn->up);
	err = kdping_conn_errno(conn->event) ?: kdping_wait_msg(conn, &msg);
	if (err)
		return err;
	length = le32_to_cpu(msg.length);
	if (!length || length > KDPING_MAX_SIZE)	/* never trust a peer's numbers */
		return -EPROTO;
	err = kdping_mem_create(&conn->buf, length,
				DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG |
				DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG);
	if (err)
		return err;
	/* Receive before Send: the client may answer at once. Then it works on its own. */
	err = kdping_post_recv(conn) ?: kdping_send(conn, length, 0) ?: kdping_wait_msg(conn, &msg);
	if (err)
		return err;

	/* The bye was sent after the last Write of the same EP, so its data is here. */
	crc = crc32_le(~0, conn->buf.addr, length);
	err = kdping_send(conn, length, crc);
	if (!err && le32_to_cpu(msg.crc) != crc)
		err = -EBADMSG;
	if (!err) {
		pr_info("SERVED ia=%s peer=%pISpc size=%u crc=0x%08x\n", kdping_name, &conn->peer,
			length, crc);
		/* The client leaves first: then it has our answer. */
		wait_for_completion_timeout(&conn->down, KDPING_WAIT);
	}
	return err;
}

/* One client from request to end, in a work item of its own. */
static void kdping_serve(struct work_struct *work)
{
	struct kdping_conn *conn = container_of(work, struct kdping_conn, work);
	DAT_CR_PARAM cr;
	int err;

	if (dat_cr_query(conn->cr, DAT_CR_FIELD_ALL, &cr) == DAT_SUCCESS)
		kdping_set_address(&conn->peer, cr.remote_ia_address_ptr, cr.remote_port_qual);

	err = kdping_conn_setup(conn);
	mutex_lock(&kdping_lock);
	if (!err && kdping_stopping)
		err = -ESHUTDOWN;
	if (!err)
		err = kdping_check("dat_cr_accept", dat_cr_accept(conn->cr, conn->ep, 0, NULL));
	if (!err)
		list_add(&conn->link, &kdping_conns);
	mutex_unlock(&kdping_lock);

	if (err)
		dat_cr_reject(conn->cr, 0, NULL);	/* still ours: a failed accept keeps it */
	else
		err = kdping_talk(conn);
	kdping_report(&conn->peer, err);

	mutex_lock(&kdping_lock);
	list_del_init(&conn->link);
	mutex_unlock(&kdping_lock);
	kdping_look_for_async_events();
	kdping_conn_destroy(conn);
}

/* Process context, but serving sleeps long: hand it on, the next request may wait. */
static void kdping_cr_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	DAT_CR_HANDLE cr = event->event_data.cr_arrival_event_data.cr_handle;
	struct kdping_conn *conn = kdping_conn_alloc();

	if (!conn) {
		dat_cr_reject(cr, 0, NULL);
		return;
	}
	conn->cr = cr;
	INIT_WORK(&conn->work, kdping_serve);
	queue_work(kdping_wq, &conn->work);
}

static int kdping_server_start(void)
{
	const DAT_UPCALL_OBJECT upcall = { NULL, kdping_cr_upcall };
	int err;

	kdping_wq = alloc_workqueue("kdping", WQ_UNBOUND, 0);
	if (!kdping_wq)
		return -ENOMEM;
	/* The queue's length is the backlog of the listener. */
	err = kdping_check("request EVD",
			   dat_evd_kcreate(kdping_ia, 16, DAT_UPCALL_SINGLE_INSTANCE, &upcall,
					   DAT_EVD_CR_FLAG, &kdping_cr_evd));
	if (!err)
		err = kdping_check("dat_psp_create",
				   dat_psp_create(kdping_ia, port, kdping_cr_evd,
						  DAT_PSP_CONSUMER_FLAG, &kdping_psp));
	if (!err)
		pr_info("serving on %s port %u\n", kdping_name, port);
	return err;
}

/* No new request, then no upcall with one, then no connection: in this order. */
static void kdping_server_stop(void)
{
	struct kdping_conn *conn;

	if (kdping_psp)
		dat_psp_free(kdping_psp);
	if (kdping_cr_evd)
		dat_evd_free(kdping_cr_evd);
	mutex_lock(&kdping_lock);
	kdping_stopping = true;
	list_for_each_entry(conn, &kdping_conns, link)
		dat_ep_disconnect(conn->ep, DAT_CLOSE_ABRUPT_FLAG);
	mutex_unlock(&kdping_lock);
	if (kdping_wq)
		destroy_workqueue(kdping_wq);	/* after the last kdping_serve() */
}

/* ---- adapter and module ---------------------------------------------------------------- */

static bool kdping_is(const char *role)
{
	return mode && !strcmp(mode, role);
}

/* Without ia= the first adapter will do. */
static int kdping_choose_ia(void)
{
	DAT_PROVIDER_INFO **list;
	DAT_COUNT n = 0, i;
	int err = -ENODEV;

	if (ia)
		return strscpy(kdping_name, ia, sizeof(kdping_name)) < 0 ? -EINVAL : 0;
	/* A list that is too short is refused, and the refusal says what is needed. */
	dat_registry_list_providers(0, &n, NULL);
	list = kcalloc(n, sizeof(*list) + sizeof(**list), GFP_KERNEL);
	if (!list)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		list[i] = (DAT_PROVIDER_INFO *)(list + n) + i;
	if (n && dat_registry_list_providers(n, &n, list) == DAT_SUCCESS && n)
		err = strscpy(kdping_name, list[0]->ia_name, sizeof(kdping_name)) < 0 ? -EIO : 0;
	if (err)
		pr_err("there is no RDMA device\n");
	kfree(list);
	return err;
}

static int kdping_open(struct sockaddr_storage *server)
{
	DAT_PROVIDER_ATTR attr;
	DAT_IA_ATTR self;
	int err;

	err = kdping_choose_ia() ?:
	      kdping_check(kdping_name, dat_ia_open(kdping_name, 8, &kdping_async_evd, &kdping_ia));
	if (err)
		return err;
	err = kdping_check("dat_ia_query",
			   dat_ia_query(kdping_ia, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, &self,
					DAT_PROVIDER_FIELD_RDMA_WRITE_FOR_RDMA_READ_REQ, &attr)) ?:
	      kdping_check("dat_pz_create", dat_pz_create(kdping_ia, &kdping_pz));
	if (err)
		dat_ia_close(kdping_ia, DAT_CLOSE_ABRUPT_FLAG);
	else
		kdping_iwarp = attr.rdma_write_for_rdma_read_req;
	if (!err && kdping_is("loop"))
		kdping_set_address(server, self.ia_address_ptr, port);
	return err;
}

static void kdping_close(void)
{
	kdping_look_for_async_events();
	dat_pz_free(kdping_pz);
	/* Graceful refuses while anything is left, so a leak shows itself here. */
	if (kdping_check("dat_ia_close", dat_ia_close(kdping_ia, DAT_CLOSE_GRACEFUL_FLAG)))
		dat_ia_close(kdping_ia, DAT_CLOSE_ABRUPT_FLAG);
}

static int __init kdping_init(void)
{
	struct sockaddr_storage server = {};
	const char *wrong = NULL;
	char port_string[8];
	int err;

	snprintf(port_string, sizeof(port_string), "%u", port);
	if (!kdping_is("server") && !kdping_is("client") && !kdping_is("loop"))
		wrong = "mode= must be server, client or loop";
	else if (!port)
		wrong = "port= must be 1..65535";
	else if (!size || size > KDPING_MAX_SIZE)
		wrong = "size= must be 1..1048576";
	else if (!count)
		wrong = "count= must be at least 1";
	else if (kdping_is("client") != !!address)
		wrong = "address= (the server's) belongs to mode=client, and must be there";
	else if (address && inet_pton_with_scope(&init_net, AF_UNSPEC, address, port_string,
						 &server))
		wrong = "address= is neither an IPv4 nor an IPv6 address";
	if (wrong) {
		pr_err("%s\n", wrong);
		return -EINVAL;
	}

	err = kdping_open(&server);
	if (err)
		return err;
	if (!kdping_is("client"))
		err = kdping_server_start();
	if (!err && !kdping_is("server")) {
		err = kdping_client(&server);
		kdping_report(&server, err);
	}
	/* A client's whole life is its load, so the result of that is its result. */
	if (err || !kdping_is("server")) {
		kdping_server_stop();
		kdping_close();
	}
	return err;
}

static void __exit kdping_exit(void)
{
	if (kdping_is("server")) {	/* the others have cleaned up long ago */
		kdping_server_stop();
		kdping_close();
	}
}

module_init(kdping_init);
module_exit(kdping_exit);
MODULE_DESCRIPTION("kDAPL example: greeting, RDMA Write, RDMA Read, checksum");
MODULE_AUTHOR("The kdapl authors");
MODULE_LICENSE("Dual BSD/GPL");
