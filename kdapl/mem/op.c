// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Waiting for operations on LMRs and RMRs that are under way on a connection.
 */
#include "mem.h"

/*
 * How long an EP may keep an operation on an LMR or RMR that is being freed, while its
 * device gives back nothing else either.
 */
#define OP_TIMEOUT	(5 * HZ)
#define OP_POLL		(HZ / 50 + 1)

/**
 * kdapl_op_evd_get - where an operation comes back
 * @owner: its connection, or NULL; the lock that protects this held
 *
 * Context: any.
 * Return: for kdapl_op_evd_drain(), if there is an EVD.
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
 * kdapl_op_evd_drain - take in what has come back
 * @from: there is an EVD, whose reference is dropped
 * @teardown: an end is waited for
 *
 * Context: any, without the lock of an LMR or RMR.
 */
void kdapl_op_evd_drain(struct kdapl_op_evd from, bool teardown)
{
	from.ops->evd_drain(from.evd, teardown);
	kdapl_obj_put(from.evd);
}

/**
 * kdapl_op_wait - wait until an operation on an LMR or RMR has come back
 * @ia: IA
 * @lock: of @op
 * @op: its connection, NULL for none; there will be no new one
 *
 * A connection that completes no request for too long is ended, which flushes the operation
 * as well. A slow one is waited for.
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
		 * The connection's memory is there. Either it has not ended, since the operation
		 * is outstanding, or a post is still inside the RCU section that its release
		 * waits for; in that case there may be no EVD any more.
		 */
		if (owner)
			owner->ops->hold(owner);
		spin_unlock_irq(lock);
		if (!owner)
			return;
		owner->ops->kick(owner);
		if (from.evd)
			kdapl_op_evd_drain(from, reported);
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
