// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Sweeps of service points, requests and connections. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/io.h>
#include <linux/net.h>

#include "../../lib/consumer.h"
#include "kdfail.h"

#define OWN	4242		/* qualifiers nobody else uses */
#define OWN_RSP	4243
#define OWN_CSP	4244

static bool asked;
static int ups, overs;
static bool done;

static void cr_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	kdf.cr = event->event_data.cr_arrival_event_data.cr_handle;
	WRITE_ONCE(asked, true);
	wake_up_all(&test_wait);
}

static void conn_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	if (event->event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
		WRITE_ONCE(ups, ups + 1);
	else
		WRITE_ONCE(overs, overs + 1);
	wake_up_all(&test_wait);
}

static void counted_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	DAT_DTO_COMPLETION_STATUS status = event->event_data.dto_completion_event_data.status;

	if (event->event_number == DAT_RMR_BIND_COMPLETION_EVENT)
		status = event->event_data.rmr_completion_event_data.status;
	if (status != DAT_DTO_SUCCESS)
		fail("completed as %s", kdat_dto_status_name(status));
	WRITE_ONCE(done, true);
	wake_up_all(&test_wait);
}

static u8 pdata[16] = "kdfail";
static DAT_RMR_CONTEXT key, rkey;	/* of a window, or a region just bound */
static const DAT_CONTEXT cookie = { .as_64 = 4711 };

/* ---- service points ---- */

STEP(psp_any, dat_psp_create_any(kdf.ia, &(DAT_CONN_QUAL) { 0 }, kdf.cr_evd, DAT_PSP_PROVIDER_FLAG,
				 &kdf.out))
STEP(psp_create, dat_psp_create(kdf.ia, OWN, kdf.cr_evd, DAT_PSP_CONSUMER_FLAG, &kdf.out))
STEP(psp_free, dat_psp_free(kdf.out))
STEP(rsp_create, dat_rsp_create(kdf.ia, OWN_RSP, kdf.passive, kdf.cr_evd, &kdf.out))
STEP(rsp_free, dat_rsp_free(kdf.out))

static DAT_RETURN csp_create(void)
{
	DAT_COMM comm = { kdf.addr.ss_family, SOCK_STREAM, 0 };
	struct sockaddr_storage addr = test_addr_port(&kdf.addr, OWN_CSP);

	return dat_csp_create(kdf.ia, &comm, (DAT_IA_ADDRESS_PTR)&addr, kdf.cr_evd, &kdf.out);
}

STEP(csp_free, dat_csp_free(kdf.out))

/* ---- a request ---- */

static DAT_RETURN nobody_asked(void)
{
	asked = false;
	ups = 0;
	overs = 0;
	return DAT_SUCCESS;
}

static DAT_RETURN await_request(void)
{
	if (!await(READ_ONCE(asked)))
		fail("nobody has asked");
	return DAT_SUCCESS;
}

static DAT_RETURN connect_to(DAT_EP_HANDLE ep, DAT_CONN_QUAL port, DAT_COUNT size)
{
	return dat_ep_connect(ep, (DAT_IA_ADDRESS_PTR)&kdf.addr, port, DAT_TIMEOUT_INFINITE, size,
			      pdata, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
}

static DAT_RETURN connect_common(void)
{
	struct sockaddr_storage addr = test_addr_port(&kdf.addr, kdf.port);

	return dat_ep_common_connect(kdf.active, (DAT_IA_ADDRESS_PTR)&addr, DAT_TIMEOUT_INFINITE,
				     0, NULL);
}

static DAT_RETURN request(DAT_EP_HANDLE ep, DAT_CONN_QUAL port)
{
	return nobody_asked() ?: connect_to(ep, port, 0) ?: await_request();
}

STEP(connect, connect_to(kdf.active, kdf.port, 0))
STEP(connect_pdata, connect_to(kdf.active, kdf.port, sizeof(pdata)))
STEP(connect_dup, dat_ep_dup_connect(kdf.active, kdf.near, DAT_TIMEOUT_INFINITE, 0, NULL,
				     DAT_QOS_BEST_EFFORT))
STEP(request_active, request(kdf.active, kdf.port))
STEP(request_of_new, kdf_ep_create() ?: request(kdf.out, kdf.port))
STEP(request_to_rsp, rsp_create() ?: request(kdf.active, OWN_RSP))
STEP(request_to_new, psp_create() ?: request(kdf.active, OWN))

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

static DAT_RETURN handoff_to(DAT_CONN_QUAL port)
{
	asked = false;
	return dat_cr_handoff(kdf.cr, port);
}

STEP(request_made, request_making() ?: made_modify())
STEP(accept, dat_cr_accept(kdf.cr, kdf.passive, sizeof(pdata), pdata))
STEP(accept_own, dat_cr_accept(kdf.cr, DAT_HANDLE_NULL, 0, NULL))
STEP(reject, dat_cr_reject(kdf.cr, sizeof(pdata), pdata))
STEP(cr_reject, dat_cr_reject(kdf.cr, 0, NULL))
STEP(handoff, handoff_to(kdf.port))
STEP(handoff_making, handoff_to(kdf.making_port))

/* ---- a connection, and its end ---- */

static DAT_RETURN over(int n)
{
	if (!await(READ_ONCE(overs) == n))
		fail("no end: %d of %d", overs, n);
	return DAT_SUCCESS;
}

static DAT_RETURN connect_both(DAT_EP_HANDLE ep, DAT_EP_HANDLE peer)
{
	DAT_RETURN ret = request(ep, kdf.port) ?: dat_cr_accept(kdf.cr, peer, 0, NULL);

	if (ret == DAT_SUCCESS && !await(READ_ONCE(ups) == 2))
		fail("no connection");
	return ret;
}

static DAT_RETURN no_endpoint(void)
{
	DAT_HANDLE_TYPE type;

	if (dat_get_handle_type(kdf.other, &type) == DAT_SUCCESS)
		fail("the Endpoint is still there");
	return DAT_SUCCESS;
}

/* It is accepted; what comes of that is told by an event. */
static DAT_RETURN accepted_over(void)
{
	DAT_RETURN ret;

	if (!await(READ_ONCE(ups) == 2 || READ_ONCE(overs) == 2))
		fail("no outcome: %d of 2 ends, %d over", ups, overs);
	ret = dat_ep_disconnect(kdf.active, DAT_CLOSE_GRACEFUL_FLAG);
	over(2);
	return ret;
}

STEP(connected, connect_both(kdf.active, kdf.passive))
STEP(connected_new, kdf_ep_create() ?: connect_both(kdf.out, kdf.passive))
STEP(disconnect, dat_ep_disconnect(kdf.active, DAT_CLOSE_GRACEFUL_FLAG))
STEP(disconnect_abrupt, dat_ep_disconnect(kdf.active, DAT_CLOSE_ABRUPT_FLAG))
STEP(disconnect_passive, dat_ep_disconnect(kdf.passive, DAT_CLOSE_GRACEFUL_FLAG))
STEP(connected_over, connected() ?: disconnect() ?: over(2))
STEP(reset_active, dat_ep_reset(kdf.active))
STEP(reset_passive, dat_ep_reset(kdf.passive))
STEP(reset_both, reset_passive() ?: reset_active())
/* A request that was answered with no, or will be. */
STEP(refused_over, over(1) ?: reset_active())
STEP(after_request, reject() ?: refused_over())
STEP(after_connect, await_request() ?: after_request())
/*
 * What could not be allocated may have been the message to the other side, which then knows
 * nothing and would ask again after a while: so here both leave by themselves.
 */
STEP(after_reject, disconnect() ?: refused_over())
/* The Endpoint that was made for a request goes with it. */
STEP(after_reject_made, no_endpoint() ?: after_reject())
STEP(after_handoff_made, no_endpoint() ?: after_connect())
STEP(after_accept, accepted_over() ?: reset_both())
STEP(after_accept_made, accepted_over() ?: dat_ep_free(kdf.other) ?: reset_active())
STEP(after_disconnect, disconnect_passive() ?: over(2) ?: reset_both())
/* The active side has gone. */
STEP(after_free, disconnect_passive() ?: over(1) ?: reset_passive())
/* The attempt has ended; who was asked answers all the same. */
STEP(after_disconnect_early, over(1) ?: cr_reject() ?: reset_active())

/* ---- what is bound on a connection: windows, and regions for fast registration ---- */

static DAT_RETURN completed(void)
{
	if (!await(READ_ONCE(done)))
		fail("no completion");
	done = false;
	return DAT_SUCCESS;
}

static DAT_RETURN bind(void)
{
	const DAT_LMR_TRIPLET range = {
		.virtual_address = (uintptr_t)kdf.mem, .segment_length = PAGE_SIZE,
		.lmr_context = kdf.key,
	};

	return dat_rmr_bind(kdf.out, kdf.lmr, &range, REMOTE_RIGHTS, DAT_VA_TYPE_VA, kdf.near,
			    cookie, 0, &key);
}

static DAT_RETURN fmr(void)
{
	DAT_PADDR page = virt_to_phys(kdf.mem);

	return dat_lmr_fmr(kdf.out, DAT_MEM_TYPE_PHYSICAL,
			   (DAT_REGION_DESCRIPTION) { .for_physical = &page }, 1,
			   DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, kdf.near, cookie, 0, &key,
			   &rkey);
}

STEP(bound, kdf_rmr_create() ?: bind() ?: completed())
STEP(fmr_bound, kdf_lmr_allocate() ?: fmr() ?: completed())

const struct sweep sweeps_of_connections[] = {
	{ "dat_psp_create", NULL, psp_create, psp_free },
	{ "dat_psp_create_any", NULL, psp_any, psp_free, ALIKE },
	{ "dat_psp_free", psp_any, psp_free, NULL, FREES },
	{ "dat_psp_free, with a request", request_to_new, psp_free, after_request, FREES },
	{ "dat_rsp_create", NULL, rsp_create, rsp_free, ALIKE },
	{ "dat_rsp_free", rsp_create, rsp_free, NULL, FREES },
	{ "dat_csp_create", NULL, csp_create, csp_free, ALIKE },
	{ "dat_csp_free", csp_create, csp_free, NULL, FREES },

	{ "dat_ep_connect", nobody_asked, connect, after_connect },
	{ "dat_ep_connect, private data", nobody_asked, connect_pdata, after_connect },
	{ "dat_ep_common_connect", nobody_asked, connect_common, after_connect },
	{ "dat_ep_dup_connect", nobody_asked, connect_dup, after_connect },

	{ "dat_cr_handoff", request_active, handoff, after_connect, ANSWERS },
	{ "dat_cr_handoff, with an Endpoint", request_making, handoff, after_handoff_made,
	  ANSWERS },
	{ "dat_cr_handoff, making an Endpoint", request_active, handoff_making, after_connect,
	  ANSWERS },
	{ "dat_cr_reject", request_active, reject, after_reject, ANSWERS },
	{ "dat_cr_reject, RSP", request_to_rsp, reject, after_reject, ANSWERS },
	{ "dat_cr_reject, with an Endpoint", request_making, reject, after_reject_made, ANSWERS },
	{ "dat_cr_accept", request_active, accept, after_accept, ANSWERS },
	{ "dat_cr_accept, RSP", request_to_rsp, accept_own, after_accept, ANSWERS },
	{ "dat_cr_accept, with an Endpoint", request_made, accept_own, after_accept_made,
	  ANSWERS },
	{ "dat_ep_modify, of a request", request_making, made_modify, after_request },

	{ "dat_ep_disconnect", connected, disconnect, after_disconnect },
	{ "dat_ep_disconnect, abrupt", connected, disconnect_abrupt, after_disconnect },
	{ "dat_ep_disconnect, early", request_active, disconnect_abrupt, after_disconnect_early },
	{ "dat_ep_reset, after a connection", connected_over, reset_active, reset_passive },
	{ "dat_ep_free, connected", connected_new, kdf_ep_free, after_free, FREES },
	{ "dat_ep_free, connecting", request_of_new, kdf_ep_free, cr_reject, FREES },

	{ "dat_rmr_free, bound", bound, kdf_rmr_free, NULL, FREES },
	{ "dat_lmr_free, bound", fmr_bound, kdf_lmr_free, NULL, FREES },
	{}
};

/* ---- the ground ---- */

/*
 * The Endpoints that connect while allocations fail do without RDMA Reads: soft-iWARP frees
 * the first of the two lists it has for them twice, when it cannot have the second one.
 */
int connections_open(void)
{
	const struct test_ia ia = { .h = kdf.ia };

	return test_evd(&ia, 16, DAT_EVD_CONNECTION_FLAG, conn_upcall, NULL, &kdf.conn) ?:
	       test_evd(&ia, 16, DAT_EVD_CR_FLAG, cr_upcall, NULL, &kdf.cr_evd) ?:
	       test_evd(&ia, 64, DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG, counted_upcall, NULL,
			&kdf.counted) ?:
	       TRY(dat_psp_create_any, kdf.ia, &kdf.port, kdf.cr_evd, DAT_PSP_CONSUMER_FLAG,
		   &kdf.psp) ?:
	       TRY(dat_psp_create_any, kdf.ia, &kdf.making_port, kdf.cr_evd,
		   DAT_PSP_PROVIDER_FLAG, &kdf.making) ?:
	       TRY(kdf_ep, kdf.dto, 0, &kdf.active) ?: TRY(kdf_ep, kdf.dto, 0, &kdf.passive) ?:
	       TRY(kdf_ep, kdf.counted, 1, &kdf.near) ?: TRY(kdf_ep, kdf.counted, 1, &kdf.far) ?:
	       TRY(connect_both, kdf.near, kdf.far);
}

void connections_close(void)
{
	FREE(dat_ep_free, &kdf.near);
	FREE(dat_ep_free, &kdf.far);
	FREE(dat_ep_free, &kdf.passive);
	FREE(dat_ep_free, &kdf.active);
	FREE(dat_psp_free, &kdf.making);
	FREE(dat_psp_free, &kdf.psp);
	FREE(dat_evd_free, &kdf.counted);
	FREE(dat_evd_free, &kdf.cr_evd);
	FREE(dat_evd_free, &kdf.conn);
}
