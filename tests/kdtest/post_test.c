// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* What the posting calls refuse, and that a refusal has no effect. */
#include "kdtest.h"

enum call { P_SEND, P_RECV, P_WRITE, P_READ, P_CALLS };

static const char * const call_name[P_CALLS] = { "send", "recv", "write", "read" };
/* Position of the flags, number of the "iov" argument, flags that are defined. */
static const int flags_arg[P_CALLS] = { 5, 5, 6, 6 };
static const int flags_legal[P_CALLS] = { 0x0f, 0x04, 0x0d, 0x0d };

static DAT_RETURN post(struct kdt_ep *ep, enum call call, int n, DAT_LMR_TRIPLET *iov,
		       const DAT_RMR_TRIPLET *remote, int flags)
{
	switch (call) {
	case P_SEND:
		return dat_ep_post_send(ep->h, n, iov, kdt_cookie(call), flags);
	case P_RECV:
		return dat_ep_post_recv(ep->h, n, iov, kdt_cookie(call), flags);
	case P_WRITE:
		return dat_ep_post_rdma_write(ep->h, n, iov, kdt_cookie(call), remote, flags);
	default:
		return dat_ep_post_rdma_read(ep->h, n, iov, kdt_cookie(call), remote, flags);
	}
}

#define WANT(call, type, subtype, ret)							\
do {											\
	DAT_RETURN kdt_r = (ret), kdt_want = DAT_ERROR(type, (subtype));		\
											\
	KUNIT_EXPECT_TRUE_MSG(test, kdt_r == kdt_want,					\
			      "%s: %s %s (0x%08x), not 0x%08x", call_name[call],	\
			      kdt_major(kdt_r), kdt_minor(kdt_r), kdt_r, kdt_want);	\
} while (0)

static int arg(int n)
{
	return DAT_INVALID_ARG1 + n - 1;
}

/* One good operation of each kind, so that a refusal that was none shows itself. */
static void still_works(struct kunit *test, struct kdt_pair *pair, struct kdt_buf *mine,
			struct kdt_buf *theirs)
{
	KDT_OK(test, kdt_recv(&pair->s, theirs, 0, 64, 1));
	KDT_OK(test, kdt_send(&pair->c, mine, 0, 64, 2, 0));
	KDT_OK(test, kdt_write(&pair->c, mine, 0, 64, theirs, 0, 3, 0));
	KDT_OK(test, kdt_read(&pair->c, mine, 0, 64, theirs, 0, 4, 0));
	kdt_dto(test, pair->c.req, &pair->c, 2, DAT_DTO_SEND, DAT_DTO_SUCCESS, 64);
	kdt_dto(test, pair->c.req, &pair->c, 3, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS, 64);
	kdt_dto(test, pair->c.req, &pair->c, 4, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, 64);
	kdt_dto(test, pair->s.recv, &pair->s, 1, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 64);
	KUNIT_EXPECT_EQ(test, kdt_queued(pair->c.req), 0);
	KUNIT_EXPECT_EQ(test, kdt_queued(pair->s.recv), 0);
}

static void counts(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, 64);
	struct kdt_buf *theirs = kdt_buf_new(test, &env->b, 64);
	DAT_RMR_TRIPLET remote = kdt_rseg(theirs, 0, 64);
	DAT_LMR_TRIPLET iov[64] = {};
	DAT_EP_PARAM param = {};
	int limit[P_CALLS], i;

	KDT_OK(test, dat_ep_query(pair->c.h, DAT_EP_FIELD_ALL, &param));
	limit[P_SEND] = param.ep_attr.max_request_iov;
	limit[P_RECV] = param.ep_attr.max_recv_iov;
	limit[P_WRITE] = param.ep_attr.max_rdma_write_iov;
	limit[P_READ] = param.ep_attr.max_rdma_read_iov;
	for (i = 0; i < P_CALLS; i++) {
		WANT(i, DAT_INVALID_PARAMETER, arg(2), post(&pair->c, i, -1, iov, &remote, 0));
		WANT(i, DAT_INVALID_PARAMETER, arg(2), post(&pair->c, i, INT_MIN, iov, &remote, 0));
		WANT(i, DAT_INVALID_PARAMETER, arg(2), post(&pair->c, i, INT_MAX, iov, &remote, 0));
		if (limit[i] < ARRAY_SIZE(iov))
			WANT(i, DAT_INVALID_PARAMETER, arg(2),
			     post(&pair->c, i, limit[i] + 1, iov, &remote, 0));
		WANT(i, DAT_INVALID_PARAMETER, arg(3), post(&pair->c, i, 1, NULL, &remote, 0));
		if (i == P_WRITE || i == P_READ) {
			WANT(i, DAT_INVALID_PARAMETER, arg(5), post(&pair->c, i, 1, iov, NULL, 0));
			WANT(i, DAT_INVALID_PARAMETER, arg(5), post(&pair->c, i, 0, NULL, NULL, 0));
		}
	}
	still_works(test, pair, mine, theirs);
}

static void flags(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, 64);
	struct kdt_buf *theirs = kdt_buf_new(test, &env->b, 64);
	DAT_RMR_TRIPLET remote = kdt_rseg(theirs, 0, 64);
	DAT_LMR_TRIPLET iov = kdt_seg(mine, 0, 64);
	int i, bit;

	for (i = 0; i < P_CALLS; i++) {
		for (bit = 0; bit < 31; bit++) {
			if (!(flags_legal[i] & 1 << bit))
				WANT(i, DAT_INVALID_PARAMETER, arg(flags_arg[i]),
				     post(&pair->c, i, 1, &iov, &remote, 1 << bit));
		}
		/* Defined, but the endpoint was not made for it. */
		WANT(i, DAT_INVALID_PARAMETER, arg(flags_arg[i]),
		     post(&pair->c, i, 1, &iov, &remote, DAT_COMPLETION_UNSIGNALLED_FLAG));
	}
	WANT(P_SEND, DAT_INVALID_PARAMETER, arg(5),
	     post(&pair->c, P_SEND, 1, &iov, NULL, DAT_COMPLETION_UNSIGNALLED_FLAG |
		  DAT_COMPLETION_SUPPRESS_FLAG));
	still_works(test, pair, mine, theirs);
}

static void ranges(struct kunit *test)
{
	static const struct {
		s64 offset;
		u32 len;
	} bad[] = {
		{ -1, 1 }, { -1, 64 }, { 0, 65 }, { 1, 64 }, { 63, 2 }, { 64, 1 }, { 4096, 1 },
		{ 0, 0xffffffff }, { 1LL << 40, 1 }, { S64_MIN, 16 },
	};
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, 64);
	struct kdt_buf *theirs = kdt_buf_new(test, &env->b, 64);
	DAT_RMR_TRIPLET remote = kdt_rseg(theirs, 0, 1);
	DAT_LMR_TRIPLET iov;
	int i, j;

	for (i = 0; i < P_CALLS; i++) {
		for (j = 0; j < ARRAY_SIZE(bad); j++) {
			/* Not a length error, whatever the order of checks. */
			remote.segment_length = i == P_WRITE ? 0xffffffff : 1;
			iov = kdt_seg(mine, 0, bad[j].len);
			iov.virtual_address += bad[j].offset;
			WANT(i, DAT_INVALID_PARAMETER, arg(3),
			     post(&pair->c, i, 1, &iov, &remote, 0));
		}
		/* Beyond the end of the address space, where sums wrap. */
		iov = kdt_seg(mine, 0, 64);
		iov.virtual_address = U64_MAX - 15;
		WANT(i, DAT_INVALID_PARAMETER, arg(3), post(&pair->c, i, 1, &iov, &remote, 0));
	}
	still_works(test, pair, mine, theirs);
}

static void keys(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, 64);
	struct kdt_buf *theirs = kdt_buf_new(test, &env->b, 64);
	DAT_RMR_TRIPLET remote = kdt_rseg(theirs, 0, 64);
	u32 key = mine->lctx, wrong[] = { 0, U32_MAX, key ^ 1, key ^ 0x100, key ^ 0x80000000 };
	DAT_LMR_TRIPLET iov;
	int i, j;

	for (i = 0; i < P_CALLS; i++) {
		bool sink = i == P_RECV || i == P_READ;

		for (j = 0; j < ARRAY_SIZE(wrong); j++) {
			/* Of the other adapter, when it lives on the same device. */
			if (wrong[j] == theirs->lctx)
				continue;
			iov = kdt_seg(mine, 0, 64);
			iov.lmr_context = wrong[j];
			WANT(i, DAT_PRIVILEGES_VIOLATION,
			     sink ? DAT_PRIVILEGES_WRITE : DAT_PRIVILEGES_READ,
			     post(&pair->c, i, 1, &iov, &remote, 0));
		}
	}
	still_works(test, pair, mine, theirs);
}

static void zones(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, 64);
	struct kdt_buf *theirs = kdt_buf_new(test, &env->b, 64);
	DAT_RMR_TRIPLET remote = kdt_rseg(theirs, 0, 64);
	struct kdt_buf *foreign;
	DAT_LMR_TRIPLET iov[2];
	struct kdt_ep bare;
	DAT_PZ_HANDLE pz;
	DAT_EP_ATTR attr;
	int i;

	KDT_OK(test, dat_pz_create(env->a.h, &pz));
	KDT_OK(test, kdt_buf_open(env, &env->a, pz, 64, KDT_RIGHTS, &foreign));
	for (i = 0; i < P_CALLS; i++) {
		bool sink = i == P_RECV || i == P_READ;
		int sub = sink ? DAT_PROTECTION_WRITE : DAT_PROTECTION_READ;

		iov[0] = kdt_seg(foreign, 0, 64);
		WANT(i, DAT_PROTECTION_VIOLATION, sub, post(&pair->c, i, 1, iov, &remote, 0));
		if (i == P_READ)
			continue;
		/* Not the first segment only. */
		iov[0] = kdt_seg(mine, 0, 32);
		iov[1] = kdt_seg(foreign, 0, 32);
		WANT(i, DAT_PROTECTION_VIOLATION, sub, post(&pair->c, i, 2, iov, &remote, 0));
	}
	still_works(test, pair, mine, theirs);

	/* Without a PZ nothing can be posted, not even nothing. */
	kdt_ep_new(test, &bare, &env->a, NULL);
	KDT_OK(test, dat_ep_free(bare.h));
	kdt_attr(env, &attr);
	KDT_OK(test, dat_ep_create(env->a.h, NULL, bare.recv->h, bare.req->h, bare.conn->h, &attr,
				   &bare.h));
	KDT_TYPE(test, DAT_PROTECTION_VIOLATION, kdt_recv(&bare, mine, 0, 64, 1));
	KDT_TYPE(test, DAT_PROTECTION_VIOLATION,
		 dat_ep_post_recv(bare.h, 0, NULL, kdt_cookie(1), 0));
}

/* Rights, zone, range within a segment; segments in order; all else before them. */
static void order_of_checks(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_pair *idle = kdt_pair_new(test, NULL);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, 64);
	struct kdt_buf *theirs = kdt_buf_new(test, &env->b, 64);
	struct kdt_buf *foreign_none, *foreign;
	DAT_LMR_TRIPLET iov[2];
	DAT_PZ_HANDLE pz;

	KDT_OK(test, dat_pz_create(env->a.h, &pz));
	KDT_OK(test, kdt_buf_open(env, &env->a, pz, 64, DAT_MEM_PRIV_NONE_FLAG, &foreign_none));
	KDT_OK(test, kdt_buf_open(env, &env->a, pz, 64, KDT_RIGHTS, &foreign));
	KDT_REFUSED(test, DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_READ,
		    kdt_send(&pair->c, foreign_none, 0, 65, 1, 0));
	KDT_REFUSED(test, DAT_PROTECTION_VIOLATION, DAT_PROTECTION_READ,
		    kdt_send(&pair->c, foreign, 0, 65, 1, 0));
	iov[0] = kdt_seg(mine, 0, 65);
	iov[1] = kdt_seg(foreign, 0, 1);
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		    dat_ep_post_send(pair->c.h, 2, iov, kdt_cookie(1), 0));
	/* Flags before state, state before segments. */
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG5,
		    kdt_send(&idle->c, foreign, 0, 65, 1, 0x40));
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONNECTED,
		    kdt_send(&idle->c, foreign, 0, 65, 1, 0));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		    dat_ep_post_send(idle->c.h, -1, iov, kdt_cookie(1), 0x40));
	still_works(test, pair, mine, theirs);
}

static void lengths(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, 8192);
	struct kdt_buf *theirs = kdt_buf_new(test, &env->b, 8192);
	DAT_LMR_TRIPLET iov[2] = { kdt_seg(mine, 0, 32), kdt_seg(mine, 32, 33) };
	DAT_RMR_TRIPLET remote = kdt_rseg(theirs, 0, 64);
	struct kdt_pair *pair;
	DAT_EP_ATTR attr;

	kdt_attr(env, &attr);
	attr.max_message_size = 4096;
	attr.max_rdma_size = 4096;
	pair = kdt_pair_new(test, &attr);
	kdt_pair_connect(test, pair);
	WANT(P_WRITE, DAT_LENGTH_ERROR, DAT_NO_SUBTYPE,
	     post(&pair->c, P_WRITE, 2, iov, &remote, 0));
	remote.segment_length = 33;
	WANT(P_READ, DAT_LENGTH_ERROR, DAT_NO_SUBTYPE, post(&pair->c, P_READ, 1, iov, &remote, 0));
	remote.segment_length = 1;
	WANT(P_READ, DAT_LENGTH_ERROR, DAT_NO_SUBTYPE, post(&pair->c, P_READ, 0, NULL, &remote, 0));

	/* More than the endpoint's own maximum, in one segment or in two. */
	remote.segment_length = 8192;
	iov[0] = kdt_seg(mine, 0, 4097);
	WANT(P_SEND, DAT_INVALID_PARAMETER, arg(3), post(&pair->c, P_SEND, 1, iov, NULL, 0));
	WANT(P_WRITE, DAT_INVALID_PARAMETER, arg(3), post(&pair->c, P_WRITE, 1, iov, &remote, 0));
	iov[0] = kdt_seg(mine, 0, 4096);
	iov[1] = kdt_seg(mine, 0, 1);
	WANT(P_SEND, DAT_INVALID_PARAMETER, arg(3), post(&pair->c, P_SEND, 2, iov, NULL, 0));
	WANT(P_WRITE, DAT_INVALID_PARAMETER, arg(3), post(&pair->c, P_WRITE, 2, iov, &remote, 0));
	iov[0] = kdt_seg(mine, 0, 8192);
	KDT_TYPE(test, DAT_INVALID_PARAMETER, post(&pair->c, P_READ, 1, iov, &remote, 0));
	still_works(test, pair, mine, theirs);
	/* The maximum itself. */
	KDT_OK(test, kdt_recv(&pair->s, theirs, 0, 4096, 1));
	KDT_OK(test, kdt_send(&pair->c, mine, 0, 4096, 1, 0));
	kdt_dto(test, pair->c.req, &pair->c, 1, DAT_DTO_SEND, DAT_DTO_SUCCESS, 4096);
	kdt_dto(test, pair->s.recv, &pair->s, 1, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 4096);
}

static void read_rules(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, 64);
	struct kdt_buf *theirs = kdt_buf_new(test, &env->b, 64);
	struct kdt_buf *local = kdt_buf_rights(test, &env->a, 64, DAT_MEM_PRIV_LOCAL_READ_FLAG |
					       DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
	struct kdt_pair *pair;
	DAT_EP_ATTR attr;

	kdt_attr(env, &attr);
	attr.max_rdma_read_in = 0;
	attr.max_rdma_read_out = 0;
	pair = kdt_pair_new(test, &attr);
	kdt_pair_connect(test, pair);
	KDT_TYPE(test, DAT_INVALID_PARAMETER, kdt_read(&pair->c, mine, 0, 64, theirs, 0, 1, 0));
	KDT_OK(test, kdt_write(&pair->c, mine, 0, 64, theirs, 0, 2, 0));
	kdt_dto(test, pair->c.req, &pair->c, 2, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS, 64);

	/* On iWARP the sink needs the remote write right, elsewhere it must not. */
	pair = kdt_pair_up(test);
	if (env->a.iwarp) {
		KDT_REFUSED(test, DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_RDMA_WRITE,
			    kdt_read(&pair->c, local, 0, 64, theirs, 0, 3, 0));
	} else {
		KDT_OK(test, kdt_read(&pair->c, local, 0, 64, theirs, 0, 3, 0));
		kdt_dto(test, pair->c.req, &pair->c, 3, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, 64);
	}
	still_works(test, pair, mine, theirs);
}

static void full_receive_queue(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, 64);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, 64);
	int i, round;

	for (i = 0; i < KDT_DTOS; i++)
		KDT_OK(test, kdt_recv(&pair->s, to, 0, 64, i));
	KDT_TYPE(test, DAT_INSUFFICIENT_RESOURCES, kdt_recv(&pair->s, to, 0, 64, i));
	kdt_pair_connect(test, pair);
	KDT_TYPE(test, DAT_INSUFFICIENT_RESOURCES, kdt_recv(&pair->s, to, 0, 64, i));
	/* Every completion makes room for exactly one. */
	for (round = 0; round < 2 * KDT_DTOS; round++) {
		KDT_OK(test, kdt_send(&pair->c, from, 0, 64, round, 0));
		kdt_dto(test, pair->c.req, &pair->c, round, DAT_DTO_SEND, DAT_DTO_SUCCESS, 64);
		kdt_dto(test, pair->s.recv, &pair->s, round, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 64);
		KDT_OK(test, kdt_recv(&pair->s, to, 0, 64, KDT_DTOS + round));
		KDT_TYPE(test, DAT_INSUFFICIENT_RESOURCES, kdt_recv(&pair->s, to, 0, 64, 0));
	}
}

/* Sends without a Receive pile up, as long as the transport's patience lasts. */
static bool full_of_sends(struct kunit *test, struct kdt_buf *from, struct kdt_buf *to)
{
	DAT_DTO_COMPLETION_STATUS status;
	struct kdt_pair *pair;
	DAT_EP_PARAM param = {};
	DAT_EP_ATTR attr;
	int i, n;

	kdt_attr(kdt_env(test), &attr);
	attr.max_request_dtos = 8;
	attr.max_recv_dtos = 200;
	pair = kdt_pair_new(test, &attr);
	kdt_pair_connect(test, pair);
	KDT_OK(test, dat_ep_query(pair->c.h, DAT_EP_FIELD_ALL, &param));
	n = param.ep_attr.max_request_dtos;
	KUNIT_ASSERT_LT(test, n, 150);
	for (i = 0; i < n; i++)
		KDT_OK(test, kdt_send(&pair->c, from, 0, 64, i, 0));
	KDT_TYPE(test, DAT_INSUFFICIENT_RESOURCES, kdt_send(&pair->c, from, 0, 64, n, 0));
	KDT_TYPE(test, DAT_INSUFFICIENT_RESOURCES,
		 kdt_write(&pair->c, from, 0, 64, to, 0, n, 0));
	for (i = 0; i < n; i++)
		KDT_OK(test, kdt_recv(&pair->s, to, 0, 64, i));
	status = kdt_any_dto(test, pair->c.req, NULL);
	if (status == DAT_DTO_ERR_RECEIVER_NOT_READY)
		return false;		/* the machine was too slow for this */
	KUNIT_EXPECT_EQ(test, (int)status, DAT_DTO_SUCCESS);
	kdt_dto(test, pair->s.recv, &pair->s, 0, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 64);
	for (i = 1; i < n; i++) {
		kdt_dto(test, pair->c.req, &pair->c, i, DAT_DTO_SEND, DAT_DTO_SUCCESS, 64);
		kdt_dto(test, pair->s.recv, &pair->s, i, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 64);
	}
	still_works(test, pair, from, to);
	return true;
}

static void full_request_queue(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, 64);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, 64);
	int tries = 0;

	if (env->a.iwarp)
		kunit_skip(test, "needs a transport where Sends wait for Receives");
	while (!full_of_sends(test, from, to))
		KUNIT_ASSERT_LT(test, tries++, 20);
}

/* Thousands of refusals use up nothing. */
static void refusals_cost_no_slot(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, 64);
	struct kdt_buf *theirs = kdt_buf_new(test, &env->b, 64);
	DAT_RMR_TRIPLET remote = kdt_rseg(theirs, 0, 64);
	DAT_LMR_TRIPLET iov = kdt_seg(mine, 0, 65);
	int i, j, accepted = 0;

	for (i = 0; i < 10 * KDT_DTOS; i++)
		for (j = 0; j < P_CALLS; j++)
			accepted += post(&pair->c, j, 1, &iov, &remote,
					 j == P_RECV ? 0 : DAT_COMPLETION_SUPPRESS_FLAG) ==
				    DAT_SUCCESS;
	KUNIT_EXPECT_EQ(test, accepted, 0);
	for (i = 0; i < KDT_DTOS; i++)
		KDT_OK(test, kdt_recv(&pair->c, mine, 0, 64, i));
	for (i = 0; i < KDT_DTOS; i++)
		KDT_OK(test, kdt_write(&pair->c, mine, 0, 64, theirs, 0, i, 0));
	for (i = 0; i < KDT_DTOS; i++)
		kdt_dto(test, pair->c.req, &pair->c, i, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS, 64);
	still_works(test, pair, mine, theirs);
}

static struct kunit_case cases[] = {
	KD_CASE(counts, "EP-POST-13,RDMAW-03,RDMAR-18: counts and pointers"),
	KD_CASE(flags, "EP-POST-07,EP-POST-19,SEND-11,RECV-05,RDMAW-05,RDMAR-06: flags"),
	KD_CASE(ranges, "EP-POST-14,SEND-19,RECV-16,RDMAW-15,RDMAR-14: ranges outside the LMR"),
	KD_CASE(keys, "EP-POST-16,SEND-19,RECV-16,RDMAW-14,RDMAR-13: unknown keys"),
	KD_CASE(zones, "EP-POST-15,SEND-19,RECV-18,RDMAW-13,RDMAR-12: another PZ, no PZ"),
	KD_CASE(order_of_checks, "GEN-10,SIL-03,SIL-32: which of several faults is reported"),
	KD_CASE(lengths, "RDMAW-11,RDMAR-04,SEND-20,RDMAW-16: lengths"),
	KD_CASE(read_rules, "RDMAR-13,RDMAR-17: reads without depth, read sinks on iWARP"),
	KD_CASE(full_receive_queue, "EP-POST-17,RECV-16: exactly max_recv_dtos receives"),
	KD_CASE(full_request_queue, "EP-POST-17,SEND-19: exactly max_request_dtos requests"),
	KD_CASE(refusals_cost_no_slot, "GEN-07,EP-POST-17: refusals cost no slot"),
	{}
};

struct kunit_suite kdt_post_suite = {
	.name = "kdtest-post",
	.init = kdt_init,
	.exit = kdt_exit,
	.test_cases = cases,
};
