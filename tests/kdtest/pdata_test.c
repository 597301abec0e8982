// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Private data of every size, and the calls that ask for a connection. */
#include <linux/in.h>
#include <linux/slab.h>

#include "kdtest_conn.h"

/* With checkers that cost much, not every size between the ends. */
#define STEP (KD_SLOW ? 9 : 1)
#define ROOM 260

struct talk {
	struct kdt_pair *pair;
	struct kdat_pdata_limits max;
	u8 *data;
};

static struct talk *talk_new(struct kunit *test)
{
	struct talk *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	struct kdat_pdata_limits b = {};

	KUNIT_ASSERT_NOT_NULL(test, t);
	t->data = kunit_kzalloc(test, ROOM, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, t->data);
	t->pair = kdt_pair_new(test, NULL);
	KDT_OK(test, kdat_ia_pdata_limits(t->pair->c.ia->h, &t->max));
	KDT_OK(test, kdat_ia_pdata_limits(t->pair->s.ia->h, &b));
	KUNIT_ASSERT_EQ(test, memcmp(&t->max, &b, sizeof(b)), 0);
	KUNIT_ASSERT_LT(test, t->max.accept, ROOM);
	KUNIT_ASSERT_LT(test, t->max.connect, ROOM);
	KUNIT_ASSERT_LT(test, t->max.reject, ROOM);
	return t;
}

static DAT_RETURN ask(struct talk *t, int len, u32 seed)
{
	DAT_RETURN ret;

	kdt_fill(t->data, ROOM, seed);
	ret = dat_ep_connect(t->pair->c.h, (DAT_IA_ADDRESS_PTR)&t->pair->s.ia->addr, t->pair->port,
			     60 * USEC_PER_SEC, len, t->data, DAT_QOS_BEST_EFFORT, 0);
	memset(t->data, 0xd1, ROOM);	/* copied during the call */
	return ret;
}

/* @fixed: what this transport makes of any size, 0: the exact size arrives */
static void arrived(struct kunit *test, const void *p, int size, int len, int fixed, u32 seed)
{
	if (fixed) {
		KUNIT_EXPECT_EQ(test, size, fixed);
		KUNIT_EXPECT_TRUE_MSG(test, size <= len || kdt_all(p + len, size - len, 0),
				      "not padded with zeros behind %d bytes", len);
	} else {
		KUNIT_EXPECT_EQ(test, size, len);
	}
	if (len && size >= len)
		KUNIT_EXPECT_TRUE_MSG(test, kdt_same(p, len, seed), "%d bytes are not these", len);
}

/* The next sizes to try: up by a step, and the ends exactly. */
static int next(int len, int max)
{
	return len == max ? max + 1 : min(len + STEP, max);
}

static void limits(struct kunit *test)
{
	struct talk *t = talk_new(test);
	struct kdt_pair *pair = t->pair;
	DAT_CR_HANDLE cr;

	KUNIT_EXPECT_EQ(test, t->max.connect, pair->c.ia->prov.max_private_data_size);
	if (!pair->c.ia->iwarp) {
		KUNIT_EXPECT_EQ(test, t->max.connect, 56);
		KUNIT_EXPECT_EQ(test, t->max.accept, 196);
		KUNIT_EXPECT_EQ(test, t->max.reject, 148);
	} else {
		KUNIT_EXPECT_GE(test, t->max.connect, 64);
	}
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA,
		    kdat_ia_pdata_limits(pair->c.h, &t->max));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		    kdat_ia_pdata_limits(pair->c.ia->h, NULL));
	/* One more than that: refused, nothing sent, nothing changed. */
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG5, ask(t, t->max.connect + 1, 0));
	KUNIT_EXPECT_EQ(test, (int)kdt_state(pair->c.h), DAT_EP_STATE_UNCONNECTED);
	cr = kdt_pair_request(test, pair);
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		    dat_cr_accept(cr, pair->s.h, t->max.accept + 1, t->data));
	KUNIT_EXPECT_EQ(test, (int)kdt_state(pair->s.h), DAT_EP_STATE_UNCONNECTED);
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		    dat_cr_reject(cr, t->max.reject + 1, t->data));
	KDT_OK(test, dat_cr_accept(cr, pair->s.h, 0, NULL));
	kdt_up(test, &pair->c, &pair->s);
	kdt_pair_down(test, pair);
	KUNIT_EXPECT_EQ(test, kdt_queued(pair->cr), 0);
}

static void every_accept(struct kunit *test)
{
	struct talk *t = talk_new(test);
	struct kdt_pair *pair = t->pair;
	DAT_CONNECTION_EVENT_DATA *conn;
	DAT_CR_ARRIVAL_EVENT_DATA arrival;
	DAT_CR_PARAM cr = {};
	bool iwarp = pair->c.ia->iwarp;
	DAT_EVENT event;
	int len, n;

	for (len = 0; len <= t->max.accept; len = next(len, t->max.accept)) {
		n = min(len, t->max.connect);
		KDT_OK(test, ask(t, n, len));
		arrival = kdt_arrival(test, pair->cr);
		KUNIT_EXPECT_EQ(test, (int)arrival.truncate_flag, DAT_FALSE);
		KDT_OK(test, dat_cr_query(arrival.cr_handle, DAT_CR_FIELD_ALL, &cr));
		arrived(test, cr.private_data, cr.private_data_size, n, iwarp ? 0 : 56, len);
		kdt_fill(t->data, ROOM, 1000 + len);
		KDT_OK(test, dat_cr_accept(arrival.cr_handle, pair->s.h, len, t->data));
		memset(t->data, 0xd2, ROOM);
		KUNIT_ASSERT_TRUE(test, kdt_get(pair->c.conn, &event));
		KUNIT_ASSERT_EQ(test, (int)event.event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
		conn = &event.event_data.connect_event_data;
		arrived(test, conn->private_data, conn->private_data_size, len, iwarp ? 0 : 196,
			1000 + len);
		KUNIT_ASSERT_TRUE(test, kdt_get(pair->s.conn, &event));
		KUNIT_ASSERT_EQ(test, (int)event.event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
		KUNIT_EXPECT_EQ(test, event.event_data.connect_event_data.private_data_size, 0);
		kdt_pair_down(test, pair);
		KDT_OK(test, dat_ep_reset(pair->c.h));
		KDT_OK(test, dat_ep_reset(pair->s.h));
	}
	kdt_ep_done(test, &pair->c);
	kdt_ep_done(test, &pair->s);
}

static void reject(struct kunit *test, struct talk *t, DAT_CR_HANDLE cr, int len)
{
	kdt_fill(t->data, ROOM, 2000 + len);
	KDT_OK(test, dat_cr_reject(cr, len, t->data));
	memset(t->data, 0xd3, ROOM);
}

static void every_reject(struct kunit *test)
{
	struct talk *t = talk_new(test);
	struct kdt_pair *pair = t->pair;
	int len, lost = 0, n = 0;
	DAT_EVENT event;

	for (len = 0; len <= t->max.reject; len = next(len, t->max.reject)) {
		KDT_OK(test, ask(t, 0, 0));
		reject(test, t, kdt_arrival(test, pair->cr).cr_handle, len);
		/* the CM does not repeat a reject that was lost: the request comes again */
		while (!kdt_queued(pair->c.conn)) {
			if (kdt_get_timeout(pair->cr, &event, 1))
				reject(test, t, event.event_data.cr_arrival_event_data.cr_handle,
				       len);
		}
		n++;
		if (!kdt_rejected(test, &pair->c, len, 2000 + len))
			lost++;
		KDT_OK(test, dat_ep_reset(pair->c.h));
	}
	kunit_info(test, "%d of %d lost\n", lost, n);
	/* soft-iWARP loses one of a hundred; see kdt_rejected() */
	KUNIT_EXPECT_LE(test, lost, pair->c.ia->iwarp ? n / 10 : 0);
	kdt_ep_done(test, &pair->c);
	kdt_ep_done(test, &pair->s);
}

/* ---- dat_ep_dup_connect ---- */

static void dup_arguments(struct kunit *test)
{
	struct talk *t = talk_new(test);
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = t->pair;
	DAT_EP_HANDLE dup = pair->c.h, bare;
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	struct kdt_ia *more = kunit_kzalloc(test, sizeof(*more), GFP_KERNEL);
	u32 sec = 60 * USEC_PER_SEC;
	struct kdt_ep c, foreign;
	DAT_EP_ATTR attr;
	DAT_CR_HANDLE request;

	KUNIT_ASSERT_NOT_NULL(test, more);
	kdt_ep_new(test, &c, &env->a, NULL);
	/* The one to follow must be connected: not U, A, D. */
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONNECTED,
		    dat_ep_dup_connect(c.h, dup, sec, 0, NULL, 0));
	request = kdt_pair_request(test, pair);
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_ACTCONNPENDING,
		    dat_ep_dup_connect(c.h, dup, sec, 0, NULL, 0));
	KDT_OK(test, dat_cr_accept(request, pair->s.h, 0, NULL));
	kdt_up(test, &pair->c, &pair->s);

	/* The rest of what may be wrong. */
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		    dat_ep_dup_connect(NULL, dup, sec, 0, NULL, 0));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		    dat_ep_dup_connect(c.h, NULL, sec, 0, NULL, 0));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		    dat_ep_dup_connect(c.h, env->a.pz, sec, 0, NULL, 0));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		    dat_ep_dup_connect(c.h, pair->s.h, sec, 0, NULL, 0));
	memcpy(more, &env->a, sizeof(*more));
	more->h = kdt_ia_more(test, &env->a, 8, &async);
	KDT_OK(test, dat_pz_create(more->h, &more->pz));
	kdt_ep_new(test, &foreign, more, NULL);
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		    dat_ep_dup_connect(foreign.h, dup, sec, 0, NULL, 0));
	kdt_ep_done(test, &foreign);
	kdt_ia_less(test, more->h);
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_CONNECTED,
		    dat_ep_dup_connect(dup, dup, sec, 0, NULL, 0));
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONNECTED,
		    dat_ep_dup_connect(c.h, c.h, sec, 0, NULL, 0));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		    dat_ep_dup_connect(c.h, dup, 0, 0, NULL, 0));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG4,
		    dat_ep_dup_connect(c.h, dup, sec, -1, t->data, 0));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG4,
		    dat_ep_dup_connect(c.h, dup, sec, t->max.connect + 1, t->data, 0));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG5,
		    dat_ep_dup_connect(c.h, dup, sec, 1, NULL, 0));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG6,
		    dat_ep_dup_connect(c.h, dup, sec, 0, NULL, 0x10));
	KDT_REFUSED(test, DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE,
		    dat_ep_dup_connect(c.h, dup, sec, 0, NULL, DAT_QOS_PREMIUM));
	kdt_attr(env, &attr);
	KDT_OK(test, dat_ep_create(env->a.h, env->a.pz, c.recv->h, c.req->h, NULL, &attr, &bare));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CONN,
		    dat_ep_dup_connect(bare, dup, sec, 0, NULL, 0));
	KDT_OK(test, dat_ep_free(bare));
	KDT_OK(test, dat_ep_create(env->a.h, NULL, c.recv->h, c.req->h, c.conn->h, &attr, &bare));
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_NOTREADY,
		    dat_ep_dup_connect(bare, dup, sec, 0, NULL, 0));
	KDT_OK(test, dat_ep_free(bare));
	KUNIT_EXPECT_EQ(test, (int)kdt_state(c.h), DAT_EP_STATE_UNCONNECTED);
	KUNIT_EXPECT_EQ(test, kdt_queued(pair->cr), 0);
	kdt_pair_down(test, pair);
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_DISCONNECTED,
		    dat_ep_dup_connect(c.h, dup, sec, 0, NULL, 0));
	kdt_ep_done(test, &c);
}

static void dup_connect(struct kunit *test)
{
	struct talk *t = talk_new(test);
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = t->pair;
	struct kdt_buf *from = kdt_buf_new(test, &env->a, 128);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, 128);
	DAT_CR_ARRIVAL_EVENT_DATA arrival;
	u32 sec = 60 * USEC_PER_SEC;
	DAT_EP_PARAM one = {}, two = {};
	DAT_EP_HANDLE dup = pair->c.h;
	DAT_CR_PARAM cr = {};
	struct kdt_ep c, s;

	kdt_ep_new(test, &c, &env->a, NULL);
	kdt_ep_new(test, &s, &env->b, NULL);
	kdt_pair_connect(test, pair);
	/* To the same place, with words of its own. */
	KDT_OK(test, kdt_recv(&c, from, 64, 64, 4));
	kdt_fill(t->data, ROOM, 31);
	KDT_OK(test, dat_ep_dup_connect(c.h, dup, sec, t->max.connect, t->data, 0));
	memset(t->data, 0, ROOM);
	arrival = kdt_arrival(test, pair->cr);
	KUNIT_EXPECT_EQ(test, arrival.conn_qual, pair->port);
	KUNIT_EXPECT_PTR_EQ(test, arrival.sp_handle.psp_handle, pair->psp);
	KDT_OK(test, dat_cr_query(arrival.cr_handle, DAT_CR_FIELD_ALL, &cr));
	KUNIT_EXPECT_TRUE(test, kdt_same_address(cr.remote_ia_address_ptr, &env->a));
	KUNIT_EXPECT_EQ(test, cr.private_data_size, t->max.connect);
	KUNIT_EXPECT_TRUE(test, kdt_same(cr.private_data, t->max.connect, 31));
	KDT_OK(test, dat_cr_accept(arrival.cr_handle, s.h, 0, NULL));
	kdt_up(test, &c, &s);
	KDT_OK(test, dat_ep_query(dup, DAT_EP_FIELD_ALL, &one));
	KDT_OK(test, dat_ep_query(c.h, DAT_EP_FIELD_ALL, &two));
	KUNIT_EXPECT_EQ(test, one.remote_port_qual, two.remote_port_qual);
	KUNIT_EXPECT_NE(test, one.local_port_qual, two.local_port_qual);
	KUNIT_EXPECT_TRUE(test, kdt_same_address(two.remote_ia_address_ptr, &env->b));
	KDT_OK(test, kdt_send(&s, to, 0, 64, 5, 0));
	kdt_dto(test, s.req, &s, 5, DAT_DTO_SEND, DAT_DTO_SUCCESS, 64);
	kdt_dto(test, c.recv, &c, 4, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 64);
	/* Two connections that have nothing to do with each other. */
	kdt_talk(test, &c, &s, from, to, 1);
	kdt_talk(test, &pair->c, &pair->s, from, to, 2);
	kdt_pair_down(test, pair);
	kdt_talk(test, &c, &s, from, to, 3);
	/* The copy can be followed as well, but not what has ended. */
	KDT_OK(test, dat_ep_reset(pair->c.h));
	KDT_OK(test, dat_ep_reset(pair->s.h));
	KDT_OK(test, dat_ep_dup_connect(pair->c.h, c.h, sec, 0, NULL, 0));
	arrival = kdt_arrival(test, pair->cr);
	KDT_OK(test, dat_cr_accept(arrival.cr_handle, pair->s.h, 0, NULL));
	kdt_up(test, &pair->c, &pair->s);
	kdt_down(test, &c, &s);
	KDT_OK(test, dat_ep_reset(s.h));
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_DISCONNECTED,
		    dat_ep_dup_connect(c.h, c.h, sec, 0, NULL, 0));
	kdt_pair_down(test, pair);
	KDT_OK(test, dat_ep_reset(c.h));
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_DISCONNECTED,
		    dat_ep_dup_connect(c.h, pair->c.h, sec, 0, NULL, 0));
	kdt_ep_done(test, &c);
	kdt_ep_done(test, &s);
	kdt_ep_done(test, &pair->c);
	kdt_ep_done(test, &pair->s);
}

/* The passive end of a connection knows where its peer is, but nobody listens there. */
static void dup_passive(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_ep back;
	DAT_EVENT event;

	kdt_ep_new(test, &back, &env->b, NULL);
	KDT_OK(test, dat_ep_dup_connect(back.h, pair->s.h, 30 * USEC_PER_SEC, 0, NULL, 0));
	KUNIT_ASSERT_TRUE(test, kdt_get(back.conn, &event));
	KUNIT_EXPECT_TRUE_MSG(test,
			      event.event_number == DAT_CONNECTION_EVENT_NON_PEER_REJECTED ||
			      (env->b.iwarp &&
			       event.event_number != DAT_CONNECTION_EVENT_ESTABLISHED),
			      "event 0x%x", event.event_number);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(pair->s.h), DAT_EP_STATE_CONNECTED);
	kdt_ep_done(test, &back);
	kdt_pair_down(test, pair);
}

/* ---- dat_ep_common_connect ---- */

static void common_connect(struct kunit *test)
{
	struct talk *t = talk_new(test);
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = t->pair;
	struct sockaddr_storage addr = env->b.addr, bad;
	DAT_IA_ADDRESS_PTR to = (DAT_IA_ADDRESS_PTR)&addr;
	u32 sec = 60 * USEC_PER_SEC;
	DAT_CR_ARRIVAL_EVENT_DATA arrival;
	DAT_EP_HANDLE c = pair->c.h, bare;
	DAT_CR_PARAM cr = {};
	DAT_EP_ATTR attr;

	((struct sockaddr_in *)&addr)->sin_port = htons(pair->port);
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		    dat_ep_common_connect(NULL, to, sec, 0, NULL));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		    dat_ep_common_connect(c, NULL, sec, 0, NULL));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		    dat_ep_common_connect(c, to, 0, 0, NULL));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG4,
		    dat_ep_common_connect(c, to, sec, -1, t->data));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG4,
		    dat_ep_common_connect(c, to, sec, t->max.connect + 1, t->data));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG5,
		    dat_ep_common_connect(c, to, sec, 1, NULL));
	bad = addr;
	((struct sockaddr_in *)&bad)->sin_port = 0;
	KDT_REFUSED(test, DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED,
		    dat_ep_common_connect(c, (DAT_IA_ADDRESS_PTR)&bad, sec, 0, NULL));
	bad = addr;
	bad.ss_family = AF_UNIX;
	KDT_TYPE(test, DAT_INVALID_ADDRESS,
		 dat_ep_common_connect(c, (DAT_IA_ADDRESS_PTR)&bad, sec, 0, NULL));
	kdt_attr(env, &attr);
	KDT_OK(test, dat_ep_create(env->a.h, env->a.pz, NULL, NULL, NULL, &attr, &bare));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CONN,
		    dat_ep_common_connect(bare, to, sec, 0, NULL));
	KDT_OK(test, dat_ep_free(bare));
	KDT_OK(test, dat_ep_create(env->a.h, NULL, NULL, NULL, pair->c.conn->h, &attr, &bare));
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_NOTREADY,
		    dat_ep_common_connect(bare, to, sec, 0, NULL));
	KDT_OK(test, dat_ep_free(bare));
	KUNIT_EXPECT_EQ(test, (int)kdt_state(c), DAT_EP_STATE_UNCONNECTED);

	kdt_fill(t->data, ROOM, 41);
	KDT_OK(test, dat_ep_common_connect(c, to, sec, t->max.connect, t->data));
	memset(t->data, 0, ROOM);
	memset(&addr, 0xee, sizeof(addr));
	arrival = kdt_arrival(test, pair->cr);
	KUNIT_EXPECT_PTR_EQ(test, arrival.sp_handle.psp_handle, pair->psp);
	KDT_OK(test, dat_cr_query(arrival.cr_handle, DAT_CR_FIELD_ALL, &cr));
	KUNIT_EXPECT_TRUE(test, kdt_same(cr.private_data, t->max.connect, 41));
	KDT_OK(test, dat_cr_accept(arrival.cr_handle, pair->s.h, 0, NULL));
	kdt_up(test, &pair->c, &pair->s);
	kdt_talk(test, &pair->c, &pair->s, kdt_buf_new(test, &env->a, 128),
		 kdt_buf_new(test, &env->b, 128), 1);
	kdt_pair_down(test, pair);
	/* Somebody who is not there, and a time-out. */
	addr = env->b.addr;
	((struct sockaddr_in *)&addr)->sin_port = htons(kdt_new_port());
	KDT_OK(test, dat_ep_reset(c));
	KDT_OK(test, dat_ep_common_connect(c, to, sec, 0, NULL));
	kdt_conn(test, &pair->c, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	((struct sockaddr_in *)&addr)->sin_port = htons(pair->port);
	KDT_OK(test, dat_ep_reset(c));
	KDT_OK(test, dat_ep_common_connect(c, to, 200 * USEC_PER_MSEC, 0, NULL));
	kdt_conn(test, &pair->c, DAT_CONNECTION_EVENT_TIMED_OUT);
	kdt_ep_done(test, &pair->c);
}

static struct kunit_case cases[] = {
	KD_CASE(limits, "CONN-06,CR-ACC-07,CR-ACC-05,CR-REJ-01,SIL-09,CONN-12: one byte too much"),
	KD_CASE(every_accept, "CONN-06,CR-ACC-07,CR-QRY-01,EVD-EV-03: every size, both ways"),
	KD_CASE(every_reject, "CR-REJ-01,EVD-EV-04: every size with a reject"),
	KD_CASE(dup_arguments, "CONN-13,CONN-14,CONN-02,CONN-12: what dat_ep_dup_connect refuses"),
	KD_CASE(dup_connect, "CONN-13,CONN-09: the same way again"),
	KD_CASE(dup_passive, "CONN-13: a duplicate of the passive end"),
	KD_CASE(common_connect, "CCON-01,CONN-03,CONN-04,CONN-05,CONN-12: with a socket address"),
	{}
};

struct kunit_suite kdt_pdata_suite = {
	.name = "kdtest-pdata",
	.init = kdt_init,
	.exit = kdt_exit,
	.test_cases = cases,
};
