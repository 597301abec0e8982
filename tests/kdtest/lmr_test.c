// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Local Memory Regions: kinds of memory, rights, what a free takes away. */
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "kdtest.h"

#define AREA (16 * 1024)

static u8 module_data[AREA];

static DAT_RETURN lmr_create(struct kdt_ia *ia, void *p, u64 len, int rights, struct kdt_buf *buf)
{
	DAT_REGION_DESCRIPTION region = { .for_va = p };

	buf->p = p;
	buf->len = len;
	return dat_lmr_kcreate(ia->h, DAT_MEM_TYPE_VIRTUAL, region, len, ia->pz, rights,
			       DAT_VA_TYPE_VA, DAT_MEM_OPTIMIZE_DONT_CARE, &buf->lmr, &buf->lctx,
			       &buf->rctx, NULL, NULL);
}

static void create_query_free(struct kunit *test)
{
	struct kdt_ia *a = &kdt_env(test)->a;
	u8 *p = kunit_kzalloc(test, AREA, GFP_KERNEL);
	DAT_REGION_DESCRIPTION region = { .for_va = p + 100 };
	u64 start = (uintptr_t)p + 100;
	DAT_LMR_PARAM param = {};
	DAT_LMR_CONTEXT lctx = 0;
	DAT_RMR_CONTEXT rctx = 0;
	DAT_LMR_HANDLE lmr;
	DAT_VADDR addr = 0;
	DAT_VLEN len = 0;

	KDT_OK(test, dat_lmr_kcreate(a->h, DAT_MEM_TYPE_VIRTUAL, region, 5000, a->pz, KDT_RIGHTS,
				     DAT_VA_TYPE_VA, DAT_MEM_OPTIMIZE_DONT_CARE, &lmr, &lctx, &rctx,
				     &len, &addr));
	KUNIT_EXPECT_NE(test, lctx, 0);
	KUNIT_EXPECT_NE(test, rctx, 0);
	KUNIT_EXPECT_LE(test, addr, start);
	KUNIT_EXPECT_GE(test, addr + len, start + 5000);

	KDT_OK(test, dat_lmr_query(lmr, DAT_LMR_FIELD_ALL, &param));
	KUNIT_EXPECT_PTR_EQ(test, param.ia_handle, a->h);
	KUNIT_EXPECT_EQ(test, (int)param.mem_type, DAT_MEM_TYPE_VIRTUAL);
	KUNIT_EXPECT_PTR_EQ(test, param.region_desc.for_va, (void *)(p + 100));
	KUNIT_EXPECT_EQ(test, param.length, 5000);
	KUNIT_EXPECT_PTR_EQ(test, param.pz_handle, a->pz);
	KUNIT_EXPECT_EQ(test, (int)param.mem_priv, (int)KDT_RIGHTS);
	KUNIT_EXPECT_EQ(test, (int)param.va_type, DAT_VA_TYPE_VA);
	KUNIT_EXPECT_EQ(test, param.lmr_context, lctx);
	KUNIT_EXPECT_EQ(test, param.rmr_context, rctx);
	KUNIT_EXPECT_EQ(test, param.registered_size, len);
	KUNIT_EXPECT_EQ(test, param.registered_address, addr);
	KUNIT_EXPECT_EQ(test, (int)param.lmr_state.fmr_support, DAT_FALSE);
	KUNIT_EXPECT_EQ(test, (int)param.lmr_state.bound, DAT_TRUE);
	KDT_OK(test, dat_lmr_query(lmr, 0, NULL));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		    dat_lmr_query(lmr, 0x1000, &param));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		    dat_lmr_query(lmr, DAT_LMR_FIELD_ALL, NULL));
	KDT_OK(test, dat_lmr_free(lmr));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR, dat_lmr_free(lmr));

	/* Only the handle has to be taken. */
	KDT_OK(test, dat_lmr_kcreate(a->h, DAT_MEM_TYPE_VIRTUAL, region, 1, a->pz, KDT_RIGHTS,
				     DAT_VA_TYPE_VA, DAT_MEM_OPTIMIZE_DONT_CARE, &lmr, NULL, NULL,
				     NULL, NULL));
	KDT_OK(test, dat_lmr_free(lmr));
}

static void bad_arguments(struct kunit *test)
{
	static const struct {
		int arg, mem_type, rights, va_type, opt;
		u64 len;
		DAT_RETURN type;
	} bad[] = {
		{ 2, 0x03, 1, 0, 0, 100, DAT_INVALID_PARAMETER },
		{ 2, 0x200, 1, 0, 0, 100, DAT_INVALID_PARAMETER },
		{ 0, DAT_MEM_TYPE_BYPASS, 1, 0, 0, 100, DAT_MODEL_NOT_SUPPORTED },
		{ 4, 0, 1, 0, 0, 0, DAT_INVALID_PARAMETER },
		{ 4, 0, 1, 0, 0, U64_MAX, DAT_INVALID_PARAMETER },
		{ 6, 0, 0x04, 0, 0, 100, DAT_INVALID_PARAMETER },
		{ 6, 0, 0x101, 0, 0, 100, DAT_INVALID_PARAMETER },
		{ 7, 0, 1, 2, 0, 100, DAT_INVALID_PARAMETER },
		{ 8, 0, 1, 0, 0x08, 100, DAT_INVALID_PARAMETER },
	};
	struct kdt_env *env = kdt_env(test);
	DAT_REGION_DESCRIPTION region = { .for_va = kunit_kzalloc(test, 100, GFP_KERNEL) };
	DAT_LMR_HANDLE lmr;
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE other;
	DAT_PZ_HANDLE pz;
	int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		DAT_RETURN want = DAT_ERROR(bad[i].type,
					    (bad[i].arg ? DAT_INVALID_ARG1 + bad[i].arg - 1 :
							  DAT_NO_SUBTYPE));
		DAT_RETURN ret = dat_lmr_kcreate(env->a.h, bad[i].mem_type, region, bad[i].len,
						 env->a.pz, bad[i].rights, bad[i].va_type,
						 bad[i].opt, &lmr, NULL, NULL, NULL, NULL);

		KUNIT_EXPECT_TRUE_MSG(test, ret == want, "row %d: 0x%08x, not 0x%08x", i, ret,
				      want);
	}
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG9,
		    dat_lmr_kcreate(env->a.h, DAT_MEM_TYPE_VIRTUAL, region, 100, env->a.pz, 1, 0,
				    0, NULL, NULL, NULL, NULL, NULL));
	KDT_OK(test, dat_ia_open(kdt_ia_a, 8, &async, &other));
	KDT_OK(test, dat_pz_create(other, &pz));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ,
		    dat_lmr_kcreate(env->a.h, DAT_MEM_TYPE_VIRTUAL, region, 100, pz, 1, 0, 0, &lmr,
				    NULL, NULL, NULL, NULL));
	KDT_OK(test, dat_ia_close(other, DAT_CLOSE_ABRUPT_FLAG));
}

static void exposure_and_zero_based(struct kunit *test)
{
	struct kdt_ia *a = &kdt_env(test)->a;
	u8 *p = kunit_kzalloc(test, AREA, GFP_KERNEL);
	DAT_REGION_DESCRIPTION region = { .for_va = p + 33 };
	DAT_LMR_HANDLE lmr;
	DAT_VADDR addr;
	DAT_RETURN ret;
	DAT_VLEN len;
	int opt;

	for (opt = DAT_MEM_OPTIMIZE_IA; opt <= DAT_MEM_OPTIMIZE_EXACT_EXPOSURE; opt <<= 1) {
		ret = dat_lmr_kcreate(a->h, DAT_MEM_TYPE_VIRTUAL, region, 777, a->pz, KDT_RIGHTS,
				      DAT_VA_TYPE_VA, opt, &lmr, NULL, NULL, &len, &addr);
		if (ret == DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE) &&
		    opt == DAT_MEM_OPTIMIZE_EXACT_EXPOSURE)
			continue;
		KDT_OK(test, ret);
		if (opt == DAT_MEM_OPTIMIZE_EXACT_EXPOSURE) {
			KUNIT_EXPECT_EQ(test, addr, (u64)(uintptr_t)(p + 33));
			KUNIT_EXPECT_EQ(test, len, 777);
		}
		KDT_OK(test, dat_lmr_free(lmr));
	}
	if (a->attr.zb_supported == DAT_FALSE)
		KDT_REFUSED(test, DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE,
			    dat_lmr_kcreate(a->h, DAT_MEM_TYPE_VIRTUAL, region, 777, a->pz,
					    KDT_RIGHTS, DAT_VA_TYPE_ZB, 0, &lmr, NULL, NULL, NULL,
					    NULL));
}

static void unsupported_types(struct kunit *test)
{
	static const int types[] = { DAT_MEM_TYPE_LMR, DAT_MEM_TYPE_PHYSICAL,
				     DAT_MEM_TYPE_PLATFORM, DAT_MEM_TYPE_IA,
				     DAT_MEM_TYPE_PHYSICAL_VAR_PAGES };
	struct kdt_ia *a = &kdt_env(test)->a;
	DAT_REGION_DESCRIPTION region = {};
	DAT_LMR_HANDLE lmr;
	int i;

	for (i = 0; i < ARRAY_SIZE(types); i++) {
		if (a->prov.lmr_mem_types_supported & types[i])
			continue;
		KDT_REFUSED(test, DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE,
			    dat_lmr_kcreate(a->h, types[i], region, 100, a->pz, 1, 0, 0, &lmr, NULL,
					    NULL, NULL, NULL));
	}
}

static void remote_key_only_if_asked(struct kunit *test)
{
	struct kdt_ia *a = &kdt_env(test)->a;
	u8 *p = kunit_kzalloc(test, 100, GFP_KERNEL);
	struct kdt_buf buf;
	int rights;

	for (rights = 0; rights <= DAT_MEM_PRIV_ALL_FLAG; rights++) {
		if (rights & ~DAT_MEM_PRIV_ALL_FLAG)
			continue;
		KDT_OK(test, lmr_create(a, p, 100, rights, &buf));
		KUNIT_EXPECT_NE(test, buf.lctx, 0);
		KUNIT_EXPECT_EQ_MSG(test, !!buf.rctx,
				    !!(rights & (DAT_MEM_PRIV_REMOTE_READ_FLAG |
						 DAT_MEM_PRIV_REMOTE_WRITE_FLAG)),
				    "rights 0x%x", rights);
		KDT_OK(test, dat_lmr_free(buf.lmr));
	}
}

/* Write from src to dst and read it back; the bytes around stay as they were. */
static void round_trip(struct kunit *test, struct kdt_pair *pair, u8 *src, u8 *dst, u8 *back,
		       u32 offset, u32 len)
{
	struct kdt_buf from, to, again;

	memset(dst, 0xa5, AREA);
	memset(back, 0x5a, AREA);
	kdt_fill(src + offset, len, len);
	KDT_OK(test, lmr_create(pair->c.ia, src + offset, len, DAT_MEM_PRIV_LOCAL_READ_FLAG,
				&from));
	KDT_OK(test, lmr_create(pair->s.ia, dst + offset + 1, len, KDT_RIGHTS, &to));
	KDT_OK(test, lmr_create(pair->c.ia, back + offset, len, DAT_MEM_PRIV_LOCAL_WRITE_FLAG |
				DAT_MEM_PRIV_REMOTE_WRITE_FLAG, &again));
	KDT_OK(test, kdt_write(&pair->c, &from, 0, len, &to, 0, 1, 0));
	KDT_OK(test, kdt_read(&pair->c, &again, 0, len, &to, 0, 2, 0));
	kdt_dto(test, pair->c.req, &pair->c, 1, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS, len);
	kdt_dto(test, pair->c.req, &pair->c, 2, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, len);
	KUNIT_EXPECT_TRUE_MSG(test, kdt_same(dst + offset + 1, len, len), "%u+%u", offset, len);
	KUNIT_EXPECT_TRUE(test, kdt_all(dst, offset + 1, 0xa5));
	KUNIT_EXPECT_TRUE(test, kdt_all(dst + offset + 1 + len, AREA - offset - 1 - len, 0xa5));
	KUNIT_EXPECT_TRUE(test, kdt_same(back + offset, len, len));
	KUNIT_EXPECT_TRUE(test, kdt_all(back, offset, 0x5a));
	KUNIT_EXPECT_TRUE(test, kdt_all(back + offset + len, AREA - offset - len, 0x5a));
	KDT_OK(test, dat_lmr_free(from.lmr));
	KDT_OK(test, dat_lmr_free(to.lmr));
	KDT_OK(test, dat_lmr_free(again.lmr));
}

static void kinds_of_memory(struct kunit *test)
{
	static const u32 shapes[][2] = {
		{ 0, 1 }, { 0, 4096 }, { 1, 1 }, { 100, 4096 }, { 4095, 2 }, { 4095, 4098 },
		{ 5, 12000 }, { 0, AREA - 1 },
	};
	struct kdt_pair *pair = kdt_pair_up(test);
	u8 *back = kunit_kzalloc(test, AREA, GFP_KERNEL);
	u8 *k = kunit_kzalloc(test, AREA, GFP_KERNEL);
	u8 *v = vzalloc(AREA);
	int i;

	/* First, so that a failing assertion cannot leak it: the buffer list frees it. */
	if (v) {
		struct kdt_buf *owner = kzalloc(sizeof(*owner), GFP_KERNEL);

		if (owner) {
			owner->p = v;
			list_add(&owner->link, &kdt_env(test)->bufs);
		}
	}
	KUNIT_ASSERT_NOT_NULL(test, back);
	KUNIT_ASSERT_NOT_NULL(test, k);
	KUNIT_ASSERT_NOT_NULL(test, v);
	for (i = 0; i < ARRAY_SIZE(shapes); i++) {
		round_trip(test, pair, k, v, back, shapes[i][0], shapes[i][1]);
		round_trip(test, pair, v, module_data, back, shapes[i][0], shapes[i][1]);
		round_trip(test, pair, module_data, k, v, shapes[i][0], shapes[i][1]);
	}
}

static void local_rights(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *all = kdt_buf_new(test, &env->b, 100);
	int sink = DAT_MEM_PRIV_LOCAL_WRITE_FLAG |
		   (env->a.iwarp ? DAT_MEM_PRIV_REMOTE_WRITE_FLAG : 0);
	struct kdt_buf *none = kdt_buf_rights(test, &env->a, 100, DAT_MEM_PRIV_NONE_FLAG);
	struct kdt_buf *r = kdt_buf_rights(test, &env->a, 100, DAT_MEM_PRIV_LOCAL_READ_FLAG);
	struct kdt_buf *w = kdt_buf_rights(test, &env->a, 100, sink);
	struct kdt_buf *bad_source[] = { none, w }, *bad_sink[] = { none, r };
	int i;

	for (i = 0; i < 2; i++) {
		KDT_REFUSED(test, DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_READ,
			    kdt_send(&pair->c, bad_source[i], 0, 10, 1, 0));
		KDT_REFUSED(test, DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_READ,
			    kdt_write(&pair->c, bad_source[i], 0, 10, all, 0, 1, 0));
		KDT_REFUSED(test, DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE,
			    kdt_recv(&pair->c, bad_sink[i], 0, 10, 1));
		KDT_REFUSED(test, DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE,
			    kdt_read(&pair->c, bad_sink[i], 0, 10, all, 0, 1, 0));
	}
	/* Each right is enough for what it is for. */
	KDT_OK(test, kdt_write(&pair->c, r, 0, 10, all, 0, 2, 0));
	KDT_OK(test, kdt_read(&pair->c, w, 0, 10, all, 0, 3, 0));
	KDT_OK(test, kdt_recv(&pair->c, w, 0, 10, 4));
	kdt_dto(test, pair->c.req, &pair->c, 2, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS, 10);
	kdt_dto(test, pair->c.req, &pair->c, 3, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, 10);
}

/* The peer tries what it has no right to: the connection ends, the memory is untouched. */
static void peer_refused(struct kunit *test, struct kdt_buf *target, bool write)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, 64);

	memset(target->p, 0x11, target->len);
	memset(mine->p, 0x22, 64);
	if (write)
		KDT_OK(test, kdt_write(&pair->c, mine, 0, 64, target, 0, 1, 0));
	else
		KDT_OK(test, kdt_read(&pair->c, mine, 0, 64, target, 0, 1, 0));
	kdt_end(test, &pair->c);
	kdt_end(test, &pair->s);
	KUNIT_EXPECT_TRUE(test, kdt_all(target->p, target->len, 0x11));
	if (!write)
		KUNIT_EXPECT_TRUE(test, kdt_all(mine->p, 64, 0x22));
	kdt_any_dto(test, pair->c.req, NULL);
	kdt_ep_done(test, &pair->c);
	kdt_ep_done(test, &pair->s);
}

static void remote_rights(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	int local = DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG;
	struct kdt_buf *r = kdt_buf_rights(test, &env->b, 64,
					   local | DAT_MEM_PRIV_REMOTE_READ_FLAG);
	struct kdt_buf *w = kdt_buf_rights(test, &env->b, 64,
					   local | DAT_MEM_PRIV_REMOTE_WRITE_FLAG);

	peer_refused(test, r, true);
	/* siw answers reads of memory that is not open to them. */
	if (!env->b.iwarp)
		peer_refused(test, w, false);
}

static void freed_for_the_peer(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_buf *buf = kdt_buf_new(test, &env->b, 64);

	KDT_OK(test, dat_lmr_free(buf->lmr));
	peer_refused(test, buf, true);
	peer_refused(test, buf, false);
}

static void freed_locally(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *buf = kdt_buf_new(test, &env->a, 64);
	struct kdt_buf *good = kdt_buf_new(test, &env->a, 64);
	struct kdt_buf *peer = kdt_buf_new(test, &env->b, 64);

	KDT_OK(test, dat_lmr_free(buf->lmr));
	KDT_TYPE(test, DAT_PRIVILEGES_VIOLATION, kdt_send(&pair->c, buf, 0, 64, 1, 0));
	KDT_TYPE(test, DAT_PRIVILEGES_VIOLATION, kdt_recv(&pair->c, buf, 0, 64, 1));
	KDT_TYPE(test, DAT_PRIVILEGES_VIOLATION, kdt_write(&pair->c, buf, 0, 64, peer, 0, 1, 0));
	KDT_TYPE(test, DAT_PRIVILEGES_VIOLATION, kdt_read(&pair->c, buf, 0, 64, peer, 0, 1, 0));
	/* The connection did not notice. */
	KDT_OK(test, kdt_write(&pair->c, good, 0, 64, peer, 0, 2, 0));
	kdt_dto(test, pair->c.req, &pair->c, 2, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS, 64);
}

static void sizes(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	u32 limit = min_t(u32, env->a.attr.max_lmr_block_size, 8 << 20), len;
	struct kdt_buf *owner = kzalloc(sizeof(*owner), GFP_KERNEL), buf;
	struct kdt_pair *pair = kdt_pair_up(test);
	struct page **pages;
	DAT_RETURN ret;
	void *twice;
	u32 i, n;

	KUNIT_ASSERT_NOT_NULL(test, owner);
	owner->p = vzalloc(limit + PAGE_SIZE);
	list_add(&owner->link, &env->bufs);
	KUNIT_ASSERT_NOT_NULL(test, owner->p);
	for (len = 1; len < limit; len = len * 3 + 1) {
		KDT_OK(test, lmr_create(&env->a, owner->p, len, KDT_RIGHTS, &buf));
		KDT_OK(test, dat_lmr_free(buf.lmr));
	}
	/* The advertised limit is a real one: its last byte can be used. */
	if (limit < 8 << 20) {
		KDT_OK(test, lmr_create(&env->a, owner->p, limit, KDT_RIGHTS, &buf));
		KDT_OK(test, kdt_recv(&pair->c, &buf, limit - 1, 1, 1));
		KDT_OK(test, dat_lmr_free(buf.lmr));
		/* One byte more may fit if the pages happen to be neighbours: see to it. */
		n = limit / PAGE_SIZE + 1;
		pages = kvcalloc(n, sizeof(*pages), GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, pages);
		for (i = 0; i < n; i++)
			pages[i] = vmalloc_to_page(owner->p);
		twice = vmap(pages, n, VM_MAP, PAGE_KERNEL);
		kvfree(pages);
		KUNIT_ASSERT_NOT_NULL(test, twice);
		ret = lmr_create(&env->a, twice, limit + 1, KDT_RIGHTS, &buf);
		vunmap(twice);
		KUNIT_EXPECT_TRUE_MSG(test, DAT_GET_TYPE(ret) == DAT_INSUFFICIENT_RESOURCES,
				      "%u+1 bytes: 0x%08x", limit, ret);
	}
}

static void many(struct kunit *test)
{
	struct kdt_ia *a = &kdt_env(test)->a;
	u8 *p = kunit_kzalloc(test, AREA, GFP_KERNEL);
	struct kdt_buf *buf = kunit_kcalloc(test, 100, sizeof(*buf), GFP_KERNEL);
	int i, j;

	KUNIT_ASSERT_NOT_NULL(test, buf);
	for (i = 0; i < 100; i++) {
		KDT_OK(test, lmr_create(a, p + i, 64, KDT_RIGHTS, &buf[i]));
		for (j = 0; j < i; j++) {
			KUNIT_EXPECT_NE(test, buf[i].lctx, buf[j].lctx);
			KUNIT_EXPECT_NE(test, buf[i].rctx, buf[j].rctx);
		}
	}
	for (i = 0; i < 100; i++)
		KDT_OK(test, dat_lmr_free(buf[(i * 37) % 100].lmr));
}

static struct kunit_case cases[] = {
	KD_CASE(create_query_free, "LMR-01,LMR-02,LMR-04,LMR-07,LMR-21: create, query, free"),
	KD_CASE(bad_arguments, "LMR-05,LMR-08,LMR-20,GEN-09: refused arguments"),
	KD_CASE(exposure_and_zero_based, "LMR-05,LMR-06: exposure and zero-based addresses"),
	KD_CASE(unsupported_types, "LMR-20: memory types not offered are refused"),
	KD_CASE(remote_key_only_if_asked, "LMR-03: a remote key only with a remote right"),
	KD_CASE(kinds_of_memory, "LMR-01,LMR-06: kmalloc, vmalloc, module data, any offset"),
	KD_CASE(local_rights, "LMR-09,EP-POST-16: local rights checked by each post"),
	KD_CASE(remote_rights, "LMR-03,RDMAW-14: remote rights checked by the peer"),
	KD_CASE(freed_locally, "LMR-FREE-02,EP-POST-16: a freed LMR is refused by posts"),
	KD_CASE(freed_for_the_peer, "LMR-FREE-03,LMR-FREE-04: a freed LMR is closed to the peer"),
	KD_CASE(sizes, "LMR-04,IA-QRY-02: sizes up to max_lmr_block_size"),
	KD_CASE(many, "SIL-17,LMR-10: 100 LMRs over the same memory, keys differ"),
	{}
};

struct kunit_suite kdt_lmr_suite = {
	.name = "kdtest-lmr",
	.init = kdt_init,
	.exit = kdt_exit,
	.test_cases = cases,
};
