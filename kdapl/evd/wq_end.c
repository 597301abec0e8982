// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * When a work queue has ended: the device will give nothing back any more.
 */
#include "event.h"

/**
 * kdapl_wq_end - a work queue has ended
 * @evd: its EVD; evd->lock held
 * @wq: the work queue
 *
 * What is left in it is reported from its tail.
 */
void kdapl_wq_end(struct kdapl_evd *evd, struct kdapl_wq *wq)
{
	if (wq->ended)
		return;
	WRITE_ONCE(wq->ended, true);
	wq->slow |= KDAPL_SLOW_ALWAYS;
	smp_mb();	/* before head is read again; pairs with the one in kdapl_post_flush() */
	kdapl_wq_retire_all(wq);
	if (unlikely(wq->sinks))
		kdapl_wq_sync_rest(wq);
	kdapl_wq_mark_ready(evd, wq);
	mod_delayed_work(kdapl_misc_wq, &wq->conn->end_work, 0);
}

/**
 * kdapl_wq_end_orphan - the same after the EVD was freed
 * @wq: the work queue; nothing else uses it, and nothing will be reported
 */
void kdapl_wq_end_orphan(struct kdapl_wq *wq)
{
	WRITE_ONCE(wq->ended, true);
	kdapl_wq_retire_all(wq);
	if (unlikely(wq->sinks))
		kdapl_wq_sync_rest(wq);
}

/**
 * kdapl_wq_check_recv_end - end a receive queue when the device has returned all it was given
 * @evd: its EVD; evd->lock held
 * @wq: the receive queue
 */
void kdapl_wq_check_recv_end(struct kdapl_evd *evd, struct kdapl_wq *wq)
{
	/* pairs with the release in kdapl_wq_set_mode(): posted is final then */
	if (smp_load_acquire(&wq->mode) == KDAPL_WQ_FLUSHING && !wq->conn->pool &&
	    kdapl_conn_stopping(wq->conn) && wq->reaped == READ_ONCE(wq->posted))
		kdapl_wq_end(evd, wq);
}

/**
 * kdapl_wq_check_marker - is everything done that was posted before the marker?
 * @evd: the EVD; evd->lock held
 * @wq: send work queue
 *
 * Where Reads complete out of order, some may still be under way when the marker has completed.
 */
void kdapl_wq_check_marker(struct kdapl_evd *evd, struct kdapl_wq *wq)
{
	const struct kdapl_wqe *wqe;
	u32 pos;

	if (!wq->marker_done)
		return;
	for (pos = wq->tail; wq->ooo && pos != wq->marker_pos; pos++) {
		wqe = &wq->wqe[pos & wq->mask];
		if (wqe->state == KDAPL_WQE_POSTED && (wqe->flags & KDAPL_WQE_SIGNALED))
			return;
	}
	wq->marker_done = false;
	/* conn_stop() either makes it the last one before this, or posts another one */
	if (cmpxchg(&wq->marker, KDAPL_MARKER_DRAIN, KDAPL_MARKER_NONE) == KDAPL_MARKER_DRAIN)
		kdapl_conn_end_drained(wq->conn);
	else
		kdapl_wq_end(evd, wq);	/* marker stays set: no other may be posted */
}

/**
 * kdapl_wq_try_end - end a work queue if the device has given everything back
 * @wq: a work queue of a connection that is stopping
 *
 * Ends one that no completion will end, since nothing was posted.
 *
 * Context: may sleep.
 * Return: true if it has ended, now or before.
 */
bool kdapl_wq_try_end(struct kdapl_wq *wq)
{
	struct kdapl_evd *evd = kdapl_cq_evd_get(wq->cq);

	if (!evd) {
		kdapl_wq_end_orphan(wq);
		return true;
	}
	kdapl_evd_lock_irq(evd);
	wq->slow |= KDAPL_SLOW_ALWAYS;	/* each completion may be the last one now */
	if (wq->recv)
		kdapl_wq_check_recv_end(evd, wq);
	else if (READ_ONCE(wq->no_marker) || wq->tail == READ_ONCE(wq->head))
		kdapl_wq_end(evd, wq);
	spin_unlock_irq(&evd->lock);
	kdapl_evd_sched(evd);	/* Receives that came before the connection may wait */
	kdapl_obj_put(&evd->obj);
	return READ_ONCE(wq->ended);
}

/**
 * kdapl_wq_bury - report nothing of a work queue any more
 * @wq: of a connection that has ended
 *
 * What late posting calls add is dropped as well.
 *
 * Context: may sleep.
 * Return: how many completions it had to report.
 */
u32 kdapl_wq_bury(struct kdapl_wq *wq)
{
	struct kdapl_evd *evd = kdapl_cq_evd_get(wq->cq);
	unsigned int status;
	u32 pos, n = 0;

	if (!evd)
		return 0;
	kdapl_evd_lock_irq(evd);
	wq->dead = true;
	list_del_init(&wq->ready);
	for (pos = wq->tail; pos != READ_ONCE(wq->head); pos++) {
		const struct kdapl_wqe *wqe = &wq->wqe[pos & wq->mask];

		n += !evd->discard && kdapl_wqe_outcome(wq, wqe, &status) &&
		     kdapl_wqe_reported(wqe, status);
	}
	spin_unlock_irq(&evd->lock);
	kdapl_obj_put(&evd->obj);
	return n;
}
