// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * kdat_ep_post_list(): what a storage protocol does for one command, in one call:
 * bind memory, tell the peer of it, move data. The keys are known beforehand.
 */
#include <linux/interrupt.h>
#include <linux/mm.h>
#include <linux/prandom.h>
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
	kdt_dto(test, g->pair->s.req, &g->pair->s, 1, DAT_DTO_LMR_FMR, DAT_DTO_SUCCESS, 0);
	kdt_inv_done(test, &g->pair->s, g->mem);
	return addr;
}

static struct rig *rig_new(struct kunit *test, const DAT_EP_ATTR *attr)
{
	struct rig *g = kunit_kzalloc(test, sizeof(*g), GFP_KERNEL);
	struct kdt_env *env = kdt_env(test);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, g);
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
		KDT_OK(test, kdat_ep_post_list(pair->s.h, reqs, 3, &failed));
		memset(reqs, 0xa5, sizeof(reqs));
		if (!silent) {
			kdt_dto(test, pair->s.req, &pair->s, 1, DAT_DTO_LMR_FMR, DAT_DTO_SUCCESS,
				0);
			kdt_dto(test, pair->s.req, &pair->s, 2, DAT_DTO_RDMA_WRITE,
				DAT_DTO_SUCCESS, LEN);
			kdt_dto(test, pair->s.req, &pair->s, 3, DAT_DTO_SEND, DAT_DTO_SUCCESS,
				g->message.segment_length);
		}
		kdt_dto(test, pair->c.recv, &pair->c, i, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS,
			sizeof(*offer));
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
		kdt_dto(test, pair->c.req, &pair->c, 4, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, LEN);
		KUNIT_ASSERT_TRUE(test, kdt_same(mine->p, LEN, i));
		kdt_fill(mine->p, LEN, 1000 + i);
		KDT_OK(test, dat_ep_post_rdma_write(pair->c.h, 1, &iov, kdt_cookie(5), &remote, 0));
		kdt_dto(test, pair->c.req, &pair->c, 5, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS, LEN);
		kdt_settle(test, pair);
		KUNIT_ASSERT_TRUE(test, kdt_same(g->mem->p, LEN, 1000 + i));
		done(test, g);
		if (i % 40 == 0)
			kdt_key_dead(test, g->mem);
	}
	kdt_mem_down(test, pair);
	kdt_ep_done(test, &pair->c);
	kdt_ep_done(test, &pair->s);
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
		kdt_dto(test, pair->s.req, &pair->s, 1, DAT_DTO_LMR_FMR, DAT_DTO_SUCCESS, 0);
		kdt_dto(test, pair->s.req, &pair->s, 2, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, LEN);
		kdt_dto(test, pair->s.req, &pair->s, 4, DAT_DTO_SEND, DAT_DTO_SUCCESS,
			g->message.segment_length);
		kdt_dto(test, pair->s.req, &pair->s, 5, DAT_DTO_SEND, DAT_DTO_SUCCESS,
			g->message.segment_length);
		kdt_dto(test, pair->s.req, &pair->s, 6, DAT_DTO_LMR_INVALIDATE, DAT_DTO_SUCCESS,
			0);
		KUNIT_EXPECT_FALSE(test, kdt_bound(test, g->mem->lmr));
		KUNIT_EXPECT_TRUE(test, kdt_same(g->mem->p, LEN, i));
		KUNIT_EXPECT_TRUE(test, kdt_same(g->data->p, LEN, i));
		kdt_dto(test, pair->c.recv, &pair->c, 100, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS,
			g->message.segment_length);
		KUNIT_ASSERT_TRUE(test, kdt_get(pair->c.recv, &event));
		dto = &event.event_data.dto_completion_event_data;
		KUNIT_EXPECT_EQ(test, (int)dto->operation, DAT_DTO_RECEIVE_WITH_INVALIDATE);
		KUNIT_EXPECT_EQ(test, dto->rmr_context, theirs->rctx);
		KUNIT_EXPECT_FALSE(test, kdt_bound(test, theirs->lmr));
	}
	kdt_settle(test, pair);
	kdt_mem_down(test, pair);
	kdt_ep_done(test, &pair->c);
	kdt_ep_done(test, &pair->s);
}

/* A bad one at each place: its own error, its place, and nothing of the others is posted. */
static void all_or_nothing(struct kunit *test)
{
	struct rig *g = rig_new(test, NULL);
	struct kdt_pair *pair = g->pair;
	struct kdat_request reqs[4], good[4];
	struct kdt_buf *dead = kdt_buf_new(test, pair->s.ia, 64);
	DAT_LMR_TRIPLET beyond, gone = kdt_seg(dead, 0, 64);
	DAT_RMR_TRIPLET small;
	DAT_LMR_CONTEXT lctx;
	DAT_RMR_CONTEXT rctx;
	DAT_COUNT failed;
	DAT_RETURN ret, want;
	int place, kind;

	KDT_OK(test, dat_lmr_free(dead->lmr));
	foresee(test, g, 1);
	beyond = g->fixed;
	beyond.segment_length++;
	small = g->remote;
	small.segment_length--;
	for (place = 0; place < 4; place++) {
		for (kind = 0; kind < 8; kind++) {
			struct kdat_request *bad = &reqs[place];

			good[0] = req_fmr(g, 1, 0);
			good[1] = req_dto(KDAT_REQUEST_RDMA_WRITE, &g->bound, &g->remote, 2, 0);
			good[2] = req_dto(KDAT_REQUEST_SEND, &g->message, NULL, 3, 0);
			good[3] = req_inv(g, 4, 0);
			memcpy(reqs, good, sizeof(reqs));
			switch (kind) {
			case 0:
				*bad = req_dto(KDAT_REQUEST_SEND, &gone, NULL, 9, 0);
				want = DAT_PRIVILEGES_VIOLATION;
				break;
			case 1:
				*bad = req_dto(KDAT_REQUEST_RDMA_WRITE, &beyond, &g->remote, 9, 0);
				want = DAT_INVALID_PARAMETER;
				break;
			case 2:
				*bad = req_dto(KDAT_REQUEST_RDMA_WRITE, &g->fixed, &small, 9, 0);
				want = DAT_LENGTH_ERROR;
				break;
			case 3:
				bad->completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
				want = DAT_INVALID_PARAMETER;
				break;
			case 4:
				*bad = req_fmr(g, 9, 0);
				bad->lmr_handle = DAT_HANDLE_NULL;
				want = DAT_INVALID_HANDLE;
				break;
			case 5:
				*bad = req_inv(g, 9, 0);
				bad->lmr_handle = g->data->lmr;
				want = DAT_INVALID_STATE;
				break;
			case 6:
				bad->op = 99;
				want = DAT_INVALID_PARAMETER;
				break;
			default:
				*bad = req_dto(KDAT_REQUEST_RDMA_READ, &g->fixed, NULL, 9, 0);
				want = DAT_INVALID_PARAMETER;
			}
			/* what the others need of the bad one would be refused first */
			if (place == 0) {
				reqs[1] = req_dto(KDAT_REQUEST_RDMA_WRITE, &g->fixed, &g->remote,
						  2, 0);
				reqs[3] = req_dto(KDAT_REQUEST_SEND, &g->message, NULL, 4, 0);
			}
			failed = 77;
			ret = kdat_ep_post_list(pair->s.h, reqs, 4, &failed);
			KUNIT_EXPECT_TRUE_MSG(test, DAT_GET_TYPE(ret) == want,
					      "place %d, kind %d: %s %s", place, kind,
					      kdt_major(ret), kdt_minor(ret));
			KUNIT_EXPECT_EQ_MSG(test, failed, place, "kind %d", kind);
			KUNIT_EXPECT_FALSE(test, kdt_bound(test, g->mem->lmr));
			/* and no key was used up */
			KDT_OK(test, kdat_lmr_next_contexts(g->mem->lmr, &lctx, &rctx));
			KUNIT_EXPECT_EQ(test, lctx, g->mem->lctx);
			KUNIT_EXPECT_EQ(test, rctx, g->mem->rctx);
		}
	}
	/* Not one of them has come; the good ones do. */
	KUNIT_EXPECT_EQ(test, kdt_queued(pair->s.req), 0);
	KDT_OK(test, kdt_recv(&pair->c, g->got, 0, g->got->len, 5));
	KDT_OK(test, kdat_ep_post_list(pair->s.h, good, 4, &failed));
	kdt_dto(test, pair->s.req, &pair->s, 1, DAT_DTO_LMR_FMR, DAT_DTO_SUCCESS, 0);
	kdt_dto(test, pair->s.req, &pair->s, 2, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS, LEN);
	kdt_dto(test, pair->s.req, &pair->s, 3, DAT_DTO_SEND, DAT_DTO_SUCCESS,
		g->message.segment_length);
	kdt_dto(test, pair->s.req, &pair->s, 4, DAT_DTO_LMR_INVALIDATE, DAT_DTO_SUCCESS, 0);
	kdt_dto(test, pair->c.recv, &pair->c, 5, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS,
		g->message.segment_length);
	kdt_settle(test, pair);
	kdt_mem_down(test, pair);
	kdt_ep_done(test, &pair->c);
	kdt_ep_done(test, &pair->s);
}

static void arguments(struct kunit *test)
{
	struct rig *g = rig_new(test, NULL);
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = g->pair;
	struct kdat_request reqs[KDAT_POST_LIST_MAX + 1];
	struct kdt_ep idle;
	DAT_LMR_CONTEXT lctx;
	DAT_RMR_CONTEXT rctx;
	DAT_COUNT failed = 0;
	int i;

	for (i = 0; i <= KDAT_POST_LIST_MAX; i++)
		reqs[i] = req_dto(KDAT_REQUEST_RDMA_WRITE, &g->fixed, &g->remote, i, 0);
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		    kdat_ep_post_list(DAT_HANDLE_NULL, reqs, 1, &failed));
	KDT_TYPE(test, DAT_INVALID_PARAMETER, kdat_ep_post_list(pair->s.h, NULL, 1, &failed));
	KDT_TYPE(test, DAT_INVALID_PARAMETER, kdat_ep_post_list(pair->s.h, reqs, -1, &failed));
	KDT_TYPE(test, DAT_INVALID_PARAMETER, kdat_ep_post_list(pair->s.h, reqs, 0, &failed));
	KDT_TYPE(test, DAT_INVALID_PARAMETER,
		 kdat_ep_post_list(pair->s.h, reqs, KDAT_POST_LIST_MAX + 1, &failed));
	kdt_ep_new(test, &idle, &env->b, NULL);
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONNECTED,
		    kdat_ep_post_list(idle.h, reqs, 2, &failed));
	/* as many as there may be */
	KDT_OK(test, kdat_ep_post_list(pair->s.h, reqs, KDAT_POST_LIST_MAX, &failed));
	for (i = 0; i < KDAT_POST_LIST_MAX; i++)
		kdt_dto(test, pair->s.req, &pair->s, i, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS, LEN);
	/* and one, and nobody asks which has failed */
	KDT_OK(test, kdat_ep_post_list(pair->s.h, reqs, 1, NULL));
	kdt_dto(test, pair->s.req, &pair->s, 0, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS, LEN);
	reqs[1].op = -1;
	KDT_TYPE(test, DAT_INVALID_PARAMETER, kdat_ep_post_list(pair->s.h, reqs, 2, NULL));

	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR,
		    kdat_lmr_next_contexts(DAT_HANDLE_NULL, &lctx, &rctx));
	KUNIT_EXPECT_NE(test, kdat_lmr_next_contexts(g->data->lmr, &lctx, &rctx), DAT_SUCCESS);
	kdt_settle(test, pair);
	kdt_mem_down(test, pair);
	kdt_ep_done(test, &pair->s);
}

/* After the end each is flushed, in order; nothing is bound. */
static void disconnected(struct kunit *test)
{
	struct rig *g = rig_new(test, NULL);
	struct kdt_pair *pair = g->pair;
	struct kdat_request reqs[4];
	DAT_COUNT failed;

	foresee(test, g, 1);
	kdt_mem_down(test, pair);
	reqs[0] = req_fmr(g, 1, KDT_SUPPRESS);
	reqs[1] = req_dto(KDAT_REQUEST_RDMA_WRITE, &g->fixed, &g->remote, 2, KDT_SUPPRESS);
	reqs[2] = req_dto(KDAT_REQUEST_SEND, &g->message, NULL, 3, 0);
	KDT_OK(test, kdat_ep_post_list(pair->s.h, reqs, 3, &failed));
	kdt_dto(test, pair->s.req, &pair->s, 1, DAT_DTO_LMR_FMR, DAT_DTO_ERR_FLUSHED, 0);
	kdt_dto(test, pair->s.req, &pair->s, 2, DAT_DTO_RDMA_WRITE, DAT_DTO_ERR_FLUSHED, 0);
	kdt_dto(test, pair->s.req, &pair->s, 3, DAT_DTO_SEND, DAT_DTO_ERR_FLUSHED, 0);
	KUNIT_EXPECT_FALSE(test, kdt_bound(test, g->mem->lmr));
	kdt_ep_done(test, &pair->s);
}

/* More than there is room for: none of them, with the place of the first too many. */
static void queue_full(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_buf *there = kdt_buf_new(test, &env->a, KDT_SIZE);
	struct kdt_buf *from = kdt_buf_new(test, &env->b, KDT_SIZE);
	struct kdat_request reqs[KDAT_POST_LIST_MAX];
	int i, k, n, full = 0;
	DAT_DTO_COMPLETION_STATUS status;
	DAT_COUNT failed;
	DAT_EP_ATTR attr;
	unsigned long irq;
	DAT_RETURN ret, list;
	struct rig *g;
	u64 cookie;

	if (!kdt_fence)
		kunit_skip(test, "a Write without a fence does not keep the queue full");
	kdt_attr(env, &attr);
	attr.max_request_dtos = 12;
	g = rig_new(test, &attr);
	for (i = 0; i < 20 && full < 3; i++) {
		foresee(test, g, i);
		reqs[0] = req_fmr(g, 100, 0);
		for (k = 1; k < KDAT_POST_LIST_MAX; k++)
			reqs[k] = req_dto(KDAT_REQUEST_RDMA_WRITE, &g->bound, &g->remote,
					  100 + k, 0);
		failed = 77;
		local_irq_save(irq);
		ret = kdt_read(&g->pair->s, from, 0, KDT_SIZE, there, 0, 0, 0);
		for (n = 1; ret == DAT_SUCCESS && n < 8; n++)
			ret = kdt_write(&g->pair->s, from, 0, 8, there, 0, n,
					DAT_COMPLETION_BARRIER_FENCE_FLAG);
		list = kdat_ep_post_list(g->pair->s.h, reqs, KDAT_POST_LIST_MAX, &failed);
		local_irq_restore(irq);
		KDT_OK(test, ret);
		for (k = 0; k < n; k++) {
			status = kdt_any_dto(test, g->pair->s.req, &cookie);
			KUNIT_EXPECT_EQ(test, (int)status, DAT_DTO_SUCCESS);
			KUNIT_EXPECT_EQ(test, cookie, k);
		}
		if (list != DAT_SUCCESS) {
			KUNIT_EXPECT_EQ(test, DAT_GET_TYPE(list), (u32)DAT_INSUFFICIENT_RESOURCES);
			KUNIT_EXPECT_LT(test, failed, KDAT_POST_LIST_MAX);
			KUNIT_EXPECT_FALSE(test, kdt_bound(test, g->mem->lmr));
			full++;
			/* now there is room, and it is still good */
			KDT_OK(test, kdat_ep_post_list(g->pair->s.h, reqs, KDAT_POST_LIST_MAX,
						       &failed));
		}
		for (k = 0; k < KDAT_POST_LIST_MAX; k++) {
			status = kdt_any_dto(test, g->pair->s.req, &cookie);
			KUNIT_EXPECT_EQ(test, (int)status, DAT_DTO_SUCCESS);
			KUNIT_EXPECT_EQ(test, cookie, 100 + k);
		}
		done(test, g);
	}
	KUNIT_EXPECT_GT_MSG(test, full, 0, "the queue was never full");
	kdt_settle(test, g->pair);
	kdt_pair_down(test, g->pair);
}

/* With interrupts off, and from an upcall. */
static struct rig *soft_rig;
static struct kdat_request soft_reqs[3];
static struct completion soft_done;
static DAT_RETURN soft_ret;
static bool soft_was;

static bool soft_message(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	DAT_COUNT failed;

	if (event->event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS)
		return true;
	soft_was = in_serving_softirq();
	soft_ret = kdat_ep_post_list(soft_rig->pair->s.h, soft_reqs, 3, &failed);
	complete(&soft_done);
	return true;
}

static void from_softirq(struct kunit *test)
{
	struct rig *g = rig_new(test, NULL);
	struct kdt_pair *pair = g->pair;
	const struct kdt_offer *offer = (struct kdt_offer *)g->got->p;
	DAT_RMR_TRIPLET remote;
	DAT_LMR_TRIPLET iov;
	int i;

	soft_rig = g;
	init_completion(&soft_done);
	pair->s.recv->hook = soft_message;
	for (i = 0; i < 20; i++) {
		foresee(test, g, i);
		soft_reqs[0] = req_fmr(g, 1, KDT_SUPPRESS);
		soft_reqs[1] = req_dto(KDAT_REQUEST_RDMA_WRITE, &g->bound, &g->remote, 2,
				       KDT_SUPPRESS);
		soft_reqs[2] = req_dto(KDAT_REQUEST_SEND, &g->message, NULL, 3, 0);
		kdt_fill(g->mem->p, LEN, i);
		KDT_OK(test, kdt_recv(&pair->c, g->got, 0, g->got->len, i));
		KDT_OK(test, dat_ep_post_recv(pair->s.h, 0, NULL, kdt_cookie(0), 0));
		KDT_OK(test, dat_ep_post_send(pair->c.h, 0, NULL, kdt_cookie(1), 0));
		KUNIT_ASSERT_NE(test, wait_for_completion_timeout(&soft_done, KDT_WAIT), 0);
		KDT_OK(test, soft_ret);
		KUNIT_EXPECT_TRUE(test, soft_was);
		kdt_dto(test, pair->c.req, &pair->c, 1, DAT_DTO_SEND, DAT_DTO_SUCCESS, 0);
		kdt_dto(test, pair->c.recv, &pair->c, i, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS,
			sizeof(*offer));
		KUNIT_EXPECT_TRUE(test, kdt_same(g->there->p, LEN, i));
		kdt_dto(test, pair->s.req, &pair->s, 3, DAT_DTO_SEND, DAT_DTO_SUCCESS,
			g->message.segment_length);
		remote = (DAT_RMR_TRIPLET) { offer->va, LEN, offer->rctx };
		iov = kdt_seg(g->there, 0, LEN);
		KDT_OK(test, dat_ep_post_rdma_read(pair->c.h, 1, &iov, kdt_cookie(4), &remote, 0));
		kdt_dto(test, pair->c.req, &pair->c, 4, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, LEN);
		done(test, g);
	}
	pair->s.recv->hook = NULL;
	kdt_settle(test, pair);
}

static struct kunit_case cases[] = {
	KD_CASE(bind_write_send, "FMR-02,FMR-04,FMR-05: bind, write and send in one call"),
	KD_CASE(every_kind, "FMR-02,FMR-11,SINV-01: every kind of request in one call"),
	KD_CASE(all_or_nothing, "GEN-07,FMR-06: a bad request at each place, nothing is posted"),
	KD_CASE(arguments, "GEN-09,EP-POST-10: refused lists, the longest, the shortest"),
	KD_CASE(disconnected, "FMR-07,EP-POST-11: a list in DISCONNECTED"),
	KD_CASE(queue_full, "EP-POST-17,GEN-07: a list longer than the room there is"),
	KD_CASE(from_softirq, "CTX-01,CTX-02: a list from an upcall"),
	{}
};

struct kunit_suite kdt_list_suite = {
	.name = "kdtest-list",
	.init = kdt_init,
	.exit = kdt_exit,
	.test_cases = cases,
};
