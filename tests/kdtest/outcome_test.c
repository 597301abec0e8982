// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Each outcome for its real cause, once, not early; what comes late is ignored. */
#include <linux/ktime.h>
#include <linux/slab.h>
#include <rdma/ib_cm.h>

#include "kdtest_conn.h"

/* ---- time-outs ---- */

static void never_early(struct kunit *test)
{
	static const u32 usec[] = { 1, 999, 10000, 10001, 55555, 250000, 700000 };
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	DAT_CR_HANDLE cr[ARRAY_SIZE(usec)];
	DAT_EVENT event;
	s64 took;
	ktime_t start;
	int i, n = 0;

	for (i = 0; i < ARRAY_SIZE(usec); i++) {
		start = ktime_get();
		KDT_OK(test, dat_ep_connect(pair->c.h, (DAT_IA_ADDRESS_PTR)&env->b.addr, pair->port,
					    usec[i], 0, NULL, 0, 0));
		kdt_conn(test, &pair->c, DAT_CONNECTION_EVENT_TIMED_OUT);
		took = ktime_us_delta(ktime_get(), start);
		KUNIT_EXPECT_TRUE_MSG(test, took >= usec[i], "%u us took %lld", usec[i], took);
		KUNIT_EXPECT_EQ(test, (int)kdt_state(pair->c.h), DAT_EP_STATE_DISCONNECTED);
		KDT_OK(test, dat_ep_reset(pair->c.h));
	}
	/* Requests that came are answered now; the caller hears nothing more. */
	while (kdt_get_timeout(pair->cr, &event, HZ / 5)) {
		KUNIT_ASSERT_LT(test, n, (int)ARRAY_SIZE(cr));
		cr[n++] = event.event_data.cr_arrival_event_data.cr_handle;
	}
	for (i = 0; i < n; i++)
		KDT_OK(test, dat_cr_reject(cr[i], 0, NULL));
	kunit_info(test, "%d of %d requests had arrived\n", n, i);
	KUNIT_EXPECT_EQ(test, kdt_queued(pair->c.conn), 0);
	/* The same endpoint gets through when somebody answers. */
	kdt_pair_connect(test, pair);
	kdt_pair_down(test, pair);
	kdt_ep_done(test, &pair->c);
	kdt_ep_done(test, &pair->s);
}

/* One that answers in time is not disturbed by the timer of this or an earlier attempt. */
static void timer_stopped(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, 128);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, 128);
	u32 usec = 2 * USEC_PER_SEC;
	ktime_t start;
	DAT_EVENT event;
	bool up;
	int i;

	for (i = 0; i < 2; i++) {
		start = ktime_get();
		KDT_OK(test, dat_ep_connect(pair->c.h, (DAT_IA_ADDRESS_PTR)&env->b.addr, pair->port,
					    usec, 0, NULL, 0, 0));
		KDT_OK(test, dat_cr_accept(kdt_arrival(test, pair->cr).cr_handle, pair->s.h, 0,
					   NULL));
		KUNIT_ASSERT_TRUE(test, kdt_get(pair->c.conn, &event));
		up = event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED;
		if (!up) {	/* a machine as slow as that is allowed to */
			KUNIT_EXPECT_EQ(test, (int)event.event_number,
					DAT_CONNECTION_EVENT_TIMED_OUT);
			KUNIT_EXPECT_GE(test, ktime_us_delta(ktime_get(), start), (s64)usec);
			kunit_skip(test, "two seconds are too short here");
		}
		kdt_conn(test, &pair->s, DAT_CONNECTION_EVENT_ESTABLISHED);
		if (!i) {
			kdt_pair_down(test, pair);
			KDT_OK(test, dat_ep_reset(pair->c.h));
			KDT_OK(test, dat_ep_reset(pair->s.h));
		}
	}
	/* beyond the end of both */
	KUNIT_EXPECT_FALSE(test, kdt_get_timeout(pair->c.conn, &event,
						 usecs_to_jiffies(usec) + HZ / 5));
	kdt_talk(test, &pair->c, &pair->s, from, to, 1);
	kdt_pair_down(test, pair);
	kdt_ep_done(test, &pair->c);
	kdt_ep_done(test, &pair->s);
}

/* ---- given up, then answered ---- */

static void late_answers(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	int how, answer;

	for (how = 0; how < 3; how++) {
		for (answer = 0; answer < 2; answer++) {
			struct kdt_pair *pair = kdt_pair_new(test, NULL);
			DAT_CR_HANDLE cr;

			KDT_OK(test, dat_ep_connect(pair->c.h, (DAT_IA_ADDRESS_PTR)&env->b.addr,
						    pair->port, how ? DAT_TIMEOUT_INFINITE :
						    300 * USEC_PER_MSEC, 0, NULL, 0, 0));
			cr = kdt_arrival(test, pair->cr).cr_handle;
			if (how)
				KDT_OK(test, dat_ep_disconnect(pair->c.h, how == 1 ?
							       DAT_CLOSE_ABRUPT_FLAG :
							       DAT_CLOSE_GRACEFUL_FLAG));
			kdt_conn(test, &pair->c, how ? DAT_CONNECTION_EVENT_DISCONNECTED :
				 DAT_CONNECTION_EVENT_TIMED_OUT);
			/* another disconnect has nothing to end */
			KDT_OK(test, dat_ep_disconnect(pair->c.h, DAT_CLOSE_ABRUPT_FLAG));
			if (answer) {
				DAT_EVENT event;

				KDT_OK(test, dat_cr_accept(cr, pair->s.h, 0, NULL));
				KUNIT_ASSERT_TRUE(test, kdt_get(pair->s.conn, &event));
				if (event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
					kdt_end(test, &pair->s);
				KUNIT_EXPECT_EQ(test, (int)kdt_state(pair->s.h),
						DAT_EP_STATE_DISCONNECTED);
			} else {
				KDT_OK(test, dat_cr_reject(cr, 0, NULL));
			}
			KUNIT_EXPECT_EQ(test, (int)kdt_state(pair->c.h), DAT_EP_STATE_DISCONNECTED);
			/* no event of that is in the queues, not even after the next one */
			KDT_OK(test, dat_ep_reset(pair->c.h));
			if (answer)
				KDT_OK(test, dat_ep_reset(pair->s.h));
			kdt_pair_connect(test, pair);
			kdt_pair_down(test, pair);
			kdt_ep_done(test, &pair->c);
			kdt_ep_done(test, &pair->s);
		}
	}
}

/* ---- a peer that uses the connection manager itself ---- */

static void raw_refusals(struct kunit *test)
{
	static const int reasons[] = {
		IB_CM_REJ_NO_RESOURCES, IB_CM_REJ_CONSUMER_DEFINED, IB_CM_REJ_UNSUPPORTED,
		IB_CM_REJ_INVALID_SERVICE_ID,
	};
	struct kdt_env *env = kdt_env(test);
	struct kdt_ep c;
	struct kdt_raw *raw;
	int i;

	if (env->b.iwarp)
		kunit_skip(test, "iWARP carries no reason");
	kdt_ep_new(test, &c, &env->a, NULL);
	for (i = 0; i < ARRAY_SIZE(reasons); i++) {
		DAT_CONN_QUAL port = kdt_new_port();
		u8 why[8];

		kdt_fill(why, sizeof(why), i);
		raw = kdt_raw_listen(test, &env->b, port);
		KDT_OK(test, kdt_connect(&c, &env->b, port));
		kdt_raw_wait(test, raw, RDMA_CM_EVENT_CONNECT_REQUEST);
		KUNIT_EXPECT_EQ(test, rdma_reject(raw->child, why, sizeof(why), reasons[i]), 0);
		if (reasons[i] == IB_CM_REJ_CONSUMER_DEFINED)
			kdt_rejected(test, &c, sizeof(why), i);
		else
			kdt_conn(test, &c, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		kdt_raw_close(raw);
		KDT_OK(test, dat_ep_reset(c.h));
	}
	kdt_ep_done(test, &c);
}

/* Never answered, closed, or the device's own end of the attempt. */
static void raw_silence(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	DAT_CONN_QUAL port = kdt_new_port();
	struct kdt_raw *raw = kdt_raw_listen(test, &env->b, port);
	struct kdt_ep c;
	DAT_EVENT event;

	kdt_ep_new(test, &c, &env->a, NULL);
	KDT_OK(test, kdt_connect(&c, &env->b, port));
	kdt_raw_wait(test, raw, RDMA_CM_EVENT_CONNECT_REQUEST);
	KUNIT_EXPECT_FALSE(test, kdt_get_timeout(c.conn, &event, HZ / 10));
	KUNIT_EXPECT_EQ(test, (int)kdt_state(c.h), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	/* the program at the other end is killed: its kernel may answer in its name */
	kdt_raw_close(raw);
	KUNIT_ASSERT_TRUE(test, kdt_get(c.conn, &event));
	if (event.event_number != DAT_CONNECTION_EVENT_PEER_REJECTED)
		KUNIT_EXPECT_EQ(test, (int)event.event_number,
				DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	kdt_ep_done(test, &c);
}

/* ---- a peer that remembers this queue pair from a connection it believes in ---- */

static void refused(struct kunit *test, struct kdt_raw *raw, int n)
{
	KUNIT_ASSERT_TRUE_MSG(test, wait_event_timeout(raw->wait, READ_ONCE(raw->refused) >= n,
						       KDT_WAIT),
			      "asked %d times, not %d", raw->refused, n);
}

static void known_already(struct kunit *test)
{
	static const DAT_CLOSE_FLAGS flags[] = { DAT_CLOSE_ABRUPT_FLAG, DAT_CLOSE_GRACEFUL_FLAG };
	struct kdt_env *env = kdt_env(test);
	DAT_CONN_QUAL port = kdt_new_port();
	DAT_IA_ADDRESS_PTR to = (DAT_IA_ADDRESS_PTR)&env->b.addr;
	struct kdt_raw *raw;
	struct kdt_ep c;
	ktime_t start;
	int i;

	if (env->a.iwarp)
		kunit_skip(test, "iWARP has no queue pair numbers of its peers");
	kdt_ep_new(test, &c, &env->a, NULL);
	raw = kdt_raw_listen(test, &env->b, port);
	/* asked again, and then welcome */
	raw->stale = 2;
	KDT_OK(test, dat_ep_post_recv(c.h, 0, NULL, kdt_cookie(1), 0));
	KDT_OK(test, kdt_connect(&c, &env->b, port));
	kdt_raw_wait(test, raw, RDMA_CM_EVENT_CONNECT_REQUEST);
	KUNIT_EXPECT_EQ(test, raw->refused, 2);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(c.h), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
	KUNIT_EXPECT_EQ(test, kdt_queued(c.conn), 0);
	KUNIT_ASSERT_EQ(test, kdt_raw_accept(raw->child), 0);
	kdt_conn(test, &c, DAT_CONNECTION_EVENT_ESTABLISHED);
	kdt_raw_wait(test, raw, RDMA_CM_EVENT_ESTABLISHED);
	KDT_OK(test, dat_ep_disconnect(c.h, DAT_CLOSE_ABRUPT_FLAG));
	kdt_conn(test, &c, DAT_CONNECTION_EVENT_DISCONNECTED);
	kdt_dto(test, c.recv, &c, 1, DAT_DTO_RECEIVE, DAT_DTO_ERR_FLUSHED, 0);
	kdt_raw_close(raw);

	/* for ever: the consumer's time-out, or ten times more without one */
	port = kdt_new_port();
	raw = kdt_raw_listen(test, &env->b, port);
	raw->stale = INT_MAX;
	KDT_OK(test, dat_ep_reset(c.h));
	start = ktime_get();
	KDT_OK(test, dat_ep_connect(c.h, to, port, 400 * USEC_PER_MSEC, 0, NULL, 0, 0));
	kdt_conn(test, &c, DAT_CONNECTION_EVENT_TIMED_OUT);
	KUNIT_EXPECT_GE(test, ktime_us_delta(ktime_get(), start), (s64)400 * USEC_PER_MSEC);
	KDT_OK(test, dat_ep_reset(c.h));
	kdt_raw_close(raw);
	port = kdt_new_port();
	raw = kdt_raw_listen(test, &env->b, port);
	raw->stale = INT_MAX;
	KDT_OK(test, dat_ep_connect(c.h, to, port, DAT_TIMEOUT_INFINITE, 0, NULL, 0, 0));
	kdt_conn(test, &c, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	KUNIT_EXPECT_EQ(test, raw->refused, 11);

	/* given up, freed, while the next one is due */
	for (i = 0; i < 3; i++) {
		KDT_OK(test, dat_ep_reset(c.h));
		raw->refused = 0;
		KDT_OK(test, dat_ep_connect(c.h, to, port, i == 2 ? DAT_TIMEOUT_INFINITE :
					    60 * USEC_PER_SEC, 0, NULL, 0, 0));
		refused(test, raw, i + 1);
		if (i == 2)
			break;
		KDT_OK(test, dat_ep_disconnect(c.h, flags[i]));
		kdt_conn(test, &c, DAT_CONNECTION_EVENT_DISCONNECTED);
	}
	kdt_ep_done(test, &c);
}

/* ---- soft-iWARP is inside of connect() for as long as TCP tries ---- */

/* Nobody answers this, and it has gone as far as that. */
static void calls_nobody(struct kunit *test, struct kdt_ep *ep, u32 usec)
{
	struct sockaddr_storage nobody = kdt_nobody_there(&kdt_env(test)->b);
	unsigned long end = jiffies + KDT_WAIT;
	DAT_EP_PARAM param = {};

	KDT_OK(test, dat_ep_connect(ep->h, (DAT_IA_ADDRESS_PTR)&nobody, 5000, usec, 0, NULL, 0, 0));
	if (usec != DAT_TIMEOUT_INFINITE)
		return;
	do {
		schedule_timeout_uninterruptible(1);
		KDT_OK(test, dat_ep_query(ep->h, DAT_EP_FIELD_ALL, &param));
	} while (!param.local_port_qual && time_before(jiffies, end));
	KUNIT_EXPECT_NE(test, param.local_port_qual, 0);
	schedule_timeout_uninterruptible(HZ / 50);	/* its chance to get there */
	KUNIT_EXPECT_EQ(test, (int)kdt_state(ep->h), DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
}

static void while_blocked(struct kunit *test)
{
	static const DAT_CLOSE_FLAGS flags[] = { DAT_CLOSE_ABRUPT_FLAG, DAT_CLOSE_GRACEFUL_FLAG };
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, 128);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, 128);
	struct kdt_ep c;
	ktime_t start;
	int i;

	if (!env->a.iwarp)
		kunit_skip(test, "no call of this transport lasts");
	if (kdt_ia_asks(&env->a))
		kunit_skip(test, "who has no neighbour does not call it");
	kdt_patient_tcp(env);
	start = ktime_get();
	/* timed out, given up; the endpoint is good for the next call at once */
	for (i = 0; i < 3; i++) {
		KDT_OK(test, dat_ep_post_recv(pair->c.h, 0, NULL, kdt_cookie(i), 0));
		calls_nobody(test, &pair->c, i == 2 ? 100 * USEC_PER_MSEC : DAT_TIMEOUT_INFINITE);
		if (i < 2)
			KDT_OK(test, dat_ep_disconnect(pair->c.h, flags[i]));
		kdt_conn(test, &pair->c, i < 2 ? DAT_CONNECTION_EVENT_DISCONNECTED :
			 DAT_CONNECTION_EVENT_TIMED_OUT);
		kdt_dto(test, pair->c.recv, &pair->c, i, DAT_DTO_RECEIVE, DAT_DTO_ERR_FLUSHED, 0);
		KDT_OK(test, dat_ep_reset(pair->c.h));
		kdt_pair_connect(test, pair);
		kdt_talk(test, &pair->c, &pair->s, from, to, i);
		kdt_pair_down(test, pair);
		KDT_OK(test, dat_ep_reset(pair->c.h));
		KDT_OK(test, dat_ep_reset(pair->s.h));
	}
	/* freed, and all it used */
	kdt_ep_new(test, &c, &env->a, NULL);
	KDT_OK(test, dat_ep_post_recv(c.h, 0, NULL, kdt_cookie(1), 0));
	calls_nobody(test, &c, DAT_TIMEOUT_INFINITE);
	kdt_ep_done(test, &c);
	/* closed */
	kdt_ep_new(test, &c, &env->a, NULL);
	calls_nobody(test, &c, DAT_TIMEOUT_INFINITE);
	calls_nobody(test, &pair->c, DAT_TIMEOUT_INFINITE);
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_IA_IN_USE,
		    dat_ia_close(env->a.h, DAT_CLOSE_GRACEFUL_FLAG));
	KDT_OK(test, dat_ia_close(env->a.h, DAT_CLOSE_ABRUPT_FLAG));
	env->a.h = DAT_HANDLE_NULL;
	KUNIT_EXPECT_EQ(test, kdt_queued(c.conn), 0);
	/* TCP would have gone on for twice as long */
	KUNIT_EXPECT_LT(test, ktime_ms_delta(ktime_get(), start), (s64)60 * MSEC_PER_SEC);
}

/* ---- COMPLETION_PENDING, which lasts as long as the caller wants ---- */

struct slow {
	struct kdt_raw *raw;
	struct kdt_evd *cr;
	struct kdt_ep s;
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL port;
};

/* Accepted, and the caller has not said its last word. */
static struct slow *slow_new(struct kunit *test)
{
	struct slow *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);
	struct kdt_env *env = kdt_env(test);
	DAT_CR_HANDLE cr;

	KUNIT_ASSERT_NOT_NULL(test, w);
	w->cr = kdt_evd_new(test, &env->b, DAT_EVD_CR_FLAG);
	w->port = kdt_new_port();
	kdt_ep_new(test, &w->s, &env->b, NULL);
	KDT_OK(test, dat_psp_create(env->b.h, w->port, w->cr->h, DAT_PSP_CONSUMER_FLAG, &w->psp));
	w->raw = kdt_raw_caller(test, &env->a, &env->b, w->port);
	KUNIT_ASSERT_EQ(test, kdt_raw_request(w->raw, NULL, 0), 0);
	cr = kdt_arrival(test, w->cr).cr_handle;
	KDT_OK(test, dat_ep_post_recv(w->s.h, 0, NULL, kdt_cookie(1), 0));
	KDT_OK(test, dat_cr_accept(cr, w->s.h, 0, NULL));
	kdt_raw_wait(test, w->raw, RDMA_CM_EVENT_CONNECT_RESPONSE);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(w->s.h), DAT_EP_STATE_COMPLETION_PENDING);
	return w;
}

static void slow_done(struct kunit *test, struct slow *w)
{
	kdt_dto(test, w->s.recv, &w->s, 1, DAT_DTO_RECEIVE, DAT_DTO_ERR_FLUSHED, 0);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(w->s.h), DAT_EP_STATE_DISCONNECTED);
	kdt_raw_close(w->raw);
	KDT_OK(test, dat_ep_reset(w->s.h));
	kdt_ep_done(test, &w->s);
	KDT_OK(test, dat_psp_free(w->psp));
	KUNIT_EXPECT_EQ(test, kdt_queued(w->cr), 0);
}

static bool told_so(struct kdt_raw *raw)
{
	return READ_ONCE(raw->seen[RDMA_CM_EVENT_REJECTED]) ||
	       READ_ONCE(raw->seen[RDMA_CM_EVENT_DISCONNECTED]);
}

static void completion_pending(struct kunit *test)
{
	static const DAT_CLOSE_FLAGS flags[] = { DAT_CLOSE_ABRUPT_FLAG, DAT_CLOSE_GRACEFUL_FLAG };
	struct kdt_env *env = kdt_env(test);
	DAT_EP_PARAM param = {};
	DAT_CR_HANDLE spare;
	struct kdt_pair *pair;
	struct slow *w;
	int i;

	if (env->b.iwarp)
		kunit_skip(test, "on iWARP who accepts is connected");
	/* What it refuses; the last word comes: connected. */
	w = slow_new(test);
	pair = kdt_pair_new(test, NULL);
	spare = kdt_pair_request(test, pair);
	kdt_refuses(test, &w->s, DAT_EP_STATE_COMPLETION_PENDING, spare);
	KDT_OK(test, dat_cr_reject(spare, 0, NULL));
	KDT_OK(test, dat_ep_query(w->s.h, DAT_EP_FIELD_ALL, &param));
	KUNIT_ASSERT_NOT_NULL(test, param.remote_ia_address_ptr);
	KUNIT_EXPECT_TRUE(test, kdt_same_address(param.remote_ia_address_ptr, &env->a));
	KUNIT_EXPECT_EQ(test, param.local_port_qual, w->port);
	KUNIT_EXPECT_EQ(test, kdt_queued(w->s.conn), 0);
	KUNIT_ASSERT_EQ(test, kdt_raw_ready(w->raw), 0);
	kdt_conn(test, &w->s, DAT_CONNECTION_EVENT_ESTABLISHED);
	KUNIT_EXPECT_EQ(test, rdma_disconnect(w->raw->id), 0);
	kdt_conn(test, &w->s, DAT_CONNECTION_EVENT_DISCONNECTED);
	slow_done(test, w);

	/* Given up here; the last word comes too late, whatever it is. */
	for (i = 0; i < 4; i++) {
		w = slow_new(test);
		KDT_OK(test, dat_ep_disconnect(w->s.h, flags[i % 2]));
		kdt_conn(test, &w->s, DAT_CONNECTION_EVENT_DISCONNECTED);
		KDT_OK(test, dat_ep_disconnect(w->s.h, flags[i % 2]));
		/* the peer may know already, then it is refused */
		if (i / 2)
			kdt_raw_ready(w->raw);
		else
			rdma_reject(w->raw->id, NULL, 0, IB_CM_REJ_CONSUMER_DEFINED);
		slow_done(test, w);
	}

	/* The caller changes its mind. */
	for (i = 0; i < 2; i++) {
		w = slow_new(test);
		if (i)
			rdma_reject(w->raw->id, NULL, 0, IB_CM_REJ_CONSUMER_DEFINED);
		else
			kdt_raw_close(w->raw);
		kdt_conn(test, &w->s, DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
		slow_done(test, w);
	}

	/* Freed in the middle: the caller is told. */
	w = slow_new(test);
	KDT_OK(test, dat_ep_free(w->s.h));
	kdt_raw_ready(w->raw);
	/* a rejection that meets the last word is one all the same */
	KUNIT_EXPECT_TRUE(test, wait_event_timeout(w->raw->wait, told_so(w->raw), KDT_WAIT));
	KUNIT_EXPECT_EQ(test, kdt_queued(w->s.conn), 0);
}

/* ---- DISCONNECT_PENDING, which lasts as long as the peer does not answer ---- */

struct stuck {
	struct kdt_raw *raw;
	struct kdt_ep c;
	struct kdt_buf *buf;
};

/* Connected to somebody without a queue pair: what is sent is never acknowledged. */
static struct stuck *stuck_new(struct kunit *test, const struct kdat_conn_attr *attr)
{
	struct stuck *k = kunit_kzalloc(test, sizeof(*k), GFP_KERNEL);
	struct kdt_env *env = kdt_env(test);
	DAT_CONN_QUAL port = kdt_new_port();

	KUNIT_ASSERT_NOT_NULL(test, k);
	k->raw = kdt_raw_listen(test, &env->b, port);
	k->buf = kdt_buf_new(test, &env->a, 64);
	kdt_ep_new(test, &k->c, &env->a, NULL);
	if (attr)
		KDT_OK(test, kdat_ep_modify_conn(k->c.h, attr));
	KDT_OK(test, kdt_connect(&k->c, &env->b, port));
	kdt_raw_wait(test, k->raw, RDMA_CM_EVENT_CONNECT_REQUEST);
	KUNIT_ASSERT_EQ(test, kdt_raw_accept(k->raw->child), 0);
	kdt_conn(test, &k->c, DAT_CONNECTION_EVENT_ESTABLISHED);
	kdt_raw_wait(test, k->raw, RDMA_CM_EVENT_ESTABLISHED);
	return k;
}

static void stuck_send(struct kunit *test, struct stuck *k)
{
	KDT_OK(test, kdt_recv(&k->c, k->buf, 0, 64, 1));
	KDT_OK(test, kdt_send(&k->c, k->buf, 0, 64, 2, 0));
	KDT_OK(test, kdt_send(&k->c, k->buf, 0, 64, 3, 0));
	KDT_OK(test, dat_ep_disconnect(k->c.h, DAT_CLOSE_GRACEFUL_FLAG));
	KUNIT_EXPECT_EQ(test, (int)kdt_state(k->c.h), DAT_EP_STATE_DISCONNECT_PENDING);
	KUNIT_EXPECT_EQ(test, kdt_queued(k->c.conn), 0);
}

static void stuck_done(struct kunit *test, struct stuck *k, DAT_DTO_COMPLETION_STATUS first)
{
	kdt_dto(test, k->c.req, &k->c, 2, DAT_DTO_SEND, first, 0);
	kdt_dto(test, k->c.req, &k->c, 3, DAT_DTO_SEND, DAT_DTO_ERR_FLUSHED, 0);
	kdt_dto(test, k->c.recv, &k->c, 1, DAT_DTO_RECEIVE, DAT_DTO_ERR_FLUSHED, 0);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(k->c.h), DAT_EP_STATE_DISCONNECTED);
	KDT_OK(test, dat_ep_reset(k->c.h));
	kdt_ep_done(test, &k->c);
	kdt_raw_close(k->raw);
}

static void disconnect_pending(struct kunit *test)
{
	struct kdat_conn_attr attr = KDAT_CONN_ATTR_INIT, fast = KDAT_CONN_ATTR_INIT;
	struct kdt_env *env = kdt_env(test);
	DAT_EP_PARAM param = {};
	DAT_EVENT event;
	struct stuck *k;

	if (env->a.iwarp)
		kunit_skip(test, "soft-iWARP's requests end when they have left");
	attr.ack_timeout = 21;		/* 8.6 s */
	fast.ack_timeout = 10;		/* 4 ms */
	fast.retry_count = 1;

	/* What it refuses; a second graceful one is nothing, an abrupt one is the end. */
	k = stuck_new(test, &attr);
	stuck_send(test, k);
	kdt_refuses(test, &k->c, DAT_EP_STATE_DISCONNECT_PENDING, NULL);
	KDT_OK(test, dat_ep_query(k->c.h, DAT_EP_FIELD_ALL, &param));
	KUNIT_ASSERT_NOT_NULL(test, param.remote_ia_address_ptr);
	KUNIT_EXPECT_TRUE(test, kdt_same_address(param.remote_ia_address_ptr, &env->b));
	KDT_OK(test, dat_ep_disconnect(k->c.h, DAT_CLOSE_GRACEFUL_FLAG));
	KUNIT_EXPECT_FALSE(test, kdt_get_timeout(k->c.conn, &event, HZ / 10));
	KUNIT_EXPECT_EQ(test, (int)kdt_state(k->c.h), DAT_EP_STATE_DISCONNECT_PENDING);
	KDT_OK(test, dat_ep_disconnect(k->c.h, DAT_CLOSE_ABRUPT_FLAG));
	kdt_conn(test, &k->c, DAT_CONNECTION_EVENT_DISCONNECTED);
	kdt_raw_wait(test, k->raw, RDMA_CM_EVENT_DISCONNECTED);
	stuck_done(test, k, DAT_DTO_ERR_FLUSHED);

	/* The peer leaves. */
	k = stuck_new(test, &attr);
	stuck_send(test, k);
	KUNIT_EXPECT_EQ(test, rdma_disconnect(k->raw->child), 0);
	kdt_conn(test, &k->c, DAT_CONNECTION_EVENT_DISCONNECTED);
	stuck_done(test, k, DAT_DTO_ERR_FLUSHED);

	/* The transport gives up. */
	k = stuck_new(test, &fast);
	stuck_send(test, k);
	kdt_conn(test, &k->c, DAT_CONNECTION_EVENT_BROKEN);
	stuck_done(test, k, DAT_DTO_ERR_TRANSPORT);

	/* Freed: its peer hears of it. */
	k = stuck_new(test, &attr);
	stuck_send(test, k);
	KDT_OK(test, dat_ep_free(k->c.h));
	kdt_raw_wait(test, k->raw, RDMA_CM_EVENT_DISCONNECTED);
	KUNIT_EXPECT_EQ(test, kdt_queued(k->c.conn), 0);
}

/* ---- both at once ---- */

struct leaver {
	struct kdt_ep *ep;
	DAT_CLOSE_FLAGS flags;
	struct completion *go;
	struct completion done;
	DAT_RETURN ret;
};

static int leave(void *data)
{
	struct leaver *l = data;

	wait_for_completion_timeout(l->go, KDT_WAIT);
	l->ret = dat_ep_disconnect(l->ep->h, l->flags);
	complete(&l->done);
	return kdt_until_stopped();
}

static void both_leave(struct kunit *test)
{
	struct leaver *l = kunit_kcalloc(test, 2, sizeof(*l), GFP_KERNEL);
	struct completion *go = kunit_kzalloc(test, sizeof(*go), GFP_KERNEL);
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, 128);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, 128);
	struct task_struct *task[2];
	DAT_EVENT_NUMBER end;
	int i, j;

	KUNIT_ASSERT_NOT_NULL(test, l);
	KUNIT_ASSERT_NOT_NULL(test, go);
	for (i = 0; i < 12; i++) {
		kdt_pair_connect(test, pair);
		if (i % 3)
			kdt_talk(test, &pair->c, &pair->s, from, to, i);
		init_completion(go);
		for (j = 0; j < 2; j++) {
			l[j] = (struct leaver) {
				.ep = j ? &pair->s : &pair->c, .go = go,
				.flags = (i >> j) & 1 ? DAT_CLOSE_GRACEFUL_FLAG :
							DAT_CLOSE_ABRUPT_FLAG,
			};
			init_completion(&l[j].done);
			task[j] = kdt_beside(test, leave, &l[j]);
		}
		complete_all(go);
		for (j = 0; j < 2; j++) {
			KUNIT_ASSERT_TRUE(test,
					  wait_for_completion_timeout(&l[j].done, KDT_WAIT));
			KDT_OK(test, l[j].ret);
			kdt_stop(test, task[j]);
			end = kdt_end(test, l[j].ep);
			if (!env->a.iwarp)
				KUNIT_EXPECT_EQ(test, (int)end, DAT_CONNECTION_EVENT_DISCONNECTED);
		}
		KDT_OK(test, dat_ep_reset(pair->c.h));
		KDT_OK(test, dat_ep_reset(pair->s.h));
	}
	kdt_ep_done(test, &pair->c);
	kdt_ep_done(test, &pair->s);
}

static struct kunit_case cases[] = {
	KD_CASE(never_early, "CONN-05,EPSM-09,EPSM-34,SIL-33: time-outs are never early"),
	KD_CASE(timer_stopped, "CONN-05,EPSM-30,EPSM-34: a timer that is not needed any more"),
	KD_CASE(late_answers, "EPSM-09,EPSM-10,EPSM-34,EPSM-12: answers that come too late"),
	KD_CASE(raw_refusals, "EPSM-06,EPSM-07,CONN-10,SIL-11: reasons of all kinds of peers"),
	KD_CASE(raw_silence, "EPSM-07,EPSM-30: a peer that dies before it answers"),
	KD_CASE(known_already, "EPSM-07,EPSM-09,EPSM-10,EPSM-30,EP-FREE-02: asked once more"),
	KD_CASE(while_blocked, "EPSM-09,EPSM-10,IA-CLOSE-02,EP-FREE-02: TCP does not come back"),
	KD_CASE(completion_pending, "EPSM-11,EPSM-12,EPSM-13,EP-DIS-05,EP-FREE-02: all of CP"),
	KD_CASE(disconnect_pending, "EPSM-16,EPSM-19,EPSM-20,EPSM-21,EP-DIS-06,EP-DIS-07: DP"),
	KD_CASE(both_leave, "EP-DIS-09,EPSM-31: both leave at once, twelve times"),
	{}
};

struct kunit_suite kdt_outcome_suite = {
	.name = "kdtest-outcome",
	.init = kdt_init,
	.exit = kdt_exit,
	.test_cases = cases,
};
