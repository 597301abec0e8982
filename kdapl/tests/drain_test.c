// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The end of an EP whose completions and connection events come through different EVDs:
 * the upcall that brings DISCONNECTED may be faster than those that bring completions.
 * What is lost then, what kdat_ep_drain() waits for, and where it would wait for itself.
 */
#include <linux/completion.h>

#include "kd_srq.h"

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

/* The upcall of the first Receive is open, the others wait behind it, and so do Sends. */
static struct drain *drain_begin(struct kunit *test, bool wait, DAT_EVD_HANDLE *recv)
{
	const struct kdat_evd_attr attr = {
		.context = KDAT_EVD_CONTEXT_WORKQUEUE, .comp_vector = KDAT_EVD_VECTOR_ANY,
	};
	struct drain *drain = kunit_kzalloc(test, sizeof(*drain), GFP_KERNEL);
	const DAT_UPCALL_OBJECT recvs = { drain, drain_recv }, sends = { drain, drain_send },
				conns = { drain, drain_conn };
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
	KD_ASSERT_OK(test, kdat_evd_create(sq->env.ia, 8, DAT_UPCALL_SINGLE_INSTANCE, &recvs,
					   DAT_EVD_DTO_FLAG, &attr, recv));
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
	kdapl_obj_put(&sq->eps[0].kep->obj);
	memset(&sq->eps[0], 0, sizeof(sq->eps[0]));
	sq->env.ep = NULL;
	sq->env.kep = NULL;
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

/* Without upcalls all is there to be dequeued. */
static void drain_dequeue_test(struct kunit *test)
{
	struct kd_env *env = kd_connected(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	DAT_EVENT event;
	int i;

	for (i = 0; i < DRAIN_MSGS; i++) {
		KD_EXPECT_OK(test, kd_post(env->ep, KD_SEND, 1, &iov, i, NULL, 0));
		KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, i, NULL, 0));
	}
	fake_ib_complete(env->qp, false, IB_WC_SUCCESS);
	KD_EXPECT_OK(test, kdat_ep_drain(env->ep));
	KUNIT_EXPECT_EQ(test, (int)READ_ONCE(env->kep->state), (int)DAT_EP_STATE_DISCONNECTED);
	for (i = 0; i < DRAIN_MSGS; i++) {
		KUNIT_EXPECT_TRUE(test, kd_next(env->req, &event));
		KUNIT_EXPECT_TRUE(test, kd_next(env->recv, &event));
	}
	KD_EXPECT_EMPTY(test, env->req);
	KD_EXPECT_EMPTY(test, env->recv);
	KD_EXPECT_OK(test, kdat_ep_drain(env->ep));
}

/* States without a connection, and handles of nothing. */
static void drain_states_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	DAT_EP_STATE state;
	int i;

	kd_ep(env, NULL);
	KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, 1, NULL, 0));
	KD_EXPECT_OK(test, kdat_ep_drain(env->ep));
	KD_EXPECT_OK(test, dat_ep_get_status(env->ep, &state, NULL, NULL));
	KUNIT_EXPECT_EQ(test, (int)state, (int)DAT_EP_STATE_UNCONNECTED);
	KUNIT_EXPECT_EQ(test, fake_ib_outstanding(env->qp, true), 1U);
	for (i = 0; i < KD_STATES; i++) {
		if (kd_states[i].state != DAT_EP_STATE_RESERVED &&
		    kd_states[i].state != DAT_EP_STATE_PASSIVE_CONNECTION_PENDING &&
		    kd_states[i].state != DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING)
			continue;
		kd_set_state(env, kd_states[i].state);
		KD_EXPECT_RET(test, kdat_ep_drain(env->ep), DAT_INVALID_STATE,
			      kd_states[i].subtype);
	}
	KD_EXPECT_RET(test, kdat_ep_drain(env->conn), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	KD_EXPECT_RET(test, kdat_ep_drain(DAT_HANDLE_NULL), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_EP);
}

/* The device goes while somebody drains, or has gone. */
static void drain_removed_test(struct kunit *test)
{
	struct kd_env *env = kd_connected(test, NULL);

	fake_ib_unplug(env->dev);
	KD_EXPECT_OK(test, kdat_ep_drain(env->ep));
}

static struct kunit_case drain_cases[] = {
	KD_CASE(drain_upcall_test, "STAT-05,SRQ-QRY-01: drained before it is freed in an upcall"),
	KD_CASE(drain_lost_test, "STAT-05,FLUSH-05: freed at once in an upcall"),
	KD_CASE(drain_dequeue_test, "FLUSH-04: drained into EVDs without upcalls"),
	KD_CASE(drain_states_test, "EP-FREE-04: drained in other states"),
	KD_CASE(drain_removed_test, "EPSM-24: drained when the device has gone"),
	{}
};

static struct kunit_suite drain_suite = {
	.name = "kdapl-drain",
	.suite_init = kd_suite_init,
	.suite_exit = kd_suite_exit,
	.init = sq_init,
	.exit = sq_exit,
	.test_cases = drain_cases,
};

kunit_test_suite(drain_suite);
