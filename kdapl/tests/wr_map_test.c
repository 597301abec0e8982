// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * What reaches the device: segments, operation, flags, remote range; one call of it
 * for each post, made with interrupts off and without allocations.
 */
#include "kd_cost.h"
#include "kd_upcall.h"

static const enum kd_call wr_requests[] = { KD_SEND, KD_WRITE, KD_READ };

/*
 * Post and fetch what the device was handed, @front requests in front of it included; the
 * list is scribbled over before.
 */
static void wr_post_behind(struct kd_env *env, enum kd_call call, int num,
			   const DAT_LMR_TRIPLET *iov, const DAT_RMR_TRIPLET *remote, int flags,
			   int front, struct fake_ib_wr *first, struct fake_ib_wr *wr)
{
	bool recv = kd_is_recv(call);
	unsigned int posted = fake_ib_posted(env->qp, recv);
	DAT_LMR_TRIPLET copy[FAKE_IB_MAX_SGE];
	DAT_RMR_TRIPLET copy_remote = {};
	struct kunit *test = env->test;
	struct kd_cost cost;

	memcpy(copy, iov, num * sizeof(*iov));
	if (remote)
		copy_remote = *remote;
	KD_ASSERT_OK(test, KD_COST(env, &cost, kd_post(env->ep, call, num, num ? copy : NULL, 7,
						       remote ? &copy_remote : NULL, flags)));
	memset(copy, 0xee, sizeof(copy));
	memset(&copy_remote, 0xee, sizeof(copy_remote));
	KUNIT_EXPECT_EQ(test, cost.verbs, 1U);
	KUNIT_EXPECT_EQ(test, recv ? cost.recv : cost.send, 1U);
	KUNIT_EXPECT_EQ(test, cost.polls, 0U);
	KUNIT_ASSERT_EQ(test, cost.wrs, 1U + front);
	KUNIT_ASSERT_TRUE(test, fake_ib_wr(env->qp, recv, posted, first));
	KUNIT_ASSERT_TRUE(test, fake_ib_last_wr(env->qp, recv, wr));
	KUNIT_EXPECT_EQ(test, first->call, wr->call);
	KD_EXPECT_EMPTY(test, kd_evd_of(env, call));
}

static void wr_post(struct kd_env *env, enum kd_call call, int num, const DAT_LMR_TRIPLET *iov,
		    const DAT_RMR_TRIPLET *remote, int flags, struct fake_ib_wr *wr)
{
	struct fake_ib_wr first;

	wr_post_behind(env, call, num, iov, remote, flags, 0, &first, wr);
}

static void wr_drain(struct kd_env *env, enum kd_call call)
{
	fake_ib_complete_all(env->qp, kd_is_recv(call), IB_WC_SUCCESS);
	kd_drain(kd_evd_of(env, call));
}

/* An EP all of whose flags are legal. */
static struct kd_env *wr_open(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_EP_ATTR attr;

	kd_attr(&attr);
	attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	attr.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	kd_ep(env, &attr);
	kd_connect(env);
	kd_settle(env->req);	/* the core has armed the CQs of the registrations */
	return env;
}

/* A post with some of its segments empty, and rubbish in these. */
static void wr_segments_one(struct kd_env *env, enum kd_call call, int num, int empty)
{
	static const u64 addrs[] = { 0, 4096, 0x123456789abcdef0ULL, ~0ULL - 200 };
	static const u32 keys[] = { 0, 1, 0x100, 0x80000000, 0xffffffff, 0xdeadbeef };
	DAT_RMR_TRIPLET remote = kd_remote(addrs[empty % 4], 0, keys[(num + empty) % 6]);
	bool rdma = call == KD_WRITE || call == KD_READ;
	struct kunit *test = env->test;
	DAT_LMR_TRIPLET iov[4];
	struct fake_ib_wr wr;
	int i, n;

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
		KUNIT_EXPECT_EQ(test, wr.sge[n].addr, (u64)iov[i].virtual_address);
		KUNIT_EXPECT_EQ(test, wr.sge[n].length, 5 + 7 * i);
		KUNIT_EXPECT_EQ(test, wr.sge[n++].lkey, (u32)iov[i].lmr_context);
	}
	KUNIT_EXPECT_EQ(test, wr.num_sge, n);
	KUNIT_EXPECT_EQ(test, wr.remote_addr, rdma ? (u64)remote.virtual_address : 0);
	KUNIT_EXPECT_EQ(test, wr.rkey, rdma ? (u32)remote.rmr_context : 0);
	wr_drain(env, call);
}

static void wr_segments_test(struct kunit *test)
{
	struct kd_env *env = wr_open(test);
	enum kd_call call;
	int num, empty;

	for (call = 0; call < KD_NR_CALLS; call++)
		for (num = 0; num <= (call == KD_READ ? 3 : 4); num++)
			for (empty = 0; empty < BIT(num); empty++)
				wr_segments_one(env, call, num, empty);
	/* no segment, no list: some drivers look at its first entry, and the device here */
	KUNIT_EXPECT_EQ_MSG(test, fake_ib_violations(env->dev), 0, "%s",
			    fake_ib_last_violation(env->dev));
}

static void wr_flags_test(struct kunit *test)
{
	static const enum ib_wr_opcode opcodes[] = {
		[KD_SEND] = IB_WR_SEND, [KD_WRITE] = IB_WR_RDMA_WRITE, [KD_READ] = IB_WR_RDMA_READ,
	};
	struct kd_env *env = wr_open(test);
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 8, 0x55);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	struct fake_ib_wr wr;
	int flags, want, c;

	for (c = 0; c < 16 * ARRAY_SIZE(wr_requests); c++) {
		enum kd_call call = wr_requests[c / 16];

		flags = c % 16;
		if ((flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG) && call != KD_SEND)
			continue;
		want = (flags & DAT_COMPLETION_BARRIER_FENCE_FLAG ? IB_SEND_FENCE : 0) |
		       (flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG ? IB_SEND_SOLICITED : 0) |
		       (flags & DAT_COMPLETION_SUPPRESS_FLAG ? 0 : IB_SEND_SIGNALED);
		/* a signaled request first, so that no signal is forced */
		wr_post(env, call, 1, &iov, &remote, 0, &wr);
		KUNIT_EXPECT_EQ(test, wr.send_flags, (int)IB_SEND_SIGNALED);
		wr_post(env, call, 1, &iov, &remote, flags, &wr);
		KUNIT_EXPECT_EQ_MSG(test, wr.send_flags, want, "%s, flags %#x", kd_call_names[call],
				    flags);
		KUNIT_EXPECT_EQ(test, (int)wr.opcode, (int)opcodes[call]);
		wr_post(env, call, 1, &iov, &remote, 0, &wr);
		wr_drain(env, call);
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
	int i;

	kd_ep(env, NULL);
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
 * @front: requests that get one in front that is fenced instead
 * @refused: requests that cannot be fenced at all
 * @by: what goes in front
 */
struct wr_fence {
	enum rdma_driver_id driver;
	bool iwarp;
	u64 unfenced;
	unsigned int front;
	unsigned int refused;
	enum ib_wr_opcode by;
};

#define WR_BIT(call)	BIT(KD_##call)
#define WR_ALL		(WR_BIT(SEND) | WR_BIT(WRITE) | WR_BIT(READ))

static const struct wr_fence wr_fences[] = {
	{ RDMA_DRIVER_UNKNOWN, },
	{ RDMA_DRIVER_MLX4, },
	{ RDMA_DRIVER_MLX5, false, BIT_ULL(IB_WR_REG_MR) },
	{ RDMA_DRIVER_BNXT_RE, false, BIT_ULL(IB_WR_REG_MR) | BIT_ULL(IB_WR_LOCAL_INV) },
	{ RDMA_DRIVER_IRDMA, },
	{ RDMA_DRIVER_UNKNOWN, true, 0, WR_BIT(READ), 0, IB_WR_RDMA_WRITE },
	{ RDMA_DRIVER_IRDMA, true, BIT_ULL(IB_WR_RDMA_READ), WR_BIT(READ), 0, IB_WR_RDMA_WRITE },
	{ RDMA_DRIVER_QEDR, true, BIT_ULL(IB_WR_RDMA_READ), WR_BIT(READ), 0, IB_WR_RDMA_WRITE },
	{ RDMA_DRIVER_CXGB4, true,
	  BIT_ULL(IB_WR_RDMA_WRITE) | BIT_ULL(IB_WR_RDMA_READ) | BIT_ULL(IB_WR_REG_MR),
	  0, WR_BIT(WRITE) | WR_BIT(READ) },
	/* there a fenced request that is sent again may wait for itself: nothing is fenced */
	{ RDMA_DRIVER_RXE, false, 0, WR_ALL, 0, IB_WR_LOCAL_INV },
};

/* A fenced request: fenced itself, behind a fence, or refused. The consumer sees one. */
static void wr_fence_one(struct kd_env *env, const struct wr_fence *fence, enum kd_call call)
{
	bool inv = fence->by == IB_WR_LOCAL_INV, front = fence->front & BIT(call);
	unsigned int posted = fake_ib_posted(env->qp, false);
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 8, 0x55);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	struct kunit *test = env->test;
	struct fake_ib_wr first, wr;

	if (fence->refused & BIT(call)) {
		KD_EXPECT_RET(test, kd_post(env->ep, call, 1, &iov, 7, &remote,
					    DAT_COMPLETION_BARRIER_FENCE_FLAG),
			      DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
		KUNIT_EXPECT_EQ(test, fake_ib_posted(env->qp, false), posted);
		return;
	}
	wr_post_behind(env, call, 1, &iov, &remote, DAT_COMPLETION_BARRIER_FENCE_FLAG, front,
		       &first, &wr);
	KUNIT_EXPECT_EQ(test, wr.send_flags, (int)IB_SEND_SIGNALED | (front ? 0 : IB_SEND_FENCE));
	if (front) {
		KUNIT_EXPECT_EQ(test, (int)first.opcode, (int)fence->by);
		KUNIT_EXPECT_EQ(test, first.num_sge, 0);
		KUNIT_EXPECT_EQ(test, first.send_flags, inv ? 0 : (int)IB_SEND_FENCE);
		if (inv)
			KUNIT_EXPECT_EQ(test, first.rkey, kd_conn_of(env)->pd->fence->rkey);
	}
	KUNIT_EXPECT_EQ(test, fake_ib_complete_all(env->qp, false, IB_WC_SUCCESS), 1 + front);
	kd_expect_dtos(test, env->req, 7, 1, DAT_DTO_SUCCESS);
}

/* For each driver what its source honours (adapters.md), more often than the queue is long. */
static void wr_fence_test(struct kunit *test)
{
	struct kd_env *env = test->priv;
	const struct wr_fence *fence;
	DAT_PROVIDER_ATTR provider;
	struct kdapl_ia *ia;
	DAT_EP_ATTR attr;
	int i, c, refused;

	for (i = 0; i < ARRAY_SIZE(wr_fences); i++) {
		struct fake_ib_caps caps = {};

		fence = &wr_fences[i];
		caps.driver = fence->driver;
		caps.iwarp = fence->iwarp;
		caps.unfenced = fence->unfenced;
		kd_open(test, &caps);
		ia = kd_ia(env);
		if (fence->iwarp)
			kdapl_quirks_derive(ia->dev, true);
		KD_EXPECT_OK(test, dat_ia_query(env->ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL,
						&provider));
		refused = !(provider.completion_flags_supported &
			    DAT_COMPLETION_BARRIER_FENCE_FLAG);
		KUNIT_EXPECT_EQ(test, refused, !!fence->refused);
		kd_attr(&attr);
		attr.max_rdma_read_iov = 1;
		kd_ep(env, &attr);
		kd_connect(env);
		kd_settle(env->req);	/* as in wr_open() */
		for (c = 0; c < 8 * ARRAY_SIZE(wr_requests); c++)
			wr_fence_one(env, fence, wr_requests[c % ARRAY_SIZE(wr_requests)]);
		kd_ep_free(env);
		if (fence->iwarp)
			kdapl_quirks_derive(ia->dev, false);
		kd_again(test);
	}
}

/* A queue full of requests with another one in front of each, twice. */
static void wr_fence_full_test(struct kunit *test)
{
	static const struct fake_ib_caps caps = { .driver = RDMA_DRIVER_RXE };
	struct kd_env *env = kd_open(test, &caps);
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 8, 0x55);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	int i, round;

	kd_ep(env, NULL);
	kd_connect(env);
	for (round = 0; round < 2; round++) {
		for (i = 0; i < 8; i++)
			KD_EXPECT_OK(test, kd_post(env->ep, wr_requests[i % 3], 1, &iov, i, &remote,
						   DAT_COMPLETION_BARRIER_FENCE_FLAG));
		KUNIT_EXPECT_EQ(test, fake_ib_complete_all(env->qp, false, IB_WC_SUCCESS), 16);
		kd_expect_dtos(test, env->req, 0, 8, DAT_DTO_SUCCESS);
	}
}

static struct kunit_case wr_map_cases[] = {
	KD_CASE(wr_segments_test,
		"EP-POST-01..02,SEND-13..15,RECV-08..09,RDMAW-07..08,RDMAR-08..09: one call"),
	KD_CASE(wr_flags_test,
		"SEND-06,SEND-07,SEND-08,SEND-10,FLAG-08,FLAG-09: operation and flags"),
	KD_CASE(wr_fence_test,
		"FLAG-09,EP-POST-02,RDMAW-05,RDMAR-06: fenced requests, driver by driver"),
	KD_CASE(wr_fence_full_test, "FLAG-09,EP-POST-17: a queue full of them on soft-RoCE"),
	KD_CASE(wr_pair_test, "SEND-03,RDMAW-02: a Write and a Send in one list"),
	{}
};

KD_SUITE("kdapl-wr-map", wr_map_cases, kd_cost_init, kd_cost_exit);
