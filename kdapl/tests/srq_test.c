// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Shared Receive Queues: everything that does not depend on a transport, and
 * what no transport shows at will: devices that lose buffers, that give them
 * back late or never, that refuse a post or give up the queue.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/log2.h>
#include <linux/random.h>

#include "kd_test.h"

#define SQ_EPS		8
#define SQ_POISON	((struct ib_qp *)0x6b6b6b6b6b6b6b60UL)

/**
 * struct sq_ep - one EP of the SRQ
 * @ep: its handle
 * @kep: the object
 * @qp: its QP
 */
struct sq_ep {
	DAT_EP_HANDLE ep;
	struct kdapl_ep *kep;
	struct ib_qp *qp;
};

/**
 * struct sq - what a case works with
 * @env: the usual; its EP is the one sq_use() chose
 * @srq: the SRQ
 * @ib: the device's side of it
 * @eps: EPs that use it
 */
struct sq {
	struct kd_env env;
	DAT_SRQ_HANDLE srq;
	struct ib_srq *ib;
	struct sq_ep eps[SQ_EPS];
};

static int sq_init(struct kunit *test)
{
	struct sq *sq = kunit_kzalloc(test, sizeof(*sq), GFP_KERNEL);

	if (!sq)
		return -ENOMEM;
	sq->env.test = test;
	test->priv = &sq->env;
	return 0;
}

static struct sq *sq_of(struct kunit *test)
{
	return container_of((struct kd_env *)test->priv, struct sq, env);
}

/* Make one of the EPs the one that the common helpers work with. */
static struct ib_qp *sq_use(struct sq *sq, int i)
{
	sq->env.ep = sq->eps[i].ep;
	sq->env.kep = sq->eps[i].kep;
	sq->env.qp = sq->eps[i].qp;
	return sq->env.qp;
}

static void sq_ep_free(struct sq *sq, int i)
{
	sq_use(sq, i);
	kd_ep_free(&sq->env);
	memset(&sq->eps[i], 0, sizeof(sq->eps[i]));
}

static void sq_exit(struct kunit *test)
{
	struct sq *sq;
	int i;

	if (!test->priv)
		return;
	sq = sq_of(test);
	for (i = 0; i < SQ_EPS; i++)
		if (sq->eps[i].ep)
			sq_ep_free(sq, i);
	if (sq->srq)
		KD_EXPECT_OK(test, dat_srq_free(sq->srq));
	kd_exit(test);
}

static struct sq *sq_open(struct kunit *test, const struct fake_ib_caps *caps)
{
	kd_open(test, caps);
	return sq_of(test);
}

static DAT_RETURN sq_create(struct sq *sq, DAT_COUNT dtos, DAT_COUNT iov, DAT_COUNT low,
			    DAT_SRQ_HANDLE *srq)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = dtos, .max_recv_iov = iov, .low_watermark = low };

	return dat_srq_create(sq->env.ia, sq->env.pz, &attr, srq);
}

static void sq_srq(struct sq *sq, DAT_COUNT dtos)
{
	KD_ASSERT_OK(sq->env.test, sq_create(sq, dtos, 4, 0, &sq->srq));
	sq->ib = fake_ib_newest_srq(sq->env.dev);
	KUNIT_ASSERT_NOT_NULL(sq->env.test, sq->ib);
}

static void sq_srq_free(struct sq *sq)
{
	KD_EXPECT_OK(sq->env.test, dat_srq_free(sq->srq));
	sq->srq = NULL;
	sq->ib = NULL;
}

static void sq_ep_on(struct sq *sq, int i, DAT_EVD_HANDLE recv, const DAT_EP_ATTR *attr)
{
	struct kunit *test = sq->env.test;
	struct sq_ep *ep = &sq->eps[i];
	DAT_EP_ATTR usual;

	kd_attr(&usual);
	KD_ASSERT_OK(test, dat_ep_create_with_srq(sq->env.ia, sq->env.pz, recv, sq->env.req,
						  sq->env.conn, sq->srq, attr ? attr : &usual,
						  &ep->ep));
	ep->qp = fake_ib_newest_qp(sq->env.dev);
	ep->kep = kdapl_obj_get(ep->ep, DAT_HANDLE_TYPE_EP);
	KUNIT_ASSERT_NOT_NULL(test, ep->qp);
	KUNIT_ASSERT_NOT_NULL(test, ep->kep);
	sq_use(sq, i);
}

/* An EP, connected. */
static struct ib_qp *sq_ep(struct sq *sq, int i)
{
	sq_ep_on(sq, i, sq->env.recv, NULL);
	kd_connect(&sq->env);
	return sq->eps[i].qp;
}

static DAT_RETURN sq_try_post(struct sq *sq, u64 cookie)
{
	DAT_LMR_TRIPLET iov = kd_seg(&sq->env, KD_RW, 0, 64);
	DAT_DTO_COOKIE c = { .as_64 = cookie };

	return dat_srq_post_recv(sq->srq, 1, &iov, c);
}

static void sq_post(struct sq *sq, u64 cookie, int n)
{
	while (n--)
		KD_EXPECT_OK(sq->env.test, sq_try_post(sq, cookie++));
}

static void sq_counts(struct sq *sq, DAT_SRQ_PARAM *param)
{
	memset(param, 0x5a, sizeof(*param));
	KD_EXPECT_OK(sq->env.test, dat_srq_query(sq->srq, DAT_SRQ_FIELD_ALL, param));
}

static void sq_expect_counts(struct sq *sq, int available, int outstanding, const char *what)
{
	DAT_SRQ_PARAM param;

	sq_counts(sq, &param);
	KUNIT_EXPECT_EQ_MSG(sq->env.test, (int)param.available_dto_count, available, "%s", what);
	KUNIT_EXPECT_EQ_MSG(sq->env.test, (int)param.outstanding_dto_count, outstanding, "%s",
			    what);
}

/* The next event of an EVD is this Receive. */
static void sq_expect(struct sq *sq, DAT_EVD_HANDLE evd, int i, u64 cookie, int status, u32 length)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	struct kunit *test = sq->env.test;
	DAT_EVENT event;

	dto = &event.event_data.dto_completion_event_data;
	KUNIT_ASSERT_TRUE_MSG(test, kd_next(evd, &event), "no event for cookie %llx", cookie);
	KUNIT_EXPECT_EQ(test, (u32)event.event_number, (u32)DAT_DTO_COMPLETION_EVENT);
	KUNIT_EXPECT_PTR_EQ(test, event.evd_handle, evd);
	KUNIT_EXPECT_PTR_EQ(test, dto->ep_handle, sq->eps[i].ep);
	KUNIT_EXPECT_EQ(test, (u64)dto->user_cookie.as_64, cookie);
	KUNIT_EXPECT_EQ(test, (int)dto->status, status);
	KUNIT_EXPECT_EQ(test, (u32)dto->operation, (u32)DAT_DTO_RECEIVE);
	if (status == DAT_DTO_SUCCESS)
		KUNIT_EXPECT_EQ(test, (u32)dto->transfered_length, length);
}

/* Let everything happen that is under way inside the provider. */
static void sq_settle(void)
{
	usleep_range(1000, 2000);
	flush_workqueue(kdapl_upcall_wq);
	flush_workqueue(kdapl_wq);
}

/* Asynchronous events with this handle and reason that are there. */
static int sq_async(struct sq *sq, DAT_HANDLE handle, int reason)
{
	const DAT_ASYNCH_ERROR_EVENT_DATA *data;
	struct kunit *test = sq->env.test;
	DAT_EVENT event;
	int n = 0;

	sq_settle();
	data = &event.event_data.asynch_error_event_data;
	while (kd_next(sq->env.async, &event)) {
		KUNIT_EXPECT_EQ(test, (u32)event.event_number,
				(u32)DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR);
		KUNIT_EXPECT_PTR_EQ(test, data->dat_handle, handle);
		KUNIT_EXPECT_EQ(test, (int)data->reason, reason);
		n++;
	}
	return n;
}

/* ------------------------------------------------------------------ */

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
	struct sq_refill *refill = data;
	DAT_SRQ_PARAM param = {};

	if (dat_srq_query(refill->sq->srq, DAT_SRQ_FIELD_ALL, &param) == DAT_SUCCESS)
		refill->outstanding += param.outstanding_dto_count;
	if (sq_try_post(refill->sq, event->event_data.dto_completion_event_data.user_cookie.as_64) !=
	    DAT_SUCCESS)
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

/* ------------------------------------------------------------------ */
/* dat_srq_post_recv                                                    */

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

/* ------------------------------------------------------------------ */
/* Completions                                                          */

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
			msleep(5);
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
	DAT_COUNT n, span;
	int i;

	sq_srq(sq, 8);
	sq_post(sq, 0, 8);
	sq_ep_on(sq, 0, sq->env.recv, NULL);
	for (i = 0; i < 3; i++)
		fake_ib_recv(sq->env.qp, i, false);
	KD_EXPECT_EMPTY(test, sq->env.recv);
	sq_expect_counts(sq, 5, 8, "early");
	KD_EXPECT_OK(test, dat_ep_recv_query(sq->env.ep, &n, &span));
	KUNIT_EXPECT_EQ(test, (int)n, 3);
	KUNIT_EXPECT_EQ(test, (int)span, 3);
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
		if (i % 7 == 0)		/* sweeps move them around */
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

/* ------------------------------------------------------------------ */
/* Ends                                                                 */

/* Taken buffers when a connection ends, for devices of every kind. */
static void sq_taken_test(struct kunit *test)
{
	static const enum fake_ib_taken kinds[] = {
		FAKE_IB_TAKEN_FLUSHED, FAKE_IB_TAKEN_AT_DESTROY, FAKE_IB_TAKEN_LOST,
	};
	struct sq *sq = sq_open(test, NULL);
	int k, last, lost;
	DAT_EVENT event;

	for (k = 0; k < ARRAY_SIZE(kinds); k++) {
		for (last = 0; last < 2; last++) {
			lost = kinds[k] == FAKE_IB_TAKEN_LOST ? 2 : 0;
			fake_ib_taken(sq->env.dev, kinds[k]);
			fake_ib_last_wqe(sq->env.dev, last ? FAKE_IB_LAST_WQE_AT_ERR :
							     FAKE_IB_LAST_WQE_NEVER);
			sq_srq(sq, 8);
			sq_ep(sq, 0);
			sq_post(sq, 0, 6);
			/* one message there, two half way, one that arrives last */
			KUNIT_EXPECT_EQ(test, fake_ib_recv(sq->env.qp, 1, false), 0);
			KUNIT_EXPECT_EQ(test, fake_ib_srq_take(sq->env.qp), 1);
			KUNIT_EXPECT_EQ(test, fake_ib_srq_take(sq->env.qp), 2);
			KUNIT_EXPECT_EQ(test, fake_ib_recv(sq->env.qp, 4, false), 0);
			kd_end(&sq->env, DAT_CONNECTION_EVENT_DISCONNECTED);
			KUNIT_EXPECT_EQ(test, kd_expect_end(&sq->env),
					(u32)DAT_CONNECTION_EVENT_DISCONNECTED);
			/* all of it is there once the end is */
			sq_expect(sq, sq->env.recv, 0, 0, DAT_DTO_SUCCESS, 1);
			sq_expect(sq, sq->env.recv, 0, 3, DAT_DTO_SUCCESS, 4);
			if (!lost) {
				sq_expect(sq, sq->env.recv, 0, 1, DAT_DTO_ERR_FLUSHED, 0);
				sq_expect(sq, sq->env.recv, 0, 2, DAT_DTO_ERR_FLUSHED, 0);
			}
			KD_EXPECT_EMPTY(test, sq->env.recv);
			sq_ep_free(sq, 0);
			sq_settle();
			/* buffers on the SRQ are not touched, lost ones not in the way */
			sq_expect_counts(sq, 2, 2, "after the end");
			sq_post(sq, 10, 6);
			KD_EXPECT_RET(test, sq_try_post(sq, 50), DAT_INSUFFICIENT_RESOURCES,
				      DAT_RESOURCE_SRQ);
			/* and serve the next connection */
			sq_ep(sq, 1);
			KUNIT_EXPECT_EQ(test, fake_ib_recv(sq->env.qp, 7, false), 0);
			sq_expect(sq, sq->env.recv, 1, 4, DAT_DTO_SUCCESS, 7);
			sq_ep_free(sq, 1);
			sq_srq_free(sq);
			while (kd_next(sq->env.conn, &event))
				;
		}
	}
}

/* A buffer lost with each connection: the consumer keeps all it asked for. */
static void sq_lost_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	int round, i, seq;
	DAT_EVENT event;

	fake_ib_taken(sq->env.dev, FAKE_IB_TAKEN_LOST);
	fake_ib_last_wqe(sq->env.dev, FAKE_IB_LAST_WQE_AT_ERR);
	sq_srq(sq, 8);
	for (round = 0; round < 16; round++) {
		sq_ep(sq, 0);
		for (i = 0; sq_try_post(sq, i) == DAT_SUCCESS; i++)
			;
		sq_expect_counts(sq, 8, 8, "filled up");
		seq = fake_ib_srq_take(sq->env.qp);	/* this one is never seen again */
		KUNIT_EXPECT_GE(test, seq, 0);
		for (i = 0; i < 7; i++)
			KUNIT_EXPECT_EQ(test, fake_ib_recv(sq->env.qp, 1, false), 0);
		for (i = 0; kd_next(sq->env.recv, &event); i++)
			;
		KUNIT_EXPECT_EQ(test, i, 7);
		sq_ep_free(sq, 0);
		sq_settle();
		sq_expect_counts(sq, 0, 0, "reserve");
	}
	/* beyond the reserve there are fewer, and never too many for the device */
	for (; round < 24; round++) {
		sq_ep(sq, 0);
		for (i = 0; sq_try_post(sq, i) == DAT_SUCCESS; i++)
			;
		KUNIT_EXPECT_LE(test, i, 8);
		fake_ib_srq_take(sq->env.qp);
		while (!fake_ib_recv(sq->env.qp, 1, false))
			;
		while (kd_next(sq->env.recv, &event))
			;
		sq_ep_free(sq, 0);
		sq_settle();
	}
}

/* A lost buffer comes back after all, under the name of a QP long gone. */
static void sq_unknown_qp_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	struct ib_qp *names[] = { SQ_POISON, NULL, (struct ib_qp *)8, ERR_PTR(-1), NULL };
	int i, status;

	sq_srq(sq, 8);
	sq_ep(sq, 0);
	names[4] = (struct ib_qp *)((unsigned long)sq->env.qp ^ 0x40);
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		for (status = 0; status < 2; status++) {
			int seq;

			sq_post(sq, 0, 2);
			seq = fake_ib_srq_take(sq->env.qp);
			KUNIT_EXPECT_EQ(test, fake_ib_srq_finish_as(sq->env.qp, seq, status ?
								    IB_WC_WR_FLUSH_ERR :
								    IB_WC_SUCCESS, names[i]), 0);
			/* no event, no harm to anybody, and the buffer is free */
			KD_EXPECT_EMPTY(test, sq->env.recv);
			sq_expect_counts(sq, 1, 1, "unknown QP");
			KUNIT_EXPECT_EQ(test, fake_ib_recv(sq->env.qp, 2, false), 0);
			sq_expect(sq, sq->env.recv, 0, 1, DAT_DTO_SUCCESS, 2);
			KUNIT_EXPECT_EQ(test, (int)READ_ONCE(sq->env.kep->state),
					(int)DAT_EP_STATE_CONNECTED);
		}
	}
	KD_EXPECT_EMPTY(test, sq->env.conn);
}

/* The memory of a QP is used for the next one: completions go to the right EP. */
static void sq_address_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	struct ib_qp *seen[32];
	int round, i, reused = 0, n = 0;

	fake_ib_taken(sq->env.dev, FAKE_IB_TAKEN_AT_DESTROY);
	fake_ib_last_wqe(sq->env.dev, FAKE_IB_LAST_WQE_AT_ERR);
	sq_srq(sq, 8);
	for (round = 0; round < ARRAY_SIZE(seen); round++) {
		sq_ep(sq, 0);
		for (i = 0; i < n; i++)
			if (seen[i] == sq->env.qp)
				break;
		if (i < n)
			reused++;
		else
			seen[n++] = sq->env.qp;
		sq_post(sq, 10 * round, 3);
		KUNIT_EXPECT_EQ(test, fake_ib_recv(sq->env.qp, 1, false), 0);
		sq_expect(sq, sq->env.recv, 0, 10 * round, DAT_DTO_SUCCESS, 1);
		/* one is in its hands when it goes; it comes back while it is destroyed */
		KUNIT_EXPECT_GE(test, fake_ib_srq_take(sq->env.qp), 0);
		kd_end(&sq->env, DAT_CONNECTION_EVENT_DISCONNECTED);
		kd_expect_end(&sq->env);
		sq_expect(sq, sq->env.recv, 0, 10 * round + 1, DAT_DTO_ERR_FLUSHED, 0);
		sq_ep_free(sq, 0);
		/* the third is for the next */
		sq_ep(sq, 1);
		KUNIT_EXPECT_EQ(test, fake_ib_recv(sq->env.qp, 1, false), 0);
		sq_expect(sq, sq->env.recv, 1, 10 * round + 2, DAT_DTO_SUCCESS, 1);
		sq_ep_free(sq, 1);
		sq_expect_counts(sq, 0, 0, "nothing left");
	}
	kunit_info(test, "%d of %d addresses used again", reused, round);
	if (!IS_ENABLED(CONFIG_KASAN))
		KUNIT_EXPECT_GT(test, reused, 0);
}

/* The order of the device's calls when an EP with an SRQ ends. */
static int sq_find(struct sq *sq, int from, enum fake_ib_verb verb, const void *obj)
{
	const struct fake_ib_step *step;

	for (; (step = fake_ib_trace(sq->env.dev, from)); from++)
		if (step->verb == verb && step->obj == obj)
			return from;
	return -1;
}

static unsigned long sq_end_trace(struct sq *sq)
{
	struct kunit *test = sq->env.test;
	struct ib_cq *cq = sq->env.qp->recv_cq;
	struct ib_qp *qp = sq->env.qp;
	const struct fake_ib_step *err, *gone;
	int modify, poll, destroy, again;

	KUNIT_ASSERT_EQ(test, fake_ib_trace_start(sq->env.dev), 0);
	kd_end(&sq->env, DAT_CONNECTION_EVENT_DISCONNECTED);
	KUNIT_EXPECT_EQ(test, kd_expect_end(&sq->env), (u32)DAT_CONNECTION_EVENT_DISCONNECTED);
	modify = sq_find(sq, 0, FAKE_IB_MODIFY_QP, qp);
	KUNIT_ASSERT_GE(test, modify, 0);
	err = fake_ib_trace(sq->env.dev, modify);
	KUNIT_EXPECT_EQ(test, err->arg, (int)IB_QPS_ERR);
	poll = sq_find(sq, modify, FAKE_IB_POLL_CQ, cq);
	destroy = sq_find(sq, modify, FAKE_IB_DESTROY, qp);
	KUNIT_ASSERT_GE(test, poll, 0);
	KUNIT_ASSERT_GE(test, destroy, 0);
	KUNIT_EXPECT_LT(test, poll, destroy);
	again = sq_find(sq, destroy, FAKE_IB_POLL_CQ, cq);
	KUNIT_ASSERT_GE(test, again, 0);
	/* polled until it was empty, before the end was told */
	while (again >= 0 && fake_ib_trace(sq->env.dev, again)->arg)
		again = sq_find(sq, again + 1, FAKE_IB_POLL_CQ, cq);
	KUNIT_EXPECT_GE(test, again, 0);
	/* nothing is posted to it any more but the marker, before it is gone */
	KUNIT_EXPECT_EQ(test, sq_find(sq, destroy, FAKE_IB_POST_SEND, qp), -1);
	KUNIT_EXPECT_EQ(test, sq_find(sq, modify, FAKE_IB_POST_RECV, qp), -1);
	gone = fake_ib_trace(sq->env.dev, destroy);
	return gone->when - err->when;
}

static void sq_teardown_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	unsigned long ticks, best = ULONG_MAX;
	int kind, i;

	sq_srq(sq, 8);
	sq_post(sq, 0, 8);
	for (kind = 0; kind < 3; kind++) {
		fake_ib_taken(sq->env.dev, kind);
		/* a device that says when it is done is not waited for */
		fake_ib_last_wqe(sq->env.dev, FAKE_IB_LAST_WQE_AT_ERR);
		for (i = 0; i < 5; i++) {
			sq_ep(sq, 0);
			ticks = sq_end_trace(sq);
			best = min(best, ticks);
			sq_ep_free(sq, 0);
		}
		/* one that never does is: for 100 ms, and no longer than need be */
		fake_ib_last_wqe(sq->env.dev, FAKE_IB_LAST_WQE_NEVER);
		sq_ep(sq, 0);
		ticks = sq_end_trace(sq);
		KUNIT_EXPECT_GE(test, ticks, (unsigned long)HZ / 10 - 1);
		KUNIT_EXPECT_LT(test, ticks, 4UL * HZ);
		sq_ep_free(sq, 0);
	}
	KUNIT_EXPECT_LT(test, best, (unsigned long)HZ / 10 - 1);
	sq_expect_counts(sq, 8, 8, "nobody took one");
	/* a word that comes after the end harms nobody */
	sq_ep(sq, 0);
	fake_ib_qp_event(sq->env.qp, IB_EVENT_QP_LAST_WQE_REACHED);
	KUNIT_EXPECT_EQ(test, fake_ib_recv(sq->env.qp, 1, false), 0);
	sq_expect(sq, sq->env.recv, 0, 0, DAT_DTO_SUCCESS, 1);
	KUNIT_EXPECT_EQ(test, (int)READ_ONCE(sq->env.kep->state), (int)DAT_EP_STATE_CONNECTED);
}

/* Unread completions when an EP is freed or reset: dropped, buffers free. */
static void sq_drop_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	struct ib_qp *other;
	int how, i;

	sq_srq(sq, 12);
	other = sq_ep(sq, 1);
	for (how = 0; how < 3; how++) {
		sq_ep(sq, 0);
		sq_post(sq, 0, 8);
		for (i = 0; i < 3; i++)
			KUNIT_EXPECT_EQ(test, fake_ib_recv(sq->env.qp, i, false), 0);
		KUNIT_EXPECT_EQ(test, fake_ib_recv(other, 3, false), 0);
		if (how == 1)		/* some are in the store by now */
			sq_expect_counts(sq, 4, 8, "in the store");
		if (how == 2) {
			kd_end(&sq->env, DAT_CONNECTION_EVENT_DISCONNECTED);
			kd_expect_end(&sq->env);
			KD_EXPECT_OK(test, dat_ep_reset(sq->env.ep));
			sq->eps[0].qp = fake_ib_newest_qp(sq->env.dev);
		} else {
			sq_ep_free(sq, 0);
		}
		sq_settle();
		sq_expect_counts(sq, 4, 5, "dropped");
		sq_expect(sq, sq->env.recv, 1, 3, DAT_DTO_SUCCESS, 3);
		KD_EXPECT_EMPTY(test, sq->env.recv);
		for (i = 4; i < 8; i++) {
			KUNIT_EXPECT_EQ(test, fake_ib_recv(other, i, false), 0);
			sq_expect(sq, sq->env.recv, 1, i, DAT_DTO_SUCCESS, i);
		}
		sq_expect_counts(sq, 0, 0, "all used");
	}
	/* reset has kept the SRQ */
	sq_use(sq, 0);
	kd_connect(&sq->env);
	sq_post(sq, 70, 1);
	KUNIT_EXPECT_EQ(test, fake_ib_recv(sq->env.qp, 9, false), 0);
	sq_expect(sq, sq->env.recv, 0, 70, DAT_DTO_SUCCESS, 9);
}

static void sq_unplug_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	DAT_SRQ_PARAM param;
	int i;

	sq_srq(sq, 8);
	sq_ep(sq, 0);
	sq_ep(sq, 1);
	sq_post(sq, 0, 6);
	KUNIT_EXPECT_EQ(test, fake_ib_recv(sq->eps[0].qp, 1, false), 0);
	KUNIT_EXPECT_GE(test, fake_ib_srq_take(sq->eps[1].qp), 0);
	fake_ib_unplug(sq->env.dev);
	sq->ib = NULL;
	KD_EXPECT_RET(test, sq_try_post(sq, 9), DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	KD_EXPECT_RET(test, dat_srq_resize(sq->srq, 100), DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	KD_EXPECT_OK(test, dat_srq_query(sq->srq, DAT_SRQ_FIELD_ALL, &param));
	KD_EXPECT_OK(test, dat_srq_set_lw(sq->srq, 0));
	/* what had arrived is still told */
	sq_expect(sq, sq->env.recv, 0, 0, DAT_DTO_SUCCESS, 1);
	for (i = 0; i < 2; i++)
		sq_ep_free(sq, i);
	sq_srq_free(sq);
}

/* ------------------------------------------------------------------ */
/* The ERROR state                                                      */

static void sq_error_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	DAT_SRQ_PARAM param;
	unsigned int posted;
	DAT_EVENT event;
	int i;

	sq_srq(sq, 8);
	sq_ep(sq, 0);
	sq_post(sq, 0, 3);
	KUNIT_EXPECT_EQ(test, fake_ib_recv(sq->env.qp, 1, false), 0);
	fake_ib_srq_event(sq->ib, IB_EVENT_SRQ_ERR);
	KUNIT_EXPECT_EQ(test, sq_async(sq, sq->srq, DAT_SRQ_TRANSFER_TO_ERROR), 1);
	sq_counts(sq, &param);
	KUNIT_EXPECT_EQ(test, (int)param.srq_state, (int)DAT_SRQ_STATE_ERROR);
	/* posts are accepted, reach nobody, and count */
	posted = fake_ib_srq_posted(sq->ib);
	for (i = 0; i < 5; i++)
		KD_EXPECT_OK(test, sq_try_post(sq, 10 + i));
	KD_EXPECT_RET(test, sq_try_post(sq, 50), DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ);
	KUNIT_EXPECT_EQ(test, fake_ib_srq_posted(sq->ib), posted);
	/* the checks are the same */
	KD_EXPECT_RET(test, dat_srq_post_recv(sq->srq, -1, NULL, (DAT_DTO_COOKIE) {}),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	/* what had arrived is told */
	sq_expect(sq, sq->env.recv, 0, 0, DAT_DTO_SUCCESS, 1);
	KD_EXPECT_EMPTY(test, sq->env.recv);
	sq_counts(sq, &param);
	KUNIT_EXPECT_EQ(test, (int)param.outstanding_dto_count, 7);
	/* a connection that needs a buffer breaks, as the device says */
	fake_ib_qp_event(sq->env.qp, IB_EVENT_QP_FATAL);
	KUNIT_EXPECT_EQ(test, kd_expect_end(&sq->env), (u32)DAT_CONNECTION_EVENT_BROKEN);
	KUNIT_EXPECT_TRUE(test, kd_next(sq->env.async, &event));
	KUNIT_EXPECT_EQ(test, (u32)event.event_number, (u32)DAT_ASYNC_ERROR_EP_BROKEN);
	/* the limit event of the device is none of the consumer's business */
	fake_ib_srq_event(sq->ib, IB_EVENT_SRQ_LIMIT_REACHED);
	KUNIT_EXPECT_EQ(test, sq_async(sq, NULL, -1), 0);
	KD_EXPECT_RET(test, dat_srq_free(sq->srq), DAT_INVALID_STATE,
		      DAT_INVALID_STATE_SRQ_IN_USE);
	sq_ep_free(sq, 0);
	sq_srq_free(sq);
	KD_EXPECT_EMPTY(test, sq->env.recv);
}

/* ------------------------------------------------------------------ */
/* Watermarks                                                           */

/*
 * Every low watermark with every number of buffers: the event is due at the
 * first moment at which fewer are there, and never again.
 */
static void sq_low_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	int low, n, left, fired;
	struct ib_qp *qp;
	DAT_EVENT event;

	sq_srq(sq, 5);
	qp = sq_ep(sq, 0);
	for (n = 0; n <= 5; n++) {
		for (low = 0; low <= 5; low++) {
			sq_post(sq, 0, n);
			KD_EXPECT_OK(test, dat_srq_set_lw(sq->srq, low));
			fired = sq_async(sq, sq->srq, DAT_SRQ_LOW_WATERMARK_EVENT);
			KUNIT_EXPECT_EQ_MSG(test, fired, n < low, "%d posted, mark %d", n, low);
			for (left = n - 1; left >= 0; left--) {
				KUNIT_EXPECT_EQ(test, fake_ib_recv(qp, 1, false), 0);
				fired = sq_async(sq, sq->srq, DAT_SRQ_LOW_WATERMARK_EVENT);
				KUNIT_EXPECT_EQ_MSG(test, fired, n >= low && left == low - 1,
						    "%d posted, mark %d, %d left", n, low, left);
			}
			while (kd_next(sq->env.recv, &event))
				;
		}
	}
	/* filled and emptied again: once is enough, until it is set anew */
	KD_EXPECT_OK(test, dat_srq_set_lw(sq->srq, 2));
	KUNIT_EXPECT_EQ(test, sq_async(sq, sq->srq, DAT_SRQ_LOW_WATERMARK_EVENT), 1);
	for (n = 0; n < 3; n++) {
		sq_post(sq, 0, 3);
		while (!fake_ib_recv(qp, 1, false))
			;
		while (kd_next(sq->env.recv, &event))
			;
		KUNIT_EXPECT_EQ(test, sq_async(sq, sq->srq, DAT_SRQ_LOW_WATERMARK_EVENT), 0);
	}
	for (n = 0; n < 3; n++) {
		KD_EXPECT_OK(test, dat_srq_set_lw(sq->srq, 2));
		KUNIT_EXPECT_EQ(test, sq_async(sq, sq->srq, DAT_SRQ_LOW_WATERMARK_EVENT), 1);
	}
}

static void sq_low_args_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	DAT_SRQ_PARAM param;

	sq_srq(sq, 5);
	KD_EXPECT_RET(test, dat_srq_set_lw(NULL, 1), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	KD_EXPECT_RET(test, dat_srq_set_lw(sq->srq, 6), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	KD_EXPECT_RET(test, dat_srq_set_lw(sq->srq, -1), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	KD_EXPECT_RET(test, dat_srq_set_lw(sq->srq, INT_MIN), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG2);
	KUNIT_EXPECT_EQ(test, sq_async(sq, NULL, -1), 0);
	/* refused ones have not touched the one that was set */
	sq_post(sq, 0, 5);
	KD_EXPECT_OK(test, dat_srq_set_lw(sq->srq, 5));
	KD_EXPECT_RET(test, dat_srq_set_lw(sq->srq, 6), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	sq_counts(sq, &param);
	KUNIT_EXPECT_EQ(test, (int)param.low_watermark, 5);
	sq_ep(sq, 0);
	KUNIT_EXPECT_EQ(test, fake_ib_recv(sq->env.qp, 1, false), 0);
	KUNIT_EXPECT_EQ(test, sq_async(sq, sq->srq, DAT_SRQ_LOW_WATERMARK_EVENT), 1);
	sq_ep_free(sq, 0);
	sq_srq_free(sq);
	/* at creation: the queue is empty, so the event is due at once */
	KD_ASSERT_OK(test, sq_create(sq, 5, 1, 3, &sq->srq));
	sq_counts(sq, &param);
	KUNIT_EXPECT_EQ(test, (int)param.low_watermark, 3);
	KUNIT_EXPECT_EQ(test, sq_async(sq, sq->srq, DAT_SRQ_LOW_WATERMARK_EVENT), 1);
}

/* The mark is noticed wherever completions go: upcalls, no upcalls, no EVD. */
static void sq_low_evd_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	DAT_EVD_HANDLE evds[4] = { sq->env.recv, DAT_HANDLE_NULL };
	struct kd_upcalls *up;
	DAT_EP_ATTR attr;
	int i, k, fired;

	up = kd_upcalls_on(&sq->env, &evds[2], DAT_EVD_DTO_FLAG);
	up = kd_upcalls_on(&sq->env, &evds[3], DAT_EVD_DTO_FLAG);
	for (i = 0; i < ARRAY_SIZE(evds); i++) {
		sq_srq(sq, 4);
		kd_attr(&attr);
		if (i == 3)	/* with upcalls for solicited messages only */
			attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
		sq_ep_on(sq, 0, evds[i], &attr);
		kd_connect(&sq->env);
		sq_post(sq, 0, 4);
		KD_EXPECT_OK(test, dat_srq_set_lw(sq->srq, 3));
		msleep(10);
		KUNIT_EXPECT_EQ(test, sq_async(sq, NULL, -1), 0);
		fake_ib_recv(sq->env.qp, 1, false);
		fake_ib_recv(sq->env.qp, 1, false);
		for (k = 0, fired = 0; k < 1000 && !fired; k++)
			fired = sq_async(sq, sq->srq, DAT_SRQ_LOW_WATERMARK_EVENT);
		KUNIT_EXPECT_EQ_MSG(test, fired, 1, "EVD %d", i);
		sq_ep_free(sq, 0);
		sq_srq_free(sq);
	}
	KUNIT_EXPECT_EQ(test, READ_ONCE(up->n) <= 2, true);
	KD_EXPECT_OK(test, dat_evd_free(evds[2]));
	KD_EXPECT_OK(test, dat_evd_free(evds[3]));
}

/* Every pair of high watermarks with every number of buffers held. */
static void sq_high_test(struct kunit *test)
{
	static const DAT_COUNT marks[] = { DAT_WATERMARK_INFINITE, 0, 1, 2, 3, 4 };
	struct sq *sq = sq_open(test, NULL);
	int s, h, held, soft, hard;
	DAT_EVENT event;
	bool up;

	fake_ib_last_wqe(sq->env.dev, FAKE_IB_LAST_WQE_AT_ERR);
	sq_srq(sq, 8);
	for (s = 0; s < ARRAY_SIZE(marks); s++) {
		for (h = 0; h < ARRAY_SIZE(marks); h++) {
			soft = marks[s];
			hard = marks[h];
			sq_ep(sq, 0);
			while (sq_try_post(sq, 0) == DAT_SUCCESS)
				;
			KD_EXPECT_OK(test, dat_ep_set_watermark(sq->env.ep, soft, hard));
			KUNIT_EXPECT_EQ(test, sq_async(sq, NULL, -1), 0);
			up = true;
			for (held = 1; held <= 4 && up; held++) {
				KUNIT_EXPECT_EQ(test, fake_ib_recv(sq->env.qp, 1, false), 0);
				KUNIT_EXPECT_EQ_MSG(test, sq_async(sq, sq->env.ep,
						    DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT),
						    soft >= 0 && held == soft + 1,
						    "soft %d, hard %d, %d held", soft, hard, held);
				if (hard >= 0 && held > hard) {
					KUNIT_EXPECT_EQ(test, kd_expect_end(&sq->env),
							(u32)DAT_CONNECTION_EVENT_BROKEN);
					up = false;
				} else {
					KD_EXPECT_EMPTY(test, sq->env.conn);
				}
			}
			KUNIT_EXPECT_EQ_MSG(test, up, hard < 0 || hard >= 4, "hard %d", hard);
			sq_ep_free(sq, 0);
			while (kd_next(sq->env.recv, &event))
				;
		}
	}
}

/* Once per setting, at once when it is exceeded already; down again counts too. */
static void sq_high_again_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	DAT_EVENT event;
	int i;

	sq_srq(sq, 8);
	sq_ep(sq, 0);
	sq_post(sq, 0, 8);
	for (i = 0; i < 3; i++)
		fake_ib_recv(sq->env.qp, 1, false);
	KUNIT_EXPECT_EQ(test, sq_async(sq, NULL, -1), 0);
	for (i = 0; i < 3; i++) {
		/* three are held */
		KD_EXPECT_OK(test, dat_ep_set_watermark(sq->env.ep, i, DAT_WATERMARK_INFINITE));
		KUNIT_EXPECT_EQ(test, sq_async(sq, sq->env.ep, DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT),
				1);
		KUNIT_EXPECT_EQ(test, sq_async(sq, NULL, -1), 0);
	}
	KD_EXPECT_OK(test, dat_ep_set_watermark(sq->env.ep, 3, DAT_WATERMARK_INFINITE));
	KUNIT_EXPECT_EQ(test, sq_async(sq, NULL, -1), 0);
	/* replaced before it fired */
	KD_EXPECT_OK(test, dat_ep_set_watermark(sq->env.ep, 4, 5));
	fake_ib_recv(sq->env.qp, 1, false);
	KUNIT_EXPECT_EQ(test, sq_async(sq, NULL, -1), 0);
	KD_EXPECT_OK(test, dat_ep_set_watermark(sq->env.ep, 4, 5));
	/* taken away and held again: over it for the first time */
	while (kd_next(sq->env.recv, &event))
		;
	for (i = 0; i < 4; i++)
		fake_ib_recv(sq->env.qp, 1, false);
	KUNIT_EXPECT_EQ(test, sq_async(sq, NULL, -1), 0);
	sq_post(sq, 0, 2);
	fake_ib_recv(sq->env.qp, 1, false);
	KUNIT_EXPECT_EQ(test, sq_async(sq, sq->env.ep, DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT), 1);
	KD_EXPECT_EMPTY(test, sq->env.conn);
	fake_ib_recv(sq->env.qp, 1, false);
	KUNIT_EXPECT_EQ(test, kd_expect_end(&sq->env), (u32)DAT_CONNECTION_EVENT_BROKEN);
	KUNIT_EXPECT_EQ(test, sq_async(sq, NULL, -1), 0);
	/* legal in DISCONNECTED, too, with buffers nobody has asked for */
	KD_EXPECT_OK(test, dat_ep_set_watermark(sq->env.ep, 1, 1));
	KUNIT_EXPECT_EQ(test, sq_async(sq, sq->env.ep, DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT), 1);
	KD_EXPECT_EMPTY(test, sq->env.conn);
	sq_ep_free(sq, 0);

	/* the hard one, set while it is exceeded */
	sq_ep(sq, 0);
	sq_post(sq, 0, 2);
	fake_ib_recv(sq->env.qp, 1, false);
	fake_ib_recv(sq->env.qp, 1, false);
	KD_EXPECT_OK(test, dat_ep_set_watermark(sq->env.ep, DAT_WATERMARK_INFINITE, 1));
	KUNIT_EXPECT_EQ(test, kd_expect_end(&sq->env), (u32)DAT_CONNECTION_EVENT_BROKEN);
	KUNIT_EXPECT_EQ(test, sq_async(sq, NULL, -1), 0);
}

static void sq_high_args_test(struct kunit *test)
{
	static const DAT_COUNT bad[] = { -2, -3, INT_MIN };
	struct sq *sq = sq_open(test, NULL);
	DAT_EP_HANDLE plain;
	DAT_EP_ATTR attr;
	DAT_EP_PARAM param;
	int i;

	sq_srq(sq, 4);
	sq_ep_on(sq, 0, sq->env.recv, NULL);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		KD_EXPECT_RET(test, dat_ep_set_watermark(sq->env.ep, bad[i], 1),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		KD_EXPECT_RET(test, dat_ep_set_watermark(sq->env.ep, 1, bad[i]),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	}
	KD_EXPECT_RET(test, dat_ep_set_watermark(NULL, 1, 1), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_EP);
	KD_EXPECT_RET(test, dat_ep_set_watermark(sq->srq, 1, 1), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_EP);
	KD_EXPECT_OK(test, dat_ep_query(sq->env.ep, DAT_EP_FIELD_ALL, &param));
	KUNIT_EXPECT_EQ(test, (int)param.ep_attr.srq_soft_hw, (int)DAT_WATERMARK_INFINITE);
	/* before the connection, and with it */
	KD_EXPECT_OK(test, dat_ep_set_watermark(sq->env.ep, 2, 3));
	KD_EXPECT_OK(test, dat_ep_query(sq->env.ep, DAT_EP_FIELD_ALL, &param));
	KUNIT_EXPECT_EQ(test, (int)param.ep_attr.srq_soft_hw, 2);
	kd_connect(&sq->env);
	sq_post(sq, 0, 4);
	for (i = 0; i < 3; i++)
		fake_ib_recv(sq->env.qp, 1, false);
	KUNIT_EXPECT_EQ(test, sq_async(sq, sq->env.ep, DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT), 1);
	fake_ib_recv(sq->env.qp, 1, false);
	KUNIT_EXPECT_EQ(test, kd_expect_end(&sq->env), (u32)DAT_CONNECTION_EVENT_BROKEN);
	/* an EP without SRQ has no such marks */
	kd_attr(&attr);
	KD_ASSERT_OK(test, dat_ep_create(sq->env.ia, sq->env.pz, sq->env.recv, sq->env.req,
					 sq->env.conn, &attr, &plain));
	KD_EXPECT_RET(test, dat_ep_set_watermark(plain, 1, 1), DAT_MODEL_NOT_SUPPORTED,
		      DAT_NO_SUBTYPE);
	KD_EXPECT_OK(test, dat_ep_free(plain));
}

/* The soft one can come with the attributes. */
static void sq_attr_soft_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	DAT_EP_ATTR attr;
	int i;

	sq_srq(sq, 8);
	kd_attr(&attr);
	attr.srq_soft_hw = 2;
	sq_ep_on(sq, 0, sq->env.recv, &attr);
	kd_connect(&sq->env);
	sq_post(sq, 0, 8);
	for (i = 1; i <= 5; i++) {
		fake_ib_recv(sq->env.qp, 1, false);
		KUNIT_EXPECT_EQ_MSG(test, sq_async(sq, sq->env.ep,
						   DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT),
				    i == 3, "%d held", i);
	}
	KD_EXPECT_EMPTY(test, sq->env.conn);
}

/* ------------------------------------------------------------------ */

/* dat_ep_recv_query, with and without an SRQ. */
static void sq_recv_query_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(&sq->env, KD_RW, 0, 8);
	DAT_COUNT n, span;
	DAT_EVENT event;
	int i, with;

	for (with = 0; with < 2; with++) {
		if (with) {
			sq_srq(sq, 8);
			sq_ep(sq, 0);
			sq_post(sq, 0, 8);
		} else {
			kd_ep(&sq->env, NULL);
			for (i = 0; i < 8; i++) {
				KD_EXPECT_OK(test, dat_ep_recv_query(sq->env.ep, &n, &span));
				KUNIT_EXPECT_EQ(test, (int)n, i);
				KUNIT_EXPECT_GE(test, (int)span, (int)n);
				KD_EXPECT_OK(test, kd_post(sq->env.ep, KD_RECV, 1, &iov, 0, NULL,
							   0));
			}
			kd_connect(&sq->env);
		}
		for (i = 0; i <= 8; i++) {
			n = -7;
			span = -7;
			KD_EXPECT_OK(test, dat_ep_recv_query(sq->env.ep, &n, &span));
			KUNIT_EXPECT_EQ_MSG(test, (int)n, with ? i : 8 - i, "%d", i);
			KUNIT_EXPECT_GE(test, (int)span, (int)n);
			KD_EXPECT_OK(test, dat_ep_recv_query(sq->env.ep, &n, NULL));
			KD_EXPECT_OK(test, dat_ep_recv_query(sq->env.ep, NULL, &span));
			KUNIT_EXPECT_GE(test, (int)span, (int)n);
			KD_EXPECT_OK(test, dat_ep_recv_query(sq->env.ep, NULL, NULL));
			if (i < 8)
				fake_ib_recv(sq->env.qp, 1, false);
		}
		/* handed over: no longer held */
		for (i = 8; kd_next(sq->env.recv, &event); i--) {
			KD_EXPECT_OK(test, dat_ep_recv_query(sq->env.ep, &n, &span));
			KUNIT_EXPECT_EQ(test, (int)n, with ? i - 1 : 0);
		}
		KUNIT_EXPECT_EQ(test, i, 0);
		if (!with)
			kd_ep_free(&sq->env);
	}
	KD_EXPECT_RET(test, dat_ep_recv_query(NULL, &n, &span), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_EP);
	KD_EXPECT_RET(test, dat_ep_recv_query(sq->srq, &n, &span), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_EP);
}

/* ------------------------------------------------------------------ */

static void sq_resize_args_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	static const DAT_COUNT bad[] = { 0, -1, INT_MIN, INT_MAX };
	DAT_SRQ_PARAM param;
	DAT_IA_ATTR limits;
	int i;

	KD_ASSERT_OK(test, dat_ia_query(sq->env.ia, NULL, DAT_IA_FIELD_ALL, &limits, 0, NULL));
	sq_srq(sq, 8);
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		KD_EXPECT_RET(test, dat_srq_resize(sq->srq, bad[i]), DAT_INVALID_PARAMETER,
			      DAT_INVALID_ARG2);
	KD_EXPECT_RET(test, dat_srq_resize(sq->srq, limits.max_recv_per_srq + 1),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	KD_EXPECT_RET(test, dat_srq_resize(sq->env.ia, 8), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_SRQ);
	sq_counts(sq, &param);
	KUNIT_EXPECT_EQ(test, (int)param.max_recv_dtos, 8);
	/* unused: any size there is */
	KD_EXPECT_OK(test, dat_srq_resize(sq->srq, limits.max_recv_per_srq));
	sq_counts(sq, &param);
	KUNIT_EXPECT_GE(test, (int)param.max_recv_dtos, (int)limits.max_recv_per_srq);
	KD_EXPECT_OK(test, dat_srq_resize(sq->srq, 1));
	KD_EXPECT_OK(test, dat_srq_resize(sq->srq, 8));
}

/* Every size from every fill: never below what is outstanding or the watermark. */
static void sq_resize_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	int n, to, low, used, i;
	unsigned int created;
	DAT_SRQ_PARAM param;
	struct ib_qp *qp;
	DAT_EVENT event;
	DAT_RETURN ret;

	for (used = 0; used < 2; used++) {
		sq_srq(sq, 10);
		qp = sq_ep(sq, 0);
		created = fake_ib_count(sq->env.dev, FAKE_IB_CREATE_SRQ);
		for (n = 0; n <= 10; n += 2) {
			for (low = 0; low <= n; low += 3) {
				sq_post(sq, 0, n);
				/* the watermark: nothing arrives below it, so no event */
				KD_EXPECT_OK(test, dat_srq_set_lw(sq->srq, low));
				if (used && n) {
					/* arrived, not dequeued: outstanding all the same */
					KD_EXPECT_OK(test, dat_srq_set_lw(sq->srq, 0));
					fake_ib_recv(qp, 1, false);
				}
				for (to = 1; to <= 12; to++) {
					bool small = to < n || to < (used && n ? 0 : low);

					ret = dat_srq_resize(sq->srq, to);
					KUNIT_EXPECT_EQ_MSG(test, (u32)DAT_GET_TYPE(ret), small ?
							    (u32)DAT_INVALID_STATE : 0U,
							    "%d posted, low %d, to %d", n, low, to);
					sq_counts(sq, &param);
					if (ret == DAT_SUCCESS)
						KUNIT_EXPECT_GE(test, (int)param.max_recv_dtos, to);
					else
						KUNIT_EXPECT_EQ(test, (int)param.max_recv_dtos, 10);
					KUNIT_EXPECT_EQ(test, (int)param.outstanding_dto_count, n);
					KD_EXPECT_OK(test, dat_srq_resize(sq->srq, 10));
				}
				/* nothing was lost on the way */
				while (!fake_ib_recv(qp, 1, false))
					;
				for (i = 0; kd_next(sq->env.recv, &event); i++)
					KUNIT_EXPECT_EQ(test, event.event_data
							.dto_completion_event_data.user_cookie
							.as_64, (u64)i);
				KUNIT_EXPECT_EQ(test, i, n);
				KD_EXPECT_OK(test, dat_srq_set_lw(sq->srq, 0));
				sq_settle();
				while (kd_next(sq->env.async, &event))
					;
			}
		}
		KUNIT_EXPECT_EQ(test, fake_ib_count(sq->env.dev, FAKE_IB_CREATE_SRQ), created);
		sq_ep_free(sq, 0);
		sq_srq_free(sq);
	}
}

/* More than there is room for: only while nobody uses it; else it stays as it is. */
static void sq_resize_grow_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	struct fake_ib_live live;
	unsigned int wr, sge;
	DAT_SRQ_PARAM param;
	int to, posted, ep;
	DAT_RETURN ret;

	for (posted = 0; posted < 2; posted++) {
		for (ep = 0; ep < 2; ep++) {
			for (to = 9; to <= 200; to += to < 18 ? 4 : 90) {
				sq_srq(sq, 8);
				sq_post(sq, 0, posted);
				if (ep)
					sq_ep(sq, 0);
				ret = dat_srq_resize(sq->srq, to);
				sq_counts(sq, &param);
				sq->ib = fake_ib_newest_srq(sq->env.dev);
				fake_ib_srq_size(sq->ib, &wr, &sge);
				if (ret == DAT_SUCCESS) {
					KUNIT_EXPECT_GE(test, (int)param.max_recv_dtos, to);
					KUNIT_EXPECT_GE(test, (int)wr, to);
					sq_post(sq, posted, to - posted);
				} else {
					KD_EXPECT_RET(test, ret, DAT_INSUFFICIENT_RESOURCES,
						      DAT_RESOURCE_SRQ);
					KUNIT_EXPECT_EQ(test, (int)param.max_recv_dtos, 8);
					/* it must work where nothing is in the way */
					KUNIT_EXPECT_TRUE(test, posted || ep);
					sq_post(sq, posted, 8 - posted);
				}
				fake_ib_live(sq->env.dev, &live);
				KUNIT_EXPECT_EQ(test, live.srqs, 1);
				if (ep) {
					KUNIT_EXPECT_EQ(test, fake_ib_recv(sq->env.qp, 2, false),
							0);
					sq_expect(sq, sq->env.recv, 0, 0, DAT_DTO_SUCCESS, 2);
					sq_ep_free(sq, 0);
				}
				sq_srq_free(sq);
			}
		}
	}
	/* the device has no other one to give: nothing changes */
	sq_srq(sq, 8);
	fake_ib_fail(sq->env.dev, FAKE_IB_CREATE_SRQ, 1, -ENOMEM);
	ret = dat_srq_resize(sq->srq, 500);
	KUNIT_EXPECT_EQ(test, (u32)DAT_GET_TYPE(ret), (u32)DAT_INSUFFICIENT_RESOURCES);
	sq_counts(sq, &param);
	KUNIT_EXPECT_EQ(test, (int)param.max_recv_dtos, 8);
	sq_post(sq, 0, 8);
	sq_srq_free(sq);
	/* a watermark moves along */
	sq_srq(sq, 8);
	KD_EXPECT_OK(test, dat_srq_set_lw(sq->srq, 4));
	KUNIT_EXPECT_EQ(test, sq_async(sq, sq->srq, DAT_SRQ_LOW_WATERMARK_EVENT), 1);
	KD_EXPECT_OK(test, dat_srq_resize(sq->srq, 500));
	sq_counts(sq, &param);
	KUNIT_EXPECT_EQ(test, (int)param.low_watermark, 4);
	KUNIT_EXPECT_EQ(test, sq_async(sq, NULL, -1), 0);
}

/* ------------------------------------------------------------------ */
/* dat_ep_create_with_srq                                               */

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

/* ------------------------------------------------------------------ */
/* Everything at once                                                   */

struct sq_race {
	struct sq *sq;
	u64 posted;
	u64 wrong;
	u64 seen;
	u64 flushed;
};

static int sq_race_poster(void *arg)
{
	struct sq_race *race = arg;
	DAT_RETURN ret;
	int i = 0;

	while (!kthread_should_stop()) {
		ret = sq_try_post(race->sq, READ_ONCE(race->posted));
		if (ret == DAT_SUCCESS)
			WRITE_ONCE(race->posted, race->posted + 1);
		else if (DAT_GET_TYPE(ret) != DAT_INSUFFICIENT_RESOURCES)
			race->wrong++;
		if (ret != DAT_SUCCESS || !(++i % 8))
			usleep_range(50, 100);
	}
	return 0;
}

static int sq_race_device(void *arg)
{
	struct sq_race *race = arg;
	unsigned int i = 0;

	/* the first two EPs stay for the whole time */
	while (!kthread_should_stop())
		if (fake_ib_recv(race->sq->eps[i++ & 1].qp, 5, false) || !(i % 8))
			usleep_range(50, 100);
	return 0;
}

static void sq_race_take(struct sq_race *race)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;

	dto = &event.event_data.dto_completion_event_data;
	while (kd_next(race->sq->env.recv, &event)) {
		if (dto->status == DAT_DTO_SUCCESS)
			race->seen++;
		else if (dto->status == DAT_DTO_ERR_FLUSHED)
			race->flushed++;
		else
			race->wrong++;
	}
}

static int sq_race_consumer(void *arg)
{
	struct sq_race *race = arg;
	DAT_SRQ_PARAM param;

	while (!kthread_should_stop()) {
		sq_race_take(race);
		if (dat_srq_query(race->sq->srq, DAT_SRQ_FIELD_ALL, &param) != DAT_SUCCESS ||
		    param.available_dto_count > param.outstanding_dto_count ||
		    param.outstanding_dto_count > param.max_recv_dtos ||
		    param.available_dto_count < 0)
			race->wrong++;
		usleep_range(20, 60);
	}
	return 0;
}

static void sq_race_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	struct sq_race *race = kunit_kzalloc(test, sizeof(*race), GFP_KERNEL);
	struct task_struct *tasks[4];
	DAT_SRQ_PARAM param;
	DAT_EVENT event;
	int i, round;

	KUNIT_ASSERT_NOT_NULL(test, race);
	race->sq = sq;
	fake_ib_last_wqe(sq->env.dev, FAKE_IB_LAST_WQE_AT_ERR);
	sq_srq(sq, 32);
	sq_ep(sq, 0);
	sq_ep(sq, 1);
	tasks[0] = kthread_run(sq_race_poster, race, "kdapl_srq0");
	tasks[1] = kthread_run(sq_race_poster, race, "kdapl_srq1");
	tasks[2] = kthread_run(sq_race_device, race, "kdapl_srq2");
	tasks[3] = kthread_run(sq_race_consumer, race, "kdapl_srq3");
	/* others come, take a buffer or two, and go */
	for (round = 0; round < 20; round++) {
		i = 2 + round % 3;
		sq_ep(sq, i);
		fake_ib_recv(sq->eps[i].qp, 5, false);
		fake_ib_srq_take(sq->eps[i].qp);
		if (round & 1)
			kd_end(&sq->env, DAT_CONNECTION_EVENT_DISCONNECTED);
		dat_srq_set_lw(sq->srq, round % 8);
		dat_ep_set_watermark(sq->eps[0].ep, round % 8, DAT_WATERMARK_INFINITE);
		dat_srq_resize(sq->srq, 32 + round % 4);
		sq_ep_free(sq, i);
		while (kd_next(sq->env.conn, &event))
			;
		while (kd_next(sq->env.async, &event))
			;
	}
	for (i = 0; i < ARRAY_SIZE(tasks); i++)
		if (!IS_ERR(tasks[i]))
			kthread_stop(tasks[i]);
	sq_race_take(race);
	KUNIT_EXPECT_EQ(test, race->wrong, 0ULL);
	KUNIT_EXPECT_GT(test, race->seen, 0ULL);
	/* whatever went on: what is posted now arrives, all of it */
	sq_counts(sq, &param);
	KUNIT_EXPECT_EQ(test, (unsigned int)param.available_dto_count,
			fake_ib_srq_waiting(sq->ib));
	KUNIT_EXPECT_EQ(test, (int)param.outstanding_dto_count, (int)param.available_dto_count);
	while (!fake_ib_recv(sq->eps[0].qp, 5, false))
		;
	for (i = 0; kd_next(sq->env.recv, &event); i++)
		;
	KUNIT_EXPECT_EQ(test, i, (int)param.available_dto_count);
	sq_expect_counts(sq, 0, 0, "after the race");
	while (kd_next(sq->env.async, &event))
		;
}

static struct kunit_case srq_cases[] = {
	KD_CASE(sq_create_args_test, "SRQ-CR-04,SRQ-CR-02,GEN-09: arguments of create"),
	KD_CASE(sq_unsupported_test, "SRQ-CR-04: a device without SRQs"),
	KD_CASE(sq_create_fails_test, "SRQ-CR-04,GEN-07: the device has none to give"),
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
		"SRQ-POST-01,SRQ-POST-04,SRQ-POST-06,SRQ-POST-12,SRQ-CR-05: whose completion it is"),
	KD_CASE(sq_order_test, "SRQ-POST-13: order per connection"),
	KD_CASE(sq_notify_test,
		"SRQ-POST-05,SRQ-POST-07..09,EP-CREATE-15,FLAG-20,FLAG-07: which of them notify"),
	KD_CASE(sq_failure_test, "SRQ-POST-12,SRQ-POST-14,SRQ-POST-17,SRQ-POST-19: failures"),
	KD_CASE(sq_early_test, "SRQ-POST-18,FLUSH-07,EP-RQ-01: messages before ESTABLISHED"),
	KD_CASE(sq_no_overflow_test, "SRQ-POST-06,STAT-05: an EVD nobody dequeues"),
	KD_CASE(sq_null_evd_test, "SRQ-POST-06,EP-CREATE-03: EPs without recv EVD"),
	KD_CASE(sq_taken_test, "SRQ-POST-19,FLUSH-06: buffers in the hands of an EP that ends"),
	KD_CASE(sq_lost_test, "SRQ-POST-19,SRQ-CR-01: buffers that are lost with connections"),
	KD_CASE(sq_unknown_qp_test, "SRQ-POST-06: completions in the name of nobody"),
	KD_CASE(sq_address_test, "SRQ-POST-06: QPs at the address of an earlier one"),
	KD_CASE(sq_teardown_test, "SRQ-POST-19: the device's calls when an EP ends"),
	KD_CASE(sq_drop_test, "EP-CREATE-13,EP-RST-02,EP-FREE-03: unread completions at the end"),
	KD_CASE(sq_unplug_test, "EPSM-24,GEN-06: the device goes"),
	KD_CASE(sq_error_test, "SRQ-POST-15,SRQ-ERR-01: an SRQ in error"),
	KD_CASE(sq_low_test, "SRQ-LW-01,SRQ-LW-02,SIL-29: every low watermark"),
	KD_CASE(sq_low_args_test, "SRQ-LW-03,SRQ-CR-02: arguments of the low watermark"),
	KD_CASE(sq_low_evd_test, "SRQ-LW-01,SIL-29: the low watermark with every kind of EVD"),
	KD_CASE(sq_high_test, "EP-WM-02,EP-WM-03,EP-WM-05,EP-WM-06,SIL-29: every high watermark"),
	KD_CASE(sq_high_again_test, "EP-WM-01,EP-WM-02,EP-WM-04,EP-WM-06: set again"),
	KD_CASE(sq_high_args_test, "EP-WM-01,EP-WM-07: arguments of the high watermarks"),
	KD_CASE(sq_attr_soft_test, "EP-WM-02: the soft watermark of the attributes"),
	KD_CASE(sq_recv_query_test, "EP-RQ-01..03: buffers an EP holds"),
	KD_CASE(sq_resize_args_test, "SRQ-RSZ-03,SRQ-RSZ-02: arguments of resize"),
	KD_CASE(sq_resize_test, "SRQ-RSZ-01,SRQ-RSZ-02: every size from every fill"),
	KD_CASE(sq_resize_grow_test, "SRQ-RSZ-02: growth, or none"),
	KD_CASE(sq_ep_args_test, "EP-CREATE-13,EP-CREATE-04,EP-CREATE-05: arguments of EPs"),
	KD_CASE(sq_no_recv_test, "RECV-17,EP-CREATE-13: no Receives on the EP itself"),
	KD_CASE(sq_requests_test, "EP-CREATE-13,SEND-18: requests are as ever"),
	KD_CASE(sq_pz_test, "EP-CREATE-14,SRQ-CR-05,SRQ-CR-03: PZs that differ"),
	KD_CASE(sq_many_eps_test, "SRQ-CR-07: more EPs than there can be"),
	KD_CASE(sq_nth_verb_test, "GEN-06,GEN-07,EP-CREATE-09: verbs that fail"),
	KD_CASE(sq_race_test, "SRQ-POST-11,CTX-03,EP-POST-22: all of it at once"),
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
