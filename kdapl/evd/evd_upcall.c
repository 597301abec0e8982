// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The upcall engine: runners that take events and call the consumer, and
 * dat_evd_modify_upcall(), which sets the policy.
 *
 * An EVD has one runner, in irq_poll softirq or in a work item; neither ever runs on two CPUs at
 * once. With DAT_UPCALL_MANY an EVD in a workqueue has helpers instead, one per CPU: each wakes
 * another one before it calls the consumer, so that arriving events always find one. The EVD's
 * lock is dropped around the consumer's function, so it may call back into anything; callers
 * that must wait for the upcall find its runner on evd->runners.
 *
 * Arming: a runner takes events until none is left, marks itself idle, and only then arms the CQs,
 * all under one lock. Arming reports completions that arrived in between, which start another
 * turn. So no wake-up is lost, even if others take events meanwhile. Later completions find the
 * runner idle.
 */
#include <linux/cpumask.h>
#include <linux/export.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "event.h"
#include "../core/trace.h"

#define SOFTIRQ_BUDGET	64
#define WORK_BUDGET	64
#define TURN_SILENT	256	/* completions that are no events, in one turn */
#define TURN_AHEAD	256	/* completions taken under one lock while no upcall is due */

/* A Receive that a Write with immediate data has used: none of its memory was filled (D-109). */
static noinline void event_fill_immed(DAT_EVENT *out)
{
	DAT_DTO_COMPLETION_EVENT_DATA *dto = &out->event_data.dto_completion_event_data;
	struct kdat_immed *immed = (struct kdat_immed *)out->event_extension_data;

	immed->present = 1;
	immed->data = dto->rmr_context;
	immed->length = dto->transfered_length;
	dto->rmr_context = 0;
	dto->transfered_length = 0;
}

/**
 * kdapl_event_fill - fill in the consumer's form of an event
 * @evd: the EVD it was taken from
 * @ev: the event
 * @out: the consumer's or the engine's structure, event_extension_data zero
 */
void kdapl_event_fill(struct kdapl_evd *evd, const struct kdapl_event *ev, DAT_EVENT *out)
{
	out->event_number = ev->number;
	out->evd_handle = evd->obj.handle;
	if (unlikely(ev->number != DAT_DTO_COMPLETION_EVENT)) {
		out->event_data = ev->data;
		return;
	}
	out->event_data.dto_completion_event_data = ev->data.dto_completion_event_data;
	if (unlikely(ev->immed))
		event_fill_immed(out);
}

/*
 * Poll for the next event while no upcall is due. @n: how many were taken before. Returns false if
 * there is none, or after so many that evd->again asks for another turn. evd->lock held.
 */
static bool upcall_poll(struct kdapl_evd *evd, struct kdapl_event *ev, u32 *n)
{
	u32 silent = evd->silent;
	bool found;

	if (*n >= TURN_AHEAD) {
		evd->again = true;
		return false;
	}
	found = kdapl_evd_poll(evd, ev);
	*n += evd->silent - silent + 1;
	return found;
}

/*
 * Take the next event if an upcall is due. Only a signalled event makes upcalls due;
 * unsignalled ones before it go first, unsignalled ones after it wait in the backlog.
 * evd->lock held.
 */
static bool upcall_pick(struct kdapl_evd *evd, struct kdapl_event *ev)
{
	u32 n = 0;

	/* a full backlog makes its oldest event due: better early than lost */
	while (!evd->backlog_signalled && kdapl_evd_room(evd)) {
		if (!upcall_poll(evd, ev, &n))
			return false;
		if (ev->signalled && !evd->backlog_count)
			return true;
		kdapl_evd_backlog_add(evd, ev);
	}
	return kdapl_evd_take(evd, ev);
}

/* Is an upcall due? Its event stays in the backlog; @ev is scratch space. evd->lock held. */
static bool upcall_due(struct kdapl_evd *evd, struct kdapl_event *ev)
{
	u32 n = 0;

	while (!evd->backlog_signalled && kdapl_evd_room(evd)) {
		if (!upcall_poll(evd, ev, &n))
			return false;
		kdapl_evd_backlog_add(evd, ev);
	}
	return true;
}

/* One upcall. evd->lock held, and dropped meanwhile. */
static void upcall_make(struct kdapl_evd *evd, struct kdapl_runner *runner, const DAT_EVENT *event,
			bool more)
{
	DAT_UPCALL_OBJECT upcall = evd->upcall;

	runner->seq = ++evd->upcall_seq;
	evd->nrunning++;
	spin_unlock_irq(&evd->lock);

	trace_kdapl_upcall(evd->obj.handle, event ? event->event_number : 0, more);
	upcall.upcall_func(upcall.instance_data, event, more ? DAT_TRUE : DAT_FALSE);

	spin_lock_irq(&evd->lock);
	evd->drained = false;
	kdapl_evd_called(evd, runner);
}

/* Was the event in hand the last one, as far as that is known without polling? (D-79) */
static bool upcall_was_last(const struct kdapl_evd *evd)
{
	return evd->drained && evd->default_policy && evd->batch_pos == evd->batch_n &&
	       !evd->backlog_count && list_empty(&evd->ready);
}

/*
 * Make the next upcall of any kind. Returns false when none is due. @none: set if there is no event
 * left. evd->lock held.
 */
static bool upcall_run_one(struct kdapl_evd *evd, struct kdapl_runner *runner, int budget,
			   bool helper, bool *none)
{
	struct kdapl_event *ev = &runner->ev;
	bool more;

	/* a runner of the other kind has taken over; arming schedules it */
	if (evd->closing || helper != kdapl_evd_many(evd))
		return false;
	if (evd->discard) {
		if (!kdapl_evd_take(evd, ev))
			return false;
		kdapl_event_release(ev);
		return true;
	}
	if (!kdapl_evd_calls(evd)) {
		if (evd->ending || evd->watching)
			kdapl_evd_poll_ahead_locked(evd, budget, evd->ending);
		return false;
	}
	if (unlikely(evd->nrunning >= (helper ? evd->nhelpers : 1)))
		return false;	/* kdapl_evd_held_up() */
	if (unlikely(evd->watching))	/* watermarks count all that has arrived */
		kdapl_evd_poll_ahead_locked(evd, budget, false);
	if (unlikely(evd->policy == DAT_UPCALL_NOTIFY)) {
		if (!upcall_due(evd, ev))
			return false;
		evd->notified = true;
		runner->ep = DAT_HANDLE_NULL;
		upcall_make(evd, runner, NULL, true);
		return true;
	}
	if (!upcall_pick(evd, ev))
		return false;
	*none = upcall_was_last(evd);
	more = !*none && kdapl_evd_more(evd);
	kdapl_event_fill(evd, ev, &runner->event);
	kdapl_event_release(ev);
	runner->ep = kdapl_event_ep(ev);
	if (helper)
		kdapl_evd_wake_helper(evd);
	upcall_make(evd, runner, &runner->event, more);
	if (unlikely(ev->immed))
		memset(runner->event.event_extension_data, 0,
		       sizeof(runner->event.event_extension_data));
	return true;
}

/*
 * One turn. Returns @budget when it is used up and there may be more. On return evd->lock is held,
 * for arming.
 */
static int upcall_run(struct kdapl_evd *evd, struct kdapl_runner *runner, int budget)
	__acquires(&evd->lock)
{
	bool helper = runner != &evd->runner, none = false, full = false;
	u32 silent;
	int n = 0;

	kdapl_evd_lock_irq(evd);
	runner->task = current;
	evd->drained = false;
	silent = evd->silent;
	while (n < budget && evd->silent - silent < TURN_SILENT) {
		n += kdapl_evd_run_fast(evd, runner, budget - n, &none);
		if (n == budget)
			break;
		if (none || !upcall_run_one(evd, runner, budget, helper, &none))
			goto out;
		n++;
		/* arming reports what has arrived since */
		if (none)
			goto out;
	}
	kdapl_count(full);
	full = true;
out:
	if (evd->softirq)
		kdapl_count(softirq);
	else
		kdapl_count(work);
	kdapl_count_many(upcalls, n);
	return full ? budget : n;
}

/* Arm the CQs. Returns true if another turn is due. evd->lock held. */
static bool upcall_arm_again(struct kdapl_evd *evd)
{
	if (!kdapl_evd_arm(evd))
		return false;
	kdapl_count(again);
	return true;
}

static int upcall_irq_poll(struct irq_poll *iop, int budget)
{
	struct kdapl_evd *evd = container_of(iop, struct kdapl_evd, iop);
	int n = upcall_run(evd, &evd->runner, budget);
	bool again = false;

	if (n < budget) {
		irq_poll_complete(iop);
		again = upcall_arm_again(evd);
	}
	spin_unlock_irq(&evd->lock);
	if (again)
		irq_poll_sched(iop);
	return n;
}

static void upcall_work(struct work_struct *work)
{
	struct kdapl_evd *evd = container_of(work, struct kdapl_evd, work);
	bool again = upcall_run(evd, &evd->runner, WORK_BUDGET) == WORK_BUDGET ||
		     upcall_arm_again(evd);

	spin_unlock_irq(&evd->lock);
	if (again)
		kdapl_evd_sched(evd);
}

static void upcall_helper_work(struct work_struct *work)
{
	struct kdapl_helper *helper = container_of(work, struct kdapl_helper, work);
	struct kdapl_evd *evd = helper->evd;
	bool again = upcall_run(evd, &helper->runner, WORK_BUDGET) == WORK_BUDGET;

	set_bit(helper - evd->helpers, &evd->idle);
	smp_mb__after_atomic();	/* a waker that found none idle relies on the check after arming */
	again = again || upcall_arm_again(evd);
	spin_unlock_irq(&evd->lock);
	if (again)
		kdapl_evd_sched(evd);
}

/* An upcall may wait for the upcalls of another EVD: lockdep needs a class for each. */
static void upcall_work_class(struct kdapl_evd *evd, struct work_struct *work)
{
#ifdef CONFIG_LOCKDEP
	lockdep_init_map(&work->lockdep_map, "kdapl_upcall", &evd->key, 0);
#endif
}

/**
 * kdapl_evd_engine_init - prepare the engine of a new EVD
 * @evd: the EVD
 */
void kdapl_evd_engine_init(struct kdapl_evd *evd)
{
	irq_poll_init(&evd->iop, SOFTIRQ_BUDGET, upcall_irq_poll);
	lockdep_register_key(&evd->key);
	INIT_WORK(&evd->work, upcall_work);
	upcall_work_class(evd, &evd->work);
	INIT_LIST_HEAD(&evd->runners);
	list_add(&evd->runner.node, &evd->runners);
	init_waitqueue_head(&evd->upcall_over);
}

/**
 * kdapl_evd_engine_stop - wait for runners that are scheduled, and start no other
 * @evd: closed, and a grace period has passed since completion handlers could find it
 *
 * Context: may sleep; not inside an upcall of @evd.
 */
void kdapl_evd_engine_stop(struct kdapl_evd *evd)
{
	unsigned int i;

	if (evd->softirq)
		irq_poll_disable(&evd->iop);
	cancel_work_sync(&evd->work);
	for (i = 0; i < evd->nhelpers; i++)
		cancel_work_sync(&evd->helpers[i].work);
	/* a holder of a reference may still walk the runners: none runs */
	kdapl_evd_lock_irq(evd);
	INIT_LIST_HEAD(&evd->runners);
	spin_unlock_irq(&evd->lock);
	kfree(evd->helpers);
	lockdep_unregister_key(&evd->key);
}

/**
 * kdapl_evd_make_helpers - prepare an EVD for DAT_UPCALL_MANY
 * @evd: the EVD
 *
 * Without memory for them, and in softirq, the EVD keeps its one runner: the
 * policy allows several upcalls at a time, but does not promise them.
 *
 * Context: may sleep; evd->mutex held, or the EVD has no handle yet.
 */
void kdapl_evd_make_helpers(struct kdapl_evd *evd)
{
	unsigned int i, n = min_t(unsigned int, num_online_cpus(), BITS_PER_LONG);
	struct kdapl_helper *helpers;

	if (evd->softirq || evd->helpers)
		return;
	helpers = kcalloc(n, sizeof(*helpers), GFP_KERNEL | __GFP_NOWARN);
	if (!helpers)
		return;
	for (i = 0; i < n; i++) {
		INIT_WORK(&helpers[i].work, upcall_helper_work);
		upcall_work_class(evd, &helpers[i].work);
		helpers[i].evd = evd;
	}
	kdapl_evd_lock_irq(evd);
	for (i = 0; i < n; i++)
		list_add(&helpers[i].runner.node, &evd->runners);
	spin_unlock_irq(&evd->lock);
	evd->nhelpers = n;
	evd->idle = GENMASK(n - 1, 0);
	smp_store_release(&evd->helpers, helpers);	/* to kdapl_evd_many() */
}

/* Has a runner an event of this EP in hand? Its upcall has returned if not. evd->lock held. */
static bool upcall_has_ep(const struct kdapl_runner *runner, DAT_EP_HANDLE ep)
{
	/* pairs with the release in fast_tell_all() */
	return runner->seq && smp_load_acquire(&runner->ep) == ep;
}

/* Does an upcall run with an event of this EP? evd->lock held. */
static bool upcall_of_ep(const struct kdapl_evd *evd, DAT_EP_HANDLE ep)
{
	const struct kdapl_runner *runner;

	list_for_each_entry(runner, &evd->runners, node) {
		if (upcall_has_ep(runner, ep))
			return true;
	}
	return false;
}

/**
 * kdapl_evd_wait_upcall - wait while an upcall runs with an event of an EP
 * @evd: the EVD
 * @ep: handle of an EP that is dead; its events have been dropped
 *
 * Context: may sleep; not inside an upcall of @evd.
 */
void kdapl_evd_wait_upcall(struct kdapl_evd *evd, DAT_EP_HANDLE ep)
{
	kdapl_evd_lock_irq(evd);
	wait_event_lock_irq(evd->upcall_over, !upcall_of_ep(evd, ep), evd->lock);
	spin_unlock_irq(&evd->lock);
}

/* How often to check what dat_evd_dequeue() has taken; the end of an upcall wakes the waiter. */
#define DELIVER_POLL	(HZ / 20)

/**
 * kdapl_evd_wait_delivered - wait until upcalls have delivered all completions of a connection
 * @evd: one of its EVDs, referenced
 * @conn: connection that has ended, referenced
 *
 * The last upcall has returned then. Completions that are dequeued without upcalls are not
 * waited for.
 *
 * Context: may sleep; not inside an upcall of @evd.
 */
void kdapl_evd_wait_delivered(struct kdapl_evd *evd, struct kdapl_conn *conn)
{
	bool done;

	do {
		kdapl_evd_make_due(evd, conn);
		kdapl_evd_lock_irq(evd);
		wait_event_lock_irq_timeout(evd->upcall_over,
					    !kdapl_evd_owes(evd, conn) &&
					    !upcall_of_ep(evd, conn->handle),
					    evd->lock, DELIVER_POLL);
		done = !kdapl_evd_owes(evd, conn) && !upcall_of_ep(evd, conn->handle);
		spin_unlock_irq(&evd->lock);
	} while (!done);
}

/* Does an upcall run that was started no later than @seq? evd->lock held. */
static bool upcall_started_by(const struct kdapl_evd *evd, u64 seq)
{
	const struct kdapl_runner *runner;

	list_for_each_entry(runner, &evd->runners, node) {
		if (runner->seq && runner->seq <= seq)
			return true;
	}
	return false;
}

/**
 * kdapl_evd_wait_all - wait for the upcalls that run now
 * @evd: the EVD
 *
 * Upcalls that start later are not waited for.
 *
 * Context: may sleep; not inside an upcall of @evd.
 */
void kdapl_evd_wait_all(struct kdapl_evd *evd)
{
	u64 seq;

	kdapl_evd_lock_irq(evd);
	seq = evd->upcall_seq;
	wait_event_lock_irq(evd->upcall_over, !upcall_started_by(evd, seq), evd->lock);
	spin_unlock_irq(&evd->lock);
}

/**
 * kdapl_evd_other_upcall - does another upcall run with an event of an EP?
 * @evd: an EVD the caller is in an upcall of; evd->lock held
 * @ep: handle of the EP
 *
 * Return: true if there is one.
 */
bool kdapl_evd_other_upcall(const struct kdapl_evd *evd, DAT_EP_HANDLE ep)
{
	const struct kdapl_runner *runner;

	lockdep_assert_held(&evd->lock);
	list_for_each_entry(runner, &evd->runners, node) {
		if (upcall_has_ep(runner, ep) && runner->task != current)
			return true;
	}
	return false;
}

/**
 * kdapl_evd_inside_upcall - does the caller run in an upcall of this EVD?
 * @evd: the EVD
 *
 * In softirq "current" is the interrupted task, which runs nothing else until
 * the upcall returns, so comparing tasks is exact there too.
 *
 * Context: any, without evd->lock.
 * Return: true when waiting for upcalls of the EVD would be waiting for itself.
 */
bool kdapl_evd_inside_upcall(struct kdapl_evd *evd)
{
	struct kdapl_runner *runner;
	unsigned long flags;
	bool inside = false;

	flags = kdapl_evd_lock_irqsave(evd);
	list_for_each_entry(runner, &evd->runners, node)
		inside |= runner->seq && runner->task == current;
	spin_unlock_irqrestore(&evd->lock, flags);
	return inside;
}

/* Make queued events due for upcalls, or not. evd->lock held. */
static void upcall_set_due(struct kdapl_evd *evd, DAT_UPCALL_FLAG flag)
{
	bool due = flag == DAT_UPCALL_INVOC_ANY;
	u32 i;

	if (!due && evd->policy != DAT_UPCALL_DISABLE)
		return;
	for (i = 0; i < evd->backlog_count; i++)
		kdapl_evd_backlog_at(evd, i)->signalled = due;
	evd->backlog_signalled = due ? evd->backlog_count : 0;
}

/* Set policy and upcall, from checked arguments. evd->mutex held. */
static void upcall_change(struct kdapl_evd *evd, DAT_UPCALL_POLICY policy,
			  const DAT_UPCALL_OBJECT *upcall, DAT_UPCALL_FLAG flag)
{
	bool on = policy != DAT_UPCALL_DISABLE;

	if (policy == DAT_UPCALL_MANY)
		kdapl_evd_make_helpers(evd);
	if (on && (flag == DAT_UPCALL_INVOC_ANY || evd->policy == DAT_UPCALL_DISABLE))
		kdapl_evd_poll_all(evd);
	kdapl_evd_lock_irq(evd);
	if (upcall)
		evd->upcall = *upcall;
	if (on)
		upcall_set_due(evd, flag);
	if (policy != DAT_UPCALL_NOTIFY || policy != evd->policy || flag == DAT_UPCALL_INVOC_ANY)
		evd->notified = false;
	WRITE_ONCE(evd->policy, policy);
	kdapl_evd_set_default_policy(evd);
	spin_unlock_irq(&evd->lock);
	if (on)
		kdapl_evd_sched(evd);
}

/**
 * dat_evd_modify_upcall - change policy and upcall object of an EVD
 * @evd_handle: EVD
 * @upcall_policy: one of
 *	DAT_UPCALL_DISABLE: no upcall starts any more; events are taken with
 *	dat_evd_dequeue(). Upcalls that run are not waited for.
 *	DAT_UPCALL_TEARDOWN: the same, and the call returns after the last upcall
 *	that runs has returned.
 *	DAT_UPCALL_SINGLE_INSTANCE: one upcall at a time, each with an event.
 *	DAT_UPCALL_NOTIFY: one upcall without an event (NULL, DAT_TRUE) that says
 *	there are some; the next one is sent for the first signalled event that
 *	arrives after dat_evd_dequeue() has returned DAT_QUEUE_EMPTY.
 *	DAT_UPCALL_MANY: on EVDs whose upcalls run in a workqueue up to one at a
 *	time per CPU, each with its own event; elsewhere as SINGLE_INSTANCE.
 * @upcall: copied; DAT_UPCALL_SAME keeps the one there is; a NULL function only
 *	with DAT_UPCALL_DISABLE and DAT_UPCALL_TEARDOWN. Upcalls that run finish
 *	with the old one.
 * @flag: what becomes of events that are queued when upcalls are enabled.
 *	DAT_UPCALL_INVOC_NEW: after DAT_UPCALL_DISABLE none of them starts an
 *	upcall; they go first when a new signalled event arrives. From another
 *	policy, what was due stays due.
 *	DAT_UPCALL_INVOC_ANY: they are due at once, signalled or not.
 *
 * Events are neither lost nor reordered nor delivered twice. Works after the
 * removal of the device, too.
 *
 * Context: may take mutexes; legal in upcalls that run in process context.
 * DAT_UPCALL_TEARDOWN may sleep for as long as the consumer's upcalls take: hold
 * no lock that they need.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE; DAT_INVALID_PARAMETER (policy,
 * upcall, flag); DAT_INVALID_STATE (subtype EVD_IN_USE: DAT_UPCALL_TEARDOWN in
 * an upcall of this EVD would wait for itself). After an error nothing has
 * changed.
 */
DAT_RETURN dat_evd_modify_upcall(DAT_EVD_HANDLE evd_handle, DAT_UPCALL_POLICY upcall_policy,
				 const DAT_UPCALL_OBJECT *upcall, DAT_UPCALL_FLAG flag)
{
	struct kdapl_evd *evd = kdapl_obj_get(evd_handle, DAT_HANDLE_TYPE_EVD);
	DAT_RETURN ret = DAT_SUCCESS;
	unsigned int noio;
	bool on = false;

	if (!evd)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	switch (upcall_policy) {
	case DAT_UPCALL_TEARDOWN:
		/* takes no mutex, so that an upcall in softirq gets the error as well */
		if (flag != DAT_UPCALL_INVOC_NEW && flag != DAT_UPCALL_INVOC_ANY)
			ret = kdapl_arg_err(4);
		else if (kdapl_evd_inside_upcall(evd))
			ret = kdapl_err(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE);
		break;
	case DAT_UPCALL_DISABLE:
		break;
	case DAT_UPCALL_SINGLE_INSTANCE:
	case DAT_UPCALL_NOTIFY:
	case DAT_UPCALL_MANY:
		on = true;
		break;
	default:
		ret = kdapl_arg_err(2);
	}
	if (ret != DAT_SUCCESS)
		goto out;
	noio = memalloc_noio_save();	/* dat_ep_reset() takes the mutex (D-32) */
	mutex_lock(&evd->mutex);
	if (on && !(upcall ? upcall : &evd->upcall)->upcall_func)
		ret = kdapl_arg_err(3);
	else if (flag != DAT_UPCALL_INVOC_NEW && flag != DAT_UPCALL_INVOC_ANY)
		ret = kdapl_arg_err(4);
	else if (evd->closing)
		ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	else
		upcall_change(evd, on ? upcall_policy : DAT_UPCALL_DISABLE, upcall, flag);
	mutex_unlock(&evd->mutex);
	memalloc_noio_restore(noio);
	if (upcall_policy == DAT_UPCALL_TEARDOWN && ret == DAT_SUCCESS)
		kdapl_evd_wait_all(evd);
out:
	kdapl_obj_put(&evd->obj);
	return ret;
}
EXPORT_SYMBOL(dat_evd_modify_upcall);
