// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The state machines of endpoints and of connections, cell by cell.
 *
 * What is expected is written down here once more: for endpoints from tables 5.1 and 5.2 of the
 * requirements and in their letters, for connections from the comments of evd/conn.h and the way
 * out that ep/conn_teardown.c describes.
 */
#include "kd_test.h"

/*
 * The table. In its columns:
 *
 *   con  dat_ep_connect and its like	acc  dat_cr_accept of an EP named there
 *   own  dat_cr_accept of the CR's EP	dec  dat_cr_reject, dat_cr_handoff: the CR's EP
 *   res  dat_rsp_create		unr  dat_rsp_free
 *   req  a request for the RSP		est  the transport is connected
 *   und  connect or accept failed before anybody was asked
 *   gra  graceful disconnect		abr  abrupt disconnect
 *   end  the connection or attempt has ended, for any reason
 *   rem  the device has gone		rst  dat_ep_reset
 *   fre  dat_ep_free
 *
 * "-" is DAT_INVALID_STATE for a call, and nothing for what just happens. An EP in
 * U may end, since posting a Receive may show that its QP is dead; one in R, P
 * or T has to wait for what becomes of its service point or request.
 */
static const char state_columns[] =
	     "con res unr req acc own und dec est gra abr end rem rst fre";
static const char * const state_rows[] = {
	"U    A   R   -   -   CP  -   -   -   -   -   -   D   -   U   U",
	"R    -   -   U   P   -   -   -   -   -   -   -   -   -   -   -",
	"P    -   -   -   -   -   CP  -   U   -   -   -   -   D   -   -",
	"A    -   -   -   -   -   -   U   -   C   D   D   D   -   -   D",
	"T    -   -   -   -   -   CP  -   -   -   -   -   -   D   -   -",
	"C    -   -   -   -   -   -   -   -   -   DP  DP  D   -   -   D",
	"DP   -   -   -   -   -   -   -   -   -   DP  D   D   -   -   D",
	"D    -   -   -   -   -   -   -   -   -   D   D   D   -   U   D",
	"CP   -   -   -   -   -   -   -   -   C   D   D   D   -   -   D",
};

static const struct {
	const char *column;
	enum kdapl_ep_input input;
} state_inputs[] = {
	{ "con", KDAPL_IN_CONNECT }, { "res", KDAPL_IN_RESERVE }, { "unr", KDAPL_IN_UNRESERVE },
	{ "req", KDAPL_IN_REQUEST }, { "acc", KDAPL_IN_ACCEPT }, { "own", KDAPL_IN_ACCEPT_OWN },
	{ "und", KDAPL_IN_UNDO }, { "dec", KDAPL_IN_DECLINE }, { "est", KDAPL_IN_ESTABLISHED },
	{ "gra", KDAPL_IN_GRACEFUL }, { "abr", KDAPL_IN_ABRUPT }, { "end", KDAPL_IN_ENDED },
	{ "rem", KDAPL_IN_REMOVED }, { "rst", KDAPL_IN_RESET }, { "fre", KDAPL_IN_FREE },
};

#define INPUTS	((int)ARRAY_SIZE(state_inputs))

/* The cell of a table below this column, in the row that starts with this letter. */
static const char *state_cell(const char *columns, const char *row, const char *column, char *word,
			      size_t size)
{
	int i = 0;

	while (*kd_word(columns, i, word, size) && strcmp(word, column))
		i++;
	return kd_word(row, i + 1, word, size);
}

static int state_of(const char *letter)
{
	int i;

	for (i = 0; i < KD_STATES; i++)
		if (!strcmp(kd_states[i].letter, letter))
			return kd_states[i].state;
	return KDAPL_EP_NO_STEP;
}

static void state_table_test(struct kunit *test)
{
	bool known[KDAPL_EP_STATES] = {};
	int row, i, state;
	char word[8];

	/* first, that the tables of this test are whole */
	KUNIT_ASSERT_EQ(test, INPUTS, (int)KDAPL_EP_INPUTS);
	KUNIT_EXPECT_STREQ(test, kd_word(state_columns, INPUTS, word, sizeof(word)), "");
	for (row = 0; row < KD_STATES; row++) {
		known[kd_states[row].state] = true;
		KUNIT_EXPECT_STREQ(test, kd_word(state_rows[row], 0, word, sizeof(word)),
				   kd_states[row].letter);
		KUNIT_EXPECT_STRNEQ(test, kd_word(state_rows[row], INPUTS, word, sizeof(word)), "");
		for (i = 0; i < INPUTS; i++) {
			state = state_of(state_cell(state_columns, state_rows[row],
						    state_inputs[i].column, word, sizeof(word)));
			KUNIT_EXPECT_EQ_MSG(test, kdapl_ep_next_state(kd_states[row].state,
								      state_inputs[i].input), state,
					    "%s in %s", state_inputs[i].column,
					    kd_states[row].letter);
		}
	}
	/* states that are never entered have no way out, and none leads there */
	for (state = 0; state < KDAPL_EP_STATES; state++)
		for (i = 0; i < KDAPL_EP_INPUTS && !known[state]; i++)
			KUNIT_EXPECT_EQ_MSG(test, kdapl_ep_next_state(state, i), KDAPL_EP_NO_STEP,
					    "state %d, input %d", state, i);
}

#define CS_COLUMNS	"att  hold est  stop fin"

static const char * const cs_rows[KDAPL_CONN_STATES] = {
	[KDAPL_CONN_IDLE]	= "I    C    -    -    E    -",
	[KDAPL_CONN_CONNECTING]	= "C    -    H    U    E    -",
	[KDAPL_CONN_HELD]	= "H    -    -    U    E    -",
	[KDAPL_CONN_UP]		= "U    -    -    -    E    -",
	[KDAPL_CONN_ENDING]	= "E    -    -    -    -    X",
	[KDAPL_CONN_ENDED]	= "X    -    -    -    -    -",
};

static const char * const cs_inputs[] = {
	[KDAPL_CONN_IN_ATTEMPT] = "att", [KDAPL_CONN_IN_HOLD] = "hold",
	[KDAPL_CONN_IN_ESTABLISHED] = "est", [KDAPL_CONN_IN_STOP] = "stop",
	[KDAPL_CONN_IN_FINISHED] = "fin",
};

static int cs_state(const char *letter)
{
	int row;

	for (row = 0; row < KDAPL_CONN_STATES; row++)
		if (*cs_rows[row] == *letter)
			return row;
	return KDAPL_CONN_NO_STEP;
}

/* kdapl_conn_step() writes what the table says, or nothing. */
static void cs_table_test(struct kunit *test)
{
	struct kdapl_conn *conn = kunit_kzalloc(test, sizeof(*conn), GFP_KERNEL);
	int row, want;
	char word[8];
	u32 input;
	bool may;

	KUNIT_ASSERT_NOT_NULL(test, conn);
	KUNIT_ASSERT_EQ(test, (int)ARRAY_SIZE(cs_inputs), (int)KDAPL_CONN_INPUTS);
	mutex_init(&conn->lock);
	mutex_lock(&conn->lock);
	for (row = 0; row < KDAPL_CONN_STATES; row++) {
		for (input = 0; input < KDAPL_CONN_INPUTS; input++) {
			want = cs_state(state_cell(CS_COLUMNS, cs_rows[row], cs_inputs[input], word,
						   sizeof(word)));
			may = want != KDAPL_CONN_NO_STEP;
			KUNIT_EXPECT_EQ_MSG(test, (int)kdapl_conn_next_state(row, input), want,
					    "%s in state %d", cs_inputs[input], row);
			conn->state = row;
			KUNIT_EXPECT_EQ(test, kdapl_conn_may(conn, input), may);
			KUNIT_EXPECT_EQ(test, (int)conn->state, row);
			KUNIT_EXPECT_EQ(test, kdapl_conn_step(conn, input), may);
			KUNIT_EXPECT_EQ(test, (int)conn->state, may ? want : row);
		}
		/* posts and completions compare states: those with the QP in ERR come last */
		conn->state = row;
		KUNIT_EXPECT_EQ(test, kdapl_conn_stopping(conn), row >= KDAPL_CONN_ENDING);
		KUNIT_EXPECT_EQ(test, kdapl_conn_attempting(conn),
				kdapl_conn_next_state(row, KDAPL_CONN_IN_ESTABLISHED) !=
				KDAPL_CONN_NO_STEP);
	}
	mutex_unlock(&conn->lock);
}

/* A reason stays, but for the peer's, which an error explains, and for a suspicion. */
static void cs_reason_test(struct kunit *test)
{
	static const int reasons[] = {
		KDAPL_END_NONE, KDAPL_END_SUSPECT, KDAPL_END_PEER, KDAPL_END_NO_EVENT,
		DAT_CONNECTION_EVENT_DISCONNECTED, DAT_CONNECTION_EVENT_TIMED_OUT,
		DAT_CONNECTION_EVENT_BROKEN, DAT_CONNECTION_EVENT_UNREACHABLE,
		DAT_CONNECTION_EVENT_PEER_REJECTED,
	};
	int i, k, old, new;
	bool wins;

	for (i = 0; i < ARRAY_SIZE(reasons); i++) {
		for (k = 1; k < ARRAY_SIZE(reasons); k++) {
			old = reasons[i];
			new = reasons[k];
			wins = old == KDAPL_END_NONE ||
			       (old == KDAPL_END_SUSPECT && new != KDAPL_END_SUSPECT) ||
			       (old == KDAPL_END_PEER && new == DAT_CONNECTION_EVENT_BROKEN);
			KUNIT_EXPECT_EQ_MSG(test, kdapl_conn_reason_wins(old, new), wins,
					    "reason %d, then %d", i, k);
		}
	}
}

static struct kunit_case state_cases[] = {
	KD_CASE(state_table_test,
		"EPSM-01,EPSM-05,EPSM-10,EPSM-13..16,EPSM-18..21,EPSM-34,EP-FREE-01: every cell"),
	{}
};

static struct kunit_case cs_cases[] = {
	KD_CASE(cs_table_test, "EPSM-30,EPSM-31,EPSM-34: states of a connection, cell by cell"),
	KD_CASE(cs_reason_test, "EPSM-30,EPSM-31: which reason for the end stays"),
	{}
};

KD_SUITE("kdapl-state", state_cases, NULL, NULL);
KD_SUITE("kdapl-conn-state", cs_cases, NULL, NULL);
