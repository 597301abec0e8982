// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Sweeps of service points, requests and connections.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/kernel.h>
#include <linux/net.h>
#include <linux/wait.h>

#include "../calls.h"
#include "kdfail.h"

#define OWN	4242		/* qualifiers nobody else uses */
#define OWN_RSP	4243
#define OWN_CSP	4244

static DECLARE_COMPLETION(asked);
static DECLARE_WAIT_QUEUE_HEAD(wait);
static int ups, overs;

static void cr_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	kdf.cr = event->event_data.cr_arrival_event_data.cr_handle;
	complete(&asked);
}

static void conn_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	if (event->event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
		WRITE_ONCE(ups, ups + 1);
	else
		WRITE_ONCE(overs, overs + 1);
	wake_up_all(&wait);
}

static const DAT_UPCALL_OBJECT on_conn = { NULL, conn_upcall };
static const DAT_UPCALL_OBJECT on_cr = { NULL, cr_upcall };

static u8 pdata[16] = "kdfail";

/* ---- service points ---- */

static DAT_RETURN psp_any(void)
{
	DAT_CONN_QUAL any;

	return dat_psp_create_any(kdf.ia, &any, kdf.cr_evd, DAT_PSP_PROVIDER_FLAG, &kdf.out);
}

static DAT_RETURN psp_create(void)
{
	return dat_psp_create(kdf.ia, OWN, kdf.cr_evd, DAT_PSP_CONSUMER_FLAG, &kdf.out);
}

static DAT_RETURN psp_query(void)
{
	DAT_PSP_PARAM param;

	return dat_psp_query(kdf.psp, DAT_PSP_FIELD_ALL, &param);
}

static DAT_RETURN psp_free(void)
{
	return dat_psp_free(kdf.out);
}

static DAT_RETURN rsp_create(void)
{
	return dat_rsp_create(kdf.ia, OWN_RSP, kdf.passive, kdf.cr_evd, &kdf.out);
}

static DAT_RETURN rsp_query(void)
{
	DAT_RSP_PARAM param;

	return dat_rsp_query(kdf.out, DAT_RSP_FIELD_ALL, &param);
}

static DAT_RETURN rsp_free(void)
{
	return dat_rsp_free(kdf.out);
}

/* The adapter's address with a port. */
static void addr_of(u16 port, struct sockaddr_storage *addr)
{
	*addr = kdf.addr;
	((struct sockaddr_in *)addr)->sin_port = htons(port);	/* IPv6 has it there, too */
}

static DAT_RETURN csp_create(void)
{
	DAT_COMM comm = { kdf.addr.ss_family, SOCK_STREAM, 0 };
	struct sockaddr_storage addr;

	addr_of(OWN_CSP, &addr);
	return dat_csp_create(kdf.ia, &comm, (DAT_IA_ADDRESS_PTR)&addr, kdf.cr_evd, &kdf.out);
}

static DAT_RETURN csp_query(void)
{
	DAT_CSP_PARAM param;

	return dat_csp_query(kdf.out, DAT_CSP_FIELD_ALL, &param);
}

static DAT_RETURN csp_free(void)
{
	return dat_csp_free(kdf.out);
}

/* ---- a request ---- */

static DAT_RETURN nobody_asked(void)
{
	reinit_completion(&asked);
	ups = 0;
	overs = 0;
	return DAT_SUCCESS;
}

static void await_request(void)
{
	if (!wait_for_completion_timeout(&asked, LONG))
		fail("nobody has asked");
}

static DAT_RETURN connect_to(DAT_EP_HANDLE ep, DAT_CONN_QUAL port, DAT_COUNT size)
{
	return dat_ep_connect(ep, (DAT_IA_ADDRESS_PTR)&kdf.addr, port, DAT_TIMEOUT_INFINITE, size,
			      pdata, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
}

static DAT_RETURN connect(void)
{
	return connect_to(kdf.active, kdf.port, 0);
}

static DAT_RETURN connect_pdata(void)
{
	return connect_to(kdf.active, kdf.port, sizeof(pdata));
}

static DAT_RETURN connect_common(void)
{
	struct sockaddr_storage addr;

	addr_of(kdf.port, &addr);
	return dat_ep_common_connect(kdf.active, (DAT_IA_ADDRESS_PTR)&addr, DAT_TIMEOUT_INFINITE,
				     0, NULL);
}

static DAT_RETURN connect_dup(void)
{
	return dat_ep_dup_connect(kdf.active, kdf.near, DAT_TIMEOUT_INFINITE, 0, NULL,
				  DAT_QOS_BEST_EFFORT);
}

static DAT_RETURN request(DAT_EP_HANDLE ep, DAT_CONN_QUAL port)
{
	DAT_RETURN ret;

	nobody_asked();
	ret = connect_to(ep, port, 0);
	if (ret == DAT_SUCCESS)
		await_request();
	return ret;
}

DAT_RETURN kdf_request(void)
{
	return request(kdf.active, kdf.port);
}

static DAT_RETURN request_of_new(void)
{
	return kdf_ep_create() ?: request(kdf.out, kdf.port);
}

static DAT_RETURN request_to_rsp(void)
{
	return rsp_create() ?: request(kdf.active, OWN_RSP);
}

static DAT_RETURN request_to_new(void)
{
	return psp_create() ?: request(kdf.active, OWN);
}

/* It comes with an Endpoint. */
static DAT_RETURN request_making(void)
{
	DAT_CR_PARAM param;
	DAT_RETURN ret;

	ret = request(kdf.active, kdf.making_port) ?:
	      dat_cr_query(kdf.cr, DAT_CR_FIELD_ALL, &param);
	if (ret == DAT_SUCCESS)
		kdf.other = param.local_ep_handle;
	return ret;
}

static DAT_RETURN made_modify(void)
{
	const DAT_EP_PARAM param = {
		.pz_handle = kdf.pz, .recv_evd_handle = kdf.dto, .request_evd_handle = kdf.dto,
		.connect_evd_handle = kdf.conn,
	};

	return dat_ep_modify(kdf.other, DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE |
			     DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE,
			     &param);
}

static DAT_RETURN request_made(void)
{
	return request_making() ?: made_modify();
}

static DAT_RETURN cr_query(void)
{
	DAT_CR_PARAM param;

	return dat_cr_query(kdf.cr, DAT_CR_FIELD_ALL, &param);
}

static DAT_RETURN accept(void)
{
	return dat_cr_accept(kdf.cr, kdf.passive, sizeof(pdata), pdata);
}

static DAT_RETURN accept_own(void)
{
	return dat_cr_accept(kdf.cr, DAT_HANDLE_NULL, 0, NULL);
}

static DAT_RETURN reject(void)
{
	return dat_cr_reject(kdf.cr, sizeof(pdata), pdata);
}

static DAT_RETURN handoff(void)
{
	reinit_completion(&asked);
	return dat_cr_handoff(kdf.cr, kdf.port);
}

static DAT_RETURN handoff_making(void)
{
	reinit_completion(&asked);
	return dat_cr_handoff(kdf.cr, kdf.making_port);
}

/* ---- a connection, and its end ---- */

static void over(int n)
{
	if (!wait_event_idle_timeout(wait, READ_ONCE(overs) == n, LONG))
		fail("no end: %d of %d", overs, n);
}

DAT_RETURN kdf_connect(DAT_EP_HANDLE ep, DAT_EP_HANDLE peer)
{
	DAT_RETURN ret = request(ep, kdf.port);

	if (ret == DAT_SUCCESS)
		ret = dat_cr_accept(kdf.cr, peer, 0, NULL);
	if (ret == DAT_SUCCESS && !wait_event_idle_timeout(wait, READ_ONCE(ups) == 2, LONG))
		fail("no connection");
	return ret;
}

static DAT_RETURN connected(void)
{
	return kdf_connect(kdf.active, kdf.passive);
}

static DAT_RETURN connected_new(void)
{
	return kdf_ep_create() ?: kdf_connect(kdf.out, kdf.passive);
}

static DAT_RETURN disconnect(void)
{
	return dat_ep_disconnect(kdf.active, DAT_CLOSE_GRACEFUL_FLAG);
}

static DAT_RETURN disconnect_abrupt(void)
{
	return dat_ep_disconnect(kdf.active, DAT_CLOSE_ABRUPT_FLAG);
}

DAT_RETURN kdf_connected_over(void)
{
	DAT_RETURN ret = connected() ?: disconnect();

	if (ret == DAT_SUCCESS)
		over(2);
	return ret;
}

static DAT_RETURN reset_active(void)
{
	return dat_ep_reset(kdf.active);
}

static DAT_RETURN reset_passive(void)
{
	return dat_ep_reset(kdf.passive);
}

DAT_RETURN kdf_reset(void)
{
	return reset_passive() ?: reset_active();
}

/* A request that was answered with no, or will be. */
static DAT_RETURN refused_over(void)
{
	over(1);
	return reset_active();
}

static DAT_RETURN after_connect(void)
{
	await_request();
	return reject() ?: refused_over();
}

static DAT_RETURN after_request(void)
{
	return reject() ?: refused_over();
}

/*
 * What could not be allocated may have been the message to the other side, which then knows
 * nothing and would ask again after a while: so here both leave by themselves.
 */
DAT_RETURN kdf_after_reject(void)
{
	return disconnect() ?: refused_over();
}

/* The Endpoint that was made for a request goes with it. */
static DAT_RETURN after_reject_made(void)
{
	DAT_HANDLE_TYPE type;

	if (dat_get_handle_type(kdf.other, &type) == DAT_SUCCESS)
		fail("the Endpoint is still there");
	return kdf_after_reject();
}

static DAT_RETURN after_handoff_made(void)
{
	DAT_HANDLE_TYPE type;

	if (dat_get_handle_type(kdf.other, &type) == DAT_SUCCESS)
		fail("the Endpoint is still there");
	return after_connect();
}

/* It is accepted; what comes of that is told by an event. */
static DAT_RETURN accepted_over(void)
{
	DAT_RETURN ret;

	if (!wait_event_idle_timeout(wait, READ_ONCE(ups) == 2 || READ_ONCE(overs) == 2, LONG))
		fail("no outcome: %d of 2 ends, %d over", ups, overs);
	ret = disconnect();
	over(2);
	return ret;
}

static DAT_RETURN after_accept(void)
{
	return accepted_over() ?: kdf_reset();
}

static DAT_RETURN after_accept_made(void)
{
	return accepted_over() ?: dat_ep_free(kdf.other) ?: reset_active();
}

static DAT_RETURN after_disconnect(void)
{
	DAT_RETURN ret = dat_ep_disconnect(kdf.passive, DAT_CLOSE_GRACEFUL_FLAG);

	over(2);
	return ret ?: kdf_reset();
}

/* The active side has gone. */
static DAT_RETURN after_free(void)
{
	DAT_RETURN ret = dat_ep_disconnect(kdf.passive, DAT_CLOSE_GRACEFUL_FLAG);

	over(1);
	return ret ?: reset_passive();
}

static DAT_RETURN cr_reject(void)
{
	return dat_cr_reject(kdf.cr, 0, NULL);
}

/* The attempt has ended; who was asked answers all the same. */
static DAT_RETURN after_disconnect_early(void)
{
	over(1);
	return cr_reject() ?: reset_active();
}

const struct sweep sweeps_of_connections[] = {
	{ "dat_psp_create", NULL, psp_create, psp_free },
	{ "dat_psp_create_any", NULL, psp_any, psp_free, ALIKE },
	{ "dat_psp_query", NULL, psp_query, NULL, FRUGAL },
	{ "dat_psp_free", psp_any, psp_free, NULL, FREES },
	{ "dat_psp_free, with a request", request_to_new, psp_free, after_request, FREES },
	{ "dat_rsp_create", NULL, rsp_create, rsp_free, ALIKE },
	{ "dat_rsp_query", rsp_create, rsp_query, rsp_free, FRUGAL },
	{ "dat_rsp_free", rsp_create, rsp_free, NULL, FREES },
	{ "dat_csp_create", NULL, csp_create, csp_free, ALIKE },
	{ "dat_csp_query", csp_create, csp_query, csp_free, FRUGAL },
	{ "dat_csp_free", csp_create, csp_free, NULL, FREES },

	{ "dat_ep_connect", nobody_asked, connect, after_connect },
	{ "dat_ep_connect, private data", nobody_asked, connect_pdata, after_connect },
	{ "dat_ep_common_connect", nobody_asked, connect_common, after_connect },
	{ "dat_ep_dup_connect", nobody_asked, connect_dup, after_connect },

	{ "dat_cr_query", kdf_request, cr_query, after_request, FRUGAL },
	{ "dat_cr_handoff", kdf_request, handoff, after_connect, ANSWERS },
	{ "dat_cr_handoff, with an Endpoint", request_making, handoff, after_handoff_made,
	  ANSWERS },
	{ "dat_cr_handoff, making an Endpoint", kdf_request, handoff_making, after_connect,
	  ANSWERS },
	{ "dat_cr_reject", kdf_request, reject, kdf_after_reject, ANSWERS },
	{ "dat_cr_reject, RSP", request_to_rsp, reject, kdf_after_reject, ANSWERS },
	{ "dat_cr_reject, with an Endpoint", request_making, reject, after_reject_made, ANSWERS },
	{ "dat_cr_accept", kdf_request, accept, after_accept, ANSWERS },
	{ "dat_cr_accept, RSP", request_to_rsp, accept_own, after_accept, ANSWERS },
	{ "dat_cr_accept, with an Endpoint", request_made, accept_own, after_accept_made,
	  ANSWERS },
	{ "dat_ep_modify, of a request", request_making, made_modify, after_request },

	{ "dat_ep_disconnect", connected, disconnect, after_disconnect },
	{ "dat_ep_disconnect, abrupt", connected, disconnect_abrupt, after_disconnect },
	{ "dat_ep_disconnect, early", kdf_request, disconnect_abrupt, after_disconnect_early },
	{ "dat_ep_reset, after a connection", kdf_connected_over, reset_active, reset_passive },
	{ "dat_ep_free, connected", connected_new, kdf_ep_free, after_free, FREES },
	{ "dat_ep_free, connecting", request_of_new, kdf_ep_free, cr_reject, FREES },
	{}
};

/* ---- the ground ---- */

/*
 * The Endpoints that connect while allocations fail do without RDMA Reads: soft-iWARP frees
 * the first of the two lists it has for them twice, when it cannot have the second one.
 */
int connections_open(void)
{
	return TRY(dat_evd_kcreate, kdf.ia, 16, DAT_UPCALL_SINGLE_INSTANCE, &on_conn,
		   DAT_EVD_CONNECTION_FLAG, &kdf.conn) ?:
	       TRY(dat_evd_kcreate, kdf.ia, 16, DAT_UPCALL_SINGLE_INSTANCE, &on_cr,
		   DAT_EVD_CR_FLAG, &kdf.cr_evd) ?:
	       TRY(dat_psp_create_any, kdf.ia, &kdf.port, kdf.cr_evd, DAT_PSP_CONSUMER_FLAG,
		   &kdf.psp) ?:
	       TRY(dat_psp_create_any, kdf.ia, &kdf.making_port, kdf.cr_evd,
		   DAT_PSP_PROVIDER_FLAG, &kdf.making) ?:
	       TRY(kdf_ep, kdf.dto, 0, &kdf.active) ?: TRY(kdf_ep, kdf.dto, 0, &kdf.passive);
}

void connections_close(void)
{
	if (kdf.passive)
		TRY(dat_ep_free, kdf.passive);
	if (kdf.active)
		TRY(dat_ep_free, kdf.active);
	if (kdf.making)
		TRY(dat_psp_free, kdf.making);
	if (kdf.psp)
		TRY(dat_psp_free, kdf.psp);
	if (kdf.cr_evd)
		TRY(dat_evd_free, kdf.cr_evd);
	if (kdf.conn)
		TRY(dat_evd_free, kdf.conn);
}
