// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Every change of policy, with every flag, over every kind of queue: what is
 * called then, with which event, how often, with which more_events; what the
 * next arrivals start; and that each event comes once and in its turn.
 *
 * What is right is decided by the model in kd_upcall.c. Completions arrive
 * while the device holds back its interrupts, so also with a policy that calls
 * at once they are in the queue when the policy changes.
 */
#include <linux/bottom_half.h>

#include "kd_upcall.h"

#define WALK_QLEN	8

static const DAT_UPCALL_POLICY walk_policies[] = {
	DAT_UPCALL_DISABLE, DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_NOTIFY, DAT_UPCALL_MANY,
	DAT_UPCALL_TEARDOWN,	/* as a new one only */
};

/*
 * What is queued: S a signalled event, u an unsignalled one, | whatever there
 * is by now is moved from the CQ into the backlog, F all the software events that
 * fit.
 */
static const char * const walk_dto_states[] = {
	"", "S", "u", "SS", "uS", "Su", "uu", "S|", "u|", "u|S", "S|u", "uS|", "Su|", "u|u",
	"uu|Su", "uSuSu", "SuS|uSu", "uuu|uuuS",
};

static const char * const walk_se_states[] = { "", "S", "SSS", "F" };

/**
 * struct walk - one walk
 * @env: environment; env->req is the EVD
 * @dto: events are completions, else software events
 * @softirq: upcalls come in softirq
 * @held: an upcall runs when the policy changes; only in process context
 * @sink: upcalls
 * @model: what they should be
 * @old: policy before
 * @new: policy after
 * @flag: flag of the change
 * @state: queue at that time
 * @seq: events so far
 * @ret: what the change returned
 * @open: upcalls that ran when it had
 * @bad: cases that failed
 */
struct walk {
	struct kd_env *env;
	bool dto;
	bool softirq;
	bool held;
	struct kd_sink *sink;
	struct kd_model model;
	DAT_UPCALL_POLICY old;
	DAT_UPCALL_POLICY new;
	DAT_UPCALL_FLAG flag;
	const char *state;
	u32 seq;
	DAT_RETURN ret;
	int open;
	int bad;
};

static void walk_failed(struct walk *walk, const char *step, const char *what, u64 id)
{
	if (++walk->bad > 5)
		return;
	KUNIT_FAIL(walk->env->test, "%s to %s, %s, \"%s\"%s, %s: %s (event %#llx)",
		   kd_policy_name(walk->old), kd_policy_name(walk->new),
		   walk->flag == DAT_UPCALL_INVOC_ANY ? "ANY" : "NEW", walk->state,
		   walk->held ? " with upcalls running" : "", step, what, id);
}

static void walk_check(struct walk *walk, const char *step)
{
	struct kd_model *model = &walk->model;

	kd_model_settled(model);
	if (!model->wrong)
		return;
	walk_failed(walk, step, model->wrong, model->wrong_id);
	model->wrong = NULL;
}

static void walk_expect(struct walk *walk, const char *step, bool ok, const char *what)
{
	if (!ok)
		walk_failed(walk, step, what, 0);
}

static void walk_event(struct walk *walk, bool signalled)
{
	struct kd_env *env = walk->env;
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	u64 id = KD_ID(1, walk->seq++);
	DAT_RETURN ret;

	kd_model_arrive(&walk->model, id, signalled);
	if (walk->dto) {
		ret = kd_post(env->ep, KD_SEND, 1, &iov, id, NULL,
			      signalled ? 0 : DAT_COMPLETION_UNSIGNALLED_FLAG);
		fake_ib_complete(env->qp, false, IB_WC_SUCCESS);
	} else {
		ret = kd_post_se(env->req, id);
	}
	walk_expect(walk, "arrival", ret == DAT_SUCCESS, "refused");
}

static void walk_fill(struct walk *walk)
{
	u64 id;

	/* where upcalls go on there is always room again */
	if (!walk->held && walk->old != DAT_UPCALL_DISABLE)
		return;
	while (walk->model.n < WALK_QLEN)
		walk_event(walk, true);
	id = KD_ID(1, walk->seq);
	walk_expect(walk, "arrival", DAT_GET_TYPE(kd_post_se(walk->env->req, id)) ==
		    DAT_QUEUE_FULL, "accepted by a full queue");
}

static void walk_step(struct walk *walk, char c)
{
	DAT_BOOLEAN recv_idle, request_idle;
	DAT_EP_STATE state;

	if (c == '|')
		dat_ep_get_status(walk->env->ep, &state, &recv_idle, &request_idle);
	else if (c == 'F')
		walk_fill(walk);
	else
		walk_event(walk, c == 'S');
}

/* No upcall comes while something arrives: the model could not tell which was first. */
static void walk_queue(struct walk *walk)
{
	const char *c;

	fake_ib_hold_irq(walk->env->dev, !walk->held);
	if (walk->softirq)
		local_bh_disable();
	for (c = walk->state; *c; c++) {
		walk_step(walk, *c);
		if (!walk->softirq && !walk->held)
			kd_settle(walk->env->req);
	}
	if (walk->softirq)
		local_bh_enable();
	if (!walk->held)
		kd_settle(walk->env->req);
}

static void walk_change(void *arg)
{
	struct walk *walk = arg;

	walk->ret = kd_policy(walk->env->req, walk->new, walk->flag);
	walk->open = READ_ONCE(walk->sink->started) - READ_ONCE(walk->sink->ended);
}

/* Have as many upcalls running as the policy allows. */
static int walk_open(struct walk *walk)
{
	int i, n = walk->old == DAT_UPCALL_MANY ? num_online_cpus() : 1;
	int before = walk->sink->started;

	kd_sink_pass(walk->sink, before);
	for (i = 1; i <= n; i++) {
		walk_event(walk, true);
		walk_expect(walk, "opening", kd_sink_wait(walk->sink, before + i, before),
			    "no upcall");
	}
	return n;
}

/* The policy changes under running upcalls, which are let go afterwards. */
static void walk_change_held(struct walk *walk, int running)
{
	struct kd_sink *sink = walk->sink;
	struct kd_aside aside;
	int started;
	bool back;

	kd_aside(walk->env->test, &aside, walk_change, walk);
	back = kd_aside_returned(&aside, KD_MOMENT);
	started = READ_ONCE(sink->started) - READ_ONCE(sink->ended);
	if (walk->new == DAT_UPCALL_TEARDOWN)
		walk_expect(walk, "change", !back, "did not wait for the upcalls");
	else if (!back)		/* slow, or waits for what it must not wait for? */
		walk_expect(walk, "change", wait_for_completion_timeout(&aside.done, KD_LONG),
			    "waits for the upcalls");
	if (walk->new == DAT_UPCALL_MANY)
		walk_expect(walk, "change", started <= (int)num_online_cpus(),
			    "more upcalls than CPUs");
	else
		walk_expect(walk, "change", started == running, "another upcall started");
	kd_sink_pass(sink, INT_MAX);
	walk_expect(walk, "change", kd_aside_wait(&aside), "does not return");
	if (walk->new == DAT_UPCALL_TEARDOWN)
		walk_expect(walk, "change", !walk->open, "returned before the upcalls");
}

static void walk_query(struct walk *walk)
{
	DAT_UPCALL_OBJECT object = kd_sink_object(walk->sink);
	DAT_EVD_PARAM param;
	DAT_UPCALL_POLICY want;

	want = walk->new == DAT_UPCALL_TEARDOWN ? DAT_UPCALL_DISABLE : walk->new;
	walk_expect(walk, "query", !dat_evd_query(walk->env->req, DAT_EVD_FIELD_ALL, &param) &&
		    param.upcall_policy == want, "another policy");
	walk_expect(walk, "query", param.upcall.upcall_func == object.upcall_func &&
		    param.upcall.instance_data == object.instance_data, "another upcall");
}

static void walk_drain(struct walk *walk)
{
	DAT_RETURN ret;
	DAT_EVENT event;

	do {
		ret = dat_evd_dequeue(walk->env->req, &event);
		kd_model_dequeued(&walk->model, ret, &event);
	} while (ret == DAT_SUCCESS);
	walk_expect(walk, "end", DAT_GET_TYPE(ret) == DAT_QUEUE_EMPTY, "not empty");
	kd_settle(walk->env->req);
	walk_check(walk, "end");
}

static void walk_arrivals(struct walk *walk)
{
	if (walk->dto) {
		walk_event(walk, false);
		kd_settle(walk->env->req);
		walk_check(walk, "unsignalled arrival");
	}
	if (!walk->dto && walk->model.n == WALK_QLEN)
		return;		/* full */
	walk_event(walk, true);
	kd_settle(walk->env->req);
	walk_check(walk, "signalled arrival");
}

static void walk_case(struct walk *walk)
{
	struct kd_env *env = walk->env;
	struct kd_model *model = &walk->model;
	int running = 0;

	model->loose = false;
	kd_model_policy(model, walk->old, DAT_UPCALL_INVOC_NEW);
	KD_ASSERT_OK(env->test, kd_policy(env->req, walk->old, DAT_UPCALL_INVOC_NEW));
	kd_settle(env->req);
	/* only then may two upcalls run at a time, here or there */
	model->loose = num_online_cpus() > 1 &&
		       (walk->old == DAT_UPCALL_MANY || walk->new == DAT_UPCALL_MANY);
	if (walk->held)
		running = walk_open(walk);
	walk_queue(walk);
	kd_model_policy(model, walk->new, walk->flag);
	if (walk->held)
		walk_change_held(walk, running);
	else
		walk_change(walk);
	walk_expect(walk, "change", walk->ret == DAT_SUCCESS, "refused");
	walk_query(walk);
	kd_settle(env->req);
	/* without waiting for an interrupt? */
	if (walk->old == DAT_UPCALL_DISABLE)
		walk_check(walk, "change");
	fake_ib_hold_irq(env->dev, false);
	kd_settle(env->req);
	walk_check(walk, "interrupt");
	walk_arrivals(walk);
	walk_drain(walk);
	walk_arrivals(walk);
	walk_drain(walk);
}

static void walk_all(struct walk *walk)
{
	const char * const *states = walk->dto ? walk_dto_states : walk_se_states;
	int nstates = walk->dto ? ARRAY_SIZE(walk_dto_states) : ARRAY_SIZE(walk_se_states);
	int o, n, s, count = 0;

	for (o = walk->held ? 1 : 0; o < ARRAY_SIZE(walk_policies) - 1; o++) {
		for (n = 0; n < ARRAY_SIZE(walk_policies); n++) {
			for (s = 0; s < 2 * nstates; s++) {
				walk->old = walk_policies[o];
				walk->new = walk_policies[n];
				walk->flag = s & 1 ? DAT_UPCALL_INVOC_ANY : DAT_UPCALL_INVOC_NEW;
				walk->state = states[s / 2];
				walk_case(walk);
				count++;
			}
		}
	}
	KUNIT_EXPECT_EQ(walk->env->test, walk->bad, 0);
	KUNIT_EXPECT_GT(walk->env->test, walk->model.upcalls, count);
	kunit_info(walk->env->test, "%d changes, %d upcalls", count, walk->model.upcalls);
}

static void walk_test(struct kunit *test, bool dto, enum kdat_evd_context context, bool held)
{
	struct walk *walk = kunit_kzalloc(test, sizeof(*walk), GFP_KERNEL);
	DAT_EP_ATTR attr;

	KUNIT_ASSERT_NOT_NULL(test, walk);
	kd_pin();
	walk->env = kd_open(test, NULL);
	walk->dto = dto;
	walk->softirq = context == KDAT_EVD_CONTEXT_SOFTIRQ;
	walk->held = held;
	walk->sink = kd_sink(test);
	walk->sink->inside = kd_model_sink;
	walk->sink->arg = &walk->model;
	kd_model_init(&walk->model, true);
	KD_ASSERT_OK(test, dat_evd_free(walk->env->req));
	walk->env->req = NULL;
	KD_ASSERT_OK(test, kd_evd_create(walk->env, WALK_QLEN, DAT_UPCALL_DISABLE, walk->sink,
					 dto ? DAT_EVD_DTO_FLAG : DAT_EVD_SOFTWARE_FLAG, context,
					 &walk->env->req));
	if (dto) {
		kd_attr(&attr);
		attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
		attr.max_request_dtos = 32;
		kd_ep(walk->env, &attr);
		kd_connect(walk->env);
	}
	walk_all(walk);
	/* all upcalls came from where they were wanted */
	KUNIT_EXPECT_EQ(test, walk->sink->seen[0].softirq, walk->softirq);
}

static void walk_dto_softirq_test(struct kunit *test)
{
	walk_test(test, true, KDAT_EVD_CONTEXT_SOFTIRQ, false);
}

static void walk_dto_work_test(struct kunit *test)
{
	walk_test(test, true, KDAT_EVD_CONTEXT_WORKQUEUE, false);
}

static void walk_dto_held_test(struct kunit *test)
{
	walk_test(test, true, KDAT_EVD_CONTEXT_WORKQUEUE, true);
}

static void walk_se_softirq_test(struct kunit *test)
{
	walk_test(test, false, KDAT_EVD_CONTEXT_SOFTIRQ, false);
}

static void walk_se_work_test(struct kunit *test)
{
	walk_test(test, false, KDAT_EVD_CONTEXT_WORKQUEUE, false);
}

static void walk_se_held_test(struct kunit *test)
{
	walk_test(test, false, KDAT_EVD_CONTEXT_WORKQUEUE, true);
}

static struct kunit_case walk_cases[] = {
	KD_CASE(walk_dto_softirq_test,
		"EVD-UP-01,EVD-UP-03..09,EVD-MOD-01..06,SIL-25: completions, softirq"),
	KD_CASE(walk_dto_work_test,
		"EVD-UP-01,EVD-UP-03..09,EVD-MOD-01..06,SIL-25: completions, workqueue"),
	KD_CASE(walk_dto_held_test,
		"EVD-UP-06..09,EVD-MOD-05,EVD-MOD-06: completions, while upcalls run"),
	KD_CASE(walk_se_softirq_test,
		"EVD-SE-03,EVD-SE-04,EVD-MOD-02,EVD-MOD-03: software events, softirq"),
	KD_CASE(walk_se_work_test,
		"EVD-SE-03,EVD-SE-04,EVD-MOD-02,EVD-MOD-03: software events, workqueue"),
	KD_CASE(walk_se_held_test,
		"EVD-SE-03,EVD-UP-08,EVD-MOD-05,EVD-MOD-06: software events, while upcalls run"),
	{}
};

static struct kunit_suite walk_suite = {
	.name = "kdapl-upcall-walk",
	.suite_init = kd_suite_init,
	.suite_exit = kd_suite_exit,
	.init = kd_init,
	.exit = kd_exit,
	.test_cases = walk_cases,
};

kunit_test_suite(walk_suite);
