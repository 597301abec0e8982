// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The fast path of posts and completions: that it is as short as it is meant to be, and that EPs
 * share no cache line there. That it says what the slow path says is up to kdapl-post.
 */
#include "kd_upcall.h"

#define FAST_KEY	0x4242

/* Posts under the lock that others take: they would not come back if they wanted it. */
static void fast_serial_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(0, 8, FAST_KEY);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	struct kdapl_wq *wq;
	unsigned long flags;
	DAT_RETURN ret[3];
	u64 i;

	kd_ep(env, NULL);
	KD_EXPECT_OK(test, kdat_ep_serialise_posts(env->ep, DAT_TRUE));
	kd_connect(env);
	wq = kd_conn_of(env)->sq;
	KUNIT_ASSERT_TRUE(test, wq->serial);
	spin_lock_irqsave(&wq->lock, flags);
	ret[0] = kd_post(env->ep, KD_SEND, 1, &iov, 0, NULL, 0);
	ret[1] = kd_post(env->ep, KD_WRITE, 1, &iov, 1, &remote, 0);
	ret[2] = kd_post(env->ep, KD_READ, 1, &iov, 2, &remote, 0);
	spin_unlock_irqrestore(&wq->lock, flags);
	fake_ib_complete_all(env->qp, false, IB_WC_SUCCESS);
	for (i = 0; i < ARRAY_SIZE(ret); i++) {
		KD_EXPECT_OK(test, ret[i]);
		kd_expect_dto(test, env->req, i, DAT_DTO_SUCCESS);
	}
	/* the promise is for connections to come */
	KD_BAD_STATE(test, kdat_ep_serialise_posts(env->ep, DAT_FALSE), EP_CONNECTED);
	/* what is under way when the connection ends is flushed, like what comes after it */
	KD_EXPECT_OK(test, kd_post(env->ep, KD_SEND, 1, &iov, 3, NULL, 0));
	kd_end(env, DAT_CONNECTION_EVENT_BROKEN);
	KD_EXPECT_OK(test, kd_post(env->ep, KD_SEND, 1, &iov, 4, NULL, 0));
	kd_expect_dtos(test, env->req, 3, 2, DAT_DTO_ERR_FLUSHED);
	KD_EXPECT_END(env, BROKEN);
	/* and the device may say no where nobody holds the lock */
	kd_reset(env);
	kd_connect(env);
	fake_ib_fail(env->dev, FAKE_IB_POST_SEND, 1, -ENOMEM);
	KD_EXPECT_OK(test, kd_post(env->ep, KD_SEND, 1, &iov, 5, NULL, 0));
	KD_EXPECT_END(env, BROKEN);
	kd_expect_dto(test, env->req, 5, DAT_DTO_ERR_FLUSHED);
	/* taken back for the next one */
	kd_reset(env);
	KD_EXPECT_OK(test, kdat_ep_serialise_posts(env->ep, DAT_FALSE));
	kd_connect(env);
	KUNIT_EXPECT_FALSE(test, kd_conn_of(env)->sq->serial);
}

/* As many completions as a poll brings take one poll. */
static void fast_polls_test(struct kunit *test)
{
	struct kd_env *env = kd_connected(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	unsigned int polls;
	DAT_EVENT event;
	u64 i, n = 4;

	for (i = 0; i < n; i++)
		KD_ASSERT_OK(test, kd_post(env->ep, KD_SEND, 1, &iov, i, NULL, 0));
	fake_ib_complete_all(env->qp, false, IB_WC_SUCCESS);
	polls = fake_ib_count(env->dev, FAKE_IB_POLL_CQ);
	for (i = 0; i < n; i++)
		kd_expect_dto(test, env->req, i, DAT_DTO_SUCCESS);
	KUNIT_EXPECT_EQ(test, fake_ib_count(env->dev, FAKE_IB_POLL_CQ), polls + 1);
	KD_EXPECT_RET(test, dat_evd_dequeue(env->req, &event), DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE);
	KUNIT_EXPECT_EQ(test, fake_ib_count(env->dev, FAKE_IB_POLL_CQ), polls + 2);
}

/* What is written for one EP lies in lines of its own. */
static void fast_lines_test(struct kunit *test)
{
	struct kd_env *env = kd_connected(test, NULL);
	struct kdapl_conn *conn = kd_conn_of(env);

	KUNIT_EXPECT_TRUE(test, IS_ALIGNED((unsigned long)conn, SMP_CACHE_BYTES));
	KUNIT_EXPECT_TRUE(test, IS_ALIGNED((unsigned long)conn->sq, SMP_CACHE_BYTES));
	KUNIT_EXPECT_TRUE(test, IS_ALIGNED((unsigned long)conn->rq, SMP_CACHE_BYTES));
}

static struct kunit_case fast_cases[] = {
	KD_CASE(fast_serial_test,
		"EP-POST-02,EP-POST-06,FLUSH-01: posts that the consumer serialises"),
	KD_CASE(fast_polls_test, "EVD-DQ-01,EVD-DQ-04: a poll for several completions"),
	KD_CASE(fast_lines_test, "EP-POST-02: two EPs have no line in common"),
	{}
};

KD_SUITE("kdapl-fast", fast_cases, kd_init, kd_exit);
