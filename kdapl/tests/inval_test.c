// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Invalidation across the wire: the Send that asks for it, the Receive that tells
 * of it, on EPs and SRQs, and RDMA Read into an RMR.
 */
#include <linux/mm.h>

#include "kd_mem.h"
#include "kd_srq.h"

#define IN_ALL		DAT_MEM_PRIV_ALL_FLAG

static DAT_RETURN in_send(struct km *km, int num, DAT_LMR_TRIPLET *iov, u64 cookie, int flags,
			  DAT_BOOLEAN invalidate, DAT_RMR_CONTEXT key)
{
	DAT_DTO_COOKIE c = { .as_64 = cookie };

	return dat_ep_post_send_with_invalidate(km->env.ep, num, iov, c, flags, invalidate, key);
}

static void in_send_test(struct kunit *test)
{
	static const u32 keys[] = { 0, 1, 0x80000000, 0xffffffff, 0x12345678 };
	struct km *km = km_open(test, NULL);
	DAT_LMR_TRIPLET iov;
	struct fake_ib_wr wr;
	DAT_EP_ATTR attr;
	int i, flags, inv, want;

	kd_attr(&attr);
	attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	km_ep(km, 0, &attr);
	kd_connect(&km->env);
	for (flags = 0; flags < 16; flags++) {
		for (inv = 0; inv < 2; inv++) {
			for (i = 0; i < ARRAY_SIZE(keys); i++) {
				/* first a signaled one: then no signal is forced */
				KD_EXPECT_OK(test, in_send(km, 0, NULL, 8, 0, DAT_FALSE, 0));
				iov = kd_seg(&km->env, KD_RO, 3, 5);
				KD_EXPECT_OK(test, in_send(km, 1, &iov, 9, flags, inv, keys[i]));
				memset(&iov, 0xee, sizeof(iov));
				km_last(km, &wr);
				KUNIT_EXPECT_EQ(test, (int)wr.opcode,
						(int)(inv ? IB_WR_SEND_WITH_INV : IB_WR_SEND));
				if (inv)
					KUNIT_EXPECT_EQ(test, wr.rkey, keys[i]);
				want = flags & DAT_COMPLETION_BARRIER_FENCE_FLAG ?
				       IB_SEND_FENCE : 0;
				if (flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG)
					want |= IB_SEND_SOLICITED;
				if (!(flags & DAT_COMPLETION_SUPPRESS_FLAG))
					want |= IB_SEND_SIGNALED;
				KUNIT_EXPECT_EQ(test, wr.send_flags, want);
				KUNIT_EXPECT_EQ(test, wr.num_sge, 1);
				KUNIT_EXPECT_EQ(test, wr.length, 5ULL);
				fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS);
				km_expect(km, DAT_DTO_SEND, 8, DAT_DTO_SUCCESS);
				if (!(flags & DAT_COMPLETION_SUPPRESS_FLAG))
					km_expect(km, DAT_DTO_SEND, 9, DAT_DTO_SUCCESS);
				KD_EXPECT_EMPTY(test, km->env.req);
			}
		}
	}
}

static void in_send_args_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_LMR_TRIPLET iov[5], one;
	struct km_trace before;
	int i;

	for (i = 0; i < 5; i++)
		iov[i] = kd_seg(&km->env, KD_RW, 8 * i, 8);
	km_trace(km, &before);
	KD_EXPECT_RET(test, in_send(km, -1, iov, 0, 0, DAT_TRUE, 1), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG2);
	KD_EXPECT_RET(test, in_send(km, 5, iov, 0, 0, DAT_TRUE, 1), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG2);
	KD_EXPECT_RET(test, in_send(km, 1, NULL, 0, 0, DAT_TRUE, 1), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
	KD_EXPECT_RET(test, in_send(km, 1, iov, 0, DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG,
				    DAT_TRUE, 1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	KD_EXPECT_RET(test, in_send(km, 1, iov, 0, DAT_COMPLETION_UNSIGNALLED_FLAG, DAT_TRUE, 1),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG5);
	one = kd_seg(&km->env, KD_WO, 0, 8);
	KD_EXPECT_RET(test, in_send(km, 1, &one, 0, 0, DAT_TRUE, 1), DAT_PRIVILEGES_VIOLATION,
		      DAT_PRIVILEGES_READ);
	one = kd_seg(&km->env, KD_FOREIGN, 0, 8);
	KM_EXPECT_TYPE(test, in_send(km, 1, &one, 0, 0, DAT_TRUE, 1), DAT_PROTECTION_VIOLATION);
	one = kd_seg(&km->env, KD_RW, KD_MEM_SIZE, 1);
	KD_EXPECT_RET(test, in_send(km, 1, &one, 0, 0, DAT_TRUE, 1), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
	km_untouched(km, &before, "arguments");
	km_down(km);
	KD_EXPECT_OK(test, in_send(km, 1, iov, 7, 0, DAT_TRUE, 1));
	km_expect(km, DAT_DTO_SEND, 7, DAT_DTO_ERR_FLUSHED);
}

static void in_send_fails_test(struct kunit *test)
{
	static const struct { enum ib_wc_status wc; int status; } why[] = {
		{ IB_WC_REM_ACCESS_ERR, DAT_DTO_ERR_REMOTE_ACCESS },
		{ IB_WC_REM_OP_ERR, DAT_DTO_ERR_REMOTE_RESPONDER },
	};
	struct km *km = km_open(test, NULL);
	int i;

	for (i = 0; i < ARRAY_SIZE(why); i++) {
		km_ep(km, 0, NULL);
		kd_connect(&km->env);
		KD_EXPECT_OK(test, in_send(km, 0, NULL, 1, 0, DAT_TRUE, 0x123));
		km_done(km, why[i].wc);
		km_expect(km, DAT_DTO_SEND, 1, why[i].status);
		KUNIT_EXPECT_EQ(test, kd_expect_end(&km->env), (u32)DAT_CONNECTION_EVENT_BROKEN);
		km_ep_free(km, 0);
	}
}

static void in_recv_post(struct km *km, u64 cookie)
{
	DAT_LMR_TRIPLET iov = kd_seg(&km->env, KD_WO, 0, 64);

	KD_EXPECT_OK(km->env.test, kd_post(km->env.ep, KD_RECV, 1, &iov, cookie, NULL, 0));
}

static void in_expect_recv(struct kunit *test, DAT_EVD_HANDLE evd, u64 cookie, DAT_RMR_CONTEXT key)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;

	dto = &event.event_data.dto_completion_event_data;
	KUNIT_ASSERT_TRUE(test, kd_next(evd, &event));
	KUNIT_EXPECT_EQ(test, (u64)dto->user_cookie.as_64, cookie);
	KUNIT_EXPECT_EQ(test, (int)dto->status, (int)DAT_DTO_SUCCESS);
	KUNIT_EXPECT_EQ(test, (int)dto->operation,
			(int)(key ? DAT_DTO_RECEIVE_WITH_INVALIDATE : DAT_DTO_RECEIVE));
	if (key)
		KUNIT_EXPECT_EQ(test, dto->rmr_context, key);
	KUNIT_EXPECT_EQ(test, (u32)dto->transfered_length, 12U);
}

static void in_recv_fmr_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_LMR_HANDLE lmr = km_lmr(km, 2, DAT_LMR_SCOPE_PZ);
	struct km_keys keys, next;
	int round;

	for (round = 0; round < 20; round++) {
		km_bind(km, lmr, 0, 2, IN_ALL, &keys);
		in_recv_post(km, round);
		KUNIT_EXPECT_EQ(test, fake_ib_recv_inv(km->env.qp, 12, keys.rmr), 0);
		KUNIT_EXPECT_FALSE(test, fake_ib_mr_valid(km->env.dev, keys.rmr));
		if (round & 1) {
			/* reported: unbound, and neither key is worth anything */
			in_expect_recv(test, km->env.recv, round, keys.rmr);
			KUNIT_EXPECT_FALSE(test, km_bound(km, lmr));
			KM_EXPECT_TYPE(test, km_send(km, keys.lmr, km->pa[0], 8, 1),
				       DAT_PRIVILEGES_VIOLATION);
			KD_EXPECT_RET(test, km_try_inv(km, lmr, 0, 1), DAT_INVALID_STATE,
				      DAT_INVALID_STATE_LMR_FREE);
		} else if (round & 2) {
			/* not yet: the consumer invalidates it, too */
			KD_EXPECT_OK(test, km_try_inv(km, lmr, 0, 5));
			in_expect_recv(test, km->env.recv, round, keys.rmr);
			KUNIT_EXPECT_FALSE(test, km_bound(km, lmr));
			KM_EXPECT_TYPE(test, km_try_fmr(km, lmr, 0, 2, IN_ALL, 0, 6, &next),
				       DAT_INVALID_STATE);
			km_done(km, IB_WC_SUCCESS);
			km_expect(km, DAT_DTO_LMR_INVALIDATE, 5, DAT_DTO_SUCCESS);
		} else {
			/* the same in the other order */
			KD_EXPECT_OK(test, km_try_inv(km, lmr, 0, 5));
			km_done(km, IB_WC_SUCCESS);
			km_expect(km, DAT_DTO_LMR_INVALIDATE, 5, DAT_DTO_SUCCESS);
			/* a late report of the old key does nothing to the new binding */
			km_bind(km, lmr, 2, 2, IN_ALL, &next);
			in_expect_recv(test, km->env.recv, round, keys.rmr);
			KUNIT_EXPECT_TRUE(test, km_bound(km, lmr));
			KD_EXPECT_OK(test, km_send(km, next.lmr, km->pa[2], 8, 1));
			km_done(km, IB_WC_SUCCESS);
			km_expect(km, DAT_DTO_SEND, 1, DAT_DTO_SUCCESS);
			km_unbind(km, lmr);
		}
	}
}

static void in_recv_kcreate_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	struct kd_mem *mem = &km->env.mem[KD_RW];
	DAT_LMR_PARAM param;
	u8 byte;

	in_recv_post(km, 1);
	in_recv_post(km, 2);
	KUNIT_EXPECT_EQ(test, fake_ib_recv_inv(km->env.qp, 12, mem->rmr_context), 0);
	KUNIT_EXPECT_EQ(test, fake_ib_recv(km->env.qp, 12, false), 0);
	in_expect_recv(test, km->env.recv, 1, mem->rmr_context);
	in_expect_recv(test, km->env.recv, 2, 0);
	/* it stands for nothing until it is freed, and freeing it works */
	km_param(km, mem->lmr, &param);
	KUNIT_EXPECT_FALSE(test, param.lmr_state.bound);
	KM_EXPECT_TYPE(test, km_send(km, mem->lmr_context, mem->addr, 8, 1),
		       DAT_PRIVILEGES_VIOLATION);
	KUNIT_EXPECT_EQ(test, fake_ib_access(km->env.dev, mem->rmr_context, mem->addr, &byte, 1,
					     IB_ACCESS_REMOTE_READ), -EACCES);
	KUNIT_EXPECT_TRUE(test, km_bound(km, km->env.mem[KD_RO].lmr));
}

static void in_recv_rmr_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	struct kd_mem *mem = &km->env.mem[KD_RW];
	DAT_RMR_HANDLE rmr = km_rmr(km, false);
	DAT_RMR_CONTEXT key, old;

	KD_EXPECT_OK(test, km_try_rmr(km, rmr, mem->lmr, mem->addr, 8, mem->lmr_context, KM_REMOTE,
				      0, 1, &key));
	km_done(km, IB_WC_SUCCESS);
	km_expect_bind(km, rmr, 1, DAT_RMR_BIND_SUCCESS);
	in_recv_post(km, 1);
	KUNIT_EXPECT_EQ(test, fake_ib_recv_inv(km->env.qp, 12, key), 0);
	KD_EXPECT_RET(test, dat_lmr_free(mem->lmr), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_LMR_IN_USE);
	in_expect_recv(test, km->env.recv, 1, key);
	/* unbound: the LMR below is free, and its own keys still work */
	KUNIT_EXPECT_TRUE(test, fake_ib_mr_valid(km->env.dev, mem->rmr_context));
	KD_EXPECT_OK(test, km_send(km, mem->lmr_context, mem->addr, 8, 2));
	km_done(km, IB_WC_SUCCESS);
	km_expect(km, DAT_DTO_SEND, 2, DAT_DTO_SUCCESS);

	/* the peer is faster than the completion of the bind */
	KD_EXPECT_OK(test, km_try_rmr(km, rmr, mem->lmr, mem->addr, 8, mem->lmr_context, KM_REMOTE,
				      0, 3, &key));
	km_done(km, IB_WC_SUCCESS);
	in_recv_post(km, 4);
	KUNIT_EXPECT_EQ(test, fake_ib_recv_inv(km->env.qp, 12, key), 0);
	in_expect_recv(test, km->env.recv, 4, key);
	km_expect_bind(km, rmr, 3, DAT_RMR_BIND_SUCCESS);
	/* and faster than a bind anew */
	KD_EXPECT_OK(test, km_try_rmr(km, rmr, mem->lmr, mem->addr, 8, mem->lmr_context, KM_REMOTE,
				      0, 5, &old));
	km_done(km, IB_WC_SUCCESS);
	km_expect_bind(km, rmr, 5, DAT_RMR_BIND_SUCCESS);
	KD_EXPECT_OK(test, km_try_rmr(km, rmr, mem->lmr, mem->addr + 8, 8, mem->lmr_context,
				      KM_REMOTE, 0, 6, &key));
	in_recv_post(km, 7);
	KUNIT_EXPECT_EQ(test, fake_ib_recv_inv(km->env.qp, 12, old), 0);
	in_expect_recv(test, km->env.recv, 7, old);
	KUNIT_EXPECT_EQ(test, fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS), 2);
	km_expect_bind(km, rmr, 6, DAT_RMR_BIND_SUCCESS);
	KUNIT_EXPECT_TRUE(test, fake_ib_mr_valid(km->env.dev, key));
	KD_EXPECT_RET(test, dat_lmr_free(mem->lmr), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_LMR_IN_USE);
	km_drop_rmr(km, rmr);
	KUNIT_EXPECT_FALSE(test, fake_ib_mr_valid(km->env.dev, key));
	KD_EXPECT_OK(test, dat_lmr_free(mem->lmr));
	mem->lmr = DAT_HANDLE_NULL;
}

/* Both sides invalidate, and the connection goes in between. */
static void in_recv_flush_test(struct kunit *test)
{
	struct km *km = km_open(test, NULL);
	DAT_LMR_HANDLE lmr = km_lmr(km, 2, DAT_LMR_SCOPE_PZ);
	struct km_keys keys, next;
	int late;

	for (late = 0; late < 2; late++) {
		km_ep(km, 0, NULL);
		kd_connect(&km->env);
		km_bind(km, lmr, 0, 2, IN_ALL, &keys);
		in_recv_post(km, 1);
		KD_EXPECT_OK(test, km_try_inv(km, lmr, 0, 5));
		KUNIT_EXPECT_EQ(test, fake_ib_recv_inv(km->env.qp, 12, keys.rmr), 0);
		if (!late)
			in_expect_recv(test, km->env.recv, 1, keys.rmr);
		km_down(km);
		km_expect(km, DAT_DTO_LMR_INVALIDATE, 5, DAT_DTO_ERR_FLUSHED);
		if (late)
			in_expect_recv(test, km->env.recv, 1, keys.rmr);
		/* the peer's is what counts */
		KUNIT_EXPECT_FALSE(test, km_bound(km, lmr));
		km_ep_free(km, 0);
		km_ep(km, 0, NULL);
		kd_connect(&km->env);
		KM_EXPECT_TYPE(test, km_send(km, keys.lmr, km->pa[0], 1, 1),
			       DAT_PRIVILEGES_VIOLATION);
		km_bind(km, lmr, 0, 2, IN_ALL, &next);
		km_unbind(km, lmr);
		km_ep_free(km, 0);
	}
}

/* A silent fmr whose key the peer takes away: the next one does not wait for its end. */
static void in_recv_silent_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_LMR_HANDLE lmr = km_lmr(km, 2, DAT_LMR_SCOPE_PZ);
	struct km_keys keys, next;
	struct fake_ib_wr wr;
	int round;

	for (round = 0; round < 3; round++) {
		/* a signal, so that none is forced */
		KD_EXPECT_OK(test, km_send(km, km->env.mem[KD_RW].lmr_context,
					   km->env.mem[KD_RW].addr, 1, 7));
		KD_EXPECT_OK(test, km_try_fmr(km, lmr, 0, 2, IN_ALL, DAT_COMPLETION_SUPPRESS_FLAG,
					      1, &keys));
		km_last(km, &wr);
		KUNIT_EXPECT_FALSE(test, wr.send_flags & IB_SEND_SIGNALED);
		KUNIT_EXPECT_EQ(test, fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS), 2);
		km_expect(km, DAT_DTO_SEND, 7, DAT_DTO_SUCCESS);
		in_recv_post(km, 2);
		KUNIT_EXPECT_EQ(test, fake_ib_recv_inv(km->env.qp, 12, keys.rmr), 0);
		in_expect_recv(test, km->env.recv, 2, keys.rmr);
		KUNIT_EXPECT_FALSE(test, km_bound(km, lmr));
		KD_ASSERT_OK(test, km_try_fmr(km, lmr, 2, 2, IN_ALL, 0, 3, &next));
		KUNIT_EXPECT_TRUE(test, km_bound(km, lmr));
		if (round == 2)
			break;
		/* its end tells of both, and the first of them says nothing any more */
		km_done(km, IB_WC_SUCCESS);
		km_expect(km, DAT_DTO_LMR_FMR, 3, DAT_DTO_SUCCESS);
		KD_EXPECT_EMPTY(test, km->env.req);
		KUNIT_EXPECT_TRUE(test, km_bound(km, lmr));
		KD_EXPECT_OK(test, km_send(km, next.lmr, km->pa[2], 8, 4));
		km_done(km, IB_WC_SUCCESS);
		km_expect(km, DAT_DTO_SEND, 4, DAT_DTO_SUCCESS);
		km_unbind(km, lmr);
	}
	km_down(km);
	km_expect(km, DAT_DTO_LMR_FMR, 3, DAT_DTO_ERR_FLUSHED);
	KD_EXPECT_EMPTY(test, km->env.req);
	KUNIT_EXPECT_FALSE(test, km_bound(km, lmr));
	KUNIT_EXPECT_FALSE(test, fake_ib_mr_valid(km->env.dev, next.lmr));
}

/* The peer takes away an fmr LMR over which an RMR is bound: both keys, one memory. */
static void in_recv_below_rmr_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_LMR_HANDLE lmr = km_lmr(km, 2, DAT_LMR_SCOPE_PZ);
	DAT_RMR_HANDLE rmr = km_rmr(km, false);
	struct km_keys keys, next;
	DAT_RMR_CONTEXT key, none;

	km_bind(km, lmr, 0, 2, IN_ALL, &keys);
	KD_EXPECT_OK(test, km_try_rmr(km, rmr, lmr, km->pa[0], 8, keys.lmr, KM_REMOTE, 0, 1, &key));
	km_done(km, IB_WC_SUCCESS);
	km_expect_bind(km, rmr, 1, DAT_RMR_BIND_SUCCESS);
	in_recv_post(km, 1);
	KUNIT_EXPECT_EQ(test, fake_ib_recv_inv(km->env.qp, 12, keys.rmr), 0);
	in_expect_recv(test, km->env.recv, 1, keys.rmr);
	KM_EXPECT_TYPE(test, km_send(km, keys.lmr, km->pa[0], 8, 1), DAT_PRIVILEGES_VIOLATION);
	KUNIT_EXPECT_TRUE(test, fake_ib_mr_valid(km->env.dev, key));
	/* its memory is in use by the RMR: not to be bound anew yet */
	KD_EXPECT_RET(test, km_try_fmr(km, lmr, 0, 2, IN_ALL, 0, 2, &next), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_LMR_IN_USE);
	KD_EXPECT_OK(test, km_try_rmr(km, rmr, DAT_HANDLE_NULL, 0, 0, 0, 0, 0, 3, &none));
	km_done(km, IB_WC_SUCCESS);
	km_expect_bind(km, rmr, 3, DAT_RMR_BIND_SUCCESS);
	km_bind(km, lmr, 0, 2, IN_ALL, &next);
	km_unbind(km, lmr);
}

static void in_recv_foreign_test(struct kunit *test)
{
	static const u32 foreign[] = { 0xabcdef01, 0xffffffff, 1, 0xff };
	struct km *km = km_connected(test, NULL);
	DAT_LMR_HANDLE lmr = km_lmr(km, 1, DAT_LMR_SCOPE_PZ);
	struct km_keys keys, last;
	int i;

	km_bind(km, lmr, 0, 1, IN_ALL, &last);
	km_unbind(km, lmr);
	km_bind(km, lmr, 0, 1, IN_ALL, &keys);
	/* keys that are not ours, or not any more, take nothing away */
	for (i = 0; i <= ARRAY_SIZE(foreign); i++) {
		u32 key = i < ARRAY_SIZE(foreign) ? foreign[i] : last.rmr;

		in_recv_post(km, i);
		KUNIT_EXPECT_EQ(test, fake_ib_recv_inv(km->env.qp, 12, key), 0);
		in_expect_recv(test, km->env.recv, i, key);
		KUNIT_EXPECT_TRUE(test, km_bound(km, lmr));
	}
	KD_EXPECT_OK(test, km_send(km, keys.lmr, km->pa[0], 8, 1));
}

/* Soft-iWARP does not compare the low byte: what it has invalidated then is not what we know. */
static void in_recv_low_byte_test(struct kunit *test)
{
	static const struct fake_ib_caps caps = { .iwarp = true, .driver = RDMA_DRIVER_SIW };
	struct km *km = km_open(test, &caps);
	struct kdapl_ia *ia = kdapl_obj_get(km->env.ia, DAT_HANDLE_TYPE_IA);
	struct km_keys keys, last;
	DAT_LMR_HANDLE lmr;
	DAT_EP_ATTR attr;

	kdapl_quirks_derive(ia->dev, true);	/* which the port does not say */
	kd_attr(&attr);
	attr.max_rdma_read_iov = 1;
	km_ep(km, 0, &attr);
	kd_connect(&km->env);
	lmr = km_lmr(km, 1, DAT_LMR_SCOPE_PZ);
	km_bind(km, lmr, 0, 1, IN_ALL, &last);
	km_unbind(km, lmr);
	km_bind(km, lmr, 0, 1, IN_ALL, &keys);
	in_recv_post(km, 1);
	KUNIT_EXPECT_EQ(test, fake_ib_recv_inv(km->env.qp, 12, last.rmr), 0);
	in_expect_recv(test, km->env.recv, 1, last.rmr);
	KUNIT_EXPECT_EQ(test, kd_expect_end(&km->env), (u32)DAT_CONNECTION_EVENT_BROKEN);
	KUNIT_EXPECT_TRUE(test, km_bound(km, lmr));
	km_ep_free(km, 0);
	kdapl_quirks_derive(ia->dev, false);	/* it is not unplugged as what it is not */
	kdapl_obj_put(&ia->obj);
}

/* On an SRQ, for each kind of memory. */
static void in_srq_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	struct kd_mem *mem = &sq->env.mem[KD_RW];
	DAT_LMR_PARAM param;
	DAT_EVENT event;
	struct ib_qp *qp;

	sq_srq(sq, 8);
	qp = sq_ep(sq, 0);
	sq_post(sq, 100, 2);
	KUNIT_EXPECT_EQ(test, fake_ib_recv_inv(qp, 12, mem->rmr_context), 0);
	KD_EXPECT_OK(test, dat_lmr_query(mem->lmr, DAT_LMR_FIELD_ALL, &param));
	KUNIT_EXPECT_TRUE(test, param.lmr_state.bound);
	KUNIT_ASSERT_TRUE(test, kd_next(sq->env.recv, &event));
	KUNIT_EXPECT_EQ(test, (u32)event.event_data.dto_completion_event_data.operation,
			(u32)DAT_DTO_RECEIVE_WITH_INVALIDATE);
	KUNIT_EXPECT_EQ(test, event.event_data.dto_completion_event_data.rmr_context,
			mem->rmr_context);
	KD_EXPECT_OK(test, dat_lmr_query(mem->lmr, DAT_LMR_FIELD_ALL, &param));
	KUNIT_EXPECT_FALSE(test, param.lmr_state.bound);
	KUNIT_EXPECT_EQ(test, fake_ib_recv(qp, 12, false), 0);
	KUNIT_ASSERT_TRUE(test, kd_next(sq->env.recv, &event));
	KUNIT_EXPECT_EQ(test, (u32)event.event_data.dto_completion_event_data.operation,
			(u32)DAT_DTO_RECEIVE);
}

static DAT_RETURN in_read(struct km *km, u64 addr, u32 length, u32 key, u32 remote, int flags)
{
	DAT_RMR_TRIPLET sink = kd_remote(addr, length, key), source = kd_remote(0x77, remote, 0x99);
	DAT_DTO_COOKIE cookie = { .as_64 = 4 };
	DAT_RETURN ret;

	ret = dat_ep_post_rdma_read_to_rmr(km->env.ep, &sink, cookie, &source, flags);
	memset(&sink, 0xee, sizeof(sink));
	memset(&source, 0xee, sizeof(source));
	return ret;
}

static void in_read_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	struct kd_mem *mem = &km->env.mem[KD_RW];
	DAT_RMR_HANDLE rmr = km_rmr(km, false), ro = km_rmr(km, false), own = km_rmr(km, true);
	DAT_RMR_TRIPLET some = kd_remote(mem->addr, 8, mem->rmr_context);
	DAT_RMR_CONTEXT key, readable, mine;
	DAT_DTO_COOKIE cookie = {};
	struct km_trace before;
	struct fake_ib_wr wr;

	KD_EXPECT_OK(test, km_try_rmr(km, rmr, mem->lmr, mem->addr + 64, 100, mem->lmr_context,
				      KM_REMOTE, 0, 1, &key));
	KD_EXPECT_OK(test, km_try_rmr(km, ro, mem->lmr, mem->addr, 100, mem->lmr_context,
				      DAT_MEM_PRIV_REMOTE_READ_FLAG, 0, 2, &readable));
	KD_EXPECT_OK(test, km_try_rmr(km, own, mem->lmr, mem->addr, 100, mem->lmr_context,
				      KM_REMOTE, 0, 3, &mine));
	fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS);
	km_drain(km->env.req);
	/* by the key of an RMR, or by that of an LMR */
	KD_EXPECT_OK(test, in_read(km, mem->addr + 70, 20, key, 10, 0));
	km_last(km, &wr);
	KUNIT_EXPECT_EQ(test, (int)wr.opcode, (int)IB_WR_RDMA_READ);
	KUNIT_EXPECT_EQ(test, wr.num_sge, 1);
	KUNIT_EXPECT_EQ(test, wr.sge[0].addr, mem->addr + 70);
	KUNIT_EXPECT_EQ(test, wr.sge[0].length, 10U);
	KUNIT_EXPECT_EQ(test, wr.sge[0].lkey, key);
	KUNIT_EXPECT_EQ(test, wr.remote_addr, 0x77ULL);
	KUNIT_EXPECT_EQ(test, wr.rkey, 0x99U);
	km_done(km, IB_WC_SUCCESS);
	km_expect(km, DAT_DTO_RDMA_READ, 4, DAT_DTO_SUCCESS);
	KD_EXPECT_OK(test, in_read(km, mem->addr, 4096, mem->rmr_context, 4096, 0));
	km_done(km, IB_WC_SUCCESS);
	km_expect(km, DAT_DTO_RDMA_READ, 4, DAT_DTO_SUCCESS);
	KD_EXPECT_OK(test, in_read(km, 0, 0, 0xbad, 0, DAT_COMPLETION_BARRIER_FENCE_FLAG));
	km_done(km, IB_WC_SUCCESS);
	km_expect(km, DAT_DTO_RDMA_READ, 4, DAT_DTO_SUCCESS);

	km_trace(km, &before);
	KM_EXPECT_TYPE(test, in_read(km, mem->addr + 70, 9, key, 10, 0), DAT_LENGTH_ERROR);
	KD_EXPECT_RET(test, in_read(km, mem->addr + 63, 9, key, 9, 0), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG2);
	KD_EXPECT_RET(test, in_read(km, mem->addr + 64, 101, key, 9, 0), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG2);
	KM_EXPECT_TYPE(test, in_read(km, mem->addr, 9, key ^ 1, 9, 0), DAT_PRIVILEGES_VIOLATION);
	KM_EXPECT_TYPE(test, in_read(km, mem->addr, 9, 0, 9, 0), DAT_PRIVILEGES_VIOLATION);
	KM_EXPECT_TYPE(test, in_read(km, mem->addr, 9, readable, 9, 0), DAT_PRIVILEGES_VIOLATION);
	KM_EXPECT_TYPE(test, in_read(km, km->env.mem[KD_RO].addr, 9,
				     km->env.mem[KD_RO].lmr_context, 9, 0),
		       DAT_PRIVILEGES_VIOLATION);
	KM_EXPECT_TYPE(test, in_read(km, km->env.mem[KD_FOREIGN].addr, 9,
				     km->env.mem[KD_FOREIGN].rmr_context, 9, 0),
		       DAT_PROTECTION_VIOLATION);
	KD_EXPECT_RET(test, in_read(km, mem->addr + 64, 9, key, 9,
				    DAT_COMPLETION_SOLICITED_WAIT_FLAG), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG5);
	KD_EXPECT_RET(test, dat_ep_post_rdma_read_to_rmr(km->env.ep, NULL, cookie, &some, 0),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	KD_EXPECT_RET(test, dat_ep_post_rdma_read_to_rmr(km->env.ep, &some, cookie, NULL, 0),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG4);
	KD_EXPECT_RET(test, dat_ep_post_rdma_read_to_rmr(km->env.pz, &some, cookie, &some, 0),
		      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	km_untouched(km, &before, "arguments");
	/* that of an RMR for one EP is that EP's */
	km_ep(km, 1, NULL);
	kd_connect(&km->env);
	KM_EXPECT_TYPE(test, in_read(km, mem->addr, 9, mine, 9, 0), DAT_PROTECTION_VIOLATION);
	KD_EXPECT_OK(test, in_read(km, mem->addr + 64, 9, key, 9, 0));
	km_down(km);
	km_expect(km, DAT_DTO_RDMA_READ, 4, DAT_DTO_ERR_FLUSHED);
}

static struct kunit_case inval_cases[] = {
	KD_CASE(in_send_test, "SINV-01,SINV-05: what reaches the device, for all flags and keys"),
	KD_CASE(in_send_args_test, "SINV-01,SINV-05: arguments as those of dat_ep_post_send"),
	KD_CASE(in_send_fails_test, "SINV-04: the peer does not have that key"),
	KD_CASE(in_recv_fmr_test, "SINV-02,SINV-03,FMR-10: the peer invalidates an LMR of an fmr"),
	KD_CASE(in_recv_flush_test, "SINV-03,FMR-15: both invalidate, and the connection ends"),
	KD_CASE(in_recv_silent_test, "SINV-03,FMR-03: one whose fmr had no completion"),
	KD_CASE(in_recv_kcreate_test, "SINV-02,SINV-03: one of dat_lmr_kcreate"),
	KD_CASE(in_recv_rmr_test, "SINV-02,SINV-03,RMR-13: an RMR, also while it is being bound"),
	KD_CASE(in_recv_below_rmr_test, "SINV-03,RMR-13: an LMR over which an RMR is bound"),
	KD_CASE(in_recv_foreign_test, "SINV-03: keys of others and of yesterday"),
	KD_CASE(in_recv_low_byte_test, "SINV-03: a key of yesterday on soft-iWARP"),
	KD_CASE(in_read_test, "RTOR-01,RTOR-02,RTOR-03: RDMA Read into an RMR"),
	{}
};

static struct kunit_suite inval_suite = {
	.name = "kdapl-inval",
	.suite_init = kd_suite_init,
	.suite_exit = kd_suite_exit,
	.init = km_init,
	.exit = km_exit,
	.test_cases = inval_cases,
};

static struct kunit_case inval_srq_cases[] = {
	KD_CASE(in_srq_test, "SINV-02,SINV-03: a Receive through an SRQ"),
	{}
};

static struct kunit_suite inval_srq_suite = {
	.name = "kdapl-inval-srq",
	.suite_init = kd_suite_init,
	.suite_exit = kd_suite_exit,
	.init = sq_init,
	.exit = sq_exit,
	.test_cases = inval_srq_cases,
};

kunit_test_suites(&inval_suite, &inval_srq_suite);
