// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Memory of every kind, of dat_lmr_kcreate(), dat_lmr_fmr() and under windows: what a
 * peer and the owner reach through it, to the byte; large regions; the reserved LMR.
 * What the calls refuse is a matter of the suites inside kdapl.ko.
 */
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "kdtest_mem.h"

/* A message out of the region, and one into it. */
static void owner_works(struct kunit *test, struct kdt_region *r, struct kdt_buf *peer, u32 seed)
{
	struct kdt_pair *pair = r->pair;
	u32 len = r->buf.len;

	kdt_fill(r->buf.p, len, seed);
	kdt_message(test, &pair->s, &r->buf, &pair->c, peer, len);
	KUNIT_EXPECT_TRUE_MSG(test, kdt_same(peer->p, len, seed), "%s", r->name);
	kdt_fill(peer->p, len, seed + 1);
	kdt_message(test, &pair->c, peer, &pair->s, &r->buf, len);
	KUNIT_EXPECT_TRUE_MSG(test, kdt_same(r->buf.p, len, seed + 1), "%s", r->name);
}

/* Not a byte before or behind it: the owner's calls are refused, one try of a peer fails. */
static void nothing_beside(struct kunit *test, struct kdt_region *r, int which)
{
	u64 first = r->reg_addr, end = first + r->reg_len;
	const struct {
		u64 va;
		u32 len;
	} bad[] = {
		{ first - 1, 1 }, { end - 1, 2 }, { end, 1 }, { first - 1, r->buf.len },
		{ first, r->buf.len + 1 },
	};
	DAT_RMR_TRIPLET remote = { bad[which % 3].va, bad[which % 3].len, r->buf.rctx };
	DAT_LMR_TRIPLET iov;
	int i;

	for (i = 0; r->buf.lctx && i < ARRAY_SIZE(bad); i++) {
		iov = (DAT_LMR_TRIPLET) { bad[i].va, bad[i].len, r->buf.lctx };
		KDT_TYPE(test, DAT_INVALID_PARAMETER,
			 dat_ep_post_send(r->pair->s.h, 1, &iov, kdt_cookie(1), 0));
		KDT_TYPE(test, DAT_INVALID_PARAMETER,
			 dat_ep_post_recv(r->pair->s.h, 1, &iov, kdt_cookie(1), 0));
	}
	kdt_peer_fails(test, r->mem, &remote, which % 3 != 2);
}

/* Where a region starts, by the kind of memory. */
static u64 region_start(struct kdt_region *r, DAT_VA_TYPE va)
{
	if (va == DAT_VA_TYPE_ZB)
		return 0;
	if (r->kind <= KDT_MODULE || r->kind == KDT_LMR || r->kind == KDT_RMR)
		return (uintptr_t)r->buf.p;
	return r->kind == KDT_BUS ? r->bus.address : r->mem->pages[0] + (r->buf.p - r->mem->p);
}

static void every_kind(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_mem_pair(test, NULL);
	struct kdt_buf *peer = kdt_buf_new(test, &env->a, 2 * SZ_64K);
	struct kdt_region *r = kdt_zalloc(test, sizeof(*r));
	DAT_RMR_TRIPLET remote;
	int kind, va, odd, n = 0;
	u32 len, before;

	KUNIT_EXPECT_EQ(test, (int)env->b.attr.zb_supported, DAT_TRUE);
	for (kind = 0; kind < KDT_KINDS; kind++) {
		for (va = DAT_VA_TYPE_VA; va <= DAT_VA_TYPE_ZB; va++) {
			for (odd = 0; odd <= (va == DAT_VA_TYPE_VA && kdt_kind_odd(kind)); odd++) {
				if (!kdt_region_new(test, r, pair, kind, odd, KDT_RIGHTS, va))
					continue;
				len = r->buf.len;
				KUNIT_EXPECT_EQ_MSG(test, r->reg_len, (u64)len, "%s", r->name);
				KUNIT_EXPECT_EQ_MSG(test, r->reg_addr, region_start(r, va), "%s",
						    r->name);
				kdt_peer_works(test, pair, &r->buf, 0, 1, 1);
				kdt_peer_works(test, pair, &r->buf, len - 1, 1, 2);
				kdt_peer_works(test, pair, &r->buf, 0, len, 3 + kind);
				before = r->buf.p - r->mem->p;
				KUNIT_EXPECT_TRUE_MSG(test, kdt_all(r->mem->p, before, 0) &&
						      kdt_all(r->buf.p + len,
							      r->mem->len - before - len, 0),
						      "beside %s", r->name);
				if (r->buf.lctx)
					owner_works(test, r, peer, 50 + kind);
				nothing_beside(test, r, va + odd);
				KUNIT_EXPECT_TRUE_MSG(test, kdt_guarded(r->mem), "%s", r->name);
				/* closed at once, however it ends; the connection goes on */
				kdt_region_end(test, r, va + odd);
				if (r->buf.lctx)
					kdt_lctx_dead(test, &pair->s, &r->buf);
				remote = kdt_rseg(&r->buf, 0, 64);
				kdt_peer_fails(test, r->mem, &remote, n++ % 2);
				kdt_region_free(test, r);
			}
		}
	}
	kdt_mem_done(test, pair);
}

/* What the peer may with one remote right, and no local one. */
static void one_remote_right(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_mem_pair(test, NULL);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, KDT_REG_LEN);
	struct kdt_region *r = kdt_zalloc(test, sizeof(*r));
	DAT_RMR_TRIPLET remote;
	int kind;
	u32 len;

	for (kind = 0; kind < KDT_KINDS; kind++) {
		if (kind == KDT_LARGE)
			continue;
		kdt_region_new(test, r, pair, kind, false, KDT_W, DAT_VA_TYPE_VA);
		len = r->buf.len;
		kdt_fill(mine->p, len, kind);
		kdt_put(test, &pair->c, mine, 0, len, &r->buf, 0);
		kdt_settle(test, pair);
		KUNIT_EXPECT_TRUE_MSG(test, kdt_same(r->buf.p, len, kind), "%s", r->name);
		remote = kdt_rseg(&r->buf, 0, 64);
		/* siw answers Reads of memory that is not open to them */
		if (!env->b.iwarp)
			kdt_peer_fails(test, r->mem, &remote, false);
		kdt_region_end(test, r, false);
		/* a window has what it is given, and the LMR below has none of it */
		if (kind < KDT_FMR) {
			kdt_region_free(test, r);
			kdt_region_new(test, r, pair, kind, false, KDT_R, DAT_VA_TYPE_VA);
		} else {
			kdt_region_bind(test, r, KDT_R, DAT_VA_TYPE_VA);
		}
		kdt_fill(r->buf.p, len, 100 + kind);
		kdt_fetch(test, &pair->c, mine, 0, len, &r->buf, 0);
		KUNIT_EXPECT_TRUE_MSG(test, kdt_same(mine->p, len, 100 + kind), "%s", r->name);
		remote = kdt_rseg(&r->buf, 0, 64);
		kdt_peer_fails(test, r->mem, &remote, true);
		kdt_region_end(test, r, true);
		kdt_region_free(test, r);
	}
	kdt_settle(test, pair);
}

/* ---- large regions ---- */

#define OURS	SZ_4M		/* contiguous memory of our own inside of it, aligned to its size */

/* At both ends of what is ours, in the middle, and to the last byte; not beyond. */
static void large_works(struct kunit *test, struct kdt_pair *pair, struct kdt_buf *buf, bool first,
			bool last)
{
	const u32 at[] = { 0, SZ_64K - 7, SZ_1M + 4095, buf->len - SZ_64K };
	struct kdt_buf *mine = kdt_buf_new(test, pair->c.ia, SZ_64K);
	DAT_LMR_TRIPLET iov;
	DAT_RMR_TRIPLET remote;
	int i;

	for (i = 0; i < ARRAY_SIZE(at); i++) {
		kdt_fill(mine->p, SZ_64K, i);
		kdt_put(test, &pair->c, mine, 0, SZ_64K, buf, at[i]);
		kdt_settle(test, pair);
		KUNIT_EXPECT_TRUE_MSG(test, kdt_same(buf->p + at[i], SZ_64K, i), "at %u", at[i]);
		memset(mine->p, 0, SZ_64K);
		kdt_fetch(test, &pair->c, mine, 0, SZ_64K, buf, at[i]);
		KUNIT_EXPECT_TRUE_MSG(test, kdt_same(mine->p, SZ_64K, i), "at %u", at[i]);
	}
	KDT_OK(test, dat_lmr_free(mine->lmr));
	for (i = 0; i < 2; i++) {
		if (i ? !last : !first)
			continue;
		iov = kdt_seg(buf, i ? buf->len - 1 : 0, 2);
		remote = kdt_rseg(buf, i ? buf->len - 1 : 0, 2);
		iov.virtual_address -= !i;
		remote.virtual_address -= !i;
		KDT_TYPE(test, DAT_INVALID_PARAMETER,
			 dat_ep_post_send(pair->s.h, 1, &iov, kdt_cookie(1), 0));
		kdt_peer_fails(test, buf, &remote, last && first);
	}
}

static u8 *ours_new(struct kunit *test)
{
	struct kdt_buf *owner = kzalloc(sizeof(*owner), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, owner);
	list_add(&owner->link, &kdt_env(test)->bufs);
	owner->p = kmalloc(OURS, GFP_KERNEL | __GFP_NOWARN);
	KUNIT_ASSERT_NOT_NULL(test, owner->p);
	memset(owner->p, 0, OURS);
	return owner->p;
}

/* false: such a region is more than the device takes, and it says so. */
static bool large_new(struct kunit *test, DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION desc,
		      u64 length, struct kdt_buf *buf, u64 *len, u64 *addr)
{
	struct kdt_ia *b = &kdt_env(test)->b;
	struct kdat_mem_limits limits;
	DAT_RETURN ret;

	kdt_mem_limits(test, b, &limits);
	ret = dat_lmr_kcreate(b->h, type, desc, length, b->pz, KDT_RIGHTS, DAT_VA_TYPE_VA,
			      DAT_MEM_OPTIMIZE_EXACT_EXPOSURE, &buf->lmr, &buf->lctx, &buf->rctx,
			      len, addr);
	if (ret == DAT_SUCCESS || limits.page_sizes & SZ_2M) {
		KDT_OK(test, ret);
		return true;
	}
	KUNIT_EXPECT_TRUE_MSG(test, ret == DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
						     DAT_RESOURCE_MEMORY_REGION) ||
			      ret == DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3),
			      "%s %s", kdt_major(ret), kdt_minor(ret));
	return false;
}

/* One of 4 MiB from an odd byte to another, through the kernel's own mapping. */
static void contiguous(struct kunit *test)
{
	struct kdt_pair *pair = kdt_pair_up(test);
	u8 *p = ours_new(test);
	DAT_REGION_DESCRIPTION desc;
	struct kdt_buf buf = {};
	u64 len, addr;
	u32 cut;

	for (cut = 0; cut <= 12345; cut += 12345) {
		memset(p, 0, OURS);
		buf.p = p + cut;
		buf.len = OURS - 2 * cut;
		desc.for_va = buf.p;
		if (!large_new(test, DAT_MEM_TYPE_VIRTUAL, desc, buf.len, &buf, &len, &addr))
			kunit_skip(test, "no pages of 2 MiB");
		KUNIT_EXPECT_EQ(test, addr, (u64)(uintptr_t)buf.p);
		KUNIT_EXPECT_EQ(test, len, (u64)buf.len);
		large_works(test, pair, &buf, true, true);
		KUNIT_EXPECT_TRUE(test, kdt_all(p, cut, 0) && kdt_all(p + OURS - cut, cut, 0));
		KDT_OK(test, dat_lmr_free(buf.lmr));
	}
}

/* Hundreds of MiB of the machine's memory in one LMR, where some is our own, at one of its ends. */
static void huge_one(struct kunit *test, struct kdt_pair *pair, u8 *p, bool ia, bool last)
{
	struct kdt_ia *b = &kdt_env(test)->b;
	DAT_REGION_DESCRIPTION desc = {};
	struct kdt_buf buf = { .p = p, .len = OURS };
	u64 first = virt_to_phys(p), size = 256ULL << 20, len, addr, i;
	struct kdat_dma_map bus = {};
	DAT_PADDR *pages;

	/* as much of it as there is on that side */
	while (last ? first + OURS < size : !virt_addr_valid(phys_to_virt(first + size - 1)))
		size /= 2;
	first -= last ? size - OURS : 0;
	pages = kdt_zalloc(test, size / SZ_2M * sizeof(*pages));
	for (i = 0; i < size / SZ_2M; i++)
		pages[i] = first + i * SZ_2M;
	desc.for_array.page_size = SZ_2M;
	desc.for_array.pages = pages;
	if (ia) {
		KDT_OK(test, kdat_ia_dma_map(b->h, &bus, phys_to_virt(first), size));
		desc.for_ia = bus.address;
	}
	if (!large_new(test, ia ? DAT_MEM_TYPE_IA : DAT_MEM_TYPE_PHYSICAL_VAR_PAGES, desc,
		       ia ? size : size / SZ_2M, &buf, &len, &addr))
		kunit_skip(test, "no pages of 2 MiB");
	KUNIT_EXPECT_EQ(test, len, size);
	KUNIT_EXPECT_EQ(test, addr, ia ? bus.address : first);
	buf.shift = addr + (last ? size - OURS : 0) - (uintptr_t)p;
	kunit_info(test, "%llu MiB from 0x%llx on, ours at 0x%llx\n", size >> 20, addr,
		   buf.shift + (uintptr_t)p);
	large_works(test, pair, &buf, !last, last);
	KDT_OK(test, dat_lmr_free(buf.lmr));
	if (ia)
		KDT_OK(test, kdat_ia_dma_unmap(b->h, &bus));
}

static void huge(struct kunit *test)
{
	struct kdt_pair *pair = kdt_pair_up(test);
	u8 *p = ours_new(test);
	int i;

	for (i = 0; i < 4; i++)
		huge_one(test, pair, p, i / 2, i % 2);
	kdt_settle(test, pair);
}

/* As many scattered pages as the limits say, to the last byte; and one more. */
static void limits_are_true(struct kunit *test)
{
	struct kdt_ia *b = &kdt_env(test)->b;
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdat_mem_limits limits;
	DAT_REGION_DESCRIPTION region;
	struct kdt_buf *mem;
	DAT_PADDR *pages;
	u32 len, i;

	kdt_mem_limits(test, b, &limits);
	KUNIT_EXPECT_GE(test, limits.lmr_pages, 16);
	KUNIT_EXPECT_GE(test, limits.rmr_pages, 1);
	KUNIT_EXPECT_LE(test, limits.rmr_pages, limits.lmr_pages);
	KUNIT_EXPECT_NE(test, (u64)limits.page_sizes & PAGE_SIZE, 0);
	KUNIT_EXPECT_EQ(test, (u64)limits.fmr_page_sizes & ~(u64)limits.page_sizes, 0);
	KUNIT_EXPECT_GE(test, limits.comp_vectors, 1);
	kunit_info(test, "%d pages in an LMR, sizes 0x%llx\n", limits.lmr_pages,
		   (u64)limits.page_sizes);
	len = limits.lmr_pages * PAGE_SIZE;
	KUNIT_EXPECT_GE(test, (u64)len, (u64)b->attr.max_lmr_block_size);
	mem = kdt_mem_new(test, len, false);
	region.for_va = mem->p;
	KDT_OK(test, dat_lmr_kcreate(b->h, DAT_MEM_TYPE_VIRTUAL, region, len, b->pz, KDT_RIGHTS,
				     DAT_VA_TYPE_VA, 0, &mem->lmr, &mem->lctx, &mem->rctx, NULL,
				     NULL));
	kdt_peer_works(test, pair, mem, 0, 8192, 1);
	kdt_peer_works(test, pair, mem, len - 8192, 8192, 2);
	kdt_peer_works(test, pair, mem, len / 2 - 5, 4099, 3);
	KDT_OK(test, dat_lmr_free(mem->lmr));
	pages = kvcalloc(limits.lmr_pages + 1, sizeof(*pages), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, pages);
	for (i = 0; i <= limits.lmr_pages; i++)
		pages[i] = mem->pages[0];	/* never two that go on in each other */
	region.for_physical = pages;
	KDT_REFUSED(test, DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY_REGION,
		    dat_lmr_kcreate(b->h, DAT_MEM_TYPE_PHYSICAL, region, limits.lmr_pages + 1,
				    b->pz, KDT_RIGHTS, DAT_VA_TYPE_VA, 0, &mem->lmr, NULL, NULL,
				    NULL, NULL));
	kvfree(pages);
}

/* A region at the server, in a PZ of its own, without an LMR yet. */
static struct kdt_region *own_pz(struct kunit *test, DAT_PZ_HANDLE *pz)
{
	struct kdt_region *r = kdt_zalloc(test, sizeof(*r));
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	struct kdt_ep *s = &pair->s;
	DAT_EP_ATTR attr;

	r->pair = pair;
	KDT_OK(test, dat_ep_free(s->h));
	KDT_OK(test, dat_pz_create(s->ia->h, pz));
	kdt_attr(kdt_env(test), &attr);
	KDT_OK(test, dat_ep_create(s->ia->h, *pz, s->recv->h, s->req->h, s->conn->h, &attr, &s->h));
	kdt_pair_connect(test, pair);
	r->mem = kdt_mem_new(test, KDT_REG_LEN, true);
	r->buf = *r->mem;
	r->buf.p += 3;
	r->buf.len -= 10;
	return r;
}

/*
 * All that the owner can do with memory that gives a peer nothing; and its key means nothing
 * to a peer.
 */
static void local_only(struct kunit *test, struct kdt_region *r, bool both)
{
	struct kdt_buf *peer = kdt_buf_new(test, &kdt_env(test)->a, KDT_REG_LEN);
	u32 len = r->buf.len;
	struct kdt_ep *s = &r->pair->s;
	DAT_RMR_TRIPLET remote;

	owner_works(test, r, peer, 1);
	kdt_fill(r->buf.p, len, 3);
	kdt_put(test, s, &r->buf, 0, len, peer, 0);
	if (s->ia->iwarp) {
		/* it is no sink there */
		KDT_TYPE(test, DAT_PRIVILEGES_VIOLATION,
			 kdt_read(s, &r->buf, 0, len, peer, 0, 6, 0));
	} else {
		memset(r->buf.p, 0, len);
		kdt_fetch(test, s, &r->buf, 0, len, peer, 0);
		KUNIT_EXPECT_TRUE(test, kdt_same(r->buf.p, len, 3));
	}
	KUNIT_EXPECT_TRUE(test, kdt_guarded(r->mem));
	kdt_settle(test, r->pair);
	r->buf.rctx = r->buf.lctx;
	remote = kdt_rseg(&r->buf, 0, 64);
	kdt_peer_fails(test, r->mem, &remote, true);
	if (both)
		kdt_peer_fails(test, r->mem, &remote, false);
}

/* All memory by its address, in every PZ of the IA, and for no peer. */
static void reserved_lmr(struct kunit *test)
{
	struct kdt_ia *b = &kdt_env(test)->b;
	struct kdt_region *r;
	DAT_LMR_TRIPLET iov;
	DAT_PZ_HANDLE pz;

	if (b->attr.reserved_lmr_supported == DAT_FALSE)
		kunit_skip(test, "no reserved LMR");
	r = own_pz(test, &pz);
	KDT_OK(test, dat_ia_reserved_lmr(b->h, &r->buf.lmr, &r->buf.lctx));
	KDT_OK(test, kdat_ia_dma_map(b->h, &r->bus, r->mem->p, KDT_REG_LEN));
	r->buf.shift = r->bus.address - (uintptr_t)r->mem->p;
	/* all there is to check is that it does not wrap around */
	iov = (DAT_LMR_TRIPLET) { -10ULL, 100, r->buf.lctx };
	KDT_TYPE(test, DAT_INVALID_PARAMETER,
		 dat_ep_post_send(r->pair->s.h, 1, &iov, kdt_cookie(7), 0));
	KDT_TYPE(test, DAT_INVALID_PARAMETER,
		 dat_ep_post_recv(r->pair->s.h, 1, &iov, kdt_cookie(7), 0));
	local_only(test, r, true);
	KDT_OK(test, kdat_ia_dma_unmap(b->h, &r->bus));
}

/* Memory of the owner that is not registered: its PZ needs nothing that registers memory. */
static void not_registered(struct kunit *test)
{
	DAT_REGION_DESCRIPTION desc;
	DAT_PZ_HANDLE pz;
	struct kdt_region *r = own_pz(test, &pz);

	desc.for_va = r->buf.p;
	KDT_OK(test, dat_lmr_kcreate(r->pair->s.ia->h, DAT_MEM_TYPE_VIRTUAL, desc, r->buf.len, pz,
				     DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG,
				     DAT_VA_TYPE_VA, DAT_MEM_OPTIMIZE_IA, &r->buf.lmr,
				     &r->buf.lctx, &r->buf.rctx, &r->reg_len, &r->reg_addr));
	KUNIT_EXPECT_EQ(test, r->reg_len, (u64)r->buf.len);
	KUNIT_EXPECT_EQ(test, r->reg_addr, (u64)(uintptr_t)r->buf.p);
	KUNIT_EXPECT_EQ(test, r->buf.rctx, 0U);
	KDT_TYPE(test, DAT_INVALID_PARAMETER, kdt_send(&r->pair->s, &r->buf, 1, r->buf.len, 7, 0));
	local_only(test, r, false);
	KDT_OK(test, dat_lmr_free(r->buf.lmr));
}

static struct kunit_case cases[] = {
	KD_CASE(every_kind,
		"LMR-01,LMR-02,LMR-04..06,LMR-11,LMR-FREE-03,FMR-02,RMR-09,RMR-14: to the byte"),
	KD_CASE(one_remote_right,
		"LMR-03,LMR-09,FMR-05,RMR-07,RDMAW-14: one remote right opens one direction"),
	KD_CASE(limits_are_true, "LMR-08,LMR-20,IA-QRY-02: limits say what works"),
	KD_CASE(contiguous, "LMR-01,LMR-04: 4 MiB through larger pages"),
	KD_CASE(huge, "LMR-01,LMR-04: 256 MiB of the machine's memory in one region"),
	KD_CASE(not_registered, "LMR-03,LMR-09,D-107: memory of our own that is not registered"),
	KD_CASE(reserved_lmr, "LMR-RES-01,LMR-RES-02,SIL-18: all memory, and for us only"),
	{}
};

struct kunit_suite kdt_mem_suite = { .name = "kdtest-mem", KDT_CASES };
