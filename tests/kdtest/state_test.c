// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* What an endpoint says, refuses, and how it goes away, state by state. */
#include <linux/slab.h>

#include "kdtest_conn.h"

static const DAT_CLOSE_FLAGS both[] = { DAT_CLOSE_ABRUPT_FLAG, DAT_CLOSE_GRACEFUL_FLAG };

/* ---- ACTIVE_CONNECTION_PENDING, CONNECTED, DISCONNECTED ---- */

static void calls(struct kunit *test)
{
	struct kdt_pair *pair = kdt_pair_new(test, NULL), *other = kdt_pair_new(test, NULL);
	struct kdt_buf *from = kdt_buf_new(test, pair->c.ia, 128);
	struct kdt_buf *to = kdt_buf_new(test, pair->s.ia, 128);
	DAT_CR_HANDLE cr, spare = kdt_pair_request(test, other);

	cr = kdt_pair_request(test, pair);
	KDT_OK(test, kdt_recv(&pair->c, from, 64, 64, 1));
	kdt_refuses(test, &pair->c, DAT_EP_STATE_ACTIVE_CONNECTION_PENDING, NULL);
	KDT_OK(test, dat_cr_accept(cr, pair->s.h, 0, NULL));
	kdt_up(test, &pair->c, &pair->s);
	kdt_refuses(test, &pair->c, DAT_EP_STATE_CONNECTED, NULL);
	kdt_refuses(test, &pair->s, DAT_EP_STATE_CONNECTED, spare);
	KDT_OK(test, kdt_send(&pair->s, to, 0, 64, 2, 0));
	kdt_dto(test, pair->c.recv, &pair->c, 1, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 64);
	kdt_dto(test, pair->s.req, &pair->s, 2, DAT_DTO_SEND, DAT_DTO_SUCCESS, 64);
	kdt_talk(test, &pair->c, &pair->s, from, to, 1);
	kdt_pair_down(test, pair);
	kdt_refuses(test, &pair->c, DAT_EP_STATE_DISCONNECTED, NULL);
	kdt_refuses(test, &pair->s, DAT_EP_STATE_DISCONNECTED, spare);
	KDT_OK(test, dat_cr_reject(spare, 0, NULL));
	kdt_ep_done(test, &pair->c);
	kdt_ep_done(test, &pair->s);
}

/* U: what has nothing to end, to reset. */
static void unconnected(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_buf *buf = kdt_buf_new(test, &env->a, 64);
	struct kdt_ep ep;
	int i;

	kdt_ep_new(test, &ep, &env->a, NULL);
	KDT_OK(test, kdt_recv(&ep, buf, 0, 64, 1));
	for (i = 0; i < 2; i++) {
		KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONNECTED,
			    dat_ep_disconnect(ep.h, both[i]));
		KDT_OK(test, dat_ep_reset(ep.h));
		KUNIT_EXPECT_EQ(test, (int)kdt_state(ep.h), DAT_EP_STATE_UNCONNECTED);
	}
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, dat_ep_disconnect(ep.h, 2));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, dat_ep_disconnect(ep.h, -1));
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONNECTED,
		    kdt_send(&ep, buf, 0, 64, 2, 0));
	KDT_OK(test, dat_ep_free(ep.h));
}

/* ---- addresses ---- */

static void remote_is(struct kunit *test, DAT_EP_HANDLE ep, DAT_EP_STATE state, struct kdt_ia *ia,
		      DAT_PORT_QUAL port)
{
	DAT_EP_PARAM param = {};

	KDT_OK(test, dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	KUNIT_EXPECT_EQ(test, (int)param.ep_state, (int)state);
	KUNIT_ASSERT_NOT_NULL(test, param.remote_ia_address_ptr);
	KUNIT_EXPECT_TRUE_MSG(test, kdt_same_address(param.remote_ia_address_ptr, ia),
			      "remote address in state %d", state);
	KUNIT_EXPECT_EQ_MSG(test, param.remote_port_qual, port, "remote port in state %d", state);
}

static void local_is(struct kunit *test, DAT_EP_HANDLE ep, struct kdt_ia *ia, DAT_PORT_QUAL port)
{
	DAT_EP_PARAM param = {};

	KDT_OK(test, dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	KUNIT_ASSERT_NOT_NULL(test, param.local_ia_address_ptr);
	KUNIT_EXPECT_TRUE(test, kdt_same_address(param.local_ia_address_ptr, ia));
	if (port)
		KUNIT_EXPECT_EQ(test, param.local_port_qual, port);
	else
		KUNIT_EXPECT_NE(test, param.local_port_qual, 0);
}

/* P, A, C and what comes after; T and CP, DP are asked where they are made. */
static void addresses(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_evd *cr = kdt_evd_new(test, &env->b, DAT_EVD_CR_FLAG);
	DAT_CONN_QUAL port = kdt_new_port();
	DAT_EP_PARAM mine = {}, then = {};
	DAT_CR_PARAM request = {};
	DAT_CR_HANDLE h;
	DAT_RSP_HANDLE rsp;
	struct kdt_ep c, s;
	int i;

	kdt_ep_new(test, &c, &env->a, NULL);
	kdt_ep_new(test, &s, &env->b, NULL);
	for (i = 0; i < 2; i++) {
		KDT_OK(test, dat_rsp_create(env->b.h, port, s.h, cr->h, &rsp));
		h = kdt_call(test, &c, &env->b, port, cr).cr_handle;
		remote_is(test, c.h, DAT_EP_STATE_ACTIVE_CONNECTION_PENDING, &env->b, port);
		local_is(test, c.h, &env->a, 0);
		KDT_OK(test, dat_ep_query(c.h, DAT_EP_FIELD_ALL, &mine));
		KDT_OK(test, dat_cr_query(h, DAT_CR_FIELD_ALL, &request));
		KUNIT_EXPECT_EQ(test, request.remote_port_qual, mine.local_port_qual);
		remote_is(test, s.h, DAT_EP_STATE_PASSIVE_CONNECTION_PENDING, &env->a,
			  mine.local_port_qual);
		local_is(test, s.h, &env->b, port);
		KDT_OK(test, dat_cr_accept(h, NULL, 0, NULL));
		kdt_up(test, &c, &s);
		remote_is(test, c.h, DAT_EP_STATE_CONNECTED, &env->b, port);
		remote_is(test, s.h, DAT_EP_STATE_CONNECTED, &env->a, mine.local_port_qual);
		local_is(test, c.h, &env->a, mine.local_port_qual);
		local_is(test, s.h, &env->b, port);
		/* The pointers last as long as the state does. */
		KDT_OK(test, dat_ep_query(s.h, DAT_EP_FIELD_ALL, &then));
		kdt_talk(test, &c, &s, kdt_buf_new(test, &env->a, 128),
			 kdt_buf_new(test, &env->b, 128), i);
		KUNIT_EXPECT_TRUE(test, kdt_same_address(then.remote_ia_address_ptr, &env->a));
		KUNIT_EXPECT_TRUE(test, kdt_same_address(then.local_ia_address_ptr, &env->b));
		kdt_down(test, &c, &s);
		KDT_OK(test, dat_ep_reset(c.h));
		KDT_OK(test, dat_ep_reset(s.h));
	}
	/* nothing asked for, some asked for, too much asked for */
	KDT_OK(test, dat_ep_query(c.h, 0, NULL));
	then.ep_state = -1;
	KDT_OK(test, dat_ep_query(c.h, DAT_EP_FIELD_EP_STATE, &then));
	KUNIT_EXPECT_EQ(test, (int)then.ep_state, DAT_EP_STATE_UNCONNECTED);
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		    dat_ep_query(c.h, DAT_EP_FIELD_ALL + 1, &then));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		    dat_ep_query(c.h, DAT_EP_FIELD_ALL, NULL));
	kdt_ep_done(test, &c);
	kdt_ep_done(test, &s);
}

/* ---- freed in every state ---- */

static void free_u_a(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	DAT_CR_HANDLE cr;
	DAT_EVENT event;
	struct kdt_ep u;
	int i;

	kdt_ep_new(test, &u, &env->a, NULL);
	KDT_OK(test, dat_ep_post_recv(u.h, 0, NULL, kdt_cookie(1), 0));
	KDT_OK(test, dat_ep_free(u.h));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP, dat_ep_free(u.h));
	/* at once, when the request has been seen, after it was answered */
	for (i = 0; i < 3; i++) {
		struct kdt_ep c;

		kdt_ep_new(test, &c, &env->a, NULL);
		KDT_OK(test, dat_ep_post_recv(c.h, 0, NULL, kdt_cookie(1), 0));
		KDT_OK(test, kdt_connect(&c, &env->b, pair->port));
		if (!i) {
			KDT_OK(test, dat_ep_free(c.h));
			/* the request may or may not have left */
			if (!kdt_get_timeout(pair->cr, &event, HZ / 10))
				continue;
			cr = event.event_data.cr_arrival_event_data.cr_handle;
			KDT_OK(test, dat_cr_reject(cr, 0, NULL));
		} else {
			cr = kdt_arrival(test, pair->cr).cr_handle;
			if (i == 2)
				KDT_OK(test, dat_cr_accept(cr, pair->s.h, 0, NULL));
			KDT_OK(test, dat_ep_free(c.h));
			if (i == 1) {
				KDT_OK(test, dat_cr_reject(cr, 0, NULL));
			} else {
				KUNIT_ASSERT_TRUE(test, kdt_get(pair->s.conn, &event));
				if (event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
					kdt_end(test, &pair->s);
				KUNIT_EXPECT_EQ(test, (int)kdt_state(pair->s.h),
						DAT_EP_STATE_DISCONNECTED);
			}
		}
		KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP, dat_ep_reset(c.h));
		KDT_OK(test, dat_evd_free(c.recv->h));
		KDT_OK(test, dat_evd_free(c.req->h));
		KDT_OK(test, dat_evd_free(c.conn->h));
	}
	KDT_OK(test, dat_psp_free(pair->psp));
	/* the last request may have come late */
	while (kdt_get_timeout(pair->cr, &event, 0))
		KDT_OK(test, dat_cr_reject(event.event_data.cr_arrival_event_data.cr_handle, 0,
					   NULL));
	if (kdt_state(pair->s.h) != DAT_EP_STATE_UNCONNECTED)
		KDT_OK(test, dat_ep_reset(pair->s.h));
	kdt_ep_done(test, &pair->s);
	kdt_ep_done(test, &pair->c);
}

static void free_c_dp_d(struct kunit *test)
{
	int how;

	/* C with work on both ends, DP, D after each kind of end */
	for (how = 0; how < 6; how++) {
		struct kdt_pair *pair = kdt_pair_up(test);
		struct kdt_ep *mine = how % 2 ? &pair->s : &pair->c;
		struct kdt_ep *theirs = how % 2 ? &pair->c : &pair->s;
		int i;

		for (i = 0; i < 8; i++)
			KDT_OK(test, dat_ep_post_recv(mine->h, 0, NULL, kdt_cookie(i), 0));
		KDT_OK(test, dat_ep_post_recv(theirs->h, 0, NULL, kdt_cookie(1), 0));
		if (how / 2 == 1) {
			KDT_OK(test, dat_ep_disconnect(mine->h, DAT_CLOSE_GRACEFUL_FLAG));
		} else if (how / 2 == 2) {
			KDT_OK(test, dat_ep_disconnect(theirs->h, DAT_CLOSE_ABRUPT_FLAG));
			kdt_end(test, mine);
		}
		KDT_OK(test, dat_ep_free(mine->h));
		kdt_conn(test, theirs, DAT_CONNECTION_EVENT_DISCONNECTED);
		kdt_dto(test, theirs->recv, theirs, 1, DAT_DTO_RECEIVE, DAT_DTO_ERR_FLUSHED, 0);
		KDT_OK(test, dat_evd_free(mine->conn->h));
		KDT_OK(test, dat_evd_free(mine->recv->h));
		KDT_OK(test, dat_evd_free(mine->req->h));
		KUNIT_EXPECT_LE(test, kdt_queued(mine->recv), 8);
		kdt_ep_done(test, theirs);
	}
}

/* Unread events of one that is gone. */
static void left_behind(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair evds = {
		.c.recv = kdt_evd_policy(test, &env->a, DAT_EVD_DTO_FLAG, 16, DAT_UPCALL_DISABLE),
		.c.conn = kdt_evd_policy(test, &env->a, DAT_EVD_CONNECTION_FLAG, 16,
					 DAT_UPCALL_DISABLE),
	};
	struct kdt_pair *pair = kdt_pair_with(test, &evds, NULL, NULL);
	DAT_CR_HANDLE cr;
	DAT_EVENT event;
	int i;

	for (i = 0; i < 2; i++) {
		KDT_OK(test, dat_ep_post_recv(pair->c.h, 0, NULL, kdt_cookie(7), 0));
		cr = kdt_pair_request(test, pair);
		KDT_OK(test, dat_cr_accept(cr, pair->s.h, 0, NULL));
		kdt_conn(test, &pair->s, DAT_CONNECTION_EVENT_ESTABLISHED);
		KUNIT_ASSERT_TRUE(test, kdt_wait_state(pair->c.h, DAT_EP_STATE_CONNECTED));
		KDT_OK(test, dat_ep_disconnect(pair->s.h, DAT_CLOSE_ABRUPT_FLAG));
		KUNIT_ASSERT_TRUE(test, kdt_wait_state(pair->c.h, DAT_EP_STATE_DISCONNECTED));
		kdt_end(test, &pair->s);
		KDT_OK(test, dat_ep_reset(pair->s.h));
		/* the state changes before the event is there: reset waits for that */
		KDT_OK(test, dat_ep_reset(pair->c.h));
		if (i)
			break;
		/* It is still there: both are, and nothing else. */
		kdt_conn(test, &pair->c, DAT_CONNECTION_EVENT_ESTABLISHED);
		KUNIT_ASSERT_TRUE(test, kdt_get(pair->c.conn, &event));
		KUNIT_EXPECT_TRUE(test,
				  event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED ||
				  event.event_number == DAT_CONNECTION_EVENT_BROKEN);
		KDT_REFUSED(test, DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE,
			    dat_evd_dequeue(evds.c.conn->h, &event));
		while (dat_evd_dequeue(evds.c.recv->h, &event) == DAT_SUCCESS)
			KUNIT_EXPECT_PTR_EQ(test, pair->c.h,
					    event.event_data.dto_completion_event_data.ep_handle);
	}
	/* This time nobody has looked: it takes all of them along. */
	KDT_OK(test, dat_ep_free(pair->c.h));
	KDT_REFUSED(test, DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE,
		    dat_evd_dequeue(evds.c.conn->h, &event));
	KDT_REFUSED(test, DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE,
		    dat_evd_dequeue(evds.c.recv->h, &event));
	KDT_OK(test, dat_evd_free(evds.c.conn->h));
	KDT_OK(test, dat_evd_free(evds.c.recv->h));
	kdt_ep_done(test, &pair->s);
}

/* ---- abrupt disconnect: who calls does not sleep, flushes come before the end ---- */

static void in_order(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_evd *all = kdt_evd_policy(test, &env->a,
					     DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG, 256,
					     DAT_UPCALL_SINGLE_INSTANCE);
	struct kdt_pair evds = { .c.recv = all, .c.req = all, .c.conn = all };
	struct kdt_buf *buf = kdt_buf_new(test, &env->a, 64);
	static DEFINE_SPINLOCK(lock);
	u64 recv = 0, send = 0, cookie;
	DAT_EP_STATE state;
	struct kdt_pair *pair;
	DAT_EVENT event;
	DAT_RETURN ret, post;
	int i;

	pair = kdt_pair_with(test, &evds, NULL, NULL);
	KDT_OK(test, dat_cr_accept(kdt_pair_request(test, pair), pair->s.h, 0, NULL));
	kdt_conn(test, &pair->c, DAT_CONNECTION_EVENT_ESTABLISHED);
	kdt_conn(test, &pair->s, DAT_CONNECTION_EVENT_ESTABLISHED);
	for (i = 0; i < 32; i++)
		KDT_OK(test, kdt_recv(&pair->c, buf, 0, 64, i));
	/* Nobody receives these: soft-RoCE waits with them, soft-iWARP has sent them. */
	if (!env->a.iwarp)
		for (i = 0; i < 32; i++)
			KDT_OK(test, kdt_send(&pair->c, buf, 0, 64, 100 + i, 0));
	spin_lock_irq(&lock);
	ret = dat_ep_disconnect(pair->c.h, DAT_CLOSE_ABRUPT_FLAG);
	dat_ep_get_status(pair->c.h, &state, NULL, NULL);
	post = kdt_send(&pair->c, buf, 0, 64, 1000, 0);
	spin_unlock_irq(&lock);
	KDT_OK(test, ret);
	KUNIT_EXPECT_TRUE_MSG(test, state == DAT_EP_STATE_DISCONNECT_PENDING ||
			      state == DAT_EP_STATE_DISCONNECTED, "state %d", state);
	if (state == DAT_EP_STATE_DISCONNECT_PENDING && post != DAT_SUCCESS)
		KUNIT_EXPECT_EQ(test, post, DAT_ERROR(DAT_INVALID_STATE,
						      DAT_INVALID_STATE_EP_DISCPENDING));
	else
		KUNIT_EXPECT_EQ(test, post, DAT_SUCCESS);
	for (;;) {
		KUNIT_ASSERT_TRUE(test, kdt_get(all, &event));
		if (event.event_number != DAT_DTO_COMPLETION_EVENT)
			break;
		cookie = event.event_data.dto_completion_event_data.user_cookie.as_64;
		KUNIT_EXPECT_EQ(test, (int)event.event_data.dto_completion_event_data.status,
				DAT_DTO_ERR_FLUSHED);
		if (cookie < 100)
			KUNIT_EXPECT_EQ(test, cookie, recv++);
		else if (cookie < 1000)
			KUNIT_EXPECT_EQ(test, cookie, 100 + send++);
	}
	KUNIT_EXPECT_EQ(test, (int)event.event_number, DAT_CONNECTION_EVENT_DISCONNECTED);
	KUNIT_EXPECT_EQ(test, recv, 32);
	KUNIT_EXPECT_EQ(test, send, env->a.iwarp ? 0 : 32);
	/* the window is over: this one is flushed */
	KDT_OK(test, kdt_send(&pair->c, buf, 0, 64, 2000, 0));
	do {
		KUNIT_ASSERT_TRUE(test, kdt_get(all, &event));
		KUNIT_EXPECT_EQ(test, (int)event.event_number, DAT_DTO_COMPLETION_EVENT);
	} while (event.event_data.dto_completion_event_data.user_cookie.as_64 != 2000);
	kdt_end(test, &pair->s);
}

/* ---- without an EVD for connection events ---- */

static void no_conn_evd(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_evd *cr = kdt_evd_new(test, &env->b, DAT_EVD_CR_FLAG);
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	DAT_EP_PARAM param = {};
	DAT_CONN_QUAL port = kdt_new_port();
	DAT_RSP_HANDLE rsp;
	DAT_CR_HANDLE h;
	struct kdt_ep c;

	kdt_ep_new(test, &c, &env->a, NULL);
	param.connect_evd_handle = DAT_HANDLE_NULL;
	KDT_OK(test, dat_ep_modify(pair->s.h, DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param));
	KDT_OK(test, dat_ep_modify(pair->c.h, DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param));
	KDT_OK(test, dat_evd_free(pair->s.conn->h));
	/* It cannot call, nor be named in an accept; it can wait for a call. */
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CONN,
		    kdt_connect(&pair->c, &env->b, pair->port));
	h = kdt_call(test, &c, &env->b, pair->port, pair->cr).cr_handle;
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		    dat_cr_accept(h, pair->s.h, 0, NULL));
	KDT_OK(test, dat_cr_reject(h, 0, NULL));
	kdt_conn(test, &c, DAT_CONNECTION_EVENT_PEER_REJECTED);
	KDT_OK(test, dat_ep_reset(c.h));
	KDT_OK(test, dat_rsp_create(env->b.h, port, pair->s.h, cr->h, &rsp));
	h = kdt_call(test, &c, &env->b, port, cr).cr_handle;
	KUNIT_EXPECT_EQ(test, (int)kdt_state(pair->s.h), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		    dat_cr_accept(h, NULL, 0, NULL));
	KDT_OK(test, dat_cr_reject(h, 0, NULL));
	KUNIT_EXPECT_EQ(test, (int)kdt_state(pair->s.h), DAT_EP_STATE_UNCONNECTED);
	kdt_conn(test, &c, DAT_CONNECTION_EVENT_PEER_REJECTED);
	KDT_OK(test, dat_ep_free(pair->s.h));
	kdt_ep_done(test, &c);
}

/* ---- closing in the middle of all of this ---- */

/* One of everything on b, called from a. */
static void one_of_everything(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_evd *cr = kdt_evd_new(test, &env->b, DAT_EVD_CR_FLAG);
	struct kdt_ep *ep = kunit_kcalloc(test, 8, sizeof(*ep), GFP_KERNEL);
	DAT_CONN_QUAL port[6], any;
	struct sockaddr_storage addr = env->b.addr;
	DAT_COMM comm = { addr.ss_family, SOCK_STREAM, 0 };
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *buf = kdt_buf_new(test, &env->b, 64);
	DAT_PSP_HANDLE psp;
	DAT_RSP_HANDLE rsp;
	DAT_CSP_HANDLE csp;
	struct kdt_ep t;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, ep);
	for (i = 0; i < 6; i++)
		port[i] = kdt_new_port();
	for (i = 0; i < 4; i++) {
		kdt_ep_new(test, &ep[i], &env->a, NULL);
		kdt_ep_new(test, &ep[4 + i], &env->b, NULL);
	}
	KDT_OK(test, dat_psp_create_any(env->b.h, &any, cr->h, DAT_PSP_PROVIDER_FLAG, &psp));
	KDT_OK(test, dat_rsp_create(env->b.h, port[0], ep[4].h, cr->h, &rsp));
	KDT_OK(test, dat_rsp_create(env->b.h, port[1], NULL, cr->h, &rsp));
	((struct sockaddr_in *)&addr)->sin_port = htons(port[2]);
	KDT_OK(test, dat_csp_create(env->b.h, &comm, (DAT_IA_ADDRESS_PTR)&addr, cr->h, &csp));
	KDT_OK(test, dat_rsp_create(env->b.h, port[3], ep[5].h, cr->h, &rsp));
	/* R: ep[4] and one to be made; P: ep[5]; T: two, one of them configured; a CR of the CSP */
	kdt_call(test, &ep[0], &env->b, port[3], cr);
	kdt_call(test, &ep[1], &env->b, any, cr);
	kdt_ep_from(test, &t, &env->b, kdt_call(test, &ep[2], &env->b, any, cr).cr_handle);
	KDT_OK(test, kdt_ep_give(&t, KDT_GIVE_ALL));
	KDT_OK(test, kdt_recv(&t, buf, 0, 64, 1));
	KDT_OK(test, kdt_recv(&ep[5], buf, 0, 64, 1));
	KDT_OK(test, kdt_recv(&ep[4], buf, 0, 64, 1));
	kdt_call(test, &ep[3], &env->b, port[2], cr);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(ep[4].h), DAT_EP_STATE_RESERVED);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(ep[5].h), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	KDT_OK(test, kdt_recv(&pair->s, buf, 0, 64, 1));

	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_IA_IN_USE,
		    dat_ia_close(env->b.h, DAT_CLOSE_GRACEFUL_FLAG));
	/* nothing was destroyed by that */
	KUNIT_EXPECT_EQ(test, (int)kdt_state(ep[4].h), DAT_EP_STATE_RESERVED);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(t.h), DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(pair->s.h), DAT_EP_STATE_CONNECTED);
	KDT_OK(test, dat_ia_close(env->b.h, DAT_CLOSE_ABRUPT_FLAG));
	env->b.h = DAT_HANDLE_NULL;
	for (i = 0; i < 4; i++) {
		DAT_EVENT event;

		KUNIT_ASSERT_TRUE(test, kdt_get(ep[i].conn, &event));
		if (!env->a.iwarp || event.event_number != DAT_CONNECTION_EVENT_PEER_REJECTED)
			KUNIT_EXPECT_EQ(test, (int)event.event_number,
					DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		kdt_ep_done(test, &ep[i]);
		KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
			    dat_ep_free(ep[4 + i].h));
	}
	kdt_end(test, &pair->c);
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP, dat_ep_free(t.h));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CSP, dat_csp_free(csp));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RSP, dat_rsp_free(rsp));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PSP, dat_psp_free(psp));
}

/* The graceful close names each kind of object; with the last of them gone it succeeds. */
static void graceful(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL, evd;
	DAT_IA_HANDLE ia = kdt_ia_more(test, &env->b, 8, &async);
	struct sockaddr_storage addr = env->b.addr;
	DAT_COMM comm = { addr.ss_family, SOCK_STREAM, 0 };
	DAT_CONN_QUAL port = kdt_new_port();
	DAT_CR_HANDLE cr;
	DAT_EP_HANDLE ep;
	DAT_HANDLE h;
	struct kdt_ep c;
	DAT_EVENT event;
	int i;

#define IN_USE() KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_IA_IN_USE,	\
			     dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG))
	KDT_OK(test, dat_evd_kcreate(ia, 8, DAT_UPCALL_DISABLE, NULL, DAT_EVD_CR_FLAG, &evd));
	IN_USE();
	KDT_OK(test, dat_psp_create(ia, port, evd, DAT_PSP_CONSUMER_FLAG, (DAT_PSP_HANDLE *)&h));
	IN_USE();
	KDT_OK(test, dat_psp_free(h));
	KDT_OK(test, dat_rsp_create(ia, port, NULL, evd, (DAT_RSP_HANDLE *)&h));
	IN_USE();
	KDT_OK(test, dat_rsp_free(h));
	((struct sockaddr_in *)&addr)->sin_port = htons(port);
	KDT_OK(test, dat_csp_create(ia, &comm, (DAT_IA_ADDRESS_PTR)&addr, evd,
				    (DAT_CSP_HANDLE *)&h));
	IN_USE();
	KDT_OK(test, dat_csp_free(h));
	kdt_ep_new(test, &c, &env->a, NULL);
	for (i = 0; i < 2; i++) {
		if (i)
			KDT_OK(test, dat_rsp_create(ia, port, NULL, evd, (DAT_RSP_HANDLE *)&h));
		else
			KDT_OK(test, dat_psp_create(ia, port, evd, DAT_PSP_CONSUMER_FLAG,
						    (DAT_PSP_HANDLE *)&h));
		KDT_OK(test, kdt_connect(&c, &env->b, port));
		KUNIT_ASSERT_TRUE(test, kdt_dequeue(evd, &event));
		cr = event.event_data.cr_arrival_event_data.cr_handle;
		ep = kdt_cr_ep(test, cr);
		if (i)	/* the EVD has no user left but the request and its endpoint */
			KUNIT_EXPECT_NOT_NULL(test, ep);
		else
			KDT_OK(test, dat_psp_free(h));
		IN_USE();
		KDT_OK(test, dat_cr_reject(cr, 0, NULL));
		kdt_conn(test, &c, DAT_CONNECTION_EVENT_PEER_REJECTED);
		KDT_OK(test, dat_ep_reset(c.h));
	}
	IN_USE();
	KDT_OK(test, dat_evd_free(evd));
	KDT_OK(test, dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA,
		    dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
	for (i = 0; i < KDT_MORE_IAS; i++)
		if (env->more[i] == ia)
			env->more[i] = DAT_HANDLE_NULL;
	kdt_ep_done(test, &c);
}

static struct kunit_case cases[] = {
	KD_CASE(unconnected, "EP-DIS-02,EP-DIS-04,EP-RST-01,EPSM-01: what U refuses"),
	KD_CASE(calls, "CONN-02,CONN-13,RSP-01,CR-ACC-02,EP-RST-01,EP-MOD-02: what A, C, D refuse"),
	KD_CASE(addresses, "EP-QRY-01,EP-QRY-02,EP-QRY-03,CONN-09,CR-QRY-01: addresses and ports"),
	KD_CASE(free_u_a, "EP-FREE-01,EP-FREE-02,EP-FREE-03,CONN-01: freed in U and A"),
	KD_CASE(free_c_dp_d, "EP-FREE-01,EP-FREE-02,EP-FREE-03: freed in C, DP and D"),
	KD_CASE(left_behind, "EP-FREE-03,FLUSH-05,EP-RST-02: events of one that is gone"),
	KD_CASE(in_order, "SIL-13,EPSM-15,EP-DIS-01,FLUSH-07: abrupt, with a lock held"),
	KD_CASE(no_conn_evd, "EPSM-33,CONN-04,CR-ACC-06: nobody wants its connection events"),
	KD_CASE(one_of_everything, "IA-CLOSE-01,IA-CLOSE-02,CR-LIFE-01: with one of everything"),
	KD_CASE(graceful, "IA-CLOSE-01,GEN-11: a graceful close and what it minds"),
	{}
};

struct kunit_suite kdt_state_suite = {
	.name = "kdtest-state",
	.init = kdt_init,
	.exit = kdt_exit,
	.test_cases = cases,
};
