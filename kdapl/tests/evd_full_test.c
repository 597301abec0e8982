// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * EVDs that are full: what is lost and who hears of it; EVDs whose length
 * changes while events are queued; and EVDs that go with events in them.
 */
#include <linux/delay.h>

#include "kd_upcall.h"

#define FULL_EPS	6
#define FULL_QLEN	4

/* Events of an EVD, one after the other, with the last return code. */
static DAT_RETURN full_next(DAT_EVD_HANDLE evd, DAT_EVENT *event)
{
	memset(event, 0x5a, sizeof(*event));
	return dat_evd_dequeue(evd, event);
}

static void full_expect_async(struct kunit *test, DAT_EVD_HANDLE evd, u32 number,
			      DAT_HANDLE handle, int reason)
{
	DAT_ASYNCH_ERROR_EVENT_DATA *data;
	DAT_EVENT event;

	KUNIT_ASSERT_EQ(test, (u32)full_next(evd, &event), (u32)DAT_SUCCESS);
	data = &event.event_data.asynch_error_event_data;
	KUNIT_EXPECT_EQ(test, (u32)event.event_number, number);
	KUNIT_EXPECT_PTR_EQ(test, event.evd_handle, evd);
	KUNIT_EXPECT_PTR_EQ(test, data->dat_handle, handle);
	KUNIT_EXPECT_EQ(test, (int)data->reason, reason);
}

/* Several EPs whose connection events go to one EVD. */
struct full {
	struct kd_env *env;
	DAT_EVD_HANDLE evd;
	DAT_EP_HANDLE ep[FULL_EPS];
	struct kdapl_ep *kep[FULL_EPS];
	struct ib_qp *qp[FULL_EPS];
};

static struct full *full_open(struct kunit *test, DAT_EVD_HANDLE evd, struct kd_env *env)
{
	struct full *full = kunit_kzalloc(test, sizeof(*full), GFP_KERNEL);
	DAT_EP_ATTR attr;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, full);
	full->env = env;
	full->evd = evd;
	kd_attr(&attr);
	for (i = 0; i < FULL_EPS; i++) {
		KD_ASSERT_OK(test, dat_ep_create(env->ia, env->pz, env->recv, env->req, evd,
						 &attr, &full->ep[i]));
		full->qp[i] = fake_ib_newest_qp(env->dev);
		full->kep[i] = kdapl_obj_get(full->ep[i], DAT_HANDLE_TYPE_EP);
		KUNIT_ASSERT_NOT_NULL(test, full->kep[i]);
	}
	return full;
}

/* The connection comes up, for the EP; whether its event fits is another matter. */
static void full_connect(struct full *full, int i)
{
	struct kd_env *env = full->env;

	env->ep = full->ep[i];
	env->kep = full->kep[i];
	env->qp = full->qp[i];
	kd_bring_up(env);
	KUNIT_EXPECT_EQ(env->test, (int)READ_ONCE(full->kep[i]->state),
			(int)DAT_EP_STATE_CONNECTED);
	env->ep = NULL;
	env->kep = NULL;
	env->qp = NULL;
}

static void full_expect_up(struct full *full, int i)
{
	struct kunit *test = full->env->test;
	DAT_EVENT event;

	KUNIT_ASSERT_EQ(test, (u32)full_next(full->evd, &event), (u32)DAT_SUCCESS);
	KUNIT_EXPECT_EQ(test, (u32)event.event_number, (u32)DAT_CONNECTION_EVENT_ESTABLISHED);
	KUNIT_EXPECT_PTR_EQ(test, event.event_data.connect_event_data.ep_handle, full->ep[i]);
}

/* A connection whose event was lost is as good as any other. */
static void full_expect_works(struct full *full, int i)
{
	struct kd_env *env = full->env;
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	DAT_EVENT event;

	KD_EXPECT_OK(env->test, kd_post(full->ep[i], KD_SEND, 1, &iov, 0x77, NULL, 0));
	KUNIT_EXPECT_EQ(env->test, fake_ib_complete(full->qp[i], false, IB_WC_SUCCESS), 0);
	KUNIT_ASSERT_EQ(env->test, (u32)full_next(env->req, &event), (u32)DAT_SUCCESS);
	KUNIT_EXPECT_EQ(env->test, kd_event_id(&event), 0x77ULL);
}

static void full_close(struct full *full)
{
	int i;

	for (i = 0; i < FULL_EPS; i++) {
		kdapl_obj_put(&full->kep[i]->obj);
		KD_EXPECT_OK(full->env->test, dat_ep_free(full->ep[i]));
	}
}

/* Connection events that do not fit: one report per episode, and nothing breaks. */
static void full_connection_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_EVD_HANDLE evd;
	struct full *full;
	int i;

	KD_ASSERT_OK(test, dat_evd_kcreate(env->ia, 2, DAT_UPCALL_DISABLE, NULL,
					   DAT_EVD_CONNECTION_FLAG, &evd));
	full = full_open(test, evd, env);
	full_connect(full, 0);
	full_connect(full, 1);
	KD_EXPECT_EMPTY(test, env->async);
	full_connect(full, 2);
	full_expect_async(test, env->async, DAT_ASYNC_ERROR_EVD_OVERFLOW, evd,
			  DAT_EVD_OVERFLOW_ERROR);
	/* the same episode */
	full_connect(full, 3);
	KD_EXPECT_EMPTY(test, env->async);
	for (i = 0; i < 4; i++)
		full_expect_works(full, i);
	/* room for one: what comes fits, the one after it starts another episode */
	full_expect_up(full, 0);
	full_connect(full, 4);
	KD_EXPECT_EMPTY(test, env->async);
	full_connect(full, 5);
	full_expect_async(test, env->async, DAT_ASYNC_ERROR_EVD_OVERFLOW, evd,
			  DAT_EVD_OVERFLOW_ERROR);
	KD_EXPECT_EMPTY(test, env->async);
	full_expect_up(full, 1);
	full_expect_up(full, 4);
	KD_EXPECT_EMPTY(test, evd);
	full_close(full);
	KD_EXPECT_OK(test, dat_evd_free(evd));
}

/* Completions do not take the place of connection events, nor the other way round. */
static void full_share_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	int i, round, n, accepted = 0, completions = 0, other = 0;
	DAT_EVD_HANDLE evd;
	DAT_EVENT event;
	DAT_EP_ATTR attr;

	KD_ASSERT_OK(test, dat_evd_kcreate(env->ia, FULL_QLEN, DAT_UPCALL_DISABLE, NULL,
					   DAT_EVD_CONNECTION_FLAG | DAT_EVD_DTO_FLAG |
					   DAT_EVD_SOFTWARE_FLAG, &evd));
	KD_EXPECT_OK(test, dat_evd_free(env->req));
	env->req = evd;
	kd_attr(&attr);
	kd_ep(env, &attr);
	kd_connect(env);
	/* completions until the posts are refused; they are all in the EVD */
	for (round = 0; round < 100; round++) {
		for (n = 0; !kd_post(env->ep, KD_SEND, 1, &iov, accepted, NULL, 0); n++)
			accepted++;
		if (!n)
			break;
		fake_ib_complete_all(env->qp, false, IB_WC_SUCCESS);
	}
	KUNIT_EXPECT_LT(test, round, 100);
	KUNIT_EXPECT_GT(test, accepted, FULL_QLEN + 8);
	for (i = 0; i < FULL_QLEN; i++)
		KD_EXPECT_OK(test, kd_post_se(evd, KD_ID(1, i)));
	KD_EXPECT_RET(test, kd_post_se(evd, KD_ID(1, i)), DAT_QUEUE_FULL, DAT_NO_SUBTYPE);
	KD_EXPECT_EMPTY(test, env->async);
	/* all of them count for the length, also those nobody could move anywhere */
	KD_EXPECT_RET(test, dat_evd_resize(evd, accepted + FULL_QLEN - 1), DAT_INVALID_STATE,
		      DAT_NO_SUBTYPE);
	KD_EXPECT_OK(test, dat_evd_resize(evd, accepted + FULL_QLEN));
	while (kd_next(evd, &event)) {
		if (event.event_number == DAT_SOFTWARE_EVENT)
			KUNIT_EXPECT_EQ(test, kd_event_id(&event), KD_ID(1, other++));
		else
			KUNIT_EXPECT_EQ(test, kd_event_id(&event), (u64)completions++);
	}
	KUNIT_EXPECT_EQ(test, completions, accepted);
	KUNIT_EXPECT_EQ(test, other, FULL_QLEN);
	KD_EXPECT_OK(test, kd_post(env->ep, KD_SEND, 1, &iov, 0, NULL, 0));
}

static int full_send(struct kd_env *env, u32 from, int n)
{
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	int i;

	for (i = 0; i < n; i++) {
		if (kd_post(env->ep, KD_SEND, 1, &iov, KD_ID(1, from + i), NULL, 0))
			break;
		fake_ib_complete(env->qp, false, IB_WC_SUCCESS);
	}
	return i;
}

/* What upcalls bring, software events apart from completions. */
struct full_order {
	u32 completions;
	u32 others;
	u32 wrong;
};

static void full_note(struct full_order *order, const DAT_EVENT *event)
{
	if (event->event_number == DAT_SOFTWARE_EVENT)
		order->wrong += kd_event_id(event) != KD_ID(2, order->others++);
	else
		order->wrong += kd_event_id(event) != KD_ID(1, order->completions++);
}

static void full_inside(struct kd_sink *sink, const DAT_EVENT *event, bool more)
{
	if (event)
		full_note(sink->arg, event);
}

/* Nobody has dequeued until nothing could be posted any more; then upcalls are enabled. */
static void full_store_test(struct kunit *test)
{
	static const DAT_UPCALL_POLICY policies[] = {
		DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_NOTIFY,
	};
	struct kd_env *env = kd_open(test, NULL);
	struct kd_sink *sink = kd_sink(test);
	struct full_order order;
	int i, n, round, accepted;
	DAT_EVENT event;

	KD_EXPECT_OK(test, dat_evd_free(env->req));
	env->req = DAT_HANDLE_NULL;
	KD_ASSERT_OK(test, kd_evd_create(env, FULL_QLEN, DAT_UPCALL_DISABLE, sink,
					 DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG,
					 KDAT_EVD_CONTEXT_DEFAULT, &env->req));
	sink->inside = full_inside;
	sink->arg = &order;
	kd_ep(env, NULL);
	kd_connect(env);
	for (i = 0; i < 2 * (int)ARRAY_SIZE(policies); i++) {
		memset(&order, 0, sizeof(order));
		for (accepted = 0, round = 0; round < 100; round++) {
			n = full_send(env, accepted, 100);
			if (!n)
				break;
			accepted += n;
		}
		KUNIT_EXPECT_LT(test, round, 100);
		n = sink->started;
		KD_EXPECT_OK(test, kd_policy(env->req, policies[i / 2], i & 1 ?
					     DAT_UPCALL_INVOC_ANY : DAT_UPCALL_INVOC_NEW));
		kd_settle(env->req);
		if (policies[i / 2] == DAT_UPCALL_NOTIFY && i & 1)
			KUNIT_EXPECT_EQ(test, sink->started, n + 1);
		else if (i & 1)
			KUNIT_EXPECT_EQ(test, (int)order.completions, accepted);
		KD_EXPECT_OK(test, kd_post_se(env->req, KD_ID(2, 0)));
		kd_settle(env->req);
		KUNIT_EXPECT_GT(test, sink->started, n);
		while (policies[i / 2] == DAT_UPCALL_NOTIFY && kd_next(env->req, &event))
			full_note(&order, &event);
		KD_EXPECT_EMPTY(test, env->req);
		KUNIT_EXPECT_EQ(test, (int)order.completions, accepted);
		KUNIT_EXPECT_EQ(test, order.others, 1U);
		KUNIT_EXPECT_EQ(test, order.wrong, 0U);
		KD_EXPECT_OK(test, kd_policy(env->req, DAT_UPCALL_DISABLE, DAT_UPCALL_INVOC_NEW));
	}
}

/* More unsignalled completions than there is room for: the oldest go out early. */
static void full_unsignalled_test(struct kunit *test)
{
	static const enum kdat_evd_context contexts[] = {
		KDAT_EVD_CONTEXT_SOFTIRQ, KDAT_EVD_CONTEXT_WORKQUEUE,
	};
	struct kd_env *env = test->priv;
	struct kd_sink *sink = kd_sink(test);
	struct full_order order;
	DAT_LMR_TRIPLET iov;
	DAT_EP_ATTR attr;
	int c, i;

	kd_attr(&attr);
	attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	kd_pin();
	for (c = 0; c < ARRAY_SIZE(contexts); c++) {
		memset(&order, 0, sizeof(order));
		kd_sink_init(sink);
		sink->inside = full_inside;
		sink->arg = &order;
		kd_open(test, NULL);
		KD_EXPECT_OK(test, dat_evd_free(env->req));
		env->req = DAT_HANDLE_NULL;
		KD_ASSERT_OK(test, kd_evd_create(env, FULL_QLEN, DAT_UPCALL_SINGLE_INSTANCE, sink,
						 DAT_EVD_DTO_FLAG, contexts[c], &env->req));
		kd_ep(env, &attr);
		kd_connect(env);
		iov = kd_seg(env, KD_RW, 0, 8);
		for (i = 0; i < 500; i++) {
			KD_EXPECT_OK(test, kd_post(env->ep, KD_SEND, 1, &iov, KD_ID(1, i), NULL,
						   DAT_COMPLETION_UNSIGNALLED_FLAG));
			fake_ib_complete(env->qp, false, IB_WC_SUCCESS);
			kd_settle(env->req);
			if (i == FULL_QLEN)
				KUNIT_EXPECT_EQ(test, sink->started, 0);
		}
		KUNIT_EXPECT_GT(test, sink->started, 0);
		KUNIT_EXPECT_LT(test, sink->started, 500);
		KUNIT_EXPECT_EQ(test, full_send(env, i, 1), 1);
		kd_sink_expect(test, sink, 501);
		KUNIT_EXPECT_EQ(test, order.wrong, 0U);
		kd_exit(test);
		memset(env, 0, sizeof(*env));
		env->test = test;
	}
}

/* Software events that do not fit are refused, and that is all. */
static void full_software_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_EVD_HANDLE evd;
	DAT_EVENT event;
	u32 seq = 0, out = 0;
	int qlen, i, round;

	for (qlen = 1; qlen <= 5; qlen++) {
		KD_ASSERT_OK(test, dat_evd_kcreate(env->ia, qlen, DAT_UPCALL_DISABLE, NULL,
						   DAT_EVD_SOFTWARE_FLAG, &evd));
		for (i = 0; i < qlen; i++)
			KD_EXPECT_OK(test, kd_post_se(evd, KD_ID(1, seq++)));
		/* exactly one more for each that is taken, round and round */
		for (round = 0; round < 3 * qlen; round++) {
			for (i = 0; i < 3; i++)
				KD_EXPECT_RET(test, kd_post_se(evd, KD_ID(2, 0)), DAT_QUEUE_FULL,
					      DAT_NO_SUBTYPE);
			KUNIT_ASSERT_TRUE(test, kd_next(evd, &event));
			KUNIT_EXPECT_EQ(test, kd_event_id(&event), KD_ID(1, out++));
			KD_EXPECT_OK(test, kd_post_se(evd, KD_ID(1, seq++)));
		}
		KUNIT_EXPECT_EQ(test, kd_drain(evd), qlen);
		out = seq;
		KD_EXPECT_OK(test, dat_evd_free(evd));
	}
	KD_EXPECT_EMPTY(test, env->async);
}

/* An IA of its own, with an asynchronous EVD of its own kind. */
static DAT_IA_HANDLE full_ia(struct kd_env *env, DAT_COUNT qlen, DAT_EVD_HANDLE *async)
{
	char name[DAT_NAME_MAX_LENGTH];
	DAT_IA_HANDLE ia;

	snprintf(name, sizeof(name), "%s-1", fake_ib_name(env->dev));
	KD_ASSERT_OK(env->test, dat_ia_open(name, qlen, async, &ia));
	return ia;
}

static void full_async(struct kunit *test, DAT_IA_HANDLE ia, int reason)
{
	struct kdapl_ia *kia = kdapl_obj_get(ia, DAT_HANDLE_TYPE_IA);

	KUNIT_ASSERT_NOT_NULL(test, kia);
	kdapl_ia_async(kia, ia, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR, reason);
	kdapl_obj_put(&kia->obj);
}

/* The asynchronous EVD itself: its last word is that it was the last. */
static void full_async_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_EVD_HANDLE async;
	DAT_EVD_PARAM param;
	DAT_IA_HANDLE ia;
	DAT_EVENT event;
	int i, n;

	for (n = 1; n < 4; n++) {
		async = DAT_HANDLE_NULL;
		ia = full_ia(env, n, &async);
		KD_EXPECT_OK(test, dat_evd_query(async, DAT_EVD_FIELD_ALL, &param));
		n = param.evd_qlen;
		for (i = 0; i < n; i++)
			full_async(test, ia, i);
		if (n == 2) {
			/* full is not yet too many */
			full_expect_async(test, async, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR,
					  ia, 0);
			full_async(test, ia, n);
		}
		full_async(test, ia, 77);
		full_async(test, ia, 78);
		for (i = n == 2; i < n + (n == 2); i++)
			full_expect_async(test, async, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR,
					  ia, i);
		full_expect_async(test, async, DAT_ASYNC_ERROR_IA_CATASTROPHIC, ia,
				  DAT_IA_CATASTROPHIC_ERROR);
		for (i = 0; i < 3; i++)
			KUNIT_EXPECT_EQ(test, (u32)DAT_GET_TYPE(full_next(async, &event)),
					(u32)DAT_INVALID_STATE);
		/* with room again it stays dead */
		full_async(test, ia, 79);
		KUNIT_EXPECT_EQ(test, (u32)DAT_GET_TYPE(full_next(async, &event)),
				(u32)DAT_INVALID_STATE);
		KD_EXPECT_OK(test, dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	}
	/* the other IA of the device has not suffered */
	KD_EXPECT_EMPTY(test, env->async);
}

/* An asynchronous EVD that carries other streams goes on with these. */
static void full_async_shared_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kd_sink *sink = kd_sink(test);
	DAT_EVD_HANDLE evd;
	DAT_IA_HANDLE ia;
	DAT_EVENT event;
	int i;

	KD_ASSERT_OK(test, dat_evd_kcreate(env->ia, FULL_QLEN, DAT_UPCALL_DISABLE, NULL,
					   DAT_EVD_ASYNC_FLAG | DAT_EVD_SOFTWARE_FLAG, &evd));
	ia = full_ia(env, 1, &evd);
	for (i = 0; i < FULL_QLEN; i++)
		KD_EXPECT_OK(test, kd_post_se(evd, KD_ID(1, i)));
	/* refused software events are no overflow */
	KD_EXPECT_RET(test, kd_post_se(evd, KD_ID(1, i)), DAT_QUEUE_FULL, DAT_NO_SUBTYPE);
	full_async(test, ia, 1);
	full_async(test, ia, 2);
	for (i = 0; i < FULL_QLEN; i++) {
		KUNIT_ASSERT_TRUE(test, kd_next(evd, &event));
		KUNIT_EXPECT_EQ(test, (u32)event.event_number, (u32)DAT_SOFTWARE_EVENT);
		KUNIT_EXPECT_EQ(test, kd_event_id(&event), KD_ID(1, i));
	}
	full_expect_async(test, evd, DAT_ASYNC_ERROR_IA_CATASTROPHIC, ia,
			  DAT_IA_CATASTROPHIC_ERROR);
	KD_EXPECT_RET(test, full_next(evd, &event), DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE);
	full_async(test, ia, 3);
	KD_EXPECT_RET(test, full_next(evd, &event), DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE);
	KD_EXPECT_OK(test, kd_post_se(evd, KD_ID(1, 9)));
	KUNIT_EXPECT_EQ(test, kd_drain(evd), 1);
	KD_EXPECT_OK(test, dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));

	/* the last word starts an upcall as any other */
	KD_EXPECT_OK(test, dat_evd_free(evd));
	KD_ASSERT_OK(test, kd_evd_create(env, 1, DAT_UPCALL_DISABLE, sink, DAT_EVD_ASYNC_FLAG,
					 KDAT_EVD_CONTEXT_DEFAULT, &evd));
	ia = full_ia(env, 1, &evd);
	full_async(test, ia, 1);
	KD_EXPECT_OK(test, kd_policy(evd, DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_INVOC_NEW));
	kd_settle(evd);
	KUNIT_EXPECT_EQ(test, sink->started, 0);
	full_async(test, ia, 2);
	KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, 2, 2));
	full_async(test, ia, 3);
	kd_settle(evd);
	KUNIT_EXPECT_EQ(test, sink->started, 2);
	KD_EXPECT_OK(test, dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	KD_EXPECT_OK(test, dat_evd_free(evd));
}

/* The length changes under queued events: all stay, in order, wrapped around or not. */
static void full_resize_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	u32 seq = 0, out = 0;
	DAT_EVD_HANDLE evd;
	DAT_EVD_PARAM param;
	DAT_EVENT event;
	int qlen, old, turn, i;

	KD_ASSERT_OK(test, dat_evd_kcreate(env->ia, 2, DAT_UPCALL_DISABLE, NULL,
					   DAT_EVD_SOFTWARE_FLAG, &evd));
	for (i = 0; i < 200; i++) {
		/* somewhere in the middle of the work queue, so full, so long */
		for (turn = i * 7 % 13; turn; turn--) {
			if (kd_post_se(evd, KD_ID(1, seq)) == DAT_SUCCESS)
				seq++;
			if (turn & 1 && kd_next(evd, &event))
				KUNIT_EXPECT_EQ(test, kd_event_id(&event), KD_ID(1, out++));
		}
		KD_EXPECT_OK(test, dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
		old = param.evd_qlen;
		qlen = 1 + i * 11 % 40;
		if (qlen < (int)(seq - out)) {
			KD_EXPECT_RET(test, dat_evd_resize(evd, qlen), DAT_INVALID_STATE,
				      DAT_NO_SUBTYPE);
			qlen = old;
		} else {
			KD_EXPECT_OK(test, dat_evd_resize(evd, qlen));
		}
		KD_EXPECT_OK(test, dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
		KUNIT_EXPECT_EQ(test, (int)param.evd_qlen, qlen);
		/* it holds exactly that many from now on */
		while (seq - out < qlen)
			KD_EXPECT_OK(test, kd_post_se(evd, KD_ID(1, seq++)));
		KD_EXPECT_RET(test, kd_post_se(evd, KD_ID(1, seq)), DAT_QUEUE_FULL,
			      DAT_NO_SUBTYPE);
		while (seq - out > i % 5) {
			KUNIT_ASSERT_TRUE(test, kd_next(evd, &event));
			KUNIT_EXPECT_EQ(test, kd_event_id(&event), KD_ID(1, out++));
		}
	}
	KD_EXPECT_OK(test, dat_evd_free(evd));
}

/* What counts is all that dequeue would return, wherever it is. */
static void full_resize_cq_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_BOOLEAN recv_idle, request_idle;
	DAT_EP_STATE state;
	DAT_EVENT event;
	u32 seq = 0, out = 0;
	int stored, polled;

	kd_ep(env, NULL);
	kd_connect(env);
	for (stored = 0; stored <= 6; stored++) {
		for (polled = 0; polled <= 6; polled++) {
			int n = stored + polled;

			KD_EXPECT_OK(test, dat_evd_resize(env->req, 64));
			KUNIT_ASSERT_EQ(test, full_send(env, seq, stored), stored);
			dat_ep_get_status(env->ep, &state, &recv_idle, &request_idle);
			KUNIT_ASSERT_EQ(test, full_send(env, seq + stored, polled), polled);
			seq += n;
			if (n > 1)
				KD_EXPECT_RET(test, dat_evd_resize(env->req, n - 1),
					      DAT_INVALID_STATE, DAT_NO_SUBTYPE);
			KD_EXPECT_OK(test, dat_evd_resize(env->req, n ?: 1));
			KD_EXPECT_OK(test, dat_evd_resize(env->req, 40 + n));
			while (kd_next(env->req, &event))
				KUNIT_EXPECT_EQ(test, kd_event_id(&event), KD_ID(1, out++));
			KUNIT_EXPECT_EQ(test, out, seq);
		}
	}
}

struct full_flood {
	struct kd_env *env;
	u32 n;
	bool done;
};

static void full_flood(void *arg)
{
	struct full_flood *flood = arg;
	int idle = 0;

	/* a full queue waits for its consumer */
	while (flood->n < 3000 && idle < 10000) {
		int n = full_send(flood->env, flood->n, 1);

		flood->n += n;
		if (n && flood->n % 16)
			continue;
		idle = n ? 0 : idle + 1;
		usleep_range(10, 30);
	}
	WRITE_ONCE(flood->done, true);
}

/* Events arrive while the length changes: none is lost, none overtakes. */
static void full_resize_race_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct full_flood flood = { .env = env };
	struct kd_aside aside;
	u32 out = 0, wrong = 0, type;
	DAT_EVENT event;
	int i = 0;
	bool done;

	kd_ep(env, NULL);
	kd_connect(env);
	kd_aside(test, &aside, full_flood, &flood);
	do {
		done = READ_ONCE(flood.done);
		type = DAT_GET_TYPE(dat_evd_resize(env->req, 1 + i++ * 13 % 200));
		if (type != DAT_SUCCESS && type != DAT_INVALID_STATE)
			wrong++;
		while (kd_next(env->req, &event))
			wrong += kd_event_id(&event) != KD_ID(1, out++);
		usleep_range(10, 30);
	} while (!done);
	KUNIT_EXPECT_TRUE(test, kd_aside_wait(&aside));
	while (kd_next(env->req, &event))
		wrong += kd_event_id(&event) != KD_ID(1, out++);
	KUNIT_EXPECT_EQ(test, wrong, 0U);
	KUNIT_EXPECT_EQ(test, flood.n, 3000U);
	KUNIT_EXPECT_EQ(test, out, flood.n);
}

/* The event an upcall has in hand does not count any more, those behind it do. */
static void full_resize_upcall_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kd_sink *sink = kd_sink(test);
	DAT_EVD_HANDLE evd;
	int i;

	KD_ASSERT_OK(test, kd_evd_create(env, FULL_QLEN, DAT_UPCALL_SINGLE_INSTANCE, sink,
					 DAT_EVD_SOFTWARE_FLAG, KDAT_EVD_CONTEXT_DEFAULT, &evd));
	kd_sink_pass(sink, 0);
	for (i = 0; i < FULL_QLEN; i++)
		KD_EXPECT_OK(test, kd_post_se(evd, KD_ID(1, i)));
	KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, 1, 0));
	KD_EXPECT_RET(test, dat_evd_resize(evd, FULL_QLEN - 2), DAT_INVALID_STATE,
		      DAT_NO_SUBTYPE);
	KD_EXPECT_OK(test, dat_evd_resize(evd, FULL_QLEN - 1));
	KD_EXPECT_RET(test, kd_post_se(evd, KD_ID(1, i)), DAT_QUEUE_FULL, DAT_NO_SUBTYPE);
	KD_EXPECT_OK(test, dat_evd_resize(evd, 2 * FULL_QLEN));
	for (; i < 2 * FULL_QLEN; i++)
		KD_EXPECT_OK(test, kd_post_se(evd, KD_ID(1, i)));
	kd_sink_pass(sink, INT_MAX);
	kd_sink_expect(test, sink, 2 * FULL_QLEN);
	for (i = 0; i < 2 * FULL_QLEN; i++)
		KUNIT_EXPECT_EQ(test, sink->seen[i].id, KD_ID(1, i));
	KD_EXPECT_OK(test, dat_evd_free(evd));
}

/* Queued events go with their EVD, and with nothing else. */
static void full_free_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_EVD_HANDLE evd[2], old;
	DAT_EVENT event;
	DAT_EP_ATTR attr;
	int i;

	for (i = 0; i < 2; i++)
		KD_ASSERT_OK(test, dat_evd_kcreate(env->ia, FULL_QLEN, DAT_UPCALL_DISABLE, NULL,
						   DAT_EVD_SOFTWARE_FLAG | DAT_EVD_CONNECTION_FLAG |
						   DAT_EVD_DTO_FLAG, &evd[i]));
	for (i = 0; i < 3; i++) {
		KD_EXPECT_OK(test, kd_post_se(evd[0], KD_ID(0, i)));
		KD_EXPECT_OK(test, kd_post_se(evd[1], KD_ID(1, i)));
	}
	/* an EP feeds it: not yet */
	old = env->req;
	env->req = evd[0];
	kd_attr(&attr);
	kd_ep(env, &attr);
	kd_connect(env);
	KUNIT_EXPECT_EQ(test, full_send(env, 0, 3), 3);
	KD_EXPECT_RET(test, dat_evd_free(evd[0]), DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
	/* the EP changes over to another EVD; what it left behind is not its concern */
	kd_ep_free(env);
	env->req = old;
	kd_ep(env, &attr);
	kd_connect(env);
	KD_EXPECT_OK(test, dat_evd_free(evd[0]));
	KD_EXPECT_RET(test, full_next(evd[0], &event), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	KUNIT_EXPECT_EQ(test, full_send(env, 0, 3), 3);
	for (i = 0; i < 3; i++) {
		KUNIT_ASSERT_TRUE(test, kd_next(env->req, &event));
		KUNIT_EXPECT_EQ(test, kd_event_id(&event), KD_ID(1, i));
		KUNIT_ASSERT_TRUE(test, kd_next(evd[1], &event));
		KUNIT_EXPECT_EQ(test, kd_event_id(&event), KD_ID(1, i));
	}
	KD_EXPECT_EMPTY(test, evd[1]);
	KD_EXPECT_EMPTY(test, env->async);
	KD_EXPECT_OK(test, dat_evd_free(evd[1]));
}

static struct kunit_case full_cases[] = {
	KD_CASE(full_connection_test, "EVD-OVF-01,EVD-OVF-02,EVD-OVF-06: connection events"),
	KD_CASE(full_share_test, "EVD-OVF-04,EVD-OVF-06: completions have their own room"),
	KD_CASE(full_store_test, "EVD-MOD-02,EVD-MOD-03,FLAG-11: upcalls for a full EVD"),
	KD_CASE(full_unsignalled_test, "FLAG-04,FLAG-11,EVD-UP-04: nothing but unsignalled ones"),
	KD_CASE(full_software_test, "EVD-OVF-04,EVD-SE-03,EVD-SE-04: software events"),
	KD_CASE(full_async_test, "EVD-OVF-03: the asynchronous EVD itself"),
	KD_CASE(full_async_shared_test, "EVD-OVF-03,ASY-21: one that carries other streams too"),
	KD_CASE(full_resize_test, "EVD-RSZ-01,EVD-RSZ-02,EVD-QRY-01: another length"),
	KD_CASE(full_resize_cq_test, "EVD-RSZ-01,EVD-RSZ-02: events in the CQ and in the store"),
	KD_CASE(full_resize_race_test, "EVD-RSZ-01: events arrive meanwhile"),
	KD_CASE(full_resize_upcall_test, "EVD-RSZ-01,EVD-RSZ-02: an upcall runs meanwhile"),
	KD_CASE(full_free_test, "EVD-FREE-01,EVD-FREE-02: events go with their EVD"),
	{}
};

static struct kunit_suite full_suite = {
	.name = "kdapl-evd-full",
	.suite_init = kd_suite_init,
	.suite_exit = kd_suite_exit,
	.init = kd_init,
	.exit = kd_exit,
	.test_cases = full_cases,
};

kunit_test_suite(full_suite);
