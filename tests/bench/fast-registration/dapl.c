// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The chain with kDAPL: dat_lmr_fmr, Send and dat_lmr_invalidate, each by its call, or all
 * in one list. The first two are suppressed, so that there is one event as well.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": kDAPL: " fmt

#include "kdreg.h"

enum { COOKIE_RECV, COOKIE_SEND, COOKIE_INV, COOKIE_REPLY };

struct dapl_end {
	struct test_end end;
	DAT_EVD_HANDLE dto, cm;
	struct test_mem mem;		/* struct msgs */
};

static struct {
	struct test_ia ia;
	DAT_PSP_HANDLE psp;
	bool closing;
	struct dapl_end end[2];
	struct {
		DAT_LMR_HANDLE lmr;
		DAT_RMR_CONTEXT key;	/* of the chain under way */
	} slot[MAX_SLOTS];
} *all;

static struct msgs *msgs_of(struct dapl_end *end)
{
	return (struct msgs *)end->mem.p;
}

static DAT_LMR_TRIPLET segment(struct dapl_end *end, struct msg *msg)
{
	return test_segment(&end->mem, (u8 *)msg - end->mem.p, sizeof(*msg));
}

static DAT_CONTEXT cookie(u32 kind, u32 n)
{
	return (DAT_CONTEXT) { .as_64 = (u64)kind << 32 | n };
}

static int post_recv(struct dapl_end *end, u32 i)
{
	DAT_LMR_TRIPLET seg = segment(end, &msgs_of(end)->recv[i]);

	return TRY(dat_ep_post_recv, end->end.ep, 1, &seg, cookie(COOKIE_RECV, i), 0);
}

/* The message of a slot, with its key. */
static DAT_LMR_TRIPLET message(struct dapl_end *end, u32 slot, DAT_RMR_CONTEXT key)
{
	struct msg *msg = &msgs_of(end)->send[slot];

	msg->slot = slot;
	msg->key = key;
	return segment(end, msg);
}

static void reply(u32 slot, u32 key)
{
	struct dapl_end *end = &all->end[1];
	DAT_LMR_TRIPLET seg = message(end, slot, key);

	TRY(dat_ep_post_send_with_invalidate, end->end.ep, 1, &seg, cookie(COOKIE_REPLY, slot), 0,
	    DAT_TRUE, key);
}

static void received(struct dapl_end *end, u32 i, const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	struct msg msg = reg_received(msgs_of(end), i, all->slot[0].key);

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

static DAT_EP_HANDLE passive(u32 n)
{
	return all->end[1].end.ep;
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
	DAT_LMR_HANDLE lmr = all->slot[slot].lmr;
	DAT_LMR_TRIPLET seg;
	int err;

	err = TRY(kdat_lmr_fmr_sg, lmr, &sg, DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_VA_TYPE_VA,
		  end->end.ep, cookie(COOKIE_INV, slot), DAT_COMPLETION_SUPPRESS_FLAG, NULL,
		  &all->slot[slot].key, NULL);
	if (err)
		return err;
	seg = message(end, slot, all->slot[slot].key);
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
	DAT_LMR_HANDLE lmr = all->slot[slot].lmr;
	DAT_LMR_TRIPLET seg;
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
	int err = TRY(kdat_lmr_next_contexts, lmr, NULL, &all->slot[slot].key);

	if (err)
		return err;
	seg = message(end, slot, all->slot[slot].key);
	return TRY(kdat_ep_post_list, end->end.ep, requests, plan.peer ? 2 : 3, NULL);
}

static int end_open(struct dapl_end *end)
{
	int err;
	u32 i;

	err = test_mem_open(&all->ia, &end->mem, sizeof(struct msgs), LOCAL_RIGHTS) ?:
	      test_evd(&all->ia, 256, DAT_EVD_DTO_FLAG, upcall, end, &end->dto) ?:
	      test_evd(&all->ia, 8, DAT_EVD_CONNECTION_FLAG | DAT_EVD_CR_FLAG, test_cm_upcall,
		       passive, &end->cm) ?:
	      test_end_open(&all->ia, &end->end, end->dto, end->dto, end->cm, NULL);
	for (i = 0; i < RECVS && !err; i++)
		err = post_recv(end, i);
	return err;
}

/* A connection of the IA to itself. @addr: out: its address. */
int dapl_open(char *ia, u16 port, struct sockaddr_storage *addr)
{
	int err;
	u32 i;

	all = kzalloc(sizeof(*all), GFP_KERNEL);
	if (!all)
		return -ENOMEM;
	err = test_ia_open(&all->ia, ia) ?: end_open(&all->end[0]) ?: end_open(&all->end[1]) ?:
	      TRY(dat_psp_create, all->ia.h, port, all->end[1].cm, DAT_PSP_CONSUMER_FLAG,
		  &all->psp);
	*addr = all->ia.addr;
	for (i = 0; i < MAX_SLOTS && !err; i++)
		err = TRY(dat_lmr_allocate, all->ia.h, all->ia.pz, MAX_PAGES, DAT_LMR_SCOPE_PZ,
			  &all->slot[i].lmr);
	return err ?: test_connect(all->end[0].end.ep, &all->ia, port, 0) ?:
	       test_connected("the adapter to itself", &all->end[0].end, &all->end[1].end);
}

/* Everything one by one: that nothing is left shows itself at the end. */
int dapl_close(void)
{
	struct dapl_end *end;
	int err = 0;
	u32 i;

	if (!all)
		return 0;
	WRITE_ONCE(all->closing, true);
	if (all->end[0].end.outcomes)
		err = TRY(dat_ep_disconnect, all->end[0].end.ep, DAT_CLOSE_ABRUPT_FLAG) ?:
		      test_over("the connection", &all->end[0].end, &all->end[1].end);
	for (end = all->end; end < all->end + 2; end++) {
		err = FREE(dat_ep_free, &end->end.ep) ?: err;
		err = FREE(dat_evd_free, &end->dto) ?: err;
		if (end == &all->end[1])
			err = FREE(dat_psp_free, &all->psp) ?: err;
		err = FREE(dat_evd_free, &end->cm) ?: err;
		test_mem_close(&end->mem);
	}
	for (i = 0; i < MAX_SLOTS; i++)
		err = FREE(dat_lmr_free, &all->slot[i].lmr) ?: err;
	test_ia_close(&all->ia);
	kfree(all);
	all = NULL;
	return err;
}
