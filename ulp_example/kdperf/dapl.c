// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The job with kDAPL, as a consumer with many posts would do it. It works in its upcalls,
 * or dequeues, identifies operations by their cookies, and has one EVD for many EPs. It
 * closes the IA abruptly, and kDAPL frees all objects in the right order.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": kDAPL: " fmt

#include <linux/in.h>
#include <linux/in6.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <dat2/kdat.h>
#include <dat2/kdat_ext.h>

#include "kdperf.h"

#define LOCAL	(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG)
#define REMOTE	(DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG)
#define IS_RECV	BIT_ULL(32)	/* in a cookie, in addition to the number */

struct dapl_ep {
	DAT_EP_HANDLE end[2];
};

struct dapl_lane {
	DAT_EVD_HANDLE evd[2];
	DAT_SRQ_HANDLE srq;
	struct dapl_ep *ep;
};

static struct {
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async, conn, cr;
	DAT_PZ_HANDLE pz;
	DAT_PSP_HANDLE psp;
	DAT_COUNT reads, max_qlen;
	bool read_needs_write;		/* iWARP */
	DAT_LMR_CONTEXT *keys;		/* of the requests' memory, in order of use */
	DAT_LMR_CONTEXT key;		/* of the memory of the other end */
	DAT_RMR_CONTEXT rkey;		/* key for the peer to the same memory */
	struct dapl_lane lane[MAX_POSTERS];
	DAT_IA_HANDLE others[MAX_IAS];	/* IAs that are open and not used */
	DAT_EP_HANDLE accepting, stale;
	u32 up;				/* ends that are connected */
	bool closing;
} *all;

int dapl_check(const char *what, u32 ret)
{
	const char *major = "unknown error", *minor = "";

	if (likely(ret == DAT_SUCCESS))
		return 0;
	dat_strerror(ret, &major, &minor);
	return fault("%s: %s %s", what, major, minor);
}

#define TRY(call, ...)	dapl_check(#call, call(__VA_ARGS__))

static int dapl_post(struct lane *lane, u32 side, u32 n)
{
	struct dapl_ep *eps = all->lane[lane->n].ep;
	struct turn *turn = &lane->side[side].turn;
	const DAT_RMR_TRIPLET remote = {
		.virtual_address = (uintptr_t)perf_mem[1],
		.segment_length = run.size,
		.rmr_context = all->rkey,
	};
	u64 base = (uintptr_t)perf_mem[0];
	DAT_LMR_TRIPLET iov[MAX_SEGS];
	DAT_RETURN ret;
	u32 i;

	while (n--) {
		DAT_EP_HANDLE ep = eps[turn->ep].end[side];
		DAT_COMPLETION_FLAGS flags = turn_signaled(turn) ? DAT_COMPLETION_DEFAULT_FLAG :
						DAT_COMPLETION_SUPPRESS_FLAG;
		DAT_CONTEXT cookie = { .as_64 = turn->n };

		for (i = 0; i < run.segs; i++) {
			iov[i].virtual_address = base + perf_seg[i].offset;
			iov[i].segment_length = perf_seg[i].length;
			iov[i].lmr_context = turn_key(turn, all->keys);
		}
		switch (run.op) {
		case OP_WRITE:
			ret = dat_ep_post_rdma_write(ep, run.segs, iov, cookie, &remote, flags);
			break;
		case OP_READ:
			ret = dat_ep_post_rdma_read(ep, run.segs, iov, cookie, &remote, flags);
			break;
		default:
			ret = dat_ep_post_send(ep, run.segs, iov, cookie, flags);
		}
		if (unlikely(ret != DAT_SUCCESS))
			return dapl_check("post", ret);
		turn_next(turn);
	}
	return 0;
}

static int dapl_recv(struct lane *lane, u32 side, u32 n)
{
	struct dapl_lane *l = &all->lane[lane->n];
	u32 *recvs = &lane->side[side].recvs, ep = *recvs % run.eps;
	DAT_LMR_TRIPLET seg = {
		.virtual_address = (uintptr_t)perf_mem[side],
		.segment_length = run.size,
		.lmr_context = side ? all->key : all->keys[0],
	};
	DAT_COUNT segs = !!run.size;
	DAT_RETURN ret;

	while (n--) {
		DAT_CONTEXT cookie = { .as_64 = IS_RECV | (*recvs)++ };

		if (side && l->srq)
			ret = dat_srq_post_recv(l->srq, segs, &seg, cookie);
		else
			ret = dat_ep_post_recv(l->ep[ep].end[side], segs, &seg, cookie, 0);
		if (unlikely(ret != DAT_SUCCESS))
			return dapl_check("receive", ret);
		if (++ep == run.eps)
			ep = 0;
	}
	return 0;
}

static void dapl_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;

	if (unlikely(event->event_number != DAT_DTO_COMPLETION_EVENT ||
		     dto->status != DAT_DTO_SUCCESS)) {
		if (!READ_ONCE(all->closing))
			fault("event 0x%x, operation %d: status %d", event->event_number,
			      dto->operation, dto->status);
		return;
	}
	perf_done(instance, lower_32_bits(dto->user_cookie.as_64),
		  dto->user_cookie.as_64 & IS_RECV);
}

static int dapl_poll(struct lane *lane, u32 side)
{
	DAT_EVD_HANDLE evd = all->lane[lane->n].evd[side];
	DAT_EVENT event;
	int n = 0;

	while (dat_evd_dequeue(evd, &event) == DAT_SUCCESS) {
		dapl_upcall(&lane->side[side], &event, DAT_FALSE);
		n++;
	}
	return n;
}

/* Without an MR: the device has little to do. */
static int dapl_churn(void)
{
	DAT_REGION_DESCRIPTION region = { .for_va = perf_mem[0] };
	DAT_LMR_CONTEXT key;
	DAT_LMR_HANDLE lmr;

	return TRY(dat_lmr_kcreate, all->ia, DAT_MEM_TYPE_VIRTUAL, region, perf_bytes(), all->pz,
		   LOCAL, DAT_VA_TYPE_VA, DAT_MEM_OPTIMIZE_IA, &lmr, &key, NULL, NULL, NULL) ?:
	       TRY(dat_lmr_free, lmr);
}

const struct way dapl_way = {
	.name = "kDAPL", .post = dapl_post, .recv = dapl_recv, .poll = dapl_poll,
	.churn = dapl_churn,
};

/* Return an error without any work, to measure the cost of the call alone. */
static noinline DAT_RETURN dapl_refuse_all(DAT_EP_HANDLE ep, DAT_COUNT n,
					   const DAT_LMR_TRIPLET *iov, DAT_DTO_COOKIE cookie,
					   DAT_COMPLETION_FLAGS flags)
{
	barrier();
	return (DAT_RETURN)(DAT_CLASS_ERROR | DAT_INVALID_HANDLE);
}

/* Post requests with one specific fault. */
static int dapl_refuse(struct lane *lane, u32 side, u32 n)
{
	const DAT_EP_HANDLE handles[] = {
		[BAD_GARBAGE] = (DAT_EP_HANDLE)0x5a5a5a5a5a5a5a5bUL,
		[BAD_NULL] = DAT_HANDLE_NULL,
		[BAD_STALE] = all->stale,
		[BAD_TYPE] = all->async,
		[BAD_LKEY] = all->lane[0].ep[0].end[0],
		[BAD_RANGE] = all->lane[0].ep[0].end[0],
		[BAD_NOTHING] = DAT_HANDLE_NULL,
	};
	DAT_RETURN (*post)(DAT_EP_HANDLE ep, DAT_COUNT n, const DAT_LMR_TRIPLET *iov,
			   DAT_DTO_COOKIE cookie, DAT_COMPLETION_FLAGS flags) =
		run.bad == BAD_NOTHING ? dapl_refuse_all : dat_ep_post_send;
	struct turn *turn = &lane->side[side].turn;
	DAT_EP_HANDLE ep = handles[run.bad];
	DAT_LMR_TRIPLET iov[MAX_SEGS];
	u64 base = (uintptr_t)perf_mem[0] + (run.bad == BAD_RANGE ? perf_bytes() : 0);
	u32 i, bad = run.bad == BAD_LKEY ? 0x5a5a5a00 : 0;

	/* The arguments can stay the same, since every post is refused. */
	for (i = 0; i < run.segs; i++) {
		iov[i].virtual_address = base + perf_seg[i].offset;
		iov[i].segment_length = perf_seg[i].length;
		iov[i].lmr_context = turn_key(turn, all->keys) ^ bad;
	}
	while (n--) {
		DAT_CONTEXT cookie = { .as_64 = turn->n };

		if (unlikely(post(ep, run.segs, iov, cookie, 0) == DAT_SUCCESS))
			return fault("a bad post was not refused");
		turn_next(turn);
	}
	return 0;
}

const struct way accept_way = {
	.name = "accepted", .post = dapl_post, .recv = dapl_recv, .poll = dapl_poll,
};

const struct way refuse_way = { .name = "refused", .post = dapl_refuse };

static void dapl_conn_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	if (event->event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
		WRITE_ONCE(all->up, all->up + 1);
	else if (!READ_ONCE(all->closing))
		fault("event 0x%x", event->event_number);
	wake_up_all(&perf_wait);
}

static void dapl_cr_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	TRY(dat_cr_accept, event->event_data.cr_arrival_event_data.cr_handle, all->accepting, 0,
	    NULL);
}

/* Open the IA first, to get its limits and address. */
int dapl_open_ia(const char *name, struct limits *limits)
{
	DAT_PROVIDER_ATTR *provider = kzalloc(sizeof(*provider), GFP_KERNEL);
	DAT_IA_ATTR *attr = kzalloc(sizeof(*attr), GFP_KERNEL);
	int err = -ENOMEM;

	all = kvzalloc(sizeof(*all), GFP_KERNEL);
	if (all && attr && provider)
		err = TRY(dat_ia_open, (char *)name, 16, &all->async, &all->ia) ?:
		      TRY(dat_ia_query, all->ia, NULL, DAT_IA_FIELD_ALL, attr,
			  DAT_PROVIDER_FIELD_ALL, provider);
	if (!err && !attr->ia_address_ptr)
		err = fail("%s has no address", name);
	if (!err) {
		memcpy(&limits->addr, attr->ia_address_ptr,
		       attr->ia_address_ptr->sa_family == AF_INET6 ?
		       sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
		limits->segs = run.op == OP_READ ? attr->max_iov_segments_per_rdma_read :
			       run.op == OP_WRITE ? attr->max_iov_segments_per_rdma_write :
			       attr->max_iov_segments_per_dto;
		all->max_qlen = attr->max_evd_qlen;
		all->reads = min3(16, attr->max_rdma_read_per_ep_in,
				  attr->max_rdma_read_per_ep_out);
		all->read_needs_write = provider->rdma_write_for_rdma_read_req;
	}
	kfree(provider);
	kfree(attr);
	return err;
}

static int dapl_make_lmr(u32 side, int rights, DAT_LMR_CONTEXT *key, DAT_RMR_CONTEXT *rkey)
{
	DAT_REGION_DESCRIPTION region = { .for_va = perf_mem[side] };
	DAT_LMR_HANDLE lmr;

	return TRY(dat_lmr_kcreate, all->ia, DAT_MEM_TYPE_VIRTUAL, region, perf_bytes(), all->pz,
		   rights, DAT_VA_TYPE_VA,
		   run.bare ? DAT_MEM_OPTIMIZE_IA : DAT_MEM_OPTIMIZE_DONT_CARE, &lmr, key, rkey,
		   NULL, NULL);
}

static int dapl_make_lmrs(void)
{
	int rights = LOCAL, err = 0;
	u32 i;

	all->keys = kvcalloc(run.lmrs, sizeof(*all->keys), GFP_KERNEL);
	if (!all->keys)
		return -ENOMEM;
	if (run.op == OP_READ && all->read_needs_write)
		rights |= DAT_MEM_PRIV_REMOTE_WRITE_FLAG;
	for (i = 0; i < run.lmrs && !err; i++)
		err = dapl_make_lmr(0, rights, &all->keys[i], NULL);
	perf_shuffle(all->keys);
	return err ?: dapl_make_lmr(1, LOCAL | REMOTE, &all->key, &all->rkey);
}

static int dapl_make_evd(struct dapl_lane *l, u32 n, u32 side)
{
	const DAT_UPCALL_OBJECT object = { &lanes[n].side[side], dapl_upcall };
	const struct kdat_evd_attr attr = {
		.context = run.ctx == CTX_WORK ? KDAT_EVD_CONTEXT_WORKQUEUE :
			   KDAT_EVD_CONTEXT_DEFAULT,
		.comp_vector = n,
	};
	DAT_COUNT qlen = min_t(u32, run.evd ?: run.eps * 2 * perf_requests(), all->max_qlen);

	return TRY(kdat_evd_create, all->ia, qlen,
		   run.ctx == CTX_POLL ? DAT_UPCALL_DISABLE : DAT_UPCALL_SINGLE_INSTANCE, &object,
		   DAT_EVD_DTO_FLAG, &attr, &l->evd[side]);
}

static int dapl_make_ep(struct dapl_lane *l, u32 side, DAT_EP_HANDLE *ep)
{
	const DAT_EP_ATTR attr = {
		.max_message_size = run.size,
		.max_rdma_size = run.size,
		.max_recv_dtos = side && l->srq ? 0 : perf_requests(),
		.max_request_dtos = perf_requests(),
		.max_recv_iov = 1,
		.max_request_iov = max(run.segs, 1U),
		.max_rdma_read_in = all->reads,
		.max_rdma_read_out = run.op == OP_READ ? all->reads : 0,
		.max_rdma_read_iov = run.op == OP_READ ? max(run.segs, 1U) : 0,
		.srq_soft_hw = DAT_HW_DEFAULT,
	};

	int err;

	if (side && l->srq)
		err = TRY(dat_ep_create_with_srq, all->ia, all->pz, l->evd[side], l->evd[side],
			  all->conn, l->srq, &attr, ep);
	else
		err = TRY(dat_ep_create, all->ia, all->pz, l->evd[side], l->evd[side], all->conn,
			  &attr, ep);
	/* One poster, with bottom halves off. In other modes each post follows a completion. */
	if (!err && run.serial)
		err = TRY(kdat_ep_serialise_posts, *ep, DAT_TRUE);
	return err;
}

static int dapl_connect(struct dapl_lane *l, struct dapl_ep *ep,
			const struct sockaddr_storage *addr, u16 port)
{
	u32 want = all->up + 2;
	int err = dapl_make_ep(l, 0, &ep->end[0]) ?: dapl_make_ep(l, 1, &ep->end[1]);

	if (err)
		return err;
	all->accepting = ep->end[1];
	err = TRY(dat_ep_connect, ep->end[0], (DAT_IA_ADDRESS_PTR)addr, port,
		  DAT_TIMEOUT_INFINITE, 0, NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
	if (!err && !await(READ_ONCE(all->up) == want))
		err = fault("not connected");
	return err;
}

static int dapl_make_lane(u32 n, const struct sockaddr_storage *addr, u16 port)
{
	const DAT_SRQ_ATTR attr = {
		.max_recv_dtos = run.depth * run.eps, .max_recv_iov = 1,
		.low_watermark = DAT_SRQ_LW_DEFAULT,
	};
	struct dapl_lane *l = &all->lane[n];
	int err;
	u32 i;

	l->ep = kvcalloc(run.eps, sizeof(*l->ep), GFP_KERNEL);
	if (!l->ep)
		return -ENOMEM;
	if (n >= perf_owners()) {	/* use the EP of the first poster */
		*l->ep = *all->lane[0].ep;
		return 0;
	}
	err = dapl_make_evd(l, n, 0) ?: dapl_make_evd(l, n, 1);
	if (!err && run.op == OP_SRQ)
		err = TRY(dat_srq_create, all->ia, all->pz, (DAT_SRQ_ATTR *)&attr, &l->srq);
	for (i = 0; i < run.eps && !err; i++)
		err = dapl_connect(l, &l->ep[i], addr, port);
	return err;
}

static int dapl_open_others(void)
{
	DAT_EVD_HANDLE async;
	int err = 0;
	u32 i;

	for (i = 1; i < run.ias && !err; i++) {
		async = DAT_HANDLE_NULL;
		err = TRY(dat_ia_open, perf_ia, 16, &async, &all->others[i]);
	}
	return err;
}

/* Create connections of the IA to itself. */
int dapl_open(u16 port, const struct sockaddr_storage *addr)
{
	const DAT_UPCALL_OBJECT conn = { NULL, dapl_conn_upcall }, cr = { NULL, dapl_cr_upcall };
	int err;
	u32 n;

	err = dapl_open_others() ?: TRY(dat_pz_create, all->ia, &all->pz) ?:
	      TRY(dat_evd_kcreate, all->ia, 2 * run.eps * run.posters + 16,
		  DAT_UPCALL_SINGLE_INSTANCE, &conn, DAT_EVD_CONNECTION_FLAG, &all->conn) ?:
	      TRY(dat_evd_kcreate, all->ia, 16, DAT_UPCALL_SINGLE_INSTANCE, &cr,
		  DAT_EVD_CR_FLAG, &all->cr) ?:
	      TRY(dat_psp_create, all->ia, port, all->cr, DAT_PSP_CONSUMER_FLAG, &all->psp) ?:
	      dapl_make_lmrs();
	for (n = 0; n < run.posters && !err; n++)
		err = dapl_make_lane(n, addr, port);
	if (!err && run.bad == BAD_STALE)
		err = dapl_make_ep(&all->lane[0], 0, &all->stale) ?: TRY(dat_ep_free, all->stale);
	return err;
}

/* An abrupt close frees everything that was created on the IA. */
int dapl_close(void)
{
	int err = 0;
	u32 n;

	if (!all)
		return 0;
	WRITE_ONCE(all->closing, true);
	if (all->ia)
		err = TRY(dat_ia_close, all->ia, DAT_CLOSE_ABRUPT_FLAG);
	for (n = 1; n < run.ias; n++) {
		if (all->others[n])
			err = err ?: TRY(dat_ia_close, all->others[n], DAT_CLOSE_ABRUPT_FLAG);
	}
	for (n = 0; n < MAX_POSTERS; n++)
		kvfree(all->lane[n].ep);
	kvfree(all->keys);
	kvfree(all);
	all = NULL;
	return err;
}
