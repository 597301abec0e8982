/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The kdblk protocol, version 3: block storage over reliable connections.
 * PROTOCOL.md is the specification. This file has the wire format, little-endian.
 *
 *	initiator				target
 *	connect, struct kdblk_connect	->	accept, struct kdblk_accept
 *	Send struct kdblk_cmd [+ data]	->	check every field
 *					<-	read: RDMA Write of the data, if not inline
 *					->	write: RDMA Read of the data, if not inline
 *					<-	Send with invalidate, struct kdblk_rsp [+ data]
 */
#ifndef _KDBLK_PROTO_H_
#define _KDBLK_PROTO_H_

#include <linux/build_bug.h>
#include <linux/types.h>

#define KDBLK_MAGIC		0x6b6c6264u	/* "dblk" */
#define KDBLK_VERSION		3
#define KDBLK_VERSION_MIN	2	/* of an initiator; it had no data in answers */
#define KDBLK_PORT		14420	/* default port of targets */

#define KDBLK_NAME_LEN		64	/* of disks and initiators, including the NUL */
#define KDBLK_SERIAL_LEN	32
#define KDBLK_ID_LEN		16
#define KDBLK_START_LEN		8	/* first bytes of an instance: of the machine's start */
#define KDBLK_NONCE_LEN		16	/* random bytes, others for each login */
#define KDBLK_PROOF_LEN		32	/* HMAC-SHA256 */
#define KDBLK_QUEUE_PROOF_LEN	12	/* its first bytes, for lack of room */
#define KDBLK_TARGET_PROOF_LEN	16	/* the first bytes of one */
#define KDBLK_MAX_QUEUES	256
#define KDBLK_MAX_DEPTH		1024	/* commands in flight on a queue */
#define KDBLK_MIN_INLINE	4096	/* inline bytes that every target accepts */
#define KDBLK_MAX_IO		0x100000
/* Tag of LOGIN, KEEPALIVE, FENCE; one of these may be in flight in addition to the others. */
#define KDBLK_TAG_ADMIN		0xffff

/* Private data of the connection request. Queue 0 connects first, without the others. */
struct kdblk_connect {
	__le32 magic;
	__le16 version;
	__le16 queue;		/* 0: a new session */
	__le64 session;		/* the session this queue joins; queue 0: zero */
	__le16 depth;		/* the queue will use tags 0 to depth - 1 */
	__le16 answer_size;	/* data bytes in an answer; version 2: zero */
	__u8 proof[KDBLK_QUEUE_PROOF_LEN];	/* that it belongs to the session; queue 0: zero */
};

static_assert(sizeof(struct kdblk_connect) == 32);

/* Private data of the target's acceptance. */
struct kdblk_accept {
	__le32 magic;
	__le16 version;		/* that of the initiator */
	__le16 depth;		/* granted: 1 to the requested depth */
	__le32 inline_size;	/* data bytes in a command, KDBLK_MIN_INLINE or more */
	__u8 nonce[KDBLK_NONCE_LEN];	/* queue 0: for the proof of the initiator */
	__u8 reserved[4];	/* zero */
};

static_assert(sizeof(struct kdblk_accept) == 32);

enum kdblk_refusal {		/* private data of the target's refusal */
	KDBLK_REFUSE_FORMAT	= 1,	/* not kdblk, or fields out of range */
	KDBLK_REFUSE_VERSION	= 2,	/* struct kdblk_reject has the target's version */
	KDBLK_REFUSE_SESSION	= 3,	/* no such session, or the queue exists already */
	KDBLK_REFUSE_RESOURCES	= 4,	/* try again later */
};

struct kdblk_reject {
	__le32 magic;
	__le16 version;
	__le16 reason;		/* enum kdblk_refusal */
};

static_assert(sizeof(struct kdblk_reject) == 8);

enum kdblk_opcode {
	KDBLK_OP_LOGIN		= 1,	/* first on queue 0; struct kdblk_login inline */
	KDBLK_OP_KEEPALIVE	= 2,	/* queue 0 */
	KDBLK_OP_FENCE		= 3,	/* queue 0; offset: another path of the initiator */
	KDBLK_OP_READ		= 16,
	KDBLK_OP_WRITE		= 17,
	KDBLK_OP_FLUSH		= 18,
	KDBLK_OP_DISCARD	= 19,
	KDBLK_OP_WRITE_ZEROES	= 20,
};

enum kdblk_cmd_flags {
	KDBLK_CMD_INLINE	= 0x01,	/* the data follows the command; READ: the answer */
	KDBLK_CMD_FUA		= 0x02,	/* WRITE, WRITE_ZEROES: answer when data is stable */
	KDBLK_CMD_NOUNMAP	= 0x04,	/* WRITE_ZEROES: blocks stay allocated */
};

/* A message from the initiator. Fields that an opcode does not use are zero. */
struct kdblk_cmd {
	__u8 opcode;		/* enum kdblk_opcode */
	__u8 flags;		/* enum kdblk_cmd_flags */
	__le16 tag;		/* below depth, not in flight; or KDBLK_TAG_ADMIN */
	__le32 length;		/* bytes, a multiple of the block size */
	__le64 offset;		/* bytes from the start of the disk, a multiple as well */
	__le64 address;		/* READ, WRITE, without INLINE: the initiator's memory */
	__le32 rkey;		/* and its key; the answer invalidates it */
	__u8 reserved[36];	/* zero */
};

static_assert(sizeof(struct kdblk_cmd) == 64);

/* Data of LOGIN. Strings are printable ASCII, end with a NUL and are padded with NULs. */
struct kdblk_login {
	__u8 id[KDBLK_ID_LEN];	/* of the initiator's machine */
	char initiator[KDBLK_NAME_LEN];
	char disk[KDBLK_NAME_LEN];
	__le32 keepalive_ms;	/* 100 to 600000: longest silence of the initiator */
	__le16 queues;		/* requested, 1 to KDBLK_MAX_QUEUES */
	__le16 path;		/* number of this path; @id and @path identify a session */
	__u8 instance[KDBLK_ID_LEN];	/* random; KDBLK_START_LEN bytes are of the machine */
	__u8 nonce[KDBLK_NONCE_LEN];	/* for the proof of the target */
	__u8 proof[KDBLK_PROOF_LEN];	/* zero: the initiator has no secret */
	__u8 reserved[40];	/* zero */
};

static_assert(sizeof(struct kdblk_login) == 256);

enum kdblk_status {
	KDBLK_STATUS_OK		= 0,
	KDBLK_STATUS_IO		= 1,	/* the underlying device failed */
	KDBLK_STATUS_NOSPC	= 2,
	KDBLK_STATUS_NOTSUPP	= 3,	/* the underlying device does not support it */
	KDBLK_STATUS_READ_ONLY	= 4,
	KDBLK_STATUS_MEDIUM	= 5,
	KDBLK_STATUS_TIMEOUT	= 6,
	KDBLK_STATUS_RESOURCE	= 7,	/* try again later */
	KDBLK_STATUS_PROTECTION	= 8,
	KDBLK_STATUS_OFFLINE	= 9,	/* the disk was disabled at the target */
	/* LOGIN only; the target ends the connection once the answer has arrived */
	KDBLK_STATUS_NO_DISK	= 64,
	KDBLK_STATUS_DENIED	= 65,	/* the initiator's name is not in the list */
	KDBLK_STATUS_IN_USE	= 66,	/* another initiator with this id and path is alive */
	KDBLK_STATUS_FULL	= 67,	/* the target takes no more sessions */
	KDBLK_STATUS_UNPROVEN	= 68,	/* the proof of the initiator is missing or wrong */
};

/* A message from the target. The data of a READ with INLINE follows, if the status is OK. */
struct kdblk_rsp {
	__le16 tag;		/* of the command */
	__le16 status;		/* enum kdblk_status */
	__u8 opcode;		/* of the command */
	__u8 reserved[11];	/* zero */
};

static_assert(sizeof(struct kdblk_rsp) == 16);

enum kdblk_disk_flags {
	KDBLK_DISK_READ_ONLY	= 0x01,
	KDBLK_DISK_CACHE	= 0x02,	/* has a volatile cache: FLUSH and FUA have an effect */
	KDBLK_DISK_DISCARD	= 0x04,
	KDBLK_DISK_WRITE_ZEROES	= 0x08,
	KDBLK_DISK_ROTATIONAL	= 0x10,
	KDBLK_DISK_FLAGS	= 0x1f,	/* all of them; no others are sent */
};

/* The answer to LOGIN. If the login is refused, the message contains only rsp. */
struct kdblk_login_rsp {
	struct kdblk_rsp rsp;
	__le64 session;		/* for the other queues; not zero */
	__le64 capacity;	/* bytes, a multiple of block_size */
	__le32 block_size;	/* 512 or 4096 */
	__le32 physical_block_size;
	__le32 max_io;		/* bytes of READ and WRITE, up to KDBLK_MAX_IO */
	__le32 max_range;	/* bytes of DISCARD and WRITE_ZEROES */
	__le32 discard_granularity;
	__le16 queues;		/* granted, 1 to the requested number */
	__le16 flags;		/* enum kdblk_disk_flags */
	char serial[KDBLK_SERIAL_LEN];	/* as configured; identifies the disk */
	__u8 boot[KDBLK_ID_LEN];	/* changes with each start of the target's machine */
	__u8 proof[KDBLK_TARGET_PROOF_LEN];	/* zero: the target has no secret */
	__u8 reserved[8];	/* zero */
};

static_assert(sizeof(struct kdblk_login_rsp) == 128);

/* What the target proves: all but rsp. */
#define KDBLK_PROVEN_LEN	(sizeof(struct kdblk_login_rsp) - sizeof(struct kdblk_rsp))

/* The answer to KEEPALIVE. */
struct kdblk_alive_rsp {
	struct kdblk_rsp rsp;
	__le64 capacity;	/* bytes; larger than before when the disk has grown */
	__u8 reserved[8];	/* zero */
};

static_assert(sizeof(struct kdblk_alive_rsp) == 32);

#endif /* _KDBLK_PROTO_H_ */
