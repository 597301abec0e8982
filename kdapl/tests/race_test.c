// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Posters, completions, consumers and the end of the connection or the device, all
 * at the same time. What is asserted is little: each request is reported once
 * and in order, nothing is left behind. The debug kernels see the rest.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/random.h>

#include "kd_test.h"

#define RACE_MS		100
#define RACE_DEVICE	0		/* the task that completes requests */

struct race {
	struct kd_env *env;
	struct task_struct *tasks[4];
	/* per direction: [0] requests, [1] receives */
	u64 posted[2];
	u64 seen[2];
	u64 wrong_order[2];
	u64 wrong_return;
};

static bool race_post(struct race *race, enum kd_call call)
{
	struct kd_env *env = race->env;
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 8, 1);
	DAT_LMR_TRIPLET iov[2] = { kd_seg(env, KD_RW, 0, 8), kd_seg(env, KD_RW, 8, 0) };
	bool recv = kd_is_recv(call);

	switch (DAT_GET_TYPE(kd_post(env->ep, call, get_random_u32() & 1 ? 1 : 2, iov,
				     race->posted[recv], &remote, 0))) {
	case DAT_SUCCESS:
		race->posted[recv]++;
		return true;
	case DAT_INSUFFICIENT_RESOURCES:
	case DAT_INVALID_STATE:
	case DAT_INTERNAL_ERROR:
		return false;
	default:
		race->wrong_return++;
		return false;
	}
}

static int race_poster(struct race *race, const enum kd_call *calls, unsigned int n)
{
	unsigned int i = 0;

	while (!kthread_should_stop()) {
		if (!race_post(race, calls[i++ % n]))
			cond_resched();
		if (!(i % 64))
			usleep_range(50, 100);
	}
	return 0;
}

static int race_requester(void *arg)
{
	static const enum kd_call calls[] = { KD_SEND, KD_WRITE, KD_READ };

	return race_poster(arg, calls, ARRAY_SIZE(calls));
}

static int race_receiver(void *arg)
{
	static const enum kd_call calls[] = { KD_RECV };

	return race_poster(arg, calls, ARRAY_SIZE(calls));
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

static struct race *race_begin(struct kunit *test)
{
	static int (*const fns[])(void *arg) = {
		[RACE_DEVICE] = race_device, race_requester, race_receiver, race_consumer,
	};
	struct race *race = kunit_kzalloc(test, sizeof(*race), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, race);
	race->env = kd_connected(test, NULL);
	for (i = 0; i < ARRAY_SIZE(fns); i++)
		race->tasks[i] = kthread_run(fns[i], race, "kdapl_race");
	msleep(RACE_MS);
	return race;
}

static void race_stop(struct race *race, int i)
{
	if (!IS_ERR(race->tasks[i]))
		kthread_stop(race->tasks[i]);
	race->tasks[i] = ERR_PTR(-ENOENT);
}

static void race_end(struct race *race)
{
	int i;

	msleep(RACE_MS);
	for (i = 0; i < ARRAY_SIZE(race->tasks); i++)
		race_stop(race, i);
	race_check(race);
}

static void race_traffic_test(struct kunit *test)
{
	struct race *race = race_begin(test);
	int i;

	for (i = 0; i < ARRAY_SIZE(race->tasks); i++)
		race_stop(race, i);
	fake_ib_complete_all(race->env->qp, false, IB_WC_SUCCESS);
	fake_ib_complete_all(race->env->qp, true, IB_WC_SUCCESS);
	race_check(race);
}

/* Posting goes on in DISCONNECTED. */
static void race_end_test(struct kunit *test)
{
	struct race *race = race_begin(test);

	kd_end(race->env, DAT_CONNECTION_EVENT_DISCONNECTED);
	race_end(race);
}

static void race_break_test(struct kunit *test)
{
	struct race *race = race_begin(test);
	int i;

	race_stop(race, RACE_DEVICE);
	for (i = 0; i < 500 && fake_ib_complete(race->env->qp, false, IB_WC_RETRY_EXC_ERR); i++)
		kd_pause();
	for (i = 0; i < 1000 && READ_ONCE(race->env->kep->state) != DAT_EP_STATE_DISCONNECTED; i++)
		kd_pause();
	KUNIT_EXPECT_LT(test, i, 1000);
	race_end(race);
}

static void race_unplug_test(struct kunit *test)
{
	struct race *race = race_begin(test);

	race_stop(race, RACE_DEVICE);	/* which uses the QP */
	fake_ib_unplug(race->env->dev);
	race_end(race);
}

static struct kunit_case race_cases[] = {
	KD_CASE(race_traffic_test, "EP-POST-22,CTX-03,FLUSH-10: posters, device, consumer"),
	KD_CASE(race_end_test, "FLUSH-01,FLUSH-03,STAT-05: the end under traffic"),
	KD_CASE(race_break_test, "STAT-02,EPSM-17,STAT-05: a failure under traffic"),
	KD_CASE(race_unplug_test, "EPSM-24,STAT-05: the device goes under traffic"),
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
