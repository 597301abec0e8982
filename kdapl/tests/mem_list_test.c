// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * From what a consumer names memory by to the list a device gets: every kind of
 * description, right and wrong, and the size of blocks chosen for the list; then
 * the calls around it that need no EP: sync, hint, limits, DMA addresses, the
 * reserved LMR.
 */
#include <linux/mm.h>
#include <linux/prandom.h>
#include <linux/random.h>
#include <linux/scatterlist.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "kd_test.h"

#define LIST_PAGES	16
#define LIST_BYTES	(LIST_PAGES * PAGE_SIZE)

/* Data of the module, longer than a page. */
static u8 list_static[3 * PAGE_SIZE];

/* What these cases work with. */
struct list {
	struct kd_env *env;
	struct kdapl_ia *ia;	/* the object behind its IA, referenced */
	u8 *phys;		/* contiguous memory of LIST_BYTES, filled with a pattern */
	u8 *virt;		/* the same size, from vmalloc() */
	struct kdapl_mem mem;	/* list under test */
};

static void list_fill(u8 *p, size_t length)
{
	size_t i;

	for (i = 0; i < length; i++)
		p[i] = i * 7 + i / PAGE_SIZE;
}

static void list_close(void *arg)
{
	struct list *list = arg;

	kdapl_mem_free(&list->mem);
	vfree(list->virt);
	free_pages((unsigned long)list->phys, get_order(LIST_BYTES));
	kdapl_obj_put(&list->ia->obj);
}

/* With a device that takes that many pages at a time. */
static struct list *list_open(struct kunit *test, int max_pages, u64 page_sizes)
{
	const struct fake_ib_caps caps = { .max_pages = max_pages, .page_sizes = page_sizes };
	struct list *list = kunit_kzalloc(test, sizeof(*list), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, list);
	list->env = kd_open(test, &caps);
	list->ia = kdapl_obj_get(list->env->ia, DAT_HANDLE_TYPE_IA);
	list->phys = (u8 *)__get_free_pages(GFP_KERNEL, get_order(LIST_BYTES));
	list->virt = vmalloc(LIST_BYTES);
	KUNIT_ASSERT_NOT_NULL(test, list->phys);
	KUNIT_ASSERT_NOT_NULL(test, list->virt);
	list_fill(list->phys, LIST_BYTES);
	list_fill(list->virt, LIST_BYTES);
	list_fill(list_static, sizeof(list_static));
	return list;
}

static int list_build(struct list *list, DAT_MEM_TYPE type, const DAT_REGION_DESCRIPTION *region,
		      u64 length)
{
	kdapl_mem_free(&list->mem);
	memset(&list->mem, 0, sizeof(list->mem));
	return kdapl_mem_build(&list->mem, list->ia, type, region, length);
}

static int list_virtual(struct list *list, const void *va, u64 length)
{
	const DAT_REGION_DESCRIPTION region = { .for_va = (void *)va };

	return list_build(list, DAT_MEM_TYPE_VIRTUAL, &region, length);
}

/* The list is these bytes, and begins where it should. */
static void list_expect(struct list *list, u64 start, const u8 *bytes, u64 length)
{
	struct kunit *test = list->env->test;
	struct kdapl_mem *mem = &list->mem;
	u8 *copy = vmalloc(length);

	KUNIT_EXPECT_EQ(test, mem->start, start);
	KUNIT_EXPECT_EQ(test, mem->length, length);
	KUNIT_EXPECT_FALSE(test, mem->foreign);
	KUNIT_EXPECT_EQ(test, mem->nents, 0U);
	KUNIT_EXPECT_EQ(test, mem->used, mem->sgt.orig_nents);
	KUNIT_ASSERT_NOT_NULL(test, copy);
	KUNIT_EXPECT_EQ(test, sg_copy_to_buffer(mem->sgt.sgl, mem->used, copy, length), length);
	KUNIT_EXPECT_EQ(test, memcmp(copy, bytes, length), 0);
	vfree(copy);
}

/* Linear memory, vmalloc() and data of a module, from the middle of pages. */
static void list_virtual_test(struct kunit *test)
{
	struct list *list = list_open(test, LIST_PAGES + 1, PAGE_SIZE);
	static const struct { u32 offset, length; } part[] = {
		{ 0, 1 }, { 0, PAGE_SIZE }, { PAGE_SIZE - 1, 2 }, { 5, PAGE_SIZE },
		{ PAGE_SIZE - 1, PAGE_SIZE + 2 }, { 0, 3 * PAGE_SIZE }, { 1, 3 * PAGE_SIZE - 2 },
	};
	u8 *const memory[] = { list->phys, list->virt, list_static }, *p;
	int i, kind;

	for (kind = 0; kind < ARRAY_SIZE(memory); kind++) {
		for (i = 0; i < ARRAY_SIZE(part); i++) {
			p = memory[kind] + part[i].offset;
			KUNIT_EXPECT_EQ(test, list_virtual(list, p, part[i].length), 0);
			list_expect(list, (uintptr_t)p, p, part[i].length);
			if (!kind)
				KUNIT_EXPECT_EQ(test, list->mem.used, 1U);
		}
	}
	list_close(list);
}

/* What is no memory, and what is too much of it. */
static void list_virtual_bad_test(struct kunit *test)
{
	struct list *list = list_open(test, LIST_PAGES, PAGE_SIZE);
	struct page *pages[LIST_PAGES + 1];
	void *twice;
	int i;

	KUNIT_EXPECT_EQ(test, list_virtual(list, list->phys, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, list_virtual(list, (void *)-PAGE_SIZE, PAGE_SIZE + 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, list_virtual(list, (void *)-PAGE_SIZE, PAGE_SIZE), -EFAULT);
	/* the page behind the end of the area is a hole */
	KUNIT_EXPECT_EQ(test, list_virtual(list, list->virt, LIST_BYTES + 1), -EFAULT);
	KUNIT_EXPECT_EQ(test, list_virtual(list, list->virt, LIST_BYTES), 0);
	/* never contiguous: one page, again and again */
	for (i = 0; i <= LIST_PAGES; i++)
		pages[i] = virt_to_page(list->phys);
	twice = vmap(pages, LIST_PAGES + 1, VM_MAP, PAGE_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, twice);
	KUNIT_EXPECT_EQ(test, list_virtual(list, twice, LIST_PAGES * PAGE_SIZE), 0);
	KUNIT_EXPECT_EQ(test, list->mem.used, (u32)LIST_PAGES);
	KUNIT_EXPECT_EQ(test, list_virtual(list, twice, LIST_PAGES * PAGE_SIZE + 1), -E2BIG);
	vunmap(twice);
	list_close(list);
}

static int list_physical(struct list *list, DAT_PADDR *pages, u64 n)
{
	const DAT_REGION_DESCRIPTION region = { .for_physical = pages };

	return list_build(list, DAT_MEM_TYPE_PHYSICAL, &region, n);
}

static int list_var(struct list *list, u64 page_size, DAT_PADDR *pages, u64 n)
{
	const DAT_REGION_DESCRIPTION region = {
		.for_array = { .page_size = page_size, .pages = pages },
	};

	return list_build(list, DAT_MEM_TYPE_PHYSICAL_VAR_PAGES, &region, n);
}

/* Arrays of pages: runs become one entry, order is kept. */
static void list_physical_test(struct kunit *test)
{
	static const u8 order[LIST_PAGES] = {
		3, 4, 5, 0, 2, 1, 6, 7, 8, 9, 15, 14, 10, 11, 12, 13,
	};
	static const u64 sizes[] = { PAGE_SIZE / 2, 3 * PAGE_SIZE, 0, 8 * PAGE_SIZE };
	static const u64 wrong[] = { 1, PAGE_SIZE / 2, 1ULL << 62 };
	struct list *list = list_open(test, LIST_PAGES, 7 * PAGE_SIZE);
	DAT_PADDR pages[LIST_PAGES];
	phys_addr_t phys;
	u8 *bytes;
	int i;

	phys = virt_to_phys(list->phys);
	bytes = vmalloc(LIST_BYTES);
	KUNIT_ASSERT_NOT_NULL(test, bytes);
	for (i = 0; i < LIST_PAGES; i++) {
		pages[i] = phys + order[i] * PAGE_SIZE;
		memcpy(bytes + i * PAGE_SIZE, list->phys + order[i] * PAGE_SIZE, PAGE_SIZE);
	}
	KUNIT_EXPECT_EQ(test, list_physical(list, pages, LIST_PAGES), 0);
	list_expect(list, pages[0], bytes, LIST_BYTES);
	KUNIT_EXPECT_EQ(test, list->mem.used, 8U);
	KUNIT_EXPECT_EQ(test, list_var(list, PAGE_SIZE, pages, LIST_PAGES), 0);
	list_expect(list, pages[0], bytes, LIST_BYTES);

	for (i = 0; i < LIST_PAGES; i += 2) {
		pages[i / 2] = phys + (LIST_PAGES - 2 - i) * PAGE_SIZE;
		memcpy(bytes + i * PAGE_SIZE, list->phys + (LIST_PAGES - 2 - i) * PAGE_SIZE,
		       2 * PAGE_SIZE);
	}
	KUNIT_EXPECT_EQ(test, list_var(list, 2 * PAGE_SIZE, pages, LIST_PAGES / 2), 0);
	list_expect(list, pages[0], bytes, LIST_BYTES);
	KUNIT_EXPECT_EQ(test, list->mem.used, LIST_PAGES / 2U);
	vfree(bytes);

	KUNIT_EXPECT_EQ(test, list_physical(list, NULL, 1), -EFAULT);
	/* refused before the array is read */
	KUNIT_EXPECT_EQ(test, list_physical(list, pages, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, list_physical(list, pages, U64_MAX / PAGE_SIZE + 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, list_physical(list, pages, U64_MAX / PAGE_SIZE), -E2BIG);
	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		KUNIT_EXPECT_EQ_MSG(test, list_var(list, sizes[i], pages, 1), -EFAULT, "%llu",
				    sizes[i]);
	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		pages[0] = phys;
		pages[1] = phys + wrong[i];
		KUNIT_EXPECT_EQ_MSG(test, list_physical(list, pages + 1, 1), -EFAULT, "%llx",
				    wrong[i]);
		KUNIT_EXPECT_EQ(test, list_physical(list, pages, 2), -EFAULT);
	}
	pages[0] = phys + PAGE_SIZE;
	KUNIT_EXPECT_EQ(test, list_var(list, 2 * PAGE_SIZE, pages, 1), -EFAULT);
	pages[0] = round_down(U64_MAX, PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, list_physical(list, pages, 1), -EFAULT);
	list_close(list);
}

static int list_platform(struct list *list, struct sg_table *sgt, u64 length)
{
	const DAT_REGION_DESCRIPTION region = { .for_platform = sgt };

	return list_build(list, DAT_MEM_TYPE_PLATFORM, &region, length);
}

/* Scatterlists: any offsets at the ends, none inside unless memory goes on. */
static void list_platform_test(struct kunit *test)
{
	struct list *list = list_open(test, LIST_PAGES, PAGE_SIZE);
	u8 *last = list->phys + 9 * PAGE_SIZE, *first = list->phys + PAGE_SIZE - 100;
	const u32 bytes = 100 + 2 * PAGE_SIZE + 50;
	struct sg_table sgt = {};
	struct scatterlist *sg;
	u8 *copy;

	copy = kunit_kzalloc(test, bytes, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, copy);
	memcpy(copy, first, 2 * PAGE_SIZE + 100);
	memcpy(copy + 2 * PAGE_SIZE + 100, last, 50);
	KUNIT_ASSERT_EQ(test, sg_alloc_table(&sgt, 5, GFP_KERNEL), 0);
	sg = sgt.sgl;
	sg_set_buf(&sg[0], list->phys, 0);
	sg[0].length = 0;
	sg_set_buf(&sg[1], first, 100);
	sg_set_buf(&sg[2], list->phys + PAGE_SIZE, 10);
	sg_set_buf(&sg[3], list->phys + PAGE_SIZE + 10, 2 * PAGE_SIZE - 10);
	sg_set_buf(&sg[4], last, 50);
	KUNIT_EXPECT_EQ(test, list_platform(list, &sgt, bytes), 0);
	list_expect(list, virt_to_phys(first), copy, bytes);
	KUNIT_EXPECT_EQ(test, list->mem.used, 2U);
	KUNIT_EXPECT_EQ(test, list_platform(list, &sgt, 105), 0);
	list_expect(list, virt_to_phys(first), copy, 105);
	KUNIT_EXPECT_EQ(test, list->mem.used, 1U);
	KUNIT_EXPECT_EQ(test, list_platform(list, &sgt, bytes + 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, list_platform(list, NULL, 1), -EFAULT);
	/* the last piece does not start on a page; then the one before does not end on one */
	sg_set_buf(&sg[4], last + 1, 50);
	KUNIT_EXPECT_EQ(test, list_platform(list, &sgt, bytes), -EFAULT);
	KUNIT_EXPECT_EQ(test, list_platform(list, &sgt, bytes - 50), 0);
	sg_set_buf(&sg[4], last, 50);
	sg_set_buf(&sg[3], list->phys + PAGE_SIZE + 10, 2 * PAGE_SIZE - 11);
	KUNIT_EXPECT_EQ(test, list_platform(list, &sgt, bytes - 1), -EFAULT);
	sg_free_table(&sgt);
	list_close(list);
}

/* Addresses of the device's; and the memory of another LMR. */
static void list_copy_test(struct kunit *test)
{
	struct list *list = list_open(test, LIST_PAGES, PAGE_SIZE);
	const struct { u64 addr, length; } bad[] = {
		{ (uintptr_t)list->virt, 1 }, { 1, 1 }, { U64_MAX, 2 },
	};
	DAT_REGION_DESCRIPTION region = { .for_ia = (uintptr_t)list->phys + 3 };
	struct kdapl_device *dev = list->ia->dev;
	struct kd_mem *mem = &list->env->mem[KD_RO];
	u64 length = 0;
	u32 i;

	KUNIT_EXPECT_EQ(test, list_build(list, DAT_MEM_TYPE_IA, &region, LIST_BYTES - 3), 0);
	KUNIT_EXPECT_TRUE(test, list->mem.foreign);
	KUNIT_EXPECT_EQ(test, list->mem.start, region.for_ia);
	KUNIT_EXPECT_EQ(test, list->mem.length, (u64)LIST_BYTES - 3);
	KUNIT_EXPECT_EQ(test, list->mem.nents, 0U);
	KUNIT_EXPECT_EQ(test, kdapl_mem_map(&list->mem, dev, DAT_MEM_PRIV_ALL_FLAG), 0);
	for (i = 0; i < list->mem.nents; i++) {
		KUNIT_EXPECT_EQ(test, sg_dma_address(&list->mem.sgt.sgl[i]),
				(dma_addr_t)region.for_ia + length);
		length += sg_dma_len(&list->mem.sgt.sgl[i]);
	}
	KUNIT_EXPECT_EQ(test, length, (u64)LIST_BYTES - 3);
	kdapl_mem_unmap(&list->mem, dev);
	kdapl_mem_unmap(&list->mem, dev);
	KUNIT_EXPECT_EQ(test, list->mem.nents, 0U);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		region.for_ia = bad[i].addr;
		KUNIT_EXPECT_EQ_MSG(test, list_build(list, DAT_MEM_TYPE_IA, &region, bad[i].length),
				    -EFAULT, "row %u", i);
	}
	region.for_lmr_handle = mem->lmr;
	KUNIT_EXPECT_EQ(test, list_build(list, DAT_MEM_TYPE_LMR, &region, 0), 0);
	list_expect(list, mem->addr, (u8 *)(uintptr_t)mem->addr, KD_MEM_SIZE);
	region.for_lmr_handle = list->env->pz;
	KUNIT_EXPECT_EQ(test, list_build(list, DAT_MEM_TYPE_LMR, &region, 0), -EFAULT);
	list_close(list);
}

static unsigned int oracle_blocks, oracle_max;

static int oracle_set_page(struct ib_mr *mr, u64 addr)
{
	if (oracle_blocks == oracle_max)
		return -ENOMEM;
	oracle_blocks++;
	return 0;
}

/* What a driver would say to that size. */
static bool oracle(struct scatterlist *sgl, unsigned int nents, u64 start, u32 size, u32 max)
{
	struct ib_mr mr = { .page_size = size };

	oracle_blocks = 0;
	oracle_max = max;
	return ib_sg_to_pages(&mr, sgl, nents, NULL, oracle_set_page) == nents &&
	       !((sg_dma_address(sgl) ^ start) & (size - 1));
}

static u32 list_below(struct rnd_state *rnd, u32 n)
{
	return prandom_u32_state(rnd) % n;
}

/* Pieces of whole grains, most of the time, of which some go on in the next. */
static void list_random(struct rnd_state *rnd, struct scatterlist *sgl, unsigned int nents,
			unsigned int grain)
{
	u64 addr = (u64)(1 + list_below(rnd, 4096)) << grain;
	unsigned int i;
	u32 cut;

	sg_init_table(sgl, nents);
	for (i = 0; i < nents; i++) {
		u32 length = (1 + list_below(rnd, 16)) << grain;

		if (!i && list_below(rnd, 2)) {
			cut = list_below(rnd, min(length, 1U << grain));
			addr += cut;
			length -= cut;
		}
		if (i == nents - 1 && list_below(rnd, 2))
			length -= list_below(rnd, min(length, 1U << grain));
		if (!list_below(rnd, 16) && length > 1)
			length -= list_below(rnd, length);
		sg_dma_address(&sgl[i]) = addr;
		sg_dma_len(&sgl[i]) = length;
		addr += length;
		if (list_below(rnd, 2))
			addr = round_up(addr, BIT_ULL(grain)) + ((u64)list_below(rnd, 64) << grain);
	}
}

/*
 * Random lists: the size chosen is one that a driver takes, with just as many
 * blocks, and there is no smaller one.
 */
static void list_page_size_test(struct kunit *test)
{
	const u64 seed = get_random_u64();
	struct kdapl_device *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);
	unsigned int round, found = 0, larger = 0, bit;
	struct scatterlist sgl[8];
	struct rnd_state rnd;

	kunit_info(test, "seed %llu", seed);
	prandom_seed_state(&rnd, seed);
	KUNIT_ASSERT_NOT_NULL(test, dev);
	for (round = 0; round < 20000; round++) {
		unsigned int nents = 1 + list_below(&rnd, ARRAY_SIZE(sgl));
		unsigned int grain = PAGE_SHIFT + list_below(&rnd, 6);
		u64 sizes = PAGE_SIZE | ((u64)prandom_u32_state(&rnd) & PAGE_MASK), start;
		u32 max = 1 + list_below(&rnd, 64), size, blocks = 0;

		list_random(&rnd, sgl, nents, grain);
		start = sg_dma_address(&sgl[0]);
		if (list_below(&rnd, 2))
			start += (u64)list_below(&rnd, 64) << grain;
		size = kdapl_mem_page_size(dev, sgl, nents, start, sizes, max, &blocks);
		if (size) {
			KUNIT_ASSERT_TRUE(test, sizes & size);
			KUNIT_ASSERT_TRUE(test, oracle(sgl, nents, start, size, max));
			KUNIT_ASSERT_EQ(test, blocks, oracle_blocks);
			found++;
			larger += size > PAGE_SIZE;
		}
		for (bit = PAGE_SHIFT; bit < 32 && BIT(bit) != size; bit++) {
			if (sizes & BIT(bit))
				KUNIT_ASSERT_FALSE(test, oracle(sgl, nents, start, BIT(bit), max));
		}
	}
	/* else the lists are not what this is about */
	KUNIT_EXPECT_GT(test, found, 1000U);
	KUNIT_EXPECT_GT(test, larger, 100U);
	KUNIT_EXPECT_LT(test, found, 19000U);
}

/* Soft-iWARP: what counts is entries, whatever their length. */
static void list_entries_test(struct kunit *test)
{
	/* the second of three entries; the others are 1 GiB at 4 and 12 GiB */
	static const struct { u64 addr; u32 length, max, size; } rows[] = {
		{ 8ULL * SZ_1G, SZ_1G, 3, PAGE_SIZE }, { 8ULL * SZ_1G, SZ_1G, 2, 0 },
		/* one piece of 2 GiB is more than it can count */
		{ 5ULL * SZ_1G, SZ_1G, 3, 0 }, { 5ULL * SZ_1G, SZ_1G - PAGE_SIZE, 3, PAGE_SIZE },
		{ 5ULL * SZ_1G, SZ_1G - 1, 3, 0 },
	};
	struct kdapl_device *dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);
	struct scatterlist sgl[3];
	u32 blocks = 0;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, dev);
	dev->caps.any_page_size = true;
	sg_init_table(sgl, 3);
	for (i = 0; i < 3; i++) {
		sg_dma_address(&sgl[i]) = (u64)(i + 1) * 4 * SZ_1G;
		sg_dma_len(&sgl[i]) = SZ_1G;
	}
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		sg_dma_address(&sgl[1]) = rows[i].addr;
		sg_dma_len(&sgl[1]) = rows[i].length;
		KUNIT_EXPECT_EQ_MSG(test, kdapl_mem_page_size(dev, sgl, 3, 0, PAGE_SIZE,
							      rows[i].max, &blocks),
				    rows[i].size, "row %d", i);
		KUNIT_EXPECT_EQ(test, blocks, 3U);
	}
}

static void list_sync_test(struct kunit *test)
{
	static DAT_RETURN (*const calls[])(DAT_IA_HANDLE, const DAT_LMR_TRIPLET *, DAT_VLEN) = {
		dat_lmr_sync_rdma_read, dat_lmr_sync_rdma_write,
	};
	struct kd_env *env = kd_open(test, NULL);
	const DAT_LMR_TRIPLET rw = kd_seg(env, KD_RW, 0, 1), last = { .lmr_context = 0x12345600 };
	const DAT_LMR_TRIPLET bad[] = {
		kd_seg(env, KD_REMOTE, KD_MEM_SIZE - 1, 2), kd_seg(env, KD_RW, -1, 2),
		{ rw.virtual_address - 1, 1, rw.lmr_context },
		{ rw.virtual_address, 1, rw.lmr_context ^ 1 }, { rw.virtual_address, 1, 0 },
	};
	DAT_LMR_TRIPLET seg[] = {
		kd_seg(env, KD_RW, 0, KD_MEM_SIZE), kd_seg(env, KD_FOREIGN, 1, KD_MEM_SIZE - 1),
		kd_seg(env, KD_REMOTE, KD_MEM_SIZE - 1, 1), last,
	};
	const DAT_LMR_TRIPLET good = seg[2];
	DAT_RETURN ret = DAT_SUCCESS;
	int i, k, n;

	for (k = 0; k < 2; k++) {
		seg[2] = good;
		/* anywhere */
		local_bh_disable();
		for (n = 0; n <= 4; n++)
			ret |= calls[k](env->ia, seg, n);
		local_bh_enable();
		KD_EXPECT_OK(test, ret);
		KD_EXPECT_OK(test, calls[k](env->ia, NULL, 0));
		KD_BAD_ARG(test, calls[k](env->ia, NULL, 1), 2);
		for (i = 0; i < ARRAY_SIZE(bad); i++) {
			seg[2] = bad[i];
			KUNIT_EXPECT_EQ_MSG(test, (u32)calls[k](env->ia, seg, 4),
					    (u32)DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2),
					    "row %d", i);
			KD_EXPECT_OK(test, calls[k](env->ia, seg, 2));
		}
	}
	KD_EXPECT_OK(test, dat_lmr_free(env->mem[KD_RW].lmr));
	env->mem[KD_RW].lmr = DAT_HANDLE_NULL;
	KD_BAD_ARG(test, dat_lmr_sync_rdma_read(env->ia, &rw, 1), 2);
}

static void list_hint_test(struct kunit *test)
{
	static const struct {
		u32 type;
		u64 length;
		u32 opt, ret;
		u64 want, align;
	} rows[] = {
#define LIST_BAD(n)	DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG##n)
		{ DAT_MEM_TYPE_VIRTUAL, 1, 0, 0, PAGE_SIZE, PAGE_SIZE },
		{ DAT_MEM_TYPE_VIRTUAL, 64 * PAGE_SIZE + 1, DAT_MEM_OPTIMIZE_EXACT_EXPOSURE, 0,
		  64 * PAGE_SIZE + 1, 16 * PAGE_SIZE },
		{ DAT_MEM_TYPE_PHYSICAL, 65, 0, 0, 80, 0 }, { DAT_MEM_TYPE_LMR, 0, 0, 0, 0, 0 },
		{ DAT_MEM_TYPE_IA, U64_MAX, 0, 0, U64_MAX, 0 },
		{ DAT_MEM_TYPE_BYPASS, 1, 0, DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE) },
		{ 0x200, 1, 0, LIST_BAD(2) }, { 0x003, 1, 0, LIST_BAD(2) },
		{ 0x011, 1, 0, LIST_BAD(2) }, { 0, 0, 0, LIST_BAD(3) },
		{ DAT_MEM_TYPE_PHYSICAL, U64_MAX, 0, LIST_BAD(3) },
		{ 0, 1, 0x08, LIST_BAD(4) }, { 0, 1, 0x10, LIST_BAD(4) },
	};
	static const int types[] = {
		DAT_MEM_TYPE_VIRTUAL, DAT_MEM_TYPE_LMR, DAT_MEM_TYPE_PHYSICAL,
		DAT_MEM_TYPE_PLATFORM, DAT_MEM_TYPE_IA, DAT_MEM_TYPE_PHYSICAL_VAR_PAGES,
	};
	struct list *list = list_open(test, 64, PAGE_SIZE | 16 * PAGE_SIZE);
	struct kdat_mem_limits limits;
	DAT_REGION_DESCRIPTION region;
	DAT_LMR_HANDLE lmr;
	struct kd_env *env = list->env;
	DAT_VLEN length;
	DAT_VADDR align;
	int i, t, opt;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		KUNIT_EXPECT_EQ_MSG(test, (u32)dat_ia_memtype_hint(env->ia, rows[i].type,
								   rows[i].length, rows[i].opt,
								   &length, &align),
				    rows[i].ret, "row %d", i);
		if (!rows[i].ret)
			KUNIT_EXPECT_EQ_MSG(test, (u64)length, rows[i].want, "row %d", i);
		if (rows[i].align)
			KUNIT_EXPECT_EQ_MSG(test, (u64)align, rows[i].align, "row %d", i);
	}
	for (t = 0; t < ARRAY_SIZE(types); t++) {
		for (i = 0; i < 60; i += 4) {
			for (opt = 0; opt <= DAT_MEM_OPTIMIZE_EXACT_EXPOSURE; opt = opt * 2 ?: 1) {
				KD_EXPECT_OK(test, dat_ia_memtype_hint(env->ia, types[t],
								       PAGE_SIZE - 2 + i, opt,
								       &length, &align));
				KUNIT_EXPECT_GE(test, (u64)length, (u64)PAGE_SIZE - 2 + i);
				KUNIT_EXPECT_TRUE(test, is_power_of_2(align));
			}
		}
	}
	/* who follows it gets an LMR */
	KD_EXPECT_OK(test, dat_ia_memtype_hint(env->ia, DAT_MEM_TYPE_VIRTUAL, 10000,
					       DAT_MEM_OPTIMIZE_IA, &length, &align));
	region.for_va = PTR_ALIGN(list->phys, align);
	KUNIT_EXPECT_LE(test, (u64)length, (u64)LIST_BYTES);
	KD_EXPECT_OK(test, dat_lmr_kcreate(env->ia, DAT_MEM_TYPE_VIRTUAL, region, length, env->pz,
					   DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA,
					   DAT_MEM_OPTIMIZE_IA, &lmr, NULL, NULL, NULL, NULL));
	KD_EXPECT_OK(test, dat_lmr_free(lmr));

	memset(&limits, 0xff, sizeof(limits));
	KD_EXPECT_OK(test, kdat_ia_mem_limits(env->ia, &limits));
	KUNIT_EXPECT_EQ(test, limits.lmr_pages, 64);
	KUNIT_EXPECT_GT(test, limits.rmr_pages, 0);
	KUNIT_EXPECT_EQ(test, limits.page_sizes, (u64)(PAGE_SIZE | 16 * PAGE_SIZE));
	KUNIT_EXPECT_TRUE(test, limits.fmr_page_sizes & PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, limits.boundary, (u64)PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, limits.numa_node, NUMA_NO_NODE);
	KUNIT_EXPECT_EQ(test, limits.comp_vectors,
			(int)fake_ib_device(env->dev)->num_comp_vectors);
	KUNIT_EXPECT_EQ(test, limits.post_list, KDAT_POST_LIST_MAX);
	list_close(list);
}

static void list_dma_test(struct kunit *test)
{
	struct list *list = list_open(test, 0, 0);
	DAT_IA_HANDLE ia = list->env->ia;
	struct kdat_dma_map map = {};

	KD_EXPECT_OK(test, kdat_ia_dma_map(ia, &map, list->phys + 5, LIST_BYTES - 5));
	/* on a soft device */
	KUNIT_EXPECT_EQ(test, map.address, (u64)(uintptr_t)list->phys + 5);
	KD_EXPECT_OK(test, kdat_ia_dma_unmap(ia, &map));
	KD_BAD_ARG(test, kdat_ia_dma_map(ia, &map, list->virt, 1), 3);
	KD_BAD_ARG(test, kdat_ia_dma_map(ia, &map, NULL, 1), 3);
	KD_BAD_ARG(test, kdat_ia_dma_map(ia, &map, list->phys, 0), 4);
	KD_BAD_ARG(test, kdat_ia_dma_map(ia, &map, list->phys, U64_MAX), 4);
	list_close(list);
}

/* One per IA, for all its PZs and no peer, and not to be got rid of. */
static void list_reserved_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_LMR_HANDLE lmr, again, other;
	DAT_LMR_CONTEXT context, context2;
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	struct fake_ib_live before, after;
	DAT_LMR_TRIPLET seg = { .segment_length = 8 };
	DAT_LMR_PARAM param;
	DAT_IA_HANDLE ia;

	fake_ib_live(env->dev, &before);
	KD_ASSERT_OK(test, dat_ia_reserved_lmr(env->ia, &lmr, &context));
	KD_ASSERT_OK(test, dat_ia_reserved_lmr(env->ia, &again, &context2));
	fake_ib_live(env->dev, &after);
	KUNIT_EXPECT_PTR_EQ(test, lmr, again);
	KUNIT_EXPECT_EQ(test, context, context2);
	KUNIT_EXPECT_NE(test, context, 0U);
	KUNIT_EXPECT_EQ(test, before.mrs, after.mrs);
	KD_EXPECT_OK(test, dat_lmr_query(lmr, DAT_LMR_FIELD_ALL, &param));
	KUNIT_EXPECT_EQ(test, param.lmr_context, context);
	KUNIT_EXPECT_EQ(test, param.rmr_context, 0U);
	KUNIT_EXPECT_EQ(test, (u32)param.mem_priv,
			(u32)(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG));
	KUNIT_EXPECT_EQ(test, param.registered_size, U64_MAX);
	KUNIT_EXPECT_EQ(test, param.registered_address, 0ULL);
	KUNIT_EXPECT_EQ(test, param.lmr_state.fmr_support, DAT_FALSE);
	seg.lmr_context = context;
	seg.virtual_address = (uintptr_t)env->buf;
	KD_EXPECT_OK(test, dat_lmr_sync_rdma_write(env->ia, &seg, 1));
	seg.virtual_address = U64_MAX - 6;
	KD_BAD_ARG(test, dat_lmr_sync_rdma_read(env->ia, &seg, 1), 2);
	/* it does not keep an IA open, and goes with it */
	ia = kd_ia_more(env, &async);
	KD_EXPECT_OK(test, dat_ia_reserved_lmr(ia, &other, &context));
	KUNIT_EXPECT_PTR_NE(test, other, lmr);
	KD_EXPECT_OK(test, dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
	KD_BAD_HANDLE(test, dat_lmr_query(other, 0, NULL), _LMR);
	KD_EXPECT_OK(test, dat_lmr_query(lmr, 0, NULL));
}

/* The device is gone: nothing is mapped, found or advised that it would need. */
static void list_gone_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_LMR_TRIPLET seg = kd_seg(env, KD_RW, 0, 1);
	struct kdat_dma_map map = {};
	struct kdat_mem_limits limits;
	DAT_LMR_CONTEXT context;
	DAT_LMR_HANDLE lmr, got;

	KD_ASSERT_OK(test, dat_ia_reserved_lmr(env->ia, &lmr, &context));
	fake_ib_unplug(env->dev);
	KD_GONE(test, dat_ia_reserved_lmr(env->ia, &got, &context));
	KD_GONE(test, kdat_ia_mem_limits(env->ia, &limits));
	KD_GONE(test, kdat_ia_dma_map(env->ia, &map, env->buf, 1));
	KD_GONE(test, dat_lmr_sync_rdma_read(env->ia, &seg, 1));
	KD_EXPECT_OK(test, dat_lmr_query(lmr, 0, NULL));
}

static struct kunit_case list_cases[] = {
	KD_CASE(list_virtual_test, "LMR-01: kernel memory, from any byte to any other"),
	KD_CASE(list_virtual_bad_test, "LMR-08: what is no memory, and too much of it"),
	KD_CASE(list_physical_test, "LMR-01,LMR-08: arrays of pages, in order, runs as one"),
	KD_CASE(list_platform_test, "LMR-01,LMR-08: scatterlists, to the byte"),
	KD_CASE(list_copy_test, "LMR-01,LMR-08: addresses of the device, memory of an LMR"),
	KD_CASE(list_page_size_test, "LMR-01: the smallest pages that fit"),
	KD_CASE(list_entries_test, "LMR-01: soft-iWARP counts entries, not pages"),
	KD_CASE(list_sync_test, "LMR-SYNC-01..04: what the sync calls take and refuse"),
	KD_CASE(list_hint_test, "LMR-HINT-01: hints are as good or better; limits"),
	KD_CASE(list_dma_test, "LMR-20: addresses for DAT_MEM_TYPE_IA"),
	KD_CASE(list_reserved_test, "LMR-RES-01,LMR-RES-02: the reserved LMR"),
	KD_CASE(list_gone_test, "LMR-SYNC-03,LMR-RES-01: without a device"),
	{}
};

KD_SUITE("kdapl-mem-list", list_cases, kd_init, kd_exit);
