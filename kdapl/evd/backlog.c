// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The backlog of an EVD: events that wait for their consumer outside of a CQ.
 *
 * A circular buffer with three shares: one for events of streams other than DTO and RMR, if the EVD
 * has any (qlen, and one entry for the last asynchronous event); one that is filled by polling
 * ahead for posters (qlen or reserve, whichever is more); and one for connections that end
 * (reserve). There is more room for what an upcall has in hand and gives back.
 */
#include <linux/mm.h>
#include <linux/slab.h>

#include "event.h"
#include "../core/trace.h"

static struct kdapl_event *backlog_alloc(u32 size)
{
	/* the device may allow lengths that the machine has no memory for */
	return kvmalloc_array(size, sizeof(struct kdapl_event),
			      GFP_KERNEL | __GFP_NOWARN | __GFP_RETRY_MAYFAIL);
}

/* How many events of streams other than DTO and RMR an EVD may hold if its length is @qlen. */
static u32 backlog_others_max(const struct kdapl_evd *evd, u32 qlen)
{
	return evd->flags & ~KDAPL_EVD_CQ_FLAGS ? qlen : 0;
}

/**
 * kdapl_evd_grow_backlog - make room in the backlog
 * @evd: the EVD; evd->mutex held, or not published yet
 * @qlen: its queue length from now on
 * @more: completions that need room in addition to evd->reserve
 *
 * Context: may sleep.
 * Return: 0 or -ENOMEM.
 */
int kdapl_evd_grow_backlog(struct kdapl_evd *evd, u32 qlen, u32 more)
{
	u32 reserve = evd->reserve + more;
	u64 need = (u64)backlog_others_max(evd, qlen) + 1 + max(qlen, reserve) + reserve +
		   KDAPL_TAKE;
	/* grow geometrically: attaching n EPs copies the backlog O(log n) times */
	u32 size = max(need, evd->backlog_size + evd->backlog_size / 2);
	struct kdapl_event *backlog, *old;
	u32 i;

	if (need > S32_MAX)
		return -ENOMEM;
	if (need <= evd->backlog_size)
		return 0;
	backlog = backlog_alloc(size);
	if (!backlog) {
		size = need;
		backlog = backlog_alloc(size);
	}
	if (!backlog)
		return -ENOMEM;
	kdapl_evd_lock_irq(evd);
	for (i = 0; i < evd->backlog_count; i++)
		backlog[i] = *kdapl_evd_backlog_at(evd, i);
	old = evd->backlog;
	evd->backlog = backlog;
	evd->backlog_head = 0;
	evd->backlog_size = size;
	spin_unlock_irq(&evd->lock);
	kvfree(old);
	return 0;
}

/**
 * kdapl_evd_room - can the backlog take another completion?
 * @evd: the EVD; evd->lock held
 *
 * Completions must leave the share of other streams free, and the entry for the last
 * asynchronous event.
 *
 * Return: true if it can.
 */
bool kdapl_evd_room(const struct kdapl_evd *evd)
{
	u32 others = max_t(int, (int)backlog_others_max(evd, evd->qlen) - (int)evd->backlog_others,
			   0);

	return evd->backlog_count + others + 1 < evd->backlog_size;
}

/* No room for an event of a stream other than DTO and RMR. evd->lock held. */
static bool backlog_others_full(const struct kdapl_evd *evd)
{
	return evd->backlog_others + evd->promised >= evd->qlen || evd->closing;
}

/**
 * kdapl_evd_backlog_put - append an event that is known to fit
 * @evd: the EVD; evd->lock held
 * @ev: the event
 */
void kdapl_evd_backlog_put(struct kdapl_evd *evd, const struct kdapl_event *ev)
{
	u32 pos = evd->backlog_head + evd->backlog_count;

	if (pos >= evd->backlog_size)
		pos -= evd->backlog_size;
	kdapl_event_copy(&evd->backlog[pos], ev);
	evd->backlog_count++;
	evd->backlog_others += kdapl_event_other(ev);
	evd->backlog_signalled += ev->signalled;
}

/* Put a completion before the oldest event; there is room. evd->lock held. */
static void backlog_put_front(struct kdapl_evd *evd, const struct kdapl_event *ev)
{
	if (WARN_ON_ONCE(evd->backlog_count >= evd->backlog_size))
		return;
	evd->backlog_head = (evd->backlog_head ?: evd->backlog_size) - 1;
	kdapl_event_copy(&evd->backlog[evd->backlog_head], ev);
	evd->backlog_count++;
	evd->backlog_signalled += ev->signalled;
}

/**
 * kdapl_evd_give_back - put taken completions whose upcalls have not begun into the backlog
 * @evd: the EVD; evd->lock held
 *
 * They were in the CQs together, so there is room for them. A consumer that makes this happen
 * often, by dat_evd_dequeue() in upcalls, is given one at a time.
 */
void kdapl_evd_give_back(struct kdapl_evd *evd)
{
	const struct kdapl_taken *taken = &evd->taken[evd->ntaken];
	struct kdapl_event ev = {
		.number = DAT_DTO_COMPLETION_EVENT,
		.signalled = true,
	};
	int left;

	lockdep_assert_held(&evd->lock);
	left = atomic_xchg(&evd->untold, 0);
	/* fast_tell_all() has counted all but the last one */
	evd->upcall_seq -= left - 1;
	for (; left; left--) {
		taken--;
		ev.conn = taken->wq->conn;
		ev.buf = NULL;
		if (ev.conn->pool && taken->wq->recv) {
			ev.conn->srq_bufs_held++;
			kdapl_pool_owe(ev.conn->pool, 1);
			ev.buf = KDAPL_BUF_FREED;
		}
		kdapl_event_taken(&ev.data.dto_completion_event_data, taken);
		backlog_put_front(evd, &ev);
	}
	evd->take = 1;
	evd->take_good = 0;
}

/**
 * kdapl_evd_backlog_add - append an event to the backlog
 * @evd: the EVD; evd->lock held
 * @ev: the event
 *
 * Return: false when it does not fit: the backlog is full or, for events of
 * streams other than DTO and RMR, the consumer's queue length is reached.
 */
bool kdapl_evd_backlog_add(struct kdapl_evd *evd, const struct kdapl_event *ev)
{
	lockdep_assert_held(&evd->lock);
	if (kdapl_event_other(ev)) {
		if (backlog_others_full(evd))
			return false;
	} else if (!kdapl_evd_room(evd)) {
		return false;
	}
	kdapl_evd_backlog_put(evd, ev);
	return true;
}

/**
 * kdapl_evd_backlog_keep - append a completion that has left its CQ already
 * @evd: the EVD; evd->lock held
 * @ev: the event, for which there is room, since it was made; dropped at the null EVD
 */
void kdapl_evd_backlog_keep(struct kdapl_evd *evd, const struct kdapl_event *ev)
{
	if (evd->discard || WARN_ON_ONCE(!kdapl_evd_backlog_add(evd, ev)))
		kdapl_event_release(ev);
}

/**
 * kdapl_evd_backlog_take - take the oldest event of the backlog
 * @evd: the EVD; evd->lock held; the backlog is not empty
 * @ev: filled
 */
void kdapl_evd_backlog_take(struct kdapl_evd *evd, struct kdapl_event *ev)
{
	kdapl_event_copy(ev, &evd->backlog[evd->backlog_head]);
	if (++evd->backlog_head == evd->backlog_size)
		evd->backlog_head = 0;
	evd->backlog_count--;
	evd->backlog_signalled -= ev->signalled;
	if (kdapl_event_other(ev)) {
		evd->backlog_others--;
		evd->overflow = false;
	}
}

/**
 * kdapl_evd_may_poll_ahead - may another completion be moved to the backlog?
 * @evd: the EVD; evd->lock held
 * @teardown: for a connection that ends
 *
 * Return: true if it may.
 */
bool kdapl_evd_may_poll_ahead(const struct kdapl_evd *evd, bool teardown)
{
	if (!kdapl_evd_room(evd))
		return false;
	return teardown ||
	       evd->backlog_count - evd->backlog_others < max_t(u32, evd->qlen, evd->reserve);
}

/**
 * kdapl_evd_full - is there no room for an event of a stream other than DTO and RMR?
 * @evd: the EVD
 *
 * Context: any, without evd->lock.
 * Return: true if kdapl_evd_queue() would have failed.
 */
bool kdapl_evd_full(struct kdapl_evd *evd)
{
	unsigned long flags;
	bool full;

	flags = kdapl_evd_lock_irqsave(evd);
	full = backlog_others_full(evd);
	spin_unlock_irqrestore(&evd->lock, flags);
	return full;
}

/**
 * kdapl_evd_promise - keep a place free for an event that is queued later
 * @evd: the EVD
 *
 * For an event of a stream other than DTO and RMR.
 *
 * Context: any, without evd->lock.
 * Return: true if there was one; kdapl_evd_queue_promised() or kdapl_evd_unpromise() must follow.
 */
bool kdapl_evd_promise(struct kdapl_evd *evd)
{
	unsigned long flags;
	bool room;

	flags = kdapl_evd_lock_irqsave(evd);
	room = !backlog_others_full(evd);
	evd->promised += room;
	spin_unlock_irqrestore(&evd->lock, flags);
	return room;
}

/**
 * kdapl_evd_unpromise - undo kdapl_evd_promise()
 * @evd: the EVD
 *
 * Context: any, without evd->lock.
 */
void kdapl_evd_unpromise(struct kdapl_evd *evd)
{
	unsigned long flags;

	flags = kdapl_evd_lock_irqsave(evd);
	evd->promised--;
	spin_unlock_irqrestore(&evd->lock, flags);
}

/**
 * kdapl_evd_queue_promised - queue an event in the place that was kept for it
 * @evd: the EVD, from kdapl_evd_promise()
 * @ev: the event
 *
 * The place may be the one beyond the length, if IA_CATASTROPHIC has taken that of the event.
 *
 * Context: any, without evd->lock.
 * Return: false only when the EVD has been freed meanwhile.
 */
bool kdapl_evd_queue_promised(struct kdapl_evd *evd, const struct kdapl_event *ev)
{
	unsigned long flags;
	bool queued;

	flags = kdapl_evd_lock_irqsave(evd);
	evd->promised--;
	queued = !evd->closing;
	if (queued)
		kdapl_evd_backlog_put(evd, ev);
	spin_unlock_irqrestore(&evd->lock, flags);
	if (queued)
		kdapl_evd_sched(evd);
	return queued;
}

/* Queue an event, unless @owner has been freed. False when the EVD is full. */
static bool backlog_queue(struct kdapl_evd *evd, const struct kdapl_event *ev,
			  const struct kdapl_obj *owner)
{
	bool queued, report = false;
	unsigned long flags;

	flags = kdapl_evd_lock_irqsave(evd);
	if (owner && !READ_ONCE(owner->live)) {
		spin_unlock_irqrestore(&evd->lock, flags);
		return true;
	}
	queued = kdapl_evd_backlog_add(evd, ev);
	if (!queued && kdapl_event_connection(ev) && !evd->closing) {
		report = !evd->overflow;
		evd->overflow = true;
	}
	spin_unlock_irqrestore(&evd->lock, flags);
	if (queued) {
		kdapl_evd_sched(evd);
	} else if (report) {
		trace_kdapl_evd_overflow(evd->obj.handle, ev->number, evd->qlen);
		pr_err_ratelimited("%s: an EVD is full (%d events), connection events are lost: dequeue them or make it longer\n",
				   evd->obj.ia->name, evd->qlen);
		kdapl_ia_async(evd->obj.ia, evd->obj.handle, DAT_ASYNC_ERROR_EVD_OVERFLOW,
			       DAT_EVD_OVERFLOW_ERROR);
	}
	return queued;
}

/**
 * kdapl_evd_queue - queue an event of a stream other than DTO and RMR
 * @evd: the EVD
 * @ev: the event
 *
 * Connection requests and software events that do not fit are refused by the caller; asynchronous
 * events go through kdapl_evd_queue_async().
 *
 * Context: any, without evd->lock.
 * Return: false when the EVD is full and the event was dropped.
 */
bool kdapl_evd_queue(struct kdapl_evd *evd, const struct kdapl_event *ev)
{
	return backlog_queue(evd, ev, NULL);
}

/**
 * kdapl_evd_queue_of - queue a connection event, unless its EP has been freed
 * @evd: the EVD
 * @ev: the event
 * @ep: the EP
 *
 * Who frees the EP retires it and then calls kdapl_evd_drop(). Since both look under the lock,
 * that finds the event, or this finds the EP dead.
 *
 * An event that does not fit is lost. The asynchronous EVD reports that, but only once until there
 * is room again.
 *
 * Context: any, without evd->lock.
 */
void kdapl_evd_queue_of(struct kdapl_evd *evd, const struct kdapl_event *ev,
			const struct kdapl_obj *ep)
{
	backlog_queue(evd, ev, ep);
}

/**
 * kdapl_evd_queue_async - queue an asynchronous event
 * @evd: the EVD
 * @ia: IA the event comes from
 * @ev: the event
 *
 * One that does not fit ends the asynchronous stream of the EVD: the consumer
 * finds IA_CATASTROPHIC in its place and none after it.
 *
 * Context: any, without evd->lock.
 */
void kdapl_evd_queue_async(struct kdapl_evd *evd, struct kdapl_ia *ia,
			   const struct kdapl_event *ev)
{
	struct kdapl_event last = {
		.number = DAT_ASYNC_ERROR_IA_CATASTROPHIC,
		.signalled = true,
	};
	unsigned long flags;
	bool died = false;

	last.data.asynch_error_event_data.dat_handle = ia->obj.handle;
	last.data.asynch_error_event_data.reason = DAT_IA_CATASTROPHIC_ERROR;
	flags = kdapl_evd_lock_irqsave(evd);
	if (!evd->async_dead && !evd->closing && !kdapl_evd_backlog_add(evd, ev)) {
		evd->async_dead = true;
		died = true;
		kdapl_evd_backlog_put(evd, &last);
	}
	spin_unlock_irqrestore(&evd->lock, flags);
	if (died) {
		trace_kdapl_evd_overflow(evd->obj.handle, ev->number, evd->qlen);
		pr_err("%s: asynchronous EVD is full (%d events), no more of them are reported: close the IA, open it with a longer EVD, and dequeue it\n",
		       ia->name, evd->qlen);
	}
	kdapl_evd_sched(evd);
}
