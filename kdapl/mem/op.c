// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Waiting for outstanding operations on LMRs and RMRs.
 */
#include "mem.h"

/*
 * How long an operation on an LMR or RMR that is being freed may stay outstanding, while the
 * device completes no other request of the EP either.
 */
#define OP_TIMEOUT	(5 * HZ)
#define OP_POLL		(HZ / 50 + 1)

/**
 * kdapl_op_evd_get - get the EVD an operation completes on
 * @owner: its connection, or NULL; the lock that protects it is held
 *
 * Context: any.
 * Return: for kdapl_op_evd_poll(), if it has an EVD.
 */
struct kdapl_op_evd kdapl_op_evd_get(struct kdapl_op_owner *owner)
{
	struct kdapl_op_evd from = {};

	if (owner) {
		from.ops = owner->ops;
		from.evd = owner->ops->evd_get(owner);
	}
	return from;
}

/**
 * kdapl_op_evd_poll - poll for the completion of an operation
 * @from: an EVD, whose reference is dropped
 * @wait: the caller waits for it: take whatever comes before it, too
 *
 * Context: any, without the lock of an LMR or RMR; may sleep with @wait.
 */
void kdapl_op_evd_poll(struct kdapl_op_evd from, bool wait)
{
	from.ops->evd_poll(from.evd, wait);
	kdapl_obj_put(from.evd);
}

/**
 * kdapl_op_wait - wait for an operation on an LMR or RMR
 * @ia: IA
 * @lock: protects @op
 * @op: its connection, or NULL; no new operation begins
 *
 * A connection that completes no request for 5 s is ended, which flushes the operation. A
 * slow one may take as long as it needs.
 *
 * Context: may sleep.
 */
void kdapl_op_wait(struct kdapl_ia *ia, spinlock_t *lock, struct kdapl_op_owner **op)
{
	struct kdapl_op_owner *owner, *waited = NULL;
	unsigned long deadline = 0;
	struct kdapl_op_evd from;
	bool reported = false;
	u32 seen = 0, now;

	for (;;) {
		spin_lock_irq(lock);
		owner = *op;
		from = kdapl_op_evd_get(owner);
		/*
		 * The memory of the connection is still there: it has not ended, since the
		 * operation is outstanding, or a post is still inside the RCU section that its
		 * release waits for. In the latter case there may be no EVD any more.
		 */
		if (owner)
			owner->ops->hold(owner);
		spin_unlock_irq(lock);
		if (!owner)
			return;
		owner->ops->kick(owner);
		if (from.evd)
			kdapl_op_evd_poll(from, true);
		now = owner->ops->progress(owner);
		if (owner != waited || now != seen)
			deadline = jiffies + OP_TIMEOUT;
		waited = owner;
		seen = now;
		if (!reported && !time_before(jiffies, deadline)) {
			reported = true;
			pr_warn("%s: an EP has completed neither an operation on an LMR or RMR that is being freed nor any other request for %u s, its connection is ended\n",
				ia->name, OP_TIMEOUT / HZ);
			owner->ops->end(owner);
		}
		wait_event_timeout(ia->unused, READ_ONCE(*op) != owner, OP_POLL);
		owner->ops->put(owner);
	}
}
