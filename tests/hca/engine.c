// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The engine of a queue pair: one work item that walks its send queue. Requests begin in the
 * order of posts and complete in that order. A Read is asked for when it begins and answered
 * later, when nothing else can begin or several requests have: what comes behind it without
 * a fence overtakes it, as on a wire.
 */
#include <linux/jiffies.h>

#include "kdhca.h"

#define OVERTAKE	8	/* requests that may begin while a Read is out */
#define AGAIN		(HZ / 20 + 1)	/* until a lost segment of iWARP is sent again */

static u32 sq_head(struct kdhca_sq *sq)
{
	u32 head;

	spin_lock_irq(&sq->lock);
	head = sq->head;
	spin_unlock_irq(&sq->lock);
	return head;
}

/* Report what is done, as far as everything before it is. */
static void engine_complete(struct kdhca_qp *qp)
{
	struct kdhca_sq *sq = &qp->sq;
	struct kdhca_wqe *wqe;
	struct kdhca_cqe cqe;

	while (sq->done != sq->next) {
		wqe = kdhca_wqe(sq, sq->done);
		if (wqe->state != KDHCA_DONE)
			break;
		sq->done++;
		if (!wqe->status && !(wqe->flags & IB_SEND_SIGNALED))
			continue;
		cqe = (struct kdhca_cqe){
			.wr_id = wqe->wr_id,
			.qp = qp,
			.tail = &sq->tail,
			.frees = sq->done - sq->freed,
			.byte_len = wqe->length,
			.status = wqe->status,
			.opcode = kdhca_op(wqe->opcode)->wc,
		};
		sq->freed = sq->done;
		kdhca_cq_push(qp->scq, &cqe, false);	/* an error is, always */
	}
}

static void engine_done(struct kdhca_qp *qp, struct kdhca_wqe *wqe, enum ib_wc_status status)
{
	wqe->status = status;
	wqe->state = KDHCA_DONE;
	engine_complete(qp);
}

static void engine_set_error(struct kdhca_qp *qp)
{
	mutex_lock(&qp->rx);
	if (qp->state != IB_QPS_RESET)
		kdhca_qp_error(qp);
	mutex_unlock(&qp->rx);
	if (qp->dev->set.iwarp)
		kdhca_iw_break(qp);
}

/* Try again later. */
static void engine_wait(struct kdhca_qp *qp, unsigned long delay)
{
	qp->waits = true;
	qp->wait_until = jiffies + delay + 1;
}

/* 4.096 us * 2^timeout; 0: for ever, which is asked for again and again. */
static unsigned long ack_timeout(const struct kdhca_qp *qp)
{
	u32 timeout = min_t(u32, qp->attr.timeout, 20);

	return timeout ? usecs_to_jiffies(4ULL << timeout) : HZ;
}

/* By the code of the IBA specification, in units of 10 us. */
static unsigned long rnr_timeout(const struct kdhca_qp *qp)
{
	static const u16 units[] = {
		65535, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768,
		1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
	};

	return usecs_to_jiffies(10 * units[qp->rnr_timer]);
}

/* Nobody has answered. Whether the request is to be tried again. */
static bool engine_retry(struct kdhca_qp *qp, enum kdhca_answer answer)
{
	if (qp->dev->set.iwarp) {
		engine_wait(qp, AGAIN);
		return true;
	}
	if (answer == KDHCA_NOBODY) {
		if (qp->attr.timeout && !qp->retries)
			return false;
		if (qp->attr.timeout)
			qp->retries--;
		engine_wait(qp, ack_timeout(qp));
		return true;
	}
	if (!qp->rnr_retries)
		return false;
	if (qp->attr.rnr_retry < 7)
		qp->rnr_retries--;
	engine_wait(qp, rnr_timeout(qp));
	return true;
}

static void engine_answered(struct kdhca_qp *qp)
{
	qp->retries = qp->attr.retry_cnt;
	qp->rnr_retries = qp->attr.rnr_retry;
}

/* The oldest Read that is out gets its answer. Whether the QP goes on. */
static bool engine_answer(struct kdhca_qp *qp)
{
	enum kdhca_answer answer;
	struct kdhca_wqe *wqe;
	u32 i = qp->sq.done;

	while (kdhca_wqe(&qp->sq, i)->state != KDHCA_READING)
		i++;
	wqe = kdhca_wqe(&qp->sq, i);
	answer = kdhca_read_answer(qp, wqe);
	if (answer == KDHCA_NOBODY && engine_retry(qp, answer))
		return true;
	qp->reading--;
	qp->since = 0;
	if (answer == KDHCA_ACK) {
		engine_answered(qp);
		engine_done(qp, wqe, IB_WC_SUCCESS);
		return true;
	}
	/* what has overtaken it does not succeed if it does not */
	for (i++; i != qp->sq.next; i++) {
		kdhca_wqe(&qp->sq, i)->status = IB_WC_WR_FLUSH_ERR;
		kdhca_wqe(&qp->sq, i)->state = KDHCA_DONE;
	}
	qp->reading = 0;
	engine_done(qp, wqe, answer == KDHCA_NOBODY ? IB_WC_RETRY_EXC_ERR : wqe->status);
	engine_set_error(qp);
	return false;
}

/*
 * A request has failed. Those before it have not, unless their answers say so: while these do
 * not come it waits, and is begun again.
 */
static void engine_fail(struct kdhca_qp *qp, struct kdhca_wqe *wqe, enum ib_wc_status status)
{
	while (qp->reading) {
		if (!engine_answer(qp))
			return;
		if (qp->waits) {
			qp->sq.next--;
			return;
		}
	}
	engine_done(qp, wqe, status);
	engine_set_error(qp);
}

static bool remote_fault(enum ib_wc_status status)
{
	return status == IB_WC_REM_ACCESS_ERR || status == IB_WC_REM_INV_REQ_ERR ||
	       status == IB_WC_REM_OP_ERR;
}

static void engine_begun(struct kdhca_qp *qp, struct kdhca_wqe *wqe, enum kdhca_answer answer)
{
	enum ib_wc_status status = wqe->status;

	switch (answer) {
	case KDHCA_ACK:
		engine_answered(qp);
		if (!kdhca_is_read(wqe->opcode)) {
			engine_done(qp, wqe, IB_WC_SUCCESS);
			return;
		}
		wqe->state = KDHCA_READING;
		if (!qp->reading++)
			qp->since = 0;
		return;
	case KDHCA_NOBODY:
		status = IB_WC_RETRY_EXC_ERR;
		break;
	case KDHCA_RNR:
		status = IB_WC_RNR_RETRY_EXC_ERR;
		break;
	case KDHCA_NAK:
		qp->nak = remote_fault(status);
		/* what has left is done, as far as iWARP knows: the peer ends the connection */
		if (qp->dev->set.iwarp && !kdhca_is_read(wqe->opcode) && remote_fault(status))
			status = IB_WC_SUCCESS;
		break;
	}
	if (answer != KDHCA_NAK && engine_retry(qp, answer)) {
		qp->sq.next--;
		return;
	}
	engine_fail(qp, wqe, status);
}

static void engine_begin(struct kdhca_qp *qp, struct kdhca_wqe *wqe)
{
	bool ok;

	qp->sq.next++;
	qp->since++;
	qp->nak = false;
	wqe->status = IB_WC_SUCCESS;
	switch (wqe->opcode) {
	case IB_WR_REG_MR:
	case IB_WR_LOCAL_INV:
		ok = wqe->opcode == IB_WR_REG_MR ? !kdhca_mr_reg(qp, wqe) :
		     !kdhca_mr_invalidate(qp, wqe->ex, false);
		if (ok)
			engine_done(qp, wqe, IB_WC_SUCCESS);
		else
			engine_fail(qp, wqe, IB_WC_LOC_QP_OP_ERR);
		break;
	case IB_WR_RDMA_READ:
	case IB_WR_RDMA_READ_WITH_INV:
		engine_begun(qp, wqe, kdhca_read_ask(qp, wqe));
		break;
	default:
		engine_begun(qp, wqe, kdhca_deliver(qp, wqe));
		break;
	}
}

/* Must the request wait for Reads that are out? */
static bool engine_blocked(const struct kdhca_qp *qp, const struct kdhca_wqe *wqe)
{
	if (!qp->reading)
		return false;
	return (wqe->flags & IB_SEND_FENCE) || !qp->dev->set.reads_late ||
	       qp->since >= OVERTAKE ||
	       (kdhca_is_read(wqe->opcode) && qp->reading >= qp->attr.max_rd_atomic);
}

/* Everything that has been posted comes back. */
static void engine_flush(struct kdhca_qp *qp)
{
	struct kdhca_sq *sq = &qp->sq;
	u32 i;

	sq->next = sq_head(sq);
	for (i = sq->done; i != sq->next; i++) {
		kdhca_wqe(sq, i)->status = IB_WC_WR_FLUSH_ERR;
		kdhca_wqe(sq, i)->state = KDHCA_DONE;
	}
	qp->reading = 0;
	qp->waits = false;
	engine_complete(qp);
	kdhca_flush_recvs(qp);
}

/* The next thing to do. Whether there may be more. */
static bool engine_step(struct kdhca_qp *qp)
{
	enum ib_qp_state state = READ_ONCE(qp->state);
	struct kdhca_sq *sq = &qp->sq;
	struct kdhca_wqe *wqe;
	bool some;

	if (state == IB_QPS_ERR)
		engine_flush(qp);
	if (state != IB_QPS_RTS && (state != IB_QPS_SQD || !qp->dev->set.iwarp))
		return false;
	if (qp->waits && time_before(jiffies, qp->wait_until)) {
		mod_delayed_work(kdhca_wq, &qp->work, qp->wait_until - jiffies);
		return false;
	}
	qp->waits = false;
	some = sq->next != sq_head(sq);
	wqe = kdhca_wqe(sq, sq->next);
	if (some && qp->ibqp.qp_type == IB_QPT_GSI) {
		sq->next++;
		kdhca_mad_send(qp, wqe);
		engine_done(qp, wqe, IB_WC_SUCCESS);
		return true;
	}
	if (some && !engine_blocked(qp, wqe)) {
		engine_begin(qp, wqe);
		return true;
	}
	if (qp->reading)
		return engine_answer(qp);
	if (state == IB_QPS_SQD)
		kdhca_iw_break(qp);
	return state == IB_QPS_SQD;
}

/* The work of a QP. */
void kdhca_engine(struct work_struct *work)
{
	struct kdhca_qp *qp = container_of(to_delayed_work(work), struct kdhca_qp, work);

	while (engine_step(qp))
		cond_resched();
}
