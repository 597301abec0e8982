// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Many connections with kDAPL. All EPs of a side have one EVD for their completions, and all
 * connection events come on one EVD, too.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": kDAPL: " fmt

#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <dat2/kdat.h>

#include "kdperf.h"

#define TRY(call, ...)	dapl_check(#call, call(__VA_ARGS__))

static struct {
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async, conn, cr, dto[2];
	DAT_PZ_HANDLE pz;
	DAT_PSP_HANDLE psp;
	DAT_COUNT reads, max_qlen;
	struct sockaddr_storage addr;
	u16 port;
	DAT_EP_HANDLE *ep[2];	/* active ends, passive ends */
	u32 taken;		/* passive ends that have a request; by the upcall for requests */
	u32 up, down;		/* ends; by the upcall for connections */
} *all;

static void conns_dto_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	fault("completion event 0x%x, though nothing was posted", event->event_number);
}

static void conns_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	switch (event->event_number) {
	case DAT_CONNECTION_EVENT_ESTABLISHED:
		WRITE_ONCE(all->up, all->up + 1);
		break;
	case DAT_CONNECTION_EVENT_DISCONNECTED:
		WRITE_ONCE(all->down, all->down + 1);
		break;
	default:
		fault("event 0x%x", event->event_number);
	}
	wake_up_all(&perf_wait);
}

static void conns_cr_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	if (all->taken == run.eps)
		fault("a connection too many");
	else
		TRY(dat_cr_accept, event->event_data.cr_arrival_event_data.cr_handle,
		    all->ep[1][all->taken++], 0, NULL);
}

static int conns_query(void)
{
	DAT_IA_ATTR *attr = kzalloc(sizeof(*attr), GFP_KERNEL);
	int err;

	if (!attr)
		return -ENOMEM;
	err = TRY(dat_ia_query, all->ia, NULL, DAT_IA_FIELD_ALL, attr, 0, NULL);
	all->max_qlen = attr->max_evd_qlen;
	all->reads = min3(16, attr->max_rdma_read_per_ep_in, attr->max_rdma_read_per_ep_out);
	kfree(attr);
	return err;
}

static int conns_evd(DAT_COUNT qlen, DAT_EVD_FLAGS flags, DAT_UPCALL_FUNC upcall,
		     DAT_EVD_HANDLE *evd)
{
	const DAT_UPCALL_OBJECT object = { NULL, upcall };

	return TRY(dat_evd_kcreate, all->ia, min(qlen, all->max_qlen),
		   DAT_UPCALL_SINGLE_INSTANCE, &object, flags, evd);
}

static int dapl_conns_open(const struct sockaddr_storage *addr, u16 port)
{
	DAT_COUNT qlen = run.evd ?: run.eps * 2 * perf_requests();
	int err, i;

	all = kzalloc(sizeof(*all), GFP_KERNEL);
	if (!all)
		return -ENOMEM;
	all->addr = *addr;
	all->port = port;
	for (i = 0; i < 2; i++) {
		all->ep[i] = kvcalloc(run.eps, sizeof(*all->ep[i]), GFP_KERNEL);
		if (!all->ep[i])
			return -ENOMEM;
	}
	err = TRY(dat_ia_open, perf_ia, 16, &all->async, &all->ia) ?: conns_query() ?:
	      TRY(dat_pz_create, all->ia, &all->pz);
	for (i = 0; i < 2 && !err; i++)
		err = conns_evd(qlen, DAT_EVD_DTO_FLAG, conns_dto_upcall, &all->dto[i]);
	return err ?: conns_evd(4 * run.eps, DAT_EVD_CONNECTION_FLAG, conns_upcall, &all->conn) ?:
	       conns_evd(run.window + 16, DAT_EVD_CR_FLAG, conns_cr_upcall, &all->cr) ?:
	       TRY(dat_psp_create, all->ia, port, all->cr, DAT_PSP_CONSUMER_FLAG, &all->psp);
}

static int conns_make_ep(u32 side, u32 n)
{
	const DAT_EP_ATTR attr = {
		.max_message_size = run.size,
		.max_rdma_size = run.size,
		.max_recv_dtos = perf_requests(),
		.max_request_dtos = perf_requests(),
		.max_recv_iov = 1,
		.max_request_iov = run.segs,
		.max_rdma_read_in = all->reads,
		.srq_soft_hw = DAT_HW_DEFAULT,
	};

	return TRY(dat_ep_create, all->ia, all->pz, all->dto[side], all->dto[side], all->conn,
		   &attr, &all->ep[side][n]);
}

static int dapl_conns_create(void)
{
	int err = 0;
	u32 i;

	for (i = 0; i < 2 * run.eps && !err; i++) {
		err = conns_make_ep(i & 1, i / 2);
		cond_resched();
	}
	return err;
}

static int dapl_conns_free(void)
{
	int err = 0;
	u32 i;

	for (i = 0; i < 2 * run.eps && !err; i++) {
		err = TRY(dat_ep_free, all->ep[i & 1][i / 2]);
		cond_resched();
	}
	return err;
}

static int dapl_conns_connect(void)
{
	int err = 0;
	u32 i;

	for (i = 0; i < run.eps && !err; i++) {
		if (!await(i < run.window + READ_ONCE(all->up) / 2))
			return fault("%u ends of %u connections are up", all->up, i);
		err = conns_make_ep(0, i) ?: conns_make_ep(1, i) ?:
		      TRY(dat_ep_connect, all->ep[0][i], (DAT_IA_ADDRESS_PTR)&all->addr, all->port,
			  DAT_TIMEOUT_INFINITE, 0, NULL, DAT_QOS_BEST_EFFORT,
			  DAT_CONNECT_DEFAULT_FLAG);
	}
	if (!err && !await(READ_ONCE(all->up) == 2 * run.eps))
		err = fault("%u ends of %u connections are up", all->up, i);
	return err;
}

static int dapl_conns_disconnect(void)
{
	int err = 0;
	u32 i;

	for (i = 0; i < run.eps && !err; i++)
		err = TRY(dat_ep_disconnect, all->ep[0][i], DAT_CLOSE_ABRUPT_FLAG);
	if (!err && !await(READ_ONCE(all->down) == 2 * run.eps))
		err = fault("%u ends of %u connections are down", all->down, i);
	return err ?: dapl_conns_free();
}

static int dapl_conns_close(void)
{
	int err = 0, i;

	if (!all)
		return 0;
	if (all->ia)
		err = TRY(dat_ia_close, all->ia, DAT_CLOSE_ABRUPT_FLAG);
	for (i = 0; i < 2; i++)
		kvfree(all->ep[i]);
	kfree(all);
	all = NULL;
	return err;
}

const struct conns_way dapl_conns = {
	.open = dapl_conns_open,
	.create = dapl_conns_create,
	.free = dapl_conns_free,
	.connect = dapl_conns_connect,
	.disconnect = dapl_conns_disconnect,
	.close = dapl_conns_close,
};
