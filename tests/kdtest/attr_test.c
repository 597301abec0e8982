// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* How a connection treats the network, and how many Reads it answers. */
#include <linux/ktime.h>
#include <linux/slab.h>
#include <rdma/ib_cm.h>

#include "kdtest_conn.h"

static bool same_attr(const struct kdat_conn_attr *a, const struct kdat_conn_attr *b)
{
	return !memcmp(a, b, sizeof(*a));
}

/* ---- kdat_ep_modify_conn: values and states ---- */

static void values(struct kunit *test)
{
	static const struct {
		size_t offset;
		int min, max;
	} members[] = {
		{ offsetof(struct kdat_conn_attr, tos), 0, 255 },
		{ offsetof(struct kdat_conn_attr, ack_timeout), 1, 31 },
		{ offsetof(struct kdat_conn_attr, retry_count), 0, 7 },
		{ offsetof(struct kdat_conn_attr, rnr_retry_count), 0, 7 },
		{ offsetof(struct kdat_conn_attr, min_rnr_timer), 0, 31 },
	};
	const struct kdat_conn_attr def = KDAT_CONN_ATTR_INIT;
	struct kdt_env *env = kdt_env(test);
	struct kdat_conn_attr attr, now = {};
	struct kdt_ep ep;
	int i, j;

	kdt_ep_new(test, &ep, &env->a, NULL);
	KDT_OK(test, kdat_ep_query_conn(ep.h, &now));
	KUNIT_EXPECT_TRUE(test, same_attr(&now, &def));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		    kdat_ep_modify_conn(env->a.pz, &def));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		    kdat_ep_query_conn(NULL, &now));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		    kdat_ep_modify_conn(ep.h, NULL));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		    kdat_ep_query_conn(ep.h, NULL));
	for (i = 0; i < ARRAY_SIZE(members); i++) {
		int bad[] = { members[i].min - 1, members[i].max + 1, -2, INT_MAX, INT_MIN };
		int good[] = { members[i].min, members[i].max, members[i].min + 1 };

		for (j = 0; j < ARRAY_SIZE(bad); j++) {
			attr = def;
			memcpy((void *)&attr + members[i].offset, &bad[j], sizeof(int));
			if (bad[j] == KDAT_CONN_DEFAULT)
				continue;
			KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
				    kdat_ep_modify_conn(ep.h, &attr));
			KDT_OK(test, kdat_ep_query_conn(ep.h, &now));
			KUNIT_EXPECT_TRUE(test, same_attr(&now, &def));
		}
		for (j = 0; j < ARRAY_SIZE(good); j++) {
			attr = def;
			memcpy((void *)&attr + members[i].offset, &good[j], sizeof(int));
			KDT_OK(test, kdat_ep_modify_conn(ep.h, &attr));
			KDT_OK(test, kdat_ep_query_conn(ep.h, &now));
			KUNIT_EXPECT_TRUE(test, same_attr(&now, &attr));
		}
		KDT_OK(test, kdat_ep_modify_conn(ep.h, &def));
	}
	kdt_ep_done(test, &ep);
}

static void states(struct kunit *test)
{
	struct kdat_conn_attr attr = { .tos = 8, .ack_timeout = 18, .retry_count = 5,
				       .rnr_retry_count = 5, .min_rnr_timer = 9 }, now = {};
	struct kdt_env *env = kdt_env(test);
	struct kdt_evd *cr = kdt_evd_new(test, &env->b, DAT_EVD_CR_FLAG);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, 128);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, 128);
	DAT_CONN_QUAL port = kdt_new_port(), port2 = kdt_new_port();
	DAT_CR_HANDLE h;
	DAT_RSP_HANDLE rsp;
	struct kdt_ep c, s, t;

	kdt_ep_new(test, &c, &env->a, NULL);
	kdt_ep_new(test, &s, &env->b, NULL);
	/* U R P; not A C D */
	KDT_OK(test, kdat_ep_modify_conn(s.h, &attr));
	KDT_OK(test, dat_rsp_create(env->b.h, port, s.h, cr->h, &rsp));
	attr.retry_count = 4;
	KDT_OK(test, kdat_ep_modify_conn(s.h, &attr));
	h = kdt_call(test, &c, &env->b, port, cr).cr_handle;
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_ACTCONNPENDING,
		    kdat_ep_modify_conn(c.h, &attr));
	attr.min_rnr_timer = 8;
	KDT_OK(test, kdat_ep_modify_conn(s.h, &attr));
	KDT_OK(test, dat_cr_accept(h, NULL, 0, NULL));
	kdt_up(test, &c, &s);
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_CONNECTED,
		    kdat_ep_modify_conn(s.h, &attr));
	KDT_OK(test, kdat_ep_query_conn(s.h, &now));
	KUNIT_EXPECT_TRUE(test, same_attr(&now, &attr));
	kdt_talk(test, &c, &s, from, to, 1);
	kdt_down(test, &c, &s);
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_DISCONNECTED,
		    kdat_ep_modify_conn(s.h, &attr));
	/* kept over a reset */
	KDT_OK(test, dat_ep_reset(s.h));
	KDT_OK(test, dat_ep_reset(c.h));
	KDT_OK(test, kdat_ep_query_conn(s.h, &now));
	KUNIT_EXPECT_TRUE(test, same_attr(&now, &attr));
	/* T */
	KDT_OK(test, dat_rsp_create(env->b.h, port2, NULL, cr->h, &rsp));
	h = kdt_call(test, &c, &env->b, port2, cr).cr_handle;
	kdt_ep_from(test, &t, &env->b, h);
	KDT_OK(test, kdat_ep_modify_conn(t.h, &attr));
	KDT_OK(test, kdt_ep_give(&t, KDT_GIVE_ALL));
	KDT_OK(test, kdat_ep_query_conn(t.h, &now));
	KUNIT_EXPECT_TRUE(test, same_attr(&now, &attr));
	KDT_OK(test, dat_cr_accept(h, NULL, 0, NULL));
	kdt_up(test, &c, &t);
	kdt_talk(test, &c, &t, from, to, 2);
	kdt_down(test, &c, &t);
	kdt_ep_done(test, &t);
	kdt_ep_done(test, &s);
	kdt_ep_done(test, &c);
}

/* ---- what goes out on the wire ---- */

static void on_the_wire(struct kunit *test)
{
	static const struct kdat_conn_attr tries[] = {
		KDAT_CONN_ATTR_INIT,
		{ .tos = 32, .ack_timeout = 14, .retry_count = 3, .rnr_retry_count = 2,
		  .min_rnr_timer = 1 },
		{ .tos = 0, .ack_timeout = -1, .retry_count = 0, .rnr_retry_count = 0,
		  .min_rnr_timer = -1 },
		{ .tos = 0xb8, .ack_timeout = -1, .retry_count = 7, .rnr_retry_count = 7,
		  .min_rnr_timer = -1 },
	};
	struct kdt_env *env = kdt_env(test);
	struct kdt_raw *raw;
	struct kdt_ep c;
	int i;

	if (env->a.iwarp)
		kunit_skip(test, "iWARP says none of these to the peer");
	for (i = 0; i < ARRAY_SIZE(tries); i++) {
		DAT_CONN_QUAL port = kdt_new_port();

		kdt_ep_new(test, &c, &env->a, NULL);
		KDT_OK(test, kdat_ep_modify_conn(c.h, &tries[i]));
		raw = kdt_raw_listen(test, &env->b, port);
		KDT_OK(test, kdt_connect(&c, &env->b, port));
		kdt_raw_wait(test, raw, RDMA_CM_EVENT_CONNECT_REQUEST);
		/* How often this end repeats does not concern the other one. */
		KUNIT_EXPECT_EQ(test, raw->conn.retry_count, 6);
		KUNIT_EXPECT_EQ(test, raw->conn.rnr_retry_count, 6);
		KUNIT_EXPECT_EQ(test, raw->conn.responder_resources, 4);
		KUNIT_EXPECT_EQ(test, raw->conn.initiator_depth, 4);
		KUNIT_EXPECT_EQ(test, raw->flow, tries[i].tos < 0 ? 0 : (u32)tries[i].tos);
		rdma_reject(raw->child, NULL, 0, IB_CM_REJ_NO_RESOURCES);
		kdt_conn(test, &c, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		kdt_raw_close(raw);
		kdt_ep_done(test, &c);
	}
}

/* Two ends with these; the client's Send finds no Receive. */
static struct kdt_pair *pair_attr(struct kunit *test, const struct kdat_conn_attr *c,
				  const struct kdat_conn_attr *s)
{
	struct kdt_pair *pair = kdt_pair_new(test, NULL);

	KDT_OK(test, kdat_ep_modify_conn(pair->c.h, c));
	KDT_OK(test, kdat_ep_modify_conn(pair->s.h, s));
	kdt_pair_connect(test, pair);
	return pair;
}

static void receiver_not_ready(struct kunit *test)
{
	struct kdat_conn_attr c = KDAT_CONN_ATTR_INIT, s = KDAT_CONN_ATTR_INIT;
	struct kdt_env *env = kdt_env(test);
	struct kdt_buf *buf = kdt_buf_new(test, &env->a, 64);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, 64);
	struct kdt_pair *pair;
	DAT_EVENT event;
	ktime_t start;
	s64 took = 0;
	int i;

	if (env->a.iwarp)
		kunit_skip(test, "iWARP does not know it");
	/* Not once: over at once. */
	s.min_rnr_timer = 1;		/* 0.01 ms */
	c.rnr_retry_count = 0;
	pair = pair_attr(test, &c, &s);
	KDT_OK(test, kdt_send(&pair->c, buf, 0, 64, 1, 0));
	kdt_dto(test, pair->c.req, &pair->c, 1, DAT_DTO_SEND, DAT_DTO_ERR_RECEIVER_NOT_READY, 0);
	kdt_conn(test, &pair->c, DAT_CONNECTION_EVENT_BROKEN);
	kdt_end(test, &pair->s);

	/* For ever: however long it takes. Six times would be over by then. */
	c.rnr_retry_count = 7;
	pair = pair_attr(test, &c, &s);
	KDT_OK(test, kdt_send(&pair->c, buf, 0, 64, 1, 0));
	KUNIT_EXPECT_FALSE(test, kdt_get_timeout(pair->c.req, &event, HZ / 2));
	KDT_OK(test, kdt_recv(&pair->s, to, 0, 64, 2));
	kdt_dto(test, pair->s.recv, &pair->s, 2, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 64);
	kdt_dto(test, pair->c.req, &pair->c, 1, DAT_DTO_SEND, DAT_DTO_SUCCESS, 64);

	/* The end that has accepted has counts of its own. */
	for (i = 0; i < 2; i++) {
		c.min_rnr_timer = 1;
		s.rnr_retry_count = i ? 0 : 7;
		pair = pair_attr(test, &c, &s);
		KDT_OK(test, kdt_send(&pair->s, to, 0, 64, 1, 0));
		if (i) {
			kdt_dto(test, pair->s.req, &pair->s, 1, DAT_DTO_SEND,
				DAT_DTO_ERR_RECEIVER_NOT_READY, 0);
			kdt_conn(test, &pair->s, DAT_CONNECTION_EVENT_BROKEN);
			kdt_end(test, &pair->c);
			continue;
		}
		KUNIT_EXPECT_FALSE(test, kdt_get_timeout(pair->s.req, &event, HZ / 2));
		KDT_OK(test, kdt_recv(&pair->c, buf, 0, 64, 2));
		kdt_dto(test, pair->c.recv, &pair->c, 2, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 64);
		kdt_dto(test, pair->s.req, &pair->s, 1, DAT_DTO_SEND, DAT_DTO_SUCCESS, 64);
	}

	/*
	 * The one that has no Receive says how long to wait: 0.66 s are that long,
	 * unless the Send came to it after the Receive.
	 */
	s.min_rnr_timer = 0;
	pair = pair_attr(test, &c, &s);
	for (i = 0; i < 10 && took < 650 * USEC_PER_MSEC; i++) {
		start = ktime_get();
		KDT_OK(test, kdt_send(&pair->c, buf, 0, 64, 1, 0));
		/* for its way there */
		kdt_get_timeout(pair->c.conn, &event, (i + 1) * HZ / 20);
		KDT_OK(test, kdt_recv(&pair->s, to, 0, 64, 2));
		kdt_dto(test, pair->s.recv, &pair->s, 2, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 64);
		took = ktime_us_delta(ktime_get(), start);
		kdt_dto(test, pair->c.req, &pair->c, 1, DAT_DTO_SEND, DAT_DTO_SUCCESS, 64);
	}
	KUNIT_EXPECT_GE(test, took, (s64)650 * USEC_PER_MSEC);
	kdt_pair_down(test, pair);
}

/*
 * Requests that were sent and are sent again before the answer is there, over and over: each
 * of them if the link is slow (tests/guest/delay.sh). Fenced ones must come through as well.
 */
static void sent_again(struct kunit *test)
{
	struct kdat_conn_attr attr = KDAT_CONN_ATTR_INIT;
	const int barrier = kdt_fence;
	struct kdt_env *env = kdt_env(test);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, 8192);
	struct kdt_buf *theirs = kdt_buf_new(test, &env->b, 8192);
	struct kdt_buf *echo = kdt_buf_new(test, &env->b, 8192);
	struct kdt_pair *pair;
	int i;

	attr.ack_timeout = 1;		/* 8.2 us, or the least the device has */
	attr.retry_count = 7;
	pair = pair_attr(test, &attr, &attr);
	for (i = 0; i < 8; i++) {
		kdt_fill(theirs->p, 8192, i);
		memset(mine->p, 0, 8192);
		KDT_OK(test, kdt_recv(&pair->s, echo, 0, 8192, 1));
		KDT_OK(test, kdt_read(&pair->c, mine, 0, 4096, theirs, 0, 2, 0));
		KDT_OK(test, kdt_read(&pair->c, mine, 4096, 4096, theirs, 4096, 3, barrier));
		KDT_OK(test, kdt_send(&pair->c, mine, 0, 8192, 4,
				      DAT_COMPLETION_BARRIER_FENCE_FLAG));
		KDT_OK(test, kdt_read(&pair->c, mine, 0, 64, theirs, 0, 5, 0));
		KDT_OK(test, kdt_write(&pair->c, mine, 0, 64, theirs, 64, 6, barrier));
		KDT_OK(test, kdt_read(&pair->c, mine, 64, 64, theirs, 0, 7, barrier));
		kdt_dto(test, pair->c.req, &pair->c, 2, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, 4096);
		kdt_dto(test, pair->c.req, &pair->c, 3, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, 4096);
		kdt_dto(test, pair->s.recv, &pair->s, 1, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 8192);
		KUNIT_EXPECT_TRUE_MSG(test, kdt_same(echo->p, 8192, i), "round %d", i);
		kdt_dto(test, pair->c.req, &pair->c, 4, DAT_DTO_SEND, DAT_DTO_SUCCESS, 8192);
		kdt_dto(test, pair->c.req, &pair->c, 5, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, 64);
		kdt_dto(test, pair->c.req, &pair->c, 6, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS, 64);
		kdt_dto(test, pair->c.req, &pair->c, 7, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, 64);
	}
	kdt_pair_down(test, pair);
}

/* Connected to somebody who acknowledges nothing, whichever of them has called. */
static struct kdt_raw *mute(struct kunit *test, struct kdt_ep *ep, bool passive)
{
	struct kdt_env *env = kdt_env(test);
	DAT_CONN_QUAL port = kdt_new_port();
	struct kdt_raw *raw;
	struct kdt_evd *cr;
	DAT_PSP_HANDLE psp;

	if (!passive) {
		raw = kdt_raw_listen(test, &env->b, port);
		KDT_OK(test, kdt_connect(ep, &env->b, port));
		kdt_raw_wait(test, raw, RDMA_CM_EVENT_CONNECT_REQUEST);
		KUNIT_ASSERT_EQ(test, kdt_raw_accept(raw->child), 0);
	} else {
		cr = kdt_evd_new(test, &env->a, DAT_EVD_CR_FLAG);
		KDT_OK(test, dat_psp_create(env->a.h, port, cr->h, DAT_PSP_CONSUMER_FLAG, &psp));
		raw = kdt_raw_caller(test, &env->b, &env->a, port);
		KUNIT_ASSERT_EQ(test, kdt_raw_request(raw, NULL, 0), 0);
		KDT_OK(test, dat_cr_accept(kdt_arrival(test, cr).cr_handle, ep->h, 0, NULL));
		kdt_raw_wait(test, raw, RDMA_CM_EVENT_CONNECT_RESPONSE);
		KUNIT_ASSERT_EQ(test, kdt_raw_ready(raw), 0);
		KDT_OK(test, dat_psp_free(psp));
	}
	kdt_conn(test, ep, DAT_CONNECTION_EVENT_ESTABLISHED);
	return raw;
}

/* The requester gives up when it was told to. */
static s64 gives_up(struct kunit *test, int timeout, int retries, bool passive)
{
	struct kdat_conn_attr attr = KDAT_CONN_ATTR_INIT;
	struct kdt_env *env = kdt_env(test);
	struct kdt_buf *buf = kdt_buf_new(test, &env->a, 64);
	struct kdt_raw *raw;
	struct kdt_ep c;
	ktime_t start;
	s64 took;

	attr.ack_timeout = timeout;
	attr.retry_count = retries;
	kdt_ep_new(test, &c, &env->a, NULL);
	KDT_OK(test, kdat_ep_modify_conn(c.h, &attr));
	raw = mute(test, &c, passive);
	start = ktime_get();
	KDT_OK(test, kdt_send(&c, buf, 0, 64, 1, 0));
	kdt_dto(test, c.req, &c, 1, DAT_DTO_SEND, DAT_DTO_ERR_TRANSPORT, 0);
	took = ktime_us_delta(ktime_get(), start);
	kdt_conn(test, &c, DAT_CONNECTION_EVENT_BROKEN);
	kdt_ep_done(test, &c);
	kdt_raw_close(raw);
	return took;
}

static void acknowledgments(struct kunit *test)
{
	int passive, i;
	s64 brief, slow;

	if (kdt_env(test)->a.iwarp)
		kunit_skip(test, "TCP does this");
	for (passive = 0; passive < 2; passive++) {
		/* 4.096 us * 2^15 = 134 ms each, and once more than it is repeated */
		slow = gives_up(test, 15, 5, passive);
		KUNIT_EXPECT_GE_MSG(test, slow, (s64)5 * 134 * USEC_PER_MSEC, "%lld us", slow);
		brief = S64_MAX;
		for (i = 0; i < 10 && brief >= slow / 2; i++)
			brief = min(brief, gives_up(test, 15, 0, passive));
		kunit_info(test, "%s: %lld us of 0.81 s, %lld us of 0.13 s\n",
			   passive ? "accepted" : "called", slow, brief);
		KUNIT_EXPECT_LT(test, brief, slow / 2);
	}
	/* and the time itself: 8 ms */
	brief = S64_MAX;
	for (i = 0; i < 10 && brief >= slow / 2; i++)
		brief = min(brief, gives_up(test, 10, 1, false));
	KUNIT_EXPECT_LT(test, brief, slow / 2);
}

/* ---- read depths ---- */

static void read_depths(struct kunit *test)
{
	static const struct {
		int c_out, s_in, s_out, c_in;
	} rows[] = {
		{ 4, 4, 4, 4 }, { 4, 2, 4, 1 }, { 1, 4, 2, 4 }, { 4, 1, 1, 1 }, { 0, 4, 4, 0 },
		{ 0, 0, 0, 0 }, { 4, 0, 0, 4 }, { 4, 0, 4, 4 }, { 4, 4, 0, 4 },
	};
	struct kdt_env *env = kdt_env(test);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, 4096);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, 4096);
	DAT_EP_ATTR c, s;
	DAT_EP_PARAM param = {};
	DAT_RETURN ret;
	int i, j, n;

	kdt_fill(to->p, 4096, 1);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct kdt_pair none = {}, *pair;

		kdt_attr(env, &c);
		s = c;
		c.max_rdma_read_out = rows[i].c_out;
		c.max_rdma_read_in = rows[i].c_in;
		s.max_rdma_read_out = rows[i].s_out;
		s.max_rdma_read_in = rows[i].s_in;
		pair = kdt_pair_with(test, &none, &c, &s);
		kdt_pair_connect(test, pair);
		/* What the consumers asked for stays what they asked for. */
		KDT_OK(test, dat_ep_query(pair->c.h, DAT_EP_FIELD_ALL, &param));
		KUNIT_EXPECT_EQ(test, param.ep_attr.max_rdma_read_out, rows[i].c_out);
		KUNIT_EXPECT_EQ(test, param.ep_attr.max_rdma_read_in, rows[i].c_in);
		KDT_OK(test, dat_ep_query(pair->s.h, DAT_EP_FIELD_ALL, &param));
		KUNIT_EXPECT_EQ(test, param.ep_attr.max_rdma_read_out, rows[i].s_out);
		KUNIT_EXPECT_EQ(test, param.ep_attr.max_rdma_read_in, rows[i].s_in);

		memset(from->p, 0, 4096);
		ret = kdt_read(&pair->c, from, 0, 4096, to, 0, 0, 0);
		if (!rows[i].c_out || (!rows[i].s_in && !(env->a.traits & KDT_GRANTS))) {
			KUNIT_EXPECT_EQ_MSG(test, DAT_GET_TYPE(ret), (u32)DAT_INVALID_PARAMETER,
					    "row %d: %s", i, kdt_major(ret));
		} else {
			/* twice as many as either side has */
			KDT_OK(test, ret);
			for (n = 1; n < 8; n++)
				KDT_OK(test, kdt_read(&pair->c, from, 0, 4096, to, 0, n, 0));
			for (j = 0; j < n; j++)
				kdt_dto(test, pair->c.req, &pair->c, j, DAT_DTO_RDMA_READ,
					DAT_DTO_SUCCESS, 4096);
			KUNIT_EXPECT_TRUE(test, kdt_same(from->p, 4096, 1));
		}
		if ((env->a.traits & KDT_UNASKED) && !rows[i].c_in)
			goto down;	/* it would be let through, and break the connection */
		ret = kdt_read(&pair->s, to, 0, 64, from, 0, 0, 0);
		if (!rows[i].s_out || (!rows[i].c_in && !(env->a.traits & KDT_GRANTS))) {
			KUNIT_EXPECT_EQ_MSG(test, DAT_GET_TYPE(ret), (u32)DAT_INVALID_PARAMETER,
					    "row %d: %s", i, kdt_major(ret));
		} else if (ret == DAT_SUCCESS) {
			kdt_dto(test, pair->s.req, &pair->s, 0, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS,
				64);
		} else {
			/* the caller of soft-iWARP may have said that it answers none */
			KUNIT_EXPECT_TRUE(test, (env->a.traits & KDT_GRANTS) && !rows[i].c_in);
		}
down:
		kdt_fill(to->p, 4096, 1);
		kdt_pair_down(test, pair);
		kdt_ep_done(test, &pair->c);
		kdt_ep_done(test, &pair->s);
	}
}

static struct kunit_case cases[] = {
	KD_CASE(values, "EP-MOD-01,EP-MOD-02: how a connection treats the network: values"),
	KD_CASE(states, "EP-MOD-02,EP-RST-03: and the states in which it may be said"),
	KD_CASE(on_the_wire, "CONN-01,CONN-11,SIL-34: what the peer is told of it"),
	KD_CASE(receiver_not_ready, "EPSM-17,STAT-01: how often, how long without Receive"),
	KD_CASE(sent_again, "FLAG-09,RDMAR-16: requests sent again, fenced ones too"),
	KD_CASE(acknowledgments, "EPSM-17,STAT-01: when a silent peer is given up"),
	KD_CASE(read_depths, "CONN-11,CR-ACC-09,EP-CREATE-10: depths of Reads"),
	{}
};

struct kunit_suite kdt_attr_suite = {
	.name = "kdtest-attr",
	.init = kdt_init,
	.exit = kdt_exit,
	.test_cases = cases,
};
