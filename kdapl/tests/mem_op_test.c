// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Operations on memory: fmr and invalidate of an LMR, binds of an RMR. Each of them with all
 * flags; when it fails, is refused, flushed or not possible; when the queue is full; and when
 * LMR or RMR are freed meanwhile. What a peer still reaches is what the provider says, and the
 * next connection can go on with it.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/mm.h>

#include "kd_mem.h"

#define ME_ADDR(km)	(KM_MEM(km)->addr)
#define ME_KEY(km)	(KM_MEM(km)->lmr_context)

#define ME_ONE_SIDED	12	/* s; twice as long as a device may be silent, and more */
#define ME_SLOW		7
#define ME_PACE		1000	/* ms; all of them take longer than a device may be silent */

enum me_op { ME_FMR, ME_INV, ME_BIND, ME_REBIND, ME_UNBIND, ME_OPS };

static const char * const me_names[ME_OPS] = { "fmr", "invalidate", "bind", "rebind", "unbind" };

/* An operation, and the LMR or RMR it is for. */
struct me {
	struct km *km;
	enum me_op op;
	DAT_LMR_HANDLE lmr;	/* or */
	DAT_RMR_HANDLE rmr;	/* over the LMR that has all rights */
	u32 was;		/* key that was in effect before, or 0 */
	u32 new;		/* key that it gave, or 0 */
};

static bool me_is_rmr(const struct me *me)
{
	return me->op >= ME_BIND;
}

static DAT_RETURN me_try(struct me *me, u64 cookie, int flags)
{
	struct km_keys keys = {};
	DAT_RETURN ret;
	u32 none;

	switch (me->op) {
	case ME_FMR:
		ret = km_try_fmr(me->km, me->lmr, 0, 2, KM_ALL, flags, cookie, &keys);
		me->new = keys.lmr;
		return ret;
	case ME_INV:
		return km_try_inv(me->km, me->lmr, flags, cookie);
	case ME_UNBIND:
		return km_try_part(me->km, me->rmr, 0, 0, flags, cookie, &none);
	default:
		return km_try_part(me->km, me->rmr, 16, 8, flags, cookie, &me->new);
	}
}

/* It has come back, and the key is in effect. */
static u32 me_bound(struct me *me)
{
	struct km *km = me->km;
	struct km_keys keys;

	if (!me_is_rmr(me)) {
		km_bind(km, me->lmr, 0, 2, KM_ALL, &keys);
		return keys.lmr;
	}
	km_window(km, me->rmr, KM_MEM(km)->lmr, ME_ADDR(km), 8, ME_KEY(km), &keys.rmr);
	return keys.rmr;
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
	struct kd_mem *mem = KM_MEM(km);
	DAT_REGION_DESCRIPTION region = { .for_va = km->env.buf + KD_RW * KD_MEM_SIZE };
	struct km_reg reg = { .priv = KM_ALL };
	DAT_RETURN ret = dat_lmr_free(mem->lmr);

	if (ret != DAT_SUCCESS) {
		KD_BAD_STATE(km->env.test, ret, LMR_IN_USE);
		return true;
	}
	KD_EXPECT_OK(km->env.test, km_try_reg(km, &reg, DAT_MEM_TYPE_VIRTUAL, region, KD_MEM_SIZE));
	mem->lmr = reg.lmr;
	mem->lmr_context = reg.key;
	mem->rmr_context = reg.rkey;
	return false;
}

/* What was before is in effect, or nothing. */
static void me_says(struct me *me, bool bound, const char *what)
{
	struct kunit *test = me->km->env.test;
	DAT_RMR_PARAM param;

	if (me->was)
		KUNIT_EXPECT_EQ_MSG(test, km_valid(me->km, me->was), bound, "%s %s",
				    me_names[me->op], what);
	if (me->new)
		KUNIT_EXPECT_FALSE_MSG(test, km_valid(me->km, me->new), "%s %s",
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
	km_join(km, 0, NULL);
	if (me->lmr && bound) {
		km_usable(km, me->was, km->pa[0]);
		km_unbind(km, me->lmr);
	} else if (me->lmr) {
		KM_EXPECT_TYPE(test, km_send(km, me->new ?: me->was, km->pa[0], 8, 2),
			       DAT_PRIVILEGES_VIOLATION);
	}
	key = me_bound(me);
	KUNIT_EXPECT_NE(test, key, me->new);
	KUNIT_EXPECT_TRUE_MSG(test, km_valid(km, key), "%s", what);
	if (me->was)
		KUNIT_EXPECT_FALSE_MSG(test, km_valid(km, me->was), "%s", what);
	KUNIT_EXPECT_EQ(test, fake_ib_valid_mrs(km->env.dev), KD_NR_MEMS + 1);
	me_drop(me);
}

/* All flags, on an EP that has unsignalled requests or does not: refused, or what they say. */
static void me_flags(struct km *km, enum me_op op, int flags, int attr)
{
	static const struct { u32 arg; int more, fence; } calls[ME_OPS] = {
		[ME_FMR] = { DAT_INVALID_ARG9, 0, DAT_COMPLETION_BARRIER_FENCE_FLAG },
		[ME_INV] = { DAT_INVALID_ARG4, DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG,
			     DAT_COMPLETION_BARRIER_FENCE_FLAG |
			     DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG },
		[ME_BIND] = { DAT_INVALID_ARG8, 0, DAT_COMPLETION_BARRIER_FENCE_FLAG },
		[ME_REBIND] = { DAT_INVALID_ARG8, 0, -1 },
		[ME_UNBIND] = { DAT_INVALID_ARG8, 0, -1 },
	};
	int legal = DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_BARRIER_FENCE_FLAG |
		    attr | calls[op].more;
	bool silent = flags & DAT_COMPLETION_SUPPRESS_FLAG;
	struct kunit *test = km->env.test;
	struct km_trace before;
	struct fake_ib_wr wr;
	struct me me;

	me_new(km, op, &me);
	km_trace(km, &before);
	if (flags & ~legal) {
		KUNIT_EXPECT_EQ_MSG(test, (u32)me_try(&me, 1, flags),
				    (u32)DAT_ERROR(DAT_INVALID_PARAMETER, calls[op].arg), "%s %#x",
				    me_names[op], flags);
		km_untouched(km, &before, me_names[op]);
		if (me.was)
			KUNIT_EXPECT_TRUE(test, km_valid(km, me.was));
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
		KUNIT_EXPECT_FALSE(test, km_valid(km, me.was));
	if (me.new)
		KUNIT_EXPECT_TRUE(test, km_valid(km, me.new));
	/* a silent fmr is known to be over by what comes behind it */
	km_usable(km, ME_KEY(km), ME_ADDR(km));
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
		km_join(km, 0, &attr);
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
	km_join(km, 1, NULL);
	/* of the other one, then anybody's, then this one's */
	for (end = 0; end < 2; end++) {
		km_use(km, !end);
		km_trace(km, &before);
		iov = (DAT_LMR_TRIPLET) { km->pa[0], 8, own.was };
		for (call = 0; call < KD_NR_CALLS; call++)
			KM_EXPECT_TYPE(test, kd_post(km->env.ep, call, 1, &iov, 1, &remote, 0),
				       DAT_PROTECTION_VIOLATION);
		KM_EXPECT_TYPE(test, me_try(&own, 1, 0), DAT_PROTECTION_VIOLATION);
		KM_EXPECT_TYPE(test, km_try_part(km, win.rmr, 8, 8, 0, 3, &key),
			       DAT_PROTECTION_VIOLATION);
		KM_EXPECT_TYPE(test, me_try(&win, 3, 0), DAT_PROTECTION_VIOLATION);
		km_untouched(km, &before, "of another EP");
		km_usable(km, any.was, km->pa[0]);
		me_bound(&all);
		km_use(km, end);
		km_usable(km, own.was, km->pa[0]);
		km_unbind(km, own.lmr);
		KD_EXPECT_OK(test, me_try(&win, 5, 0));
		km_finish_bind(km, win.rmr, 5);
		km_use(km, !end);
		own.was = me_bound(&own);
		me_bound(&win);
	}
	km_unbind(km, any.lmr);
}

enum me_how { ME_FAIL, ME_REFUSE, ME_FLUSH, ME_RESET };

/* A rebind is two requests; half: the first of them is done, so the old key is gone. */
static void me_ends(struct km *km, enum me_op op, enum me_how how, enum ib_wc_status why, bool half)
{
	static const char * const names[] = { "fails", "is refused", "is flushed", "is reset" };
	struct kunit *test = km->env.test;
	struct kdapl_lmr *obj;
	struct ib_mr *ibmr;
	struct me me;

	me_new(km, op, &me);
	obj = me.lmr ? kdapl_obj_get(me.lmr, DAT_HANDLE_TYPE_LMR) : NULL;
	ibmr = obj ? obj->mr.ibmr : NULL;
	if (how == ME_REFUSE)
		fake_ib_fail(km->env.dev, FAKE_IB_POST_SEND, 1, -ENOMEM);
	KD_EXPECT_OK(test, me_try(&me, 1, 0));
	if (half) {
		km_done(km, IB_WC_SUCCESS);
		KD_EXPECT_EMPTY(test, km->env.req);
	}
	switch (how) {
	case ME_FAIL:
		km_done(km, why);
		/* what fails first is not what tells of it */
		if (op == ME_REBIND && !half) {
			KD_EXPECT_EMPTY(test, km->env.req);
			km_broken(km);
			me_expect(&me, 1, ME_FAILED);
		} else {
			me_expect(&me, 1, ME_FAILED);
			km_broken(km);
		}
		break;
	case ME_REFUSE:
		km_broken(km);
		me_expect(&me, 1, ME_FLUSHED);
		/* the device has never seen it, so there is no doubt about the region */
		km_ep_free(km, 0);
		if (obj)
			KUNIT_EXPECT_PTR_EQ(test, obj->mr.ibmr, ibmr);
		break;
	default:
		if (op == ME_INV)
			KM_EXPECT_TYPE(test, km_send(km, me.was, km->pa[0], 8, 9),
				       DAT_PRIVILEGES_VIOLATION);
		km_down(km);
		if (how == ME_RESET) {
			KD_EXPECT_OK(test, dat_ep_reset(km->env.ep));
			km_drain(km->env.req);
		} else {
			me_expect(&me, 1, ME_FLUSHED);
		}
	}
	if (obj)
		kdapl_obj_put(&obj->obj);
	/* a key that could not be invalidated goes with its MR: to try again might fail again */
	me_check(&me, me.was && !half && how != ME_FAIL, names[how]);
}

static void me_ends_test(struct kunit *test)
{
	static const struct { enum me_how how; enum ib_wc_status why; } rows[] = {
		{ ME_FAIL, IB_WC_LOC_QP_OP_ERR }, { ME_FAIL, IB_WC_LOC_PROT_ERR },
		{ ME_FAIL, IB_WC_MW_BIND_ERR }, { ME_FAIL, IB_WC_LOC_ACCESS_ERR },
		{ ME_FAIL, IB_WC_GENERAL_ERR }, { ME_FAIL, IB_WC_FATAL_ERR },
		{ ME_REFUSE }, { ME_FLUSH }, { ME_RESET },
	};
	struct km *km = km_connected(test, NULL);
	struct me me;
	int i, op;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		for (op = 0; op < ME_OPS; op++)
			me_ends(km, op, rows[i].how, rows[i].why, false);
		if (rows[i].how == ME_FAIL || rows[i].how == ME_FLUSH)
			me_ends(km, ME_REBIND, rows[i].how, rows[i].why, true);
	}
	/* suppressed, it is reported all the same */
	me_new(km, ME_FMR, &me);
	KD_EXPECT_OK(test, me_try(&me, 3, DAT_COMPLETION_SUPPRESS_FLAG));
	km_done(km, IB_WC_LOC_PROT_ERR);
	me_expect(&me, 3, ME_FAILED);
	km_broken(km);
	me_check(&me, false, "failed in silence");
}

/* In DISCONNECTED: flushed at once, also if it is suppressed; nothing is mapped or posted. */
static void me_disconnected_test(struct kunit *test)
{
	static const int flags[] = { 0, DAT_COMPLETION_SUPPRESS_FLAG };
	struct km *km = km_connected(test, NULL);
	struct km_trace before, after;
	struct me me;
	int op, i;

	for (op = 0; op < ME_OPS; op++) {
		me_new(km, op, &me);
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

/* With a full queue nothing happens. */
static void me_full_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	struct me me[ME_OPS];
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
	for (i = 0; i < 8; i++)
		km_finish(km, DAT_DTO_SEND, i);
	for (op = 0; op < ME_OPS; op++) {
		KD_EXPECT_OK(test, me_try(&me[op], 9, 0));
		km_settle(km);
		me_drop(&me[op]);
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
	KM_EXPECT_TYPE(test, km_try_part(km, me.rmr, 0, 0, 0, 2, &key),
		       DAT_INSUFFICIENT_RESOURCES);
	km_untouched(km, &before, "one bind at a time");
	km_done(km, IB_WC_SUCCESS);
	/* it has come back, and the next one finds out itself */
	KD_EXPECT_OK(test, me_try(&me, 3, 0));
	km_finish_bind(km, me.rmr, 1);
	km_expect_bind(km, me.rmr, 3, DAT_RMR_BIND_SUCCESS);
	KUNIT_EXPECT_FALSE(test, km_valid(km, first));
	KUNIT_EXPECT_TRUE(test, km_valid(km, me.new));
}

static void me_large_test(struct kunit *test)
{
	struct fake_ib_caps caps = { .max_pages = 1024 };
	struct km *km = km_on(test, &caps, NULL);
	DAT_PADDR *pages = kunit_kcalloc(test, 1024, sizeof(*pages), GFP_KERNEL);
	DAT_REGION_DESCRIPTION region = { .for_physical = pages };
	struct km_reg reg = { .priv = KM_ALL, .va = DAT_VA_TYPE_ZB };
	DAT_RMR_HANDLE rmr = km_rmr(km, false);
	struct kdat_mem_limits limits;
	DAT_RMR_CONTEXT key;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, pages);
	KD_EXPECT_OK(test, kdat_ia_mem_limits(km->env.ia, &limits));
	KUNIT_ASSERT_LT(test, limits.rmr_pages, 1024);
	for (i = 0; i < 1024; i++)
		pages[i] = km->pa[i % KM_PAGES];
	KD_ASSERT_OK(test, km_try_reg(km, &reg, DAT_MEM_TYPE_PHYSICAL, region, 1024));
	km_keep_lmr(km, reg.lmr);
	km_window(km, rmr, reg.lmr, 77 * PAGE_SIZE, limits.rmr_pages * PAGE_SIZE, reg.key, &key);
	KD_EXPECT_RET(test, km_try_rmr(km, rmr, reg.lmr, 0, limits.rmr_pages * PAGE_SIZE + 1,
				       reg.key, KM_REMOTE, 0, 1, &key), DAT_INSUFFICIENT_RESOURCES,
		      DAT_RESOURCE_MEMORY_REGION);
	KUNIT_EXPECT_EQ(test, fake_ib_outstanding(km->env.qp, false), 0U);
	KD_EXPECT_EMPTY(test, km->env.req);
}

/* Freed as it is, with a connection and without one. */
static void me_free_bound_test(struct kunit *test)
{
	static const enum me_op ops[] = { ME_INV, ME_UNBIND };
	struct km *km = km_connected(test, NULL);
	struct me me;
	u64 at;
	int i;

	for (i = 0; i < 4; i++) {
		me_new(km, ops[i / 2], &me);
		at = me.lmr ? km->pa[0] : ME_ADDR(km);
		if (i % 2)
			km_ep_free(km, 0);
		me_says(&me, true, "to be freed");
		KUNIT_EXPECT_TRUE(test, km_reads(km, me.was, at));
		me_drop(&me);
		KUNIT_EXPECT_FALSE(test, km_reads(km, me.was, at));
		KUNIT_EXPECT_FALSE(test, me_held(km));
		if (i % 2)
			km_join(km, 0, NULL);
		else
			KM_EXPECT_TYPE(test, km_send(km, me.was, at, 1, 1),
				       DAT_PRIVILEGES_VIOLATION);
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
	*job = (struct me_free) { .me = me };
	init_completion(&job->done);
	km_forget(me->km);
	KUNIT_ASSERT_FALSE(me->km->env.test,
			   IS_ERR(kthread_run(me_free_thread, job, "kdapl-free")));
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
	if (me.lmr)
		KD_WAIT(test, km_send(km, me.new ?: me.was, km->pa[0], 1, 9) != DAT_SUCCESS);
	KD_WAIT(test, DAT_GET_TYPE(me_try(&me, 1, 0)) == DAT_INVALID_HANDLE);
	KUNIT_EXPECT_FALSE(test, completion_done(&job.done));
	if (ever)
		fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS);
	me_free_end(&job);
	KUNIT_EXPECT_FALSE(test, me_held(km));
	if (ever) {
		KD_EXPECT_EMPTY(test, km->env.conn);
	} else {
		km_broken(km);
		/* the device has 5 s */
		KUNIT_EXPECT_TRUE(test, time_after(jiffies, began + 4 * HZ));
		km_ep_free(km, 0);
		km_join(km, 0, NULL);
	}
	km_drain(km->env.req);
}

static void me_free_busy_test(struct kunit *test)
{
	static const enum me_op never[] = { ME_FMR, ME_INV, ME_REBIND };
	struct km *km = km_connected(test, NULL);
	int i;

	for (i = 0; i < ME_OPS; i++)
		me_free_busy(km, i, true);
	for (i = 0; i < ARRAY_SIZE(never); i++)
		me_free_busy(km, never[i], false);
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

/* Sends before the fmr that come back one by one: a connection that is slow is not ended. */
static void me_free_slow_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	struct me_free job;
	struct me me;
	int i;

	me_new(km, ME_FMR, &me);
	for (i = 0; i < ME_SLOW; i++)
		KD_EXPECT_OK(test, km_send(km, ME_KEY(km), ME_ADDR(km), 8, i));
	KD_ASSERT_OK(test, me_try(&me, i, 0));
	me_free_begin(&job, &me);
	for (i = 0; i < ME_SLOW; i++) {
		msleep(ME_PACE);
		KUNIT_EXPECT_FALSE(test, completion_done(&job.done));
		km_done(km, IB_WC_SUCCESS);
	}
	fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS);
	me_free_end(&job);
	for (i = 0; i < ME_SLOW; i++)
		km_expect(km, DAT_DTO_SEND, i, DAT_DTO_SUCCESS);
	km_expect(km, DAT_DTO_LMR_FMR, i, DAT_DTO_SUCCESS);
	KD_EXPECT_EMPTY(test, km->env.conn);
}

/* A peer that sends and takes nothing: what is waited for will never be done. */
static void me_free_one_sided_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	struct me_free job;
	struct me me;
	int i;

	me_new(km, ME_FMR, &me);
	KD_EXPECT_OK(test, km_send(km, ME_KEY(km), ME_ADDR(km), 8, 1));
	KD_ASSERT_OK(test, me_try(&me, 2, 0));
	me_free_begin(&job, &me);
	for (i = 0; i < ME_ONE_SIDED; i++) {
		kd_post(km->env.ep, KD_RECV, 0, NULL, 3, NULL, 0);
		fake_ib_recv(km->env.qp, 0, false);
		km_drain(km->env.recv);
		if (wait_for_completion_timeout(&job.done, HZ))
			break;
	}
	KUNIT_EXPECT_LT(test, i, ME_ONE_SIDED);
	if (i == ME_ONE_SIDED)
		fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS);
	else
		complete(&job.done);		/* as it was */
	me_free_end(&job);
	km_broken(km);
}

/* Between a flushed fmr and the end that resolves it nobody knows the next keys. */
static void me_next_stale_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	struct kdapl_ia *ia = km->env.kep->obj.ia;
	DAT_LMR_CONTEXT key;
	struct me me;

	me_new(km, ME_FMR, &me);
	mutex_lock(&ia->stale_mutex);
	KD_EXPECT_OK(test, me_try(&me, 1, 0));
	km_done(km, IB_WC_WR_FLUSH_ERR);
	me_expect(&me, 1, ME_FLUSHED);
	KD_BAD_STATE(test, kdat_lmr_next_contexts(me.lmr, &key, NULL), LMR_IN_USE);
	mutex_unlock(&ia->stale_mutex);
	km_broken(km);
	KD_EXPECT_OK(test, kdat_lmr_next_contexts(me.lmr, &key, NULL));
	km_join(km, 1, NULL);
	KUNIT_EXPECT_EQ(test, me_bound(&me), key);
}

/* The consumer just closes, or the device goes, with all of that under way. */
static void me_gone_test(struct kunit *test)
{
	struct fake_ib_live live;
	struct me me[ME_OPS];
	int op, close;
	struct km *km;

	for (close = 0; close < 2; close++) {
		km = km_connected(test, NULL);
		for (op = 0; op < ME_OPS; op++)
			me_new(km, op, &me[op]);
		for (op = 0; op < ME_OPS; op++)
			KD_EXPECT_OK(test, me_try(&me[op], 1, 0));
		if (close) {
			km_forget(km);
			memset(km->eps, 0, sizeof(km->eps));
			KD_EXPECT_OK(test, dat_ia_close(kd_forget(&km->env),
							DAT_CLOSE_ABRUPT_FLAG));
			KUNIT_EXPECT_EQ(test, fake_ib_valid_mrs(km->env.dev), 0);
			break;
		}
		fake_ib_unplug(km->env.dev);
		fake_ib_live(km->env.dev, &live);
		KUNIT_EXPECT_EQ(test, live.mrs, 0);
		for (op = 0; op < ME_OPS; op++)
			KUNIT_EXPECT_NE(test, (u32)me_try(&me[op], 1, 0), (u32)DAT_SUCCESS);
		KUNIT_EXPECT_NE(test, (u32)km_send(km, me[ME_INV].was, km->pa[0], 1, 1), 0U);
	}
}

#define ME_CROWD	6

/*
 * Binds that take two places each have filled the queue, and the device refuses what comes next.
 * More is posted before the end of the connection begins: that still finds its place.
 */
static void me_crowd_test(struct kunit *test)
{
	struct km *km = km_open(test, NULL);
	struct me me[ME_CROWD];
	struct kdapl_conn *conn;
	unsigned int posted;
	DAT_EP_ATTR attr;
	int i, n = 0;

	/* without binds among its streams, so that there is no more room than for other requests */
	KD_ASSERT_OK(test, dat_evd_free(km->env.req));
	km->env.req = DAT_HANDLE_NULL;
	KD_ASSERT_OK(test, dat_evd_kcreate(km->env.ia, 64, DAT_UPCALL_DISABLE, NULL,
					   DAT_EVD_DTO_FLAG, &km->env.req));
	kd_attr(&attr);
	attr.max_request_dtos = 11;	/* then all entries of the work queue are used */
	km_join(km, 0, &attr);
	conn = kd_conn_of(&km->env);
	KUNIT_ASSERT_EQ(test, conn->sq->mask + 1, conn->sq->max_wrs + KDAPL_OWN_WQES);
	for (i = 0; i < ME_CROWD; i++)
		me_new(km, ME_REBIND, &me[i]);
	for (i = 0; i < ME_CROWD; i++)
		KD_EXPECT_OK(test, me_try(&me[i], i, 0));
	mutex_lock(&conn->lock);	/* the end waits for it */
	fake_ib_fail(km->env.dev, FAKE_IB_POST_SEND, 1, -EINVAL);
	while (n < 2 * KDAPL_OWN_WQES && km_send(km, ME_KEY(km), ME_ADDR(km), 8, n) == DAT_SUCCESS)
		n++;
	KUNIT_EXPECT_GT(test, n, 0);
	fake_ib_hold_flush(km->env.dev, true);
	posted = fake_ib_posted(km->env.qp, false);
	mutex_unlock(&conn->lock);
	KD_WAIT(test, fake_ib_posted(km->env.qp, false) == posted + 1);
	/* the first one that comes back is not the last one */
	KUNIT_EXPECT_EQ(test, fake_ib_complete(km->env.qp, false, IB_WC_WR_FLUSH_ERR), 0);
	flush_workqueue(kdapl_misc_wq);
	KD_EXPECT_EMPTY(test, km->env.conn);
	fake_ib_hold_flush(km->env.dev, false);
	fake_ib_flush(km->env.qp);
	km_broken(km);
	KUNIT_EXPECT_EQ(test, conn->sq->memops_done, conn->sq->memops);
	for (i = 0; i < ME_CROWD; i++)
		km_expect_bind(km, me[i].rmr, i, DAT_RMR_BIND_FAILURE);
	for (i = 0; i < n; i++)
		km_expect(km, DAT_DTO_SEND, i, DAT_DTO_ERR_FLUSHED);
	KD_EXPECT_EMPTY(test, km->env.req);
	/* what was for the end is free now */
	for (i = 0; i < 11; i++)
		KD_EXPECT_OK(test, km_send(km, ME_KEY(km), ME_ADDR(km), 8, i));
	for (i = 0; i < 11; i++)
		km_expect(km, DAT_DTO_SEND, i, DAT_DTO_ERR_FLUSHED);
	for (i = 0; i < ME_CROWD; i++)
		me_drop(&me[i]);
}

#define ME_ROUNDS	16

/*
 * The consumer frees LMRs although it has not dequeued what its other EP has posted, as much as
 * can be. The operations have completed, but behind all that, and in the end there is no room for
 * their events: the connection is not ended for it.
 */
static void me_free_behind_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	int i, sent = 0, got = 0, fmrs = 0;
	struct kdapl_evd *evd;
	struct km_keys keys;
	DAT_LMR_HANDLE lmr;
	DAT_EVENT event;

	km_join(km, 1, NULL);
	for (i = 0; i < ME_ROUNDS; i++) {
		km_use(km, 1);
		while (sent < 10000 &&
		       km_send(km, ME_KEY(km), ME_ADDR(km), 8, sent) == DAT_SUCCESS) {
			fake_ib_complete(km->env.qp, false, IB_WC_SUCCESS);
			sent++;
		}
		KUNIT_EXPECT_LT(test, sent, 10000);
		km_use(km, 0);
		lmr = km_lmr(km, 1, DAT_LMR_SCOPE_PZ);
		KD_EXPECT_OK(test, km_try_fmr(km, lmr, 0, 1, KM_ALL, 0, i, &keys));
		/* also what freeing the last one may have posted */
		fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS);
		km_drop_lmr(km, lmr);
		KUNIT_EXPECT_FALSE_MSG(test, kdapl_conn_spent(kd_conn_of(&km->env)), "round %d", i);
	}
	KD_EXPECT_STATE(&km->env, km->env.ep, CONNECTED);
	evd = kd_conn_of(&km->env)->request_evd;
	KUNIT_EXPECT_GE(test, READ_ONCE(evd->backlog_count) + 1, evd->backlog_size);
	/* those that have waited for room come in the order of their EP */
	dto = &event.event_data.dto_completion_event_data;
	while (kd_next(km->env.req, &event)) {
		KUNIT_EXPECT_EQ(test, (int)dto->status, (int)DAT_DTO_SUCCESS);
		if (dto->operation == DAT_DTO_LMR_FMR)
			KUNIT_EXPECT_EQ(test, (int)dto->user_cookie.as_64, fmrs++);
		else
			KUNIT_EXPECT_EQ(test, (int)dto->user_cookie.as_64, got++);
	}
	KUNIT_EXPECT_EQ(test, fmrs, ME_ROUNDS);
	KUNIT_EXPECT_EQ(test, got, sent);
}

/* The oldest request is not done, and all behind it are. Returns its number. */
static unsigned int me_read_pending(struct km *km)
{
	DAT_LMR_TRIPLET iov = { ME_ADDR(km), 8, ME_KEY(km) };
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 8, 0x4711);

	KD_ASSERT_OK(km->env.test, kd_post(km->env.ep, KD_READ, 1, &iov, 1, &remote, 0));
	return fake_ib_posted(km->env.qp, false) - 1;
}

static void me_done_behind(struct km *km, unsigned int read)
{
	unsigned int seq, end = fake_ib_posted(km->env.qp, false);

	for (seq = read + 1; seq != end; seq++)
		fake_ib_complete_seq(km->env.qp, false, seq, IB_WC_SUCCESS);
	KD_EXPECT_EMPTY(km->env.test, km->env.req);
}

/*
 * On soft-iWARP operations are done before the Read in front of them: their LMR is free for the
 * next one, and can be freed. The events come in order.
 */
static void me_overtakes_test(struct kunit *test)
{
	static const struct fake_ib_caps caps = { .iwarp = true, .driver = RDMA_DRIVER_SIW };
	struct km *km = km_open(test, &caps);
	struct kdapl_ia *ia = kdapl_obj_get(km->env.ia, DAT_HANDLE_TYPE_IA);
	DAT_LMR_HANDLE lmr = km_lmr(km, 1, DAT_LMR_SCOPE_PZ);
	struct km_keys keys;
	unsigned int read;
	DAT_EP_ATTR attr;

	kdapl_quirks_derive(ia->dev, true);	/* which the port does not say */
	kd_attr(&attr);
	attr.max_rdma_read_iov = 1;
	km_join(km, 0, &attr);
	read = me_read_pending(km);
	KD_EXPECT_OK(test, km_try_fmr(km, lmr, 0, 1, KM_ALL, DAT_COMPLETION_SUPPRESS_FLAG, 2,
				      &keys));
	KD_EXPECT_OK(test, km_try_inv(km, lmr, 0, 3));
	me_done_behind(km, read);
	KUNIT_EXPECT_FALSE(test, km_bound(km, lmr));
	KD_EXPECT_OK(test, km_try_fmr(km, lmr, 0, 1, KM_ALL, DAT_COMPLETION_SUPPRESS_FLAG, 4,
				      &keys));
	KD_EXPECT_OK(test, km_send(km, ME_KEY(km), ME_ADDR(km), 8, 5));
	me_done_behind(km, read);
	km_drop_lmr(km, lmr);
	KUNIT_EXPECT_FALSE(test, kdapl_conn_spent(kd_conn_of(&km->env)));
	fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS);
	km_expect(km, DAT_DTO_RDMA_READ, 1, DAT_DTO_SUCCESS);
	km_expect(km, DAT_DTO_LMR_INVALIDATE, 3, DAT_DTO_SUCCESS);
	km_expect(km, DAT_DTO_SEND, 5, DAT_DTO_SUCCESS);
	KD_EXPECT_EMPTY(test, km->env.req);
	km_ep_free(km, 0);
	kdapl_quirks_derive(ia->dev, false);	/* it is not unplugged as what it is not */
	kdapl_obj_put(&ia->obj);
}

static struct kunit_case mem_op_cases[] = {
	KD_CASE(me_flags_test,
		"FMR-03,FMR-11,RMR-03,FLAG-02,FLAG-06,EP-POST-07,EP-POST-19: every set of flags"),
	KD_CASE(me_scope_test, "FMR-01,FMR-14,RMR-01: what one EP has bound is its own"),
	KD_CASE(me_ends_test,
		"FMR-09,FMR-15,RMR-10,RMR-11,RMR-13,FLAG-02,FLUSH-01,FLUSH-05: failed, flushed"),
	KD_CASE(me_disconnected_test, "FMR-07,FMR-15,RMR-10,EP-POST-11: without a connection"),
	KD_CASE(me_full_test, "EP-POST-17,GEN-07,RMR-16: with a full queue nothing happens"),
	KD_CASE(me_crowd_test, "EP-POST-17,FLUSH-01: the end of a connection with a full queue"),
	KD_CASE(me_busy_test, "RMR-16: one bind at a time"),
	KD_CASE(me_large_test, "RMR-02,RMR-16: as many pages as an RMR takes, and one more"),
	KD_CASE(me_free_bound_test,
		"FMR-13,RMR-13,RMR-14,LMR-FREE-01,LMR-FREE-02,LMR-FREE-03: freeing what is bound"),
	KD_CASE(me_next_stale_test, "FMR-04,FMR-07: the next keys after a flushed fmr"),
	KD_CASE(me_free_busy_test,
		"FMR-13,RMR-14: freeing waits for the device, and not for ever"),
	KD_CASE(me_free_behind_test, "LMR-FREE-02: freeing does not wait for the consumer"),
	KD_CASE(me_overtakes_test, "FMR-03,LMR-FREE-02: done before a Read in front of them"),
	KD_CASE(me_free_slow_test, "LMR-FREE-02: a connection that is slow is not ended"),
	KD_CASE(me_free_one_sided_test, "LMR-FREE-02: a peer that takes nothing holds up nobody"),
	KD_CASE(me_free_silent_test, "FMR-13,FLAG-02: also for operations that say nothing"),
	KD_CASE(me_gone_test, "FMR-13,RMR-14: everything ends with all of that under way"),
	{}
};

KD_SUITE("kdapl-mem-op", mem_op_cases, km_init, km_exit);
