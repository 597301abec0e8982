// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Adapters closed and EVDs freed in the middle of everything and inside of upcalls: what
 * is free is never called again, and nobody waits for ever.
 */
#include "kdtest_conn.h"

#define SIZE	64

static const struct {
	int policy;
	enum kdat_evd_context context;
} engines[] = {
	{ DAT_UPCALL_SINGLE_INSTANCE, KDAT_EVD_CONTEXT_SOFTIRQ },
	{ DAT_UPCALL_NOTIFY, KDAT_EVD_CONTEXT_SOFTIRQ },
	{ DAT_UPCALL_SINGLE_INSTANCE, KDAT_EVD_CONTEXT_WORKQUEUE },
	{ DAT_UPCALL_NOTIFY, KDAT_EVD_CONTEXT_WORKQUEUE },
	{ DAT_UPCALL_MANY, KDAT_EVD_CONTEXT_WORKQUEUE },
	{ DAT_UPCALL_DISABLE, KDAT_EVD_CONTEXT_DEFAULT },
};

#define ENGINES		((int)ARRAY_SIZE(engines))
#define CALLING		(ENGINES - 1)	/* those with upcalls */

/* What was promised: none runs, none starts. */
static void silence(struct kunit *test, struct kdt_evd *evd)
{
	unsigned int entered = READ_ONCE(evd->entered);

	KUNIT_EXPECT_EQ(test, atomic_read(&evd->running), 0);
	schedule_timeout_uninterruptible(1);
	KUNIT_EXPECT_EQ(test, READ_ONCE(evd->entered), entered);
}

/* ---- adapters closed ---- */

struct traffic {
	struct kdt_ep *ep;
	struct kdt_buf *buf;
};

/* Keeps the ball in the air until the connection ends. */
static bool bounce(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct traffic *t = evd->priv;

	if (event->event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS) {
		kdt_recv(t->ep, t->buf, 0, 1024, 0);
		kdt_send(t->ep, t->buf, 1024, 1024, 0, DAT_COMPLETION_SUPPRESS_FLAG);
	}
	return true;
}

static void start(struct kunit *test, struct kdt_ep *ep, struct traffic *t)
{
	int i;

	t->ep = ep;
	t->buf = kdt_buf_new(test, ep->ia, 2048);
	ep->recv->priv = t;
	ep->recv->hook = bounce;
	for (i = 0; i < 8; i++)
		KDT_OK(test, kdt_recv(ep, t->buf, 0, 1024, 0));
}

/* A pair for each kind of upcall. */
static void with_traffic(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct traffic *t = kdt_zalloc(test, 2 * ENGINES * sizeof(*t));
	struct kdt_pair *pair[ENGINES];
	int i, j;

	for (i = 0; i < ENGINES; i++) {
		struct kdt_pair evds = {
			.c.recv = kdt_evd_context(test, &env->a, DAT_EVD_DTO_FLAG, 64,
						  engines[i].policy, engines[i].context),
		};

		pair[i] = kdt_pair_with(test, &evds, NULL, NULL);
		start(test, &pair[i]->c, &t[i]);
		start(test, &pair[i]->s, &t[ENGINES + i]);
		kdt_pair_connect(test, pair[i]);
		for (j = 0; j < 4; j++)
			KDT_OK(test, kdt_send(&pair[i]->c, t[i].buf, 1024, 1024, 0,
					      DAT_COMPLETION_SUPPRESS_FLAG));
	}
	/* In full swing. */
	for (i = 0; i < CALLING; i++)
		KUNIT_ASSERT_TRUE(test, wait_event_timeout(pair[i]->c.recv->wait,
							   READ_ONCE(pair[i]->c.recv->entered) > 50,
							   KDT_WAIT));
	KDT_OK(test, dat_ia_close(env->a.h, DAT_CLOSE_ABRUPT_FLAG));
	for (i = 0; i < ENGINES; i++) {
		silence(test, pair[i]->c.recv);
		KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
			    dat_ep_free(pair[i]->c.h));
	}
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA,
		    dat_ia_close(env->a.h, DAT_CLOSE_ABRUPT_FLAG));
	env->a.h = DAT_HANDLE_NULL;
	/* The other side has lost its connections and nothing else. */
	for (i = 0; i < ENGINES; i++) {
		kdt_end(test, &pair[i]->s);
		KDT_OK(test, dat_ep_reset(pair[i]->s.h));
		KDT_OK(test, dat_ep_free(pair[i]->s.h));
		KUNIT_EXPECT_EQ(test, kdt_queued(pair[i]->s.conn), 0);
	}
}

/* Two requests unanswered, one with an EP of its own; an attempt half way; one that begins. */
static void while_connecting(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_scene *t[4];
	DAT_CR_HANDLE cr[3];
	struct kdt_ep made;
	int i;

	kdt_listener_goes(test, &env->b);
	for (i = 0; i < 4; i++) {
		t[i] = kdt_scene_new(test);
		kdt_scene_listen(test, t[i], i == 1 ? KDT_PSP_PROVIDER : KDT_PSP);
		if (i < 3)
			cr[i] = kdt_call(test, &t[i]->c, &env->b, t[i]->port, t[i]->cr).cr_handle;
	}
	kdt_ep_from(test, &made, &env->b, cr[1]);
	KDT_OK(test, dat_cr_accept(cr[2], t[2]->s.h, 0, NULL));
	KDT_OK(test, kdt_connect(&t[3]->c, &env->b, t[3]->port));
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_IA_IN_USE,
		    dat_ia_close(env->b.h, DAT_CLOSE_GRACEFUL_FLAG));
	KDT_OK(test, dat_ia_close(env->b.h, DAT_CLOSE_ABRUPT_FLAG));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP, dat_ep_free(made.h));
	for (i = 0; i < 2; i++) {
		KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR,
			    dat_cr_reject(cr[i], 0, NULL));
		kdt_turned_down(test, &t[i]->c);
	}
	KDT_OK(test, dat_ia_close(env->a.h, DAT_CLOSE_ABRUPT_FLAG));
	env->a.h = DAT_HANDLE_NULL;
	env->b.h = DAT_HANDLE_NULL;
}

/* What an upcall tries, @other and @evd only where it may sleep. */
struct closer {
	DAT_IA_HANDLE own, other;
	struct kdt_evd *evd;
	DAT_RETURN abrupt, graceful, closed, freed, own_evd;
};

static bool close_hook(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct closer *c = evd->priv;

	c->abrupt = dat_ia_close(c->own, DAT_CLOSE_ABRUPT_FLAG);
	c->graceful = dat_ia_close(c->own, DAT_CLOSE_GRACEFUL_FLAG);
	c->own_evd = dat_evd_free(evd->h);
	if (c->other)
		c->closed = dat_ia_close(c->other, DAT_CLOSE_ABRUPT_FLAG) ?:
			    dat_evd_free(c->evd->h);
	return false;
}

/* Not the instance the upcall belongs to, nor its EVD, but any other. */
static void in_upcall(struct kunit *test)
{
	struct kdt_ia *b = &kdt_env(test)->b;
	struct closer *c = kdt_zalloc(test, sizeof(*c));
	struct kdt_evd *evd;
	DAT_EVENT event;
	int i;

	for (i = 0; i < CALLING; i++) {
		DAT_EVD_HANDLE async = DAT_HANDLE_NULL;

		kdt_row(test, "kind %d", i);
		evd = kdt_evd_context(test, b, DAT_EVD_SOFTWARE_FLAG, 8, engines[i].policy,
				      engines[i].context);
		*c = (struct closer) { .own = b->h };
		if (engines[i].context == KDAT_EVD_CONTEXT_WORKQUEUE) {
			KDT_OK(test, dat_ia_open((char *)b->name, 8, &async, &c->other));
			c->evd = kdt_evd_new(test, b, DAT_EVD_SOFTWARE_FLAG);
		}
		evd->priv = c;
		evd->hook = close_hook;
		KDT_OK(test, kdt_soft(evd, 0));
		KUNIT_ASSERT_TRUE(test, kdt_get(evd, &event));
		KDT_TYPE(test, DAT_INVALID_STATE, c->abrupt);
		KDT_TYPE(test, DAT_INVALID_STATE, c->graceful);
		KDT_TYPE(test, DAT_INVALID_STATE, c->own_evd);
		KDT_OK(test, c->closed);
		if (c->evd)
			KDT_TYPE(test, DAT_INVALID_HANDLE, kdt_soft(c->evd, 0));
	}
}

/* An upcall that sleeps until it is let go. */
struct sleeper {
	struct completion entered, leave;
	bool done;
};

static bool sleep_hook(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct sleeper *s = evd->priv;

	complete(&s->entered);
	wait_for_completion_timeout(&s->leave, KDT_WAIT);
	WRITE_ONCE(s->done, true);
	return true;
}

static int leave_soon(void *data)
{
	struct sleeper *s = data;

	schedule_timeout_uninterruptible(HZ / 10);	/* the waiter's chance to be wrong */
	complete_all(&s->leave);
	return kdt_until_stopped();
}

static void waits(struct kunit *test)
{
	struct kdt_ia *more = kdt_zalloc(test, sizeof(*more)), *b = &kdt_env(test)->b;
	struct task_struct *task;
	struct sleeper *s = kdt_zalloc(test, sizeof(*s));
	struct kdt_evd *evd;
	int i;

	for (i = 0; i < CALLING; i++) {
		DAT_EVD_HANDLE async = DAT_HANDLE_NULL;

		if (engines[i].context != KDAT_EVD_CONTEXT_WORKQUEUE)
			continue;
		memcpy(more, b, sizeof(*more));
		more->h = kdt_ia_more(test, b, 8, &async);
		evd = kdt_evd_context(test, more, DAT_EVD_SOFTWARE_FLAG, 8, engines[i].policy,
				      engines[i].context);
		evd->ia = b;	/* which lives longer */
		init_completion(&s->entered);
		init_completion(&s->leave);
		s->done = false;
		evd->priv = s;
		evd->hook = sleep_hook;
		KDT_OK(test, kdt_soft(evd, 0));
		KUNIT_ASSERT_TRUE(test, wait_for_completion_timeout(&s->entered, KDT_WAIT));
		KUNIT_EXPECT_FALSE(test, READ_ONCE(s->done));
		task = kdt_beside(test, leave_soon, s);
		kdt_ia_less(test, more->h);
		KUNIT_EXPECT_TRUE(test, READ_ONCE(s->done));
		kdt_stop(test, task);
		silence(test, evd);
	}
}

/* ---- what nobody has looked at ---- */

static void never_dequeued(struct kunit *test, bool close)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, SIZE);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, SIZE);
	struct kdt_pair evds = {
		.s.recv = kdt_evd_policy(test, &env->b, DAT_EVD_DTO_FLAG, 1, DAT_UPCALL_DISABLE),
		.s.req = kdt_evd_policy(test, &env->b, DAT_EVD_DTO_FLAG, 1, DAT_UPCALL_DISABLE),
		.s.conn = kdt_evd_policy(test, &env->b, DAT_EVD_CONNECTION_FLAG, 1,
					 DAT_UPCALL_DISABLE),
	};
	struct kdt_pair *pair = kdt_pair_with(test, &evds, NULL, NULL);
	int i, n = 0;
	DAT_EVENT event;

	/* both ends send until the server takes no more Receives: nobody looks at its events */
	KDT_OK(test, dat_cr_accept(kdt_pair_request(test, pair), pair->s.h, 0, NULL));
	kdt_conn(test, &pair->c, DAT_CONNECTION_EVENT_ESTABLISHED);
	for (i = 0; i < 32; i++)
		KDT_OK(test, kdt_recv(&pair->c, from, 0, SIZE, i));
	KUNIT_ASSERT_TRUE(test, kdt_until(kdt_state(pair->s.h) == DAT_EP_STATE_CONNECTED));
	for (i = 0; i < 32; i++)
		KDT_OK(test, kdt_send(&pair->s, to, 0, SIZE, i, 0));
	while (n < 4 * KDT_DTOS && kdt_recv(&pair->s, to, 0, SIZE, n) == DAT_SUCCESS) {
		KDT_OK(test, kdt_send(&pair->c, from, 0, SIZE, n, 0));
		kdt_sent(test, &pair->c, n, DAT_DTO_SEND, SIZE);
		n++;
	}
	KUNIT_EXPECT_GE(test, n, KDT_DTOS);
	if (close) {
		KDT_OK(test, dat_ia_close(env->b.h, DAT_CLOSE_ABRUPT_FLAG));
		env->b.h = DAT_HANDLE_NULL;
	} else {
		KDT_OK(test, dat_ep_free(pair->s.h));
	}
	/* a disconnect may be lost: then this finds out */
	kdt_send(&pair->c, from, 0, SIZE, 0, DAT_COMPLETION_SUPPRESS_FLAG);
	kdt_end(test, &pair->c);
	if (close)
		return;
	/* what is left of it is no completion of an EP that is gone */
	KUNIT_EXPECT_TRUE(test, dat_evd_dequeue(evds.s.recv->h, &event) != DAT_SUCCESS ||
			  event.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS);
	KDT_OK(test, dat_evd_free(evds.s.recv->h));
	KDT_OK(test, dat_evd_free(evds.s.req->h));
	KDT_OK(test, dat_evd_free(evds.s.conn->h));
}

static void nobody_dequeues(struct kunit *test)
{
	never_dequeued(test, false);
	never_dequeued(test, true);
}

/* EVDs freed with events in them: what fed them lives on. */
static void freed_with_events(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair evds = {
		.s.conn = kdt_evd_policy(test, &env->b, DAT_EVD_CONNECTION_FLAG |
					 DAT_EVD_SOFTWARE_FLAG, 8, DAT_UPCALL_DISABLE),
		.cr = kdt_evd_policy(test, &env->b, DAT_EVD_CR_FLAG, 4, DAT_UPCALL_DISABLE),
	};
	struct kdt_pair *pair = kdt_pair_with(test, &evds, NULL, NULL);
	struct kdt_scene *t = kdt_scene_new(test);
	DAT_EP_PARAM param = { .connect_evd_handle = t->s.conn->h };
	DAT_CR_PARAM cr_param;
	DAT_CR_HANDLE cr;

	kdt_listener_goes(test, &env->b);
	/* one request is taken, another one, there or not, is lost with the EVD */
	cr = kdt_pair_request(test, pair);
	KDT_OK(test, kdt_connect(&t->c, &env->b, pair->port));
	KDT_OK(test, dat_psp_free(pair->psp));
	KDT_OK(test, dat_evd_free(pair->cr->h));
	KDT_OK(test, dat_cr_query(cr, DAT_CR_FIELD_ALL, &cr_param));
	KUNIT_EXPECT_TRUE(test, kdt_same_address(cr_param.remote_ia_address_ptr, &env->a));
	KDT_OK(test, dat_cr_accept(cr, pair->s.h, 0, NULL));
	kdt_conn(test, &pair->c, DAT_CONNECTION_EVENT_ESTABLISHED);
	KUNIT_EXPECT_TRUE(test, kdt_until(kdt_state(pair->s.h) == DAT_EP_STATE_CONNECTED));
	KDT_OK(test, kdt_recv(&pair->s, t->to, 0, SIZE, 5));
	kdt_say(test, &pair->c, t->from, &pair->s, 5);
	/* what nobody has looked at is lost with its EVD; the EP goes on with another one */
	KDT_OK(test, kdt_soft(evds.s.conn, 1));
	KDT_OK(test, dat_ep_disconnect(pair->c.h, DAT_CLOSE_ABRUPT_FLAG));
	kdt_end(test, &pair->c);
	KUNIT_EXPECT_TRUE(test, kdt_until(kdt_state(pair->s.h) == DAT_EP_STATE_DISCONNECTED));
	kdt_reset(test, &pair->c, &pair->s);
	KDT_OK(test, dat_ep_modify(pair->s.h, DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param));
	KDT_OK(test, dat_evd_free(evds.s.conn->h));
	pair->s.conn = t->s.conn;
	kdt_scene_listen(test, t, KDT_PSP);
	cr = kdt_call(test, &pair->c, &env->b, t->port, t->cr).cr_handle;
	kdt_accept(test, cr, pair->s.h, &pair->c, &pair->s);
	kdt_pair_down(test, pair);
	/* nobody will answer that one */
	KDT_OK(test, dat_ep_free(t->c.h));
}

static struct kunit_case cases[] = {
	KD_CASE(with_traffic, "IA-CLOSE-02,IA-CLOSE-05,IA-CLOSE-06,SIL-40: closed under traffic"),
	KD_CASE(while_connecting, "IA-CLOSE-01..02,CR-LIFE-01,CONN-10: while connections are made"),
	KD_CASE(in_upcall, "IA-CLOSE-05,EVD-FREE-03,EVD-UP-11: not by an upcall of its own"),
	KD_CASE(waits, "IA-CLOSE-05: closing waits for upcalls"),
	KD_CASE(nobody_dequeues, "EVD-OVF-06,IA-CLOSE-02,IA-CLOSE-06: a consumer that never looks"),
	KD_CASE(freed_with_events, "EVD-FREE-02,PSP-08,PSP-09: what fed it lives on"),
	{}
};

struct kunit_suite kdt_close_suite = { .name = "kdtest-close", KDT_CASES };
