// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The common ground of the suites on upcalls, see kd_upcall.h.
 */
#include <linux/bottom_half.h>
#include <linux/delay.h>
#include <linux/kthread.h>

#include "kd_upcall.h"

static void kd_sink_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	u64 id = event ? kd_event_id(event) : KD_NO_EVENT;
	struct kd_sink *sink = data;
	unsigned long flags;
	int n;

	spin_lock_irqsave(&sink->lock, flags);
	n = sink->started++;
	sink->most = max(sink->most, sink->started - sink->ended);
	if (n < KD_SEEN)
		sink->seen[n] = (struct kd_seen) {
			.id = id,
			.more = more != DAT_FALSE,
			.softirq = in_serving_softirq(),
		};
	sink->foreign += event && event->evd_handle != sink->evd;
	spin_unlock_irqrestore(&sink->lock, flags);
	if (sink->inside)
		sink->inside(sink, event, more != DAT_FALSE);
	spin_lock_irqsave(&sink->lock, flags);
	sink->noted++;
	spin_unlock_irqrestore(&sink->lock, flags);
	wake_up_all(&sink->wait);
	if (n >= READ_ONCE(sink->pass))
		wait_event(sink->wait, n < READ_ONCE(sink->pass));
	spin_lock_irqsave(&sink->lock, flags);
	sink->changed += event && kd_event_id(event) != id;
	sink->ended++;
	/* under the lock: a waiter may free the sink when it has been here */
	wake_up_all(&sink->wait);
	spin_unlock_irqrestore(&sink->lock, flags);
}

/**
 * kd_sink_init - nothing seen yet, nothing held open
 * @sink: the sink
 */
void kd_sink_init(struct kd_sink *sink)
{
	memset(sink, 0, sizeof(*sink));
	spin_lock_init(&sink->lock);
	init_waitqueue_head(&sink->wait);
	sink->pass = INT_MAX;
}

/**
 * kd_sink - a new sink
 * @test: the case it is freed with
 *
 * Return: the sink.
 */
struct kd_sink *kd_sink(struct kunit *test)
{
	struct kd_sink *sink = kunit_kzalloc(test, sizeof(*sink), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, sink);
	kd_sink_init(sink);
	return sink;
}

/**
 * kd_sink_object - the upcall object that leads to a sink
 * @sink: the sink, or NULL
 *
 * Return: the object.
 */
DAT_UPCALL_OBJECT kd_sink_object(struct kd_sink *sink)
{
	return (DAT_UPCALL_OBJECT) {
		.instance_data = sink,
		.upcall_func = sink ? kd_sink_upcall : NULL,
	};
}

/**
 * kd_sink_pass - hold upcalls open, or let them go
 * @sink: the sink
 * @n: the first @n upcalls return, the others wait; INT_MAX for all
 */
void kd_sink_pass(struct kd_sink *sink, int n)
{
	WRITE_ONCE(sink->pass, n);
	wake_up_all(&sink->wait);
}

static bool kd_sink_reached(struct kd_sink *sink, int started, int ended)
{
	unsigned long flags;
	bool reached;

	spin_lock_irqsave(&sink->lock, flags);
	reached = sink->noted >= started && sink->ended >= ended;
	spin_unlock_irqrestore(&sink->lock, flags);
	return reached;
}

/**
 * kd_sink_wait - wait for upcalls
 * @sink: the sink
 * @started: so many have begun, and @inside has seen them
 * @ended: so many have ended
 *
 * Return: false when that did not happen.
 */
bool kd_sink_wait(struct kd_sink *sink, int started, int ended)
{
	return wait_event_timeout(sink->wait, kd_sink_reached(sink, started, ended), KD_LONG);
}

/**
 * kd_sink_expect - so many upcalls came, all have ended, all events were sound
 * @test: the case
 * @sink: the sink
 * @n: so many
 */
void kd_sink_expect(struct kunit *test, struct kd_sink *sink, int n)
{
	KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, n, n));
	KUNIT_EXPECT_EQ(test, sink->started, n);
	KUNIT_EXPECT_EQ(test, sink->foreign, 0);
	KUNIT_EXPECT_EQ(test, sink->changed, 0);
}

/**
 * kd_event_id - what a test gave an event to carry
 * @event: completion or software event
 *
 * Return: the cookie, or the pointer.
 */
u64 kd_event_id(const DAT_EVENT *event)
{
	if (event->event_number == DAT_SOFTWARE_EVENT)
		return (uintptr_t)event->event_data.software_event_data.pointer;
	return event->event_data.dto_completion_event_data.user_cookie.as_64;
}

/**
 * kd_post_se - post a software event
 * @evd: EVD
 * @id: what it carries
 *
 * Context: any.
 * Return: what the call returned.
 */
DAT_RETURN kd_post_se(DAT_EVD_HANDLE evd, u64 id)
{
	DAT_EVENT event;

	memset(&event, 0x5a, sizeof(event));
	event.event_number = DAT_SOFTWARE_EVENT;
	event.event_data.software_event_data.pointer = (void *)(uintptr_t)id;
	return dat_evd_post_se(evd, &event);
}

/**
 * kd_evd_create - an EVD whose upcalls go to a sink
 * @env: environment
 * @qlen: length
 * @policy: policy
 * @sink: the sink; NULL only with DAT_UPCALL_DISABLE
 * @flags: streams
 * @context: of its upcalls
 * @evd: where the handle goes
 *
 * Return: what the call returned.
 */
DAT_RETURN kd_evd_create(struct kd_env *env, DAT_COUNT qlen, DAT_UPCALL_POLICY policy,
			 struct kd_sink *sink, DAT_EVD_FLAGS flags, enum kdat_evd_context context,
			 DAT_EVD_HANDLE *evd)
{
	struct kdat_evd_attr attr = KDAT_EVD_ATTR_INIT;
	DAT_UPCALL_OBJECT object = kd_sink_object(sink);
	DAT_RETURN ret;

	attr.context = context;
	ret = kdat_evd_create(env->ia, qlen, policy, &object, flags, &attr, evd);
	if (ret == DAT_SUCCESS && sink)
		sink->evd = *evd;
	return ret;
}

/**
 * kd_policy - change the policy of an EVD and nothing else
 * @evd: EVD
 * @policy: new policy
 * @flag: what becomes of events that are queued
 *
 * Return: what the call returned.
 */
DAT_RETURN kd_policy(DAT_EVD_HANDLE evd, DAT_UPCALL_POLICY policy, DAT_UPCALL_FLAG flag)
{
	return dat_evd_modify_upcall(evd, policy, DAT_UPCALL_SAME, flag);
}

/**
 * kd_policy_name - for messages
 * @policy: the policy
 *
 * Return: its name.
 */
const char *kd_policy_name(DAT_UPCALL_POLICY policy)
{
	switch (policy) {
	case DAT_UPCALL_TEARDOWN:
		return "TEARDOWN";
	case DAT_UPCALL_DISABLE:
		return "DISABLE";
	case DAT_UPCALL_SINGLE_INSTANCE:
		return "SINGLE";
	case DAT_UPCALL_NOTIFY:
		return "NOTIFY";
	case DAT_UPCALL_MANY:
		return "MANY";
	}
	return "?";
}

static long kd_nothing(void *arg)
{
	return 0;
}

/* Is the softirq engine idle? If so, it has been so at one moment. */
static bool kd_softirq_idle(struct kdapl_evd *evd)
{
	return !test_bit(IRQ_POLL_F_SCHED, &evd->iop.state);
}

static void kd_settle_softirq(struct kdapl_evd *evd)
{
	unsigned long end = jiffies + KD_LONG;
	int cpu;

	while (time_before(jiffies, end)) {
		/* runs what is pending on this CPU */
		local_bh_disable();
		local_bh_enable();
		if (!kd_softirq_idle(evd)) {
			usleep_range(50, 100);
			continue;
		}
		if (num_online_cpus() == 1 || current->nr_cpus_allowed == 1)
			return;
		/* it may be between giving up its turn and arming: let it get there */
		for_each_online_cpu(cpu)
			work_on_cpu(cpu, kd_nothing, NULL);
		if (kd_softirq_idle(evd))
			return;
	}
}

/* Was there anything to wait for? */
static bool kd_flush_work(struct kdapl_evd *evd)
{
	/* pairs with the release in kdapl_evd_make_helpers() */
	struct kdapl_helper *helpers = smp_load_acquire(&evd->helpers);
	bool waited = flush_work(&evd->work);
	unsigned int i;

	for (i = 0; helpers && i < evd->nhelpers; i++)
		waited |= flush_work(&helpers[i].work);
	return waited;
}

/**
 * kd_pin - stay on this CPU, and with it what this thread starts in softirq
 *
 * For the rest of the case, which has a thread of its own.
 */
void kd_pin(void)
{
	set_cpus_allowed_ptr(current, cpumask_of(raw_smp_processor_id()));
}

/**
 * kd_settle - wait until the engine of an EVD has nothing left to do
 * @evd: EVD; none of its upcalls is held open
 *
 * What is not delivered then will not be delivered by itself. Quick in softirq
 * only after kd_pin(), when nobody else feeds the EVD.
 */
void kd_settle(DAT_EVD_HANDLE evd)
{
	struct kdapl_evd *kevd = kdapl_obj_get(evd, DAT_HANDLE_TYPE_EVD);
	int idle;

	if (!kevd)
		return;
	if (kevd->softirq) {
		kd_settle_softirq(kevd);
	} else {
		/* twice: one work item may have called another behind our back */
		for (idle = 0; idle < 2; idle++)
			if (kd_flush_work(kevd))
				idle = -1;
	}
	kdapl_obj_put(&kevd->obj);
}

/**
 * kd_drain - throw away what is queued
 * @evd: EVD
 *
 * Return: how many events there were.
 */
int kd_drain(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;
	int n = 0;

	while (kd_next(evd, &event))
		n++;
	return n;
}

/**
 * kd_model_init - an EVD without events and without upcalls
 * @model: the model
 * @fifo: all events come through one CQ
 */
void kd_model_init(struct kd_model *model, bool fifo)
{
	memset(model, 0, sizeof(*model));
	spin_lock_init(&model->lock);
	model->fifo = fifo;
	model->policy = DAT_UPCALL_DISABLE;
}

static void kd_model_wrong(struct kd_model *model, const char *what, u64 id)
{
	if (model->wrong)
		return;
	model->wrong = what;
	model->wrong_id = id;
}

/**
 * kd_model_policy - the policy is about to change
 * @model: the model
 * @policy: to this
 * @flag: with this flag
 */
void kd_model_policy(struct kd_model *model, DAT_UPCALL_POLICY policy, DAT_UPCALL_FLAG flag)
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
		/* who asked for notifications and got one has to dequeue */
		if (policy != model->policy || flag == DAT_UPCALL_INVOC_ANY)
			model->reported = false;
	}
	model->policy = policy;
	spin_unlock_irqrestore(&model->lock, flags);
}

/**
 * kd_model_arrive - an event is about to arrive
 * @model: the model
 * @id: the event
 * @signalled: it starts upcalls
 */
void kd_model_arrive(struct kd_model *model, u64 id, bool signalled)
{
	unsigned long flags;

	spin_lock_irqsave(&model->lock, flags);
	if (model->n == KD_QUEUED) {
		kd_model_wrong(model, "more events than the test can count", id);
	} else {
		model->q[model->n].id = id;
		model->q[model->n++].ordinal = ++model->newest;
		if (signalled)
			model->due = model->n;
	}
	spin_unlock_irqrestore(&model->lock, flags);
}

/**
 * kd_model_unarrive - the signalled event just announced was refused
 * @model: the model; nothing happened since
 */
void kd_model_unarrive(struct kd_model *model)
{
	unsigned long flags;

	spin_lock_irqsave(&model->lock, flags);
	model->n--;
	model->newest--;
	model->due = min(model->due, model->n);
	spin_unlock_irqrestore(&model->lock, flags);
}

/* Where an event is in the queue, if it may come next. */
static int kd_model_find(struct kd_model *model, u64 id)
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
static u64 kd_model_take(struct kd_model *model, u64 id)
{
	int i = kd_model_find(model, id);
	u64 ordinal;

	if (i < 0) {
		kd_model_wrong(model, "an event out of order, or one that is not there", id);
		return 0;
	}
	ordinal = model->q[i].ordinal;
	model->n--;
	memmove(&model->q[i], &model->q[i + 1], (model->n - i) * sizeof(model->q[0]));
	if (model->due)
		model->due--;
	return ordinal;
}

/**
 * kd_model_upcall - an upcall has started
 * @model: the model
 * @event: as told
 * @more: as told
 */
void kd_model_upcall(struct kd_model *model, const DAT_EVENT *event, bool more)
{
	u64 id = event ? kd_event_id(event) : KD_NO_EVENT;
	unsigned long flags;
	u64 ordinal;
	bool want;

	spin_lock_irqsave(&model->lock, flags);
	model->upcalls++;
	if (model->policy == DAT_UPCALL_DISABLE)
		kd_model_wrong(model, "an upcall while disabled", id);
	if (!model->due)
		kd_model_wrong(model, "an upcall nobody is due for", id);
	if (model->policy == DAT_UPCALL_NOTIFY) {
		if (event)
			kd_model_wrong(model, "a notification with an event", id);
		if (!more)
			kd_model_wrong(model, "a notification without more_events", id);
		if (model->reported)
			kd_model_wrong(model, "a second notification", id);
		model->reported = true;
	} else if (!event) {
		kd_model_wrong(model, "an upcall without event", id);
	} else {
		ordinal = kd_model_take(model, id);
		want = model->loose ? ordinal != model->newest : model->n;
		/* two at once and several streams: nobody knows */
		if (more != want && !(model->loose && !model->fifo))
			kd_model_wrong(model, more ? "more_events, but there are none" :
				       "there are more events", id);
	}
	spin_unlock_irqrestore(&model->lock, flags);
}

/**
 * kd_model_sink - kd_sink.inside that asks the model in kd_sink.arg
 * @sink: the sink
 * @event: as told
 * @more: as told
 */
void kd_model_sink(struct kd_sink *sink, const DAT_EVENT *event, bool more)
{
	kd_model_upcall(sink->arg, event, more);
}

/**
 * kd_model_dequeued - dat_evd_dequeue() has returned
 * @model: the model
 * @ret: what it returned
 * @event: the event, if it did
 */
void kd_model_dequeued(struct kd_model *model, DAT_RETURN ret, const DAT_EVENT *event)
{
	unsigned long flags;

	spin_lock_irqsave(&model->lock, flags);
	if (ret == DAT_SUCCESS) {
		kd_model_take(model, kd_event_id(event));
	} else {
		if (model->n)
			kd_model_wrong(model, "DAT_QUEUE_EMPTY", model->q[0].id);
		model->reported = false;
	}
	spin_unlock_irqrestore(&model->lock, flags);
}

/**
 * kd_model_settled - the engine has nothing left to do: is anything missing?
 * @model: the model
 */
void kd_model_settled(struct kd_model *model)
{
	unsigned long flags;

	spin_lock_irqsave(&model->lock, flags);
	if (model->due && model->policy != DAT_UPCALL_DISABLE &&
	    !(model->policy == DAT_UPCALL_NOTIFY && model->reported))
		kd_model_wrong(model, "an upcall is missing", model->q[0].id);
	spin_unlock_irqrestore(&model->lock, flags);
}

static int kd_aside_main(void *arg)
{
	struct kd_aside *aside = arg;

	aside->fn(aside->arg);
	complete_all(&aside->done);
	while (!kthread_should_stop()) {
		set_current_state(TASK_INTERRUPTIBLE);
		if (!kthread_should_stop())
			schedule();
		__set_current_state(TASK_RUNNING);
	}
	return 0;
}

/**
 * kd_aside - make a call in another thread
 * @test: the case
 * @aside: filled; kd_aside_wait() must follow
 * @fn: the call
 * @arg: its argument
 */
void kd_aside(struct kunit *test, struct kd_aside *aside, void (*fn)(void *arg), void *arg)
{
	aside->fn = fn;
	aside->arg = arg;
	init_completion(&aside->done);
	aside->task = kthread_run(kd_aside_main, aside, "kdapl_aside");
	KUNIT_ASSERT_FALSE(test, IS_ERR(aside->task));
}

/**
 * kd_aside_returned - has it returned?
 * @aside: the call
 * @ms: what it gets first to do so, were there nothing to wait for
 *
 * Return: whether it has.
 */
bool kd_aside_returned(struct kd_aside *aside, unsigned int ms)
{
	return wait_for_completion_timeout(&aside->done, msecs_to_jiffies(ms));
}

/**
 * kd_aside_wait - wait for it to return
 * @aside: the call
 *
 * Return: false when it did not; the thread is left alone then.
 */
bool kd_aside_wait(struct kd_aside *aside)
{
	if (!wait_for_completion_timeout(&aside->done, KD_LONG))
		return false;
	kthread_stop(aside->task);
	return true;
}
