// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Streams that share an EVD: every combination of them under every policy, the
 * contexts upcalls run in, and the order on an EVD that carries everything.
 */
#include <linux/bits.h>
#include <linux/completion.h>
#include <linux/mutex.h>

#include "kdtest.h"

#define FLAGS_CQ	(DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG)
#define FLAGS_ALL	(DAT_EVD_DEFAULT_FLAG | DAT_EVD_SOFTWARE_FLAG)
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

/* What came out of an EVD so far. */
struct feed {
	struct kdt_evd *evd;
	bool ordered;			/* one event after the other */
	bool conn;			/* it carries the connection events of its EP, too */
	unsigned int n[KINDS], flushed_at_end;
	DAT_CR_HANDLE cr;
	DAT_HANDLE async;
	const char *wrong;
};

static void feed_init(struct feed *f, struct kdt_evd *evd, int policy, bool conn)
{
	*f = (struct feed) {
		.evd = evd,
		.ordered = policy != DAT_UPCALL_MANY,
		.conn = conn,
	};
}

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

	KUNIT_ASSERT_TRUE_MSG(test, kdt_get(f->evd, &event), "no %s in time", wanted);
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
	KUNIT_EXPECT_EQ_MSG(test, f->n[k], n, "%s", kinds[k]);
}

/*
 * What is to be freed in the end. Each of these waits for a grace period, so
 * many at a time are as fast as one.
 */
struct grave {
	DAT_HANDLE h;
	DAT_HANDLE_TYPE type;
	DAT_RETURN ret;
};

#define GRAVES		(63 * 4)
#define DIGGERS		6

struct graveyard {
	struct grave grave[GRAVES];
	int count;
	atomic_t next, left;
	struct completion done;
};

static void grave_add(struct graveyard *y, DAT_HANDLE h, DAT_HANDLE_TYPE type)
{
	if (!WARN_ON(y->count == GRAVES))
		y->grave[y->count++] = (struct grave) { .h = h, .type = type };
}

static int dig(void *data)
{
	struct graveyard *y = data;
	struct grave *g;
	int i;

	while ((i = atomic_inc_return(&y->next) - 1) < y->count) {
		g = &y->grave[i];
		if (g->type == DAT_HANDLE_TYPE_EP)
			g->ret = dat_ep_free(g->h);
		else if (g->type == DAT_HANDLE_TYPE_PSP)
			g->ret = dat_psp_free(g->h);
		else if (g->type == DAT_HANDLE_TYPE_IA)
			g->ret = dat_ia_close(g->h, DAT_CLOSE_ABRUPT_FLAG);
		else
			g->ret = dat_evd_free(g->h);
	}
	if (atomic_dec_and_test(&y->left))
		complete(&y->done);
	return kdt_until_stopped();
}

static void bury(struct kunit *test, struct graveyard *y)
{
	struct task_struct *task[DIGGERS];
	int i;

	atomic_set(&y->next, 0);
	atomic_set(&y->left, DIGGERS);
	init_completion(&y->done);
	for (i = 0; i < DIGGERS; i++)
		task[i] = kdt_beside(test, dig, y);
	wait_for_completion(&y->done);
	for (i = 0; i < DIGGERS; i++)
		kdt_stop(test, task[i]);
	for (i = 0; i < y->count; i++)
		KUNIT_EXPECT_TRUE_MSG(test, y->grave[i].ret == DAT_SUCCESS, "type %d: 0x%08x",
				      y->grave[i].type, y->grave[i].ret);
	y->count = 0;
}

/* One end of a connection: two EVDs in question, and some for the other streams. */
struct side {
	struct kdt_ia *ia;
	struct kdt_evd *recv, *req, *conn, *cr;
	struct kdt_buf *buf;
	struct feed own[2], other[4];
	struct feed *f_recv, *f_req, *f_conn, *f_cr;
};

/* What one combination leaves behind. */
struct used {
	int flags, policy;
	struct kdt_evd *evd;
};

struct merge {
	struct side c, s;
	struct used used[GRAVES];
	int count;
	struct graveyard objects, evds;
};

static struct kdt_evd *side_role(struct feed *own, int flags, int role, struct kdt_evd *evd,
				 struct feed *other, struct feed **feed)
{
	if (flags & role) {
		*feed = own;
		return own->evd;
	}
	feed_init(other, evd, DAT_UPCALL_SINGLE_INSTANCE, false);
	*feed = other;
	return evd;
}

/* An instance whose asynchronous events go to this EVD, and one such event. */
static DAT_IA_HANDLE more_async(struct kunit *test, struct kdt_ia *ia, struct kdt_evd *evd,
				DAT_SRQ_HANDLE *srq)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 4, .max_recv_iov = 1 };
	DAT_EVD_HANDLE async = evd->h;
	DAT_IA_HANDLE more;
	DAT_PZ_HANDLE pz;

	more = kdt_ia_more(test, ia, 0, &async);
	KUNIT_EXPECT_PTR_EQ(test, async, evd->h);
	KDT_OK(test, dat_pz_create(more, &pz));
	KDT_OK(test, dat_srq_create(more, pz, &attr, srq));
	KDT_OK(test, dat_srq_set_lw(*srq, 1));
	return more;
}

/* The EVDs of one side; the first one carries what the connection ends, too. */
static void side_begin(struct kunit *test, struct merge *m, struct side *s, int flags,
		       int policy, struct kdt_ep *ep)
{
	struct feed *own = s->own;
	int i;

	for (i = 0; i < 2; i++) {
		int p = policies[(policy + i) % 4];
		struct kdt_evd *evd = kdt_evd_policy(test, s->ia, flags, 16, p);

		m->used[m->count++] = (struct used) { .flags = flags, .policy = p, .evd = evd };
		grave_add(&m->evds, evd->h, DAT_HANDLE_TYPE_EVD);
		feed_init(&own[i], evd, p, !i && (flags & DAT_EVD_CONNECTION_FLAG));
		if (flags & DAT_EVD_SOFTWARE_FLAG)
			KDT_OK(test, kdt_soft(evd, 0));
		else
			KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG1,
				    kdt_soft(evd, 0));
	}
	/* which of the two queues shares an EVD with the connection changes */
	i = policy & 1;
	ep->recv = side_role(&own[i], flags, DAT_EVD_DTO_FLAG, s->recv, &s->other[0], &s->f_recv);
	ep->req = side_role(&own[!i], flags, DAT_EVD_DTO_FLAG, s->req, &s->other[1], &s->f_req);
	ep->conn = side_role(&own[0], flags, DAT_EVD_CONNECTION_FLAG, s->conn, &s->other[2],
			     &s->f_conn);
}

static void side_end(struct kunit *test, struct side *s, int flags)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (flags & DAT_EVD_SOFTWARE_FLAG) {
			KDT_OK(test, kdt_soft(s->own[i].evd, 1));
			feed_until(test, &s->own[i], SOFTS, 2);
		}
		KUNIT_EXPECT_TRUE_MSG(test, !s->own[i].wrong, "flags 0x%x, EVD %d: %s", flags, i,
				      s->own[i].wrong);
	}
}

/* Its own upcalls, in its own context. */
static void used_check(struct kunit *test, const struct used *u)
{
	bool softirq = !(u->flags & ~FLAGS_CQ);
	const struct kdt_evd *evd = u->evd;

	KUNIT_EXPECT_EQ(test, kdt_queued(u->evd), 0);
	if (u->policy == DAT_UPCALL_DISABLE) {
		KUNIT_EXPECT_EQ(test, evd->entered, 0);
	} else if (evd->entered) {
		KUNIT_EXPECT_EQ_MSG(test, evd->softirq, softirq, "flags 0x%x", u->flags);
		KUNIT_EXPECT_EQ_MSG(test, evd->process, !softirq, "flags 0x%x", u->flags);
	}
	if (u->policy != DAT_UPCALL_MANY || softirq)
		KUNIT_EXPECT_LE(test, evd->max_running, 1);
}

static void side_messages(struct kunit *test, struct kdt_ep *ep, struct side *s)
{
	int i;

	for (i = 0; i < MESSAGES; i++)
		KDT_OK(test, kdt_send(ep, s->buf, 0, SIZE, i, 0));
}

/* A connection with messages both ways, through these EVDs. */
static void merge_connection(struct kunit *test, struct merge *m, const struct kdt_pair *evds)
{
	struct kdt_pair *pair = kdt_pair_with(test, evds, NULL, NULL);
	struct side *c = &m->c, *s = &m->s;
	int i;

	grave_add(&m->objects, pair->c.h, DAT_HANDLE_TYPE_EP);
	grave_add(&m->objects, pair->s.h, DAT_HANDLE_TYPE_EP);
	grave_add(&m->objects, pair->psp, DAT_HANDLE_TYPE_PSP);
	for (i = 0; i < MESSAGES + SPARE; i++) {
		KDT_OK(test, kdt_recv(&pair->c, c->buf, SIZE, SIZE, i));
		KDT_OK(test, kdt_recv(&pair->s, s->buf, SIZE, SIZE, i));
	}
	KDT_OK(test, kdt_connect(&pair->c, s->ia, pair->port));
	feed_until(test, s->f_cr, REQUESTS, 1);
	KDT_OK(test, dat_cr_accept(s->f_cr->cr, pair->s.h, 0, NULL));
	feed_until(test, c->f_conn, ESTABLISHED, 1);
	side_messages(test, &pair->c, c);
	feed_until(test, s->f_conn, ESTABLISHED, 1);
	side_messages(test, &pair->s, s);
	feed_until(test, c->f_recv, RECEIVED, MESSAGES);
	feed_until(test, s->f_recv, RECEIVED, MESSAGES);
	feed_until(test, c->f_req, SENT, MESSAGES);
	feed_until(test, s->f_req, SENT, MESSAGES);
	KDT_OK(test, dat_ep_disconnect(pair->c.h, DAT_CLOSE_ABRUPT_FLAG));
	feed_until(test, c->f_conn, ENDED, 1);
	feed_until(test, s->f_conn, ENDED, 1);
	feed_until(test, c->f_recv, FLUSHED, SPARE);
	feed_until(test, s->f_recv, FLUSHED, SPARE);
}

static void use_flags(struct kunit *test, struct merge *m, int flags, int turn)
{
	struct side *c = &m->c, *s = &m->s;
	DAT_SRQ_HANDLE srq = DAT_HANDLE_NULL;
	struct kdt_pair evds = {};
	struct feed *async = NULL;

	side_begin(test, m, s, flags, turn, &evds.s);
	side_begin(test, m, c, flags, turn + 2, &evds.c);
	evds.cr = side_role(&s->own[1], flags, DAT_EVD_CR_FLAG, s->cr, &s->other[3], &s->f_cr);
	if (flags & DAT_EVD_ASYNC_FLAG) {
		struct side *side = turn & 4 ? c : s;
		DAT_IA_HANDLE more;

		async = &side->own[turn >> 3 & 1];
		more = more_async(test, side->ia, async->evd, &srq);
		KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE,
			    dat_evd_free(async->evd->h));
		grave_add(&m->objects, more, DAT_HANDLE_TYPE_IA);
	}
	if (flags & (DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG | DAT_EVD_CR_FLAG))
		merge_connection(test, m, &evds);
	side_end(test, c, flags);
	side_end(test, s, flags);
	if (async) {
		feed_until(test, async, ASYNCS, 1);
		KUNIT_EXPECT_PTR_EQ(test, async->async, srq);
	}
}

static void side_new(struct kunit *test, struct kdt_ia *ia, struct side *s)
{
	s->ia = ia;
	s->recv = kdt_evd_new(test, ia, DAT_EVD_DTO_FLAG);
	s->req = kdt_evd_new(test, ia, DAT_EVD_DTO_FLAG);
	s->conn = kdt_evd_new(test, ia, DAT_EVD_CONNECTION_FLAG);
	s->cr = kdt_evd_new(test, ia, DAT_EVD_CR_FLAG);
	s->buf = kdt_buf_new(test, ia, 2 * SIZE);
}

/* All 63 combinations, each under all four policies: four EVDs a connection. */
static void every_combination(struct kunit *test)
{
	struct merge *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	struct kdt_env *env = kdt_env(test);
	int i, j, flags;

	KUNIT_ASSERT_NOT_NULL(test, m);
	side_new(test, &env->a, &m->c);
	side_new(test, &env->b, &m->s);
	for (i = 1; i < BIT(ARRAY_SIZE(streams)); i++) {
		flags = 0;
		for (j = 0; j < ARRAY_SIZE(streams); j++)
			flags |= i & BIT(j) ? streams[j] : 0;
		use_flags(test, m, flags, i);
		if (i % KDT_MORE_IAS && i != 63)
			continue;
		bury(test, &m->objects);
		memset(env->more, 0, sizeof(env->more));	/* closed there */
	}
	bury(test, &m->evds);
	for (i = 0; i < m->count; i++)
		used_check(test, &m->used[i]);
}

/* What an EVD is not made for, it is not fed with. */
static void wrong_stream(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_ia *b = &env->b;
	struct kdt_evd *no_dto = kdt_evd_new(test, b, FLAGS_ALL & ~DAT_EVD_DTO_FLAG);
	struct kdt_evd *no_conn = kdt_evd_new(test, b, FLAGS_ALL & ~DAT_EVD_CONNECTION_FLAG);
	struct kdt_evd *no_cr = kdt_evd_new(test, b, FLAGS_ALL & ~DAT_EVD_CR_FLAG);
	struct kdt_evd *no_async = kdt_evd_new(test, b, FLAGS_ALL & ~DAT_EVD_ASYNC_FLAG);
	struct kdt_evd *no_soft = kdt_evd_new(test, b, DAT_EVD_DEFAULT_FLAG);
	struct kdt_evd *all = kdt_evd_new(test, b, FLAGS_ALL);
	DAT_EVD_HANDLE async = no_async->h;
	DAT_EVENT event = { .event_number = DAT_DTO_COMPLETION_EVENT };
	DAT_PSP_HANDLE psp;
	DAT_IA_HANDLE ia;
	DAT_EP_HANDLE ep;
	DAT_EP_ATTR attr;

	kdt_attr(env, &attr);
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_RECV,
		    dat_ep_create(b->h, b->pz, no_dto->h, all->h, all->h, &attr, &ep));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_REQUEST,
		    dat_ep_create(b->h, b->pz, all->h, no_dto->h, all->h, &attr, &ep));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CONN,
		    dat_ep_create(b->h, b->pz, all->h, all->h, no_conn->h, &attr, &ep));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CR,
		    dat_psp_create(b->h, kdt_new_port(), no_cr->h, DAT_PSP_CONSUMER_FLAG, &psp));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_ASYNC,
		    dat_ia_open((char *)b->name, 8, &async, &ia));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG1, kdt_soft(no_soft, 0));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, dat_evd_post_se(all->h, &event));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, dat_evd_post_se(all->h, NULL));
	/* FLAG-16, FLAG-17: attributes that need an EVD to themselves */
	attr.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	KDT_TYPE(test, DAT_INVALID_PARAMETER,
		 dat_ep_create(b->h, b->pz, all->h, all->h, all->h, &attr, &ep));
	attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	KDT_TYPE(test, DAT_INVALID_PARAMETER,
		 dat_ep_create(b->h, b->pz, all->h, all->h, all->h, &attr, &ep));
	KUNIT_EXPECT_EQ(test, all->entered, 0);
	KDT_OK(test, dat_evd_free(all->h));
}

/* ---- contexts ---- */

/* Blocks in the upcall until the test lets go, which only a task can. */
struct sleeper {
	struct mutex mutex;		/* the test has it */
	struct completion entered;
};

static bool sleep_hook(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct sleeper *sleeper = evd->priv;

	might_sleep();
	complete(&sleeper->entered);
	mutex_lock(&sleeper->mutex);
	mutex_unlock(&sleeper->mutex);
	return false;
}

static void workqueue_context(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_evd *evd = kdt_evd_context(test, &env->b, DAT_EVD_DTO_FLAG, 8,
					      DAT_UPCALL_SINGLE_INSTANCE,
					      KDAT_EVD_CONTEXT_WORKQUEUE);
	struct kdt_pair evds = { .s.recv = evd };
	struct kdt_pair *pair = kdt_pair_with(test, &evds, NULL, NULL);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, SIZE);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, SIZE);
	struct sleeper *sleeper = kunit_kzalloc(test, sizeof(*sleeper), GFP_KERNEL);
	bool entered;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, sleeper);
	mutex_init(&sleeper->mutex);
	init_completion(&sleeper->entered);
	kdt_pair_connect(test, pair);
	evd->priv = sleeper;
	evd->hook = sleep_hook;
	for (i = 0; i < 2 * MESSAGES; i++)
		KDT_OK(test, kdt_recv(&pair->s, to, 0, SIZE, i));
	mutex_lock(&sleeper->mutex);
	for (i = 0; i < 2 * MESSAGES; i++)
		KDT_OK(test, kdt_send(&pair->c, from, 0, SIZE, i, 0));
	entered = wait_for_completion_timeout(&sleeper->entered, KDT_WAIT);
	/* everything else goes on while it sleeps */
	for (i = 0; i < 2 * MESSAGES; i++)
		kdt_dto(test, pair->c.req, &pair->c, i, DAT_DTO_SEND, DAT_DTO_SUCCESS, SIZE);
	KUNIT_EXPECT_EQ(test, kdt_queued(evd), 0);
	mutex_unlock(&sleeper->mutex);
	KUNIT_EXPECT_TRUE(test, entered);
	for (i = 0; i < 2 * MESSAGES; i++)
		kdt_dto(test, evd, &pair->s, i, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, SIZE);
	KUNIT_EXPECT_TRUE(test, kdt_idle(evd));
	KUNIT_EXPECT_TRUE(test, evd->process);
	KUNIT_EXPECT_FALSE(test, evd->softirq);
	KUNIT_EXPECT_EQ(test, evd->max_running, 1);
	evd->hook = NULL;
	kdt_pair_down(test, pair);
}

/* Completions and software events from softirq on one EVD, in their own order. */
static void softirq_context(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_evd *evd = kdt_evd_context(test, &env->b,
					      DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG, 64,
					      DAT_UPCALL_SINGLE_INSTANCE,
					      KDAT_EVD_CONTEXT_SOFTIRQ);
	struct kdt_evd *soft = kdt_evd_context(test, &env->b, DAT_EVD_SOFTWARE_FLAG, 8,
					       DAT_UPCALL_NOTIFY, KDAT_EVD_CONTEXT_SOFTIRQ);
	struct kdt_pair evds = { .s.recv = evd, .s.req = evd };
	struct kdt_pair *pair = kdt_pair_with(test, &evds, NULL, NULL);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, SIZE);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, SIZE);
	struct feed feed;
	DAT_EVENT event;
	int i;

	feed_init(&feed, evd, DAT_UPCALL_SINGLE_INSTANCE, false);
	kdt_pair_connect(test, pair);
	for (i = 0; i < 32; i++)
		KDT_OK(test, kdt_recv(&pair->s, to, 0, SIZE, i));
	for (i = 0; i < 32; i++) {
		KDT_OK(test, kdt_send(&pair->c, from, 0, SIZE, i, 0));
		KDT_OK(test, kdt_soft(evd, i));
	}
	feed_until(test, &feed, SOFTS, 32);
	feed_until(test, &feed, RECEIVED, 32);
	KUNIT_EXPECT_TRUE_MSG(test, !feed.wrong, "%s", feed.wrong);
	KUNIT_EXPECT_TRUE(test, evd->softirq);
	KUNIT_EXPECT_FALSE(test, evd->process);
	for (i = 0; i < 8; i++) {
		KDT_OK(test, kdt_soft(soft, i));
		KUNIT_ASSERT_TRUE(test, kdt_get(soft, &event));
		KUNIT_EXPECT_EQ(test, kdt_soft_number(&event), i);
	}
	KUNIT_EXPECT_TRUE(test, soft->softirq);
	KUNIT_EXPECT_FALSE(test, soft->process);
	for (i = 0; i < 32; i++)
		kdt_dto(test, pair->c.req, &pair->c, i, DAT_DTO_SEND, DAT_DTO_SUCCESS, SIZE);
	kdt_pair_down(test, pair);
}

static void nothing(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
}

static void context_arguments(struct kunit *test)
{
	static const struct {
		int flags, context, vector, arg;
	} rows[] = {
		{ DAT_EVD_DTO_FLAG, KDAT_EVD_CONTEXT_DEFAULT, KDAT_EVD_VECTOR_ANY, 0 },
		{ DAT_EVD_DTO_FLAG, KDAT_EVD_CONTEXT_DEFAULT, 0, 0 },
		{ DAT_EVD_DTO_FLAG, KDAT_EVD_CONTEXT_DEFAULT, 1, 0 },
		{ DAT_EVD_DTO_FLAG, KDAT_EVD_CONTEXT_DEFAULT, 1000000, 0 },
		{ DAT_EVD_DTO_FLAG, KDAT_EVD_CONTEXT_DEFAULT, INT_MAX, 0 },
		{ DAT_EVD_DTO_FLAG, KDAT_EVD_CONTEXT_DEFAULT, -2, 6 },
		{ DAT_EVD_DTO_FLAG, KDAT_EVD_CONTEXT_DEFAULT, INT_MIN, 6 },
		{ DAT_EVD_CR_FLAG, KDAT_EVD_CONTEXT_DEFAULT, -2, 6 },
		{ DAT_EVD_DTO_FLAG, KDAT_EVD_CONTEXT_WORKQUEUE + 1, KDAT_EVD_VECTOR_ANY, 6 },
		{ DAT_EVD_DTO_FLAG, -1, KDAT_EVD_VECTOR_ANY, 6 },
		{ FLAGS_CQ | DAT_EVD_SOFTWARE_FLAG, KDAT_EVD_CONTEXT_SOFTIRQ, 3, 0 },
		{ DAT_EVD_SOFTWARE_FLAG, KDAT_EVD_CONTEXT_SOFTIRQ, 0, 0 },
		{ DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG, KDAT_EVD_CONTEXT_SOFTIRQ, -1, 6 },
		{ DAT_EVD_SOFTWARE_FLAG | DAT_EVD_CR_FLAG, KDAT_EVD_CONTEXT_SOFTIRQ, -1, 6 },
		{ DAT_EVD_DTO_FLAG | DAT_EVD_ASYNC_FLAG, KDAT_EVD_CONTEXT_SOFTIRQ, -1, 6 },
		{ FLAGS_ALL, KDAT_EVD_CONTEXT_WORKQUEUE, -1, 0 },
		{ FLAGS_CQ, KDAT_EVD_CONTEXT_WORKQUEUE, 2, 0 },
	};
	DAT_UPCALL_OBJECT upcall = { .upcall_func = nothing };
	struct kdt_ia *a = &kdt_env(test)->a;
	DAT_EVD_HANDLE evd;
	int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		struct kdat_evd_attr attr = {
			.context = rows[i].context,
			.comp_vector = rows[i].vector,
		};
		DAT_RETURN want = rows[i].arg ?
			DAT_ERROR(DAT_INVALID_PARAMETER, (DAT_INVALID_ARG1 + rows[i].arg - 1)) :
			DAT_SUCCESS;
		DAT_RETURN ret = kdat_evd_create(a->h, 4, DAT_UPCALL_MANY, &upcall, rows[i].flags,
						 &attr, &evd);

		KUNIT_EXPECT_TRUE_MSG(test, ret == want, "row %d: 0x%08x, not 0x%08x", i, ret,
				      want);
		if (ret == DAT_SUCCESS)
			KDT_OK(test, dat_evd_free(evd));
	}
	KDT_OK(test, kdat_evd_create(a->h, 4, DAT_UPCALL_DISABLE, NULL, FLAGS_ALL, NULL, &evd));
	KDT_OK(test, dat_evd_free(evd));
}

/* Traffic on EVDs of every completion vector. */
static void vectors(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, SIZE);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, SIZE);
	int i, cpu;

	for_each_online_cpu(cpu) {
		struct kdat_evd_attr attr = { .comp_vector = cpu };
		struct kdt_pair evds = {}, *pair;

		KDT_OK(test, kdt_evd_open_attr(env, &env->b, DAT_EVD_DTO_FLAG, 8,
					       DAT_UPCALL_SINGLE_INSTANCE, &attr, &evds.s.recv));
		KDT_OK(test, kdt_evd_open_attr(env, &env->a, DAT_EVD_DTO_FLAG, 8,
					       DAT_UPCALL_SINGLE_INSTANCE, &attr, &evds.c.req));
		pair = kdt_pair_with(test, &evds, NULL, NULL);
		kdt_pair_connect(test, pair);
		for (i = 0; i < 16; i++)
			KDT_OK(test, kdt_recv(&pair->s, to, 0, SIZE, i));
		for (i = 0; i < 16; i++)
			KDT_OK(test, kdt_send(&pair->c, from, 0, SIZE, i, 0));
		for (i = 0; i < 16; i++) {
			kdt_dto(test, pair->c.req, &pair->c, i, DAT_DTO_SEND, DAT_DTO_SUCCESS,
				SIZE);
			kdt_dto(test, pair->s.recv, &pair->s, i, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS,
				SIZE);
		}
		KUNIT_EXPECT_TRUE(test, evds.s.recv->softirq && !evds.s.recv->process);
		kdt_pair_down(test, pair);
		kdt_ep_done(test, &pair->c);
		kdt_ep_done(test, &pair->s);
	}
}

/* ---- one EVD that carries everything ---- */

struct whole {
	int policy;
	struct kdt_evd *evd;
	struct kdt_buf *buf;
	struct feed own;
	DAT_IA_HANDLE more;
	DAT_SRQ_HANDLE srq;
};

static void everything_once(struct kunit *test, struct kdt_pair *pair, struct whole *s,
			    struct kdt_buf *from, bool graceful)
{
	unsigned int answers = graceful ? MESSAGES : 0;
	struct feed *f = &s->own;
	int i;

	feed_init(f, s->evd, s->policy, true);
	for (i = 0; i < MESSAGES + SPARE; i++)
		KDT_OK(test, kdt_recv(&pair->s, s->buf, SIZE, SIZE, i));
	KDT_OK(test, kdt_soft(s->evd, 0));
	KDT_OK(test, kdt_connect(&pair->c, &kdt_env(test)->b, pair->port));
	KDT_OK(test, kdt_soft(s->evd, 1));
	feed_until(test, f, REQUESTS, 1);
	KDT_OK(test, dat_cr_accept(f->cr, pair->s.h, 0, NULL));
	/* as early as possible: they may arrive before the server is told */
	kdt_conn(test, &pair->c, DAT_CONNECTION_EVENT_ESTABLISHED);
	for (i = 0; i < MESSAGES; i++) {
		KDT_OK(test, kdt_send(&pair->c, from, 0, SIZE, i, 0));
		KDT_OK(test, kdt_soft(s->evd, 2 + i));
	}
	KDT_OK(test, dat_srq_set_lw(s->srq, 1));
	feed_until(test, f, ESTABLISHED, 1);
	for (i = 0; i < answers; i++) {
		KDT_OK(test, kdt_recv(&pair->c, from, SIZE, SIZE, i));
		KDT_OK(test, kdt_send(&pair->s, s->buf, 0, SIZE, i, 0));
		KDT_OK(test, kdt_soft(s->evd, 2 + MESSAGES + i));
	}
	for (i = 0; i < MESSAGES; i++)
		kdt_dto(test, pair->c.req, &pair->c, i, DAT_DTO_SEND, DAT_DTO_SUCCESS, SIZE);
	for (i = 0; i < answers; i++)
		kdt_dto(test, pair->c.recv, &pair->c, i, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, SIZE);
	/*
	 * What has arrived may still be queued when the connection ends; of its
	 * own Sends, and on iWARP of those of the peer, nobody can tell.
	 */
	feed_until(test, f, SENT, answers);
	if (pair->s.ia->iwarp && !graceful)
		feed_until(test, f, RECEIVED, MESSAGES);
	KDT_OK(test, dat_ep_disconnect(pair->c.h, graceful ? DAT_CLOSE_GRACEFUL_FLAG :
							      DAT_CLOSE_ABRUPT_FLAG));
	kdt_end(test, &pair->c);
	feed_until(test, f, ENDED, 1);
	feed_until(test, f, SOFTS, 2 + MESSAGES + answers);
	feed_until(test, f, ASYNCS, 1);
	feed_until(test, f, RECEIVED, MESSAGES);
	feed_until(test, f, FLUSHED, SPARE);
	if (f->ordered)		/* the end comes last */
		KUNIT_EXPECT_EQ(test, f->flushed_at_end, SPARE);
	KUNIT_EXPECT_TRUE_MSG(test, !f->wrong, "policy %d: %s", s->policy, f->wrong);
	KDT_OK(test, dat_ep_reset(pair->c.h));
	KDT_OK(test, dat_ep_reset(pair->s.h));
}

static void everything(struct kunit *test)
{
	struct whole *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);
	struct kdt_env *env = kdt_env(test);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, 2 * SIZE);
	struct kdt_pair evds = {}, *pair;
	DAT_EVENT event;
	int i, round;

	KUNIT_ASSERT_NOT_NULL(test, s);
	s->buf = kdt_buf_new(test, &env->b, 2 * SIZE);
	for (i = 0; i < ARRAY_SIZE(policies); i++) {
		s->policy = policies[i];
		s->evd = kdt_evd_policy(test, &env->b, FLAGS_ALL, 64, s->policy);
		evds.s.recv = s->evd;
		evds.s.req = s->evd;
		evds.s.conn = s->evd;
		evds.cr = s->evd;
		pair = kdt_pair_with(test, &evds, NULL, NULL);
		s->more = more_async(test, &env->b, s->evd, &s->srq);
		/* the SRQ is empty when it is made: that is one event for each arming */
		feed_init(&s->own, s->evd, s->policy, false);
		feed_until(test, &s->own, ASYNCS, 1);
		for (round = 0; round < 3; round++)
			everything_once(test, pair, s, from, round & 1);
		KDT_REFUSED(test, DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE,
			    dat_evd_dequeue(s->evd->h, &event));
		KUNIT_EXPECT_EQ(test, kdt_queued(s->evd), 0);
		if (s->policy != DAT_UPCALL_MANY)
			KUNIT_EXPECT_LE(test, s->evd->max_running, 1);
		KUNIT_EXPECT_FALSE(test, s->evd->softirq);
		kdt_ia_less(test, s->more);
		KDT_OK(test, dat_psp_free(pair->psp));
		KDT_OK(test, dat_ep_free(pair->c.h));
		KDT_OK(test, dat_ep_free(pair->s.h));
		KDT_OK(test, dat_evd_free(s->evd->h));
	}
}

static struct kunit_case cases[] = {
	KD_CASE(every_combination,
		"EVD-CR-03,EVD-CR-07,EVD-UP-02,EVD-UP-14,CTX-04: all mixtures, all policies"),
	KD_CASE(wrong_stream, "EVD-CR-08,EVD-SE-01,FLAG-16,FLAG-17: what it is not made for"),
	KD_CASE(context_arguments, "EVD-CR-01,CTX-04: contexts and vectors that can be asked for"),
	KD_CASE(workqueue_context, "EVD-UP-11,CTX-04: completions whose upcall really sleeps"),
	KD_CASE(softirq_context, "EVD-SE-03,EVD-SE-04,CTX-04: software events in softirq"),
	KD_CASE(vectors, "EVD-DQ-04,CTX-04: traffic on each completion vector"),
	KD_CASE(everything,
		"FLUSH-06,FLUSH-07,FLUSH-10,EVD-CR-07,EVD-SE-02: one EVD for everything"),
	{}
};

struct kunit_suite kdt_merge_suite = {
	.name = "kdtest-merge",
	.init = kdt_init,
	.exit = kdt_exit,
	.test_cases = cases,
};
