// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The end of a connection, from the first reason to the last byte of its memory.
 *
 * Whatever ends a connection or an attempt calls kdapl_conn_end() with the connection event it
 * stands for; the first reason wins. A work item then stops posting, moves the QP to ERR, tells
 * the CM, and waits until the device has given everything back. Receives are counted. Suppressed
 * requests that succeeded have no completion of their own, so a marker is posted behind the last
 * request. Only then does the EP go to DISCONNECTED, and the event is queued: exactly once, after
 * every successful completion. If the device gives nothing back for END_TIMEOUT, the QP is
 * destroyed, which also proves that nothing more will come.
 *
 * dat_ep_reset() and dat_ep_free() hand a connection that has ended to the reaper, which
 * destroys its cm_id and QP in the background.
 *
 * ep_end.pml is a model of the end, with the rules that make it right.
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "ep.h"
#include "../core/trace.h"

#ifdef KDAPL_KUNIT
/* The device has failed, and is about to end a connection. */
void (*kdapl_test_dev_fail)(struct kdapl_conn *conn);
#endif

#define END_TIMEOUT	(5 * HZ)	/* without progress */
#define SLOW_TIMEOUT	(60 * HZ)	/* the same, no Read outstanding: slow, not deadlocked */
#define END_POLL	(HZ / 20)	/* poll, even if an upcall keeps the EVD from it */
#define CM_DOWN_TIMEOUT	(2 * HZ)
#define REAP_TIMEOUT	(HZ / 4)
#define LAST_WQE_TIMEOUT	(HZ / 10)	/* not every device raises the event (D-15) */
#define FORGOTTEN_READ_TIMEOUT	(HZ / 10)

/**
 * kdapl_conn_put - drop a memory reference
 * @conn: the connection
 *
 * Posting calls may still look at the work queues of a connection that has been replaced, so the
 * reaper keeps its reference for a grace period.
 *
 * Context: may sleep if the reference is the last one.
 */
void kdapl_conn_put(struct kdapl_conn *conn)
{
	if (!refcount_dec_and_test(&conn->ref))
		return;
	/* whoever had the last reference may have queued these once more, in vain */
	cancel_delayed_work_sync(&conn->end_work);
	cancel_delayed_work_sync(&conn->timer);
	kdapl_wq_free(conn->sq);
	kdapl_wq_free(conn->rq);
	kfree(conn->pdata);
	kfree(conn->connect_pdata);
	kdapl_obj_put(&conn->ep->obj);
	kdapl_device_put(conn->dev);
	kfree(conn);
}

/*
 * Begin to wait for a device. A slow device is not a hung one: the time starts anew whenever
 * something has come back (kdapl_conn_progress()). The caller must keep polling the CQs.
 */
static void conn_patience_start(struct kdapl_patience *patience, const struct kdapl_conn *conn,
				unsigned long limit)
{
	patience->seen = kdapl_conn_progress(conn);
	patience->limit = limit;
	patience->deadline = jiffies + limit;
}

/*
 * Has the device made no progress for too long? If not, @patience->deadline is when to ask again.
 * One caller at a time.
 */
static bool conn_patience_over(struct kdapl_patience *patience, const struct kdapl_conn *conn)
{
	u32 now = kdapl_conn_progress(conn);

	if (patience->limit && now != patience->seen) {
		patience->seen = now;
		patience->deadline = jiffies + patience->limit;
	}
	return !time_before(jiffies, patience->deadline);
}

/* Has an ending connection given nothing back for @time? After conn_patience_over(). */
static bool conn_idle_for(const struct kdapl_conn *conn, unsigned long time)
{
	return !time_before(jiffies, conn->flush.deadline - conn->flush.limit + time);
}

/* Jiffies that a graceful disconnect may go without progress; 0: no limit. */
static unsigned long conn_drain_limit(const struct kdapl_conn *conn)
{
	const struct kdapl_wq *wq = conn->sq;

	if (!conn->dev->caps.reads_deadlock)
		return 0;
	/* with Reads under way the two ends may deadlock there (D-14) */
	return READ_ONCE(wq->reads) != READ_ONCE(wq->reads_done) ? END_TIMEOUT : SLOW_TIMEOUT;
}

/**
 * kdapl_conn_drain_sq - end the connection when the requests under way are done
 * @conn: connection of an EP that just went to DISCONNECT_PENDING
 *
 * Context: any.
 */
void kdapl_conn_drain_sq(struct kdapl_conn *conn)
{
	struct kdapl_wq *wq = conn->sq;
	bool draining = false;
	unsigned long flags;
	int ret = 0;

	spin_lock_irqsave(&wq->lock, flags);
	/*
	 * If the state is not ENDING under sq->lock, conn_stop() has not taken this lock yet, and
	 * the QP is still there.
	 */
	if (READ_ONCE(conn->dev->gone)) {
		ret = -ENODEV;	/* nothing is posted any more */
	} else if (!kdapl_conn_stopping(conn) && !conn->sq_draining) {
		ret = kdapl_wq_post_marker(wq, KDAPL_MARKER_DRAIN);
		draining = !ret;
		if (draining) {
			conn_patience_start(&conn->sq_drain, conn, conn_drain_limit(conn));
			/* pairs with the acquire in conn_drain_stuck() */
			smp_store_release(&conn->sq_draining, true);
		}
	}
	spin_unlock_irqrestore(&wq->lock, flags);
	if (draining)
		kdapl_evd_ending(conn->request_evd, 1);
	if (ret)
		kdapl_conn_end_drained(conn);
	else if (draining)
		mod_delayed_work(kdapl_misc_wq, &conn->timer, END_POLL);
}

/* Does a graceful disconnect make no progress any more? conn->lock held, state UP. */
static bool conn_drain_stuck(struct kdapl_conn *conn)
{
	struct kdapl_patience *drain = &conn->sq_drain;

	lockdep_assert_held(&conn->lock);
	/* pairs with the release in kdapl_conn_drain_sq() */
	if (!smp_load_acquire(&conn->sq_draining))
		return false;
	kdapl_evd_poll_waiting(conn->request_evd);	/* an upcall may keep the EVD from it */
	/* the Reads are done: the two ends cannot deadlock any more */
	if (drain->limit == END_TIMEOUT && conn_drain_limit(conn) == SLOW_TIMEOUT)
		conn_patience_start(drain, conn, SLOW_TIMEOUT);
	if (drain->limit && conn_patience_over(drain, conn))
		return true;
	queue_delayed_work(kdapl_misc_wq, &conn->timer, END_POLL);
	return false;
}

static void conn_work_timer(struct work_struct *work)
{
	struct kdapl_conn *conn = container_of(to_delayed_work(work), struct kdapl_conn, timer);

	mutex_lock(&conn->lock);
	if (conn->state == KDAPL_CONN_UP && conn_drain_stuck(conn))
		kdapl_conn_end(conn, DAT_CONNECTION_EVENT_DISCONNECTED);
	else if (kdapl_conn_attempting(conn))
		kdapl_conn_end(conn, conn->passive ? DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR :
						     DAT_CONNECTION_EVENT_TIMED_OUT);
	mutex_unlock(&conn->lock);
}

/*
 * Destroy cm_id and QP of a connection that stops, in this order. conn->lock is not held: the
 * provider may wait for a CM handler that waits for the lock. @keep_id: keep the cm_id so that the
 * CM can go on sending the DREQ; not on iWARP, where the cm_id holds the QP.
 */
static void conn_destroy_verbs(struct kdapl_conn *conn, bool keep_id)
{
	struct rdma_cm_id *id;
	struct ib_qp *qp;

	/* a caller that finds them gone must not go on before they are destroyed */
	mutex_lock(&conn->destroy_lock);
	mutex_lock(&conn->lock);
	id = keep_id ? NULL : conn->cm_id;
	qp = conn->qp;
	if (id)
		conn->cm_id = NULL;
	conn->qp = NULL;
	mutex_unlock(&conn->lock);
	if (id)
		rdma_destroy_id(id);
	if (qp)
		ib_destroy_qp(qp);
	mutex_unlock(&conn->destroy_lock);
}

/* Stop posting, move the QP to ERR, tell the peer. conn->lock held. */
static void conn_stop(struct kdapl_conn *conn, bool removal)
{
	struct kdapl_ep *ep = conn->ep;
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	struct kdapl_wq *wq = conn->sq;
	bool idle = conn->state == KDAPL_CONN_IDLE;
	bool refuse;
	int ret = 0;

	lockdep_assert_held(&conn->lock);
	if (atomic_read(&conn->reason) != KDAPL_END_NO_EVENT)
		trace_kdapl_conn_end(conn->handle, conn->qpn, atomic_read(&conn->reason));
	removal |= READ_ONCE(conn->dev->gone);
	kdapl_conn_step(conn, KDAPL_CONN_IN_STOP);
	conn_patience_start(&conn->flush, conn, END_TIMEOUT);
	conn->pool_deadline = jiffies + LAST_WQE_TIMEOUT;

	spin_lock_irq(&ep->lock);
	refuse = ep->state != DAT_EP_STATE_CONNECTED && ep->state != DAT_EP_STATE_DISCONNECTED;
	/* on return no post to the device is under way, but on a serial send queue one may be */
	kdapl_wq_set_mode(conn->sq, refuse ? KDAPL_WQ_REFUSE : KDAPL_WQ_FLUSHING);
	kdapl_wq_set_mode(conn->rq, KDAPL_WQ_FLUSHING);
	spin_unlock_irq(&ep->lock);
	kdapl_wq_quiesce(conn->sq);	/* now none is there, either */

	ret = ib_modify_qp(conn->qp, &attr, IB_QP_STATE);
	if (conn->cm_id && conn->cm_up)
		rdma_disconnect(conn->cm_id);
	if (!removal && !ret) {
		spin_lock_irq(&wq->lock);
		ret = kdapl_wq_post_marker(wq, KDAPL_MARKER_LAST);
		if (ret > 0)	/* what is posted from now on needs no marker */
			WRITE_ONCE(wq->no_marker, true);
		spin_unlock_irq(&wq->lock);
	}
	if (removal || ret < 0)
		conn_patience_start(&conn->flush, conn, 0);	/* destroy the QP at once */
	if (removal || conn->dev->caps.no_last_wqe || idle)	/* idle: has no buffer */
		conn->pool_deadline = jiffies;

	/*
	 * conn->sq_draining cannot change any more: kdapl_conn_drain_sq() tests the state
	 * under sq->lock, which we have taken since it changed.
	 */
	if (!conn->sq_draining)
		kdapl_evd_ending(conn->request_evd, 1);
	kdapl_evd_ending(conn->recv_evd, 1);
}

/*
 * May the QP be destroyed although not everything has come back? Only when it is gone is it known
 * which buffers it has taken from an SRQ. Before that the device gets a little time to complete
 * them (D-15).
 */
static bool conn_may_destroy(struct kdapl_conn *conn, bool sq_ended, bool last_wqe, bool late)
{
	/* not while the QP is inside rdma_connect() (D-17) or rdma_accept() */
	if (conn->cm_busy && conn->qp)
		return false;
	if (conn->pool && sq_ended &&
	    (last_wqe || !time_before(jiffies, conn->pool_deadline)))
		return true;
	/* the device forgets a Read whose response was arriving; only the marker completes */
	if (conn->dev->caps.reads_forgotten && READ_ONCE(conn->sq->marker_done) &&
	    conn_idle_for(conn, FORGOTTEN_READ_TIMEOUT))
		return true;
	return late;
}

static void conn_report_timeout(struct kdapl_conn *conn)
{
	struct kdapl_ia *ia = conn->ep->obj.ia;

	pr_warn("%s: QP %u: no completion for %u s after the move to ERR, work requests still outstanding: destroying the QP\n",
		ia->name, conn->qp ? conn->qp->qp_num : 0, END_TIMEOUT / HZ);
	kdapl_ia_async(ia, conn->handle, DAT_ASYNC_ERROR_TIMED_OUT, DAT_EP_OTHER_ERROR);
}

/*
 * Move to ENDED if everything has come back, or never will. conn->lock held, and dropped in
 * between; state ENDING. @flush_unsignaled: if the QP must be destroyed first, report unsignaled
 * requests without a completion FLUSHED, instead of taking them as successful.
 */
static bool conn_try_finish(struct kdapl_conn *conn, bool flush_unsignaled)
{
	/*
	 * Read before polling: if LAST_WQE has come, this poll finds all completions before it, and
	 * the QP is destroyed after that.
	 */
	bool last_wqe = READ_ONCE(conn->last_wqe);
	bool sq_ended, rq_ended, late;

	kdapl_evd_poll_waiting(conn->request_evd);
	if (conn->recv_evd != conn->request_evd)
		kdapl_evd_poll_waiting(conn->recv_evd);
	/* call both: each looks for the end of its own work queue */
	sq_ended = kdapl_wq_try_end(conn->sq);
	rq_ended = kdapl_wq_try_end(conn->rq);
	late = conn_patience_over(&conn->flush, conn);
	if (conn->pool && sq_ended && conn->cm_busy && conn->qp && !conn->passive && !conn->cm_up) {
		/* never connected, so it has no buffer; the reaper waits for rdma_connect() */
		kdapl_wq_force_end(conn->rq, flush_unsignaled);
	} else if (!sq_ended || !rq_ended) {
		if (!conn_may_destroy(conn, sq_ended, last_wqe, late))
			return false;
		if (conn->flush.limit && !conn->discard && !(conn->pool && sq_ended) && late)
			conn_report_timeout(conn);
		mutex_unlock(&conn->lock);
		conn_destroy_verbs(conn, !conn->dev->iwarp);
		mutex_lock(&conn->lock);
		if (conn->state == KDAPL_CONN_ENDED)
			return false;	/* removal has finished it meanwhile */
		if (!sq_ended)
			kdapl_wq_force_end(conn->sq, flush_unsignaled);
		kdapl_wq_force_end(conn->rq, flush_unsignaled);
	}
	kdapl_wq_report_rest(conn->sq);
	kdapl_wq_report_rest(conn->rq);
	kdapl_pool_detach(conn);
	kdapl_evd_ending(conn->request_evd, -1);
	kdapl_evd_ending(conn->recv_evd, -1);
	return kdapl_conn_step(conn, KDAPL_CONN_IN_FINISHED);
}

/*
 * Destroy the cm_id of an attempt that ended without a connection, so that the peer learns of it.
 * This comes after the end has been reported, because it may take as long as the CM keeps
 * repeating a message. If rdma_connect() has not returned (soft-iWARP), the reaper gets the id.
 */
static void conn_destroy_dead_id(struct kdapl_conn *conn)
{
	struct rdma_cm_id *id = NULL;

	/* under this lock the id is either still there or gone for good */
	mutex_lock(&conn->destroy_lock);
	mutex_lock(&conn->lock);
	if (conn->state == KDAPL_CONN_ENDED && !conn->cm_up && !conn->cm_busy) {
		id = conn->cm_id;
		conn->cm_id = NULL;
	}
	mutex_unlock(&conn->lock);
	if (id)
		rdma_destroy_id(id);
	mutex_unlock(&conn->destroy_lock);
}

/*
 * May the device still have to acknowledge what a drained connection has received? Not after
 * the grace period of kdapl_conn_end_drained().
 */
static bool conn_owes_ack(const struct kdapl_conn *conn)
{
	unsigned long ack_gp;

	/* the reason first: it is set last */
	if (atomic_read_acquire(&conn->reason) != DAT_CONNECTION_EVENT_DISCONNECTED)
		return false;
	ack_gp = READ_ONCE(conn->ack_gp);
	return ack_gp && !poll_state_synchronize_rcu(ack_gp);
}

static void conn_work_end(struct work_struct *work)
{
	struct kdapl_conn *conn = container_of(to_delayed_work(work), struct kdapl_conn, end_work);
	unsigned int noio = memalloc_noio_save();	/* part of every reconnect (D-32) */
	bool finished = false, ending;

	mutex_lock(&conn->lock);
	ending = conn->state < KDAPL_CONN_ENDING && atomic_read(&conn->reason) != KDAPL_END_NONE;
	if (ending && conn_owes_ack(conn)) {
		start_poll_synchronize_rcu();
		queue_delayed_work(kdapl_misc_wq, &conn->end_work, 1);
	} else if (ending) {
		/* no CM event explained the flush in time: it was an error */
		atomic_cmpxchg(&conn->reason, KDAPL_END_SUSPECT, DAT_CONNECTION_EVENT_BROKEN);
		conn_stop(conn, false);
	}
	if (conn->state == KDAPL_CONN_ENDING) {
		finished = conn_try_finish(conn, true);
		if (!finished)
			queue_delayed_work(kdapl_misc_wq, &conn->end_work, END_POLL);
	}
	mutex_unlock(&conn->lock);
	if (finished) {
		kdapl_mrs_replace_stale(conn->ep->obj.ia);
		kdapl_ep_ended(conn);
		complete_all(&conn->ended);
	}
	/* this may take long, but only the reaper waits for it */
	conn_destroy_dead_id(conn);
	memalloc_noio_restore(noio);
}

/**
 * kdapl_conn_drop_events - drop the events of a connection, queued and to come
 * @conn: the connection
 * @all_events: connection events, too
 *
 * Context: any.
 */
void kdapl_conn_drop_events(struct kdapl_conn *conn, bool all_events)
{
	DAT_EP_HANDLE ep = all_events ? conn->handle : DAT_HANDLE_NULL;

	kdapl_conn_discard(conn);
	if (conn->pool)
		kdapl_evd_watch(conn);
	kdapl_evd_drop(conn->request_evd, conn, ep);
	kdapl_evd_drop(conn->recv_evd, conn, ep);
	if (all_events)
		kdapl_ep_drop_events(conn->ep);
}

/* Log completions that dat_ep_free() or dat_ep_reset() has taken away from the consumer. */
static void conn_note_dropped(struct kdapl_conn *conn)
{
	u32 n = atomic_read(&conn->dropped);

	if (!n || !conn->owed)
		return;
	kdapl_count_many(dropped, n);
	pr_info_ratelimited("%s: QP %u: %u undelivered completions discarded when the EP was freed or reset%s; drain an EP before it is freed\n",
			    conn->ep->obj.ia->name, conn->qpn, n,
			    conn->pool ? " (possibly including SRQ buffers)" : "");
}

/**
 * kdapl_conn_reap - release a connection that has ended
 * @conn: no longer reachable through its EP; gives up the EP's reference
 *
 * Posting calls that found it before may still look at its work queues. Since these are not live
 * any more, such a call touches neither QP nor CQ. The memory outlives it, so there is no need to
 * wait for a grace period here (D-92).
 *
 * On return no EVD has anything of the connection. The rest happens in the background, because
 * soft-iWARP can hold QP and cm_id for as long as a TCP connect takes.
 *
 * Context: may sleep; without conn->lock.
 */
void kdapl_conn_reap(struct kdapl_conn *conn)
{
	struct kdapl_device *dev = conn->dev;

	/* the end has been reported, so a better reason comes too late */
	atomic_set(&conn->reason, KDAPL_END_NO_EVENT);
	kdapl_conn_drop_events(conn, false);
	atomic_add(kdapl_wq_bury(conn->sq), &conn->dropped);
	atomic_add(kdapl_wq_bury(conn->rq), &conn->dropped);
	conn_note_dropped(conn);
	kdapl_evd_detach(conn->request_evd, conn->sq);
	kdapl_evd_detach(conn->recv_evd, conn->rq);
	kdapl_dev_conn_leaves(dev, &conn->dev_conn);
	queue_work(kdapl_reap_wq, &conn->reap_work);
}

/**
 * kdapl_conn_wait_reaped - give the reaper a little time
 * @conn: from kdapl_conn_reap(), with a reference of the caller
 *
 * It usually needs milliseconds; if the peer has vanished it takes longer.
 *
 * Context: may sleep.
 */
void kdapl_conn_wait_reaped(struct kdapl_conn *conn)
{
	if (!READ_ONCE(conn->cm_busy))
		wait_for_completion_timeout(&conn->gone, REAP_TIMEOUT);
}

/**
 * kdapl_conn_release - reap a connection that has ended, and wait a little
 * @conn: no longer reachable through its EP; gives up the EP's reference
 *
 * Context: may sleep; without conn->lock.
 */
void kdapl_conn_release(struct kdapl_conn *conn)
{
	refcount_inc(&conn->ref);
	kdapl_conn_reap(conn);
	kdapl_conn_wait_reaped(conn);
	kdapl_conn_put(conn);
}

/* Destroy cm_id and QP of a connection that has ended. May wait for rdma_connect(). */
static void conn_release_verbs(struct kdapl_conn *conn)
{
	/* in this order: retry_work queues connect_work */
	cancel_delayed_work_sync(&conn->retry_work);
	cancel_work_sync(&conn->connect_work);
	conn_destroy_verbs(conn, false);
	/* now nothing queues these again */
	cancel_delayed_work_sync(&conn->timer);
	cancel_delayed_work_sync(&conn->kick_work);
	cancel_delayed_work_sync(&conn->est_work);
}

static void conn_work_reap(struct work_struct *work)
{
	struct kdapl_conn *conn = container_of(work, struct kdapl_conn, reap_work);
	unsigned int noio = memalloc_noio_save();	/* dat_ep_reset() waits for it (D-32) */
	struct kdapl_device *dev = conn->dev;

	/*
	 * Destroying the cm_id cancels a DREQ that has not been answered, and the peer would not
	 * learn of the end. So wait for the DREP, but not for ever, and not if the device goes.
	 */
	if (conn->cm_up && !dev->iwarp && !READ_ONCE(dev->gone))
		wait_for_completion_timeout(&conn->cm_down, CM_DOWN_TIMEOUT);
	conn_release_verbs(conn);
	cancel_delayed_work_sync(&conn->end_work);
	kdapl_pool_put(conn->pool);
	kdapl_cq_put(conn->sq->cq);
	kdapl_cq_put(conn->rq->cq);
	kdapl_pd_put(conn->pd);
	kdapl_dev_conn_del(dev, &conn->dev_conn);
	complete_all(&conn->gone);
	queue_rcu_work(kdapl_reap_wq, &conn->free_work);
	memalloc_noio_restore(noio);
}

/* A grace period later: no posting call looks at the connection any more. */
static void conn_work_free(struct work_struct *work)
{
	kdapl_conn_put(container_of(to_rcu_work(work), struct kdapl_conn, free_work));
}

/*
 * The device goes: destroy its objects now, and post nothing. A connection or an attempt ends with
 * BROKEN. The QP is destroyed and its CQs are polled. What has no completion then is reported
 * FLUSHED, except unsignaled requests: they have succeeded, since failed ones have one (D-06).
 */
static void conn_remove(struct kdapl_conn *conn)
{
	bool finished = false;

	mutex_lock(&conn->lock);
	if (conn->state < KDAPL_CONN_ENDING) {
		int reason = conn->state == KDAPL_CONN_IDLE ? KDAPL_END_NO_EVENT :
							      DAT_CONNECTION_EVENT_BROKEN;

		if (atomic_cmpxchg(&conn->reason, KDAPL_END_NONE, reason) == KDAPL_END_SUSPECT)
			atomic_set(&conn->reason, DAT_CONNECTION_EVENT_BROKEN);
		conn_stop(conn, true);
	}
	mutex_unlock(&conn->lock);
	cancel_delayed_work_sync(&conn->end_work);	/* may be destroying the QP */
	conn_release_verbs(conn);
	mutex_lock(&conn->lock);
	if (conn->state == KDAPL_CONN_ENDING) {
		conn_patience_start(&conn->flush, conn, 0);
		finished = conn_try_finish(conn, false);
	}
	mutex_unlock(&conn->lock);
	if (finished) {
		kdapl_mrs_replace_stale(conn->ep->obj.ia);
		kdapl_ep_ended(conn);
		complete_all(&conn->ended);
	}
}

static void conn_dev_lost(struct kdapl_dev_conn *dev_conn)
{
	struct kdapl_conn *conn = container_of(dev_conn, struct kdapl_conn, dev_conn);

	if (READ_ONCE(conn->state) != KDAPL_CONN_IDLE)
		atomic_cmpxchg(&conn->reason, KDAPL_END_NONE, DAT_CONNECTION_EVENT_BROKEN);
	complete_all(&conn->cm_down);	/* the reaper need not wait for the peer */
}

static void conn_dev_hold(struct kdapl_dev_conn *dev_conn)
{
	refcount_inc(&container_of(dev_conn, struct kdapl_conn, dev_conn)->ref);
}

static void conn_dev_fail(struct kdapl_dev_conn *dev_conn)
{
	struct kdapl_conn *conn = container_of(dev_conn, struct kdapl_conn, dev_conn);
	bool begun = READ_ONCE(conn->state) != KDAPL_CONN_IDLE;

	kdapl_test_point(kdapl_test_dev_fail, conn);
	/*
	 * Under the lock, an attempt that starts now sees the failure, or is seen here. Other
	 * holders may be waiting for the device, so do not wait for them.
	 */
	if (!begun) {
		mutex_lock(&conn->lock);
		begun = conn->state != KDAPL_CONN_IDLE;
		mutex_unlock(&conn->lock);
	}
	if (begun && !kdapl_conn_stopping(conn)) {
		atomic_cmpxchg(&conn->reason, KDAPL_END_NONE, DAT_CONNECTION_EVENT_BROKEN);
		mod_delayed_work(kdapl_misc_wq, &conn->end_work, 0);
	}
	kdapl_conn_put(conn);
}

static void conn_dev_remove(struct kdapl_dev_conn *dev_conn)
{
	struct kdapl_conn *conn = container_of(dev_conn, struct kdapl_conn, dev_conn);

	conn_remove(conn);
	kdapl_conn_put(conn);
}

const struct kdapl_dev_conn_ops kdapl_conn_dev_ops = {
	.lost = conn_dev_lost,
	.hold = conn_dev_hold,
	.fail = conn_dev_fail,
	.remove = conn_dev_remove,
};

/**
 * kdapl_conn_init_end - prepare a connection for its end
 * @conn: a new connection
 */
void kdapl_conn_init_end(struct kdapl_conn *conn)
{
	mutex_init(&conn->destroy_lock);
	init_completion(&conn->ended);
	init_completion(&conn->cm_down);
	init_completion(&conn->gone);
	INIT_LIST_HEAD(&conn->dev_conn.node);
	INIT_DELAYED_WORK(&conn->end_work, conn_work_end);
	INIT_WORK(&conn->reap_work, conn_work_reap);
	INIT_RCU_WORK(&conn->free_work, conn_work_free);
	INIT_DELAYED_WORK(&conn->timer, conn_work_timer);
}
