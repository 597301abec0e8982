// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* How a connection treats the network, and how many Reads it answers. */
#include <rdma/ib_cm.h>

#include "kdtest_conn.h"
#include "kdtest_play.h"

/* ---- what goes out on the wire ---- */

#define DEFAULT		KDAT_CONN_DEFAULT
#define BEST		DAT_QOS_BEST_EFFORT
#define LOW_LATENCY	DAT_QOS_LOW_LATENCY

static void on_the_wire(struct kunit *test)
{
	static const struct {
		DAT_QOS attr, call;	/* of the EP, and of the call that connects */
		struct kdat_conn_attr net;
		u32 want;
		bool common;		/* by the call that has no quality of service */
	} rows[] = {
		{ BEST, BEST, KDAT_CONN_ATTR_INIT, 0 },
		{ BEST, DAT_QOS_HIGH_THROUGHPUT, KDAT_CONN_ATTR_INIT, 0x28 },
		{ BEST, LOW_LATENCY, KDAT_CONN_ATTR_INIT, 0x48 },
		{ BEST, DAT_QOS_ECONOMY, KDAT_CONN_ATTR_INIT, 0x04 },
		{ BEST, DAT_QOS_PREMIUM, KDAT_CONN_ATTR_INIT, 0xb8 },
		{ LOW_LATENCY, BEST, KDAT_CONN_ATTR_INIT, 0x48 },
		{ LOW_LATENCY, DAT_QOS_PREMIUM, KDAT_CONN_ATTR_INIT, 0xb8 },
		{ LOW_LATENCY, BEST, KDAT_CONN_ATTR_INIT, 0x48, true },
		{ LOW_LATENCY, DAT_QOS_PREMIUM, { 0x68, -1, -1, -1, -1 }, 0x68 },
		{ LOW_LATENCY, DAT_QOS_PREMIUM, { 0, -1, -1, -1, -1 }, 0 },
		/* how often this end repeats does not concern the other one */
		{ BEST, BEST, { .tos = 32, .ack_timeout = 14, .retry_count = 3,
				.rnr_retry_count = 2, .min_rnr_timer = 1 }, 32 },
		{ BEST, BEST, { .tos = 0, .ack_timeout = -1, .retry_count = 0,
				.rnr_retry_count = 0, .min_rnr_timer = -1 }, 0 },
		{ BEST, BEST, { .tos = 0xb8, .ack_timeout = -1, .retry_count = 7,
				.rnr_retry_count = 7, .min_rnr_timer = -1 }, 0xb8 },
	};
	struct kdt_env *env = kdt_env(test);
	struct sockaddr_storage peer = env->b.addr;
	DAT_EP_PARAM param = {};
	struct kdt_raw *raw;
	struct kdt_ep c;
	int i;

	if (env->a.iwarp)
		kunit_skip(test, "iWARP says none of these to the peer");
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		DAT_CONN_QUAL port = kdt_new_port();

		kdt_row(test, "row %d", i);
		kdt_ep_new(test, &c, &env->a, NULL);
		param.ep_attr.qos = rows[i].attr;
		KDT_OK(test, dat_ep_modify(c.h, DAT_EP_FIELD_EP_ATTR_QOS, &param));
		KDT_OK(test, kdat_ep_modify_conn(c.h, &rows[i].net));
		raw = kdt_raw_listen(test, &env->b, port);
		/* the same place in both families */
		((struct sockaddr_in *)&peer)->sin_port = htons(port);
		KDT_OK(test, rows[i].common ?
		       dat_ep_common_connect(c.h, (DAT_IA_ADDRESS_PTR)&peer, DAT_TIMEOUT_INFINITE,
					     0, NULL) :
		       dat_ep_connect(c.h, (DAT_IA_ADDRESS_PTR)&peer, port, DAT_TIMEOUT_INFINITE, 0,
				      NULL, rows[i].call, DAT_CONNECT_DEFAULT_FLAG));
		kdt_raw_wait(test, raw, RDMA_CM_EVENT_CONNECT_REQUEST);
		KUNIT_EXPECT_EQ_MSG(test, raw->flow, rows[i].want, "row %d", i);
		KUNIT_EXPECT_EQ(test, raw->conn.retry_count, 6);
		KUNIT_EXPECT_EQ(test, raw->conn.rnr_retry_count, 6);
		KUNIT_EXPECT_EQ(test, raw->conn.responder_resources, 4);
		KUNIT_EXPECT_EQ(test, raw->conn.initiator_depth, 4);
		kdt_raw_reject(raw, IB_CM_REJ_NO_RESOURCES, NULL, 0);
		kdt_conn(test, &c, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		kdt_raw_close(raw);
		kdt_ep_done(test, &c);
	}
}

static struct kdt_pair *pair_attr(struct kunit *test, const struct kdat_conn_attr *c,
				  const struct kdat_conn_attr *s)
{
	struct kdt_pair *pair = kdt_pair_new(test, NULL);

	KDT_OK(test, kdat_ep_modify_conn(pair->c.h, c));
	KDT_OK(test, kdat_ep_modify_conn(pair->s.h, s));
	kdt_pair_connect(test, pair);
	return pair;
}

/*
 * Requests that were sent and are sent again before the answer is there, over and over: each
 * of them if the link is slow (tests/guest/delay.sh). Fenced ones must come through as well.
 */
static void sent_again(struct kunit *test)
{
	enum { HALF = 4096, ALL_OF_IT = 8192, BACK = 16384 };
	static const struct kdt_step steps[] = {
		{ FILL, B, ALL_OF_IT, 100 },
		{ FILL, A, ALL_OF_IT, 1 },
		{ RECV, B, ALL_OF_IT, 0, BACK },
		{ READ_FROM, A, HALF },
		{ READ_FROM, A, HALF, FENCED, HALF },
		{ SEND, A, ALL_OF_IT, DAT_COMPLETION_BARRIER_FENCE_FLAG },
		{ READ_FROM, A, 64 },
		{ WRITE_TO, A, 64, FENCED, 0, 64 },
		{ READ_FROM, A, 64, FENCED, 128 },
		{ DONE, A, .times = 2 },
		{ CAME, B, ALL_OF_IT },
		{ SAME, B, ALL_OF_IT, 100, BACK },
		{ DONE, A, .times = 4 },
	};
	struct kdat_conn_attr attr = KDAT_CONN_ATTR_INIT;
	struct kdt_play *p;

	attr.ack_timeout = 1;		/* 8.2 us, or the least the device has */
	attr.retry_count = 7;
	p = kdt_play_new(test, pair_attr(test, &attr, &attr), 2 * BACK);
	for (p->round = 0; p->round < 8; p->round++)
		kdt_play(test, p, steps);
	kdt_pair_down(test, p->pair[0]);
}

/* ---- when a request is given up ---- */

/* Of two that are given up the first one is over before the second, which began before it. */
struct patience {
	const char *what;
	int timeout, retries;		/* of the one that sends */
	int rnr_retries, rnr_timer;	/* of the one that sends, of the one without a Receive */
};

static const struct patience mutes[][2] = {
	{ { "repeated no time", 15, 0, -1 }, { "five times 0.13 s", 15, 5, -1 } },
	{ { "2 * 4 ms", 10, 1, -1 }, { "2 * 0.54 s", 17, 1, -1 } },
}, unready[][2] = {
	{ { "not once", -1, -1, 0, 0 }, { "three times, after 0.66 s", -1, -1, 3, 0 } },
	{ { "once, after 0.01 ms", -1, -1, 1, 1 }, { "three times, after 0.66 s", -1, -1, 3, 0 } },
};

/* Connected to somebody who acknowledges nothing, whichever of them has called. */
static void mute(struct kunit *test, struct kdt_ep *ep, bool passive)
{
	struct kdt_env *env = kdt_env(test);
	DAT_CONN_QUAL port = kdt_new_port();
	static u32 qpn = KDT_RAW_QPN;
	struct kdt_raw *raw;
	struct kdt_evd *cr;
	DAT_PSP_HANDLE psp;

	if (!passive) {
		raw = kdt_raw_listen(test, &env->b, port);
		KDT_OK(test, kdt_connect(ep, &env->b, port));
		kdt_raw_wait(test, raw, RDMA_CM_EVENT_CONNECT_REQUEST);
		KUNIT_ASSERT_EQ(test, kdt_raw_accept(raw->child, ++qpn), 0);
	} else {
		cr = kdt_evd_new(test, &env->a, DAT_EVD_CR_FLAG);
		KDT_OK(test, dat_psp_create(env->a.h, port, cr->h, DAT_PSP_CONSUMER_FLAG, &psp));
		raw = kdt_raw_caller(test, &env->b, &env->a, port);
		KUNIT_ASSERT_EQ(test, kdt_raw_request(raw, NULL, 0, ++qpn), 0);
		KDT_OK(test, dat_cr_accept(kdt_arrival(test, cr).cr_handle, ep->h, 0, NULL));
		kdt_raw_wait(test, raw, RDMA_CM_EVENT_CONNECT_RESPONSE);
		KUNIT_ASSERT_EQ(test, kdt_raw_ready(raw), 0);
		KDT_OK(test, dat_psp_free(psp));
	}
	kdt_conn(test, ep, DAT_CONNECTION_EVENT_ESTABLISHED);
}

/* An EP whose Send fails; its requests complete on @req, or on its own EVD if there is none. */
static void to_send_in_vain(struct kunit *test, struct kdt_ep *ep, const struct patience *how,
			    bool mutely, bool passive, struct kdt_evd *req)
{
	struct kdat_conn_attr mine = KDAT_CONN_ATTR_INIT, theirs = KDAT_CONN_ATTR_INIT;
	struct kdt_env *env = kdt_env(test);
	struct kdt_ep other, *c = passive ? &other : ep, *s = passive ? ep : &other;
	DAT_CONN_QUAL port = kdt_new_port();
	DAT_EP_PARAM param = {};
	struct kdt_evd *cr;
	DAT_PSP_HANDLE psp;

	mine.ack_timeout = how->timeout;
	mine.retry_count = how->retries;
	mine.rnr_retry_count = how->rnr_retries;
	theirs.min_rnr_timer = how->rnr_timer;
	kdt_ep_new(test, ep, &env->a, NULL);
	if (req) {
		param.request_evd_handle = req->h;
		KDT_OK(test, dat_ep_modify(ep->h, DAT_EP_FIELD_REQUEST_EVD_HANDLE, &param));
	}
	KDT_OK(test, kdat_ep_modify_conn(ep->h, &mine));
	if (mutely) {
		mute(test, ep, passive);
		return;
	}
	kdt_ep_new(test, &other, &env->b, NULL);
	KDT_OK(test, kdat_ep_modify_conn(other.h, &theirs));
	cr = kdt_evd_new(test, s->ia, DAT_EVD_CR_FLAG);
	KDT_OK(test, dat_psp_create(s->ia->h, port, cr->h, DAT_PSP_CONSUMER_FLAG, &psp));
	kdt_accept(test, kdt_call(test, c, s->ia, port, cr).cr_handle, s->h, c, s);
}

static void given_up(struct kunit *test, const struct patience how[2], bool mutely, bool passive)
{
	const int status = mutely ? DAT_DTO_ERR_TRANSPORT : DAT_DTO_ERR_RECEIVER_NOT_READY;
	struct kdt_ep slow, brief;

	to_send_in_vain(test, &slow, &how[1], mutely, passive, NULL);
	to_send_in_vain(test, &brief, &how[0], mutely, passive, slow.req);
	/* one after the other, once both are connected, however long that took */
	KDT_OK(test, dat_ep_post_send(slow.h, 0, NULL, kdt_cookie(1), 0));
	KDT_OK(test, dat_ep_post_send(brief.h, 0, NULL, kdt_cookie(2), 0));
	kunit_info(test, "%s before %s\n", how[0].what, how[1].what);
	kdt_dto(test, slow.req, &brief, 2, DAT_DTO_SEND, status, 0);
	kdt_conn(test, &brief, DAT_CONNECTION_EVENT_BROKEN);
	kdt_dto(test, slow.req, &slow, 1, DAT_DTO_SEND, status, 0);
	kdt_conn(test, &slow, DAT_CONNECTION_EVENT_BROKEN);
	kdt_ep_done(test, &brief);
	kdt_ep_done(test, &slow);
}

static void acknowledgments(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	int i, k;

	if (env->a.iwarp)
		kunit_skip(test, "TCP does this");
	for (i = 0; i < 4; i++) {
		given_up(test, mutes[i / 2], true, i & 1);
		for (k = 0; k < KDT_RAWS; k++)
			if (env->raws[k])
				kdt_raw_close(env->raws[k]);
	}
}

static void receiver_not_ready(struct kunit *test)
{
	struct kdat_conn_attr often = KDAT_CONN_ATTR_INIT, s = KDAT_CONN_ATTR_INIT;
	struct kdt_env *env = kdt_env(test);
	struct kdt_buf *buf = kdt_buf_new(test, &env->a, 64);
	struct kdt_pair *pair;
	int i;

	if (env->a.iwarp)
		kunit_skip(test, "iWARP does not know it");
	/* For ever: the Receive comes when others have been given up after 0.66 s. */
	often.rnr_retry_count = 7;
	s.min_rnr_timer = 1;
	pair = pair_attr(test, &often, &s);
	KDT_OK(test, kdt_send(&pair->c, buf, 0, 64, 1, 0));
	for (i = 0; i < 4; i++)
		given_up(test, unready[i / 2], false, i & 1);
	KDT_OK(test, kdt_recv(&pair->s, kdt_buf_new(test, &env->b, 64), 0, 64, 2));
	kdt_came(test, &pair->s, 2, 64);
	kdt_sent(test, &pair->c, 1, DAT_DTO_SEND, 64);
	kdt_pair_down(test, pair);
}

/* ---- read depths ---- */

/* May this end read, as it asked and as the other one grants? */
static bool may_read(struct kdt_env *env, int out, int in)
{
	return out && (in || (env->a.traits & KDT_GRANTS));
}

static void depths_are(struct kunit *test, struct kdt_ep *ep, int out, int in)
{
	DAT_EP_PARAM param = {};

	KDT_OK(test, dat_ep_query(ep->h, DAT_EP_FIELD_ALL, &param));
	KUNIT_EXPECT_EQ(test, param.ep_attr.max_rdma_read_out, out);
	KUNIT_EXPECT_EQ(test, param.ep_attr.max_rdma_read_in, in);
}

/* More are asked for than either end has: they wait. What the consumers asked for stays so. */
static void read_depths(struct kunit *test)
{
	static const struct {
		int c_out, s_in, s_out, c_in;
	} rows[] = {
		{ 4, 4, 4, 4 }, { 4, 2, 4, 1 }, { 1, 4, 2, 4 }, { 4, 1, 1, 1 }, { 0, 4, 4, 0 },
		{ 0, 0, 0, 0 }, { 4, 0, 0, 4 }, { 4, 0, 4, 4 }, { 4, 4, 0, 4 }, { 16, 2, 0, 0 },
	}, *r;
	struct kdt_env *env = kdt_env(test);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, 4096);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, 4096);
	DAT_EP_ATTR c, s;
	DAT_RETURN ret;
	int i, j;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct kdt_pair none = {}, *pair;

		r = &rows[i];
		kdt_row(test, "row %d", i);
		kdt_attr(env, &c);
		s = c;
		c.max_rdma_read_out = r->c_out;
		c.max_rdma_read_in = r->c_in;
		s.max_rdma_read_out = r->s_out;
		s.max_rdma_read_in = r->s_in;
		pair = kdt_pair_with(test, &none, &c, &s);
		kdt_pair_connect(test, pair);
		depths_are(test, &pair->c, r->c_out, r->c_in);
		depths_are(test, &pair->s, r->s_out, r->s_in);
		kdt_fill(to->p, 4096, i);
		memset(from->p, 0, 4096);
		if (!may_read(env, r->c_out, r->s_in)) {
			KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG1,
				    kdt_read(&pair->c, from, 0, 4096, to, 0, 0, 0));
		} else {
			for (j = 0; j < 40; j++)
				KDT_OK(test, kdt_read(&pair->c, from, 100 * j, 196, to, 100 * j, j,
						      0));
			for (j = 0; j < 40; j++)
				kdt_sent(test, &pair->c, j, DAT_DTO_RDMA_READ, 196);
			KUNIT_EXPECT_TRUE(test, kdt_same(from->p, 4096, i));
		}
		/* unasked it would be let through, and break the connection */
		if (!(env->a.traits & KDT_UNASKED) || r->c_in) {
			ret = kdt_read(&pair->s, to, 0, 64, from, 0, 0, 0);
			if (!may_read(env, r->s_out, r->c_in))
				KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG1, ret);
			else if (ret == DAT_SUCCESS)
				kdt_sent(test, &pair->s, 0, DAT_DTO_RDMA_READ, 64);
			else	/* the caller of soft-iWARP may have said that it answers none */
				KUNIT_EXPECT_FALSE(test, r->c_in);
		}
		kdt_pair_down(test, pair);
		kdt_pair_done(test, pair);
	}
}

static struct kunit_case cases[] = {
	KD_CASE(on_the_wire, "CONN-01,CONN-07,CONN-11,SIL-34: what the peer is told of it"),
	KD_CASE(receiver_not_ready, "EPSM-17,STAT-01: how often, how long without Receive"),
	KD_CASE(sent_again, "FLAG-09,RDMAR-16: requests sent again, fenced ones too"),
	KD_CASE(acknowledgments, "EPSM-17,STAT-01: when a silent peer is given up"),
	KD_CASE(read_depths,
		"CONN-11,CR-ACC-09,EP-CREATE-10,RDMAR-15,RDMAR-16,RDMAR-17: depths of Reads"),
	{}
};

struct kunit_suite kdt_attr_suite = { .name = "kdtest-attr", KDT_CASES };
