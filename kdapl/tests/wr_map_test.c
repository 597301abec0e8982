// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * What reaches the device: segments, operation, flags, remote range.
 */
#include <linux/delay.h>
#include <linux/random.h>

#include "kd_test.h"

/* Post and fetch what the device was handed; the iov is scribbled over before. */
static void wr_post(struct kd_env *env, enum kd_call call, int num, const DAT_LMR_TRIPLET *iov,
		    const DAT_RMR_TRIPLET *remote, int flags, struct fake_ib_wr *wr)
{
	DAT_LMR_TRIPLET copy[FAKE_IB_MAX_SGE];
	DAT_RMR_TRIPLET copy_remote = {};

	memcpy(copy, iov, num * sizeof(*iov));
	if (remote)
		copy_remote = *remote;
	KD_ASSERT_OK(env->test, kd_post(env->ep, call, num, copy, 1, remote ? &copy_remote : NULL,
					flags));
	memset(copy, 0xee, sizeof(copy));
	memset(&copy_remote, 0xee, sizeof(copy_remote));
	KUNIT_ASSERT_TRUE(env->test, fake_ib_last_wr(env->qp, kd_is_recv(call), wr));
}

static void wr_drain(struct kd_env *env, enum kd_call call)
{
	DAT_EVENT event;

	fake_ib_complete_all(env->qp, kd_is_recv(call), IB_WC_SUCCESS);
	while (kd_next(kd_evd_of(env, call), &event))
		;
}

static void wr_expect_sge(struct kunit *test, const struct ib_sge *sge, const DAT_LMR_TRIPLET *seg,
			  u32 length)
{
	KUNIT_EXPECT_EQ(test, sge->addr, (u64)seg->virtual_address);
	KUNIT_EXPECT_EQ(test, sge->length, length);
	KUNIT_EXPECT_EQ(test, sge->lkey, (u32)seg->lmr_context);
}

static int wr_max_iov(enum kd_call call)
{
	return call == KD_READ ? 3 : 4;
}

/* Every subset of up to four segments is empty once, with rubbish in it. */
static void wr_segments_test(struct kunit *test)
{
	struct kd_env *env = kd_connected(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 0, 0x55);
	DAT_LMR_TRIPLET iov[4];
	struct fake_ib_wr wr;
	enum kd_call call;
	int num, empty, i, n;

	for (call = 0; call < KD_NR_CALLS; call++) {
		for (num = 0; num <= wr_max_iov(call); num++) {
			for (empty = 0; empty < BIT(num); empty++) {
				remote.segment_length = 0;
				for (i = 0; i < num; i++) {
					/* not in address order */
					iov[i] = kd_seg(env, KD_RW, 64 * (num - i), 5 + 7 * i);
					if (empty & BIT(i))
						iov[i] = (DAT_LMR_TRIPLET) { ~0ULL - i, 0, 0xbad };
					remote.segment_length += iov[i].segment_length;
				}
				wr_post(env, call, num, iov, &remote, 0, &wr);
				for (i = 0, n = 0; i < num; i++) {
					if (empty & BIT(i))
						continue;
					KUNIT_ASSERT_LT(test, n, wr.num_sge);
					wr_expect_sge(test, &wr.sge[n++], &iov[i], 5 + 7 * i);
				}
				KUNIT_EXPECT_EQ(test, wr.num_sge, n);
				wr_drain(env, call);
			}
		}
	}
}

static void wr_flags_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 8, 0x55);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	static const enum ib_wr_opcode opcodes[] = {
		[KD_SEND] = IB_WR_SEND,
		[KD_WRITE] = IB_WR_RDMA_WRITE,
		[KD_READ] = IB_WR_RDMA_READ,
	};
	struct fake_ib_wr wr;
	enum kd_call call;
	DAT_EP_ATTR attr;
	int flags, want;

	kd_attr(&attr);
	attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	attr.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	kd_ep(env, &attr);
	kd_connect(env);
	for (call = 0; call < KD_NR_CALLS; call++) {
		if (kd_is_recv(call))
			continue;
		for (flags = 0; flags < 16; flags++) {
			if ((flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG) && call != KD_SEND)
				continue;
			want = 0;
			if (flags & DAT_COMPLETION_BARRIER_FENCE_FLAG)
				want |= IB_SEND_FENCE;
			if (flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG)
				want |= IB_SEND_SOLICITED;
			if (!(flags & DAT_COMPLETION_SUPPRESS_FLAG))
				want |= IB_SEND_SIGNALED;
			/* a signaled request first, so that no signal is forced */
			wr_post(env, call, 1, &iov, &remote, 0, &wr);
			KUNIT_EXPECT_EQ(test, wr.send_flags, (int)IB_SEND_SIGNALED);
			wr_post(env, call, 1, &iov, &remote, flags, &wr);
			KUNIT_EXPECT_EQ(test, wr.send_flags, want);
			KUNIT_EXPECT_EQ(test, (int)wr.opcode, (int)opcodes[call]);
			wr_post(env, call, 1, &iov, &remote, 0, &wr);
			wr_drain(env, call);
		}
	}
}

static void wr_remote_test(struct kunit *test)
{
	static const u64 addrs[] = { 0, 1, 4096, 0x123456789abcdef0ULL, ~0ULL - 8 };
	static const u32 keys[] = { 0, 1, 0x100, 0x80000000, 0xffffffff, 0xdeadbeef };
	struct kd_env *env = kd_connected(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	struct fake_ib_wr wr;
	DAT_RMR_TRIPLET remote;
	int i, j;

	for (i = 0; i < ARRAY_SIZE(addrs); i++) {
		for (j = 0; j < ARRAY_SIZE(keys); j++) {
			remote = kd_remote(addrs[i], 8, keys[j]);
			wr_post(env, KD_WRITE, 1, &iov, &remote, 0, &wr);
			KUNIT_EXPECT_EQ(test, wr.remote_addr, addrs[i]);
			KUNIT_EXPECT_EQ(test, wr.rkey, keys[j]);
			wr_drain(env, KD_WRITE);
			wr_post(env, KD_READ, 1, &iov, &remote, 0, &wr);
			KUNIT_EXPECT_EQ(test, wr.remote_addr, addrs[i]);
			KUNIT_EXPECT_EQ(test, wr.rkey, keys[j]);
			wr_drain(env, KD_READ);
		}
	}
	/* a Write shorter than the remote range starts at its beginning */
	remote = kd_remote(0x4000, 4096, 0x77);
	wr_post(env, KD_WRITE, 1, &iov, &remote, 0, &wr);
	KUNIT_EXPECT_EQ(test, wr.remote_addr, 0x4000ULL);
	KUNIT_EXPECT_EQ(test, wr.length, 8ULL);
	wr_drain(env, KD_WRITE);
}

/* The sink of a Read is cut to what the remote side sends. */
static void wr_read_trim_test(struct kunit *test)
{
	static const u32 lengths[3] = { 10, 0, 20 };
	struct kd_env *env = kd_connected(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 0, 0x55);
	DAT_LMR_TRIPLET iov[3];
	struct fake_ib_wr wr;
	u32 total, left;
	int i, n;

	for (i = 0; i < 3; i++)
		iov[i] = kd_seg(env, KD_RW, 100 * i, lengths[i]);
	for (total = 0; total <= 30; total++) {
		DAT_EVENT event;

		remote.segment_length = total;
		wr_post(env, KD_READ, 3, iov, &remote, 0, &wr);
		KUNIT_EXPECT_EQ(test, wr.length, (u64)total);
		for (i = 0, n = 0, left = total; i < 3 && left; i++) {
			u32 part = min(left, lengths[i]);

			if (!part)
				continue;
			KUNIT_ASSERT_LT(test, n, wr.num_sge);
			wr_expect_sge(test, &wr.sge[n++], &iov[i], part);
			left -= part;
		}
		KUNIT_EXPECT_EQ(test, wr.num_sge, n);
		fake_ib_complete_all(env->qp, false, IB_WC_SUCCESS);
		KUNIT_ASSERT_TRUE(test, kd_next(env->req, &event));
		KUNIT_EXPECT_EQ(test,
				event.event_data.dto_completion_event_data.transfered_length,
				total);
	}
	/* the caller's array is not the place where the cutting is done */
	remote.segment_length = 3;
	KD_EXPECT_OK(test, kd_post(env->ep, KD_READ, 3, iov, 1, &remote, 0));
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, iov[i].segment_length, lengths[i]);
}

static void wr_max_sge_test(struct kunit *test)
{
	static const struct fake_ib_caps caps = {
		.max_send_sge = 8, .max_recv_sge = 7, .max_sge_rd = 5,
	};
	/* one limit for Sends and Receives: the smaller of the two */
	static const int max[KD_NR_CALLS] = { 7, 7, 8, 5 };
	struct kd_env *env = kd_open(test, &caps);
	DAT_RMR_TRIPLET remote = kd_remote(0, 64, 0x55);
	DAT_LMR_TRIPLET iov[8];
	struct fake_ib_wr wr;
	enum kd_call call;
	DAT_EP_ATTR attr;
	int i;

	kd_attr(&attr);
	attr.max_request_iov = max[KD_SEND];
	attr.max_recv_iov = max[KD_RECV];
	attr.max_rdma_write_iov = max[KD_WRITE];
	attr.max_rdma_read_iov = max[KD_READ];
	kd_ep(env, &attr);
	kd_connect(env);
	for (call = 0; call < KD_NR_CALLS; call++) {
		for (i = 0; i < max[call]; i++)
			iov[i] = kd_seg(env, KD_RW, 128 * i, 1 + i);
		remote.segment_length = max[call] * (max[call] + 1) / 2;
		wr_post(env, call, max[call], iov, &remote, 0, &wr);
		KUNIT_EXPECT_EQ(test, wr.num_sge, max[call]);
		for (i = 0; i < wr.num_sge; i++)
			wr_expect_sge(test, &wr.sge[i], &iov[i], 1 + i);
	}
}

/* One call of ours is one call of the device's, with one request in it. */
static void wr_one_call_test(struct kunit *test)
{
	struct kd_env *env = kd_connected(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(0, 16, 0x55);
	DAT_LMR_TRIPLET iov[2] = { kd_seg(env, KD_RW, 0, 8), kd_seg(env, KD_RW, 8, 8) };
	unsigned int verbs, send, recv, polls;
	struct fake_ib_wr wr;
	enum kd_call call;
	int i;

	for (call = 0; call < KD_NR_CALLS; call++) {
		for (i = 0; i < 4; i++) {
			verbs = fake_ib_count(env->dev, FAKE_IB_ANY);
			send = fake_ib_count(env->dev, FAKE_IB_POST_SEND);
			recv = fake_ib_count(env->dev, FAKE_IB_POST_RECV);
			polls = fake_ib_count(env->dev, FAKE_IB_POLL_CQ) +
				fake_ib_count(env->dev, FAKE_IB_NOTIFY_CQ);
			wr_post(env, call, 2, iov, &remote, 0, &wr);
			KUNIT_EXPECT_EQ(test, wr.pos, 0U);
			KUNIT_EXPECT_EQ(test, fake_ib_count(env->dev, FAKE_IB_ANY), verbs + 1);
			KUNIT_EXPECT_EQ(test, fake_ib_count(env->dev, FAKE_IB_POST_SEND),
					send + !kd_is_recv(call));
			KUNIT_EXPECT_EQ(test, fake_ib_count(env->dev, FAKE_IB_POST_RECV),
					recv + kd_is_recv(call));
			/* nor does a post look at completions while there is room */
			KUNIT_EXPECT_EQ(test, fake_ib_count(env->dev, FAKE_IB_POLL_CQ) +
					fake_ib_count(env->dev, FAKE_IB_NOTIFY_CQ), polls);
		}
		wr_drain(env, call);
	}
}

/* The order of posting is the order in the queue. */
static void wr_order_test(struct kunit *test)
{
	struct kd_env *env = kd_connected(test, NULL);
	static const enum kd_call order[] = {
		KD_SEND, KD_WRITE, KD_READ, KD_READ, KD_SEND, KD_WRITE, KD_WRITE, KD_SEND,
	};
	DAT_RMR_TRIPLET remote = kd_remote(0, 0, 0x55);
	DAT_LMR_TRIPLET iov;
	struct fake_ib_wr wr;
	int i;

	for (i = 0; i < ARRAY_SIZE(order); i++) {
		iov = kd_seg(env, KD_RW, 0, 100 + i);
		remote.segment_length = 100 + i;
		KD_EXPECT_OK(test, kd_post(env->ep, order[i], 1, &iov, i, &remote, 0));
	}
	for (i = 0; i < ARRAY_SIZE(order); i++) {
		KUNIT_ASSERT_TRUE(test, fake_ib_wr(env->qp, false, i, &wr));
		KUNIT_EXPECT_EQ(test, wr.length, 100ULL + i);
		KUNIT_EXPECT_EQ(test, wr.call, (unsigned int)i);
	}
}

/* iWARP has no fenced Read: an empty fenced Write goes in front, in one call. */
static void wr_iwarp_fence_test(struct kunit *test)
{
	static const struct fake_ib_caps caps = { .iwarp = true };
	struct kd_env *env = kd_open(test, &caps);
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 8, 0x55);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	DAT_IA_HANDLE ia = env->ia;
	struct kdapl_ia *kia = kdapl_obj_get(ia, DAT_HANDLE_TYPE_IA);
	struct fake_ib_wr fence, read;
	unsigned int posted, calls;
	DAT_EP_ATTR attr;
	DAT_EVENT event;

	KUNIT_ASSERT_NOT_NULL(test, kia);
	kdapl_quirks_derive(kia->dev, true);
	kd_attr(&attr);
	attr.max_rdma_read_iov = 1;
	kd_ep(env, &attr);
	kd_connect(env);
	posted = fake_ib_posted(env->qp, false);
	calls = fake_ib_count(env->dev, FAKE_IB_POST_SEND);
	KD_EXPECT_OK(test, kd_post(env->ep, KD_READ, 1, &iov, 0xc00c1e, &remote,
				   DAT_COMPLETION_BARRIER_FENCE_FLAG));
	KUNIT_EXPECT_EQ(test, fake_ib_count(env->dev, FAKE_IB_POST_SEND), calls + 1);
	KUNIT_EXPECT_EQ(test, fake_ib_posted(env->qp, false), posted + 2);
	KUNIT_ASSERT_TRUE(test, fake_ib_wr(env->qp, false, posted, &fence));
	KUNIT_ASSERT_TRUE(test, fake_ib_wr(env->qp, false, posted + 1, &read));
	KUNIT_EXPECT_EQ(test, (int)fence.opcode, (int)IB_WR_RDMA_WRITE);
	KUNIT_EXPECT_EQ(test, fence.num_sge, 0);
	KUNIT_EXPECT_EQ(test, fence.send_flags, (int)IB_SEND_FENCE);
	KUNIT_EXPECT_EQ(test, (int)read.opcode, (int)IB_WR_RDMA_READ);
	KUNIT_EXPECT_EQ(test, read.send_flags, (int)IB_SEND_SIGNALED);
	KUNIT_EXPECT_EQ(test, read.call, fence.call);
	/* two requests, one event */
	KUNIT_EXPECT_EQ(test, fake_ib_complete_all(env->qp, false, IB_WC_SUCCESS), 2);
	KUNIT_ASSERT_TRUE(test, kd_next(env->req, &event));
	KUNIT_EXPECT_EQ(test, event.event_data.dto_completion_event_data.user_cookie.as_64,
			0xc00c1eULL);
	KUNIT_EXPECT_EQ(test, (u32)event.event_data.dto_completion_event_data.operation,
			(u32)DAT_DTO_RDMA_READ);
	KD_EXPECT_EMPTY(test, env->req);
	/* fences on other requests go through */
	wr_post(env, KD_SEND, 1, &iov, NULL, DAT_COMPLETION_BARRIER_FENCE_FLAG, &read);
	KUNIT_EXPECT_EQ(test, read.send_flags, (int)(IB_SEND_SIGNALED | IB_SEND_FENCE));
	kdapl_quirks_derive(kia->dev, false);
	kdapl_obj_put(&kia->obj);
}

/*
 * On soft-RoCE a fenced request that is sent again may wait for itself: nothing is fenced
 * there, an invalidation of nothing goes in front.
 */
static void wr_rxe_fence_test(struct kunit *test)
{
	static const struct fake_ib_caps caps = { .driver = RDMA_DRIVER_RXE };
	static const enum kd_call calls[] = { KD_SEND, KD_WRITE, KD_READ };
	struct kd_env *env = kd_open(test, &caps);
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 8, 0x55);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	unsigned int posted, called, i, round;
	struct fake_ib_wr fence, wr;
	DAT_EP_ATTR attr;
	DAT_EVENT event;

	kd_attr(&attr);
	kd_ep(env, &attr);
	kd_connect(env);
	/* several under way at a time, and a queue full of them more than once */
	for (round = 0; round < 8; round++) {
		for (i = 0; i < ARRAY_SIZE(calls); i++) {
			posted = fake_ib_posted(env->qp, false);
			called = fake_ib_count(env->dev, FAKE_IB_POST_SEND);
			KD_EXPECT_OK(test, kd_post(env->ep, calls[i], 1, &iov, i, &remote,
						   DAT_COMPLETION_BARRIER_FENCE_FLAG));
			KUNIT_EXPECT_EQ(test, fake_ib_count(env->dev, FAKE_IB_POST_SEND),
					called + 1);
			KUNIT_EXPECT_EQ(test, fake_ib_posted(env->qp, false), posted + 2);
			KUNIT_ASSERT_TRUE(test, fake_ib_wr(env->qp, false, posted, &fence));
			KUNIT_ASSERT_TRUE(test, fake_ib_wr(env->qp, false, posted + 1, &wr));
			KUNIT_EXPECT_EQ(test, (int)fence.opcode, (int)IB_WR_LOCAL_INV);
			KUNIT_EXPECT_EQ(test, fence.rkey, kd_conn_of(env)->pd->fence->rkey);
			KUNIT_EXPECT_EQ(test, fence.send_flags, 0);
			KUNIT_EXPECT_EQ(test, wr.send_flags, (int)IB_SEND_SIGNALED);
			KUNIT_EXPECT_EQ(test, wr.call, fence.call);
		}
		/* two requests, one event */
		fake_ib_complete_all(env->qp, false, IB_WC_SUCCESS);
		for (i = 0; i < ARRAY_SIZE(calls); i++) {
			KUNIT_ASSERT_TRUE(test, kd_next(env->req, &event));
			KUNIT_EXPECT_EQ(test, event.event_data.dto_completion_event_data
						.user_cookie.as_64, (u64)i);
		}
		KD_EXPECT_EMPTY(test, env->req);
		/* without a flag as everywhere */
		wr_post(env, KD_SEND, 1, &iov, NULL, 0, &wr);
		KUNIT_EXPECT_EQ(test, wr.send_flags, (int)IB_SEND_SIGNALED);
		wr_drain(env, KD_SEND);
	}
}

/*
 * No segments, no list: the consumer's array may hold anything, and some drivers look at
 * its first entry. The device here complains of a list that is not NULL.
 */
static void wr_no_list_test(struct kunit *test)
{
	struct kd_env *env = kd_connected(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 0, 0x55);
	DAT_LMR_TRIPLET iov[2];
	struct fake_ib_wr wr;
	enum kd_call call;
	int num;

	for (call = 0; call < KD_NR_CALLS; call++) {
		for (num = 0; num <= 2; num++) {
			memset(iov, 0xee, sizeof(iov));
			iov[0].segment_length = 0;
			iov[1].segment_length = 0;
			KD_EXPECT_OK(test, kd_post(env->ep, call, num, iov, 1,
						   kd_is_recv(call) ? NULL : &remote, 0));
			KUNIT_ASSERT_TRUE(test, fake_ib_last_wr(env->qp, kd_is_recv(call), &wr));
			KUNIT_EXPECT_EQ(test, wr.num_sge, 0);
			KUNIT_EXPECT_EQ_MSG(test, fake_ib_violations(env->dev), 0, "%s of %d: %s",
					    kd_call_names[call], num,
					    fake_ib_last_violation(env->dev));
			wr_drain(env, call);
		}
	}
}

/* Where a pair of requests is looked at without its counts, there is always something. */
static void wr_pair_test(struct kunit *test)
{
	static const struct fake_ib_caps caps = { .driver = RDMA_DRIVER_CXGB4, .peeks = true };
	struct kdat_request pair[2] = {};
	struct kd_env *env = kd_open(test, &caps);
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 8, 0x55);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	DAT_EP_ATTR attr;
	int i;

	kd_attr(&attr);
	kd_ep(env, &attr);
	kd_connect(env);
	pair[0].op = KDAT_REQUEST_RDMA_WRITE;
	pair[0].remote_iov = &remote;
	pair[1].op = KDAT_REQUEST_SEND;
	for (i = 0; i < 4; i++) {
		pair[0].num_segments = i & 1;
		pair[0].local_iov = i & 1 ? &iov : NULL;
		pair[1].num_segments = i >> 1;
		pair[1].local_iov = i >> 1 ? &iov : NULL;
		KD_EXPECT_OK(test, kdat_ep_post_list(env->ep, pair, 2, NULL));
		wr_drain(env, KD_SEND);
	}
}

/**
 * struct wr_fence - fences as one driver has them
 * @driver: whose
 * @iwarp: as an iWARP device
 * @unfenced: requests that it does not fence
 * @front: requests that get an empty fenced Write in front
 * @refused: requests that cannot be fenced at all
 */
struct wr_fence {
	enum rdma_driver_id driver;
	bool iwarp;
	u64 unfenced;
	unsigned int front;
	unsigned int refused;
};

#define WR_BIT(call)	BIT(KD_##call)

static const struct wr_fence wr_fences[] = {
	{ RDMA_DRIVER_UNKNOWN, },
	{ RDMA_DRIVER_MLX4, },
	{ RDMA_DRIVER_MLX5, false, BIT_ULL(IB_WR_REG_MR) },
	{ RDMA_DRIVER_BNXT_RE, false, BIT_ULL(IB_WR_REG_MR) | BIT_ULL(IB_WR_LOCAL_INV) },
	{ RDMA_DRIVER_IRDMA, },
	{ RDMA_DRIVER_IRDMA, true, BIT_ULL(IB_WR_RDMA_READ), WR_BIT(READ) },
	{ RDMA_DRIVER_QEDR, true, BIT_ULL(IB_WR_RDMA_READ), WR_BIT(READ) },
	{ RDMA_DRIVER_CXGB4, true,
	  BIT_ULL(IB_WR_RDMA_WRITE) | BIT_ULL(IB_WR_RDMA_READ) | BIT_ULL(IB_WR_REG_MR),
	  0, WR_BIT(WRITE) | WR_BIT(READ) },
};

/* A fenced request of an ordinary kind: fenced itself, behind a fence, or refused. */
static void wr_fence_one(struct kd_env *env, const struct wr_fence *fence, enum kd_call call)
{
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 8, 0x55);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	unsigned int posted = fake_ib_posted(env->qp, false);
	unsigned int n = fence->front & BIT(call) ? 2 : 1;
	struct kunit *test = env->test;
	struct fake_ib_wr first, wr;
	DAT_RETURN ret;

	ret = kd_post(env->ep, call, 1, &iov, 7, &remote, DAT_COMPLETION_BARRIER_FENCE_FLAG);
	if (fence->refused & BIT(call)) {
		KD_EXPECT_RET(test, ret, DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
		KUNIT_EXPECT_EQ(test, fake_ib_posted(env->qp, false), posted);
		return;
	}
	KD_EXPECT_OK(test, ret);
	KUNIT_ASSERT_EQ(test, fake_ib_posted(env->qp, false), posted + n);
	KUNIT_ASSERT_TRUE(test, fake_ib_wr(env->qp, false, posted, &first));
	KUNIT_ASSERT_TRUE(test, fake_ib_last_wr(env->qp, false, &wr));
	KUNIT_EXPECT_TRUE(test, first.send_flags & IB_SEND_FENCE);
	KUNIT_EXPECT_EQ(test, first.call, wr.call);
	if (n == 2) {
		KUNIT_EXPECT_EQ(test, (int)first.opcode, (int)IB_WR_RDMA_WRITE);
		KUNIT_EXPECT_EQ(test, first.num_sge, 0);
	}
	wr_drain(env, call);
}

/* For each driver what its source honours (adapters.md). */
static void wr_fence_test(struct kunit *test)
{
	static const enum kd_call calls[] = { KD_SEND, KD_WRITE, KD_READ };
	struct kd_env *env = test->priv;
	const struct wr_fence *fence;
	DAT_PROVIDER_ATTR provider;
	struct fake_ib_caps caps;
	struct kdapl_ia *ia;
	DAT_EP_ATTR attr;
	int i, c;

	for (i = 0; i < ARRAY_SIZE(wr_fences); i++) {
		fence = &wr_fences[i];
		memset(&caps, 0, sizeof(caps));
		caps.driver = fence->driver;
		caps.iwarp = fence->iwarp;
		caps.unfenced = fence->unfenced;
		kd_open(test, &caps);
		ia = kdapl_obj_get(env->ia, DAT_HANDLE_TYPE_IA);
		KUNIT_ASSERT_NOT_NULL(test, ia);
		if (fence->iwarp)
			kdapl_quirks_derive(ia->dev, true);
		KD_EXPECT_OK(test, dat_ia_query(env->ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL,
						&provider));
		KUNIT_EXPECT_EQ(test, !(provider.completion_flags_supported &
					DAT_COMPLETION_BARRIER_FENCE_FLAG), !!fence->refused);
		kd_attr(&attr);
		attr.max_rdma_read_iov = 1;
		kd_ep(env, &attr);
		kd_connect(env);
		for (c = 0; c < ARRAY_SIZE(calls); c++)
			wr_fence_one(env, fence, calls[c]);
		kd_ep_free(env);
		kdapl_quirks_derive(ia->dev, false);
		kdapl_obj_put(&ia->obj);
		kd_exit(test);
		memset(env, 0, sizeof(*env));
		env->test = test;
	}
}

static struct kunit_case wr_map_cases[] = {
	KD_CASE(wr_segments_test,
		"EP-POST-05,EP-POST-12,SEND-04,RECV-03,RDMAW-02: segments in order, no empty one"),
	KD_CASE(wr_flags_test,
		"SEND-06,SEND-07,SEND-08,SEND-10,FLAG-08,FLAG-09: operation and flags"),
	KD_CASE(wr_remote_test, "RDMAW-01,RDMAW-03,RDMAW-12,RDMAR-01: remote range"),
	KD_CASE(wr_read_trim_test, "RDMAR-02,RDMAR-03,RDMAR-10: the sink of a Read is trimmed"),
	KD_CASE(wr_max_sge_test, "EP-POST-13,RDMAR-18: as many segments as the device takes"),
	KD_CASE(wr_one_call_test,
		"EP-POST-01,SEND-14,RECV-09,RDMAW-08,RDMAR-09: one call of the device per post"),
	KD_CASE(wr_order_test, "EP-POST-21: requests start in posting order"),
	KD_CASE(wr_iwarp_fence_test, "FLAG-09,RDMAR-06: fenced Read on iWARP"),
	KD_CASE(wr_rxe_fence_test, "FLAG-09: fenced requests on soft-RoCE"),
	KD_CASE(wr_fence_test, "FLAG-09,RDMAW-05,RDMAR-06: fenced requests, driver by driver"),
	KD_CASE(wr_no_list_test, "EP-POST-05,SEND-03: no list where there is no segment"),
	KD_CASE(wr_pair_test, "SEND-03,RDMAW-02: a Write and a Send in one list"),
	{}
};

static struct kunit_suite wr_map_suite = {
	.name = "kdapl-wr-map",
	.suite_init = kd_suite_init,
	.suite_exit = kd_suite_exit,
	.init = kd_init,
	.exit = kd_exit,
	.test_cases = wr_map_cases,
};

kunit_test_suite(wr_map_suite);
