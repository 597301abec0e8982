/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * From a work completion to an event: what only the files of this folder use.
 */
#ifndef KDAPL_EVD_EVENT_H
#define KDAPL_EVD_EVENT_H

#include "evd.h"

/* Streams that come from work queues: such an EVD has CQs. */
#define KDAPL_EVD_CQ_FLAGS	(DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG)

/* Completion flags of a Receive whose message has brought more than bytes. */
#define KDAPL_WC_BRINGS		(IB_WC_WITH_INVALIDATE | IB_WC_WITH_IMM)

/* The completion event of a data transfer. Inline, because every completion needs it. */
static __always_inline void kdapl_event_dto(DAT_DTO_COMPLETION_EVENT_DATA *dto, DAT_EP_HANDLE ep,
					    u64 cookie, unsigned int op, unsigned int status,
					    u32 length, u32 rkey)
{
	dto->ep_handle = ep;
	dto->user_cookie.as_64 = cookie;
	dto->status = status;
	dto->transfered_length = length;
	dto->operation = op;
	dto->rmr_context = rkey;
}

/* With many work queues those of the next completions are not in the cache. evd->lock held. */
static inline bool kdapl_evd_cold(const struct kdapl_evd *evd)
{
	return evd->attached[0] + evd->attached[1] > 4;
}

/* The completion event of a transfer that was taken for an upcall. */
static __always_inline void kdapl_event_taken(DAT_DTO_COMPLETION_EVENT_DATA *dto,
					      const struct kdapl_taken *taken)
{
	kdapl_event_dto(dto, taken->ep, taken->cookie, taken->op, DAT_DTO_SUCCESS, taken->length,
			0);
}

/* An event of a stream other than DTO and RMR. */
static inline bool kdapl_event_other(const struct kdapl_event *ev)
{
	return ev->number != DAT_DTO_COMPLETION_EVENT &&
	       ev->number != DAT_RMR_BIND_COMPLETION_EVENT;
}

/* Takes the place of an event's buffer once that has been freed: kdapl_evd_give_back(). */
#define KDAPL_BUF_FREED		((struct kdapl_buf *)ERR_PTR(-ENOENT))

/*
 * The consumer has the event, or will never have it: a buffer of an SRQ may be posted anew.
 * evd->lock held.
 */
static inline void kdapl_event_release(const struct kdapl_event *ev)
{
	if (likely(!ev->buf))
		return;
	ev->conn->srq_bufs_held--;
	if (likely(ev->buf != KDAPL_BUF_FREED))
		kdapl_buf_free(ev->buf);
	else
		kdapl_pool_owe(ev->conn->pool, -1);
}

/* The event at position @i of the backlog, counted from the oldest. evd->lock held. */
static inline struct kdapl_event *kdapl_evd_backlog_at(const struct kdapl_evd *evd, u32 i)
{
	return &evd->backlog[(evd->backlog_head + i) % evd->backlog_size];
}

/* pool.c; inline, because every completion of an SRQ needs it */

/* Where a QP of an SRQ is in the table of its connections. pool->lock held. */
static inline struct hlist_head *kdapl_pool_bucket(struct kdapl_pool *pool, struct ib_qp *qp)
{
	return &pool->by_qp[hash_ptr(qp, pool->bits)];
}

/* The connection of a QP, a value only. pool->lock held. */
static __always_inline struct kdapl_conn *kdapl_pool_find(struct kdapl_pool *pool, struct ib_qp *qp)
{
	struct kdapl_conn *conn;

	hlist_for_each_entry(conn, kdapl_pool_bucket(pool, qp), qp_node) {
		if (conn->pool_qp == qp)
			return conn;
	}
	return NULL;
}

/* A buffer that is in no list is free. pool->lock held. */
static inline void kdapl_pool_add_free(struct kdapl_pool *pool, struct kdapl_buf *buf)
{
	buf->state = KDAPL_BUF_FREE;
	buf->next = pool->free;
	pool->free = buf;
}

/* The buffer of an SRQ that a completion is of. */
static inline struct kdapl_buf *kdapl_wc_buf(const struct ib_wc *wc)
{
	return container_of(wc->wr_cqe, struct kdapl_buf, cqe);
}

/**
 * kdapl_buf_pass - a buffer was filled, and the consumer will have the event soon
 * @wc: its completion
 * @watched: watermarks may be armed: evd->watching
 *
 * kdapl_buf_taken() and kdapl_buf_free() in one, for a connection that needs no closer look.
 * If no watermark is armed, conn->srq_bufs_held need not count the buffer in between, nor
 * pool->outstanding: whoever arms one or queries takes the lock first, and that counts buffers
 * without an upcall yet. A post does not take it, so while upcalls run it may find more room.
 *
 * Context: the lock of the connection's receive EVD held, pool->lock not held.
 * Return: the connection; NULL, and nothing has changed, if the slow path must be taken.
 */
static __always_inline struct kdapl_conn *kdapl_buf_pass(const struct ib_wc *wc, bool watched)
{
	struct kdapl_buf *buf = kdapl_wc_buf(wc);
	struct kdapl_pool *pool = kdapl_buf_pool(buf);
	struct kdapl_conn *conn;

	spin_lock(&pool->lock);	/* evd->lock has disabled interrupts */
	conn = kdapl_pool_find(pool, wc->qp);
	if (unlikely(!conn || conn->rq->slow || buf->state != KDAPL_BUF_POSTED ||
		     (watched && kdapl_marks_armed(conn->marks)))) {
		spin_unlock(&pool->lock);
		return NULL;
	}
	if ((s32)(buf->seq - pool->newest) > 0)
		pool->newest = buf->seq;
	kdapl_pool_add_free(pool, buf);
	pool->outstanding--;
	pool->available--;
	if (unlikely(pool->low_armed))
		kdapl_pool_check_low(pool);
	spin_unlock(&pool->lock);
	return conn;
}

/* backlog.c */

/*
 * Completions that there may be on an EVD at once if its length is the number of requests and
 * Receives of its EPs: a send queue has a quarter more entries (D-09), for suppressed ones.
 */
static inline u64 kdapl_evd_expected(const struct kdapl_evd *evd)
{
	return (u64)evd->qlen + evd->qlen / 4;
}

int kdapl_evd_grow_backlog(struct kdapl_evd *evd, u32 qlen, u32 more);
bool kdapl_evd_backlog_add(struct kdapl_evd *evd, const struct kdapl_event *ev);
void kdapl_evd_backlog_keep(struct kdapl_evd *evd, const struct kdapl_event *ev);
void kdapl_evd_backlog_put(struct kdapl_evd *evd, const struct kdapl_event *ev);
void kdapl_evd_backlog_take(struct kdapl_evd *evd, struct kdapl_event *ev);
bool kdapl_evd_room(const struct kdapl_evd *evd);
bool kdapl_evd_may_poll_ahead(const struct kdapl_evd *evd, bool teardown);

/* cq.c */
void kdapl_evd_unlink_cqs(struct kdapl_evd *evd, bool keep, struct list_head *unused);
struct kdapl_cq *kdapl_evd_find_cq(struct kdapl_evd *evd, int entries);
struct kdapl_cq *kdapl_evd_add_cq(struct kdapl_evd *evd, int entries);
void kdapl_evd_put_cqs(struct list_head *cqs);

/* retire.c */
bool kdapl_wqe_outcome(const struct kdapl_wq *wq, const struct kdapl_wqe *wqe,
		       unsigned int *status);
void kdapl_wqe_retire_op(struct kdapl_wq *wq, struct kdapl_wqe *wqe, unsigned int status);
void kdapl_wq_retire_to(struct kdapl_wq *wq, u32 end, unsigned int status);
void kdapl_wq_retire_all(struct kdapl_wq *wq);

/* Has a work queue operations on memory that are not retired? */
static inline bool kdapl_wq_unretired(const struct kdapl_wq *wq)
{
	return wq->memops_done != READ_ONCE(wq->memops);
}

/* An operation on an LMR or RMR reports its outcome to that object, once. */
static inline void kdapl_wqe_retire(struct kdapl_wq *wq, struct kdapl_wqe *wqe,
				    unsigned int status)
{
	if (!wq->recv && unlikely(wqe->flags & KDAPL_WQE_OP_PENDING))
		kdapl_wqe_retire_op(wq, wqe, status);
}

/* wc_sync.c */

/* Bytes in the memory of a Receive that has succeeded. */
static inline u32 kdapl_wc_filled(const struct ib_wc *wc)
{
	return wc->opcode == IB_WC_RECV_RDMA_WITH_IMM ? 0 : wc->byte_len;
}

void kdapl_wqe_sync(struct kdapl_wq *wq, const struct kdapl_wqe *wqe, bool done, u32 length);
void kdapl_wq_sync_reads(struct kdapl_wq *wq, u32 end, bool done);
void kdapl_wq_sync_rest(struct kdapl_wq *wq);
void kdapl_buf_sync(struct kdapl_buf *buf, struct kdapl_conn *conn, const struct ib_wc *wc);

/* report.c */
bool kdapl_wqe_reported(const struct kdapl_wqe *wqe, unsigned int status);
bool kdapl_wqe_event(struct kdapl_wq *wq, const struct kdapl_wqe *wqe, unsigned int status,
		     struct kdapl_event *ev);
void kdapl_buf_event(struct kdapl_conn *conn, struct kdapl_buf *buf, struct kdapl_event *ev);
bool kdapl_wq_next(struct kdapl_wq *wq, struct kdapl_event *ev);

/* Give an entry back to the poster. */
static inline void kdapl_wq_advance(struct kdapl_wq *wq, const struct kdapl_wqe *wqe, u32 tail)
{
	if (!wq->recv)
		wq->dtos_done = wqe->seq;
	/* tail last: pairs with the acquire of the poster, which reads it first */
	smp_store_release(&wq->tail, tail);
}

/* A work queue has entries to report. evd->lock held. */
static inline void kdapl_wq_mark_ready(struct kdapl_evd *evd, struct kdapl_wq *wq)
{
	if (list_empty(&wq->ready) && likely(!wq->dead))
		list_add_tail(&wq->ready, &evd->ready);
}

/* wq_end.c */
void kdapl_wq_end(struct kdapl_evd *evd, struct kdapl_wq *wq);
void kdapl_wq_end_orphan(struct kdapl_wq *wq);
void kdapl_wq_check_recv_end(struct kdapl_evd *evd, struct kdapl_wq *wq);
void kdapl_wq_check_marker(struct kdapl_evd *evd, struct kdapl_wq *wq);

/* wc.c */
bool kdapl_wc_event(struct kdapl_evd *evd, struct ib_wc *wc, struct kdapl_event *ev);

/* poll.c */
bool kdapl_evd_poll_cq(struct kdapl_evd *evd, struct kdapl_cq *cq);
bool kdapl_evd_refill(struct kdapl_evd *evd);
bool kdapl_evd_poll(struct kdapl_evd *evd, struct kdapl_event *ev);
bool kdapl_evd_take(struct kdapl_evd *evd, struct kdapl_event *ev);
bool kdapl_evd_more(struct kdapl_evd *evd);
u32 kdapl_evd_depth(const struct kdapl_evd *evd);
bool kdapl_evd_arm(struct kdapl_evd *evd);

/* poll_ahead.c */
int kdapl_evd_poll_ahead_locked(struct kdapl_evd *evd, int budget, bool teardown);
void kdapl_evd_poll_all(struct kdapl_evd *evd);

/* conn_events.c */
void kdapl_evd_make_due(struct kdapl_evd *evd, const struct kdapl_conn *conn);

/* evd_upcall.c */
void kdapl_event_fill(struct kdapl_evd *evd, const struct kdapl_event *ev, DAT_EVENT *out);

/* evd_fast.c */

/* What kdapl_evd_fast() has found. */
enum kdapl_next {
	KDAPL_NEXT_NONE,	/* no event */
	KDAPL_NEXT_EVENT,	/* an ordinary completion: the event is filled in */
	KDAPL_NEXT_SLOW,	/* something else: call kdapl_evd_take() */
};

enum kdapl_next kdapl_evd_fast(struct kdapl_evd *evd, DAT_EVENT *event);
int kdapl_evd_run_fast(struct kdapl_evd *evd, struct kdapl_runner *runner, int budget, bool *none);

#endif /* KDAPL_EVD_EVENT_H */
