/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The end of an Endpoint, for spin: dat_ep_free() against completions, upcalls, the peer and
 * the removal of the device. `tools/lint model` runs it, once as it is and once without each
 * of the rules below, which must be noticed.
 *
 * There is one connection (conn_teardown.c) with N Receives posted, and one EVD for completions
 * and the end, SINGLE_INSTANCE. There are no requests, no CM, no end of the EVD; timers fire at
 * any time, or never. The connection moves by the table of conn_state.c, from which tools/lint
 * makes conn_table.h. What must hold:
 *
 *	gap	completions are reported in order, and none after one that is not
 *	end	the end is reported once at most, and after all that has succeeded; without
 *		dat_ep_free() it is, and so is each Receive
 *	free	dat_ep_free() is back: no upcall has an event of the Endpoint, and none begins
 *	once	a connection ends once; its QP is destroyed once, and not touched after that
 *	stuck	everybody comes to an end
 */

#ifndef N
#define N	2
#endif

/* The rules. */
#define SLOW_FIRST	1	/* kdapl_conn_discard(): slow before discard */
#define WAIT_UPCALL	2	/* ep_unlink(): wait for the upcall that has an event in hand */
#define DROP		3	/* kdapl_conn_drop_events(): what is in the backlog goes */
#define LOOK_AGAIN	4	/* conn_try_finish(): has removal ended it meanwhile? */
#define OWN_LOOK	5	/* kdapl_wq_try_end(): the last completion may be in already */
#define SLOW_AT_END	6	/* kdapl_wq_try_end(): the next one may be the last */
#define EMPTY_CQ	7	/* kdapl_wq_force_end(): what is on the CQ comes first */
#define TAKE_QP		8	/* conn_destroy_verbs(): who destroys the QP takes it */
#define RULES		8

#ifndef WITHOUT
#define WITHOUT		0
#endif
#define RULE(r)		(WITHOUT != r)

/* What nobody will look at makes no states. */
#define FORGET()	d_step { seq = 0; status = 0; visible = false; mine = false }

#define LOCK(l)		atomic { !l -> l = true }
#define UNLOCK(l)	l = false

#include "conn_table.h"	/* STOP_IN_UP: where the table leads from UP with STOP, and so on */

mtype = { UP, ENDING, ENDED, NONE, SILENT, TOLD, SUCCESS, FLUSHED, THE_END };

/* The device. */
chan cq = [N] of { byte, mtype };
byte completed, succeeded;
bool qp_err, qp_gone;

/* The connection, and its work item end_work. */
bool conn_lock, destroy_lock, discard, ended, qp = true;
mtype state = UP;
mtype reason = NONE;
#define stopping	(state == ENDING || state == ENDED)
bool queued, running, cancelled, late;

/* The EVD with the work queue of the connection; in_hand: an upcall has an event. */
bool evd_lock, slow, wq_ended, in_hand;
byte tail;
chan backlog = [N + 1] of { byte, mtype };

/* What the consumer sees and does. */
byte reported, reported_success, reported_end;
bool freeing, freed;

inline queue_work()
{
	queued = !cancelled
}

/* kdapl_conn_end_in(): the first reason stays. */
inline conn_end(why)
{
	atomic {
		if
		:: reason == NONE -> reason = why
		:: else
		fi;
		queue_work()
	}
}

/* kdapl_wq_check_recv_end(), kdapl_wq_end(). evd_lock held, as in the three below. */
inline check_end()
{
	if
	:: stopping && tail == N && !wq_ended -> wq_ended = true; queue_work()
	:: else
	fi
}

/* wc_recv(): the next completion, on the slow path. */
inline slow_path(seq, status, visible)
{
	cq?seq, status;
	tail++;
	assert(tail == seq);
	visible = !discard;
	check_end()
}

/* Move what is on the CQ to the backlog; all of it, or as much as there is room for. */
inline empty_cq(all, seq, status, visible)
{
	do
	:: atomic { nempty(cq) ->
			slow_path(seq, status, visible);
			if
			:: visible -> backlog!seq, status
			:: else
			fi;
			FORGET()
		}
	:: empty(cq) || !all -> break
	od
}

inline force_end(seq, status, visible)
{
	LOCK(evd_lock);
	if
	:: RULE(EMPTY_CQ) -> empty_cq(true, seq, status, visible)
	:: else
	fi;
	do
	:: tail < N ->
		tail++;
		if
		:: !discard -> backlog!tail, FLUSHED
		:: else
		fi
	:: tail == N -> break
	od;
	wq_ended = true;
	UNLOCK(evd_lock)
}

inline conn_destroy_verbs(mine)
{
	LOCK(destroy_lock);
	LOCK(conn_lock);
	mine = qp;
	if
	:: RULE(TAKE_QP) -> qp = false
	:: else
	fi;
	UNLOCK(conn_lock);
	if
	:: mine -> atomic { assert(!qp_gone); qp_gone = true }		/* once */
	:: else
	fi;
	mine = false;
	UNLOCK(destroy_lock)
}

/* conn_lock held. */
inline conn_stop()
{
	state = STOP_IN_UP;
	assert(!qp_gone);						/* once */
	qp_err = true
}

/* conn_lock held, dropped while the QP is destroyed. at_once: nobody waits for the device. */
inline conn_try_finish(at_once, seq, status, visible, mine, finished)
{
	LOCK(evd_lock);
	empty_cq(false, seq, status, visible);
	UNLOCK(evd_lock);
	atomic {
		!evd_lock;
		slow = slow || RULE(SLOW_AT_END);
		if
		:: RULE(OWN_LOOK) -> check_end()
		:: else
		fi;
		finished = wq_ended
	}
	if
	:: !finished && !at_once	/* kdapl_wq_end() brings the work here again */
	:: !finished && (at_once || late) ->
		UNLOCK(conn_lock);
		conn_destroy_verbs(mine);
		LOCK(conn_lock);
		finished = state != ENDED || !RULE(LOOK_AGAIN);
		if
		:: finished -> force_end(seq, status, visible)
		:: else
		fi
	:: finished
	fi;
	if
	:: finished -> assert(state == ENDING); state = FINISHED_IN_ENDING		/* once */
	:: else
	fi
}

/* kdapl_ep_ended() */
inline ep_ended()
{
	if
	:: reason != SILENT && !discard -> atomic { !evd_lock -> backlog!0, THE_END }
	:: else
	fi;
	ended = true
}

active proctype device()
{
	do
	:: atomic { !qp_gone && !qp_err && completed < N ->
			completed++; succeeded++; cq!completed, SUCCESS }
	:: atomic { !qp_gone && qp_err && completed < N -> completed++; cq!completed, FLUSHED }
	:: qp_gone || completed == N -> break
	od
}

/* upcall_run() */
active proctype engine()
{
	byte seq;
	mtype status;
	bool visible, mine;

end:	do
	:: atomic { !evd_lock && (nempty(backlog) || nempty(cq)) ->
			visible = false;
			if
			:: nempty(backlog) -> backlog?seq, status; visible = true
			/* fast_next(): asks for slow, and for nothing else of the connection */
			:: empty(backlog) && !slow && cq?[seq, SUCCESS] ->
				cq?seq, status; tail++; visible = true
			:: empty(backlog) && nempty(cq) -> slow_path(seq, status, visible)
			fi;
			in_hand = visible
		}
		if
		:: visible -> atomic {
				assert(!freed);					/* free */
				if
				:: status == THE_END ->
					reported_end++;
					assert(reported_end == 1 &&
					       (discard || reported_success == succeeded))	/* end */
				:: else ->
					reported++;
					assert(seq == reported);			/* gap */
					reported_success = reported_success + (status == SUCCESS)
				fi
			}
			atomic { assert(!freed); !evd_lock -> in_hand = false; FORGET() } /* free */
		:: else -> FORGET()
		fi
	od
}

/* conn_work_end() */
active proctype work()
{
	byte seq;
	mtype status;
	bool visible, mine, finished;

end:	do
	:: atomic { queued && !running -> queued = false; running = true }
		finished = false;
		LOCK(conn_lock);
		if
		:: state == UP && reason != NONE -> conn_stop()
		:: else
		fi;
		if
		:: state == ENDING ->
			conn_try_finish(false, seq, status, visible, mine, finished)
		:: else
		fi;
		UNLOCK(conn_lock);
		if
		:: finished -> ep_ended(); finished = false
		:: else
		fi;
		running = false
	od
}

/* END_POLL and END_TIMEOUT, or not: where the device is fine nobody needs them. */
active proctype clock()
{
	if
	:: atomic { late = true; queue_work() }
	:: skip
	fi
}

/* The peer leaves, or something breaks; or not. */
active proctype peer()
{
	if
	:: conn_end(TOLD)
	:: skip
	fi
}

/* kdapl_conn_remove(), or not. */
active proctype removal()
{
	byte seq;
	mtype status;
	bool visible, mine, finished;

	if
	:: skip
	:: LOCK(conn_lock);
		if
		:: state == UP ->
			atomic {
				if
				:: reason == NONE -> reason = TOLD
				:: else
				fi
			}
			conn_stop()
		:: else
		fi;
		UNLOCK(conn_lock);
		atomic { queued = false; cancelled = true }
		atomic { !running -> cancelled = false }
		conn_destroy_verbs(mine);
		finished = false;
		LOCK(conn_lock);
		if
		:: state == ENDING ->
			conn_try_finish(true, seq, status, visible, mine, finished)
		:: else
		fi;
		UNLOCK(conn_lock);
		if
		:: finished -> ep_ended()
		:: else
		fi;
		finished = false;
		assert(state == ENDED)
	fi
}

/* dat_ep_free(), or not. */
active proctype consumer()
{
	byte seq;
	mtype status;
	bool mine;

	if
	:: skip
	:: freeing = true;
		if
		:: RULE(SLOW_FIRST) -> atomic { !evd_lock -> slow = true }
		:: else
		fi;
		discard = true;
		conn_end(SILENT);
		ended;
		atomic {
			!evd_lock;
			do
			:: RULE(DROP) && nempty(backlog) -> backlog?seq, status
			:: !RULE(DROP) || empty(backlog) -> break
			od;
			seq = 0; status = 0
		}
		if
		:: RULE(WAIT_UPCALL) -> !evd_lock && !in_hand
		:: else
		fi;
		freed = true;
		conn_destroy_verbs(mine)
	fi
}

/* When nothing happens any more. */
active proctype afterwards()
{
	timeout ->
	assert(state != ENDING);						/* stuck */
	assert(state == UP || freeing || (reported == N && reported_end == 1));		/* end */
	assert(!freeing || freed)						/* stuck */
}
