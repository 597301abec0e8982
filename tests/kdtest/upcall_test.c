// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * dat_evd_modify_upcall while messages arrive: policies and flags from outside
 * and from inside upcalls, and no event lost, doubled or forgotten.
 */
#include <linux/bitmap.h>
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/prandom.h>
#include <linux/slab.h>

#include "kdtest.h"

#define SIZE	64

/* soft-iWARP takes its time over each message. */
static unsigned int scale(struct kunit *test, unsigned int n)
{
	return kdt_env(test)->a.iwarp ? n / 8 : n;
}

/* ---- messages, one after the other ---- */

/* Sends as fast as there are places for them; its events are not asked for. */
struct producer {
	struct kdt_pair *pair;
	struct kdt_buf *from, *to;
	unsigned int count;		/* messages, their Receives numbered from 0 */
	int flags;			/* of all Sends but the last */
	struct task_struct *task;
	DAT_RETURN failed;
};

/* Again while the queue is full. */
#define RETRY(call)								\
({										\
	DAT_RETURN r_;								\
										\
	while (DAT_GET_TYPE(r_ = (call)) == DAT_INSUFFICIENT_RESOURCES &&	\
	       !kthread_should_stop())						\
		schedule_timeout_uninterruptible(1);				\
	r_;									\
})

static int produce(void *data)
{
	struct producer *p = data;
	DAT_RETURN ret = DAT_SUCCESS;
	unsigned int i;

	for (i = 0; i < p->count && ret == DAT_SUCCESS; i++) {
		int flags = i + 1 < p->count ? p->flags : DAT_COMPLETION_SOLICITED_WAIT_FLAG;

		/* the Receive first: on iWARP a message without one is the end */
		ret = RETRY(kdt_recv(&p->pair->s, p->to, 0, SIZE, i));
		if (ret == DAT_SUCCESS)
			ret = RETRY(kdt_send(&p->pair->c, p->from, 0, SIZE, i,
					     flags | DAT_COMPLETION_SUPPRESS_FLAG));
	}
	p->failed = ret;
	return kdt_until_stopped();
}

static void produce_start(struct kunit *test, struct producer *p, struct kdt_pair *pair,
			  unsigned int count)
{
	struct kdt_env *env = kdt_env(test);

	p->pair = pair;
	p->from = kdt_buf_new(test, &env->a, SIZE);
	p->to = kdt_buf_new(test, &env->b, SIZE);
	p->count = count;
	p->task = kdt_beside(test, produce, p);
}

static void produce_stop(struct kunit *test, struct producer *p)
{
	kdt_stop(test, p->task);
	KUNIT_EXPECT_TRUE_MSG(test, p->failed == DAT_SUCCESS, "a post: %s %s",
			      kdt_major(p->failed), kdt_minor(p->failed));
}

/* ---- who got what ---- */

struct ledger {
	spinlock_t lock;		/* all of it */
	unsigned int max, count, doubled, unknown, disorder;
	u64 next;
	unsigned long *seen;
};

static struct ledger *ledger_new(struct kunit *test, unsigned int max)
{
	struct ledger *l = kunit_kzalloc(test, sizeof(*l), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, l);
	l->seen = kunit_kcalloc(test, BITS_TO_LONGS(max), sizeof(long), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, l->seen);
	spin_lock_init(&l->lock);
	l->max = max;
	return l;
}

static void ledger_note(struct ledger *l, u64 number)
{
	unsigned long flags;

	spin_lock_irqsave(&l->lock, flags);
	if (number >= l->max)
		l->unknown++;
	else if (__test_and_set_bit(number, l->seen))
		l->doubled++;
	else
		l->count++;
	if (number != l->next)
		l->disorder++;
	l->next = number + 1;
	spin_unlock_irqrestore(&l->lock, flags);
}

static void ledger_event(struct ledger *l, const DAT_EVENT *event)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;

	if (event->event_number == DAT_SOFTWARE_EVENT)
		ledger_note(l, kdt_soft_number(event));
	else if (event->event_number == DAT_DTO_COMPLETION_EVENT && dto->status == DAT_DTO_SUCCESS)
		ledger_note(l, dto->user_cookie.as_64);
	else
		ledger_note(l, U64_MAX);
}

static bool ledger_hook(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	ledger_event(evd->priv, event);
	return true;
}

/* What upcalls left behind is taken here. */
static void ledger_drain(struct ledger *l, struct kdt_evd *evd, int max)
{
	DAT_EVENT event;

	while (max-- && dat_evd_dequeue(evd->h, &event) == DAT_SUCCESS)
		ledger_event(l, &event);
}

static bool ledger_full(struct ledger *l, struct kdt_evd *evd)
{
	return wait_event_timeout(evd->wait, READ_ONCE(l->count) >= l->max, KDT_WAIT);
}

static void ledger_check(struct kunit *test, struct ledger *l, bool ordered)
{
	KUNIT_EXPECT_EQ_MSG(test, l->count, l->max, "lost events");
	KUNIT_EXPECT_EQ_MSG(test, l->doubled, 0, "events seen twice");
	KUNIT_EXPECT_EQ(test, l->unknown, 0);
	if (ordered)
		KUNIT_EXPECT_EQ_MSG(test, l->disorder, 0, "events out of order");
}

/* A connected pair, the server's Receives on this EVD. */
static struct kdt_pair *pair_on(struct kunit *test, struct kdt_evd *evd, int recv_flags)
{
	struct kdt_pair evds = { .s.recv = evd };
	struct kdt_pair *pair;
	DAT_EP_ATTR attr;

	kdt_attr(kdt_env(test), &attr);
	attr.recv_completion_flags = recv_flags;
	pair = kdt_pair_with(test, &evds, NULL, &attr);
	kdt_pair_connect(test, pair);
	return pair;
}

/* ---- from outside ---- */

enum {
	FLIP_ANYTHING,		/* every policy, and somebody dequeues all the time */
	FLIP_ENABLED,		/* never disabled, so nothing needs INVOC_ANY */
	FLIP_TEARDOWN,		/* nothing overlaps: strict order */
};

static void flip_once(struct kunit *test, struct kdt_evd *evd, struct rnd_state *rnd, int how)
{
	static const int policies[] = {
		DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_NOTIFY, DAT_UPCALL_MANY, DAT_UPCALL_DISABLE,
		DAT_UPCALL_TEARDOWN,
	};
	int n = how == FLIP_TEARDOWN ? 2 : how == FLIP_ENABLED ? 3 : 5;
	int flag = prandom_u32_state(rnd) & 1 ? DAT_UPCALL_INVOC_ANY : DAT_UPCALL_INVOC_NEW;
	int policy = policies[prandom_u32_state(rnd) % n];
	struct ledger *l = evd->priv;

	if (how == FLIP_TEARDOWN) {
		KDT_OK(test, kdt_evd_set(evd, DAT_UPCALL_TEARDOWN, flag));
		ledger_drain(l, evd, prandom_u32_state(rnd) % 4);
	}
	KDT_OK(test, kdt_evd_set(evd, policy, flag));
	if (how == FLIP_ANYTHING)
		ledger_drain(l, evd, prandom_u32_state(rnd) % 4);
}

static void flip(struct kunit *test, int how, int flags, enum kdat_evd_context context,
		 unsigned int count)
{
	struct kdt_evd *evd = kdt_evd_context(test, &kdt_env(test)->b, flags, 16,
					      DAT_UPCALL_SINGLE_INSTANCE, context);
	struct kdt_pair *pair = pair_on(test, evd, DAT_COMPLETION_DEFAULT_FLAG);
	struct ledger *l = ledger_new(test, count);
	struct producer *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);
	unsigned int seen, flips = 0;
	struct rnd_state rnd;

	KUNIT_ASSERT_NOT_NULL(test, p);
	prandom_seed_state(&rnd, 1000 * how + flags);
	evd->priv = l;
	evd->hook = ledger_hook;
	produce_start(test, p, pair, count);
	while (READ_ONCE(l->count) < count && flips < 100 * count) {
		seen = READ_ONCE(l->count);
		flip_once(test, evd, &rnd, how);
		flips++;
		/* a breath for the traffic; nothing depends on how long */
		wait_event_timeout(evd->wait, READ_ONCE(l->count) > seen + flips % 8, 1);
		if (how == FLIP_ENABLED && flips > count)
			break;
	}
	if (how != FLIP_ENABLED)
		KDT_OK(test, kdt_evd_set(evd, DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_INVOC_ANY));
	KUNIT_EXPECT_TRUE_MSG(test, ledger_full(l, evd), "%u of %u after %u changes", l->count,
			      count, flips);
	KDT_OK(test, kdt_evd_set(evd, DAT_UPCALL_TEARDOWN, DAT_UPCALL_INVOC_NEW));
	ledger_check(test, l, how == FLIP_TEARDOWN);
	evd->hook = NULL;
	produce_stop(test, p);
	kdt_pair_end(test, pair);
}

static void flip_anything(struct kunit *test)
{
	flip(test, FLIP_ANYTHING, DAT_EVD_DTO_FLAG, KDAT_EVD_CONTEXT_DEFAULT, scale(test, 1000));
	flip(test, FLIP_ANYTHING, DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG,
	     KDAT_EVD_CONTEXT_DEFAULT, scale(test, 1000));
}

static void flip_enabled(struct kunit *test)
{
	flip(test, FLIP_ENABLED, DAT_EVD_DTO_FLAG, KDAT_EVD_CONTEXT_DEFAULT, scale(test, 1000));
	flip(test, FLIP_ENABLED, DAT_EVD_DTO_FLAG, KDAT_EVD_CONTEXT_WORKQUEUE, scale(test, 1000));
}

static void flip_teardown(struct kunit *test)
{
	flip(test, FLIP_TEARDOWN, DAT_EVD_DTO_FLAG, KDAT_EVD_CONTEXT_DEFAULT, scale(test, 1000));
	flip(test, FLIP_TEARDOWN, DAT_EVD_DTO_FLAG, KDAT_EVD_CONTEXT_WORKQUEUE, scale(test, 1000));
}

/* ---- from inside ---- */

struct inside {
	struct ledger *ledger;
	atomic_t changes, wrong;
	bool disabled;
};

static bool change_hook(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	static const int policies[] = {
		DAT_UPCALL_MANY, DAT_UPCALL_NOTIFY, DAT_UPCALL_SINGLE_INSTANCE,
	};
	struct inside *in = evd->priv;
	DAT_RETURN ret;
	int n;

	ledger_event(in->ledger, event);
	if (event->event_data.dto_completion_event_data.user_cookie.as_64 % 3)
		return true;
	/* refused: it would wait for itself */
	ret = dat_evd_modify_upcall(evd->h, DAT_UPCALL_TEARDOWN, DAT_UPCALL_SAME,
				    DAT_UPCALL_INVOC_NEW);
	if (DAT_GET_TYPE(ret) != DAT_INVALID_STATE)
		atomic_inc(&in->wrong);
	n = atomic_inc_return(&in->changes);
	if (n % 16)
		ret = dat_evd_modify_upcall(evd->h, policies[n % 3], DAT_UPCALL_SAME, n & 1);
	else
		ret = dat_evd_modify_upcall(evd->h, DAT_UPCALL_DISABLE, DAT_UPCALL_SAME,
					    DAT_UPCALL_INVOC_NEW);
	if (ret != DAT_SUCCESS)
		atomic_inc(&in->wrong);
	if (n % 16 == 0)
		WRITE_ONCE(in->disabled, true);
	return true;
}

static bool inside_pause(struct inside *in, struct kdt_evd *evd)
{
	return wait_event_timeout(evd->wait, READ_ONCE(in->disabled) ||
				  READ_ONCE(in->ledger->count) >= in->ledger->max, KDT_WAIT);
}

static void from_inside(struct kunit *test)
{
	struct kdt_evd *evd = kdt_evd_context(test, &kdt_env(test)->b, DAT_EVD_DTO_FLAG, 16,
					      DAT_UPCALL_SINGLE_INSTANCE,
					      KDAT_EVD_CONTEXT_WORKQUEUE);
	struct kdt_pair *pair = pair_on(test, evd, DAT_COMPLETION_DEFAULT_FLAG);
	struct producer *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);
	struct inside *in = kunit_kzalloc(test, sizeof(*in), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, p);
	KUNIT_ASSERT_NOT_NULL(test, in);
	in->ledger = ledger_new(test, scale(test, 800));
	evd->priv = in;
	evd->hook = change_hook;
	produce_start(test, p, pair, in->ledger->max);
	for (;;) {
		if (!inside_pause(in, evd)) {
			KUNIT_FAIL(test, "%u of %u events", in->ledger->count, in->ledger->max);
			break;
		}
		if (READ_ONCE(in->ledger->count) >= in->ledger->max)
			break;
		/* an upcall has disabled them all; others may still be running */
		WRITE_ONCE(in->disabled, false);
		KDT_OK(test, dat_evd_modify_upcall(evd->h, DAT_UPCALL_SINGLE_INSTANCE,
						   DAT_UPCALL_SAME, DAT_UPCALL_INVOC_ANY));
	}
	KDT_OK(test, dat_evd_modify_upcall(evd->h, DAT_UPCALL_TEARDOWN, DAT_UPCALL_SAME,
					   DAT_UPCALL_INVOC_NEW));
	KUNIT_EXPECT_EQ(test, atomic_read(&in->wrong), 0);
	KUNIT_EXPECT_GE(test, atomic_read(&in->changes), (int)in->ledger->max / 3);
	ledger_check(test, in->ledger, false);
	evd->hook = NULL;
	produce_stop(test, p);
	kdt_pair_end(test, pair);
}

/* ---- TEARDOWN ---- */

static bool slow_hook(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	ledger_event(evd->priv, event);
	udelay(9);
	return true;
}

/* Nothing runs when it returns, and nothing starts until upcalls are enabled again. */
static void teardown(struct kunit *test, int policy, enum kdat_evd_context context)
{
	struct kdt_evd *evd = kdt_evd_context(test, &kdt_env(test)->b, DAT_EVD_DTO_FLAG, 16,
					      policy, context);
	struct kdt_pair *pair = pair_on(test, evd, DAT_COMPLETION_DEFAULT_FLAG);
	struct ledger *l = ledger_new(test, scale(test, 800));
	struct producer *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);
	unsigned int entered;
	DAT_EVD_PARAM param;
	long left;

	KUNIT_ASSERT_NOT_NULL(test, p);
	evd->priv = l;
	evd->hook = slow_hook;
	produce_start(test, p, pair, l->max);
	while (READ_ONCE(l->count) < l->max) {
		entered = READ_ONCE(evd->entered);
		KDT_OK(test, kdt_evd_set(evd, policy, DAT_UPCALL_INVOC_ANY));
		left = wait_event_timeout(evd->wait, READ_ONCE(evd->entered) > entered ||
					  READ_ONCE(l->count) >= l->max, KDT_WAIT);
		KUNIT_ASSERT_GT(test, left, 0);
		KDT_OK(test, kdt_evd_set(evd, DAT_UPCALL_TEARDOWN, DAT_UPCALL_INVOC_ANY));
		entered = READ_ONCE(evd->entered);
		KUNIT_EXPECT_EQ(test, atomic_read(&evd->running), 0);
		KDT_OK(test, dat_evd_query(evd->h, DAT_EVD_FIELD_ALL, &param));
		KUNIT_EXPECT_EQ(test, (int)param.upcall_policy, DAT_UPCALL_DISABLE);
		schedule_timeout_uninterruptible(1);	/* room for what must not happen */
		KUNIT_EXPECT_EQ(test, READ_ONCE(evd->entered), entered);
	}
	ledger_check(test, l, policy != DAT_UPCALL_MANY);
	evd->hook = NULL;
	produce_stop(test, p);
	kdt_pair_end(test, pair);
}

static void teardown_waits(struct kunit *test)
{
	teardown(test, DAT_UPCALL_SINGLE_INSTANCE, KDAT_EVD_CONTEXT_SOFTIRQ);
	teardown(test, DAT_UPCALL_MANY, KDAT_EVD_CONTEXT_WORKQUEUE);
	teardown(test, DAT_UPCALL_NOTIFY, KDAT_EVD_CONTEXT_WORKQUEUE);
}

/* DISABLE does not wait for an upcall that sleeps, TEARDOWN does. */
static void disable_and_teardown(struct kunit *test)
{
	static const int policies[] = {
		DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_NOTIFY, DAT_UPCALL_MANY,
	};
	struct task_struct *task;
	struct kdt_evd *evd;
	struct kdt_blocker *b;
	DAT_EVENT event;
	int i;

	for (i = 0; i < ARRAY_SIZE(policies); i++) {
		evd = kdt_evd_policy(test, &kdt_env(test)->a, DAT_EVD_SOFTWARE_FLAG, 8,
				     policies[i]);
		b = kdt_block(test, evd, false);
		KDT_OK(test, kdt_soft(evd, 1));
		KUNIT_ASSERT_TRUE(test, wait_for_completion_timeout(&b->entered, KDT_WAIT));
		KDT_OK(test, dat_evd_modify_upcall(evd->h, DAT_UPCALL_DISABLE, DAT_UPCALL_SAME,
						   DAT_UPCALL_INVOC_NEW));
		KUNIT_EXPECT_FALSE(test, READ_ONCE(b->done));
		KDT_OK(test, kdt_soft(evd, 2));
		task = kdt_beside(test, kdt_leave_soon, b);
		KDT_OK(test, dat_evd_modify_upcall(evd->h, DAT_UPCALL_TEARDOWN, DAT_UPCALL_SAME,
						   DAT_UPCALL_INVOC_NEW));
		KUNIT_EXPECT_TRUE(test, READ_ONCE(b->done));
		KUNIT_EXPECT_EQ(test, atomic_read(&evd->running), 0);
		kdt_stop(test, task);
		/* the upcall had the first; a notification takes what it finds */
		KUNIT_ASSERT_TRUE(test, kdt_get(evd, &event));
		KUNIT_EXPECT_EQ(test, kdt_soft_number(&event), 1);
		evd->quiet = true;
		KUNIT_ASSERT_TRUE(test, kdt_get(evd, &event));
		KUNIT_EXPECT_EQ(test, kdt_soft_number(&event), 2);
		KUNIT_EXPECT_EQ(test, evd->entered, 1);
		KDT_OK(test, dat_evd_free(evd->h));
	}
}

/* ---- arguments; what starts an upcall ---- */

static void arguments(struct kunit *test)
{
	static const struct {
		int policy, func, flag, arg;
	} rows[] = {
		{ 3, 1, DAT_UPCALL_INVOC_NEW, 2 },
		{ -2, 1, DAT_UPCALL_INVOC_NEW, 2 },
		{ 99, 1, DAT_UPCALL_INVOC_NEW, 2 },
		{ 101, 1, 7, 2 },
		{ DAT_UPCALL_SINGLE_INSTANCE, 0, DAT_UPCALL_INVOC_NEW, 3 },
		{ DAT_UPCALL_MANY, 0, DAT_UPCALL_INVOC_ANY, 3 },
		{ DAT_UPCALL_NOTIFY, 0, 2, 3 },
		{ DAT_UPCALL_SINGLE_INSTANCE, 1, 2, 4 },
		{ DAT_UPCALL_DISABLE, 1, -1, 4 },
		{ DAT_UPCALL_TEARDOWN, 1, 2, 4 },
	};
	struct kdt_evd *evd = kdt_evd_new(test, &kdt_env(test)->a, DAT_EVD_SOFTWARE_FLAG);
	DAT_EVD_PARAM before, after;
	DAT_EVENT event;
	int i;

	KDT_OK(test, dat_evd_query(evd->h, DAT_EVD_FIELD_ALL, &before));
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		DAT_RETURN ret, want = DAT_ERROR(DAT_INVALID_PARAMETER,
						 (DAT_INVALID_ARG1 + rows[i].arg - 1));
		DAT_UPCALL_OBJECT upcall = before.upcall;

		if (!rows[i].func)
			upcall.upcall_func = NULL;
		ret = dat_evd_modify_upcall(evd->h, rows[i].policy, &upcall, rows[i].flag);
		KUNIT_EXPECT_TRUE_MSG(test, ret == want, "row %d: 0x%08x, not 0x%08x", i, ret,
				      want);
	}
	KDT_OK(test, dat_evd_query(evd->h, DAT_EVD_FIELD_ALL, &after));
	KUNIT_EXPECT_EQ(test, (int)after.upcall_policy, DAT_UPCALL_SINGLE_INSTANCE);
	KUNIT_EXPECT_TRUE(test, after.upcall.upcall_func == before.upcall.upcall_func);
	/* nothing of that has done it harm */
	KDT_OK(test, kdt_soft(evd, 1));
	KUNIT_ASSERT_TRUE(test, kdt_get(evd, &event));
	/* no function is kept: nothing to enable */
	KDT_OK(test, dat_evd_modify_upcall(evd->h, DAT_UPCALL_DISABLE, &DAT_UPCALL_NULL,
					   DAT_UPCALL_INVOC_NEW));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		    dat_evd_modify_upcall(evd->h, DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_SAME,
					  DAT_UPCALL_INVOC_NEW));
	KDT_OK(test, kdt_evd_set(evd, DAT_UPCALL_MANY, DAT_UPCALL_INVOC_NEW));
	KDT_OK(test, kdt_soft(evd, 2));
	KUNIT_ASSERT_TRUE(test, kdt_get(evd, &event));
	KUNIT_EXPECT_EQ(test, kdt_soft_number(&event), 2);
	KDT_OK(test, dat_evd_free(evd->h));
	KDT_TYPE(test, DAT_INVALID_HANDLE,
		 dat_evd_modify_upcall(evd->h, DAT_UPCALL_DISABLE, DAT_UPCALL_SAME,
				       DAT_UPCALL_INVOC_NEW));
	KDT_TYPE(test, DAT_INVALID_HANDLE, kdt_soft(evd, 3));
}

/* So many Receives are left: asking takes completions off the CQ. */
static void arrived(struct kunit *test, struct kdt_ep *ep, DAT_COUNT left)
{
	unsigned long end = jiffies + KDT_WAIT;
	DAT_COUNT n;

	do {
		KDT_OK(test, dat_ep_recv_query(ep->h, &n, NULL));
		if (n == left)
			return;
		schedule_timeout_uninterruptible(1);
	} while (time_before(jiffies, end));
	KUNIT_FAIL(test, "%d Receives left, not %d", n, left);
}

/* Messages that came while upcalls were disabled; their Receives are signalled or not. */
static void sent(struct kunit *test, struct kdt_pair *pair, struct kdt_buf *from, int first, int n)
{
	int i;

	for (i = first; i < first + n; i++)
		KDT_OK(test, kdt_send(&pair->c, from, 0, SIZE, i, 0));
	for (i = first; i < first + n; i++)
		kdt_dto(test, pair->c.req, &pair->c, i, DAT_DTO_SEND, DAT_DTO_SUCCESS, SIZE);
}

static void received(struct kunit *test, struct kdt_pair *pair, int first, int n)
{
	int i;

	for (i = first; i < first + n; i++)
		kdt_dto(test, pair->s.recv, &pair->s, i, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, SIZE);
}

struct invocation {
	struct kdt_pair *pair;
	struct kdt_buf *from, *to;
};

static void invocation(struct kunit *test, const struct invocation *inv, int policy, int flag,
		       int silent)
{
	struct kdt_buf *from = inv->from, *to = inv->to;
	struct kdt_pair *pair = inv->pair;
	DAT_LMR_TRIPLET iov = kdt_seg(to, 0, SIZE);
	struct kdt_evd *evd = pair->s.recv;
	unsigned int entered;

	KDT_OK(test, kdt_evd_set(evd, DAT_UPCALL_TEARDOWN, DAT_UPCALL_INVOC_NEW));
	entered = evd->entered;
	KDT_OK(test, dat_ep_post_recv(pair->s.h, 1, &iov, kdt_cookie(0), silent));
	KDT_OK(test, dat_ep_post_recv(pair->s.h, 1, &iov, kdt_cookie(1), silent));
	KDT_OK(test, dat_ep_post_recv(pair->s.h, 1, &iov, kdt_cookie(2), 0));
	sent(test, pair, from, 0, 2);
	if (evd->ia->iwarp)	/* there they have left, no more */
		arrived(test, &pair->s, 1);
	KDT_OK(test, kdt_evd_set(evd, policy, flag));
	if (flag == DAT_UPCALL_INVOC_ANY)
		received(test, pair, 0, 2);
	schedule_timeout_uninterruptible(1);
	if (flag == DAT_UPCALL_INVOC_NEW)
		KUNIT_EXPECT_EQ_MSG(test, READ_ONCE(evd->entered), entered,
				    "policy %d, flags 0x%x", policy, silent);
	sent(test, pair, from, 2, 1);
	if (flag == DAT_UPCALL_INVOC_NEW)
		received(test, pair, 0, 2);
	received(test, pair, 2, 1);
}

static void invocation_flags(struct kunit *test)
{
	static const int policies[] = {
		DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_NOTIFY, DAT_UPCALL_MANY,
	};
	struct kdt_env *env = kdt_env(test);
	struct kdt_evd *evd = kdt_evd_new(test, &env->b, DAT_EVD_DTO_FLAG);
	const struct invocation inv = {
		.pair = pair_on(test, evd, DAT_COMPLETION_UNSIGNALLED_FLAG),
		.from = kdt_buf_new(test, &env->a, SIZE),
		.to = kdt_buf_new(test, &env->b, SIZE),
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(policies); i++) {
		invocation(test, &inv, policies[i], DAT_UPCALL_INVOC_NEW, 0);
		invocation(test, &inv, policies[i], DAT_UPCALL_INVOC_ANY, 0);
		invocation(test, &inv, policies[i], DAT_UPCALL_INVOC_NEW,
			   DAT_COMPLETION_UNSIGNALLED_FLAG);
		invocation(test, &inv, policies[i], DAT_UPCALL_INVOC_ANY,
			   DAT_COMPLETION_UNSIGNALLED_FLAG);
	}
	kdt_pair_down(test, inv.pair);
}

/* The connection ends while nobody may be called. */
static void disabled_at_the_end(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, SIZE);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, SIZE);
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	unsigned int entered;
	int i, round;

	for (round = 0; round < 2; round++) {
		for (i = 0; i < 6; i++)
			KDT_OK(test, kdt_recv(&pair->s, to, 0, SIZE, i));
		kdt_pair_connect(test, pair);
		KDT_OK(test, kdt_send(&pair->c, from, 0, SIZE, 0, 0));
		kdt_dto(test, pair->s.recv, &pair->s, 0, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, SIZE);
		KDT_OK(test, kdt_evd_set(pair->s.recv, DAT_UPCALL_TEARDOWN, DAT_UPCALL_INVOC_NEW));
		KDT_OK(test, kdt_evd_set(pair->c.conn, DAT_UPCALL_TEARDOWN, DAT_UPCALL_INVOC_NEW));
		entered = pair->s.recv->entered;
		KDT_OK(test, kdt_send(&pair->c, from, 0, SIZE, 1, 0));
		for (i = 0; i < 2; i++)
			kdt_dto(test, pair->c.req, &pair->c, i, DAT_DTO_SEND, DAT_DTO_SUCCESS,
				SIZE);
		KDT_OK(test, dat_ep_disconnect(pair->c.h, DAT_CLOSE_GRACEFUL_FLAG));
		/* told, although nobody has taken the flushes */
		kdt_end(test, &pair->s);
		KUNIT_EXPECT_TRUE(test, kdt_wait_state(pair->c.h, DAT_EP_STATE_DISCONNECTED));
		KUNIT_EXPECT_EQ(test, pair->s.recv->entered, entered);
		KDT_OK(test, kdt_evd_set(pair->c.conn, DAT_UPCALL_SINGLE_INSTANCE,
					 DAT_UPCALL_INVOC_ANY));
		kdt_conn(test, &pair->c, DAT_CONNECTION_EVENT_DISCONNECTED);
		if (round) {
			KDT_OK(test, kdt_evd_set(pair->s.recv, DAT_UPCALL_NOTIFY,
						 DAT_UPCALL_INVOC_NEW));
			/* what is posted now is flushed, and that is new */
			KDT_OK(test, kdt_recv(&pair->s, to, 0, SIZE, 6));
		} else {
			KDT_OK(test, kdt_evd_set(pair->s.recv, DAT_UPCALL_MANY,
						 DAT_UPCALL_INVOC_ANY));
		}
		kdt_dto(test, pair->s.recv, &pair->s, 1, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, SIZE);
		for (i = 2; i < 6 + round; i++)
			kdt_dto(test, pair->s.recv, &pair->s, i, DAT_DTO_RECEIVE,
				DAT_DTO_ERR_FLUSHED, 0);
		KDT_OK(test, dat_ep_reset(pair->c.h));
		KDT_OK(test, dat_ep_reset(pair->s.h));
	}
	kdt_ep_done(test, &pair->s);
}

/* ---- NOTIFY ---- */

/* One notification, however much arrives, until a dequeue has found nothing. */
static void notify_once(struct kunit *test)
{
	struct kdt_evd *evd = kdt_evd_policy(test, &kdt_env(test)->a, DAT_EVD_SOFTWARE_FLAG, 64,
					     DAT_UPCALL_NOTIFY);
	unsigned long number = 0, got = 0;
	DAT_EVENT event;
	int i, round;
	long left;

	evd->keep = true;
	for (round = 1; round <= 100; round++) {
		for (i = 0; i < 5; i++)
			KDT_OK(test, kdt_soft(evd, number++));
		left = wait_event_timeout(evd->wait, READ_ONCE(evd->entered) >= round, KDT_WAIT);
		KUNIT_ASSERT_GT(test, left, 0);
		/* taking some changes nothing, nor does what comes then */
		for (i = 0; i < 3; i++) {
			KDT_OK(test, dat_evd_dequeue(evd->h, &event));
			KUNIT_EXPECT_EQ(test, kdt_soft_number(&event), got++);
		}
		KDT_OK(test, kdt_soft(evd, number++));
		while (dat_evd_dequeue(evd->h, &event) == DAT_SUCCESS)
			KUNIT_EXPECT_EQ(test, kdt_soft_number(&event), got++);
		KUNIT_EXPECT_EQ(test, got, number);
	}
	KDT_OK(test, kdt_evd_set(evd, DAT_UPCALL_TEARDOWN, DAT_UPCALL_INVOC_NEW));
	KUNIT_EXPECT_EQ(test, evd->entered, 100);
	KUNIT_EXPECT_EQ(test, evd->max_running, 1);
	KUNIT_EXPECT_FALSE(test, evd->strange);
}

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
	for (i = 0; i < SLOTS; i++)
		KDT_OK(test, kdt_recv(ep, ball->buf, 0, SIZE, 0));
	return ball;
}

/*
 * Few messages in the air, and each end stops when it finds nothing: if one
 * arrival did not wake its side, the game would be over.
 */
static void ping_pong(struct kunit *test, int policy, enum kdat_evd_context context, bool thread,
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

	pair->c.recv->hook = ball_hook;
	evd->hook = ball_hook;
	evd->keep = thread;	/* this task takes them */
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

static void notify_drain(struct kunit *test)
{
	ping_pong(test, DAT_UPCALL_NOTIFY, KDAT_EVD_CONTEXT_SOFTIRQ, false, 1);
	ping_pong(test, DAT_UPCALL_NOTIFY, KDAT_EVD_CONTEXT_WORKQUEUE, false, 3);
	ping_pong(test, DAT_UPCALL_NOTIFY, KDAT_EVD_CONTEXT_SOFTIRQ, true, 3);
	ping_pong(test, DAT_UPCALL_NOTIFY, KDAT_EVD_CONTEXT_WORKQUEUE, true, 1);
}

static void single_wakes(struct kunit *test)
{
	ping_pong(test, DAT_UPCALL_SINGLE_INSTANCE, KDAT_EVD_CONTEXT_SOFTIRQ, false, 1);
	ping_pong(test, DAT_UPCALL_SINGLE_INSTANCE, KDAT_EVD_CONTEXT_WORKQUEUE, false, 1);
}

/* ---- solicited wait ---- */

static void solicited_burst(struct kunit *test, struct kdt_pair *pair, struct kdt_buf *from,
			    struct kdt_buf *to, int n, bool end)
{
	int i;

	for (i = 0; i < n; i++)
		KDT_OK(test, kdt_recv(&pair->s, to, 0, SIZE, i));
	for (i = 0; i < n; i++)
		KDT_OK(test, kdt_send(&pair->c, from, 0, SIZE, i, end && i == n - 1 ?
				      DAT_COMPLETION_SOLICITED_WAIT_FLAG : 0));
	/* acknowledged: they are at the server */
	for (i = 0; i < n; i++)
		kdt_dto(test, pair->c.req, &pair->c, i, DAT_DTO_SEND, DAT_DTO_SUCCESS, SIZE);
}

static void solicited_all(struct kunit *test, struct kdt_pair *pair, int n)
{
	int i;

	for (i = 0; i < n; i++)
		kdt_dto(test, pair->s.recv, &pair->s, i, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, SIZE);
}

static void solicited(struct kunit *test)
{
	static const int policies[] = {
		DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_NOTIFY, DAT_UPCALL_MANY,
	};
	struct kdt_env *env = kdt_env(test);
	struct kdt_evd *evd = kdt_evd_new(test, &env->b, DAT_EVD_DTO_FLAG);
	struct kdt_pair *pair = pair_on(test, evd, DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, SIZE);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, SIZE);
	struct producer *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);
	struct ledger *l = ledger_new(test, scale(test, 1000));
	struct rnd_state rnd;
	int i, round;

	KUNIT_ASSERT_NOT_NULL(test, p);
	for (round = 0; round < 20; round++) {
		/* plain ones alone may wait; the solicited one brings them */
		solicited_burst(test, pair, from, to, 1 + round % 5, true);
		solicited_all(test, pair, 1 + round % 5);
		/* INVOC_ANY: whatever they are, they are queued */
		KDT_OK(test, kdt_evd_set(evd, DAT_UPCALL_TEARDOWN, DAT_UPCALL_INVOC_NEW));
		solicited_burst(test, pair, from, to, 3, false);
		KDT_OK(test, kdt_evd_set(evd, policies[round % 3], DAT_UPCALL_INVOC_ANY));
		solicited_all(test, pair, 3);
		/* INVOC_NEW: they wait for the next one that counts */
		KDT_OK(test, kdt_evd_set(evd, DAT_UPCALL_TEARDOWN, DAT_UPCALL_INVOC_NEW));
		solicited_burst(test, pair, from, to, 3, false);
		KDT_OK(test, kdt_evd_set(evd, policies[(round + 1) % 3], DAT_UPCALL_INVOC_NEW));
		solicited_burst(test, pair, from, to, 3, true);
		solicited_all(test, pair, 3);
		solicited_all(test, pair, 3);
	}
	/* the policy changes all the time, and only the last message asks for a notification */
	KDT_OK(test, kdt_evd_set(evd, DAT_UPCALL_TEARDOWN, DAT_UPCALL_INVOC_NEW));
	evd->priv = l;
	evd->hook = ledger_hook;
	KDT_OK(test, kdt_evd_set(evd, DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_INVOC_NEW));
	prandom_seed_state(&rnd, 4711);
	produce_start(test, p, pair, l->max);
	for (i = 0; i < 1000 && READ_ONCE(l->count) < l->max; i++) {
		flip_once(test, evd, &rnd, FLIP_ENABLED);
		wait_event_timeout(evd->wait, READ_ONCE(l->count) >= l->max, 1);
	}
	KUNIT_EXPECT_TRUE_MSG(test, ledger_full(l, evd), "%u of %u", l->count, l->max);
	KDT_OK(test, kdt_evd_set(evd, DAT_UPCALL_TEARDOWN, DAT_UPCALL_INVOC_NEW));
	ledger_check(test, l, false);
	evd->hook = NULL;
	produce_stop(test, p);
	kdt_pair_end(test, pair);
}

/* ---- MANY ---- */

/* The first upcall does not return before the second one has begun. */
struct meeting {
	atomic_t entered;
	struct completion second;
	bool met;
};

static bool meet_hook(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct meeting *m = evd->priv;

	if (atomic_inc_return(&m->entered) == 1)
		m->met = wait_for_completion_timeout(&m->second, KDT_WAIT);
	else
		complete(&m->second);
	return false;
}

static void many_at_once(struct kunit *test)
{
	struct kdt_evd *evd = kdt_evd_policy(test, &kdt_env(test)->a, DAT_EVD_SOFTWARE_FLAG, 64,
					     DAT_UPCALL_MANY);
	struct meeting *m = kunit_kzalloc(test, sizeof(*m), GFP_KERNEL);
	unsigned long seen = 0;
	DAT_EVENT event;
	int i, round;

	if (num_online_cpus() < 2)
		kunit_skip(test, "one upcall for each CPU, and there is one CPU");
	KUNIT_ASSERT_NOT_NULL(test, m);
	init_completion(&m->second);
	evd->priv = m;
	evd->hook = meet_hook;
	for (round = 0; round < 10; round++) {
		atomic_set(&m->entered, 0);
		reinit_completion(&m->second);
		for (i = 0; i < 6; i++)
			KDT_OK(test, kdt_soft(evd, i));
		for (i = 0, seen = 0; i < 6; i++) {
			KUNIT_ASSERT_TRUE(test, kdt_get(evd, &event));
			seen |= BIT(kdt_soft_number(&event));
		}
		KUNIT_EXPECT_EQ(test, seen, 0x3f);
		KUNIT_EXPECT_TRUE(test, kdt_idle(evd));
		KUNIT_EXPECT_TRUE(test, m->met);
	}
	KUNIT_EXPECT_GE(test, evd->max_running, 2);
	KUNIT_EXPECT_LE(test, evd->max_running, (int)num_online_cpus());
}

/* From MANY to SINGLE_INSTANCE while one sleeps: the next waits for it. */
static void many_to_single(struct kunit *test)
{
	struct kdt_evd *evd = kdt_evd_policy(test, &kdt_env(test)->a, DAT_EVD_SOFTWARE_FLAG, 64,
					     DAT_UPCALL_MANY);
	struct kdt_blocker *b = kdt_block(test, evd, false);
	DAT_EVENT event;
	int i;

	KDT_OK(test, kdt_soft(evd, 0));
	KUNIT_ASSERT_TRUE(test, wait_for_completion_timeout(&b->entered, KDT_WAIT));
	KDT_OK(test, dat_evd_modify_upcall(evd->h, DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_SAME,
					   DAT_UPCALL_INVOC_ANY));
	for (i = 1; i < 20; i++)
		KDT_OK(test, kdt_soft(evd, i));
	schedule_timeout_uninterruptible(1);
	KUNIT_EXPECT_EQ(test, READ_ONCE(evd->entered), 1);
	complete_all(&b->leave);
	for (i = 0; i < 20; i++) {
		KUNIT_ASSERT_TRUE(test, kdt_get(evd, &event));
		KUNIT_EXPECT_EQ(test, kdt_soft_number(&event), i);
	}
	KUNIT_EXPECT_EQ(test, evd->max_running, 1);
	KUNIT_EXPECT_EQ(test, evd->entered, 20);
}

/* What had begun to be due stays so: from policy to policy, and nothing new arrives. */
static void due_stays_due(struct kunit *test)
{
	static const int policies[] = {
		DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_NOTIFY, DAT_UPCALL_MANY,
	};
	unsigned long seen;
	struct kdt_evd *evd;
	struct kdt_blocker *b;
	DAT_EVENT event;
	int i, from, to;

	for (i = 0; i < 9; i++) {
		from = policies[i / 3];
		to = policies[i % 3];
		evd = kdt_evd_policy(test, &kdt_env(test)->a, DAT_EVD_SOFTWARE_FLAG, 8, from);
		b = kdt_block(test, evd, false);
		KDT_OK(test, kdt_soft(evd, 0));
		KUNIT_ASSERT_TRUE(test, wait_for_completion_timeout(&b->entered, KDT_WAIT));
		for (seen = 1; seen < 6; seen++)
			KDT_OK(test, kdt_soft(evd, seen));
		KDT_OK(test, dat_evd_modify_upcall(evd->h, to, DAT_UPCALL_SAME,
						   DAT_UPCALL_INVOC_NEW));
		complete_all(&b->leave);
		for (seen = 0; seen != 0x3f; seen |= BIT(kdt_soft_number(&event)))
			KUNIT_ASSERT_TRUE_MSG(test, kdt_get(evd, &event), "from %d to %d: 0x%lx",
					      from, to, seen);
		KUNIT_EXPECT_TRUE(test, kdt_idle(evd));
		KUNIT_EXPECT_EQ(test, kdt_queued(evd), 0);
	}
}

/* Messages and software events of several tasks, upcalls on all CPUs. */
struct poster {
	struct kdt_evd *evd;
	unsigned int first, count;
	struct task_struct *task;
	unsigned int full;
	DAT_RETURN failed;
};

static int post_soft(void *data)
{
	struct poster *p = data;
	DAT_RETURN ret = DAT_SUCCESS;
	unsigned int i;

	for (i = 0; i < p->count && ret == DAT_SUCCESS; i++) {
		while ((ret = kdt_soft(p->evd, p->first + i)) ==
		       DAT_ERROR(DAT_QUEUE_FULL, DAT_NO_SUBTYPE) && !kthread_should_stop()) {
			p->full++;
			schedule_timeout_uninterruptible(1);
		}
	}
	p->failed = ret;
	return kdt_until_stopped();
}

static void many_exactly_once(struct kunit *test)
{
	struct kdt_evd *evd = kdt_evd_policy(test, &kdt_env(test)->b,
					     DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG, 128,
					     DAT_UPCALL_MANY);
	struct kdt_pair *pair = pair_on(test, evd, DAT_COMPLETION_DEFAULT_FLAG);
	struct poster *posters = kunit_kcalloc(test, 3, sizeof(*posters), GFP_KERNEL);
	struct producer *p = kunit_kzalloc(test, sizeof(*p), GFP_KERNEL);
	unsigned int i, n = scale(test, 800);
	struct ledger *l = ledger_new(test, 4 * n);

	KUNIT_ASSERT_NOT_NULL(test, posters);
	KUNIT_ASSERT_NOT_NULL(test, p);
	evd->priv = l;
	evd->hook = ledger_hook;
	produce_start(test, p, pair, n);
	for (i = 0; i < 3; i++) {
		posters[i] = (struct poster) { .evd = evd, .first = n * (1 + i), .count = n };
		posters[i].task = kdt_beside(test, post_soft, &posters[i]);
	}
	KUNIT_EXPECT_TRUE_MSG(test, ledger_full(l, evd), "%u of %u", l->count, l->max);
	for (i = 0; i < 3; i++) {
		kdt_stop(test, posters[i].task);
		KUNIT_EXPECT_EQ(test, posters[i].failed, (DAT_RETURN)DAT_SUCCESS);
	}
	KDT_OK(test, kdt_evd_set(evd, DAT_UPCALL_TEARDOWN, DAT_UPCALL_INVOC_NEW));
	ledger_check(test, l, false);
	KUNIT_EXPECT_LE(test, evd->max_running, (int)num_online_cpus());
	evd->hook = NULL;
	produce_stop(test, p);
	kdt_pair_end(test, pair);
}

static struct kunit_case cases[] = {
	KD_CASE(arguments, "EVD-MOD-01,EVD-MOD-04,EVD-MOD-08,EVD-UP-10: what modify refuses"),
	KD_CASE(invocation_flags, "EVD-MOD-02,EVD-MOD-03,EVD-UP-03,EVD-UP-04,FLAG-04: NEW, ANY"),
	KD_CASE(flip_anything, "EVD-MOD-06,EVD-DQ-02,EVD-DQ-03: all policies in traffic, dequeues"),
	KD_CASE(flip_enabled, "EVD-MOD-06,EVD-DQ-06: from policy to policy, nothing forgotten"),
	KD_CASE(flip_teardown, "EVD-MOD-06,EVD-UP-08,EVD-DQ-04: order across TEARDOWN"),
	KD_CASE(from_inside, "EVD-MOD-05,EVD-MOD-07,EVD-UP-11: policies changed inside upcalls"),
	KD_CASE(teardown_waits, "EVD-UP-08,EVD-MOD-05: TEARDOWN while upcalls run elsewhere"),
	KD_CASE(disable_and_teardown, "EVD-MOD-05,EVD-UP-08: DISABLE does not wait, TEARDOWN does"),
	KD_CASE(disabled_at_the_end, "FLUSH-01,EVD-UP-05,EVD-MOD-03: disabled while it ends"),
	KD_CASE(notify_once, "EVD-UP-09: one notification until a dequeue finds nothing"),
	KD_CASE(notify_drain, "EVD-UP-09,EVD-DQ-06: NOTIFY and dequeue, no lost wake-up"),
	KD_CASE(single_wakes, "EVD-UP-06,EVD-DQ-06: ping-pong of one message, no lost wake-up"),
	KD_CASE(solicited, "FLAG-20,EVD-MOD-02,EVD-MOD-03: solicited wait while policies change"),
	KD_CASE(many_at_once, "EVD-UP-07: MANY, two upcalls meet"),
	KD_CASE(many_to_single, "EVD-UP-06,EVD-UP-07: SINGLE_INSTANCE waits for what MANY began"),
	KD_CASE(due_stays_due, "EVD-MOD-02,EVD-MOD-06: from policy to policy with INVOC_NEW"),
	KD_CASE(many_exactly_once, "EVD-UP-07,EVD-DQ-03,EVD-SE-04: MANY, each event once"),
	{}
};

struct kunit_suite kdt_upcall_suite = {
	.name = "kdtest-upcall",
	.init = kdt_init,
	.exit = kdt_exit,
	.test_cases = cases,
};
