// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * kdrpcfuzz - a client and a server that break the protocol of kdrpc (README.md).
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/crc32.h>
#include <linux/delay.h>
#include <linux/inet.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <net/net_namespace.h>
#include "../../lib/server.h"
#include "../../../ulp_example/rpc/proto.h"

#define RECEIVES	KDRPC_SLOTS
#define MAX_SENDS	8
#define MAX_CLIENTS	256	/* of an adapter of the server */

static char *ia, *connect;
static ushort port = KDRPC_PORT;
static uint rounds = 1, seed = 1;
static bool crowd, ping;
static uint faults;

module_param(ia, charp, 0444);
MODULE_PARM_DESC(ia, "interface adapter");
module_param(connect, charp, 0444);
MODULE_PARM_DESC(connect, "address of a server; without it this is one");
module_param(port, ushort, 0444);
module_param(rounds, uint, 0444);
module_param(seed, uint, 0444);
MODULE_PARM_DESC(seed, "what is at random follows from it");
module_param(crowd, bool, 0444);
MODULE_PARM_DESC(crowd, "begin with as many clients as the server takes");
module_param(ping, bool, 0444);
MODULE_PARM_DESC(ping, "the server is that of kdping");
module_param(faults, uint, 0444);
MODULE_PARM_DESC(faults, "read: how often each wrong answer was sent");

TEST_STATE;

static struct test_ia fuzz_ia;		/* the client's; what it receives nobody looks at: */
static struct test_mem fuzz_mem, fuzz_lent;
static DAT_EVD_HANDLE fuzz_evd, fuzz_conn_evd;
static struct rnd_state fuzz_random;
static DAT_COUNT fuzz_reads = KDRPC_READS;

static int fuzz_end_open(struct test_end *end)
{
	DAT_LMR_TRIPLET iov = test_segment(&fuzz_mem, 0, 64);
	DAT_EP_ATTR attr = KDAT_EP_ATTR_INIT;
	int i, err;

	attr.max_message_size = 64;
	attr.max_rdma_size = KDRPC_MAX_DATA;
	attr.max_recv_dtos = RECEIVES;
	attr.max_recv_iov = 1;
	attr.max_request_dtos = MAX_SENDS;
	attr.max_request_iov = 1;
	attr.max_rdma_read_in = fuzz_reads;
	err = test_end_open(&fuzz_ia, end, fuzz_evd, fuzz_evd, fuzz_conn_evd, &attr);
	for (i = 0; !err && i < RECEIVES; i++)
		err = TRY(dat_ep_post_recv, end->ep, 1, &iov, test_cookie(end), 0);
	return err;
}

/* ---- a client ---- */

struct bad_hello {
	const char *name;
	struct kdrpc_hello hello;
	DAT_COUNT length;
};

static const struct bad_hello bad_hellos[] = {
	{ "no hello", {}, 0 },
	{ "a short hello", { cpu_to_le32(KDRPC_MAGIC), cpu_to_le32(KDRPC_VERSION) }, 3 },
	{ "another magic", { cpu_to_le32(KDRPC_MAGIC + 1), cpu_to_le32(KDRPC_VERSION) }, 8 },
	{ "another version", { cpu_to_le32(KDRPC_MAGIC), cpu_to_le32(KDRPC_VERSION + 1) }, 8 },
};

struct bad_request {
	const char *name;
	u32 length;		/* of the message */
	u32 slot, op, bytes, key;
	u32 times;		/* if more than one */
	bool lent;		/* the key is that of memory */
	bool no_reads;		/* of a client that cannot be read from */
};

static const struct bad_request bad_requests[] = {
	{ "an empty message", 0, 0, KDRPC_ECHO },
	{ "a short one", 23, 0, KDRPC_ECHO },
	{ "a long one", 25, 0, KDRPC_ECHO },
	{ "a number too high", 24, KDRPC_SLOTS, KDRPC_ECHO },
	{ "the highest number", 24, 65535, KDRPC_ECHO },
	{ "no operation", 24, 0, 0, 64, 1 },
	{ "an unknown operation", 24, 0, KDRPC_GET + 1, 64, 1 },
	{ "the highest operation", 24, 0, 255, 64, 1 },
	{ "an echo with memory", 24, 0, KDRPC_ECHO, 1, 1 },
	{ "a put without memory", 24, 0, KDRPC_PUT },
	{ "a get without memory", 24, 0, KDRPC_GET },
	{ "a put of too much", 24, 0, KDRPC_PUT, KDRPC_MAX_DATA + 1, 1 },
	{ "a get of too much", 24, 0, KDRPC_GET, 0xffffffff, 1 },
	{ "a put of memory that is not lent", 24, 0, KDRPC_PUT, 64, 0x123400 },
	{ "a get into memory that is not lent", 24, 15, KDRPC_GET, KDRPC_MAX_DATA, 0x123400 },
	/* so many that the first one lasts until another one is there */
	{ "puts with one number", 24, 3, KDRPC_PUT, KDRPC_MAX_DATA, .lent = true,
	  .times = MAX_SENDS },
	{ "a put that cannot be read", 24, 0, KDRPC_PUT, 64, .lent = true, .no_reads = true },
};

static int fuzz_connect_once(struct test_end *end, const struct sockaddr_storage *to,
			     const struct kdrpc_hello *hello, DAT_COUNT length)
{
	int err;

	err = fuzz_end_open(end) ?:
	      TRY(dat_ep_connect, end->ep, (DAT_IA_ADDRESS_PTR)to, port, DAT_TIMEOUT_INFINITE,
		  length, (DAT_PVOID)hello, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
	if (!err && !await(READ_ONCE(end->outcomes)))
		err = fail("no outcome");
	return err;
}

static const struct kdrpc_hello fuzz_good = {
	cpu_to_le32(KDRPC_MAGIC), cpu_to_le32(KDRPC_VERSION)
};

/* soft-iWARP waits 10 s for an answer, which is too short for a busy machine now and then. */
static int fuzz_connect(struct test_end *end, const struct sockaddr_storage *to,
			const struct kdrpc_hello *hello, DAT_COUNT length)
{
	int err, attempts = 3;

	while (true) {
		err = fuzz_connect_once(end, to, hello, length);
		if (err || end->outcome != DAT_CONNECTION_EVENT_UNREACHABLE || !--attempts)
			return err;
		kdat_ep_drain(end->ep);
		err = FREE(dat_ep_free, &end->ep);
		if (err)
			return err;
	}
}

static int fuzz_hello(const struct sockaddr_storage *to, const struct bad_hello *bad)
{
	struct test_end end = {};
	int err;

	test_now = bad->name;
	err = fuzz_connect(&end, to, &bad->hello, bad->length);
	if (!err && end.outcome != DAT_CONNECTION_EVENT_PEER_REJECTED &&
	    end.outcome != DAT_CONNECTION_EVENT_NON_PEER_REJECTED)
		err = fail("%s", kdat_event_name(end.outcome));
	kdat_ep_drain(end.ep);
	return FREE(dat_ep_free, &end.ep) ?: err;
}

/* Connect, send what is in the memory from 1024 on, and wait for the end, or end it. */
static int fuzz_send(const struct sockaddr_storage *to, u32 length, int times, bool wait)
{
	struct kdat_request list[MAX_SENDS] = {};
	DAT_LMR_TRIPLET iov[MAX_SENDS];
	struct test_end end = {};
	DAT_COUNT failed;
	int i, err;

	err = fuzz_connect(&end, to, ping ? NULL : &fuzz_good, ping ? 0 : sizeof(fuzz_good));
	if (!err && end.outcome != DAT_CONNECTION_EVENT_ESTABLISHED)
		err = fail("%s", kdat_event_name(end.outcome));
	for (i = 0; i < times; i++) {
		iov[i] = test_segment(&fuzz_mem, 1024 + 64 * i, length);
		list[i].op = KDAT_REQUEST_SEND;
		list[i].num_segments = 1;
		list[i].local_iov = &iov[i];
		list[i].user_cookie = test_cookie(&end);
	}
	if (!err)	/* the connection may be over already */
		kdat_ep_post_list(end.ep, list, times, &failed);
	if (!err && wait && !await(READ_ONCE(end.overs)))
		err = fail("the server does not end the connection");
	kdat_ep_drain(end.ep);
	return FREE(dat_ep_free, &end.ep) ?: err;
}

static int fuzz_request(const struct sockaddr_storage *to, const struct bad_request *bad)
{
	int i, err = 0, times = bad->times ?: 1;

	test_now = bad->name;
	if (bad->lent)
		err = test_mem_open(&fuzz_ia, &fuzz_lent, KDRPC_MAX_DATA,
				    LOCAL_RIGHTS | REMOTE_RIGHTS);
	for (i = 0; i < times; i++)
		*(struct kdrpc_request *)(fuzz_mem.p + 1024 + 64 * i) = (struct kdrpc_request) {
			.slot = cpu_to_le16(bad->slot),
			.op = bad->op,
			.length = cpu_to_le32(bad->bytes),
			.key = cpu_to_le32(bad->lent ? fuzz_lent.rkey : bad->key),
			.address = cpu_to_le64(bad->lent ? (uintptr_t)fuzz_lent.p : 0),
		};
	fuzz_reads = bad->no_reads ? 0 : KDRPC_READS;
	err = err ?: fuzz_send(to, bad->length, times, true);
	fuzz_reads = KDRPC_READS;
	test_mem_close(&fuzz_lent);
	return err;
}

/* So many clients that one is refused, and when they have gone, another one. */
static int fuzz_crowd(const struct sockaddr_storage *to)
{
	unsigned long limit;
	struct test_end *ends;
	int n, err = 0;

	test_now = "a crowd";
	ends = kvcalloc(MAX_CLIENTS + 1, sizeof(*ends), GFP_KERNEL);
	if (!ends)
		return -ENOMEM;
	for (n = 0; !err && n <= MAX_CLIENTS; n++) {
		err = fuzz_connect(&ends[n], to, &fuzz_good, sizeof(fuzz_good));
		if (ends[n].outcome != DAT_CONNECTION_EVENT_ESTABLISHED)
			break;
	}
	if (!err && n > MAX_CLIENTS)
		err = fail("more than %u clients are accepted", MAX_CLIENTS);
	/* Others have a few clients there, and those of earlier tests may still be leaving. */
	if (!err && (n < MAX_CLIENTS * 3 / 4 ||
		     ends[n].outcome != DAT_CONNECTION_EVENT_PEER_REJECTED))
		err = fail("%s after %d clients", kdat_event_name(ends[n].outcome), n);
	for (n = 0; n <= MAX_CLIENTS && ends[n].ep; n++) {
		kdat_ep_drain(ends[n].ep);
		err = FREE(dat_ep_free, &ends[n].ep) ?: err;
	}
	/* The server notices that they have gone. */
	for (limit = jiffies + TEST_LONG; !err; msleep(20)) {
		err = fuzz_connect(&ends[0], to, &fuzz_good, sizeof(fuzz_good));
		kdat_ep_drain(ends[0].ep);
		err = FREE(dat_ep_free, &ends[0].ep) ?: err;
		if (ends[0].outcome == DAT_CONNECTION_EVENT_ESTABLISHED)
			break;
		if (!err && time_after(jiffies, limit))
			err = fail("no client is accepted afterwards");
	}
	kvfree(ends);
	return err;
}

/* Hellos of kdping, which begin with how many bytes they want: the server gives 1 to 1 MiB. */
static int fuzz_ping(const struct sockaddr_storage *to)
{
	static const u32 lengths[] = { 0, SZ_1M + 1, 0xffffffff };
	int i, err = 0;

	test_now = "a hello of kdping";
	for (i = 0; !err && i < ARRAY_SIZE(lengths); i++) {
		*(__le32 *)(fuzz_mem.p + 1024) = cpu_to_le32(lengths[i]);
		err = fuzz_send(to, 24, 1, true);
	}
	return err;
}

/* Most of it is right, so that it gets further. */
static int fuzz_at_random(const struct sockaddr_storage *to)
{
	struct kdrpc_request *msg;
	int i;

	test_now = "at random";
	for (i = 0; i < MAX_SENDS; i++) {
		msg = (void *)(fuzz_mem.p + 1024 + 64 * i);
		*msg = (struct kdrpc_request) {
			.slot = cpu_to_le16(prandom_u32_state(&fuzz_random) % KDRPC_SLOTS),
			.op = KDRPC_ECHO + prandom_u32_state(&fuzz_random) % 3,
			.value = cpu_to_le32(prandom_u32_state(&fuzz_random)),
		};
		if (msg->op != KDRPC_ECHO) {
			msg->length = cpu_to_le32(1 + prandom_u32_state(&fuzz_random) %
						  KDRPC_MAX_DATA);
			msg->key = cpu_to_le32(prandom_u32_state(&fuzz_random));
		}
		if (prandom_u32_state(&fuzz_random) % 4 == 0)
			((u8 *)msg)[prandom_u32_state(&fuzz_random) % sizeof(*msg)] ^=
				1 << prandom_u32_state(&fuzz_random) % 8;
	}
	return fuzz_send(to, sizeof(*msg), MAX_SENDS, false);
}

static int fuzz_client(void)
{
	struct sockaddr_storage to = {};
	int err, i, n;

	err = inet_pton_with_scope(&init_net, AF_UNSPEC, connect, NULL, &to);
	if (ping)
		return err ?: fuzz_ping(&to);
	if (!err && crowd)
		err = fuzz_crowd(&to);
	for (n = 0; !err && n < rounds; n++) {
		for (i = 0; !err && i < ARRAY_SIZE(bad_hellos); i++)
			err = fuzz_hello(&to, &bad_hellos[i]);
		for (i = 0; !err && i < ARRAY_SIZE(bad_requests); i++)
			err = fuzz_request(&to, &bad_requests[i]);
		for (i = 0; !err && i < 8; i++)
			err = fuzz_at_random(&to);
	}
	return err;
}

/* ---- a server ---- */

/* An answer with a fault. */
static const struct bad_answer {
	u32 length;
	u16 slot;		/* in place of the right one */
	u32 reserved, turn;	/* more than there is */
	bool first;		/* the turn is that of a slot that was never used */
	u32 key;		/* invalidated, beside the one that was lent */
	bool theirs;		/* what was lent for the other call is invalidated */
	bool stale;		/* what was lent for an earlier call of the slot is */
	u8 op;			/* only to such a call */
	bool lent;		/* only to a call that lends memory */
	bool twice;		/* two, the first one right, and without a key */
	bool own_key;		/* the second one invalidates what was lent for the call */
} bad_answers[] = {
	{ 7 },
	{ 0 },
	{ sizeof(struct kdrpc_answer), .slot = KDRPC_SLOTS },
	{ sizeof(struct kdrpc_answer), .slot = 65535 },
	{ sizeof(struct kdrpc_answer), .slot = KDRPC_SLOTS - 1, .first = true },
	{ sizeof(struct kdrpc_answer), .reserved = 1 },
	{ sizeof(struct kdrpc_answer), .turn = 1 },
	{ sizeof(struct kdrpc_answer), .op = KDRPC_ECHO, .twice = true },
	{ sizeof(struct kdrpc_answer), .op = KDRPC_PUT, .twice = true },
	{ sizeof(struct kdrpc_answer), .op = KDRPC_PUT, .twice = true, .own_key = true },
	{ sizeof(struct kdrpc_answer), .lent = true, .key = 0x100 },
	{ sizeof(struct kdrpc_answer), .lent = true, .theirs = true },
	{ sizeof(struct kdrpc_answer), .op = KDRPC_ECHO, .theirs = true },
	{ sizeof(struct kdrpc_answer), .op = KDRPC_ECHO, .stale = true },
};

#define ANSWER_AT	(64 * RECEIVES)
#define DATA_AT		(ANSWER_AT + 64)

struct fuzz_peer {
	struct test_peer peer;		/* first */
	struct kdrpc_request calls[2];	/* that wait, the older one first */
	u32 ncalls;
	u32 keys[KDRPC_SLOTS];		/* that were last lent and given back */
	u32 right;			/* calls to answer rightly before the fault */
	bool done;			/* the fault was sent */
};

static uint fuzz_sent[ARRAY_SIZE(bad_answers)];

/* What kdrpc puts is what it would get. */
static u32 fuzz_result(struct fuzz_peer *p, const struct kdrpc_request *call)
{
	u32 length = min_t(u32, le32_to_cpu(call->length), KDRPC_MAX_DATA);
	u8 *data = p->peer.mem.p + DATA_AT;

	if (call->op == KDRPC_ECHO)
		return le32_to_cpu(call->value);
	kdrpc_fill(data, length, le32_to_cpu(call->value));
	return crc32_le(~0, data, length);
}

static u32 *fuzz_key(struct fuzz_peer *p, const struct kdrpc_request *call)
{
	return &p->keys[le16_to_cpu(call->slot) % KDRPC_SLOTS];
}

static void fuzz_answer_rightly(struct fuzz_peer *p, const struct kdrpc_request *call)
{
	struct kdrpc_answer *answer = (void *)(p->peer.mem.p + ANSWER_AT);
	u32 length = min_t(u32, le32_to_cpu(call->length), KDRPC_MAX_DATA);
	DAT_LMR_TRIPLET iov = test_segment(&p->peer.mem, DATA_AT, length);
	DAT_RMR_TRIPLET to = {
		.virtual_address = le64_to_cpu(call->address), .segment_length = length,
		.rmr_context = le32_to_cpu(call->key),
	};

	*answer = (struct kdrpc_answer) {
		.slot = call->slot,
		.turn = call->turn,
		.value = cpu_to_le32(fuzz_result(p, call)),
	};
	if (call->op == KDRPC_GET)
		dat_ep_post_rdma_write(p->peer.end.ep, 1, &iov, test_cookie(NULL), &to, 0);
	if (length)
		*fuzz_key(p, call) = le32_to_cpu(call->key);
	test_peer_send(&p->peer, ANSWER_AT, sizeof(*answer), length ? *fuzz_key(p, call) : 0, 0);
}

static void fuzz_answer_wrongly(struct fuzz_peer *p, const struct bad_answer *bad,
				const struct kdrpc_request *call,
				const struct kdrpc_request *other)
{
	struct kdrpc_answer *answer = (void *)(p->peer.mem.p + ANSWER_AT);
	u32 key = 0;

	*answer = (struct kdrpc_answer) {
		.slot = bad->slot ? cpu_to_le16(bad->slot) : call->slot,
		.turn = bad->first ? 0 : call->turn + bad->turn,
		.reserved = bad->reserved,
	};
	if (bad->twice) {
		answer->value = cpu_to_le32(fuzz_result(p, call));
		test_peer_send(&p->peer, ANSWER_AT, bad->length, 0, 0);
	}
	if (bad->theirs)
		key = le32_to_cpu(other->key);
	else if (bad->stale)
		key = *fuzz_key(p, call);
	else if (bad->key || bad->own_key)
		key = le32_to_cpu(call->key) + bad->key;
	test_peer_send(&p->peer, ANSWER_AT, bad->length, key, 0);
}

static bool fuzz_suits(struct fuzz_peer *p, const struct bad_answer *bad,
		       const struct kdrpc_request *call, const struct kdrpc_request *other)
{
	return (!bad->op || call->op == bad->op) && (!bad->lent || call->length) &&
	       (!bad->theirs || other->length) && (!bad->stale || *fuzz_key(p, call));
}

/*
 * Each client has two calls at a time. They are answered rightly, a few times, and until they are
 * such that the fault which is due suits one of them.
 */
static void fuzz_heard(struct test_peer *peer, void *message)
{
	struct fuzz_peer *p = container_of(peer, struct fuzz_peer, peer);
	u32 i, least, kind = peer->n % ARRAY_SIZE(bad_answers);
	const struct bad_answer *bad = &bad_answers[kind];
	struct kdrpc_request *calls = p->calls;

	if (p->done)
		return;
	if (!p->ncalls)
		p->right = prandom_u32_state(&fuzz_random) % 4;
	calls[p->ncalls++ ? 1 : 0] = *(struct kdrpc_request *)message;
	if (p->ncalls < 2)
		return;
	if (p->right || (!fuzz_suits(p, bad, &calls[0], &calls[1]) &&
			 !fuzz_suits(p, bad, &calls[1], &calls[0]))) {
		p->right -= !!p->right;
		fuzz_answer_rightly(p, &calls[0]);
		calls[0] = calls[1];
		return;
	}
	p->done = true;
	i = fuzz_suits(p, bad, &calls[0], &calls[1]) ? 0 : 1;
	fuzz_answer_wrongly(p, bad, &calls[i], &calls[!i]);
	fuzz_sent[kind]++;
	for (least = fuzz_sent[0], i = 1; i < ARRAY_SIZE(fuzz_sent); i++)
		least = min(least, fuzz_sent[i]);
	WRITE_ONCE(faults, least);
}

static struct test_server fuzz_server = {
	.attr = {
		.max_message_size = 64,
		.max_rdma_size = KDRPC_MAX_DATA,
		.max_recv_dtos = RECEIVES, .max_recv_iov = 1,
		.max_request_dtos = 8, .max_request_iov = 1,
		.max_rdma_read_out = KDRPC_READS,
		.srq_soft_hw = DAT_HW_DEFAULT,
	},
	.more = 64 + KDRPC_MAX_DATA,
	.peer_size = sizeof(struct fuzz_peer),
	.heard = fuzz_heard,
};

static void fuzz_stop(void)
{
	if (!connect)
		test_server_close(&fuzz_server);
	test_mem_close(&fuzz_mem);
	FREE(dat_evd_free, &fuzz_evd);
	FREE(dat_evd_free, &fuzz_conn_evd);
	test_ia_close(connect ? &fuzz_ia : &fuzz_server.ia);
}

/* What the client gets is of no interest. */
static void fuzz_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
}

static int __init fuzz_init(void)
{
	int err;

	prandom_seed_state(&fuzz_random, seed);
	if (connect)
		err = test_ia_open(&fuzz_ia, ia) ?:
		      test_mem_open(&fuzz_ia, &fuzz_mem, 4096, LOCAL_RIGHTS) ?:
		      test_evd(&fuzz_ia, 16, DAT_EVD_DTO_FLAG, fuzz_upcall, NULL, &fuzz_evd) ?:
		      test_evd(&fuzz_ia, 1024, DAT_EVD_CONNECTION_FLAG, test_cm_upcall, NULL,
			       &fuzz_conn_evd) ?:
		      fuzz_client();
	else
		err = test_ia_open(&fuzz_server.ia, ia) ?:
		      test_server_open(&fuzz_server, port, test_cm_upcall);
	if (err)
		fuzz_stop();
	return err;
}

module_init(fuzz_init);
module_exit(fuzz_stop);
MODULE_DESCRIPTION("hostile peers of kdrpc");
MODULE_AUTHOR("The kDAPL for Linux authors");
MODULE_LICENSE("Dual BSD/GPL");
