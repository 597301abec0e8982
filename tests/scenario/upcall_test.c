// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * dat_evd_modify_upcall and dat_evd_resize while messages arrive: from outside and
 * from inside upcalls, and no event lost, doubled or forgotten.
 */
#include <linux/bitmap.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/prandom.h>

#include "kdtest.h"

#define SIZE	64

/* soft-iWARP takes its time over each message. */
static unsigned int scale(struct kunit *test, unsigned int n)
{
	return kdt_env(test)->a.iwarp ? n / 8 : n;
}

/* ---- what arrived of the events numbered from 0 ---- */

struct ledger {
	spinlock_t lock;		/* all of it */
	unsigned int max, count, doubled, unknown, disorder;
	u64 next[2];			/* of messages, of software events */
	unsigned long *seen;
};

static void ledger_note(struct ledger *l, const DAT_EVENT *event)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	bool soft = event->event_number == DAT_SOFTWARE_EVENT;
	u64 number = U64_MAX;
	unsigned long flags;

	if (soft)
		number = kdt_soft_number(event);
	else if (event->event_number == DAT_DTO_COMPLETION_EVENT && dto->status == DAT_DTO_SUCCESS)
		number = dto->user_cookie.as_64;
	spin_lock_irqsave(&l->lock, flags);
	if (number >= l->max)
		l->unknown++;
	else if (__test_and_set_bit(number, l->seen))
		l->doubled++;
	else
		l->count++;
	l->disorder += number != l->next[soft];
	l->next[soft] = number + 1;
	spin_unlock_irqrestore(&l->lock, flags);
}

/* What upcalls left behind is taken here. */
static void ledger_drain(struct ledger *l, struct kdt_evd *evd, int max)
{
	DAT_EVENT event;

	while (max-- && dat_evd_dequeue(evd->h, &event) == DAT_SUCCESS)
		ledger_note(l, &event);
}

static bool ledger_full(struct ledger *l)
{
	return READ_ONCE(l->count) >= l->max;
}

/* ---- messages, one after the other ---- */

/* A connection whose Receives, and software events, go to the EVD in question. */
struct traffic {
	struct kdt_evd *evd;
	struct kdt_pair *pair;
	struct kdt_buf *from, *to;
	struct ledger ledger;
	unsigned int count;		/* messages, their Receives numbered from 0 */
	unsigned int softs;		/* software events posted, numbered behind them */
	struct task_struct *task;
	DAT_RETURN failed;
	atomic_t changes, wrong;	/* from inside upcalls */
	bool disabled;
};

/* Again while the queue is full. */
#define RETRY(full, call)							\
({										\
	DAT_RETURN r_;								\
										\
	while (DAT_GET_TYPE(r_ = (call)) == (full) && !kthread_should_stop())	\
		schedule_timeout_uninterruptible(1);				\
	r_;									\
})

static int traffic_run(void *data)
{
	struct traffic *t = data;
	DAT_RETURN ret = DAT_SUCCESS;
	unsigned int i;

	for (i = 0; i < t->count && ret == DAT_SUCCESS; i++) {
		/* the last one asks for a notification, if others may not */
		int flags = i + 1 < t->count ? 0 : DAT_COMPLETION_SOLICITED_WAIT_FLAG;

		/* the Receive first: on iWARP a message without one is the end */
		ret = RETRY(DAT_INSUFFICIENT_RESOURCES, kdt_recv(&t->pair->s, t->to, 0, SIZE, i));
		if (ret == DAT_SUCCESS)
			ret = RETRY(DAT_INSUFFICIENT_RESOURCES,
				    kdt_send(&t->pair->c, t->from, 0, SIZE, i,
					     flags | DAT_COMPLETION_SUPPRESS_FLAG));
	}
	t->failed = ret;
	return kdt_until_stopped();
}

static struct traffic *traffic_new(struct kunit *test, int flags, int policy, int context,
				   int recv_flags, unsigned int count, unsigned int softs)
{
	struct traffic *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	struct kdt_env *env = kdt_env(test);
	struct kdat_evd_attr vector = { .comp_vector = flags + context };
	struct kdt_pair evds = {};
	DAT_EP_ATTR attr;

	KUNIT_ASSERT_NOT_NULL(test, t);
	t->count = scale(test, count);
	t->ledger.max = t->count + scale(test, softs);
	spin_lock_init(&t->ledger.lock);
	t->ledger.seen = kunit_kcalloc(test, BITS_TO_LONGS(t->ledger.max), sizeof(long),
				       GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, t->ledger.seen);
	t->ledger.next[1] = t->count;
	t->evd = kdt_evd_context(test, &env->b, flags, 16, policy, context);
	t->evd->priv = t;
	evds.s.recv = t->evd;
	KDT_OK(test, kdt_evd_open_attr(env, &env->a, DAT_EVD_DTO_FLAG, 8,
				       DAT_UPCALL_SINGLE_INSTANCE, &vector, &evds.c.req));
	kdt_attr(env, &attr);
	attr.recv_completion_flags = recv_flags;
	t->pair = kdt_pair_with(test, &evds, NULL, &attr);
	kdt_pair_connect(test, t->pair);
	t->from = kdt_buf_new(test, &env->a, SIZE);
	t->to = kdt_buf_new(test, &env->b, SIZE);
	return t;
}

static void traffic_start(struct kunit *test, struct traffic *t, kdt_hook hook)
{
	t->evd->hook = hook;
	t->task = kdt_beside(test, traffic_run, t);
}

/* All of it has come, once, and if nothing overlapped in order; no upcall runs any more. */
static void traffic_end(struct kunit *test, struct traffic *t, bool ordered)
{
	struct ledger *l = &t->ledger;

	wait_event_timeout(t->evd->wait, ledger_full(l), KDT_WAIT);
	KDT_OK(test, kdt_evd_set(t->evd, DAT_UPCALL_TEARDOWN, DAT_UPCALL_INVOC_NEW));
	KUNIT_EXPECT_EQ(test, atomic_read(&t->evd->running), 0);
	KUNIT_EXPECT_EQ_MSG(test, l->count, l->max, "lost events");
	KUNIT_EXPECT_EQ_MSG(test, l->doubled, 0, "events seen twice");
	KUNIT_EXPECT_EQ(test, l->unknown, 0);
	if (ordered)
		KUNIT_EXPECT_EQ_MSG(test, l->disorder, 0, "events out of order");
	KUNIT_EXPECT_EQ(test, atomic_read(&t->wrong), 0);
	KUNIT_EXPECT_LE(test, t->evd->max_running, (int)num_online_cpus());
	t->evd->hook = NULL;
	kdt_stop(test, t->task);
	KUNIT_EXPECT_TRUE_MSG(test, t->failed == DAT_SUCCESS, "a post: %s %s",
			      kdt_major(t->failed), kdt_minor(t->failed));
	kdt_pair_end(test, t->pair);
}

static bool note_hook(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct traffic *t = evd->priv;

	ledger_note(&t->ledger, event);
	return true;
}

/* An event that more_events announces is there, and what is taken here comes nowhere else. */
static bool take_hook(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct traffic *t = evd->priv;
	DAT_EVENT next;

	ledger_note(&t->ledger, event);
	if (!more)
		return true;
	if (dat_evd_dequeue(evd->h, &next) == DAT_SUCCESS)
		ledger_note(&t->ledger, &next);
	else
		atomic_inc(&t->wrong);
	return true;
}

/* ---- from outside ---- */

enum {
	FLIP_ANYTHING,		/* every policy, and somebody dequeues all the time */
	FLIP_ENABLED,		/* never disabled, so nothing needs INVOC_ANY */
	FLIP_TEARDOWN,		/* nothing overlaps: strict order */
};

static const struct flip_row {
	int how, flags, context, recv_flags;
} flips[] = {
	{ FLIP_ANYTHING, DAT_EVD_DTO_FLAG, KDAT_EVD_CONTEXT_DEFAULT },
	{ FLIP_ANYTHING, DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG, KDAT_EVD_CONTEXT_DEFAULT },
	{ FLIP_ENABLED, DAT_EVD_DTO_FLAG, KDAT_EVD_CONTEXT_DEFAULT },
	{ FLIP_ENABLED, DAT_EVD_DTO_FLAG, KDAT_EVD_CONTEXT_WORKQUEUE },
	/* only the last message asks for a notification */
	{ FLIP_ENABLED, DAT_EVD_DTO_FLAG, KDAT_EVD_CONTEXT_DEFAULT,
	  DAT_COMPLETION_SOLICITED_WAIT_FLAG },
	{ FLIP_TEARDOWN, DAT_EVD_DTO_FLAG, KDAT_EVD_CONTEXT_DEFAULT },
	{ FLIP_TEARDOWN, DAT_EVD_DTO_FLAG, KDAT_EVD_CONTEXT_WORKQUEUE },
	/* with software events, longer and shorter */
	{ FLIP_TEARDOWN, DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG, KDAT_EVD_CONTEXT_SOFTIRQ },
	{ FLIP_TEARDOWN, DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG, KDAT_EVD_CONTEXT_WORKQUEUE },
};

#define SOFTS	64

/* Too short for what is queued just now, or full of others, is no error. */
static void grow_and_post(struct kunit *test, struct traffic *t, u32 qlen)
{
	DAT_RETURN ret = dat_evd_resize(t->evd->h, qlen);

	if (DAT_GET_TYPE(ret) != DAT_INVALID_STATE)
		KDT_OK(test, ret);
	if (t->count + t->softs == t->ledger.max)
		return;
	ret = kdt_soft(t->evd, t->count + t->softs);
	if (DAT_GET_TYPE(ret) == DAT_QUEUE_FULL)
		return;
	KDT_OK(test, ret);
	t->softs++;
}

static void flip_once(struct kunit *test, struct traffic *t, struct rnd_state *rnd, int how)
{
	static const int policies[] = {
		DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_NOTIFY, DAT_UPCALL_MANY, DAT_UPCALL_DISABLE,
		DAT_UPCALL_TEARDOWN,
	};
	int n = how == FLIP_TEARDOWN ? 2 : how == FLIP_ENABLED ? 3 : 5;
	int flag = prandom_u32_state(rnd) & 1 ? DAT_UPCALL_INVOC_ANY : DAT_UPCALL_INVOC_NEW;
	int policy = policies[prandom_u32_state(rnd) % n];
	unsigned int entered;

	if (how == FLIP_TEARDOWN) {
		KDT_OK(test, kdt_evd_set(t->evd, DAT_UPCALL_TEARDOWN, flag));
		entered = READ_ONCE(t->evd->entered);
		KUNIT_EXPECT_EQ(test, atomic_read(&t->evd->running), 0);
		ledger_drain(&t->ledger, t->evd, prandom_u32_state(rnd) % 4);
		KUNIT_EXPECT_EQ(test, READ_ONCE(t->evd->entered), entered);
	}
	KDT_OK(test, kdt_evd_set(t->evd, policy, flag));
	if (t->ledger.max > t->count)
		grow_and_post(test, t, 8 + prandom_u32_state(rnd) % 90);
	if (how == FLIP_ANYTHING)
		ledger_drain(&t->ledger, t->evd, prandom_u32_state(rnd) % 4);
}

static void flip(struct kunit *test, int how)
{
	const struct flip_row *row;
	struct rnd_state rnd;
	struct traffic *t;
	unsigned int seen, n;

	for (row = flips; row < flips + ARRAY_SIZE(flips); row++) {
		if (row->how != how)
			continue;
		n = how == FLIP_TEARDOWN && row->flags & DAT_EVD_SOFTWARE_FLAG ? SOFTS : 0;
		t = traffic_new(test, row->flags, DAT_UPCALL_SINGLE_INSTANCE, row->context,
				row->recv_flags, 1000, n);
		prandom_seed_state(&rnd, 1000 * how + row->flags);
		traffic_start(test, t, how == FLIP_TEARDOWN ? take_hook : note_hook);
		for (n = 0; !ledger_full(&t->ledger) && n < 100 * t->count; n++) {
			seen = READ_ONCE(t->ledger.count);
			flip_once(test, t, &rnd, how);
			/* a breath for the traffic; nothing depends on how long */
			wait_event_timeout(t->evd->wait,
					   READ_ONCE(t->ledger.count) > seen + n % 8, 1);
			if (how == FLIP_ENABLED && n > t->count)
				break;
		}
		if (how != FLIP_ENABLED)
			KDT_OK(test, kdt_evd_set(t->evd, DAT_UPCALL_SINGLE_INSTANCE,
						 DAT_UPCALL_INVOC_ANY));
		traffic_end(test, t, how == FLIP_TEARDOWN);
		if (row->context == KDAT_EVD_CONTEXT_WORKQUEUE)
			KUNIT_EXPECT_TRUE(test, t->evd->process && !t->evd->softirq);
		else if (row->context == KDAT_EVD_CONTEXT_SOFTIRQ)
			KUNIT_EXPECT_TRUE(test, t->evd->softirq && !t->evd->process);
		if (how == FLIP_TEARDOWN)
			KUNIT_EXPECT_EQ(test, t->evd->max_running, 1);
	}
}

static void flip_anything(struct kunit *test)
{
	flip(test, FLIP_ANYTHING);
}

static void flip_enabled(struct kunit *test)
{
	flip(test, FLIP_ENABLED);
}

static void flip_teardown(struct kunit *test)
{
	flip(test, FLIP_TEARDOWN);
}

/* ---- from inside ---- */

static bool change_hook(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	static const int policies[] = {
		DAT_UPCALL_MANY, DAT_UPCALL_NOTIFY, DAT_UPCALL_SINGLE_INSTANCE,
	};
	struct traffic *t = evd->priv;
	DAT_RETURN ret;
	int n;

	note_hook(evd, event, more);
	if (event->event_data.dto_completion_event_data.user_cookie.as_64 % 3)
		return true;
	/* refused: it would wait for itself */
	ret = dat_evd_modify_upcall(evd->h, DAT_UPCALL_TEARDOWN, DAT_UPCALL_SAME,
				    DAT_UPCALL_INVOC_NEW);
	if (DAT_GET_TYPE(ret) != DAT_INVALID_STATE)
		atomic_inc(&t->wrong);
	n = atomic_inc_return(&t->changes);
	ret = dat_evd_modify_upcall(evd->h, n % 16 ? policies[n % 3] : DAT_UPCALL_DISABLE,
				    DAT_UPCALL_SAME, n & 1);
	if (ret != DAT_SUCCESS)
		atomic_inc(&t->wrong);
	if (n % 16 == 0)
		WRITE_ONCE(t->disabled, true);
	return true;
}

static void from_inside(struct kunit *test)
{
	struct traffic *t = traffic_new(test, DAT_EVD_DTO_FLAG, DAT_UPCALL_SINGLE_INSTANCE,
					KDAT_EVD_CONTEXT_WORKQUEUE, 0, 800, 0);

	traffic_start(test, t, change_hook);
	while (wait_event_timeout(t->evd->wait, READ_ONCE(t->disabled) || ledger_full(&t->ledger),
				  KDT_WAIT) && !ledger_full(&t->ledger)) {
		/* an upcall has disabled them all; others may still be running */
		WRITE_ONCE(t->disabled, false);
		KDT_OK(test, dat_evd_modify_upcall(t->evd->h, DAT_UPCALL_SINGLE_INSTANCE,
						   DAT_UPCALL_SAME, DAT_UPCALL_INVOC_ANY));
	}
	traffic_end(test, t, false);
	KUNIT_EXPECT_GE(test, atomic_read(&t->changes), (int)t->count / 3);
}

/* ---- wake-ups ---- */

struct ball {
	struct kdt_ep *ep;
	struct kdt_buf *buf;
	unsigned int hits;
	DAT_RETURN failed;
};

#define SLOTS	16

/* A message is answered with one. */
static void ball_back(struct ball *ball)
{
	DAT_RETURN ret = kdt_recv(ball->ep, ball->buf, 0, SIZE, 0);

	if (ret == DAT_SUCCESS)
		ret = kdt_send(ball->ep, ball->buf, SIZE, SIZE, 0, DAT_COMPLETION_SUPPRESS_FLAG);
	if (ret != DAT_SUCCESS)
		ball->failed = ret;
	WRITE_ONCE(ball->hits, ball->hits + 1);
}

static bool ball_hook(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	if (event->event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS)
		return false;
	ball_back(evd->priv);
	return true;
}

static struct ball *ball_new(struct kunit *test, struct kdt_ep *ep)
{
	struct ball *ball = kunit_kzalloc(test, sizeof(*ball), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, ball);
	ball->ep = ep;
	ball->buf = kdt_buf_new(test, ep->ia, 2 * SIZE);
	ep->recv->priv = ball;
	ep->recv->hook = ball_hook;
	for (i = 0; i < SLOTS; i++)
		KDT_OK(test, kdt_recv(ep, ball->buf, 0, SIZE, 0));
	return ball;
}

/*
 * Few messages in the air, and each end stops when it finds nothing: if one
 * arrival did not wake its side, the game would be over. With @thread this task
 * takes the server's.
 */
static void ping_pong_one(struct kunit *test, int policy, int context, bool thread,
			  unsigned int balls)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair evds = {
		.c.recv = kdt_evd_context(test, &env->a, DAT_EVD_DTO_FLAG, 8, policy, context),
		.s.recv = kdt_evd_context(test, &env->b, DAT_EVD_DTO_FLAG, 8, policy, context),
	};
	struct kdt_pair *pair = kdt_pair_with(test, &evds, NULL, NULL);
	struct ball *c = ball_new(test, &pair->c), *s = ball_new(test, &pair->s);
	unsigned int i, entered = 0, rounds = scale(test, 400);
	struct kdt_evd *evd = pair->s.recv;
	DAT_EVENT event;
	long left;

	evd->keep = thread;
	kdt_pair_connect(test, pair);
	for (i = 0; i < balls; i++)
		KDT_OK(test, kdt_send(&pair->c, c->buf, SIZE, SIZE, 0,
				      DAT_COMPLETION_SUPPRESS_FLAG));
	while (thread && s->hits < rounds) {
		left = wait_event_timeout(evd->wait, READ_ONCE(evd->entered) != entered, KDT_WAIT);
		KUNIT_ASSERT_GT_MSG(test, left, 0, "no wake-up after %u messages", s->hits);
		entered = READ_ONCE(evd->entered);
		while (dat_evd_dequeue(evd->h, &event) == DAT_SUCCESS) {
			KUNIT_ASSERT_EQ(test, (int)event.event_number, DAT_DTO_COMPLETION_EVENT);
			ball_back(s);
		}
	}
	left = wait_event_timeout(evd->wait, READ_ONCE(s->hits) >= rounds, KDT_WAIT);
	KUNIT_EXPECT_GT_MSG(test, left, 0, "no wake-up after %u messages", s->hits);
	KUNIT_EXPECT_TRUE(test, c->failed == DAT_SUCCESS && s->failed == DAT_SUCCESS);
	/* stop the game first: what is in the air finds no hook, and no answer */
	KDT_OK(test, kdt_evd_set(pair->c.recv, DAT_UPCALL_TEARDOWN, DAT_UPCALL_INVOC_NEW));
	KDT_OK(test, kdt_evd_set(evd, DAT_UPCALL_TEARDOWN, DAT_UPCALL_INVOC_NEW));
	KUNIT_EXPECT_EQ(test, evd->max_running, 1);
	kdt_pair_end(test, pair);
	KDT_OK(test, dat_ep_free(pair->c.h));
	KDT_OK(test, dat_ep_free(pair->s.h));
}

static void ping_pong(struct kunit *test)
{
	ping_pong_one(test, DAT_UPCALL_NOTIFY, KDAT_EVD_CONTEXT_SOFTIRQ, false, 1);
	ping_pong_one(test, DAT_UPCALL_NOTIFY, KDAT_EVD_CONTEXT_WORKQUEUE, false, 3);
	ping_pong_one(test, DAT_UPCALL_NOTIFY, KDAT_EVD_CONTEXT_SOFTIRQ, true, 3);
	ping_pong_one(test, DAT_UPCALL_NOTIFY, KDAT_EVD_CONTEXT_WORKQUEUE, true, 1);
	ping_pong_one(test, DAT_UPCALL_SINGLE_INSTANCE, KDAT_EVD_CONTEXT_SOFTIRQ, false, 1);
	ping_pong_one(test, DAT_UPCALL_SINGLE_INSTANCE, KDAT_EVD_CONTEXT_WORKQUEUE, false, 1);
}

/* ---- MANY ---- */

#define POSTERS	3

/* Software events of several tasks, numbered behind the messages. */
struct poster {
	struct traffic *t;
	unsigned int first, count;
	struct task_struct *task;
	DAT_RETURN failed;
};

static int post_soft(void *data)
{
	struct poster *p = data;
	DAT_RETURN ret = DAT_SUCCESS;
	unsigned int i;

	for (i = 0; i < p->count && ret == DAT_SUCCESS; i++)
		ret = RETRY(DAT_QUEUE_FULL, kdt_soft(p->t->evd, p->first + i));
	p->failed = ret;
	return kdt_until_stopped();
}

static void many(struct kunit *test)
{
	struct traffic *t = traffic_new(test, DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG,
					DAT_UPCALL_MANY, KDAT_EVD_CONTEXT_DEFAULT, 0, 800,
					POSTERS * 800);
	struct poster posters[POSTERS];
	int i;

	traffic_start(test, t, note_hook);
	for (i = 0; i < POSTERS; i++) {
		posters[i] = (struct poster) {
			.t = t, .first = t->count * (1 + i), .count = t->count,
		};
		posters[i].task = kdt_beside(test, post_soft, &posters[i]);
	}
	traffic_end(test, t, false);
	for (i = 0; i < POSTERS; i++) {
		kdt_stop(test, posters[i].task);
		KUNIT_EXPECT_EQ(test, posters[i].failed, (DAT_RETURN)DAT_SUCCESS);
	}
}

static struct kunit_case cases[] = {
	KD_CASE(flip_anything, "EVD-MOD-06,EVD-DQ-02,EVD-DQ-03: all policies in traffic, dequeues"),
	KD_CASE(flip_enabled,
		"EVD-MOD-06,EVD-DQ-06,FLAG-20: from policy to policy, nothing forgotten"),
	KD_CASE(flip_teardown,
		"EVD-MOD-06,EVD-UP-01,EVD-UP-08,EVD-UP-12,EVD-DQ-04,EVD-RSZ-01,CTX-04: order"),
	KD_CASE(from_inside, "EVD-MOD-05,EVD-MOD-07,EVD-UP-11: policies changed inside upcalls"),
	KD_CASE(ping_pong, "EVD-UP-06,EVD-UP-09,EVD-DQ-06: ping-pong, no lost wake-up"),
	KD_CASE(many, "EVD-UP-07,EVD-DQ-03,EVD-SE-04: MANY, each event once"),
	{}
};

struct kunit_suite kdt_upcall_suite = {
	.name = "kdtest-upcall",
	.init = kdt_init,
	.exit = kdt_exit,
	.test_cases = cases,
};
