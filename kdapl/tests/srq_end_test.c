// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Ends of EPs that share a queue, on devices of every kind: those that give
 * taken buffers back at once, late or never, that say when they are done or do
 * not, that lose the queue or go away.
 */
#include <linux/delay.h>

#include "kd_srq.h"

#define SQ_POISON	((struct ib_qp *)0x6b6b6b6b6b6b6b60UL)

/* Taken buffers when a connection ends, for devices of every kind. */
static void sq_taken_test(struct kunit *test)
{
	static const enum fake_ib_taken kinds[] = {
		FAKE_IB_TAKEN_FLUSHED, FAKE_IB_TAKEN_AT_DESTROY, FAKE_IB_TAKEN_LOST,
	};
	struct sq *sq = sq_open(test, NULL);
	int k, last, lost;
	DAT_EVENT event;

	for (k = 0; k < ARRAY_SIZE(kinds); k++) {
		for (last = 0; last < 2; last++) {
			lost = kinds[k] == FAKE_IB_TAKEN_LOST ? 2 : 0;
			fake_ib_taken(sq->env.dev, kinds[k]);
			fake_ib_last_wqe(sq->env.dev, last ? FAKE_IB_LAST_WQE_AT_ERR :
							     FAKE_IB_LAST_WQE_NEVER);
			sq_srq(sq, 8);
			sq_ep(sq, 0);
			sq_post(sq, 0, 6);
			/* one message there, two half way, one that arrives last */
			KUNIT_EXPECT_EQ(test, fake_ib_recv(sq->env.qp, 1, false), 0);
			KUNIT_EXPECT_EQ(test, fake_ib_srq_take(sq->env.qp), 1);
			KUNIT_EXPECT_EQ(test, fake_ib_srq_take(sq->env.qp), 2);
			KUNIT_EXPECT_EQ(test, fake_ib_recv(sq->env.qp, 4, false), 0);
			kd_end(&sq->env, DAT_CONNECTION_EVENT_DISCONNECTED);
			KUNIT_EXPECT_EQ(test, kd_expect_end(&sq->env),
					(u32)DAT_CONNECTION_EVENT_DISCONNECTED);
			/* all of it is there once the end is */
			sq_expect(sq, sq->env.recv, 0, 0, DAT_DTO_SUCCESS, 1);
			sq_expect(sq, sq->env.recv, 0, 3, DAT_DTO_SUCCESS, 4);
			if (!lost) {
				sq_expect(sq, sq->env.recv, 0, 1, DAT_DTO_ERR_FLUSHED, 0);
				sq_expect(sq, sq->env.recv, 0, 2, DAT_DTO_ERR_FLUSHED, 0);
			}
			KD_EXPECT_EMPTY(test, sq->env.recv);
			sq_ep_free(sq, 0);
			sq_settle();
			/* buffers on the SRQ are not touched, lost ones not in the way */
			sq_expect_counts(sq, 2, 2, "after the end");
			sq_post(sq, 10, 6);
			KD_EXPECT_RET(test, sq_try_post(sq, 50), DAT_INSUFFICIENT_RESOURCES,
				      DAT_RESOURCE_SRQ);
			/* and serve the next connection */
			sq_ep(sq, 1);
			KUNIT_EXPECT_EQ(test, fake_ib_recv(sq->env.qp, 7, false), 0);
			sq_expect(sq, sq->env.recv, 1, 4, DAT_DTO_SUCCESS, 7);
			sq_ep_free(sq, 1);
			sq_srq_free(sq);
			while (kd_next(sq->env.conn, &event))
				;
		}
	}
}

/* A buffer lost with each connection: the consumer keeps all it asked for. */
static void sq_lost_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	int round, i, seq;
	DAT_EVENT event;

	fake_ib_taken(sq->env.dev, FAKE_IB_TAKEN_LOST);
	fake_ib_last_wqe(sq->env.dev, FAKE_IB_LAST_WQE_AT_ERR);
	sq_srq(sq, 8);
	for (round = 0; round < 16; round++) {
		sq_ep(sq, 0);
		for (i = 0; sq_try_post(sq, i) == DAT_SUCCESS; i++)
			;
		sq_expect_counts(sq, 8, 8, "filled up");
		seq = fake_ib_srq_take(sq->env.qp);	/* this one is never seen again */
		KUNIT_EXPECT_GE(test, seq, 0);
		for (i = 0; i < 7; i++)
			KUNIT_EXPECT_EQ(test, fake_ib_recv(sq->env.qp, 1, false), 0);
		for (i = 0; kd_next(sq->env.recv, &event); i++)
			;
		KUNIT_EXPECT_EQ(test, i, 7);
		sq_ep_free(sq, 0);
		sq_settle();
		sq_expect_counts(sq, 0, 0, "reserve");
	}
	/* beyond the reserve there are fewer, and never too many for the device */
	for (; round < 24; round++) {
		sq_ep(sq, 0);
		for (i = 0; sq_try_post(sq, i) == DAT_SUCCESS; i++)
			;
		KUNIT_EXPECT_LE(test, i, 8);
		fake_ib_srq_take(sq->env.qp);
		while (!fake_ib_recv(sq->env.qp, 1, false))
			;
		while (kd_next(sq->env.recv, &event))
			;
		sq_ep_free(sq, 0);
		sq_settle();
	}
}

/* A lost buffer comes back after all, under the name of a QP long gone. */
static void sq_unknown_qp_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	struct ib_qp *names[] = { SQ_POISON, NULL, (struct ib_qp *)8, ERR_PTR(-1), NULL };
	int i, status;

	sq_srq(sq, 8);
	sq_ep(sq, 0);
	names[4] = (struct ib_qp *)((unsigned long)sq->env.qp ^ 0x40);
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		for (status = 0; status < 2; status++) {
			int seq;

			sq_post(sq, 0, 2);
			seq = fake_ib_srq_take(sq->env.qp);
			KUNIT_EXPECT_EQ(test, fake_ib_srq_finish_as(sq->env.qp, seq, status ?
								    IB_WC_WR_FLUSH_ERR :
								    IB_WC_SUCCESS, names[i]), 0);
			/* no event, no harm to anybody, and the buffer is free */
			KD_EXPECT_EMPTY(test, sq->env.recv);
			sq_expect_counts(sq, 1, 1, "unknown QP");
			KUNIT_EXPECT_EQ(test, fake_ib_recv(sq->env.qp, 2, false), 0);
			sq_expect(sq, sq->env.recv, 0, 1, DAT_DTO_SUCCESS, 2);
			KUNIT_EXPECT_EQ(test, (int)READ_ONCE(sq->env.kep->state),
					(int)DAT_EP_STATE_CONNECTED);
		}
	}
	KD_EXPECT_EMPTY(test, sq->env.conn);
}

/* The CQ the EPs of an SRQ share fails: those that come later share another one. */
static void sq_failed_cq_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	struct ib_cq *cq[2];
	DAT_EVENT event;
	int i;

	sq_srq(sq, 8);
	cq[0] = sq_ep(sq, 0)->recv_cq;
	KUNIT_EXPECT_PTR_EQ(test, sq_ep(sq, 1)->recv_cq, cq[0]);
	fake_ib_cq_event(cq[0], IB_EVENT_CQ_ERR);
	KUNIT_EXPECT_TRUE(test, kd_next(sq->env.async, &event));
	cq[1] = sq_ep(sq, 2)->recv_cq;
	KUNIT_EXPECT_PTR_NE(test, cq[1], cq[0]);
	KUNIT_EXPECT_PTR_EQ(test, sq_ep(sq, 3)->recv_cq, cq[1]);
	/* each as it came: the one CQ goes before the other */
	for (i = 3; i >= 0; i--) {
		sq_use(sq, i);
		sq_post(sq, 100 * i, 1);
		KUNIT_EXPECT_EQ(test, fake_ib_recv(sq->env.qp, 1, false), 0);
		sq_expect(sq, sq->env.recv, i, 100 * i, DAT_DTO_SUCCESS, 1);
		sq_ep_free(sq, i);
	}
}

/* The memory of a QP is used for the next one: completions go to the right EP. */
static void sq_address_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	struct ib_qp *seen[32];
	int round, i, reused = 0, n = 0;

	fake_ib_taken(sq->env.dev, FAKE_IB_TAKEN_AT_DESTROY);
	fake_ib_last_wqe(sq->env.dev, FAKE_IB_LAST_WQE_AT_ERR);
	sq_srq(sq, 8);
	for (round = 0; round < ARRAY_SIZE(seen); round++) {
		sq_ep(sq, 0);
		for (i = 0; i < n; i++)
			if (seen[i] == sq->env.qp)
				break;
		if (i < n)
			reused++;
		else
			seen[n++] = sq->env.qp;
		sq_post(sq, 10 * round, 3);
		KUNIT_EXPECT_EQ(test, fake_ib_recv(sq->env.qp, 1, false), 0);
		sq_expect(sq, sq->env.recv, 0, 10 * round, DAT_DTO_SUCCESS, 1);
		/* one is in its hands when it goes; it comes back while it is destroyed */
		KUNIT_EXPECT_GE(test, fake_ib_srq_take(sq->env.qp), 0);
		kd_end(&sq->env, DAT_CONNECTION_EVENT_DISCONNECTED);
		kd_expect_end(&sq->env);
		sq_expect(sq, sq->env.recv, 0, 10 * round + 1, DAT_DTO_ERR_FLUSHED, 0);
		sq_ep_free(sq, 0);
		/* the third is for the next */
		sq_ep(sq, 1);
		KUNIT_EXPECT_EQ(test, fake_ib_recv(sq->env.qp, 1, false), 0);
		sq_expect(sq, sq->env.recv, 1, 10 * round + 2, DAT_DTO_SUCCESS, 1);
		sq_ep_free(sq, 1);
		sq_expect_counts(sq, 0, 0, "nothing left");
	}
	kunit_info(test, "%d of %d addresses used again", reused, round);
	if (!reused)
		kunit_skip(test, "the allocator gave no address twice");
}

/* The order of the device's calls when an EP with an SRQ ends. */
static int sq_find(struct sq *sq, int from, enum fake_ib_verb verb, const void *obj)
{
	const struct fake_ib_step *step;

	for (; (step = fake_ib_trace(sq->env.dev, from)); from++)
		if (step->verb == verb && step->obj == obj)
			return from;
	return -1;
}

static unsigned long sq_end_trace(struct sq *sq)
{
	struct kunit *test = sq->env.test;
	struct ib_cq *cq = sq->env.qp->recv_cq;
	struct ib_qp *qp = sq->env.qp;
	const struct fake_ib_step *err, *gone;
	struct kdapl_pool *pool;
	int modify, poll, destroy, again;

	KUNIT_ASSERT_EQ(test, fake_ib_trace_start(sq->env.dev), 0);
	kd_end(&sq->env, DAT_CONNECTION_EVENT_DISCONNECTED);
	KUNIT_EXPECT_EQ(test, kd_expect_end(&sq->env), (u32)DAT_CONNECTION_EVENT_DISCONNECTED);
	modify = sq_find(sq, 0, FAKE_IB_MODIFY_QP, qp);
	KUNIT_ASSERT_GE(test, modify, 0);
	err = fake_ib_trace(sq->env.dev, modify);
	KUNIT_EXPECT_EQ(test, err->arg, (int)IB_QPS_ERR);
	poll = sq_find(sq, modify, FAKE_IB_POLL_CQ, cq);
	destroy = sq_find(sq, modify, FAKE_IB_DESTROY, qp);
	KUNIT_ASSERT_GE(test, poll, 0);
	KUNIT_ASSERT_GE(test, destroy, 0);
	KUNIT_EXPECT_LT(test, poll, destroy);
	again = sq_find(sq, destroy, FAKE_IB_POLL_CQ, cq);
	KUNIT_ASSERT_GE(test, again, 0);
	/* polled until it was empty, before the end was told */
	while (again >= 0 && fake_ib_trace(sq->env.dev, again)->arg)
		again = sq_find(sq, again + 1, FAKE_IB_POLL_CQ, cq);
	KUNIT_EXPECT_GE(test, again, 0);
	/* and out of the table, which has the others only */
	pool = kdapl_srq_pool_get(sq->env.kep->srq);
	KUNIT_EXPECT_EQ(test, READ_ONCE(pool->nconns), 0U);
	kdapl_pool_put(pool);
	/* nothing is posted to it any more but the marker, before it is gone */
	KUNIT_EXPECT_EQ(test, sq_find(sq, destroy, FAKE_IB_POST_SEND, qp), -1);
	KUNIT_EXPECT_EQ(test, sq_find(sq, modify, FAKE_IB_POST_RECV, qp), -1);
	gone = fake_ib_trace(sq->env.dev, destroy);
	return gone->when - err->when;
}

static void sq_teardown_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	int kind;

	sq_srq(sq, 8);
	sq_post(sq, 0, 8);
	for (kind = 0; kind < 3; kind++) {
		fake_ib_taken(sq->env.dev, kind);
		fake_ib_last_wqe(sq->env.dev, FAKE_IB_LAST_WQE_AT_ERR);
		sq_ep(sq, 0);
		sq_end_trace(sq);
		sq_ep_free(sq, 0);
		/* one that never says when it is done is waited for */
		fake_ib_last_wqe(sq->env.dev, FAKE_IB_LAST_WQE_NEVER);
		sq_ep(sq, 0);
		KUNIT_EXPECT_GE(test, sq_end_trace(sq), (unsigned long)HZ / 10 - 1);
		sq_ep_free(sq, 0);
	}
	sq_expect_counts(sq, 8, 8, "nobody took one");
	/* a word that comes after the end harms nobody */
	sq_ep(sq, 0);
	fake_ib_qp_event(sq->env.qp, IB_EVENT_QP_LAST_WQE_REACHED);
	KUNIT_EXPECT_EQ(test, fake_ib_recv(sq->env.qp, 1, false), 0);
	sq_expect(sq, sq->env.recv, 0, 0, DAT_DTO_SUCCESS, 1);
	KUNIT_EXPECT_EQ(test, (int)READ_ONCE(sq->env.kep->state), (int)DAT_EP_STATE_CONNECTED);
}

/* Unread completions when an EP is freed or reset: dropped, buffers free. */
static void sq_drop_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	struct ib_qp *other;
	int how, i;

	sq_srq(sq, 12);
	other = sq_ep(sq, 1);
	for (how = 0; how < 3; how++) {
		sq_ep(sq, 0);
		sq_post(sq, 0, 8);
		for (i = 0; i < 3; i++)
			KUNIT_EXPECT_EQ(test, fake_ib_recv(sq->env.qp, i, false), 0);
		KUNIT_EXPECT_EQ(test, fake_ib_recv(other, 3, false), 0);
		if (how == 1)		/* some are in the backlog by now */
			sq_expect_counts(sq, 4, 8, "in the store");
		if (how == 2) {
			kd_end(&sq->env, DAT_CONNECTION_EVENT_DISCONNECTED);
			kd_expect_end(&sq->env);
			KD_EXPECT_OK(test, dat_ep_reset(sq->env.ep));
			sq->eps[0].qp = fake_ib_newest_qp(sq->env.dev);
		} else {
			sq_ep_free(sq, 0);
		}
		sq_settle();
		sq_expect_counts(sq, 4, 5, "dropped");
		sq_expect(sq, sq->env.recv, 1, 3, DAT_DTO_SUCCESS, 3);
		KD_EXPECT_EMPTY(test, sq->env.recv);
		for (i = 4; i < 8; i++) {
			KUNIT_EXPECT_EQ(test, fake_ib_recv(other, i, false), 0);
			sq_expect(sq, sq->env.recv, 1, i, DAT_DTO_SUCCESS, i);
		}
		sq_expect_counts(sq, 0, 0, "all used");
	}
	/* reset has kept the SRQ */
	sq_use(sq, 0);
	kd_connect(&sq->env);
	sq_post(sq, 70, 1);
	KUNIT_EXPECT_EQ(test, fake_ib_recv(sq->env.qp, 9, false), 0);
	sq_expect(sq, sq->env.recv, 0, 70, DAT_DTO_SUCCESS, 9);
}

static void sq_unplug_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	int i;

	sq_srq(sq, 8);
	sq_ep(sq, 0);
	sq_ep(sq, 1);
	sq_post(sq, 0, 6);
	KUNIT_EXPECT_EQ(test, fake_ib_recv(sq->eps[0].qp, 1, false), 0);
	KUNIT_EXPECT_GE(test, fake_ib_srq_take(sq->eps[1].qp), 0);
	fake_ib_unplug(sq->env.dev);
	sq->ib = NULL;
	/* what had arrived is still told */
	sq_expect(sq, sq->env.recv, 0, 0, DAT_DTO_SUCCESS, 1);
	for (i = 0; i < 2; i++)
		sq_ep_free(sq, i);
	sq_srq_free(sq);
}

static void sq_error_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	DAT_SRQ_PARAM param;
	unsigned int posted;
	DAT_EVENT event;
	int i;

	sq_srq(sq, 8);
	sq_ep(sq, 0);
	sq_post(sq, 0, 3);
	KUNIT_EXPECT_EQ(test, fake_ib_recv(sq->env.qp, 1, false), 0);
	fake_ib_srq_event(sq->ib, IB_EVENT_SRQ_ERR);
	KUNIT_EXPECT_EQ(test, sq_async(sq, sq->srq, DAT_SRQ_TRANSFER_TO_ERROR), 1);
	sq_counts(sq, &param);
	KUNIT_EXPECT_EQ(test, (int)param.srq_state, (int)DAT_SRQ_STATE_ERROR);
	/* posts are accepted, reach nobody, and count */
	posted = fake_ib_srq_posted(sq->ib);
	for (i = 0; i < 5; i++)
		KD_EXPECT_OK(test, sq_try_post(sq, 10 + i));
	KD_EXPECT_RET(test, sq_try_post(sq, 50), DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ);
	KUNIT_EXPECT_EQ(test, fake_ib_srq_posted(sq->ib), posted);
	/* the checks are the same */
	KD_EXPECT_RET(test, dat_srq_post_recv(sq->srq, -1, NULL, (DAT_DTO_COOKIE) {}),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	/* what had arrived is told */
	sq_expect(sq, sq->env.recv, 0, 0, DAT_DTO_SUCCESS, 1);
	KD_EXPECT_EMPTY(test, sq->env.recv);
	sq_counts(sq, &param);
	KUNIT_EXPECT_EQ(test, (int)param.outstanding_dto_count, 7);
	/* a connection that needs a buffer breaks, as the device says */
	fake_ib_qp_event(sq->env.qp, IB_EVENT_QP_FATAL);
	KUNIT_EXPECT_EQ(test, kd_expect_end(&sq->env), (u32)DAT_CONNECTION_EVENT_BROKEN);
	KUNIT_EXPECT_TRUE(test, kd_next(sq->env.async, &event));
	KUNIT_EXPECT_EQ(test, (u32)event.event_number, (u32)DAT_ASYNC_ERROR_EP_BROKEN);
	/* the limit event of the device is none of the consumer's business */
	fake_ib_srq_event(sq->ib, IB_EVENT_SRQ_LIMIT_REACHED);
	KUNIT_EXPECT_EQ(test, sq_async(sq, NULL, -1), 0);
	KD_EXPECT_RET(test, dat_srq_free(sq->srq), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_SRQ_IN_USE);
	sq_ep_free(sq, 0);
	sq_srq_free(sq);
	KD_EXPECT_EMPTY(test, sq->env.recv);
}

/* One EVD for everything: messages, flushes, and only then the end. */
static void sq_shared_evd_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	DAT_EVD_HANDLE evd, recv = sq->env.recv, req = sq->env.req, conn = sq->env.conn;
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	int kind, i, n, status[4];
	DAT_EVENT event;

	dto = &event.event_data.dto_completion_event_data;
	KD_ASSERT_OK(test, dat_evd_kcreate(sq->env.ia, 64, DAT_UPCALL_DISABLE, NULL,
					   DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG, &evd));
	sq->env.recv = evd;
	sq->env.req = evd;
	sq->env.conn = evd;
	sq_srq(sq, 8);
	for (kind = 0; kind < 3; kind++) {
		fake_ib_taken(sq->env.dev, kind);
		sq_post(sq, 0, 4);
		sq_ep_on(sq, 0, evd, NULL);
		/* comes before the connection is known */
		fake_ib_recv(sq->env.qp, 1, false);
		kd_connect(&sq->env);
		fake_ib_recv(sq->env.qp, 1, false);
		fake_ib_srq_take(sq->env.qp);
		fake_ib_recv(sq->env.qp, 1, false);
		kd_end(&sq->env, DAT_CONNECTION_EVENT_DISCONNECTED);
		for (i = 0, n = 0; i < 5000; i++) {
			if (!kd_next(evd, &event)) {
				kd_pause();
				continue;
			}
			if (event.event_number != DAT_DTO_COMPLETION_EVENT)
				break;
			KUNIT_ASSERT_LT(test, n, 4);
			status[n++] = dto->status;
		}
		KUNIT_EXPECT_EQ(test, (u32)event.event_number,
				(u32)DAT_CONNECTION_EVENT_DISCONNECTED);
		KUNIT_EXPECT_EQ(test, n, kind == FAKE_IB_TAKEN_LOST ? 3 : 4);
		for (i = 0; i < n; i++)
			KUNIT_EXPECT_EQ(test, status[i], i < 3 ? (int)DAT_DTO_SUCCESS :
					(int)DAT_DTO_ERR_FLUSHED);
		KD_EXPECT_EMPTY(test, evd);
		sq_ep_free(sq, 0);
		KD_EXPECT_EMPTY(test, evd);
	}
	sq->env.recv = recv;
	sq->env.req = req;
	sq->env.conn = conn;
	KD_EXPECT_OK(test, dat_evd_free(evd));
}

static DECLARE_COMPLETION(sq_connecting);
static DECLARE_COMPLETION(sq_connected);

static void sq_connect_work(struct work_struct *work)
{
	complete(&sq_connecting);
	wait_for_completion(&sq_connected);
}

/* soft-iWARP stays inside rdma_connect() while everything but the SRQ is freed. */
static void sq_connecting_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	struct kdapl_conn *conn;
	DAT_EVD_HANDLE recv;

	KD_ASSERT_OK(test, dat_evd_kcreate(sq->env.ia, 8, DAT_UPCALL_DISABLE, NULL,
					   DAT_EVD_DTO_FLAG, &recv));
	sq_srq(sq, 8);
	sq_ep_on(sq, 0, recv, NULL);
	conn = rcu_dereference_protected(sq->eps[0].kep->conn, true);
	refcount_inc(&conn->ref);
	reinit_completion(&sq_connecting);
	reinit_completion(&sq_connected);
	conn->cm_busy = true;
	INIT_WORK(&conn->connect_work, sq_connect_work);	/* the reaper waits for it */
	queue_work(kdapl_connect_wq, &conn->connect_work);
	wait_for_completion(&sq_connecting);	/* before that it can be called off */
	KD_EXPECT_OK(test, dat_ep_free(sq->eps[0].ep));
	KD_EXPECT_OK(test, dat_evd_free(recv));
	sq_settle();
	rcu_barrier();
	KUNIT_EXPECT_FALSE(test, completion_done(&conn->gone));
	KUNIT_EXPECT_EQ(test, conn->pool->nconns, 0);
	/* looks at every EP of the SRQ, and at its EVD */
	KD_EXPECT_OK(test, dat_srq_set_lw(sq->srq, 1));
	complete(&sq_connected);
	wait_for_completion(&conn->gone);
	kdapl_conn_put(conn);
	kdapl_obj_put(&sq->eps[0].kep->obj);
	memset(&sq->eps[0], 0, sizeof(sq->eps[0]));
	sq->env.ep = NULL;
	sq->env.kep = NULL;
	sq->env.qp = NULL;
}

static struct kunit_case srq_end_cases[] = {
	KD_CASE(sq_taken_test, "SRQ-POST-19,FLUSH-06: buffers in the hands of an EP that ends"),
	KD_CASE(sq_lost_test, "SRQ-POST-19,SRQ-CR-01: buffers that are lost with connections"),
	KD_CASE(sq_unknown_qp_test, "SRQ-POST-06: completions in the name of nobody"),
	KD_CASE(sq_address_test, "SRQ-POST-06: QPs at the address of an earlier one"),
	KD_CASE(sq_failed_cq_test, "EVD-CQ-02,SRQ-POST-19: their CQ fails"),
	KD_CASE(sq_teardown_test, "SRQ-POST-19: the device's calls when an EP ends"),
	KD_CASE(sq_drop_test, "EP-CREATE-13,EP-RST-02,EP-FREE-03: unread completions at the end"),
	KD_CASE(sq_unplug_test, "EPSM-24,ASY-22,GEN-06: the device goes"),
	KD_CASE(sq_connecting_test, "SRQ-LW-01,EP-FREE-02: an attempt that cannot be called off"),
	KD_CASE(sq_error_test, "SRQ-POST-15,SRQ-ERR-01: an SRQ in error"),
	KD_CASE(sq_shared_evd_test, "FLUSH-06,FLUSH-07,SRQ-POST-19: one EVD for everything"),
	{}
};

static struct kunit_suite srq_end_suite = {
	.name = "kdapl-srq-end",
	.suite_init = kd_suite_init,
	.suite_exit = kd_suite_exit,
	.init = sq_init,
	.exit = sq_exit,
	.test_cases = srq_end_cases,
};

kunit_test_suite(srq_end_suite);
