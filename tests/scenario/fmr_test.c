// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Memory that is bound on a connection: dat_lmr_fmr(), dat_lmr_invalidate() and windows
 * of dat_rmr_bind(), with a peer that uses the keys, in time and too late.
 */
#include <linux/completion.h>
#include <linux/sizes.h>

#include "kdtest_play.h"

#define PAGES	8
#define LEN	(PAGES * PAGE_SIZE)

#define UNSIGNALLED	DAT_COMPLETION_UNSIGNALLED_FLAG

/* One request at a time for each object; the one before may have no event. */
static bool again(struct kunit *test, DAT_RETURN ret, unsigned long end, int *n)
{
	if (ret == DAT_SUCCESS)
		return false;
	KUNIT_ASSERT_EQ(test, DAT_GET_TYPE(ret), (u32)DAT_INSUFFICIENT_RESOURCES);
	KUNIT_ASSERT_TRUE_MSG(test, time_before(jiffies, end), "it never becomes free");
	if (++*n % 64)
		cond_resched();
	else
		schedule_timeout_uninterruptible(1);
	return true;
}

/* The client hears of this memory, and may write all of it. */
static void offer(struct kunit *test, struct kdt_pair *pair, struct kdt_buf *ctrl,
		  struct kdt_buf *got, struct kdt_buf *mem, u32 number)
{
	struct kdt_offer *o = (struct kdt_offer *)ctrl->p;
	DAT_RMR_TRIPLET remote;
	DAT_LMR_TRIPLET iov;

	*o = (struct kdt_offer) { (uintptr_t)mem->p + mem->shift, mem->len, mem->rctx, number };
	KDT_OK(test, kdt_send(&pair->s, ctrl, 0, sizeof(*o), 2, KDT_SUPPRESS));
	kdt_came(test, &pair->c, number, sizeof(*o));
	o = (struct kdt_offer *)got->p;
	KUNIT_ASSERT_EQ(test, o->number, number);
	remote = (DAT_RMR_TRIPLET) { o->va, o->len, o->rctx };
	iov = kdt_seg(got, 0, o->len);
	kdt_fill(got->p, iov.segment_length, number);
	KDT_OK(test, dat_ep_post_rdma_write(pair->c.h, 1, &iov, kdt_cookie(4), &remote, 0));
	kdt_sent(test, &pair->c, 4, DAT_DTO_RDMA_WRITE, iov.segment_length);
	kdt_settle(test, pair);
	KUNIT_ASSERT_TRUE_MSG(test, kdt_same(mem->p, mem->len, number), "round %u", number);
}

/*
 * A binding without an event and a message with the key right behind it, again and
 * again: who gets the message may use the key. In turn a window, an LMR, and an LMR
 * that the server itself sends as soon as it is bound.
 */
static void usable_at_once(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_mem_pair(test, NULL);
	struct kdt_buf *mem = kdt_fmr_new(test, &env->b, PAGES, DAT_LMR_SCOPE_ANY);
	struct kdt_buf *below = kdt_buf_new(test, &env->b, LEN);
	struct kdt_buf *ctrl = kdt_buf_new(test, &env->b, sizeof(struct kdt_offer));
	struct kdt_buf *got = kdt_buf_new(test, &env->a, LEN);
	struct kdt_window *w = kdt_window_new(test);
	struct kdt_ep *s = &pair->s;
	DAT_LMR_CONTEXT last = 0;
	unsigned long end;
	int i, busy = 0;

	for (i = 0; i < kdt_rounds; i++) {
		u32 off = i * 37 % 4096, len = 1 + i * 101 % (LEN - 4096);

		end = jiffies + KDT_WAIT;
		KDT_OK(test, kdt_recv(&pair->c, got, 0, LEN, i));
		if (i % 3 == 0) {
			while (again(test, kdt_bind(s, w, below, off, len, 1, KDT_SUPPRESS), end,
				     &busy))
				;
			kdt_mem_wipe(below, 0x99);
			offer(test, pair, ctrl, got, &w->buf, i);
			KUNIT_EXPECT_TRUE(test, kdt_all(below->p, off, 0x99));
			KUNIT_EXPECT_TRUE(test, kdt_all(w->buf.p + len, LEN - off - len, 0x99));
			while (i % 7 == 6 && again(test, kdt_unbind(s, w, 4, KDT_SUPPRESS), end,
						   &busy))
				;
			continue;
		}
		if (i % 3 == 1) {
			kdt_fill(mem->p, LEN, i);
			KDT_OK(test, kdt_fmr(s, mem, DAT_MEM_PRIV_LOCAL_READ_FLAG, DAT_VA_TYPE_VA,
					     1, KDT_SUPPRESS));
			KUNIT_EXPECT_EQ(test, mem->rctx, 0);
			KDT_OK(test, kdt_send(s, mem, 0, LEN, 2, KDT_SUPPRESS));
			KDT_OK(test, kdt_inv(s, mem, 3, KDT_INV_FENCE));
			kdt_came(test, &pair->c, i, LEN);
			KUNIT_ASSERT_TRUE_MSG(test, kdt_same(got->p, LEN, i), "round %d", i);
		} else {
			KDT_OK(test, kdt_fmr(s, mem, KDT_RIGHTS, DAT_VA_TYPE_VA, 1, KDT_SUPPRESS));
			offer(test, pair, ctrl, got, mem, i);
			KDT_OK(test, kdt_inv(s, mem, 3, 0));
		}
		KUNIT_EXPECT_NE(test, mem->lctx, last);
		last = mem->lctx;
		kdt_sent(test, s, 3, DAT_DTO_LMR_INVALIDATE, 0);
		KUNIT_EXPECT_TRUE(test, kdt_guarded(mem));
	}
	kunit_info(test, "%u rounds, busy %d times\n", kdt_rounds, busy);
	kdt_settle_back(test, pair);
	kdt_mem_down(test, pair);
	kdt_pair_done(test, pair);
}

static void flags(struct kunit *test)
{
	static const struct kdt_step silent[] = {
		/* success is silent, and what comes behind tells that it was one */
		{ FMR, B, 0, KDT_SUPPRESS | UNSIGNALLED },
		{ INVALIDATE, B, 0, KDT_SUPPRESS | KDT_INV_FENCE },
		{ BIND, B, SZ_64K, KDT_SUPPRESS },
		{ READ_FROM, B, SZ_64K },
		{ DONE, B },
		{ BOUND, B, 0, false },
		{ NOTHING, B },
	}, unsignalled[] = {
		/* they wait for one that is signalled */
		{ MARK, B },
		{ FMR, B, 0, UNSIGNALLED },
		{ INVALIDATE, B, 0, UNSIGNALLED },
		{ BIND, B, 100, UNSIGNALLED },
		/* whatever the client gets from here comes after them */
		{ RECV, A },
		{ SEND, B, 0, KDT_SUPPRESS },
		{ CAME, A },
		{ SILENT, B },
		{ READ_FROM, B, 8 },
		{ DONE, B, .times = 4 },
		/* behind a Read, fenced */
		{ READ_FROM, B, SZ_64K },
		{ FMR, B, 0, FENCED },
		{ INVALIDATE, B, 0, DAT_COMPLETION_BARRIER_FENCE_FLAG | KDT_INV_FENCE },
		{ BIND, B, 200, FENCED },
		{ DONE, B, .times = 4 },
		/* and in the order of the queue without a fence */
		{ READ_FROM, B, SZ_64K },
		{ BIND, B, 300 },
		{ DONE, B, .times = 2 },
		{ READ_FROM, B, SZ_64K },
		{ UNBIND, B, 0, FENCED },
		{ DONE, B, .times = 2 },
	};
	struct kdt_pair *pair;
	struct kdt_play *p;
	DAT_EP_ATTR attr;

	kdt_attr(kdt_env(test), &attr);
	attr.request_completion_flags = UNSIGNALLED;
	pair = kdt_mem_pair(test, &attr);
	p = kdt_play_new(test, pair, SZ_64K);
	p->end[B].fmr = kdt_fmr_new(test, pair->s.ia, PAGES, DAT_LMR_SCOPE_PZ);
	p->end[B].window = kdt_window_new(test);
	kdt_play(test, p, silent);
	kdt_peer_works(test, pair, &p->end[B].window->buf, 0, SZ_64K, 1);
	kdt_play(test, p, unsignalled);
	kdt_mem_done(test, pair);
}

/* ---- from softirq, with interrupts off, and as large as it can be ---- */

#define STEPS	84

/* Each event posts the next request: an fmr, a window over it, the ends of both. */
static struct softie {
	struct kdt_pair *pair;
	struct kdt_buf *mem;
	struct kdt_window *w;
	struct completion done;
	unsigned int n, bad;
	u32 len;		/* of the window */
	DAT_RETURN ret;
} softie;

static void softie_next(struct softie *s)
{
	struct kdt_ep *ep = &s->pair->s;
	unsigned long irq;

	local_irq_save(irq);
	switch (s->n % 4) {
	case 0:
		s->ret = kdt_fmr(ep, s->mem, KDT_RIGHTS, s->n % 8 / 4, s->n, 0);
		break;
	case 1:
		s->ret = kdt_bind(ep, s->w, s->mem, s->n, s->len - s->n, s->n, 0);
		break;
	case 2:
		s->ret = kdt_unbind(ep, s->w, s->n, 0);
		break;
	default:
		s->ret = kdt_inv(ep, s->mem, s->n, 0);
	}
	local_irq_restore(irq);
	if (s->ret != DAT_SUCCESS)
		complete(&s->done);
}

static bool softie_event(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_RMR_BIND_COMPLETION_EVENT_DATA *rmr =
		&event->event_data.rmr_completion_event_data;
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	struct softie *s = &softie;
	bool ok;

	if (s->n % 4 == 1 || s->n % 4 == 2)
		ok = event->event_number == DAT_RMR_BIND_COMPLETION_EVENT &&
		     rmr->status == DAT_RMR_BIND_SUCCESS && rmr->rmr_handle == s->w->h &&
		     rmr->user_cookie.as_64 == s->n;
	else
		ok = event->event_number == DAT_DTO_COMPLETION_EVENT &&
		     dto->status == DAT_DTO_SUCCESS && dto->user_cookie.as_64 == s->n &&
		     dto->operation == (s->n % 4 ? DAT_DTO_LMR_INVALIDATE : DAT_DTO_LMR_FMR);
	if (!ok || !in_serving_softirq())
		s->bad++;
	if (s->bad || ++s->n == STEPS)
		complete(&s->done);
	else
		softie_next(s);
	return true;
}

static void from_softirq(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct softie *s = &softie;
	struct kdat_mem_limits limits;

	kdt_mem_limits(test, &env->b, &limits);
	memset(s, 0, sizeof(*s));
	init_completion(&s->done);
	s->pair = kdt_mem_pair(test, NULL);
	s->mem = kdt_fmr_new(test, &env->b, limits.lmr_pages, DAT_LMR_SCOPE_EP);
	s->len = limits.rmr_pages * PAGE_SIZE;
	s->w = kdt_window_new(test);
	kdt_fmr_done(test, &s->pair->s, s->mem, KDT_RIGHTS);
	s->pair->s.req->hook = softie_event;
	/* its upcall may be faster than its return */
	s->n = 2;
	KDT_OK(test, kdt_unbind(&s->pair->s, s->w, s->n, 0));
	KUNIT_ASSERT_NE(test, wait_for_completion_timeout(&s->done, KDT_WAIT), 0);
	KDT_OK(test, s->ret);
	KUNIT_EXPECT_EQ(test, s->bad, 0);
	KUNIT_EXPECT_EQ(test, s->n, STEPS);
	s->pair->s.req->hook = NULL;
	kdt_fmr_done(test, &s->pair->s, s->mem, KDT_RIGHTS);
	kdt_bind_done(test, &s->pair->s, s->w, s->mem, 0, s->len);
	kdt_peer_works(test, s->pair, s->mem, s->mem->len - 5000, 5000, 1);
	kdt_peer_works(test, s->pair, s->mem, 3, 5000, 2);
	kdt_peer_works(test, s->pair, &s->w->buf, s->len - 5000, 5000, 3);
	kunit_info(test, "%u and %u bytes\n", s->mem->len, s->len);
	kdt_settle(test, s->pair);
}

/* ---- the ends of connections, and of LMRs ---- */

/* Nothing is bound and nothing ends there; a later connection makes up for it. */
static void disconnected(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_mem_pair(test, NULL), *other = kdt_mem_pair(test, NULL);
	struct kdt_buf *mem = kdt_fmr_new(test, &env->b, PAGES, DAT_LMR_SCOPE_PZ);
	struct kdt_buf *bound = kdt_fmr_new(test, &env->b, PAGES, DAT_LMR_SCOPE_PZ);
	struct kdt_buf *below = kdt_buf_new(test, &env->b, LEN), now, was;
	struct kdt_window *w = kdt_window_new(test);
	struct kdt_ep *s = &pair->s;
	int i;

	kdt_fmr_done(test, s, bound, KDT_RIGHTS);
	kdt_bind_done(test, s, w, below, 0, LEN);
	now = *bound;
	was = w->buf;
	kdt_mem_down(test, pair);
	for (i = 0; i < 3; i++) {
		int silent = i == 1 ? KDT_SUPPRESS : 0;

		KDT_OK(test, kdt_fmr(s, mem, KDT_RIGHTS, 0, 1, silent));
		kdt_flushed(test, s, 1, DAT_DTO_LMR_FMR);
		KUNIT_EXPECT_FALSE(test, kdt_bound(test, mem->lmr));
		KDT_OK(test, kdt_inv(s, bound, 2, silent ?: KDT_INV_FENCE));
		kdt_flushed(test, s, 2, DAT_DTO_LMR_INVALIDATE);
		KUNIT_EXPECT_TRUE(test, kdt_bound(test, bound->lmr));
		if (i)
			KDT_OK(test, kdt_bind(s, w, below, 100, 100, 3, silent));
		else
			KDT_OK(test, kdt_unbind(s, w, 3, silent));
		kdt_bind_event(test, s->req, w->h, 3, DAT_RMR_BIND_FAILURE);
		/* in effect for everybody else as before */
		kdt_peer_works(test, other, &now, 0, LEN, i);
		kdt_peer_works(test, other, &was, 0, LEN, i);
		KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE,
			    dat_lmr_free(below->lmr));
	}
	/* a new connection of the same endpoint, or another one, ends what the old one could not */
	KDT_OK(test, dat_ep_reset(s->h));
	KDT_OK(test, dat_ep_reset(pair->c.h));
	kdt_pair_connect(test, pair);
	kdt_peer_works(test, pair, &now, 0, LEN, 4);
	kdt_inv_done(test, s, bound);
	kdt_key_dead(test, &now);
	kdt_bind_done(test, &other->s, w, below, 0, 100);
	kdt_key_dead(test, &was);
	kdt_peer_works(test, other, &w->buf, 0, 100, 5);
	kdt_fmr_done(test, s, bound, KDT_RIGHTS);
	kdt_fmr_done(test, s, mem, KDT_RIGHTS);
	kdt_peer_works(test, pair, mem, 0, LEN, 5);
	/* an endpoint that goes leaves what it has bound behind */
	kdt_mem_down(test, pair);
	kdt_ep_done(test, s);
	KUNIT_EXPECT_TRUE(test, kdt_bound(test, bound->lmr));
	kdt_peer_works(test, other, bound, 0, LEN, 6);
	kdt_inv_done(test, &other->s, bound);
	kdt_key_dead(test, bound);
	kdt_settle(test, other);
}

/*
 * A connection that ends while fmr and invalidate are under way: whichever
 * state each is in, it is the one its event has told.
 */
static void cut_off(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_buf *mem[8], *there = kdt_buf_new(test, &env->a, SZ_64K);
	struct kdt_buf *from = kdt_buf_new(test, &env->b, SZ_64K);
	struct kdt_pair *other = kdt_mem_pair(test, NULL);
	DAT_DTO_COMPLETION_EVENT_DATA *dto;
	struct kdt_pair *pair;
	bool bound[8], waits[8], doubt[8];
	unsigned int seen[4] = {};
	DAT_EVENT event;
	int i, k, n, busy;
	DAT_RETURN ret;

	for (k = 0; k < 8; k++)
		mem[k] = kdt_fmr_new(test, &env->b, 4, DAT_LMR_SCOPE_PZ);
	for (i = 0; i < 12; i++) {
		pair = kdt_mem_pair(test, NULL);
		/* on one side of the queue a few that take their time */
		for (busy = 0; busy < i % 4; busy++)
			KDT_OK(test, kdt_read(&pair->s, from, 0, SZ_64K, there, 0, 100,
					      KDT_SUPPRESS));
		n = 1 + i % 8;
		for (k = 0; k < n; k++) {
			bound[k] = kdt_bound(test, mem[k]->lmr);
			waits[k] = true;
			doubt[k] = false;
			if (bound[k])
				ret = kdt_inv(&pair->s, mem[k], k, i % 2 ? KDT_INV_FENCE : 0);
			else
				ret = kdt_fmr(&pair->s, mem[k], KDT_RIGHTS, 0, k,
					      i % 2 ? kdt_fence : 0);
			KDT_OK(test, ret);
		}
		KDT_OK(test, dat_ep_disconnect(pair->s.h, DAT_CLOSE_ABRUPT_FLAG));
		kdt_end(test, &pair->s);
		kdt_end(test, &pair->c);
		while (n) {
			KUNIT_ASSERT_TRUE(test, kdt_get(pair->s.req, &event));
			dto = &event.event_data.dto_completion_event_data;
			k = dto->user_cookie.as_64;
			if (k == 100)
				continue;	/* a Read that failed */
			KUNIT_ASSERT_TRUE(test, k < 8 && waits[k]);
			waits[k] = false;
			n--;
			KUNIT_EXPECT_EQ(test, (int)dto->operation,
					bound[k] ? DAT_DTO_LMR_INVALIDATE : DAT_DTO_LMR_FMR);
			KUNIT_ASSERT_TRUE(test, dto->status == DAT_DTO_SUCCESS ||
					  dto->status == DAT_DTO_ERR_FLUSHED);
			seen[2 * bound[k] + (dto->status == DAT_DTO_SUCCESS)]++;
			/* soft-RoCE flushes what it has done and not reported, too (D-65) */
			doubt[k] = bound[k] && dto->status != DAT_DTO_SUCCESS &&
				   !(env->b.traits & KDT_TCP);
			if (dto->status == DAT_DTO_SUCCESS)
				bound[k] = !bound[k];
			KUNIT_EXPECT_EQ(test, kdt_bound(test, mem[k]->lmr), bound[k]);
		}
		/* What is bound works, what is not is dead. */
		for (k = 0; k <= i % 8; k++) {
			if (bound[k] && !doubt[k])
				kdt_peer_works(test, other, mem[k], 0, mem[k]->len, i);
		}
		KDT_OK(test, dat_ep_free(pair->s.h));
		KDT_OK(test, dat_ep_free(pair->c.h));
	}
	kunit_info(test, "fmr: %u flushed, %u done; invalidate: %u flushed, %u done\n", seen[0],
		   seen[1], seen[2], seen[3]);
	kdt_settle(test, other);
}

/* Pages of another size, where there are any. */
static void large_pages(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_mem_pair(test, NULL);
	struct kdt_buf *mem = kdt_mem_new(test, SZ_64K, true);
	DAT_REGION_DESCRIPTION region = {};
	struct kdat_mem_limits limits;
	DAT_RETURN ret;
	u64 size;

	kdt_mem_limits(test, &env->b, &limits);
	KDT_OK(test, dat_lmr_allocate(env->b.h, env->b.pz, 16, DAT_LMR_SCOPE_PZ, &mem->lmr));
	for (size = PAGE_SIZE; size <= SZ_64K; size <<= 1) {
		u64 i;

		for (i = 0; i < SZ_64K / size; i++)
			mem->pages[i] = virt_to_phys(mem->p) + i * size;
		region.for_array.page_size = size;
		region.for_array.pages = mem->pages;
		ret = dat_lmr_fmr(mem->lmr, DAT_MEM_TYPE_PHYSICAL_VAR_PAGES, region,
				  SZ_64K / size, KDT_RIGHTS, DAT_VA_TYPE_VA, pair->s.h,
				  kdt_cookie(1), 0, &mem->lctx, &mem->rctx);
		/* it may be cut into smaller ones, if those are not too many */
		if (!(limits.fmr_page_sizes & size) && ret != DAT_SUCCESS) {
			KUNIT_EXPECT_TRUE_MSG(test, ret == DAT_ERROR(DAT_INVALID_PARAMETER,
								     DAT_INVALID_ARG3),
					      "pages of %llu: 0x%08x", size, ret);
			continue;
		}
		KDT_OK(test, ret);
		kdt_sent(test, &pair->s, 1, DAT_DTO_LMR_FMR, 0);
		mem->shift = mem->pages[0] - (uintptr_t)mem->p;
		kdt_peer_works(test, pair, mem, 0, SZ_64K, 1);
		kdt_peer_works(test, pair, mem, SZ_64K - 3, 3, 2);
		kdt_inv_done(test, &pair->s, mem);
	}
	kdt_settle(test, pair);
}

static struct kunit_case cases[] = {
	KD_CASE(usable_at_once,
		"FMR-02,FMR-05,FMR-10..11,RMR-04..05,FLAG-02,FLAG-10: a key sent right behind"),
	KD_CASE(flags,
		"FMR-03,FMR-11,RMR-03,FLAG-02,FLAG-04,FLAG-09: suppressed, unsignalled, fenced"),
	KD_CASE(from_softirq,
		"FMR-01,FMR-02,FMR-10,RMR-02,CTX-01..03: in upcalls, interrupts off, the largest"),
	KD_CASE(large_pages, "FMR-02,FMR-06: pages of other sizes"),
	KD_CASE(disconnected,
		"FMR-07,FMR-15,RMR-08,RMR-10: in DISCONNECTED, and on the connection after"),
	KD_CASE(cut_off, "FMR-07,FMR-15,FLUSH-01: a connection that ends in between"),
	{}
};

struct kunit_suite kdt_fmr_suite = { .name = "kdtest-fmr", KDT_CASES };
