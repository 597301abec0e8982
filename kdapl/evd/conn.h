/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The transport of an EP: a queue pair, its two work queues, the cm_id of one attempt.
 */
#ifndef KDAPL_EVD_CONN_H
#define KDAPL_EVD_CONN_H

#include "../core/names.h"

enum kdapl_conn_state {
	KDAPL_CONN_IDLE,	/* QP in INIT, receives may be posted */
	KDAPL_CONN_CONNECTING,	/* a cm_id connects it */
	KDAPL_CONN_HELD,	/* established for the CM, not reported to the consumer */
	KDAPL_CONN_UP,		/* ESTABLISHED is queued */
	KDAPL_CONN_ENDING,	/* QP in ERR, waiting for the last completion */
	KDAPL_CONN_ENDED,	/* end event queued; only software flushes from here */
	KDAPL_CONN_STATES
};

enum kdapl_conn_input {
	KDAPL_CONN_IN_ATTEMPT,		/* a cm_id starts to connect it */
	KDAPL_CONN_IN_HOLD,		/* established for the CM, but the peer may be overrun */
	KDAPL_CONN_IN_ESTABLISHED,	/* it is reported to the consumer */
	KDAPL_CONN_IN_STOP,		/* there is a reason to end, or the device is removed */
	KDAPL_CONN_IN_FINISHED,		/* everything posted has come back */
	KDAPL_CONN_INPUTS
};

#define KDAPL_CONN_NO_STEP	(-1)	/* the table has no such transition */

/**
 * struct kdapl_patience - how long a device may make no progress
 * @seen: kdapl_conn_progress() at the last check
 * @limit: jiffies without progress; 0: not at all
 * @deadline: jiffies when these are over
 */
struct kdapl_patience {
	u32 seen;
	unsigned long limit;
	unsigned long deadline;
};

/*
 * How long data may wait before the CM is told that there must be a connection. Normally the CM
 * finds out by itself within microseconds. If it is told, its report may come after that of the
 * peer's disconnect.
 */
#define KDAPL_EST_TIME	(HZ / 20)

/*
 * How long the accepting side holds back ESTABLISHED if the peer fails when it reads more than
 * the MPA reply. Nothing reports that the peer has read the reply. Its work items do so within a
 * millisecond or two, unless its CPUs are busy. The wait consists of steps, each begun when the
 * last one has ended. If a virtual machine is stopped for a while, and the peer is in it or on
 * the same host, only one step is lost and not the whole time.
 */
#define KDAPL_HOLD_STEP		(HZ / 100)
#define KDAPL_HOLD_STEPS	6

/* Time for a device to send the ACK of what the peer has sent. */
#define KDAPL_ACK_TIME	(HZ / 100 + 1)

/* What the cm_id of a connection is busy with. */
#define KDAPL_CM_CALL		BIT(0)	/* rdma_connect() or the accepting call has not returned */
#define KDAPL_CM_OUTCOME	BIT(1)	/* iWARP: it has no outcome yet */

/* Retries of a QP, unless the consumer sets them. */
#define KDAPL_RETRY_COUNT	6	/* 7 means for ever on soft-RoCE */
#define KDAPL_RNR_RETRY_COUNT	6	/* 7 would mean for ever */

/**
 * struct kdapl_watermark - fires once each time it is set
 * @value: as set; DAT_WATERMARK_INFINITE for never
 * @armed: @value until it has fired, then DAT_WATERMARK_INFINITE
 * @fired: events still to be queued
 */
struct kdapl_watermark {
	int value;
	atomic_t armed;
	atomic_t fired;
};

static inline void kdapl_watermark_set(struct kdapl_watermark *wm, int value)
{
	WRITE_ONCE(wm->value, value);
	atomic_set(&wm->armed, value);
}

/* Is @count above the watermark, for the first time? */
static inline bool kdapl_watermark_above(struct kdapl_watermark *wm, u32 count)
{
	int value = atomic_read(&wm->armed);

	return value >= 0 && count > value &&
	       atomic_cmpxchg(&wm->armed, value, DAT_WATERMARK_INFINITE) == value;
}

/**
 * struct kdapl_marks - how many buffers of its SRQ an EP may hold
 * @ep: the EP
 * @soft: above that many an asynchronous event is due
 * @hard: above that many the connection breaks
 * @fired_work: one has fired: queues the asynchronous event, and ends the counting
 */
struct kdapl_marks {
	struct kdapl_obj *ep;
	struct kdapl_watermark soft;
	struct kdapl_watermark hard;
	struct work_struct fired_work;
};

/* Does any of them count buffers? */
static inline bool kdapl_marks_armed(const struct kdapl_marks *marks)
{
	return atomic_read(&marks->soft.armed) >= 0 || atomic_read(&marks->hard.armed) >= 0;
}

/**
 * struct kdapl_conn_cm_ops - operations of the folder above, for work items of a connection
 * @connect: send the REQ; may block for a long time
 * @retry: start the attempt again: stale connection at the peer, local port in use
 */
struct kdapl_conn_cm_ops {
	void (*connect)(struct kdapl_conn *conn);
	void (*retry)(struct kdapl_conn *conn);
};

/**
 * struct kdapl_conn - the replaceable connection of an EP
 * @op_owner: the connection as owner of operations on LMRs and RMRs; first, so that
 *	posts need no arithmetic
 * @ep: back pointer, holds a memory reference
 * @handle: the EP's handle, for events
 * @attr: the EP's attributes this connection was made for
 * @recv_evd: EVD of @rq, valid until the reaper has the connection
 * @request_evd: EVD of @sq, likewise
 * @pool: buffers of its SRQ, or NULL
 * @pool_node: in pool->conns, until no completion can come; pool->lock
 * @qp_node: in pool->by_qp, likewise
 * @early: buffers of the SRQ that were filled before ESTABLISHED, in order; lock
 *	of the recv EVD, as for @srq_bufs_held and @watched
 * @srq_bufs_held: buffers of the SRQ not yet handed to the consumer
 * @marks: watermarks of the EP, limits of @srq_bufs_held
 * @watched: counted in recv_evd->watching
 * @last_wqe: the device has reported that it takes no more buffers from the SRQ
 * @pool_deadline: jiffies when waiting for that ends
 * @destroy_lock: held while cm_id and QP are destroyed, without @lock
 * @lock: verbs calls and @state
 * @state: enum kdapl_conn_state, moved by kdapl_conn_step() under @lock, read without it
 * @qpn: number of the QP, also when that is gone; constant
 * @reason: why it ends: KDAPL_END_* or a DAT_EVENT_NUMBER; kdapl_conn_reason_wins()
 * @passive: made by dat_cr_accept
 * @retries: retries of the attempt: stale connection at the peer, local port in use
 * @net_attr: network attributes the consumer asked for
 * @cm_up: established for the CM, which needs an rdma_disconnect
 * @sq_draining: a graceful disconnect waits for its marker, as ib_drain_sq() does. Not a state,
 *	since it is set under sq->lock, in any context
 * @wc_failed: it has failed: it is BROKEN as soon as it is up
 * @discard: completions are dropped, the EP was freed or reset: kdapl_conn_discard()
 * @by_hand: the administrator has ended it
 * @last_event: its last event, 0 before the first
 * @owed: it had ended before @discard: dropped completions should have been reported
 * @ack_gp: grace period that must have passed before a drained connection ends (D-85); 0: none
 * @dropped: completions that were dropped; atomic because two EVDs count
 * @cm_busy: KDAPL_CM_CALL, KDAPL_CM_OUTCOME: what destroying the cm_id waits for
 * @spoken: passive: the peer has sent a message, so it has read our MPA reply
 * @read_in: our responder_resources: Reads the peer may have outstanding
 * @read_out: the initiator_depth we ask for
 * @read_depth: the initiator_depth in force: Reads we may have outstanding
 * @reads_refused: it was logged that one was refused for lack of @read_depth
 * @flush: how long to wait for flushed completions; limit 0: destroy the QP at once
 * @sq_drain: how long a graceful disconnect waits, if not for ever
 * @cm: set when an attempt begins, before its work items can be queued
 * @cm_id: of the attempt or its retry; @lock, taken out before it is destroyed
 * @local: own address and port, once known
 * @remote: peer's address and port
 * @pdata: private data that came with ESTABLISHED or PEER_REJECTED; allocated when the
 *	attempt begins
 * @kick_work: keeps soft-iWARP awake at the start of a connection
 * @kicks: how many there were
 * @kick_pos: where the last one is in the work queue; lock of the work queue
 * @cm_down: completed when the CM knows that both ends are disconnected, or the
 *	device is lost
 * @gone: completed when reaped
 * @free_work: frees the rest a grace period later: posting calls may still use the work queues
 */
struct kdapl_conn {
	struct kdapl_op_owner op_owner;
	/* what posts and completions read; constant */
	struct kdapl_wq *sq;
	struct kdapl_wq *rq;
	DAT_EP_HANDLE handle;
	struct kdapl_device *dev;
	struct kdapl_ep *ep;
	struct kdapl_pd *pd;
	struct ib_qp *qp;

	refcount_t ref;
	u32 qpn;
	struct kdapl_dev_conn dev_conn;
	DAT_EP_ATTR attr;
	struct kdapl_evd *recv_evd;
	struct kdapl_evd *request_evd;

	struct kdapl_pool *pool;
	struct list_head pool_node;
	struct hlist_node qp_node;
	struct ib_qp *pool_qp;		/* key in pool->by_qp, a value only */
	struct list_head early;
	u32 srq_bufs_held;
	struct kdapl_marks *marks;
	bool watched;
	bool last_wqe;
	unsigned long pool_deadline;

	struct mutex destroy_lock;	/* destroying cm_id and QP; never taken by a handler */
	struct mutex lock;		/* verbs calls, state, cm_id */
	u8 state;
	bool passive;
	bool cm_up;
	bool sq_draining;
	bool wc_failed;
	bool discard;
	bool by_hand;
	bool owed;
	bool spoken;
	u8 cm_busy;
	u8 retries;
	atomic_t reason;
	u32 last_event;
	struct kdat_conn_attr net_attr;
	u8 read_in;
	u8 read_out;
	u8 read_depth;
	atomic_t reads_refused;
	unsigned long ack_gp;
	atomic_t dropped;
	struct kdapl_patience flush;
	struct kdapl_patience sq_drain;

	const struct kdapl_conn_cm_ops *cm;
	struct rdma_cm_id *cm_id;
	struct sockaddr_storage local;
	struct sockaddr_storage remote;
	void *pdata;
	u32 pdata_len;
	void *connect_pdata;	/* private data of the request until it is sent */
	u8 connect_pdata_len;

	struct work_struct connect_work;	/* rdma_connect */
	struct delayed_work est_work;	/* data came before the CM's report */
	u8 hold_steps;		/* left before est_work reports the connection */
	struct delayed_work kick_work;
	unsigned int kicks;
	u32 kick_pos;
	struct delayed_work retry_work;	/* stale connection at the peer, local port in use */
	struct delayed_work timer;	/* of the attempt; later, of a graceful disconnect */
	struct delayed_work end_work;
	struct work_struct reap_work;
	struct completion ended;
	struct completion cm_down;
	struct completion gone;
	struct rcu_work free_work;
};

/* A number that changes with each completion. Any context; a hint, since nothing is locked. */
static inline u32 kdapl_conn_progress(const struct kdapl_conn *conn)
{
	return kdapl_wq_progress(conn->sq) + READ_ONCE(conn->rq->reaped);
}

/*
 * DAT_DTO_COMPLETION_STATUS of the first request that failed, or else of the first Receive; 0:
 * none has. Only what was reported counts, which is all once the connection has ended. Any
 * context; nothing is locked.
 */
static inline unsigned int kdapl_conn_error(const struct kdapl_conn *conn)
{
	return READ_ONCE(conn->sq->error) ?: READ_ONCE(conn->rq->error);
}

int kdapl_conn_next_state(enum kdapl_conn_state state, enum kdapl_conn_input input);
bool kdapl_conn_may(const struct kdapl_conn *conn, enum kdapl_conn_input input);
bool kdapl_conn_step(struct kdapl_conn *conn, enum kdapl_conn_input input);
bool kdapl_conn_reason_wins(int old, int new);

/* We have moved the QP to ERR, or are about to. A hint without conn->lock. */
static inline bool kdapl_conn_stopping(const struct kdapl_conn *conn)
{
	return READ_ONCE(conn->state) >= KDAPL_CONN_ENDING;
}

/* An attempt is under way whose outcome was not reported. conn->lock held. */
static inline bool kdapl_conn_attempting(const struct kdapl_conn *conn)
{
	return conn->state == KDAPL_CONN_CONNECTING || conn->state == KDAPL_CONN_HELD;
}

/* It has a reason to end, so it cannot connect any more. */
static inline bool kdapl_conn_spent(struct kdapl_conn *conn)
{
	return atomic_read(&conn->reason) != KDAPL_END_NONE;
}

void kdapl_conn_end(struct kdapl_conn *conn, int reason);
void kdapl_conn_end_in(struct kdapl_conn *conn, int reason, unsigned long delay);
void kdapl_conn_end_drained(struct kdapl_conn *conn);
bool kdapl_conn_early(struct kdapl_conn *conn);
void kdapl_conn_check_marks(struct kdapl_conn *conn);

#ifdef KDAPL_KUNIT
extern void (*kdapl_test_conn_early)(struct kdapl_conn *conn);	/* in kdapl_conn_early() */
#endif

#endif /* KDAPL_EVD_CONN_H */
