// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Shared Receive Queues: what create, post and query do, whose completion it is,
 * and the EPs that use them.
 */
#include <linux/limits.h>

#include "kd_srq.h"
#include "kd_upcall.h"

#define SQ_NO_COOKIE	((DAT_DTO_COOKIE) {})

static void sq_create_args_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	struct kd_env *env = &sq->env;
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia = kd_ia_more(env, &async);
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 8, .max_recv_iov = 2 };
	DAT_PZ_HANDLE foreign, pz;
	DAT_SRQ_HANDLE srq;
	DAT_IA_ATTR max;
	unsigned int verbs;
	int i;

	KD_ASSERT_OK(test, dat_ia_query(env->ia, NULL, DAT_IA_FIELD_ALL, &max, 0, NULL));
	KUNIT_EXPECT_GT(test, (int)max.max_srqs, 0);
	KD_ASSERT_OK(test, dat_pz_create(ia, &foreign));
	KD_ASSERT_OK(test, dat_pz_create(env->ia, &pz));
	swap(env->pz, pz);
	verbs = fake_ib_count(env->dev, FAKE_IB_ANY);
	/* handles are looked at first */
	KD_BAD_HANDLE(test, dat_srq_create(env->ia, foreign, NULL, NULL), _PZ);
	KD_BAD_ARG(test, dat_srq_create(env->ia, env->pz, NULL, &srq), 3);
	KD_BAD_ARG(test, dat_srq_create(env->ia, env->pz, &attr, NULL), 4);
	{
		const DAT_COUNT bad[][3] = {	/* buffers, segments, low watermark */
			{ 0, 2, 0 }, { -1, 2, 0 }, { INT_MIN, 2, 0 }, { INT_MAX, 2, 0 },
			{ max.max_recv_per_srq + 1, 2, 0 },
			{ 8, 0, 0 }, { 8, -1, 0 }, { 8, INT_MIN, 0 }, { 8, INT_MAX, 0 },
			{ 8, max.max_iov_segments_per_dto + 1, 0 },
			{ 8, 2, -1 }, { 8, 2, INT_MIN }, { 8, 2, INT_MAX }, { 8, 2, 9 },
		};

		for (i = 0; i < ARRAY_SIZE(bad); i++)
			KUNIT_EXPECT_EQ_MSG(test, (u32)sq_create(sq, bad[i][0], bad[i][1],
								 bad[i][2], &srq),
					    (u32)DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3),
					    "row %d", i);
	}
	KUNIT_EXPECT_EQ(test, fake_ib_count(env->dev, FAKE_IB_ANY), verbs);
	/* the limits themselves are legal */
	KD_EXPECT_OK(test, sq_create(sq, max.max_recv_per_srq, max.max_iov_segments_per_dto, 0,
				     &srq));
	KD_EXPECT_OK(test, dat_srq_free(srq));
	/* a refused create holds nothing */
	swap(env->pz, pz);
	KD_EXPECT_OK(test, dat_pz_free(pz));
	KD_EXPECT_OK(test, dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

static void sq_unsupported(struct kunit *test, const struct fake_ib_caps *caps)
{
	struct sq *sq = sq_open(test, caps);
	DAT_PROVIDER_ATTR provider;
	DAT_SRQ_HANDLE srq;
	DAT_IA_ATTR ia;

	KD_EXPECT_RET(test, sq_create(sq, 8, 1, 0, &srq), DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	KD_EXPECT_OK(test, dat_ia_query(sq->env.ia, NULL, DAT_IA_FIELD_ALL, &ia,
					DAT_PROVIDER_FIELD_ALL, &provider));
	KUNIT_EXPECT_EQ(test, (int)ia.max_srqs, 0);
	KUNIT_EXPECT_EQ(test, (int)provider.srq_supported, (int)DAT_FALSE);
}

static void sq_unsupported_test(struct kunit *test)
{
	static const struct fake_ib_caps caps = { .no_srq = true };

	sq_unsupported(test, &caps);
}

/* The device counts SRQs that its driver does not make for the kernel. */
static void sq_user_only_test(struct kunit *test)
{
	static const struct fake_ib_caps caps = { .driver = RDMA_DRIVER_VMW_PVRDMA };

	sq_unsupported(test, &caps);
}

/* The largest SRQ, with a driver that does not make as large a one as it says. */
static void sq_short_test(struct kunit *test)
{
	static const struct fake_ib_caps caps = {
		.driver = RDMA_DRIVER_BNXT_RE, .max_srq_wr = 80,
	};
	struct sq *sq = sq_open(test, &caps);
	DAT_IA_ATTR max;

	KD_ASSERT_OK(test, dat_ia_query(sq->env.ia, NULL, DAT_IA_FIELD_ALL, &max, 0, NULL));
	sq_srq(sq, max.max_recv_per_srq);
}

/* Each bit alone brings its member, and no other bit is known. */
static void sq_query_args_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	DAT_SRQ_PARAM param;
	int bit;

	sq_srq(sq, 4);
	sq_post(sq, 0, 3);
	KD_EXPECT_OK(test, dat_srq_set_lw(sq->srq, 2));
	for (bit = 0; bit < 32; bit++)
		if (!(BIT(bit) & DAT_SRQ_FIELD_ALL))
			KD_BAD_ARG(test, dat_srq_query(sq->srq, BIT(bit), &param), 2);
#define SQ_FIELD(bit, got, want)							\
do {											\
	memset(&param, 0xee, sizeof(param));						\
	KD_EXPECT_OK(test, dat_srq_query(sq->srq, DAT_SRQ_FIELD_##bit, &param));	\
	KUNIT_EXPECT_TRUE_MSG(test, (got) == (want), #bit);				\
} while (0)
	SQ_FIELD(IA_HANDLE, param.ia_handle, sq->env.ia);
	SQ_FIELD(SRQ_STATE, param.srq_state, DAT_SRQ_STATE_OPERATIONAL);
	SQ_FIELD(PZ_HANDLE, param.pz_handle, sq->env.pz);
	SQ_FIELD(MAX_RECV_DTO, param.max_recv_dtos, 4);
	SQ_FIELD(MAX_RECV_IOV, param.max_recv_iov, 4);
	SQ_FIELD(LOW_WATERMARK, param.low_watermark, 2);
	SQ_FIELD(AVAILABLE_DTO_COUNT, param.available_dto_count, 3);
	SQ_FIELD(OUTSTANDING_DTO_COUNT, param.outstanding_dto_count, 3);
	KD_EXPECT_OK(test, dat_srq_query(sq->srq, 0, NULL));
	KD_BAD_ARG(test, dat_srq_query(sq->srq, DAT_SRQ_FIELD_ALL, NULL), 3);
}

/*
 * Available and outstanding, step by step, for every number of buffers. Full is full until a
 * completion is handed over: a message alone makes no room, the consumer still has its turn.
 */
static void sq_counts_test(struct kunit *test)
{
	static const int sizes[] = { 1, 2, 10, 17 };
	struct sq *sq = sq_open(test, NULL);
	int s, i, n;

	for (s = 0; s < ARRAY_SIZE(sizes); s++) {
		n = sizes[s];
		sq_srq(sq, n);
		sq_ep(sq, 0);
		sq_post(sq, 0, n);
		for (i = 0; i < 3 * n; i++) {
			sq_expect_counts(sq, n, n, "full");
			sq_expect_full(sq);
			sq_recv(sq, 0, 1, 3);
			sq_expect_counts(sq, n - 1, n, "arrived");
			sq_expect_full(sq);
			sq_got(sq, 0, i, 3);
			sq_expect_counts(sq, n - 1, n - 1, "dequeued");
			sq_post(sq, n + i, 1);
		}
		for (i = 0; i < n; i++) {
			sq_expect_counts(sq, n - i, n, "arriving");
			sq_recv(sq, 0, 1, i);
		}
		for (i = 0; i < n; i++) {
			sq_expect_counts(sq, 0, n - i, "dequeuing");
			sq_got(sq, 0, 3 * n + i, i);
		}
		sq_expect_counts(sq, 0, 0, "empty");
		sq_ep_free(sq, 0);
		sq_srq_free(sq);
	}
}

static void sq_free_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	DAT_PZ_HANDLE pz;
	int i;

	/* a PZ is in use by its SRQs */
	KD_ASSERT_OK(test, dat_pz_create(sq->env.ia, &pz));
	swap(pz, sq->env.pz);
	sq_srq(sq, 8);
	swap(pz, sq->env.pz);
	KD_BAD_STATE(test, dat_pz_free(pz), PZ_IN_USE);
	sq_srq_free(sq);
	KD_EXPECT_OK(test, dat_pz_free(pz));

	sq_srq(sq, 8);
	sq_post(sq, 0, 5);
	for (i = 0; i < 3; i++)
		sq_ep_on(sq, i, sq->env.recv, NULL);
	sq_use(sq, 1);
	kd_connect(&sq->env);
	for (i = 0; i < 3; i++) {
		KD_BAD_STATE(test, dat_srq_free(sq->srq), SRQ_IN_USE);
		sq_expect_counts(sq, 5, 5, "still in use");
		sq_ep_free(sq, i);
	}
	/* posted buffers go without a word */
	sq_srq_free(sq);
	KD_EXPECT_EMPTY(test, sq->env.recv);
	KD_EXPECT_EMPTY(test, sq->env.async);
}

static void sq_refused(struct sq *sq, int num, DAT_LMR_TRIPLET *iov, DAT_RETURN want,
		       const char *what)
{
	unsigned int verbs = fake_ib_count(sq->env.dev, FAKE_IB_ANY);
	struct kunit *test = sq->env.test;
	DAT_SRQ_PARAM before, after;

	sq_counts(sq, &before);
	KUNIT_EXPECT_EQ_MSG(test, (u32)dat_srq_post_recv(sq->srq, num, iov, SQ_NO_COOKIE),
			    (u32)want, "%s, %d segments", what, num);
	sq_counts(sq, &after);
	KUNIT_EXPECT_EQ(test, memcmp(&before, &after, sizeof(before)), 0);
	KUNIT_EXPECT_EQ(test, fake_ib_count(sq->env.dev, FAKE_IB_ANY), verbs);
}

/* Posts that are refused: one bad segment among four, wherever it is. */
static void sq_post_refused_test(struct kunit *test)
{
	const DAT_RETURN count = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	const DAT_RETURN range = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	const DAT_RETURN right = DAT_ERROR(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE);
	const DAT_RETURN zone = DAT_ERROR(DAT_PROTECTION_VIOLATION, DAT_PROTECTION_WRITE);
	const DAT_RETURN full = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ);
	static const int counts[] = { -1, -2, INT_MIN, INT_MAX, 5, 6, 65536 };
	struct sq *sq = sq_open(test, NULL);
	struct kd_env *env = &sq->env;
	const DAT_LMR_TRIPLET good = kd_seg(env, KD_RW, 0, 8);
	const u64 va = good.virtual_address;
	const u32 key = good.lmr_context;
	const struct {
		const char *what;
		DAT_LMR_TRIPLET seg;
		DAT_RETURN want;
	} bad[] = {
		{ "key", { va, 8, key ^ 0x100 }, right },
		{ "no key", { va, 8, 0 }, right },
		{ "read only", kd_seg(env, KD_RO, 0, 8), right },
		{ "remote", kd_seg(env, KD_REMOTE, 0, 8), right },
		{ "PZ", kd_seg(env, KD_FOREIGN, 0, 8), zone },
		{ "too long", kd_seg(env, KD_RW, 0, KD_MEM_SIZE + 1), range },
		{ "longest", kd_seg(env, KD_RW, 16, U32_MAX), range },
		{ "behind", kd_seg(env, KD_RW, KD_MEM_SIZE, 1), range },
		{ "in front", { va - 1, 8, key }, range },
		{ "wraps", { ~0ULL - 3, 8, key }, range },
	};
	DAT_LMR_TRIPLET iov[8];
	int i, k;

	sq_srq(sq, 4);
	for (i = 0; i < ARRAY_SIZE(iov); i++)
		iov[i] = good;
	for (i = 0; i < ARRAY_SIZE(counts); i++)
		sq_refused(sq, counts[i], iov, count, "count");
	for (i = 1; i <= 4; i++)
		sq_refused(sq, i, NULL, range, "no list");
	for (k = 0; k < 4; k++) {
		for (i = 0; i < ARRAY_SIZE(bad); i++) {
			iov[k] = bad[i].seg;
			sq_refused(sq, 4, iov, bad[i].want, bad[i].what);
		}
		iov[k] = good;
	}
	/* full, and segments before resources */
	sq_post(sq, 0, 4);
	sq_refused(sq, 1, iov, full, "full");
	iov[0].lmr_context ^= 0x100;
	sq_refused(sq, 1, iov, right, "key before room");
}

/* The device refuses although there is room: told so, and nothing is lost. */
static void sq_native_refusal_test(struct kunit *test)
{
	static const int errs[] = { -ENOMEM, -EINVAL, -ENOTCONN };
	struct sq *sq = sq_open(test, NULL);
	int i;

	sq_srq(sq, 4);
	sq_ep(sq, 0);
	sq_post(sq, 0, 2);
	for (i = 0; i < 100; i++) {
		fake_ib_fail(sq->env.dev, FAKE_IB_POST_SRQ_RECV, 1, errs[i % 3]);
		sq_expect_full(sq);
		sq_expect_counts(sq, 2, 2, "refused by the device");
	}
	sq_post(sq, 2, 2);
	sq_expect_full(sq);
	for (i = 0; i < 4; i++) {
		sq_recv(sq, 0, 1, 1);
		sq_got(sq, 0, i, 1);
	}
	KD_EXPECT_EMPTY(test, sq->env.recv);
	/* the connection has nothing to do with it */
	KUNIT_EXPECT_EQ(test, (int)READ_ONCE(sq->env.kep->state), (int)DAT_EP_STATE_CONNECTED);
}

/* Two EPs with an EVD each: the event is of the one that took the buffer. */
static void sq_completion_test(struct kunit *test)
{
	static const u64 cookies[] = {
		0, 1, ~0ULL, 0x8000000000000000ULL, 0x0123456789abcdefULL, 1, 1, 0xffffffffULL,
	};
	struct sq *sq = sq_open(test, NULL);
	DAT_EVD_HANDLE evd[2] = { sq->env.recv };
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;
	int i, who;

	evd[1] = kd_evd(&sq->env, 8, DAT_EVD_DTO_FLAG);
	sq_srq(sq, 8);
	for (i = 0; i < 2; i++) {
		sq_ep_on(sq, i, evd[i], NULL);
		kd_connect(&sq->env);
	}
	for (i = 0; i < ARRAY_SIZE(cookies); i++)
		KD_EXPECT_OK(test, sq_try_post(sq, cookies[i]));
	for (i = 0; i < ARRAY_SIZE(cookies); i++) {
		who = (i ^ i >> 1) & 1;
		sq_recv(sq, who, 1, 8 * i);
		sq_expect(sq, evd[who], who, cookies[i], DAT_DTO_SUCCESS, 8 * i);
		KD_EXPECT_EMPTY(test, evd[0]);
		KD_EXPECT_EMPTY(test, evd[1]);
	}
	/* as a Receive of the EP itself: an invalidated key is told */
	sq_post(sq, 5, 2);
	KUNIT_EXPECT_EQ(test, fake_ib_recv_inv(sq->eps[1].qp, 12, 0xabcdef01), 0);
	sq_recv(sq, 1, 1, 13);
	KUNIT_ASSERT_TRUE(test, kd_next(evd[1], &event));
	dto = &event.event_data.dto_completion_event_data;
	KUNIT_EXPECT_EQ(test, (u32)dto->operation, (u32)DAT_DTO_RECEIVE_WITH_INVALIDATE);
	KUNIT_EXPECT_EQ(test, (u32)dto->rmr_context, 0xabcdef01U);
	KUNIT_EXPECT_EQ(test, (u32)dto->transfered_length, 12U);
	sq_expect(sq, evd[1], 1, 6, DAT_DTO_SUCCESS, 13);
	sq_ep_free(sq, 0);
	sq_ep_free(sq, 1);
	KD_EXPECT_OK(test, dat_evd_free(evd[1]));
}

/* Buffers are taken and finish in every order; each EP keeps that of its messages. */
static void sq_order_test(struct kunit *test)
{
	/* who takes the six buffers, and the order in which they finish */
	static const u8 who[][6] = {
		{ 0, 1, 0, 1, 0, 1 }, { 0, 0, 0, 1, 1, 1 }, { 1, 0, 0, 1, 0, 0 },
	};
	static const u8 finish[][6] = {
		{ 0, 1, 2, 3, 4, 5 }, { 1, 3, 5, 0, 2, 4 }, { 5, 4, 3, 2, 1, 0 },
	};
	struct sq *sq = sq_open(test, NULL);
	int round, i, k, seq[6];
	const u8 *by, *order;

	sq_srq(sq, 6);
	sq_ep(sq, 0);
	sq_ep(sq, 1);
	for (round = 0; round < 9; round++) {
		by = who[round / 3];
		order = finish[round % 3];
		sq_post(sq, 0, 6);
		for (i = 0; i < 6; i++)
			seq[i] = fake_ib_srq_take(sq->eps[by[i]].qp);
		for (i = 0; i < 6; i++) {
			k = order[i];
			KUNIT_EXPECT_EQ(test, fake_ib_srq_finish(sq->eps[by[k]].qp, seq[k],
								 IB_WC_SUCCESS, k, false), 0);
		}
		for (i = 0; i < 6; i++)
			sq_got(sq, by[order[i]], order[i], order[i]);
		KD_EXPECT_EMPTY(test, sq->env.recv);
		sq_expect_counts(sq, 0, 0, "all finished");
	}
}

/* Which completions notify: by the attribute of the EP and the flag of the Send. */
static void sq_notify_test(struct kunit *test)
{
	static const struct {
		int attr;
		bool solicited, failed;
		int upcalls;
	} rows[] = {
		{ DAT_COMPLETION_DEFAULT_FLAG, false, false, 1 },
		{ DAT_COMPLETION_DEFAULT_FLAG, true, false, 1 },
		{ DAT_COMPLETION_UNSIGNALLED_FLAG, false, false, 1 },
		{ DAT_COMPLETION_UNSIGNALLED_FLAG, true, false, 1 },
		{ DAT_COMPLETION_SOLICITED_WAIT_FLAG, false, false, 0 },
		{ DAT_COMPLETION_SOLICITED_WAIT_FLAG, true, false, 1 },
		{ DAT_COMPLETION_SOLICITED_WAIT_FLAG, false, true, 1 },
	};
	struct sq *sq = sq_open(test, NULL);
	struct kd_upcalls *up = kd_upcalls_on(&sq->env, &sq->env.recv, DAT_EVD_DTO_FLAG);
	DAT_EP_ATTR attr;
	int i, seq;

	sq_srq(sq, 8);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		kd_attr(&attr);
		attr.recv_completion_flags = rows[i].attr;
		sq_ep_on(sq, 0, sq->env.recv, &attr);
		kd_connect(&sq->env);
		kd_settle(sq->env.recv);	/* the CQ is armed */
		up->n = 0;
		sq_post(sq, 3, 1);
		seq = fake_ib_srq_take(sq->env.qp);
		fake_ib_srq_finish(sq->env.qp, seq, rows[i].failed ? IB_WC_LOC_LEN_ERR :
				   IB_WC_SUCCESS, 1, rows[i].solicited);
		KUNIT_EXPECT_EQ_MSG(test, kd_upcalls_wait(up, rows[i].upcalls), rows[i].upcalls,
				    "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, kd_drain(sq->env.recv), !rows[i].upcalls, "row %d", i);
		if (rows[i].failed)
			KD_EXPECT_END(&sq->env, BROKEN);
		sq_ep_free(sq, 0);
		kd_settle(sq->env.recv);
	}
}

/* Every failure: of one EP, whose connection breaks; the other goes on. */
static void sq_failure_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	int status, seq;

	sq_srq(sq, 8);
	sq_ep(sq, 1);
	for (status = IB_WC_SUCCESS + 1; status <= IB_WC_GENERAL_ERR; status++) {
		sq_ep(sq, 0);
		sq_post(sq, 0, 4);
		sq_recv(sq, 0, 1, 2);
		seq = fake_ib_srq_take(sq->env.qp);
		KUNIT_EXPECT_EQ(test, fake_ib_srq_finish(sq->env.qp, seq, status, 0, false), 0);
		sq_got(sq, 0, 0, 2);
		sq_expect(sq, sq->env.recv, 0, 1, kdapl_wc_recv_status(status), 0);
		KD_EXPECT_END(&sq->env, BROKEN);
		KD_EXPECT_EMPTY(test, sq->env.recv);
		/* what is still on the SRQ is untouched and serves the other */
		sq_expect_counts(sq, 2, 2, "after a failure");
		KUNIT_EXPECT_EQ(test, (int)READ_ONCE(sq->eps[1].kep->state),
				(int)DAT_EP_STATE_CONNECTED);
		for (seq = 2; seq < 4; seq++) {
			sq_recv(sq, 1, 1, seq);
			sq_got(sq, 1, seq, seq);
		}
		sq_ep_free(sq, 0);
	}
}

/* Messages before ESTABLISHED wait, in order, and are counted as held. */
static void sq_early_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	DAT_COUNT n, range;
	int i;

	sq_srq(sq, 8);
	sq_post(sq, 0, 8);
	sq_ep_on(sq, 0, sq->env.recv, NULL);
	for (i = 0; i < 3; i++)
		sq_recv(sq, 0, 1, i);
	KD_EXPECT_EMPTY(test, sq->env.recv);
	sq_expect_counts(sq, 5, 8, "early");
	KD_EXPECT_OK(test, dat_ep_recv_query(sq->env.ep, &n, &range));
	KUNIT_EXPECT_EQ(test, (int)n, 3);
	KUNIT_EXPECT_EQ(test, (int)range, 3);
	kd_connect(&sq->env);
	sq_recv(sq, 0, 1, 3);
	for (i = 0; i < 4; i++)
		sq_got(sq, 0, i, i);
	KD_EXPECT_EMPTY(test, sq->env.recv);
	sq_expect_counts(sq, 4, 4, "established");
	/* and when nothing comes of the connection, they are not lost */
	sq_ep_on(sq, 1, sq->env.recv, NULL);
	sq_recv(sq, 1, 2, 1);
	sq_expect_counts(sq, 2, 4, "early, of another");
	sq_ep_free(sq, 1);
	sq_settle();
	KD_EXPECT_EMPTY(test, sq->env.recv);
	sq_expect_counts(sq, 2, 2, "freed before it was connected");
}

#define SQ_MANY	66

/* Nobody dequeues: nothing is lost, however short the EVD, however many EPs. */
static void sq_many_test(struct kunit *test)
{
	const struct fake_ib_caps caps = { .max_qp = 2 * SQ_MANY, .max_cqe = 1 << 16 };
	struct sq *sq = sq_open(test, &caps);
	struct kd_env *env = &sq->env;
	DAT_EVD_HANDLE evd, usual = env->recv;
	DAT_EP_HANDLE eps[SQ_MANY];
	struct ib_qp *qps[SQ_MANY];
	DAT_EVENT event;
	int i, n;

	evd = kd_evd(env, 1, DAT_EVD_DTO_FLAG);
	sq_srq(sq, 3 * SQ_MANY);
	env->recv = evd;
	for (i = 0; i < SQ_MANY; i++) {
		KD_ASSERT_OK(test, sq_try_ep(sq, NULL, &env->ep));
		env->qp = fake_ib_newest_qp(env->dev);
		env->kep = kdapl_obj_get(env->ep, DAT_HANDLE_TYPE_EP);
		eps[i] = env->ep;
		qps[i] = env->qp;
		kd_connect(env);
		kdapl_obj_put(&env->kep->obj);
		env->kep = NULL;
		env->ep = NULL;
	}
	env->recv = usual;
	sq_post(sq, 0, 3 * SQ_MANY);
	for (i = 0; i < 3 * SQ_MANY; i++) {
		KUNIT_EXPECT_EQ(test, fake_ib_recv(qps[i % SQ_MANY], 1, false), 0);
		if (i % 7 == 0)		/* polling ahead moves them around */
			sq_expect_counts(sq, 3 * SQ_MANY - 1 - i, 3 * SQ_MANY, "arriving");
	}
	for (n = 0; kd_next(evd, &event); n++) {
		KUNIT_EXPECT_EQ(test, kd_event_id(&event), (u64)n);
		KUNIT_EXPECT_PTR_EQ(test, event.event_data.dto_completion_event_data.ep_handle,
				    eps[n % SQ_MANY]);
	}
	KUNIT_EXPECT_EQ(test, n, 3 * SQ_MANY);
	KD_EXPECT_EMPTY(test, env->async);
	for (i = 0; i < SQ_MANY; i++)
		KD_EXPECT_OK(test, dat_ep_free(eps[i]));
	KD_EXPECT_OK(test, dat_evd_free(evd));
}

/* No recv EVD: messages vanish and their buffers come back. */
static void sq_null_evd_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	int i;

	sq_srq(sq, 4);
	sq_ep_on(sq, 0, DAT_HANDLE_NULL, NULL);
	kd_connect(&sq->env);
	for (i = 0; i < 40; i++) {
		KD_WAIT(test, sq_try_post(sq, i) == DAT_SUCCESS);
		sq_recv(sq, 0, 1, 1);
	}
	KD_EXPECT_EMPTY(test, sq->env.recv);
	sq_ep_free(sq, 0);
	sq_expect_counts(sq, 0, 0, "vanished");
}

/* What an EP of an SRQ is made of, beside handles that are none. */
static void sq_ep_args_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	struct kd_env *env = &sq->env;
	DAT_EVD_HANDLE recv = env->recv, req = env->req, conn = env->conn;
	DAT_SRQ_ATTR sattr = { .max_recv_dtos = 4, .max_recv_iov = 1 };
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia = kd_ia_more(env, &async);
	DAT_EP_ATTR attrs[7];
	DAT_SRQ_HANDLE foreign;
	DAT_EP_PARAM param;
	DAT_EP_HANDLE ep;
	DAT_PZ_HANDLE pz;
	int i;

	sq_srq(sq, 4);
	KD_ASSERT_OK(test, dat_pz_create(ia, &pz));
	KD_ASSERT_OK(test, dat_srq_create(ia, pz, &sattr, &foreign));
	for (i = 0; i < ARRAY_SIZE(attrs); i++)
		kd_attr(&attrs[i]);
#define SQ_EP(pz, recv, req, conn, srq)	\
	dat_ep_create_with_srq(env->ia, pz, recv, req, conn, srq, &attrs[6], &ep)
	/* of another IA, or without the flag */
	KD_BAD_HANDLE(test, SQ_EP(pz, recv, req, conn, sq->srq), _PZ);
	KD_BAD_HANDLE(test, SQ_EP(env->pz, conn, req, conn, sq->srq), _EVD_RECV);
	KD_BAD_HANDLE(test, SQ_EP(env->pz, recv, conn, conn, sq->srq), _EVD_REQUEST);
	KD_BAD_HANDLE(test, SQ_EP(env->pz, recv, req, recv, sq->srq), _EVD_CONN);
	KD_BAD_HANDLE(test, SQ_EP(env->pz, recv, req, conn, foreign), _SRQ);
	KD_BAD_ARG(test, dat_ep_create_with_srq(env->ia, env->pz, recv, req, conn, sq->srq,
						&attrs[6], NULL), 8);
	KD_BAD_ARG(test, dat_ep_create_with_srq(env->ia, env->pz, recv, req, conn, sq->srq, NULL,
						&ep), 7);
	attrs[0].request_completion_flags = DAT_COMPLETION_SUPPRESS_FLAG;
	attrs[1].recv_completion_flags = DAT_COMPLETION_SUPPRESS_FLAG;
	attrs[2].recv_completion_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG;
	attrs[3].recv_completion_flags = DAT_COMPLETION_BARRIER_FENCE_FLAG;
	attrs[4].max_request_iov = -1;
	attrs[5].srq_soft_hw = -2;
	for (i = 0; i < 6; i++)
		KUNIT_EXPECT_EQ_MSG(test, (u32)sq_try_ep(sq, &attrs[i], &ep),
				    (u32)DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG7),
				    "attributes %d", i);
	/* none of that used it */
	sq_srq_free(sq);
	/* segments per Receive are the SRQ's affair; the query tells the SRQ */
	sq_srq(sq, 4);
	attrs[6].max_recv_iov = -1;
	sq_ep_on(sq, 1, recv, &attrs[6]);
	attrs[6].max_recv_iov = 1000000;
	sq_ep_on(sq, 0, recv, &attrs[6]);
	KD_EXPECT_OK(test, dat_ep_query(env->ep, DAT_EP_FIELD_ALL, &param));
	KUNIT_EXPECT_PTR_EQ(test, param.srq_handle, sq->srq);
	KUNIT_EXPECT_PTR_EQ(test, param.pz_handle, env->pz);
	KD_EXPECT_OK(test, dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

/* Receives of the EP's own are refused in every state, with nothing done. */
static void sq_no_recv_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(&sq->env, KD_RW, 0, 8);
	int round;

	sq_srq(sq, 4);
	sq_ep_on(sq, 0, sq->env.recv, NULL);
	for (round = 0; round < 3; round++) {
		KD_EXPECT_TYPE(test, kd_post(sq->env.ep, KD_RECV, 1, &iov, 0, NULL, 0),
			       DAT_INVALID_STATE);
		KD_EXPECT_TYPE(test, kd_post(sq->env.ep, KD_RECV, 0, NULL, 0, NULL, 0),
			       DAT_INVALID_STATE);
		KUNIT_EXPECT_EQ(test, fake_ib_count(sq->env.dev, FAKE_IB_POST_RECV), 0U);
		if (!round)
			kd_connect(&sq->env);
		else if (round == 1)
			kd_end(&sq->env, DAT_CONNECTION_EVENT_DISCONNECTED);
	}
	KD_EXPECT_EMPTY(test, sq->env.recv);
	sq_expect_counts(sq, 0, 0, "nothing posted");
}

/* More EPs than an SRQ takes. */
static void sq_limit_test(struct kunit *test)
{
	static const struct fake_ib_caps caps = { .max_qp = 12 };
	struct sq *sq = sq_open(test, &caps);
	DAT_RETURN ret = DAT_SUCCESS;
	DAT_EP_HANDLE eps[16];
	DAT_IA_ATTR max;
	int n;

	KD_ASSERT_OK(test, dat_ia_query(sq->env.ia, NULL, DAT_IA_FIELD_ALL, &max, 0, NULL));
	KUNIT_EXPECT_GT(test, (int)max.max_ep_per_srq, 0);
	KUNIT_EXPECT_LE(test, (int)max.max_ep_per_srq, 12);
	sq_srq(sq, 4);
	for (n = 0; n < ARRAY_SIZE(eps); n++) {
		ret = sq_try_ep(sq, NULL, &eps[n]);
		if (ret != DAT_SUCCESS)
			break;
	}
	KD_EXPECT_TYPE(test, ret, DAT_INSUFFICIENT_RESOURCES);
	KUNIT_EXPECT_LE(test, n, (int)max.max_ep_per_srq);
	while (n--)
		KD_EXPECT_OK(test, dat_ep_free(eps[n]));
}

static struct kunit_case srq_cases[] = {
	KD_CASE(sq_create_args_test,
		"SRQ-CR-01,SRQ-CR-02,SRQ-CR-04,SIL-36,GEN-07,GEN-09,GEN-10: create"),
	KD_CASE(sq_unsupported_test, "SRQ-CR-04: a device without SRQs"),
	KD_CASE(sq_user_only_test, "SRQ-CR-04: a driver without SRQs for the kernel"),
	KD_CASE(sq_short_test, "SRQ-CR-01: the largest SRQ of a driver that makes none as large"),
	KD_CASE(sq_query_args_test, "GEN-08,SRQ-QRY-03: arguments of query, each bit"),
	KD_CASE(sq_counts_test,
		"SRQ-QRY-01..03,SRQ-POST-16,SIL-37: the counts, and room, step by step"),
	KD_CASE(sq_free_test, "SRQ-FREE-01,PZ-02,GEN-11,EP-CREATE-17: free and its refusals"),
	KD_CASE(sq_post_refused_test,
		"SRQ-POST-16,SRQ-CR-03,GEN-07,GEN-10,SIL-42: what posting refuses"),
	KD_CASE(sq_native_refusal_test, "SRQ-POST-16,GEN-07: the device refuses a post"),
	KD_CASE(sq_completion_test,
		"SRQ-POST-01,SRQ-POST-04,SRQ-POST-06,SRQ-POST-12,SRQ-CR-05: whose message"),
	KD_CASE(sq_order_test, "SRQ-POST-13: order per connection"),
	KD_CASE(sq_notify_test,
		"SRQ-POST-05,SRQ-POST-07..09,EP-CREATE-15,FLAG-20,FLAG-07: which of them notify"),
	KD_CASE(sq_failure_test, "SRQ-POST-12,SRQ-POST-14,SRQ-POST-17,SRQ-POST-19: failures"),
	KD_CASE(sq_early_test, "SRQ-POST-18,FLUSH-07,EP-RQ-01: messages before ESTABLISHED"),
	KD_CASE(sq_many_test, "SRQ-POST-06,SRQ-CR-05,STAT-05: many EPs, an EVD nobody dequeues"),
	KD_CASE(sq_null_evd_test, "SRQ-POST-06,EP-CREATE-03: EPs without recv EVD"),
	KD_CASE(sq_ep_args_test,
		"EP-CREATE-13,EP-CREATE-04,EP-CREATE-05,FLAG-12,FLAG-14,SIL-36: arguments of EPs"),
	KD_CASE(sq_no_recv_test, "RECV-17,EP-CREATE-13: no Receives on the EP itself"),
	KD_CASE(sq_limit_test, "SRQ-CR-07: more EPs than there can be"),
	{}
};

KD_SUITE("kdapl-srq", srq_cases, sq_init, sq_exit);
