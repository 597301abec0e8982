// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The outcome of work queue entries, and reporting it to the LMR or RMR of an operation on memory.
 *
 * Everything here runs under evd->lock, or when the EVD is gone.
 */
#include "event.h"

/* Has the completion of a later request shown that this one is done? */
static bool retire_proven(const struct kdapl_wq *wq, const struct kdapl_wqe *wqe)
{
	return (s32)(wq->done_to - kdapl_wqe_pos(wq, wqe)) > 0;
}

/**
 * kdapl_wqe_outcome - how an entry has ended
 * @wq: its work queue
 * @wqe: the entry at the tail, or one behind it if the work queue has ended
 * @status: set to its DAT_DTO_COMPLETION_STATUS
 *
 * Return: false if that is not known yet.
 */
bool kdapl_wqe_outcome(const struct kdapl_wq *wq, const struct kdapl_wqe *wqe,
		       unsigned int *status)
{
	*status = DAT_DTO_SUCCESS;
	switch (READ_ONCE(wqe->state)) {
	case KDAPL_WQE_DONE:
		*status = wqe->status;
		break;
	case KDAPL_WQE_UNPOSTED:
		if (!wq->ended)
			return false;
		*status = DAT_DTO_ERR_FLUSHED;
		break;
	default:
		if (wq->ended) {
			/* no completion: unsignaled, and succeeded unless the end was forced */
			if ((wq->flush_unsignaled && !retire_proven(wq, wqe)) ||
			    (wqe->flags & KDAPL_WQE_SIGNALED) || wq->recv)
				*status = DAT_DTO_ERR_FLUSHED;
		} else if ((!wq->ooo && !(wq->slow & KDAPL_SLOW_EARLY)) ||
			   (wqe->flags & KDAPL_WQE_SIGNALED) ||
			   (s32)(wq->done_to - wq->tail) <= 0) {
			return false;
		}
	}
	return true;
}

/**
 * kdapl_wqe_retire_op - report the outcome of an operation to its LMR or RMR
 * @wq: send work queue
 * @wqe: the operation, with KDAPL_WQE_OP_PENDING
 * @status: its DAT_DTO_COMPLETION_STATUS
 */
void kdapl_wqe_retire_op(struct kdapl_wq *wq, struct kdapl_wqe *wqe, unsigned int status)
{
	union kdapl_memop *memop = &wq->memop[wqe->index];
	enum kdapl_outcome outcome = KDAPL_UNKNOWN;
	struct kdapl_obj *obj = memop->obj;

	wqe->flags &= ~KDAPL_WQE_OP_PENDING;
	memop->handle = obj->handle;
	wq->memops_done++;
	if (status == DAT_DTO_SUCCESS)
		outcome = KDAPL_DONE;
	else if (READ_ONCE(wqe->state) == KDAPL_WQE_UNPOSTED)
		outcome = KDAPL_NEVER;
	else if (status != DAT_DTO_ERR_FLUSHED)
		outcome = KDAPL_FAILED;
	if (wqe->op == DAT_DTO_LMR_FMR)
		kdapl_lmr_op_done(container_of(obj, struct kdapl_lmr, obj), KDAPL_LMR_REG,
				  wqe->length, outcome);
	else if (wqe->op == DAT_DTO_LMR_INVALIDATE)
		kdapl_lmr_op_done(container_of(obj, struct kdapl_lmr, obj), KDAPL_LMR_INV,
				  wqe->length, outcome);
	else if (wqe->op == KDAPL_OP_INV)
		kdapl_rmr_inv_done(container_of(obj, struct kdapl_rmr, obj), outcome);
	else
		kdapl_rmr_op_done(container_of(obj, struct kdapl_rmr, obj), outcome);
	kdapl_obj_put(obj);
}

/**
 * kdapl_wq_retire_to - retire operations up to a completion
 * @wq: send work queue of a device that completes in order
 * @end: index of the entry that has completed
 * @status: how
 *
 * Entries before it have no completion, so they were suppressed and succeeded.
 */
void kdapl_wq_retire_to(struct kdapl_wq *wq, u32 end, unsigned int status)
{
	u32 pos;

	for (pos = wq->tail; pos != end; pos++)
		kdapl_wqe_retire(wq, &wq->wqe[pos & wq->mask], DAT_DTO_SUCCESS);
	kdapl_wqe_retire(wq, &wq->wqe[end & wq->mask], status);
}

/**
 * kdapl_wq_retire_all - retire the operations of a work queue that has ended
 * @wq: the work queue
 *
 * Their events may stay in the work queue: freeing an LMR must not wait for a consumer that
 * does not dequeue.
 */
void kdapl_wq_retire_all(struct kdapl_wq *wq)
{
	/* pairs with the release of the poster: entries before head are complete */
	u32 head = smp_load_acquire(&wq->head);
	unsigned int status;
	u32 pos;

	for (pos = wq->tail; pos != head && kdapl_wq_unretired(wq); pos++) {
		struct kdapl_wqe *wqe = &wq->wqe[pos & wq->mask];

		kdapl_wqe_outcome(wq, wqe, &status);
		kdapl_wqe_retire(wq, wqe, status);
	}
}
