// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Endpoints: creation, attributes, states, query, reset, free. */
#include "kdtest.h"

static void defaults(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_evd *dto = kdt_evd_new(test, &env->a, DAT_EVD_DTO_FLAG);
	DAT_EP_PARAM param = {};
	DAT_EP_HANDLE ep;

	KDT_OK(test, dat_ep_create(env->a.h, env->a.pz, dto->h, NULL, NULL, NULL, &ep));
	KUNIT_EXPECT_EQ(test, (int)kdt_state(ep), DAT_EP_STATE_UNCONNECTED);
	KDT_OK(test, dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	KUNIT_EXPECT_PTR_EQ(test, param.ia_handle, env->a.h);
	KUNIT_EXPECT_EQ(test, (int)param.ep_state, DAT_EP_STATE_UNCONNECTED);
	KUNIT_EXPECT_PTR_EQ(test, param.pz_handle, env->a.pz);
	KUNIT_EXPECT_PTR_EQ(test, param.recv_evd_handle, dto->h);
	KUNIT_EXPECT_NULL(test, param.request_evd_handle);
	KUNIT_EXPECT_NULL(test, param.connect_evd_handle);
	KUNIT_EXPECT_NULL(test, param.srq_handle);
	KUNIT_EXPECT_EQ(test, (int)param.ep_attr.service_type, DAT_SERVICE_TYPE_RC);
	KUNIT_EXPECT_EQ(test, (int)param.ep_attr.qos, DAT_QOS_BEST_EFFORT);
	KUNIT_EXPECT_EQ(test, (int)param.ep_attr.recv_completion_flags, 0);
	KUNIT_EXPECT_EQ(test, (int)param.ep_attr.request_completion_flags, 0);
	KUNIT_EXPECT_GT(test, param.ep_attr.max_message_size, 0);
	KUNIT_EXPECT_GT(test, param.ep_attr.max_rdma_size, 0);
	KUNIT_EXPECT_GT(test, param.ep_attr.max_recv_dtos, 0);
	KUNIT_EXPECT_GT(test, param.ep_attr.max_recv_iov, 0);
	KUNIT_EXPECT_EQ(test, param.ep_attr.max_request_dtos, 0);
	KUNIT_EXPECT_EQ(test, param.ep_attr.max_rdma_read_in,
			min(4, env->a.attr.max_rdma_read_per_ep_in));
	KUNIT_EXPECT_EQ(test, param.ep_attr.max_rdma_read_out,
			min(4, env->a.attr.max_rdma_read_per_ep_out));
	KDT_OK(test, dat_ep_free(ep));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP, dat_ep_free(ep));

	KDT_OK(test, dat_ep_create(env->a.h, env->a.pz, NULL, dto->h, NULL, NULL, &ep));
	KDT_OK(test, dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	KUNIT_EXPECT_EQ(test, param.ep_attr.max_recv_dtos, 0);
	KUNIT_EXPECT_GT(test, param.ep_attr.max_request_dtos, 0);
	KDT_OK(test, dat_ep_free(ep));

	/* Nothing at all is legal, too: everything can come later. */
	KDT_OK(test, dat_ep_create(env->a.h, NULL, NULL, NULL, NULL, NULL, &ep));
	KUNIT_EXPECT_EQ(test, (int)kdt_state(ep), DAT_EP_STATE_UNCONNECTED);
	KDT_OK(test, dat_ep_free(ep));
}

static void handles_of_create(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_ia *a = &env->a;
	struct kdt_evd *dto = kdt_evd_new(test, a, DAT_EVD_DTO_FLAG);
	struct kdt_evd *conn = kdt_evd_new(test, a, DAT_EVD_CONNECTION_FLAG);
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL, foreign;
	DAT_EP_HANDLE ep;
	DAT_IA_HANDLE ia;

	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_RECV,
		    dat_ep_create(a->h, a->pz, conn->h, dto->h, conn->h, NULL, &ep));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_REQUEST,
		    dat_ep_create(a->h, a->pz, dto->h, conn->h, conn->h, NULL, &ep));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CONN,
		    dat_ep_create(a->h, a->pz, dto->h, dto->h, dto->h, NULL, &ep));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG7,
		    dat_ep_create(a->h, a->pz, dto->h, dto->h, conn->h, NULL, NULL));

	KDT_OK(test, dat_ia_open(kdt_ia_a, 8, &async, &ia));
	KDT_OK(test, dat_evd_kcreate(ia, 8, DAT_UPCALL_DISABLE, NULL,
				     DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG, &foreign));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_RECV,
		    dat_ep_create(a->h, a->pz, foreign, NULL, NULL, NULL, &ep));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_REQUEST,
		    dat_ep_create(a->h, a->pz, NULL, foreign, NULL, NULL, &ep));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CONN,
		    dat_ep_create(a->h, a->pz, NULL, NULL, foreign, NULL, &ep));
	KDT_OK(test, dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	/* A refused create took no reference. */
	KDT_OK(test, dat_evd_free(dto->h));
	KDT_OK(test, dat_evd_free(conn->h));
	KDT_OK(test, dat_pz_free(a->pz));
}

static void attributes(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	const DAT_IA_ATTR *max = &env->a.attr;
	struct kdt_evd *dto = kdt_evd_new(test, &env->a, DAT_EVD_DTO_FLAG);
	struct kdt_evd *conn = kdt_evd_new(test, &env->a, DAT_EVD_CONNECTION_FLAG);
	DAT_EP_PARAM param = {};
	DAT_EP_ATTR attr, good;
	DAT_EP_HANDLE ep;

#define CREATE() dat_ep_create(env->a.h, env->a.pz, dto->h, dto->h, conn->h, &attr, &ep)
#define BAD(field, value)								\
do {											\
	attr = good;									\
	attr.field = (value);								\
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG6, CREATE());		\
} while (0)
#define TOO_MUCH(field, limit)								\
do {											\
	s64 kdt_limit = (limit);							\
											\
	if (kdt_limit < INT_MAX)							\
		BAD(field, kdt_limit + 1);						\
} while (0)
	kdt_attr(env, &good);
	BAD(service_type, 1);
	BAD(qos, 0x10);
	BAD(recv_completion_flags, DAT_COMPLETION_SUPPRESS_FLAG);
	BAD(recv_completion_flags, DAT_COMPLETION_BARRIER_FENCE_FLAG);
	BAD(recv_completion_flags, DAT_COMPLETION_EVD_THRESHOLD_FLAG);
	BAD(request_completion_flags, DAT_COMPLETION_SUPPRESS_FLAG);
	BAD(request_completion_flags, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	BAD(request_completion_flags, DAT_COMPLETION_EVD_THRESHOLD_FLAG);
	BAD(max_recv_dtos, -1);
	BAD(max_request_dtos, -1);
	BAD(max_recv_iov, -1);
	BAD(max_request_iov, -1);
	BAD(max_rdma_read_in, -1);
	BAD(max_rdma_read_out, -1);
	BAD(max_rdma_read_iov, -1);
	BAD(max_rdma_write_iov, -1);
	TOO_MUCH(max_recv_dtos, kdt_most_dtos(env));
	TOO_MUCH(max_request_dtos, kdt_most_dtos(env));
	TOO_MUCH(max_recv_iov, max->max_iov_segments_per_dto);
	TOO_MUCH(max_request_iov, max->max_iov_segments_per_dto);
	TOO_MUCH(max_rdma_read_in, max->max_rdma_read_per_ep_in);
	TOO_MUCH(max_rdma_read_out, max->max_rdma_read_per_ep_out);
	TOO_MUCH(max_rdma_read_iov, max->max_iov_segments_per_rdma_read);
	TOO_MUCH(max_rdma_write_iov, max->max_iov_segments_per_rdma_write);
	if (max->max_message_size < 0xffffffff)
		BAD(max_message_size, max->max_message_size + 1);
	if (max->max_rdma_size < 0xffffffff)
		BAD(max_rdma_size, max->max_rdma_size + 1);
	/* An EVD but nothing that could feed it. */
	BAD(max_recv_dtos, 0);
	BAD(max_request_dtos, 0);
	attr = good;
	attr.qos = DAT_QOS_PREMIUM;
	KDT_REFUSED(test, DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE, CREATE());

	attr = good;
	KDT_OK(test, CREATE());
	KDT_OK(test, dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	KUNIT_EXPECT_EQ(test, param.ep_attr.max_recv_dtos, good.max_recv_dtos);
	KUNIT_EXPECT_EQ(test, param.ep_attr.max_message_size, good.max_message_size);
	KUNIT_EXPECT_EQ(test, param.ep_attr.max_rdma_size, good.max_rdma_size);
	KUNIT_EXPECT_EQ(test, param.ep_attr.max_rdma_read_in, good.max_rdma_read_in);
	KUNIT_EXPECT_EQ(test, param.ep_attr.max_rdma_read_out, good.max_rdma_read_out);
	KUNIT_EXPECT_GE(test, param.ep_attr.max_request_dtos, good.max_request_dtos);
	KUNIT_EXPECT_GE(test, param.ep_attr.max_request_iov, good.max_request_iov);
	KUNIT_EXPECT_GE(test, param.ep_attr.max_recv_iov, good.max_recv_iov);
	KDT_OK(test, dat_ep_free(ep));

	/* The limits themselves are possible, each for itself. */
	attr = good;
	attr.max_rdma_read_in = max->max_rdma_read_per_ep_in;
	attr.max_rdma_read_out = max->max_rdma_read_per_ep_out;
	attr.max_rdma_read_iov = max->max_iov_segments_per_rdma_read;
	attr.max_message_size = max->max_message_size;
	attr.max_rdma_size = max->max_rdma_size;
	KDT_OK(test, CREATE());
	KDT_OK(test, dat_ep_free(ep));
	attr = good;
	attr.max_request_dtos = 1;
	attr.max_recv_dtos = 1;
	attr.max_request_iov = 1;
	attr.max_recv_iov = 1;
	KDT_OK(test, CREATE());
	KDT_OK(test, dat_ep_free(ep));
}

/* Streams that do not fit together on one EVD. */
static void evd_compatibility(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_ia *a = &env->a;
	struct kdt_evd *dto = kdt_evd_new(test, a, DAT_EVD_DTO_FLAG);
	struct kdt_evd *req = kdt_evd_new(test, a, DAT_EVD_DTO_FLAG);
	struct kdt_evd *both = kdt_evd_new(test, a, DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG);
	DAT_EP_HANDLE ep, ep2;
	DAT_EP_ATTR attr;

	/* Same stream type, different flags. */
	kdt_attr(env, &attr);
	KDT_OK(test, dat_ep_create(a->h, a->pz, dto->h, req->h, NULL, &attr, &ep));
	attr.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	KDT_TYPE(test, DAT_INVALID_PARAMETER,
		 dat_ep_create(a->h, a->pz, dto->h, req->h, NULL, &attr, &ep2));
	KDT_OK(test, dat_ep_free(ep));
	KDT_OK(test, dat_ep_create(a->h, a->pz, dto->h, req->h, NULL, &attr, &ep));
	KDT_OK(test, dat_ep_create(a->h, a->pz, dto->h, req->h, NULL, &attr, &ep2));
	KDT_OK(test, dat_ep_free(ep));
	KDT_OK(test, dat_ep_free(ep2));

	/* Solicited wait shares with nothing else. */
	kdt_attr(env, &attr);
	attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	KDT_TYPE(test, DAT_INVALID_PARAMETER,
		 dat_ep_create(a->h, a->pz, dto->h, dto->h, NULL, &attr, &ep));
	KDT_OK(test, dat_ep_create(a->h, a->pz, dto->h, req->h, NULL, &attr, &ep));
	KDT_OK(test, dat_ep_free(ep));

	/* An EVD fed by connection events takes completions with default flags only. */
	kdt_attr(env, &attr);
	attr.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	KDT_TYPE(test, DAT_INVALID_PARAMETER,
		 dat_ep_create(a->h, a->pz, both->h, req->h, both->h, &attr, &ep));
}

static void query(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	DAT_EP_PARAM c = {}, s = {};
	DAT_BOOLEAN recv_idle, req_idle;
	DAT_EP_STATE state;

	KDT_OK(test, dat_ep_query(pair->c.h, 0, NULL));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		    dat_ep_query(pair->c.h, 0x80000000ULL, &c));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		    dat_ep_query(pair->c.h, 1ULL << 40, &c));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		    dat_ep_query(pair->c.h, DAT_EP_FIELD_ALL, NULL));
	KDT_OK(test, dat_ep_query(pair->c.h, DAT_EP_FIELD_ALL, &c));
	KDT_OK(test, dat_ep_query(pair->s.h, DAT_EP_FIELD_ALL, &s));
	KUNIT_EXPECT_EQ(test, (int)c.ep_state, DAT_EP_STATE_CONNECTED);
	KUNIT_EXPECT_EQ(test, (int)s.ep_state, DAT_EP_STATE_CONNECTED);
	KUNIT_EXPECT_PTR_EQ(test, c.connect_evd_handle, pair->c.conn->h);
	KUNIT_EXPECT_EQ(test, c.remote_port_qual, pair->port);
	KUNIT_EXPECT_EQ(test, s.local_port_qual, pair->port);
	KUNIT_EXPECT_NE(test, c.local_port_qual, 0);
	KUNIT_EXPECT_EQ(test, s.remote_port_qual, c.local_port_qual);
	KUNIT_ASSERT_NOT_NULL(test, c.remote_ia_address_ptr);
	KUNIT_ASSERT_NOT_NULL(test, c.local_ia_address_ptr);
	KUNIT_ASSERT_NOT_NULL(test, s.remote_ia_address_ptr);
	KUNIT_EXPECT_TRUE(test, kdt_same_address(c.remote_ia_address_ptr, &env->b));
	KUNIT_EXPECT_TRUE(test, kdt_same_address(c.local_ia_address_ptr, &env->a));
	KUNIT_EXPECT_TRUE(test, kdt_same_address(s.remote_ia_address_ptr, &env->a));

	KDT_OK(test, dat_ep_get_status(pair->c.h, NULL, NULL, NULL));
	KDT_OK(test, dat_ep_get_status(pair->c.h, &state, &recv_idle, &req_idle));
	KUNIT_EXPECT_EQ(test, (int)state, DAT_EP_STATE_CONNECTED);
	KUNIT_EXPECT_EQ(test, (int)recv_idle, DAT_TRUE);
	KUNIT_EXPECT_EQ(test, (int)req_idle, DAT_TRUE);
}

static void idle(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, 64);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, 64);
	DAT_BOOLEAN recv_idle, req_idle;

	KDT_OK(test, kdt_recv(&pair->s, to, 0, 64, 1));
	KDT_OK(test, dat_ep_get_status(pair->s.h, NULL, &recv_idle, &req_idle));
	KUNIT_EXPECT_EQ(test, (int)recv_idle, DAT_FALSE);
	KUNIT_EXPECT_EQ(test, (int)req_idle, DAT_TRUE);
	KDT_OK(test, kdt_send(&pair->c, from, 0, 64, 2, 0));
	kdt_dto(test, pair->c.req, &pair->c, 2, DAT_DTO_SEND, DAT_DTO_SUCCESS, 64);
	kdt_dto(test, pair->s.recv, &pair->s, 1, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 64);
	KDT_OK(test, dat_ep_get_status(pair->s.h, NULL, &recv_idle, NULL));
	KUNIT_EXPECT_EQ(test, (int)recv_idle, DAT_TRUE);
	KDT_OK(test, dat_ep_get_status(pair->c.h, NULL, NULL, &req_idle));
	KUNIT_EXPECT_EQ(test, (int)req_idle, DAT_TRUE);
}

static void no_requests(struct kunit *test, struct kdt_ep *ep, struct kdt_buf *buf, int subtype)
{
	KDT_REFUSED(test, DAT_INVALID_STATE, subtype, kdt_send(ep, buf, 0, 64, 1, 0));
	KDT_REFUSED(test, DAT_INVALID_STATE, subtype, kdt_write(ep, buf, 0, 64, buf, 0, 1, 0));
	KDT_REFUSED(test, DAT_INVALID_STATE, subtype, kdt_read(ep, buf, 0, 64, buf, 0, 1, 0));
}

/* What each state refuses, and which state it says it is in. */
static void states(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	struct kdt_buf *buf = kdt_buf_new(test, &env->a, 64);
	DAT_EP_HANDLE c = pair->c.h;
	DAT_CR_HANDLE cr;

	/* UNCONNECTED */
	no_requests(test, &pair->c, buf, DAT_INVALID_STATE_EP_UNCONNECTED);
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONNECTED,
		    dat_ep_disconnect(c, DAT_CLOSE_ABRUPT_FLAG));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, dat_ep_disconnect(c, 2));
	KDT_OK(test, kdt_recv(&pair->c, buf, 0, 64, 10));
	KDT_OK(test, dat_ep_reset(c));

	/* ACTIVE_CONNECTION_PENDING */
	cr = kdt_pair_request(test, pair);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(c), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	no_requests(test, &pair->c, buf, DAT_INVALID_STATE_EP_ACTCONNPENDING);
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_ACTCONNPENDING, dat_ep_reset(c));
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_ACTCONNPENDING,
		    kdt_connect(&pair->c, &env->b, pair->port));
	KDT_OK(test, kdt_recv(&pair->c, buf, 0, 64, 11));
	KDT_OK(test, dat_cr_accept(cr, pair->s.h, 0, NULL));
	kdt_conn(test, &pair->c, DAT_CONNECTION_EVENT_ESTABLISHED);
	kdt_conn(test, &pair->s, DAT_CONNECTION_EVENT_ESTABLISHED);

	/* CONNECTED */
	KUNIT_EXPECT_EQ(test, (int)kdt_state(c), DAT_EP_STATE_CONNECTED);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(pair->s.h), DAT_EP_STATE_CONNECTED);
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_CONNECTED, dat_ep_reset(c));
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_CONNECTED,
		    kdt_connect(&pair->c, &env->b, pair->port));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, dat_ep_disconnect(c, 2));
	KDT_OK(test, kdt_recv(&pair->c, buf, 0, 64, 12));

	/* DISCONNECTED */
	kdt_pair_down(test, pair);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(c), DAT_EP_STATE_DISCONNECTED);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(pair->s.h), DAT_EP_STATE_DISCONNECTED);
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_DISCONNECTED,
		    kdt_connect(&pair->c, &env->b, pair->port));
	KDT_OK(test, dat_ep_disconnect(c, DAT_CLOSE_ABRUPT_FLAG));
	KDT_OK(test, dat_ep_disconnect(c, DAT_CLOSE_GRACEFUL_FLAG));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, dat_ep_disconnect(c, 2));
	/* All three receives were kept up to here, and are flushed in order. */
	kdt_dto(test, pair->c.recv, &pair->c, 10, DAT_DTO_RECEIVE, DAT_DTO_ERR_FLUSHED, 0);
	kdt_dto(test, pair->c.recv, &pair->c, 11, DAT_DTO_RECEIVE, DAT_DTO_ERR_FLUSHED, 0);
	kdt_dto(test, pair->c.recv, &pair->c, 12, DAT_DTO_RECEIVE, DAT_DTO_ERR_FLUSHED, 0);

	/* and back */
	KDT_OK(test, dat_ep_reset(c));
	KUNIT_EXPECT_EQ(test, (int)kdt_state(c), DAT_EP_STATE_UNCONNECTED);
	no_requests(test, &pair->c, buf, DAT_INVALID_STATE_EP_UNCONNECTED);
	kdt_ep_done(test, &pair->c);
	kdt_ep_done(test, &pair->s);
}

static void reset_keeps_receives(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	struct kdt_buf *from = kdt_buf_new(test, &env->b, 64);
	struct kdt_buf *to = kdt_buf_new(test, &env->a, 64);
	int i;

	for (i = 0; i < 5; i++)
		KDT_OK(test, kdt_recv(&pair->c, to, 0, 64, i));
	KDT_OK(test, dat_ep_reset(pair->c.h));
	kdt_pair_connect(test, pair);
	for (i = 0; i < 5; i++) {
		KDT_OK(test, kdt_send(&pair->s, from, 0, 10 + i, i, 0));
		kdt_dto(test, pair->c.recv, &pair->c, i, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 10 + i);
	}
}

static void free_in_each_state(struct kunit *test)
{
	struct kdt_pair *pair;
	DAT_CR_HANDLE cr;

	pair = kdt_pair_new(test, NULL);
	kdt_ep_done(test, &pair->c);

	/* The attempt is aborted; the request it left behind can still be rejected. */
	pair = kdt_pair_new(test, NULL);
	cr = kdt_pair_request(test, pair);
	kdt_ep_done(test, &pair->c);
	KDT_OK(test, dat_cr_reject(cr, 0, NULL));

	/* The peer of a freed endpoint sees an ordinary disconnect. */
	pair = kdt_pair_up(test);
	kdt_ep_done(test, &pair->c);
	kdt_conn(test, &pair->s, DAT_CONNECTION_EVENT_DISCONNECTED);
	kdt_ep_done(test, &pair->s);

	pair = kdt_pair_up(test);
	kdt_pair_down(test, pair);
	kdt_ep_done(test, &pair->c);
	kdt_ep_done(test, &pair->s);
}

static bool free_ep(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	DAT_EP_HANDLE *ep = evd->priv;

	if (*ep && dat_ep_free(*ep) == DAT_SUCCESS)
		*ep = DAT_HANDLE_NULL;
	return false;
}

static void free_in_upcall(struct kunit *test)
{
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	DAT_EP_HANDLE c = pair->c.h;
	DAT_CR_HANDLE cr;

	pair->c.conn->priv = &c;
	pair->c.conn->hook = free_ep;
	cr = kdt_pair_request(test, pair);
	KDT_OK(test, dat_cr_accept(cr, pair->s.h, 0, NULL));
	kdt_conn(test, &pair->s, DAT_CONNECTION_EVENT_ESTABLISHED);
	/* The client frees itself in the upcall that says it is connected. */
	kdt_conn(test, &pair->s, DAT_CONNECTION_EVENT_DISCONNECTED);
	KUNIT_EXPECT_NULL(test, c);
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP, dat_ep_free(pair->c.h));
	kdt_ep_done(test, &pair->s);
}

static struct kunit_case cases[] = {
	KD_CASE(defaults, "EP-CREATE-01,EP-CREATE-03,EP-CREATE-06,EP-CREATE-07: defaults"),
	KD_CASE(handles_of_create, "EP-CREATE-02,EP-CREATE-04,EP-CREATE-05,EVD-CR-08: handles"),
	KD_CASE(attributes, "EP-CREATE-08,EP-CREATE-09,EP-CREATE-10,FLAG-14,SIL-08: attributes"),
	KD_CASE(evd_compatibility, "EP-CREATE-16,FLAG-15,FLAG-16,FLAG-17: flags on a shared EVD"),
	KD_CASE(query, "EP-QRY-01,EP-QRY-03,EP-STA-02,CONN-09: query and status"),
	KD_CASE(idle, "EP-STA-01,EP-STA-03: idle queues"),
	KD_CASE(states, "EPSM-36,EP-POST-10,EP-RST-01,EP-DIS-02,EP-DIS-04,RECV-13: each state"),
	KD_CASE(reset_keeps_receives, "EP-RST-01,RECV-14: a reset in UNCONNECTED keeps receives"),
	KD_CASE(free_in_each_state, "EP-FREE-01,EP-FREE-02,EP-FREE-03: free"),
	KD_CASE(free_in_upcall, "EP-FREE-06,SIL-46: free in an upcall of its own"),
	{}
};

struct kunit_suite kdt_ep_suite = {
	.name = "kdtest-ep",
	.init = kdt_init,
	.exit = kdt_exit,
	.test_cases = cases,
};
