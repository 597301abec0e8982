// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Connections that the administrator ends: in which states, what the consumer sees, and what the
 * answer is to a request that names no connection, or another one.
 */
#include <linux/netlink.h>

#include "kd_conn.h"

static int by_hand(struct kd_env *env, bool why)
{
	struct netlink_ext_ack extack = {};
	int ret;

	ret = kdapl_end_by_hand(kdapl_id(env->ep), kd_conn_of(env)->qpn, &extack);
	KUNIT_EXPECT_EQ(env->test, !!extack._msg, why);
	return ret;
}

static void by_hand_states_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	int i, want;

	for (i = 0; i < KD_STATES; i++) {
		kd_ep(env, NULL);
		kd_reach(env, kd_states[i].state);
		want = kd_states[i].state == DAT_EP_STATE_CONNECTED ||
		       kd_states[i].state == DAT_EP_STATE_DISCONNECT_PENDING ? 0 : -ENOTCONN;
		KUNIT_EXPECT_EQ_MSG(test, by_hand(env, want), want, "%s", kd_states[i].letter);
		if (want)
			KD_EXPECT_EMPTY(test, env->conn);
		else if (kd_states[i].state == DAT_EP_STATE_CONNECTED)
			KD_EXPECT_END(env, BROKEN);
		else
			KD_EXPECT_END(env, DISCONNECTED);
		kd_ep_free(env);
	}
}

/* A graceful disconnect waits for a Send that never completes. */
static void by_hand_graceful_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);

	kd_ep(env, NULL);
	kd_connect(env);
	KD_EXPECT_OK(test, kd_post(env->ep, KD_SEND, 1, &iov, 1, NULL, 0));
	KD_EXPECT_OK(test, dat_ep_disconnect(env->ep, DAT_CLOSE_GRACEFUL_FLAG));
	KD_EXPECT_EMPTY(test, env->conn);
	KUNIT_EXPECT_EQ(test, by_hand(env, false), 0);
	KD_EXPECT_END(env, DISCONNECTED);
	kd_expect_dto(test, env->req, 1, DAT_DTO_ERR_FLUSHED);
	KD_EXPECT_EMPTY(test, env->conn);
	KUNIT_EXPECT_EQ(test, by_hand(env, true), -ENOTCONN);
	KD_EXPECT_EMPTY(test, env->conn);
}

/* It ends already, for a reason of its own, which stays. */
static void by_hand_late_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kdapl_conn *conn;

	kd_ep(env, NULL);
	kd_connect(env);
	conn = kd_conn_of(env);
	mutex_lock(&conn->lock);	/* the end does not come before that */
	kdapl_conn_end(conn, KDAPL_END_SUSPECT);
	KUNIT_EXPECT_EQ(test, by_hand(env, true), -EALREADY);
	KUNIT_EXPECT_FALSE(test, conn->by_hand);
	mutex_unlock(&conn->lock);
	KD_EXPECT_END(env, BROKEN);
}

static void by_hand_other_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct netlink_ext_ack extack = {};
	u32 id, qpn;

	kd_ep(env, NULL);
	kd_connect(env);
	id = kdapl_id(env->ep);
	qpn = kd_conn_of(env)->qpn;
	KUNIT_EXPECT_EQ(test, kdapl_end_by_hand(id, qpn + 1, &extack), -ENOENT);
	KUNIT_EXPECT_NOT_NULL(test, extack._msg);
	KUNIT_EXPECT_EQ(test, kdapl_end_by_hand(kdapl_id(env->ia), qpn, NULL), -ENOENT);
	KUNIT_EXPECT_EQ(test, kdapl_end_by_hand(0, qpn, NULL), -ENOENT);
	KUNIT_EXPECT_EQ(test, kdapl_end_by_hand(BIT(KDAPL_HANDLE_INDEX_BITS) + id, qpn, NULL),
			-ENOENT);
	KUNIT_EXPECT_EQ(test, kdapl_end_by_hand(U32_MAX, qpn, NULL), -ENOENT);
	KD_EXPECT_STATE(env, env->ep, CONNECTED);
	KD_EXPECT_OK(test, dat_ep_disconnect(env->ep, DAT_CLOSE_ABRUPT_FLAG));
	KD_EXPECT_END(env, DISCONNECTED);
	kd_reset(env);
	kd_connect(env);
	/* the same Endpoint has another queue pair now */
	KUNIT_EXPECT_NE(test, kd_conn_of(env)->qpn, qpn);
	KUNIT_EXPECT_EQ(test, kdapl_end_by_hand(id, qpn, NULL), -ENOENT);
	KD_EXPECT_STATE(env, env->ep, CONNECTED);
}

static struct kunit_case by_hand_cases[] = {
	KD_CASE(by_hand_states_test, "EPSM-19: a connection is ended by hand, in each state"),
	KD_CASE(by_hand_graceful_test,
		"EPSM-19: ended by hand, a graceful disconnect does not wait any more"),
	KD_CASE(by_hand_late_test, "EPSM-19: a connection that ends already keeps its reason"),
	KD_CASE(by_hand_other_test, "GEN-05: nothing else is ended by hand"),
	{}
};

KD_SUITE("kdapl-by-hand", by_hand_cases, kd_init, kd_exit);
