// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The fast path of the buffers of a Shared Receive Queue: which completions take it, that its
 * events and counts are those of the slow path, and that upcalls know whether there are more.
 */
#include "kd_srq.h"
#include "kd_upcall.h"
#include "../evd/event.h"

static enum kdapl_next sq_fast_next(struct sq *sq, DAT_EVENT *event)
{
	struct kdapl_evd *evd = kdapl_obj_get(sq->env.recv, DAT_HANDLE_TYPE_EVD);
	enum kdapl_next next;

	KUNIT_ASSERT_NOT_NULL(sq->env.test, evd);
	spin_lock_irq(&evd->lock);
	next = kdapl_evd_fast(evd, event);
	spin_unlock_irq(&evd->lock);
	kdapl_obj_put(&evd->obj);
	return next;
}

static void sq_fast_path_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	struct ib_qp *qp[2];
	DAT_EVENT event;
	int i;

	dto = &event.event_data.dto_completion_event_data;
	sq_srq(sq, 8);
	for (i = 0; i < 2; i++)
		qp[i] = sq_ep(sq, i);
	sq_post(sq, 100, 8);
	/* until then the slow path looks for messages from before ESTABLISHED */
	KD_EXPECT_EMPTY(test, sq->env.recv);
	for (i = 0; i < 4; i++) {
		KUNIT_ASSERT_EQ(test, fake_ib_recv(qp[i & 1], i, false), 0);
		KUNIT_ASSERT_EQ(test, (int)sq_fast_next(sq, &event), (int)KDAPL_NEXT_MORE);
		KUNIT_EXPECT_EQ(test, (u32)event.event_number, (u32)DAT_DTO_COMPLETION_EVENT);
		KUNIT_EXPECT_PTR_EQ(test, event.evd_handle, sq->env.recv);
		KUNIT_EXPECT_PTR_EQ(test, dto->ep_handle, sq->eps[i & 1].ep);
		KUNIT_EXPECT_EQ(test, (u64)dto->user_cookie.as_64, 100 + i);
		KUNIT_EXPECT_EQ(test, (int)dto->status, (int)DAT_DTO_SUCCESS);
		KUNIT_EXPECT_EQ(test, (u32)dto->operation, (u32)DAT_DTO_RECEIVE);
		KUNIT_EXPECT_EQ(test, (u32)dto->transfered_length, i);
		sq_expect_counts(sq, 7 - i, 7 - i, "fast");
	}
	KUNIT_EXPECT_EQ(test, (int)sq_fast_next(sq, &event), (int)KDAPL_NEXT_NONE);
	/* the buffers are free: as many can be posted again */
	sq_post(sq, 200, 4);
	KD_EXPECT_RET(test, sq_try_post(sq, 0), DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ);
}

/* Messages from before ESTABLISHED and armed watermarks take the slow path. */
static void sq_slow_path_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	DAT_EVENT event;

	sq_srq(sq, 8);
	sq_ep_on(sq, 0, sq->env.recv, NULL);
	sq_post(sq, 0, 8);
	KUNIT_ASSERT_EQ(test, fake_ib_recv(sq->env.qp, 5, false), 0);
	KUNIT_EXPECT_EQ(test, (int)sq_fast_next(sq, &event), (int)KDAPL_NEXT_SLOW);
	sq_expect_counts(sq, 7, 8, "early");
	kd_connect(&sq->env);
	sq_expect(sq, sq->env.recv, 0, 0, DAT_DTO_SUCCESS, 5);
	sq_expect_counts(sq, 7, 7, "established");

	KD_EXPECT_OK(test, dat_ep_set_watermark(sq->env.ep, DAT_WATERMARK_INFINITE, 5));
	KUNIT_ASSERT_EQ(test, fake_ib_recv(sq->env.qp, 6, false), 0);
	KUNIT_EXPECT_EQ(test, (int)sq_fast_next(sq, &event), (int)KDAPL_NEXT_SLOW);
	sq_expect(sq, sq->env.recv, 0, 1, DAT_DTO_SUCCESS, 6);

	KD_EXPECT_OK(test, dat_ep_set_watermark(sq->env.ep, DAT_WATERMARK_INFINITE,
						DAT_WATERMARK_INFINITE));
	KUNIT_ASSERT_EQ(test, fake_ib_recv(sq->env.qp, 7, false), 0);
	KUNIT_EXPECT_EQ(test, (int)sq_fast_next(sq, &event), (int)KDAPL_NEXT_MORE);
	KUNIT_EXPECT_EQ(test, kd_event_id(&event), 2);
	sq_expect_counts(sq, 5, 5, "without watermarks");
}

static void sq_fast_more_test(struct kunit *test)
{
	struct kd_sink *sink = kd_sink(test);
	struct sq *sq = sq_open(test, NULL);
	DAT_EVD_HANDLE evd;
	int i, n;

	kd_sink_init(sink);
	KD_ASSERT_OK(test, kd_evd_create(&sq->env, 32, DAT_UPCALL_SINGLE_INSTANCE, sink,
					 DAT_EVD_DTO_FLAG, KDAT_EVD_CONTEXT_WORKQUEUE, &evd));
	sq_srq(sq, 32);
	sq_ep_on(sq, 0, evd, NULL);
	kd_connect(&sq->env);
	for (n = 1; n <= 32; n *= 2) {
		kd_sink_init(sink);
		sink->evd = evd;
		sq_post(sq, 0, n);
		kd_settle(evd);
		fake_ib_hold_irq(sq->env.dev, true);
		for (i = 0; i < n; i++)
			KUNIT_ASSERT_EQ(test, fake_ib_recv(sq->env.qp, i, false), 0);
		fake_ib_hold_irq(sq->env.dev, false);
		kd_sink_expect(test, sink, n);
		kd_settle(evd);
		for (i = 0; i < n; i++) {
			KUNIT_EXPECT_EQ(test, sink->seen[i].id, i);
			KUNIT_EXPECT_EQ_MSG(test, sink->seen[i].more, i < n - 1, "%d of %d", i, n);
		}
		sq_expect_counts(sq, 0, 0, "all delivered");
	}
	sq_ep_free(sq, 0);
	KD_EXPECT_OK(test, dat_evd_free(evd));
}

static struct kunit_case srq_fast_cases[] = {
	KD_CASE(sq_fast_path_test, "SRQ-POST-04,SRQ-POST-06,SRQ-QRY-01: buffers on the fast path"),
	KD_CASE(sq_slow_path_test, "SRQ-POST-18,SRQ-QRY-01: buffers that need a closer look"),
	KD_CASE(sq_fast_more_test, "EVD-UP-01,SRQ-POST-13: more_events of buffers"),
	{}
};

static struct kunit_suite srq_fast_suite = {
	.name = "kdapl-srq-fast",
	.suite_init = kd_suite_init,
	.suite_exit = kd_suite_exit,
	.init = sq_init,
	.exit = sq_exit,
	.test_cases = srq_fast_cases,
};

kunit_test_suite(srq_fast_suite);
