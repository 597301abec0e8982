// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Remote Memory Regions when things end or fail: what a peer still reaches and
 * what holds the LMR, after every possible end of a bind.
 */
#include <linux/kthread.h>

#include "kd_mem.h"

#define RE_ADDR(km)	((km)->env.mem[KD_RW].addr)
#define RE_KEY(km)	((km)->env.mem[KD_RW].lmr_context)
#define RE_LMR(km)	((km)->env.mem[KD_RW].lmr)

static DAT_RETURN re_bind(struct km *km, DAT_RMR_HANDLE rmr, u32 offset, u64 cookie,
			  DAT_RMR_CONTEXT *context)
{
	return km_try_rmr(km, rmr, RE_LMR(km), RE_ADDR(km) + offset, 8, RE_KEY(km), KM_REMOTE, 0,
			  cookie, context);
}

static DAT_RETURN re_unbind(struct km *km, DAT_RMR_HANDLE rmr, u64 cookie)
{
	DAT_RMR_CONTEXT none;

	return km_try_rmr(km, rmr, DAT_HANDLE_NULL, 0, 0, 0, 0, 0, cookie, &none);
}

static void re_bound(struct km *km, DAT_RMR_HANDLE rmr, u32 offset, DAT_RMR_CONTEXT *context)
{
	KD_ASSERT_OK(km->env.test, re_bind(km, rmr, offset, 0xb0, context));
	fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS);
	km_expect_bind(km, rmr, 0xb0, DAT_RMR_BIND_SUCCESS);
}

/* Is the LMR held? It is freed and made anew if not. */
static bool re_held(struct km *km)
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

/* What the RMR of a case does when something happens to its request. */
enum re_kind { RE_FRESH, RE_REBIND, RE_UNBIND, RE_KINDS };

static void re_start(struct km *km, DAT_RMR_HANDLE rmr, enum re_kind kind, DAT_RMR_CONTEXT *was,
		     DAT_RMR_CONTEXT *new)
{
	*was = 0;
	*new = 0;
	if (kind != RE_FRESH)
		re_bound(km, rmr, 0, was);
	if (kind == RE_UNBIND)
		KD_ASSERT_OK(km->env.test, re_unbind(km, rmr, 1));
	else
		KD_ASSERT_OK(km->env.test, re_bind(km, rmr, 16, 1, new));
}

/* Nothing or the old binding is in effect, and works on the next connection. */
static void re_check(struct km *km, DAT_RMR_HANDLE rmr, bool bound, DAT_RMR_CONTEXT was,
		     DAT_RMR_CONTEXT new, const char *what)
{
	struct kunit *test = km->env.test;
	DAT_RMR_CONTEXT key;
	DAT_RMR_PARAM param;

	if (was)
		KUNIT_EXPECT_EQ_MSG(test, fake_ib_mr_valid(km->env.dev, was), bound, "%s", what);
	if (new)
		KUNIT_EXPECT_FALSE_MSG(test, fake_ib_mr_valid(km->env.dev, new), "%s", what);
	KUNIT_EXPECT_EQ_MSG(test, re_held(km), bound, "%s", what);
	KD_EXPECT_OK(test, dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param));
	if (bound)
		KUNIT_EXPECT_EQ_MSG(test, param.rmr_context, was, "%s", what);
	km_ep_free(km, 0);
	km_ep(km, 0, NULL);
	kd_connect(&km->env);
	re_bound(km, rmr, 32, &key);
	KUNIT_EXPECT_TRUE_MSG(test, fake_ib_mr_valid(km->env.dev, key), "%s", what);
	if (was)
		KUNIT_EXPECT_FALSE_MSG(test, fake_ib_mr_valid(km->env.dev, was), "%s", what);
	KUNIT_EXPECT_EQ(test, fake_ib_valid_mrs(km->env.dev), KD_NR_MEMS + 1);
}

static void re_fail_test(struct kunit *test)
{
	static const enum ib_wc_status why[] = {
		IB_WC_LOC_QP_OP_ERR, IB_WC_MW_BIND_ERR, IB_WC_LOC_PROT_ERR, IB_WC_GENERAL_ERR,
	};
	struct km *km = km_connected(test, NULL);
	DAT_RMR_CONTEXT was, new;
	DAT_RMR_HANDLE rmr;
	int kind, i;

	for (kind = 0; kind < RE_KINDS; kind++) {
		for (i = 0; i < ARRAY_SIZE(why); i++) {
			rmr = km_rmr(km, false);
			re_start(km, rmr, kind, &was, &new);
			/* the first of two when it is bound anew: the old key survives */
			km_done(km, why[i]);
			if (kind == RE_REBIND)
				KD_EXPECT_EMPTY(test, km->env.req);
			else
				km_expect_bind(km, rmr, 1, DAT_RMR_OPERATION_FAILED);
			KUNIT_EXPECT_EQ(test, kd_expect_end(&km->env),
					(u32)DAT_CONNECTION_EVENT_BROKEN);
			if (kind == RE_REBIND)
				km_expect_bind(km, rmr, 1, DAT_RMR_OPERATION_FAILED);
			KD_EXPECT_EMPTY(test, km->env.req);
			re_check(km, rmr, kind != RE_FRESH, was, new, "failed");
			km_drop_rmr(km, rmr);
		}
	}
	/* the second of two: the old key is gone, and nothing has come for it */
	for (i = 0; i < ARRAY_SIZE(why); i++) {
		rmr = km_rmr(km, false);
		re_start(km, rmr, RE_REBIND, &was, &new);
		km_done(km, IB_WC_SUCCESS);
		KD_EXPECT_EMPTY(test, km->env.req);
		km_done(km, why[i]);
		km_expect_bind(km, rmr, 1, DAT_RMR_OPERATION_FAILED);
		KUNIT_EXPECT_EQ(test, kd_expect_end(&km->env), (u32)DAT_CONNECTION_EVENT_BROKEN);
		re_check(km, rmr, false, was, new, "second failed");
		km_drop_rmr(km, rmr);
	}
}

static void re_flush_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_RMR_CONTEXT was, new;
	DAT_RMR_HANDLE rmr;
	int kind;

	for (kind = 0; kind < RE_KINDS; kind++) {
		rmr = km_rmr(km, false);
		re_start(km, rmr, kind, &was, &new);
		km_down(km);
		km_expect_bind(km, rmr, 1, DAT_RMR_BIND_FAILURE);
		KD_EXPECT_EMPTY(test, km->env.req);
		re_check(km, rmr, kind != RE_FRESH, was, new, "flushed");
		km_drop_rmr(km, rmr);
	}
	/* flushed between the two */
	rmr = km_rmr(km, false);
	re_start(km, rmr, RE_REBIND, &was, &new);
	km_done(km, IB_WC_SUCCESS);
	km_down(km);
	km_expect_bind(km, rmr, 1, DAT_RMR_BIND_FAILURE);
	re_check(km, rmr, false, was, new, "flushed in between");
}

static void re_refused_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_RMR_CONTEXT was = 0, new = 0;
	DAT_RMR_HANDLE rmr;
	int kind;

	for (kind = 0; kind < RE_KINDS; kind++) {
		rmr = km_rmr(km, false);
		was = 0;
		new = 0;
		if (kind != RE_FRESH)
			re_bound(km, rmr, 0, &was);
		fake_ib_fail(km->env.dev, FAKE_IB_POST_SEND, 1, -ENOMEM);
		if (kind == RE_UNBIND)
			KD_EXPECT_OK(test, re_unbind(km, rmr, 1));
		else
			KD_EXPECT_OK(test, re_bind(km, rmr, 16, 1, &new));
		KUNIT_EXPECT_EQ(test, kd_expect_end(&km->env), (u32)DAT_CONNECTION_EVENT_BROKEN);
		km_expect_bind(km, rmr, 1, DAT_RMR_BIND_FAILURE);
		re_check(km, rmr, kind != RE_FRESH, was, new, "refused");
		km_drop_rmr(km, rmr);
	}
}

static void re_states_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_RMR_HANDLE fresh = km_rmr(km, false), rmr = km_rmr(km, false);
	struct km_trace before, after;
	DAT_RMR_CONTEXT was, new;
	int i;

	re_bound(km, rmr, 0, &was);
	for (i = 0; i < KD_STATES; i++) {
		if (kd_states[i].state == DAT_EP_STATE_CONNECTED ||
		    kd_states[i].state == DAT_EP_STATE_DISCONNECTED)
			continue;
		kd_set_state(&km->env, kd_states[i].state);
		km_trace(km, &before);
		KD_EXPECT_RET(test, re_bind(km, rmr, 16, 1, &new), DAT_INVALID_STATE,
			      kd_states[i].subtype);
		KD_EXPECT_RET(test, re_bind(km, fresh, 16, 1, &new), DAT_INVALID_STATE,
			      kd_states[i].subtype);
		KD_EXPECT_RET(test, re_unbind(km, rmr, 1), DAT_INVALID_STATE,
			      kd_states[i].subtype);
		km_untouched(km, &before, kd_states[i].letter);
	}
	kd_set_state(&km->env, DAT_EP_STATE_CONNECTED);
	km_down(km);
	km_trace(km, &before);
	KD_EXPECT_OK(test, re_bind(km, rmr, 16, 1, &new));
	KD_EXPECT_OK(test, re_bind(km, fresh, 16, 2, &new));
	KD_EXPECT_OK(test, re_unbind(km, rmr, 3));
	km_trace(km, &after);
	KUNIT_EXPECT_EQ(test, after.maps, before.maps);
	KUNIT_EXPECT_EQ(test, after.posted, before.posted);
	km_expect_bind(km, rmr, 1, DAT_RMR_BIND_FAILURE);
	km_expect_bind(km, fresh, 2, DAT_RMR_BIND_FAILURE);
	km_expect_bind(km, rmr, 3, DAT_RMR_BIND_FAILURE);
	re_check(km, rmr, true, was, 0, "disconnected");
}

static void re_busy_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_RMR_HANDLE rmr = km_rmr(km, false);
	struct km_trace before;
	DAT_RMR_CONTEXT a, b;

	KD_ASSERT_OK(test, re_bind(km, rmr, 0, 1, &a));
	km_trace(km, &before);
	KM_EXPECT_TYPE(test, re_bind(km, rmr, 8, 2, &b), DAT_INSUFFICIENT_RESOURCES);
	KM_EXPECT_TYPE(test, re_unbind(km, rmr, 2), DAT_INSUFFICIENT_RESOURCES);
	km_untouched(km, &before, "one bind at a time");
	km_done(km, IB_WC_SUCCESS);
	/* it has come back, and the next one finds out itself */
	KD_EXPECT_OK(test, re_bind(km, rmr, 8, 3, &b));
	fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS);
	km_expect_bind(km, rmr, 1, DAT_RMR_BIND_SUCCESS);
	km_expect_bind(km, rmr, 3, DAT_RMR_BIND_SUCCESS);
	KUNIT_EXPECT_FALSE(test, fake_ib_mr_valid(km->env.dev, a));
	KUNIT_EXPECT_TRUE(test, fake_ib_mr_valid(km->env.dev, b));
}

static void re_full_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	struct kd_mem *mem = &km->env.mem[KD_RW];
	DAT_RMR_HANDLE rmrs[8];
	DAT_RMR_CONTEXT key, keys[8];
	int i;

	for (i = 0; i < 8; i++) {
		rmrs[i] = km_rmr(km, false);
		re_bound(km, rmrs[i], 8 * i, &keys[i]);
	}
	/* as many rebinds as the queue is deep, though each takes two requests */
	for (i = 0; i < 8; i++)
		KD_EXPECT_OK(test, re_bind(km, rmrs[i], 8, i, &key));
	KUNIT_EXPECT_EQ(test, fake_ib_outstanding(km->env.qp, false), 16U);
	KM_EXPECT_TYPE(test, km_send(km, mem->lmr_context, mem->addr, 1, 9),
		       DAT_INSUFFICIENT_RESOURCES);
	fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS);
	for (i = 0; i < 8; i++)
		km_expect_bind(km, rmrs[i], i, DAT_RMR_BIND_SUCCESS);
	/* with a full queue nothing happens */
	for (i = 0; i < 8; i++)
		KD_EXPECT_OK(test, km_send(km, mem->lmr_context, mem->addr, 1, i));
	KM_EXPECT_TYPE(test, re_bind(km, rmrs[0], 16, 1, &key), DAT_INSUFFICIENT_RESOURCES);
	KM_EXPECT_TYPE(test, re_unbind(km, rmrs[0], 1), DAT_INSUFFICIENT_RESOURCES);
	fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS);
	for (i = 0; i < 8; i++)
		km_expect(km, DAT_DTO_SEND, i, DAT_DTO_SUCCESS);
	KD_EXPECT_OK(test, re_unbind(km, rmrs[0], 1));
}

/* A request EVD that was not made for binds: no second place is kept for each. */
static void re_plain_evd_test(struct kunit *test)
{
	struct km *km = km_open(test, NULL);
	struct kd_mem *mem = &km->env.mem[KD_RW];
	DAT_RMR_HANDLE rmr = km_rmr(km, false);
	DAT_RMR_CONTEXT was, new;
	int i, n;

	KD_ASSERT_OK(test, dat_evd_free(km->env.req));
	km->env.req = DAT_HANDLE_NULL;
	KD_ASSERT_OK(test, dat_evd_kcreate(km->env.ia, 64, DAT_UPCALL_DISABLE, NULL,
					   DAT_EVD_DTO_FLAG, &km->env.req));
	km_ep(km, 0, NULL);
	kd_connect(&km->env);
	re_bound(km, rmr, 0, &was);
	for (n = 0; n < 8; n++) {
		/* it fits or it does not, whatever else is in the queue */
		for (i = 0; i < n; i++)
			KD_EXPECT_OK(test, km_send(km, mem->lmr_context, mem->addr, 1, i));
		if (re_bind(km, rmr, 8 * n, 99, &new) == DAT_SUCCESS)
			was = new;
		else
			KUNIT_EXPECT_GE(test, n, 4);
		fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS);
		for (i = 0; i < n; i++)
			km_expect(km, DAT_DTO_SEND, i, DAT_DTO_SUCCESS);
		if (was == new)
			km_expect_bind(km, rmr, 99, DAT_RMR_BIND_SUCCESS);
		KD_EXPECT_EMPTY(test, km->env.req);
		KUNIT_EXPECT_TRUE(test, fake_ib_mr_valid(km->env.dev, was));
	}
}

static void re_free_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_RMR_HANDLE rmr = km_rmr(km, false);
	DAT_RMR_CONTEXT a;

	km_drop_rmr(km, rmr);
	rmr = km_rmr(km, false);
	re_bound(km, rmr, 0, &a);
	KUNIT_EXPECT_TRUE(test, re_held(km));
	km_drop_rmr(km, rmr);
	KUNIT_EXPECT_FALSE(test, fake_ib_mr_valid(km->env.dev, a));
	KUNIT_EXPECT_FALSE(test, re_held(km));
	/* without a connection, too */
	rmr = km_rmr(km, true);
	re_bound(km, rmr, 0, &a);
	km_ep_free(km, 0);
	KUNIT_EXPECT_TRUE(test, fake_ib_mr_valid(km->env.dev, a));
	KUNIT_EXPECT_TRUE(test, re_held(km));
	km_drop_rmr(km, rmr);
	KUNIT_EXPECT_FALSE(test, fake_ib_mr_valid(km->env.dev, a));
	KUNIT_EXPECT_FALSE(test, re_held(km));
}

struct re_free {
	DAT_RMR_HANDLE rmr;
	DAT_RETURN ret;
	struct completion done;
};

static int re_free_thread(void *data)
{
	struct re_free *job = data;

	job->ret = dat_rmr_free(job->rmr);
	complete(&job->done);
	return 0;
}

static void re_free_busy_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_RMR_CONTEXT was, new, none;
	struct task_struct *task;
	int kind, ever;

	for (ever = 1; ever >= 0; ever--) {
		for (kind = 0; kind < RE_KINDS; kind++) {
			struct re_free job = {};

			if (!ever && kind != RE_REBIND)
				continue;
			job.rmr = km_rmr(km, false);
			init_completion(&job.done);
			re_start(km, job.rmr, kind, &was, &new);
			task = kthread_run(re_free_thread, &job, "kdapl-free");
			KUNIT_ASSERT_FALSE(test, IS_ERR(task));
			while (DAT_GET_TYPE(re_bind(km, job.rmr, 0, 0, &none)) !=
			       DAT_INVALID_HANDLE)
				kd_pause();
			KUNIT_EXPECT_FALSE(test, completion_done(&job.done));
			if (ever)
				fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS);
			KUNIT_EXPECT_NE(test, wait_for_completion_timeout(&job.done, 20 * HZ), 0UL);
			KD_EXPECT_OK(test, job.ret);
			memset(km->rmrs, 0, sizeof(km->rmrs));
			KUNIT_EXPECT_EQ(test, fake_ib_valid_mrs(km->env.dev), KD_NR_MEMS);
			KUNIT_EXPECT_FALSE(test, re_held(km));
			km_drain(km->env.req);
		}
	}
	KUNIT_EXPECT_EQ(test, kd_expect_end(&km->env), (u32)DAT_CONNECTION_EVENT_BROKEN);
}

static void re_large_test(struct kunit *test)
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
	KD_EXPECT_OK(test, km_try_rmr(km, rmr, lmr, 77 * PAGE_SIZE, limits.rmr_pages * PAGE_SIZE,
				      context, KM_REMOTE, 0, 1, &key));
	km_done(km, IB_WC_SUCCESS);
	km_expect_bind(km, rmr, 1, DAT_RMR_BIND_SUCCESS);
	KD_EXPECT_RET(test, km_try_rmr(km, rmr, lmr, 0, limits.rmr_pages * PAGE_SIZE + 1, context,
				       KM_REMOTE, 0, 1, &key), DAT_INSUFFICIENT_RESOURCES,
		      DAT_RESOURCE_MEMORY_REGION);
	KUNIT_EXPECT_EQ(test, fake_ib_outstanding(km->env.qp, false), 0U);
	KD_EXPECT_EMPTY(test, km->env.req);
}

static struct kunit_case rmr_end_cases[] = {
	KD_CASE(re_fail_test, "RMR-11,RMR-13: a bind fails, at its first or second request"),
	KD_CASE(re_flush_test, "RMR-10,RMR-13: a bind is flushed: what was, is"),
	KD_CASE(re_refused_test, "RMR-10,RMR-13: the device does not take it: the same"),
	KD_CASE(re_states_test, "RMR-10: states in which nothing is bound"),
	KD_CASE(re_busy_test, "RMR-16: one bind at a time"),
	KD_CASE(re_full_test, "RMR-16,EP-POST-17: how many fit into the queue"),
	KD_CASE(re_plain_evd_test, "RMR-03,RMR-16: on an EVD that is not for binds"),
	KD_CASE(re_free_test, "RMR-14,RMR-13,LMR-FREE-01: freeing it, bound or not"),
	KD_CASE(re_free_busy_test, "RMR-14: dat_rmr_free waits for the bind, and not for ever"),
	KD_CASE(re_large_test, "RMR-02,RMR-16: as many pages as an RMR takes, and one more"),
	{}
};

static struct kunit_suite rmr_end_suite = {
	.name = "kdapl-rmr-end",
	.suite_init = kd_suite_init,
	.suite_exit = kd_suite_exit,
	.init = km_init,
	.exit = km_exit,
	.test_cases = rmr_end_cases,
};

kunit_test_suite(rmr_end_suite);
