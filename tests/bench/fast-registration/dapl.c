// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The chain with kDAPL: dat_lmr_fmr, Send and dat_lmr_invalidate, each by its call, or all
 * in one list. The first two are suppressed, so that there is one event as well.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": kDAPL: " fmt

#include <linux/slab.h>
#include <linux/string.h>
#include <dat2/kdat_ext.h>

#include "kdreg.h"
#include "../../lib/peer.h"

enum { COOKIE_RECV, COOKIE_SEND, COOKIE_INV, COOKIE_REPLY };

struct dapl_end {
	struct peer_end end;
	struct peer_mem mem;
	struct msgs *msgs;
};

static struct {
	struct peer_ia ia;
	bool closing;
	struct dapl_end end[2];
	struct {
		DAT_LMR_HANDLE lmr;
		DAT_RMR_CONTEXT key;	/* of the chain under way */
	} slot[MAX_SLOTS];
} *all;

static DAT_LMR_TRIPLET segment(struct dapl_end *end, struct msg *msg)
{
	return (DAT_LMR_TRIPLET) {
		.virtual_address = (uintptr_t)msg,
		.segment_length = sizeof(*msg),
		.lmr_context = end->mem.lctx,
	};
}

static DAT_CONTEXT cookie(u32 kind, u32 n)
{
	return (DAT_CONTEXT) { .as_64 = (u64)kind << 32 | n };
}

static int post_recv(struct dapl_end *end, u32 i)
{
	DAT_LMR_TRIPLET seg = segment(end, &end->msgs->recv[i]);

	return TRY(dat_ep_post_recv, end->end.ep, 1, &seg, cookie(COOKIE_RECV, i), 0);
}

static void reply(u32 slot, u32 key)
{
	struct dapl_end *end = &all->end[1];
	struct msg *msg = &end->msgs->send[slot];
	DAT_LMR_TRIPLET seg = segment(end, msg);

	msg->slot = slot;
	msg->key = key;
	TRY(dat_ep_post_send_with_invalidate, end->end.ep, 1, &seg, cookie(COOKIE_REPLY, slot), 0,
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

static void cr_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	TRY(dat_cr_accept, event->event_data.cr_arrival_event_data.cr_handle, all->end[1].end.ep, 0,
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
		  end->end.ep, cookie(COOKIE_INV, slot), DAT_COMPLETION_SUPPRESS_FLAG, NULL, &key,
		  NULL);
	if (err)
		return err;
	fill(msg, slot, key);
	err = TRY(dat_ep_post_send, end->end.ep, 1, &seg, cookie(COOKIE_SEND, slot), send_flags());
	if (!err && !plan.peer)
		err = TRY(dat_lmr_invalidate, lmr, end->end.ep, cookie(COOKIE_INV, slot), 0);
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
	return TRY(kdat_ep_post_list, end->end.ep, requests, plan.peer ? 2 : 3, NULL);
}

static int end_open(struct dapl_end *end)
{
	int err;
	u32 i;

	end->msgs = kzalloc(sizeof(*end->msgs), GFP_KERNEL);
	err = TRY(peer_mem_open, &all->ia, &end->mem, end->msgs, sizeof(*end->msgs), PEER_LOCAL) ?:
	      TRY(peer_end_open, &all->ia, &end->end, NULL, &reg_wait, upcall, end);
	for (i = 0; i < RECVS && !err; i++)
		err = post_recv(end, i);
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
	err = TRY(peer_ia_open, &all->ia, ia) ?:
	      TRY(peer_ia_listen, &all->ia, port, cr_upcall, NULL) ?:
	      end_open(&all->end[0]) ?: end_open(&all->end[1]);
	*addr = all->ia.addr;
	for (i = 0; i < MAX_SLOTS && !err; i++)
		err = TRY(dat_lmr_allocate, all->ia.ia, all->ia.pz, MAX_PAGES, DAT_LMR_SCOPE_PZ,
			  &all->slot[i].lmr);
	if (!err)
		err = TRY(peer_connect, &all->end[0].end, addr, port, DAT_TIMEOUT_INFINITE, 0,
			  NULL);
	if (!err && !await(peer_answered(&all->end[0].end) && peer_answered(&all->end[1].end)))
		err = fail("not connected");
	return err;
}

static int end_close(struct dapl_end *end)
{
	int err = 0;

	/* it was established, and nothing but we have ended it */
	if (end->end.outcomes && (end->end.outcome != DAT_CONNECTION_EVENT_ESTABLISHED ||
				  end->end.end != DAT_CONNECTION_EVENT_DISCONNECTED))
		err = fail("%s, %s", kdat_event_name(end->end.outcome),
			   kdat_event_name(end->end.end));
	err = TRY(peer_end_close, &end->end) ?: err;
	if (end->mem.lmr)
		err = TRY(dat_lmr_free, end->mem.lmr) ?: err;
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
	if (all->end[0].end.outcomes) {
		err = TRY(dat_ep_disconnect, all->end[0].end.ep, DAT_CLOSE_ABRUPT_FLAG);
		if (!wait_event_timeout(reg_wait, peer_ended(&all->end[0].end) &&
					peer_ended(&all->end[1].end), LONG))
			err = fail("not disconnected");
	}
	err = end_close(&all->end[0]) ?: err;
	err = end_close(&all->end[1]) ?: err;
	for (i = 0; i < MAX_SLOTS; i++) {
		if (all->slot[i].lmr)
			err = TRY(dat_lmr_free, all->slot[i].lmr) ?: err;
	}
	err = peer_ia_close(&all->ia) ?: err;
	kfree(all);
	all = NULL;
	return err;
}
