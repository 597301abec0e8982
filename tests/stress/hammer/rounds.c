// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A key is taken away while the peer uses it: by dat_lmr_invalidate(),
 * dat_lmr_free(), another dat_rmr_bind(), dat_rmr_free(), or by the peer itself.
 * The bytes change hands where the owner learns of it, in the upcall.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "kdhammer.h"

#define AREA	(5 * PAGE_SIZE)

static void then_secret(struct test_op *op)
{
	area_secret(op->arg);
}

/* A window anywhere, to the byte; or pages, now and then. */
static int window_open(struct area *area)
{
	u32 at, length;
	int err = area_open(area, AREA);

	if (err)
		return err;
	if (ham_below(3)) {
		at = 1 + ham_below(2 * PAGE_SIZE);
		length = 1 + ham_below(AREA - at - 1);
	} else {
		at = PAGE_SIZE;
		length = PAGE_SIZE * (1 + ham_below(3));
	}
	area_window(area, at, length, WINDOW);
	return 0;
}

/* dat_lmr_kcreate(); all: of the whole area, else of the window. */
int lmr_over(const struct area *area, bool all, DAT_MEM_PRIV_FLAGS rights, DAT_LMR_HANDLE *lmr,
	     DAT_LMR_CONTEXT *lkey, DAT_RMR_CONTEXT *rkey)
{
	return test_lmr(&ham_owner, ham_owner.pz, area->p + (all ? 0 : area->at),
			all ? area->size : area->length, rights, lmr, lkey, rkey);
}

static int fmr_new(DAT_LMR_HANDLE *lmr)
{
	return TRY(dat_lmr_allocate, ham_owner.h, ham_owner.pz, 16, DAT_LMR_SCOPE_PZ, lmr);
}

/* On the hammered connection, a part of an LMR. */
static int rmr_bind(DAT_RMR_HANDLE rmr, DAT_LMR_HANDLE lmr, u64 addr, u32 length,
		    DAT_MEM_PRIV_FLAGS rights, struct test_op *op, DAT_RMR_CONTEXT *key)
{
	DAT_LMR_TRIPLET part = { .virtual_address = addr, .segment_length = length };
	DAT_LMR_PARAM param;
	int err = TRY(dat_lmr_query, lmr, DAT_LMR_FIELD_ALL, &param);

	part.lmr_context = param.lmr_context;
	if (!length && ham_below(2)) {	/* nothing may be said in more than one way */
		part = (DAT_LMR_TRIPLET) {};
		rights = 0;
	}
	return err ?: TRY(dat_rmr_bind, rmr, lmr, &part, rights, DAT_VA_TYPE_VA,
			  ham_link.owner.conn.ep, test_cookie(op),
			  ham_below(2) ? DAT_COMPLETION_BARRIER_FENCE_FLAG : 0, key);
}

/* Carried out, without anything else going on. */
static int rmr_bound(DAT_RMR_HANDLE rmr, DAT_LMR_HANDLE lmr, u64 addr, u32 length,
		     DAT_MEM_PRIV_FLAGS rights, DAT_RMR_CONTEXT *key)
{
	struct test_op op;

	test_op_init(&op, NULL, NULL);
	return rmr_bind(rmr, lmr, addr, length, rights, &op, key) ?: test_op_good(&op, "bind");
}

static int fmr_pages(struct area *area, u64 *pages)
{
	int i, err = area_sg(area);

	for (i = 0; i < area->nents && !err; i++)
		pages[i] = sg_phys(&area->sg[i]);
	return err;
}

/* dat_lmr_fmr() of the window, carried out. */
static int fmr_over(DAT_LMR_HANDLE lmr, struct area *area, DAT_LMR_CONTEXT *lkey,
		    DAT_RMR_CONTEXT *rkey, u64 *addr)
{
	bool aligned = !((area->at | area->length) & ~PAGE_MASK) && ham_below(2);
	DAT_VA_TYPE va = !(area->at & ~PAGE_MASK) && ham_below(2) ? DAT_VA_TYPE_ZB : DAT_VA_TYPE_VA;
	DAT_REGION_DESCRIPTION region = {};
	DAT_LMR_CONTEXT next_l;
	DAT_RMR_CONTEXT next_r;
	struct kdat_sg sg = { .sgl = area->sg };
	DAT_PADDR pages[ARRAY_SIZE(area->sg)];
	DAT_LMR_COOKIE cookie;
	struct test_op op;
	int err;

	test_op_init(&op, NULL, area);
	cookie = test_cookie(&op);
	err = fmr_pages(area, pages) ?: TRY(kdat_lmr_next_contexts, lmr, &next_l, &next_r);
	if (err)
		return err;
	if (aligned) {
		region.for_physical = pages;
		err = TRY(dat_lmr_fmr, lmr, DAT_MEM_TYPE_PHYSICAL, region, area->nents,
			  DAT_MEM_PRIV_ALL_FLAG, va, ham_link.owner.conn.ep, cookie, 0, lkey, rkey);
		*addr = va == DAT_VA_TYPE_ZB ? 0 : pages[0];
	} else {
		sg.nents = area->nents;
		sg.length = area->length;
		err = TRY(kdat_lmr_fmr_sg, lmr, &sg, DAT_MEM_PRIV_ALL_FLAG, va,
			  ham_link.owner.conn.ep, cookie, 0, lkey, rkey, addr);
	}
	if (err)
		return err;
	err = test_op_good(&op, "fmr");
	if (!err && (*lkey != next_l || *rkey != next_r))
		err = fail("fmr has given other keys than were foretold");
	return err;
}

static int lmr_bound(DAT_LMR_HANDLE lmr, bool bound, const char *when)
{
	DAT_LMR_PARAM param;
	int err = TRY(dat_lmr_query, lmr, DAT_LMR_FIELD_ALL, &param);

	if (!err && param.lmr_state.bound != (bound ? DAT_TRUE : DAT_FALSE))
		return fail("%s: the LMR is%s bound", when, bound ? " not" : "");
	return err;
}

/* The connection has ended, and nothing has moved since; a new one. */
static int broken(struct area *area, const char *when)
{
	return link_over(&ham_link) ?: area_check(area, when) ?: link_again(&ham_link);
}

static int fire(u32 rkey, u64 addr, u32 length)
{
	return hammer_start(&ham_link, rkey, addr, length) ?:
	       hammer_wait(&ham_link, 1 + ham_below(100));
}

/* ---- (a) dat_lmr_invalidate() ---- */

static int invalidate(DAT_LMR_HANDLE lmr, struct link *via, struct area *area, struct test_op *op)
{
	static const DAT_COMPLETION_FLAGS flags[] = {
		DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_BARRIER_FENCE_FLAG,
		DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG,
	};
	int err;

	test_op_init(op, then_secret, area);
	err = TRY(dat_lmr_invalidate, lmr, via->owner.conn.ep, test_cookie(op),
		  flags[ham_below(ARRAY_SIZE(flags))]);
	if (!err)
		err = test_op_wait(op, "invalidate");
	if (!err && op->operation != DAT_DTO_LMR_INVALIDATE)
		err = fail("its completion is that of operation %d", op->operation);
	return err;
}

static int one_invalidate(void *p)
{
	DAT_LMR_HANDLE lmr = p;
	struct link *via = ham_below(2) ? &ham_link : &ham_other;
	DAT_LMR_CONTEXT lkey;
	DAT_RMR_CONTEXT rkey;
	struct area area;
	struct test_op op;
	u64 addr;
	int err;

	err = window_open(&area) ?: fmr_over(lmr, &area, &lkey, &rkey, &addr) ?:
	      fire(rkey, addr, area.length) ?: invalidate(lmr, via, &area, &op);
	if (err)
		return err;	/* the memory may be in use */
	if (op.status == DAT_DTO_ERR_FLUSHED && via == &ham_link) {
		/* The peer's error was faster than the completion: it is bound as before. */
		err = lmr_bound(lmr, true, "after a flushed invalidate") ?:
		      link_over(&ham_link) ?: area_check_guards(&area, "flushed invalidate") ?:
		      link_again(&ham_link) ?: invalidate(lmr, &ham_link, &area, &op);
		if (!err && op.status != DAT_DTO_SUCCESS)
			err = fail("invalidate, again: %s", kdat_dto_status_name(op.status));
		if (!err)
			err = area_check(&area, "after the second invalidate");
	} else if (op.status != DAT_DTO_SUCCESS) {
		err = fail("invalidate: %s", kdat_dto_status_name(op.status));
	} else {
		err = lmr_bound(lmr, false, "after invalidate") ?: broken(&area, "invalidate");
	}
	if (!err)
		area_close(&area);
	return err;
}

/* So often, and each time the other connection must not have noticed. */
static int repeat(const char *what, char *arg, int (*one)(void *p), void *p)
{
	u32 n = number(arg), i;
	int err = 0;

	for (i = 0; i < n && !err; i++)
		err = one(p) ?: link_talk(&ham_other) ?: failed() ? -EIO : 0;
	pr_info("%s %s rounds=%u messages=%llu late=%llu\n", err ? "FAIL" : "PASS", what, i,
		ham_moved, ham_slack);
	return err;
}

/* invalidate N */
int do_invalidate(char *arg)
{
	DAT_LMR_HANDLE lmr;

	return fmr_new(&lmr) ?: repeat("invalidate", arg, one_invalidate, lmr) ?:
	       TRY(dat_lmr_free, lmr);
}

/* ---- (b) dat_lmr_free() ---- */

static int one_free(void *p)
{
	bool fmr = ham_below(2);
	/* Where soft-iWARP does not copy alone it may be a segment late (D-26). */
	bool for_good = ham_below(2) && (ham_exact || !ham_owner.iwarp);
	DAT_LMR_CONTEXT lkey;
	DAT_RMR_CONTEXT rkey;
	DAT_LMR_HANDLE lmr;
	struct area area;
	u64 addr;
	int err = window_open(&area);

	if (err)
		return err;
	if (fmr) {
		err = fmr_new(&lmr) ?: fmr_over(lmr, &area, &lkey, &rkey, &addr);
	} else {
		err = lmr_over(&area, false, DAT_MEM_PRIV_ALL_FLAG, &lmr, &lkey, &rkey);
		addr = (uintptr_t)area.p + area.at;
	}
	err = err ?: fire(rkey, addr, area.length) ?: TRY(dat_lmr_free, lmr);
	if (err)
		return err;
	area_secret(&area);
	if (for_good) {
		err = area_check_guards(&area, "free");
		area_close(&area);
		return err ?: link_over(&ham_link) ?: link_again(&ham_link);
	}
	err = broken(&area, "free");
	if (!err)
		area_close(&area);
	return err;
}

/* free N */
int do_free(char *arg)
{
	return repeat("free", arg, one_free, NULL);
}

/* ---- (c) dat_rmr_bind(), dat_rmr_free() ---- */

struct part {
	u32 at, length;
};

struct window {
	struct area area;		/* its window is the part that is being closed */
	struct part part[2];		/* the first one is the lower one */
	int now;			/* the part that is open */
	DAT_LMR_HANDLE lmr;
	DAT_RMR_HANDLE rmr;
	DAT_RMR_CONTEXT rkey;
	bool bound;
};

static int parts_guards(struct window *w, const char *when)
{
	const struct part *a = &w->part[0], *b = &w->part[1];
	u32 a_end = a->at + a->length, b_end = b->at + b->length;

	return area_is(&w->area, 0, a->at, GUARD, when) ?:
	       area_is(&w->area, a_end, b->at - a_end, GUARD, when) ?:
	       area_is(&w->area, b_end, w->area.size - b_end, GUARD, when);
}

static void part_fill(struct window *w, int i, u8 value)
{
	memset(w->area.p + w->part[i].at, value, w->part[i].length);
}

static int part_is(struct window *w, int i, u8 value, const char *when)
{
	return area_is(&w->area, w->part[i].at, w->part[i].length, value, when);
}

/* The old part is closed, and the new one is as it was before. */
static void then_rebound(struct test_op *op)
{
	struct window *w = container_of((struct area *)op->arg, struct window, area);

	if (part_is(w, !w->now, LATER, "the new window at the completion of its bind"))
		op->bad = true;
	area_secret(op->arg);
}

static u64 part_addr(struct window *w, int i)
{
	return (uintptr_t)w->area.p + w->part[i].at;
}

static int bind_quietly(struct window *w)
{
	int err = rmr_bound(w->rmr, w->lmr, part_addr(w, w->now), w->part[w->now].length,
			    REMOTE_RIGHTS, &w->rkey);

	w->bound = !err;
	return err;
}

/*
 * After a flushed bind it is either as before or not bound to anything. Whether the old
 * key still works nobody knows: the device may have ended it and not said so.
 */
static int after_flush(struct window *w)
{
	DAT_RMR_PARAM param;
	int err = link_over(&ham_link) ?: parts_guards(w, "flushed bind") ?:
		  TRY(dat_rmr_query, w->rmr, DAT_RMR_FIELD_ALL, &param);

	if (err)
		return err;
	if (param.rmr_context && param.rmr_context != w->rkey)
		return fail("a flushed bind has changed the key");
	w->bound = false;
	return link_again(&ham_link);
}

static void parts_choose(struct window *w)
{
	u32 middle = PAGE_SIZE + ham_below(3 * PAGE_SIZE);

	w->part[0].at = 1 + ham_below(middle - 2);
	w->part[0].length = 1 + ham_below(middle - w->part[0].at - 1);
	w->part[1].at = middle + 1 + ham_below(AREA - middle - 3);
	w->part[1].length = 1 + ham_below(AREA - w->part[1].at - 1);
}

static int one_rebind(void *p)
{
	struct window *w = p;
	const struct part *now = &w->part[w->now];
	DAT_RMR_CONTEXT key = 0, old;
	u32 how = ham_below(4);
	struct test_op op;
	int err;

	if (!w->bound)
		parts_choose(w);
	area_window(&w->area, now->at, now->length, WINDOW);
	part_fill(w, !w->now, LATER);
	err = w->bound ? 0 : bind_quietly(w);
	err = err ?: fire(w->rkey, part_addr(w, w->now), now->length);
	if (err)
		return err;
	if (how == 3) {		/* free it, and make another */
		err = TRY(dat_rmr_free, w->rmr);
		if (err)
			return err;
		area_secret(&w->area);
		w->bound = false;
		return link_over(&ham_link) ?: parts_guards(w, "RMR freed") ?:
		       area_check_secret(&w->area, "RMR freed") ?:
		       part_is(w, !w->now, LATER, "RMR freed") ?: link_again(&ham_link) ?:
		       TRY(dat_rmr_create, ham_owner.pz, &w->rmr);
	}
	test_op_init(&op, how == 2 ? then_secret : then_rebound, &w->area);
	err = rmr_bind(w->rmr, w->lmr, part_addr(w, !w->now),
		       how == 2 ? 0 : w->part[!w->now].length, REMOTE_RIGHTS, &op, &key) ?:
	      test_op_wait(&op, "bind");
	if (err)
		return err;
	if (op.status == DAT_DTO_ERR_FLUSHED)
		return after_flush(w);
	if (op.status != DAT_DTO_SUCCESS)
		return fail("bind: %s", kdat_dto_status_name(op.status));
	err = link_over(&ham_link) ?: parts_guards(w, "bind") ?:
	      area_check_secret(&w->area, "bind") ?:
	      part_is(w, !w->now, LATER, "the new window, through the old key") ?:
	      link_again(&ham_link);
	w->bound = how != 2;
	if (err || how == 2)
		return err;
	/* The new window works, to the byte. */
	if (key == w->rkey)
		return fail("the key is the same as before");
	old = w->rkey;
	w->rkey = key;
	w->now = !w->now;
	part_fill(w, w->now, WINDOW);
	err = fire(key, part_addr(w, w->now), w->part[w->now].length);
	if (err)
		return fail("the new window (key 0x%x, before 0x%x)", key, old);
	return hammer_stop(&ham_link) ?:
	       parts_guards(w, "the new window") ?:
	       part_is(w, !w->now, SECRET, "the old window, later");
}

static int window_rmr(struct window *w)
{
	return area_open(&w->area, AREA) ?:
	       lmr_over(&w->area, true, LOCAL_RIGHTS, &w->lmr, NULL, NULL) ?:
	       TRY(dat_rmr_create, ham_owner.pz, &w->rmr);
}

static int window_free(struct window *w)
{
	int err = TRY(dat_rmr_free, w->rmr) ?: TRY(dat_lmr_free, w->lmr);

	area_close(&w->area);
	return err;
}

/* rebind N */
int do_rebind(char *arg)
{
	struct window *w = kzalloc(sizeof(*w), GFP_KERNEL);
	int err;

	if (!w)
		return -ENOMEM;
	err = window_rmr(w) ?: repeat("rebind", arg, one_rebind, w);
	if (err)
		return err;	/* the memory may be in use */
	err = window_free(w);
	kfree(w);
	return err;
}

/* ---- (d) the peer takes it away itself ---- */

struct remote {
	struct area area;
	DAT_LMR_HANDLE lmr;
	DAT_RMR_HANDLE rmr;
	DAT_RMR_CONTEXT rkey;
	u64 addr;
};

/* Exposed as an LMR of either kind or as an RMR. */
static int remote_open(struct remote *r, u32 how)
{
	DAT_LMR_CONTEXT lkey;
	int err;

	if (how == 0)
		return fmr_new(&r->lmr) ?:
		       fmr_over(r->lmr, &r->area, &lkey, &r->rkey, &r->addr);
	r->addr = (uintptr_t)r->area.p + r->area.at;
	err = lmr_over(&r->area, how == 2, how == 1 ? DAT_MEM_PRIV_ALL_FLAG : LOCAL_RIGHTS,
		       &r->lmr, &lkey, &r->rkey);
	if (err || how == 1)
		return err;
	return TRY(dat_rmr_create, ham_owner.pz, &r->rmr) ?:
	       rmr_bound(r->rmr, r->lmr, r->addr, r->area.length, REMOTE_RIGHTS, &r->rkey);
}

static int remote_is_gone(struct remote *r)
{
	DAT_RMR_PARAM param;
	int err;

	if (!r->rmr)
		return lmr_bound(r->lmr, false, "after the peer's invalidate");
	err = TRY(dat_rmr_query, r->rmr, DAT_RMR_FIELD_ALL, &param);
	if (!err && param.rmr_context)
		return fail("the RMR is bound after the peer's invalidate");
	return err;
}

static int one_remote(void *p)
{
	struct remote r = {};
	struct test_op recv, send;
	int err;

	test_op_init(&recv, then_secret, &r.area);
	test_op_init(&send, NULL, NULL);
	err = window_open(&r.area) ?: remote_open(&r, ham_below(3)) ?:
	      fire(r.rkey, r.addr, r.area.length);
	if (err)
		return err;
	WRITE_ONCE(ham_link.inbox_op, &recv);
	err = peer_send_inv(&ham_link, &send, r.rkey) ?:
	      test_op_wait(&send, "Send with invalidate") ?:
	      test_op_wait(&recv, "Receive with invalidate");
	if (err)
		return err;
	if (recv.operation != DAT_DTO_RECEIVE_WITH_INVALIDATE || recv.key != r.rkey)
		err = fail("the Receive: operation %d, key 0x%x instead of 0x%x", recv.operation,
			   recv.key, r.rkey);
	if (send.status != DAT_DTO_SUCCESS && send.status != DAT_DTO_ERR_FLUSHED)
		err = fail("the Send: %s", kdat_dto_status_name(send.status));
	err = err ?: remote_is_gone(&r) ?: broken(&r.area, "Send with invalidate");
	if (!err && r.rmr)
		err = TRY(dat_rmr_free, r.rmr);
	if (!err)
		err = TRY(dat_lmr_free, r.lmr);
	if (!err)
		area_close(&r.area);
	return err;
}

/* remote N */
int do_remote(char *arg)
{
	return repeat("remote", arg, one_remote, NULL);
}
