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

/* Memory that its consumer does not want to be registered. */
static struct km_reg local_new(struct km *km, void *bytes, u64 length, int priv, int va)
{
	return km_reg(km, bytes, length, priv, va, DAT_MEM_OPTIMIZE_IA);
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
	DAT_IA_HANDLE ia = km->env.ia;
	struct fake_ib_live before, after;
	DAT_REGION_DESCRIPTION region;
	struct km_reg reg, two[2];
	DAT_LMR_HANDLE found;
	int i, n;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		reg = (struct km_reg) { .priv = rows[i].priv, .opt = rows[i].opt };
		n = rows[i].pages;
		if (n)
			region.for_physical = km->pa;
		else
			region.for_va = km_bytes(km, 0) + 3;
		/* a registration QP is made for the first registration of a PZ */
		KD_ASSERT_OK(test, dat_pz_create(ia, &reg.pz));
		fake_ib_live(km->env.dev, &before);
		KD_ASSERT_OK(test, km_try_reg(km, &reg, n ? DAT_MEM_TYPE_PHYSICAL :
					      DAT_MEM_TYPE_VIRTUAL, region, n ?: 100));
		fake_ib_live(km->env.dev, &after);
		KUNIT_EXPECT_EQ_MSG(test, after.mrs - before.mrs, (int)rows[i].mr, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, after.qps > before.qps, rows[i].mr, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, km_valid(km, reg.key), rows[i].mr, "row %d", i);
		KD_EXPECT_OK(test, dat_lmr_free(reg.lmr));
		KD_EXPECT_OK(test, dat_pz_free(reg.pz));
	}
	/* keys are those of one LMR, also of the same memory */
	for (i = 0; i < 2; i++)
		two[i] = local_new(km, km_bytes(km, 0), 100, KM_LOCAL, DAT_VA_TYPE_VA);
	for (i = 0; i < 2; i++) {
		KD_EXPECT_OK(test, kdat_lmr_by_context(ia, two[i].key, &found));
		KUNIT_EXPECT_PTR_EQ(test, found, two[i].lmr);
		km_drop_lmr(km, two[i].lmr);
		KD_BAD_ARG(test, kdat_lmr_by_context(ia, two[i].key, &found), 2);
	}
}

/* Each kind of transfer, by addresses and from 0, beside segments of other kinds. */
static void local_post_test(struct kunit *test)
{
	const DAT_RMR_TRIPLET remote = kd_remote(0x1000, 20, 0x77);
	struct km *km = km_on(test, NULL, NULL);
	struct kd_env *env = &km->env;
	u64 va = (uintptr_t)km_bytes(km, 0);
	DAT_LMR_TRIPLET iov[3];
	struct km_reg reg[2];
	struct fake_ib_wr wr;
	int i, call;

	for (i = 0; i < 2; i++) {
		reg[i] = local_new(km, km_bytes(km, 0), 1000, KM_LOCAL,
				   i ? DAT_VA_TYPE_ZB : DAT_VA_TYPE_VA);
		iov[0] = (DAT_LMR_TRIPLET) { (i ? 0 : va) + 7, 20, reg[i].key };
		for (call = 0; call < KD_NR_CALLS; call++) {
			KD_EXPECT_OK(test, kd_post(env->ep, call, 1, iov, 1, &remote, 0));
			KUNIT_ASSERT_TRUE(test, fake_ib_last_wr(env->qp, call == KD_RECV, &wr));
			KUNIT_ASSERT_EQ(test, wr.num_sge, 1);
			KUNIT_EXPECT_EQ(test, wr.sge[0].lkey, local_lkey(env));
			KUNIT_EXPECT_EQ(test, wr.sge[0].addr, va + 7);
			KUNIT_EXPECT_EQ(test, wr.sge[0].length, 20U);
		}
		KUNIT_EXPECT_EQ(test, fake_ib_recv(env->qp, 5, false), 0);
		km_settle(km);
	}
	/* the key of the LMR, the device's own key, and nothing */
	iov[0] = (DAT_LMR_TRIPLET) { va, 4, reg[0].key };
	iov[1] = kd_seg(env, KD_RW, 0, 8);
	iov[2] = (DAT_LMR_TRIPLET) { 0, 0, 0x1234 };
	KD_EXPECT_OK(test, kd_post(env->ep, KD_SEND, 3, iov, 5, NULL, 0));
	km_last(km, &wr);
	KUNIT_ASSERT_EQ(test, wr.num_sge, 2);
	KUNIT_EXPECT_EQ(test, wr.sge[0].lkey, local_lkey(env));
	KUNIT_EXPECT_EQ(test, wr.sge[1].lkey, iov[1].lmr_context);
	km_settle(km);
}

/* Posts check it like any other memory. */
static void local_refused_test(struct kunit *test)
{
	const DAT_RMR_TRIPLET remote = kd_remote(0x1000, 8, 0x77);
	struct km *km = km_on(test, NULL, NULL);
	u64 va = (uintptr_t)km_bytes(km, 0);
	struct km_reg all = local_new(km, km_bytes(km, 0), 64, KM_LOCAL, DAT_VA_TYPE_VA);
	struct km_reg ro = local_new(km, km_bytes(km, 0), 64, DAT_MEM_PRIV_LOCAL_READ_FLAG,
				     DAT_VA_TYPE_VA);
	struct km_reg far = { .priv = KM_LOCAL, .opt = DAT_MEM_OPTIMIZE_IA, .pz = km->env.pz2 };
	DAT_REGION_DESCRIPTION region = { .for_va = km_bytes(km, 0) };
	DAT_LMR_TRIPLET iov;
	int i;

	KD_ASSERT_OK(test, km_try_reg(km, &far, DAT_MEM_TYPE_VIRTUAL, region, 64));
	km_keep_lmr(km, far.lmr);
	for (i = 0; i < 7; i++) {
		const struct {
			enum kd_call call;
			u64 addr;
			u32 length, key, type, subtype;
		} rows[] = {
			{ KD_SEND, va + 60, 5, all.key, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3 },
			{ KD_RECV, va - 1, 5, all.key, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3 },
			{ KD_RECV, va, 8, ro.key, DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE },
			{ KD_READ, va, 8, ro.key, DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE },
			{ KD_SEND, va, 8, far.key, DAT_PROTECTION_VIOLATION, DAT_PROTECTION_READ },
			{ KD_SEND, va, 8, all.key ^ 1, DAT_PRIVILEGES_VIOLATION,
			  DAT_PRIVILEGES_READ },
			/* freed */
			{ KD_SEND, va, 8, all.key, DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_READ },
		};

		if (i == ARRAY_SIZE(rows) - 1)
			km_drop_lmr(km, all.lmr);
		iov = (DAT_LMR_TRIPLET) { rows[i].addr, rows[i].length, rows[i].key };
		KUNIT_EXPECT_EQ_MSG(test, (u32)kd_post(km->env.ep, rows[i].call, 1, &iov, 1,
						       &remote, 0),
				    (u32)DAT_ERROR(rows[i].type, rows[i].subtype), "row %d", i);
	}
}

/* A window onto it, and another LMR of its memory, for which it is registered. */
static void local_window_test(struct kunit *test)
{
	struct km *km = km_on(test, NULL, NULL);
	char *bytes = km_bytes(km, 0), seen[4];
	struct km_reg reg = local_new(km, bytes, 64, KM_LOCAL, DAT_VA_TYPE_VA);
	struct km_reg copy = {
		.priv = KM_LOCAL | DAT_MEM_PRIV_REMOTE_READ_FLAG, .opt = DAT_MEM_OPTIMIZE_IA,
	};
	DAT_REGION_DESCRIPTION region = { .for_lmr_handle = reg.lmr };
	DAT_RMR_HANDLE rmr = km_rmr(km, false);
	DAT_RMR_CONTEXT window;

	memcpy(bytes, "0123456789", 10);
	km_window(km, rmr, reg.lmr, reg.addr + 2, 8, reg.key, &window);
	KUNIT_EXPECT_EQ(test, fake_ib_access(km->env.dev, window, reg.addr + 2, seen, 4,
					     IB_ACCESS_REMOTE_READ), 0);
	KUNIT_EXPECT_EQ(test, memcmp(seen, "2345", 4), 0);
	KD_BAD_STATE(test, dat_lmr_free(reg.lmr), LMR_IN_USE);
	km_drop_rmr(km, rmr);
	KD_ASSERT_OK(test, km_try_reg(km, &copy, DAT_MEM_TYPE_LMR, region, 0));
	km_keep_lmr(km, copy.lmr);
	km_drop_lmr(km, reg.lmr);
	KUNIT_EXPECT_EQ(test, fake_ib_access(km->env.dev, copy.rkey, copy.addr + 6, seen, 4,
					     IB_ACCESS_REMOTE_READ), 0);
	KUNIT_EXPECT_EQ(test, memcmp(seen, "6789", 4), 0);
}

/* The device gives an MR the index of such an LMR: another one is taken. */
static void local_index_test(struct kunit *test)
{
	struct km *km = km_on(test, NULL, NULL);
	struct kdapl_ia *ia = km->env.kep->obj.ia;
	void *bytes = km_bytes(km, 0);
	struct km_reg reg = local_new(km, bytes, 64, KM_LOCAL, DAT_VA_TYPE_VA), first, second;
	struct kdapl_lmr *obj = kdapl_obj_get(reg.lmr, DAT_HANDLE_TYPE_LMR);

	KUNIT_ASSERT_NOT_NULL(test, obj);
	first = km_reg(km, bytes, 64, KM_LOCAL, DAT_VA_TYPE_VA, 0);
	/* the index that the fake device gives next */
	kdapl_keys_remove(&ia->keys, obj->mr.index, &obj->mr);
	obj->mr.index = ((first.key >> 8) + 0x9e3779) & 0x7fffff;
	KUNIT_ASSERT_EQ(test, kdapl_keys_insert(&ia->keys, obj->mr.index, &obj->mr), 0);
	second = km_reg(km, bytes, 64, KM_LOCAL, DAT_VA_TYPE_VA, 0);
	KUNIT_EXPECT_NE(test, second.key >> 8, obj->mr.index);
	km_usable(km, second.key, second.addr);
	kdapl_obj_put(&obj->obj);
}

/* The device is given a copy: what is sent and received is right all the same. */
static void local_copies_test(struct kunit *test)
{
	static const struct fake_ib_caps caps = { .copies = true };
	struct km *km = km_on(test, &caps, NULL);
	struct kd_env *env = &km->env;
	char *bytes = km_bytes(km, 0);
	u64 va = (uintptr_t)bytes;
	struct fake_ib_wr wr;
	struct km_reg reg;
	DAT_LMR_TRIPLET iov;

	memset(bytes, '.', PAGE_SIZE);
	reg = local_new(km, bytes + 100, 64, KM_LOCAL, DAT_VA_TYPE_VA);
	memcpy(bytes + 110, "hello", 5);
	KD_EXPECT_OK(test, km_send(km, reg.key, va + 110, 5, 1));
	km_last(km, &wr);
	KUNIT_EXPECT_EQ(test, wr.sge[0].lkey, local_lkey(env));
	KUNIT_EXPECT_NE(test, wr.sge[0].addr, va + 110);
	KUNIT_EXPECT_EQ(test, memcmp((void *)(uintptr_t)wr.sge[0].addr - 1, ".hello.", 7), 0);
	iov = (DAT_LMR_TRIPLET) { va + 120, 8, reg.key };
	KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, 1, NULL, 0));
	KUNIT_ASSERT_TRUE(test, fake_ib_last_wr(env->qp, true, &wr));
	memcpy((void *)(uintptr_t)wr.sge[0].addr, "answer", 6);
	KUNIT_EXPECT_EQ(test, fake_ib_recv(env->qp, 6, false), 0);
	km_drain(env->recv);
	KUNIT_EXPECT_EQ(test, memcmp(bytes + 109, ".hello.....answer..", 19), 0);
	/* the mapping goes with the device */
	fake_ib_unplug(env->dev);
	KUNIT_EXPECT_TRUE(test, list_empty(&fake_ib_dma(fake_ib_device(env->dev))->maps));
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

KD_SUITE("kdapl-local", local_cases, km_init, km_exit);

static void local_srq_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	struct kd_env *env = &sq->env;
	DAT_REGION_DESCRIPTION region = { .for_va = env->buf };
	DAT_DTO_COOKIE cookie = { .as_64 = 5 };
	DAT_LMR_TRIPLET iov = { (uintptr_t)env->buf + 8, 16 };
	DAT_LMR_HANDLE lmr;
	struct fake_ib_wr wr;

	sq_srq(sq, 4);
	sq_ep(sq, 0);
	KD_ASSERT_OK(test, dat_lmr_kcreate(env->ia, DAT_MEM_TYPE_VIRTUAL, region, 64, env->pz,
					   KM_LOCAL, DAT_VA_TYPE_VA, DAT_MEM_OPTIMIZE_IA, &lmr,
					   &iov.lmr_context, NULL, NULL, NULL));
	KD_EXPECT_OK(test, dat_srq_post_recv(sq->srq, 1, &iov, cookie));
	KUNIT_ASSERT_TRUE(test, fake_ib_srq_wr(sq->ib, 0, &wr));
	KUNIT_EXPECT_EQ(test, wr.sge[0].addr, iov.virtual_address);
	KUNIT_EXPECT_EQ(test, wr.sge[0].lkey, local_lkey(env));
	iov.segment_length = 57;
	KD_BAD_ARG(test, dat_srq_post_recv(sq->srq, 1, &iov, cookie), 3);
	KD_EXPECT_OK(test, dat_lmr_free(lmr));
}

static struct kunit_case local_srq_cases[] = {
	KD_CASE(local_srq_test, "SRQ-POST-01: buffers of an SRQ"),
	{}
};

KD_SUITE("kdapl-local-srq", local_srq_cases, sq_init, sq_exit);
