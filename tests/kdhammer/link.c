// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Two connections between the owner and the peer: one is hammered and breaks again
 * and again; the other one must never notice. And the hammer itself, which lives in
 * the upcalls of the peer.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/mm.h>
#include <linux/slab.h>

#include "kdhammer.h"

#define PORT	7700

struct link ham_link = { .name = "the hammered connection" };
struct link ham_other = { .name = "the other connection" };

static DAT_EVD_HANDLE cr_evd;
static DAT_PSP_HANDLE psp;
static struct link *accepting;

/* ---- the hammer ---- */

static u8 *slot_buf(struct hammer *h, int i, bool read)
{
	return h->buf + (i + (read ? SLOTS : 0)) * MESSAGE;
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
	DAT_LMR_TRIPLET iov = { .lmr_context = h->key };
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
	      dat_ep_post_rdma_read(link->peer.ep, 1, &iov, (DAT_DTO_COOKIE) { .as_ptr = slot },
				    &remote, 0) :
	      dat_ep_post_rdma_write(link->peer.ep, 1, &iov, (DAT_DTO_COOKIE) { .as_ptr = slot },
				     &remote, 0);
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
		wake_up_all(&ham_wait);
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
	return h->on ? 0 : fail("the hammer does not start: %s", status_name(h->status));
}

/* Until so many more messages have moved. */
int hammer_wait(struct link *link, u32 messages)
{
	struct hammer *h = &link->hammer;
	u64 from = READ_ONCE(h->moved);

	if (!await(READ_ONCE(h->moved) - from >= messages || !READ_ONCE(h->on)))
		return fail("the hammer moves nothing");
	return READ_ONCE(h->on) ? 0 : fail("the hammer has ended by itself: %s",
					   status_name(h->status));
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

static void op_done(struct op *op, DAT_DTO_COMPLETION_STATUS status, DAT_DTOS operation, u32 key)
{
	op->status = status;
	op->operation = operation;
	op->key = key;
	if (op->then && status == DAT_DTO_SUCCESS)
		op->then(op);
	complete(&op->done);
}

static void req_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	const DAT_RMR_BIND_COMPLETION_EVENT_DATA *bind =
		&event->event_data.rmr_completion_event_data;
	struct end *end = instance;
	struct hammer *h = &end->link->hammer;
	struct slot *slot;

	if (event->event_number == DAT_RMR_BIND_COMPLETION_EVENT) {
		op_done(bind->user_cookie.as_ptr, bind->status, DAT_DTO_BIND_MW, 0);
		return;
	}
	slot = dto->user_cookie.as_ptr;
	if (slot >= h->slot && slot < h->slot + SLOTS)
		slot_done(end->link, slot, dto);
	else
		op_done(dto->user_cookie.as_ptr, dto->status, dto->operation, 0);
}

static int recv_post(struct link *link, int i)
{
	DAT_LMR_TRIPLET iov = {
		.virtual_address = (uintptr_t)link->inbox + i * 64,
		.segment_length = 64,
		.lmr_context = link->inbox_key,
	};

	return TRY(dat_ep_post_recv, link->owner.ep, 1, &iov, op_cookie(&link->recv[i]), 0);
}

/* What a Receive brings belongs to whoever waits for one. */
static void recv_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	struct end *end = instance;
	struct op *op;

	if (dto->status != DAT_DTO_SUCCESS)
		return;
	op = xchg(&end->link->inbox_op, NULL);
	if (!op) {
		fail("a message that nobody has sent");
		return;
	}
	op_done(op, dto->status, dto->operation, dto->rmr_context);
}

static void conn_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct end *end = instance;

	switch (event->event_number) {
	case DAT_CONNECTION_EVENT_DISCONNECTED:
	case DAT_CONNECTION_EVENT_BROKEN:
		end->over = event->event_number;
		WRITE_ONCE(end->overs, end->overs + 1);
		break;
	default:
		end->outcome = event->event_number;
		WRITE_ONCE(end->ups, end->ups + 1);
	}
	wake_up_all(&ham_wait);
}

static void cr_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	DAT_CR_HANDLE cr = event->event_data.cr_arrival_event_data.cr_handle;
	struct link *link = xchg(&accepting, NULL);

	if (!link || dat_cr_accept(cr, link->owner.ep, 0, NULL) != DAT_SUCCESS)
		dat_cr_reject(cr, 0, NULL);
}

/* ---- connections ---- */

static int end_open(struct end *end, struct link *link, struct side *side, bool owner)
{
	const DAT_UPCALL_OBJECT req = { end, req_upcall }, recv = { end, recv_upcall };
	const DAT_UPCALL_OBJECT conn = { end, conn_upcall };
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
	end->side = side;
	return TRY(dat_evd_kcreate, side->ia, 64, DAT_UPCALL_SINGLE_INSTANCE, &req,
		   DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG, &end->req) ?:
	       TRY(dat_evd_kcreate, side->ia, 64, DAT_UPCALL_SINGLE_INSTANCE, &recv,
		   DAT_EVD_DTO_FLAG, &end->recv) ?:
	       TRY(dat_evd_kcreate, side->ia, 8, DAT_UPCALL_SINGLE_INSTANCE, &conn,
		   DAT_EVD_CONNECTION_FLAG, &end->conn) ?:
	       TRY(dat_ep_create, side->ia, side->pz, end->recv, end->req, end->conn, &attr,
		   &end->ep);
}

static void end_close(struct end *end)
{
	if (end->ep)
		dat_ep_free(end->ep);
	if (end->req)
		dat_evd_free(end->req);
	if (end->recv)
		dat_evd_free(end->recv);
	if (end->conn)
		dat_evd_free(end->conn);
}

int link_up(struct link *link)
{
	DAT_RETURN ret;
	int i, err = 0;

	for (i = 0; i < RECVS && !err; i++)
		err = recv_post(link, i);
	if (err)
		return err;
	link->owner.ups = 0;
	link->peer.ups = 0;
	link->owner.overs = 0;
	link->peer.overs = 0;
	WRITE_ONCE(accepting, link);
	ret = dat_ep_connect(link->peer.ep, (DAT_IA_ADDRESS_PTR)&ham_owner.addr, PORT,
			     60 * USEC_PER_SEC, 0, NULL, DAT_QOS_BEST_EFFORT, 0);
	if (ret != DAT_SUCCESS)
		return fail("dat_ep_connect: %s %s", major_name(ret), minor_name(ret));
	if (!await(READ_ONCE(link->peer.ups)) || !await(READ_ONCE(link->owner.ups)) ||
	    link->peer.outcome != DAT_CONNECTION_EVENT_ESTABLISHED ||
	    link->owner.outcome != DAT_CONNECTION_EVENT_ESTABLISHED)
		return fail("%s: no connection: %s, %s", link->name,
			    event_name(link->owner.outcome), event_name(link->peer.outcome));
	return 0;
}

/* It has ended, once at each end, and nothing of it is under way. */
int link_over(struct link *link)
{
	if (!await(READ_ONCE(link->owner.overs) && READ_ONCE(link->peer.overs)))
		return fail("%s has not ended: owner %d, peer %d", link->name, link->owner.overs,
			    link->peer.overs);
	if (link->owner.overs != 1 || link->peer.overs != 1)
		return fail("%s has ended %d and %d times", link->name, link->owner.overs,
			    link->peer.overs);
	link->inbox_op = NULL;
	return hammer_stop(link);
}

int link_again(struct link *link)
{
	ham_moved += link->hammer.moved;
	link->hammer.moved = 0;
	return TRY(dat_ep_reset, link->peer.ep) ?: TRY(dat_ep_reset, link->owner.ep) ?:
	       link_up(link);
}

static int link_open(struct link *link)
{
	struct hammer *h = &link->hammer;
	DAT_REGION_DESCRIPTION region = {};
	DAT_MEM_PRIV_FLAGS priv = LOCAL;
	int err;

	spin_lock_init(&h->lock);
	prandom_seed_state(&h->rnd, prandom_u32_state(&ham_rnd));
	h->buf = kzalloc((2 * SLOTS + 1) * MESSAGE, GFP_KERNEL);
	link->inbox = kzalloc(RECVS * 64, GFP_KERNEL);
	if (!h->buf || !link->inbox)
		return -ENOMEM;
	err = end_open(&link->owner, link, &ham_owner, true) ?:
	      end_open(&link->peer, link, &ham_peer, false);
	if (err)
		return err;
	if (ham_peer.iwarp)	/* the sinks of its Reads */
		priv |= DAT_MEM_PRIV_REMOTE_WRITE_FLAG;
	region.for_va = h->buf;
	err = TRY(dat_lmr_kcreate, ham_peer.ia, DAT_MEM_TYPE_VIRTUAL, region,
		  (2 * SLOTS + 1) * MESSAGE, ham_peer.pz, priv, DAT_VA_TYPE_VA, 0, &h->lmr,
		  &h->key, NULL, NULL, NULL);
	if (err)
		return err;
	region.for_va = link->inbox;
	return TRY(dat_lmr_kcreate, ham_owner.ia, DAT_MEM_TYPE_VIRTUAL, region, RECVS * 64,
		   ham_owner.pz, LOCAL, DAT_VA_TYPE_VA, 0, &link->inbox_lmr, &link->inbox_key,
		   NULL, NULL, NULL) ?: link_up(link);
}

static void link_close(struct link *link)
{
	hammer_stop(link);
	end_close(&link->peer);
	end_close(&link->owner);
	if (link->hammer.lmr)
		dat_lmr_free(link->hammer.lmr);
	if (link->inbox_lmr)
		dat_lmr_free(link->inbox_lmr);
	kfree(link->hammer.buf);
	kfree(link->inbox);
	ham_moved += link->hammer.moved;
}

int links_open(void)
{
	const DAT_UPCALL_OBJECT cr = { NULL, cr_upcall };

	spin_lock_init(&ham_link.hammer.lock);
	spin_lock_init(&ham_other.hammer.lock);
	return TRY(dat_evd_kcreate, ham_owner.ia, 8, DAT_UPCALL_SINGLE_INSTANCE, &cr,
		   DAT_EVD_CR_FLAG, &cr_evd) ?:
	       TRY(dat_psp_create, ham_owner.ia, PORT, cr_evd, DAT_PSP_CONSUMER_FLAG, &psp) ?:
	       link_open(&ham_link) ?: link_open(&ham_other);
}

void links_close(void)
{
	if (psp)
		dat_psp_free(psp);
	if (cr_evd)
		dat_evd_free(cr_evd);
	link_close(&ham_link);
	link_close(&ham_other);
}

/* ---- single requests of the peer ---- */

static u8 *spare(struct link *link)
{
	return link->hammer.buf + 2 * SLOTS * MESSAGE;
}

static int peer_post(struct link *link, struct op *op, int kind, u32 rkey, u64 addr, u32 length)
{
	DAT_LMR_TRIPLET iov = {
		.virtual_address = (uintptr_t)spare(link),
		.segment_length = length,
		.lmr_context = link->hammer.key,
	};
	DAT_RMR_TRIPLET remote = {
		.virtual_address = addr, .segment_length = length, .rmr_context = rkey,
	};
	DAT_DTO_COOKIE cookie = op_cookie(op);
	DAT_EP_HANDLE ep = link->peer.ep;
	DAT_RETURN ret;

	if (kind == DAT_DTO_RDMA_WRITE)
		ret = dat_ep_post_rdma_write(ep, 1, &iov, cookie, &remote, 0);
	else if (kind == DAT_DTO_RDMA_READ)
		ret = dat_ep_post_rdma_read(ep, 1, &iov, cookie, &remote, 0);
	else
		ret = dat_ep_post_send_with_invalidate(ep, 1, &iov, cookie, 0, DAT_TRUE, rkey);
	return check("a request of the peer", ret);
}

int peer_write(struct link *link, struct op *op, u32 rkey, u64 addr, u32 length)
{
	memset(spare(link), PEER | 1, length);
	return peer_post(link, op, DAT_DTO_RDMA_WRITE, rkey, addr, length);
}

int peer_read(struct link *link, struct op *op, u32 rkey, u64 addr, u32 length)
{
	memset(spare(link), SINK, length);
	return peer_post(link, op, DAT_DTO_RDMA_READ, rkey, addr, length);
}

int peer_send_inv(struct link *link, struct op *op, u32 rkey)
{
	return peer_post(link, op, DAT_DTO_SEND, rkey, 0, 16);
}

/* A region of its own, there and back: registration and connection work. */
int link_talk(struct link *link)
{
	DAT_LMR_HANDLE lmr;
	DAT_RMR_CONTEXT rkey;
	struct area area;
	struct op op;
	int err;

	err = area_open(&area, 1024) ?:
	      lmr_over(&ham_owner, ham_owner.pz, &area, true, LOCAL | REMOTE, &lmr, NULL, &rkey);
	if (err)
		return err;
	op_init(&op, NULL, NULL);
	err = peer_write(link, &op, rkey, (uintptr_t)area.p, 1000) ?: op_wait(&op, "Write");
	if (!err) {
		op_init(&op, NULL, NULL);
		err = peer_read(link, &op, rkey, (uintptr_t)area.p, 1024) ?: op_wait(&op, "Read");
	}
	if (!err && op.status != DAT_DTO_SUCCESS)
		err = fail("%s: a Read has ended with %s", link->name, status_name(op.status));
	if (!err)
		err = area_is(&area, 0, 1000, PEER | 1, "written") ?:
		      area_is(&area, 1000, 24, WINDOW, "not written");
	if (!err && memcmp(spare(link), area.p, 1024))
		err = fail("%s: what was read is not what is there", link->name);
	err = TRY(dat_lmr_free, lmr) ?: err;
	area_close(&area);
	return err;
}
