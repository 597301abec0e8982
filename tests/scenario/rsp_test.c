// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Reserved Service Points: one request, for one endpoint. */
#include <linux/delay.h>
#include <linux/ktime.h>

#include "kdtest_conn.h"

#define CALLERS 6

static void reserve(struct kunit *test, struct kdt_scene *t)
{
	kdt_scene_listen(test, t, KDT_RSP);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(t->s.h), DAT_EP_STATE_RESERVED);
}

/* The request has come: the service point is used up. */
static DAT_CR_HANDLE called(struct kunit *test, struct kdt_scene *t)
{
	DAT_CR_ARRIVAL_EVENT_DATA arrival = kdt_call(test, &t->c, t->s.ia, t->port, t->cr);

	KUNIT_EXPECT_NULL(test, arrival.sp_handle.rsp_handle);
	KUNIT_EXPECT_EQ(test, arrival.conn_qual, t->port);
	KUNIT_EXPECT_EQ(test, (int)arrival.truncate_flag, DAT_FALSE);
	KUNIT_ASSERT_NOT_NULL(test, arrival.local_ia_address_ptr);
	KUNIT_EXPECT_TRUE(test, kdt_same_address(arrival.local_ia_address_ptr, t->s.ia));
	KUNIT_EXPECT_EQ(test, (int)kdt_state(t->s.h), DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	KUNIT_EXPECT_PTR_EQ(test, kdt_cr_ep(test, arrival.cr_handle), t->s.h);
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RSP, dat_rsp_free(t->sp));
	return arrival.cr_handle;
}

/* On RoCE the reject is a datagram, which may be lost: the request comes again, to nobody. */
static void told_of_reject(struct kunit *test, struct kdt_scene *t, DAT_EVENT_NUMBER event)
{
	if (event != DAT_CONNECTION_EVENT_NON_PEER_REJECTED || t->c.ia->iwarp)
		KUNIT_EXPECT_EQ(test, (int)event, DAT_CONNECTION_EVENT_PEER_REJECTED);
}

/* Freed before anybody called; rejected; accepted. All Receives on the way are kept. */
static void life(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_scene *t = kdt_scene_new(test);
	DAT_RSP_HANDLE again;
	DAT_CR_HANDLE request;
	struct kdt_ep next;
	int i, n = 0;
	DAT_EVENT event;

	KDT_OK(test, kdt_recv(&t->s, t->to, 64, 64, n++));
	reserve(test, t);
	KDT_OK(test, kdt_recv(&t->s, t->to, 64, 64, n++));
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_RESERVED, dat_ep_free(t->s.h));
	KDT_OK(test, dat_rsp_free(t->sp));
	KUNIT_EXPECT_EQ(test, (int)kdt_state(t->s.h), DAT_EP_STATE_UNCONNECTED);
	kdt_nobody(test, t->port);
	KUNIT_EXPECT_EQ(test, kdt_queued(t->cr), 0);

	for (i = 0; i < 2; i++) {
		reserve(test, t);
		request = called(test, t);
		KDT_OK(test, kdt_recv(&t->s, t->to, 64, 64, n++));
		KDT_OK(test, dat_cr_reject(request, 0, NULL));
		KUNIT_EXPECT_EQ(test, (int)kdt_state(t->s.h), DAT_EP_STATE_UNCONNECTED);
		KUNIT_ASSERT_TRUE(test, kdt_get(t->c.conn, &event));
		told_of_reject(test, t, event.event_number);
		KDT_OK(test, dat_ep_reset(t->c.h));
	}
	KUNIT_EXPECT_EQ(test, kdt_queued(t->s.conn), 0);

	reserve(test, t);
	request = called(test, t);
	KDT_OK(test, kdt_recv(&t->s, t->to, 64, 64, n++));
	/* Nobody listens there any more, and somebody else may. */
	kdt_nobody(test, t->port);
	KUNIT_EXPECT_EQ(test, kdt_queued(t->cr), 0);
	kdt_ep_new(test, &next, &env->b, NULL);
	KDT_OK(test, dat_rsp_create(env->b.h, t->port, next.h, t->cr->h, &again));
	kdt_accept(test, request, NULL, &t->c, &t->s);
	for (i = 0; i < n; i++)
		kdt_say(test, &t->c, t->from, &t->s, i);
	kdt_talk(test, &t->c, &t->s, t->from, t->to, 1);
	kdt_down(test, &t->c, &t->s);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(next.h), DAT_EP_STATE_RESERVED);
	KDT_OK(test, dat_rsp_free(again));
	kdt_ep_done(test, &next);
	kdt_scene_done(test, t);
}

/* What the upcall of the request does, which may use the qualifier already. */
struct again {
	struct kdt_scene *t;
	struct kdt_ep *next;
	DAT_EP_STATE state;
	DAT_RETURN freed, created, psp;
	DAT_HANDLE h;
};

static bool create_again(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct again *a = evd->priv;

	if (a->state != DAT_EP_STATE_UNCONNECTED)
		return false;	/* only the first */
	a->state = kdt_state(a->t->s.h);
	a->freed = dat_rsp_free(a->t->sp);
	a->created = kdt_listen(a->t->s.ia, KDT_RSP, a->t->port, evd, a->next->h, &a->h);
	if (a->created == DAT_SUCCESS) {
		a->created = dat_rsp_free(a->h);
		a->psp = kdt_listen(a->t->s.ia, KDT_PSP, a->t->port, evd, NULL, &a->h);
	}
	return false;
}

static void in_upcall(struct kunit *test)
{
	struct again *a = kdt_zalloc(test, sizeof(*a));
	struct kdt_scene *t = kdt_scene_new(test), *u = kdt_scene_new(test);
	DAT_CR_ARRIVAL_EVENT_DATA arrival;
	DAT_CR_HANDLE request;

	a->t = t;
	a->next = &u->s;
	a->created = DAT_ABORT;
	a->psp = DAT_ABORT;
	t->cr->priv = a;
	t->cr->hook = create_again;
	reserve(test, t);
	request = called(test, t);
	KUNIT_EXPECT_EQ(test, (int)a->state, DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
	KUNIT_EXPECT_EQ(test, a->freed, DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RSP));
	KDT_OK(test, a->created);
	KDT_OK(test, a->psp);
	/* The new one has the next caller. */
	arrival = kdt_call(test, &u->c, u->s.ia, t->port, t->cr);
	KUNIT_EXPECT_PTR_EQ(test, arrival.sp_handle.psp_handle, (DAT_PSP_HANDLE)a->h);
	kdt_accept(test, arrival.cr_handle, u->s.h, &u->c, &u->s);
	kdt_accept(test, request, NULL, &t->c, &t->s);
	kdt_talk(test, &t->c, &t->s, t->from, t->to, 1);
	kdt_talk(test, &u->c, &u->s, t->from, t->to, 2);
	kdt_down(test, &u->c, &u->s);
	kdt_down(test, &t->c, &t->s);
	t->cr->hook = NULL;
	KDT_OK(test, dat_psp_free(a->h));
	kdt_scene_done(test, t);
	kdt_scene_done(test, u);
}

/* Many callers, one request. */
static void one_only(struct kunit *test)
{
	struct kdt_ep *c = kdt_zalloc(test, CALLERS * sizeof(*c));
	struct kdt_scene *t = kdt_scene_new(test);
	DAT_CR_HANDLE request = DAT_HANDLE_NULL;
	DAT_EVENT event;
	int i, up = 0;

	for (i = 0; i < CALLERS; i++)
		kdt_ep_new(test, &c[i], t->c.ia, NULL);
	reserve(test, t);
	for (i = 0; i < CALLERS; i++) {
		KDT_OK(test, kdt_connect(&c[i], t->s.ia, t->port));
		/* soft-iWARP forgets who is in the backlog of a listener that goes, for 10 s */
		if (!i && t->s.ia->iwarp)
			request = kdt_arrival(test, t->cr).cr_handle;
	}
	request = request ?: kdt_arrival(test, t->cr).cr_handle;
	KUNIT_EXPECT_PTR_EQ(test, kdt_cr_ep(test, request), t->s.h);
	KDT_OK(test, dat_cr_accept(request, NULL, 0, NULL));
	kdt_conn(test, &t->s, DAT_CONNECTION_EVENT_ESTABLISHED);
	for (i = 0; i < CALLERS; i++) {
		KUNIT_ASSERT_TRUE(test, kdt_get(c[i].conn, &event));
		/* one that meets the listener going is refused by the kernel as if by us */
		if (event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
			up++;
		else if (event.event_number != DAT_CONNECTION_EVENT_PEER_REJECTED)
			KUNIT_EXPECT_EQ(test, (int)event.event_number,
					DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	}
	KUNIT_EXPECT_EQ(test, up, 1);
	KDT_OK(test, dat_ep_disconnect(t->s.h, DAT_CLOSE_ABRUPT_FLAG));
	kdt_conn(test, &t->s, DAT_CONNECTION_EVENT_DISCONNECTED);
	kdt_scene_done(test, t);
}

/* Freed while the request arrives: one of the two, never both, never none. */
static void race(struct kunit *test)
{
	struct kdt_scene *t = kdt_scene_new(test);
	unsigned int i, wait = 500, freed = 0, came = 0;
	unsigned int rounds = max(KD_SLOW ? 40U : 200U, kdt_rounds);
	unsigned long end = jiffies + KDT_WAIT;
	bool iwarp = t->s.ia->iwarp;
	DAT_CR_HANDLE request;
	DAT_EVENT event;
	DAT_RETURN ret;
	ktime_t until;

	kdt_listener_goes(test, t->s.ia);
	/* a slow machine gets the rounds it needs to see both */
	for (i = 0; i < rounds || ((!freed || !came) && time_before(jiffies, end)); i++) {
		t->port = kdt_new_port();
		reserve(test, t);
		KDT_OK(test, kdt_ask(&t->c, t->s.ia, t->port, iwarp ? 200 * USEC_PER_MSEC :
				     60 * USEC_PER_SEC, NULL, 0));
		/* stay where it tips over */
		until = ktime_add_us(ktime_get(), wait);
		while (ktime_before(ktime_get(), until))
			usleep_range(10, 20);
		ret = dat_rsp_free(t->sp);
		if (ret == DAT_SUCCESS) {
			freed++;
			wait = min(wait + wait / 8 + 1, 5000000U);
		} else {
			came++;
			wait -= (wait + 7) / 8;
			KUNIT_EXPECT_EQ(test, ret,
					DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RSP));
			request = kdt_arrival(test, t->cr).cr_handle;
			KUNIT_EXPECT_EQ(test, (int)kdt_state(t->s.h),
					DAT_EP_STATE_PASSIVE_CONNECTION_PENDING);
			KUNIT_EXPECT_PTR_EQ(test, kdt_cr_ep(test, request), t->s.h);
			KDT_OK(test, dat_cr_reject(request, 0, NULL));
		}
		KUNIT_EXPECT_EQ(test, (int)kdt_state(t->s.h), DAT_EP_STATE_UNCONNECTED);
		/*
		 * What is on its way to a listener that goes is refused by the kernel,
		 * in the name of the consumer. soft-iWARP may forget it.
		 */
		KUNIT_ASSERT_TRUE(test, kdt_get(t->c.conn, &event));
		if (!(iwarp && event.event_number == DAT_CONNECTION_EVENT_TIMED_OUT) &&
		    !(ret == DAT_SUCCESS &&
		      event.event_number == DAT_CONNECTION_EVENT_NON_PEER_REJECTED))
			told_of_reject(test, t, event.event_number);
		KUNIT_EXPECT_EQ(test, kdt_queued(t->cr), 0);
		KDT_OK(test, dat_ep_reset(t->c.h));
	}
	kunit_info(test, "%u freed, %u came first\n", freed, came);
	KUNIT_EXPECT_GT(test, freed, 0);
	KUNIT_EXPECT_GT(test, came, 0);
	/* Nothing of all this is left. */
	kdt_scene_done(test, t);
	KDT_OK(test, dat_evd_free(t->cr->h));
}

static struct kunit_case cases[] = {
	KD_CASE(life, "EPSM-01,EPSM-03,RSP-01,RSP-04..07,CR-REJ-02,EP-FREE-04: its life"),
	KD_CASE(in_upcall, "RSP-04,RSP-05,EPSM-03,EPSM-32: the qualifier is free in the upcall"),
	KD_CASE(one_only, "RSP-01,RSP-04,EPSM-30: six callers, one request"),
	KD_CASE(race, "RSP-08,RSP-07,EPSM-30: freed while the request arrives"),
	{}
};

struct kunit_suite kdt_rsp_suite = { .name = "kdtest-rsp", KDT_CASES };
