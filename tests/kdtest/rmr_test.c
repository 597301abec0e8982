// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Remote Memory Regions: windows over LMRs, bound and bound anew on the request
 * queue, and what a peer reaches through them.
 */
#include <linux/interrupt.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "kdtest_mem.h"

#define PAGES	8
#define LEN	(PAGES * PAGE_SIZE)

#define R	DAT_MEM_PRIV_REMOTE_READ_FLAG
#define W	DAT_MEM_PRIV_REMOTE_WRITE_FLAG

/* A window of @len bytes of the memory, and how a peer names it. */
struct window {
	DAT_RMR_HANDLE h;
	struct kdt_buf buf;
};

static DAT_RETURN bind(struct kdt_ep *ep, struct window *w, struct kdt_buf *mem, u32 offset,
		       u32 len, int priv, DAT_VA_TYPE va_type, u64 cookie, int flags)
{
	DAT_LMR_TRIPLET triplet = kdt_seg(mem, offset, len);
	DAT_RMR_CONTEXT context;
	DAT_RETURN ret;

	ret = dat_rmr_bind(w->h, mem->lmr, &triplet, priv, va_type, ep->h, kdt_cookie(cookie),
			   flags, &context);
	if (ret == DAT_SUCCESS) {
		w->buf = (struct kdt_buf) {
			.p = mem->p + offset,
			.len = len,
			.shift = va_type == DAT_VA_TYPE_ZB ?
				 -(uintptr_t)(mem->p + offset) : mem->shift,
			.rctx = context,
		};
	}
	return ret;
}

static DAT_RETURN unbind(struct kdt_ep *ep, struct window *w, u64 cookie, int flags)
{
	DAT_LMR_TRIPLET triplet = {};
	DAT_RMR_CONTEXT context;

	return dat_rmr_bind(w->h, DAT_HANDLE_NULL, &triplet, R, DAT_VA_TYPE_VA, ep->h,
			    kdt_cookie(cookie), flags, &context);
}

static void bind_done(struct kunit *test, struct kdt_ep *ep, struct window *w,
		      struct kdt_buf *mem, u32 offset, u32 len, int priv)
{
	KDT_OK(test, bind(ep, w, mem, offset, len, priv, DAT_VA_TYPE_VA, 0xb1bd, 0));
	kdt_bind_event(test, ep->req, w->h, 0xb1bd, DAT_RMR_BIND_SUCCESS);
}

static void unbind_done(struct kunit *test, struct kdt_ep *ep, struct window *w)
{
	KDT_OK(test, unbind(ep, w, 0x0b1d, 0));
	kdt_bind_event(test, ep->req, w->h, 0x0b1d, DAT_RMR_BIND_SUCCESS);
}

static void create_query_free(struct kunit *test)
{
	struct kdt_ia *b = &kdt_env(test)->b;
	DAT_HANDLE_TYPE type;
	DAT_RMR_PARAM param;
	DAT_RMR_HANDLE rmr;
	DAT_PZ_HANDLE pz;
	int ep;

	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, dat_rmr_create(b->pz, NULL));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		    dat_rmr_create_for_ep(b->pz, NULL));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ,
		    dat_rmr_create(DAT_HANDLE_NULL, &rmr));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ,
		    dat_rmr_create_for_ep((DAT_PZ_HANDLE)b->h, &rmr));
	KUNIT_EXPECT_NE(test, b->attr.max_rmrs, 0);
	KDT_OK(test, dat_pz_create(b->h, &pz));
	for (ep = 0; ep < 2; ep++) {
		KDT_OK(test, ep ? dat_rmr_create_for_ep(pz, &rmr) : dat_rmr_create(pz, &rmr));
		KDT_OK(test, dat_get_handle_type(rmr, &type));
		KUNIT_EXPECT_EQ(test, (int)type, DAT_HANDLE_TYPE_RMR);
		memset(&param, 0xa5, sizeof(param));
		KDT_OK(test, dat_rmr_query(rmr, DAT_RMR_FIELD_IA_HANDLE | DAT_RMR_FIELD_PZ_HANDLE |
					   DAT_RMR_FIELD_RMR_SCOPE, &param));
		KUNIT_EXPECT_PTR_EQ(test, param.ia_handle, b->h);
		KUNIT_EXPECT_PTR_EQ(test, param.pz_handle, pz);
		KUNIT_EXPECT_EQ(test, (int)param.rmr_scope,
				ep ? DAT_RMR_SCOPE_EP : DAT_RMR_SCOPE_PZ);
		KDT_OK(test, dat_rmr_query(rmr, 0, NULL));
		KDT_OK(test, dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param));
		KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
			    dat_rmr_query(rmr, 0x80, &param));
		KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
			    dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, NULL));
		KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE,
			    dat_pz_free(pz));
		KDT_OK(test, dat_rmr_free(rmr));
		KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR, dat_rmr_free(rmr));
		KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR,
			    dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param));
	}
	KDT_OK(test, dat_pz_free(pz));
}

/* Over the whole LMR and parts of it, VA and ZB; inside all, outside nothing. */
static void windows(struct kunit *test)
{
	static const u32 at[][2] = {
		{ 0, LEN }, { 0, 1 }, { LEN - 1, 1 }, { 100, 4000 }, { 4095, 4098 },
		{ PAGE_SIZE, PAGE_SIZE }, { 3 * PAGE_SIZE, 5 * PAGE_SIZE }, { 12345, 6789 },
	};
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_mem_pair(test, NULL);
	struct kdt_buf *mem = kdt_buf_new(test, &env->b, LEN);
	DAT_RMR_PARAM param = {};
	DAT_RMR_TRIPLET remote;
	struct window w;
	int i, zb;

	KDT_OK(test, dat_rmr_create(env->b.pz, &w.h));
	for (i = 0; i < ARRAY_SIZE(at); i++) {
		u32 off = at[i][0], len = at[i][1];

		zb = i % 2 && !offset_in_page(mem->p + off);
		KDT_OK(test, bind(&pair->s, &w, mem, off, len, R | W, zb, 0xffULL << 56 | i, 0));
		kdt_bind_event(test, pair->s.req, w.h, 0xffULL << 56 | i, DAT_RMR_BIND_SUCCESS);
		KUNIT_EXPECT_NE(test, w.buf.rctx, 0);
		KUNIT_EXPECT_NE(test, w.buf.rctx, mem->rctx);
		KDT_OK(test, dat_rmr_query(w.h, DAT_RMR_FIELD_ALL, &param));
		KUNIT_EXPECT_EQ(test, param.rmr_context, w.buf.rctx);
		KUNIT_EXPECT_EQ(test, (int)param.mem_priv & (R | W), R | W);
		KUNIT_EXPECT_EQ(test, (int)param.va_type, zb);
		KUNIT_EXPECT_EQ(test, param.lmr_triplet.lmr_context, mem->lctx);
		KUNIT_EXPECT_EQ(test, param.lmr_triplet.virtual_address,
				(u64)(uintptr_t)mem->p + off);
		KUNIT_EXPECT_EQ(test, param.lmr_triplet.segment_length, len);
		memset(mem->p, 0x99, LEN);
		kdt_peer_works(test, pair, &w.buf, 0, len, i);
		kdt_peer_works(test, pair, &w.buf, len - 1, 1, i + 100);
		KUNIT_EXPECT_TRUE(test, kdt_all(mem->p, off, 0x99));
		KUNIT_EXPECT_TRUE(test, kdt_all(mem->p + off + len, LEN - off - len, 0x99));
		/* the LMR goes on there, and the window does not */
		remote = kdt_rseg(&w.buf, len - 1, 2);
		kdt_peer_fails(test, mem, &remote, i % 2);
		remote = kdt_rseg(&w.buf, 0, 2);
		remote.virtual_address--;
		kdt_peer_fails(test, mem, &remote, true);
		KUNIT_EXPECT_TRUE(test, kdt_guarded(mem));
	}
	/* The LMR's own key was not touched by any of it. */
	kdt_peer_works(test, pair, mem, 0, LEN, 77);
	unbind_done(test, &pair->s, &w);
	KDT_OK(test, dat_rmr_free(w.h));
	kdt_settle(test, pair);
	kdt_mem_down(test, pair);
	kdt_ep_done(test, &pair->c);
	kdt_ep_done(test, &pair->s);
}

/* A new key each time, and the old one is dead when the event has come. */
static void rebinds(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_mem_pair(test, NULL);
	struct kdt_buf *mem = kdt_buf_new(test, &env->b, LEN);
	struct kdt_buf *next = kdt_buf_new(test, &env->b, LEN);
	struct window w, old = {}, older = {};
	DAT_RMR_TRIPLET remote;
	int i;

	KDT_OK(test, dat_rmr_create(env->b.pz, &w.h));
	for (i = 0; i < 20; i++) {
		struct kdt_buf *m = i / 2 % 2 ? next : mem;

		bind_done(test, &pair->s, &w, m, i * 100, 3000, R | W);
		KUNIT_EXPECT_NE(test, w.buf.rctx, old.buf.rctx);
		KUNIT_EXPECT_NE(test, w.buf.rctx, older.buf.rctx);
		kdt_peer_works(test, pair, &w.buf, 0, 3000, i);
		if (i && i % 3 == 0) {
			remote = kdt_rseg(&old.buf, 0, 64);
			kdt_peer_fails(test, mem, &remote, true);
			kdt_peer_fails(test, next, &remote, false);
			/* nor does it reach what the window is now */
			remote.virtual_address = (uintptr_t)w.buf.p;
			kdt_peer_fails(test, m, &remote, true);
			remote = kdt_rseg(&older.buf, 0, 64);
			kdt_peer_fails(test, m, &remote, true);
		}
		older = old;
		old = w;
	}
	/* Unbound, twice. */
	unbind_done(test, &pair->s, &w);
	remote = kdt_rseg(&w.buf, 0, 64);
	kdt_peer_fails(test, mem, &remote, true);
	kdt_peer_fails(test, next, &remote, false);
	unbind_done(test, &pair->s, &w);
	unbind_done(test, &pair->s, &w);
	bind_done(test, &pair->s, &w, mem, 0, LEN, R | W);
	kdt_peer_works(test, pair, &w.buf, 0, LEN, 3);
	unbind_done(test, &pair->s, &w);
	KDT_OK(test, dat_rmr_free(w.h));
	kdt_settle(test, pair);
	kdt_mem_down(test, pair);
	kdt_ep_done(test, &pair->c);
	kdt_ep_done(test, &pair->s);
}

/* The Send behind a bind carries the key, the bind is silent; hundreds of them. */
static void usable_at_once(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_mem_pair(test, NULL);
	struct kdt_buf *mem = kdt_buf_new(test, &env->b, LEN);
	struct kdt_buf *ctrl = kdt_buf_new(test, &env->b, sizeof(struct kdt_offer));
	struct kdt_buf *got = kdt_buf_new(test, &env->a, sizeof(struct kdt_offer));
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, LEN);
	struct kdt_offer *offer = (struct kdt_offer *)ctrl->p;
	struct kdt_offer *answer = (struct kdt_offer *)got->p;
	int i, rounds = kdt_rounds, busy = 0;
	DAT_RMR_TRIPLET remote;
	DAT_LMR_TRIPLET iov;
	unsigned long end;
	struct window w;
	DAT_RETURN ret;

	KDT_OK(test, dat_rmr_create(env->b.pz, &w.h));
	for (i = 0; i < rounds; i++) {
		u32 off = i * 37 % 4096, len = 1 + i * 101 % (LEN - 4096);

		KDT_OK(test, kdt_recv(&pair->c, got, 0, sizeof(*offer), i));
		/* one bind at a time; the one before has no event */
		end = jiffies + KDT_WAIT;
		while ((ret = bind(&pair->s, &w, mem, off, len, R | W, 0, 1, KDT_SUPPRESS)) !=
		       DAT_SUCCESS) {
			KUNIT_ASSERT_EQ(test, DAT_GET_TYPE(ret), (u32)DAT_INSUFFICIENT_RESOURCES);
			KUNIT_ASSERT_TRUE(test, time_before(jiffies, end));
			if (++busy % 64)
				cond_resched();
			else
				schedule_timeout_uninterruptible(1);
		}
		offer->va = (uintptr_t)w.buf.p + w.buf.shift;
		offer->len = len;
		offer->rctx = w.buf.rctx;
		KDT_OK(test, kdt_send(&pair->s, ctrl, 0, sizeof(*offer), 2, KDT_SUPPRESS));
		kdt_dto(test, pair->c.recv, &pair->c, i, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS,
			sizeof(*offer));
		remote = (DAT_RMR_TRIPLET) { answer->va, answer->len, answer->rctx };
		memset(mem->p, 0x99, LEN);
		kdt_fill(mine->p, len, i);
		iov = kdt_seg(mine, 0, len);
		KDT_OK(test, dat_ep_post_rdma_write(pair->c.h, 1, &iov, kdt_cookie(3), &remote, 0));
		kdt_dto(test, pair->c.req, &pair->c, 3, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS, len);
		kdt_settle(test, pair);
		KUNIT_ASSERT_TRUE_MSG(test, kdt_same(mem->p + off, len, i), "round %d", i);
		KUNIT_EXPECT_TRUE(test, kdt_all(mem->p, off, 0x99));
		KUNIT_EXPECT_TRUE(test, kdt_all(mem->p + off + len, LEN - off - len, 0x99));
		KUNIT_EXPECT_TRUE(test, kdt_guarded(mem));
		if (i % 7 == 6) {
			do {
				ret = unbind(&pair->s, &w, 4, KDT_SUPPRESS);
			} while (DAT_GET_TYPE(ret) == DAT_INSUFFICIENT_RESOURCES &&
				 time_before(jiffies, end));
			KDT_OK(test, ret);
		}
	}
	kunit_info(test, "%d binds, busy %d times\n", rounds, busy);
	kdt_settle_back(test, pair);
	kdt_mem_down(test, pair);
	kdt_ep_done(test, &pair->s);
	kdt_ep_done(test, &pair->c);
}

static void rights(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_mem_pair(test, NULL);
	struct kdt_buf *both = kdt_buf_rights(test, &env->b, LEN, DAT_MEM_PRIV_LOCAL_READ_FLAG |
					      DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
	struct kdt_buf *r = kdt_buf_rights(test, &env->b, 64, DAT_MEM_PRIV_LOCAL_READ_FLAG);
	struct kdt_buf *wr = kdt_buf_rights(test, &env->b, 64, DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
	struct kdt_buf *none = kdt_buf_rights(test, &env->b, 64, DAT_MEM_PRIV_NONE_FLAG);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, LEN);
	DAT_RMR_TRIPLET remote;
	struct window w;

	KDT_OK(test, dat_rmr_create(env->b.pz, &w.h));
	KDT_TYPE(test, DAT_PRIVILEGES_VIOLATION, bind(&pair->s, &w, r, 0, 64, W, 0, 1, 0));
	KDT_TYPE(test, DAT_PRIVILEGES_VIOLATION, bind(&pair->s, &w, r, 0, 64, R | W, 0, 1, 0));
	KDT_TYPE(test, DAT_PRIVILEGES_VIOLATION, bind(&pair->s, &w, wr, 0, 64, R, 0, 1, 0));
	KDT_TYPE(test, DAT_PRIVILEGES_VIOLATION, bind(&pair->s, &w, wr, 0, 64, R | W, 0, 1, 0));
	KDT_TYPE(test, DAT_PRIVILEGES_VIOLATION, bind(&pair->s, &w, none, 0, 64, R, 0, 1, 0));
	KDT_TYPE(test, DAT_PRIVILEGES_VIOLATION, bind(&pair->s, &w, none, 0, 64, W, 0, 1, 0));
	/* Remote rights come from the window alone; the LMR has none. */
	bind_done(test, &pair->s, &w, both, 0, LEN, R | W);
	kdt_peer_works(test, pair, &w.buf, 0, LEN, 1);
	bind_done(test, &pair->s, &w, both, 0, LEN, W);
	kdt_fill(mine->p, LEN, 2);
	KDT_OK(test, kdt_write(&pair->c, mine, 0, LEN, &w.buf, 0, 1, 0));
	kdt_dto(test, pair->c.req, &pair->c, 1, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS, LEN);
	kdt_settle(test, pair);
	KUNIT_EXPECT_TRUE(test, kdt_same(both->p, LEN, 2));
	remote = kdt_rseg(&w.buf, 0, 64);
	/* siw answers Reads of memory that is not open to them */
	if (!env->b.iwarp)
		kdt_peer_fails(test, both, &remote, false);
	/* local rights say nothing here */
	bind_done(test, &pair->s, &w, both, 0, LEN, R | DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
	kdt_fill(both->p, LEN, 3);
	KDT_OK(test, kdt_read(&pair->c, mine, 0, LEN, &w.buf, 0, 1, 0));
	kdt_dto(test, pair->c.req, &pair->c, 1, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, LEN);
	KUNIT_EXPECT_TRUE(test, kdt_same(mine->p, LEN, 3));
	remote = kdt_rseg(&w.buf, 0, 64);
	kdt_peer_fails(test, both, &remote, true);
	/* one right of each is enough for its own direction */
	bind_done(test, &pair->s, &w, r, 0, 64, R);
	bind_done(test, &pair->s, &w, wr, 0, 64, W);
	kdt_settle(test, pair);
}

/* The LMR cannot go while a window is over it, and can when there is none any more. */
static void references(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_mem_pair(test, NULL);
	struct kdt_buf *mem = kdt_buf_new(test, &env->b, LEN);
	struct kdt_buf *other = kdt_buf_new(test, &env->b, LEN);
	struct kdt_buf *fmr = kdt_fmr_new(test, &env->b, PAGES, DAT_LMR_SCOPE_PZ);
	struct window one, two;
	DAT_RMR_TRIPLET remote;

	KDT_OK(test, dat_rmr_create(env->b.pz, &one.h));
	KDT_OK(test, dat_rmr_create(env->b.pz, &two.h));
	/* from the return of the bind on */
	KDT_OK(test, bind(&pair->s, &one, mem, 0, 100, R, 0, 1, 0));
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE, dat_lmr_free(mem->lmr));
	kdt_bind_event(test, pair->s.req, one.h, 1, DAT_RMR_BIND_SUCCESS);
	bind_done(test, &pair->s, &two, mem, 50, 100, R | W);
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE, dat_lmr_free(mem->lmr));
	/* both windows work */
	kdt_peer_works(test, pair, &two.buf, 0, 100, 1);
	/* one goes elsewhere, one is unbound */
	bind_done(test, &pair->s, &one, other, 0, LEN, R | W);
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE, dat_lmr_free(mem->lmr));
	unbind_done(test, &pair->s, &two);
	KDT_OK(test, dat_lmr_free(mem->lmr));
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE,
		    dat_lmr_free(other->lmr));
	kdt_peer_works(test, pair, &one.buf, 0, LEN, 2);
	/* freed while it is bound */
	KDT_OK(test, dat_rmr_free(one.h));
	remote = kdt_rseg(&one.buf, 0, 64);
	kdt_peer_fails(test, other, &remote, true);
	kdt_peer_fails(test, other, &remote, false);
	KDT_OK(test, dat_lmr_free(other->lmr));

	/* Over memory of dat_lmr_fmr(): it has to stay as long. */
	KDT_TYPE(test, DAT_INVALID_STATE,
		 dat_lmr_invalidate(fmr->lmr, pair->s.h, kdt_cookie(1), 0));
	kdt_fmr_done(test, &pair->s, fmr, KDT_RIGHTS);
	bind_done(test, &pair->s, &two, fmr, 1000, 5000, R | W);
	kdt_peer_works(test, pair, &two.buf, 0, 5000, 3);
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE,
		    kdt_inv(&pair->s, fmr, 1, 0));
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE, dat_lmr_free(fmr->lmr));
	KUNIT_EXPECT_TRUE(test, kdt_bound(test, fmr->lmr));
	kdt_peer_works(test, pair, &two.buf, 0, 5000, 4);
	unbind_done(test, &pair->s, &two);
	kdt_inv_done(test, &pair->s, fmr);
	remote = kdt_rseg(&two.buf, 0, 64);
	kdt_peer_fails(test, fmr, &remote, true);
	KDT_OK(test, dat_lmr_free(fmr->lmr));
	KDT_OK(test, dat_rmr_free(two.h));
	kdt_settle(test, pair);
}

#define BIND(rmr, lmr, tri, priv, va, ep, flags)					\
	dat_rmr_bind(rmr, lmr, tri, priv, va, ep, kdt_cookie(1), flags, &context)

static void refused(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_mem_pair(test, NULL);
	struct kdt_buf *mem = kdt_buf_new(test, &env->b, LEN);
	struct kdt_buf *other = kdt_buf_new(test, &env->b, LEN), *far;
	struct kdt_buf *fmr = kdt_fmr_new(test, &env->b, 1, DAT_LMR_SCOPE_PZ);
	DAT_LMR_TRIPLET t = kdt_seg(mem, 0, LEN), bad;
	DAT_EP_HANDLE ep = pair->s.h;
	DAT_RMR_CONTEXT context;
	DAT_PZ_HANDLE pz;
	struct kdt_ep idle;
	struct window w, apart;
	int i;

	KDT_OK(test, dat_rmr_create(env->b.pz, &w.h));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR,
		    BIND(DAT_HANDLE_NULL, mem->lmr, &t, R, 0, ep, 0));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR,
		    BIND((DAT_RMR_HANDLE)mem->lmr, mem->lmr, &t, R, 0, ep, 0));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR,
		    BIND(w.h, DAT_HANDLE_NULL, &t, R, 0, ep, 0));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR,
		    BIND(w.h, (DAT_LMR_HANDLE)w.h, &t, R, 0, ep, 0));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		    BIND(w.h, mem->lmr, &t, R, 0, DAT_HANDLE_NULL, 0));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		    BIND(w.h, mem->lmr, NULL, R, 0, ep, 0));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG4,
		    BIND(w.h, mem->lmr, &t, R | 0x04, 0, ep, 0));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG5,
		    BIND(w.h, mem->lmr, &t, R, 2, ep, 0));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG8,
		    BIND(w.h, mem->lmr, &t, R, 0, ep, DAT_COMPLETION_UNSIGNALLED_FLAG));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG8,
		    BIND(w.h, mem->lmr, &t, R, 0, ep, DAT_COMPLETION_SOLICITED_WAIT_FLAG));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG8,
		    BIND(w.h, mem->lmr, &t, R, 0, ep, KDT_INV_FENCE));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG9,
		    dat_rmr_bind(w.h, mem->lmr, &t, R, 0, ep, kdt_cookie(1), 0, NULL));
	/* ranges that are not in it, and contexts that are not its own */
	for (i = 0; i < 6; i++) {
		bad = t;
		if (i == 0)
			bad.virtual_address--;
		else if (i == 1)
			bad.virtual_address++;
		else if (i == 2)
			bad.segment_length++;
		else if (i == 3)
			bad.virtual_address = -1ULL;
		else if (i == 4)
			bad.lmr_context = other->lctx;
		else
			bad.lmr_context ^= 0x5a5a00;
		KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
			    BIND(w.h, mem->lmr, &bad, R, 0, ep, 0));
	}
	/* zero based, and not on a page */
	bad = kdt_seg(mem, 1, 100);
	if (!offset_in_page(mem->p))
		KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
			    BIND(w.h, mem->lmr, &bad, R, DAT_VA_TYPE_ZB, ep, 0));
	/* an LMR that stands for nothing */
	bad = t;
	KUNIT_EXPECT_NE(test, BIND(w.h, fmr->lmr, &bad, R, 0, ep, 0), DAT_SUCCESS);
	/* three objects of two PZs, each way */
	KDT_OK(test, dat_pz_create(env->b.h, &pz));
	KDT_OK(test, kdt_buf_open(env, &env->b, pz, LEN, KDT_RIGHTS, &far));
	KDT_OK(test, dat_rmr_create(pz, &apart.h));
	bad = kdt_seg(far, 0, LEN);
	KDT_TYPE(test, DAT_PROTECTION_VIOLATION, BIND(w.h, far->lmr, &bad, R, 0, ep, 0));
	KDT_TYPE(test, DAT_PROTECTION_VIOLATION, BIND(apart.h, far->lmr, &bad, R, 0, ep, 0));
	KDT_TYPE(test, DAT_PROTECTION_VIOLATION, BIND(apart.h, mem->lmr, &t, R, 0, ep, 0));
	/* an endpoint that is not connected */
	kdt_ep_new(test, &idle, &env->b, NULL);
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONNECTED,
		    BIND(w.h, mem->lmr, &t, R, 0, idle.h, 0));
	/* Nothing has changed: all of it can go, and no event was left. */
	KDT_OK(test, dat_lmr_free(far->lmr));
	KDT_OK(test, dat_rmr_free(apart.h));
	KDT_OK(test, dat_pz_free(pz));
	KDT_OK(test, dat_lmr_free(mem->lmr));
	KDT_OK(test, dat_rmr_free(w.h));
	kdt_settle(test, pair);
	kdt_mem_down(test, pair);
	kdt_ep_done(test, &pair->s);
}

/* Flushed, with a bind event, and the binding is what it was. */
static void disconnected(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_mem_pair(test, NULL), *other = kdt_mem_pair(test, NULL);
	struct kdt_buf *mem = kdt_buf_new(test, &env->b, LEN);
	struct kdt_buf *next = kdt_buf_new(test, &env->b, LEN);
	DAT_RMR_PARAM param = {};
	struct window w, was;
	int i;

	KDT_OK(test, dat_rmr_create(env->b.pz, &w.h));
	bind_done(test, &pair->s, &w, mem, 0, LEN, R | W);
	was = w;
	kdt_mem_down(test, pair);
	for (i = 0; i < 4; i++) {
		if (i % 2)
			KDT_OK(test, unbind(&pair->s, &w, i, 0));
		else
			KDT_OK(test, bind(&pair->s, &w, next, 0, LEN, R, 0, i,
					  i ? KDT_SUPPRESS : 0));
		kdt_bind_event(test, pair->s.req, w.h, i, DAT_RMR_BIND_FAILURE);
		KDT_OK(test, dat_rmr_query(w.h, DAT_RMR_FIELD_ALL, &param));
		KUNIT_EXPECT_EQ(test, param.rmr_context, was.buf.rctx);
		KUNIT_EXPECT_EQ(test, param.lmr_triplet.lmr_context, mem->lctx);
		kdt_peer_works(test, other, &was.buf, 0, LEN, i);
		KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE,
			    dat_lmr_free(mem->lmr));
	}
	KDT_OK(test, dat_lmr_free(next->lmr));
	/* Another connection may go on with it. */
	bind_done(test, &other->s, &w, mem, 0, 100, R | W);
	kdt_peer_works(test, other, &w.buf, 0, 100, 9);
	was.buf.len = 64;
	kdt_key_dead(test, &was.buf);
	KDT_OK(test, dat_ep_reset(pair->s.h));
	KDT_OK(test, dat_ep_reset(pair->c.h));
	kdt_pair_connect(test, pair);
	unbind_done(test, &pair->s, &w);
	KDT_OK(test, dat_lmr_free(mem->lmr));
	kdt_settle(test, pair);
	kdt_settle(test, other);
}

/* One endpoint at a time, or all of a PZ. */
static void scopes(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *one = kdt_mem_pair(test, NULL), *two = kdt_mem_pair(test, NULL);
	struct kdt_buf *mem = kdt_buf_new(test, &env->b, LEN);
	struct window w;

	KDT_OK(test, dat_rmr_create_for_ep(env->b.pz, &w.h));
	bind_done(test, &one->s, &w, mem, 0, LEN, R | W);
	kdt_peer_works(test, one, &w.buf, 0, LEN, 1);
	KDT_TYPE(test, DAT_PROTECTION_VIOLATION,
		 bind(&two->s, &w, mem, 0, 100, R, 0, 1, 0));
	KDT_TYPE(test, DAT_PROTECTION_VIOLATION, unbind(&two->s, &w, 1, 0));
	kdt_peer_works(test, one, &w.buf, 0, LEN, 2);
	bind_done(test, &one->s, &w, mem, 0, 200, R | W);
	unbind_done(test, &one->s, &w);
	bind_done(test, &two->s, &w, mem, 0, 300, R | W);
	kdt_peer_works(test, two, &w.buf, 0, 300, 3);
	KDT_TYPE(test, DAT_PROTECTION_VIOLATION, unbind(&one->s, &w, 1, 0));
	KDT_OK(test, dat_rmr_free(w.h));

	KDT_OK(test, dat_rmr_create(env->b.pz, &w.h));
	bind_done(test, &one->s, &w, mem, 0, 100, R | W);
	kdt_peer_works(test, two, &w.buf, 0, 100, 4);
	bind_done(test, &two->s, &w, mem, 0, 200, R | W);
	kdt_peer_works(test, one, &w.buf, 0, 200, 5);
	unbind_done(test, &one->s, &w);
	KDT_OK(test, dat_rmr_free(w.h));
	kdt_settle(test, one);
	kdt_settle(test, two);
}

static void flags(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_buf *mem = kdt_buf_new(test, &env->b, LEN);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, LEN);
	struct kdt_pair *pair;
	unsigned int calls;
	struct window w;
	DAT_EP_ATTR attr;

	kdt_attr(env, &attr);
	attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	pair = kdt_mem_pair(test, &attr);
	KDT_OK(test, dat_rmr_create(env->b.pz, &w.h));
	KDT_OK(test, bind(&pair->s, &w, mem, 0, LEN, R | W, 0, 1, KDT_SUPPRESS));
	KDT_OK(test, kdt_read(&pair->s, mem, 0, 8, from, 0, 2, 0));
	kdt_dto(test, pair->s.req, &pair->s, 2, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, 8);
	kdt_peer_works(test, pair, &w.buf, 0, LEN, 1);
	KUNIT_EXPECT_TRUE(test, kdt_idle(pair->s.req));
	calls = READ_ONCE(pair->s.req->entered);
	KDT_OK(test, bind(&pair->s, &w, mem, 0, 100, R | W, 0, 3,
			  DAT_COMPLETION_UNSIGNALLED_FLAG));
	KDT_OK(test, dat_ep_post_recv(pair->c.h, 0, NULL, kdt_cookie(4), 0));
	KDT_OK(test, dat_ep_post_send(pair->s.h, 0, NULL, kdt_cookie(5), KDT_SUPPRESS));
	kdt_dto(test, pair->c.recv, &pair->c, 4, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 0);
	KUNIT_EXPECT_EQ(test, READ_ONCE(pair->s.req->entered), calls);
	KDT_OK(test, kdt_read(&pair->s, mem, 0, 8, from, 0, 6, 0));
	kdt_bind_event(test, pair->s.req, w.h, 3, DAT_RMR_BIND_SUCCESS);
	kdt_dto(test, pair->s.req, &pair->s, 6, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, 8);
	/* behind a Read */
	KDT_OK(test, kdt_read(&pair->s, mem, 0, LEN, from, 0, 7, 0));
	KDT_OK(test, bind(&pair->s, &w, mem, 0, 200, R | W, 0, 8, kdt_fence));
	kdt_dto(test, pair->s.req, &pair->s, 7, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, LEN);
	kdt_bind_event(test, pair->s.req, w.h, 8, DAT_RMR_BIND_SUCCESS);
	/* and behind a Read without it, in the order of the queue */
	KDT_OK(test, kdt_read(&pair->s, mem, 0, LEN, from, 0, 9, 0));
	KDT_OK(test, bind(&pair->s, &w, mem, 0, 300, R | W, 0, 10, 0));
	kdt_dto(test, pair->s.req, &pair->s, 9, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, LEN);
	kdt_bind_event(test, pair->s.req, w.h, 10, DAT_RMR_BIND_SUCCESS);
	KDT_OK(test, kdt_read(&pair->s, mem, 0, LEN, from, 0, 11, 0));
	KDT_OK(test, unbind(&pair->s, &w, 12, kdt_fence));
	kdt_dto(test, pair->s.req, &pair->s, 11, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, LEN);
	kdt_bind_event(test, pair->s.req, w.h, 12, DAT_RMR_BIND_SUCCESS);
	kdt_settle(test, pair);
	kdt_mem_down(test, pair);
	kdt_ep_done(test, &pair->s);
}

/* ---- from softirq ---- */

static struct softie {
	struct kdt_pair *pair;
	struct kdt_buf *mem;
	struct window w;
	struct completion done;
	unsigned int n, bad;
	DAT_RETURN ret;
} softie;

#define SOFT_ROUNDS 60

/* Each event of a bind posts the next one: bind, bind, unbind, unbind, ... */
static bool soft_bound(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_RMR_BIND_COMPLETION_EVENT_DATA *data =
		&event->event_data.rmr_completion_event_data;
	struct softie *s = &softie;

	if (event->event_number != DAT_RMR_BIND_COMPLETION_EVENT ||
	    data->status != DAT_RMR_BIND_SUCCESS || data->rmr_handle != s->w.h ||
	    data->user_cookie.as_64 != s->n || !in_serving_softirq()) {
		s->bad++;
		complete(&s->done);
		return true;
	}
	if (++s->n == SOFT_ROUNDS) {
		complete(&s->done);
		return true;
	}
	if (s->n % 4 < 2)
		s->ret = bind(&s->pair->s, &s->w, s->mem, s->n, LEN - s->n, R | W, 0, s->n, 0);
	else
		s->ret = unbind(&s->pair->s, &s->w, s->n, 0);
	if (s->ret != DAT_SUCCESS)
		complete(&s->done);
	return true;
}

static void from_softirq(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdat_mem_limits limits;

	kdt_mem_limits(test, &env->b, &limits);
	memset(&softie, 0, sizeof(softie));
	init_completion(&softie.done);
	softie.pair = kdt_mem_pair(test, NULL);
	softie.mem = kdt_buf_new(test, &env->b, LEN);
	KDT_OK(test, dat_rmr_create(env->b.pz, &softie.w.h));
	softie.pair->s.req->hook = soft_bound;
	KDT_OK(test, bind(&softie.pair->s, &softie.w, softie.mem, 0, LEN, R | W, 0, 0, 0));
	KUNIT_ASSERT_NE(test, wait_for_completion_timeout(&softie.done, KDT_WAIT), 0);
	KDT_OK(test, softie.ret);
	KUNIT_EXPECT_EQ(test, softie.bad, 0);
	KUNIT_EXPECT_EQ(test, softie.n, SOFT_ROUNDS);
	softie.pair->s.req->hook = NULL;
	/* As large as it can be, with interrupts off. */
	{
		struct kdt_buf *mem = kdt_buf_new(test, &env->b, limits.rmr_pages * PAGE_SIZE -
						  PAGE_SIZE);
		unsigned long irq;
		DAT_RETURN ret;

		local_irq_save(irq);
		ret = bind(&softie.pair->s, &softie.w, mem, 0, mem->len, R | W, 0, 1, 0);
		local_irq_restore(irq);
		KDT_OK(test, ret);
		kdt_bind_event(test, softie.pair->s.req, softie.w.h, 1, DAT_RMR_BIND_SUCCESS);
		kdt_peer_works(test, softie.pair, &softie.w.buf, mem->len - 5000, 5000, 1);
	}
	kdt_settle(test, softie.pair);
}

/* Over an LMR of each kind that can be had without its own memory. */
static void over_other_lmrs(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_mem_pair(test, NULL);
	struct kdt_buf *mem = kdt_mem_new(test, LEN, false), lmr;
	DAT_REGION_DESCRIPTION region = { .for_physical = mem->pages };
	int rw = DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG;
	struct window w;
	int va;

	KDT_OK(test, dat_rmr_create(env->b.pz, &w.h));
	for (va = 0; va < 2; va++) {
		lmr = *mem;
		KDT_OK(test, dat_lmr_kcreate(env->b.h, DAT_MEM_TYPE_PHYSICAL, region, PAGES,
					     env->b.pz, rw, va, 0, &lmr.lmr, &lmr.lctx, NULL, NULL,
					     NULL));
		lmr.shift = (va ? 0 : mem->pages[0]) - (uintptr_t)mem->p;
		bind_done(test, &pair->s, &w, &lmr, 5000, 7000, R | W);
		kdt_peer_works(test, pair, &w.buf, 0, 7000, va);
		bind_done(test, &pair->s, &w, &lmr, 0, LEN, R | W);
		kdt_peer_works(test, pair, &w.buf, 0, LEN, va);
		/* an LMR over the LMR does not need the window, nor the other way round */
		unbind_done(test, &pair->s, &w);
		KDT_OK(test, dat_lmr_free(lmr.lmr));
	}
	kdt_settle(test, pair);
}

/* Windows over the same bytes, and none knows of the other. */
static void many(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_mem_pair(test, NULL);
	struct kdt_buf *mem = kdt_buf_new(test, &env->b, LEN);
	struct window *w = kunit_kcalloc(test, 24, sizeof(*w), GFP_KERNEL);
	DAT_RMR_TRIPLET remote;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, w);
	for (i = 0; i < 24; i++)
		KDT_OK(test, dat_rmr_create(env->b.pz, &w[i].h));
	for (i = 0; i < 24; i++)
		KDT_OK(test, bind(&pair->s, &w[i], mem, i * 100, LEN - i * 200, R | W, 0, i, 0));
	for (i = 0; i < 24; i++)
		kdt_bind_event(test, pair->s.req, w[i].h, i, DAT_RMR_BIND_SUCCESS);
	for (i = 0; i < 24; i++)
		kdt_peer_works(test, pair, &w[i].buf, 0, w[i].buf.len, i);
	for (i = 0; i < 24; i += 2)
		KDT_OK(test, unbind(&pair->s, &w[i], i, 0));
	for (i = 0; i < 24; i += 2)
		kdt_bind_event(test, pair->s.req, w[i].h, i, DAT_RMR_BIND_SUCCESS);
	for (i = 1; i < 24; i += 2)
		kdt_peer_works(test, pair, &w[i].buf, 0, w[i].buf.len, i);
	remote = kdt_rseg(&w[4].buf, 0, 64);
	kdt_peer_fails(test, mem, &remote, true);
	for (i = 0; i < 24; i++)
		KDT_OK(test, dat_rmr_free(w[i].h));
	remote = kdt_rseg(&w[5].buf, 0, 64);
	kdt_peer_fails(test, mem, &remote, true);
	KDT_OK(test, dat_lmr_free(mem->lmr));
	kdt_settle(test, pair);
}

static struct kunit_case cases[] = {
	KD_CASE(create_query_free, "RMR-01,RMR-15,RMR-16,PZ-02,GEN-08: create, query, free"),
	KD_CASE(windows, "RMR-02,RMR-03,RMR-09,SIL-14: in the window all, beside it nothing"),
	KD_CASE(rebinds, "RMR-02,RMR-06,RMR-08: bound anew and unbound, old keys are dead"),
	KD_CASE(usable_at_once, "RMR-04,RMR-05,FLAG-02: a key that is sent right behind its bind"),
	KD_CASE(rights, "RMR-07,LMR-09: rights of windows and of the LMRs under them"),
	KD_CASE(references, "RMR-13,RMR-14,LMR-FREE-01,FMR-13: who holds the LMR, and until when"),
	KD_CASE(refused, "RMR-09,RMR-10,RMR-12,RMR-16,GEN-07: refused calls change nothing"),
	KD_CASE(disconnected, "RMR-08,RMR-10: flushed binds leave the binding"),
	KD_CASE(scopes, "RMR-01: dat_rmr_create_for_ep"),
	KD_CASE(flags, "RMR-03,FLAG-02,FLAG-04,FLAG-09: suppressed, unsignalled, fenced"),
	KD_CASE(from_softirq, "RMR-02,CTX-01,CTX-02,CTX-03: binds in upcalls, interrupts off"),
	KD_CASE(over_other_lmrs, "RMR-02,RMR-09: windows over page lists, VA and ZB"),
	KD_CASE(many, "RMR-02,RMR-14: two dozen windows over the same bytes"),
	{}
};

struct kunit_suite kdt_rmr_suite = {
	.name = "kdtest-rmr",
	.init = kdt_init,
	.exit = kdt_exit,
	.test_cases = cases,
};
