// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Fast registration: dat_lmr_allocate, dat_lmr_fmr, dat_lmr_invalidate and the
 * form over a scatterlist, with a peer that uses the keys, in time and too late.
 */
#include <linux/completion.h>
#include <linux/interrupt.h>
#include <linux/mm.h>
#include <linux/prandom.h>
#include <linux/scatterlist.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "kdtest_mem.h"

#define PAGES	8
#define LEN	(PAGES * PAGE_SIZE)

static DAT_RETURN allocate(struct kdt_ia *ia, DAT_COUNT pages, int scope, DAT_LMR_HANDLE *lmr)
{
	return dat_lmr_allocate(ia->h, ia->pz, pages, scope, lmr);
}

static void allocate_arguments(struct kunit *test)
{
	struct kdt_ia *b = &kdt_env(test)->b;
	struct kdat_mem_limits limits;
	DAT_LMR_PARAM param;
	DAT_LMR_HANDLE lmr;
	DAT_PZ_HANDLE pz;
	int scope;

	kdt_mem_limits(test, b, &limits);
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		    allocate(b, 0, DAT_LMR_SCOPE_PZ, &lmr));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		    allocate(b, -1, DAT_LMR_SCOPE_PZ, &lmr));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		    allocate(b, limits.lmr_pages + 1, DAT_LMR_SCOPE_PZ, &lmr));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		    allocate(b, INT_MAX, DAT_LMR_SCOPE_PZ, &lmr));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG5,
		    allocate(b, 1, DAT_LMR_SCOPE_PZ, NULL));
	KUNIT_EXPECT_NE(test, allocate(b, 1, DAT_LMR_SCOPE_ANY + 1, &lmr), DAT_SUCCESS);
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA,
		    dat_lmr_allocate(DAT_HANDLE_NULL, b->pz, 1, DAT_LMR_SCOPE_PZ, &lmr));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ,
		    dat_lmr_allocate(b->h, DAT_HANDLE_NULL, 1, DAT_LMR_SCOPE_PZ, &lmr));
	KDT_OK(test, dat_pz_create(b->h, &pz));
	for (scope = DAT_LMR_SCOPE_EP; scope <= DAT_LMR_SCOPE_ANY; scope++) {
		KDT_OK(test, dat_lmr_allocate(b->h, pz, limits.lmr_pages, scope, &lmr));
		memset(&param, 0xa5, sizeof(param));
		KDT_OK(test, dat_lmr_query(lmr, DAT_LMR_FIELD_ALL, &param));
		KUNIT_EXPECT_EQ(test, (int)param.lmr_state.fmr_support, DAT_TRUE);
		KUNIT_EXPECT_EQ(test, (int)param.lmr_state.bound, DAT_FALSE);
		KUNIT_EXPECT_PTR_EQ(test, param.ia_handle, b->h);
		KUNIT_EXPECT_PTR_EQ(test, param.pz_handle, pz);
		KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE,
			    dat_pz_free(pz));
		KDT_OK(test, dat_lmr_free(lmr));
	}
	KDT_OK(test, dat_pz_free(pz));
}

/* One life: unbound, bound, used, invalidated, dead; and once more with other keys. */
static void life(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_mem_pair(test, NULL);
	struct kdt_buf *mem = kdt_fmr_new(test, &env->b, PAGES, DAT_LMR_SCOPE_PZ), old;
	DAT_LMR_PARAM param = {};
	int i;

	for (i = 0; i < 3; i++) {
		KUNIT_EXPECT_FALSE(test, kdt_bound(test, mem->lmr));
		KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_FREE,
			    kdt_inv(&pair->s, mem, 1, 0));
		KDT_OK(test, kdt_fmr(&pair->s, mem, KDT_RIGHTS,
				     i == 1 ? DAT_VA_TYPE_ZB : DAT_VA_TYPE_VA, 0xc0ffee00ULL << 24,
				     0));
		kdt_dto(test, pair->s.req, &pair->s, 0xc0ffee00ULL << 24, DAT_DTO_LMR_FMR,
			DAT_DTO_SUCCESS, 0);
		KDT_OK(test, dat_lmr_query(mem->lmr, DAT_LMR_FIELD_ALL, &param));
		KUNIT_EXPECT_EQ(test, (int)param.lmr_state.bound, DAT_TRUE);
		KUNIT_EXPECT_EQ(test, (int)param.mem_type, DAT_MEM_TYPE_PHYSICAL);
		KUNIT_EXPECT_EQ(test, (int)param.mem_priv, (int)KDT_RIGHTS);
		KUNIT_EXPECT_EQ(test, (int)param.va_type, i == 1);
		KUNIT_EXPECT_EQ(test, param.lmr_context, mem->lctx);
		KUNIT_EXPECT_EQ(test, param.rmr_context, mem->rctx);
		KUNIT_EXPECT_EQ(test, param.registered_size, (u64)LEN);
		KUNIT_EXPECT_EQ(test, param.registered_address,
				mem->shift + (uintptr_t)mem->p);
		KUNIT_EXPECT_NE(test, mem->rctx, 0);
		if (i) {
			KUNIT_EXPECT_NE(test, mem->lctx, old.lctx);
			KUNIT_EXPECT_NE(test, mem->rctx, old.rctx);
			kdt_lctx_dead(test, &pair->s, &old);
			kdt_key_dead(test, &old);
		}
		kdt_peer_works(test, pair, mem, 0, LEN, i);
		kdt_peer_works(test, pair, mem, 4095, 4098, i);
		kdt_peer_works(test, pair, mem, LEN - 1, 1, i);
		KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE,
			    kdt_fmr(&pair->s, mem, KDT_RIGHTS, DAT_VA_TYPE_VA, 1, 0));
		KDT_OK(test, kdt_inv(&pair->s, mem, 0x77, 0));
		/* not for posts any more, and not twice */
		kdt_lctx_dead(test, &pair->s, mem);
		KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_FREE,
			    kdt_inv(&pair->s, mem, 1, 0));
		kdt_dto(test, pair->s.req, &pair->s, 0x77, DAT_DTO_LMR_INVALIDATE,
			DAT_DTO_SUCCESS, 0);
		KUNIT_EXPECT_FALSE(test, kdt_bound(test, mem->lmr));
		kdt_key_dead(test, mem);
		kdt_lctx_dead(test, &pair->s, mem);
		old = *mem;
	}
	KDT_OK(test, dat_lmr_free(mem->lmr));
	kdt_settle(test, pair);
	kdt_mem_down(test, pair);
	kdt_ep_done(test, &pair->c);
	kdt_ep_done(test, &pair->s);
}

/* Not a byte beside it, locally or by a peer. */
static void bounds(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_mem_pair(test, NULL);
	struct kdt_buf *mem = kdt_fmr_new(test, &env->b, PAGES, DAT_LMR_SCOPE_PZ);
	DAT_RMR_TRIPLET remote;
	DAT_LMR_TRIPLET iov;
	int va, i;

	for (va = 0; va < 2; va++) {
		for (i = 0; i < 4; i++) {
			KDT_OK(test, kdt_fmr(&pair->s, mem, KDT_RIGHTS, va, 1, KDT_SUPPRESS));
			remote = kdt_rseg(mem, i / 2 ? LEN - 1 : 0, 2);
			iov = kdt_seg(mem, i / 2 ? LEN - 1 : 0, 2);
			if (i < 2) {
				remote.virtual_address--;
				iov.virtual_address--;
			}
			KDT_TYPE(test, DAT_INVALID_PARAMETER,
				 dat_ep_post_send(pair->s.h, 1, &iov, kdt_cookie(1), 0));
			/* this Send is behind the fmr */
			kdt_settle_back(test, pair);
			kdt_peer_fails(test, mem, &remote, i % 2);
			kdt_inv_done(test, &pair->s, mem);
		}
	}
	kdt_settle(test, pair);
}

static DAT_RETURN send_offer(struct kdt_ep *ep, struct kdt_buf *ctrl, struct kdt_buf *mem,
			     u32 number, u64 cookie, int flags)
{
	struct kdt_offer *offer = (struct kdt_offer *)ctrl->p;

	*offer = (struct kdt_offer) {
		.va = (uintptr_t)mem->p + mem->shift,
		.len = mem->len,
		.rctx = mem->rctx,
		.number = number,
	};
	return kdt_send(ep, ctrl, 0, sizeof(*offer), cookie, flags);
}

/*
 * fmr without an event and a message with the key right behind it, again and
 * again: whoever gets the message may use the key. Every other time the server
 * sends the whole region instead, as soon as it is bound.
 */
static void usable_at_once(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_mem_pair(test, NULL);
	struct kdt_buf *mem = kdt_fmr_new(test, &env->b, PAGES, DAT_LMR_SCOPE_ANY);
	struct kdt_buf *ctrl = kdt_buf_new(test, &env->b, sizeof(struct kdt_offer));
	struct kdt_buf *got = kdt_buf_new(test, &env->a, LEN);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, LEN);
	struct kdt_offer *offer = (struct kdt_offer *)got->p;
	DAT_LMR_CONTEXT last = 0;
	DAT_RMR_TRIPLET remote;
	DAT_LMR_TRIPLET iov;
	int i, rounds = kdt_rounds;

	for (i = 0; i < rounds; i++) {
		KDT_OK(test, kdt_recv(&pair->c, got, 0, LEN, i));
		if (i % 2) {
			kdt_fill(mem->p, LEN, i);
			KDT_OK(test, kdt_fmr(&pair->s, mem, DAT_MEM_PRIV_LOCAL_READ_FLAG,
					     DAT_VA_TYPE_VA, 1, KDT_SUPPRESS));
			KUNIT_EXPECT_EQ(test, mem->rctx, 0);
			KDT_OK(test, kdt_send(&pair->s, mem, 0, LEN, 2, KDT_SUPPRESS));
			KDT_OK(test, kdt_inv(&pair->s, mem, 3, KDT_INV_FENCE));
			kdt_dto(test, pair->c.recv, &pair->c, i, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS,
				LEN);
			KUNIT_ASSERT_TRUE_MSG(test, kdt_same(got->p, LEN, i), "round %d", i);
		} else {
			KDT_OK(test, kdt_fmr(&pair->s, mem, KDT_RIGHTS, DAT_VA_TYPE_VA, 1,
					     KDT_SUPPRESS));
			KDT_OK(test, send_offer(&pair->s, ctrl, mem, i, 2, KDT_SUPPRESS));
			kdt_dto(test, pair->c.recv, &pair->c, i, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS,
				sizeof(*offer));
			KUNIT_ASSERT_EQ(test, offer->number, i);
			remote = (DAT_RMR_TRIPLET) {
				.virtual_address = offer->va,
				.segment_length = offer->len,
				.rmr_context = offer->rctx,
			};
			kdt_fill(mine->p, LEN, i);
			iov = kdt_seg(mine, 0, LEN);
			KDT_OK(test, dat_ep_post_rdma_write(pair->c.h, 1, &iov, kdt_cookie(4),
							    &remote, 0));
			kdt_dto(test, pair->c.req, &pair->c, 4, DAT_DTO_RDMA_WRITE,
				DAT_DTO_SUCCESS, LEN);
			kdt_settle(test, pair);
			KDT_OK(test, kdt_inv(&pair->s, mem, 3, 0));
			KUNIT_ASSERT_TRUE_MSG(test, kdt_same(mem->p, LEN, i), "round %d", i);
		}
		KUNIT_EXPECT_NE(test, mem->lctx, last);
		last = mem->lctx;
		kdt_dto(test, pair->s.req, &pair->s, 3, DAT_DTO_LMR_INVALIDATE, DAT_DTO_SUCCESS,
			0);
		KUNIT_EXPECT_TRUE(test, kdt_guarded(mem));
	}
	kdt_settle(test, pair);
	kdt_mem_down(test, pair);
	kdt_ep_done(test, &pair->c);
	kdt_ep_done(test, &pair->s);
}

/* No event of any of them; the next fmr comes as soon as it is let. */
static void many_rebinds(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_mem_pair(test, NULL);
	struct kdt_buf *mem = kdt_fmr_new(test, &env->b, PAGES, DAT_LMR_SCOPE_PZ);
	unsigned long end;
	int i, seen = 0, waited = 0, n = min(kdt_rounds, 100U);
	DAT_RETURN ret;
	u32 *keys;

	keys = kunit_kcalloc(test, 16, sizeof(*keys), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, keys);
	for (i = 0; i < n; i++) {
		end = jiffies + KDT_WAIT;
		while ((ret = kdt_fmr(&pair->s, mem, KDT_RIGHTS, DAT_VA_TYPE_VA, 1,
				      KDT_SUPPRESS)) != DAT_SUCCESS) {
			KUNIT_ASSERT_TRUE_MSG(test, ret == DAT_ERROR(DAT_INVALID_STATE,
								     DAT_INVALID_STATE_LMR_IN_USE),
					      "%s %s", kdt_major(ret), kdt_minor(ret));
			KUNIT_ASSERT_TRUE_MSG(test, time_before(jiffies, end),
					      "it never becomes free");
			if (++waited % 64)
				cond_resched();
			else
				schedule_timeout_uninterruptible(1);
		}
		if (mem->rctx == keys[i % 16])
			seen++;
		keys[i % 16] = mem->rctx;
		if (i)
			KUNIT_EXPECT_NE(test, mem->rctx, keys[(i - 1) % 16]);
		do {
			ret = kdt_inv(&pair->s, mem, 2, KDT_SUPPRESS | KDT_INV_FENCE);
		} while (DAT_GET_TYPE(ret) == DAT_INSUFFICIENT_RESOURCES &&
			 time_before(jiffies, end));
		KDT_OK(test, ret);
	}
	KUNIT_EXPECT_LE_MSG(test, seen, n / 16, "the keys come again too soon");
	kunit_info(test, "%d rebinds, %d looks\n", n, waited);
	kdt_settle_back(test, pair);
	kdt_mem_down(test, pair);
	kdt_ep_done(test, &pair->s);
	kdt_ep_done(test, &pair->c);
	KUNIT_EXPECT_FALSE(test, kdt_bound(test, mem->lmr));
}

#define FMR(lmr, type, n, priv, va, ep, flags)						\
	dat_lmr_fmr(lmr, type, region, n, priv, va, ep, kdt_cookie(1), flags, &lctx, &rctx)

static void refused(struct kunit *test)
{
	static const int types[] = {
		DAT_MEM_TYPE_VIRTUAL, DAT_MEM_TYPE_LMR, DAT_MEM_TYPE_PLATFORM, DAT_MEM_TYPE_IA,
		DAT_MEM_TYPE_BYPASS, 0x03, 0x200,
	};
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_mem_pair(test, NULL);
	struct kdt_buf *mem = kdt_fmr_new(test, &env->b, PAGES, DAT_LMR_SCOPE_PZ);
	struct kdt_buf *fixed = kdt_buf_new(test, &env->b, 100);
	DAT_REGION_DESCRIPTION region = { .for_physical = mem->pages };
	DAT_LMR_HANDLE lmr = mem->lmr, far;
	DAT_EP_HANDLE ep = pair->s.h;
	struct kdat_mem_limits limits;
	DAT_LMR_CONTEXT lctx;
	DAT_RMR_CONTEXT rctx;
	struct kdt_ep idle;
	DAT_PADDR good = mem->pages[1];
	DAT_LMR_TRIPLET iov;
	DAT_PZ_HANDLE pz;
	int i;

	kdt_mem_limits(test, &env->b, &limits);
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR,
		    FMR(DAT_HANDLE_NULL, DAT_MEM_TYPE_PHYSICAL, 1, KDT_RIGHTS, 0, ep, 0));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR,
		    FMR((DAT_LMR_HANDLE)env->b.pz, DAT_MEM_TYPE_PHYSICAL, 1, KDT_RIGHTS, 0, ep,
			0));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		    FMR(lmr, DAT_MEM_TYPE_PHYSICAL, 1, KDT_RIGHTS, 0, DAT_HANDLE_NULL, 0));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		    FMR(lmr, DAT_MEM_TYPE_PHYSICAL, 1, KDT_RIGHTS, 0, (DAT_EP_HANDLE)lmr, 0));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR,
		    dat_lmr_invalidate(DAT_HANDLE_NULL, ep, kdt_cookie(1), 0));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		    dat_lmr_invalidate(lmr, (DAT_EP_HANDLE)lmr, kdt_cookie(1), 0));
	for (i = 0; i < ARRAY_SIZE(types); i++)
		KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
			    FMR(lmr, types[i], 1, KDT_RIGHTS, 0, ep, 0));
	/* the pages */
	mem->pages[1] = good + 4;
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		    FMR(lmr, DAT_MEM_TYPE_PHYSICAL, PAGES, KDT_RIGHTS, 0, ep, 0));
	mem->pages[1] = 1ULL << 51;
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		    FMR(lmr, DAT_MEM_TYPE_PHYSICAL, PAGES, KDT_RIGHTS, 0, ep, 0));
	mem->pages[1] = good;
	region.for_physical = NULL;
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		    FMR(lmr, DAT_MEM_TYPE_PHYSICAL, 1, KDT_RIGHTS, 0, ep, 0));
	region.for_array.pages = mem->pages;
	region.for_array.page_size = 3 * PAGE_SIZE;
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		    FMR(lmr, DAT_MEM_TYPE_PHYSICAL_VAR_PAGES, 1, KDT_RIGHTS, 0, ep, 0));
	region.for_array.page_size = 0;
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		    FMR(lmr, DAT_MEM_TYPE_PHYSICAL_VAR_PAGES, 1, KDT_RIGHTS, 0, ep, 0));
	region.for_physical = mem->pages;
	/* scalars */
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG4,
		    FMR(lmr, DAT_MEM_TYPE_PHYSICAL, 0, KDT_RIGHTS, 0, ep, 0));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG4,
		    FMR(lmr, DAT_MEM_TYPE_PHYSICAL, PAGES + 1, KDT_RIGHTS, 0, ep, 0));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG4,
		    FMR(lmr, DAT_MEM_TYPE_PHYSICAL, U64_MAX, KDT_RIGHTS, 0, ep, 0));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG5,
		    FMR(lmr, DAT_MEM_TYPE_PHYSICAL, 1, 0x04, 0, ep, 0));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG6,
		    FMR(lmr, DAT_MEM_TYPE_PHYSICAL, 1, KDT_RIGHTS, 2, ep, 0));
	/* flags of other calls, and one the endpoint was not made for */
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG9,
		    FMR(lmr, DAT_MEM_TYPE_PHYSICAL, 1, KDT_RIGHTS, 0, ep, KDT_INV_FENCE));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG9,
		    FMR(lmr, DAT_MEM_TYPE_PHYSICAL, 1, KDT_RIGHTS, 0, ep,
			DAT_COMPLETION_SOLICITED_WAIT_FLAG));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG9,
		    FMR(lmr, DAT_MEM_TYPE_PHYSICAL, 1, KDT_RIGHTS, 0, ep,
			DAT_COMPLETION_UNSIGNALLED_FLAG));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG9,
		    FMR(lmr, DAT_MEM_TYPE_PHYSICAL, 1, KDT_RIGHTS, 0, ep, 0x100));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG4,
		    dat_lmr_invalidate(lmr, ep, kdt_cookie(1), DAT_COMPLETION_UNSIGNALLED_FLAG));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG4,
		    dat_lmr_invalidate(lmr, ep, kdt_cookie(1),
				       DAT_COMPLETION_EVD_THRESHOLD_FLAG));
	iov = kdt_seg(fixed, 0, 10);
	KDT_TYPE(test, DAT_INVALID_PARAMETER,
		 dat_ep_post_send(ep, 1, &iov, kdt_cookie(1), KDT_INV_FENCE));
	/* An LMR that is not for this, with both. */
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE,
		    FMR(fixed->lmr, DAT_MEM_TYPE_PHYSICAL, 1, KDT_RIGHTS, 0, ep, 0));
	KDT_TYPE(test, DAT_INVALID_STATE, dat_lmr_invalidate(fixed->lmr, ep, kdt_cookie(1), 0));
	/* another PZ */
	KDT_OK(test, dat_pz_create(env->b.h, &pz));
	KDT_OK(test, dat_lmr_allocate(env->b.h, pz, PAGES, DAT_LMR_SCOPE_PZ, &far));
	KDT_TYPE(test, DAT_PROTECTION_VIOLATION,
		 FMR(far, DAT_MEM_TYPE_PHYSICAL, 1, KDT_RIGHTS, 0, ep, 0));
	KDT_OK(test, dat_lmr_free(far));
	/* an endpoint that is not connected */
	kdt_ep_new(test, &idle, &env->b, NULL);
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONNECTED,
		    FMR(lmr, DAT_MEM_TYPE_PHYSICAL, 1, KDT_RIGHTS, 0, idle.h, 0));
	KUNIT_EXPECT_FALSE(test, kdt_bound(test, lmr));
	/* None of it has changed anything, and there is no event but these. */
	kdt_fmr_done(test, &pair->s, mem, KDT_RIGHTS);
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONNECTED,
		    dat_lmr_invalidate(lmr, idle.h, kdt_cookie(1), 0));
	KUNIT_EXPECT_TRUE(test, kdt_bound(test, lmr));
	kdt_peer_works(test, pair, mem, 0, LEN, 1);
	kdt_inv_done(test, &pair->s, mem);
	kdt_settle(test, pair);
	kdt_mem_down(test, pair);
	kdt_ep_done(test, &pair->s);
}

/* Suppressed, unsignalled, fenced. */
static void flags(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_buf *mem = kdt_fmr_new(test, &env->b, PAGES, DAT_LMR_SCOPE_PZ);
	struct kdt_buf *sink = kdt_buf_new(test, &env->b, SZ_64K);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, SZ_64K);
	struct kdt_pair *pair;
	DAT_EP_ATTR attr;
	unsigned int calls;

	kdt_attr(env, &attr);
	attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	pair = kdt_mem_pair(test, &attr);
	/* success is silent, and what comes behind tells that it was one */
	KDT_OK(test, kdt_fmr(&pair->s, mem, KDT_RIGHTS, 0, 1,
			     KDT_SUPPRESS | DAT_COMPLETION_UNSIGNALLED_FLAG));
	KDT_OK(test, kdt_inv(&pair->s, mem, 2, KDT_SUPPRESS | KDT_INV_FENCE));
	KDT_OK(test, kdt_read(&pair->s, sink, 0, SZ_64K, from, 0, 3, 0));
	kdt_dto(test, pair->s.req, &pair->s, 3, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, SZ_64K);
	KUNIT_EXPECT_FALSE(test, kdt_bound(test, mem->lmr));
	KUNIT_EXPECT_EQ(test, kdt_queued(pair->s.req), 0);
	/* unsignalled ones wait for one that is signalled */
	KUNIT_EXPECT_TRUE(test, kdt_idle(pair->s.req));
	calls = READ_ONCE(pair->s.req->entered);
	KDT_OK(test, kdt_fmr(&pair->s, mem, KDT_RIGHTS, 0, 4, DAT_COMPLETION_UNSIGNALLED_FLAG));
	KDT_OK(test, kdt_inv(&pair->s, mem, 5, DAT_COMPLETION_UNSIGNALLED_FLAG));
	/* whatever the client gets from here comes after them */
	KDT_OK(test, dat_ep_post_recv(pair->c.h, 0, NULL, kdt_cookie(6), 0));
	KDT_OK(test, dat_ep_post_send(pair->s.h, 0, NULL, kdt_cookie(7), KDT_SUPPRESS));
	kdt_dto(test, pair->c.recv, &pair->c, 6, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 0);
	KUNIT_EXPECT_EQ(test, READ_ONCE(pair->s.req->entered), calls);
	KDT_OK(test, kdt_read(&pair->s, sink, 0, 8, from, 0, 8, 0));
	kdt_dto(test, pair->s.req, &pair->s, 4, DAT_DTO_LMR_FMR, DAT_DTO_SUCCESS, 0);
	kdt_dto(test, pair->s.req, &pair->s, 5, DAT_DTO_LMR_INVALIDATE, DAT_DTO_SUCCESS, 0);
	kdt_dto(test, pair->s.req, &pair->s, 8, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, 8);
	/* behind a Read */
	KDT_OK(test, kdt_read(&pair->s, sink, 0, SZ_64K, from, 0, 9, 0));
	KDT_OK(test, kdt_fmr(&pair->s, mem, KDT_RIGHTS, 0, 10, kdt_fence));
	KDT_OK(test, kdt_inv(&pair->s, mem, 11,
			     DAT_COMPLETION_BARRIER_FENCE_FLAG | KDT_INV_FENCE));
	kdt_dto(test, pair->s.req, &pair->s, 9, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, SZ_64K);
	kdt_dto(test, pair->s.req, &pair->s, 10, DAT_DTO_LMR_FMR, DAT_DTO_SUCCESS, 0);
	kdt_dto(test, pair->s.req, &pair->s, 11, DAT_DTO_LMR_INVALIDATE, DAT_DTO_SUCCESS, 0);
	kdt_settle(test, pair);
	kdt_mem_down(test, pair);
	kdt_ep_done(test, &pair->s);
}

/* Everything posted before a fenced invalidate gets through: out of the region and into it. */
static void fenced_invalidate(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_mem_pair(test, NULL);
	struct kdt_buf *mem = kdt_fmr_new(test, &env->b, 16, DAT_LMR_SCOPE_PZ);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, SZ_64K);
	struct kdt_buf *to = kdt_buf_new(test, &env->a, SZ_64K);
	int i;

	KUNIT_ASSERT_EQ(test, mem->len, (u32)SZ_64K);
	for (i = 0; i < 20; i++) {
		kdt_fill(from->p, SZ_64K, i);
		kdt_fill(mem->p, SZ_64K, 100 + i);
		memset(to->p, 0, SZ_64K);
		KDT_OK(test, kdt_fmr(&pair->s, mem, KDT_RIGHTS, 0, 1, KDT_SUPPRESS));
		KDT_OK(test, kdt_write(&pair->s, mem, 0, SZ_64K, to, 0, 2, 0));
		if (i % 2)	/* the Read brings other bytes: behind the Write */
			KDT_OK(test, kdt_read(&pair->s, mem, 0, SZ_64K, from, 0, 3, 0));
		KDT_OK(test, kdt_inv(&pair->s, mem, 4, KDT_INV_FENCE));
		kdt_dto(test, pair->s.req, &pair->s, 2, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS,
			SZ_64K);
		if (i % 2)
			kdt_dto(test, pair->s.req, &pair->s, 3, DAT_DTO_RDMA_READ,
				DAT_DTO_SUCCESS, SZ_64K);
		kdt_dto(test, pair->s.req, &pair->s, 4, DAT_DTO_LMR_INVALIDATE, DAT_DTO_SUCCESS,
			0);
		KUNIT_EXPECT_TRUE_MSG(test, kdt_same(mem->p, SZ_64K, i % 2 ? i : 100 + i),
				      "round %d", i);
		kdt_settle_back(test, pair);
		if (!(i % 2))
			KUNIT_EXPECT_TRUE_MSG(test, kdt_same(to->p, SZ_64K, 100 + i),
					      "round %d", i);
	}
	kdt_settle(test, pair);
	kdt_mem_down(test, pair);
}

/* ---- from softirq ---- */

/*
 * The server does everything in upcalls: a message makes it bind its memory and
 * answer with the key, the next one makes it invalidate, and the completion of
 * that lets the client's next message come.
 */
static struct machine {
	struct kdt_pair *pair;
	struct kdt_buf *mem, *ctrl;
	struct completion done;
	unsigned int round, rounds;
	bool bound;
	DAT_RETURN ret;
	unsigned int bad, invalidated;
} machine;

static bool machine_recv(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	struct machine *m = &machine;
	DAT_RETURN ret;

	if (dto->status != DAT_DTO_SUCCESS)
		return true;
	if (!in_serving_softirq())
		m->bad++;
	ret = dat_ep_post_recv(m->pair->s.h, 0, NULL, kdt_cookie(0), 0);
	if (!m->bound) {
		ret |= kdt_fmr(&m->pair->s, m->mem, KDT_RIGHTS, m->round % 2, 1, KDT_SUPPRESS);
		if (ret == DAT_SUCCESS)
			ret |= send_offer(&m->pair->s, m->ctrl, m->mem, m->round, 2,
					  KDT_SUPPRESS);
		m->bound = true;
	} else {
		if (!kdt_same(m->mem->p, m->mem->len, m->round))
			m->bad++;
		ret |= kdt_inv(&m->pair->s, m->mem, 3, 0);
		m->bound = false;
		m->round++;
	}
	m->ret |= ret;
	if (ret != DAT_SUCCESS)
		complete(&m->done);
	return true;
}

static bool machine_req(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	struct machine *m = &machine;

	if (dto->status != DAT_DTO_SUCCESS || dto->operation != DAT_DTO_LMR_INVALIDATE ||
	    dto->user_cookie.as_64 != 3 || !in_serving_softirq()) {
		m->bad++;
		complete(&m->done);
		return true;
	}
	/* At once again, which has no event and is undone: it is free by now. */
	m->ret |= kdt_fmr(&m->pair->s, m->mem, KDT_RIGHTS, 0, 4, KDT_SUPPRESS);
	m->ret |= kdt_inv(&m->pair->s, m->mem, 5, KDT_SUPPRESS);
	m->invalidated++;
	complete(&m->done);
	return true;
}

static void from_softirq(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdat_mem_limits limits;
	struct kdt_buf *got, *mine;
	struct kdt_pair *pair;
	struct kdt_offer *offer;
	DAT_RMR_TRIPLET remote;
	DAT_LMR_TRIPLET iov;
	DAT_EP_ATTR attr;
	int i, k, pages;

	kdt_mem_limits(test, &env->b, &limits);
	pages = min(limits.lmr_pages, 16);
	memset(&machine, 0, sizeof(machine));
	init_completion(&machine.done);
	kdt_attr(env, &attr);
	pair = kdt_mem_pair(test, &attr);
	machine.pair = pair;
	machine.mem = kdt_fmr_new(test, &env->b, pages, DAT_LMR_SCOPE_PZ);
	machine.ctrl = kdt_buf_new(test, &env->b, sizeof(*offer));
	got = kdt_buf_new(test, &env->a, sizeof(*offer));
	mine = kdt_buf_new(test, &env->a, machine.mem->len);
	offer = (struct kdt_offer *)got->p;
	pair->s.recv->hook = machine_recv;
	pair->s.req->hook = machine_req;
	for (k = 0; k < 4; k++)
		KDT_OK(test, dat_ep_post_recv(pair->s.h, 0, NULL, kdt_cookie(0), 0));
	for (i = 0; i < 50; i++) {
		KDT_OK(test, kdt_recv(&pair->c, got, 0, sizeof(*offer), i));
		/* the one before is free when its suppressed end has come back */
		KDT_OK(test, dat_ep_post_send(pair->c.h, 0, NULL, kdt_cookie(1), KDT_SUPPRESS));
		kdt_dto(test, pair->c.recv, &pair->c, i, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS,
			sizeof(*offer));
		KUNIT_ASSERT_EQ(test, offer->number, i);
		kdt_fill(mine->p, mine->len, i);
		remote = (DAT_RMR_TRIPLET) {
			.virtual_address = offer->va,
			.segment_length = offer->len,
			.rmr_context = offer->rctx,
		};
		iov = kdt_seg(mine, 0, mine->len);
		KDT_OK(test, dat_ep_post_rdma_write(pair->c.h, 1, &iov, kdt_cookie(2), &remote,
						    KDT_SUPPRESS));
		KDT_OK(test, dat_ep_post_send(pair->c.h, 0, NULL, kdt_cookie(3), 0));
		kdt_dto(test, pair->c.req, &pair->c, 3, DAT_DTO_SEND, DAT_DTO_SUCCESS, 0);
		KUNIT_ASSERT_NE(test, wait_for_completion_timeout(&machine.done, KDT_WAIT), 0);
		KDT_OK(test, machine.ret);
		KUNIT_ASSERT_EQ(test, machine.bad, 0);
		/* its own fmr and invalidate come back before anything posted later */
		pair->s.req->hook = NULL;
		kdt_settle_back(test, pair);
		pair->s.req->hook = machine_req;
	}
	KUNIT_EXPECT_EQ(test, machine.invalidated, 50);
	KUNIT_EXPECT_TRUE(test, kdt_guarded(machine.mem));
	pair->s.recv->hook = NULL;
	pair->s.req->hook = NULL;
	kdt_mem_down(test, pair);
}

/* As large as it can be, with interrupts off, for the first time and the second. */
static void without_sleep(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_mem_pair(test, NULL);
	struct kdat_mem_limits limits;
	struct kdt_buf *mem;
	unsigned long irq;
	DAT_RETURN ret;
	int i;

	kdt_mem_limits(test, &env->b, &limits);
	mem = kdt_fmr_new(test, &env->b, limits.lmr_pages, DAT_LMR_SCOPE_EP);
	for (i = 0; i < 3; i++) {
		local_irq_save(irq);
		ret = kdt_fmr(&pair->s, mem, KDT_RIGHTS, i % 2, 1, 0);
		local_irq_restore(irq);
		KDT_OK(test, ret);
		kdt_dto(test, pair->s.req, &pair->s, 1, DAT_DTO_LMR_FMR, DAT_DTO_SUCCESS, 0);
		kdt_peer_works(test, pair, mem, mem->len - 5000, 5000, i);
		kdt_peer_works(test, pair, mem, 3, 5000, i);
		local_irq_save(irq);
		ret = kdt_inv(&pair->s, mem, 2, 0);
		local_irq_restore(irq);
		KDT_OK(test, ret);
		kdt_dto(test, pair->s.req, &pair->s, 2, DAT_DTO_LMR_INVALIDATE, DAT_DTO_SUCCESS,
			0);
	}
	kunit_info(test, "%u bytes\n", mem->len);
	kdt_settle(test, pair);
}

/* ---- scope ---- */

static void scopes(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *one = kdt_mem_pair(test, NULL), *two = kdt_mem_pair(test, NULL);
	struct kdt_buf *there = kdt_buf_new(test, &env->a, 64);
	struct kdt_buf *mem;
	int scope;

	for (scope = DAT_LMR_SCOPE_EP; scope <= DAT_LMR_SCOPE_ANY; scope++) {
		mem = kdt_fmr_new(test, &env->b, 2, scope);
		kdt_fmr_done(test, &one->s, mem, KDT_RIGHTS);
		kdt_peer_works(test, one, mem, 0, mem->len, scope);
		KDT_OK(test, kdt_write(&one->s, mem, 0, 64, there, 0, 1, 0));
		kdt_dto(test, one->s.req, &one->s, 1, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS, 64);
		if (scope == DAT_LMR_SCOPE_EP) {
			KDT_TYPE(test, DAT_PROTECTION_VIOLATION,
				 kdt_write(&two->s, mem, 0, 64, there, 0, 1, 0));
			KDT_TYPE(test, DAT_PROTECTION_VIOLATION,
				 kdt_send(&two->s, mem, 0, 64, 1, 0));
			KDT_TYPE(test, DAT_PROTECTION_VIOLATION,
				 kdt_recv(&two->s, mem, 0, 64, 1));
			KDT_TYPE(test, DAT_PROTECTION_VIOLATION,
				 kdt_read(&two->s, mem, 0, 64, there, 0, 1, 0));
			KDT_TYPE(test, DAT_PROTECTION_VIOLATION, kdt_inv(&two->s, mem, 1, 0));
			KUNIT_EXPECT_TRUE(test, kdt_bound(test, mem->lmr));
			kdt_inv_done(test, &one->s, mem);
		} else {
			KDT_OK(test, kdt_write(&two->s, mem, 0, 64, there, 0, 1, 0));
			kdt_dto(test, two->s.req, &two->s, 1, DAT_DTO_RDMA_WRITE,
				DAT_DTO_SUCCESS, 64);
			kdt_peer_works(test, two, mem, 0, mem->len, scope);
			kdt_inv_done(test, &two->s, mem);
		}
		/* unbound it is anybody's again */
		kdt_fmr_done(test, &two->s, mem, KDT_RIGHTS);
		kdt_peer_works(test, two, mem, 0, mem->len, scope + 10);
		kdt_inv_done(test, &two->s, mem);
		KDT_OK(test, dat_lmr_free(mem->lmr));
	}
	kdt_settle(test, one);
	kdt_settle(test, two);
}

/* ---- scatterlists ---- */

#define SG_PIECES	6
#define SG_PAGES	40

struct pieces {
	struct kdt_buf *mem;	/* memory that the list takes pages from, in its own order */
	struct scatterlist sgl[SG_PIECES];
	struct kdat_sg sg;
	u8 *flat;		/* what the peer sees, in order */
	u32 len;
	int n;
	u8 *at[SG_PIECES];	/* the pieces that count */
	u32 part[SG_PIECES];
};

static u32 below(struct rnd_state *rnd, u32 n)
{
	return prandom_u32_state(rnd) % n;
}

/*
 * Pieces of several pages each, in no order, only the first starts inside of a
 * page and only the last ends in one; of all that some bytes at each end are
 * left out.
 */
static void pieces_new(struct pieces *s, struct rnd_state *rnd)
{
	u32 total = 0, left, skip;
	int i, slot;

	s->n = 1 + below(rnd, SG_PIECES);
	sg_init_table(s->sgl, s->n);
	for (i = 0; i < s->n; i++) {
		u32 pages = 1 + below(rnd, 3), off = 0, len;
		u8 *p;

		/* slots of six pages, never next to each other in the order of the list */
		slot = (i * 5 + 3) % SG_PIECES;
		p = s->mem->p + slot * 6 * PAGE_SIZE + PAGE_SIZE;
		len = pages * PAGE_SIZE;
		if (!i)
			off = below(rnd, PAGE_SIZE);
		if (i == s->n - 1)
			len -= below(rnd, PAGE_SIZE - off);
		len -= off;
		p += off;
		sg_set_page(&s->sgl[i], virt_to_page(p), len, offset_in_page(p));
		s->at[i] = p;
		s->part[i] = len;
		total += len;
	}
	s->sg.sgl = s->sgl;
	s->sg.nents = s->n;
	skip = below(rnd, 3) ? below(rnd, total) : 0;
	s->len = 1 + below(rnd, total - skip);
	if (!below(rnd, 3))
		s->len = total - skip;
	s->sg.offset = skip;
	s->sg.length = s->len;
	left = s->len;
	for (i = 0; i < s->n; i++) {
		u32 cut = min(skip, s->part[i]);

		s->at[i] += cut;
		s->part[i] = min(s->part[i] - cut, left);
		skip -= cut;
		left -= s->part[i];
	}
}

static void pieces_put(struct pieces *s)
{
	u8 *from = s->flat;
	int i;

	for (i = 0; i < s->n; from += s->part[i++])
		memcpy(s->at[i], from, s->part[i]);
}

/* The pieces hold this, and all the rest of the memory is as it was. */
static bool pieces_hold(struct pieces *s, u8 rest)
{
	u8 *from = s->flat;
	bool same = true;
	int i;

	for (i = 0; i < s->n; from += s->part[i++]) {
		same &= !memcmp(s->at[i], from, s->part[i]);
		memset(s->at[i], rest, s->part[i]);
	}
	return same && kdt_all(s->mem->p, s->mem->len, rest) && kdt_guarded(s->mem);
}

static void scatterlists(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_mem_pair(test, NULL);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, SG_PAGES * PAGE_SIZE);
	struct pieces *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);
	u32 seed = kdt_seed(test);
	struct rnd_state rnd;
	struct kdt_buf reg = {};
	DAT_LMR_PARAM param = {};
	DAT_RMR_TRIPLET remote;
	DAT_LMR_TRIPLET iov;
	DAT_VADDR addr;
	int i, va;

	KUNIT_ASSERT_NOT_NULL(test, s);
	prandom_seed_state(&rnd, seed);
	s->mem = kdt_mem_new(test, SG_PAGES * PAGE_SIZE, true);
	s->flat = kunit_kzalloc(test, SG_PAGES * PAGE_SIZE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, s->flat);
	KDT_OK(test, allocate(&env->b, SG_PAGES, DAT_LMR_SCOPE_PZ, &reg.lmr));
	for (i = 0; i < 60; i++) {
		pieces_new(s, &rnd);
		va = i % 4 == 3 ? DAT_VA_TYPE_ZB : DAT_VA_TYPE_VA;
		if (va == DAT_VA_TYPE_ZB && (s->sgl[0].offset + s->sg.offset) % PAGE_SIZE) {
			KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
				    kdat_lmr_fmr_sg(reg.lmr, &s->sg, KDT_RIGHTS, va, pair->s.h,
						    kdt_cookie(1), 0, &reg.lctx, &reg.rctx,
						    &addr));
			va = DAT_VA_TYPE_VA;
		}
		KDT_OK(test, kdat_lmr_fmr_sg(reg.lmr, &s->sg, KDT_RIGHTS, va, pair->s.h,
					     kdt_cookie(1), KDT_SUPPRESS, &reg.lctx, &reg.rctx,
					     &addr));
		memset(s->sgl, 0xa5, sizeof(s->sgl));
		if (va == DAT_VA_TYPE_ZB)
			KUNIT_EXPECT_EQ(test, addr, 0);
		KDT_OK(test, dat_lmr_query(reg.lmr, DAT_LMR_FIELD_ALL, &param));
		KUNIT_EXPECT_EQ(test, param.registered_address, addr);
		KUNIT_EXPECT_EQ(test, param.registered_size, (u64)s->len);
		/* a message behind it says that it may be used */
		KDT_OK(test, dat_ep_post_recv(pair->c.h, 0, NULL, kdt_cookie(2), 0));
		KDT_OK(test, dat_ep_post_send(pair->s.h, 0, NULL, kdt_cookie(3), KDT_SUPPRESS));
		kdt_dto(test, pair->c.recv, &pair->c, 2, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 0);

		remote = (DAT_RMR_TRIPLET) { addr, s->len, reg.rctx };
		iov = kdt_seg(mine, 0, s->len);
		memset(s->mem->p, 0x99, s->mem->len);
		kdt_fill(mine->p, s->len, i);
		memcpy(s->flat, mine->p, s->len);
		KDT_OK(test, dat_ep_post_rdma_write(pair->c.h, 1, &iov, kdt_cookie(4), &remote,
						    0));
		kdt_dto(test, pair->c.req, &pair->c, 4, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS,
			s->len);
		kdt_settle(test, pair);
		KUNIT_EXPECT_TRUE_MSG(test, pieces_hold(s, 0x99), "seed 0x%x, round %d, written",
				      seed, i);
		kdt_fill(s->flat, s->len, 1000 + i);
		pieces_put(s);
		KDT_OK(test, dat_ep_post_rdma_read(pair->c.h, 1, &iov, kdt_cookie(5), &remote, 0));
		kdt_dto(test, pair->c.req, &pair->c, 5, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS,
			s->len);
		KUNIT_EXPECT_TRUE_MSG(test, !memcmp(mine->p, s->flat, s->len),
				      "seed 0x%x, round %d, read", seed, i);

		/* One byte more, at each end. */
		iov = (DAT_LMR_TRIPLET) { addr - 1, 2, reg.lctx };
		KDT_TYPE(test, DAT_INVALID_PARAMETER,
			 dat_ep_post_send(pair->s.h, 1, &iov, kdt_cookie(6), 0));
		iov = (DAT_LMR_TRIPLET) { addr, s->len + 1, reg.lctx };
		KDT_TYPE(test, DAT_INVALID_PARAMETER,
			 dat_ep_post_send(pair->s.h, 1, &iov, kdt_cookie(6), 0));
		if (i % 10 == 0) {
			memset(s->mem->p, 0x11, s->mem->len);
			remote = (DAT_RMR_TRIPLET) { addr - 1, 2, reg.rctx };
			kdt_peer_fails(test, s->mem, &remote, true);
			remote = (DAT_RMR_TRIPLET) { addr + s->len - 1, 2, reg.rctx };
			kdt_peer_fails(test, s->mem, &remote, true);
			remote = (DAT_RMR_TRIPLET) { addr + s->len, 1, reg.rctx };
			kdt_peer_fails(test, s->mem, &remote, false);
		}
		KDT_OK(test, dat_lmr_invalidate(reg.lmr, pair->s.h, kdt_cookie(7), 0));
		kdt_dto(test, pair->s.req, &pair->s, 7, DAT_DTO_LMR_INVALIDATE, DAT_DTO_SUCCESS,
			0);
	}
	kdt_settle(test, pair);
	kdt_mem_down(test, pair);
}

#define FMR_SG()									\
	kdat_lmr_fmr_sg(lmr, &sg, KDT_RIGHTS, DAT_VA_TYPE_VA, pair->s.h, kdt_cookie(1), 0, \
			&lctx, &rctx, &addr)

static void scatterlists_refused(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_mem_pair(test, NULL);
	struct kdt_buf *mem = kdt_mem_new(test, 16 * PAGE_SIZE, true);
	struct scatterlist sgl[3];
	struct kdat_sg sg = { .sgl = sgl, .nents = 3, .length = 3 * PAGE_SIZE };
	DAT_LMR_HANDLE lmr, small;
	DAT_LMR_CONTEXT lctx;
	DAT_RMR_CONTEXT rctx;
	DAT_VADDR addr;
	int i;

	KDT_OK(test, allocate(&env->b, 4, DAT_LMR_SCOPE_PZ, &lmr));
	sg_init_table(sgl, 3);
	for (i = 0; i < 3; i++)
		sg_set_page(&sgl[i], virt_to_page(mem->p + 4 * i * PAGE_SIZE), PAGE_SIZE, 0);
	/* a hole behind the first, and before the last */
	sgl[0].length = PAGE_SIZE - 8;
	sg.length -= 8;
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, FMR_SG());
	sgl[0].length = PAGE_SIZE;
	sgl[2].offset = 8;
	sgl[2].length = PAGE_SIZE - 8;
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, FMR_SG());
	sgl[2].offset = 0;
	sgl[2].length = PAGE_SIZE;
	/* more than there is, nothing, nowhere */
	sg.length = 3 * PAGE_SIZE + 1;
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, FMR_SG());
	sg.length = 3 * PAGE_SIZE;
	sg.offset = 1;
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, FMR_SG());
	sg.offset = U64_MAX;
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, FMR_SG());
	sg.offset = 0;
	sg.length = 0;
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, FMR_SG());
	sg.length = 1;
	sg.sgl = NULL;
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, FMR_SG());
	sg.sgl = sgl;
	sg.nents = 0;
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, FMR_SG());
	sg.nents = 3;
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		    kdat_lmr_fmr_sg(lmr, NULL, KDT_RIGHTS, DAT_VA_TYPE_VA, pair->s.h,
				    kdt_cookie(1), 0, &lctx, &rctx, &addr));
	/* more pieces than pages */
	KDT_OK(test, allocate(&env->b, 2, DAT_LMR_SCOPE_PZ, &small));
	sg.length = 3 * PAGE_SIZE;
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		    kdat_lmr_fmr_sg(small, &sg, KDT_RIGHTS, DAT_VA_TYPE_VA, pair->s.h,
				    kdt_cookie(1), 0, &lctx, &rctx, &addr));
	KUNIT_EXPECT_FALSE(test, kdt_bound(test, small));
	sg.length = 2 * PAGE_SIZE;
	KDT_OK(test, kdat_lmr_fmr_sg(small, &sg, KDT_RIGHTS, DAT_VA_TYPE_VA, pair->s.h,
				     kdt_cookie(1), KDT_SUPPRESS, &lctx, &rctx, &addr));
	/* as many pages as were asked for */
	sg_set_page(&sgl[1], virt_to_page(mem->p + 4 * PAGE_SIZE), 3 * PAGE_SIZE, 0);
	sg.length = 4 * PAGE_SIZE;
	KUNIT_EXPECT_FALSE(test, kdt_bound(test, lmr));
	KDT_OK(test, FMR_SG());
	kdt_dto(test, pair->s.req, &pair->s, 1, DAT_DTO_LMR_FMR, DAT_DTO_SUCCESS, 0);
	KUNIT_EXPECT_TRUE(test, kdt_bound(test, lmr));
	KDT_OK(test, dat_lmr_free(lmr));
	kdt_settle(test, pair);
}

/* ---- the ends of connections, and of LMRs ---- */

/* Nothing is bound and nothing ends there; a later connection makes up for it. */
static void disconnected(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_mem_pair(test, NULL), *other = kdt_mem_pair(test, NULL);
	struct kdt_buf *mem = kdt_fmr_new(test, &env->b, PAGES, DAT_LMR_SCOPE_PZ);
	struct kdt_buf *bound = kdt_fmr_new(test, &env->b, PAGES, DAT_LMR_SCOPE_PZ);
	struct kdt_buf now;
	int i;

	kdt_fmr_done(test, &pair->s, bound, KDT_RIGHTS);
	kdt_mem_down(test, pair);
	for (i = 0; i < 3; i++) {
		KDT_OK(test, kdt_fmr(&pair->s, mem, KDT_RIGHTS, 0, 1, i == 1 ? KDT_SUPPRESS : 0));
		kdt_dto(test, pair->s.req, &pair->s, 1, DAT_DTO_LMR_FMR, DAT_DTO_ERR_FLUSHED, 0);
		KUNIT_EXPECT_FALSE(test, kdt_bound(test, mem->lmr));
	}
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_FREE,
		    kdt_inv(&pair->s, mem, 1, 0));
	now = *bound;
	for (i = 0; i < 3; i++) {
		KDT_OK(test, kdt_inv(&pair->s, bound, 2, i == 1 ? KDT_SUPPRESS : KDT_INV_FENCE));
		kdt_dto(test, pair->s.req, &pair->s, 2, DAT_DTO_LMR_INVALIDATE,
			DAT_DTO_ERR_FLUSHED, 0);
		KUNIT_EXPECT_TRUE(test, kdt_bound(test, bound->lmr));
		KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE,
			    kdt_fmr(&pair->s, bound, KDT_RIGHTS, 0, 1, 0));
		/* in effect for everybody else as before */
		kdt_peer_works(test, other, &now, 0, LEN, i);
	}
	/* A new connection of the same endpoint ends what the old one could not. */
	KDT_OK(test, dat_ep_reset(pair->s.h));
	KDT_OK(test, dat_ep_reset(pair->c.h));
	kdt_pair_connect(test, pair);
	kdt_peer_works(test, pair, &now, 0, LEN, 4);
	kdt_inv_done(test, &pair->s, bound);
	kdt_key_dead(test, &now);
	kdt_fmr_done(test, &pair->s, bound, KDT_RIGHTS);
	kdt_fmr_done(test, &pair->s, mem, KDT_RIGHTS);
	kdt_peer_works(test, pair, mem, 0, LEN, 5);
	kdt_peer_works(test, pair, bound, 0, LEN, 6);
	kdt_settle(test, pair);
	kdt_settle(test, other);
}

/*
 * A connection that ends while fmr and invalidate are under way: whichever
 * state each is in, it is the one its event has told.
 */
static void cut_off(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_buf *mem[8], *there = kdt_buf_new(test, &env->a, SZ_64K);
	struct kdt_buf *from = kdt_buf_new(test, &env->b, SZ_64K);
	struct kdt_pair *other = kdt_mem_pair(test, NULL);
	DAT_DTO_COMPLETION_EVENT_DATA *dto;
	struct kdt_pair *pair;
	bool bound[8], waits[8];
	unsigned int seen[4] = {};
	DAT_EVENT event;
	int i, k, n, busy;
	DAT_RETURN ret;

	for (k = 0; k < 8; k++)
		mem[k] = kdt_fmr_new(test, &env->b, 4, DAT_LMR_SCOPE_PZ);
	for (i = 0; i < 12; i++) {
		pair = kdt_mem_pair(test, NULL);
		/* on one side of the queue a few that take their time */
		for (busy = 0; busy < i % 4; busy++)
			KDT_OK(test, kdt_read(&pair->s, from, 0, SZ_64K, there, 0, 100,
					      KDT_SUPPRESS));
		n = 1 + i % 8;
		for (k = 0; k < n; k++) {
			bound[k] = kdt_bound(test, mem[k]->lmr);
			waits[k] = true;
			if (bound[k])
				ret = kdt_inv(&pair->s, mem[k], k, i % 2 ? KDT_INV_FENCE : 0);
			else
				ret = kdt_fmr(&pair->s, mem[k], KDT_RIGHTS, 0, k,
					      i % 2 ? kdt_fence : 0);
			KDT_OK(test, ret);
		}
		KDT_OK(test, dat_ep_disconnect(pair->s.h, DAT_CLOSE_ABRUPT_FLAG));
		kdt_end(test, &pair->s);
		kdt_end(test, &pair->c);
		while (n) {
			KUNIT_ASSERT_TRUE(test, kdt_get(pair->s.req, &event));
			dto = &event.event_data.dto_completion_event_data;
			k = dto->user_cookie.as_64;
			if (k == 100)
				continue;	/* a Read that failed */
			KUNIT_ASSERT_TRUE(test, k < 8 && waits[k]);
			waits[k] = false;
			n--;
			KUNIT_EXPECT_EQ(test, (int)dto->operation,
					bound[k] ? DAT_DTO_LMR_INVALIDATE : DAT_DTO_LMR_FMR);
			KUNIT_ASSERT_TRUE(test, dto->status == DAT_DTO_SUCCESS ||
					  dto->status == DAT_DTO_ERR_FLUSHED);
			seen[2 * bound[k] + (dto->status == DAT_DTO_SUCCESS)]++;
			if (dto->status == DAT_DTO_SUCCESS)
				bound[k] = !bound[k];
			KUNIT_EXPECT_EQ(test, kdt_bound(test, mem[k]->lmr), bound[k]);
		}
		/* What is bound works, what is not is dead. */
		for (k = 0; k <= i % 8; k++) {
			if (bound[k])
				kdt_peer_works(test, other, mem[k], 0, mem[k]->len, i);
		}
		KDT_OK(test, dat_ep_free(pair->s.h));
		KDT_OK(test, dat_ep_free(pair->c.h));
	}
	kunit_info(test, "fmr: %u flushed, %u done; invalidate: %u flushed, %u done\n", seen[0],
		   seen[1], seen[2], seen[3]);
	kdt_settle(test, other);
}

static void freed_while_bound(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_mem_pair(test, NULL);
	struct kdt_buf *mem;
	DAT_DTO_COMPLETION_STATUS status;
	int i;

	for (i = 0; i < 6; i++) {
		mem = kdt_fmr_new(test, &env->b, PAGES, i % 3);
		if (i % 2) {
			kdt_fmr_done(test, &pair->s, mem, KDT_RIGHTS);
			kdt_peer_works(test, pair, mem, 0, LEN, i);
		} else {
			/* the fmr may still be under way */
			KDT_OK(test, kdt_fmr(&pair->s, mem, KDT_RIGHTS, 0, 1, 0));
		}
		KDT_OK(test, dat_lmr_free(mem->lmr));
		if (!(i % 2)) {
			status = kdt_any_dto(test, pair->s.req, NULL);
			KUNIT_EXPECT_EQ(test, (int)status, DAT_DTO_SUCCESS);
		}
		kdt_lctx_dead(test, &pair->s, mem);
		kdt_key_dead(test, mem);
		KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR,
			    kdt_fmr(&pair->s, mem, KDT_RIGHTS, 0, 1, 0));
		KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR,
			    kdt_inv(&pair->s, mem, 1, 0));
	}
	kdt_settle(test, pair);
	kdt_mem_down(test, pair);
	kdt_ep_done(test, &pair->s);
}

/* An endpoint that goes leaves what it has bound behind. */
static void endpoint_freed(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_mem_pair(test, NULL), *other = kdt_mem_pair(test, NULL);
	struct kdt_buf *mem = kdt_fmr_new(test, &env->b, PAGES, DAT_LMR_SCOPE_PZ);

	kdt_fmr_done(test, &pair->s, mem, KDT_RIGHTS);
	kdt_mem_down(test, pair);
	kdt_ep_done(test, &pair->s);
	KUNIT_EXPECT_TRUE(test, kdt_bound(test, mem->lmr));
	kdt_peer_works(test, other, mem, 0, LEN, 1);
	kdt_inv_done(test, &other->s, mem);
	kdt_key_dead(test, mem);
	/* And the PZ holds out as long as the LMR does. */
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE, dat_pz_free(env->b.pz));
	kdt_settle(test, other);
}

/* A full queue takes no fmr, and leaves everything as it was. */
static void queue_full(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_buf *mem = kdt_fmr_new(test, &env->b, PAGES, DAT_LMR_SCOPE_PZ);
	struct kdt_buf *there = kdt_buf_new(test, &env->a, KDT_SIZE);
	struct kdt_buf *from = kdt_buf_new(test, &env->b, KDT_SIZE);
	DAT_DTO_COMPLETION_STATUS status;
	struct kdt_pair *pair;
	unsigned long irq;
	DAT_EP_ATTR attr;
	DAT_RETURN ret, fmr;
	int i, n, full = 0;
	u64 cookie;

	if (!kdt_fence)
		kunit_skip(test, "a Write without a fence does not keep the queue full");
	kdt_attr(env, &attr);
	attr.max_request_dtos = 8;
	pair = kdt_mem_pair(test, &attr);
	for (i = 0; i < 20 && full < 3; i++) {
		local_irq_save(irq);
		ret = kdt_read(&pair->s, from, 0, KDT_SIZE, there, 0, 0, 0);
		for (n = 1; ret == DAT_SUCCESS && n < 40; n++)
			ret = kdt_write(&pair->s, from, 0, 8, there, 0, n,
					DAT_COMPLETION_BARRIER_FENCE_FLAG);
		fmr = kdt_fmr(&pair->s, mem, KDT_RIGHTS, 0, 1000, 0);
		local_irq_restore(irq);
		if (ret != DAT_SUCCESS)
			n--;
		if (fmr != DAT_SUCCESS) {
			KUNIT_EXPECT_EQ(test, DAT_GET_TYPE(fmr), (u32)DAT_INSUFFICIENT_RESOURCES);
			KUNIT_EXPECT_FALSE(test, kdt_bound(test, mem->lmr));
			full++;
		} else {
			n++;
		}
		while (n--) {
			status = kdt_any_dto(test, pair->s.req, &cookie);
			KUNIT_EXPECT_EQ(test, (int)status, DAT_DTO_SUCCESS);
		}
		if (fmr != DAT_SUCCESS)
			kdt_fmr_done(test, &pair->s, mem, KDT_RIGHTS);
		kdt_peer_works(test, pair, mem, 0, LEN, i);
		kdt_inv_done(test, &pair->s, mem);
	}
	KUNIT_EXPECT_GT_MSG(test, full, 0, "the queue was never full");
	kdt_settle(test, pair);
	kdt_mem_down(test, pair);
}

/* As many as a queue takes, all at once. */
static void many_at_once(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_mem_pair(test, NULL);
	struct kdt_buf *mem[32];
	int i, k;

	for (i = 0; i < ARRAY_SIZE(mem); i++)
		mem[i] = kdt_fmr_new(test, &env->b, 2, DAT_LMR_SCOPE_PZ);
	for (k = 0; k < 3; k++) {
		for (i = 0; i < ARRAY_SIZE(mem); i++)
			KDT_OK(test, kdt_fmr(&pair->s, mem[i], KDT_RIGHTS, i % 2, i, 0));
		for (i = 0; i < ARRAY_SIZE(mem); i++)
			kdt_dto(test, pair->s.req, &pair->s, i, DAT_DTO_LMR_FMR, DAT_DTO_SUCCESS,
				0);
		for (i = 0; i < ARRAY_SIZE(mem); i++) {
			KUNIT_EXPECT_NE(test, mem[i]->rctx, mem[(i + 1) % 32]->rctx);
			kdt_peer_works(test, pair, mem[i], 0, mem[i]->len, i);
		}
		for (i = 0; i < ARRAY_SIZE(mem); i++)
			KDT_OK(test, kdt_inv(&pair->s, mem[i], i, 0));
		for (i = 0; i < ARRAY_SIZE(mem); i++)
			kdt_dto(test, pair->s.req, &pair->s, i, DAT_DTO_LMR_INVALIDATE,
				DAT_DTO_SUCCESS, 0);
	}
	kdt_key_dead(test, mem[7]);
	kdt_settle(test, pair);
}

/* Pages of another size, where there are any. */
static void large_pages(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_mem_pair(test, NULL);
	struct kdt_buf *mem = kdt_mem_new(test, SZ_64K, true);
	DAT_REGION_DESCRIPTION region = {};
	struct kdat_mem_limits limits;
	DAT_RETURN ret;
	u64 size;

	kdt_mem_limits(test, &env->b, &limits);
	KDT_OK(test, allocate(&env->b, 16, DAT_LMR_SCOPE_PZ, &mem->lmr));
	for (size = PAGE_SIZE; size <= SZ_64K; size <<= 1) {
		u64 i;

		for (i = 0; i < SZ_64K / size; i++)
			mem->pages[i] = virt_to_phys(mem->p) + i * size;
		region.for_array.page_size = size;
		region.for_array.pages = mem->pages;
		ret = dat_lmr_fmr(mem->lmr, DAT_MEM_TYPE_PHYSICAL_VAR_PAGES, region,
				  SZ_64K / size, KDT_RIGHTS, DAT_VA_TYPE_VA, pair->s.h,
				  kdt_cookie(1), 0, &mem->lctx, &mem->rctx);
		/* it may be cut into smaller ones, if those are not too many */
		if (!(limits.fmr_page_sizes & size) && ret != DAT_SUCCESS) {
			KUNIT_EXPECT_TRUE_MSG(test, ret == DAT_ERROR(DAT_INVALID_PARAMETER,
								     DAT_INVALID_ARG3),
					      "pages of %llu: 0x%08x", size, ret);
			continue;
		}
		KDT_OK(test, ret);
		kdt_dto(test, pair->s.req, &pair->s, 1, DAT_DTO_LMR_FMR, DAT_DTO_SUCCESS, 0);
		mem->shift = mem->pages[0] - (uintptr_t)mem->p;
		kdt_peer_works(test, pair, mem, 0, SZ_64K, 1);
		kdt_peer_works(test, pair, mem, SZ_64K - 3, 3, 2);
		kdt_inv_done(test, &pair->s, mem);
	}
	kdt_settle(test, pair);
}

/* Memory of one remote right, and of none, as with dat_lmr_kcreate(). */
static void rights(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_mem_pair(test, NULL);
	struct kdt_buf *mem = kdt_fmr_new(test, &env->b, PAGES, DAT_LMR_SCOPE_PZ);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, LEN);
	DAT_RMR_TRIPLET remote;
	int priv;

	for (priv = 0; priv <= DAT_MEM_PRIV_ALL_FLAG; priv++) {
		if (priv & ~DAT_MEM_PRIV_ALL_FLAG)
			continue;
		kdt_fmr_done(test, &pair->s, mem, priv);
		KUNIT_EXPECT_EQ(test, !!mem->rctx,
				!!(priv & (DAT_MEM_PRIV_REMOTE_READ_FLAG |
					   DAT_MEM_PRIV_REMOTE_WRITE_FLAG)));
		if (!(priv & DAT_MEM_PRIV_LOCAL_READ_FLAG))
			KDT_REFUSED(test, DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_READ,
				    kdt_send(&pair->s, mem, 0, 8, 1, 0));
		if (!(priv & DAT_MEM_PRIV_LOCAL_WRITE_FLAG))
			KDT_REFUSED(test, DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE,
				    kdt_recv(&pair->s, mem, 0, 8, 1));
		remote = kdt_rseg(mem, 0, 64);
		if (!mem->rctx)		/* whoever guesses it by the other one */
			remote.rmr_context = mem->lctx;
		if (priv & DAT_MEM_PRIV_REMOTE_WRITE_FLAG) {
			kdt_fill(mine->p, LEN, priv);
			KDT_OK(test, kdt_write(&pair->c, mine, 0, LEN, mem, 0, 1, 0));
			kdt_dto(test, pair->c.req, &pair->c, 1, DAT_DTO_RDMA_WRITE,
				DAT_DTO_SUCCESS, LEN);
			kdt_settle(test, pair);
			KUNIT_EXPECT_TRUE(test, kdt_same(mem->p, LEN, priv));
		} else {
			kdt_peer_fails(test, mem, &remote, true);
		}
		if (priv & DAT_MEM_PRIV_REMOTE_READ_FLAG) {
			kdt_fill(mem->p, LEN, 100 + priv);
			KDT_OK(test, kdt_read(&pair->c, mine, 0, LEN, mem, 0, 2, 0));
			kdt_dto(test, pair->c.req, &pair->c, 2, DAT_DTO_RDMA_READ,
				DAT_DTO_SUCCESS, LEN);
			KUNIT_EXPECT_TRUE(test, kdt_same(mine->p, LEN, 100 + priv));
		} else if (!env->b.iwarp) {
			/* siw answers Reads of memory that is not open to them */
			kdt_peer_fails(test, mem, &remote, false);
		}
		kdt_inv_done(test, &pair->s, mem);
	}
	kdt_settle(test, pair);
}

static struct kunit_case cases[] = {
	KD_CASE(allocate_arguments, "FMR-01,PZ-02,LMR-21: dat_lmr_allocate"),
	KD_CASE(life, "FMR-02,FMR-03,FMR-04,FMR-06,FMR-10,FMR-12,LMR-21: bound, used, ended"),
	KD_CASE(bounds, "FMR-02,FMR-08: not a byte beside the pages"),
	KD_CASE(usable_at_once, "FMR-02,FMR-05,FMR-10: a key that is sent right behind its fmr"),
	KD_CASE(many_rebinds, "FMR-04,FMR-06,FLAG-02,FLAG-11: hundreds of silent rebinds"),
	KD_CASE(refused, "FMR-06,FMR-07,FMR-12,FLAG-10,GEN-07: refused calls change nothing"),
	KD_CASE(flags, "FMR-03,FMR-11,FLAG-02,FLAG-04,FLAG-09: suppressed, unsignalled, fenced"),
	KD_CASE(fenced_invalidate, "FMR-11,FLAG-10: a fenced invalidate lets all before it end"),
	KD_CASE(from_softirq, "FMR-02,FMR-10,CTX-01,CTX-02: fmr and invalidate in upcalls"),
	KD_CASE(without_sleep, "FMR-01,FMR-02,CTX-01,CTX-03: the largest fmr with interrupts off"),
	KD_CASE(scopes, "FMR-01,FMR-14: who may use an LMR of each scope"),
	KD_CASE(rights, "FMR-05,LMR-09: every set of rights"),
	KD_CASE(large_pages, "FMR-02,FMR-06: pages of other sizes"),
	KD_CASE(scatterlists, "FMR-02,FMR-08: scatterlists with odd ends, exact to the byte"),
	KD_CASE(scatterlists_refused, "FMR-06,FMR-08: scatterlists that make no region"),
	KD_CASE(disconnected, "FMR-07,FMR-15: in DISCONNECTED, and on the connection after"),
	KD_CASE(cut_off, "FMR-07,FMR-15,FLUSH-01: a connection that ends in between"),
	KD_CASE(freed_while_bound, "FMR-13,LMR-FREE-02,LMR-FREE-03: freed while it is bound"),
	KD_CASE(endpoint_freed, "FMR-15,PZ-02: a binding without its endpoint"),
	KD_CASE(queue_full, "FMR-02,GEN-07,EP-POST-17: a full queue takes no fmr"),
	KD_CASE(many_at_once, "FMR-02,FMR-10: 32 LMRs under way at once"),
	{}
};

struct kunit_suite kdt_fmr_suite = {
	.name = "kdtest-fmr",
	.init = kdt_init,
	.exit = kdt_exit,
	.test_cases = cases,
};
