/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * What client and server send each other. All numbers are little-endian.
 *
 *	client				server
 *	connect with a hello	->	accept, or reject what is no hello
 *	request, key, address	->	RDMA Read (PUT) or Write (GET) of the lent memory
 *				<-	answer, which invalidates the key
 */
#ifndef _KDRPC_PROTO_H_
#define _KDRPC_PROTO_H_

#include <linux/build_bug.h>
#include <linux/types.h>

#define KDRPC_PORT		4713
#define KDRPC_MAGIC		0x4352444b
#define KDRPC_VERSION		1
#define KDRPC_SLOTS		16	/* calls of a client at a time */
#define KDRPC_MAX_DATA		16384	/* bytes lent for a call */
#define KDRPC_READS		4	/* RDMA Reads of a connection at a time */

enum kdrpc_op {
	KDRPC_ECHO = 1,	/* the answer has the value of the request */
	KDRPC_PUT,	/* the server reads the memory; the answer has its checksum */
	KDRPC_GET,	/* the server writes kdrpc_fill(value); the answer has the checksum */
};

/* Private data of the connection request: any host can connect. */
struct kdrpc_hello {
	__le32 magic;
	__le32 version;
};

struct kdrpc_request {
	__le16 slot;		/* below KDRPC_SLOTS; not in use by another call */
	u8 op;
	u8 turn;		/* changes each time the slot is used */
	__le32 value;
	__le32 length;		/* of the lent memory; 0 for ECHO */
	__le32 key;		/* to that memory */
	__le64 address;
};

struct kdrpc_answer {
	__le16 slot;		/* of the request */
	u8 turn;		/* of the request */
	u8 reserved;		/* 0 */
	__le32 value;
};

static_assert(sizeof(struct kdrpc_hello) == 8);
static_assert(sizeof(struct kdrpc_request) == 24);
static_assert(sizeof(struct kdrpc_answer) == 8);

/* The data of a GET: differs in each word and for each seed. */
static inline void kdrpc_fill(void *data, u32 length, u32 seed)
{
	u8 *p = data;
	u32 i;

	for (i = 0; i < length; i++)
		p[i] = ((seed + i) * 2654435761u) >> 13;
}

#endif /* _KDRPC_PROTO_H_ */
