// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * EVDs that are full: what is lost and which EVD tells of it; EVDs whose length
 * changes while events are queued.
 */
#include "kd_upcall.h"

#define FULL_EPS	6
#define FULL_QLEN	4

static void full_expect_async(struct kunit *test, DAT_EVD_HANDLE evd, u32 number,
			      DAT_HANDLE handle, int reason)
{
	DAT_ASYNCH_ERROR_EVENT_DATA *data;
	DAT_EVENT event;

	KUNIT_ASSERT_TRUE(test, kd_next(evd, &event));
	data = &event.event_data.asynch_error_event_data;
	KUNIT_EXPECT_EQ(test, (u32)event.event_number, number);
	KUNIT_EXPECT_PTR_EQ(test, event.evd_handle, evd);
	KUNIT_EXPECT_PTR_EQ(test, data->dat_handle, handle);
	KUNIT_EXPECT_EQ(test, (int)data->reason, reason);
}

/* EPs whose connection events go to an EVD that is too short for them. */
struct full {
	struct kd_env *env;
	DAT_EP_HANDLE ep[FULL_EPS];
	struct ib_qp *qp[FULL_EPS];
	struct kdapl_conn *conn[FULL_EPS];
	int n;
};

/* One more is connected, whether its event fits or not, and is as good as any other. */
static void full_connect(struct full *full)
{
	struct kd_env *env = full->env;
	int n = full->n++;

	kd_ep(env, NULL);
	kd_bring_up(env);
	KUNIT_EXPECT_EQ(env->test, (int)READ_ONCE(env->kep->state), (int)DAT_EP_STATE_CONNECTED);
	full->ep[n] = env->ep;
	full->qp[n] = env->qp;
	full->conn[n] = kd_conn_of(env);
	kdapl_obj_put(&env->kep->obj);
	env->kep = NULL;
	env->ep = DAT_HANDLE_NULL;
	env->qp = NULL;
	kd_sent(env, full->ep[n], full->qp[n], 0x77, 0);
	kd_expect_id(env->test, env->req, 0x77);
}

static void full_expect(struct full *full, int i, u32 number)
{
	struct kunit *test = full->env->test;
	DAT_EVENT event;

	KUNIT_ASSERT_TRUE(test, kd_next(full->env->conn, &event));
	KUNIT_EXPECT_EQ(test, (u32)event.event_number, number);
	KUNIT_EXPECT_PTR_EQ(test, event.event_data.connect_event_data.ep_handle, full->ep[i]);
}

/* Connection events that do not fit: one report per episode, and nothing breaks. */
static void full_connection_test(struct kunit *test)
{
	const u32 up = DAT_CONNECTION_EVENT_ESTABLISHED, down = DAT_CONNECTION_EVENT_DISCONNECTED;
	struct kd_env *env = kd_open(test, NULL);
	struct full full = { .env = env };
	int i;

	kd_evd_replace(env, &env->conn, 2, DAT_UPCALL_DISABLE, NULL, DAT_EVD_CONNECTION_FLAG,
		       KDAT_EVD_CONTEXT_DEFAULT);
	full_connect(&full);
	full_connect(&full);
	KD_EXPECT_EMPTY(test, env->async);
	full_connect(&full);
	full_expect_async(test, env->async, DAT_ASYNC_ERROR_EVD_OVERFLOW, env->conn,
			  DAT_EVD_OVERFLOW_ERROR);
	/* the same episode */
	full_connect(&full);
	KD_EXPECT_EMPTY(test, env->async);
	/* room for one: what comes fits, the one after it starts another episode */
	full_expect(&full, 0, up);
	full_connect(&full);
	KD_EXPECT_EMPTY(test, env->async);
	full_connect(&full);
	full_expect_async(test, env->async, DAT_ASYNC_ERROR_EVD_OVERFLOW, env->conn,
			  DAT_EVD_OVERFLOW_ERROR);
	KD_EXPECT_EMPTY(test, env->async);
	full_expect(&full, 1, up);
	full_expect(&full, 4, up);
	KD_EXPECT_EMPTY(test, env->conn);
	/* with more room every end is told of */
	KD_EXPECT_OK(test, dat_evd_resize(env->conn, full.n));
	for (i = 0; i < full.n; i++) {
		KD_EXPECT_OK(test, dat_ep_disconnect(full.ep[i], DAT_CLOSE_ABRUPT_FLAG));
		KUNIT_EXPECT_TRUE(test, wait_for_completion_timeout(&full.conn[i]->ended,
								    KD_LONG));
		full_expect(&full, i, down);
		KD_EXPECT_OK(test, dat_ep_free(full.ep[i]));
	}
	KD_EXPECT_EMPTY(test, env->async);
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

/* What came, software events apart from completions. */
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

/* Nobody dequeues until nothing can be posted any more; then upcalls, or dequeues. */
static void full_store(struct kunit *test, DAT_UPCALL_POLICY policy, DAT_UPCALL_FLAG flag)
{
	struct kd_env *env = test->priv;
	struct kd_sink *sink = kd_sink(test);
	struct full_order order = {};
	int i, n, accepted = 0;
	DAT_EVENT event;

	kd_open(test, NULL);
	kd_evd_replace(env, &env->req, FULL_QLEN, DAT_UPCALL_DISABLE, sink,
		       DAT_EVD_CONNECTION_FLAG | DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG,
		       KDAT_EVD_CONTEXT_DEFAULT);
	sink->inside = full_inside;
	sink->arg = &order;
	kd_ep(env, NULL);
	kd_connect(env);
	do {
		n = full_send(env, accepted, 100);
		accepted += n;
	} while (n && accepted < 10000);
	KUNIT_EXPECT_GT(test, accepted, FULL_QLEN + 8);
	KUNIT_EXPECT_LT(test, accepted, 10000);
	/* completions do not take the place of the others, nor the other way round */
	for (i = 0; i < FULL_QLEN; i++)
		KD_EXPECT_OK(test, kd_post_se(env->req, KD_ID(2, i)));
	KD_EXPECT_RET(test, kd_post_se(env->req, KD_ID(2, i)), DAT_QUEUE_FULL, DAT_NO_SUBTYPE);
	KD_EXPECT_EMPTY(test, env->async);
	/* all of them count for the length, also those nobody could move anywhere */
	KD_EXPECT_RET(test, dat_evd_resize(env->req, accepted + FULL_QLEN - 1),
		      DAT_INVALID_STATE, DAT_NO_SUBTYPE);
	KD_EXPECT_OK(test, dat_evd_resize(env->req, accepted + FULL_QLEN));
	KD_EXPECT_OK(test, kd_policy(env->req, policy, flag));
	kd_settle(env->req);
	if (flag == DAT_UPCALL_INVOC_NEW) {
		KUNIT_EXPECT_EQ(test, sink->started, 0);
		KD_EXPECT_OK(test, kd_post_se(env->req, KD_ID(2, i++)));
		kd_settle(env->req);
	}
	KUNIT_EXPECT_EQ(test, sink->started, policy == DAT_UPCALL_NOTIFY ? 1 :
			policy == DAT_UPCALL_SINGLE_INSTANCE ? accepted + i : 0);
	while (kd_next(env->req, &event))
		full_note(&order, &event);
	KUNIT_EXPECT_EQ(test, (int)order.completions, accepted);
	KUNIT_EXPECT_EQ(test, (int)order.others, i);
	KUNIT_EXPECT_EQ(test, order.wrong, 0U);
	KUNIT_EXPECT_EQ(test, full_send(env, 0, 1), 1);
	KD_EXPECT_OK(test, kd_policy(env->req, DAT_UPCALL_TEARDOWN, DAT_UPCALL_INVOC_NEW));
	kd_again(test);
}

static void full_store_test(struct kunit *test)
{
	full_store(test, DAT_UPCALL_DISABLE, DAT_UPCALL_INVOC_NEW);
	full_store(test, DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_INVOC_NEW);
	full_store(test, DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_INVOC_ANY);
	full_store(test, DAT_UPCALL_NOTIFY, DAT_UPCALL_INVOC_ANY);
}

/* More unsignalled completions than there is room for: the oldest go out early. */
static void full_unsignalled_test(struct kunit *test)
{
	struct kd_env *env = test->priv;
	struct kd_sink *sink = kd_sink(test);
	struct full_order order;
	DAT_EP_ATTR attr;
	int c, i;

	kd_attr(&attr);
	attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	kd_pin();
	for (c = 0; c < KD_CONTEXTS; c++) {
		memset(&order, 0, sizeof(order));
		kd_sink_init(sink);
		sink->inside = full_inside;
		sink->arg = &order;
		kd_open(test, NULL);
		kd_evd_replace(env, &env->req, FULL_QLEN, DAT_UPCALL_SINGLE_INSTANCE, sink,
			       DAT_EVD_DTO_FLAG, kd_contexts[c]);
		kd_ep(env, &attr);
		kd_connect(env);
		for (i = 0; i < 500; i++) {
			kd_sent(env, env->ep, env->qp, KD_ID(1, i),
				DAT_COMPLETION_UNSIGNALLED_FLAG);
			kd_settle(env->req);
			if (i == FULL_QLEN)
				KUNIT_EXPECT_EQ(test, sink->started, 0);
		}
		KUNIT_EXPECT_GT(test, sink->started, 0);
		KUNIT_EXPECT_LT(test, sink->started, 500);
		KUNIT_EXPECT_EQ(test, full_send(env, i, 1), 1);
		kd_sink_expect(test, sink, 501);
		KUNIT_EXPECT_EQ(test, order.wrong, 0U);
		kd_again(test);
	}
}

#define FULL_ENDS	30

/*
 * Nobody dequeues, and requests are posted for as long as they can be, while connections of other
 * EPs on the same EVD end, each of which takes everything off the CQ: nothing is lost.
 */
static void full_ends_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	DAT_EVD_HANDLE evd = kd_evd(env, 1, DAT_EVD_DTO_FLAG), usual = env->recv;
	DAT_EP_HANDLE ep;
	struct ib_qp *qp;
	int i, n = 0;

	/* every third one says nothing */
	qp = kd_more_ep(env, env->recv, evd, NULL, &ep);
	env->recv = evd;
	for (i = 0; i < FULL_ENDS; i++) {
		while (n < 10000 &&
		       kd_post(ep, KD_SEND, 1, &iov, n, NULL,
			       n % 3 == 1 ? DAT_COMPLETION_SUPPRESS_FLAG : 0) == DAT_SUCCESS)
			n++;
		fake_ib_complete_all(qp, false, IB_WC_SUCCESS);
		kd_ep(env, NULL);
		kd_connect(env);
		/* it has to be destroyed, with its Receive */
		KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, 0, NULL, 0));
		fake_ib_fail(env->dev, FAKE_IB_MODIFY_QP, 1, -EIO);
		KD_EXPECT_OK(test, dat_ep_disconnect(env->ep, DAT_CLOSE_ABRUPT_FLAG));
		KD_EXPECT_END(env, DISCONNECTED);
		kd_ep_free(env);
	}
	env->recv = usual;
	KUNIT_EXPECT_LT(test, n, 10000);
	for (i = 0; i < n; i++) {
		if (i % 3 != 1)
			kd_expect_dto(test, evd, i, DAT_DTO_SUCCESS);
	}
	KD_EXPECT_EMPTY(test, evd);
	KD_EXPECT_EMPTY(test, env->async);
	/* and it goes on */
	KD_EXPECT_OK(test, kd_post(ep, KD_SEND, 1, &iov, n, NULL, 0));
	KUNIT_EXPECT_EQ(test, fake_ib_complete(qp, false, IB_WC_SUCCESS), 0);
	kd_expect_dto(test, evd, n, DAT_DTO_SUCCESS);
	KD_EXPECT_OK(test, dat_ep_free(ep));
	KD_EXPECT_OK(test, dat_evd_free(evd));
}

#define FULL_CROWD	400

/*
 * A connection ends whose last completion is behind many others, while an upcall keeps the EVD from
 * going on: its device is not taken for hung.
 */
static void full_crowd_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	struct kd_sink *sink = kd_sink(test);
	DAT_EVD_HANDLE evd, usual = env->recv;
	DAT_EP_HANDLE ep;
	DAT_EP_ATTR attr;
	struct ib_qp *qp;
	int i;

	kd_attr(&attr);
	attr.max_recv_dtos = FULL_CROWD;
	KD_ASSERT_OK(test, kd_evd_create(env, 1, DAT_UPCALL_SINGLE_INSTANCE, sink, DAT_EVD_DTO_FLAG,
					 KDAT_EVD_CONTEXT_WORKQUEUE, &evd));
	kd_sink_pass(sink, 0);
	qp = kd_more_ep(env, evd, env->req, &attr, &ep);
	env->recv = evd;
	attr.max_recv_dtos = 1;
	kd_ep(env, &attr);
	kd_connect(env);
	for (i = 0; i < FULL_CROWD; i++) {
		KD_EXPECT_OK(test, kd_post(ep, KD_RECV, 1, &iov, KD_ID(0, i), NULL, 0));
		KUNIT_EXPECT_EQ(test, fake_ib_recv(qp, 1, false), 0);
		if (!i)
			KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, 1, 0));
	}
	KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, KD_ID(1, 0), NULL, 0));
	KD_EXPECT_OK(test, dat_ep_disconnect(env->ep, DAT_CLOSE_ABRUPT_FLAG));
	KD_EXPECT_END(env, DISCONNECTED);
	KUNIT_EXPECT_NOT_NULL(test, kd_conn_of(env)->qp);
	KD_EXPECT_EMPTY(test, env->async);
	kd_sink_pass(sink, INT_MAX);
	KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, FULL_CROWD + 1, FULL_CROWD + 1));
	env->recv = usual;
	kd_ep_free(env);
	KD_EXPECT_OK(test, dat_ep_free(ep));
	KD_EXPECT_OK(test, dat_evd_free(evd));
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
	const u32 error = DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR;
	struct kd_env *env = kd_open(test, NULL);
	DAT_EVD_PARAM param;
	DAT_IA_HANDLE ia;
	DAT_EVENT event;
	int i, n;

	for (n = 1; n < 4; n++) {
		DAT_EVD_HANDLE async = DAT_HANDLE_NULL;

		ia = full_ia(env, n, &async);
		KD_EXPECT_OK(test, dat_evd_query(async, DAT_EVD_FIELD_ALL, &param));
		n = param.evd_qlen;
		KD_EXPECT_TYPE(test, dat_evd_free(async), DAT_INVALID_STATE);
		for (i = 0; i < n; i++)
			full_async(test, ia, i);
		/* full is not yet too many */
		full_expect_async(test, async, error, ia, 0);
		for (i = n; i < n + 3; i++)
			full_async(test, ia, i);
		for (i = 1; i < n + 1; i++)
			full_expect_async(test, async, error, ia, i);
		full_expect_async(test, async, DAT_ASYNC_ERROR_IA_CATASTROPHIC, ia,
				  DAT_IA_CATASTROPHIC_ERROR);
		KD_EXPECT_TYPE(test, dat_evd_dequeue(async, &event), DAT_INVALID_STATE);
		KD_EXPECT_TYPE(test, dat_evd_dequeue(async, &event), DAT_INVALID_STATE);
		/* with room again it stays dead */
		full_async(test, ia, 79);
		KD_EXPECT_TYPE(test, dat_evd_dequeue(async, &event), DAT_INVALID_STATE);
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
	DAT_EVD_HANDLE evd = kd_evd(env, FULL_QLEN, DAT_EVD_ASYNC_FLAG | DAT_EVD_SOFTWARE_FLAG);
	DAT_IA_HANDLE ia = full_ia(env, 1, &evd);
	int i;

	for (i = 0; i < FULL_QLEN; i++)
		KD_EXPECT_OK(test, kd_post_se(evd, KD_ID(1, i)));
	/* refused software events are no overflow */
	KD_EXPECT_RET(test, kd_post_se(evd, KD_ID(1, i)), DAT_QUEUE_FULL, DAT_NO_SUBTYPE);
	full_async(test, ia, 1);
	full_async(test, ia, 2);
	for (i = 0; i < FULL_QLEN; i++)
		kd_expect_id(test, evd, KD_ID(1, i));
	full_expect_async(test, evd, DAT_ASYNC_ERROR_IA_CATASTROPHIC, ia,
			  DAT_IA_CATASTROPHIC_ERROR);
	KD_EXPECT_EMPTY(test, evd);
	full_async(test, ia, 3);
	KD_EXPECT_EMPTY(test, evd);
	KD_EXPECT_OK(test, kd_post_se(evd, KD_ID(1, 9)));
	KUNIT_EXPECT_EQ(test, kd_drain(evd), 1);
	KD_EXPECT_OK(test, dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	KD_EXPECT_OK(test, dat_evd_free(evd));

	/* the last word starts an upcall as any other */
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

/* The last word of the asynchronous stream takes no place that is kept for another event. */
static void full_promised_test(struct kunit *test)
{
	const struct kdapl_event ev = { .number = DAT_CONNECTION_REQUEST_EVENT, .signalled = true };
	struct kd_env *env = kd_open(test, NULL);
	DAT_EVD_HANDLE evd;
	DAT_IA_HANDLE ia;
	DAT_EVENT event;
	int i, n, kept;

	for (n = 0; n < FULL_QLEN; n++) {
		struct kdapl_evd *kevd;

		kept = FULL_QLEN - n;
		evd = kd_evd(env, FULL_QLEN,
			     DAT_EVD_ASYNC_FLAG | DAT_EVD_SOFTWARE_FLAG | DAT_EVD_CR_FLAG);
		ia = full_ia(env, 1, &evd);
		kevd = kdapl_obj_get(evd, DAT_HANDLE_TYPE_EVD);
		KUNIT_ASSERT_NOT_NULL(test, kevd);
		for (i = 0; i < kept; i++)
			KUNIT_EXPECT_TRUE(test, kdapl_evd_promise(kevd));
		for (i = 0; i < n; i++)
			KD_EXPECT_OK(test, kd_post_se(evd, KD_ID(1, i)));
		full_async(test, ia, 1);
		for (i = 0; i < kept; i++)
			KUNIT_EXPECT_TRUE(test, kdapl_evd_queue_promised(kevd, &ev));
		KUNIT_EXPECT_EQ(test, kevd->promised, 0);
		for (i = 0; i < n; i++)
			kd_expect_id(test, evd, KD_ID(1, i));
		full_expect_async(test, evd, DAT_ASYNC_ERROR_IA_CATASTROPHIC, ia,
				  DAT_IA_CATASTROPHIC_ERROR);
		for (i = 0; i < kept; i++) {
			KUNIT_ASSERT_TRUE(test, kd_next(evd, &event));
			KUNIT_EXPECT_EQ(test, (u32)event.event_number,
					(u32)DAT_CONNECTION_REQUEST_EVENT);
		}
		KD_EXPECT_EMPTY(test, evd);
		kdapl_obj_put(&kevd->obj);
		KD_EXPECT_OK(test, dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
		KD_EXPECT_OK(test, dat_evd_free(evd));
	}
}

/*
 * The length changes under queued events: all stay, in order, wrapped around or not. What
 * does not fit is refused, and that is all.
 */
static void full_resize_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_EVD_HANDLE evd = kd_evd(env, 2, DAT_EVD_SOFTWARE_FLAG);
	int qlen, now = 2, turn, i;
	DAT_EVD_PARAM param;
	u32 seq = 0, out = 0;

	for (i = 0; i < 200; i++) {
		/* somewhere in the middle of the ring, so full, so long */
		for (turn = i * 7 % 13; turn; turn--) {
			if (kd_post_se(evd, KD_ID(1, seq)) == DAT_SUCCESS)
				seq++;
			if (turn & 1 && seq != out)
				kd_expect_id(test, evd, KD_ID(1, out++));
		}
		qlen = 1 + i * 11 % 40;
		if (qlen < (int)(seq - out)) {
			KD_EXPECT_RET(test, dat_evd_resize(evd, qlen), DAT_INVALID_STATE,
				      DAT_NO_SUBTYPE);
		} else {
			KD_EXPECT_OK(test, dat_evd_resize(evd, qlen));
			now = qlen;
		}
		KD_EXPECT_OK(test, dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
		KUNIT_EXPECT_EQ(test, (int)param.evd_qlen, now);
		/* it holds exactly that many from now on */
		while (seq - out < now)
			KD_EXPECT_OK(test, kd_post_se(evd, KD_ID(1, seq++)));
		for (turn = 0; turn < 3; turn++) {
			KD_EXPECT_RET(test, kd_post_se(evd, KD_ID(1, seq)), DAT_QUEUE_FULL,
				      DAT_NO_SUBTYPE);
			kd_expect_id(test, evd, KD_ID(1, out++));
			KD_EXPECT_OK(test, kd_post_se(evd, KD_ID(1, seq++)));
		}
		while (seq - out > i % 5)
			kd_expect_id(test, evd, KD_ID(1, out++));
	}
	KD_EXPECT_EMPTY(test, env->async);
	KD_EXPECT_OK(test, dat_evd_free(evd));
}

static struct kunit_case full_cases[] = {
	KD_CASE(full_connection_test, "EVD-OVF-01,EVD-OVF-02,EVD-OVF-06,ASY-01: connection events"),
	KD_CASE(full_store_test,
		"EVD-OVF-04,EVD-OVF-06,EVD-RSZ-02,EVD-MOD-02,EVD-MOD-03,FLAG-11: completions"),
	KD_CASE(full_unsignalled_test, "FLAG-04,FLAG-11,EVD-UP-04: nothing but unsignalled ones"),
	KD_CASE(full_ends_test,
		"EVD-OVF-06,FLAG-11: connections end at an EVD that nobody dequeues"),
	KD_CASE(full_crowd_test, "FLUSH-01,FLUSH-10: the end behind many completions"),
	KD_CASE(full_async_test, "EVD-OVF-03,EVD-FREE-04: the asynchronous EVD itself"),
	KD_CASE(full_async_shared_test,
		"EVD-OVF-03,IA-OPEN-04,ASY-21: one that carries other streams too"),
	KD_CASE(full_promised_test,
		"EVD-OVF-03,RSP-04: its last word takes no place that is kept"),
	KD_CASE(full_resize_test,
		"EVD-RSZ-01,EVD-RSZ-02,EVD-QRY-01,EVD-OVF-04,EVD-SE-03,EVD-SE-04: another length"),
	{}
};

KD_SUITE("kdapl-evd-full", full_cases, kd_init, kd_exit);
