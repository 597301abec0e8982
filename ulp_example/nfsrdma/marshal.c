// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Encoding and decoding the headers of RPC-over-RDMA. Nothing here touches a device or an RPC, so
 * that tests/fuzz/nfs can try all of it anywhere. What comes from a server is not trusted.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include "proto.h"

/* ---- private data ---- */

static const u8 kx_magic[4] = { 0xf6, 0xab, 0x0e, 0x18 };

#define KX_PRIVATE_VERSION	1
#define KX_INVALIDATE_OK	0x01
#define KX_DEFAULT_INLINE	1024	/* of a peer without private data */

/* Sizes are sent in units of 1 KiB, less one. */
static u8 kx_size_encode(u32 size)
{
	return (size >> 10) - 1;
}

static u32 kx_size_decode(u8 code)
{
	return (code + 1) << 10;
}

void kx_private_encode(void *p, const struct kx_private *priv)
{
	u8 *b = p;

	memcpy(b, kx_magic, sizeof(kx_magic));
	b[4] = KX_PRIVATE_VERSION;
	b[5] = priv->invalidate ? KX_INVALIDATE_OK : 0;
	b[6] = kx_size_encode(priv->send);
	b[7] = kx_size_encode(priv->recv);
}

/* Some transports pad private data, so only what it begins with matters. */
void kx_private_decode(const void *p, u32 length, struct kx_private *priv)
{
	const u8 *b = p;

	*priv = (struct kx_private) { .send = KX_DEFAULT_INLINE, .recv = KX_DEFAULT_INLINE };
	if (length < KX_PRIVATE_LEN || memcmp(b, kx_magic, sizeof(kx_magic)) ||
	    b[4] != KX_PRIVATE_VERSION)
		return;
	priv->invalidate = b[5] & KX_INVALIDATE_OK;
	priv->send = kx_size_decode(b[6]);
	priv->recv = kx_size_decode(b[7]);
}

void kx_limits_of(const struct kx_private *ours, const struct kx_private *theirs,
		  struct kx_limits *limits)
{
	limits->send = min(ours->send, theirs->recv) - KX_CALL_HEADER_MAX;
	limits->recv = min(ours->recv, theirs->send) - KX_REPLY_HEADER_MAX;
}

/* ---- choices ---- */

static enum kx_way kx_way(u32 limit, const struct kx_message *msg)
{
	if ((u64)msg->head + msg->pages + msg->tail <= limit)
		return KX_WAY_INLINE;
	if (msg->data && msg->pages && (u64)msg->head + msg->tail <= limit)
		return KX_WAY_DATA;
	return KX_WAY_ALL;
}

enum kx_way kx_call_way(const struct kx_limits *limits, const struct kx_message *call)
{
	return kx_way(limits->send, call);
}

/* The reply is not known yet: this is about the longest one. */
enum kx_way kx_reply_way(const struct kx_limits *limits, const struct kx_message *reply)
{
	return kx_way(limits->recv, reply);
}

/* Bytes of the first of the segments that @length bytes from @offset in a page on have. */
u32 kx_piece(u32 offset, u32 length, u32 pages, u32 page_size)
{
	return min_t(u64, length, (u64)pages * page_size - offset);
}

/* ---- encoding ---- */

struct kx_writer {
	__be32 *p, *end;
};

static void kx_put(struct kx_writer *w, u32 value)
{
	if (w->p < w->end)
		*w->p = cpu_to_be32(value);
	w->p++;
}

static void kx_put_seg(struct kx_writer *w, const struct kx_seg *seg)
{
	kx_put(w, seg->handle);
	kx_put(w, seg->length);
	kx_put(w, upper_32_bits(seg->offset));
	kx_put(w, lower_32_bits(seg->offset));
}

static void kx_put_array(struct kx_writer *w, const struct kx_chunk *chunk)
{
	u32 i;

	kx_put(w, 1);
	kx_put(w, chunk->n);
	for (i = 0; i < chunk->n; i++)
		kx_put_seg(w, &chunk->seg[i]);
}

/* Write the header of a call; @p is aligned. Return its length, or -EMSGSIZE. */
int kx_call_encode(void *p, u32 size, const struct kx_call *call)
{
	struct kx_writer w = { p, p + round_down(size, 4) };
	u32 i;

	kx_put(&w, be32_to_cpu(call->xid));
	kx_put(&w, KX_VERSION);
	kx_put(&w, call->credits);
	kx_put(&w, call->proc);
	for (i = 0; i < call->read.n; i++) {
		kx_put(&w, 1);
		kx_put(&w, call->position);
		kx_put_seg(&w, &call->read.seg[i]);
	}
	kx_put(&w, 0);			/* end of the Read list */
	if (call->write.n)
		kx_put_array(&w, &call->write);
	kx_put(&w, 0);			/* end of the Write list */
	if (call->reply.n)
		kx_put_array(&w, &call->reply);
	else
		kx_put(&w, 0);
	return w.p > w.end ? -EMSGSIZE : (void *)w.p - p;
}

/* ---- decoding ---- */

struct kx_reader {
	const __be32 *p, *end;
	bool bad;
};

/* The next word, or 0 if there is none. */
static u32 kx_get(struct kx_reader *r)
{
	if (r->p >= r->end) {
		r->bad = true;
		return 0;
	}
	return be32_to_cpu(*r->p++);
}

static struct kx_reader kx_reader(const void *p, u32 from, u32 length)
{
	return (struct kx_reader) { p + from, p + round_down(length, 4) };
}

/**
 * kx_reply_fixed - read the part of a header that each message has
 * @p: the message; aligned
 * @length: of the message
 * @reply: is written
 *
 * Return: 0, or -EPROTO if it is too short.
 */
int kx_reply_fixed(const void *p, u32 length, struct kx_reply *reply)
{
	struct kx_reader r = kx_reader(p, 0, length);

	*reply = (struct kx_reply) {};
	reply->xid = cpu_to_be32(kx_get(&r));
	reply->version = kx_get(&r);
	reply->credits = kx_get(&r);
	reply->proc = kx_get(&r);
	reply->length = KX_FIXED_LEN;
	return r.bad ? -EPROTO : 0;
}

/*
 * An array of segments says how much the server has written to each one that was offered. The
 * bytes are consecutive, so only the last one in use is not full.
 */
static bool kx_get_array(struct kx_reader *r, const struct kx_chunk *offer, u32 *bytes)
{
	u32 i, n = kx_get(r), length;
	bool partial = false;

	if (n > offer->n)
		return false;
	for (i = 0; i < n; i++) {
		kx_get(r);		/* handle and offset are the client's own */
		length = kx_get(r);
		kx_get(r);
		kx_get(r);
		if (length > offer->seg[i].length || (partial && length))
			return false;
		partial = length < offer->seg[i].length;
		*bytes += length;
	}
	return !r->bad;
}

static int kx_get_lists(struct kx_reader *r, const struct kx_call *call, struct kx_reply *reply)
{
	if (kx_get(r))			/* a reply has no Read list */
		return -EPROTO;
	if (kx_get(r)) {		/* one Write chunk, and then the list ends */
		if (!kx_get_array(r, &call->write, &reply->written) || kx_get(r))
			return -EPROTO;
	}
	if (kx_get(r) && !kx_get_array(r, &call->reply, &reply->replied))
		return -EPROTO;
	return r->bad ? -EPROTO : 0;
}

/**
 * kx_reply_decode - read the rest of the header of a reply
 * @p: the message; aligned
 * @length: of the message
 * @call: the call that has its XID
 * @reply: as kx_reply_fixed() has left it; is completed
 *
 * Return: 0, or -EPROTO if the header is malformed, or says that the server has written where
 *	nothing was offered.
 */
int kx_reply_decode(const void *p, u32 length, const struct kx_call *call, struct kx_reply *reply)
{
	struct kx_reader r = kx_reader(p, KX_FIXED_LEN, length);

	if (length < KX_FIXED_LEN)
		return -EPROTO;
	switch (reply->proc) {
	case KX_PROC_MSG:
		if (kx_get_lists(&r, call, reply) || reply->replied)
			return -EPROTO;
		break;
	case KX_PROC_NOMSG:
		if (kx_get_lists(&r, call, reply) || reply->written || !reply->replied)
			return -EPROTO;
		break;
	case KX_PROC_ERROR:
		reply->error = kx_get(&r);
		if (reply->error == KX_ERR_VERS) {
			reply->low = kx_get(&r);
			reply->high = kx_get(&r);
		}
		break;
	default:
		return -EPROTO;
	}
	reply->length = (void *)r.p - p;
	return r.bad ? -EPROTO : 0;
}

/**
 * kx_reverse_call - is this a call of the server, not a reply?
 * @p: the message; aligned
 * @length: of the message
 * @reply: as kx_reply_fixed() has left it
 *
 * Such a call has no chunks; the RPC message begins with the XID of the header, and 0 for a call.
 *
 * Return: whether it is; the RPC message begins at KX_HEADER_MIN.
 */
bool kx_reverse_call(const void *p, u32 length, const struct kx_reply *reply)
{
	struct kx_reader r = kx_reader(p, KX_FIXED_LEN, length);

	return length >= KX_HEADER_MIN + 8 && reply->proc == KX_PROC_MSG &&
	       !kx_get(&r) && !kx_get(&r) && !kx_get(&r) &&
	       kx_get(&r) == be32_to_cpu(reply->xid) && !kx_get(&r);
}
