// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * kdnfs_test - headers of RPC-over-RDMA: each way of moving a call against its bytes, the decoder
 * against messages that end too early and against millions that are wrong.
 */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include "../../../ulp_example/nfsrdma/marshal.c"
#include "../../../ulp_example/nfsrdma/place.c"

#define XID	0x12345678

/* ---- calls, as bytes ---- */

struct call_case {
	const char *name;
	struct kx_call call;
	u32 nwords;
	u32 words[40];
};

static const struct call_case call_cases[] = {
	{
		"all inline",
		{ .credits = 128, .proc = KX_PROC_MSG },
		7, { XID, 1, 128, 0, 0, 0, 0 },
	}, {
		"data of a WRITE: a Read chunk at its position",
		{
			.credits = 128, .proc = KX_PROC_MSG, .position = 132,
			.read = { 1, { { 0xaabbcc01, 65536, 0x123456789abcd000 } } },
		},
		13, { XID, 1, 128, 0, 1, 132, 0xaabbcc01, 65536, 0x12345678, 0x9abcd000, 0, 0, 0 },
	}, {
		"the same in two segments",
		{
			.credits = 128, .proc = KX_PROC_MSG, .position = 132,
			.read = { 2, { { 0x101, 4096, 0x1000 }, { 0x202, 100, 0x5000 } } },
		},
		19, { XID, 1, 128, 0, 1, 132, 0x101, 4096, 0, 0x1000,
		      1, 132, 0x202, 100, 0, 0x5000, 0, 0, 0 },
	}, {
		"a long call: a Read chunk at position 0",
		{
			.credits = 128, .proc = KX_PROC_NOMSG,
			.read = { 2, { { 0x101, 140, 0x1000 }, { 0x202, 8000, 0x5000 } } },
		},
		19, { XID, 1, 128, 1, 1, 0, 0x101, 140, 0, 0x1000,
		      1, 0, 0x202, 8000, 0, 0x5000, 0, 0, 0 },
	}, {
		"data of a READ: a Write chunk",
		{
			.credits = 128, .proc = KX_PROC_MSG,
			.write = { 1, { { 0x303, 4096, 0xffff000000000010 } } },
		},
		13, { XID, 1, 128, 0, 0, 1, 1, 0x303, 4096, 0xffff0000, 0x10, 0, 0 },
	}, {
		"an odd READ: a Write chunk with room for the padding",
		{
			.credits = 128, .proc = KX_PROC_MSG,
			.write = { 2, { { 0x303, 4097, 0x10 }, { 0x404, 3, 0x99 } } },
		},
		17, { XID, 1, 128, 0, 0, 1, 2, 0x303, 4097, 0, 0x10, 0x404, 3, 0, 0x99, 0, 0 },
	}, {
		"a long reply: a Reply chunk",
		{
			.credits = 128, .proc = KX_PROC_MSG,
			.reply = { 3, { { 1, 200, 0x10 }, { 2, 32768, 0x20 }, { 3, 8, 0x30 } } },
		},
		20, { XID, 1, 128, 0, 0, 0, 1, 3, 1, 200, 0, 0x10, 2, 32768, 0, 0x20,
		      3, 8, 0, 0x30 },
	}, {
		"a long call and a long reply",
		{
			.credits = 1, .proc = KX_PROC_NOMSG,
			.read = { 1, { { 7, 5000, 0x70 } } },
			.reply = { 1, { { 8, 6000, 0x80 } } },
		},
		18, { XID, 1, 1, 1, 1, 0, 7, 5000, 0, 0x70, 0, 0, 1, 1, 8, 6000, 0, 0x80 },
	},
};

static void kdnfs_call(struct kunit *test)
{
	__be32 bytes[64];
	u32 i, j;

	for (i = 0; i < ARRAY_SIZE(call_cases); i++) {
		const struct call_case *c = &call_cases[i];
		struct kx_call call = c->call;
		int length = 4 * c->nwords;

		call.xid = cpu_to_be32(XID);
		KUNIT_EXPECT_EQ_MSG(test, kx_call_encode(bytes, sizeof(bytes), &call), length,
				    "%s", c->name);
		for (j = 0; j < c->nwords; j++)
			KUNIT_EXPECT_EQ_MSG(test, be32_to_cpu(bytes[j]), c->words[j],
					    "%s: word %u", c->name, j);
		/* In a buffer that is too small nothing is written behind its end. */
		for (j = 0; j < length; j++) {
			memset(bytes, 0xa5, sizeof(bytes));
			KUNIT_EXPECT_EQ(test, kx_call_encode(bytes, j, &call), -EMSGSIZE);
			KUNIT_EXPECT_EQ(test, ((u8 *)bytes)[j], 0xa5);
		}
	}
}

/* The longest header is as long as what is kept free for it. */
static void kdnfs_longest(struct kunit *test)
{
	struct kx_call call = { .read.n = KX_SEGS, .reply.n = KX_SEGS };
	__be32 bytes[128];

	KUNIT_EXPECT_EQ(test, kx_call_encode(bytes, sizeof(bytes), &call), KX_CALL_HEADER_MAX);
	call = (struct kx_call) { .write.n = KX_SEGS_PAD };
	KUNIT_EXPECT_EQ(test, kx_call_encode(bytes, sizeof(bytes), &call), KX_REPLY_HEADER_MAX);
}

/* ---- replies ---- */

/* What a call has offered that all replies below belong to. */
static const struct kx_call offer = {
	.write = { 2, { { 0x303, 4096, 0x10 }, { 0x404, 3, 0x99 } } },
	.reply = { 2, { { 1, 200, 0x10 }, { 2, 1000, 0x20 } } },
};

struct reply_case {
	const char *name;
	int err;
	u32 written, replied, error;
	u32 nwords;		/* of the header */
	u32 words[24];
};

static const struct reply_case reply_cases[] = {
	{ "inline", 0, 0, 0, 0, 7, { XID, 1, 32, 0, 0, 0, 0 } },
	{ "data, all of it", 0, 4096, 0, 0, 17,
	  { XID, 1, 32, 0, 0, 1, 2, 0x303, 4096, 0, 0x10, 0x404, 0, 0, 0x99, 0, 0 } },
	{ "data and its padding", 0, 4099, 0, 0, 17,
	  { XID, 1, 32, 0, 0, 1, 2, 0x303, 4096, 0, 0x10, 0x404, 3, 0, 0x99, 0, 0 } },
	{ "data, some", 0, 17, 0, 0, 17,
	  { XID, 1, 32, 0, 0, 1, 2, 0x303, 17, 0, 0x10, 0x404, 0, 0, 0x99, 0, 0 } },
	{ "data, none", 0, 0, 0, 0, 17,
	  { XID, 1, 32, 0, 0, 1, 2, 0x303, 0, 0, 0x10, 0x404, 0, 0, 0x99, 0, 0 } },
	{ "data, the unused segment left out", 0, 5, 0, 0, 13,
	  { XID, 1, 32, 0, 0, 1, 1, 0x303, 5, 0, 0x10, 0, 0 } },
	{ "an unused Reply chunk", 0, 0, 0, 0, 16,
	  { XID, 1, 32, 0, 0, 0, 1, 2, 1, 0, 0, 0x10, 2, 0, 0, 0x20 } },
	{ "a long reply", 0, 0, 300, 0, 16,
	  { XID, 1, 32, 1, 0, 0, 1, 2, 1, 200, 0, 0x10, 2, 100, 0, 0x20 } },
	{ "ERR_VERS", 0, 0, 0, KX_ERR_VERS, 7, { XID, 1, 32, 4, 1, 2, 3 } },
	{ "ERR_CHUNK", 0, 0, 0, KX_ERR_CHUNK, 5, { XID, 1, 32, 4, 2 } },
	{ "an unknown error", 0, 0, 0, 99, 5, { XID, 1, 32, 4, 99 } },

	{ "a Read list", -EPROTO, .nwords = 13,
	  .words = { XID, 1, 32, 0, 1, 0, 5, 100, 0, 0, 0, 0, 0 } },
	{ "two Write chunks", -EPROTO, .nwords = 19,
	  .words = { XID, 1, 32, 0, 0, 1, 1, 0x303, 5, 0, 0x10, 1, 1, 0x303, 5, 0, 0x10, 0, 0 } },
	{ "more segments than were offered", -EPROTO, .nwords = 21,
	  .words = { XID, 1, 32, 0, 0, 1, 3, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 0, 0 } },
	{ "many more", -EPROTO, .nwords = 9,
	  .words = { XID, 1, 32, 0, 0, 1, 0xffffffff, 0, 0 } },
	{ "a segment longer than was offered", -EPROTO, .nwords = 13,
	  .words = { XID, 1, 32, 0, 0, 1, 1, 0x303, 4097, 0, 0x10, 0, 0 } },
	{ "the longest segment", -EPROTO, .nwords = 13,
	  .words = { XID, 1, 32, 0, 0, 1, 1, 0x303, 0xffffffff, 0, 0x10, 0, 0 } },
	{ "a hole in the data", -EPROTO, .nwords = 17,
	  .words = { XID, 1, 32, 0, 0, 1, 2, 0x303, 17, 0, 0x10, 0x404, 3, 0, 0x99, 0, 0 } },
	{ "inline and in a Reply chunk", -EPROTO, .nwords = 12,
	  .words = { XID, 1, 32, 0, 0, 0, 1, 1, 1, 200, 0, 0x10 } },
	{ "neither inline nor in a Reply chunk", -EPROTO, .nwords = 7,
	  .words = { XID, 1, 32, 1, 0, 0, 0 } },
	{ "an empty Reply chunk without a message", -EPROTO, .nwords = 12,
	  .words = { XID, 1, 32, 1, 0, 0, 1, 1, 1, 0, 0, 0x10 } },
	{ "a Write and a Reply chunk", -EPROTO, .nwords = 18,
	  .words = { XID, 1, 32, 1, 0, 1, 1, 0x303, 5, 0, 0x10, 0, 1, 1, 1, 200, 0, 0x10 } },
	{ "type MSGP", -EPROTO, .nwords = 7, .words = { XID, 1, 32, 2, 0, 0, 0 } },
	{ "type DONE", -EPROTO, .nwords = 7, .words = { XID, 1, 32, 3, 0, 0, 0 } },
	{ "an unknown type", -EPROTO, .nwords = 7, .words = { XID, 1, 32, 5, 0, 0, 0 } },
};

static u32 kdnfs_bytes(__be32 *bytes, const u32 *words, u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		bytes[i] = cpu_to_be32(words[i]);
	return 4 * n;
}

static int kdnfs_decode(const void *p, u32 length, const struct kx_call *call,
			struct kx_reply *reply)
{
	return kx_reply_fixed(p, length, reply) ?: kx_reply_decode(p, length, call, reply);
}

static void kdnfs_reply(struct kunit *test)
{
	struct kx_reply reply;
	__be32 bytes[32];
	u32 i, length;

	for (i = 0; i < ARRAY_SIZE(reply_cases); i++) {
		const struct reply_case *c = &reply_cases[i];

		length = kdnfs_bytes(bytes, c->words, c->nwords);
		KUNIT_EXPECT_EQ_MSG(test, kdnfs_decode(bytes, length, &offer, &reply), c->err,
				    "%s", c->name);
		if (c->err)
			continue;
		KUNIT_EXPECT_EQ_MSG(test, be32_to_cpu(reply.xid), XID, "%s", c->name);
		KUNIT_EXPECT_EQ_MSG(test, reply.credits, 32u, "%s", c->name);
		KUNIT_EXPECT_EQ_MSG(test, reply.written, c->written, "%s", c->name);
		KUNIT_EXPECT_EQ_MSG(test, reply.replied, c->replied, "%s", c->name);
		KUNIT_EXPECT_EQ_MSG(test, reply.error, c->error, "%s", c->name);
		KUNIT_EXPECT_EQ_MSG(test, reply.length, length, "%s", c->name);
	}
}

/*
 * Each message that ends inside its header is refused. It lies at the very end of a buffer of its
 * own, so that KASAN notices a byte read behind it.
 */
static void kdnfs_truncated(struct kunit *test)
{
	struct kx_reply reply;
	__be32 bytes[32];
	u32 i, n, length;
	void *copy;

	for (i = 0; i < ARRAY_SIZE(reply_cases); i++) {
		length = kdnfs_bytes(bytes, reply_cases[i].words, reply_cases[i].nwords);
		for (n = 0; n < length; n++) {
			copy = kmalloc(n, GFP_KERNEL);
			KUNIT_ASSERT_NOT_NULL(test, copy);
			memcpy(copy, bytes, n);
			KUNIT_EXPECT_EQ_MSG(test, kdnfs_decode(copy, n, &offer, &reply), -EPROTO,
					    "%s, %u of %u bytes", reply_cases[i].name, n, length);
			kfree(copy);
		}
	}
}

/* Whatever is sent, the result stays within what was offered and what has arrived. */
static void kdnfs_random(struct kunit *test)
{
	struct rnd_state rnd;
	struct kx_reply reply;
	__be32 *bytes = kunit_kzalloc(test, 128, GFP_KERNEL);
	u32 i, j, n, length, accepted = 0;

	KUNIT_ASSERT_NOT_NULL(test, bytes);
	prandom_seed_state(&rnd, 26);
	for (i = 0; i < 300000; i++) {
		const struct reply_case *c =
			&reply_cases[prandom_u32_state(&rnd) % ARRAY_SIZE(reply_cases)];

		length = kdnfs_bytes(bytes, c->words, c->nwords);
		for (n = prandom_u32_state(&rnd) % 4; n; n--) {
			j = prandom_u32_state(&rnd) % c->nwords;
			bytes[j] = cpu_to_be32(prandom_u32_state(&rnd) >>
					       (prandom_u32_state(&rnd) % 32));
		}
		length = min(128u, length + prandom_u32_state(&rnd) % 8);
		if (kdnfs_decode(bytes, length, &offer, &reply))
			continue;
		accepted++;
		if (reply.length > length || reply.written > 4099 || reply.replied > 1200)
			KUNIT_FAIL(test, "round %u: length %u of %u, written %u, replied %u", i,
				   reply.length, length, reply.written, reply.replied);
		if (reply.proc == KX_PROC_MSG && reply.replied)
			KUNIT_FAIL(test, "round %u: two replies", i);
	}
	KUNIT_EXPECT_GT(test, accepted, 1000u);
}

/* A call without chunks gives a server nothing to write to. */
static void kdnfs_nothing_offered(struct kunit *test)
{
	const u32 write[] = { XID, 1, 32, 0, 0, 1, 1, 0x303, 1, 0, 0x10, 0, 0 };
	const u32 none[] = { XID, 1, 32, 0, 0, 1, 0, 0, 0 };
	const struct kx_call call = {};
	struct kx_reply reply;
	__be32 bytes[16];

	kdnfs_bytes(bytes, write, ARRAY_SIZE(write));
	KUNIT_EXPECT_EQ(test, kdnfs_decode(bytes, sizeof(write), &call, &reply), -EPROTO);
	kdnfs_bytes(bytes, none, ARRAY_SIZE(none));
	KUNIT_EXPECT_EQ(test, kdnfs_decode(bytes, sizeof(none), &call, &reply), 0);
}

static void kdnfs_reverse(struct kunit *test)
{
	u32 words[] = { XID, 1, 16, 0, 0, 0, 0, XID, 0, 2, 100, 1 };
	struct kx_reply reply;
	__be32 bytes[ARRAY_SIZE(words)];
	u32 n, i;

	n = kdnfs_bytes(bytes, words, ARRAY_SIZE(words));
	KUNIT_ASSERT_EQ(test, kx_reply_fixed(bytes, n, &reply), 0);
	KUNIT_EXPECT_TRUE(test, kx_reverse_call(bytes, n, &reply));
	KUNIT_EXPECT_TRUE(test, kx_reverse_call(bytes, 36, &reply));
	for (i = KX_FIXED_LEN; i < 36; i++)
		KUNIT_EXPECT_FALSE(test, kx_reverse_call(bytes, i, &reply));
	/* Another type, a chunk, another XID, a reply. */
	for (i = 3; i < 9; i++) {
		bytes[i] = cpu_to_be32(words[i] + 1);
		KUNIT_ASSERT_EQ(test, kx_reply_fixed(bytes, n, &reply), 0);
		KUNIT_EXPECT_FALSE_MSG(test, kx_reverse_call(bytes, n, &reply), "word %u", i);
		bytes[i] = cpu_to_be32(words[i]);
	}
}

/* ---- what others say ---- */

/**
 * struct golden - a call of the kernel's client, and the answer of the kernel's server
 * @name: program, version and procedure
 * @ncall: words in the header of the call
 * @call: these words
 * @nreply: words in the header of the answer
 * @reply: these words
 * @written: bytes that it has written to the Write chunk
 * @replied: and to the Reply chunk
 */
struct golden {
	const char *name;
	u32 ncall;
	u32 call[40];
	u32 nreply;
	u32 reply[40];
	u32 written, replied;
};

#include "golden.h"

static const u32 *golden_segment(const u32 *w, struct kx_chunk *chunk)
{
	chunk->seg[chunk->n++] = (struct kx_seg) { w[0], w[1], (u64)w[2] << 32 | w[3] };
	return w + 4;
}

/* A Write or Reply chunk, behind the word that announces it. */
static const u32 *golden_chunk(const u32 *w, struct kx_chunk *chunk)
{
	u32 n = *w++;

	while (n--)
		w = golden_segment(w, chunk);
	return w;
}

/* What our client would have to lend to say the same. */
static void golden_call(const struct golden *g, struct kx_call *call)
{
	const u32 *w = g->call;

	*call = (struct kx_call) {
		.xid = cpu_to_be32(w[0]), .credits = w[2], .proc = w[3],
	};
	w += 4;
	while (*w++) {
		call->position = *w++;
		w = golden_segment(w, &call->read);
	}
	while (*w++)
		w = golden_chunk(w, &call->write);
	if (*w++)
		w = golden_chunk(w, &call->reply);
}

/* The kernel's client says it in the same bytes, and its server's answers are understood. */
static void kdnfs_golden(struct kunit *test)
{
	__be32 bytes[40], want[40];
	struct kx_reply reply;
	struct kx_call call;
	u32 i, length;

	for (i = 0; i < ARRAY_SIZE(golden); i++) {
		const struct golden *g = &golden[i];

		length = kdnfs_bytes(want, g->call, g->ncall);
		golden_call(g, &call);
		KUNIT_EXPECT_EQ_MSG(test, kx_call_encode(bytes, sizeof(bytes), &call), (int)length,
				    "%s", g->name);
		KUNIT_EXPECT_EQ_MSG(test, memcmp(bytes, want, length), 0, "%s", g->name);
		length = kdnfs_bytes(bytes, g->reply, g->nreply);
		KUNIT_EXPECT_EQ_MSG(test, kdnfs_decode(bytes, length, &call, &reply), 0,
				    "%s", g->name);
		KUNIT_EXPECT_TRUE_MSG(test, reply.xid == call.xid, "%s", g->name);
		KUNIT_EXPECT_EQ_MSG(test, reply.length, length, "%s", g->name);
		KUNIT_EXPECT_EQ_MSG(test, reply.written, g->written, "%s", g->name);
		KUNIT_EXPECT_EQ_MSG(test, reply.replied, g->replied, "%s", g->name);
		/* Not without what the call has lent. */
		if (!g->written && !g->replied)
			continue;
		call.write.n = 0;
		call.reply.n = 0;
		KUNIT_EXPECT_EQ_MSG(test, kdnfs_decode(bytes, length, &call, &reply), -EPROTO,
				    "%s", g->name);
	}
}

/* ---- choices ---- */

static void kdnfs_private(struct kunit *test)
{
	static const u8 ours[] = { 0xf6, 0xab, 0x0e, 0x18, 1, 1, 3, 3 };
	static const u8 server[12] = { 0xf6, 0xab, 0x0e, 0x18, 1, 0, 0, 63 };	/* padded */
	static const u8 other[] = { 0xf6, 0xab, 0x0e, 0x19, 1, 1, 3, 3 };
	static const u8 newer[] = { 0xf6, 0xab, 0x0e, 0x18, 2, 1, 3, 3 };
	struct kx_private a = { .invalidate = true, .send = 4096, .recv = 4096 }, b;
	struct kx_limits limits;
	u8 bytes[8];

	kx_private_encode(bytes, &a);
	KUNIT_EXPECT_EQ(test, memcmp(bytes, ours, sizeof(ours)), 0);
	kx_private_decode(ours, sizeof(ours), &b);
	KUNIT_EXPECT_TRUE(test, b.invalidate);
	KUNIT_EXPECT_EQ(test, b.send, 4096u);
	KUNIT_EXPECT_EQ(test, b.recv, 4096u);
	kx_private_decode(server, sizeof(server), &b);
	KUNIT_EXPECT_FALSE(test, b.invalidate);
	KUNIT_EXPECT_EQ(test, b.send, 1024u);
	KUNIT_EXPECT_EQ(test, b.recv, 65536u);
	kx_limits_of(&a, &b, &limits);
	KUNIT_EXPECT_EQ(test, limits.send, 4096u - KX_CALL_HEADER_MAX);
	KUNIT_EXPECT_EQ(test, limits.recv, 1024u - KX_REPLY_HEADER_MAX);
	/* Without private data, with too little, with that of another protocol or version. */
	kx_private_decode(NULL, 0, &b);
	KUNIT_EXPECT_EQ(test, b.recv, 1024u);
	kx_private_decode(server, 7, &b);
	KUNIT_EXPECT_EQ(test, b.recv, 1024u);
	kx_private_decode(other, sizeof(other), &b);
	KUNIT_EXPECT_FALSE(test, b.invalidate);
	KUNIT_EXPECT_EQ(test, b.recv, 1024u);
	kx_private_decode(newer, sizeof(newer), &b);
	KUNIT_EXPECT_EQ(test, b.recv, 1024u);
}

static void kdnfs_ways(struct kunit *test)
{
	static const struct {
		struct kx_message msg;
		enum kx_way way;
	} cases[] = {
		{ { 100, 0, 0, false }, KX_WAY_INLINE },
		{ { 1000, 0, 0, true }, KX_WAY_INLINE },
		{ { 600, 300, 100, true }, KX_WAY_INLINE },
		{ { 600, 301, 100, true }, KX_WAY_DATA },
		{ { 600, 301, 100, false }, KX_WAY_ALL },
		{ { 100, 1048576, 4, true }, KX_WAY_DATA },
		{ { 996, 1048576, 4, true }, KX_WAY_DATA },
		{ { 997, 1048576, 4, true }, KX_WAY_ALL },
		{ { 1001, 0, 0, true }, KX_WAY_ALL },
		{ { 0xffffffff, 0xffffffff, 0xffffffff, true }, KX_WAY_ALL },
	};
	const struct kx_limits limits = { 1000, 1000 };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		KUNIT_EXPECT_EQ_MSG(test, kx_call_way(&limits, &cases[i].msg), cases[i].way,
				    "case %u", i);
		KUNIT_EXPECT_EQ_MSG(test, kx_reply_way(&limits, &cases[i].msg), cases[i].way,
				    "case %u", i);
	}
}

/* 1 MiB at each offset: no piece has too many pages, and there are never more than allowed. */
static void kdnfs_pieces(struct kunit *test)
{
	static const u32 pages[] = { 128, 256, 257, 512 };
	u32 i, offset, at, left, piece, n;

	for (i = 0; i < ARRAY_SIZE(pages); i++) {
		for (offset = 0; offset < 4096; offset += 509) {
			at = offset;
			n = 0;
			for (left = 1 << 20; left; left -= piece, n++) {
				piece = kx_piece(at, left, pages[i], 4096);
				KUNIT_ASSERT_GT(test, piece, 0u);
				KUNIT_EXPECT_LE(test, DIV_ROUND_UP(at + piece, 4096), pages[i]);
				/* Only the last piece may end inside a page. */
				if (piece < left)
					KUNIT_EXPECT_EQ(test, (at + piece) % 4096, 0u);
				at = 0;
			}
			KUNIT_EXPECT_LE(test, n, (u32)KX_SEGS - 2);
		}
	}
}

/*
 * Replies of every length, with and without written data, into buffers of three shapes. The parts
 * are inside the message or inside their own memory, also when sunrpc lengthens the tail as far as
 * buflen lets it.
 */
static void kdnfs_place(struct kunit *test)
{
	enum { HEAD = 44, TAIL = 88, MESSAGE = 400 };
	static const struct {
		u32 pages, written;
	} cases[] = { { 0, 0 }, { 100, 0 }, { 100, 100 }, { 100, 97 }, { 100, 4 } };
	u8 *message = kunit_kzalloc(test, MESSAGE, GFP_KERNEL);
	u8 *tail = kunit_kzalloc(test, TAIL, GFP_KERNEL);
	struct page *page = alloc_page(GFP_KERNEL);
	u32 i, length, copied, total, end;

	KUNIT_ASSERT_NOT_NULL(test, message);
	KUNIT_ASSERT_NOT_NULL(test, tail);
	KUNIT_ASSERT_NOT_NULL(test, page);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		for (length = 0; length <= MESSAGE; length++) {
			struct xdr_buf buf = {
				.head = { { NULL, HEAD } }, .tail = { { tail, TAIL } },
				.pages = &page, .page_len = cases[i].pages,
				.buflen = HEAD + cases[i].pages + TAIL,
			};

			total = kx_place(&buf, message, length, cases[i].written, &copied);
			KUNIT_EXPECT_LE(test, total, buf.buflen);
			KUNIT_EXPECT_LE(test, buf.head[0].iov_len, (size_t)length);
			end = buf.buflen - buf.head[0].iov_len - buf.page_len;
			if (buf.tail[0].iov_base == tail)
				KUNIT_EXPECT_LE_MSG(test, end, (u32)TAIL, "case %u, length %u", i,
						    length);
			else
				KUNIT_EXPECT_LE_MSG(test,
						    (u8 *)buf.tail[0].iov_base + end - message,
						    (long)length, "case %u, length %u", i, length);
		}
	}
	__free_page(page);
}

static struct kunit_case kdnfs_cases[] = {
	KUNIT_CASE(kdnfs_call),
	KUNIT_CASE(kdnfs_longest),
	KUNIT_CASE(kdnfs_reply),
	KUNIT_CASE(kdnfs_truncated),
	KUNIT_CASE(kdnfs_random),
	KUNIT_CASE(kdnfs_nothing_offered),
	KUNIT_CASE(kdnfs_reverse),
	KUNIT_CASE(kdnfs_golden),
	KUNIT_CASE(kdnfs_private),
	KUNIT_CASE(kdnfs_ways),
	KUNIT_CASE(kdnfs_pieces),
	KUNIT_CASE(kdnfs_place),
	{}
};

static struct kunit_suite kdnfs_suite = {
	.name = "kdnfs",
	.test_cases = kdnfs_cases,
};

kunit_test_suite(kdnfs_suite);

MODULE_DESCRIPTION("Tests of the headers of NFS/RDMA");
MODULE_AUTHOR("The kDAPL for Linux authors");
MODULE_LICENSE("Dual BSD/GPL");
