// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * An EVD in a storm: what its upcalls and dequeues hand out is checked, event by
 * event, while its policy changes.
 *
 * Order. Overlapping calls have no order among themselves, so an event is
 * compared with what had been handed out before the call began that took it. For
 * dat_evd_dequeue() that is known; for an upcall where one runs at a time, it is
 * what had been handed out when the one before it ended.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpumask.h>
#include <linux/preempt.h>

#include "kdstorm.h"

#define WAKE		32		/* events between two wake-ups of who waits */

const struct storm_phase storm_phases[STORM_PHASES] = {
	[STORM_STEADY_SINGLE]	= { "single", STORM_P_SINGLE },
	[STORM_STEADY_MANY]	= { "many", STORM_P_MANY },
	[STORM_STEADY_NOTIFY]	= { "notify", STORM_P_NOTIFY },
	[STORM_FLIP_SINGLE]	= { "on-off", STORM_P_SINGLE | STORM_P_OFF },
	[STORM_FLIP_ENABLED]	= { "single-many", STORM_P_SINGLE | STORM_P_MANY },
	[STORM_FLIP_ALL]	= { "all", STORM_P_SINGLE | STORM_P_MANY | STORM_P_NOTIFY |
				    STORM_P_OFF, true },
};

static const DAT_UPCALL_POLICY policies[] = {
	DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_MANY, DAT_UPCALL_NOTIFY, DAT_UPCALL_DISABLE,
	DAT_UPCALL_TEARDOWN,
};

/* An upcall that runs. */
struct call {
	struct list_head link;
	const struct storm_epoch *epoch;
	u32 random;
};

static bool flips(const struct storm_evd *evd)
{
	return hweight32(evd->phase->policies) > 1;
}

/* ---- events ---- */

static void account(struct storm_evd *evd, u32 mark, const u32 *before)
{
	u32 s = mark >> 24, number = mark & 0xffffff;
	struct storm_stream *stream;

	if (s >= STORM_STREAMS || number >= evd->stream[s].max) {
		storm_fault(STORM_ONCE, "%s: an event nobody posted: %x", evd->name, mark);
		return;
	}
	stream = &evd->stream[s];
	if (__test_and_set_bit(number, stream->seen))
		storm_fault(STORM_ONCE, "%s: event %u of stream %u comes again", evd->name, number,
			    s);
	evd->ordered += !!before;
	if (before && number < before[s])
		storm_fault(STORM_ORDER, "%s: event %u of stream %u comes after %u", evd->name,
			    number, s, before[s] - 1);
	if (number >= stream->top)
		stream->top = number + 1;
	stream->taken++;
}

/* evd->lock held. @before: highest numbers + 1 that must be lower, or NULL */
static void take_in(struct storm_evd *evd, const DAT_EVENT *event, const u32 *before)
{
	u64 mark;

	if (event->evd_handle != evd->h)
		storm_fault(STORM_ONCE, "%s: an event of another EVD", evd->name);
	switch (event->event_number) {
	case DAT_SOFTWARE_EVENT:
		evd->soft_taken++;
		account(evd, (uintptr_t)event->event_data.software_event_data.pointer, before);
		break;
	case DAT_DTO_COMPLETION_EVENT:
		mark = event->event_data.dto_completion_event_data.user_cookie.as_64;
		account(evd, mark, before);
		break;
	default:
		break;
	}
	WRITE_ONCE(evd->taken, evd->taken + 1);
}

static void tell(struct storm_evd *evd)
{
	if (!(storm_taken(evd) % WAKE) && wq_has_sleeper(&test_wait))
		wake_up_all(&test_wait);
}

static void tops(struct storm_evd *evd, u32 *top)
{
	int i;

	for (i = 0; i < STORM_STREAMS; i++)
		top[i] = evd->stream[i].top;
}

static void handle(struct storm_evd *evd, const DAT_EVENT *event)
{
	if (evd->hook && event->event_number != DAT_SOFTWARE_EVENT)
		evd->hook(evd, event);
	tell(evd);
}

/* Take an event by dat_evd_dequeue(); false when there is none. */
bool storm_evd_take(struct storm_evd *evd, bool inside)
{
	u32 before[STORM_STREAMS];
	unsigned long flags;
	DAT_EVENT event;
	DAT_RETURN ret;

	spin_lock_irqsave(&evd->lock, flags);
	tops(evd, before);
	evd->open++;
	spin_unlock_irqrestore(&evd->lock, flags);
	ret = dat_evd_dequeue(evd->h, &event);
	spin_lock_irqsave(&evd->lock, flags);
	evd->open--;
	if (ret == DAT_SUCCESS) {
		take_in(evd, &event, before);
		if (inside)
			evd->inside++;
		else
			evd->outside++;
	} else {
		evd->empties++;
		if (DAT_GET_TYPE(ret) != DAT_QUEUE_EMPTY && !evd->freed)
			storm_fault(STORM_REFUSED, "%s: dat_evd_dequeue: 0x%08x", evd->name, ret);
	}
	spin_unlock_irqrestore(&evd->lock, flags);
	if (ret != DAT_SUCCESS)
		return false;
	handle(evd, &event);
	return true;
}

/* ---- upcalls ---- */

static void check_alone(struct storm_evd *evd, const struct call *call)
{
	u32 n = 1;
	struct call *c;

	list_for_each_entry(c, &evd->running, link) {
		const struct storm_epoch *later = c->epoch->number > call->epoch->number ?
						  c->epoch : call->epoch;

		n++;
		if (later->policy != DAT_UPCALL_MANY)
			storm_fault(STORM_SINGLE, "%s: upcalls of changes %u and %u, policy %d",
				    evd->name, c->epoch->number, call->epoch->number,
				    later->policy);
	}
	evd->single += call->epoch->policy != DAT_UPCALL_MANY;
	/* MANY is one per CPU, and in softirq just one. */
	if (n > (evd->softirq ? 1 : num_online_cpus()))
		storm_fault(STORM_SINGLE, "%s: %u upcalls at a time", evd->name, n);
	evd->max_running = max(evd->max_running, n);
	if (evd->quiet)
		storm_fault(evd->freed ? STORM_FREE : STORM_TEARDOWN,
			    "%s: an upcall of change %u when there is none any more, now %u",
			    evd->name, call->epoch->number, evd->epochs);
}

static void check_more(struct storm_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	s64 rest = evd->after_backlog - (event->event_number == DAT_SOFTWARE_EVENT);

	if (more != DAT_TRUE && more != DAT_FALSE)
		storm_fault(STORM_MORE, "%s: more_events is %d", evd->name, more);
	if (evd->alone && more == DAT_FALSE && rest > 0)
		storm_fault(STORM_MORE, "%s: more_events is FALSE, but %lld were left before",
			    evd->name, rest);
}

static void check_note(struct storm_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	if (event || more != DAT_TRUE)
		storm_fault(STORM_NOTIFY, "%s: a notification with %s, more_events %d", evd->name,
			    event ? "an event" : "no event", more);
	if (!flips(evd) && evd->notes > evd->empties + evd->open)
		storm_fault(STORM_NOTIFY, "%s: notification %llu, but found empty %llu times only",
			    evd->name, evd->notes + 1, evd->empties);
	evd->notes++;
}

static void enter(struct storm_evd *evd, struct call *call, const DAT_EVENT *event,
		  DAT_BOOLEAN more)
{
	bool one = call->epoch->policy != DAT_UPCALL_MANY;
	const u32 *before = NULL;
	unsigned long flags;

	spin_lock_irqsave(&evd->lock, flags);
	evd->upcalls++;
	call->random = prandom_u32_state(&evd->rnd) >> 4;
	if (evd->softirq ? !in_serving_softirq() : !in_task())
		storm_fault(STORM_CONTEXT, "%s: upcall in the wrong context (%x)", evd->name,
			    preempt_count());
	check_alone(evd, call);
	/* Upcalls of later changes may have ended since this one took its event. */
	if (one && evd->after_epoch <= call->epoch->number)
		before = evd->after;
	if (call->epoch->policy == DAT_UPCALL_NOTIFY) {
		check_note(evd, event, more);
	} else if (!event) {
		storm_fault(STORM_ONCE, "%s: an upcall without an event", evd->name);
	} else {
		if (before)
			check_more(evd, event, more);
		take_in(evd, event, before);
	}
	list_add(&call->link, &evd->running);
	spin_unlock_irqrestore(&evd->lock, flags);
}

static void leave(struct storm_evd *evd, struct call *call)
{
	unsigned long flags;

	spin_lock_irqsave(&evd->lock, flags);
	list_del(&call->link);
	tops(evd, evd->after);
	evd->after_epoch = call->epoch->number;
	evd->after_backlog = atomic64_read(&evd->posted) - evd->soft_taken;
	spin_unlock_irqrestore(&evd->lock, flags);
}

/* Wake a thief, who takes all there is. */
static void kick(struct storm_evd *evd)
{
	WRITE_ONCE(evd->kicked, true);
	wake_up_all(&test_wait);
}

static void resize(struct storm_evd *evd, int qlen)
{
	DAT_RETURN ret;

	qlen += 16;
	WRITE_ONCE(evd->qlen, min(evd->qlen, qlen));
	ret = dat_evd_resize(evd->h, qlen);
	if (ret != DAT_SUCCESS && DAT_GET_TYPE(ret) != DAT_INVALID_STATE)
		storm_fault(STORM_REFUSED, "%s: dat_evd_resize to %d: 0x%08x", evd->name, qlen,
			    ret);
}

/* What a consumer may do to its own EVD where it may sleep. */
static void meddle(struct storm_evd *evd, u32 random)
{
	DAT_RETURN ret;

	if (random % 128 == 1)
		resize(evd, random / 256 % 512);
	if (random % 256 || !(evd->phase->policies & STORM_P_OFF) || READ_ONCE(evd->settled))
		return;
	ret = dat_evd_modify_upcall(evd->h, DAT_UPCALL_DISABLE, DAT_UPCALL_SAME,
				    DAT_UPCALL_INVOC_NEW);
	if (ret != DAT_SUCCESS)
		storm_fault(STORM_REFUSED, "%s: DISABLE in an upcall: 0x%08x", evd->name, ret);
}

static void storm_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const struct storm_epoch *epoch = instance;
	struct call call = { .epoch = epoch };
	struct storm_evd *evd = epoch->evd;
	int n;

	enter(evd, &call, event, more);
	if (event)
		handle(evd, event);
	if (epoch->policy == DAT_UPCALL_NOTIFY) {
		/* Half of the notifications go on to a thread. */
		for (n = call.random % 2 * 32; n && storm_evd_take(evd, true); n--)
			;
		if (!n)
			kick(evd);
	} else if (more && call.random % 4 == 0) {
		n = call.random / 4 % 3;
		if (!storm_evd_take(evd, true)) {
			if (evd->alone)
				storm_fault(STORM_MORE, "%s: more_events was TRUE, wrongly",
					    evd->name);
			n = 0;
		}
		while (n-- && storm_evd_take(evd, true))
			;
	}
	if (!evd->softirq && flips(evd))
		meddle(evd, call.random >> 8);
	leave(evd, &call);
}

/* ---- policies ---- */

/* Upcalls are off when it returns. */
static void switch_off(struct storm_evd *evd, DAT_UPCALL_POLICY policy, DAT_UPCALL_FLAG flag,
		       bool forget)
{
	DAT_UPCALL_OBJECT none = DAT_UPCALL_NULL;
	DAT_RETURN ret;

	ret = dat_evd_modify_upcall(evd->h, policy, forget ? &none : DAT_UPCALL_SAME, flag);
	if (ret != DAT_SUCCESS)
		storm_fault(STORM_REFUSED, "%s: policy %d: 0x%08x", evd->name, policy, ret);
	evd->null_object |= forget;
	if (policy != DAT_UPCALL_TEARDOWN)
		return;
	spin_lock_irq(&evd->lock);
	if (!list_empty(&evd->running))
		storm_fault(STORM_TEARDOWN, "%s: TEARDOWN returns while an upcall runs", evd->name);
	evd->quiet = true;
	spin_unlock_irq(&evd->lock);
	storm_checked(STORM_TEARDOWN, 1);
}

static void switch_on(struct storm_evd *evd, DAT_UPCALL_POLICY policy, DAT_UPCALL_FLAG flag,
		      bool same)
{
	struct storm_epoch *epoch = &evd->epoch[evd->epoch_at];
	DAT_UPCALL_OBJECT upcall = { .upcall_func = storm_upcall };
	DAT_RETURN ret;

	same &= !evd->null_object && epoch->policy == policy;
	if (!same) {
		if (++evd->epoch_at == STORM_EPOCHS) {
			/* No upcall has one of the old objects after that. */
			switch_off(evd, DAT_UPCALL_TEARDOWN, flag, false);
			flag = DAT_UPCALL_INVOC_ANY;
			evd->epoch_at = 0;
		}
		epoch = &evd->epoch[evd->epoch_at];
		epoch->evd = evd;
		epoch->number = ++evd->epochs;
		epoch->policy = policy;
		upcall.instance_data = epoch;
	}
	spin_lock_irq(&evd->lock);
	evd->quiet = false;
	spin_unlock_irq(&evd->lock);
	ret = dat_evd_modify_upcall(evd->h, policy, same ? DAT_UPCALL_SAME : &upcall, flag);
	if (ret != DAT_SUCCESS)
		storm_fault(STORM_REFUSED, "%s: policy %d: 0x%08x", evd->name, policy, ret);
	evd->null_object = false;
}

static void flip(struct storm_evd *evd, struct rnd_state *rnd)
{
	u32 mask = evd->phase->policies, n = storm_rnd(rnd, hweight32(mask));
	DAT_UPCALL_FLAG flag = storm_rnd(rnd, 2);
	u32 random = prandom_u32_state(rnd);
	DAT_UPCALL_POLICY policy;

	if (random % 32 < 2)
		resize(evd, storm_rnd(rnd, 512));
	while (n--)
		mask &= mask - 1;
	policy = policies[__ffs(mask)];
	if (BIT(__ffs(mask)) & STORM_P_OFF)
		switch_off(evd, policy, flag, random / 32 % 4 == 0);
	else
		switch_on(evd, policy, flag, random / 32 % 2);
	evd->flips++;
}

static bool over(const struct storm_evd *evd)
{
	return kthread_should_stop() || evd->stop;
}

/* Let some events pass, or a moment: mostly awake, so that it is a short one. */
static void pace(struct storm_evd *evd, struct rnd_state *rnd, u32 events)
{
	u64 target = storm_taken(evd) + storm_rnd(rnd, events);
	int n;

	if (storm_rnd(rnd, 32) == 0) {
		storm_pause(storm_taken(evd) > target || over(evd), 2);
		return;
	}
	for (n = storm_rnd(rnd, 2000); n && storm_taken(evd) <= target && !over(evd); n--) {
		cpu_relax();
		if (n % 32 == 0)
			cond_resched();
	}
	cond_resched();
}

static void flipper(struct storm_thread *t)
{
	struct storm_evd *evd = t->arg;

	while (!over(evd)) {
		pace(evd, &t->rnd, 40);
		flip(evd, &t->rnd);
	}
}

/* Takes events beside the upcalls; all of them after a notification. */
static void thief(struct storm_thread *t)
{
	struct storm_evd *evd = t->arg;
	int n;

	while (!over(evd)) {
		if (evd->phase->thieves)
			pace(evd, &t->rnd, 100);
		else
			storm_pause(READ_ONCE(evd->kicked) || over(evd), HZ);
		if (xchg(&evd->kicked, false)) {
			while (storm_evd_take(evd, false))
				cond_resched();
		} else if (evd->phase->thieves) {
			for (n = storm_rnd(&t->rnd, 64); n && storm_evd_take(evd, false); n--)
				;
		}
	}
}

/* ---- from the beginning to the end ---- */

struct storm_evd *storm_evd_open(struct test_ia *ia, DAT_EVD_FLAGS flags, bool softirq,
				 const struct storm_phase *phase, storm_hook hook,
				 const char *name)
{
	DAT_UPCALL_OBJECT upcall = { .upcall_func = storm_upcall };
	struct kdat_evd_attr attr = KDAT_EVD_ATTR_INIT;
	struct storm_evd *evd;
	DAT_RETURN ret;

	evd = kvzalloc(sizeof(*evd), GFP_KERNEL);
	if (!evd)
		return NULL;
	snprintf(evd->name, sizeof(evd->name), "%s/%s/%s", name, softirq ? "softirq" : "process",
		 phase->name);
	evd->ia = ia;
	evd->phase = phase;
	evd->hook = hook;
	evd->softirq = softirq;
	evd->qlen = STORM_QLEN;
	evd->alone = !(phase->policies & ~(STORM_P_SINGLE | STORM_P_OFF)) && !phase->thieves;
	spin_lock_init(&evd->lock);
	INIT_LIST_HEAD(&evd->running);
	storm_rnd_init(&evd->rnd);
	evd->epoch[0].evd = evd;
	evd->epoch[0].policy = policies[__ffs(phase->policies)];
	upcall.instance_data = &evd->epoch[0];
	/* The default is what such an EVD gets without being asked. */
	if (softirq == !(flags & ~(DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG))) {
		ret = dat_evd_kcreate(ia->h, STORM_QLEN, evd->epoch[0].policy, &upcall, flags,
				      &evd->h);
	} else {
		attr.context = softirq ? KDAT_EVD_CONTEXT_SOFTIRQ : KDAT_EVD_CONTEXT_WORKQUEUE;
		ret = kdat_evd_create(ia->h, STORM_QLEN, evd->epoch[0].policy, &upcall, flags,
				      &attr, &evd->h);
	}
	/* Stream 0 is for one event that starts the rest. */
	if (!check(evd->name, ret) && !storm_evd_stream(evd, 1))
		return evd;
	dat_evd_free(evd->h);
	kvfree(evd->stream[0].seen);
	kvfree(evd);
	return NULL;
}

/* Another stream, with numbers below @max. */
int storm_evd_stream(struct storm_evd *evd, u32 max)
{
	struct storm_stream *stream;
	int n;

	for (n = 0; n < STORM_STREAMS; n++) {
		stream = &evd->stream[n];
		if (stream->seen)
			continue;
		stream->seen = kvcalloc(BITS_TO_LONGS(max + 1), sizeof(long), GFP_KERNEL);
		if (!stream->seen)
			return -ENOMEM;
		stream->max = max;
		return n;
	}
	return -ENOSPC;
}

/* Somebody flips, somebody steals. */
int storm_evd_start(struct storm_evd *evd)
{
	int i, n, err = 0;

	n = evd->phase->thieves ? STORM_THIEVES : !!(evd->phase->policies & STORM_P_NOTIFY);
	for (i = 0; i < n && !err; i++)
		err = storm_thread_start(&evd->thief[i], "thief", thief, evd, i, -1);
	if (!err && flips(evd))
		err = storm_thread_start(&evd->flipper, "flipper", flipper, evd, 0, -1);
	return err;
}

/* Wait for what must come to pass as long as something moves; false when nothing does any more. */
bool storm_wait_moving(struct storm_evd *evd, bool (*passed)(struct storm_evd *evd, u64 n), u64 n)
{
	unsigned long end = jiffies + TEST_LONG;
	u64 last = 0, now;

	while (!passed(evd, n)) {
		storm_pause(passed(evd, n), 2);
		now = storm_taken(evd) + atomic64_read(&evd->posted);
		if (now != last) {
			last = now;
			end = jiffies + TEST_LONG;
		}
		if (time_after(jiffies, end) || storm_overtime())
			return false;
	}
	return true;
}

static bool so_many_taken(struct storm_evd *evd, u64 n)
{
	return storm_taken(evd) >= n;
}

bool storm_evd_wait(struct storm_evd *evd, u64 taken)
{
	return storm_wait_moving(evd, so_many_taken, taken);
}

static void stop_threads(struct storm_evd *evd)
{
	int i;

	storm_thread_stop(&evd->flipper);
	for (i = 0; i < STORM_THIEVES; i++)
		storm_thread_stop(&evd->thief[i]);
}

/* Everything is on its way: so many events beside those that were posted. Do they come? */
void storm_evd_settle(struct storm_evd *evd, u64 others)
{
	u64 taken = others + atomic64_read(&evd->posted);
	u32 left = 0, i;

	if (evd->phase->policies & STORM_P_OFF) {
		DAT_UPCALL_POLICY last = evd->phase->policies & STORM_P_MANY ? DAT_UPCALL_MANY :
								DAT_UPCALL_SINGLE_INSTANCE;

		stop_threads(evd);
		/* No upcall switches them off any more when this has returned. */
		WRITE_ONCE(evd->settled, true);
		switch_off(evd, DAT_UPCALL_TEARDOWN, DAT_UPCALL_INVOC_NEW, false);
		/* What is queued comes with the next event, or at once. */
		if (evd->n_sources && storm_rnd(&evd->flipper.rnd, 2)) {
			switch_on(evd, last, DAT_UPCALL_INVOC_NEW, false);
			if (storm_post(evd, 0, 0) == DAT_SUCCESS)
				taken++;
			else
				switch_on(evd, last, DAT_UPCALL_INVOC_ANY, false);
		} else {
			switch_on(evd, last, DAT_UPCALL_INVOC_ANY, false);
		}
	} else {
		storm_thread_stop(&evd->flipper);
	}
	if (!storm_evd_wait(evd, taken)) {
		u64 came = storm_taken(evd);

		evd->stop = true;
		stop_threads(evd);
		while (storm_evd_take(evd, false))
			left++;
		storm_fault(left ? STORM_WAKE : STORM_ONCE,
			    "%s: %llu of %llu events came, %u are in the queue", evd->name, came,
			    taken, left);
	}
	stop_threads(evd);
	if (storm_taken(evd) != taken)
		storm_fault(STORM_ONCE, "%s: %llu events, not %llu", evd->name, storm_taken(evd),
			    taken);
	spin_lock_irq(&evd->lock);
	for (i = 0; i < STORM_STREAMS; i++) {
		if (evd->stream[i].top != evd->stream[i].taken)
			storm_fault(STORM_ONCE, "%s: %u events of stream %u, the last one is %u",
				    evd->name, evd->stream[i].taken, i, evd->stream[i].top - 1);
	}
	spin_unlock_irq(&evd->lock);
}

void storm_evd_free(struct storm_evd *evd)
{
	WRITE_ONCE(evd->freed, true);
	TRY(dat_evd_free, evd->h);
	spin_lock_irq(&evd->lock);
	if (!list_empty(&evd->running))
		storm_fault(STORM_FREE, "%s: an upcall runs after dat_evd_free", evd->name);
	evd->quiet = true;
	spin_unlock_irq(&evd->lock);
	storm_checked(STORM_FREE, 1);
}

/* The EVD goes, with all that is in it. */
void storm_evd_close(struct storm_evd *evd)
{
	int i;

	if (!evd)
		return;
	evd->stop = true;
	stop_threads(evd);
	if (!evd->freed)
		storm_evd_free(evd);
	pr_info("%s: %llu events: %llu in %llu upcalls, %u at a time, %llu inside, %llu outside; %llu flips, %llu notes, %llu times full\n",
		evd->name, evd->taken, evd->taken - evd->inside - evd->outside, evd->upcalls,
		evd->max_running, evd->inside, evd->outside, evd->flips, evd->notes,
		(u64)atomic64_read(&evd->full));
	storm_checked(STORM_ONCE, evd->taken);
	storm_checked(STORM_WAKE, evd->taken);
	storm_checked(STORM_CONTEXT, evd->upcalls);
	storm_checked(STORM_FULL, atomic64_read(&evd->full));
	storm_checked(STORM_NOTIFY, evd->notes);
	storm_checked(STORM_ORDER, evd->ordered);
	storm_checked(STORM_SINGLE, evd->single);
	storm_checked(STORM_MORE, evd->alone ? evd->upcalls : 0);
	storm_total += evd->taken;
	for (i = 0; i < STORM_STREAMS; i++)
		kvfree(evd->stream[i].seen);
	kvfree(evd);
}
