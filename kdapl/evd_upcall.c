// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The upcall engine: one instance per EVD, in irq_poll softirq or in a
 * workqueue, that takes events and hands them to the consumer.
 *
 * SINGLE_INSTANCE follows from there being one engine: irq_poll and a work
 * item both run on one CPU at a time. The EVD's lock is dropped around the
 * consumer's function, so it may call back into anything.
 *
 * Arming: the engine takes events until there is none, gives up its turn and
 * only then arms the CQs; what arrived in between is reported by the arming
 * itself and starts another turn. So no wake-up is lost, whoever else has been
 * taking events meanwhile.
 */
#include <linux/sched.h>

#include "kdapl.h"

#define SOFTIRQ_BUDGET	64
#define WORK_BUDGET	256

/**
 * kdapl_event_fill - the consumer's form of an event
 * @evd: where it was taken from
 * @ev: the event
 * @out: the consumer's or the engine's structure
 */
void kdapl_event_fill(struct kdapl_evd *evd, const struct kdapl_event *ev, DAT_EVENT *out)
{
	out->event_number = ev->number;
	out->evd_handle = evd->obj.handle;
	out->event_data = ev->data;
}

/*
 * The next event an upcall is due for. Only a signalled event starts upcalls;
 * unsignalled ones before it go first, unsignalled ones after it wait in the
 * store. evd->lock held.
 */
static bool evd_pick(struct kdapl_evd *evd, struct kdapl_event *ev)
{
	/* a store without room makes its oldest event due: better early than lost */
	while (!evd->store_signalled && kdapl_evd_room(evd)) {
		if (!kdapl_evd_poll(evd, ev))
			return false;
		if (ev->signalled && !evd->store_count)
			return true;
		kdapl_evd_store(evd, ev);
	}
	return kdapl_evd_take(evd, ev);
}

/* Is another event queued at this moment? evd->lock held. */
static bool evd_more(struct kdapl_evd *evd)
{
	struct kdapl_event ev;

	if (!evd->store_count && kdapl_evd_poll(evd, &ev))
		kdapl_evd_store(evd, &ev);
	return evd->store_count;
}

static int evd_run(struct kdapl_evd *evd, int budget)
{
	struct kdapl_event ev;
	DAT_UPCALL_OBJECT upcall;
	DAT_BOOLEAN more;
	int n;

	spin_lock_irq(&evd->lock);
	for (n = 0; n < budget && !evd->closing; n++) {
		if (evd->discard) {
			if (!kdapl_evd_take(evd, &ev))
				break;
			kdapl_event_release(&ev);
			continue;
		}
		if (evd->policy == DAT_UPCALL_DISABLE) {
			if (evd->ending || evd->watching)
				kdapl_evd_sweep_locked(evd, budget, evd->ending);
			break;
		}
		if (unlikely(evd->watching))	/* see what is there, to count it */
			kdapl_evd_sweep_locked(evd, budget, false);
		if (!evd_pick(evd, &ev))
			break;
		more = evd_more(evd) ? DAT_TRUE : DAT_FALSE;
		kdapl_event_fill(evd, &ev, &evd->event);
		kdapl_event_release(&ev);
		upcall = evd->upcall;
		evd->in_upcall = true;
		evd->upcall_task = current;
		evd->upcall_half = ev.half;
		spin_unlock_irq(&evd->lock);

		upcall.upcall_func(upcall.instance_data, &evd->event, more);

		spin_lock_irq(&evd->lock);
		evd->in_upcall = false;
		evd->upcall_task = NULL;
		evd->upcall_half = NULL;
		if (unlikely(waitqueue_active(&evd->upcall_over)))	/* both under the lock */
			wake_up(&evd->upcall_over);
	}
	spin_unlock_irq(&evd->lock);
	return n;
}

static int evd_irq_poll(struct irq_poll *iop, int budget)
{
	struct kdapl_evd *evd = container_of(iop, struct kdapl_evd, iop);
	int n = evd_run(evd, budget);

	if (n < budget) {
		irq_poll_complete(iop);
		if (kdapl_evd_arm(evd))
			irq_poll_sched(iop);
	}
	return n;
}

static void evd_work(struct work_struct *work)
{
	struct kdapl_evd *evd = container_of(work, struct kdapl_evd, work);

	if (evd_run(evd, WORK_BUDGET) == WORK_BUDGET || kdapl_evd_arm(evd))
		queue_work(kdapl_upcall_wq, work);
}

/**
 * kdapl_evd_sched - something may have arrived
 * @evd: the EVD
 *
 * Context: any.
 */
void kdapl_evd_sched(struct kdapl_evd *evd)
{
	if (evd->softirq) {
		irq_poll_sched(&evd->iop);	/* does nothing once disabled */
		return;
	}
	/* kdapl_evd_destroy() waits for us before it cancels the work */
	rcu_read_lock();
	if (!READ_ONCE(evd->closing))
		queue_work(kdapl_upcall_wq, &evd->work);
	rcu_read_unlock();
}

/**
 * kdapl_evd_engine_init - prepare the engine of a new EVD
 * @evd: the EVD
 */
void kdapl_evd_engine_init(struct kdapl_evd *evd)
{
	irq_poll_init(&evd->iop, SOFTIRQ_BUDGET, evd_irq_poll);
	INIT_WORK(&evd->work, evd_work);
	init_waitqueue_head(&evd->upcall_over);
}

/**
 * kdapl_evd_engine_stop - wait for a running upcall, start no other
 * @evd: closing, out of reach of completion handlers
 *
 * Context: may sleep; not inside an upcall of @evd.
 */
void kdapl_evd_engine_stop(struct kdapl_evd *evd)
{
	if (evd->softirq)
		irq_poll_disable(&evd->iop);
	cancel_work_sync(&evd->work);
}

/**
 * kdapl_evd_wait_upcall - wait while an upcall has an event of a half in hand
 * @evd: the EVD
 * @half: a half whose events have been dropped
 *
 * Context: may sleep; not inside an upcall of @evd.
 */
void kdapl_evd_wait_upcall(struct kdapl_evd *evd, struct kdapl_half *half)
{
	spin_lock_irq(&evd->lock);
	wait_event_lock_irq(evd->upcall_over, evd->upcall_half != half, evd->lock);
	spin_unlock_irq(&evd->lock);
}

/**
 * kdapl_evd_inside_upcall - does the caller run in this EVD's upcall?
 * @evd: the EVD
 *
 * In softirq "current" is the interrupted task, which runs nothing else until
 * the upcall returns, so comparing tasks is exact there too.
 */
bool kdapl_evd_inside_upcall(struct kdapl_evd *evd)
{
	return READ_ONCE(evd->in_upcall) && READ_ONCE(evd->upcall_task) == current;
}
