// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Shared Receive Queues: who gets a message, who owns a buffer, what is counted,
 * and what happens to a queue whose connections come, break and go.
 *
 * The servers of several connections share an SRQ of adapter b. Clients never
 * have more under way than there are buffers, unless a case is about that: on
 * iWARP a message without a buffer ends its connection at once.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/slab.h>

#include "kdtest.h"

#define DTOS	20		/* buffers of the usual SRQ */
#define SLOT	256		/* bytes of a buffer */
#define SLOTS	128		/* the server's memory */

struct rig {
	struct kdt_env *env;
	DAT_SRQ_HANDLE srq;
	struct kdt_buf *to;	/* the server's memory, SLOT bytes at a time */
	struct kdt_buf *from;	/* the clients' */
};

static DAT_SRQ_ATTR srq_attr(DAT_COUNT dtos, DAT_COUNT iov, DAT_COUNT low)
{
	return (DAT_SRQ_ATTR) {
		.max_recv_dtos = dtos,
		.max_recv_iov = iov,
		.low_watermark = low,
	};
}

static struct rig *rig_new(struct kunit *test, DAT_COUNT dtos)
{
	struct rig *rig = kunit_kzalloc(test, sizeof(*rig), GFP_KERNEL);
	DAT_SRQ_ATTR attr = srq_attr(dtos, KDT_IOV, DAT_SRQ_LW_DEFAULT);

	KUNIT_ASSERT_NOT_NULL(test, rig);
	rig->env = kdt_env(test);
	KUNIT_ASSERT_EQ(test, (int)rig->env->b.prov.srq_supported, DAT_TRUE);
	KDT_OK(test, dat_srq_create(rig->env->b.h, rig->env->b.pz, &attr, &rig->srq));
	rig->to = kdt_buf_new(test, &rig->env->b, SLOTS * SLOT);
	rig->from = kdt_buf_new(test, &rig->env->a, SLOTS * SLOT);
	kdt_fill(rig->from->p, rig->from->len, 1);
	return rig;
}

static void ep_attr(struct rig *rig, DAT_EP_ATTR *attr, int recv_flags)
{
	kdt_attr(rig->env, attr);
	attr->max_recv_dtos = 0;
	attr->max_recv_iov = 9999;	/* EP-CREATE-13: not looked at */
	attr->recv_completion_flags = recv_flags;
}

/* A listener and two EPs; the server's Receives come from the SRQ. */
static struct kdt_pair *pair_unconnected(struct kunit *test, struct rig *rig, int recv_flags,
					 struct kdt_evd *recv)
{
	struct kdt_pair *pair = kunit_kzalloc(test, sizeof(*pair), GFP_KERNEL);
	struct kdt_ia *b = &rig->env->b;
	DAT_EP_ATTR attr;

	KUNIT_ASSERT_NOT_NULL(test, pair);
	kdt_ep_new(test, &pair->c, &rig->env->a, NULL);
	pair->s.ia = b;
	pair->s.recv = recv ?: kdt_evd_new(test, b, DAT_EVD_DTO_FLAG);
	pair->s.req = kdt_evd_new(test, b, DAT_EVD_DTO_FLAG);
	pair->s.conn = kdt_evd_new(test, b, DAT_EVD_CONNECTION_FLAG);
	ep_attr(rig, &attr, recv_flags);
	KDT_OK(test, dat_ep_create_with_srq(b->h, b->pz, pair->s.recv->h, pair->s.req->h,
					    pair->s.conn->h, rig->srq, &attr, &pair->s.h));
	pair->cr = kdt_evd_new(test, b, DAT_EVD_CR_FLAG);
	pair->port = kdt_new_port();
	KDT_OK(test, dat_psp_create(b->h, pair->port, pair->cr->h, DAT_PSP_CONSUMER_FLAG,
				    &pair->psp));
	return pair;
}

static struct kdt_pair *pair_up(struct kunit *test, struct rig *rig, int recv_flags,
				struct kdt_evd *recv)
{
	struct kdt_pair *pair = pair_unconnected(test, rig, recv_flags, recv);

	kdt_pair_connect(test, pair);
	return pair;
}

/* Receives nobody looks at unless the test does. */
static struct kdt_evd *quiet_evd(struct kunit *test, struct rig *rig)
{
	return kdt_evd_policy(test, &rig->env->b, DAT_EVD_DTO_FLAG, 2 * KDT_DTOS,
			      DAT_UPCALL_DISABLE);
}

static DAT_RETURN post(struct rig *rig, unsigned int slot, u64 cookie)
{
	DAT_LMR_TRIPLET iov = kdt_seg(rig->to, slot % SLOTS * SLOT, SLOT);

	return dat_srq_post_recv(rig->srq, 1, &iov, kdt_cookie(cookie));
}

static void post_many(struct kunit *test, struct rig *rig, unsigned int first, unsigned int n)
{
	unsigned int i;

	for (i = first; i < first + n; i++)
		KDT_OK(test, post(rig, i, i));
}

/* A message, and its Send has completed. */
static void message(struct kunit *test, struct rig *rig, struct kdt_pair *pair, u32 len)
{
	KDT_OK(test, kdt_send(&pair->c, rig->from, 0, len, 77, 0));
	kdt_dto(test, pair->c.req, &pair->c, 77, DAT_DTO_SEND, DAT_DTO_SUCCESS, len);
}

/* The next event of an EVD is a message for this EP; tells in which buffer. */
static u64 arrived(struct kunit *test, struct kdt_evd *evd, struct kdt_ep *ep, u32 len)
{
	DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;

	KUNIT_ASSERT_TRUE_MSG(test, kdt_get(evd, &event), "no message in time");
	KUNIT_ASSERT_EQ(test, (int)event.event_number, DAT_DTO_COMPLETION_EVENT);
	dto = &event.event_data.dto_completion_event_data;
	KUNIT_EXPECT_PTR_EQ(test, event.evd_handle, evd->h);
	KUNIT_EXPECT_PTR_EQ(test, dto->ep_handle, ep->h);
	KUNIT_EXPECT_EQ(test, (int)dto->operation, DAT_DTO_RECEIVE);
	KUNIT_ASSERT_EQ(test, (int)dto->status, DAT_DTO_SUCCESS);
	KUNIT_EXPECT_EQ(test, dto->transfered_length, len);
	return dto->user_cookie.as_64;
}

static void query(struct kunit *test, struct rig *rig, DAT_SRQ_PARAM *param)
{
	memset(param, 0, sizeof(*param));
	KDT_OK(test, dat_srq_query(rig->srq, DAT_SRQ_FIELD_ALL, param));
}

static DAT_COUNT limit_of(struct kunit *test, struct rig *rig)
{
	DAT_SRQ_PARAM param;

	query(test, rig, &param);
	return param.max_recv_dtos;
}

/* The counts are these, now. */
static void counts(struct kunit *test, struct rig *rig, DAT_COUNT available, DAT_COUNT outstanding)
{
	DAT_SRQ_PARAM param;

	query(test, rig, &param);
	KUNIT_EXPECT_EQ(test, param.available_dto_count, available);
	KUNIT_EXPECT_EQ(test, param.outstanding_dto_count, outstanding);
}

/* The counts will be these: messages are on their way. */
static void counts_become(struct kunit *test, struct rig *rig, DAT_COUNT available,
			  DAT_COUNT outstanding)
{
	unsigned long end = jiffies + KDT_WAIT;
	DAT_SRQ_PARAM param;

	do {
		query(test, rig, &param);
		if (param.available_dto_count == available &&
		    param.outstanding_dto_count == outstanding)
			return;
		schedule_timeout_uninterruptible(1);
	} while (time_before(jiffies, end));
	KUNIT_EXPECT_EQ(test, param.available_dto_count, available);
	KUNIT_EXPECT_EQ(test, param.outstanding_dto_count, outstanding);
}

/* The next asynchronous event is this watermark's. */
static void watermark(struct kunit *test, struct rig *rig, DAT_HANDLE handle, int reason)
{
	DAT_ASYNCH_ERROR_EVENT_DATA *data;
	DAT_EVENT event;

	KUNIT_ASSERT_TRUE_MSG(test, kdt_dequeue(rig->env->b.async, &event),
			      "no asynchronous event in time");
	data = &event.event_data.asynch_error_event_data;
	KUNIT_EXPECT_EQ(test, (int)event.event_number, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR);
	KUNIT_EXPECT_PTR_EQ(test, data->dat_handle, handle);
	KUNIT_EXPECT_EQ(test, (int)data->reason, reason);
}

/* None is there; one that came late would be found by the next call. */
static void no_watermark(struct kunit *test, struct rig *rig)
{
	DAT_EVENT event;

	schedule_timeout_uninterruptible(3);
	KUNIT_EXPECT_TRUE(test, DAT_GET_TYPE(dat_evd_dequeue(rig->env->b.async, &event)) ==
				DAT_QUEUE_EMPTY);
}

static void low_event(struct kunit *test, struct rig *rig)
{
	watermark(test, rig, rig->srq, DAT_SRQ_LOW_WATERMARK_EVENT);
}

static void soft_event(struct kunit *test, struct rig *rig, struct kdt_pair *pair)
{
	watermark(test, rig, pair->s.h, DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT);
}

/* ---- create, query, free ---- */

static void create_arguments(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_ia *b = &env->b;
	struct kdt_evd *evd = kdt_evd_new(test, b, DAT_EVD_DTO_FLAG);
	DAT_SRQ_ATTR good = srq_attr(8, 1, DAT_SRQ_LW_DEFAULT), attr;
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_PZ_HANDLE pz, stale, foreign;
	DAT_SRQ_PARAM param = {};
	DAT_SRQ_HANDLE srq;
	DAT_IA_HANDLE ia;

	KDT_OK(test, dat_pz_create(b->h, &pz));
	KDT_OK(test, dat_pz_create(b->h, &stale));
	KDT_OK(test, dat_pz_free(stale));
	KDT_OK(test, dat_ia_open(kdt_ia_b, 8, &async, &ia));
	KDT_OK(test, dat_pz_create(ia, &foreign));
#define BAD_IA(ia) KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA,	\
			      dat_srq_create(ia, pz, &good, &srq))
#define BAD_PZ(zone) KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ,	\
			      dat_srq_create(b->h, zone, &good, &srq))
#define BAD_ATTR(dtos, iov, low)						\
do {										\
	attr = srq_attr(dtos, iov, low);					\
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,		\
		    dat_srq_create(b->h, pz, &attr, &srq));			\
} while (0)
	BAD_IA(DAT_HANDLE_NULL);
	BAD_IA((DAT_HANDLE)0x1234567);
	BAD_IA(pz);
	BAD_PZ(DAT_HANDLE_NULL);
	BAD_PZ((DAT_HANDLE)0x1234567);
	BAD_PZ(stale);
	BAD_PZ(foreign);
	BAD_PZ(evd->h);
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		    dat_srq_create(b->h, pz, NULL, &srq));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG4,
		    dat_srq_create(b->h, pz, &good, NULL));
	BAD_ATTR(0, 1, 0);
	BAD_ATTR(-1, 1, 0);
	BAD_ATTR(8, 0, 0);
	BAD_ATTR(8, -1, 0);
	BAD_ATTR(8, 1, -1);
	BAD_ATTR(8, 1, 9);
	BAD_ATTR(b->attr.max_recv_per_srq + 1, 1, 0);
	BAD_ATTR(INT_MAX, 1, 0);
	BAD_ATTR(8, b->attr.max_iov_segments_per_dto + 1, 0);
	BAD_ATTR(8, INT_MAX, 0);
	/* Handles are looked at first (GEN-10). */
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ,
		    dat_srq_create(b->h, stale, NULL, NULL));
	KDT_OK(test, dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	BAD_IA(ia);
	/* A refused create holds nothing. */
	KDT_OK(test, dat_pz_free(pz));

	KDT_OK(test, dat_pz_create(b->h, &pz));
	attr = good;
	KDT_OK(test, dat_srq_create(b->h, pz, &attr, &srq));
	KUNIT_EXPECT_TRUE(test, !memcmp(&attr, &good, sizeof(attr)));
	KDT_OK(test, dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &param));
	KUNIT_EXPECT_PTR_EQ(test, param.ia_handle, b->h);
	KUNIT_EXPECT_PTR_EQ(test, param.pz_handle, pz);
	KUNIT_EXPECT_EQ(test, (int)param.srq_state, DAT_SRQ_STATE_OPERATIONAL);
	KUNIT_EXPECT_GE(test, param.max_recv_dtos, 8);
	KUNIT_EXPECT_GE(test, param.max_recv_iov, 1);
	KUNIT_EXPECT_EQ(test, param.low_watermark, DAT_SRQ_LW_DEFAULT);
	KUNIT_EXPECT_EQ(test, param.available_dto_count, 0);
	KUNIT_EXPECT_EQ(test, param.outstanding_dto_count, 0);
	/* It is a user of its PZ, and nobody uses it. */
	KDT_TYPE(test, DAT_INVALID_STATE, dat_pz_free(pz));
	KDT_OK(test, dat_srq_free(srq));
	KDT_OK(test, dat_pz_free(pz));
}

static void limits(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_ia *b = &env->b;
	DAT_SRQ_ATTR attr;
	DAT_SRQ_HANDLE srq, many[20];
	DAT_RETURN ret;
	int i;

	KUNIT_EXPECT_EQ(test, (int)b->prov.srq_supported, DAT_TRUE);
	KUNIT_EXPECT_NE(test, b->prov.srq_info_supported, 0);
	KUNIT_EXPECT_NE(test, b->prov.srq_watermarks_supported, 0);
	KUNIT_EXPECT_NE(test, b->prov.ep_recv_info_supported, 0);
	KUNIT_EXPECT_EQ(test, (int)b->prov.srq_ep_pz_difference_supported,
			b->traits & KDT_SRQ_PD ? DAT_FALSE : DAT_TRUE);
	KUNIT_EXPECT_GE(test, b->attr.max_srqs, (int)ARRAY_SIZE(many));
	KUNIT_EXPECT_GE(test, b->attr.max_ep_per_srq, 4);
	KUNIT_EXPECT_GE(test, b->attr.max_recv_per_srq, 64);

	for (i = 0; i < ARRAY_SIZE(many); i++) {
		attr = srq_attr(1 + i, 1, 0);
		KDT_OK(test, dat_srq_create(b->h, b->pz, &attr, &many[i]));
	}
	for (i = 0; i < ARRAY_SIZE(many); i++)
		KDT_OK(test, dat_srq_free(many[i]));

	attr = srq_attr(b->attr.max_recv_per_srq, 1, 0);
	KDT_OK(test, dat_srq_create(b->h, b->pz, &attr, &srq));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		    dat_srq_resize(srq, b->attr.max_recv_per_srq + 1));
	KDT_OK(test, dat_srq_free(srq));

	/* No attribute says what a device takes in an SRQ: that many, or resources. */
	attr = srq_attr(8, b->attr.max_iov_segments_per_dto, 0);
	ret = dat_srq_create(b->h, b->pz, &attr, &srq);
	if (ret == DAT_SUCCESS)
		KDT_OK(test, dat_srq_free(srq));
	else
		KUNIT_EXPECT_TRUE(test, ret == DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
							 DAT_RESOURCE_SRQ));
	if (b->iwarp)
		KDT_OK(test, ret);
}

static void query_and_free_arguments(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_env *env = rig->env;
	DAT_SRQ_ATTR attr = srq_attr(4, 1, 0);
	DAT_SRQ_HANDLE stale, bad[6];
	DAT_SRQ_PARAM param;
	int i, bit;

	KDT_OK(test, dat_srq_create(env->b.h, env->b.pz, &attr, &stale));
	KDT_OK(test, dat_srq_free(stale));
	bad[0] = DAT_HANDLE_NULL;
	bad[1] = (DAT_HANDLE)0x1234567;
	bad[2] = stale;
	bad[3] = env->b.pz;
	bad[4] = env->b.h;
	bad[5] = rig->to->lmr;
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
#define BAD_SRQ(call) \
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ, call)
		BAD_SRQ(dat_srq_query(bad[i], DAT_SRQ_FIELD_ALL, &param));
		BAD_SRQ(dat_srq_query(bad[i], 0, NULL));
		BAD_SRQ(dat_srq_free(bad[i]));
		BAD_SRQ(dat_srq_resize(bad[i], 4));
		BAD_SRQ(dat_srq_set_lw(bad[i], 0));
		BAD_SRQ(dat_srq_post_recv(bad[i], 0, NULL, kdt_cookie(0)));
	}
	KDT_OK(test, dat_srq_query(rig->srq, 0, NULL));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		    dat_srq_query(rig->srq, DAT_SRQ_FIELD_ALL, NULL));
	for (bit = 8; bit < 32; bit++)
		KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
			    dat_srq_query(rig->srq, (DAT_SRQ_PARAM_MASK)(1u << bit), &param));
	/* Each bit alone brings its member. */
	post_many(test, rig, 0, 3);
	KDT_OK(test, dat_srq_set_lw(rig->srq, 2));
#define FIELD(bit, member, value)							\
do {											\
	u64 kdt_want = (uintptr_t)(value), kdt_is;					\
											\
	memset(&param, 0xee, sizeof(param));						\
	KDT_OK(test, dat_srq_query(rig->srq, DAT_SRQ_FIELD_##bit, &param));		\
	kdt_is = (uintptr_t)param.member;						\
	KUNIT_EXPECT_EQ_MSG(test, kdt_is, kdt_want, #member);				\
} while (0)
	FIELD(IA_HANDLE, ia_handle, env->b.h);
	FIELD(SRQ_STATE, srq_state, DAT_SRQ_STATE_OPERATIONAL);
	FIELD(PZ_HANDLE, pz_handle, env->b.pz);
	FIELD(MAX_RECV_DTO, max_recv_dtos, limit_of(test, rig));
	FIELD(MAX_RECV_IOV, max_recv_iov, KDT_IOV);
	FIELD(LOW_WATERMARK, low_watermark, 2);
	FIELD(AVAILABLE_DTO_COUNT, available_dto_count, 3);
	FIELD(OUTSTANDING_DTO_COUNT, outstanding_dto_count, 3);
}

static void ep_create_arguments(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_ia *b = &rig->env->b;
	struct kdt_evd *dto = kdt_evd_new(test, b, DAT_EVD_DTO_FLAG);
	struct kdt_evd *req = kdt_evd_new(test, b, DAT_EVD_DTO_FLAG);
	struct kdt_evd *conn = kdt_evd_new(test, b, DAT_EVD_CONNECTION_FLAG);
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_SRQ_ATTR sattr = srq_attr(4, 1, 0);
	DAT_SRQ_HANDLE stale, foreign;
	DAT_EP_ATTR attr, good;
	DAT_EP_PARAM param = {};
	DAT_PZ_HANDLE pz;
	DAT_IA_HANDLE ia;
	DAT_EP_HANDLE ep;

	KDT_OK(test, dat_srq_create(b->h, b->pz, &sattr, &stale));
	KDT_OK(test, dat_srq_free(stale));
	KDT_OK(test, dat_ia_open(kdt_ia_b, 8, &async, &ia));
	KDT_OK(test, dat_pz_create(ia, &pz));
	KDT_OK(test, dat_srq_create(ia, pz, &sattr, &foreign));
	ep_attr(rig, &good, 0);
#define CREATE(srq, at) \
	dat_ep_create_with_srq(b->h, b->pz, dto->h, req->h, conn->h, srq, at, &ep)
#define NO_SRQ(handle) \
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ, CREATE(handle, &good))
	NO_SRQ(DAT_HANDLE_NULL);
	NO_SRQ((DAT_HANDLE)0x1234567);
	NO_SRQ(stale);
	NO_SRQ(foreign);
	NO_SRQ(b->pz);
	NO_SRQ(dto->h);
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG7, CREATE(rig->srq, NULL));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG8,
		    dat_ep_create_with_srq(b->h, b->pz, dto->h, req->h, conn->h, rig->srq, &good,
					   NULL));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_RECV,
		    dat_ep_create_with_srq(b->h, b->pz, conn->h, req->h, conn->h, rig->srq, &good,
					   &ep));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_REQUEST,
		    dat_ep_create_with_srq(b->h, b->pz, dto->h, conn->h, conn->h, rig->srq, &good,
					   &ep));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CONN,
		    dat_ep_create_with_srq(b->h, b->pz, dto->h, req->h, dto->h, rig->srq, &good,
					   &ep));
#define BAD_FLAGS(flags)								\
do {											\
	attr = good;									\
	attr.recv_completion_flags = (flags);						\
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG7, CREATE(rig->srq, &attr)); \
} while (0)
	BAD_FLAGS(DAT_COMPLETION_EVD_THRESHOLD_FLAG);
	BAD_FLAGS(DAT_COMPLETION_SUPPRESS_FLAG);
	BAD_FLAGS(DAT_COMPLETION_BARRIER_FENCE_FLAG);
	attr = good;
	attr.max_request_iov = -1;
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG7, CREATE(rig->srq, &attr));
	attr = good;
	attr.srq_soft_hw = -2;
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG7, CREATE(rig->srq, &attr));
	KDT_OK(test, dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));

	/* No Receives of its own are asked for, and segments are the SRQ's affair. */
	KDT_OK(test, CREATE(rig->srq, &good));
	KDT_OK(test, dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	KUNIT_EXPECT_PTR_EQ(test, param.srq_handle, rig->srq);
	KUNIT_EXPECT_EQ(test, (int)param.ep_state, DAT_EP_STATE_UNCONNECTED);
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_SRQ_IN_USE, dat_srq_free(rig->srq));
	KDT_OK(test, dat_ep_free(ep));
	attr = good;
	attr.max_recv_iov = -1;
	attr.max_recv_dtos = 5;
	KDT_OK(test, CREATE(rig->srq, &attr));
	KDT_OK(test, dat_ep_free(ep));
	KDT_OK(test, dat_srq_free(rig->srq));
	/* References are gone with it. */
	KDT_OK(test, dat_evd_free(dto->h));
	KDT_OK(test, dat_evd_free(req->h));
	KDT_OK(test, dat_evd_free(conn->h));
}

/* ---- posting ---- */

static void post_arguments(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_ia *b = &rig->env->b;
	struct kdt_buf *read_only = kdt_buf_rights(test, b, 64, DAT_MEM_PRIV_LOCAL_READ_FLAG);
	struct kdt_buf *freed = kdt_buf_new(test, b, 64);
	struct kdt_buf *other;
	DAT_LMR_TRIPLET iov[KDT_IOV + 1];
	DAT_PZ_HANDLE pz;
	int i;

	KDT_OK(test, dat_pz_create(b->h, &pz));
	KDT_OK(test, kdt_buf_open(rig->env, b, pz, 64, KDT_RIGHTS, &other));
	KDT_OK(test, dat_lmr_free(freed->lmr));
	for (i = 0; i < ARRAY_SIZE(iov); i++)
		iov[i] = kdt_seg(rig->to, i * 16, 16);
#define POST(n) dat_srq_post_recv(rig->srq, n, iov, kdt_cookie(1))
#define SECOND(type, subtype, seg)						\
do {										\
	iov[1] = (seg);								\
	KDT_REFUSED(test, type, subtype, POST(2));				\
	iov[1] = kdt_seg(rig->to, 16, 16);					\
} while (0)
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, POST(-1));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, POST(KDT_IOV + 1));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, POST(INT_MAX));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		    dat_srq_post_recv(rig->srq, 1, NULL, kdt_cookie(1)));
	/* behind the end, before the start, around the world */
	SECOND(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3, kdt_seg(rig->to, SLOTS * SLOT - 15, 16));
	SECOND(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3, kdt_seg(rig->to, SLOTS * SLOT, 1));
	SECOND(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3, kdt_seg(rig->to, -1, 16));
	SECOND(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3, kdt_seg(rig->to, 16, U32_MAX));
	SECOND(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE, kdt_seg(read_only, 0, 16));
	SECOND(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE, kdt_seg(freed, 0, 16));
	SECOND(DAT_PROTECTION_VIOLATION, DAT_PROTECTION_WRITE, kdt_seg(other, 0, 16));
	iov[1].lmr_context ^= 0x5a5a00;
	KDT_REFUSED(test, DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE, POST(2));
	iov[1].lmr_context = 0;
	KDT_REFUSED(test, DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE, POST(2));
	/* Nothing of it took an entry, and the largest legal post is one entry. */
	counts(test, rig, 0, 0);
	iov[1] = kdt_seg(rig->to, 16, 16);
	KDT_OK(test, POST(KDT_IOV));
	KDT_OK(test, dat_srq_post_recv(rig->srq, 0, NULL, kdt_cookie(1)));
	counts(test, rig, 2, 2);
}

static void post_until_full(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_evd *recv = quiet_evd(test, rig);
	struct kdt_pair *pair = pair_up(test, rig, 0, recv);
	int limit = limit_of(test, rig), i;

	KUNIT_EXPECT_GE(test, limit, DTOS);
	post_many(test, rig, 0, limit);
	for (i = 0; i < 3; i++)
		KDT_REFUSED(test, DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ, post(rig, 0, 0));
	counts(test, rig, limit, limit);
	/* A message makes no room as long as nobody has taken its event. */
	for (i = 0; i < 3; i++)
		message(test, rig, pair, 10);
	counts_become(test, rig, limit - 3, limit);
	KDT_TYPE(test, DAT_INSUFFICIENT_RESOURCES, post(rig, 0, 0));
	for (i = 0; i < 3; i++) {
		arrived(test, recv, &pair->s, 10);
		KDT_OK(test, post(rig, i, limit + i));
		KDT_TYPE(test, DAT_INSUFFICIENT_RESOURCES, post(rig, 0, 0));
	}
	counts(test, rig, limit, limit);
}

static void ep_post_recv_refused(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_pair *pair = pair_unconnected(test, rig, 0, NULL);

	KDT_TYPE(test, DAT_INVALID_STATE, kdt_recv(&pair->s, rig->to, 0, 16, 1));
	KDT_TYPE(test, DAT_INVALID_STATE, dat_ep_post_recv(pair->s.h, 0, NULL, kdt_cookie(1), 0));
	kdt_pair_connect(test, pair);
	KDT_TYPE(test, DAT_INVALID_STATE, kdt_recv(&pair->s, rig->to, 0, 16, 1));
	kdt_pair_down(test, pair);
	KDT_TYPE(test, DAT_INVALID_STATE, kdt_recv(&pair->s, rig->to, 0, 16, 1));
	counts(test, rig, 0, 0);
	KDT_OK(test, dat_ep_free(pair->s.h));
	KUNIT_EXPECT_EQ(test, kdt_queued(pair->s.recv), 0);
}

/* ---- counts ---- */

/* The example of the standard, with dequeue and with upcalls. */
static void counts_example(struct kunit *test)
{
	struct rig *rig = rig_new(test, 10);
	struct kdt_evd *recv = quiet_evd(test, rig);
	struct kdt_pair *quiet = pair_up(test, rig, 0, recv);
	struct kdt_pair *loud = pair_up(test, rig, 0, NULL);

	counts(test, rig, 0, 0);
	post_many(test, rig, 0, 3);
	counts(test, rig, 3, 3);
	message(test, rig, quiet, 100);
	counts_become(test, rig, 2, 3);
	arrived(test, recv, &quiet->s, 100);
	counts(test, rig, 2, 2);
	/* An upcall hands the event over by itself. */
	message(test, rig, loud, 100);
	arrived(test, loud->s.recv, &loud->s, 100);
	counts(test, rig, 1, 1);
}

static void held(struct kunit *test, struct kdt_pair *pair, DAT_COUNT n)
{
	DAT_COUNT nbufs = -5, span = -5;

	KDT_OK(test, dat_ep_recv_query(pair->s.h, &nbufs, &span));
	KUNIT_EXPECT_EQ(test, nbufs, n);
	KUNIT_EXPECT_EQ(test, span, n);
}

static void recv_query(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_evd *recv = quiet_evd(test, rig);
	struct kdt_pair *one = pair_up(test, rig, 0, recv);
	struct kdt_pair *two = pair_up(test, rig, 0, recv);
	struct kdt_pair *plain = kdt_pair_up(test);
	DAT_COUNT n = -5, span = -5;
	DAT_EP_HANDLE ep;

	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		    dat_ep_recv_query(rig->srq, &n, &span));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		    dat_ep_recv_query(DAT_HANDLE_NULL, &n, &span));
	KUNIT_EXPECT_EQ(test, n, -5);
	KDT_OK(test, dat_ep_recv_query(one->s.h, NULL, NULL));

	post_many(test, rig, 0, 6);
	held(test, one, 0);		/* waiting on the SRQ is nobody's */
	message(test, rig, one, 1);
	message(test, rig, one, 2);
	message(test, rig, two, 3);
	counts_become(test, rig, 3, 6);
	held(test, one, 2);
	held(test, two, 1);
	KDT_OK(test, dat_ep_recv_query(one->s.h, &n, NULL));
	KUNIT_EXPECT_EQ(test, n, 2);
	KDT_OK(test, dat_ep_recv_query(one->s.h, NULL, &span));
	KUNIT_EXPECT_EQ(test, span, 2);
	arrived(test, recv, &one->s, 1);
	held(test, one, 1);
	arrived(test, recv, &one->s, 2);
	held(test, one, 0);
	held(test, two, 1);
	arrived(test, recv, &two->s, 3);
	held(test, two, 0);

	/* Without an SRQ: posted, and not completed. */
	held(test, plain, 0);
	KDT_OK(test, kdt_recv(&plain->s, rig->to, 0, 16, 1));
	KDT_OK(test, kdt_recv(&plain->s, rig->to, 0, 16, 2));
	held(test, plain, 2);
	KDT_OK(test, kdt_send(&plain->c, rig->from, 0, 16, 3, 0));
	kdt_dto(test, plain->s.recv, &plain->s, 1, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 16);
	held(test, plain, 1);
	kdt_pair_down(test, plain);
	held(test, plain, 0);
	/* Nor does one without PZ hold any. */
	KDT_OK(test, dat_ep_create(rig->env->b.h, NULL, NULL, NULL, NULL, NULL, &ep));
	KDT_OK(test, dat_ep_recv_query(ep, &n, &span));
	KUNIT_EXPECT_EQ(test, n, 0);
	KDT_OK(test, dat_ep_free(ep));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		    dat_ep_recv_query(ep, &n, &span));
}

/* ---- messages ---- */

/* Two connections, one EVD or one each: the event says which one it was. */
static void who_took_it(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_evd *recv = kdt_evd_new(test, &rig->env->b, DAT_EVD_DTO_FLAG);
	struct kdt_pair *pair[4];
	u64 slot;
	int i, j;

	pair[0] = pair_up(test, rig, 0, recv);
	pair[1] = pair_up(test, rig, 0, recv);
	pair[2] = pair_up(test, rig, 0, NULL);
	pair[3] = pair_up(test, rig, 0, NULL);
	post_many(test, rig, 0, 12);
	for (j = 0; j < 3; j++) {
		for (i = 0; i < 4; i++) {
			kdt_fill(rig->from->p, SLOT, 10 * j + i);
			message(test, rig, pair[i], SLOT - i);
			slot = arrived(test, pair[i]->s.recv, &pair[i]->s, SLOT - i);
			KUNIT_ASSERT_LT(test, slot, 12);
			KUNIT_EXPECT_TRUE(test, kdt_same(rig->to->p + slot * SLOT, SLOT - i,
							 10 * j + i));
		}
	}
	for (i = 0; i < 4; i++) {
		KUNIT_EXPECT_EQ(test, kdt_queued(pair[i]->s.recv), 0);
		KUNIT_EXPECT_EQ(test, kdt_queued(pair[i]->s.req), 0);
	}
	counts(test, rig, 0, 0);
	/* The servers can answer: only Receives come from elsewhere. */
	KDT_OK(test, kdt_recv(&pair[1]->c, rig->from, 0, SLOT, 5));
	KDT_OK(test, kdt_send(&pair[1]->s, rig->to, 0, SLOT, 6, 0));
	kdt_dto(test, pair[1]->s.req, &pair[1]->s, 6, DAT_DTO_SEND, DAT_DTO_SUCCESS, SLOT);
	kdt_dto(test, pair[1]->c.recv, &pair[1]->c, 5, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, SLOT);
}

static void scatter(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_pair *pair = pair_up(test, rig, 0, NULL);
	static const u32 part[KDT_IOV] = { 10, 1, 100, 50 };
	static const u32 lens[] = { 0, 1, 9, 10, 11, 12, 110, 111, 112, 160, 161 };
	DAT_LMR_TRIPLET iov[KDT_IOV];
	u8 *at, got[161];
	u32 left, n;
	int i, j;

	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		memset(rig->to->p, 0xcc, 4096);
		kdt_fill(rig->from->p, SLOT, i);
		/* In the order of the array, not of the addresses, with gaps. */
		for (j = 0; j < KDT_IOV; j++)
			iov[j] = kdt_seg(rig->to, 1000 - 200 * j + j, part[j]);
		KDT_OK(test, dat_srq_post_recv(rig->srq, KDT_IOV, iov, kdt_cookie(i)));
		memset(iov, 0xa5, sizeof(iov));		/* SRQ-POST-10 */
		message(test, rig, pair, lens[i]);
		KUNIT_EXPECT_EQ(test, arrived(test, pair->s.recv, &pair->s, lens[i]), i);
		left = lens[i];
		at = got;
		for (j = 0; j < KDT_IOV; j++) {
			u8 *p = rig->to->p + 1000 - 200 * j + j;

			n = min(left, part[j]);
			memcpy(at, p, n);
			at += n;
			left -= n;
			KUNIT_EXPECT_TRUE_MSG(test, kdt_all(p + n, part[j] - n, 0xcc),
					      "segment %d of %u bytes", j, lens[i]);
			KUNIT_EXPECT_TRUE(test, p[-1] == 0xcc && p[part[j]] == 0xcc);
		}
		KUNIT_EXPECT_TRUE_MSG(test, kdt_same(got, lens[i], i), "%u bytes", lens[i]);
	}
}

static void empty_segments(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_pair *pair = pair_up(test, rig, 0, NULL);
	DAT_LMR_TRIPLET iov[KDT_IOV] = {
		{ .virtual_address = 0xdeadbeef, .lmr_context = 0xffffffff },
		kdt_seg(rig->to, 0, 20),
		{ .virtual_address = U64_MAX, .lmr_context = 1 },
		kdt_seg(rig->to, 100, 20),
	};

	/* No segments, an empty message; then a list with nothing in it. */
	KDT_OK(test, dat_srq_post_recv(rig->srq, 0, NULL, kdt_cookie(1)));
	message(test, rig, pair, 0);
	KUNIT_EXPECT_EQ(test, arrived(test, pair->s.recv, &pair->s, 0), 1);
	KDT_OK(test, dat_srq_post_recv(rig->srq, 1, iov, kdt_cookie(2)));
	message(test, rig, pair, 0);
	KUNIT_EXPECT_EQ(test, arrived(test, pair->s.recv, &pair->s, 0), 2);
	/* Empty ones between others. */
	memset(rig->to->p, 0xcc, 200);
	KDT_OK(test, dat_srq_post_recv(rig->srq, KDT_IOV, iov, kdt_cookie(3)));
	message(test, rig, pair, 30);
	KUNIT_EXPECT_EQ(test, arrived(test, pair->s.recv, &pair->s, 30), 3);
	KUNIT_EXPECT_TRUE(test, !memcmp(rig->to->p, rig->from->p, 20));
	KUNIT_EXPECT_TRUE(test, !memcmp(rig->to->p + 100, rig->from->p + 20, 10));
	KUNIT_EXPECT_TRUE(test, kdt_all(rig->to->p + 20, 80, 0xcc));
	KUNIT_EXPECT_TRUE(test, kdt_all(rig->to->p + 110, 90, 0xcc));
}

static void cookies(struct kunit *test)
{
	static const u64 all[] = { 0, U64_MAX, 0x8000000000000000ULL, 0x0123456789abcdefULL,
				   0xffffffff00000000ULL, 5, 5, 5 };
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_pair *pair = pair_up(test, rig, 0, NULL);
	u64 seen[ARRAY_SIZE(all)], cookie;
	int i, j;

	for (i = 0; i < ARRAY_SIZE(all); i++)
		KDT_OK(test, post(rig, i, all[i]));
	memcpy(seen, all, sizeof(all));
	/* Buffers may be taken in any order; each cookie comes as often as posted. */
	for (i = 0; i < ARRAY_SIZE(all); i++) {
		message(test, rig, pair, 8);
		cookie = arrived(test, pair->s.recv, &pair->s, 8);
		for (j = 0; j < ARRAY_SIZE(all) - i; j++) {
			if (seen[j] == cookie)
				break;
		}
		KUNIT_ASSERT_LT_MSG(test, j, (int)ARRAY_SIZE(all) - i, "cookie 0x%llx", cookie);
		seen[j] = seen[ARRAY_SIZE(all) - 1 - i];
	}
}

#define FLOWS	3
#define WINDOW	4
#define EACH	200

/* Messages of each connection in order, on EVDs of their own and on a common one. */
static void in_order(struct kunit *test, bool common)
{
	struct rig *rig = rig_new(test, FLOWS * WINDOW);
	struct kdt_evd *recv = common ? kdt_evd_new(test, &rig->env->b, DAT_EVD_DTO_FLAG) : NULL;
	u32 sent[FLOWS] = {}, got[FLOWS] = {}, n, total = 0;
	struct kdt_pair *pair[FLOWS];
	u32 *slot;
	DAT_EVENT event;
	int i, j;

	for (i = 0; i < FLOWS; i++)
		pair[i] = pair_up(test, rig, 0, recv);
	post_many(test, rig, 0, FLOWS * WINDOW);
	for (n = 0, i = 0; n < FLOWS * EACH; i = (i + 1) % FLOWS) {
		while (sent[i] < EACH && sent[i] - got[i] < WINDOW) {
			u32 at = (i * WINDOW + sent[i] % WINDOW) * SLOT;

			slot = (u32 *)(rig->from->p + at);
			slot[0] = i;
			slot[1] = sent[i]++;
			total++;
			KDT_OK(test, kdt_send(&pair[i]->c, rig->from, at, 8, 1,
					      DAT_COMPLETION_SUPPRESS_FLAG));
		}
		/* Not so many that the windows stay full. */
		for (j = 0; j < 2 && n < FLOWS * EACH; j++) {
			struct kdt_evd *evd = pair[i]->s.recv;
			const DAT_DTO_COMPLETION_EVENT_DATA *dto;
			u32 flow;

			if (common ? n == total : got[i] == sent[i])
				break;
			KUNIT_ASSERT_TRUE_MSG(test, kdt_get(evd, &event), "message %u is missing",
					      n);
			dto = &event.event_data.dto_completion_event_data;
			KUNIT_ASSERT_EQ(test, (int)dto->status, DAT_DTO_SUCCESS);
			slot = (u32 *)(rig->to->p + dto->user_cookie.as_64 * SLOT);
			flow = slot[0];
			KUNIT_ASSERT_LT(test, flow, FLOWS);
			KUNIT_ASSERT_PTR_EQ(test, dto->ep_handle, pair[flow]->s.h);
			KUNIT_ASSERT_EQ(test, slot[1], got[flow]);
			got[flow]++;
			n++;
			KDT_OK(test, post(rig, dto->user_cookie.as_64, dto->user_cookie.as_64));
		}
	}
	for (i = 0; i < FLOWS; i++)
		KUNIT_EXPECT_EQ(test, got[i], EACH);
	counts(test, rig, FLOWS * WINDOW, FLOWS * WINDOW);
}

static void order(struct kunit *test)
{
	in_order(test, false);
	in_order(test, true);
}

/* ---- flags ---- */

static void always_signalled(struct kunit *test)
{
	static const int flags[] = { DAT_COMPLETION_UNSIGNALLED_FLAG, DAT_COMPLETION_DEFAULT_FLAG };
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_pair *pair;
	int i, j;

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		pair = pair_up(test, rig, flags[i], NULL);
		post_many(test, rig, 0, 4);
		/* Upcalls feed the queue, so each of them has been an upcall. */
		for (j = 0; j < 4; j++) {
			KDT_OK(test, kdt_send(&pair->c, rig->from, 0, 8, 1, j & 1 ?
					      DAT_COMPLETION_SOLICITED_WAIT_FLAG : 0));
			kdt_dto(test, pair->c.req, &pair->c, 1, DAT_DTO_SEND, DAT_DTO_SUCCESS, 8);
			arrived(test, pair->s.recv, &pair->s, 8);
			KUNIT_EXPECT_EQ(test, pair->s.recv->calls, j + 1);
		}
		kdt_pair_down(test, pair);
	}
}

/* Two messages that do not ask and one that does; true: the first two were silent. */
static bool solicited_round(struct kunit *test, struct rig *rig)
{
	struct kdt_pair *pair = pair_up(test, rig, DAT_COMPLETION_SOLICITED_WAIT_FLAG, NULL);
	bool silent;
	int i;

	post_many(test, rig, 0, 3);
	message(test, rig, pair, 8);
	message(test, rig, pair, 9);
	/* Both have arrived, on every transport. */
	KDT_OK(test, kdt_read(&pair->c, rig->from, 0, 64, rig->to, 0, 7, 0));
	kdt_dto(test, pair->c.req, &pair->c, 7, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, 64);
	silent = !pair->s.recv->calls;
	KDT_OK(test, kdt_send(&pair->c, rig->from, 0, 10, 1, DAT_COMPLETION_SOLICITED_WAIT_FLAG));
	kdt_dto(test, pair->c.req, &pair->c, 1, DAT_DTO_SEND, DAT_DTO_SUCCESS, 10);
	/* The one that asks brings along what was there before. */
	for (i = 0; i < 3; i++)
		arrived(test, pair->s.recv, &pair->s, 8 + i);
	kdt_pair_down(test, pair);
	return silent;
}

static void solicited(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	unsigned int i, silent = 0;

	for (i = 0; i < 5; i++)
		silent += solicited_round(test, rig);
	/* A look around that was under way anyway may take some along, not always. */
	if (rig->env->b.prov.completion_flags_supported & DAT_COMPLETION_SOLICITED_WAIT_FLAG)
		KUNIT_EXPECT_GT_MSG(test, silent, 0, "told of what nobody asked for, each time");
	else
		KUNIT_EXPECT_EQ(test, silent, 0);
	counts(test, rig, 0, 0);
}

/* ---- errors and ends ---- */

/* Nothing more than the connection ended. */
static void still_works(struct kunit *test, struct rig *rig, struct kdt_pair *pair)
{
	KDT_OK(test, post(rig, SLOTS - 1, 4711));
	message(test, rig, pair, 33);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(pair->s.h), DAT_EP_STATE_CONNECTED);
	/* Whichever buffer it was, one has gone. */
	arrived(test, pair->s.recv, &pair->s, 33);
}

static void too_long(struct kunit *test, u32 room)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_pair *bad = pair_up(test, rig, 0, NULL);
	struct kdt_pair *good = pair_up(test, rig, 0, NULL);
	DAT_LMR_TRIPLET iov = kdt_seg(rig->to, 16, room);
	u64 cookie;

	memset(rig->to->p, 0x55, rig->to->len);
	KDT_OK(test, dat_srq_post_recv(rig->srq, !!room, &iov, kdt_cookie(8)));
	KDT_OK(test, kdt_send(&bad->c, rig->from, 0, room + 1, 3, 0));
	kdt_end(test, &bad->c);
	KUNIT_EXPECT_EQ(test, (int)kdt_end(test, &bad->s), DAT_CONNECTION_EVENT_BROKEN);
	KUNIT_EXPECT_EQ(test, (int)kdt_any_dto(test, bad->s.recv, &cookie),
			DAT_DTO_ERR_LOCAL_LENGTH);
	KUNIT_EXPECT_EQ(test, cookie, 8);
	KUNIT_EXPECT_TRUE(test, kdt_all(rig->to->p, 16, 0x55));
	KUNIT_EXPECT_TRUE(test, kdt_all(rig->to->p + 16 + room, rig->to->len - 16 - room, 0x55));
	kdt_any_dto(test, bad->c.req, &cookie);
	KUNIT_EXPECT_EQ(test, cookie, 3);
	still_works(test, rig, good);
	KUNIT_EXPECT_EQ(test, kdt_queued(bad->s.recv), 0);
	/* And it can come back. */
	KDT_OK(test, dat_ep_reset(bad->c.h));
	KDT_OK(test, dat_ep_reset(bad->s.h));
	kdt_pair_connect(test, bad);
	still_works(test, rig, bad);
	counts(test, rig, 0, 0);
}

static void longer_than_the_buffer(struct kunit *test)
{
	too_long(test, 64);
	too_long(test, 0);
}

static void nothing_posted(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_pair *bad = pair_up(test, rig, 0, NULL);
	struct kdt_pair *good = pair_up(test, rig, 0, NULL);
	DAT_DTO_COMPLETION_STATUS status;
	DAT_EVENT_NUMBER end;

	KDT_OK(test, kdt_send(&bad->c, rig->from, 0, 64, 3, 0));
	end = kdt_end(test, &bad->c);
	kdt_end(test, &bad->s);
	status = kdt_any_dto(test, bad->c.req, NULL);
	/* As with an empty queue of an EP's own: the sender hears, or only the end. */
	if (!rig->env->a.iwarp) {
		KUNIT_EXPECT_EQ(test, (int)status, DAT_DTO_ERR_RECEIVER_NOT_READY);
		KUNIT_EXPECT_EQ(test, (int)end, DAT_CONNECTION_EVENT_BROKEN);
	}
	KUNIT_EXPECT_EQ(test, kdt_queued(bad->s.recv), 0);
	still_works(test, rig, good);
	counts(test, rig, 0, 0);
	KDT_OK(test, dat_ep_reset(bad->c.h));
	KDT_OK(test, dat_ep_reset(bad->s.h));
	kdt_pair_connect(test, bad);
	still_works(test, rig, bad);
}

/* Messages that had arrived are kept, buffers nobody took serve the others. */
static void disconnect(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_evd *recv = quiet_evd(test, rig);
	struct kdt_pair *one = pair_up(test, rig, 0, recv);
	struct kdt_pair *two = pair_up(test, rig, 0, NULL);
	struct kdt_pair *idle = pair_unconnected(test, rig, 0, NULL);
	DAT_EVENT event;
	int i;

	post_many(test, rig, 0, 8);
	message(test, rig, one, 1);
	message(test, rig, one, 2);
	counts_become(test, rig, 6, 8);
	kdt_pair_down(test, one);
	counts(test, rig, 6, 8);
	arrived(test, recv, &one->s, 1);
	arrived(test, recv, &one->s, 2);
	/* No flush: it had taken no other. Nor has one that was never connected. */
	KUNIT_EXPECT_TRUE(test, DAT_GET_TYPE(dat_evd_dequeue(recv->h, &event)) == DAT_QUEUE_EMPTY);
	KUNIT_EXPECT_EQ(test, kdt_queued(idle->s.recv), 0);
	counts(test, rig, 6, 6);
	for (i = 0; i < 6; i++) {
		message(test, rig, two, 10 + i);
		arrived(test, two->s.recv, &two->s, 10 + i);
	}
	counts(test, rig, 0, 0);
	/* In DISCONNECTED the SRQ is still there to be posted to. */
	KDT_OK(test, post(rig, 0, 1));
	kdt_pair_down(test, two);
	counts(test, rig, 1, 1);
	KUNIT_EXPECT_EQ(test, kdt_queued(two->s.recv), 0);
}

/* The SRQ's EP connects: attempts that fail take no buffers and flush none. */
static void active_side(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_ia *a = &rig->env->a;
	struct kdt_pair *pair = pair_unconnected(test, rig, 0, NULL);
	struct kdt_pair back = {		/* from b to a */
		.c = pair->s,
		.cr = kdt_evd_new(test, a, DAT_EVD_CR_FLAG),
		.port = kdt_new_port(),
	};
	DAT_BOOLEAN idle;
	int i;

	kdt_ep_new(test, &back.s, a, NULL);
	post_many(test, rig, 0, 4);
	KDT_OK(test, dat_ep_get_status(back.c.h, NULL, &idle, NULL));
	KUNIT_EXPECT_EQ(test, (int)idle, DAT_TRUE);
	/* Nobody there. */
	KDT_OK(test, kdt_connect(&back.c, a, back.port));
	kdt_conn(test, &back.c, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	counts(test, rig, 4, 4);
	KDT_OK(test, dat_ep_reset(back.c.h));
	/* Rejected. */
	KDT_OK(test, dat_psp_create(a->h, back.port, back.cr->h, DAT_PSP_CONSUMER_FLAG, &back.psp));
	KDT_OK(test, dat_cr_reject(kdt_pair_request(test, &back), 0, NULL));
	kdt_conn(test, &back.c, DAT_CONNECTION_EVENT_PEER_REJECTED);
	KDT_OK(test, post(rig, 4, 4));		/* in DISCONNECTED */
	counts(test, rig, 5, 5);
	KUNIT_EXPECT_EQ(test, kdt_queued(back.c.recv), 0);
	KDT_OK(test, dat_ep_reset(back.c.h));
	/* Given up. */
	kdt_pair_request(test, &back);
	KDT_OK(test, dat_ep_disconnect(back.c.h, DAT_CLOSE_ABRUPT_FLAG));
	kdt_conn(test, &back.c, DAT_CONNECTION_EVENT_DISCONNECTED);
	KDT_OK(test, dat_ep_reset(back.c.h));
	counts(test, rig, 5, 5);
	/* And connected. */
	kdt_pair_connect(test, &back);
	for (i = 0; i < 5; i++) {
		KDT_OK(test, kdt_send(&back.s, rig->from, 0, 20 + i, 9, 0));
		kdt_dto(test, back.s.req, &back.s, 9, DAT_DTO_SEND, DAT_DTO_SUCCESS, 20 + i);
		arrived(test, back.c.recv, &back.c, 20 + i);
	}
	KDT_OK(test, dat_ep_get_status(back.c.h, NULL, &idle, NULL));
	KUNIT_EXPECT_EQ(test, (int)idle, DAT_TRUE);
	counts(test, rig, 0, 0);
	kdt_pair_down(test, &back);
	KDT_OK(test, dat_ep_free(back.c.h));
	/* With no EP at all the SRQ is there to be posted to. */
	KDT_OK(test, post(rig, 0, 0));
	counts(test, rig, 1, 1);
}

/* A disconnect with completions not taken, then reset: their buffers are free. */
static void reset_drops(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_evd *recv = quiet_evd(test, rig);
	struct kdt_pair *pair = pair_up(test, rig, 0, recv);
	DAT_EP_PARAM param = {};
	int limit = limit_of(test, rig);
	DAT_EVENT event;

	post_many(test, rig, 0, limit);
	message(test, rig, pair, 1);
	message(test, rig, pair, 2);
	message(test, rig, pair, 3);
	counts_become(test, rig, limit - 3, limit);
	kdt_pair_down(test, pair);
	KDT_OK(test, dat_ep_reset(pair->s.h));
	KDT_OK(test, dat_ep_reset(pair->c.h));
	KUNIT_EXPECT_TRUE(test, DAT_GET_TYPE(dat_evd_dequeue(recv->h, &event)) == DAT_QUEUE_EMPTY);
	counts(test, rig, limit - 3, limit - 3);
	held(test, pair, 0);
	KDT_OK(test, dat_ep_query(pair->s.h, DAT_EP_FIELD_SRQ_HANDLE, &param));
	KUNIT_EXPECT_PTR_EQ(test, param.srq_handle, rig->srq);
	post_many(test, rig, 0, 3);
	kdt_pair_connect(test, pair);
	message(test, rig, pair, 4);
	arrived(test, recv, &pair->s, 4);
	counts(test, rig, limit - 1, limit - 1);
}

#define ROUNDS	25

/* Connections that come and go leave the SRQ as it was. */
static void reconnects(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_pair *pair[4];
	int limit = limit_of(test, rig), round, i;
	u64 slot;

	for (i = 0; i < 4; i++)
		pair[i] = pair_unconnected(test, rig, 0, NULL);
	post_many(test, rig, 0, limit);
	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < 4; i++)
			kdt_pair_connect(test, pair[i]);
		for (i = 0; i < 4; i++) {
			message(test, rig, pair[i], 20 + i);
			slot = arrived(test, pair[i]->s.recv, &pair[i]->s, 20 + i);
			KDT_OK(test, post(rig, slot, slot));
		}
		for (i = 0; i < 4; i++)
			KDT_OK(test, dat_ep_disconnect(round & 1 ? pair[i]->c.h : pair[i]->s.h,
						       round & 2 ? DAT_CLOSE_GRACEFUL_FLAG :
								   DAT_CLOSE_ABRUPT_FLAG));
		for (i = 0; i < 4; i++) {
			kdt_conn(test, &pair[i]->c, DAT_CONNECTION_EVENT_DISCONNECTED);
			kdt_conn(test, &pair[i]->s, DAT_CONNECTION_EVENT_DISCONNECTED);
			KDT_OK(test, dat_ep_reset(pair[i]->c.h));
			KDT_OK(test, dat_ep_reset(pair[i]->s.h));
		}
	}
	counts(test, rig, limit, limit);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, kdt_queued(pair[i]->s.recv), 0);
	/* Each of the buffers still works. */
	kdt_pair_connect(test, pair[0]);
	for (i = 0; i < limit; i++) {
		message(test, rig, pair[0], 8);
		arrived(test, pair[0]->s.recv, &pair[0]->s, 8);
	}
	counts(test, rig, 0, 0);
}

/* Connections torn in the middle of messages; buffers may go with them (D-15). */
static void torn(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_pair *pair = pair_unconnected(test, rig, 0, NULL);
	struct kdt_buf *big = kdt_buf_new(test, &rig->env->b, KDT_SIZE);
	struct kdt_buf *src = kdt_buf_new(test, &rig->env->a, KDT_SIZE);
	DAT_LMR_TRIPLET iov = kdt_seg(big, 0, KDT_SIZE);
	int limit = limit_of(test, rig), round, i;
	DAT_SRQ_PARAM param;
	DAT_EVENT event;

	for (round = 0; round < 20; round++) {
		kdt_pair_connect(test, pair);
		while (dat_srq_post_recv(rig->srq, 1, &iov, kdt_cookie(1)) == DAT_SUCCESS)
			;
		for (i = 0; i < 8; i++)
			KDT_OK(test, kdt_send(&pair->c, src, 0, KDT_SIZE, 2, 0));
		if (round & 1)	/* at some point of the stream */
			KUNIT_ASSERT_TRUE(test, kdt_get(pair->s.recv, &event));
		KDT_OK(test, dat_ep_disconnect(round & 2 ? pair->c.h : pair->s.h,
					       DAT_CLOSE_ABRUPT_FLAG));
		kdt_end(test, &pair->c);
		kdt_end(test, &pair->s);
		/* Whatever came: in order, and failures only behind successes. */
		while (kdt_get_timeout(pair->s.recv, &event, 0)) {
			DAT_DTO_COMPLETION_EVENT_DATA *dto;

			dto = &event.event_data.dto_completion_event_data;
			KUNIT_EXPECT_PTR_EQ(test, dto->ep_handle, pair->s.h);
			KUNIT_EXPECT_EQ(test, dto->user_cookie.as_64, 1);
			if (dto->status != DAT_DTO_SUCCESS)
				KUNIT_EXPECT_EQ(test, (int)dto->status, DAT_DTO_ERR_FLUSHED);
		}
		for (i = 0; i < 8; i++)
			KUNIT_ASSERT_TRUE(test, kdt_get(pair->c.req, &event));
		KDT_OK(test, dat_ep_reset(pair->c.h));
		KDT_OK(test, dat_ep_reset(pair->s.h));
		query(test, rig, &param);
		KUNIT_EXPECT_LE(test, param.outstanding_dto_count, limit);
		KUNIT_EXPECT_EQ(test, param.available_dto_count, param.outstanding_dto_count);
	}
	/* The SRQ is as good as ever: one buffer at a time, three times around. */
	kdt_pair_connect(test, pair);
	for (i = 0; i < 3 * limit; i++) {
		while (dat_srq_post_recv(rig->srq, 1, &iov, kdt_cookie(1)) == DAT_SUCCESS)
			;
		message(test, rig, pair, 100);
		arrived(test, pair->s.recv, &pair->s, 100);
	}
	kdt_pair_down(test, pair);
	KDT_OK(test, dat_ep_free(pair->s.h));
	KDT_OK(test, dat_srq_free(rig->srq));
	KDT_OK(test, dat_lmr_free(big->lmr));
}

/* ---- the end of an SRQ ---- */

static void free_srq(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_pair *one = pair_up(test, rig, 0, NULL);
	struct kdt_pair *two = pair_unconnected(test, rig, 0, NULL);

#define IN_USE() KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_SRQ_IN_USE, \
			     dat_srq_free(rig->srq))
	post_many(test, rig, 0, 6);
	IN_USE();
	kdt_pair_down(test, one);
	IN_USE();
	KDT_OK(test, dat_ep_reset(one->s.h));
	IN_USE();
	KDT_OK(test, dat_ep_free(one->s.h));
	IN_USE();
	KDT_OK(test, dat_ep_free(two->s.h));
	/* A refused free has changed nothing. */
	counts(test, rig, 6, 6);
	KDT_OK(test, dat_srq_free(rig->srq));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ, dat_srq_free(rig->srq));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ, post(rig, 0, 0));
	/* Its buffers are the consumer's; nothing was reported. */
	KDT_OK(test, dat_lmr_free(rig->to->lmr));
	KUNIT_EXPECT_EQ(test, kdt_queued(one->s.recv), 0);
	KUNIT_EXPECT_EQ(test, kdt_queued(two->s.recv), 0);
	KDT_OK(test, dat_evd_free(one->s.recv->h));
	KDT_OK(test, dat_evd_free(two->s.recv->h));
	KUNIT_EXPECT_EQ(test, kdt_queued(one->s.recv), 0);
}

/* EPs freed while connected, with buffers waiting and completions not taken. */
static void free_ep(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_evd *recv = quiet_evd(test, rig);
	struct kdt_pair *one = pair_up(test, rig, 0, recv);
	struct kdt_pair *two = pair_up(test, rig, 0, NULL);
	DAT_EVENT event;

	post_many(test, rig, 0, 8);
	message(test, rig, one, 1);
	message(test, rig, one, 2);
	counts_become(test, rig, 6, 8);
	KDT_OK(test, dat_ep_free(one->s.h));
	kdt_conn(test, &one->c, DAT_CONNECTION_EVENT_DISCONNECTED);
	/* Its completions may have gone with it, or stay; none of them is a new one. */
	while (dat_evd_dequeue(recv->h, &event) == DAT_SUCCESS)
		KUNIT_EXPECT_EQ(test, (int)event.event_data.dto_completion_event_data.status,
				DAT_DTO_SUCCESS);
	counts(test, rig, 6, 6);
	message(test, rig, two, 3);
	arrived(test, two->s.recv, &two->s, 3);
	counts(test, rig, 5, 5);
	KDT_OK(test, dat_evd_free(recv->h));
	KDT_OK(test, dat_ep_free(two->s.h));
	kdt_conn(test, &two->c, DAT_CONNECTION_EVENT_DISCONNECTED);
	counts(test, rig, 5, 5);
	KDT_OK(test, dat_srq_free(rig->srq));
}

/* What a server does in the upcall of DISCONNECTED, beside completions in softirq. */
struct goodbye {
	struct completion gone;
	DAT_RETURN drained, freed;
	unsigned int sends;		/* seen by then */
};

static bool say_goodbye(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_CONNECTION_EVENT_DATA *conn = &event->event_data.connect_event_data;
	struct kdt_pair *pair = evd->priv;
	struct goodbye *bye = pair->s.req->priv;

	if (event->event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
		return false;
	bye->drained = kdat_ep_drain(conn->ep_handle);
	bye->sends = kdt_queued(pair->s.req);
	bye->freed = dat_ep_free(conn->ep_handle);
	complete(&bye->gone);
	return false;
}

#define GOODBYES	20	/* connections */
#define LAST_WORDS	4	/* messages each way */

/* Nothing is lost, whichever EVD is faster, and each buffer is somewhere. */
static void drained(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	unsigned int round, i, posted = 0, missing = 0;
	DAT_RETURN ret = DAT_SUCCESS;
	struct goodbye bye;
	struct kdt_pair *pair;
	DAT_SRQ_PARAM param;

	for (round = 0; round < GOODBYES; round++) {
		pair = pair_unconnected(test, rig, 0, NULL);
		memset(&bye, 0, sizeof(bye));
		init_completion(&bye.gone);
		pair->s.req->priv = &bye;
		pair->s.conn->priv = pair;
		pair->s.conn->hook = say_goodbye;
		for (i = 0; i < LAST_WORDS; i++)
			KDT_OK(test, kdt_recv(&pair->c, rig->from, SLOT, SLOT, i));
		kdt_pair_connect(test, pair);
		/* one more than there will be messages, for a message that is cut */
		query(test, rig, &param);
		posted = param.outstanding_dto_count;
		for (; posted < LAST_WORDS + 1; posted++)
			KDT_OK(test, post(rig, posted, posted));
		for (i = 0; i < LAST_WORDS; i++) {
			KDT_OK(test, kdt_send(&pair->c, rig->from, 0, SLOT, i, 0));
			KDT_OK(test, kdt_send(&pair->s, rig->to, 0, SLOT, i, 0));
		}
		KDT_OK(test, dat_ep_disconnect(pair->c.h, DAT_CLOSE_ABRUPT_FLAG));
		KUNIT_ASSERT_TRUE(test, wait_for_completion_timeout(&bye.gone, KDT_WAIT));
		KDT_OK(test, bye.drained);
		KDT_OK(test, bye.freed);
		KUNIT_EXPECT_EQ_MSG(test, bye.sends, LAST_WORDS, "round %u", round);
		query(test, rig, &param);
		/* what soft-RoCE loses with a connection (D-15) */
		missing += posted - kdt_queued(pair->s.recv) - param.outstanding_dto_count;
		pair->s.conn->hook = NULL;
		kdt_conn(test, &pair->c, DAT_CONNECTION_EVENT_DISCONNECTED);
		KDT_OK(test, dat_ep_free(pair->c.h));
		KDT_OK(test, dat_psp_free(pair->psp));
	}
	KUNIT_EXPECT_LE(test, missing, rig->env->b.traits & KDT_SRQ_PD ? GOODBYES : 0U);
	/* what was freed in an upcall goes after it */
	for (i = 0; i < 10000 && (ret = dat_srq_free(rig->srq)) != DAT_SUCCESS; i++)
		usleep_range(1000, 2000);
	KDT_OK(test, ret);
}

/* All of it at once, with messages on their way. */
static void close_ia(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_ia *b = &rig->env->b;
	DAT_SRQ_HANDLE srq = rig->srq;
	struct kdt_pair *pair[3];
	int i, j;

	for (i = 0; i < 3; i++)
		pair[i] = pair_up(test, rig, 0, NULL);
	post_many(test, rig, 0, DTOS);
	for (i = 0; i < 3; i++) {
		for (j = 0; j < 4; j++)
			KDT_OK(test, kdt_send(&pair[i]->c, rig->from, 0, SLOT, 1, 0));
	}
	KDT_TYPE(test, DAT_INVALID_STATE, dat_ia_close(b->h, DAT_CLOSE_GRACEFUL_FLAG));
	KDT_OK(test, dat_ia_close(b->h, DAT_CLOSE_ABRUPT_FLAG));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ, dat_srq_query(srq, 0, NULL));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ, post(rig, 0, 0));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ, dat_srq_free(srq));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP, dat_ep_free(pair[0]->s.h));
	for (i = 0; i < 3; i++) {
		kdt_end(test, &pair[i]->c);
		for (j = 0; j < 4; j++)
			kdt_any_dto(test, pair[i]->c.req, NULL);
	}
	b->h = DAT_HANDLE_NULL;
}

/* ---- size ---- */

static void resize(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_pair *pair = pair_up(test, rig, 0, NULL);
	bool seen[12] = {};
	int limit, i;
	u64 slot;

#define RESIZE(n) dat_srq_resize(rig->srq, n)
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, RESIZE(0));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, RESIZE(-1));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		    RESIZE(rig->env->b.attr.max_recv_per_srq + 1));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, RESIZE(INT_MAX));
	limit = limit_of(test, rig);
	post_many(test, rig, 0, 12);
	/* Below what is outstanding, and below the low watermark. */
	KDT_TYPE(test, DAT_INVALID_STATE, RESIZE(11));
	KDT_TYPE(test, DAT_INVALID_STATE, RESIZE(1));
	KUNIT_EXPECT_EQ(test, limit_of(test, rig), limit);
	KDT_OK(test, dat_srq_set_lw(rig->srq, 16));
	low_event(test, rig);
	KDT_TYPE(test, DAT_INVALID_STATE, RESIZE(15));
	KDT_OK(test, RESIZE(16));
	KUNIT_EXPECT_GE(test, limit_of(test, rig), 16);
	KDT_OK(test, dat_srq_set_lw(rig->srq, 0));
	/* To the number of buffers that are there, and to where it was. */
	KDT_OK(test, RESIZE(12));
	limit = limit_of(test, rig);
	KUNIT_EXPECT_GE(test, limit, 12);
	counts(test, rig, 12, 12);
	if (limit == 12)
		KDT_TYPE(test, DAT_INSUFFICIENT_RESOURCES, post(rig, 12, 12));
	KDT_OK(test, RESIZE(DTOS));
	KUNIT_EXPECT_GE(test, limit_of(test, rig), DTOS);
	/* Not one of them was lost. */
	for (i = 0; i < 12; i++) {
		message(test, rig, pair, 40);
		slot = arrived(test, pair->s.recv, &pair->s, 40);
		KUNIT_ASSERT_LT(test, slot, 12);
		KUNIT_EXPECT_FALSE(test, seen[slot]);
		seen[slot] = true;
		KUNIT_EXPECT_TRUE(test, !memcmp(rig->to->p + slot * SLOT, rig->from->p, 40));
	}
	counts(test, rig, 0, 0);
	post_many(test, rig, 0, limit_of(test, rig));
	KDT_TYPE(test, DAT_INSUFFICIENT_RESOURCES, post(rig, 0, 0));
}

/* How far it grows, with and without EPs: all that was asked for, or nothing. */
static void grow(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_pair *pair;
	DAT_RETURN ret;
	int limit, i;

	/* A little, with buffers on it. */
	post_many(test, rig, 0, 5);
	KDT_OK(test, RESIZE(DTOS + 8));
	KUNIT_EXPECT_GE(test, limit_of(test, rig), DTOS + 8);
	counts(test, rig, 5, 5);
	/* A lot, with buffers on it. */
	limit = limit_of(test, rig);
	ret = RESIZE(16 * DTOS);
	if (ret == DAT_SUCCESS) {
		KUNIT_EXPECT_GE(test, limit_of(test, rig), 16 * DTOS);
	} else {
		KUNIT_EXPECT_TRUE(test, ret == DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
							 DAT_RESOURCE_SRQ));
		KUNIT_EXPECT_EQ(test, limit_of(test, rig), limit);
	}
	counts(test, rig, 5, 5);
	pair = pair_up(test, rig, 0, NULL);
	for (i = 0; i < 5; i++) {
		message(test, rig, pair, 40);
		arrived(test, pair->s.recv, &pair->s, 40);
	}
	/* A lot, with nothing but an EP; then without. */
	ret = RESIZE(16 * DTOS);
	if (ret != DAT_SUCCESS)
		KUNIT_EXPECT_TRUE(test, ret == DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
							 DAT_RESOURCE_SRQ));
	KDT_OK(test, dat_ep_free(pair->s.h));
	KDT_OK(test, RESIZE(16 * DTOS));
	limit = limit_of(test, rig);
	KUNIT_EXPECT_GE(test, limit, 16 * DTOS);
	post_many(test, rig, 0, limit);
	KDT_TYPE(test, DAT_INSUFFICIENT_RESOURCES, post(rig, 0, 0));
	pair = pair_up(test, rig, 0, NULL);
	for (i = 0; i < 2 * limit; i++) {
		u64 slot;

		message(test, rig, pair, 40);
		slot = arrived(test, pair->s.recv, &pair->s, 40);
		KDT_OK(test, post(rig, slot, slot));
	}
	counts(test, rig, limit, limit);
}

/* ---- watermarks ---- */

static void low_watermark(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_evd *recv = quiet_evd(test, rig);
	struct kdt_pair *quiet = pair_up(test, rig, 0, recv);
	struct kdt_pair *loud = pair_up(test, rig, 0, NULL);
	int limit = limit_of(test, rig);
	DAT_SRQ_PARAM param;

	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, dat_srq_set_lw(rig->srq, -1));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		    dat_srq_set_lw(rig->srq, limit + 1));
	query(test, rig, &param);
	KUNIT_EXPECT_EQ(test, param.low_watermark, DAT_SRQ_LW_DEFAULT);
	post_many(test, rig, 0, 6);
	/* Not passed yet: at the mark is not below it. */
	KDT_OK(test, dat_srq_set_lw(rig->srq, 5));
	query(test, rig, &param);
	KUNIT_EXPECT_EQ(test, param.low_watermark, 5);
	message(test, rig, loud, 1);
	arrived(test, loud->s.recv, &loud->s, 1);
	counts(test, rig, 5, 5);
	no_watermark(test, rig);
	/* Passed, on an EVD nobody looks at. */
	message(test, rig, quiet, 2);
	low_event(test, rig);
	/* Not again, not after it was refilled either. */
	message(test, rig, quiet, 3);
	post_many(test, rig, 10, 4);
	message(test, rig, loud, 4);
	message(test, rig, loud, 5);
	arrived(test, loud->s.recv, &loud->s, 4);
	arrived(test, loud->s.recv, &loud->s, 5);
	arrived(test, recv, &quiet->s, 2);
	arrived(test, recv, &quiet->s, 3);
	counts(test, rig, 5, 5);
	message(test, rig, loud, 6);
	arrived(test, loud->s.recv, &loud->s, 6);
	no_watermark(test, rig);
	/* Set again: armed again, in the call if it is passed. */
	KDT_OK(test, dat_srq_set_lw(rig->srq, 5));
	low_event(test, rig);
	KDT_OK(test, dat_srq_set_lw(rig->srq, 4));
	no_watermark(test, rig);
	message(test, rig, loud, 7);
	arrived(test, loud->s.recv, &loud->s, 7);
	low_event(test, rig);
	/* One that has not fired is replaced, 0 disables. */
	KDT_OK(test, dat_srq_set_lw(rig->srq, 3));
	KDT_OK(test, dat_srq_set_lw(rig->srq, 0));
	message(test, rig, loud, 8);
	message(test, rig, loud, 9);
	arrived(test, loud->s.recv, &loud->s, 8);
	arrived(test, loud->s.recv, &loud->s, 9);
	counts(test, rig, 1, 1);
	no_watermark(test, rig);
	/* The largest there is. */
	KDT_OK(test, dat_srq_set_lw(rig->srq, limit));
	low_event(test, rig);
	no_watermark(test, rig);
	/* A refused setting changes nothing. */
	KDT_TYPE(test, DAT_INVALID_PARAMETER, dat_srq_set_lw(rig->srq, -1));
	query(test, rig, &param);
	KUNIT_EXPECT_EQ(test, param.low_watermark, limit);
}

static void low_at_creation(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_ia *b = &rig->env->b;
	DAT_SRQ_ATTR attr = srq_attr(8, 1, 3);
	DAT_SRQ_PARAM param = {};
	DAT_SRQ_HANDLE srq;

	no_watermark(test, rig);	/* DAT_SRQ_LW_DEFAULT */
	KDT_OK(test, dat_srq_create(b->h, b->pz, &attr, &srq));
	watermark(test, rig, srq, DAT_SRQ_LOW_WATERMARK_EVENT);
	no_watermark(test, rig);
	KDT_OK(test, dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &param));
	KUNIT_EXPECT_EQ(test, param.low_watermark, 3);
	KDT_OK(test, dat_srq_free(srq));
}

#define INF DAT_WATERMARK_INFINITE

static void soft_watermark(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_evd *recv = quiet_evd(test, rig);
	struct kdt_pair *pair = pair_up(test, rig, 0, recv);
	struct kdt_pair *other = pair_up(test, rig, 0, recv);
	struct kdt_pair *loud = pair_up(test, rig, 0, NULL);
	struct kdt_pair *plain = kdt_pair_new(test, NULL);
	DAT_EP_PARAM param = {};
	int i;

	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		    dat_ep_set_watermark(rig->srq, 1, 1));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		    dat_ep_set_watermark(pair->s.h, -2, INF));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		    dat_ep_set_watermark(pair->s.h, INF, -2));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		    dat_ep_set_watermark(pair->s.h, INT_MIN, 1));
	/* There is nothing to count without an SRQ. */
	KDT_TYPE(test, DAT_MODEL_NOT_SUPPORTED, dat_ep_set_watermark(plain->s.h, 1, INF));
	KDT_OK(test, dat_ep_query(pair->s.h, DAT_EP_FIELD_ALL, &param));
	KUNIT_EXPECT_EQ(test, param.ep_attr.srq_soft_hw, DAT_HW_DEFAULT);

	post_many(test, rig, 0, 16);
	KDT_OK(test, dat_ep_set_watermark(pair->s.h, 2, INF));
	message(test, rig, pair, 1);
	message(test, rig, pair, 2);
	for (i = 0; i < 3; i++)
		message(test, rig, other, 3);	/* another EP's count */
	counts_become(test, rig, 11, 16);
	no_watermark(test, rig);
	message(test, rig, pair, 4);
	soft_event(test, rig, pair);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(pair->s.h), DAT_EP_STATE_CONNECTED);
	/* Once, also after it went down and up again. */
	message(test, rig, pair, 5);
	counts_become(test, rig, 9, 16);
	arrived(test, recv, &pair->s, 1);
	arrived(test, recv, &pair->s, 2);
	for (i = 0; i < 3; i++)
		arrived(test, recv, &other->s, 3);
	arrived(test, recv, &pair->s, 4);
	arrived(test, recv, &pair->s, 5);
	held(test, pair, 0);
	for (i = 0; i < 3; i++)
		message(test, rig, pair, 6);
	counts_become(test, rig, 6, 9);
	no_watermark(test, rig);
	/* Set again: at once when passed; 3 is not above 3. */
	KDT_OK(test, dat_ep_set_watermark(pair->s.h, 2, INF));
	soft_event(test, rig, pair);
	KDT_OK(test, dat_ep_set_watermark(pair->s.h, 3, INF));
	no_watermark(test, rig);
	KDT_OK(test, dat_ep_set_watermark(pair->s.h, INF, INF));	/* replaced, not fired */
	message(test, rig, pair, 6);
	counts_become(test, rig, 5, 9);
	no_watermark(test, rig);
	KDT_OK(test, dat_ep_set_watermark(pair->s.h, 3, INF));
	soft_event(test, rig, pair);
	/* With upcalls a buffer is held until its upcall has it: one is above 0. */
	KDT_OK(test, dat_ep_set_watermark(loud->s.h, 0, INF));
	message(test, rig, loud, 7);
	arrived(test, loud->s.recv, &loud->s, 7);
	soft_event(test, rig, loud);
	message(test, rig, loud, 8);
	arrived(test, loud->s.recv, &loud->s, 8);
	no_watermark(test, rig);
	for (i = 0; i < 4; i++)
		arrived(test, recv, &pair->s, 6);
	KUNIT_EXPECT_EQ(test, kdt_queued(pair->s.conn), 0);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(loud->s.h), DAT_EP_STATE_CONNECTED);
}

/* Every state: the attribute, before the connection, and after it. */
static void watermark_states(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_ia *b = &rig->env->b;
	struct kdt_evd *recv = quiet_evd(test, rig);
	struct kdt_pair *pair = pair_unconnected(test, rig, 0, recv);
	struct kdt_pair *made = pair_unconnected(test, rig, 0, recv);
	DAT_EP_PARAM param = {};
	DAT_EP_ATTR attr;
	DAT_CR_HANDLE cr;

	/* From the attributes. */
	KDT_OK(test, dat_ep_free(made->s.h));
	ep_attr(rig, &attr, 0);
	attr.srq_soft_hw = 1;
	KDT_OK(test, dat_ep_create_with_srq(b->h, b->pz, recv->h, made->s.req->h, made->s.conn->h,
					    rig->srq, &attr, &made->s.h));
	KDT_OK(test, dat_ep_query(made->s.h, DAT_EP_FIELD_ALL, &param));
	KUNIT_EXPECT_EQ(test, param.ep_attr.srq_soft_hw, 1);
	kdt_pair_connect(test, made);
	post_many(test, rig, 0, 8);
	message(test, rig, made, 1);
	counts_become(test, rig, 7, 8);
	no_watermark(test, rig);
	message(test, rig, made, 1);
	soft_event(test, rig, made);

	/* UNCONNECTED, with a request waiting, CONNECTED, DISCONNECTED */
	KDT_OK(test, dat_ep_set_watermark(pair->s.h, 0, 5));
	KDT_OK(test, dat_ep_set_watermark(pair->s.h, INF, 0));
	cr = kdt_pair_request(test, pair);
	KDT_OK(test, dat_ep_set_watermark(pair->s.h, 1, INF));
	KDT_OK(test, dat_cr_accept(cr, pair->s.h, 0, NULL));
	kdt_conn(test, &pair->c, DAT_CONNECTION_EVENT_ESTABLISHED);
	kdt_conn(test, &pair->s, DAT_CONNECTION_EVENT_ESTABLISHED);
	message(test, rig, pair, 2);
	message(test, rig, pair, 2);
	soft_event(test, rig, pair);
	kdt_pair_down(test, pair);
	/* What was passed is passed in DISCONNECTED, too: the buffers are still held. */
	KDT_OK(test, dat_ep_set_watermark(pair->s.h, 1, INF));
	soft_event(test, rig, pair);
	KDT_OK(test, dat_ep_set_watermark(pair->s.h, 3, 1));
	no_watermark(test, rig);
	KUNIT_EXPECT_EQ(test, kdt_queued(pair->s.conn), 0);	/* there is nothing to break */
	KUNIT_EXPECT_EQ(test, (int)kdt_state(pair->s.h), DAT_EP_STATE_DISCONNECTED);
}

static void hard_watermark(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_evd *recv = quiet_evd(test, rig);
	struct kdt_pair *bad = pair_unconnected(test, rig, 0, recv);
	struct kdt_pair *good = pair_up(test, rig, 0, NULL);
	DAT_EVENT event;
	int i;

	/* Before there is a connection: it holds as soon as there is one. */
	KDT_OK(test, dat_ep_set_watermark(bad->s.h, INF, 2));
	kdt_pair_connect(test, bad);
	post_many(test, rig, 0, 16);
	message(test, rig, bad, 1);
	message(test, rig, bad, 1);
	counts_become(test, rig, 14, 16);
	schedule_timeout_uninterruptible(3);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(bad->s.h), DAT_EP_STATE_CONNECTED);
	KDT_OK(test, kdt_send(&bad->c, rig->from, 0, 1, 5, 0));
	KUNIT_EXPECT_EQ(test, (int)kdt_end(test, &bad->s), DAT_CONNECTION_EVENT_BROKEN);
	kdt_end(test, &bad->c);
	kdt_any_dto(test, bad->c.req, NULL);
	/* What had arrived is kept, and nobody else is concerned. */
	for (i = 0; i < 3; i++)
		arrived(test, recv, &bad->s, 1);
	KUNIT_EXPECT_TRUE(test, DAT_GET_TYPE(dat_evd_dequeue(recv->h, &event)) == DAT_QUEUE_EMPTY);
	counts(test, rig, 13, 13);
	no_watermark(test, rig);
	message(test, rig, good, 9);
	arrived(test, good->s.recv, &good->s, 9);

	/* The setting is used up: again, and all is well until it is set again. */
	KDT_OK(test, dat_ep_reset(bad->c.h));
	KDT_OK(test, dat_ep_reset(bad->s.h));
	kdt_pair_connect(test, bad);
	for (i = 0; i < 4; i++)
		message(test, rig, bad, 1);
	counts_become(test, rig, 8, 12);
	schedule_timeout_uninterruptible(3);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(bad->s.h), DAT_EP_STATE_CONNECTED);
	KDT_OK(test, dat_ep_set_watermark(bad->s.h, INF, 4));
	schedule_timeout_uninterruptible(3);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(bad->s.h), DAT_EP_STATE_CONNECTED);
	/* Both at once, and both are passed already. */
	KDT_OK(test, dat_ep_set_watermark(bad->s.h, 1, 3));
	soft_event(test, rig, bad);
	KUNIT_EXPECT_EQ(test, (int)kdt_end(test, &bad->s), DAT_CONNECTION_EVENT_BROKEN);
	kdt_end(test, &bad->c);
	for (i = 0; i < 4; i++)
		arrived(test, recv, &bad->s, 1);
	counts(test, rig, 8, 8);
	no_watermark(test, rig);
	/* With upcalls, too. */
	KDT_OK(test, dat_ep_set_watermark(good->s.h, INF, 0));
	KDT_OK(test, kdt_send(&good->c, rig->from, 0, 9, 5, 0));
	KUNIT_EXPECT_EQ(test, (int)kdt_end(test, &good->s), DAT_CONNECTION_EVENT_BROKEN);
	kdt_end(test, &good->c);
	arrived(test, good->s.recv, &good->s, 9);
}

/* ---- Protection Zones, no EVD ---- */

static void zones(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_env *env = rig->env;
	struct kdt_ia *b = &env->b;
	struct kdt_pair *pair = pair_unconnected(test, rig, 0, NULL);
	struct kdt_buf *theirs;
	DAT_PZ_HANDLE pz;
	DAT_EP_ATTR attr;
	DAT_RETURN ret;

	KDT_OK(test, dat_pz_create(b->h, &pz));
	KDT_OK(test, kdt_buf_open(env, b, pz, 4096, KDT_RIGHTS, &theirs));
	KDT_OK(test, dat_ep_free(pair->s.h));
	ep_attr(rig, &attr, 0);
	ret = dat_ep_create_with_srq(b->h, pz, pair->s.recv->h, pair->s.req->h, pair->s.conn->h,
				     rig->srq, &attr, &pair->s.h);
	if (!b->prov.srq_ep_pz_difference_supported) {
		KUNIT_EXPECT_TRUE(test, DAT_GET_TYPE(ret) == DAT_INVALID_PARAMETER);
		/* A refused create holds nothing. */
		KDT_OK(test, dat_lmr_free(theirs->lmr));
		KDT_OK(test, dat_pz_free(pz));
		KDT_OK(test, dat_srq_free(rig->srq));
		return;
	}
	KDT_OK(test, ret);
	kdt_pair_connect(test, pair);
	/* Receives obey the SRQ's, everything else the EP's. */
	KDT_OK(test, post(rig, 0, 7));
	message(test, rig, pair, 100);
	KUNIT_EXPECT_EQ(test, arrived(test, pair->s.recv, &pair->s, 100), 7);
	KUNIT_EXPECT_TRUE(test, !memcmp(rig->to->p, rig->from->p, 100));
	KDT_TYPE(test, DAT_PROTECTION_VIOLATION,
		 dat_srq_post_recv(rig->srq, 1, &(DAT_LMR_TRIPLET) {
				   (uintptr_t)theirs->p, 16, theirs->lctx }, kdt_cookie(1)));
	KDT_TYPE(test, DAT_PROTECTION_VIOLATION, kdt_send(&pair->s, rig->to, 0, 16, 1, 0));
	KDT_OK(test, kdt_recv(&pair->c, rig->from, 0, 100, 1));
	KDT_OK(test, kdt_send(&pair->s, theirs, 0, 100, 2, 0));
	kdt_dto(test, pair->s.req, &pair->s, 2, DAT_DTO_SEND, DAT_DTO_SUCCESS, 100);
	kdt_dto(test, pair->c.recv, &pair->c, 1, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 100);
	KDT_OK(test, kdt_write(&pair->c, rig->from, 0, 100, theirs, 0, 3, 0));
	kdt_dto(test, pair->c.req, &pair->c, 3, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS, 100);
}

static void nobody_listens(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_ia *b = &rig->env->b;
	struct kdt_pair *pair = pair_unconnected(test, rig, 0, NULL);
	int limit = limit_of(test, rig), i;
	DAT_EP_ATTR attr;

	KDT_OK(test, dat_ep_free(pair->s.h));
	ep_attr(rig, &attr, 0);
	KDT_OK(test, dat_ep_create_with_srq(b->h, b->pz, NULL, pair->s.req->h, pair->s.conn->h,
					    rig->srq, &attr, &pair->s.h));
	kdt_pair_connect(test, pair);
	/* Completions go nowhere, and their buffers come back all the same. */
	post_many(test, rig, 0, limit);
	for (i = 0; i < 3 * limit; i++) {
		message(test, rig, pair, 10);
		counts_become(test, rig, limit - 1, limit - 1);
		KDT_OK(test, post(rig, i, i));
	}
	KUNIT_EXPECT_EQ(test, kdt_queued(pair->s.recv), 0);
}

/* ---- concurrency and contexts ---- */

#define THREADS	4

struct poster {
	struct rig *rig;
	u64 first;
	unsigned int accepted;
	DAT_RETURN ret;
	struct completion *start, done;
};

static int poster(void *data)
{
	struct poster *p = data;

	wait_for_completion(p->start);
	for (;;) {
		p->ret = post(p->rig, p->first + p->accepted, p->first + p->accepted);
		if (p->ret != DAT_SUCCESS)
			break;
		p->accepted++;
		if (!(p->accepted % 8))
			cond_resched();
	}
	complete(&p->done);
	return 0;
}

/* Posts of several threads: each whole or refused, never one too many. */
static void threads(struct kunit *test)
{
	struct rig *rig = rig_new(test, 200);
	struct kdt_pair *pair = pair_up(test, rig, 0, NULL);
	DECLARE_COMPLETION_ONSTACK(start);
	int limit = limit_of(test, rig), total = 0, i;
	struct poster p[THREADS];
	struct task_struct *task;
	u64 cookie;
	u8 *seen;

	seen = kunit_kzalloc(test, THREADS * 1000, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, seen);
	for (i = 0; i < THREADS; i++) {
		p[i] = (struct poster) { .rig = rig, .first = i * 1000, .start = &start };
		init_completion(&p[i].done);
		task = kthread_run(poster, &p[i], "kdtest/%d", i);
		if (IS_ERR(task)) {
			p[i].ret = DAT_SUCCESS;
			complete(&p[i].done);
		}
	}
	complete_all(&start);
	for (i = 0; i < THREADS; i++) {
		wait_for_completion(&p[i].done);
		KUNIT_EXPECT_TRUE(test, DAT_GET_TYPE(p[i].ret) == DAT_INSUFFICIENT_RESOURCES);
		total += p[i].accepted;
	}
	KUNIT_EXPECT_EQ(test, total, limit);
	counts(test, rig, limit, limit);
	for (i = 0; i < limit; i++) {
		message(test, rig, pair, 12);
		cookie = arrived(test, pair->s.recv, &pair->s, 12);
		KUNIT_ASSERT_LT(test, cookie, THREADS * 1000);
		KUNIT_ASSERT_LT(test, cookie % 1000, p[cookie / 1000].accepted);
		KUNIT_EXPECT_EQ(test, seen[cookie]++, 0);
	}
}

/* All calls of class ANY that have to do with an SRQ, with interrupts off. */
static void under_a_lock(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_pair *pair = pair_up(test, rig, 0, quiet_evd(test, rig));
	DAT_RETURN ret = DAT_SUCCESS, full = DAT_SUCCESS;
	int limit = limit_of(test, rig), i;
	DAT_SRQ_PARAM param = {};
	unsigned long flags;
	DAT_CONTEXT context;
	DAT_COUNT n, span;
	DAT_EVENT event;
	spinlock_t lock;	/* a consumer's, protects nothing here */

	/* ESTABLISHED can be seen a moment before completions become events: wait for one */
	KDT_OK(test, post(rig, 0, 0));
	message(test, rig, pair, 5);
	arrived(test, pair->s.recv, &pair->s, 5);
	KDT_OK(test, post(rig, 0, 0));
	message(test, rig, pair, 5);
	counts_become(test, rig, 0, 1);
	spin_lock_init(&lock);
	spin_lock_irqsave(&lock, flags);
	ret |= dat_ep_recv_query(pair->s.h, &n, &span);
	ret |= dat_ep_set_watermark(pair->s.h, 0, INF);
	ret |= dat_srq_set_lw(rig->srq, 1);
	ret |= dat_evd_dequeue(pair->s.recv->h, &event);
	for (i = 0; i < limit; i++)
		ret |= post(rig, i, i);
	full = post(rig, 0, 0);
	ret |= dat_srq_query(rig->srq, DAT_SRQ_FIELD_ALL, &param);
	ret |= dat_get_consumer_context(rig->srq, &context);
	spin_unlock_irqrestore(&lock, flags);
	KDT_OK(test, ret);
	KUNIT_EXPECT_TRUE(test, DAT_GET_TYPE(full) == DAT_INSUFFICIENT_RESOURCES);
	KUNIT_EXPECT_EQ(test, n, 1);
	KUNIT_EXPECT_EQ(test, param.available_dto_count, limit);
	for (i = 0; i < limit; i++) {
		message(test, rig, pair, 6);
		arrived(test, pair->s.recv, &pair->s, 6);
	}
}

struct again {
	struct rig *rig;
	atomic_t left, posted;
	DAT_RETURN ret;
};

/* The buffer that is being reported is posted again from its own upcall. */
static bool again_hook(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	struct again *a = evd->priv;
	DAT_RETURN ret;

	if (dto->status != DAT_DTO_SUCCESS)
		return false;
	ret = post(a->rig, dto->user_cookie.as_64, dto->user_cookie.as_64);
	if (ret != DAT_SUCCESS)
		a->ret = ret;
	atomic_inc(&a->posted);
	return atomic_dec_return(&a->left) > 0;
}

static void in_upcalls(struct kunit *test)
{
	struct rig *rig = rig_new(test, 16);
	struct again *a = kunit_kzalloc(test, sizeof(*a), GFP_KERNEL);
	int limit = limit_of(test, rig), i, j;
	struct kdt_pair *pair[2];

	KUNIT_ASSERT_NOT_NULL(test, a);
	a->rig = rig;
	for (i = 0; i < 2; i++) {
		pair[i] = pair_up(test, rig, 0, NULL);
		pair[i]->s.recv->priv = a;
		pair[i]->s.recv->hook = again_hook;
	}
	/* The SRQ is full: an upcall must find room for the buffer it was given. */
	post_many(test, rig, 0, limit);
	atomic_set(&a->left, INT_MAX);
	for (j = 0; j < 300; j++) {
		for (i = 0; i < 2; i++)
			KDT_OK(test, kdt_send(&pair[i]->c, rig->from, 0, 64, 1, 0));
		for (i = 0; i < 2; i++)
			kdt_dto(test, pair[i]->c.req, &pair[i]->c, 1, DAT_DTO_SEND,
				DAT_DTO_SUCCESS, 64);
		/* On iWARP a Send has left before it has arrived. */
		for (i = 0; atomic_read(&a->posted) < 2 * (j + 1) && i < 30 * HZ; i++)
			schedule_timeout_uninterruptible(1);
		KUNIT_ASSERT_EQ(test, atomic_read(&a->posted), 2 * (j + 1));
	}
	KDT_OK(test, a->ret);
	counts(test, rig, limit, limit);
	kdt_pair_down(test, pair[0]);
	kdt_pair_down(test, pair[1]);
	pair[0]->s.recv->hook = NULL;
	pair[1]->s.recv->hook = NULL;
}

static struct kunit_case cases[] = {
	KD_CASE(create_arguments, "SRQ-CR-01,SRQ-CR-04,SIL-36,GEN-07,GEN-09: create"),
	KD_CASE(limits, "SRQ-CR-04,SRQ-QRY-03,EP-RQ-03,SIL-29: what the IA says of SRQs"),
	KD_CASE(query_and_free_arguments, "SRQ-QRY-03,GEN-08,SRQ-POST-16: query; bad SRQs"),
	KD_CASE(ep_create_arguments,
		"EP-CREATE-13,EP-CREATE-17,FLAG-12,FLAG-14,SIL-36: EPs of an SRQ"),
	KD_CASE(post_arguments, "SRQ-POST-16,SRQ-CR-03,SIL-42: what a post refuses"),
	KD_CASE(post_until_full, "SRQ-POST-16,SRQ-POST-11,SIL-37: max_recv_dtos, room again"),
	KD_CASE(ep_post_recv_refused, "RECV-17,EP-CREATE-13: no Receives of the EP's own"),
	KD_CASE(counts_example, "SRQ-QRY-01,SRQ-QRY-02,SIL-37: available and outstanding"),
	KD_CASE(recv_query, "EP-RQ-01,EP-RQ-02,EP-RQ-03: buffers an EP has"),
	KD_CASE(who_took_it, "SRQ-POST-01,SRQ-POST-06,SRQ-CR-05: four EPs, EVDs shared or not"),
	KD_CASE(scatter, "SRQ-POST-03,SRQ-POST-10,SRQ-POST-12: filled in order, iov overwritten"),
	KD_CASE(empty_segments, "SRQ-POST-02,EP-POST-12: no segments, empty segments"),
	KD_CASE(cookies, "SRQ-POST-04,GEN-12,EP-POST-06: cookies"),
	KD_CASE(order, "SRQ-POST-13,EP-POST-21: order of each connection"),
	KD_CASE(always_signalled,
		"SRQ-POST-05,SRQ-POST-07,SRQ-POST-09,EP-CREATE-15,FLAG-01,FLAG-20: signalled"),
	KD_CASE(solicited, "SRQ-POST-08,EP-CREATE-15,FLAG-20: solicited wait"),
	KD_CASE(longer_than_the_buffer,
		"SRQ-POST-17,SRQ-POST-02: a message too long for its buffer breaks one connection"),
	KD_CASE(nothing_posted, "SRQ-CR-06,EP-WM-05: a message, and the SRQ is empty"),
	KD_CASE(disconnect, "SRQ-POST-18,SRQ-POST-19: buffers outlive connections"),
	KD_CASE(active_side, "SRQ-POST-15,SRQ-POST-18,SRQ-POST-19,EP-STA-01: attempts that fail"),
	KD_CASE(reset_drops, "EP-CREATE-13,EP-RST-02,EP-RST-03: reset keeps SRQ, frees buffers"),
	KD_CASE(reconnects, "SRQ-POST-19,EP-RST-03: 100 reconnects"),
	KD_CASE(torn, "SRQ-POST-19,SRQ-POST-12: connections torn in the middle of messages"),
	KD_CASE(free_srq, "SRQ-FREE-01,GEN-11: free, in use and with buffers posted"),
	KD_CASE(free_ep, "EP-FREE-03,FLUSH-05: EPs freed with buffers around"),
	KD_CASE(drained, "STAT-05,EP-FREE-06: drained, then freed in the upcall of DISCONNECTED"),
	KD_CASE(close_ia, "IA-CLOSE-02,SRQ-FREE-01: closing with an SRQ in use"),
	KD_CASE(resize, "SRQ-RSZ-01,SRQ-RSZ-02,SRQ-RSZ-03: smaller and back"),
	KD_CASE(grow, "SRQ-RSZ-02: larger"),
	KD_CASE(low_watermark, "SRQ-LW-01,SRQ-LW-02,SRQ-LW-03,SIL-29,SIL-28: low watermark"),
	KD_CASE(low_at_creation, "SRQ-CR-02: low watermark at creation"),
	KD_CASE(soft_watermark, "EP-WM-02,EP-WM-04,EP-WM-06,EP-WM-07,SIL-29: soft high watermark"),
	KD_CASE(watermark_states, "EP-WM-01,EP-WM-04: watermarks in every state"),
	KD_CASE(hard_watermark, "EP-WM-03,EP-WM-04,EP-WM-05,EP-WM-06: hard high watermark"),
	KD_CASE(zones, "EP-CREATE-14,SRQ-CR-05,SRQ-CR-03: different PZs of SRQ and EP"),
	KD_CASE(nobody_listens, "EP-CREATE-03,SIL-37: an EP without recv EVD"),
	KD_CASE(threads, "EP-POST-22,SRQ-POST-11: posts of four threads"),
	KD_CASE(under_a_lock, "SRQ-POST-11,CTX-01,CTX-03: calls with interrupts off"),
	KD_CASE(in_upcalls, "SRQ-POST-11,CTX-02,SIL-37: 600 posts from upcalls to a full SRQ"),
	{}
};

struct kunit_suite kdt_srq_suite = {
	.name = "kdtest-srq",
	.init = kdt_init,
	.exit = kdt_exit,
	.test_cases = cases,
};
