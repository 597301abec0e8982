// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Endpoints that the provider makes for a request. */
#include <linux/slab.h>

#include "kdtest_conn.h"

#define T_STATE DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING

struct tent {
	struct kdt_evd *cr;
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL port;
	struct kdt_ep c, s;		/* s.h comes with the request */
	struct kdt_buf *from, *to;
	DAT_CR_HANDLE request;
};

static struct tent *tent_new(struct kunit *test)
{
	struct tent *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	struct kdt_env *env = kdt_env(test);

	KUNIT_ASSERT_NOT_NULL(test, t);
	t->cr = kdt_evd_new(test, &env->b, DAT_EVD_CR_FLAG);
	t->port = kdt_new_port();
	t->from = kdt_buf_new(test, &env->a, 128);
	t->to = kdt_buf_new(test, &env->b, 128);
	kdt_ep_new(test, &t->c, &env->a, NULL);
	KDT_OK(test, dat_psp_create(env->b.h, t->port, t->cr->h, DAT_PSP_PROVIDER_FLAG, &t->psp));
	return t;
}

/* The same with a request and its endpoint, which has got nothing yet. */
static struct tent *tent_called(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct tent *t = tent_new(test);
	DAT_CR_ARRIVAL_EVENT_DATA arrival;

	arrival = kdt_call(test, &t->c, &env->b, t->port, t->cr);
	KUNIT_EXPECT_PTR_EQ(test, arrival.sp_handle.psp_handle, t->psp);
	KUNIT_EXPECT_EQ(test, arrival.conn_qual, t->port);
	t->request = arrival.cr_handle;
	kdt_ep_from(test, &t->s, &env->b, t->request);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(t->s.h), T_STATE);
	return t;
}

/* The handle is dead, whatever one does with it. */
static void dead(struct kunit *test, DAT_EP_HANDLE ep)
{
	DAT_EP_PARAM param = {};
	DAT_CONTEXT context;

	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		    dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		    dat_ep_modify(ep, 0, &param));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP, dat_ep_free(ep));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP, dat_ep_reset(ep));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		    dat_ep_post_recv(ep, 0, NULL, kdt_cookie(0), 0));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1,
		    dat_get_consumer_context(ep, &context));
}

static void attributes(struct kunit *test)
{
	struct tent *t = tent_called(test);
	DAT_HANDLE_TYPE type = 0;
	DAT_CONTEXT context = { .as_64 = 1 };
	DAT_PSP_PARAM psp = {};
	DAT_EP_PARAM ep = {}, caller = {};
	DAT_BOOLEAN recv_idle = DAT_FALSE, req_idle = DAT_FALSE;
	DAT_COUNT n = -1, span = -1;

	KDT_OK(test, dat_psp_query(t->psp, DAT_PSP_FIELD_ALL, &psp));
	KUNIT_EXPECT_EQ(test, (int)psp.psp_flags, DAT_PSP_PROVIDER_FLAG);
	KDT_OK(test, dat_get_handle_type(t->s.h, &type));
	KUNIT_EXPECT_EQ(test, (int)type, DAT_HANDLE_TYPE_EP);
	KDT_OK(test, dat_get_consumer_context(t->s.h, &context));
	KUNIT_EXPECT_EQ(test, context.as_64, 0);
	KDT_OK(test, dat_get_consumer_context(t->request, &context));
	KUNIT_EXPECT_EQ(test, context.as_64, 0);
	context.as_64 = 0x1234567890abcdefULL;
	KDT_OK(test, dat_set_consumer_context(t->s.h, context));

	KDT_OK(test, dat_ep_query(t->s.h, DAT_EP_FIELD_ALL, &ep));
	KDT_OK(test, dat_ep_query(t->c.h, DAT_EP_FIELD_ALL, &caller));
	KUNIT_EXPECT_PTR_EQ(test, ep.ia_handle, t->s.ia->h);
	KUNIT_EXPECT_EQ(test, (int)ep.ep_state, T_STATE);
	KUNIT_EXPECT_NULL(test, ep.pz_handle);
	KUNIT_EXPECT_NULL(test, ep.recv_evd_handle);
	KUNIT_EXPECT_NULL(test, ep.request_evd_handle);
	KUNIT_EXPECT_NULL(test, ep.connect_evd_handle);
	KUNIT_EXPECT_NULL(test, ep.srq_handle);
	KUNIT_ASSERT_NOT_NULL(test, ep.remote_ia_address_ptr);
	KUNIT_EXPECT_TRUE(test, kdt_same_address(ep.remote_ia_address_ptr, t->c.ia));
	KUNIT_EXPECT_EQ(test, ep.remote_port_qual, caller.local_port_qual);
	KUNIT_EXPECT_EQ(test, (int)ep.ep_attr.service_type, DAT_SERVICE_TYPE_RC);
	KUNIT_EXPECT_EQ(test, (int)ep.ep_attr.qos, DAT_QOS_BEST_EFFORT);
	KUNIT_EXPECT_GE(test, ep.ep_attr.max_recv_dtos, 16);
	KUNIT_EXPECT_GE(test, ep.ep_attr.max_request_dtos, 16);
	KUNIT_EXPECT_GE(test, ep.ep_attr.max_recv_iov, 1);
	KUNIT_EXPECT_GE(test, ep.ep_attr.max_request_iov, 1);
	KUNIT_EXPECT_GE(test, ep.ep_attr.max_message_size, KDT_SIZE);
	KUNIT_EXPECT_GE(test, ep.ep_attr.max_rdma_size, KDT_SIZE);
	/* What the caller wants to read, this one answers, and the reverse. */
	KUNIT_EXPECT_GE(test, ep.ep_attr.max_rdma_read_in, caller.ep_attr.max_rdma_read_out);
	KUNIT_EXPECT_GE(test, ep.ep_attr.max_rdma_read_out, 1);
	if (!t->c.ia->iwarp) {
		KUNIT_EXPECT_EQ(test, ep.ep_attr.max_rdma_read_in,
				caller.ep_attr.max_rdma_read_out);
		KUNIT_EXPECT_EQ(test, ep.ep_attr.max_rdma_read_out,
				caller.ep_attr.max_rdma_read_in);
	}
	KDT_OK(test, dat_ep_get_status(t->s.h, NULL, &recv_idle, &req_idle));
	KUNIT_EXPECT_EQ(test, (int)recv_idle, DAT_TRUE);
	KUNIT_EXPECT_EQ(test, (int)req_idle, DAT_TRUE);
	KDT_OK(test, dat_ep_recv_query(t->s.h, &n, &span));
	KUNIT_EXPECT_EQ(test, n, 0);
	KDT_OK(test, dat_cr_reject(t->request, 0, NULL));
	kdt_conn(test, &t->c, DAT_CONNECTION_EVENT_PEER_REJECTED);
}

/* One by one: what it lacks, what it refuses, what it becomes. */
static void life(struct kunit *test)
{
	struct tent *t = tent_called(test);
	struct kdt_env *env = kdt_env(test);
	DAT_CR_ARRIVAL_EVENT_DATA arrival;
	struct kdt_ep other;
	DAT_EVD_HANDLE h;
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL port;
	int i;

	kdt_ep_new(test, &other, &env->b, NULL);
	/* The request has an endpoint: it takes no other, nor this one by its name. */
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		    dat_cr_accept(t->request, other.h, 0, NULL));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		    dat_cr_accept(t->request, t->s.h, 0, NULL));
	/* It lacks everything, then the EVD only. */
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		    dat_cr_accept(t->request, NULL, 0, NULL));
	KDT_TYPE(test, DAT_PROTECTION_VIOLATION, kdt_recv(&t->s, t->to, 0, 64, 1));
	kdt_refuses(test, &t->s, T_STATE, NULL);
	KDT_OK(test, kdt_ep_give(&t->s, KDT_GIVE_PZ));
	KUNIT_EXPECT_EQ(test, (int)kdt_state(t->s.h), T_STATE);
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		    dat_cr_accept(t->request, NULL, 0, NULL));
	KDT_OK(test, kdt_ep_give(&t->s, KDT_GIVE_EVDS));
	KUNIT_EXPECT_EQ(test, (int)kdt_state(t->s.h), T_STATE);
	/* Without a PZ again, which is as bad as without EVD. */
	h = t->s.ia->pz;
	t->s.ia->pz = DAT_HANDLE_NULL;
	KDT_OK(test, kdt_ep_give(&t->s, KDT_GIVE_PZ));
	t->s.ia->pz = h;
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		    dat_cr_accept(t->request, NULL, 0, NULL));
	KDT_OK(test, kdt_ep_give(&t->s, KDT_GIVE_PZ));
	kdt_refuses(test, &t->s, T_STATE, NULL);
	KUNIT_EXPECT_PTR_EQ(test, kdt_cr_ep(test, t->request), t->s.h);

	for (i = 0; i < 3; i++)
		KDT_OK(test, kdt_recv(&t->s, t->to, 64, 64, i));
	KDT_OK(test, dat_cr_accept(t->request, NULL, 0, NULL));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR,
		    dat_cr_accept(t->request, NULL, 0, NULL));
	kdt_up(test, &t->c, &t->s);
	for (i = 0; i < 3; i++) {
		KDT_OK(test, kdt_send(&t->c, t->from, 0, 64, i, 0));
		kdt_dto(test, t->c.req, &t->c, i, DAT_DTO_SEND, DAT_DTO_SUCCESS, 64);
		kdt_dto(test, t->s.recv, &t->s, i, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 64);
	}
	kdt_talk(test, &t->c, &t->s, t->from, t->to, 1);
	KDT_OK(test, kdt_read(&t->c, t->from, 0, 64, t->to, 0, 9, 0));
	kdt_dto(test, t->c.req, &t->c, 9, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, 64);
	KDT_OK(test, kdt_read(&t->s, t->to, 0, 64, t->from, 0, 10, 0));
	kdt_dto(test, t->s.req, &t->s, 10, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, 64);
	kdt_down(test, &t->c, &t->s);

	/* From now on one like others: it calls, and is named by who accepts. */
	KDT_OK(test, dat_ep_reset(t->s.h));
	KDT_OK(test, dat_ep_reset(t->c.h));
	KUNIT_EXPECT_EQ(test, (int)kdt_state(t->s.h), DAT_EP_STATE_UNCONNECTED);
	KDT_OK(test, dat_psp_create_any(env->b.h, &port, t->cr->h, DAT_PSP_CONSUMER_FLAG, &psp));
	arrival = kdt_call(test, &t->c, &env->b, port, t->cr);
	KDT_OK(test, dat_cr_accept(arrival.cr_handle, t->s.h, 0, NULL));
	kdt_up(test, &t->c, &t->s);
	kdt_talk(test, &t->c, &t->s, t->from, t->to, 2);
	kdt_down(test, &t->c, &t->s);
	KDT_OK(test, dat_ep_reset(t->s.h));
	arrival = kdt_call(test, &t->s, &env->b, port, t->cr);
	KDT_OK(test, dat_cr_accept(arrival.cr_handle, other.h, 0, NULL));
	kdt_up(test, &t->s, &other);
	kdt_down(test, &t->s, &other);
	KDT_OK(test, dat_psp_free(psp));
	KDT_OK(test, dat_psp_free(t->psp));
	kdt_ep_done(test, &t->s);
	kdt_ep_done(test, &other);
	kdt_ep_done(test, &t->c);
}

/* Each parameter that may change in T. */
static void modify(struct kunit *test)
{
	struct tent *t = tent_called(test);
	DAT_EP_PARAM want, now = {}, was = {};
	int i;

	KDT_OK(test, dat_ep_query(t->s.h, DAT_EP_FIELD_ALL, &was));
	want = was;
	want.pz_handle = t->s.ia->pz;
	want.recv_evd_handle = t->s.recv->h;
	want.request_evd_handle = t->s.req->h;
	want.connect_evd_handle = t->s.conn->h;
	want.ep_attr.max_message_size = 5000;
	want.ep_attr.max_rdma_size = 6000;
	want.ep_attr.max_recv_dtos = 9;
	want.ep_attr.max_request_dtos = 11;
	want.ep_attr.max_recv_iov = 2;
	want.ep_attr.max_request_iov = 3;
	want.ep_attr.max_rdma_read_in = 2;
	want.ep_attr.max_rdma_read_out = 3;
	want.ep_attr.max_rdma_read_iov = 1;
	want.ep_attr.max_rdma_write_iov = 2;
	for (i = 7; i < 27; i++) {
		if (BIT_ULL(i) == DAT_EP_FIELD_SRQ_HANDLE) {
			KDT_TYPE(test, DAT_INVALID_PARAMETER,
				 dat_ep_modify(t->s.h, BIT_ULL(i), &want));
			continue;
		}
		KDT_OK(test, dat_ep_modify(t->s.h, BIT_ULL(i), &want));
	}
	KDT_OK(test, dat_ep_query(t->s.h, DAT_EP_FIELD_ALL, &now));
	KUNIT_EXPECT_EQ(test, (int)now.ep_state, T_STATE);
	KUNIT_EXPECT_PTR_EQ(test, now.pz_handle, t->s.ia->pz);
	KUNIT_EXPECT_PTR_EQ(test, now.connect_evd_handle, t->s.conn->h);
	KUNIT_EXPECT_EQ(test, now.ep_attr.max_message_size, 5000);
	KUNIT_EXPECT_EQ(test, now.ep_attr.max_rdma_size, 6000);
	KUNIT_EXPECT_EQ(test, now.ep_attr.max_recv_dtos, 9);
	KUNIT_EXPECT_GE(test, now.ep_attr.max_request_dtos, 11);
	KUNIT_EXPECT_EQ(test, now.ep_attr.max_rdma_read_in, 2);
	KUNIT_EXPECT_EQ(test, now.ep_attr.max_rdma_read_out, 3);
	for (i = 0; i < 9; i++)
		KDT_OK(test, kdt_recv(&t->s, t->to, 64, 64, i));
	KDT_TYPE(test, DAT_INSUFFICIENT_RESOURCES, kdt_recv(&t->s, t->to, 64, 64, i));
	KDT_OK(test, dat_cr_accept(t->request, NULL, 0, NULL));
	kdt_up(test, &t->c, &t->s);
	for (i = 0; i < 9; i++) {
		KDT_OK(test, kdt_send(&t->c, t->from, 0, 64, i, 0));
		kdt_dto(test, t->c.req, &t->c, i, DAT_DTO_SEND, DAT_DTO_SUCCESS, 64);
		kdt_dto(test, t->s.recv, &t->s, i, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 64);
	}
	kdt_talk(test, &t->c, &t->s, t->from, t->to, 3);
	KDT_TYPE(test, DAT_INVALID_PARAMETER, kdt_send(&t->s, t->to, 0, 5001, 0, 0));
	kdt_down(test, &t->c, &t->s);
	kdt_ep_done(test, &t->s);
	kdt_ep_done(test, &t->c);
}

static void rejected(struct kunit *test)
{
	struct tent *t = tent_called(test);
	struct kdt_env *env = kdt_env(test);
	u8 why[16];
	DAT_CR_ARRIVAL_EVENT_DATA arrival;
	DAT_PZ_HANDLE pz, keep = env->b.pz;

	/* With nothing, and with everything and Receives. */
	kdt_fill(why, sizeof(why), 7);
	KDT_OK(test, dat_cr_reject(t->request, sizeof(why), why));
	dead(test, t->s.h);
	kdt_rejected(test, &t->c, sizeof(why), 7);
	KDT_OK(test, dat_ep_reset(t->c.h));

	arrival = kdt_call(test, &t->c, &env->b, t->port, t->cr);
	KDT_OK(test, dat_pz_create(env->b.h, &pz));
	kdt_ep_from(test, &t->s, &env->b, arrival.cr_handle);
	env->b.pz = pz;
	KDT_OK(test, kdt_ep_give(&t->s, KDT_GIVE_ALL));
	env->b.pz = keep;
	KDT_OK(test, dat_ep_post_recv(t->s.h, 0, NULL, kdt_cookie(1), 0));
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE, dat_pz_free(pz));
	KDT_OK(test, dat_cr_reject(arrival.cr_handle, 0, NULL));
	kdt_conn(test, &t->c, DAT_CONNECTION_EVENT_PEER_REJECTED);
	dead(test, t->s.h);
	/* Nothing is held any more, no event of it comes. */
	KDT_OK(test, dat_pz_free(pz));
	KDT_OK(test, dat_evd_free(t->s.conn->h));
	KDT_OK(test, dat_evd_free(t->s.recv->h));
	KDT_OK(test, dat_evd_free(t->s.req->h));
	KUNIT_EXPECT_EQ(test, kdt_queued(t->s.conn), 0);
	kdt_ep_done(test, &t->c);
}

/* Two requests, two endpoints, answered the other way round after the PSP is gone. */
static void two(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct tent *t = tent_called(test);
	DAT_CR_ARRIVAL_EVENT_DATA arrival;
	struct kdt_ep c2, s2;

	kdt_ep_new(test, &c2, &env->a, NULL);
	arrival = kdt_call(test, &c2, &env->b, t->port, t->cr);
	kdt_ep_from(test, &s2, &env->b, arrival.cr_handle);
	KUNIT_EXPECT_PTR_NE(test, s2.h, t->s.h);
	KUNIT_EXPECT_PTR_NE(test, arrival.cr_handle, t->request);
	KDT_OK(test, dat_psp_free(t->psp));
	kdt_nobody(test, t->port);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(t->s.h), T_STATE);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(s2.h), T_STATE);

	KDT_OK(test, kdt_ep_give(&s2, KDT_GIVE_ALL));
	KDT_OK(test, dat_cr_accept(arrival.cr_handle, NULL, 0, NULL));
	kdt_up(test, &c2, &s2);
	kdt_talk(test, &c2, &s2, t->from, t->to, 2);
	KDT_OK(test, kdt_ep_give(&t->s, KDT_GIVE_ALL));
	KDT_OK(test, dat_cr_accept(t->request, NULL, 0, NULL));
	kdt_up(test, &t->c, &t->s);
	kdt_talk(test, &t->c, &t->s, t->from, t->to, 1);
	kdt_talk(test, &c2, &s2, t->from, t->to, 3);
	kdt_down(test, &t->c, &t->s);
	kdt_down(test, &c2, &s2);
	kdt_ep_done(test, &t->s);
	kdt_ep_done(test, &s2);
	kdt_ep_done(test, &t->c);
	kdt_ep_done(test, &c2);
}

struct server {
	struct kdt_ep *ep;
	DAT_RETURN give, accept;
};

static bool serve(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	DAT_CR_HANDLE cr = event->event_data.cr_arrival_event_data.cr_handle;
	struct server *s = evd->priv;
	DAT_CR_PARAM param = {};

	if (dat_cr_query(cr, DAT_CR_FIELD_ALL, &param) == DAT_SUCCESS)
		s->ep->h = param.local_ep_handle;
	s->give = kdt_ep_give(s->ep, KDT_GIVE_ALL);
	s->accept = dat_cr_accept(cr, NULL, 0, NULL);
	return true;
}

static void in_upcall(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct tent *t = tent_new(test);
	struct server s = { .ep = &t->s, .give = DAT_ABORT, .accept = DAT_ABORT };

	KDT_OK(test, kdt_ep_evds(env, &t->s, &env->b));
	t->cr->priv = &s;
	t->cr->hook = serve;
	KDT_OK(test, kdt_connect(&t->c, &env->b, t->port));
	kdt_conn(test, &t->c, DAT_CONNECTION_EVENT_ESTABLISHED);
	KDT_OK(test, s.give);
	KDT_OK(test, s.accept);
	kdt_conn(test, &t->s, DAT_CONNECTION_EVENT_ESTABLISHED);
	t->cr->hook = NULL;
	kdt_talk(test, &t->c, &t->s, t->from, t->to, 4);
	kdt_down(test, &t->c, &t->s);
	kdt_ep_done(test, &t->s);
	kdt_ep_done(test, &t->c);
}

/* The peer goes; the endpoint stays in T until somebody answers. */
static void peer_gone(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct tent *t = tent_called(test);
	DAT_CR_ARRIVAL_EVENT_DATA arrival;
	DAT_EVENT event;

	KDT_OK(test, dat_ep_disconnect(t->c.h, DAT_CLOSE_ABRUPT_FLAG));
	kdt_conn(test, &t->c, DAT_CONNECTION_EVENT_DISCONNECTED);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(t->s.h), T_STATE);
	KDT_OK(test, dat_cr_reject(t->request, 0, NULL));
	dead(test, t->s.h);
	KDT_OK(test, dat_ep_reset(t->c.h));

	arrival = kdt_call(test, &t->c, &env->b, t->port, t->cr);
	kdt_ep_from(test, &t->s, &env->b, arrival.cr_handle);
	KDT_OK(test, kdt_ep_give(&t->s, KDT_GIVE_ALL));
	KDT_OK(test, dat_ep_post_recv(t->s.h, 0, NULL, kdt_cookie(5), 0));
	KDT_OK(test, dat_ep_free(t->c.h));
	KDT_OK(test, dat_cr_accept(arrival.cr_handle, NULL, 0, NULL));
	KUNIT_ASSERT_TRUE(test, kdt_get(t->s.conn, &event));
	if (env->b.iwarp && event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
		kdt_end(test, &t->s);	/* see D-17: the caller could not be taken back */
	else
		KUNIT_EXPECT_EQ(test, (int)event.event_number,
				DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	kdt_dto(test, t->s.recv, &t->s, 5, DAT_DTO_RECEIVE, DAT_DTO_ERR_FLUSHED, 0);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(t->s.h), DAT_EP_STATE_DISCONNECTED);
	KDT_OK(test, dat_ep_reset(t->s.h));
	kdt_ep_done(test, &t->s);
}

static struct kunit_case cases[] = {
	KD_CASE(attributes, "EPSM-02,EPSM-36,PSP-06,CR-QRY-01,EP-QRY-01,SIL-20,SIL-22: born"),
	KD_CASE(life, "EPSM-04,EPSM-37,CR-ACC-01,CR-ACC-02,CR-ACC-05,CR-ACC-06,RECV-18: its life"),
	KD_CASE(modify, "EP-MOD-01,EP-MOD-02,EP-MOD-07: all that may be modified in T"),
	KD_CASE(rejected, "CR-REJ-02,EP-FREE-04,CR-REJ-01,GEN-11: gone with the request"),
	KD_CASE(two, "PSP-06,PSP-08: two requests, two endpoints, and the PSP freed"),
	KD_CASE(in_upcall, "CTX-04,EPSM-04,PSP-06: configured and accepted inside the upcall"),
	KD_CASE(peer_gone, "CR-ACC-08,EPSM-12,CR-LIFE-01: the caller has gone"),
	{}
};

struct kunit_suite kdt_tentative_suite = {
	.name = "kdtest-tentative",
	.init = kdt_init,
	.exit = kdt_exit,
	.test_cases = cases,
};
