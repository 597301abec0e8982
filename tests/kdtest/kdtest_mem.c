// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* What the suites about memory share; kdtest_mem.h says what is here. */
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "kdtest_mem.h"

#define GUARD_BYTE 0x5c		/* as in kdtest_lib.c */

void kdt_mem_wipe(struct kdt_buf *mem, u8 value)
{
	memset(mem->p, value, mem->len);
}

struct kdt_buf *kdt_mem_new(struct kunit *test, u32 len, bool contiguous)
{
	struct kdt_buf *mem = kzalloc(sizeof(*mem), GFP_KERNEL);
	u32 npages = DIV_ROUND_UP(len, PAGE_SIZE), i;
	u32 front = KDT_GUARD, all;

	KUNIT_ASSERT_NOT_NULL(test, mem);
	list_add(&mem->link, &kdt_env(test)->bufs);
	mem->len = npages * PAGE_SIZE;
	if (contiguous) {
		/* what is at the front of a power of two is as much aligned as it is long */
		if (len >= SZ_64K)
			front = SZ_64K;
		all = roundup_pow_of_two(front + mem->len + KDT_GUARD);
		mem->base = kmalloc(all, GFP_KERNEL | __GFP_NOWARN);
	} else {
		mem->base = vmalloc(front + mem->len + KDT_GUARD);
	}
	KUNIT_ASSERT_NOT_NULL(test, mem->base);
	mem->p = mem->base + front;
	memset(mem->base, GUARD_BYTE, front);
	memset(mem->p, 0, mem->len);
	memset(mem->p + mem->len, GUARD_BYTE, KDT_GUARD);
	mem->pages = kunit_kcalloc(test, npages, sizeof(*mem->pages), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, mem->pages);
	for (i = 0; i < npages; i++)
		mem->pages[i] = contiguous ? virt_to_phys(mem->p + i * PAGE_SIZE) :
				page_to_phys(vmalloc_to_page(mem->p + i * PAGE_SIZE));
	return mem;
}

void kdt_mem_limits(struct kunit *test, struct kdt_ia *ia, struct kdat_mem_limits *limits)
{
	KDT_OK(test, kdat_ia_mem_limits(ia->h, limits));
}

u32 kdt_seed(struct kunit *test)
{
	u32 seed = get_random_u32();

	kunit_info(test, "seed 0x%08x\n", seed);
	return seed;
}

/* ---- LMRs of dat_lmr_allocate() ---- */

struct kdt_buf *kdt_fmr_new(struct kunit *test, struct kdt_ia *ia, int npages,
			    DAT_LMR_SCOPE scope)
{
	struct kdt_buf *mem = kdt_mem_new(test, npages * PAGE_SIZE, false);

	KDT_OK(test, dat_lmr_allocate(ia->h, ia->pz, npages, scope, &mem->lmr));
	return mem;
}

DAT_RETURN kdt_fmr(struct kdt_ep *ep, struct kdt_buf *mem, int rights, DAT_VA_TYPE va_type,
		   u64 cookie, int flags)
{
	DAT_REGION_DESCRIPTION region = { .for_physical = mem->pages };
	DAT_LMR_CONTEXT lctx;
	DAT_RMR_CONTEXT rctx;
	DAT_RETURN ret;

	ret = dat_lmr_fmr(mem->lmr, DAT_MEM_TYPE_PHYSICAL, region, mem->len / PAGE_SIZE, rights,
			  va_type, ep->h, kdt_cookie(cookie), flags, &lctx, &rctx);
	if (ret == DAT_SUCCESS) {
		mem->lctx = lctx;
		mem->rctx = rctx;
		mem->shift = (va_type == DAT_VA_TYPE_ZB ? 0 : mem->pages[0]) - (uintptr_t)mem->p;
	}
	return ret;
}

DAT_RETURN kdt_inv(struct kdt_ep *ep, struct kdt_buf *mem, u64 cookie, int flags)
{
	return dat_lmr_invalidate(mem->lmr, ep->h, kdt_cookie(cookie), flags);
}

void kdt_fmr_done(struct kunit *test, struct kdt_ep *ep, struct kdt_buf *mem, int rights)
{
	KDT_OK(test, kdt_fmr(ep, mem, rights, DAT_VA_TYPE_VA, 0xf0f0, 0));
	kdt_dto(test, ep->req, ep, 0xf0f0, DAT_DTO_LMR_FMR, DAT_DTO_SUCCESS, 0);
}

void kdt_inv_done(struct kunit *test, struct kdt_ep *ep, struct kdt_buf *mem)
{
	KDT_OK(test, kdt_inv(ep, mem, 0x0f0f, 0));
	kdt_dto(test, ep->req, ep, 0x0f0f, DAT_DTO_LMR_INVALIDATE, DAT_DTO_SUCCESS, 0);
}

bool kdt_bound(struct kunit *test, DAT_LMR_HANDLE lmr)
{
	DAT_LMR_PARAM param = {};

	KDT_OK(test, dat_lmr_query(lmr, DAT_LMR_FIELD_LMR_STATE, &param));
	return param.lmr_state.bound;
}

/* ---- peers ---- */

struct kdt_pair *kdt_mem_pair(struct kunit *test, const DAT_EP_ATTR *attr)
{
	struct kdt_env *env = kdt_env(test);
	int flags = DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG;
	struct kdt_pair evds = {}, *pair;

	evds.c.req = kdt_evd_new(test, &env->a, flags);
	evds.s.req = kdt_evd_new(test, &env->b, flags);
	pair = kdt_pair_with(test, &evds, attr, attr);
	kdt_pair_connect(test, pair);
	return pair;
}

void kdt_settle_back(struct kunit *test, struct kdt_pair *pair)
{
	struct kdt_pair back = { .c = pair->s, .s = pair->c };

	kdt_settle(test, &back);
}

void kdt_peer_works(struct kunit *test, struct kdt_pair *pair, struct kdt_buf *mem, u32 offset,
		    u32 len, u32 seed)
{
	struct kdt_buf *mine = kdt_buf_new(test, pair->c.ia, 2 * len);

	memset(mem->p, 0x99, mem->len);
	kdt_fill(mine->p, len, seed);
	KDT_OK(test, kdt_write(&pair->c, mine, 0, len, mem, offset, 0x11, 0));
	KDT_OK(test, kdt_read(&pair->c, mine, len, len, mem, offset, 0x22, 0));
	kdt_dto(test, pair->c.req, &pair->c, 0x11, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS, len);
	kdt_dto(test, pair->c.req, &pair->c, 0x22, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, len);
	KUNIT_EXPECT_TRUE_MSG(test, kdt_same(mem->p + offset, len, seed), "written at %u+%u",
			      offset, len);
	KUNIT_EXPECT_TRUE_MSG(test, kdt_same(mine->p + len, len, seed), "read at %u+%u", offset,
			      len);
	KUNIT_EXPECT_TRUE(test, kdt_all(mem->p, offset, 0x99));
	KUNIT_EXPECT_TRUE(test, kdt_all(mem->p + offset + len, mem->len - offset - len, 0x99));
	KUNIT_EXPECT_TRUE(test, kdt_guarded(mem));
	KDT_OK(test, dat_lmr_free(mine->lmr));
}

void kdt_peer_fails(struct kunit *test, struct kdt_buf *mem, const DAT_RMR_TRIPLET *remote,
		    bool write)
{
	struct kdt_env *env = kdt_env(test);
	u32 len = remote->segment_length;
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, len);
	DAT_LMR_TRIPLET iov = kdt_seg(mine, 0, len);
	DAT_DTO_COMPLETION_STATUS status;
	u64 cookie;

	memset(mem->p, 0x11, mem->len);
	memset(mine->p, 0x22, len);
	if (write)
		KDT_OK(test, dat_ep_post_rdma_write(pair->c.h, 1, &iov, kdt_cookie(5), remote, 0));
	else
		KDT_OK(test, dat_ep_post_rdma_read(pair->c.h, 1, &iov, kdt_cookie(5), remote, 0));
	kdt_end(test, &pair->c);
	kdt_end(test, &pair->s);
	KUNIT_EXPECT_TRUE_MSG(test, kdt_all(mem->p, mem->len, 0x11), "written by a peer");
	KUNIT_EXPECT_TRUE_MSG(test, kdt_guarded(mem), "written beside it by a peer");
	KUNIT_EXPECT_TRUE_MSG(test, kdt_all(mine->p, len, 0x22), "read by a peer");
	status = kdt_any_dto(test, pair->c.req, &cookie);
	KUNIT_EXPECT_EQ(test, cookie, 5);
	/* on iWARP a Write is done when it has been sent; a peer's end may be faster */
	if (!env->a.iwarp)
		KUNIT_EXPECT_TRUE_MSG(test, status == DAT_DTO_ERR_REMOTE_ACCESS ||
				      status == DAT_DTO_ERR_FLUSHED, "status %d", status);
	else if (!write)
		KUNIT_EXPECT_NE(test, (int)status, DAT_DTO_SUCCESS);
	KDT_OK(test, dat_lmr_free(mine->lmr));
	kdt_ep_done(test, &pair->c);
	kdt_ep_done(test, &pair->s);
	KDT_OK(test, dat_psp_free(pair->psp));
}

void kdt_key_dead(struct kunit *test, struct kdt_buf *mem)
{
	u32 len = min_t(u32, mem->len, 64);
	DAT_RMR_TRIPLET remote = kdt_rseg(mem, 0, len);

	kdt_peer_fails(test, mem, &remote, true);
	kdt_peer_fails(test, mem, &remote, false);
}

void kdt_lctx_dead(struct kunit *test, struct kdt_ep *ep, struct kdt_buf *mem)
{
	DAT_LMR_TRIPLET iov = kdt_seg(mem, 0, 1);
	DAT_RMR_TRIPLET remote = kdt_rseg(mem, 0, 1);

	KDT_TYPE(test, DAT_PRIVILEGES_VIOLATION,
		 dat_ep_post_send(ep->h, 1, &iov, kdt_cookie(1), 0));
	KDT_TYPE(test, DAT_PRIVILEGES_VIOLATION,
		 dat_ep_post_recv(ep->h, 1, &iov, kdt_cookie(1), 0));
	KDT_TYPE(test, DAT_PRIVILEGES_VIOLATION,
		 dat_ep_post_rdma_write(ep->h, 1, &iov, kdt_cookie(1), &remote, 0));
	KDT_TYPE(test, DAT_PRIVILEGES_VIOLATION,
		 dat_ep_post_rdma_read(ep->h, 1, &iov, kdt_cookie(1), &remote, 0));
}

void kdt_bind_event(struct kunit *test, struct kdt_evd *evd, DAT_RMR_HANDLE rmr, u64 cookie,
		    DAT_RMR_BIND_COMPLETION_STATUS status)
{
	DAT_RMR_BIND_COMPLETION_EVENT_DATA *data;
	DAT_EVENT event;

	KUNIT_ASSERT_TRUE_MSG(test, kdt_get(evd, &event), "no bind of cookie 0x%llx in time",
			      cookie);
	KUNIT_ASSERT_EQ(test, (int)event.event_number, DAT_RMR_BIND_COMPLETION_EVENT);
	data = &event.event_data.rmr_completion_event_data;
	KUNIT_EXPECT_PTR_EQ(test, event.evd_handle, evd->h);
	KUNIT_EXPECT_PTR_EQ(test, data->rmr_handle, rmr);
	KUNIT_EXPECT_EQ(test, data->user_cookie.as_64, cookie);
	KUNIT_EXPECT_EQ(test, (int)data->status, (int)status);
}

void kdt_mem_down(struct kunit *test, struct kdt_pair *pair)
{
	KDT_OK(test, dat_ep_post_recv(pair->c.h, 0, NULL, kdt_cookie(0xcccc), 0));
	KDT_OK(test, dat_ep_post_send(pair->s.h, 0, NULL, kdt_cookie(0xdddd), 0));
	kdt_dto(test, pair->s.req, &pair->s, 0xdddd, DAT_DTO_SEND, DAT_DTO_SUCCESS, 0);
	kdt_dto(test, pair->c.recv, &pair->c, 0xcccc, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 0);
	kdt_pair_down(test, pair);
}
