// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * kdping - the smallest complete kDAPL program, meant to be copied from.
 *
 *	client				server
 *	connect			->	connection request (CR): accept
 *	Send "hello, n bytes"	->	register n bytes for remote access
 *	Receive			<-	Send "here: key, address"
 *	RDMA Write a pattern	->	(the server's CPU is not involved here,
 *	RDMA Read it back	<-	 nor here)
 *	compare; repeat count times
 *	Send "bye, checksum"	->	checksum the actual contents of memory
 *	Receive			<-	Send that checksum
 *	disconnect		->	free everything
 *
 * Straight-line code: post one operation, sleep until it completes. Upcalls only
 * wake the sleeper. (A fast program keeps many operations in flight and does its
 * work in upcalls.) When a connection ends, for any reason, every operation still
 * posted on it completes as FLUSHED. So waiting for a completion always ends.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/crc32.h>
#include <linux/inet.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/slab.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>
#include <dat2/kdat.h>
#include <dat2/kdat_ext.h>
#include "../../kdapl/version.h"	/* a module of your own has a version of its own */

#define MAX_SIZE	(1024 * 1024)
#define MAX_IAS		16
#define MAX_CLIENTS	64	/* anybody may connect, and a silent one stays */
#define LOCAL		(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG)
#define REMOTE		(DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG)

static char *listen, *connect;
static ushort port = 4711;
static uint size = 65536, count = 16;

module_param(listen, charp, 0444);
MODULE_PARM_DESC(listen, "serve on this address of this machine, or on any (default: any, without connect=)");
module_param(connect, charp, 0444);
MODULE_PARM_DESC(connect, "call the server at this IPv4 or IPv6 address");
module_param(port, ushort, 0444);
MODULE_PARM_DESC(port, "connection qualifier, 1..65535 (default 4711)");
module_param(size, uint, 0444);
MODULE_PARM_DESC(size, "client: bytes per operation, 1..1048576 (default 65536)");
module_param(count, uint, 0444);
MODULE_PARM_DESC(count, "client: rounds of write and read back (default 16)");

/* The contents of a Send. The byte order is fixed, since the peer's may differ. */
struct kdping_msg {
	__le32 length;		/* hello: bytes wanted; here: bytes lent */
	__le32 rmr_context;	/* here: key to that memory */
	__le64 address;		/* here: its address in the server's address space */
	__le32 crc;		/* bye: checksum of the buffer as seen by the sender */
	__le32 pad;
};

static_assert(sizeof(struct kdping_msg) == 24);

struct kdping_adapter {
	char name[DAT_NAME_MAX_LENGTH];
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async_evd;
	DAT_PZ_HANDLE pz;
	bool iwarp;
	DAT_EVD_HANDLE cr_evd;		/* server */
	DAT_PSP_HANDLE psp;		/* server */
};

struct kdping_mem {		/* memory that the adapter may access */
	void *addr;
	DAT_SEG_LENGTH length;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT lmr_context;	/* its key for our own posts */
	DAT_RMR_CONTEXT rmr_context;	/* its key for the peer; 0 without remote rights */
};

struct kdping_op {		/* one operation in flight; its address is the cookie */
	DAT_DTO_COMPLETION_STATUS status;
	bool done;
};

/* A connection owns all it uses, so the target of a cookie outlives every event. */
struct kdping_conn {
	struct kdping_adapter *ad;
	DAT_EVD_HANDLE dto_evd, conn_evd;
	DAT_EP_HANDLE ep;
	DAT_CR_HANDLE cr;		/* server */
	struct work_struct work;	/* server */
	DAT_EVENT_NUMBER event;		/* last event of conn_evd, or 0 */
	struct kdping_op recv, request;
	struct kdping_mem in, out;	/* one message each */
	struct kdping_mem buf, back;	/* client: source and read sink; server: buf is lent */
	struct sockaddr_storage peer;
};

static struct kdping_adapter kdping_servers[MAX_IAS], kdping_client_side;
static struct workqueue_struct *kdping_wq;
static DECLARE_WAIT_QUEUE_HEAD(kdping_event);	/* woken by every upcall */
static atomic_t kdping_clients;
static bool kdping_stopping;

/* Compare only DAT_SUCCESS directly. All other values need DAT_GET_TYPE(). */
static int kdping_check(const char *what, DAT_RETURN ret)
{
	const char *major = "unknown error", *minor = "";

	if (ret == DAT_SUCCESS)
		return 0;
	dat_strerror(ret, &major, &minor);
	pr_err_ratelimited("%s: %s %s (0x%08x)\n", what, major, minor, ret);
	return kdat_errno(ret);
}

#define TRY(call, ...)	kdping_check(#call, call(__VA_ARGS__))

/* Log how a connection went. Asynchronous events have no upcall here, so poll for them. */
static void kdping_report(struct kdping_adapter *ad, const struct sockaddr_storage *peer, int err)
{
	DAT_EVENT event;

	while (dat_evd_dequeue(ad->async_evd, &event) == DAT_SUCCESS)
		pr_warn("%s: %s\n", ad->name, kdat_event_name(event.event_number));
	if (err)
		pr_err_ratelimited("FAIL ia=%s peer=%pISpc error %pe\n", ad->name, peer,
				   ERR_PTR(err));
}

/* This EVD carries only DTO completions, so this runs in softirq and must not sleep. */
static void kdping_dto_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct kdping_op *op = event->event_data.dto_completion_event_data.user_cookie.as_ptr;

	op->status = event->event_data.dto_completion_event_data.status;
	smp_store_release(&op->done, true);	/* pairs with kdping_wait() */
	wake_up_all(&kdping_event);
}

/* Each attempt has exactly one outcome, each established connection exactly one end. */
static void kdping_conn_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	WRITE_ONCE(((struct kdping_conn *)instance)->event, event->event_number);
	wake_up_all(&kdping_event);
}

static int kdping_mem_create(struct kdping_adapter *ad, struct kdping_mem *mem, u32 length,
			     int rights)
{
	DAT_REGION_DESCRIPTION region = {};

	mem->addr = kvzalloc(length, GFP_KERNEL);
	if (!mem->addr)
		return -ENOMEM;
	mem->length = length;
	region.for_va = mem->addr;
	return TRY(dat_lmr_kcreate, ad->ia, DAT_MEM_TYPE_VIRTUAL, region, length, ad->pz, rights,
		   DAT_VA_TYPE_VA, DAT_MEM_OPTIMIZE_DONT_CARE, &mem->lmr,
		   &mem->lmr_context, &mem->rmr_context, NULL, NULL);
}

/* Free the LMR first: afterwards no peer can reach the memory. A NULL handle does no harm. */
static void kdping_mem_destroy(struct kdping_mem *mem)
{
	dat_lmr_free(mem->lmr);
	kvfree(mem->addr);
}

static int kdping_post(struct kdping_conn *conn, DAT_DTOS what, const DAT_RMR_TRIPLET *remote)
{
	struct kdping_mem *mem = what == DAT_DTO_RECEIVE ? &conn->in :
				 what == DAT_DTO_SEND ? &conn->out :
				 what == DAT_DTO_RDMA_WRITE ? &conn->buf : &conn->back;
	DAT_LMR_TRIPLET iov = { (uintptr_t)mem->addr, mem->length, mem->lmr_context };
	DAT_DTO_COOKIE c = { .as_ptr = what == DAT_DTO_RECEIVE ? &conn->recv : &conn->request };

	switch (what) {
	case DAT_DTO_RECEIVE:
		return TRY(dat_ep_post_recv, conn->ep, 1, &iov, c, 0);
	case DAT_DTO_SEND:
		return TRY(dat_ep_post_send, conn->ep, 1, &iov, c, 0);
	case DAT_DTO_RDMA_WRITE:
		return TRY(dat_ep_post_rdma_write, conn->ep, 1, &iov, c, remote, 0);
	default:
		return TRY(dat_ep_post_rdma_read, conn->ep, 1, &iov, c, remote, 0);
	}
}

static int kdping_wait(struct kdping_op *op)
{
	/* pairs with kdping_dto_upcall() */
	if (wait_event_killable(kdping_event, smp_load_acquire(&op->done) ||
				READ_ONCE(kdping_stopping)) || !op->done)
		return -EINTR;
	op->done = false;
	return op->status == DAT_DTO_SUCCESS ? 0 :
	       op->status == DAT_DTO_ERR_FLUSHED ? -ECONNRESET : -EREMOTEIO;
}

static int kdping_send(struct kdping_conn *conn, u32 length, u32 crc)
{
	struct kdping_msg *msg = conn->out.addr;

	msg->length = cpu_to_le32(length);
	msg->rmr_context = cpu_to_le32(conn->buf.rmr_context);
	/* Only with a key: an address alone would tell the peer where this kernel's memory is. */
	if (conn->buf.rmr_context)
		msg->address = cpu_to_le64((uintptr_t)conn->buf.addr);
	msg->crc = cpu_to_le32(crc);
	return kdping_post(conn, DAT_DTO_SEND, NULL) ?: kdping_wait(&conn->request);
}

/* Wait for the outcome of connecting or, later, for the end. Return the new state as an errno. */
static int kdping_wait_conn(struct kdping_conn *conn, DAT_EVENT_NUMBER before)
{
	if (wait_event_killable(kdping_event, READ_ONCE(conn->event) != before ||
				READ_ONCE(kdping_stopping)))
		return -EINTR;
	switch (conn->event) {
	case DAT_CONNECTION_EVENT_ESTABLISHED:		return 0;
	case DAT_CONNECTION_EVENT_PEER_REJECTED:	return -EACCES;
	case DAT_CONNECTION_EVENT_NON_PEER_REJECTED:	return -ECONNREFUSED;
	case DAT_CONNECTION_EVENT_UNREACHABLE:		return -EHOSTUNREACH;
	case DAT_CONNECTION_EVENT_TIMED_OUT:		return -ETIMEDOUT;
	default:					return -ECONNRESET;
	}
}

/* Set up an EP that can connect or accept. On failure, the caller calls kdping_conn_destroy(). */
static int kdping_conn_setup(struct kdping_conn *conn)
{
	const DAT_UPCALL_OBJECT dto = { conn, kdping_dto_upcall };
	const DAT_UPCALL_OBJECT cm = { conn, kdping_conn_upcall };
	struct kdping_adapter *ad = conn->ad;
	DAT_EP_ATTR attr = KDAT_EP_ATTR_INIT;

	attr.max_message_size = sizeof(struct kdping_msg);
	attr.max_rdma_size = MAX_SIZE;
	attr.max_recv_dtos = 2;
	attr.max_recv_iov = 1;
	attr.max_request_dtos = 2;
	attr.max_request_iov = 1;
	/* Both ends must request a read depth; here the default is 0. */
	attr.max_rdma_read_in = 1;
	attr.max_rdma_read_out = 1;
	return kdping_mem_create(ad, &conn->in, sizeof(struct kdping_msg), LOCAL) ?:
	       kdping_mem_create(ad, &conn->out, sizeof(struct kdping_msg), LOCAL) ?:
	       TRY(dat_evd_kcreate, ad->ia, 4, DAT_UPCALL_SINGLE_INSTANCE, &dto,
		   DAT_EVD_DTO_FLAG, &conn->dto_evd) ?:
	       TRY(dat_evd_kcreate, ad->ia, 4, DAT_UPCALL_SINGLE_INSTANCE, &cm,
		   DAT_EVD_CONNECTION_FLAG, &conn->conn_evd) ?:
	       TRY(dat_ep_create, ad->ia, ad->pz, conn->dto_evd, conn->dto_evd,
		   conn->conn_evd, &attr, &conn->ep) ?:
	       /* Post before connecting, so that the peer's first Send finds a Receive. */
	       kdping_post(conn, DAT_DTO_RECEIVE, NULL);
}

/* Free users before what they use. Freeing an EP disconnects; freeing an EVD ends its upcalls. */
static void kdping_conn_destroy(struct kdping_conn *conn)
{
	dat_ep_free(conn->ep);
	dat_evd_free(conn->conn_evd);
	dat_evd_free(conn->dto_evd);
	kdping_mem_destroy(&conn->back);
	kdping_mem_destroy(&conn->buf);
	kdping_mem_destroy(&conn->out);
	kdping_mem_destroy(&conn->in);
	kfree(conn);
}

static int kdping_rounds(struct kdping_conn *conn)
{
	u64 write_ns = 1, read_ns = 1, bytes = (u64)size * count, start, middle;
	const struct kdping_msg *msg = conn->in.addr;
	u8 *p = conn->buf.addr;
	DAT_RMR_TRIPLET remote;
	u32 crc = 0, i, n;
	int err;

	err = kdping_send(conn, size, 0) ?: kdping_wait(&conn->recv);
	if (err)
		return err;
	remote.virtual_address = le64_to_cpu(msg->address);
	remote.segment_length = le32_to_cpu(msg->length);
	remote.rmr_context = le32_to_cpu(msg->rmr_context);
	pr_info("connected; the server lends %u bytes, key 0x%08x\n", remote.segment_length,
		remote.rmr_context);

	for (n = 0; n < count; n++) {
		for (i = 0; i < size; i++)	/* differs in each byte and each round */
			p[i] = (i * 2654435761u + n * 40503u) >> 13;
		crc = crc32_le(~0, p, size);
		memset(conn->back.addr, 0, size);
		start = ktime_get_ns();
		err = kdping_post(conn, DAT_DTO_RDMA_WRITE, &remote) ?: kdping_wait(&conn->request);
		middle = ktime_get_ns();
		/* A Read returns the data of earlier Writes on the same EP. */
		if (!err)
			err = kdping_post(conn, DAT_DTO_RDMA_READ, &remote) ?:
			      kdping_wait(&conn->request);
		if (err)
			return err;
		write_ns += middle - start;
		read_ns += ktime_get_ns() - middle;
		if (crc32_le(~0, conn->back.addr, size) != crc)
			return -EBADMSG;
		cond_resched();
	}

	err = kdping_post(conn, DAT_DTO_RECEIVE, NULL) ?: kdping_send(conn, size, crc) ?:
	      kdping_wait(&conn->recv);
	if (!err && le32_to_cpu(msg->crc) != crc)
		err = -EBADMSG;
	if (!err)
		pr_info("PASS ia=%s peer=%pISpc rounds=%u size=%u write=%lluMB/s read=%lluMB/s crc=0x%08x\n",
			conn->ad->name, &conn->peer, count, size, div64_u64(bytes * 1000, write_ns),
			div64_u64(bytes * 1000, read_ns), crc);
	return err;
}

static int kdping_client(struct kdping_adapter *ad, const struct sockaddr_storage *server)
{
	struct kdping_conn *conn = kzalloc(sizeof(*conn), GFP_KERNEL);
	int err;

	if (!conn)
		return -ENOMEM;
	conn->ad = ad;
	conn->peer = *server;
	pr_info("%s: connecting to %pISpc, %u rounds of %u bytes\n", ad->name, server, count,
		size);
	err = kdping_conn_setup(conn) ?:
	      /* Request only the rights that are needed; no others are granted. */
	      kdping_mem_create(ad, &conn->buf, size, DAT_MEM_PRIV_LOCAL_READ_FLAG) ?:
	      /* iWARP answers a Read with a kind of Write, so the sink needs remote write */
	      kdping_mem_create(ad, &conn->back, size, DAT_MEM_PRIV_LOCAL_WRITE_FLAG |
				(ad->iwarp ? DAT_MEM_PRIV_REMOTE_WRITE_FLAG : 0)) ?:
	      TRY(dat_ep_connect, conn->ep, (DAT_IA_ADDRESS_PTR)&conn->peer, port,
		  10 * USEC_PER_SEC, 0, NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG) ?:
	      kdping_wait_conn(conn, 0) ?:
	      kdping_rounds(conn) ?:
	      /* Graceful: finish posted requests first. An event reports the end. */
	      TRY(dat_ep_disconnect, conn->ep, DAT_CLOSE_GRACEFUL_FLAG);
	if (!err)
		kdping_wait_conn(conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	kdping_report(ad, server, err);
	kdping_conn_destroy(conn);
	return err;
}

static int kdping_talk(struct kdping_conn *conn)
{
	const struct kdping_msg *msg = conn->in.addr;
	u32 length, crc;
	int err;

	err = kdping_wait_conn(conn, 0) ?: kdping_wait(&conn->recv);
	if (err)
		return err;
	length = le32_to_cpu(msg->length);
	if (!length || length > MAX_SIZE)	/* never trust numbers from a peer */
		return -EPROTO;
	/* Receive before Send: the client may answer at once. It then works on its own. */
	err = kdping_mem_create(conn->ad, &conn->buf, length, LOCAL | REMOTE) ?:
	      kdping_post(conn, DAT_DTO_RECEIVE, NULL) ?: kdping_send(conn, length, 0) ?:
	      kdping_wait(&conn->recv);
	if (err)
		return err;
	/* The bye follows the last Write on the same EP, so the data of the Write is here. */
	crc = crc32_le(~0, conn->buf.addr, length);
	err = kdping_send(conn, length, crc);
	if (!err && le32_to_cpu(msg->crc) != crc)
		err = -EBADMSG;
	if (err)
		return err;
	pr_info("SERVED ia=%s peer=%pISpc size=%u crc=0x%08x\n", conn->ad->name, &conn->peer,
		length, crc);
	/* The client disconnects first. */
	kdping_wait_conn(conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	return 0;
}

/* Serve one client, from its request to the end of its connection. */
static void kdping_serve(struct work_struct *work)
{
	struct kdping_conn *conn = container_of(work, struct kdping_conn, work);
	DAT_CR_PARAM cr;
	int err;

	/* Copy the address, which is freed with the CR. The port's offset fits IPv4 and IPv6. */
	if (dat_cr_query(conn->cr, DAT_CR_FIELD_ALL, &cr) == DAT_SUCCESS) {
		memcpy(&conn->peer, cr.remote_ia_address_ptr,
		       cr.remote_ia_address_ptr->sa_family == AF_INET6 ?
		       sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
		((struct sockaddr_in *)&conn->peer)->sin_port = cpu_to_be16(cr.remote_port_qual);
	}
	err = kdping_conn_setup(conn) ?: TRY(dat_cr_accept, conn->cr, conn->ep, 0, NULL);
	if (err)
		dat_cr_reject(conn->cr, 0, NULL);	/* a failed accept keeps the CR */
	else
		err = kdping_talk(conn);
	kdping_report(conn->ad, &conn->peer, err);
	kdping_conn_destroy(conn);
	atomic_dec(&kdping_clients);
}

/* Process context, but serving takes long: use a work item, so the next request need not wait. */
static void kdping_cr_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct kdping_conn *conn = NULL;

	if (atomic_inc_return(&kdping_clients) <= MAX_CLIENTS)
		conn = kzalloc(sizeof(*conn), GFP_KERNEL);
	if (!conn) {
		atomic_dec(&kdping_clients);
		dat_cr_reject(event->event_data.cr_arrival_event_data.cr_handle, 0, NULL);
		return;
	}
	conn->ad = instance;
	conn->cr = event->event_data.cr_arrival_event_data.cr_handle;
	INIT_WORK(&conn->work, kdping_serve);
	queue_work(kdping_wq, &conn->work);
}

static int kdping_serve_on(struct kdping_adapter *ad)
{
	const DAT_UPCALL_OBJECT upcall = { ad, kdping_cr_upcall };
	int err;

	/* The length of the queue is the backlog of the listener. */
	err = TRY(dat_evd_kcreate, ad->ia, 16, DAT_UPCALL_SINGLE_INSTANCE, &upcall,
		  DAT_EVD_CR_FLAG, &ad->cr_evd) ?:
	      TRY(dat_psp_create, ad->ia, port, ad->cr_evd, DAT_PSP_CONSUMER_FLAG, &ad->psp);
	if (!err)
		pr_info("serving on %s port %u\n", ad->name, port);
	if (err != -EHOSTUNREACH)
		return err;
	pr_err("%s has no IP address to serve on\n", ad->name);
	return -EADDRNOTAVAIL;
}

static void kdping_close(struct kdping_adapter *ad)
{
	if (!ad->ia)
		return;
	kdping_report(ad, NULL, 0);
	dat_pz_free(ad->pz);
	/* A graceful close fails while the IA has objects, so it detects leaks. */
	if (TRY(dat_ia_close, ad->ia, DAT_CLOSE_GRACEFUL_FLAG))
		dat_ia_close(ad->ia, DAT_CLOSE_ABRUPT_FLAG);
	ad->ia = NULL;
}

/* The order matters: end new requests, their upcalls, the connections, then the adapters. */
static void kdping_stop(void)
{
	int i;

	for (i = 0; i < MAX_IAS; i++) {
		dat_psp_free(kdping_servers[i].psp);
		dat_evd_free(kdping_servers[i].cr_evd);
	}
	WRITE_ONCE(kdping_stopping, true);
	wake_up_all(&kdping_event);
	if (kdping_wq)
		destroy_workqueue(kdping_wq);
	for (i = 0; i < MAX_IAS; i++)
		kdping_close(&kdping_servers[i]);
}

/* Open the adapter of that name or local address, or the one that leads to a peer. */
static int kdping_open(struct kdping_adapter *ad, char *name, const struct sockaddr_storage *peer)
{
	DAT_PROVIDER_ATTR provider;
	DAT_IA_ATTR attr;
	int err;

	if (peer)
		err = TRY(kdat_ia_open_to, current->nsproxy->net_ns, (struct sockaddr *)peer, NULL,
			  8, &ad->async_evd, &ad->ia);
	else
		err = TRY(dat_ia_open, name, 8, &ad->async_evd, &ad->ia);
	if (err)
		return err;
	err = TRY(dat_ia_query, ad->ia, NULL, DAT_IA_FIELD_ALL, &attr,
		  DAT_PROVIDER_FIELD_RDMA_WRITE_FOR_RDMA_READ_REQ, &provider) ?:
	      TRY(dat_pz_create, ad->ia, &ad->pz);
	if (err) {
		kdping_close(ad);
		return err;
	}
	strscpy(ad->name, attr.adapter_name, sizeof(ad->name));
	ad->iwarp = provider.rdma_write_for_rdma_read_req;
	return 0;
}

/* Serve on one adapter, or on each that there is; one of them has to work. */
static int kdping_server(void)
{
	DAT_PROVIDER_INFO *info = kcalloc(MAX_IAS, sizeof(*info), GFP_KERNEL);
	DAT_PROVIDER_INFO *list[MAX_IAS];
	DAT_COUNT n = 0, i;
	int err = -ENODEV, one;

	kdping_wq = alloc_workqueue("kdping", WQ_UNBOUND, 0);
	if (!info || !kdping_wq) {
		kfree(info);
		return -ENOMEM;
	}
	if (listen && strcmp(listen, "any")) {
		kfree(info);
		return kdping_open(&kdping_servers[0], listen, NULL) ?:
		       kdping_serve_on(&kdping_servers[0]);
	}
	for (i = 0; i < MAX_IAS; i++)
		list[i] = &info[i];
	dat_registry_list_providers(MAX_IAS, &n, list);
	for (i = 0; i < min(n, MAX_IAS); i++) {
		one = kdping_open(&kdping_servers[i], info[i].ia_name, NULL) ?:
		      kdping_serve_on(&kdping_servers[i]);
		err = err && one ? one : 0;
	}
	kfree(info);
	return err;
}

/* Runs entirely inside init, so the result of the call is the result of the load. */
static int kdping_call(const struct sockaddr_storage *server)
{
	int err;

	err = kdping_open(&kdping_client_side, NULL, server);
	if (err)
		return err;
	err = kdping_client(&kdping_client_side, server);
	kdping_close(&kdping_client_side);
	return err;
}

static int __init kdping_init(void)
{
	struct sockaddr_storage server = {};
	const char *wrong = NULL;
	char port_string[8];
	int err = 0;

	snprintf(port_string, sizeof(port_string), "%u", port);
	if (!port)
		wrong = "port= must be 1..65535";
	else if (!size || size > MAX_SIZE)
		wrong = "size= must be 1..1048576";
	else if (!count)
		wrong = "count= must be at least 1";
	else if (connect && inet_pton_with_scope(current->nsproxy->net_ns, AF_UNSPEC, connect,
						 port_string, &server))
		wrong = "connect= is neither an IPv4 nor an IPv6 address";
	if (wrong) {
		pr_err("%s\n", wrong);
		return -EINVAL;
	}
	if (listen || !connect)
		err = kdping_server();
	if (!err && connect)
		err = kdping_call(&server);
	if (err)
		kdping_stop();
	return err;
}

static void __exit kdping_exit(void)
{
	kdping_stop();
}

module_init(kdping_init);
module_exit(kdping_exit);
MODULE_DESCRIPTION("kDAPL example: greeting, RDMA Write, RDMA Read, checksum");
MODULE_AUTHOR("The kDAPL for Linux authors");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION(KDAPL_VERSION);
