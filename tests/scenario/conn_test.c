// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Connections: attempts that fail, data from the first instant on, every end, again and again. */
#include "kdtest_conn.h"

#define SLOW_SIZE 65536

static const DAT_CLOSE_FLAGS both[] = { DAT_CLOSE_ABRUPT_FLAG, DAT_CLOSE_GRACEFUL_FLAG };

/* ---- attempts that fail ---- */

enum failure { NOBODY, REFUSED, TIME_OUT, ABRUPT, GRACEFUL };

/*
 * The attempt fails; @accept: the other side accepts when it is over. Then: D, Receives and
 * posts flushed, no other event, and after a reset the next attempt works.
 */
static void fails(struct kunit *test, enum failure how, bool accept)
{
	static const DAT_EVENT_NUMBER events[] = {
		[NOBODY] = DAT_CONNECTION_EVENT_NON_PEER_REJECTED,
		[TIME_OUT] = DAT_CONNECTION_EVENT_TIMED_OUT,
		[ABRUPT] = DAT_CONNECTION_EVENT_DISCONNECTED,
		[GRACEFUL] = DAT_CONNECTION_EVENT_DISCONNECTED,
	};
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	struct kdt_buf *buf = kdt_buf_new(test, pair->c.ia, 64);
	struct kdt_ep *c = &pair->c, *s = &pair->s;
	DAT_CR_HANDLE cr = NULL;
	u8 why[40];
	int i;

	kdt_fill(why, sizeof(why), 9);
	for (i = 1; i <= 2; i++)
		KDT_OK(test, kdt_recv(c, buf, 0, 64, i));
	KDT_OK(test, kdt_ask(c, s->ia, how == NOBODY ? kdt_new_port() : pair->port,
			     how == TIME_OUT ? 5 * USEC_PER_SEC : DAT_TIMEOUT_INFINITE, NULL, 0));
	if (how != NOBODY)
		cr = kdt_arrival(test, pair->cr).cr_handle;
	if (how == REFUSED) {
		kdt_reject(test, c, pair->cr, cr, why, sizeof(why));
		kdt_rejected(test, c, sizeof(why), 9);
		KUNIT_EXPECT_EQ(test, (int)kdt_state(s->h), DAT_EP_STATE_UNCONNECTED);
	} else {
		if (how >= ABRUPT)
			KDT_OK(test, dat_ep_disconnect(c->h, both[how - ABRUPT]));
		kdt_conn(test, c, events[how]);
	}
	KDT_OK(test, dat_ep_disconnect(c->h, DAT_CLOSE_ABRUPT_FLAG));
	if (accept) {
		KDT_OK(test, dat_cr_accept(cr, s->h, 0, NULL));
		kdt_too_late(test, s);
		KDT_OK(test, dat_ep_reset(s->h));
	} else if (how >= TIME_OUT) {
		KDT_OK(test, dat_cr_reject(cr, 0, NULL));
	}
	KUNIT_EXPECT_EQ(test, (int)kdt_state(c->h), DAT_EP_STATE_DISCONNECTED);
	for (i = 1; i <= 2; i++)
		kdt_flushed(test, c, i, DAT_DTO_RECEIVE);
	KDT_OK(test, kdt_send(c, buf, 0, 64, 3, 0));
	kdt_flushed(test, c, 3, DAT_DTO_SEND);
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_DISCONNECTED,
		    kdt_connect(c, s->ia, pair->port));
	KDT_OK(test, dat_ep_reset(c->h));
	kdt_pair_connect(test, pair);
	kdt_pair_down(test, pair);
	kdt_ep_done(test, c);
	kdt_ep_done(test, s);
}

static void nobody_listens(struct kunit *test)
{
	fails(test, NOBODY, false);
}

static void rejected(struct kunit *test)
{
	fails(test, REFUSED, false);
}

static void timed_out(struct kunit *test)
{
	fails(test, TIME_OUT, false);
	fails(test, TIME_OUT, true);
}

static void aborted(struct kunit *test)
{
	fails(test, ABRUPT, false);
	fails(test, ABRUPT, true);
	fails(test, GRACEFUL, false);
	fails(test, GRACEFUL, true);
}

static void no_such_host(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct sockaddr_storage nobody = kdt_nobody_there(&env->b);
	/* RoCE without neighbours to ask: only the consumer's timer ends that soon */
	bool found_out = env->a.iwarp || kdt_ia_asks(&env->a);
	struct kdt_ep ep;
	DAT_EVENT event;

	kdt_ep_new(test, &ep, &env->a, NULL);
	KDT_OK(test, dat_ep_connect(ep.h, (DAT_IA_ADDRESS_PTR)&nobody, 5000, found_out ?
				    DAT_TIMEOUT_INFINITE : 2 * USEC_PER_SEC, 0, NULL,
				    DAT_QOS_BEST_EFFORT, 0));
	KUNIT_ASSERT_TRUE(test, kdt_get_timeout(ep.conn, &event, 2 * KDT_WAIT));
	KUNIT_EXPECT_EQ(test, (int)event.event_number, found_out ?
			DAT_CONNECTION_EVENT_UNREACHABLE : DAT_CONNECTION_EVENT_TIMED_OUT);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(ep.h), DAT_EP_STATE_DISCONNECTED);
	KDT_OK(test, dat_ep_reset(ep.h));
	kdt_ep_done(test, &ep);
}

/* ---- ends ---- */

/* Each of these ways, and nothing more comes of it, nor of another disconnect behind it. */
static void disconnects(struct kunit *test)
{
	static const struct {
		bool client, server;
		DAT_CLOSE_FLAGS flags;
		bool again;		/* gracefully and abruptly, while it is under way */
	} rows[] = {
		{ true, false, DAT_CLOSE_ABRUPT_FLAG, false },
		{ true, false, DAT_CLOSE_GRACEFUL_FLAG, false },
		{ true, false, DAT_CLOSE_GRACEFUL_FLAG, true },
		{ false, true, DAT_CLOSE_ABRUPT_FLAG, false },
		{ false, true, DAT_CLOSE_GRACEFUL_FLAG, false },
		{ true, true, DAT_CLOSE_ABRUPT_FLAG, false },
		{ true, true, DAT_CLOSE_GRACEFUL_FLAG, false },
	};
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		kdt_pair_connect(test, pair);
		if (rows[i].client)
			KDT_OK(test, dat_ep_disconnect(pair->c.h, rows[i].flags));
		if (rows[i].server)
			KDT_OK(test, dat_ep_disconnect(pair->s.h, rows[i].flags));
		if (rows[i].again) {
			KDT_OK(test, dat_ep_disconnect(pair->c.h, DAT_CLOSE_GRACEFUL_FLAG));
			KDT_OK(test, dat_ep_disconnect(pair->c.h, DAT_CLOSE_ABRUPT_FLAG));
		}
		kdt_conn(test, &pair->c, DAT_CONNECTION_EVENT_DISCONNECTED);
		kdt_conn(test, &pair->s, DAT_CONNECTION_EVENT_DISCONNECTED);
		KUNIT_EXPECT_EQ(test, (int)kdt_state(pair->c.h), DAT_EP_STATE_DISCONNECTED);
		KUNIT_EXPECT_EQ(test, (int)kdt_state(pair->s.h), DAT_EP_STATE_DISCONNECTED);
		KDT_OK(test, dat_ep_disconnect(pair->c.h, rows[i].flags));
		kdt_reset(test, &pair->c, &pair->s);
	}
	kdt_pair_done(test, pair);
}

/*
 * Gracefully, behind more than goes through a slow link in the time that a device may do
 * nothing: all of it is done first. A Receive too many is flushed.
 */
static void graceful_takes_its_time(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, SLOW_SIZE);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, SLOW_SIZE);
	int i, writes = 100, sends = SLOW_SIZE / 4096;
	struct kdt_pair *pair;
	DAT_EP_ATTR attr;

	kdt_attr(env, &attr);
	attr.max_request_dtos = writes + sends;
	pair = kdt_pair_new(test, &attr);
	kdt_pair_connect(test, pair);
	kdt_fill(from->p, SLOW_SIZE, 5);
	for (i = 0; i <= sends; i++)
		KDT_OK(test, kdt_recv(&pair->s, to, i % sends * 4096, 4096, i));
	for (i = 0; i < writes; i++)
		KDT_OK(test, kdt_write(&pair->c, from, 0, SLOW_SIZE, to, 0, i, 0));
	for (i = 0; i < sends; i++)
		KDT_OK(test, kdt_send(&pair->c, from, i * 4096, 4096, i,
				      i % 2 ? DAT_COMPLETION_SUPPRESS_FLAG : 0));
	KDT_OK(test, dat_ep_disconnect(pair->c.h, DAT_CLOSE_GRACEFUL_FLAG));
	for (i = 0; i < writes; i++)
		kdt_sent(test, &pair->c, i, DAT_DTO_RDMA_WRITE, SLOW_SIZE);
	for (i = 0; i < sends; i += 2)
		kdt_sent(test, &pair->c, i, DAT_DTO_SEND, 4096);
	for (i = 0; i < sends; i++)
		kdt_came(test, &pair->s, i, 4096);
	kdt_flushed(test, &pair->s, sends, DAT_DTO_RECEIVE);
	KUNIT_EXPECT_TRUE(test, kdt_same(to->p, SLOW_SIZE, 5));
	kdt_conn(test, &pair->c, DAT_CONNECTION_EVENT_DISCONNECTED);
	kdt_conn(test, &pair->s, DAT_CONNECTION_EVENT_DISCONNECTED);
	kdt_pair_done(test, pair);
}

/* ---- the same endpoints again and again ---- */

/* What the upcalls of an endpoint do: send, and leave when they have heard as well. */
struct actor {
	struct kdt_ep *ep;
	struct kdt_buf *buf;
	bool leaves;
	atomic_t done;
	DAT_RETURN sent, left;
};

static void leave_if_done(struct actor *actor)
{
	if (actor->leaves && atomic_inc_return(&actor->done) == 2)
		actor->left = dat_ep_disconnect(actor->ep->h, DAT_CLOSE_GRACEFUL_FLAG);
}

static bool speak_first(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct actor *actor = evd->priv;

	if (event->event_number == DAT_CONNECTION_EVENT_ESTABLISHED) {
		actor->sent = kdt_send(actor->ep, actor->buf, 0, 64, 1, 0);
		leave_if_done(actor);
	}
	return false;
}

static bool leave_with_it(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	if (event->event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS)
		leave_if_done(evd->priv);
	return false;
}

/*
 * Both send when they hear that they are connected. How a round begins and ends is drawn from its
 * number. The client leaves gracefully now and then as soon as it has its message: nobody is told
 * that one was lost. (On iWARP a Send is done when it has left.)
 */
static void rounds(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	struct kdt_evd *cr[] = { kdt_evd_new(test, &env->a, DAT_EVD_CR_FLAG), pair->cr };
	DAT_CONN_QUAL port[] = { kdt_new_port(), pair->port };
	struct kdt_ep *ep[] = { &pair->c, &pair->s };
	const DAT_EP_HANDLE always[] = { pair->c.h, pair->s.h };
	struct actor actor[2] = {};
	unsigned int i, j, k, up = 0;
	DAT_CR_HANDLE request;
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;
	u8 words[8];

	KDT_OK(test, dat_psp_create(env->a.h, port[0], cr[0]->h, DAT_PSP_CONSUMER_FLAG, &psp));
	for (j = 0; j < 2; j++) {
		actor[j].ep = ep[j];
		actor[j].buf = kdt_buf_new(test, ep[j]->ia, 128);
		ep[j]->conn->priv = &actor[j];
		ep[j]->conn->hook = speak_first;
	}
	ep[0]->recv->priv = &actor[0];
	ep[0]->recv->hook = leave_with_it;
	for (i = 0; i < kdt_rounds; i++) {
		int calls = i % 5 == 4, called = !calls;	/* either end */
		bool reject = i % 7 == 6;
		unsigned int spare = i % 4 ? 1 : 6;		/* Receives to be flushed */

		kdt_row(test, "round %u", i);
		actor[0].leaves = !env->a.iwarp && i % 3 == 1;
		atomic_set(&actor[0].done, 0);
		kdt_fill(words, sizeof(words), i);
		/* one that is never asked would keep them until the next time */
		for (j = 0; j < 2; j++) {
			kdt_fill(actor[j].buf->p, 64, 2 * i + j);
			for (k = 0; k <= spare && !(reject && j == called); k++)
				KDT_OK(test, kdt_recv(ep[j], actor[j].buf, 64, 64, 10 + k));
		}
		KDT_OK(test, dat_ep_connect(ep[calls]->h,
					    (DAT_IA_ADDRESS_PTR)&ep[called]->ia->addr, port[called],
					    60 * USEC_PER_SEC, sizeof(words), words, 0, i & 1 ?
					    DAT_CONNECT_MULTIPATH_REQUESTED_FLAG : 0));
		request = kdt_arrival(test, cr[called]).cr_handle;
		if (reject) {
			kdt_reject(test, ep[calls], cr[called], request, words, sizeof(words));
			kdt_conn(test, ep[calls], DAT_CONNECTION_EVENT_PEER_REJECTED);
			for (k = 0; k <= spare; k++)
				kdt_flushed(test, ep[calls], 10 + k, DAT_DTO_RECEIVE);
			KDT_OK(test, dat_ep_reset(ep[calls]->h));
			KUNIT_EXPECT_EQ(test, (int)kdt_state(ep[called]->h),
					DAT_EP_STATE_UNCONNECTED);
			continue;
		}
		KDT_OK(test, dat_cr_accept(request, ep[called]->h, sizeof(words), words));
		KUNIT_ASSERT_TRUE(test, kdt_get(ep[calls]->conn, &event));
		KUNIT_ASSERT_EQ_MSG(test, (int)event.event_number,
				    DAT_CONNECTION_EVENT_ESTABLISHED, "round %u", i);
		KUNIT_EXPECT_TRUE(test, kdt_same(event.event_data.connect_event_data.private_data,
						 sizeof(words), i));
		kdt_conn(test, ep[called], DAT_CONNECTION_EVENT_ESTABLISHED);
		up++;
		for (j = 0; j < 2; j++) {
			KDT_OK(test, actor[j].sent);
			kdt_came(test, ep[j], 10, 64);
			kdt_sent(test, ep[j], 1, DAT_DTO_SEND, 64);
			KUNIT_ASSERT_TRUE(test, kdt_same(actor[j].buf->p + 64, 64, 2 * i + !j));
		}
		/* one of them, the other one, now and then both */
		if (i % 2 && !actor[0].leaves)
			KDT_OK(test, dat_ep_disconnect(ep[0]->h, both[!!(i & 4)]));
		if ((i % 2 == 0 || i % 11 == 10) && !actor[0].leaves)
			KDT_OK(test, dat_ep_disconnect(ep[1]->h, both[!!(i & 8)]));
		for (j = 0; j < 2; j++) {
			if (actor[0].leaves)
				kdt_conn(test, ep[j], DAT_CONNECTION_EVENT_DISCONNECTED);
			else
				kdt_end(test, ep[j]);
			for (k = 1; k <= spare; k++)
				kdt_flushed(test, ep[j], 10 + k, DAT_DTO_RECEIVE);
		}
		KDT_OK(test, actor[0].left);
		kdt_reset(test, ep[0], ep[1]);
		KUNIT_EXPECT_EQ(test, (int)kdt_state(ep[0]->h), DAT_EP_STATE_UNCONNECTED);
	}
	kunit_info(test, "connected %u of %u times\n", up, kdt_rounds);
	KUNIT_EXPECT_EQ(test, up, kdt_rounds - kdt_rounds / 7);
	for (j = 0; j < 2; j++) {
		ep[j]->conn->hook = NULL;
		ep[j]->recv->hook = NULL;
		KUNIT_EXPECT_PTR_EQ(test, ep[j]->h, always[j]);
		KUNIT_EXPECT_EQ(test, kdt_queued(cr[j]), 0);
		kdt_ep_done(test, ep[j]);
	}
}

static struct kunit_case cases[] = {
	KD_CASE(nobody_listens, "EPSM-07,EPSM-30,CONN-10,CONN-15,FLUSH-02: nobody listens"),
	KD_CASE(rejected, "EPSM-06,CR-REJ-01,EVD-EV-04,SIL-11,FLUSH-02: rejected by the peer"),
	KD_CASE(timed_out, "EPSM-09,EPSM-12,EPSM-34,CR-ACC-08,SIL-33: timed out, answered late"),
	KD_CASE(aborted, "EPSM-10,EPSM-12,EP-DIS-03,EP-DIS-05: given up, answered too late"),
	KD_CASE(no_such_host, "EPSM-08,SIL-12: a host that does not exist"),
	KD_CASE(disconnects, "EP-DIS-01,EP-DIS-06,EP-DIS-08,EP-DIS-09,EPSM-14,EPSM-15: ends"),
	KD_CASE(graceful_takes_its_time, "FLUSH-09,EPSM-16,EPSM-18: graceful takes its time"),
	KD_CASE(rounds,
		"EP-RST-03,EP-CREATE-12,EPSM-05,EPSM-30..32,CONN-08,CR-ACC-10,SIL-47: rounds"),
	{}
};

struct kunit_suite kdt_conn_suite = { .name = "kdtest-conn", KDT_CASES };
