// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Errors that come from the other side. Transports differ in what they report
 * and to whom; what never differs: exactly one event ends the connection on
 * each side, nothing is written where it must not be, everything posted
 * completes, and the endpoint works again after a reset.
 */
#include "kdtest.h"

static void works_again(struct kunit *test, struct kdt_pair *pair)
{
	struct kdt_buf *from = kdt_buf_new(test, pair->c.ia, 64);
	struct kdt_buf *to = kdt_buf_new(test, pair->s.ia, 64);

	kdt_reset(test, &pair->c, &pair->s);
	kdt_pair_connect(test, pair);
	kdt_fill(from->p, 64, 1);
	kdt_put(test, &pair->c, from, 0, 64, to, 0);
	kdt_settle(test, pair);
	KUNIT_EXPECT_TRUE(test, kdt_same(to->p, 64, 1));
	kdt_pair_down(test, pair);
	kdt_pair_done(test, pair);
}

/*
 * BROKEN where the transport has reported an error. Where it has not there is a
 * reason: on iWARP the requester often learns of nothing but the end of the
 * stream, and the peer's disconnect may overtake the device's own news of the
 * error, which then is a flush like any other.
 */
static void expect_end(struct kunit *test, DAT_EVENT_NUMBER end, DAT_DTO_COMPLETION_STATUS status,
		       DAT_DTO_COMPLETION_STATUS usual, bool iwarp)
{
	if (status != DAT_DTO_SUCCESS && status != DAT_DTO_ERR_FLUSHED)
		KUNIT_EXPECT_EQ(test, (int)end, DAT_CONNECTION_EVENT_BROKEN);
	if (!iwarp && status != DAT_DTO_ERR_FLUSHED)
		KUNIT_EXPECT_EQ(test, (int)status, (int)usual);
}

enum fault { WRONG_KEY, BEHIND, BEFORE, FAR_AWAY, NO_RIGHT, FREED, OTHER_PZ, FAULTS };

static const char * const fault_name[FAULTS] = {
	"wrong key", "behind the end", "before the start", "far away", "no right", "freed",
	"other PZ",
};

#define MINE 64			/* bytes of the faulty request */
#define THEIRS 4096		/* bytes of the LMR it aims at */

/* Memory of the server's, and how the client names it wrongly. */
static struct kdt_buf *faulty(struct kunit *test, enum fault fault, bool read,
			      DAT_RMR_TRIPLET *remote)
{
	static const int shift[FAULTS] = {
		[BEHIND] = THEIRS - MINE / 2, [BEFORE] = -MINE / 2, [FAR_AWAY] = 1 << 30,
	};
	struct kdt_env *env = kdt_env(test);
	DAT_PZ_HANDLE pz = env->b.pz;
	int rights = DAT_MEM_PRIV_ALL_FLAG;
	struct kdt_buf *buf;

	if (fault == NO_RIGHT)
		rights &= ~(read ? DAT_MEM_PRIV_REMOTE_READ_FLAG : DAT_MEM_PRIV_REMOTE_WRITE_FLAG);
	if (fault == OTHER_PZ)
		KDT_OK(test, dat_pz_create(env->b.h, &pz));
	KDT_OK(test, kdt_buf_open(env, &env->b, pz, THEIRS, rights, &buf));
	memset(buf->p, 0x33, THEIRS);
	*remote = kdt_rseg(buf, 0, MINE);
	remote->virtual_address += (s64)shift[fault];
	if (fault == WRONG_KEY)
		remote->rmr_context ^= 0x5a5a00;
	if (fault == FREED)
		KDT_OK(test, dat_lmr_free(buf->lmr));
	return buf;
}

/*
 * A request that the far side refuses, with others before, behind and around it. Returns
 * whether both sides have been told everything there is to tell; otherwise the peer's
 * disconnect was faster than an answer.
 */
static bool refused_rdma(struct kunit *test, enum fault fault, bool read, bool quiet)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = quiet ? kdt_pair_quiet(test, NULL) : kdt_pair_up(test);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, MINE);
	struct kdt_buf *good = kdt_buf_new(test, &env->b, MINE);
	DAT_DTO_COMPLETION_STATUS status, next;
	DAT_LMR_TRIPLET iov = kdt_seg(mine, 0, MINE);
	DAT_RMR_TRIPLET remote;
	struct kdt_buf *theirs = faulty(test, fault, read, &remote);
	DAT_EVENT_NUMBER c, s;
	u64 cookie;
	int i;

	memset(mine->p, 0x44, MINE);
	for (i = 0; i < 2; i++) {
		KDT_OK(test, kdt_recv(&pair->c, mine, 0, MINE, 1 + i));
		KDT_OK(test, kdt_recv(&pair->s, good, 0, MINE, 3 + i));
	}
	kdt_put(test, &pair->c, mine, 0, MINE, good, 0);
	KDT_OK(test, read ? dat_ep_post_rdma_read(pair->c.h, 1, &iov, kdt_cookie(10), &remote, 0) :
	       dat_ep_post_rdma_write(pair->c.h, 1, &iov, kdt_cookie(10), &remote, 0));
	if (fault == NO_RIGHT && read && (env->b.traits & KDT_LAX)) {
		/* soft-iWARP lets it pass, and that is what is reported */
		kdt_sent(test, &pair->c, 10, DAT_DTO_RDMA_READ, MINE);
		KUNIT_EXPECT_TRUE(test, kdt_all(mine->p, MINE, 0x33));
		KUNIT_EXPECT_TRUE(test, kdt_all(theirs->p, THEIRS, 0x33));
		kdt_pair_down(test, pair);
		return false;
	}
	for (i = 1; i < 20; i++)
		KDT_OK(test, kdt_write(&pair->c, mine, 0, MINE, good, 0, 10 + i, i == 2 ?
				       DAT_COMPLETION_SUPPRESS_FLAG : 0));
	c = kdt_end(test, &pair->c);
	s = kdt_end(test, &pair->s);
	KUNIT_EXPECT_TRUE_MSG(test, kdt_all(theirs->p, THEIRS, 0x33), "%s", fault_name[fault]);
	KUNIT_EXPECT_TRUE(test, kdt_guarded(theirs));
	KUNIT_EXPECT_TRUE_MSG(test, kdt_all(mine->p, MINE, 0x44), "%s", fault_name[fault]);

	/* Everything posted is reported once, in order, and after a failure no success. */
	status = kdt_any_dto(test, pair->c.req, &cookie);
	KUNIT_EXPECT_EQ(test, cookie, 10);
	expect_end(test, c, status, DAT_DTO_ERR_REMOTE_ACCESS, env->a.iwarp);
	if (read || !env->a.iwarp)
		KUNIT_EXPECT_NE_MSG(test, (int)status, DAT_DTO_SUCCESS, "%s", fault_name[fault]);
	for (i = 1; i < 20; i++) {
		/* iWARP: a Write has succeeded when it has left; then 12 says nothing. */
		next = kdt_any_dto(test, pair->c.req, &cookie);
		if (env->a.iwarp && i == 2 && cookie == 13)
			i = 3;
		KUNIT_EXPECT_EQ(test, cookie, 10 + i);
		if (!env->a.iwarp)
			KUNIT_EXPECT_EQ(test, (int)next, DAT_DTO_ERR_FLUSHED);
	}
	for (i = 0; i < 2; i++) {
		kdt_flushed(test, &pair->c, 1 + i, DAT_DTO_RECEIVE);
		kdt_flushed(test, &pair->s, 3 + i, DAT_DTO_RECEIVE);
	}
	kunit_info(test, "%s %s%s: status %d, ends 0x%x 0x%x\n", read ? "read" : "write",
		   fault_name[fault], quiet ? ", nobody looks" : "", status, c, s);
	works_again(test, pair);
	return status == DAT_DTO_ERR_REMOTE_ACCESS && c == DAT_CONNECTION_EVENT_BROKEN &&
	       s == DAT_CONNECTION_EVENT_BROKEN;
}

/*
 * While the requester does not look at its completions it does not disconnect before the
 * target has noticed, so both can see the whole error. Even then the target's disconnect may
 * overtake its device's answer: not always, though. Another connection does not notice.
 */
static void remote_access(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *beside = kdt_pair_up(test);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, 64), *to = kdt_buf_new(test, &env->b, 64);
	int fault, read, tries, exact[2] = {};

	for (fault = 0; fault < FAULTS; fault++) {
		for (read = 0; read < 2; read++) {
			exact[read] += refused_rdma(test, fault, read, (fault + read) & 1);
			kdt_put(test, &beside->c, from, 0, 64, to, 0);
		}
	}
	for (read = 0; read < 2 && !env->a.iwarp; read++) {
		for (tries = 0; tries < 20 && !exact[read]; tries++)
			exact[read] += refused_rdma(test, WRONG_KEY, read, true);
		KUNIT_EXPECT_GT_MSG(test, exact[read], 0, "no %s had all of its error reported",
				    read ? "read" : "write");
	}
	kdt_pair_down(test, beside);
}

/* What is wrong with the Receive. */
enum receive { SHORT, MISSING, GONE };

/*
 * A message that its Receive does not take: of two segments, with a hole between them that must
 * stay one; or of none.
 */
static void not_received(struct kunit *test, enum receive wrong, u32 room, u32 message, bool quiet)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = quiet ? kdt_pair_quiet(test, NULL) : kdt_pair_up(test);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, 65536);
	struct kdt_buf *theirs = kdt_buf_new(test, &env->b, 65536);
	DAT_LMR_TRIPLET iov[] = {
		kdt_seg(theirs, 16, room / 2),
		kdt_seg(theirs, 16 + room / 2 + 100, room - room / 2),
	};
	DAT_DTO_COMPLETION_STATUS sent, received = DAT_DTO_SUCCESS;
	DAT_EVENT_NUMBER c, s;
	u64 cookie;

	memset(theirs->p, 0x55, theirs->len);
	if (wrong != MISSING) {
		KDT_OK(test, dat_ep_post_recv(pair->s.h, room ? 2 : 0, iov, kdt_cookie(1), 0));
		KDT_OK(test, dat_ep_post_recv(pair->s.h, 0, NULL, kdt_cookie(2), 0));
	}
	/* found out when the message comes: the memory is not the consumer's promise any more */
	if (wrong == GONE)
		KDT_OK(test, dat_lmr_free(theirs->lmr));
	KDT_OK(test, kdt_send(&pair->c, mine, 0, message, 3, 0));
	c = kdt_end(test, &pair->c);
	s = kdt_end(test, &pair->s);
	if (wrong != MISSING) {
		KUNIT_EXPECT_EQ(test, (int)s, DAT_CONNECTION_EVENT_BROKEN);
		received = kdt_any_dto(test, pair->s.recv, &cookie);
		KUNIT_EXPECT_EQ(test, cookie, 1);
		if (wrong == SHORT)
			KUNIT_EXPECT_EQ(test, (int)received, DAT_DTO_ERR_LOCAL_LENGTH);
		KUNIT_EXPECT_NE(test, (int)received, DAT_DTO_SUCCESS);
		kdt_flushed(test, &pair->s, 2, DAT_DTO_RECEIVE);
	} else if (!env->a.iwarp) {
		/* nobody else could have ended it */
		KUNIT_EXPECT_EQ(test, (int)c, DAT_CONNECTION_EVENT_BROKEN);
	}
	KUNIT_EXPECT_TRUE(test, kdt_all(theirs->p, 16, 0x55));
	KUNIT_EXPECT_TRUE(test, kdt_all(theirs->p + 16 + room / 2, 100, 0x55));
	KUNIT_EXPECT_TRUE(test, kdt_all(theirs->p + 116 + room, theirs->len - 116 - room, 0x55));
	if (wrong == GONE)
		KUNIT_EXPECT_TRUE(test, kdt_all(theirs->p, theirs->len, 0x55));
	sent = kdt_any_dto(test, pair->c.req, &cookie);
	KUNIT_EXPECT_EQ(test, cookie, 3);
	expect_end(test, c, sent, wrong == MISSING ? DAT_DTO_ERR_RECEIVER_NOT_READY :
		   DAT_DTO_ERR_REMOTE_RESPONDER, env->a.iwarp);
	kunit_info(test, "%u bytes into %u%s: sender %d, receiver %d, ends 0x%x 0x%x\n", message,
		   room, quiet ? ", nobody looks" : "", sent, received, c, s);
	works_again(test, pair);
}

static void message_too_long(struct kunit *test)
{
	not_received(test, SHORT, 63, 64, false);
	not_received(test, SHORT, 63, 64, true);
	not_received(test, SHORT, 0, 1, false);
	not_received(test, SHORT, 2, 65536, false);
	not_received(test, SHORT, 4097, 65536, true);
	not_received(test, SHORT, 60000, 60001, false);
}

static void no_receive(struct kunit *test)
{
	not_received(test, MISSING, 0, 64, false);
}

static void receive_freed(struct kunit *test)
{
	not_received(test, GONE, 64, 64, false);
}

static struct kunit_case cases[] = {
	KD_CASE(remote_access,
		"STAT-01,STAT-05,EPSM-17,EP-POST-20,RDMAW-13..14,RDMAR-12..13,PZ-03: refused"),
	KD_CASE(message_too_long, "SEND-21,RECV-02,RECV-10: a message longer than the receive"),
	KD_CASE(no_receive, "SEND-22: no receive at the peer"),
	KD_CASE(receive_freed, "STAT-01,RECV-11,LMR-FREE-02: a Receive into freed memory"),
	{}
};

struct kunit_suite kdt_error_suite = { .name = "kdtest-error", KDT_CASES };
