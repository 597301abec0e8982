// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The state machine of a connection, as one table.
 *
 * Rows are enum kdapl_conn_state, columns are inputs. An empty cell means that the input comes
 * too early or too late: the state does not change, and the caller gets an error. A connection
 * is never used again, so no row leads back.
 *
 * A test walks the table (tests/state_test.c), and the model of the end, ep/ep_end.pml,
 * uses it as well.
 */
#include "evd.h"

#define TO(s)	(KDAPL_CONN_##s + 1)

static const u8 conn_table[KDAPL_CONN_STATES][KDAPL_CONN_INPUTS] = {
	[KDAPL_CONN_IDLE] = {
		[KDAPL_CONN_IN_ATTEMPT]		= TO(CONNECTING),
		[KDAPL_CONN_IN_STOP]		= TO(ENDING),
	},
	[KDAPL_CONN_CONNECTING] = {
		[KDAPL_CONN_IN_HOLD]		= TO(HELD),
		[KDAPL_CONN_IN_ESTABLISHED]	= TO(UP),
		[KDAPL_CONN_IN_STOP]		= TO(ENDING),
	},
	[KDAPL_CONN_HELD] = {
		[KDAPL_CONN_IN_ESTABLISHED]	= TO(UP),
		[KDAPL_CONN_IN_STOP]		= TO(ENDING),
	},
	[KDAPL_CONN_UP] = {
		[KDAPL_CONN_IN_STOP]		= TO(ENDING),
	},
	[KDAPL_CONN_ENDING] = {
		[KDAPL_CONN_IN_FINISHED]	= TO(ENDED),
	},
};

/**
 * kdapl_conn_next_state - look up a transition
 * @state: enum kdapl_conn_state
 * @input: what happens
 *
 * Return: the next state, or KDAPL_CONN_NO_STEP.
 */
int kdapl_conn_next_state(enum kdapl_conn_state state, enum kdapl_conn_input input)
{
	return conn_table[state][input] - 1;
}

/**
 * kdapl_conn_may - would kdapl_conn_step() succeed?
 * @conn: the connection; conn->lock held
 * @input: what would happen
 */
bool kdapl_conn_may(const struct kdapl_conn *conn, enum kdapl_conn_input input)
{
	lockdep_assert_held(&conn->lock);
	return kdapl_conn_next_state(conn->state, input) != KDAPL_CONN_NO_STEP;
}

/**
 * kdapl_conn_step - move the connection, if the table allows it
 * @conn: the connection; conn->lock held
 * @input: what happens
 *
 * Posts and completions read the state without the lock.
 *
 * Return: true if it has moved.
 */
bool kdapl_conn_step(struct kdapl_conn *conn, enum kdapl_conn_input input)
{
	int next = kdapl_conn_next_state(conn->state, input);

	lockdep_assert_held(&conn->lock);
	if (next == KDAPL_CONN_NO_STEP)
		return false;
	WRITE_ONCE(conn->state, next);
	return true;
}

/**
 * kdapl_conn_reason_wins - is a new reason for the end better than the one that is known?
 * @old: KDAPL_END_* or a DAT_EVENT_NUMBER
 * @new: the same
 *
 * The first reason stays, except that a suspicion gives way to any other reason, and the CM's
 * report about the peer to an error seen here: soft-iWARP may report the two in either order.
 */
bool kdapl_conn_reason_wins(int old, int new)
{
	if (old == new)
		return false;
	return old <= KDAPL_END_SUSPECT ||
	       (old == KDAPL_END_PEER && new == DAT_CONNECTION_EVENT_BROKEN);
}
