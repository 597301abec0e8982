// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Streams that share an EVD: every combination of them, the contexts of their upcalls,
 * the order they keep, and requests that do not fit.
 */
#include "kdtest_conn.h"

#define FLAGS_CQ	(DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG)
#define MESSAGES	4		/* each way */
#define SPARE		2		/* Receives that only a flush ends */
#define SIZE		64

static const int policies[] = {
	DAT_UPCALL_DISABLE, DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_NOTIFY, DAT_UPCALL_MANY,
};

static const int streams[] = {
	DAT_EVD_SOFTWARE_FLAG, DAT_EVD_CR_FLAG, DAT_EVD_DTO_FLAG,
	DAT_EVD_CONNECTION_FLAG, DAT_EVD_RMR_BIND_FLAG, DAT_EVD_ASYNC_FLAG,
};

enum kind { REQUESTS, ESTABLISHED, ENDED, SOFTS, ASYNCS, RECEIVED, SENT, FLUSHED, KINDS };

static const char * const kinds[KINDS] = {
	"connection request", "ESTABLISHED", "end of the connection", "software event",
	"asynchronous event", "Receive", "Send", "flush",
};

/* What came out of an EVD of the server so far. */
struct feed {
	struct kdt_evd *evd;
	bool ordered;			/* one event after the other */
	bool conn;			/* it carries the connection events of its EP, too */
	unsigned int n[KINDS], flushed_at_end;
	DAT_CR_HANDLE cr;
	DAT_HANDLE async;
	const char *wrong;
};

static void feed_dto(struct feed *f, const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	unsigned int *count = dto->operation == DAT_DTO_RECEIVE ? &f->n[RECEIVED] : &f->n[SENT];

	if (f->ordered && f->conn && !f->n[ESTABLISHED])
		f->wrong = "a completion before ESTABLISHED";
	if (dto->status != DAT_DTO_SUCCESS) {
		if (dto->status != DAT_DTO_ERR_FLUSHED)
			f->wrong = "a completion that failed";
		f->n[FLUSHED]++;
		return;
	}
	if (f->ordered && (f->n[ENDED] || f->n[FLUSHED]))
		f->wrong = "a success after the end";
	if (f->ordered && dto->user_cookie.as_64 != *count)
		f->wrong = "completions out of order";
	(*count)++;
}

/* The next event, whatever it is. */
static void feed_next(struct kunit *test, struct feed *f, const char *wanted)
{
	DAT_EVENT event;

	KUNIT_ASSERT_TRUE_MSG(test, kdt_get(f->evd, &event), "no %s in time %s", wanted,
			      kdt_at(test));
	KUNIT_EXPECT_PTR_EQ(test, event.evd_handle, f->evd->h);
	switch (event.event_number) {
	case DAT_DTO_COMPLETION_EVENT:
		feed_dto(f, &event.event_data.dto_completion_event_data);
		break;
	case DAT_CONNECTION_REQUEST_EVENT:
		f->cr = event.event_data.cr_arrival_event_data.cr_handle;
		f->n[REQUESTS]++;
		break;
	case DAT_CONNECTION_EVENT_ESTABLISHED:
		f->n[ESTABLISHED]++;
		break;
	case DAT_CONNECTION_EVENT_DISCONNECTED:
	case DAT_CONNECTION_EVENT_BROKEN:
		f->flushed_at_end = f->n[FLUSHED];
		f->n[ENDED]++;
		break;
	case DAT_SOFTWARE_EVENT:
		if (f->ordered && kdt_soft_number(&event) != f->n[SOFTS])
			f->wrong = "software events out of order";
		f->n[SOFTS]++;
		break;
	case DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR:
		f->async = event.event_data.asynch_error_event_data.dat_handle;
		f->n[ASYNCS]++;
		break;
	default:
		KUNIT_FAIL(test, "event 0x%x", event.event_number);
	}
}

/* So many of this kind have come, and no more. */
static void feed_until(struct kunit *test, struct feed *f, enum kind k, unsigned int n)
{
	while (f->n[k] < n)
		feed_next(test, f, kinds[k]);
	KUNIT_EXPECT_EQ_MSG(test, f->n[k], n, "%s %s", kinds[k], kdt_at(test));
}

/* Nothing was wrong, nothing is left, and its upcalls came in its context. */
static void feed_check(struct kunit *test, struct feed *f, int flags, int policy)
{
	bool softirq = !(flags & ~FLAGS_CQ);
	struct kdt_evd *evd = f->evd;
	DAT_EVENT event;

	KUNIT_EXPECT_TRUE_MSG(test, !f->wrong, "%s: %s", kdt_at(test), f->wrong);
	KDT_REFUSED(test, DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE, dat_evd_dequeue(evd->h, &event));
	KUNIT_EXPECT_TRUE(test, kdt_idle(evd));
	KUNIT_EXPECT_EQ(test, kdt_queued(evd), 0);
	if (policy == DAT_UPCALL_DISABLE) {
		KUNIT_EXPECT_EQ(test, evd->entered, 0);
	} else if (evd->entered) {
		KUNIT_EXPECT_EQ_MSG(test, evd->softirq, softirq, "%s", kdt_at(test));
		KUNIT_EXPECT_EQ_MSG(test, evd->process, !softirq, "%s", kdt_at(test));
	}
	if (f->ordered || softirq)
		KUNIT_EXPECT_LE(test, evd->max_running, 1);
}

enum role { RECV, REQ, CONN, CR, ROLES };

/* Messages both ways, and the end; the server's streams come out of these feeds. */
static void connection(struct kunit *test, struct kdt_pair *pair, struct feed *f[ROLES])
{
	struct kdt_ep *c = &pair->c, *s = &pair->s;
	struct kdt_buf *from = kdt_buf_new(test, c->ia, 2 * SIZE);
	struct kdt_buf *to = kdt_buf_new(test, s->ia, 2 * SIZE);
	int i;

	for (i = 0; i < MESSAGES + SPARE; i++) {
		KDT_OK(test, kdt_recv(c, from, SIZE, SIZE, i));
		KDT_OK(test, kdt_recv(s, to, SIZE, SIZE, i));
	}
	KDT_OK(test, kdt_connect(c, s->ia, pair->port));
	feed_until(test, f[CR], REQUESTS, 1);
	KDT_OK(test, dat_cr_accept(f[CR]->cr, s->h, 0, NULL));
	kdt_conn(test, c, DAT_CONNECTION_EVENT_ESTABLISHED);
	/* as early as possible: they may arrive before the server is told */
	for (i = 0; i < MESSAGES; i++)
		KDT_OK(test, kdt_send(c, from, 0, SIZE, i, 0));
	feed_until(test, f[CONN], ESTABLISHED, 1);
	for (i = 0; i < MESSAGES; i++)
		KDT_OK(test, kdt_send(s, to, 0, SIZE, i, 0));
	for (i = 0; i < MESSAGES; i++)
		kdt_came(test, c, i, SIZE);
	/* what becomes of its own Sends, and on iWARP of those of the peer, the end leaves open */
	feed_until(test, f[REQ], SENT, MESSAGES);
	if (s->ia->iwarp)
		feed_until(test, f[RECV], RECEIVED, MESSAGES);
	for (i = 0; i < MESSAGES; i++)
		kdt_sent(test, c, i, DAT_DTO_SEND, SIZE);
	KDT_OK(test, dat_ep_disconnect(c->h, DAT_CLOSE_ABRUPT_FLAG));
	kdt_end(test, c);
	feed_until(test, f[CONN], ENDED, 1);
	feed_until(test, f[RECV], FLUSHED, SPARE);
	if (f[RECV] == f[CONN] && f[RECV]->ordered)	/* the end comes last */
		KUNIT_EXPECT_EQ(test, f[RECV]->flushed_at_end, SPARE);
	feed_until(test, f[RECV], RECEIVED, MESSAGES);
}

/* An instance whose asynchronous events go to this EVD; an empty SRQ makes one. */
static DAT_IA_HANDLE more_async(struct kunit *test, struct kdt_evd *evd, DAT_SRQ_HANDLE *srq)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 4, .max_recv_iov = 1 };
	DAT_EVD_HANDLE async = evd->h;
	DAT_IA_HANDLE more = kdt_ia_more(test, evd->ia, 0, &async);
	DAT_PZ_HANDLE pz;

	KUNIT_EXPECT_PTR_EQ(test, async, evd->h);
	KDT_OK(test, dat_pz_create(more, &pz));
	KDT_OK(test, dat_srq_create(more, pz, &attr, srq));
	KDT_OK(test, dat_srq_set_lw(*srq, 1));
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE, dat_evd_free(evd->h));
	return more;
}

/* An EVD for all the server's streams of these kinds; the others have their own. */
static void combination(struct kunit *test, int flags, int policy)
{
	static const int role_flags[ROLES] = {
		DAT_EVD_DTO_FLAG, DAT_EVD_DTO_FLAG, DAT_EVD_CONNECTION_FLAG, DAT_EVD_CR_FLAG,
	};
	struct kdt_evd *evd = kdt_evd_policy(test, &kdt_env(test)->b, flags, 64, policy);
	struct feed all = { evd, policy != DAT_UPCALL_MANY, flags & DAT_EVD_CONNECTION_FLAG };
	bool soft = flags & DAT_EVD_SOFTWARE_FLAG;
	struct feed own[ROLES] = {}, *f[ROLES];
	struct kdt_pair evds = {}, *pair;
	DAT_IA_HANDLE more = DAT_HANDLE_NULL;
	DAT_SRQ_HANDLE srq;
	int i;

	kdt_row(test, "flags 0x%x, policy %d", flags, policy);
	if (soft)
		KDT_OK(test, kdt_soft(evd, 0));
	else
		KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG1, kdt_soft(evd, 0));
	if (flags & DAT_EVD_ASYNC_FLAG)
		more = more_async(test, evd, &srq);
	if (flags & (DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG | DAT_EVD_CR_FLAG)) {
		struct kdt_evd **at[ROLES] = { &evds.s.recv, &evds.s.req, &evds.s.conn, &evds.cr };
		struct kdt_evd *now[ROLES];

		for (i = 0; i < ROLES; i++)
			*at[i] = flags & role_flags[i] ? evd : NULL;
		pair = kdt_pair_with(test, &evds, NULL, NULL);
		now[RECV] = pair->s.recv;
		now[REQ] = pair->s.req;
		now[CONN] = pair->s.conn;
		now[CR] = pair->cr;
		for (i = 0; i < ROLES; i++) {
			own[i] = (struct feed) { now[i], true };
			f[i] = now[i] == evd ? &all : &own[i];
		}
		connection(test, pair, f);
	}
	if (more) {
		feed_until(test, &all, ASYNCS, 1);
		KUNIT_EXPECT_PTR_EQ(test, all.async, srq);
		kdt_ia_less(test, more);
	}
	if (soft) {
		KDT_OK(test, kdt_soft(evd, 1));
		feed_until(test, &all, SOFTS, 2);
	}
	feed_check(test, &all, flags, policy);
}

/* All 63 of them, and the one of all streams under each policy. */
static void every_combination(struct kunit *test)
{
	int i, j, flags;

	for (i = 1; i < 64 + 3; i++) {
		for (flags = 0, j = 0; j < ARRAY_SIZE(streams); j++)
			flags |= min(i, 63) & BIT(j) ? streams[j] : 0;
		combination(test, flags, policies[i % 4]);
	}
}

/* ---- requests that do not fit ---- */

/* The next event of the callers is this, of any of them. */
static DAT_EP_HANDLE caller_event(struct kunit *test, struct kdt_evd *conn, DAT_EVENT_NUMBER number)
{
	DAT_EVENT event;

	KUNIT_ASSERT_TRUE_MSG(test, kdt_get(conn, &event), "no event 0x%x in time", number);
	/* the transport does not say who refused */
	if (number == DAT_CONNECTION_EVENT_NON_PEER_REJECTED && conn->ia->iwarp &&
	    event.event_number == DAT_CONNECTION_EVENT_PEER_REJECTED)
		number = DAT_CONNECTION_EVENT_PEER_REJECTED;
	KUNIT_EXPECT_EQ(test, (int)event.event_number, (int)number);
	return event.event_data.connect_event_data.ep_handle;
}

static void refuse_all(struct kunit *test, struct kdt_evd *cr, struct kdt_evd *conn, int n)
{
	DAT_EVENT event;

	while (n--) {
		KDT_OK(test, dat_cr_reject(kdt_arrival(test, cr).cr_handle, 0, NULL));
		caller_event(test, conn, DAT_CONNECTION_EVENT_PEER_REJECTED);
	}
	KDT_REFUSED(test, DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE, dat_evd_dequeue(cr->h, &event));
}

/* The length of the EVD is the backlog: one more is refused on the wire. */
static void requests(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_evd *cr = kdt_evd_policy(test, &env->b, DAT_EVD_CR_FLAG, 2, DAT_UPCALL_DISABLE);
	struct kdt_evd *conn = kdt_evd_new(test, &env->a, DAT_EVD_CONNECTION_FLAG);
	DAT_CONN_QUAL port = kdt_new_port();
	struct kdt_ep c[8], s, refused = {};
	DAT_EVD_PARAM param;
	DAT_PSP_HANDLE psp;
	DAT_EP_ATTR attr;
	DAT_EVENT event;
	int i, n;

	KDT_OK(test, dat_evd_query(cr->h, DAT_EVD_FIELD_EVD_QLEN, &param));
	n = param.evd_qlen + 1;
	KUNIT_ASSERT_LE(test, n, ARRAY_SIZE(c));
	kdt_attr(env, &attr);
	kdt_ep_new(test, &s, &env->b, NULL);
	for (i = 0; i < n; i++) {
		KDT_OK(test, kdt_ep_evds(env, &c[i], &env->a));
		c[i].conn = conn;
		KDT_OK(test, dat_ep_create(env->a.h, env->a.pz, c[i].recv->h, c[i].req->h,
					   conn->h, &attr, &c[i].h));
	}
	KDT_OK(test, dat_psp_create(env->b.h, port, cr->h, DAT_PSP_CONSUMER_FLAG, &psp));
	for (i = 0; i < n; i++)
		KDT_OK(test, kdt_connect(&c[i], &env->b, port));
	refused.h = caller_event(test, conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	/* no trace of it here; those that fitted are fine */
	KDT_REFUSED(test, DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE, dat_evd_dequeue(env->b.async, &event));
	KDT_OK(test, dat_cr_accept(kdt_arrival(test, cr).cr_handle, s.h, 0, NULL));
	KUNIT_EXPECT_PTR_NE(test, caller_event(test, conn, DAT_CONNECTION_EVENT_ESTABLISHED),
			    refused.h);
	kdt_conn(test, &s, DAT_CONNECTION_EVENT_ESTABLISHED);
	/* there is room for one again */
	KDT_OK(test, dat_ep_reset(refused.h));
	KDT_OK(test, kdt_connect(&refused, &env->b, port));
	refuse_all(test, cr, conn, n - 1);
	KDT_OK(test, dat_ep_disconnect(s.h, DAT_CLOSE_ABRUPT_FLAG));
	kdt_conn(test, &s, DAT_CONNECTION_EVENT_DISCONNECTED);
	caller_event(test, conn, DAT_CONNECTION_EVENT_DISCONNECTED);
	/* longer: all of them fit */
	KDT_OK(test, dat_evd_resize(cr->h, n));
	for (i = 0; i < n; i++) {
		KDT_OK(test, dat_ep_reset(c[i].h));
		KDT_OK(test, kdt_connect(&c[i], &env->b, port));
	}
	refuse_all(test, cr, conn, n);
	KDT_REFUSED(test, DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE, dat_evd_dequeue(env->b.async, &event));
}

static struct kunit_case cases[] = {
	KD_CASE(every_combination,
		"EVD-CR-03,EVD-CR-07,EVD-UP-14,EVD-SE-02,CTX-04,FLUSH-06..07,FLUSH-10: all"),
	KD_CASE(requests, "EVD-OVF-05,PSP-02,CONN-10: as many requests wait as the EVD is long"),
	{}
};

struct kunit_suite kdt_evd_suite = { .name = "kdtest-evd", KDT_CASES };
