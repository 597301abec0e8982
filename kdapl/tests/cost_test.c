// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * What calls cost beside the posts of an EP, which the suites kdapl-post and kdapl-wr-map watch:
 * memory operations, completions; that serialised posts take no lock and EPs share no cache line;
 * and that the instrument works.
 */
#include <linux/delay.h>
#include <linux/random.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "kd_cost.h"

#define COST_KEY	0x4242

/* Does the instrument see anything? Deliberate allocations of all kinds, a deliberate sleep. */
static void cost_sanity_test(struct kunit *test)
{
	struct kmem_cache *cache = kmem_cache_create("kdapl_cost_test", 200, 0, 0, NULL);
	unsigned int allocs, sleeps;
	void *p[4];
	int i;

	KUNIT_ASSERT_NOT_NULL(test, cache);
	for (i = 0; i < 5; i++) {
		if (!kd_cost_watch(true, NULL, NULL)) {
			kmem_cache_destroy(cache);
			kunit_skip(test, "this kernel has no trace points");
			return;
		}
		if (i == 0)
			p[i] = kmalloc(64, GFP_KERNEL);
		else if (i == 1)	/* of a size only known at run time */
			p[i] = kzalloc(100 + (get_random_u32() & 63), GFP_ATOMIC);
		else if (i == 2)
			p[i] = kmem_cache_alloc(cache, GFP_KERNEL);
		else if (i == 3)
			p[i] = (void *)__get_free_page(GFP_KERNEL);
		else
			msleep(20);	/* a shorter one can be over before it has begun */
		kd_cost_watch(false, &allocs, &sleeps);
		/* the slab may need a list of its own for the first */
		KUNIT_EXPECT_GE_MSG(test, i < 4 ? allocs : sleeps, 1U, "kind %d", i);
	}
	kfree(p[0]);
	kfree(p[1]);
	if (p[2])
		kmem_cache_free(cache, p[2]);
	free_page((unsigned long)p[3]);
	kmem_cache_destroy(cache);
}

static struct task_struct *cost_poster;

/* Called from inside a post? */
static void cost_inside(struct kd_sink *sink, const DAT_EVENT *event, bool more)
{
	*(int *)sink->arg += READ_ONCE(cost_poster) == current;
}

/* The device finishes inside the post: the consumer still hears of it later. */
static void cost_synchronous_test(struct kunit *test)
{
	static const enum kdat_evd_context contexts[] = {
		KDAT_EVD_CONTEXT_SOFTIRQ, KDAT_EVD_CONTEXT_WORKQUEUE,
	};
	struct kd_env *env = kd_open(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 8, COST_KEY);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	struct kd_sink *sink = kd_sink(test);
	int i, c, during = 0, n = 0;
	enum kd_call call;
	DAT_RETURN ret;

	sink->inside = cost_inside;
	sink->arg = &during;
	for (i = 0; i < ARRAY_SIZE(contexts); i++) {
		kd_evd_replace(env, &env->req, 64, DAT_UPCALL_SINGLE_INSTANCE, sink,
			       DAT_EVD_DTO_FLAG, contexts[i]);
		kd_evd_replace(env, &env->recv, 64, DAT_UPCALL_SINGLE_INSTANCE, sink,
			       DAT_EVD_DTO_FLAG, contexts[i]);
		kd_ep(env, NULL);
		kd_connect(env);
		fake_ib_instant(env->dev, true);
		for (c = 0; c < 2 * KD_NR_CALLS; c++) {	/* connected, disconnected */
			call = c % KD_NR_CALLS;
			if (c == KD_NR_CALLS) {
				fake_ib_instant(env->dev, false);
				kd_end(env, DAT_CONNECTION_EVENT_DISCONNECTED);
				kd_drain(env->conn);
			}
			local_bh_disable();
			WRITE_ONCE(cost_poster, current);
			ret = kd_post(env->ep, call, 1, &iov, 1, &remote, 0);
			WRITE_ONCE(cost_poster, NULL);
			local_bh_enable();
			KD_EXPECT_OK(test, ret);
			n++;
			KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, n, n));
			KUNIT_EXPECT_EQ(test, sink->started, n);
			KUNIT_EXPECT_EQ(test, during, 0);
		}
		kd_ep_free(env);
	}
}

/* So many verbs, one post with so many requests if any; all of it is done afterwards. */
static void cost_done(struct kd_env *env, const struct kd_cost *cost, DAT_RETURN ret,
		      unsigned int verbs, unsigned int wrs)
{
	KD_EXPECT_OK(env->test, ret);
	KUNIT_EXPECT_EQ(env->test, cost->verbs, verbs);
	KUNIT_EXPECT_EQ(env->test, cost->send, wrs ? 1U : 0U);
	KUNIT_EXPECT_EQ(env->test, cost->wrs, wrs);
	fake_ib_complete_all(env->qp, false, IB_WC_SUCCESS);
	kd_drain(env->req);
}

#define COST_EXPECT(call, verbs, wrs)						\
	cost_done(env, &cost, KD_COST(env, &cost, call), verbs, wrs)

/* Memory operations: one mapping where something is mapped, one post. */
static void cost_register_test(struct kunit *test)
{
	struct kd_env *env = kd_connected(test, NULL);
	DAT_LMR_TRIPLET part = kd_seg(env, KD_RW, 8, 64), none = {};
	DAT_MEM_PRIV_FLAGS all = DAT_MEM_PRIV_ALL_FLAG;
	DAT_LMR_HANDLE lmr, fixed = env->mem[KD_RW].lmr;
	DAT_RMR_COOKIE cookie = {};
	DAT_LMR_PARAM lmr_param;
	DAT_RMR_PARAM rmr_param;
	struct scatterlist sgl;
	struct kdat_sg sg = { .sgl = &sgl, .nents = 1, .length = 100 };
	struct kdat_request list[3] = {
		{ .op = KDAT_REQUEST_LMR_FMR, .sg = &sg, .mem_privileges = all },
		{ .op = KDAT_REQUEST_SEND, .num_segments = 1, .local_iov = &part },
		{ .op = KDAT_REQUEST_LMR_INVALIDATE },
	};
	DAT_RMR_CONTEXT rkey;
	DAT_LMR_CONTEXT key;
	DAT_RMR_HANDLE rmr;
	struct kd_cost cost;
	DAT_VADDR addr;
	int i;

	sg_init_one(&sgl, env->buf + 200, 100);
	KD_ASSERT_OK(test, dat_lmr_allocate(env->ia, env->pz, 8, DAT_LMR_SCOPE_PZ, &lmr));
	KD_ASSERT_OK(test, dat_rmr_create(env->pz, &rmr));
	list[0].lmr_handle = lmr;
	list[2].lmr_handle = lmr;
	for (i = 0; i < 3; i++) {
		COST_EXPECT(kdat_lmr_fmr_sg(lmr, &sg, all, DAT_VA_TYPE_VA, env->ep, cookie, 0,
					    &key, &rkey, &addr), 2, 1);
		COST_EXPECT(kdat_lmr_next_contexts(lmr, &key, &rkey), 0, 0);
		COST_EXPECT(dat_lmr_query(lmr, DAT_LMR_FIELD_ALL, &lmr_param), 0, 0);
		COST_EXPECT(dat_lmr_invalidate(lmr, env->ep, cookie, 0x20), 1, 1);
		COST_EXPECT(dat_rmr_bind(rmr, fixed, &part, all, DAT_VA_TYPE_VA, env->ep,
					 cookie, 0, &rkey), 2, 1);
		COST_EXPECT(dat_rmr_bind(rmr, fixed, &part, all, DAT_VA_TYPE_VA, env->ep,
					 cookie, 0, &rkey), 2, 2);
		COST_EXPECT(dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &rmr_param), 0, 0);
		COST_EXPECT(dat_rmr_bind(rmr, DAT_HANDLE_NULL, &none, all, DAT_VA_TYPE_VA,
					 env->ep, cookie, 0, &rkey), 1, 1);
		COST_EXPECT(kdat_ep_post_list(env->ep, list, 3, NULL), 2, 3);
		COST_EXPECT(dat_lmr_sync_rdma_read(env->ia, &part, 1), 0, 0);
		COST_EXPECT(dat_lmr_sync_rdma_write(env->ia, &part, 1), 0, 0);
	}
	KD_EXPECT_OK(test, dat_rmr_free(rmr));
	KD_EXPECT_OK(test, dat_lmr_free(lmr));
}

/* Posts under the lock that others take: they would not come back if they wanted it. */
static void cost_serial_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(0, 8, COST_KEY);
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
static void cost_polls_test(struct kunit *test)
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
static void cost_lines_test(struct kunit *test)
{
	struct kd_env *env = kd_connected(test, NULL);
	struct kdapl_conn *conn = kd_conn_of(env);

	KUNIT_EXPECT_TRUE(test, IS_ALIGNED((unsigned long)conn, SMP_CACHE_BYTES));
	KUNIT_EXPECT_TRUE(test, IS_ALIGNED((unsigned long)conn->sq, SMP_CACHE_BYTES));
	KUNIT_EXPECT_TRUE(test, IS_ALIGNED((unsigned long)conn->rq, SMP_CACHE_BYTES));
}

static struct kunit_case cost_cases[] = {
	KD_CASE(cost_sanity_test, "CTX-01: allocations and sleeps are seen"),
	KD_CASE(cost_synchronous_test, "EP-POST-06,CTX-02: completions inside the post come later"),
	KD_CASE(cost_register_test,
		"CTX-01,EP-POST-02,FMR-02,FMR-10,RMR-02: memory operations map, post, no more"),
	KD_CASE(cost_serial_test,
		"EP-POST-02,EP-POST-06,FLUSH-01: posts that the consumer serialises"),
	KD_CASE(cost_polls_test, "EVD-DQ-01,EVD-DQ-04: a poll for several completions"),
	KD_CASE(cost_lines_test, "EP-POST-02: two EPs have no line in common"),
	{}
};

KD_SUITE("kdapl-cost", cost_cases, kd_cost_init, kd_cost_exit);
