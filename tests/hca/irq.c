// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* From where handlers of consumers are called: a thread, a softirq, a hard interrupt. */
#include "compat.h"
#include "kdhca.h"

static void irq_work_fn(struct work_struct *work)
{
	struct kdhca_irq *irq = container_of(work, struct kdhca_irq, work);

	irq->fn(irq);
}

static void irq_tasklet_fn(struct tasklet_struct *tasklet)
{
	struct kdhca_irq *irq = container_of(tasklet, struct kdhca_irq, tasklet);

	irq->fn(irq);
}

static enum hrtimer_restart irq_timer_fn(struct hrtimer *timer)
{
	struct kdhca_irq *irq = container_of(timer, struct kdhca_irq, timer);

	irq->fn(irq);
	return HRTIMER_NORESTART;
}

/* Prepare an interrupt. */
void kdhca_irq_init(struct kdhca_irq *irq, enum kdhca_ctx ctx, void (*fn)(struct kdhca_irq *irq))
{
	irq->ctx = ctx;
	irq->fn = fn;
	INIT_WORK(&irq->work, irq_work_fn);
	tasklet_setup(&irq->tasklet, irq_tasklet_fn);
	hrtimer_setup(&irq->timer, irq_timer_fn, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
}

/* Have the handler called. Context: any. */
void kdhca_irq_raise(struct kdhca_irq *irq)
{
	switch (irq->ctx) {
	case KDHCA_THREAD:
		queue_work(kdhca_wq, &irq->work);
		break;
	case KDHCA_SOFTIRQ:
		tasklet_hi_schedule(&irq->tasklet);
		break;
	case KDHCA_HARDIRQ:
		hrtimer_start(&irq->timer, ns_to_ktime(1000), HRTIMER_MODE_REL_HARD);
		break;
	}
}

/* Have the handler called for an event. Context: any. */
void kdhca_irq_event(struct kdhca_irq *irq, enum ib_event_type type)
{
	set_bit(type, &irq->events);
	kdhca_irq_raise(irq);
}

/* An event the handler has been called for, if there is one. */
bool kdhca_irq_next(struct kdhca_irq *irq, struct ib_event *event)
{
	unsigned long type = find_first_bit(&irq->events, BITS_PER_LONG);

	if (type == BITS_PER_LONG)
		return false;
	clear_bit(type, &irq->events);
	event->event = type;
	return true;
}

/* No call of the handler is under way or to come. Context: may sleep. */
void kdhca_irq_kill(struct kdhca_irq *irq)
{
	cancel_work_sync(&irq->work);
	tasklet_kill(&irq->tasklet);
	hrtimer_cancel(&irq->timer);
}
