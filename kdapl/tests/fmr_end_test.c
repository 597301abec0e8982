// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Fast registration when things end: failures, refusals, flushes, states after a
 * connection, and dat_lmr_free() with operations under way.
 */
#include <linux/kthread.h>
#include <linux/mm.h>

#include "kd_mem.h"

#define FE_ALL		DAT_MEM_PRIV_ALL_FLAG

static void fe_fails_test(struct kunit *test)
{
	static const enum ib_wc_status why[] = {
		IB_WC_LOC_QP_OP_ERR, IB_WC_LOC_PROT_ERR, IB_WC_MW_BIND_ERR, IB_WC_LOC_ACCESS_ERR,
		IB_WC_GENERAL_ERR, IB_WC_FATAL_ERR,
	};
	struct km *km = km_open(test, NULL);
	DAT_LMR_HANDLE lmr = km_lmr(km, 2, DAT_LMR_SCOPE_PZ);
	struct km_keys keys;
	int i, invalidate;

	for (i = 0; i < 2 * ARRAY_SIZE(why); i++) {
		invalidate = i & 1;
		km_ep(km, 0, NULL);
		kd_connect(&km->env);
		if (invalidate) {
			km_bind(km, lmr, 0, 2, FE_ALL, &keys);
			KD_EXPECT_OK(test, km_try_inv(km, lmr, 0, 1));
		} else {
			KD_EXPECT_OK(test, km_try_fmr(km, lmr, 0, 2, FE_ALL, 0, 1, &keys));
		}
		km_done(km, why[i / 2]);
		km_expect(km, invalidate ? DAT_DTO_LMR_INVALIDATE : DAT_DTO_LMR_FMR, 1,
			  DAT_DTO_ERR_LOCAL_MM_ERROR);
		KUNIT_EXPECT_EQ(test, kd_expect_end(&km->env), (u32)DAT_CONNECTION_EVENT_BROKEN);
		/* what could not be invalidated is still bound */
		KUNIT_EXPECT_EQ(test, km_bound(km, lmr), !!invalidate);
		km_ep_free(km, 0);
		if (!invalidate)
			continue;
		km_ep(km, 0, NULL);
		kd_connect(&km->env);
		KD_EXPECT_OK(test, km_send(km, keys.lmr, km->pa[0], 8, 2));
		km_done(km, IB_WC_SUCCESS);
		km_expect(km, DAT_DTO_SEND, 2, DAT_DTO_SUCCESS);
		km_unbind(km, lmr);
		km_ep_free(km, 0);
	}
}

/* The provider refuses a legal request: the same as if it had come too late. */
static void fe_refused_test(struct kunit *test)
{
	struct km *km = km_open(test, NULL);
	DAT_LMR_HANDLE lmr = km_lmr(km, 2, DAT_LMR_SCOPE_PZ);
	struct kdapl_lmr *obj = kdapl_obj_get(lmr, DAT_HANDLE_TYPE_LMR);
	struct ib_mr *ibmr = obj->mr.ibmr;
	struct km_keys keys;
	int invalidate;

	for (invalidate = 0; invalidate < 2; invalidate++) {
		km_ep(km, 0, NULL);
		kd_connect(&km->env);
		if (invalidate)
			km_bind(km, lmr, 0, 2, FE_ALL, &keys);
		fake_ib_fail(km->env.dev, FAKE_IB_POST_SEND, 1, -ENOMEM);
		if (invalidate)
			KD_EXPECT_OK(test, km_try_inv(km, lmr, 0, 1));
		else
			KD_EXPECT_OK(test, km_try_fmr(km, lmr, 0, 2, FE_ALL, 0, 1, &keys));
		KUNIT_EXPECT_EQ(test, kd_expect_end(&km->env), (u32)DAT_CONNECTION_EVENT_BROKEN);
		km_expect(km, invalidate ? DAT_DTO_LMR_INVALIDATE : DAT_DTO_LMR_FMR, 1,
			  DAT_DTO_ERR_FLUSHED);
		KD_EXPECT_EMPTY(test, km->env.req);
		KUNIT_EXPECT_EQ(test, km_bound(km, lmr), !!invalidate);
		KUNIT_EXPECT_EQ(test, fake_ib_mr_valid(km->env.dev, keys.lmr), !!invalidate);
		km_ep_free(km, 0);
		/* the device has never seen it, so there is no doubt about the region */
		KUNIT_EXPECT_PTR_EQ(test, obj->mr.ibmr, ibmr);
	}
	kdapl_obj_put(&obj->obj);
}

static void fe_flush_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_LMR_HANDLE a = km_lmr(km, 2, DAT_LMR_SCOPE_PZ), b = km_lmr(km, 2, DAT_LMR_SCOPE_PZ);
	struct km_keys ka, kb;

	km_bind(km, b, 2, 2, FE_ALL, &kb);
	KD_EXPECT_OK(test, km_try_fmr(km, a, 0, 2, FE_ALL, 0, 1, &ka));
	KD_EXPECT_OK(test, km_try_inv(km, b, 0, 2));
	KM_EXPECT_TYPE(test, km_send(km, kb.lmr, km->pa[2], 8, 9), DAT_PRIVILEGES_VIOLATION);
	km_down(km);
	km_expect(km, DAT_DTO_LMR_FMR, 1, DAT_DTO_ERR_FLUSHED);
	km_expect(km, DAT_DTO_LMR_INVALIDATE, 2, DAT_DTO_ERR_FLUSHED);
	KD_EXPECT_EMPTY(test, km->env.req);
	KUNIT_EXPECT_FALSE(test, km_bound(km, a));
	KUNIT_EXPECT_FALSE(test, fake_ib_mr_valid(km->env.dev, ka.lmr));
	/* a flushed invalidate has ended nothing: memory and keys are in use still */
	KUNIT_EXPECT_TRUE(test, km_bound(km, b));
	KUNIT_EXPECT_TRUE(test, fake_ib_mr_valid(km->env.dev, kb.lmr));
	km_ep(km, 1, NULL);
	kd_connect(&km->env);
	KM_EXPECT_TYPE(test, km_send(km, ka.lmr, km->pa[0], 8, 9), DAT_PRIVILEGES_VIOLATION);
	KD_EXPECT_OK(test, km_send(km, kb.lmr, km->pa[2], 8, 3));
	km_done(km, IB_WC_SUCCESS);
	km_expect(km, DAT_DTO_SEND, 3, DAT_DTO_SUCCESS);
	km_unbind(km, b);
	km_bind(km, a, 0, 2, FE_ALL, &kb);
	KUNIT_EXPECT_NE(test, ka.lmr, kb.lmr);
}

static void fe_disconnected_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_LMR_HANDLE a = km_lmr(km, 2, DAT_LMR_SCOPE_PZ), b = km_lmr(km, 2, DAT_LMR_SCOPE_PZ);
	struct km_keys ka, kb;
	struct km_trace before, after;

	km_bind(km, b, 2, 2, FE_ALL, &kb);
	km_down(km);
	km_trace(km, &before);
	KD_EXPECT_OK(test, km_try_fmr(km, a, 0, 2, FE_ALL, 0, 1, &ka));
	KD_EXPECT_OK(test, km_try_inv(km, b, 0, 2));
	km_trace(km, &after);
	/* nothing is mapped, nothing posted */
	KUNIT_EXPECT_EQ(test, after.maps, before.maps);
	KUNIT_EXPECT_EQ(test, after.posted, before.posted);
	km_expect(km, DAT_DTO_LMR_FMR, 1, DAT_DTO_ERR_FLUSHED);
	km_expect(km, DAT_DTO_LMR_INVALIDATE, 2, DAT_DTO_ERR_FLUSHED);
	KD_EXPECT_EMPTY(test, km->env.req);
	KUNIT_EXPECT_FALSE(test, km_bound(km, a));
	KUNIT_EXPECT_TRUE(test, km_bound(km, b));
	KUNIT_EXPECT_TRUE(test, fake_ib_mr_valid(km->env.dev, kb.lmr));
	/* suppressed, it is reported all the same */
	KD_EXPECT_OK(test, km_try_fmr(km, a, 0, 2, FE_ALL, DAT_COMPLETION_SUPPRESS_FLAG, 3, &ka));
	km_expect(km, DAT_DTO_LMR_FMR, 3, DAT_DTO_ERR_FLUSHED);
	/* the next connection finds both as they are */
	km_ep_free(km, 0);
	km_ep(km, 0, NULL);
	kd_connect(&km->env);
	km_unbind(km, b);
	km_bind(km, a, 0, 2, FE_ALL, &ka);
}

static void fe_reset_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_LMR_HANDLE a = km_lmr(km, 2, DAT_LMR_SCOPE_EP), b = km_lmr(km, 2, DAT_LMR_SCOPE_EP);
	struct km_keys ka, kb;

	km_bind(km, b, 2, 2, FE_ALL, &kb);
	KD_EXPECT_OK(test, km_try_fmr(km, a, 0, 2, FE_ALL, 0, 1, &ka));
	KD_EXPECT_OK(test, km_try_inv(km, b, 0, 2));
	km_down(km);
	/* events nobody has taken are lost with the reset, what they say is not */
	KD_EXPECT_OK(test, dat_ep_reset(km->env.ep));
	km_drain(km->env.req);
	KUNIT_EXPECT_FALSE(test, km_bound(km, a));
	KUNIT_EXPECT_TRUE(test, km_bound(km, b));
	km->env.qp = fake_ib_newest_qp(km->env.dev);
	km->eps[0].qp = km->env.qp;
	kd_connect(&km->env);
	km_unbind(km, b);
	km_bind(km, a, 0, 2, FE_ALL, &ka);
	KD_EXPECT_OK(test, km_send(km, ka.lmr, km->pa[0], 8, 3));
}

static void fe_free_bound_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_LMR_HANDLE lmr = km_lmr(km, 2, DAT_LMR_SCOPE_PZ);
	struct km_keys keys;
	u8 byte;

	km_bind(km, lmr, 0, 2, FE_ALL, &keys);
	KUNIT_EXPECT_EQ(test, fake_ib_access(km->env.dev, keys.rmr, km->pa[0], &byte, 1,
					     IB_ACCESS_REMOTE_READ), 0);
	km_drop_lmr(km, lmr);
	KUNIT_EXPECT_EQ(test, fake_ib_access(km->env.dev, keys.rmr, km->pa[0], &byte, 1,
					     IB_ACCESS_REMOTE_READ), -EACCES);
	KM_EXPECT_TYPE(test, km_send(km, keys.lmr, km->pa[0], 1, 1), DAT_PRIVILEGES_VIOLATION);
	/* one that its EP has left behind */
	lmr = km_lmr(km, 2, DAT_LMR_SCOPE_EP);
	km_bind(km, lmr, 0, 2, FE_ALL, &keys);
	km_ep_free(km, 0);
	KUNIT_EXPECT_TRUE(test, km_bound(km, lmr));
	KUNIT_EXPECT_TRUE(test, fake_ib_mr_valid(km->env.dev, keys.rmr));
	km_drop_lmr(km, lmr);
	KUNIT_EXPECT_FALSE(test, fake_ib_mr_valid(km->env.dev, keys.rmr));
}

struct fe_free {
	DAT_LMR_HANDLE lmr;
	DAT_RETURN ret;
	struct completion done;
};

static int fe_free_thread(void *data)
{
	struct fe_free *job = data;

	job->ret = dat_lmr_free(job->lmr);
	complete(&job->done);
	return 0;
}

/* dat_lmr_free() with an operation at the device, which comes back now or never. */
static void fe_free_busy(struct km *km, bool invalidate, bool ever)
{
	struct kunit *test = km->env.test;
	DAT_LMR_HANDLE lmr = km_lmr(km, 2, DAT_LMR_SCOPE_PZ);
	struct fe_free job = { .lmr = lmr };
	unsigned long began = jiffies;
	struct task_struct *task;
	struct km_keys keys, none;

	init_completion(&job.done);
	if (invalidate) {
		km_bind(km, lmr, 0, 2, FE_ALL, &keys);
		KD_EXPECT_OK(test, km_try_inv(km, lmr, 0, 1));
	} else {
		KD_EXPECT_OK(test, km_try_fmr(km, lmr, 0, 2, FE_ALL, 0, 1, &keys));
	}
	task = kthread_run(fe_free_thread, &job, "kdapl-free");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	/* its handle and keys are gone at once, the rest waits for the device */
	while (km_send(km, keys.lmr, km->pa[0], 1, 9) == DAT_SUCCESS)
		kd_pause();
	while (DAT_GET_TYPE(km_try_inv(km, lmr, 0, 1)) != DAT_INVALID_HANDLE)
		kd_pause();
	KM_EXPECT_TYPE(test, km_try_fmr(km, lmr, 0, 2, FE_ALL, 0, 1, &none), DAT_INVALID_HANDLE);
	KUNIT_EXPECT_FALSE(test, completion_done(&job.done));
	if (ever)
		fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS);
	KUNIT_EXPECT_NE(test, wait_for_completion_timeout(&job.done, 20 * HZ), 0UL);
	KD_EXPECT_OK(test, job.ret);
	KUNIT_EXPECT_FALSE(test, fake_ib_mr_valid(km->env.dev, keys.lmr));
	memset(km->lmrs, 0, sizeof(km->lmrs));
	if (ever) {
		KD_EXPECT_EMPTY(test, km->env.conn);
	} else {
		KUNIT_EXPECT_EQ(test, kd_expect_end(&km->env), (u32)DAT_CONNECTION_EVENT_BROKEN);
		/* the device has 5 s */
		KUNIT_EXPECT_TRUE(test, time_after(jiffies, began + 4 * HZ));
	}
	km_drain(km->env.req);
}

static void fe_free_busy_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);

	fe_free_busy(km, false, true);
	fe_free_busy(km, true, true);
}

/* A silent fmr has no completion to wait for: the device is asked how far it is. */
static void fe_free_silent_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_LMR_HANDLE lmr = km_lmr(km, 2, DAT_LMR_SCOPE_PZ);
	struct fe_free job = { .lmr = lmr };
	struct task_struct *task;
	struct km_keys keys;
	unsigned long began;

	init_completion(&job.done);
	KD_EXPECT_OK(test, km_try_fmr(km, lmr, 0, 2, FE_ALL, DAT_COMPLETION_SUPPRESS_FLAG, 1,
				      &keys));
	km_done(km, IB_WC_SUCCESS);
	began = jiffies;
	task = kthread_run(fe_free_thread, &job, "kdapl-free");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	while (!wait_for_completion_timeout(&job.done, HZ / 50 + 1) &&
	       time_before(jiffies, began + 20 * HZ))
		fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, time_before(jiffies, began + 4 * HZ));
	memset(km->lmrs, 0, sizeof(km->lmrs));
	KD_EXPECT_OK(test, job.ret);
	KUNIT_EXPECT_FALSE(test, fake_ib_mr_valid(km->env.dev, keys.lmr));
	KD_EXPECT_EMPTY(test, km->env.req);
	KD_EXPECT_EMPTY(test, km->env.conn);
	KUNIT_EXPECT_EQ(test, (int)READ_ONCE(km->env.kep->state), (int)DAT_EP_STATE_CONNECTED);
}

static u32 fe_stored(struct km *km)
{
	struct kdapl_evd *evd = kdapl_obj_get(km->env.req, DAT_HANDLE_TYPE_EVD);
	u32 count = READ_ONCE(evd->backlog_count);

	kdapl_obj_put(&evd->obj);
	return count;
}

/* Completions nobody fetches: the room kept for ends of connections is not for it. */
static void fe_free_full_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_LMR_HANDLE lmr = km_lmr(km, 2, DAT_LMR_SCOPE_PZ);
	struct kd_mem *mem = &km->env.mem[KD_RW];
	struct fe_free job = { .lmr = lmr };
	struct task_struct *task;
	struct km_keys keys;
	DAT_EVENT event;
	u32 full;
	int i;

	while (km_send(km, mem->lmr_context, mem->addr, 8, 2) == DAT_SUCCESS)
		fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS);
	full = fe_stored(km);
	KUNIT_ASSERT_TRUE(test, kd_next(km->env.req, &event));
	KD_ASSERT_OK(test, km_try_fmr(km, lmr, 0, 2, FE_ALL, 0, 1, &keys));
	fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS);
	init_completion(&job.done);
	task = kthread_run(fe_free_thread, &job, "kdapl-free");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	for (i = 0; i < 20; i++)
		kd_pause();
	KUNIT_EXPECT_FALSE(test, completion_done(&job.done));
	KUNIT_EXPECT_LE(test, fe_stored(km), full);
	/* the consumer comes back before patience ends */
	for (i = 0; i < 1000 && !completion_done(&job.done); i++) {
		km_drain(km->env.req);
		kd_pause();
	}
	KUNIT_EXPECT_NE(test, wait_for_completion_timeout(&job.done, 20 * HZ), 0UL);
	KD_EXPECT_OK(test, job.ret);
	memset(km->lmrs, 0, sizeof(km->lmrs));
	km_drain(km->env.req);
	KD_EXPECT_EMPTY(test, km->env.conn);
}

/* Between a flushed fmr and the end that resolves it nobody knows the next keys. */
static void fe_next_stale_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	struct kdapl_ia *ia = kdapl_obj_get(km->env.ia, DAT_HANDLE_TYPE_IA);
	DAT_LMR_HANDLE lmr = km_lmr(km, 2, DAT_LMR_SCOPE_PZ);
	struct km_keys keys;
	DAT_LMR_CONTEXT key;

	mutex_lock(&ia->stale_mutex);
	KD_EXPECT_OK(test, km_try_fmr(km, lmr, 0, 2, FE_ALL, 0, 1, &keys));
	km_done(km, IB_WC_WR_FLUSH_ERR);
	km_expect(km, DAT_DTO_LMR_FMR, 1, DAT_DTO_ERR_FLUSHED);
	KD_EXPECT_RET(test, kdat_lmr_next_contexts(lmr, &key, NULL), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_LMR_IN_USE);
	mutex_unlock(&ia->stale_mutex);
	kdapl_obj_put(&ia->obj);
	KUNIT_EXPECT_EQ(test, kd_expect_end(&km->env), (u32)DAT_CONNECTION_EVENT_BROKEN);
	KD_EXPECT_OK(test, kdat_lmr_next_contexts(lmr, &key, NULL));
	km_ep(km, 1, NULL);
	kd_connect(&km->env);
	km_bind(km, lmr, 0, 2, FE_ALL, &keys);
	KUNIT_EXPECT_EQ(test, keys.lmr, key);
}

static void fe_free_stuck_test(struct kunit *test)
{
	struct km *km = km_open(test, NULL);
	int invalidate;

	for (invalidate = 0; invalidate < 2; invalidate++) {
		km_ep(km, 0, NULL);
		kd_connect(&km->env);
		fe_free_busy(km, invalidate, false);
		km_ep_free(km, 0);
	}
}

/* Everything is given back when the consumer just closes. */
static void fe_close_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_LMR_HANDLE a = km_lmr(km, 2, DAT_LMR_SCOPE_PZ), b = km_lmr(km, 2, DAT_LMR_SCOPE_PZ);
	DAT_LMR_HANDLE c = km_lmr(km, 2, DAT_LMR_SCOPE_PZ);
	DAT_RMR_HANDLE rmr = km_rmr(km, false);
	struct km_keys keys, none;
	DAT_RMR_CONTEXT context;
	DAT_IA_HANDLE ia;

	km_bind(km, a, 0, 2, FE_ALL, &keys);
	km_bind(km, b, 2, 2, FE_ALL, &none);
	KD_EXPECT_OK(test, km_try_rmr(km, rmr, a, km->pa[0], 16, keys.lmr, KM_REMOTE, 0, 1,
				      &context));
	KD_EXPECT_OK(test, km_try_inv(km, b, 0, 1));
	KD_EXPECT_OK(test, km_try_fmr(km, c, 0, 2, FE_ALL, 0, 1, &keys));
	memset(km->lmrs, 0, sizeof(km->lmrs));
	memset(km->rmrs, 0, sizeof(km->rmrs));
	memset(km->eps, 0, sizeof(km->eps));
	ia = kd_forget(&km->env);
	KD_EXPECT_OK(test, dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	KUNIT_EXPECT_EQ(test, fake_ib_valid_mrs(km->env.dev), 0);
}

/* The device goes while memory is bound and operations are under way. */
static void fe_removed_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_LMR_HANDLE a = km_lmr(km, 2, DAT_LMR_SCOPE_PZ), b = km_lmr(km, 2, DAT_LMR_SCOPE_PZ);
	DAT_RMR_HANDLE rmr = km_rmr(km, false);
	struct km_keys keys, none;
	DAT_RMR_CONTEXT context;
	struct fake_ib_live live;

	km_bind(km, a, 0, 2, FE_ALL, &keys);
	KD_EXPECT_OK(test, km_try_rmr(km, rmr, a, km->pa[0], 16, keys.lmr, KM_REMOTE, 0, 1,
				      &context));
	KD_EXPECT_OK(test, km_try_fmr(km, b, 2, 2, FE_ALL, 0, 1, &none));
	fake_ib_unplug(km->env.dev);
	fake_ib_live(km->env.dev, &live);
	KUNIT_EXPECT_EQ(test, live.mrs, 0);
	KUNIT_EXPECT_NE(test, (u32)km_try_fmr(km, b, 2, 2, FE_ALL, 0, 1, &none), 0U);
	KUNIT_EXPECT_NE(test, (u32)km_try_inv(km, a, 0, 1), 0U);
	KUNIT_EXPECT_NE(test, (u32)km_send(km, keys.lmr, km->pa[0], 1, 1), 0U);
	/* km_exit() frees the shells */
}

static struct kunit_case fmr_end_cases[] = {
	KD_CASE(fe_fails_test, "FMR-09: an operation the device fails to do breaks the connection"),
	KD_CASE(fe_refused_test, "FMR-09,FMR-15: an operation the device does not take is flushed"),
	KD_CASE(fe_flush_test,
		"FMR-15,FLUSH-01: flushed, an fmr binds nothing, an invalidate unbinds nothing"),
	KD_CASE(fe_disconnected_test,
		"FMR-07,FMR-15,EP-POST-11: in DISCONNECTED both are flushed and change nothing"),
	KD_CASE(fe_reset_test, "FMR-15,FLUSH-05: the same when dat_ep_reset drops the events"),
	KD_CASE(fe_free_bound_test, "FMR-13,LMR-FREE-02,LMR-FREE-03: freeing what is bound"),
	KD_CASE(fe_free_full_test, "FMR-13,EVD-OVF-01: dat_lmr_free, and nobody dequeues"),
	KD_CASE(fe_next_stale_test, "FMR-04,FMR-07: the next keys after a flushed fmr"),
	KD_CASE(fe_free_busy_test, "FMR-13: dat_lmr_free waits for operations at the device"),
	KD_CASE(fe_free_silent_test, "FMR-13,FLAG-02: also for those that say nothing"),
	KD_CASE(fe_free_stuck_test, "FMR-13: and ends the connection that keeps them"),
	KD_CASE(fe_close_test, "FMR-13,RMR-14: dat_ia_close with all of that under way"),
	KD_CASE(fe_removed_test, "FMR-13: the device goes with all of that under way"),
	{}
};

static struct kunit_suite fmr_end_suite = {
	.name = "kdapl-fmr-end",
	.suite_init = kd_suite_init,
	.suite_exit = kd_suite_exit,
	.init = km_init,
	.exit = km_exit,
	.test_cases = fmr_end_cases,
};

kunit_test_suite(fmr_end_suite);
