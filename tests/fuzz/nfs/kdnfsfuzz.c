// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * kdnfsfuzz - a server that breaks RPC-over-RDMA (README.md).
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/prandom.h>
#include "../../lib/server.h"
#include "../../../ulp_example/nfsrdma/proto.h"

#define CALLS		32	/* of a client at a time */
#define SIZE		4096	/* of a message */

static char *ia;
static ushort port = KX_PORT;
static uint seed = 1;
static uint faults;

module_param(ia, charp, 0444);
MODULE_PARM_DESC(ia, "interface adapter");
module_param(port, ushort, 0444);
module_param(seed, uint, 0444);
MODULE_PARM_DESC(seed, "what is at random follows from it");
module_param(faults, uint, 0444);
MODULE_PARM_DESC(faults, "read: wrong replies that were sent");

TEST_STATE;

static struct rnd_state fuzz_random;

/* Words that are put in when it is sent: the XID of the call, and others. */
enum { XID = 0xf0000001, XID2, XID3, STATUS };

#define HEADER(credits, proc)	XID, KX_VERSION, credits, KX_PROC_##proc
#define NO_LISTS		0, 0, 0
#define ARRAY(length)		1, 1, 0x1234, length, 0, 0x5678
/* An RPC reply: accepted, and executed if there was nothing to do (the NULL procedure). */
#define REPLY			XID, 1, 0, 0, 0, STATUS

/* Replies that must not be, one after the other. */
static const struct fault {
	u32 words[20], n;
	u32 least, length;	/* as long as that, or somewhere from there on; 0: as its words */
	u32 times, key;
} fuzz_faults[] = {
#define FAULT(...)	.words = { __VA_ARGS__ }, .n = sizeof((u32[]){ __VA_ARGS__ }) / 4
	/* shorter than any header; ends in the lists; another XID */
	{ FAULT(XID), .least = 0, .length = 16 },
	{ FAULT(HEADER(1, MSG)), .least = 16, .length = 28 },
	{ FAULT(XID2, KX_VERSION, 1, KX_PROC_MSG, NO_LISTS, XID2, 1, 0, 0, 0, STATUS) },
	/* no credits, and a good reply; very many */
	{ FAULT(HEADER(0, MSG), NO_LISTS, REPLY) },
	{ FAULT(HEADER(0xffffffff, MSG), NO_LISTS, REPLY) },
	/* more in a Write chunk than there is, or at all; a Reply chunk that was not offered */
	{ FAULT(HEADER(8, MSG), 0, ARRAY(0xffffffff), 0, 0, REPLY) },
	{ FAULT(HEADER(8, NOMSG), 0, 0, ARRAY(100)) },
	/* segments without number */
	{ FAULT(HEADER(8, MSG), 0, 1, 0xfffffff0), .least = SIZE, .length = SIZE + 1 },
	/* errors; one that there is not; one without its kind */
	{ FAULT(HEADER(8, ERROR), KX_ERR_VERS, 2, 2) },
	{ FAULT(HEADER(8, ERROR), KX_ERR_CHUNK) },
	{ FAULT(HEADER(8, ERROR), 77) },
	{ FAULT(HEADER(8, ERROR)) },
	/* another version; invalidates a key that there is not; twice */
	{ FAULT(XID, 2, 8, KX_PROC_MSG, NO_LISTS, REPLY) },
	{ FAULT(HEADER(8, MSG), NO_LISTS, REPLY), .key = 0x12345600 },
	{ FAULT(HEADER(8, MSG), NO_LISTS, REPLY), .times = 2 },
	/* a Read list */
	{ FAULT(HEADER(8, MSG), 1, NO_LISTS, NO_LISTS, REPLY) },
	/* a call of the server, of no program, many times: nobody serves it yet */
	{ FAULT(XID3, KX_VERSION, 8, KX_PROC_MSG, NO_LISTS, XID3, 0, 2, 0x40000000), .times = 48 },
	/* a reply that is longer than any; a header and no RPC message */
	{ FAULT(HEADER(8, MSG), NO_LISTS, REPLY), .least = SIZE, .length = SIZE + 1 },
	{ FAULT(HEADER(8, MSG), NO_LISTS) },
	/* at random behind the XID: see below */
	{ FAULT(XID, KX_VERSION) },
};

static u32 fuzz_below(u32 n)
{
	return prandom_u32_state(&fuzz_random) % n;
}

static u32 fuzz_word(u32 word, u32 xid, bool null)
{
	switch (word) {
	case XID:
		return xid;
	case XID2:
		return xid ^ 0x10000;
	case XID3:
		return xid ^ 0x20000;
	case STATUS:
		return null ? 0 : 5;
	default:
		return word;
	}
}

/* The RPC message of a call is behind the lists, if there are none. */
static void fuzz_heard(struct test_peer *peer, void *message)
{
	const struct fault *fault = &fuzz_faults[faults % ARRAY_SIZE(fuzz_faults)];
	u32 at = CALLS * SIZE + ((u8 *)message - peer->mem.p), length, times, i, n = fault->n;
	__be32 *out = (__be32 *)(peer->mem.p + at);
	const __be32 *call = message;
	bool null = !call[4] && !call[5] && !call[6] && !call[12];

	memset(out, 0, SIZE);
	for (i = 0; i < n; i++)
		out[i] = cpu_to_be32(fuzz_word(fault->words[i], be32_to_cpu(call[0]), null));
	if (fault == &fuzz_faults[ARRAY_SIZE(fuzz_faults) - 1]) {
		for (i = fuzz_below(64); i; i--)
			out[n++] = cpu_to_be32(prandom_u32_state(&fuzz_random) >> fuzz_below(32));
	}
	length = fault->length ? fault->least + fuzz_below(fault->length - fault->least) : 4 * n;
	WRITE_ONCE(faults, faults + 1);
	for (times = fault->times ?: 1; times; times--)
		test_peer_send(peer, at, length, fault->key, 0);
}

static const u8 fuzz_hello[] = { 0xf6, 0xab, 0x0e, 0x18, 1, 0, 3, 3 };

static struct test_server fuzz_server = {
	.attr = {
		.max_message_size = SIZE,
		.max_recv_dtos = CALLS, .max_recv_iov = 1,
		.max_request_dtos = 256, .max_request_iov = 1,
		.max_rdma_read_out = 1,
		.srq_soft_hw = DAT_HW_DEFAULT,
	},
	.more = CALLS * SIZE,
	.peer_size = sizeof(struct test_peer),
	.hello = fuzz_hello, .hello_size = sizeof(fuzz_hello),
	.heard = fuzz_heard,
};

static void fuzz_stop(void)
{
	test_server_close(&fuzz_server);
	test_ia_close(&fuzz_server.ia);
}

static int __init fuzz_init(void)
{
	int err;

	prandom_seed_state(&fuzz_random, seed);
	err = test_ia_open(&fuzz_server.ia, ia) ?:
	      test_server_open(&fuzz_server, port, test_cm_upcall);
	if (err)
		fuzz_stop();
	return err;
}

module_init(fuzz_init);
module_exit(fuzz_stop);
MODULE_DESCRIPTION("a hostile server of NFS/RDMA");
MODULE_AUTHOR("The kDAPL for Linux authors");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION("1.0");
