// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * dat_lmr_kcreate(): by which rights the keys reach which bytes, LMRs over LMRs, page sizes,
 * devices that fail. What becomes of a description on its way to a list is the matter of
 * mem_list_test.c; every kind of memory over a real provider that of tests/scenario.
 */
#include <linux/limits.h>
#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/vmalloc.h>

#include "kd_mem.h"

#define MK_ALL		DAT_MEM_PRIV_ALL_FLAG

/**
 * struct mk - an LMR and what was said of it
 * @lmr: handle
 * @key: lmr_context
 * @rkey: rmr_context
 * @length: registered length
 * @addr: registered address
 */
struct mk {
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT key;
	DAT_RMR_CONTEXT rkey;
	DAT_VLEN length;
	DAT_VADDR addr;
};

static DAT_RETURN mk_try(struct km *km, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region,
			 u64 length, DAT_PZ_HANDLE pz, int priv, int va_type, int opt,
			 struct mk *mk)
{
	memset(mk, 0xee, sizeof(*mk));
	return dat_lmr_kcreate(km->env.ia, type, region, length, pz, priv, va_type, opt, &mk->lmr,
			       &mk->key, &mk->rkey, &mk->length, &mk->addr);
}

static void mk_make(struct km *km, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region, u64 length,
		    int va_type, struct mk *mk)
{
	KD_ASSERT_OK(km->env.test, mk_try(km, type, region, length, km->env.pz, MK_ALL, va_type,
					  DAT_MEM_OPTIMIZE_EXACT_EXPOSURE, mk));
	km_keep_lmr(km, mk->lmr);
}

/* A peer reaches exactly @length bytes from @addr on, the first of which is @byte. */
static void mk_check(struct km *km, const struct mk *mk, u64 addr, u64 length, const u8 *first)
{
	static const int access[] = { IB_ACCESS_REMOTE_READ, IB_ACCESS_REMOTE_WRITE };
	struct kunit *test = km->env.test;
	DAT_LMR_PARAM param;
	u8 byte = 0;
	int i;

	KUNIT_EXPECT_EQ(test, mk->addr, addr);
	KUNIT_EXPECT_EQ(test, mk->length, length);
	km_param(km, mk->lmr, &param);
	KUNIT_EXPECT_EQ(test, param.registered_address, addr);
	KUNIT_EXPECT_EQ(test, param.registered_size, length);
	KUNIT_EXPECT_EQ(test, param.lmr_context, mk->key);
	KUNIT_EXPECT_EQ(test, param.rmr_context, mk->rkey);
	KUNIT_EXPECT_TRUE(test, param.lmr_state.bound);
	KUNIT_EXPECT_FALSE(test, param.lmr_state.fmr_support);
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ(test, fake_ib_access(km->env.dev, mk->rkey, addr + length - 1,
						     &byte, 1, access[i]), 0);
		KUNIT_EXPECT_EQ(test, fake_ib_access(km->env.dev, mk->rkey, addr + length, &byte,
						     1, access[i]), -EACCES);
		KUNIT_EXPECT_EQ(test, fake_ib_access(km->env.dev, mk->rkey, addr - 1, &byte, 1,
						     access[i]), -EACCES);
	}
	KUNIT_EXPECT_EQ(test, fake_ib_access(km->env.dev, mk->rkey, addr, &byte, 1,
					     IB_ACCESS_REMOTE_READ), 0);
	KUNIT_EXPECT_EQ(test, byte, *first);
	if (length <= 1 << 20)
		KD_EXPECT_OK(test, km_send(km, mk->key, addr, length, 1));
	KM_EXPECT_TYPE(test, km_send(km, mk->key, addr + length - 1, 2, 1), DAT_INVALID_PARAMETER);
	KM_EXPECT_TYPE(test, km_send(km, mk->key, addr - 1, 1, 1), DAT_INVALID_PARAMETER);
	fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS);
	km_drain(km->env.req);
}

/* Byte @pos is @want. */
static void mk_byte(struct km *km, const struct mk *mk, u64 pos, u8 want)
{
	u8 byte = ~want;

	KUNIT_EXPECT_EQ(km->env.test, fake_ib_access(km->env.dev, mk->rkey, mk->addr + pos, &byte,
						     1, IB_ACCESS_REMOTE_READ), 0);
	KUNIT_EXPECT_EQ(km->env.test, byte, want);
}

static void mk_var_pages_test(struct kunit *test)
{
	struct fake_ib_caps caps = { .page_sizes = PAGE_SIZE | 4 * PAGE_SIZE };
	struct km *km = km_open(test, &caps);
	struct page *big = alloc_pages(GFP_KERNEL, 2);
	struct fake_ib_live before, after;
	/* of a size that the device does not have, in the middle of a page, neither */
	const struct { u64 size, offset; bool ok; } rows[] = {
		{ 2 * PAGE_SIZE, 0, false }, { 4 * PAGE_SIZE, PAGE_SIZE, false },
		{ 4 * PAGE_SIZE, 0, true },
	};
	DAT_REGION_DESCRIPTION region;
	DAT_PADDR page;
	struct mk mk;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, big);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		page = page_to_phys(big) + rows[i].offset;
		region.for_array = (DAT_PHYSICAL_VAR_PAGES) {
			.page_size = rows[i].size, .pages = &page,
		};
		fake_ib_live(km->env.dev, &before);
		KUNIT_EXPECT_EQ_MSG(test, (u32)mk_try(km, DAT_MEM_TYPE_PHYSICAL_VAR_PAGES, region,
						      1, km->env.pz, MK_ALL, 0, 0, &mk),
				    rows[i].ok ? 0 : (u32)DAT_ERROR(DAT_INVALID_PARAMETER,
								    DAT_INVALID_ARG3),
				    "row %d", i);
		fake_ib_live(km->env.dev, &after);
		KUNIT_EXPECT_EQ(test, after.mrs, before.mrs + rows[i].ok);
	}
	KD_EXPECT_OK(test, dat_lmr_free(mk.lmr));
	__free_pages(big, 2);
}

static void mk_lmr_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_PADDR pages[3] = { km->pa[0], km->pa[1], km->pa[2] };
	DAT_REGION_DESCRIPTION region = { .for_physical = pages };
	DAT_LMR_HANDLE fmr, reserved;
	DAT_LMR_CONTEXT context;
	struct km_keys keys;
	struct mk a, b, c;

	km_fill(km, 6);
	KD_ASSERT_OK(test, mk_try(km, DAT_MEM_TYPE_PHYSICAL, region, 3, km->env.pz2,
				  DAT_MEM_PRIV_NONE_FLAG, DAT_VA_TYPE_VA, 0, &a));
	memset(pages, 0xee, sizeof(pages));	/* read once */
	km_keep_lmr(km, a.lmr);
	KUNIT_EXPECT_EQ(test, a.rkey, 0U);
	/* a source without any right, in another PZ; the length is not looked at */
	region.for_lmr_handle = a.lmr;
	mk_make(km, DAT_MEM_TYPE_LMR, region, 0, DAT_VA_TYPE_VA, &b);
	mk_check(km, &b, km->pa[0], 3 * PAGE_SIZE, km_bytes(km, 0));
	mk_byte(km, &b, 2 * PAGE_SIZE + 3, km_byte(6, 2, 3));
	KUNIT_EXPECT_NE(test, a.key >> 8, b.key >> 8);
	/* of a copy, zero based; then the sources go */
	region.for_lmr_handle = b.lmr;
	mk_make(km, DAT_MEM_TYPE_LMR, region, 77, DAT_VA_TYPE_ZB, &c);
	km_drop_lmr(km, a.lmr);
	km_drop_lmr(km, b.lmr);
	KUNIT_EXPECT_EQ(test, c.addr, 0ULL);
	KUNIT_EXPECT_EQ(test, c.length, 3ULL * PAGE_SIZE);
	mk_byte(km, &c, PAGE_SIZE + 9, km_byte(6, 1, 9));
	/* what cannot be a source: memory of an fmr, and all there is */
	fmr = km_lmr(km, 1, DAT_LMR_SCOPE_PZ);
	region.for_lmr_handle = fmr;
	km_bind(km, fmr, 0, 1, MK_ALL, &keys);
	KD_EXPECT_RET(test, mk_try(km, DAT_MEM_TYPE_LMR, region, 1, km->env.pz, MK_ALL,
				   DAT_VA_TYPE_VA, 0, &a), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_LMR_FREE);
	KD_EXPECT_OK(test, dat_ia_reserved_lmr(km->env.ia, &reserved, &context));
	region.for_lmr_handle = reserved;
	KM_EXPECT_TYPE(test, mk_try(km, DAT_MEM_TYPE_LMR, region, 1, km->env.pz, MK_ALL,
				    DAT_VA_TYPE_VA, 0, &a), DAT_RESERVED_LMR);
}

/* Every set of rights: these and no other; whatever exposure is wished for, to the byte. */
static void mk_rights_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_REGION_DESCRIPTION region = { .for_va = km_bytes(km, 1) + 77 };
	DAT_LMR_TRIPLET iov;
	int priv, remote, opt = 0;
	DAT_LMR_PARAM param;
	struct mk mk;
	u8 byte;

	for (priv = 0; priv <= MK_ALL; priv++) {
		if (priv & ~MK_ALL)
			continue;
		KD_ASSERT_OK(test, mk_try(km, 0, region, 64, km->env.pz, priv, 0, opt++ % 8, &mk));
		km_keep_lmr(km, mk.lmr);
		remote = priv & KM_REMOTE;
		KUNIT_EXPECT_NE(test, mk.key, 0U);
		KUNIT_EXPECT_EQ(test, mk.addr, (u64)(uintptr_t)region.for_va);
		KUNIT_EXPECT_EQ(test, mk.length, 64ULL);
		km_param(km, mk.lmr, &param);
		KUNIT_EXPECT_PTR_EQ(test, param.ia_handle, km->env.ia);
		KUNIT_EXPECT_PTR_EQ(test, param.pz_handle, km->env.pz);
		KUNIT_EXPECT_EQ(test, (int)param.mem_type, (int)DAT_MEM_TYPE_VIRTUAL);
		KUNIT_EXPECT_PTR_EQ(test, param.region_desc.for_va, region.for_va);
		KUNIT_EXPECT_EQ(test, param.length, 64ULL);
		KUNIT_EXPECT_EQ(test, (int)param.mem_priv, priv);
		KUNIT_EXPECT_EQ(test, (int)param.va_type, (int)DAT_VA_TYPE_VA);
		KUNIT_EXPECT_EQ(test, mk.rkey, remote ? mk.key : 0);
		KUNIT_EXPECT_EQ(test, fake_ib_access(km->env.dev, mk.key, mk.addr, &byte, 1,
						     IB_ACCESS_REMOTE_READ),
				priv & DAT_MEM_PRIV_REMOTE_READ_FLAG ? 0 : -EACCES);
		KUNIT_EXPECT_EQ(test, fake_ib_access(km->env.dev, mk.key, mk.addr + 64, &byte, 1,
						     IB_ACCESS_REMOTE_READ), -EACCES);
		KUNIT_EXPECT_EQ(test, fake_ib_access(km->env.dev, mk.key, mk.addr - 1, &byte, 1,
						     IB_ACCESS_REMOTE_READ), -EACCES);
		KUNIT_EXPECT_EQ(test, fake_ib_access(km->env.dev, mk.key, mk.addr, &byte, 1,
						     IB_ACCESS_REMOTE_WRITE),
				priv & DAT_MEM_PRIV_REMOTE_WRITE_FLAG ? 0 : -EACCES);
		iov = (DAT_LMR_TRIPLET) { mk.addr, 8, mk.key };
		KUNIT_EXPECT_EQ(test, kd_post(km->env.ep, KD_SEND, 1, &iov, 0, NULL, 0) ==
				DAT_SUCCESS, !!(priv & DAT_MEM_PRIV_LOCAL_READ_FLAG));
		KUNIT_EXPECT_EQ(test, kd_post(km->env.ep, KD_RECV, 1, &iov, 0, NULL, 0) ==
				DAT_SUCCESS, !!(priv & DAT_MEM_PRIV_LOCAL_WRITE_FLAG));
		fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS);
		fake_ib_complete_all(km->env.qp, true, IB_WC_SUCCESS);
		km_drain(km->env.req);
		km_drain(km->env.recv);
		km_drop_lmr(km, mk.lmr);
	}
}

/* A gigabyte, on a device that takes 256 pages of 4 MB. */
static void mk_large_test(struct kunit *test)
{
	struct fake_ib_caps caps = { .page_sizes = SZ_4K | SZ_64K | SZ_4M, .max_pages = 256 };
	struct km *km = km_open(test, &caps);
	struct page *page = alloc_pages(GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN,
					get_order(SZ_4M));
	DAT_REGION_DESCRIPTION region;
	struct fake_ib_mr mr;
	DAT_PADDR *pages;
	struct mk mk;
	int i;

	if (!page) {
		kunit_skip(test, "no 4 MB in one piece");
		return;
	}
	km_ep(km, 0, NULL);
	kd_connect(&km->env);
	pages = kunit_kcalloc(test, 4096, sizeof(*pages), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, pages);
	for (i = 0; i < 4096; i++)
		pages[i] = page_to_phys(page);
	region.for_array = (DAT_PHYSICAL_VAR_PAGES) { .page_size = SZ_4M, .pages = pages };
	mk_make(km, DAT_MEM_TYPE_PHYSICAL_VAR_PAGES, region, 256, DAT_VA_TYPE_VA, &mk);
	((u8 *)page_address(page))[SZ_4M - 1] = 0x5a;
	mk_check(km, &mk, pages[0], SZ_1G, page_address(page));
	mk_byte(km, &mk, SZ_1G - 1, 0x5a);
	KUNIT_EXPECT_TRUE(test, fake_ib_mr(km->env.dev, mk.key, &mr));
	KUNIT_EXPECT_EQ(test, mr.map_page_size, (u32)SZ_4M);
	KUNIT_EXPECT_EQ(test, mr.map_npages, 256U);
	km_drop_lmr(km, mk.lmr);
	/* more than the device takes: the numbers are in the log */
	KD_EXPECT_RET(test, mk_try(km, DAT_MEM_TYPE_PHYSICAL_VAR_PAGES, region, 257, km->env.pz,
				   MK_ALL, 0, 0, &mk), DAT_INSUFFICIENT_RESOURCES,
		      DAT_RESOURCE_MEMORY_REGION);
	region.for_array.page_size = SZ_64K;
	mk_make(km, DAT_MEM_TYPE_PHYSICAL_VAR_PAGES, region, 256, DAT_VA_TYPE_VA, &mk);
	KUNIT_EXPECT_TRUE(test, fake_ib_mr(km->env.dev, mk.key, &mr));
	KUNIT_EXPECT_EQ(test, mr.map_page_size, (u32)SZ_64K);
	km_drop_lmr(km, mk.lmr);
	region.for_physical = pages;
	KD_EXPECT_RET(test, mk_try(km, DAT_MEM_TYPE_PHYSICAL, region, 257, km->env.pz, MK_ALL, 0, 0,
				   &mk), DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY_REGION);
	KM_EXPECT_TYPE(test, mk_try(km, DAT_MEM_TYPE_PHYSICAL, region, 4096, km->env.pz, MK_ALL, 0,
				    0, &mk), DAT_INSUFFICIENT_RESOURCES);
	/* small pages as long as they are enough: it is the smallest size that does */
	mk_make(km, DAT_MEM_TYPE_PHYSICAL, region, 256, DAT_VA_TYPE_VA, &mk);
	KUNIT_EXPECT_TRUE(test, fake_ib_mr(km->env.dev, mk.key, &mr));
	KUNIT_EXPECT_EQ(test, mr.map_page_size, (u32)SZ_4K);
	km_drop_lmr(km, mk.lmr);
	/* in one piece, from an odd byte on */
	region.for_va = page_address(page) + 5;
	mk_make(km, DAT_MEM_TYPE_VIRTUAL, region, SZ_4M - 10, DAT_VA_TYPE_VA, &mk);
	mk_check(km, &mk, (uintptr_t)region.for_va, SZ_4M - 10, region.for_va);
	km_drop_lmr(km, mk.lmr);
	__free_pages(page, get_order(SZ_4M));
}

/* The nth call of the device fails, whichever that is. */
static void mk_fails_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_REGION_DESCRIPTION region = { .for_va = km_bytes(km, 1) };
	struct fake_ib_live before, after;
	struct mk mk = {};
	DAT_RETURN ret;
	int nth;

	fake_ib_live(km->env.dev, &before);
	for (nth = 1; ; nth++) {
		fake_ib_fail(km->env.dev, FAKE_IB_ANY, nth, -ENOMEM);
		ret = mk_try(km, 0, region, 64, km->env.pz, MK_ALL, 0, 0, &mk);
		if (fake_ib_failing(km->env.dev, FAKE_IB_ANY))
			break;
		if (ret == DAT_SUCCESS) {
			/* the registration queue pair was built anew */
			KD_EXPECT_OK(test, dat_lmr_free(mk.lmr));
			continue;
		}
		KM_EXPECT_TYPE(test, ret, DAT_INSUFFICIENT_RESOURCES);
		fake_ib_live(km->env.dev, &after);
		KUNIT_EXPECT_EQ(test, after.mrs, before.mrs);
		KUNIT_ASSERT_LT(test, nth, 50);
	}
	fake_ib_fail(km->env.dev, FAKE_IB_ANY, 0, 0);
	KUNIT_EXPECT_GE(test, nth, 3);
	KD_EXPECT_OK(test, ret);
	if (ret == DAT_SUCCESS)
		KD_EXPECT_OK(test, dat_lmr_free(mk.lmr));
}

/* One memory, two PZs: each has keys of its own, and ends by itself. */
static void mk_free_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_REGION_DESCRIPTION region = { .for_va = km_bytes(km, 1) };
	struct mk a, b;
	u8 byte;

	KD_ASSERT_OK(test, mk_try(km, 0, region, 64, km->env.pz, MK_ALL, 0, 0, &a));
	KD_ASSERT_OK(test, mk_try(km, 0, region, 64, km->env.pz2, MK_ALL, 0, 0, &b));
	KUNIT_EXPECT_NE(test, a.key >> 8, b.key >> 8);
	KD_EXPECT_OK(test, km_send(km, a.key, a.addr, 8, 1));
	KM_EXPECT_TYPE(test, km_send(km, b.key, b.addr, 8, 1), DAT_PROTECTION_VIOLATION);
	/* what is posted already is nobody's business here */
	KD_EXPECT_OK(test, dat_lmr_free(a.lmr));
	KM_EXPECT_TYPE(test, km_send(km, a.key, a.addr, 8, 1), DAT_PRIVILEGES_VIOLATION);
	KUNIT_EXPECT_EQ(test, fake_ib_access(km->env.dev, a.rkey, a.addr, &byte, 1,
					     IB_ACCESS_REMOTE_READ), -EACCES);
	KUNIT_EXPECT_EQ(test, fake_ib_access(km->env.dev, b.rkey, b.addr, &byte, 1,
					     IB_ACCESS_REMOTE_READ), 0);
	KD_EXPECT_RET(test, dat_lmr_free(a.lmr), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	fake_ib_complete(km->env.qp, false, IB_WC_LOC_PROT_ERR);
	km_expect(km, DAT_DTO_SEND, 1, DAT_DTO_ERR_LOCAL_PROTECTION);
	KUNIT_EXPECT_EQ(test, kd_expect_end(&km->env), (u32)DAT_CONNECTION_EVENT_BROKEN);
	KD_EXPECT_OK(test, dat_lmr_free(b.lmr));
}

static void mk_attr_test(struct kunit *test)
{
	struct km *km = km_open(test, NULL);
	DAT_PROVIDER_ATTR provider;
	DAT_EVD_HANDLE async;
	DAT_IA_ATTR ia;

	KD_EXPECT_OK(test, dat_ia_query(km->env.ia, &async, DAT_IA_FIELD_ALL, &ia,
					DAT_PROVIDER_FIELD_ALL, &provider));
	KUNIT_EXPECT_EQ(test, (u32)provider.lmr_mem_types_supported,
			(u32)(DAT_MEM_TYPE_LMR | DAT_MEM_TYPE_PHYSICAL | DAT_MEM_TYPE_PLATFORM |
			      DAT_MEM_TYPE_IA | DAT_MEM_TYPE_PHYSICAL_VAR_PAGES));
	KUNIT_EXPECT_EQ(test, (int)provider.fmr_supported, DAT_TRUE);
	KUNIT_EXPECT_EQ(test, (int)provider.lmr_for_fmr_scope_supported, (int)DAT_LMR_SCOPE_ANY);
	KUNIT_EXPECT_EQ(test, (int)provider.rmr_scope_supported, (int)DAT_RMR_SCOPE_ANY);
	KUNIT_EXPECT_EQ(test, (int)ia.zb_supported, DAT_TRUE);
	KUNIT_EXPECT_GT(test, (int)ia.max_rmrs, 0);
	KUNIT_EXPECT_EQ(test, (u64)ia.max_lmr_block_size, 64ULL * PAGE_SIZE);
}

/* A device whose regions have two keys: refused, not misunderstood. */
static void mk_split_test(struct kunit *test)
{
	struct fake_ib_caps caps = { .split_keys = true };
	struct fake_ib *dev = fake_ib_create(&caps);
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_REGION_DESCRIPTION region;
	char name[DAT_NAME_MAX_LENGTH];
	struct fake_ib_live live;
	DAT_LMR_HANDLE lmr;
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	void *buf;

	KUNIT_ASSERT_FALSE(test, IS_ERR(dev));
	buf = kunit_kzalloc(test, 64, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, buf);
	region.for_va = buf;
	snprintf(name, sizeof(name), "%s-1", fake_ib_name(dev));
	KD_ASSERT_OK(test, dat_ia_open(name, 16, &async, &ia));
	KD_ASSERT_OK(test, dat_pz_create(ia, &pz));
	KM_EXPECT_TYPE(test, dat_lmr_kcreate(ia, 0, region, 64, pz, MK_ALL, 0, 0, &lmr, NULL, NULL,
					     NULL, NULL), DAT_INSUFFICIENT_RESOURCES);
	KM_EXPECT_TYPE(test, dat_lmr_allocate(ia, pz, 1, DAT_LMR_SCOPE_PZ, &lmr),
		       DAT_INSUFFICIENT_RESOURCES);
	KM_EXPECT_TYPE(test, dat_rmr_create(pz, &lmr), DAT_INSUFFICIENT_RESOURCES);
	fake_ib_live(dev, &live);
	KUNIT_EXPECT_EQ(test, live.mrs, 0);
	KD_EXPECT_OK(test, dat_pz_free(pz));
	KD_EXPECT_OK(test, dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
	KUNIT_EXPECT_EQ(test, fake_ib_violations(dev), 0);
	fake_ib_destroy(dev);
}

static struct kunit_case mem_kinds_cases[] = {
	KD_CASE(mk_var_pages_test, "LMR-08,LMR-20: pages of sizes the device does not have"),
	KD_CASE(mk_lmr_test, "LMR-06,LMR-09,LMR-10,LMR-20,SIL-31: who can be a source"),
	KD_CASE(mk_rights_test,
		"LMR-03,LMR-04,LMR-05,LMR-09,LMR-21: exactly the rights that were asked for"),
	KD_CASE(mk_large_test, "LMR-04,SIL-31: a gigabyte by larger pages, and what is too much"),
	KD_CASE(mk_fails_test, "LMR-08,GEN-07: any call of the device fails, nothing stays"),
	KD_CASE(mk_split_test, "LMR-08: a device with two keys for one region"),
	KD_CASE(mk_free_test,
		"LMR-10,LMR-11,LMR-FREE-02,LMR-FREE-03,LMR-FREE-04: freeing one of two"),
	KD_CASE(mk_attr_test, "LMR-20,LMR-06,FMR-01,RMR-01: what the attributes promise"),
	{}
};

static struct kunit_suite mem_kinds_suite = {
	.name = "kdapl-mem-kinds",
	.suite_init = kd_suite_init,
	.suite_exit = kd_suite_exit,
	.init = km_init,
	.exit = km_exit,
	.test_cases = mem_kinds_cases,
};

kunit_test_suite(mem_kinds_suite);
