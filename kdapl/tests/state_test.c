// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The endpoint state table against section 5 of the requirements, cell by cell.
 */
#include "../kdapl.h"
#include "kd_case.h"

#define NO	(-1)
#define U	DAT_EP_STATE_UNCONNECTED
#define A	DAT_EP_STATE_ACTIVE_CONNECTION_PENDING
#define C	DAT_EP_STATE_CONNECTED
#define DP	DAT_EP_STATE_DISCONNECT_PENDING
#define D	DAT_EP_STATE_DISCONNECTED
#define CP	DAT_EP_STATE_COMPLETION_PENDING

/* Rows by state, columns: CONNECT ACCEPT UNDO ESTABLISHED GRACEFUL ABRUPT ENDED RESET FREE */
static const struct {
	int state;
	int next[KDAPL_EP_INPUTS];
} state_rows[] = {
	{ U,	{ A,  CP, NO, NO, NO, NO, D, U,  U } },
	{ A,	{ NO, NO, U,  C,  D,  D,  D, NO, D } },
	{ CP,	{ NO, NO, U,  C,  D,  D,  D, NO, D } },
	{ C,	{ NO, NO, NO, NO, DP, DP, D, NO, D } },
	{ DP,	{ NO, NO, NO, NO, DP, D,  D, NO, D } },
	{ D,	{ NO, NO, NO, NO, D,  D,  D, U,  D } },
};

static void state_table_test(struct kunit *test)
{
	static const enum kdapl_ep_input inputs[] = {
		KDAPL_IN_CONNECT, KDAPL_IN_ACCEPT, KDAPL_IN_UNDO, KDAPL_IN_ESTABLISHED,
		KDAPL_IN_GRACEFUL, KDAPL_IN_ABRUPT, KDAPL_IN_ENDED, KDAPL_IN_RESET, KDAPL_IN_FREE,
	};
	int state, row, i, want;

	KUNIT_EXPECT_EQ(test, (int)ARRAY_SIZE(inputs), (int)KDAPL_EP_INPUTS);
	for (state = 0; state < KDAPL_EP_STATES; state++) {
		for (i = 0; i < ARRAY_SIZE(inputs); i++) {
			/* states this version never enters refuse everything */
			want = KDAPL_EP_REFUSED;
			for (row = 0; row < ARRAY_SIZE(state_rows); row++)
				if (state_rows[row].state == state)
					want = state_rows[row].next[i];
			KUNIT_EXPECT_EQ_MSG(test, kdapl_ep_next_state(state, inputs[i]), want,
					    "state %d, input %d", state, inputs[i]);
		}
	}
}

/* No way out of the table: from every state a few inputs lead back to the start. */
static void state_reach_test(struct kunit *test)
{
	bool seen[KDAPL_EP_STATES] = { [U] = true };
	int state, input, next, round;

	for (round = 0; round < KDAPL_EP_STATES; round++)
		for (state = 0; state < KDAPL_EP_STATES; state++)
			for (input = 0; input < KDAPL_EP_INPUTS && seen[state]; input++) {
				next = kdapl_ep_next_state(state, input);
				if (next != KDAPL_EP_REFUSED)
					seen[next] = true;
			}
	for (state = 0; state < KDAPL_EP_STATES; state++) {
		if (!seen[state])
			continue;
		next = kdapl_ep_next_state(state, KDAPL_IN_ENDED);
		KUNIT_EXPECT_TRUE_MSG(test, next == D || next == U, "state %d", state);
		KUNIT_EXPECT_NE(test, kdapl_ep_next_state(state, KDAPL_IN_FREE), KDAPL_EP_REFUSED);
	}
	KUNIT_EXPECT_EQ(test, kdapl_ep_next_state(D, KDAPL_IN_RESET), (int)U);
	KUNIT_EXPECT_TRUE(test, seen[A] && seen[C] && seen[DP] && seen[D] && seen[CP]);
}

static struct kunit_case state_cases[] = {
	KD_CASE(state_table_test,
		"EPSM-01,EPSM-05,EPSM-10,EPSM-13,EPSM-15,EPSM-16,EPSM-19: every cell of the table"),
	KD_CASE(state_reach_test, "EPSM-36,EP-RST-01: every state reached ends and starts anew"),
	{}
};

static struct kunit_suite state_suite = {
	.name = "kdapl-state",
	.test_cases = state_cases,
};

kunit_test_suite(state_suite);
