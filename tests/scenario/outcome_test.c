// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Each outcome for its real cause, once, not early; what comes late is ignored. */
#include <linux/ktime.h>
#include <rdma/ib_cm.h>

#include "kdtest_conn.h"

static const DAT_CLOSE_FLAGS flags[] = { DAT_CLOSE_ABRUPT_FLAG, DAT_CLOSE_GRACEFUL_FLAG };

/* ---- time-outs ---- */

static void never_early(struct kunit *test)
{
	static const u32 usec[] = { 1, 999, 10000, 10001, 55555, 250000, 700000 };
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	ktime_t start;
	s64 took;
	int i;

	for (i = 0; i < ARRAY_SIZE(usec); i++) {
		start = ktime_get();
		KDT_OK(test, kdt_ask(&pair->c, pair->s.ia, pair->port, usec[i], NULL, 0));
		kdt_conn(test, &pair->c, DAT_CONNECTION_EVENT_TIMED_OUT);
		took = ktime_us_delta(ktime_get(), start);
		KUNIT_EXPECT_TRUE_MSG(test, took >= usec[i], "%u us took %lld", usec[i], took);
		KUNIT_EXPECT_EQ(test, (int)kdt_state(pair->c.h), DAT_EP_STATE_DISCONNECTED);
		KDT_OK(test, dat_ep_reset(pair->c.h));
	}
	kdt_ep_done(test, &pair->c);
}

/* One that answers in time is not disturbed by the timer of this or an earlier attempt. */
static void timer_stopped(struct kunit *test)
{
	struct kdt_scene *t = kdt_scene_new(test);
	u32 usec = 5 * USEC_PER_SEC;
	DAT_EVENT event;
	int i;

	kdt_scene_listen(test, t, KDT_PSP);
	for (i = 0; i < 2; i++) {
		KDT_OK(test, kdt_ask(&t->c, t->s.ia, t->port, usec, NULL, 0));
		KDT_OK(test, dat_cr_accept(kdt_arrival(test, t->cr).cr_handle, t->s.h, 0, NULL));
		KUNIT_ASSERT_TRUE(test, kdt_get(t->c.conn, &event));
		if (event.event_number == DAT_CONNECTION_EVENT_TIMED_OUT)
			kunit_skip(test, "five seconds are too short here");
		KUNIT_ASSERT_EQ(test, (int)event.event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
		kdt_conn(test, &t->s, DAT_CONNECTION_EVENT_ESTABLISHED);
		if (!i)
			kdt_down(test, &t->c, &t->s);
		if (!i)
			kdt_reset(test, &t->c, &t->s);
	}
	/* beyond the end of both */
	KUNIT_EXPECT_FALSE(test, kdt_get_timeout(t->c.conn, &event,
						 usecs_to_jiffies(usec) + HZ / 5));
	kdt_talk(test, &t->c, &t->s, t->from, t->to, 1);
	kdt_down(test, &t->c, &t->s);
	kdt_scene_done(test, t);
}

/* ---- a peer that uses the connection manager itself ---- */

static void raw_refusals(struct kunit *test)
{
	/* the last one: a program that is killed gives none, and its kernel answers for it */
	static const int reasons[] = {
		IB_CM_REJ_NO_RESOURCES, IB_CM_REJ_CONSUMER_DEFINED, IB_CM_REJ_UNSUPPORTED,
		IB_CM_REJ_INVALID_SERVICE_ID, -1,
	};
	struct kdt_env *env = kdt_env(test);
	struct kdt_raw *raw;
	struct kdt_ep c;
	DAT_EVENT event;
	int i;

	kdt_ep_new(test, &c, &env->a, NULL);
	/* iWARP carries no reason */
	for (i = env->b.iwarp ? ARRAY_SIZE(reasons) - 1 : 0; i < ARRAY_SIZE(reasons); i++) {
		DAT_CONN_QUAL port = kdt_new_port();
		u8 why[8];

		kdt_fill(why, sizeof(why), i);
		raw = kdt_raw_listen(test, &env->b, port);
		KDT_OK(test, kdt_connect(&c, &env->b, port));
		kdt_raw_wait(test, raw, RDMA_CM_EVENT_CONNECT_REQUEST);
		KUNIT_EXPECT_EQ(test, (int)kdt_state(c.h), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
		KUNIT_EXPECT_EQ(test, kdt_queued(c.conn), 0);
		if (reasons[i] >= 0)
			KUNIT_EXPECT_EQ(test, kdt_raw_reject(raw, reasons[i], why, sizeof(why)), 0);
		else
			kdt_raw_close(raw);
		if (reasons[i] == IB_CM_REJ_CONSUMER_DEFINED) {
			kdt_rejected(test, &c, sizeof(why), i);
		} else {
			KUNIT_ASSERT_TRUE(test, kdt_get(c.conn, &event));
			if (reasons[i] >= 0 ||
			    event.event_number != DAT_CONNECTION_EVENT_PEER_REJECTED)
				KUNIT_EXPECT_EQ(test, (int)event.event_number,
						DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		}
		kdt_raw_close(raw);
		KDT_OK(test, dat_ep_reset(c.h));
	}
	kdt_ep_done(test, &c);
}

/* ---- a peer that remembers this queue pair from a connection it believes in ---- */

static struct kdt_raw *stale(struct kunit *test, DAT_CONN_QUAL port, int times)
{
	struct kdt_raw *raw = kdt_raw_listen(test, &kdt_env(test)->b, port);

	raw->stale = times;
	return raw;
}

static void known_already(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	DAT_CONN_QUAL port = kdt_new_port();
	struct kdt_raw *raw;
	struct kdt_ep c;
	ktime_t start;
	int i;

	if (env->a.iwarp)
		kunit_skip(test, "iWARP has no queue pair numbers of its peers");
	kdt_ep_new(test, &c, &env->a, NULL);
	/* asked again, and then welcome */
	raw = stale(test, port, 2);
	KDT_OK(test, kdt_connect(&c, &env->b, port));
	kdt_raw_wait(test, raw, RDMA_CM_EVENT_CONNECT_REQUEST);
	KUNIT_EXPECT_EQ(test, raw->refused, 2);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(c.h), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	KUNIT_EXPECT_EQ(test, kdt_queued(c.conn), 0);
	KUNIT_ASSERT_EQ(test, kdt_raw_accept(raw->child, KDT_RAW_QPN), 0);
	kdt_conn(test, &c, DAT_CONNECTION_EVENT_ESTABLISHED);
	kdt_raw_wait(test, raw, RDMA_CM_EVENT_ESTABLISHED);
	KDT_OK(test, dat_ep_disconnect(c.h, DAT_CLOSE_ABRUPT_FLAG));
	kdt_conn(test, &c, DAT_CONNECTION_EVENT_DISCONNECTED);
	kdt_raw_close(raw);

	/* for ever: the consumer's time-out, or ten times more without one */
	port = kdt_new_port();
	raw = stale(test, port, INT_MAX);
	KDT_OK(test, dat_ep_reset(c.h));
	start = ktime_get();
	KDT_OK(test, kdt_ask(&c, &env->b, port, 400 * USEC_PER_MSEC, NULL, 0));
	kdt_conn(test, &c, DAT_CONNECTION_EVENT_TIMED_OUT);
	KUNIT_EXPECT_GE(test, ktime_us_delta(ktime_get(), start), (s64)400 * USEC_PER_MSEC);
	KDT_OK(test, dat_ep_reset(c.h));
	kdt_raw_close(raw);
	port = kdt_new_port();
	raw = stale(test, port, INT_MAX);
	KDT_OK(test, kdt_ask(&c, &env->b, port, DAT_TIMEOUT_INFINITE, NULL, 0));
	kdt_conn(test, &c, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	KUNIT_EXPECT_EQ(test, raw->refused, 11);

	/* given up, freed, while the next one is due */
	for (i = 0; i < 3; i++) {
		KDT_OK(test, dat_ep_reset(c.h));
		raw->refused = 0;
		KDT_OK(test, kdt_ask(&c, &env->b, port, i == 2 ? DAT_TIMEOUT_INFINITE :
				     60 * USEC_PER_SEC, NULL, 0));
		KUNIT_ASSERT_TRUE(test, wait_event_timeout(raw->wait, READ_ONCE(raw->refused) > i,
							   KDT_WAIT));
		if (i == 2)
			break;
		KDT_OK(test, dat_ep_disconnect(c.h, flags[i]));
		kdt_conn(test, &c, DAT_CONNECTION_EVENT_DISCONNECTED);
	}
	kdt_ep_done(test, &c);
}

/* ---- soft-iWARP is inside of connect() for as long as TCP tries ---- */

static bool has_port(struct kunit *test, DAT_EP_HANDLE ep)
{
	DAT_EP_PARAM param = {};

	KDT_OK(test, dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	return param.local_port_qual;
}

/* Nobody answers this, and it has gone as far as that. */
static void calls_nobody(struct kunit *test, struct kdt_ep *ep, u32 usec)
{
	struct sockaddr_storage nobody = kdt_nobody_there(&kdt_env(test)->b);

	KDT_OK(test, dat_ep_connect(ep->h, (DAT_IA_ADDRESS_PTR)&nobody, 5000, usec, 0, NULL, 0, 0));
	if (usec != DAT_TIMEOUT_INFINITE)
		return;
	KUNIT_EXPECT_TRUE(test, kdt_until(has_port(test, ep->h)));
	schedule_timeout_uninterruptible(HZ / 50);	/* its chance to get there */
	KUNIT_EXPECT_EQ(test, (int)kdt_state(ep->h), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
}

static void while_blocked(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_scene *t = kdt_scene_new(test);
	struct kdt_ep *c = &t->c, other;
	DAT_CR_HANDLE cr;
	int i;

	if (!env->a.iwarp)
		kunit_skip(test, "no call of this transport lasts");
	if (kdt_ia_asks(&env->a))
		kunit_skip(test, "without neighbours nobody is called");
	kdt_patient_tcp(env);
	kdt_scene_listen(test, t, KDT_PSP);
	/* timed out, given up; the endpoint is good for the next call at once */
	for (i = 0; i < 3; i++) {
		KDT_OK(test, dat_ep_post_recv(c->h, 0, NULL, kdt_cookie(i), 0));
		calls_nobody(test, c, i == 2 ? 100 * USEC_PER_MSEC : DAT_TIMEOUT_INFINITE);
		if (i < 2)
			KDT_OK(test, dat_ep_disconnect(c->h, flags[i]));
		kdt_conn(test, c, i < 2 ? DAT_CONNECTION_EVENT_DISCONNECTED :
			 DAT_CONNECTION_EVENT_TIMED_OUT);
		kdt_flushed(test, c, i, DAT_DTO_RECEIVE);
		KDT_OK(test, dat_ep_reset(c->h));
		cr = kdt_call(test, c, &env->b, t->port, t->cr).cr_handle;
		kdt_accept(test, cr, t->s.h, c, &t->s);
		kdt_talk(test, c, &t->s, t->from, t->to, i);
		kdt_down(test, c, &t->s);
		kdt_reset(test, c, &t->s);
	}
	/* freed, and all it used */
	kdt_ep_new(test, &other, &env->a, NULL);
	KDT_OK(test, dat_ep_post_recv(other.h, 0, NULL, kdt_cookie(1), 0));
	calls_nobody(test, &other, DAT_TIMEOUT_INFINITE);
	kdt_ep_done(test, &other);
	/* closed */
	calls_nobody(test, c, DAT_TIMEOUT_INFINITE);
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_IA_IN_USE,
		    dat_ia_close(env->a.h, DAT_CLOSE_GRACEFUL_FLAG));
	KDT_OK(test, dat_ia_close(env->a.h, DAT_CLOSE_ABRUPT_FLAG));
	env->a.h = DAT_HANDLE_NULL;
	KUNIT_EXPECT_EQ(test, kdt_queued(c->conn), 0);
}

/* ---- COMPLETION_PENDING, which lasts as long as the caller wants ---- */

/* What becomes of one that was accepted, whose caller has not said its last word. */
enum last_word { READY, TOO_LATE, REJECT, CLOSE, FREED };

static bool told_so(struct kdt_raw *raw)
{
	return READ_ONCE(raw->seen[RDMA_CM_EVENT_REJECTED]) ||
	       READ_ONCE(raw->seen[RDMA_CM_EVENT_DISCONNECTED]);
}

static void last_word(struct kunit *test, enum last_word word, int row)
{
	struct kdt_scene *t = kdt_scene_new(test);
	struct kdt_ep *s = &t->s;
	DAT_EP_PARAM param = {};
	struct kdt_raw *raw;

	kdt_scene_listen(test, t, KDT_PSP);
	raw = kdt_raw_caller(test, t->c.ia, s->ia, t->port);
	KUNIT_ASSERT_EQ(test, kdt_raw_request(raw, NULL, 0, KDT_RAW_QPN), 0);
	KDT_OK(test, dat_ep_post_recv(s->h, 0, NULL, kdt_cookie(1), 0));
	KDT_OK(test, dat_cr_accept(kdt_arrival(test, t->cr).cr_handle, s->h, 0, NULL));
	kdt_raw_wait(test, raw, RDMA_CM_EVENT_CONNECT_RESPONSE);
	KDT_OK(test, dat_ep_query(s->h, DAT_EP_FIELD_ALL, &param));
	KUNIT_EXPECT_EQ(test, (int)param.ep_state, DAT_EP_STATE_COMPLETION_PENDING);
	KUNIT_ASSERT_NOT_NULL(test, param.remote_ia_address_ptr);
	KUNIT_EXPECT_TRUE(test, kdt_same_address(param.remote_ia_address_ptr, t->c.ia));
	KUNIT_EXPECT_EQ(test, param.local_port_qual, t->port);
	KUNIT_EXPECT_EQ(test, kdt_queued(s->conn), 0);
	switch (word) {
	case READY:
		KUNIT_ASSERT_EQ(test, kdt_raw_ready(raw), 0);
		kdt_conn(test, s, DAT_CONNECTION_EVENT_ESTABLISHED);
		KUNIT_EXPECT_EQ(test, rdma_disconnect(raw->id), 0);
		kdt_conn(test, s, DAT_CONNECTION_EVENT_DISCONNECTED);
		break;
	case TOO_LATE:	/* given up here: the peer may know already, then it is refused */
		KDT_OK(test, dat_ep_disconnect(s->h, flags[row % 2]));
		kdt_conn(test, s, DAT_CONNECTION_EVENT_DISCONNECTED);
		KDT_OK(test, dat_ep_disconnect(s->h, flags[row % 2]));
		if (row / 2)
			kdt_raw_ready(raw);
		else
			rdma_reject(raw->id, NULL, 0, IB_CM_REJ_CONSUMER_DEFINED);
		break;
	case FREED:	/* a rejection that meets the last word is one all the same */
		KDT_OK(test, dat_ep_free(s->h));
		kdt_raw_ready(raw);
		KUNIT_EXPECT_TRUE(test, wait_event_timeout(raw->wait, told_so(raw), KDT_WAIT));
		KUNIT_EXPECT_EQ(test, kdt_queued(s->conn), 0);
		return;
	case REJECT:
		rdma_reject(raw->id, NULL, 0, IB_CM_REJ_CONSUMER_DEFINED);
		kdt_conn(test, s, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
		break;
	case CLOSE:
		kdt_raw_close(raw);
		kdt_conn(test, s, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	}
	kdt_flushed(test, s, 1, DAT_DTO_RECEIVE);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(s->h), DAT_EP_STATE_DISCONNECTED);
	kdt_raw_close(raw);
	KDT_OK(test, dat_ep_reset(s->h));
	kdt_scene_done(test, t);
}

static void completion_pending(struct kunit *test)
{
	int row;

	if (kdt_env(test)->b.iwarp)
		kunit_skip(test, "on iWARP the accepting side is connected");
	last_word(test, READY, 0);
	for (row = 0; row < 4; row++)
		last_word(test, TOO_LATE, row);
	last_word(test, REJECT, 0);
	last_word(test, CLOSE, 0);
	last_word(test, FREED, 0);
}

/* ---- DISCONNECT_PENDING, which lasts as long as the peer does not answer ---- */

/* What ends it. */
enum answer { NO_ANSWER, PEER_LEAVES, GIVEN_UP, FREE };

/* Connected to somebody without a queue pair: what is sent is never acknowledged. */
static void no_answer(struct kunit *test, enum answer answer)
{
	struct kdat_conn_attr attr = KDAT_CONN_ATTR_INIT;
	struct kdt_env *env = kdt_env(test);
	struct kdt_buf *buf = kdt_buf_new(test, &env->a, 64);
	DAT_CONN_QUAL port = kdt_new_port();
	struct kdt_raw *raw = kdt_raw_listen(test, &env->b, port);
	DAT_EP_PARAM param = {};
	DAT_EVENT event;
	struct kdt_ep c;

	attr.ack_timeout = answer == GIVEN_UP ? 10 : 21;	/* 4 ms, 8.6 s */
	attr.retry_count = answer == GIVEN_UP ? 1 : KDAT_CONN_DEFAULT;
	kdt_ep_new(test, &c, &env->a, NULL);
	KDT_OK(test, kdat_ep_modify_conn(c.h, &attr));
	KDT_OK(test, kdt_connect(&c, &env->b, port));
	kdt_raw_wait(test, raw, RDMA_CM_EVENT_CONNECT_REQUEST);
	KUNIT_ASSERT_EQ(test, kdt_raw_accept(raw->child, KDT_RAW_QPN), 0);
	kdt_conn(test, &c, DAT_CONNECTION_EVENT_ESTABLISHED);
	kdt_raw_wait(test, raw, RDMA_CM_EVENT_ESTABLISHED);
	KDT_OK(test, kdt_recv(&c, buf, 0, 64, 1));
	KDT_OK(test, kdt_send(&c, buf, 0, 64, 2, 0));
	KDT_OK(test, kdt_send(&c, buf, 0, 64, 3, 0));
	KDT_OK(test, dat_ep_disconnect(c.h, DAT_CLOSE_GRACEFUL_FLAG));
	/* that one may be over by now */
	if (answer != GIVEN_UP) {
		KUNIT_EXPECT_EQ(test, (int)kdt_state(c.h), DAT_EP_STATE_DISCONNECT_PENDING);
		KUNIT_EXPECT_EQ(test, kdt_queued(c.conn), 0);
	}
	switch (answer) {
	case NO_ANSWER:	/* a second graceful one is nothing, an abrupt one is the end */
		KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_DISCPENDING,
			    kdt_send(&c, buf, 0, 64, 4, 0));
		KDT_OK(test, dat_ep_query(c.h, DAT_EP_FIELD_ALL, &param));
		KUNIT_ASSERT_NOT_NULL(test, param.remote_ia_address_ptr);
		KUNIT_EXPECT_TRUE(test, kdt_same_address(param.remote_ia_address_ptr, &env->b));
		KDT_OK(test, dat_ep_disconnect(c.h, DAT_CLOSE_GRACEFUL_FLAG));
		KUNIT_EXPECT_FALSE(test, kdt_get_timeout(c.conn, &event, HZ / 10));
		KUNIT_EXPECT_EQ(test, (int)kdt_state(c.h), DAT_EP_STATE_DISCONNECT_PENDING);
		KDT_OK(test, dat_ep_disconnect(c.h, DAT_CLOSE_ABRUPT_FLAG));
		kdt_conn(test, &c, DAT_CONNECTION_EVENT_DISCONNECTED);
		kdt_raw_wait(test, raw, RDMA_CM_EVENT_DISCONNECTED);
		break;
	case PEER_LEAVES:
		KUNIT_EXPECT_EQ(test, rdma_disconnect(raw->child), 0);
		kdt_conn(test, &c, DAT_CONNECTION_EVENT_DISCONNECTED);
		break;
	case GIVEN_UP:
		kdt_conn(test, &c, DAT_CONNECTION_EVENT_BROKEN);
		break;
	case FREE:	/* its peer hears of it */
		KDT_OK(test, dat_ep_free(c.h));
		kdt_raw_wait(test, raw, RDMA_CM_EVENT_DISCONNECTED);
		KUNIT_EXPECT_EQ(test, kdt_queued(c.conn), 0);
		return;
	}
	kdt_dto(test, c.req, &c, 2, DAT_DTO_SEND, answer == GIVEN_UP ? DAT_DTO_ERR_TRANSPORT :
		DAT_DTO_ERR_FLUSHED, 0);
	kdt_flushed(test, &c, 3, DAT_DTO_SEND);
	kdt_flushed(test, &c, 1, DAT_DTO_RECEIVE);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(c.h), DAT_EP_STATE_DISCONNECTED);
	KDT_OK(test, dat_ep_reset(c.h));
	kdt_ep_done(test, &c);
	kdt_raw_close(raw);
}

static void disconnect_pending(struct kunit *test)
{
	int answer;

	if (kdt_env(test)->a.iwarp)
		kunit_skip(test, "soft-iWARP's requests end when they have left");
	for (answer = NO_ANSWER; answer <= FREE; answer++)
		no_answer(test, answer);
}

static struct kunit_case cases[] = {
	KD_CASE(never_early, "CONN-05,EPSM-09,EPSM-34,SIL-33: time-outs are never early"),
	KD_CASE(timer_stopped, "CONN-05,EPSM-30,EPSM-34: a timer that is not needed any more"),
	KD_CASE(raw_refusals, "EPSM-06,EPSM-07,EPSM-30,CONN-10,SIL-11: all kinds of refusals"),
	KD_CASE(known_already, "EPSM-07,EPSM-09,EPSM-10,EPSM-30,EP-FREE-02: asked once more"),
	KD_CASE(while_blocked, "EPSM-09,EPSM-10,IA-CLOSE-02,EP-FREE-02: TCP does not come back"),
	KD_CASE(completion_pending, "EPSM-11,EPSM-12,EPSM-13,EP-DIS-05,EP-FREE-02: all of CP"),
	KD_CASE(disconnect_pending, "EPSM-16,EPSM-19,EPSM-20,EPSM-21,EP-DIS-06,EP-DIS-07: DP"),
	{}
};

struct kunit_suite kdt_outcome_suite = { .name = "kdtest-outcome", KDT_CASES };
