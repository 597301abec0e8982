/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The end of an Endpoint, for spin: dat_ep_free() against completions, upcalls, the peer and
 * the removal of the device. `tools/lint model` runs it, once as it is and once without each
 * of the rules below, which must be noticed.
 *
 * There is one half (ep_qp.c) with N Receives posted, and one EVD (evd_poll.c, evd_usual.c,
 * evd_upcall.c) for completions and the end, SINGLE_INSTANCE. There are no requests, no CM, no
 * end of the EVD; timers fire at any time, or never. What must hold:
 *
 *	gap	completions are reported in order, and none after one that is not
 *	end	the end is reported once at most, and after all that has succeeded; without
 *		dat_ep_free() it is, and so is each Receive
 *	free	dat_ep_free() is back: no upcall has an event of the Endpoint, and none begins
 *	once	a half ends once; its QP is destroyed once, and not touched after that
 *	stuck	everybody comes to an end
 */

#ifndef N
#define N	2
#endif

/* The rules. */
#define ODD_FIRST	1	/* kdapl_half_discard(): odd before discard */
#define WAIT_UPCALL	2	/* ep_unlink(): wait for the upcall that has an event in hand */
#define DROP		3	/* kdapl_half_drop(): what is stored goes */
#define LOOK_AGAIN	4	/* half_try_finish(): has removal ended it meanwhile? */
#define OWN_LOOK	5	/* kdapl_ring_ended(): the last completion may be in already */
#define ODD_AT_END	6	/* kdapl_ring_ended(): the next one may be the last */
#define DRAIN		7	/* kdapl_ring_force_end(): what is on the CQ comes first */
#define TAKE_QP		8	/* half_destroy_verbs(): who destroys the QP takes it */
#define RULES		8

#ifndef WITHOUT
#define WITHOUT		0
#endif
#define RULE(r)		(WITHOUT != r)

/* What nobody will look at makes no states. */
#define FORGET()	d_step { seq = 0; status = 0; visible = false; mine = false }

#define LOCK(l)		atomic { !l -> l = true }
#define UNLOCK(l)	l = false

mtype = { UP, ENDING, ENDED, NONE, SILENT, TOLD, SUCCESS, FLUSHED, THE_END };

/* The device. */
chan cq = [N] of { byte, mtype };
byte completed, succeeded;
bool qp_err, qp_gone;

/* The half, and its work item end_work. */
bool half_lock, destroy_lock, stopping, discard, ended, qp = true;
mtype phase = UP;
mtype reason = NONE;
bool queued, running, cancelled, late;

/* The EVD with the ring of the half; in_hand: an upcall has an event. */
bool evd_lock, odd, ring_ended, in_hand;
byte tail;
chan store = [N + 1] of { byte, mtype };

/* What the consumer sees and does. */
byte told, told_success, told_end;
bool freeing, freed;

inline queue_work()
{
	queued = !cancelled
}

/* half_end_in(): the first reason stays. */
inline half_end(why)
{
	atomic {
		if
		:: reason == NONE -> reason = why
		:: else
		fi;
		queue_work()
	}
}

/* ring_check_recv_end(), ring_end(). evd_lock held, as in the three below. */
inline check_end()
{
	if
	:: stopping && tail == N && !ring_ended -> ring_ended = true; queue_work()
	:: else
	fi
}

/* recv_done(): the next completion, on the long way. */
inline long_way(seq, status, visible)
{
	cq?seq, status;
	tail++;
	assert(tail == seq);
	visible = !discard;
	check_end()
}

/* Take what is on the CQ, and store it; all of it, or as much as there is room for. */
inline sweep(all, seq, status, visible)
{
	do
	:: atomic { nempty(cq) ->
			long_way(seq, status, visible);
			if
			:: visible -> store!seq, status
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
	:: RULE(DRAIN) -> sweep(true, seq, status, visible)
	:: else
	fi;
	do
	:: tail < N ->
		tail++;
		if
		:: !discard -> store!tail, FLUSHED
		:: else
		fi
	:: tail == N -> break
	od;
	ring_ended = true;
	UNLOCK(evd_lock)
}

inline half_destroy_verbs(mine)
{
	LOCK(destroy_lock);
	LOCK(half_lock);
	mine = qp;
	if
	:: RULE(TAKE_QP) -> qp = false
	:: else
	fi;
	UNLOCK(half_lock);
	if
	:: mine -> atomic { assert(!qp_gone); qp_gone = true }		/* once */
	:: else
	fi;
	mine = false;
	UNLOCK(destroy_lock)
}

/* half_lock held. */
inline half_stop()
{
	stopping = true;
	phase = ENDING;
	assert(!qp_gone);						/* once */
	qp_err = true
}

/* half_lock held, dropped while the QP is destroyed. at_once: nobody waits for the device. */
inline half_try_finish(at_once, seq, status, visible, mine, finished)
{
	LOCK(evd_lock);
	sweep(false, seq, status, visible);
	UNLOCK(evd_lock);
	atomic {
		!evd_lock;
		odd = odd || RULE(ODD_AT_END);
		if
		:: RULE(OWN_LOOK) -> check_end()
		:: else
		fi;
		finished = ring_ended
	}
	if
	:: !finished && !at_once	/* ring_end() brings the work here again */
	:: !finished && (at_once || late) ->
		UNLOCK(half_lock);
		half_destroy_verbs(mine);
		LOCK(half_lock);
		finished = phase != ENDED || !RULE(LOOK_AGAIN);
		if
		:: finished -> force_end(seq, status, visible)
		:: else
		fi
	:: finished
	fi;
	if
	:: finished -> assert(phase == ENDING); phase = ENDED		/* once */
	:: else
	fi
}

/* kdapl_ep_ended() */
inline ep_ended()
{
	if
	:: reason != SILENT && !discard -> atomic { !evd_lock -> store!0, THE_END }
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

/* evd_run() */
active proctype engine()
{
	byte seq;
	mtype status;
	bool visible, mine;

end:	do
	:: atomic { !evd_lock && (nempty(store) || nempty(cq)) ->
			visible = false;
			if
			:: nempty(store) -> store?seq, status; visible = true
			/* evd_usual(): asks for odd, and for nothing else of the half */
			:: empty(store) && !odd && cq?[seq, SUCCESS] ->
				cq?seq, status; tail++; visible = true
			:: empty(store) && nempty(cq) -> long_way(seq, status, visible)
			fi;
			in_hand = visible
		}
		if
		:: visible -> atomic {
				assert(!freed);					/* free */
				if
				:: status == THE_END ->
					told_end++;
					assert(told_end == 1 &&
					       (discard || told_success == succeeded))	/* end */
				:: else ->
					told++;
					assert(seq == told);			/* gap */
					told_success = told_success + (status == SUCCESS)
				fi
			}
			atomic { assert(!freed); !evd_lock -> in_hand = false; FORGET() } /* free */
		:: else -> FORGET()
		fi
	od
}

/* half_work_end() */
active proctype work()
{
	byte seq;
	mtype status;
	bool visible, mine, finished;

end:	do
	:: atomic { queued && !running -> queued = false; running = true }
		finished = false;
		LOCK(half_lock);
		if
		:: phase == UP && reason != NONE -> half_stop()
		:: else
		fi;
		if
		:: phase == ENDING ->
			half_try_finish(false, seq, status, visible, mine, finished)
		:: else
		fi;
		UNLOCK(half_lock);
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
	:: half_end(TOLD)
	:: skip
	fi
}

/* kdapl_half_remove(), or not. */
active proctype removal()
{
	byte seq;
	mtype status;
	bool visible, mine, finished;

	if
	:: skip
	:: LOCK(half_lock);
		if
		:: phase == UP ->
			atomic {
				if
				:: reason == NONE -> reason = TOLD
				:: else
				fi
			}
			half_stop()
		:: else
		fi;
		UNLOCK(half_lock);
		atomic { queued = false; cancelled = true }
		atomic { !running -> cancelled = false }
		half_destroy_verbs(mine);
		finished = false;
		LOCK(half_lock);
		if
		:: phase == ENDING ->
			half_try_finish(true, seq, status, visible, mine, finished)
		:: else
		fi;
		UNLOCK(half_lock);
		if
		:: finished -> ep_ended()
		:: else
		fi;
		finished = false;
		assert(phase == ENDED)
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
		:: RULE(ODD_FIRST) -> atomic { !evd_lock -> odd = true }
		:: else
		fi;
		discard = true;
		half_end(SILENT);
		ended;
		atomic {
			!evd_lock;
			do
			:: RULE(DROP) && nempty(store) -> store?seq, status
			:: !RULE(DROP) || empty(store) -> break
			od;
			seq = 0; status = 0
		}
		if
		:: RULE(WAIT_UPCALL) -> !evd_lock && !in_hand
		:: else
		fi;
		freed = true;
		half_destroy_verbs(mine)
	fi
}

/* When nothing happens any more. */
active proctype afterwards()
{
	timeout ->
	assert(phase != ENDING);						/* stuck */
	assert(phase == UP || freeing || (told == N && told_end == 1));		/* end */
	assert(!freeing || freed)						/* stuck */
}
