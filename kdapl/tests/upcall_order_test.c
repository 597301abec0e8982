// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Thousands of random mixtures of whatever can happen to an EVD: completions of
 * several EPs, software events, dequeues inside and outside upcalls, drains,
 * changes of policy and of length. After each step everything that is due has
 * been delivered, nothing else has, in order, once, and with the right
 * more_events; the model of kd_upcall.c knows.
 *
 * The steps follow from a seed, which is printed; the parameter order_seed makes
 * a run come again. Where the suites run before parameters are read (6.1), give
 * it its value here.
 */
#include <linux/bottom_half.h>
#include <linux/moduleparam.h>
#include <linux/prandom.h>
#include <linux/random.h>

#include "kd_upcall.h"

#define ORD_EPS		3
#define ORD_WQS	(2 * ORD_EPS)
#define ORD_DEPTH	8
#define ORD_SE		(ORD_WQS + 1)		/* stream of the software events */
#define ORD_QLEN	256
#define ORD_QUEUED	150			/* no queue gets longer */
#define ORD_ROUNDS	1000
#define ORD_STEPS	40

static unsigned long order_seed;
module_param(order_seed, ulong, 0444);
MODULE_PARM_DESC(order_seed, "seed of the random mixtures of events in the unit tests; 0: any");

/* What becomes of a posted request when it completes. */
enum ord_kind { ORD_SIGNALLED, ORD_UNSIGNALLED, ORD_SILENT };

/**
 * struct ord_wq - one queue of one EP, a stream of its own
 * @kinds: of the outstanding requests
 * @head: requests posted
 * @tail: requests completed
 */
struct ord_wq {
	u8 kinds[64];
	u32 head;
	u32 tail;
};

/**
 * struct ord - one run
 * @env: fake device and the objects on it
 * @softirq: where upcalls come
 * @mixed: software events too, and no unsignalled ones (FLAG-17)
 * @sink: where the upcalls go
 * @model: what is right
 * @rnd: where the steps come from; only one thread at a time uses it
 * @evd: the EVD of everything
 * @ep: EPs
 * @qp: their QPs
 * @wqs: two for each, requests first
 * @se: software events posted
 * @quiet: nothing is to happen inside upcalls
 * @qlen: length of the EVD
 * @step: number of the step
 * @wrong: something was
 */
struct ord {
	struct kd_env *env;
	bool softirq;
	bool mixed;
	struct kd_sink *sink;
	struct kd_model model;
	struct rnd_state rnd;
	DAT_EVD_HANDLE evd;
	DAT_EP_HANDLE ep[ORD_EPS];
	struct ib_qp *qp[ORD_EPS];
	struct ord_wq wqs[ORD_WQS];
	u32 se;
	bool quiet;
	int qlen;
	int step;
	bool wrong;
};

static u32 ord_rnd(struct ord *ord, u32 n)
{
	return prandom_u32_state(&ord->rnd) % n;
}

static void ord_expect(struct ord *ord, bool ok, const char *what, u64 id)
{
	if (ok || ord->wrong)
		return;
	ord->wrong = true;
	KUNIT_FAIL(ord->env->test, "step %d, policy %s: %s (event %#llx)", ord->step,
		   kd_policy_name(ord->model.policy), what, id);
}

static void ord_post(struct ord *ord, int r)
{
	enum kd_call call = r & 1 ? KD_RECV : KD_SEND;
	DAT_LMR_TRIPLET iov = kd_seg(ord->env, KD_RW, 0, 8);
	struct ord_wq *wq = &ord->wqs[r];
	enum ord_kind kind = ord_rnd(ord, 3);
	int flags = 0;
	DAT_RETURN ret;

	if (kind == ORD_SILENT && call == KD_RECV)
		kind = ORD_SIGNALLED;
	if (kind == ORD_UNSIGNALLED && ord->mixed)
		kind = ORD_SIGNALLED;
	if (kind == ORD_UNSIGNALLED)
		flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	else if (kind == ORD_SILENT)
		flags = DAT_COMPLETION_SUPPRESS_FLAG;
	ret = kd_post(ord->ep[r / 2], call, 1, &iov, KD_ID(r + 1, wq->head), NULL, flags);
	if (ret == DAT_SUCCESS)
		wq->kinds[wq->head++ % ARRAY_SIZE(wq->kinds)] = kind;
	else
		ord_expect(ord, DAT_GET_TYPE(ret) == DAT_INSUFFICIENT_RESOURCES, "post refused",
			   KD_ID(r + 1, wq->head));
}

static void ord_complete(struct ord *ord)
{
	int r = ord_rnd(ord, ORD_WQS);
	struct ord_wq *wq = &ord->wqs[r];
	enum ord_kind kind;

	if (ord->model.n > ORD_QUEUED)
		return;
	if (wq->tail == wq->head)
		ord_post(ord, r);
	if (wq->tail == wq->head)
		return;
	kind = wq->kinds[wq->tail % ARRAY_SIZE(wq->kinds)];
	if (kind != ORD_SILENT)
		kd_model_arrive(&ord->model, KD_ID(r + 1, wq->tail), kind == ORD_SIGNALLED);
	wq->tail++;
	ord_expect(ord, !fake_ib_complete(ord->qp[r / 2], r & 1, IB_WC_SUCCESS),
		   "nothing to complete", r);
}

static void ord_software(struct ord *ord)
{
	u64 id = KD_ID(ORD_SE, ord->se);

	if (ord->model.n > ORD_QUEUED)
		return;
	ord->se++;
	kd_model_arrive(&ord->model, id, true);
	ord_expect(ord, kd_post_se(ord->evd, id) == DAT_SUCCESS, "software event refused", id);
}

static void ord_arrive(struct ord *ord)
{
	if (ord->mixed && !ord_rnd(ord, 3))
		ord_software(ord);
	else
		ord_complete(ord);
}

/* Several arrivals before anybody looks. */
static void ord_burst(struct ord *ord)
{
	int n = 1 + ord_rnd(ord, 6);

	if (ord->softirq) {
		local_bh_disable();
		while (n--)
			ord_arrive(ord);
		local_bh_enable();
		return;
	}
	/* in a workqueue only the device can be told to wait */
	fake_ib_hold_irq(ord->env->dev, true);
	while (n--)
		ord_complete(ord);
	fake_ib_hold_irq(ord->env->dev, false);
	if (ord->mixed && ord_rnd(ord, 2)) {
		kd_settle(ord->evd);
		ord_software(ord);
	}
}

static void ord_dequeue(struct ord *ord)
{
	DAT_RETURN ret = DAT_SUCCESS;
	DAT_EVENT event;
	int n;

	for (n = 1 + ord_rnd(ord, 4); n && ret == DAT_SUCCESS; n--) {
		ret = dat_evd_dequeue(ord->evd, &event);
		kd_model_dequeued(&ord->model, ret, &event);
	}
}

static void ord_drain_cqs(struct ord *ord)
{
	DAT_BOOLEAN recv_idle, request_idle;
	DAT_EP_STATE state;

	dat_ep_get_status(ord->ep[ord_rnd(ord, ORD_EPS)], &state, &recv_idle, &request_idle);
}

static void ord_modify(struct ord *ord, bool inside)
{
	static const DAT_UPCALL_POLICY policies[] = {
		DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_NOTIFY, DAT_UPCALL_MANY,
		DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_DISABLE, DAT_UPCALL_TEARDOWN,
	};
	/* the last one would wait for itself; MANY would have company at once */
	DAT_UPCALL_POLICY policy = policies[ord_rnd(ord, inside ? 2 : ARRAY_SIZE(policies))];
	DAT_UPCALL_FLAG flag = ord_rnd(ord, 2) ? DAT_UPCALL_INVOC_ANY : DAT_UPCALL_INVOC_NEW;

	kd_model_policy(&ord->model, policy, flag);
	ord->model.loose = !ord->softirq && policy == DAT_UPCALL_MANY && num_online_cpus() > 1;
	ord->quiet = ord->model.loose;
	ord_expect(ord, kd_policy(ord->evd, policy, flag) == DAT_SUCCESS, "change refused", flag);
}

static void ord_resize(struct ord *ord)
{
	int qlen = ORD_QUEUED + 50 + ord_rnd(ord, 200), n = ord->model.n;

	if (n > 1)
		ord_expect(ord, DAT_GET_TYPE(dat_evd_resize(ord->evd, n - 1)) == DAT_INVALID_STATE,
			   "made too short", n);
	ord_expect(ord, dat_evd_resize(ord->evd, qlen) == DAT_SUCCESS, "resize refused", qlen);
}

/* Whatever a consumer may do there. */
static void ord_inside(struct kd_sink *sink, const DAT_EVENT *event, bool more)
{
	struct ord *ord = sink->arg;

	kd_model_upcall(&ord->model, event, more);
	if (ord->quiet)
		return;
	switch (ord_rnd(ord, 16)) {
	case 0:
	case 1:
		ord_dequeue(ord);
		break;
	case 2:
	case 3:
		ord_post(ord, ord_rnd(ord, ORD_WQS));
		ord_arrive(ord);
		break;
	case 4:
		ord_drain_cqs(ord);
		break;
	case 5:
		if (!ord->softirq)
			ord_modify(ord, true);
		break;
	case 6:
		if (!ord->softirq)
			ord_resize(ord);
		break;
	}
}

static void ord_settled(struct ord *ord)
{
	kd_settle(ord->evd);
	kd_model_settled(&ord->model);
	if (ord->model.wrong)
		ord_expect(ord, false, ord->model.wrong, ord->model.wrong_id);
}

static void ord_step(struct ord *ord)
{
	switch (ord_rnd(ord, 16)) {
	case 0 ... 1:
		ord_post(ord, ord_rnd(ord, ORD_WQS));
		break;
	case 2 ... 8:
		ord_burst(ord);
		break;
	case 9:
		ord_arrive(ord);
		break;
	case 10 ... 11:
		ord_dequeue(ord);
		break;
	case 12:
		ord_drain_cqs(ord);
		break;
	case 13 ... 14:
		ord_modify(ord, false);
		break;
	case 15:
		ord_resize(ord);
		break;
	}
	ord_settled(ord);
	ord->step++;
}

/* Nothing is left, neither here nor there. */
static void ord_finish(struct ord *ord)
{
	DAT_RETURN ret;
	DAT_EVENT event;

	kd_model_policy(&ord->model, DAT_UPCALL_DISABLE, DAT_UPCALL_INVOC_NEW);
	KD_EXPECT_OK(ord->env->test, kd_policy(ord->evd, DAT_UPCALL_TEARDOWN,
					       DAT_UPCALL_INVOC_NEW));
	do {
		ret = dat_evd_dequeue(ord->evd, &event);
		kd_model_dequeued(&ord->model, ret, &event);
	} while (ret == DAT_SUCCESS);
	ord_settled(ord);
	ord_expect(ord, !ord->model.n, "lost", ord->model.n);
}

static void ord_eps(struct ord *ord)
{
	struct kd_env *env = ord->env;
	DAT_EP_ATTR attr;
	int i;

	kd_attr(&attr);
	attr.max_recv_dtos = ORD_DEPTH;
	attr.max_request_dtos = ORD_DEPTH;
	if (!ord->mixed) {
		attr.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
		attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	}
	for (i = 0; i < ORD_EPS; i++) {
		KD_ASSERT_OK(env->test, dat_ep_create(env->ia, env->pz, ord->evd, ord->evd,
						      env->conn, &attr, &ord->ep[i]));
		ord->qp[i] = fake_ib_newest_qp(env->dev);
		env->ep = ord->ep[i];
		env->qp = ord->qp[i];
		env->kep = kdapl_obj_get(ord->ep[i], DAT_HANDLE_TYPE_EP);
		KUNIT_ASSERT_NOT_NULL(env->test, env->kep);
		kd_connect(env);
		kdapl_obj_put(&env->kep->obj);
		env->ep = NULL;
		env->qp = NULL;
		env->kep = NULL;
	}
}

static void ord_test(struct kunit *test, bool softirq, bool mixed)
{
	struct ord *ord = kunit_kzalloc(test, sizeof(*ord), GFP_KERNEL);
	u64 seed = order_seed ?: get_random_u32();
	int i, round;

	KUNIT_ASSERT_NOT_NULL(test, ord);
	kunit_info(test, "order_seed=%llu", seed);
	prandom_seed_state(&ord->rnd, seed);
	kd_pin();
	ord->env = kd_open(test, NULL);
	ord->softirq = softirq;
	ord->mixed = mixed;
	ord->sink = kd_sink(test);
	ord->sink->inside = ord_inside;
	ord->sink->arg = ord;
	/* in a mixture nobody promises an order between the streams */
	kd_model_init(&ord->model, !mixed);
	KD_ASSERT_OK(test, kd_evd_create(ord->env, ORD_QLEN, DAT_UPCALL_DISABLE, ord->sink,
					 DAT_EVD_DTO_FLAG | (mixed ? DAT_EVD_SOFTWARE_FLAG : 0),
					 softirq ? KDAT_EVD_CONTEXT_SOFTIRQ :
					 KDAT_EVD_CONTEXT_WORKQUEUE, &ord->evd));
	ord_eps(ord);
	for (round = 0; round < ORD_ROUNDS && !ord->wrong; round++) {
		for (i = 0; i < ORD_STEPS && !ord->wrong; i++)
			ord_step(ord);
		ord_finish(ord);
	}
	KUNIT_EXPECT_GT(test, ord->model.upcalls, ORD_ROUNDS);
	KUNIT_EXPECT_EQ(test, ord->sink->foreign, 0);
	KUNIT_EXPECT_EQ(test, ord->sink->changed, 0);
	kunit_info(test, "%d steps, %d upcalls, %llu events", ord->step, ord->model.upcalls,
		   ord->model.newest);
	for (i = 0; i < ORD_EPS; i++)
		KD_EXPECT_OK(test, dat_ep_free(ord->ep[i]));
	KD_EXPECT_OK(test, dat_evd_free(ord->evd));
}

static void ord_softirq_test(struct kunit *test)
{
	ord_test(test, true, false);
}

static void ord_work_test(struct kunit *test)
{
	ord_test(test, false, false);
}

static void ord_softirq_mixed_test(struct kunit *test)
{
	ord_test(test, true, true);
}

static void ord_work_mixed_test(struct kunit *test)
{
	ord_test(test, false, true);
}

static struct kunit_case ord_cases[] = {
	KD_CASE(ord_softirq_test,
		"EVD-DQ-03,EVD-DQ-04,EVD-UP-01,EVD-UP-04,EVD-MOD-06: completions, softirq"),
	KD_CASE(ord_work_test,
		"EVD-DQ-03,EVD-DQ-04,EVD-UP-01,EVD-UP-04,EVD-MOD-06: completions, workqueue"),
	KD_CASE(ord_softirq_mixed_test,
		"EVD-DQ-03,EVD-DQ-04,EVD-UP-12,EVD-SE-04,SIL-38: all streams, softirq"),
	KD_CASE(ord_work_mixed_test,
		"EVD-DQ-03,EVD-DQ-04,EVD-UP-12,EVD-SE-04,EVD-RSZ-01: all streams, workqueue"),
	{}
};

static struct kunit_suite ord_suite = {
	.name = "kdapl-upcall-order",
	.suite_init = kd_suite_init,
	.suite_exit = kd_suite_exit,
	.init = kd_init,
	.exit = kd_exit,
	.test_cases = ord_cases,
};

kunit_test_suite(ord_suite);
