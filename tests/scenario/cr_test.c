// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Connection Requests: endpoints made for them, where they may go, how long they live. */
#include "kdtest_conn.h"

#define T_STATE DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING

/* The handle is dead, whatever one does with it. */
static void gone(struct kunit *test, DAT_CR_HANDLE cr)
{
	DAT_CR_PARAM param = {};

	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR,
		    dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR, dat_cr_reject(cr, 0, NULL));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR,
		    dat_cr_accept(cr, NULL, 0, NULL));
}

/* ---- endpoints that the provider makes ---- */

/* What suits the request, and the read depths of the caller. */
static void suits(struct kunit *test, struct kdt_ep *t, struct kdt_ep *c)
{
	DAT_EP_PARAM ep = {}, caller = {};

	KDT_OK(test, dat_ep_query(t->h, DAT_EP_FIELD_ALL, &ep));
	KDT_OK(test, dat_ep_query(c->h, DAT_EP_FIELD_ALL, &caller));
	KUNIT_EXPECT_EQ(test, (int)ep.ep_state, T_STATE);
	KUNIT_EXPECT_NULL(test, ep.pz_handle);
	KUNIT_EXPECT_NULL(test, ep.connect_evd_handle);
	KUNIT_ASSERT_NOT_NULL(test, ep.remote_ia_address_ptr);
	KUNIT_EXPECT_TRUE(test, kdt_same_address(ep.remote_ia_address_ptr, c->ia));
	KUNIT_EXPECT_EQ(test, ep.remote_port_qual, caller.local_port_qual);
	KUNIT_EXPECT_GE(test, ep.ep_attr.max_recv_dtos, 16);
	KUNIT_EXPECT_GE(test, ep.ep_attr.max_request_dtos, 16);
	KUNIT_EXPECT_GE(test, ep.ep_attr.max_message_size, KDT_SIZE);
	KUNIT_EXPECT_GE(test, ep.ep_attr.max_rdma_size, KDT_SIZE);
	/* What the caller wants to read, this one answers, and the reverse. */
	KUNIT_EXPECT_GE(test, ep.ep_attr.max_rdma_read_in, caller.ep_attr.max_rdma_read_out);
	KUNIT_EXPECT_GE(test, ep.ep_attr.max_rdma_read_out, 1);
	if (!c->ia->iwarp) {
		KUNIT_EXPECT_EQ(test, ep.ep_attr.max_rdma_read_in,
				caller.ep_attr.max_rdma_read_out);
		KUNIT_EXPECT_EQ(test, ep.ep_attr.max_rdma_read_out,
				caller.ep_attr.max_rdma_read_in);
	}
}

/* Two requests, two endpoints, configured and accepted the other way round without the PSP. */
static void tentative(struct kunit *test)
{
	struct kdt_scene *t[] = { kdt_scene_new(test), kdt_scene_new(test) };
	DAT_EP_PARAM want = { .ep_attr.max_recv_dtos = 9, .ep_attr.max_message_size = 5000 };
	struct kdt_env *env = kdt_env(test);
	DAT_CR_ARRIVAL_EVENT_DATA arrival;
	DAT_CR_HANDLE cr[2];
	struct kdt_ep made[2], *ep;
	int i, n;

	kdt_scene_listen(test, t[0], KDT_PSP_PROVIDER);
	for (i = 0; i < 2; i++) {
		arrival = kdt_call(test, &t[i]->c, &env->b, t[0]->port, t[0]->cr);
		KUNIT_EXPECT_PTR_EQ(test, (DAT_HANDLE)arrival.sp_handle.psp_handle, t[0]->sp);
		cr[i] = arrival.cr_handle;
		kdt_ep_from(test, &made[i], &env->b, cr[i]);
		suits(test, &made[i], &t[i]->c);
		KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
			    dat_cr_accept(cr[i], NULL, 0, NULL));
	}
	KUNIT_EXPECT_PTR_NE(test, made[0].h, made[1].h);
	KDT_OK(test, dat_psp_free(t[0]->sp));
	kdt_nobody(test, t[0]->port);
	for (i = 1; i >= 0; i--) {
		ep = &made[i];
		KUNIT_EXPECT_EQ(test, (int)kdt_state(ep->h), T_STATE);
		KDT_OK(test, kdt_ep_give(ep, KDT_GIVE_ALL));
		KDT_OK(test, dat_ep_modify(ep->h, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS |
					   DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE, &want));
		for (n = 0; n < 9; n++)
			KDT_OK(test, kdt_recv(ep, t[i]->to, 64, 64, n));
		KDT_TYPE(test, DAT_INSUFFICIENT_RESOURCES, kdt_recv(ep, t[i]->to, 64, 64, n));
		KUNIT_EXPECT_EQ(test, (int)kdt_state(ep->h), T_STATE);
		kdt_accept(test, cr[i], NULL, &t[i]->c, ep);
		gone(test, cr[i]);
		for (n = 0; n < 9; n++)
			kdt_say(test, &t[i]->c, t[i]->from, ep, n);
		KDT_TYPE(test, DAT_INVALID_PARAMETER, kdt_send(ep, t[i]->to, 0, 5001, 0, 0));
		kdt_talk(test, &t[i]->c, ep, t[i]->from, t[i]->to, i);
		KDT_OK(test, kdt_read(&t[i]->c, t[i]->from, 0, 64, t[i]->to, 0, 9, 0));
		kdt_sent(test, &t[i]->c, 9, DAT_DTO_RDMA_READ, 64);
		kdt_fetch(test, ep, t[i]->to, 0, 64, t[i]->from, 0);
	}
	for (i = 0; i < 2; i++) {
		kdt_down(test, &t[i]->c, &made[i]);
		kdt_reset(test, &t[i]->c, &made[i]);
	}
	/* From now on one like others: it calls, and is named in an accept. */
	t[0]->port = kdt_new_port();
	kdt_scene_listen(test, t[0], KDT_PSP);
	cr[0] = kdt_call(test, &made[0], &env->b, t[0]->port, t[0]->cr).cr_handle;
	kdt_accept(test, cr[0], made[1].h, &made[0], &made[1]);
	kdt_down(test, &made[0], &made[1]);
	for (i = 0; i < 2; i++) {
		kdt_ep_done(test, &made[i]);
		kdt_scene_done(test, t[i]);
	}
}

/* ---- dat_cr_handoff ---- */

/* Two service points; the second one makes endpoints. */
struct two {
	struct kdt_scene *t;
	struct kdt_evd *cr2;
	DAT_CONN_QUAL port2;
	DAT_HANDLE psp2;
	u8 said[48];
	struct kdt_ep ep;
	DAT_RETURN served;
	struct completion answered;
};

static struct two *two_new(struct kunit *test)
{
	struct two *w = kdt_zalloc(test, sizeof(*w));
	struct kdt_env *env = kdt_env(test);

	w->t = kdt_scene_new(test);
	w->cr2 = kdt_evd_new(test, &env->b, DAT_EVD_CR_FLAG);
	w->port2 = kdt_new_port();
	kdt_fill(w->said, sizeof(w->said), 17);
	kdt_scene_listen(test, w->t, KDT_PSP);
	KDT_OK(test, kdt_listen(&env->b, KDT_PSP_PROVIDER, w->port2, w->cr2, NULL, &w->psp2));
	return w;
}

/* On to the second, or back; there it says what it said here, and has an endpoint or not. */
static DAT_CR_HANDLE pass(struct kunit *test, struct two *w, DAT_CR_HANDLE cr, bool back)
{
	DAT_CONN_QUAL port = back ? w->t->port : w->port2;
	DAT_CR_PARAM before = {}, now = {};
	DAT_CR_ARRIVAL_EVENT_DATA next;

	KDT_OK(test, dat_cr_query(cr, DAT_CR_FIELD_ALL, &before));
	KDT_OK(test, dat_cr_handoff(cr, port));
	gone(test, cr);
	if (before.local_ep_handle)
		KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
			    dat_ep_reset(before.local_ep_handle));
	next = kdt_arrival(test, back ? w->t->cr : w->cr2);
	KUNIT_EXPECT_PTR_EQ(test, (DAT_HANDLE)next.sp_handle.psp_handle, back ? w->t->sp : w->psp2);
	KUNIT_EXPECT_EQ(test, next.conn_qual, port);
	KDT_OK(test, dat_cr_query(next.cr_handle, DAT_CR_FIELD_ALL, &now));
	KUNIT_ASSERT_NOT_NULL(test, now.remote_ia_address_ptr);
	KUNIT_EXPECT_TRUE(test, kdt_same_address(now.remote_ia_address_ptr, w->t->c.ia));
	KUNIT_EXPECT_EQ(test, now.remote_port_qual, before.remote_port_qual);
	KUNIT_ASSERT_GE(test, now.private_data_size, (int)sizeof(w->said));
	KUNIT_EXPECT_EQ(test, memcmp(now.private_data, w->said, sizeof(w->said)), 0);
	KUNIT_EXPECT_EQ(test, !now.local_ep_handle, back);
	return next.cr_handle;
}

/* A port mapper: its upcall passes on whatever comes. */
static bool pass_on(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct two *w = evd->priv;

	return dat_cr_handoff(event->event_data.cr_arrival_event_data.cr_handle, w->port2) ==
	       DAT_SUCCESS;
}

/* What it is passed on to: the upcall gives the endpoint what it needs, and accepts. */
static bool serve(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	DAT_CR_HANDLE cr = event->event_data.cr_arrival_event_data.cr_handle;
	struct two *w = evd->priv;
	DAT_CR_PARAM param = {};

	w->served = dat_cr_query(cr, DAT_CR_FIELD_ALL, &param);
	w->ep.h = param.local_ep_handle;
	w->served = w->served ?: kdt_ep_give(&w->ep, KDT_GIVE_ALL) ?:
		    dat_cr_accept(cr, NULL, 0, NULL);
	complete(&w->answered);
	return true;
}

/* There and back and there again, then accepted; what a port mapper passes on is, at once. */
static void handoff(struct kunit *test)
{
	struct two *w = two_new(test);
	struct kdt_scene *t = w->t;
	struct kdt_ep *ep = &w->ep;
	DAT_CR_HANDLE cr;
	int i;

	KDT_OK(test, kdt_ask(&t->c, t->s.ia, t->port, 60 * USEC_PER_SEC, w->said, sizeof(w->said)));
	cr = kdt_arrival(test, t->cr).cr_handle;
	for (i = 0; i < 3; i++)
		cr = pass(test, w, cr, i == 1);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(t->c.h), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	kdt_ep_from(test, ep, t->s.ia, cr);
	KDT_OK(test, kdt_ep_give(ep, KDT_GIVE_ALL));
	kdt_accept(test, cr, NULL, &t->c, ep);
	kdt_talk(test, &t->c, ep, t->from, t->to, 1);
	kdt_down(test, &t->c, ep);
	kdt_ep_done(test, ep);
	KDT_OK(test, dat_ep_reset(t->c.h));
	KDT_OK(test, kdt_ep_evds(kdt_env(test), ep, t->s.ia));
	init_completion(&w->answered);
	t->cr->priv = w;
	t->cr->hook = pass_on;
	w->cr2->priv = w;
	w->cr2->hook = serve;
	KDT_OK(test, kdt_connect(&t->c, t->s.ia, t->port));
	/* the caller may know before the call has returned */
	KUNIT_ASSERT_TRUE(test, wait_for_completion_timeout(&w->answered, KDT_WAIT));
	KDT_OK(test, w->served);
	kdt_up(test, &t->c, ep);
	t->cr->hook = NULL;
	w->cr2->hook = NULL;
	kdt_talk(test, &t->c, ep, t->from, t->to, 4);
	kdt_down(test, &t->c, ep);
	kdt_ep_done(test, ep);
	kdt_scene_done(test, t);
	KUNIT_EXPECT_EQ(test, kdt_queued(w->cr2), 0);
}

/* ---- the caller does not wait ---- */

/* Freed, or its instance closed; the request stays as it is until it is answered. */
static void caller_leaves(struct kunit *test, bool close, bool made, bool accept)
{
	struct kdt_ia *ia = kdt_zalloc(test, sizeof(*ia));
	struct kdt_scene *t = kdt_scene_new(test);
	struct kdt_env *env = kdt_env(test);
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	struct kdt_ep ep = t->s, c;
	DAT_CR_PARAM now = {};
	DAT_CR_HANDLE cr;
	u8 said[48];

	memcpy(ia, &env->a, sizeof(*ia));
	ia->h = kdt_ia_more(test, &env->a, 8, &async);
	KDT_OK(test, dat_pz_create(ia->h, &ia->pz));
	kdt_ep_new(test, &c, ia, NULL);
	kdt_scene_listen(test, t, made ? KDT_PSP_PROVIDER : KDT_PSP);
	kdt_fill(said, sizeof(said), 17);
	KDT_OK(test, kdt_ask(&c, t->s.ia, t->port, 60 * USEC_PER_SEC, said, sizeof(said)));
	cr = kdt_arrival(test, t->cr).cr_handle;
	if (made) {
		kdt_ep_from(test, &ep, t->s.ia, cr);
		KDT_OK(test, kdt_ep_give(&ep, KDT_GIVE_ALL));
	}
	if (!close)
		KDT_OK(test, dat_ep_free(c.h));
	c.conn->ia = &env->a;	/* which lives longer */
	c.recv->ia = &env->a;
	c.req->ia = &env->a;
	kdt_ia_less(test, ia->h);
	KDT_OK(test, dat_cr_query(cr, DAT_CR_FIELD_ALL, &now));
	KUNIT_EXPECT_TRUE(test, kdt_same_address(now.remote_ia_address_ptr, &env->a));
	KUNIT_EXPECT_EQ(test, memcmp(now.private_data, said, sizeof(said)), 0);
	if (made)
		KUNIT_EXPECT_EQ(test, (int)kdt_state(ep.h), T_STATE);
	if (accept) {
		KDT_OK(test, dat_ep_post_recv(ep.h, 0, NULL, kdt_cookie(6), 0));
		KDT_OK(test, dat_cr_accept(cr, made ? NULL : ep.h, 0, NULL));
		kdt_too_late(test, &ep);
		kdt_flushed(test, &ep, 6, DAT_DTO_RECEIVE);
	} else {
		KDT_OK(test, dat_cr_reject(cr, 0, NULL));
		if (made)
			KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
				    dat_ep_free(ep.h));
	}
	gone(test, cr);
	if (made && accept)
		kdt_ep_done(test, &ep);
	kdt_scene_done(test, t);
}

static void caller_gone(struct kunit *test)
{
	int row;

	for (row = 0; row < 8; row++)
		caller_leaves(test, row & 1, row & 2, row & 4);
}

static struct kunit_case cases[] = {
	KD_CASE(tentative, "EPSM-02,EPSM-04,EPSM-36..37,PSP-06,PSP-08,RECV-18,SIL-20: in T"),
	KD_CASE(handoff,
		"CR-HO-01,CTX-04,EVD-EV-05,EVD-UP-11,SIL-23,EPSM-04,PSP-06,CR-ACC-03: handed on"),
	KD_CASE(caller_gone, "CR-LIFE-01,CR-ACC-08,EPSM-12,CR-REJ-01: the caller has gone"),
	{}
};

struct kunit_suite kdt_cr_suite = { .name = "kdtest-cr", KDT_CASES };
