// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* What the suites about memory share; kdtest_mem.h says what is here. */
#include <linux/io.h>
#include <linux/mm.h>
#include <linux/sizes.h>
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
	mem->pages = kdt_zalloc(test, npages * sizeof(*mem->pages));
	for (i = 0; i < npages; i++)
		mem->pages[i] = contiguous ? virt_to_phys(mem->p + i * PAGE_SIZE) :
				page_to_phys(vmalloc_to_page(mem->p + i * PAGE_SIZE));
	return mem;
}

void kdt_mem_limits(struct kunit *test, struct kdt_ia *ia, struct kdat_mem_limits *limits)
{
	KDT_OK(test, kdat_ia_mem_limits(ia->h, limits));
}

/* ---- LMRs of dat_lmr_allocate() ---- */

struct kdt_buf *kdt_fmr_new(struct kunit *test, struct kdt_ia *ia, int npages, DAT_LMR_SCOPE scope)
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
	kdt_sent(test, ep, 0xf0f0, DAT_DTO_LMR_FMR, 0);
}

void kdt_inv_done(struct kunit *test, struct kdt_ep *ep, struct kdt_buf *mem)
{
	KDT_OK(test, kdt_inv(ep, mem, 0x0f0f, 0));
	kdt_sent(test, ep, 0x0f0f, DAT_DTO_LMR_INVALIDATE, 0);
}

bool kdt_bound(struct kunit *test, DAT_LMR_HANDLE lmr)
{
	DAT_LMR_PARAM param = {};

	KDT_OK(test, dat_lmr_query(lmr, DAT_LMR_FIELD_LMR_STATE, &param));
	return param.lmr_state.bound;
}

/* ---- windows ---- */

struct kdt_window *kdt_window_new(struct kunit *test)
{
	struct kdt_window *w = kdt_zalloc(test, sizeof(*w));

	KDT_OK(test, dat_rmr_create(kdt_env(test)->b.pz, &w->h));
	return w;
}

DAT_RETURN kdt_bind(struct kdt_ep *ep, struct kdt_window *w, struct kdt_buf *mem, u32 offset,
		    u32 len, u64 cookie, int flags)
{
	DAT_LMR_TRIPLET part = kdt_seg(mem, offset, len);
	DAT_RMR_CONTEXT context;
	DAT_RETURN ret;

	ret = dat_rmr_bind(w->h, mem->lmr, &part, KDT_R | KDT_W, DAT_VA_TYPE_VA, ep->h,
			   kdt_cookie(cookie), flags, &context);
	if (ret == DAT_SUCCESS)
		w->buf = (struct kdt_buf) {
			.p = mem->p + offset, .len = len, .shift = mem->shift, .rctx = context,
		};
	return ret;
}

DAT_RETURN kdt_unbind(struct kdt_ep *ep, struct kdt_window *w, u64 cookie, int flags)
{
	DAT_LMR_TRIPLET none = {};
	DAT_RMR_CONTEXT context;

	return dat_rmr_bind(w->h, DAT_HANDLE_NULL, &none, KDT_R, DAT_VA_TYPE_VA, ep->h,
			    kdt_cookie(cookie), flags, &context);
}

void kdt_bind_done(struct kunit *test, struct kdt_ep *ep, struct kdt_window *w,
		   struct kdt_buf *mem, u32 offset, u32 len)
{
	KDT_OK(test, kdt_bind(ep, w, mem, offset, len, 0xb1bd, 0));
	kdt_bind_event(test, ep->req, w->h, 0xb1bd, DAT_RMR_BIND_SUCCESS);
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
	kdt_sent(test, &pair->c, 0x11, DAT_DTO_RDMA_WRITE, len);
	kdt_sent(test, &pair->c, 0x22, DAT_DTO_RDMA_READ, len);
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
	kdt_sent(test, &pair->s, 0xdddd, DAT_DTO_SEND, 0);
	kdt_came(test, &pair->c, 0xcccc, 0);
	kdt_pair_down(test, pair);
}

void kdt_mem_done(struct kunit *test, struct kdt_pair *pair)
{
	kdt_settle(test, pair);
	kdt_mem_down(test, pair);
	kdt_pair_done(test, pair);
}

/* ---- regions of every kind ---- */

static const struct {
	const char *name;
	int type;
	bool contiguous;	/* the memory it needs */
	bool odd;
} kinds[KDT_KINDS] = {
	[KDT_VMALLOC] = { "vmalloc", DAT_MEM_TYPE_VIRTUAL, false, true },
	[KDT_KMALLOC] = { "kmalloc", DAT_MEM_TYPE_VIRTUAL, true, true },
	[KDT_MODULE] = { "data of a module", DAT_MEM_TYPE_VIRTUAL, false, true },
	[KDT_PHYSICAL] = { "PHYSICAL", DAT_MEM_TYPE_PHYSICAL, false, false },
	[KDT_SMALL] = { "pages of 4 KiB", DAT_MEM_TYPE_PHYSICAL_VAR_PAGES, false, false },
	[KDT_LARGE] = { "pages of 64 KiB", DAT_MEM_TYPE_PHYSICAL_VAR_PAGES, true, false },
	[KDT_PLATFORM] = { "PLATFORM", DAT_MEM_TYPE_PLATFORM, false, true },
	[KDT_BUS] = { "IA", DAT_MEM_TYPE_IA, true, true },
	[KDT_LMR] = { "LMR", DAT_MEM_TYPE_LMR, false, true },
	[KDT_FMR] = { "fmr", DAT_MEM_TYPE_PHYSICAL, false, false },
	[KDT_FMR_SG] = { "fmr of a list", DAT_MEM_TYPE_PHYSICAL, false, true },
	[KDT_RMR] = { "window", DAT_MEM_TYPE_VIRTUAL, false, true },
	[KDT_RMR_PAGES] = { "window over pages", DAT_MEM_TYPE_PHYSICAL, false, true },
	[KDT_RMR_FMR] = { "window over an fmr", DAT_MEM_TYPE_PHYSICAL, false, true },
};

static u8 module_data[KDT_REG_LEN + 2 * KDT_GUARD] __aligned(PAGE_SIZE);

bool kdt_kind_odd(enum kdt_kind kind)
{
	return kinds[kind].odd;
}

static bool is_window(enum kdt_kind kind)
{
	return kind >= KDT_RMR;
}

/* Says what the memory is; nothing is registered yet but the source of an LMR. */
static void region_describe(struct kunit *test, struct kdt_region *r)
{
	struct kdt_ia *ia = r->pair->s.ia;
	u32 len = r->buf.len, done = 0, i = 0, part;
	DAT_REGION_DESCRIPTION *desc = &r->desc;
	DAT_LMR_CONTEXT lctx;

	r->length = len;
	switch (r->kind) {
	case KDT_VMALLOC:
	case KDT_KMALLOC:
	case KDT_MODULE:
		desc->for_va = r->buf.p;
		break;
	case KDT_PHYSICAL:
		desc->for_physical = r->mem->pages;
		r->length = len / PAGE_SIZE;
		break;
	case KDT_SMALL:
	case KDT_LARGE:
		desc->for_array.page_size = r->kind == KDT_SMALL ? PAGE_SIZE : SZ_64K;
		desc->for_array.pages = r->mem->pages;
		r->length = len / desc->for_array.page_size;
		for (i = 0; r->kind == KDT_LARGE && i < r->length; i++)
			r->mem->pages[i] = r->mem->pages[0] + i * SZ_64K;
		break;
	case KDT_PLATFORM:
	case KDT_FMR_SG:
		sg_init_table(r->sg, DIV_ROUND_UP(offset_in_page(r->buf.p) + len, PAGE_SIZE));
		for (; done < len; done += part) {
			u8 *p = r->buf.p + done;

			part = min_t(u32, len - done, PAGE_SIZE - offset_in_page(p));
			sg_set_page(&r->sg[i++], vmalloc_to_page(p), part, offset_in_page(p));
		}
		r->sgt = (struct sg_table) { .sgl = r->sg, .nents = i, .orig_nents = i };
		desc->for_platform = &r->sgt;
		break;
	case KDT_BUS:
		KDT_OK(test, kdat_ia_dma_map(ia->h, &r->bus, r->buf.p, len));
		desc->for_ia = r->bus.address;
		break;
	case KDT_LMR:
		/* without any right; its length is not looked at */
		desc->for_va = r->buf.p;
		KDT_OK(test, dat_lmr_kcreate(ia->h, DAT_MEM_TYPE_VIRTUAL, *desc, len, ia->pz,
					     DAT_MEM_PRIV_NONE_FLAG, DAT_VA_TYPE_VA, 0,
					     &r->mem->lmr, &lctx, NULL, NULL, NULL));
		desc->for_lmr_handle = r->mem->lmr;
		r->length = 0;
		break;
	default:
		break;
	}
}

/* What is below a window has local rights only. */
static void region_below(struct kunit *test, struct kdt_region *r)
{
	int rights = DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG;
	struct kdt_ia *ia = r->pair->s.ia;
	struct kdt_buf *mem = r->mem;
	bool pages = r->kind == KDT_RMR_PAGES;
	DAT_REGION_DESCRIPTION desc = { .for_va = mem->p };

	KDT_OK(test, dat_rmr_create(ia->pz, &r->rmr));
	if (r->kind == KDT_RMR_FMR) {
		KDT_OK(test, dat_lmr_allocate(ia->h, ia->pz, KDT_REG_PAGES, DAT_LMR_SCOPE_PZ,
					      &mem->lmr));
		kdt_fmr_done(test, &r->pair->s, mem, rights);
		return;
	}
	if (pages)
		desc.for_physical = mem->pages;
	KDT_OK(test, dat_lmr_kcreate(ia->h, kinds[r->kind].type, desc,
				     pages ? KDT_REG_PAGES : mem->len, ia->pz, rights,
				     DAT_VA_TYPE_VA, 0, &mem->lmr, &mem->lctx, NULL, NULL, NULL));
	mem->shift = pages ? mem->pages[0] - (uintptr_t)mem->p : 0;
}

static void region_window(struct kunit *test, struct kdt_region *r, int rights, DAT_VA_TYPE va)
{
	DAT_LMR_TRIPLET part = kdt_seg(r->mem, r->buf.p - r->mem->p, r->buf.len);
	struct kdt_ep *ep = &r->pair->s;

	KDT_OK(test, dat_rmr_bind(r->rmr, r->mem->lmr, &part, rights, va, ep->h,
				  kdt_cookie(0xb1bd), 0, &r->buf.rctx));
	/* from the return of the bind on */
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE,
		    dat_lmr_free(r->mem->lmr));
	kdt_bind_event(test, ep->req, r->rmr, 0xb1bd, DAT_RMR_BIND_SUCCESS);
	r->reg_addr = va == DAT_VA_TYPE_ZB ? 0 : part.virtual_address;
	r->reg_len = part.segment_length;
}

static void region_fmr(struct kunit *test, struct kdt_region *r, int rights, DAT_VA_TYPE va)
{
	struct kdat_sg sg = { .sgl = r->sg, .nents = r->sgt.nents, .length = r->buf.len };
	struct kdt_ep *ep = &r->pair->s;

	r->mem->lmr = r->buf.lmr;
	if (r->kind == KDT_FMR_SG) {
		region_describe(test, r);
		sg.nents = r->sgt.nents;
		KDT_OK(test, kdat_lmr_fmr_sg(r->buf.lmr, &sg, rights, va, ep->h,
					     kdt_cookie(0xf0f0), 0, &r->buf.lctx, &r->buf.rctx,
					     &r->reg_addr));
		memset(r->sg, 0xa5, sizeof(r->sg));
	} else {
		KDT_OK(test, kdt_fmr(ep, r->mem, rights, va, 0xf0f0, 0));
		r->buf.lctx = r->mem->lctx;
		r->buf.rctx = r->mem->rctx;
		r->reg_addr = r->mem->shift + (uintptr_t)r->mem->p;
	}
	kdt_sent(test, ep, 0xf0f0, DAT_DTO_LMR_FMR, 0);
	r->reg_len = r->buf.len;
}

void kdt_region_bind(struct kunit *test, struct kdt_region *r, int rights, DAT_VA_TYPE va)
{
	struct kdt_ia *ia = r->pair->s.ia;

	if (is_window(r->kind)) {
		region_window(test, r, rights, va);
	} else if (r->kind >= KDT_FMR) {
		region_fmr(test, r, rights, va);
	} else {
		region_describe(test, r);
		KDT_OK(test, dat_lmr_kcreate(ia->h, kinds[r->kind].type, r->desc, r->length,
					     ia->pz, rights, va, DAT_MEM_OPTIMIZE_EXACT_EXPOSURE,
					     &r->buf.lmr, &r->buf.lctx, &r->buf.rctx,
					     &r->reg_len, &r->reg_addr));
		/* nothing that the call has read is needed any more */
		memset(r->sg, 0xa5, sizeof(r->sg));
		if (r->kind == KDT_LMR)
			KDT_OK(test, dat_lmr_free(r->mem->lmr));
	}
	r->buf.shift = r->reg_addr - (uintptr_t)r->buf.p;
}

bool kdt_region_new(struct kunit *test, struct kdt_region *r, struct kdt_pair *pair,
		    enum kdt_kind kind, bool odd, int rights, DAT_VA_TYPE va)
{
	u32 len = kind == KDT_LARGE ? 2 * SZ_64K : KDT_REG_LEN, from = 0, to;
	struct kdt_ia *ia = pair->s.ia;
	struct kdat_mem_limits limits;

	kdt_mem_limits(test, ia, &limits);
	if (kind == KDT_LARGE && !(limits.page_sizes & SZ_64K))
		return false;
	memset(r, 0, sizeof(*r));
	r->pair = pair;
	r->kind = kind;
	snprintf(r->name, sizeof(r->name), "%s%s%s", kinds[kind].name, odd ? ", odd" : "",
		 va == DAT_VA_TYPE_ZB ? ", ZB" : "");
	r->mem = kdt_mem_new(test, len, kinds[kind].contiguous);
	if (kind == KDT_MODULE) {
		memset(module_data, GUARD_BYTE, sizeof(module_data));
		r->mem->p = module_data + KDT_GUARD;
		kdt_mem_wipe(r->mem, 0);
	}
	to = len;
	if (odd) {
		from = 77;
		to -= 333;
	} else if (is_window(kind)) {
		from = PAGE_SIZE;
		to -= PAGE_SIZE;
	}
	r->buf.p = r->mem->p + from;
	r->buf.len = to - from;
	if (is_window(kind))
		region_below(test, r);
	else if (kind >= KDT_FMR)
		KDT_OK(test, dat_lmr_allocate(ia->h, ia->pz, KDT_REG_PAGES, DAT_LMR_SCOPE_PZ,
					      &r->buf.lmr));
	kdt_region_bind(test, r, rights, va);
	return true;
}

void kdt_region_end(struct kunit *test, struct kdt_region *r, bool hard)
{
	struct kdt_ep *ep = &r->pair->s;
	DAT_LMR_TRIPLET none = {};
	DAT_RMR_CONTEXT context;

	if (is_window(r->kind) && !hard) {
		KDT_OK(test, dat_rmr_bind(r->rmr, DAT_HANDLE_NULL, &none, KDT_R, DAT_VA_TYPE_VA,
					  ep->h, kdt_cookie(0x0b1d), 0, &context));
		kdt_bind_event(test, ep->req, r->rmr, 0x0b1d, DAT_RMR_BIND_SUCCESS);
	} else if (is_window(r->kind)) {
		KDT_OK(test, dat_rmr_free(r->rmr));
		r->rmr = DAT_HANDLE_NULL;
	} else if (r->kind >= KDT_FMR && !hard) {
		kdt_inv_done(test, ep, &r->buf);
	} else {
		KDT_OK(test, dat_lmr_free(r->buf.lmr));
		r->buf.lmr = DAT_HANDLE_NULL;
	}
}

void kdt_region_free(struct kunit *test, struct kdt_region *r)
{
	/* a window that is unbound holds nothing */
	if (is_window(r->kind))
		KDT_OK(test, dat_lmr_free(r->mem->lmr));
	if (r->rmr)
		KDT_OK(test, dat_rmr_free(r->rmr));
	if (r->buf.lmr)
		KDT_OK(test, dat_lmr_free(r->buf.lmr));
	if (r->kind == KDT_BUS)
		KDT_OK(test, kdat_ia_dma_unmap(r->pair->s.ia->h, &r->bus));
}
