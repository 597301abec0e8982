// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Transfers at the limits of the device, and posts from everywhere at once. */
#include <linux/interrupt.h>
#include <linux/kthread.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/timer.h>

#include "kdtest.h"

/*
 * More takes too long here. A debug kernel takes in packets so slowly that soft-RoCE
 * loses and repeats most of a long message.
 */
#if KD_SLOW
#define MAX_LMR		SZ_64K
#define MAX_MESSAGE	SZ_256K
#else
#define MAX_LMR		SZ_4M
#define MAX_MESSAGE	SZ_8M
#endif

/* What both adapters can do, for a pair that uses all of it. */
static void limits(struct kunit *test, DAT_EP_ATTR *attr)
{
	struct kdt_env *env = kdt_env(test);
	const DAT_IA_ATTR *a = &env->a.attr, *b = &env->b.attr;

	kdt_attr(env, attr);
	attr->max_message_size = min(a->max_message_size, b->max_message_size);
	attr->max_rdma_size = min(a->max_rdma_size, b->max_rdma_size);
	attr->max_recv_iov = min(a->max_iov_segments_per_dto, b->max_iov_segments_per_dto);
	attr->max_request_iov = attr->max_recv_iov;
	attr->max_rdma_write_iov = min(a->max_iov_segments_per_rdma_write,
				       b->max_iov_segments_per_rdma_write);
	attr->max_rdma_read_iov = min(a->max_iov_segments_per_rdma_read,
				      b->max_iov_segments_per_rdma_read);
}

static struct kdt_pair *pair_at_limits(struct kunit *test, DAT_EP_ATTR *attr)
{
	struct kdt_pair *pair;
	DAT_EP_PARAM param;

	limits(test, attr);
	pair = kdt_pair_new(test, attr);
	kdt_pair_connect(test, pair);
	KDT_OK(test, dat_ep_query(pair->c.h, DAT_EP_FIELD_ALL, &param));
	KUNIT_EXPECT_GE(test, param.ep_attr.max_request_iov, attr->max_request_iov);
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
	struct list *l = kunit_kzalloc(test, sizeof(*l), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, l);
	l->iov = kunit_kcalloc(test, 64, sizeof(*l->iov), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, l->iov);
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

static void segments_one(struct kunit *test, struct kdt_pair *pair, struct list *from,
			 struct list *to, struct kdt_buf *there, u8 *flat, const DAT_EP_ATTR *attr,
			 u32 len, bool empty)
{
	int n = attr->max_request_iov, m = attr->max_recv_iov;
	int w = attr->max_rdma_write_iov, r = attr->max_rdma_read_iov;
	DAT_RMR_TRIPLET remote = kdt_rseg(there, PAGE_SIZE - 3, len);

	/* Send, Receive: three bytes of the list stay untouched. */
	list_fill(from, 0);
	list_fill(to, 0xee);
	list_cut(from, len, n, empty);
	list_cut(to, len + 3, m, empty);
	list_write(from, n, flat, len, len);
	KDT_OK(test, dat_ep_post_recv(pair->s.h, m, to->iov, kdt_cookie(1), 0));
	KDT_OK(test, dat_ep_post_send(pair->c.h, n, from->iov, kdt_cookie(2), 0));
	kdt_dto(test, pair->c.req, &pair->c, 2, DAT_DTO_SEND, DAT_DTO_SUCCESS, len);
	kdt_dto(test, pair->s.recv, &pair->s, 1, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, len);
	KUNIT_EXPECT_TRUE_MSG(test, list_holds(to, m, len, flat, 0xee), "send of %u in %d", len, n);

	/* Write */
	list_cut(from, len, w, empty);
	list_write(from, w, flat, len, len + 1);
	memset(there->p, 0xdd, there->len);
	KDT_OK(test, dat_ep_post_rdma_write(pair->c.h, w, from->iov, kdt_cookie(3), &remote, 0));
	kdt_dto(test, pair->c.req, &pair->c, 3, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS, len);
	kdt_settle(test, pair);
	KUNIT_EXPECT_TRUE_MSG(test, !memcmp(there->p + PAGE_SIZE - 3, flat, len),
			      "write of %u in %d", len, w);
	KUNIT_EXPECT_TRUE(test, kdt_all(there->p, PAGE_SIZE - 3, 0xdd));
	KUNIT_EXPECT_TRUE(test, kdt_all(there->p + PAGE_SIZE - 3 + len,
					there->len - (PAGE_SIZE - 3) - len, 0xdd));

	/* Read of the same, a few bytes less than the list has room for. */
	list_fill(from, 0xcc);
	list_cut(from, len + 3, r, empty && r > 2);
	KDT_OK(test, dat_ep_post_rdma_read(pair->c.h, r, from->iov, kdt_cookie(4), &remote, 0));
	kdt_dto(test, pair->c.req, &pair->c, 4, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, len);
	KUNIT_EXPECT_TRUE_MSG(test, list_holds(from, r, len, flat, 0xcc), "read of %u in %d", len,
			      r);
}

static void most_segments(struct kunit *test)
{
	static const u32 lengths[] = { 1, 2, 40, 1000, 4099, 30011 };
	struct kdt_env *env = kdt_env(test);
	struct list *from = list_new(test, &env->a), *to = list_new(test, &env->b);
	struct kdt_buf *there = kdt_buf_new(test, &env->b, AREA);
	u8 *flat = kunit_kzalloc(test, AREA, GFP_KERNEL);
	struct kdt_pair *pair;
	DAT_EP_ATTR attr;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, flat);
	pair = pair_at_limits(test, &attr);
	KUNIT_ASSERT_LT(test, attr.max_request_iov, 64);
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		segments_one(test, pair, from, to, there, flat, &attr, lengths[i], false);
		segments_one(test, pair, from, to, there, flat, &attr, lengths[i], true);
	}
	/* One more than the device takes. */
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		    dat_ep_post_send(pair->c.h, env->a.attr.max_iov_segments_per_dto + 1,
				     from->iov, kdt_cookie(1), 0));
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
	KDT_OK(test, kdt_write(&pair->c, from, 0, lmr, to, 0, 1, 0));
	kdt_dto(test, pair->c.req, &pair->c, 1, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS, lmr);
	kdt_settle(test, pair);
	KUNIT_EXPECT_TRUE(test, kdt_same(to->p, lmr, 1));
	memset(from->p, 0, lmr);
	KDT_OK(test, kdt_read(&pair->c, from, 0, lmr, to, 0, 2, 0));
	kdt_dto(test, pair->c.req, &pair->c, 2, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, lmr);
	KUNIT_EXPECT_TRUE(test, kdt_same(from->p, lmr, 1));

	/* A message as long as the device says, or as segments of whole LMRs make it. */
	n = min(attr.max_request_iov, attr.max_recv_iov);
	most = min3((u64)attr.max_message_size, (u64)n * lmr, (u64)MAX_MESSAGE);
	out = kunit_kcalloc(test, n, sizeof(*out), GFP_KERNEL);
	in = kunit_kcalloc(test, n, sizeof(*in), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, out);
	KUNIT_ASSERT_NOT_NULL(test, in);
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
	kdt_dto(test, pair->c.req, &pair->c, 4, DAT_DTO_SEND, DAT_DTO_SUCCESS, most);
	kdt_dto(test, pair->s.recv, &pair->s, 3, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, most);
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

/* ---- the arrays are the caller's when the post returns ---- */

static void arrays_freed(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, SZ_64K);
	struct kdt_buf *back = kdt_buf_new(test, &env->a, SZ_64K);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, 2 * SZ_64K);
	DAT_DTO_COOKIE cookie = kdt_cookie(0);
	DAT_LMR_TRIPLET *iov;
	DAT_RMR_TRIPLET *remote;
	int i, call, n;
	DAT_RETURN ret = DAT_SUCCESS;

	kdt_fill(from->p, SZ_64K, 8);
	for (i = 0; i < 10; i++) {
		memset(to->p, 0, to->len);
		memset(back->p, 0, back->len);
		for (call = 0; call < 4; call++) {
			struct kdt_buf *buf = call == 0 ? to : call == 3 ? back : from;

			/* the Read comes after the Write it reads back */
			n = call == 3 ? 1 : 2;
			iov = kmalloc_array(2, sizeof(*iov), GFP_KERNEL);
			remote = kmalloc(sizeof(*remote), GFP_KERNEL);
			KUNIT_ASSERT_NOT_NULL(test, iov);
			KUNIT_ASSERT_NOT_NULL(test, remote);
			iov[0] = kdt_seg(buf, 0, n == 1 ? SZ_64K : 777);
			iov[1] = kdt_seg(buf, 777, SZ_64K - 777);
			*remote = kdt_rseg(to, SZ_64K, SZ_64K);
			cookie.as_64 = call;
			if (call == 0)
				ret = dat_ep_post_recv(pair->s.h, n, iov, cookie, 0);
			else if (call == 1)
				ret = dat_ep_post_send(pair->c.h, n, iov, cookie, 0);
			else if (call == 2)
				ret = dat_ep_post_rdma_write(pair->c.h, n, iov, cookie, remote, 0);
			else
				ret = dat_ep_post_rdma_read(pair->c.h, n, iov, cookie, remote, 0);
			memset(iov, 0xa5, 2 * sizeof(*iov));
			memset(remote, 0xa5, sizeof(*remote));
			kfree(iov);
			kfree(remote);
			KDT_OK(test, ret);
		}
		kdt_dto(test, pair->s.recv, &pair->s, 0, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, SZ_64K);
		kdt_dto(test, pair->c.req, &pair->c, 1, DAT_DTO_SEND, DAT_DTO_SUCCESS, SZ_64K);
		kdt_dto(test, pair->c.req, &pair->c, 2, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS,
			SZ_64K);
		kdt_dto(test, pair->c.req, &pair->c, 3, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, SZ_64K);
		KUNIT_EXPECT_TRUE(test, kdt_same(to->p, SZ_64K, 8));
		KUNIT_EXPECT_TRUE(test, kdt_same(to->p + SZ_64K, SZ_64K, 8));
		KUNIT_EXPECT_TRUE(test, kdt_same(back->p, SZ_64K, 8));
	}
	KUNIT_EXPECT_EQ(test, (int)env->a.prov.iov_ownership_on_return, DAT_IOV_CONSUMER);
}

/* ---- posts from elsewhere ---- */

static struct poster {
	struct kdt_pair *pair;
	struct kdt_buf *mine, *theirs;
	u64 cookie;
	DAT_RETURN ret;
	bool softirq;
	int cpu;		/* inside a post on this one, with interrupts off */
	unsigned int inside;	/* upcalls that ran meanwhile, there */
	struct completion done;
	struct tasklet_struct tasklet;
	struct timer_list timer;
} poster;

/* One of each, and no upcall from inside. */
static void post_all(struct poster *p)
{
	unsigned long flags;

	local_irq_save(flags);
	WRITE_ONCE(p->cpu, raw_smp_processor_id());
	p->ret |= kdt_recv(&p->pair->s, p->theirs, 0, 64, p->cookie);
	p->ret |= kdt_send(&p->pair->c, p->mine, 0, 64, p->cookie + 1, 0);
	p->ret |= kdt_write(&p->pair->c, p->mine, 64, 64, p->theirs, 64, p->cookie + 2, 0);
	p->ret |= kdt_read(&p->pair->c, p->mine, 128, 64, p->theirs, 128, p->cookie + 3,
			   kdt_fence);
	WRITE_ONCE(p->cpu, -1);
	local_irq_restore(flags);
}

static void post_tasklet(struct tasklet_struct *t)
{
	poster.softirq = in_serving_softirq();
	post_all(&poster);
	complete(&poster.done);
}

static void post_timer(struct timer_list *t)
{
	poster.softirq = in_serving_softirq();
	post_all(&poster);
	complete(&poster.done);
}

static bool see_poster(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	if (READ_ONCE(poster.cpu) == raw_smp_processor_id())
		poster.inside++;
	return false;
}

static void expect_all(struct kunit *test, u64 cookie)
{
	struct kdt_pair *pair = poster.pair;

	KDT_OK(test, poster.ret);
	kdt_dto(test, pair->s.recv, &pair->s, cookie, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 64);
	kdt_dto(test, pair->c.req, &pair->c, cookie + 1, DAT_DTO_SEND, DAT_DTO_SUCCESS, 64);
	kdt_dto(test, pair->c.req, &pair->c, cookie + 2, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS, 64);
	kdt_dto(test, pair->c.req, &pair->c, cookie + 3, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, 64);
}

static void posts_from_softirq(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	int i;

	memset(&poster, 0, sizeof(poster));
	poster.pair = kdt_pair_up(test);
	poster.mine = kdt_buf_new(test, &env->a, 256);
	poster.theirs = kdt_buf_new(test, &env->b, 256);
	poster.cpu = -1;
	init_completion(&poster.done);
	tasklet_setup(&poster.tasklet, post_tasklet);
	timer_setup(&poster.timer, post_timer, 0);
	poster.pair->c.req->hook = see_poster;
	poster.pair->s.recv->hook = see_poster;
	for (i = 0; i < 40; i++) {
		poster.cookie = 1000 * i;
		poster.softirq = i % 3 == 2;
		if (i % 3 == 0)
			tasklet_schedule(&poster.tasklet);
		else if (i % 3 == 1)
			mod_timer(&poster.timer, jiffies + 1);
		else
			post_all(&poster);
		if (i % 3 != 2)
			wait_for_completion(&poster.done);
		KUNIT_EXPECT_TRUE(test, poster.softirq);
		expect_all(test, 1000 * i);
	}
	KUNIT_EXPECT_EQ(test, poster.inside, 0);
	tasklet_kill(&poster.tasklet);
	kdt_pair_down(test, poster.pair);
}

/* ---- posts from everywhere at once ---- */

#define THREADS	4
#define POSTS	150		/* per thread */

struct crowd {
	struct kdt_pair *pair;
	struct kdt_buf *mine, *theirs;
	atomic_t credits;		/* receives nobody has sent for */
	atomic_t bad, running;
	struct completion done;
	unsigned int next[THREADS], got, received;	/* by upcalls, one at a time */
};

struct member {
	struct crowd *crowd;
	int id;
};

static bool crowd_request(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	u64 cookie = dto->user_cookie.as_64;
	struct crowd *c = evd->priv;
	unsigned int id = cookie >> 32;

	if (id >= THREADS || dto->status != DAT_DTO_SUCCESS || c->next[id]++ != (u32)cookie)
		atomic_inc(&c->bad);
	c->got++;
	return true;
}

/* A receive for each that came, and its Send may be made. */
static bool crowd_receive(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	struct crowd *c = evd->priv;

	if (dto->status == DAT_DTO_SUCCESS) {
		c->received++;
		if (kdt_recv(&c->pair->s, c->theirs, 0, 64, 0) == DAT_SUCCESS)
			atomic_inc(&c->credits);
		else
			atomic_inc(&c->bad);
	}
	return true;
}

static int crowd_thread(void *arg)
{
	struct member *m = arg;
	struct crowd *c = m->crowd;
	unsigned long end = jiffies + 2 * KDT_WAIT;
	DAT_RETURN ret;
	int i = 0;

	while (i < POSTS && time_before(jiffies, end) && !atomic_read(&c->bad)) {
		u64 cookie = (u64)m->id << 32 | i;

		switch (i % 3) {
		case 0:
			if (atomic_dec_if_positive(&c->credits) < 0) {
				schedule_timeout_uninterruptible(1);
				continue;
			}
			ret = kdt_send(&c->pair->c, c->mine, 0, 64, cookie, 0);
			if (ret != DAT_SUCCESS)
				atomic_inc(&c->credits);
			break;
		case 1:
			ret = kdt_write(&c->pair->c, c->mine, 0, 64, c->theirs, 64, cookie, 0);
			break;
		default:
			ret = kdt_read(&c->pair->c, c->mine, 64, 64, c->theirs, 64, cookie, 0);
		}
		if (ret == DAT_SUCCESS)
			i++;
		else if (DAT_GET_TYPE(ret) == DAT_INSUFFICIENT_RESOURCES)
			schedule_timeout_uninterruptible(1);
		else
			atomic_inc(&c->bad);
	}
	if (atomic_dec_and_test(&c->running))
		complete(&c->done);
	return 0;
}

static void posts_at_once(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct crowd *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	struct member m[THREADS];
	struct task_struct *task;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, c);
	c->pair = kdt_pair_up(test);
	c->mine = kdt_buf_new(test, &env->a, 128);
	c->theirs = kdt_buf_new(test, &env->b, 128);
	c->pair->c.req->priv = c;
	c->pair->s.recv->priv = c;
	c->pair->c.req->hook = crowd_request;
	c->pair->s.recv->hook = crowd_receive;
	init_completion(&c->done);
	for (i = 0; i < 16; i++)
		KDT_OK(test, kdt_recv(&c->pair->s, c->theirs, 0, 64, 0));
	atomic_set(&c->credits, 16);
	atomic_set(&c->running, THREADS);
	for (i = 0; i < THREADS; i++) {
		m[i] = (struct member) { c, i };
		task = kthread_run(crowd_thread, &m[i], "kdt-crowd%d", i);
		if (IS_ERR(task)) {
			atomic_inc(&c->bad);
			if (atomic_dec_and_test(&c->running))
				complete(&c->done);
		}
	}
	wait_for_completion(&c->done);		/* the threads have a limit */
	KUNIT_EXPECT_TRUE(test, wait_event_timeout(c->pair->c.req->wait,
						   READ_ONCE(c->got) == THREADS * POSTS,
						   KDT_WAIT));
	KUNIT_EXPECT_TRUE(test, wait_event_timeout(c->pair->s.recv->wait,
						   READ_ONCE(c->received) == THREADS * POSTS / 3,
						   KDT_WAIT));
	KUNIT_EXPECT_EQ(test, atomic_read(&c->bad), 0);
	for (i = 0; i < THREADS; i++)
		KUNIT_EXPECT_EQ(test, c->next[i], POSTS);
	KUNIT_EXPECT_EQ(test, c->pair->c.req->max_running, 1);
	c->pair->c.req->hook = NULL;
	c->pair->s.recv->hook = NULL;
	kdt_pair_down(test, c->pair);
}

/* ---- full queues ---- */

/* So many requests behind a long Read, with nobody to interfere. */
static int fill_behind_read(struct kdt_pair *pair, struct kdt_buf *mine, struct kdt_buf *theirs,
			    u32 len, int most, DAT_RETURN *last)
{
	unsigned long flags;
	int i;

	local_irq_save(flags);
	*last = kdt_read(&pair->c, mine, 0, len, theirs, 0, 0, 0);
	for (i = 1; *last == DAT_SUCCESS && i < most; i++)
		*last = kdt_write(&pair->c, mine, 0, 8, theirs, 0, i,
				  DAT_COMPLETION_BARRIER_FENCE_FLAG);
	if (*last != DAT_SUCCESS)
		i--;
	local_irq_restore(flags);
	return i;
}

/*
 * Requests that wait for a long Read pile up: exactly max_request_dtos are
 * taken, and each completion makes room for one more. Should the Read be
 * faster than the posts there is another round, with a longer one.
 */
static void request_queue_full(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	u32 most = min3(env->a.attr.max_lmr_block_size, env->b.attr.max_lmr_block_size,
			(DAT_VLEN)SZ_2M), len;
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, most);
	struct kdt_buf *theirs = kdt_buf_new(test, &env->b, most);
	struct kdt_pair *pair;
	DAT_EP_ATTR attr;
	DAT_EP_PARAM param = {};
	int i, n, got, full = 0;
	DAT_RETURN ret;

	if (!kdt_fence)
		kunit_skip(test, "the device fences no Write");
	kdt_attr(env, &attr);
	attr.max_rdma_size = most;
	attr.max_request_dtos = 8;
	pair = kdt_pair_new(test, &attr);
	kdt_pair_connect(test, pair);
	KDT_OK(test, dat_ep_query(pair->c.h, DAT_EP_FIELD_ALL, &param));
	n = param.ep_attr.max_request_dtos;
	KUNIT_ASSERT_GE(test, n, 8);
	for (len = most / 16; len <= most && full < 3; len += most / 16) {
		got = fill_behind_read(pair, mine, theirs, len, n + 1, &ret);
		if (ret != DAT_SUCCESS) {
			KUNIT_EXPECT_EQ(test, got, n);
			KUNIT_EXPECT_EQ(test, DAT_GET_TYPE(ret), (u32)DAT_INSUFFICIENT_RESOURCES);
			full++;
		}
		kdt_dto(test, pair->c.req, &pair->c, 0, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, len);
		for (i = 1; i < got; i++) {
			kdt_dto(test, pair->c.req, &pair->c, i, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS,
				8);
			/* Reported, so there is room. */
			KDT_OK(test, kdt_write(&pair->c, mine, 0, 8, theirs, 0, 100 + i, 0));
		}
		for (i = 1; i < got; i++)
			kdt_dto(test, pair->c.req, &pair->c, 100 + i, DAT_DTO_RDMA_WRITE,
				DAT_DTO_SUCCESS, 8);
	}
	KUNIT_EXPECT_GT_MSG(test, full, 0, "the queue was never full");
	kdt_pair_down(test, pair);
	kdt_ep_done(test, &pair->c);
	kdt_ep_done(test, &pair->s);
}

static DAT_RETURN post_patiently(struct kdt_pair *pair, int kind, struct kdt_buf *mine,
				 struct kdt_buf *theirs, u64 cookie)
{
	unsigned long end = jiffies + KDT_WAIT;
	DAT_RETURN ret;

	do {
		switch (kind) {
		case 0:
			ret = kdt_send(&pair->c, mine, 0, 64, cookie, DAT_COMPLETION_SUPPRESS_FLAG);
			break;
		case 1:
			ret = kdt_write(&pair->c, mine, 0, 64, theirs, 0, cookie,
					DAT_COMPLETION_SUPPRESS_FLAG);
			break;
		default:
			ret = kdt_read(&pair->c, mine, 0, 64, theirs, 0, cookie,
				       DAT_COMPLETION_SUPPRESS_FLAG);
		}
		if (DAT_GET_TYPE(ret) != DAT_INSUFFICIENT_RESOURCES)
			break;
		schedule_timeout_uninterruptible(1);
	} while (time_before(jiffies, end));
	return ret;
}

/* Ten queues full of each kind without an event, and nobody looks at the EVD. */
static void suppressed_unseen(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, 64);
	struct kdt_buf *theirs = kdt_buf_new(test, &env->b, 64);
	static const int depths[] = { 1, 3, 16 };
	struct kdt_pair *pair;
	DAT_EP_ATTR attr;
	int d, i, kind, n;
	DAT_EVENT event;
	DAT_RETURN ret;

	for (d = 0; d < ARRAY_SIZE(depths); d++) {
		kdt_attr(env, &attr);
		attr.max_request_dtos = depths[d];
		pair = kdt_pair_quiet(test, &attr);
		n = 10 * depths[d];
		for (i = 0; i < n; i++) {
			KDT_OK(test, kdt_recv(&pair->s, theirs, 0, 64, i));
			KDT_OK(test, post_patiently(pair, 0, mine, theirs, i));
			kdt_dto(test, pair->s.recv, &pair->s, i, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS,
				64);
		}
		for (kind = 1; kind < 3; kind++) {
			for (i = 0; i < n; i++)
				KDT_OK(test, post_patiently(pair, kind, mine, theirs, i));
		}
		KDT_REFUSED(test, DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE,
			    dat_evd_dequeue(pair->c.req->h, &event));
		/* A signalled one says that all of them have succeeded. */
		KDT_OK(test, kdt_recv(&pair->s, theirs, 0, 64, 1));
		do {
			ret = kdt_send(&pair->c, mine, 0, 64, 9, 0);
			if (ret != DAT_SUCCESS)
				schedule_timeout_uninterruptible(1);
		} while (DAT_GET_TYPE(ret) == DAT_INSUFFICIENT_RESOURCES);
		KDT_OK(test, ret);
		kdt_dto(test, pair->c.req, &pair->c, 9, DAT_DTO_SEND, DAT_DTO_SUCCESS, 64);
		kdt_dto(test, pair->s.recv, &pair->s, 1, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 64);
		kdt_pair_down(test, pair);
		kdt_ep_done(test, &pair->c);
		kdt_ep_done(test, &pair->s);
	}
}

/* ---- reads ---- */

/*
 * Ends that grant different numbers of Reads. More are asked than granted;
 * neither soft provider breaks the connection for it, the reads just wait.
 */
static void read_depths(struct kunit *test)
{
	static const struct {
		int out, in;
	} depth[] = { { 1, 4 }, { 4, 1 }, { 16, 2 }, { 0, 4 }, { 4, 0 } };
	struct kdt_env *env = kdt_env(test);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, 8192);
	struct kdt_buf *theirs = kdt_buf_new(test, &env->b, 8192);
	struct kdt_pair *pair;
	DAT_EP_ATTR attr;
	int d, i, n;

	for (d = 0; d < ARRAY_SIZE(depth); d++) {
		pair = kdt_pair_new(test, NULL);
		KDT_OK(test, dat_ep_free(pair->c.h));
		KDT_OK(test, dat_ep_free(pair->s.h));
		kdt_attr(env, &attr);
		attr.max_rdma_read_out = depth[d].out;
		attr.max_rdma_read_in = 0;
		KDT_OK(test, dat_ep_create(env->a.h, env->a.pz, pair->c.recv->h, pair->c.req->h,
					   pair->c.conn->h, &attr, &pair->c.h));
		attr.max_rdma_read_out = 0;
		attr.max_rdma_read_in = depth[d].in;
		KDT_OK(test, dat_ep_create(env->b.h, env->b.pz, pair->s.recv->h, pair->s.req->h,
					   pair->s.conn->h, &attr, &pair->s.h));
		kdt_pair_connect(test, pair);
		/* soft-iWARP grants what the peer asks for, whatever it was told to grant */
		if (!depth[d].out || (!depth[d].in && !(env->b.traits & KDT_GRANTS))) {
			KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG1,
				    kdt_read(&pair->c, mine, 0, 64, theirs, 0, 1, 0));
		} else {
			n = 40;
			kdt_fill(theirs->p, 8192, d);
			memset(mine->p, 0, 8192);
			for (i = 0; i < n; i++)
				KDT_OK(test, kdt_read(&pair->c, mine, 200 * i, 200, theirs, 200 * i,
						      i, 0));
			for (i = 0; i < n; i++)
				kdt_dto(test, pair->c.req, &pair->c, i, DAT_DTO_RDMA_READ,
					DAT_DTO_SUCCESS, 200);
			KUNIT_EXPECT_TRUE(test, kdt_same(mine->p, 200 * n, d));
		}
		/* Not the server: it asked for none. */
		KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG1,
			    kdt_read(&pair->s, theirs, 0, 64, mine, 0, 1, 0));
		kdt_settle(test, pair);
		kdt_pair_down(test, pair);
		kdt_ep_done(test, &pair->c);
		kdt_ep_done(test, &pair->s);
	}
}

/* How many wait at a time: all the queue takes, on soft-iWARP what is granted (D-14). */
static void reads_outstanding(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	u32 len, most = SZ_1M;
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, most);
	struct kdt_buf *theirs = kdt_buf_new(test, &env->b, most);
	struct kdt_pair *pair;
	DAT_EP_ATTR attr;
	DAT_EP_PARAM param = {};
	int i, n, limit, full = 0;
	unsigned long flags;
	DAT_RETURN ret;

	kdt_attr(env, &attr);
	attr.max_rdma_size = most;
	attr.max_request_dtos = 160;
	pair = kdt_pair_new(test, &attr);
	kdt_pair_connect(test, pair);
	KDT_OK(test, dat_ep_query(pair->c.h, DAT_EP_FIELD_ALL, &param));
	limit = env->a.traits & KDT_GRANTS ? 128 : param.ep_attr.max_request_dtos;
	for (len = most / 8; len <= most && !full; len += most / 8) {
		local_irq_save(flags);
		ret = kdt_read(&pair->c, mine, 0, len, theirs, 0, 0, 0);
		for (n = 1; ret == DAT_SUCCESS && n <= limit; n++)
			ret = kdt_read(&pair->c, mine, 0, 8, theirs, 0, n, 0);
		local_irq_restore(flags);
		if (ret != DAT_SUCCESS) {
			n--;
			KUNIT_EXPECT_EQ(test, n, limit);
			KUNIT_EXPECT_EQ(test, DAT_GET_TYPE(ret), (u32)DAT_INSUFFICIENT_RESOURCES);
			full++;
		}
		for (i = 0; i < n; i++)
			kdt_dto(test, pair->c.req, &pair->c, i, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS,
				i ? 8 : len);
	}
	KUNIT_EXPECT_GT_MSG(test, full, 0, "the queue was never full");
	kdt_settle(test, pair);
	kdt_pair_down(test, pair);
}

/* A fenced Write carries what the Read before it has brought. */
static void fenced_write(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, SZ_64K);
	struct kdt_buf *theirs = kdt_buf_new(test, &env->b, SZ_64K);
	struct kdt_buf *echo = kdt_buf_new(test, &env->b, SZ_64K);
	struct kdt_buf *again = kdt_buf_new(test, &env->a, SZ_64K);
	int i;

	if (!kdt_fence)
		kunit_skip(test, "the device fences no Write");
	for (i = 0; i < 10; i++) {
		kdt_fill(theirs->p, SZ_64K, i);
		memset(mine->p, 0, SZ_64K);
		memset(echo->p, 0, SZ_64K);
		memset(again->p, 0, SZ_64K);
		KDT_OK(test, kdt_read(&pair->c, mine, 0, SZ_64K, theirs, 0, 1,
				      DAT_COMPLETION_SUPPRESS_FLAG));
		KDT_OK(test, kdt_write(&pair->c, mine, 0, SZ_64K, echo, 0, 2,
				       DAT_COMPLETION_BARRIER_FENCE_FLAG));
		/* Requests start in order: this one finds what the Write has left. */
		KDT_OK(test, kdt_read(&pair->c, again, 0, SZ_64K, echo, 0, 3,
				      DAT_COMPLETION_BARRIER_FENCE_FLAG));
		kdt_dto(test, pair->c.req, &pair->c, 2, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS,
			SZ_64K);
		kdt_dto(test, pair->c.req, &pair->c, 3, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, SZ_64K);
		KUNIT_EXPECT_TRUE_MSG(test, kdt_same(echo->p, SZ_64K, i), "round %d", i);
		KUNIT_EXPECT_TRUE_MSG(test, kdt_same(again->p, SZ_64K, i), "round %d", i);
	}
	kdt_pair_down(test, pair);
}

/* ---- the end of a busy queue ---- */

/*
 * Nobody has made a mistake, so both ends are DISCONNECTED, except that
 * soft-iWARP calls it an error when it is stopped in the middle of sending.
 */
static void end_while_busy(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, KDT_SIZE);
	struct kdt_buf *theirs = kdt_buf_new(test, &env->b, KDT_SIZE);
	DAT_DTO_COMPLETION_STATUS status;
	DAT_EVENT_NUMBER c, s;
	struct kdt_pair *pair;
	int round, i, n, failed, errors;
	DAT_RETURN ret;
	u64 cookie;

	for (round = 0; round < 6; round++) {
		pair = kdt_pair_up(test);
		for (i = 0; i < 10; i++)
			KDT_OK(test, kdt_recv(&pair->c, mine, 0, 64, i));
		for (n = 0; n < 24; n++) {
			if (n % 3 == 1)
				ret = kdt_read(&pair->c, mine, 0, 32768, theirs, 0, n, 0);
			else
				ret = kdt_write(&pair->c, mine, 0, 32768, theirs, 0, n, 0);
			KDT_OK(test, ret);
		}
		KDT_OK(test, dat_ep_disconnect(round % 2 ? pair->s.h : pair->c.h,
					       DAT_CLOSE_ABRUPT_FLAG));
		c = kdt_end(test, &pair->c);
		s = kdt_end(test, &pair->s);
		/* The marker of each queue comes behind all the rest. */
		KDT_OK(test, kdt_send(&pair->c, mine, 0, 64, 1000, 0));
		KDT_OK(test, kdt_recv(&pair->c, mine, 0, 64, 1001));
		for (i = 0, failed = 0, errors = 0; i < n; i++) {
			status = kdt_any_dto(test, pair->c.req, &cookie);
			KUNIT_EXPECT_EQ(test, cookie, i);
			/* siw completes a Write when it has left, a Read when it is answered. */
			if (!env->a.iwarp && failed)
				KUNIT_EXPECT_EQ(test, (int)status, DAT_DTO_ERR_FLUSHED);
			failed += status != DAT_DTO_SUCCESS;
			errors += status != DAT_DTO_SUCCESS && status != DAT_DTO_ERR_FLUSHED;
		}
		kdt_dto(test, pair->c.req, &pair->c, 1000, DAT_DTO_SEND, DAT_DTO_ERR_FLUSHED, 0);
		for (i = 0; i < 10; i++)
			kdt_dto(test, pair->c.recv, &pair->c, i, DAT_DTO_RECEIVE,
				DAT_DTO_ERR_FLUSHED, 0);
		kdt_dto(test, pair->c.recv, &pair->c, 1001, DAT_DTO_RECEIVE, DAT_DTO_ERR_FLUSHED,
			0);
		if (!env->a.iwarp) {
			KUNIT_EXPECT_EQ(test, errors, 0);
			KUNIT_EXPECT_EQ(test, (int)c, DAT_CONNECTION_EVENT_DISCONNECTED);
			KUNIT_EXPECT_EQ(test, (int)s, DAT_CONNECTION_EVENT_DISCONNECTED);
		} else if (errors && round % 2) {
			KUNIT_EXPECT_EQ(test, (int)c, DAT_CONNECTION_EVENT_BROKEN);
		}
		kdt_ep_done(test, &pair->c);
		kdt_ep_done(test, &pair->s);
	}
}

static struct kunit_case cases[] = {
	KD_CASE(most_segments, "EP-POST-12,EP-POST-13,SEND-04,RECV-03,RDMAW-02: all segments"),
	KD_CASE(most_bytes, "SEND-20,RDMAW-16: as many bytes as fit"),
	KD_CASE(arrays_freed, "EP-POST-05,SEND-13,RECV-08,RDMAW-07,RDMAR-08: arrays freed"),
	KD_CASE(posts_from_softirq, "EP-POST-02,EP-POST-06,SEND-15,RECV-09,RDMAW-08,RDMAR-09: irq"),
	KD_CASE(posts_at_once, "EP-POST-22,CTX-03,EP-POST-21: four threads, one endpoint"),
	KD_CASE(request_queue_full, "EP-POST-17,SEND-19,RDMAW-15,RDMAR-14: queue full, room again"),
	KD_CASE(suppressed_unseen, "FLAG-11,SIL-04,FLAG-02: suppressed, and nobody looks"),
	KD_CASE(read_depths, "RDMAR-15,RDMAR-16,RDMAR-17: ends with different read depths"),
	KD_CASE(reads_outstanding, "RDMAR-14,RDMAR-16,EP-POST-17: Reads that can be outstanding"),
	KD_CASE(fenced_write, "FLAG-09,RDMAR-16: fenced Writes and Reads behind Reads"),
	KD_CASE(end_while_busy, "FLUSH-01,FLUSH-04,FLUSH-08,STAT-02: the end of a busy queue"),
	{}
};

struct kunit_suite kdt_xfer_suite = {
	.name = "kdtest-xfer",
	.init = kdt_init,
	.exit = kdt_exit,
	.test_cases = cases,
};
