// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * kdat_lmr_fmr_sg(): a scatterlist bound to the byte. A model that knows nothing
 * but the list says which bytes a key reaches and which lists have gaps.
 */
#include <linux/mm.h>
#include <linux/prandom.h>
#include <linux/random.h>

#include "kd_mem.h"

#define FS_ENTS		8
#define FS_ROUNDS	400

static DAT_RETURN fs_fmr(struct km *km, DAT_LMR_HANDLE lmr, const struct kdat_sg *sg, int priv,
			 int va_type, int flags, struct km_keys *keys, DAT_VADDR *addr)
{
	DAT_LMR_COOKIE cookie = { .as_64 = 0x56 };

	return kdat_lmr_fmr_sg(lmr, sg, priv, va_type, km->env.ep, cookie, flags, &keys->lmr,
			       &keys->rmr, addr);
}

static void fs_done(struct km *km)
{
	km_done(km, IB_WC_SUCCESS);
	km_expect(km, DAT_DTO_LMR_FMR, 0x56, DAT_DTO_SUCCESS);
}

/* Where byte @pos of the list is. */
static u8 *fs_byte(struct scatterlist *sgl, int nents, u64 pos)
{
	struct scatterlist *sg;
	int i;

	for_each_sg(sgl, sg, nents, i) {
		if (pos < sg->length)
			return (u8 *)sg_virt(sg) + pos;
		pos -= sg->length;
	}
	return NULL;
}

/* Does the list, cut to offset and length, leave a gap inside? */
static bool fs_gap(struct scatterlist *sgl, int nents, u64 offset, u64 length)
{
	struct scatterlist *sg;
	uintptr_t last = 0;
	u64 pos = 0;
	int i;

	for_each_sg(sgl, sg, nents, i) {
		uintptr_t from = (uintptr_t)sg_virt(sg), to = from + sg->length;
		u64 begin = max(pos, offset), end = min(pos + sg->length, offset + length);

		if (begin < end) {
			to = from + end - pos;
			from += begin - pos;
			if (last && last != from && ((last | from) & ~PAGE_MASK))
				return true;
			last = to;
		}
		pos += sg->length;
	}
	return false;
}

/* Every byte of the region, and the two beside it. */
static void fs_check_bytes(struct km *km, const struct kdat_sg *sg, const struct km_keys *keys,
			   u64 addr)
{
	struct kunit *test = km->env.test;
	u64 pos, step = sg->length > 256 ? 61 : 1;
	u8 byte;

	for (pos = 0; pos < sg->length; pos = pos + step < sg->length || pos == sg->length - 1 ?
	     pos + step : sg->length - 1) {
		byte = get_random_u32();
		KUNIT_ASSERT_EQ(test, fake_ib_access(km->env.dev, keys->rmr, addr + pos, &byte, 1,
						     IB_ACCESS_REMOTE_WRITE), 0);
		KUNIT_ASSERT_EQ(test, *fs_byte(sg->sgl, sg->nents, sg->offset + pos), byte);
	}
	KUNIT_EXPECT_EQ(test, fake_ib_access(km->env.dev, keys->rmr, addr - 1, &byte, 1,
					     IB_ACCESS_REMOTE_READ), -EACCES);
	KUNIT_EXPECT_EQ(test, fake_ib_access(km->env.dev, keys->rmr, addr + sg->length, &byte, 1,
					     IB_ACCESS_REMOTE_READ), -EACCES);
	KUNIT_EXPECT_EQ(test, fake_ib_access(km->env.dev, keys->rmr, addr, &byte, 0,
					     IB_ACCESS_REMOTE_READ), 0);
}

/* A list of the sort the block layer makes, most of the time. */
static void fs_random_list(struct km *km, struct rnd_state *rnd, struct scatterlist *sgl, int n)
{
	u32 offset, length, r;
	int i;

	sg_init_table(sgl, n);
	for (i = 0; i < n; i++) {
		r = prandom_u32_state(rnd);
		offset = i && r % 16 ? 0 : (r >> 8) % PAGE_SIZE;
		length = PAGE_SIZE - offset;
		if (i == n - 1 || !((r >> 4) % 16))
			length = 1 + (r >> 20) % length;
		sg_set_page(&sgl[i], km->page[(i * 5 + (r & 3)) % KM_PAGES], length, offset);
	}
}

static void fs_model_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_LMR_HANDLE lmr = km_lmr(km, FS_ENTS, DAT_LMR_SCOPE_PZ);
	struct scatterlist sgl[FS_ENTS];
	u32 seed = get_random_u32();
	int round, n, good = 0;
	struct rnd_state rnd;
	struct km_keys keys;
	DAT_LMR_PARAM param;
	DAT_VADDR addr;
	DAT_RETURN ret;
	u64 total;
	int i;

	kunit_info(test, "seed %#x\n", seed);
	prandom_seed_state(&rnd, seed);
	for (round = 0; round < FS_ROUNDS; round++) {
		struct kdat_sg sg = { .sgl = sgl };

		n = 1 + prandom_u32_state(&rnd) % FS_ENTS;
		fs_random_list(km, &rnd, sgl, n);
		for (i = 0, total = 0; i < n; i++)
			total += sgl[i].length;
		sg.nents = n;
		sg.offset = prandom_u32_state(&rnd) & 1 ? prandom_u32_state(&rnd) % total : 0;
		sg.length = prandom_u32_state(&rnd) & 1 ? total - sg.offset :
			    1 + prandom_u32_state(&rnd) % (total - sg.offset);
		ret = fs_fmr(km, lmr, &sg, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, 0, &keys, &addr);
		if (fs_gap(sgl, n, sg.offset, sg.length)) {
			KUNIT_ASSERT_EQ_MSG(test, (u32)ret,
					    (u32)DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2),
					    "round %d", round);
			KUNIT_ASSERT_FALSE(test, km_bound(km, lmr));
			continue;
		}
		KUNIT_ASSERT_EQ_MSG(test, (u32)ret, 0U, "round %d", round);
		good++;
		fs_done(km);
		km_param(km, lmr, &param);
		KUNIT_EXPECT_EQ(test, param.registered_address, addr);
		KUNIT_EXPECT_EQ(test, param.registered_size, sg.length);
		fs_check_bytes(km, &sg, &keys, addr);
		KD_EXPECT_OK(test, km_send(km, keys.lmr, addr, sg.length, 1));
		KM_EXPECT_TYPE(test, km_send(km, keys.lmr, addr, sg.length + 1, 1),
			       DAT_INVALID_PARAMETER);
		KM_EXPECT_TYPE(test, km_send(km, keys.lmr, addr - 1, 1, 1), DAT_INVALID_PARAMETER);
		km_done(km, IB_WC_SUCCESS);
		km_expect(km, DAT_DTO_SEND, 1, DAT_DTO_SUCCESS);
		km_unbind(km, lmr);
	}
	KUNIT_EXPECT_GT(test, good, FS_ROUNDS / 10);
	KUNIT_EXPECT_LT(test, good, FS_ROUNDS);
}

static void fs_zero_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_LMR_HANDLE lmr = km_lmr(km, 2, DAT_LMR_SCOPE_PZ);
	struct scatterlist sgl[2];
	struct kdat_sg sg = { .sgl = sgl, .nents = 2, .length = 100 };
	struct km_keys keys;
	DAT_VADDR addr = 7;

	sg_init_table(sgl, 2);
	sg_set_page(&sgl[0], km->page[0], PAGE_SIZE, 0);
	sg_set_page(&sgl[1], km->page[1], PAGE_SIZE, 0);
	for (sg.offset = 0; sg.offset < 2 * PAGE_SIZE - 100; sg.offset += 512) {
		DAT_RETURN ret = fs_fmr(km, lmr, &sg, KM_REMOTE, DAT_VA_TYPE_ZB, 0, &keys, &addr);

		if (sg.offset % PAGE_SIZE) {
			KD_EXPECT_RET(test, ret, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
			continue;
		}
		KD_ASSERT_OK(test, ret);
		KUNIT_EXPECT_EQ(test, addr, 0ULL);
		fs_done(km);
		fs_check_bytes(km, &sg, &keys, 0);
		km_unbind(km, lmr);
	}
	/* nor where it would be flushed: nothing is mapped then, and so nothing found */
	km_down(km);
	sg.offset = 512;
	KD_EXPECT_RET(test, fs_fmr(km, lmr, &sg, KM_REMOTE, DAT_VA_TYPE_ZB, 0, &keys, &addr),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
}

static void fs_joined_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_LMR_HANDLE lmr = km_lmr(km, 2, DAT_LMR_SCOPE_PZ);
	struct scatterlist sgl[FS_ENTS];
	struct kdat_sg sg = { .sgl = sgl, .nents = FS_ENTS };
	struct km_keys keys;
	DAT_VADDR addr;
	int i;

	/* pieces of one page that follow each other are no gaps, and no more pages */
	sg_init_table(sgl, FS_ENTS);
	for (i = 0; i < FS_ENTS; i++)
		sg_set_page(&sgl[i], km->page[3], 100, 200 + 100 * i);
	sg.offset = 50;
	sg.length = 700;
	KD_ASSERT_OK(test, fs_fmr(km, lmr, &sg, KM_REMOTE, DAT_VA_TYPE_VA, 0, &keys, &addr));
	KUNIT_EXPECT_EQ(test, addr, (u64)km->pa[3] + 250);
	fs_done(km);
	fs_check_bytes(km, &sg, &keys, addr);
	km_unbind(km, lmr);
	/* empty entries are nothing, wherever they are */
	sg_init_table(sgl, 5);
	sg_set_page(&sgl[0], km->page[9], 0, 13);
	sg_set_page(&sgl[1], km->page[0], PAGE_SIZE - 8, 8);
	sg_set_page(&sgl[2], km->page[8], 0, 17);
	sg_set_page(&sgl[3], km->page[1], 16, 0);
	sg_set_page(&sgl[4], km->page[7], 0, 19);
	sg = (struct kdat_sg) { .sgl = sgl, .nents = 5, .length = PAGE_SIZE + 8 };
	KD_ASSERT_OK(test, fs_fmr(km, lmr, &sg, KM_REMOTE, DAT_VA_TYPE_VA, 0, &keys, &addr));
	fs_done(km);
	fs_check_bytes(km, &sg, &keys, addr);
}

static void fs_args_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_LMR_HANDLE lmr = km_lmr(km, 2, DAT_LMR_SCOPE_PZ);
	struct kdat_sg good, sg;
	struct scatterlist sgl[3];
	struct km_trace before;
	struct km_keys keys;
	DAT_VADDR addr;
	int i;

	sg_init_table(sgl, 3);
	for (i = 0; i < 3; i++)
		sg_set_page(&sgl[i], km->page[i], PAGE_SIZE, 0);
	good = (struct kdat_sg) { .sgl = sgl, .nents = 3, .length = PAGE_SIZE };
	km_trace(km, &before);
#define FS_WRONG(change, arg)								\
	do {										\
		sg = good;								\
		change;									\
		KD_EXPECT_RET(test, fs_fmr(km, lmr, &sg, KM_REMOTE, DAT_VA_TYPE_VA, 0, &keys,	\
					   &addr), DAT_INVALID_PARAMETER, arg);		\
	} while (0)
	FS_WRONG(sg.sgl = NULL, DAT_INVALID_ARG2);
	FS_WRONG(sg.nents = 0, DAT_INVALID_ARG2);
	FS_WRONG(sg.nents = -1, DAT_INVALID_ARG2);
	FS_WRONG(sg.length = 0, DAT_INVALID_ARG2);
	FS_WRONG(sg.length = 3 * PAGE_SIZE + 1, DAT_INVALID_ARG2);
	FS_WRONG(sg.length = U64_MAX, DAT_INVALID_ARG2);
	FS_WRONG(sg.offset = 3 * PAGE_SIZE, DAT_INVALID_ARG2);
	FS_WRONG(sg.offset = U64_MAX, DAT_INVALID_ARG2);
	FS_WRONG(sg.offset = 2 * PAGE_SIZE + 1, DAT_INVALID_ARG2);
	FS_WRONG(sg.length = 3 * PAGE_SIZE, DAT_INVALID_ARG2);	/* more than it takes */
	KD_EXPECT_RET(test, fs_fmr(km, lmr, NULL, KM_REMOTE, DAT_VA_TYPE_VA, 0, &keys, &addr),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	KD_EXPECT_RET(test, fs_fmr(km, lmr, &good, 0x100, DAT_VA_TYPE_VA, 0, &keys, &addr),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	KD_EXPECT_RET(test, fs_fmr(km, lmr, &good, KM_REMOTE, 2, 0, &keys, &addr),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	KD_EXPECT_RET(test, fs_fmr(km, lmr, &good, KM_REMOTE, DAT_VA_TYPE_VA, 2, &keys, &addr),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG7);
	km_untouched(km, &before, "arguments");
	/* the list is the consumer's and comes back as it was */
	KD_EXPECT_OK(test, fs_fmr(km, lmr, &good, KM_REMOTE, DAT_VA_TYPE_VA, 0, &keys, &addr));
	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_PTR_EQ(test, sg_page(&sgl[i]), km->page[i]);
		KUNIT_EXPECT_EQ(test, sgl[i].length, (u32)PAGE_SIZE);
		KUNIT_EXPECT_EQ(test, sg_dma_address(&sgl[i]), (dma_addr_t)0);
	}
	fs_done(km);
}

static struct kunit_case fmr_sg_cases[] = {
	KD_CASE(fs_model_test,
		"FMR-02,FMR-10,EP-POST-14: random lists: these bytes and no other, no gaps"),
	KD_CASE(fs_zero_test, "FMR-02,LMR-06: zero based only from the start of a page"),
	KD_CASE(fs_joined_test, "FMR-02: pieces that follow each other, and empty ones"),
	KD_CASE(fs_args_test, "FMR-06,FMR-08: lists that are none; the list is not changed"),
	{}
};

static struct kunit_suite fmr_sg_suite = {
	.name = "kdapl-fmr-sg",
	.suite_init = kd_suite_init,
	.suite_exit = kd_suite_exit,
	.init = km_init,
	.exit = km_exit,
	.test_cases = fmr_sg_cases,
};

kunit_test_suite(fmr_sg_suite);
