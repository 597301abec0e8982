// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * kdat_ep_post_list(): what a storage protocol does for one command, in one call:
 * bind memory, tell the peer of it, move data. The keys are known beforehand.
 */
#include "kdtest_mem.h"

#define PAGES	8
#define LEN	(PAGES * PAGE_SIZE)

/* The server's memory as a scatterlist, its LMR, and a message about it. */
struct rig {
	struct kdt_pair *pair;
	struct kdt_buf *mem;		/* bound by fmr */
	struct kdt_buf *ctrl;		/* the server's message */
	struct kdt_buf *got;		/* where the client gets it */
	struct kdt_buf *there;		/* the client's memory */
	struct kdt_buf *data;		/* the server's, always there */
	struct scatterlist sgl[PAGES];
	struct kdat_sg sg;
	DAT_LMR_TRIPLET bound, message, fixed;
	DAT_RMR_TRIPLET remote;
	struct kdat_request reqs[KDAT_POST_LIST_MAX];
	int n;
	/* posted by the upcall that brings a message */
	DAT_RETURN ret;
	bool softirq;
	struct completion posted;
};

static struct rig *rig_new(struct kunit *test)
{
	struct rig *g = kdt_zalloc(test, sizeof(*g));
	struct kdt_env *env = kdt_env(test);
	DAT_LMR_CONTEXT lctx;
	DAT_RMR_CONTEXT rctx;
	DAT_VADDR addr = 1;
	int i;

	g->pair = kdt_mem_pair(test, NULL);
	g->mem = kdt_fmr_new(test, &env->b, PAGES, DAT_LMR_SCOPE_PZ);
	g->ctrl = kdt_buf_new(test, &env->b, sizeof(struct kdt_offer));
	g->got = kdt_buf_new(test, &env->a, sizeof(struct kdt_offer));
	g->there = kdt_buf_new(test, &env->a, LEN);
	g->data = kdt_buf_new(test, &env->b, LEN);
	sg_init_table(g->sgl, PAGES);
	for (i = 0; i < PAGES; i++)
		sg_set_page(&g->sgl[i], vmalloc_to_page(g->mem->p + i * PAGE_SIZE), PAGE_SIZE, 0);
	g->sg = (struct kdat_sg) { .sgl = g->sgl, .nents = PAGES, .length = LEN };
	/* where an fmr of this list starts: what the call says when it is made alone */
	KDT_OK(test, kdat_lmr_fmr_sg(g->mem->lmr, &g->sg, KDT_RIGHTS, DAT_VA_TYPE_VA,
				     g->pair->s.h, kdt_cookie(1), 0, &lctx, &rctx, &addr));
	kdt_sent(test, &g->pair->s, 1, DAT_DTO_LMR_FMR, 0);
	kdt_inv_done(test, &g->pair->s, g->mem);
	g->mem->shift = addr - (uintptr_t)g->mem->p;
	g->remote = kdt_rseg(g->there, 0, LEN);
	g->message = kdt_seg(g->ctrl, 0, sizeof(struct kdt_offer));
	g->fixed = kdt_seg(g->data, 0, LEN);
	return g;
}

/* A new list; the contexts of its fmr, in all that will need them. */
static void foresee(struct kunit *test, struct rig *g, u32 number)
{
	KDT_OK(test, kdat_lmr_next_contexts(g->mem->lmr, &g->mem->lctx, &g->mem->rctx));
	g->bound = kdt_seg(g->mem, 0, LEN);
	*(struct kdt_offer *)g->ctrl->p = (struct kdt_offer) {
		(uintptr_t)g->mem->p + g->mem->shift, LEN, g->mem->rctx, number,
	};
	g->n = 0;
}

/* One more request, with the cookie of its place in the list. */
static struct kdat_request *add(struct rig *g, enum kdat_request_op op, int flags)
{
	struct kdat_request *r = &g->reqs[g->n++];

	*r = (struct kdat_request) {
		.op = op, .completion_flags = flags, .user_cookie = kdt_cookie(g->n),
	};
	if (op == KDAT_REQUEST_LMR_FMR || op == KDAT_REQUEST_LMR_INVALIDATE)
		r->lmr_handle = g->mem->lmr;
	if (op == KDAT_REQUEST_LMR_FMR) {
		r->sg = &g->sg;
		r->mem_privileges = KDT_RIGHTS;
		r->va_type = DAT_VA_TYPE_VA;
	}
	return r;
}

static struct kdat_request *add_dto(struct rig *g, enum kdat_request_op op, DAT_LMR_TRIPLET *iov,
				    int flags)
{
	struct kdat_request *r = add(g, op, flags);

	r->num_segments = 1;
	r->local_iov = iov;
	r->remote_iov = iov == &g->message ? NULL : &g->remote;
	return r;
}

static bool soft_message(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct rig *g = evd->priv;
	DAT_COUNT failed;

	g->softirq = in_serving_softirq();
	g->ret = kdat_ep_post_list(g->pair->s.h, g->reqs, g->n, &failed);
	complete(&g->posted);
	return true;
}

/* Here, or by an upcall in softirq. */
static void post_list(struct kunit *test, struct rig *g, bool upcall)
{
	struct kdt_ep *c = &g->pair->c, *s = &g->pair->s;
	DAT_COUNT failed;

	if (!upcall) {
		KDT_OK(test, kdat_ep_post_list(s->h, g->reqs, g->n, &failed));
	} else {
		init_completion(&g->posted);
		s->recv->priv = g;
		s->recv->hook = soft_message;
		KDT_OK(test, dat_ep_post_recv(s->h, 0, NULL, kdt_cookie(0), 0));
		KDT_OK(test, dat_ep_post_send(c->h, 0, NULL, kdt_cookie(1), 0));
		KUNIT_ASSERT_NE(test, wait_for_completion_timeout(&g->posted, KDT_WAIT), 0);
		KDT_OK(test, g->ret);
		KUNIT_EXPECT_TRUE(test, g->softirq);
		kdt_sent(test, c, 1, DAT_DTO_SEND, 0);
		s->recv->hook = NULL;
	}
	memset(g->reqs, 0xa5, sizeof(g->reqs));
}

/* Bind, write out of the region, send its key; the peer reads and writes through it. */
static void bind_write_send(struct kunit *test)
{
	struct rig *g = rig_new(test);
	struct kdt_ep *c = &g->pair->c, *s = &g->pair->s;
	const struct kdt_offer *offer = (struct kdt_offer *)g->got->p;
	struct kdt_buf *mine = kdt_buf_new(test, c->ia, LEN), theirs = *g->mem;
	int i, rounds = kdt_rounds / 2;
	DAT_LMR_PARAM param = {};
	DAT_LMR_CONTEXT last = 0;

	for (i = 0; i < rounds; i++) {
		int silent = i % 2 ? KDT_SUPPRESS : 0;

		kdt_row(test, "round %d", i);
		foresee(test, g, i);
		KUNIT_EXPECT_NE(test, g->mem->lctx, last);
		last = g->mem->lctx;
		kdt_fill(g->mem->p, LEN, i);
		memset(g->there->p, 0, LEN);
		KDT_OK(test, kdt_recv(c, g->got, 0, g->got->len, i));
		add(g, KDAT_REQUEST_LMR_FMR, silent);
		add_dto(g, KDAT_REQUEST_RDMA_WRITE, &g->bound, silent);
		add_dto(g, KDAT_REQUEST_SEND, &g->message, silent);
		post_list(test, g, i % 3 == 0);
		if (!silent) {
			kdt_sent(test, s, 1, DAT_DTO_LMR_FMR, 0);
			kdt_sent(test, s, 2, DAT_DTO_RDMA_WRITE, LEN);
			kdt_sent(test, s, 3, DAT_DTO_SEND, sizeof(*offer));
		}
		kdt_came(test, c, i, sizeof(*offer));
		KUNIT_ASSERT_EQ(test, offer->number, i);
		/* the Write came before the message */
		KUNIT_ASSERT_TRUE_MSG(test, kdt_same(g->there->p, LEN, i), "round %d", i);
		KDT_OK(test, dat_lmr_query(g->mem->lmr, DAT_LMR_FIELD_ALL, &param));
		KUNIT_EXPECT_EQ(test, param.lmr_context, g->mem->lctx);
		KUNIT_EXPECT_EQ(test, param.rmr_context, g->mem->rctx);
		KUNIT_EXPECT_EQ(test, param.registered_address, offer->va);
		/* through the key the message brought */
		theirs.shift = offer->va - (uintptr_t)theirs.p;
		theirs.rctx = offer->rctx;
		kdt_fetch(test, c, mine, 0, LEN, &theirs, 0);
		KUNIT_ASSERT_TRUE(test, kdt_same(mine->p, LEN, i));
		kdt_fill(mine->p, LEN, 1000 + i);
		kdt_put(test, c, mine, 0, LEN, &theirs, 0);
		kdt_settle(test, g->pair);
		KUNIT_ASSERT_TRUE(test, kdt_same(g->mem->p, LEN, 1000 + i));
		/* free before the next list */
		kdt_inv_done(test, s, g->mem);
		KUNIT_EXPECT_TRUE(test, kdt_guarded(g->mem));
		if (i % 40 == 0)
			kdt_key_dead(test, g->mem);
	}
	kdt_mem_done(test, g->pair);
}

/* A command and its end in one call each, and the last of one with the first of the next. */
static void every_kind(struct kunit *test)
{
	struct rig *g = rig_new(test);
	struct kdt_ep *c = &g->pair->c, *s = &g->pair->s;
	struct kdt_buf *theirs = kdt_fmr_new(test, c->ia, 1, DAT_LMR_SCOPE_PZ);
	u32 len = g->message.segment_length;
	DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;
	int i;

	for (i = 0; i < 20; i++) {
		kdt_row(test, "round %d", i);
		kdt_fmr_done(test, c, theirs, KDT_RIGHTS);
		foresee(test, g, i);
		kdt_fill(g->there->p, LEN, i);
		memset(g->data->p, 0, LEN);
		memset(g->mem->p, 0, LEN);
		KDT_OK(test, kdt_recv(c, g->got, 0, len, 100));
		KDT_OK(test, kdt_recv(c, g->got, 0, len, 101));
		add(g, KDAT_REQUEST_LMR_FMR, 0);
		add_dto(g, KDAT_REQUEST_RDMA_READ, &g->bound, 0);
		add_dto(g, KDAT_REQUEST_RDMA_READ, &g->fixed, KDT_SUPPRESS);
		add_dto(g, KDAT_REQUEST_SEND, &g->message, 0);
		add_dto(g, KDAT_REQUEST_SEND_INVALIDATE, &g->message, 0)->rmr_context =
			theirs->rctx;
		add(g, KDAT_REQUEST_LMR_INVALIDATE, KDT_INV_FENCE);
		post_list(test, g, false);
		kdt_sent(test, s, 1, DAT_DTO_LMR_FMR, 0);
		kdt_sent(test, s, 2, DAT_DTO_RDMA_READ, LEN);
		kdt_sent(test, s, 4, DAT_DTO_SEND, len);
		kdt_sent(test, s, 5, DAT_DTO_SEND, len);
		kdt_sent(test, s, 6, DAT_DTO_LMR_INVALIDATE, 0);
		KUNIT_EXPECT_FALSE(test, kdt_bound(test, g->mem->lmr));
		KUNIT_EXPECT_TRUE(test, kdt_same(g->mem->p, LEN, i));
		KUNIT_EXPECT_TRUE(test, kdt_same(g->data->p, LEN, i));
		kdt_came(test, c, 100, len);
		KUNIT_ASSERT_TRUE(test, kdt_get(c->recv, &event));
		dto = &event.event_data.dto_completion_event_data;
		KUNIT_EXPECT_EQ(test, (int)dto->operation, DAT_DTO_RECEIVE_WITH_INVALIDATE);
		KUNIT_EXPECT_EQ(test, dto->rmr_context, theirs->rctx);
		KUNIT_EXPECT_FALSE(test, kdt_bound(test, theirs->lmr));
	}
	kdt_mem_done(test, g->pair);
}

static struct kunit_case cases[] = {
	KD_CASE(bind_write_send,
		"FMR-02,FMR-04..05,CTX-01..02: bind, write and send in one call, in upcalls too"),
	KD_CASE(every_kind, "FMR-02,FMR-11,SINV-01,RECV-12: every kind of request in one call"),
	{}
};

struct kunit_suite kdt_list_suite = { .name = "kdtest-list", KDT_CASES };
