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

	KDT_OK(test, dat_ep_reset(pair->c.h));
	KDT_OK(test, dat_ep_reset(pair->s.h));
	kdt_pair_connect(test, pair);
	kdt_fill(from->p, 64, 1);
	KDT_OK(test, kdt_write(&pair->c, from, 0, 64, to, 0, 1, 0));
	kdt_dto(test, pair->c.req, &pair->c, 1, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS, 64);
	kdt_settle(test, pair);
	KUNIT_EXPECT_TRUE(test, kdt_same(to->p, 64, 1));
	kdt_pair_down(test, pair);
	kdt_ep_done(test, &pair->c);
	kdt_ep_done(test, &pair->s);
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

enum bad_rdma { BAD_KEY_WRITE, BAD_RANGE_WRITE, BAD_KEY_READ, BAD_RANGE_READ, BAD_RDMAS };

static void remote_access(struct kunit *test)
{
	static const char * const name[] = { "write, key", "write, range", "read, key",
					     "read, range" };
	struct kdt_env *env = kdt_env(test);
	int kind, i;

	for (kind = 0; kind < BAD_RDMAS; kind++) {
		struct kdt_pair *pair = kdt_pair_up(test);
		struct kdt_buf *mine = kdt_buf_new(test, &env->a, 64);
		struct kdt_buf *theirs = kdt_buf_new(test, &env->b, 4096);
		bool read = kind == BAD_KEY_READ || kind == BAD_RANGE_READ;
		DAT_DTO_COMPLETION_STATUS status;
		DAT_LMR_TRIPLET iov = kdt_seg(mine, 0, 64);
		DAT_RMR_TRIPLET remote;
		DAT_EVENT_NUMBER c;
		DAT_LMR_CONTEXT key;
		u64 cookie;

		/* The LMR covers the front half of the memory only. */
		memset(theirs->p, 0x33, 4096);
		memset(mine->p, 0x44, 64);
		KDT_OK(test, dat_lmr_free(theirs->lmr));
		KDT_OK(test, dat_lmr_kcreate(env->b.h, DAT_MEM_TYPE_VIRTUAL,
					     (DAT_REGION_DESCRIPTION) { .for_va = theirs->p }, 2048,
					     env->b.pz, KDT_RIGHTS, DAT_VA_TYPE_VA, 0, &theirs->lmr,
					     &key, &theirs->rctx, NULL, NULL));
		remote = kdt_rseg(theirs, 0, 64);
		if (kind == BAD_KEY_WRITE || kind == BAD_KEY_READ)
			remote.rmr_context ^= 0x5a5a00;
		else
			remote.virtual_address += 2048 - 32;

		KDT_OK(test, kdt_recv(&pair->c, mine, 0, 64, 1));
		KDT_OK(test, kdt_recv(&pair->s, theirs, 0, 0, 2));
		if (read)
			KDT_OK(test, dat_ep_post_rdma_read(pair->c.h, 1, &iov, kdt_cookie(3),
							   &remote, 0));
		else
			KDT_OK(test, dat_ep_post_rdma_write(pair->c.h, 1, &iov, kdt_cookie(3),
							    &remote, 0));
		c = kdt_end(test, &pair->c);
		kdt_end(test, &pair->s);
		KUNIT_EXPECT_TRUE_MSG(test, kdt_all(theirs->p, 4096, 0x33), "%s", name[kind]);
		KUNIT_EXPECT_TRUE_MSG(test, kdt_all(mine->p, 64, 0x44), "%s", name[kind]);

		status = kdt_any_dto(test, pair->c.req, &cookie);
		KUNIT_EXPECT_EQ(test, cookie, 3);
		expect_end(test, c, status, DAT_DTO_ERR_REMOTE_ACCESS, env->a.iwarp);
		if (read)
			KUNIT_EXPECT_NE_MSG(test, (int)status, DAT_DTO_SUCCESS, "%s", name[kind]);
		kdt_dto(test, pair->c.recv, &pair->c, 1, DAT_DTO_RECEIVE, DAT_DTO_ERR_FLUSHED, 0);
		kdt_dto(test, pair->s.recv, &pair->s, 2, DAT_DTO_RECEIVE, DAT_DTO_ERR_FLUSHED, 0);
		/* DISCONNECTED like any other. */
		for (i = 0; i < 3; i++)
			KDT_OK(test, kdt_write(&pair->c, mine, 0, 64, theirs, 0, 10 + i, 0));
		for (i = 0; i < 3; i++)
			kdt_dto(test, pair->c.req, &pair->c, 10 + i, DAT_DTO_RDMA_WRITE,
				DAT_DTO_ERR_FLUSHED, 0);
		works_again(test, pair);
	}
}

/* After the failed one nothing succeeds any more, and nothing is lost. */
static void requests_behind(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, 64);
	struct kdt_buf *theirs = kdt_buf_new(test, &env->b, 64);
	DAT_LMR_TRIPLET iov = kdt_seg(mine, 0, 64);
	DAT_RMR_TRIPLET remote = kdt_rseg(theirs, 0, 64);
	DAT_DTO_COMPLETION_STATUS status;
	bool failed = false;
	DAT_RETURN ret;
	u64 cookie;
	int i, n = 0;

	remote.rmr_context ^= 0x5a5a00;
	/*
	 * Waited for: the far side may be told of the end before the answer to
	 * this one is looked at, and then nobody knows that it succeeded.
	 */
	KDT_OK(test, kdt_write(&pair->c, mine, 0, 64, theirs, 0, 0, 0));
	kdt_dto(test, pair->c.req, &pair->c, 0, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS, 64);
	KDT_OK(test, dat_ep_post_rdma_read(pair->c.h, 1, &iov, kdt_cookie(n++), &remote, 0));
	for (i = 0; i < 20; i++) {
		ret = kdt_write(&pair->c, mine, 0, 64, theirs, 0, n, 0);
		KDT_OK(test, ret);
		n++;
	}
	kdt_end(test, &pair->c);
	kdt_end(test, &pair->s);
	for (i = 0; i < n; i++) {
		status = kdt_any_dto(test, pair->c.req, &cookie);
		KUNIT_EXPECT_EQ(test, cookie, i);
		if (i == 0)
			KUNIT_EXPECT_NE(test, (int)status, DAT_DTO_SUCCESS);
		if (failed && !env->a.iwarp)
			KUNIT_EXPECT_EQ(test, (int)status, DAT_DTO_ERR_FLUSHED);
		failed |= status != DAT_DTO_SUCCESS;
	}
	works_again(test, pair);
}

static void message_too_long(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, 256);
	struct kdt_buf *theirs = kdt_buf_new(test, &env->b, 256);
	DAT_EVENT_NUMBER c, s;
	u64 cookie;

	memset(theirs->p, 0x55, 256);
	KDT_OK(test, kdt_recv(&pair->s, theirs, 0, 63, 1));
	KDT_OK(test, kdt_recv(&pair->s, theirs, 0, 256, 2));
	KDT_OK(test, kdt_send(&pair->c, mine, 0, 64, 3, 0));
	c = kdt_end(test, &pair->c);
	s = kdt_end(test, &pair->s);
	KUNIT_EXPECT_EQ(test, (int)s, DAT_CONNECTION_EVENT_BROKEN);
	KUNIT_EXPECT_TRUE(test, kdt_all(theirs->p + 63, 256 - 63, 0x55));
	KUNIT_EXPECT_EQ(test, (int)kdt_any_dto(test, pair->s.recv, &cookie),
			DAT_DTO_ERR_LOCAL_LENGTH);
	KUNIT_EXPECT_EQ(test, cookie, 1);
	KUNIT_EXPECT_EQ(test, (int)kdt_any_dto(test, pair->s.recv, &cookie), DAT_DTO_ERR_FLUSHED);
	KUNIT_EXPECT_EQ(test, cookie, 2);
	expect_end(test, c, kdt_any_dto(test, pair->c.req, &cookie), DAT_DTO_ERR_REMOTE_RESPONDER,
		   env->a.iwarp);
	KUNIT_EXPECT_EQ(test, cookie, 3);
	works_again(test, pair);
}

static void no_receive(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, 64);
	DAT_DTO_COMPLETION_STATUS status;
	DAT_EVENT_NUMBER c;

	KDT_OK(test, kdt_send(&pair->c, mine, 0, 64, 3, 0));
	c = kdt_end(test, &pair->c);
	kdt_end(test, &pair->s);
	status = kdt_any_dto(test, pair->c.req, NULL);
	expect_end(test, c, status, DAT_DTO_ERR_RECEIVER_NOT_READY, env->a.iwarp);
	/* Nobody else could have ended it. */
	if (!env->a.iwarp)
		KUNIT_EXPECT_EQ(test, (int)c, DAT_CONNECTION_EVENT_BROKEN);
	works_again(test, pair);
}

static void late_receive(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, 64);
	struct kdt_buf *theirs = kdt_buf_new(test, &env->b, 64);

	if (env->a.iwarp)
		kunit_skip(test, "needs a transport where Sends wait for Receives");
	KDT_OK(test, kdt_send(&pair->c, mine, 0, 64, 3, 0));
	KDT_OK(test, kdt_recv(&pair->s, theirs, 0, 64, 1));
	kdt_dto(test, pair->c.req, &pair->c, 3, DAT_DTO_SEND, DAT_DTO_SUCCESS, 64);
	kdt_dto(test, pair->s.recv, &pair->s, 1, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 64);
}

static void others_unharmed(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *bad = kdt_pair_up(test), *good = kdt_pair_up(test);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, 64);
	struct kdt_buf *theirs = kdt_buf_new(test, &env->b, 64);
	DAT_LMR_TRIPLET iov = kdt_seg(mine, 0, 64);
	DAT_RMR_TRIPLET remote = kdt_rseg(theirs, 0, 64);
	struct kdt_buf *later;

	remote.rmr_context ^= 0x5a5a00;
	KDT_OK(test, dat_ep_post_rdma_write(bad->c.h, 1, &iov, kdt_cookie(1), &remote, 0));
	kdt_end(test, &bad->c);
	kdt_end(test, &bad->s);
	KDT_OK(test, kdt_write(&good->c, mine, 0, 64, theirs, 0, 2, 0));
	kdt_dto(test, good->c.req, &good->c, 2, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS, 64);
	/* Registration works, too, before and after. */
	later = kdt_buf_new(test, &env->b, 64);
	KDT_OK(test, kdt_write(&good->c, mine, 0, 64, later, 0, 3, 0));
	kdt_dto(test, good->c.req, &good->c, 3, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS, 64);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(good->c.h), DAT_EP_STATE_CONNECTED);
	kdt_pair_down(test, good);
}

/* The peer's zone protects like its keys do. */
static void foreign_zone(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, 64);
	struct kdt_buf *foreign;
	DAT_EVENT_NUMBER c;
	DAT_PZ_HANDLE pz;

	KDT_OK(test, dat_pz_create(env->b.h, &pz));
	KDT_OK(test, kdt_buf_open(env, &env->b, pz, 64, KDT_RIGHTS, &foreign));
	memset(foreign->p, 0x66, 64);
	KDT_OK(test, kdt_write(&pair->c, mine, 0, 64, foreign, 0, 1, 0));
	c = kdt_end(test, &pair->c);
	kdt_end(test, &pair->s);
	KUNIT_EXPECT_TRUE(test, kdt_all(foreign->p, 64, 0x66));
	expect_end(test, c, kdt_any_dto(test, pair->c.req, NULL), DAT_DTO_ERR_REMOTE_ACCESS,
		   env->a.iwarp);
	works_again(test, pair);
}

static struct kunit_case cases[] = {
	KD_CASE(remote_access, "STAT-01,EPSM-17,EPSM-31,EP-POST-20,RDMAW-14: bad remote key"),
	KD_CASE(requests_behind, "STAT-02,STAT-05,FLUSH-08: what is posted behind a failure"),
	KD_CASE(message_too_long, "SEND-21,RECV-10: a message longer than the receive"),
	KD_CASE(no_receive, "SEND-22: no receive at the peer"),
	KD_CASE(late_receive, "SEND-22: a receive a little late"),
	KD_CASE(others_unharmed, "STAT-01,LMR-02: other connections are not harmed"),
	KD_CASE(foreign_zone, "RDMAW-13,PZ-03: memory of another PZ of the peer"),
	{}
};

struct kunit_suite kdt_error_suite = {
	.name = "kdtest-error",
	.init = kdt_init,
	.exit = kdt_exit,
	.test_cases = cases,
};
