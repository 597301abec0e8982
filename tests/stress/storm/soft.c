// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Software events: a thread on each CPU posts them, a timer does in softirq and an
 * irq_work in hard interrupt context, each a stream of its own.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "kdstorm.h"

#define BURST	64	/* events per tick from interrupts */

/* Post an event. DAT_QUEUE_FULL is believed only if it can be true. */
DAT_RETURN storm_post(struct storm_evd *evd, u32 stream, u32 number)
{
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };
	u64 taken = READ_ONCE(evd->soft_taken);
	DAT_RETURN ret;
	s64 queued;

	event.event_data.software_event_data.pointer =
		(void *)(uintptr_t)storm_mark(stream, number);
	atomic64_inc(&evd->begun);
	ret = dat_evd_post_se(evd->h, &event);
	if (ret == DAT_SUCCESS) {
		atomic64_inc(&evd->posted);
		return ret;
	}
	/* No more than that was in the queue, and other calls may be counted too. */
	queued = atomic64_read(&evd->begun) - taken;
	atomic64_dec(&evd->begun);
	if (DAT_GET_TYPE(ret) == DAT_QUEUE_FULL) {
		atomic64_inc(&evd->full);
		if (queued < READ_ONCE(evd->qlen) && !READ_ONCE(evd->freed))
			storm_fault(STORM_FULL, "%s: full with %lld events of %d", evd->name,
				    queued, evd->qlen);
	} else if (!READ_ONCE(evd->freed)) {
		storm_fault(STORM_REFUSED, "%s: dat_evd_post_se: 0x%08x", evd->name, ret);
	}
	return ret;
}

/* 0, -EAGAIN: the queue is full, -ENODATA: that was all */
static int post_next(struct storm_source *source)
{
	struct storm_evd *evd = source->evd;

	if (evd->stop)
		return -ENODATA;
	if (!source->pending) {
		if (atomic_dec_if_positive(&evd->left) < 0)
			return -ENODATA;
		source->pending = true;
	}
	if (storm_post(evd, source->stream, source->next) != DAT_SUCCESS)
		return -EAGAIN;
	source->next++;
	source->pending = false;
	return 0;
}

/* True when it has no more to do. */
static bool post_burst(struct storm_source *source)
{
	int n, ret = 0;

	for (n = 0; n < BURST && !ret; n++)
		ret = post_next(source);
	if (ret == -ENODATA)
		WRITE_ONCE(source->done, true);
	return ret == -ENODATA;
}

static void post_hardirq(struct irq_work *work)
{
	struct storm_evd *evd = container_of(work, struct storm_evd, irq_work);

	post_burst(&evd->source[evd->n_sources - 1]);
}

/* Each tick, until there is nothing more to post from interrupts. */
static void post_softirq(struct timer_list *timer)
{
	struct storm_evd *evd = container_of(timer, struct storm_evd, timer);
	struct storm_source *hard = &evd->source[evd->n_sources - 1];
	bool done = post_burst(&evd->source[evd->n_sources - 2]);

	if (!READ_ONCE(hard->done))
		irq_work_queue(&evd->irq_work);
	else if (done)
		return;
	mod_timer(timer, jiffies + 1);
}

static bool found_empty(struct storm_evd *evd)
{
	return READ_ONCE(evd->soft_taken) >= atomic64_read(&evd->begun);
}

static void post_thread(struct storm_thread *t)
{
	struct storm_source *source = t->arg;
	struct storm_evd *evd = source->evd;
	int n, ret = 0;
	u64 taken;

	while (ret != -ENODATA) {
		for (n = storm_rnd(&t->rnd, 200); n >= 0; n--) {
			taken = storm_taken(evd);
			ret = post_next(source);
			if (ret == -EAGAIN)
				storm_pause(storm_taken(evd) != taken || evd->stop, 2);
			else if (ret)
				break;
		}
		cond_resched();
		/* Sometimes the consumer is to have nothing to do, and then an event. */
		if (storm_rnd(&t->rnd, 4) == 0) {
			for (n = 0; n < 1000 && !found_empty(evd); n++)
				cond_resched();
		}
	}
	WRITE_ONCE(source->done, true);
}

int storm_sources_open(struct storm_evd *evd, u32 events)
{
	int i, stream;

	evd->n_sources = storm_cpus + 2;
	atomic_set(&evd->left, events);
	for (i = 0; i < evd->n_sources; i++) {
		stream = storm_evd_stream(evd, events);
		if (stream < 0)
			return stream;
		evd->source[i].evd = evd;
		evd->source[i].stream = stream;
	}
	timer_setup(&evd->timer, post_softirq, 0);
	init_irq_work(&evd->irq_work, post_hardirq);
	return 0;
}

int storm_sources_start(struct storm_evd *evd)
{
	int i, err = 0;

	for (i = 0; i < storm_cpus && !err; i++)
		err = storm_thread_start(&evd->source[i].thread, "poster", post_thread,
					 &evd->source[i], i, storm_cpu(i));
	mod_timer(&evd->timer, jiffies + 1);
	return err;
}

static bool all_posted(struct storm_evd *evd, u64 n)
{
	int i;

	for (i = 0; i < evd->n_sources; i++) {
		if (!READ_ONCE(evd->source[i].done))
			return false;
	}
	return true;
}

void storm_sources_wait(struct storm_evd *evd)
{
	if (!storm_wait_moving(evd, all_posted, 0))
		storm_fault(STORM_WAKE, "%s: posting has come to a halt", evd->name);
}

void storm_sources_stop(struct storm_evd *evd)
{
	int i;

	if (!evd->n_sources)
		return;
	for (i = 0; i < storm_cpus; i++)
		storm_thread_stop(&evd->source[i].thread);
	timer_shutdown_sync(&evd->timer);
	irq_work_sync(&evd->irq_work);
}

/* An EVD of each side, with software events or without. */
int storm_both_start(struct storm_evd *evd[2])
{
	int i, err = 0;

	for (i = 0; i < 2 && !err; i++)
		err = storm_evd_start(evd[i]) ?:
		      evd[i]->n_sources ? storm_sources_start(evd[i]) : 0;
	return err;
}

void storm_both_stop(struct storm_evd *evd[2])
{
	int i;

	for (i = 0; i < 2; i++) {
		if (!evd[i])
			continue;
		evd[i]->stop = true;
		storm_sources_stop(evd[i]);
	}
}

/* ---- the storms ---- */

static int soft_storm(struct test_ia *ia, bool softirq, const struct storm_phase *phase,
		      u32 events)
{
	struct storm_evd *evd = storm_evd_open(ia, DAT_EVD_SOFTWARE_FLAG, softirq, phase, NULL,
					       "software");
	int err;

	if (!evd)
		return -ENOMEM;
	err = storm_sources_open(evd, events) ?: storm_evd_start(evd) ?: storm_sources_start(evd);
	if (!err) {
		storm_sources_wait(evd);
		storm_evd_settle(evd, 0);
	}
	evd->stop = true;
	storm_sources_stop(evd);
	storm_evd_close(evd);
	return err;
}

int storm_soft(u32 events)
{
	int i, err = 0;

	for (i = 0; i < 2 * STORM_PHASES && !err && !storm_overtime(); i++)
		err = soft_storm(i & 1 ? &storm_a : &storm_b, i & 1, &storm_phases[i / 2],
				 events / (2 * STORM_PHASES) + 1);
	return err;
}

/* Freed from here while everybody is posting, dequeuing and flipping. */
static int freed_in_the_middle(bool softirq, u32 events)
{
	struct storm_evd *evd = storm_evd_open(&storm_a, DAT_EVD_SOFTWARE_FLAG, softirq,
					       &storm_phases[STORM_STEADY_MANY], NULL, "free");
	int err;

	if (!evd)
		return -ENOMEM;
	err = storm_sources_open(evd, 1 << 20) ?: storm_sources_start(evd);
	if (!err && !storm_evd_wait(evd, events))
		storm_fault(STORM_WAKE, "%s: no events", evd->name);
	storm_evd_free(evd);
	evd->stop = true;
	storm_sources_stop(evd);
	storm_evd_close(evd);
	return err;
}

int storm_freed(void)
{
	int i, err = 0;

	for (i = 0; i < 64 && !err; i++)
		err = freed_in_the_middle(i & 1, 1 + i * 16);
	return err;
}
