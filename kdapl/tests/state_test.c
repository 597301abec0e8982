// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The endpoint state table against section 5 of the requirements, cell by cell.
 *
 * What is expected is written down here once more, from tables 5.1 and 5.2 of
 * the requirements and in their letters, not taken from the code.
 */
#include "kd_test.h"

/* The states an EP can be in. What the UNCONFIGURED ones stand for is reported as these. */
static const struct {
	const char *letter;
	int state;
} state_letters[] = {
	{ "U",  DAT_EP_STATE_UNCONNECTED },
	{ "R",  DAT_EP_STATE_RESERVED },
	{ "P",  DAT_EP_STATE_PASSIVE_CONNECTION_PENDING },
	{ "A",  DAT_EP_STATE_ACTIVE_CONNECTION_PENDING },
	{ "T",  DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING },
	{ "C",  DAT_EP_STATE_CONNECTED },
	{ "DP", DAT_EP_STATE_DISCONNECT_PENDING },
	{ "D",  DAT_EP_STATE_DISCONNECTED },
	{ "CP", DAT_EP_STATE_COMPLETION_PENDING },
};

#define STATES	((int)ARRAY_SIZE(state_letters))

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
	{ "con", KDAPL_IN_CONNECT },
	{ "res", KDAPL_IN_RESERVE },
	{ "unr", KDAPL_IN_UNRESERVE },
	{ "req", KDAPL_IN_REQUEST },
	{ "acc", KDAPL_IN_ACCEPT },
	{ "own", KDAPL_IN_ACCEPT_OWN },
	{ "und", KDAPL_IN_UNDO },
	{ "dec", KDAPL_IN_DECLINE },
	{ "est", KDAPL_IN_ESTABLISHED },
	{ "gra", KDAPL_IN_GRACEFUL },
	{ "abr", KDAPL_IN_ABRUPT },
	{ "end", KDAPL_IN_ENDED },
	{ "rem", KDAPL_IN_REMOVED },
	{ "rst", KDAPL_IN_RESET },
	{ "fre", KDAPL_IN_FREE },
};

#define INPUTS	((int)ARRAY_SIZE(state_inputs))

static int state_of(const char *letter)
{
	int i;

	for (i = 0; i < STATES; i++)
		if (!strcmp(state_letters[i].letter, letter))
			return state_letters[i].state;
	return KDAPL_EP_NO_STEP;
}

static const char *letter_of(int state)
{
	int i;

	for (i = 0; i < STATES; i++)
		if (state_letters[i].state == state)
			return state_letters[i].letter;
	return "-";
}

/* What the table above says about state number @row and input number @i. */
static int state_want(int row, int i)
{
	char word[8];
	int column;

	for (column = 0; column < INPUTS; column++)
		if (!strcmp(kd_word(state_columns, column, word, sizeof(word)),
			    state_inputs[i].column))
			break;
	return state_of(kd_word(state_rows[row], column + 1, word, sizeof(word)));
}

static void state_table_test(struct kunit *test)
{
	bool known[KDAPL_EP_STATES] = {}, input[KDAPL_EP_INPUTS] = {};
	int row, i, state;
	char word[8];

	/* first, that the tables of this test are whole */
	KUNIT_EXPECT_EQ(test, (int)ARRAY_SIZE(state_rows), STATES);
	KUNIT_EXPECT_STREQ(test, kd_word(state_columns, INPUTS, word, sizeof(word)), "");
	for (i = 0; i < INPUTS; i++)
		input[state_inputs[i].input] = true;
	for (i = 0; i < KDAPL_EP_INPUTS; i++)
		KUNIT_EXPECT_TRUE_MSG(test, input[i], "input %d is not in the table", i);
	for (row = 0; row < STATES; row++) {
		known[state_letters[row].state] = true;
		KUNIT_EXPECT_STREQ(test, kd_word(state_rows[row], 0, word, sizeof(word)),
				   state_letters[row].letter);
		KUNIT_EXPECT_STRNEQ(test, kd_word(state_rows[row], INPUTS, word, sizeof(word)),
				    "");
		KUNIT_EXPECT_STREQ(test, kd_word(state_rows[row], INPUTS + 1, word, sizeof(word)),
				   "");
	}
	for (row = 0; row < STATES; row++) {
		for (i = 0; i < INPUTS; i++) {
			int got = kdapl_ep_next_state(state_letters[row].state,
						      state_inputs[i].input);

			KUNIT_EXPECT_EQ_MSG(test, got, state_want(row, i),
					    "%s in %s leads to %s", state_inputs[i].column,
					    state_letters[row].letter, letter_of(got));
		}
	}
	/* states that are never entered have no way out, and none leads there */
	for (state = 0; state < KDAPL_EP_STATES; state++)
		for (i = 0; i < KDAPL_EP_INPUTS && !known[state]; i++)
			KUNIT_EXPECT_EQ_MSG(test, kdapl_ep_next_state(state, i), KDAPL_EP_NO_STEP,
					    "state %d, input %d", state, i);
}

static struct kunit_case state_cases[] = {
	KD_CASE(state_table_test,
		"EPSM-01,EPSM-05,EPSM-10,EPSM-13..16,EPSM-18..21,EPSM-34,EP-FREE-01: every cell"),
	{}
};

static struct kunit_suite state_suite = {
	.name = "kdapl-state",
	.test_cases = state_cases,
};

kunit_test_suite(state_suite);
