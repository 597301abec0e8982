// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Fast registration: what reaches the device, what the keys are worth and when,
 * and what becomes of a binding when something ends it or fails.
 */
#include <linux/kthread.h>
#include <linux/mm.h>

#include "kd_mem.h"

#define FM_ALL		DAT_MEM_PRIV_ALL_FLAG

static int fm_access(int priv)
{
	int access = 0;

	if (priv & (DAT_MEM_PRIV_LOCAL_WRITE_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG))
		access |= IB_ACCESS_LOCAL_WRITE;
	if (priv & DAT_MEM_PRIV_REMOTE_READ_FLAG)
		access |= IB_ACCESS_REMOTE_READ;
	if (priv & DAT_MEM_PRIV_REMOTE_WRITE_FLAG)
		access |= IB_ACCESS_REMOTE_WRITE;
	return access;
}

static void fm_native_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_LMR_HANDLE lmr = km_lmr(km, 8, DAT_LMR_SCOPE_PZ);
	DAT_LMR_PARAM param;
	struct fake_ib_wr wr;
	struct km_keys keys;
	int priv, i, n = 0;

	for (priv = 0; priv <= FM_ALL; priv++) {
		if (priv & ~FM_ALL)
			continue;
		n = n % 8 + 1;
		KD_ASSERT_OK(test, km_try_fmr(km, lmr, priv & 3, n, priv, 0, priv, &keys));
		km_last(km, &wr);
		KUNIT_EXPECT_EQ(test, (int)wr.opcode, (int)IB_WR_REG_MR);
		KUNIT_EXPECT_EQ(test, wr.send_flags, (int)IB_SEND_SIGNALED);
		KUNIT_EXPECT_EQ(test, wr.rkey, keys.lmr);
		KUNIT_EXPECT_EQ(test, keys.rmr, priv & KM_REMOTE ? wr.rkey : 0);
		KUNIT_EXPECT_EQ(test, wr.access, fm_access(priv));
		KUNIT_EXPECT_EQ(test, wr.remote_addr, (u64)km->pa[priv & 3]);
		KUNIT_EXPECT_EQ(test, wr.length, n * (u64)PAGE_SIZE);
		KUNIT_EXPECT_EQ(test, wr.page_size, (u32)PAGE_SIZE);
		KUNIT_EXPECT_EQ(test, wr.npages, (u32)n);
		for (i = 0; i < n; i++)
			KUNIT_EXPECT_EQ(test, wr.pages[i],
					(u64)(uintptr_t)km_bytes(km, (priv & 3) + i));
		km_done(km, IB_WC_SUCCESS);
		km_expect(km, DAT_DTO_LMR_FMR, priv, DAT_DTO_SUCCESS);
		km_param(km, lmr, &param);
		KUNIT_EXPECT_TRUE(test, param.lmr_state.bound);
		KUNIT_EXPECT_EQ(test, (int)param.mem_priv, priv);
		KUNIT_EXPECT_EQ(test, param.lmr_context, keys.lmr);
		KUNIT_EXPECT_EQ(test, param.rmr_context, keys.rmr);
		KUNIT_EXPECT_EQ(test, param.registered_address, (u64)km->pa[priv & 3]);
		KUNIT_EXPECT_EQ(test, param.registered_size, n * (u64)PAGE_SIZE);
		km_unbind(km, lmr);
	}
}

/* What the keys give is what was asked for, to the byte. */
static void fm_bytes_test(struct kunit *test)
{
	static const int remote[] = { IB_ACCESS_REMOTE_READ, IB_ACCESS_REMOTE_WRITE };
	struct km *km = km_connected(test, NULL);
	DAT_LMR_HANDLE lmr = km_lmr(km, 4, DAT_LMR_SCOPE_PZ);
	u64 start = km->pa[3], length = 3 * PAGE_SIZE;
	struct km_keys keys;
	u32 at;
	int i;
	u8 byte;

	km_fill(km, 5);
	km_bind(km, lmr, 3, 3, KM_LOCAL | KM_REMOTE, &keys);
	for (at = 0; at < length; at += 37) {
		KUNIT_ASSERT_EQ(test, fake_ib_access(km->env.dev, keys.rmr, start + at, &byte, 1,
						     IB_ACCESS_REMOTE_READ), 0);
		KUNIT_EXPECT_EQ(test, byte, km_byte(5, 3 + at / PAGE_SIZE, at % PAGE_SIZE));
	}
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, fake_ib_access(km->env.dev, keys.rmr, start + length - 1,
						     &byte, 1, remote[i]), 0);
		KUNIT_EXPECT_EQ(test, fake_ib_access(km->env.dev, keys.rmr, start + length, &byte,
						     1, remote[i]), -EACCES);
		KUNIT_EXPECT_EQ(test, fake_ib_access(km->env.dev, keys.rmr, start - 1, &byte, 1,
						     remote[i]), -EACCES);
	}
	/* local segments have the same bounds */
	KD_EXPECT_OK(test, km_send(km, keys.lmr, start, length, 1));
	KD_EXPECT_RET(test, km_send(km, keys.lmr, start + 1, length, 1), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
	KD_EXPECT_RET(test, km_send(km, keys.lmr, start - 1, 1, 1), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
	km_done(km, IB_WC_SUCCESS);
	km_expect(km, DAT_DTO_SEND, 1, DAT_DTO_SUCCESS);
	km_unbind(km, lmr);
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_EQ(test, fake_ib_access(km->env.dev, keys.rmr, start, &byte, 1,
						     remote[i]), -EACCES);
	KD_EXPECT_RET(test, km_send(km, keys.lmr, start, 1, 1), DAT_PRIVILEGES_VIOLATION,
		      DAT_PRIVILEGES_READ);
}

static void fm_zero_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_LMR_HANDLE lmr = km_lmr(km, 4, DAT_LMR_SCOPE_PZ);
	DAT_REGION_DESCRIPTION region = { .for_physical = km->pa + 1 };
	DAT_LMR_COOKIE cookie = { .as_64 = 1 };
	DAT_LMR_PARAM param;
	struct km_keys keys;
	struct fake_ib_wr wr;
	u8 byte;

	km_fill(km, 9);
	KD_ASSERT_OK(test, dat_lmr_fmr(lmr, DAT_MEM_TYPE_PHYSICAL, region, 2, FM_ALL,
				       DAT_VA_TYPE_ZB, km->env.ep, cookie, 0, &keys.lmr,
				       &keys.rmr));
	km_last(km, &wr);
	KUNIT_EXPECT_EQ(test, wr.remote_addr, 0ULL);
	km_done(km, IB_WC_SUCCESS);
	km_expect(km, DAT_DTO_LMR_FMR, 1, DAT_DTO_SUCCESS);
	km_param(km, lmr, &param);
	KUNIT_EXPECT_EQ(test, param.registered_address, 0ULL);
	KUNIT_EXPECT_EQ(test, (int)param.va_type, (int)DAT_VA_TYPE_ZB);
	KUNIT_EXPECT_EQ(test, fake_ib_access(km->env.dev, keys.rmr, PAGE_SIZE + 3, &byte, 1,
					     IB_ACCESS_REMOTE_READ), 0);
	KUNIT_EXPECT_EQ(test, byte, km_byte(9, 2, 3));
	KD_EXPECT_OK(test, km_send(km, keys.lmr, 0, 2 * PAGE_SIZE, 1));
	KM_EXPECT_TYPE(test, km_send(km, keys.lmr, km->pa[1], 1, 1), DAT_INVALID_PARAMETER);
	KM_EXPECT_TYPE(test, km_send(km, keys.lmr, 2 * PAGE_SIZE, 1, 1), DAT_INVALID_PARAMETER);
}

/* Larger pages, on a device that has them: the same bytes with fewer entries. */
static void fm_var_pages_test(struct kunit *test)
{
	struct fake_ib_caps caps = { .page_sizes = PAGE_SIZE | 4 * PAGE_SIZE, .max_pages = 8 };
	struct km *km = km_open(test, &caps);
	struct page *big[2] = { alloc_pages(GFP_KERNEL, 2), alloc_pages(GFP_KERNEL, 2) };
	DAT_PADDR pages[2];
	DAT_REGION_DESCRIPTION region = {
		.for_array = { .page_size = 4 * PAGE_SIZE, .pages = pages },
	};
	DAT_LMR_COOKIE cookie = { .as_64 = 1 };
	struct kdat_mem_limits limits;
	struct km_keys keys;
	DAT_LMR_HANDLE lmr;
	u32 value = 0x12345678;

	KUNIT_ASSERT_NOT_NULL(test, big[0]);
	KUNIT_ASSERT_NOT_NULL(test, big[1]);
	pages[0] = page_to_phys(big[0]);
	pages[1] = page_to_phys(big[1]);
	KD_EXPECT_OK(test, kdat_ia_mem_limits(km->env.ia, &limits));
	KUNIT_EXPECT_EQ(test, limits.lmr_pages, 8);
	KUNIT_EXPECT_TRUE(test, limits.fmr_page_sizes & PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, limits.page_sizes, (u64)caps.page_sizes);
	km_ep(km, 0, NULL);
	kd_connect(&km->env);
	lmr = km_lmr(km, 8, DAT_LMR_SCOPE_PZ);
	KD_EXPECT_OK(test, dat_lmr_fmr(lmr, DAT_MEM_TYPE_PHYSICAL_VAR_PAGES, region, 2, FM_ALL,
				       DAT_VA_TYPE_ZB, km->env.ep, cookie, 0, &keys.lmr,
				       &keys.rmr));
	km_done(km, IB_WC_SUCCESS);
	km_expect(km, DAT_DTO_LMR_FMR, 1, DAT_DTO_SUCCESS);
	KUNIT_EXPECT_EQ(test, fake_ib_access(km->env.dev, keys.rmr, 7 * PAGE_SIZE + 4, &value, 4,
					     IB_ACCESS_REMOTE_WRITE), 0);
	KUNIT_EXPECT_EQ(test, *(u32 *)(page_address(big[1]) + 3 * PAGE_SIZE + 4), 0x12345678U);
	KUNIT_EXPECT_EQ(test, fake_ib_access(km->env.dev, keys.rmr, 8 * PAGE_SIZE, &value, 1,
					     IB_ACCESS_REMOTE_WRITE), -EACCES);
	km_unbind(km, lmr);
	__free_pages(big[0], 2);
	__free_pages(big[1], 2);
}

static void fm_at_once_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_LMR_HANDLE lmr = km_lmr(km, 2, DAT_LMR_SCOPE_PZ);
	DAT_LMR_TRIPLET iov;
	struct km_keys keys;

	KD_ASSERT_OK(test, km_try_fmr(km, lmr, 0, 2, FM_ALL, 0, 1, &keys));
	/* the queue executes in order, so the key may be named in what follows */
	iov = (DAT_LMR_TRIPLET) { km->pa[0] + 8, PAGE_SIZE, keys.lmr };
	KD_EXPECT_OK(test, kd_post(km->env.ep, KD_SEND, 1, &iov, 2, NULL, 0));
	KUNIT_EXPECT_TRUE(test, km_bound(km, lmr));
	KD_EXPECT_EMPTY(test, km->env.req);
	KUNIT_EXPECT_EQ(test, fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS), 2);
	km_expect(km, DAT_DTO_LMR_FMR, 1, DAT_DTO_SUCCESS);
	km_expect(km, DAT_DTO_SEND, 2, DAT_DTO_SUCCESS);
	/* and the invalidate may follow without waiting either */
	KD_EXPECT_OK(test, kd_post(km->env.ep, KD_SEND, 1, &iov, 3, NULL, 0));
	KD_EXPECT_OK(test, km_try_inv(km, lmr, DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG, 4));
	KM_EXPECT_TYPE(test, kd_post(km->env.ep, KD_SEND, 1, &iov, 5, NULL, 0),
		       DAT_PRIVILEGES_VIOLATION);
	KM_EXPECT_TYPE(test, kd_post(km->env.ep, KD_RECV, 1, &iov, 5, NULL, 0),
		       DAT_PRIVILEGES_VIOLATION);
	KUNIT_EXPECT_EQ(test, fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS), 2);
	km_expect(km, DAT_DTO_SEND, 3, DAT_DTO_SUCCESS);
	km_expect(km, DAT_DTO_LMR_INVALIDATE, 4, DAT_DTO_SUCCESS);
	KD_EXPECT_EMPTY(test, km->env.req);
}

static void fm_rotate_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_LMR_HANDLE lmr = km_lmr(km, 1, DAT_LMR_SCOPE_PZ);
	DAT_LMR_CONTEXT last = 0, ahead;
	DAT_RMR_CONTEXT rmr_ahead;
	unsigned int seen[256] = {};
	struct km_keys keys;
	int i, values = 0, plus_one = 0;

	for (i = 0; i < 300; i++) {
		KD_EXPECT_OK(test, kdat_lmr_next_contexts(lmr, &ahead, &rmr_ahead));
		km_bind(km, lmr, 0, 1, FM_ALL, &keys);
		KUNIT_EXPECT_EQ(test, keys.lmr, ahead);
		KUNIT_EXPECT_EQ(test, keys.rmr, rmr_ahead);
		KUNIT_EXPECT_NE(test, keys.lmr, 0U);
		if (last) {
			KUNIT_EXPECT_NE(test, keys.lmr, last);
			/* only the low byte changes; who knows one does not know the next */
			KUNIT_EXPECT_EQ(test, keys.lmr >> 8, last >> 8);
			KM_EXPECT_TYPE(test, km_send(km, last, km->pa[0], 1, 0),
				       DAT_PRIVILEGES_VIOLATION);
			KUNIT_EXPECT_FALSE(test, fake_ib_mr_valid(km->env.dev, last));
			plus_one += (u8)(last + 1) == (u8)keys.lmr;
		}
		values += !seen[keys.lmr & 0xff]++;
		last = keys.lmr;
		km_unbind(km, lmr);
	}
	kunit_info(test, "%d values, %d times one more than the last\n", values, plus_one);
	KUNIT_EXPECT_GT(test, values, 100);
	KUNIT_EXPECT_LT(test, plus_one, 30);
}

static void fm_ahead_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_LMR_HANDLE lmr = km_lmr(km, 1, DAT_LMR_SCOPE_PZ);
	DAT_LMR_CONTEXT a, b;
	DAT_RMR_CONTEXT r;
	struct km_keys keys;

	/* asking changes nothing, and a refused fmr uses nothing up */
	KD_EXPECT_OK(test, kdat_lmr_next_contexts(lmr, &a, &r));
	KD_EXPECT_OK(test, kdat_lmr_next_contexts(lmr, &b, NULL));
	KUNIT_EXPECT_EQ(test, a, b);
	KM_EXPECT_TYPE(test, km_try_fmr(km, lmr, 0, 2, FM_ALL, 0, 1, &keys),
		       DAT_INVALID_PARAMETER);
	km_bind(km, lmr, 0, 1, KM_LOCAL, &keys);
	KUNIT_EXPECT_EQ(test, keys.lmr, a);
	KUNIT_EXPECT_EQ(test, keys.rmr, 0U);	/* asked for no remote right */
	KD_EXPECT_OK(test, kdat_lmr_next_contexts(lmr, NULL, &r));
	KUNIT_EXPECT_NE(test, r, a);
	KD_EXPECT_RET(test, kdat_lmr_next_contexts(km->env.ep, &a, &r), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_LMR);
	KM_EXPECT_TYPE(test, kdat_lmr_next_contexts(km->env.mem[KD_RW].lmr, &a, &r),
		       DAT_INVALID_STATE);
}

static void fm_by_context_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	const struct kd_mem *mem = &km->env.mem[KD_RW];
	DAT_LMR_HANDLE lmr = km_lmr(km, 1, DAT_LMR_SCOPE_PZ), found = NULL;
	DAT_IA_HANDLE ia = km->env.ia;
	struct km_keys keys;

	KD_EXPECT_OK(test, kdat_lmr_by_context(ia, mem->lmr_context, &found));
	KUNIT_EXPECT_PTR_EQ(test, found, mem->lmr);
	KM_EXPECT_TYPE(test, kdat_lmr_by_context(ia, 0, &found), DAT_INVALID_PARAMETER);
	KM_EXPECT_TYPE(test, kdat_lmr_by_context(ia, mem->lmr_context ^ 1, &found),
		       DAT_INVALID_PARAMETER);
	KD_EXPECT_RET(test, kdat_lmr_by_context(ia, ~0U, &found), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG2);
	KD_EXPECT_RET(test, kdat_lmr_by_context(ia, mem->lmr_context, NULL),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	KD_EXPECT_RET(test, kdat_lmr_by_context(km->env.ep, mem->lmr_context, &found),
		      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);

	km_bind(km, lmr, 0, 1, KM_LOCAL, &keys);
	KD_EXPECT_OK(test, kdat_lmr_by_context(ia, keys.lmr, &found));
	KUNIT_EXPECT_PTR_EQ(test, found, lmr);
	km_unbind(km, lmr);
	KM_EXPECT_TYPE(test, kdat_lmr_by_context(ia, keys.lmr, &found), DAT_INVALID_PARAMETER);
	KUNIT_EXPECT_PTR_EQ(test, found, lmr);
}

static void fm_event_test(struct kunit *test)
{
	static const u64 cookies[] = { 0, ~0ULL, 0x0123456789abcdefULL, 1 };
	struct km *km = km_connected(test, NULL);
	DAT_LMR_HANDLE lmr = km_lmr(km, 1, DAT_LMR_SCOPE_PZ);
	struct fake_ib_wr wr;
	struct km_keys keys;
	int i;

	for (i = 0; i < ARRAY_SIZE(cookies); i++) {
		KD_EXPECT_OK(test, km_try_fmr(km, lmr, 0, 1, KM_LOCAL, 0, cookies[i], &keys));
		KD_EXPECT_EMPTY(test, km->env.req);
		km_done(km, IB_WC_SUCCESS);
		km_expect(km, DAT_DTO_LMR_FMR, cookies[i], DAT_DTO_SUCCESS);
		KD_EXPECT_OK(test, km_try_inv(km, lmr, 0, ~cookies[i]));
		KD_EXPECT_EMPTY(test, km->env.req);
		/* the memory may not be reused before this */
		KUNIT_EXPECT_TRUE(test, km_bound(km, lmr));
		km_done(km, IB_WC_SUCCESS);
		km_expect(km, DAT_DTO_LMR_INVALIDATE, ~cookies[i], DAT_DTO_SUCCESS);
		KUNIT_EXPECT_FALSE(test, km_bound(km, lmr));
		KD_EXPECT_EMPTY(test, km->env.req);
	}
	/* suppressed: no event, natively none either */
	KD_EXPECT_OK(test, km_try_fmr(km, lmr, 0, 1, KM_LOCAL, DAT_COMPLETION_SUPPRESS_FLAG, 1,
				      &keys));
	km_last(km, &wr);
	KUNIT_EXPECT_FALSE(test, wr.send_flags & IB_SEND_SIGNALED);
	KD_EXPECT_OK(test, km_try_inv(km, lmr, DAT_COMPLETION_SUPPRESS_FLAG, 2));
	KUNIT_EXPECT_EQ(test, fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS), 2);
	KD_EXPECT_EMPTY(test, km->env.req);
	KUNIT_EXPECT_FALSE(test, km_bound(km, lmr));
	/* suppressed and failed: reported all the same */
	KD_EXPECT_OK(test, km_try_fmr(km, lmr, 0, 1, KM_LOCAL, DAT_COMPLETION_SUPPRESS_FLAG, 3,
				      &keys));
	km_done(km, IB_WC_LOC_PROT_ERR);
	km_expect(km, DAT_DTO_LMR_FMR, 3, DAT_DTO_ERR_LOCAL_MM_ERROR);
	KUNIT_EXPECT_EQ(test, kd_expect_end(&km->env), (u32)DAT_CONNECTION_EVENT_BROKEN);
}

static void fm_busy_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_LMR_HANDLE lmr = km_lmr(km, 2, DAT_LMR_SCOPE_PZ);
	struct km_trace before;
	struct km_keys keys, none;
	int step;

	KD_ASSERT_OK(test, km_try_fmr(km, lmr, 0, 2, FM_ALL, 0, 1, &keys));
	/* posted, bound, being invalidated: not once more */
	for (step = 0; step < 3; step++) {
		km_trace(km, &before);
		KD_EXPECT_RET(test, km_try_fmr(km, lmr, 4, 2, FM_ALL, 0, 9, &none),
			      DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE);
		km_untouched(km, &before, "fmr of a busy LMR");
		if (step == 0) {
			km_done(km, IB_WC_SUCCESS);
			km_expect(km, DAT_DTO_LMR_FMR, 1, DAT_DTO_SUCCESS);
			KUNIT_EXPECT_TRUE(test, fake_ib_mr_valid(km->env.dev, keys.lmr));
		} else if (step == 1) {
			KD_EXPECT_OK(test, km_try_inv(km, lmr, 0, 2));
			km_trace(km, &before);
			KD_EXPECT_RET(test, km_try_inv(km, lmr, 0, 3), DAT_INVALID_STATE,
				      DAT_INVALID_STATE_LMR_FREE);
			km_untouched(km, &before, "second invalidate");
		}
	}
	/* done at the device, but nobody has looked: the next fmr does */
	km_done(km, IB_WC_SUCCESS);
	KD_EXPECT_OK(test, km_try_fmr(km, lmr, 4, 2, FM_ALL, 0, 4, &none));
	km_expect(km, DAT_DTO_LMR_INVALIDATE, 2, DAT_DTO_SUCCESS);
	km_done(km, IB_WC_SUCCESS);
	km_expect(km, DAT_DTO_LMR_FMR, 4, DAT_DTO_SUCCESS);
}

static void fm_scope_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_LMR_HANDLE own = km_lmr(km, 2, DAT_LMR_SCOPE_EP);
	DAT_LMR_HANDLE any = km_lmr(km, 2, DAT_LMR_SCOPE_ANY);
	struct km_keys keys, shared;
	struct km_trace before;

	km_bind(km, own, 0, 2, FM_ALL, &keys);
	km_bind(km, any, 2, 2, FM_ALL, &shared);
	km_ep(km, 1, NULL);
	kd_connect(&km->env);
	km_trace(km, &before);
	KM_EXPECT_TYPE(test, km_send(km, keys.lmr, km->pa[0], 8, 1), DAT_PROTECTION_VIOLATION);
	KM_EXPECT_TYPE(test, km_try_inv(km, own, 0, 1), DAT_PROTECTION_VIOLATION);
	km_untouched(km, &before, "LMR of another EP");
	KD_EXPECT_OK(test, km_send(km, shared.lmr, km->pa[2], 8, 1));
	km_done(km, IB_WC_SUCCESS);
	km_expect(km, DAT_DTO_SEND, 1, DAT_DTO_SUCCESS);
	km_use(km, 0);
	KD_EXPECT_OK(test, km_send(km, keys.lmr, km->pa[0], 8, 1));
	km_done(km, IB_WC_SUCCESS);
	km_expect(km, DAT_DTO_SEND, 1, DAT_DTO_SUCCESS);
	km_unbind(km, own);
	/* unbound it is anybody's again */
	km_use(km, 1);
	km_bind(km, own, 0, 2, FM_ALL, &keys);
	KD_EXPECT_OK(test, km_send(km, keys.lmr, km->pa[0], 8, 1));
	km_done(km, IB_WC_SUCCESS);
	km_expect(km, DAT_DTO_SEND, 1, DAT_DTO_SUCCESS);
	km_use(km, 0);
	KM_EXPECT_TYPE(test, km_send(km, keys.lmr, km->pa[0], 8, 1), DAT_PROTECTION_VIOLATION);
	km_unbind(km, any);
}

static void fm_atomic_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_LMR_HANDLE lmr = km_lmr(km, 16, DAT_LMR_SCOPE_PZ);
	DAT_RMR_HANDLE rmr = km_rmr(km, false);
	DAT_RMR_CONTEXT context;
	struct km_keys keys;
	unsigned long irq;
	DAT_RETURN ret[3];
	int i;

	/* the fake device complains of a mapping that would have to allocate */
	for (i = 1; i <= 16; i++) {
		local_irq_save(irq);
		ret[0] = km_try_fmr(km, lmr, 0, i, FM_ALL, 0, 1, &keys);
		ret[1] = km_try_rmr(km, rmr, lmr, km->pa[0], i * PAGE_SIZE, keys.lmr, KM_REMOTE, 0,
				    2, &context);
		local_irq_restore(irq);
		KD_EXPECT_OK(test, ret[0]);
		KD_EXPECT_OK(test, ret[1]);
		fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS);
		km_drain(km->env.req);
		local_irq_save(irq);
		ret[0] = km_try_rmr(km, rmr, DAT_HANDLE_NULL, 0, 0, 0, 0, 0, 3, &context);
		local_irq_restore(irq);
		KD_EXPECT_OK(test, ret[0]);
		fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS);
		km_drain(km->env.req);
		local_irq_save(irq);
		ret[2] = km_try_inv(km, lmr, 0, 4);
		local_irq_restore(irq);
		KD_EXPECT_OK(test, ret[2]);
		fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS);
		km_drain(km->env.req);
	}
}

static void fm_map_fails_test(struct kunit *test)
{
	static const int errs[] = { -ENOMEM, -EINVAL, -EIO, 1 };
	struct km *km = km_connected(test, NULL);
	DAT_LMR_HANDLE lmr = km_lmr(km, 4, DAT_LMR_SCOPE_PZ);
	struct km_keys keys;
	struct km_trace before, after;
	int i;

	for (i = 0; i < ARRAY_SIZE(errs); i++) {
		km_trace(km, &before);
		/* also a device that maps less than it was given */
		fake_ib_fail(km->env.dev, FAKE_IB_MAP_MR_SG, 1, errs[i]);
		KM_EXPECT_TYPE(test, km_try_fmr(km, lmr, 0, 4, FM_ALL, 0, 1, &keys),
			       DAT_INSUFFICIENT_RESOURCES);
		km_trace(km, &after);
		KUNIT_EXPECT_EQ(test, after.posted, before.posted);
		KUNIT_EXPECT_EQ(test, after.used, before.used);
		KUNIT_EXPECT_FALSE(test, km_bound(km, lmr));
	}
	KD_EXPECT_EMPTY(test, km->env.req);
	km_bind(km, lmr, 0, 4, FM_ALL, &keys);
	km_unbind(km, lmr);
}

static struct kunit_case fmr_cases[] = {
	KD_CASE(fm_native_test,
		"FMR-02,FMR-05,FMR-08,LMR-21: what reaches the device, for every set of rights"),
	KD_CASE(fm_bytes_test,
		"FMR-02,FMR-10,EP-POST-14,EP-POST-16: the keys reach these bytes, then none"),
	KD_CASE(fm_zero_test, "FMR-02,LMR-06: zero based"),
	KD_CASE(fm_var_pages_test, "FMR-02: pages of another size"),
	KD_CASE(fm_at_once_test,
		"FMR-02,FMR-10: later requests may name the keys at once, after an invalidate not"),
	KD_CASE(fm_rotate_test, "FMR-04: each binding has other keys, and not the next number"),
	KD_CASE(fm_ahead_test, "FMR-04,FMR-05: the keys to come can be asked for"),
	KD_CASE(fm_by_context_test, "C-10: an LMR is found by its key while segments may name it"),
	KD_CASE(fm_event_test, "FMR-03,FMR-10,FLAG-02,GEN-12: completions, cookies, suppression"),
	KD_CASE(fm_busy_test, "FMR-06,FMR-12: one binding at a time"),
	KD_CASE(fm_scope_test, "FMR-01,FMR-14: an LMR of scope EP belongs to the EP that bound it"),
	KD_CASE(fm_atomic_test, "CTX-01,EP-POST-02: nothing allocates where nobody may sleep"),
	KD_CASE(fm_map_fails_test, "FMR-02,GEN-07: a mapping that fails leaves nothing behind"),
	{}
};

static struct kunit_suite fmr_suite = {
	.name = "kdapl-fmr",
	.suite_init = kd_suite_init,
	.suite_exit = kd_suite_exit,
	.init = km_init,
	.exit = km_exit,
	.test_cases = fmr_cases,
};

kunit_test_suite(fmr_suite);
