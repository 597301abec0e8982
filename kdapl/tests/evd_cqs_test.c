// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * How many CQs an EVD has: for many EPs, on devices with small or few CQs, where
 * memory is short, and when EPs come and go.
 */
#include <linux/log2.h>
#include <linux/slab.h>

#include "kd_upcall.h"

#define CQS_EPS		1024
#define CQS_LONG	300		/* a long queue */

/* EPs that complete on one EVD, which is as short as can be. */
struct cqs {
	struct kd_env *env;
	DAT_EVD_HANDLE evd;
	unsigned int created;		/* CQs, when it was made */
	DAT_EP_HANDLE ep[CQS_EPS];
	struct ib_qp *qp[CQS_EPS];
};

static struct cqs *cqs_open(struct kunit *test, const struct fake_ib_caps *caps)
{
	struct cqs *cqs = kunit_kzalloc(test, sizeof(*cqs), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, cqs);
	cqs->env = kd_open(test, caps);
	cqs->created = fake_ib_count(cqs->env->dev, FAKE_IB_CREATE_CQ);
	cqs->evd = kd_evd(cqs->env, 1, DAT_EVD_DTO_FLAG);
	return cqs;
}

/* One more EP, both queues of which complete there, and are so long. */
static DAT_RETURN cqs_try(struct cqs *cqs, int i, int dtos)
{
	struct kd_env *env = cqs->env;
	DAT_EP_ATTR attr;
	DAT_RETURN ret;

	kd_attr(&attr);
	attr.max_recv_dtos = dtos;
	attr.max_request_dtos = dtos;
	ret = dat_ep_create(env->ia, env->pz, cqs->evd, cqs->evd, env->conn, &attr, &cqs->ep[i]);
	cqs->qp[i] = fake_ib_newest_qp(env->dev);
	return ret;
}

static void cqs_ep(struct cqs *cqs, int i)
{
	KD_ASSERT_OK(cqs->env->test, cqs_try(cqs, i, 8));
}

static void cqs_ep_free(struct cqs *cqs, int i)
{
	KD_EXPECT_OK(cqs->env->test, dat_ep_free(cqs->ep[i]));
}

/* Make it the EP of the environment, or none. */
static void cqs_use(struct cqs *cqs, int i)
{
	struct kd_env *env = cqs->env;

	if (env->kep)
		kdapl_obj_put(&env->kep->obj);
	env->ep = i < 0 ? DAT_HANDLE_NULL : cqs->ep[i];
	env->qp = i < 0 ? NULL : cqs->qp[i];
	env->kep = i < 0 ? NULL : kdapl_obj_get(env->ep, DAT_HANDLE_TYPE_EP);
	KUNIT_ASSERT_TRUE(env->test, i < 0 || env->kep);
}

/* It is connected, and a Send on it is done. */
static void cqs_send(struct cqs *cqs, int i)
{
	cqs_use(cqs, i);
	kd_connect(cqs->env);
	cqs_use(cqs, -1);
	kd_sent(cqs->env, cqs->ep[i], cqs->qp[i], i, 0);
}

/* EPs [0, n) are connected, and each of them completes there. */
static void cqs_all_complete(struct cqs *cqs, int n)
{
	int i;

	for (i = 0; i < n; i++)
		cqs_send(cqs, i);
	KUNIT_EXPECT_EQ(cqs->env->test, kd_drain(cqs->evd), n);
}

/* CQs of the EVD, and how many were ever made for it. */
static unsigned int cqs_now(struct cqs *cqs)
{
	struct kdapl_evd *evd = kdapl_obj_get(cqs->evd, DAT_HANDLE_TYPE_EVD);
	unsigned int n = 0;
	struct kdapl_cq *cq;

	KUNIT_ASSERT_NOT_NULL(cqs->env->test, evd);
	mutex_lock(&evd->mutex);
	spin_lock_irq(&evd->lock);
	list_for_each_entry(cq, &evd->cqs, evd_node)
		n++;
	spin_unlock_irq(&evd->lock);
	mutex_unlock(&evd->mutex);
	kdapl_obj_put(&evd->obj);
	return n;
}

static unsigned int cqs_made(struct cqs *cqs)
{
	return fake_ib_count(cqs->env->dev, FAKE_IB_CREATE_CQ) - cqs->created;
}

static void cqs_close(struct cqs *cqs)
{
	/* one grace period for all EPs */
	KD_EXPECT_OK(cqs->env->test, dat_ia_close(kd_forget(cqs->env), DAT_CLOSE_ABRUPT_FLAG));
}

/* A thousand EPs on an EVD for one event. */
static void cqs_many_test(struct kunit *test)
{
	const struct fake_ib_caps caps = { .max_qp = 2 * CQS_EPS, .max_cq = 4 * CQS_EPS,
					    .max_cqe = 1 << 18 };
	struct cqs *cqs = cqs_open(test, &caps);
	int n = KD_TIMES(CQS_EPS), i;

	for (i = 0; i < n; i++)
		cqs_ep(cqs, i);
	kunit_info(test, "%d EPs: %u CQs, %u made", n, cqs_now(cqs), cqs_made(cqs));
	KUNIT_EXPECT_LE(test, cqs_now(cqs), 2 + ilog2(n));
	KUNIT_EXPECT_LE(test, cqs_made(cqs), 2 + ilog2(n));
	cqs_all_complete(cqs, n);
	cqs_close(cqs);
}

/* The first EPs share one CQ, however short the EVD is. */
static void cqs_few_test(struct kunit *test)
{
	struct cqs *cqs = cqs_open(test, NULL);

	KUNIT_EXPECT_EQ(test, cqs_now(cqs), 1U);
	cqs_ep(cqs, 0);
	cqs_ep(cqs, 1);
	KUNIT_EXPECT_EQ(test, cqs_now(cqs), 1U);
	cqs_ep_free(cqs, 0);
	cqs_ep_free(cqs, 1);
	/* one with long queues needs a larger one for both, and the other goes */
	KD_ASSERT_OK(test, cqs_try(cqs, 0, CQS_LONG));
	KUNIT_EXPECT_EQ(test, cqs_now(cqs), 1U);
	KUNIT_EXPECT_EQ(test, cqs_made(cqs), 2U);
	cqs_close(cqs);
}

/* A device whose CQs are small: as many as it takes, all of them full. */
static void cqs_small_test(struct kunit *test)
{
	const struct fake_ib_caps caps = { .max_cqe = 100, .max_qp_wr = 64 };
	struct cqs *cqs = cqs_open(test, &caps);
	const int n = 64;
	int i, slots = 0;

	for (i = 0; i < n; i++)
		cqs_ep(cqs, i);
	for (i = 0; i < n; i++) {
		struct ib_qp_cap cap;

		fake_ib_qp_caps(cqs->qp[i], &cap);
		slots += cap.max_send_wr + cap.max_recv_wr;
	}
	KUNIT_EXPECT_GE(test, cqs_now(cqs), DIV_ROUND_UP(slots, 100));
	KUNIT_EXPECT_LE(test, cqs_now(cqs), DIV_ROUND_UP(slots, 80) + 2);
	cqs_all_complete(cqs, n);
	/* when nobody needs them all but one go */
	for (i = 0; i < n; i++)
		cqs_ep_free(cqs, i);
	KUNIT_EXPECT_EQ(test, cqs_now(cqs), 1U);
	cqs_close(cqs);
}

/* EPs that come and go leave the larger CQs, and make no new ones. */
static void cqs_turn_test(struct kunit *test)
{
	const struct fake_ib_caps caps = { .max_cqe = 1 << 16 };
	struct cqs *cqs = cqs_open(test, &caps);
	const int n = KD_SLOW ? 16 : 64;
	unsigned int most, made;
	struct kdapl_evd *evd;
	int i, round;

	for (i = 0; i < n; i++)
		cqs_ep(cqs, i);
	most = cqs_now(cqs);
	for (round = 0; round < 3; round++) {
		made = cqs_made(cqs);
		for (i = 0; i < n; i++) {
			cqs_ep_free(cqs, i);
			cqs_ep(cqs, i);
		}
		KUNIT_EXPECT_LE(test, cqs_now(cqs), most);
		if (round)
			KUNIT_EXPECT_EQ(test, cqs_made(cqs), made);
	}
	for (i = 0; i < n; i++)
		cqs_ep_free(cqs, i);
	KUNIT_EXPECT_EQ(test, cqs_now(cqs), 1U);
	/* nor is room kept for them */
	evd = kdapl_obj_get(cqs->evd, DAT_HANDLE_TYPE_EVD);
	KUNIT_EXPECT_EQ(test, evd->reserve, 0U);
	kdapl_obj_put(&evd->obj);
	cqs_close(cqs);
}

/* What the device has no memory for is asked for in smaller pieces. */
static void cqs_scarce_test(struct kunit *test)
{
	const struct fake_ib_caps caps = { .max_cqe = 1 << 16 };
	struct cqs *cqs = cqs_open(test, &caps);
	unsigned int i, failed = 0;

	for (i = 0; i < 16; i++) {
		fake_ib_fail(cqs->env->dev, FAKE_IB_CREATE_CQ, 1, -ENOMEM);
		KD_EXPECT_OK(test, cqs_try(cqs, i, CQS_LONG));
		failed += !fake_ib_failing(cqs->env->dev, FAKE_IB_CREATE_CQ);
		fake_ib_fail(cqs->env->dev, FAKE_IB_CREATE_CQ, 0, 0);
	}
	KUNIT_EXPECT_GE(test, failed, 2U);
	cqs_close(cqs);
}

/* A device with few CQs: the unused one makes room for one that fits; then there is none. */
static void cqs_last_test(struct kunit *test)
{
	/* the IA's own, those of the environment, and one more */
	struct fake_ib_caps caps = { .max_cqe = 1 << 16 };
	struct kd_env *env = kd_open(test, &caps);
	struct fake_ib_live live;
	struct cqs *cqs;
	DAT_RETURN ret;
	int i = 1;

	fake_ib_live(env->dev, &live);
	caps.max_cq = live.cqs + 1;
	kd_again(test);
	cqs = cqs_open(test, &caps);
	KD_ASSERT_OK(test, cqs_try(cqs, 0, CQS_LONG));
	KUNIT_EXPECT_EQ(test, cqs_now(cqs), 1U);
	do
		ret = cqs_try(cqs, i++, CQS_LONG);
	while (ret == DAT_SUCCESS && i < CQS_EPS);
	KD_EXPECT_TYPE(test, ret, DAT_INSUFFICIENT_RESOURCES);
	/* nothing has changed for those that are there */
	KUNIT_EXPECT_EQ(test, cqs_now(cqs), 1U);
	cqs_send(cqs, 0);
	cqs_ep_free(cqs, 0);
	KD_EXPECT_OK(test, cqs_try(cqs, 0, CQS_LONG));
	cqs_close(cqs);
}

/* A CQ fails: what is made from then on completes elsewhere, and it goes with the last EP. */
static void cqs_failed_test(struct kunit *test)
{
	struct cqs *cqs = cqs_open(test, NULL);
	struct kd_env *env = cqs->env;
	struct ib_cq *failed;
	DAT_EVENT event;

	cqs_ep(cqs, 0);
	cqs_ep(cqs, 1);
	failed = cqs->qp[0]->send_cq;
	KUNIT_ASSERT_PTR_EQ(test, cqs->qp[1]->recv_cq, failed);
	cqs_send(cqs, 0);
	fake_ib_cq_event(failed, IB_EVENT_CQ_ERR);
	KUNIT_ASSERT_TRUE(test, kd_next(env->async, &event));
	KUNIT_EXPECT_EQ(test, (u32)event.event_number, (u32)DAT_ASYNC_ERROR_EVD_OVERFLOW);
	/* the consumer does as it is told */
	KD_EXPECT_OK(test, dat_ep_disconnect(cqs->ep[0], DAT_CLOSE_ABRUPT_FLAG));
	cqs_use(cqs, 0);
	KD_EXPECT_END(env, DISCONNECTED);
	cqs_use(cqs, -1);
	kd_drain(cqs->evd);
	KD_ASSERT_OK(test, dat_ep_reset(cqs->ep[0]));
	cqs->qp[0] = fake_ib_newest_qp(env->dev);
	KUNIT_EXPECT_PTR_NE(test, cqs->qp[0]->send_cq, failed);
	KUNIT_EXPECT_PTR_NE(test, cqs->qp[0]->recv_cq, failed);
	KUNIT_EXPECT_EQ(test, cqs_now(cqs), 2U);
	cqs_send(cqs, 0);
	KUNIT_EXPECT_EQ(test, kd_drain(cqs->evd), 1);
	/* a new one */
	cqs_ep(cqs, 2);
	KUNIT_EXPECT_PTR_NE(test, cqs->qp[2]->send_cq, failed);
	/* the other old one */
	cqs_ep_free(cqs, 1);
	KUNIT_EXPECT_EQ(test, cqs_now(cqs), 1U);
	/* one that nobody completes on */
	cqs_ep_free(cqs, 0);
	failed = cqs->qp[2]->send_cq;
	cqs_ep_free(cqs, 2);
	fake_ib_cq_event(failed, IB_EVENT_CQ_ERR);
	cqs_ep(cqs, 0);
	KUNIT_EXPECT_PTR_NE(test, cqs->qp[0]->send_cq, failed);
	KUNIT_EXPECT_EQ(test, cqs_now(cqs), 1U);
	cqs_close(cqs);
}

/*
 * EPs on an EVD that is as long as their queues: it has room for all their completions from the
 * beginning, on one CQ, and in the backlog twice: for posters, and for connections that end.
 */
static void cqs_fit_test(struct kunit *test)
{
	const struct fake_ib_caps caps = { .max_cqe = 1 << 16, .max_qp_wr = 1024 };
	const int n = 16, dtos = 64;
	struct cqs *cqs = cqs_open(test, &caps);
	const struct kdapl_wq *rq;
	struct kdapl_event *backlog;
	struct kdapl_evd *evd;
	int i;

	KD_EXPECT_OK(test, dat_evd_free(cqs->evd));
	cqs->created = fake_ib_count(cqs->env->dev, FAKE_IB_CREATE_CQ);
	cqs->evd = kd_evd(cqs->env, n * 2 * dtos, DAT_EVD_DTO_FLAG);
	evd = kdapl_obj_get(cqs->evd, DAT_HANDLE_TYPE_EVD);
	KUNIT_ASSERT_NOT_NULL(test, evd);
	backlog = evd->backlog;
	for (i = 0; i < n; i++)
		KD_ASSERT_OK(test, cqs_try(cqs, i, dtos));
	KUNIT_EXPECT_EQ(test, cqs_made(cqs), 1U);
	KUNIT_EXPECT_PTR_EQ(test, evd->backlog, backlog);
	KUNIT_EXPECT_GT(test, evd->backlog_size, 2 * evd->reserve);
	KUNIT_EXPECT_LT(test, evd->backlog_size, 5 * evd->reserve / 2);
	kdapl_obj_put(&evd->obj);
	/* no entry of a receive queue is more than there may be Receives */
	cqs_use(cqs, 0);
	rq = kd_conn_of(cqs->env)->rq;
	KUNIT_EXPECT_EQ(test, rq->mask + 1, (u32)dtos);
	cqs_use(cqs, -1);
	cqs_all_complete(cqs, n);
	cqs_close(cqs);
}

static struct kunit_case cqs_cases[] = {
	KD_CASE(cqs_many_test, "EVD-CQ-01,EP-CREATE-11: a thousand EPs on an EVD for one event"),
	KD_CASE(cqs_few_test, "EVD-CQ-01: one CQ for the first EPs"),
	KD_CASE(cqs_fit_test, "EVD-CQ-01: an EVD as long as the queues of its EPs"),
	KD_CASE(cqs_small_test, "EVD-CQ-01,EVD-OVF-06: a device with small CQs"),
	KD_CASE(cqs_turn_test, "EVD-CQ-01: EPs come and go"),
	KD_CASE(cqs_scarce_test, "EVD-CQ-01: no memory for a large CQ"),
	KD_CASE(cqs_last_test, "EVD-CQ-01: a device with few CQs"),
	KD_CASE(cqs_failed_test, "EVD-CQ-02,EP-RST-01: a CQ that has failed"),
	{}
};

KD_SUITE("kdapl-evd-cqs", cqs_cases, kd_init, kd_exit);
