/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The kdblk protocol, version 1: block storage over reliable connections.
 * PROTOCOL.md is the specification; this is what lies on the wire, little-endian.
 *
 *	initiator				target
 *	connect, struct kdblk_connect	->	accept, struct kdblk_accept
 *	Send struct kdblk_cmd [+ data]	->	checks every field
 *					<-	read: RDMA Write of the data
 *					->	write: RDMA Read of the data, if not inline
 *					<-	Send with invalidate, struct kdblk_rsp
 */
#ifndef _KDBLK_PROTO_H_
#define _KDBLK_PROTO_H_

#include <linux/build_bug.h>
#include <linux/types.h>

#define KDBLK_MAGIC		0x6b6c6264u	/* "dblk" */
#define KDBLK_VERSION		1
#define KDBLK_PORT		4420	/* where targets listen unless told otherwise */

#define KDBLK_NAME_LEN		64	/* of disks and initiators, with the NUL */
#define KDBLK_SERIAL_LEN	32
#define KDBLK_ID_LEN		16
#define KDBLK_MAX_QUEUES	256
#define KDBLK_MAX_DEPTH		1024	/* commands in flight on a queue */
#define KDBLK_MIN_INLINE	4096	/* every target takes so many bytes inline */
#define KDBLK_MAX_IO		0x100000
/* Tag of LOGIN and KEEPALIVE, of which one may be in flight beside the others. */
#define KDBLK_TAG_ADMIN		0xffff

/* Private data of the connection request; queue 0 comes first, and alone. */
struct kdblk_connect {
	__le32 magic;
	__le16 version;
	__le16 queue;		/* 0: a new session */
	__le64 session;		/* which one this queue is of; queue 0: zero */
	__le16 depth;		/* tags 0 to depth - 1 will be used */
	__u8 reserved[14];	/* zero */
};

static_assert(sizeof(struct kdblk_connect) == 32);

/* Private data of the target's acceptance. */
struct kdblk_accept {
	__le32 magic;
	__le16 version;
	__le16 depth;		/* granted: 1 to the one asked for */
	__le32 inline_size;	/* data a command may carry, KDBLK_MIN_INLINE or more */
	__u8 reserved[20];	/* zero */
};

static_assert(sizeof(struct kdblk_accept) == 32);

enum kdblk_refusal {		/* private data of the target's refusal */
	KDBLK_REFUSE_FORMAT	= 1,	/* not kdblk, or fields out of range */
	KDBLK_REFUSE_VERSION	= 2,	/* struct kdblk_reject tells the target's */
	KDBLK_REFUSE_SESSION	= 3,	/* no such session, or the queue is there already */
	KDBLK_REFUSE_RESOURCES	= 4,	/* come again */
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
	KDBLK_OP_READ		= 16,
	KDBLK_OP_WRITE		= 17,
	KDBLK_OP_FLUSH		= 18,
	KDBLK_OP_DISCARD	= 19,
	KDBLK_OP_WRITE_ZEROES	= 20,
};

enum kdblk_cmd_flags {
	KDBLK_CMD_INLINE	= 0x01,	/* the data follows the command; LOGIN, WRITE */
	KDBLK_CMD_FUA		= 0x02,	/* WRITE, WRITE_ZEROES: answered when it is stable */
	KDBLK_CMD_NOUNMAP	= 0x04,	/* WRITE_ZEROES: blocks stay allocated */
};

/* What is sent by the initiator. A field that an opcode has no use for is zero. */
struct kdblk_cmd {
	__u8 opcode;		/* enum kdblk_opcode */
	__u8 flags;		/* enum kdblk_cmd_flags */
	__le16 tag;		/* below depth, not in flight; or KDBLK_TAG_ADMIN */
	__le32 length;		/* bytes, a multiple of the block size */
	__le64 offset;		/* bytes from the start of the disk, the same */
	__le64 address;		/* READ, WRITE without INLINE: where the initiator's memory is */
	__le32 rkey;		/* and the key that opens it, ended by the answer */
	__u8 reserved[36];	/* zero */
};

static_assert(sizeof(struct kdblk_cmd) == 64);

/* Data of LOGIN. Strings end with a NUL, and are NUL to their end. */
struct kdblk_login {
	__u8 id[KDBLK_ID_LEN];	/* a login ends sessions of the disk with the same */
	char initiator[KDBLK_NAME_LEN];
	char disk[KDBLK_NAME_LEN];
	__le32 keepalive_ms;	/* 100 to 600000: the initiator will be heard at least that often */
	__le16 queues;		/* wanted, 1 to KDBLK_MAX_QUEUES */
	__u8 reserved[106];	/* zero */
};

static_assert(sizeof(struct kdblk_login) == 256);

enum kdblk_status {
	KDBLK_STATUS_OK		= 0,
	KDBLK_STATUS_IO		= 1,	/* the device below failed */
	KDBLK_STATUS_NOSPC	= 2,
	KDBLK_STATUS_NOTSUPP	= 3,	/* the device below does not do that */
	KDBLK_STATUS_READ_ONLY	= 4,
	KDBLK_STATUS_MEDIUM	= 5,
	KDBLK_STATUS_TIMEOUT	= 6,
	KDBLK_STATUS_RESOURCE	= 7,	/* come again */
	KDBLK_STATUS_PROTECTION	= 8,
	KDBLK_STATUS_OFFLINE	= 9,	/* the disk has been switched off at the target */
	/* LOGIN only; the target ends the connection when it was received */
	KDBLK_STATUS_NO_DISK	= 64,
	KDBLK_STATUS_DENIED	= 65,	/* the initiator's name is not on the list */
};

/* What is sent by the target. */
struct kdblk_rsp {
	__le16 tag;		/* of the command */
	__le16 status;		/* enum kdblk_status */
	__u8 opcode;		/* of the command */
	__u8 reserved[11];	/* zero */
};

static_assert(sizeof(struct kdblk_rsp) == 16);

enum kdblk_disk_flags {
	KDBLK_DISK_READ_ONLY	= 0x01,
	KDBLK_DISK_CACHE	= 0x02,	/* it has a volatile one: FLUSH and FUA mean something */
	KDBLK_DISK_DISCARD	= 0x04,
	KDBLK_DISK_WRITE_ZEROES	= 0x08,
	KDBLK_DISK_ROTATIONAL	= 0x10,
	KDBLK_DISK_FLAGS	= 0x1f,	/* all of them; others are not sent */
};

/* The answer to LOGIN; of a refused one only rsp counts, and it ends there. */
struct kdblk_login_rsp {
	struct kdblk_rsp rsp;
	__le64 session;		/* for the other queues; not zero */
	__le64 capacity;	/* bytes, a multiple of block_size */
	__le32 block_size;	/* 512 or 4096 */
	__le32 physical_block_size;
	__le32 max_io;		/* bytes of READ and WRITE, up to KDBLK_MAX_IO */
	__le32 max_range;	/* bytes of DISCARD and WRITE_ZEROES */
	__le32 discard_granularity;
	__le16 queues;		/* granted, 1 to those asked for */
	__le16 flags;		/* enum kdblk_disk_flags */
	char serial[KDBLK_SERIAL_LEN];	/* as configured; the same disk has the same */
	__u8 reserved[40];	/* zero */
};

static_assert(sizeof(struct kdblk_login_rsp) == 128);

#endif /* _KDBLK_PROTO_H_ */
