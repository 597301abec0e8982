// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * A device that is given copies of memory, as with swiotlb: CPU and device see the same bytes
 * where they should, and nobody's bytes are lost.
 */
#include <linux/mm.h>
#include <linux/prandom.h>
#include <linux/random.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "fake_dma.h"
#include "kd_mem.h"
#include "kd_srq.h"

static const struct fake_ib_caps dma_caps = { .copies = true };

static struct km *dma_open(struct kunit *test)
{
	return km_on(test, &dma_caps, NULL);
}

static u8 *dma_bytes(struct kd_env *env, enum kd_mem_kind kind)
{
	return (u8 *)(uintptr_t)env->mem[kind].addr;
}

/* The device or a peer writes. */
static void dma_put(struct kd_env *env, u32 key, u64 addr, const char *text)
{
	KUNIT_EXPECT_EQ(env->test, fake_ib_access(env->dev, key, addr, (void *)text, strlen(text),
						  IB_ACCESS_LOCAL_WRITE), 0);
}

static void dma_put_mem(struct kd_env *env, enum kd_mem_kind kind, u32 offset, const char *text)
{
	dma_put(env, env->mem[kind].lmr_context, env->mem[kind].addr + offset, text);
}

static DAT_RETURN dma_sync(struct kd_env *env, enum kd_mem_kind kind, u32 offset, u32 length,
			   bool write)
{
	DAT_LMR_TRIPLET seg = kd_seg(env, kind, offset, length);

	return write ? dat_lmr_sync_rdma_write(env->ia, &seg, 1) :
		       dat_lmr_sync_rdma_read(env->ia, &seg, 1);
}

/* The second EP, for one failure. */
static void dma_doomed(struct km *km)
{
	if (km->eps[1].ep)
		km_ep_free(km, 1);
	km_drain(km->env.conn);
	km_drain(km->env.recv);
	km_drain(km->env.req);
	km_ep(km, 1, NULL);
	kd_connect(&km->env);
}

static void dma_end_doomed(struct km *km)
{
	kd_end(&km->env, DAT_CONNECTION_EVENT_BROKEN);
	km_drain(km->env.recv);
	km_drain(km->env.req);
}

/* By the keys of an RMR and an LMR, also on an EP that needs no segment of its own. */
static void dma_read_rmr_test(struct kunit *test)
{
	DAT_DTO_COOKIE cookie = { .as_64 = 9 };
	DAT_RMR_TRIPLET sink, remote = kd_remote(0x1000, 5, 0x77);
	DAT_RMR_CONTEXT keys[2];
	DAT_EP_ATTR attr;
	struct km *km;
	u8 *bytes;
	int i, k;

	for (i = 0; i < 2; i++) {
		kd_attr(&attr);
		if (i) {
			attr.max_request_iov = 0;
			attr.max_rdma_read_iov = 0;
			attr.max_rdma_write_iov = 0;
		}
		km = km_on(test, &dma_caps, &attr);
		bytes = dma_bytes(&km->env, KD_RW);
		keys[0] = km->env.mem[KD_RW].rmr_context;
		KD_ASSERT_OK(test, km_try_rmr(km, km_rmr(km, false), km->env.mem[KD_RW].lmr,
					      km->env.mem[KD_RW].addr + 64, 128,
					      km->env.mem[KD_RW].lmr_context, KM_REMOTE, 0, 3,
					      &keys[1]));
		km_settle(km);
		for (k = 0; k < 2; k++) {
			memset(bytes, '.', 256);
			sink = kd_remote(km->env.mem[KD_RW].addr + 70, 5, keys[k]);
			KD_EXPECT_OK(test, dat_ep_post_rdma_read_to_rmr(km->env.ep, &sink, cookie,
									&remote, 0));
			dma_put_mem(&km->env, KD_RW, 70, "right");
			km_done(km, IB_WC_SUCCESS);
			km_expect(km, DAT_DTO_RDMA_READ, 9, DAT_DTO_SUCCESS);
			KUNIT_EXPECT_EQ(test, memcmp(bytes + 69, ".right.", 7), 0);
		}
		km_exit(test);
	}
}

static void dma_invalidated_read_test(struct kunit *test)
{
	struct km *km = dma_open(test);
	struct kd_env *env = &km->env;
	DAT_LMR_HANDLE lmr = km_lmr(km, 2, DAT_LMR_SCOPE_PZ);
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 5, 0x77);
	DAT_LMR_TRIPLET iov;
	struct km_keys keys;

	km_fill(km, 1);
	km_bind(km, lmr, 0, 2, DAT_MEM_PRIV_ALL_FLAG, &keys);
	iov = (DAT_LMR_TRIPLET) { km->pa[0] + 50, 5, keys.lmr };
	KD_EXPECT_OK(test, kd_post(env->ep, KD_READ, 1, &iov, 1, &remote, 0));
	KD_EXPECT_OK(test, km_try_inv(km, lmr, DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG, 2));
	dma_put(env, keys.lmr, km->pa[0] + 50, "quick");
	km_done(km, IB_WC_SUCCESS);
	/* the key is gone for new requests, and its memory here all the same */
	km_expect(km, DAT_DTO_RDMA_READ, 1, DAT_DTO_SUCCESS);
	KUNIT_EXPECT_EQ(test, memcmp(km_bytes(km, 0) + 50, "quick", 5), 0);
	km_done(km, IB_WC_SUCCESS);
	km_expect(km, DAT_DTO_LMR_INVALIDATE, 2, DAT_DTO_SUCCESS);
}

static void dma_fmr_test(struct kunit *test)
{
	struct km *km = dma_open(test);
	struct kd_env *env = &km->env;
	DAT_LMR_HANDLE lmr = km_lmr(km, 3, DAT_LMR_SCOPE_PZ);
	DAT_LMR_COOKIE cookie = { .as_64 = 4 };
	struct scatterlist sgl[3];
	struct kdat_sg sg = { .sgl = sgl, .nents = 3, .offset = 7, .length = 2 * PAGE_SIZE };
	DAT_LMR_CONTEXT key;
	DAT_VADDR at;
	u8 *bytes;
	int i;

	km_fill(km, 1);
	sg_init_table(sgl, 3);
	sg_set_page(&sgl[0], km->page[0], PAGE_SIZE - 100, 100);
	sg_set_page(&sgl[1], km->page[2], PAGE_SIZE, 0);
	sg_set_page(&sgl[2], km->page[4], PAGE_SIZE, 0);
	KD_ASSERT_OK(test, kdat_lmr_fmr_sg(lmr, &sg, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, env->ep,
					   cookie, 0, &key, NULL, &at));
	km_done(km, IB_WC_SUCCESS);
	km_expect(km, DAT_DTO_LMR_FMR, 4, DAT_DTO_SUCCESS);
	/* bytes outside of the binding, in its pages, are the CPU's */
	bytes = km_bytes(km, 0);
	memcpy(bytes + 100, "before", 6);
	dma_put(env, key, at, "begin");
	dma_put(env, key, at + PAGE_SIZE - 107, "page two");
	km_unbind(km, lmr);
	KUNIT_EXPECT_EQ(test, memcmp(bytes + 100, "before", 6), 0);
	KUNIT_EXPECT_EQ(test, memcmp(bytes + 107, "begin", 5), 0);
	KUNIT_EXPECT_EQ(test, memcmp(km_bytes(km, 2), "page two", 8), 0);
	for (i = 112; i < PAGE_SIZE; i++)
		KUNIT_ASSERT_EQ(test, bytes[i], km_byte(1, 0, i));

	/* a peer ends the binding */
	sg.length = 100;
	KD_ASSERT_OK(test, kdat_lmr_fmr_sg(lmr, &sg, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, env->ep,
					   cookie, 0, &key, NULL, &at));
	km_done(km, IB_WC_SUCCESS);
	km_expect(km, DAT_DTO_LMR_FMR, 4, DAT_DTO_SUCCESS);
	dma_put(env, key, at, "again");
	KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 0, NULL, 1, NULL, 0));
	KUNIT_EXPECT_EQ(test, fake_ib_recv_inv(env->qp, 0, key), 0);
	km_drain(env->recv);
	KUNIT_EXPECT_EQ(test, memcmp(bytes + 107, "again", 5), 0);
}

/* Freeing turns nothing back; nor does a sync where no peer may write. */
static void dma_free_test(struct kunit *test)
{
	static const int rights[] = { DAT_MEM_PRIV_LOCAL_READ_FLAG, DAT_MEM_PRIV_ALL_FLAG };
	struct km *km = km_open(test, &dma_caps);
	DAT_LMR_TRIPLET seg = {};
	DAT_LMR_HANDLE lmr;
	u8 *bytes;
	int i;

	for (i = 0; i < 2; i++) {
		bytes = km_bytes(km, i);
		memset(bytes, '.', PAGE_SIZE);
		KD_ASSERT_OK(test, km_kcreate(km, DAT_MEM_TYPE_VIRTUAL, bytes, PAGE_SIZE, rights[i],
					      &lmr, &seg.lmr_context));
		memcpy(bytes + 20, "new", 3);
		seg.virtual_address = (uintptr_t)bytes;
		seg.segment_length = 64;
		if (i)
			dma_put(&km->env, seg.lmr_context, (uintptr_t)bytes + 30, "put");
		else
			KD_EXPECT_OK(test, dat_lmr_sync_rdma_write(km->env.ia, &seg, 1));
		KD_EXPECT_OK(test, dat_lmr_free(lmr));
		KUNIT_EXPECT_EQ(test, memcmp(bytes + 19, i ? ".new.......put." : ".new...........",
					     15), 0);
	}
}

/* A peer ends what cannot be unmapped then: memory of dat_lmr_kcreate(). */
static void dma_peer_ends_test(struct kunit *test)
{
	struct km *km = dma_open(test);
	struct kd_env *env = &km->env;
	u8 *bytes = dma_bytes(env, KD_RW);
	u32 key = env->mem[KD_RW].rmr_context;
	DAT_LMR_TRIPLET iov;

	memset(bytes, '.', 64);
	KD_EXPECT_OK(test, dma_sync(env, KD_RW, 0, 64, true));
	KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 0, NULL, 1, NULL, 0));
	iov = kd_seg(env, KD_RW, 40, 4);
	KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, 2, NULL, 0));
	memcpy(bytes + 10, "cpu", 3);
	dma_put(env, key, env->mem[KD_RW].addr + 20, "peer");
	KUNIT_EXPECT_EQ(test, fake_ib_recv_inv(env->qp, 0, key), 0);
	km_drain(env->recv);
	KUNIT_EXPECT_EQ(test, memcmp(bytes + 9, ".cpu.......peer.", 16), 0);
	/* no request reaches it any more, whatever its device says */
	memcpy(bytes + 40, "last", 4);
	KUNIT_EXPECT_EQ(test, fake_ib_recv(env->qp, 4, false), 0);
	km_drain(env->recv);
	KUNIT_EXPECT_EQ(test, memcmp(bytes + 39, ".last.", 6), 0);
}

/* The same, of memory that an RMR still reaches. */
static void dma_peer_ends_below_test(struct kunit *test)
{
	struct km *km = dma_open(test);
	struct kd_env *env = &km->env;
	DAT_LMR_HANDLE lmr = km_lmr(km, 2, DAT_LMR_SCOPE_PZ);
	DAT_RMR_HANDLE rmr = km_rmr(km, false);
	DAT_RMR_TRIPLET sink, remote = kd_remote(0x1000, 5, 0x77);
	DAT_DTO_COOKIE cookie = { .as_64 = 9 };
	u8 *bytes = km_bytes(km, 0);
	DAT_RMR_CONTEXT window;
	struct km_keys keys;

	memset(bytes, '.', 256);
	km_bind(km, lmr, 0, 2, DAT_MEM_PRIV_ALL_FLAG, &keys);
	km_window(km, rmr, lmr, km->pa[0] + 64, 128, keys.lmr, &window);
	sink = kd_remote(km->pa[0] + 100, 5, window);
	KD_EXPECT_OK(test, dat_ep_post_rdma_read_to_rmr(env->ep, &sink, cookie, &remote, 0));
	dma_put(env, keys.rmr, km->pa[0] + 10, "peer");
	KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 0, NULL, 1, NULL, 0));
	KUNIT_EXPECT_EQ(test, fake_ib_recv_inv(env->qp, 0, keys.rmr), 0);
	km_drain(env->recv);
	KUNIT_EXPECT_EQ(test, memcmp(bytes + 9, ".peer.", 6), 0);
	/* the window is open: what comes through it comes to be seen */
	dma_put(env, window, km->pa[0] + 100, "right");
	km_done(km, IB_WC_SUCCESS);
	km_expect(km, DAT_DTO_RDMA_READ, 9, DAT_DTO_SUCCESS);
	KUNIT_EXPECT_EQ(test, memcmp(bytes + 99, ".right.", 7), 0);
}

/* What only a sleeper can free goes with the LMR, and not with its last reader. */
static void dma_last_reader_test(struct kunit *test)
{
	struct km *km = km_open(test, &dma_caps);
	DAT_LMR_HANDLE handle = km_lmr(km, 2, DAT_LMR_SCOPE_PZ);
	struct kdapl_lmr *lmr = kdapl_obj_get(handle, DAT_HANDLE_TYPE_LMR);

	KUNIT_ASSERT_NOT_NULL(test, lmr);
	KUNIT_EXPECT_NOT_NULL(test, lmr->mem.base);
	km_drop_lmr(km, handle);
	KUNIT_EXPECT_NULL(test, lmr->mem.base);
	kdapl_obj_put(&lmr->obj);
}

static void dma_unaligned_test(struct kunit *test)
{
	struct km *km = km_open(test, &dma_caps);
	u32 size = 62 * PAGE_SIZE;
	DAT_LMR_CONTEXT key;
	DAT_LMR_HANDLE lmr;
	u8 *bytes, found;
	u32 at;

	bytes = vmalloc(size);
	KUNIT_ASSERT_NOT_NULL(test, bytes);
	for (at = 0; at < size; at++)
		bytes[at] = km_byte(9, at >> PAGE_SHIFT, at);
	if (km_kcreate(km, DAT_MEM_TYPE_VIRTUAL, bytes + 123, 60 * PAGE_SIZE, DAT_MEM_PRIV_ALL_FLAG,
		       &lmr, &key) != DAT_SUCCESS) {
		KUNIT_FAIL(test, "memory that does not start on a page");
		goto out;
	}
	for (at = 0; at < 60 * PAGE_SIZE; at += 997) {
		KUNIT_EXPECT_EQ(test, fake_ib_access(km->env.dev, key, (uintptr_t)bytes + 123 + at,
						     &found, 1, 0), 0);
		KUNIT_EXPECT_EQ(test, found, bytes[123 + at]);
	}
	KD_EXPECT_OK(test, dat_lmr_free(lmr));
out:
	vfree(bytes);
}

static void dma_ia_test(struct kunit *test)
{
	struct km *km = dma_open(test);
	struct kd_env *env = &km->env;
	u8 *bytes = km_bytes(km, 0);
	struct kdat_dma_map map = {};
	DAT_LMR_CONTEXT all, key;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_TRIPLET iov;
	DAT_EVENT event;
	DAT_PADDR at;

	memset(bytes, '.', PAGE_SIZE);
	KD_ASSERT_OK(test, dat_ia_reserved_lmr(env->ia, &lmr, &all));
	KD_ASSERT_OK(test, kdat_ia_dma_map(env->ia, &map, bytes, PAGE_SIZE));
	at = map.address;
	memcpy(bytes + 10, "hello", 5);
	iov = (DAT_LMR_TRIPLET) { at + 10, 5, all };
	KD_EXPECT_OK(test, kd_post(env->ep, KD_SEND, 1, &iov, 1, NULL, 0));
	KUNIT_EXPECT_EQ(test, memcmp((u8 *)(uintptr_t)at + 9, ".hello.", 7), 0);
	iov = (DAT_LMR_TRIPLET) { at + 20, 8, all };
	KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, 1, NULL, 0));
	memcpy((u8 *)(uintptr_t)at + 20, "answer", 6);
	memcpy(bytes + 30, "new", 3);
	KUNIT_EXPECT_EQ(test, fake_ib_recv(env->qp, 6, false), 0);
	KUNIT_ASSERT_TRUE(test, kd_next(env->recv, &event));
	KUNIT_EXPECT_EQ(test, memcmp(bytes + 9, ".hello.....answer....new.", 25), 0);
	/* which is why a sync for their sake takes nothing from there */
	memcpy((u8 *)(uintptr_t)at + 30, "old", 3);
	iov = (DAT_LMR_TRIPLET) { at + 30, 3, all };
	KD_EXPECT_OK(test, dat_lmr_sync_rdma_write(env->ia, &iov, 1));
	KUNIT_EXPECT_EQ(test, memcmp(bytes + 9, ".hello.....answer....new.", 25), 0);
	/* a copy of which nobody knows the memory may not be written by peers */
	KM_EXPECT_TYPE(test, km_kcreate(km, DAT_MEM_TYPE_IA, (void *)(uintptr_t)at, 64,
					DAT_MEM_PRIV_ALL_FLAG, &lmr, &key),
		       DAT_INSUFFICIENT_RESOURCES);
	KD_EXPECT_OK(test, km_kcreate(km, DAT_MEM_TYPE_IA, (void *)(uintptr_t)at, 64,
				      DAT_MEM_PRIV_READ_FLAG, &lmr, &key));
	KD_EXPECT_OK(test, dat_lmr_free(lmr));
	KD_EXPECT_OK(test, kdat_ia_dma_unmap(env->ia, &map));
	KUNIT_EXPECT_EQ(test, memcmp(bytes + 9, ".hello.....answer....new.", 25), 0);
}

/*
 * What is mapped when the device goes is unmapped; the fake device counts what is left. Each
 * record is given back once.
 */
static void dma_gone_test(struct kunit *test)
{
	struct km *km = dma_open(test);
	struct kd_env *env = &km->env;
	struct kdat_dma_map map[4] = {};
	int i;

	for (i = 0; i < 4; i++)
		KD_ASSERT_OK(test, kdat_ia_dma_map(env->ia, &map[i], km_bytes(km, 0),
						   64 * (1 + i / 2)));
	KD_EXPECT_OK(test, kdat_ia_dma_unmap(env->ia, &map[0]));
	fake_ib_unplug(env->dev);
	KUNIT_EXPECT_TRUE(test, list_empty(&fake_ib_dma(fake_ib_device(env->dev))->maps));
	for (i = 1; i < 3; i++)
		KD_EXPECT_OK(test, kdat_ia_dma_unmap(env->ia, &map[i]));
	for (i = 0; i < 3; i++)
		KD_EXPECT_RET(test, kdat_ia_dma_unmap(env->ia, &map[i]), DAT_INVALID_PARAMETER,
			      DAT_INVALID_ARG2);
}

/* A device that has failed is still there: what is unmapped is, at once. */
static void dma_failed_test(struct kunit *test)
{
	struct km *km = dma_open(test);
	struct kd_env *env = &km->env;
	struct fake_dma *dma = fake_ib_dma(fake_ib_device(env->dev));
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
	struct km *km = dma_open(test);
	struct fake_dma *dma = fake_ib_dma(fake_ib_device(km->env.dev));
	struct kdat_dma_map map = {}, none = {};
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	struct list_head *before = dma->maps.next;
	DAT_IA_HANDLE own = km->env.ia, ia;
	u8 *bytes = km_bytes(km, 0);
	char name[DAT_NAME_MAX_LENGTH];

#define DMA_REFUSED(call)	KD_EXPECT_RET(test, call, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2)
	snprintf(name, sizeof(name), "%s-1", fake_ib_name(km->env.dev));
	KD_ASSERT_OK(test, dat_ia_open(name, 8, &evd, &ia));
	KD_ASSERT_OK(test, kdat_ia_dma_map(ia, &map, bytes, 64));
	KUNIT_EXPECT_PTR_NE(test, dma->maps.next, before);
	KUNIT_EXPECT_EQ(test, map.length, 64ULL);
	/* not mapped, not with this instance, or mapped already */
	DMA_REFUSED(kdat_ia_dma_unmap(ia, &none));
	DMA_REFUSED(kdat_ia_dma_unmap(own, &map));
	DMA_REFUSED(kdat_ia_dma_map(ia, &map, bytes, 64));
	DMA_REFUSED(kdat_ia_dma_map(own, &map, bytes, 64));
	KD_EXPECT_OK(test, kdat_ia_dma_unmap(ia, &map));
	KUNIT_EXPECT_PTR_EQ(test, dma->maps.next, before);
	DMA_REFUSED(kdat_ia_dma_unmap(ia, &map));
	/* the same record again, left to the end of the instance, and then to another one */
	KD_ASSERT_OK(test, kdat_ia_dma_map(ia, &map, bytes, 64));
	KD_EXPECT_OK(test, dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
	KUNIT_EXPECT_PTR_EQ(test, dma->maps.next, before);
	DMA_REFUSED(kdat_ia_dma_unmap(own, &map));
	KD_EXPECT_OK(test, kdat_ia_dma_map(own, &map, bytes, 64));
	KD_EXPECT_OK(test, kdat_ia_dma_unmap(own, &map));
	/* an instance that is closed in the middle of the call */
	evd = DAT_HANDLE_NULL;
	KD_ASSERT_OK(test, dat_ia_open(name, 8, &evd, &ia));
	dma->arg = &ia;
	dma->at_map = dma_close_ia;
	KD_EXPECT_RET(test, kdat_ia_dma_map(ia, &map, bytes, 64), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_IA);
	KUNIT_EXPECT_PTR_EQ(test, dma->maps.next, before);
	/* without a mapping left the record is as it was */
	dma->fail = 1;
	KM_EXPECT_TYPE(test, kdat_ia_dma_map(own, &map, bytes, 64), DAT_INSUFFICIENT_RESOURCES);
	DMA_REFUSED(kdat_ia_dma_unmap(own, &map));
}

static void dma_srq_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, &dma_caps);
	struct kd_env *env = &sq->env;
	u8 *bytes = dma_bytes(env, KD_WO);
	DAT_DTO_COOKIE cookie = { .as_64 = 1 };
	DAT_LMR_TRIPLET iov;
	DAT_EVENT event;
	int round;

	sq_srq(sq, 4);
	sq_ep(sq, 0);
	for (round = 0; round < 2; round++) {
		memset(bytes, '.', 64);
		iov = kd_seg(env, KD_WO, 10, 20);
		KD_EXPECT_OK(test, dat_srq_post_recv(sq->srq, 1, &iov, cookie));
		dma_put_mem(env, KD_WO, 10, "message");
		memset(bytes + 17, '-', 13);
		KUNIT_EXPECT_EQ(test, fake_ib_recv(env->qp, 7, false), 0);
		KUNIT_ASSERT_TRUE(test, kd_next(env->recv, &event));
		KUNIT_EXPECT_EQ(test, memcmp(bytes + 9, ".message-------------.", 22), 0);
	}
}

/* A buffer that the device refused, and one that went with its connection. */
static void dma_srq_lost_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, &dma_caps);
	struct kd_env *env = &sq->env;
	u8 *bytes = dma_bytes(env, KD_RW);
	DAT_DTO_COOKIE cookie = { .as_64 = 1 };
	DAT_REGION_DESCRIPTION region;
	DAT_LMR_TRIPLET iov;
	DAT_LMR_HANDLE lmr;
	char found[16];
	int round;

	region.for_va = kunit_kzalloc(test, PAGE_SIZE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, region.for_va);
	sq_srq(sq, 4);
	sq_ep(sq, 0);
	sq->mem = KD_RW;
	memset(bytes, '.', 64);
	KD_EXPECT_OK(test, dma_sync(env, KD_RW, 0, 64, true));
	/* its place is taken by one that has nothing to be synchronised */
	fake_ib_dma(fake_ib_device(env->dev))->same = true;
	iov.lmr_context = 0;
	KD_ASSERT_OK(test, dat_lmr_kcreate(env->ia, DAT_MEM_TYPE_VIRTUAL, region, PAGE_SIZE,
					   env->pz, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA,
					   DAT_MEM_OPTIMIZE_DONT_CARE, &lmr, &iov.lmr_context, NULL,
					   NULL, NULL));
	fake_ib_dma(fake_ib_device(env->dev))->same = false;
	iov.virtual_address = (uintptr_t)region.for_va;
	iov.segment_length = 16;
	fake_ib_fail(env->dev, FAKE_IB_POST_SRQ_RECV, 1, -ENOMEM);
	KUNIT_EXPECT_NE(test, (u32)sq_try_post(sq, 0), (u32)DAT_SUCCESS);
	KD_EXPECT_OK(test, dat_srq_post_recv(sq->srq, 1, &iov, cookie));
	memcpy(bytes, "mine one", 8);
	KUNIT_EXPECT_EQ(test, fake_ib_recv(env->qp, 8, false), 0);
	sq_expect(sq, env->recv, 0, 1, DAT_DTO_SUCCESS, 8);
	KUNIT_EXPECT_EQ(test, memcmp(bytes, "mine one", 8), 0);
	KD_EXPECT_OK(test, dat_lmr_free(lmr));

	/*
	 * The device has begun to fill the first: another one overtakes it, it comes back flushed,
	 * or the SRQ goes.
	 */
	fake_ib_last_wqe(env->dev, FAKE_IB_LAST_WQE_AT_ERR);
	for (round = 0; round < 3; round++) {
		fake_ib_taken(env->dev, round == 1 ? FAKE_IB_TAKEN_FLUSHED : FAKE_IB_TAKEN_LOST);
		KD_EXPECT_OK(test, dma_sync(env, KD_RW, 0, 64, true));
		sq_post(sq, 0, 1);
		KUNIT_EXPECT_GE(test, fake_ib_srq_take(env->qp), 0);
		dma_put_mem(env, KD_RW, 0, "theirs");
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
		KUNIT_EXPECT_EQ(test, memcmp(bytes, "mine one", 8), 0);
		KD_EXPECT_OK(test, dma_sync(env, KD_RW, 0, 8, false));
		memset(found, 0, sizeof(found));
		fake_ib_access(env->dev, env->mem[KD_RW].lmr_context, env->mem[KD_RW].addr, found,
			       8, 0);
		KUNIT_EXPECT_STREQ_MSG(test, found, "mine one", "round %d", round);
		if (round < 2)
			sq_ep(sq, 0);
	}
}

/* Devices with other bytes than the CPU; a mapping that is the very memory after all. */
static void dma_same_test(struct kunit *test)
{
	static const struct fake_ib_caps caps[] = { { .copies = true }, {}, { .caches = true } };
	DAT_PROVIDER_ATTR attr;
	DAT_LMR_TRIPLET iov;
	struct km *km;
	char found[8] = {};
	int i;

	for (i = 0; i < ARRAY_SIZE(caps); i++) {
		km = km_open(test, &caps[i]);
		KD_EXPECT_OK(test, dat_ia_query(km->env.ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL,
						&attr));
		KUNIT_EXPECT_EQ(test, (u32)attr.lmr_sync_req,
				(u32)(i == 1 ? DAT_FALSE : DAT_TRUE));
		if (!i)
			fake_ib_dma(fake_ib_device(km->env.dev))->same = true;
		km_ep(km, 0, NULL);
		kd_connect(&km->env);
		memcpy(dma_bytes(&km->env, KD_RW), "hello", 5);
		iov = kd_seg(&km->env, KD_RW, 0, 5);
		KD_EXPECT_OK(test, kd_post(km->env.ep, KD_SEND, 1, &iov, 1, NULL, 0));
		KUNIT_EXPECT_EQ(test, fake_ib_access(km->env.dev, iov.lmr_context,
						     iov.virtual_address, found, 5, 0), 0);
		KUNIT_EXPECT_STREQ(test, found, "hello");
		km_settle(km);
		km_exit(test);
	}
}

/* All that caches have been told since the last time, and nothing else. */
static void dma_told(struct km *km, const char *what, unsigned int n, const struct fake_sync *want)
{
	struct fake_dma *dma = fake_ib_dma(fake_ib_device(km->env.dev));
	struct kunit *test = km->env.test;
	unsigned int i;

	KUNIT_EXPECT_EQ_MSG(test, dma->nsyncs, n, "%s", what);
	for (i = 0; i < n && i < dma->nsyncs; i++) {
		KUNIT_EXPECT_EQ_MSG(test, dma->syncs[i].addr, want[i].addr, "%s %u", what, i);
		KUNIT_EXPECT_EQ_MSG(test, dma->syncs[i].size, want[i].size, "%s %u", what, i);
		KUNIT_EXPECT_EQ_MSG(test, dma->syncs[i].dir, want[i].dir, "%s %u", what, i);
		KUNIT_EXPECT_EQ_MSG(test, dma->syncs[i].for_cpu, want[i].for_cpu, "%s %u", what,
				    i);
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
	struct km *km = km_open(test, &caps);
	struct kd_env *env = &km->env;
	struct fake_dma *dma = fake_ib_dma(fake_ib_device(env->dev));
	DAT_LMR_HANDLE lmr = km_lmr(km, 2, DAT_LMR_SCOPE_PZ);
	u64 at = env->mem[KD_RW].addr, one, two;
	DAT_LMR_TRIPLET iov;
	struct km_keys keys;
	DAT_LMR_CONTEXT key;
	DAT_LMR_HANDLE part;

	km_ep(km, 0, NULL);
	kd_connect(env);
	dma->nsyncs = 0;

	iov = kd_seg(env, KD_RW, 100, 10);
	KD_EXPECT_OK(test, kd_post(env->ep, KD_SEND, 1, &iov, 1, NULL, 0));
	DMA_TOLD(km, "Send", DMA_SOURCE(at + 100, 10));
	km_done(km, IB_WC_SUCCESS);
	km_drain(env->req);
	dma_told(km, "Send done", 0, NULL);

	iov = kd_seg(env, KD_RW, 200, 20);
	KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, 1, NULL, 0));
	DMA_TOLD(km, "Receive", DMA_SINK(at + 200, 20));
	KUNIT_EXPECT_EQ(test, fake_ib_recv(env->qp, 7, false), 0);
	km_drain(env->recv);
	DMA_TOLD(km, "message", DMA_SEEN(at + 200, 7));

	KD_EXPECT_OK(test, dma_sync(env, KD_RW, 5, 6, false));
	DMA_TOLD(km, "sync_rdma_read", DMA_SOURCE(at + 5, 6));
	KD_EXPECT_OK(test, dma_sync(env, KD_RW, 5, 6, true));
	DMA_TOLD(km, "sync_rdma_write", DMA_SINK(at + 5, 6), DMA_SEEN(at + 5, 6));

	/* page by page, since the next one may be anywhere */
	km_bind(km, lmr, 0, 2, DAT_MEM_PRIV_ALL_FLAG, &keys);
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
	KD_EXPECT_OK(test, km_kcreate(km, DAT_MEM_TYPE_VIRTUAL, (void *)(uintptr_t)one, 50,
				      DAT_MEM_PRIV_ALL_FLAG, &part, &key));
	KUNIT_EXPECT_EQ(test, dma->parts, 0U);
	dma->nsyncs = 0;
	KD_EXPECT_OK(test, dat_lmr_free(part));
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

/**
 * struct dma_again - binding a large LMR whose last binding is being unmapped
 * @km: environment
 * @lmr: LMR
 * @region: the pages
 * @key: its key
 * @ret: what the call returned
 */
struct dma_again {
	struct km *km;
	DAT_LMR_HANDLE lmr;
	DAT_REGION_DESCRIPTION region;
	DAT_LMR_CONTEXT key;
	DAT_RETURN ret;
};

static void dma_bind(struct dma_again *again)
{
	DAT_LMR_COOKIE cookie = { .as_64 = 3 };

	again->ret = dat_lmr_fmr(again->lmr, DAT_MEM_TYPE_PHYSICAL, again->region, DMA_LARGE,
				 DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, again->km->env.ep, cookie,
				 0, &again->key, NULL);
}

/* As an interrupt would that a consumer's lock has to wait for: with interrupts off. */
static void dma_bind_again(void *arg)
{
	unsigned long flags;

	local_irq_save(flags);
	dma_bind(arg);
	local_irq_restore(flags);
}

static void dma_large_open(struct kunit *test, struct dma_again *again)
{
	const struct fake_ib_caps caps = { .copies = true, .max_pages = DMA_LARGE };
	DAT_PADDR *pages = kunit_kcalloc(test, DMA_LARGE, sizeof(*pages), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, pages);
	*again = (struct dma_again) { .km = km_on(test, &caps, NULL) };
	for (i = 0; i < DMA_LARGE; i++)
		pages[i] = again->km->pa[i % 2];
	again->region.for_physical = pages;
	again->lmr = km_lmr(again->km, DMA_LARGE, DAT_LMR_SCOPE_PZ);
}

/* The binding is there, and a peer writes. */
static void dma_large_use(struct dma_again *again, const char *text)
{
	KD_ASSERT_OK(again->km->env.test, again->ret);
	km_done(again->km, IB_WC_SUCCESS);
	km_expect(again->km, DAT_DTO_LMR_FMR, 3, DAT_DTO_SUCCESS);
	dma_put(&again->km->env, again->key, again->km->pa[0] + 10, text);
}

/* Whoever binds a large LMR again waits for nobody. */
static void dma_again_test(struct kunit *test)
{
	struct dma_again again;
	struct fake_dma *dma;
	struct km *km;
	int round;

	dma_large_open(test, &again);
	km = again.km;
	dma = fake_ib_dma(fake_ib_device(km->env.dev));
	dma_bind_again(&again);
	for (round = 0; round < 3; round++) {
		dma_large_use(&again, round ? "second" : "first.");
		again.ret = DAT_INTERNAL_ERROR;
		dma->arg = &again;
		dma->at_unmap = dma_bind_again;
		km_unbind(km, again.lmr);
		KUNIT_EXPECT_EQ(test, memcmp(km_bytes(km, 0) + 10, round ? "second" : "first.", 6),
				0);
		flush_workqueue(kdapl_misc_wq);
	}
	dma_large_use(&again, "third.");
	KUNIT_EXPECT_EQ(test, dma->dark_pages, 0U);
}

/* A binding that does not come about, shorter than the one before: nothing beyond it is touched. */
static void dma_short_test(struct kunit *test)
{
	struct km *km = dma_open(test);
	DAT_LMR_HANDLE lmr = km_lmr(km, 4, DAT_LMR_SCOPE_PZ);
	struct km_keys keys;

	km_bind(km, lmr, 0, 4, KM_LOCAL | KM_REMOTE, &keys);
	km_unbind(km, lmr);
	fake_ib_fail(km->env.dev, FAKE_IB_MAP_MR_SG, 1, -EINVAL);
	KM_EXPECT_TYPE(test, km_try_fmr(km, lmr, 0, 1, KM_LOCAL | KM_REMOTE, 0, 1, &keys),
		       DAT_INSUFFICIENT_RESOURCES);
	km_bind(km, lmr, 0, 1, KM_LOCAL | KM_REMOTE, &keys);
	km_unbind(km, lmr);
}

static void dma_dark_test(struct kunit *test)
{
	struct dma_again again;
	struct fake_dma *dma;
	DAT_LMR_CONTEXT key;
	DAT_LMR_HANDLE lmr;
	struct km *km;
	int round;

	dma_large_open(test, &again);
	km = again.km;
	dma = fake_ib_dma(fake_ib_device(km->env.dev));
	KD_ASSERT_OK(test, km_kcreate(km, DAT_MEM_TYPE_PHYSICAL, again.region.for_physical,
				      DMA_LARGE, DAT_MEM_PRIV_ALL_FLAG, &lmr, &key));
	KD_EXPECT_OK(test, dat_lmr_free(lmr));
	KUNIT_EXPECT_EQ(test, dma->dark_pages, 0U);
	for (round = 0; round < 3; round++) {
		/* it can be bound again at once, whoever unmaps it */
		dma_bind(&again);
		dma_large_use(&again, "large");
		km_unbind(km, again.lmr);
		KUNIT_EXPECT_EQ(test, memcmp(km_bytes(km, 0) + 10, "large", 5), 0);
		memset(km_bytes(km, 0), round, 100);
		KUNIT_EXPECT_FALSE(test, km_bound(km, again.lmr));
		flush_workqueue(kdapl_misc_wq);	/* the list is free for the end after the next */
	}
	/* also when nobody has heard yet that it has ended */
	for (round = 0; round < 3; round++) {
		local_bh_disable();	/* mostly nobody else is quick enough to unmap it */
		dma_bind(&again);
		local_bh_enable();
		flush_workqueue(kdapl_misc_wq);
		KD_ASSERT_OK(test, again.ret);
		km_done(km, IB_WC_SUCCESS);
		KD_ASSERT_OK(test, km_try_inv(km, again.lmr, 0, 1));
		km_done(km, IB_WC_SUCCESS);
	}
	km_drain(km->env.req);
	KUNIT_EXPECT_EQ(test, dma->dark_pages, 0U);
}

/* What a model says of one LMR that everybody writes. */
struct dma_model {
	u8 cpu[256];
	u8 dev[256];
};

/* A Receive or Read fails, is flushed or never comes back, having been filled half. */
static void dma_random_fail(struct km *km, u32 at, u32 n, u32 kind)
{
	struct kd_env *env = &km->env;
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, n, 0x77);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, at, n);
	bool recv = kind & 1;
	u8 junk[256];

	dma_doomed(km);
	KD_EXPECT_OK(env->test, kd_post(env->ep, recv ? KD_RECV : KD_READ, 1, &iov, 1,
					recv ? NULL : &remote, 0));
	get_random_bytes(junk, sizeof(junk));
	fake_ib_access(env->dev, env->mem[KD_RW].lmr_context, env->mem[KD_RW].addr + at, junk,
		       n / 2 + 1, IB_ACCESS_LOCAL_WRITE);
	if (kind % 3 == 0)
		fake_ib_complete(env->qp, recv, recv ? IB_WC_LOC_LEN_ERR : IB_WC_REM_ACCESS_ERR);
	if (kind % 3 == 1) {
		/* with a request under way the end needs another one, which cannot be posted */
		KD_EXPECT_OK(env->test, kd_post(env->ep, KD_SEND, 0, NULL, 2, NULL, 0));
		fake_ib_hold_flush(env->dev, true);
		fake_ib_fail(env->dev, FAKE_IB_POST_SEND, 1, -EIO);
	}
	dma_end_doomed(km);
	fake_ib_hold_flush(env->dev, false);
	km_use(km, 0);
}

/*
 * A Receive or Read of two segments, for @m of @n bytes. The CPU goes on writing what is
 * its own, and all that does not come.
 */
static void dma_random_bring(struct km *km, struct rnd_state *rnd, struct dma_model *model, u32 at,
			     u32 n)
{
	u32 kind = prandom_u32_state(rnd) % 3, m = kind ? 1 + prandom_u32_state(rnd) % n : 0, i;
	struct kd_env *env = &km->env;
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, m, 0x77);
	DAT_LMR_TRIPLET iov[2];
	struct kunit *test = env->test;
	u8 *bytes = dma_bytes(env, KD_RW);

	iov[0] = kd_seg(env, KD_RW, at, n / 2);
	iov[1] = kd_seg(env, KD_RW, at + n / 2, n - n / 2);
	/* a suppressed Read is done with the next one */
	if (kind == 2)
		KD_EXPECT_OK(test, kd_post(env->ep, KD_READ, 2, iov, 1, &remote,
					   m % 2 ? DAT_COMPLETION_SUPPRESS_FLAG : 0));
	else
		KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, kind ? 2 : 0, iov, 1, NULL, 0));
	for (i = 0; i < 256; i++) {
		if (i >= at && i < at + m) {
			model->cpu[i] = prandom_u32_state(rnd);
			fake_ib_access(env->dev, env->mem[KD_RW].lmr_context,
				       env->mem[KD_RW].addr + i, &model->cpu[i], 1,
				       IB_ACCESS_LOCAL_WRITE);
			model->dev[i] = model->cpu[i];
		} else if (!(i & 1)) {
			model->cpu[i] = prandom_u32_state(rnd);
			bytes[i] = model->cpu[i];
		}
	}
	if (kind == 2) {
		KD_EXPECT_OK(test, kd_post(env->ep, KD_SEND, 0, NULL, 2, NULL, 0));
		km_settle(km);
	} else {
		KUNIT_EXPECT_EQ(test, fake_ib_recv(env->qp, m, false), 0);
		km_drain(env->recv);
	}
	/* what the device has of the rest of its buffer is nobody's */
	fake_ib_access(env->dev, env->mem[KD_RW].lmr_context, env->mem[KD_RW].addr + at + m,
		       model->dev + at + m, n - m, 0);
}

static void dma_random_test(struct kunit *test)
{
	struct km *km = dma_open(test);
	struct kd_env *env = &km->env;
	u8 *bytes = dma_bytes(env, KD_RW), seen[256];
	/* whose byte it is at the moment: the CPU writes even ones, peers odd ones */
	struct dma_model *model = kunit_kzalloc(test, sizeof(*model), GFP_KERNEL);
	u32 seed = get_random_u32(), step, at, n, i;
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 256, 0x77);
	struct rnd_state rnd;
	DAT_LMR_TRIPLET iov[2];

	KUNIT_ASSERT_NOT_NULL(test, model);
	dma_doomed(km);
	km_use(km, 0);
	kunit_info(test, "seed %#x", seed);
	prandom_seed_state(&rnd, seed);
	memset(bytes, 0, 256);
	KD_EXPECT_OK(test, dma_sync(env, KD_RW, 0, 256, false));
	for (step = 0; step < KD_TIMES(4000); step++) {
		at = prandom_u32_state(&rnd) % 255;
		n = 1 + prandom_u32_state(&rnd) % (255 - at);
		/* connections take their time */
		switch (step % 250 ? prandom_u32_state(&rnd) % 6 : 6) {
		case 0:
			for (i = at; i < at + n; i++)
				if (!(i & 1))
					model->cpu[i] = prandom_u32_state(&rnd);
			memcpy(bytes, model->cpu, sizeof(model->cpu));
			break;
		case 1:
			for (i = at; i < at + n; i++) {
				u8 byte = prandom_u32_state(&rnd);

				if (!(i & 1))
					continue;
				model->dev[i] = byte;
				fake_ib_access(env->dev, env->mem[KD_RW].lmr_context,
					       env->mem[KD_RW].addr + i, &byte, 1,
					       IB_ACCESS_REMOTE_WRITE);
			}
			break;
		case 2:		/* for a peer's Read */
			KD_EXPECT_OK(test, dma_sync(env, KD_RW, at, n, false));
			for (i = at; i < at + n; i++)
				if (!(i & 1))
					model->dev[i] = model->cpu[i];
			break;
		case 3:		/* around a peer's Write */
			KD_EXPECT_OK(test, dma_sync(env, KD_RW, at, n, true));
			for (i = at; i < at + n; i++) {
				if (i & 1)
					model->cpu[i] = model->dev[i];
				else
					model->dev[i] = model->cpu[i];
			}
			break;
		case 4:		/* out of two segments */
			iov[0] = kd_seg(env, KD_RW, at, n / 2);
			iov[1] = kd_seg(env, KD_RW, at + n / 2, n - n / 2);
			KD_EXPECT_OK(test, kd_post(env->ep, step % 2 ? KD_SEND : KD_WRITE, 2, iov,
						   1, &remote, 0));
			for (i = at; i < at + n; i++)
				if (!(i & 1))
					model->dev[i] = model->cpu[i];
			km_done(km, IB_WC_SUCCESS);
			km_drain(env->req);
			break;
		case 6:		/* what fails has no contents: here they are the CPU's */
			dma_random_fail(km, at, n, step / 250);
			memcpy(model->dev + at, model->cpu + at, n);
			break;
		default:	/* what comes is neither's */
			dma_random_bring(km, &rnd, model, at, n);
		}
		KUNIT_ASSERT_EQ_MSG(test, memcmp(bytes, model->cpu, 256), 0, "step %u", step);
		fake_ib_access(env->dev, env->mem[KD_RW].lmr_context, env->mem[KD_RW].addr, seen,
			       256, 0);
		KUNIT_ASSERT_EQ_MSG(test, memcmp(seen, model->dev, 256), 0, "step %u", step);
	}
}

static struct kunit_case dma_cases[] = {
	KD_CASE(dma_read_rmr_test, "LMR-SYNC-06,RTOR-01: Reads into an RMR"),
	KD_CASE(dma_invalidated_read_test, "LMR-SYNC-06: a Read whose sink is being invalidated"),
	KD_CASE(dma_fmr_test, "LMR-SYNC-07: the end of a binding gives the memory back"),
	KD_CASE(dma_free_test, "LMR-SYNC-07: freeing an LMR turns nothing back"),
	KD_CASE(dma_peer_ends_test, "LMR-SYNC-07,SINV-02: a peer ends an LMR of dat_lmr_kcreate()"),
	KD_CASE(dma_peer_ends_below_test, "LMR-SYNC-07,SINV-02: a peer ends an LMR below an RMR"),
	KD_CASE(dma_last_reader_test, "LMR-FREE-01: nothing is left to free that sleeps"),
	KD_CASE(dma_unaligned_test, "LMR-04: memory that starts inside a page"),
	KD_CASE(dma_ia_test, "LMR-SYNC-06: the reserved LMR; memory of type IA"),
	KD_CASE(dma_gone_test, "LMR-20: mappings of a consumer do not outlive the device"),
	KD_CASE(dma_failed_test, "LMR-20: mappings of a device that has failed"),
	KD_CASE(dma_close_test, "LMR-20: mappings of a consumer do not outlive the IA"),
	KD_CASE(dma_same_test,
		"LMR-SYNC-05,LMR-SYNC-06: who has to synchronise; a mapping that is no copy"),
	KD_CASE(dma_caches_test, "LMR-SYNC-05,LMR-SYNC-06: caches that are not coherent"),
	KD_CASE(dma_dark_test, "FMR-06,FMR-10,FMR-13: large regions end without interrupts off"),
	KD_CASE(dma_short_test, "FMR-02,LMR-SYNC-06: a binding that fails after a longer one"),
	KD_CASE(dma_again_test, "FMR-06,FMR-10: a large region is bound while it is unmapped"),
	KD_CASE(dma_random_test,
		"LMR-SYNC-01,LMR-SYNC-02,LMR-SYNC-06: all transfers, at random, to the byte"),
	{}
};

static struct kunit_suite dma_suite = {
	.name = "kdapl-dma",
	.suite_init = kd_suite_init,
	.suite_exit = kd_suite_exit,
	.init = km_init,
	.exit = km_exit,
	.test_cases = dma_cases,
};

static struct kunit_case dma_srq_cases[] = {
	KD_CASE(dma_srq_test, "LMR-SYNC-06,SRQ-POST-01: buffers of an SRQ"),
	KD_CASE(dma_srq_lost_test, "LMR-SYNC-06,SRQ-POST-01: buffers that are refused, or lost"),
	{}
};

static struct kunit_suite dma_srq_suite = {
	.name = "kdapl-dma-srq",
	.suite_init = kd_suite_init,
	.suite_exit = kd_suite_exit,
	.init = sq_init,
	.exit = sq_exit,
	.test_cases = dma_srq_cases,
};

kunit_test_suites(&dma_suite, &dma_srq_suite);
