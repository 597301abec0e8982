// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Invalidation across the wire: the Send that asks for it, the Receive that tells of it,
 * before and after everything that may come in between.
 */
#include <linux/mm.h>

#include "kd_mem.h"

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
	int n, flags;
	DAT_EP_ATTR attr;
	bool silent, inv;

	kd_attr(&attr);
	attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	km_join(km, 0, &attr);
	for (n = 0; n < 16 * 2 * ARRAY_SIZE(keys); n++) {
		flags = n % 16;
		inv = n / 16 % 2;
		silent = flags & DAT_COMPLETION_SUPPRESS_FLAG;
		/* first a signaled one: then no signal is forced */
		KD_EXPECT_OK(test, in_send(km, 0, NULL, 8, 0, DAT_FALSE, 0));
		iov = kd_seg(&km->env, KD_RO, 3, 5);
		KD_EXPECT_OK(test, in_send(km, 1, &iov, 9, flags, inv, keys[n / 32]));
		memset(&iov, 0xee, sizeof(iov));
		km_last(km, &wr);
		KUNIT_EXPECT_EQ(test, (int)wr.opcode,
				(int)(inv ? IB_WR_SEND_WITH_INV : IB_WR_SEND));
		if (inv)
			KUNIT_EXPECT_EQ(test, wr.rkey, keys[n / 32]);
		km_expect_flags(km, &wr, flags);
		KUNIT_EXPECT_EQ(test, wr.num_sge, 1);
		KUNIT_EXPECT_EQ(test, wr.length, 5ULL);
		fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS);
		km_expect(km, DAT_DTO_SEND, 8, DAT_DTO_SUCCESS);
		if (!silent)
			km_expect(km, DAT_DTO_SEND, 9, DAT_DTO_SUCCESS);
		KD_EXPECT_EMPTY(test, km->env.req);
	}
}

/* The peer takes the key, with a message that nobody has looked at yet. */
static void in_take(struct km *km, u64 cookie, DAT_RMR_CONTEXT key)
{
	DAT_LMR_TRIPLET iov = kd_seg(&km->env, KD_WO, 0, 64);

	KD_EXPECT_OK(km->env.test, kd_post(km->env.ep, KD_RECV, 1, &iov, cookie, NULL, 0));
	KUNIT_EXPECT_EQ(km->env.test, fake_ib_recv_inv(km->env.qp, 12, key), 0);
}

/* The message is reported. */
static void in_told(struct km *km, u64 cookie, DAT_RMR_CONTEXT key)
{
	struct kunit *test = km->env.test;
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;

	dto = &event.event_data.dto_completion_event_data;
	KUNIT_ASSERT_TRUE(test, kd_next(km->env.recv, &event));
	KUNIT_EXPECT_EQ(test, (u64)dto->user_cookie.as_64, cookie);
	KUNIT_EXPECT_EQ(test, (int)dto->status, (int)DAT_DTO_SUCCESS);
	KUNIT_EXPECT_EQ(test, (int)dto->operation, (int)DAT_DTO_RECEIVE_WITH_INVALIDATE);
	KUNIT_EXPECT_EQ(test, dto->rmr_context, key);
	KUNIT_EXPECT_EQ(test, (u32)dto->transfered_length, 12U);
}

static void in_taken(struct km *km, u64 cookie, DAT_RMR_CONTEXT key)
{
	in_take(km, cookie, key);
	in_told(km, cookie, key);
}

static void in_recv_fmr_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_LMR_HANDLE lmr = km_lmr(km, 2, DAT_LMR_SCOPE_PZ);
	struct km_keys keys, next;
	int round;

	for (round = 0; round < 20; round++) {
		km_bind(km, lmr, 0, 2, KM_ALL, &keys);
		in_take(km, round, keys.rmr);
		KUNIT_EXPECT_FALSE(test, km_valid(km, keys.rmr));
		if (round & 1) {
			/* reported: unbound, and neither key is worth anything */
			in_told(km, round, keys.rmr);
			KUNIT_EXPECT_FALSE(test, km_bound(km, lmr));
			KM_EXPECT_TYPE(test, km_send(km, keys.lmr, km->pa[0], 8, 1),
				       DAT_PRIVILEGES_VIOLATION);
			KD_BAD_STATE(test, km_try_inv(km, lmr, 0, 1), LMR_FREE);
		} else if (round & 2) {
			/* not yet: the consumer invalidates it, too */
			KD_EXPECT_OK(test, km_try_inv(km, lmr, 0, 5));
			in_told(km, round, keys.rmr);
			KUNIT_EXPECT_FALSE(test, km_bound(km, lmr));
			KM_EXPECT_TYPE(test, km_try_fmr(km, lmr, 0, 2, KM_ALL, 0, 6, &next),
				       DAT_INVALID_STATE);
			km_finish(km, DAT_DTO_LMR_INVALIDATE, 5);
		} else {
			/* the same in the other order */
			KD_EXPECT_OK(test, km_try_inv(km, lmr, 0, 5));
			km_finish(km, DAT_DTO_LMR_INVALIDATE, 5);
			/* a late report of the old key does nothing to the new binding */
			km_bind(km, lmr, 2, 2, KM_ALL, &next);
			in_told(km, round, keys.rmr);
			KUNIT_EXPECT_TRUE(test, km_bound(km, lmr));
			km_usable(km, next.lmr, km->pa[2]);
			km_unbind(km, lmr);
		}
	}
}

static void in_recv_rmr_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	struct kd_mem *mem = &km->env.mem[KD_RW];
	DAT_RMR_HANDLE rmr = km_rmr(km, false);
	DAT_RMR_CONTEXT key, old;
	DAT_RMR_PARAM param;

	km_window(km, rmr, mem->lmr, mem->addr, 8, mem->lmr_context, &key);
	in_take(km, 1, key);
	KD_BAD_STATE(test, dat_lmr_free(mem->lmr), LMR_IN_USE);
	in_told(km, 1, key);
	/* unbound: the LMR below is free, and its own keys still work */
	KUNIT_EXPECT_TRUE(test, km_valid(km, mem->rmr_context));
	km_usable(km, mem->lmr_context, mem->addr);

	/* the peer is faster than the completion of the bind */
	KD_EXPECT_OK(test, km_try_part(km, rmr, 0, 8, 0, 3, &key));
	km_done(km, IB_WC_SUCCESS);
	in_taken(km, 4, key);
	km_expect_bind(km, rmr, 3, DAT_RMR_BIND_SUCCESS);
	KD_EXPECT_OK(test, dat_rmr_query(rmr, DAT_RMR_FIELD_ALL, &param));
	KUNIT_EXPECT_EQ_MSG(test, param.rmr_context, 0U, "still bound");
	/* and faster than a bind anew */
	km_window(km, rmr, mem->lmr, mem->addr, 8, mem->lmr_context, &old);
	KD_EXPECT_OK(test, km_try_part(km, rmr, 8, 8, 0, 6, &key));
	in_taken(km, 7, old);
	KUNIT_EXPECT_EQ(test, fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS), 2);
	km_expect_bind(km, rmr, 6, DAT_RMR_BIND_SUCCESS);
	KUNIT_EXPECT_TRUE(test, km_valid(km, key));
	KD_BAD_STATE(test, dat_lmr_free(mem->lmr), LMR_IN_USE);
	km_drop_rmr(km, rmr);
	KUNIT_EXPECT_FALSE(test, km_valid(km, key));
	KD_EXPECT_OK(test, dat_lmr_free(mem->lmr));
	mem->lmr = DAT_HANDLE_NULL;
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
		KD_EXPECT_OK(test, km_try_fmr(km, lmr, 0, 2, KM_ALL, DAT_COMPLETION_SUPPRESS_FLAG,
					      1, &keys));
		km_last(km, &wr);
		KUNIT_EXPECT_FALSE(test, wr.send_flags & IB_SEND_SIGNALED);
		KUNIT_EXPECT_EQ(test, fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS), 2);
		km_expect(km, DAT_DTO_SEND, 7, DAT_DTO_SUCCESS);
		in_taken(km, 2, keys.rmr);
		KUNIT_EXPECT_FALSE(test, km_bound(km, lmr));
		KD_ASSERT_OK(test, km_try_fmr(km, lmr, 2, 2, KM_ALL, 0, 3, &next));
		KUNIT_EXPECT_TRUE(test, km_bound(km, lmr));
		if (round == 2)
			break;
		/* its end tells of both, and the first of them says nothing any more */
		km_finish(km, DAT_DTO_LMR_FMR, 3);
		KD_EXPECT_EMPTY(test, km->env.req);
		KUNIT_EXPECT_TRUE(test, km_bound(km, lmr));
		km_usable(km, next.lmr, km->pa[2]);
		km_unbind(km, lmr);
	}
	km_down(km);
	km_expect(km, DAT_DTO_LMR_FMR, 3, DAT_DTO_ERR_FLUSHED);
	KD_EXPECT_EMPTY(test, km->env.req);
	KUNIT_EXPECT_FALSE(test, km_bound(km, lmr));
	KUNIT_EXPECT_FALSE(test, km_valid(km, next.lmr));
}

/* The peer takes away an fmr LMR over which an RMR is bound: both keys, one memory. */
static void in_recv_below_rmr_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_LMR_HANDLE lmr = km_lmr(km, 2, DAT_LMR_SCOPE_PZ);
	DAT_RMR_HANDLE rmr = km_rmr(km, false);
	struct km_keys keys, next;
	DAT_RMR_CONTEXT key;

	km_bind(km, lmr, 0, 2, KM_ALL, &keys);
	km_window(km, rmr, lmr, km->pa[0], 8, keys.lmr, &key);
	in_taken(km, 1, keys.rmr);
	KM_EXPECT_TYPE(test, km_send(km, keys.lmr, km->pa[0], 8, 1), DAT_PRIVILEGES_VIOLATION);
	KUNIT_EXPECT_TRUE(test, km_valid(km, key));
	/* its memory is in use by the RMR: not to be bound anew yet */
	KD_BAD_STATE(test, km_try_fmr(km, lmr, 0, 2, KM_ALL, 0, 2, &next), LMR_IN_USE);
	KD_EXPECT_OK(test, km_try_unbind(km, rmr, 3));
	km_finish_bind(km, rmr, 3);
	km_bind(km, lmr, 0, 2, KM_ALL, &next);
	km_unbind(km, lmr);
}

static void in_recv_foreign_test(struct kunit *test)
{
	static const u32 foreign[] = { 0xabcdef01, 0xffffffff, 1, 0xff };
	struct km *km = km_connected(test, NULL);
	DAT_LMR_HANDLE lmr = km_lmr(km, 1, DAT_LMR_SCOPE_PZ);
	struct km_keys keys, last;
	int i;

	km_bind(km, lmr, 0, 1, KM_ALL, &last);
	km_unbind(km, lmr);
	km_bind(km, lmr, 0, 1, KM_ALL, &keys);
	/* keys that are not ours, or not any more, take nothing away */
	for (i = 0; i <= ARRAY_SIZE(foreign); i++) {
		u32 key = i < ARRAY_SIZE(foreign) ? foreign[i] : last.rmr;

		in_taken(km, i, key);
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
	DAT_LMR_HANDLE lmr = km_lmr(km, 1, DAT_LMR_SCOPE_PZ);
	struct km_keys keys, last;
	DAT_EP_ATTR attr;

	kdapl_quirks_derive(ia->dev, true);	/* which the port does not say */
	kd_attr(&attr);
	attr.max_rdma_read_iov = 1;
	km_join(km, 0, &attr);
	km_bind(km, lmr, 0, 1, KM_ALL, &last);
	km_unbind(km, lmr);
	km_bind(km, lmr, 0, 1, KM_ALL, &keys);
	in_taken(km, 1, last.rmr);
	km_broken(km);
	KUNIT_EXPECT_TRUE(test, km_bound(km, lmr));
	km_ep_free(km, 0);
	kdapl_quirks_derive(ia->dev, false);	/* it is not unplugged as what it is not */
	kdapl_obj_put(&ia->obj);
}

static struct kunit_case inval_cases[] = {
	KD_CASE(in_send_test, "SINV-01,SINV-05: what reaches the device, for all flags and keys"),
	KD_CASE(in_recv_fmr_test, "SINV-02,SINV-03,FMR-10: the peer invalidates an LMR of an fmr"),
	KD_CASE(in_recv_silent_test, "SINV-03,FMR-03: one whose fmr had no completion"),
	KD_CASE(in_recv_rmr_test, "SINV-02,SINV-03,RMR-13: an RMR, also while it is being bound"),
	KD_CASE(in_recv_below_rmr_test, "SINV-03,RMR-13: an LMR over which an RMR is bound"),
	KD_CASE(in_recv_foreign_test, "SINV-03: keys of others and of yesterday"),
	KD_CASE(in_recv_low_byte_test, "SINV-03: a key of yesterday on soft-iWARP"),
	{}
};

KD_SUITE("kdapl-inval", inval_cases, km_init, km_exit);
