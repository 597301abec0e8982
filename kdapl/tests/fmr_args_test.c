// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * What dat_lmr_allocate(), dat_lmr_fmr() and dat_lmr_invalidate() refuse, with
 * which code, and that a refusal leaves no trace: nothing is mapped, nothing
 * reaches the device, no queue slot is gone, the LMR is what it was.
 */
#include <linux/limits.h>
#include <linux/mm.h>

#include "kd_mem.h"

#define FA_PAGES	4

/* Handles that are no LMR, PZ, EP: whatever the one asked for is. */
static void fa_bad_handles(struct km *km, DAT_HANDLE good, DAT_HANDLE *bad, int n)
{
	DAT_HANDLE some[] = {
		DAT_HANDLE_NULL, km->env.ia, km->env.recv, km->env.conn,
		(DAT_HANDLE)((unsigned long)good + (1UL << 30)), (DAT_HANDLE)~0UL,
		(DAT_HANDLE)km,
	};
	int i;

	for (i = 0; i < n; i++)
		bad[i] = some[i % ARRAY_SIZE(some)];
}

static void fa_allocate_test(struct kunit *test)
{
	static const int wrong[] = { 0, -1, INT_MIN, 65, 66, INT_MAX, 1 << 20 };
	static const int scopes[] = { DAT_LMR_SCOPE_EP, DAT_LMR_SCOPE_PZ, DAT_LMR_SCOPE_ANY };
	struct km *km = km_open(test, NULL);
	DAT_LMR_HANDLE lmr;
	DAT_LMR_PARAM param;
	DAT_HANDLE bad[7];
	int i;

	fa_bad_handles(km, km->env.pz, bad, ARRAY_SIZE(bad));
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		if (bad[i] != km->env.ia)
			KD_EXPECT_RET(test, dat_lmr_allocate(bad[i], km->env.pz, 1,
							     DAT_LMR_SCOPE_PZ, &lmr),
				      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
		KD_EXPECT_RET(test, dat_lmr_allocate(km->env.ia, bad[i], 1, DAT_LMR_SCOPE_PZ, &lmr),
			      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	}
	for (i = 0; i < ARRAY_SIZE(wrong); i++)
		KD_EXPECT_RET(test, dat_lmr_allocate(km->env.ia, km->env.pz, wrong[i],
						     DAT_LMR_SCOPE_PZ, &lmr),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	KM_EXPECT_TYPE(test, dat_lmr_allocate(km->env.ia, km->env.pz, 1, 3, &lmr),
		       DAT_INVALID_PARAMETER);
	KM_EXPECT_TYPE(test, dat_lmr_allocate(km->env.ia, km->env.pz, 1, -1, &lmr),
		       DAT_INVALID_PARAMETER);
	KD_EXPECT_RET(test, dat_lmr_allocate(km->env.ia, km->env.pz, 1, DAT_LMR_SCOPE_PZ, NULL),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	for (i = 0; i < 3 * ARRAY_SIZE(scopes); i++) {
		lmr = km_lmr(km, i < 3 ? 1 : i < 6 ? 64 : 7, scopes[i % 3]);
		km_param(km, lmr, &param);
		KUNIT_EXPECT_TRUE(test, param.lmr_state.fmr_support);
		KUNIT_EXPECT_FALSE(test, param.lmr_state.bound);
		KUNIT_EXPECT_PTR_EQ(test, param.ia_handle, km->env.ia);
		KUNIT_EXPECT_PTR_EQ(test, param.pz_handle, km->env.pz);
		KUNIT_EXPECT_EQ(test, param.lmr_context, 0U);
		KUNIT_EXPECT_EQ(test, param.rmr_context, 0U);
	}
	km_param(km, km->env.mem[KD_RW].lmr, &param);
	KUNIT_EXPECT_FALSE(test, param.lmr_state.fmr_support);
	KUNIT_EXPECT_TRUE(test, param.lmr_state.bound);
}

static void fa_allocate_fails_test(struct kunit *test)
{
	static const enum fake_ib_verb verbs[] = { FAKE_IB_ALLOC_MR, FAKE_IB_MAP_MR_SG };
	/* one whose regions are mapped once when they are made (D-24) */
	static const struct fake_ib_caps caps = { .driver = RDMA_DRIVER_RXE };
	struct km *km = km_open(test, &caps);
	DAT_LMR_HANDLE lmr;
	int i;

	for (i = 0; i < ARRAY_SIZE(verbs); i++) {
		struct fake_ib_live before, after;

		fake_ib_live(km->env.dev, &before);
		fake_ib_fail(km->env.dev, verbs[i], 1, -ENOMEM);
		KM_EXPECT_TYPE(test, dat_lmr_allocate(km->env.ia, km->env.pz, 4, DAT_LMR_SCOPE_PZ,
						      &lmr), DAT_INSUFFICIENT_RESOURCES);
		KUNIT_EXPECT_EQ(test, fake_ib_failing(km->env.dev, verbs[i]), 0U);
		fake_ib_live(km->env.dev, &after);
		KUNIT_EXPECT_EQ(test, after.mrs, before.mrs);
		lmr = km_lmr(km, 4, DAT_LMR_SCOPE_PZ);
		km_drop_lmr(km, lmr);
	}
	/* it holds its PZ */
	lmr = km_lmr(km, 4, DAT_LMR_SCOPE_PZ);
	KD_EXPECT_RET(test, dat_pz_free(km->env.pz), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_PZ_IN_USE);
}

/* One fmr with one thing wrong; it is bound nowhere and leaves no trace. */
static void fa_refused(struct km *km, DAT_LMR_HANDLE lmr, DAT_MEM_TYPE type,
		       DAT_REGION_DESCRIPTION region, u64 n, int priv, int va_type, int flags,
		       u32 want, const char *what)
{
	struct kunit *test = km->env.test;
	DAT_LMR_COOKIE cookie = { .as_64 = 1 };
	struct km_trace before;
	struct km_keys keys;
	DAT_RETURN ret;

	km_trace(km, &before);
	ret = dat_lmr_fmr(lmr, type, region, n, priv, va_type, km->env.ep, cookie, flags,
			  &keys.lmr, &keys.rmr);
	KUNIT_EXPECT_EQ_MSG(test, (u32)ret, want, "%s", what);
	km_untouched(km, &before, what);
	KUNIT_EXPECT_FALSE_MSG(test, km_bound(km, lmr), "%s", what);
	KD_EXPECT_EMPTY(test, km->env.req);
}

#define FA_ARG(n)	((u32)DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG##n))

static void fa_type_test(struct kunit *test)
{
	static const u32 types[] = {
		DAT_MEM_TYPE_VIRTUAL, DAT_MEM_TYPE_LMR, DAT_MEM_TYPE_PLATFORM, DAT_MEM_TYPE_IA,
		DAT_MEM_TYPE_BYPASS, DAT_MEM_TYPE_PHYSICAL | DAT_MEM_TYPE_PHYSICAL_VAR_PAGES,
		0x200, 0x80000000, 0xffffffff,
	};
	struct km *km = km_connected(test, NULL);
	DAT_LMR_HANDLE lmr = km_lmr(km, FA_PAGES, DAT_LMR_SCOPE_PZ);
	DAT_REGION_DESCRIPTION region = { .for_physical = km->pa };
	int i;

	for (i = 0; i < ARRAY_SIZE(types); i++)
		fa_refused(km, lmr, types[i], region, 1, KM_LOCAL, DAT_VA_TYPE_VA, 0, FA_ARG(2),
			   "memory type");
}

static void fa_pages_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_LMR_HANDLE lmr = km_lmr(km, FA_PAGES, DAT_LMR_SCOPE_PZ);
	DAT_REGION_DESCRIPTION region = { .for_physical = km->pa };
	DAT_PADDR pages[FA_PAGES], bad[] = {
		1, km->pa[0] + 1, km->pa[0] + PAGE_SIZE / 2, km->pa[0] | (PAGE_SIZE - 1),
		~0ULL, ~0ULL << PAGE_SHIFT, 1ULL << 62,
	};
	u64 counts[] = { 0, FA_PAGES + 1, 64, 65, 1ULL << 32, 1ULL << 52, U64_MAX };
	u64 sizes[] = { 0, 1, 512, PAGE_SIZE / 2, PAGE_SIZE + 1, PAGE_SIZE * 3, U64_MAX,
			1ULL << 63 };
	int i, at;

	for (i = 0; i < ARRAY_SIZE(counts); i++)
		fa_refused(km, lmr, DAT_MEM_TYPE_PHYSICAL, region, counts[i], KM_LOCAL,
			   DAT_VA_TYPE_VA, 0, FA_ARG(4), "count");
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		for (at = 0; at < FA_PAGES; at++) {
			memcpy(pages, km->pa, sizeof(pages));
			pages[at] = bad[i];
			region.for_physical = pages;
			fa_refused(km, lmr, DAT_MEM_TYPE_PHYSICAL, region, FA_PAGES, KM_LOCAL,
				   DAT_VA_TYPE_VA, 0, FA_ARG(3), "address");
		}
	}
	region.for_physical = NULL;
	fa_refused(km, lmr, DAT_MEM_TYPE_PHYSICAL, region, 1, KM_LOCAL, DAT_VA_TYPE_VA, 0,
		   FA_ARG(3), "no array");
	region.for_array = (DAT_PHYSICAL_VAR_PAGES) { .page_size = PAGE_SIZE, .pages = NULL };
	fa_refused(km, lmr, DAT_MEM_TYPE_PHYSICAL_VAR_PAGES, region, 1, KM_LOCAL, DAT_VA_TYPE_VA,
		   0, FA_ARG(3), "no array");
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		region.for_array = (DAT_PHYSICAL_VAR_PAGES) {
			.page_size = sizes[i], .pages = km->pa,
		};
		fa_refused(km, lmr, DAT_MEM_TYPE_PHYSICAL_VAR_PAGES, region, 1, KM_LOCAL,
			   DAT_VA_TYPE_VA, 0, FA_ARG(3), "page size");
	}
}

static void fa_scalar_test(struct kunit *test)
{
	static const u32 privs[] = { 0x80, 0x100, 0x80000000, 0xffffffff };
	static const u32 vas[] = { 2, 3, 0x80000000, 0xffffffff };
	struct km *km = km_connected(test, NULL);
	DAT_LMR_HANDLE lmr = km_lmr(km, FA_PAGES, DAT_LMR_SCOPE_PZ);
	DAT_REGION_DESCRIPTION region = { .for_physical = km->pa };
	int i;

	for (i = 0; i < ARRAY_SIZE(privs); i++)
		fa_refused(km, lmr, DAT_MEM_TYPE_PHYSICAL, region, 1, privs[i], DAT_VA_TYPE_VA, 0,
			   FA_ARG(5), "privileges");
	for (i = 0; i < ARRAY_SIZE(vas); i++)
		fa_refused(km, lmr, DAT_MEM_TYPE_PHYSICAL, region, 1, KM_LOCAL, vas[i], 0,
			   FA_ARG(6), "va_type");
}

static bool fa_flag_legal(int flags, int more, int attr)
{
	int legal = DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_UNSIGNALLED_FLAG |
		    DAT_COMPLETION_BARRIER_FENCE_FLAG | more;

	return !(flags & ~legal) && (!(flags & DAT_COMPLETION_UNSIGNALLED_FLAG) ||
				     attr == DAT_COMPLETION_UNSIGNALLED_FLAG);
}

static void fa_flags_test(struct kunit *test)
{
	static const int attrs[] = { DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_UNSIGNALLED_FLAG };
	struct km *km = km_open(test, NULL);
	DAT_LMR_HANDLE lmr = km_lmr(km, FA_PAGES, DAT_LMR_SCOPE_PZ);
	DAT_REGION_DESCRIPTION region = { .for_physical = km->pa };
	struct km_keys keys;
	DAT_EP_ATTR attr;
	int i, flags;

	for (i = 0; i < ARRAY_SIZE(attrs); i++) {
		kd_attr(&attr);
		attr.request_completion_flags = attrs[i];
		km_ep(km, 0, &attr);
		kd_connect(&km->env);
		for (flags = 1; flags < 256; flags = flags < 64 ? flags + 1 : flags << 1) {
			if (!fa_flag_legal(flags, 0, attrs[i])) {
				fa_refused(km, lmr, DAT_MEM_TYPE_PHYSICAL, region, 1, KM_LOCAL,
					   DAT_VA_TYPE_VA, flags, FA_ARG(9), "fmr flags");
				continue;
			}
			KD_EXPECT_OK(test, km_try_fmr(km, lmr, 0, 1, KM_LOCAL, flags, 1, &keys));
			km_done(km, IB_WC_SUCCESS);
			KUNIT_EXPECT_EQ(test, km_bound(km, lmr), true);
			km_drain(km->env.req);
			km_unbind(km, lmr);
		}
		fa_refused(km, lmr, DAT_MEM_TYPE_PHYSICAL, region, 1, KM_LOCAL, DAT_VA_TYPE_VA, -1,
			   FA_ARG(9), "fmr flags");
		km_ep_free(km, 0);
	}
}

static void fa_inv_flags_test(struct kunit *test)
{
	static const int attrs[] = { DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_UNSIGNALLED_FLAG };
	struct km *km = km_open(test, NULL);
	DAT_LMR_HANDLE lmr = km_lmr(km, FA_PAGES, DAT_LMR_SCOPE_PZ);
	struct km_trace before;
	struct fake_ib_wr wr;
	struct km_keys keys;
	DAT_EP_ATTR attr;
	int i, flags;

	for (i = 0; i < ARRAY_SIZE(attrs); i++) {
		kd_attr(&attr);
		attr.request_completion_flags = attrs[i];
		km_ep(km, 0, &attr);
		kd_connect(&km->env);
		for (flags = 0; flags < 256; flags = flags < 64 ? flags + 1 : flags << 1) {
			km_bind(km, lmr, 0, 1, KM_LOCAL, &keys);
			km_trace(km, &before);
			if (!fa_flag_legal(flags, DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG,
					   attrs[i])) {
				KD_EXPECT_RET(test, km_try_inv(km, lmr, flags, 1),
					      DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
				km_untouched(km, &before, "invalidate flags");
				KUNIT_EXPECT_TRUE(test, km_bound(km, lmr));
				km_unbind(km, lmr);
				continue;
			}
			KD_EXPECT_OK(test, km_try_inv(km, lmr, flags, 1));
			km_last(km, &wr);
			KUNIT_EXPECT_EQ(test, (int)wr.opcode, (int)IB_WR_LOCAL_INV);
			KUNIT_EXPECT_EQ(test, wr.rkey, keys.lmr);
			/* either fence is the one fence there is */
			KUNIT_EXPECT_EQ(test, !!(wr.send_flags & IB_SEND_FENCE),
					!!(flags & (DAT_COMPLETION_BARRIER_FENCE_FLAG |
						    DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG)));
			/* its end is what frees the memory: noticed, even if not told */
			KUNIT_EXPECT_TRUE(test, wr.send_flags & IB_SEND_SIGNALED);
			km_done(km, IB_WC_SUCCESS);
			if (flags & DAT_COMPLETION_SUPPRESS_FLAG)
				KD_EXPECT_EMPTY(test, km->env.req);
			else
				km_expect(km, DAT_DTO_LMR_INVALIDATE, 1, DAT_DTO_SUCCESS);
			KUNIT_EXPECT_FALSE(test, km_bound(km, lmr));
		}
		km_ep_free(km, 0);
	}
}

static void fa_handle_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_LMR_HANDLE lmr = km_lmr(km, FA_PAGES, DAT_LMR_SCOPE_PZ), gone;
	DAT_REGION_DESCRIPTION region = { .for_physical = km->pa };
	DAT_LMR_COOKIE cookie = { .as_64 = 1 };
	struct km_trace before;
	struct km_keys keys;
	DAT_HANDLE bad[7];
	int i;

	gone = km_lmr(km, 1, DAT_LMR_SCOPE_PZ);
	km_drop_lmr(km, gone);
	fa_bad_handles(km, lmr, bad, ARRAY_SIZE(bad));
	bad[1] = gone;
	bad[2] = km->env.pz;
	km_trace(km, &before);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		KD_EXPECT_RET(test, dat_lmr_fmr(bad[i], DAT_MEM_TYPE_PHYSICAL, region, 1, KM_LOCAL,
						DAT_VA_TYPE_VA, km->env.ep, cookie, 0, &keys.lmr,
						&keys.rmr),
			      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
		KD_EXPECT_RET(test, dat_lmr_fmr(lmr, DAT_MEM_TYPE_PHYSICAL, region, 1, KM_LOCAL,
						DAT_VA_TYPE_VA, bad[i], cookie, 0, &keys.lmr,
						&keys.rmr),
			      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
		KD_EXPECT_RET(test, dat_lmr_invalidate(bad[i], km->env.ep, cookie, 0),
			      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
		KD_EXPECT_RET(test, dat_lmr_invalidate(lmr, bad[i], cookie, 0),
			      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	}
	km_untouched(km, &before, "handles");
	/* contexts nobody asks for are not written */
	KD_EXPECT_OK(test, dat_lmr_fmr(lmr, DAT_MEM_TYPE_PHYSICAL, region, 1, KM_LOCAL,
				       DAT_VA_TYPE_VA, km->env.ep, cookie, 0, NULL, NULL));
	km_done(km, IB_WC_SUCCESS);
	km_expect(km, DAT_DTO_LMR_FMR, 1, DAT_DTO_SUCCESS);
}

static void fa_kind_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_LMR_HANDLE fixed = km->env.mem[KD_RW].lmr, foreign;
	DAT_LMR_HANDLE lmr = km_lmr(km, 1, DAT_LMR_SCOPE_PZ);
	struct km_trace before;
	struct km_keys keys;

	KD_ASSERT_OK(test, dat_lmr_allocate(km->env.ia, km->env.pz2, 1, DAT_LMR_SCOPE_PZ,
					    &foreign));
	km_keep_lmr(km, foreign);
	km_trace(km, &before);
	KD_EXPECT_RET(test, km_try_fmr(km, fixed, 0, 1, KM_LOCAL, 0, 1, &keys), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_LMR_IN_USE);
	KM_EXPECT_TYPE(test, km_try_inv(km, fixed, 0, 1), DAT_INVALID_STATE);
	KUNIT_EXPECT_TRUE(test, km_bound(km, fixed));
	KD_EXPECT_RET(test, km_try_inv(km, lmr, 0, 1), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_LMR_FREE);
	KM_EXPECT_TYPE(test, km_try_fmr(km, foreign, 0, 1, KM_LOCAL, 0, 1, &keys),
		       DAT_PROTECTION_VIOLATION);
	KUNIT_EXPECT_FALSE(test, km_bound(km, foreign));
	km_untouched(km, &before, "wrong kind of LMR");
	/* the keys of the fixed one still work */
	KD_EXPECT_OK(test, km_send(km, km->env.mem[KD_RW].lmr_context, km->env.mem[KD_RW].addr, 8,
				   3));
}

static void fa_state_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_LMR_HANDLE lmr = km_lmr(km, 1, DAT_LMR_SCOPE_PZ);
	DAT_LMR_HANDLE bound = km_lmr(km, 1, DAT_LMR_SCOPE_PZ);
	struct km_trace before;
	struct km_keys keys;
	int i;

	km_bind(km, bound, 0, 1, KM_LOCAL, &keys);
	for (i = 0; i < KD_STATES; i++) {
		if (kd_states[i].state == DAT_EP_STATE_CONNECTED ||
		    kd_states[i].state == DAT_EP_STATE_DISCONNECTED)
			continue;
		kd_set_state(&km->env, kd_states[i].state);
		km_trace(km, &before);
		KD_EXPECT_RET(test, km_try_fmr(km, lmr, 0, 1, KM_LOCAL, 0, 1, &keys),
			      DAT_INVALID_STATE, kd_states[i].subtype);
		KD_EXPECT_RET(test, km_try_inv(km, bound, 0, 1), DAT_INVALID_STATE,
			      kd_states[i].subtype);
		km_untouched(km, &before, kd_states[i].letter);
		KUNIT_EXPECT_FALSE(test, km_bound(km, lmr));
		KUNIT_EXPECT_TRUE(test, km_bound(km, bound));
	}
	kd_set_state(&km->env, DAT_EP_STATE_CONNECTED);
	km_bind(km, lmr, 0, 1, KM_LOCAL, &keys);
	km_unbind(km, bound);
	km_ep(km, 1, NULL);
	KD_EXPECT_RET(test, km_try_fmr(km, bound, 0, 1, KM_LOCAL, 0, 1, &keys),
		      DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONNECTED);
}

static void fa_full_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	struct kd_mem *mem = &km->env.mem[KD_RW];
	DAT_LMR_HANDLE lmr = km_lmr(km, 2, DAT_LMR_SCOPE_PZ);
	DAT_LMR_HANDLE bound = km_lmr(km, 2, DAT_LMR_SCOPE_PZ);
	struct km_keys keys, other;
	struct fake_ib_mr mr;
	int i;

	km_bind(km, bound, 4, 2, KM_LOCAL | KM_REMOTE, &other);
	for (i = 0; i < 8; i++)
		KD_EXPECT_OK(test, km_send(km, mem->lmr_context, mem->addr, 8, i));
	KM_EXPECT_TYPE(test, km_try_fmr(km, lmr, 0, 2, KM_LOCAL, 0, 9, &keys),
		       DAT_INSUFFICIENT_RESOURCES);
	KM_EXPECT_TYPE(test, km_try_inv(km, bound, 0, 9), DAT_INSUFFICIENT_RESOURCES);
	KUNIT_EXPECT_EQ(test, fake_ib_outstanding(km->env.qp, false), 8U);
	/* neither is anything else than it was: the keys are back */
	KUNIT_EXPECT_FALSE(test, km_bound(km, lmr));
	KUNIT_EXPECT_TRUE(test, km_bound(km, bound));
	KUNIT_EXPECT_TRUE(test, fake_ib_mr(km->env.dev, other.rmr, &mr) && mr.valid && !mr.busy);
	km_done(km, IB_WC_SUCCESS);
	km_expect(km, DAT_DTO_SEND, 0, DAT_DTO_SUCCESS);
	KD_EXPECT_OK(test, km_send(km, other.lmr, km->pa[4], 8, 8));
	for (i = 1; i <= 8; i++) {
		km_done(km, IB_WC_SUCCESS);
		km_expect(km, DAT_DTO_SEND, i, DAT_DTO_SUCCESS);
	}
	km_bind(km, lmr, 0, 2, KM_LOCAL, &keys);
	km_unbind(km, bound);
	km_unbind(km, lmr);
}

static struct kunit_case fmr_args_cases[] = {
	KD_CASE(fa_allocate_test,
		"FMR-01,LMR-21,GEN-09: dat_lmr_allocate: scopes, numbers of pages, bad arguments"),
	KD_CASE(fa_allocate_fails_test,
		"FMR-01,PZ-02: an allocation that fails leaves nothing, others keep their PZ"),
	KD_CASE(fa_type_test, "FMR-06: dat_lmr_fmr takes physical pages only"),
	KD_CASE(fa_pages_test, "FMR-06: page counts, page sizes and addresses it refuses"),
	KD_CASE(fa_scalar_test, "FMR-06: privileges and va_type"),
	KD_CASE(fa_flags_test, "FMR-03,EP-POST-07,EP-POST-19: every combination of flags"),
	KD_CASE(fa_inv_flags_test,
		"FMR-11,FLAG-06: every combination of flags of an invalidate, and its fences"),
	KD_CASE(fa_handle_test, "GEN-04: handles of fmr and invalidate; contexts may be NULL"),
	KD_CASE(fa_kind_test,
		"FMR-06,FMR-07,FMR-12: LMRs of dat_lmr_kcreate, of another PZ, unbound ones"),
	KD_CASE(fa_state_test, "FMR-07,EP-POST-10: states in which neither is possible"),
	KD_CASE(fa_full_test,
		"EP-POST-17,GEN-07: with a full queue neither happens, and the keys stay"),
	{}
};

static struct kunit_suite fmr_args_suite = {
	.name = "kdapl-fmr-args",
	.suite_init = kd_suite_init,
	.suite_exit = kd_suite_exit,
	.init = km_init,
	.exit = km_exit,
	.test_cases = fmr_args_cases,
};

kunit_test_suite(fmr_args_suite);
