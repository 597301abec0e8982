// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * kdrpcfuzz - a client and a server that break the protocol of kdrpc (README.md).
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/inet.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <net/net_namespace.h>
#include "../../lib/server.h"
#include "../../../ulp_example/rpc/proto.h"

#define RECEIVES	KDRPC_SLOTS

static char *ia, *connect;
static ushort port = KDRPC_PORT;
static uint rounds = 1, seed = 1;
static uint faults;

module_param(ia, charp, 0444);
MODULE_PARM_DESC(ia, "interface adapter");
module_param(connect, charp, 0444);
MODULE_PARM_DESC(connect, "address of a server; without it this is one");
module_param(port, ushort, 0444);
module_param(rounds, uint, 0444);
module_param(seed, uint, 0444);
MODULE_PARM_DESC(seed, "what is at random follows from it");
module_param(faults, uint, 0444);
MODULE_PARM_DESC(faults, "read: wrong answers that were sent");

TEST_STATE;

static struct test_ia fuzz_ia;		/* the client's; what it receives nobody looks at: */
static struct test_mem fuzz_mem;
static DAT_EVD_HANDLE fuzz_evd, fuzz_conn_evd;
static struct rnd_state fuzz_random;

static int fuzz_end_open(struct test_end *end)
{
	DAT_LMR_TRIPLET iov = test_segment(&fuzz_mem, 0, 64);
	DAT_EP_ATTR attr = KDAT_EP_ATTR_INIT;
	int i, err;

	attr.max_message_size = 64;
	attr.max_rdma_size = KDRPC_MAX_DATA;
	attr.max_recv_dtos = RECEIVES;
	attr.max_recv_iov = 1;
	attr.max_request_dtos = 8;
	attr.max_request_iov = 1;
	attr.max_rdma_read_in = KDRPC_READS;
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
};

static const struct bad_request bad_requests[] = {
	{ "an empty message", 0, 0, KDRPC_ECHO },
	{ "a short one", 23, 0, KDRPC_ECHO },
	{ "a long one", 25, 0, KDRPC_ECHO },
	{ "a number too high", 24, KDRPC_SLOTS, KDRPC_ECHO },
	{ "the highest number", 24, 65535, KDRPC_ECHO },
	{ "no operation", 24, 0, 0 },
	{ "an unknown operation", 24, 0, KDRPC_GET + 1 },
	{ "the highest operation", 24, 0, 255 },
	{ "an echo with memory", 24, 0, KDRPC_ECHO, 1, 1 },
	{ "a put without memory", 24, 0, KDRPC_PUT },
	{ "a get without memory", 24, 0, KDRPC_GET },
	{ "a put of too much", 24, 0, KDRPC_PUT, KDRPC_MAX_DATA + 1, 1 },
	{ "a get of too much", 24, 0, KDRPC_GET, 0xffffffff, 1 },
	{ "a put of memory that is not lent", 24, 0, KDRPC_PUT, 64, 0x123400 },
	{ "a get into memory that is not lent", 24, 15, KDRPC_GET, KDRPC_MAX_DATA, 0x123400 },
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
	const struct kdrpc_hello hello = { cpu_to_le32(KDRPC_MAGIC), cpu_to_le32(KDRPC_VERSION) };
	struct test_end end = {};
	DAT_LMR_TRIPLET iov;
	int i, err;

	err = fuzz_connect(&end, to, &hello, sizeof(hello));
	if (!err && end.outcome != DAT_CONNECTION_EVENT_ESTABLISHED)
		err = fail("%s", kdat_event_name(end.outcome));
	for (i = 0; !err && i < times; i++) {
		iov = test_segment(&fuzz_mem, 1024 + 64 * i, length);
		/* The connection may be over already. */
		dat_ep_post_send(end.ep, 1, &iov, test_cookie(&end), 0);
	}
	if (!err && wait && !await(READ_ONCE(end.overs)))
		err = fail("the server does not end the connection");
	kdat_ep_drain(end.ep);
	return FREE(dat_ep_free, &end.ep) ?: err;
}

static int fuzz_request(const struct sockaddr_storage *to, const struct bad_request *bad)
{
	struct kdrpc_request *msg = (void *)(fuzz_mem.p + 1024);

	test_now = bad->name;
	*msg = (struct kdrpc_request) {
		.slot = cpu_to_le16(bad->slot),
		.op = bad->op,
		.length = cpu_to_le32(bad->bytes),
		.key = cpu_to_le32(bad->key),
	};
	return fuzz_send(to, bad->length, 1, true);
}

/* Most of it is right, so that it gets further. */
static int fuzz_at_random(const struct sockaddr_storage *to)
{
	struct kdrpc_request *msg;
	int i;

	test_now = "at random";
	for (i = 0; i < 8; i++) {
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
	return fuzz_send(to, sizeof(*msg), 8, false);
}

static int fuzz_client(void)
{
	struct sockaddr_storage to = {};
	int err, i, n;

	err = inet_pton_with_scope(&init_net, AF_UNSPEC, connect, NULL, &to);
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
	u32 key;		/* invalidated, beside the one that was lent */
	bool echo_twice;	/* an echo is answered rightly, but twice */
} bad_answers[] = {
	{ 7 },
	{ 0 },
	{ sizeof(struct kdrpc_answer), .slot = KDRPC_SLOTS },
	{ sizeof(struct kdrpc_answer), .slot = 65535 },
	{ sizeof(struct kdrpc_answer), .reserved = 1 },
	{ sizeof(struct kdrpc_answer), .turn = 1 },
	{ 9, .echo_twice = true },
	{ sizeof(struct kdrpc_answer), .key = 0x100 },
};

#define ANSWER_AT	(64 * RECEIVES)

/* Only the first request of a client is answered. */
static void fuzz_heard(struct test_peer *peer, void *message)
{
	const struct bad_answer *bad = &bad_answers[peer->n % ARRAY_SIZE(bad_answers)];
	struct kdrpc_answer *answer = (void *)(peer->mem.p + ANSWER_AT);
	u8 *answered = peer->mem.p + ANSWER_AT + 63;	/* behind what is sent */
	const struct kdrpc_request *msg = message;
	u32 length = bad->length;
	int times = 1;

	if (*answered)
		return;
	*answered = 1;
	*answer = (struct kdrpc_answer) {
		.slot = bad->slot ? cpu_to_le16(bad->slot) : msg->slot,
		.turn = msg->turn + bad->turn,
		.reserved = bad->reserved,
	};
	if (bad->echo_twice && msg->op == KDRPC_ECHO) {
		answer->value = msg->value;
		length = sizeof(*answer);
		times = 2;
	}
	while (times--)
		test_peer_send(peer, ANSWER_AT, length,
			       bad->key ? le32_to_cpu(msg->key) + bad->key : 0, 0);
	WRITE_ONCE(faults, faults + 1);
}

static struct test_server fuzz_server = {
	.attr = {
		.max_message_size = 64,
		.max_recv_dtos = RECEIVES, .max_recv_iov = 1,
		.max_request_dtos = 4, .max_request_iov = 1,
		.max_rdma_read_out = KDRPC_READS,
		.srq_soft_hw = DAT_HW_DEFAULT,
	},
	.more = 64,
	.peer_size = sizeof(struct test_peer),
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
