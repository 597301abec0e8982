// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Posters, completions, consumers, resets and the removal of the device, all
 * at the same time. What is asserted is little: each request is reported once
 * and in order, nothing is left behind. The debug kernels see the rest.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/random.h>

#include "kd_test.h"

#define RACE_MS		400

struct race {
	struct kd_env *env;
	/* per direction: [0] requests, [1] receives */
	u64 posted[2];
	u64 seen[2];
	u64 wrong_order[2];
	u64 wrong_return;
};

static int race_post(struct race *race, enum kd_call call)
{
	struct kd_env *env = race->env;
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 8, 1);
	DAT_LMR_TRIPLET iov[2] = { kd_seg(env, KD_RW, 0, 8), kd_seg(env, KD_RW, 8, 0) };
	bool recv = kd_is_recv(call);
	DAT_RETURN ret;

	ret = kd_post(env->ep, call, get_random_u32() & 1 ? 1 : 2, iov, race->posted[recv],
		      &remote, 0);
	switch (DAT_GET_TYPE(ret)) {
	case DAT_SUCCESS:
		race->posted[recv]++;
		return 0;
	case DAT_INSUFFICIENT_RESOURCES:
	case DAT_INVALID_STATE:
	case DAT_PROTECTION_VIOLATION:	/* while a reset replaces the connection */
	case DAT_INTERNAL_ERROR:
		return -EAGAIN;
	default:
		race->wrong_return++;
		return -EINVAL;
	}
}

static int race_requester(void *arg)
{
	static const enum kd_call calls[] = { KD_SEND, KD_WRITE, KD_READ };
	struct race *race = arg;
	unsigned int i = 0;

	while (!kthread_should_stop()) {
		if (race_post(race, calls[i++ % 3]))
			cond_resched();
		if (!(i % 64))
			usleep_range(50, 100);
	}
	return 0;
}

static int race_receiver(void *arg)
{
	struct race *race = arg;
	unsigned int i = 0;

	while (!kthread_should_stop()) {
		if (race_post(race, KD_RECV))
			cond_resched();
		if (!(++i % 64))
			usleep_range(50, 100);
	}
	return 0;
}

static int race_device(void *arg)
{
	struct race *race = arg;
	struct ib_qp *qp = race->env->qp;

	while (!kthread_should_stop()) {
		fake_ib_complete(qp, false, IB_WC_SUCCESS);
		fake_ib_recv(qp, 5, false);
		cond_resched();
	}
	return 0;
}

static void race_take(struct race *race, DAT_EVD_HANDLE evd, bool recv)
{
	DAT_EVENT event;

	while (kd_next(evd, &event)) {
		if (event.event_data.dto_completion_event_data.user_cookie.as_64 !=
		    race->seen[recv])
			race->wrong_order[recv]++;
		race->seen[recv]++;
	}
}

static int race_consumer(void *arg)
{
	struct race *race = arg;

	while (!kthread_should_stop()) {
		race_take(race, race->env->req, false);
		race_take(race, race->env->recv, true);
		usleep_range(20, 60);
	}
	return 0;
}

static void race_check(struct race *race)
{
	struct kunit *test = race->env->test;
	int i, n;

	for (n = 0; n < 500; n++) {
		race_take(race, race->env->req, false);
		race_take(race, race->env->recv, true);
		if (race->seen[0] >= race->posted[0] && race->seen[1] >= race->posted[1])
			break;
		kd_pause();
	}
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, race->wrong_order[i], 0ULL);
		KUNIT_EXPECT_EQ(test, race->seen[i], race->posted[i]);
		KUNIT_EXPECT_GT(test, race->posted[i], 0ULL);
	}
	KUNIT_EXPECT_EQ(test, race->wrong_return, 0ULL);
}

static struct task_struct *race_start(int (*fn)(void *arg), struct race *race)
{
	return kthread_run(fn, race, "kdapl_race");
}

static void race_stop(struct task_struct *task)
{
	if (!IS_ERR(task))
		kthread_stop(task);
}

static void race_traffic_test(struct kunit *test)
{
	struct race *race = kunit_kzalloc(test, sizeof(*race), GFP_KERNEL);
	struct task_struct *tasks[4];
	int i;

	KUNIT_ASSERT_NOT_NULL(test, race);
	race->env = kd_connected(test, NULL);
	tasks[0] = race_start(race_requester, race);
	tasks[1] = race_start(race_receiver, race);
	tasks[2] = race_start(race_device, race);
	tasks[3] = race_start(race_consumer, race);
	msleep(RACE_MS);
	for (i = 0; i < ARRAY_SIZE(tasks); i++)
		race_stop(tasks[i]);
	fake_ib_complete_all(race->env->qp, false, IB_WC_SUCCESS);
	fake_ib_complete_all(race->env->qp, true, IB_WC_SUCCESS);
	race_check(race);
}

/* The connection ends under traffic; posting goes on in DISCONNECTED. */
static void race_end_test(struct kunit *test)
{
	struct race *race = kunit_kzalloc(test, sizeof(*race), GFP_KERNEL);
	struct task_struct *tasks[4];
	int i;

	KUNIT_ASSERT_NOT_NULL(test, race);
	race->env = kd_connected(test, NULL);
	tasks[0] = race_start(race_requester, race);
	tasks[1] = race_start(race_receiver, race);
	tasks[2] = race_start(race_device, race);
	tasks[3] = race_start(race_consumer, race);
	msleep(RACE_MS / 4);
	kd_end(race->env, DAT_CONNECTION_EVENT_DISCONNECTED);
	msleep(RACE_MS / 4);
	for (i = 0; i < ARRAY_SIZE(tasks); i++)
		race_stop(tasks[i]);
	race_check(race);
}

/* A request fails under traffic. */
static void race_break_test(struct kunit *test)
{
	struct race *race = kunit_kzalloc(test, sizeof(*race), GFP_KERNEL);
	struct task_struct *tasks[4];
	int i;

	KUNIT_ASSERT_NOT_NULL(test, race);
	race->env = kd_connected(test, NULL);
	tasks[0] = race_start(race_requester, race);
	tasks[1] = race_start(race_receiver, race);
	tasks[2] = race_start(race_device, race);
	tasks[3] = race_start(race_consumer, race);
	msleep(RACE_MS / 4);
	race_stop(tasks[2]);
	tasks[2] = ERR_PTR(-ENOENT);
	for (i = 0; i < 500 && fake_ib_complete(race->env->qp, false, IB_WC_RETRY_EXC_ERR); i++)
		kd_pause();
	for (i = 0; i < 1000; i++) {
		if (READ_ONCE(race->env->kep->state) == DAT_EP_STATE_DISCONNECTED)
			break;
		kd_pause();
	}
	KUNIT_EXPECT_LT(test, i, 1000);
	for (i = 0; i < ARRAY_SIZE(tasks); i++)
		race_stop(tasks[i]);
	race_check(race);
}

/* The device goes under traffic. */
static void race_unplug_test(struct kunit *test)
{
	struct race *race = kunit_kzalloc(test, sizeof(*race), GFP_KERNEL);
	struct task_struct *tasks[3];
	int i;

	KUNIT_ASSERT_NOT_NULL(test, race);
	race->env = kd_connected(test, NULL);
	tasks[0] = race_start(race_requester, race);
	tasks[1] = race_start(race_receiver, race);
	tasks[2] = race_start(race_consumer, race);
	msleep(RACE_MS / 8);
	fake_ib_unplug(race->env->dev);
	msleep(RACE_MS / 8);
	for (i = 0; i < ARRAY_SIZE(tasks); i++)
		race_stop(tasks[i]);
	race_check(race);
}

/* Handles are used while their objects are freed and made again. */
static int race_prober(void *arg)
{
	struct race *race = arg;
	struct kd_env *env = race->env;
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	DAT_BOOLEAN recv_idle, request_idle;
	DAT_EP_STATE state;
	DAT_EP_HANDLE ep;
	u32 type;

	while (!kthread_should_stop()) {
		ep = READ_ONCE(env->ep);
		type = DAT_GET_TYPE(kd_post(ep, KD_RECV, 1, &iov, 1, NULL, 0));
		if (type != DAT_SUCCESS && type != DAT_INVALID_HANDLE &&
		    type != DAT_INSUFFICIENT_RESOURCES && type != DAT_PROTECTION_VIOLATION)
			race->wrong_return++;
		type = DAT_GET_TYPE(dat_ep_get_status(ep, &state, &recv_idle, &request_idle));
		if (type != DAT_SUCCESS && type != DAT_INVALID_HANDLE)
			race->wrong_return++;
		race->seen[0]++;
		cond_resched();
	}
	return 0;
}

static void race_free_test(struct kunit *test)
{
	struct race *race = kunit_kzalloc(test, sizeof(*race), GFP_KERNEL);
	struct kd_env *env = kd_open(test, NULL);
	struct task_struct *task;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, race);
	race->env = env;
	kd_ep(env, NULL);
	task = race_start(race_prober, race);
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	for (i = 0; i < 20; i++) {
		DAT_EP_HANDLE old = env->ep;

		kd_connect(env);
		kdapl_obj_put(&env->kep->obj);
		env->kep = NULL;
		KD_EXPECT_OK(test, dat_ep_free(old));
		/* the prober keeps using the dead handle for a while */
		usleep_range(500, 1000);
		kd_ep(env, NULL);
	}
	race_stop(task);
	KUNIT_EXPECT_EQ(test, race->wrong_return, 0ULL);
	KUNIT_EXPECT_GT(test, race->seen[0], 0ULL);
}

static struct kunit_case race_cases[] = {
	KD_CASE(race_traffic_test, "EP-POST-22,CTX-03,FLUSH-10: posters, device, consumer"),
	KD_CASE(race_end_test, "FLUSH-01,FLUSH-03,STAT-05: the end under traffic"),
	KD_CASE(race_break_test, "STAT-02,EPSM-17,STAT-05: a failure under traffic"),
	KD_CASE(race_unplug_test, "EPSM-24,STAT-05: the device goes under traffic"),
	KD_CASE(race_free_test, "GEN-04,GEN-05: calls racing with free"),
	{}
};

static struct kunit_suite race_suite = {
	.name = "kdapl-race",
	.suite_init = kd_suite_init,
	.suite_exit = kd_suite_exit,
	.init = kd_init,
	.exit = kd_exit,
	.test_cases = race_cases,
};

kunit_test_suite(race_suite);
