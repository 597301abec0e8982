// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The common ground of the suites on memory, see kd_mem.h.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "kd_mem.h"

int km_init(struct kunit *test)
{
	struct km *km = kunit_kzalloc(test, sizeof(*km), GFP_KERNEL);

	if (!km)
		return -ENOMEM;
	km->env.test = test;
	test->priv = &km->env;
	return 0;
}

struct km *km_of(struct kunit *test)
{
	return container_of((struct kd_env *)test->priv, struct km, env);
}

void km_exit(struct kunit *test)
{
	struct km *km;
	int i;

	if (!test->priv)
		return;
	km = km_of(test);
	if (km->env.dev)
		fake_ib_hold_flush(km->env.dev, false);
	for (i = 0; i < KM_EPS; i++)
		if (km->eps[i].ep)
			km_ep_free(km, i);
	for (i = 0; i < KM_OBJS; i++)
		if (km->rmrs[i])
			KD_EXPECT_OK(test, dat_rmr_free(km->rmrs[i]));
	for (i = 0; i < KM_OBJS; i++)
		if (km->lmrs[i])
			KD_EXPECT_OK(test, dat_lmr_free(km->lmrs[i]));
	kd_exit(test);
	for (i = 0; i < KM_PAGES; i++)
		if (km->page[i])
			__free_pages(km->page[i], 1);
	memset(km, 0, sizeof(*km));
	km->env.test = test;
}

struct km *km_open(struct kunit *test, const struct fake_ib_caps *caps)
{
	struct km *km = km_of(test);
	int i;

	if (km->env.dev)
		km_exit(test);
	kd_open(test, caps);
	KD_ASSERT_OK(test, dat_evd_free(km->env.req));
	km->env.req = DAT_HANDLE_NULL;
	KD_ASSERT_OK(test, dat_evd_kcreate(km->env.ia, 64, DAT_UPCALL_DISABLE, NULL,
					   DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG,
					   &km->env.req));
	for (i = 0; i < KM_PAGES; i++) {
		/* the other page of each pair keeps neighbours apart */
		km->page[i] = alloc_pages(GFP_KERNEL | __GFP_ZERO, 1);
		KUNIT_ASSERT_NOT_NULL(test, km->page[i]);
		km->pa[i] = page_to_phys(km->page[i]);
	}
	return km;
}

struct ib_qp *km_use(struct km *km, int i)
{
	km->env.ep = km->eps[i].ep;
	km->env.kep = km->eps[i].kep;
	km->env.qp = km->eps[i].qp;
	return km->env.qp;
}

void km_ep(struct km *km, int i, const DAT_EP_ATTR *attr)
{
	kd_ep(&km->env, attr);
	km->eps[i] = (struct km_ep) { km->env.ep, km->env.kep, km->env.qp };
}

void km_ep_free(struct km *km, int i)
{
	km_use(km, i);
	kd_ep_free(&km->env);
	memset(&km->eps[i], 0, sizeof(km->eps[i]));
}

void km_join(struct km *km, int i, const DAT_EP_ATTR *attr)
{
	km_ep(km, i, attr);
	kd_connect(&km->env);
}

struct km *km_on(struct kunit *test, const struct fake_ib_caps *caps, const DAT_EP_ATTR *attr)
{
	struct km *km = km_open(test, caps);

	km_join(km, 0, attr);
	return km;
}

struct km *km_connected(struct kunit *test, const DAT_EP_ATTR *attr)
{
	return km_on(test, NULL, attr);
}

/* Note a handle in the first free place, or take it out. */
static void km_note(struct km *km, DAT_HANDLE *table, DAT_HANDLE old, DAT_HANDLE handle)
{
	int i;

	for (i = 0; i < KM_OBJS && table[i] != old; i++)
		;
	KUNIT_ASSERT_LT(km->env.test, i, KM_OBJS);
	table[i] = handle;
}

void km_keep_lmr(struct km *km, DAT_LMR_HANDLE lmr)
{
	km_note(km, km->lmrs, DAT_HANDLE_NULL, lmr);
}

void km_drop_lmr(struct km *km, DAT_LMR_HANDLE lmr)
{
	km_note(km, km->lmrs, lmr, DAT_HANDLE_NULL);
	KD_EXPECT_OK(km->env.test, dat_lmr_free(lmr));
}

void km_drop_rmr(struct km *km, DAT_RMR_HANDLE rmr)
{
	km_note(km, km->rmrs, rmr, DAT_HANDLE_NULL);
	KD_EXPECT_OK(km->env.test, dat_rmr_free(rmr));
}

/* Handles that the case has freed itself, or that went with their IA. */
void km_forget(struct km *km)
{
	memset(km->lmrs, 0, sizeof(km->lmrs));
	memset(km->rmrs, 0, sizeof(km->rmrs));
}

DAT_RETURN km_try_reg(struct km *km, struct km_reg *reg, DAT_MEM_TYPE type,
		      DAT_REGION_DESCRIPTION region, u64 length)
{
	return dat_lmr_kcreate(km->env.ia, type, region, length, reg->pz ?: km->env.pz, reg->priv,
			       reg->va, reg->opt, &reg->lmr, &reg->key, &reg->rkey, &reg->length,
			       &reg->addr);
}

struct km_reg km_reg(struct km *km, void *va, u64 length, int priv, int va_type, int opt)
{
	DAT_REGION_DESCRIPTION region = { .for_va = va };
	struct km_reg reg = { .priv = priv, .va = va_type, .opt = opt, .rkey = 1 };
	struct kunit *test = km->env.test;

	KD_EXPECT_OK(test, km_try_reg(km, &reg, DAT_MEM_TYPE_VIRTUAL, region, length));
	KUNIT_ASSERT_NOT_NULL(test, reg.lmr);
	km_keep_lmr(km, reg.lmr);
	KUNIT_EXPECT_EQ(test, reg.length, length);
	KUNIT_EXPECT_EQ(test, reg.addr, va_type == DAT_VA_TYPE_ZB ? 0ULL : (uintptr_t)va);
	KUNIT_EXPECT_EQ(test, !reg.rkey, !(priv & KM_REMOTE));
	return reg;
}

DAT_LMR_HANDLE km_lmr(struct km *km, DAT_COUNT pages, DAT_LMR_SCOPE scope)
{
	DAT_LMR_HANDLE lmr = DAT_HANDLE_NULL;

	KD_ASSERT_OK(km->env.test, dat_lmr_allocate(km->env.ia, km->env.pz, pages, scope, &lmr));
	km_keep_lmr(km, lmr);
	return lmr;
}

DAT_RMR_HANDLE km_rmr(struct km *km, bool for_ep)
{
	DAT_RMR_HANDLE rmr = DAT_HANDLE_NULL;

	KD_ASSERT_OK(km->env.test, for_ep ? dat_rmr_create_for_ep(km->env.pz, &rmr) :
					    dat_rmr_create(km->env.pz, &rmr));
	km_note(km, km->rmrs, DAT_HANDLE_NULL, rmr);
	return rmr;
}

void *km_bytes(struct km *km, int page)
{
	return page_address(km->page[page]);
}

u8 km_byte(u8 seed, int page, u32 offset)
{
	return seed + 31 * page + offset + (offset >> 8) * 7;
}

void km_fill(struct km *km, u8 seed)
{
	u32 i, offset;
	u8 *bytes;

	for (i = 0; i < KM_PAGES; i++) {
		bytes = km_bytes(km, i);
		for (offset = 0; offset < PAGE_SIZE; offset++)
			bytes[offset] = km_byte(seed, i, offset);
	}
}

DAT_RETURN km_try_fmr(struct km *km, DAT_LMR_HANDLE lmr, int first, u64 n, DAT_MEM_PRIV_FLAGS priv,
		      int flags, u64 cookie, struct km_keys *keys)
{
	DAT_PADDR pages[KM_PAGES];
	DAT_REGION_DESCRIPTION region = { .for_physical = pages };
	DAT_LMR_COOKIE c = { .as_64 = cookie };
	DAT_RETURN ret;

	memset(keys, 0xee, sizeof(*keys));
	memcpy(pages, km->pa + first, min_t(u64, n, KM_PAGES - first) * sizeof(*pages));
	ret = dat_lmr_fmr(lmr, DAT_MEM_TYPE_PHYSICAL, region, n, priv, DAT_VA_TYPE_VA, km->env.ep,
			  c, flags, &keys->lmr, &keys->rmr);
	memset(pages, 0xee, sizeof(pages));
	return ret;
}

DAT_RETURN km_try_inv(struct km *km, DAT_LMR_HANDLE lmr, int flags, u64 cookie)
{
	DAT_LMR_COOKIE c = { .as_64 = cookie };

	return dat_lmr_invalidate(lmr, km->env.ep, c, flags);
}

void km_bind(struct km *km, DAT_LMR_HANDLE lmr, int first, u64 n, DAT_MEM_PRIV_FLAGS priv,
	     struct km_keys *keys)
{
	KD_ASSERT_OK(km->env.test, km_try_fmr(km, lmr, first, n, priv, 0, 0xb1d, keys));
	km_done(km, IB_WC_SUCCESS);
	km_expect(km, DAT_DTO_LMR_FMR, 0xb1d, DAT_DTO_SUCCESS);
}

void km_unbind(struct km *km, DAT_LMR_HANDLE lmr)
{
	KD_ASSERT_OK(km->env.test, km_try_inv(km, lmr, 0, 0x1e7));
	km_finish(km, DAT_DTO_LMR_INVALIDATE, 0x1e7);
}

DAT_RETURN km_try_rmr(struct km *km, DAT_RMR_HANDLE rmr, DAT_LMR_HANDLE lmr, u64 addr, u32 length,
		      DAT_LMR_CONTEXT key, DAT_MEM_PRIV_FLAGS priv, int flags, u64 cookie,
		      DAT_RMR_CONTEXT *context)
{
	DAT_LMR_TRIPLET triplet = { addr, length, key };
	DAT_RMR_COOKIE c = { .as_64 = cookie };
	DAT_RETURN ret;

	ret = dat_rmr_bind(rmr, lmr, &triplet, priv, DAT_VA_TYPE_VA, km->env.ep, c, flags,
			   context);
	memset(&triplet, 0xee, sizeof(triplet));
	return ret;
}

DAT_RETURN km_try_part(struct km *km, DAT_RMR_HANDLE rmr, u32 offset, u32 length, int flags,
		       u64 cookie, DAT_RMR_CONTEXT *context)
{
	const struct kd_mem *mem = KM_MEM(km);

	return km_try_rmr(km, rmr, mem->lmr, mem->addr + offset, length, mem->lmr_context,
			  KM_REMOTE, flags, cookie, context);
}

DAT_RETURN km_try_unbind(struct km *km, DAT_RMR_HANDLE rmr, u64 cookie)
{
	DAT_RMR_CONTEXT none;

	return km_try_rmr(km, rmr, DAT_HANDLE_NULL, 0x1234, 0, 0xbad, 0, 0, cookie, &none);
}

void km_expect(struct km *km, DAT_DTOS op, u64 cookie, int status)
{
	struct kunit *test = km->env.test;
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;

	dto = &event.event_data.dto_completion_event_data;
	KUNIT_ASSERT_TRUE_MSG(test, kd_next(km->env.req, &event), "operation %u, cookie %llx",
			      op, cookie);
	KUNIT_EXPECT_EQ(test, (u32)event.event_number, (u32)DAT_DTO_COMPLETION_EVENT);
	KUNIT_EXPECT_PTR_EQ(test, event.evd_handle, km->env.req);
	KUNIT_EXPECT_PTR_EQ(test, dto->ep_handle, km->env.ep);
	KUNIT_EXPECT_EQ(test, (u64)dto->user_cookie.as_64, cookie);
	KUNIT_EXPECT_EQ(test, (int)dto->status, status);
	KUNIT_EXPECT_EQ(test, (u32)dto->operation, (u32)op);
}

void km_expect_bind(struct km *km, DAT_RMR_HANDLE rmr, u64 cookie, int status)
{
	struct kunit *test = km->env.test;
	const DAT_RMR_BIND_COMPLETION_EVENT_DATA *data;
	DAT_EVENT event;

	data = &event.event_data.rmr_completion_event_data;
	KUNIT_ASSERT_TRUE_MSG(test, kd_next(km->env.req, &event), "bind, cookie %llx", cookie);
	KUNIT_EXPECT_EQ(test, (u32)event.event_number, (u32)DAT_RMR_BIND_COMPLETION_EVENT);
	KUNIT_EXPECT_PTR_EQ(test, event.evd_handle, km->env.req);
	KUNIT_EXPECT_PTR_EQ(test, data->rmr_handle, rmr);
	KUNIT_EXPECT_EQ(test, (u64)data->user_cookie.as_64, cookie);
	KUNIT_EXPECT_EQ(test, (int)data->status, status);
}

void km_done(struct km *km, enum ib_wc_status status)
{
	KUNIT_EXPECT_EQ(km->env.test, fake_ib_complete(km->env.qp, false, status), 0);
}

void km_finish(struct km *km, DAT_DTOS op, u64 cookie)
{
	km_done(km, IB_WC_SUCCESS);
	km_expect(km, op, cookie, DAT_DTO_SUCCESS);
}

void km_finish_bind(struct km *km, DAT_RMR_HANDLE rmr, u64 cookie)
{
	fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS);
	km_expect_bind(km, rmr, cookie, DAT_RMR_BIND_SUCCESS);
}

void km_param(struct km *km, DAT_LMR_HANDLE lmr, DAT_LMR_PARAM *param)
{
	memset(param, 0x5a, sizeof(*param));
	KD_EXPECT_OK(km->env.test, dat_lmr_query(lmr, DAT_LMR_FIELD_ALL, param));
}

bool km_bound(struct km *km, DAT_LMR_HANDLE lmr)
{
	DAT_LMR_PARAM param;

	km_param(km, lmr, &param);
	return param.lmr_state.bound;
}

DAT_RETURN km_send(struct km *km, DAT_LMR_CONTEXT key, u64 addr, u32 length, u64 cookie)
{
	DAT_LMR_TRIPLET iov = { addr, length, key };

	return kd_post(km->env.ep, KD_SEND, 1, &iov, cookie, NULL, 0);
}

void km_usable(struct km *km, DAT_LMR_CONTEXT key, u64 addr)
{
	KD_EXPECT_OK(km->env.test, km_send(km, key, addr, 8, 0x5e));
	km_finish(km, DAT_DTO_SEND, 0x5e);
}

void km_window(struct km *km, DAT_RMR_HANDLE rmr, DAT_LMR_HANDLE lmr, u64 addr, u32 length,
	       DAT_LMR_CONTEXT key, DAT_RMR_CONTEXT *context)
{
	KD_ASSERT_OK(km->env.test, km_try_rmr(km, rmr, lmr, addr, length, key, KM_REMOTE, 0, 0xb2d,
					      context));
	km_finish_bind(km, rmr, 0xb2d);
}

bool km_reads(struct km *km, u32 key, u64 addr)
{
	u8 byte;

	return !fake_ib_access(km->env.dev, key, addr, &byte, 1, IB_ACCESS_REMOTE_READ);
}

bool km_writes(struct km *km, u32 key, u64 addr)
{
	u8 byte = 1;

	return !fake_ib_access(km->env.dev, key, addr, &byte, 1, IB_ACCESS_REMOTE_WRITE);
}

bool km_valid(struct km *km, u32 key)
{
	return fake_ib_mr_valid(km->env.dev, key);
}

void km_last(struct km *km, struct fake_ib_wr *wr)
{
	KUNIT_ASSERT_TRUE(km->env.test, fake_ib_last_wr(km->env.qp, false, wr));
}

void km_expect_flags(struct km *km, const struct fake_ib_wr *wr, int flags)
{
	int want = flags & DAT_COMPLETION_SUPPRESS_FLAG ? 0 : IB_SEND_SIGNALED;

	if (flags & DAT_COMPLETION_BARRIER_FENCE_FLAG)
		want |= IB_SEND_FENCE;
	if (flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG)
		want |= IB_SEND_SOLICITED;
	KUNIT_EXPECT_EQ_MSG(km->env.test, wr->send_flags, want, "flags %#x", flags);
}

void km_trace(struct km *km, struct km_trace *trace)
{
	trace->posted = fake_ib_posted(km->env.qp, false);
	trace->maps = fake_ib_count(km->env.dev, FAKE_IB_MAP_MR_SG);
	trace->used = kd_wq_used(kd_conn_of(&km->env)->sq);
}

void km_untouched(struct km *km, const struct km_trace *before, const char *what)
{
	struct km_trace now;

	km_trace(km, &now);
	KUNIT_EXPECT_EQ_MSG(km->env.test, now.posted, before->posted, "%s", what);
	KUNIT_EXPECT_EQ_MSG(km->env.test, now.maps, before->maps, "%s", what);
	KUNIT_EXPECT_EQ_MSG(km->env.test, now.used, before->used, "%s", what);
}

void km_down(struct km *km)
{
	KD_EXPECT_OK(km->env.test, dat_ep_disconnect(km->env.ep, DAT_CLOSE_ABRUPT_FLAG));
	KUNIT_EXPECT_EQ(km->env.test, kd_expect_end(&km->env),
			(u32)DAT_CONNECTION_EVENT_DISCONNECTED);
}

void km_broken(struct km *km)
{
	KUNIT_EXPECT_EQ(km->env.test, kd_expect_end(&km->env),
			(u32)DAT_CONNECTION_EVENT_BROKEN);
}

void km_drain(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;

	while (kd_next(evd, &event))
		;
}

void km_settle(struct km *km)
{
	fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS);
	km_drain(km->env.req);
}
