// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * What the posting calls refuse, with which code, and that a refused post
 * leaves no trace: nothing reaches the device and no queue slot is gone.
 */
#include <linux/delay.h>
#include <linux/limits.h>
#include <linux/random.h>

#include "kd_test.h"
#include "../core/trace.h"

#define POST_KEY	0x12345678	/* some remote key, never looked at here */

/* Positions of parameters, RDMA calls have one more. */
static DAT_RETURN_SUBTYPE post_arg_flags(enum kd_call call)
{
	return call == KD_SEND || call == KD_RECV ? DAT_INVALID_ARG5 : DAT_INVALID_ARG6;
}

/* The bits of section 1 of the requirements, per call. */
static int post_legal_flags(enum kd_call call)
{
	switch (call) {
	case KD_SEND:
		return 0x01 | 0x02 | 0x04 | 0x08;
	case KD_RECV:
		return 0x04;
	default:
		return 0x01 | 0x04 | 0x08;
	}
}

static bool post_is_sink(enum kd_call call)
{
	return call == KD_RECV || call == KD_READ;
}

static u32 post_priv_subtype(enum kd_call call)
{
	return post_is_sink(call) ? DAT_PRIVILEGES_WRITE : DAT_PRIVILEGES_READ;
}

static u32 post_prot_subtype(enum kd_call call)
{
	return post_is_sink(call) ? DAT_PROTECTION_WRITE : DAT_PROTECTION_READ;
}

/* All that a refused post must leave alone. */
struct post_trace {
	unsigned int posted[2];
	unsigned int verbs;
	u32 used[2];
};

static void post_trace_take(struct kd_env *env, struct post_trace *trace)
{
	struct kdapl_conn *conn = kd_conn_of(env);

	trace->posted[0] = fake_ib_posted(env->qp, false);
	trace->posted[1] = fake_ib_posted(env->qp, true);
	trace->verbs = fake_ib_count(env->dev, FAKE_IB_ANY);
	trace->used[0] = kd_wq_used(conn->sq);
	trace->used[1] = kd_wq_used(conn->rq);
}

static void post_trace_check(struct kd_env *env, const struct post_trace *before)
{
	struct post_trace now;

	post_trace_take(env, &now);
	KUNIT_EXPECT_EQ(env->test, now.posted[0], before->posted[0]);
	KUNIT_EXPECT_EQ(env->test, now.posted[1], before->posted[1]);
	KUNIT_EXPECT_EQ(env->test, now.verbs, before->verbs);
	KUNIT_EXPECT_EQ(env->test, now.used[0], before->used[0]);
	KUNIT_EXPECT_EQ(env->test, now.used[1], before->used[1]);
}

static void post_refused(struct kd_env *env, enum kd_call call, int num, DAT_LMR_TRIPLET *iov,
			 const DAT_RMR_TRIPLET *remote, int flags, u32 type, u32 subtype,
			 const char *what)
{
	struct post_trace before;
	DAT_RETURN ret;

	post_trace_take(env, &before);
	ret = kd_post(env->ep, call, num, iov, 1, remote, flags);
	KUNIT_EXPECT_EQ_MSG(env->test, (u32)ret, (u32)DAT_ERROR(type, subtype), "%s: %s",
			    kd_call_names[call], what);
	post_trace_check(env, &before);
}

/* The post is legal: it reaches the device, which is emptied again. */
static void post_accepted(struct kd_env *env, enum kd_call call, int num, DAT_LMR_TRIPLET *iov,
			  const DAT_RMR_TRIPLET *remote, int flags, const char *what)
{
	bool recv = kd_is_recv(call);
	unsigned int posted = fake_ib_posted(env->qp, recv);
	DAT_EVENT event;
	DAT_RETURN ret;

	ret = kd_post(env->ep, call, num, iov, 1, remote, flags);
	KUNIT_EXPECT_EQ_MSG(env->test, (u32)ret, (u32)DAT_SUCCESS, "%s: %s", kd_call_names[call],
			    what);
	KUNIT_EXPECT_EQ(env->test, fake_ib_posted(env->qp, recv), posted + 1);
	fake_ib_complete_all(env->qp, recv, IB_WC_SUCCESS);
	while (kd_next(kd_evd_of(env, call), &event))
		;
}

static enum kd_mem_kind post_good_mem(enum kd_call call)
{
	return post_is_sink(call) ? KD_WO : KD_RO;
}

static void post_handle_test(struct kunit *test)
{
	struct kd_env *env = kd_connected(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	DAT_RMR_TRIPLET remote = kd_remote(0, 8, POST_KEY);
	unsigned long bits;
	DAT_HANDLE bad[] = {
		NULL, env->ia, env->pz, env->recv, env->mem[0].lmr,
		(DAT_HANDLE)((unsigned long)env->ep ^ 1), (DAT_HANDLE)env, env->kep,
		(DAT_HANDLE)((unsigned long)env->ep + (1UL << 30)), (DAT_HANDLE)~0UL,
	};
	struct post_trace before;
	enum kd_call call;
	DAT_EP_HANDLE ep;
	int i;

	post_trace_take(env, &before);
	for (call = 0; call < KD_NR_CALLS; call++) {
		for (i = 0; i < ARRAY_SIZE(bad); i++)
			KD_EXPECT_RET(test, kd_post(bad[i], call, 1, &iov, 0, &remote, 0),
				      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
		for (i = 0; i < 1000; i++) {
			get_random_bytes(&bits, sizeof(bits));
			if ((DAT_EP_HANDLE)bits == env->ep)
				continue;
			KD_EXPECT_RET(test, kd_post((DAT_EP_HANDLE)bits, call, 1, &iov, 0, &remote,
						    0),
				      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
		}
	}
	post_trace_check(env, &before);
	ep = env->ep;
	kd_ep_free(env);
	for (call = 0; call < KD_NR_CALLS; call++)
		KD_EXPECT_RET(test, kd_post(ep, call, 1, &iov, 0, &remote, 0),
			      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
}

static void post_flags_one(struct kd_env *env, enum kd_call call, int flags, int attr)
{
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	DAT_RMR_TRIPLET remote = kd_remote(0, 8, POST_KEY);
	char what[48];
	bool legal;

	legal = !(flags & ~post_legal_flags(call)) &&
		(!(flags & DAT_COMPLETION_UNSIGNALLED_FLAG) ||
		 attr == DAT_COMPLETION_UNSIGNALLED_FLAG);
	snprintf(what, sizeof(what), "flags %#x, attribute %#x", flags, attr);
	if (legal)
		post_accepted(env, call, 1, &iov, &remote, flags, what);
	else
		post_refused(env, call, 1, &iov, &remote, flags, DAT_INVALID_PARAMETER,
			     post_arg_flags(call), what);
}

static void post_flags_walk(struct kunit *test, enum kd_call call)
{
	static const int attrs[][2] = {		/* receive, request */
		{ DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_DEFAULT_FLAG },
		{ DAT_COMPLETION_UNSIGNALLED_FLAG, DAT_COMPLETION_UNSIGNALLED_FLAG },
		{ DAT_COMPLETION_SOLICITED_WAIT_FLAG, DAT_COMPLETION_DEFAULT_FLAG },
	};
	struct kd_env *env = kd_open(test, NULL);
	DAT_EP_ATTR attr;
	int i, flags, of;

	for (i = 0; i < ARRAY_SIZE(attrs); i++) {
		kd_attr(&attr);
		attr.recv_completion_flags = attrs[i][0];
		attr.request_completion_flags = attrs[i][1];
		kd_ep(env, &attr);
		kd_connect(env);
		of = attrs[i][kd_is_recv(call) ? 0 : 1];
		for (flags = 0; flags < 256; flags++)
			post_flags_one(env, call, flags, of);
		for (flags = 8; flags < 32; flags++)
			post_flags_one(env, call, BIT(flags), of);
		post_flags_one(env, call, -1, of);
		kd_ep_free(env);
		msleep(20);
	}
}

static void post_flags_send_test(struct kunit *test)
{
	post_flags_walk(test, KD_SEND);
}

static void post_flags_recv_test(struct kunit *test)
{
	post_flags_walk(test, KD_RECV);
}

static void post_flags_write_test(struct kunit *test)
{
	post_flags_walk(test, KD_WRITE);
}

static void post_flags_read_test(struct kunit *test)
{
	post_flags_walk(test, KD_READ);
}

static void post_state_test(struct kunit *test)
{
	static const struct {
		DAT_EP_STATE state;
		DAT_RETURN_SUBTYPE subtype;
	} states[] = {
		{ DAT_EP_STATE_UNCONNECTED, DAT_INVALID_STATE_EP_UNCONNECTED },
		{ DAT_EP_STATE_RESERVED, DAT_INVALID_STATE_EP_RESERVED },
		{ DAT_EP_STATE_PASSIVE_CONNECTION_PENDING, DAT_INVALID_STATE_EP_PASSCONNPENDING },
		{ DAT_EP_STATE_ACTIVE_CONNECTION_PENDING, DAT_INVALID_STATE_EP_ACTCONNPENDING },
		{ DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING, DAT_INVALID_STATE_EP_TENTCONNPENDING },
		{ DAT_EP_STATE_DISCONNECT_PENDING, DAT_INVALID_STATE_EP_DISCPENDING },
		{ DAT_EP_STATE_COMPLETION_PENDING, DAT_INVALID_STATE_EP_COMPLPENDING },
	};
	struct kd_env *env = kd_connected(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	DAT_RMR_TRIPLET remote = kd_remote(0, 8, POST_KEY);
	enum kd_call call;
	int i;

	for (i = 0; i < ARRAY_SIZE(states); i++) {
		kd_set_state(env, states[i].state);
		for (call = 0; call < KD_NR_CALLS; call++) {
			if (kd_is_recv(call))
				post_accepted(env, call, 1, &iov, &remote, 0, "state");
			else
				post_refused(env, call, 1, &iov, &remote, 0, DAT_INVALID_STATE,
					     states[i].subtype, "state");
		}
	}
	kd_set_state(env, DAT_EP_STATE_CONNECTED);
	for (call = 0; call < KD_NR_CALLS; call++)
		post_accepted(env, call, 1, &iov, &remote, 0, "connected");
}

static void post_fresh_ep_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	DAT_RMR_TRIPLET remote = kd_remote(0, 8, POST_KEY);
	enum kd_call call;

	kd_ep(env, NULL);
	for (call = 0; call < KD_NR_CALLS; call++) {
		if (kd_is_recv(call))
			continue;
		post_refused(env, call, 1, &iov, &remote, 0, DAT_INVALID_STATE,
			     DAT_INVALID_STATE_EP_UNCONNECTED, "never connected");
		post_refused(env, call, 0, NULL, &remote, 0, DAT_INVALID_STATE,
			     DAT_INVALID_STATE_EP_UNCONNECTED, "never connected, no segment");
	}
	KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, 7, NULL, 0));
	KUNIT_EXPECT_EQ(test, fake_ib_outstanding(env->qp, true), 1U);
	/* the receive waits and survives the connection being made */
	kd_connect(env);
	KUNIT_EXPECT_EQ(test, fake_ib_outstanding(env->qp, true), 1U);
	KD_EXPECT_EMPTY(test, env->recv);
}

static void post_count_test(struct kunit *test)
{
	/* the number of segments each call takes, in the order of enum kd_call */
	static const int limits[2][KD_NR_CALLS] = {
		{ 3, 2, 4, 1 },
		{ 2, 4, 2, 2 },		/* write and read 0: as request */
	};
	static const int wrong[] = { -1, -2, INT_MIN, INT_MIN + 1, INT_MAX, 65536, 1 << 30 };
	DAT_RMR_TRIPLET remote = kd_remote(0, 64, POST_KEY);
	struct kd_env *env = kd_open(test, NULL);
	DAT_LMR_TRIPLET iov[8];
	enum kd_call call;
	DAT_EP_ATTR attr;
	int i, n, round;

	for (i = 0; i < ARRAY_SIZE(iov); i++)
		iov[i] = kd_seg(env, KD_RW, 16 * i, 8);
	for (round = 0; round < 2; round++) {
		kd_attr(&attr);
		attr.max_request_iov = limits[round][KD_SEND];
		attr.max_recv_iov = limits[round][KD_RECV];
		attr.max_rdma_write_iov = round ? 0 : limits[round][KD_WRITE];
		attr.max_rdma_read_iov = round ? 0 : limits[round][KD_READ];
		kd_ep(env, &attr);
		kd_connect(env);
		for (call = 0; call < KD_NR_CALLS; call++) {
			for (n = 0; n <= ARRAY_SIZE(iov); n++) {
				remote.segment_length = 8 * n;
				if (n <= limits[round][call])
					post_accepted(env, call, n, n ? iov : NULL, &remote, 0,
						      "count");
				else
					post_refused(env, call, n, iov, &remote, 0,
						     DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
						     "count");
			}
			for (i = 0; i < ARRAY_SIZE(wrong); i++) {
				post_refused(env, call, wrong[i], iov, &remote, 0,
					     DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, "count");
				post_refused(env, call, wrong[i], NULL, &remote, 0,
					     DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, "count");
			}
			post_refused(env, call, 1, NULL, &remote, 0, DAT_INVALID_PARAMETER,
				     DAT_INVALID_ARG3, "no iov");
		}
		kd_ep_free(env);
		msleep(20);
	}
}

static void post_remote_null_test(struct kunit *test)
{
	struct kd_env *env = kd_connected(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);

	post_refused(env, KD_WRITE, 1, &iov, NULL, 0, DAT_INVALID_PARAMETER, DAT_INVALID_ARG5,
		     "no remote range");
	post_refused(env, KD_READ, 1, &iov, NULL, 0, DAT_INVALID_PARAMETER, DAT_INVALID_ARG5,
		     "no remote range");
	post_refused(env, KD_WRITE, 0, NULL, NULL, 0, DAT_INVALID_PARAMETER, DAT_INVALID_ARG5,
		     "no remote range");
}

static void post_range_test(struct kunit *test)
{
	static const struct {
		s64 offset;
		u32 length;
		bool ok;
		const char *what;
	} ranges[] = {
		{ 0, KD_MEM_SIZE, true, "all of it" },
		{ 0, 1, true, "first byte" },
		{ KD_MEM_SIZE - 1, 1, true, "last byte" },
		{ 17, 333, true, "unaligned" },
		{ -1, 1, false, "byte in front" },
		{ -1, 2, false, "starts in front" },
		{ 0, KD_MEM_SIZE + 1, false, "one byte longer" },
		{ 1, KD_MEM_SIZE, false, "shifted by one" },
		{ KD_MEM_SIZE, 1, false, "byte behind" },
		{ KD_MEM_SIZE - 1, 2, false, "ends behind" },
		{ -4, 0xffffffff, false, "length of 4 GiB" },
		{ 0, 0xffffffff, false, "longest length" },
		{ 1LL << 40, 8, false, "far away" },
		{ -(1LL << 40), 8, false, "far below" },
	};
	struct kd_env *env = kd_open(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(0, 0xffffffff, POST_KEY);
	DAT_LMR_TRIPLET iov;
	enum kd_call call;
	DAT_EP_ATTR attr;
	int i;

	kd_attr(&attr);
	attr.max_message_size = 1 << 30;
	attr.max_rdma_size = 1 << 30;
	kd_ep(env, &attr);
	kd_connect(env);
	for (call = 0; call < KD_NR_CALLS; call++) {
		for (i = 0; i < ARRAY_SIZE(ranges); i++) {
			iov = kd_seg(env, post_good_mem(call), 0, ranges[i].length);
			iov.virtual_address += ranges[i].offset;
			/* a Read moves what the remote side names, a Write may move less */
			remote.segment_length = ranges[i].length;
			if (ranges[i].ok)
				post_accepted(env, call, 1, &iov, &remote, 0, ranges[i].what);
			else
				post_refused(env, call, 1, &iov, &remote, 0,
					     DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
					     ranges[i].what);
		}
		/* around the end of the address space */
		remote.segment_length = 8;
		iov = kd_seg(env, post_good_mem(call), 0, 8);
		for (i = 0; i <= 8; i++) {
			iov.virtual_address = 0ULL - i;
			post_refused(env, call, 1, &iov, &remote, 0, DAT_INVALID_PARAMETER,
				     DAT_INVALID_ARG3, "wraps around");
		}
	}
}

static void post_pz_test(struct kunit *test)
{
	struct kd_env *env = kd_connected(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(0, 16, POST_KEY);
	DAT_LMR_TRIPLET iov[2];
	enum kd_call call;

	for (call = 0; call < KD_NR_CALLS; call++) {
		iov[0] = kd_seg(env, KD_FOREIGN, 0, 8);
		iov[1] = kd_seg(env, KD_RW, 0, 8);
		remote.segment_length = 8;
		post_refused(env, call, 1, iov, &remote, 0, DAT_PROTECTION_VIOLATION,
			     post_prot_subtype(call), "other PZ");
		remote.segment_length = 16;
		post_refused(env, call, 2, iov, &remote, 0, DAT_PROTECTION_VIOLATION,
			     post_prot_subtype(call), "other PZ, first of two");
		swap(iov[0], iov[1]);
		post_refused(env, call, 2, iov, &remote, 0, DAT_PROTECTION_VIOLATION,
			     post_prot_subtype(call), "other PZ, second of two");
	}
}

static void post_no_pz_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	unsigned int verbs;
	DAT_EP_ATTR attr;

	kd_attr(&attr);
	KD_ASSERT_OK(test, dat_ep_create(env->ia, DAT_HANDLE_NULL, env->recv, env->req, env->conn,
					 &attr, &env->ep));
	verbs = fake_ib_count(env->dev, FAKE_IB_ANY);
	KD_EXPECT_RET(test, kd_post(env->ep, KD_RECV, 1, &iov, 0, NULL, 0),
		      DAT_PROTECTION_VIOLATION, DAT_PROTECTION_WRITE);
	KD_EXPECT_RET(test, kd_post(env->ep, KD_RECV, 0, NULL, 0, NULL, 0),
		      DAT_PROTECTION_VIOLATION, DAT_PROTECTION_WRITE);
	/* the state comes before the PZ */
	KD_EXPECT_RET(test, kd_post(env->ep, KD_SEND, 1, &iov, 0, NULL, 0),
		      DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONNECTED);
	KUNIT_EXPECT_EQ(test, fake_ib_count(env->dev, FAKE_IB_ANY), verbs);
}

static void post_rights_test(struct kunit *test)
{
	static const struct {
		enum kd_mem_kind kind;
		bool source;
		bool sink;
	} rights[] = {
		{ KD_RW, true, true },
		{ KD_RO, true, false },
		{ KD_WO, false, true },
		{ KD_REMOTE, false, false },
	};
	struct kd_env *env = kd_connected(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(0, 8, POST_KEY);
	DAT_LMR_TRIPLET iov;
	enum kd_call call;
	int i;

	for (call = 0; call < KD_NR_CALLS; call++) {
		for (i = 0; i < ARRAY_SIZE(rights); i++) {
			iov = kd_seg(env, rights[i].kind, 0, 8);
			if (post_is_sink(call) ? rights[i].sink : rights[i].source)
				post_accepted(env, call, 1, &iov, &remote, 0, "rights");
			else
				post_refused(env, call, 1, &iov, &remote, 0,
					     DAT_PRIVILEGES_VIOLATION, post_priv_subtype(call),
					     "rights");
		}
	}
}

static void post_context_test(struct kunit *test)
{
	struct kd_env *env = kd_connected(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(0, 8, POST_KEY);
	DAT_REGION_DESCRIPTION region = { .for_va = env->buf };
	DAT_LMR_CONTEXT bad[16], good = env->mem[KD_RW].lmr_context;
	DAT_RMR_CONTEXT rmr;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_TRIPLET iov;
	DAT_VLEN length;
	enum kd_call call;
	DAT_VADDR addr;
	int i, j, n = 0;
	u32 random;

	/* a region that was, and whose key must be forgotten */
	KD_ASSERT_OK(test, dat_lmr_kcreate(env->ia, DAT_MEM_TYPE_VIRTUAL, region, 64, env->pz,
					   DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA,
					   DAT_MEM_OPTIMIZE_DONT_CARE, &lmr, &bad[n], &rmr,
					   &length, &addr));
	KD_ASSERT_OK(test, dat_lmr_free(lmr));
	n++;
	bad[n++] = rmr;
	bad[n++] = 0;
	bad[n++] = ~0;
	bad[n++] = good ^ 0x01;		/* another key of the same region */
	bad[n++] = good ^ 0x80;
	bad[n++] = good ^ 0x100;	/* another region */
	bad[n++] = good ^ 0x80000000;
	bad[n++] = env->mem[KD_RW].rmr_context ^ 1;
	for (call = 0; call < KD_NR_CALLS; call++) {
		for (i = 0; i < n; i++) {
			iov = kd_seg(env, KD_RW, 0, 8);
			iov.lmr_context = bad[i];
			post_refused(env, call, 1, &iov, &remote, 0, DAT_PRIVILEGES_VIOLATION,
				     post_priv_subtype(call), "unknown context");
		}
		for (i = 0; i < 1000; i++) {
			get_random_bytes(&random, sizeof(random));
			for (j = 0; j < KD_NR_MEMS; j++)
				if (random == env->mem[j].lmr_context)
					random++;
			iov.lmr_context = random;
			post_refused(env, call, 1, &iov, &remote, 0, DAT_PRIVILEGES_VIOLATION,
				     post_priv_subtype(call), "random context");
		}
	}
}

/* Several bad segments: the first one decides; empty ones are not looked at. */
static void post_segment_order_test(struct kunit *test)
{
	enum { GOOD, EMPTY, KEY, PZ, RANGE, KINDS };
	struct kd_env *env = kd_connected(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(0, 0, POST_KEY);
	int i, code, digits, first, len;
	DAT_LMR_TRIPLET iov[3];
	enum kd_call call;

	for (call = 0; call < KD_NR_CALLS; call++) {
		for (code = 0; code < KINDS * KINDS * KINDS; code++) {
			first = GOOD;
			len = 0;
			for (i = 0, digits = code; i < 3; i++, digits /= KINDS) {
				int kind = digits % KINDS;

				iov[i] = kd_seg(env, KD_RW, 64 * i, 8);
				if (kind == PZ)
					iov[i] = kd_seg(env, KD_FOREIGN, 64 * i, 8);
				if (kind == KEY || kind == EMPTY)
					iov[i].lmr_context = 0x77777777;
				if (kind == RANGE || kind == EMPTY)
					iov[i].virtual_address += 1 << 30;
				if (kind == EMPTY)
					iov[i].segment_length = 0;
				if (kind >= KEY && first == GOOD)
					first = kind;
				len += iov[i].segment_length;
			}
			remote.segment_length = len;
			switch (first) {
			case KEY:
				post_refused(env, call, 3, iov, &remote, 0,
					     DAT_PRIVILEGES_VIOLATION, post_priv_subtype(call),
					     "first of several");
				break;
			case PZ:
				post_refused(env, call, 3, iov, &remote, 0,
					     DAT_PROTECTION_VIOLATION, post_prot_subtype(call),
					     "first of several");
				break;
			case RANGE:
				post_refused(env, call, 3, iov, &remote, 0,
					     DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
					     "first of several");
				break;
			default:
				post_accepted(env, call, 3, iov, &remote, 0, "empty segments");
			}
		}
	}
}

static void post_check_order_test(struct kunit *test)
{
	struct kd_env *env = kd_connected(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(0, 8, POST_KEY);
	DAT_LMR_TRIPLET bad = kd_seg(env, KD_RW, 0, 8);
	DAT_LMR_TRIPLET good = bad;
	enum kd_call call;
	int i;

	bad.lmr_context = 0x77777777;
	for (call = 0; call < KD_NR_CALLS; call++) {
		bool request = !kd_is_recv(call);

		/* everything is wrong: the handle decides */
		if (request)
			kd_set_state(env, DAT_EP_STATE_DISCONNECT_PENDING);
		KD_EXPECT_RET(test, kd_post(env->pz, call, -1, NULL, 0, NULL, -1),
			      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
		/* then parameters, before flags */
		post_refused(env, call, -1, &bad, &remote, -1, DAT_INVALID_PARAMETER,
			     DAT_INVALID_ARG2, "count before flags");
		post_refused(env, call, 1, NULL, &remote, -1, DAT_INVALID_PARAMETER,
			     DAT_INVALID_ARG3, "iov before flags");
		if (call == KD_WRITE || call == KD_READ)
			post_refused(env, call, 1, &bad, NULL, -1, DAT_INVALID_PARAMETER,
				     DAT_INVALID_ARG5, "remote before flags");
		/* flags before the state */
		post_refused(env, call, 1, &bad, &remote, 0x40, DAT_INVALID_PARAMETER,
			     post_arg_flags(call), "flags before state");
		/* the state before segments */
		if (request)
			post_refused(env, call, 1, &bad, &remote, 0, DAT_INVALID_STATE,
				     DAT_INVALID_STATE_EP_DISCPENDING, "state before segments");
		kd_set_state(env, DAT_EP_STATE_CONNECTED);
		/* segments before resources */
		for (i = 0; i < 8; i++)
			KD_EXPECT_OK(test, kd_post(env->ep, call, 1, &good, i, &remote, 0));
		post_refused(env, call, 1, &bad, &remote, 0, DAT_PRIVILEGES_VIOLATION,
			     post_priv_subtype(call), "segments before resources");
		fake_ib_complete_all(env->qp, !request, IB_WC_SUCCESS);
	}
}

static void post_length_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(0, 100, POST_KEY);
	DAT_LMR_TRIPLET iov[3];
	DAT_EP_ATTR attr;

	kd_attr(&attr);
	attr.max_message_size = 1000;
	attr.max_rdma_size = 2000;
	kd_ep(env, &attr);
	kd_connect(env);
	iov[0] = kd_seg(env, KD_RW, 0, 600);
	iov[1] = kd_seg(env, KD_RW, 1000, 400);
	iov[2] = kd_seg(env, KD_RW, 2000, 1);

	/* Send: the whole message counts */
	post_accepted(env, KD_SEND, 2, iov, NULL, 0, "longest message");
	post_refused(env, KD_SEND, 3, iov, NULL, 0, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		     "message too long");
	/* Write: against the remote range, then against the limit */
	remote.segment_length = 1001;
	post_accepted(env, KD_WRITE, 3, iov, &remote, 0, "fits exactly");
	remote.segment_length = 5000;
	post_accepted(env, KD_WRITE, 3, iov, &remote, 0, "remote range longer");
	remote.segment_length = 1000;
	post_refused(env, KD_WRITE, 3, iov, &remote, 0, DAT_LENGTH_ERROR, DAT_NO_SUBTYPE,
		     "remote range one byte short");
	remote.segment_length = 0;
	post_refused(env, KD_WRITE, 1, iov, &remote, 0, DAT_LENGTH_ERROR, DAT_NO_SUBTYPE,
		     "remote range empty");
	iov[1] = kd_seg(env, KD_RW, 1000, 1400);
	remote.segment_length = 3000;
	post_accepted(env, KD_WRITE, 2, iov, &remote, 0, "longest write");
	post_refused(env, KD_WRITE, 3, iov, &remote, 0, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		     "write too long");
	/* Read: the remote length is what moves */
	remote.segment_length = 2000;
	post_accepted(env, KD_READ, 2, iov, &remote, 0, "longest read");
	post_accepted(env, KD_READ, 3, iov, &remote, 0, "sink longer than the read");
	remote.segment_length = 601;
	post_refused(env, KD_READ, 1, iov, &remote, 0, DAT_LENGTH_ERROR, DAT_NO_SUBTYPE,
		     "sink one byte short");
	post_refused(env, KD_READ, 0, NULL, &remote, 0, DAT_LENGTH_ERROR, DAT_NO_SUBTYPE,
		     "no sink");
}

static void post_read_depth_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(0, 8, POST_KEY);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	struct post_trace before;
	DAT_EP_ATTR attr;
	DAT_RETURN ret;

	kd_attr(&attr);
	attr.max_rdma_read_out = 0;
	kd_ep(env, &attr);
	kd_connect(env);
	post_trace_take(env, &before);
	KUNIT_EXPECT_FALSE(test, atomic_read(&kd_conn_of(env)->reads_refused));
	ret = kd_post(env->ep, KD_READ, 1, &iov, 0, &remote, 0);
	KUNIT_EXPECT_EQ(test, (u32)DAT_GET_TYPE(ret), (u32)DAT_INVALID_PARAMETER);
	/* which the log tells, once */
	KUNIT_EXPECT_TRUE(test, atomic_read(&kd_conn_of(env)->reads_refused));
	post_trace_check(env, &before);
	post_accepted(env, KD_WRITE, 1, &iov, &remote, 0, "no read depth");
}

/* How many lines of the log say that the EP was refused a Read? */
static int post_refusals(struct kd_env *env)
{
	char what[96];

	snprintf(what, sizeof(what), "%s-1: EP %u: RDMA Read refused: ",
		 fake_ib_name(env->dev), kdapl_id(env->ep));
	return kd_logged(what);
}

/* The log tells once for each connection, whose end it is that allows no Reads. */
static void post_read_told_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(0, 8, POST_KEY);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	int conn, i, reported;
	DAT_EP_ATTR attr;

	kd_attr(&attr);
	attr.max_rdma_read_out = 0;
	kd_ep(env, &attr);
	reported = post_refusals(env);
	for (conn = 1; conn <= 2; conn++) {
		kd_connect(env);
		KUNIT_EXPECT_EQ(test, post_refusals(env) - reported, conn - 1);
		for (i = 0; i < 3; i++) {
			KD_EXPECT_RET(test, kd_post(env->ep, KD_READ, 1, &iov, i, &remote, 0),
				      DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
			KUNIT_EXPECT_EQ(test, post_refusals(env) - reported, conn);
		}
		KD_EXPECT_OK(test, dat_ep_disconnect(env->ep, DAT_CLOSE_ABRUPT_FLAG));
		KUNIT_EXPECT_EQ(test, kd_expect_end(env),
				(u32)DAT_CONNECTION_EVENT_DISCONNECTED);
		KD_EXPECT_OK(test, dat_ep_reset(env->ep));
		env->qp = fake_ib_newest_qp(env->dev);
	}
	KUNIT_EXPECT_EQ(test, post_refusals(env) - reported, 2);
}

/* What the tracepoint of refused posts has shown. */
struct post_shown {
	DAT_HANDLE ep;
	int n;
	unsigned int op;
	u64 cookie;
	DAT_RETURN ret;
};

static void post_shown_probe(void *data, DAT_HANDLE handle, unsigned int op, u64 cookie,
			     DAT_RETURN ret)
{
	struct post_shown *shown = data;

	if (handle != shown->ep)
		return;
	shown->n++;
	shown->op = op;
	shown->cookie = cookie;
	shown->ret = ret;
}

/* A Read into an RMR is refused as any other Read: in the log, and in the trace. */
static void post_read_to_rmr_told_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kd_mem *mem = &env->mem[KD_RW];
	DAT_RMR_TRIPLET sink = kd_remote(mem->addr, 8, mem->rmr_context);
	DAT_RMR_TRIPLET remote = kd_remote(0, 8, POST_KEY);
	DAT_DTO_COOKIE cookie = { .as_64 = 0x7e57 };
	struct post_shown shown = {};
	bool traced = false;
	DAT_EP_ATTR attr;
	int reported, i;
	DAT_RETURN ret;

	kd_attr(&attr);
	attr.max_rdma_read_out = 0;
	kd_ep(env, &attr);
	kd_connect(env);
	shown.ep = env->ep;
	if (IS_ENABLED(CONFIG_TRACEPOINTS)) {
		traced = !register_trace_kdapl_post_refused(post_shown_probe, &shown);
		KUNIT_EXPECT_TRUE(test, traced);
	}
	reported = post_refusals(env);
	for (i = 1; i <= 2; i++) {
		ret = dat_ep_post_rdma_read_to_rmr(env->ep, &sink, cookie, &remote, 0);
		KD_EXPECT_RET(test, ret, DAT_INVALID_PARAMETER, DAT_INVALID_ARG1);
		KUNIT_EXPECT_EQ(test, post_refusals(env) - reported, 1);
		KUNIT_EXPECT_EQ(test, shown.n, traced ? i : 0);
	}
	if (!traced)
		return;
	unregister_trace_kdapl_post_refused(post_shown_probe, &shown);
	tracepoint_synchronize_unregister();
	KUNIT_EXPECT_EQ(test, shown.op, (u32)DAT_DTO_RDMA_READ);
	KUNIT_EXPECT_EQ(test, shown.cookie, 0x7e57ULL);
	KUNIT_EXPECT_EQ(test, (u32)DAT_GET_TYPE(shown.ret), (u32)DAT_INVALID_PARAMETER);
}

/* Without attributes, and with the attributes that a query gives: Reads work. */
static void post_read_default_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(0, 8, POST_KEY);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	DAT_EP_PARAM param;
	DAT_IA_ATTR ia;
	DAT_EP_HANDLE ep;

	KD_ASSERT_OK(test, dat_ia_query(env->ia, NULL, DAT_IA_FIELD_ALL, &ia,
					DAT_PROVIDER_FIELD_NONE, NULL));
	KD_ASSERT_OK(test, dat_ep_create(env->ia, env->pz, env->recv, env->req, env->conn, NULL,
					 &ep));
	KD_ASSERT_OK(test, dat_ep_query(ep, DAT_EP_FIELD_ALL, &param));
	KUNIT_EXPECT_EQ(test, (int)param.ep_attr.max_rdma_read_in,
			min(4, ia.max_rdma_read_per_ep_in));
	KUNIT_EXPECT_EQ(test, (int)param.ep_attr.max_rdma_read_out,
			min(4, ia.max_rdma_read_per_ep_out));
	KD_EXPECT_OK(test, dat_ep_free(ep));
	kd_ep(env, &param.ep_attr);
	kd_connect(env);
	KD_EXPECT_OK(test, kd_post(env->ep, KD_READ, 1, &iov, 0, &remote, 0));
	KUNIT_EXPECT_FALSE(test, atomic_read(&kd_conn_of(env)->reads_refused));
}

static void post_full_test(struct kunit *test)
{
	struct kd_env *env = kd_connected(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(0, 8, POST_KEY);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	unsigned int posted, i, round;
	enum kd_call call;
	DAT_EVENT event;
	DAT_RETURN ret;

	for (call = 0; call < KD_NR_CALLS; call++) {
		bool recv = kd_is_recv(call);

		for (i = 0; i < 8; i++)
			KD_EXPECT_OK(test, kd_post(env->ep, call, 1, &iov, i, &remote, 0));
		posted = fake_ib_posted(env->qp, recv);
		for (round = 0; round < 3; round++) {
			ret = kd_post(env->ep, call, 1, &iov, 99, &remote, 0);
			KUNIT_EXPECT_EQ(test, (u32)DAT_GET_TYPE(ret),
					(u32)DAT_INSUFFICIENT_RESOURCES);
			KUNIT_EXPECT_EQ(test, fake_ib_posted(env->qp, recv), posted);
		}
		/* one completion, not even dequeued, makes room for one */
		for (round = 0; round < 20; round++) {
			KUNIT_EXPECT_EQ(test, fake_ib_complete(env->qp, recv, IB_WC_SUCCESS), 0);
			KD_EXPECT_OK(test, kd_post(env->ep, call, 1, &iov, 8 + round, &remote, 0));
			ret = kd_post(env->ep, call, 1, &iov, 99, &remote, 0);
			KUNIT_EXPECT_EQ(test, (u32)DAT_GET_TYPE(ret),
					(u32)DAT_INSUFFICIENT_RESOURCES);
		}
		fake_ib_complete_all(env->qp, recv, IB_WC_SUCCESS);
		for (i = 0; kd_next(kd_evd_of(env, call), &event); i++) {
			dto = &event.event_data.dto_completion_event_data;
			KUNIT_EXPECT_EQ(test, (u64)dto->user_cookie.as_64, (u64)i);
		}
		KUNIT_EXPECT_EQ(test, i, 28U);
	}
}

static void post_iwarp_sink_test(struct kunit *test)
{
	static const struct fake_ib_caps caps = { .iwarp = true };
	struct kd_env *env = kd_open(test, &caps);
	DAT_RMR_TRIPLET remote = kd_remote(0, 8, POST_KEY);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_WO, 0, 8);
	struct kdapl_device *dev;
	DAT_EP_ATTR attr;

	kd_attr(&attr);
	attr.max_rdma_read_iov = 1;
	kd_ep(env, &attr);
	dev = env->kep->obj.ia->dev;
	kdapl_quirks_derive(dev, true);	/* the connection asks */
	kd_connect(env);
	post_refused(env, KD_READ, 1, &iov, &remote, 0, DAT_PRIVILEGES_VIOLATION,
		     DAT_PRIVILEGES_RDMA_WRITE, "sink without remote write");
	post_accepted(env, KD_RECV, 1, &iov, NULL, 0, "no such rule for receives");
	iov = kd_seg(env, KD_RW, 0, 8);
	post_accepted(env, KD_READ, 1, &iov, &remote, 0, "sink with remote write");
	kdapl_quirks_derive(dev, false);
}

static void post_ib_sink_test(struct kunit *test)
{
	struct kd_env *env = kd_connected(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(0, 8, POST_KEY);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_WO, 0, 8);

	post_accepted(env, KD_READ, 1, &iov, &remote, 0, "local write is all that is asked for");
}

static void post_atomic_test(struct kunit *test)
{
	static DEFINE_SPINLOCK(lock);	/* stands for a consumer's */
	struct kd_env *env = kd_connected(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(0, 8, POST_KEY);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	DAT_RETURN ret[KD_NR_CALLS];
	enum kd_call call;
	int i;

	/* from under a consumer's lock, until the queues are full and beyond */
	for (i = 0; i < 20; i++) {
		spin_lock_irq(&lock);
		for (call = 0; call < KD_NR_CALLS; call++)
			ret[call] = kd_post(env->ep, call, 1, &iov, 0, &remote, 0);
		spin_unlock_irq(&lock);
		KUNIT_EXPECT_EQ(test, (u32)DAT_GET_TYPE(ret[KD_RECV]),
				i < 8 ? 0U : (u32)DAT_INSUFFICIENT_RESOURCES);
	}
	spin_lock_irq(&lock);
	fake_ib_complete_all(env->qp, false, IB_WC_SUCCESS);
	fake_ib_complete_all(env->qp, true, IB_WC_SUCCESS);
	ret[0] = kd_post(env->ep, KD_SEND, 1, &iov, 0, &remote, 0);
	ret[1] = kd_post(env->ep, KD_RECV, 1, &iov, 0, &remote, 0);
	spin_unlock_irq(&lock);
	KD_EXPECT_OK(test, ret[0]);
	KD_EXPECT_OK(test, ret[1]);
}

static struct kunit_case post_cases[] = {
	KD_CASE(post_handle_test, "GEN-04,GEN-05,SEND-19: handles that are no live EP"),
	KD_CASE(post_flags_send_test,
		"EP-POST-07,EP-POST-19,SEND-09,SEND-11,FLAG-12,FLAG-14: every flag value on send"),
	KD_CASE(post_flags_recv_test,
		"EP-POST-19,RECV-05,RECV-06,FLAG-05,FLAG-14: every flag value on receive"),
	KD_CASE(post_flags_write_test,
		"EP-POST-07,EP-POST-19,RDMAW-05,RDMAW-06,FLAG-10: every flag value on write"),
	KD_CASE(post_flags_read_test,
		"EP-POST-07,EP-POST-19,RDMAR-06,RDMAR-07,FLAG-10: every flag value on read"),
	KD_CASE(post_state_test, "EP-POST-10,SEND-17,RECV-13,RDMAW-10,RDMAR-11: every EP state"),
	KD_CASE(post_fresh_ep_test, "EP-POST-10,RECV-14: before the connection"),
	KD_CASE(post_count_test,
		"EP-POST-13,SEND-02,SEND-03,RECV-02,RDMAW-16,RDMAR-18: numbers of segments"),
	KD_CASE(post_remote_null_test, "RDMAW-03,GEN-09: no remote range"),
	KD_CASE(post_range_test, "EP-POST-14,EP-POST-18: ranges inside and outside the LMR"),
	KD_CASE(post_pz_test, "EP-POST-15,RDMAW-13,RDMAR-12: memory of another PZ"),
	KD_CASE(post_no_pz_test, "RECV-18,EP-CREATE-02: EP without PZ"),
	KD_CASE(post_rights_test, "EP-POST-16,RECV-16,RDMAW-14,RDMAR-13: local rights"),
	KD_CASE(post_context_test, "EP-POST-16: contexts that name no live LMR"),
	KD_CASE(post_segment_order_test,
		"EP-POST-12,GEN-10: the first bad segment decides, empty ones are not examined"),
	KD_CASE(post_check_order_test, "GEN-10,GEN-07: order of the checks"),
	KD_CASE(post_length_test, "SEND-20,RDMAW-11,RDMAW-12,RDMAW-16,RDMAR-04: lengths"),
	KD_CASE(post_read_depth_test, "RDMAR-17: no reads at depth 0"),
	KD_CASE(post_read_told_test, "RDMAR-17: the log tells of it once per connection"),
	KD_CASE(post_read_to_rmr_told_test, "RDMAR-17,RTOR-02: as does a Read into an RMR"),
	KD_CASE(post_read_default_test, "EP-CREATE-06: Reads with the default attributes"),
	KD_CASE(post_full_test,
		"EP-POST-17,EP-POST-09: full queues refuse, a completion makes room"),
	KD_CASE(post_ib_sink_test, "RDMAR-13: InfiniBand read sinks need local write"),
	KD_CASE(post_iwarp_sink_test, "RDMAR-13: iWARP read sinks need remote write"),
	KD_CASE(post_atomic_test, "CTX-01,EP-POST-02: posting with interrupts off"),
	{}
};

static struct kunit_suite post_suite = {
	.name = "kdapl-post",
	.suite_init = kd_suite_init,
	.suite_exit = kd_suite_exit,
	.init = kd_init,
	.exit = kd_exit,
	.test_cases = post_cases,
};

kunit_test_suite(post_suite);
