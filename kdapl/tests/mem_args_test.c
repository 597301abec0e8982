// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * What all calls on memory refuse, with which code, and that a refusal leaves no trace:
 * nothing is made or mapped, nothing reaches the device, no queue slot is gone, the LMR or
 * RMR is what it was. Flags: mem_op_test.c. Descriptions of memory that are none:
 * mem_list_test.c, too. Handles: bad_handle_test.c. States: calls_test.c.
 */
#include <linux/limits.h>
#include <linux/mm.h>

#include "kd_mem.h"

#define MA_PAGES	4
#define MA_R		DAT_MEM_PRIV_REMOTE_READ_FLAG
#define MA_PHYS		DAT_MEM_TYPE_PHYSICAL
#define MA_VAR		DAT_MEM_TYPE_PHYSICAL_VAR_PAGES
#define MA_ARG(n)	((u32)DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG##n))

/* What the cases work with. */
struct ma {
	struct km *km;
	struct kd_mem *mem;	/* memory with all rights, of dat_lmr_kcreate() */
	DAT_LMR_HANDLE lmr;	/* of dat_lmr_allocate(), unbound */
	DAT_RMR_HANDLE rmr;	/* unbound */
	struct km_trace before;	/* what a refused call must leave alone */
	struct fake_ib_live live;
};

static void ma_open(struct kunit *test, struct ma *ma)
{
	struct km *km = km_connected(test, NULL);

	*ma = (struct ma) { .km = km, .mem = KM_MEM(km) };
	ma->lmr = km_lmr(km, MA_PAGES, DAT_LMR_SCOPE_PZ);
	ma->rmr = km_rmr(km, false);
	km_trace(km, &ma->before);
	fake_ib_live(km->env.dev, &ma->live);
}

static void ma_refused(struct ma *ma, DAT_RETURN ret, u32 want, const char *what)
{
	struct kunit *test = ma->km->env.test;
	struct fake_ib_live live;

	KUNIT_EXPECT_EQ_MSG(test, (u32)ret, want, "%s", what);
	km_untouched(ma->km, &ma->before, what);
	fake_ib_live(ma->km->env.dev, &live);
	KUNIT_EXPECT_EQ_MSG(test, live.mrs, ma->live.mrs, "%s", what);
	KUNIT_EXPECT_FALSE_MSG(test, km_bound(ma->km, ma->lmr), "%s", what);
	KD_EXPECT_EMPTY(test, ma->km->env.req);
}

/* The call is refused: with this code; for its nth argument, or a state; with this type of code. */
#define MA_RET(ma, type, subtype, call)							\
	ma_refused(ma, call, (u32)DAT_ERROR(type, subtype), #call)
#define MA_BAD(ma, n, call)	MA_RET(ma, DAT_INVALID_PARAMETER, DAT_INVALID_ARG##n, call)
#define MA_STATED(ma, why, call)	MA_RET(ma, DAT_INVALID_STATE, DAT_INVALID_STATE_##why, call)
#define MA_RESERVED(ma, call)	MA_RET(ma, DAT_RESERVED_LMR, DAT_NO_SUBTYPE, call)
#define MA_TYPE(ma, type, call)	ma_refused(ma, DAT_GET_TYPE(call), type, #call)

/* No place for an answer, and masks of queries. */
static void ma_answers_test(struct kunit *test)
{
	DAT_REGION_DESCRIPTION region;
	DAT_LMR_COOKIE c = { .as_64 = 1 };
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_PZ_HANDLE pz, far;
	DAT_LMR_TRIPLET seg;
	DAT_HANDLE_TYPE type;
	DAT_LMR_CONTEXT key;
	DAT_LMR_PARAM lparam;
	DAT_RMR_PARAM rparam;
	DAT_IA_HANDLE ia, other;
	DAT_LMR_HANDLE lmr;
	DAT_VADDR align;
	DAT_VLEN length;
	struct kdat_dma_map map = {};
	struct ma ma;

#define MA_KCREATE(pz, lmr, key)	\
	dat_lmr_kcreate(ia, MA_PHYS, region, 1, pz, KM_ALL, 0, 0, lmr, key, NULL, NULL, NULL)
	ma_open(test, &ma);
	ia = ma.km->env.ia;
	pz = ma.km->env.pz;
	region.for_physical = ma.km->pa;
	seg = kd_seg(&ma.km->env, KD_RW, 0, 8);
	MA_BAD(&ma, 9, MA_KCREATE(pz, NULL, &key));
	MA_BAD(&ma, 5, dat_lmr_allocate(ia, pz, 1, DAT_LMR_SCOPE_PZ, NULL));
	MA_BAD(&ma, 2, dat_lmr_query(ma.lmr, DAT_LMR_FIELD_ALL + 1, &lparam));
	MA_BAD(&ma, 3, dat_lmr_query(ma.lmr, DAT_LMR_FIELD_ALL, NULL));
	KD_EXPECT_OK(test, dat_lmr_query(ma.lmr, 0, NULL));
	MA_BAD(&ma, 2, dat_rmr_create(pz, NULL));
	MA_BAD(&ma, 2, dat_rmr_create_for_ep(pz, NULL));
	MA_BAD(&ma, 2, dat_rmr_query(ma.rmr, DAT_RMR_FIELD_ALL + 1, &rparam));
	MA_BAD(&ma, 3, dat_rmr_query(ma.rmr, DAT_RMR_FIELD_ALL, NULL));
	KD_EXPECT_OK(test, dat_rmr_query(ma.rmr, 0, NULL));
	KD_EXPECT_OK(test, dat_get_handle_type(ma.rmr, &type));
	KUNIT_EXPECT_EQ(test, (int)type, (int)DAT_HANDLE_TYPE_RMR);
	MA_BAD(&ma, 9, dat_rmr_bind(ma.rmr, ma.mem->lmr, &seg, MA_R, 0, ma.km->env.ep, c, 0, NULL));
	MA_BAD(&ma, 5, dat_ia_memtype_hint(ia, 0, 1, 0, NULL, &align));
	MA_BAD(&ma, 6, dat_ia_memtype_hint(ia, 0, 1, 0, &length, NULL));
	MA_BAD(&ma, 2, dat_ia_reserved_lmr(ia, NULL, &key));
	MA_BAD(&ma, 3, dat_ia_reserved_lmr(ia, &lmr, NULL));
	MA_BAD(&ma, 2, kdat_ia_mem_limits(ia, NULL));
	MA_BAD(&ma, 2, kdat_ia_dma_map(ia, NULL, ma.km->env.buf, 1));
	MA_BAD(&ma, 2, kdat_ia_dma_unmap(ia, NULL));
	MA_BAD(&ma, 3, kdat_lmr_by_context(ia, ma.mem->lmr_context, NULL));
	/* a PZ of another instance */
	other = kd_ia_more(&ma.km->env, &async);
	KD_ASSERT_OK(test, dat_pz_create(other, &far));
	MA_RET(&ma, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ, MA_KCREATE(far, &lmr, NULL));
	KD_EXPECT_OK(test, dat_ia_close(other, DAT_CLOSE_ABRUPT_FLAG));
	/* what nobody asks for is not written */
	KD_EXPECT_OK(test, MA_KCREATE(pz, &lmr, NULL));
	KD_EXPECT_OK(test, dat_lmr_free(lmr));
	KD_EXPECT_OK(test, dat_lmr_fmr(ma.lmr, MA_PHYS, region, 1, KM_LOCAL, 0, ma.km->env.ep, c, 0,
				       NULL, NULL));
	km_finish(ma.km, DAT_DTO_LMR_FMR, 1);
	KD_EXPECT_OK(test, kdat_ia_dma_map(ia, &map, ma.km->env.buf, 1));
	KD_EXPECT_OK(test, kdat_ia_dma_unmap(ia, &map));
#undef MA_KCREATE
}

/* dat_lmr_kcreate(), one thing wrong at a time. */
static void ma_kcreate_test(struct kunit *test)
{
	static const struct {
		u32 type;
		u64 length;
		u32 priv, va, opt, want;
	} rows[] = {
		{ 0x002, 8, 1, 0, 0, MA_ARG(2) }, { 0x004, 8, 1, 0, 0, MA_ARG(2) },
		{ 0x008, 8, 1, 0, 0, MA_ARG(2) }, { 0x200, 8, 1, 0, 0, MA_ARG(2) },
		{ 0x011, 8, 1, 0, 0, MA_ARG(2) }, { 0x101, 8, 1, 0, 0, MA_ARG(2) },
		{ 0x80000000, 8, 1, 0, 0, MA_ARG(2) },
		{ DAT_MEM_TYPE_BYPASS, 8, 1, 0, 0, DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, 0) },
		{ 0, 0, 1, 0, 0, MA_ARG(4) }, { 0, U64_MAX, 1, 0, 0, MA_ARG(4) },
		{ 0, 8, 0x04, 0, 0, MA_ARG(6) }, { 0, 8, 0x80, 0, 0, MA_ARG(6) },
		{ 0, 8, 0x101, 0, 0, MA_ARG(6) },
		{ 0, 8, 1, 2, 0, MA_ARG(7) }, { 0, 8, 1, 0, 0x08, MA_ARG(8) },
		{ 0, 8, 1, 0, 0x10, MA_ARG(8) }, { 0, 8, 1, 0, -1, MA_ARG(8) },
	};
	DAT_REGION_DESCRIPTION region;
	DAT_LMR_HANDLE lmr;
	char what[16];
	struct ma ma;
	int i;

#define MA_KCREATE(type, length, priv, va, opt)						\
	dat_lmr_kcreate(ma.km->env.ia, type, region, length, ma.km->env.pz, priv, va, opt, &lmr, \
			NULL, NULL, NULL, NULL)
	ma_open(test, &ma);
	region.for_va = km_bytes(ma.km, 0);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		snprintf(what, sizeof(what), "row %d", i);
		ma_refused(&ma, MA_KCREATE(rows[i].type, rows[i].length, rows[i].priv, rows[i].va,
					   rows[i].opt), rows[i].want, what);
	}
	region.for_va = km_bytes(ma.km, 0) + 1;
	MA_BAD(&ma, 3, MA_KCREATE(0, 100, 1, DAT_VA_TYPE_ZB, 0));
	region.for_ia = ~0ULL - 6;
	MA_BAD(&ma, 4, MA_KCREATE(DAT_MEM_TYPE_IA, 8, 1, 0, 0));
	/* where no memory is */
	memset(&region, 0, sizeof(region));
	MA_BAD(&ma, 3, MA_KCREATE(DAT_MEM_TYPE_VIRTUAL, 1, 1, 0, 0));
	MA_BAD(&ma, 3, MA_KCREATE(MA_PHYS, 1, 1, 0, 0));
	MA_BAD(&ma, 3, MA_KCREATE(DAT_MEM_TYPE_PLATFORM, 1, 1, 0, 0));
	/* no source: no LMR; one for fmr */
	region.for_lmr_handle = ma.km->env.ep;
	MA_RET(&ma, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR,
	       MA_KCREATE(DAT_MEM_TYPE_LMR, 1, 1, 0, 0));
	region.for_lmr_handle = ma.lmr;
	MA_STATED(&ma, LMR_FREE, MA_KCREATE(DAT_MEM_TYPE_LMR, 1, 1, 0, 0));
#undef MA_KCREATE
}

static void ma_allocate_test(struct kunit *test)
{
	static const int wrong[] = { 0, -1, INT_MIN, 65, INT_MAX };
	static const int sizes[] = { 1, 64 };
	DAT_LMR_HANDLE lmr;
	DAT_LMR_PARAM param;
	struct ma ma;
	int i, scope;

#define MA_ALLOCATE(n, scope)								\
	dat_lmr_allocate(ma.km->env.ia, ma.km->env.pz, n, scope, &lmr)
	ma_open(test, &ma);
	for (i = 0; i < ARRAY_SIZE(wrong); i++)
		MA_BAD(&ma, 3, MA_ALLOCATE(wrong[i], DAT_LMR_SCOPE_PZ));
	MA_TYPE(&ma, DAT_INVALID_PARAMETER, MA_ALLOCATE(1, 3));
	MA_TYPE(&ma, DAT_INVALID_PARAMETER, MA_ALLOCATE(1, -1));
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		for (scope = DAT_LMR_SCOPE_EP; scope <= DAT_LMR_SCOPE_ANY; scope++) {
			lmr = km_lmr(ma.km, sizes[i], scope);
			km_param(ma.km, lmr, &param);
			KUNIT_EXPECT_TRUE(test, param.lmr_state.fmr_support);
			KUNIT_EXPECT_FALSE(test, param.lmr_state.bound);
			KUNIT_EXPECT_PTR_EQ(test, param.ia_handle, ma.km->env.ia);
			KUNIT_EXPECT_PTR_EQ(test, param.pz_handle, ma.km->env.pz);
			KUNIT_EXPECT_EQ(test, param.lmr_context, 0U);
			KUNIT_EXPECT_EQ(test, param.rmr_context, 0U);
		}
	}
#undef MA_ALLOCATE
}

/* dat_lmr_fmr(), one thing wrong at a time. */
static void ma_fmr_test(struct kunit *test)
{
	static const u32 types[] = {
		DAT_MEM_TYPE_VIRTUAL, DAT_MEM_TYPE_LMR, DAT_MEM_TYPE_PLATFORM, DAT_MEM_TYPE_IA,
		DAT_MEM_TYPE_BYPASS, MA_PHYS | MA_VAR, 0x200, 0x80000000, 0xffffffff,
	};
	static const u64 counts[] = { 0, MA_PAGES + 1, 64, 65, 1ULL << 32, 1ULL << 52, U64_MAX };
	static const u64 sizes[] = {
		0, 1, 512, PAGE_SIZE / 2, PAGE_SIZE + 1, PAGE_SIZE * 3, U64_MAX, 1ULL << 63,
	};
	static const u32 privs[] = { 0x04, 0x80, 0x100, 0x80000000, 0xffffffff };
	static const u64 wrong[] = { 1, PAGE_SIZE / 2, PAGE_SIZE - 1, 1ULL << 62 };
	DAT_LMR_COOKIE cookie = { .as_64 = 1 };
	DAT_REGION_DESCRIPTION region;
	DAT_PADDR pages[MA_PAGES];
	struct km_keys keys;
	struct ma ma;
	int i, at;

#define MA_FMR(type, n, priv, va)							\
	dat_lmr_fmr(ma.lmr, type, region, n, priv, va, ma.km->env.ep, cookie, 0, &keys.lmr, \
		    &keys.rmr)
	ma_open(test, &ma);
	region.for_physical = ma.km->pa;
	for (i = 0; i < ARRAY_SIZE(types); i++)
		MA_BAD(&ma, 2, MA_FMR(types[i], 1, KM_LOCAL, 0));
	for (i = 0; i < ARRAY_SIZE(counts); i++)
		MA_BAD(&ma, 4, MA_FMR(MA_PHYS, counts[i], KM_LOCAL, 0));
	for (i = 0; i < ARRAY_SIZE(privs); i++)
		MA_BAD(&ma, 5, MA_FMR(MA_PHYS, 1, privs[i], 0));
	MA_BAD(&ma, 6, MA_FMR(MA_PHYS, 1, KM_LOCAL, 2));
	MA_BAD(&ma, 6, MA_FMR(MA_PHYS, 1, KM_LOCAL, 0xffffffff));
	for (i = 0; i <= ARRAY_SIZE(wrong); i++) {
		for (at = 0; at < MA_PAGES; at++) {
			memcpy(pages, ma.km->pa, sizeof(pages));
			pages[at] = i < ARRAY_SIZE(wrong) ? pages[at] | wrong[i] :
							    ~0ULL << PAGE_SHIFT;
			region.for_physical = pages;
			MA_BAD(&ma, 3, MA_FMR(MA_PHYS, MA_PAGES, KM_LOCAL, 0));
		}
	}
	region.for_physical = NULL;
	MA_BAD(&ma, 3, MA_FMR(MA_PHYS, 1, KM_LOCAL, 0));
	region.for_array = (DAT_PHYSICAL_VAR_PAGES) { .page_size = PAGE_SIZE, .pages = NULL };
	MA_BAD(&ma, 3, MA_FMR(MA_VAR, 1, KM_LOCAL, 0));
	region.for_array.pages = ma.km->pa;
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		region.for_array.page_size = sizes[i];
		MA_BAD(&ma, 3, MA_FMR(MA_VAR, 1, KM_LOCAL, 0));
	}
#undef MA_FMR
}

/* kdat_lmr_fmr_sg(), one thing wrong at a time; the list is the consumer's. */
static void ma_fmr_sg_test(struct kunit *test)
{
	struct scatterlist sgl[3];
	const struct kdat_sg rows[] = {
		{ NULL, 3, 0, PAGE_SIZE }, { sgl, 0, 0, PAGE_SIZE }, { sgl, -1, 0, PAGE_SIZE },
		{ sgl, 3, 0, 0 }, { sgl, 3, 0, 3 * PAGE_SIZE + 1 }, { sgl, 3, 0, U64_MAX },
		{ sgl, 3, 3 * PAGE_SIZE, PAGE_SIZE }, { sgl, 3, U64_MAX, PAGE_SIZE },
		{ sgl, 3, 2 * PAGE_SIZE + 1, PAGE_SIZE },
		{ sgl, 3, 0, 3 * PAGE_SIZE },	/* more than the LMR takes */
	}, good = { sgl, 3, 0, 2 * PAGE_SIZE };
	DAT_LMR_COOKIE cookie = { .as_64 = 0x56 };
	DAT_LMR_HANDLE two;
	struct km_keys keys;
	DAT_VADDR addr;
	struct ma ma;
	int i;

#define MA_SG(sg, priv, va, flags)							\
	kdat_lmr_fmr_sg(two, sg, priv, va, ma.km->env.ep, cookie, flags, &keys.lmr, &keys.rmr, \
			&addr)
	ma_open(test, &ma);
	two = km_lmr(ma.km, 2, DAT_LMR_SCOPE_PZ);
	ma.live.mrs++;
	sg_init_table(sgl, 3);
	for (i = 0; i < 3; i++)
		sg_set_page(&sgl[i], ma.km->page[i], PAGE_SIZE, 0);
	for (i = 0; i < ARRAY_SIZE(rows); i++)
		MA_BAD(&ma, 2, MA_SG(&rows[i], KM_REMOTE, 0, 0));
	MA_BAD(&ma, 2, MA_SG(NULL, KM_REMOTE, 0, 0));
	MA_BAD(&ma, 3, MA_SG(&good, 0x100, 0, 0));
	MA_BAD(&ma, 4, MA_SG(&good, KM_REMOTE, 2, 0));
	MA_BAD(&ma, 7, MA_SG(&good, KM_REMOTE, 0, DAT_COMPLETION_SOLICITED_WAIT_FLAG));
	KD_EXPECT_OK(test, MA_SG(&good, KM_REMOTE, 0, 0));
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_PTR_EQ(test, sg_page(&sgl[i]), ma.km->page[i]);
		KUNIT_EXPECT_EQ(test, sgl[i].length, (u32)PAGE_SIZE);
		KUNIT_EXPECT_EQ(test, sg_dma_address(&sgl[i]), (dma_addr_t)0);
	}
	km_finish(ma.km, DAT_DTO_LMR_FMR, 0x56);
#undef MA_SG
}

/* A window on the first bytes of some memory. */
static DAT_RETURN ma_bind(struct km *km, DAT_RMR_HANDLE rmr, const struct kd_mem *mem)
{
	DAT_RMR_CONTEXT key;

	return km_try_rmr(km, rmr, mem->lmr, mem->addr, 8, mem->lmr_context, MA_R, 0, 1, &key);
}

/* LMRs that are not for this: of dat_lmr_kcreate(), of another PZ, unbound, reserved. */
static void ma_kinds_test(struct kunit *test)
{
	DAT_LMR_HANDLE far, reserved;
	DAT_RMR_HANDLE apart;
	DAT_LMR_CONTEXT all;
	struct kd_mem *other;
	DAT_RMR_CONTEXT key;
	struct km_keys keys;
	struct ma ma;
	struct km *km;

	ma_open(test, &ma);
	km = ma.km;
	other = &km->env.mem[KD_FOREIGN];
	KD_ASSERT_OK(test, dat_lmr_allocate(km->env.ia, km->env.pz2, 1, DAT_LMR_SCOPE_PZ, &far));
	km_keep_lmr(km, far);
	KD_ASSERT_OK(test, dat_rmr_create(km->env.pz2, &apart));
	fake_ib_live(km->env.dev, &ma.live);
	KD_ASSERT_OK(test, dat_ia_reserved_lmr(km->env.ia, &reserved, &all));
	MA_STATED(&ma, LMR_IN_USE, km_try_fmr(km, ma.mem->lmr, 0, 1, KM_LOCAL, 0, 1, &keys));
	MA_TYPE(&ma, DAT_INVALID_STATE, km_try_inv(km, ma.mem->lmr, 0, 1));
	MA_TYPE(&ma, DAT_INVALID_STATE, kdat_lmr_next_contexts(ma.mem->lmr, &key, NULL));
	MA_STATED(&ma, LMR_FREE, km_try_inv(km, ma.lmr, 0, 1));
	MA_TYPE(&ma, DAT_PROTECTION_VIOLATION, km_try_fmr(km, far, 0, 1, KM_LOCAL, 0, 1, &keys));
	KUNIT_EXPECT_FALSE(test, km_bound(km, far));
	MA_TYPE(&ma, DAT_INVALID_PARAMETER,
		km_try_rmr(km, ma.rmr, ma.lmr, km->pa[0], 8, 0, MA_R, 0, 1, &key));
	MA_TYPE(&ma, DAT_PROTECTION_VIOLATION, ma_bind(km, ma.rmr, other));
	MA_TYPE(&ma, DAT_PROTECTION_VIOLATION, ma_bind(km, apart, other));
	MA_TYPE(&ma, DAT_PROTECTION_VIOLATION, ma_bind(km, apart, ma.mem));
	MA_RESERVED(&ma, dat_lmr_free(reserved));
	MA_RESERVED(&ma, km_try_fmr(km, reserved, 0, 1, KM_LOCAL, 0, 1, &keys));
	MA_RESERVED(&ma, km_try_inv(km, reserved, 0, 1));
	MA_RESERVED(&ma, kdat_lmr_next_contexts(reserved, &key, NULL));
	MA_RESERVED(&ma, km_try_rmr(km, ma.rmr, reserved, ma.mem->addr, 8, all, MA_R, 0, 1, &key));
	/* the keys of the first still work */
	KUNIT_EXPECT_TRUE(test, km_bound(km, ma.mem->lmr));
	KD_EXPECT_OK(test, km_send(km, ma.mem->lmr_context, ma.mem->addr, 8, 3));
	KD_EXPECT_OK(test, dat_rmr_free(apart));
}

/* dat_rmr_bind(), one thing wrong at a time. */
static void ma_bind_test(struct kunit *test)
{
	DAT_RMR_COOKIE cookie = {};
	DAT_LMR_TRIPLET part;
	DAT_RMR_CONTEXT key;
	struct ma ma;
	u32 k, ro;
	u64 a;

#define MA_BIND(addr, length, key0, priv)						\
	km_try_rmr(ma.km, ma.rmr, ma.mem->lmr, addr, length, key0, priv, 0, 1, &key)
#define MA_WINDOW(part, priv, va)							\
	dat_rmr_bind(ma.rmr, ma.mem->lmr, part, priv, va, ma.km->env.ep, cookie, 0, &key)
	ma_open(test, &ma);
	a = ma.mem->addr;
	k = ma.mem->lmr_context;
	ro = ma.km->env.mem[KD_RO].lmr_context;
	part = kd_seg(&ma.km->env, KD_RW, 1, 8);
	MA_BAD(&ma, 3, MA_BIND(a, KD_MEM_SIZE + 1, k, KM_REMOTE));
	MA_BAD(&ma, 3, MA_BIND(a + 1, KD_MEM_SIZE, k, MA_R));
	MA_BAD(&ma, 3, MA_BIND(a - 1, 1, k, KM_REMOTE));
	MA_BAD(&ma, 3, MA_BIND(a + KD_MEM_SIZE, 1, k, MA_R));
	MA_BAD(&ma, 3, MA_BIND(a + 1, U32_MAX, k, MA_R));
	MA_BAD(&ma, 3, MA_BIND(~0ULL, 2, k, MA_R));
	MA_BAD(&ma, 3, MA_BIND(0, 1, k, MA_R));
	MA_BAD(&ma, 3, MA_BIND(a, 8, k ^ 1, MA_R));
	MA_BAD(&ma, 3, MA_BIND(a, 8, 0, MA_R));
	MA_BAD(&ma, 3, MA_BIND(a, 8, ro, MA_R));
	MA_BAD(&ma, 4, MA_BIND(a, 8, k, 0x100));
	MA_BAD(&ma, 4, MA_BIND(a, 8, k, -1));
	MA_BAD(&ma, 3, MA_WINDOW(NULL, KM_REMOTE, 0));
	MA_BAD(&ma, 5, MA_WINDOW(&part, KM_REMOTE, 2));
	MA_BAD(&ma, 3, MA_WINDOW(&part, KM_REMOTE, DAT_VA_TYPE_ZB));
#undef MA_WINDOW
#undef MA_BIND
	/* nothing of that holds the LMR */
	KD_EXPECT_OK(test, dat_lmr_free(ma.mem->lmr));
	ma.mem->lmr = DAT_HANDLE_NULL;
}

/* dat_ep_post_send_with_invalidate(): as dat_ep_post_send(). */
static void ma_send_test(struct kunit *test)
{
	DAT_DTO_COOKIE cookie = { .as_64 = 7 };
	DAT_LMR_TRIPLET iov[5], wo, far, out;
	struct ma ma;
	int i;

#define MA_SEND(n, iov, flags)								\
	dat_ep_post_send_with_invalidate(ma.km->env.ep, n, iov, cookie, flags, DAT_TRUE, 1)
	ma_open(test, &ma);
	for (i = 0; i < 5; i++)
		iov[i] = kd_seg(&ma.km->env, KD_RW, 8 * i, 8);
	wo = kd_seg(&ma.km->env, KD_WO, 0, 8);
	far = kd_seg(&ma.km->env, KD_FOREIGN, 0, 8);
	out = kd_seg(&ma.km->env, KD_RW, KD_MEM_SIZE, 1);
	MA_BAD(&ma, 2, MA_SEND(-1, iov, 0));
	MA_BAD(&ma, 2, MA_SEND(5, iov, 0));
	MA_BAD(&ma, 3, MA_SEND(1, NULL, 0));
	MA_BAD(&ma, 3, MA_SEND(1, &out, 0));
	MA_BAD(&ma, 5, MA_SEND(1, iov, DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG));
	MA_BAD(&ma, 5, MA_SEND(1, iov, DAT_COMPLETION_UNSIGNALLED_FLAG));
	MA_RET(&ma, DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_READ, MA_SEND(1, &wo, 0));
	MA_TYPE(&ma, DAT_PROTECTION_VIOLATION, MA_SEND(1, &far, 0));
	km_down(ma.km);
	KD_EXPECT_OK(test, MA_SEND(1, iov, 0));
	km_expect(ma.km, DAT_DTO_SEND, 7, DAT_DTO_ERR_FLUSHED);
#undef MA_SEND
}

static DAT_RETURN ma_sink(struct km *km, DAT_RMR_TRIPLET sink, const DAT_RMR_TRIPLET *source)
{
	DAT_DTO_COOKIE cookie = { .as_64 = 4 };

	return dat_ep_post_rdma_read_to_rmr(km->env.ep, &sink, cookie, source, 0);
}

/* dat_ep_post_rdma_read_to_rmr(): sinks that are none. */
static void ma_read_test(struct kunit *test)
{
	DAT_DTO_COOKIE cookie = { .as_64 = 4 };
	DAT_RMR_TRIPLET sink, source = kd_remote(0x77, 9, 0x99);
	struct kd_mem *mem, *far, *local;
	DAT_RMR_CONTEXT key, ro, mine;
	struct fake_ib_wr wr;
	struct km *km;
	struct ma ma;

#define MA_READ(sink, source, flags)	\
	dat_ep_post_rdma_read_to_rmr(km->env.ep, sink, cookie, source, flags)
#define MA_SINK(addr, length, key)	ma_sink(km, kd_remote(addr, length, key), &source)
	ma_open(test, &ma);
	km = ma.km;
	mem = ma.mem;
	far = &km->env.mem[KD_FOREIGN];
	local = &km->env.mem[KD_RO];
	KD_EXPECT_OK(test, km_try_part(km, ma.rmr, 64, 100, 0, 1, &key));
	KD_EXPECT_OK(test, km_try_rmr(km, km_rmr(km, false), mem->lmr, mem->addr, 100,
				      mem->lmr_context, MA_R, 0, 2, &ro));
	KD_EXPECT_OK(test, km_try_part(km, km_rmr(km, true), 0, 100, 0, 3, &mine));
	km_settle(km);
	km_trace(km, &ma.before);
	fake_ib_live(km->env.dev, &ma.live);
	MA_BAD(&ma, 2, MA_SINK(mem->addr + 63, 9, key));
	MA_BAD(&ma, 2, MA_SINK(mem->addr + 64, 101, key));
	MA_TYPE(&ma, DAT_PRIVILEGES_VIOLATION, MA_SINK(mem->addr, 9, key ^ 1));
	MA_TYPE(&ma, DAT_PRIVILEGES_VIOLATION, MA_SINK(mem->addr, 9, 0));
	MA_TYPE(&ma, DAT_PRIVILEGES_VIOLATION, MA_SINK(mem->addr, 9, ro));
	MA_TYPE(&ma, DAT_PRIVILEGES_VIOLATION, MA_SINK(local->addr, 9, local->lmr_context));
	MA_TYPE(&ma, DAT_PROTECTION_VIOLATION, MA_SINK(far->addr, 9, far->rmr_context));
	MA_TYPE(&ma, DAT_LENGTH_ERROR, MA_SINK(mem->addr + 70, 8, key));
	sink = kd_remote(mem->addr + 64, 9, key);
	MA_BAD(&ma, 2, MA_READ(NULL, &source, 0));
	MA_BAD(&ma, 4, MA_READ(&sink, NULL, 0));
	MA_BAD(&ma, 5, MA_READ(&sink, &source, DAT_COMPLETION_SOLICITED_WAIT_FLAG));
	/* of no bytes there is nothing to check */
	source.segment_length = 0;
	KD_EXPECT_OK(test, MA_SINK(0, 0, 0xbad));
	/* that of an RMR for one EP is that EP's; as long as what it takes */
	source.segment_length = 5;
	km_join(km, 1, NULL);
	KD_EXPECT_OK(test, MA_READ(&sink, &source, 0));
	km_last(km, &wr);
	KUNIT_EXPECT_EQ(test, wr.num_sge, 1);
	KUNIT_EXPECT_EQ(test, wr.sge[0].lkey, key);
	KUNIT_EXPECT_EQ(test, wr.length, 5ULL);
	KUNIT_EXPECT_EQ(test, wr.rkey, 0x99U);
	KM_EXPECT_TYPE(test, MA_SINK(mem->addr, 9, mine), DAT_PROTECTION_VIOLATION);
#undef MA_SINK
#undef MA_READ
}

enum ma_kind { MA_RMR, MA_RMR_FOR_EP, MA_LMR, MA_KINDS };

static DAT_RETURN ma_make(struct km *km, enum ma_kind kind, DAT_HANDLE *h)
{
	if (kind == MA_LMR)
		return dat_lmr_allocate(km->env.ia, km->env.pz, 4, DAT_LMR_SCOPE_PZ, h);
	return kind == MA_RMR ? dat_rmr_create(km->env.pz, h) :
				dat_rmr_create_for_ep(km->env.pz, h);
}

/* What cannot be made leaves nothing behind; what is made holds its PZ. */
static void ma_fails_test(struct kunit *test)
{
	static const enum fake_ib_verb verbs[] = { FAKE_IB_ALLOC_MR, FAKE_IB_MAP_MR_SG };
	/* one whose regions are mapped once when they are made (D-24) */
	static const struct fake_ib_caps caps = { .driver = RDMA_DRIVER_RXE };
	struct km *km = km_open(test, &caps);
	struct fake_ib_live before, after;
	DAT_RMR_PARAM param;
	DAT_HANDLE h;
	int i, nth, kind;

	for (kind = 0; kind < KD_NR_MEMS; kind++) {
		KD_EXPECT_OK(test, dat_lmr_free(km->env.mem[kind].lmr));
		km->env.mem[kind].lmr = DAT_HANDLE_NULL;
	}
	fake_ib_live(km->env.dev, &before);
	for (kind = 0; kind < MA_KINDS; kind++) {
		for (i = 0; i < ARRAY_SIZE(verbs); i++) {
			/* an RMR has two regions */
			for (nth = 1; nth <= (kind == MA_LMR ? 1 : 2); nth++) {
				fake_ib_fail(km->env.dev, verbs[i], nth, -ENOMEM);
				KM_EXPECT_TYPE(test, ma_make(km, kind, &h),
					       DAT_INSUFFICIENT_RESOURCES);
				KUNIT_EXPECT_EQ(test, fake_ib_failing(km->env.dev, verbs[i]), 0U);
			}
		}
		fake_ib_live(km->env.dev, &after);
		KUNIT_EXPECT_EQ(test, before.mrs, after.mrs);
		KD_ASSERT_OK(test, ma_make(km, kind, &h));
		KD_BAD_STATE(test, dat_pz_free(km->env.pz), PZ_IN_USE);
		if (kind == MA_LMR) {
			KD_EXPECT_OK(test, dat_lmr_free(h));
			continue;
		}
		KD_EXPECT_OK(test, dat_rmr_query(h, DAT_RMR_FIELD_ALL, &param));
		KUNIT_EXPECT_PTR_EQ(test, param.ia_handle, km->env.ia);
		KUNIT_EXPECT_PTR_EQ(test, param.pz_handle, km->env.pz);
		KUNIT_EXPECT_EQ(test, (int)param.rmr_scope,
				(int)(kind == MA_RMR ? DAT_RMR_SCOPE_PZ : DAT_RMR_SCOPE_EP));
		KD_EXPECT_OK(test, dat_rmr_free(h));
	}
}

static struct kunit_case mem_args_cases[] = {
	KD_CASE(ma_answers_test,
		"GEN-08,GEN-09,LMR-07,LMR-08,LMR-HINT-01,RMR-15: places for answers, masks"),
	KD_CASE(ma_kcreate_test, "LMR-05,LMR-06,LMR-08,LMR-20: dat_lmr_kcreate"),
	KD_CASE(ma_allocate_test, "FMR-01,LMR-21: dat_lmr_allocate"),
	KD_CASE(ma_fmr_test, "FMR-06: dat_lmr_fmr"),
	KD_CASE(ma_fmr_sg_test, "FMR-06,FMR-08: kdat_lmr_fmr_sg; its list is not changed"),
	KD_CASE(ma_kinds_test,
		"FMR-06,FMR-07,FMR-12,RMR-09,LMR-FREE-05,LMR-RES-02: LMRs not for this"),
	KD_CASE(ma_bind_test, "RMR-09,RMR-12,RMR-16: dat_rmr_bind"),
	KD_CASE(ma_send_test, "SINV-01,SINV-05: dat_ep_post_send_with_invalidate"),
	KD_CASE(ma_read_test, "RTOR-01,RTOR-02: dat_ep_post_rdma_read_to_rmr"),
	KD_CASE(ma_fails_test,
		"FMR-01,RMR-01,PZ-02,GEN-07: what fails leaves nothing, the rest keeps its PZ"),
	{}
};

KD_SUITE("kdapl-mem-args", mem_args_cases, km_init, km_exit);
