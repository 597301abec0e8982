// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Data: every byte where it belongs, completions in order, flags do what they say. */
#include <linux/sizes.h>
#include <linux/slab.h>

#include "kdtest_mem.h"

/* Send, Write to an odd place, Read back; with the rights that it takes. */
static void all_sizes(struct kunit *test)
{
	static const u32 sizes[] = { 1, 2, 3, 63, 64, 65, 1023, 1024, 1025, 4095, 4096, 4097, 8192,
				     65535, 65536, 65537, 131072, KDT_SIZE - 1, KDT_SIZE };
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *from = kdt_buf_rights(test, &env->a, KDT_SIZE,
					      DAT_MEM_PRIV_LOCAL_READ_FLAG);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, KDT_SIZE + 1);
	struct kdt_buf *back = kdt_buf_rights(test, &env->a, KDT_SIZE + 1,
					      env->a.iwarp ? (int)KDT_RIGHTS :
					      DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
	u32 len;
	int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		len = sizes[i];
		kdt_fill(from->p, len, i);
		memset(to->p, 0xcc, to->len);
		KDT_OK(test, kdt_recv(&pair->s, to, 0, to->len, 1));
		KDT_OK(test, kdt_send(&pair->c, from, 0, len, 2, 0));
		kdt_sent(test, &pair->c, 2, DAT_DTO_SEND, len);
		kdt_came(test, &pair->s, 1, len);
		KUNIT_EXPECT_TRUE_MSG(test, kdt_same(to->p, len, i), "send %u", len);
		KUNIT_EXPECT_TRUE(test, kdt_all(to->p + len, to->len - len, 0xcc));
		kdt_fill(from->p, len, 100 + i);
		memset(to->p, 0xcc, to->len);
		memset(back->p, 0xdd, back->len);
		KDT_OK(test, kdt_write(&pair->c, from, 0, len, to, 1, 3, 0));
		KDT_OK(test, kdt_read(&pair->c, back, 1, len, to, 1, 4, 0));
		kdt_sent(test, &pair->c, 3, DAT_DTO_RDMA_WRITE, len);
		kdt_sent(test, &pair->c, 4, DAT_DTO_RDMA_READ, len);
		KUNIT_EXPECT_TRUE_MSG(test, kdt_same(to->p + 1, len, 100 + i), "write %u", len);
		KUNIT_EXPECT_TRUE(test, to->p[0] == 0xcc);
		KUNIT_EXPECT_TRUE(test, kdt_all(to->p + 1 + len, to->len - 1 - len, 0xcc));
		KUNIT_EXPECT_TRUE_MSG(test, kdt_same(back->p + 1, len, 100 + i), "read %u", len);
		KUNIT_EXPECT_TRUE(test, back->p[0] == 0xdd);
		KUNIT_EXPECT_TRUE(test, kdt_all(back->p + 1 + len, back->len - 1 - len, 0xdd));
	}
	/* The peer of RDMA has no event of it. */
	KUNIT_EXPECT_EQ(test, kdt_queued(pair->s.req), 0);
	KUNIT_EXPECT_EQ(test, kdt_queued(pair->s.recv), 0);
}

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

/* All values, several of them at a time. */
static void cookies(struct kunit *test)
{
	static const u64 values[] = { 0, 1, U64_MAX, 0x8000000000000000ULL, 0x0123456789abcdefULL,
				      0xffffffff00000000ULL, 0x00000000ffffffffULL, 0, 0, 1 };
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, 64);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, 64);
	int i;

	for (i = 0; i < ARRAY_SIZE(values); i++) {
		KDT_OK(test, kdt_recv(&pair->s, to, 0, 64, ~values[i]));
		KDT_OK(test, kdt_send(&pair->c, from, 0, 64, values[i], 0));
		KDT_OK(test, kdt_write(&pair->c, from, 0, 64, to, 0, values[i], 0));
		KDT_OK(test, kdt_read(&pair->c, from, 0, 64, to, 0, values[i], 0));
	}
	for (i = 0; i < ARRAY_SIZE(values); i++) {
		kdt_sent(test, &pair->c, values[i], DAT_DTO_SEND, 64);
		kdt_sent(test, &pair->c, values[i], DAT_DTO_RDMA_WRITE, 64);
		kdt_sent(test, &pair->c, values[i], DAT_DTO_RDMA_READ, 64);
		kdt_came(test, &pair->s, ~values[i], 64);
	}
}

/* All kinds of requests in one queue: reported in the order they were posted. */
static void post_order(struct kunit *test)
{
	static const DAT_DTOS kind[] = { DAT_DTO_RDMA_READ, DAT_DTO_SEND, DAT_DTO_RDMA_WRITE,
					 DAT_DTO_RDMA_READ, DAT_DTO_RDMA_READ, DAT_DTO_SEND };
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, 65536);
	struct kdt_buf *theirs = kdt_buf_new(test, &env->b, 65536);
	int i, round, n = 48;

	for (round = 0; round < 4; round++) {
		for (i = 0; i < n / 3; i++)
			KDT_OK(test, kdt_recv(&pair->s, theirs, 0, 64, i));
		for (i = 0; i < n; i++) {
			if (kind[i % 6] == DAT_DTO_SEND)
				KDT_OK(test, kdt_send(&pair->c, mine, 0, 64, i, 0));
			else if (kind[i % 6] == DAT_DTO_RDMA_WRITE)
				KDT_OK(test, kdt_write(&pair->c, mine, 0, 64, theirs, 0, i, 0));
			else	/* long ones, so that others could overtake */
				KDT_OK(test, kdt_read(&pair->c, mine, 64, 16384, theirs, 64, i, 0));
		}
		for (i = 0; i < n; i++)
			kdt_sent(test, &pair->c, i, kind[i % 6],
				 kind[i % 6] == DAT_DTO_RDMA_READ ? 16384 : 64);
		for (i = 0; i < n / 3; i++)
			kdt_came(test, &pair->s, i, 64);
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
	const int barrier = DAT_COMPLETION_BARRIER_FENCE_FLAG;
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, SZ_64K);
	struct kdt_buf *again = kdt_buf_new(test, &env->a, SZ_64K);
	struct kdt_buf *theirs = kdt_buf_new(test, &env->b, SZ_64K);
	struct kdt_buf *echo = kdt_buf_new(test, &env->b, SZ_64K);
	int i;

	for (i = 0; i < 30; i++) {
		u32 len = i & 1 ? SZ_64K : SZ_16K;

		kdt_fill(theirs->p, len, i);
		memset(mine->p, 0, len);
		memset(echo->p, 0, len);
		memset(again->p, 0, len);
		KDT_OK(test, kdt_recv(&pair->s, echo, 0, len, 1));
		KDT_OK(test, kdt_read(&pair->c, mine, 0, len, theirs, 0, 2,
				      i & 1 ? KDT_SUPPRESS : 0));
		if (i % 3 && kdt_fence) {
			KDT_OK(test, kdt_write(&pair->c, mine, 0, len, echo, 0, 3, barrier));
			/* Requests start in order: this one finds what the Write has left. */
			KDT_OK(test, kdt_read(&pair->c, again, 0, len, echo, 0, 4, barrier));
			KDT_OK(test, kdt_send(&pair->c, again, 0, len, 5, barrier));
		} else {
			KDT_OK(test, kdt_send(&pair->c, mine, 0, len, 5, barrier));
		}
		kdt_came(test, &pair->s, 1, len);
		KUNIT_EXPECT_TRUE_MSG(test, kdt_same(echo->p, len, i), "round %d", i);
		if (!(i & 1))
			kdt_sent(test, &pair->c, 2, DAT_DTO_RDMA_READ, len);
		if (i % 3 && kdt_fence) {
			kdt_sent(test, &pair->c, 3, DAT_DTO_RDMA_WRITE, len);
			kdt_sent(test, &pair->c, 4, DAT_DTO_RDMA_READ, len);
			KUNIT_EXPECT_TRUE_MSG(test, kdt_same(again->p, len, i), "round %d", i);
		}
		kdt_sent(test, &pair->c, 5, DAT_DTO_SEND, len);
	}
	/* A device that fences Sends only says so: never a fence that is none. */
	if (!kdt_fence)
		KDT_REFUSED(test, DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE,
			    kdt_write(&pair->c, mine, 0, 64, theirs, 0, 5, barrier));
}

/* Once more while there is no room. */
static DAT_RETURN post_patiently(struct kdt_pair *pair, DAT_DTOS kind, struct kdt_buf *mine,
				 struct kdt_buf *theirs, u64 cookie, int flags)
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
			return ret;
		schedule_timeout_uninterruptible(1);
	}
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
			KDT_OK(test, post_patiently(pair, DAT_DTO_SEND, mine, theirs, i,
						    KDT_SUPPRESS));
			kdt_came(test, &pair->s, i, 64);
		}
		for (i = 0; i < 20 * depths[d]; i++)
			KDT_OK(test, post_patiently(pair, i < 10 * depths[d] ? DAT_DTO_RDMA_WRITE :
						    DAT_DTO_RDMA_READ, mine, theirs, i,
						    KDT_SUPPRESS));
		KDT_REFUSED(test, DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE,
			    dat_evd_dequeue(pair->c.req->h, &event));
		/* A signalled one says that all of them have succeeded. */
		KDT_OK(test, post_patiently(pair, DAT_DTO_RDMA_READ, mine, theirs, 9, 0));
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
	const int unsig = DAT_COMPLETION_UNSIGNALLED_FLAG;
	struct kdt_env *env = kdt_env(test);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, 64);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, 64);
	DAT_LMR_TRIPLET iov = kdt_seg(to, 0, 64);
	unsigned int requests, receives;
	struct kdt_pair *pair;
	DAT_EP_ATTR attr;
	DAT_EVENT event;
	int i;

	kdt_attr(env, &attr);
	attr.recv_completion_flags = unsig;
	attr.request_completion_flags = unsig;
	pair = kdt_pair_new(test, &attr);
	kdt_pair_connect(test, pair);
	requests = pair->c.req->calls;
	receives = pair->s.recv->calls;
	for (i = 0; i < 6; i++)
		KDT_OK(test, dat_ep_post_recv(pair->s.h, 1, &iov, kdt_cookie(i),
					      i < 5 ? unsig : 0));
	for (i = 0; i < 5; i++)
		KDT_OK(test, kdt_send(&pair->c, from, 0, 64, i, unsig));
	/* SUPPRESS is stronger; a dequeue finds the Read, which is answered after all of them. */
	KDT_OK(test, kdt_write(&pair->c, from, 0, 64, to, 0, 8, unsig | KDT_SUPPRESS));
	KDT_OK(test, kdt_read(&pair->c, from, 0, 64, to, 0, 9, unsig));
	for (i = 0; i < 6; i++) {
		KUNIT_ASSERT_TRUE(test, kdt_dequeue(pair->c.req->h, &event));
		KUNIT_EXPECT_EQ(test, event.event_data.dto_completion_event_data.user_cookie.as_64,
				i < 5 ? i : 9);
	}
	KUNIT_EXPECT_EQ(test, pair->c.req->calls, requests);
	KUNIT_EXPECT_EQ(test, pair->s.recv->calls, receives);
	/* The ones that notify bring the others along, which come before them. */
	KDT_OK(test, kdt_write(&pair->c, from, 0, 64, to, 0, 5, unsig));
	KDT_OK(test, kdt_send(&pair->c, from, 0, 64, 6, 0));
	kdt_sent(test, &pair->c, 5, DAT_DTO_RDMA_WRITE, 64);
	kdt_sent(test, &pair->c, 6, DAT_DTO_SEND, 64);
	for (i = 0; i < 6; i++)
		kdt_came(test, &pair->s, i, 64);
}

static unsigned int solicited_round(struct kunit *test, struct kdt_buf *from, struct kdt_buf *to)
{
	struct kdt_pair *pair;
	unsigned int silent;
	DAT_EP_ATTR attr;
	int i;

	kdt_attr(kdt_env(test), &attr);
	attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	pair = kdt_pair_new(test, &attr);
	kdt_pair_connect(test, pair);
	for (i = 0; i < 5; i++)
		KDT_OK(test, kdt_recv(&pair->s, to, 0, 64, i));
	for (i = 0; i < 4; i++) {
		KDT_OK(test, kdt_send(&pair->c, from, 0, 64, i, 0));
		kdt_sent(test, &pair->c, i, DAT_DTO_SEND, 64);
	}
	/* All have arrived, on every transport. */
	kdt_fetch(test, &pair->c, from, 0, 64, to, 0);
	silent = !pair->s.recv->calls;
	KDT_OK(test, kdt_send(&pair->c, from, 0, 64, 4, DAT_COMPLETION_SOLICITED_WAIT_FLAG));
	kdt_sent(test, &pair->c, 4, DAT_DTO_SEND, 64);
	/* The one that asks brings those before it along; too many calls are legal. */
	for (i = 0; i < 5; i++)
		kdt_came(test, &pair->s, i, 64);
	/* The end of the connection is never silent. */
	KDT_OK(test, kdt_recv(&pair->s, to, 0, 64, 9));
	kdt_pair_down(test, pair);
	kdt_flushed(test, &pair->s, 9, DAT_DTO_RECEIVE);
	return silent;
}

static void solicited(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, 64);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, 64);
	unsigned int i, silent = 0;

	for (i = 0; i < 5; i++)
		silent += solicited_round(test, from, to);
	/* A look around that was under way anyway may take some along, not always. */
	if (env->b.prov.completion_flags_supported & DAT_COMPLETION_SOLICITED_WAIT_FLAG)
		KUNIT_EXPECT_GT_MSG(test, silent, 0, "told of what nobody asked for, each time");
	else
		KUNIT_EXPECT_EQ(test, silent, 0);
}

struct echo {
	struct kdt_ep *ep;
	struct kdt_buf *buf;
	unsigned int left;
	DAT_RETURN ret;
};

/* Answers each message from inside the upcall that brings it. */
static bool echo_hook(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct echo *e = evd->priv;

	if (event->event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS || !e->left)
		return false;
	e->left--;
	e->ret |= kdt_recv(e->ep, e->buf, 0, 64, 0);
	e->ret |= kdt_send(e->ep, e->buf, 0, 64, 0, DAT_COMPLETION_SUPPRESS_FLAG);
	return e->left;
}

static void posts_in_upcalls(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct echo *c = kdt_zalloc(test, sizeof(*c));
	struct echo *s = kdt_zalloc(test, sizeof(*s));
	DAT_EVENT event;

	*c = (struct echo) { &pair->c, kdt_buf_new(test, &env->a, 128), 500, DAT_SUCCESS };
	*s = (struct echo) { &pair->s, kdt_buf_new(test, &env->b, 128), 500, DAT_SUCCESS };
	pair->c.recv->priv = c;
	pair->s.recv->priv = s;
	pair->c.recv->hook = echo_hook;
	pair->s.recv->hook = echo_hook;
	KDT_OK(test, kdt_recv(&pair->c, c->buf, 0, 64, 0));
	KDT_OK(test, kdt_recv(&pair->s, s->buf, 0, 64, 0));
	KDT_OK(test, kdt_send(&pair->c, c->buf, 64, 64, 0, DAT_COMPLETION_SUPPRESS_FLAG));
	/* The 500th answer of the client is queued for us. */
	KUNIT_ASSERT_TRUE(test, kdt_get_timeout(pair->c.recv, &event, 3 * KDT_WAIT));
	KUNIT_EXPECT_EQ(test, c->left, 0);
	/* And the server has got it: nothing is under way any more. */
	KUNIT_ASSERT_TRUE(test, kdt_get(pair->s.recv, &event));
	KUNIT_ASSERT_TRUE(test, kdt_get(pair->s.recv, &event));
	KDT_OK(test, c->ret);
	KDT_OK(test, s->ret);
	kdt_pair_down(test, pair);
	pair->c.recv->hook = NULL;
	pair->s.recv->hook = NULL;
}

static struct kunit_case cases[] = {
	KD_CASE(all_sizes,
		"SEND-01,RECV-01,RDMAW-01,RDMAW-04,RDMAW-09,RDMAR-01,STAT-04: 1 byte to 256 KiB"),
	KD_CASE(nothing_at_all, "SEND-02,SEND-03,SEND-16,RECV-02,SIL-19,EP-POST-12: nothing"),
	KD_CASE(cookies, "EP-POST-08..09,GEN-12,RECV-04,SEND-05,RDMAW-18,RDMAR-05: cookies"),
	KD_CASE(post_order, "EP-POST-21,RECV-20,FLUSH-10,RDMAR-16: completions in posting order"),
	KD_CASE(write_then_send, "RDMAW-17,FLAG-02,SIL-04: a suppressed Write and a Send"),
	KD_CASE(fences, "FLAG-09,SEND-10,RDMAR-16: fenced requests wait for Reads"),
	KD_CASE(suppressed, "FLAG-02,FLAG-03,FLAG-11,SEND-07,SEND-18,SIL-04: suppressed"),
	KD_CASE(unsignalled,
		"FLAG-04,FLAG-05,FLAG-20,FLAG-21,SEND-09,EVD-UP-03,EVD-UP-04: unsignalled"),
	KD_CASE(solicited, "SEND-08,RECV-07,FLAG-07,FLAG-08,FLAG-20: solicited wait"),
	KD_CASE(posts_in_upcalls, "CTX-02,EVD-UP-11,EVD-UP-13: 1000 posts from upcalls"),
	{}
};

KDT_SUITE(data);
