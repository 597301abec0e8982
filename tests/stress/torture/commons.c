// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Handles that all threads share: one uses what another one frees. What a call returns must
 * be documented, and not more than was posted may complete.
 */
#include <linux/bottom_half.h>
#include <linux/hash.h>
#include <linux/interrupt.h>
#include <linux/io.h>
#include <linux/net.h>

#include "kdtorture.h"

#define SLOTS		6
#define STEPS		400
#define MEM		(4 * PAGE_SIZE)
#define COOKIE		0x746f7274UL	/* upper half of each */

struct commons {
	const struct tor_ia *ia;
	DAT_HANDLE slot[TOR_KINDS][SLOTS];
	DAT_LMR_CONTEXT key[SLOTS];
	DAT_CONN_QUAL port;
	struct sockaddr_storage addr;
	atomic64_t posted, completed;
};

static struct commons commons[2];
static u8 *mem;
static atomic_t ticks;
static struct tor in_upcall = { .id = ~0U };	/* its name, in messages */
static DEFINE_SPINLOCK(calm);			/* posts under it, with interrupts off */

/* Whatever is documented; and nobody loses a device that stays. */
static bool c_ret(struct tor *t, struct commons *c, enum tor_call call, DAT_RETURN ret)
{
	u32 allowed = tor_documented(call);

	return tor_ret(t, call, ret, c->ia->removable ? allowed : allowed & ~GONE);
}

#define CALL_IT(name, ...)	c_ret(t, c, C_##name, name(__VA_ARGS__))

/* One of some calls, by the number that was drawn. */
#define PICK(n, name, ...)				\
	do {						\
		if (pick == (n))			\
			good = CALL_IT(name, __VA_ARGS__); \
	} while (0)

static DAT_HANDLE *slot_of(struct tor *t, struct commons *c, u32 kind)
{
	return &c->slot[kind][tor_below(t, kind == DAT_HANDLE_TYPE_IA ? 2 : SLOTS)];
}

static DAT_HANDLE take(struct tor *t, struct commons *c, u32 kind)
{
	DAT_HANDLE h = READ_ONCE(*slot_of(t, c, kind));

	if (tor_one_in(t, 16))
		return tor_bad_handle(t, h);
	if (tor_one_in(t, 24))
		return READ_ONCE(*slot_of(t, c, tor_below(t, TOR_KINDS)));
	return h;
}

static bool free_one(struct tor *t, struct commons *c, u32 kind, DAT_HANDLE h)
{
	if (kind == DAT_HANDLE_TYPE_IA)
		return CALL_IT(dat_ia_close, h, DAT_CLOSE_ABRUPT_FLAG);
	if (kind == DAT_HANDLE_TYPE_CR)
		return CALL_IT(dat_cr_reject, h, 0, NULL);
	return c_ret(t, c, tor_frees[kind].call, tor_frees[kind].free(h));
}

/* What was in this place before goes, if it can. */
static void give(struct tor *t, struct commons *c, u32 kind, DAT_HANDLE h)
{
	DAT_HANDLE old = xchg(slot_of(t, c, kind), h);

	if (old && free_one(t, c, kind, old))
		tor_died(t, old);
}

static DAT_DTO_COOKIE cookie_next(struct commons *c)
{
	return (DAT_DTO_COOKIE) {
		.as_64 = (u64)COOKIE << 32 | (u32)atomic64_inc_return(&c->posted),
	};
}

static bool posted(struct commons *c, bool good)
{
	if (!good)
		atomic64_dec(&c->posted);
	return good;
}

/* ---- upcalls ---- */

static u32 upcall_random(u32 below)
{
	return hash_32(atomic_inc_return(&ticks), 32) % below;
}

static void upcall_request(struct commons *c, const DAT_EVENT *event)
{
	DAT_CR_HANDLE cr = event->event_data.cr_arrival_event_data.cr_handle, old;
	struct tor *t = &in_upcall;
	DAT_CR_PARAM param;
	DAT_EP_HANDLE ep;

	CALL_IT(dat_cr_query, cr, DAT_CR_FIELD_ALL, &param);
	switch (upcall_random(8)) {
	case 0:
		CALL_IT(dat_cr_reject, cr, 0, NULL);
		break;
	case 1:
		old = xchg(&c->slot[DAT_HANDLE_TYPE_CR][upcall_random(SLOTS)], cr);
		if (old)
			CALL_IT(dat_cr_reject, old, 0, NULL);
		break;
	case 2:
		if (CALL_IT(dat_cr_handoff, cr, c->port))
			break;
		fallthrough;
	default:
		/* those of a Reserved Service Point bring their own */
		ep = READ_ONCE(c->slot[DAT_HANDLE_TYPE_EP][upcall_random(SLOTS)]);
		if (!CALL_IT(dat_cr_accept, cr, ep, 0, NULL) &&
		    !CALL_IT(dat_cr_accept, cr, NULL, 0, NULL))
			CALL_IT(dat_cr_reject, cr, 0, NULL);
	}
}

static void upcall_react(struct commons *c, DAT_EVD_HANDLE evd)
{
	struct tor *t = &in_upcall;
	DAT_EP_HANDLE ep = READ_ONCE(c->slot[DAT_HANDLE_TYPE_EP][upcall_random(SLOTS)]);
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };
	u32 pick = upcall_random(in_serving_softirq() ? 32 : 40);
	bool good = true;

	PICK(0, dat_ep_disconnect, ep, DAT_CLOSE_GRACEFUL_FLAG);
	PICK(1, dat_ep_post_recv, ep, 0, NULL, cookie_next(c), 0);
	PICK(2, dat_ep_post_send, ep, 0, NULL, cookie_next(c), 0);
	if (pick == 1 || pick == 2)
		posted(c, good);
	PICK(3, dat_evd_query, evd, 0, NULL);
	PICK(4, dat_evd_post_se, evd, &event);
	PICK(32, dat_evd_modify_upcall, evd, DAT_UPCALL_SINGLE_INSTANCE, NULL,
	     DAT_UPCALL_INVOC_ANY);
	PICK(33, dat_evd_resize, evd, 8 + upcall_random(64));
	if (pick == 34)		/* it would wait for itself */
		tor_ret(t, C_dat_evd_free, dat_evd_free(evd), STATE | HANDLE);
	if (pick == 35)
		tor_ret(t, C_dat_evd_modify_upcall,
			dat_evd_modify_upcall(evd, DAT_UPCALL_TEARDOWN, NULL, DAT_UPCALL_INVOC_NEW),
			STATE | HANDLE);
}

static void one_event(struct commons *c, const DAT_EVENT *event)
{
	const DAT_CONNECTION_EVENT_DATA *conn = &event->event_data.connect_event_data;
	struct tor *t = &in_upcall;
	DAT_DTO_COOKIE cookie;

	tor_note(N_EVENTS);
	switch ((u32)event->event_number) {
	case DAT_DTO_COMPLETION_EVENT:
		cookie = event->event_data.dto_completion_event_data.user_cookie;
		if (cookie.as_64 >> 32 != COOKIE)
			tor_bad(t, "a completion with cookie %llx", cookie.as_64);
		atomic64_inc(&c->completed);
		break;
	case DAT_RMR_BIND_COMPLETION_EVENT:
		cookie = event->event_data.rmr_completion_event_data.user_cookie;
		if (cookie.as_64 >> 32 != COOKIE)
			tor_bad(t, "a bind completion with cookie %llx", cookie.as_64);
		atomic64_inc(&c->completed);
		break;
	case DAT_CONNECTION_REQUEST_EVENT:
		/* an EVD for requests calls where one may sleep */
		if (!in_serving_softirq())
			upcall_request(c, event);
		break;
	case DAT_CONNECTION_EVENT_DISCONNECTED:
	case DAT_CONNECTION_EVENT_BROKEN:
		if (!in_serving_softirq() && !upcall_random(4))
			CALL_IT(dat_ep_free, conn->ep_handle);
		break;
	case DAT_CONNECTION_EVENT_ESTABLISHED:
		tor_note(N_UP);
		break;
	case DAT_SOFTWARE_EVENT:
		break;
	default:
		if (kdat_event_name(event->event_number)[0] == '?')
			tor_bad(t, "event 0x%x", event->event_number);
	}
}

static void common_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct commons *c = instance;

	if (!event)
		return;		/* the threads dequeue */
	one_event(c, event);
	upcall_react(c, event->evd_handle);
}

/* ---- steps ---- */

static void make_ia(struct tor *t, struct commons *c)
{
	const DAT_UPCALL_OBJECT upcall = { c, common_upcall };
	DAT_EVD_HANDLE async = NULL;
	DAT_IA_HANDLE ia;
	DAT_IA_ATTR *attr;

	if (!CALL_IT(dat_ia_openv, c->ia->name, 8, &async, &ia, DAT_VERSION_MAJOR,
		     DAT_VERSION_MINOR, DAT_THREADSAFE))
		return;
	CALL_IT(dat_evd_modify_upcall, async, DAT_UPCALL_SINGLE_INSTANCE, &upcall,
		DAT_UPCALL_INVOC_ANY);
	attr = kzalloc(sizeof(*attr), GFP_KERNEL);
	if (attr && CALL_IT(dat_ia_query, ia, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, attr, 0, NULL) &&
	    attr->ia_address_ptr)
		test_addr_copy(&c->addr, attr->ia_address_ptr);
	kfree(attr);
	give(t, c, DAT_HANDLE_TYPE_IA, ia);
}

static void make_evd(struct tor *t, struct commons *c)
{
	static const DAT_UPCALL_POLICY policies[] = {
		DAT_UPCALL_DISABLE, DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_MANY, DAT_UPCALL_NOTIFY,
	};
	static const DAT_EVD_FLAGS flags[] = {
		DAT_EVD_DTO_FLAG, DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG, DAT_EVD_DEFAULT_FLAG,
		DAT_EVD_CONNECTION_FLAG | DAT_EVD_SOFTWARE_FLAG,
		DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG,
		DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG,
	};
	const DAT_UPCALL_OBJECT upcall = { c, common_upcall };
	DAT_HANDLE h;

	if (CALL_IT(dat_evd_kcreate, take(t, c, DAT_HANDLE_TYPE_IA), 1 + tor_below(t, 64),
		    policies[tor_below(t, 4)], &upcall, flags[tor_below(t, ARRAY_SIZE(flags))], &h))
		give(t, c, DAT_HANDLE_TYPE_EVD, h);
}

static void make_ep(struct tor *t, struct commons *c)
{
	DAT_EP_ATTR attr = {
		.max_message_size = 1024, .max_rdma_size = 1024, .max_recv_dtos = 8,
		.max_request_dtos = 8, .max_recv_iov = 1, .max_request_iov = 1,
		.max_rdma_read_in = 2, .max_rdma_read_out = 2, .srq_soft_hw = DAT_HW_DEFAULT,
	};
	DAT_IA_HANDLE ia = take(t, c, DAT_HANDLE_TYPE_IA);
	DAT_PZ_HANDLE pz = take(t, c, DAT_HANDLE_TYPE_PZ);
	DAT_EVD_HANDLE recv = take(t, c, DAT_HANDLE_TYPE_EVD);
	DAT_EVD_HANDLE req = take(t, c, DAT_HANDLE_TYPE_EVD);
	DAT_EVD_HANDLE conn = take(t, c, DAT_HANDLE_TYPE_EVD);
	DAT_HANDLE h;
	bool good;

	if (tor_one_in(t, 4)) {
		good = CALL_IT(dat_ep_create_with_srq, ia, pz, recv, req, conn,
			       take(t, c, DAT_HANDLE_TYPE_SRQ), &attr, &h);
	} else {
		good = CALL_IT(dat_ep_create, ia, pz, recv, req, conn,
			       tor_one_in(t, 4) ? NULL : &attr, &h);
	}
	if (good)
		give(t, c, DAT_HANDLE_TYPE_EP, h);
}

static void make_lmr(struct tor *t, struct commons *c)
{
	DAT_IA_HANDLE ia = take(t, c, DAT_HANDLE_TYPE_IA);
	DAT_PZ_HANDLE pz = take(t, c, DAT_HANDLE_TYPE_PZ);
	DAT_REGION_DESCRIPTION region = {};
	DAT_LMR_CONTEXT key = 0;
	DAT_HANDLE h;
	bool good;

	switch (tor_below(t, 4)) {
	case 0:
		good = CALL_IT(dat_lmr_allocate, ia, pz, 1 + tor_below(t, 8), DAT_LMR_SCOPE_PZ, &h);
		break;
	case 1:
		region.for_lmr_handle = take(t, c, DAT_HANDLE_TYPE_LMR);
		good = CALL_IT(dat_lmr_kcreate, ia, DAT_MEM_TYPE_LMR, region, 0, pz,
			       DAT_MEM_PRIV_ALL_FLAG, 0, 0, &h, &key, NULL, NULL, NULL);
		break;
	default:
		region.for_va = mem;
		good = CALL_IT(dat_lmr_kcreate, ia, DAT_MEM_TYPE_VIRTUAL, region, MEM, pz,
			       DAT_MEM_PRIV_ALL_FLAG, 0, 0, &h, &key, NULL, NULL, NULL);
	}
	if (!good)
		return;
	if (key)
		WRITE_ONCE(c->key[tor_below(t, SLOTS)], key);
	give(t, c, DAT_HANDLE_TYPE_LMR, h);
}

static void make_other(struct tor *t, struct commons *c)
{
	static const u8 kinds[] = {
		DAT_HANDLE_TYPE_PZ, DAT_HANDLE_TYPE_PZ, DAT_HANDLE_TYPE_SRQ, DAT_HANDLE_TYPE_RMR,
		DAT_HANDLE_TYPE_PSP, DAT_HANDLE_TYPE_PSP, DAT_HANDLE_TYPE_RSP, DAT_HANDLE_TYPE_CSP,
	};
	DAT_IA_HANDLE ia = take(t, c, DAT_HANDLE_TYPE_IA);
	DAT_EVD_HANDLE evd = take(t, c, DAT_HANDLE_TYPE_EVD);
	DAT_SRQ_ATTR srq = { .max_recv_dtos = 8, .max_recv_iov = 1 };
	DAT_COMM comm = { AF_INET, SOCK_STREAM, 0 };
	u32 pick = tor_below(t, 8), from = tor_below(t, 16);
	struct sockaddr_storage addr = test_addr_port(&c->addr, 22000 + from);
	DAT_CONN_QUAL port = 21000 + from;
	bool good = false;
	DAT_HANDLE h;

	PICK(0, dat_pz_create, ia, &h);
	PICK(1, dat_pz_create, ia, &h);
	PICK(2, dat_srq_create, ia, take(t, c, DAT_HANDLE_TYPE_PZ), &srq, &h);
	PICK(3, dat_rmr_create, take(t, c, DAT_HANDLE_TYPE_PZ), &h);
	PICK(4, dat_psp_create_any, ia, &port, evd, tor_one_in(t, 3) ? DAT_PSP_PROVIDER_FLAG : 0,
	     &h);
	PICK(5, dat_psp_create, ia, 20000 + from, evd, 0, &h);
	PICK(6, dat_rsp_create, ia, port, take(t, c, DAT_HANDLE_TYPE_EP), evd, &h);
	PICK(7, dat_csp_create, ia, &comm, (DAT_IA_ADDRESS_PTR)&addr, evd, &h);
	if (good && (pick == 4 || pick == 6))
		WRITE_ONCE(c->port, port);
	if (good)
		give(t, c, kinds[pick], h);
}

/* None of these may sleep. */
static void post_one(struct tor *t, struct commons *c)
{
	DAT_EP_HANDLE ep = take(t, c, DAT_HANDLE_TYPE_EP);
	DAT_LMR_HANDLE lmr = take(t, c, DAT_HANDLE_TYPE_LMR);
	DAT_LMR_CONTEXT key = READ_ONCE(c->key[tor_below(t, SLOTS)]), out;
	u32 length = 1 + tor_below(t, 1024);
	DAT_LMR_TRIPLET iov = { (uintptr_t)mem, length, key };
	DAT_RMR_TRIPLET remote = { (uintptr_t)mem + 2048, length, key };
	struct kdat_request list[2] = {
		{ .op = KDAT_REQUEST_RDMA_WRITE, .num_segments = 1, .local_iov = &iov,
		  .remote_iov = &remote },
		{ .op = KDAT_REQUEST_SEND, .num_segments = 1, .local_iov = &iov },
	};
	DAT_REGION_DESCRIPTION region = {};
	DAT_PADDR page = virt_to_phys(mem);
	DAT_DTO_COOKIE cookie;

	u32 pick = tor_below(t, 13);
	bool good = false;

	cookie = cookie_next(c);
	region.for_physical = &page;
	PICK(0, dat_ep_post_recv, ep, 1, &iov, cookie, 0);
	PICK(1, dat_ep_post_recv, ep, 1, &iov, cookie, 0);
	PICK(2, dat_ep_post_recv, ep, 1, &iov, cookie, 0);
	PICK(3, dat_ep_post_send, ep, 1, &iov, cookie, 0);
	PICK(4, dat_ep_post_send, ep, 1, &iov, cookie, 0);
	PICK(5, dat_ep_post_rdma_write, ep, 1, &iov, cookie, &remote, 0);
	PICK(6, dat_ep_post_rdma_read, ep, 1, &iov, cookie, &remote, 0);
	PICK(7, dat_srq_post_recv, take(t, c, DAT_HANDLE_TYPE_SRQ), 1, &iov, cookie);
	PICK(8, dat_lmr_fmr, lmr, DAT_MEM_TYPE_PHYSICAL, region, 1, DAT_MEM_PRIV_ALL_FLAG, 0, ep,
	     cookie, 0, &out, NULL);
	PICK(9, dat_lmr_invalidate, lmr, ep, cookie, 0);
	PICK(10, dat_rmr_bind, take(t, c, DAT_HANDLE_TYPE_RMR), lmr, &iov, DAT_MEM_PRIV_ALL_FLAG,
	     0, ep, cookie, 0, &out);
	PICK(11, kdat_ep_post_rdma_write_immed, ep, 1, &iov, cookie, &remote, 0, pick);
	if (pick == 12) {
		list[0].user_cookie = cookie;
		list[1].user_cookie = cookie_next(c);
		good = posted(c, CALL_IT(kdat_ep_post_list, ep, list, 2, NULL));
	}
	posted(c, good);
}

static void post(struct tor *t, struct commons *c)
{
	unsigned long flags;

	switch (tor_below(t, 4)) {
	case 0:
		local_bh_disable();
		post_one(t, c);
		local_bh_enable();
		break;
	case 1:
		spin_lock_irqsave(&calm, flags);
		t->calm = true;
		post_one(t, c);
		t->calm = false;
		spin_unlock_irqrestore(&calm, flags);
		break;
	default:
		post_one(t, c);
	}
}

static void connect(struct tor *t, struct commons *c)
{
	DAT_EP_HANDLE ep = take(t, c, DAT_HANDLE_TYPE_EP);
	DAT_CR_HANDLE cr = take(t, c, DAT_HANDLE_TYPE_CR);
	struct sockaddr_storage addr = test_addr_port(&c->addr, 22000 + tor_below(t, 16));
	u32 pick = tor_below(t, 10);
	bool good __maybe_unused;

	PICK(0, dat_ep_disconnect, ep, tor_below(t, 2));
	PICK(1, dat_ep_reset, ep);
	PICK(2, dat_ep_dup_connect, ep, take(t, c, DAT_HANDLE_TYPE_EP), 2000000, 0, NULL,
	     DAT_QOS_BEST_EFFORT);
	PICK(3, dat_cr_accept, cr, tor_below(t, 2) ? ep : NULL, 0, NULL);
	PICK(4, dat_cr_reject, cr, 0, NULL);
	PICK(5, dat_cr_handoff, cr, READ_ONCE(c->port));
	PICK(6, dat_ep_common_connect, ep, (DAT_IA_ADDRESS_PTR)&addr, 2000000, 0, NULL);
	if (pick > 6)
		CALL_IT(dat_ep_connect, ep, (DAT_IA_ADDRESS_PTR)&c->addr,
			READ_ONCE(c->port) ?: 20000, 2000000, 0, NULL, DAT_QOS_BEST_EFFORT, 0);
}

static void look(struct tor *t, struct commons *c)
{
	DAT_EP_HANDLE ep = take(t, c, DAT_HANDLE_TYPE_EP);
	DAT_EVD_HANDLE evd = take(t, c, DAT_HANDLE_TYPE_EVD);
	DAT_SRQ_HANDLE srq = take(t, c, DAT_HANDLE_TYPE_SRQ);
	DAT_IA_HANDLE ia = take(t, c, DAT_HANDLE_TYPE_IA);
	struct kdat_conn_attr conn = KDAT_CONN_ATTR_INIT;
	DAT_LMR_TRIPLET iov = { (uintptr_t)mem, 8, READ_ONCE(c->key[0]) };
	DAT_CONTEXT context = {};
	union {
		DAT_EP_PARAM ep;
		DAT_EVD_PARAM evd;
		DAT_LMR_PARAM lmr;
		DAT_RMR_PARAM rmr;
		DAT_SRQ_PARAM srq;
		DAT_PSP_PARAM psp;
		DAT_RSP_PARAM rsp;
		DAT_CSP_PARAM csp;
		DAT_CR_PARAM cr;
		DAT_PZ_PARAM pz;
	} *p = kzalloc(sizeof(*p), GFP_KERNEL);
	DAT_HANDLE_TYPE type;
	DAT_EP_STATE state;
	DAT_LMR_CONTEXT key;
	DAT_VLEN length;
	DAT_HANDLE h;

	u32 pick = tor_below(t, 28);
	bool good __maybe_unused;

	if (!p)
		return;
	PICK(0, dat_ep_query, ep, DAT_EP_FIELD_ALL, &p->ep);
	PICK(1, dat_evd_query, evd, DAT_EVD_FIELD_ALL, &p->evd);
	PICK(2, dat_lmr_query, take(t, c, DAT_HANDLE_TYPE_LMR), DAT_LMR_FIELD_ALL, &p->lmr);
	PICK(3, dat_rmr_query, take(t, c, DAT_HANDLE_TYPE_RMR), DAT_RMR_FIELD_ALL, &p->rmr);
	PICK(4, dat_srq_query, srq, DAT_SRQ_FIELD_ALL, &p->srq);
	PICK(5, dat_psp_query, take(t, c, DAT_HANDLE_TYPE_PSP), DAT_PSP_FIELD_ALL, &p->psp);
	PICK(6, dat_rsp_query, take(t, c, DAT_HANDLE_TYPE_RSP), DAT_RSP_FIELD_ALL, &p->rsp);
	PICK(7, dat_csp_query, take(t, c, DAT_HANDLE_TYPE_CSP), DAT_CSP_FIELD_EVD_HANDLE, &p->csp);
	PICK(8, dat_cr_query, take(t, c, DAT_HANDLE_TYPE_CR), DAT_CR_FIELD_ALL, &p->cr);
	PICK(9, dat_pz_query, take(t, c, DAT_HANDLE_TYPE_PZ), DAT_PZ_FIELD_ALL, &p->pz);
	PICK(10, dat_ep_get_status, ep, &state, NULL, NULL);
	PICK(11, dat_ep_recv_query, ep, NULL, NULL);
	PICK(12, dat_ep_set_watermark, ep, 2, 4);
	PICK(13, kdat_ep_modify_conn, ep, &conn);
	PICK(14, kdat_ep_query_conn, ep, &conn);
	if (pick == 15)
		p->ep.pz_handle = take(t, c, DAT_HANDLE_TYPE_PZ);
	PICK(15, dat_ep_modify, ep, DAT_EP_FIELD_PZ_HANDLE, &p->ep);
	PICK(16, dat_srq_resize, srq, 1 + tor_below(t, 32));
	PICK(17, dat_srq_set_lw, srq, tor_below(t, 8));
	PICK(18, dat_set_consumer_context, ep, context);
	PICK(19, dat_get_consumer_context, evd, &context);
	PICK(20, dat_get_handle_type, srq, &type);
	PICK(21, dat_lmr_sync_rdma_read, ia, &iov, 1);
	PICK(22, dat_lmr_sync_rdma_write, ia, &iov, 1);
	PICK(23, kdat_lmr_next_contexts, take(t, c, DAT_HANDLE_TYPE_LMR), &key, &key);
	PICK(24, dat_ia_memtype_hint, ia, DAT_MEM_TYPE_VIRTUAL, 4096, 0, &length, &length);
	PICK(25, dat_ia_query, ia, NULL, 0, NULL, 0, NULL);
	PICK(26, dat_lmr_query, take(t, c, DAT_HANDLE_TYPE_LMR), DAT_LMR_FIELD_ALL, &p->lmr);
	PICK(26, kdat_lmr_by_context, ia, p->lmr.lmr_context, &h);
	PICK(27, dat_ia_reserved_lmr, ia, &h, &key);
	kfree(p);
}

static void events(struct tor *t, struct commons *c)
{
	static const DAT_UPCALL_POLICY policies[] = {
		DAT_UPCALL_DISABLE, DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_MANY, DAT_UPCALL_NOTIFY,
		DAT_UPCALL_TEARDOWN,
	};
	DAT_EVD_HANDLE evd = take(t, c, DAT_HANDLE_TYPE_EVD);
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };
	u32 i;

	switch (tor_below(t, 4)) {
	case 0:
		CALL_IT(dat_evd_modify_upcall, evd, policies[tor_below(t, 5)], NULL,
			tor_below(t, 2) ? DAT_UPCALL_INVOC_NEW : DAT_UPCALL_INVOC_ANY);
		break;
	case 1:
		CALL_IT(dat_evd_resize, evd, 1 + tor_below(t, 100));
		break;
	case 2:
		CALL_IT(dat_evd_post_se, evd, &event);
		break;
	default:
		for (i = 0; i < 32 && CALL_IT(dat_evd_dequeue, evd, &event); i++)
			one_event(c, &event);
	}
}

static void free_any(struct tor *t, struct commons *c)
{
	u32 kind = tor_below(t, TOR_KINDS);
	DAT_HANDLE *slot = slot_of(t, c, kind), h = READ_ONCE(*slot);

	/* all that is on it goes with it */
	if (kind == DAT_HANDLE_TYPE_IA && !tor_one_in(t, 8))
		return;
	/* it stays where it is, dead, for others to try */
	if (h && free_one(t, c, kind, h))
		tor_died(t, h);
}

static void commons_step(struct tor *t, struct commons *c)
{
	u32 pick = tor_below(t, 64);

	if (!READ_ONCE(c->slot[DAT_HANDLE_TYPE_IA][0]) || pick == 0)
		make_ia(t, c);
	else if (pick < 6)
		make_evd(t, c);
	else if (pick < 12)
		make_ep(t, c);
	else if (pick < 15)
		make_lmr(t, c);
	else if (pick < 21)
		make_other(t, c);
	else if (pick < 34)
		post(t, c);
	else if (pick < 44)
		connect(t, c);
	else if (pick < 52)
		look(t, c);
	else if (pick < 60)
		events(t, c);
	else
		free_any(t, c);
}

void commons_round(struct tor *t)
{
	struct commons *c = &commons[tor_below(t, tor_nias)];
	u32 i;

	for (i = 1; i < STEPS && !tor_stop(); i++) {
		tor_begin(t, i);
		commons_step(t, c);
		cond_resched();
	}
}

int commons_open(void)
{
	unsigned int i;

	mem = kzalloc(MEM, GFP_KERNEL);
	for (i = 0; i < tor_nias; i++)
		commons[i].ia = &tor_ias[i];
	return mem ? 0 : -ENOMEM;
}

/* When all threads have stopped. */
void commons_close(void)
{
	struct commons *c;
	struct tor *t = &in_upcall;
	unsigned int i, k;

	for (i = 0; i < tor_nias && mem; i++) {
		c = &commons[i];
		for (k = 0; k < 2; k++) {
			if (c->slot[DAT_HANDLE_TYPE_IA][k])
				CALL_IT(dat_ia_close, c->slot[DAT_HANDLE_TYPE_IA][k],
					DAT_CLOSE_ABRUPT_FLAG);
		}
		if (atomic64_read(&c->completed) > atomic64_read(&c->posted))
			tor_bad(t, "%llu completions of %llu operations",
				(u64)atomic64_read(&c->completed), (u64)atomic64_read(&c->posted));
	}
	kfree(mem);
}
