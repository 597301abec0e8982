// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The state machine of a connection, cell by cell.
 *
 * What is expected is written down once more here, from the comments of evd/conn.h and the way
 * out that ep/conn_teardown.c describes.
 */
#include "kd_test.h"

#define COLUMNS	"att hold est stop fin"

static const char * const cs_rows[KDAPL_CONN_STATES] = {
	[KDAPL_CONN_IDLE]	= "I    C    -    -    E    -",
	[KDAPL_CONN_CONNECTING]	= "C    -    H    U    E    -",
	[KDAPL_CONN_HELD]	= "H    -    -    U    E    -",
	[KDAPL_CONN_UP]		= "U    -    -    -    E    -",
	[KDAPL_CONN_ENDING]	= "E    -    -    -    -    X",
	[KDAPL_CONN_ENDED]	= "X    -    -    -    -    -",
};

static const struct {
	const char *column;
	enum kdapl_conn_input input;
} cs_inputs[] = {
	{ "att", KDAPL_CONN_IN_ATTEMPT },
	{ "hold", KDAPL_CONN_IN_HOLD },
	{ "est", KDAPL_CONN_IN_ESTABLISHED },
	{ "stop", KDAPL_CONN_IN_STOP },
	{ "fin", KDAPL_CONN_IN_FINISHED },
};

static int cs_state(const char *letter)
{
	char word[8];
	int row;

	for (row = 0; row < KDAPL_CONN_STATES; row++)
		if (!strcmp(kd_word(cs_rows[row], 0, word, sizeof(word)), letter))
			return row;
	return KDAPL_CONN_NO_STEP;
}

/* kdapl_conn_step() writes what the table says, or nothing. */
static void cs_table_test(struct kunit *test)
{
	struct kdapl_conn *conn = kunit_kzalloc(test, sizeof(*conn), GFP_KERNEL);
	char word[8];
	int row, i;

	KUNIT_ASSERT_NOT_NULL(test, conn);
	KUNIT_ASSERT_EQ(test, (int)ARRAY_SIZE(cs_inputs), (int)KDAPL_CONN_INPUTS);
	mutex_init(&conn->lock);
	mutex_lock(&conn->lock);
	for (i = 0; i < KDAPL_CONN_INPUTS; i++)
		KUNIT_EXPECT_STREQ(test, kd_word(COLUMNS, i, word, sizeof(word)),
				   cs_inputs[i].column);
	for (row = 0; row < KDAPL_CONN_STATES; row++) {
		for (i = 0; i < KDAPL_CONN_INPUTS; i++) {
			enum kdapl_conn_input input = cs_inputs[i].input;
			int want = cs_state(kd_word(cs_rows[row], i + 1, word, sizeof(word)));
			bool may = want != KDAPL_CONN_NO_STEP;

			KUNIT_EXPECT_EQ_MSG(test, (int)kdapl_conn_next_state(row, input), want,
					    "%s in state %d", cs_inputs[i].column, row);
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

/* In the order of what they know: what stands further right replaces what stands further left. */
static void cs_reason_test(struct kunit *test)
{
	static const int known[] = {
		KDAPL_END_NO_EVENT, DAT_CONNECTION_EVENT_DISCONNECTED,
		DAT_CONNECTION_EVENT_TIMED_OUT, DAT_CONNECTION_EVENT_BROKEN,
		DAT_CONNECTION_EVENT_UNREACHABLE, DAT_CONNECTION_EVENT_PEER_REJECTED,
	};
	int i, k;

	for (i = 0; i < ARRAY_SIZE(known); i++) {
		KUNIT_EXPECT_TRUE(test, kdapl_conn_reason_wins(KDAPL_END_NONE, known[i]));
		KUNIT_EXPECT_TRUE(test, kdapl_conn_reason_wins(KDAPL_END_SUSPECT, known[i]));
		KUNIT_EXPECT_FALSE(test, kdapl_conn_reason_wins(known[i], KDAPL_END_SUSPECT));
		KUNIT_EXPECT_FALSE(test, kdapl_conn_reason_wins(known[i], KDAPL_END_PEER));
		KUNIT_EXPECT_EQ(test, kdapl_conn_reason_wins(KDAPL_END_PEER, known[i]),
				known[i] == DAT_CONNECTION_EVENT_BROKEN);
		for (k = 0; k < ARRAY_SIZE(known); k++)
			KUNIT_EXPECT_FALSE(test, kdapl_conn_reason_wins(known[i], known[k]));
	}
	KUNIT_EXPECT_TRUE(test, kdapl_conn_reason_wins(KDAPL_END_NONE, KDAPL_END_SUSPECT));
	KUNIT_EXPECT_TRUE(test, kdapl_conn_reason_wins(KDAPL_END_SUSPECT, KDAPL_END_PEER));
	KUNIT_EXPECT_FALSE(test, kdapl_conn_reason_wins(KDAPL_END_SUSPECT, KDAPL_END_SUSPECT));
	KUNIT_EXPECT_FALSE(test, kdapl_conn_reason_wins(KDAPL_END_PEER, KDAPL_END_SUSPECT));
}

static struct kunit_case cs_cases[] = {
	KD_CASE(cs_table_test, "EPSM-30,EPSM-31,EPSM-34: states of a connection, cell by cell"),
	KD_CASE(cs_reason_test, "EPSM-30,EPSM-31: which reason for the end stays"),
	{}
};

static struct kunit_suite cs_suite = {
	.name = "kdapl-conn-state",
	.test_cases = cs_cases,
};

kunit_test_suite(cs_suite);
