// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * A device that is given copies of memory, as with swiotlb: CPU and device see the same bytes
 * where they should, and nobody's bytes are lost. Or one past caches that are not coherent.
 */
#include <linux/interrupt.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/prandom.h>
#include <linux/random.h>
#include <linux/sizes.h>

#include "fake_dma.h"
#include "kd_mem.h"
#include "kd_srq.h"
#include "kd_upcall.h"

static const struct fake_ib_caps dma_caps = { .copies = true };

static struct fake_dma *dma_of(struct kd_env *env)
{
	return fake_ib_dma(fake_ib_device(env->dev));
}

static u8 *dma_bytes(struct kd_env *env)
{
	return (u8 *)(uintptr_t)env->mem[KD_RW].addr;
}

/* These bytes are there for the CPU. */
static void dma_is(struct kd_env *env, const u8 *at, const char *text)
{
	KUNIT_EXPECT_EQ_MSG(env->test, memcmp(at, text, strlen(text)), 0, "\"%s\" is \"%.*s\"",
			    text, (int)strlen(text), at);
}

/* The device or a peer writes. */
static void dma_put(struct kd_env *env, u32 key, u64 addr, const char *text)
{
	KUNIT_EXPECT_EQ(env->test, fake_ib_access(env->dev, key, addr, (void *)text, strlen(text),
						  IB_ACCESS_LOCAL_WRITE), 0);
}

static void dma_put_mem(struct kd_env *env, u32 offset, const char *text)
{
	dma_put(env, env->mem[KD_RW].lmr_context, env->mem[KD_RW].addr + offset, text);
}

static void dma_sync(struct kd_env *env, u32 offset, u32 length, bool write)
{
	DAT_LMR_TRIPLET seg = kd_seg(env, KD_RW, offset, length);

	KD_EXPECT_OK(env->test, write ? dat_lmr_sync_rdma_write(env->ia, &seg, 1) :
					dat_lmr_sync_rdma_read(env->ia, &seg, 1));
}

/* The peer takes the key away, with a message that nobody looks at. */
static void dma_recv_inv(struct kd_env *env, u32 key)
{
	KD_EXPECT_OK(env->test, kd_post(env->ep, KD_RECV, 0, NULL, 1, NULL, 0));
	KUNIT_EXPECT_EQ(env->test, fake_ib_recv_inv(env->qp, 0, key), 0);
	km_drain(env->recv);
}

/* A Read into an RMR, or an LMR by its rmr_context: it brings five bytes. */
static void dma_read_to(struct km *km, u64 addr, u32 key, u32 put_key)
{
	DAT_RMR_TRIPLET sink = kd_remote(addr, 5, key), remote = kd_remote(0x1000, 5, 0x77);
	DAT_DTO_COOKIE cookie = { .as_64 = 9 };

	KD_EXPECT_OK(km->env.test, dat_ep_post_rdma_read_to_rmr(km->env.ep, &sink, cookie, &remote,
								0));
	dma_put(&km->env, put_key, addr, "right");
}

/* Also on an EP that needs no segment of its own. */
static void dma_read_rmr_test(struct kunit *test)
{
	DAT_RMR_CONTEXT keys[2];
	struct kd_mem *mem;
	DAT_EP_ATTR attr;
	struct km *km;
	int i;

	kd_attr(&attr);
	for (i = 0; i < 4; i++) {
		if (i == 2) {
			attr.max_request_iov = 0;
			attr.max_rdma_read_iov = 0;
			attr.max_rdma_write_iov = 0;
		}
		km = km_on(test, &dma_caps, &attr);
		mem = KM_MEM(km);
		keys[0] = mem->rmr_context;
		km_window(km, km_rmr(km, false), mem->lmr, mem->addr + 64, 128, mem->lmr_context,
			  &keys[1]);
		memset(dma_bytes(&km->env), '.', 256);
		dma_read_to(km, mem->addr + 70, keys[i % 2], mem->lmr_context);
		km_finish(km, DAT_DTO_RDMA_READ, 9);
		dma_is(&km->env, dma_bytes(&km->env) + 69, ".right.");
	}
}

static void dma_invalidated_read_test(struct kunit *test)
{
	struct km *km = km_on(test, &dma_caps, NULL);
	DAT_LMR_HANDLE lmr = km_lmr(km, 2, DAT_LMR_SCOPE_PZ);
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 5, 0x77);
	DAT_LMR_TRIPLET iov;
	struct km_keys keys;

	km_bind(km, lmr, 0, 2, KM_ALL, &keys);
	iov = (DAT_LMR_TRIPLET) { km->pa[0] + 50, 5, keys.lmr };
	KD_EXPECT_OK(test, kd_post(km->env.ep, KD_READ, 1, &iov, 1, &remote, 0));
	KD_EXPECT_OK(test, km_try_inv(km, lmr, DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG, 2));
	dma_put(&km->env, keys.lmr, km->pa[0] + 50, "quick");
	/* the key is gone for new requests, and its memory here all the same */
	km_finish(km, DAT_DTO_RDMA_READ, 1);
	dma_is(&km->env, km_bytes(km, 0) + 50, "quick");
	km_finish(km, DAT_DTO_LMR_INVALIDATE, 2);
}

static void dma_fmr_test(struct kunit *test)
{
	struct km *km = km_on(test, &dma_caps, NULL);
	struct kd_env *env = &km->env;
	DAT_LMR_HANDLE lmr = km_lmr(km, 3, DAT_LMR_SCOPE_PZ);
	DAT_LMR_COOKIE cookie = { .as_64 = 4 };
	struct scatterlist sgl[3];
	struct kdat_sg sg = { .sgl = sgl, .nents = 3, .offset = 7, .length = 2 * PAGE_SIZE };
	u8 *bytes = km_bytes(km, 0);
	DAT_LMR_CONTEXT key;
	DAT_VADDR at;
	int i, peer;

	km_fill(km, 1);
	sg_init_table(sgl, 3);
	sg_set_page(&sgl[0], km->page[0], PAGE_SIZE - 100, 100);
	sg_set_page(&sgl[1], km->page[2], PAGE_SIZE, 0);
	sg_set_page(&sgl[2], km->page[4], PAGE_SIZE, 0);
	for (peer = 0; peer < 2; peer++) {
		KD_ASSERT_OK(test, kdat_lmr_fmr_sg(lmr, &sg, KM_ALL, DAT_VA_TYPE_VA, env->ep,
						   cookie, 0, &key, NULL, &at));
		km_finish(km, DAT_DTO_LMR_FMR, 4);
		/* bytes outside of the binding, in its pages, are the CPU's */
		memcpy(bytes + 100, peer ? "beside" : "before", 6);
		dma_put(env, key, at, peer ? "again" : "begin");
		dma_put(env, key, at + PAGE_SIZE - 107, peer ? "page 2.2" : "page two");
		if (peer)
			dma_recv_inv(env, key);
		else
			km_unbind(km, lmr);
		dma_is(env, bytes + 100, peer ? "beside" : "before");
		dma_is(env, bytes + 107, peer ? "again" : "begin");
		dma_is(env, km_bytes(km, 2), peer ? "page 2.2" : "page two");
		for (i = 112; i < PAGE_SIZE; i++)
			KUNIT_ASSERT_EQ(test, bytes[i], km_byte(1, 0, i));
	}
}

/* A peer ends what cannot be unmapped then: memory of dat_lmr_kcreate(). */
static void dma_peer_ends_test(struct kunit *test)
{
	struct km *km = km_on(test, &dma_caps, NULL);
	struct kd_env *env = &km->env;
	u8 *bytes = dma_bytes(env);
	u32 key = KM_MEM(km)->rmr_context;
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 40, 4);

	memset(bytes, '.', 64);
	dma_sync(env, 0, 64, true);
	memcpy(bytes + 10, "cpu", 3);
	dma_put(env, key, KM_MEM(km)->addr + 20, "peer");
	KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 0, NULL, 1, NULL, 0));
	KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, 2, NULL, 0));
	KUNIT_EXPECT_EQ(test, fake_ib_recv_inv(env->qp, 0, key), 0);
	km_drain(env->recv);
	dma_is(env, bytes + 9, ".cpu.......peer.");
	/* no request reaches it any more, whatever its device says */
	memcpy(bytes + 40, "last", 4);
	KUNIT_EXPECT_EQ(test, fake_ib_recv(env->qp, 4, false), 0);
	km_drain(env->recv);
	dma_is(env, bytes + 39, ".last.");
}

/* The same, of memory that an RMR still reaches. */
static void dma_peer_ends_below_test(struct kunit *test)
{
	struct km *km = km_on(test, &dma_caps, NULL);
	DAT_LMR_HANDLE lmr = km_lmr(km, 2, DAT_LMR_SCOPE_PZ);
	u8 *bytes = km_bytes(km, 0);
	DAT_RMR_CONTEXT window;
	struct km_keys keys;

	memset(bytes, '.', 256);
	km_bind(km, lmr, 0, 2, KM_ALL, &keys);
	km_window(km, km_rmr(km, false), lmr, km->pa[0] + 64, 128, keys.lmr, &window);
	dma_put(&km->env, keys.rmr, km->pa[0] + 10, "peer");
	dma_recv_inv(&km->env, keys.rmr);
	dma_is(&km->env, bytes + 9, ".peer.");
	/* the window is open: what comes through it comes to be seen */
	dma_read_to(km, km->pa[0] + 100, window, window);
	km_finish(km, DAT_DTO_RDMA_READ, 9);
	dma_is(&km->env, bytes + 99, ".right.");
}

static void dma_ia_test(struct kunit *test)
{
	struct km *km = km_on(test, &dma_caps, NULL);
	struct kd_env *env = &km->env;
	DAT_REGION_DESCRIPTION region;
	struct km_reg reg = { .priv = KM_ALL };
	u8 *bytes = km_bytes(km, 0), *copy;
	DAT_LMR_TRIPLET iov;
	DAT_LMR_CONTEXT all;
	DAT_LMR_HANDLE lmr;
	struct kdat_dma_map map = {};
	DAT_PADDR at;

	memset(bytes, '.', PAGE_SIZE);
	KD_ASSERT_OK(test, dat_ia_reserved_lmr(env->ia, &lmr, &all));
	KD_ASSERT_OK(test, kdat_ia_dma_map(env->ia, &map, bytes, PAGE_SIZE));
	at = map.address;
	copy = (u8 *)(uintptr_t)at;
	memcpy(bytes + 10, "hello", 5);
	KD_EXPECT_OK(test, km_send(km, all, at + 10, 5, 1));
	dma_is(env, copy + 9, ".hello.");
	iov = (DAT_LMR_TRIPLET) { at + 20, 8, all };
	KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, 1, NULL, 0));
	memcpy(copy + 20, "answer", 6);
	memcpy(bytes + 30, "new", 3);
	KUNIT_EXPECT_EQ(test, fake_ib_recv(env->qp, 6, false), 0);
	km_drain(env->recv);
	dma_is(env, bytes + 9, ".hello.....answer....new.");
	/* which is why a sync for their sake takes nothing from there */
	memcpy(copy + 30, "old", 3);
	iov = (DAT_LMR_TRIPLET) { at + 30, 3, all };
	KD_EXPECT_OK(test, dat_lmr_sync_rdma_write(env->ia, &iov, 1));
	dma_is(env, bytes + 9, ".hello.....answer....new.");
	/* a copy of which nobody knows the memory may not be written by peers */
	region.for_ia = at;
	KM_EXPECT_TYPE(test, km_try_reg(km, &reg, DAT_MEM_TYPE_IA, region, 64),
		       DAT_INSUFFICIENT_RESOURCES);
	reg.priv = DAT_MEM_PRIV_READ_FLAG;
	KD_EXPECT_OK(test, km_try_reg(km, &reg, DAT_MEM_TYPE_IA, region, 64));
	KD_EXPECT_OK(test, dat_lmr_free(reg.lmr));
	KD_EXPECT_OK(test, kdat_ia_dma_unmap(env->ia, &map));
	dma_is(env, bytes + 9, ".hello.....answer....new.");
}

/*
 * What is mapped when the device goes is unmapped; the fake device counts what is left. Each
 * record is given back once.
 */
static void dma_gone_test(struct kunit *test)
{
	struct km *km = km_on(test, &dma_caps, NULL);
	struct kd_env *env = &km->env;
	struct kdat_dma_map map[4] = {};
	int i;

	for (i = 0; i < 4; i++)
		KD_ASSERT_OK(test, kdat_ia_dma_map(env->ia, &map[i], km_bytes(km, 0),
						   64 * (1 + i / 2)));
	KD_EXPECT_OK(test, kdat_ia_dma_unmap(env->ia, &map[0]));
	fake_ib_unplug(env->dev);
	KUNIT_EXPECT_TRUE(test, list_empty(&dma_of(env)->maps));
	for (i = 1; i < 3; i++)
		KD_EXPECT_OK(test, kdat_ia_dma_unmap(env->ia, &map[i]));
	for (i = 0; i < 3; i++)
		KD_BAD_ARG(test, kdat_ia_dma_unmap(env->ia, &map[i]), 2);
}

/* A device that has failed is still there: what is unmapped is, at once. */
static void dma_failed_test(struct kunit *test)
{
	struct km *km = km_on(test, &dma_caps, NULL);
	struct kd_env *env = &km->env;
	struct fake_dma *dma = dma_of(env);
	struct list_head *before = dma->maps.next;
	struct kdat_dma_map map = {};
	struct ib_event fatal = {
		.device = fake_ib_device(env->dev), .event = IB_EVENT_DEVICE_FATAL,
	};

	KD_ASSERT_OK(test, kdat_ia_dma_map(env->ia, &map, km_bytes(km, 0), 64));
	ib_dispatch_event(&fatal);
	flush_workqueue(ib_wq);
	flush_workqueue(kdapl_misc_wq);
	KUNIT_EXPECT_PTR_NE(test, dma->maps.next, before);
	KD_EXPECT_OK(test, kdat_ia_dma_unmap(env->ia, &map));
	KUNIT_EXPECT_PTR_EQ(test, dma->maps.next, before);
}

static void dma_close_ia(void *arg)
{
	WARN_ON(dat_ia_close(*(DAT_IA_HANDLE *)arg, DAT_CLOSE_GRACEFUL_FLAG));
}

static void dma_close_test(struct kunit *test)
{
	struct km *km = km_on(test, &dma_caps, NULL);
	struct fake_dma *dma = dma_of(&km->env);
	struct kdat_dma_map map = {}, none = {};
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	struct list_head *before = dma->maps.next;
	DAT_IA_HANDLE own = km->env.ia, ia = kd_ia_more(&km->env, &evd);
	u8 *bytes = km_bytes(km, 0);

	KD_ASSERT_OK(test, kdat_ia_dma_map(ia, &map, bytes, 64));
	KUNIT_EXPECT_PTR_NE(test, dma->maps.next, before);
	KUNIT_EXPECT_EQ(test, map.length, 64ULL);
	/* not mapped, not with this instance, or mapped already */
	KD_BAD_ARG(test, kdat_ia_dma_unmap(ia, &none), 2);
	KD_BAD_ARG(test, kdat_ia_dma_unmap(own, &map), 2);
	KD_BAD_ARG(test, kdat_ia_dma_map(ia, &map, bytes, 64), 2);
	KD_BAD_ARG(test, kdat_ia_dma_map(own, &map, bytes, 64), 2);
	KD_EXPECT_OK(test, kdat_ia_dma_unmap(ia, &map));
	KUNIT_EXPECT_PTR_EQ(test, dma->maps.next, before);
	KD_BAD_ARG(test, kdat_ia_dma_unmap(ia, &map), 2);
	/* the same record again, left to the end of the instance, and then to another one */
	KD_ASSERT_OK(test, kdat_ia_dma_map(ia, &map, bytes, 64));
	KD_EXPECT_OK(test, dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
	KUNIT_EXPECT_PTR_EQ(test, dma->maps.next, before);
	KD_BAD_ARG(test, kdat_ia_dma_unmap(own, &map), 2);
	KD_EXPECT_OK(test, kdat_ia_dma_map(own, &map, bytes, 64));
	KD_EXPECT_OK(test, kdat_ia_dma_unmap(own, &map));
	/* an instance that is closed in the middle of the call */
	evd = DAT_HANDLE_NULL;
	ia = kd_ia_more(&km->env, &evd);
	dma->arg = &ia;
	dma->at_map = dma_close_ia;
	KD_EXPECT_RET(test, kdat_ia_dma_map(ia, &map, bytes, 64), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_IA);
	KUNIT_EXPECT_PTR_EQ(test, dma->maps.next, before);
	/* without a mapping left the record is as it was */
	dma->fail = 1;
	KM_EXPECT_TYPE(test, kdat_ia_dma_map(own, &map, bytes, 64), DAT_INSUFFICIENT_RESOURCES);
	KD_BAD_ARG(test, kdat_ia_dma_unmap(own, &map), 2);
}

/*
 * An EP that somebody is freeing keeps its QP for a while. Its instance is closed meanwhile, and
 * what a peer may still write to stays mapped.
 */
static void dma_close_late_test(struct kunit *test)
{
	struct km *km = km_on(test, &dma_caps, NULL);
	struct fake_dma *dma = dma_of(&km->env);
	struct kd_aside freer, closer;
	struct kdat_dma_map map = {};
	struct kdapl_ep *ep = km->env.kep;
	struct kdapl_ia *ia = kd_ia(&km->env);
	struct list_head *before;
	DAT_EP_HANDLE handle = km->env.ep;

	KD_ASSERT_OK(test, kdat_ia_dma_map(km->env.ia, &map, km_bytes(km, 0), 64));
	before = dma->maps.next;
	refcount_inc(&ep->obj.ref);
	mutex_lock(&ep->mutex);		/* it gets no further */
	kd_aside_call(test, &freer, dat_ep_free, handle);
	KD_WAIT(test, !READ_ONCE(ep->obj.live));
	memset(&km->eps[0], 0, sizeof(km->eps[0]));
	kd_aside_call(test, &closer, kd_close_abrupt, kd_forget(&km->env));
	KD_WAIT(test, READ_ONCE(ia->closing));
	KUNIT_EXPECT_FALSE(test, kd_aside_returned(&closer, 100));
	KUNIT_EXPECT_PTR_EQ(test, READ_ONCE(dma->maps.next), before);
	mutex_unlock(&ep->mutex);
	KUNIT_EXPECT_TRUE(test, kd_aside_wait(&freer));
	KD_EXPECT_OK(test, freer.ret);
	KUNIT_EXPECT_TRUE(test, kd_aside_wait(&closer));
	KD_EXPECT_OK(test, closer.ret);
	KUNIT_EXPECT_TRUE(test, list_empty(&dma->maps));
	kdapl_obj_put(&ep->obj);
}

static void dma_same_test(struct kunit *test)
{
	static const struct { struct fake_ib_caps caps; bool sync; } rows[] = {
		{ { .copies = true }, true }, { {}, false }, { { .caches = true }, true },
	};
	DAT_PROVIDER_ATTR attr;
	struct km *km;
	char found[8] = {};
	int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		km = km_open(test, &rows[i].caps);
		KD_EXPECT_OK(test, dat_ia_query(km->env.ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL,
						&attr));
		KUNIT_EXPECT_EQ(test, (u32)attr.lmr_sync_req, (u32)rows[i].sync);
		if (!i)
			dma_of(&km->env)->same = true;
		km_join(km, 0, NULL);
		memcpy(dma_bytes(&km->env), "hello", 5);
		KD_EXPECT_OK(test, km_send(km, KM_MEM(km)->lmr_context, KM_MEM(km)->addr, 5, 1));
		KUNIT_EXPECT_EQ(test, fake_ib_access(km->env.dev, KM_MEM(km)->lmr_context,
						     KM_MEM(km)->addr, found, 5, 0), 0);
		KUNIT_EXPECT_STREQ(test, found, "hello");
		km_settle(km);
	}
}

/* All that caches have been told since the last time, and nothing else. */
static void dma_told(struct km *km, const char *what, unsigned int n, const struct fake_sync *want)
{
	struct fake_dma *dma = dma_of(&km->env);
	unsigned int i;

	KUNIT_EXPECT_EQ_MSG(km->env.test, dma->nsyncs, n, "%s", what);
	for (i = 0; i < n && i < dma->nsyncs; i++) {
		const struct fake_sync *got = &dma->syncs[i];

		KUNIT_EXPECT_TRUE_MSG(km->env.test,
				      got->addr == want[i].addr && got->size == want[i].size &&
				      got->dir == want[i].dir && got->for_cpu == want[i].for_cpu,
				      "%s %u: %#llx %zu %d %d", what, i, got->addr, got->size,
				      got->dir, got->for_cpu);
	}
	dma->nsyncs = 0;
}

#define DMA_TOLD(km, what, ...)							\
do {										\
	const struct fake_sync __want[] = { __VA_ARGS__ };			\
										\
	dma_told(km, what, ARRAY_SIZE(__want), __want);				\
} while (0)

#define DMA_SOURCE(at, n)	{ at, n, DMA_TO_DEVICE, false }
#define DMA_SINK(at, n)		{ at, n, DMA_BIDIRECTIONAL, false }
#define DMA_SEEN(at, n)		{ at, n, DMA_FROM_DEVICE, true }

static void dma_caches_test(struct kunit *test)
{
	static const struct fake_ib_caps caps = { .caches = true };
	struct km *km = km_on(test, &caps, NULL);
	struct kd_env *env = &km->env;
	struct fake_dma *dma = dma_of(env);
	DAT_LMR_HANDLE lmr = km_lmr(km, 2, DAT_LMR_SCOPE_PZ);
	u64 at = KM_MEM(km)->addr, one, two;
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 200, 20);
	struct km_keys keys;
	struct km_reg part;

	dma->nsyncs = 0;
	KD_EXPECT_OK(test, km_send(km, KM_MEM(km)->lmr_context, at + 100, 10, 1));
	DMA_TOLD(km, "Send", DMA_SOURCE(at + 100, 10));
	km_settle(km);
	dma_told(km, "Send done", 0, NULL);
	KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, 1, NULL, 0));
	DMA_TOLD(km, "Receive", DMA_SINK(at + 200, 20));
	KUNIT_EXPECT_EQ(test, fake_ib_recv(env->qp, 7, false), 0);
	km_drain(env->recv);
	DMA_TOLD(km, "message", DMA_SEEN(at + 200, 7));
	dma_sync(env, 5, 6, false);
	DMA_TOLD(km, "sync_rdma_read", DMA_SOURCE(at + 5, 6));
	dma_sync(env, 5, 6, true);
	DMA_TOLD(km, "sync_rdma_write", DMA_SINK(at + 5, 6), DMA_SEEN(at + 5, 6));

	/* page by page, since the next one may be anywhere */
	km_bind(km, lmr, 0, 2, KM_ALL, &keys);
	one = (uintptr_t)km_bytes(km, 0);
	two = (uintptr_t)km_bytes(km, 1);
	dma->nsyncs = 0;
	iov = (DAT_LMR_TRIPLET) { km->pa[0] + PAGE_SIZE - 3, 8, keys.lmr };
	KD_EXPECT_OK(test, dat_lmr_sync_rdma_read(env->ia, &iov, 1));
	DMA_TOLD(km, "two pages", DMA_SOURCE(one + PAGE_SIZE - 3, 3), DMA_SOURCE(two, 5));
	km_unbind(km, lmr);
	DMA_TOLD(km, "the end of a binding", DMA_SINK(one, PAGE_SIZE), DMA_SEEN(one, PAGE_SIZE),
		 DMA_SINK(two, PAGE_SIZE), DMA_SEEN(two, PAGE_SIZE));

	/* short memory would be copied by the kernel, whole pages are not */
	one = (uintptr_t)km_bytes(km, 2) + 33;
	part = km_reg(km, (void *)(uintptr_t)one, 50, KM_ALL, DAT_VA_TYPE_VA, 0);
	KUNIT_EXPECT_EQ(test, dma->parts, 0U);
	dma->nsyncs = 0;
	km_drop_lmr(km, part.lmr);
	DMA_TOLD(km, "freed", DMA_SINK(one, 50), DMA_SEEN(one, 50));

	/* the cache may know what was there before the device wrote, and then failed */
	iov = kd_seg(env, KD_RW, 300, 30);
	KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, 1, NULL, 0));
	dma->nsyncs = 0;
	KUNIT_EXPECT_EQ(test, fake_ib_complete(env->qp, true, IB_WC_LOC_LEN_ERR), 0);
	kd_end(env, DAT_CONNECTION_EVENT_BROKEN);
	km_drain(env->recv);
	DMA_TOLD(km, "failure", DMA_SEEN(at + 300, 30));
}

/* Regions beyond this size are unmapped when interrupts are on. */
#define DMA_LARGE	(SZ_1M / PAGE_SIZE + 40)

/* A large LMR whose last binding is perhaps being unmapped. */
struct dma_large {
	struct km *km;
	DAT_LMR_HANDLE lmr;
	DAT_REGION_DESCRIPTION region;
	DAT_LMR_CONTEXT key;
	DAT_RETURN ret;
};

static void dma_large_bind(struct dma_large *large)
{
	DAT_LMR_COOKIE cookie = { .as_64 = 3 };

	large->ret = dat_lmr_fmr(large->lmr, DAT_MEM_TYPE_PHYSICAL, large->region, DMA_LARGE,
				 KM_ALL, DAT_VA_TYPE_VA, large->km->env.ep, cookie, 0, &large->key,
				 NULL);
}

/* As an interrupt would that a consumer's lock has to wait for: with interrupts off. */
static void dma_bind_again(void *arg)
{
	unsigned long flags;

	local_irq_save(flags);
	dma_large_bind(arg);
	local_irq_restore(flags);
}

static void dma_large_open(struct kunit *test, struct dma_large *large)
{
	const struct fake_ib_caps caps = { .copies = true, .max_pages = DMA_LARGE };
	DAT_PADDR *pages = kunit_kcalloc(test, DMA_LARGE, sizeof(*pages), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, pages);
	*large = (struct dma_large) { .km = km_on(test, &caps, NULL) };
	for (i = 0; i < DMA_LARGE; i++)
		pages[i] = large->km->pa[i % 2];
	large->region.for_physical = pages;
	large->lmr = km_lmr(large->km, DMA_LARGE, DAT_LMR_SCOPE_PZ);
}

/* The binding is there, and a peer writes. */
static void dma_large_use(struct dma_large *large, const char *text)
{
	KD_ASSERT_OK(large->km->env.test, large->ret);
	km_finish(large->km, DAT_DTO_LMR_FMR, 3);
	dma_put(&large->km->env, large->key, large->km->pa[0] + 10, text);
}

/* Whoever binds it again waits for nobody, and nobody unmaps it with interrupts off. */
static void dma_large_test(struct kunit *test)
{
	static const char * const words[] = { "first.", "second", "third." };
	struct km_reg reg = { .priv = KM_ALL };
	struct dma_large large;
	struct fake_dma *dma;
	struct km *km;
	int round;

	dma_large_open(test, &large);
	km = large.km;
	dma = dma_of(&km->env);
	KD_ASSERT_OK(test, km_try_reg(km, &reg, DAT_MEM_TYPE_PHYSICAL, large.region, DMA_LARGE));
	KD_EXPECT_OK(test, dat_lmr_free(reg.lmr));
	KUNIT_EXPECT_EQ(test, dma->dark_pages, 0U);
	dma_bind_again(&large);
	for (round = 0; round < ARRAY_SIZE(words); round++) {
		dma_large_use(&large, words[round]);
		large.ret = DAT_INTERNAL_ERROR;
		dma->arg = &large;
		dma->at_unmap = dma_bind_again;
		km_unbind(km, large.lmr);
		dma_is(&km->env, km_bytes(km, 0) + 10, words[round]);
		flush_workqueue(kdapl_misc_wq);
	}
	dma_large_use(&large, "last");
	km_unbind(km, large.lmr);
	KUNIT_EXPECT_FALSE(test, km_bound(km, large.lmr));
	/* also when nobody has heard yet that it has ended */
	for (round = 0; round < 3; round++) {
		flush_workqueue(kdapl_misc_wq);
		local_bh_disable();	/* mostly nobody else is quick enough to unmap it */
		dma_large_bind(&large);
		local_bh_enable();
		KD_ASSERT_OK(test, large.ret);
		km_done(km, IB_WC_SUCCESS);
		KD_ASSERT_OK(test, km_try_inv(km, large.lmr, 0, 1));
		km_done(km, IB_WC_SUCCESS);
	}
	km_drain(km->env.req);
	KUNIT_EXPECT_EQ(test, dma->dark_pages, 0U);
}

/* The device goes while the last window of a large LMR is closed. */
struct dma_lost {
	struct tasklet_struct task;
	struct completion done;
	struct kdapl_lmr *lmr;
	struct fake_ib *dev;
};

static void dma_lost_window(struct tasklet_struct *task)
{
	kdapl_lmr_unbound_rmr(container_of(task, struct dma_lost, task)->lmr);
}

/*
 * The MR is being destroyed. A softirq is due, and runs when they have been off and are on again:
 * in the middle of unmapping the memory.
 */
static void dma_lost_now(void *arg)
{
	struct dma_lost *lost = arg;
	unsigned long flags;

	if (IS_ENABLED(CONFIG_PREEMPT_RT)) {
		tasklet_schedule(&lost->task);	/* it may run too early */
		return;
	}
	local_bh_disable();
	tasklet_schedule(&lost->task);
	local_irq_save(flags);
	_local_bh_enable();	/* without running it */
	local_irq_restore(flags);
}

static int dma_lost_thread(void *arg)
{
	struct dma_lost *lost = arg;

	fake_ib_unplug(lost->dev);
	complete(&lost->done);
	return 0;
}

/* Nobody leaves the memory to a work item that comes when the device has gone. */
static void dma_large_lost_test(struct kunit *test)
{
	struct fake_ib_live live;
	struct dma_large large;
	struct dma_lost lost;
	struct kdapl_lmr *lmr;

	dma_large_open(test, &large);
	dma_large_bind(&large);
	dma_large_use(&large, "there");
	lmr = kdapl_obj_get(large.lmr, DAT_HANDLE_TYPE_LMR);
	KUNIT_ASSERT_NOT_NULL(test, lmr);
	lost = (struct dma_lost) { .lmr = lmr, .dev = large.km->env.dev };
	tasklet_setup(&lost.task, dma_lost_window);
	init_completion(&lost.done);
	spin_lock_irq(&lmr->mr.lock);
	lmr->windows++;		/* as if an RMR was bound to it */
	spin_unlock_irq(&lmr->mr.lock);
	dma_recv_inv(&large.km->env, large.key);
	KUNIT_EXPECT_EQ(test, (int)lmr->state, (int)KDAPL_LMR_MAPPED);
	fake_ib_live(lost.dev, &live);
	fake_ib_at(lost.dev, FAKE_IB_DESTROY_MR, live.mrs, dma_lost_now, &lost);
	KUNIT_ASSERT_FALSE(test, IS_ERR(kthread_run(dma_lost_thread, &lost, "kdapl-unplug")));
	if (!wait_for_completion_timeout(&lost.done, 60 * HZ)) {
		KUNIT_FAIL(test, "the removal hangs");
		WRITE_ONCE(lmr->unmapping, false);
		wake_up(&lmr->obj.ia->unused);
		wait_for_completion(&lost.done);
	}
	tasklet_kill(&lost.task);
	KUNIT_EXPECT_EQ(test, lmr->windows, 0U);
	KUNIT_EXPECT_EQ(test, lmr->mem.nents, 0U);
	KUNIT_EXPECT_EQ(test, lmr->old.nents, 0U);
	kdapl_obj_put(&lmr->obj);
}

/*
 * What a model says of the first bytes of an LMR that everybody writes: the CPU even ones,
 * peers odd ones, transfers all.
 */
struct dma_model {
	struct km *km;
	struct rnd_state rnd;
	u32 at, n;		/* what a step is about */
	u8 cpu[256];
	u8 dev[256];
};

/* The device's own view of it: read or write so many bytes. */
static void dma_device(struct dma_model *m, u32 at, void *bytes, u32 n, int access)
{
	struct kd_mem *mem = KM_MEM(m->km);

	KUNIT_ASSERT_EQ(m->km->env.test, fake_ib_access(m->km->env.dev, mem->lmr_context,
							mem->addr + at, bytes, n, access), 0);
}

/* The device sees what the CPU has written, and the other way round. */
static void dma_shown(struct dma_model *m, bool to_cpu)
{
	u32 i;

	for (i = m->at; i < m->at + m->n; i++) {
		if (!(i & 1))
			m->dev[i] = m->cpu[i];
		else if (to_cpu)
			m->cpu[i] = m->dev[i];
	}
}

/* A Receive or Read fails, is flushed or never comes back, having been filled half. */
static void dma_random_fail(struct dma_model *m, u32 kind)
{
	struct km *km = m->km;
	struct kd_env *env = &km->env;
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, m->n, 0x77);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, m->at, m->n);
	bool recv = kind & 1;
	u8 junk[256];

	km_join(km, 1, NULL);
	KD_EXPECT_OK(env->test, kd_post(env->ep, recv ? KD_RECV : KD_READ, 1, &iov, 1,
					recv ? NULL : &remote, 0));
	get_random_bytes(junk, sizeof(junk));
	dma_device(m, m->at, junk, m->n / 2 + 1, IB_ACCESS_LOCAL_WRITE);
	if (kind % 3 == 0)
		fake_ib_complete(env->qp, recv, recv ? IB_WC_LOC_LEN_ERR : IB_WC_REM_ACCESS_ERR);
	if (kind % 3 == 1) {
		/* with a request under way the end needs another one, which cannot be posted */
		KD_EXPECT_OK(env->test, kd_post(env->ep, KD_SEND, 0, NULL, 2, NULL, 0));
		fake_ib_hold_flush(env->dev, true);
		fake_ib_fail(env->dev, FAKE_IB_POST_SEND, 1, -EIO);
	}
	kd_end(env, DAT_CONNECTION_EVENT_BROKEN);
	km_ep_free(km, 1);
	km_drain(env->conn);
	km_drain(env->recv);
	km_drain(env->req);
	fake_ib_hold_flush(env->dev, false);
	km_use(km, 0);
	/* what fails has no contents: here they are the CPU's */
	memcpy(m->dev + m->at, m->cpu + m->at, m->n);
}

/*
 * A Receive or Read of two segments, for @len of @n bytes. The CPU goes on writing what is
 * its own, and all that does not come.
 */
static void dma_random_bring(struct dma_model *m, DAT_LMR_TRIPLET *iov)
{
	u32 kind = prandom_u32_state(&m->rnd) % 3, i;
	u32 len = kind ? 1 + prandom_u32_state(&m->rnd) % m->n : 0;
	struct kd_env *env = &m->km->env;
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, len, 0x77);
	struct kunit *test = env->test;

	/* a suppressed Read is done with the next one */
	if (kind == 2)
		KD_EXPECT_OK(test, kd_post(env->ep, KD_READ, 2, iov, 1, &remote,
					   len % 2 ? DAT_COMPLETION_SUPPRESS_FLAG : 0));
	else
		KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, kind ? 2 : 0, iov, 1, NULL, 0));
	for (i = 0; i < 256; i++) {
		if (i >= m->at && i < m->at + len) {
			m->dev[i] = prandom_u32_state(&m->rnd);
			m->cpu[i] = m->dev[i];
		} else if (!(i & 1)) {
			m->cpu[i] = prandom_u32_state(&m->rnd);
			dma_bytes(env)[i] = m->cpu[i];
		}
	}
	dma_device(m, m->at, m->dev + m->at, len, IB_ACCESS_LOCAL_WRITE);
	if (kind == 2) {
		KD_EXPECT_OK(test, kd_post(env->ep, KD_SEND, 0, NULL, 2, NULL, 0));
		km_settle(m->km);
	} else {
		KUNIT_EXPECT_EQ(test, fake_ib_recv(env->qp, len, false), 0);
		km_drain(env->recv);
	}
	/* what the device has of the rest of its buffer is nobody's */
	dma_device(m, m->at + len, m->dev + m->at + len, m->n - len, 0);
}

static void dma_random_step(struct dma_model *m, u32 step)
{
	struct kd_env *env = &m->km->env;
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 256, 0x77);
	DAT_LMR_TRIPLET iov[2];
	u32 i;

	m->at = prandom_u32_state(&m->rnd) % 255;
	m->n = 1 + prandom_u32_state(&m->rnd) % (255 - m->at);
	iov[0] = kd_seg(env, KD_RW, m->at, m->n / 2);
	iov[1] = kd_seg(env, KD_RW, m->at + m->n / 2, m->n - m->n / 2);
	/* connections take their time */
	switch (step % 250 ? prandom_u32_state(&m->rnd) % 6 : 6) {
	case 0:
		for (i = round_up(m->at, 2); i < m->at + m->n; i += 2)
			m->cpu[i] = prandom_u32_state(&m->rnd);
		memcpy(dma_bytes(env), m->cpu, sizeof(m->cpu));
		break;
	case 1:
		for (i = m->at | 1; i < m->at + m->n; i += 2) {
			m->dev[i] = prandom_u32_state(&m->rnd);
			dma_device(m, i, &m->dev[i], 1, IB_ACCESS_REMOTE_WRITE);
		}
		break;
	case 2:		/* for a peer's Read */
		dma_sync(env, m->at, m->n, false);
		dma_shown(m, false);
		break;
	case 3:		/* around a peer's Write */
		dma_sync(env, m->at, m->n, true);
		dma_shown(m, true);
		break;
	case 4:
		KD_EXPECT_OK(env->test, kd_post(env->ep, step % 2 ? KD_SEND : KD_WRITE, 2, iov, 1,
						&remote, 0));
		dma_shown(m, false);
		km_settle(m->km);
		break;
	case 5:		/* what comes is neither's */
		dma_random_bring(m, iov);
		break;
	default:
		dma_random_fail(m, step / 250);
	}
}

static void dma_random_test(struct kunit *test)
{
	struct km *km = km_on(test, &dma_caps, NULL);
	struct dma_model *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	u32 seed = get_random_u32(), step;
	u8 seen[256];

	KUNIT_ASSERT_NOT_NULL(test, m);
	m->km = km;
	kunit_info(test, "seed %#x", seed);
	prandom_seed_state(&m->rnd, seed);
	memset(dma_bytes(&km->env), 0, 256);
	dma_sync(&km->env, 0, 256, false);
	for (step = 0; step < KD_TIMES(4000); step++) {
		dma_random_step(m, step);
		KUNIT_ASSERT_EQ_MSG(test, memcmp(dma_bytes(&km->env), m->cpu, 256), 0, "step %u",
				    step);
		dma_device(m, 0, seen, 256, 0);
		KUNIT_ASSERT_EQ_MSG(test, memcmp(seen, m->dev, 256), 0, "step %u", step);
	}
}

static struct kunit_case dma_cases[] = {
	KD_CASE(dma_read_rmr_test, "LMR-SYNC-06,RTOR-01: Reads into an RMR"),
	KD_CASE(dma_invalidated_read_test, "LMR-SYNC-06: a Read whose sink is being invalidated"),
	KD_CASE(dma_fmr_test, "LMR-SYNC-07: the end of a binding gives the memory back"),
	KD_CASE(dma_peer_ends_test, "LMR-SYNC-07,SINV-02: a peer ends an LMR of dat_lmr_kcreate()"),
	KD_CASE(dma_peer_ends_below_test, "LMR-SYNC-07,SINV-02: a peer ends an LMR below an RMR"),
	KD_CASE(dma_ia_test, "LMR-SYNC-06: the reserved LMR; memory of type IA"),
	KD_CASE(dma_gone_test, "LMR-20: mappings of a consumer do not outlive the device"),
	KD_CASE(dma_failed_test, "LMR-20: mappings of a device that has failed"),
	KD_CASE(dma_close_test, "LMR-20: mappings of a consumer do not outlive the IA"),
	KD_CASE(dma_close_late_test, "LMR-20: nor do they end before its connections"),
	KD_CASE(dma_same_test,
		"LMR-SYNC-05,LMR-SYNC-06: who has to synchronise; a mapping that is no copy"),
	KD_CASE(dma_caches_test, "LMR-SYNC-05,LMR-SYNC-06: caches that are not coherent"),
	KD_CASE(dma_large_test, "FMR-06,FMR-10,FMR-13: large regions, unmapped while bound again"),
	KD_CASE(dma_large_lost_test, "EPSM-24,FMR-10: the device goes when its last window does"),
	KD_CASE(dma_random_test,
		"LMR-SYNC-01,LMR-SYNC-02,LMR-SYNC-06: all transfers, at random, to the byte"),
	{}
};

KD_SUITE("kdapl-dma", dma_cases, km_init, km_exit);

/* Buffers of an SRQ: one that is filled, one the device refused, ones that went with theirs. */
static void dma_srq_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, &dma_caps);
	struct kd_env *env = &sq->env;
	u8 *bytes = dma_bytes(env);
	DAT_DTO_COOKIE cookie = { .as_64 = 1 };
	DAT_REGION_DESCRIPTION region;
	DAT_LMR_TRIPLET iov = {};
	DAT_LMR_HANDLE lmr;
	char found[16];
	int round;

	sq->mem = KD_RW;
	sq_srq(sq, 4);
	sq_ep(sq, 0);
	for (round = 0; round < 2; round++) {
		memset(bytes, '.', 64);
		iov = kd_seg(env, KD_RW, 10, 20);
		KD_EXPECT_OK(test, dat_srq_post_recv(sq->srq, 1, &iov, cookie));
		dma_put_mem(env, 10, "message");
		memset(bytes + 17, '-', 13);
		KUNIT_EXPECT_EQ(test, fake_ib_recv(env->qp, 7, false), 0);
		km_drain(env->recv);
		dma_is(env, bytes + 9, ".message-------------.");
	}
	dma_sync(env, 0, 64, true);
	/* the place of the refused one is taken by one that has nothing to be synchronised */
	region.for_va = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, region.for_va);
	dma_of(env)->same = true;
	KD_ASSERT_OK(test, dat_lmr_kcreate(env->ia, DAT_MEM_TYPE_VIRTUAL, region, PAGE_SIZE,
					   env->pz, KM_ALL, DAT_VA_TYPE_VA, 0, &lmr,
					   &iov.lmr_context, NULL, NULL, NULL));
	dma_of(env)->same = false;
	iov.virtual_address = (uintptr_t)region.for_va;
	fake_ib_fail(env->dev, FAKE_IB_POST_SRQ_RECV, 1, -ENOMEM);
	KUNIT_EXPECT_NE(test, (u32)sq_try_post(sq, 0), (u32)DAT_SUCCESS);
	KD_EXPECT_OK(test, dat_srq_post_recv(sq->srq, 1, &iov, cookie));
	memcpy(bytes, "mine one", 8);
	KUNIT_EXPECT_EQ(test, fake_ib_recv(env->qp, 8, false), 0);
	sq_expect(sq, env->recv, 0, 1, DAT_DTO_SUCCESS, 8);
	dma_is(env, bytes, "mine one");
	KD_EXPECT_OK(test, dat_lmr_free(lmr));

	/*
	 * The device has begun to fill the first: another one overtakes it, it comes back flushed,
	 * or the SRQ goes.
	 */
	fake_ib_last_wqe(env->dev, FAKE_IB_LAST_WQE_AT_ERR);
	for (round = 0; round < 3; round++) {
		fake_ib_taken(env->dev, round == 1 ? FAKE_IB_TAKEN_FLUSHED : FAKE_IB_TAKEN_LOST);
		dma_sync(env, 0, 64, true);
		sq_post(sq, 0, 1);
		KUNIT_EXPECT_GE(test, fake_ib_srq_take(env->qp), 0);
		dma_put_mem(env, 0, "theirs");
		if (!round) {
			KD_EXPECT_OK(test, dat_srq_post_recv(sq->srq, 0, NULL, cookie));
			KUNIT_EXPECT_EQ(test, fake_ib_recv(env->qp, 0, false), 0);
			sq_expect(sq, env->recv, 0, 1, DAT_DTO_SUCCESS, 0);
		}
		sq_ep_free(sq, 0);
		km_drain(env->conn);
		sq_settle();
		if (round == 2)
			sq_srq_free(sq);
		dma_is(env, bytes, "mine one");
		dma_sync(env, 0, 8, false);
		memset(found, 0, sizeof(found));
		fake_ib_access(env->dev, env->mem[KD_RW].lmr_context, env->mem[KD_RW].addr, found,
			       8, 0);
		KUNIT_EXPECT_STREQ_MSG(test, found, "mine one", "round %d", round);
		if (round < 2)
			sq_ep(sq, 0);
	}
}

static struct kunit_case dma_srq_cases[] = {
	KD_CASE(dma_srq_test, "LMR-SYNC-06,SRQ-POST-01: buffers are filled, refused, or lost"),
	{}
};

KD_SUITE("kdapl-dma-srq", dma_srq_cases, sq_init, sq_exit);
