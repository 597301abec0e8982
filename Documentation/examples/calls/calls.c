// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * calls - one short function for each call that no other example makes. The manual pages quote
 * them. Loading the module runs all of them, between two Endpoints of one adapter:
 *
 *	insmod calls.ko ia=rxe0-1
 *
 * To be short, these functions wait for each event before they go on. A protocol has upcalls
 * (ulp_example/rpc) and frees what it has created after an error (ulp_example/kdping).
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/net.h>
#include <linux/nsproxy.h>
#include <linux/scatterlist.h>
#include <dat2/kdat.h>
#include <dat2/kdat_ext.h>

#define PORT	4712
#define SIZE	64	/* of a message */
#define LOCAL	(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG)
#define SECONDS	((DAT_TIMEOUT)USEC_PER_SEC)

static char *name = "";
module_param_named(ia, name, charp, 0444);
MODULE_PARM_DESC(ia, "name of the interface adapter");

/* One end of a connection, with a page that both ends may reach. */
struct end {
	DAT_EVD_HANDLE dto_evd, conn_evd;
	DAT_EP_HANDLE ep;
	DAT_SRQ_HANDLE srq;
	char *page;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT lkey;
	DAT_RMR_CONTEXT rkey;
};

static DAT_IA_HANDLE ia;
static DAT_IA_ATTR ia_attr;
static DAT_EVD_HANDLE async_evd, cr_evd;
static DAT_PZ_HANDLE pz;
static struct end us, peer, second_us, second_peer;
static const DAT_CONTEXT no_cookie;

static int check(const char *what, DAT_RETURN ret)
{
	const char *major = "unknown error", *minor = "";

	if (ret == DAT_SUCCESS)
		return 0;
	dat_strerror(ret, &major, &minor);
	pr_err("%s: %s %s\n", what, major, minor);
	return kdat_errno(ret);
}

#define TRY(call, ...)	check(#call, call(__VA_ARGS__))

/* Wait for the next event of an EVD without upcalls. */
static int next_event(DAT_EVD_HANDLE evd, DAT_EVENT_NUMBER number, DAT_EVENT *event)
{
	unsigned long end = jiffies + 20 * HZ;

	while (dat_evd_dequeue(evd, event) != DAT_SUCCESS) {
		if (time_after(jiffies, end)) {
			pr_err("no event, instead of %s\n", kdat_event_name(number));
			return -ETIMEDOUT;
		}
		usleep_range(50, 200);
	}
	if (event->event_number == number)
		return 0;
	pr_err("%s instead of %s\n", kdat_event_name(event->event_number), kdat_event_name(number));
	return -EPROTO;
}

/* Wait until the oldest request or Receive of an end is done. */
static int done(const struct end *end, DAT_EVENT *event)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	int err = next_event(end->dto_evd, DAT_DTO_COMPLETION_EVENT, event);

	if (err || dto->status == DAT_DTO_SUCCESS)
		return err;
	pr_err("a completion with %s\n", kdat_dto_status_name(dto->status));
	return -EIO;
}

static DAT_LMR_TRIPLET part_of(const struct end *end, DAT_SEG_LENGTH length)
{
	return (DAT_LMR_TRIPLET){ (uintptr_t)end->page, length, end->lkey };
}

/* ---- adapters ---- */

static int open_adapter(void)
{
	async_evd = DAT_HANDLE_NULL;	/* the call creates one */
	return TRY(dat_ia_open, name, 8, &async_evd, &ia) ?:
	       TRY(dat_pz_create, ia, &pz);
}

/*
 * A module that opens adapters on behalf of others passes their names. `rdma resource show` and
 * `kdapl` then show these instead of its own.
 */
static int open_on_behalf(const char *consumer, DAT_IA_HANDLE *handle)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;

	return TRY(kdat_ia_openv, name, 8, &async, handle, DAT_VERSION_MAJOR, DAT_VERSION_MINOR,
		   DAT_THREADSAFE, consumer);
}

static int open_to_on_behalf(const char *consumer, const struct sockaddr *dst,
			     DAT_IA_HANDLE *handle)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;

	return TRY(kdat_ia_open_to_as, current->nsproxy->net_ns, dst, NULL, 8, &async, handle,
		   consumer);
}

/* Do these two names mean the same adapter? No other one can take over its connections. */
static bool are_same(char *one, char *other)
{
	DAT_HA_RELATIONSHIP answer;

	return dat_registry_providers_related(one, other, &answer) == DAT_SUCCESS &&
	       answer == DAT_HA_TRUE;
}

/* How much of a greeting fits into the answer to a connection request? */
static DAT_COUNT greeting_size(DAT_COUNT wanted)
{
	struct kdat_pdata_limits limits;

	return kdat_ia_pdata_limits(ia, &limits) == DAT_SUCCESS ? min(wanted, limits.accept) : 0;
}

/* How long, and aligned to what, should buffers of about this length be? */
static int buffer_shape(DAT_VLEN *length, DAT_VADDR *alignment)
{
	return TRY(dat_ia_memtype_hint, ia, DAT_MEM_TYPE_VIRTUAL, *length,
		   DAT_MEM_OPTIMIZE_DONT_CARE, length, alignment);
}

/* Some reasons have no event number of their own, such as the watermarks. */
static void report_async_events(void)
{
	DAT_EVENT event;

	while (dat_evd_dequeue(async_evd, &event) == DAT_SUCCESS)
		pr_warn("%s: %s\n", kdat_event_name(event.event_number),
			kdat_async_reason_name(&event));
}

/* A handle that may be of any kind: if it is a PZ, of which adapter? */
static DAT_IA_HANDLE adapter_of_pz(DAT_HANDLE handle)
{
	DAT_HANDLE_TYPE type;
	DAT_PZ_PARAM param;

	if (dat_get_handle_type(handle, &type) != DAT_SUCCESS || type != DAT_HANDLE_TYPE_PZ ||
	    dat_pz_query(handle, DAT_PZ_FIELD_IA_HANDLE, &param) != DAT_SUCCESS)
		return DAT_HANDLE_NULL;
	return param.ia_handle;
}

/* ---- Event Dispatchers and Endpoints ---- */

/* Another Endpoint is about to use this EVD: make room for its events. */
static int make_room(DAT_EVD_HANDLE evd, DAT_COUNT more)
{
	DAT_EVD_PARAM param;

	return TRY(dat_evd_query, evd, DAT_EVD_FIELD_EVD_QLEN, &param) ?:
	       TRY(dat_evd_resize, evd, param.evd_qlen + more);
}

/* Before it is connected: messages may become longer. */
static int allow_messages(DAT_EP_HANDLE ep, DAT_SEG_LENGTH size)
{
	DAT_EP_PARAM param;
	int err = TRY(dat_ep_query, ep, DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE, &param);

	if (err || param.ep_attr.max_message_size >= size)
		return err;
	param.ep_attr.max_message_size = size;
	return TRY(dat_ep_modify, ep, DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE, &param);
}

/* Has everything completed that was posted? */
static bool is_idle(DAT_EP_HANDLE ep)
{
	DAT_BOOLEAN recv_idle, request_idle;
	DAT_EP_STATE state;

	if (dat_ep_get_status(ep, &state, &recv_idle, &request_idle) != DAT_SUCCESS)
		return false;
	pr_debug("the Endpoint is %s\n", kdat_ep_state_name(state));
	return recv_idle && request_idle;
}

/* After how many lost acknowledgments does a connection end? Not on iWARP. */
static int retries_of(DAT_EP_HANDLE ep)
{
	struct kdat_conn_attr attr;

	return TRY(kdat_ep_query_conn, ep, &attr) ?: attr.retry_count;
}

/*
 * If this client holds many buffers of the shared queue, an asynchronous event says so. Others get
 * none meanwhile, so it is disconnected at twice that number.
 */
static int limit_buffers(DAT_EP_HANDLE ep, DAT_COUNT fair)
{
	DAT_COUNT held, span;
	int err = TRY(dat_ep_recv_query, ep, &held, &span);

	if (err)
		return err;
	pr_debug("the client holds %d buffers\n", held);
	return TRY(dat_ep_set_watermark, ep, fair, 2 * fair);
}

/* Once an Endpoint uses it, a queue grows only to the length the device has rounded it up to. */
static int grow_srq(DAT_SRQ_HANDLE srq, DAT_COUNT more)
{
	DAT_SRQ_PARAM param;
	int err = TRY(dat_srq_query, srq, DAT_SRQ_FIELD_MAX_RECV_DTO, &param);

	return err ?: TRY(dat_srq_resize, srq, param.max_recv_dtos + more);
}

static int create_end(struct end *end, bool shared)
{
	DAT_EP_ATTR attr = KDAT_EP_ATTR_INIT;
	DAT_SRQ_ATTR srq_attr = { .max_recv_dtos = 4, .max_recv_iov = 1 };
	DAT_REGION_DESCRIPTION region;

	end->page = (void *)get_zeroed_page(GFP_KERNEL);
	if (!end->page)
		return -ENOMEM;
	region.for_va = end->page;
	attr.max_message_size = SIZE;
	attr.max_rdma_size = PAGE_SIZE;
	attr.max_request_dtos = 8;
	attr.max_request_iov = 1;
	attr.max_rdma_read_in = 2;
	attr.max_rdma_read_out = 2;
	if (!shared) {
		attr.max_recv_dtos = 4;
		attr.max_recv_iov = 1;
	}
	return TRY(dat_lmr_kcreate, ia, DAT_MEM_TYPE_VIRTUAL, region, PAGE_SIZE, pz,
		   DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, DAT_MEM_OPTIMIZE_DONT_CARE, &end->lmr,
		   &end->lkey, &end->rkey, NULL, NULL) ?:
	       TRY(dat_evd_kcreate, ia, 32, DAT_UPCALL_DISABLE, NULL,
		   DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG, &end->dto_evd) ?:
	       TRY(dat_evd_kcreate, ia, 4, DAT_UPCALL_DISABLE, NULL, DAT_EVD_CONNECTION_FLAG,
		   &end->conn_evd) ?:
	       (shared ? TRY(dat_srq_create, ia, pz, &srq_attr, &end->srq) ?:
			 grow_srq(end->srq, 4) ?:
			 TRY(dat_ep_create_with_srq, ia, pz, end->dto_evd, end->dto_evd,
			     end->conn_evd, end->srq, &attr, &end->ep) :
			 TRY(dat_ep_create, ia, pz, end->dto_evd, end->dto_evd, end->conn_evd, &attr,
			     &end->ep));
}

/*
 * An Endpoint that was freed inside an upcall, as a protocol may do, uses its EVDs, its SRQ and its
 * PZ for a moment longer. A handle that is NULL does no harm.
 */
static void free_end(struct end *end)
{
	dat_ep_free(end->ep);
	kdat_wait_unused(end->srq);
	dat_srq_free(end->srq);
	kdat_wait_unused(end->dto_evd);
	dat_evd_free(end->dto_evd);
	kdat_wait_unused(end->conn_evd);
	dat_evd_free(end->conn_evd);
	dat_lmr_free(end->lmr);
	free_page((unsigned long)end->page);
}

/* ---- connections ---- */

static int next_request(DAT_CR_HANDLE *cr)
{
	DAT_EVENT event;
	int err = next_event(cr_evd, DAT_CONNECTION_REQUEST_EVENT, &event);

	*cr = event.event_data.cr_arrival_event_data.cr_handle;
	return err;
}

static int connect(DAT_EP_HANDLE ep, DAT_CONN_QUAL qual)
{
	return TRY(dat_ep_connect, ep, ia_attr.ia_address_ptr, qual, 10 * SECONDS, 0, NULL,
		   DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
}

/* With a NULL Endpoint, the one that came with the request is accepted. */
static int accept(DAT_EP_HANDLE ep, const struct end *client, const struct end *server)
{
	DAT_CR_HANDLE cr;
	DAT_EVENT event;

	return next_request(&cr) ?:
	       TRY(dat_cr_accept, cr, ep, greeting_size(2), "hi") ?:
	       next_event(client->conn_evd, DAT_CONNECTION_EVENT_ESTABLISHED, &event) ?:
	       next_event(server->conn_evd, DAT_CONNECTION_EVENT_ESTABLISHED, &event);
}

/* After this, both Endpoints can connect again. */
static int hang_up(const struct end *client, const struct end *server)
{
	DAT_EVENT event;
	int err = TRY(dat_ep_disconnect, client->ep, DAT_CLOSE_GRACEFUL_FLAG) ?:
		  next_event(client->conn_evd, DAT_CONNECTION_EVENT_DISCONNECTED, &event) ?:
		  next_event(server->conn_evd, DAT_CONNECTION_EVENT_DISCONNECTED, &event) ?:
		  TRY(kdat_ep_drain, client->ep) ?: TRY(kdat_ep_drain, server->ep);

	while (dat_evd_dequeue(client->dto_evd, &event) == DAT_SUCCESS)
		;	/* flushed Receives */
	return err ?: TRY(dat_ep_reset, client->ep) ?: TRY(dat_ep_reset, server->ep);
}

/* Listen on any free port, for peers that learn its number in another way. */
static int listen_anywhere(DAT_PSP_HANDLE *psp, DAT_CONN_QUAL *qual)
{
	return TRY(dat_psp_create_any, ia, qual, cr_evd, DAT_PSP_CONSUMER_FLAG, psp);
}

/* Which port does a service point listen on? */
static DAT_CONN_QUAL port_of(DAT_PSP_HANDLE psp)
{
	DAT_PSP_PARAM param;

	return dat_psp_query(psp, DAT_PSP_FIELD_CONN_QUAL, &param) == DAT_SUCCESS ?
	       param.conn_qual : 0;
}

/* The service point that the request has come to is only a switchboard: another one answers. */
static int hand_over(DAT_CONN_QUAL qual)
{
	DAT_CR_HANDLE cr;

	return next_request(&cr) ?: TRY(dat_cr_handoff, cr, qual);
}

/* A second connection to the same service of the same peer. */
static int connect_once_more(DAT_EP_HANDLE ep, DAT_EP_HANDLE like)
{
	return TRY(dat_ep_dup_connect, ep, like, 10 * SECONDS, 0, NULL, DAT_QOS_BEST_EFFORT);
}

/* Expect one peer, with an Endpoint that is ready for it. */
static int expect_one(DAT_EP_HANDLE ep, DAT_CONN_QUAL qual, DAT_RSP_HANDLE *rsp)
{
	return TRY(dat_rsp_create, ia, qual, ep, cr_evd, rsp);
}

/* It has not come. The Endpoint can be used for something else. */
static int expect_no_more(DAT_RSP_HANDLE rsp, DAT_EP_HANDLE *ep)
{
	DAT_RSP_PARAM param;
	int err = TRY(dat_rsp_query, rsp, DAT_RSP_FIELD_EP_HANDLE, &param);

	*ep = param.ep_handle;
	return err ?: TRY(dat_rsp_free, rsp);
}

static void set_port(struct sockaddr *address, u16 port)
{
	if (address->sa_family == AF_INET)
		((struct sockaddr_in *)address)->sin_port = htons(port);
	else
		((struct sockaddr_in6 *)address)->sin6_port = htons(port);
}

/* Listen on one of several addresses of a port, named as for a socket. */
static int listen_on(struct sockaddr *address, u16 port, DAT_CSP_HANDLE *csp)
{
	DAT_COMM comm = { address->sa_family, SOCK_STREAM, IPPROTO_TCP };

	set_port(address, port);
	return TRY(dat_csp_create, ia, &comm, address, cr_evd, csp);
}

/* Connect to an address with a port, as a socket does. */
static int connect_as_socket(DAT_EP_HANDLE ep, struct sockaddr *address)
{
	DAT_EP_PARAM param;

	param.comm = (DAT_COMM){ address->sa_family, SOCK_STREAM, IPPROTO_TCP };
	return TRY(dat_ep_modify, ep, DAT_EP_FIELD_COMM, &param) ?:
	       TRY(dat_ep_common_connect, ep, address, 10 * SECONDS, 0, NULL);
}

/* Stop listening, and say where. */
static int stop_listening(DAT_CSP_HANDLE csp)
{
	DAT_CSP_PARAM param;
	int err = TRY(dat_csp_query, csp, DAT_CSP_FIELD_ALL, &param);

	if (err)
		return err;
	pr_debug("no longer on %pISpc\n", param.address_ptr);
	return TRY(dat_csp_free, csp);
}

/* ---- memory ---- */

/* Lend a part of our page to the peer. A Send that carries the key may be posted at once. */
static int open_window(DAT_RMR_HANDLE rmr, DAT_SEG_LENGTH length, DAT_RMR_CONTEXT *rkey)
{
	DAT_LMR_TRIPLET part = part_of(&us, length);

	return TRY(dat_rmr_bind, rmr, us.lmr, &part, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, DAT_VA_TYPE_VA,
		   us.ep, no_cookie, DAT_COMPLETION_DEFAULT_FLAG, rkey);
}

/* When this is done, the peer can no longer reach the memory. */
static int close_window(DAT_RMR_HANDLE rmr)
{
	DAT_LMR_TRIPLET nothing = {};
	DAT_RMR_CONTEXT unused;
	DAT_EVENT event;

	return TRY(dat_rmr_bind, rmr, DAT_HANDLE_NULL, &nothing, DAT_MEM_PRIV_NONE_FLAG,
		   DAT_VA_TYPE_VA, us.ep, no_cookie, DAT_COMPLETION_DEFAULT_FLAG, &unused) ?:
	       next_event(us.dto_evd, DAT_RMR_BIND_COMPLETION_EVENT, &event);
}

/* A window for any Endpoint of the PZ; or for one at a time, which no other peer can use. */
static int create_window(bool for_one, DAT_RMR_HANDLE *rmr)
{
	return for_one ? TRY(dat_rmr_create_for_ep, pz, rmr) : TRY(dat_rmr_create, pz, rmr);
}

/* How much does the window show? */
static int free_window(DAT_RMR_HANDLE rmr, DAT_SEG_LENGTH *shown)
{
	DAT_RMR_PARAM param;
	int err = TRY(dat_rmr_query, rmr, DAT_RMR_FIELD_LMR_TRIPLET, &param);

	*shown = param.lmr_triplet.segment_length;
	return err ?: TRY(dat_rmr_free, rmr);
}

/* Read into a window of our own: the peer's data goes where the key says, and nowhere else. */
static int read_into_window(DAT_RMR_CONTEXT window, const DAT_RMR_TRIPLET *from)
{
	DAT_RMR_TRIPLET to = { (uintptr_t)us.page, from->segment_length, window };
	DAT_EVENT event;

	return TRY(dat_ep_post_rdma_read_to_rmr, us.ep, &to, no_cookie, from,
		   DAT_COMPLETION_DEFAULT_FLAG) ?: done(&us, &event);
}

/* Register a page on the connection of @end, for this use only. */
static int register_page(const struct end *end, DAT_LMR_HANDLE lmr, struct page *page,
			 DAT_RMR_TRIPLET *lent)
{
	DAT_PADDR at = page_to_phys(page);
	DAT_REGION_DESCRIPTION region = { .for_physical = &at };
	DAT_LMR_CONTEXT lkey;
	DAT_EVENT event;

	lent->virtual_address = at;
	lent->segment_length = PAGE_SIZE;
	return TRY(dat_lmr_fmr, lmr, DAT_MEM_TYPE_PHYSICAL, region, 1,
		   LOCAL | DAT_MEM_PRIV_REMOTE_WRITE_FLAG, DAT_VA_TYPE_VA, end->ep, no_cookie,
		   DAT_COMPLETION_DEFAULT_FLAG, &lkey, &lent->rmr_context) ?: done(end, &event);
}

/* Register exactly these bytes, as the block layer describes them. */
static int register_bytes(DAT_LMR_HANDLE lmr, void *bytes, DAT_SEG_LENGTH length,
			  DAT_RMR_TRIPLET *lent)
{
	struct scatterlist sgl;
	struct kdat_sg sg = { .sgl = &sgl, .nents = 1, .length = length };
	DAT_EVENT event;

	sg_init_one(&sgl, bytes, length);
	lent->segment_length = length;
	return TRY(kdat_lmr_fmr_sg, lmr, &sg, DAT_MEM_PRIV_LOCAL_READ_FLAG |
		   DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_VA_TYPE_VA, us.ep, no_cookie,
		   DAT_COMPLETION_DEFAULT_FLAG, NULL, &lent->rmr_context,
		   &lent->virtual_address) ?: done(&us, &event);
}

/* Memory that the device reads may need this after it was written, and before it is read. */
static int publish(const struct end *end)
{
	DAT_LMR_TRIPLET part = part_of(end, PAGE_SIZE);

	return TRY(dat_lmr_sync_rdma_read, ia, &part, 1);
}

/* Memory that a peer has written may need this before it is read. */
static int fetch(const struct end *end)
{
	DAT_LMR_TRIPLET part = part_of(end, PAGE_SIZE);

	return TRY(dat_lmr_sync_rdma_write, ia, &part, 1);
}

/* Only the key was kept: how long is that memory? */
static DAT_VLEN length_behind(DAT_LMR_CONTEXT lkey)
{
	DAT_LMR_HANDLE lmr;
	DAT_LMR_PARAM param;

	if (kdat_lmr_by_context(ia, lkey, &lmr) != DAT_SUCCESS ||
	    dat_lmr_query(lmr, DAT_LMR_FIELD_LENGTH, &param) != DAT_SUCCESS)
		return 0;
	return param.length;
}

/* ---- data transfer ---- */

static int post_receive(struct end *end)
{
	DAT_LMR_TRIPLET iov = part_of(end, SIZE);

	return TRY(dat_srq_post_recv, end->srq, 1, &iov, no_cookie);
}

/* We are done with the peer's memory: the last message also takes back its key. */
static int send_and_return(DAT_RMR_CONTEXT rkey)
{
	DAT_LMR_TRIPLET message = part_of(&us, SIZE);
	DAT_EVENT event;

	return TRY(dat_ep_post_send_with_invalidate, us.ep, 1, &message, no_cookie,
		   DAT_COMPLETION_DEFAULT_FLAG, DAT_TRUE, rkey) ?: done(&us, &event);
}

/* Send memory that has no LMR. It must stay mapped until the Send is done. */
static int send_unregistered(void *data, DAT_SEG_LENGTH length)
{
	struct kdat_dma_map map = {};
	DAT_LMR_TRIPLET iov = { .segment_length = length };
	DAT_LMR_HANDLE all;
	DAT_EVENT event;
	int err = TRY(dat_ia_reserved_lmr, ia, &all, &iov.lmr_context) ?:
		  TRY(kdat_ia_dma_map, ia, &map, data, length);

	if (err)
		return err;
	iov.virtual_address = map.address;
	err = TRY(dat_ep_post_send, us.ep, 1, &iov, no_cookie, DAT_COMPLETION_DEFAULT_FLAG) ?:
	      done(&us, &event);
	TRY(kdat_ia_dma_unmap, ia, &map);
	return err;
}

/* Write and tell the peer in one request; in two on iWARP, which has no immediate data. */
static int write_and_tell(const DAT_RMR_TRIPLET *to, DAT_UINT32 what)
{
	DAT_LMR_TRIPLET from = part_of(&us, to->segment_length), message = part_of(&us, SIZE);
	DAT_EVENT event;
	DAT_RETURN ret;

	ret = kdat_ep_post_rdma_write_immed(us.ep, 1, &from, no_cookie, to,
					    DAT_COMPLETION_DEFAULT_FLAG, what);
	if (DAT_GET_TYPE(ret) != DAT_MODEL_NOT_SUPPORTED)
		return check("kdat_ep_post_rdma_write_immed", ret) ?: done(&us, &event);
	*(DAT_UINT32 *)us.page = what;
	return TRY(dat_ep_post_rdma_write, us.ep, 1, &from, no_cookie, to,
		   DAT_COMPLETION_SUPPRESS_FLAG) ?:
	       TRY(dat_ep_post_send, us.ep, 1, &message, no_cookie, DAT_COMPLETION_DEFAULT_FLAG) ?:
	       done(&us, &event);
}

/* ---- all of them, one after the other ---- */

static int expected(bool right, const char *what)
{
	if (right)
		return 0;
	pr_err("wrong: %s\n", what);
	return -EPROTO;
}

static int run_adapters(void)
{
	DAT_VLEN length = SIZE;
	DAT_VADDR alignment;
	DAT_IA_HANDLE other;

	return TRY(dat_ia_query, ia, NULL, DAT_IA_FIELD_ALL, &ia_attr, DAT_PROVIDER_FIELD_NONE, NULL) ?:
	       open_on_behalf("calls-a", &other) ?:
	       TRY(dat_ia_close, other, DAT_CLOSE_GRACEFUL_FLAG) ?:
	       open_to_on_behalf("calls-b", ia_attr.ia_address_ptr, &other) ?:
	       TRY(dat_ia_close, other, DAT_CLOSE_GRACEFUL_FLAG) ?:
	       expected(are_same(name, name), "an adapter is the same as itself") ?:
	       buffer_shape(&length, &alignment) ?:
	       expected(length >= SIZE && alignment, "the shape of a buffer") ?:
	       expected(adapter_of_pz(pz) == ia && !adapter_of_pz(ia), "the adapter of a PZ");
}

/* Through a service point, with and without a switchboard, and a second connection. */
static int run_services(void)
{
	DAT_PSP_HANDLE psp, other;
	DAT_CONN_QUAL qual;

	return listen_anywhere(&psp, &qual) ?:
	       expected(port_of(psp) == qual, "the port") ?:
	       TRY(dat_psp_create, ia, PORT, cr_evd, DAT_PSP_CONSUMER_FLAG, &other) ?:
	       allow_messages(us.ep, 2 * SIZE) ?:
	       connect(us.ep, qual) ?:
	       accept(peer.ep, &us, &peer) ?:
	       connect_once_more(second_us.ep, us.ep) ?:
	       hand_over(PORT) ?:
	       accept(second_peer.ep, &second_us, &second_peer) ?:
	       hang_up(&second_us, &second_peer) ?:
	       hang_up(&us, &peer) ?:
	       TRY(dat_psp_free, psp) ?: TRY(dat_psp_free, other);
}

static int run_sockets(void)
{
	struct sockaddr_storage address = {};
	struct sockaddr *sa = (struct sockaddr *)&address;
	DAT_CSP_HANDLE csp;

	memcpy(sa, ia_attr.ia_address_ptr, ia_attr.ia_address_ptr->sa_family == AF_INET ?
	       sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
	return listen_on(sa, PORT, &csp) ?:
	       connect_as_socket(us.ep, sa) ?:
	       accept(peer.ep, &us, &peer) ?:
	       hang_up(&us, &peer) ?:
	       stop_listening(csp);
}

/* The connection stays. */
static int run_reserved(void)
{
	DAT_RSP_HANDLE rsp;
	DAT_EP_HANDLE ep;

	return expect_one(peer.ep, PORT, &rsp) ?:
	       expect_no_more(rsp, &ep) ?:
	       expected(ep == peer.ep, "the Endpoint of the RSP") ?:
	       expect_one(peer.ep, PORT, &rsp) ?:
	       connect(us.ep, PORT) ?:
	       accept(DAT_HANDLE_NULL, &us, &peer) ?:
	       expected(retries_of(us.ep) >= KDAT_CONN_DEFAULT, "the number of retries") ?:
	       make_room(us.dto_evd, 8) ?:
	       limit_buffers(peer.ep, 2);
}

static int run_messages(void)
{
	DAT_RMR_TRIPLET to = { (uintptr_t)peer.page + SIZE, SIZE, peer.rkey };
	const struct kdat_immed *immed;
	DAT_EVENT event;
	int err = post_receive(&peer) ?:
		  send_unregistered(us.page, SIZE) ?:
		  done(&peer, &event) ?:
		  post_receive(&peer) ?:
		  write_and_tell(&to, 7) ?:
		  done(&peer, &event) ?:
		  fetch(&peer);

	if (err)
		return err;
	immed = kdat_event_immed(&event);
	return expected((immed ? immed->data : *(DAT_UINT32 *)peer.page) == 7, "what is told");
}

static int run_windows(void)
{
	DAT_RMR_TRIPLET from = { (uintptr_t)peer.page, SIZE, peer.rkey };
	DAT_RMR_CONTEXT rkey;
	DAT_RMR_HANDLE rmr;
	DAT_SEG_LENGTH shown;
	DAT_EVENT event;
	int err = 0, i;

	strscpy(peer.page, "through a window", SIZE);
	for (i = 0; i < 2 && !err; i++) {
		memset(us.page, 0, SIZE);
		err = create_window(i, &rmr) ?:
		      open_window(rmr, SIZE, &rkey) ?:
		      next_event(us.dto_evd, DAT_RMR_BIND_COMPLETION_EVENT, &event) ?:
		      publish(&peer) ?:
		      read_into_window(rkey, &from) ?:
		      expected(!strcmp(us.page, peer.page), "what is read") ?:
		      (i ? close_window(rmr) : 0) ?:
		      free_window(rmr, &shown) ?:
		      expected(i || shown == SIZE, "the length of the window");
	}
	return err;
}

static int run_registrations(void)
{
	DAT_RMR_TRIPLET lent;
	DAT_LMR_HANDLE lmr;
	DAT_EVENT event;
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event.event_data.dto_completion_event_data;
	int err = TRY(dat_lmr_allocate, ia, pz, 2, DAT_LMR_SCOPE_EP, &lmr) ?:
		  register_page(&peer, lmr, virt_to_page(second_peer.page), &lent) ?:
		  post_receive(&peer) ?:
		  send_and_return(lent.rmr_context) ?:
		  done(&peer, &event) ?:
		  expected(dto->operation == DAT_DTO_RECEIVE_WITH_INVALIDATE &&
			   dto->rmr_context == lent.rmr_context, "the key that is back");

	return err ?:
	       register_bytes(lmr, second_us.page + 1, 100, &lent) ?:
	       TRY(dat_lmr_invalidate, lmr, us.ep, no_cookie, DAT_COMPLETION_DEFAULT_FLAG) ?:
	       done(&us, &event) ?:
	       TRY(dat_lmr_free, lmr) ?:
	       expected(length_behind(us.lkey) == PAGE_SIZE, "the length of the memory") ?:
	       expected(is_idle(us.ep), "the Endpoint is idle");
}

static void calls_exit(void)
{
	free_end(&us);
	free_end(&peer);
	free_end(&second_us);
	free_end(&second_peer);
	dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);	/* and what is left on it */
}

static int __init calls_init(void)
{
	int err = open_adapter();

	if (err)
		return err;
	err = run_adapters() ?:
	      TRY(dat_evd_kcreate, ia, 8, DAT_UPCALL_DISABLE, NULL, DAT_EVD_CR_FLAG, &cr_evd) ?:
	      create_end(&us, false) ?: create_end(&peer, true) ?:
	      create_end(&second_us, false) ?: create_end(&second_peer, true) ?:
	      run_services() ?:
	      run_sockets() ?:
	      run_reserved() ?:
	      run_messages() ?:
	      run_windows() ?:
	      run_registrations();
	report_async_events();
	if (err)
		calls_exit();
	else
		pr_info("all calls made over %s\n", name);
	return err;
}

module_init(calls_init);
module_exit(calls_exit);
MODULE_LICENSE("Dual BSD/GPL");
MODULE_DESCRIPTION("one short function for each call that no other example makes");
MODULE_AUTHOR("The kDAPL for Linux authors");
