// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The common ground of the suites on Shared Receive Queues, see kd_srq.h.
 */

#include "kd_srq.h"
#include "kd_upcall.h"

/* .init of a suite that works with an SRQ. */
int sq_init(struct kunit *test)
{
	struct sq *sq = kunit_kzalloc(test, sizeof(*sq), GFP_KERNEL);

	if (!sq)
		return -ENOMEM;
	sq->env.test = test;
	test->priv = &sq->env;
	return 0;
}

struct sq *sq_of(struct kunit *test)
{
	return container_of((struct kd_env *)test->priv, struct sq, env);
}

/* Make one of the EPs the one that the common helpers work with. */
struct ib_qp *sq_use(struct sq *sq, int i)
{
	sq->env.ep = sq->eps[i].ep;
	sq->env.kep = sq->eps[i].kep;
	sq->env.qp = sq->eps[i].qp;
	return sq->env.qp;
}

void sq_ep_free(struct sq *sq, int i)
{
	sq_use(sq, i);
	kd_ep_free(&sq->env);
	memset(&sq->eps[i], 0, sizeof(sq->eps[i]));
}

/* .exit of such a suite. */
void sq_exit(struct kunit *test)
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

/* End a round of a case, for sq_open() to begin the next one. */
void sq_again(struct kunit *test)
{
	struct sq *sq = sq_of(test);

	sq_exit(test);
	memset(sq, 0, sizeof(*sq));
	sq->env.test = test;
}

/* Everything but SRQ and EPs. */
struct sq *sq_open(struct kunit *test, const struct fake_ib_caps *caps)
{
	struct sq *sq;

	kd_open(test, caps);
	sq = sq_of(test);
	sq->mem = KD_WO;
	return sq;
}

DAT_RETURN sq_create(struct sq *sq, DAT_COUNT dtos, DAT_COUNT iov, DAT_COUNT low,
		     DAT_SRQ_HANDLE *srq)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = dtos, .max_recv_iov = iov, .low_watermark = low };

	return dat_srq_create(sq->env.ia, sq->env.pz, &attr, srq);
}

/* The SRQ of the case. */
void sq_srq(struct sq *sq, DAT_COUNT dtos)
{
	KD_ASSERT_OK(sq->env.test, sq_create(sq, dtos, 4, 0, &sq->srq));
	sq->ib = fake_ib_newest_srq(sq->env.dev);
	KUNIT_ASSERT_NOT_NULL(sq->env.test, sq->ib);
}

void sq_srq_free(struct sq *sq)
{
	KD_EXPECT_OK(sq->env.test, dat_srq_free(sq->srq));
	sq->srq = NULL;
	sq->ib = NULL;
}

/* An EP on PZ and EVDs of the environment; @attr may be NULL. */
DAT_RETURN sq_try_ep(struct sq *sq, const DAT_EP_ATTR *attr, DAT_EP_HANDLE *ep)
{
	struct kd_env *env = &sq->env;
	DAT_EP_ATTR usual;

	kd_attr(&usual);
	return dat_ep_create_with_srq(env->ia, env->pz, env->recv, env->req, env->conn, sq->srq,
				      attr ? attr : &usual, ep);
}

/* One of the EPs, unconnected. */
void sq_ep_on(struct sq *sq, int i, DAT_EVD_HANDLE recv, const DAT_EP_ATTR *attr)
{
	struct kunit *test = sq->env.test;
	struct sq_ep *ep = &sq->eps[i];

	swap(sq->env.recv, recv);
	KD_ASSERT_OK(test, sq_try_ep(sq, attr, &ep->ep));
	swap(sq->env.recv, recv);
	ep->qp = fake_ib_newest_qp(sq->env.dev);
	ep->kep = kdapl_obj_get(ep->ep, DAT_HANDLE_TYPE_EP);
	KUNIT_ASSERT_NOT_NULL(test, ep->qp);
	KUNIT_ASSERT_NOT_NULL(test, ep->kep);
	sq_use(sq, i);
}

/* One of the EPs, connected. */
struct ib_qp *sq_ep(struct sq *sq, int i)
{
	sq_ep_on(sq, i, sq->env.recv, NULL);
	kd_connect(&sq->env);
	return sq->eps[i].qp;
}

DAT_RETURN sq_try_post(struct sq *sq, u64 cookie)
{
	DAT_LMR_TRIPLET iov = kd_seg(&sq->env, sq->mem, 0, 64);
	DAT_DTO_COOKIE c = { .as_64 = cookie };

	return dat_srq_post_recv(sq->srq, 1, &iov, c);
}

/* Buffers with cookies that count up. */
void sq_post(struct sq *sq, u64 cookie, int n)
{
	while (n--)
		KD_EXPECT_OK(sq->env.test, sq_try_post(sq, cookie++));
}

void sq_expect_full(struct sq *sq)
{
	KD_EXPECT_RET(sq->env.test, sq_try_post(sq, 99), DAT_INSUFFICIENT_RESOURCES,
		      DAT_RESOURCE_SRQ);
}

/* Messages of this length arrive at one of the EPs. */
void sq_recv(struct sq *sq, int i, int n, u32 length)
{
	while (n--)
		KUNIT_EXPECT_EQ(sq->env.test, fake_ib_recv(sq->eps[i].qp, length, false), 0);
}

void sq_counts(struct sq *sq, DAT_SRQ_PARAM *param)
{
	memset(param, 0x5a, sizeof(*param));
	KD_EXPECT_OK(sq->env.test, dat_srq_query(sq->srq, DAT_SRQ_FIELD_ALL, param));
}

/* So many buffers are on the SRQ, so many the consumer does not have. */
void sq_expect_counts(struct sq *sq, int available, int outstanding, const char *what)
{
	DAT_SRQ_PARAM param;

	sq_counts(sq, &param);
	KUNIT_EXPECT_EQ_MSG(sq->env.test, (int)param.available_dto_count, available, "%s", what);
	KUNIT_EXPECT_EQ_MSG(sq->env.test, (int)param.outstanding_dto_count, outstanding, "%s",
			    what);
}

/* The next event of an EVD is this Receive, of this length if it succeeded. */
void sq_expect(struct sq *sq, DAT_EVD_HANDLE evd, int i, u64 cookie, int status, u32 length)
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

void sq_got(struct sq *sq, int i, u64 cookie, u32 length)
{
	sq_expect(sq, sq->env.recv, i, cookie, DAT_DTO_SUCCESS, length);
}

/* Let everything happen that is under way inside the provider: works that queue each other. */
void sq_settle(void)
{
	int i;

	for (i = 0; i < 3; i++) {
		rcu_barrier();
		flush_workqueue(kdapl_event_wq);
		flush_workqueue(kdapl_upcall_wq);
		flush_workqueue(kdapl_misc_wq);
	}
}

/* Take the asynchronous events that are there, all of them this one. Returns how many. */
int sq_async(struct sq *sq, DAT_HANDLE handle, int reason)
{
	const DAT_ASYNCH_ERROR_EVENT_DATA *data;
	struct kunit *test = sq->env.test;
	DAT_EVENT event;
	int n = 0;

	kd_settle(sq->env.recv);	/* its engine counts what has arrived */
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

int sq_low_events(struct sq *sq)
{
	return sq_async(sq, sq->srq, DAT_SRQ_LOW_WATERMARK_EVENT);
}

/* Those of the EP of the environment. */
int sq_soft_events(struct sq *sq)
{
	return sq_async(sq, sq->env.ep, DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT);
}
