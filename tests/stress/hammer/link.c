// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Two connections between the owner and the peer: one is hammered and breaks again
 * and again; the other one must never notice. And the hammer itself, which lives in
 * the upcalls of the peer.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "kdhammer.h"

#define PORT	7700

struct link ham_link = { .name = "the hammered connection" };
struct link ham_other = { .name = "the other connection" };

static DAT_EVD_HANDLE cr_evd;
static DAT_PSP_HANDLE psp;

/* ---- the hammer ---- */

static u8 *slot_buf(struct hammer *h, int i, bool read)
{
	return h->buf.p + (i + (read ? SLOTS : 0)) * MESSAGE;
}

/*
 * Soft-iWARP answers with wrong bytes when few come from both sides of a page boundary
 * (D-36), and gives TCP the memory itself from a page on, so that what comes later is
 * seen (D-75): make it one byte in the first case, less than a page in the other.
 */
static void siw_can_answer(const struct hammer *h, u32 *at, u32 *length)
{
	if (*length >= PAGE_SIZE)
		*length = PAGE_SIZE - 1;
	if (*length <= 64 && offset_in_page(h->addr + *at) + *length > PAGE_SIZE)
		*length = 1;
}

/* hammer->lock held. */
static bool slot_post(struct link *link, int i)
{
	struct hammer *h = &link->hammer;
	struct slot *slot = &h->slot[i];
	DAT_LMR_TRIPLET iov = { .lmr_context = h->buf.key };
	DAT_RMR_TRIPLET remote = { .rmr_context = h->rkey };
	u32 at, max = min_t(u32, h->length, MESSAGE);
	DAT_RETURN ret;

	slot->read = prandom_u32_state(&h->rnd) % 4 == 0;
	slot->length = 1 + prandom_u32_state(&h->rnd) % max;
	at = prandom_u32_state(&h->rnd) % (h->length - slot->length + 1);
	switch (prandom_u32_state(&h->rnd) % 4) {	/* its edges too */
	case 0:
		at = 0;
		break;
	case 1:
		at = h->length - slot->length;
		break;
	}
	if (slot->read && ham_owner.iwarp)
		siw_can_answer(h, &at, &slot->length);
	iov.virtual_address = (uintptr_t)slot_buf(h, i, slot->read);
	iov.segment_length = slot->length;
	remote.virtual_address = h->addr + at;
	remote.segment_length = slot->length;
	memset(slot_buf(h, i, slot->read), slot->read ? SINK : PEER | h->moved, slot->length);
	ret = slot->read ?
	      dat_ep_post_rdma_read(link->peer.conn.ep, 1, &iov, test_cookie(slot), &remote, 0) :
	      dat_ep_post_rdma_write(link->peer.conn.ep, 1, &iov, test_cookie(slot), &remote, 0);
	if (ret != DAT_SUCCESS) {
		/* the connection or the device has gone */
		if (DAT_GET_TYPE(ret) != DAT_INVALID_STATE &&
		    DAT_GET_TYPE(ret) != DAT_INTERNAL_ERROR)
			fail("a request of the peer: %s %s", major_name(ret), minor_name(ret));
		return false;
	}
	slot->busy = true;
	h->busy++;
	return true;
}

/* hammer->lock held. */
static void hammer_fill(struct link *link)
{
	struct hammer *h = &link->hammer;
	int i;

	for (i = 0; i < SLOTS && h->on; i++) {
		if (!h->slot[i].busy && !slot_post(link, i))
			h->on = false;
	}
}

static void sink_check(struct hammer *h, const u8 *p, u32 length)
{
	bool seen = false;
	u32 i;

	for (i = 0; i < length; i++) {
		if (p[i] == SECRET)
			seen = true;
		else if (!(p[i] & PEER) && p[i] != WINDOW)
			fail("a Read has brought 0x%02x", p[i]);
	}
	h->seen += seen;
}

static void slot_done(struct link *link, struct slot *slot,
		      const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	struct hammer *h = &link->hammer;
	bool wake;

	spin_lock_bh(&h->lock);
	slot->busy = false;
	h->busy--;
	if (dto->status == DAT_DTO_SUCCESS) {
		h->moved++;
		if (slot->read)
			sink_check(h, slot_buf(h, slot - h->slot, true), slot->length);
	} else {
		if (h->on)
			h->status = dto->status;
		h->on = false;
	}
	hammer_fill(link);
	wake = !h->on || h->moved % 8 == 0;
	spin_unlock_bh(&h->lock);
	if (wake)
		wake_up_all(&test_wait);
}

int hammer_start(struct link *link, u32 rkey, u64 addr, u32 length)
{
	struct hammer *h = &link->hammer;

	spin_lock_bh(&h->lock);
	h->rkey = rkey;
	h->addr = addr;
	h->length = length;
	h->seen = 0;
	h->on = true;
	hammer_fill(link);
	spin_unlock_bh(&h->lock);
	return h->on ? 0 : fail("the hammer does not start: %s", kdat_dto_status_name(h->status));
}

/* Until so many more messages have moved. */
int hammer_wait(struct link *link, u32 messages)
{
	struct hammer *h = &link->hammer;
	u64 from = READ_ONCE(h->moved);

	if (!await(READ_ONCE(h->moved) - from >= messages || !READ_ONCE(h->on)))
		return fail("the hammer moves nothing");
	return READ_ONCE(h->on) ? 0 : fail("the hammer has ended by itself: %s",
					   kdat_dto_status_name(h->status));
}

static int hammer_rest(struct link *link)
{
	struct hammer *h = &link->hammer;

	if (!await(READ_ONCE(h->busy) == 0))
		return fail("%d requests of the hammer are lost", h->busy);
	/* soft-iWARP may be interrupted while it copies an answer, and goes on later (D-75) */
	if (h->seen > (ham_exact && !ham_owner.iwarp ? 0 : 1))
		return fail("%u Reads have brought what came later", h->seen);
	ham_slack += h->seen;
	return 0;
}

int hammer_stop(struct link *link)
{
	spin_lock_bh(&link->hammer.lock);
	link->hammer.on = false;
	spin_unlock_bh(&link->hammer.lock);
	return hammer_rest(link);
}

/* ---- upcalls ---- */

static void req_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	struct end *end = instance;
	struct slot *slot = dto->user_cookie.as_ptr, *slots = end->link->hammer.slot;

	if (event->event_number == DAT_DTO_COMPLETION_EVENT && slot >= slots &&
	    slot < slots + SLOTS)
		slot_done(end->link, slot, dto);
	else
		test_op_event(event);
}

static int recv_post(struct link *link, int i)
{
	DAT_LMR_TRIPLET iov = test_segment(&link->inbox, i * 64, 64);

	return TRY(dat_ep_post_recv, link->owner.conn.ep, 1, &iov, test_cookie(NULL), 0);
}

/* What a Receive brings belongs to whoever waits for one. */
static void recv_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	struct end *end = instance;
	struct test_op *op;

	if (dto->status != DAT_DTO_SUCCESS)
		return;
	op = xchg(&end->link->inbox_op, NULL);
	if (op)
		test_op_done(op, dto->status, dto->operation, dto->rmr_context);
	else
		fail("a message that nobody has sent");
}

/* ---- connections ---- */

static DAT_EP_HANDLE wanted(u32 n)
{
	return n ? ham_other.owner.conn.ep : ham_link.owner.conn.ep;
}

static int end_open(struct end *end, struct link *link, const struct test_ia *side, bool owner)
{
	const DAT_EP_ATTR attr = {
		.max_message_size = MESSAGE,
		.max_rdma_size = 16 * MESSAGE,
		.max_recv_dtos = RECVS, .max_recv_iov = 1,
		.max_request_dtos = SLOTS + 4, .max_request_iov = 1,
		.max_rdma_read_in = owner ? SLOTS : 0,
		.max_rdma_read_out = owner ? 0 : SLOTS,
		.srq_soft_hw = DAT_HW_DEFAULT,
	};

	end->link = link;
	return test_evd(side, 64, DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG, req_upcall, end,
			&end->req) ?:
	       test_evd(side, 64, DAT_EVD_DTO_FLAG, recv_upcall, end, &end->recv) ?:
	       test_evd(side, 8, DAT_EVD_CONNECTION_FLAG, test_cm_upcall, NULL, &end->conn_evd) ?:
	       test_end_open(side, &end->conn, end->recv, end->req, end->conn_evd, &attr);
}

static void end_close(struct end *end)
{
	FREE(dat_ep_free, &end->conn.ep);
	FREE(dat_evd_free, &end->req);
	FREE(dat_evd_free, &end->recv);
	FREE(dat_evd_free, &end->conn_evd);
}

int link_up(struct link *link)
{
	int i, err = 0;

	for (i = 0; i < RECVS && !err; i++)
		err = recv_post(link, i);
	test_end_begin(&link->owner.conn);
	test_end_begin(&link->peer.conn);
	return err ?: test_connect(link->peer.conn.ep, &ham_owner, PORT, link == &ham_other) ?:
	       test_connected(link->name, &link->owner.conn, &link->peer.conn);
}

/* It has ended, once at each end, and nothing of it is under way. */
int link_over(struct link *link)
{
	int err = test_over(link->name, &link->owner.conn, &link->peer.conn);

	link->inbox_op = NULL;
	return err ?: hammer_stop(link);
}

int link_again(struct link *link)
{
	ham_moved += link->hammer.moved;
	link->hammer.moved = 0;
	return TRY(dat_ep_reset, link->peer.conn.ep) ?: TRY(dat_ep_reset, link->owner.conn.ep) ?:
	       link_up(link);
}

static int link_open(struct link *link)
{
	struct hammer *h = &link->hammer;
	/* the sinks of its Reads */
	DAT_MEM_PRIV_FLAGS sink = ham_peer.iwarp ? DAT_MEM_PRIV_REMOTE_WRITE_FLAG : 0;

	prandom_seed_state(&h->rnd, prandom_u32_state(&ham_rnd));
	return end_open(&link->owner, link, &ham_owner, true) ?:
	       end_open(&link->peer, link, &ham_peer, false) ?:
	       test_mem_open(&ham_peer, &h->buf, (2 * SLOTS + 1) * MESSAGE, LOCAL_RIGHTS | sink) ?:
	       test_mem_open(&ham_owner, &link->inbox, RECVS * 64, LOCAL_RIGHTS) ?: link_up(link);
}

static void link_close(struct link *link)
{
	hammer_stop(link);
	end_close(&link->peer);
	end_close(&link->owner);
	test_mem_close(&link->hammer.buf);
	test_mem_close(&link->inbox);
	ham_moved += link->hammer.moved;
}

int links_open(void)
{
	spin_lock_init(&ham_link.hammer.lock);
	spin_lock_init(&ham_other.hammer.lock);
	return test_evd(&ham_owner, 8, DAT_EVD_CR_FLAG, test_cm_upcall, wanted, &cr_evd) ?:
	       TRY(dat_psp_create, ham_owner.h, PORT, cr_evd, DAT_PSP_CONSUMER_FLAG, &psp) ?:
	       link_open(&ham_link) ?: link_open(&ham_other);
}

void links_close(void)
{
	FREE(dat_psp_free, &psp);
	FREE(dat_evd_free, &cr_evd);
	link_close(&ham_link);
	link_close(&ham_other);
}

/* ---- single requests of the peer ---- */

#define SPARE	(2 * SLOTS * MESSAGE)	/* where it is */

static u8 *spare(struct link *link)
{
	return link->hammer.buf.p + SPARE;
}

static int peer_post(struct link *link, struct test_op *op, int kind, u32 rkey, u64 addr,
		     u32 length)
{
	DAT_LMR_TRIPLET iov = test_segment(&link->hammer.buf, SPARE, length);
	DAT_RMR_TRIPLET remote = {
		.virtual_address = addr, .segment_length = length, .rmr_context = rkey,
	};
	DAT_DTO_COOKIE cookie = test_cookie(op);
	DAT_EP_HANDLE ep = link->peer.conn.ep;

	switch (kind) {
	case DAT_DTO_RDMA_WRITE:
		return TRY(dat_ep_post_rdma_write, ep, 1, &iov, cookie, &remote, 0);
	case DAT_DTO_RDMA_READ:
		return TRY(dat_ep_post_rdma_read, ep, 1, &iov, cookie, &remote, 0);
	default:
		return TRY(dat_ep_post_send_with_invalidate, ep, 1, &iov, cookie, 0, DAT_TRUE,
			   rkey);
	}
}

int peer_write(struct link *link, struct test_op *op, u32 rkey, u64 addr, u32 length)
{
	memset(spare(link), PEER | 1, length);
	return peer_post(link, op, DAT_DTO_RDMA_WRITE, rkey, addr, length);
}

int peer_read(struct link *link, struct test_op *op, u32 rkey, u64 addr, u32 length)
{
	memset(spare(link), SINK, length);
	return peer_post(link, op, DAT_DTO_RDMA_READ, rkey, addr, length);
}

int peer_send_inv(struct link *link, struct test_op *op, u32 rkey)
{
	return peer_post(link, op, DAT_DTO_SEND, rkey, 0, 16);
}

/* A region of its own, there and back: registration and connection work. */
int link_talk(struct link *link)
{
	DAT_LMR_HANDLE lmr;
	DAT_RMR_CONTEXT rkey;
	struct area area;
	struct test_op op;
	int err;

	err = area_open(&area, 1024) ?:
	      lmr_over(&area, true, DAT_MEM_PRIV_ALL_FLAG, &lmr, NULL, &rkey);
	if (err)
		return err;
	test_op_init(&op, NULL, NULL);
	err = peer_write(link, &op, rkey, (uintptr_t)area.p, 1000) ?:
	      test_op_wait(&op, "Write");
	if (!err) {
		test_op_init(&op, NULL, NULL);
		err = peer_read(link, &op, rkey, (uintptr_t)area.p, 1024) ?:
		      test_op_good(&op, link->name);
	}
	if (!err)
		err = area_is(&area, 0, 1000, PEER | 1, "written") ?:
		      area_is(&area, 1000, 24, WINDOW, "not written");
	if (!err && memcmp(spare(link), area.p, 1024))
		err = fail("%s: what was read is not what is there", link->name);
	err = TRY(dat_lmr_free, lmr) ?: err;
	area_close(&area);
	return err;
}
