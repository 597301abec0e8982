// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Shared Receive Queues: what create, post and query do, whose completion it is,
 * and the EPs that use them.
 */
#include <linux/limits.h>
#include <linux/log2.h>

#include "kd_srq.h"
#include "kd_upcall.h"

static void sq_create_args_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	struct kd_env *env = &sq->env;
	const DAT_SRQ_ATTR good = { .max_recv_dtos = 8, .max_recv_iov = 2 };
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia = kd_ia_more(env, &async);
	DAT_PZ_HANDLE foreign, pz;
	DAT_SRQ_ATTR attr = good;
	DAT_SRQ_HANDLE srq;
	DAT_IA_ATTR limits;
	unsigned int verbs;
	int i;

	KD_ASSERT_OK(test, dat_ia_query(env->ia, NULL, DAT_IA_FIELD_ALL, &limits, 0, NULL));
	KUNIT_EXPECT_GT(test, (int)limits.max_srqs, 0);
	KUNIT_EXPECT_GT(test, (int)limits.max_ep_per_srq, 0);
	KUNIT_EXPECT_GT(test, (int)limits.max_recv_per_srq, 0);
	KD_ASSERT_OK(test, dat_pz_create(ia, &foreign));
	KD_ASSERT_OK(test, dat_pz_create(env->ia, &pz));
	swap(env->pz, pz);
	verbs = fake_ib_count(env->dev, FAKE_IB_ANY);
	/* handles are looked at first */
	KD_EXPECT_RET(test, dat_srq_create(env->ia, foreign, NULL, NULL), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_PZ);
	KD_EXPECT_RET(test, dat_srq_create(env->ia, env->pz, NULL, &srq), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
	KD_EXPECT_RET(test, dat_srq_create(env->ia, env->pz, &attr, NULL), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG4);
	{
		const DAT_COUNT bad[][3] = {	/* buffers, segments, low watermark */
			{ 0, 2, 0 }, { -1, 2, 0 }, { INT_MIN, 2, 0 }, { INT_MAX, 2, 0 },
			{ limits.max_recv_per_srq + 1, 2, 0 },
			{ 8, 0, 0 }, { 8, -1, 0 }, { 8, INT_MIN, 0 }, { 8, INT_MAX, 0 },
			{ 8, limits.max_iov_segments_per_dto + 1, 0 },
			{ 8, 2, -1 }, { 8, 2, INT_MIN }, { 8, 2, INT_MAX }, { 8, 2, 9 },
		};

		for (i = 0; i < ARRAY_SIZE(bad); i++)
			KUNIT_EXPECT_EQ_MSG(test, (u32)sq_create(sq, bad[i][0], bad[i][1],
								 bad[i][2], &srq),
					    (u32)DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3),
					    "row %d", i);
	}
	KUNIT_EXPECT_EQ(test, fake_ib_count(env->dev, FAKE_IB_ANY), verbs);
	KUNIT_EXPECT_EQ(test, memcmp(&attr, &good, sizeof(attr)), 0);
	/* the limits themselves are legal */
	KD_EXPECT_OK(test, sq_create(sq, limits.max_recv_per_srq, limits.max_iov_segments_per_dto,
				     0, &srq));
	KD_EXPECT_OK(test, dat_srq_free(srq));
	/* a refused create holds nothing */
	swap(env->pz, pz);
	KD_EXPECT_OK(test, dat_pz_free(pz));
	KD_EXPECT_OK(test, dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

static void sq_unsupported_test(struct kunit *test)
{
	static const struct fake_ib_caps caps = { .no_srq = true };
	struct sq *sq = sq_open(test, &caps);
	DAT_PROVIDER_ATTR provider;
	DAT_SRQ_HANDLE srq;
	DAT_IA_ATTR ia;

	KD_EXPECT_RET(test, sq_create(sq, 8, 1, 0, &srq), DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	KD_EXPECT_OK(test, dat_ia_query(sq->env.ia, NULL, DAT_IA_FIELD_ALL, &ia,
					DAT_PROVIDER_FIELD_ALL, &provider));
	KUNIT_EXPECT_EQ(test, (int)ia.max_srqs, 0);
	KUNIT_EXPECT_EQ(test, (int)provider.srq_supported, (int)DAT_FALSE);
}

/* What was asked for is there, and a reserve. */
static void sq_create_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	unsigned int wr, sge, created;
	DAT_SRQ_PARAM param;
	int n, iov;

	for (n = 1; n <= 100; n += n < 20 ? 1 : 13) {
		iov = 1 + n % 4;
		created = fake_ib_count(sq->env.dev, FAKE_IB_CREATE_SRQ);
		KD_ASSERT_OK(test, sq_create(sq, n, iov, 0, &sq->srq));
		KUNIT_EXPECT_EQ(test, fake_ib_count(sq->env.dev, FAKE_IB_CREATE_SRQ),
				created + 1);
		sq->ib = fake_ib_newest_srq(sq->env.dev);
		fake_ib_srq_size(sq->ib, &wr, &sge);
		KUNIT_EXPECT_GE(test, wr, (unsigned int)(n + max(n / 4, 16)));
		KUNIT_EXPECT_TRUE(test, is_power_of_2(wr));
		KUNIT_EXPECT_GE(test, sge, (unsigned int)iov);
		sq_counts(sq, &param);
		KUNIT_EXPECT_PTR_EQ(test, param.ia_handle, sq->env.ia);
		KUNIT_EXPECT_PTR_EQ(test, param.pz_handle, sq->env.pz);
		KUNIT_EXPECT_EQ(test, (int)param.srq_state, (int)DAT_SRQ_STATE_OPERATIONAL);
		KUNIT_EXPECT_EQ(test, (int)param.max_recv_dtos, n);
		KUNIT_EXPECT_EQ(test, (int)param.max_recv_iov, iov);
		KUNIT_EXPECT_EQ(test, (int)param.low_watermark, 0);
		KUNIT_EXPECT_EQ(test, (int)param.available_dto_count, 0);
		KUNIT_EXPECT_EQ(test, (int)param.outstanding_dto_count, 0);
		KUNIT_EXPECT_EQ(test, sq_async(sq, NULL, -1), 0);
		sq_srq_free(sq);
	}
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
			KD_EXPECT_RET(test, dat_srq_query(sq->srq, BIT(bit), &param),
				      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
#define SQ_FIELD(bit, member, want)							\
do {											\
	u64 _want = (uintptr_t)(want), _is;						\
											\
	memset(&param, 0xee, sizeof(param));						\
	KD_EXPECT_OK(test, dat_srq_query(sq->srq, DAT_SRQ_FIELD_##bit, &param));	\
	_is = (uintptr_t)param.member;							\
	KUNIT_EXPECT_EQ_MSG(test, _is, _want, #member);					\
} while (0)
	SQ_FIELD(IA_HANDLE, ia_handle, sq->env.ia);
	SQ_FIELD(SRQ_STATE, srq_state, DAT_SRQ_STATE_OPERATIONAL);
	SQ_FIELD(PZ_HANDLE, pz_handle, sq->env.pz);
	SQ_FIELD(MAX_RECV_DTO, max_recv_dtos, 4);
	SQ_FIELD(MAX_RECV_IOV, max_recv_iov, 4);
	SQ_FIELD(LOW_WATERMARK, low_watermark, 2);
	SQ_FIELD(AVAILABLE_DTO_COUNT, available_dto_count, 3);
	SQ_FIELD(OUTSTANDING_DTO_COUNT, outstanding_dto_count, 3);
	KD_EXPECT_OK(test, dat_srq_query(sq->srq, 0, NULL));
	KD_EXPECT_RET(test, dat_srq_query(sq->srq, DAT_SRQ_FIELD_ALL, NULL),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
}

/*
 * Available and outstanding, step by step, for every number of buffers. Full is full until a
 * completion is handed over: a message alone makes no room, the consumer still has its turn.
 */
static void sq_counts_test(struct kunit *test)
{
	static const int sizes[] = { 1, 2, 3, 10, 16, 17 };
	struct sq *sq = sq_open(test, NULL);
	struct ib_qp *qp;
	int s, i, n;

#define SQ_FULL()								\
	KD_EXPECT_RET(test, sq_try_post(sq, 99), DAT_INSUFFICIENT_RESOURCES,	\
		      DAT_RESOURCE_SRQ)
	for (s = 0; s < ARRAY_SIZE(sizes); s++) {
		n = sizes[s];
		sq_srq(sq, n);
		qp = sq_ep(sq, 0);
		sq_post(sq, 0, n);
		for (i = 0; i < 3 * n; i++) {
			sq_expect_counts(sq, n, n, "full");
			SQ_FULL();
			KUNIT_EXPECT_EQ(test, fake_ib_recv(qp, 3, false), 0);
			sq_expect_counts(sq, n - 1, n, "arrived");
			SQ_FULL();
			sq_expect(sq, sq->env.recv, 0, i, DAT_DTO_SUCCESS, 3);
			sq_expect_counts(sq, n - 1, n - 1, "dequeued");
			KD_EXPECT_OK(test, sq_try_post(sq, n + i));
		}
		for (i = 0; i < n; i++) {
			sq_expect_counts(sq, n - i, n, "arriving");
			fake_ib_recv(qp, i, false);
		}
		for (i = 0; i < n; i++) {
			sq_expect_counts(sq, 0, n - i, "dequeuing");
			sq_expect(sq, sq->env.recv, 0, 3 * n + i, DAT_DTO_SUCCESS, i);
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
	DAT_EVENT event;
	int i;

	/* a PZ is in use by its SRQs */
	KD_ASSERT_OK(test, dat_pz_create(sq->env.ia, &pz));
	swap(pz, sq->env.pz);
	sq_srq(sq, 8);
	swap(pz, sq->env.pz);
	KD_EXPECT_RET(test, dat_pz_free(pz), DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE);
	sq_srq_free(sq);
	KD_EXPECT_OK(test, dat_pz_free(pz));

	sq_srq(sq, 8);
	sq_post(sq, 0, 5);
	for (i = 0; i < 3; i++)
		sq_ep_on(sq, i, sq->env.recv, NULL);
	sq_use(sq, 1);
	kd_connect(&sq->env);
	for (i = 0; i < 3; i++) {
		KD_EXPECT_RET(test, dat_srq_free(sq->srq), DAT_INVALID_STATE,
			      DAT_INVALID_STATE_SRQ_IN_USE);
		/* as good as before */
		sq_expect_counts(sq, 5, 5, "still in use");
		sq_ep_free(sq, i);
	}
	/* posted buffers go without a word */
	sq_srq_free(sq);
	KD_EXPECT_EMPTY(test, sq->env.recv);
	KUNIT_EXPECT_FALSE(test, kd_next(sq->env.async, &event));
}

static void sq_refused(struct sq *sq, int num, DAT_LMR_TRIPLET *iov, u32 type, u32 subtype,
		       const char *what)
{
	unsigned int posted = fake_ib_srq_posted(sq->ib);
	unsigned int verbs = fake_ib_count(sq->env.dev, FAKE_IB_ANY);
	DAT_SRQ_PARAM before, after;
	DAT_RETURN ret;

	sq_counts(sq, &before);
	ret = dat_srq_post_recv(sq->srq, num, iov, (DAT_DTO_COOKIE) { .as_64 = 1 });
	KUNIT_EXPECT_EQ_MSG(sq->env.test, (u32)ret, (u32)DAT_ERROR(type, subtype), "%s", what);
	sq_counts(sq, &after);
	KUNIT_EXPECT_EQ(sq->env.test, memcmp(&before, &after, sizeof(before)), 0);
	KUNIT_EXPECT_EQ(sq->env.test, fake_ib_srq_posted(sq->ib), posted);
	KUNIT_EXPECT_EQ(sq->env.test, fake_ib_count(sq->env.dev, FAKE_IB_ANY), verbs);
}

/* Posts that are refused: one bad segment among four, wherever it is. */
static void sq_post_refused_test(struct kunit *test)
{
	static const int counts[] = { -1, -2, INT_MIN, INT_MAX, 5, 6, 65536 };
	struct sq *sq = sq_open(test, NULL);
	struct kd_env *env = &sq->env;
	const DAT_LMR_TRIPLET good = kd_seg(env, KD_RW, 0, 8);
	const struct {
		const char *what;
		DAT_LMR_TRIPLET seg;
		u32 type, subtype;
	} bad[] = {
		{ "key", { good.virtual_address, 8, good.lmr_context ^ 0x100 },
		  DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE },
		{ "no key", { good.virtual_address, 8, 0 },
		  DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE },
		{ "read only", kd_seg(env, KD_RO, 0, 8),
		  DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE },
		{ "remote", kd_seg(env, KD_REMOTE, 0, 8),
		  DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE },
		{ "PZ", kd_seg(env, KD_FOREIGN, 0, 8),
		  DAT_PROTECTION_VIOLATION, DAT_PROTECTION_WRITE },
		{ "too long", kd_seg(env, KD_RW, 0, KD_MEM_SIZE + 1),
		  DAT_INVALID_PARAMETER, DAT_INVALID_ARG3 },
		{ "longest", kd_seg(env, KD_RW, 16, U32_MAX),
		  DAT_INVALID_PARAMETER, DAT_INVALID_ARG3 },
		{ "behind", kd_seg(env, KD_RW, KD_MEM_SIZE, 1),
		  DAT_INVALID_PARAMETER, DAT_INVALID_ARG3 },
		{ "in front", { good.virtual_address - 1, 8, good.lmr_context },
		  DAT_INVALID_PARAMETER, DAT_INVALID_ARG3 },
		{ "wraps", { ~0ULL - 3, 8, good.lmr_context },
		  DAT_INVALID_PARAMETER, DAT_INVALID_ARG3 },
	};
	DAT_LMR_TRIPLET iov[8];
	int i, k;

	sq_srq(sq, 4);
	for (i = 0; i < ARRAY_SIZE(iov); i++)
		iov[i] = good;
	for (i = 0; i < ARRAY_SIZE(counts); i++)
		sq_refused(sq, counts[i], iov, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, "count");
	for (i = 1; i <= 4; i++)
		sq_refused(sq, i, NULL, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3, "no list");
	for (k = 0; k < 4; k++) {
		for (i = 0; i < ARRAY_SIZE(bad); i++) {
			iov[k] = bad[i].seg;
			sq_refused(sq, 4, iov, bad[i].type, bad[i].subtype, bad[i].what);
		}
		iov[k] = good;
	}
	/* full, and segments before resources */
	sq_post(sq, 0, 4);
	for (i = 0; i < 5; i++)
		sq_refused(sq, 1, iov, DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ, "full");
	iov[0].lmr_context ^= 0x100;
	sq_refused(sq, 1, iov, DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE, "key before room");
}

/* The device refuses although there is room: told so, and nothing is lost. */
static void sq_native_refusal_test(struct kunit *test)
{
	static const int errs[] = { -ENOMEM, -EINVAL, -ENOTCONN };
	struct sq *sq = sq_open(test, NULL);
	struct ib_qp *qp;
	int i, k;

	sq_srq(sq, 4);
	qp = sq_ep(sq, 0);
	sq_post(sq, 0, 2);
	for (i = 0; i < 100; i++) {
		fake_ib_fail(sq->env.dev, FAKE_IB_POST_SRQ_RECV, 1, errs[i % 3]);
		KD_EXPECT_RET(test, sq_try_post(sq, 50), DAT_INSUFFICIENT_RESOURCES,
			      DAT_RESOURCE_SRQ);
		sq_expect_counts(sq, 2, 2, "refused by the device");
	}
	sq_post(sq, 2, 2);
	KD_EXPECT_RET(test, sq_try_post(sq, 50), DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ);
	for (k = 0; k < 4; k++) {
		fake_ib_recv(qp, 1, false);
		sq_expect(sq, sq->env.recv, 0, k, DAT_DTO_SUCCESS, 1);
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
	struct ib_qp *qp[2];
	DAT_EVENT event;
	int i, who;

	KD_ASSERT_OK(test, dat_evd_kcreate(sq->env.ia, 8, DAT_UPCALL_DISABLE, NULL,
					   DAT_EVD_DTO_FLAG, &evd[1]));
	sq_srq(sq, 8);
	for (i = 0; i < 2; i++) {
		sq_ep_on(sq, i, evd[i], NULL);
		kd_connect(&sq->env);
		qp[i] = sq->eps[i].qp;
	}
	for (i = 0; i < ARRAY_SIZE(cookies); i++)
		KD_EXPECT_OK(test, sq_try_post(sq, cookies[i]));
	for (i = 0; i < ARRAY_SIZE(cookies); i++) {
		who = (i ^ i >> 1) & 1;
		KUNIT_EXPECT_EQ(test, fake_ib_recv(qp[who], 8 * i, false), 0);
		sq_expect(sq, evd[who], who, cookies[i], DAT_DTO_SUCCESS, 8 * i);
		KD_EXPECT_EMPTY(test, evd[0]);
		KD_EXPECT_EMPTY(test, evd[1]);
	}
	/* as a Receive of the EP itself: an invalidated key is told */
	sq_post(sq, 5, 2);
	KUNIT_EXPECT_EQ(test, fake_ib_recv_inv(qp[1], 12, 0xabcdef01), 0);
	KUNIT_EXPECT_EQ(test, fake_ib_recv(qp[1], 13, false), 0);
	KUNIT_ASSERT_TRUE(test, kd_next(evd[1], &event));
	KUNIT_EXPECT_EQ(test, (u32)event.event_data.dto_completion_event_data.operation,
			(u32)DAT_DTO_RECEIVE_WITH_INVALIDATE);
	KUNIT_EXPECT_EQ(test, (u32)event.event_data.dto_completion_event_data.rmr_context,
			0xabcdef01U);
	KUNIT_EXPECT_EQ(test, (u32)event.event_data.dto_completion_event_data.transfered_length,
			12U);
	sq_expect(sq, evd[1], 1, 6, DAT_DTO_SUCCESS, 13);
	/* no segments, no data */
	KD_EXPECT_OK(test, dat_srq_post_recv(sq->srq, 0, NULL, (DAT_DTO_COOKIE) { .as_64 = 9 }));
	KUNIT_EXPECT_EQ(test, fake_ib_recv(qp[0], 0, false), 0);
	sq_expect(sq, evd[0], 0, 9, DAT_DTO_SUCCESS, 0);
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
	struct ib_qp *qp[2];
	int w, f, i, seq[6];

	sq_srq(sq, 6);
	qp[0] = sq_ep(sq, 0);
	qp[1] = sq_ep(sq, 1);
	for (w = 0; w < ARRAY_SIZE(who); w++) {
		for (f = 0; f < ARRAY_SIZE(finish); f++) {
			sq_post(sq, 0, 6);
			for (i = 0; i < 6; i++)
				seq[i] = fake_ib_srq_take(qp[who[w][i]]);
			for (i = 0; i < 6; i++)
				KUNIT_EXPECT_EQ(test,
						fake_ib_srq_finish(qp[who[w][finish[f][i]]],
								   seq[finish[f][i]],
								   IB_WC_SUCCESS, finish[f][i],
								   false), 0);
			for (i = 0; i < 6; i++)
				sq_expect(sq, sq->env.recv, who[w][finish[f][i]], finish[f][i],
					  DAT_DTO_SUCCESS, finish[f][i]);
			KD_EXPECT_EMPTY(test, sq->env.recv);
			sq_expect_counts(sq, 0, 0, "all finished");
		}
	}
}

/* Which successful completions notify. */
static void sq_notify_test(struct kunit *test)
{
	static const int attrs[] = {
		DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_UNSIGNALLED_FLAG,
		DAT_COMPLETION_SOLICITED_WAIT_FLAG,
	};
	struct sq *sq = sq_open(test, NULL);
	struct kd_upcalls *up = kd_upcalls_on(&sq->env, &sq->env.recv, DAT_EVD_DTO_FLAG);
	int i, send, want;
	DAT_EP_ATTR attr;
	DAT_EVENT event;

	sq_srq(sq, 8);
	for (i = 0; i < ARRAY_SIZE(attrs); i++) {
		for (send = 0; send < 2; send++) {
			kd_attr(&attr);
			attr.recv_completion_flags = attrs[i];
			sq_ep_on(sq, 0, sq->env.recv, &attr);
			kd_connect(&sq->env);
			kd_settle(sq->env.recv);	/* the CQ is armed */
			up->n = 0;
			sq_post(sq, 3, 1);
			fake_ib_recv(sq->env.qp, 1, send);
			want = attrs[i] != DAT_COMPLETION_SOLICITED_WAIT_FLAG || send;
			KUNIT_EXPECT_EQ_MSG(test, kd_upcalls_wait(up, want), want,
					    "attribute %#x, solicited %d", attrs[i], send);
			if (!want)
				KUNIT_EXPECT_TRUE(test, kd_next(sq->env.recv, &event));
			sq_ep_free(sq, 0);
			kd_pause();
		}
	}
	/* a failure notifies in any case */
	kd_attr(&attr);
	attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	sq_ep_on(sq, 0, sq->env.recv, &attr);
	kd_connect(&sq->env);
	kd_settle(sq->env.recv);
	up->n = 0;
	sq_post(sq, 3, 1);
	i = fake_ib_srq_take(sq->env.qp);
	fake_ib_srq_finish(sq->env.qp, i, IB_WC_LOC_LEN_ERR, 0, false);
	KUNIT_EXPECT_EQ(test, kd_upcalls_wait(up, 1), 1);
	KUNIT_EXPECT_EQ(test, kd_expect_end(&sq->env), (u32)DAT_CONNECTION_EVENT_BROKEN);
	sq_ep_free(sq, 0);
}

/* Every failure: of one EP, whose connection breaks; the other goes on. */
static void sq_failure_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	struct ib_qp *good;
	int status, seq;

	sq_srq(sq, 8);
	good = sq_ep(sq, 1);
	for (status = IB_WC_SUCCESS + 1; status <= IB_WC_GENERAL_ERR; status++) {
		sq_ep(sq, 0);
		sq_post(sq, 0, 4);
		KUNIT_EXPECT_EQ(test, fake_ib_recv(sq->env.qp, 2, false), 0);
		seq = fake_ib_srq_take(sq->env.qp);
		KUNIT_EXPECT_EQ(test, fake_ib_srq_finish(sq->env.qp, seq, status, 0, false), 0);
		sq_expect(sq, sq->env.recv, 0, 0, DAT_DTO_SUCCESS, 2);
		sq_expect(sq, sq->env.recv, 0, 1, kdapl_wc_recv_status(status), 0);
		KUNIT_EXPECT_EQ(test, kd_expect_end(&sq->env), (u32)DAT_CONNECTION_EVENT_BROKEN);
		KD_EXPECT_EMPTY(test, sq->env.recv);
		/* what is still on the SRQ is untouched and serves the other */
		sq_expect_counts(sq, 2, 2, "after a failure");
		KUNIT_EXPECT_EQ(test, (int)READ_ONCE(sq->eps[1].kep->state),
				(int)DAT_EP_STATE_CONNECTED);
		for (seq = 2; seq < 4; seq++) {
			KUNIT_EXPECT_EQ(test, fake_ib_recv(good, seq, false), 0);
			sq_expect(sq, sq->env.recv, 1, seq, DAT_DTO_SUCCESS, seq);
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
		fake_ib_recv(sq->env.qp, i, false);
	KD_EXPECT_EMPTY(test, sq->env.recv);
	sq_expect_counts(sq, 5, 8, "early");
	KD_EXPECT_OK(test, dat_ep_recv_query(sq->env.ep, &n, &range));
	KUNIT_EXPECT_EQ(test, (int)n, 3);
	KUNIT_EXPECT_EQ(test, (int)range, 3);
	kd_connect(&sq->env);
	fake_ib_recv(sq->env.qp, 3, false);
	for (i = 0; i < 4; i++)
		sq_expect(sq, sq->env.recv, 0, i, DAT_DTO_SUCCESS, i);
	KD_EXPECT_EMPTY(test, sq->env.recv);
	sq_expect_counts(sq, 4, 4, "established");
	/* and when nothing comes of the connection, they are not lost */
	sq_ep_on(sq, 1, sq->env.recv, NULL);
	for (i = 0; i < 2; i++)
		fake_ib_recv(sq->env.qp, i, false);
	sq_expect_counts(sq, 2, 4, "early, of another");
	sq_ep_free(sq, 1);
	sq_settle();
	KD_EXPECT_EMPTY(test, sq->env.recv);
	sq_expect_counts(sq, 2, 2, "freed before it was connected");
}

/* Nobody dequeues: nothing is lost, however short the EVD, however many EPs. */
static void sq_no_overflow_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	DAT_EVD_HANDLE evd;
	DAT_EVENT event;
	int i, n;

	KD_ASSERT_OK(test, dat_evd_kcreate(sq->env.ia, 1, DAT_UPCALL_DISABLE, NULL,
					   DAT_EVD_DTO_FLAG, &evd));
	sq_srq(sq, 200);
	for (i = 0; i < SQ_EPS; i++) {
		sq_ep_on(sq, i, evd, NULL);
		kd_connect(&sq->env);
	}
	sq_post(sq, 0, 200);
	for (i = 0; i < 200; i++) {
		KUNIT_EXPECT_EQ(test, fake_ib_recv(sq->eps[i % SQ_EPS].qp, 1, false), 0);
		if (i % 7 == 0)		/* polling ahead moves them around */
			sq_expect_counts(sq, 199 - i, 200, "arriving");
	}
	for (n = 0; kd_next(evd, &event); n++)
		KUNIT_EXPECT_EQ(test, event.event_data.dto_completion_event_data.user_cookie.as_64,
				(u64)n);
	KUNIT_EXPECT_EQ(test, n, 200);
	KUNIT_EXPECT_FALSE(test, kd_next(sq->env.async, &event));
	for (i = 0; i < SQ_EPS; i++)
		sq_ep_free(sq, i);
	KD_EXPECT_OK(test, dat_evd_free(evd));
}

/* Two SRQs and an EP without any, all on one EVD. */
static void sq_two_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	DAT_SRQ_HANDLE srq[2];
	struct ib_qp *qp[2];
	int i, k;

	for (i = 0; i < 2; i++) {
		sq_srq(sq, 4);
		srq[i] = sq->srq;
		qp[i] = sq_ep(sq, i);
		sq_post(sq, 10 * i, 4);
	}
	for (k = 0; k < 4; k++)
		for (i = 0; i < 2; i++)
			KUNIT_EXPECT_EQ(test, fake_ib_recv(qp[i], k, false), 0);
	/* each is full, whatever the other does */
	for (i = 0; i < 2; i++) {
		sq->srq = srq[i];
		KD_EXPECT_RET(test, sq_try_post(sq, 9), DAT_INSUFFICIENT_RESOURCES,
			      DAT_RESOURCE_SRQ);
	}
	for (k = 0; k < 4; k++)
		for (i = 0; i < 2; i++)
			sq_expect(sq, sq->env.recv, i, 10 * i + k, DAT_DTO_SUCCESS, k);
	for (i = 0; i < 2; i++) {
		sq->srq = srq[i];
		sq_expect_counts(sq, 0, 0, "both empty");
	}
	sq_ep_free(sq, 0);
	KD_EXPECT_OK(test, dat_srq_free(srq[0]));
	KD_EXPECT_RET(test, dat_srq_free(srq[1]), DAT_INVALID_STATE, DAT_INVALID_STATE_SRQ_IN_USE);
}

/* No recv EVD: messages vanish and their buffers come back. */
static void sq_null_evd_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	int i, k;

	sq_srq(sq, 4);
	sq_ep_on(sq, 0, DAT_HANDLE_NULL, NULL);
	kd_connect(&sq->env);
	for (i = 0; i < 40; i++) {
		for (k = 0; k < 5000 && sq_try_post(sq, i) != DAT_SUCCESS; k++)
			kd_pause();
		KUNIT_ASSERT_LT(test, k, 5000);
		KUNIT_EXPECT_EQ(test, fake_ib_recv(sq->env.qp, 1, false), 0);
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
	DAT_SRQ_ATTR sattr = { .max_recv_dtos = 4, .max_recv_iov = 1 };
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia = kd_ia_more(env, &async);
	DAT_SRQ_HANDLE foreign;
	DAT_EP_PARAM param;
	DAT_EP_HANDLE ep;
	DAT_PZ_HANDLE pz;
	int i;

	sq_srq(sq, 4);
	KD_ASSERT_OK(test, dat_pz_create(ia, &pz));
	KD_ASSERT_OK(test, dat_srq_create(ia, pz, &sattr, &foreign));
	{
		DAT_EVD_HANDLE recv = env->recv, req = env->req, conn = env->conn;
		const struct {
			DAT_PZ_HANDLE pz;
			DAT_EVD_HANDLE recv, req, conn;
			DAT_SRQ_HANDLE srq;
			DAT_RETURN_SUBTYPE subtype;
		} bad[] = {	/* of another IA, or without the flag */
			{ pz, recv, req, conn, sq->srq, DAT_INVALID_HANDLE_PZ },
			{ env->pz, conn, req, conn, sq->srq, DAT_INVALID_HANDLE_EVD_RECV },
			{ env->pz, recv, conn, conn, sq->srq, DAT_INVALID_HANDLE_EVD_REQUEST },
			{ env->pz, recv, req, recv, sq->srq, DAT_INVALID_HANDLE_EVD_CONN },
			{ env->pz, recv, req, conn, foreign, DAT_INVALID_HANDLE_SRQ },
		};
		DAT_EP_ATTR attrs[7];

		for (i = 0; i < ARRAY_SIZE(attrs); i++)
			kd_attr(&attrs[i]);
		for (i = 0; i < ARRAY_SIZE(bad); i++)
			KD_EXPECT_RET(test, dat_ep_create_with_srq(env->ia, bad[i].pz, bad[i].recv,
								   bad[i].req, bad[i].conn,
								   bad[i].srq, &attrs[0], &ep),
				      DAT_INVALID_HANDLE, bad[i].subtype);
		KD_EXPECT_RET(test, dat_ep_create_with_srq(env->ia, env->pz, recv, req, conn,
							   sq->srq, &attrs[0], NULL),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG8);
		KD_EXPECT_RET(test, dat_ep_create_with_srq(env->ia, env->pz, recv, req, conn,
							   sq->srq, NULL, &ep),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG7);
		attrs[0].request_completion_flags = DAT_COMPLETION_SUPPRESS_FLAG;
		attrs[1].recv_completion_flags = DAT_COMPLETION_SUPPRESS_FLAG;
		attrs[2].recv_completion_flags = DAT_COMPLETION_EVD_THRESHOLD_FLAG;
		attrs[3].recv_completion_flags = DAT_COMPLETION_BARRIER_FENCE_FLAG;
		attrs[4].max_request_iov = -1;
		attrs[5].srq_soft_hw = -2;
		for (i = 0; i < 6; i++)
			KUNIT_EXPECT_EQ_MSG(test, (u32)
					    dat_ep_create_with_srq(env->ia, env->pz, recv, req,
								   conn, sq->srq, &attrs[i], &ep),
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
	}
	KD_EXPECT_OK(test, dat_ep_query(env->ep, DAT_EP_FIELD_ALL, &param));
	KUNIT_EXPECT_PTR_EQ(test, param.srq_handle, sq->srq);
	KUNIT_EXPECT_EQ(test, (int)param.ep_state, (int)DAT_EP_STATE_UNCONNECTED);
	KUNIT_EXPECT_PTR_EQ(test, param.pz_handle, env->pz);
	KD_EXPECT_OK(test, dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

/* Receives of the EP's own are refused in every state, with nothing done. */
static void sq_no_recv_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(&sq->env, KD_RW, 0, 8);
	unsigned int verbs;
	DAT_RETURN ret;
	int round;

	sq_srq(sq, 4);
	sq_ep_on(sq, 0, sq->env.recv, NULL);
	for (round = 0; round < 3; round++) {
		verbs = fake_ib_count(sq->env.dev, FAKE_IB_POST_RECV);
		ret = kd_post(sq->env.ep, KD_RECV, 1, &iov, 0, NULL, 0);
		KUNIT_EXPECT_EQ(test, (u32)DAT_GET_TYPE(ret), (u32)DAT_INVALID_STATE);
		ret = kd_post(sq->env.ep, KD_RECV, 0, NULL, 0, NULL, 0);
		KUNIT_EXPECT_EQ(test, (u32)DAT_GET_TYPE(ret), (u32)DAT_INVALID_STATE);
		KUNIT_EXPECT_EQ(test, fake_ib_count(sq->env.dev, FAKE_IB_POST_RECV), verbs);
		if (!round)
			kd_connect(&sq->env);
		else if (round == 1)
			kd_end(&sq->env, DAT_CONNECTION_EVENT_DISCONNECTED);
	}
	KD_EXPECT_EMPTY(test, sq->env.recv);
	sq_expect_counts(sq, 0, 0, "nothing posted");
}

/* Different PZs of EP and SRQ: allowed where the device can tell them apart. */
static void sq_pz_test(struct kunit *test)
{
	static const struct {
		enum rdma_driver_id driver;
		bool differ;
	} drivers[] = {
		{ RDMA_DRIVER_UNKNOWN, true },
		{ RDMA_DRIVER_MLX5, true },
		{ RDMA_DRIVER_RXE, false },
	};
	struct fake_ib_caps caps = {};
	struct sq *sq = sq_of(test);
	DAT_PROVIDER_ATTR provider;
	DAT_LMR_TRIPLET iov;
	DAT_EP_HANDLE ep;
	DAT_EP_ATTR attr;
	DAT_RETURN ret;
	int i;

	for (i = 0; i < ARRAY_SIZE(drivers); i++) {
		caps.driver = drivers[i].driver;
		sq_open(test, &caps);
		KD_EXPECT_OK(test, dat_ia_query(sq->env.ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL,
						&provider));
		KUNIT_EXPECT_EQ(test, (int)provider.srq_ep_pz_difference_supported,
				drivers[i].differ ? (int)DAT_TRUE : (int)DAT_FALSE);
		KUNIT_EXPECT_EQ(test, (int)provider.srq_supported, (int)DAT_TRUE);
		KUNIT_EXPECT_NE(test, (int)provider.srq_watermarks_supported, 0);
		sq_srq(sq, 4);
		kd_attr(&attr);
		ret = dat_ep_create_with_srq(sq->env.ia, sq->env.pz2, sq->env.recv, sq->env.req,
					     sq->env.conn, sq->srq, &attr, &ep);
		if (drivers[i].differ) {
			KD_EXPECT_OK(test, ret);
			/* the buffers are of the SRQ's PZ, whatever the EP's is */
			iov = kd_seg(&sq->env, KD_RW, 0, 8);
			KD_EXPECT_OK(test, dat_srq_post_recv(sq->srq, 1, &iov,
							     (DAT_DTO_COOKIE) {}));
			iov = kd_seg(&sq->env, KD_FOREIGN, 0, 8);
			KD_EXPECT_RET(test, dat_srq_post_recv(sq->srq, 1, &iov,
							      (DAT_DTO_COOKIE) {}),
				      DAT_PROTECTION_VIOLATION, DAT_PROTECTION_WRITE);
			if (ret == DAT_SUCCESS)
				KD_EXPECT_OK(test, dat_ep_free(ep));
		} else {
			KUNIT_EXPECT_EQ(test, (u32)DAT_GET_TYPE(ret), (u32)DAT_INVALID_PARAMETER);
		}
		/* no PZ yet is no other PZ */
		KD_EXPECT_OK(test, dat_ep_create_with_srq(sq->env.ia, DAT_HANDLE_NULL,
							  sq->env.recv, sq->env.req, sq->env.conn,
							  sq->srq, &attr, &ep));
		KD_EXPECT_OK(test, dat_ep_free(ep));
		sq_srq_free(sq);
		kd_exit(test);
		memset(&sq->env, 0, sizeof(sq->env));
		sq->env.test = test;
	}
}

/* More EPs than an SRQ takes. */
static void sq_many_eps_test(struct kunit *test)
{
	static const struct fake_ib_caps caps = { .max_qp = 12 };
	struct sq *sq = sq_open(test, &caps);
	DAT_EP_HANDLE eps[16];
	DAT_IA_ATTR limits;
	DAT_EP_ATTR attr;
	DAT_RETURN ret = DAT_SUCCESS;
	int n;

	KD_ASSERT_OK(test, dat_ia_query(sq->env.ia, NULL, DAT_IA_FIELD_ALL, &limits, 0, NULL));
	KUNIT_EXPECT_GT(test, (int)limits.max_ep_per_srq, 0);
	KUNIT_EXPECT_LE(test, (int)limits.max_ep_per_srq, 12);
	sq_srq(sq, 4);
	kd_attr(&attr);
	for (n = 0; n < ARRAY_SIZE(eps); n++) {
		ret = dat_ep_create_with_srq(sq->env.ia, sq->env.pz, sq->env.recv, sq->env.req,
					     sq->env.conn, sq->srq, &attr, &eps[n]);
		if (ret != DAT_SUCCESS)
			break;
	}
	KUNIT_EXPECT_EQ(test, (u32)DAT_GET_TYPE(ret), (u32)DAT_INSUFFICIENT_RESOURCES);
	KUNIT_EXPECT_LE(test, n, (int)limits.max_ep_per_srq);
	while (n--)
		KD_EXPECT_OK(test, dat_ep_free(eps[n]));
}

#define MANY_CONNS	2000

/* A connection as far as the pool looks at it; its QP is a value. */
static struct kdapl_conn *sq_bare_conn(struct kunit *test, struct kdapl_pool *pool, unsigned int i)
{
	struct kdapl_conn *conn = kunit_kzalloc(test, sizeof(*conn), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, conn);
	conn->pool = pool;
	/* as far apart as they are when each has a page or two */
	conn->qp = (struct ib_qp *)(0x1000UL + 8192UL * i);
	INIT_LIST_HEAD(&conn->pool_node);
	INIT_HLIST_NODE(&conn->qp_node);
	kdapl_pool_attach(pool, conn);
	return conn;
}

static unsigned int sq_longest_chain(struct kdapl_pool *pool)
{
	unsigned int i, n, longest = 0;
	struct kdapl_conn *conn;

	spin_lock_irq(&pool->lock);
	for (i = 0; i < 1U << pool->bits; i++) {
		n = 0;
		hlist_for_each_entry(conn, &pool->by_qp[i], qp_node)
			n++;
		longest = max(longest, n);
	}
	spin_unlock_irq(&pool->lock);
	return longest;
}

/* Whose completion it is, is found at once however many EPs share the SRQ. */
static void sq_many_test(struct kunit *test)
{
	static const int steps[] = { 1, 64, MANY_CONNS };
	struct sq *sq = sq_open(test, NULL);
	struct kdapl_conn **conns, *conn;
	int i, k, n = 0, wrong = 0;
	struct kdapl_pool *pool;
	struct kdapl_buf *buf;
	struct kdapl_srq *srq;

	conns = kunit_kcalloc(test, MANY_CONNS, sizeof(*conns), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, conns);
	sq_srq(sq, 8);
	srq = kdapl_obj_get(sq->srq, DAT_HANDLE_TYPE_SRQ);
	KUNIT_ASSERT_NOT_NULL(test, srq);
	pool = kdapl_srq_pool_get(srq);
	spin_lock_irq(&pool->lock);
	buf = kdapl_buf_alloc(pool);
	spin_unlock_irq(&pool->lock);
	KUNIT_ASSERT_NOT_NULL(test, buf);
	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		for (; n < steps[i]; n++)
			conns[n] = sq_bare_conn(test, pool, n);
		for (k = 0; k < n; k++) {
			local_irq_disable();
			conn = kdapl_buf_taken(buf, conns[k]->qp);
			/* as if the device had it again */
			buf->state = KDAPL_BUF_POSTED;
			pool->available++;
			local_irq_enable();
			wrong += conn != conns[k];
		}
		/* by chance some meet, but a few */
		KUNIT_EXPECT_LE(test, sq_longest_chain(pool), 10U);
	}
	KUNIT_EXPECT_EQ(test, wrong, 0);
	local_irq_disable();
	kdapl_buf_taken(buf, NULL);
	local_irq_enable();
	kdapl_buf_free(buf);
	while (n--)
		kdapl_pool_detach(conns[n]);
	KUNIT_EXPECT_EQ(test, sq_longest_chain(pool), 0U);
	KUNIT_EXPECT_TRUE(test, list_empty(&pool->conns));
	synchronize_rcu();	/* before they are freed */
	kdapl_pool_put(pool);
	kdapl_obj_put(&srq->obj);
}

static struct kunit_case srq_cases[] = {
	KD_CASE(sq_create_args_test,
		"SRQ-CR-01,SRQ-CR-02,SRQ-CR-04,SIL-36,GEN-07,GEN-09,GEN-10: create"),
	KD_CASE(sq_unsupported_test, "SRQ-CR-04: a device without SRQs"),
	KD_CASE(sq_many_test, "SRQ-POST-06,SRQ-CR-05: thousands of EPs on one SRQ"),
	KD_CASE(sq_create_test, "SRQ-CR-01: what was asked for, and a reserve"),
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
	KD_CASE(sq_no_overflow_test, "SRQ-POST-06,STAT-05: an EVD nobody dequeues"),
	KD_CASE(sq_two_test, "SRQ-POST-06,SRQ-CR-05: two SRQs on one EVD"),
	KD_CASE(sq_null_evd_test, "SRQ-POST-06,EP-CREATE-03: EPs without recv EVD"),
	KD_CASE(sq_ep_args_test,
		"EP-CREATE-13,EP-CREATE-04,EP-CREATE-05,FLAG-12,FLAG-14,SIL-36: arguments of EPs"),
	KD_CASE(sq_no_recv_test, "RECV-17,EP-CREATE-13: no Receives on the EP itself"),
	KD_CASE(sq_pz_test, "EP-CREATE-14,SRQ-CR-05,SRQ-CR-03: PZs that differ"),
	KD_CASE(sq_many_eps_test, "SRQ-CR-07: more EPs than there can be"),
	{}
};

static struct kunit_suite srq_suite = {
	.name = "kdapl-srq",
	.suite_init = kd_suite_init,
	.suite_exit = kd_suite_exit,
	.init = sq_init,
	.exit = sq_exit,
	.test_cases = srq_cases,
};

kunit_test_suite(srq_suite);
