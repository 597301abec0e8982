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

#include "kd_mem.h"

#define MK_ARG3		((u32)DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3))
#define MK_PAGES	8193		/* one more than the longest list of a driver */
#define MK_SCARCE	((u32)DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY_REGION))

static void mk_lmr_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_PADDR pages[3] = { km->pa[0], km->pa[1], km->pa[2] };
	DAT_REGION_DESCRIPTION region = { .for_physical = pages };
	struct km_reg a = { .pz = km->env.pz2 }, b = { .priv = KM_ALL };
	struct km_reg c = { .priv = KM_ALL, .va = DAT_VA_TYPE_ZB }, d = { .priv = KM_ALL };
	DAT_LMR_CONTEXT context;
	struct km_keys keys;
	u8 byte;

	km_fill(km, 6);
	KD_ASSERT_OK(test, km_try_reg(km, &a, DAT_MEM_TYPE_PHYSICAL, region, 3));
	memset(pages, 0xee, sizeof(pages));	/* read once */
	KUNIT_EXPECT_EQ(test, a.rkey, 0U);
	/* a source without any right, in another PZ; the length is not looked at */
	region.for_lmr_handle = a.lmr;
	KD_ASSERT_OK(test, km_try_reg(km, &b, DAT_MEM_TYPE_LMR, region, 0));
	KUNIT_EXPECT_EQ(test, b.addr, (u64)km->pa[0]);
	KUNIT_EXPECT_EQ(test, b.length, 3ULL * PAGE_SIZE);
	KUNIT_EXPECT_TRUE(test, km_writes(km, b.rkey, b.addr + b.length - 1));
	KUNIT_EXPECT_FALSE(test, km_writes(km, b.rkey, b.addr + b.length));
	KUNIT_EXPECT_FALSE(test, km_writes(km, b.rkey, b.addr - 1));
	KUNIT_EXPECT_NE(test, a.key >> 8, b.key >> 8);
	/* of a copy, zero based; then the sources go */
	region.for_lmr_handle = b.lmr;
	KD_ASSERT_OK(test, km_try_reg(km, &c, DAT_MEM_TYPE_LMR, region, 77));
	km_keep_lmr(km, c.lmr);
	KD_EXPECT_OK(test, dat_lmr_free(a.lmr));
	KD_EXPECT_OK(test, dat_lmr_free(b.lmr));
	KUNIT_EXPECT_EQ(test, c.addr, 0ULL);
	KUNIT_EXPECT_EQ(test, c.length, 3ULL * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, fake_ib_access(km->env.dev, c.rkey, PAGE_SIZE + 9, &byte, 1,
					     IB_ACCESS_REMOTE_READ), 0);
	KUNIT_EXPECT_EQ(test, byte, km_byte(6, 1, 9));
	/* what cannot be a source: memory of an fmr, and all there is */
	region.for_lmr_handle = km_lmr(km, 1, DAT_LMR_SCOPE_PZ);
	km_bind(km, region.for_lmr_handle, 0, 1, KM_ALL, &keys);
	KD_BAD_STATE(test, km_try_reg(km, &d, DAT_MEM_TYPE_LMR, region, 1), LMR_FREE);
	KD_EXPECT_OK(test, dat_ia_reserved_lmr(km->env.ia, &region.for_lmr_handle, &context));
	KM_EXPECT_TYPE(test, km_try_reg(km, &d, DAT_MEM_TYPE_LMR, region, 1), DAT_RESERVED_LMR);
}

/* Every set of rights: these and no other; whatever exposure is wished for, to the byte. */
static void mk_rights_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	void *va = km_bytes(km, 1) + 77;
	DAT_LMR_TRIPLET iov;
	DAT_LMR_PARAM param;
	struct km_reg mk;
	int priv, opt = 0;
	bool read;

	for (priv = 0; priv <= KM_ALL; priv++) {
		if (priv & ~KM_ALL)
			continue;
		mk = km_reg(km, va, 64, priv, DAT_VA_TYPE_VA, opt++ % 8);
		KUNIT_EXPECT_NE(test, mk.key, 0U);
		KUNIT_EXPECT_EQ(test, mk.rkey, priv & KM_REMOTE ? mk.key : 0);
		km_param(km, mk.lmr, &param);
		KUNIT_EXPECT_PTR_EQ(test, param.ia_handle, km->env.ia);
		KUNIT_EXPECT_PTR_EQ(test, param.pz_handle, km->env.pz);
		KUNIT_EXPECT_EQ(test, (int)param.mem_type, (int)DAT_MEM_TYPE_VIRTUAL);
		KUNIT_EXPECT_PTR_EQ(test, param.region_desc.for_va, va);
		KUNIT_EXPECT_EQ(test, param.length, 64ULL);
		KUNIT_EXPECT_EQ(test, (int)param.mem_priv, priv);
		KUNIT_EXPECT_EQ(test, (int)param.va_type, (int)DAT_VA_TYPE_VA);
		KUNIT_EXPECT_EQ(test, param.registered_address, mk.addr);
		KUNIT_EXPECT_EQ(test, param.registered_size, mk.length);
		KUNIT_EXPECT_EQ(test, param.lmr_context, mk.key);
		KUNIT_EXPECT_EQ(test, param.rmr_context, mk.rkey);
		KUNIT_EXPECT_TRUE(test, param.lmr_state.bound);
		KUNIT_EXPECT_FALSE(test, param.lmr_state.fmr_support);
		read = priv & DAT_MEM_PRIV_REMOTE_READ_FLAG;
		KUNIT_EXPECT_EQ(test, km_reads(km, mk.key, mk.addr), read);
		KUNIT_EXPECT_EQ(test, km_reads(km, mk.key, mk.addr + 63), read);
		KUNIT_EXPECT_FALSE(test, km_reads(km, mk.key, mk.addr + 64));
		KUNIT_EXPECT_FALSE(test, km_reads(km, mk.key, mk.addr - 1));
		KUNIT_EXPECT_EQ(test, km_writes(km, mk.key, mk.addr),
				!!(priv & DAT_MEM_PRIV_REMOTE_WRITE_FLAG));
		iov = (DAT_LMR_TRIPLET) { mk.addr, 8, mk.key };
		KUNIT_EXPECT_EQ(test, kd_post(km->env.ep, KD_SEND, 1, &iov, 0, NULL, 0) ==
				DAT_SUCCESS, !!(priv & DAT_MEM_PRIV_LOCAL_READ_FLAG));
		KUNIT_EXPECT_EQ(test, kd_post(km->env.ep, KD_RECV, 1, &iov, 0, NULL, 0) ==
				DAT_SUCCESS, !!(priv & DAT_MEM_PRIV_LOCAL_WRITE_FLAG));
		km_settle(km);
		fake_ib_complete_all(km->env.qp, true, IB_WC_SUCCESS);
		km_drain(km->env.recv);
		km_drop_lmr(km, mk.lmr);
	}
}

/* Arrays of the same page over and over, on a device that takes 256 pages of three sizes. */
static void mk_pages_test(struct kunit *test)
{
	static const struct { u64 size, n; u32 offset, ret, page; } rows[] = {
		{ SZ_4M, 256, 0, 0, SZ_4M }, { SZ_64K, 256, 0, 0, SZ_64K },
		/* small pages as long as they are enough: it is the smallest size that does */
		{ SZ_4K, 256, 0, 0, SZ_4K },
		/* of a size that the device does not have; in the middle of a page */
		{ 2 * SZ_4K, 1, 0, MK_ARG3 }, { SZ_64K, 1, SZ_4K, MK_ARG3 },
		/* more than the device takes */
		{ SZ_4M, 257, 0, MK_SCARCE }, { SZ_4K, 257, 0, MK_SCARCE },
		{ SZ_4K, 4096, 0, MK_SCARCE },
	};
	struct fake_ib_caps caps = { .page_sizes = SZ_4K | SZ_64K | SZ_4M, .max_pages = 256 };
	struct km *km = km_open(test, &caps);
	struct page *page = alloc_pages(GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN, get_order(SZ_4M));
	DAT_PADDR *pages = kunit_kcalloc(test, 4096, sizeof(*pages), GFP_KERNEL);
	DAT_REGION_DESCRIPTION region;
	struct km_reg mk = { .priv = KM_ALL };
	struct fake_ib_live before, after;
	struct fake_ib_mr mr;
	DAT_RETURN ret;
	int i, j;

	if (!page) {
		kunit_skip(test, "no 4 MB in one piece");
		return;
	}
	KUNIT_ASSERT_NOT_NULL(test, pages);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		for (j = 0; j < rows[i].n; j++)
			pages[j] = page_to_phys(page) + rows[i].offset;
		region.for_array = (DAT_PHYSICAL_VAR_PAGES) { rows[i].size, pages };
		fake_ib_live(km->env.dev, &before);
		ret = km_try_reg(km, &mk, DAT_MEM_TYPE_PHYSICAL_VAR_PAGES, region, rows[i].n);
		KUNIT_EXPECT_EQ_MSG(test, (u32)ret, rows[i].ret, "row %d", i);
		fake_ib_live(km->env.dev, &after);
		KUNIT_EXPECT_EQ_MSG(test, after.mrs - before.mrs, !rows[i].ret, "row %d", i);
		if (ret != DAT_SUCCESS)
			continue;
		KUNIT_EXPECT_EQ(test, mk.length, rows[i].size * rows[i].n);
		KUNIT_EXPECT_TRUE(test, fake_ib_mr(km->env.dev, mk.key, &mr));
		KUNIT_EXPECT_EQ_MSG(test, mr.map_page_size, rows[i].page, "row %d", i);
		KUNIT_EXPECT_TRUE(test, km_writes(km, mk.rkey, mk.addr + mk.length - 1));
		KUNIT_EXPECT_EQ(test, ((u8 *)page_address(page))[rows[i].size - 1], 1);
		KUNIT_EXPECT_FALSE(test, km_writes(km, mk.rkey, mk.addr + mk.length));
		KD_EXPECT_OK(test, dat_lmr_free(mk.lmr));
	}
	__free_pages(page, get_order(SZ_4M));
}

/* Does this device take the region, or is it refused as it should be? */
static void mk_driver_reg(struct km *km, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region, u64 n,
			  u32 expected)
{
	struct kunit *test = km->env.test;
	struct km_reg mk = { .priv = KM_ALL };
	DAT_RETURN ret = km_try_reg(km, &mk, type, region, n);

	KUNIT_EXPECT_EQ_MSG(test, (u32)ret, expected, "type %d, %llu", (int)type, n);
	if (ret == DAT_SUCCESS)
		KD_EXPECT_OK(test, dat_lmr_free(mk.lmr));
}

/* What drivers do not tell their devices, or get wrong, is not asked of them. */
static void mk_driver_test(struct kunit *test)
{
	static const struct {
		enum rdma_driver_id driver;
		int pages;	/* of a list, as the device says */
		/* @n pages of that size are accepted, and one more is not */
		u64 size, n;
		u32 large;	/* 4 MB in one piece */
	} rows[] = {
		{ RDMA_DRIVER_UNKNOWN, 1280, SZ_4M, 1280, DAT_SUCCESS },
		{ RDMA_DRIVER_UNKNOWN, 512, SZ_4M, 512, DAT_SUCCESS },
		{ RDMA_DRIVER_ERDMA, 512, SZ_4K, 512, MK_SCARCE },
		{ RDMA_DRIVER_VMW_PVRDMA, 512, SZ_4K, 512, MK_SCARCE },
		{ RDMA_DRIVER_BNXT_RE, 1280, SZ_4M, 1023, DAT_SUCCESS },
		{ RDMA_DRIVER_CXGB4, 1280, SZ_4M, 1023, DAT_SUCCESS },
		{ RDMA_DRIVER_QEDR, 1280, SZ_4M, 1023, DAT_SUCCESS },
		{ RDMA_DRIVER_QEDR, 16383, SZ_4K, 8192, DAT_SUCCESS },
		{ RDMA_DRIVER_IRDMA, 1280, SZ_4M, 512, DAT_SUCCESS },
	};
	struct fake_ib_caps caps = { .page_sizes = SZ_4K | SZ_4M };
	DAT_PADDR *pages = kunit_kcalloc(test, MK_PAGES, sizeof(*pages), GFP_KERNEL);
	DAT_REGION_DESCRIPTION region;
	struct page *page = NULL;
	struct km *km;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, pages);
	if (PAGE_SIZE == SZ_4K)
		page = alloc_pages(GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN, get_order(SZ_4M));
	if (!page) {
		kunit_skip(test, "no 4 MB in one piece, or other pages");
		return;
	}
	for (i = 0; i < MK_PAGES; i++)
		pages[i] = page_to_phys(page);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		kunit_info(test, "row %d", i);
		caps.driver = rows[i].driver;
		caps.max_pages = rows[i].pages;
		km = km_open(test, &caps);
		region.for_array = (DAT_PHYSICAL_VAR_PAGES) { rows[i].size, pages };
		mk_driver_reg(km, DAT_MEM_TYPE_PHYSICAL_VAR_PAGES, region, rows[i].n, DAT_SUCCESS);
		mk_driver_reg(km, DAT_MEM_TYPE_PHYSICAL_VAR_PAGES, region, rows[i].n + 1,
			      MK_SCARCE);
		region.for_va = page_address(page);
		mk_driver_reg(km, DAT_MEM_TYPE_VIRTUAL, region, SZ_4M, rows[i].large);
	}
	__free_pages(page, get_order(SZ_4M));
}

/* The nth call of the device fails, whichever that is. */
static void mk_fails_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_REGION_DESCRIPTION region = { .for_va = km_bytes(km, 1) };
	struct fake_ib_live before, after;
	struct km_reg mk = { .priv = KM_ALL };
	DAT_RETURN ret;
	int nth;

	fake_ib_live(km->env.dev, &before);
	for (nth = 1; ; nth++) {
		fake_ib_fail(km->env.dev, FAKE_IB_ANY, nth, -ENOMEM);
		ret = km_try_reg(km, &mk, DAT_MEM_TYPE_VIRTUAL, region, 64);
		/* or the registration queue pair was built anew */
		if (ret == DAT_SUCCESS)
			KD_EXPECT_OK(test, dat_lmr_free(mk.lmr));
		else
			KM_EXPECT_TYPE(test, ret, DAT_INSUFFICIENT_RESOURCES);
		if (fake_ib_failing(km->env.dev, FAKE_IB_ANY))
			break;
		fake_ib_live(km->env.dev, &after);
		KUNIT_EXPECT_EQ(test, after.mrs, before.mrs);
		KUNIT_ASSERT_LT(test, nth, 50);
	}
	fake_ib_fail(km->env.dev, FAKE_IB_ANY, 0, 0);
	KUNIT_EXPECT_GE(test, nth, 3);
	KD_EXPECT_OK(test, ret);
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

	KUNIT_ASSERT_FALSE(test, IS_ERR(dev));
	region.for_va = kunit_kzalloc(test, 64, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, region.for_va);
	snprintf(name, sizeof(name), "%s-1", fake_ib_name(dev));
	KD_ASSERT_OK(test, dat_ia_open(name, 16, &async, &ia));
	KD_ASSERT_OK(test, dat_pz_create(ia, &pz));
	KM_EXPECT_TYPE(test, dat_lmr_kcreate(ia, 0, region, 64, pz, KM_ALL, 0, 0, &lmr, NULL, NULL,
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
	KD_CASE(mk_lmr_test, "LMR-06,LMR-09,LMR-10,LMR-20: who can be a source"),
	KD_CASE(mk_rights_test,
		"LMR-03,LMR-04,LMR-05,LMR-09,LMR-21: exactly the rights that were asked for"),
	KD_CASE(mk_pages_test, "LMR-04,LMR-08,LMR-20,SIL-31: a gigabyte, and what is too much"),
	KD_CASE(mk_driver_test, "LMR-08,LMR-09: what a driver cannot register is refused"),
	KD_CASE(mk_fails_test, "LMR-08,GEN-07: any call of the device fails, nothing stays"),
	KD_CASE(mk_split_test, "LMR-08: a device with two keys for one region"),
	KD_CASE(mk_attr_test, "LMR-20,LMR-06,FMR-01,RMR-01: what the attributes promise"),
	{}
};

KD_SUITE("kdapl-mem-kinds", mem_kinds_cases, km_init, km_exit);
