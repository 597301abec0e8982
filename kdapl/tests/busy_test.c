// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * A device that takes its time, and consumers that do not share its fate: while an
 * object of one is being destroyed the others create, reset and free theirs, and the
 * removal of the device waits for it. What storage may wait for allocates without I/O.
 */
#include <linux/completion.h>
#include <linux/kthread.h>

#include "kd_test.h"

#define BUSY_LONG	(10 * HZ)

/**
 * struct busy - somebody in the middle of destroying something
 * @env: what there is
 * @at: the device has been asked to
 * @go: it may
 * @freed: it has
 * @other: somebody else is through
 * @handle: of what is freed
 * @free: how
 * @ret: what came of it
 * @other_ret: and of what somebody else did
 */
struct busy {
	struct kd_env *env;
	struct completion at;
	struct completion go;
	struct completion freed;
	struct completion other;
	DAT_HANDLE handle;
	DAT_RETURN (*free)(DAT_HANDLE handle);
	DAT_RETURN ret;
	DAT_RETURN other_ret;
};

static void busy_block(void *arg)
{
	struct busy *busy = arg;

	complete_all(&busy->at);
	wait_for_completion(&busy->go);
}

static int busy_freer(void *arg)
{
	struct busy *busy = arg;

	busy->ret = busy->free(busy->handle);
	complete_all(&busy->freed);
	return 0;
}

/* Another instance, with an EP; and one that is reset, as every reconnect does. */
static DAT_RETURN busy_live(struct busy *busy)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	char name[DAT_NAME_MAX_LENGTH];
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	DAT_EP_HANDLE ep;
	DAT_RETURN ret;

	snprintf(name, sizeof(name), "%s-1", fake_ib_name(busy->env->dev));
	ret = dat_ia_open(name, 8, &async, &ia);
	if (ret != DAT_SUCCESS)
		return ret;
	ret = dat_pz_create(ia, &pz);
	if (ret == DAT_SUCCESS)
		ret = dat_ep_create(ia, pz, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL,
				    NULL, &ep);
	if (ret == DAT_SUCCESS)
		ret = dat_ep_reset(busy->env->ep);
	if (ret == DAT_SUCCESS)
		ret = dat_ep_free(ep);
	if (ret == DAT_SUCCESS)
		ret = dat_pz_free(pz);
	dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
	return ret;
}

static int busy_other(void *arg)
{
	struct busy *busy = arg;

	busy->other_ret = busy_live(busy);
	complete_all(&busy->other);
	return 0;
}

static int busy_unplugger(void *arg)
{
	struct busy *busy = arg;

	fake_ib_unplug(busy->env->dev);
	complete_all(&busy->other);
	return 0;
}

static void busy_init(struct busy *busy, struct kd_env *env)
{
	memset(busy, 0, sizeof(*busy));
	busy->env = env;
	init_completion(&busy->at);
	init_completion(&busy->go);
	init_completion(&busy->freed);
	init_completion(&busy->other);
}

static bool busy_start(struct kunit *test, int (*fn)(void *arg), struct busy *busy)
{
	struct task_struct *task = kthread_run(fn, busy, "kdapl_busy");

	KUNIT_EXPECT_FALSE(test, IS_ERR(task));
	return !IS_ERR(task);
}

struct busy_kind {
	const char *name;
	enum fake_ib_moment moment;
	DAT_RETURN (*make)(struct kd_env *env, DAT_HANDLE *handle);
	DAT_RETURN (*free)(DAT_HANDLE handle);
};

static DAT_RETURN busy_make_lmr(struct kd_env *env, DAT_HANDLE *handle)
{
	DAT_REGION_DESCRIPTION region = { .for_va = env->buf };
	DAT_LMR_CONTEXT lmr;
	DAT_RMR_CONTEXT rmr;
	DAT_VLEN length;
	DAT_VADDR addr;

	return dat_lmr_kcreate(env->ia, DAT_MEM_TYPE_VIRTUAL, region, 100, env->pz,
			       DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA,
			       DAT_MEM_OPTIMIZE_DONT_CARE, handle, &lmr, &rmr, &length, &addr);
}

static DAT_RETURN busy_make_evd(struct kd_env *env, DAT_HANDLE *handle)
{
	return dat_evd_kcreate(env->ia, 8, DAT_UPCALL_DISABLE, NULL, DAT_EVD_DTO_FLAG, handle);
}

static DAT_RETURN busy_make_srq(struct kd_env *env, DAT_HANDLE *handle)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 8, .max_recv_iov = 1 };

	return dat_srq_create(env->ia, env->pz, &attr, handle);
}

/* A PZ that has had an LMR has a QP of its own to register by. */
static DAT_RETURN busy_make_pz(struct kd_env *env, DAT_HANDLE *handle)
{
	DAT_PZ_HANDLE pz = env->pz;
	DAT_HANDLE lmr;
	DAT_RETURN ret;

	ret = dat_pz_create(env->ia, handle);
	if (ret != DAT_SUCCESS)
		return ret;
	env->pz = *handle;
	ret = busy_make_lmr(env, &lmr);
	env->pz = pz;
	return ret == DAT_SUCCESS ? dat_lmr_free(lmr) : ret;
}

static const struct busy_kind busy_kinds[] = {
	{ "LMR", FAKE_IB_DESTROY_MR, busy_make_lmr, dat_lmr_free },
	{ "EVD", FAKE_IB_DESTROY_CQ, busy_make_evd, dat_evd_free },
	{ "SRQ", FAKE_IB_DESTROY_SRQ, busy_make_srq, dat_srq_free },
	{ "registration QP", FAKE_IB_DESTROY_QP, busy_make_pz, dat_pz_free },
	{ "PZ", FAKE_IB_DESTROY_PD, busy_make_pz, dat_pz_free },
};

static void busy_others_test(struct kunit *test)
{
	struct kd_env *env = kd_connected(test, NULL);
	struct busy busy;
	DAT_EVENT event;
	int i;

	for (i = 0; i < ARRAY_SIZE(busy_kinds); i++) {
		const struct busy_kind *kind = &busy_kinds[i];

		busy_init(&busy, env);
		KD_ASSERT_OK(test, kind->make(env, &busy.handle));
		busy.free = kind->free;
		if (i)
			kd_connect(env);
		kd_end(env, DAT_CONNECTION_EVENT_DISCONNECTED);
		fake_ib_at(env->dev, kind->moment, 1, busy_block, &busy);
		if (!busy_start(test, busy_freer, &busy))
			return;
		KUNIT_EXPECT_TRUE_MSG(test, wait_for_completion_timeout(&busy.at, BUSY_LONG), "%s",
				      kind->name);
		if (!busy_start(test, busy_other, &busy))
			complete_all(&busy.other);
		KUNIT_EXPECT_TRUE_MSG(test, wait_for_completion_timeout(&busy.other, BUSY_LONG),
				      "others wait while the device destroys a %s", kind->name);
		KUNIT_EXPECT_FALSE(test, completion_done(&busy.freed));
		complete_all(&busy.go);
		wait_for_completion(&busy.freed);
		wait_for_completion(&busy.other);
		KD_EXPECT_OK(test, busy.ret);
		KD_EXPECT_OK(test, busy.other_ret);
		env->qp = kd_conn_of(env)->qp;
		KUNIT_ASSERT_TRUE(test, kd_next(env->conn, &event));
	}
}

/* The device goes while an object is on its way out: it is destroyed once, before. */
static void busy_unplug(struct kunit *test, const struct busy_kind *kind)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kdapl_ia *ia = kdapl_obj_get(env->ia, DAT_HANDLE_TYPE_IA);
	struct fake_ib_live live;
	struct busy busy;
	int i;

	busy_init(&busy, env);
	KD_ASSERT_OK(test, kind->make(env, &busy.handle));
	busy.free = kind->free;
	fake_ib_at(env->dev, kind->moment, 1, busy_block, &busy);
	if (!busy_start(test, busy_freer, &busy))
		return;
	KUNIT_EXPECT_TRUE(test, wait_for_completion_timeout(&busy.at, BUSY_LONG));
	if (!busy_start(test, busy_unplugger, &busy))
		complete_all(&busy.other);
	for (i = 0; i < 500 && !READ_ONCE(ia->dev->gone); i++)
		kd_pause();
	KUNIT_EXPECT_TRUE(test, READ_ONCE(ia->dev->gone));
	KUNIT_EXPECT_FALSE_MSG(test, completion_done(&busy.other), "%s", kind->name);
	complete_all(&busy.go);
	wait_for_completion(&busy.freed);
	wait_for_completion(&busy.other);
	KD_EXPECT_OK(test, busy.ret);
	fake_ib_live(env->dev, &live);
	KUNIT_EXPECT_EQ_MSG(test, live.pds + live.mrs + live.cqs + live.qps + live.srqs, 0, "%s",
			    kind->name);
	kdapl_obj_put(&ia->obj);
}

static void busy_unplug_test(struct kunit *test)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(busy_kinds); i++) {
		if (i)
			kd_again(test);
		busy_unplug(test, &busy_kinds[i]);
	}
}

/* The other way round: removal is at it when the consumer frees the object. */
static void busy_late(struct kunit *test, const struct busy_kind *kind)
{
	struct kd_env *env = kd_open(test, NULL);
	struct fake_ib_live live;
	struct busy busy;

	busy_init(&busy, env);
	KD_ASSERT_OK(test, kind->make(env, &busy.handle));
	busy.free = kind->free;
	fake_ib_at(env->dev, kind->moment, 1, busy_block, &busy);
	if (!busy_start(test, busy_unplugger, &busy))
		return;
	KUNIT_EXPECT_TRUE(test, wait_for_completion_timeout(&busy.at, BUSY_LONG));
	if (!busy_start(test, busy_freer, &busy))
		complete_all(&busy.freed);
	kd_pause();
	complete_all(&busy.go);
	wait_for_completion(&busy.freed);
	wait_for_completion(&busy.other);
	KD_EXPECT_OK(test, busy.ret);
	fake_ib_live(env->dev, &live);
	KUNIT_EXPECT_EQ_MSG(test, live.pds + live.mrs + live.cqs + live.qps + live.srqs, 0, "%s",
			    kind->name);
}

static void busy_late_test(struct kunit *test)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(busy_kinds); i++) {
		if (i)
			kd_again(test);
		busy_late(test, &busy_kinds[i]);
	}
}

/* All that a consumer calls to be connected again; the device looks at work items as well. */
static void busy_noio_test(struct kunit *test)
{
	struct kd_env *env = kd_connected(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 8, 1);
	DAT_EP_HANDLE ep;
	int i;

	fake_ib_frugal(env->dev, true);
	for (i = 0; i < 3; i++)
		KD_EXPECT_OK(test, kd_post(env->ep, KD_WRITE, 1, &iov, i, &remote, 0));
	KD_EXPECT_OK(test, dat_ep_disconnect(env->ep, DAT_CLOSE_ABRUPT_FLAG));
	for (i = 0; i < 500 && READ_ONCE(env->kep->state) != DAT_EP_STATE_DISCONNECTED; i++)
		kd_pause();
	KD_EXPECT_OK(test, dat_ep_reset(env->ep));
	KUNIT_EXPECT_EQ_MSG(test, fake_ib_violations(env->dev), 0, "reset: %s",
			    fake_ib_last_violation(env->dev));
	KD_EXPECT_OK(test, dat_ep_create(env->ia, env->pz, env->recv, env->req, env->conn, NULL,
					 &ep));
	KUNIT_EXPECT_EQ_MSG(test, fake_ib_violations(env->dev), 0, "create: %s",
			    fake_ib_last_violation(env->dev));
	KD_EXPECT_OK(test, dat_ep_free(ep));
	KUNIT_EXPECT_EQ_MSG(test, fake_ib_violations(env->dev), 0, "free: %s",
			    fake_ib_last_violation(env->dev));
	fake_ib_frugal(env->dev, false);
}

static struct kunit_case busy_cases[] = {
	KD_CASE(busy_others_test, "EP-RST-03: others go on while an object is being destroyed"),
	KD_CASE(busy_unplug_test, "EPSM-24: removal waits for what is being destroyed"),
	KD_CASE(busy_late_test, "EPSM-24: freeing waits for removal that is at the object"),
	KD_CASE(busy_noio_test, "EP-RST-03: nothing on the way to a connection waits for I/O"),
	{}
};

static struct kunit_suite busy_suite = {
	.name = "kdapl-busy",
	.suite_init = kd_suite_init,
	.suite_exit = kd_suite_exit,
	.init = kd_init,
	.exit = kd_exit,
	.test_cases = busy_cases,
};

kunit_test_suite(busy_suite);
