// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * What calls cost beside the posts of an EP, which the suites kdapl-post and
 * kdapl-wr-map watch: SRQs, software events, memory; and that the instrument works.
 */
#include <linux/delay.h>
#include <linux/mm.h>
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
	int i;

	KUNIT_ASSERT_NOT_NULL(test, cache);
	for (i = 0; i < 5; i++) {
		void *p = NULL;

		if (!kd_cost_watch(true, NULL, NULL)) {
			kmem_cache_destroy(cache);
			kunit_skip(test, "this kernel has no trace points");
			return;
		}
		if (i == 0)
			p = kmalloc(64, GFP_KERNEL);
		else if (i == 1)	/* of a size only known at run time */
			p = kzalloc(100 + (get_random_u32() & 63), GFP_ATOMIC);
		else if (i == 2)
			p = kmem_cache_alloc(cache, GFP_KERNEL);
		else if (i == 3)
			p = (void *)__get_free_page(GFP_KERNEL);
		else
			usleep_range(100, 200);
		OPTIMIZER_HIDE_VAR(p);
		kd_cost_watch(false, &allocs, &sleeps);
		if (i == 2 && p)
			kmem_cache_free(cache, p);
		else if (i == 3)
			free_page((unsigned long)p);
		else
			kfree(p);
		/* the slab may need a list of its own for the first */
		if (i < 4)
			KUNIT_EXPECT_GE_MSG(test, allocs, 1U, "kind %d", i);
		else
			KUNIT_EXPECT_GE(test, sleeps, 1U);
	}
	kmem_cache_destroy(cache);
}

/* One buffer of an SRQ; the list is untouched by it. */
static void cost_srq_post(struct kd_env *env, DAT_SRQ_HANDLE srq, int num, DAT_LMR_TRIPLET *iov,
			  DAT_RETURN want, unsigned int calls, const char *what)
{
	DAT_DTO_COOKIE cookie = { .as_64 = 0x1234 };
	DAT_LMR_TRIPLET before[5];
	struct kd_cost cost;
	DAT_RETURN ret;

	if (iov)
		memcpy(before, iov, num * sizeof(*iov));
	ret = KD_COST(env, &cost, dat_srq_post_recv(srq, num, iov, cookie));
	KUNIT_EXPECT_EQ_MSG(env->test, (u32)ret, (u32)want, "%s", what);
	KUNIT_EXPECT_EQ_MSG(env->test, cost.verbs, calls, "%s", what);
	KUNIT_EXPECT_EQ_MSG(env->test, cost.srq, calls, "%s", what);
	KUNIT_EXPECT_EQ(env->test, cost.polls, 0U);
	if (iov)
		KUNIT_EXPECT_EQ(env->test, memcmp(before, iov, num * sizeof(*iov)), 0);
}

/* One call, or none where it is refused; the SRQ's EP unconnected, connected, disconnected. */
static void cost_srq_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 64, .max_recv_iov = 4 };
	int num, empty, posts = 0, round, i;
	DAT_LMR_TRIPLET iov[5];
	DAT_SRQ_HANDLE srq;
	struct ib_srq *ib;
	DAT_EP_ATTR ep;

	KD_ASSERT_OK(test, dat_srq_create(env->ia, env->pz, &attr, &srq));
	ib = fake_ib_newest_srq(env->dev);
	kd_attr(&ep);
	KD_ASSERT_OK(test, dat_ep_create_with_srq(env->ia, env->pz, env->recv, env->req, env->conn,
						  srq, &ep, &env->ep));
	env->kep = kdapl_obj_get(env->ep, DAT_HANDLE_TYPE_EP);
	KUNIT_ASSERT_NOT_NULL(test, env->kep);
	env->qp = fake_ib_newest_qp(env->dev);
	for (round = 0; round < 3; round++) {
		DAT_LMR_TRIPLET good = kd_seg(env, KD_RW, 0, 8), ro = kd_seg(env, KD_RO, 0, 8);
		DAT_LMR_TRIPLET foreign = kd_seg(env, KD_FOREIGN, 0, 8);
		DAT_LMR_TRIPLET beyond = kd_seg(env, KD_RW, KD_MEM_SIZE - 4, 8);
		const struct {
			int num;
			DAT_LMR_TRIPLET *iov;
			u32 type, subtype;
		} bad[] = {
			{ 5, iov, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2 },
			{ 1, NULL, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3 },
			{ 1, &beyond, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3 },
			{ 1, &ro, DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE },
			{ 1, &foreign, DAT_PROTECTION_VIOLATION, DAT_PROTECTION_WRITE },
		};

		for (num = 0; num <= 4; num++) {
			for (empty = 0; empty < BIT(num); empty += round ? 5 : 1) {
				for (i = 0; i < num; i++)
					iov[i] = kd_seg(env, KD_RW, 100 * i,
							empty & BIT(i) ? 0 : 10 + i);
				cost_srq_post(env, srq, num, num ? iov : NULL, DAT_SUCCESS, 1,
					      "room");
				posts++;
			}
		}
		KUNIT_EXPECT_EQ(test, fake_ib_srq_posted(ib), (unsigned int)posts);
		iov[4] = good;
		for (i = 0; i < ARRAY_SIZE(bad); i++)
			cost_srq_post(env, srq, bad[i].num, bad[i].iov,
				      DAT_ERROR(bad[i].type, bad[i].subtype), 0, "refused");
		cost_srq_post(env, NULL, 1, &good,
			      DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ), 0, "handle");
		fake_ib_fail(env->dev, FAKE_IB_POST_SRQ_RECV, 1, -ENOMEM);
		cost_srq_post(env, srq, 1, &good,
			      DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ), 1,
			      "the device says no");
		if (!round) {
			kd_connect(env);
		} else if (round == 1) {
			kd_end(env, DAT_CONNECTION_EVENT_DISCONNECTED);
			env->qp = NULL;		/* it has gone with the connection */
		}
	}
	while (posts++ < 64)
		KD_EXPECT_OK(test, dat_srq_post_recv(srq, 1, iov, (DAT_DTO_COOKIE) {}));
	cost_srq_post(env, srq, 1, iov, DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ),
		      0, "full");
	/* in error nothing reaches the device */
	kd_ep_free(env);
	KD_EXPECT_OK(test, dat_srq_free(srq));
	KD_ASSERT_OK(test, dat_srq_create(env->ia, env->pz, &attr, &srq));
	fake_ib_srq_event(fake_ib_newest_srq(env->dev), IB_EVENT_SRQ_ERR);
	kd_ep(env, NULL);
	cost_srq_post(env, srq, 1, iov, DAT_SUCCESS, 0, "SRQ in error");
	KD_EXPECT_OK(test, dat_srq_free(srq));
}

/* An upcall that would notice being called from inside a post. */
struct cost_upcall {
	struct task_struct *poster;
	int during;
	int n;
};

static void cost_upcall_fn(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct cost_upcall *up = data;

	if (READ_ONCE(up->poster) == current)
		up->during++;
	WRITE_ONCE(up->n, up->n + 1);
}

/* The device finishes inside the post: the consumer still hears of it later. */
static void cost_synchronous_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct cost_upcall *up = kunit_kzalloc(test, sizeof(*up), GFP_KERNEL);
	DAT_UPCALL_OBJECT object = { .instance_data = up, .upcall_func = cost_upcall_fn };
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 8, COST_KEY);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	DAT_EVD_FLAGS others;
	enum kd_call call;
	DAT_RETURN ret;
	int i, n, end;

	KUNIT_ASSERT_NOT_NULL(test, up);
	/* upcalls in softirq, then in a work item */
	for (others = 0; ; others = DAT_EVD_CONNECTION_FLAG) {
		KD_ASSERT_OK(test, dat_evd_free(env->req));
		KD_ASSERT_OK(test, dat_evd_free(env->recv));
		env->req = NULL;
		env->recv = NULL;
		KD_ASSERT_OK(test, dat_evd_kcreate(env->ia, 64, DAT_UPCALL_SINGLE_INSTANCE,
						   &object, DAT_EVD_DTO_FLAG | others,
						   &env->req));
		KD_ASSERT_OK(test, dat_evd_kcreate(env->ia, 64, DAT_UPCALL_SINGLE_INSTANCE,
						   &object, DAT_EVD_DTO_FLAG | others,
						   &env->recv));
		kd_ep(env, NULL);
		kd_connect(env);
		fake_ib_instant(env->dev, true);
		for (end = 0; end < 2; end++) {
			for (call = 0; call < KD_NR_CALLS; call++) {
				n = READ_ONCE(up->n);
				local_bh_disable();
				WRITE_ONCE(up->poster, current);
				ret = kd_post(env->ep, call, 1, &iov, 1, &remote, 0);
				WRITE_ONCE(up->poster, NULL);
				local_bh_enable();
				KD_EXPECT_OK(test, ret);
				for (i = 0; i < 5000 && READ_ONCE(up->n) == n; i++)
					kd_pause();
				KUNIT_EXPECT_EQ(test, READ_ONCE(up->n), n + 1);
				KUNIT_EXPECT_EQ(test, up->during, 0);
			}
			if (!end) {
				fake_ib_instant(env->dev, false);
				kd_end(env, DAT_CONNECTION_EVENT_DISCONNECTED);
			}
		}
		kd_ep_free(env);
		if (others)
			break;
	}
}

/* A consumer's function that does nothing. */
static void cost_no_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
}

/* Software events are posted from anywhere, hard interrupts and spinlocks included. */
static void cost_software_test(struct kunit *test)
{
	static const struct {
		DAT_UPCALL_POLICY policy;
		enum kdat_evd_context context;
	} rows[] = {
		{ DAT_UPCALL_DISABLE, KDAT_EVD_CONTEXT_WORKQUEUE },
		{ DAT_UPCALL_SINGLE_INSTANCE, KDAT_EVD_CONTEXT_SOFTIRQ },
		{ DAT_UPCALL_SINGLE_INSTANCE, KDAT_EVD_CONTEXT_WORKQUEUE },
		{ DAT_UPCALL_NOTIFY, KDAT_EVD_CONTEXT_SOFTIRQ },
		{ DAT_UPCALL_NOTIFY, KDAT_EVD_CONTEXT_WORKQUEUE },
		{ DAT_UPCALL_MANY, KDAT_EVD_CONTEXT_WORKQUEUE },
	};
	struct kd_env *env = kd_open(test, NULL);
	DAT_UPCALL_OBJECT object = { .upcall_func = cost_no_upcall };
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };
	DAT_EVD_HANDLE evd;
	struct kd_cost cost;
	int i, n, full;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct kdat_evd_attr attr = KDAT_EVD_ATTR_INIT;

		attr.context = rows[i].context;
		KD_ASSERT_OK(test, kdat_evd_create(env->ia, 8, rows[i].policy, &object,
						   DAT_EVD_SOFTWARE_FLAG, &attr, &evd));
		/* more than fit, if nobody takes them */
		for (full = 0, n = 0; n < 20; n++) {
			DAT_RETURN ret = KD_COST(env, &cost, dat_evd_post_se(evd, &event));

			if (ret == DAT_SUCCESS)
				continue;
			full++;
			KD_EXPECT_RET(test, ret, DAT_QUEUE_FULL, DAT_NO_SUBTYPE);
		}
		if (rows[i].policy == DAT_UPCALL_DISABLE)
			KUNIT_EXPECT_EQ(test, full, 12);
		KD_EXPECT_RET(test, KD_COST(env, &cost, dat_evd_post_se(evd, NULL)),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		KD_EXPECT_OK(test, dat_evd_free(evd));
	}
}

/* So many verbs, one post with so many requests if any; all of it is done afterwards. */
static void cost_done(struct kd_env *env, const struct kd_cost *cost, DAT_RETURN ret,
		      unsigned int verbs, unsigned int wrs)
{
	DAT_EVENT event;

	KD_EXPECT_OK(env->test, ret);
	KUNIT_EXPECT_EQ(env->test, cost->verbs, verbs);
	KUNIT_EXPECT_EQ(env->test, cost->send, wrs ? 1U : 0U);
	KUNIT_EXPECT_EQ(env->test, cost->wrs, wrs);
	fake_ib_complete_all(env->qp, false, IB_WC_SUCCESS);
	while (kd_next(env->req, &event))
		;
}

#define COST_EXPECT(call, verbs, wrs)						\
	cost_done(env, &cost, KD_COST(env, &cost, call), verbs, wrs)

/* Memory operations: one mapping where something is mapped, one post. */
static void cost_register_test(struct kunit *test)
{
	struct kd_env *env = kd_connected(test, NULL);
	struct page *page = alloc_pages(GFP_KERNEL, 3);
	DAT_LMR_TRIPLET part = kd_seg(env, KD_RW, 8, 64), none = {};
	DAT_MEM_PRIV_FLAGS all = DAT_MEM_PRIV_ALL_FLAG;
	DAT_PADDR pages[8];
	DAT_REGION_DESCRIPTION region = { .for_physical = pages };
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

	KUNIT_ASSERT_NOT_NULL(test, page);
	for (i = 0; i < 8; i++)
		pages[i] = page_to_phys(page + 7 - i);
	sg_init_table(&sgl, 1);
	sg_set_page(&sgl, page, 200, 50);
	KD_ASSERT_OK(test, dat_lmr_allocate(env->ia, env->pz, 8, DAT_LMR_SCOPE_PZ, &lmr));
	KD_ASSERT_OK(test, dat_rmr_create(env->pz, &rmr));
	list[0].lmr_handle = lmr;
	list[2].lmr_handle = lmr;
	for (i = 1; i <= 8; i++) {
		COST_EXPECT(dat_lmr_fmr(lmr, DAT_MEM_TYPE_PHYSICAL, region, i, all, DAT_VA_TYPE_VA,
					env->ep, cookie, 0, &key, &rkey), 2, 1);
		COST_EXPECT(dat_lmr_invalidate(lmr, env->ep, cookie, 0), 1, 1);
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
		COST_EXPECT(dat_rmr_bind(rmr, DAT_HANDLE_NULL, &none, all, DAT_VA_TYPE_VA,
					 env->ep, cookie, 0, &rkey), 1, 1);
		COST_EXPECT(kdat_ep_post_list(env->ep, list, 3, NULL), 2, 3);
		COST_EXPECT(dat_lmr_sync_rdma_read(env->ia, &part, 1), 0, 0);
		COST_EXPECT(dat_lmr_sync_rdma_write(env->ia, &part, 1), 0, 0);
	}
	KD_EXPECT_OK(test, dat_rmr_free(rmr));
	KD_EXPECT_OK(test, dat_lmr_free(lmr));
	__free_pages(page, 3);
}

static struct kunit_case cost_cases[] = {
	KD_CASE(cost_sanity_test, "CTX-01: allocations and sleeps are seen"),
	KD_CASE(cost_srq_test,
		"SRQ-POST-10,SRQ-POST-11,SRQ-POST-15,EP-POST-02,CTX-01: buffers of an SRQ"),
	KD_CASE(cost_synchronous_test, "EP-POST-06,CTX-02: completions inside the post come later"),
	KD_CASE(cost_software_test, "EVD-SE-03,CTX-03: software events, from hard interrupts"),
	KD_CASE(cost_register_test,
		"CTX-01,EP-POST-02,FMR-02,FMR-10,RMR-02: memory operations map, post, no more"),
	{}
};

static struct kunit_suite cost_suite = {
	.name = "kdapl-cost",
	.suite_init = kd_suite_init,
	.suite_exit = kd_suite_exit,
	.init = kd_cost_init,
	.exit = kd_cost_exit,
	.test_cases = cost_cases,
};

kunit_test_suite(cost_suite);
