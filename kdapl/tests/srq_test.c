// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Shared Receive Queues: what create, post and query do, whose completion it is,
 * and the EPs that use them.
 */
#include <linux/delay.h>
#include <linux/limits.h>
#include <linux/log2.h>
#include <linux/random.h>

#include "kd_srq.h"

static void sq_create_args_test(struct kunit *test)
{
	static const DAT_COUNT bad[] = { 0, -1, -2, INT_MIN, INT_MAX };
	struct sq *sq = sq_open(test, NULL);
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 8, .max_recv_iov = 2 };
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	struct kd_env *env = &sq->env;
	char name[DAT_NAME_MAX_LENGTH];
	DAT_PZ_HANDLE foreign;
	DAT_SRQ_HANDLE srq;
	DAT_IA_HANDLE ia;
	DAT_IA_ATTR limits;
	unsigned int verbs;
	int i;

	KD_ASSERT_OK(test, dat_ia_query(env->ia, NULL, DAT_IA_FIELD_ALL, &limits, 0, NULL));
	KUNIT_EXPECT_GT(test, (int)limits.max_srqs, 0);
	KUNIT_EXPECT_GT(test, (int)limits.max_ep_per_srq, 0);
	KUNIT_EXPECT_GT(test, (int)limits.max_recv_per_srq, 0);
	snprintf(name, sizeof(name), "%s-1", fake_ib_name(env->dev));
	KD_ASSERT_OK(test, dat_ia_open(name, 8, &async, &ia));
	KD_ASSERT_OK(test, dat_pz_create(ia, &foreign));
	verbs = fake_ib_count(env->dev, FAKE_IB_ANY);

	KD_EXPECT_RET(test, dat_srq_create(NULL, env->pz, &attr, &srq), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_IA);
	KD_EXPECT_RET(test, dat_srq_create(env->pz, env->pz, &attr, &srq), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_IA);
	KD_EXPECT_RET(test, dat_srq_create(env->ia, NULL, &attr, &srq), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_PZ);
	KD_EXPECT_RET(test, dat_srq_create(env->ia, env->ia, &attr, &srq), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_PZ);
	KD_EXPECT_RET(test, dat_srq_create(env->ia, foreign, &attr, &srq), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_PZ);
	KD_EXPECT_RET(test, dat_srq_create(env->ia, env->pz, NULL, &srq), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
	KD_EXPECT_RET(test, dat_srq_create(env->ia, env->pz, &attr, NULL), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG4);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		KD_EXPECT_RET(test, sq_create(sq, bad[i], 2, 0, &srq), DAT_INVALID_PARAMETER,
			      DAT_INVALID_ARG3);
		KD_EXPECT_RET(test, sq_create(sq, 8, bad[i], 0, &srq), DAT_INVALID_PARAMETER,
			      DAT_INVALID_ARG3);
		if (bad[i])
			KD_EXPECT_RET(test, sq_create(sq, 8, 2, bad[i], &srq),
				      DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	}
	KD_EXPECT_RET(test, sq_create(sq, limits.max_recv_per_srq + 1, 2, 0, &srq),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	KD_EXPECT_RET(test, sq_create(sq, 8, limits.max_iov_segments_per_dto + 1, 0, &srq),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	KD_EXPECT_RET(test, sq_create(sq, 8, 2, 9, &srq), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
	KUNIT_EXPECT_EQ(test, fake_ib_count(env->dev, FAKE_IB_ANY), verbs);
	/* the limits themselves are legal */
	KD_EXPECT_OK(test, sq_create(sq, limits.max_recv_per_srq, limits.max_iov_segments_per_dto,
				     0, &srq));
	KD_EXPECT_OK(test, dat_srq_free(srq));
	KD_EXPECT_OK(test, dat_pz_free(foreign));
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

/* The device has no memory, or no SRQ to give. */
static void sq_create_fails_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	static const int errs[] = { -ENOMEM, -EINVAL, -EOPNOTSUPP, -ENOSPC };
	struct fake_ib_live live;
	DAT_SRQ_HANDLE srq;
	DAT_RETURN ret;
	int i;

	for (i = 0; i < ARRAY_SIZE(errs); i++) {
		fake_ib_fail(sq->env.dev, FAKE_IB_CREATE_SRQ, 1, errs[i]);
		ret = sq_create(sq, 8, 1, 0, &srq);
		KUNIT_EXPECT_EQ(test, (u32)DAT_GET_TYPE(ret), (u32)DAT_INSUFFICIENT_RESOURCES);
		fake_ib_live(sq->env.dev, &live);
		KUNIT_EXPECT_EQ(test, live.srqs, 0);
	}
	KD_EXPECT_OK(test, sq_create(sq, 8, 1, 0, &srq));
	KD_EXPECT_OK(test, dat_srq_free(srq));
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

static void sq_query_args_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	DAT_SRQ_PARAM param;
	DAT_SRQ_HANDLE old;
	int bit;

	sq_srq(sq, 4);
	for (bit = 0; bit < 32; bit++) {
		if (BIT(bit) & DAT_SRQ_FIELD_ALL)
			KD_EXPECT_OK(test, dat_srq_query(sq->srq, BIT(bit), &param));
		else
			KD_EXPECT_RET(test, dat_srq_query(sq->srq, BIT(bit), &param),
				      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	}
	KD_EXPECT_OK(test, dat_srq_query(sq->srq, 0, NULL));
	KD_EXPECT_OK(test, dat_srq_query(sq->srq, 0, &param));
	KD_EXPECT_RET(test, dat_srq_query(sq->srq, DAT_SRQ_FIELD_ALL, NULL),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	KD_EXPECT_RET(test, dat_srq_query(NULL, DAT_SRQ_FIELD_ALL, &param), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_SRQ);
	KD_EXPECT_RET(test, dat_srq_query(sq->env.pz, DAT_SRQ_FIELD_ALL, &param),
		      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	/* every call knows a dead handle */
	old = sq->srq;
	sq_srq_free(sq);
	KD_EXPECT_RET(test, dat_srq_query(old, DAT_SRQ_FIELD_ALL, &param), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_SRQ);
	KD_EXPECT_RET(test, dat_srq_resize(old, 4), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	KD_EXPECT_RET(test, dat_srq_set_lw(old, 1), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	KD_EXPECT_RET(test, dat_srq_free(old), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	KD_EXPECT_RET(test, dat_srq_post_recv(old, 0, NULL, (DAT_DTO_COOKIE) {}),
		      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
}

/* The example of the standard, and the same with every number of buffers. */
static void sq_counts_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	struct ib_qp *qp;
	int n, k;

	sq_srq(sq, 10);
	qp = sq_ep(sq, 0);
	sq_post(sq, 0, 3);
	sq_expect_counts(sq, 3, 3, "posted");
	KUNIT_EXPECT_EQ(test, fake_ib_recv(qp, 5, false), 0);
	sq_expect_counts(sq, 2, 3, "arrived");
	sq_expect(sq, sq->env.recv, 0, 0, DAT_DTO_SUCCESS, 5);
	sq_expect_counts(sq, 2, 2, "dequeued");
	for (k = 1; k < 3; k++) {
		fake_ib_recv(qp, 5, false);
		sq_expect(sq, sq->env.recv, 0, k, DAT_DTO_SUCCESS, 5);
	}
	sq_expect_counts(sq, 0, 0, "empty");

	for (n = 1; n <= 10; n++) {
		sq_post(sq, 100, n);
		for (k = 0; k < n; k++) {
			sq_expect_counts(sq, n - k, n, "arriving");
			fake_ib_recv(qp, k, false);
		}
		for (k = 0; k < n; k++) {
			sq_expect_counts(sq, 0, n - k, "dequeuing");
			sq_expect(sq, sq->env.recv, 0, 100 + k, DAT_DTO_SUCCESS, k);
		}
		sq_expect_counts(sq, 0, 0, "empty again");
	}
}

/* Handed over by an upcall, a buffer is free inside that upcall already. */
struct sq_refill {
	struct sq *sq;
	int n;
	int refused;
	int outstanding;
};

static void sq_refill_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	u64 cookie = event->event_data.dto_completion_event_data.user_cookie.as_64;
	struct sq_refill *refill = data;
	DAT_SRQ_PARAM param = {};

	if (dat_srq_query(refill->sq->srq, DAT_SRQ_FIELD_ALL, &param) == DAT_SUCCESS)
		refill->outstanding += param.outstanding_dto_count;
	if (sq_try_post(refill->sq, cookie) != DAT_SUCCESS)
		refill->refused++;
	WRITE_ONCE(refill->n, refill->n + 1);
}

static void sq_upcall_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	struct sq_refill refill = { .sq = sq };
	DAT_UPCALL_OBJECT object = { .instance_data = &refill, .upcall_func = sq_refill_upcall };
	struct ib_qp *qp;
	int i, k;

	KD_ASSERT_OK(test, dat_evd_free(sq->env.recv));
	sq->env.recv = NULL;
	KD_ASSERT_OK(test, dat_evd_kcreate(sq->env.ia, 8, DAT_UPCALL_SINGLE_INSTANCE, &object,
					   DAT_EVD_DTO_FLAG, &sq->env.recv));
	sq_srq(sq, 4);
	qp = sq_ep(sq, 0);
	sq_post(sq, 0, 4);
	for (i = 0; i < 100; i++) {
		KUNIT_EXPECT_EQ(test, fake_ib_recv(qp, 1, false), 0);
		for (k = 0; k < 5000 && READ_ONCE(refill.n) <= i; k++)
			kd_pause();
	}
	KUNIT_EXPECT_EQ(test, refill.n, 100);
	KUNIT_EXPECT_EQ(test, refill.refused, 0);
	KUNIT_EXPECT_EQ(test, refill.outstanding, 300);
	sq_expect_counts(sq, 4, 4, "always refilled");
	sq_ep_free(sq, 0);
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

static void sq_post_refused_test(struct kunit *test)
{
	static const int counts[] = { -1, -2, INT_MIN, INT_MAX, 5, 6, 65536 };
	struct sq *sq = sq_open(test, NULL);
	struct kd_env *env = &sq->env;
	DAT_LMR_TRIPLET iov[8];
	unsigned long bits;
	int i, k;

	sq_srq(sq, 4);
	for (i = 0; i < ARRAY_SIZE(iov); i++)
		iov[i] = kd_seg(env, KD_RW, 16 * i, 8);
	/* handles */
	KD_EXPECT_RET(test, dat_srq_post_recv(NULL, 1, iov, (DAT_DTO_COOKIE) {}),
		      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	KD_EXPECT_RET(test, dat_srq_post_recv(env->recv, 1, iov, (DAT_DTO_COOKIE) {}),
		      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	for (i = 0; i < 1000; i++) {
		get_random_bytes(&bits, sizeof(bits));
		if ((DAT_SRQ_HANDLE)bits == sq->srq)
			continue;
		KD_EXPECT_RET(test, dat_srq_post_recv((DAT_SRQ_HANDLE)bits, 1, iov,
						      (DAT_DTO_COOKIE) {}),
			      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	}
	/* numbers of segments */
	for (i = 0; i < ARRAY_SIZE(counts); i++)
		sq_refused(sq, counts[i], iov, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, "count");
	for (i = 1; i <= 4; i++)
		sq_refused(sq, i, NULL, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3, "no list");
	/* segments: key, right, PZ, range; the first bad one decides */
	for (k = 0; k < 4; k++) {
		for (i = 0; i < 4; i++)
			iov[i] = kd_seg(env, KD_RW, 16 * i, 8);
		iov[k].lmr_context ^= 0x100;
		sq_refused(sq, 4, iov, DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE, "key");
		iov[k] = kd_seg(env, KD_RO, 0, 8);
		sq_refused(sq, 4, iov, DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE, "read only");
		iov[k] = kd_seg(env, KD_REMOTE, 0, 8);
		sq_refused(sq, 4, iov, DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE, "remote");
		iov[k] = kd_seg(env, KD_FOREIGN, 0, 8);
		sq_refused(sq, 4, iov, DAT_PROTECTION_VIOLATION, DAT_PROTECTION_WRITE, "PZ");
		iov[k] = kd_seg(env, KD_RW, 0, KD_MEM_SIZE + 1);
		sq_refused(sq, 4, iov, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3, "range");
		iov[k] = kd_seg(env, KD_RW, 0, 8);
		iov[k].virtual_address--;
		sq_refused(sq, 4, iov, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3, "in front");
		iov[k].virtual_address = ~0ULL - 3;
		sq_refused(sq, 4, iov, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3, "wraps");
	}
	/* full, and segments before resources */
	sq_post(sq, 0, 4);
	iov[0] = kd_seg(env, KD_RW, 0, 8);
	for (i = 0; i < 5; i++)
		sq_refused(sq, 1, iov, DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ, "full");
	iov[0].lmr_context ^= 0x100;
	sq_refused(sq, 1, iov, DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE, "key before room");
}

/* What reaches the device: each segment that is not empty, in order; from write-only memory. */
static void sq_post_segments_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	DAT_LMR_TRIPLET iov[4], copy[4];
	struct fake_ib_wr wr;
	int num, empty, i, n;
	struct ib_qp *qp;
	DAT_EVENT event;

	sq_srq(sq, 8);
	qp = sq_ep(sq, 0);
	for (num = 0; num <= 4; num++) {
		for (empty = 0; empty < BIT(num); empty++) {
			for (i = 0; i < num; i++) {
				iov[i] = kd_seg(&sq->env, KD_WO, 64 * (num - i), 5 + 7 * i);
				if (empty & BIT(i))
					iov[i] = (DAT_LMR_TRIPLET) { ~0ULL - i, 0, 0xbad };
			}
			memcpy(copy, iov, sizeof(copy));
			KD_EXPECT_OK(test, dat_srq_post_recv(sq->srq, num, num ? copy : NULL,
							     (DAT_DTO_COOKIE) { .as_64 = 7 }));
			KUNIT_EXPECT_EQ(test, memcmp(copy, iov, num * sizeof(*iov)), 0);
			memset(copy, 0xee, sizeof(copy));
			KUNIT_ASSERT_TRUE(test, fake_ib_srq_wr(sq->ib, fake_ib_srq_posted(sq->ib) -
							       1, &wr));
			for (i = 0, n = 0; i < num; i++) {
				if (empty & BIT(i))
					continue;
				KUNIT_ASSERT_LT(test, n, wr.num_sge);
				KUNIT_EXPECT_EQ(test, wr.sge[n].addr, (u64)iov[i].virtual_address);
				KUNIT_EXPECT_EQ(test, wr.sge[n].length, (u32)iov[i].segment_length);
				KUNIT_EXPECT_EQ(test, wr.sge[n].lkey, (u32)iov[i].lmr_context);
				n++;
			}
			KUNIT_EXPECT_EQ(test, wr.num_sge, n);
			KUNIT_EXPECT_EQ(test, wr.pos, 0U);
			KUNIT_EXPECT_EQ(test, fake_ib_recv(qp, 0, false), 0);
			KUNIT_EXPECT_TRUE(test, kd_next(sq->env.recv, &event));
		}
	}
}

/* Full is full until a completion is handed over, in whatever way. */
static void sq_full_test(struct kunit *test)
{
	static const int sizes[] = { 1, 2, 3, 16, 17 };
	struct sq *sq = sq_open(test, NULL);
	struct ib_qp *qp;
	int s, i, n;

	for (s = 0; s < ARRAY_SIZE(sizes); s++) {
		n = sizes[s];
		sq_srq(sq, n);
		qp = sq_ep(sq, 0);
		sq_post(sq, 0, n);
		for (i = 0; i < 3 * n; i++) {
			KD_EXPECT_RET(test, sq_try_post(sq, 99), DAT_INSUFFICIENT_RESOURCES,
				      DAT_RESOURCE_SRQ);
			KUNIT_EXPECT_EQ(test, fake_ib_recv(qp, 3, false), 0);
			/* a message alone makes no room: the consumer still has its turn */
			KD_EXPECT_RET(test, sq_try_post(sq, 99), DAT_INSUFFICIENT_RESOURCES,
				      DAT_RESOURCE_SRQ);
			sq_expect(sq, sq->env.recv, 0, i, DAT_DTO_SUCCESS, 3);
			KD_EXPECT_OK(test, sq_try_post(sq, n + i));
		}
		sq_ep_free(sq, 0);
		sq_srq_free(sq);
	}
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
			msleep(20);
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
	msleep(20);
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
		if (i % 7 == 0)		/* drains move them around */
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

static void sq_ep_args_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	struct kd_env *env = &sq->env;
	char name[DAT_NAME_MAX_LENGTH];
	DAT_EP_PARAM param;
	DAT_SRQ_HANDLE foreign;
	DAT_PZ_HANDLE pz;
	DAT_IA_HANDLE ia;
	DAT_EP_ATTR attr;
	DAT_SRQ_ATTR sattr = { .max_recv_dtos = 4, .max_recv_iov = 1 };
	DAT_EP_HANDLE ep;

	kd_attr(&attr);
	sq_srq(sq, 4);
	snprintf(name, sizeof(name), "%s-1", fake_ib_name(env->dev));
	KD_ASSERT_OK(test, dat_ia_open(name, 8, &async, &ia));
	KD_ASSERT_OK(test, dat_pz_create(ia, &pz));
	KD_ASSERT_OK(test, dat_srq_create(ia, pz, &sattr, &foreign));
#define SQ_MAKE(ia, pz, recv, req, conn, srq, attr, ep) \
	dat_ep_create_with_srq(ia, pz, recv, req, conn, srq, attr, ep)
	KD_EXPECT_RET(test, SQ_MAKE(NULL, env->pz, env->recv, env->req, env->conn, sq->srq, &attr,
				    &ep), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	KD_EXPECT_RET(test, SQ_MAKE(env->ia, env->ia, env->recv, env->req, env->conn, sq->srq,
				    &attr, &ep), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	KD_EXPECT_RET(test, SQ_MAKE(env->ia, env->pz, env->pz, env->req, env->conn, sq->srq, &attr,
				    &ep), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_RECV);
	KD_EXPECT_RET(test, SQ_MAKE(env->ia, env->pz, env->recv, env->conn, env->conn, sq->srq,
				    &attr, &ep), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_EVD_REQUEST);
	KD_EXPECT_RET(test, SQ_MAKE(env->ia, env->pz, env->recv, env->req, env->recv, sq->srq,
				    &attr, &ep), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CONN);
	KD_EXPECT_RET(test, SQ_MAKE(env->ia, env->pz, env->recv, env->req, env->conn, NULL, &attr,
				    &ep), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	KD_EXPECT_RET(test, SQ_MAKE(env->ia, env->pz, env->recv, env->req, env->conn, env->pz,
				    &attr, &ep), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	KD_EXPECT_RET(test, SQ_MAKE(env->ia, env->pz, env->recv, env->req, env->conn, foreign,
				    &attr, &ep), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	KD_EXPECT_RET(test, SQ_MAKE(env->ia, env->pz, env->recv, env->req, env->conn, sq->srq,
				    NULL, &ep), DAT_INVALID_PARAMETER, DAT_INVALID_ARG7);
	KD_EXPECT_RET(test, SQ_MAKE(env->ia, env->pz, env->recv, env->req, env->conn, sq->srq,
				    &attr, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG8);
	attr.request_completion_flags = DAT_COMPLETION_SUPPRESS_FLAG;
	KD_EXPECT_RET(test, SQ_MAKE(env->ia, env->pz, env->recv, env->req, env->conn, sq->srq,
				    &attr, &ep), DAT_INVALID_PARAMETER, DAT_INVALID_ARG7);
#undef SQ_MAKE
	KD_EXPECT_OK(test, dat_srq_free(foreign));
	KD_EXPECT_OK(test, dat_pz_free(pz));
	KD_EXPECT_OK(test, dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	/* none of that used it */
	sq_srq_free(sq);
	/* segments per receive are the SRQ's affair; the query tells the SRQ */
	sq_srq(sq, 4);
	kd_attr(&attr);
	attr.max_recv_iov = 1000000;
	sq_ep_on(sq, 0, env->recv, &attr);
	KD_EXPECT_OK(test, dat_ep_query(env->ep, DAT_EP_FIELD_ALL, &param));
	KUNIT_EXPECT_PTR_EQ(test, param.srq_handle, sq->srq);
	KUNIT_EXPECT_EQ(test, (int)param.ep_state, (int)DAT_EP_STATE_UNCONNECTED);
	KUNIT_EXPECT_PTR_EQ(test, param.pz_handle, env->pz);
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

/* Requests of an EP with an SRQ are as those of any other. */
static void sq_requests_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 8, 1);
	DAT_LMR_TRIPLET iov = kd_seg(&sq->env, KD_RW, 0, 8);
	DAT_BOOLEAN recv_idle, request_idle;
	enum kd_call call;
	DAT_EVENT event;

	sq_srq(sq, 4);
	sq_ep(sq, 0);
	for (call = 0; call < KD_NR_CALLS; call++) {
		if (kd_is_recv(call))
			continue;
		KD_EXPECT_OK(test, kd_post(sq->env.ep, call, 1, &iov, 5, &remote, 0));
		KD_EXPECT_OK(test, dat_ep_get_status(sq->env.ep, NULL, &recv_idle, &request_idle));
		KUNIT_EXPECT_EQ(test, (int)request_idle, (int)DAT_FALSE);
		KUNIT_EXPECT_EQ(test, (int)recv_idle, (int)DAT_TRUE);
		fake_ib_complete_all(sq->env.qp, false, IB_WC_SUCCESS);
		KUNIT_EXPECT_TRUE(test, kd_next(sq->env.req, &event));
		KUNIT_EXPECT_PTR_EQ(test, event.event_data.dto_completion_event_data.ep_handle,
				    sq->env.ep);
	}
	kd_end(&sq->env, DAT_CONNECTION_EVENT_DISCONNECTED);
	KD_EXPECT_OK(test, kd_post(sq->env.ep, KD_SEND, 1, &iov, 5, NULL, 0));
	KUNIT_ASSERT_TRUE(test, kd_next(sq->env.req, &event));
	KUNIT_EXPECT_EQ(test, (int)event.event_data.dto_completion_event_data.status,
			(int)DAT_DTO_ERR_FLUSHED);
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

/* Verbs that fail while an EP with an SRQ is made. */
static void sq_nth_verb_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	struct fake_ib_live before, after;
	DAT_EP_HANDLE ep;
	DAT_EP_ATTR attr;
	DAT_RETURN ret;
	int n, i;

	sq_srq(sq, 4);
	kd_attr(&attr);
	fake_ib_live(sq->env.dev, &before);
	for (n = 1; n < 20; n++) {
		fake_ib_fail(sq->env.dev, FAKE_IB_ANY, n, -ENOMEM);
		ret = dat_ep_create_with_srq(sq->env.ia, sq->env.pz, sq->env.recv, sq->env.req,
					     sq->env.conn, sq->srq, &attr, &ep);
		fake_ib_fail(sq->env.dev, FAKE_IB_ANY, 0, 0);
		if (ret == DAT_SUCCESS)
			break;
		KUNIT_EXPECT_EQ(test, (u32)DAT_GET_TYPE(ret), (u32)DAT_INSUFFICIENT_RESOURCES);
		for (i = 0; i < 500; i++) {
			fake_ib_live(sq->env.dev, &after);
			if (after.qps == before.qps)
				break;
			kd_pause();
		}
		KUNIT_EXPECT_EQ(test, after.qps, before.qps);
		KUNIT_EXPECT_EQ(test, after.srqs, before.srqs);
	}
	KUNIT_EXPECT_GT(test, n, 1);
	KUNIT_EXPECT_LT(test, n, 20);
	if (ret == DAT_SUCCESS)
		KD_EXPECT_OK(test, dat_ep_free(ep));
	sq_srq_free(sq);
}

#define MANY_CONNS	2000
#define MANY_LOOKS	20000

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

/* Nanoseconds from a completion to whose it is. */
static u64 sq_look_time(struct kunit *test, struct kdapl_pool *pool, struct kdapl_conn **conns,
			int n)
{
	struct kdapl_conn *conn;
	struct kdapl_buf *buf;
	int i, wrong = 0;
	u64 start;

	spin_lock_irq(&pool->lock);
	buf = kdapl_buf_alloc(pool);
	spin_unlock_irq(&pool->lock);
	KUNIT_ASSERT_NOT_NULL(test, buf);
	/* without interrupts: to switch them on and off takes longer than all the rest */
	local_irq_disable();
	start = ktime_get_ns();
	for (i = 0; i < MANY_LOOKS; i++) {
		conn = conns[(i * 7919U) % n];
		if (kdapl_buf_taken(buf, conn->qp) != conn)
			wrong++;
		/* as if the device had it again */
		buf->state = KDAPL_BUF_NATIVE;
		pool->available++;
	}
	start = ktime_get_ns() - start;
	local_irq_enable();
	KUNIT_EXPECT_EQ(test, wrong, 0);
	kdapl_buf_taken(buf, NULL);
	kdapl_buf_free(buf);
	return div_u64(start, MANY_LOOKS);
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
	struct kdapl_conn **conns;
	struct kdapl_pool *pool;
	struct kdapl_srq *srq;
	u64 ns[ARRAY_SIZE(steps)];
	int i, n = 0;

	conns = kunit_kcalloc(test, MANY_CONNS, sizeof(*conns), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, conns);
	sq_srq(sq, 8);
	srq = kdapl_obj_get(sq->srq, DAT_HANDLE_TYPE_SRQ);
	KUNIT_ASSERT_NOT_NULL(test, srq);
	pool = kdapl_srq_pool_get(srq);
	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		for (; n < steps[i]; n++)
			conns[n] = sq_bare_conn(test, pool, n);
		ns[i] = sq_look_time(test, pool, conns, n);
		/* by chance some meet, but a few */
		KUNIT_EXPECT_LE(test, sq_longest_chain(pool), 10U);
	}
	kunit_info(test, "1, 64, %d EPs: %llu, %llu, %llu ns", MANY_CONNS, ns[0], ns[1], ns[2]);
	while (n--)
		kdapl_pool_detach(conns[n]);
	KUNIT_EXPECT_EQ(test, sq_longest_chain(pool), 0U);
	KUNIT_EXPECT_TRUE(test, list_empty(&pool->conns));
	synchronize_rcu();	/* before they are freed */
	kdapl_pool_put(pool);
	kdapl_obj_put(&srq->obj);
}

static struct kunit_case srq_cases[] = {
	KD_CASE(sq_create_args_test, "SRQ-CR-04,SRQ-CR-02,GEN-09: arguments of create"),
	KD_CASE(sq_unsupported_test, "SRQ-CR-04: a device without SRQs"),
	KD_CASE(sq_create_fails_test, "SRQ-CR-04,GEN-07: the device has none to give"),
	KD_CASE(sq_many_test, "SRQ-POST-06,SRQ-CR-05: thousands of EPs on one SRQ"),
	KD_CASE(sq_create_test, "SRQ-CR-01: what was asked for, and a reserve"),
	KD_CASE(sq_query_args_test, "GEN-04,GEN-08,SRQ-QRY-03: arguments of query, dead handles"),
	KD_CASE(sq_counts_test, "SRQ-QRY-01..03,SIL-37: the counts, step by step"),
	KD_CASE(sq_upcall_test, "SRQ-QRY-01,SIL-37,SRQ-POST-11: refilled from the upcall"),
	KD_CASE(sq_free_test, "SRQ-FREE-01,PZ-02,GEN-11,EP-CREATE-17: free and its refusals"),
	KD_CASE(sq_post_refused_test,
		"SRQ-POST-16,SRQ-CR-03,GEN-07,GEN-10,SIL-42: what posting refuses"),
	KD_CASE(sq_post_segments_test,
		"SRQ-POST-01..03,SRQ-POST-10,EP-POST-12: segments that reach the device"),
	KD_CASE(sq_full_test, "SRQ-POST-16,SIL-37: full until the consumer has an event"),
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
	KD_CASE(sq_ep_args_test, "EP-CREATE-13,EP-CREATE-04,EP-CREATE-05: arguments of EPs"),
	KD_CASE(sq_no_recv_test, "RECV-17,EP-CREATE-13: no Receives on the EP itself"),
	KD_CASE(sq_requests_test, "EP-CREATE-13,SEND-18: requests are as ever"),
	KD_CASE(sq_pz_test, "EP-CREATE-14,SRQ-CR-05,SRQ-CR-03: PZs that differ"),
	KD_CASE(sq_many_eps_test, "SRQ-CR-07: more EPs than there can be"),
	KD_CASE(sq_nth_verb_test, "GEN-06,GEN-07,EP-CREATE-09: verbs that fail"),
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
