// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Messages that invalidate a region of whoever gets them, and RDMA Reads whose
 * sink is named by a key for peers.
 */
#include "kdtest_mem.h"

#define PAGES	4
#define LEN	(PAGES * PAGE_SIZE)

/* A message of 3000 bytes or none that invalidates this key of the peer's. */
static DAT_RETURN send_inv(struct kdt_ep *ep, struct kdt_buf *buf, u32 len, u64 cookie,
			   DAT_RMR_CONTEXT context)
{
	DAT_LMR_TRIPLET iov = kdt_seg(buf, 0, len);

	return dat_ep_post_send_with_invalidate(ep->h, !!len, &iov, kdt_cookie(cookie), 0, DAT_TRUE,
						context);
}

/* The client's message comes, on the SRQ if there is one, and with it the end of the key. */
static void take_key(struct kunit *test, struct kdt_pair *pair, DAT_SRQ_HANDLE srq,
		     struct kdt_buf *from, struct kdt_buf *to, u32 len, DAT_RMR_CONTEXT context)
{
	DAT_LMR_TRIPLET iov = kdt_seg(to, 0, to->len);
	DAT_DTO_COMPLETION_EVENT_DATA *dto;
	struct kdt_ep *s = &pair->s;
	DAT_EVENT event;

	kdt_fill(from->p, from->len, context);
	KDT_OK(test, srq ? dat_srq_post_recv(srq, 1, &iov, kdt_cookie(21)) :
			   dat_ep_post_recv(s->h, 1, &iov, kdt_cookie(21), 0));
	KDT_OK(test, send_inv(&pair->c, from, len, 22, context));
	kdt_sent(test, &pair->c, 22, DAT_DTO_SEND, len);
	KUNIT_ASSERT_TRUE_MSG(test, kdt_get(s->recv, &event), "no message in time");
	KUNIT_ASSERT_EQ(test, (int)event.event_number, DAT_DTO_COMPLETION_EVENT);
	dto = &event.event_data.dto_completion_event_data;
	KUNIT_EXPECT_PTR_EQ(test, dto->ep_handle, s->h);
	KUNIT_EXPECT_EQ(test, dto->user_cookie.as_64, 21);
	KUNIT_EXPECT_EQ(test, (int)dto->status, DAT_DTO_SUCCESS);
	KUNIT_EXPECT_EQ(test, (int)dto->operation, DAT_DTO_RECEIVE_WITH_INVALIDATE);
	KUNIT_EXPECT_EQ(test, dto->rmr_context, context);
	KUNIT_EXPECT_EQ(test, dto->transfered_length, len);
	KUNIT_EXPECT_TRUE(test, kdt_same(to->p, len, context));
}

/*
 * Every kind of region: its key goes with the message, and what is below stays. What can be bound
 * again has another key then, and the one before is dead, also for what is there now.
 */
static void every_kind(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_mem_pair(test, NULL);
	struct kdt_region *r = kdt_zalloc(test, sizeof(*r));
	struct kdt_buf *from = kdt_buf_new(test, &env->a, 3000);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, 3000), old;
	DAT_RMR_TRIPLET remote;
	int kind, i;

	for (kind = 0; kind < KDT_KINDS; kind++) {
		if (kind == KDT_LARGE)
			continue;
		kdt_region_new(test, r, pair, kind, false, KDT_RIGHTS, DAT_VA_TYPE_VA);
		/* of dat_lmr_kcreate() for good; the others are bound again */
		for (i = 0; i < (kind < KDT_FMR ? 1 : 5); i++) {
			old = r->buf;
			if (i)
				kdt_region_bind(test, r, KDT_RIGHTS, i % 2);
			kdt_peer_works(test, pair, &r->buf, 0, r->buf.len, i);
			if (i) {
				KUNIT_EXPECT_NE(test, r->buf.rctx, 0);
				KUNIT_EXPECT_NE(test, r->buf.rctx, old.rctx);
				if (r->buf.lctx)
					kdt_lctx_dead(test, &pair->s, &old);
				remote = kdt_rseg(i == 2 ? &old : &r->buf, 0, 64);
				remote.rmr_context = old.rctx;
				kdt_peer_fails(test, r->mem, &remote, i % 2);
			}
			/* a window is bound anew as it is, an LMR is not */
			if (i == 3 && !r->buf.lctx)
				continue;
			if (i > 2) {
				kdt_region_end(test, r, false);
				continue;
			}
			take_key(test, pair, NULL, from, to, i % 2 ? 0 : 3000, r->buf.rctx);
			if (r->buf.lctx) {
				KUNIT_EXPECT_FALSE_MSG(test, kdt_bound(test, r->buf.lmr), "%s",
						       r->name);
				kdt_lctx_dead(test, &pair->s, &r->buf);
			}
			if (kind >= KDT_FMR && r->buf.lctx)
				KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_FREE,
					    kdt_inv(&pair->s, &r->buf, 1, 0));
			if (!i) {
				remote = kdt_rseg(&r->buf, 0, 64);
				kdt_peer_fails(test, r->mem, &remote, kind % 2);
			}
		}
		/* a window unbound twice is unbound; what was below it is free, and has its keys */
		if (!r->buf.lctx) {
			kdt_region_end(test, r, false);
			kdt_message(test, &pair->s, r->mem, &pair->c, from, 64);
		}
		kdt_region_free(test, r);
	}
	kdt_mem_done(test, pair);
}

/*
 * A key the peer does not have, not any more, or not in this PZ, ends the
 * connection; nothing else of the peer's is touched.
 */
static void bad_context(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *other = kdt_pair_up(test);
	enum { INDEX, FREED, STALE, OTHER_PZ, LOCAL, BAD };
	int i;

	for (i = 0; i < BAD; i++) {
		struct kdt_pair *pair = kdt_mem_pair(test, NULL);
		struct kdt_buf *from = kdt_buf_new(test, &env->a, 64);
		struct kdt_buf *to = kdt_buf_new(test, &env->b, 64);
		struct kdt_buf *mem = kdt_buf_new(test, &env->b, LEN), *far = NULL;
		struct kdt_buf *fmr = kdt_fmr_new(test, &env->b, PAGES, DAT_LMR_SCOPE_PZ);
		DAT_RMR_CONTEXT context = mem->rctx ^ 0x5a5a00;
		DAT_PZ_HANDLE pz;
		u64 cookie;

		if (i == FREED) {
			context = mem->rctx;
			KDT_OK(test, dat_lmr_free(mem->lmr));
		} else if (i == STALE) {
			if (env->b.iwarp)
				continue;	/* siw does not look at the low byte */
			kdt_fmr_done(test, &pair->s, fmr, KDT_RIGHTS);
			context = fmr->rctx;
			kdt_inv_done(test, &pair->s, fmr);
			kdt_fmr_done(test, &pair->s, fmr, KDT_RIGHTS);
		} else if (i == OTHER_PZ) {
			if (!env->b.iwarp)
				continue;	/* soft-RoCE does not look at the PZ */
			KDT_OK(test, dat_pz_create(env->b.h, &pz));
			KDT_OK(test, kdt_buf_open(env, &env->b, pz, LEN, KDT_RIGHTS, &far));
			context = far->rctx;
		} else if (i == LOCAL) {
			context = 0;
		}
		KDT_OK(test, kdt_recv(&pair->s, to, 0, 64, 21));
		KDT_OK(test, send_inv(&pair->c, from, 64, 22, context));
		kdt_end(test, &pair->s);
		kdt_end(test, &pair->c);
		KUNIT_EXPECT_NE_MSG(test, (int)kdt_any_dto(test, pair->s.recv, &cookie),
				    DAT_DTO_SUCCESS, "context %d", i);
		KUNIT_EXPECT_EQ(test, cookie, 21);
		/* as a Send it may have been done before: iWARP never says, soft-RoCE may not */
		kdt_any_dto(test, pair->c.req, NULL);
		/* what was meant, and what was not, works on */
		if (i != FREED)
			kdt_peer_works(test, other, mem, 0, LEN, i);
		if (i == STALE)
			kdt_peer_works(test, other, fmr, 0, LEN, i);
		if (far)
			KUNIT_EXPECT_TRUE(test, kdt_bound(test, far->lmr));
		kdt_pair_done(test, pair);
	}
	kdt_settle(test, other);
}

/* Through an SRQ a message ends the key, too, and a plain one does not. */
static void through_srq(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, 64);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, 64);
	struct kdt_buf *mem = kdt_fmr_new(test, &env->b, PAGES, DAT_LMR_SCOPE_PZ);
	struct kdt_ep *s = &pair->s;
	DAT_LMR_TRIPLET iov = kdt_seg(to, 0, 64);
	DAT_SRQ_HANDLE srq;
	int i;

	if (!env->b.prov.srq_supported)
		kunit_skip(test, "no SRQs");
	srq = kdt_pair_srq(test, pair);
	kdt_pair_connect(test, pair);
	for (i = 0; i < 10; i++) {
		kdt_fmr_done(test, s, mem, KDT_RIGHTS);
		kdt_peer_works(test, pair, mem, 0, LEN, i);
		if (i % 3 != 2) {
			take_key(test, pair, srq, from, to, 64, mem->rctx);
		} else {
			KDT_OK(test, dat_srq_post_recv(srq, 1, &iov, kdt_cookie(i)));
			KDT_OK(test, kdt_send(&pair->c, from, 0, 64, 22, 0));
			kdt_sent(test, &pair->c, 22, DAT_DTO_SEND, 64);
			kdt_came(test, s, i, 64);
			KUNIT_EXPECT_TRUE(test, kdt_bound(test, mem->lmr));
			kdt_inv_done(test, s, mem);
		}
		KUNIT_EXPECT_FALSE(test, kdt_bound(test, mem->lmr));
	}
	kdt_key_dead(test, mem);
	kdt_mem_down(test, pair);
	KDT_OK(test, dat_ep_free(s->h));
	KDT_OK(test, dat_srq_free(srq));
}

/* ---- dat_ep_post_rdma_read_to_rmr ---- */

static DAT_RETURN read_to(struct kdt_ep *ep, const struct kdt_buf *sink, u32 offset, u32 room,
			  const struct kdt_buf *from, u32 len, u64 cookie, int flags)
{
	DAT_RMR_TRIPLET local = kdt_rseg(sink, offset, room);
	DAT_RMR_TRIPLET remote = kdt_rseg(from, 0, len);

	return dat_ep_post_rdma_read_to_rmr(ep->h, &local, kdt_cookie(cookie), &remote, flags);
}

/* Exactly, with room left, nothing; too long and beside it; silent. */
static void read_into(struct kunit *test, struct kdt_ep *s, struct kdt_buf *sink,
		      struct kdt_buf *from)
{
	const u32 lens[] = { sink->len, sink->len - 333, 0 };
	int k;

	for (k = 0; k < ARRAY_SIZE(lens); k++) {
		kdt_fill(from->p, LEN, k);
		memset(sink->p, 0x99, sink->len);
		KDT_OK(test, read_to(s, sink, 0, sink->len, from, lens[k], 5, 0));
		kdt_sent(test, s, 5, DAT_DTO_RDMA_READ, lens[k]);
		KUNIT_EXPECT_TRUE_MSG(test, kdt_same(sink->p, lens[k], k), "%u bytes", lens[k]);
		KUNIT_EXPECT_TRUE(test, kdt_all(sink->p + lens[k], sink->len - lens[k], 0x99));
	}
	KDT_REFUSED(test, DAT_LENGTH_ERROR, DAT_NO_SUBTYPE,
		    read_to(s, sink, 0, 100, from, 101, 6, 0));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		    read_to(s, sink, 1, sink->len, from, 100, 6, 0));
	KDT_OK(test, read_to(s, sink, 0, 64, from, 64, 7, KDT_SUPPRESS));
}

static void read_to_rmr(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_mem_pair(test, NULL);
	struct kdt_buf *mem = kdt_buf_new(test, &env->b, LEN);
	struct kdt_buf *fmr = kdt_fmr_new(test, &env->b, PAGES, DAT_LMR_SCOPE_PZ);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, LEN);
	struct kdt_window *w = kdt_window_new(test);
	struct kdt_ep *s = &pair->s;

	KUNIT_EXPECT_EQ(test, (int)env->b.prov.rdma_read_lmr_rmr_context_exposure,
			(int)env->b.iwarp);
	kdt_bind_done(test, s, w, mem, 100, 5000);
	kdt_fmr_done(test, s, fmr, KDT_RIGHTS);
	read_into(test, s, mem, from);
	read_into(test, s, &w->buf, from);
	read_into(test, s, fmr, from);
	KUNIT_EXPECT_TRUE(test, kdt_guarded(mem) && kdt_guarded(fmr));
	/* behind a bind or an fmr it needs no waiting */
	KDT_OK(test, kdt_inv(s, fmr, 8, KDT_INV_FENCE | KDT_SUPPRESS));
	kdt_fetch(test, s, mem, 0, 8, from, 0);
	KDT_OK(test, kdt_fmr(s, fmr, KDT_RIGHTS, 0, 10, KDT_SUPPRESS));
	KDT_OK(test, read_to(s, fmr, 0, LEN, from, LEN, 11, 0));
	kdt_sent(test, s, 11, DAT_DTO_RDMA_READ, LEN);
	kdt_settle(test, pair);
	kdt_mem_down(test, pair);
	/* flushed after the end */
	KDT_OK(test, read_to(s, mem, 0, 64, from, 64, 12, 0));
	kdt_flushed(test, s, 12, DAT_DTO_RDMA_READ);
	kdt_pair_done(test, pair);
}

static struct kunit_case cases[] = {
	KD_CASE(every_kind,
		"SINV-01..03,RMR-02..03,RMR-06,RMR-08,RMR-13..14,FMR-02..04,FMR-10,SIL-14: anew"),
	KD_CASE(bad_context, "SINV-04: a key the peer does not have ends the connection"),
	KD_CASE(through_srq, "SINV-02,SINV-03: through a Shared Receive Queue"),
	KD_CASE(read_to_rmr, "RTOR-01,RTOR-02,RTOR-03: Reads into RMRs and LMRs by their keys"),
	{}
};

struct kunit_suite kdt_sinv_suite = { .name = "kdtest-sinv", KDT_CASES };
