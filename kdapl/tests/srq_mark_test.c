// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Shared Receive Queues: watermarks, low and high, the buffers an EP holds, and
 * changes of size. Every value that makes a difference, one after the other.
 */
#include <linux/limits.h>

#include "kd_srq.h"

/*
 * Every low watermark with every number of buffers: the event is due at the
 * first moment at which fewer are there, and never again.
 */
static void sq_low_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	int low, n, left, fired;
	struct ib_qp *qp;
	DAT_EVENT event;

	sq_srq(sq, 5);
	qp = sq_ep(sq, 0);
	for (n = 0; n <= 5; n++) {
		for (low = 0; low <= 5; low++) {
			sq_post(sq, 0, n);
			KD_EXPECT_OK(test, dat_srq_set_lw(sq->srq, low));
			fired = sq_async(sq, sq->srq, DAT_SRQ_LOW_WATERMARK_EVENT);
			KUNIT_EXPECT_EQ_MSG(test, fired, n < low, "%d posted, mark %d", n, low);
			for (left = n - 1; left >= 0; left--) {
				KUNIT_EXPECT_EQ(test, fake_ib_recv(qp, 1, false), 0);
				fired = sq_async(sq, sq->srq, DAT_SRQ_LOW_WATERMARK_EVENT);
				KUNIT_EXPECT_EQ_MSG(test, fired, n >= low && left == low - 1,
						    "%d posted, mark %d, %d left", n, low, left);
			}
			while (kd_next(sq->env.recv, &event))
				;
		}
	}
	/* filled and emptied again: once is enough, until it is set anew */
	KD_EXPECT_OK(test, dat_srq_set_lw(sq->srq, 2));
	KUNIT_EXPECT_EQ(test, sq_async(sq, sq->srq, DAT_SRQ_LOW_WATERMARK_EVENT), 1);
	for (n = 0; n < 3; n++) {
		sq_post(sq, 0, 3);
		while (!fake_ib_recv(qp, 1, false))
			;
		while (kd_next(sq->env.recv, &event))
			;
		KUNIT_EXPECT_EQ(test, sq_async(sq, sq->srq, DAT_SRQ_LOW_WATERMARK_EVENT), 0);
	}
	for (n = 0; n < 3; n++) {
		KD_EXPECT_OK(test, dat_srq_set_lw(sq->srq, 2));
		KUNIT_EXPECT_EQ(test, sq_async(sq, sq->srq, DAT_SRQ_LOW_WATERMARK_EVENT), 1);
	}
}

static void sq_low_args_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	DAT_SRQ_PARAM param;

	sq_srq(sq, 5);
	KD_EXPECT_RET(test, dat_srq_set_lw(sq->srq, 6), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	KD_EXPECT_RET(test, dat_srq_set_lw(sq->srq, -1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	KD_EXPECT_RET(test, dat_srq_set_lw(sq->srq, INT_MIN), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG2);
	KUNIT_EXPECT_EQ(test, sq_async(sq, NULL, -1), 0);
	/* refused ones have not touched the one that was set */
	sq_post(sq, 0, 5);
	KD_EXPECT_OK(test, dat_srq_set_lw(sq->srq, 5));
	KD_EXPECT_RET(test, dat_srq_set_lw(sq->srq, 6), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	sq_counts(sq, &param);
	KUNIT_EXPECT_EQ(test, (int)param.low_watermark, 5);
	sq_ep(sq, 0);
	KUNIT_EXPECT_EQ(test, fake_ib_recv(sq->env.qp, 1, false), 0);
	KUNIT_EXPECT_EQ(test, sq_async(sq, sq->srq, DAT_SRQ_LOW_WATERMARK_EVENT), 1);
	sq_ep_free(sq, 0);
	sq_srq_free(sq);
	/* at creation: the queue is empty, so the event is due at once */
	KD_ASSERT_OK(test, sq_create(sq, 5, 1, 3, &sq->srq));
	sq_counts(sq, &param);
	KUNIT_EXPECT_EQ(test, (int)param.low_watermark, 3);
	KUNIT_EXPECT_EQ(test, sq_async(sq, sq->srq, DAT_SRQ_LOW_WATERMARK_EVENT), 1);
}

/* The mark is noticed wherever completions go: upcalls, no upcalls, no EVD. */
static void sq_low_evd_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	DAT_EVD_HANDLE evds[4] = { sq->env.recv, DAT_HANDLE_NULL };
	struct kd_upcalls *up;
	DAT_EP_ATTR attr;
	int i, k, fired;

	up = kd_upcalls_on(&sq->env, &evds[2], DAT_EVD_DTO_FLAG);
	up = kd_upcalls_on(&sq->env, &evds[3], DAT_EVD_DTO_FLAG);
	for (i = 0; i < ARRAY_SIZE(evds); i++) {
		sq_srq(sq, 4);
		kd_attr(&attr);
		if (i == 3)	/* with upcalls for solicited messages only */
			attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
		sq_ep_on(sq, 0, evds[i], &attr);
		kd_connect(&sq->env);
		sq_post(sq, 0, 4);
		KD_EXPECT_OK(test, dat_srq_set_lw(sq->srq, 3));
		sq_settle();
		KUNIT_EXPECT_EQ(test, sq_async(sq, NULL, -1), 0);
		fake_ib_recv(sq->env.qp, 1, false);
		fake_ib_recv(sq->env.qp, 1, false);
		for (k = 0, fired = 0; k < 1000 && !fired; k++)
			fired = sq_async(sq, sq->srq, DAT_SRQ_LOW_WATERMARK_EVENT);
		KUNIT_EXPECT_EQ_MSG(test, fired, 1, "EVD %d", i);
		sq_ep_free(sq, 0);
		sq_srq_free(sq);
	}
	KUNIT_EXPECT_EQ(test, READ_ONCE(up->n) <= 2, true);
	KD_EXPECT_OK(test, dat_evd_free(evds[2]));
	KD_EXPECT_OK(test, dat_evd_free(evds[3]));
}

/* Every pair of high watermarks with every number of buffers held. */
static void sq_high_test(struct kunit *test)
{
	static const DAT_COUNT marks[] = { DAT_WATERMARK_INFINITE, 0, 1, 2, 3, 4 };
	struct sq *sq = sq_open(test, NULL);
	int s, h, held, soft, hard, fired;
	DAT_EP_ATTR attr;
	DAT_EVENT event;
	bool up;

	fake_ib_last_wqe(sq->env.dev, FAKE_IB_LAST_WQE_AT_ERR);
	sq_srq(sq, 8);
	for (s = 0; s < ARRAY_SIZE(marks); s++) {
		for (h = 0; h < ARRAY_SIZE(marks); h++) {
			soft = marks[s];
			hard = marks[h];
			/* the soft one can come with the attributes */
			kd_attr(&attr);
			if (hard < 0)
				attr.srq_soft_hw = soft;
			sq_ep_on(sq, 0, sq->env.recv, &attr);
			kd_connect(&sq->env);
			while (sq_try_post(sq, 0) == DAT_SUCCESS)
				;
			if (hard >= 0)
				KD_EXPECT_OK(test, dat_ep_set_watermark(sq->env.ep, soft, hard));
			KUNIT_EXPECT_EQ(test, sq_async(sq, NULL, -1), 0);
			up = true;
			for (held = 1; held <= 4 && up; held++) {
				KUNIT_EXPECT_EQ(test, fake_ib_recv(sq->env.qp, 1, false), 0);
				fired = sq_async(sq, sq->env.ep, DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT);
				KUNIT_EXPECT_EQ_MSG(test, fired, soft >= 0 && held == soft + 1,
						    "soft %d, hard %d, %d held", soft, hard, held);
				if (hard >= 0 && held > hard) {
					KUNIT_EXPECT_EQ(test, kd_expect_end(&sq->env),
							(u32)DAT_CONNECTION_EVENT_BROKEN);
					up = false;
				} else {
					KD_EXPECT_EMPTY(test, sq->env.conn);
				}
			}
			KUNIT_EXPECT_EQ_MSG(test, up, hard < 0 || hard >= 4, "hard %d", hard);
			sq_ep_free(sq, 0);
			while (kd_next(sq->env.recv, &event))
				;
		}
	}
}

/* Once per setting, at once when it is exceeded already; down again counts too. */
static void sq_high_again_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	DAT_EVENT event;
	int i;

	sq_srq(sq, 8);
	sq_ep(sq, 0);
	sq_post(sq, 0, 8);
	for (i = 0; i < 3; i++)
		fake_ib_recv(sq->env.qp, 1, false);
	KUNIT_EXPECT_EQ(test, sq_async(sq, NULL, -1), 0);
	for (i = 0; i < 3; i++) {
		/* three are held */
		KD_EXPECT_OK(test, dat_ep_set_watermark(sq->env.ep, i, DAT_WATERMARK_INFINITE));
		KUNIT_EXPECT_EQ(test, sq_async(sq, sq->env.ep, DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT),
				1);
		KUNIT_EXPECT_EQ(test, sq_async(sq, NULL, -1), 0);
	}
	KD_EXPECT_OK(test, dat_ep_set_watermark(sq->env.ep, 3, DAT_WATERMARK_INFINITE));
	KUNIT_EXPECT_EQ(test, sq_async(sq, NULL, -1), 0);
	/* replaced before it fired */
	KD_EXPECT_OK(test, dat_ep_set_watermark(sq->env.ep, 4, 5));
	fake_ib_recv(sq->env.qp, 1, false);
	KUNIT_EXPECT_EQ(test, sq_async(sq, NULL, -1), 0);
	KD_EXPECT_OK(test, dat_ep_set_watermark(sq->env.ep, 4, 5));
	/* taken away and held again: over it for the first time */
	while (kd_next(sq->env.recv, &event))
		;
	for (i = 0; i < 4; i++)
		fake_ib_recv(sq->env.qp, 1, false);
	KUNIT_EXPECT_EQ(test, sq_async(sq, NULL, -1), 0);
	sq_post(sq, 0, 2);
	fake_ib_recv(sq->env.qp, 1, false);
	KUNIT_EXPECT_EQ(test, sq_async(sq, sq->env.ep, DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT), 1);
	KD_EXPECT_EMPTY(test, sq->env.conn);
	fake_ib_recv(sq->env.qp, 1, false);
	KUNIT_EXPECT_EQ(test, kd_expect_end(&sq->env), (u32)DAT_CONNECTION_EVENT_BROKEN);
	KUNIT_EXPECT_EQ(test, sq_async(sq, NULL, -1), 0);
	/* legal in DISCONNECTED, too, with buffers nobody has asked for */
	KD_EXPECT_OK(test, dat_ep_set_watermark(sq->env.ep, 1, 1));
	KUNIT_EXPECT_EQ(test, sq_async(sq, sq->env.ep, DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT), 1);
	KD_EXPECT_EMPTY(test, sq->env.conn);
	sq_ep_free(sq, 0);

	/* the hard one, set while it is exceeded */
	sq_ep(sq, 0);
	sq_post(sq, 0, 2);
	fake_ib_recv(sq->env.qp, 1, false);
	fake_ib_recv(sq->env.qp, 1, false);
	KD_EXPECT_OK(test, dat_ep_set_watermark(sq->env.ep, DAT_WATERMARK_INFINITE, 1));
	KUNIT_EXPECT_EQ(test, kd_expect_end(&sq->env), (u32)DAT_CONNECTION_EVENT_BROKEN);
	KUNIT_EXPECT_EQ(test, sq_async(sq, NULL, -1), 0);
}

/* Set when the buffers are taken already, but nobody has looked: the call looks itself. */
static void sq_high_unseen_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	struct kdapl_conn *conn;
	int i, hard;
	u32 held;

	sq_srq(sq, 8);
	for (hard = 0; hard < 2; hard++) {
		sq_ep(sq, 0);
		sq_post(sq, 0, 3);
		conn = rcu_dereference_protected(sq->eps[0].kep->conn, true);
		local_bh_disable();	/* what is scheduled looks later */
		for (i = 0; i < 3; i++)
			fake_ib_recv(sq->env.qp, 1, false);
		held = READ_ONCE(conn->srq_bufs_held);
		KD_EXPECT_OK(test, dat_ep_set_watermark(sq->env.ep, 2,
							hard ? 2 : DAT_WATERMARK_INFINITE));
		KUNIT_EXPECT_EQ(test, held, 0U);
		KUNIT_EXPECT_EQ(test, READ_ONCE(conn->srq_bufs_held), 3U);
		KUNIT_EXPECT_EQ(test, atomic_read(&conn->reason),
				hard ? (int)DAT_CONNECTION_EVENT_BROKEN : KDAPL_END_NONE);
		local_bh_enable();
		KUNIT_EXPECT_EQ(test, sq_async(sq, sq->env.ep, DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT),
				1);
		if (hard)
			KUNIT_EXPECT_EQ(test, kd_expect_end(&sq->env),
					(u32)DAT_CONNECTION_EVENT_BROKEN);
		sq_ep_free(sq, 0);
	}
}

static void sq_high_args_test(struct kunit *test)
{
	static const DAT_COUNT bad[] = { -2, -3, INT_MIN };
	struct sq *sq = sq_open(test, NULL);
	DAT_EP_HANDLE plain;
	DAT_EP_ATTR attr;
	DAT_EP_PARAM param;
	DAT_EVENT event;
	int i, early;

	sq_srq(sq, 4);
	sq_ep_on(sq, 0, sq->env.recv, NULL);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		KD_EXPECT_RET(test, dat_ep_set_watermark(sq->env.ep, bad[i], 1),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		KD_EXPECT_RET(test, dat_ep_set_watermark(sq->env.ep, 1, bad[i]),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	}
	KD_EXPECT_OK(test, dat_ep_query(sq->env.ep, DAT_EP_FIELD_ALL, &param));
	KUNIT_EXPECT_EQ(test, (int)param.ep_attr.srq_soft_hw, (int)DAT_WATERMARK_INFINITE);
	sq_ep_free(sq, 0);
	/* set before the connection, and passed with it or before: then it breaks with it */
	for (early = 0; early < 2; early++) {
		sq_ep_on(sq, 0, sq->env.recv, NULL);
		KD_EXPECT_OK(test, dat_ep_set_watermark(sq->env.ep, 2, 3));
		KD_EXPECT_OK(test, dat_ep_query(sq->env.ep, DAT_EP_FIELD_ALL, &param));
		KUNIT_EXPECT_EQ(test, (int)param.ep_attr.srq_soft_hw, 2);
		if (!early)
			kd_connect(&sq->env);
		sq_post(sq, 0, 4);
		for (i = 0; i < 3; i++)
			fake_ib_recv(sq->env.qp, 1, false);
		KUNIT_EXPECT_EQ(test, sq_async(sq, sq->env.ep, DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT),
				1);
		KD_EXPECT_EMPTY(test, sq->env.conn);
		fake_ib_recv(sq->env.qp, 1, false);
		if (early) {
			sq_settle();
			KD_EXPECT_EMPTY(test, sq->env.conn);
			kdapl_test_connect(sq->env.kep);
			KUNIT_ASSERT_TRUE(test, kd_next(sq->env.conn, &event));
			KUNIT_EXPECT_EQ(test, (u32)event.event_number,
					(u32)DAT_CONNECTION_EVENT_ESTABLISHED);
		}
		KUNIT_EXPECT_EQ(test, kd_expect_end(&sq->env), (u32)DAT_CONNECTION_EVENT_BROKEN);
		sq_ep_free(sq, 0);
	}
	/* an EP without SRQ has no such marks */
	kd_attr(&attr);
	KD_ASSERT_OK(test, dat_ep_create(sq->env.ia, sq->env.pz, sq->env.recv, sq->env.req,
					 sq->env.conn, &attr, &plain));
	KD_EXPECT_RET(test, dat_ep_set_watermark(plain, 1, 1), DAT_MODEL_NOT_SUPPORTED,
		      DAT_NO_SUBTYPE);
	KD_EXPECT_OK(test, dat_ep_free(plain));
}

/* dat_ep_recv_query, with and without an SRQ. */
static void sq_recv_query_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(&sq->env, KD_RW, 0, 8);
	DAT_COUNT n, range;
	DAT_EP_HANDLE ep;
	DAT_EVENT event;
	int i, with;

	for (with = 0; with < 2; with++) {
		if (with) {
			sq_srq(sq, 8);
			sq_ep(sq, 0);
			sq_post(sq, 0, 8);
		} else {
			kd_ep(&sq->env, NULL);
			for (i = 0; i < 8; i++) {
				KD_EXPECT_OK(test, dat_ep_recv_query(sq->env.ep, &n, &range));
				KUNIT_EXPECT_EQ(test, (int)n, i);
				KUNIT_EXPECT_GE(test, (int)range, (int)n);
				KD_EXPECT_OK(test, kd_post(sq->env.ep, KD_RECV, 1, &iov, 0, NULL,
							   0));
			}
			kd_connect(&sq->env);
		}
		for (i = 0; i <= 8; i++) {
			n = -7;
			range = -7;
			KD_EXPECT_OK(test, dat_ep_recv_query(sq->env.ep, &n, &range));
			KUNIT_EXPECT_EQ_MSG(test, (int)n, with ? i : 8 - i, "%d", i);
			KUNIT_EXPECT_GE(test, (int)range, (int)n);
			KD_EXPECT_OK(test, dat_ep_recv_query(sq->env.ep, &n, NULL));
			KD_EXPECT_OK(test, dat_ep_recv_query(sq->env.ep, NULL, &range));
			KUNIT_EXPECT_GE(test, (int)range, (int)n);
			KD_EXPECT_OK(test, dat_ep_recv_query(sq->env.ep, NULL, NULL));
			if (i < 8)
				fake_ib_recv(sq->env.qp, 1, false);
		}
		/* handed over: no longer held */
		for (i = 8; kd_next(sq->env.recv, &event); i--) {
			KD_EXPECT_OK(test, dat_ep_recv_query(sq->env.ep, &n, &range));
			KUNIT_EXPECT_EQ(test, (int)n, with ? i - 1 : 0);
		}
		KUNIT_EXPECT_EQ(test, i, 0);
		if (!with)
			kd_ep_free(&sq->env);
	}
	/* each EP holds its own; in DISCONNECTED, too; one without PZ can hold none */
	sq_ep(sq, 1);
	sq_post(sq, 0, 3);
	for (i = 0; i < 3; i++)
		fake_ib_recv(sq->eps[!!i].qp, 1, false);
	kd_end(&sq->env, DAT_CONNECTION_EVENT_DISCONNECTED);
	for (i = 0; i < 2; i++) {
		KD_EXPECT_OK(test, dat_ep_recv_query(sq->eps[i].ep, &n, &range));
		KUNIT_EXPECT_EQ(test, (int)n, i + 1);
	}
	KD_ASSERT_OK(test, dat_ep_create(sq->env.ia, NULL, NULL, NULL, NULL, NULL, &ep));
	KD_EXPECT_OK(test, dat_ep_recv_query(ep, &n, &range));
	KUNIT_EXPECT_EQ(test, (int)n, 0);
	KD_EXPECT_OK(test, dat_ep_free(ep));
}

static void sq_resize_args_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	static const DAT_COUNT bad[] = { 0, -1, INT_MIN, INT_MAX };
	DAT_SRQ_HANDLE srq;
	DAT_SRQ_PARAM param;
	DAT_IA_ATTR limits;
	int i;

	KD_ASSERT_OK(test, dat_ia_query(sq->env.ia, NULL, DAT_IA_FIELD_ALL, &limits, 0, NULL));
	sq_srq(sq, 8);
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		KD_EXPECT_RET(test, dat_srq_resize(sq->srq, bad[i]), DAT_INVALID_PARAMETER,
			      DAT_INVALID_ARG2);
	KD_EXPECT_RET(test, dat_srq_resize(sq->srq, limits.max_recv_per_srq + 1),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	sq_counts(sq, &param);
	KUNIT_EXPECT_EQ(test, (int)param.max_recv_dtos, 8);
	/* unused: any size there is */
	KD_EXPECT_OK(test, dat_srq_resize(sq->srq, limits.max_recv_per_srq));
	sq_counts(sq, &param);
	KUNIT_EXPECT_GE(test, (int)param.max_recv_dtos, (int)limits.max_recv_per_srq);
	KD_EXPECT_OK(test, dat_srq_resize(sq->srq, 1));
	KD_EXPECT_OK(test, dat_srq_resize(sq->srq, 8));
	/* nor below the watermark, of which there is nothing left at once */
	KD_EXPECT_OK(test, dat_srq_set_lw(sq->srq, 6));
	KUNIT_EXPECT_EQ(test, sq_async(sq, sq->srq, DAT_SRQ_LOW_WATERMARK_EVENT), 1);
	KD_EXPECT_RET(test, dat_srq_resize(sq->srq, 5), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_SRQ_OPERATIONAL);
	KD_EXPECT_OK(test, dat_srq_resize(sq->srq, 6));
	sq_srq_free(sq);
	/* which may be all there is */
	KD_EXPECT_RET(test, sq_create(sq, 4, 1, 5, &srq), DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	KD_ASSERT_OK(test, sq_create(sq, 4, 1, 4, &srq));
	KUNIT_EXPECT_EQ(test, sq_async(sq, srq, DAT_SRQ_LOW_WATERMARK_EVENT), 1);
	KD_EXPECT_OK(test, dat_srq_free(srq));
}

/* Every size from every fill: never below what is outstanding or the watermark. */
static void sq_resize_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	int n, to, low, used, i;
	unsigned int created;
	DAT_SRQ_PARAM param;
	struct ib_qp *qp;
	DAT_EVENT event;
	DAT_RETURN ret;

	for (used = 0; used < 2; used++) {
		sq_srq(sq, 10);
		qp = sq_ep(sq, 0);
		created = fake_ib_count(sq->env.dev, FAKE_IB_CREATE_SRQ);
		for (n = 0; n <= 10; n += 2) {
			for (low = 0; low <= n; low += 3) {
				sq_post(sq, 0, n);
				/* the watermark: nothing arrives below it, so no event */
				KD_EXPECT_OK(test, dat_srq_set_lw(sq->srq, low));
				if (used && n) {
					/* arrived, not dequeued: outstanding all the same */
					KD_EXPECT_OK(test, dat_srq_set_lw(sq->srq, 0));
					fake_ib_recv(qp, 1, false);
				}
				for (to = 1; to <= 12; to++) {
					bool small = to < n || to < (used && n ? 0 : low);

					ret = dat_srq_resize(sq->srq, to);
					KUNIT_EXPECT_EQ_MSG(test, (u32)DAT_GET_TYPE(ret), small ?
							    (u32)DAT_INVALID_STATE : 0U,
							    "%d posted, low %d, to %d", n, low, to);
					sq_counts(sq, &param);
					if (ret == DAT_SUCCESS)
						KUNIT_EXPECT_GE(test, (int)param.max_recv_dtos, to);
					else
						KUNIT_EXPECT_EQ(test, (int)param.max_recv_dtos, 10);
					KUNIT_EXPECT_EQ(test, (int)param.outstanding_dto_count, n);
					KD_EXPECT_OK(test, dat_srq_resize(sq->srq, 10));
				}
				/* nothing was lost on the way */
				while (!fake_ib_recv(qp, 1, false))
					;
				for (i = 0; kd_next(sq->env.recv, &event); i++)
					KUNIT_EXPECT_EQ(test, event.event_data
							.dto_completion_event_data.user_cookie
							.as_64, (u64)i);
				KUNIT_EXPECT_EQ(test, i, n);
				KD_EXPECT_OK(test, dat_srq_set_lw(sq->srq, 0));
				sq_settle();
				while (kd_next(sq->env.async, &event))
					;
			}
		}
		KUNIT_EXPECT_EQ(test, fake_ib_count(sq->env.dev, FAKE_IB_CREATE_SRQ), created);
		sq_ep_free(sq, 0);
		sq_srq_free(sq);
	}
}

/* More than there is room for: only while nobody uses it; else it stays as it is. */
static void sq_resize_grow_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	struct fake_ib_live live;
	unsigned int wr, sge;
	DAT_SRQ_PARAM param;
	int to, posted, ep;
	DAT_RETURN ret;

	for (posted = 0; posted < 2; posted++) {
		for (ep = 0; ep < 2; ep++) {
			for (to = 9; to <= 200; to += to < 18 ? 4 : 90) {
				sq_srq(sq, 8);
				sq_post(sq, 0, posted);
				if (ep)
					sq_ep(sq, 0);
				ret = dat_srq_resize(sq->srq, to);
				sq_counts(sq, &param);
				sq->ib = fake_ib_newest_srq(sq->env.dev);
				fake_ib_srq_size(sq->ib, &wr, &sge);
				if (ret == DAT_SUCCESS) {
					KUNIT_EXPECT_GE(test, (int)param.max_recv_dtos, to);
					KUNIT_EXPECT_GE(test, (int)wr, to);
					sq_post(sq, posted, to - posted);
				} else {
					KD_EXPECT_RET(test, ret, DAT_INSUFFICIENT_RESOURCES,
						      DAT_RESOURCE_SRQ);
					KUNIT_EXPECT_EQ(test, (int)param.max_recv_dtos, 8);
					/* it must work where nothing is in the way */
					KUNIT_EXPECT_TRUE(test, posted || ep);
					sq_post(sq, posted, 8 - posted);
				}
				fake_ib_live(sq->env.dev, &live);
				KUNIT_EXPECT_EQ(test, live.srqs, 1);
				if (ep) {
					KUNIT_EXPECT_EQ(test, fake_ib_recv(sq->env.qp, 2, false),
							0);
					sq_expect(sq, sq->env.recv, 0, 0, DAT_DTO_SUCCESS, 2);
					sq_ep_free(sq, 0);
				}
				sq_srq_free(sq);
			}
		}
	}
	/* the device has no other one to give: nothing changes */
	sq_srq(sq, 8);
	fake_ib_fail(sq->env.dev, FAKE_IB_CREATE_SRQ, 1, -ENOMEM);
	ret = dat_srq_resize(sq->srq, 500);
	KUNIT_EXPECT_EQ(test, (u32)DAT_GET_TYPE(ret), (u32)DAT_INSUFFICIENT_RESOURCES);
	sq_counts(sq, &param);
	KUNIT_EXPECT_EQ(test, (int)param.max_recv_dtos, 8);
	sq_post(sq, 0, 8);
	sq_srq_free(sq);
	/* a watermark moves along */
	sq_srq(sq, 8);
	KD_EXPECT_OK(test, dat_srq_set_lw(sq->srq, 4));
	KUNIT_EXPECT_EQ(test, sq_async(sq, sq->srq, DAT_SRQ_LOW_WATERMARK_EVENT), 1);
	KD_EXPECT_OK(test, dat_srq_resize(sq->srq, 500));
	sq_counts(sq, &param);
	KUNIT_EXPECT_EQ(test, (int)param.low_watermark, 4);
	KUNIT_EXPECT_EQ(test, sq_async(sq, NULL, -1), 0);
}

static struct kunit_case srq_mark_cases[] = {
	KD_CASE(sq_low_test, "SRQ-LW-01,SRQ-LW-02,SIL-29,ASY-08: every low watermark"),
	KD_CASE(sq_low_args_test, "SRQ-LW-03,SRQ-CR-02: arguments of the low watermark"),
	KD_CASE(sq_low_evd_test, "SRQ-LW-01,SIL-29: the low watermark with every kind of EVD"),
	KD_CASE(sq_high_test,
		"EP-WM-02,EP-WM-03,EP-WM-05,EP-WM-06,SIL-29,ASY-06: every high watermark"),
	KD_CASE(sq_high_again_test, "EP-WM-01,EP-WM-02,EP-WM-04,EP-WM-06: set again"),
	KD_CASE(sq_high_args_test, "EP-WM-01,EP-WM-03,EP-WM-07: arguments; before the connection"),
	KD_CASE(sq_high_unseen_test, "EP-WM-04: exceeded by buffers nobody has looked for yet"),
	KD_CASE(sq_recv_query_test, "EP-RQ-01..03: buffers an EP holds"),
	KD_CASE(sq_resize_args_test, "SRQ-RSZ-03,SRQ-RSZ-02: arguments of resize"),
	KD_CASE(sq_resize_test, "SRQ-RSZ-01,SRQ-RSZ-02: every size from every fill"),
	KD_CASE(sq_resize_grow_test, "SRQ-RSZ-02: growth, or none"),
	{}
};

static struct kunit_suite srq_mark_suite = {
	.name = "kdapl-srq-mark",
	.suite_init = kd_suite_init,
	.suite_exit = kd_suite_exit,
	.init = sq_init,
	.exit = sq_exit,
	.test_cases = srq_mark_cases,
};

kunit_test_suite(srq_mark_suite);
