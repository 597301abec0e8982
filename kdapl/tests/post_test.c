// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * What the posting calls refuse, with which code, and that a refused post leaves no
 * trace: nothing reaches the device and no queue slot is gone. What they take reaches
 * the device in one call. Each post is made with interrupts off, and neither allocates
 * nor sleeps.
 */
#include <linux/limits.h>

#include "kd_cost.h"
#include "kd_upcall.h"

#define POST_KEY	0x12345678	/* some remote key, never looked at here */
#define POST_DEPTH	8		/* of kd_attr() */

/* How a post ends, for rows: whether memory is read or written decides about the subtype. */
enum post_want {
	POST_OK, POST_COUNT, POST_MEMORY, POST_REMOTE, POST_FLAGS, POST_RIGHT, POST_PZ, POST_LENGTH,
	POST_FULL, POST_NO_DEPTH, POST_STATE,
};

static bool post_is_sink(enum kd_call call)
{
	return call == KD_RECV || call == KD_READ;
}

static u32 post_code(enum kd_call call, enum post_want want, u32 state)
{
	bool rdma = call == KD_WRITE || call == KD_READ, sink = post_is_sink(call);
	const u32 codes[] = {
		[POST_OK] = DAT_SUCCESS,
		[POST_COUNT] = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2),
		[POST_MEMORY] = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3),
		[POST_REMOTE] = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG5),
		[POST_FLAGS] = DAT_ERROR(DAT_INVALID_PARAMETER,
					 (rdma ? DAT_INVALID_ARG6 : DAT_INVALID_ARG5)),
		[POST_RIGHT] = DAT_ERROR(DAT_PRIVILEGES_VIOLATION,
					 (sink ? DAT_PRIVILEGES_WRITE : DAT_PRIVILEGES_READ)),
		[POST_PZ] = DAT_ERROR(DAT_PROTECTION_VIOLATION,
				      (sink ? DAT_PROTECTION_WRITE : DAT_PROTECTION_READ)),
		[POST_LENGTH] = DAT_ERROR(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE),
		[POST_FULL] = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP),
		[POST_NO_DEPTH] = DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG1),
		[POST_STATE] = DAT_ERROR(DAT_INVALID_STATE, state),
	};

	return codes[want];
}

/* One post. Its list is as it was; a refused one leaves no trace, one taken is one call. */
static void post_one(struct kd_env *env, enum kd_call call, int num, DAT_LMR_TRIPLET *iov,
		     const DAT_RMR_TRIPLET *remote, int flags, u32 want, const char *what)
{
	struct kdapl_conn *conn = kd_conn_of(env);
	struct kdapl_wq *wq = kd_is_recv(call) ? conn->rq : conn->sq;
	size_t size = clamp(num, 0, 8) * sizeof(*iov);
	DAT_LMR_TRIPLET before[8];
	struct kunit *test = env->test;
	u32 used = kd_wq_used(wq);
	struct kd_cost cost;
	DAT_RETURN ret;

	if (iov)
		memcpy(before, iov, size);
	ret = KD_COST(env, &cost, kd_post(env->ep, call, num, iov, 1, remote, flags));
	KUNIT_EXPECT_EQ_MSG(test, (u32)ret, want, "%s: %s", kd_call_names[call], what);
	KUNIT_EXPECT_EQ_MSG(test, cost.verbs, want ? 0U : 1U, "%s: %s", kd_call_names[call], what);
	KUNIT_EXPECT_EQ_MSG(test, cost.wrs, want ? 0U : 1U, "%s: %s", kd_call_names[call], what);
	KUNIT_EXPECT_EQ(test, kd_is_recv(call) ? cost.recv : cost.send, want ? 0U : 1U);
	if (DAT_GET_TYPE(want) != DAT_INSUFFICIENT_RESOURCES)
		KUNIT_EXPECT_EQ(test, kd_wq_used(wq), used + !want);
	if (iov)
		KUNIT_EXPECT_EQ(test, memcmp(before, iov, size), 0);
}

static void post_drain(struct kd_env *env, enum kd_call call)
{
	fake_ib_complete_all(env->qp, kd_is_recv(call), IB_WC_SUCCESS);
	kd_drain(kd_evd_of(env, call));
}

/* The same by its kind of end, on the fast path and on the slow one; the device is emptied. */
static void post_try(struct kd_env *env, enum kd_call call, int num, DAT_LMR_TRIPLET *iov,
		     const DAT_RMR_TRIPLET *remote, int flags, enum post_want want,
		     const char *what)
{
	struct kdapl_conn *conn = kd_conn_of(env);
	struct kdapl_wq *wq = kd_is_recv(call) ? conn->rq : conn->sq;
	typeof(wq->max_iov) max_iov;
	int slow;

	memcpy(max_iov, wq->max_iov, sizeof(max_iov));
	for (slow = 0; slow < 2; slow++) {
		if (slow)	/* the fast path takes no segments */
			memset(wq->max_iov, 0, sizeof(max_iov));
		post_one(env, call, num, iov, remote, flags, post_code(call, want, 0), what);
		if (want == POST_OK)
			post_drain(env, call);
	}
	memcpy(wq->max_iov, max_iov, sizeof(max_iov));
}

/* Every value of seven bits and every other bit, for every attribute of the EP. */
static void post_flags_test(struct kunit *test)
{
	static const int legal[KD_NR_CALLS] = { 0x0f, 0x04, 0x0d, 0x0d };
	static const int attrs[][2] = {		/* request, receive */
		{ DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_DEFAULT_FLAG },
		{ DAT_COMPLETION_UNSIGNALLED_FLAG, DAT_COMPLETION_UNSIGNALLED_FLAG },
		{ DAT_COMPLETION_DEFAULT_FLAG, DAT_COMPLETION_SOLICITED_WAIT_FLAG },
	};
	struct kd_env *env = kd_open(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	DAT_RMR_TRIPLET remote = kd_remote(0, 8, POST_KEY);
	enum kd_call call;
	DAT_EP_ATTR attr;
	char what[48];
	int i, n;

	for (i = 0; i < ARRAY_SIZE(attrs); i++) {
		kd_attr(&attr);
		attr.request_completion_flags = attrs[i][0];
		attr.recv_completion_flags = attrs[i][1];
		kd_ep(env, &attr);
		kd_connect(env);
		for (call = 0; call < KD_NR_CALLS; call++) {
			int may = legal[call];

			if (attrs[i][kd_is_recv(call)] != DAT_COMPLETION_UNSIGNALLED_FLAG)
				may &= ~DAT_COMPLETION_UNSIGNALLED_FLAG;
			for (n = 0; n < 128 + 25; n++) {
				int flags = n < 128 ? n : (int)BIT(n - 121);

				snprintf(what, sizeof(what), "flags %#x, row %d", flags, i);
				post_try(env, call, 1, &iov, &remote, flags,
					 flags & ~may ? POST_FLAGS : POST_OK, what);
			}
		}
		kd_ep_free(env);
	}
}

/*
 * A post that meets ESTABLISHED finds the work queue live, but has read the limits before they were
 * set. An empty request looks at none but the flags.
 */
static void post_flags_early_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(0, 8, POST_KEY);
	struct kdapl_wq *wq;
	DAT_EP_ATTR attr;
	int n;

	kd_attr(&attr);
	kd_ep(env, &attr);
	wq = kd_conn_of(env)->sq;
	KUNIT_EXPECT_EQ(test, (int)wq->slow, KDAPL_SLOW_EARLY);
	kdapl_wq_set_mode(wq, KDAPL_WQ_LIVE);
	for (n = 4; n < 32; n++) {
		post_one(env, KD_SEND, 0, NULL, NULL, (int)BIT(n),
			 post_code(KD_SEND, POST_FLAGS, 0), "early");
		post_one(env, KD_WRITE, 0, NULL, &remote, (int)BIT(n),
			 post_code(KD_WRITE, POST_FLAGS, 0), "early");
	}
	kdapl_wq_set_mode(wq, KDAPL_WQ_REFUSE);
}

/*
 * The EP is CONNECTED a moment before ESTABLISHED is queued. What a consumer posts that has looked
 * at the state completes after it: as if the connection were not up yet.
 */
static void post_early_test(struct kunit *test)
{
	struct kd_env *env = kd_connected(test, NULL);
	struct kdapl_conn *conn = kd_conn_of(env);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	int i;

	kd_settle(env->req);
	conn->state = KDAPL_CONN_CONNECTING;
	conn->sq->slow |= KDAPL_SLOW_EARLY;	/* as it was made */
	for (i = 0; i < 6; i++)
		KD_EXPECT_OK(test, kd_post(env->ep, KD_SEND, 1, &iov, i, NULL,
					   i & 1 ? 0 : DAT_COMPLETION_SUPPRESS_FLAG));
	fake_ib_complete_all(env->qp, false, IB_WC_SUCCESS);
	KD_EXPECT_EMPTY(test, env->req);
	conn->state = KDAPL_CONN_UP;
	kdapl_wq_ready(conn->sq);
	for (i = 1; i < 6; i += 2)
		kd_expect_dto(test, env->req, i, DAT_DTO_SUCCESS);
	KD_EXPECT_EMPTY(test, env->req);
	KUNIT_EXPECT_EQ(test, (int)conn->sq->slow, 0);
	KUNIT_EXPECT_EQ(test, kd_wq_used(conn->sq), 0U);
	post_try(env, KD_SEND, 1, &iov, NULL, 0, POST_OK, "later");
}

/* In D each is flushed by the provider, whatever its flags; the device is not asked. */
static void post_disconnected_test(struct kunit *test)
{
	struct kd_env *env = kd_connected(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 0, POST_KEY);
	struct kd_cost cost;
	DAT_LMR_TRIPLET iov[3];
	enum kd_call call;
	int i, n, flags;

	/* one that leaves the fast path room for more */
	KD_EXPECT_OK(test, kd_post(env->ep, KD_SEND, 0, NULL, 1, NULL, 0));
	fake_ib_complete_all(env->qp, false, IB_WC_SUCCESS);
	kd_expect_dtos(test, env->req, 1, 1, DAT_DTO_SUCCESS);
	kd_end(env, DAT_CONNECTION_EVENT_DISCONNECTED);
	for (call = 0; call < KD_NR_CALLS; call++) {
		/* ten queues' worth */
		for (i = 0; i < 10 * POST_DEPTH; i++) {
			remote.segment_length = 0;
			for (n = 0; n < i % 4; n++) {
				iov[n] = kd_seg(env, KD_RW, 64 * n, i & BIT(n) ? 8 : 0);
				remote.segment_length += iov[n].segment_length;
			}
			flags = kd_is_recv(call) ? 0 : i & DAT_COMPLETION_SUPPRESS_FLAG;
			KD_EXPECT_OK(test, KD_COST(env, &cost,
						   kd_post(env->ep, call, n, n ? iov : NULL, i,
							   &remote, flags)));
			KUNIT_EXPECT_EQ(test, cost.verbs + cost.wrs, 0U);
			kd_expect_dtos(test, kd_evd_of(env, call), i, 1, DAT_DTO_ERR_FLUSHED);
		}
		/* slots are needed all the same, and checks are made */
		remote.segment_length = 0;
		for (n = 0; n < 100; n++)
			if (kd_post(env->ep, call, 0, NULL, n, &remote, 0) != DAT_SUCCESS)
				break;
		KUNIT_EXPECT_GE(test, n, POST_DEPTH);
		if (n < 100)
			post_one(env, call, 0, NULL, &remote, 0, post_code(call, POST_FULL, 0),
				 "full");
		kd_expect_dtos(test, kd_evd_of(env, call), 0, n, DAT_DTO_ERR_FLUSHED);
		iov[0] = kd_seg(env, KD_FOREIGN, 0, 8);
		remote.segment_length = 8;
		post_try(env, call, 1, iov, &remote, 0, POST_PZ, "disconnected");
		iov[0] = kd_seg(env, KD_RW, 1, KD_MEM_SIZE);
		post_try(env, call, 1, iov, &remote, 0, POST_MEMORY, "disconnected");
		post_try(env, call, 1, iov, &remote, 0x40, POST_FLAGS, "disconnected");
	}
}

/* The number of segments each call takes; 0 for a Write or a Read is that of requests. */
static void post_count_test(struct kunit *test)
{
	static const struct fake_ib_caps caps = {
		.max_send_sge = 8, .max_recv_sge = 7, .max_sge_rd = 5,
	};
	static const struct {
		int attr[KD_NR_CALLS], limit[KD_NR_CALLS];
	} rows[] = {
		{ { 3, 2, 4, 1 }, { 3, 2, 4, 1 } },
		{ { 2, 4, 0, 0 }, { 2, 4, 2, 2 } },
		{ { 0, 0, 0, 0 }, { 0, 0, 0, 0 } },
		{ { 7, 7, 8, 5 }, { 7, 7, 8, 5 } },
	};
	static const int wrong[] = { -1, -2, INT_MIN, INT_MIN + 1, INT_MAX, 65536, 1 << 30 };
	DAT_RMR_TRIPLET remote = kd_remote(0, 64, POST_KEY);
	struct kd_env *env = kd_open(test, &caps);
	DAT_LMR_TRIPLET iov[10];
	struct fake_ib_wr wr;
	enum kd_call call;
	DAT_EP_ATTR attr;
	int i, n, row;

	for (i = 0; i < ARRAY_SIZE(iov); i++)
		iov[i] = kd_seg(env, KD_RW, 16 * i, 8);
	for (row = 0; row < ARRAY_SIZE(rows); row++) {
		kd_attr(&attr);
		attr.max_request_iov = rows[row].attr[KD_SEND];
		attr.max_recv_iov = rows[row].attr[KD_RECV];
		attr.max_rdma_write_iov = rows[row].attr[KD_WRITE];
		attr.max_rdma_read_iov = rows[row].attr[KD_READ];
		kd_ep(env, &attr);
		kd_connect(env);
		for (call = 0; call < KD_NR_CALLS; call++) {
			for (n = 0; n < ARRAY_SIZE(iov); n++) {
				bool ok = n <= rows[row].limit[call];

				remote.segment_length = 8 * n;
				post_try(env, call, n, n ? iov : NULL, &remote, 0,
					 ok ? POST_OK : POST_COUNT, "count");
				if (!ok)
					continue;
				fake_ib_last_wr(env->qp, kd_is_recv(call), &wr);
				KUNIT_EXPECT_EQ(test, wr.num_sge, n);
			}
			for (i = 0; i < 2 * ARRAY_SIZE(wrong); i++)
				post_try(env, call, wrong[i / 2], i & 1 ? iov : NULL, &remote, 0,
					 POST_COUNT, "count");
			post_try(env, call, 1, NULL, &remote, 0, row == 2 ? POST_COUNT :
				 POST_MEMORY, "no list");
			for (n = 0; n < 2 && (call == KD_WRITE || call == KD_READ); n++)
				post_try(env, call, n && row != 2, n ? iov : NULL, NULL, 0,
					 POST_REMOTE, "no remote range");
		}
		kd_ep_free(env);
	}
}

/* One segment: rights, PZ, range, keys. A Send reads where a Receive writes. */
static void post_segment_test(struct kunit *test)
{
	static const struct {
		enum kd_mem_kind kind;
		s64 offset;
		u32 length;
		enum post_want source, sink;
		const char *what;
	} rows[] = {
		{ KD_RW, 0, 8, POST_OK, POST_OK, "all rights" },
		{ KD_RO, 0, 8, POST_OK, POST_RIGHT, "read only" },
		{ KD_WO, 0, 8, POST_RIGHT, POST_OK, "write only" },
		{ KD_REMOTE, 0, 8, POST_RIGHT, POST_RIGHT, "remote only" },
		{ KD_FOREIGN, 0, 8, POST_PZ, POST_PZ, "other PZ" },
		{ KD_RW, 0, KD_MEM_SIZE, POST_OK, POST_OK, "all of it" },
		{ KD_RW, 0, 1, POST_OK, POST_OK, "first byte" },
		{ KD_RW, KD_MEM_SIZE - 1, 1, POST_OK, POST_OK, "last byte" },
		{ KD_RW, 17, 333, POST_OK, POST_OK, "unaligned" },
		{ KD_RW, -1, 1, POST_MEMORY, POST_MEMORY, "byte in front" },
		{ KD_RW, -1, 2, POST_MEMORY, POST_MEMORY, "starts in front" },
		{ KD_RW, 0, KD_MEM_SIZE + 1, POST_MEMORY, POST_MEMORY, "one byte longer" },
		{ KD_RW, 1, KD_MEM_SIZE, POST_MEMORY, POST_MEMORY, "shifted by one" },
		{ KD_RW, KD_MEM_SIZE, 1, POST_MEMORY, POST_MEMORY, "byte behind" },
		{ KD_RW, KD_MEM_SIZE - 1, 2, POST_MEMORY, POST_MEMORY, "ends behind" },
		{ KD_RW, -4, 0xffffffff, POST_MEMORY, POST_MEMORY, "length of 4 GiB" },
		{ KD_RW, 0, 0xffffffff, POST_MEMORY, POST_MEMORY, "longest length" },
		{ KD_RW, 1LL << 40, 8, POST_MEMORY, POST_MEMORY, "far away" },
		{ KD_RW, -(1LL << 40), 8, POST_MEMORY, POST_MEMORY, "far below" },
	};
	struct kd_env *env = kd_open(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(0, 0, POST_KEY);
	DAT_LMR_TRIPLET iov;
	struct kd_mem was;
	enum kd_call call;
	DAT_EP_ATTR attr;
	bool known;
	int i, k;

	KD_ASSERT_OK(test, kd_lmr_create(env->ia, env->pz, env->buf, 64, DAT_MEM_PRIV_ALL_FLAG,
					 &was));
	KD_ASSERT_OK(test, dat_lmr_free(was.lmr));
	kd_attr(&attr);
	attr.max_message_size = 1 << 30;
	attr.max_rdma_size = 1 << 30;
	kd_ep(env, &attr);
	kd_connect(env);
	for (call = 0; call < KD_NR_CALLS; call++) {
		for (i = 0; i < ARRAY_SIZE(rows); i++) {
			iov = kd_seg(env, rows[i].kind, 0, rows[i].length);
			iov.virtual_address += rows[i].offset;
			/* a Read moves what the remote side names, a Write may move less */
			remote.segment_length = rows[i].length;
			post_try(env, call, 1, &iov, &remote, 0,
				 post_is_sink(call) ? rows[i].sink : rows[i].source, rows[i].what);
		}
		remote.segment_length = 8;
		iov = kd_seg(env, KD_RW, 0, 8);
		for (i = 0; i <= 8; i++) {
			iov.virtual_address = 0ULL - i;
			post_try(env, call, 1, &iov, &remote, 0, POST_MEMORY, "wraps around");
		}
		/* keys of nothing: of a region that was, others of the same one, any */
		for (i = 0; i < 33; i++) {
			iov = kd_seg(env, KD_RW, 0, 8);
			iov.lmr_context = i < 32 ? iov.lmr_context ^ BIT(i) : was.lmr_context;
			known = false;
			for (k = 0; k < KD_NR_MEMS; k++)
				known |= iov.lmr_context == env->mem[k].lmr_context;
			if (!known)
				post_try(env, call, 1, &iov, &remote, 0, POST_RIGHT, "context");
		}
	}
}

/* Several bad segments: the first one decides; empty ones are not looked at. */
static void post_segment_order_test(struct kunit *test)
{
	enum { GOOD, EMPTY, KEY, PZ, RANGE, KINDS };
	static const enum post_want want[KINDS] = {
		POST_OK, POST_OK, POST_RIGHT, POST_PZ, POST_MEMORY
	};
	struct kd_env *env = kd_connected(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(0, 0, POST_KEY);
	int i, code, digits, first;
	DAT_LMR_TRIPLET iov[3];
	enum kd_call call;

	for (call = 0; call < KD_NR_CALLS; call++) {
		for (code = 0; code < KINDS * KINDS * KINDS; code++) {
			first = GOOD;
			remote.segment_length = 0;
			for (i = 0, digits = code; i < 3; i++, digits /= KINDS) {
				int kind = digits % KINDS;

				iov[i] = kd_seg(env, kind == PZ ? KD_FOREIGN : KD_RW, 64 * i, 8);
				if (kind == KEY || kind == EMPTY)
					iov[i].lmr_context = 0x77777777;
				if (kind == RANGE || kind == EMPTY)
					iov[i].virtual_address += 1 << 30;
				if (kind == EMPTY)
					iov[i].segment_length = 0;
				if (kind >= KEY && first == GOOD)
					first = kind;
				remote.segment_length += iov[i].segment_length;
			}
			post_try(env, call, 3, iov, &remote, 0, want[first], "first of several");
		}
	}
}

/* Everything is wrong, and less and less of it. */
static void post_check_order_test(struct kunit *test)
{
	struct kd_env *env = kd_connected(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(0, 8, POST_KEY);
	DAT_LMR_TRIPLET bad = kd_seg(env, KD_FOREIGN, KD_MEM_SIZE, 8), good;
	enum kd_call call;
	int i;

	good = kd_seg(env, KD_RW, 0, 8);
	for (call = 0; call < KD_NR_CALLS; call++) {
		bool request = !kd_is_recv(call);

		bad.lmr_context = 0x77777777;
		if (request)
			kd_set_state(env, DAT_EP_STATE_DISCONNECT_PENDING);
		KD_BAD_HANDLE(test, kd_post(env->pz, call, -1, NULL, 0, NULL, -1), _EP);
		post_try(env, call, -1, &bad, &remote, -1, POST_COUNT, "count before flags");
		post_try(env, call, 1, NULL, &remote, -1, POST_MEMORY, "list before flags");
		if (call == KD_WRITE || call == KD_READ)
			post_try(env, call, 1, &bad, NULL, -1, POST_REMOTE, "remote before flags");
		post_try(env, call, 1, &bad, &remote, 0x40, POST_FLAGS, "flags before state");
		if (request)
			post_one(env, call, 1, &bad, &remote, 0,
				 post_code(call, POST_STATE, DAT_INVALID_STATE_EP_DISCPENDING),
				 "state before segments");
		kd_set_state(env, DAT_EP_STATE_CONNECTED);
		for (i = 0; i < POST_DEPTH; i++)
			KD_EXPECT_OK(test, kd_post(env->ep, call, 1, &good, i, &remote, 0));
		post_try(env, call, 1, &bad, &remote, 0, POST_RIGHT, "key before resources");
		bad.lmr_context = env->mem[KD_FOREIGN].lmr_context;
		post_try(env, call, 1, &bad, &remote, 0, POST_PZ, "PZ before range");
		post_drain(env, call);
	}
}

/* max_message_size 1000, max_rdma_size 2000; a Read moves the length of the remote range. */
static void post_length_test(struct kunit *test)
{
	static const struct {
		enum kd_call call;
		int n;
		u32 lengths[3], remote;
		enum post_want want;
	} rows[] = {
		{ KD_SEND, 2, { 600, 400 }, 0, POST_OK },
		{ KD_SEND, 3, { 600, 400, 1 }, 0, POST_MEMORY },
		{ KD_SEND, 1, { 1001 }, 0, POST_MEMORY },
		{ KD_WRITE, 3, { 600, 400, 1 }, 1001, POST_OK },
		{ KD_WRITE, 3, { 600, 400, 1 }, 5000, POST_OK },
		{ KD_WRITE, 3, { 600, 400, 1 }, 1000, POST_LENGTH },
		{ KD_WRITE, 1, { 600 }, 0, POST_LENGTH },
		{ KD_WRITE, 2, { 600, 1400 }, 3000, POST_OK },
		{ KD_WRITE, 3, { 600, 1400, 1 }, 3000, POST_MEMORY },
		{ KD_READ, 2, { 600, 1400 }, 2000, POST_OK },
		{ KD_READ, 3, { 600, 1400, 1 }, 2000, POST_OK },
		{ KD_READ, 1, { 600 }, 601, POST_LENGTH },
		{ KD_READ, 0, {}, 1, POST_LENGTH },
		{ KD_READ, 2, { 600, 1401 }, 2001, POST_MEMORY },
	};
	struct kd_env *env = kd_open(test, NULL);
	DAT_LMR_TRIPLET iov[3];
	DAT_RMR_TRIPLET remote;
	DAT_EP_ATTR attr;
	char what[16];
	int i, k;

	kd_attr(&attr);
	attr.max_message_size = 1000;
	attr.max_rdma_size = 2000;
	kd_ep(env, &attr);
	kd_connect(env);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		snprintf(what, sizeof(what), "row %d", i);
		for (k = 0; k < 3; k++)
			iov[k] = kd_seg(env, KD_RW, 1000 * k, rows[i].lengths[k]);
		remote = kd_remote(0, rows[i].remote, POST_KEY);
		post_try(env, rows[i].call, rows[i].n, iov, &remote, 0, rows[i].want, what);
	}
}

/* Told by the log once for each connection; into RMRs as well. */
static void post_read_depth_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kd_mem *mem = &env->mem[KD_RW];
	DAT_RMR_TRIPLET sink = kd_remote(mem->addr, 8, mem->rmr_context);
	DAT_RMR_TRIPLET remote = kd_remote(0, 8, POST_KEY);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	DAT_DTO_COOKIE cookie = {};
	DAT_EP_ATTR attr;
	int conn, logged;
	char what[96];

	kd_attr(&attr);
	attr.max_rdma_read_out = 0;
	kd_ep(env, &attr);
	for (conn = 1; conn <= 3; conn++) {
		kd_connect(env);
		snprintf(what, sizeof(what), "%s-1: QP %u of %s: RDMA Read refused: ",
			 fake_ib_name(env->dev), kd_conn_of(env)->qpn,
			 env->kep->obj.ia->consumer);
		logged = kd_logged(what);
		KUNIT_EXPECT_FALSE(test, atomic_read(&kd_conn_of(env)->reads_refused));
		if (conn == 3)
			KD_BAD_ARG(test, dat_ep_post_rdma_read_to_rmr(env->ep, &sink, cookie,
								      &remote, 0), 1);
		else
			post_try(env, KD_READ, 1, &iov, &remote, 0, POST_NO_DEPTH, "no depth");
		KUNIT_EXPECT_EQ(test, kd_logged(what) - logged, 1);
		KUNIT_EXPECT_TRUE(test, atomic_read(&kd_conn_of(env)->reads_refused));
		post_try(env, KD_WRITE, 1, &iov, &remote, 0, POST_OK, "no read depth");
		kd_end(env, DAT_CONNECTION_EVENT_DISCONNECTED);
		kd_drain(env->conn);
		kd_reset(env);
	}
}

/* A full queue is looked at once more, by one poll, and refuses; a completion makes room. */
static void post_full_test(struct kunit *test)
{
	struct kd_env *env = kd_connected(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(0, 8, POST_KEY);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	unsigned int i, round;
	struct kd_cost cost;
	enum kd_call call;
	DAT_RETURN ret;

	kd_settle(env->req);	/* the core has armed the CQs of the registrations */
	for (call = 0; call < KD_NR_CALLS; call++) {
		for (i = 0; i < POST_DEPTH; i++)
			KD_EXPECT_OK(test, kd_post(env->ep, call, 1, &iov, i, &remote, 0));
		/* one completion, not even dequeued, makes room for one */
		for (round = 0; round < 20; round++) {
			ret = KD_COST(env, &cost, kd_post(env->ep, call, 1, &iov, 99, &remote, 0));
			KUNIT_EXPECT_EQ(test, (u32)ret, post_code(call, POST_FULL, 0));
			KUNIT_EXPECT_EQ(test, cost.verbs + cost.wrs, 0U);
			KUNIT_EXPECT_LE(test, cost.polls, 1U);
			KUNIT_EXPECT_EQ(test, fake_ib_complete(env->qp, kd_is_recv(call),
							       IB_WC_SUCCESS), 0);
			ret = KD_COST(env, &cost, kd_post(env->ep, call, 1, &iov, 8 + round,
							  &remote, 0));
			KD_EXPECT_OK(test, ret);
			KUNIT_EXPECT_EQ(test, cost.verbs, 1U);
			KUNIT_EXPECT_GE(test, cost.polls, 1U);
			KUNIT_EXPECT_LE(test, cost.polls, 2U);
		}
		fake_ib_complete_all(env->qp, kd_is_recv(call), IB_WC_SUCCESS);
		kd_expect_dtos(test, kd_evd_of(env, call), 0, 28, DAT_DTO_SUCCESS);
	}
}

/* On iWARP the sink of a Read has to have remote write; Receives have not. */
static void post_iwarp_sink_test(struct kunit *test)
{
	static const struct fake_ib_caps caps = { .iwarp = true };
	struct kd_env *env = kd_open(test, &caps);
	DAT_RMR_TRIPLET remote = kd_remote(0, 8, POST_KEY);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_WO, 0, 8);
	struct kdapl_device *dev = kd_ia(env)->dev;
	DAT_EP_ATTR attr;

	kd_attr(&attr);
	attr.max_rdma_read_iov = 1;
	kd_ep(env, &attr);
	kdapl_quirks_derive(dev, true);	/* the connection asks */
	kd_connect(env);
	post_one(env, KD_READ, 1, &iov, &remote, 0,
		 DAT_ERROR(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_RDMA_WRITE), "sink");
	post_try(env, KD_RECV, 1, &iov, NULL, 0, POST_OK, "receive");
	iov = kd_seg(env, KD_RW, 0, 8);
	post_try(env, KD_READ, 1, &iov, &remote, 0, POST_OK, "sink with remote write");
	kdapl_quirks_derive(dev, false);
}

static struct kunit_case post_cases[] = {
	KD_CASE(post_flags_test,
		"EP-POST-07,EP-POST-19,SEND-11,RECV-05..06,RDMAW-05..06,RDMAR-06..07: every flag"),
	KD_CASE(post_flags_early_test, "EP-POST-07: flags, at the moment of ESTABLISHED"),
	KD_CASE(post_early_test, "FLUSH-07: requests that complete before ESTABLISHED"),
	KD_CASE(post_disconnected_test,
		"EP-POST-02,EP-POST-11,SEND-18,RECV-15,RDMAW-10,RDMAR-11,FLUSH-11: posts in D"),
	KD_CASE(post_count_test,
		"EP-POST-13,SEND-02..03,RECV-02,RDMAW-03,RDMAW-16,RDMAR-18,SIL-44,GEN-09: counts"),
	KD_CASE(post_segment_test,
		"EP-POST-14..16,EP-POST-18,SEND-19,RDMAW-13..14,RDMAR-12..13,SIL-42: one segment"),
	KD_CASE(post_segment_order_test,
		"EP-POST-12,GEN-10: the first bad segment decides, empty ones are not examined"),
	KD_CASE(post_check_order_test, "GEN-10,GEN-07,SIL-03,SIL-32: order of the checks"),
	KD_CASE(post_length_test, "SEND-20,RDMAW-11,RDMAW-12,RDMAW-16,RDMAR-04: lengths"),
	KD_CASE(post_read_depth_test,
		"RDMAR-17,RTOR-02: no reads at depth 0, and the log tells of it once"),
	KD_CASE(post_full_test,
		"EP-POST-02,EP-POST-17,CTX-01: full queues refuse, a completion makes room"),
	KD_CASE(post_iwarp_sink_test, "RDMAR-13: iWARP read sinks need remote write"),
	{}
};

KD_SUITE("kdapl-post", post_cases, kd_cost_init, kd_cost_exit);
