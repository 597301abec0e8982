// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The end of an EP whose completions and connection events come through different EVDs:
 * the upcall that brings DISCONNECTED may be faster than those that bring completions.
 * What is lost then, what kdat_ep_drain() waits for, and where it would wait for itself.
 */
#include <linux/completion.h>
#include <linux/cpumask.h>
#include <linux/swait.h>
#include <linux/workqueue.h>

#include "kd_conn.h"
#include "kd_srq.h"
#include "kd_upcall.h"

#define DRAIN_LONG	(20 * HZ)
#define DRAIN_MSGS	4

/**
 * struct drain - a consumer with an SRQ and an upcall for each stream
 * @sq: what there is
 * @in: the first upcall with a Receive has begun
 * @go: it may return
 * @end: the upcall with DISCONNECTED has begun
 * @over: it is about to return
 * @recvs: Receives seen, by status
 * @sends: Sends seen
 * @wait: what DISCONNECTED does is to drain first
 * @ret: what that returned
 * @freed: what dat_ep_free() returned
 * @self: what draining in the upcall of a Receive returned
 */
struct drain {
	struct sq *sq;
	struct completion in;
	struct completion go;
	struct completion end;
	struct completion over;
	atomic_t recvs;
	atomic_t sends;
	bool wait;
	DAT_RETURN ret;
	DAT_RETURN freed;
	DAT_RETURN self;
};

static void drain_recv(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct drain *drain = data;

	if (atomic_inc_return(&drain->recvs) > 1)
		return;
	drain->self = kdat_ep_drain(event->event_data.dto_completion_event_data.ep_handle);
	complete_all(&drain->in);
	wait_for_completion(&drain->go);
}

static void drain_send(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct drain *drain = data;

	atomic_inc(&drain->sends);
}

static void drain_conn(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	DAT_EP_HANDLE ep = event->event_data.connect_event_data.ep_handle;
	struct drain *drain = data;

	if (event->event_number != DAT_CONNECTION_EVENT_DISCONNECTED)
		return;
	complete_all(&drain->end);
	if (drain->wait)
		drain->ret = kdat_ep_drain(ep);
	drain->freed = dat_ep_free(ep);
	complete_all(&drain->over);
}

/* Its upcalls may sleep. */
static DAT_EVD_HANDLE drain_evd(struct kd_env *env, DAT_UPCALL_POLICY policy,
				DAT_UPCALL_FUNC fn, void *data)
{
	const struct kdat_evd_attr attr = {
		.context = KDAT_EVD_CONTEXT_WORKQUEUE, .comp_vector = KDAT_EVD_VECTOR_ANY,
	};
	const DAT_UPCALL_OBJECT upcall = { data, fn };
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;

	KD_ASSERT_OK(env->test, kdat_evd_create(env->ia, 8, policy, &upcall, DAT_EVD_DTO_FLAG,
						&attr, &evd));
	return evd;
}

/* The EP was freed by an upcall. */
static void drain_ep_gone(struct sq *sq, int i)
{
	kdapl_obj_put(&sq->eps[i].kep->obj);
	memset(&sq->eps[i], 0, sizeof(sq->eps[i]));
	sq->env.ep = NULL;
	sq->env.kep = NULL;
}

/* The upcall of the first Receive is open, the others wait behind it, and so do Sends. */
static struct drain *drain_begin(struct kunit *test, bool wait, DAT_EVD_HANDLE *recv)
{
	struct drain *drain = kunit_kzalloc(test, sizeof(*drain), GFP_KERNEL);
	const DAT_UPCALL_OBJECT sends = { drain, drain_send }, conns = { drain, drain_conn };
	struct sq *sq = sq_open(test, NULL);
	DAT_LMR_TRIPLET iov;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, drain);
	drain->sq = sq;
	drain->wait = wait;
	init_completion(&drain->in);
	init_completion(&drain->go);
	init_completion(&drain->end);
	init_completion(&drain->over);
	*recv = drain_evd(&sq->env, DAT_UPCALL_SINGLE_INSTANCE, drain_recv, drain);
	sq_srq(sq, 8);
	sq_ep_on(sq, 0, *recv, NULL);
	kd_connect(&sq->env);
	KD_ASSERT_OK(test, dat_evd_modify_upcall(sq->env.req, DAT_UPCALL_SINGLE_INSTANCE, &sends,
						 DAT_UPCALL_INVOC_NEW));
	KD_ASSERT_OK(test, dat_evd_modify_upcall(sq->env.conn, DAT_UPCALL_SINGLE_INSTANCE, &conns,
						 DAT_UPCALL_INVOC_NEW));
	sq_post(sq, 0, 8);
	iov = kd_seg(&sq->env, KD_RW, 0, 8);
	for (i = 0; i < DRAIN_MSGS; i++)
		KD_EXPECT_OK(test, kd_post(sq->env.ep, KD_SEND, 1, &iov, i, NULL, 0));
	for (i = 0; i < DRAIN_MSGS; i++)
		KUNIT_EXPECT_EQ(test, fake_ib_recv(sq->env.qp, 1, false), 0);
	KUNIT_EXPECT_TRUE(test, wait_for_completion_timeout(&drain->in, DRAIN_LONG));
	return drain;
}

/* The peer disconnects; one more buffer is taken by a message that never ends. */
static void drain_end(struct drain *drain)
{
	struct sq *sq = drain->sq;
	struct kunit *test = sq->env.test;

	KUNIT_EXPECT_EQ(test, fake_ib_srq_take(sq->env.qp), DRAIN_MSGS);
	KD_EXPECT_OK(test, dat_ep_disconnect(sq->env.ep, DAT_CLOSE_ABRUPT_FLAG));
	KUNIT_EXPECT_TRUE(test, wait_for_completion_timeout(&drain->end, DRAIN_LONG));
}

/* The EP is the upcall's, which has freed it. */
static void drain_forget(struct drain *drain, DAT_EVD_HANDLE recv)
{
	struct sq *sq = drain->sq;
	struct kunit *test = sq->env.test;
	int i;

	KUNIT_EXPECT_TRUE(test, wait_for_completion_timeout(&drain->over, DRAIN_LONG));
	KD_EXPECT_OK(test, drain->freed);
	drain_ep_gone(sq, 0);
	/* in use until the EP has gone in the background */
	for (i = 0; i < 500 && dat_evd_free(recv) != DAT_SUCCESS; i++)
		kd_pause();
	KUNIT_EXPECT_LT(test, i, 500);
}

static void drain_upcall_test(struct kunit *test)
{
	unsigned long dropped = kd_stat(dropped);
	DAT_EVD_HANDLE recv;
	struct drain *drain = drain_begin(test, true, &recv);

	drain_end(drain);
	KUNIT_EXPECT_FALSE(test, completion_done(&drain->over));
	complete_all(&drain->go);
	KUNIT_EXPECT_TRUE(test, wait_for_completion_timeout(&drain->over, DRAIN_LONG));
	KD_EXPECT_OK(test, drain->ret);
	/* the messages, and the buffer that came back flushed */
	KUNIT_EXPECT_EQ(test, atomic_read(&drain->recvs), DRAIN_MSGS + 1);
	KUNIT_EXPECT_EQ(test, atomic_read(&drain->sends), DRAIN_MSGS);
	drain_forget(drain, recv);
	sq_expect_counts(drain->sq, 8 - DRAIN_MSGS - 1, 8 - DRAIN_MSGS - 1, "drained");
	KUNIT_EXPECT_EQ(test, kd_stat(dropped), dropped);
	/* where it could not have worked it said so at once */
	KD_EXPECT_RET(test, drain->self, DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
}

/* Who frees at once loses what the other EVD has; it is counted, and no buffer is missing. */
static void drain_lost_test(struct kunit *test)
{
	unsigned long dropped = kd_stat(dropped);
	DAT_EVD_HANDLE recv;
	struct drain *drain = drain_begin(test, false, &recv);
	int seen;

	drain_end(drain);
	KUNIT_EXPECT_TRUE(test, wait_for_completion_timeout(&drain->over, DRAIN_LONG));
	complete_all(&drain->go);
	drain_forget(drain, recv);
	sq_settle();
	seen = atomic_read(&drain->recvs) + atomic_read(&drain->sends);
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

static void drain_expect_all(struct kd_env *env)
{
	DAT_EVENT event;
	int i;

	for (i = 0; i < DRAIN_MSGS; i++) {
		KUNIT_EXPECT_TRUE(env->test, kd_next(env->req, &event));
		KUNIT_EXPECT_TRUE(env->test, kd_next(env->recv, &event));
	}
	KD_EXPECT_EMPTY(env->test, env->req);
	KD_EXPECT_EMPTY(env->test, env->recv);
}

/* Without upcalls all is there to be dequeued; once more, and when the device has gone. */
static void drain_dequeue_test(struct kunit *test)
{
	struct kd_env *env = kd_connected(test, NULL);

	drain_post(env);
	fake_ib_complete(env->qp, false, IB_WC_SUCCESS);
	KD_EXPECT_OK(test, kdat_ep_drain(env->ep));
	KUNIT_EXPECT_EQ(test, (int)READ_ONCE(env->kep->state), (int)DAT_EP_STATE_DISCONNECTED);
	drain_expect_all(env);
	KD_EXPECT_OK(test, kdat_ep_drain(env->ep));
	fake_ib_unplug(env->dev);
	KD_EXPECT_OK(test, kdat_ep_drain(env->ep));
}

/* States without a connection, and handles of nothing. */
static void drain_states_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	int i;

	kd_ep(env, NULL);
	KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, 1, NULL, 0));
	KD_EXPECT_OK(test, kdat_ep_drain(env->ep));
	KUNIT_EXPECT_EQ(test, (int)kd_state(env, env->ep), (int)DAT_EP_STATE_UNCONNECTED);
	KUNIT_EXPECT_EQ(test, fake_ib_outstanding(env->qp, true), 1U);
	for (i = 0; i < KD_STATES; i++) {
		if (!strchr("RPT", kd_states[i].letter[0]))
			continue;
		kd_set_state(env, kd_states[i].state);
		KD_EXPECT_RET(test, kdat_ep_drain(env->ep), DAT_INVALID_STATE,
			      kd_states[i].subtype);
	}
	KD_EXPECT_RET(test, kdat_ep_drain(env->conn), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	KD_EXPECT_RET(test, kdat_ep_drain(DAT_HANDLE_NULL), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_EP);
}

/* Disconnected, and the event that tells of it is queued. */
static void drain_disconnect(struct kunit *test, struct kdapl_ep *kep)
{
	struct kdapl_conn *conn = rcu_dereference_protected(kep->conn, true);

	KD_EXPECT_OK(test, dat_ep_disconnect(kep->obj.handle, DAT_CLOSE_ABRUPT_FLAG));
	KUNIT_EXPECT_TRUE(test, wait_for_completion_timeout(&conn->ended, DRAIN_LONG));
}

/**
 * struct drain_place - upcalls in workqueues that have one place each
 * @sq: what there is; EP 0 is drained, in the upcall with DISCONNECTED of EP 1
 * @free: which frees EP 1 before
 * @in: that upcall has begun, and freed
 * @go: it may drain
 * @over: it has
 * @recvs: Receives of EP 0 seen
 * @seen: how many of them when it had been drained
 * @freed: what dat_ep_free() returned
 * @ret: what kdat_ep_drain() returned
 */
struct drain_place {
	struct sq *sq;
	bool free;
	struct completion in;
	struct completion go;
	struct completion over;
	atomic_t recvs;
	int seen;
	DAT_RETURN freed;
	DAT_RETURN ret;
};

static void drain_place_recv(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct drain_place *place = data;

	atomic_inc(&place->recvs);
}

static void drain_place_conn(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	DAT_EP_HANDLE ep = event->event_data.connect_event_data.ep_handle;
	struct drain_place *place = data;

	if (ep != place->sq->eps[1].ep || completion_done(&place->in))
		return;
	if (place->free)
		place->freed = dat_ep_free(ep);
	complete_all(&place->in);
	wait_for_completion(&place->go);
	place->ret = kdat_ep_drain(place->sq->eps[0].ep);
	place->seen = atomic_read(&place->recvs);
	complete_all(&place->over);
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
	const DAT_UPCALL_OBJECT conns = { place, drain_place_conn };
	struct sq *sq = sq_open(test, NULL);
	DAT_EVD_HANDLE recv;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, place);
	place->sq = sq;
	place->free = free;
	init_completion(&place->in);
	init_completion(&place->go);
	init_completion(&place->over);
	recv = drain_evd(&sq->env, DAT_UPCALL_DISABLE, drain_place_recv, place);
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
	KD_EXPECT_OK(test, dat_evd_modify_upcall(sq->env.conn, DAT_UPCALL_SINGLE_INSTANCE, &conns,
						 DAT_UPCALL_INVOC_ANY));
	KUNIT_EXPECT_TRUE(test, wait_for_completion_timeout(&place->in, DRAIN_LONG));
	KD_EXPECT_OK(test, kd_policy(recv, DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_INVOC_ANY));
	complete_all(&place->go);
	KUNIT_EXPECT_TRUE(test, wait_for_completion_timeout(&place->over, DRAIN_LONG));
	drain_places(WQ_MAX_ACTIVE);
	KUNIT_ASSERT_TRUE(test, wait_for_completion_timeout(&place->over, DRAIN_LONG));
	KD_EXPECT_OK(test, place->ret);
	KUNIT_EXPECT_EQ(test, place->seen, DRAIN_MSGS);
	if (free) {
		KD_EXPECT_OK(test, place->freed);
		drain_ep_gone(sq, 1);
		flush_workqueue(kdapl_event_wq);
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

/**
 * struct drain_aside - a call by another thread
 * @aside: the thread
 * @env: the EP is that of this environment
 * @ret: what the call returned
 */
struct drain_aside {
	struct kd_aside aside;
	struct kd_env *env;
	DAT_RETURN ret;
};

static void drain_aside_drain(void *arg)
{
	struct drain_aside *call = arg;

	call->ret = kdat_ep_drain(call->env->ep);
}

/* Until the call has returned, or waits for the end of the connection. Return: whether it waits. */
static bool drain_aside_waits(struct drain_aside *call, struct kdapl_conn *conn)
{
	int i;

	for (i = 0; i < 15000 && !completion_done(&call->aside.done) &&
	     !swait_active(&conn->ended.wait); i++)
		kd_pause();
	KUNIT_EXPECT_LT(call->env->test, i, 15000);
	return !completion_done(&call->aside.done);
}

/**
 * struct drain_hand - upcalls beside each other that have a completion each in hand
 * @call: the thread that drains
 * @begun: how many have begun
 * @tried: how many have tried to drain
 * @over: how many are about to return
 * @seen: how many were when it had been drained
 * @in: the last one has begun
 * @ended: the EP has ended
 * @all: all have tried
 * @go: this one may return
 * @rets: what their draining returned
 * @n: how many there are
 */
struct drain_hand {
	struct drain_aside call;
	atomic_t begun, tried, over;
	int seen;
	struct completion in, ended, all, go[2];
	DAT_RETURN rets[2];
	int n;
};

static void drain_hand_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct drain_hand *hand = data;
	int n = atomic_fetch_inc(&hand->begun);

	if (n >= hand->n)
		return;
	if (n == hand->n - 1)
		complete_all(&hand->in);
	wait_for_completion(&hand->ended);
	hand->rets[n] = kdat_ep_drain(event->event_data.dto_completion_event_data.ep_handle);
	if (atomic_inc_return(&hand->tried) == hand->n)
		complete_all(&hand->all);
	wait_for_completion(&hand->go[n]);
	atomic_inc(&hand->over);
}

static void drain_hand_drain(void *arg)
{
	struct drain_hand *hand = arg;

	drain_aside_drain(&hand->call);
	hand->seen = atomic_read(&hand->over);
}

/* Nothing is queued: they cannot wait for each other; a caller outside waits for both. */
static void drain_hand_test(struct kunit *test)
{
	struct drain_hand *hand = kunit_kzalloc(test, sizeof(*hand), GFP_KERNEL);
	struct kd_env *env = kd_open(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, hand);
	hand->call.env = env;
	hand->n = min(2U, num_online_cpus());
	init_completion(&hand->in);
	init_completion(&hand->ended);
	init_completion(&hand->all);
	for (i = 0; i < 2; i++)
		init_completion(&hand->go[i]);
	KD_ASSERT_OK(test, dat_evd_free(env->recv));
	env->recv = drain_evd(env, DAT_UPCALL_MANY, drain_hand_upcall, hand);
	kd_ep(env, NULL);
	kd_connect(env);
	for (i = 0; i < hand->n; i++)
		KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, i, NULL, 0));
	fake_ib_complete_all(env->qp, true, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, wait_for_completion_timeout(&hand->in, DRAIN_LONG));
	drain_disconnect(test, env->kep);
	complete_all(&hand->ended);
	KUNIT_EXPECT_TRUE(test, wait_for_completion_timeout(&hand->all, DRAIN_LONG));
	/* on one CPU there is one upcall at a time, which need not wait for another */
	for (i = 0; i < hand->n; i++) {
		if (hand->n > 1)
			KD_EXPECT_RET(test, hand->rets[i], DAT_INVALID_STATE,
				      DAT_INVALID_STATE_EVD_IN_USE);
		else
			KD_EXPECT_OK(test, hand->rets[i]);
	}
	kd_aside(test, &hand->call.aside, drain_hand_drain, hand);
	/* while it waits it looks again every HZ / 20, and must find them there */
	for (i = 0; i < hand->n; i++) {
		KUNIT_EXPECT_FALSE(test, wait_for_completion_timeout(&hand->call.aside.done,
								     HZ / 5));
		complete_all(&hand->go[i]);
	}
	KUNIT_EXPECT_TRUE(test, kd_aside_wait(&hand->call.aside));
	KD_EXPECT_OK(test, hand->call.ret);
	KUNIT_EXPECT_EQ(test, hand->seen, hand->n);
	KUNIT_EXPECT_EQ(test, atomic_read(&hand->begun), hand->n);
}

/*
 * Removal has begun: no call is taken any more, that which disconnects neither. The
 * connection has not been ended yet, and the device still has what was posted.
 */
static void drain_removal_test(struct kunit *test)
{
	struct drain_aside *call = kunit_kzalloc(test, sizeof(*call), GFP_KERNEL);
	struct kd_env *env = kd_connected(test, NULL);

	KUNIT_ASSERT_NOT_NULL(test, call);
	drain_post(env);
	/* as device_mark_all() does, and no further */
	WRITE_ONCE(env->kep->obj.ia->dead, true);
	call->env = env;
	kd_aside(test, &call->aside, drain_aside_drain, call);
	KUNIT_EXPECT_TRUE(test, drain_aside_waits(call, kd_conn_of(env)));
	fake_ib_unplug(env->dev);
	KUNIT_ASSERT_TRUE(test, kd_aside_wait(&call->aside));
	KD_EXPECT_OK(test, call->ret);
	drain_expect_all(env);
	KUNIT_EXPECT_EQ(test, kd_expect_end(env), (u32)DAT_CONNECTION_EVENT_BROKEN);
}

static void drain_aside_connect(void *arg)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	struct drain_aside *call = arg;

	call->ret = dat_ep_connect(call->env->ep, (DAT_IA_ADDRESS_PTR)&to, KD_PEER_PORT,
				   DAT_TIMEOUT_INFINITE, 0, NULL, DAT_QOS_BEST_EFFORT,
				   DAT_CONNECT_DEFAULT_FLAG);
}

/*
 * An attempt has just begun when the device fails. It is not ended, since it comes to
 * nothing by itself: the EP is as it was before, and nobody tells of it.
 */
static void drain_attempt_test(struct kunit *test)
{
	struct drain_aside *attempt = kunit_kzalloc(test, sizeof(*attempt), GFP_KERNEL);
	struct drain_aside *call = kunit_kzalloc(test, sizeof(*call), GFP_KERNEL);
	struct kd_env *env = kd_open(test, NULL);
	struct net_device *lo = kd_loopback();
	struct ib_event fatal = {
		.device = fake_ib_device(env->dev), .event = IB_EVENT_DEVICE_FATAL,
	};
	struct kdapl_conn *conn;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, attempt);
	KUNIT_ASSERT_NOT_NULL(test, call);
	KUNIT_ASSERT_NOT_NULL(test, lo);
	KUNIT_ASSERT_EQ(test, fake_ib_set_netdev(env->dev, lo), 0);
	kd_ep(env, NULL);
	conn = kd_conn_of(env);
	attempt->env = env;
	call->env = env;

	mutex_lock(&conn->lock);	/* neither gets any further */
	kd_aside(test, &attempt->aside, drain_aside_connect, attempt);
	for (i = 0; i < 15000 && !completion_done(&attempt->aside.done) &&
	     READ_ONCE(env->kep->state) != DAT_EP_STATE_ACTIVE_CONNECTION_PENDING; i++)
		kd_pause();
	KUNIT_EXPECT_EQ(test, (int)READ_ONCE(env->kep->state),
			(int)DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	ib_dispatch_event(&fatal);
	for (i = 0; i < 15000 && !READ_ONCE(env->kep->obj.ia->dead); i++)
		kd_pause();
	KUNIT_EXPECT_LT(test, i, 15000);

	kd_aside(test, &call->aside, drain_aside_drain, call);
	KUNIT_EXPECT_FALSE(test, drain_aside_waits(call, conn));
	KUNIT_EXPECT_EQ(test, (int)conn->state, (int)KDAPL_CONN_IDLE);
	mutex_unlock(&conn->lock);
	KUNIT_EXPECT_TRUE(test, kd_aside_wait(&attempt->aside));
	KD_EXPECT_RET(test, attempt->ret, DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	if (!completion_done(&call->aside.done))
		complete_all(&conn->ended);	/* nobody else would */
	KUNIT_EXPECT_TRUE(test, kd_aside_wait(&call->aside));
	KD_EXPECT_OK(test, call->ret);
	KUNIT_EXPECT_EQ(test, (int)READ_ONCE(env->kep->state), (int)DAT_EP_STATE_UNCONNECTED);
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

static struct kunit_case drain_cases[] = {
	KD_CASE(drain_upcall_test, "STAT-05,SRQ-QRY-01: drained before it is freed in an upcall"),
	KD_CASE(drain_lost_test, "STAT-05,FLUSH-05: freed at once in an upcall"),
	KD_CASE(drain_dequeue_test, "FLUSH-04,EPSM-24: drained into EVDs without upcalls"),
	KD_CASE(drain_states_test, "EP-FREE-04: drained in other states"),
	KD_CASE(drain_hand_test, "STAT-05,EVD-UP-07: drained while upcalls have some in hand"),
	KD_CASE(drain_place_test, "STAT-05: completions have upcalls while others drain"),
	KD_CASE(drain_place_free_test, "STAT-05: they do while EPs are freed behind upcalls"),
	KD_CASE(drain_removal_test, "EPSM-24: drained while the device goes"),
	KD_CASE(drain_attempt_test, "EPSM-24: drained while an attempt fails with the device"),
	{}
};

static struct kunit_suite drain_suite = {
	.name = "kdapl-drain",
	.suite_init = kd_suite_init,
	.suite_exit = kd_suite_exit,
	.init = sq_init,
	.exit = drain_exit,
	.test_cases = drain_cases,
};

kunit_test_suite(drain_suite);
