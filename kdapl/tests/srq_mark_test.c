// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Shared Receive Queues: watermarks, low and high, the buffers an EP holds, and
 * changes of size. Every value that makes a difference, one after the other.
 */
#include <linux/limits.h>

#include "kd_srq.h"
#include "kd_upcall.h"

/*
 * Every low watermark with every number of buffers: the event is due at the
 * first moment at which fewer are there, and never again.
 */
static void sq_low_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	int low, n, left;

	sq_srq(sq, 5);
	sq_ep(sq, 0);
	for (n = 0; n <= 5; n++) {
		for (low = 0; low <= 5; low++) {
			sq_post(sq, 0, n);
			KD_EXPECT_OK(test, dat_srq_set_lw(sq->srq, low));
			KUNIT_EXPECT_EQ_MSG(test, sq_low_events(sq), n < low, "%d posted, mark %d",
					    n, low);
			for (left = n - 1; left >= 0; left--) {
				sq_recv(sq, 0, 1, 1);
				KUNIT_EXPECT_EQ_MSG(test, sq_low_events(sq),
						    n >= low && left == low - 1,
						    "%d posted, mark %d, %d left", n, low, left);
			}
			kd_drain(sq->env.recv);
		}
	}
	/* filled and emptied again: once is enough, until it is set anew */
	for (n = 0; n < 3; n++) {
		KD_EXPECT_OK(test, dat_srq_set_lw(sq->srq, 2));
		KUNIT_EXPECT_EQ(test, sq_low_events(sq), 1);
		sq_post(sq, 0, 3);
		sq_recv(sq, 0, 3, 1);
		kd_drain(sq->env.recv);
		KUNIT_EXPECT_EQ(test, sq_low_events(sq), 0);
	}
}

static void sq_low_args_test(struct kunit *test)
{
	static const DAT_COUNT bad[] = { 6, -1, INT_MIN, INT_MAX };
	struct sq *sq = sq_open(test, NULL);
	DAT_SRQ_PARAM param;
	int i;

	sq_srq(sq, 5);
	sq_post(sq, 0, 5);
	KD_EXPECT_OK(test, dat_srq_set_lw(sq->srq, 5));
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		KD_BAD_ARG(test, dat_srq_set_lw(sq->srq, bad[i]), 2);
	/* refused ones have not touched the one that was set */
	sq_counts(sq, &param);
	KUNIT_EXPECT_EQ(test, (int)param.low_watermark, 5);
	KUNIT_EXPECT_EQ(test, sq_low_events(sq), 0);
	sq_ep(sq, 0);
	sq_recv(sq, 0, 1, 1);
	KUNIT_EXPECT_EQ(test, sq_low_events(sq), 1);
	sq_ep_free(sq, 0);
	sq_srq_free(sq);
	/* at creation: the queue is empty, so the event is due at once */
	KD_BAD_ARG(test, sq_create(sq, 5, 1, 6, &sq->srq), 3);
	KD_ASSERT_OK(test, sq_create(sq, 5, 1, 5, &sq->srq));
	sq_counts(sq, &param);
	KUNIT_EXPECT_EQ(test, (int)param.low_watermark, 5);
	KUNIT_EXPECT_EQ(test, sq_low_events(sq), 1);
}

/* The mark is noticed wherever completions go: no upcalls, no EVD, upcalls. */
static void sq_low_evd_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	DAT_EVD_HANDLE evds[4] = { sq->env.recv, DAT_HANDLE_NULL };
	struct kd_upcalls *up;
	DAT_EP_ATTR attr;
	int i;

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
		KUNIT_EXPECT_EQ(test, sq_low_events(sq), 0);
		sq_recv(sq, 0, 2, 1);
		KD_WAIT(test, sq_low_events(sq) == 1);
		sq_ep_free(sq, 0);
		sq_srq_free(sq);
	}
	KUNIT_EXPECT_LE(test, READ_ONCE(up->n), 2);
	KD_EXPECT_OK(test, dat_evd_free(evds[2]));
	KD_EXPECT_OK(test, dat_evd_free(evds[3]));
}

/* Are buffers counted as they arrive? Then the EVD makes its upcalls one by one. */
static bool sq_watched(struct kunit *test, DAT_EVD_HANDLE evd)
{
	struct kdapl_evd *kevd = kdapl_obj_get(evd, DAT_HANDLE_TYPE_EVD);
	bool watched, by_default;
	unsigned long flags;

	KUNIT_ASSERT_NOT_NULL(test, kevd);
	flags = kdapl_evd_lock_irqsave(kevd);	/* both change together */
	watched = kevd->watching;
	by_default = kevd->default_policy;
	spin_unlock_irqrestore(&kevd->lock, flags);
	KUNIT_EXPECT_EQ(test, by_default, !watched);
	kdapl_obj_put(&kevd->obj);
	return watched;
}

/* What watermarks cost ends when they have fired. */
static void sq_watch_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	struct kd_env *env = &sq->env;
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;

	kd_upcalls_on(env, &evd, DAT_EVD_DTO_FLAG);
	sq_srq(sq, 8);
	sq_ep_on(sq, 0, evd, NULL);
	kd_connect(env);
	sq_post(sq, 0, 8);
	KUNIT_EXPECT_FALSE(test, sq_watched(test, evd));
	KD_EXPECT_OK(test, dat_srq_set_lw(sq->srq, 8));
	KUNIT_EXPECT_TRUE(test, sq_watched(test, evd));
	sq_recv(sq, 0, 1, 1);
	KD_WAIT(test, sq_low_events(sq) == 1);
	KD_WAIT(test, !sq_watched(test, evd));
	KD_EXPECT_OK(test, dat_ep_set_watermark(env->ep, 0, DAT_WATERMARK_INFINITE));
	KUNIT_EXPECT_TRUE(test, sq_watched(test, evd));
	sq_recv(sq, 0, 1, 1);
	KD_WAIT(test, sq_soft_events(sq) == 1);
	KD_WAIT(test, !sq_watched(test, evd));
	/* the other one is still there */
	KD_EXPECT_OK(test, dat_ep_set_watermark(env->ep, 0, 7));
	sq_recv(sq, 0, 1, 1);
	KD_WAIT(test, sq_soft_events(sq) == 1);
	sq_settle();
	KUNIT_EXPECT_TRUE(test, sq_watched(test, evd));
	KD_EXPECT_OK(test, dat_ep_set_watermark(env->ep, DAT_WATERMARK_INFINITE, 0));
	sq_recv(sq, 0, 1, 1);
	KD_EXPECT_END(env, BROKEN);
	KD_WAIT(test, !sq_watched(test, evd));
	sq_ep_free(sq, 0);
	KD_EXPECT_OK(test, dat_evd_free(evd));
}

/* Every pair of high watermarks with every number of buffers held. */
static void sq_high_test(struct kunit *test)
{
	static const DAT_COUNT marks[] = { DAT_WATERMARK_INFINITE, 0, 1, 2, 3, 4 };
	struct sq *sq = sq_open(test, NULL);
	int i, held, soft, hard;
	DAT_EP_ATTR attr;
	bool up;

	fake_ib_last_wqe(sq->env.dev, FAKE_IB_LAST_WQE_AT_ERR);
	sq_srq(sq, 8);
	for (i = 0; i < 36; i++) {
		soft = marks[i / 6];
		hard = marks[i % 6];
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
		for (up = true, held = 1; held <= 4 && up; held++) {
			sq_recv(sq, 0, 1, 1);
			KUNIT_EXPECT_EQ_MSG(test, sq_soft_events(sq),
					    soft >= 0 && held == soft + 1,
					    "soft %d, hard %d, %d held", soft, hard, held);
			up = hard < 0 || held <= hard;
			if (up)
				KD_EXPECT_EMPTY(test, sq->env.conn);
			else
				KD_EXPECT_END(&sq->env, BROKEN);
		}
		sq_ep_free(sq, 0);
		kd_drain(sq->env.recv);
	}
}

/* Once per setting, at once when it is exceeded already; down again counts too. */
static void sq_high_again_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	struct kd_env *env = &sq->env;
	int i;

	sq_srq(sq, 8);
	sq_ep(sq, 0);
	sq_post(sq, 0, 8);
	sq_recv(sq, 0, 3, 1);
	for (i = 0; i < 4; i++) {
		/* three are held */
		KD_EXPECT_OK(test, dat_ep_set_watermark(env->ep, i, DAT_WATERMARK_INFINITE));
		KUNIT_EXPECT_EQ_MSG(test, sq_soft_events(sq), i < 3, "mark %d", i);
		KUNIT_EXPECT_EQ(test, sq_soft_events(sq), 0);
	}
	/* replaced before it fired */
	KD_EXPECT_OK(test, dat_ep_set_watermark(env->ep, 4, 5));
	sq_recv(sq, 0, 1, 1);
	KUNIT_EXPECT_EQ(test, sq_soft_events(sq), 0);
	KD_EXPECT_OK(test, dat_ep_set_watermark(env->ep, 4, 5));
	/* taken away and held again: over it for the first time */
	kd_drain(env->recv);
	sq_recv(sq, 0, 4, 1);
	KUNIT_EXPECT_EQ(test, sq_soft_events(sq), 0);
	sq_post(sq, 0, 2);
	sq_recv(sq, 0, 1, 1);
	KUNIT_EXPECT_EQ(test, sq_soft_events(sq), 1);
	KD_EXPECT_EMPTY(test, env->conn);
	sq_recv(sq, 0, 1, 1);
	KD_EXPECT_END(env, BROKEN);
	KUNIT_EXPECT_EQ(test, sq_soft_events(sq), 0);
	/* legal in DISCONNECTED, too, with buffers nobody has asked for */
	KD_EXPECT_OK(test, dat_ep_set_watermark(env->ep, 1, 1));
	KUNIT_EXPECT_EQ(test, sq_soft_events(sq), 1);
	KD_EXPECT_EMPTY(test, env->conn);
	sq_ep_free(sq, 0);

	/* the hard one, set while it is exceeded */
	sq_ep(sq, 0);
	sq_post(sq, 0, 2);
	sq_recv(sq, 0, 2, 1);
	KD_EXPECT_OK(test, dat_ep_set_watermark(env->ep, DAT_WATERMARK_INFINITE, 1));
	KD_EXPECT_END(env, BROKEN);
	KUNIT_EXPECT_EQ(test, sq_soft_events(sq), 0);
}

/* Set when the buffers are taken already, but nobody has looked: the call looks itself. */
static void sq_high_unseen_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	struct kdapl_conn *conn;
	u32 before, after;
	int hard;

	sq_srq(sq, 8);
	for (hard = 0; hard < 2; hard++) {
		sq_ep(sq, 0);
		sq_post(sq, 0, 3);
		conn = kd_conn_of(&sq->env);
		local_bh_disable();	/* what is scheduled looks later */
		sq_recv(sq, 0, 3, 1);
		before = READ_ONCE(conn->srq_bufs_held);
		KD_EXPECT_OK(test, dat_ep_set_watermark(sq->env.ep, 2,
							hard ? 2 : DAT_WATERMARK_INFINITE));
		after = READ_ONCE(conn->srq_bufs_held);
		local_bh_enable();
		KUNIT_EXPECT_EQ(test, before, 0U);
		KUNIT_EXPECT_EQ(test, after, 3U);
		KUNIT_EXPECT_EQ(test, sq_soft_events(sq), 1);
		if (hard)
			KD_EXPECT_END(&sq->env, BROKEN);
		sq_ep_free(sq, 0);
	}
}

static void sq_set_soft(struct kdapl_ep *ep)
{
	dat_ep_set_watermark(ep->obj.handle, 2, DAT_WATERMARK_INFINITE);
}

/* Set while the EP is about to get another connection: that one is counted, too. */
static void sq_high_swap_test(struct kunit *test)
{
	DAT_EP_PARAM param = { .ep_attr.max_request_dtos = 3 };
	struct sq *sq = sq_open(test, NULL);
	struct kd_env *env = &sq->env;
	int reset;

	sq_srq(sq, 8);
	for (reset = 0; reset < 2; reset++) {
		sq_ep_on(sq, 0, env->recv, NULL);
		if (reset) {
			kd_connect(env);
			kd_end(env, DAT_CONNECTION_EVENT_DISCONNECTED);
			KD_EXPECT_END(env, DISCONNECTED);
		}
		kdapl_test_fresh_conn = sq_set_soft;
		if (reset)
			KD_EXPECT_OK(test, dat_ep_reset(env->ep));
		else
			KD_EXPECT_OK(test, dat_ep_modify(env->ep,
							 DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS,
							 &param));
		kdapl_test_fresh_conn = NULL;
		sq->eps[0].qp = fake_ib_newest_qp(env->dev);
		sq_use(sq, 0);
		kd_connect(env);
		sq_post(sq, 0, 4);
		sq_recv(sq, 0, 3, 1);
		KUNIT_EXPECT_EQ_MSG(test, sq_soft_events(sq), 1, "reset %d", reset);
		sq_ep_free(sq, 0);
		kd_drain(env->recv);
	}
}

static void sq_high_args_test(struct kunit *test)
{
	static const DAT_COUNT bad[] = { -2, -3, INT_MIN };
	struct sq *sq = sq_open(test, NULL);
	struct kd_env *env = &sq->env;
	DAT_EP_PARAM param;
	DAT_EVENT event;
	int i, early;

	sq_srq(sq, 4);
	sq_ep_on(sq, 0, env->recv, NULL);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		KD_BAD_ARG(test, dat_ep_set_watermark(env->ep, bad[i], 1), 2);
		KD_BAD_ARG(test, dat_ep_set_watermark(env->ep, 1, bad[i]), 3);
	}
	KD_EXPECT_OK(test, dat_ep_query(env->ep, DAT_EP_FIELD_ALL, &param));
	KUNIT_EXPECT_EQ(test, (int)param.ep_attr.srq_soft_hw, (int)DAT_WATERMARK_INFINITE);
	sq_ep_free(sq, 0);
	/* set before the connection, and passed with it or before: then it breaks with it */
	for (early = 0; early < 2; early++) {
		sq_ep_on(sq, 0, env->recv, NULL);
		KD_EXPECT_OK(test, dat_ep_set_watermark(env->ep, 2, 3));
		KD_EXPECT_OK(test, dat_ep_query(env->ep, DAT_EP_FIELD_ALL, &param));
		KUNIT_EXPECT_EQ(test, (int)param.ep_attr.srq_soft_hw, 2);
		if (!early)
			kd_connect(env);
		sq_post(sq, 0, 4);
		sq_recv(sq, 0, 3, 1);
		KUNIT_EXPECT_EQ(test, sq_soft_events(sq), 1);
		KD_EXPECT_EMPTY(test, env->conn);
		sq_recv(sq, 0, 1, 1);
		if (early) {
			sq_settle();
			KD_EXPECT_EMPTY(test, env->conn);
			kdapl_test_connect(env->kep);
			KUNIT_ASSERT_TRUE(test, kd_next(env->conn, &event));
			KUNIT_EXPECT_EQ(test, (u32)event.event_number,
					(u32)DAT_CONNECTION_EVENT_ESTABLISHED);
		}
		KD_EXPECT_END(env, BROKEN);
		sq_ep_free(sq, 0);
	}
	/* an EP without SRQ has no such marks */
	kd_ep(env, NULL);
	KD_EXPECT_RET(test, dat_ep_set_watermark(env->ep, 1, 1), DAT_MODEL_NOT_SUPPORTED,
		      DAT_NO_SUBTYPE);
	kd_ep_free(env);
}

/* The EP of the environment holds @want buffers; the span is no smaller. */
static void sq_expect_held(struct sq *sq, int want)
{
	struct kunit *test = sq->env.test;
	DAT_COUNT n = -7, range = -7, only = -7;

	KD_EXPECT_OK(test, dat_ep_recv_query(sq->env.ep, &n, &range));
	KUNIT_EXPECT_EQ(test, (int)n, want);
	KUNIT_EXPECT_GE(test, (int)range, want);
	KD_EXPECT_OK(test, dat_ep_recv_query(sq->env.ep, &only, NULL));
	KUNIT_EXPECT_EQ(test, (int)only, want);
	KD_EXPECT_OK(test, dat_ep_recv_query(sq->env.ep, NULL, &range));
	KUNIT_EXPECT_GE(test, (int)range, want);
	KD_EXPECT_OK(test, dat_ep_recv_query(sq->env.ep, NULL, NULL));
}

/* What is held and outstanding according to the first of several upcalls. */
struct sq_told {
	DAT_EP_HANDLE ep;
	DAT_COUNT held;
	DAT_SRQ_HANDLE srq;
	DAT_SRQ_PARAM param;
	DAT_COUNT size;			/* to be resized to, or 0 */
	DAT_RETURN ret;
	int calls;
};

static void sq_told_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct sq_told *told = data;

	if (!told->calls++)
		dat_ep_recv_query(told->ep, &told->held, NULL);
}

/* Buffers whose upcalls have not begun are held, also if they were taken together. */
static void sq_recv_query_upcall_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	struct sq_told told = {};
	DAT_UPCALL_OBJECT upcall = { &told, sq_told_upcall };

	sq_srq(sq, 8);
	sq_ep(sq, 0);
	told.ep = sq->env.ep;
	sq_post(sq, 0, 8);
	KD_EXPECT_OK(test, dat_evd_modify_upcall(sq->env.recv, DAT_UPCALL_SINGLE_INSTANCE, &upcall,
						 DAT_UPCALL_INVOC_NEW));
	kd_settle(sq->env.recv);	/* the CQ is armed */
	local_bh_disable();	/* upcalls begin later */
	sq_recv(sq, 0, 6, 1);
	local_bh_enable();
	kd_settle(sq->env.recv);
	KUNIT_EXPECT_EQ(test, told.calls, 6);
	KUNIT_EXPECT_EQ(test, (int)told.held, 5);
	sq_expect_held(sq, 0);
	KD_EXPECT_OK(test, dat_evd_modify_upcall(sq->env.recv, DAT_UPCALL_DISABLE, DAT_UPCALL_SAME,
						 DAT_UPCALL_INVOC_NEW));
}

static void sq_told_counts(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct sq_told *told = data;

	if (told->calls++)
		return;
	if (told->size)
		told->ret = dat_srq_resize(told->srq, told->size);
	else
		dat_srq_query(told->srq, DAT_SRQ_FIELD_ALL, &told->param);
}

/*
 * Of eight buffers six are filled. When the first upcall begins, seven are outstanding: five more
 * upcalls are to come, and two buffers wait. @size: the upcall resizes the SRQ; else it counts.
 */
static void sq_told_six(struct sq *sq, struct sq_told *told, DAT_COUNT size)
{
	DAT_UPCALL_OBJECT upcall = { told, sq_told_counts };
	struct kunit *test = sq->env.test;

	*told = (struct sq_told) { .srq = sq->srq, .size = size };
	sq_post(sq, 0, 8);
	KD_EXPECT_OK(test, dat_evd_modify_upcall(sq->env.recv, DAT_UPCALL_SINGLE_INSTANCE, &upcall,
						 DAT_UPCALL_INVOC_NEW));
	kd_settle(sq->env.recv);	/* the CQ is armed */
	fake_ib_hold_irq(sq->env.dev, true);
	sq_recv(sq, 0, 6, 1);
	fake_ib_hold_irq(sq->env.dev, false);
	kd_settle(sq->env.recv);
	KUNIT_EXPECT_EQ(test, told->calls, 6);
	KD_EXPECT_OK(test, dat_evd_modify_upcall(sq->env.recv, DAT_UPCALL_DISABLE, DAT_UPCALL_SAME,
						 DAT_UPCALL_INVOC_NEW));
}

/* Buffers whose upcalls have not begun are outstanding, also if they were taken together. */
static void sq_query_upcall_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	struct kdapl_evd *evd;
	struct sq_told told;

	sq_srq(sq, 8);
	sq_ep(sq, 0);
	sq_told_six(sq, &told, 0);
	KUNIT_EXPECT_EQ(test, (int)told.param.available_dto_count, 2);
	KUNIT_EXPECT_EQ(test, (int)told.param.outstanding_dto_count, 7);
	sq_expect_counts(sq, 2, 2, "after the last upcall");
	sq_post(sq, 0, 6);
	sq_expect_full(sq);
	evd = kdapl_obj_get(sq->env.recv, DAT_HANDLE_TYPE_EVD);
	KUNIT_ASSERT_NOT_NULL(test, evd);
	KUNIT_EXPECT_EQ(test, evd->upcall_seq, 6ULL);
	kdapl_obj_put(&evd->obj);
}

/* The same buffers keep the SRQ from being made too short for them. */
static void sq_resize_upcall_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	struct sq_told told;

	sq_srq(sq, 8);
	kd_evd_replace(&sq->env, &sq->env.recv, 64, DAT_UPCALL_DISABLE, NULL, DAT_EVD_DTO_FLAG,
		       KDAT_EVD_CONTEXT_WORKQUEUE);
	sq_ep(sq, 0);
	sq_told_six(sq, &told, 6);
	KD_EXPECT_RET(test, told.ret, DAT_INVALID_STATE, DAT_INVALID_STATE_SRQ_OPERATIONAL);
	sq_expect_counts(sq, 2, 2, "after the last upcall");
}

/* dat_ep_recv_query, without an SRQ, and with it. */
static void sq_recv_query_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(&sq->env, KD_RW, 0, 8);
	DAT_EVENT event;
	DAT_COUNT n;
	int i;

	kd_ep(&sq->env, NULL);
	for (i = 0; i < 8; i++) {
		sq_expect_held(sq, i);
		KD_EXPECT_OK(test, kd_post(sq->env.ep, KD_RECV, 1, &iov, 0, NULL, 0));
	}
	kd_connect(&sq->env);
	for (i = 8; i; i--) {
		sq_expect_held(sq, i);
		fake_ib_recv(sq->env.qp, 1, false);
	}
	sq_expect_held(sq, 0);
	kd_drain(sq->env.recv);
	kd_ep_free(&sq->env);
	sq_srq(sq, 8);
	sq_ep(sq, 0);
	sq_post(sq, 0, 8);
	for (i = 0; i < 8; i++) {
		sq_expect_held(sq, i);
		sq_recv(sq, 0, 1, 1);
	}
	/* handed over: no longer held */
	for (i = 8; i; i--) {
		sq_expect_held(sq, i);
		KUNIT_EXPECT_TRUE(test, kd_next(sq->env.recv, &event));
	}
	sq_expect_held(sq, 0);
	/* each EP holds its own; in DISCONNECTED, too; one without PZ can hold none */
	sq_ep(sq, 1);
	sq_post(sq, 0, 3);
	sq_recv(sq, 0, 1, 1);
	sq_recv(sq, 1, 2, 1);
	kd_end(&sq->env, DAT_CONNECTION_EVENT_DISCONNECTED);
	sq_expect_held(sq, 2);
	sq_use(sq, 0);
	sq_expect_held(sq, 1);
	KD_ASSERT_OK(test, dat_ep_create(sq->env.ia, NULL, NULL, NULL, NULL, NULL, &sq->env.ep));
	KD_EXPECT_OK(test, dat_ep_recv_query(sq->env.ep, &n, NULL));
	KUNIT_EXPECT_EQ(test, (int)n, 0);
	KD_EXPECT_OK(test, dat_ep_free(sq->env.ep));
}

static void sq_resize_args_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	static const DAT_COUNT bad[] = { 0, -1, INT_MIN, INT_MAX };
	DAT_SRQ_PARAM param;
	DAT_IA_ATTR max;
	int i;

	KD_ASSERT_OK(test, dat_ia_query(sq->env.ia, NULL, DAT_IA_FIELD_ALL, &max, 0, NULL));
	sq_srq(sq, 8);
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		KD_BAD_ARG(test, dat_srq_resize(sq->srq, bad[i]), 2);
	KD_BAD_ARG(test, dat_srq_resize(sq->srq, max.max_recv_per_srq + 1), 2);
	sq_counts(sq, &param);
	KUNIT_EXPECT_EQ(test, (int)param.max_recv_dtos, 8);
	/* unused: any size there is */
	KD_EXPECT_OK(test, dat_srq_resize(sq->srq, max.max_recv_per_srq));
	sq_counts(sq, &param);
	KUNIT_EXPECT_GE(test, (int)param.max_recv_dtos, (int)max.max_recv_per_srq);
	KD_EXPECT_OK(test, dat_srq_resize(sq->srq, 1));
	sq_srq_free(sq);
	sq_srq(sq, 8);
	/* the device has no other one to give: nothing changes; then the watermark moves along */
	KD_EXPECT_OK(test, dat_srq_set_lw(sq->srq, 4));
	KUNIT_EXPECT_EQ(test, sq_low_events(sq), 1);
	for (i = 0; i < 2; i++) {
		fake_ib_fail(sq->env.dev, FAKE_IB_CREATE_SRQ, !i, -ENOMEM);
		KD_EXPECT_TYPE(test, dat_srq_resize(sq->srq, max.max_recv_per_srq + i - 1),
			       i ? 0 : DAT_INSUFFICIENT_RESOURCES);
		sq_counts(sq, &param);
		KUNIT_EXPECT_EQ(test, (int)param.low_watermark, 4);
		KUNIT_EXPECT_EQ(test, sq_low_events(sq), 0);
	}
}

/* An SRQ in use, as large as the device allows: what it was shrunk by comes back. */
static void sq_resize_back_test(struct kunit *test)
{
	struct fake_ib_caps caps = {};
	DAT_IA_ATTR max;
	struct sq *sq;
	int i, n;

	for (i = 0; i < 10; i++) {
		caps.max_srq_wr = 80 + i;
		sq = sq_open(test, &caps);
		KD_ASSERT_OK(test, dat_ia_query(sq->env.ia, NULL, DAT_IA_FIELD_ALL, &max, 0, NULL));
		n = max.max_recv_per_srq;
		/* with spare ones it is as large as it can be */
		KUNIT_EXPECT_LE(test, n + (int)kdapl_pool_spare(n), caps.max_srq_wr);
		KUNIT_EXPECT_GT(test, n + 1 + (int)kdapl_pool_spare(n + 1), caps.max_srq_wr);
		sq_srq(sq, n);
		sq_ep(sq, 0);
		KD_EXPECT_OK(test, dat_srq_resize(sq->srq, 1));
		KUNIT_EXPECT_EQ_MSG(test, (u32)dat_srq_resize(sq->srq, n), (u32)DAT_SUCCESS,
				    "%d entries", caps.max_srq_wr);
		sq_again(test);
	}
}

/* Every size from every fill: never below what is outstanding or the watermark. */
static void sq_resize_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	DAT_SRQ_PARAM param;
	int i, n, to, low;
	DAT_EVENT event;
	DAT_RETURN ret;
	bool small;

	sq_srq(sq, 10);
	sq_ep(sq, 0);
	for (i = 0; i < 6 * 4; i++) {
		n = i / 4 * 2;
		low = i % 4 * 3;
		sq_post(sq, 0, n);
		if (n)		/* arrived, not dequeued: outstanding all the same */
			sq_recv(sq, 0, 1, 1);
		KD_EXPECT_OK(test, dat_srq_set_lw(sq->srq, low));
		for (to = 1; to <= 12; to++) {
			ret = dat_srq_resize(sq->srq, to);
			small = to < n || to < low;
			KUNIT_EXPECT_EQ_MSG(test, (u32)DAT_GET_TYPE(ret),
					    small ? (u32)DAT_INVALID_STATE : 0U,
					    "%d posted, low %d, to %d", n, low, to);
			sq_counts(sq, &param);
			KUNIT_EXPECT_GE(test, (int)param.max_recv_dtos, small ? 10 : to);
			if (small)
				KUNIT_EXPECT_EQ(test, (int)param.max_recv_dtos, 10);
			KUNIT_EXPECT_EQ(test, (int)param.outstanding_dto_count, n);
			KUNIT_EXPECT_EQ(test, (int)param.low_watermark, low);
			KD_EXPECT_OK(test, dat_srq_resize(sq->srq, 10));
		}
		/* nothing was lost on the way */
		sq_recv(sq, 0, n ? n - 1 : 0, 1);
		for (to = 0; kd_next(sq->env.recv, &event); to++)
			KUNIT_EXPECT_EQ(test, kd_event_id(&event), (u64)to);
		KUNIT_EXPECT_EQ(test, to, n);
		KUNIT_EXPECT_EQ(test, sq_low_events(sq), !!low);
	}
}

static struct kunit_case srq_mark_cases[] = {
	KD_CASE(sq_low_test, "SRQ-LW-01,SRQ-LW-02,SIL-29,ASY-08: every low watermark"),
	KD_CASE(sq_low_args_test, "SRQ-LW-03,SRQ-CR-02: arguments of the low watermark"),
	KD_CASE(sq_low_evd_test, "SRQ-LW-01,SIL-29: the low watermark with every kind of EVD"),
	KD_CASE(sq_watch_test, "SRQ-LW-01,EP-WM-02,SIL-29: only what is armed counts"),
	KD_CASE(sq_high_test,
		"EP-WM-02,EP-WM-03,EP-WM-05,EP-WM-06,SIL-29,ASY-06: every high watermark"),
	KD_CASE(sq_high_again_test, "EP-WM-01,EP-WM-02,EP-WM-04,EP-WM-06: set again"),
	KD_CASE(sq_high_args_test, "EP-WM-01,EP-WM-03,EP-WM-07: arguments; before the connection"),
	KD_CASE(sq_high_unseen_test, "EP-WM-04: exceeded by buffers nobody has looked for yet"),
	KD_CASE(sq_high_swap_test, "EP-WM-01,EP-WM-02: set while the connection is replaced"),
	KD_CASE(sq_recv_query_upcall_test, "EP-RQ-01: held, but taken for upcalls"),
	KD_CASE(sq_query_upcall_test, "SRQ-QRY-01: outstanding, but taken for upcalls"),
	KD_CASE(sq_resize_upcall_test, "SRQ-RSZ-01: too short for what was taken for upcalls"),
	KD_CASE(sq_recv_query_test, "EP-RQ-01..03: buffers an EP holds"),
	KD_CASE(sq_resize_args_test, "SRQ-RSZ-03,SRQ-RSZ-02: arguments of resize"),
	KD_CASE(sq_resize_back_test, "SRQ-RSZ-01: as large as before, in use"),
	KD_CASE(sq_resize_test, "SRQ-RSZ-01,SRQ-RSZ-02: every size from every fill"),
	{}
};

KD_SUITE("kdapl-srq-mark", srq_mark_cases, sq_init, sq_exit);
