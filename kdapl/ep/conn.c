// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The connection of an EP: one QP, its two work queues, and its way out.
 *
 * A connection is made with its EP, so that receives can be posted before anything
 * is connected, carries at most one connection and is never used again: it
 * ends, and dat_ep_reset() or dat_ep_free() replace or release it. Late
 * completions of an old connection therefore find the old connection.
 *
 * The end. Whatever ends a connection or an attempt calls kdapl_conn_end()
 * with the connection event it stands for; the first reason wins. A work item
 * then stops posting, moves the QP to ERR, tells the CM, and waits until the
 * device has given everything back: receives are counted, requests end with a
 * marker posted behind them, since suppressed ones that succeeded have no
 * completion of their own. Only then the EP goes to DISCONNECTED and the event
 * is queued: after every successful completion, exactly once. If the device
 * gives nothing back for END_TIMEOUT the QP is destroyed, which is proof as well.
 *
 * ep_end.pml is a model of the end, with the rules that make it right.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "ep.h"
#include "../core/trace.h"

#define END_TIMEOUT	(5 * HZ)	/* without progress */
#define SLOW_TIMEOUT	(60 * HZ)	/* the same, where nobody waits for anybody */
#define END_POLL	(HZ / 20)	/* look even if the engine is held up in an upcall */
#define CM_DOWN_TIMEOUT	(2 * HZ)
#define LAST_WQE_TIMEOUT	(HZ / 10)	/* D-15: not every device says it */

/*
 * Post a request of our own, a signaled zero-length RDMA Write. It moves no byte
 * and is not checked against any key. wq->lock held.
 */
static int wq_post_own(struct kdapl_wq *wq, u8 op)
{
	struct kdapl_wqe *wr = &wq->wr[wq->head & wq->mask];
	struct ib_rdma_wr post = {
		.wr = {
			.wr_cqe = &wr->cqe,
			.opcode = IB_WR_RDMA_WRITE,
			.send_flags = IB_SEND_SIGNALED,
		},
	};
	int ret;

	wr->op = op;
	wr->flags = KDAPL_WQE_SIGNALED;
	wr->state = KDAPL_WQE_NATIVE;
	wr->seq = wq->dtos;
	/* pairs with the acquire in wq_next() */
	smp_store_release(&wq->head, wq->head + 1);
	ret = ib_post_send(wq->conn->qp, &post.wr, NULL);
	if (ret)
		WRITE_ONCE(wr->state, KDAPL_WQE_SOFT);
	return ret;
}

/*
 * Post the marker: when it completes, in whatever way, everything before it is
 * done. wq->lock held. -EALREADY: nothing to wait for.
 */
static int wq_post_marker(struct kdapl_wq *wq)
{
	int ret;

	/* pairs with the release in wq_advance() */
	if (smp_load_acquire(&wq->tail) == wq->head)
		return -EALREADY;
	if (wq->marker)
		return 0;
	wq->marker = true;
	wq->marker_pos = wq->head;
	ret = wq_post_own(wq, KDAPL_OP_MARKER);
	if (ret)
		WRITE_ONCE(wq->marker, false);
	return ret;
}

static void conn_qp_event(struct ib_event *event, void *context)
{
	struct kdapl_conn *conn = context;
	struct kdapl_ep *ep = conn->ep;

	switch (event->event) {
	case IB_EVENT_COMM_EST:
		queue_delayed_work(kdapl_misc_wq, &conn->est_work, KDAPL_EST_TIME);
		break;
	case IB_EVENT_QP_FATAL:
	case IB_EVENT_QP_REQ_ERR:
	case IB_EVENT_QP_ACCESS_ERR:
		if (READ_ONCE(conn->discard))
			break;
		if (!kdapl_conn_stopping(conn))
			kdapl_ia_async(ep->obj.ia, conn->handle, DAT_ASYNC_ERROR_EP_BROKEN,
				       DAT_EP_TRANSFER_TO_ERROR);
		if (READ_ONCE(conn->state) < KDAPL_CONN_UP)
			WRITE_ONCE(conn->wc_failed, true);
		else if (atomic_read(&conn->reason) != KDAPL_END_PEER)
			/* after the CM's word it may be part of an orderly close */
			kdapl_conn_end_in(conn, DAT_CONNECTION_EVENT_BROKEN, KDAPL_ANSWER_TIME);
		break;
	case IB_EVENT_QP_LAST_WQE_REACHED:
		WRITE_ONCE(conn->last_wqe, true);
		if (kdapl_conn_stopping(conn))
			mod_delayed_work(kdapl_misc_wq, &conn->end_work, 0);
		else if (READ_ONCE(conn->state) < KDAPL_CONN_UP)
			WRITE_ONCE(conn->wc_failed, true);
		else if (conn->dev->iwarp)	/* or the peer has disconnected: the CM will say */
			kdapl_conn_end(conn, KDAPL_END_SUSPECT);
		else	/* the QP has failed, maybe with nothing posted that would tell */
			kdapl_conn_end_in(conn, DAT_CONNECTION_EVENT_BROKEN, KDAPL_ANSWER_TIME);
		break;
	default:
		break;
	}
}

static int conn_qp_init(struct kdapl_conn *conn)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = conn->ep->obj.ia->port,
		/*
		 * Always: a zero-length Write, the peer's marker, is refused by
		 * some devices otherwise. What may be read or written is a
		 * matter of the keys.
		 */
		.qp_access_flags = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
				   IB_ACCESS_REMOTE_READ,
	};

	return ib_modify_qp(conn->qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			    IB_QP_ACCESS_FLAGS);
}

static int conn_create_qp(struct kdapl_conn *conn)
{
	struct ib_qp_init_attr init = {
		.event_handler = conn_qp_event,
		.qp_context = conn,
		.send_cq = conn->sq->cq->ibcq,
		.recv_cq = conn->rq->cq->ibcq,
		.srq = conn->pool ? conn->pool->ibsrq : NULL,
		.cap = {
			.max_send_wr = conn->sq->slots + KDAPL_OWN_WRS,
			.max_recv_wr = conn->pool ? 0 : max(conn->rq->slots, 1U),
			.max_send_sge = max(conn->sq->max_sge,
					   conn->dev->caps.short_page_bug ? 2U : 1U),
			.max_recv_sge = conn->pool ? 0 : max(conn->rq->max_sge, 1U),
		},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
		.port_num = conn->ep->obj.ia->port,
	};
	int ret;

	conn->qp = ib_create_qp_kernel(conn->pd->pd, &init, conn->ep->obj.ia->consumer);
	if (IS_ERR(conn->qp)) {
		ret = PTR_ERR(conn->qp);
		conn->qp = NULL;
		return ret;
	}
	conn->qpn = conn->qp->qp_num;
	return conn_qp_init(conn);
}

static void wq_open(struct kdapl_wq *wq)
{
	struct kdapl_conn *conn = wq->conn;

	wq->ia = conn->ep->obj.ia;
	wq->qp = conn->qp;
	wq->domain[0] = kdapl_pd_domain(conn->pd);
	wq->domain[1] = (unsigned long)conn->handle;
	wq->sink = DAT_MEM_PRIV_LOCAL_WRITE_FLAG | KDAPL_PRIV_DIRECT;
}

/*
 * What both work queues need for posts without a closer look (post.c), and what Receives may be
 * there; of requests nothing is known yet.
 */
static void conn_open_wqs(struct kdapl_conn *conn)
{
	wq_open(conn->sq);
	wq_open(conn->rq);
	conn->rq->max_iov[0] = conn->attr.max_recv_iov;
	conn->rq->flags[0] = conn->attr.recv_completion_flags & DAT_COMPLETION_UNSIGNALLED_FLAG;
}

/* A request that the device fences itself may be posted fenced without a closer look. */
static u8 conn_fence_flag(const struct kdapl_conn *conn, enum ib_wr_opcode opcode)
{
	return conn->dev->caps.unfenced & BIT_ULL(opcode) ? 0 : DAT_COMPLETION_BARRIER_FENCE_FLAG;
}

/* The same for Send, Write and Read, once it is known what the connection allows. */
static void conn_open_requests(struct kdapl_conn *conn)
{
	bool careful = kdapl_caps_slow_posts(&conn->dev->caps);
	const DAT_EP_ATTR *attr = &conn->attr;
	struct kdapl_wq *wq = conn->sq;
	u16 *max_iov = careful ? wq->careful_iov : wq->max_iov;
	u8 flags = DAT_COMPLETION_SUPPRESS_FLAG |
		   (attr->request_completion_flags & DAT_COMPLETION_UNSIGNALLED_FLAG);

	wq->max_message = attr->max_message_size;
	wq->max_rdma = attr->max_rdma_size;
	wq->flags[DAT_DTO_SEND] = flags | DAT_COMPLETION_SOLICITED_WAIT_FLAG |
				    conn_fence_flag(conn, IB_WR_SEND);
	wq->flags[DAT_DTO_RDMA_WRITE] = flags | conn_fence_flag(conn, IB_WR_RDMA_WRITE);
	wq->flags[DAT_DTO_RDMA_READ] = flags | conn_fence_flag(conn, IB_WR_RDMA_READ);
	if (conn->dev->iwarp)
		wq->sink |= DAT_MEM_PRIV_REMOTE_WRITE_FLAG;	/* D-22 */
	if (conn->dev->caps.reads_deadlock)
		wq->max_reads = conn->read_depth;
	wq->serial = !careful && conn->ep->serial;
	/* a post that sees a limit sees the rest; pairs with post_fast(), post_careful() */
	smp_wmb();
	WRITE_ONCE(max_iov[DAT_DTO_SEND], attr->max_request_iov);
	WRITE_ONCE(max_iov[DAT_DTO_RDMA_WRITE], attr->max_rdma_write_iov);
	if (attr->max_rdma_read_out && conn->read_depth)
		WRITE_ONCE(max_iov[DAT_DTO_RDMA_READ], attr->max_rdma_read_iov);
}

/*
 * Are there fences that take a place in the queue? Registrations do not count: those that
 * are fenced live on the room for suppressed requests (D-95).
 */
static bool conn_fences_take_room(const struct kdapl_conn *conn, const DAT_EP_ATTR *attr)
{
	const struct kdapl_caps *caps = &conn->dev->caps;
	u64 unfenced = caps->unfenced & ~BIT_ULL(IB_WR_REG_MR);

	if (!attr->max_rdma_read_out)
		unfenced &= ~BIT_ULL(IB_WR_RDMA_READ);
	return unfenced && caps->fence_by != KDAPL_FENCE_NONE;
}

/* How many WRs and DTOs the send queue must hold (D-09). */
static u32 conn_sq_slots(struct kdapl_conn *conn, const DAT_EP_ATTR *attr, u32 *interval)
{
	u32 slots, wrs = 1;

	*interval = max(1, attr->max_request_dtos / 4);
	if (!attr->max_request_dtos)
		return 0;
	slots = attr->max_request_dtos + *interval - 1;
	/* two WRs: what another request must fence (D-14, D-83, D-95) */
	if (conn_fences_take_room(conn, attr))
		wrs = 2;
	/* an RMR that is bound anew (D-25), with what fences that */
	if (conn->request_evd->flags & DAT_EVD_RMR_BIND_FLAG)
		wrs = conn->dev->caps.most_wrs;
	return slots * wrs + 1;	/* a kick takes nobody's place */
}

static int conn_attach(struct kdapl_conn *conn)
{
	struct kdapl_cq *cq;

	cq = kdapl_evd_attach(conn->request_evd, conn->sq, conn->attr.request_completion_flags);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	conn->sq->cq = cq;
	cq = kdapl_evd_attach(conn->recv_evd, conn->rq, conn->attr.recv_completion_flags);
	if (IS_ERR(cq)) {
		kdapl_evd_detach(conn->request_evd, conn->sq);
		kdapl_cq_put(conn->sq->cq);
		conn->sq->cq = NULL;
		return PTR_ERR(cq);
	}
	conn->rq->cq = cq;
	return 0;
}

static void conn_detach(struct kdapl_conn *conn)
{
	kdapl_evd_detach(conn->request_evd, conn->sq);
	kdapl_evd_detach(conn->recv_evd, conn->rq);
}

/**
 * kdapl_conn_put - drop a memory reference
 * @conn: the connection
 *
 * Posting calls may still look at the work queues of a connection that has been replaced,
 * so the memory outlives a grace period: the reaper's reference does. The last putter
 * may sleep.
 */
void kdapl_conn_put(struct kdapl_conn *conn)
{
	if (!refcount_dec_and_test(&conn->ref))
		return;
	kdapl_wq_free(conn->sq);
	kdapl_wq_free(conn->rq);
	kfree(conn->pdata);
	kfree(conn->conn_pdata);
	kdapl_obj_put(&conn->ep->obj);
	kdapl_device_put(conn->dev);
	kfree(conn);
}

/**
 * kdapl_patience_start - begin to wait for a device
 * @patience: how long
 * @conn: the connection whose requests it should complete
 * @limit: jiffies without progress
 *
 * A slow device does not hang: the limit starts again whenever something has come back
 * (kdapl_conn_progress()). The waiter must keep polling the CQs.
 *
 * Context: any.
 */
void kdapl_patience_start(struct kdapl_patience *patience, const struct kdapl_conn *conn,
			  unsigned long limit)
{
	patience->seen = kdapl_conn_progress(conn);
	patience->limit = limit;
	patience->deadline = jiffies + limit;
}

/**
 * kdapl_patience_over - has the device done nothing for too long?
 * @patience: started
 * @conn: as for the start
 *
 * Context: any; one at a time.
 * Return: true if it has; @patience->deadline is when it may become true otherwise.
 */
bool kdapl_patience_over(struct kdapl_patience *patience, const struct kdapl_conn *conn)
{
	u32 now = kdapl_conn_progress(conn);

	if (patience->limit && now != patience->seen) {
		patience->seen = now;
		patience->deadline = jiffies + patience->limit;
	}
	return !time_before(jiffies, patience->deadline);
}

/* Until when has something to happen for a graceful disconnect to go on? 0: no limit. */
static unsigned long conn_drain_span(const struct kdapl_conn *conn)
{
	const struct kdapl_wq *wq = conn->sq;

	if (!conn->dev->caps.reads_deadlock)
		return 0;
	/* with Reads under way two ends may wait for each other for ever there (D-14) */
	return READ_ONCE(wq->reads) != READ_ONCE(wq->reads_done) ? END_TIMEOUT : SLOW_TIMEOUT;
}

/**
 * kdapl_conn_drain_gracefully - let the requests under way finish, then end
 * @conn: connection of an EP that just went to DISCONNECT_PENDING
 *
 * Context: any.
 */
void kdapl_conn_drain_gracefully(struct kdapl_conn *conn)
{
	struct kdapl_wq *wq = conn->sq;
	unsigned long flags, limit;
	bool draining = false;
	int ret = 0;

	spin_lock_irqsave(&wq->lock, flags);
	limit = conn_drain_span(conn);
	/* conn_stop() moves the state before it takes the lock: the QP is alive here */
	if (READ_ONCE(conn->dev->gone)) {
		ret = -ENODEV;	/* nothing is posted any more */
	} else if (!kdapl_conn_stopping(conn) && !conn->draining) {
		ret = wq_post_marker(wq);
		draining = !ret;
		if (draining) {
			kdapl_patience_start(&conn->drain, conn, limit);
			/* pairs with the acquire in conn_drain_stuck() */
			smp_store_release(&conn->draining, true);
		}
	}
	spin_unlock_irqrestore(&wq->lock, flags);
	if (draining)
		kdapl_evd_ending(conn->request_evd, 1);
	if (ret)
		kdapl_conn_drained(conn);
	else if (draining && limit)
		mod_delayed_work(kdapl_misc_wq, &conn->timer, limit);
}

/* Has a graceful disconnect stopped to advance? conn->lock held, state UP. */
static bool conn_drain_stuck(struct kdapl_conn *conn)
{
	struct kdapl_patience *drain = &conn->drain;

	lockdep_assert_held(&conn->lock);
	/* pairs with the release in kdapl_conn_drain_gracefully() */
	if (!smp_load_acquire(&conn->draining) || !drain->limit)
		return false;	/* not yet, or without a limit */
	/* the Reads are done, and so is the danger */
	if (drain->limit == END_TIMEOUT && conn_drain_span(conn) == SLOW_TIMEOUT)
		kdapl_patience_start(drain, conn, SLOW_TIMEOUT);
	if (kdapl_patience_over(drain, conn))
		return true;
	queue_delayed_work(kdapl_misc_wq, &conn->timer, max_t(long, drain->deadline - jiffies, 1));
	return false;
}

/*
 * Destroy cm_id and QP of a connection that stops, in this order and without the
 * lock: the provider may wait for a CM handler that waits for the lock. Where
 * the CM does not know the QP, the id may stay to tell the peer.
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

/* No further posts, QP to ERR, peer told. conn->lock held. */
static void conn_stop(struct kdapl_conn *conn, bool removal)
{
	struct kdapl_ep *ep = conn->ep;
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	struct kdapl_wq *wq = conn->sq;
	bool idle = conn->state == KDAPL_CONN_IDLE;
	bool refuse;
	int ret = 0;

	lockdep_assert_held(&conn->lock);
	if (atomic_read(&conn->reason) != KDAPL_END_SILENT)
		trace_kdapl_conn_end(conn->handle, conn->qpn, atomic_read(&conn->reason));
	removal |= READ_ONCE(conn->dev->gone);
	kdapl_conn_step(conn, KDAPL_CONN_IN_STOP);
	kdapl_patience_start(&conn->flush, conn, END_TIMEOUT);
	conn->pool_deadline = jiffies + LAST_WQE_TIMEOUT;

	spin_lock_irq(&ep->lock);
	refuse = ep->state != DAT_EP_STATE_CONNECTED && ep->state != DAT_EP_STATE_DISCONNECTED;
	/* in any case: nobody is inside a post to the device after this */
	kdapl_wq_set_mode(conn->sq, refuse ? KDAPL_WQ_REFUSE : KDAPL_WQ_SOFT);
	kdapl_wq_set_mode(conn->rq, KDAPL_WQ_SOFT);
	spin_unlock_irq(&ep->lock);
	kdapl_wq_quiesce(conn->sq);

	ret = ib_modify_qp(conn->qp, &attr, IB_QP_STATE);
	if (conn->cm_id && conn->cm_up)
		rdma_disconnect(conn->cm_id);
	if (!removal && !ret) {
		spin_lock_irq(&wq->lock);
		ret = wq_post_marker(wq);
		if (ret == -EALREADY)	/* what is posted from now on needs no marker */
			WRITE_ONCE(wq->drained, true);
		spin_unlock_irq(&wq->lock);
	}
	if (removal || (ret && ret != -EALREADY))
		kdapl_patience_start(&conn->flush, conn, 0);	/* destroying the QP is the proof */
	if (removal || conn->dev->caps.no_last_wqe || idle)	/* idle: it has no buffer */
		conn->pool_deadline = jiffies;

	if (!conn->draining)	/* stays as it is: the state has moved, sq->lock was taken */
		kdapl_evd_ending(conn->request_evd, 1);
	kdapl_evd_ending(conn->recv_evd, 1);
}

/*
 * Is there anything to wait for? What was taken from an SRQ is known only when
 * the QP is gone; before that the device gets a little time to finish (D-15).
 */
static bool conn_may_destroy(struct kdapl_conn *conn, bool sq_ended, bool last_wqe, bool late)
{
	/* a QP inside rdma_connect() cannot be destroyed yet (D-17) */
	if (conn->cm_busy && conn->qp)
		return false;
	if (conn->pool && sq_ended &&
	    (last_wqe || !time_before(jiffies, conn->pool_deadline)))
		return true;
	/* a Read whose answer was coming is forgotten; the marker is past it */
	if (conn->dev->caps.reads_forgotten && READ_ONCE(conn->sq->marker_done) &&
	    !time_before(jiffies, conn->flush.deadline - conn->flush.limit + LAST_WQE_TIMEOUT))
		return true;
	return late;
}

static void conn_was_silent(struct kdapl_conn *conn)
{
	struct kdapl_ia *ia = conn->ep->obj.ia;

	pr_warn("%s: QP %u: the device did not give back what was posted within %u s, the QP is destroyed\n",
		ia->name, conn->qp ? conn->qp->qp_num : 0, END_TIMEOUT / HZ);
	kdapl_ia_async(ia, conn->handle, DAT_ASYNC_ERROR_TIMED_OUT, DAT_EP_OTHER_ERROR);
}

/* Has everything come back? conn->lock held, may be dropped; state ENDING. */
static bool conn_try_finish(struct kdapl_conn *conn, bool lost)
{
	u32 recvs = conn->pool ? conn->pool->entries : conn->rq->slots;
	/* before the CQ is polled: what came until then must not go with the QP */
	bool last_wqe = READ_ONCE(conn->last_wqe);
	bool sq_ended, rq_ended, late;

	kdapl_evd_drain_cqs(conn->request_evd, conn->sq->slots + KDAPL_OWN_WRS, true);
	kdapl_evd_drain_cqs(conn->recv_evd, recvs + 1, true);
	/* both, not one or the other: each call looks for its own work queue's end */
	sq_ended = kdapl_wq_ended(conn->sq);
	rq_ended = kdapl_wq_ended(conn->rq);
	late = kdapl_patience_over(&conn->flush, conn);
	if (conn->pool && sq_ended && conn->cm_busy && conn->qp) {
		/* never connected: it took no buffer; the reaper has it for long */
		kdapl_wq_force_end(conn->rq, lost);
	} else if (!sq_ended || !rq_ended) {
		if (!conn_may_destroy(conn, sq_ended, last_wqe, late))
			return false;
		if (conn->flush.limit && !conn->discard && !(conn->pool && sq_ended) && late)
			conn_was_silent(conn);
		mutex_unlock(&conn->lock);
		conn_destroy_verbs(conn, !conn->dev->iwarp);
		mutex_lock(&conn->lock);
		if (conn->state == KDAPL_CONN_ENDED)
			return false;	/* removal has finished it meanwhile */
		if (!sq_ended)
			kdapl_wq_force_end(conn->sq, lost);
		kdapl_wq_force_end(conn->rq, lost);
	}
	kdapl_pool_detach(conn);
	kdapl_evd_ending(conn->request_evd, -1);
	kdapl_evd_ending(conn->recv_evd, -1);
	return kdapl_conn_step(conn, KDAPL_CONN_IN_FINISHED);
}

/*
 * An attempt that ended without a connection gives its cm_id back as soon as its
 * end has been reported, so that the peer learns of it. Not before: destroying
 * the id may last for as long as the CM repeats a message. Soft-iWARP may still
 * be inside rdma_connect().
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

static void conn_work_end(struct work_struct *work)
{
	struct kdapl_conn *conn = container_of(to_delayed_work(work), struct kdapl_conn, end_work);
	unsigned int noio = memalloc_noio_save();	/* part of every reconnect (D-32) */
	bool finished = false;

	mutex_lock(&conn->lock);
	if (conn->state < KDAPL_CONN_ENDING && atomic_read(&conn->reason) != KDAPL_END_NONE) {
		/* A suspicion nobody explained in time was right. */
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
	/* the CM may take its time over this; the reaper waits for us, nobody else */
	conn_destroy_dead_id(conn);
	memalloc_noio_restore(noio);
}

/**
 * kdapl_conn_established - the connection is made
 * @conn: the connection; conn->lock held
 *
 * The state changes before the event can be seen, and the event is queued
 * before any completion of this connection: receives that came early wait in
 * the work queue until the state is UP.
 */
void kdapl_conn_established(struct kdapl_conn *conn)
{
	struct kdapl_ep *ep = conn->ep;
	bool up;

	lockdep_assert_held(&conn->lock);
	if (!kdapl_conn_may(conn, KDAPL_CONN_IN_ESTABLISHED) ||
	    atomic_read(&conn->reason) > KDAPL_END_SUSPECT)
		return;
	cancel_delayed_work(&conn->timer);
	spin_lock_irq(&ep->lock);
	conn_open_requests(conn);
	up = kdapl_ep_step(ep, KDAPL_IN_ESTABLISHED) != KDAPL_EP_REFUSED;
	spin_unlock_irq(&ep->lock);
	if (!up)
		return;		/* dat_ep_disconnect was faster, its end is under way */
	kdapl_ep_event(conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	kdapl_conn_step(conn, KDAPL_CONN_IN_ESTABLISHED);
	kdapl_wq_ready(conn->rq);
	if (READ_ONCE(conn->wc_failed))
		kdapl_conn_end(conn, DAT_CONNECTION_EVENT_BROKEN);
}

#define KICKS		5
#define KICK_TIME	(HZ / 10)

/* Post an empty request, unless the last one is still under way. */
static int conn_post_kick(struct kdapl_conn *conn)
{
	struct kdapl_wq *wq = conn->sq;
	int ret = 0;
	u32 tail;

	spin_lock_irq(&wq->lock);
	/* pairs with the release in wq_advance() */
	tail = smp_load_acquire(&wq->tail);
	/* in a serial work queue everything about LMRs has a completion of its own */
	if (wq->mode == KDAPL_WQ_LIVE && !wq->serial && !kdapl_conn_stopping(conn) &&
	    !READ_ONCE(conn->dev->gone) &&
	    (!conn->kicked || (s32)(tail - conn->kick_pos) > 0)) {
		conn->kicked = true;
		conn->kick_pos = wq->head;
		ret = wq_post_own(wq, KDAPL_OP_KICK);
	}
	spin_unlock_irq(&wq->lock);
	return ret;
}

/**
 * kdapl_conn_kick_now - have the device tell how far it is
 * @conn: a connection with requests that have no completion of their own
 *
 * Context: may sleep.
 */
void kdapl_conn_kick_now(struct kdapl_conn *conn)
{
	if (conn_post_kick(conn))
		kdapl_conn_end(conn, KDAPL_END_SUSPECT);
}

static void conn_work_kick(struct work_struct *work)
{
	struct kdapl_conn *conn = container_of(to_delayed_work(work), struct kdapl_conn,
					       kick_work);

	kdapl_conn_kick_now(conn);
	if (++conn->kicks < KICKS && conn->sq->mode == KDAPL_WQ_LIVE)
		queue_delayed_work(kdapl_misc_wq, &conn->kick_work, KICK_TIME << conn->kicks);
}

/**
 * kdapl_conn_kick - see to it that the peer notices what is sent first
 * @conn: active side on soft-iWARP, just established; conn->lock held
 *
 * Soft-iWARP on the passive side loses the wake-up for data that arrives between
 * its answer and its own change to data mode: a first message stays in the socket
 * until something follows it. So something does, a few times.
 */
void kdapl_conn_kick(struct kdapl_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	if (conn->state == KDAPL_CONN_UP)
		queue_delayed_work(kdapl_misc_wq, &conn->kick_work, KICK_TIME);
}

/**
 * kdapl_conn_qp_attr - replace what the CM would have the QP do
 * @conn: the connection, its read depths agreed with the peer
 * @mask: what is going to be modified
 * @attr: as rdma_init_qp_attr() has filled it
 *
 * Read depths: until rdma_accept() the CM knows only what the peer has asked for, which may be
 * more than the device has, or more than we are going to grant. Retries: the peer may ask for
 * none, or for retries without end.
 */
void kdapl_conn_qp_attr(const struct kdapl_conn *conn, int mask, struct ib_qp_attr *attr)
{
	const struct kdat_conn_attr *net = &conn->net;

	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		attr->max_dest_rd_atomic = conn->read_in;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		attr->max_rd_atomic = conn->read_depth;
	if (mask & IB_QP_RETRY_CNT)
		attr->retry_cnt = net->retry_count == KDAT_CONN_DEFAULT ? KDAPL_RETRY_COUNT :
									   net->retry_count;
	if (mask & IB_QP_RNR_RETRY)
		attr->rnr_retry = net->rnr_retry_count == KDAT_CONN_DEFAULT ?
				  KDAPL_RNR_RETRY_COUNT : net->rnr_retry_count;
}

/* One step of the CM's, for IB and RoCE. */
static int conn_modify(struct kdapl_conn *conn, struct rdma_cm_id *id, enum ib_qp_state state)
{
	struct ib_qp_attr attr = { .qp_state = state };
	int mask, ret;

	ret = rdma_init_qp_attr(id, &attr, &mask);
	if (ret)
		return ret;
	if (state == IB_QPS_INIT)
		/* the CM has an opinion on access flags; keep ours, see conn_qp_init() */
		attr.qp_access_flags = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
				       IB_ACCESS_REMOTE_READ;
	kdapl_conn_qp_attr(conn, mask, &attr);
	return ib_modify_qp(conn->qp, &attr, mask);
}

/**
 * kdapl_conn_to_rts - bring the QP up with the addresses the CM has learned
 * @conn: the connection; conn->lock held
 * @id: its cm_id
 *
 * INIT again, because only now pkey index and port of the path are known.
 *
 * Return: 0 or an errno.
 */
int kdapl_conn_to_rts(struct kdapl_conn *conn, struct rdma_cm_id *id)
{
	int ret;

	lockdep_assert_held(&conn->lock);
	if (conn->dev->iwarp)
		return 0;	/* the provider moves the QP itself */
	ret = conn_modify(conn, id, IB_QPS_INIT);
	if (!ret)
		ret = conn_modify(conn, id, IB_QPS_RTR);
	if (!ret)
		ret = conn_modify(conn, id, IB_QPS_RTS);
	return ret;
}

/**
 * kdapl_conn_drop - forget the events of a connection and keep new ones from coming
 * @conn: the connection
 * @all_events: connection events too
 *
 * Context: any.
 */
void kdapl_conn_drop(struct kdapl_conn *conn, bool all_events)
{
	struct kdapl_evd *connect_evd;

	kdapl_conn_discard(conn);
	if (conn->pool)
		kdapl_evd_watch(conn);
	kdapl_evd_drop(conn->request_evd, conn, all_events);
	kdapl_evd_drop(conn->recv_evd, conn, all_events);
	rcu_read_lock();
	connect_evd = READ_ONCE(conn->ep->connect_evd);
	if (connect_evd && all_events)
		kdapl_evd_drop(connect_evd, conn, true);
	rcu_read_unlock();
}

/* Completions were there, and dat_ep_free() or dat_ep_reset() came before the consumer. */
static void conn_note_dropped(struct kdapl_conn *conn)
{
	u32 n = atomic_read(&conn->dropped);

	if (!n || !conn->owed)
		return;
	kdapl_count_many(dropped, n);
	pr_info_ratelimited("%s: QP %u: %u completions were dropped with their EP, which nobody had taken yet%s: kdat_ep_drain() waits for them\n",
			    conn->ep->obj.ia->name, conn->qpn, n,
			    conn->pool ? ", buffers of an SRQ perhaps among them" : "");
}

/**
 * kdapl_conn_reap - release a connection that has ended
 * @conn: no longer reachable through its EP; gives up the EP's reference
 *
 * Posting calls that found it before may still be at its work queues. Those are not live any
 * more, so they touch neither QP nor CQ, and the memory outlives them: nobody waits for a
 * grace period here (D-92).
 *
 * The EVDs are free of it on return. The rest goes in the background, since
 * soft-iWARP can hold QP and cm_id for as long as a TCP connect lasts.
 *
 * Context: may sleep; without conn->lock.
 */
void kdapl_conn_reap(struct kdapl_conn *conn)
{
	struct kdapl_device *dev = conn->dev;

	/* the end has been reported: a better reason comes too late */
	atomic_set(&conn->reason, KDAPL_END_SILENT);
	kdapl_conn_drop(conn, false);
	atomic_add(kdapl_wq_bury(conn->sq), &conn->dropped);
	atomic_add(kdapl_wq_bury(conn->rq), &conn->dropped);
	conn_note_dropped(conn);
	conn_detach(conn);
	kdapl_link_leaves(dev, &conn->link);
	queue_work(kdapl_reap_wq, &conn->reap_work);
}

/* CM and QP of an ended connection go. May wait for rdma_connect. */
static void conn_release_verbs(struct kdapl_conn *conn)
{
	/* in this order: a retry queues the other */
	cancel_delayed_work_sync(&conn->retry_work);
	cancel_work_sync(&conn->conn_work);
	conn_destroy_verbs(conn, false);
	/* nothing is left that could queue these again */
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
	 * Destroying the id takes back a disconnect request that is still on
	 * its way, and the peer would never learn: wait for the answer, but
	 * not for ever, and not when the device goes.
	 */
	if (conn->cm_up && !dev->iwarp && !READ_ONCE(dev->gone))
		wait_for_completion_timeout(&conn->cm_down, CM_DOWN_TIMEOUT);
	conn_release_verbs(conn);
	cancel_delayed_work_sync(&conn->end_work);
	kdapl_pool_put(conn->pool);
	kdapl_cq_put(conn->sq->cq);
	kdapl_cq_put(conn->rq->cq);
	kdapl_pd_put(conn->pd);
	kdapl_link_del(dev, &conn->link);
	complete_all(&conn->gone);
	queue_rcu_work(kdapl_reap_wq, &conn->free_work);
	memalloc_noio_restore(noio);
}

/* A grace period later: those that were late are through. */
static void conn_work_free(struct work_struct *work)
{
	struct kdapl_conn *conn = container_of(to_rcu_work(work), struct kdapl_conn, free_work);

	/* what they may have queued once more finds nothing to do */
	cancel_delayed_work_sync(&conn->end_work);
	cancel_delayed_work_sync(&conn->timer);
	kdapl_conn_put(conn);
}

/*
 * The device goes: give back its objects now. Nothing is posted. What has not completed when the
 * QP is gone is reported FLUSHED; a connection or an attempt ends with BROKEN.
 */
static void conn_remove(struct kdapl_conn *conn)
{
	bool finished = false;

	mutex_lock(&conn->lock);
	if (conn->state < KDAPL_CONN_ENDING) {
		int reason = conn->state == KDAPL_CONN_IDLE ? KDAPL_END_SILENT :
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
		kdapl_patience_start(&conn->flush, conn, 0);
		finished = conn_try_finish(conn, false);
	}
	mutex_unlock(&conn->lock);
	if (finished) {
		kdapl_mrs_replace_stale(conn->ep->obj.ia);
		kdapl_ep_ended(conn);
		complete_all(&conn->ended);
	}
}

static void conn_link_lost(struct kdapl_link *link)
{
	struct kdapl_conn *conn = container_of(link, struct kdapl_conn, link);

	if (READ_ONCE(conn->state) != KDAPL_CONN_IDLE)
		atomic_cmpxchg(&conn->reason, KDAPL_END_NONE, DAT_CONNECTION_EVENT_BROKEN);
	complete_all(&conn->cm_down);	/* the reaper need not wait for the peer */
}

static void conn_link_fail(struct kdapl_link *link)
{
	struct kdapl_conn *conn = container_of(link, struct kdapl_conn, link);

	/* the lock: an attempt that starts now sees that the device has failed, or is seen here */
	mutex_lock(&conn->lock);
	if (conn->state != KDAPL_CONN_IDLE) {
		atomic_cmpxchg(&conn->reason, KDAPL_END_NONE, DAT_CONNECTION_EVENT_BROKEN);
		mod_delayed_work(kdapl_misc_wq, &conn->end_work, 0);
	}
	mutex_unlock(&conn->lock);
}

static void conn_link_hold(struct kdapl_link *link)
{
	refcount_inc(&container_of(link, struct kdapl_conn, link)->ref);
}

static void conn_link_remove(struct kdapl_link *link)
{
	struct kdapl_conn *conn = container_of(link, struct kdapl_conn, link);

	conn_remove(conn);
	kdapl_conn_put(conn);
}

static const struct kdapl_link_ops conn_link_ops = {
	.lost = conn_link_lost,
	.fail = conn_link_fail,
	.hold = conn_link_hold,
	.remove = conn_link_remove,
};

/* Posts take the one for the other. */
static_assert(!offsetof(struct kdapl_conn, op_owner));

static struct kdapl_conn *conn_op_conn(struct kdapl_op_owner *owner)
{
	return container_of(owner, struct kdapl_conn, op_owner);
}

/*
 * The memory of the CQ is there as long as that of the connection. If no work queue completes on
 * it any more its EVD has let go of it as well.
 */
static struct kdapl_obj *conn_op_evd_get(struct kdapl_op_owner *owner)
{
	struct kdapl_evd *evd = kdapl_cq_evd_get(conn_op_conn(owner)->sq->cq);

	return evd ? &evd->obj : NULL;
}

static void conn_op_evd_drain(struct kdapl_obj *evd, bool teardown)
{
	kdapl_evd_drain_cqs(container_of(evd, struct kdapl_evd, obj), KDAPL_BATCH, teardown);
}

static void conn_op_hold(struct kdapl_op_owner *owner)
{
	refcount_inc(&conn_op_conn(owner)->ref);
}

static void conn_op_put(struct kdapl_op_owner *owner)
{
	kdapl_conn_put(conn_op_conn(owner));
}

static void conn_op_kick(struct kdapl_op_owner *owner)
{
	kdapl_conn_kick_now(conn_op_conn(owner));
}

static u32 conn_op_progress(struct kdapl_op_owner *owner)
{
	return kdapl_wq_progress(conn_op_conn(owner)->sq);
}

static void conn_op_end(struct kdapl_op_owner *owner)
{
	kdapl_conn_end(conn_op_conn(owner), DAT_CONNECTION_EVENT_BROKEN);
}

static const struct kdapl_op_owner_ops conn_op_ops = {
	.evd_get = conn_op_evd_get,
	.evd_drain = conn_op_evd_drain,
	.hold = conn_op_hold,
	.put = conn_op_put,
	.kick = conn_op_kick,
	.progress = conn_op_progress,
	.end = conn_op_end,
};

static void conn_work_connect(struct work_struct *work)
{
	struct kdapl_conn *conn = container_of(work, struct kdapl_conn, conn_work);

	conn->cm->connect(conn);
}

static void conn_work_retry(struct work_struct *work)
{
	struct kdapl_conn *conn = container_of(to_delayed_work(work), struct kdapl_conn,
					       retry_work);

	conn->cm->retry(conn);
}

/*
 * A message arrived before the peer's last word of the set-up, which may be lost. Or nobody has
 * to wait any longer for the peer to see ours.
 */
static void conn_work_established(struct work_struct *work)
{
	struct kdapl_conn *conn = container_of(to_delayed_work(work), struct kdapl_conn, est_work);
	unsigned int noio = memalloc_noio_save();

	mutex_lock(&conn->lock);
	if (conn->state == KDAPL_CONN_HELD)
		kdapl_conn_established(conn);
	else if (conn->cm_id && conn->passive && conn->state == KDAPL_CONN_CONNECTING &&
		 !conn->dev->iwarp)
		rdma_notify(conn->cm_id, IB_EVENT_COMM_EST);	/* ESTABLISHED follows */
	mutex_unlock(&conn->lock);
	memalloc_noio_restore(noio);
}

static void conn_work_timer(struct work_struct *work)
{
	struct kdapl_conn *conn = container_of(to_delayed_work(work), struct kdapl_conn, timer);

	mutex_lock(&conn->lock);
	if (conn->state == KDAPL_CONN_UP && conn_drain_stuck(conn))
		kdapl_conn_end(conn, DAT_CONNECTION_EVENT_DISCONNECTED);
	else if (kdapl_conn_attempting(conn))
		kdapl_conn_end(conn, DAT_CONNECTION_EVENT_TIMED_OUT);
	mutex_unlock(&conn->lock);
}

/**
 * kdapl_conn_create - a fresh connection for an EP
 * @ep: EP; with an SRQ, in use by it
 * @conf: what to make it of
 * @old: connection that it will replace on the same EVDs, or NULL
 *
 * Context: may sleep; inside kdapl_dev_enter().
 * Return: the connection, with its QP in INIT, or an ERR_PTR: -EBADRQC when the EP's
 * completion flags do not fit its EVDs, other errnos for lack of resources.
 */
struct kdapl_conn *kdapl_conn_create(struct kdapl_ep *ep, const struct kdapl_ep_conf *conf,
				     struct kdapl_conn *old)
{
	struct kdapl_device *dev = ep->obj.ia->dev;
	const DAT_EP_ATTR *attr = &conf->attr;
	struct kdapl_conn *conn;
	u32 interval, slots;
	int ret = -ENOMEM;

	conn = kzalloc(sizeof(*conn), GFP_KERNEL);
	if (!conn)
		return ERR_PTR(-ENOMEM);
	conn->op_owner.ops = &conn_op_ops;
	refcount_set(&conn->ref, 1);
	conn->dev = dev;
	conn->ep = ep;
	conn->marks = &ep->marks;
	conn->handle = ep->obj.handle;
	conn->attr = *attr;
	conn->recv_evd = conf->recv_evd;
	conn->request_evd = conf->request_evd;
	conn->replaces = old;
	INIT_LIST_HEAD(&conn->early);
	INIT_LIST_HEAD(&conn->pool_node);
	INIT_HLIST_NODE(&conn->qp_node);
	if (ep->srq)
		conn->pool = kdapl_srq_pool_get(ep->srq);
	mutex_init(&conn->lock);
	mutex_init(&conn->destroy_lock);
	init_completion(&conn->ended);
	init_completion(&conn->cm_down);
	init_completion(&conn->gone);
	INIT_LIST_HEAD(&conn->link.node);
	INIT_DELAYED_WORK(&conn->end_work, conn_work_end);
	INIT_WORK(&conn->reap_work, conn_work_reap);
	INIT_RCU_WORK(&conn->free_work, conn_work_free);
	INIT_DELAYED_WORK(&conn->kick_work, conn_work_kick);
	INIT_WORK(&conn->conn_work, conn_work_connect);
	INIT_DELAYED_WORK(&conn->retry_work, conn_work_retry);
	INIT_DELAYED_WORK(&conn->est_work, conn_work_established);
	INIT_DELAYED_WORK(&conn->timer, conn_work_timer);

	slots = conn_sq_slots(conn, attr, &interval);
	conn->sq = kdapl_wq_alloc(conn, false, slots,
				  max3(attr->max_request_iov, attr->max_rdma_read_iov,
				       attr->max_rdma_write_iov));
	conn->rq = kdapl_wq_alloc(conn, true, conn->pool ? 0 : attr->max_recv_dtos,
				  conn->pool ? 0 : attr->max_recv_iov);
	if (!conn->sq || !conn->rq)
		goto err_free;
	conn->sq->depth = attr->max_request_dtos;
	conn->sq->interval = interval;
	conn->sq->ooo = dev->caps.reads_unordered;
	if (conn->sq->ooo)
		conn->sq->slow |= KDAPL_SLOW_EVER;
	conn->rq->depth = conn->rq->slots;

	conn->pd = conf->pz->pd;
	refcount_inc(&conn->pd->ref);
	ret = conn_attach(conn);
	if (ret)
		goto err_pd;
	ret = conn_create_qp(conn);
	if (ret)
		goto err_qp;
	conn_open_wqs(conn);
	if (conn->pool) {
		kdapl_pool_attach(conn->pool, conn);
		kdapl_evd_watch(conn);
	}
	refcount_inc(&ep->obj.ref);
	refcount_inc(&dev->ref);
	kdapl_link_add(dev, &conn->link, &conn_link_ops);
	return conn;

err_qp:
	if (conn->qp)
		ib_destroy_qp(conn->qp);
	conn_detach(conn);
	kdapl_cq_put(conn->sq->cq);
	kdapl_cq_put(conn->rq->cq);
err_pd:
	kdapl_pd_put(conn->pd);
err_free:
	kdapl_wq_free(conn->sq);
	kdapl_wq_free(conn->rq);
	kdapl_pool_put(conn->pool);
	kfree(conn);
	return ERR_PTR(ret);
}
