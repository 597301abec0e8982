// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Operations on memory: fmr and invalidate of an LMR, binds of an RMR. Each of them with all
 * flags; when it fails, is refused, flushed or not possible; when the queue is full; and when
 * LMR or RMR are freed meanwhile. What a peer still reaches is what the provider says, and the
 * next connection can go on with it.
 */
#include <linux/kthread.h>
#include <linux/mm.h>

#include "kd_mem.h"

#define ME_ADDR(km)	((km)->env.mem[KD_RW].addr)
#define ME_KEY(km)	((km)->env.mem[KD_RW].lmr_context)

enum me_op { ME_FMR, ME_INV, ME_BIND, ME_REBIND, ME_UNBIND, ME_OPS };

static const char * const me_names[ME_OPS] = { "fmr", "invalidate", "bind", "rebind", "unbind" };

/**
 * struct me - an operation, and the LMR or RMR it is for
 * @km: environment
 * @op: operation
 * @lmr: LMR, or
 * @rmr: RMR, over the LMR that has all rights
 * @was: key that was in effect before, or 0
 * @new: key that it gave, or 0
 */
struct me {
	struct km *km;
	enum me_op op;
	DAT_LMR_HANDLE lmr;
	DAT_RMR_HANDLE rmr;
	u32 was;
	u32 new;
};

static bool me_is_rmr(const struct me *me)
{
	return me->op >= ME_BIND;
}

static DAT_RETURN me_window(struct me *me, u32 offset, u32 length, u64 cookie, int flags,
			    u32 *key)
{
	return km_try_rmr(me->km, me->rmr, length ? me->km->env.mem[KD_RW].lmr : NULL,
			  ME_ADDR(me->km) + offset, length, ME_KEY(me->km), KM_REMOTE, flags,
			  cookie, key);
}

static DAT_RETURN me_try(struct me *me, u64 cookie, int flags)
{
	struct km_keys keys = {};
	DAT_RETURN ret;
	u32 none;

	switch (me->op) {
	case ME_FMR:
		ret = km_try_fmr(me->km, me->lmr, 0, 2, DAT_MEM_PRIV_ALL_FLAG, flags, cookie,
				 &keys);
		me->new = keys.lmr;
		return ret;
	case ME_INV:
		return km_try_inv(me->km, me->lmr, flags, cookie);
	case ME_UNBIND:
		return me_window(me, 0, 0, cookie, flags, &none);
	default:
		return me_window(me, 16, 8, cookie, flags, &me->new);
	}
}

/* It has come back, and the key is in effect. */
static u32 me_bound(struct me *me)
{
	struct km *km = me->km;
	struct km_keys keys;
	u32 key;

	if (!me_is_rmr(me)) {
		km_bind(km, me->lmr, 0, 2, DAT_MEM_PRIV_ALL_FLAG, &keys);
		return keys.lmr;
	}
	KD_ASSERT_OK(km->env.test, me_window(me, 0, 8, 0xb0, 0, &key));
	fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS);
	km_expect_bind(km, me->rmr, 0xb0, DAT_RMR_BIND_SUCCESS);
	return key;
}

/* Everything is as the operation needs it. */
static void me_new(struct km *km, enum me_op op, struct me *me)
{
	*me = (struct me) { .km = km, .op = op };
	if (me_is_rmr(me))
		me->rmr = km_rmr(km, false);
	else
		me->lmr = km_lmr(km, 2, DAT_LMR_SCOPE_PZ);
	if (op != ME_FMR && op != ME_BIND)
		me->was = me_bound(me);
}

static void me_start(struct km *km, enum me_op op, struct me *me)
{
	me_new(km, op, me);
	KD_ASSERT_OK(km->env.test, me_try(me, 1, 0));
}

static void me_drop(struct me *me)
{
	if (me_is_rmr(me))
		km_drop_rmr(me->km, me->rmr);
	else
		km_drop_lmr(me->km, me->lmr);
}

enum me_end { ME_DONE, ME_FLUSHED, ME_FAILED };

/* Its event, and no other one. */
static void me_expect(struct me *me, u64 cookie, enum me_end end)
{
	static const int rmr[] = {
		DAT_RMR_BIND_SUCCESS, DAT_RMR_BIND_FAILURE, DAT_RMR_OPERATION_FAILED,
	};
	static const int lmr[] = {
		DAT_DTO_SUCCESS, DAT_DTO_ERR_FLUSHED, DAT_DTO_ERR_LOCAL_MM_ERROR,
	};

	if (me_is_rmr(me))
		km_expect_bind(me->km, me->rmr, cookie, rmr[end]);
	else
		km_expect(me->km, me->op == ME_FMR ? DAT_DTO_LMR_FMR : DAT_DTO_LMR_INVALIDATE,
			  cookie, lmr[end]);
	KD_EXPECT_EMPTY(me->km->env.test, me->km->env.req);
}

/* Does an RMR hold the LMR? That is freed and made anew if not. */
static bool me_held(struct km *km)
{
	struct kd_mem *mem = &km->env.mem[KD_RW];
	DAT_REGION_DESCRIPTION region = { .for_va = km->env.buf + KD_RW * KD_MEM_SIZE };
	DAT_RETURN ret = dat_lmr_free(mem->lmr);

	if (ret != DAT_SUCCESS) {
		KD_EXPECT_RET(km->env.test, ret, DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE);
		return true;
	}
	mem->lmr = DAT_HANDLE_NULL;
	KD_EXPECT_OK(km->env.test, dat_lmr_kcreate(km->env.ia, DAT_MEM_TYPE_VIRTUAL, region,
						   KD_MEM_SIZE, km->env.pz, DAT_MEM_PRIV_ALL_FLAG,
						   DAT_VA_TYPE_VA, DAT_MEM_OPTIMIZE_DONT_CARE,
						   &mem->lmr, &mem->lmr_context, &mem->rmr_context,
						   NULL, NULL));
	return false;
}

/* What was before is in effect, or nothing. */
static void me_says(struct me *me, bool bound, const char *what)
{
	struct kunit *test = me->km->env.test;
	struct fake_ib *dev = me->km->env.dev;
	DAT_RMR_PARAM param;

	if (me->was)
		KUNIT_EXPECT_EQ_MSG(test, fake_ib_mr_valid(dev, me->was), bound, "%s %s",
				    me_names[me->op], what);
	if (me->new)
		KUNIT_EXPECT_FALSE_MSG(test, fake_ib_mr_valid(dev, me->new), "%s %s",
				       me_names[me->op], what);
	KUNIT_EXPECT_EQ_MSG(test, me_is_rmr(me) ? me_held(me->km) : km_bound(me->km, me->lmr),
			    bound, "%s %s", me_names[me->op], what);
	if (!me_is_rmr(me) || !bound)
		return;
	KD_EXPECT_OK(test, dat_rmr_query(me->rmr, DAT_RMR_FIELD_ALL, &param));
	KUNIT_EXPECT_EQ_MSG(test, param.rmr_context, me->was, "%s %s", me_names[me->op], what);
}

/* And the next connection goes on with it, to the end. */
static void me_check(struct me *me, bool bound, const char *what)
{
	struct km *km = me->km;
	struct kunit *test = km->env.test;
	u32 key;

	me_says(me, bound, what);
	km_ep_free(km, 0);
	km_ep(km, 0, NULL);
	kd_connect(&km->env);
	if (me->lmr && bound) {
		km_usable(km, me->was, km->pa[0]);
		km_unbind(km, me->lmr);
	} else if (me->lmr) {
		KM_EXPECT_TYPE(test, km_send(km, me->new ?: me->was, km->pa[0], 8, 2),
			       DAT_PRIVILEGES_VIOLATION);
	}
	key = me_bound(me);
	KUNIT_EXPECT_NE(test, key, me->new);
	KUNIT_EXPECT_TRUE_MSG(test, fake_ib_mr_valid(km->env.dev, key), "%s", what);
	if (me->was)
		KUNIT_EXPECT_FALSE_MSG(test, fake_ib_mr_valid(km->env.dev, me->was), "%s", what);
	KUNIT_EXPECT_EQ(test, fake_ib_valid_mrs(km->env.dev), KD_NR_MEMS + 1);
	me_drop(me);
}

static void me_broken(struct km *km)
{
	KUNIT_EXPECT_EQ(km->env.test, kd_expect_end(&km->env),
			(u32)DAT_CONNECTION_EVENT_BROKEN);
}

static bool me_legal(int flags, int more, int attr)
{
	int legal = DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_UNSIGNALLED_FLAG |
		    DAT_COMPLETION_BARRIER_FENCE_FLAG | more;

	return !(flags & ~legal) && (!(flags & DAT_COMPLETION_UNSIGNALLED_FLAG) ||
				     attr == DAT_COMPLETION_UNSIGNALLED_FLAG);
}

/* All flags, on an EP that has unsignalled requests or does not: refused, or what they say. */
static void me_flags(struct km *km, enum me_op op, int flags, int attr)
{
	static const struct { u32 arg; int fence; } calls[ME_OPS] = {
		[ME_FMR] = { DAT_INVALID_ARG9, DAT_COMPLETION_BARRIER_FENCE_FLAG },
		[ME_INV] = { DAT_INVALID_ARG4, DAT_COMPLETION_BARRIER_FENCE_FLAG |
					       DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG },
		[ME_BIND] = { DAT_INVALID_ARG8, DAT_COMPLETION_BARRIER_FENCE_FLAG },
		[ME_REBIND] = { DAT_INVALID_ARG8, -1 },
		[ME_UNBIND] = { DAT_INVALID_ARG8, -1 },
	};
	bool silent = flags & DAT_COMPLETION_SUPPRESS_FLAG;
	struct kunit *test = km->env.test;
	struct km_trace before;
	struct fake_ib_wr wr;
	struct me me;

	me_new(km, op, &me);
	km_trace(km, &before);
	if (!me_legal(flags, op == ME_INV ? DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG : 0, attr)) {
		KUNIT_EXPECT_EQ_MSG(test, (u32)me_try(&me, 1, flags),
				    (u32)DAT_ERROR(DAT_INVALID_PARAMETER, calls[op].arg), "%s %#x",
				    me_names[op], flags);
		km_untouched(km, &before, me_names[op]);
		if (me.was)
			KUNIT_EXPECT_TRUE(test, fake_ib_mr_valid(km->env.dev, me.was));
		me_drop(&me);
		return;
	}
	KD_EXPECT_OK(test, me_try(&me, 1, flags));
	km_last(km, &wr);
	if (calls[op].fence != -1)
		KUNIT_EXPECT_EQ_MSG(test, !!(wr.send_flags & IB_SEND_FENCE),
				    !!(flags & calls[op].fence), "%s %#x", me_names[op], flags);
	/* the ends of the others free memory: noticed, even if not told */
	if (op != ME_FMR || !silent)
		KUNIT_EXPECT_TRUE(test, wr.send_flags & IB_SEND_SIGNALED);
	fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS);
	if (!silent)
		me_expect(&me, 1, ME_DONE);
	KD_EXPECT_EMPTY(test, km->env.req);
	if (me.was)
		KUNIT_EXPECT_FALSE(test, fake_ib_mr_valid(km->env.dev, me.was));
	if (me.new)
		KUNIT_EXPECT_TRUE(test, fake_ib_mr_valid(km->env.dev, me.new));
	/* a silent fmr is known to be over by what comes behind it */
	KD_EXPECT_OK(test, km_send(km, ME_KEY(km), ME_ADDR(km), 1, 5));
	km_done(km, IB_WC_SUCCESS);
	km_expect(km, DAT_DTO_SEND, 5, DAT_DTO_SUCCESS);
	me_drop(&me);
}

static void me_flags_test(struct kunit *test)
{
	static const int attrs[] = { DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_UNSIGNALLED_FLAG };
	struct km *km = km_open(test, NULL);
	DAT_EP_ATTR attr;
	int i, op, flags;

	for (i = 0; i < ARRAY_SIZE(attrs); i++) {
		kd_attr(&attr);
		attr.request_completion_flags = attrs[i];
		km_ep(km, 0, &attr);
		kd_connect(&km->env);
		for (op = 0; op < ME_OPS; op++) {
			for (flags = 0; flags < 256; flags = flags < 64 ? flags + 1 : flags << 1)
				me_flags(km, op, flags, attrs[i]);
			me_flags(km, op, -1, attrs[i]);
		}
		km_ep_free(km, 0);
	}
}

/* What is of one EP at a time: only the one that has bound it may use it or end it. */
static void me_scope_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	struct me own = { .km = km, .op = ME_INV }, win = { .km = km, .op = ME_UNBIND };
	struct me any = { .km = km, .op = ME_INV }, all = { .km = km, .op = ME_UNBIND };
	DAT_LMR_TRIPLET iov;
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 8, 0x77);
	struct km_trace before;
	int call, end;
	u32 key;

	own.lmr = km_lmr(km, 2, DAT_LMR_SCOPE_EP);
	any.lmr = km_lmr(km, 2, DAT_LMR_SCOPE_ANY);
	win.rmr = km_rmr(km, true);
	all.rmr = km_rmr(km, false);
	own.was = me_bound(&own);
	any.was = me_bound(&any);
	me_bound(&win);
	me_bound(&all);
	km_ep(km, 1, NULL);
	kd_connect(&km->env);
	/* of the other one, then anybody's, then this one's */
	for (end = 0; end < 2; end++) {
		km_use(km, !end);
		km_trace(km, &before);
		iov = (DAT_LMR_TRIPLET) { km->pa[0], 8, own.was };
		for (call = 0; call < KD_NR_CALLS; call++)
			KM_EXPECT_TYPE(test, kd_post(km->env.ep, call, 1, &iov, 1, &remote, 0),
				       DAT_PROTECTION_VIOLATION);
		KM_EXPECT_TYPE(test, me_try(&own, 1, 0), DAT_PROTECTION_VIOLATION);
		KM_EXPECT_TYPE(test, me_window(&win, 8, 8, 3, 0, &key), DAT_PROTECTION_VIOLATION);
		KM_EXPECT_TYPE(test, me_try(&win, 3, 0), DAT_PROTECTION_VIOLATION);
		km_untouched(km, &before, "of another EP");
		km_usable(km, any.was, km->pa[0]);
		me_bound(&all);
		km_use(km, end);
		km_usable(km, own.was, km->pa[0]);
		km_unbind(km, own.lmr);
		KD_EXPECT_OK(test, me_try(&win, 5, 0));
		km_done(km, IB_WC_SUCCESS);
		me_expect(&win, 5, ME_DONE);
		km_use(km, !end);
		own.was = me_bound(&own);
		me_bound(&win);
	}
	km_unbind(km, any.lmr);
}

static void me_fails_test(struct kunit *test)
{
	static const enum ib_wc_status why[] = {
		IB_WC_LOC_QP_OP_ERR, IB_WC_LOC_PROT_ERR, IB_WC_MW_BIND_ERR, IB_WC_LOC_ACCESS_ERR,
		IB_WC_GENERAL_ERR, IB_WC_FATAL_ERR,
	};
	struct km *km = km_connected(test, NULL);
	struct me me;
	int op, i;

	for (i = 0; i < ARRAY_SIZE(why); i++) {
		for (op = 0; op < ME_OPS; op++) {
			me_start(km, op, &me);
			/* the first of two when it is bound anew: the old key survives */
			km_done(km, why[i]);
			if (op == ME_REBIND)
				KD_EXPECT_EMPTY(test, km->env.req);
			else
				me_expect(&me, 1, ME_FAILED);
			me_broken(km);
			if (op == ME_REBIND)
				me_expect(&me, 1, ME_FAILED);
			me_check(&me, !!me.was, "failed");
		}
		/* the second of two: the old key is gone, and nothing has come for it */
		me_start(km, ME_REBIND, &me);
		km_done(km, IB_WC_SUCCESS);
		KD_EXPECT_EMPTY(test, km->env.req);
		km_done(km, why[i]);
		me_expect(&me, 1, ME_FAILED);
		me_broken(km);
		me_check(&me, false, "second failed");
	}
	/* suppressed, it is reported all the same */
	me_new(km, ME_FMR, &me);
	KD_EXPECT_OK(test, me_try(&me, 3, DAT_COMPLETION_SUPPRESS_FLAG));
	km_done(km, IB_WC_LOC_PROT_ERR);
	me_expect(&me, 3, ME_FAILED);
	me_broken(km);
	me_check(&me, false, "failed in silence");
}

/* The device does not take a legal request: the same as if it had come too late. */
static void me_refused_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	struct kdapl_lmr *obj;
	struct ib_mr *ibmr;
	struct me me;
	int op;

	for (op = 0; op < ME_OPS; op++) {
		me_new(km, op, &me);
		obj = me.lmr ? kdapl_obj_get(me.lmr, DAT_HANDLE_TYPE_LMR) : NULL;
		ibmr = obj ? obj->mr.ibmr : NULL;
		fake_ib_fail(km->env.dev, FAKE_IB_POST_SEND, 1, -ENOMEM);
		KD_EXPECT_OK(test, me_try(&me, 1, 0));
		me_broken(km);
		me_expect(&me, 1, ME_FLUSHED);
		if (obj) {
			/* the device has never seen it, so there is no doubt about the region */
			km_ep_free(km, 0);
			KUNIT_EXPECT_PTR_EQ(test, obj->mr.ibmr, ibmr);
			kdapl_obj_put(&obj->obj);
		}
		me_check(&me, !!me.was, "refused");
	}
}

/* Flushed, and told by an event, or by none since the EP is reset first. */
static void me_flush_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	struct me me;
	int op, reset;

	for (op = 0; op < ME_OPS; op++) {
		for (reset = 0; reset < 2; reset++) {
			me_start(km, op, &me);
			if (op == ME_INV)
				KM_EXPECT_TYPE(test, km_send(km, me.was, km->pa[0], 8, 9),
					       DAT_PRIVILEGES_VIOLATION);
			km_down(km);
			if (reset) {
				KD_EXPECT_OK(test, dat_ep_reset(km->env.ep));
				km_drain(km->env.req);
			} else {
				me_expect(&me, 1, ME_FLUSHED);
			}
			me_check(&me, !!me.was, reset ? "reset" : "flushed");
		}
	}
	/* between the two requests */
	me_start(km, ME_REBIND, &me);
	km_done(km, IB_WC_SUCCESS);
	km_down(km);
	me_expect(&me, 1, ME_FLUSHED);
	me_check(&me, false, "flushed in between");
}

static void me_states_test(struct kunit *test)
{
	static const int flags[] = { 0, DAT_COMPLETION_SUPPRESS_FLAG };
	struct km *km = km_connected(test, NULL);
	struct km_trace before, after;
	struct me me;
	int op, i;

	for (op = 0; op < ME_OPS; op++) {
		me_new(km, op, &me);
		for (i = 0; i < KD_STATES; i++) {
			if (kd_states[i].state == DAT_EP_STATE_CONNECTED ||
			    kd_states[i].state == DAT_EP_STATE_DISCONNECTED)
				continue;
			kd_set_state(&km->env, kd_states[i].state);
			km_trace(km, &before);
			KD_EXPECT_RET(test, me_try(&me, 1, 0), DAT_INVALID_STATE,
				      kd_states[i].subtype);
			km_untouched(km, &before, kd_states[i].letter);
			me.new = 0;
			me_says(&me, !!me.was, kd_states[i].letter);
		}
		kd_set_state(&km->env, DAT_EP_STATE_CONNECTED);
		/* flushed at once, also if it is suppressed: nothing is mapped, nothing posted */
		km_down(km);
		km_trace(km, &before);
		for (i = 0; i < ARRAY_SIZE(flags); i++) {
			KD_EXPECT_OK(test, me_try(&me, i, flags[i]));
			me_expect(&me, i, ME_FLUSHED);
		}
		km_trace(km, &after);
		KUNIT_EXPECT_EQ(test, after.maps, before.maps);
		KUNIT_EXPECT_EQ(test, after.posted, before.posted);
		me_check(&me, !!me.was, "disconnected");
	}
}

/* With a full queue nothing happens; and as many rebinds fit as requests. */
static void me_full_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	struct me me[ME_OPS], again[8];
	struct km_trace before;
	int op, i;

	for (op = 0; op < ME_OPS; op++)
		me_new(km, op, &me[op]);
	for (i = 0; i < 8; i++)
		KD_EXPECT_OK(test, km_send(km, ME_KEY(km), ME_ADDR(km), 8, i));
	km_trace(km, &before);
	for (op = 0; op < ME_OPS; op++) {
		KM_EXPECT_TYPE(test, me_try(&me[op], 9, 0), DAT_INSUFFICIENT_RESOURCES);
		me[op].new = 0;
		if (op < ME_BIND)
			me_says(&me[op], !!me[op].was, "full queue");
	}
	KUNIT_EXPECT_EQ(test, kd_wq_used(kd_conn_of(&km->env)->sq), before.used);
	KUNIT_EXPECT_EQ(test, fake_ib_outstanding(km->env.qp, false), 8U);
	fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS);
	for (i = 0; i < 8; i++)
		km_expect(km, DAT_DTO_SEND, i, DAT_DTO_SUCCESS);
	for (op = 0; op < ME_OPS; op++) {
		KD_EXPECT_OK(test, me_try(&me[op], 9, 0));
		fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS);
		km_drain(km->env.req);
		me_drop(&me[op]);
	}
	for (i = 0; i < 8; i++)
		me_new(km, ME_REBIND, &again[i]);
	for (i = 0; i < 8; i++)
		KD_EXPECT_OK(test, me_try(&again[i], i, 0));
	KUNIT_EXPECT_EQ(test, fake_ib_outstanding(km->env.qp, false), 16U);
	KM_EXPECT_TYPE(test, km_send(km, ME_KEY(km), ME_ADDR(km), 1, 9),
		       DAT_INSUFFICIENT_RESOURCES);
	fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS);
	for (i = 0; i < 8; i++)
		km_expect_bind(km, again[i].rmr, i, DAT_RMR_BIND_SUCCESS);
}

/* A request EVD that was not made for binds: no second place is kept for each. */
static void me_plain_evd_test(struct kunit *test)
{
	struct km *km = km_open(test, NULL);
	struct me me;
	int i, n;

	KD_ASSERT_OK(test, dat_evd_free(km->env.req));
	km->env.req = DAT_HANDLE_NULL;
	KD_ASSERT_OK(test, dat_evd_kcreate(km->env.ia, 64, DAT_UPCALL_DISABLE, NULL,
					   DAT_EVD_DTO_FLAG, &km->env.req));
	km_ep(km, 0, NULL);
	kd_connect(&km->env);
	me_new(km, ME_REBIND, &me);
	for (n = 0; n < 8; n++) {
		/* it fits or it does not, whatever else is in the queue */
		for (i = 0; i < n; i++)
			KD_EXPECT_OK(test, km_send(km, ME_KEY(km), ME_ADDR(km), 1, i));
		me.new = 0;
		if (me_try(&me, 99, 0) == DAT_SUCCESS)
			me.was = me.new;
		else
			KUNIT_EXPECT_GE(test, n, 4);
		fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS);
		for (i = 0; i < n; i++)
			km_expect(km, DAT_DTO_SEND, i, DAT_DTO_SUCCESS);
		if (me.was == me.new)
			km_expect_bind(km, me.rmr, 99, DAT_RMR_BIND_SUCCESS);
		KD_EXPECT_EMPTY(test, km->env.req);
		KUNIT_EXPECT_TRUE(test, fake_ib_mr_valid(km->env.dev, me.was));
	}
}

static void me_busy_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	struct km_trace before;
	struct me me;
	u32 first, key;

	me_start(km, ME_BIND, &me);
	first = me.new;
	km_trace(km, &before);
	KM_EXPECT_TYPE(test, me_try(&me, 2, 0), DAT_INSUFFICIENT_RESOURCES);
	KM_EXPECT_TYPE(test, me_window(&me, 0, 0, 2, 0, &key), DAT_INSUFFICIENT_RESOURCES);
	km_untouched(km, &before, "one bind at a time");
	km_done(km, IB_WC_SUCCESS);
	/* it has come back, and the next one finds out itself */
	KD_EXPECT_OK(test, me_try(&me, 3, 0));
	fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS);
	km_expect_bind(km, me.rmr, 1, DAT_RMR_BIND_SUCCESS);
	km_expect_bind(km, me.rmr, 3, DAT_RMR_BIND_SUCCESS);
	KUNIT_EXPECT_FALSE(test, fake_ib_mr_valid(km->env.dev, first));
	KUNIT_EXPECT_TRUE(test, fake_ib_mr_valid(km->env.dev, me.new));
}

static void me_large_test(struct kunit *test)
{
	struct fake_ib_caps caps = { .max_pages = 1024 };
	struct km *km = km_open(test, &caps);
	struct kdat_mem_limits limits;
	DAT_REGION_DESCRIPTION region;
	DAT_LMR_CONTEXT context;
	DAT_LMR_HANDLE lmr;
	DAT_RMR_HANDLE rmr;
	DAT_RMR_CONTEXT key;
	DAT_PADDR *pages;
	int i, n = 1024;

	KD_EXPECT_OK(test, kdat_ia_mem_limits(km->env.ia, &limits));
	KUNIT_ASSERT_LT(test, limits.rmr_pages, n);
	pages = kunit_kcalloc(test, n, sizeof(*pages), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, pages);
	for (i = 0; i < n; i++)
		pages[i] = km->pa[i % KM_PAGES];
	region.for_physical = pages;
	KD_ASSERT_OK(test, dat_lmr_kcreate(km->env.ia, DAT_MEM_TYPE_PHYSICAL, region, n, km->env.pz,
					   DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_ZB, 0, &lmr, &context,
					   NULL, NULL, NULL));
	km_keep_lmr(km, lmr);
	km_ep(km, 0, NULL);
	kd_connect(&km->env);
	rmr = km_rmr(km, false);
	km_window(km, rmr, lmr, 77 * PAGE_SIZE, limits.rmr_pages * PAGE_SIZE, context, &key);
	KD_EXPECT_RET(test, km_try_rmr(km, rmr, lmr, 0, limits.rmr_pages * PAGE_SIZE + 1, context,
				       KM_REMOTE, 0, 1, &key), DAT_INSUFFICIENT_RESOURCES,
		      DAT_RESOURCE_MEMORY_REGION);
	KUNIT_EXPECT_EQ(test, fake_ib_outstanding(km->env.qp, false), 0U);
	KD_EXPECT_EMPTY(test, km->env.req);
}

/* Freed as it is, with a connection and without one. */
static void me_free_bound_test(struct kunit *test)
{
	static const enum me_op ops[] = { ME_INV, ME_UNBIND };
	struct km *km = km_connected(test, NULL);
	int i, without;
	struct me me;
	u8 byte;

	for (i = 0; i < ARRAY_SIZE(ops); i++) {
		for (without = 0; without < 2; without++) {
			u64 at = ops[i] == ME_INV ? km->pa[0] : ME_ADDR(km);

			me_new(km, ops[i], &me);
			if (without)
				km_ep_free(km, 0);
			me_says(&me, true, "to be freed");
			KUNIT_EXPECT_EQ(test, fake_ib_access(km->env.dev, me.was, at, &byte, 1,
							     IB_ACCESS_REMOTE_READ), 0);
			me_drop(&me);
			KUNIT_EXPECT_EQ(test, fake_ib_access(km->env.dev, me.was, at, &byte, 1,
							     IB_ACCESS_REMOTE_READ), -EACCES);
			KUNIT_EXPECT_FALSE(test, me_held(km));
			if (without) {
				km_ep(km, 0, NULL);
				kd_connect(&km->env);
			} else {
				KM_EXPECT_TYPE(test, km_send(km, me.was, at, 1, 1),
					       DAT_PRIVILEGES_VIOLATION);
			}
		}
	}
}

struct me_free {
	struct me *me;
	DAT_RETURN ret;
	struct completion done;
};

static int me_free_thread(void *data)
{
	struct me_free *job = data;

	job->ret = me_is_rmr(job->me) ? dat_rmr_free(job->me->rmr) : dat_lmr_free(job->me->lmr);
	complete(&job->done);
	return 0;
}

/* A task frees it; the case does not any more. */
static void me_free_begin(struct me_free *job, struct me *me)
{
	struct km *km = me->km;
	struct task_struct *task;

	*job = (struct me_free) { .me = me };
	init_completion(&job->done);
	memset(km->lmrs, 0, sizeof(km->lmrs));
	memset(km->rmrs, 0, sizeof(km->rmrs));
	task = kthread_run(me_free_thread, job, "kdapl-free");
	KUNIT_ASSERT_FALSE(km->env.test, IS_ERR(task));
}

static void me_free_end(struct me_free *job)
{
	struct kunit *test = job->me->km->env.test;

	KUNIT_EXPECT_NE(test, wait_for_completion_timeout(&job->done, 20 * HZ), 0UL);
	KD_EXPECT_OK(test, job->ret);
	KUNIT_EXPECT_EQ(test, fake_ib_valid_mrs(job->me->km->env.dev), KD_NR_MEMS);
}

/* Freed with an operation at the device, which comes back now or never. */
static void me_free_busy(struct km *km, enum me_op op, bool ever)
{
	struct kunit *test = km->env.test;
	unsigned long began = jiffies;
	struct me_free job;
	struct me me;

	me_start(km, op, &me);
	me_free_begin(&job, &me);
	/* its handle and keys are gone at once, the rest waits for the device */
	while (me.lmr && km_send(km, me.new ?: me.was, km->pa[0], 1, 9) == DAT_SUCCESS)
		kd_pause();
	while (DAT_GET_TYPE(me_try(&me, 1, 0)) != DAT_INVALID_HANDLE)
		kd_pause();
	KUNIT_EXPECT_FALSE(test, completion_done(&job.done));
	if (ever)
		fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS);
	me_free_end(&job);
	KUNIT_EXPECT_FALSE(test, me_held(km));
	if (ever) {
		KD_EXPECT_EMPTY(test, km->env.conn);
	} else {
		me_broken(km);
		/* the device has 5 s */
		KUNIT_EXPECT_TRUE(test, time_after(jiffies, began + 4 * HZ));
		km_ep_free(km, 0);
		km_ep(km, 0, NULL);
		kd_connect(&km->env);
	}
	km_drain(km->env.req);
}

static void me_free_busy_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	int op;

	for (op = 0; op < ME_OPS; op++)
		me_free_busy(km, op, true);
	me_free_busy(km, ME_FMR, false);
	me_free_busy(km, ME_INV, false);
	me_free_busy(km, ME_REBIND, false);
}

/* A silent fmr has no completion to wait for: the device is asked how far it is. */
static void me_free_silent_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	struct me_free job;
	unsigned long began;
	struct me me;

	me_new(km, ME_FMR, &me);
	KD_EXPECT_OK(test, me_try(&me, 1, DAT_COMPLETION_SUPPRESS_FLAG));
	km_done(km, IB_WC_SUCCESS);
	began = jiffies;
	me_free_begin(&job, &me);
	while (!completion_done(&job.done) && time_before(jiffies, began + 20 * HZ)) {
		kd_pause();
		fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS);
	}
	me_free_end(&job);
	KD_EXPECT_EMPTY(test, km->env.req);
	/* it was not ended for that */
	KD_EXPECT_EMPTY(test, km->env.conn);
	KUNIT_EXPECT_EQ(test, (int)READ_ONCE(km->env.kep->state), (int)DAT_EP_STATE_CONNECTED);
}

static u32 me_stored(struct km *km)
{
	struct kdapl_evd *evd = kdapl_obj_get(km->env.req, DAT_HANDLE_TYPE_EVD);
	u32 count = READ_ONCE(evd->backlog_count);

	kdapl_obj_put(&evd->obj);
	return count;
}

/* Completions nobody fetches: the room kept for ends of connections is not for it. */
static void me_free_full_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	struct me_free job;
	DAT_EVENT event;
	struct me me;
	u32 full;
	int i;

	me_new(km, ME_FMR, &me);
	while (km_send(km, ME_KEY(km), ME_ADDR(km), 8, 2) == DAT_SUCCESS)
		fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS);
	full = me_stored(km);
	KUNIT_ASSERT_TRUE(test, kd_next(km->env.req, &event));
	KD_ASSERT_OK(test, me_try(&me, 1, 0));
	fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS);
	me_free_begin(&job, &me);
	for (i = 0; i < 20; i++)
		kd_pause();
	KUNIT_EXPECT_FALSE(test, completion_done(&job.done));
	KUNIT_EXPECT_LE(test, me_stored(km), full);
	/* the consumer comes back before patience ends */
	for (i = 0; i < 1000 && !completion_done(&job.done); i++) {
		km_drain(km->env.req);
		kd_pause();
	}
	me_free_end(&job);
	km_drain(km->env.req);
	KD_EXPECT_EMPTY(test, km->env.conn);
}

/* Between a flushed fmr and the end that resolves it nobody knows the next keys. */
static void me_next_stale_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	struct kdapl_ia *ia = kdapl_obj_get(km->env.ia, DAT_HANDLE_TYPE_IA);
	DAT_LMR_CONTEXT key;
	struct me me;

	me_new(km, ME_FMR, &me);
	mutex_lock(&ia->stale_mutex);
	KD_EXPECT_OK(test, me_try(&me, 1, 0));
	km_done(km, IB_WC_WR_FLUSH_ERR);
	me_expect(&me, 1, ME_FLUSHED);
	KD_EXPECT_RET(test, kdat_lmr_next_contexts(me.lmr, &key, NULL), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_LMR_IN_USE);
	mutex_unlock(&ia->stale_mutex);
	kdapl_obj_put(&ia->obj);
	me_broken(km);
	KD_EXPECT_OK(test, kdat_lmr_next_contexts(me.lmr, &key, NULL));
	km_ep(km, 1, NULL);
	kd_connect(&km->env);
	KUNIT_EXPECT_EQ(test, me_bound(&me), key);
}

/* The consumer just closes, or the device goes, with all of that under way. */
static void me_gone_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	struct me me[ME_OPS];
	struct fake_ib_live live;
	DAT_IA_HANDLE ia;
	int op, close;

	for (close = 0; close < 2; close++) {
		for (op = 0; op < ME_OPS; op++)
			me_new(km, op, &me[op]);
		for (op = 0; op < ME_OPS; op++)
			KD_EXPECT_OK(test, me_try(&me[op], 1, 0));
		if (close) {
			memset(km->lmrs, 0, sizeof(km->lmrs));
			memset(km->rmrs, 0, sizeof(km->rmrs));
			memset(km->eps, 0, sizeof(km->eps));
			ia = kd_forget(&km->env);
			KD_EXPECT_OK(test, dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
			KUNIT_EXPECT_EQ(test, fake_ib_valid_mrs(km->env.dev), 0);
			break;
		}
		fake_ib_unplug(km->env.dev);
		fake_ib_live(km->env.dev, &live);
		KUNIT_EXPECT_EQ(test, live.mrs, 0);
		for (op = 0; op < ME_OPS; op++)
			KUNIT_EXPECT_NE(test, (u32)me_try(&me[op], 1, 0), (u32)DAT_SUCCESS);
		KUNIT_EXPECT_NE(test, (u32)km_send(km, me[ME_INV].was, km->pa[0], 1, 1), 0U);
		km_exit(test);		/* frees the shells */
		km_connected(test, NULL);
	}
}

static struct kunit_case mem_op_cases[] = {
	KD_CASE(me_flags_test,
		"FMR-03,FMR-11,RMR-03,FLAG-02,FLAG-06,EP-POST-07,EP-POST-19: every set of flags"),
	KD_CASE(me_scope_test, "FMR-01,FMR-14,RMR-01: what one EP has bound is its own"),
	KD_CASE(me_fails_test,
		"FMR-09,RMR-11,RMR-13,FLAG-02: what the device fails to do breaks the connection"),
	KD_CASE(me_refused_test,
		"FMR-09,FMR-15,RMR-10,RMR-13: what the device does not take is flushed"),
	KD_CASE(me_flush_test,
		"FMR-15,RMR-10,RMR-13,FLUSH-01,FLUSH-05: flushed, an operation changes nothing"),
	KD_CASE(me_states_test,
		"FMR-07,FMR-15,RMR-10,EP-POST-10,EP-POST-11: states in which nothing is bound"),
	KD_CASE(me_full_test, "EP-POST-17,GEN-07,RMR-16: with a full queue nothing happens"),
	KD_CASE(me_plain_evd_test, "RMR-03,RMR-16: on an EVD that is not for binds"),
	KD_CASE(me_busy_test, "RMR-16: one bind at a time"),
	KD_CASE(me_large_test, "RMR-02,RMR-16: as many pages as an RMR takes, and one more"),
	KD_CASE(me_free_bound_test,
		"FMR-13,RMR-13,RMR-14,LMR-FREE-01,LMR-FREE-02,LMR-FREE-03: freeing what is bound"),
	KD_CASE(me_free_full_test, "FMR-13,EVD-OVF-01: dat_lmr_free, and nobody dequeues"),
	KD_CASE(me_next_stale_test, "FMR-04,FMR-07: the next keys after a flushed fmr"),
	KD_CASE(me_free_busy_test,
		"FMR-13,RMR-14: freeing waits for the device, and not for ever"),
	KD_CASE(me_free_silent_test, "FMR-13,FLAG-02: also for operations that say nothing"),
	KD_CASE(me_gone_test, "FMR-13,RMR-14: everything ends with all of that under way"),
	{}
};

static struct kunit_suite mem_op_suite = {
	.name = "kdapl-mem-op",
	.suite_init = kd_suite_init,
	.suite_exit = kd_suite_exit,
	.init = km_init,
	.exit = km_exit,
	.test_cases = mem_op_cases,
};

kunit_test_suite(mem_op_suite);
