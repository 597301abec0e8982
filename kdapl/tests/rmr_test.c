// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Remote Memory Regions: what reaches the device, what a peer reaches by the keys, and
 * fences. Arguments: mem_args_test.c. Flags, failures, flushes, freeing: mem_op_test.c.
 */
#include <linux/mm.h>

#include "kd_mem.h"

#define RM_ADDR(km)	((km)->env.mem[KD_RW].addr)
#define RM_KEY(km)	((km)->env.mem[KD_RW].lmr_context)
#define RM_LMR(km)	((km)->env.mem[KD_RW].lmr)

/* The device got this request, so many before the last one. */
static void rm_posted(struct km *km, int before, enum ib_wr_opcode opcode, u32 key,
		      struct fake_ib_wr *wr)
{
	struct kunit *test = km->env.test;

	KUNIT_ASSERT_TRUE(test, fake_ib_wr(km->env.qp, false,
					   fake_ib_posted(km->env.qp, false) - 1 - before, wr));
	KUNIT_EXPECT_EQ(test, (int)wr->opcode, (int)opcode);
	KUNIT_EXPECT_EQ(test, wr->rkey, key);
}

static void rm_native_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_RMR_HANDLE rmr = km_rmr(km, false);
	u64 at = RM_ADDR(km), last;
	struct fake_ib_wr first, wr;
	DAT_RMR_CONTEXT a, b;
	DAT_RMR_PARAM param;

	/* fresh: a registration */
	KD_ASSERT_OK(test, km_try_part(km, rmr, 100, 50, 0, 1, &a));
	rm_posted(km, 0, IB_WR_REG_MR, a, &wr);
	KUNIT_EXPECT_EQ(test, wr.remote_addr, at + 100);
	KUNIT_EXPECT_EQ(test, wr.length, 50ULL);
	KUNIT_EXPECT_TRUE(test, wr.send_flags & IB_SEND_SIGNALED);
	/* the LMR is in use as soon as the call has returned */
	KD_BAD_STATE(test, dat_lmr_free(RM_LMR(km)), LMR_IN_USE);
	km_finish_bind(km, rmr, 1);
	KD_EXPECT_EMPTY(test, km->env.req);
	KUNIT_EXPECT_TRUE(test, km_writes(km, a, at + 100) && km_writes(km, a, at + 149));
	KUNIT_EXPECT_FALSE(test, km_writes(km, a, at + 99) || km_writes(km, a, at + 150));
	/* it is for peers only */
	KM_EXPECT_TYPE(test, km_send(km, a, at + 100, 1, 1), DAT_PRIVILEGES_VIOLATION);
	KD_EXPECT_OK(test, dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param));
	KUNIT_EXPECT_EQ(test, param.rmr_context, a);
	KUNIT_EXPECT_EQ(test, (u64)param.lmr_triplet.virtual_address, at + 100);
	KUNIT_EXPECT_EQ(test, (u32)param.lmr_triplet.segment_length, 50U);
	KUNIT_EXPECT_EQ(test, (u32)param.lmr_triplet.lmr_context, RM_KEY(km));

	/* again: the old key goes first, in one chain, fenced; another MR takes over */
	last = at + KD_MEM_SIZE - 1;
	KD_ASSERT_OK(test, km_try_rmr(km, rmr, RM_LMR(km), last, 1, RM_KEY(km),
				      DAT_MEM_PRIV_REMOTE_READ_FLAG, 0, 2, &b));
	KUNIT_EXPECT_NE(test, a >> 8, b >> 8);
	rm_posted(km, 0, IB_WR_REG_MR, b, &wr);
	rm_posted(km, 1, IB_WR_LOCAL_INV, a, &first);
	KUNIT_EXPECT_EQ(test, first.call, wr.call);
	KUNIT_EXPECT_TRUE(test, first.send_flags & IB_SEND_FENCE);
	/* until it is done the peer has what it had */
	KUNIT_EXPECT_TRUE(test, km_writes(km, a, at + 100));
	KUNIT_EXPECT_FALSE(test, km_reads(km, b, last));
	km_finish_bind(km, rmr, 2);
	KD_EXPECT_EMPTY(test, km->env.req);
	KUNIT_EXPECT_FALSE(test, km_writes(km, a, at + 100));
	KUNIT_EXPECT_TRUE(test, km_reads(km, b, last));
	KUNIT_EXPECT_FALSE(test, km_reads(km, b, last + 1));
	KUNIT_EXPECT_FALSE(test, km_writes(km, b, last));

	/* no longer: an invalidation */
	KD_ASSERT_OK(test, km_try_unbind(km, rmr, 3));
	rm_posted(km, 0, IB_WR_LOCAL_INV, b, &wr);
	KD_BAD_STATE(test, dat_lmr_free(RM_LMR(km)), LMR_IN_USE);
	km_finish_bind(km, rmr, 3);
	KUNIT_EXPECT_FALSE(test, km_reads(km, b, last));

	/* once more: nothing to do, and done in its turn */
	KD_ASSERT_OK(test, km_try_unbind(km, rmr, 4));
	km_last(km, &wr);
	KUNIT_EXPECT_EQ(test, (int)wr.opcode, (int)IB_WR_RDMA_WRITE);
	KUNIT_EXPECT_EQ(test, wr.length, 0ULL);
	KD_EXPECT_EMPTY(test, km->env.req);
	km_finish_bind(km, rmr, 4);
	KD_EXPECT_EMPTY(test, km->env.req);

	/* with nothing of the requests before it in that place */
	KD_ASSERT_OK(test, km_try_part(km, rmr, 100, 50, 0, 5, &a));
	km_finish_bind(km, rmr, 5);
	KD_ASSERT_OK(test, km_try_unbind(km, rmr, 6));
	km_finish_bind(km, rmr, 6);
	KD_ASSERT_OK(test, km_try_unbind(km, rmr, 7));
	km_last(km, &wr);
	KUNIT_EXPECT_EQ(test, (int)wr.opcode, (int)IB_WR_RDMA_WRITE);
	KUNIT_EXPECT_EQ(test, wr.remote_addr, 0ULL);
	KUNIT_EXPECT_EQ(test, wr.rkey, 0U);
	km_finish_bind(km, rmr, 7);
}

static void rm_rights_test(struct kunit *test)
{
	static const int rights[KD_NR_MEMS] = {
		[KD_RW] = KM_LOCAL, [KD_RO] = DAT_MEM_PRIV_LOCAL_READ_FLAG,
		[KD_WO] = DAT_MEM_PRIV_LOCAL_WRITE_FLAG, [KD_FOREIGN] = KM_LOCAL,
	};
	struct km *km = km_connected(test, NULL);
	DAT_RMR_HANDLE rmr = km_rmr(km, false);
	int kind, priv, need, access;
	struct fake_ib_wr wr;
	DAT_RMR_CONTEXT key;
	struct kd_mem *mem;
	DAT_RETURN ret;

	for (priv = 0; priv <= KM_ALL; priv++) {
		if (priv & ~KM_ALL)
			continue;
		/* remote rights only, and exactly these; one to write wants the other */
		need = 0;
		access = 0;
		if (priv & DAT_MEM_PRIV_REMOTE_READ_FLAG) {
			need |= DAT_MEM_PRIV_LOCAL_READ_FLAG;
			access |= IB_ACCESS_REMOTE_READ;
		}
		if (priv & DAT_MEM_PRIV_REMOTE_WRITE_FLAG) {
			need |= DAT_MEM_PRIV_LOCAL_WRITE_FLAG;
			access |= IB_ACCESS_REMOTE_WRITE | IB_ACCESS_LOCAL_WRITE;
		}
		for (kind = 0; kind < KD_NR_MEMS; kind++) {
			mem = &km->env.mem[kind];
			ret = km_try_rmr(km, rmr, mem->lmr, mem->addr, 16, mem->lmr_context, priv,
					 0, priv, &key);
			if (kind == KD_FOREIGN) {
				KM_EXPECT_TYPE(test, ret, DAT_PROTECTION_VIOLATION);
			} else if (need & ~rights[kind]) {
				KM_EXPECT_TYPE(test, ret, DAT_PRIVILEGES_VIOLATION);
			} else {
				KD_ASSERT_OK(test, ret);
				km_last(km, &wr);
				KUNIT_EXPECT_EQ(test, wr.access, access);
				km_finish_bind(km, rmr, priv);
			}
		}
	}
}

/* What was posted last: @n requests, and the first of two invalidates @first, or nothing. */
static void rm_expect_chain(struct km *km, unsigned int *posted, unsigned int n, u32 first)
{
	struct kunit *test = km->env.test;
	struct fake_ib_wr wr;

	KUNIT_EXPECT_EQ(test, fake_ib_posted(km->env.qp, false), *posted + n);
	KUNIT_ASSERT_TRUE(test, fake_ib_wr(km->env.qp, false, *posted, &wr));
	KUNIT_EXPECT_EQ(test, (int)wr.opcode, (int)IB_WR_LOCAL_INV);
	KUNIT_EXPECT_EQ(test, wr.rkey, first);
	*posted += n;
	km_settle(km);
}

/* Never a fence of soft-RoCE's own, which the device here complains of. */
static void rm_rxe_fence_test(struct kunit *test)
{
	static const struct fake_ib_caps caps = { .driver = RDMA_DRIVER_RXE };
	const int fence = DAT_COMPLETION_BARRIER_FENCE_FLAG;
	struct km *km = km_open(test, &caps);
	DAT_LMR_HANDLE lmr = km_lmr(km, 1, DAT_LMR_SCOPE_PZ);
	unsigned int posted;
	DAT_RMR_CONTEXT a, b;
	struct km_keys keys;
	DAT_RMR_HANDLE rmr;
	u32 nothing;

	km_join(km, 0, NULL);
	rmr = km_rmr(km, false);
	nothing = kd_conn_of(&km->env)->pd->fence->rkey;
	posted = fake_ib_posted(km->env.qp, false);
	KD_EXPECT_OK(test, km_try_fmr(km, lmr, 0, 1, KM_LOCAL, fence, 1, &keys));
	rm_expect_chain(km, &posted, 2, nothing);
	KUNIT_EXPECT_TRUE(test, km_bound(km, lmr));
	KD_EXPECT_OK(test, km_try_inv(km, lmr, DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG, 2));
	rm_expect_chain(km, &posted, 1, keys.lmr);
	KUNIT_EXPECT_FALSE(test, km_bound(km, lmr));
	KD_EXPECT_OK(test, km_try_part(km, rmr, 0, 8, fence, 3, &a));
	rm_expect_chain(km, &posted, 2, nothing);
	KD_EXPECT_OK(test, km_try_part(km, rmr, 0, 8, fence, 4, &b));
	rm_expect_chain(km, &posted, 2, a);
	KUNIT_EXPECT_TRUE(test, km_reads(km, b, RM_ADDR(km)));
	KUNIT_EXPECT_FALSE(test, km_reads(km, nothing, RM_ADDR(km)));
	/* flushed behind a fence, nothing is missing and nothing comes twice */
	KD_EXPECT_OK(test, km_try_fmr(km, lmr, 0, 1, KM_LOCAL, fence, 5, &keys));
	fake_ib_complete_all(km->env.qp, false, IB_WC_WR_FLUSH_ERR);
	km_expect(km, DAT_DTO_LMR_FMR, 5, DAT_DTO_ERR_FLUSHED);
	KD_EXPECT_EMPTY(test, km->env.req);
}

/*
 * Fenced operations on memory as one driver has them: opcodes, each one in four bits, last
 * first; 0: refused.
 */
struct rm_fence {
	enum rdma_driver_id driver;
	u64 unfenced;		/* requests that it does not fence */
	u16 fmr;
	u16 inv;
	u16 bind;		/* of an RMR that was unbound */
	u16 rebind;		/* of one that was bound */
};

enum { RM_REG = 1, RM_INV, RM_WRITE };

static const struct rm_fence rm_fences[] = {
	{ RDMA_DRIVER_UNKNOWN, 0, 0x1, 0x2, 0x1, 0x12 },
	{ RDMA_DRIVER_MLX5, BIT_ULL(IB_WR_REG_MR), 0x13, 0x2, 0x13, 0x12 },
	{ RDMA_DRIVER_BNXT_RE, BIT_ULL(IB_WR_REG_MR) | BIT_ULL(IB_WR_LOCAL_INV),
	  0x13, 0x23, 0x13, 0x123 },
	{ RDMA_DRIVER_CXGB4, BIT_ULL(IB_WR_RDMA_WRITE) | BIT_ULL(IB_WR_REG_MR), 0, 0x2, 0, 0 },
};

static int rm_kind(enum ib_wr_opcode opcode)
{
	return opcode == IB_WR_REG_MR ? RM_REG : opcode == IB_WR_LOCAL_INV ? RM_INV : RM_WRITE;
}

/* The device got these requests in one call, and the first of them fences. */
static void rm_expect_fenced(struct km *km, unsigned int *posted, DAT_RETURN ret, u16 want)
{
	struct kunit *test = km->env.test;
	struct fake_ib_wr wr;
	unsigned int call = 0;
	u16 left;

	if (want)
		KD_EXPECT_OK(test, ret);
	else
		KD_EXPECT_RET(test, ret, DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	for (left = want; left; left >>= 4) {
		KUNIT_ASSERT_TRUE(test, fake_ib_wr(km->env.qp, false, *posted, &wr));
		KUNIT_EXPECT_EQ(test, rm_kind(wr.opcode), left & 15);
		if (left == want) {
			KUNIT_EXPECT_TRUE(test, wr.send_flags & IB_SEND_FENCE);
			call = wr.call;
		}
		KUNIT_EXPECT_EQ(test, wr.call, call);
		++*posted;
	}
	KUNIT_EXPECT_EQ(test, fake_ib_posted(km->env.qp, false), *posted);
	km_settle(km);
}

static void rm_fence_test(struct kunit *test)
{
	const int fence = DAT_COMPLETION_BARRIER_FENCE_FLAG;
	const struct rm_fence *f;
	struct fake_ib_caps caps;
	unsigned int posted, i;
	DAT_LMR_HANDLE lmr;
	DAT_RMR_CONTEXT key;
	struct km_keys keys;
	DAT_RMR_HANDLE rmr;
	struct km *km;

	for (i = 0; i < ARRAY_SIZE(rm_fences); i++) {
		f = &rm_fences[i];
		memset(&caps, 0, sizeof(caps));
		caps.driver = f->driver;
		caps.unfenced = f->unfenced;
		km = km_open(test, &caps);
		lmr = km_lmr(km, 1, DAT_LMR_SCOPE_PZ);
		km_join(km, 0, NULL);
		rmr = km_rmr(km, false);
		posted = fake_ib_posted(km->env.qp, false);
		rm_expect_fenced(km, &posted, km_try_fmr(km, lmr, 0, 1, KM_LOCAL, fence, 1, &keys),
				 f->fmr);
		KUNIT_EXPECT_EQ(test, km_bound(km, lmr), !!f->fmr);
		if (!f->fmr) {
			km_bind(km, lmr, 0, 1, KM_LOCAL, &keys);
			posted++;
		}
		rm_expect_fenced(km, &posted, km_try_inv(km, lmr, fence, 2), f->inv);
		rm_expect_fenced(km, &posted,
				 km_try_part(km, rmr, 0, 8, fence, 3, &key), f->bind);
		if (!f->bind) {
			KD_EXPECT_OK(test, km_try_part(km, rmr, 0, 8, 0, 3, &key));
			km_settle(km);
			posted++;
		}
		rm_expect_fenced(km, &posted,
				 km_try_part(km, rmr, 0, 8, fence, 4, &key), f->rebind);
	}
}

/* As many rebinds as requests, where each takes three places: its fence, an end, a beginning. */
static void rm_fence_room_test(struct kunit *test)
{
	static const struct fake_ib_caps caps = {
		.driver = RDMA_DRIVER_BNXT_RE,
		.unfenced = BIT_ULL(IB_WR_REG_MR) | BIT_ULL(IB_WR_LOCAL_INV),
	};
	const int fence = DAT_COMPLETION_BARRIER_FENCE_FLAG;
	struct km *km = km_open(test, &caps);
	DAT_RMR_HANDLE rmr[2];
	DAT_RMR_CONTEXT key;
	DAT_EP_ATTR attr;
	int i;

	kd_attr(&attr);
	attr.max_request_dtos = ARRAY_SIZE(rmr);
	km_join(km, 0, &attr);
	for (i = 0; i < ARRAY_SIZE(rmr); i++) {
		rmr[i] = km_rmr(km, false);
		KD_EXPECT_OK(test, km_try_part(km, rmr[i], 0, 8, 0, i, &key));
	}
	km_settle(km);
	for (i = 0; i < ARRAY_SIZE(rmr); i++)
		KD_EXPECT_OK(test, km_try_part(km, rmr[i], 0, 8, fence, i, &key));
	km_settle(km);
}

/* Over an LMR that is bound by fmr: its binding may not end below the RMR. */
static void rm_fmr_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_LMR_HANDLE lmr = km_lmr(km, 4, DAT_LMR_SCOPE_PZ);
	DAT_RMR_HANDLE rmr = km_rmr(km, false);
	DAT_RMR_CONTEXT key;
	struct km_keys keys;
	u8 byte;

	km_fill(km, 77);
	KM_EXPECT_TYPE(test, km_try_rmr(km, rmr, lmr, km->pa[0], 8, 0, KM_REMOTE, 0, 1, &key),
		       DAT_INVALID_PARAMETER);
	/* one list of three: binding, window, message; no completion in between */
	KD_EXPECT_OK(test, km_try_fmr(km, lmr, 0, 4, KM_LOCAL, 0, 1, &keys));
	KD_EXPECT_OK(test, km_try_rmr(km, rmr, lmr, km->pa[0] + 100, 2 * PAGE_SIZE, keys.lmr,
				      KM_REMOTE, 0, 2, &key));
	KD_EXPECT_OK(test, km_send(km, keys.lmr, km->pa[0], 8, 3));
	KUNIT_EXPECT_EQ(test, fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS), 3);
	km_expect(km, DAT_DTO_LMR_FMR, 1, DAT_DTO_SUCCESS);
	km_expect_bind(km, rmr, 2, DAT_RMR_BIND_SUCCESS);
	km_expect(km, DAT_DTO_SEND, 3, DAT_DTO_SUCCESS);
	KUNIT_EXPECT_EQ(test, fake_ib_access(km->env.dev, key, km->pa[0] + 2 * PAGE_SIZE, &byte, 1,
					     IB_ACCESS_REMOTE_READ), 0);
	KUNIT_EXPECT_EQ(test, byte, km_byte(77, 2, 0));
	KD_BAD_STATE(test, km_try_inv(km, lmr, 0, 4), LMR_IN_USE);
	KD_BAD_STATE(test, dat_lmr_free(lmr), LMR_IN_USE);
	KUNIT_EXPECT_TRUE(test, km_bound(km, lmr));
	KD_EXPECT_OK(test, km_try_unbind(km, rmr, 5));
	/* done, not yet looked at: the invalidate looks */
	km_done(km, IB_WC_SUCCESS);
	KD_EXPECT_OK(test, km_try_inv(km, lmr, 0, 6));
	km_finish_bind(km, rmr, 5);
	km_expect(km, DAT_DTO_LMR_INVALIDATE, 6, DAT_DTO_SUCCESS);
	KUNIT_EXPECT_FALSE(test, km_bound(km, lmr));
}

static struct kunit_case rmr_cases[] = {
	KD_CASE(rm_native_test,
		"RMR-02..06,RMR-08,RMR-09,RMR-13,SIL-14,LMR-FREE-01: a life"),
	KD_CASE(rm_rights_test, "RMR-07,RMR-09,LMR-09: every right over every kind of LMR"),
	KD_CASE(rm_fence_test,
		"FLAG-09,FMR-03,FMR-11,RMR-03: fenced operations on memory, driver by driver"),
	KD_CASE(rm_fence_room_test, "EP-POST-17,FLAG-09: room for fenced rebinds"),
	KD_CASE(rm_rxe_fence_test, "FLAG-09,FLAG-10,FLUSH-03: fenced registrations on soft-RoCE"),
	KD_CASE(rm_fmr_test, "RMR-05,RMR-13,FMR-13,LMR-FREE-01: over an LMR bound by fmr"),
	{}
};

KD_SUITE("kdapl-rmr", rmr_cases, km_init, km_exit);
