// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* dat_ep_modify: what changes, what does not, and that the change is real. */
#include <linux/slab.h>

#include "kdtest.h"

static DAT_RETURN set_handle(DAT_EP_HANDLE ep, DAT_EP_PARAM_MASK bit, DAT_HANDLE h)
{
	DAT_EP_PARAM param;

	memset(&param, 0xee, sizeof(param));	/* what is not asked for is not looked at */
	switch (bit) {
	case DAT_EP_FIELD_PZ_HANDLE:
		param.pz_handle = h;
		break;
	case DAT_EP_FIELD_RECV_EVD_HANDLE:
		param.recv_evd_handle = h;
		break;
	case DAT_EP_FIELD_REQUEST_EVD_HANDLE:
		param.request_evd_handle = h;
		break;
	default:
		param.connect_evd_handle = h;
	}
	return dat_ep_modify(ep, bit, &param);
}

#define SET_PZ(ep, h)	set_handle(ep, DAT_EP_FIELD_PZ_HANDLE, h)
#define SET_RECV(ep, h)	set_handle(ep, DAT_EP_FIELD_RECV_EVD_HANDLE, h)
#define SET_REQ(ep, h)	set_handle(ep, DAT_EP_FIELD_REQUEST_EVD_HANDLE, h)
#define SET_CONN(ep, h)	set_handle(ep, DAT_EP_FIELD_CONNECT_EVD_HANDLE, h)

/* One attribute and nothing else. */
#define SET_ATTR(ep, bit, member, value)						\
({											\
	DAT_EP_PARAM kdt_p;								\
											\
	memset(&kdt_p, 0xee, sizeof(kdt_p));						\
	kdt_p.ep_attr.member = (value);							\
	dat_ep_modify(ep, DAT_EP_FIELD_EP_ATTR_##bit, &kdt_p);				\
})

#define BAD_ATTR(ep, bit, member, value)						\
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,			\
		    SET_ATTR(ep, bit, member, value))

static void unchanged(struct kunit *test, DAT_EP_HANDLE ep, const DAT_EP_PARAM *before)
{
	DAT_EP_PARAM now = {};

	KDT_OK(test, dat_ep_query(ep, DAT_EP_FIELD_ALL, &now));
	KUNIT_EXPECT_PTR_EQ(test, now.pz_handle, before->pz_handle);
	KUNIT_EXPECT_PTR_EQ(test, now.recv_evd_handle, before->recv_evd_handle);
	KUNIT_EXPECT_PTR_EQ(test, now.request_evd_handle, before->request_evd_handle);
	KUNIT_EXPECT_PTR_EQ(test, now.connect_evd_handle, before->connect_evd_handle);
	KUNIT_EXPECT_PTR_EQ(test, now.srq_handle, before->srq_handle);
	KUNIT_EXPECT_TRUE(test, !memcmp(&now.ep_attr, &before->ep_attr, sizeof(now.ep_attr)));
}

/* A message each way and the end. */
static void use(struct kunit *test, struct kdt_pair *pair, struct kdt_buf *from, struct kdt_buf *to)
{
	KDT_OK(test, kdt_recv(&pair->c, from, 64, 64, 1));
	KDT_OK(test, kdt_recv(&pair->s, to, 0, 64, 2));
	KDT_OK(test, kdt_send(&pair->c, from, 0, 64, 3, 0));
	kdt_dto(test, pair->c.req, &pair->c, 3, DAT_DTO_SEND, DAT_DTO_SUCCESS, 64);
	kdt_dto(test, pair->s.recv, &pair->s, 2, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 64);
	KUNIT_EXPECT_TRUE(test, !memcmp(from->p, to->p, 64));
	KDT_OK(test, kdt_send(&pair->s, to, 0, 64, 4, 0));
	kdt_dto(test, pair->s.req, &pair->s, 4, DAT_DTO_SEND, DAT_DTO_SUCCESS, 64);
	kdt_dto(test, pair->c.recv, &pair->c, 1, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 64);
	KDT_OK(test, kdt_write(&pair->c, from, 0, 64, to, 64, 5, 0));
	kdt_dto(test, pair->c.req, &pair->c, 5, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS, 64);
	kdt_pair_down(test, pair);
}

static void arguments(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	static const DAT_EP_PARAM_MASK fixed[] = {
		DAT_EP_FIELD_IA_HANDLE, DAT_EP_FIELD_EP_STATE,
		DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR, DAT_EP_FIELD_LOCAL_PORT_QUAL,
		DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR, DAT_EP_FIELD_REMOTE_PORT_QUAL,
		DAT_EP_FIELD_SRQ_HANDLE,
	};
	DAT_EP_PARAM param = {}, same = {};
	DAT_EP_HANDLE ep = pair->c.h;
	int i;

	KDT_OK(test, dat_ep_query(ep, DAT_EP_FIELD_ALL, &same));
	param = same;
	for (i = 0; i < ARRAY_SIZE(fixed); i++) {
		/* Not even to what it is, nor beside something that may change. */
		KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
			    dat_ep_modify(ep, fixed[i], &param));
		KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
			    dat_ep_modify(ep, fixed[i] | DAT_EP_FIELD_PZ_HANDLE, &param));
	}
	for (i = 31; i < 64; i++)
		KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
			    dat_ep_modify(ep, 1ULL << i, &param));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		    dat_ep_modify(ep, DAT_EP_FIELD_PZ_HANDLE, NULL));
	KDT_OK(test, dat_ep_modify(ep, 0, &param));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		    dat_ep_modify(DAT_HANDLE_NULL, DAT_EP_FIELD_PZ_HANDLE, &param));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		    dat_ep_modify(env->a.pz, DAT_EP_FIELD_PZ_HANDLE, &param));
	unchanged(test, ep, &same);
	KDT_OK(test, dat_ep_free(ep));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		    dat_ep_modify(ep, DAT_EP_FIELD_PZ_HANDLE, &param));
}

static void bad_handles(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL, stale, foreign;
	DAT_PZ_HANDLE stale_pz, foreign_pz;
	DAT_EP_HANDLE ep = pair->c.h;
	DAT_EP_PARAM before = {};
	DAT_IA_HANDLE ia;

	KDT_OK(test, dat_evd_kcreate(env->a.h, 8, DAT_UPCALL_DISABLE, NULL,
				     DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG, &stale));
	KDT_OK(test, dat_evd_free(stale));
	KDT_OK(test, dat_pz_create(env->a.h, &stale_pz));
	KDT_OK(test, dat_pz_free(stale_pz));
	KDT_OK(test, dat_ia_open(kdt_ia_a, 8, &async, &ia));
	KDT_OK(test, dat_pz_create(ia, &foreign_pz));
	KDT_OK(test, dat_evd_kcreate(ia, 8, DAT_UPCALL_DISABLE, NULL,
				     DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG, &foreign));
	KDT_OK(test, dat_ep_query(ep, DAT_EP_FIELD_ALL, &before));
#define BAD(call) KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3, call)
	BAD(SET_PZ(ep, (DAT_HANDLE)0x1234567));
	BAD(SET_PZ(ep, stale_pz));
	BAD(SET_PZ(ep, foreign_pz));
	BAD(SET_PZ(ep, pair->c.conn->h));
	BAD(SET_RECV(ep, (DAT_HANDLE)0x1234567));
	BAD(SET_RECV(ep, stale));
	BAD(SET_RECV(ep, foreign));
	BAD(SET_RECV(ep, env->a.pz));
	BAD(SET_RECV(ep, pair->c.conn->h));
	BAD(SET_REQ(ep, (DAT_HANDLE)0x1234567));
	BAD(SET_REQ(ep, stale));
	BAD(SET_REQ(ep, foreign));
	BAD(SET_REQ(ep, pair->c.conn->h));
	BAD(SET_CONN(ep, (DAT_HANDLE)0x1234567));
	BAD(SET_CONN(ep, stale));
	BAD(SET_CONN(ep, foreign));
	BAD(SET_CONN(ep, pair->c.recv->h));
	unchanged(test, ep, &before);
	KDT_OK(test, dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

/* Sets one attribute; all of them have 32 bits. Nothing beside it moves. */
static void change(struct kunit *test, DAT_EP_HANDLE ep, DAT_EP_PARAM *before,
		   DAT_EP_PARAM_MASK bit, size_t offset, u32 value, bool exact)
{
	DAT_EP_PARAM param;
	u32 now;

	memset(&param, 0xee, sizeof(param));
	memcpy((void *)&param.ep_attr + offset, &value, sizeof(value));
	KDT_OK(test, dat_ep_modify(ep, bit, &param));
	KDT_OK(test, dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	memcpy(&now, (void *)&param.ep_attr + offset, sizeof(now));
	KUNIT_EXPECT_TRUE_MSG(test, exact ? now == value : now >= value,
			      "parameter 0x%llx: %u, asked for %u", bit, now, value);
	memcpy((void *)&before->ep_attr + offset, &now, sizeof(now));
	unchanged(test, ep, before);
}

static void attributes(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	const DAT_IA_ATTR *max = &env->a.attr;
	DAT_EP_HANDLE ep = pair->c.h;
	DAT_EP_PARAM before = {}, param = {};
	DAT_NAMED_ATTR named = { "a", "b" };

	KDT_OK(test, dat_ep_query(ep, DAT_EP_FIELD_ALL, &before));
	BAD_ATTR(ep, SERVICE_TYPE, service_type, 1);
	BAD_ATTR(ep, QOS, qos, 0x10);
	BAD_ATTR(ep, RECV_COMPLETION_FLAGS, recv_completion_flags, DAT_COMPLETION_SUPPRESS_FLAG);
	BAD_ATTR(ep, RECV_COMPLETION_FLAGS, recv_completion_flags,
		 DAT_COMPLETION_EVD_THRESHOLD_FLAG);
	BAD_ATTR(ep, REQUEST_COMPLETION_FLAGS, request_completion_flags,
		 DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	BAD_ATTR(ep, REQUEST_COMPLETION_FLAGS, request_completion_flags,
		 DAT_COMPLETION_EVD_THRESHOLD_FLAG);
	BAD_ATTR(ep, MAX_RECV_DTOS, max_recv_dtos, -1);
	BAD_ATTR(ep, MAX_RECV_DTOS, max_recv_dtos, 0);	/* there is an EVD for them */
	BAD_ATTR(ep, MAX_RECV_DTOS, max_recv_dtos, kdt_most_dtos(env) + 1);
	BAD_ATTR(ep, MAX_REQUEST_DTOS, max_request_dtos, -1);
	BAD_ATTR(ep, MAX_REQUEST_DTOS, max_request_dtos, kdt_most_dtos(env) + 1);
	BAD_ATTR(ep, MAX_RECV_IOV, max_recv_iov, max->max_iov_segments_per_dto + 1);
	BAD_ATTR(ep, MAX_REQUEST_IOV, max_request_iov, max->max_iov_segments_per_dto + 1);
	BAD_ATTR(ep, MAX_RDMA_READ_IN, max_rdma_read_in, max->max_rdma_read_per_ep_in + 1);
	BAD_ATTR(ep, MAX_RDMA_READ_OUT, max_rdma_read_out, -1);
	BAD_ATTR(ep, MAX_RDMA_READ_OUT, max_rdma_read_out, max->max_rdma_read_per_ep_out + 1);
	BAD_ATTR(ep, MAX_RDMA_READ_IOV, max_rdma_read_iov,
		 max->max_iov_segments_per_rdma_read + 1);
	BAD_ATTR(ep, MAX_RDMA_WRITE_IOV, max_rdma_write_iov,
		 max->max_iov_segments_per_rdma_write + 1);
	BAD_ATTR(ep, SRQ_SOFT_HW, srq_soft_hw, -2);
	if (max->max_message_size < U32_MAX)
		BAD_ATTR(ep, MAX_MESSAGE_SIZE, max_message_size, max->max_message_size + 1);
	if (max->max_rdma_size < U32_MAX)
		BAD_ATTR(ep, MAX_RDMA_SIZE, max_rdma_size, max->max_rdma_size + 1);
	KDT_REFUSED(test, DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE,
		    SET_ATTR(ep, QOS, qos, DAT_QOS_PREMIUM));
	/* No attribute of a transport or a provider has a name here. */
	param.ep_attr.ep_transport_specific_count = 1;
	param.ep_attr.ep_transport_specific = &named;
	KDT_TYPE(test, DAT_INVALID_PARAMETER,
		 dat_ep_modify(ep, DAT_EP_FIELD_EP_ATTR_NUM_TRANSPORT_ATTR |
			       DAT_EP_FIELD_EP_ATTR_TRANSPORT_SPECIFIC_ATTR, &param));
	param.ep_attr.ep_provider_specific_count = 1;
	param.ep_attr.ep_provider_specific = &named;
	KDT_TYPE(test, DAT_INVALID_PARAMETER,
		 dat_ep_modify(ep, DAT_EP_FIELD_EP_ATTR_NUM_PROVIDER_ATTR |
			       DAT_EP_FIELD_EP_ATTR_PROVIDER_SPECIFIC_ATTR, &param));
	unchanged(test, ep, &before);

	/* Each for itself, exactly or at least as asked. */
#define CHANGE(bit, member, value, exact)						\
	change(test, ep, &before, DAT_EP_FIELD_EP_ATTR_##bit, offsetof(DAT_EP_ATTR, member),	\
	       value, exact)
	CHANGE(SERVICE_TYPE, service_type, DAT_SERVICE_TYPE_RC, true);
	CHANGE(QOS, qos, DAT_QOS_BEST_EFFORT, true);
	CHANGE(MAX_MESSAGE_SIZE, max_message_size, 1000, true);
	CHANGE(MAX_RDMA_SIZE, max_rdma_size, 2000, true);
	CHANGE(MAX_RECV_DTOS, max_recv_dtos, 7, true);
	CHANGE(MAX_REQUEST_DTOS, max_request_dtos, 9, false);
	CHANGE(MAX_RECV_IOV, max_recv_iov, 2, false);
	CHANGE(MAX_REQUEST_IOV, max_request_iov, 3, false);
	CHANGE(MAX_RDMA_READ_IN, max_rdma_read_in, 2, true);
	CHANGE(MAX_RDMA_READ_OUT, max_rdma_read_out, 3, true);
	CHANGE(MAX_RDMA_READ_IOV, max_rdma_read_iov, 1, true);
	CHANGE(MAX_RDMA_WRITE_IOV, max_rdma_write_iov, 2, true);
	CHANGE(RECV_COMPLETION_FLAGS, recv_completion_flags, DAT_COMPLETION_UNSIGNALLED_FLAG, true);
	CHANGE(REQUEST_COMPLETION_FLAGS, request_completion_flags,
	       DAT_COMPLETION_UNSIGNALLED_FLAG, true);
	CHANGE(SRQ_SOFT_HW, srq_soft_hw, DAT_HW_DEFAULT, true);
}

/* The new attributes are the ones that count. */
static void attributes_count(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, 8192);
	struct kdt_buf *theirs = kdt_buf_new(test, &env->b, 8192);
	DAT_LMR_TRIPLET iov[5];
	int i;

	if (env->a.attr.max_iov_segments_per_dto < ARRAY_SIZE(iov))
		kunit_skip(test, "fewer segments than this takes");
	for (i = 0; i < ARRAY_SIZE(iov); i++)
		iov[i] = kdt_seg(theirs, i, 1);
	KDT_OK(test, SET_ATTR(pair->s.h, MAX_RECV_DTOS, max_recv_dtos, 5));
	KDT_OK(test, SET_ATTR(pair->s.h, MAX_RECV_IOV, max_recv_iov, 5));
	KDT_OK(test, SET_ATTR(pair->c.h, MAX_MESSAGE_SIZE, max_message_size, 100));
	KDT_OK(test, SET_ATTR(pair->c.h, MAX_RDMA_SIZE, max_rdma_size, 200));
	KDT_OK(test, SET_ATTR(pair->c.h, MAX_RDMA_READ_OUT, max_rdma_read_out, 1));
	KDT_OK(test, SET_ATTR(pair->c.h, REQUEST_COMPLETION_FLAGS, request_completion_flags,
			      DAT_COMPLETION_UNSIGNALLED_FLAG));
	for (i = 0; i < 5; i++)
		KDT_OK(test, dat_ep_post_recv(pair->s.h, 5, iov, kdt_cookie(i), 0));
	KDT_TYPE(test, DAT_INSUFFICIENT_RESOURCES, kdt_recv(&pair->s, theirs, 0, 8, 1));
	kdt_pair_connect(test, pair);
	KDT_TYPE(test, DAT_INVALID_PARAMETER, kdt_send(&pair->c, mine, 0, 101, 1, 0));
	KDT_TYPE(test, DAT_INVALID_PARAMETER, kdt_write(&pair->c, mine, 0, 201, theirs, 0, 1, 0));
	KDT_OK(test, kdt_send(&pair->c, mine, 0, 5, 1, 0));
	kdt_dto(test, pair->c.req, &pair->c, 1, DAT_DTO_SEND, DAT_DTO_SUCCESS, 5);
	kdt_dto(test, pair->s.recv, &pair->s, 0, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 5);
	KDT_OK(test, kdt_write(&pair->c, mine, 0, 200, theirs, 100, 2,
			       DAT_COMPLETION_UNSIGNALLED_FLAG));
	KDT_OK(test, kdt_read(&pair->c, mine, 0, 64, theirs, 0, 3, 0));
	kdt_dto(test, pair->c.req, &pair->c, 2, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS, 200);
	kdt_dto(test, pair->c.req, &pair->c, 3, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, 64);
}

/* Without segments nothing but empty messages. */
static void no_segments(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, 64);
	struct kdt_buf *theirs = kdt_buf_new(test, &env->b, 64);
	DAT_EP_PARAM param = {};

	KDT_OK(test, dat_ep_modify(pair->c.h, DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV |
				   DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IOV |
				   DAT_EP_FIELD_EP_ATTR_MAX_RDMA_WRITE_IOV, &param));
	KDT_OK(test, dat_ep_query(pair->c.h, DAT_EP_FIELD_ALL, &param));
	kdt_pair_connect(test, pair);
	if (!param.ep_attr.max_request_iov)
		KDT_TYPE(test, DAT_INVALID_PARAMETER, kdt_send(&pair->c, mine, 0, 8, 1, 0));
	KDT_OK(test, kdt_recv(&pair->s, theirs, 0, 64, 2));
	KDT_OK(test, dat_ep_post_send(pair->c.h, 0, NULL, kdt_cookie(1), 0));
	kdt_dto(test, pair->c.req, &pair->c, 1, DAT_DTO_SEND, DAT_DTO_SUCCESS, 0);
	kdt_dto(test, pair->s.recv, &pair->s, 2, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 0);
}

static void zone(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, 128);
	struct kdt_buf *to, *old = kdt_buf_new(test, &env->b, 128);
	DAT_EP_PARAM param = {};
	DAT_PZ_HANDLE pz;
	DAT_EP_ATTR attr;

	/* Born without one: nothing can be posted. */
	KDT_OK(test, dat_ep_free(pair->s.h));
	kdt_attr(env, &attr);
	KDT_OK(test, dat_ep_create(env->b.h, NULL, pair->s.recv->h, pair->s.req->h,
				   pair->s.conn->h, &attr, &pair->s.h));
	KDT_TYPE(test, DAT_PROTECTION_VIOLATION, kdt_recv(&pair->s, old, 0, 64, 1));
	KDT_OK(test, SET_PZ(pair->s.h, env->b.pz));
	KDT_OK(test, dat_ep_query(pair->s.h, DAT_EP_FIELD_ALL, &param));
	KUNIT_EXPECT_PTR_EQ(test, param.pz_handle, env->b.pz);
	kdt_pair_connect(test, pair);
	use(test, pair, from, old);
	KDT_OK(test, dat_ep_reset(pair->c.h));
	KDT_OK(test, dat_ep_reset(pair->s.h));

	/* Another one, and the old one can go. */
	KDT_OK(test, dat_pz_create(env->b.h, &pz));
	KDT_OK(test, kdt_buf_open(env, &env->b, pz, 128, KDT_RIGHTS, &to));
	KDT_OK(test, dat_lmr_free(old->lmr));
	KDT_TYPE(test, DAT_INVALID_STATE, dat_pz_free(env->b.pz));
	KDT_OK(test, SET_PZ(pair->s.h, pz));
	KDT_OK(test, dat_pz_free(env->b.pz));
	KDT_OK(test, dat_lmr_free(to->lmr));
	KDT_TYPE(test, DAT_INVALID_STATE, dat_pz_free(pz));
	KDT_OK(test, dat_pz_create(env->b.h, &env->b.pz));
	KDT_OK(test, kdt_buf_open(env, &env->b, pz, 128, KDT_RIGHTS, &to));
	old = kdt_buf_new(test, &env->b, 128);
	KDT_TYPE(test, DAT_PROTECTION_VIOLATION, kdt_recv(&pair->s, old, 0, 64, 1));
	kdt_pair_connect(test, pair);
	use(test, pair, from, to);
	KDT_OK(test, dat_ep_reset(pair->c.h));
	KDT_OK(test, dat_ep_reset(pair->s.h));

	/* To none and back. */
	KDT_OK(test, SET_PZ(pair->s.h, DAT_HANDLE_NULL));
	KDT_TYPE(test, DAT_PROTECTION_VIOLATION, kdt_recv(&pair->s, to, 0, 64, 1));
	KDT_OK(test, dat_lmr_free(to->lmr));
	KDT_OK(test, dat_pz_free(pz));
	KDT_OK(test, dat_ep_query(pair->s.h, DAT_EP_FIELD_ALL, &param));
	KUNIT_EXPECT_NULL(test, param.pz_handle);
	KDT_OK(test, SET_PZ(pair->s.h, env->b.pz));
	kdt_pair_connect(test, pair);
	use(test, pair, from, old);
}

/* Events go to the new EVDs, and the old ones are nobody's. */
static void evds(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, 128);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, 128);
	struct kdt_ep *ends[] = { &pair->c, &pair->s };
	struct kdt_evd *old[3], *new[3];
	DAT_EP_PARAM param = {};
	int i, j, round;

	for (round = 0; round < 3; round++) {
		for (i = 0; i < 2; i++) {
			struct kdt_ep *ep = ends[i];

			old[0] = ep->recv;
			old[1] = ep->req;
			old[2] = ep->conn;
			new[0] = kdt_evd_new(test, ep->ia, DAT_EVD_DTO_FLAG);
			new[1] = kdt_evd_new(test, ep->ia, DAT_EVD_DTO_FLAG);
			new[2] = kdt_evd_new(test, ep->ia, DAT_EVD_CONNECTION_FLAG);
			for (j = 0; j < 3; j++)
				KDT_TYPE(test, DAT_INVALID_STATE, dat_evd_free(old[j]->h));
			/* One by one, all at once, and by way of none. */
			if (round == 1) {
				param.recv_evd_handle = new[0]->h;
				param.request_evd_handle = new[1]->h;
				param.connect_evd_handle = new[2]->h;
				KDT_OK(test, dat_ep_modify(ep->h, DAT_EP_FIELD_RECV_EVD_HANDLE |
							   DAT_EP_FIELD_REQUEST_EVD_HANDLE |
							   DAT_EP_FIELD_CONNECT_EVD_HANDLE,
							   &param));
			} else {
				if (round == 2) {
					KDT_OK(test, SET_RECV(ep->h, DAT_HANDLE_NULL));
					KDT_OK(test, SET_REQ(ep->h, DAT_HANDLE_NULL));
					KDT_OK(test, SET_CONN(ep->h, DAT_HANDLE_NULL));
					KDT_OK(test, dat_ep_query(ep->h, DAT_EP_FIELD_ALL, &param));
					KUNIT_EXPECT_NULL(test, param.recv_evd_handle);
					KUNIT_EXPECT_NULL(test, param.request_evd_handle);
					KUNIT_EXPECT_NULL(test, param.connect_evd_handle);
					for (j = 0; j < 3; j++)
						KDT_OK(test, dat_evd_free(old[j]->h));
				}
				KDT_OK(test, SET_RECV(ep->h, new[0]->h));
				KDT_OK(test, SET_REQ(ep->h, new[1]->h));
				KDT_OK(test, SET_CONN(ep->h, new[2]->h));
			}
			for (j = 0; j < 3; j++) {
				KDT_TYPE(test, DAT_INVALID_STATE, dat_evd_free(new[j]->h));
				if (round != 2)
					KDT_OK(test, dat_evd_free(old[j]->h));
				KUNIT_EXPECT_EQ(test, kdt_queued(old[j]), 0);
			}
			KDT_OK(test, dat_ep_query(ep->h, DAT_EP_FIELD_ALL, &param));
			KUNIT_EXPECT_PTR_EQ(test, param.recv_evd_handle, new[0]->h);
			KUNIT_EXPECT_PTR_EQ(test, param.request_evd_handle, new[1]->h);
			KUNIT_EXPECT_PTR_EQ(test, param.connect_evd_handle, new[2]->h);
			ep->recv = new[0];
			ep->req = new[1];
			ep->conn = new[2];
		}
		kdt_pair_connect(test, pair);
		use(test, pair, from, to);
		KDT_OK(test, dat_ep_reset(pair->c.h));
		KDT_OK(test, dat_ep_reset(pair->s.h));
	}
	kdt_ep_done(test, &pair->c);
	kdt_ep_done(test, &pair->s);
}

/* Without a connect EVD nothing can be connected; a queue without EVD works. */
static void without_evds(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, 64);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, 64);
	int i;

	KDT_OK(test, SET_CONN(pair->c.h, DAT_HANDLE_NULL));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CONN,
		    kdt_connect(&pair->c, &env->b, pair->port));
	KDT_OK(test, SET_CONN(pair->c.h, pair->c.conn->h));
	KDT_OK(test, SET_REQ(pair->c.h, DAT_HANDLE_NULL));
	kdt_pair_connect(test, pair);
	for (i = 0; i < 3 * KDT_DTOS; i++) {
		KDT_OK(test, kdt_recv(&pair->s, to, 0, 64, i));
		KDT_OK(test, kdt_send(&pair->c, from, 0, 64, i, i & 1 ?
				      DAT_COMPLETION_SUPPRESS_FLAG : 0));
		kdt_dto(test, pair->s.recv, &pair->s, i, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 64);
	}
	/* One that fails, suppressed and without EVD: the end of the connection tells. */
	KDT_OK(test, kdt_recv(&pair->s, to, 0, 8, 1000));
	KDT_OK(test, kdt_send(&pair->c, from, 0, 64, 2000, DAT_COMPLETION_SUPPRESS_FLAG));
	kdt_end(test, &pair->c);
	KUNIT_EXPECT_EQ(test, (int)kdt_end(test, &pair->s), DAT_CONNECTION_EVENT_BROKEN);
	KUNIT_EXPECT_EQ(test, (int)kdt_any_dto(test, pair->s.recv, NULL), DAT_DTO_ERR_LOCAL_LENGTH);
	KUNIT_EXPECT_EQ(test, kdt_queued(pair->c.req), 0);
	KUNIT_EXPECT_EQ(test, kdt_queued(pair->c.recv), 0);
}

/* Every change but that of the soft watermark, in a state that allows none. */
static void no_change(struct kunit *test, struct kdt_ep *ep, int subtype)
{
	DAT_EP_PARAM param = {}, before = {};
	DAT_EP_PARAM_MASK bit;

	KDT_OK(test, dat_ep_query(ep->h, DAT_EP_FIELD_ALL, &before));
	param = before;
	for (bit = DAT_EP_FIELD_PZ_HANDLE; bit <= DAT_EP_FIELD_EP_ATTR_MAX_RDMA_WRITE_IOV;
	     bit <<= 1) {
		if (bit == DAT_EP_FIELD_SRQ_HANDLE || bit == DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW)
			continue;
		KDT_REFUSED(test, DAT_INVALID_STATE, subtype, dat_ep_modify(ep->h, bit, &param));
	}
	/* Also beside the one that is allowed, and then that does not change either. */
	param.ep_attr.srq_soft_hw = 5;
	KDT_REFUSED(test, DAT_INVALID_STATE, subtype,
		    dat_ep_modify(ep->h, DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW |
				  DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE, &param));
	unchanged(test, ep->h, &before);
}

static void states(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, 128);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, 128);
	DAT_CR_HANDLE cr;

	cr = kdt_pair_request(test, pair);
	no_change(test, &pair->c, DAT_INVALID_STATE_EP_ACTCONNPENDING);
	KDT_OK(test, dat_cr_accept(cr, pair->s.h, 0, NULL));
	kdt_conn(test, &pair->c, DAT_CONNECTION_EVENT_ESTABLISHED);
	kdt_conn(test, &pair->s, DAT_CONNECTION_EVENT_ESTABLISHED);
	no_change(test, &pair->c, DAT_INVALID_STATE_EP_CONNECTED);
	no_change(test, &pair->s, DAT_INVALID_STATE_EP_CONNECTED);
	use(test, pair, from, to);
	no_change(test, &pair->c, DAT_INVALID_STATE_EP_DISCONNECTED);
	no_change(test, &pair->s, DAT_INVALID_STATE_EP_DISCONNECTED);
	KDT_OK(test, dat_ep_reset(pair->c.h));
	KDT_OK(test, dat_ep_reset(pair->s.h));
	KDT_OK(test, SET_ATTR(pair->c.h, MAX_RECV_DTOS, max_recv_dtos, 3));
	kdt_pair_connect(test, pair);
	use(test, pair, from, to);
}

/* One wrong value among good ones: all stays as it was, references too. */
static void all_or_nothing(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, 128);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, 128);
	struct kdt_evd *evd = kdt_evd_new(test, &env->a, DAT_EVD_DTO_FLAG);
	DAT_EP_PARAM param = {}, before = {};
	const u64 good = DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE |
			 DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS |
			 DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE | DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW;
	DAT_PZ_HANDLE pz;

	KDT_OK(test, dat_pz_create(env->a.h, &pz));
	KDT_OK(test, dat_ep_query(pair->c.h, DAT_EP_FIELD_ALL, &before));
	param = before;
	param.pz_handle = pz;
	param.recv_evd_handle = evd->h;
	param.request_evd_handle = evd->h;
	param.ep_attr.max_recv_dtos = 3;
	param.ep_attr.max_rdma_size = 100;
	param.ep_attr.srq_soft_hw = 3;
	param.ep_attr.max_rdma_read_in = -1;
	KDT_TYPE(test, DAT_INVALID_PARAMETER,
		 dat_ep_modify(pair->c.h, good | DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IN, &param));
	param.connect_evd_handle = evd->h;
	KDT_TYPE(test, DAT_INVALID_PARAMETER,
		 dat_ep_modify(pair->c.h, good | DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param));
	param.ep_attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	KDT_TYPE(test, DAT_INVALID_PARAMETER,	/* FLAG-16: it shares an EVD */
		 dat_ep_modify(pair->c.h, good | DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS,
			       &param));
	KDT_TYPE(test, DAT_INVALID_PARAMETER,
		 dat_ep_modify(pair->c.h, good | DAT_EP_FIELD_SRQ_HANDLE, &param));
	unchanged(test, pair->c.h, &before);
	KDT_OK(test, dat_evd_free(evd->h));
	KDT_OK(test, dat_pz_free(pz));
	/* Without the wrong ones nothing wrong is looked at. */
	param.pz_handle = before.pz_handle;
	KDT_OK(test, dat_ep_modify(pair->c.h, DAT_EP_FIELD_PZ_HANDLE |
				   DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &param));
	before.ep_attr.max_recv_dtos = 3;
	unchanged(test, pair->c.h, &before);
	kdt_pair_connect(test, pair);
	use(test, pair, from, to);
}

/* Which completion flags may share an EVD is the same question as at creation. */
static void shared_evd(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_ia *a = &env->a;
	struct kdt_evd *dto = kdt_evd_new(test, a, DAT_EVD_DTO_FLAG);
	struct kdt_evd *req = kdt_evd_new(test, a, DAT_EVD_DTO_FLAG);
	struct kdt_evd *both = kdt_evd_new(test, a, DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG);
	DAT_EP_HANDLE one, two;
	DAT_EP_ATTR attr;

	kdt_attr(env, &attr);
	KDT_OK(test, dat_ep_create(a->h, a->pz, dto->h, req->h, NULL, &attr, &one));
	KDT_OK(test, dat_ep_create(a->h, a->pz, dto->h, req->h, NULL, &attr, &two));
	KDT_TYPE(test, DAT_INVALID_PARAMETER,
		 SET_ATTR(one, RECV_COMPLETION_FLAGS, recv_completion_flags,
			  DAT_COMPLETION_UNSIGNALLED_FLAG));
	KDT_TYPE(test, DAT_INVALID_PARAMETER,
		 SET_ATTR(one, REQUEST_COMPLETION_FLAGS, request_completion_flags,
			  DAT_COMPLETION_UNSIGNALLED_FLAG));
	KDT_OK(test, dat_ep_free(two));
	KDT_OK(test, SET_ATTR(one, RECV_COMPLETION_FLAGS, recv_completion_flags,
			      DAT_COMPLETION_UNSIGNALLED_FLAG));
	KDT_TYPE(test, DAT_INVALID_PARAMETER, SET_RECV(one, both->h));
	KDT_OK(test, SET_ATTR(one, RECV_COMPLETION_FLAGS, recv_completion_flags,
			      DAT_COMPLETION_SOLICITED_WAIT_FLAG));
	KDT_TYPE(test, DAT_INVALID_PARAMETER, SET_REQ(one, dto->h));
	KDT_TYPE(test, DAT_INVALID_PARAMETER, SET_RECV(one, req->h));
	KDT_OK(test, SET_ATTR(one, RECV_COMPLETION_FLAGS, recv_completion_flags,
			      DAT_COMPLETION_DEFAULT_FLAG));
	KDT_OK(test, SET_REQ(one, dto->h));
	KDT_OK(test, dat_evd_free(req->h));
	KDT_OK(test, dat_ep_free(one));
	KDT_OK(test, dat_evd_free(dto->h));
	KDT_OK(test, dat_evd_free(both->h));
}

/* With Receives posted: what needs another queue pair waits, the rest does not. */
static void receives_posted(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, 128);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, 128);
	struct kdt_evd *dto = kdt_evd_new(test, &env->b, DAT_EVD_DTO_FLAG);
	struct kdt_evd *conn = kdt_evd_new(test, &env->b, DAT_EVD_CONNECTION_FLAG);
	DAT_EP_HANDLE ep = pair->s.h;
	DAT_EP_PARAM before = {};
	DAT_PZ_HANDLE pz;
	int i;

	KDT_OK(test, dat_pz_create(env->b.h, &pz));
	for (i = 0; i < 5; i++)
		KDT_OK(test, kdt_recv(&pair->s, to, 0, 64, i));
	KDT_OK(test, dat_ep_query(ep, DAT_EP_FIELD_ALL, &before));
#define LATER(call) \
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONNECTED, call)
	LATER(SET_PZ(ep, pz));
	LATER(SET_PZ(ep, DAT_HANDLE_NULL));
	LATER(SET_RECV(ep, dto->h));
	LATER(SET_REQ(ep, dto->h));
	LATER(SET_ATTR(ep, RECV_COMPLETION_FLAGS, recv_completion_flags,
		       DAT_COMPLETION_UNSIGNALLED_FLAG));
	LATER(SET_ATTR(ep, MAX_RECV_DTOS, max_recv_dtos, 4));
	LATER(SET_ATTR(ep, MAX_RECV_DTOS, max_recv_dtos, 100));
	LATER(SET_ATTR(ep, MAX_RECV_IOV, max_recv_iov, 1));
	unchanged(test, ep, &before);
	/* Nothing was taken by those. */
	KDT_OK(test, dat_pz_free(pz));
	KDT_OK(test, dat_evd_free(dto->h));
	/* To the value it has is no change. */
	KDT_OK(test, SET_ATTR(ep, MAX_RECV_DTOS, max_recv_dtos, before.ep_attr.max_recv_dtos));
	KDT_OK(test, SET_RECV(ep, pair->s.recv->h));
	KDT_OK(test, SET_CONN(ep, conn->h));
	KDT_OK(test, dat_evd_free(pair->s.conn->h));
	pair->s.conn = conn;
	KDT_OK(test, SET_ATTR(ep, MAX_MESSAGE_SIZE, max_message_size, 64));
	KDT_OK(test, SET_ATTR(ep, MAX_RDMA_SIZE, max_rdma_size, 64));
	KDT_OK(test, SET_ATTR(ep, MAX_RDMA_READ_IN, max_rdma_read_in, 1));
	/* The Receives are still there, in order. */
	kdt_pair_connect(test, pair);
	for (i = 0; i < 5; i++) {
		KDT_OK(test, kdt_send(&pair->c, from, 0, 10 + i, i, 0));
		kdt_dto(test, pair->s.recv, &pair->s, i, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 10 + i);
	}
}

/* Many changes on the way to one connection. */
static void again_and_again(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, 128);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, 128);
	int i;

	for (i = 1; i <= 30; i++) {
		KDT_OK(test, SET_ATTR(pair->s.h, MAX_RECV_DTOS, max_recv_dtos, i));
		KDT_OK(test, SET_ATTR(pair->c.h, MAX_REQUEST_DTOS, max_request_dtos, i));
	}
	kdt_pair_connect(test, pair);
	use(test, pair, from, to);
	kdt_ep_done(test, &pair->c);
	kdt_ep_done(test, &pair->s);
}

static void soft_event(struct kunit *test, struct kdt_ia *ia, DAT_EP_HANDLE ep)
{
	DAT_ASYNCH_ERROR_EVENT_DATA *data;
	DAT_EVENT event;

	KUNIT_ASSERT_TRUE_MSG(test, kdt_dequeue(ia->async, &event), "no watermark event");
	data = &event.event_data.asynch_error_event_data;
	KUNIT_EXPECT_PTR_EQ(test, data->dat_handle, ep);
	KUNIT_EXPECT_EQ(test, (int)data->reason, DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT);
}

/* An EP of an SRQ stays one; its soft watermark can be set in any state. */
static void of_an_srq(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_ia *b = &env->b;
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, 64);
	struct kdt_buf *to = kdt_buf_new(test, b, 64);
	struct kdt_evd *recv;
	DAT_SRQ_ATTR sattr = { .max_recv_dtos = 16, .max_recv_iov = 1 };
	DAT_LMR_TRIPLET iov = kdt_seg(to, 0, 64);
	DAT_EP_PARAM param = {};
	DAT_SRQ_PARAM srqp = {};
	DAT_SRQ_HANDLE srq;
	DAT_PZ_HANDLE pz;
	DAT_EP_ATTR attr;
	DAT_EVENT event;
	DAT_RETURN ret;
	int i;

	KDT_OK(test, dat_srq_create(b->h, b->pz, &sattr, &srq));
	KDT_OK(test, dat_ep_free(pair->s.h));
	kdt_attr(env, &attr);
	KDT_OK(test, dat_ep_create_with_srq(b->h, NULL, pair->s.recv->h, pair->s.req->h,
					    pair->s.conn->h, srq, &attr, &pair->s.h));
	KDT_OK(test, dat_pz_create(b->h, &pz));
	ret = SET_PZ(pair->s.h, pz);
	if (b->prov.srq_ep_pz_difference_supported)
		KDT_OK(test, ret);
	else
		KUNIT_EXPECT_TRUE(test, DAT_GET_TYPE(ret) == DAT_INVALID_PARAMETER);
	KDT_OK(test, SET_PZ(pair->s.h, b->pz));
	KDT_OK(test, dat_pz_free(pz));
	/* A new recv EVD, with buffers on the SRQ: they are not the EP's. */
	for (i = 0; i < 8; i++)
		KDT_OK(test, dat_srq_post_recv(srq, 1, &iov, kdt_cookie(i)));
	recv = kdt_evd_policy(test, b, DAT_EVD_DTO_FLAG, 64, DAT_UPCALL_DISABLE);
	KDT_OK(test, SET_RECV(pair->s.h, recv->h));
	KDT_OK(test, dat_evd_free(pair->s.recv->h));
	pair->s.recv = recv;
	KDT_OK(test, SET_ATTR(pair->s.h, MAX_REQUEST_DTOS, max_request_dtos, 8));
	KDT_OK(test, SET_ATTR(pair->s.h, SRQ_SOFT_HW, srq_soft_hw, 1));
	param.srq_handle = srq;
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		    dat_ep_modify(pair->s.h, DAT_EP_FIELD_SRQ_HANDLE, &param));
	KDT_OK(test, dat_ep_query(pair->s.h, DAT_EP_FIELD_ALL, &param));
	KUNIT_EXPECT_PTR_EQ(test, param.srq_handle, srq);
	KUNIT_EXPECT_EQ(test, param.ep_attr.srq_soft_hw, 1);
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_SRQ_IN_USE, dat_srq_free(srq));
	KDT_OK(test, dat_srq_query(srq, DAT_SRQ_FIELD_ALL, &srqp));
	KUNIT_EXPECT_EQ(test, srqp.available_dto_count, 8);

	kdt_pair_connect(test, pair);
	for (i = 0; i < 2; i++)
		KDT_OK(test, kdt_send(&pair->c, from, 0, 64, i, DAT_COMPLETION_SUPPRESS_FLAG));
	soft_event(test, b, pair->s.h);
	KDT_OK(test, SET_ATTR(pair->s.h, SRQ_SOFT_HW, srq_soft_hw, 1));	/* CONNECTED */
	soft_event(test, b, pair->s.h);
	BAD_ATTR(pair->s.h, SRQ_SOFT_HW, srq_soft_hw, -2);
	KDT_OK(test, SET_ATTR(pair->s.h, SRQ_SOFT_HW, srq_soft_hw, DAT_HW_DEFAULT));
	KDT_OK(test, dat_ep_query(pair->s.h, DAT_EP_FIELD_ALL, &param));
	KUNIT_EXPECT_EQ(test, param.ep_attr.srq_soft_hw, DAT_HW_DEFAULT);
	for (i = 0; i < 2; i++) {
		KUNIT_ASSERT_TRUE(test, kdt_get(recv, &event));
		KUNIT_EXPECT_EQ(test, (int)event.event_data.dto_completion_event_data.status,
				DAT_DTO_SUCCESS);
	}
	kdt_pair_down(test, pair);
	KDT_OK(test, SET_ATTR(pair->s.h, SRQ_SOFT_HW, srq_soft_hw, 4));	/* DISCONNECTED */
}

static struct kunit_case cases[] = {
	KD_CASE(arguments, "EP-MOD-02,EP-CREATE-13,GEN-07: what never changes, undefined bits"),
	KD_CASE(bad_handles, "EP-MOD-02,SIL-36: bad PZs and EVDs"),
	KD_CASE(attributes, "EP-MOD-01,EP-MOD-02,EP-CREATE-08,EP-CREATE-10: each attribute"),
	KD_CASE(attributes_count, "EP-MOD-01,EP-MOD-05: the new attributes count"),
	KD_CASE(no_segments, "SIL-44: a Send without segments, and none may be had"),
	KD_CASE(zone, "EP-MOD-06,EP-MOD-07,EP-CREATE-02: PZ from none, another, none again"),
	KD_CASE(evds, "EP-MOD-06,EP-MOD-07: events go to the new EVDs"),
	KD_CASE(without_evds, "EP-MOD-07,SIL-45,SIL-08,EP-CREATE-03: no EVD"),
	KD_CASE(states, "EP-MOD-02,EPSM-36: only in UNCONNECTED"),
	KD_CASE(all_or_nothing, "EP-MOD-01,GEN-07: all or nothing"),
	KD_CASE(shared_evd, "FLAG-15,FLAG-16,FLAG-17,EP-MOD-02: flags on a shared EVD"),
	KD_CASE(receives_posted, "EP-MOD-03,EP-MOD-05: with Receives posted"),
	KD_CASE(again_and_again, "EP-MOD-01,EP-MOD-06: many changes"),
	KD_CASE(of_an_srq, "EP-MOD-02,EP-CREATE-13,EP-CREATE-14,EP-WM-01: EPs of an SRQ"),
	{}
};

struct kunit_suite kdt_modify_suite = {
	.name = "kdtest-modify",
	.init = kdt_init,
	.exit = kdt_exit,
	.test_cases = cases,
};
