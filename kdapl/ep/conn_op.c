// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A connection as the owner of operations on LMRs and RMRs (mem/op.h).
 */
#include "ep.h"

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
	const struct kdapl_wq *sq = conn_op_conn(owner)->sq;

	return READ_ONCE(sq->tail) + READ_ONCE(sq->sent) + READ_ONCE(sq->reads_done) +
	       READ_ONCE(sq->memops_done);
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

/**
 * kdapl_conn_op_init - before anything is posted on a connection
 * @conn: new connection
 */
void kdapl_conn_op_init(struct kdapl_conn *conn)
{
	conn->op_owner.ops = &conn_op_ops;
}
