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

const DAT_UPCALL_POLICY kd_calling[KD_CALLING] = {
	DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_NOTIFY, DAT_UPCALL_MANY,
};

const enum kdat_evd_context kd_contexts[KD_CONTEXTS] = {
	KDAT_EVD_CONTEXT_SOFTIRQ, KDAT_EVD_CONTEXT_WORKQUEUE,
};

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

/* Nothing seen yet, nothing held open. */
void kd_sink_init(struct kd_sink *sink)
{
	memset(sink, 0, sizeof(*sink));
	spin_lock_init(&sink->lock);
	init_waitqueue_head(&sink->wait);
	sink->pass = INT_MAX;
}

/* A new sink, freed with the case. */
struct kd_sink *kd_sink(struct kunit *test)
{
	struct kd_sink *sink = kunit_kzalloc(test, sizeof(*sink), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, sink);
	kd_sink_init(sink);
	return sink;
}

/* The upcall object that leads to a sink. */
DAT_UPCALL_OBJECT kd_sink_object(struct kd_sink *sink)
{
	return (DAT_UPCALL_OBJECT) {
		.instance_data = sink,
		.upcall_func = sink ? kd_sink_upcall : NULL,
	};
}

/* The first @n upcalls return, the others are held open; INT_MAX: all return. */
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

/* So many have begun, and @inside has seen them; so many have ended. */
bool kd_sink_wait(struct kd_sink *sink, int started, int ended)
{
	return wait_event_timeout(sink->wait, kd_sink_reached(sink, started, ended), KD_LONG);
}

/* So many upcalls came, all have ended, all events were sound. */
void kd_sink_expect(struct kunit *test, struct kd_sink *sink, int n)
{
	KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, n, n));
	KUNIT_EXPECT_EQ(test, sink->started, n);
	KUNIT_EXPECT_EQ(test, sink->foreign, 0);
	KUNIT_EXPECT_EQ(test, sink->changed, 0);
}

/* The cookie of a completion, the pointer of a software event. */
u64 kd_event_id(const DAT_EVENT *event)
{
	if (event->event_number == DAT_SOFTWARE_EVENT)
		return (uintptr_t)event->event_data.software_event_data.pointer;
	return event->event_data.dto_completion_event_data.user_cookie.as_64;
}

/* The next event of an EVD is this one. */
void kd_expect_id(struct kunit *test, DAT_EVD_HANDLE evd, u64 id)
{
	DAT_EVENT event;

	KUNIT_ASSERT_TRUE_MSG(test, kd_next(evd, &event), "no event, want %#llx", id);
	KUNIT_EXPECT_EQ(test, kd_event_id(&event), id);
	KUNIT_EXPECT_PTR_EQ(test, event.evd_handle, evd);
}

DAT_RETURN kd_post_se(DAT_EVD_HANDLE evd, u64 id)
{
	DAT_EVENT event;

	memset(&event, 0x5a, sizeof(event));
	event.event_number = DAT_SOFTWARE_EVENT;
	event.event_data.software_event_data.pointer = (void *)(uintptr_t)id;
	return dat_evd_post_se(evd, &event);
}

/* An EVD without upcalls. */
DAT_EVD_HANDLE kd_evd(struct kd_env *env, DAT_COUNT qlen, DAT_EVD_FLAGS flags)
{
	DAT_EVD_HANDLE evd;

	KD_ASSERT_OK(env->test, dat_evd_kcreate(env->ia, qlen, DAT_UPCALL_DISABLE, NULL, flags,
						&evd));
	return evd;
}

/* An EVD whose upcalls go to a sink. */
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

/* The same in place of an EVD of the environment. */
void kd_evd_replace(struct kd_env *env, DAT_EVD_HANDLE *evd, DAT_COUNT qlen,
		    DAT_UPCALL_POLICY policy, struct kd_sink *sink, DAT_EVD_FLAGS flags,
		    enum kdat_evd_context context)
{
	DAT_EVD_HANDLE old = *evd;

	*evd = DAT_HANDLE_NULL;
	KD_ASSERT_OK(env->test, dat_evd_free(old));
	KD_ASSERT_OK(env->test, kd_evd_create(env, qlen, policy, sink, flags, context, evd));
}

/* A connected EP beside the one of the environment, for the case to free. */
struct ib_qp *kd_more_ep(struct kd_env *env, DAT_EVD_HANDLE recv, DAT_EVD_HANDLE req,
			 const DAT_EP_ATTR *attr, DAT_EP_HANDLE *ep)
{
	struct ib_qp *qp;

	swap(env->recv, recv);
	swap(env->req, req);
	kd_ep(env, attr);
	swap(env->recv, recv);
	swap(env->req, req);
	kd_connect(env);
	*ep = env->ep;
	qp = env->qp;
	kdapl_obj_put(&env->kep->obj);
	env->kep = NULL;
	env->ep = DAT_HANDLE_NULL;
	env->qp = NULL;
	return qp;
}

/* A Send that is done at once. */
void kd_sent(struct kd_env *env, DAT_EP_HANDLE ep, struct ib_qp *qp, u64 id, int flags)
{
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);

	KD_EXPECT_OK(env->test, kd_post(ep, KD_SEND, 1, &iov, id, NULL, flags));
	KUNIT_EXPECT_EQ(env->test, fake_ib_complete(qp, false, IB_WC_SUCCESS), 0);
}

/* Change the policy of an EVD and nothing else. */
DAT_RETURN kd_policy(DAT_EVD_HANDLE evd, DAT_UPCALL_POLICY policy, DAT_UPCALL_FLAG flag)
{
	return dat_evd_modify_upcall(evd, policy, DAT_UPCALL_SAME, flag);
}

/* Wait until another thread has changed the policy, which may wait for upcalls then. */
bool kd_policy_becomes(DAT_EVD_HANDLE evd, DAT_UPCALL_POLICY policy)
{
	unsigned long end = jiffies + KD_LONG;
	DAT_EVD_PARAM param;

	while (dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param) == DAT_SUCCESS) {
		if (param.upcall_policy == policy)
			return true;
		if (time_after(jiffies, end))
			break;
		usleep_range(50, 100);
	}
	return false;
}

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

/*
 * Stay on this CPU, and with it what this thread starts in softirq.
 * For the rest of the case, which has a thread of its own.
 */
void kd_pin(void)
{
	set_cpus_allowed_ptr(current, cpumask_of(raw_smp_processor_id()));
}

/*
 * Wait until the engine of an EVD has nothing left to do.
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

/* Throw away what is queued. */
int kd_drain(DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;
	int n = 0;

	while (kd_next(evd, &event))
		n++;
	return n;
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

/* Make a call in another thread; kd_aside_wait() must follow. */
void kd_aside(struct kunit *test, struct kd_aside *aside, void (*fn)(void *arg), void *arg)
{
	aside->fn = fn;
	aside->arg = arg;
	init_completion(&aside->done);
	aside->task = kthread_run(kd_aside_main, aside, "kdapl_aside");
	KUNIT_ASSERT_FALSE(test, IS_ERR(aside->task));
}

static void kd_aside_caller(void *arg)
{
	struct kd_aside *aside = arg;

	aside->ret = aside->call(aside->handle);
}

/* The same for a call that takes nothing but a handle. */
void kd_aside_call(struct kunit *test, struct kd_aside *aside,
		   DAT_RETURN (*call)(DAT_HANDLE handle), DAT_HANDLE handle)
{
	aside->call = call;
	aside->handle = handle;
	kd_aside(test, aside, kd_aside_caller, aside);
}

/* Has it returned? It gets @ms to do so, were there nothing to wait for. */
bool kd_aside_returned(struct kd_aside *aside, unsigned int ms)
{
	return wait_for_completion_timeout(&aside->done, msecs_to_jiffies(ms));
}

/* Does it return? It gets the time of what must happen. */
bool kd_aside_returns(struct kd_aside *aside)
{
	return wait_for_completion_timeout(&aside->done, KD_LONG);
}

/* The same, once; the thread is left alone if it does not. */
bool kd_aside_wait(struct kd_aside *aside)
{
	if (!kd_aside_returns(aside))
		return false;
	kthread_stop(aside->task);
	return true;
}
