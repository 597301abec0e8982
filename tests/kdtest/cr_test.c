// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Connection Requests: who may accept them, where they may go, how long they live. */
#include <linux/slab.h>

#include "kdtest_conn.h"

#define P_STATE DAT_EP_STATE_PASSIVE_CONNECTION_PENDING
#define T_STATE DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING

struct two {
	struct kdt_evd *cr, *cr2;
	DAT_CONN_QUAL port, port2;
	DAT_PSP_HANDLE psp, psp2;
	struct kdt_ep c, s;
	struct kdt_buf *from, *to;
	u8 said[48];
};

/* Two service points; the second one has this flag. */
static struct two *two_new(struct kunit *test, DAT_PSP_FLAGS flag)
{
	struct two *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	struct kdt_env *env = kdt_env(test);

	KUNIT_ASSERT_NOT_NULL(test, t);
	t->cr = kdt_evd_new(test, &env->b, DAT_EVD_CR_FLAG);
	t->cr2 = kdt_evd_new(test, &env->b, DAT_EVD_CR_FLAG);
	t->port = kdt_new_port();
	t->port2 = kdt_new_port();
	t->from = kdt_buf_new(test, &env->a, 128);
	t->to = kdt_buf_new(test, &env->b, 128);
	kdt_fill(t->said, sizeof(t->said), 17);
	kdt_ep_new(test, &t->c, &env->a, NULL);
	kdt_ep_new(test, &t->s, &env->b, NULL);
	KDT_OK(test, dat_psp_create(env->b.h, t->port, t->cr->h, DAT_PSP_CONSUMER_FLAG, &t->psp));
	KDT_OK(test, dat_psp_create(env->b.h, t->port2, t->cr2->h, flag, &t->psp2));
	return t;
}

static DAT_CR_ARRIVAL_EVENT_DATA two_call(struct kunit *test, struct two *t)
{
	KDT_OK(test, dat_ep_connect(t->c.h, (DAT_IA_ADDRESS_PTR)&t->s.ia->addr, t->port,
				    60 * USEC_PER_SEC, sizeof(t->said), t->said, 0, 0));
	return kdt_arrival(test, t->cr);
}

static void two_done(struct kunit *test, struct two *t)
{
	KUNIT_EXPECT_EQ(test, kdt_queued(t->cr), 0);
	KUNIT_EXPECT_EQ(test, kdt_queued(t->cr2), 0);
	KDT_OK(test, dat_psp_free(t->psp));
	KDT_OK(test, dat_psp_free(t->psp2));
	kdt_ep_done(test, &t->c);
	kdt_ep_done(test, &t->s);
	KDT_OK(test, dat_evd_free(t->cr->h));
	KDT_OK(test, dat_evd_free(t->cr2->h));
}

/* The request says what it said before. */
static void same_request(struct kunit *test, struct two *t, DAT_CR_HANDLE cr,
			 const DAT_CR_PARAM *before)
{
	DAT_CR_PARAM now = {};

	KDT_OK(test, dat_cr_query(cr, DAT_CR_FIELD_ALL, &now));
	KUNIT_ASSERT_NOT_NULL(test, now.remote_ia_address_ptr);
	KUNIT_EXPECT_TRUE(test, kdt_same_address(now.remote_ia_address_ptr, t->c.ia));
	KUNIT_EXPECT_EQ(test, now.remote_port_qual, before->remote_port_qual);
	KUNIT_EXPECT_EQ(test, now.private_data_size, before->private_data_size);
	KUNIT_ASSERT_NOT_NULL(test, now.private_data);
	KUNIT_EXPECT_EQ(test, memcmp(now.private_data, t->said, sizeof(t->said)), 0);
}

static void gone(struct kunit *test, DAT_CR_HANDLE cr)
{
	DAT_CR_PARAM param = {};

	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR,
		    dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR, dat_cr_reject(cr, 0, NULL));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR, dat_cr_handoff(cr, 1));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR,
		    dat_cr_accept(cr, NULL, 0, NULL));
}

static void handoff(struct kunit *test)
{
	struct two *t = two_new(test, DAT_PSP_CONSUMER_FLAG);
	DAT_CR_ARRIVAL_EVENT_DATA first = two_call(test, t), next;
	DAT_CONTEXT context = { .as_64 = 5 };
	DAT_CR_PARAM before = {};
	int i;

	KDT_OK(test, dat_cr_query(first.cr_handle, DAT_CR_FIELD_ALL, &before));
	/* There and back and there again. */
	for (i = 0; i < 3; i++) {
		KDT_OK(test, dat_set_consumer_context(first.cr_handle, context));
		KDT_OK(test, dat_cr_handoff(first.cr_handle, i % 2 ? t->port : t->port2));
		gone(test, first.cr_handle);
		next = kdt_arrival(test, i % 2 ? t->cr : t->cr2);
		KUNIT_EXPECT_PTR_NE(test, next.cr_handle, first.cr_handle);
		KUNIT_EXPECT_PTR_EQ(test, next.sp_handle.psp_handle, i % 2 ? t->psp : t->psp2);
		KUNIT_EXPECT_EQ(test, next.conn_qual, i % 2 ? t->port : t->port2);
		same_request(test, t, next.cr_handle, &before);
		KUNIT_EXPECT_NULL(test, kdt_cr_ep(test, next.cr_handle));
		KDT_OK(test, dat_get_consumer_context(next.cr_handle, &context));
		KUNIT_EXPECT_EQ(test, context.as_64, 0);
		context.as_64 = 5;
		first = next;
	}
	KUNIT_EXPECT_EQ(test, (int)kdt_state(t->c.h), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	KDT_OK(test, dat_cr_accept(first.cr_handle, t->s.h, 0, NULL));
	kdt_up(test, &t->c, &t->s);
	kdt_talk(test, &t->c, &t->s, t->from, t->to, 1);
	kdt_down(test, &t->c, &t->s);

	/* Rejected by the second, and by itself after it went to itself. */
	KDT_OK(test, dat_ep_reset(t->c.h));
	first = two_call(test, t);
	KDT_OK(test, dat_cr_handoff(first.cr_handle, t->port));
	next = kdt_arrival(test, t->cr);
	KUNIT_EXPECT_PTR_EQ(test, next.sp_handle.psp_handle, t->psp);
	gone(test, first.cr_handle);
	KDT_OK(test, dat_cr_handoff(next.cr_handle, t->port2));
	first = kdt_arrival(test, t->cr2);
	KDT_OK(test, dat_cr_reject(first.cr_handle, 0, NULL));
	kdt_conn(test, &t->c, DAT_CONNECTION_EVENT_PEER_REJECTED);
	two_done(test, t);
}

static void handoff_nowhere(struct kunit *test)
{
	struct two *t = two_new(test, DAT_PSP_CONSUMER_FLAG);
	struct kdt_env *env = kdt_env(test);
	DAT_CR_ARRIVAL_EVENT_DATA first = two_call(test, t);
	DAT_COMM comm = { t->s.ia->addr.ss_family, SOCK_STREAM, 0 };
	struct sockaddr_storage addr = t->s.ia->addr;
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL, evd;
	DAT_CONN_QUAL nobody = kdt_new_port(), taken[3];
	DAT_CR_PARAM before = {};
	DAT_PSP_HANDLE psp;
	DAT_RSP_HANDLE rsp;
	DAT_CSP_HANDLE csp;
	DAT_IA_HANDLE more;
	int i;

	KDT_OK(test, dat_cr_query(first.cr_handle, DAT_CR_FIELD_ALL, &before));
	/* An RSP, a CSP, another instance's PSP: none of them takes it. */
	for (i = 0; i < 3; i++)
		taken[i] = kdt_new_port();
	KDT_OK(test, dat_rsp_create(env->b.h, taken[0], t->s.h, t->cr2->h, &rsp));
	((struct sockaddr_in *)&addr)->sin_port = htons(taken[1]);
	KDT_OK(test, dat_csp_create(env->b.h, &comm, (DAT_IA_ADDRESS_PTR)&addr, t->cr2->h, &csp));
	more = kdt_ia_more(test, &env->b, 8, &async);
	KDT_OK(test, dat_evd_kcreate(more, 8, DAT_UPCALL_DISABLE, NULL, DAT_EVD_CR_FLAG, &evd));
	KDT_OK(test, dat_psp_create(more, taken[2], evd, DAT_PSP_CONSUMER_FLAG, &psp));
	for (i = 0; i < 3; i++)
		KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
			    dat_cr_handoff(first.cr_handle, taken[i]));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		    dat_cr_handoff(first.cr_handle, nobody));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		    dat_cr_handoff(first.cr_handle, 0));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		    dat_cr_handoff(first.cr_handle, t->port2 | 0x10000));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR,
		    dat_cr_handoff(t->psp, t->port2));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR,
		    dat_cr_handoff(DAT_HANDLE_NULL, t->port2));
	/* The service point it came from may be gone. */
	KDT_OK(test, dat_psp_free(t->psp));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		    dat_cr_handoff(first.cr_handle, t->port));
	/* Nothing of that did anything to it. */
	same_request(test, t, first.cr_handle, &before);
	KDT_OK(test, dat_rsp_free(rsp));
	KDT_OK(test, dat_cr_handoff(first.cr_handle, t->port2));
	first = kdt_arrival(test, t->cr2);
	KDT_OK(test, dat_psp_free(t->psp2));
	KDT_OK(test, dat_cr_accept(first.cr_handle, t->s.h, 0, NULL));
	kdt_up(test, &t->c, &t->s);
	kdt_down(test, &t->c, &t->s);
	kdt_ep_done(test, &t->c);
	kdt_ep_done(test, &t->s);
	kdt_ia_less(test, more);
}

/* The request leaves its endpoint behind, or gets one. */
static void handoff_with_ep(struct kunit *test)
{
	struct two *t = two_new(test, DAT_PSP_PROVIDER_FLAG);
	struct kdt_env *env = kdt_env(test);
	DAT_CR_ARRIVAL_EVENT_DATA first, next;
	DAT_CR_PARAM before = {};
	DAT_RSP_HANDLE rsp;
	struct kdt_ep ep;

	/* Consumer to provider: a new endpoint. */
	first = two_call(test, t);
	KDT_OK(test, dat_cr_query(first.cr_handle, DAT_CR_FIELD_ALL, &before));
	KDT_OK(test, dat_cr_handoff(first.cr_handle, t->port2));
	next = kdt_arrival(test, t->cr2);
	same_request(test, t, next.cr_handle, &before);
	kdt_ep_from(test, &ep, &env->b, next.cr_handle);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(ep.h), T_STATE);
	/* Provider to provider, itself: another endpoint, and the first is dead. */
	KDT_OK(test, dat_cr_handoff(next.cr_handle, t->port2));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP, dat_ep_reset(ep.h));
	first = kdt_arrival(test, t->cr2);
	KUNIT_EXPECT_PTR_NE(test, kdt_cr_ep(test, first.cr_handle), ep.h);
	ep.h = kdt_cr_ep(test, first.cr_handle);
	KDT_OK(test, kdt_ep_give(&ep, KDT_GIVE_ALL));
	/* Provider to consumer: no endpoint, although it had everything. */
	KDT_OK(test, dat_cr_handoff(first.cr_handle, t->port));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP, dat_ep_reset(ep.h));
	KDT_OK(test, dat_evd_free(ep.conn->h));
	next = kdt_arrival(test, t->cr);
	KUNIT_EXPECT_NULL(test, kdt_cr_ep(test, next.cr_handle));
	same_request(test, t, next.cr_handle, &before);
	/* And once more with an endpoint, to use it. */
	KDT_OK(test, dat_cr_handoff(next.cr_handle, t->port2));
	next = kdt_arrival(test, t->cr2);
	kdt_ep_from(test, &ep, &env->b, next.cr_handle);
	KDT_OK(test, kdt_ep_give(&ep, KDT_GIVE_ALL));
	KDT_OK(test, dat_cr_accept(next.cr_handle, NULL, 0, NULL));
	kdt_up(test, &t->c, &ep);
	kdt_talk(test, &t->c, &ep, t->from, t->to, 1);
	kdt_down(test, &t->c, &ep);
	kdt_ep_done(test, &ep);

	/* An RSP's: back in U, Receives kept, and accepted by name elsewhere. */
	KDT_OK(test, dat_psp_free(t->psp));
	KDT_OK(test, dat_ep_reset(t->c.h));
	KDT_OK(test, kdt_recv(&t->s, t->to, 64, 64, 1));
	KDT_OK(test, dat_rsp_create(env->b.h, t->port, t->s.h, t->cr->h, &rsp));
	first = two_call(test, t);
	KDT_OK(test, dat_psp_create(env->b.h, t->port, t->cr->h, DAT_PSP_CONSUMER_FLAG, &t->psp));
	KUNIT_EXPECT_EQ(test, (int)kdt_state(t->s.h), P_STATE);
	KDT_OK(test, dat_cr_handoff(first.cr_handle, t->port));
	KUNIT_EXPECT_EQ(test, (int)kdt_state(t->s.h), DAT_EP_STATE_UNCONNECTED);
	next = kdt_arrival(test, t->cr);
	KUNIT_EXPECT_PTR_EQ(test, next.sp_handle.psp_handle, t->psp);
	KUNIT_EXPECT_NULL(test, kdt_cr_ep(test, next.cr_handle));
	KDT_OK(test, dat_cr_accept(next.cr_handle, t->s.h, 0, NULL));
	kdt_up(test, &t->c, &t->s);
	KDT_OK(test, kdt_send(&t->c, t->from, 0, 64, 1, 0));
	kdt_dto(test, t->c.req, &t->c, 1, DAT_DTO_SEND, DAT_DTO_SUCCESS, 64);
	kdt_dto(test, t->s.recv, &t->s, 1, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 64);
	kdt_down(test, &t->c, &t->s);
	two_done(test, t);
}

/* No room there: refused on the wire, no trace of it here. */
static void handoff_full(struct kunit *test)
{
	struct two *t = two_new(test, DAT_PSP_CONSUMER_FLAG);
	struct kdt_env *env = kdt_env(test);
	DAT_CR_ARRIVAL_EVENT_DATA first = two_call(test, t);
	DAT_CONN_QUAL port = kdt_new_port();
	DAT_EVD_HANDLE small;
	DAT_EVD_PARAM param = {};
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;
	int n;

	KDT_OK(test, dat_evd_kcreate(env->b.h, 1, DAT_UPCALL_DISABLE, NULL,
				     DAT_EVD_CR_FLAG | DAT_EVD_SOFTWARE_FLAG, &small));
	KDT_OK(test, dat_evd_query(small, DAT_EVD_FIELD_ALL, &param));
	KDT_OK(test, dat_psp_create(env->b.h, port, small, DAT_PSP_CONSUMER_FLAG, &psp));
	memset(&event, 0, sizeof(event));
	event.event_number = DAT_SOFTWARE_EVENT;
	for (n = 0; n < param.evd_qlen; n++)
		KDT_OK(test, dat_evd_post_se(small, &event));
	KDT_OK(test, dat_cr_handoff(first.cr_handle, port));
	gone(test, first.cr_handle);
	KUNIT_ASSERT_TRUE(test, kdt_get(t->c.conn, &event));
	if (!env->b.iwarp || event.event_number != DAT_CONNECTION_EVENT_PEER_REJECTED)
		KUNIT_EXPECT_EQ(test, (int)event.event_number,
				DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	/* the length of the EVD is the backlog, and a full one is no error */
	KDT_REFUSED(test, DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE, dat_evd_dequeue(env->b.async, &event));
	for (n = 0; dat_evd_dequeue(small, &event) == DAT_SUCCESS; n++)
		KUNIT_EXPECT_EQ(test, (int)event.event_number, DAT_SOFTWARE_EVENT);
	KUNIT_EXPECT_EQ(test, n, param.evd_qlen);
	/* It serves the next one. */
	KDT_OK(test, dat_ep_reset(t->c.h));
	first = two_call(test, t);
	KDT_OK(test, dat_cr_handoff(first.cr_handle, port));
	KUNIT_ASSERT_TRUE(test, kdt_dequeue(small, &event));
	KDT_OK(test, dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, t->s.h, 0,
				   NULL));
	kdt_up(test, &t->c, &t->s);
	kdt_down(test, &t->c, &t->s);
	KDT_OK(test, dat_psp_free(psp));
	KDT_OK(test, dat_evd_free(small));
	two_done(test, t);
}

static bool pass_on(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct two *t = evd->priv;

	return dat_cr_handoff(event->event_data.cr_arrival_event_data.cr_handle, t->port2) ==
	       DAT_SUCCESS;
}

/* A port mapper: its upcall passes on whatever comes. */
static void handoff_in_upcall(struct kunit *test)
{
	struct two *t = two_new(test, DAT_PSP_CONSUMER_FLAG);
	DAT_CR_ARRIVAL_EVENT_DATA next;
	int i;

	t->cr->priv = t;
	t->cr->hook = pass_on;
	for (i = 0; i < 5; i++) {
		next = kdt_call(test, &t->c, t->s.ia, t->port, t->cr2);
		KDT_OK(test, dat_cr_accept(next.cr_handle, t->s.h, 0, NULL));
		kdt_up(test, &t->c, &t->s);
		kdt_talk(test, &t->c, &t->s, t->from, t->to, i);
		kdt_down(test, &t->c, &t->s);
		KDT_OK(test, dat_ep_reset(t->c.h));
		KDT_OK(test, dat_ep_reset(t->s.h));
	}
	t->cr->hook = NULL;
	two_done(test, t);
}

/* ---- who may accept ---- */

static void accept_states(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct two *t = two_new(test, DAT_PSP_PROVIDER_FLAG);
	DAT_CR_ARRIVAL_EVENT_DATA first = two_call(test, t), other;
	struct kdt_pair *busy = kdt_pair_new(test, NULL);
	struct kdt_ep calling, tent;
	DAT_CR_PARAM before = {};
	DAT_RSP_HANDLE rsp;
	DAT_EP_HANDLE ep;
	DAT_EP_ATTR attr;
	DAT_RETURN ret;

	KDT_OK(test, dat_cr_query(first.cr_handle, DAT_CR_FIELD_ALL, &before));
	/* another instance's, a stale one, something else */
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		    dat_cr_accept(first.cr_handle, t->c.h, 0, NULL));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		    dat_cr_accept(first.cr_handle, first.cr_handle, 0, NULL));
	kdt_attr(env, &attr);
	KDT_OK(test, dat_ep_create(env->b.h, env->b.pz, NULL, NULL, t->s.conn->h, &attr, &ep));
	KDT_OK(test, dat_ep_free(ep));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		    dat_cr_accept(first.cr_handle, ep, 0, NULL));
	/* R */
	KDT_OK(test, dat_rsp_create(env->b.h, kdt_new_port(), t->s.h, t->cr->h, &rsp));
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_RESERVED,
		    dat_cr_accept(first.cr_handle, t->s.h, 0, NULL));
	KDT_OK(test, dat_rsp_free(rsp));
	/* A: one that is calling the other service point; there it has an endpoint in T */
	kdt_ep_new(test, &calling, &env->b, NULL);
	other = kdt_call(test, &calling, &env->b, t->port2, t->cr2);
	kdt_ep_from(test, &tent, &env->b, other.cr_handle);
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_ACTCONNPENDING,
		    dat_cr_accept(first.cr_handle, calling.h, 0, NULL));
	KDT_OK(test, kdt_ep_give(&tent, KDT_GIVE_ALL));
	ret = dat_cr_accept(first.cr_handle, tent.h, 0, NULL);
	KUNIT_EXPECT_TRUE_MSG(test, ret == DAT_ERROR(DAT_INVALID_STATE,
						     DAT_INVALID_STATE_EP_TENTCONNPENDING),
			      "%s %s", kdt_major(ret), kdt_minor(ret));
	KDT_OK(test, dat_cr_accept(other.cr_handle, NULL, 0, NULL));
	kdt_up(test, &calling, &tent);
	/* C and D, both ends */
	kdt_pair_connect(test, busy);
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_CONNECTED,
		    dat_cr_accept(first.cr_handle, busy->s.h, 0, NULL));
	kdt_pair_down(test, busy);
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_DISCONNECTED,
		    dat_cr_accept(first.cr_handle, busy->s.h, 0, NULL));
	/* It is as it was, and one that was D will do after a reset. */
	same_request(test, t, first.cr_handle, &before);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(t->c.h), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	KDT_OK(test, dat_ep_reset(busy->s.h));
	KDT_OK(test, dat_cr_accept(first.cr_handle, busy->s.h, 0, NULL));
	kdt_up(test, &t->c, &busy->s);
	kdt_talk(test, &t->c, &busy->s, t->from, t->to, 1);
	gone(test, first.cr_handle);
}

/* ---- the peer does not wait ---- */

static void ended_with(struct kunit *test, struct kdt_ep *s)
{
	DAT_EVENT event;

	KUNIT_ASSERT_TRUE(test, kdt_get(s->conn, &event));
	if (s->ia->iwarp && event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
		kdt_end(test, s);	/* the answer is all that establishing takes there */
	else
		KUNIT_EXPECT_EQ(test, (int)event.event_number,
				DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(s->h), DAT_EP_STATE_DISCONNECTED);
}

/* The calling endpoint belongs to an instance of its own that can be closed. */
static DAT_IA_HANDLE caller_moves(struct kunit *test, struct two *t)
{
	struct kdt_ia *ia = kunit_kzalloc(test, sizeof(*ia), GFP_KERNEL);
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;

	KUNIT_ASSERT_NOT_NULL(test, ia);
	memcpy(ia, &kdt_env(test)->a, sizeof(*ia));
	ia->h = kdt_ia_more(test, &kdt_env(test)->a, 8, &async);
	KDT_OK(test, dat_pz_create(ia->h, &ia->pz));
	kdt_ep_done(test, &t->c);
	kdt_ep_new(test, &t->c, ia, NULL);
	return ia->h;
}

enum leave { LEAVE_ABORT, LEAVE_FREE, LEAVE_TIMEOUT, LEAVE_CLOSE, LEAVES };

static void caller_leaves(struct kunit *test, enum leave how, bool accept)
{
	struct two *t = two_new(test, DAT_PSP_CONSUMER_FLAG);
	struct kdt_env *env = kdt_env(test);
	DAT_CR_ARRIVAL_EVENT_DATA arrival;
	DAT_IA_HANDLE own = NULL;
	DAT_CR_PARAM before = {};

	if (how == LEAVE_CLOSE)
		own = caller_moves(test, t);
	KDT_OK(test, dat_ep_connect(t->c.h, (DAT_IA_ADDRESS_PTR)&env->b.addr, t->port,
				    how == LEAVE_TIMEOUT ? 400 * USEC_PER_MSEC : 60 * USEC_PER_SEC,
				    sizeof(t->said), t->said, 0, 0));
	if (how == LEAVE_TIMEOUT)
		kdt_conn(test, &t->c, DAT_CONNECTION_EVENT_TIMED_OUT);
	arrival = kdt_arrival(test, t->cr);
	KDT_OK(test, dat_cr_query(arrival.cr_handle, DAT_CR_FIELD_ALL, &before));
	if (how == LEAVE_ABORT) {
		KDT_OK(test, dat_ep_disconnect(t->c.h, DAT_CLOSE_ABRUPT_FLAG));
		kdt_conn(test, &t->c, DAT_CONNECTION_EVENT_DISCONNECTED);
	} else if (how == LEAVE_FREE) {
		KDT_OK(test, dat_ep_free(t->c.h));
	} else if (how == LEAVE_CLOSE) {
		t->c.conn->ia = &env->a;	/* which lives longer */
		t->c.recv->ia = &env->a;
		t->c.req->ia = &env->a;
		kdt_ia_less(test, own);
	}
	t->c.ia = &env->a;
	same_request(test, t, arrival.cr_handle, &before);
	if (accept) {
		KDT_OK(test, dat_ep_post_recv(t->s.h, 0, NULL, kdt_cookie(6), 0));
		KDT_OK(test, dat_cr_accept(arrival.cr_handle, t->s.h, 0, NULL));
		ended_with(test, &t->s);
		kdt_dto(test, t->s.recv, &t->s, 6, DAT_DTO_RECEIVE, DAT_DTO_ERR_FLUSHED, 0);
	} else {
		KDT_OK(test, dat_cr_reject(arrival.cr_handle, 0, NULL));
	}
	gone(test, arrival.cr_handle);
	kdt_ep_done(test, &t->s);
}

/* Aborted, freed, timed out, closed: the request is there until it is answered. */
static void caller_gone(struct kunit *test)
{
	int how;

	for (how = 0; how < LEAVES; how++) {
		caller_leaves(test, how, false);
		caller_leaves(test, how, true);
	}
}

/* Never answered: it goes with the instance. */
static void unanswered(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct two *t = two_new(test, DAT_PSP_PROVIDER_FLAG);
	DAT_CR_ARRIVAL_EVENT_DATA arrival = two_call(test, t);
	struct kdt_ep other, tent;
	DAT_CR_HANDLE h;
	DAT_EVENT event;
	int i;

	kdt_ep_new(test, &other, &env->a, NULL);
	h = kdt_call(test, &other, &env->b, t->port2, t->cr2).cr_handle;
	kdt_ep_from(test, &tent, &env->b, h);
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_IA_IN_USE,
		    dat_ia_close(env->b.h, DAT_CLOSE_GRACEFUL_FLAG));
	KDT_OK(test, dat_ia_close(env->b.h, DAT_CLOSE_ABRUPT_FLAG));
	env->b.h = DAT_HANDLE_NULL;
	gone(test, arrival.cr_handle);
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP, dat_ep_reset(tent.h));
	for (i = 0; i < 2; i++) {
		KUNIT_ASSERT_TRUE(test, kdt_get(i ? other.conn : t->c.conn, &event));
		if (!env->a.iwarp || event.event_number != DAT_CONNECTION_EVENT_PEER_REJECTED)
			KUNIT_EXPECT_EQ(test, (int)event.event_number,
					DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	}
	kdt_ep_done(test, &t->c);
	kdt_ep_done(test, &other);
}

static struct kunit_case cases[] = {
	KD_CASE(handoff, "CR-HO-01,CR-REJ-01,SIL-23: handed from service point to service point"),
	KD_CASE(handoff_nowhere, "CR-HO-02,CR-ACC-05,PSP-08: where no request can go"),
	KD_CASE(handoff_with_ep, "CR-HO-01,CR-REJ-02,EP-FREE-04,PSP-06: endpoints do not go along"),
	KD_CASE(handoff_full, "CR-HO-02,EVD-OVF-05: no room where it goes"),
	KD_CASE(handoff_in_upcall, "CR-HO-01,CTX-04: a port mapper"),
	KD_CASE(accept_states, "CR-ACC-01,CR-ACC-02,CR-ACC-04,CR-ACC-05: endpoints that cannot"),
	KD_CASE(caller_gone, "CR-LIFE-01,CR-ACC-08,EPSM-12,CR-REJ-01: the caller has gone"),
	KD_CASE(unanswered, "CR-LIFE-01,IA-CLOSE-01,IA-CLOSE-02,CONN-10: never answered"),
	{}
};

struct kunit_suite kdt_cr_suite = {
	.name = "kdtest-cr",
	.init = kdt_init,
	.exit = kdt_exit,
	.test_cases = cases,
};
