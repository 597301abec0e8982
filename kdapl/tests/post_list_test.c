// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * kdat_ep_post_list(): one call of the device for a chain of requests, and a list
 * that is refused at any place has done nothing.
 */
#include <linux/mm.h>
#include <linux/random.h>

#include "kd_mem.h"

#define PL_MAX		KDAT_POST_LIST_MAX

/**
 * struct pl - a list that a storage protocol posts, and what it is made of
 * @req: the list
 * @n: how many
 * @iov: segments
 * @remote: remote ranges
 * @sg: pieces of memory
 * @sgl: their lists
 * @keys: keys that the LMRs will have
 */
struct pl {
	struct kdat_request req[PL_MAX + 2];
	int n;
	DAT_LMR_TRIPLET iov[PL_MAX + 2];
	DAT_RMR_TRIPLET remote[PL_MAX + 2];
	struct kdat_sg sg[PL_MAX + 2];
	struct scatterlist sgl[PL_MAX + 2];
	struct km_keys keys;
};

static struct kdat_request *pl_add(struct pl *pl, enum kdat_request_op op, int flags)
{
	struct kdat_request *req = &pl->req[pl->n];

	*req = (struct kdat_request) {
		.op = op,
		.completion_flags = flags,
		.user_cookie.as_64 = 100 + pl->n,
	};
	pl->n++;
	return req;
}

static void pl_transfer(struct pl *pl, enum kdat_request_op op, u64 addr, u32 length, u32 key,
			int flags)
{
	int i = pl->n;
	struct kdat_request *req = pl_add(pl, op, flags);

	pl->iov[i] = (DAT_LMR_TRIPLET) { addr, length, key };
	pl->remote[i] = kd_remote(0x1000 + i, length, 0x4711);
	req->num_segments = 1;
	req->local_iov = &pl->iov[i];
	req->remote_iov = &pl->remote[i];
	req->rmr_context = 0x800 + i;
}

static void pl_fmr(struct pl *pl, struct km *km, DAT_LMR_HANDLE lmr, int page, int flags)
{
	int i = pl->n;
	struct kdat_request *req = pl_add(pl, KDAT_REQUEST_LMR_FMR, flags);

	sg_init_table(&pl->sgl[i], 1);
	sg_set_page(&pl->sgl[i], km->page[page], PAGE_SIZE, 0);
	pl->sg[i] = (struct kdat_sg) { .sgl = &pl->sgl[i], .nents = 1, .length = PAGE_SIZE };
	req->lmr_handle = lmr;
	req->sg = &pl->sg[i];
	req->mem_privileges = DAT_MEM_PRIV_ALL_FLAG;
	req->va_type = DAT_VA_TYPE_VA;
	KD_EXPECT_OK(km->env.test, kdat_lmr_next_contexts(lmr, &pl->keys.lmr, &pl->keys.rmr));
}

static void pl_inv(struct pl *pl, DAT_LMR_HANDLE lmr, int flags)
{
	pl_add(pl, KDAT_REQUEST_LMR_INVALIDATE, flags)->lmr_handle = lmr;
}

static struct pl *pl_new(struct kunit *test)
{
	struct pl *pl = kunit_kzalloc(test, sizeof(*pl), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, pl);
	return pl;
}

/* Post, with interrupts off; the list is scribbled over afterwards. */
static DAT_RETURN pl_post(struct km *km, struct pl *pl, DAT_COUNT *failed)
{
	unsigned long irq;
	DAT_RETURN ret;

	*failed = -7;
	local_irq_save(irq);
	ret = kdat_ep_post_list(km->env.ep, pl->req, pl->n, failed);
	local_irq_restore(irq);
	return ret;
}

static void pl_chain_test(struct kunit *test)
{
	static const enum ib_wr_opcode opcodes[] = {
		IB_WR_REG_MR, IB_WR_RDMA_WRITE, IB_WR_RDMA_READ, IB_WR_SEND,
		IB_WR_SEND_WITH_INV, IB_WR_LOCAL_INV,
	};
	static const DAT_DTOS ops[] = {
		DAT_DTO_LMR_FMR, DAT_DTO_RDMA_WRITE, DAT_DTO_RDMA_READ, DAT_DTO_SEND,
		DAT_DTO_SEND, DAT_DTO_LMR_INVALIDATE,
	};
	struct km *km = km_connected(test, NULL);
	DAT_LMR_HANDLE lmr = km_lmr(km, 2, DAT_LMR_SCOPE_PZ);
	struct pl *pl = pl_new(test);
	unsigned int calls, posted;
	struct fake_ib_wr wr;
	DAT_COUNT failed;
	u32 key;
	int i;

	pl_fmr(pl, km, lmr, 0, 0);
	key = pl->keys.lmr;
	pl_transfer(pl, KDAT_REQUEST_RDMA_WRITE, km->pa[0], 10, key, 0);
	pl_transfer(pl, KDAT_REQUEST_RDMA_READ, km->pa[0] + 10, 10, key, 0);
	pl_transfer(pl, KDAT_REQUEST_SEND, km->pa[0] + 20, 10, key,
		    DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	pl_transfer(pl, KDAT_REQUEST_SEND_INVALIDATE, km->pa[0] + 30, 10, key, 0);
	pl_inv(pl, lmr, DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG);
	calls = fake_ib_count(km->env.dev, FAKE_IB_POST_SEND);
	posted = fake_ib_posted(km->env.qp, false);
	KD_ASSERT_OK(test, pl_post(km, pl, &failed));
	memset(pl->iov, 0xee, sizeof(pl->iov));
	memset(pl->remote, 0xee, sizeof(pl->remote));
	KUNIT_EXPECT_EQ(test, fake_ib_count(km->env.dev, FAKE_IB_POST_SEND), calls + 1);
	KUNIT_ASSERT_EQ(test, fake_ib_posted(km->env.qp, false), posted + 6);
	for (i = 0; i < 6; i++) {
		KUNIT_ASSERT_TRUE(test, fake_ib_wr(km->env.qp, false, posted + i, &wr));
		KUNIT_EXPECT_EQ(test, wr.pos, (unsigned int)i);
		KUNIT_EXPECT_EQ(test, (int)wr.opcode, (int)opcodes[i]);
		KUNIT_EXPECT_TRUE(test, wr.send_flags & IB_SEND_SIGNALED);
		KUNIT_EXPECT_EQ(test, !!(wr.send_flags & IB_SEND_FENCE), i == 5);
		KUNIT_EXPECT_EQ(test, !!(wr.send_flags & IB_SEND_SOLICITED), i == 3);
		if (i == 0 || i == 5) {
			KUNIT_EXPECT_EQ(test, wr.rkey, key);
			continue;
		}
		KUNIT_ASSERT_EQ(test, wr.num_sge, 1);
		KUNIT_EXPECT_EQ(test, wr.sge[0].addr, (u64)km->pa[0] + 10 * (i - 1));
		KUNIT_EXPECT_EQ(test, wr.sge[0].lkey, key);
		if (i < 3) {
			KUNIT_EXPECT_EQ(test, wr.remote_addr, 0x1000ULL + i);
			KUNIT_EXPECT_EQ(test, wr.rkey, 0x4711U);
		}
		if (i == 4)
			KUNIT_EXPECT_EQ(test, wr.rkey, 0x804U);
	}
	KUNIT_EXPECT_EQ(test, fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS), 6);
	for (i = 0; i < 6; i++)
		km_expect(km, ops[i], 100 + i, DAT_DTO_SUCCESS);
	KD_EXPECT_EMPTY(test, km->env.req);
	KUNIT_EXPECT_FALSE(test, km_bound(km, lmr));
}

static void pl_sizes_test(struct kunit *test)
{
	static const struct {
		bool list;
		int n;
		u32 subtype;
	} rows[] = {
		{ true, 0, DAT_INVALID_ARG3 }, { true, -1, DAT_INVALID_ARG3 },
		{ true, PL_MAX + 1, DAT_INVALID_ARG3 }, { false, 1, DAT_INVALID_ARG2 },
	};
	struct km *km = km_connected(test, NULL);
	struct kd_env *env = &km->env;
	struct kd_mem *mem = &env->mem[KD_RW];
	struct pl *pl = pl_new(test);
	struct km_trace before;
	struct km_keys keys;
	DAT_COUNT failed;
	int n, i;

	for (n = 1; n <= PL_MAX; n++) {
		pl->n = 0;
		for (i = 0; i < n; i++)
			pl_transfer(pl, KDAT_REQUEST_SEND, mem->addr + i, 1, mem->lmr_context, 0);
		KD_ASSERT_OK(test, pl_post(km, pl, &failed));
		KUNIT_EXPECT_EQ(test, fake_ib_complete_all(env->qp, false, IB_WC_SUCCESS), n);
		kd_expect_dtos(test, env->req, 100, n, DAT_DTO_SUCCESS);
	}
	km_trace(km, &before);
	pl->req[PL_MAX].op = KDAT_REQUEST_LMR_INVALIDATE + 1;
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		failed = 7;
		KD_EXPECT_RET(test, kdat_ep_post_list(env->ep, rows[i].list ? pl->req : NULL,
						      rows[i].n, &failed),
			      DAT_INVALID_PARAMETER, rows[i].subtype);
		KUNIT_EXPECT_EQ(test, failed, 0);
	}
	KM_EXPECT_TYPE(test, kdat_ep_post_list(env->ep, &pl->req[PL_MAX], 1, NULL),
		       DAT_INVALID_PARAMETER);
	KUNIT_EXPECT_NE(test, (u32)kdat_lmr_next_contexts(mem->lmr, &keys.lmr, &keys.rmr),
			(u32)DAT_SUCCESS);
	km_untouched(km, &before, "arguments");
	/* a list that does not fit is not posted in part */
	pl->n = 0;
	for (i = 0; i < 4; i++)
		pl_transfer(pl, KDAT_REQUEST_SEND, mem->addr + i, 1, mem->lmr_context, 0);
	KD_ASSERT_OK(test, pl_post(km, pl, &failed));
	pl_transfer(pl, KDAT_REQUEST_SEND, mem->addr + i, 1, mem->lmr_context, 0);
	km_trace(km, &before);
	KM_EXPECT_TYPE(test, pl_post(km, pl, &failed), DAT_INSUFFICIENT_RESOURCES);
	KUNIT_EXPECT_EQ(test, failed, 0);
	km_untouched(km, &before, "a list that does not fit");
	pl->n = 4;
	KD_ASSERT_OK(test, pl_post(km, pl, &failed));
}

enum pl_fault {
	PL_COUNT, PL_NO_IOV, PL_FLAGS, PL_KEY, PL_PZ, PL_RANGE, PL_LMR, PL_BUSY, PL_UNBOUND, PL_OP,
	PL_LENGTH, PL_NO_REMOTE, PL_FAULTS
};

static const u32 pl_want[PL_FAULTS] = {
	DAT_INVALID_PARAMETER, DAT_INVALID_PARAMETER, DAT_INVALID_PARAMETER,
	DAT_PRIVILEGES_VIOLATION, DAT_PROTECTION_VIOLATION, DAT_INVALID_PARAMETER,
	DAT_INVALID_HANDLE, DAT_INVALID_STATE, DAT_INVALID_STATE, DAT_INVALID_PARAMETER,
	DAT_LENGTH_ERROR, DAT_INVALID_PARAMETER,
};

/* One thing wrong with one request. */
static void pl_spoil(struct km *km, struct pl *pl, int at, enum pl_fault fault, DAT_LMR_HANDLE lmr)
{
	struct kdat_request *req = &pl->req[at];
	struct kd_mem *mem = &km->env.mem[KD_RW];

	pl->iov[at] = (DAT_LMR_TRIPLET) { mem->addr, 8, mem->lmr_context };
	pl->remote[at] = kd_remote(0, fault == PL_LENGTH ? 7 : 8, 1);
	*req = (struct kdat_request) {
		.op = KDAT_REQUEST_RDMA_WRITE,
		.num_segments = fault == PL_COUNT ? 5 : 1,
		.local_iov = fault == PL_NO_IOV ? NULL : &pl->iov[at],
		.remote_iov = fault == PL_NO_REMOTE ? NULL : &pl->remote[at],
		.completion_flags = fault == PL_FLAGS ? DAT_COMPLETION_SOLICITED_WAIT_FLAG : 0,
	};
	if (fault == PL_KEY)
		pl->iov[at].lmr_context ^= 1;
	if (fault == PL_PZ)
		pl->iov[at] = kd_seg(&km->env, KD_FOREIGN, 0, 8);
	if (fault == PL_RANGE)
		pl->iov[at].virtual_address = mem->addr + KD_MEM_SIZE - 7;
	if (fault == PL_OP)
		req->op = -1;
	if (fault == PL_LMR || fault == PL_UNBOUND) {
		req->op = KDAT_REQUEST_LMR_INVALIDATE;
		req->lmr_handle = fault == PL_LMR ? (DAT_LMR_HANDLE)km->env.ep : lmr;
	}
	if (fault == PL_BUSY) {		/* bound by the list itself, or by a binding before */
		req->op = KDAT_REQUEST_LMR_FMR;
		req->lmr_handle = km->env.mem[KD_RO].lmr;
		req->sg = &pl->sg[0];
	}
}

/* A list is refused at each of its places: neither LMR is anything else than before. */
static void pl_roll_back_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_LMR_HANDLE a = km_lmr(km, 1, DAT_LMR_SCOPE_PZ), b = km_lmr(km, 1, DAT_LMR_SCOPE_PZ);
	DAT_LMR_HANDLE unbound = km_lmr(km, 1, DAT_LMR_SCOPE_PZ);
	struct pl *pl = pl_new(test);
	struct km_trace before, after;
	struct km_keys old, keys;
	DAT_COUNT failed;
	DAT_RETURN ret;
	int at, fault;

	km_bind(km, b, 5, 1, DAT_MEM_PRIV_ALL_FLAG, &old);
	for (fault = 0; fault < PL_FAULTS; fault++) {
		for (at = 0; at < 5; at++) {
			pl->n = 0;
			pl_fmr(pl, km, a, 0, 0);
			pl_transfer(pl, KDAT_REQUEST_RDMA_WRITE, km->pa[0], 8, pl->keys.lmr, 0);
			pl_inv(pl, b, 0);
			pl_inv(pl, a, 0);
			pl_transfer(pl, KDAT_REQUEST_SEND, km->env.mem[KD_RW].addr, 8,
				    km->env.mem[KD_RW].lmr_context, 0);
			pl_spoil(km, pl, at, fault, unbound);
			/* without its fmr nothing that names the key is right either */
			if (at < 3)
				pl->n = at + 1;
			km_trace(km, &before);
			ret = pl_post(km, pl, &failed);
			km_trace(km, &after);
			KUNIT_EXPECT_EQ_MSG(test, (u32)DAT_GET_TYPE(ret), pl_want[fault],
					    "fault %d at %d", fault, at);
			KUNIT_EXPECT_EQ_MSG(test, failed, at, "fault %d at %d", fault, at);
			KUNIT_EXPECT_EQ(test, after.posted, before.posted);
			KUNIT_EXPECT_EQ(test, after.used, before.used);
			KUNIT_EXPECT_FALSE(test, km_bound(km, a));
			KUNIT_EXPECT_TRUE(test, km_bound(km, b));
			KD_EXPECT_OK(test, km_send(km, old.lmr, km->pa[5], 8, 1));
			KM_EXPECT_TYPE(test, km_send(km, pl->keys.lmr, km->pa[0], 8, 1),
				       DAT_PRIVILEGES_VIOLATION);
			km_done(km, IB_WC_SUCCESS);
			km_expect(km, DAT_DTO_SEND, 1, DAT_DTO_SUCCESS);
			KD_EXPECT_EMPTY(test, km->env.req);
		}
	}
	km_unbind(km, b);
	km_bind(km, a, 0, 1, DAT_MEM_PRIV_ALL_FLAG, &keys);
	km_unbind(km, a);
}

static void pl_end_test(struct kunit *test)
{
	struct km *km = km_open(test, NULL);
	DAT_LMR_HANDLE lmr = km_lmr(km, 1, DAT_LMR_SCOPE_PZ);
	struct kd_mem *mem = &km->env.mem[KD_RW];
	struct pl *pl = pl_new(test);
	struct km_trace before, after;
	DAT_COUNT failed;
	int how;

	/* flushed after it was posted; refused by the device; never posted */
	for (how = 0; how < 3; how++) {
		km_ep(km, 0, NULL);
		if (!how) {
			KM_EXPECT_TYPE(test, kdat_ep_post_list(km->env.ep, pl->req, 1, &failed),
				       DAT_INVALID_STATE);
		}
		kd_connect(&km->env);
		pl->n = 0;
		pl_transfer(pl, KDAT_REQUEST_SEND, mem->addr, 1, mem->lmr_context, 0);
		pl_fmr(pl, km, lmr, 0, 0);
		pl_transfer(pl, KDAT_REQUEST_SEND, km->pa[0], 1, pl->keys.lmr, 0);
		pl_transfer(pl, KDAT_REQUEST_RDMA_READ, km->pa[0], 1, pl->keys.lmr, 0);
		pl_inv(pl, lmr, 0);
		pl_transfer(pl, KDAT_REQUEST_RDMA_WRITE, mem->addr, 1, mem->lmr_context,
			    DAT_COMPLETION_SUPPRESS_FLAG);
		if (how == 1)
			fake_ib_fail(km->env.dev, FAKE_IB_POST_SEND, 1, -ENOMEM);
		if (how == 2)
			km_down(km);
		km_trace(km, &before);
		KD_EXPECT_OK(test, pl_post(km, pl, &failed));
		km_trace(km, &after);
		if (how)
			KUNIT_EXPECT_EQ(test, after.posted, before.posted);
		if (!how)
			km_down(km);
		if (how == 1)
			KD_EXPECT_END(&km->env, BROKEN);
		kd_expect_dtos(test, km->env.req, 100, pl->n, DAT_DTO_ERR_FLUSHED);
		KUNIT_EXPECT_FALSE(test, km_bound(km, lmr));
		km_ep_free(km, 0);
	}
}

/*
 * When nothing reaches the device any more, a list is checked for the keys of its own bindings all
 * the same, and one that is refused leaves the next key as it was.
 */
static void pl_flushing_test(struct kunit *test)
{
	static const struct {
		const char *what;
		u32 want;
		int failed;	/* -1: none */
	} rows[] = {
		{ "a key that no entry binds", DAT_PRIVILEGES_VIOLATION, 1 },
		{ "a key before it is bound", DAT_PRIVILEGES_VIOLATION, 0 },
		{ "a key after its end", DAT_PRIVILEGES_VIOLATION, 2 },
		{ "an end after the end", DAT_INVALID_STATE, 2 },
		{ "too many bytes", DAT_LENGTH_ERROR, 1 },
		{ "several segments", DAT_SUCCESS, -1 },
	};
	struct km *km = km_connected(test, NULL);
	DAT_LMR_HANDLE lmr = km_lmr(km, 1, DAT_LMR_SCOPE_PZ);
	DAT_LMR_TRIPLET three[3] = { kd_seg(&km->env, KD_RW, 0, 8) };
	struct pl *pl = pl_new(test);
	struct km_trace before;
	struct km_keys keys;
	DAT_COUNT failed;
	DAT_RETURN ret;
	u32 key = 0;
	int i;

	km_down(km);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		pl->n = 0;
		if (i == 1) {
			KD_ASSERT_OK(test, kdat_lmr_next_contexts(lmr, &keys.lmr, &keys.rmr));
			pl_transfer(pl, KDAT_REQUEST_SEND, km->pa[0], 8, keys.lmr, 0);
		}
		pl_fmr(pl, km, lmr, 0, 0);
		key = pl->keys.lmr;
		switch (i) {
		case 0:
			pl_transfer(pl, KDAT_REQUEST_SEND, km->pa[0], 8, key ^ 1, 0);
			break;
		case 2:
			pl_inv(pl, lmr, 0);
			pl_transfer(pl, KDAT_REQUEST_SEND, km->pa[0], 8, key, 0);
			break;
		case 3:
			pl_inv(pl, lmr, 0);
			pl_inv(pl, lmr, 0);
			break;
		case 4:
			pl_transfer(pl, KDAT_REQUEST_RDMA_WRITE, km->pa[0], 9, key, 0);
			pl->remote[1].segment_length = 8;
			break;
		case 5:
			three[1] = (DAT_LMR_TRIPLET) { km->pa[0], 8, key };
			three[2] = (DAT_LMR_TRIPLET) { 0, 0, 0xbad };
			pl_transfer(pl, KDAT_REQUEST_SEND, 0, 0, 0, 0);
			pl->req[1].num_segments = 3;
			pl->req[1].local_iov = three;
			break;
		}
		km_trace(km, &before);
		ret = pl_post(km, pl, &failed);
		KUNIT_EXPECT_EQ_MSG(test, (u32)DAT_GET_TYPE(ret), rows[i].want, "%s", rows[i].what);
		if (rows[i].failed < 0)
			break;
		KUNIT_EXPECT_EQ_MSG(test, failed, rows[i].failed, "%s", rows[i].what);
		km_untouched(km, &before, rows[i].what);
		KD_EXPECT_OK(test, kdat_lmr_next_contexts(lmr, &keys.lmr, &keys.rmr));
		KUNIT_EXPECT_EQ_MSG(test, keys.lmr, key, "%s", rows[i].what);
		KUNIT_EXPECT_EQ_MSG(test, keys.rmr, key, "%s", rows[i].what);
	}
	kd_expect_dtos(test, km->env.req, 100, pl->n, DAT_DTO_ERR_FLUSHED);
	/* its key has been used, although nothing was bound */
	KD_EXPECT_OK(test, kdat_lmr_next_contexts(lmr, &keys.lmr, &keys.rmr));
	KUNIT_EXPECT_NE(test, keys.lmr, key);
	KM_EXPECT_TYPE(test, km_send(km, key, km->pa[0], 8, 1), DAT_PRIVILEGES_VIOLATION);
	KUNIT_EXPECT_FALSE(test, km_bound(km, lmr));
	km_ep_free(km, 0);
}

static struct kunit_case post_list_cases[] = {
	KD_CASE(pl_chain_test,
		"EP-POST-01,EP-POST-08,FMR-02,SINV-01: every operation, one call of the device"),
	KD_CASE(pl_sizes_test, "EP-POST-17,GEN-07: lists of all lengths, and too long ones"),
	KD_CASE(pl_roll_back_test,
		"GEN-07,FMR-02,FMR-10: a fault at any place, and all is as it was"),
	KD_CASE(pl_end_test, "FLUSH-01,FMR-07,FMR-15: a list that is flushed, at each moment"),
	KD_CASE(pl_flushing_test, "FMR-07,GEN-07: keys of a list that will be flushed"),
	{}
};

KD_SUITE("kdapl-post-list", post_list_cases, km_init, km_exit);
