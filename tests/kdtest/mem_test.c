// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * dat_lmr_kcreate() of every type of memory: what a peer and the owner reach
 * through it, to the byte; large regions; the reserved LMR; hints and syncs.
 */
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "kdtest_mem.h"

#define PAGES	5
#define LEN	(PAGES * PAGE_SIZE)

#define REMOTE	(DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG)

enum mem_kind { VIRTUAL, PHYSICAL, VAR_SMALL, VAR_LARGE, PLATFORM, IA, LMR, KINDS };

static const struct {
	const char *name;
	int type;
	bool contiguous;	/* the memory it needs */
	bool odd;		/* it may start and end inside of pages */
} kinds[KINDS] = {
	[VIRTUAL] = { "VIRTUAL", DAT_MEM_TYPE_VIRTUAL, false, true },
	[PHYSICAL] = { "PHYSICAL", DAT_MEM_TYPE_PHYSICAL, false, false },
	[VAR_SMALL] = { "pages of 4 KiB", DAT_MEM_TYPE_PHYSICAL_VAR_PAGES, false, false },
	[VAR_LARGE] = { "pages of 64 KiB", DAT_MEM_TYPE_PHYSICAL_VAR_PAGES, true, false },
	[PLATFORM] = { "PLATFORM", DAT_MEM_TYPE_PLATFORM, false, true },
	[IA] = { "IA", DAT_MEM_TYPE_IA, true, true },
	[LMR] = { "LMR", DAT_MEM_TYPE_LMR, false, true },
};

/* A region of one of these kinds; @buf is what it covers. */
struct region {
	struct kdt_ia *ia;
	struct kdt_buf *mem;	/* what it lies in */
	struct kdt_buf buf;
	enum mem_kind kind;
	DAT_MEM_TYPE type;
	DAT_REGION_DESCRIPTION desc;
	u64 length;		/* as the call wants it */
	u64 start;		/* where it starts, without ZB */
	struct sg_table sgt;
	struct scatterlist sg[PAGES + 1];
	DAT_PADDR bus;
	DAT_LMR_HANDLE source;
	DAT_VLEN reg_len;
	DAT_VADDR reg_addr;
};

/* Says what the memory is; nothing is registered yet but the source of an LMR. */
static void region_describe(struct kunit *test, struct region *r, u32 offset, u32 len)
{
	DAT_LMR_CONTEXT lctx;
	u32 done = 0, i = 0, part;

	r->type = kinds[r->kind].type;
	r->buf.p = r->mem->p + offset;
	r->buf.len = len;
	r->length = len;
	r->start = r->mem->pages[0] + offset;
	switch (r->kind) {
	case VIRTUAL:
		r->desc.for_va = r->buf.p;
		r->start = (uintptr_t)r->buf.p;
		break;
	case PHYSICAL:
		r->desc.for_physical = r->mem->pages;
		r->length = len / PAGE_SIZE;
		break;
	case VAR_SMALL:
		r->desc.for_array.page_size = PAGE_SIZE;
		r->desc.for_array.pages = r->mem->pages;
		r->length = len / PAGE_SIZE;
		break;
	case VAR_LARGE:
		for (i = 0; i < len / SZ_64K; i++)
			r->mem->pages[i] = r->mem->pages[0] + i * SZ_64K;
		r->desc.for_array.page_size = SZ_64K;
		r->desc.for_array.pages = r->mem->pages;
		r->length = len / SZ_64K;
		break;
	case PLATFORM:
		sg_init_table(r->sg, DIV_ROUND_UP(offset_in_page(r->buf.p) + len, PAGE_SIZE));
		for (; done < len; done += part) {
			u8 *p = r->buf.p + done;

			part = min_t(u32, len - done, PAGE_SIZE - offset_in_page(p));
			sg_set_page(&r->sg[i++], vmalloc_to_page(p), part, offset_in_page(p));
		}
		r->sgt.sgl = r->sg;
		r->sgt.orig_nents = i;
		r->sgt.nents = i;
		r->desc.for_platform = &r->sgt;
		break;
	case IA:
		KDT_OK(test, kdat_ia_dma_map(r->ia->h, r->buf.p, len, &r->bus));
		r->desc.for_ia = r->bus;
		r->start = r->bus;
		break;
	case LMR:
		r->desc.for_va = r->buf.p;
		KDT_OK(test, dat_lmr_kcreate(r->ia->h, DAT_MEM_TYPE_VIRTUAL, r->desc, len,
					     r->ia->pz, DAT_MEM_PRIV_NONE_FLAG, DAT_VA_TYPE_VA, 0,
					     &r->source, &lctx, NULL, NULL, NULL));
		r->desc.for_lmr_handle = r->source;
		r->length = 0;		/* not looked at */
		r->start = (uintptr_t)r->buf.p;
		break;
	default:
		break;
	}
}

static DAT_RETURN region_create(struct region *r, DAT_PZ_HANDLE pz, int rights, DAT_VA_TYPE va)
{
	DAT_RETURN ret;

	r->buf.shift = (va == DAT_VA_TYPE_ZB ? 0 : r->start) - (uintptr_t)r->buf.p;
	r->buf.rctx = 0xdead;
	ret = dat_lmr_kcreate(r->ia->h, r->type, r->desc, r->length, pz, rights, va,
			      DAT_MEM_OPTIMIZE_EXACT_EXPOSURE, &r->buf.lmr, &r->buf.lctx,
			      &r->buf.rctx, &r->reg_len, &r->reg_addr);
	/* nothing the call has read is needed any more */
	if (ret == DAT_SUCCESS && r->kind == PLATFORM)
		memset(r->sg, 0xa5, sizeof(r->sg));
	if (ret == DAT_SUCCESS && r->kind == LMR)
		ret = dat_lmr_free(r->source);
	return ret;
}

static void region_free(struct kunit *test, struct region *r)
{
	KDT_OK(test, dat_lmr_free(r->buf.lmr));
	if (r->kind == IA)
		KDT_OK(test, kdat_ia_dma_unmap(r->ia->h, r->bus, r->buf.len));
}

/* false: this device has no such regions, and says so. */
static bool region_new(struct kunit *test, struct region *r, enum mem_kind kind, bool odd,
		       DAT_PZ_HANDLE pz, int rights, DAT_VA_TYPE va)
{
	struct kdt_ia *ia = &kdt_env(test)->b;
	struct kdat_mem_limits limits;
	u32 len = LEN;

	kdt_mem_limits(test, ia, &limits);
	memset(r, 0, sizeof(*r));
	r->kind = kind;
	r->ia = ia;
	if (kind == VAR_LARGE) {
		if (!(limits.page_sizes & SZ_64K))
			return false;
		len = 2 * SZ_64K;
	}
	r->mem = kdt_mem_new(test, len, kinds[kind].contiguous);
	if (odd)
		region_describe(test, r, 77, len - 77 - 333);
	else
		region_describe(test, r, 0, len);
	KDT_OK(test, region_create(r, pz ?: ia->pz, rights, va));
	return true;
}

static const char *region_name(struct kunit *test, const struct region *r, bool odd, int va)
{
	char *name = kunit_kzalloc(test, 64, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, name);
	snprintf(name, 64, "%s%s%s", kinds[r->kind].name, odd ? ", odd" : "",
		 va == DAT_VA_TYPE_ZB ? ", ZB" : "");
	return name;
}

static void check_query(struct kunit *test, struct region *r, int rights, int va, const char *name)
{
	DAT_LMR_PARAM param = {};

	KDT_OK(test, dat_lmr_query(r->buf.lmr, DAT_LMR_FIELD_ALL, &param));
	KUNIT_EXPECT_EQ_MSG(test, (int)param.mem_type, (int)r->type, "%s", name);
	if (r->kind != LMR)
		KUNIT_EXPECT_EQ_MSG(test, param.length, r->length, "%s", name);
	KUNIT_EXPECT_EQ_MSG(test, (int)param.mem_priv, rights, "%s", name);
	KUNIT_EXPECT_EQ_MSG(test, (int)param.va_type, va, "%s", name);
	KUNIT_EXPECT_EQ_MSG(test, param.lmr_context, r->buf.lctx, "%s", name);
	KUNIT_EXPECT_EQ_MSG(test, param.rmr_context, r->buf.rctx, "%s", name);
	KUNIT_EXPECT_EQ_MSG(test, param.registered_size, r->reg_len, "%s", name);
	KUNIT_EXPECT_EQ_MSG(test, param.registered_address, r->reg_addr, "%s", name);
	KUNIT_EXPECT_EQ(test, (int)param.lmr_state.fmr_support, DAT_FALSE);
	KUNIT_EXPECT_EQ(test, (int)param.lmr_state.bound, DAT_TRUE);
	KUNIT_EXPECT_EQ_MSG(test, r->reg_len, (u64)r->buf.len, "%s", name);
	KUNIT_EXPECT_EQ_MSG(test, r->reg_addr, r->buf.shift + (uintptr_t)r->buf.p, "%s", name);
}

static void round_trips(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *back = kdt_buf_new(test, &env->a, 2 * SZ_64K);
	struct region *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	const char *name;
	int kind, va, odd;
	u32 len;

	KUNIT_ASSERT_NOT_NULL(test, r);
	for (kind = 0; kind < KINDS; kind++) {
		if (kinds[kind].type && !(env->b.prov.lmr_mem_types_supported & kinds[kind].type))
			KUNIT_FAIL(test, "%s is not offered", kinds[kind].name);
		for (va = DAT_VA_TYPE_VA; va <= DAT_VA_TYPE_ZB; va++) {
			for (odd = 0; odd <= (va == DAT_VA_TYPE_VA && kinds[kind].odd); odd++) {
				if (!region_new(test, r, kind, odd, NULL, KDT_RIGHTS, va))
					continue;
				name = region_name(test, r, odd, va);
				check_query(test, r, KDT_RIGHTS, va, name);
				len = r->buf.len;
				/* first and last byte, and what lies between, by the peer */
				kdt_peer_works(test, pair, &r->buf, 0, 1, 1);
				kdt_peer_works(test, pair, &r->buf, len - 1, 1, 2);
				kdt_peer_works(test, pair, &r->buf, 0, len, 3 + kind);
				/* and by the owner: a message out of it and one into it */
				KDT_OK(test, kdt_recv(&pair->c, back, 0, len, 1));
				KDT_OK(test, kdt_send(&pair->s, &r->buf, 0, len, 2, 0));
				kdt_dto(test, pair->s.req, &pair->s, 2, DAT_DTO_SEND,
					DAT_DTO_SUCCESS, len);
				kdt_dto(test, pair->c.recv, &pair->c, 1, DAT_DTO_RECEIVE,
					DAT_DTO_SUCCESS, len);
				KUNIT_EXPECT_TRUE_MSG(test, kdt_same(back->p, len, 3 + kind), "%s",
						      name);
				kdt_fill(back->p, len, 50 + kind);
				KDT_OK(test, kdt_recv(&pair->s, &r->buf, 0, len, 3));
				KDT_OK(test, kdt_send(&pair->c, back, 0, len, 4, 0));
				kdt_dto(test, pair->c.req, &pair->c, 4, DAT_DTO_SEND,
					DAT_DTO_SUCCESS, len);
				kdt_dto(test, pair->s.recv, &pair->s, 3, DAT_DTO_RECEIVE,
					DAT_DTO_SUCCESS, len);
				KUNIT_EXPECT_TRUE_MSG(test, kdt_same(r->buf.p, len, 50 + kind),
						      "%s", name);
				KUNIT_EXPECT_TRUE_MSG(test, kdt_guarded(r->mem), "%s", name);
				region_free(test, r);
				kdt_lctx_dead(test, &pair->s, &r->buf);
			}
		}
	}
	kdt_settle(test, pair);
	kdt_mem_down(test, pair);
}

/* One byte before, one behind, across both ends, and around the top of all addresses. */
static void bounds(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct region *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	DAT_LMR_TRIPLET iov;
	DAT_RMR_TRIPLET remote;
	const char *name;
	int kind, va, odd, i;

	KUNIT_ASSERT_NOT_NULL(test, r);
	for (kind = 0; kind < KINDS; kind++) {
		for (va = DAT_VA_TYPE_VA; va <= DAT_VA_TYPE_ZB; va++) {
			odd = va == DAT_VA_TYPE_VA && kinds[kind].odd;
			if (!region_new(test, r, kind, odd, NULL, KDT_RIGHTS, va))
				continue;
			name = region_name(test, r, odd, va);
			for (i = 0; i < 5; i++) {
				u64 first = r->reg_addr, end = first + r->reg_len;
				const struct {
					u64 va;
					u32 len;
				} bad[] = {
					{ first - 1, 1 }, { end, 1 }, { first - 1, r->buf.len },
					{ end - 1, 2 }, { first, r->buf.len + 1 },
				};

				iov = (DAT_LMR_TRIPLET) {
					.virtual_address = bad[i].va,
					.segment_length = bad[i].len,
					.lmr_context = r->buf.lctx,
				};
				KDT_TYPE(test, DAT_INVALID_PARAMETER,
					 dat_ep_post_send(pair->s.h, 1, &iov, kdt_cookie(1), 0));
				KDT_TYPE(test, DAT_INVALID_PARAMETER,
					 dat_ep_post_recv(pair->s.h, 1, &iov, kdt_cookie(1), 0));
				/* every second one by a peer, each over a connection of its own */
				remote = (DAT_RMR_TRIPLET) {
					.virtual_address = bad[i].va,
					.segment_length = bad[i].len,
					.rmr_context = r->buf.rctx,
				};
				if (i < 2 || i == 3)
					kdt_peer_fails(test, r->mem, &remote, i != 1);
			}
			KUNIT_EXPECT_TRUE_MSG(test, kdt_guarded(r->mem), "%s", name);
			region_free(test, r);
		}
	}
	KUNIT_EXPECT_EQ(test, (int)env->b.attr.zb_supported, DAT_TRUE);
	kdt_settle(test, pair);
}

static void freed(struct kunit *test)
{
	struct region *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	int kind;

	KUNIT_ASSERT_NOT_NULL(test, r);
	for (kind = 0; kind < KINDS; kind++) {
		DAT_RMR_TRIPLET remote;

		if (!region_new(test, r, kind, false, NULL, KDT_RIGHTS, DAT_VA_TYPE_VA))
			continue;
		remote = kdt_rseg(&r->buf, 0, 64);
		region_free(test, r);
		kdt_peer_fails(test, r->mem, &remote, kind % 2);
	}
}

/* Sixteen sets of rights, each with exactly what it allows. */
static void all_rights(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *peer = kdt_buf_new(test, &env->a, 64);
	struct region *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	int kind, rights, sink;

	KUNIT_ASSERT_NOT_NULL(test, r);
	sink = DAT_MEM_PRIV_LOCAL_WRITE_FLAG |
	       (env->b.iwarp ? DAT_MEM_PRIV_REMOTE_WRITE_FLAG : 0);
	for (kind = 0; kind < KINDS; kind++) {
		for (rights = 0; rights <= DAT_MEM_PRIV_ALL_FLAG; rights++) {
			/* all of them for two kinds, some of them for the others */
			if (rights & ~DAT_MEM_PRIV_ALL_FLAG ||
			    (kind != PHYSICAL && kind != LMR && (rights + kind) % 3))
				continue;
			if (!region_new(test, r, kind, false, NULL, rights, DAT_VA_TYPE_VA))
				continue;
			KUNIT_EXPECT_NE(test, r->buf.lctx, 0);
			KUNIT_EXPECT_EQ_MSG(test, !!r->buf.rctx, !!(rights & REMOTE),
					    "%s, rights 0x%x", kinds[kind].name, rights);
			if (rights & DAT_MEM_PRIV_LOCAL_READ_FLAG) {
				KDT_OK(test, kdt_write(&pair->s, &r->buf, 0, 8, peer, 0, 1, 0));
				kdt_dto(test, pair->s.req, &pair->s, 1, DAT_DTO_RDMA_WRITE,
					DAT_DTO_SUCCESS, 8);
			} else {
				KDT_REFUSED(test, DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_READ,
					    kdt_write(&pair->s, &r->buf, 0, 8, peer, 0, 1, 0));
				KDT_REFUSED(test, DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_READ,
					    kdt_send(&pair->s, &r->buf, 0, 8, 1, 0));
			}
			if ((rights & sink) == sink) {
				KDT_OK(test, kdt_read(&pair->s, &r->buf, 0, 8, peer, 0, 2, 0));
				kdt_dto(test, pair->s.req, &pair->s, 2, DAT_DTO_RDMA_READ,
					DAT_DTO_SUCCESS, 8);
			} else {
				KDT_TYPE(test, DAT_PRIVILEGES_VIOLATION,
					 kdt_read(&pair->s, &r->buf, 0, 8, peer, 0, 2, 0));
			}
			if (!(rights & DAT_MEM_PRIV_LOCAL_WRITE_FLAG))
				KDT_REFUSED(test, DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE,
					    kdt_recv(&pair->s, &r->buf, 0, 8, 1));
			region_free(test, r);
		}
	}
	kdt_settle(test, pair);
}

/* What the peer may with one remote right, and no local one. */
static void one_remote_right(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, LEN);
	struct region *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	DAT_RMR_TRIPLET remote;
	int kind;

	KUNIT_ASSERT_NOT_NULL(test, r);
	for (kind = 0; kind < KINDS; kind++) {
		if (!region_new(test, r, kind, false, NULL, DAT_MEM_PRIV_REMOTE_WRITE_FLAG,
				DAT_VA_TYPE_VA))
			continue;
		kdt_fill(mine->p, LEN, kind);
		KDT_OK(test, kdt_write(&pair->c, mine, 0, LEN, &r->buf, 0, 1, 0));
		kdt_dto(test, pair->c.req, &pair->c, 1, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS, LEN);
		kdt_settle(test, pair);
		KUNIT_EXPECT_TRUE_MSG(test, kdt_same(r->buf.p, LEN, kind), "%s", kinds[kind].name);
		/* siw answers Reads of memory that is not open to them */
		remote = kdt_rseg(&r->buf, 0, 64);
		if (!env->b.iwarp)
			kdt_peer_fails(test, r->mem, &remote, false);
		region_free(test, r);

		if (!region_new(test, r, kind, false, NULL, DAT_MEM_PRIV_REMOTE_READ_FLAG,
				DAT_VA_TYPE_VA))
			continue;
		kdt_fill(r->buf.p, LEN, 100 + kind);
		KDT_OK(test, kdt_read(&pair->c, mine, 0, LEN, &r->buf, 0, 1, 0));
		kdt_dto(test, pair->c.req, &pair->c, 1, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, LEN);
		KUNIT_EXPECT_TRUE_MSG(test, kdt_same(mine->p, LEN, 100 + kind), "%s",
				      kinds[kind].name);
		remote = kdt_rseg(&r->buf, 0, 64);
		kdt_peer_fails(test, r->mem, &remote, true);
		region_free(test, r);
	}
}

static DAT_RETURN over(struct kdt_ia *ia, DAT_LMR_HANDLE source, DAT_PZ_HANDLE pz, int rights,
		       int va, struct kdt_buf *buf)
{
	DAT_REGION_DESCRIPTION region = { .for_lmr_handle = source };

	return dat_lmr_kcreate(ia->h, DAT_MEM_TYPE_LMR, region, 12345, pz, rights, va, 0,
			       &buf->lmr, &buf->lctx, &buf->rctx, NULL, NULL);
}

/* A chain of LMRs over the same memory; whoever is left works. */
static void lmr_over_lmr(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_ia *b = &env->b;
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *first = kdt_buf_rights(test, b, LEN, DAT_MEM_PRIV_LOCAL_READ_FLAG);
	struct kdt_buf next = *first, last = *first, zb = *first, other = *first;
	DAT_LMR_HANDLE unbound;
	DAT_PZ_HANDLE pz;
	DAT_RMR_TRIPLET remote;

	KDT_OK(test, over(b, first->lmr, b->pz, KDT_RIGHTS, DAT_VA_TYPE_VA, &next));
	KUNIT_EXPECT_NE(test, next.lctx, first->lctx);
	KUNIT_EXPECT_EQ(test, first->rctx, 0);
	kdt_peer_works(test, pair, &next, 0, LEN, 1);
	/* The source has kept its own rights, and is not needed. */
	KDT_REFUSED(test, DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE,
		    kdt_recv(&pair->s, first, 0, 8, 1));
	KDT_OK(test, dat_lmr_free(first->lmr));
	kdt_peer_works(test, pair, &next, 0, LEN, 2);
	/* Fewer rights than the source has. */
	KDT_OK(test, over(b, next.lmr, b->pz, DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_VA_TYPE_VA,
			  &last));
	KDT_OK(test, over(b, next.lmr, b->pz, KDT_RIGHTS, DAT_VA_TYPE_ZB, &zb));
	KDT_OK(test, dat_lmr_free(next.lmr));
	kdt_lctx_dead(test, &pair->s, &next);
	zb.shift = -(uintptr_t)zb.p;
	kdt_peer_works(test, pair, &zb, 0, LEN, 3);
	KDT_REFUSED(test, DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_READ,
		    kdt_send(&pair->s, &last, 0, 8, 1, 0));
	remote = kdt_rseg(&last, 0, 64);
	kdt_peer_fails(test, first, &remote, true);
	/* Another PZ, whose EPs alone may use it. */
	KDT_OK(test, dat_pz_create(b->h, &pz));
	KDT_OK(test, over(b, zb.lmr, pz, KDT_RIGHTS, DAT_VA_TYPE_VA, &other));
	KDT_OK(test, dat_lmr_free(zb.lmr));
	KDT_TYPE(test, DAT_PROTECTION_VIOLATION, kdt_send(&pair->s, &other, 0, 8, 1, 0));
	KDT_TYPE(test, DAT_PROTECTION_VIOLATION, kdt_recv(&pair->s, &other, 0, 8, 1));
	remote = kdt_rseg(&other, 0, 64);
	kdt_peer_fails(test, first, &remote, true);
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE, dat_pz_free(pz));
	KDT_OK(test, dat_lmr_free(other.lmr));
	KDT_OK(test, dat_pz_free(pz));
	KDT_OK(test, dat_lmr_free(last.lmr));

	/* What is no source. */
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR,
		    over(b, zb.lmr, b->pz, KDT_RIGHTS, DAT_VA_TYPE_VA, &other));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR,
		    over(b, DAT_HANDLE_NULL, b->pz, KDT_RIGHTS, DAT_VA_TYPE_VA, &other));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR,
		    over(b, (DAT_LMR_HANDLE)b->pz, b->pz, KDT_RIGHTS, DAT_VA_TYPE_VA, &other));
	KDT_OK(test, dat_lmr_allocate(b->h, b->pz, 1, DAT_LMR_SCOPE_PZ, &unbound));
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_FREE,
		    over(b, unbound, b->pz, KDT_RIGHTS, DAT_VA_TYPE_VA, &other));
	kdt_settle(test, pair);
}

#define CREATE(type, length, va)							\
	dat_lmr_kcreate(b->h, type, region, length, b->pz, KDT_RIGHTS, va, 0, &lmr, &lctx,	\
			&rctx, NULL, NULL)
#define NOT_MEMORY(type, length)							\
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,			\
		    CREATE(type, length, DAT_VA_TYPE_VA))

/* Memory that cannot be registered: nothing is left of the attempt. */
static void refused(struct kunit *test)
{
	struct kdt_ia *b = &kdt_env(test)->b;
	struct kdt_buf *mem = kdt_mem_new(test, 4 * PAGE_SIZE, false);
	DAT_PADDR good = mem->pages[1];
	DAT_REGION_DESCRIPTION region = {};
	struct sg_table sgt = {};
	struct scatterlist sg[3];
	struct kdat_mem_limits limits;
	DAT_LMR_CONTEXT lctx;
	DAT_RMR_CONTEXT rctx;
	DAT_LMR_HANDLE lmr;
	DAT_PADDR *many;
	DAT_PZ_HANDLE pz;
	u32 size;
	int i;

	kdt_mem_limits(test, b, &limits);
	region.for_platform = &sgt;
	KDT_REFUSED(test, DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE,
		    CREATE(DAT_MEM_TYPE_BYPASS, 100, DAT_VA_TYPE_VA));
	KUNIT_EXPECT_EQ(test, b->prov.lmr_mem_types_supported & DAT_MEM_TYPE_BYPASS, 0);

	/* Pages: not one, not of the machine, none at all. */
	region.for_physical = mem->pages;
	mem->pages[1] = good + 8;
	NOT_MEMORY(DAT_MEM_TYPE_PHYSICAL, 4);
	mem->pages[1] = 1ULL << 51;
	NOT_MEMORY(DAT_MEM_TYPE_PHYSICAL, 4);
	mem->pages[1] = good;
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG4,
		    CREATE(DAT_MEM_TYPE_PHYSICAL, 0, DAT_VA_TYPE_VA));
	KDT_TYPE(test, DAT_INVALID_PARAMETER,
		 CREATE(DAT_MEM_TYPE_PHYSICAL, U64_MAX, DAT_VA_TYPE_VA));
	region.for_physical = NULL;
	NOT_MEMORY(DAT_MEM_TYPE_PHYSICAL, 4);
	for (i = 0; i < 4; i++) {
		static const u32 sizes[] = { 0, 3000, 3 * 4096, 512 };

		region.for_array.pages = mem->pages;
		region.for_array.page_size = sizes[i];
		NOT_MEMORY(DAT_MEM_TYPE_PHYSICAL_VAR_PAGES, 1);
	}
	/* a size that the device does not have */
	for (size = SZ_1G; size && limits.page_sizes & size; size >>= 1)
		;
	region.for_array.page_size = size;
	mem->pages[1] = mem->pages[0];
	mem->pages[0] = 0;
	if (size > PAGE_SIZE)
		NOT_MEMORY(DAT_MEM_TYPE_PHYSICAL_VAR_PAGES, 1);
	mem->pages[0] = mem->pages[1];
	mem->pages[1] = good;
	/* a page of 64 KiB in the middle of one */
	region.for_array.page_size = SZ_64K;
	mem->pages[0] |= PAGE_SIZE;
	NOT_MEMORY(DAT_MEM_TYPE_PHYSICAL_VAR_PAGES, 1);
	mem->pages[0] = page_to_phys(vmalloc_to_page(mem->p));

	/* Lists: a hole in the middle, nothing in it, none. */
	sg_init_table(sg, 3);
	for (i = 0; i < 3; i++)
		sg_set_page(&sg[i], vmalloc_to_page(mem->p + i * PAGE_SIZE), PAGE_SIZE, 0);
	sgt.sgl = sg;
	sgt.orig_nents = 3;
	sgt.nents = 3;
	region.for_platform = &sgt;
	sg[1].length = 100;
	NOT_MEMORY(DAT_MEM_TYPE_PLATFORM, 2 * PAGE_SIZE + 100);
	sg[1].length = PAGE_SIZE - 100;
	sg[1].offset = 100;
	NOT_MEMORY(DAT_MEM_TYPE_PLATFORM, 3 * PAGE_SIZE - 100);
	sg[1].length = PAGE_SIZE;
	sg[1].offset = 0;
	KDT_TYPE(test, DAT_INVALID_PARAMETER,
		 CREATE(DAT_MEM_TYPE_PLATFORM, 3 * PAGE_SIZE + 1, DAT_VA_TYPE_VA));
	region.for_platform = NULL;
	NOT_MEMORY(DAT_MEM_TYPE_PLATFORM, PAGE_SIZE);

	/* Zero based, and not on a page. */
	region.for_va = mem->p + 1;
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		    CREATE(DAT_MEM_TYPE_VIRTUAL, 100, DAT_VA_TYPE_ZB));
	region.for_platform = &sgt;
	sg[0].offset = 1;
	sg[0].length = PAGE_SIZE - 1;
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		    CREATE(DAT_MEM_TYPE_PLATFORM, 100, DAT_VA_TYPE_ZB));

	/* One scattered page more than the device takes; the last that it takes works. */
	many = kvcalloc(limits.lmr_pages + 1, sizeof(*many), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, many);
	for (i = 0; i <= limits.lmr_pages; i++)
		many[i] = mem->pages[0];	/* never two that go on in each other */
	region.for_physical = many;
	KDT_REFUSED(test, DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY_REGION,
		    CREATE(DAT_MEM_TYPE_PHYSICAL, limits.lmr_pages + 1, DAT_VA_TYPE_VA));
	if (dat_lmr_kcreate(b->h, DAT_MEM_TYPE_PHYSICAL, region, limits.lmr_pages, b->pz,
			    KDT_RIGHTS, DAT_VA_TYPE_ZB, 0, &lmr, NULL, NULL, NULL, NULL))
		KUNIT_FAIL(test, "no LMR of %d pages", limits.lmr_pages);
	else
		KDT_OK(test, dat_lmr_free(lmr));
	kvfree(many);
	kunit_info(test, "%d pages in an LMR, sizes 0x%llx\n", limits.lmr_pages,
		   (u64)limits.page_sizes);

	/* Nothing has stayed: the PZ is free. */
	KDT_OK(test, dat_pz_create(b->h, &pz));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		    dat_lmr_kcreate(b->h, DAT_MEM_TYPE_PHYSICAL,
				    (DAT_REGION_DESCRIPTION) { .for_physical = NULL }, 4, pz,
				    KDT_RIGHTS, DAT_VA_TYPE_VA, 0, &lmr, NULL, NULL, NULL, NULL));
	KDT_OK(test, dat_pz_free(pz));
}

/* ---- large regions ---- */

#define CHUNK	SZ_2M		/* contiguous memory of our own inside of it */

/* Both ends of what is ours, written and read through the region. */
static void large_use(struct kunit *test, struct kdt_pair *pair, struct kdt_buf *buf, u64 start)
{
	struct kdt_buf *mine = kdt_buf_new(test, pair->c.ia, SZ_64K);
	static const u32 at[] = { 0, SZ_64K - 7, SZ_1M + 4095, CHUNK - SZ_64K };
	int i;

	buf->shift = start - (uintptr_t)buf->p;
	for (i = 0; i < ARRAY_SIZE(at); i++) {
		kdt_fill(mine->p, SZ_64K, i);
		KDT_OK(test, kdt_write(&pair->c, mine, 0, SZ_64K, buf, at[i], 1, 0));
		kdt_dto(test, pair->c.req, &pair->c, 1, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS,
			SZ_64K);
		kdt_settle(test, pair);
		KUNIT_EXPECT_TRUE_MSG(test, kdt_same(buf->p + at[i], SZ_64K, i), "at %u", at[i]);
		memset(mine->p, 0, SZ_64K);
		KDT_OK(test, kdt_read(&pair->c, mine, 0, SZ_64K, buf, at[i], 2, 0));
		kdt_dto(test, pair->c.req, &pair->c, 2, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS,
			SZ_64K);
		KUNIT_EXPECT_TRUE_MSG(test, kdt_same(mine->p, SZ_64K, i), "at %u", at[i]);
	}
	KDT_OK(test, dat_lmr_free(mine->lmr));
}

/* Contiguous memory aligned to its size, freed with the test. */
static u8 *chunk_new(struct kunit *test, u32 len)
{
	struct kdt_buf *owner = kzalloc(sizeof(*owner), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, owner);
	list_add(&owner->link, &kdt_env(test)->bufs);
	owner->p = kmalloc(len, GFP_KERNEL | __GFP_NOWARN);
	KUNIT_ASSERT_NOT_NULL(test, owner->p);
	memset(owner->p, 0, len);
	return owner->p;
}

static void refused_for_size(struct kunit *test, DAT_RETURN ret, const char *what)
{
	KUNIT_EXPECT_TRUE_MSG(test, ret == DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
						     DAT_RESOURCE_MEMORY_REGION) ||
			      ret == DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3),
			      "%s: %s %s", what, kdt_major(ret), kdt_minor(ret));
}

/* 4 MiB of the kernel's own mapping, from an odd byte to another. */
static void contiguous(struct kunit *test)
{
	struct kdt_ia *b = &kdt_env(test)->b;
	struct kdt_pair *pair = kdt_pair_up(test);
	u8 *p = chunk_new(test, SZ_4M);
	struct kdat_mem_limits limits;
	struct kdt_buf buf = { .p = p, .len = SZ_4M };
	DAT_REGION_DESCRIPTION region;
	DAT_RMR_TRIPLET remote;
	DAT_VLEN len;
	DAT_VADDR addr;
	DAT_RETURN ret;
	int odd;

	kdt_mem_limits(test, b, &limits);
	for (odd = 0; odd < 2; odd++) {
		u32 cut = odd * 12345;

		region.for_va = p + cut;
		ret = dat_lmr_kcreate(b->h, DAT_MEM_TYPE_VIRTUAL, region, SZ_4M - 2 * cut, b->pz,
				      KDT_RIGHTS, DAT_VA_TYPE_VA, DAT_MEM_OPTIMIZE_EXACT_EXPOSURE,
				      &buf.lmr, &buf.lctx, &buf.rctx, &len, &addr);
		if (ret != DAT_SUCCESS && !(limits.page_sizes & ~(u64)PAGE_SIZE)) {
			refused_for_size(test, ret, "4 MiB");
			kunit_skip(test, "one page size, %d pages", limits.lmr_pages);
		}
		KDT_OK(test, ret);
		KUNIT_EXPECT_EQ(test, addr, (u64)(uintptr_t)(p + cut));
		KUNIT_EXPECT_EQ(test, len, (u64)SZ_4M - 2 * cut);
		buf.p = p + SZ_1M;
		buf.len = CHUNK;
		large_use(test, pair, &buf, (uintptr_t)buf.p);
		/* the ends, to the byte */
		buf.p = p + cut;
		buf.len = SZ_4M - 2 * cut;
		buf.shift = 0;
		kdt_peer_works(test, pair, &buf, 0, 1, 7);
		kdt_peer_works(test, pair, &buf, buf.len - 1, 1, 8);
		KDT_TYPE(test, DAT_INVALID_PARAMETER,
			 kdt_send(&pair->s, &buf, buf.len - 1, 2, 1, 0));
		if (odd) {
			memset(p, 0x11, SZ_4M);
			remote = kdt_rseg(&buf, buf.len - 1, 2);
			kdt_peer_fails(test, &buf, &remote, true);
			remote = kdt_rseg(&buf, 0, 2);
			remote.virtual_address--;
			kdt_peer_fails(test, &buf, &remote, true);
			KUNIT_EXPECT_TRUE(test, kdt_all(p, SZ_4M, 0x11));
		}
		KDT_OK(test, dat_lmr_free(buf.lmr));
	}
}

/*
 * Hundreds of MiB of the machine's memory in one LMR, in which some is our own; that
 * lies at one end of it, or at the other.
 */
static void huge_one(struct kunit *test, struct kdt_pair *pair, u8 *p, bool ia, bool last,
		     u64 size)
{
	struct kdt_ia *b = &kdt_env(test)->b;
	u64 first = virt_to_phys(p);
	DAT_REGION_DESCRIPTION region = {};
	struct kdt_buf buf = { .p = p, .len = SZ_4M };
	DAT_LMR_TRIPLET iov;
	DAT_RMR_TRIPLET remote;
	DAT_PADDR bus = 0, *pages;
	u64 length, i;
	DAT_VADDR addr;
	DAT_VLEN len;

	/* as much of it as there is on that side */
	while (last && first + SZ_4M < size)
		size /= 2;
	if (last)
		first -= size - SZ_4M;
	while (!last && !virt_addr_valid(phys_to_virt(first + size - 1)))
		size /= 2;
	pages = kvcalloc(size / SZ_2M, sizeof(*pages), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, pages);
	for (i = 0; i < size / SZ_2M; i++)
		pages[i] = first + i * SZ_2M;
	if (ia) {
		KDT_OK(test, kdat_ia_dma_map(b->h, phys_to_virt(first), size, &bus));
		region.for_ia = bus;
		length = size;
	} else {
		region.for_array.page_size = SZ_2M;
		region.for_array.pages = pages;
		length = size / SZ_2M;
	}
	KDT_OK(test, dat_lmr_kcreate(b->h, ia ? DAT_MEM_TYPE_IA : DAT_MEM_TYPE_PHYSICAL_VAR_PAGES,
				     region, length, b->pz, KDT_RIGHTS, DAT_VA_TYPE_VA, 0,
				     &buf.lmr, &buf.lctx, &buf.rctx, &len, &addr));
	kvfree(pages);
	KUNIT_EXPECT_EQ(test, len, size);
	KUNIT_EXPECT_EQ(test, addr, ia ? bus : first);
	buf.shift = addr + (last ? size - SZ_4M : 0) - (uintptr_t)p;
	kunit_info(test, "%llu MiB from 0x%llx on, ours at 0x%llx\n", size >> 20, (u64)addr,
		   buf.shift + (uintptr_t)p);
	buf.len = CHUNK;
	large_use(test, pair, &buf, buf.shift + (uintptr_t)p);
	if (last) {
		/* its last byte, and the one behind it */
		buf.len = SZ_4M;
		kdt_peer_works(test, pair, &buf, SZ_4M - 1, 1, 3);
		iov = kdt_seg(&buf, SZ_4M - 1, 2);
		remote = kdt_rseg(&buf, SZ_4M - 1, 2);
	} else {
		kdt_peer_works(test, pair, &buf, 0, 1, 3);
		iov = kdt_seg(&buf, 0, 2);
		iov.virtual_address = addr - 1;
		remote = kdt_rseg(&buf, 0, 2);
		remote.virtual_address = addr - 1;
	}
	KDT_TYPE(test, DAT_INVALID_PARAMETER,
		 dat_ep_post_send(pair->s.h, 1, &iov, kdt_cookie(1), 0));
	kdt_peer_fails(test, &buf, &remote, false);
	KDT_OK(test, dat_lmr_free(buf.lmr));
	if (ia)
		KDT_OK(test, kdat_ia_dma_unmap(b->h, bus, size));
}

static void huge(struct kunit *test)
{
	struct kdt_ia *b = &kdt_env(test)->b;
	struct kdt_pair *pair;
	struct kdat_mem_limits limits;
	DAT_REGION_DESCRIPTION region = {};
	u64 size = 256ULL << 20;
	DAT_PADDR pages[2];
	DAT_LMR_HANDLE lmr;
	u8 *p;
	int ia;

	kdt_mem_limits(test, b, &limits);
	p = chunk_new(test, SZ_4M);
	if (!(limits.page_sizes & SZ_2M)) {
		pages[0] = virt_to_phys(p);
		pages[1] = pages[0] + SZ_2M;
		region.for_array.page_size = SZ_2M;
		region.for_array.pages = pages;
		refused_for_size(test, dat_lmr_kcreate(b->h, DAT_MEM_TYPE_PHYSICAL_VAR_PAGES,
						       region, 2, b->pz, KDT_RIGHTS,
						       DAT_VA_TYPE_VA, 0, &lmr, NULL, NULL, NULL,
						       NULL), "pages of 2 MiB");
		kunit_skip(test, "no pages of 2 MiB, sizes 0x%llx", (u64)limits.page_sizes);
	}
	pair = kdt_pair_up(test);
	for (ia = 0; ia < 2; ia++) {
		huge_one(test, pair, p, ia, false, size);
		huge_one(test, pair, p, ia, true, size);
	}
	kdt_settle(test, pair);
}

static void limits_are_true(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_ia *b = &env->b;
	struct kdat_mem_limits limits;
	struct kdt_pair *pair = kdt_pair_up(test);
	DAT_REGION_DESCRIPTION region;
	struct kdt_buf *mem;
	u32 len;

	KDT_TYPE(test, DAT_INVALID_PARAMETER, kdat_ia_mem_limits(b->h, NULL));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA,
		    kdat_ia_mem_limits(DAT_HANDLE_NULL, &limits));
	kdt_mem_limits(test, b, &limits);
	KUNIT_EXPECT_GE(test, limits.lmr_pages, 16);
	KUNIT_EXPECT_GE(test, limits.rmr_pages, 1);
	KUNIT_EXPECT_LE(test, limits.rmr_pages, limits.lmr_pages);
	KUNIT_EXPECT_NE(test, (u64)limits.page_sizes & PAGE_SIZE, 0);
	KUNIT_EXPECT_NE(test, (u64)limits.fmr_page_sizes & PAGE_SIZE, 0);
	KUNIT_EXPECT_EQ(test, (u64)limits.fmr_page_sizes & ~(u64)limits.page_sizes, 0);
	KUNIT_EXPECT_EQ(test, (u64)limits.boundary, (u64)PAGE_SIZE);
	KUNIT_EXPECT_GE(test, limits.comp_vectors, 1);
	KUNIT_EXPECT_EQ(test, limits.post_list, KDAT_POST_LIST_MAX);
	KUNIT_EXPECT_EQ(test, (int)b->prov.fmr_supported, DAT_TRUE);
	KUNIT_EXPECT_EQ(test, (int)b->prov.lmr_for_fmr_scope_supported, DAT_LMR_SCOPE_ANY);
	KUNIT_EXPECT_EQ(test, (int)b->prov.rmr_scope_supported, DAT_RMR_SCOPE_ANY);
	KUNIT_EXPECT_NE(test, b->prov.completion_flags_supported & KDT_INV_FENCE, 0);
	KUNIT_EXPECT_EQ(test, b->prov.lmr_mem_types_supported, 0x171);
	KUNIT_EXPECT_GE(test, b->attr.max_iov_segments_per_rdma_read, 1);

	/* So many scattered pages, to the last byte. */
	len = limits.lmr_pages * PAGE_SIZE;
	mem = kdt_mem_new(test, len, false);
	region.for_va = mem->p;
	KDT_OK(test, dat_lmr_kcreate(b->h, DAT_MEM_TYPE_VIRTUAL, region, len, b->pz, KDT_RIGHTS,
				     DAT_VA_TYPE_VA, 0, &mem->lmr, &mem->lctx, &mem->rctx, NULL,
				     NULL));
	kdt_peer_works(test, pair, mem, 0, 8192, 1);
	kdt_peer_works(test, pair, mem, len - 8192, 8192, 2);
	kdt_peer_works(test, pair, mem, len / 2 - 5, 4099, 3);
	KDT_OK(test, dat_lmr_free(mem->lmr));
}

/* ---- advice and syncs ---- */

static void hints(struct kunit *test)
{
	static const u64 lengths[] = { 1, 100, 4096, 4097, 100000, SZ_1M };
	static const int types[] = {
		DAT_MEM_TYPE_VIRTUAL, DAT_MEM_TYPE_LMR, DAT_MEM_TYPE_PHYSICAL,
		DAT_MEM_TYPE_PLATFORM, DAT_MEM_TYPE_IA, DAT_MEM_TYPE_PHYSICAL_VAR_PAGES,
	};
	struct kdt_ia *b = &kdt_env(test)->b;
	DAT_REGION_DESCRIPTION region;
	DAT_LMR_HANDLE lmr;
	DAT_VLEN len = 0;
	DAT_VADDR align = 0;
	u8 *p = chunk_new(test, SZ_4M);
	int i, t, opt;

	for (t = 0; t < ARRAY_SIZE(types); t++) {
		for (i = 0; i < ARRAY_SIZE(lengths); i++) {
			for (opt = 0; opt <= DAT_MEM_OPTIMIZE_EXACT_EXPOSURE; opt = opt * 2 ?: 1) {
				KDT_OK(test, dat_ia_memtype_hint(b->h, types[t], lengths[i], opt,
								 &len, &align));
				KUNIT_EXPECT_GE(test, (u64)len, lengths[i]);
				KUNIT_EXPECT_TRUE_MSG(test, is_power_of_2(align),
						      "alignment 0x%llx", (u64)align);
			}
		}
	}
	/* Whoever follows it gets an LMR. */
	KDT_OK(test, dat_ia_memtype_hint(b->h, DAT_MEM_TYPE_VIRTUAL, 10000, DAT_MEM_OPTIMIZE_IA,
					 &len, &align));
	if (len <= SZ_4M) {
		region.for_va = PTR_ALIGN(p, min_t(u64, align, SZ_1M));
		KDT_OK(test, dat_lmr_kcreate(b->h, DAT_MEM_TYPE_VIRTUAL, region, len, b->pz,
					     KDT_RIGHTS, DAT_VA_TYPE_VA, DAT_MEM_OPTIMIZE_IA, &lmr,
					     NULL, NULL, NULL, NULL));
		KDT_OK(test, dat_lmr_free(lmr));
	}
	KDT_REFUSED(test, DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE,
		    dat_ia_memtype_hint(b->h, DAT_MEM_TYPE_BYPASS, 1, 0, &len, &align));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		    dat_ia_memtype_hint(b->h, 0x03, 1, 0, &len, &align));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG4,
		    dat_ia_memtype_hint(b->h, 0, 1, 0x08, &len, &align));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		    dat_ia_memtype_hint(b->h, 0, 0, 0, &len, &align));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG5,
		    dat_ia_memtype_hint(b->h, 0, 1, 0, NULL, &align));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG6,
		    dat_ia_memtype_hint(b->h, 0, 1, 0, &len, NULL));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA,
		    dat_ia_memtype_hint((DAT_IA_HANDLE)b->pz, 0, 1, 0, &len, &align));
}

typedef DAT_RETURN (*sync_call)(DAT_IA_HANDLE ia, const DAT_LMR_TRIPLET *segments, DAT_VLEN n);

static void syncs(struct kunit *test)
{
	static const sync_call calls[] = { dat_lmr_sync_rdma_read, dat_lmr_sync_rdma_write };
	struct kdt_env *env = kdt_env(test);
	struct kdt_ia *b = &env->b;
	struct kdt_buf *one = kdt_buf_new(test, b, 5000);
	struct kdt_buf *none = kdt_buf_rights(test, b, 100, DAT_MEM_PRIV_NONE_FLAG);
	struct kdt_buf *far;
	DAT_LMR_TRIPLET iov[3];
	DAT_RETURN ret = DAT_SUCCESS;
	DAT_PZ_HANDLE pz;
	spinlock_t lock;	/* a consumer's own */
	int i, k;

	spin_lock_init(&lock);
	KDT_OK(test, dat_pz_create(b->h, &pz));
	KDT_OK(test, kdt_buf_open(env, b, pz, 4096, KDT_RIGHTS, &far));
	for (i = 0; i < 2; i++) {
		iov[0] = kdt_seg(one, 1, 4999);
		iov[1] = kdt_seg(far, 0, 4096);
		iov[2] = kdt_seg(none, 0, 100);
		/* anywhere */
		spin_lock_bh(&lock);
		for (k = 0; k <= 3; k++)
			ret |= calls[i](b->h, iov, k);
		spin_unlock_bh(&lock);
		KDT_OK(test, ret);
		KDT_OK(test, calls[i](b->h, NULL, 0));
		KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
			    calls[i](b->h, NULL, 1));
		iov[2].lmr_context ^= 0x5a5a00;
		KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
			    calls[i](b->h, iov, 3));
		iov[2] = kdt_seg(one, 0, 5001);
		KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
			    calls[i](b->h, iov, 3));
		iov[2] = kdt_seg(one, 0, 2);
		iov[2].virtual_address--;
		KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
			    calls[i](b->h, iov, 3));
		KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA,
			    calls[i](DAT_HANDLE_NULL, iov, 1));
		KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA,
			    calls[i]((DAT_IA_HANDLE)b->pz, iov, 1));
	}
	KDT_OK(test, dat_lmr_free(far->lmr));
	iov[0] = kdt_seg(far, 0, 1);
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		    dat_lmr_sync_rdma_read(b->h, iov, 1));
}

/* A peer's Write is there after a sync, and what is there before one is what it reads. */
static void syncs_and_peers(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, SZ_64K);
	struct kdt_buf *theirs = kdt_buf_new(test, &env->b, SZ_64K);
	DAT_LMR_TRIPLET all = kdt_seg(theirs, 0, SZ_64K);
	int i;

	for (i = 0; i < 5; i++) {
		kdt_fill(mine->p, SZ_64K, i);
		KDT_OK(test, kdt_write(&pair->c, mine, 0, SZ_64K, theirs, 0, 1, KDT_SUPPRESS));
		kdt_settle(test, pair);
		KDT_OK(test, dat_lmr_sync_rdma_write(env->b.h, &all, 1));
		KUNIT_EXPECT_TRUE(test, kdt_same(theirs->p, SZ_64K, i));
		kdt_fill(theirs->p, SZ_64K, 100 + i);
		KDT_OK(test, dat_lmr_sync_rdma_read(env->b.h, &all, 1));
		KDT_OK(test, kdt_read(&pair->c, mine, 0, SZ_64K, theirs, 0, 2, 0));
		kdt_dto(test, pair->c.req, &pair->c, 2, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS,
			SZ_64K);
		KUNIT_EXPECT_TRUE(test, kdt_same(mine->p, SZ_64K, 100 + i));
	}
}

/* ---- the reserved LMR ---- */

#define RES_LEN	8192

static void reserved_lmr(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *peer = kdt_buf_new(test, &env->a, RES_LEN);
	struct kdt_buf *mem = kdt_mem_new(test, RES_LEN, true), buf = *mem;
	DAT_LMR_HANDLE lmr, again;
	DAT_LMR_CONTEXT lctx, lctx2;
	DAT_LMR_PARAM param = {};
	DAT_RMR_TRIPLET remote;
	DAT_LMR_TRIPLET iov;
	DAT_PADDR bus;

	KDT_TYPE(test, DAT_INVALID_PARAMETER, dat_ia_reserved_lmr(env->b.h, NULL, &lctx));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA,
		    dat_ia_reserved_lmr(DAT_HANDLE_NULL, &lmr, &lctx));
	if (env->b.attr.reserved_lmr_supported == DAT_FALSE) {
		KDT_REFUSED(test, DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE,
			    dat_ia_reserved_lmr(env->b.h, &lmr, &lctx));
		kunit_skip(test, "no reserved LMR");
	}
	KDT_OK(test, dat_ia_reserved_lmr(env->b.h, &lmr, &lctx));
	KDT_OK(test, dat_ia_reserved_lmr(env->b.h, &again, &lctx2));
	KUNIT_EXPECT_PTR_EQ(test, lmr, again);
	KUNIT_EXPECT_EQ(test, lctx, lctx2);
	KDT_OK(test, dat_lmr_query(lmr, DAT_LMR_FIELD_ALL, &param));
	KUNIT_EXPECT_EQ(test, param.rmr_context, 0);
	KUNIT_EXPECT_EQ(test, param.lmr_context, lctx);
	KUNIT_EXPECT_EQ(test, (int)param.mem_priv & REMOTE, 0);

	/* Out of it and into it, at any place. */
	KDT_OK(test, kdat_ia_dma_map(env->b.h, mem->p, RES_LEN, &bus));
	buf.lmr = lmr;
	buf.lctx = lctx;
	buf.rctx = lctx;
	buf.shift = bus - (uintptr_t)mem->p;
	kdt_fill(mem->p, RES_LEN, 1);
	KDT_OK(test, kdt_recv(&pair->c, peer, 0, RES_LEN, 1));
	KDT_OK(test, kdt_send(&pair->s, &buf, 3, RES_LEN - 3, 2, 0));
	kdt_dto(test, pair->s.req, &pair->s, 2, DAT_DTO_SEND, DAT_DTO_SUCCESS, RES_LEN - 3);
	kdt_dto(test, pair->c.recv, &pair->c, 1, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, RES_LEN - 3);
	KUNIT_EXPECT_EQ(test, memcmp(peer->p, mem->p + 3, RES_LEN - 3), 0);
	kdt_fill(peer->p, RES_LEN, 2);
	KDT_OK(test, kdt_recv(&pair->s, &buf, 0, RES_LEN, 3));
	KDT_OK(test, kdt_send(&pair->c, peer, 0, RES_LEN, 4, 0));
	kdt_dto(test, pair->c.req, &pair->c, 4, DAT_DTO_SEND, DAT_DTO_SUCCESS, RES_LEN);
	kdt_dto(test, pair->s.recv, &pair->s, 3, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, RES_LEN);
	KUNIT_EXPECT_TRUE(test, kdt_same(mem->p, RES_LEN, 2));
	kdt_fill(mem->p, RES_LEN, 3);
	KDT_OK(test, kdt_write(&pair->s, &buf, 0, RES_LEN, peer, 0, 5, 0));
	kdt_dto(test, pair->s.req, &pair->s, 5, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS, RES_LEN);
	if (env->b.iwarp) {
		/* it gives a peer nothing, so it is no sink there */
		KDT_TYPE(test, DAT_PRIVILEGES_VIOLATION,
			 kdt_read(&pair->s, &buf, 0, RES_LEN, peer, 0, 6, 0));
	} else {
		memset(mem->p, 0, RES_LEN);
		KDT_OK(test, kdt_read(&pair->s, &buf, 0, RES_LEN, peer, 0, 6, 0));
		kdt_dto(test, pair->s.req, &pair->s, 6, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS,
			RES_LEN);
		KUNIT_EXPECT_TRUE(test, kdt_same(mem->p, RES_LEN, 3));
	}
	KUNIT_EXPECT_TRUE(test, kdt_guarded(mem));
	/* All there is to check is that it does not wrap around. */
	iov = kdt_seg(&buf, 0, 100);
	iov.virtual_address = -10ULL;
	KDT_TYPE(test, DAT_INVALID_PARAMETER,
		 dat_ep_post_send(pair->s.h, 1, &iov, kdt_cookie(7), 0));
	KDT_TYPE(test, DAT_INVALID_PARAMETER,
		 dat_ep_post_recv(pair->s.h, 1, &iov, kdt_cookie(7), 0));
	kdt_settle(test, pair);

	/* No peer gets anywhere with it. */
	remote = kdt_rseg(&buf, 0, 64);
	kdt_peer_fails(test, mem, &remote, true);
	kdt_peer_fails(test, mem, &remote, false);
	KDT_OK(test, kdat_ia_dma_unmap(env->b.h, bus, RES_LEN));
}

/* EPs of every PZ of this IA, and of no other. */
static void reserved_and_zones(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_ia *b = &env->b;
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	struct kdt_buf *peer = kdt_buf_new(test, &env->a, RES_LEN);
	struct kdt_buf *mem = kdt_mem_new(test, RES_LEN, true), buf = *mem;
	DAT_LMR_CONTEXT lctx;
	DAT_EP_ATTR attr;
	DAT_PZ_HANDLE pz;
	DAT_PADDR bus;

	if (b->attr.reserved_lmr_supported == DAT_FALSE)
		kunit_skip(test, "no reserved LMR");
	KDT_OK(test, dat_ep_free(pair->s.h));
	KDT_OK(test, dat_pz_create(b->h, &pz));
	kdt_attr(env, &attr);
	KDT_OK(test, dat_ep_create(b->h, pz, pair->s.recv->h, pair->s.req->h, pair->s.conn->h,
				   &attr, &pair->s.h));
	kdt_pair_connect(test, pair);
	KDT_OK(test, dat_ia_reserved_lmr(b->h, &buf.lmr, &lctx));
	KDT_OK(test, kdat_ia_dma_map(b->h, mem->p, RES_LEN, &bus));
	buf.lctx = lctx;
	buf.shift = bus - (uintptr_t)mem->p;
	kdt_fill(mem->p, RES_LEN, 1);
	KDT_OK(test, kdt_recv(&pair->c, peer, 0, RES_LEN, 1));
	KDT_OK(test, kdt_send(&pair->s, &buf, 0, RES_LEN, 2, 0));
	kdt_dto(test, pair->s.req, &pair->s, 2, DAT_DTO_SEND, DAT_DTO_SUCCESS, RES_LEN);
	kdt_dto(test, pair->c.recv, &pair->c, 1, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, RES_LEN);
	KUNIT_EXPECT_TRUE(test, kdt_same(peer->p, RES_LEN, 1));
	kdt_settle(test, pair);
	KDT_OK(test, kdat_ia_dma_unmap(b->h, bus, RES_LEN));
	KDT_TYPE(test, DAT_INVALID_PARAMETER, kdat_ia_dma_map(b->h, mem->p, 0, &bus));
	KDT_TYPE(test, DAT_INVALID_PARAMETER, kdat_ia_dma_map(b->h, mem->p, RES_LEN, NULL));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA,
		    kdat_ia_dma_map(DAT_HANDLE_NULL, mem->p, RES_LEN, &bus));
}

static void reserved_is_reserved(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_ia *b = &env->b;
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *mem = kdt_mem_new(test, PAGE_SIZE, false);
	struct kdt_buf buf;
	DAT_REGION_DESCRIPTION region = { .for_physical = mem->pages };
	DAT_LMR_TRIPLET iov;
	DAT_LMR_CONTEXT lctx;
	DAT_RMR_CONTEXT rctx;
	DAT_LMR_HANDLE lmr;
	DAT_RMR_HANDLE rmr;

	if (b->attr.reserved_lmr_supported == DAT_FALSE)
		kunit_skip(test, "no reserved LMR");
	KDT_OK(test, dat_ia_reserved_lmr(b->h, &lmr, &lctx));
	KDT_REFUSED(test, DAT_RESERVED_LMR, DAT_NO_SUBTYPE, dat_lmr_free(lmr));
	KDT_REFUSED(test, DAT_RESERVED_LMR, DAT_NO_SUBTYPE,
		    over(b, lmr, b->pz, KDT_RIGHTS, DAT_VA_TYPE_VA, &buf));
	KDT_REFUSED(test, DAT_RESERVED_LMR, DAT_NO_SUBTYPE,
		    dat_lmr_fmr(lmr, DAT_MEM_TYPE_PHYSICAL, region, 1, KDT_RIGHTS, DAT_VA_TYPE_VA,
				pair->s.h, kdt_cookie(1), 0, &lctx, &rctx));
	KDT_REFUSED(test, DAT_RESERVED_LMR, DAT_NO_SUBTYPE,
		    dat_lmr_invalidate(lmr, pair->s.h, kdt_cookie(1), 0));
	KDT_OK(test, dat_rmr_create(b->pz, &rmr));
	iov = (DAT_LMR_TRIPLET) {
		.virtual_address = (uintptr_t)mem->p,
		.segment_length = 100,
		.lmr_context = lctx,
	};
	KDT_REFUSED(test, DAT_RESERVED_LMR, DAT_NO_SUBTYPE,
		    dat_rmr_bind(rmr, lmr, &iov, DAT_MEM_PRIV_REMOTE_READ_FLAG, DAT_VA_TYPE_VA,
				 pair->s.h, kdt_cookie(1), 0, &rctx));
	KDT_OK(test, dat_rmr_free(rmr));
	/* It is nobody's object: an IA that has nothing else closes gracefully. */
	kdt_settle(test, pair);
}

static struct kunit_case cases[] = {
	KD_CASE(round_trips, "LMR-01,LMR-02,LMR-04,LMR-06,LMR-11,LMR-20,LMR-21: each memory type"),
	KD_CASE(bounds, "LMR-04,LMR-05,LMR-06: not a byte before or behind a region"),
	KD_CASE(freed, "LMR-FREE-03,LMR-FREE-04: a freed region of every type is closed"),
	KD_CASE(all_rights, "LMR-03,LMR-09,SIL-18: every set of rights on every type"),
	KD_CASE(one_remote_right, "LMR-03,LMR-09: one remote right opens one direction"),
	KD_CASE(lmr_over_lmr, "LMR-08,LMR-09,LMR-10: an LMR over an LMR whose source is freed"),
	KD_CASE(refused, "LMR-08,LMR-20: memory that is none, lists with holes, too many pages"),
	KD_CASE(limits_are_true, "LMR-20,FLAG-13,IA-QRY-02: limits and attributes say what works"),
	KD_CASE(contiguous, "LMR-01,LMR-04: 4 MiB through larger pages"),
	KD_CASE(huge, "LMR-01,LMR-04: 256 MiB of the machine's memory in one region"),
	KD_CASE(hints, "LMR-HINT-01: dat_ia_memtype_hint"),
	KD_CASE(syncs, "LMR-SYNC-01,LMR-SYNC-02,LMR-SYNC-03,LMR-SYNC-04: arguments of the syncs"),
	KD_CASE(syncs_and_peers, "LMR-SYNC-01,LMR-SYNC-02: syncs around a peer's access"),
	KD_CASE(reserved_lmr, "LMR-RES-01,LMR-RES-02: all memory by its address, for us only"),
	KD_CASE(reserved_and_zones, "LMR-RES-02: the reserved LMR in every PZ"),
	KD_CASE(reserved_is_reserved, "LMR-FREE-05,LMR-RES-02: what the reserved LMR is not for"),
	{}
};

struct kunit_suite kdt_mem_suite = {
	.name = "kdtest-mem",
	.init = kdt_init,
	.exit = kdt_exit,
	.test_cases = cases,
};
