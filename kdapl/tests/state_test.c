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

/* States that can be reached from @from, itself included. */
static void state_reach(int from, bool *seen)
{
	int state, input, next, round;

	memset(seen, 0, KDAPL_EP_STATES * sizeof(*seen));
	seen[from] = true;
	for (round = 0; round < KDAPL_EP_STATES; round++)
		for (state = 0; state < KDAPL_EP_STATES; state++)
			for (input = 0; input < KDAPL_EP_INPUTS && seen[state]; input++) {
				next = kdapl_ep_next_state(state, input);
				if (next != KDAPL_EP_NO_STEP)
					seen[next] = true;
			}
}

/* A provider's EP begins in T, all others in U: all states are there, no other is. */
static void state_reach_test(struct kunit *test)
{
	bool seen[KDAPL_EP_STATES], tentative[KDAPL_EP_STATES];
	int state, row;

	state_reach(DAT_EP_STATE_UNCONNECTED, seen);
	state_reach(DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING, tentative);
	KUNIT_EXPECT_FALSE(test, seen[DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING]);
	for (state = 0; state < KDAPL_EP_STATES; state++)
		KUNIT_EXPECT_EQ_MSG(test, seen[state] || tentative[state],
				    strcmp(letter_of(state), "-") != 0, "state %d", state);
	/* an accepted one is an EP like any other */
	for (state = 0; state < KDAPL_EP_STATES; state++)
		KUNIT_EXPECT_TRUE_MSG(test, !seen[state] || tentative[state], "state %d", state);
	/* and from each state there is a way back to the start */
	for (row = 0; row < STATES; row++) {
		state_reach(state_letters[row].state, seen);
		KUNIT_EXPECT_TRUE_MSG(test, seen[DAT_EP_STATE_UNCONNECTED], "%s",
				      state_letters[row].letter);
	}
}

/* What is more than a cell: rules that hold in a whole row or column. */
static void state_rules_test(struct kunit *test)
{
	int row, i, next, back;

	for (row = 0; row < STATES; row++) {
		const char *letter = state_letters[row].letter;
		int state = state_letters[row].state;
		bool rpt = !strcmp(letter, "R") || !strcmp(letter, "P") || !strcmp(letter, "T");
		bool quiet = rpt || !strcmp(letter, "U");

		/* EP-FREE-01: everywhere but in R, P and T */
		KUNIT_EXPECT_EQ_MSG(test, kdapl_ep_next_state(state, KDAPL_IN_FREE) ==
				    KDAPL_EP_NO_STEP, rpt, "%s", letter);
		/* EP-DIS-04: where nothing is connected or connecting there is nothing to end */
		KUNIT_EXPECT_EQ_MSG(test, kdapl_ep_next_state(state, KDAPL_IN_ABRUPT) ==
				    KDAPL_EP_NO_STEP, quiet, "%s", letter);
		/* EP-DIS-03: the two flags differ where requests may be under way */
		if (strcmp(letter, "C") && strcmp(letter, "DP"))
			KUNIT_EXPECT_EQ_MSG(test, kdapl_ep_next_state(state, KDAPL_IN_ABRUPT),
					    kdapl_ep_next_state(state, KDAPL_IN_GRACEFUL), "%s",
					    letter);
		/* CONN-15, EP-RST-01: D is left by reset only */
		for (i = 0; i < KDAPL_EP_INPUTS; i++) {
			next = kdapl_ep_next_state(DAT_EP_STATE_DISCONNECTED, i);
			if (i != KDAPL_IN_RESET)
				KUNIT_EXPECT_TRUE(test, next == KDAPL_EP_NO_STEP ||
						  next == DAT_EP_STATE_DISCONNECTED);
		}
		/* EPSM-31, EPSM-34: once ended, no late event of the transport brings it back */
		next = kdapl_ep_next_state(state, KDAPL_IN_ENDED);
		if (next != KDAPL_EP_NO_STEP) {
			back = kdapl_ep_next_state(next, KDAPL_IN_ESTABLISHED);
			KUNIT_EXPECT_EQ_MSG(test, back, KDAPL_EP_NO_STEP, "%s", letter);
			back = kdapl_ep_next_state(next, KDAPL_IN_REQUEST);
			KUNIT_EXPECT_EQ_MSG(test, back, KDAPL_EP_NO_STEP, "%s", letter);
		}
		/* only what waits for its peer gets connected */
		KUNIT_EXPECT_EQ_MSG(test, kdapl_ep_next_state(state, KDAPL_IN_ESTABLISHED) ==
				    DAT_EP_STATE_CONNECTED,
				    !strcmp(letter, "A") || !strcmp(letter, "CP"), "%s", letter);
	}
}

/*
 * Table 6.3: may parameter number @bit of DAT_EP_PARAM_MASK be modified in the
 * state? Its words: never (fixed), U only, U and T, U R P T, always.
 */
static bool state_field(int bit, const char *letter)
{
	static const struct {
		u64 mask;
		const char *states;
	} fields[] = {
		{ DAT_EP_FIELD_IA_HANDLE | DAT_EP_FIELD_EP_STATE |
		  DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR | DAT_EP_FIELD_LOCAL_PORT_QUAL |
		  DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR | DAT_EP_FIELD_REMOTE_PORT_QUAL |
		  DAT_EP_FIELD_SRQ_HANDLE, "" },
		{ DAT_EP_FIELD_PZ_HANDLE, " U T " },
		{ DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_REQUEST_EVD_HANDLE |
		  DAT_EP_FIELD_CONNECT_EVD_HANDLE | DAT_EP_FIELD_EP_ATTR_SERVICE_TYPE |
		  DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE | DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE |
		  DAT_EP_FIELD_EP_ATTR_QOS | DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS |
		  DAT_EP_FIELD_EP_ATTR_REQUEST_COMPLETION_FLAGS |
		  DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS | DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS |
		  DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV | DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV |
		  DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IN | DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_OUT |
		  DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IOV |
		  DAT_EP_FIELD_EP_ATTR_MAX_RDMA_WRITE_IOV, " U R P T " },
		{ DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW, " U R P A T C DP D CP " },
		{ DAT_EP_FIELD_COMM | DAT_EP_FIELD_EP_ATTR_NUM_TRANSPORT_ATTR |
		  DAT_EP_FIELD_EP_ATTR_TRANSPORT_SPECIFIC_ATTR |
		  DAT_EP_FIELD_EP_ATTR_NUM_PROVIDER_ATTR |
		  DAT_EP_FIELD_EP_ATTR_PROVIDER_SPECIFIC_ATTR, " U " },
	};
	char word[8];
	int i;

	snprintf(word, sizeof(word), " %s ", letter);
	for (i = 0; i < ARRAY_SIZE(fields); i++)
		if (fields[i].mask & BIT_ULL(bit))
			return strstr(fields[i].states, word);
	return false;
}

static void state_fields_test(struct kunit *test)
{
	int row, bit, i;
	u64 any = 0;

	for (row = 0; row < STATES; row++) {
		u64 got = kdapl_ep_fields(state_letters[row].state);

		for (bit = 0; bit < 64; bit++)
			KUNIT_EXPECT_EQ_MSG(test, !!(got & BIT_ULL(bit)),
					    state_field(bit, state_letters[row].letter),
					    "field %d in %s", bit, state_letters[row].letter);
		any |= got;
	}
	KUNIT_EXPECT_EQ(test, kdapl_ep_fields(-1), any);
	for (i = 0; i < KDAPL_EP_STATES; i++)
		if (!strcmp(letter_of(i), "-"))
			KUNIT_EXPECT_EQ(test, kdapl_ep_fields(i), 0ULL);
}

static struct kunit_case state_cases[] = {
	KD_CASE(state_table_test,
		"EPSM-01,EPSM-05,EPSM-10,EPSM-13..16,EPSM-18..21: every state, every input"),
	KD_CASE(state_reach_test,
		"EPSM-36,EP-RST-01: all states are reached, all lead back to the start"),
	KD_CASE(state_rules_test,
		"EP-FREE-01,EP-DIS-03,EP-DIS-04,CONN-15,EPSM-31,EPSM-34: rules of the table"),
	KD_CASE(state_fields_test, "EP-MOD-02: what may be modified in each state"),
	{}
};

static struct kunit_suite state_suite = {
	.name = "kdapl-state",
	.test_cases = state_cases,
};

kunit_test_suite(state_suite);
