// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * More events than an EVD holds: each stream has its own answer to that. Also
 * what a consumer can do about it: take events, or make the EVD longer.
 */
#include <linux/slab.h>

#include "kdtest.h"

#define SIZE	64

static DAT_COUNT evd_qlen(struct kunit *test, DAT_EVD_HANDLE evd)
{
	DAT_EVD_PARAM param = {};

	KDT_OK(test, dat_evd_query(evd, DAT_EVD_FIELD_EVD_QLEN, &param));
	return param.evd_qlen;
}

static bool async_is(const DAT_EVENT *event, DAT_EVENT_NUMBER number, DAT_HANDLE handle,
		     DAT_COUNT reason)
{
	const DAT_ASYNCH_ERROR_EVENT_DATA *data = &event->event_data.asynch_error_event_data;

	return event->event_number == number && data->dat_handle == handle &&
	       data->reason == reason;
}

/* The next asynchronous event is the overflow of this EVD. */
static void overflow_told(struct kunit *test, DAT_EVD_HANDLE async, DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;

	KUNIT_ASSERT_TRUE_MSG(test, kdt_dequeue(async, &event), "no asynchronous event");
	KUNIT_EXPECT_TRUE_MSG(test, async_is(&event, DAT_ASYNC_ERROR_EVD_OVERFLOW, evd,
					     DAT_EVD_OVERFLOW_ERROR),
			      "event 0x%x", event.event_number);
	KUNIT_EXPECT_PTR_EQ(test, event.evd_handle, async);
}

static void async_silent(struct kunit *test, DAT_EVD_HANDLE async)
{
	DAT_EVENT event;

	KDT_REFUSED(test, DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE, dat_evd_dequeue(async, &event));
}

/* ---- connection requests ---- */

/* Clients whose connection events come on one EVD. */
struct callers {
	struct kdt_evd *conn;
	DAT_EP_HANDLE ep[8];
	int n;
};

static void callers_new(struct kunit *test, struct callers *c, int n)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_evd *dto = kdt_evd_new(test, &env->a, DAT_EVD_DTO_FLAG);
	DAT_EP_ATTR attr;
	int i;

	kdt_attr(env, &attr);
	c->n = n;
	c->conn = kdt_evd_new(test, &env->a, DAT_EVD_CONNECTION_FLAG);
	for (i = 0; i < n; i++)
		KDT_OK(test, dat_ep_create(env->a.h, env->a.pz, dto->h, dto->h, c->conn->h, &attr,
					   &c->ep[i]));
}

static void call(struct kunit *test, DAT_EP_HANDLE ep, DAT_CONN_QUAL port)
{
	struct kdt_ep c = { .h = ep };

	KDT_OK(test, kdt_connect(&c, &kdt_env(test)->b, port));
}

/* The next event of the callers is this, of any of them. */
static DAT_EP_HANDLE caller_event(struct kunit *test, struct callers *c, DAT_EVENT_NUMBER number)
{
	DAT_EVENT event;

	KUNIT_ASSERT_TRUE_MSG(test, kdt_get(c->conn, &event), "no event 0x%x in time", number);
	/* the transport does not say who refused */
	if (number == DAT_CONNECTION_EVENT_NON_PEER_REJECTED && c->conn->ia->iwarp &&
	    event.event_number == DAT_CONNECTION_EVENT_PEER_REJECTED)
		number = DAT_CONNECTION_EVENT_PEER_REJECTED;
	KUNIT_EXPECT_EQ(test, (int)event.event_number, (int)number);
	return event.event_data.connect_event_data.ep_handle;
}

static DAT_CR_HANDLE next_request(struct kunit *test, DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;

	KUNIT_ASSERT_TRUE_MSG(test, kdt_dequeue(evd, &event), "no connection request");
	KUNIT_ASSERT_EQ(test, (int)event.event_number, DAT_CONNECTION_REQUEST_EVENT);
	return event.event_data.cr_arrival_event_data.cr_handle;
}

/* The length of the EVD is the backlog: one more is refused on the wire. */
static void requests(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_evd *cr = kdt_evd_policy(test, &env->b, DAT_EVD_CR_FLAG, 2, DAT_UPCALL_DISABLE);
	DAT_COUNT qlen = evd_qlen(test, cr->h);
	DAT_CONN_QUAL port = kdt_new_port();
	struct callers c = {};
	DAT_EP_HANDLE refused;
	DAT_PSP_HANDLE psp;
	struct kdt_ep s;
	DAT_CR_HANDLE h;
	DAT_EVENT event;
	int i, round;

	KUNIT_ASSERT_LE(test, qlen, 7);
	callers_new(test, &c, qlen + 1);
	kdt_ep_new(test, &s, &env->b, NULL);
	KDT_OK(test, dat_psp_create(env->b.h, port, cr->h, DAT_PSP_CONSUMER_FLAG, &psp));
	for (round = 0; round < 2; round++) {
		for (i = 0; i < c.n; i++)
			call(test, c.ep[i], port);
		refused = caller_event(test, &c, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		/* no trace of it here; those that fitted are fine */
		async_silent(test, env->b.async);
		KDT_OK(test, dat_cr_accept(next_request(test, cr->h), s.h, 0, NULL));
		KUNIT_EXPECT_PTR_NE(test, caller_event(test, &c, DAT_CONNECTION_EVENT_ESTABLISHED),
				    refused);
		kdt_conn(test, &s, DAT_CONNECTION_EVENT_ESTABLISHED);
		/* there is room for one again */
		KDT_OK(test, dat_ep_reset(refused));
		call(test, refused, port);
		for (i = 1; i < qlen + 1; i++) {
			h = next_request(test, cr->h);
			KDT_OK(test, dat_cr_reject(h, 0, NULL));
			caller_event(test, &c, DAT_CONNECTION_EVENT_PEER_REJECTED);
		}
		KDT_REFUSED(test, DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE, dat_evd_dequeue(cr->h, &event));
		KDT_OK(test, dat_ep_disconnect(s.h, DAT_CLOSE_ABRUPT_FLAG));
		kdt_conn(test, &s, DAT_CONNECTION_EVENT_DISCONNECTED);
		KUNIT_ASSERT_TRUE(test, kdt_get(c.conn, &event));
		KDT_OK(test, dat_ep_reset(s.h));
		for (i = 0; i < c.n; i++)
			KDT_OK(test, dat_ep_reset(c.ep[i]));
	}
	async_silent(test, env->b.async);
	/* longer: all of them fit */
	KDT_OK(test, dat_evd_resize(cr->h, qlen + 1));
	for (i = 0; i < c.n; i++)
		call(test, c.ep[i], port);
	for (i = 0; i < c.n; i++)
		KDT_OK(test, dat_cr_reject(next_request(test, cr->h), 0, NULL));
	for (i = 0; i < c.n; i++)
		caller_event(test, &c, DAT_CONNECTION_EVENT_PEER_REJECTED);
}

/* ---- connection events ---- */

struct served {
	struct kdt_ep ep;		/* of b, its connection events on the short EVD */
	DAT_EP_HANDLE caller;
};

/* The next caller is accepted; this side is connected, whether it is told or not. */
static void serve(struct kunit *test, struct callers *c, struct served *s, struct kdt_evd *cr,
		  DAT_CONN_QUAL port)
{
	call(test, s->caller, port);
	KDT_OK(test, dat_cr_accept(next_request(test, cr->h), s->ep.h, 0, NULL));
	KUNIT_EXPECT_PTR_EQ(test, caller_event(test, c, DAT_CONNECTION_EVENT_ESTABLISHED),
			    s->caller);
	KUNIT_EXPECT_TRUE(test, kdt_wait_state(s->ep.h, DAT_EP_STATE_CONNECTED));
}

static void is_connection_event(struct kunit *test, struct kdt_evd *evd, DAT_EVENT_NUMBER number,
				DAT_EP_HANDLE ep)
{
	DAT_EVENT event;

	KUNIT_ASSERT_TRUE(test, kdt_get(evd, &event));
	KUNIT_EXPECT_EQ(test, (int)event.event_number, (int)number);
	KUNIT_EXPECT_PTR_EQ(test, event.event_data.connect_event_data.ep_handle, ep);
}

/* A message to an endpoint nobody was told of. */
static void message_to(struct kunit *test, struct served *s, struct kdt_buf *from,
		       struct kdt_buf *to)
{
	struct kdt_ep c = { .h = s->caller };

	KDT_OK(test, kdt_recv(&s->ep, to, 0, SIZE, 77));
	KDT_OK(test, kdt_send(&c, from, 0, SIZE, 0, DAT_COMPLETION_SUPPRESS_FLAG));
	kdt_dto(test, s->ep.recv, &s->ep, 77, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, SIZE);
}

static void connections(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_evd *conn = kdt_evd_policy(test, &env->b, DAT_EVD_CONNECTION_FLAG, 1,
					      DAT_UPCALL_DISABLE);
	struct kdt_evd *cr = kdt_evd_policy(test, &env->b, DAT_EVD_CR_FLAG, 8, DAT_UPCALL_DISABLE);
	struct kdt_evd *dto = kdt_evd_new(test, &env->b, DAT_EVD_DTO_FLAG);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, SIZE);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, SIZE);
	DAT_COUNT qlen = evd_qlen(test, conn->h);
	DAT_CONN_QUAL port = kdt_new_port();
	struct callers *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	struct served *s = kunit_kcalloc(test, 8, sizeof(*s), GFP_KERNEL);
	DAT_PSP_HANDLE psp;
	DAT_EP_ATTR attr;
	DAT_EVENT event;
	int i, n;

	KUNIT_ASSERT_NOT_NULL(test, c);
	KUNIT_ASSERT_NOT_NULL(test, s);
	KUNIT_ASSERT_LE(test, qlen, 2);
	n = qlen + 4;
	callers_new(test, c, n);
	kdt_attr(env, &attr);
	for (i = 0; i < n; i++) {
		s[i].caller = c->ep[i];
		s[i].ep = (struct kdt_ep) { .ia = &env->b, .recv = dto, .req = dto, .conn = conn };
		KDT_OK(test, dat_ep_create(env->b.h, env->b.pz, dto->h, dto->h, conn->h, &attr,
					   &s[i].ep.h));
	}
	KDT_OK(test, dat_psp_create(env->b.h, port, cr->h, DAT_PSP_CONSUMER_FLAG, &psp));
	for (i = 0; i < qlen; i++)
		serve(test, c, &s[i], cr, port);
	/* the first one that does not fit is told of, the second one is the same episode */
	serve(test, c, &s[qlen], cr, port);
	overflow_told(test, env->b.async, conn->h);
	message_to(test, &s[qlen], from, to);
	serve(test, c, &s[qlen + 1], cr, port);
	message_to(test, &s[qlen + 1], from, to);
	async_silent(test, env->b.async);
	/* one place, one event that takes it, and another episode */
	is_connection_event(test, conn, DAT_CONNECTION_EVENT_ESTABLISHED, s[0].ep.h);
	serve(test, c, &s[qlen + 2], cr, port);
	message_to(test, &s[qlen + 2], from, to);
	async_silent(test, env->b.async);
	serve(test, c, &s[qlen + 3], cr, port);
	overflow_told(test, env->b.async, conn->h);
	for (i = 0; i < n; i++)
		message_to(test, &s[i], from, to);
	/* what is there comes in order */
	for (i = 1; i < qlen; i++)
		is_connection_event(test, conn, DAT_CONNECTION_EVENT_ESTABLISHED, s[i].ep.h);
	is_connection_event(test, conn, DAT_CONNECTION_EVENT_ESTABLISHED, s[qlen + 2].ep.h);
	KDT_REFUSED(test, DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE, dat_evd_dequeue(conn->h, &event));
	/* with more room every end is told of */
	KDT_OK(test, dat_evd_resize(conn->h, n));
	for (i = 0; i < n; i++)
		KDT_OK(test, dat_ep_disconnect(s[i].ep.h, DAT_CLOSE_ABRUPT_FLAG));
	for (i = 0; i < n; i++) {
		KUNIT_ASSERT_TRUE(test, kdt_get(conn, &event));
		KUNIT_EXPECT_EQ(test, (int)event.event_number, DAT_CONNECTION_EVENT_DISCONNECTED);
	}
	async_silent(test, env->b.async);
}

/* ---- software events ---- */

static void software(struct kunit *test)
{
	struct kdt_ia *a = &kdt_env(test)->a;
	struct kdt_evd *evd = kdt_evd_policy(test, a, DAT_EVD_SOFTWARE_FLAG | DAT_EVD_DTO_FLAG, 4,
					     DAT_UPCALL_DISABLE);
	DAT_COUNT qlen = evd_qlen(test, evd->h);
	unsigned long in = 0, out = 0;
	DAT_EVENT event;
	int i, round;

	KUNIT_EXPECT_GE(test, qlen, 4);
	for (round = 0; round < 3; round++) {
		while (in - out < qlen)
			KDT_OK(test, kdt_soft(evd, in++));
		for (i = 0; i < 3; i++)
			KDT_REFUSED(test, DAT_QUEUE_FULL, DAT_NO_SUBTYPE, kdt_soft(evd, 999));
		/* a place is a place */
		KDT_OK(test, dat_evd_dequeue(evd->h, &event));
		KUNIT_EXPECT_EQ(test, kdt_soft_number(&event), out++);
		KDT_OK(test, kdt_soft(evd, in++));
		KDT_REFUSED(test, DAT_QUEUE_FULL, DAT_NO_SUBTYPE, kdt_soft(evd, 999));
		while (out < in) {
			KDT_OK(test, dat_evd_dequeue(evd->h, &event));
			KUNIT_EXPECT_EQ(test, (int)event.event_number, DAT_SOFTWARE_EVENT);
			KUNIT_EXPECT_PTR_EQ(test, event.evd_handle, evd->h);
			KUNIT_EXPECT_EQ(test, kdt_soft_number(&event), out++);
		}
		KDT_REFUSED(test, DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE, dat_evd_dequeue(evd->h, &event));
	}
	async_silent(test, a->async);
}

/* ---- asynchronous events ---- */

/* Each call of dat_srq_set_lw() on an empty SRQ is one asynchronous event. */
static DAT_SRQ_HANDLE async_source(struct kunit *test, DAT_IA_HANDLE ia)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 4, .max_recv_iov = 1 };
	DAT_SRQ_HANDLE srq;
	DAT_PZ_HANDLE pz;

	KDT_OK(test, dat_pz_create(ia, &pz));
	KDT_OK(test, dat_srq_create(ia, pz, &attr, &srq));
	return srq;
}

static void is_low(struct kunit *test, const DAT_EVENT *event, DAT_SRQ_HANDLE srq)
{
	KUNIT_EXPECT_TRUE_MSG(test, async_is(event, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR, srq,
					     DAT_SRQ_LOW_WATERMARK_EVENT),
			      "event 0x%x", event->event_number);
}

/* The last word of an asynchronous EVD that nobody reads in time. */
static void asynchronous(struct kunit *test)
{
	struct kdt_ia *a = &kdt_env(test)->a;
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia = kdt_ia_more(test, a, 2, &async);
	DAT_COUNT i, taken = 0, qlen = evd_qlen(test, async);
	unsigned long end = jiffies + KDT_WAIT;
	DAT_SRQ_HANDLE srq[6];
	DAT_EVENT event = {};

	KUNIT_ASSERT_LE(test, qlen, 4);
	for (i = 0; i < ARRAY_SIZE(srq); i++)
		srq[i] = async_source(test, ia);
	/* they come when they come: one is taken for six that are made */
	do {
		for (i = 0; i < ARRAY_SIZE(srq); i++)
			KDT_OK(test, dat_srq_set_lw(srq[i], 1));
		schedule_timeout_uninterruptible(1);
		if (dat_evd_dequeue(async, &event) == DAT_SUCCESS &&
		    event.event_number != DAT_ASYNC_ERROR_IA_CATASTROPHIC) {
			KUNIT_EXPECT_EQ(test, (int)event.event_number,
					DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR);
			taken++;
		}
	} while (event.event_number != DAT_ASYNC_ERROR_IA_CATASTROPHIC &&
		 time_before(jiffies, end));
	KUNIT_EXPECT_TRUE_MSG(test, async_is(&event, DAT_ASYNC_ERROR_IA_CATASTROPHIC, ia,
					     DAT_IA_CATASTROPHIC_ERROR),
			      "event 0x%x", event.event_number);
	KUNIT_EXPECT_GE(test, taken, qlen);
	/* nothing else, ever */
	for (i = 0; i < ARRAY_SIZE(srq); i++) {
		KDT_TYPE(test, DAT_INVALID_STATE, dat_evd_dequeue(async, &event));
		KDT_OK(test, dat_srq_set_lw(srq[i], 1));
		schedule_timeout_uninterruptible(1);
	}
	KDT_TYPE(test, DAT_INVALID_STATE, dat_evd_dequeue(async, &event));
	kdt_ia_less(test, ia);
	/* that instance only */
	async_silent(test, a->async);
	srq[0] = async_source(test, a->h);
	KDT_OK(test, dat_srq_set_lw(srq[0], 1));
	KUNIT_ASSERT_TRUE(test, kdt_dequeue(a->async, &event));
	is_low(test, &event, srq[0]);
}

/* The same on an EVD with other streams: they go on. */
static void asynchronous_shared(struct kunit *test)
{
	struct kdt_ia *a = &kdt_env(test)->a;
	struct kdt_evd *evd = kdt_evd_policy(test, a, DAT_EVD_ASYNC_FLAG | DAT_EVD_SOFTWARE_FLAG, 2,
					     DAT_UPCALL_DISABLE);
	DAT_COUNT i, qlen = evd_qlen(test, evd->h);
	DAT_EVD_HANDLE async = evd->h;
	DAT_IA_HANDLE ia = kdt_ia_more(test, a, 0, &async);
	DAT_SRQ_HANDLE srq = async_source(test, ia);
	DAT_EVENT event;

	for (i = 0; i < qlen; i++)
		KDT_OK(test, kdt_soft(evd, i));
	KDT_REFUSED(test, DAT_QUEUE_FULL, DAT_NO_SUBTYPE, kdt_soft(evd, i));
	KDT_OK(test, dat_srq_set_lw(srq, 1));
	schedule_timeout_uninterruptible(2);	/* it should be in time, mostly */
	for (i = 0; i < qlen; i++) {
		KUNIT_ASSERT_TRUE(test, kdt_dequeue(evd->h, &event));
		KUNIT_EXPECT_EQ(test, (int)event.event_number, DAT_SOFTWARE_EVENT);
		KUNIT_EXPECT_EQ(test, kdt_soft_number(&event), i);
	}
	/* if it came in time to find the EVD full, or else itself */
	KUNIT_ASSERT_TRUE(test, kdt_dequeue(evd->h, &event));
	if (event.event_number == DAT_ASYNC_ERROR_IA_CATASTROPHIC)
		KUNIT_EXPECT_PTR_EQ(test, event.event_data.asynch_error_event_data.dat_handle, ia);
	else
		is_low(test, &event, srq);
	KDT_REFUSED(test, DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE, dat_evd_dequeue(evd->h, &event));
	KDT_OK(test, kdt_soft(evd, 5));
	KDT_OK(test, dat_evd_dequeue(evd->h, &event));
	KUNIT_EXPECT_EQ(test, kdt_soft_number(&event), 5);
}

/* The async EVD an IA makes is an EVD like others: longer, and with upcalls. */
static void asynchronous_upcalls(struct kunit *test)
{
	struct kdt_ia *a = &kdt_env(test)->a;
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia = kdt_ia_more(test, a, 1, &async);
	struct kdt_evd *evd = kdt_evd_policy(test, a, DAT_EVD_SOFTWARE_FLAG, 1, DAT_UPCALL_DISABLE);
	DAT_EVD_HANDLE other = evd->h;
	DAT_SRQ_HANDLE srq[6];
	DAT_EVENT event;
	int i;

	KDT_OK(test, dat_evd_resize(async, 8));
	KUNIT_EXPECT_GE(test, evd_qlen(test, async), 8);
	for (i = 0; i < ARRAY_SIZE(srq); i++) {
		srq[i] = async_source(test, ia);
		KDT_OK(test, dat_srq_set_lw(srq[i], 1));
	}
	/* the upcall every EVD has here, on behalf of that one */
	evd->h = async;
	KDT_OK(test, kdt_evd_set(evd, DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_INVOC_ANY));
	for (i = 0; i < ARRAY_SIZE(srq); i++) {
		KUNIT_ASSERT_TRUE(test, kdt_get(evd, &event));
		is_low(test, &event, event.event_data.asynch_error_event_data.dat_handle);
	}
	KUNIT_EXPECT_TRUE(test, evd->process);
	KUNIT_EXPECT_FALSE(test, evd->softirq);
	KDT_TYPE(test, DAT_INVALID_STATE, dat_evd_free(async));
	kdt_ia_less(test, ia);
	KDT_TYPE(test, DAT_INVALID_HANDLE, dat_evd_free(async));
	evd->h = other;
}

/* ---- length ---- */

static void resize(struct kunit *test)
{
	struct kdt_ia *a = &kdt_env(test)->a;
	struct kdt_evd *evd = kdt_evd_policy(test, a, DAT_EVD_SOFTWARE_FLAG | DAT_EVD_DTO_FLAG, 8,
					     DAT_UPCALL_DISABLE);
	DAT_COUNT qlen = evd_qlen(test, evd->h);
	DAT_EVENT event;
	int i;

	for (i = 0; i < 6; i++)
		KDT_OK(test, kdt_soft(evd, i));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, dat_evd_resize(evd->h, 0));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, dat_evd_resize(evd->h, -7));
	if (a->attr.max_evd_qlen < INT_MAX)
		KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
			    dat_evd_resize(evd->h, a->attr.max_evd_qlen + 1));
	KDT_TYPE(test, DAT_INVALID_STATE, dat_evd_resize(evd->h, 5));
	KUNIT_EXPECT_EQ(test, evd_qlen(test, evd->h), qlen);
	KDT_OK(test, dat_evd_resize(evd->h, qlen));
	KDT_OK(test, dat_evd_resize(evd->h, 6));
	qlen = evd_qlen(test, evd->h);
	KUNIT_EXPECT_GE(test, qlen, 6);
	while (i < qlen)
		KDT_OK(test, kdt_soft(evd, i++));
	KDT_REFUSED(test, DAT_QUEUE_FULL, DAT_NO_SUBTYPE, kdt_soft(evd, i));
	KDT_OK(test, dat_evd_resize(evd->h, 100));
	while (i < 100)
		KDT_OK(test, kdt_soft(evd, i++));
	for (i = 0; i < 100; i++) {
		KDT_OK(test, dat_evd_dequeue(evd->h, &event));
		KUNIT_EXPECT_EQ(test, kdt_soft_number(&event), i);
	}
	KDT_OK(test, dat_evd_resize(evd->h, 1));
	KDT_OK(test, dat_evd_free(evd->h));
	KDT_TYPE(test, DAT_INVALID_HANDLE, dat_evd_resize(evd->h, 8));
}

struct counter {
	u64 next;
	unsigned int softs, wrong;
};

static bool count_hook(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct counter *c = evd->priv;
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;

	if (event->event_number == DAT_SOFTWARE_EVENT) {
		if (kdt_soft_number(event) != c->softs++)
			c->wrong++;
	} else {
		if (dto->status != DAT_DTO_SUCCESS || dto->user_cookie.as_64 != c->next)
			c->wrong++;
		WRITE_ONCE(c->next, c->next + 1);
	}
	return true;
}

#define BURST	32
#define BURSTS	24

/* Longer and shorter while messages and software events arrive; upcalls, and none. */
static void resize_in_traffic(struct kunit *test)
{
	static const int policies[] = {
		DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_NOTIFY, DAT_UPCALL_DISABLE,
	};
	struct kdt_env *env = kdt_env(test);
	struct kdt_evd *evd = kdt_evd_policy(test, &env->b,
					     DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG, 8,
					     DAT_UPCALL_SINGLE_INSTANCE);
	struct kdt_pair evds = { .s.recv = evd };
	struct kdt_pair *pair = kdt_pair_with(test, &evds, NULL, NULL);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, SIZE);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, SIZE);
	struct counter *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	unsigned int refused = 0, softs = 0, i, n = 0, burst;
	DAT_EVENT event;
	DAT_RETURN ret;

	KUNIT_ASSERT_NOT_NULL(test, c);
	evd->priv = c;
	evd->hook = count_hook;
	kdt_pair_connect(test, pair);
	for (burst = 0; burst < BURSTS; burst++) {
		KDT_OK(test, kdt_evd_set(evd, policies[burst % 3], DAT_UPCALL_INVOC_ANY));
		for (i = 0; i < BURST; i++)
			KDT_OK(test, kdt_recv(&pair->s, to, 0, SIZE, n + i));
		for (i = 0; i < BURST; i++) {
			KDT_OK(test, kdt_send(&pair->c, from, 0, SIZE, i,
					      DAT_COMPLETION_SUPPRESS_FLAG));
			if (kdt_soft(evd, softs) == DAT_SUCCESS)
				softs++;
			ret = dat_evd_resize(evd->h, 8 + (i * 7 + burst) % 90);
			/* too short for what is queued just now */
			if (DAT_GET_TYPE(ret) == DAT_INVALID_STATE)
				refused++;
			else
				KDT_OK(test, ret);
		}
		n += BURST;
		while (evd->quiet && READ_ONCE(c->next) < n) {
			KUNIT_ASSERT_TRUE(test, kdt_dequeue(evd->h, &event));
			count_hook(evd, &event, DAT_FALSE);
		}
		KUNIT_ASSERT_TRUE_MSG(test, wait_event_timeout(evd->wait, READ_ONCE(c->next) == n,
							       KDT_WAIT),
				      "%llu of %u messages", c->next, n);
	}
	KDT_OK(test, kdt_evd_set(evd, DAT_UPCALL_TEARDOWN, DAT_UPCALL_INVOC_NEW));
	while (dat_evd_dequeue(evd->h, &event) == DAT_SUCCESS)
		count_hook(evd, &event, DAT_FALSE);
	KUNIT_EXPECT_EQ(test, c->next, (u64)n);
	KUNIT_EXPECT_EQ(test, c->softs, softs);
	KUNIT_EXPECT_GT(test, softs, BURSTS);
	KUNIT_EXPECT_EQ(test, c->wrong, 0);
	evd->hook = NULL;
	kdt_pair_end(test, pair);
	kunit_info(test, "%u of %u changes refused\n", refused, BURST * BURSTS);
}

static struct kunit_case cases[] = {
	KD_CASE(requests, "EVD-OVF-05,PSP-02,CONN-10: as many requests wait as the EVD is long"),
	KD_CASE(connections, "EVD-OVF-01,EVD-OVF-02,ASY-01: told once an episode"),
	KD_CASE(software, "EVD-OVF-04,EVD-SE-03,EVD-SE-04: DAT_QUEUE_FULL, and room again"),
	KD_CASE(asynchronous, "EVD-OVF-03,IA-OPEN-03: the last word of an asynchronous EVD"),
	KD_CASE(asynchronous_shared, "EVD-OVF-03,IA-OPEN-04: with other streams beside it"),
	KD_CASE(asynchronous_upcalls, "IA-OPEN-03,EVD-FREE-04,ASY-21: its length, its upcalls"),
	KD_CASE(resize, "EVD-RSZ-01,EVD-RSZ-02: what dat_evd_resize does and refuses"),
	KD_CASE(resize_in_traffic, "EVD-RSZ-01,EVD-DQ-04: while events arrive, none is lost"),
	{}
};

struct kunit_suite kdt_overflow_suite = {
	.name = "kdtest-overflow",
	.init = kdt_init,
	.exit = kdt_exit,
	.test_cases = cases,
};
