// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The end of EVDs and of what feeds them, while upcalls run: what is free is
 * never called again, and nobody waits for ever.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/slab.h>

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
};

/* ---- upcalls that never stop by themselves ---- */

/* Software events, until the handle is dead. */
static int post_for_ever(void *data)
{
	struct kdt_evd *evd = data;
	unsigned long n = 0;

	while (!kthread_should_stop()) {
		DAT_RETURN ret = kdt_soft(evd, n++);

		if (DAT_GET_TYPE(ret) == DAT_INVALID_HANDLE)
			break;
		if (ret != DAT_SUCCESS || n % 64 == 0)
			schedule_timeout_uninterruptible(1);
	}
	return kdt_until_stopped();
}

static bool swallow(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	udelay(9);
	return true;
}

static void in_full_swing(struct kunit *test, struct kdt_evd *evd, unsigned int upcalls)
{
	unsigned int entered = READ_ONCE(evd->entered);

	KUNIT_ASSERT_TRUE(test, wait_event_timeout(evd->wait, READ_ONCE(evd->entered) - entered >=
						   upcalls, KDT_WAIT));
}

/* What was promised: none runs, none starts. */
static void silence(struct kunit *test, struct kdt_evd *evd)
{
	unsigned int entered = READ_ONCE(evd->entered);

	KUNIT_EXPECT_EQ(test, atomic_read(&evd->running), 0);
	schedule_timeout_uninterruptible(1);
	KUNIT_EXPECT_EQ(test, READ_ONCE(evd->entered), entered);
}

static void evd_free_in_traffic(struct kunit *test)
{
	struct kdt_ia *a = &kdt_env(test)->a;
	struct task_struct *task[2];
	struct kdt_evd *evd;
	int i, j, round;

	for (i = 0; i < ARRAY_SIZE(engines); i++) {
		for (round = 0; round < 2; round++) {
			evd = kdt_evd_context(test, a, DAT_EVD_SOFTWARE_FLAG, 32,
					      engines[i].policy, engines[i].context);
			evd->hook = swallow;
			for (j = 0; j < 2; j++)
				task[j] = kdt_beside(test, post_for_ever, evd);
			in_full_swing(test, evd, 10);
			KDT_OK(test, dat_evd_free(evd->h));
			silence(test, evd);
			KDT_TYPE(test, DAT_INVALID_HANDLE, kdt_soft(evd, 0));
			for (j = 0; j < 2; j++)
				kdt_stop(test, task[j]);
		}
	}
}

/* ---- EVDs freed in upcalls ---- */

struct freer {
	struct kdt_evd *other;
	DAT_RETURN own, others;
	bool tried;
};

static bool free_evds(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct freer *f = evd->priv;

	if (kdt_soft_number(event) != 1)
		return false;
	f->own = dat_evd_free(evd->h);
	if (f->other)
		f->others = dat_evd_free(f->other->h);
	WRITE_ONCE(f->tried, true);
	return false;
}

static void evd_free_in_upcall(struct kunit *test)
{
	struct kdt_ia *a = &kdt_env(test)->a;
	struct freer *f = kunit_kzalloc(test, sizeof(*f), GFP_KERNEL);
	struct kdt_evd *evd, *other;
	struct task_struct *task;
	DAT_EVENT event;
	int i, j;

	KUNIT_ASSERT_NOT_NULL(test, f);
	for (i = 0; i < ARRAY_SIZE(engines); i++) {
		bool softirq = engines[i].context == KDAT_EVD_CONTEXT_SOFTIRQ;

		evd = kdt_evd_context(test, a, DAT_EVD_SOFTWARE_FLAG, 8, engines[i].policy,
				      engines[i].context);
		other = kdt_evd_context(test, a, DAT_EVD_SOFTWARE_FLAG, 8,
					engines[(i + 1) % ARRAY_SIZE(engines)].policy,
					engines[(i + 1) % ARRAY_SIZE(engines)].context);
		*f = (struct freer) { .other = softirq ? NULL : other };
		evd->priv = f;
		evd->hook = free_evds;
		other->hook = swallow;
		task = kdt_beside(test, post_for_ever, other);
		in_full_swing(test, other, 5);
		for (j = 0; j < 3; j++)
			KDT_OK(test, kdt_soft(evd, j));
		for (j = 0; j < 3; j++)
			KUNIT_ASSERT_TRUE(test, kdt_get(evd, &event));
		KUNIT_EXPECT_TRUE(test, READ_ONCE(f->tried));
		KUNIT_EXPECT_TRUE(test, DAT_GET_TYPE(f->own) == DAT_INVALID_STATE);
		KUNIT_EXPECT_EQ(test, f->others, (DAT_RETURN)DAT_SUCCESS);
		if (!softirq)
			silence(test, other);
		kdt_stop(test, task);
		KDT_OK(test, dat_evd_free(evd->h));
	}
}

/* ---- EPs freed in upcalls ---- */

struct ender {
	DAT_EP_HANDLE ep;
	unsigned int at, seen;		/* the event that frees, the events so far */
	DAT_RETURN first, second;
	struct completion blocked, leave;
	bool block;			/* the first upcall waits, the second one frees */
};

static bool end_hook(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct ender *e = evd->priv;
	unsigned long flags;
	unsigned int n;

	spin_lock_irqsave(&evd->lock, flags);
	n = e->seen++;
	spin_unlock_irqrestore(&evd->lock, flags);
	if (n == 0 && e->block) {
		complete(&e->blocked);
		wait_for_completion_timeout(&e->leave, KDT_WAIT);
	}
	if (n == e->at) {
		e->first = dat_ep_free(e->ep);
		e->second = dat_ep_free(e->ep);
	}
	return true;
}

/* An EP that is on its way out still uses its EVDs, but not for ever. */
static void free_evd_soon(struct kunit *test, struct kdt_evd *evd)
{
	unsigned long end = jiffies + KDT_WAIT;
	DAT_RETURN ret;

	while ((ret = dat_evd_free(evd->h)) ==
	       DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE) &&
	       time_before(jiffies, end))
		schedule_timeout_uninterruptible(1);
	KDT_OK(test, ret);
}

enum { ROLE_RECV, ROLE_REQ, ROLE_CONN, ROLES };

static void ep_free_in(struct kunit *test, int role, int policy, enum kdat_evd_context context,
		       bool block)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, SIZE);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, SIZE);
	struct ender *e = kunit_kzalloc(test, sizeof(*e), GFP_KERNEL);
	struct kdt_evd *evd = kdt_evd_context(test, &env->b, role == ROLE_CONN ?
					      DAT_EVD_CONNECTION_FLAG : DAT_EVD_DTO_FLAG, 64,
					      policy, context);
	struct kdt_pair evds = {
		.s.recv = role == ROLE_RECV ? evd : NULL,
		.s.req = role == ROLE_REQ ? evd : NULL,
		.s.conn = role == ROLE_CONN ? evd : NULL,
	};
	struct kdt_pair *pair;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, e);
	pair = kdt_pair_with(test, &evds, NULL, NULL);
	init_completion(&e->blocked);
	init_completion(&e->leave);
	e->ep = pair->s.h;
	e->block = block;
	e->at = role == ROLE_CONN ? 0 : 3;
	e->first = DAT_ERROR(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	if (block)
		e->at = 1;
	evd->priv = e;
	evd->hook = end_hook;
	for (i = 0; i < 16; i++)
		KDT_OK(test, kdt_recv(&pair->s, to, 0, SIZE, i));
	for (i = 0; i < 16; i++)
		KDT_OK(test, kdt_recv(&pair->c, from, 0, SIZE, i));
	if (role == ROLE_CONN) {
		KDT_OK(test, dat_cr_accept(kdt_pair_request(test, pair), pair->s.h, 0, NULL));
	} else {
		kdt_pair_connect(test, pair);
		/* more than are seen: the rest must never come */
		for (i = 0; i < 10 && role == ROLE_RECV; i++)
			KDT_OK(test, kdt_send(&pair->c, from, 0, SIZE, i,
					      DAT_COMPLETION_SUPPRESS_FLAG));
		for (i = 0; i < 10 && role == ROLE_REQ; i++)
			if (kdt_send(&pair->s, to, 0, SIZE, i, 0) != DAT_SUCCESS)
				break;	/* it has been freed already */
	}
	if (role == ROLE_CONN)
		kdt_conn(test, &pair->c, DAT_CONNECTION_EVENT_ESTABLISHED);
	kdt_end(test, &pair->c);
	KUNIT_EXPECT_EQ(test, e->first, (DAT_RETURN)DAT_SUCCESS);
	complete_all(&e->leave);
	KDT_TYPE(test, DAT_INVALID_HANDLE, dat_ep_free(pair->s.h));
	free_evd_soon(test, evd);
	silence(test, evd);
	KUNIT_EXPECT_TRUE(test, DAT_GET_TYPE(e->second) == DAT_INVALID_HANDLE);
	if (policy != DAT_UPCALL_MANY)
		KUNIT_EXPECT_EQ(test, e->seen, e->at + 1);
	KDT_OK(test, dat_psp_free(pair->psp));
}

static void ep_free_in_upcall(struct kunit *test)
{
	ep_free_in(test, ROLE_RECV, DAT_UPCALL_SINGLE_INSTANCE, KDAT_EVD_CONTEXT_SOFTIRQ, false);
	ep_free_in(test, ROLE_REQ, DAT_UPCALL_SINGLE_INSTANCE, KDAT_EVD_CONTEXT_SOFTIRQ, false);
	ep_free_in(test, ROLE_RECV, DAT_UPCALL_NOTIFY, KDAT_EVD_CONTEXT_SOFTIRQ, false);
	ep_free_in(test, ROLE_CONN, DAT_UPCALL_SINGLE_INSTANCE, KDAT_EVD_CONTEXT_DEFAULT, false);
	ep_free_in(test, ROLE_CONN, DAT_UPCALL_MANY, KDAT_EVD_CONTEXT_DEFAULT, false);
	ep_free_in(test, ROLE_RECV, DAT_UPCALL_SINGLE_INSTANCE, KDAT_EVD_CONTEXT_WORKQUEUE, false);
	ep_free_in(test, ROLE_REQ, DAT_UPCALL_NOTIFY, KDAT_EVD_CONTEXT_WORKQUEUE, false);
	ep_free_in(test, ROLE_REQ, DAT_UPCALL_MANY, KDAT_EVD_CONTEXT_WORKQUEUE, false);
}

/* One upcall has an event of the EP in hand and sleeps, another one frees the EP. */
static void ep_free_beside(struct kunit *test)
{
	if (num_online_cpus() < 2)
		kunit_skip(test, "one upcall for each CPU, and there is one CPU");
	ep_free_in(test, ROLE_RECV, DAT_UPCALL_MANY, KDAT_EVD_CONTEXT_WORKQUEUE, true);
	ep_free_in(test, ROLE_REQ, DAT_UPCALL_MANY, KDAT_EVD_CONTEXT_WORKQUEUE, true);
}

/* ---- who frees waits for upcalls that sleep ---- */

static struct task_struct *blocked(struct kunit *test, struct kdt_blocker *b)
{
	KUNIT_ASSERT_TRUE(test, wait_for_completion_timeout(&b->entered, KDT_WAIT));
	KUNIT_EXPECT_FALSE(test, READ_ONCE(b->done));
	return kdt_beside(test, kdt_leave_soon, b);
}

static void unblocked(struct kunit *test, struct kdt_blocker *b, struct task_struct *task)
{
	KUNIT_EXPECT_TRUE(test, READ_ONCE(b->done));
	kdt_stop(test, task);
}

static void frees_wait_for(struct kunit *test, int policy)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_evd *evd = kdt_evd_policy(test, &env->b, DAT_EVD_SOFTWARE_FLAG, 8, policy);
	struct kdt_blocker *b = kdt_block(test, evd, true);
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	struct task_struct *task;
	struct kdt_ia *more = kunit_kmalloc(test, sizeof(*more), GFP_KERNEL);

	KDT_OK(test, kdt_soft(evd, 0));
	KDT_OK(test, kdt_soft(evd, 1));
	task = blocked(test, b);
	KDT_OK(test, dat_evd_free(evd->h));
	unblocked(test, b, task);
	silence(test, evd);

	KUNIT_ASSERT_NOT_NULL(test, more);
	memcpy(more, &env->b, sizeof(*more));
	more->h = kdt_ia_more(test, &env->b, 8, &async);
	evd = kdt_evd_policy(test, more, DAT_EVD_SOFTWARE_FLAG, 8, policy);
	evd->ia = &env->b;	/* which lives longer */
	b = kdt_block(test, evd, true);
	KDT_OK(test, kdt_soft(evd, 0));
	task = blocked(test, b);
	kdt_ia_less(test, more->h);
	unblocked(test, b, task);
	silence(test, evd);
}

/* The upcall has a Receive of the EP in hand, of this connection or the one before. */
static void ep_free_waits_for(struct kunit *test, int policy, bool reset)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair evds = {
		.s.recv = kdt_evd_context(test, &env->b, DAT_EVD_DTO_FLAG, 8, policy,
					  KDAT_EVD_CONTEXT_WORKQUEUE),
	};
	struct kdt_pair *pair = kdt_pair_with(test, &evds, NULL, NULL);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, SIZE);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, SIZE);
	struct kdt_blocker *b = kdt_block(test, pair->s.recv, true);
	struct task_struct *task;

	kdt_pair_connect(test, pair);
	KDT_OK(test, kdt_recv(&pair->s, to, 0, SIZE, 0));
	KDT_OK(test, kdt_send(&pair->c, from, 0, SIZE, 0, 0));
	kdt_dto(test, pair->c.req, &pair->c, 0, DAT_DTO_SEND, DAT_DTO_SUCCESS, SIZE);
	KUNIT_ASSERT_TRUE(test, wait_for_completion_timeout(&b->entered, KDT_WAIT));
	if (reset) {
		kdt_pair_end(test, pair);
		KDT_OK(test, dat_ep_reset(pair->s.h));
	}
	complete(&b->entered);
	task = blocked(test, b);
	KDT_OK(test, dat_ep_free(pair->s.h));
	unblocked(test, b, task);
	silence(test, pair->s.recv);
	KDT_OK(test, dat_ep_free(pair->c.h));
	KDT_OK(test, dat_psp_free(pair->psp));
}

static void frees_wait(struct kunit *test)
{
	frees_wait_for(test, DAT_UPCALL_SINGLE_INSTANCE);
	frees_wait_for(test, DAT_UPCALL_NOTIFY);
	frees_wait_for(test, DAT_UPCALL_MANY);
	ep_free_waits_for(test, DAT_UPCALL_SINGLE_INSTANCE, false);
	ep_free_waits_for(test, DAT_UPCALL_MANY, false);
	ep_free_waits_for(test, DAT_UPCALL_SINGLE_INSTANCE, true);
}

/* ---- nobody takes anything ---- */

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
	KUNIT_ASSERT_TRUE(test, kdt_wait_state(pair->s.h, DAT_EP_STATE_CONNECTED));
	for (i = 0; i < 32; i++)
		KDT_OK(test, kdt_send(&pair->s, to, 0, SIZE, i, 0));
	while (n < 4 * KDT_DTOS && kdt_recv(&pair->s, to, 0, SIZE, n) == DAT_SUCCESS) {
		KDT_OK(test, kdt_send(&pair->c, from, 0, SIZE, n, 0));
		kdt_dto(test, pair->c.req, &pair->c, n, DAT_DTO_SEND, DAT_DTO_SUCCESS, SIZE);
		n++;
	}
	KUNIT_EXPECT_GE(test, n, KDT_DTOS);
	if (close) {
		KDT_OK(test, dat_ia_close(env->b.h, DAT_CLOSE_ABRUPT_FLAG));
		env->b.h = DAT_HANDLE_NULL;
		kdt_end(test, &pair->c);
		return;
	}
	KDT_OK(test, dat_ep_free(pair->s.h));
	kdt_end(test, &pair->c);
	/* what is left of it is no completion of an EP that is gone */
	KUNIT_EXPECT_TRUE(test, dat_evd_dequeue(evds.s.recv->h, &event) != DAT_SUCCESS ||
			  event.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS);
	KDT_OK(test, dat_evd_free(evds.s.recv->h));
	KDT_OK(test, dat_evd_free(evds.s.req->h));
	KDT_OK(test, dat_evd_free(evds.s.conn->h));
	KDT_OK(test, dat_psp_free(pair->psp));
}

static void nobody_dequeues(struct kunit *test)
{
	never_dequeued(test, false);
	never_dequeued(test, true);
}

/* ---- instances closed ---- */

/* Another instance of b with a busy connection and busy software events. */
struct busy {
	struct kdt_ia ia;
	struct kdt_pair pair;
	struct kdt_evd *soft;
	struct kdt_buf *in_c, *in_s;
	struct task_struct *task;
};

static bool bounce(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct busy *b = evd->priv;
	bool server = evd == b->pair.s.recv;
	struct kdt_ep *ep = server ? &b->pair.s : &b->pair.c;
	struct kdt_buf *buf = server ? b->in_s : b->in_c;

	if (event->event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS &&
	    kdt_recv(ep, buf, 0, SIZE, 0) == DAT_SUCCESS)
		kdt_send(ep, buf, SIZE, SIZE, 0, DAT_COMPLETION_SUPPRESS_FLAG);
	return true;
}

static struct kdt_evd *busy_evd(struct kunit *test, struct busy *b, int flags, int policy,
				enum kdat_evd_context context, kdt_hook hook)
{
	struct kdt_evd *evd = kdt_evd_context(test, &b->ia, flags, 32, policy, context);

	evd->priv = b;
	evd->hook = hook;
	return evd;
}

static struct busy *busy_new(struct kunit *test, int policy, enum kdat_evd_context context)
{
	struct kdt_env *env = kdt_env(test);
	struct busy *b = kunit_kzalloc(test, sizeof(*b), GFP_KERNEL);
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_CONN_QUAL port = kdt_new_port();
	DAT_PSP_HANDLE psp;
	struct kdt_evd *cr;
	struct kdt_ep *s;
	DAT_EP_ATTR attr;
	DAT_EVENT event;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, b);
	memcpy(&b->ia, &env->b, sizeof(b->ia));	/* not assignable */
	b->ia.h = kdt_ia_more(test, &env->b, 8, &async);
	KDT_OK(test, dat_pz_create(b->ia.h, &b->ia.pz));
	b->soft = busy_evd(test, b, DAT_EVD_SOFTWARE_FLAG, policy, context, swallow);
	s = &b->pair.s;
	s->ia = &b->ia;
	s->recv = busy_evd(test, b, DAT_EVD_DTO_FLAG, policy, context, bounce);
	s->req = busy_evd(test, b, DAT_EVD_DTO_FLAG, policy, context, NULL);
	s->conn = busy_evd(test, b, DAT_EVD_CONNECTION_FLAG, DAT_UPCALL_SINGLE_INSTANCE,
			   KDAT_EVD_CONTEXT_DEFAULT, NULL);
	cr = busy_evd(test, b, DAT_EVD_CR_FLAG, DAT_UPCALL_SINGLE_INSTANCE,
		      KDAT_EVD_CONTEXT_DEFAULT, NULL);
	kdt_attr(env, &attr);
	KDT_OK(test, dat_ep_create(b->ia.h, b->ia.pz, s->recv->h, s->req->h, s->conn->h, &attr,
				   &s->h));
	KDT_OK(test, dat_psp_create(b->ia.h, port, cr->h, DAT_PSP_CONSUMER_FLAG, &psp));
	b->in_s = kdt_buf_new(test, &b->ia, 2 * SIZE);
	b->in_c = kdt_buf_new(test, &env->a, 2 * SIZE);
	kdt_ep_new(test, &b->pair.c, &env->a, NULL);
	b->pair.c.recv->priv = b;
	b->pair.c.recv->hook = bounce;
	for (i = 0; i < 16; i++) {
		KDT_OK(test, kdt_recv(&b->pair.c, b->in_c, 0, SIZE, 0));
		KDT_OK(test, kdt_recv(s, b->in_s, 0, SIZE, 0));
	}
	KDT_OK(test, kdt_connect(&b->pair.c, &env->b, port));
	KUNIT_ASSERT_TRUE(test, kdt_get(cr, &event));
	KDT_OK(test, dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, s->h, 0,
				   NULL));
	kdt_conn(test, &b->pair.c, DAT_CONNECTION_EVENT_ESTABLISHED);
	kdt_conn(test, s, DAT_CONNECTION_EVENT_ESTABLISHED);
	for (i = 0; i < 8; i++)
		KDT_OK(test, kdt_send(&b->pair.c, b->in_c, SIZE, SIZE, 0,
				      DAT_COMPLETION_SUPPRESS_FLAG));
	b->task = kdt_beside(test, post_for_ever, b->soft);
	if (policy != DAT_UPCALL_DISABLE) {
		in_full_swing(test, s->recv, 20);
		in_full_swing(test, b->soft, 20);
	}
	return b;
}

static void busy_over(struct kunit *test, struct busy *b)
{
	kdt_end(test, &b->pair.c);
	silence(test, b->pair.s.recv);
	silence(test, b->soft);
	KDT_TYPE(test, DAT_INVALID_HANDLE, kdt_soft(b->soft, 0));
	kdt_stop(test, b->task);
	KDT_OK(test, dat_ep_free(b->pair.c.h));
}

static void close_in_traffic(struct kunit *test)
{
	struct busy *b;
	int i;

	for (i = 0; i < ARRAY_SIZE(engines); i++) {
		b = busy_new(test, engines[i].policy, engines[i].context);
		kdt_ia_less(test, b->ia.h);
		busy_over(test, b);
	}
	b = busy_new(test, DAT_UPCALL_DISABLE, KDAT_EVD_CONTEXT_DEFAULT);
	kdt_ia_less(test, b->ia.h);
	busy_over(test, b);
}

struct closer {
	struct kdt_env *env;
	DAT_IA_HANDLE own, other;
	DAT_RETURN ret_own, ret_graceful, ret_other;
};

static bool close_hook(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct closer *c = evd->priv;

	c->ret_own = dat_ia_close(c->own, DAT_CLOSE_ABRUPT_FLAG);
	c->ret_graceful = dat_ia_close(c->own, DAT_CLOSE_GRACEFUL_FLAG);
	if (c->other)
		c->ret_other = dat_ia_close(c->other, DAT_CLOSE_ABRUPT_FLAG);
	return false;
}

/* Not the instance the upcall belongs to, but any other. */
static void close_in_upcall(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct closer *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	struct kdt_evd *evd;
	struct busy *b;
	DAT_EVENT event;
	int i, j;

	KUNIT_ASSERT_NOT_NULL(test, c);
	for (i = 0; i < ARRAY_SIZE(engines); i++) {
		evd = kdt_evd_context(test, &env->b, DAT_EVD_SOFTWARE_FLAG, 8, engines[i].policy,
				      engines[i].context);
		evd->priv = c;
		evd->hook = close_hook;
		*c = (struct closer) { .own = env->b.h };
		b = NULL;
		if (i == ARRAY_SIZE(engines) - 1) {
			b = busy_new(test, DAT_UPCALL_MANY, KDAT_EVD_CONTEXT_WORKQUEUE);
			c->other = b->ia.h;
			for (j = 0; j < KDT_MORE_IAS; j++) {
				if (env->more[j] == b->ia.h)
					env->more[j] = DAT_HANDLE_NULL;
			}
		}
		KDT_OK(test, kdt_soft(evd, 0));
		KUNIT_ASSERT_TRUE(test, kdt_get(evd, &event));
		KUNIT_EXPECT_EQ(test, DAT_GET_TYPE(c->ret_own), (u32)DAT_INVALID_STATE);
		KUNIT_EXPECT_EQ(test, DAT_GET_TYPE(c->ret_graceful), (u32)DAT_INVALID_STATE);
		KUNIT_EXPECT_EQ(test, c->ret_other, (DAT_RETURN)DAT_SUCCESS);
		if (b)
			busy_over(test, b);
	}
}

/* ---- who fed an EVD survives it ---- */

static void freed_with_events(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair evds = {
		.s.conn = kdt_evd_policy(test, &env->b, DAT_EVD_CONNECTION_FLAG |
					 DAT_EVD_SOFTWARE_FLAG, 8, DAT_UPCALL_DISABLE),
		.cr = kdt_evd_policy(test, &env->b, DAT_EVD_CR_FLAG, 4, DAT_UPCALL_DISABLE),
	};
	struct kdt_pair *pair = kdt_pair_with(test, &evds, NULL, NULL);
	struct kdt_evd *next = kdt_evd_new(test, &env->b, DAT_EVD_CONNECTION_FLAG);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, SIZE);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, SIZE);
	DAT_EP_PARAM param = { .connect_evd_handle = next->h };
	struct kdt_ep late;
	DAT_CR_PARAM cr_param;
	DAT_CR_HANDLE cr;

	kdt_listener_goes(test, &env->b);
	/* one request is taken, another one is lost with the EVD */
	cr = kdt_pair_request(test, pair);
	kdt_ep_new(test, &late, &env->a, NULL);
	KDT_OK(test, kdt_connect(&late, &env->b, pair->port));
	schedule_timeout_uninterruptible(1);	/* whether it is there yet or not */
	KDT_OK(test, dat_psp_free(pair->psp));
	KDT_OK(test, dat_evd_free(pair->cr->h));
	KDT_OK(test, dat_cr_query(cr, DAT_CR_FIELD_ALL, &cr_param));
	KUNIT_EXPECT_TRUE(test, kdt_same_address((struct sockaddr *)cr_param.remote_ia_address_ptr,
						 &env->a));
	KDT_OK(test, dat_cr_accept(cr, pair->s.h, 0, NULL));
	kdt_conn(test, &pair->c, DAT_CONNECTION_EVENT_ESTABLISHED);
	KUNIT_EXPECT_TRUE(test, kdt_wait_state(pair->s.h, DAT_EP_STATE_CONNECTED));
	KDT_OK(test, kdt_recv(&pair->s, to, 0, SIZE, 5));
	KDT_OK(test, kdt_send(&pair->c, from, 0, SIZE, 6, 0));
	kdt_dto(test, pair->c.req, &pair->c, 6, DAT_DTO_SEND, DAT_DTO_SUCCESS, SIZE);
	kdt_dto(test, pair->s.recv, &pair->s, 5, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, SIZE);
	/* what nobody has looked at is lost with its EVD; the EP goes on with another one */
	KDT_OK(test, kdt_soft(evds.s.conn, 1));
	KDT_OK(test, dat_ep_disconnect(pair->c.h, DAT_CLOSE_ABRUPT_FLAG));
	kdt_end(test, &pair->c);
	KUNIT_EXPECT_TRUE(test, kdt_wait_state(pair->s.h, DAT_EP_STATE_DISCONNECTED));
	KDT_OK(test, dat_ep_reset(pair->c.h));
	KDT_OK(test, dat_ep_reset(pair->s.h));
	KDT_OK(test, dat_ep_modify(pair->s.h, DAT_EP_FIELD_CONNECT_EVD_HANDLE, &param));
	KDT_OK(test, kdt_soft(evds.s.conn, 2));
	KDT_OK(test, dat_evd_free(evds.s.conn->h));
	pair->s.conn = next;
	pair->cr = kdt_evd_new(test, &env->b, DAT_EVD_CR_FLAG);
	pair->port = kdt_new_port();
	KDT_OK(test, dat_psp_create(env->b.h, pair->port, pair->cr->h, DAT_PSP_CONSUMER_FLAG,
				    &pair->psp));
	kdt_pair_connect(test, pair);
	kdt_pair_down(test, pair);
	/* nobody will answer that one */
	KDT_OK(test, dat_ep_free(late.h));
}

static void request_lifetime(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	DAT_CR_PARAM param;
	DAT_CR_HANDLE cr;
	int round, i;

	for (round = 0; round < 2; round++) {
		static u8 text[] = "as long as nobody has answered";

		KDT_OK(test, dat_ep_connect(pair->c.h, (DAT_IA_ADDRESS_PTR)&env->b.addr, pair->port,
					    30 * USEC_PER_SEC, sizeof(text), text,
					    DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
		{
			DAT_EVENT event;

			KUNIT_ASSERT_TRUE(test, kdt_get(pair->cr, &event));
			cr = event.event_data.cr_arrival_event_data.cr_handle;
		}
		if (round)
			KDT_OK(test, dat_psp_free(pair->psp));
		for (i = 0; i < 3; i++) {
			KDT_OK(test, dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
			KUNIT_ASSERT_GE(test, param.private_data_size, (int)sizeof(text));
			KUNIT_EXPECT_EQ(test, memcmp(param.private_data, text, sizeof(text)), 0);
			/* what is refused leaves it as it is */
			KDT_TYPE(test, DAT_INVALID_HANDLE,
				 dat_cr_accept(cr, DAT_HANDLE_NULL, 0, NULL));
			KDT_TYPE(test, DAT_INVALID_PARAMETER,
				 dat_cr_accept(cr, pair->s.h, -1, NULL));
			KDT_TYPE(test, DAT_INVALID_PARAMETER, dat_cr_reject(cr, 1, NULL));
		}
		if (round) {
			KDT_OK(test, dat_cr_accept(cr, pair->s.h, 0, NULL));
			kdt_conn(test, &pair->c, DAT_CONNECTION_EVENT_ESTABLISHED);
			kdt_conn(test, &pair->s, DAT_CONNECTION_EVENT_ESTABLISHED);
		} else {
			KDT_OK(test, dat_cr_reject(cr, 0, NULL));
			kdt_conn(test, &pair->c, DAT_CONNECTION_EVENT_PEER_REJECTED);
			KDT_OK(test, dat_ep_reset(pair->c.h));
		}
		KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR,
			    dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
		KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR,
			    dat_cr_accept(cr, pair->s.h, 0, NULL));
		KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR,
			    dat_cr_reject(cr, 0, NULL));
	}
	kdt_pair_down(test, pair);
}

static struct kunit_case cases[] = {
	KD_CASE(evd_free_in_traffic, "EVD-FREE-02,EVD-FREE-03: freed while its upcalls run"),
	KD_CASE(evd_free_in_upcall, "EVD-FREE-03,EVD-UP-11: its own upcall may not, others may"),
	KD_CASE(ep_free_in_upcall, "SIL-46,EP-FREE-01,EVD-UP-13: an EP freed in its upcalls"),
	KD_CASE(ep_free_beside, "SIL-46,EVD-UP-07: another upcall has an event of it in hand"),
	KD_CASE(frees_wait, "EVD-FREE-03,IA-CLOSE-05,EP-FREE-01: who frees waits for upcalls"),
	KD_CASE(nobody_dequeues, "EVD-OVF-06,IA-CLOSE-02,IA-CLOSE-06: a consumer that never looks"),
	KD_CASE(close_in_traffic, "IA-CLOSE-02,IA-CLOSE-05: closed under each policy"),
	KD_CASE(close_in_upcall, "IA-CLOSE-05: in an upcall of its own, and of another instance"),
	KD_CASE(freed_with_events, "EVD-FREE-02,PSP-08,PSP-09: those who fed it live on"),
	KD_CASE(request_lifetime, "EVD-EV-05,CR-ACC-04,CR-ACC-05: a request until its answer"),
	{}
};

struct kunit_suite kdt_teardown_suite = {
	.name = "kdtest-teardown",
	.init = kdt_init,
	.exit = kdt_exit,
	.test_cases = cases,
};
