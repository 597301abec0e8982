// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Fast registration: what reaches the device, what the keys are worth, and when. Arguments:
 * mem_args_test.c. Flags, failures, flushes, freeing: mem_op_test.c.
 */
#include <linux/mm.h>
#include <linux/prandom.h>
#include <linux/random.h>

#include "kd_mem.h"

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
	int priv, va, i, n = 0;
	u64 start;

	for (priv = 0; priv <= KM_ALL; priv++) {
		DAT_REGION_DESCRIPTION region = { .for_physical = km->pa + (priv & 3) };
		DAT_LMR_COOKIE cookie = { .as_64 = priv };

		if (priv & ~KM_ALL)
			continue;
		n = n % 8 + 1;
		va = n % 2 ? DAT_VA_TYPE_VA : DAT_VA_TYPE_ZB;
		start = n % 2 ? km->pa[priv & 3] : 0;
		KD_ASSERT_OK(test, dat_lmr_fmr(lmr, DAT_MEM_TYPE_PHYSICAL, region, n, priv, va,
					       km->env.ep, cookie, 0, &keys.lmr, &keys.rmr));
		km_last(km, &wr);
		KUNIT_EXPECT_EQ(test, (int)wr.opcode, (int)IB_WR_REG_MR);
		KUNIT_EXPECT_EQ(test, wr.send_flags, (int)IB_SEND_SIGNALED);
		KUNIT_EXPECT_EQ(test, wr.rkey, keys.lmr);
		KUNIT_EXPECT_EQ(test, keys.rmr, priv & KM_REMOTE ? wr.rkey : 0);
		KUNIT_EXPECT_EQ(test, wr.access, fm_access(priv));
		KUNIT_EXPECT_EQ(test, wr.remote_addr, start);
		KUNIT_EXPECT_EQ(test, wr.length, n * (u64)PAGE_SIZE);
		KUNIT_EXPECT_EQ(test, wr.page_size, (u32)PAGE_SIZE);
		KUNIT_EXPECT_EQ(test, wr.npages, (u32)n);
		for (i = 0; i < n; i++)
			KUNIT_EXPECT_EQ(test, wr.pages[i],
					(u64)(uintptr_t)km_bytes(km, (priv & 3) + i));
		km_finish(km, DAT_DTO_LMR_FMR, priv);
		km_param(km, lmr, &param);
		KUNIT_EXPECT_TRUE(test, param.lmr_state.bound);
		KUNIT_EXPECT_EQ(test, (int)param.mem_priv, priv);
		KUNIT_EXPECT_EQ(test, param.lmr_context, keys.lmr);
		KUNIT_EXPECT_EQ(test, param.rmr_context, keys.rmr);
		KUNIT_EXPECT_EQ(test, (int)param.va_type, va);
		KUNIT_EXPECT_EQ(test, param.registered_address, start);
		KUNIT_EXPECT_EQ(test, param.registered_size, n * (u64)PAGE_SIZE);
		km_unbind(km, lmr);
	}
}

static void fm_rotate_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_LMR_HANDLE lmr = km_lmr(km, 1, DAT_LMR_SCOPE_PZ);
	DAT_LMR_CONTEXT last = 0, ahead, again;
	DAT_RMR_CONTEXT rmr_ahead;
	unsigned int seen[256] = {};
	struct km_keys keys;
	int i, values = 0, plus_one = 0;

	for (i = 0; i < 300; i++) {
		/* asking changes nothing, and a refused fmr uses nothing up */
		KD_EXPECT_OK(test, kdat_lmr_next_contexts(lmr, &ahead, &rmr_ahead));
		KD_EXPECT_OK(test, kdat_lmr_next_contexts(lmr, &again, NULL));
		KUNIT_EXPECT_EQ(test, again, ahead);
		KM_EXPECT_TYPE(test, km_try_fmr(km, lmr, 0, 2, KM_ALL, 0, 1, &keys),
			       DAT_INVALID_PARAMETER);
		km_bind(km, lmr, 0, 1, i % 2 ? KM_LOCAL : KM_ALL, &keys);
		KUNIT_EXPECT_EQ(test, keys.lmr, ahead);
		KUNIT_EXPECT_EQ(test, keys.rmr, i % 2 ? 0 : rmr_ahead);
		KUNIT_EXPECT_NE(test, keys.lmr, 0U);
		if (last) {
			KUNIT_EXPECT_NE(test, keys.lmr, last);
			/* only the low byte changes; who knows one does not know the next */
			KUNIT_EXPECT_EQ(test, keys.lmr >> 8, last >> 8);
			KM_EXPECT_TYPE(test, km_send(km, last, km->pa[0], 1, 0),
				       DAT_PRIVILEGES_VIOLATION);
			KUNIT_EXPECT_FALSE(test, km_valid(km, last));
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

static void fm_by_context_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	const struct kd_mem *mem = &km->env.mem[KD_RW];
	DAT_LMR_HANDLE lmr = km_lmr(km, 1, DAT_LMR_SCOPE_PZ), found = NULL;
	DAT_IA_HANDLE ia = km->env.ia;
	struct km_keys keys;

	KD_EXPECT_OK(test, kdat_lmr_by_context(ia, mem->lmr_context, &found));
	KUNIT_EXPECT_PTR_EQ(test, found, mem->lmr);
	KD_BAD_ARG(test, kdat_lmr_by_context(ia, 0, &found), 2);
	KD_BAD_ARG(test, kdat_lmr_by_context(ia, mem->lmr_context ^ 1, &found), 2);
	KD_BAD_ARG(test, kdat_lmr_by_context(ia, ~0U, &found), 2);
	km_bind(km, lmr, 0, 1, KM_LOCAL, &keys);
	KD_EXPECT_OK(test, kdat_lmr_by_context(ia, keys.lmr, &found));
	KUNIT_EXPECT_PTR_EQ(test, found, lmr);
	km_unbind(km, lmr);
	KD_BAD_ARG(test, kdat_lmr_by_context(ia, keys.lmr, &found), 2);
	KUNIT_EXPECT_PTR_EQ(test, found, lmr);
}

static void fm_busy_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_LMR_HANDLE lmr = km_lmr(km, 2, DAT_LMR_SCOPE_PZ);
	struct km_trace before;
	struct km_keys keys, none;
	int step;

	KD_ASSERT_OK(test, km_try_fmr(km, lmr, 0, 2, KM_ALL, 0, 1, &keys));
	/* posted, bound, being invalidated: not once more */
	for (step = 0; step < 3; step++) {
		km_trace(km, &before);
		KD_BAD_STATE(test, km_try_fmr(km, lmr, 4, 2, KM_ALL, 0, 9, &none), LMR_IN_USE);
		km_untouched(km, &before, "fmr of a busy LMR");
		if (step == 0) {
			km_finish(km, DAT_DTO_LMR_FMR, 1);
			KUNIT_EXPECT_TRUE(test, km_valid(km, keys.lmr));
		} else if (step == 1) {
			KD_EXPECT_OK(test, km_try_inv(km, lmr, 0, 2));
			/* the memory may not be reused before its end */
			KUNIT_EXPECT_TRUE(test, km_bound(km, lmr));
			km_trace(km, &before);
			KD_BAD_STATE(test, km_try_inv(km, lmr, 0, 3), LMR_FREE);
			km_untouched(km, &before, "second invalidate");
		}
	}
	/* done at the device, but nobody has looked: the next fmr does */
	km_done(km, IB_WC_SUCCESS);
	KD_EXPECT_OK(test, km_try_fmr(km, lmr, 4, 2, KM_ALL, 0, 4, &none));
	km_expect(km, DAT_DTO_LMR_INVALIDATE, 2, DAT_DTO_SUCCESS);
	km_finish(km, DAT_DTO_LMR_FMR, 4);
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
		KM_EXPECT_TYPE(test, km_try_fmr(km, lmr, 0, 4, KM_ALL, 0, 1, &keys),
			       DAT_INSUFFICIENT_RESOURCES);
		km_trace(km, &after);
		KUNIT_EXPECT_EQ(test, after.posted, before.posted);
		KUNIT_EXPECT_EQ(test, after.used, before.used);
		KUNIT_EXPECT_FALSE(test, km_bound(km, lmr));
	}
	KD_EXPECT_EMPTY(test, km->env.req);
	km_bind(km, lmr, 0, 4, KM_ALL, &keys);
	km_unbind(km, lmr);
}

/*
 * kdat_lmr_fmr_sg(): a model that knows nothing but the list says which bytes a key
 * reaches and which lists have gaps.
 */
#define FS_ENTS		8
#define FS_ROUNDS	600

static DAT_RETURN fs_fmr(struct km *km, DAT_LMR_HANDLE lmr, const struct kdat_sg *sg, int va_type,
			 struct km_keys *keys, DAT_VADDR *addr)
{
	DAT_LMR_COOKIE cookie = { .as_64 = 0x56 };

	return kdat_lmr_fmr_sg(lmr, sg, KM_ALL, va_type, km->env.ep, cookie, 0, &keys->lmr,
			       &keys->rmr, addr);
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

/* Every byte of the region, or some of many, and the two beside it. */
static void fs_check_bytes(struct km *km, const struct kdat_sg *sg, const struct km_keys *keys,
			   u64 addr)
{
	u64 pos, step = sg->length > 256 ? 61 : 1;
	struct kunit *test = km->env.test;
	u8 *byte;

	for (pos = 0; pos < sg->length + step - 1; pos += step) {
		byte = fs_byte(sg->sgl, sg->nents, sg->offset + min(pos, sg->length - 1));
		*byte = 0;
		KUNIT_ASSERT_TRUE(test, km_writes(km, keys->rmr, addr + min(pos, sg->length - 1)));
		KUNIT_ASSERT_EQ(test, *byte, 1);
	}
	KUNIT_EXPECT_FALSE(test, km_reads(km, keys->rmr, addr - 1));
	KUNIT_EXPECT_FALSE(test, km_reads(km, keys->rmr, addr + sg->length));
	KUNIT_EXPECT_EQ(test, fake_ib_access(km->env.dev, keys->rmr, addr, byte, 0,
					     IB_ACCESS_REMOTE_READ), 0);
}

/*
 * A list of the sort the block layer makes, most of the time: whole pages, but for the ends. Now
 * and then an entry is empty, is cut, or goes on where the one before ends.
 */
static void fs_random_list(struct km *km, struct rnd_state *rnd, struct scatterlist *sgl, int n)
{
	u32 offset, length, end = 0, r;
	struct page *page = NULL;
	int i;

	sg_init_table(sgl, n);
	for (i = 0; i < n; i++) {
		r = prandom_u32_state(rnd);
		if (end % PAGE_SIZE && r % 4) {
			offset = end;
		} else {
			page = km->page[(i * 5 + (r & 3)) % KM_PAGES];
			offset = i && r % 16 ? 0 : (r >> 8) % PAGE_SIZE;
		}
		length = PAGE_SIZE - offset;
		if (i == n - 1 || !((r >> 4) % 8))
			length = 1 + (r >> 20) % length;
		if (i && !((r >> 12) % 16))
			length = 0;
		else
			end = offset + length;
		sg_set_page(&sgl[i], page, length, offset);
	}
}

static void fs_round(struct km *km, DAT_LMR_HANDLE lmr, struct rnd_state *rnd, int *good)
{
	struct scatterlist sgl[FS_ENTS];
	int i, n = 1 + prandom_u32_state(rnd) % FS_ENTS;
	bool zb = prandom_u32_state(rnd) % 2;
	struct kdat_sg sg = { .sgl = sgl, .nents = n };
	struct kunit *test = km->env.test;
	struct km_keys keys;
	DAT_LMR_PARAM param;
	DAT_VADDR addr;
	DAT_RETURN ret;
	u64 total = 0;

	fs_random_list(km, rnd, sgl, n);
	for (i = 0; i < n; i++)
		total += sgl[i].length;
	sg.offset = prandom_u32_state(rnd) & 1 ? prandom_u32_state(rnd) % total : 0;
	sg.length = prandom_u32_state(rnd) & 1 ? total - sg.offset :
		    1 + prandom_u32_state(rnd) % (total - sg.offset);
	ret = fs_fmr(km, lmr, &sg, zb ? DAT_VA_TYPE_ZB : DAT_VA_TYPE_VA, &keys, &addr);
	/* zero based it starts with a page */
	if (fs_gap(sgl, n, sg.offset, sg.length) ||
	    (zb && (uintptr_t)fs_byte(sgl, n, sg.offset) % PAGE_SIZE)) {
		KD_BAD_ARG(test, ret, 2);
		KUNIT_ASSERT_FALSE(test, km_bound(km, lmr));
		return;
	}
	KD_ASSERT_OK(test, ret);
	++*good;
	km_finish(km, DAT_DTO_LMR_FMR, 0x56);
	km_param(km, lmr, &param);
	KUNIT_EXPECT_EQ(test, param.registered_address, addr);
	KUNIT_EXPECT_EQ(test, param.registered_size, sg.length);
	if (zb)
		KUNIT_EXPECT_EQ(test, addr, 0ULL);
	fs_check_bytes(km, &sg, &keys, addr);
	KD_EXPECT_OK(test, km_send(km, keys.lmr, addr, sg.length, 1));
	KD_BAD_ARG(test, km_send(km, keys.lmr, addr, sg.length + 1, 1), 3);
	KD_BAD_ARG(test, km_send(km, keys.lmr, addr - 1, 1, 1), 3);
	km_finish(km, DAT_DTO_SEND, 1);
	km_unbind(km, lmr);
}

static void fs_model_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_LMR_HANDLE lmr = km_lmr(km, FS_ENTS, DAT_LMR_SCOPE_PZ);
	struct scatterlist one;
	const struct kdat_sg sg = { .sgl = &one, .nents = 1, .offset = 512, .length = 100 };
	u32 seed = get_random_u32();
	struct rnd_state rnd;
	int round, good = 0;
	struct km_keys keys;
	DAT_VADDR addr;

	kunit_info(test, "seed %#x\n", seed);
	prandom_seed_state(&rnd, seed);
	for (round = 0; round < FS_ROUNDS; round++)
		fs_round(km, lmr, &rnd, &good);
	KUNIT_EXPECT_GT(test, good, FS_ROUNDS / 10);
	KUNIT_EXPECT_LT(test, good, FS_ROUNDS);
	/* nor where it would be flushed: nothing is mapped then, and so nothing found */
	sg_init_table(&one, 1);
	sg_set_page(&one, km->page[0], PAGE_SIZE, 0);
	km_down(km);
	KD_BAD_ARG(test, fs_fmr(km, lmr, &sg, DAT_VA_TYPE_ZB, &keys, &addr), 2);
}

static struct kunit_case fmr_cases[] = {
	KD_CASE(fm_native_test,
		"FMR-02,FMR-05,FMR-08,LMR-06,LMR-21: what reaches the device, by rights"),
	KD_CASE(fm_rotate_test, "FMR-04,FMR-05: other keys each time, which can be asked for"),
	KD_CASE(fm_by_context_test, "C-10: an LMR is found by its key while segments may name it"),
	KD_CASE(fm_busy_test, "FMR-06,FMR-10,FMR-12: one binding at a time"),
	KD_CASE(fm_map_fails_test, "FMR-02,GEN-07: a mapping that fails leaves nothing behind"),
	KD_CASE(fs_model_test,
		"FMR-02,FMR-10,LMR-06,EP-POST-14: random lists: these bytes and no other, no gaps"),
	{}
};

KD_SUITE("kdapl-fmr", fmr_cases, km_init, km_exit);
