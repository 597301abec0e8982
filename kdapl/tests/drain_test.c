// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The end of an EP whose completions and connection events come through different EVDs:
 * the upcall that brings DISCONNECTED may be faster than those that bring completions.
 * What is lost then, what kdat_ep_drain() waits for, and where it would wait for itself.
 */
#include <linux/swait.h>
#include <linux/workqueue.h>

#include "kd_conn.h"
#include "kd_srq.h"
#include "kd_upcall.h"

#define DRAIN_MSGS	4

/**
 * struct drain - a consumer with an SRQ and an upcall for each stream
 * @sq: what there is
 * @recv: EVD of Receives, whose upcalls may sleep
 * @recvs: its upcalls; the first one is held open
 * @sends: those of Sends
 * @conns: that of DISCONNECTED, which frees the EP
 * @wait: but drains first
 * @ret: what that returned
 * @freed: what dat_ep_free() returned
 * @self: what draining in the upcall of a Receive returned
 */
struct drain {
	struct sq *sq;
	DAT_EVD_HANDLE recv;
	struct kd_sink *recvs, *sends, *conns;
	bool wait;
	DAT_RETURN ret;
	DAT_RETURN freed;
	DAT_RETURN self;
};

static void drain_recv(struct kd_sink *sink, const DAT_EVENT *event, bool more)
{
	struct drain *drain = sink->arg;

	if (sink->started == 1)
		drain->self = kdat_ep_drain(event->event_data.dto_completion_event_data.ep_handle);
}

static void drain_conn(struct kd_sink *sink, const DAT_EVENT *event, bool more)
{
	DAT_EP_HANDLE ep = event->event_data.connect_event_data.ep_handle;
	struct drain *drain = sink->arg;

	if (drain->wait)
		drain->ret = kdat_ep_drain(ep);
	drain->freed = dat_ep_free(ep);
}

static void drain_upcalls(struct kd_env *env, DAT_EVD_HANDLE evd, struct kd_sink *sink)
{
	const DAT_UPCALL_OBJECT object = kd_sink_object(sink);

	KD_ASSERT_OK(env->test, dat_evd_modify_upcall(evd, DAT_UPCALL_SINGLE_INSTANCE, &object,
						      DAT_UPCALL_INVOC_NEW));
}

/* The EP was freed by an upcall. Once it has gone, nothing is in use for it. */
static void drain_ep_gone(struct sq *sq, int i)
{
	kd_ep_gone(sq->env.test, sq->eps[i].kep);
	memset(&sq->eps[i], 0, sizeof(sq->eps[i]));
	sq->env.ep = NULL;
	sq->env.kep = NULL;
}

/*
 * The upcall of the first Receive is open, the others wait behind it, and so do Sends. Then the
 * peer disconnects; one more buffer is taken by a message that never ends.
 */
static struct drain *drain_begin(struct kunit *test, bool wait)
{
	struct drain *drain = kunit_kzalloc(test, sizeof(*drain), GFP_KERNEL);
	struct sq *sq = sq_open(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(&sq->env, KD_RW, 0, 8);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, drain);
	drain->sq = sq;
	drain->wait = wait;
	drain->recvs = kd_sink(test);
	drain->recvs->inside = drain_recv;
	drain->recvs->arg = drain;
	drain->sends = kd_sink(test);
	drain->conns = kd_sink(test);
	drain->conns->inside = drain_conn;
	drain->conns->arg = drain;
	kd_sink_pass(drain->recvs, 0);
	KD_ASSERT_OK(test, kd_evd_create(&sq->env, 8, DAT_UPCALL_SINGLE_INSTANCE, drain->recvs,
					 DAT_EVD_DTO_FLAG, KDAT_EVD_CONTEXT_WORKQUEUE,
					 &drain->recv));
	sq_srq(sq, 8);
	sq_ep_on(sq, 0, drain->recv, NULL);
	kd_connect(&sq->env);
	drain_upcalls(&sq->env, sq->env.req, drain->sends);
	drain_upcalls(&sq->env, sq->env.conn, drain->conns);
	sq_post(sq, 0, 8);
	for (i = 0; i < DRAIN_MSGS; i++)
		KD_EXPECT_OK(test, kd_post(sq->env.ep, KD_SEND, 1, &iov, i, NULL, 0));
	for (i = 0; i < DRAIN_MSGS; i++)
		KUNIT_EXPECT_EQ(test, fake_ib_recv(sq->env.qp, 1, false), 0);
	KUNIT_EXPECT_TRUE(test, kd_sink_wait(drain->recvs, 1, 0));
	KUNIT_EXPECT_EQ(test, fake_ib_srq_take(sq->env.qp), DRAIN_MSGS);
	KD_EXPECT_OK(test, dat_ep_disconnect(sq->env.ep, DAT_CLOSE_ABRUPT_FLAG));
	KD_WAIT(test, READ_ONCE(drain->conns->started));
	return drain;
}

/* The EP is the upcall's, which has freed it. */
static void drain_forget(struct drain *drain)
{
	struct kunit *test = drain->sq->env.test;

	KUNIT_EXPECT_TRUE(test, kd_sink_wait(drain->conns, 1, 1));
	KD_EXPECT_OK(test, drain->freed);
	drain_ep_gone(drain->sq, 0);
	KD_EXPECT_OK(test, kdat_wait_unused(drain->recv));
	KD_EXPECT_OK(test, dat_evd_free(drain->recv));
}

static void drain_upcall_test(struct kunit *test)
{
	unsigned long dropped = kd_stat(dropped);
	struct drain *drain = drain_begin(test, true);

	KUNIT_EXPECT_EQ(test, READ_ONCE(drain->conns->ended), 0);
	kd_sink_pass(drain->recvs, INT_MAX);
	KUNIT_EXPECT_TRUE(test, kd_sink_wait(drain->conns, 1, 1));
	KD_EXPECT_OK(test, drain->ret);
	/* the messages, and the buffer that came back flushed */
	KUNIT_EXPECT_EQ(test, drain->recvs->started, DRAIN_MSGS + 1);
	KUNIT_EXPECT_EQ(test, drain->sends->started, DRAIN_MSGS);
	drain_forget(drain);
	sq_expect_counts(drain->sq, 8 - DRAIN_MSGS - 1, 8 - DRAIN_MSGS - 1, "drained");
	KUNIT_EXPECT_EQ(test, kd_stat(dropped), dropped);
	/* where it could not have worked it said so at once */
	KD_BAD_STATE(test, drain->self, EVD_IN_USE);
}

/* Who frees at once loses what the other EVD has; it is counted, and no buffer is missing. */
static void drain_lost_test(struct kunit *test)
{
	unsigned long dropped = kd_stat(dropped);
	struct drain *drain = drain_begin(test, false);
	int seen;

	KUNIT_EXPECT_TRUE(test, kd_sink_wait(drain->conns, 1, 1));
	kd_sink_pass(drain->recvs, INT_MAX);
	drain_forget(drain);
	sq_settle();
	seen = drain->recvs->started + drain->sends->started;
	KUNIT_EXPECT_LT(test, seen, 2 * DRAIN_MSGS + 1);
	KUNIT_EXPECT_EQ(test, kd_stat(dropped) - dropped, 2UL * DRAIN_MSGS + 1 - seen);
	sq_expect_counts(drain->sq, 8 - DRAIN_MSGS - 1, 8 - DRAIN_MSGS - 1, "not drained");
}

static void drain_post(struct kd_env *env)
{
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	int i;

	for (i = 0; i < DRAIN_MSGS; i++) {
		KD_EXPECT_OK(env->test, kd_post(env->ep, KD_SEND, 1, &iov, i, NULL, 0));
		KD_EXPECT_OK(env->test, kd_post(env->ep, KD_RECV, 1, &iov, i, NULL, 0));
	}
}

/* Disconnected, and the event that tells of it is queued. */
static void drain_disconnect(struct kunit *test, struct kdapl_ep *kep)
{
	struct kdapl_conn *conn = rcu_dereference_protected(kep->conn, true);

	KD_EXPECT_OK(test, dat_ep_disconnect(kep->obj.handle, DAT_CLOSE_ABRUPT_FLAG));
	KUNIT_EXPECT_TRUE(test, wait_for_completion_timeout(&conn->ended, KD_LONG));
}

/**
 * struct drain_place - upcalls in workqueues that have one place each
 * @sq: what there is; EP 0 is drained, in the upcall with DISCONNECTED of EP 1
 * @free: which frees EP 1 before
 * @in: that upcall has begun, and freed
 * @go: it may drain
 * @recvs: upcalls of the Receives of EP 0
 * @seen: how many of them when it had been drained
 * @freed: what dat_ep_free() returned
 * @ret: what kdat_ep_drain() returned
 */
struct drain_place {
	struct sq *sq;
	bool free;
	struct completion in;
	struct completion go;
	struct kd_sink *recvs;
	int seen;
	DAT_RETURN freed;
	DAT_RETURN ret;
};

static void drain_place_conn(struct kd_sink *sink, const DAT_EVENT *event, bool more)
{
	DAT_EP_HANDLE ep = event->event_data.connect_event_data.ep_handle;
	struct drain_place *place = sink->arg;

	if (ep != place->sq->eps[1].ep)
		return;
	if (place->free)
		place->freed = dat_ep_free(ep);
	complete_all(&place->in);
	wait_for_completion(&place->go);
	place->ret = kdat_ep_drain(place->sq->eps[0].ep);
	place->seen = READ_ONCE(place->recvs->started);
}

static void drain_places(int n)
{
	workqueue_set_max_active(kdapl_event_wq, n);
	workqueue_set_max_active(kdapl_upcall_wq, n);
}

/*
 * All who may drain at a time do so, and completions still find a place to be brought in.
 * That takes WQ_MAX_ACTIVE of them per CPU, or one if the queues are made that small.
 */
static void drain_place(struct kunit *test, bool free)
{
	struct drain_place *place = kunit_kzalloc(test, sizeof(*place), GFP_KERNEL);
	struct sq *sq = sq_open(test, NULL);
	struct kd_sink *conns = kd_sink(test);
	DAT_UPCALL_OBJECT object;
	DAT_EVD_HANDLE recv;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, place);
	place->sq = sq;
	place->free = free;
	place->recvs = kd_sink(test);
	init_completion(&place->in);
	init_completion(&place->go);
	conns->inside = drain_place_conn;
	conns->arg = place;
	object = kd_sink_object(conns);
	KD_ASSERT_OK(test, kd_evd_create(&sq->env, 8, DAT_UPCALL_DISABLE, place->recvs,
					 DAT_EVD_DTO_FLAG, KDAT_EVD_CONTEXT_WORKQUEUE, &recv));
	sq_srq(sq, 8);
	for (i = 0; i < 2; i++) {
		sq_ep_on(sq, i, recv, NULL);
		kd_connect(&sq->env);
	}
	sq_post(sq, 0, DRAIN_MSGS);
	for (i = 0; i < DRAIN_MSGS; i++)
		KUNIT_EXPECT_EQ(test, fake_ib_recv(sq->eps[0].qp, 1, false), 0);
	drain_disconnect(test, sq->eps[1].kep);
	drain_disconnect(test, sq->eps[0].kep);

	/* from here on in the queues of one CPU */
	kd_pin();
	drain_places(1);
	KD_EXPECT_OK(test, dat_evd_modify_upcall(sq->env.conn, DAT_UPCALL_SINGLE_INSTANCE, &object,
						 DAT_UPCALL_INVOC_ANY));
	KUNIT_EXPECT_TRUE(test, wait_for_completion_timeout(&place->in, KD_LONG));
	KD_EXPECT_OK(test, kd_policy(recv, DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_INVOC_ANY));
	complete_all(&place->go);
	/* if it does not return now, it does with more places */
	KUNIT_EXPECT_TRUE(test, kd_sink_wait(conns, 1, 1));
	drain_places(WQ_MAX_ACTIVE);
	KUNIT_ASSERT_TRUE(test, kd_sink_wait(conns, 1, 1));
	KD_EXPECT_OK(test, place->ret);
	KUNIT_EXPECT_EQ(test, place->seen, DRAIN_MSGS);
	if (free) {
		KD_EXPECT_OK(test, place->freed);
		drain_ep_gone(sq, 1);
	}
	for (i = 0; i < 2 - free; i++)
		sq_ep_free(sq, i);
	KD_EXPECT_OK(test, dat_evd_free(recv));
}

static void drain_place_test(struct kunit *test)
{
	drain_place(test, false);
}

static void drain_place_free_test(struct kunit *test)
{
	drain_place(test, true);
}

/* Until the call has returned, or waits for the end of the connection. Return: whether it waits. */
static bool drain_waits(struct kunit *test, struct kd_aside *call, struct kdapl_conn *conn)
{
	KD_WAIT(test, completion_done(&call->done) || swait_active(&conn->ended.wait));
	return !completion_done(&call->done);
}

/**
 * struct drain_hand - upcalls beside each other that have a completion each in hand
 * @ended: the EP has ended
 * @tried: how many have tried to drain
 * @rets: what that returned
 */
struct drain_hand {
	struct completion ended;
	atomic_t tried;
	DAT_RETURN rets[2];
};

static void drain_hand_inside(struct kd_sink *sink, const DAT_EVENT *event, bool more)
{
	struct drain_hand *hand = sink->arg;
	DAT_EP_HANDLE ep = event->event_data.dto_completion_event_data.ep_handle;

	wait_for_completion(&hand->ended);
	hand->rets[kd_event_id(event)] = kdat_ep_drain(ep);
	atomic_inc(&hand->tried);
}

/* Nothing is queued: they cannot wait for each other; a caller outside waits for both. */
static void drain_hand_test(struct kunit *test)
{
	struct drain_hand *hand = kunit_kzalloc(test, sizeof(*hand), GFP_KERNEL);
	struct kd_env *env = kd_open(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	struct kd_sink *sink = kd_sink(test);
	int i, n = min(2U, num_online_cpus());
	struct kd_aside call;

	KUNIT_ASSERT_NOT_NULL(test, hand);
	init_completion(&hand->ended);
	sink->inside = drain_hand_inside;
	sink->arg = hand;
	kd_sink_pass(sink, 0);
	kd_evd_replace(env, &env->recv, 8, DAT_UPCALL_MANY, sink, DAT_EVD_DTO_FLAG,
		       KDAT_EVD_CONTEXT_WORKQUEUE);
	kd_ep(env, NULL);
	kd_connect(env);
	for (i = 0; i < n; i++)
		KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, i, NULL, 0));
	fake_ib_complete_all(env->qp, true, IB_WC_SUCCESS);
	KD_WAIT(test, READ_ONCE(sink->started) == n);
	drain_disconnect(test, env->kep);
	complete_all(&hand->ended);
	KD_WAIT(test, atomic_read(&hand->tried) == n);
	/* on one CPU there is one upcall at a time, which need not wait for another */
	for (i = 0; i < n; i++) {
		if (n > 1)
			KD_BAD_STATE(test, hand->rets[i], EVD_IN_USE);
		else
			KD_EXPECT_OK(test, hand->rets[i]);
	}
	kd_aside_call(test, &call, kdat_ep_drain, env->ep);
	/* while it waits it looks again every HZ / 20, and must find them there */
	for (i = 0; i < n; i++) {
		KUNIT_EXPECT_FALSE(test, kd_aside_returned(&call, 200));
		kd_sink_pass(sink, i + 1);
	}
	KUNIT_EXPECT_TRUE(test, kd_aside_wait(&call));
	KD_EXPECT_OK(test, call.ret);
	KUNIT_EXPECT_EQ(test, sink->started, n);
	KUNIT_EXPECT_EQ(test, sink->ended, n);
}

/*
 * Removal has begun: no call is taken any more, that which disconnects neither. The
 * connection has not been ended yet, and the device still has what was posted.
 */
static void drain_removal_test(struct kunit *test)
{
	struct kd_env *env = kd_connected(test, NULL);
	struct kd_aside call;

	drain_post(env);
	/* as device_mark_all() does, and no further */
	WRITE_ONCE(kd_ia(env)->dead, true);
	kd_aside_call(test, &call, kdat_ep_drain, env->ep);
	KUNIT_EXPECT_TRUE(test, drain_waits(test, &call, kd_conn_of(env)));
	fake_ib_unplug(env->dev);
	KUNIT_ASSERT_TRUE(test, kd_aside_wait(&call));
	KD_EXPECT_OK(test, call.ret);
	KUNIT_EXPECT_EQ(test, kd_drain(env->req), DRAIN_MSGS);
	KUNIT_EXPECT_EQ(test, kd_drain(env->recv), DRAIN_MSGS);
	KD_EXPECT_END(env, BROKEN);
}

static DAT_RETURN drain_connect(DAT_HANDLE ep)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};

	return dat_ep_connect(ep, (DAT_IA_ADDRESS_PTR)&to, KD_PEER_PORT, DAT_TIMEOUT_INFINITE, 0,
			      NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
}

/*
 * An attempt has just begun when the device fails. It is not ended, since it comes to
 * nothing by itself: the EP is as it was before, and nobody tells of it.
 */
static void drain_attempt_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct net_device *lo = kd_loopback();
	struct ib_event fatal = {
		.device = fake_ib_device(env->dev), .event = IB_EVENT_DEVICE_FATAL,
	};
	struct kd_aside attempt, call;
	struct kdapl_conn *conn;

	KUNIT_ASSERT_NOT_NULL(test, lo);
	KUNIT_ASSERT_EQ(test, fake_ib_set_netdev(env->dev, lo), 0);
	kd_ep(env, NULL);
	conn = kd_conn_of(env);
	mutex_lock(&conn->lock);	/* neither gets any further */
	kd_aside_call(test, &attempt, drain_connect, env->ep);
	KD_WAIT(test, completion_done(&attempt.done) ||
		READ_ONCE(env->kep->state) == DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	KD_EXPECT_STATE(env, env->ep, ACTIVE_CONNECTION_PENDING);
	ib_dispatch_event(&fatal);
	KD_WAIT(test, READ_ONCE(kd_ia(env)->dead));

	kd_aside_call(test, &call, kdat_ep_drain, env->ep);
	KUNIT_EXPECT_FALSE(test, drain_waits(test, &call, conn));
	KUNIT_EXPECT_EQ(test, (int)conn->state, (int)KDAPL_CONN_IDLE);
	mutex_unlock(&conn->lock);
	KUNIT_EXPECT_TRUE(test, kd_aside_wait(&attempt));
	KD_GONE(test, attempt.ret);
	if (!completion_done(&call.done))
		complete_all(&conn->ended);	/* nobody else would */
	KUNIT_EXPECT_TRUE(test, kd_aside_wait(&call));
	KD_EXPECT_OK(test, call.ret);
	KD_EXPECT_STATE(env, env->ep, UNCONNECTED);
	flush_workqueue(ib_wq);
	flush_workqueue(kdapl_misc_wq);
	KD_EXPECT_EMPTY(test, env->conn);
	KUNIT_EXPECT_EQ(test, fake_ib_set_netdev(env->dev, NULL), 0);
}

static void drain_exit(struct kunit *test)
{
	drain_places(WQ_MAX_ACTIVE);
	sq_exit(test);
}

/*
 * A graceful disconnect goes on while an upcall of the EVD that has the requests waits for its
 * end. No device needs a time limit for that.
 */
static void drain_held_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kd_sink *sink = kd_sink(test);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);

	kd_evd_replace(env, &env->req, 64, DAT_UPCALL_SINGLE_INSTANCE, sink, DAT_EVD_DTO_FLAG,
		       KDAT_EVD_CONTEXT_WORKQUEUE);
	kd_ep(env, NULL);
	kd_connect(env);
	kd_sink_pass(sink, 0);
	KD_EXPECT_OK(test, kd_post(env->ep, KD_SEND, 1, &iov, 1, NULL, 0));
	fake_ib_complete_all(env->qp, false, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, 1, 0));
	KD_EXPECT_OK(test, kd_post(env->ep, KD_SEND, 1, &iov, 2, NULL, 0));
	KD_EXPECT_OK(test, dat_ep_disconnect(env->ep, DAT_CLOSE_GRACEFUL_FLAG));
	KD_EXPECT_STATE(env, env->ep, DISCONNECT_PENDING);
	fake_ib_complete_all(env->qp, false, IB_WC_SUCCESS);
	KD_EXPECT_END(env, DISCONNECTED);
	kd_sink_pass(sink, INT_MAX);
	kd_sink_expect(test, sink, 2);
	kd_ep_free(env);
}

static struct kunit_case drain_cases[] = {
	KD_CASE(drain_upcall_test, "STAT-05,SRQ-QRY-01: drained before it is freed in an upcall"),
	KD_CASE(drain_lost_test, "STAT-05,FLUSH-05: freed at once in an upcall"),
	KD_CASE(drain_hand_test, "STAT-05,EVD-UP-07: drained while upcalls have some in hand"),
	KD_CASE(drain_place_test, "STAT-05: completions have upcalls while others drain"),
	KD_CASE(drain_place_free_test, "STAT-05: they do while EPs are freed behind upcalls"),
	KD_CASE(drain_held_test,
		"FLUSH-09: a graceful disconnect inside an upcall that waits for it"),
	KD_CASE(drain_removal_test, "EPSM-24: drained while the device goes"),
	KD_CASE(drain_attempt_test, "EPSM-24: drained while an attempt fails with the device"),
	{}
};

KD_SUITE("kdapl-drain", drain_cases, sq_init, drain_exit);
