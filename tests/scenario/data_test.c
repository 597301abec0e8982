// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Data: every byte where it belongs, completions in order, flags do what they say. */
#include <linux/sizes.h>

#include "kdtest_play.h"

#define BARRIER	DAT_COMPLETION_BARRIER_FENCE_FLAG
#define UNSIG	DAT_COMPLETION_UNSIGNALLED_FLAG
#define SOLICIT	DAT_COMPLETION_SOLICITED_WAIT_FLAG

/* No segments, and segments of nothing whose other members are garbage. */
static void nothing_at_all(struct kunit *test)
{
	DAT_LMR_TRIPLET junk[3] = { { 0xdeadbeefdeadbeefULL, 0, 0xffffffff }, {}, { ~0ULL, 0, 1 } };
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, 64);
	DAT_RMR_TRIPLET remote = kdt_rseg(to, 0, 0);
	int n;

	memset(to->p, 0x77, 64);
	for (n = 0; n <= 3; n += 3) {
		DAT_LMR_TRIPLET *iov = n ? junk : NULL;

		KDT_OK(test, dat_ep_post_recv(pair->s.h, n, iov, kdt_cookie(1), 0));
		KDT_OK(test, kdt_recv(&pair->s, to, 0, 64, 2));
		KDT_OK(test, dat_ep_post_send(pair->c.h, n, iov, kdt_cookie(3), 0));
		KDT_OK(test, dat_ep_post_send(pair->c.h, n, iov, kdt_cookie(4), 0));
		KDT_OK(test, dat_ep_post_rdma_write(pair->c.h, n, iov, kdt_cookie(5), &remote, 0));
		KDT_OK(test, dat_ep_post_rdma_read(pair->c.h, min(n, 1), iov, kdt_cookie(6),
						   &remote, 0));
		kdt_came(test, &pair->s, 1, 0);
		kdt_came(test, &pair->s, 2, 0);
		kdt_sent(test, &pair->c, 3, DAT_DTO_SEND, 0);
		kdt_sent(test, &pair->c, 4, DAT_DTO_SEND, 0);
		kdt_sent(test, &pair->c, 5, DAT_DTO_RDMA_WRITE, 0);
		kdt_sent(test, &pair->c, 6, DAT_DTO_RDMA_READ, 0);
		KUNIT_EXPECT_TRUE(test, kdt_all(to->p, 64, 0x77));
	}
}

/* All kinds of requests in one queue, any cookies: reported in the order they were posted. */
static void post_order(struct kunit *test)
{
	static const DAT_DTOS kind[] = { DAT_DTO_RDMA_READ, DAT_DTO_SEND, DAT_DTO_RDMA_WRITE,
					 DAT_DTO_RDMA_READ, DAT_DTO_RDMA_READ, DAT_DTO_SEND };
	static const u64 values[] = { 0, 1, U64_MAX, 0x8000000000000000ULL, 0x0123456789abcdefULL,
				      0xffffffff00000000ULL, 0x00000000ffffffffULL, 0, 0, 1 };
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, 65536);
	struct kdt_buf *theirs = kdt_buf_new(test, &env->b, 65536);
	struct kdt_ep *c = &pair->c;
	int i, round, n = 48;

	for (round = 0; round < 4; round++) {
		for (i = 0; i < n / 3; i++)
			KDT_OK(test, kdt_recv(&pair->s, theirs, 0, 64, ~values[i % 10]));
		for (i = 0; i < n; i++) {
			u64 cookie = values[(i + round) % 10];

			if (kind[i % 6] == DAT_DTO_SEND)
				KDT_OK(test, kdt_send(c, mine, 0, 64, cookie, 0));
			else if (kind[i % 6] == DAT_DTO_RDMA_WRITE)
				KDT_OK(test, kdt_write(c, mine, 0, 64, theirs, 0, cookie, 0));
			else	/* long ones, so that others could overtake */
				KDT_OK(test, kdt_read(c, mine, 64, 16384, theirs, 64, cookie, 0));
		}
		for (i = 0; i < n; i++)
			kdt_sent(test, c, values[(i + round) % 10], kind[i % 6],
				 kind[i % 6] == DAT_DTO_RDMA_READ ? 16384 : 64);
		for (i = 0; i < n / 3; i++)
			kdt_came(test, &pair->s, ~values[i % 10], 64);
	}
}

/*
 * A suppressed Write is in the peer's memory when the Send behind it comes there; when that
 * is done here, its own memory may be used again.
 */
static void write_then_send(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *from = kdt_mem_new(test, SZ_256K, false);	/* pages by themselves */
	struct kdt_buf *to = kdt_buf_new(test, &env->b, SZ_256K);
	DAT_REGION_DESCRIPTION region = { .for_va = from->p };
	u32 i, len, bad = 0;

	KDT_OK(test, dat_lmr_kcreate(env->a.h, DAT_MEM_TYPE_VIRTUAL, region, SZ_256K, env->a.pz,
				     KDT_RIGHTS, DAT_VA_TYPE_VA, 0, &from->lmr, &from->lctx,
				     &from->rctx, NULL, NULL));
	for (i = 0; i < 8 * KD_TIMES(20); i++) {
		len = SZ_2K << i % 8;
		kdt_fill(from->p, len, i);
		KDT_OK(test, dat_ep_post_recv(pair->s.h, 0, NULL, kdt_cookie(3), 0));
		KDT_OK(test, kdt_write(&pair->c, from, 0, len, to, 0, 1, KDT_SUPPRESS));
		KDT_OK(test, dat_ep_post_send(pair->c.h, 0, NULL, kdt_cookie(2), 0));
		if (i & 8) {
			kdt_came(test, &pair->s, 3, 0);
			bad += !kdt_same(to->p, len, i);
		}
		kdt_sent(test, &pair->c, 2, DAT_DTO_SEND, 0);
		memset(from->p, 0xee, len);
		if (!(i & 8)) {
			kdt_came(test, &pair->s, 3, 0);
			bad += !kdt_same(to->p, len, i);
		}
	}
	KUNIT_EXPECT_EQ(test, bad, 0);
}

/* What a fenced request carries is what the Read before it has brought. */
static void fences(struct kunit *test)
{
	enum { LEN = SZ_64K };	/* the second half of a buffer: what comes back */
	static const struct kdt_step sends[] = {
		{ FILL, B, SZ_16K, 100 },
		{ FILL, A, LEN, 1 },
		{ RECV, B, SZ_16K, 0, LEN },
		{ READ_FROM, A, SZ_16K, KDT_SUPPRESS },
		{ SEND, A, SZ_16K, BARRIER },
		{ CAME, B, SZ_16K },
		{ SAME, B, SZ_16K, 100, LEN },
		{ DONE, A },
	}, everything[] = {
		{ FILL, B, LEN, 100 },
		{ FILL, A, 2 * LEN, 1 },
		{ RECV, B, LEN, 0, LEN },
		{ READ_FROM, A, LEN },
		{ WRITE_TO, A, LEN, BARRIER, 0, LEN },
		/* requests start in order: this one finds what the Write has left */
		{ READ_FROM, A, LEN, BARRIER, LEN },
		{ SEND, A, LEN, BARRIER, LEN },
		{ CAME, B, LEN },
		{ SAME, B, LEN, 100, LEN },
		{ DONE, A, .times = 4 },
		{ SAME, A, LEN, 100, LEN },
	};
	struct kdt_play *p = kdt_play_new(test, kdt_pair_up(test), 2 * LEN);
	struct kdt_end *a = &p->end[A];

	for (p->round = 0; p->round < 15; p->round++) {
		kdt_play(test, p, sends);
		if (kdt_fence)
			kdt_play(test, p, everything);
	}
	/* A device that fences Sends only says so: never a fence that is none. */
	if (!kdt_fence)
		KDT_REFUSED(test, DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE,
			    kdt_write(a->ep, a->buf, 0, 64, p->end[B].buf, 0, 5, BARRIER));
}

/* Once more while there is no room. */
static void post_patiently(struct kunit *test, struct kdt_pair *pair, DAT_DTOS kind,
			   struct kdt_buf *mine, struct kdt_buf *theirs, u64 cookie, int flags)
{
	unsigned long end = jiffies + KDT_WAIT;
	DAT_RETURN ret;

	for (;;) {
		if (kind == DAT_DTO_SEND)
			ret = kdt_send(&pair->c, mine, 0, 64, cookie, flags);
		else if (kind == DAT_DTO_RDMA_WRITE)
			ret = kdt_write(&pair->c, mine, 0, 64, theirs, 0, cookie, flags);
		else
			ret = kdt_read(&pair->c, mine, 0, 64, theirs, 0, cookie, flags);
		if (DAT_GET_TYPE(ret) != DAT_INSUFFICIENT_RESOURCES || time_after(jiffies, end))
			break;
		schedule_timeout_uninterruptible(1);
	}
	KDT_OK(test, ret);
}

/* Ten queues full of each kind without an event, and nobody looks at the EVD. */
static void suppressed(struct kunit *test)
{
	static const int depths[] = { 1, 3, 16, KDT_DTOS };
	struct kdt_env *env = kdt_env(test);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, 64);
	struct kdt_buf *theirs = kdt_buf_new(test, &env->b, 64);
	struct kdt_pair *pair;
	DAT_EP_ATTR attr;
	DAT_EVENT event;
	int d, i;

	for (d = 0; d < ARRAY_SIZE(depths); d++) {
		kdt_attr(env, &attr);
		attr.max_request_dtos = depths[d];
		pair = kdt_pair_quiet(test, &attr);
		for (i = 0; i < 10 * depths[d]; i++) {
			KDT_OK(test, kdt_recv(&pair->s, theirs, 0, 64, i));
			post_patiently(test, pair, DAT_DTO_SEND, mine, theirs, i, KDT_SUPPRESS);
			kdt_came(test, &pair->s, i, 64);
		}
		for (i = 0; i < 20 * depths[d]; i++)
			post_patiently(test, pair, i < 10 * depths[d] ? DAT_DTO_RDMA_WRITE :
				       DAT_DTO_RDMA_READ, mine, theirs, i, KDT_SUPPRESS);
		KDT_REFUSED(test, DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE,
			    dat_evd_dequeue(pair->c.req->h, &event));
		/* A signalled one says that all of them have succeeded. */
		post_patiently(test, pair, DAT_DTO_RDMA_READ, mine, theirs, 9, 0);
		kdt_sent(test, &pair->c, 9, DAT_DTO_RDMA_READ, 64);
		/* Those that fail are reported all the same. */
		kdt_pair_down(test, pair);
		KDT_OK(test, kdt_send(&pair->c, mine, 0, 64, 3, KDT_SUPPRESS));
		kdt_flushed(test, &pair->c, 3, DAT_DTO_SEND);
		kdt_pair_done(test, pair);
	}
}

/* Both sides without notification: they wait for one that notifies, or for the consumer. */
static void unsignalled(struct kunit *test)
{
	static const struct kdt_step steps[] = {
		{ MARK, A },
		{ MARK, B },
		{ RECV, B, 64, UNSIG, .times = 5 },
		{ RECV, B, 64 },
		{ SEND, A, 64, UNSIG, .times = 5 },
		/* SUPPRESS is stronger; a dequeue finds the Read, answered after all of them */
		{ WRITE_TO, A, 64, UNSIG | KDT_SUPPRESS },
		{ READ_FROM, A, 64, UNSIG },
		{ TAKE, A, .times = 6 },
		{ SILENT, A },
		{ SILENT, B },
		/* the ones that notify bring the others along, which come before them */
		{ WRITE_TO, A, 64, UNSIG },
		{ SEND, A, 64 },
		{ DONE, A, .times = 2 },
		{ CAME, B, 64, .times = 6 },
	};
	struct kdt_pair *pair;
	DAT_EP_ATTR attr;

	kdt_attr(kdt_env(test), &attr);
	attr.recv_completion_flags = UNSIG;
	attr.request_completion_flags = UNSIG;
	pair = kdt_pair_new(test, &attr);
	kdt_pair_connect(test, pair);
	kdt_play(test, kdt_play_new(test, pair, 64), steps);
}

static void solicited(struct kunit *test)
{
	static const struct kdt_step unasked[] = {
		{ RECV, B, 64, .times = 5 },
		{ MESSAGE, A, 64, .times = 4 },
		/* all have arrived, on every transport */
		{ READ_FROM, A, 64 },
		{ DONE, A },
	}, asked[] = {
		{ SEND, A, 64, SOLICIT },
		{ DONE, A },
		/* it brings those before it along; too many calls are legal */
		{ CAME, B, 64, .times = 5 },
		/* the end of the connection is never silent */
		{ RECV, B, 64 },
		{ LEAVE, A },
		{ GONE, B, 1 },
	};
	unsigned int i, silent = 0;

	for (i = 0; i < 5; i++) {
		struct kdt_pair *pair;
		struct kdt_play *p;
		DAT_EP_ATTR attr;

		kdt_attr(kdt_env(test), &attr);
		attr.recv_completion_flags = SOLICIT;
		pair = kdt_pair_new(test, &attr);
		kdt_pair_connect(test, pair);
		p = kdt_play_new(test, pair, 64);
		kdt_play(test, p, unasked);
		silent += !pair->s.recv->calls;
		kdt_play(test, p, asked);
	}
	/* A look around that was under way anyway may take some along, not always. */
	if (kdt_env(test)->b.prov.completion_flags_supported & SOLICIT)
		KUNIT_EXPECT_GT_MSG(test, silent, 0, "told of what nobody asked for, each time");
	else
		KUNIT_EXPECT_EQ(test, silent, 0);
}

/* ---- posts from upcalls, with interrupts off ---- */

struct echo {
	struct kdt_ep *ep;
	struct kdt_buf *buf, *theirs;
	unsigned int left, reads, inside;
	atomic_t ready;		/* a message has come, the last Read is done */
	int cpu;		/* inside a post on this one */
	DAT_RETURN ret;
};

/* A post, and no upcall from inside of it. */
static void echo_posts(struct echo *e)
{
	unsigned long flags;

	local_irq_save(flags);
	WRITE_ONCE(e->cpu, raw_smp_processor_id());
	e->ret |= kdt_recv(e->ep, e->buf, 0, 64, 0);
	e->ret |= kdt_write(e->ep, e->buf, 64, 64, e->theirs, 64, 0, KDT_SUPPRESS);
	e->ret |= kdt_read(e->ep, e->buf, 128, 64, e->theirs, 64, 0, 0);
	e->ret |= kdt_send(e->ep, e->buf, 64, 64, 0, KDT_SUPPRESS);
	WRITE_ONCE(e->cpu, -1);
	local_irq_restore(flags);
}

/*
 * Answers a message from inside the upcall that brings it, or from that of the last Read if the
 * message was faster: so the queue is never full.
 */
static void echo_answers(struct echo *e)
{
	if (atomic_inc_return(&e->ready) < 2)
		return;
	atomic_set(&e->ready, 0);
	echo_posts(e);
}

static bool echo_hook(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct echo *e = evd->priv;
	unsigned int left;

	e->inside += READ_ONCE(e->cpu) == raw_smp_processor_id();
	if (event->event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS || !e->left)
		return false;
	left = --e->left;
	echo_answers(e);
	return left;
}

static bool echo_read(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct echo *e = evd->priv;

	e->inside += READ_ONCE(e->cpu) == raw_smp_processor_id();
	if (event->event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS) {
		e->reads++;
		echo_answers(e);
	}
	return true;
}

static void posts_in_upcalls(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct echo *e = kdt_zalloc(test, 2 * sizeof(*e));
	unsigned int n = KD_TIMES(500);
	DAT_EVENT event;
	int i;

	for (i = 0; i < 2; i++) {
		e[i].ep = i ? &pair->s : &pair->c;
		e[i].buf = kdt_buf_new(test, i ? &env->b : &env->a, 192);
		e[i].left = n;
		atomic_set(&e[i].ready, i);	/* the server has no Read to wait for */
		e[i].cpu = -1;
		e[i].ep->recv->priv = &e[i];
		e[i].ep->recv->hook = echo_hook;
		e[i].ep->req->priv = &e[i];
		e[i].ep->req->hook = echo_read;
		KDT_OK(test, kdt_recv(e[i].ep, e[i].buf, 0, 64, 0));
	}
	e[0].theirs = e[1].buf;
	e[1].theirs = e[0].buf;
	/* from a task, too */
	echo_posts(&e[0]);
	/* The last answer of the client is queued for us. */
	KUNIT_ASSERT_TRUE(test, kdt_get_timeout(pair->c.recv, &event, 3 * KDT_WAIT));
	KUNIT_EXPECT_EQ(test, e[0].left, 0);
	/* And the server has got it: nothing is under way any more. */
	KUNIT_ASSERT_TRUE(test, kdt_get(pair->s.recv, &event));
	KUNIT_ASSERT_TRUE(test, kdt_get(pair->s.recv, &event));
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_TRUE(test, wait_event_timeout(e[i].ep->req->wait,
							   READ_ONCE(e[i].reads) == n + !i,
							   KDT_WAIT));
		KDT_OK(test, e[i].ret);
		KUNIT_EXPECT_EQ(test, e[i].inside, 0);
		KUNIT_EXPECT_TRUE(test, e[i].ep->recv->softirq);
	}
	kdt_pair_down(test, pair);
	for (i = 0; i < 2; i++) {
		e[i].ep->recv->hook = NULL;
		e[i].ep->req->hook = NULL;
	}
}

static struct kunit_case cases[] = {
	KD_CASE(nothing_at_all, "SEND-02,SEND-03,SEND-16,RECV-02,SIL-19,EP-POST-12: nothing"),
	KD_CASE(post_order,
		"EP-POST-08..09,EP-POST-21,GEN-12,RECV-04,SEND-05,RDMAW-18,RDMAR-05: order"),
	KD_CASE(write_then_send, "RDMAW-17,FLAG-02,SIL-04: a suppressed Write and a Send"),
	KD_CASE(fences, "FLAG-09,SEND-10,RDMAR-16: fenced requests wait for Reads"),
	KD_CASE(suppressed, "FLAG-02,FLAG-03,FLAG-11,SEND-07,SEND-18,SIL-04: suppressed"),
	KD_CASE(unsignalled,
		"FLAG-04,FLAG-05,FLAG-20,FLAG-21,SEND-09,EVD-UP-03,EVD-UP-04: unsignalled"),
	KD_CASE(solicited, "SEND-08,RECV-07,FLAG-07,FLAG-08,FLAG-20: solicited wait"),
	KD_CASE(posts_in_upcalls,
		"CTX-02,EVD-UP-11,EVD-UP-13,EP-POST-06,SEND-15,RECV-09,RDMAW-08,RDMAR-09: posts"),
	{}
};

struct kunit_suite kdt_data_suite = { .name = "kdtest-data", KDT_CASES };
