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
#include "kd_upcall.h"

#define SQ_POISON	((struct ib_qp *)0x6b6b6b6b6b6b6b60UL)

static void sq_flushed(struct sq *sq, int i, u64 cookie)
{
	sq_expect(sq, sq->env.recv, i, cookie, DAT_DTO_ERR_FLUSHED, 0);
}

/* The connection of the EP of the environment is ended, and the consumer is told. */
static void sq_end(struct sq *sq)
{
	kd_end(&sq->env, DAT_CONNECTION_EVENT_DISCONNECTED);
	KD_EXPECT_END(&sq->env, DISCONNECTED);
}

/* Post as many as there is room for. Returns how many. */
static int sq_fill(struct sq *sq)
{
	int n;

	for (n = 0; sq_try_post(sq, n) == DAT_SUCCESS; n++)
		;
	return n;
}

/*
 * Taken buffers when a connection ends, for devices of every kind. One EVD is for everything:
 * messages, flushes, and only then the end.
 */
static void sq_taken_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	struct kd_env *env = &sq->env;
	DAT_EVD_HANDLE evd, old[] = { env->recv, env->req, env->conn };
	static const u64 order[] = { 0, 1, 4, 2, 3, 0 };
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;
	int row, n;

	dto = &event.event_data.dto_completion_event_data;
	evd = kd_evd(env, 64, DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG);
	env->recv = evd;
	env->req = evd;
	env->conn = evd;
	for (row = 0; row < 6; row++) {
		enum fake_ib_taken kind = row / 2;

		fake_ib_taken(env->dev, kind);
		fake_ib_last_wqe(env->dev, row & 1 ? FAKE_IB_LAST_WQE_AT_ERR :
						     FAKE_IB_LAST_WQE_NEVER);
		sq_srq(sq, 8);
		sq_post(sq, 0, 7);
		sq_ep_on(sq, 0, evd, NULL);
		/* comes before the connection is known */
		sq_recv(sq, 0, 1, 1);
		kd_connect(env);
		/* one message there, two half way, one that arrives last */
		sq_recv(sq, 0, 1, 1);
		KUNIT_EXPECT_EQ(test, fake_ib_srq_take(env->qp), 2);
		KUNIT_EXPECT_EQ(test, fake_ib_srq_take(env->qp), 3);
		sq_recv(sq, 0, 1, 4);
		kd_end(env, DAT_CONNECTION_EVENT_DISCONNECTED);
		for (n = 0; n < 6; n++) {
			KD_WAIT(test, kd_next(evd, &event));
			if (event.event_number != DAT_DTO_COMPLETION_EVENT)
				break;
			KUNIT_EXPECT_EQ(test, kd_event_id(&event), order[n]);
			KUNIT_EXPECT_EQ(test, (int)dto->status, n < 3 ? (int)DAT_DTO_SUCCESS :
					(int)DAT_DTO_ERR_FLUSHED);
		}
		KUNIT_EXPECT_EQ(test, n, kind == FAKE_IB_TAKEN_LOST ? 3 : 5);
		KUNIT_EXPECT_EQ(test, (u32)event.event_number,
				(u32)DAT_CONNECTION_EVENT_DISCONNECTED);
		KD_EXPECT_EMPTY(test, evd);
		sq_ep_free(sq, 0);
		sq_settle();
		/* buffers on the SRQ are not touched, lost ones not in the way */
		sq_expect_counts(sq, 2, 2, "after the end");
		sq_post(sq, 10, 6);
		sq_expect_full(sq);
		/* and serve the next connection; a word that comes late harms nobody */
		fake_ib_qp_event(sq_ep(sq, 1), IB_EVENT_QP_LAST_WQE_REACHED);
		sq_recv(sq, 1, 1, 7);
		sq_got(sq, 1, 5, 7);
		sq_ep_free(sq, 1);
		sq_srq_free(sq);
		kd_drain(evd);
	}
	env->recv = old[0];
	env->req = old[1];
	env->conn = old[2];
	KD_EXPECT_OK(test, dat_evd_free(evd));
}

/* A buffer lost with each connection: the consumer keeps all it asked for. */
static void sq_lost_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	int round, n;

	fake_ib_taken(sq->env.dev, FAKE_IB_TAKEN_LOST);
	fake_ib_last_wqe(sq->env.dev, FAKE_IB_LAST_WQE_AT_ERR);
	sq_srq(sq, 8);
	for (round = 0; round < 24; round++) {
		sq_ep(sq, 0);
		n = sq_fill(sq);
		/* beyond the reserve there are fewer, and never too many for the device */
		if (round < 16)
			KUNIT_EXPECT_EQ(test, n, 8);
		else
			KUNIT_EXPECT_LE(test, n, 8);
		/* this one is never seen again */
		KUNIT_EXPECT_EQ(test, fake_ib_srq_take(sq->env.qp) >= 0, n > 0);
		for (n--; n > 0; n--)
			sq_recv(sq, 0, 1, 1);
		kd_drain(sq->env.recv);
		sq_ep_free(sq, 0);
		sq_settle();
		sq_expect_counts(sq, 0, 0, "reserve");
	}
}

/* A lost buffer comes back after all, under the name of a QP long gone. */
static void sq_unknown_qp_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	struct ib_qp *names[] = { SQ_POISON, NULL, (struct ib_qp *)8, ERR_PTR(-1), NULL };
	int i, seq;

	sq_srq(sq, 8);
	sq_ep(sq, 0);
	names[4] = (struct ib_qp *)((unsigned long)sq->env.qp ^ 0x40);
	for (i = 0; i < 2 * (int)ARRAY_SIZE(names); i++) {
		sq_post(sq, 0, 2);
		seq = fake_ib_srq_take(sq->env.qp);
		KUNIT_EXPECT_EQ(test, fake_ib_srq_finish_as(sq->env.qp, seq, i & 1 ?
							    IB_WC_WR_FLUSH_ERR : IB_WC_SUCCESS,
							    names[i / 2]), 0);
		/* no event, no harm to anybody, and the buffer is free */
		KD_EXPECT_EMPTY(test, sq->env.recv);
		sq_expect_counts(sq, 1, 1, "unknown QP");
		sq_recv(sq, 0, 1, 2);
		sq_got(sq, 0, 1, 2);
		KUNIT_EXPECT_EQ(test, (int)READ_ONCE(sq->env.kep->state),
				(int)DAT_EP_STATE_CONNECTED);
	}
	KD_EXPECT_EMPTY(test, sq->env.conn);
}

/* The memory of a QP is used for the next one: completions go to the right EP. */
static void sq_address_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	struct ib_qp *seen[32];
	int round, i, reused = 0;

	fake_ib_taken(sq->env.dev, FAKE_IB_TAKEN_AT_DESTROY);
	fake_ib_last_wqe(sq->env.dev, FAKE_IB_LAST_WQE_AT_ERR);
	sq_srq(sq, 8);
	for (round = 0; round < ARRAY_SIZE(seen); round++) {
		seen[round] = sq_ep(sq, 0);
		for (i = 0; seen[i] != seen[round]; i++)
			;
		reused += i < round;
		sq_post(sq, 10 * round, 3);
		sq_recv(sq, 0, 1, 1);
		sq_got(sq, 0, 10 * round, 1);
		/* one is in its hands when it goes; it comes back while it is destroyed */
		KUNIT_EXPECT_GE(test, fake_ib_srq_take(sq->env.qp), 0);
		sq_end(sq);
		sq_flushed(sq, 0, 10 * round + 1);
		sq_ep_free(sq, 0);
		/* the third is for the next */
		sq_ep(sq, 1);
		sq_recv(sq, 1, 1, 1);
		sq_got(sq, 1, 10 * round + 2, 1);
		sq_ep_free(sq, 1);
		sq_expect_counts(sq, 0, 0, "nothing left");
	}
	kunit_info(test, "%d of %d addresses used again", reused, round);
	if (!reused)
		kunit_skip(test, "the allocator gave no address twice");
}

/* Unread completions when an EP is freed or reset: dropped, buffers free. */
static void sq_drop_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	int how, i;

	sq_srq(sq, 12);
	sq_ep(sq, 1);
	for (how = 0; how < 3; how++) {
		sq_ep(sq, 0);
		sq_post(sq, 0, 8);
		sq_recv(sq, 0, 3, 2);
		sq_recv(sq, 1, 1, 3);
		if (how == 1)		/* some are in the backlog by now */
			sq_expect_counts(sq, 4, 8, "in the store");
		if (how == 2) {
			sq_end(sq);
			KD_EXPECT_OK(test, dat_ep_reset(sq->env.ep));
			sq->eps[0].qp = fake_ib_newest_qp(sq->env.dev);
		} else {
			sq_ep_free(sq, 0);
		}
		sq_settle();
		sq_expect_counts(sq, 4, 5, "dropped");
		sq_got(sq, 1, 3, 3);
		KD_EXPECT_EMPTY(test, sq->env.recv);
		for (i = 4; i < 8; i++) {
			sq_recv(sq, 1, 1, i);
			sq_got(sq, 1, i, i);
		}
		sq_expect_counts(sq, 0, 0, "all used");
	}
	/* reset has kept the SRQ */
	sq_use(sq, 0);
	kd_connect(&sq->env);
	sq_post(sq, 70, 1);
	sq_recv(sq, 0, 1, 9);
	sq_got(sq, 0, 70, 9);
}

static void sq_unplug_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);

	sq_srq(sq, 8);
	sq_ep(sq, 0);
	sq_ep(sq, 1);
	sq_post(sq, 0, 6);
	sq_recv(sq, 0, 1, 1);
	KUNIT_EXPECT_GE(test, fake_ib_srq_take(sq->eps[1].qp), 0);
	fake_ib_unplug(sq->env.dev);
	sq->ib = NULL;
	/* what had arrived is still told */
	sq_got(sq, 0, 0, 1);
}

static void sq_error_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	DAT_SRQ_PARAM param;
	unsigned int posted;
	DAT_EVENT event;

	sq_srq(sq, 8);
	sq_ep(sq, 0);
	sq_post(sq, 0, 3);
	sq_recv(sq, 0, 1, 1);
	fake_ib_srq_event(sq->ib, IB_EVENT_SRQ_ERR);
	KUNIT_EXPECT_EQ(test, sq_async(sq, sq->srq, DAT_SRQ_TRANSFER_TO_ERROR), 1);
	sq_counts(sq, &param);
	KUNIT_EXPECT_EQ(test, (int)param.srq_state, (int)DAT_SRQ_STATE_ERROR);
	/* posts are accepted, reach nobody, and count; the checks are the same */
	posted = fake_ib_srq_posted(sq->ib);
	sq_post(sq, 10, 5);
	sq_expect_full(sq);
	KUNIT_EXPECT_EQ(test, fake_ib_srq_posted(sq->ib), posted);
	KD_BAD_ARG(test, dat_srq_post_recv(sq->srq, -1, NULL, (DAT_DTO_COOKIE) {}), 2);
	/* what had arrived is told */
	sq_got(sq, 0, 0, 1);
	KD_EXPECT_EMPTY(test, sq->env.recv);
	sq_counts(sq, &param);
	KUNIT_EXPECT_EQ(test, (int)param.outstanding_dto_count, 7);
	/* a connection that needs a buffer breaks, as the device says */
	fake_ib_qp_event(sq->env.qp, IB_EVENT_QP_FATAL);
	KD_EXPECT_END(&sq->env, BROKEN);
	KUNIT_EXPECT_TRUE(test, kd_next(sq->env.async, &event));
	KUNIT_EXPECT_EQ(test, (u32)event.event_number, (u32)DAT_ASYNC_ERROR_EP_BROKEN);
	/* the limit event of the device is none of the consumer's business */
	fake_ib_srq_event(sq->ib, IB_EVENT_SRQ_LIMIT_REACHED);
	KUNIT_EXPECT_EQ(test, sq_async(sq, NULL, -1), 0);
	KD_BAD_STATE(test, dat_srq_free(sq->srq), SRQ_IN_USE);
	sq_ep_free(sq, 0);
	sq_srq_free(sq);
	KD_EXPECT_EMPTY(test, sq->env.recv);
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

	recv = kd_evd(&sq->env, 8, DAT_EVD_DTO_FLAG);
	sq_srq(sq, 8);
	sq_ep_on(sq, 0, recv, NULL);
	conn = rcu_dereference_protected(sq->eps[0].kep->conn, true);
	refcount_inc(&conn->ref);
	reinit_completion(&sq_connecting);
	reinit_completion(&sq_connected);
	conn->cm_busy = KDAPL_CM_CALL;
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

/* The device has taken the only buffer, and gives it back when the QP is destroyed. */
static struct sq *sq_one_taken(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);

	fake_ib_taken(sq->env.dev, FAKE_IB_TAKEN_AT_DESTROY);
	fake_ib_last_wqe(sq->env.dev, FAKE_IB_LAST_WQE_AT_ERR);
	sq_srq(sq, 8);
	sq_ep(sq, 0);
	sq_post(sq, 0, 1);
	KUNIT_EXPECT_GE(test, fake_ib_srq_take(sq->env.qp), 0);
	return sq;
}

/*
 * The call that has accepted a request has not returned, and its connection has already ended. The
 * peer's message took a buffer, which comes back when the QP is destroyed, not before the call has
 * returned.
 */
static void sq_accepting_test(struct kunit *test)
{
	struct sq *sq = sq_one_taken(test);
	struct kdapl_conn *conn;

	conn = kd_conn_of(&sq->env);
	mutex_lock(&conn->lock);
	conn->passive = true;
	conn->cm_busy = KDAPL_CM_CALL;
	mutex_unlock(&conn->lock);
	KD_EXPECT_OK(test, dat_ep_disconnect(sq->env.ep, DAT_CLOSE_ABRUPT_FLAG));
	KD_WAIT(test, READ_ONCE(conn->sq->ended));
	sq_settle();
	KD_EXPECT_EMPTY(test, sq->env.conn);
	KUNIT_EXPECT_NOT_NULL(test, READ_ONCE(conn->qp));
	mutex_lock(&conn->lock);
	conn->cm_busy = 0;
	mod_delayed_work(kdapl_misc_wq, &conn->end_work, 0);
	mutex_unlock(&conn->lock);
	KD_EXPECT_END(&sq->env, DISCONNECTED);
	sq_flushed(sq, 0, 0);
	sq_ep_free(sq, 0);
	sq_expect_counts(sq, 0, 0, "nothing left");
}

/* A buffer comes back when the QP is destroyed, without an interrupt, so nobody looks for it. */
static void sq_quiet_test(struct kunit *test)
{
	struct sq *sq = sq_one_taken(test);

	fake_ib_hold_irq(sq->env.dev, true);
	KD_EXPECT_OK(test, dat_ep_disconnect(sq->env.ep, DAT_CLOSE_ABRUPT_FLAG));
	KD_EXPECT_END(&sq->env, DISCONNECTED);
	sq_flushed(sq, 0, 0);
	fake_ib_hold_irq(sq->env.dev, false);
	sq_ep_free(sq, 0);
	sq_expect_counts(sq, 0, 0, "nothing left");
}

#define SQ_FULL_ENDS	20

/*
 * The EVD is full of what another EP has posted, since nobody dequeues, and EPs of the SRQ end
 * there, each of which takes everything off the CQ: no message of one that stays is lost.
 */
static void sq_full_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	struct kd_env *env = &sq->env;
	DAT_EVD_HANDLE evd = kd_evd(env, 1, DAT_EVD_DTO_FLAG);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	int i, n = 0, sent = 0, received = 0, arrived = 0;
	DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EP_HANDLE ep;
	struct ib_qp *qp;
	DAT_EVENT event;

	fake_ib_last_wqe(env->dev, FAKE_IB_LAST_WQE_AT_ERR);
	sq_srq(sq, 8);
	qp = kd_more_ep(env, env->recv, evd, NULL, &ep);
	sq_ep_on(sq, 0, evd, NULL);
	kd_connect(env);
	sq_post(sq, 0, 8);
	for (i = 0; i < SQ_FULL_ENDS; i++) {
		while (n < 10000 && kd_post(ep, KD_SEND, 1, &iov, n, NULL, 0) == DAT_SUCCESS)
			n++;
		fake_ib_complete_all(qp, false, IB_WC_SUCCESS);
		if (i >= SQ_FULL_ENDS - 3) {
			sq_recv(sq, 0, 2, 5);
			arrived += 2;
		}
		sq_ep_on(sq, 1, evd, NULL);
		kd_connect(env);
		KD_EXPECT_OK(test, dat_ep_disconnect(env->ep, DAT_CLOSE_ABRUPT_FLAG));
		KD_EXPECT_END(env, DISCONNECTED);
		sq_ep_free(sq, 1);
	}
	KUNIT_EXPECT_LT(test, n, 10000);
	dto = &event.event_data.dto_completion_event_data;
	while (kd_next(evd, &event)) {
		KUNIT_EXPECT_EQ(test, (int)dto->status, (int)DAT_DTO_SUCCESS);
		KUNIT_EXPECT_EQ(test, (int)dto->user_cookie.as_64,
				dto->ep_handle == ep ? sent++ : received++);
	}
	KUNIT_EXPECT_EQ(test, sent, n);
	KUNIT_EXPECT_EQ(test, received, arrived);
	KD_EXPECT_EMPTY(test, env->async);
	sq_expect_counts(sq, 8 - arrived, 8 - arrived, "full");
	sq_recv(sq, 0, 1, 5);
	sq_expect(sq, evd, 0, arrived, DAT_DTO_SUCCESS, 5);
	sq_ep_free(sq, 0);
	KD_EXPECT_OK(test, dat_ep_free(ep));
	KD_EXPECT_OK(test, dat_evd_free(evd));
}

static struct kunit_case srq_end_cases[] = {
	KD_CASE(sq_taken_test,
		"SRQ-POST-19,FLUSH-06,FLUSH-07: buffers in the hands of an EP that ends"),
	KD_CASE(sq_lost_test, "SRQ-POST-19,SRQ-CR-01: buffers that are lost with connections"),
	KD_CASE(sq_unknown_qp_test, "SRQ-POST-06: completions in the name of nobody"),
	KD_CASE(sq_address_test, "SRQ-POST-06: QPs at the address of an earlier one"),
	KD_CASE(sq_drop_test,
		"EP-CREATE-13,EP-RST-02,EP-FREE-03,FLUSH-05: unread completions at the end"),
	KD_CASE(sq_full_test, "EVD-OVF-06,SRQ-POST-06: ends at an EVD that nobody dequeues"),
	KD_CASE(sq_unplug_test, "EPSM-24,ASY-22,GEN-06: the device goes"),
	KD_CASE(sq_connecting_test, "SRQ-LW-01,EP-FREE-02: an attempt that cannot be called off"),
	KD_CASE(sq_accepting_test, "SRQ-POST-06,FLUSH-05: an acceptance that has not returned"),
	KD_CASE(sq_quiet_test, "SRQ-POST-06,FLUSH-05: a buffer comes back without an interrupt"),
	KD_CASE(sq_error_test, "SRQ-POST-15,SRQ-ERR-01: an SRQ in error"),
	{}
};

KD_SUITE("kdapl-srq-end", srq_end_cases, sq_init, sq_exit);
