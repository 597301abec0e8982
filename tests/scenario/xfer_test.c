// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Transfers at the limits of the device, posts from everywhere at once, the end of it all. */
#include <linux/sizes.h>
#include <linux/slab.h>

#include "kdtest.h"

/*
 * Longer ones show no more, and on a machine that is busy soft-RoCE takes in packets so slowly
 * that it loses and repeats most of a long message: a Send of 8 MiB was not done in two minutes.
 */
#define MAX_LMR		(KD_SLOW ? SZ_64K : SZ_256K)
#define MAX_MESSAGE	(KD_SLOW ? SZ_256K : SZ_1M)

/* A pair that uses all that both adapters can do. */
static struct kdt_pair *pair_at_limits(struct kunit *test, DAT_EP_ATTR *attr)
{
	struct kdt_env *env = kdt_env(test);
	const DAT_IA_ATTR *a = &env->a.attr, *b = &env->b.attr;
	struct kdt_pair *pair;
	DAT_EP_PARAM param;

	kdt_attr(env, attr);
	attr->max_message_size = min(a->max_message_size, b->max_message_size);
	attr->max_rdma_size = min(a->max_rdma_size, b->max_rdma_size);
	attr->max_recv_iov = min(a->max_iov_segments_per_dto, b->max_iov_segments_per_dto);
	attr->max_request_iov = attr->max_recv_iov;
	attr->max_rdma_write_iov = min(a->max_iov_segments_per_rdma_write,
				       b->max_iov_segments_per_rdma_write);
	attr->max_rdma_read_iov = min(a->max_iov_segments_per_rdma_read,
				      b->max_iov_segments_per_rdma_read);
	pair = kdt_pair_new(test, attr);
	kdt_pair_connect(test, pair);
	KDT_OK(test, dat_ep_query(pair->c.h, DAT_EP_FIELD_ALL, &param));
	KUNIT_EXPECT_GE(test, param.ep_attr.max_request_iov, attr->max_request_iov);
	KUNIT_EXPECT_GE(test, param.ep_attr.max_request_dtos, attr->max_request_dtos);
	KUNIT_EXPECT_GE(test, param.ep_attr.max_rdma_write_iov, attr->max_rdma_write_iov);
	KUNIT_EXPECT_GE(test, param.ep_attr.max_rdma_read_iov, attr->max_rdma_read_iov);
	return pair;
}

/* ---- many segments ---- */

#define LMRS	4		/* the segments of a list take turns in so many LMRs */
#define AREA	SZ_64K		/* bytes of each */

struct list {
	struct kdt_buf *buf[LMRS];
	DAT_LMR_TRIPLET *iov;
	u32 seed;
};

static struct list *list_new(struct kunit *test, struct kdt_ia *ia)
{
	struct list *l = kdt_zalloc(test, sizeof(*l));
	int i;

	l->iov = kdt_zalloc(test, 64 * sizeof(*l->iov));
	for (i = 0; i < LMRS; i++)
		l->buf[i] = kdt_buf_new(test, ia, AREA);
	return l;
}

/*
 * Cuts len bytes into n segments of different odd lengths in all LMRs, each of
 * them across the end of a page, never two next to each other. With empty,
 * every third segment has no bytes and garbage in its other fields.
 */
static void list_cut(struct list *l, u32 len, int n, bool empty)
{
	int i, left = len, real = empty ? n - n / 3 : n;
	u32 part, at[LMRS] = {};

	for (i = 0; i < n; i++) {
		int b = i % LMRS;

		if (empty && i % 3 == 2) {
			l->iov[i] = (DAT_LMR_TRIPLET) { .virtual_address = ~0ULL - i,
							.lmr_context = 0xdead0000 + i };
			continue;
		}
		part = --real ? min_t(u32, left, left / (real + 1) + i) : left;
		/* a little before the end of a page */
		at[b] = round_up(at[b], PAGE_SIZE) + PAGE_SIZE - 1 - min_t(u32, part / 2, 2000);
		l->iov[i] = kdt_seg(l->buf[b], at[b], part);
		at[b] += part + 1;
		left -= part;
	}
}

static void list_fill(struct list *l, u8 value)
{
	int i;

	for (i = 0; i < LMRS; i++)
		memset(l->buf[i]->p, value, AREA);
}

static u8 *iov_p(const DAT_LMR_TRIPLET *iov)
{
	return (u8 *)(uintptr_t)iov->virtual_address;
}

/* A pattern through the segments, in order. */
static void list_write(struct list *l, int n, u8 *flat, u32 len, u32 seed)
{
	int i;

	kdt_fill(flat, len, seed);
	for (i = 0; i < n; i++) {
		memcpy(iov_p(&l->iov[i]), flat, l->iov[i].segment_length);
		flat += l->iov[i].segment_length;
	}
}

/* The first len bytes of the segments are the pattern, all the rest is value. */
static bool list_holds(struct list *l, int n, u32 len, const u8 *flat, u8 value)
{
	bool same = true;
	u32 part;
	int i;

	for (i = 0; i < n; i++) {
		part = min(len, l->iov[i].segment_length);
		if (!part)
			continue;
		same &= !memcmp(iov_p(&l->iov[i]), flat, part);
		memset(iov_p(&l->iov[i]), value, part);
		flat += part;
		len -= part;
	}
	for (i = 0; i < LMRS; i++)
		same &= kdt_all(l->buf[i]->p, AREA, value);
	return same && !len;
}

/* What one round of segments() works with. */
struct segs {
	struct kdt_pair *pair;
	struct list *from, *to;
	struct kdt_buf *there;
	u8 *flat;
	DAT_EP_ATTR attr;
};

/* Posts with arrays that are overwritten and gone when the call returns. */
static void post_gone(struct kunit *test, struct kdt_ep *ep, DAT_DTOS op, int n,
		      const DAT_LMR_TRIPLET *list, const DAT_RMR_TRIPLET *to, u64 cookie)
{
	size_t size = n * sizeof(*list);
	DAT_LMR_TRIPLET *iov = kmemdup(list, size, GFP_KERNEL);
	DAT_RMR_TRIPLET *remote = kmemdup(to, sizeof(*to), GFP_KERNEL);
	DAT_RETURN ret;

	KUNIT_ASSERT_NOT_NULL(test, iov);
	KUNIT_ASSERT_NOT_NULL(test, remote);
	if (op == DAT_DTO_RECEIVE)
		ret = dat_ep_post_recv(ep->h, n, iov, kdt_cookie(cookie), 0);
	else if (op == DAT_DTO_SEND)
		ret = dat_ep_post_send(ep->h, n, iov, kdt_cookie(cookie), 0);
	else if (op == DAT_DTO_RDMA_WRITE)
		ret = dat_ep_post_rdma_write(ep->h, n, iov, kdt_cookie(cookie), remote, 0);
	else
		ret = dat_ep_post_rdma_read(ep->h, n, iov, kdt_cookie(cookie), remote, 0);
	memset(iov, 0xa5, size);
	memset(remote, 0xa5, sizeof(*remote));
	kfree(iov);
	kfree(remote);
	KDT_OK(test, ret);
}

/* A message of @len bytes from @n segments into @m, a Write, and a Read of what it wrote. */
static void segments_one(struct kunit *test, struct segs *g, u32 len, int n, int m, bool empty)
{
	const u32 at = PAGE_SIZE - 3;
	int w = min(n, g->attr.max_rdma_write_iov), r = min(n, g->attr.max_rdma_read_iov);
	DAT_RMR_TRIPLET remote = kdt_rseg(g->there, at, len + 100);
	struct kdt_pair *pair = g->pair;

	/* Send, Receive: the rest of the list, the last segments of it, stay untouched. */
	list_fill(g->from, 0);
	list_fill(g->to, 0xee);
	list_cut(g->from, len, n, empty && n > 2);
	list_cut(g->to, len + (len & 1 ? 3 : len), m, empty && m > 2);
	list_write(g->from, n, g->flat, len, len);
	post_gone(test, &pair->s, DAT_DTO_RECEIVE, m, g->to->iov, &remote, 1);
	post_gone(test, &pair->c, DAT_DTO_SEND, n, g->from->iov, &remote, 2);
	kdt_sent(test, &pair->c, 2, DAT_DTO_SEND, len);
	kdt_came(test, &pair->s, 1, len);
	KUNIT_EXPECT_TRUE_MSG(test, list_holds(g->to, m, len, g->flat, 0xee),
			      "send of %u in %d to %d", len, n, m);

	/* Write, to the beginning of a longer range */
	list_cut(g->from, len, w, empty && w > 2);
	list_write(g->from, w, g->flat, len, len + 1);
	memset(g->there->p, 0xdd, g->there->len);
	post_gone(test, &pair->c, DAT_DTO_RDMA_WRITE, w, g->from->iov, &remote, 3);
	kdt_sent(test, &pair->c, 3, DAT_DTO_RDMA_WRITE, len);
	kdt_settle(test, pair);
	KUNIT_EXPECT_TRUE_MSG(test, !memcmp(g->there->p + at, g->flat, len),
			      "write of %u in %d", len, w);
	KUNIT_EXPECT_TRUE(test, kdt_all(g->there->p, at, 0xdd));
	KUNIT_EXPECT_TRUE(test, kdt_all(g->there->p + at + len, g->there->len - at - len, 0xdd));

	/* Read of the same, less than the list has room for. */
	remote.segment_length = len;
	list_fill(g->from, 0xcc);
	list_cut(g->from, len + (len & 1 ? 3 : len), r, empty && r > 2);
	post_gone(test, &pair->c, DAT_DTO_RDMA_READ, r, g->from->iov, &remote, 4);
	kdt_sent(test, &pair->c, 4, DAT_DTO_RDMA_READ, len);
	KUNIT_EXPECT_TRUE_MSG(test, list_holds(g->from, r, len, g->flat, 0xcc),
			      "read of %u in %d", len, r);
}

static struct segs *segs_new(struct kunit *test)
{
	struct segs *g = kdt_zalloc(test, sizeof(*g));
	struct kdt_env *env = kdt_env(test);

	g->from = list_new(test, &env->a);
	g->to = list_new(test, &env->b);
	g->there = kdt_buf_new(test, &env->b, AREA);
	g->flat = kdt_zalloc(test, AREA);
	g->pair = pair_at_limits(test, &g->attr);
	return g;
}

static void sizes(struct kunit *test)
{
	static const u32 lengths[] = { 3, 63, 64, 65, 1023, 1024, 1025, 4095, 4096, 4097, 8192 };
	struct segs *g = segs_new(test);
	int i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++)
		segments_one(test, g, lengths[i], 1, 1, false);
	/* the peer of RDMA has no event of it */
	KUNIT_EXPECT_EQ(test, kdt_queued(g->pair->s.req), 0);
	KUNIT_EXPECT_EQ(test, kdt_queued(g->pair->s.recv), 0);
}

static void segments(struct kunit *test)
{
	static const u32 lengths[] = { 1, 2, 40, 1000, 4099, 30011 };
	struct kdt_env *env = kdt_env(test);
	struct segs *g = segs_new(test);
	int i, n, m, most = g->attr.max_request_iov;

	KUNIT_ASSERT_LT(test, most, 64);
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		for (n = 1; n <= most; n = n == 4 ? max(most, 5) : n + 1) {
			for (m = 1; m <= most; m = m == 1 ? 3 : max(most, m + 1))
				segments_one(test, g, lengths[i], n, m, (n + m) & 1);
		}
		segments_one(test, g, lengths[i], most, most, true);
	}
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		    dat_ep_post_send(g->pair->c.h, env->a.attr.max_iov_segments_per_dto + 1,
				     g->from->iov, kdt_cookie(1), 0));
	KUNIT_EXPECT_EQ(test, (int)env->a.prov.iov_ownership_on_return, DAT_IOV_CONSUMER);
}

/* ---- many bytes ---- */

static void most_bytes(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	u32 lmr = min3(env->a.attr.max_lmr_block_size, env->b.attr.max_lmr_block_size,
		       (DAT_VLEN)MAX_LMR);
	struct kdt_pair *pair;
	struct kdt_buf *from, *to;
	DAT_LMR_TRIPLET *out, *in;
	DAT_RMR_TRIPLET remote;
	DAT_EP_ATTR attr;
	u64 most, left;
	u32 part;
	int i, n;

	pair = pair_at_limits(test, &attr);
	from = kdt_buf_new(test, &env->a, lmr);
	to = kdt_buf_new(test, &env->b, lmr);
	kunit_info(test, "max_message_size %llu, max_rdma_size %llu, one LMR %u\n",
		   (u64)attr.max_message_size, (u64)attr.max_rdma_size, lmr);

	/* RDMA as long as the remote segment can be: one LMR. */
	kdt_fill(from->p, lmr, 1);
	kdt_put(test, &pair->c, from, 0, lmr, to, 0);
	kdt_settle(test, pair);
	KUNIT_EXPECT_TRUE(test, kdt_same(to->p, lmr, 1));
	memset(from->p, 0, lmr);
	kdt_fetch(test, &pair->c, from, 0, lmr, to, 0);
	KUNIT_EXPECT_TRUE(test, kdt_same(from->p, lmr, 1));

	/* A message as long as the device says, or as segments of whole LMRs make it. */
	n = min(attr.max_request_iov, attr.max_recv_iov);
	most = min3((u64)attr.max_message_size, (u64)n * lmr, (u64)MAX_MESSAGE);
	out = kdt_zalloc(test, n * sizeof(*out));
	in = kdt_zalloc(test, n * sizeof(*in));
	for (i = 0, left = most; left; i++, left -= part) {
		struct kdt_buf *a = kdt_buf_new(test, &env->a, lmr);
		struct kdt_buf *b = kdt_buf_new(test, &env->b, lmr);

		KUNIT_ASSERT_LT(test, i, n);
		part = min_t(u64, left, lmr);
		kdt_fill(a->p, part, 10 + i);
		out[i] = kdt_seg(a, 0, part);
		in[i] = kdt_seg(b, 0, part);
	}
	n = i;
	KDT_OK(test, dat_ep_post_recv(pair->s.h, n, in, kdt_cookie(3), 0));
	KDT_OK(test, dat_ep_post_send(pair->c.h, n, out, kdt_cookie(4), 0));
	kdt_sent(test, &pair->c, 4, DAT_DTO_SEND, most);
	kdt_came(test, &pair->s, 3, most);
	for (i = 0; i < n; i++)
		KUNIT_EXPECT_TRUE_MSG(test, kdt_same(iov_p(&in[i]), in[i].segment_length, 10 + i),
				      "part %d of %llu bytes", i, most);
	remote = kdt_rseg(to, 0, lmr);
	if ((u64)n * lmr > attr.max_message_size) {
		out[n - 1].segment_length++;
		KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
			    dat_ep_post_send(pair->c.h, n, out, kdt_cookie(5), 0));
	} else if (most > lmr) {
		KDT_REFUSED(test, DAT_LENGTH_ERROR, DAT_NO_SUBTYPE,
			    dat_ep_post_rdma_write(pair->c.h, n, out, kdt_cookie(5), &remote, 0));
	}
	kunit_info(test, "a message of %llu bytes, RDMA of %u bytes\n", most, lmr);
	kdt_pair_down(test, pair);
}

/* ---- posts from everywhere at once ---- */

#define THREADS	4
#define POSTS	60		/* per thread: more than fit in the queue */

struct crowd {
	struct kdt_pair *pair;
	struct kdt_buf *mine, *theirs;
	atomic_t bad, threads;
	unsigned int next[THREADS], got;	/* by upcalls, one at a time */
};

/* The requests of each thread in its order. */
static bool crowd_request(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	u64 cookie = dto->user_cookie.as_64;
	struct crowd *c = evd->priv;
	unsigned int id = cookie >> 32;

	if (id >= THREADS || dto->status != DAT_DTO_SUCCESS || c->next[id]++ != (u32)cookie)
		atomic_inc(&c->bad);
	WRITE_ONCE(c->got, c->got + 1);
	return true;
}

static int crowd_thread(void *arg)
{
	unsigned long end = jiffies + 2 * KDT_WAIT;
	struct crowd *c = arg;
	u64 id = atomic_inc_return(&c->threads) - 1;
	DAT_RETURN ret;
	int i = 0;

	while (i < POSTS && time_before(jiffies, end) && !atomic_read(&c->bad)) {
		u64 cookie = id << 32 | i;

		if (i % 3 == 0)
			ret = kdt_send(&c->pair->c, c->mine, 0, 64, cookie, 0);
		else if (i % 3 == 1)
			ret = kdt_write(&c->pair->c, c->mine, 0, 64, c->theirs, 64, cookie, 0);
		else
			ret = kdt_read(&c->pair->c, c->mine, 64, 64, c->theirs, 64, cookie, 0);
		if (ret == DAT_SUCCESS)
			i++;
		else if (DAT_GET_TYPE(ret) == DAT_INSUFFICIENT_RESOURCES)
			schedule_timeout_uninterruptible(1);
		else
			atomic_inc(&c->bad);
	}
	return kdt_until_stopped();
}

static void posts_at_once(struct kunit *test)
{
	struct crowd *c = kdt_zalloc(test, sizeof(*c));
	struct kdt_env *env = kdt_env(test);
	struct kdt_evd *req;
	DAT_EP_ATTR attr;
	int i;

	kdt_attr(env, &attr);
	attr.max_recv_dtos = THREADS * POSTS / 3;
	c->pair = kdt_pair_new(test, &attr);
	c->mine = kdt_buf_new(test, &env->a, 128);
	c->theirs = kdt_buf_new(test, &env->b, 128);
	req = c->pair->c.req;
	req->priv = c;
	req->hook = crowd_request;
	for (i = 0; i < THREADS * POSTS / 3; i++)
		KDT_OK(test, kdt_recv(&c->pair->s, c->theirs, 0, 64, i));
	kdt_pair_connect(test, c->pair);
	for (i = 0; i < THREADS; i++)
		kdt_beside(test, crowd_thread, c);
	KUNIT_ASSERT_TRUE(test, wait_event_timeout(req->wait, atomic_read(&c->bad) ||
						   READ_ONCE(c->got) == THREADS * POSTS,
						   3 * KDT_WAIT));
	KUNIT_EXPECT_EQ(test, atomic_read(&c->bad), 0);
	for (i = 0; i < THREADS * POSTS / 3; i++)
		kdt_came(test, &c->pair->s, i, 64);
	for (i = 0; i < THREADS; i++)
		KUNIT_EXPECT_EQ(test, c->next[i], POSTS);
	KUNIT_EXPECT_EQ(test, req->max_running, 1);
	req->hook = NULL;
	kdt_pair_down(test, c->pair);
}

/* ---- full queues ---- */

/*
 * Exactly max_request_dtos wait behind a long Read, of Reads no more than the device has at a
 * time (D-14), and each completion makes room for one. Should the Read be faster than the
 * posts there is another round, with a longer one.
 */
static void requests_full(struct kunit *test, bool reads)
{
	struct kdt_env *env = kdt_env(test);
	u32 most = min3(env->a.attr.max_lmr_block_size, env->b.attr.max_lmr_block_size,
			(DAT_VLEN)SZ_2M), len;
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, most);
	struct kdt_buf *theirs = kdt_buf_new(test, &env->b, most);
	const DAT_DTOS op = reads ? DAT_DTO_RDMA_READ : DAT_DTO_RDMA_WRITE;
	struct kdt_pair *pair;
	DAT_EP_PARAM param = {};
	unsigned long flags;
	int i, n, got, full = 0;
	DAT_EP_ATTR attr;
	DAT_RETURN ret;

	kdt_attr(env, &attr);
	attr.max_rdma_size = most;
	attr.max_request_dtos = reads ? 160 : 8;
	pair = kdt_pair_new(test, &attr);
	kdt_pair_connect(test, pair);
	KDT_OK(test, dat_ep_query(pair->c.h, DAT_EP_FIELD_ALL, &param));
	KUNIT_ASSERT_GE(test, param.ep_attr.max_request_dtos, attr.max_request_dtos);
	n = reads && (env->a.traits & KDT_GRANTS) ? 128 : param.ep_attr.max_request_dtos;
	for (len = most / 16; len <= most && full < 3; len += most / 16) {
		local_irq_save(flags);
		ret = kdt_read(&pair->c, mine, 0, len, theirs, 0, 0, 0);
		for (got = 1; ret == DAT_SUCCESS && got <= n; got++)
			ret = reads ? kdt_read(&pair->c, mine, 0, 8, theirs, 0, got, 0) :
				kdt_write(&pair->c, mine, 0, 8, theirs, 0, got,
					  DAT_COMPLETION_BARRIER_FENCE_FLAG);
		local_irq_restore(flags);
		if (ret != DAT_SUCCESS) {
			got--;
			KUNIT_EXPECT_EQ(test, got, n);
			KUNIT_EXPECT_EQ(test, DAT_GET_TYPE(ret), (u32)DAT_INSUFFICIENT_RESOURCES);
			full++;
		}
		kdt_sent(test, &pair->c, 0, DAT_DTO_RDMA_READ, len);
		for (i = 1; i < got; i++) {
			kdt_sent(test, &pair->c, i, op, 8);
			KDT_OK(test, kdt_write(&pair->c, mine, 0, 8, theirs, 0, 1000 + i, 0));
		}
		for (i = 1; i < got; i++)
			kdt_sent(test, &pair->c, 1000 + i, DAT_DTO_RDMA_WRITE, 8);
	}
	KUNIT_EXPECT_GT_MSG(test, full, 0, "the queue was never full");
	kdt_settle(test, pair);
	kdt_pair_down(test, pair);
}

static void reads_full(struct kunit *test)
{
	requests_full(test, true);
}

static void request_queue_full(struct kunit *test)
{
	if (!kdt_fence)
		kunit_skip(test, "the device fences no Write");
	requests_full(test, false);
}

/* Exactly max_recv_dtos Receives, before the connection and in it. */
static void receive_queue_full(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, 64);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, 64);
	int i;

	for (i = 0; i < KDT_DTOS; i++)
		KDT_OK(test, kdt_recv(&pair->s, to, 0, 64, i));
	/* a reset in UNCONNECTED leaves them where they are */
	KDT_OK(test, dat_ep_reset(pair->s.h));
	KDT_TYPE(test, DAT_INSUFFICIENT_RESOURCES, kdt_recv(&pair->s, to, 0, 64, i));
	kdt_pair_connect(test, pair);
	for (i = 0; i < KDT_DTOS; i++) {
		KDT_TYPE(test, DAT_INSUFFICIENT_RESOURCES, kdt_recv(&pair->s, to, 0, 64, 0));
		KDT_OK(test, kdt_send(&pair->c, from, 0, i, i, 0));
		kdt_sent(test, &pair->c, i, DAT_DTO_SEND, i);
		kdt_came(test, &pair->s, i, i);
		KDT_OK(test, kdt_recv(&pair->s, to, 0, 64, KDT_DTOS + i));
	}
}

/* ---- the end of a busy queue ---- */

/*
 * All of the client's events on one EVD, and whoever ends it holds a lock: what was posted is
 * reported in order, flushed from some point on, and then comes the end. Nobody has made a
 * mistake, so both ends are DISCONNECTED, except that soft-iWARP calls it an error when it is
 * stopped in the middle of sending.
 */
static void end_while_busy(struct kunit *test)
{
	static DEFINE_SPINLOCK(lock);
	struct kdt_env *env = kdt_env(test);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, KDT_SIZE);
	struct kdt_buf *theirs = kdt_buf_new(test, &env->b, KDT_SIZE);
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	int round, i, n, flushed, errors;
	DAT_RETURN ret, post;
	DAT_EVENT_NUMBER s;
	DAT_EP_STATE state;
	DAT_EVENT event;
	u64 next[2];

	dto = &event.event_data.dto_completion_event_data;
	for (round = 0; round < 6; round++) {
		struct kdt_evd *all = kdt_evd_policy(test, &env->a, DAT_EVD_DTO_FLAG |
						     DAT_EVD_CONNECTION_FLAG, 256,
						     DAT_UPCALL_SINGLE_INSTANCE);
		struct kdt_pair evds = { .c = { .recv = all, .req = all, .conn = all } };
		struct kdt_pair *pair = kdt_pair_with(test, &evds, NULL, NULL);
		struct kdt_ep *who = round % 2 ? &pair->s : &pair->c;

		kdt_pair_connect(test, pair);
		for (i = 0; i < 10; i++)
			KDT_OK(test, kdt_recv(&pair->c, mine, 0, 64, 1000 + i));
		for (n = 0; n < 24; n++)
			KDT_OK(test, n % 3 == 1 ?
			       kdt_read(&pair->c, mine, 0, 32768, theirs, 0, n, 0) :
			       kdt_write(&pair->c, mine, 0, 32768, theirs, 0, n, 0));
		/* nobody receives these: soft-RoCE waits with them, soft-iWARP sends them */
		for (i = 0; i < 16 && round < 2 && !env->a.iwarp; i++)
			KDT_OK(test, kdt_send(&pair->c, mine, 0, 64, n++, 0));
		spin_lock_irq(&lock);
		ret = dat_ep_disconnect(who->h, DAT_CLOSE_ABRUPT_FLAG);
		dat_ep_get_status(who->h, &state, NULL, NULL);
		post = dat_ep_post_send(who->h, 0, NULL, kdt_cookie(999), 0);
		spin_unlock_irq(&lock);
		KDT_OK(test, ret);
		KUNIT_EXPECT_TRUE_MSG(test, state == DAT_EP_STATE_DISCONNECT_PENDING ||
				      state == DAT_EP_STATE_DISCONNECTED, "state %d", state);
		/* still pending, or flushed */
		if (state == DAT_EP_STATE_DISCONNECTED || post == DAT_SUCCESS)
			KUNIT_EXPECT_EQ(test, post, DAT_SUCCESS);
		else
			KUNIT_EXPECT_EQ(test, post, DAT_ERROR(DAT_INVALID_STATE,
							      DAT_INVALID_STATE_EP_DISCPENDING));
		next[0] = 0;
		next[1] = 1000;
		flushed = 0;
		errors = 0;
		for (;;) {
			KUNIT_ASSERT_TRUE(test, kdt_get(all, &event));
			if (event.event_number != DAT_DTO_COMPLETION_EVENT)
				break;
			if (dto->user_cookie.as_64 == 999)
				continue;
			KUNIT_EXPECT_EQ(test, dto->user_cookie.as_64,
					next[dto->operation == DAT_DTO_RECEIVE]++);
			/* siw completes a Write when it has left, a Read when it is answered. */
			if (!env->a.iwarp && flushed)
				KUNIT_EXPECT_EQ(test, (int)dto->status, DAT_DTO_ERR_FLUSHED);
			if (dto->operation != DAT_DTO_RECEIVE)
				flushed += dto->status != DAT_DTO_SUCCESS;
			errors += dto->status != DAT_DTO_SUCCESS &&
				  dto->status != DAT_DTO_ERR_FLUSHED;
		}
		KUNIT_EXPECT_EQ(test, next[0], n);
		KUNIT_EXPECT_EQ(test, next[1], 1010);
		s = kdt_end(test, &pair->s);
		if (!env->a.iwarp) {
			KUNIT_EXPECT_EQ(test, errors, 0);
			KUNIT_EXPECT_EQ(test, (int)event.event_number,
					DAT_CONNECTION_EVENT_DISCONNECTED);
			KUNIT_EXPECT_EQ(test, (int)s, DAT_CONNECTION_EVENT_DISCONNECTED);
		} else if (errors && round % 2) {
			KUNIT_EXPECT_EQ(test, (int)event.event_number, DAT_CONNECTION_EVENT_BROKEN);
		}
		/* the window is over: these are flushed, and nothing else comes */
		KDT_OK(test, kdt_recv(&pair->c, mine, 0, 64, 1));
		KDT_OK(test, kdt_send(&pair->c, mine, 0, 64, 2, 0));
		for (i = 0; i < 2; i++) {
			KUNIT_ASSERT_TRUE(test, kdt_get(all, &event));
			KUNIT_EXPECT_EQ(test, (int)event.event_number, DAT_DTO_COMPLETION_EVENT);
			KUNIT_EXPECT_EQ(test, (int)dto->status, DAT_DTO_ERR_FLUSHED);
			if (dto->user_cookie.as_64 == 999)
				i--;
		}
	}
}

static struct kunit_case cases[] = {
	KD_CASE(sizes,
		"SEND-01,RECV-01,RDMAW-01,RDMAW-04,RDMAW-09,RDMAR-01,STAT-04: one segment each"),
	KD_CASE(segments,
		"EP-POST-04..05,EP-POST-12,SIL-35,SEND-04,RECV-03,RDMAW-02,RDMAR-02..03: lists"),
	KD_CASE(most_bytes, "SEND-20,RDMAW-16: as many bytes as fit"),
	KD_CASE(posts_at_once, "EP-POST-22,CTX-03,EP-POST-21: four threads, one endpoint"),
	KD_CASE(request_queue_full, "EP-POST-17,SEND-19,RDMAW-15,RDMAR-14: queue full, room again"),
	KD_CASE(reads_full, "RDMAR-14,RDMAR-16,EP-POST-17: Reads that can be outstanding"),
	KD_CASE(receive_queue_full, "EP-POST-17,RECV-14,RECV-16,EP-RST-01: full of Receives"),
	KD_CASE(end_while_busy,
		"FLUSH-01,FLUSH-04,FLUSH-06..08,STAT-02,SIL-13,EPSM-15: a busy queue ends"),
	{}
};

struct kunit_suite kdt_xfer_suite = { .name = "kdtest-xfer", KDT_CASES };
