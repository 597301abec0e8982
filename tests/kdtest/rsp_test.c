// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Reserved Service Points: one request, for one endpoint. */
#include <linux/delay.h>
#include <linux/ktime.h>
#include <linux/slab.h>

#include "kdtest_conn.h"

#define R_STATE DAT_EP_STATE_RESERVED
#define P_STATE DAT_EP_STATE_PASSIVE_CONNECTION_PENDING

struct rsp {
	struct kdt_evd *cr;
	struct kdt_ep c, s;
	struct kdt_buf *from, *to;
	DAT_CONN_QUAL port;
	DAT_RSP_HANDLE h;
	DAT_CR_HANDLE request;
};

static struct rsp *rsp_new(struct kunit *test)
{
	struct rsp *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	struct kdt_env *env = kdt_env(test);

	KUNIT_ASSERT_NOT_NULL(test, r);
	r->cr = kdt_evd_new(test, &env->b, DAT_EVD_CR_FLAG);
	r->port = kdt_new_port();
	r->from = kdt_buf_new(test, &env->a, 128);
	r->to = kdt_buf_new(test, &env->b, 128);
	kdt_ep_new(test, &r->c, &env->a, NULL);
	kdt_ep_new(test, &r->s, &env->b, NULL);
	return r;
}

static void reserve(struct kunit *test, struct rsp *r)
{
	KDT_OK(test, dat_rsp_create(r->s.ia->h, r->port, r->s.h, r->cr->h, &r->h));
	KUNIT_EXPECT_EQ(test, (int)kdt_state(r->s.h), R_STATE);
}

/* The request has come: the service point is used up. */
static void called(struct kunit *test, struct rsp *r)
{
	DAT_CR_ARRIVAL_EVENT_DATA arrival = kdt_call(test, &r->c, r->s.ia, r->port, r->cr);
	DAT_RSP_PARAM param = {};

	KUNIT_EXPECT_NULL(test, arrival.sp_handle.rsp_handle);
	KUNIT_EXPECT_EQ(test, arrival.conn_qual, r->port);
	KUNIT_EXPECT_EQ(test, (int)arrival.truncate_flag, DAT_FALSE);
	KUNIT_ASSERT_NOT_NULL(test, arrival.local_ia_address_ptr);
	KUNIT_EXPECT_TRUE(test, kdt_same_address(arrival.local_ia_address_ptr, r->s.ia));
	KUNIT_EXPECT_EQ(test, (int)kdt_state(r->s.h), P_STATE);
	KUNIT_EXPECT_PTR_EQ(test, kdt_cr_ep(test, arrival.cr_handle), r->s.h);
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RSP, dat_rsp_free(r->h));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RSP,
		    dat_rsp_query(r->h, DAT_RSP_FIELD_ALL, &param));
	r->request = arrival.cr_handle;
}

static void arguments(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct rsp *r = rsp_new(test);
	DAT_IA_HANDLE ia = env->b.h;
	DAT_HANDLE_TYPE type = 0;
	DAT_RSP_PARAM param = {};
	DAT_RSP_HANDLE h;
	int i;

	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA,
		    dat_rsp_create(NULL, r->port, r->s.h, r->cr->h, &h));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		    dat_rsp_create(ia, r->port, env->b.pz, r->cr->h, &h));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		    dat_rsp_create(ia, r->port, (DAT_EP_HANDLE)0x1234567, r->cr->h, &h));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		    dat_rsp_create(ia, r->port, r->c.h, r->cr->h, &h));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CR,
		    dat_rsp_create(ia, r->port, r->s.h, r->s.conn->h, &h));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CR,
		    dat_rsp_create(ia, r->port, r->s.h, NULL, &h));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		    dat_rsp_create(ia, 0, r->s.h, r->cr->h, &h));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		    dat_rsp_create(ia, 65536, r->s.h, r->cr->h, &h));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		    dat_rsp_create(ia, r->port | 1ULL << 32, r->s.h, r->cr->h, &h));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG5,
		    dat_rsp_create(ia, r->port, r->s.h, r->cr->h, NULL));
	KUNIT_EXPECT_EQ(test, (int)kdt_state(r->s.h), DAT_EP_STATE_UNCONNECTED);

	for (i = 0; i < 5; i++) {
		reserve(test, r);
		KDT_OK(test, dat_get_handle_type(r->h, &type));
		KUNIT_EXPECT_EQ(test, (int)type, DAT_HANDLE_TYPE_RSP);
		KDT_OK(test, dat_rsp_query(r->h, DAT_RSP_FIELD_ALL, &param));
		KUNIT_EXPECT_PTR_EQ(test, param.ia_handle, ia);
		KUNIT_EXPECT_EQ(test, param.conn_qual, r->port);
		KUNIT_EXPECT_PTR_EQ(test, param.evd_handle, r->cr->h);
		KUNIT_EXPECT_PTR_EQ(test, param.ep_handle, r->s.h);
		KDT_OK(test, dat_rsp_query(r->h, 0, NULL));
		KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
			    dat_rsp_query(r->h, 0x10, &param));
		KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
			    dat_rsp_query(r->h, DAT_RSP_FIELD_ALL, NULL));
		KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PSP, dat_psp_free(r->h));
		KDT_OK(test, dat_rsp_free(r->h));
		KUNIT_EXPECT_EQ(test, (int)kdt_state(r->s.h), DAT_EP_STATE_UNCONNECTED);
		KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RSP, dat_rsp_free(r->h));
	}
	kdt_ep_done(test, &r->s);
	KDT_OK(test, dat_evd_free(r->cr->h));
}

/* R, P, CP, C, with Receives that were posted in each of them. */
static void accepted(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct rsp *r = rsp_new(test);
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	DAT_CR_HANDLE spare = kdt_pair_request(test, pair);
	DAT_EP_PARAM param = {};
	DAT_RSP_HANDLE again;
	struct kdt_ep next;
	int i;

	KDT_OK(test, kdt_recv(&r->s, r->to, 64, 64, 0));
	reserve(test, r);
	KDT_OK(test, kdt_recv(&r->s, r->to, 64, 64, 1));
	kdt_refuses(test, &r->s, R_STATE, spare);
	called(test, r);
	KDT_OK(test, kdt_recv(&r->s, r->to, 64, 64, 2));
	kdt_refuses(test, &r->s, P_STATE, spare);
	KDT_OK(test, dat_ep_query(r->s.h, DAT_EP_FIELD_ALL, &param));
	KUNIT_ASSERT_NOT_NULL(test, param.remote_ia_address_ptr);
	KUNIT_EXPECT_TRUE(test, kdt_same_address(param.remote_ia_address_ptr, r->c.ia));
	KUNIT_EXPECT_EQ(test, param.local_port_qual, r->port);

	/* Nobody listens there, and somebody else may. */
	kdt_nobody(test, r->port);
	KUNIT_EXPECT_EQ(test, kdt_queued(r->cr), 0);
	kdt_ep_new(test, &next, &env->b, NULL);
	KDT_OK(test, dat_rsp_create(env->b.h, r->port, next.h, r->cr->h, &again));

	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		    dat_cr_accept(r->request, r->s.h, 0, NULL));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		    dat_cr_accept(r->request, pair->s.h, 0, NULL));
	KDT_OK(test, dat_cr_accept(r->request, NULL, 0, NULL));
	kdt_up(test, &r->c, &r->s);
	for (i = 0; i < 3; i++) {
		KDT_OK(test, kdt_send(&r->c, r->from, 0, 64, i, 0));
		kdt_dto(test, r->c.req, &r->c, i, DAT_DTO_SEND, DAT_DTO_SUCCESS, 64);
		kdt_dto(test, r->s.recv, &r->s, i, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 64);
	}
	kdt_talk(test, &r->c, &r->s, r->from, r->to, 1);
	kdt_refuses(test, &r->s, DAT_EP_STATE_CONNECTED, spare);
	kdt_down(test, &r->c, &r->s);
	kdt_refuses(test, &r->s, DAT_EP_STATE_DISCONNECTED, spare);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(next.h), R_STATE);
	KDT_OK(test, dat_rsp_free(again));
	KDT_OK(test, dat_cr_reject(spare, 0, NULL));
	kdt_conn(test, &pair->c, DAT_CONNECTION_EVENT_PEER_REJECTED);
	kdt_ep_done(test, &next);
	kdt_ep_done(test, &r->s);
	kdt_ep_done(test, &r->c);
}

/* Back to U with all its Receives, and connected the next time. */
static void rejected(struct kunit *test)
{
	struct rsp *r = rsp_new(test);
	u8 why[20];
	int i;

	kdt_fill(why, sizeof(why), 3);
	for (i = 0; i < 3; i++) {
		KDT_OK(test, kdt_recv(&r->s, r->to, 64, 64, i));
		reserve(test, r);
		called(test, r);
		KDT_OK(test, dat_cr_reject(r->request, sizeof(why), why));
		KUNIT_EXPECT_EQ(test, (int)kdt_state(r->s.h), DAT_EP_STATE_UNCONNECTED);
		kdt_rejected(test, &r->c, sizeof(why), 3);
		KDT_OK(test, dat_ep_reset(r->c.h));
	}
	KUNIT_EXPECT_EQ(test, kdt_queued(r->s.conn), 0);
	reserve(test, r);
	called(test, r);
	KDT_OK(test, dat_cr_accept(r->request, NULL, 0, NULL));
	kdt_up(test, &r->c, &r->s);
	for (i = 0; i < 3; i++) {
		KDT_OK(test, kdt_send(&r->c, r->from, 0, 64, i, 0));
		kdt_dto(test, r->c.req, &r->c, i, DAT_DTO_SEND, DAT_DTO_SUCCESS, 64);
		kdt_dto(test, r->s.recv, &r->s, i, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 64);
	}
	kdt_down(test, &r->c, &r->s);
	kdt_ep_done(test, &r->s);
	kdt_ep_done(test, &r->c);
}

/* Freed before anybody called: as if it had never been. */
static void freed(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct rsp *r = rsp_new(test);
	DAT_CR_ARRIVAL_EVENT_DATA arrival;
	DAT_CONN_QUAL port;
	DAT_PSP_HANDLE psp;

	KDT_OK(test, kdt_recv(&r->s, r->to, 64, 64, 1));
	reserve(test, r);
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_RESERVED, dat_ep_free(r->s.h));
	KDT_OK(test, dat_rsp_free(r->h));
	KUNIT_EXPECT_EQ(test, (int)kdt_state(r->s.h), DAT_EP_STATE_UNCONNECTED);
	kdt_nobody(test, r->port);
	KUNIT_EXPECT_EQ(test, kdt_queued(r->cr), 0);
	/* It calls itself now; the Receive is where it was. */
	KDT_OK(test, dat_psp_create_any(env->b.h, &port, r->cr->h, DAT_PSP_CONSUMER_FLAG, &psp));
	arrival = kdt_call(test, &r->c, &env->b, port, r->cr);
	KDT_OK(test, dat_cr_accept(arrival.cr_handle, r->s.h, 0, NULL));
	kdt_up(test, &r->c, &r->s);
	KDT_OK(test, kdt_send(&r->c, r->from, 0, 64, 1, 0));
	kdt_dto(test, r->c.req, &r->c, 1, DAT_DTO_SEND, DAT_DTO_SUCCESS, 64);
	kdt_dto(test, r->s.recv, &r->s, 1, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 64);
	kdt_down(test, &r->c, &r->s);
	KDT_OK(test, dat_psp_free(psp));
	kdt_ep_done(test, &r->s);
	kdt_ep_done(test, &r->c);
}

/* The upcall of the request may use the qualifier already. */
struct again {
	struct rsp *r;
	DAT_EP_STATE state;
	DAT_RETURN freed, created, psp;
	DAT_PSP_HANDLE psp_handle;
	struct kdt_ep *next;
};

static bool create_again(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct again *a = evd->priv;
	DAT_RSP_HANDLE h;

	if (a->state != DAT_EP_STATE_UNCONNECTED)
		return false;	/* only the first */
	a->state = kdt_state(a->r->s.h);
	a->freed = dat_rsp_free(a->r->h);
	a->created = dat_rsp_create(a->r->s.ia->h, a->r->port, a->next->h, evd->h, &h);
	if (a->created == DAT_SUCCESS) {
		a->created = dat_rsp_free(h);
		a->psp = dat_psp_create(a->r->s.ia->h, a->r->port, evd->h, DAT_PSP_CONSUMER_FLAG,
					&a->psp_handle);
	}
	return false;
}

static void in_upcall(struct kunit *test)
{
	struct again *a = kunit_kzalloc(test, sizeof(*a), GFP_KERNEL);
	struct kdt_env *env = kdt_env(test);
	struct rsp *r = rsp_new(test);
	DAT_CR_ARRIVAL_EVENT_DATA arrival;
	struct kdt_ep next, caller;

	KUNIT_ASSERT_NOT_NULL(test, a);
	kdt_ep_new(test, &next, &env->b, NULL);
	kdt_ep_new(test, &caller, &env->a, NULL);
	a->r = r;
	a->next = &next;
	a->created = DAT_ABORT;
	a->psp = DAT_ABORT;
	r->cr->priv = a;
	r->cr->hook = create_again;
	reserve(test, r);
	called(test, r);
	KUNIT_EXPECT_EQ(test, (int)a->state, P_STATE);
	KUNIT_EXPECT_EQ(test, a->freed, DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RSP));
	KDT_OK(test, a->created);
	KDT_OK(test, a->psp);
	/* The new one has the next caller. */
	arrival = kdt_call(test, &caller, &env->b, r->port, r->cr);
	KUNIT_EXPECT_PTR_EQ(test, arrival.sp_handle.psp_handle, a->psp_handle);
	KDT_OK(test, dat_cr_accept(arrival.cr_handle, next.h, 0, NULL));
	kdt_up(test, &caller, &next);
	KDT_OK(test, dat_cr_accept(r->request, NULL, 0, NULL));
	kdt_up(test, &r->c, &r->s);
	kdt_talk(test, &r->c, &r->s, r->from, r->to, 1);
	kdt_talk(test, &caller, &next, r->from, r->to, 2);
	kdt_down(test, &caller, &next);
	kdt_down(test, &r->c, &r->s);
	r->cr->hook = NULL;
	KDT_OK(test, dat_psp_free(a->psp_handle));
	kdt_ep_done(test, &next);
	kdt_ep_done(test, &caller);
	kdt_ep_done(test, &r->s);
	kdt_ep_done(test, &r->c);
}

/* Many callers, one request. */
static void one_only(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct rsp *r = rsp_new(test);
	struct kdt_ep *c = kunit_kcalloc(test, 6, sizeof(*c), GFP_KERNEL);
	DAT_CR_ARRIVAL_EVENT_DATA arrival;
	int i, up = 0;
	DAT_EVENT event;

	KUNIT_ASSERT_NOT_NULL(test, c);
	for (i = 0; i < 6; i++)
		kdt_ep_new(test, &c[i], &env->a, NULL);
	reserve(test, r);
	/* soft-iWARP forgets who is in the backlog of a listener that goes, for 10 s */
	for (i = 0; i < (env->b.iwarp ? 1 : 6); i++)
		KDT_OK(test, kdt_connect(&c[i], &env->b, r->port));
	arrival = kdt_arrival(test, r->cr);
	for (; i < 6; i++)
		KDT_OK(test, kdt_connect(&c[i], &env->b, r->port));
	KUNIT_EXPECT_PTR_EQ(test, kdt_cr_ep(test, arrival.cr_handle), r->s.h);
	KDT_OK(test, dat_cr_accept(arrival.cr_handle, NULL, 0, NULL));
	kdt_conn(test, &r->s, DAT_CONNECTION_EVENT_ESTABLISHED);
	for (i = 0; i < 6; i++) {
		KUNIT_ASSERT_TRUE(test, kdt_get(c[i].conn, &event));
		/* one that meets the listener going is refused by the kernel as if by us */
		if (event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
			up++;
		else if (event.event_number != DAT_CONNECTION_EVENT_PEER_REJECTED)
			KUNIT_EXPECT_EQ(test, (int)event.event_number,
					DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	}
	KUNIT_EXPECT_EQ(test, up, 1);
	KUNIT_EXPECT_EQ(test, kdt_queued(r->cr), 0);
	KDT_OK(test, dat_ep_disconnect(r->s.h, DAT_CLOSE_ABRUPT_FLAG));
	kdt_conn(test, &r->s, DAT_CONNECTION_EVENT_DISCONNECTED);
	kdt_ep_done(test, &r->s);
}

/* Freed while the request arrives: one of the two, never both, never none. */
static void race(struct kunit *test)
{
	struct rsp *r = rsp_new(test);
	DAT_CR_ARRIVAL_EVENT_DATA arrival;
	DAT_EVENT_NUMBER outcome;
	unsigned int wait = 500, freed = 0, came = 0;
	unsigned int rounds = KD_SLOW ? 40 : 200;
	DAT_EVENT event;
	DAT_RETURN ret;
	unsigned long end = jiffies + KDT_WAIT;
	ktime_t until;
	int i;

	kdt_listener_goes(test, r->s.ia);
	rounds = max(rounds, kdt_rounds);
	/* a slow machine gets the rounds it needs to see both */
	for (i = 0; i < rounds || ((!freed || !came) && time_before(jiffies, end)); i++) {
		r->port = kdt_new_port();
		reserve(test, r);
		KDT_OK(test, dat_ep_connect(r->c.h, (DAT_IA_ADDRESS_PTR)&r->s.ia->addr, r->port,
					    r->s.ia->iwarp ? 200 * USEC_PER_MSEC :
					    60 * USEC_PER_SEC, 0, NULL, 0, 0));
		/* stay where it tips over */
		until = ktime_add_us(ktime_get(), wait);
		while (ktime_before(ktime_get(), until))
			usleep_range(10, 20);
		ret = dat_rsp_free(r->h);
		if (ret == DAT_SUCCESS) {
			freed++;
			wait = min(wait + wait / 8 + 1, 5000000U);
			KUNIT_EXPECT_EQ(test, (int)kdt_state(r->s.h), DAT_EP_STATE_UNCONNECTED);
			outcome = DAT_CONNECTION_EVENT_NON_PEER_REJECTED;
		} else {
			came++;
			wait -= (wait + 7) / 8;
			KUNIT_EXPECT_EQ(test, ret,
					DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RSP));
			arrival = kdt_arrival(test, r->cr);
			KUNIT_EXPECT_EQ(test, (int)kdt_state(r->s.h), P_STATE);
			KUNIT_EXPECT_PTR_EQ(test, kdt_cr_ep(test, arrival.cr_handle), r->s.h);
			KDT_OK(test, dat_cr_reject(arrival.cr_handle, 0, NULL));
			KUNIT_EXPECT_EQ(test, (int)kdt_state(r->s.h), DAT_EP_STATE_UNCONNECTED);
			outcome = DAT_CONNECTION_EVENT_PEER_REJECTED;
		}
		KUNIT_ASSERT_TRUE(test, kdt_get(r->c.conn, &event));
		/*
		 * What is on its way to a listener that goes is refused by the kernel,
		 * in the name of the consumer. soft-iWARP may forget it.
		 */
		if (event.event_number != DAT_CONNECTION_EVENT_PEER_REJECTED &&
		    !(r->s.ia->iwarp &&
		      event.event_number == DAT_CONNECTION_EVENT_TIMED_OUT))
			KUNIT_EXPECT_EQ(test, (int)event.event_number, (int)outcome);
		KUNIT_EXPECT_EQ(test, kdt_queued(r->cr), 0);
		KDT_OK(test, dat_ep_reset(r->c.h));
	}
	kunit_info(test, "%u freed, %u came first\n", freed, came);
	KUNIT_EXPECT_GT(test, freed, 0);
	KUNIT_EXPECT_GT(test, came, 0);
	/* Nothing of all this is left. */
	KDT_OK(test, dat_evd_free(r->cr->h));
	kdt_ep_done(test, &r->s);
	kdt_ep_done(test, &r->c);
}

/* No endpoint: the provider makes one. */
static void provider_ep(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct rsp *r = rsp_new(test);
	DAT_CR_ARRIVAL_EVENT_DATA arrival;
	DAT_RSP_PARAM param = {};
	struct kdt_ep t;
	int i;

	for (i = 0; i < 2; i++) {
		KDT_OK(test, dat_rsp_create(env->b.h, r->port, NULL, r->cr->h, &r->h));
		KDT_OK(test, dat_rsp_query(r->h, DAT_RSP_FIELD_ALL, &param));
		KUNIT_EXPECT_NULL(test, param.ep_handle);
		if (!i) {	/* freed and created again */
			KDT_OK(test, dat_rsp_free(r->h));
			KDT_OK(test, dat_rsp_create(env->b.h, r->port, NULL, r->cr->h, &r->h));
		}
		arrival = kdt_call(test, &r->c, &env->b, r->port, r->cr);
		KUNIT_EXPECT_NULL(test, arrival.sp_handle.rsp_handle);
		KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RSP, dat_rsp_free(r->h));
		kdt_ep_from(test, &t, &env->b, arrival.cr_handle);
		KUNIT_EXPECT_EQ(test, (int)kdt_state(t.h),
				DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
		kdt_nobody(test, r->port);
		if (!i) {
			KDT_OK(test, dat_cr_reject(arrival.cr_handle, 0, NULL));
			kdt_conn(test, &r->c, DAT_CONNECTION_EVENT_PEER_REJECTED);
			KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
				    dat_ep_free(t.h));
			KDT_OK(test, dat_ep_reset(r->c.h));
			continue;
		}
		KDT_OK(test, kdt_ep_give(&t, KDT_GIVE_ALL));
		KDT_OK(test, dat_cr_accept(arrival.cr_handle, NULL, 0, NULL));
		kdt_up(test, &r->c, &t);
		kdt_talk(test, &r->c, &t, r->from, r->to, 5);
		kdt_down(test, &r->c, &t);
		kdt_ep_done(test, &t);
	}
	kdt_ep_done(test, &r->c);
}

/* An endpoint without EVDs is reserved, gets them in R and P, keeps its PZ. */
static void configured_late(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct rsp *r = rsp_new(test);
	DAT_EP_PARAM want = {};
	DAT_EP_ATTR attr;

	KDT_OK(test, dat_ep_free(r->s.h));
	kdt_attr(env, &attr);
	KDT_OK(test, dat_ep_create(env->b.h, env->b.pz, NULL, NULL, NULL, &attr, &r->s.h));
	reserve(test, r);
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_RESERVED,
		    kdt_ep_give(&r->s, KDT_GIVE_PZ));
	KDT_OK(test, kdt_ep_give(&r->s, DAT_EP_FIELD_RECV_EVD_HANDLE));
	want.ep_attr.max_recv_dtos = 5;
	want.ep_attr.max_message_size = 777;
	KDT_OK(test, dat_ep_modify(r->s.h, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS |
				   DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE, &want));
	called(test, r);
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		    dat_cr_accept(r->request, NULL, 0, NULL));
	KUNIT_EXPECT_EQ(test, (int)kdt_state(r->s.h), P_STATE);
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_PASSCONNPENDING,
		    kdt_ep_give(&r->s, KDT_GIVE_PZ));
	KDT_OK(test, kdt_ep_give(&r->s, DAT_EP_FIELD_REQUEST_EVD_HANDLE |
				 DAT_EP_FIELD_CONNECT_EVD_HANDLE));
	KDT_OK(test, dat_ep_query(r->s.h, DAT_EP_FIELD_ALL, &want));
	KUNIT_EXPECT_EQ(test, want.ep_attr.max_recv_dtos, 5);
	KUNIT_EXPECT_EQ(test, want.ep_attr.max_message_size, 777);
	KUNIT_EXPECT_PTR_EQ(test, want.recv_evd_handle, r->s.recv->h);
	KDT_OK(test, dat_cr_accept(r->request, NULL, 0, NULL));
	kdt_up(test, &r->c, &r->s);
	kdt_talk(test, &r->c, &r->s, r->from, r->to, 5);
	kdt_down(test, &r->c, &r->s);
	kdt_ep_done(test, &r->s);
	kdt_ep_done(test, &r->c);
}

static struct kunit_case cases[] = {
	KD_CASE(arguments, "RSP-01,RSP-02,RSP-07,EPSM-01: what dat_rsp_create refuses, and R"),
	KD_CASE(accepted, "EPSM-03,RSP-04,RSP-05,RSP-06,EP-QRY-01,EP-DIS-04,EP-RST-01: R P CP C"),
	KD_CASE(rejected, "RSP-06,CR-REJ-02,EP-FREE-04: rejected, back in U, connected later"),
	KD_CASE(freed, "RSP-07,EP-FREE-01,EP-FREE-04: freed before anybody called"),
	KD_CASE(in_upcall, "RSP-04,RSP-05,EPSM-03,EPSM-32: the qualifier is free in the upcall"),
	KD_CASE(one_only, "RSP-01,RSP-04,EPSM-30: six callers, one request"),
	KD_CASE(race, "RSP-08,RSP-07,EPSM-30: freed while the request arrives"),
	KD_CASE(provider_ep, "RSP-03,EPSM-02,SIL-22: without an endpoint"),
	KD_CASE(configured_late, "EPSM-04,EP-MOD-02,CR-ACC-06,EPSM-33: what may change in R and P"),
	{}
};

struct kunit_suite kdt_rsp_suite = {
	.name = "kdtest-rsp",
	.init = kdt_init,
	.exit = kdt_exit,
	.test_cases = cases,
};
