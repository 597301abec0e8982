// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The fast path of posts and completions: that it says and does what the slow path
 * says and does, that it is as short as it is meant to be, and that EPs share no cache
 * line there.
 */
#include "kd_upcall.h"
#include "../ep/post.h"

#define FAST_KEY	0x4242
#define FAST_ROUNDS	4000

/* The same sequence in every run. */
static u32 fast_random(u32 *state, u32 below)
{
	*state = *state * 1664525 + 1013904223;
	return (*state >> 8) % below;
}

/* What a post may look like: mostly right, wrong in all ways. */
struct fast_post {
	enum kd_call call;
	int n;
	DAT_LMR_TRIPLET iov[5];
	DAT_LMR_TRIPLET *list;
	DAT_RMR_TRIPLET remote;
	const DAT_RMR_TRIPLET *target;
	int flags;
};

static void fast_draw(struct kd_env *env, u32 *seed, struct fast_post *post)
{
	static const int flags[] = {
		0, DAT_COMPLETION_SUPPRESS_FLAG, DAT_COMPLETION_SOLICITED_WAIT_FLAG,
		DAT_COMPLETION_BARRIER_FENCE_FLAG, DAT_COMPLETION_UNSIGNALLED_FLAG,
		DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_BARRIER_FENCE_FLAG,
		DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG, 0x100,
	};
	u32 sum = 0, i;

	post->call = fast_random(seed, KD_NR_CALLS);
	post->n = fast_random(seed, 8) ? fast_random(seed, 4) : (int)fast_random(seed, 7) - 1;
	for (i = 0; i < ARRAY_SIZE(post->iov); i++) {
		u32 at = fast_random(seed, 64), length = fast_random(seed, 10) ? 8 : 0;
		enum kd_mem_kind kind = fast_random(seed, 6) ? KD_RW :
					fast_random(seed, KD_NR_MEMS);

		if (!fast_random(seed, 16))
			at = KD_MEM_SIZE - 4;	/* its end is outside */
		post->iov[i] = kd_seg(env, kind, at, length);
		if (!fast_random(seed, 16))
			post->iov[i].lmr_context ^= 1 << fast_random(seed, 32);
		if ((int)i < post->n)
			sum += length;
	}
	post->list = fast_random(seed, 20) ? post->iov : NULL;
	if (fast_random(seed, 8))
		post->remote = kd_remote(4096, sum, FAST_KEY);
	else
		post->remote = kd_remote(4096, fast_random(seed, 40), FAST_KEY);
	post->target = fast_random(seed, 20) ? &post->remote : NULL;
	post->flags = fast_random(seed, 3) ? 0 : flags[fast_random(seed, ARRAY_SIZE(flags))];
}

/* Requests on the long way. */
static DAT_RETURN fast_long_way(struct kd_env *env, const struct fast_post *in, u64 cookie)
{
	static const u8 ops[] = {
		[KD_SEND] = DAT_DTO_SEND, [KD_WRITE] = DAT_DTO_RDMA_WRITE,
		[KD_READ] = DAT_DTO_RDMA_READ,
	};
	struct kdapl_post post = {
		.iov = in->list,
		.n = in->n,
		.cookie.as_64 = cookie,
		.flags = in->flags,
		.op = ops[in->call],
		.remote = in->call == KD_SEND ? NULL : in->target,
	};
	enum kdapl_verdict why;

	why = kdapl_post_check(env->kep, kd_conn_of(env), &post) ?:
	      kdapl_post_requests(kd_conn_of(env), &post, 1);
	return kdapl_post_ret(why, env->kep,
			      in->call == KD_SEND ? KDAPL_CALL_SEND : KDAPL_CALL_RDMA);
}

/* A Receive goes the slow path if the fast one takes no segments. */
static DAT_RETURN fast_long_recv(struct kd_env *env, struct fast_post *post, u64 cookie)
{
	struct kdapl_wq *wq = kd_conn_of(env)->rq;
	u16 max_iov = wq->max_iov[0];
	DAT_RETURN ret;

	wq->max_iov[0] = 0;
	ret = kd_post(env->ep, KD_RECV, post->n, post->list, cookie, NULL, post->flags);
	wq->max_iov[0] = max_iov;
	return ret;
}

struct fast_result {
	DAT_RETURN ret;
	bool posted;
	struct fake_ib_wr wr;
	bool reported;
	DAT_EVENT event;
};

/* What became of a post; the device gives it back. */
static void fast_result(struct kd_env *env, enum kd_call call, unsigned int before,
			struct fast_result *result)
{
	bool recv = kd_is_recv(call);

	result->posted = fake_ib_posted(env->qp, recv) != before;
	if (result->posted)
		fake_ib_last_wr(env->qp, recv, &result->wr);
	/* where it was posted, not what */
	result->wr.seq = 0;
	result->wr.call = 0;
	result->wr.cqe = NULL;
	fake_ib_complete_all(env->qp, recv, IB_WC_SUCCESS);
	result->reported = kd_next(kd_evd_of(env, call), &result->event);
	KD_EXPECT_EMPTY(env->test, kd_evd_of(env, call));
	kd_conn_of(env)->sq->unsignaled = 0;	/* each starts from the same place */
}

static void fast_equal_test(struct kunit *test)
{
	struct kd_env *env = kd_connected(test, NULL);
	struct fast_result *a = kunit_kzalloc(test, 2 * sizeof(*a), GFP_KERNEL), *b = a + 1;
	u32 seed = 7, straight = 0;
	struct fast_post post;
	unsigned int before;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, a);
	for (i = 0; i < FAST_ROUNDS; i++) {
		bool recv;

		fast_draw(env, &seed, &post);
		recv = kd_is_recv(post.call);
		memset(a, 0, 2 * sizeof(*a));
		before = fake_ib_posted(env->qp, recv);
		a->ret = kd_post(env->ep, post.call, post.n, post.list, i,
				 post.call == KD_SEND || recv ? NULL : post.target, post.flags);
		fast_result(env, post.call, before, a);
		before = fake_ib_posted(env->qp, recv);
		b->ret = recv ? fast_long_recv(env, &post, i) : fast_long_way(env, &post, i);
		fast_result(env, post.call, before, b);
		KUNIT_EXPECT_EQ_MSG(test, (u32)a->ret, (u32)b->ret, "round %d", i);
		KUNIT_EXPECT_EQ_MSG(test, memcmp(a, b, sizeof(*a)), 0, "round %d", i);
		straight += a->posted;
	}
	/* neither all right nor all wrong */
	KUNIT_EXPECT_GT(test, straight, FAST_ROUNDS / 4U);
	KUNIT_EXPECT_LT(test, straight, FAST_ROUNDS * 9U / 10);
}

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

/* Messages that come before the connection is known do not make its Receives odd for ever. */
static void fast_early_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	struct kdapl_wq *wq;
	DAT_EVENT event;
	u64 i;

	kd_ep(env, NULL);
	wq = kd_conn_of(env)->rq;
	for (i = 0; i < 4; i++)
		KD_ASSERT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, i, NULL, 0));
	for (i = 0; i < 3; i++)
		KUNIT_ASSERT_EQ(test, fake_ib_recv(env->qp, i, false), 0);
	KD_EXPECT_EMPTY(test, env->recv);
	KUNIT_EXPECT_EQ(test, (int)wq->slow, KDAPL_SLOW_EARLY);
	kd_connect(env);
	for (i = 0; i < 4; i++) {
		if (i == 3)
			KUNIT_ASSERT_EQ(test, fake_ib_recv(env->qp, i, false), 0);
		KUNIT_ASSERT_TRUE(test, kd_next(env->recv, &event));
		KUNIT_EXPECT_EQ(test, event.event_data.dto_completion_event_data.user_cookie.as_64,
				i);
		KUNIT_EXPECT_EQ(test, event.event_data.dto_completion_event_data.transfered_length,
				i);
	}
	KUNIT_EXPECT_EQ(test, (int)wq->slow, 0);
}

/* A freed EVD has no runners to ask any more, helpers least of all. */
static void fast_runners_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_EVD_HANDLE handle;
	struct kdapl_evd *evd;

	KD_ASSERT_OK(test, kd_evd_create(env, 8, DAT_UPCALL_MANY, kd_sink(test), DAT_EVD_DTO_FLAG,
					 KDAT_EVD_CONTEXT_WORKQUEUE, &handle));
	evd = kdapl_obj_get(handle, DAT_HANDLE_TYPE_EVD);
	KUNIT_ASSERT_NOT_NULL(test, evd);
	KUNIT_EXPECT_FALSE(test, list_is_singular(&evd->runners));
	KD_EXPECT_OK(test, dat_evd_free(handle));
	KUNIT_EXPECT_FALSE(test, kdapl_evd_inside_upcall(evd));
	/* they go when nobody can call them any more */
	rcu_barrier();
	flush_workqueue(kdapl_reap_wq);
	KUNIT_EXPECT_TRUE(test, list_empty(&evd->runners));
	kdapl_obj_put(&evd->obj);
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
	KD_CASE(fast_equal_test, "GEN-10,EP-POST-02,EP-POST-06: both ways say and do the same"),
	KD_CASE(fast_serial_test,
		"EP-POST-02,EP-POST-06,FLUSH-01: posts that the consumer serialises"),
	KD_CASE(fast_polls_test, "EVD-DQ-01,EVD-DQ-04: a poll for several completions"),
	KD_CASE(fast_early_test, "FLUSH-07,RECV-14: messages before ESTABLISHED, and after"),
	KD_CASE(fast_runners_test, "EVD-FREE-01: an EVD with helpers is freed"),
	KD_CASE(fast_lines_test, "EP-POST-02: two EPs have no line in common"),
	{}
};

KD_SUITE("kdapl-fast", fast_cases, kd_init, kd_exit);
