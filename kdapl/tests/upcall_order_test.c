// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Thousands of random mixtures of whatever can happen to an EVD: completions of
 * several EPs, software events, dequeues inside and outside upcalls, polling ahead,
 * changes of policy and of length. After each step everything that is due has
 * been delivered, nothing else has, in order, once, and with the right
 * more_events; a model knows. Every change of policy, with every flag, comes with
 * and without queued events, and in a workqueue under upcalls that are running.
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
#define ORD_WQS		(2 * ORD_EPS)
#define ORD_DEPTH	8
#define ORD_SE		(ORD_WQS + 1)		/* stream of the software events */
#define ORD_QLEN	256
#define ORD_QUEUED	150			/* no queue gets longer */
#define ORD_ROUNDS	1000
#define ORD_STEPS	40
#define MODEL_QUEUED	1024

static unsigned long order_seed;
module_param(order_seed, ulong, 0444);
MODULE_PARM_DESC(order_seed, "seed of the random mixtures of events in the unit tests; 0: any");

/*
 * Which upcalls are right. Knows nothing of stores, CQs and engines: events arrive, policies
 * change, and from that follows what is to come.
 */
struct model {
	spinlock_t lock;		/* everything below */
	bool fifo;			/* one CQ for all: else the order of a stream is known */
	bool loose;			/* upcalls start at the same time: any may be seen first */
	DAT_UPCALL_POLICY policy;
	bool reported;			/* NOTIFY: the consumer knows */
	int due;			/* at the head of the queue: upcalls are to start */
	int n;				/* queued */
	u64 newest;			/* ordinal of the event that arrived last */
	int upcalls;			/* seen */
	const char *wrong;		/* the first thing that was */
	u64 wrong_id;
	struct {
		u64 id;
		u64 ordinal;
	} q[MODEL_QUEUED];		/* in order of arrival */
};

/* An EVD without events and without upcalls. */
static void model_init(struct model *model, bool fifo)
{
	memset(model, 0, sizeof(*model));
	spin_lock_init(&model->lock);
	model->fifo = fifo;
	model->policy = DAT_UPCALL_DISABLE;
}

static void model_wrong(struct model *model, const char *what, u64 id)
{
	if (model->wrong)
		return;
	model->wrong = what;
	model->wrong_id = id;
}

/* The policy is about to change. */
static void model_policy(struct model *model, DAT_UPCALL_POLICY policy, DAT_UPCALL_FLAG flag)
{
	unsigned long flags;

	if (policy == DAT_UPCALL_TEARDOWN)
		policy = DAT_UPCALL_DISABLE;
	spin_lock_irqsave(&model->lock, flags);
	if (policy != DAT_UPCALL_DISABLE) {
		if (flag == DAT_UPCALL_INVOC_ANY)
			model->due = model->n;
		else if (model->policy == DAT_UPCALL_DISABLE)
			model->due = 0;
		if (policy != model->policy || flag == DAT_UPCALL_INVOC_ANY)
			model->reported = false;
	}
	model->policy = policy;
	spin_unlock_irqrestore(&model->lock, flags);
}

/* An event is about to arrive. */
static void model_arrive(struct model *model, u64 id, bool signalled)
{
	unsigned long flags;

	spin_lock_irqsave(&model->lock, flags);
	if (model->n == MODEL_QUEUED) {
		model_wrong(model, "more events than the test can count", id);
	} else {
		model->q[model->n].id = id;
		model->q[model->n++].ordinal = ++model->newest;
		if (signalled)
			model->due = model->n;
	}
	spin_unlock_irqrestore(&model->lock, flags);
}

/* Where an event is in the queue, if it may come next. */
static int model_find(struct model *model, u64 id)
{
	int i;

	for (i = 0; i < model->n; i++) {
		if (model->q[i].id == id)
			return i;
		if (!model->loose && (model->fifo || KD_STREAM(model->q[i].id) == KD_STREAM(id)))
			break;
	}
	return -1;
}

/* An event left the queue. Returns its ordinal, 0 when it may not have. */
static u64 model_take(struct model *model, u64 id)
{
	int i = model_find(model, id);
	u64 ordinal;

	if (i < 0) {
		model_wrong(model, "an event out of order, or one that is not there", id);
		return 0;
	}
	ordinal = model->q[i].ordinal;
	model->n--;
	memmove(&model->q[i], &model->q[i + 1], (model->n - i) * sizeof(model->q[0]));
	if (model->due)
		model->due--;
	return ordinal;
}

/* An upcall has started. */
static void model_upcall(struct model *model, const DAT_EVENT *event, bool more)
{
	u64 id = event ? kd_event_id(event) : KD_NO_EVENT;
	unsigned long flags;
	u64 ordinal;
	bool want;

	spin_lock_irqsave(&model->lock, flags);
	model->upcalls++;
	if (model->policy == DAT_UPCALL_DISABLE)
		model_wrong(model, "an upcall while disabled", id);
	if (!model->due)
		model_wrong(model, "an upcall nobody is due for", id);
	if (model->policy == DAT_UPCALL_NOTIFY) {
		if (event)
			model_wrong(model, "a notification with an event", id);
		if (!more)
			model_wrong(model, "a notification without more_events", id);
		if (model->reported)
			model_wrong(model, "a second notification", id);
		model->reported = true;
	} else if (!event) {
		model_wrong(model, "an upcall without event", id);
	} else {
		ordinal = model_take(model, id);
		want = model->loose ? ordinal != model->newest : model->n;
		/* two at once and several streams: nobody knows */
		if (more != want && !(model->loose && !model->fifo))
			model_wrong(model, more ? "more_events, but there are none" :
				       "there are more events", id);
	}
	spin_unlock_irqrestore(&model->lock, flags);
}

/* Somebody has called dat_evd_dequeue(). */
static void model_dequeued(struct model *model, DAT_RETURN ret, const DAT_EVENT *event)
{
	unsigned long flags;

	spin_lock_irqsave(&model->lock, flags);
	if (ret == DAT_SUCCESS) {
		model_take(model, kd_event_id(event));
	} else {
		if (model->n)
			model_wrong(model, "DAT_QUEUE_EMPTY", model->q[0].id);
		model->reported = false;
	}
	spin_unlock_irqrestore(&model->lock, flags);
}

/* The engine has nothing left to do: is anything missing? */
static void model_settled(struct model *model)
{
	unsigned long flags;

	spin_lock_irqsave(&model->lock, flags);
	if (model->due && model->policy != DAT_UPCALL_DISABLE &&
	    !(model->policy == DAT_UPCALL_NOTIFY && model->reported))
		model_wrong(model, "an upcall is missing", model->q[0].id);
	spin_unlock_irqrestore(&model->lock, flags);
}

/* Those that call first. */
static const DAT_UPCALL_POLICY ord_policies[] = {
	DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_NOTIFY, DAT_UPCALL_MANY, DAT_UPCALL_DISABLE,
	DAT_UPCALL_TEARDOWN,	/* as a new one only */
};

#define ORD_POLICIES	ARRAY_SIZE(ord_policies)
#define ORD_FROM	(ORD_POLICIES - 1)	/* policies that a change may begin with */

/* What becomes of a posted request when it completes. */
enum ord_kind { ORD_SIGNALLED, ORD_UNSIGNALLED, ORD_SILENT, ORD_KINDS };

/* One queue of one EP, a stream of its own. */
struct ord_wq {
	u8 kinds[64];			/* of the outstanding requests */
	u32 head;			/* posted */
	u32 tail;			/* completed */
};

/* One run. */
struct ord {
	struct kd_env *env;
	bool softirq;			/* where upcalls come */
	bool mixed;			/* software events too, no unsignalled ones (FLAG-17) */
	struct kd_sink *sink;
	struct model model;
	struct rnd_state rnd;		/* only one thread at a time uses it */
	DAT_EVD_HANDLE evd;		/* of everything */
	DAT_EP_HANDLE ep[ORD_EPS];
	struct ib_qp *qp[ORD_EPS];
	struct ord_wq wqs[ORD_WQS];	/* two of each EP, requests first */
	u32 se;				/* software events posted */
	bool quiet;			/* nothing is to happen inside upcalls */
	int step;
	bool wrong;
	DAT_UPCALL_POLICY policy;	/* of a change that another thread makes, */
	DAT_UPCALL_FLAG flag;
	DAT_RETURN ret;			/* what came of it, */
	int open;			/* and upcalls that ran when it had returned */
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

static void ord_settled(struct ord *ord)
{
	kd_settle(ord->evd);
	model_settled(&ord->model);
	if (ord->model.wrong)
		ord_expect(ord, false, ord->model.wrong, ord->model.wrong_id);
}

static void ord_post(struct ord *ord, int r, enum ord_kind kind)
{
	enum kd_call call = r & 1 ? KD_RECV : KD_SEND;
	DAT_LMR_TRIPLET iov = kd_seg(ord->env, KD_RW, 0, 8);
	struct ord_wq *wq = &ord->wqs[r];
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

static void ord_post_any(struct ord *ord)
{
	int r = ord_rnd(ord, ORD_WQS);

	ord_post(ord, r, ord_rnd(ord, ORD_KINDS));
}

/* The oldest request of a queue. */
static void ord_complete_wq(struct ord *ord, int r)
{
	struct ord_wq *wq = &ord->wqs[r];
	enum ord_kind kind = wq->kinds[wq->tail % ARRAY_SIZE(wq->kinds)];

	if (kind != ORD_SILENT)
		model_arrive(&ord->model, KD_ID(r + 1, wq->tail), kind == ORD_SIGNALLED);
	wq->tail++;
	ord_expect(ord, !fake_ib_complete(ord->qp[r / 2], r & 1, IB_WC_SUCCESS),
		   "nothing to complete", r);
}

static void ord_complete(struct ord *ord)
{
	int r = ord_rnd(ord, ORD_WQS);
	struct ord_wq *wq = &ord->wqs[r];

	if (ord->model.n > ORD_QUEUED)
		return;
	if (wq->tail == wq->head)
		ord_post(ord, r, ord_rnd(ord, ORD_KINDS));
	if (wq->tail != wq->head)
		ord_complete_wq(ord, r);
}

static void ord_arrive(struct ord *ord)
{
	u64 id = KD_ID(ORD_SE, ord->se);

	if (!ord->mixed || ord_rnd(ord, 3)) {
		ord_complete(ord);
	} else if (ord->model.n <= ORD_QUEUED) {
		ord->se++;
		model_arrive(&ord->model, id, true);
		ord_expect(ord, kd_post_se(ord->evd, id) == DAT_SUCCESS, "software event refused",
			   id);
	}
}

static bool ord_dequeue(struct ord *ord)
{
	DAT_EVENT event;
	DAT_RETURN ret = dat_evd_dequeue(ord->evd, &event);

	model_dequeued(&ord->model, ret, &event);
	return ret == DAT_SUCCESS;
}

static void ord_dequeue_some(struct ord *ord)
{
	int n = 1 + ord_rnd(ord, 4);

	while (n-- && ord_dequeue(ord))
		;
}

static void ord_drain_cqs(struct ord *ord)
{
	DAT_BOOLEAN recv_idle, request_idle;
	DAT_EP_STATE state;

	dat_ep_get_status(ord->ep[ord_rnd(ord, ORD_EPS)], &state, &recv_idle, &request_idle);
}

/* Two upcalls may run at a time, here or there, so nothing else is to happen in them. */
static void ord_loose(struct ord *ord, bool many)
{
	ord->model.loose = !ord->softirq && many && num_online_cpus() > 1;
	ord->quiet = ord->model.loose;
}

static void ord_policy(struct ord *ord, int to, DAT_UPCALL_FLAG flag)
{
	DAT_UPCALL_POLICY policy = ord_policies[to];

	model_policy(&ord->model, policy, flag);
	ord_loose(ord, policy == DAT_UPCALL_MANY);
	ord_expect(ord, kd_policy(ord->evd, policy, flag) == DAT_SUCCESS, "change refused", flag);
}

static void ord_modify(struct ord *ord)
{
	int to = ord_rnd(ord, ORD_POLICIES + 1) % ORD_POLICIES;

	ord_policy(ord, to, ord_rnd(ord, 2));
}

/* Several arrivals before anybody looks, and perhaps another policy before that. */
static void ord_burst(struct ord *ord)
{
	int n = 1 + ord_rnd(ord, 6);
	bool modify = !ord_rnd(ord, 4);
	bool was_off = ord->model.policy == DAT_UPCALL_DISABLE;

	/* in a workqueue only the device can be told to wait */
	if (modify || !ord->softirq)
		fake_ib_hold_irq(ord->env->dev, true);
	if (ord->softirq)
		local_bh_disable();
	while (n--) {
		if (ord->softirq)
			ord_arrive(ord);
		else
			ord_complete(ord);
	}
	if (ord->softirq)
		local_bh_enable();
	if (modify) {
		kd_settle(ord->evd);
		ord_modify(ord);
		if (was_off)	/* without waiting for an interrupt */
			ord_settled(ord);
	}
	fake_ib_hold_irq(ord->env->dev, false);
	kd_settle(ord->evd);
	ord_arrive(ord);
}

/* What counts is all that dequeue would return, wherever it is, and not what upcalls have. */
static void ord_resize(struct ord *ord)
{
	int qlen = ORD_QUEUED + 50 + ord_rnd(ord, 200), n = ord->model.n;

	if (n > 1)
		ord_expect(ord, dat_evd_resize(ord->evd, n - 1) ==
			   DAT_ERROR(DAT_INVALID_STATE, DAT_NO_SUBTYPE), "made too short", n);
	if (n)
		ord_expect(ord, dat_evd_resize(ord->evd, n) == DAT_SUCCESS, "resize refused", n);
	ord_expect(ord, dat_evd_resize(ord->evd, qlen) == DAT_SUCCESS, "resize refused", qlen);
}

/* Whatever a consumer may do there. */
static void ord_inside(struct kd_sink *sink, const DAT_EVENT *event, bool more)
{
	struct ord *ord = sink->arg;

	model_upcall(&ord->model, event, more);
	if (ord->quiet)
		return;
	switch (ord_rnd(ord, 16)) {
	case 0 ... 1:
		ord_dequeue_some(ord);
		break;
	case 2 ... 3:
		ord_post_any(ord);
		ord_arrive(ord);
		break;
	case 4:
		ord_drain_cqs(ord);
		break;
	case 5:
		/* TEARDOWN would wait for itself; MANY would have company at once */
		if (!ord->softirq)
			ord_policy(ord, ord_rnd(ord, 2), ord_rnd(ord, 2));
		break;
	case 6:
		if (!ord->softirq)
			ord_resize(ord);
		break;
	}
}

static void ord_step(struct ord *ord)
{
	switch (ord_rnd(ord, 16)) {
	case 0 ... 1:
		ord_post_any(ord);
		break;
	case 2 ... 8:
		ord_burst(ord);
		break;
	case 9:
		ord_arrive(ord);
		break;
	case 10 ... 11:
		ord_dequeue_some(ord);
		break;
	case 12:
		ord_drain_cqs(ord);
		break;
	case 13 ... 14:
		ord_modify(ord);
		break;
	case 15:
		ord_resize(ord);
		break;
	}
	ord_settled(ord);
	ord->step++;
}

/* A signalled completion; nothing else is outstanding on its queue. */
static void ord_one(struct ord *ord)
{
	ord_post(ord, 0, ORD_SIGNALLED);
	ord_complete_wq(ord, 0);
}

/* Nothing is left, neither here nor there, and nothing is outstanding on the first queue. */
static void ord_finish(struct ord *ord)
{
	ord_policy(ord, ORD_POLICIES - 1, DAT_UPCALL_INVOC_NEW);
	while (ord->wqs[0].tail != ord->wqs[0].head)
		ord_complete_wq(ord, 0);
	while (ord_dequeue(ord))
		;
	ord_settled(ord);
	ord_expect(ord, !ord->model.n, "lost", ord->model.n);
}

/* Every change of policy, with either flag, with and without an event nobody has seen. */
static void ord_changes(struct ord *ord)
{
	int i;

	for (i = 0; i < (int)(4 * ORD_FROM * ORD_POLICIES) && !ord->wrong; i++) {
		ord_finish(ord);
		ord_policy(ord, i / 4 % ORD_FROM, DAT_UPCALL_INVOC_NEW);
		kd_settle(ord->evd);
		fake_ib_hold_irq(ord->env->dev, true);
		if (i & 1)
			ord_one(ord);
		ord_policy(ord, i / 4 / ORD_FROM, i / 2 & 1);
		fake_ib_hold_irq(ord->env->dev, false);
		ord_settled(ord);
	}
}

static void ord_change(void *arg)
{
	struct ord *ord = arg;

	ord->ret = kd_policy(ord->evd, ord->policy, ord->flag);
	ord->open = READ_ONCE(ord->sink->started) - READ_ONCE(ord->sink->ended);
}

/* The policy changes under as many upcalls as the old one allows, which are let go then. */
static void ord_held(struct ord *ord, unsigned int round)
{
	unsigned int from = round % 3, to = round / 3 % ORD_POLICIES;
	DAT_UPCALL_POLICY old = ord_policies[from], new = ord_policies[to];
	int i, running, n = old == DAT_UPCALL_MANY ? num_online_cpus() : 1;
	struct kd_sink *sink = ord->sink;
	int before = sink->started;
	struct kd_aside aside;
	DAT_EVD_PARAM param;

	ord_finish(ord);
	ord_policy(ord, from, DAT_UPCALL_INVOC_NEW);
	ord_loose(ord, old == DAT_UPCALL_MANY || new == DAT_UPCALL_MANY);
	ord->quiet = true;
	kd_sink_pass(sink, before);
	for (i = 1; i <= n; i++) {
		ord_one(ord);
		ord_expect(ord, kd_sink_wait(sink, before + i, before), "no upcall", i);
	}
	for (i = round % 4; i; i--)
		ord_arrive(ord);
	ord->policy = new;
	ord->flag = round / (3 * ORD_POLICIES) & 1;
	model_policy(&ord->model, new, ord->flag);
	kd_aside(ord->env->test, &aside, ord_change, ord);
	if (new == DAT_UPCALL_TEARDOWN) {
		ord_expect(ord, kd_policy_becomes(ord->evd, DAT_UPCALL_DISABLE), "no change", 0);
		ord_expect(ord, !kd_aside_returned(&aside, 10), "did not wait for upcalls", 0);
	} else {
		ord_expect(ord, kd_aside_returned(&aside, 60 * MSEC_PER_SEC), "waits", 0);
	}
	running = READ_ONCE(sink->started) - READ_ONCE(sink->ended);
	if (new == DAT_UPCALL_MANY)
		ord_expect(ord, running <= num_online_cpus(), "more upcalls than CPUs", running);
	else
		ord_expect(ord, running == n, "another upcall started", running);
	kd_sink_pass(sink, INT_MAX);
	ord_expect(ord, kd_aside_wait(&aside), "does not return", 0);
	ord_expect(ord, ord->ret == DAT_SUCCESS, "change refused", 0);
	if (new == DAT_UPCALL_TEARDOWN) {
		ord_expect(ord, !ord->open, "returned before the upcalls", ord->open);
		new = DAT_UPCALL_DISABLE;
	}
	ord_settled(ord);
	ord_loose(ord, new == DAT_UPCALL_MANY);
	dat_evd_query(ord->evd, DAT_EVD_FIELD_ALL, &param);
	ord_expect(ord, param.upcall_policy == new && param.upcall.instance_data == sink,
		   "another policy or upcall", 0);
}

static void ord_test(struct kunit *test, bool softirq, bool mixed)
{
	struct ord *ord = kunit_kzalloc(test, sizeof(*ord), GFP_KERNEL);
	u64 seed = order_seed ?: get_random_u32();
	int i, round;
	DAT_EP_ATTR attr;

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
	model_init(&ord->model, !mixed);
	KD_ASSERT_OK(test, kd_evd_create(ord->env, ORD_QLEN, DAT_UPCALL_DISABLE, ord->sink,
					 DAT_EVD_DTO_FLAG | (mixed ? DAT_EVD_SOFTWARE_FLAG : 0),
					 kd_contexts[!softirq], &ord->evd));
	kd_attr(&attr);
	attr.max_recv_dtos = ORD_DEPTH;
	attr.max_request_dtos = ORD_DEPTH;
	if (!mixed) {
		attr.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
		attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	}
	for (i = 0; i < ORD_EPS; i++)
		ord->qp[i] = kd_more_ep(ord->env, ord->evd, ord->evd, &attr, &ord->ep[i]);
	ord_changes(ord);
	for (round = 0; round < ORD_ROUNDS && !ord->wrong; round++) {
		for (i = 0; i < ORD_STEPS && !ord->wrong; i++)
			ord_step(ord);
		if (!softirq && round < 4 * 6 * ORD_POLICIES)
			ord_held(ord, round);
		ord_finish(ord);
	}
	KUNIT_EXPECT_GT(test, ord->model.upcalls, ORD_ROUNDS);
	KUNIT_EXPECT_EQ(test, ord->sink->foreign, 0);
	KUNIT_EXPECT_EQ(test, ord->sink->changed, 0);
	/* all upcalls came from where they were wanted */
	KUNIT_EXPECT_EQ(test, ord->sink->seen[0].softirq, softirq);
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
		"EVD-DQ-03,EVD-DQ-04,EVD-UP-01,EVD-UP-03..09,EVD-MOD-02..06,SIL-25: softirq"),
	KD_CASE(ord_work_test,
		"EVD-UP-03..09,EVD-MOD-02..06,EVD-RSZ-01,EVD-RSZ-02,SIL-25: workqueue"),
	KD_CASE(ord_softirq_mixed_test,
		"EVD-DQ-03,EVD-DQ-04,EVD-UP-12,EVD-SE-03,EVD-SE-04,SIL-38: all streams, softirq"),
	KD_CASE(ord_work_mixed_test,
		"EVD-UP-08,EVD-UP-12,EVD-SE-03,EVD-SE-04,EVD-RSZ-02: all streams, workqueue"),
	{}
};

KD_SUITE("kdapl-upcall-order", ord_cases, kd_init, kd_exit);
