/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * RPC-over-RDMA version 1 on the wire: RFC 8166, private data as in RFC 8797, calls in the
 * reverse direction as in RFC 8167. marshal.c, which this describes, knows neither sunrpc nor
 * kDAPL: segments in, bytes out.
 *
 *	client					server
 *	connect with private data	->	accept with private data
 *	header, call			->	RDMA Reads of the call's memory
 *					<-	RDMA Writes into memory for the reply
 *					<-	header, reply, which may invalidate one key
 */
#ifndef _KX_PROTO_H_
#define _KX_PROTO_H_

#include <linux/types.h>

#define KX_VERSION	1
#define KX_PORT		20049

/* Message types of the header, and errors of KX_PROC_ERROR. */
enum kx_proc {
	KX_PROC_MSG	= 0,	/* the RPC message follows the header */
	KX_PROC_NOMSG	= 1,	/* the RPC message is in a chunk */
	KX_PROC_ERROR	= 4,
};

enum kx_error {
	KX_ERR_VERS	= 1,
	KX_ERR_CHUNK	= 2,
};

#define KX_FIXED_LEN	16	/* XID, version, credits, type */
#define KX_HEADER_MIN	28	/* the same and three empty lists */

/*
 * Segments of one chunk: head, pages, tail, of which the pages may need three. A Write chunk may
 * have one more for the XDR padding of its data.
 */
#define KX_SEGS		5
#define KX_SEGS_PAD	(KX_SEGS + 1)

/* The longest header of a call has a Read and a Reply chunk, that of a reply a Write chunk. */
#define KX_CALL_HEADER_MAX	(KX_HEADER_MIN + 24 * KX_SEGS + 4 + 16 * KX_SEGS)
#define KX_REPLY_HEADER_MAX	(KX_HEADER_MIN + 8 + 16 * KX_SEGS_PAD)

/**
 * struct kx_seg - memory that the server may access
 * @handle: the key
 * @length: in bytes
 * @offset: address of the first byte
 */
struct kx_seg {
	u32 handle;
	u32 length;
	u64 offset;
};

/**
 * struct kx_chunk - some segments that are one range of bytes
 * @n: how many
 * @seg: the segments
 */
struct kx_chunk {
	u32 n;
	struct kx_seg seg[KX_SEGS_PAD];
};

/**
 * struct kx_call - what the header of a call says
 * @xid: XID of the RPC message
 * @credits: replies that the client can take at a time
 * @proc: KX_PROC_MSG or KX_PROC_NOMSG
 * @position: where in the message the bytes of @read belong
 * @read: memory with a part of the call, or with all of it (NOMSG)
 * @write: memory for the data of the reply
 * @reply: memory for the whole reply
 */
struct kx_call {
	__be32 xid;
	u32 credits;
	enum kx_proc proc;
	u32 position;
	struct kx_chunk read, write, reply;
};

/**
 * struct kx_reply - what the header of a received message says
 * @xid: XID of the RPC message
 * @version: version of the header
 * @credits: granted by the server
 * @proc: message type
 * @written: bytes in the Write chunk of the call
 * @replied: bytes in the Reply chunk of the call
 * @error: with KX_PROC_ERROR: an enum kx_error
 * @low: with KX_ERR_VERS: lowest version that the server knows
 * @high: with KX_ERR_VERS: highest version
 * @length: of the header; the RPC message begins there
 */
struct kx_reply {
	__be32 xid;
	u32 version;
	u32 credits;
	u32 proc;
	u32 written;
	u32 replied;
	u32 error;
	u32 low, high;
	u32 length;
};

/**
 * struct kx_limits - longest RPC messages that fit behind the longest header
 * @send: of a call
 * @recv: of a reply
 */
struct kx_limits {
	u32 send;
	u32 recv;
};

/**
 * struct kx_message - parts of an RPC message, as in struct xdr_buf
 * @head: bytes of the beginning; for a reply, the most that it can have
 * @pages: bytes of the data
 * @tail: bytes of the end
 * @data: the data may move by RDMA on its own
 */
struct kx_message {
	u32 head, pages, tail;
	bool data;
};

/* How a call or a reply is moved. */
enum kx_way {
	KX_WAY_INLINE,	/* behind the header */
	KX_WAY_DATA,	/* the data by RDMA, the rest behind the header */
	KX_WAY_ALL,	/* all of it by RDMA */
};

#define KX_PRIVATE_LEN	8

/**
 * struct kx_private - private data of both sides when they connect
 * @invalidate: this side can have a key invalidated by a message
 * @send: longest message that this side sends
 * @recv: longest message that it can receive
 */
struct kx_private {
	bool invalidate;
	u32 send, recv;
};

void kx_private_encode(void *p, const struct kx_private *priv);
void kx_private_decode(const void *p, u32 length, struct kx_private *priv);
void kx_limits_of(const struct kx_private *ours, const struct kx_private *theirs,
		  struct kx_limits *limits);

enum kx_way kx_call_way(const struct kx_limits *limits, const struct kx_message *call);
enum kx_way kx_reply_way(const struct kx_limits *limits, const struct kx_message *reply);
u32 kx_piece(u32 offset, u32 length, u32 pages, u32 page_size);

int kx_call_encode(void *p, u32 size, const struct kx_call *call);
int kx_reply_fixed(const void *p, u32 length, struct kx_reply *reply);
int kx_reply_decode(const void *p, u32 length, const struct kx_call *call,
		    struct kx_reply *reply);
bool kx_reverse_call(const void *p, u32 length, const struct kx_reply *reply);

#endif /* _KX_PROTO_H_ */
