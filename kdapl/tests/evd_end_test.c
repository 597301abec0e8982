// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Objects that are freed, reset and closed from several sides while an upcall
 * has something of theirs in hand. A call that promises the end waits for it;
 * nothing waits for ever; what stays is delivered.
 */
#include "kd_upcall.h"

#define END_QLEN	64		/* one CQ has room for all EPs */
#define END_EPS		2
#define END_MOMENT	200		/* ms: longer than what is waited for without upcalls */

/* An EVD with upcalls that can be held, and EPs whose requests complete there. */
struct end {
	struct kd_env *env;
	struct kd_sink *sink;
	DAT_EVD_HANDLE evd;
	DAT_EP_HANDLE ep[END_EPS];
	struct ib_qp *qp[END_EPS];
};

static struct end *end_open(struct kunit *test, DAT_UPCALL_POLICY policy, bool unsignalled)
{
	struct end *end = kunit_kzalloc(test, sizeof(*end), GFP_KERNEL);
	struct kd_env *env = kd_open(test, NULL);
	DAT_EP_ATTR attr;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, end);
	end->env = env;
	end->sink = kd_sink(test);
	KD_ASSERT_OK(test, kd_evd_create(env, END_QLEN, policy, end->sink, DAT_EVD_DTO_FLAG,
					 KDAT_EVD_CONTEXT_WORKQUEUE, &end->evd));
	kd_attr(&attr);
	if (unsignalled)
		attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	for (i = 0; i < END_EPS; i++)
		end->qp[i] = kd_more_ep(env, env->recv, end->evd, &attr, &end->ep[i]);
	return end;
}

static void end_send(struct end *end, int i, u32 n, int flags)
{
	kd_sent(end->env, end->ep[i], end->qp[i], KD_ID(i, n), flags);
}

/*
 * Another thread frees an EP while an upcall has an event of it, and drops so many others. It
 * waits for the upcall.
 */
static void end_free(struct end *end, int i, int dropped, struct kd_aside *aside)
{
	struct kdapl_ep *kep = kdapl_obj_get(end->ep[i], DAT_HANDLE_TYPE_EP);
	struct kunit *test = end->env->test;
	struct kdapl_conn *conn;

	KUNIT_ASSERT_NOT_NULL(test, kep);
	conn = rcu_dereference_protected(kep->conn, true);
	kd_aside_call(test, aside, dat_ep_free, end->ep[i]);
	KD_WAIT(test, READ_ONCE(conn->discard) && atomic_read(&conn->dropped) >= dropped);
	kdapl_obj_put(&kep->obj);
	KUNIT_EXPECT_FALSE(test, kd_aside_returned(aside, END_MOMENT));
}

/* ANY made all events due. The youngest goes with its EP, the others stay due. */
static void end_due_test(struct kunit *test)
{
	const int uns = DAT_COMPLETION_UNSIGNALLED_FLAG;
	struct end *end = end_open(test, DAT_UPCALL_SINGLE_INSTANCE, true);
	struct kd_sink *sink = end->sink;

	kd_sink_pass(sink, 0);
	end_send(end, 0, 0, 0);
	KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, 1, 0));
	end_send(end, 0, 1, uns);
	end_send(end, 0, 2, uns);
	end_send(end, 1, 0, uns);
	KD_EXPECT_OK(test, kd_policy(end->evd, DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_INVOC_ANY));
	KD_EXPECT_OK(test, dat_ep_free(end->ep[1]));
	kd_sink_pass(sink, INT_MAX);
	kd_sink_expect(test, sink, 3);
	kd_settle(end->evd);
	kd_sink_expect(test, sink, 3);
	KUNIT_EXPECT_EQ(test, sink->seen[1].id, KD_ID(0, 1));
	KUNIT_EXPECT_EQ(test, sink->seen[2].id, KD_ID(0, 2));
	KD_EXPECT_OK(test, dat_ep_free(end->ep[0]));
	KD_EXPECT_OK(test, dat_evd_free(end->evd));
}

/*
 * dat_ep_free() waits for the upcall that has an event of the EP in hand, also one of a
 * connection before the last reset, and for no other; what else it has goes with it.
 */
static void end_ep_free_test(struct kunit *test)
{
	DAT_EVENT event;
	struct kd_aside aside;
	struct kd_sink *sink;
	struct kd_env *env;
	struct end *end;
	int row, i, n;
	bool reset;

	for (row = 0; row < 4; row++) {
		reset = row & 2;
		end = end_open(test, row & 1 ? DAT_UPCALL_MANY : DAT_UPCALL_SINGLE_INSTANCE,
			       false);
		env = end->env;
		sink = end->sink;
		n = row & 1 && !reset ? min_t(int, num_online_cpus(), 2) : 1;
		kd_sink_pass(sink, 0);
		for (i = 0; i < n; i++) {
			end_send(end, i, 0, 0);
			KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, i + 1, 0));
		}
		if (reset) {
			KD_EXPECT_OK(test, dat_ep_disconnect(end->ep[0], DAT_CLOSE_ABRUPT_FLAG));
			/* where one upcall is all there can be it holds up the end for a while */
			KD_WAIT(test, kd_next(env->conn, &event));
			KUNIT_EXPECT_EQ(test, (u32)event.event_number,
					(u32)DAT_CONNECTION_EVENT_DISCONNECTED);
			KD_EXPECT_OK(test, dat_ep_reset(end->ep[0]));
		} else {
			end_send(end, 0, 1, 0);
		}
		end_free(end, 0, !reset, &aside);
		KUNIT_EXPECT_EQ(test, sink->ended, 0);
		if (reset)	/* nobody has anything of that one */
			KD_EXPECT_OK(test, dat_ep_free(end->ep[1]));
		else
			end_send(end, 1, 1, 0);
		kd_sink_pass(sink, 1);
		KUNIT_EXPECT_TRUE(test, kd_aside_wait(&aside));
		KD_EXPECT_OK(test, aside.ret);
		kd_sink_pass(sink, INT_MAX);
		n += !reset;
		KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, n, n));
		kd_settle(end->evd);
		kd_sink_expect(test, sink, n);
		for (i = 0; i < n; i++)
			KUNIT_EXPECT_NE(test, sink->seen[i].id, KD_ID(0, 1));
		if (!reset)
			KD_EXPECT_OK(test, dat_ep_free(end->ep[1]));
		KD_EXPECT_OK(test, dat_evd_free(end->evd));
		kd_again(test);
	}
}

/*
 * Completions that the engine has taken in one go: the upcall of an EP's is waited for, its others
 * are not reported, and what comes between stays in order.
 */
static void end_taken_test(struct kunit *test)
{
	static const u64 want[] = { KD_ID(0, 0), KD_ID(0, 1), KD_ID(1, 0), KD_ID(0, 2) };
	struct end *end = end_open(test, DAT_UPCALL_SINGLE_INSTANCE, false);
	struct kd_sink *sink = end->sink;
	struct kd_aside aside;
	int i;

	kd_sink_pass(sink, 0);
	end_send(end, 0, 0, 0);
	KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, 1, 0));
	end_send(end, 0, 1, 0);
	end_send(end, 1, 0, 0);
	end_send(end, 0, 2, 0);
	end_send(end, 1, 1, 0);
	/* the upcall of the third one runs */
	kd_sink_pass(sink, 2);
	KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, 3, 2));
	end_free(end, 1, 1, &aside);
	kd_sink_pass(sink, INT_MAX);
	KUNIT_EXPECT_TRUE(test, kd_aside_wait(&aside));
	KD_EXPECT_OK(test, aside.ret);
	KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, 4, 4));
	kd_settle(end->evd);
	kd_sink_expect(test, sink, 4);
	for (i = 0; i < ARRAY_SIZE(want); i++)
		KUNIT_EXPECT_EQ(test, sink->seen[i].id, want[i]);
	KD_EXPECT_OK(test, dat_ep_free(end->ep[0]));
	KD_EXPECT_OK(test, dat_evd_free(end->evd));
}

/* Who waits for an upcall goes on before the upcall of what has arrived meanwhile. */
static void end_few_test(struct kunit *test)
{
	struct end *end = end_open(test, DAT_UPCALL_SINGLE_INSTANCE, false);
	struct kd_sink *sink = end->sink;
	struct kd_aside aside;

	kd_sink_pass(sink, 0);
	end_send(end, 1, 0, 0);
	KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, 1, 0));
	/* so few that they are not taken together; the second one goes with its EP */
	end_send(end, 0, 0, 0);
	end_send(end, 0, 1, 0);
	kd_sink_pass(sink, 1);
	KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, 2, 1));
	end_free(end, 0, 1, &aside);
	end_send(end, 1, 1, 0);
	kd_sink_pass(sink, 2);
	KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, 3, 2));
	/* that one may wait for what the waiter holds */
	KUNIT_EXPECT_TRUE(test, kd_aside_returns(&aside));
	kd_sink_pass(sink, INT_MAX);
	KUNIT_EXPECT_TRUE(test, kd_aside_wait(&aside));
	KD_EXPECT_OK(test, aside.ret);
	kd_settle(end->evd);
	kd_sink_expect(test, sink, 3);
	KD_EXPECT_OK(test, dat_ep_free(end->ep[1]));
	KD_EXPECT_OK(test, dat_evd_free(end->evd));
}

/* An upcall that waits, then tries to close its IA. */
struct end_closer {
	DAT_IA_HANDLE ia;
	DAT_RETURN ret;
	struct completion begun;
	struct completion go;
};

static void end_closer(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct end_closer *closer = data;

	complete(&closer->begun);
	wait_for_completion(&closer->go);
	closer->ret = dat_ia_close(closer->ia, DAT_CLOSE_ABRUPT_FLAG);
	complete(&closer->begun);
	wait_for_completion(&closer->go);
}

/* An EVD is on its way out while its last upcall runs: the IA waits for that, too. */
static void end_close_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct end_closer closer = { .ret = DAT_SUCCESS };
	DAT_UPCALL_OBJECT object = { .instance_data = &closer, .upcall_func = end_closer };
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	struct kd_aside aside[2];
	DAT_EVD_HANDLE evd;

	init_completion(&closer.begun);
	init_completion(&closer.go);
	closer.ia = kd_ia_more(env, &async);
	KD_ASSERT_OK(test, dat_evd_kcreate(closer.ia, END_QLEN, DAT_UPCALL_SINGLE_INSTANCE, &object,
					   DAT_EVD_SOFTWARE_FLAG, &evd));
	KD_EXPECT_OK(test, kd_post_se(evd, 0));
	KUNIT_EXPECT_TRUE(test, wait_for_completion_timeout(&closer.begun, KD_LONG));
	kd_aside_call(test, &aside[0], dat_evd_free, evd);
	KD_WAIT(test, dat_evd_query(evd, 0, NULL) != DAT_SUCCESS);	/* its handle is dead */
	KUNIT_EXPECT_FALSE(test, kd_aside_returned(&aside[0], END_MOMENT));
	/* from inside it would wait for itself */
	complete(&closer.go);
	KUNIT_EXPECT_TRUE(test, wait_for_completion_timeout(&closer.begun, KD_LONG));
	KD_EXPECT_TYPE(test, closer.ret, DAT_INVALID_STATE);
	/* from outside it waits */
	kd_aside_call(test, &aside[1], kd_close_abrupt, closer.ia);
	KUNIT_EXPECT_FALSE(test, kd_aside_returned(&aside[1], END_MOMENT));
	KUNIT_EXPECT_FALSE(test, kd_aside_returned(&aside[0], END_MOMENT));
	complete(&closer.go);
	KUNIT_EXPECT_TRUE(test, kd_aside_wait(&aside[0]));
	KUNIT_EXPECT_TRUE(test, kd_aside_wait(&aside[1]));
	KD_EXPECT_OK(test, aside[0].ret);
	KD_EXPECT_OK(test, aside[1].ret);
}

/*
 * An EP is being freed: from the first completion that is not reported on, none is. Not even
 * one that would go the short way while the other had to go the long one.
 */
static void end_gap_test(struct kunit *test)
{
	struct kd_env *env = kd_connected(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	struct kdapl_conn *conn = kd_conn_of(env);
	DAT_EP_HANDLE ep = env->ep;
	struct kd_aside aside;

	KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, 1, NULL, 0));
	KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, 2, NULL, 0));
	KD_EXPECT_EMPTY(test, env->recv);
	kdapl_obj_put(&env->kep->obj);
	env->kep = NULL;
	env->ep = DAT_HANDLE_NULL;
	mutex_lock(&conn->lock);	/* its end does not come before that */
	kd_aside_call(test, &aside, dat_ep_free, ep);
	KD_WAIT(test, READ_ONCE(conn->discard));
	KUNIT_EXPECT_EQ(test, fake_ib_recv_inv(env->qp, 8, 1), 0);
	KD_EXPECT_EMPTY(test, env->recv);
	KUNIT_EXPECT_EQ(test, fake_ib_recv(env->qp, 8, false), 0);
	KD_EXPECT_EMPTY(test, env->recv);
	mutex_unlock(&conn->lock);
	KUNIT_EXPECT_TRUE(test, kd_aside_wait(&aside));
	KD_EXPECT_OK(test, aside.ret);
	KD_EXPECT_EMPTY(test, env->recv);
}

static struct kunit_case end_cases[] = {
	KD_CASE(end_due_test, "EVD-MOD-03,EVD-MOD-06,EP-FREE-03: due events of which some go"),
	KD_CASE(end_ep_free_test, "EP-FREE-03,EP-RST-02,EVD-UP-07: an EP goes while upcalls run"),
	KD_CASE(end_taken_test, "EP-FREE-03,EVD-UP-03,EVD-UP-07: completions taken together"),
	KD_CASE(end_few_test, "EP-FREE-03: who waits goes on before the next upcall"),
	KD_CASE(end_gap_test, "EP-FREE-03,STAT-05: no gap in what an EP being freed reports"),
	KD_CASE(end_close_test, "EVD-FREE-03,IA-CLOSE-02: closed while an EVD is being freed"),
	{}
};

KD_SUITE("kdapl-evd-end", end_cases, kd_init, kd_exit);
