// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * kdat_ep_post_list(): what a storage protocol does for one command, in one call:
 * bind memory, tell the peer of it, move data. The keys are known beforehand.
 */
#include <linux/interrupt.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/sizes.h>
#include <linux/slab.h>

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
};

/* Where the next fmr of this list will start: what the call says when it is made alone. */
static u64 first_address(struct kunit *test, struct rig *g)
{
	DAT_LMR_CONTEXT lctx;
	DAT_RMR_CONTEXT rctx;
	DAT_VADDR addr = 1;

	KDT_OK(test, kdat_lmr_fmr_sg(g->mem->lmr, &g->sg, KDT_RIGHTS, DAT_VA_TYPE_VA,
				     g->pair->s.h, kdt_cookie(1), 0, &lctx, &rctx, &addr));
	kdt_sent(test, &g->pair->s, 1, DAT_DTO_LMR_FMR, 0);
	kdt_inv_done(test, &g->pair->s, g->mem);
	return addr;
}

static struct rig *rig_new(struct kunit *test, const DAT_EP_ATTR *attr)
{
	struct rig *g = kdt_zalloc(test, sizeof(*g));
	struct kdt_env *env = kdt_env(test);
	int i;

	g->pair = kdt_mem_pair(test, attr);
	g->mem = kdt_fmr_new(test, &env->b, PAGES, DAT_LMR_SCOPE_PZ);
	g->ctrl = kdt_buf_new(test, &env->b, sizeof(struct kdt_offer));
	g->got = kdt_buf_new(test, &env->a, sizeof(struct kdt_offer));
	g->there = kdt_buf_new(test, &env->a, LEN);
	g->data = kdt_buf_new(test, &env->b, LEN);
	sg_init_table(g->sgl, PAGES);
	for (i = 0; i < PAGES; i++)
		sg_set_page(&g->sgl[i], vmalloc_to_page(g->mem->p + i * PAGE_SIZE), PAGE_SIZE, 0);
	g->sg = (struct kdat_sg) { .sgl = g->sgl, .nents = PAGES, .length = LEN };
	g->mem->shift = first_address(test, g) - (uintptr_t)g->mem->p;
	g->remote = kdt_rseg(g->there, 0, LEN);
	g->message = kdt_seg(g->ctrl, 0, sizeof(struct kdt_offer));
	g->fixed = kdt_seg(g->data, 0, LEN);
	return g;
}

/* The contexts of the next fmr, in all that will need them. */
static void foresee(struct kunit *test, struct rig *g, u32 number)
{
	struct kdt_offer *offer = (struct kdt_offer *)g->ctrl->p;

	KDT_OK(test, kdat_lmr_next_contexts(g->mem->lmr, &g->mem->lctx, &g->mem->rctx));
	g->bound = kdt_seg(g->mem, 0, LEN);
	*offer = (struct kdt_offer) {
		.va = (uintptr_t)g->mem->p + g->mem->shift,
		.len = LEN,
		.rctx = g->mem->rctx,
		.number = number,
	};
}

static struct kdat_request req_fmr(struct rig *g, u64 cookie, int flags)
{
	return (struct kdat_request) {
		.op = KDAT_REQUEST_LMR_FMR,
		.completion_flags = flags,
		.user_cookie = kdt_cookie(cookie),
		.lmr_handle = g->mem->lmr,
		.sg = &g->sg,
		.mem_privileges = KDT_RIGHTS,
		.va_type = DAT_VA_TYPE_VA,
	};
}

static struct kdat_request req_inv(struct rig *g, u64 cookie, int flags)
{
	return (struct kdat_request) {
		.op = KDAT_REQUEST_LMR_INVALIDATE,
		.completion_flags = flags,
		.user_cookie = kdt_cookie(cookie),
		.lmr_handle = g->mem->lmr,
	};
}

static struct kdat_request req_dto(enum kdat_request_op op, DAT_LMR_TRIPLET *iov,
				   const DAT_RMR_TRIPLET *remote, u64 cookie, int flags)
{
	return (struct kdat_request) {
		.op = op,
		.completion_flags = flags,
		.user_cookie = kdt_cookie(cookie),
		.num_segments = iov ? 1 : 0,
		.local_iov = iov,
		.remote_iov = remote,
	};
}

/* What was bound by the last list is to be free before the next. */
static void done(struct kunit *test, struct rig *g)
{
	kdt_inv_done(test, &g->pair->s, g->mem);
	KUNIT_EXPECT_TRUE(test, kdt_guarded(g->mem));
}

/* The next of the server's requests has succeeded. */
static void told(struct kunit *test, struct kdt_pair *pair, u64 cookie, DAT_DTOS op, u32 len)
{
	kdt_sent(test, &pair->s, cookie, op, len);
}

/* A list to be posted by the upcall that brings a message, in softirq. */
static struct soft {
	DAT_EP_HANDLE ep;
	struct kdat_request *reqs;
	int n;
	DAT_RETURN ret;
	bool softirq;
	struct completion done;
} soft;

static bool soft_message(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	DAT_COUNT failed;

	soft.softirq = in_serving_softirq();
	soft.ret = kdat_ep_post_list(soft.ep, soft.reqs, soft.n, &failed);
	complete(&soft.done);
	return true;
}

static void post_in_upcall(struct kunit *test, struct kdt_pair *pair, struct kdat_request *reqs,
			   int n)
{
	soft = (struct soft) { .ep = pair->s.h, .reqs = reqs, .n = n };
	init_completion(&soft.done);
	pair->s.recv->hook = soft_message;
	KDT_OK(test, dat_ep_post_recv(pair->s.h, 0, NULL, kdt_cookie(0), 0));
	KDT_OK(test, dat_ep_post_send(pair->c.h, 0, NULL, kdt_cookie(1), 0));
	KUNIT_ASSERT_NE(test, wait_for_completion_timeout(&soft.done, KDT_WAIT), 0);
	KDT_OK(test, soft.ret);
	KUNIT_EXPECT_TRUE(test, soft.softirq);
	kdt_sent(test, &pair->c, 1, DAT_DTO_SEND, 0);
	pair->s.recv->hook = NULL;
}

/* Bind, write out of the region, send its key; the peer reads and writes through it. */
static void bind_write_send(struct kunit *test)
{
	struct rig *g = rig_new(test, NULL);
	struct kdt_pair *pair = g->pair;
	const struct kdt_offer *offer = (struct kdt_offer *)g->got->p;
	struct kdt_buf *mine = kdt_buf_new(test, pair->c.ia, LEN);
	struct kdat_request reqs[3];
	DAT_LMR_CONTEXT last = 0;
	DAT_RMR_TRIPLET remote;
	DAT_LMR_TRIPLET iov = kdt_seg(mine, 0, LEN);
	int i, rounds = kdt_rounds / 2;
	DAT_LMR_PARAM param = {};
	DAT_COUNT failed;

	for (i = 0; i < rounds; i++) {
		int silent = i % 2 ? KDT_SUPPRESS : 0;

		foresee(test, g, i);
		KUNIT_EXPECT_NE(test, g->mem->lctx, last);
		last = g->mem->lctx;
		kdt_fill(g->mem->p, LEN, i);
		memset(g->there->p, 0, LEN);
		KDT_OK(test, kdt_recv(&pair->c, g->got, 0, g->got->len, i));
		reqs[0] = req_fmr(g, 1, silent);
		reqs[1] = req_dto(KDAT_REQUEST_RDMA_WRITE, &g->bound, &g->remote, 2, silent);
		reqs[2] = req_dto(KDAT_REQUEST_SEND, &g->message, NULL, 3, silent);
		failed = 77;
		if (i % 3)
			KDT_OK(test, kdat_ep_post_list(pair->s.h, reqs, 3, &failed));
		else
			post_in_upcall(test, pair, reqs, 3);
		memset(reqs, 0xa5, sizeof(reqs));
		if (!silent) {
			told(test, pair, 1, DAT_DTO_LMR_FMR, 0);
			kdt_sent(test, &pair->s, 2, DAT_DTO_RDMA_WRITE, LEN);
			told(test, pair, 3, DAT_DTO_SEND, g->message.segment_length);
		}
		kdt_came(test, &pair->c, i, sizeof(*offer));
		KUNIT_ASSERT_EQ(test, offer->number, i);
		/* the Write came before the message */
		KUNIT_ASSERT_TRUE_MSG(test, kdt_same(g->there->p, LEN, i), "round %d", i);
		KDT_OK(test, dat_lmr_query(g->mem->lmr, DAT_LMR_FIELD_ALL, &param));
		KUNIT_EXPECT_EQ(test, param.lmr_context, g->mem->lctx);
		KUNIT_EXPECT_EQ(test, param.rmr_context, g->mem->rctx);
		KUNIT_EXPECT_EQ(test, param.registered_address, offer->va);
		/* through the key the message brought */
		remote = (DAT_RMR_TRIPLET) { offer->va, LEN, offer->rctx };
		KDT_OK(test, dat_ep_post_rdma_read(pair->c.h, 1, &iov, kdt_cookie(4), &remote, 0));
		kdt_sent(test, &pair->c, 4, DAT_DTO_RDMA_READ, LEN);
		KUNIT_ASSERT_TRUE(test, kdt_same(mine->p, LEN, i));
		kdt_fill(mine->p, LEN, 1000 + i);
		KDT_OK(test, dat_ep_post_rdma_write(pair->c.h, 1, &iov, kdt_cookie(5), &remote, 0));
		kdt_sent(test, &pair->c, 5, DAT_DTO_RDMA_WRITE, LEN);
		kdt_settle(test, pair);
		KUNIT_ASSERT_TRUE(test, kdt_same(g->mem->p, LEN, 1000 + i));
		done(test, g);
		if (i % 40 == 0)
			kdt_key_dead(test, g->mem);
	}
	kdt_mem_down(test, pair);
	kdt_pair_done(test, pair);
}

/* A command and its end in one call each, and the last of one with the first of the next. */
static void every_kind(struct kunit *test)
{
	struct rig *g = rig_new(test, NULL);
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = g->pair;
	struct kdt_buf *theirs = kdt_fmr_new(test, &env->a, 1, DAT_LMR_SCOPE_PZ);
	struct kdat_request reqs[KDAT_POST_LIST_MAX];
	DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_COUNT failed;
	DAT_EVENT event;
	int i, n;

	for (i = 0; i < 20; i++) {
		kdt_fmr_done(test, &pair->c, theirs, KDT_RIGHTS);
		foresee(test, g, i);
		kdt_fill(g->there->p, LEN, i);
		memset(g->data->p, 0, LEN);
		memset(g->mem->p, 0, LEN);
		KDT_OK(test, kdt_recv(&pair->c, g->got, 0, g->got->len, 100));
		KDT_OK(test, kdt_recv(&pair->c, g->got, 0, g->got->len, 101));
		n = 0;
		reqs[n++] = req_fmr(g, 1, 0);
		reqs[n++] = req_dto(KDAT_REQUEST_RDMA_READ, &g->bound, &g->remote, 2, 0);
		reqs[n++] = req_dto(KDAT_REQUEST_RDMA_READ, &g->fixed, &g->remote, 3,
				    KDT_SUPPRESS);
		reqs[n++] = req_dto(KDAT_REQUEST_SEND, &g->message, NULL, 4, 0);
		reqs[n] = req_dto(KDAT_REQUEST_SEND_INVALIDATE, &g->message, NULL, 5, 0);
		reqs[n++].rmr_context = theirs->rctx;
		reqs[n++] = req_inv(g, 6, KDT_INV_FENCE);
		KDT_OK(test, kdat_ep_post_list(pair->s.h, reqs, n, &failed));
		told(test, pair, 1, DAT_DTO_LMR_FMR, 0);
		told(test, pair, 2, DAT_DTO_RDMA_READ, LEN);
		told(test, pair, 4, DAT_DTO_SEND, g->message.segment_length);
		told(test, pair, 5, DAT_DTO_SEND, g->message.segment_length);
		told(test, pair, 6, DAT_DTO_LMR_INVALIDATE, 0);
		KUNIT_EXPECT_FALSE(test, kdt_bound(test, g->mem->lmr));
		KUNIT_EXPECT_TRUE(test, kdt_same(g->mem->p, LEN, i));
		KUNIT_EXPECT_TRUE(test, kdt_same(g->data->p, LEN, i));
		kdt_came(test, &pair->c, 100, g->message.segment_length);
		KUNIT_ASSERT_TRUE(test, kdt_get(pair->c.recv, &event));
		dto = &event.event_data.dto_completion_event_data;
		KUNIT_EXPECT_EQ(test, (int)dto->operation, DAT_DTO_RECEIVE_WITH_INVALIDATE);
		KUNIT_EXPECT_EQ(test, dto->rmr_context, theirs->rctx);
		KUNIT_EXPECT_FALSE(test, kdt_bound(test, theirs->lmr));
	}
	kdt_mem_done(test, pair);
}

static struct kunit_case cases[] = {
	KD_CASE(bind_write_send,
		"FMR-02,FMR-04..05,CTX-01..02: bind, write and send in one call, in upcalls too"),
	KD_CASE(every_kind, "FMR-02,FMR-11,SINV-01,RECV-12: every kind of request in one call"),
	{}
};

KDT_SUITE(list);
