// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * LMRs without a registration: memory with local rights only that is contiguous for the device
 * (D-107).
 */
#include <linux/mm.h>

#include "fake_dma.h"
#include "kd_mem.h"
#include "kd_srq.h"

/* Register memory; the LMR is freed behind the case unless it is freed by it. */
static DAT_RETURN local_create(struct kd_env *env, DAT_PZ_HANDLE pz, void *bytes, u64 length,
			       int priv, DAT_VA_TYPE va, int opt, DAT_LMR_HANDLE *lmr,
			       DAT_LMR_CONTEXT *key)
{
	const DAT_REGION_DESCRIPTION region = { .for_va = bytes };
	DAT_RMR_CONTEXT rkey = 1;
	DAT_VADDR start = 1;
	DAT_VLEN size = 0;
	DAT_RETURN ret;

	ret = dat_lmr_kcreate(env->ia, DAT_MEM_TYPE_VIRTUAL, region, length, pz, priv, va, opt,
			      lmr, key, &rkey, &size, &start);
	if (ret != DAT_SUCCESS)
		return ret;
	KUNIT_EXPECT_EQ(env->test, size, length);
	KUNIT_EXPECT_EQ(env->test, start, va == DAT_VA_TYPE_ZB ? 0ULL : (uintptr_t)bytes);
	KUNIT_EXPECT_EQ(env->test, !rkey, !(priv & KM_REMOTE));
	return ret;
}

static u32 local_lkey(struct kd_env *env)
{
	return env->qp->pd->local_dma_lkey;
}

/* Who gets no MR, and who gets one: the memory, the rights and the wish decide. */
static void local_who_test(struct kunit *test)
{
	static const struct {
		int priv, opt;
		int pages;		/* 0: 100 bytes of one; else scattered ones */
		bool mr;
	} rows[] = {
		{ KM_LOCAL, DAT_MEM_OPTIMIZE_IA, 0, false },
		{ DAT_MEM_PRIV_LOCAL_READ_FLAG, DAT_MEM_OPTIMIZE_IA, 1, false },
		{ DAT_MEM_PRIV_LOCAL_WRITE_FLAG, DAT_MEM_OPTIMIZE_IA, 0, false },
		{ KM_LOCAL, DAT_MEM_OPTIMIZE_DONT_CARE, 0, true },
		{ KM_LOCAL, DAT_MEM_OPTIMIZE_MIN_EXPOSURE, 0, true },
		{ KM_LOCAL, DAT_MEM_OPTIMIZE_EXACT_EXPOSURE, 0, true },
		{ KM_LOCAL, DAT_MEM_OPTIMIZE_IA, 2, true },
		{ KM_LOCAL | DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_MEM_OPTIMIZE_IA, 0, true },
		{ KM_LOCAL | DAT_MEM_PRIV_REMOTE_WRITE_FLAG, DAT_MEM_OPTIMIZE_IA, 0, true },
	};
	struct km *km = km_on(test, NULL, NULL);
	struct kd_env *env = &km->env;
	struct fake_ib_live before, after;
	DAT_LMR_CONTEXT key, keys[2];
	DAT_LMR_HANDLE lmr, lmrs[2], found;
	DAT_PZ_HANDLE pz;
	int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		const DAT_REGION_DESCRIPTION pages = { .for_physical = km->pa };

		/* a registration QP is made for the first registration of a PZ */
		KD_ASSERT_OK(test, dat_pz_create(env->ia, &pz));
		fake_ib_live(env->dev, &before);
		if (rows[i].pages)
			KD_ASSERT_OK(test, dat_lmr_kcreate(env->ia, DAT_MEM_TYPE_PHYSICAL, pages,
							   rows[i].pages, pz, rows[i].priv,
							   DAT_VA_TYPE_VA, rows[i].opt, &lmr, &key,
							   NULL, NULL, NULL));
		else
			KD_ASSERT_OK(test, local_create(env, pz, km_bytes(km, 0) + 3, 100,
							rows[i].priv, DAT_VA_TYPE_VA, rows[i].opt,
							&lmr, &key));
		fake_ib_live(env->dev, &after);
		KUNIT_EXPECT_EQ_MSG(test, after.mrs - before.mrs, (int)rows[i].mr, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, after.qps > before.qps, (int)rows[i].mr, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, fake_ib_mr_valid(env->dev, key), (int)rows[i].mr,
				    "row %d", i);
		KD_EXPECT_OK(test, dat_lmr_free(lmr));
		KD_EXPECT_OK(test, dat_pz_free(pz));
	}
	/* keys are those of one LMR, also of the same memory */
	for (i = 0; i < 2; i++)
		KD_ASSERT_OK(test, local_create(env, env->pz, km_bytes(km, 0), 100, KM_LOCAL,
						DAT_VA_TYPE_VA, DAT_MEM_OPTIMIZE_IA, &lmrs[i],
						&keys[i]));
	for (i = 0; i < 2; i++) {
		KD_EXPECT_OK(test, kdat_lmr_by_context(env->ia, keys[i], &found));
		KUNIT_EXPECT_PTR_EQ(test, found, lmrs[i]);
		KD_EXPECT_OK(test, dat_lmr_free(lmrs[i]));
		KD_EXPECT_RET(test, kdat_lmr_by_context(env->ia, keys[i], &found),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	}
}

/* The last request of the EP has these addresses, by the key of the PD. */
static void local_posted(struct kd_env *env, bool recv, u64 addr, u32 length)
{
	struct fake_ib_wr wr;

	KUNIT_ASSERT_TRUE(env->test, fake_ib_last_wr(env->qp, recv, &wr));
	KUNIT_ASSERT_EQ(env->test, wr.num_sge, 1);
	KUNIT_EXPECT_EQ(env->test, wr.sge[0].lkey, local_lkey(env));
	KUNIT_EXPECT_EQ(env->test, wr.sge[0].addr, addr);
	KUNIT_EXPECT_EQ(env->test, wr.sge[0].length, length);
}

/* Each kind of transfer, by addresses and from 0, beside segments of other kinds. */
static void local_post_test(struct kunit *test)
{
	const DAT_RMR_TRIPLET remote = kd_remote(0x1000, 20, 0x77);
	struct km *km = km_on(test, NULL, NULL);
	struct kd_env *env = &km->env;
	u64 va = (uintptr_t)km_bytes(km, 0);
	DAT_LMR_TRIPLET iov[3];
	DAT_LMR_CONTEXT key[2];
	DAT_LMR_HANDLE lmr[2];
	struct fake_ib_wr wr;
	int i;

	for (i = 0; i < 2; i++) {
		KD_ASSERT_OK(test, local_create(env, env->pz, (void *)(uintptr_t)va, 1000, KM_LOCAL,
						i ? DAT_VA_TYPE_ZB : DAT_VA_TYPE_VA,
						DAT_MEM_OPTIMIZE_IA, &lmr[i], &key[i]));
		iov[0] = (DAT_LMR_TRIPLET) { (i ? 0 : va) + 7, 20, key[i] };
		KD_EXPECT_OK(test, kd_post(env->ep, KD_SEND, 1, iov, 1, NULL, 0));
		local_posted(env, false, va + 7, 20);
		KD_EXPECT_OK(test, kd_post(env->ep, KD_WRITE, 1, iov, 2, &remote, 0));
		local_posted(env, false, va + 7, 20);
		KD_EXPECT_OK(test, kd_post(env->ep, KD_READ, 1, iov, 3, &remote, 0));
		local_posted(env, false, va + 7, 20);
		KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, iov, 4, NULL, 0));
		local_posted(env, true, va + 7, 20);
		KUNIT_EXPECT_EQ(test, fake_ib_recv(env->qp, 5, false), 0);
		km_settle(km);
	}
	/* the key of the LMR, the device's own key, and nothing */
	iov[1] = kd_seg(env, KD_RW, 0, 8);
	iov[2] = (DAT_LMR_TRIPLET) { 0, 0, 0x1234 };
	iov[0] = (DAT_LMR_TRIPLET) { va, 4, key[0] };
	KD_EXPECT_OK(test, kd_post(env->ep, KD_SEND, 3, iov, 5, NULL, 0));
	KUNIT_ASSERT_TRUE(test, fake_ib_last_wr(env->qp, false, &wr));
	KUNIT_ASSERT_EQ(test, wr.num_sge, 2);
	KUNIT_EXPECT_EQ(test, wr.sge[0].lkey, local_lkey(env));
	KUNIT_EXPECT_EQ(test, wr.sge[1].lkey, iov[1].lmr_context);
	km_settle(km);
	for (i = 0; i < 2; i++)
		KD_EXPECT_OK(test, dat_lmr_free(lmr[i]));
}

/* Posts check it like any other memory. */
static void local_refused_test(struct kunit *test)
{
	const DAT_RMR_TRIPLET remote = kd_remote(0x1000, 8, 0x77);
	struct km *km = km_on(test, NULL, NULL);
	struct kd_env *env = &km->env;
	void *bytes = km_bytes(km, 0);
	u64 va = (uintptr_t)bytes;
	DAT_LMR_CONTEXT key, ro, far;
	DAT_LMR_HANDLE lmr, lmr_ro, lmr_far;
	DAT_LMR_TRIPLET iov;

	KD_ASSERT_OK(test, local_create(env, env->pz, bytes, 64, KM_LOCAL, DAT_VA_TYPE_VA,
					DAT_MEM_OPTIMIZE_IA, &lmr, &key));
	KD_ASSERT_OK(test, local_create(env, env->pz, bytes, 64, DAT_MEM_PRIV_LOCAL_READ_FLAG,
					DAT_VA_TYPE_VA, DAT_MEM_OPTIMIZE_IA, &lmr_ro, &ro));
	KD_ASSERT_OK(test, local_create(env, env->pz2, bytes, 64, KM_LOCAL, DAT_VA_TYPE_VA,
					DAT_MEM_OPTIMIZE_IA, &lmr_far, &far));
	iov = (DAT_LMR_TRIPLET) { va + 60, 5, key };
	KD_EXPECT_RET(test, kd_post(env->ep, KD_SEND, 1, &iov, 1, NULL, 0), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
	iov = (DAT_LMR_TRIPLET) { va - 1, 5, key };
	KD_EXPECT_RET(test, kd_post(env->ep, KD_RECV, 1, &iov, 1, NULL, 0), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
	iov = (DAT_LMR_TRIPLET) { va, 8, ro };
	KD_EXPECT_RET(test, kd_post(env->ep, KD_RECV, 1, &iov, 1, NULL, 0),
		      DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE);
	KD_EXPECT_RET(test, kd_post(env->ep, KD_READ, 1, &iov, 1, &remote, 0),
		      DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE);
	iov = (DAT_LMR_TRIPLET) { va, 8, far };
	KD_EXPECT_RET(test, kd_post(env->ep, KD_SEND, 1, &iov, 1, NULL, 0),
		      DAT_PROTECTION_VIOLATION, DAT_PROTECTION_READ);
	iov = (DAT_LMR_TRIPLET) { va, 8, key ^ 1 };
	KD_EXPECT_RET(test, kd_post(env->ep, KD_SEND, 1, &iov, 1, NULL, 0),
		      DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_READ);
	KD_EXPECT_OK(test, dat_lmr_free(lmr));
	iov = (DAT_LMR_TRIPLET) { va, 8, key };
	KD_EXPECT_RET(test, kd_post(env->ep, KD_SEND, 1, &iov, 1, NULL, 0),
		      DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_READ);
	KD_EXPECT_OK(test, dat_lmr_free(lmr_ro));
	KD_EXPECT_OK(test, dat_lmr_free(lmr_far));
}

/* A window onto it opens its memory to peers, and another LMR of the same memory is registered. */
static void local_window_test(struct kunit *test)
{
	struct km *km = km_on(test, NULL, NULL);
	struct kd_env *env = &km->env;
	char *bytes = km_bytes(km, 0), seen[4];
	DAT_REGION_DESCRIPTION source;
	DAT_RMR_HANDLE rmr = km_rmr(km, false);
	DAT_LMR_HANDLE lmr, copy;
	DAT_RMR_CONTEXT window, rkey;
	DAT_LMR_CONTEXT key;

	memcpy(bytes, "0123456789", 10);
	KD_ASSERT_OK(test, local_create(env, env->pz, bytes, 64, KM_LOCAL, DAT_VA_TYPE_VA,
					DAT_MEM_OPTIMIZE_IA, &lmr, &key));
	km_window(km, rmr, lmr, (uintptr_t)bytes + 2, 8, key, &window);
	KUNIT_EXPECT_EQ(test, fake_ib_access(env->dev, window, (uintptr_t)bytes + 2, seen, 4,
					     IB_ACCESS_REMOTE_READ), 0);
	KUNIT_EXPECT_EQ(test, memcmp(seen, "2345", 4), 0);
	KD_EXPECT_RET(test, dat_lmr_free(lmr), DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE);
	km_drop_rmr(km, rmr);
	source.for_lmr_handle = lmr;
	KD_ASSERT_OK(test, dat_lmr_kcreate(env->ia, DAT_MEM_TYPE_LMR, source, 0, env->pz,
					   KM_LOCAL | DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_VA_TYPE_VA,
					   DAT_MEM_OPTIMIZE_IA, &copy, &key, &rkey, NULL, NULL));
	KD_EXPECT_OK(test, dat_lmr_free(lmr));
	KUNIT_EXPECT_EQ(test, fake_ib_access(env->dev, rkey, (uintptr_t)bytes + 6, seen, 4,
					     IB_ACCESS_REMOTE_READ), 0);
	KUNIT_EXPECT_EQ(test, memcmp(seen, "6789", 4), 0);
	KD_EXPECT_OK(test, dat_lmr_free(copy));
}

/* The device gives an MR the index of such an LMR: another one is taken. */
static void local_index_test(struct kunit *test)
{
	struct km *km = km_on(test, NULL, NULL);
	struct kd_env *env = &km->env;
	struct kdapl_ia *ia = kdapl_obj_get(env->ia, DAT_HANDLE_TYPE_IA);
	void *bytes = km_bytes(km, 0);
	DAT_LMR_HANDLE lmr, first, second;
	DAT_LMR_CONTEXT key, key1, key2;
	struct kdapl_lmr *obj;

	KUNIT_ASSERT_NOT_NULL(test, ia);
	KD_ASSERT_OK(test, local_create(env, env->pz, bytes, 64, KM_LOCAL, DAT_VA_TYPE_VA,
					DAT_MEM_OPTIMIZE_IA, &lmr, &key));
	KD_ASSERT_OK(test, local_create(env, env->pz, bytes, 64, KM_LOCAL, DAT_VA_TYPE_VA, 0,
					&first, &key1));
	/* the index that the fake device gives next */
	obj = kdapl_obj_get(lmr, DAT_HANDLE_TYPE_LMR);
	KUNIT_ASSERT_NOT_NULL(test, obj);
	kdapl_keys_remove(&ia->keys, obj->mr.index, &obj->mr);
	obj->mr.index = ((key1 >> 8) + 0x9e3779) & 0x7fffff;
	KUNIT_ASSERT_EQ(test, kdapl_keys_insert(&ia->keys, obj->mr.index, &obj->mr), 0);
	KD_EXPECT_OK(test, local_create(env, env->pz, bytes, 64, KM_LOCAL, DAT_VA_TYPE_VA, 0,
					&second, &key2));
	KUNIT_EXPECT_NE(test, key2 >> 8, obj->mr.index);
	km_usable(km, key2, (uintptr_t)bytes);
	kdapl_obj_put(&obj->obj);
	KD_EXPECT_OK(test, dat_lmr_free(second));
	KD_EXPECT_OK(test, dat_lmr_free(first));
	KD_EXPECT_OK(test, dat_lmr_free(lmr));
	kdapl_obj_put(&ia->obj);
}

/* The device is given a copy: what is sent and received is right all the same. */
static void local_copies_test(struct kunit *test)
{
	static const struct fake_ib_caps caps = { .copies = true };
	struct km *km = km_on(test, &caps, NULL);
	struct kd_env *env = &km->env;
	char *bytes = km_bytes(km, 0);
	u64 va = (uintptr_t)bytes;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT key;
	DAT_LMR_TRIPLET iov;
	struct fake_ib_wr wr;
	DAT_EVENT event;

	memset(bytes, '.', PAGE_SIZE);
	KD_ASSERT_OK(test, local_create(env, env->pz, bytes + 100, 64, KM_LOCAL, DAT_VA_TYPE_VA,
					DAT_MEM_OPTIMIZE_IA, &lmr, &key));
	memcpy(bytes + 110, "hello", 5);
	iov = (DAT_LMR_TRIPLET) { va + 110, 5, key };
	KD_EXPECT_OK(test, kd_post(env->ep, KD_SEND, 1, &iov, 1, NULL, 0));
	KUNIT_ASSERT_TRUE(test, fake_ib_last_wr(env->qp, false, &wr));
	KUNIT_EXPECT_EQ(test, wr.sge[0].lkey, local_lkey(env));
	KUNIT_EXPECT_NE(test, wr.sge[0].addr, va + 110);
	KUNIT_EXPECT_EQ(test, memcmp((void *)(uintptr_t)wr.sge[0].addr - 1, ".hello.", 7), 0);
	iov = (DAT_LMR_TRIPLET) { va + 120, 8, key };
	KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, 1, NULL, 0));
	KUNIT_ASSERT_TRUE(test, fake_ib_last_wr(env->qp, true, &wr));
	memcpy((void *)(uintptr_t)wr.sge[0].addr, "answer", 6);
	KUNIT_EXPECT_EQ(test, fake_ib_recv(env->qp, 6, false), 0);
	KUNIT_ASSERT_TRUE(test, kd_next(env->recv, &event));
	KUNIT_EXPECT_EQ(test, memcmp(bytes + 109, ".hello.....answer..", 19), 0);
	/* the mapping goes with the device */
	fake_ib_unplug(env->dev);
	KUNIT_EXPECT_TRUE(test, list_empty(&fake_ib_dma(fake_ib_device(env->dev))->maps));
	KD_EXPECT_OK(test, dat_lmr_free(lmr));
}

static struct kunit_case local_cases[] = {
	KD_CASE(local_who_test, "LMR-01,LMR-11: which memory needs no registration"),
	KD_CASE(local_post_test, "LMR-04,EP-POST-16: what the device is given for its key"),
	KD_CASE(local_refused_test, "EP-POST-16,LMR-FREE-02: rights, range and PZ are checked"),
	KD_CASE(local_window_test, "RMR-07,LMR-20: a window onto it; the memory of another LMR"),
	KD_CASE(local_index_test, "LMR-10: keys that the device does not know are unique"),
	KD_CASE(local_copies_test, "LMR-SYNC-06: on a device that is given copies"),
	{}
};

static struct kunit_suite local_suite = {
	.name = "kdapl-local",
	.suite_init = kd_suite_init,
	.suite_exit = kd_suite_exit,
	.init = km_init,
	.exit = km_exit,
	.test_cases = local_cases,
};

static void local_srq_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	struct kd_env *env = &sq->env;
	DAT_DTO_COOKIE cookie = { .as_64 = 5 };
	DAT_LMR_HANDLE lmr;
	DAT_LMR_TRIPLET iov;
	DAT_LMR_CONTEXT key;
	struct fake_ib_wr wr;

	sq_srq(sq, 4);
	sq_ep(sq, 0);
	KD_ASSERT_OK(test, local_create(env, env->pz, env->buf, 64, KM_LOCAL, DAT_VA_TYPE_VA,
					DAT_MEM_OPTIMIZE_IA, &lmr, &key));
	iov = (DAT_LMR_TRIPLET) { (uintptr_t)env->buf + 8, 16, key };
	KD_EXPECT_OK(test, dat_srq_post_recv(sq->srq, 1, &iov, cookie));
	KUNIT_ASSERT_TRUE(test, fake_ib_srq_wr(sq->ib, 0, &wr));
	KUNIT_EXPECT_EQ(test, wr.sge[0].addr, iov.virtual_address);
	KUNIT_EXPECT_EQ(test, wr.sge[0].lkey, local_lkey(env));
	iov.segment_length = 57;
	KD_EXPECT_RET(test, dat_srq_post_recv(sq->srq, 1, &iov, cookie), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
	KD_EXPECT_OK(test, dat_lmr_free(lmr));
}

static struct kunit_case local_srq_cases[] = {
	KD_CASE(local_srq_test, "SRQ-POST-01: buffers of an SRQ"),
	{}
};

static struct kunit_suite local_srq_suite = {
	.name = "kdapl-local-srq",
	.suite_init = kd_suite_init,
	.suite_exit = kd_suite_exit,
	.init = sq_init,
	.exit = sq_exit,
	.test_cases = local_srq_cases,
};

kunit_test_suites(&local_suite, &local_srq_suite);
