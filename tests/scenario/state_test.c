// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* What an endpoint says, takes and how it goes away, state by state. */
#include "kdtest_conn.h"

/* ---- addresses ---- */

/* The state of an EP, and both its addresses; 0: any port. */
static DAT_EP_PARAM is_between(struct kunit *test, struct kdt_ep *ep, DAT_EP_STATE state,
			       DAT_PORT_QUAL port, struct kdt_ia *peer, DAT_PORT_QUAL peer_port)
{
	DAT_EP_PARAM param = {};

	kdt_row(test, "in state %d", state);
	KDT_OK(test, dat_ep_query(ep->h, DAT_EP_FIELD_ALL, &param));
	KUNIT_EXPECT_EQ(test, (int)param.ep_state, (int)state);
	KUNIT_ASSERT_NOT_NULL(test, param.remote_ia_address_ptr);
	KUNIT_ASSERT_NOT_NULL(test, param.local_ia_address_ptr);
	KUNIT_EXPECT_TRUE_MSG(test, kdt_same_address(param.remote_ia_address_ptr, peer) &&
			      param.remote_port_qual == peer_port, "remote %s", kdt_at(test));
	KUNIT_EXPECT_TRUE_MSG(test, kdt_same_address(param.local_ia_address_ptr, ep->ia) &&
			      param.local_port_qual && (!port || param.local_port_qual == port),
			      "local %s", kdt_at(test));
	return param;
}

/* P, A and C; T and CP, DP are asked where they are made. */
static void addresses(struct kunit *test)
{
	struct kdt_scene *t = kdt_scene_new(test);
	struct kdt_ep *c = &t->c, *s = &t->s;
	DAT_CR_PARAM request = {};
	DAT_EP_PARAM then;
	DAT_PORT_QUAL mine;
	DAT_CR_HANDLE h;
	int i;

	for (i = 0; i < 2; i++) {
		kdt_scene_listen(test, t, KDT_RSP);
		h = kdt_call(test, c, s->ia, t->port, t->cr).cr_handle;
		mine = is_between(test, c, DAT_EP_STATE_ACTIVE_CONNECTION_PENDING, 0, s->ia,
				  t->port).local_port_qual;
		KDT_OK(test, dat_cr_query(h, DAT_CR_FIELD_ALL, &request));
		KUNIT_EXPECT_EQ(test, request.remote_port_qual, mine);
		is_between(test, s, DAT_EP_STATE_PASSIVE_CONNECTION_PENDING, t->port, c->ia, mine);
		kdt_accept(test, h, NULL, c, s);
		is_between(test, c, DAT_EP_STATE_CONNECTED, mine, s->ia, t->port);
		/* The pointers last as long as the state does. */
		then = is_between(test, s, DAT_EP_STATE_CONNECTED, t->port, c->ia, mine);
		kdt_talk(test, c, s, t->from, t->to, i);
		KUNIT_EXPECT_TRUE(test, kdt_same_address(then.remote_ia_address_ptr, c->ia));
		KUNIT_EXPECT_TRUE(test, kdt_same_address(then.local_ia_address_ptr, s->ia));
		kdt_down(test, c, s);
		kdt_reset(test, c, s);
	}
	kdt_scene_done(test, t);
}

/* ---- freed ---- */

static void freed(struct kunit *test, struct kdt_ep *ep)
{
	KDT_OK(test, dat_ep_free(ep->h));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP, dat_ep_reset(ep->h));
	KDT_OK(test, dat_evd_free(ep->conn->h));
	KDT_OK(test, dat_evd_free(ep->recv->h));
	KDT_OK(test, dat_evd_free(ep->req->h));
	KUNIT_EXPECT_LE(test, kdt_queued(ep->recv), 8);
}

/* A: at once, when the request has been seen, after it was answered. */
static void free_a(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	DAT_CR_HANDLE cr;
	DAT_EVENT event;
	int i;

	for (i = 2; i >= 0; i--) {
		struct kdt_ep c;

		kdt_ep_new(test, &c, &env->a, NULL);
		KDT_OK(test, dat_ep_post_recv(c.h, 0, NULL, kdt_cookie(1), 0));
		KDT_OK(test, kdt_connect(&c, &env->b, pair->port));
		cr = i ? kdt_arrival(test, pair->cr).cr_handle : DAT_HANDLE_NULL;
		if (i == 2)
			KDT_OK(test, dat_cr_accept(cr, pair->s.h, 0, NULL));
		freed(test, &c);
		/* the request that it left behind can still be answered */
		if (i == 1)
			KDT_OK(test, dat_cr_reject(cr, 0, NULL));
		if (i < 2)
			continue;
		KUNIT_ASSERT_TRUE(test, kdt_get(pair->s.conn, &event));
		if (event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
			kdt_end(test, &pair->s);
		KUNIT_EXPECT_EQ(test, (int)kdt_state(pair->s.h), DAT_EP_STATE_DISCONNECTED);
	}
	KDT_OK(test, dat_psp_free(pair->psp));
	/* that of the last one may have left */
	while (kdt_get_timeout(pair->cr, &event, 0))
		KDT_OK(test, dat_cr_reject(event.event_data.cr_arrival_event_data.cr_handle, 0,
					   NULL));
	kdt_pair_done(test, pair);
}

/* C with Receives on both ends, DP, D; either end. */
static void free_c_dp_d(struct kunit *test)
{
	int how;

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
		freed(test, mine);
		kdt_conn(test, theirs, DAT_CONNECTION_EVENT_DISCONNECTED);
		kdt_flushed(test, theirs, 1, DAT_DTO_RECEIVE);
		kdt_ep_done(test, theirs);
	}
}

static bool free_ep(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	DAT_EP_HANDLE *ep = evd->priv;

	if (*ep && dat_ep_free(*ep) == DAT_SUCCESS)
		*ep = DAT_HANDLE_NULL;
	return false;
}

/* In the upcall that says it is connected. */
static void free_in_upcall(struct kunit *test)
{
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	DAT_EP_HANDLE c = pair->c.h;

	pair->c.conn->priv = &c;
	pair->c.conn->hook = free_ep;
	KDT_OK(test, dat_cr_accept(kdt_pair_request(test, pair), pair->s.h, 0, NULL));
	kdt_conn(test, &pair->s, DAT_CONNECTION_EVENT_ESTABLISHED);
	kdt_conn(test, &pair->s, DAT_CONNECTION_EVENT_DISCONNECTED);
	KUNIT_EXPECT_NULL(test, c);
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP, dat_ep_free(pair->c.h));
	kdt_ep_done(test, &pair->s);
}

/* ---- modified between two connections ---- */

/* New EVDs, and this PZ: one by one, at once, by way of none. */
static void modify(struct kunit *test, struct kdt_ep *ep, DAT_PZ_HANDLE pz, int round)
{
	struct kdt_evd *old[] = { ep->recv, ep->req, ep->conn };
	DAT_EP_PARAM param = {};
	int j;

	ep->recv = kdt_evd_new(test, ep->ia, DAT_EVD_DTO_FLAG);
	ep->req = kdt_evd_new(test, ep->ia, DAT_EVD_DTO_FLAG);
	ep->conn = kdt_evd_new(test, ep->ia, DAT_EVD_CONNECTION_FLAG);
	if (round == 2)
		KDT_OK(test, dat_ep_modify(ep->h, KDT_GIVE_ALL, &param));
	param.recv_evd_handle = ep->recv->h;
	param.request_evd_handle = ep->req->h;
	param.connect_evd_handle = ep->conn->h;
	param.pz_handle = pz;
	param.ep_attr.max_recv_dtos = 3 + round;
	if (round)
		KDT_OK(test, dat_ep_modify(ep->h, KDT_GIVE_ALL |
					   DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &param));
	for (j = 0; j < 64 && !round; j++)
		if (KDT_GIVE_ALL & BIT_ULL(j))
			KDT_OK(test, dat_ep_modify(ep->h, BIT_ULL(j), &param));
	/* nothing goes to these any more */
	for (j = 0; j < 3; j++)
		KDT_OK(test, dat_evd_free(old[j]->h));
}

static void modified(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, 128);
	DAT_PZ_HANDLE pz = env->b.pz;
	struct kdt_buf *to;
	int round;

	for (round = 0; round < 3; round++) {
		if (round)
			KDT_OK(test, dat_pz_create(env->b.h, &pz));
		modify(test, &pair->c, env->a.pz, round);
		modify(test, &pair->s, pz, round);
		KDT_OK(test, kdt_buf_open(env, &env->b, pz, 128, KDT_RIGHTS, &to));
		kdt_pair_connect(test, pair);
		kdt_talk(test, &pair->c, &pair->s, from, to, round);
		kdt_down(test, &pair->c, &pair->s);
		kdt_reset(test, &pair->c, &pair->s);
	}
	kdt_pair_done(test, pair);
}

/* ---- closed ---- */

/*
 * The graceful close minds each kind of service point, then the request it has left, and its
 * endpoint; with the last of them gone it succeeds.
 */
static void graceful(struct kunit *test)
{
	struct kdt_scene *t = kdt_scene_new(test);
	struct kdt_ia *b = kdt_zalloc(test, sizeof(*b));
	struct kdt_evd evd = {};
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	struct kdt_env *env = kdt_env(test);
	DAT_CR_HANDLE cr;
	DAT_HANDLE h;
	DAT_EVENT event;
	int kind, i;

#define IN_USE() KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_IA_IN_USE,	\
			     dat_ia_close(b->h, DAT_CLOSE_GRACEFUL_FLAG))
	memcpy(b, &env->b, sizeof(*b));
	b->h = kdt_ia_more(test, &env->b, 8, &async);
	KDT_OK(test, dat_evd_kcreate(b->h, 8, DAT_UPCALL_DISABLE, NULL, DAT_EVD_CR_FLAG, &evd.h));
	for (kind = 0; kind < KDT_SPS; kind++) {
		if (kind == KDT_PSP_PROVIDER)
			continue;
		KDT_OK(test, kdt_listen(b, kind, t->port, &evd, NULL, &h));
		IN_USE();
		KDT_OK(test, kdt_connect(&t->c, &env->b, t->port));
		KUNIT_ASSERT_TRUE(test, kdt_dequeue(evd.h, &event));
		cr = event.event_data.cr_arrival_event_data.cr_handle;
		KUNIT_EXPECT_EQ(test, !!kdt_cr_ep(test, cr), kind == KDT_RSP);
		if (kind != KDT_RSP)
			KDT_OK(test, kdt_unlisten(kind, h));
		IN_USE();
		KDT_OK(test, dat_cr_reject(cr, 0, NULL));
		kdt_conn(test, &t->c, DAT_CONNECTION_EVENT_PEER_REJECTED);
		KDT_OK(test, dat_ep_reset(t->c.h));
	}
	IN_USE();
	KDT_OK(test, dat_evd_free(evd.h));
	KDT_OK(test, dat_ia_close(b->h, DAT_CLOSE_GRACEFUL_FLAG));
	for (i = 0; i < KDT_MORE_IAS; i++)
		if (env->more[i] == b->h)
			env->more[i] = DAT_HANDLE_NULL;
	kdt_scene_done(test, t);
}

static struct kunit_case cases[] = {
	KD_CASE(addresses, "EP-QRY-01,EP-QRY-02,CONN-01,CONN-09,CR-QRY-01: addresses and ports"),
	KD_CASE(free_a, "EP-FREE-01,EP-FREE-02,EP-FREE-03: freed while it connects"),
	KD_CASE(free_c_dp_d, "EP-FREE-01,EP-FREE-02,EP-FREE-03: freed in C, DP and D"),
	KD_CASE(free_in_upcall, "EP-FREE-06,SIL-46: freed in an upcall of its own"),
	KD_CASE(modified, "EP-MOD-06,EP-MOD-07,EP-RST-03: other PZs and EVDs, and none between"),
	KD_CASE(graceful, "IA-CLOSE-01,GEN-11: a graceful close and what it minds"),
	{}
};

struct kunit_suite kdt_state_suite = { .name = "kdtest-state", KDT_CASES };
