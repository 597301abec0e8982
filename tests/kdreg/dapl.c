// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The chain with kDAPL: dat_lmr_fmr, Send and dat_lmr_invalidate, each by its call, or all
 * in one list. The first two are suppressed, so that there is one event as well.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": kDAPL: " fmt

#include <linux/in.h>
#include <linux/in6.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <dat2/kdat.h>
#include <dat2/kdat_ext.h>

#include "kdreg.h"

enum { COOKIE_RECV, COOKIE_SEND, COOKIE_INV, COOKIE_REPLY };

struct dapl_end {
	DAT_EP_HANDLE ep;
	DAT_EVD_HANDLE evd;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT key;
	struct msgs *msgs;
	bool up, down;
};

static struct {
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async, conn, cr;
	DAT_PZ_HANDLE pz;
	DAT_PSP_HANDLE psp;
	bool closing;
	struct dapl_end end[2];
	struct {
		DAT_LMR_HANDLE lmr;
		DAT_RMR_CONTEXT key;	/* of the chain under way */
	} slot[MAX_SLOTS];
} *all;

static int check(const char *what, DAT_RETURN ret)
{
	const char *major = "unknown error", *minor = "";

	if (likely(ret == DAT_SUCCESS))
		return 0;
	dat_strerror(ret, &major, &minor);
	return fault("%s: %s %s", what, major, minor);
}

#define TRY(call, ...)	check(#call, call(__VA_ARGS__))

static DAT_LMR_TRIPLET segment(struct dapl_end *end, struct msg *msg)
{
	return (DAT_LMR_TRIPLET) {
		.virtual_address = (uintptr_t)msg,
		.segment_length = sizeof(*msg),
		.lmr_context = end->key,
	};
}

static DAT_CONTEXT cookie(u32 kind, u32 n)
{
	return (DAT_CONTEXT) { .as_64 = (u64)kind << 32 | n };
}

static int post_recv(struct dapl_end *end, u32 i)
{
	DAT_LMR_TRIPLET seg = segment(end, &end->msgs->recv[i]);

	return TRY(dat_ep_post_recv, end->ep, 1, &seg, cookie(COOKIE_RECV, i), 0);
}

static void reply(u32 slot, u32 key)
{
	struct dapl_end *end = &all->end[1];
	struct msg *msg = &end->msgs->send[slot];
	DAT_LMR_TRIPLET seg = segment(end, msg);

	msg->slot = slot;
	msg->key = key;
	TRY(dat_ep_post_send_with_invalidate, end->ep, 1, &seg, cookie(COOKIE_REPLY, slot), 0,
	    DAT_TRUE, key);
}

static void received(struct dapl_end *end, u32 i, const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	struct msg msg = end->msgs->recv[i];

	if (dto->transfered_length != sizeof(msg) || msg.slot >= MAX_SLOTS ||
	    msg.key != all->slot[msg.slot].key) {
		fault("message of %llu bytes, slot %u, key 0x%x", (u64)dto->transfered_length,
		      msg.slot, msg.key);
		return;
	}
	post_recv(end, i);
	if (end == &all->end[0]) {
		if (dto->operation != DAT_DTO_RECEIVE_WITH_INVALIDATE ||
		    dto->rmr_context != msg.key)
			fault("operation %d invalidates 0x%x, not 0x%x", dto->operation,
			      dto->rmr_context, msg.key);
	} else if (plan.peer) {
		reply(msg.slot, msg.key);
	}
	if (end == &all->end[0] || !plan.peer)
		reg_part(msg.slot);
}

static void upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	u32 n = lower_32_bits(dto->user_cookie.as_64);

	if (event->event_number != DAT_DTO_COMPLETION_EVENT) {
		fault("event 0x%x", event->event_number);
	} else if (dto->status != DAT_DTO_SUCCESS) {
		if (!READ_ONCE(all->closing))
			fault("operation %d: status %d", dto->operation, dto->status);
	} else if (upper_32_bits(dto->user_cookie.as_64) == COOKIE_RECV) {
		received(instance, n, dto);
	} else {
		reg_part(n);
	}
}

static void conn_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	DAT_EP_HANDLE ep = event->event_data.connect_event_data.ep_handle;
	struct dapl_end *end = &all->end[ep == all->end[1].ep];

	if (event->event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
		WRITE_ONCE(end->up, true);
	else if (READ_ONCE(all->closing))
		WRITE_ONCE(end->down, true);
	else
		fault("event 0x%x", event->event_number);
	wake_up_all(&reg_wait);
}

static void cr_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	TRY(dat_cr_accept, event->event_data.cr_arrival_event_data.cr_handle, all->end[1].ep, 0,
	    NULL);
}

static void fill(struct msg *msg, u32 slot, DAT_RMR_CONTEXT key)
{
	all->slot[slot].key = key;
	msg->slot = slot;
	msg->key = key;
}

static DAT_COMPLETION_FLAGS send_flags(void)
{
	return plan.peer ? 0 : DAT_COMPLETION_SUPPRESS_FLAG;
}

int dapl_start_calls(u32 slot)
{
	const struct kdat_sg sg = {
		.sgl = plan.sgl, .nents = plan.pages, .length = plan.pages * PAGE_SIZE,
	};
	struct dapl_end *end = &all->end[0];
	struct msg *msg = &end->msgs->send[slot];
	DAT_LMR_HANDLE lmr = all->slot[slot].lmr;
	DAT_LMR_TRIPLET seg = segment(end, msg);
	DAT_RMR_CONTEXT key;
	int err;

	err = TRY(kdat_lmr_fmr_sg, lmr, &sg, DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_VA_TYPE_VA,
		  end->ep, cookie(COOKIE_INV, slot), DAT_COMPLETION_SUPPRESS_FLAG, NULL, &key,
		  NULL);
	if (err)
		return err;
	fill(msg, slot, key);
	err = TRY(dat_ep_post_send, end->ep, 1, &seg, cookie(COOKIE_SEND, slot), send_flags());
	if (!err && !plan.peer)
		err = TRY(dat_lmr_invalidate, lmr, end->ep, cookie(COOKIE_INV, slot), 0);
	return err;
}

int dapl_start_list(u32 slot)
{
	const struct kdat_sg sg = {
		.sgl = plan.sgl, .nents = plan.pages, .length = plan.pages * PAGE_SIZE,
	};
	struct dapl_end *end = &all->end[0];
	struct msg *msg = &end->msgs->send[slot];
	DAT_LMR_HANDLE lmr = all->slot[slot].lmr;
	DAT_LMR_TRIPLET seg = segment(end, msg);
	const struct kdat_request requests[] = {
		{
			.op = KDAT_REQUEST_LMR_FMR,
			.completion_flags = DAT_COMPLETION_SUPPRESS_FLAG,
			.lmr_handle = lmr,
			.sg = &sg,
			.mem_privileges = DAT_MEM_PRIV_REMOTE_READ_FLAG,
			.va_type = DAT_VA_TYPE_VA,
		}, {
			.op = KDAT_REQUEST_SEND,
			.completion_flags = send_flags(),
			.user_cookie = cookie(COOKIE_SEND, slot),
			.num_segments = 1,
			.local_iov = &seg,
		}, {
			.op = KDAT_REQUEST_LMR_INVALIDATE,
			.user_cookie = cookie(COOKIE_INV, slot),
			.lmr_handle = lmr,
		},
	};
	DAT_RMR_CONTEXT key;
	int err;

	err = TRY(kdat_lmr_next_contexts, lmr, NULL, &key);
	if (err)
		return err;
	fill(msg, slot, key);
	return TRY(kdat_ep_post_list, end->ep, requests, plan.peer ? 2 : 3, NULL);
}

static int end_open(struct dapl_end *end)
{
	const DAT_UPCALL_OBJECT events = { end, upcall };
	DAT_REGION_DESCRIPTION region = {};
	int err;
	u32 i;

	end->msgs = kzalloc(sizeof(*end->msgs), GFP_KERNEL);
	if (!end->msgs)
		return -ENOMEM;
	region.for_va = end->msgs;
	err = TRY(dat_lmr_kcreate, all->ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof(*end->msgs),
		  all->pz, DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG,
		  DAT_VA_TYPE_VA, DAT_MEM_OPTIMIZE_DONT_CARE, &end->lmr, &end->key, NULL, NULL,
		  NULL) ?:
	      TRY(dat_evd_kcreate, all->ia, 256, DAT_UPCALL_SINGLE_INSTANCE, &events,
		  DAT_EVD_DTO_FLAG, &end->evd) ?:
	      TRY(dat_ep_create, all->ia, all->pz, end->evd, end->evd, all->conn, NULL, &end->ep);
	for (i = 0; i < RECVS && !err; i++)
		err = post_recv(end, i);
	return err;
}

static int make_ia(const char *name, u16 port, struct sockaddr_storage *addr)
{
	const DAT_UPCALL_OBJECT conn = { NULL, conn_upcall }, cr = { NULL, cr_upcall };
	DAT_IA_ATTR *attr = kzalloc(sizeof(*attr), GFP_KERNEL);
	int err;

	if (!attr)
		return -ENOMEM;
	err = TRY(dat_ia_open, (char *)name, 16, &all->async, &all->ia) ?:
	      TRY(dat_ia_query, all->ia, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, attr, 0, NULL) ?:
	      TRY(dat_pz_create, all->ia, &all->pz) ?:
	      TRY(dat_evd_kcreate, all->ia, 16, DAT_UPCALL_SINGLE_INSTANCE, &conn,
		  DAT_EVD_CONNECTION_FLAG, &all->conn) ?:
	      TRY(dat_evd_kcreate, all->ia, 16, DAT_UPCALL_SINGLE_INSTANCE, &cr,
		  DAT_EVD_CR_FLAG, &all->cr) ?:
	      TRY(dat_psp_create, all->ia, port, all->cr, DAT_PSP_CONSUMER_FLAG, &all->psp);
	if (!err)
		memcpy(addr, attr->ia_address_ptr,
		       attr->ia_address_ptr->sa_family == AF_INET6 ?
		       sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
	kfree(attr);
	return err;
}

/* A connection of the IA to itself. @addr: out: its address. */
int dapl_open(const char *ia, u16 port, struct sockaddr_storage *addr)
{
	int err;
	u32 i;

	all = kzalloc(sizeof(*all), GFP_KERNEL);
	if (!all)
		return -ENOMEM;
	err = make_ia(ia, port, addr) ?: end_open(&all->end[0]) ?: end_open(&all->end[1]);
	for (i = 0; i < MAX_SLOTS && !err; i++)
		err = TRY(dat_lmr_allocate, all->ia, all->pz, MAX_PAGES, DAT_LMR_SCOPE_PZ,
			  &all->slot[i].lmr);
	if (!err)
		err = TRY(dat_ep_connect, all->end[0].ep, (DAT_IA_ADDRESS_PTR)addr, port,
			  DAT_TIMEOUT_INFINITE, 0, NULL, DAT_QOS_BEST_EFFORT,
			  DAT_CONNECT_DEFAULT_FLAG);
	if (!err && !await(READ_ONCE(all->end[0].up) && READ_ONCE(all->end[1].up)))
		err = fail("not connected");
	return err;
}

static int end_close(struct dapl_end *end)
{
	int err = 0;

	if (end->ep)
		err = TRY(dat_ep_free, end->ep);
	if (end->evd)
		err = TRY(dat_evd_free, end->evd) ?: err;
	if (end->lmr)
		err = TRY(dat_lmr_free, end->lmr) ?: err;
	kfree(end->msgs);
	return err;
}

/* Everything one by one: that nothing is left shows itself at the end. */
int dapl_close(void)
{
	int err = 0;
	u32 i;

	if (!all)
		return 0;
	WRITE_ONCE(all->closing, true);
	if (all->end[0].up) {
		err = TRY(dat_ep_disconnect, all->end[0].ep, DAT_CLOSE_ABRUPT_FLAG);
		if (!wait_event_timeout(reg_wait, READ_ONCE(all->end[0].down) &&
					READ_ONCE(all->end[1].down), LONG))
			err = fail("not disconnected");
	}
	err = end_close(&all->end[0]) ?: err;
	err = end_close(&all->end[1]) ?: err;
	for (i = 0; i < MAX_SLOTS; i++) {
		if (all->slot[i].lmr)
			err = TRY(dat_lmr_free, all->slot[i].lmr) ?: err;
	}
	if (all->psp)
		err = TRY(dat_psp_free, all->psp) ?: err;
	if (all->cr)
		err = TRY(dat_evd_free, all->cr) ?: err;
	if (all->conn)
		err = TRY(dat_evd_free, all->conn) ?: err;
	if (all->pz)
		err = TRY(dat_pz_free, all->pz) ?: err;
	if (all->ia && TRY(dat_ia_close, all->ia, DAT_CLOSE_GRACEFUL_FLAG)) {
		dat_ia_close(all->ia, DAT_CLOSE_ABRUPT_FLAG);
		err = -EIO;
	}
	kfree(all);
	all = NULL;
	return err;
}
