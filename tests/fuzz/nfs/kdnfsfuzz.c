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
static bool early;
static uint faults;
static uint requests;
static uint beyond;

module_param(ia, charp, 0444);
MODULE_PARM_DESC(ia, "interface adapter");
module_param(port, ushort, 0444);
module_param(seed, uint, 0444);
MODULE_PARM_DESC(seed, "what is at random follows from it");
module_param(faults, uint, 0444);
MODULE_PARM_DESC(faults, "read: wrong replies that were sent");
module_param(early, bool, 0644);
MODULE_PARM_DESC(early, "instead: hang up at each call; answer it as soon as there is a connection");
module_param(requests, uint, 0444);
MODULE_PARM_DESC(requests, "read: calls that came while early was set");
module_param(beyond, uint, 0444);
MODULE_PARM_DESC(beyond, "read: those that came in place of one that was answered before it was sent");

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

struct fuzz_peer {
	struct test_peer peer;	/* first */
	__be32 answered;	/* the XID of the call that was answered early */
};

static __be32 fuzz_xid;		/* of the call that is to be answered early */

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

/*
 * Hang up at a call; answer it as soon as there is the next connection. Then this call must be what
 * comes first: the next one comes if the client takes an answer to what it has not sent. It may
 * after that, for the answer to a call may come late, so the next connection has none. A client of
 * Linux counts its XIDs in its own order of bytes.
 */
static void fuzz_hang_up(struct fuzz_peer *peer, __be32 xid)
{
	WRITE_ONCE(requests, requests + 1);
	if (peer->answered && (__force u32)xid == (__force u32)peer->answered + 1)
		WRITE_ONCE(beyond, beyond + 1);
	WRITE_ONCE(fuzz_xid, peer->answered ? 0 : xid);
	dat_ep_disconnect(peer->peer.end.ep, DAT_CLOSE_ABRUPT_FLAG);
}

static void fuzz_conn_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct fuzz_peer *peer = test_context(event->event_data.connect_event_data.ep_handle);
	static const u32 words[] = { HEADER(8, MSG), NO_LISTS, REPLY };
	__be32 xid = READ_ONCE(fuzz_xid), *out;
	u32 i;

	test_conn_event(event);
	if (!READ_ONCE(early) || !xid || !peer ||
	    event->event_number != DAT_CONNECTION_EVENT_ESTABLISHED)
		return;
	WRITE_ONCE(peer->answered, xid);
	out = (__be32 *)(peer->peer.mem.p + CALLS * SIZE);
	for (i = 0; i < ARRAY_SIZE(words); i++)
		out[i] = cpu_to_be32(fuzz_word(words[i], be32_to_cpu(xid), true));
	test_peer_send(&peer->peer, CALLS * SIZE, sizeof(words), 0, 0);
}

/* The RPC message of a call is behind the lists, if there are none. */
static void fuzz_heard(struct test_peer *peer, void *message)
{
	const struct fault *fault = &fuzz_faults[faults % ARRAY_SIZE(fuzz_faults)];
	u32 at = CALLS * SIZE + ((u8 *)message - peer->mem.p), length, times, i, n = fault->n;
	__be32 *out = (__be32 *)(peer->mem.p + at);
	const __be32 *call = message;
	bool null = !call[4] && !call[5] && !call[6] && !call[12];

	if (READ_ONCE(early)) {
		fuzz_hang_up(container_of(peer, struct fuzz_peer, peer), call[0]);
		return;
	}
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
	.peer_size = sizeof(struct fuzz_peer),
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
	      test_server_open(&fuzz_server, port, fuzz_conn_upcall);
	if (err)
		fuzz_stop();
	return err;
}

module_init(fuzz_init);
module_exit(fuzz_stop);
MODULE_DESCRIPTION("a hostile server of NFS/RDMA");
MODULE_AUTHOR("The kDAPL for Linux authors");
MODULE_LICENSE("Dual BSD/GPL");
