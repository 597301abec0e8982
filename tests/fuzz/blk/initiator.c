// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The hostile initiator. Each violation has a session of its own, which has to end, by an
 * event, within a finite time, and without an answer.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <crypto/sha2.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "kdblkfuzz.h"

#define LEND_READ	DAT_MEM_PRIV_REMOTE_READ_FLAG
#define LEND_WRITE	DAT_MEM_PRIV_REMOTE_WRITE_FLAG
#define POISON	0xa5
#define HALF_OPEN	16	/* connections without a login, that the target lets in */

struct session {
	struct fz_link *link;
	struct kdblk_login_rsp geo;
	u16 depth;
	u32 inline_size, block, max_io;
	u64 capacity;
};

/* ---- as it should be ---- */

static struct kdblk_connect hello_of(u16 queue, u64 session, u16 depth)
{
	return (struct kdblk_connect){
		.magic = cpu_to_le32(KDBLK_MAGIC),
		.version = cpu_to_le16(KDBLK_VERSION),
		.queue = cpu_to_le16(queue),
		.session = cpu_to_le64(session),
		.depth = cpu_to_le16(depth),
		.answer_size = cpu_to_le16(FZ_INLINE),
	};
}

static struct kdblk_login login_of(u32 keepalive_ms, u16 queues)
{
	struct kdblk_login login = {
		.initiator = "kdblkfuzz",
		.keepalive_ms = cpu_to_le32(keepalive_ms),
		.queues = cpu_to_le16(queues),
	};

	fz_rnd_bytes(login.id, sizeof(login.id));
	strscpy(login.disk, fz_disk, sizeof(login.disk));
	return login;
}

static struct kdblk_cmd cmd_of(u8 opcode, u16 tag, u64 offset, u32 length)
{
	return (struct kdblk_cmd){
		.opcode = opcode,
		.tag = cpu_to_le16(tag),
		.offset = cpu_to_le64(offset),
		.length = cpu_to_le32(length),
	};
}

static int right_for(u8 opcode)
{
	return opcode == KDBLK_OP_READ ? LEND_WRITE : LEND_READ;
}

/* A command, and @size bytes behind it: a login, or what nobody cares for. */
static int send_with(struct fz_link *link, const struct kdblk_cmd *cmd,
		     const struct kdblk_login *login, u32 size)
{
	u8 *msg = kzalloc(sizeof(*cmd) + size, GFP_KERNEL);
	int err;

	if (!msg)
		return -ENOMEM;
	memcpy(msg, cmd, sizeof(*cmd));
	if (login)
		memcpy(msg + sizeof(*cmd), login, min_t(u32, size, sizeof(*login)));
	err = fz_send(link, msg, sizeof(*cmd) + size);
	kfree(msg);
	return err;
}

static int connect(struct session *s, const struct kdblk_connect *hello)
{
	const struct kdblk_accept *yes;
	int err;

	s->link = fz_link_new();
	if (!s->link)
		return -ENOMEM;
	err = fz_link_connect(s->link, hello, sizeof(*hello));
	if (err)
		return err;
	yes = (const void *)s->link->pdata;
	s->depth = le16_to_cpu(yes->depth);
	s->inline_size = le32_to_cpu(yes->inline_size);
	if (s->link->pdata_size < sizeof(*yes) || !s->depth ||
	    s->depth > le16_to_cpu(hello->depth))
		return fz_fail("the target accepts with depth %u, %u was asked for", s->depth,
			       le16_to_cpu(hello->depth));
	return 0;
}

static void close(struct session *s)
{
	if (s->link)
		fz_link_free(s->link);
	s->link = NULL;
}

static const struct fz_answer *last(struct fz_link *link)
{
	return &link->answers[(link->nanswers - 1) % FZ_ANSWERS];
}

static int log_in(struct session *s, const struct kdblk_login *login)
{
	struct kdblk_cmd cmd = cmd_of(KDBLK_OP_LOGIN, KDBLK_TAG_ADMIN, 0, sizeof(*login));
	u32 before = s->link->nanswers;

	cmd.flags = KDBLK_CMD_INLINE;
	if (send_with(s->link, &cmd, login, sizeof(*login)))
		return -EIO;
	if (!fz_until(s->link, s->link->nanswers > before || s->link->over, FZ_LONG_MS))
		return fz_fail("a login has no answer");
	if (s->link->nanswers == before)
		return -ECONNRESET;
	s->geo = last(s->link)->login;
	if (s->geo.rsp.status)
		return -EACCES;
	s->block = le32_to_cpu(s->geo.block_size);
	s->max_io = le32_to_cpu(s->geo.max_io);
	s->capacity = le64_to_cpu(s->geo.capacity);
	return 0;
}

static int open_with(struct session *s, u32 keepalive_ms, u16 queues, struct kdblk_connect hello)
{
	struct kdblk_login l = login_of(keepalive_ms, queues);
	unsigned long end = jiffies + msecs_to_jiffies(FZ_LONG_MS);
	int err;

	/* Connections that others have left without a login may fill the portal for a while. */
	do {
		memset(s, 0, sizeof(*s));
		err = connect(s, &hello) ?: log_in(s, &l);
		if (!err)
			return 0;
		close(s);
		msleep(20);
	} while (!time_after(jiffies, end));
	return fz_fail("cannot log in any more: %d", err);
}

static int open(struct session *s, u32 keepalive_ms, u16 queues)
{
	return open_with(s, keepalive_ms, queues, hello_of(0, 0, FZ_DEPTH));
}

/* The status of a command that is right, with so many bytes behind it; or -errno. */
static int status_with(struct session *s, const struct kdblk_cmd *cmd, u32 size)
{
	u32 before = s->link->nanswers;

	if (send_with(s->link, cmd, NULL, size))
		return -EIO;
	fz_until(s->link, s->link->nanswers > before || s->link->over, FZ_LONG_MS);
	return s->link->nanswers > before ? le16_to_cpu(last(s->link)->rsp.status) : -ECONNRESET;
}

static int status_of(struct session *s, const struct kdblk_cmd *cmd)
{
	return status_with(s, cmd, 0);
}

static int read_once(struct session *s)
{
	struct kdblk_cmd cmd = cmd_of(KDBLK_OP_READ, 0, 0, PAGE_SIZE);
	u32 rkey;
	int err = fz_lend(s->link, 0, 1, LEND_WRITE, &rkey);

	if (err)
		return err;
	cmd.rkey = cpu_to_le32(rkey);
	err = status_of(s, &cmd);
	if (!err && (!last(s->link)->invalidated || last(s->link)->rkey != rkey))
		return fz_fail("a READ is answered without giving back its memory");
	return err;
}

/* The data comes in the answer. */
static int read_inline(struct session *s)
{
	struct kdblk_cmd cmd = cmd_of(KDBLK_OP_READ, 0, 0, FZ_INLINE);
	int err;

	cmd.flags = KDBLK_CMD_INLINE;
	err = status_of(s, &cmd);
	if (!err && (last(s->link)->invalidated ||
		     last(s->link)->length != sizeof(struct kdblk_rsp) + FZ_INLINE))
		return fz_fail("a READ is answered with %u bytes", last(s->link)->length);
	return err;
}

/* good: somebody who does nothing wrong is served, with either version of the protocol */
int fz_good(char *arg)
{
	struct kdblk_connect old = hello_of(0, 0, FZ_DEPTH);
	struct session s;
	int err = open(&s, 5000, 1) ?: read_once(&s) ?: read_inline(&s);

	close(&s);
	old.version = cpu_to_le16(KDBLK_VERSION_MIN);
	old.answer_size = 0;
	if (!err) {
		err = open_with(&s, 5000, 1, old) ?: read_once(&s);
		close(&s);
	}
	if (err)
		err = fz_fail("a good initiator is not served: %d", err);
	return err;
}

static int has_ended(struct session *s, const char *what, u32 answers)
{
	if (!fz_until(s->link, s->link->over, FZ_LONG_MS))
		return fz_fail("%s: the session goes on", what);
	if (s->link->nanswers != answers)
		return fz_fail("%s: there is an answer", what);
	return 0;
}

/* ---- messages that must not be ---- */

enum bad {
	BAD_FIELD, BAD_ABOVE, BAD_OFFSET, BAD_DEPTH, BAD_SIZE, BAD_INLINE, BAD_AGAIN, BAD_QUEUE,
	BAD_INVALIDATE, BAD_KEY, BAD_TWICE, BAD_READ, BAD_HELLO,
};

#define INLINE	0x100		/* of a WRITE whose data follow it */
#define CMD(name, op, field, bytes, to) \
	{ name, BAD_FIELD, op, FZ_PATCH(kdblk_cmd, field, bytes, to) }

static const struct {
	const char *name;
	enum bad kind;
	u32 arg;		/* BAD_FIELD: the opcode of what is right but for one field */
	struct fz_patch patch;
} bads[] = {
	CMD("opcode-0", KDBLK_OP_READ, opcode, 1, 0),
	CMD("opcode-4", KDBLK_OP_READ, opcode, 1, 4),
	CMD("opcode-15", KDBLK_OP_READ, opcode, 1, 15),
	CMD("opcode-21", KDBLK_OP_READ, opcode, 1, 21),
	CMD("opcode-255", KDBLK_OP_READ, opcode, 1, 255),
	CMD("read-fua", KDBLK_OP_READ, flags, 1, KDBLK_CMD_FUA),
	CMD("flush-fua", KDBLK_OP_FLUSH, flags, 1, KDBLK_CMD_FUA),
	CMD("discard-nounmap", KDBLK_OP_DISCARD, flags, 1, KDBLK_CMD_NOUNMAP),
	CMD("write-nounmap", KDBLK_OP_WRITE, flags, 1, KDBLK_CMD_NOUNMAP),
	CMD("zeroes-inline", KDBLK_OP_WRITE_ZEROES, flags, 1, KDBLK_CMD_INLINE),
	CMD("flags-08", KDBLK_OP_WRITE, flags, 1, 0x08),
	CMD("flags-80", KDBLK_OP_FLUSH, flags, 1, 0x80),
	{ "reserved-first", BAD_FIELD, KDBLK_OP_FLUSH, FZ_PATCH(kdblk_cmd, reserved[0], 1, 0x40) },
	{ "reserved-last", BAD_FIELD, KDBLK_OP_FLUSH, FZ_LAST(kdblk_cmd, reserved, 1) },
	CMD("length-0", KDBLK_OP_READ, length, 4, 0),
	CMD("length-1", KDBLK_OP_READ, length, 4, 1),
	CMD("length-part", KDBLK_OP_READ, length, 4, 4096 + 256),
	CMD("length-ffffffff", KDBLK_OP_READ, length, 4, 0xffffffff),
	{ "length-max-io", BAD_ABOVE, KDBLK_OP_READ },
	{ "length-max-io-write", BAD_ABOVE, KDBLK_OP_WRITE },
	{ "length-max-range", BAD_ABOVE, KDBLK_OP_DISCARD },
	{ "length-max-range-zeroes", BAD_ABOVE, KDBLK_OP_WRITE_ZEROES },
	{ "offset-end", BAD_OFFSET, 0 },
	{ "offset-over-the-end", BAD_OFFSET, 1 },
	{ "offset-wraps", BAD_OFFSET, 2 },
	{ "offset-1", BAD_OFFSET, 3 },
	{ "offset-part", BAD_OFFSET, 4 },
	{ "offset-sign", BAD_OFFSET, 5 },
	{ "tag-depth", BAD_DEPTH },
	CMD("tag-fffe", KDBLK_OP_READ, tag, 2, 0xfffe),
	CMD("tag-admin", KDBLK_OP_READ, tag, 2, KDBLK_TAG_ADMIN),
	{ "tag-in-flight", BAD_TWICE, 0 },
	{ "size-0", BAD_SIZE, 0 },
	{ "size-1", BAD_SIZE, 1 },
	{ "size-63", BAD_SIZE, 63 },
	{ "size-65", BAD_SIZE, 65 },
	{ "size-beyond-inline", BAD_SIZE, 32768 },
	{ "read-inline-data", BAD_READ, 0 },
	{ "read-inline-above", BAD_READ, 1 },
	{ "read-inline-rkey", BAD_READ, 2 },
	{ "read-inline-of-version-2", BAD_HELLO, 0 },
	{ "read-inline-above-memory", BAD_HELLO, 1 },
	{ "inline-less", BAD_INLINE, 512 },
	{ "inline-more", BAD_INLINE, 2048 },
	{ "inline-none", BAD_INLINE, 0 },
	CMD("flush-offset", KDBLK_OP_FLUSH, offset, 8, 4096),
	CMD("flush-length", KDBLK_OP_FLUSH, length, 4, 4096),
	CMD("flush-address", KDBLK_OP_FLUSH, address, 8, 4096),
	CMD("flush-rkey", KDBLK_OP_FLUSH, rkey, 4, 0x1234),
	CMD("discard-rkey", KDBLK_OP_DISCARD, rkey, 4, 0x1234),
	CMD("write-inline-rkey", KDBLK_OP_WRITE | INLINE, rkey, 4, 0x1234),
	{ "login-again", BAD_AGAIN },
	CMD("keepalive-tag", KDBLK_OP_KEEPALIVE, tag, 2, 0),
	CMD("keepalive-length", KDBLK_OP_KEEPALIVE, length, 4, 4096),
	CMD("keepalive-offset", KDBLK_OP_KEEPALIVE, offset, 8, 4096),
	CMD("keepalive-address", KDBLK_OP_KEEPALIVE, address, 8, 1),
	CMD("keepalive-inline", KDBLK_OP_KEEPALIVE, flags, 1, KDBLK_CMD_INLINE),
	{ "keepalive-in-flight", BAD_TWICE, 1 },
	CMD("fence-tag", KDBLK_OP_FENCE, tag, 2, 0),
	CMD("fence-length", KDBLK_OP_FENCE, length, 4, 4096),
	CMD("fence-path-65536", KDBLK_OP_FENCE, offset, 8, 65536),
	{ "fence-on-queue-1", BAD_QUEUE, KDBLK_OP_FENCE },
	{ "keepalive-on-queue-1", BAD_QUEUE, KDBLK_OP_KEEPALIVE },
	{ "login-on-queue-1", BAD_QUEUE, KDBLK_OP_LOGIN },
	{ "invalidation", BAD_INVALIDATE },
	{ "read-key-0", BAD_KEY, 0 },
	{ "read-key-random", BAD_KEY, 1 },
	{ "read-key-without-right", BAD_KEY, 2 },
	{ "read-address", BAD_KEY, 3 },
	{ "read-memory-too-small", BAD_KEY, 4 },
	{ "write-key-0", BAD_KEY, 5 },
	{ "write-key-random", BAD_KEY, 6 },
	{ "write-key-without-right", BAD_KEY, 7 },
	{ "write-address", BAD_KEY, 8 },
	{ "write-memory-too-small", BAD_KEY, 9 },
};

const struct fz_table fz_bads = FZ_TABLE(bads);

/*
 * What is written comes into the last MiB of the disk, should it come there against all
 * rules; what is read, nowhere at all.
 */
static int bad_key(struct session *s, const char *name, u32 arg)
{
	bool write = arg >= 5;
	struct kdblk_cmd cmd = cmd_of(write ? KDBLK_OP_WRITE : KDBLK_OP_READ, 3,
				      s->capacity - (1 << 20), FZ_IO / 2);
	u8 *data = s->link->data.p + 3 * FZ_IO;
	u32 rkey = 0, answers = s->link->nanswers;
	int err = 0;

	memset(data, POISON, FZ_IO);
	switch (arg % 5) {
	case 1:
		fz_rnd_bytes(&rkey, sizeof(rkey));
		break;
	case 2:
		err = fz_lend(s->link, 3, FZ_IO / PAGE_SIZE, write ? LEND_WRITE : LEND_READ, &rkey);
		break;
	case 3:
		cmd.address = cpu_to_le64(1ull << 40);
		err = fz_lend(s->link, 3, FZ_IO / PAGE_SIZE, write ? LEND_READ : LEND_WRITE, &rkey);
		break;
	case 4:
		err = fz_lend(s->link, 3, 4, write ? LEND_READ : LEND_WRITE, &rkey);
		break;
	}
	cmd.rkey = cpu_to_le32(rkey);
	err = err ?: fz_send(s->link, &cmd, sizeof(cmd));
	if (!err && fz_ia.iwarp && arg == 7) {
		/*
		 * soft-iWARP of this side does not look at the right: it answers such a Read,
		 * or neither this one nor what is behind it. Either harms this session only.
		 */
		fz_until(s->link, s->link->over, 2000);
		return 0;
	}
	err = err ?: has_ended(s, name, answers);
	if (!err && memchr_inv(data + 4 * PAGE_SIZE, POISON, FZ_IO - 4 * PAGE_SIZE))
		err = fz_fail("%s: memory was written that was not lent", name);
	if (!err && arg % 5 != 4 && memchr_inv(data, POISON, FZ_IO))
		err = fz_fail("%s: memory was written without a right to it", name);
	return err;
}

/*
 * A tag that is in flight: the data of a WRITE has to be fetched first, a FENCE is left to a work
 * item. Should the second one come late all the same, both are right.
 */
static int bad_twice(struct session *s, const char *name, bool admin)
{
	struct kdblk_cmd second = admin ? cmd_of(KDBLK_OP_KEEPALIVE, KDBLK_TAG_ADMIN, 0, 0) :
					  cmd_of(KDBLK_OP_READ, 5, 0, FZ_INLINE);
	struct kdblk_cmd first = admin ? cmd_of(KDBLK_OP_FENCE, KDBLK_TAG_ADMIN, 0, 0) :
					 cmd_of(KDBLK_OP_WRITE, 5, s->capacity - (1 << 20), FZ_IO);
	u32 answers, rkey;
	int i, err = 0;

	second.flags = admin ? 0 : KDBLK_CMD_INLINE;
	for (i = 0; i < 200 && !s->link->over && !err; i++) {
		answers = s->link->nanswers;
		if (!admin) {
			err = fz_lend(s->link, 5, FZ_IO / PAGE_SIZE, LEND_READ, &rkey);
			first.rkey = cpu_to_le32(rkey);
		}
		err = err ?: fz_send(s->link, &first, sizeof(first)) ?:
		      fz_send(s->link, &second, sizeof(second));
		if (!err && !fz_until(s->link, s->link->over || s->link->nanswers >= answers + 2,
				      FZ_LONG_MS))
			err = fz_fail("%s: neither an end nor two answers", name);
	}
	if (!err && !s->link->over)
		err = fz_fail("%s: two at a time, and the session goes on", name);
	return err;
}

static int bad_queue(struct session *s, const char *name, u8 opcode)
{
	struct kdblk_connect hello = hello_of(1, le64_to_cpu(s->geo.session), 4);
	struct kdblk_cmd cmd = cmd_of(opcode, KDBLK_TAG_ADMIN, 0,
				      opcode == KDBLK_OP_LOGIN ? sizeof(struct kdblk_login) : 0);
	struct kdblk_login l = login_of(1000, 1);
	struct session q = {};
	int err = connect(&q, &hello);

	if (opcode == KDBLK_OP_LOGIN)
		cmd.flags = KDBLK_CMD_INLINE;
	err = err ?: send_with(q.link, &cmd, &l, le32_to_cpu(cmd.length)) ?:
	      has_ended(&q, name, 0) ?:
	      has_ended(s, name, s->link->nanswers);
	close(&q);
	return err;
}

/* A command that is right, on the last MiB of the disk. */
static struct kdblk_cmd right_one(const struct session *s, u32 op)
{
	u64 there = s->capacity - (1 << 20);
	struct kdblk_cmd cmd;

	if ((u8)op == KDBLK_OP_KEEPALIVE || (u8)op == KDBLK_OP_FENCE)
		return cmd_of(op, KDBLK_TAG_ADMIN, 0, 0);
	cmd = (u8)op == KDBLK_OP_FLUSH ? cmd_of(op, 1, 0, 0) : cmd_of(op, 1, there, s->block);
	if (op & INLINE)
		cmd.flags = KDBLK_CMD_INLINE;
	return cmd;
}

/*
 * In a session of its own, that of the others stays as it is: an inline READ of an initiator that
 * takes no data in answers, or of more than the target has memory for.
 */
static int bad_hello(const char *name, bool large)
{
	struct kdblk_cmd cmd = cmd_of(KDBLK_OP_READ, 1, 0, 512);
	struct kdblk_connect hello = hello_of(0, 0, FZ_DEPTH);
	struct session s;
	int err;

	if (!large)
		hello.version = cpu_to_le16(KDBLK_VERSION_MIN);
	hello.answer_size = cpu_to_le16(large ? U16_MAX : 0);
	cmd.flags = KDBLK_CMD_INLINE;
	err = open_with(&s, 10000, 1, hello);
	if (!err && large)
		cmd.length = cpu_to_le32(s.inline_size + s.block);
	err = err ?: fz_send(s.link, &cmd, sizeof(cmd)) ?: has_ended(&s, name, s.link->nanswers);
	close(&s);
	return err;
}

static int bad_one(struct session *s, int i)
{
	u32 arg = bads[i].arg, bs = s->block, size = 0, answers = s->link->nanswers;
	u64 cap = s->capacity, there = cap - (1 << 20);
	const u64 offsets[] = {
		cap, cap - bs, -(u64)bs, there + 1, there + bs / 2, 1ull << 63,
	};
	struct kdblk_cmd cmd = right_one(s, KDBLK_OP_READ);
	const char *name = bads[i].name;
	struct kdblk_login l = login_of(1000, 1);
	int err;

	switch (bads[i].kind) {
	case BAD_FIELD:
		cmd = right_one(s, arg);
		fz_patch(&cmd, &bads[i].patch);
		if (cmd.flags & KDBLK_CMD_INLINE)
			size = le32_to_cpu(cmd.length);
		break;
	case BAD_ABOVE:
		cmd.opcode = arg;
		cmd.offset = 0;
		cmd.length = cpu_to_le32((arg == KDBLK_OP_READ || arg == KDBLK_OP_WRITE ?
					  s->max_io : le32_to_cpu(s->geo.max_range)) + bs);
		break;
	case BAD_OFFSET:
		cmd.offset = cpu_to_le64(offsets[arg]);
		cmd.length = cpu_to_le32(2 * bs);
		break;
	case BAD_DEPTH:
		cmd.tag = cpu_to_le16(s->depth);
		break;
	case BAD_SIZE:
		cmd = right_one(s, KDBLK_OP_FLUSH);
		if (arg < sizeof(cmd)) {
			err = fz_send(s->link, &cmd, arg);
			return err ?: has_ended(s, name, answers);
		}
		size = arg - sizeof(cmd);
		break;
	case BAD_INLINE:
		cmd = right_one(s, KDBLK_OP_WRITE | INLINE);
		cmd.length = cpu_to_le32(2 * bs);
		size = arg;
		if (size == 2 * bs)
			size += bs;
		break;
	case BAD_AGAIN:
		cmd = cmd_of(KDBLK_OP_LOGIN, KDBLK_TAG_ADMIN, 0, sizeof(l));
		cmd.flags = KDBLK_CMD_INLINE;
		err = send_with(s->link, &cmd, &l, sizeof(l));
		return err ?: has_ended(s, name, answers);
	case BAD_QUEUE:
		return bad_queue(s, name, arg);
	case BAD_INVALIDATE:
		cmd = right_one(s, KDBLK_OP_FLUSH);
		err = fz_send_invalidate(s->link, &cmd, sizeof(cmd), fz_rnd(1 << 30));
		return err ?: has_ended(s, name, answers);
	case BAD_READ:
		cmd.flags = KDBLK_CMD_INLINE;
		if (arg == 0)
			size = bs;
		else if (arg == 1)
			cmd.length = cpu_to_le32(FZ_INLINE + bs);
		else
			cmd.rkey = cpu_to_le32(0x1234);
		break;
	case BAD_HELLO:
		return bad_hello(name, arg);
	case BAD_KEY:
		return bad_key(s, name, arg);
	case BAD_TWICE:
		return bad_twice(s, name, arg);
	}
	return send_with(s->link, &cmd, NULL, size) ?: has_ended(s, name, answers);
}

/* bad NAME: one of the above; and all that need a login, without it */
int fz_bad(char *arg)
{
	struct kdblk_connect hello = hello_of(0, 0, FZ_DEPTH);
	int i = fz_find(&fz_bads, arg), err = -EINVAL;
	struct session s;

	if (i >= 0) {
		err = open(&s, 10000, 2) ?: bad_one(&s, i);
		close(&s);
		return err;
	}
	/* before-login OPCODE */
	if (!strncmp(arg, "before-login ", 13)) {
		struct kdblk_cmd cmd = cmd_of(fz_number(arg + 13), 0, 0, 4096);

		if (cmd.opcode == KDBLK_OP_KEEPALIVE)
			cmd = cmd_of(cmd.opcode, KDBLK_TAG_ADMIN, 0, 0);
		if (cmd.opcode == KDBLK_OP_FLUSH)
			cmd.length = 0;
		memset(&s, 0, sizeof(s));
		err = connect(&s, &hello) ?: fz_send(s.link, &cmd, sizeof(cmd)) ?:
		      has_ended(&s, arg, 0);
		close(&s);
	}
	return err;
}

/* ---- connection requests and logins that must not be ---- */

#define HELLO(name, reason, field, bytes, to) \
	{ name, KDBLK_REFUSE_##reason, 0, 0, FZ_PATCH(kdblk_connect, field, bytes, to) }

static const struct {
	const char *name;
	u16 reason, queue;
	u64 session;
	struct fz_patch patch;
	int size;		/* of the request; 0: as it should be, -1: 0 */
} hellos[] = {
	{ "none", KDBLK_REFUSE_FORMAT, .size = -1 },
	/* padded with zeroes on RoCE, which makes it one that wants a depth of 0 */
	{ "short", KDBLK_REFUSE_FORMAT, .size = 16 },
	HELLO("magic", FORMAT, magic, 4, KDBLK_MAGIC ^ 0x100),
	HELLO("version-1", VERSION, version, 2, 1),
	HELLO("version-more", VERSION, version, 2, KDBLK_VERSION + 1),
	/* this one had no data in answers */
	HELLO("version-2", FORMAT, version, 2, 2),
	{ "queue-256", KDBLK_REFUSE_FORMAT, 256, 1 },
	{ "queue-65535", KDBLK_REFUSE_FORMAT, 65535, 1 },
	{ "queue-1-of-none", KDBLK_REFUSE_FORMAT, 1, 0 },
	{ "session-of-queue-0", KDBLK_REFUSE_FORMAT, 0, 1 },
	{ "session-unknown", KDBLK_REFUSE_SESSION, 1, 0x123456789abcdefull },
	HELLO("depth-0", FORMAT, depth, 2, 0),
	HELLO("depth-1025", FORMAT, depth, 2, 1025),
	HELLO("depth-65535", FORMAT, depth, 2, 65535),
	{ "proof-first", KDBLK_REFUSE_FORMAT, 0, 0, FZ_PATCH(kdblk_connect, proof[0], 1, 1) },
	{ "proof-last", KDBLK_REFUSE_FORMAT, 0, 0, FZ_LAST(kdblk_connect, proof, 1) },
};

const struct fz_table fz_hellos = FZ_TABLE(hellos);

/* Where the transport carries it, the reason is the right one. */
static int is_refused(struct session *s, const char *what, int err, u16 reason)
{
	const struct kdblk_reject *no = (const void *)s->link->pdata;

	if (err != -ECONNREFUSED)
		return fz_fail("%s: not refused (%d)", what, err);
	if (s->link->event != DAT_CONNECTION_EVENT_PEER_REJECTED)
		return fz_ia.iwarp ? 0 : fz_fail("%s: event 0x%x", what, s->link->event);
	if (s->link->pdata_size < sizeof(*no))
		return fz_ia.iwarp ? 0 : fz_fail("%s: refused without a reason", what);
	if (le32_to_cpu(no->magic) != KDBLK_MAGIC || le16_to_cpu(no->version) != KDBLK_VERSION ||
	    le16_to_cpu(no->reason) != reason)
		return fz_fail("%s: refused with reason %u instead of %u", what,
			       le16_to_cpu(no->reason), reason);
	return 0;
}

int fz_hello(char *arg)
{
	int i = fz_find(&fz_hellos, arg), err, size;
	struct session s = {};
	struct kdblk_connect h;

	if (i < 0)
		return i;
	h = hello_of(hellos[i].queue, hellos[i].session, 4);
	fz_patch(&h, &hellos[i].patch);
	size = hellos[i].size ? max(hellos[i].size, 0) : sizeof(h);
	s.link = fz_link_new();
	if (!s.link)
		return -ENOMEM;
	err = is_refused(&s, arg, fz_link_connect(s.link, &h, size), hellos[i].reason);
	close(&s);
	return err;
}

enum { LOGIN_SIZE = 1, LOGIN_CMD, LOGIN_BARE, LOGIN_UNKNOWN, LOGIN_TWICE };

#define LOGIN(name, field, bytes, to)	{ name, 0, FZ_PATCH(kdblk_login, field, bytes, to) }

static const struct {
	const char *name;
	/* 0: a field of the login, LOGIN_CMD: of the command before it, LOGIN_BARE: alone */
	int kind;
	struct fz_patch patch;
} logins[] = {
	LOGIN("no-name", initiator, KDBLK_NAME_LEN, 0),
	LOGIN("no-disk", disk, KDBLK_NAME_LEN, 0),
	LOGIN("name-without-end", initiator, KDBLK_NAME_LEN, 'x'),
	LOGIN("disk-without-end", disk, KDBLK_NAME_LEN, 'x'),
	{ "name-junk-behind", 0, FZ_LAST(kdblk_login, initiator, 'x') },
	{ "disk-junk-behind", 0, FZ_LAST(kdblk_login, disk, 'x') },
	LOGIN("name-space", initiator[3], 1, ' '),
	LOGIN("name-control", initiator[3], 1, 0x1b),
	LOGIN("name-beyond-ascii", initiator[3], 1, 0xe9),
	LOGIN("disk-slash", disk[0], 1, '/'),
	LOGIN("keepalive-0", keepalive_ms, 4, 0),
	LOGIN("keepalive-99", keepalive_ms, 4, 99),
	LOGIN("keepalive-600001", keepalive_ms, 4, 600001),
	LOGIN("queues-0", queues, 2, 0),
	LOGIN("queues-257", queues, 2, 257),
	{ "reserved-first", 0, FZ_PATCH(kdblk_login, reserved[0], 1, 1) },
	{ "reserved-last", 0, FZ_LAST(kdblk_login, reserved, 1) },
	{ "length-255", LOGIN_SIZE, { .value = 255 } },
	{ "length-257", LOGIN_SIZE, { .value = 257 } },
	{ "length-0", LOGIN_SIZE },
	{ "not-inline", LOGIN_CMD, FZ_PATCH(kdblk_cmd, flags, 1, 0) },
	{ "without-data", LOGIN_BARE, FZ_PATCH(kdblk_cmd, flags, 1, 0) },
	{ "tag-0", LOGIN_CMD, FZ_PATCH(kdblk_cmd, tag, 2, 0) },
	{ "offset", LOGIN_CMD, FZ_PATCH(kdblk_cmd, offset, 8, 512) },
	{ "unknown-disk", LOGIN_UNKNOWN, FZ_PATCH(kdblk_login, disk[0], 1, '?') },
	{ "twice-at-once", LOGIN_TWICE },
};

const struct fz_table fz_logins = FZ_TABLE(logins);

int fz_login(char *arg)
{
	struct kdblk_cmd cmd = cmd_of(KDBLK_OP_LOGIN, KDBLK_TAG_ADMIN, 0,
				      sizeof(struct kdblk_login));
	struct kdblk_connect hello = hello_of(0, 0, FZ_DEPTH);
	struct kdblk_login l = login_of(5000, 1);
	int i = fz_find(&fz_logins, arg), kind, times, err;
	u32 size = sizeof(l), answers;
	struct session s = {};

	if (i < 0)
		return i;
	kind = logins[i].kind;
	times = kind == LOGIN_TWICE ? 2 : 1;
	answers = kind == LOGIN_UNKNOWN;
	cmd.flags = KDBLK_CMD_INLINE;
	if (kind == LOGIN_SIZE) {
		size = logins[i].patch.value;
		cmd.length = cpu_to_le32(size);
	} else if (kind == LOGIN_BARE) {
		size = 0;
	}
	fz_patch(kind == LOGIN_CMD || kind == LOGIN_BARE ? (void *)&cmd : &l, &logins[i].patch);
	err = connect(&s, &hello);
	while (!err && times--)
		err = send_with(s.link, &cmd, &l, size);
	/* One that is right may have been answered before the second one came. */
	if (!err && !fz_until(s.link, s.link->over, FZ_LONG_MS))
		err = fz_fail("login %s: the session goes on", arg);
	else if (!err && kind != LOGIN_TWICE && s.link->nanswers != answers)
		err = fz_fail("login %s: %u answers", arg, s.link->nanswers);
	else if (!err && answers && le16_to_cpu(last(s.link)->rsp.status) != KDBLK_STATUS_NO_DISK)
		err = fz_fail("login %s: another status", arg);
	close(&s);
	return err;
}

/* Log in while @awake, if there is one, sends keepalives. The status of the answer, or -errno. */
static int log_in_beside(struct session *s, const struct kdblk_login *login, struct session *awake)
{
	struct kdblk_cmd cmd = cmd_of(KDBLK_OP_LOGIN, KDBLK_TAG_ADMIN, 0, sizeof(*login));
	struct kdblk_cmd alive = cmd_of(KDBLK_OP_KEEPALIVE, KDBLK_TAG_ADMIN, 0, 0);
	struct kdblk_connect hello = hello_of(0, 0, FZ_DEPTH);
	int i, err;

	memset(s, 0, sizeof(*s));
	cmd.flags = KDBLK_CMD_INLINE;
	err = connect(s, &hello) ?: send_with(s->link, &cmd, login, sizeof(*login));
	for (i = 0; i < FZ_LONG_MS / 200 && !err; i++) {
		if (fz_until(s->link, s->link->nanswers || s->link->over, 200))
			break;
		if (awake)
			err = status_of(awake, &alive);
	}
	if (err || !s->link->nanswers)
		return err ?: -ECONNRESET;
	s->geo = last(s->link)->login;
	return le16_to_cpu(s->geo.rsp.status);
}

static int fence_path_0(struct session *s)
{
	struct kdblk_cmd cmd = cmd_of(KDBLK_OP_FENCE, KDBLK_TAG_ADMIN, 0, 0);
	int i, status = KDBLK_STATUS_RESOURCE;

	for (i = 0; i < FZ_LONG_MS / 20 && status == KDBLK_STATUS_RESOURCE; i++) {
		status = status_of(s, &cmd);
		msleep(20);
	}
	return status || i < 2 ? fz_fail("FENCE: status %d after %d times", status, i) : 0;
}

/* Logins with one id: of whom, and what comes of it. */
enum { FIRST, PATH, TWIN, MACHINE, ELSEWHERE, LOGINS, FENCE, NONE };

static const struct identity {
	const char *what;
	u8 who, as;		/* session and login; or it fences path 0 */
	u8 awake;		/* a session that sends keepalives meanwhile */
	bool refused;
	u8 ends;		/* a session that ends by it */
	u8 serves[2];		/* sessions that go on */
} identities[] = {
	{ "the first login", 0, FIRST, NONE, false, NONE, { NONE, NONE } },
	{ "another path", 1, PATH, NONE, false, NONE, { 0, 1 } },
	{ "another disk", 4, ELSEWHERE, NONE, false, NONE, { 0, 4 } },
	{ "another machine on a path of its own", 2, MACHINE, 0, true, NONE, { 0, NONE } },
	{ "one like another that is alive", 2, TWIN, 0, true, NONE, { 0, NONE } },
	{ "one like another that is silent", 2, TWIN, 1, false, 0, { NONE, NONE } },
	{ "the same again", 3, TWIN, NONE, false, 2, { 3, 4 } },
	{ "a path is fenced", 1, FENCE, NONE, false, 3, { 4, NONE } },
	{ "another machine, when all are silent", 2, MACHINE, NONE, false, 1, { NONE, NONE } },
};

static int identity_step(const struct identity *t, struct session *s, struct kdblk_login *logins)
{
	int status, i, err;

	if (t->as == FENCE) {
		status = fence_path_0(&s[t->who]);
	} else {
		close(&s[t->who]);
		status = log_in_beside(&s[t->who], &logins[t->as],
				       t->awake == NONE ? NULL : &s[t->awake]);
	}
	if (status != (t->refused ? KDBLK_STATUS_IN_USE : 0))
		return fz_fail("identity: %s: %d", t->what, status);
	err = t->ends == NONE ? 0 : has_ended(&s[t->ends], t->what, s[t->ends].link->nanswers);
	for (i = 0; i < 2 && !err; i++)
		err = t->serves[i] == NONE ? 0 : read_once(&s[t->serves[i]]);
	return err;
}

/*
 * identity DISK: paths of one machine are side by side; of two initiators with the same id and
 * path, and of two machines with the same id, the second one is refused while the first is alive;
 * it takes over when that is silent; an initiator that logs in again takes over at once; one path
 * fences another. None of this concerns the session with the other DISK.
 */
int fz_identity(char *arg)
{
	struct session *s = kcalloc(LOGINS, sizeof(*s), GFP_KERNEL);
	struct kdblk_login *logins = kcalloc(LOGINS, sizeof(*logins), GFP_KERNEL);
	int i, err = s && logins ? 0 : -ENOMEM;

	if (!err) {
		logins[FIRST] = login_of(2000, 1);
		fz_rnd_bytes(logins[FIRST].instance, sizeof(logins[FIRST].instance));
		for (i = PATH; i < LOGINS; i++)
			logins[i] = logins[FIRST];
		logins[PATH].path = cpu_to_le16(1);
		logins[TWIN].instance[KDBLK_START_LEN] ^= 1;
		logins[MACHINE].instance[0] ^= 1;
		logins[MACHINE].path = cpu_to_le16(2);
		memset(logins[ELSEWHERE].disk, 0, KDBLK_NAME_LEN);
		strscpy(logins[ELSEWHERE].disk, arg, KDBLK_NAME_LEN);
		logins[ELSEWHERE].keepalive_ms = cpu_to_le32(600000);	/* it sends none */
	}
	for (i = 0; i < ARRAY_SIZE(identities) && !err; i++)
		err = identity_step(&identities[i], s, logins);
	err = err ?: read_once(&s[4]);
	for (i = 0; i < LOGINS && s; i++)
		close(&s[i]);
	kfree(logins);
	kfree(s);
	return err;
}

/*
 * queues PORT: more than were granted, one twice, one of nobody, one through another portal of the
 * target; the session is as well as before
 */
int fz_queues(char *arg)
{
	u32 granted, i, port = fz_port;
	struct session s, q[4] = {}, no;
	struct kdblk_connect h;
	int err = open(&s, 20000, 4);

	if (err)
		return err;
	granted = le16_to_cpu(s.geo.queues);
	if (!granted || granted > 4)
		err = fz_fail("%u queues are granted, 4 were asked for", granted);
	fz_port = fz_number(arg);
	if (!err) {
		h = hello_of(1, le64_to_cpu(s.geo.session), 4);
		err = is_refused(&q[1], "a queue through another portal", connect(&q[1], &h),
				 KDBLK_REFUSE_SESSION);
		close(&q[1]);
	}
	fz_port = port;
	for (i = 1; i < granted && !err; i++) {
		h = hello_of(i, le64_to_cpu(s.geo.session), 4);
		err = connect(&q[i], &h);
	}
	if (err)
		fz_fail("a queue that was granted: %d", err);
	for (i = 0; i < 6 && !err; i++) {
		u32 n[] = { 1, granted, 255, granted - 1, 1, 0 };
		u64 number = le64_to_cpu(s.geo.session) + (i == 4);

		if (n[i] != 0 || i == 5) {
			h = hello_of(n[i], number, 4);
			memset(&no, 0, sizeof(no));
			err = is_refused(&no, "a queue too many", connect(&no, &h),
					 n[i] ? KDBLK_REFUSE_SESSION : KDBLK_REFUSE_FORMAT);
			close(&no);
		}
	}
	err = err ?: read_once(&s);
	/* One queue goes, and the session with it. */
	if (!err && granted > 1) {
		close(&q[1]);
		err = has_ended(&s, "one queue has gone", s.link->nanswers);
	}
	for (i = 1; i < 4; i++)
		close(&q[i]);
	close(&s);
	return err;
}

/* read-only: of a disk that is, nothing is written, and what is lent comes back */
int fz_read_only(char *arg)
{
	static const u32 ops[] = {
		KDBLK_OP_WRITE | INLINE, KDBLK_OP_WRITE, KDBLK_OP_WRITE_ZEROES, KDBLK_OP_DISCARD,
	};
	struct session s;
	int i, err = open(&s, 10000, 1);

	if (!err && !(le16_to_cpu(s.geo.flags) & KDBLK_DISK_READ_ONLY))
		err = fz_fail("the login does not say that the disk is read-only");
	for (i = 0; i < ARRAY_SIZE(ops) && !err; i++) {
		struct kdblk_cmd cmd = right_one(&s, ops[i]);
		bool lent = ops[i] == KDBLK_OP_WRITE;
		u32 rkey = 0;

		if (lent)
			err = fz_lend(s.link, 1, 1, LEND_READ, &rkey);
		cmd.rkey = cpu_to_le32(rkey);
		err = err ?: status_with(&s, &cmd, ops[i] & INLINE ? s.block : 0);
		if (err != KDBLK_STATUS_READ_ONLY)
			err = fz_fail("opcode %u: status %d", cmd.opcode, err);
		else if (lent && last(s.link)->rkey != rkey)
			err = fz_fail("a WRITE is refused without giving back its memory");
		else
			err = 0;
	}
	err = err ?: read_once(&s);
	close(&s);
	return err;
}

#if IS_REACHABLE(CONFIG_CRYPTO_LIB_SHA256)
static void hmac(const char *secret, const void *data, u32 size, u8 *proof)
{
	struct {
		u8 key[SHA256_BLOCK_SIZE];
		u8 data[512];
	} in = {};
	u8 out[SHA256_BLOCK_SIZE + SHA256_DIGEST_SIZE] = {};
	int i;

	memcpy(in.key, secret, min(strlen(secret), sizeof(in.key)));
	memcpy(in.data, data, size);
	for (i = 0; i < SHA256_BLOCK_SIZE; i++) {
		out[i] = in.key[i] ^ 0x5c;
		in.key[i] ^= 0x36;
	}
	sha256((const u8 *)&in, SHA256_BLOCK_SIZE + size, out + SHA256_BLOCK_SIZE);
	sha256(out, sizeof(out), proof);
}

static void prove(const char *secret, const char *role, const u8 *nonce, struct kdblk_login *login)
{
	struct {
		char role[16];
		u8 nonce[KDBLK_NONCE_LEN];
		struct kdblk_login login;
	} data = { .login = *login };

	strscpy_pad(data.role, role, sizeof(data.role));
	memcpy(data.nonce, nonce, sizeof(data.nonce));
	hmac(secret, &data, sizeof(data), login->proof);
}

/* Bytes that are changed when all is proven, of which each is as good as it was. */
static const u32 proven[] = {
	0,
	offsetofend(struct kdblk_login, id) - 1,
	offsetof(struct kdblk_login, keepalive_ms),
	offsetof(struct kdblk_login, queues),
	offsetof(struct kdblk_login, path),
	offsetofend(struct kdblk_login, instance) - 1,
	offsetofend(struct kdblk_login, nonce) - 1,
	offsetof(struct kdblk_login, proof),
	offsetofend(struct kdblk_login, proof) - 1,
};

/* @what: what is done to a login. @nonce: of the connection it is proven for, or of this one. */
static int prove_once(const char *what, const char *secret, const char *role, u8 *nonce, int change,
		      int wanted)
{
	struct kdblk_login l = login_of(5000, 1);
	struct kdblk_connect hello = hello_of(0, 0, 4);
	u8 own[KDBLK_NONCE_LEN];
	struct session s = {};
	int err = connect(&s, &hello);

	if (!err) {
		memcpy(own, ((const struct kdblk_accept *)s.link->pdata)->nonce, sizeof(own));
		l.queues = cpu_to_le16(2);	/* also when changed within the limits */
		if (secret)
			prove(secret, role, nonce ?: own, &l);
		if (change >= 0)
			((u8 *)&l)[change] ^= 1;
		err = log_in(&s, &l);
		err = err && err != -EACCES ? err : le16_to_cpu(s.geo.rsp.status);
		if (nonce)
			memcpy(nonce, own, sizeof(own));
	}
	close(&s);
	return err == wanted ? 0 :
	       fz_fail("%s (%d): %d instead of %d", what, change, err, wanted);
}

/* Another queue of a session; @change: a byte of its request, when that is proven. */
static int join(const struct session *to, const char *what, const char *secret, const u8 *nonce,
		int change, u16 reason)
{
	struct kdblk_connect hello = hello_of(1, le64_to_cpu(to->geo.session), 4);
	struct {
		char role[16];
		u8 nonce[KDBLK_NONCE_LEN];
		u8 hello[offsetof(struct kdblk_connect, proof)];
	} data = { .role = "kdblk queue" };
	u8 proof[KDBLK_PROOF_LEN];
	struct session s = {};
	int err;

	memcpy(data.nonce, nonce, sizeof(data.nonce));
	memcpy(data.hello, &hello, sizeof(data.hello));
	if (secret) {
		hmac(secret, &data, sizeof(data), proof);
		memcpy(hello.proof, proof, sizeof(hello.proof));
	}
	if (change >= 0)
		((u8 *)&hello)[change] ^= 1;
	err = connect(&s, &hello);
	if (reason)
		err = is_refused(&s, what, err, reason);
	else if (err)
		fz_fail("%s: %d", what, err);
	close(&s);
	return err;
}

static int prove_queue(const char *secret)
{
	const u32 depth = offsetof(struct kdblk_connect, depth);
	const u32 first = offsetof(struct kdblk_connect, proof);
	struct kdblk_connect hello = hello_of(0, 0, 4);
	const u16 no = KDBLK_REFUSE_SESSION;
	struct kdblk_login l = login_of(5000, 2);
	u8 nonce[KDBLK_NONCE_LEN], zeroes[KDBLK_NONCE_LEN] = {};
	struct session s = {};
	int err = connect(&s, &hello);

	if (!err) {
		memcpy(nonce, ((const struct kdblk_accept *)s.link->pdata)->nonce, sizeof(nonce));
		prove(secret, "kdblk initiator", nonce, &l);
		err = log_in(&s, &l);
	}
	err = err ?: join(&s, "a queue without a proof", NULL, nonce, -1, no) ?:
	      join(&s, "a queue proven for zeroes", secret, zeroes, -1, no) ?:
	      join(&s, "a queue of another depth", secret, nonce, depth, no) ?:
	      join(&s, "a queue with another proof", secret, nonce, first, no) ?:
	      join(&s, "a queue with another proof", secret, nonce, sizeof(hello) - 1, no) ?:
	      join(&s, "a queue with its proof", secret, nonce, -1, 0);
	close(&s);
	return err;
}

/* prove SECRET: the target wants it, for this login and connection; it knows our name by it */
int fz_prove(char *secret)
{
	const char *role = "kdblk initiator";
	u8 before[KDBLK_NONCE_LEN] = {};
	int i, err;

	err = prove_once("a proof", secret, role, NULL, -1, 0) ?:
	      prove_once("no proof", NULL, role, NULL, -1, KDBLK_STATUS_UNPROVEN) ?:
	      prove_once("the proof of a target", secret, "kdblk target", NULL, -1,
			 KDBLK_STATUS_UNPROVEN) ?:
	      prove_once("a proof for zeroes", secret, role, before, -1, KDBLK_STATUS_UNPROVEN) ?:
	      prove_once("a proof for an earlier connection", secret, role, before, -1,
			 KDBLK_STATUS_UNPROVEN) ?:
	      prove_queue(secret);
	for (i = 0; i < ARRAY_SIZE(proven) && !err; i++)
		err = prove_once("another byte", secret, role, NULL, proven[i],
				 KDBLK_STATUS_UNPROVEN);
	return err;
}
#else
int fz_prove(char *secret)
{
	pr_info("this kernel has no SHA-256 for a proof\n");
	return 0;
}
#endif

/* ---- too many, too slow, too fast, gone ---- */

/*
 * silent N: connections that say nothing, all of which end by themselves. While the first one has
 * not, there are no more than the target lets in.
 */
int fz_silent(char *arg)
{
	unsigned long first_ends = jiffies + msecs_to_jiffies(4500);
	u32 i, n = fz_number(arg), up = 0;
	struct session *s = kvcalloc(n, sizeof(*s), GFP_KERNEL);
	int err = 0;

	if (!s)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		struct kdblk_connect h = hello_of(0, 0, 1);

		up += !connect(&s[i], &h);
		if (up > HALF_OPEN && !err && time_before(jiffies, first_ends))
			err = fz_fail("%u connections without a login at a time", up);
	}
	for (i = 0; i < n; i++) {
		if (s[i].link && !err)
			err = has_ended(&s[i], "a connection without a login", 0);
		close(&s[i]);
	}
	kvfree(s);
	pr_info("%u of %u connections without a login were accepted\n", up, n);
	return err;
}

/* keepalive: none, and the session ends; some, and it does not */
int fz_keepalive(char *arg)
{
	struct kdblk_cmd cmd = cmd_of(KDBLK_OP_KEEPALIVE, KDBLK_TAG_ADMIN, 0, 0);
	unsigned long start;
	struct session s;
	/* it ends after three times that: a machine may stand still for seconds */
	int i, err = open(&s, 1500, 1);

	for (i = 0; i < 10 && !err; i++) {
		msleep(700);
		err = status_of(&s, &cmd);
		if (err)
			err = fz_fail("keepalive %d: %d", i, err);
	}
	start = jiffies;
	err = err ?: has_ended(&s, "no keepalive", s.link->nanswers);
	if (!err && time_before(jiffies, start + msecs_to_jiffies(1500)))
		err = fz_fail("ended within %u ms after a keepalive",
			      jiffies_to_msecs(jiffies - start));
	close(&s);
	return err;
}

/* READs into memory, WRITEs from it; reads only, or into the last MiB of the disk */
static int fill(struct session *s, u32 n, u8 opcode, u32 pages)
{
	u32 i, rkey;
	int err = 0;

	for (i = 0; i < n && !err; i++) {
		struct kdblk_cmd cmd = cmd_of(opcode, i, s->capacity - (1 << 20),
					      pages * PAGE_SIZE);

		err = fz_lend(s->link, i, pages, right_for(opcode), &rkey);
		cmd.rkey = cpu_to_le32(rkey);
		err = err ?: fz_send(s->link, &cmd, sizeof(cmd));
	}
	return err;
}

/* inflight ROUNDS: disconnected, or gone, with commands in flight */
int fz_inflight(char *arg)
{
	u32 i, n = fz_number(arg);
	struct session s;
	int err = 0;

	for (i = 0; i < n && !err; i++) {
		u8 opcode = i & 1 ? KDBLK_OP_WRITE : KDBLK_OP_READ;

		err = open(&s, 5000, 1);
		if (err)
			break;
		err = fill(&s, s.depth, opcode, 1 + fz_rnd(FZ_IO / PAGE_SIZE));
		if (i & 2)
			usleep_range(0, fz_rnd(3000));
		if (i & 4)
			dat_ep_disconnect(s.link->ep, DAT_CLOSE_ABRUPT_FLAG);
		close(&s);	/* its memory is somebody else's at once */
	}
	return err;
}

/* deaf: READs, and no Receive for the answers. What they hold up must come back. */
int fz_deaf(char *arg)
{
	struct session s;
	int err = open(&s, 600000, 1);

	if (err)
		return err;
	/*
	 * Those that are posted take FZ_DEPTH + 1 answers, of which the login has used
	 * one that is not posted again.
	 */
	s.link->deaf = true;
	err = fill(&s, s.depth, KDBLK_OP_READ, FZ_IO / PAGE_SIZE);
	if (!err && !fz_until(s.link, s.link->nanswers > s.depth || s.link->over, FZ_LONG_MS))
		err = fz_fail("deaf: %u answers", s.link->nanswers);
	err = err ?: fill(&s, s.depth, KDBLK_OP_READ, FZ_IO / PAGE_SIZE);
	if (!err && !fz_until(s.link, s.link->over, FZ_LONG_MS))
		err = fz_fail("deaf: the session goes on");
	close(&s);
	return err;
}

/*
 * attack N: RDMA at the target's memory, with keys that it might have. On iWARP a Write has
 * succeeded when it was sent.
 */
int fz_attack(char *arg)
{
	u32 i, n = fz_number(arg);
	struct session s;
	int err = 0;

	for (i = 0; i < n && !err; i++) {
		u32 rkey = fz_rnd(64) << 8 | fz_rnd(256);
		u64 address = fz_rnd(2) ? 0 : (uintptr_t)fz_attack;
		bool write = fz_rnd(2);

		err = open(&s, 5000, 1);
		if (err)
			break;
		/* Where that is agreed on, a target lets nobody read. */
		if (fz_rdma(s.link, write, 0, 512, address, rkey, 0) && !write) {
			write = true;
			err = fz_rdma(s.link, write, 0, 512, address, rkey, 0);
		}
		if (!err && !fz_until(s.link, s.link->over, FZ_LONG_MS))
			err = fz_fail("RDMA at key 0x%x: the session goes on", rkey);
		if (!err && s.link->rdma && !(fz_ia.iwarp && write))
			err = fz_fail("RDMA at key 0x%x works", rkey);
		close(&s);
	}
	return err;
}

/* ---- at random ---- */

static int random_one(struct session *s)
{
	static const u8 ops[] = {
		KDBLK_OP_READ, KDBLK_OP_WRITE, KDBLK_OP_WRITE, KDBLK_OP_FLUSH, KDBLK_OP_DISCARD,
		KDBLK_OP_WRITE_ZEROES, KDBLK_OP_KEEPALIVE, KDBLK_OP_FENCE, KDBLK_OP_LOGIN,
	};
	u8 opcode = ops[fz_rnd(fz_rnd(20) ? ARRAY_SIZE(ops) - 1 : ARRAY_SIZE(ops))];
	u32 pages = 1 + fz_rnd(FZ_IO / PAGE_SIZE), tag = fz_rnd(s->depth), size = 0, n, rkey;
	struct kdblk_cmd cmd = cmd_of(opcode, tag, 0, 0);
	struct kdblk_login l = login_of(1000, 1);

	if (opcode >= KDBLK_OP_READ && opcode != KDBLK_OP_FLUSH) {
		cmd.offset = cpu_to_le64(fz_rnd(s->capacity / 4096 - 16) * 4096ull);
		cmd.length = cpu_to_le32(pages * 4096);
	}
	switch (opcode) {
	case KDBLK_OP_WRITE:
		if (fz_rnd(2)) {
			size = min_t(u32, 4096, s->inline_size);
			cmd.length = cpu_to_le32(size);
			cmd.flags = KDBLK_CMD_INLINE;
			break;
		}
		fallthrough;
	case KDBLK_OP_READ:
		if (opcode == KDBLK_OP_READ && fz_rnd(2)) {
			cmd.length = cpu_to_le32(FZ_INLINE);
			cmd.flags = KDBLK_CMD_INLINE;
			break;
		}
		/* While the last answer is not here, its memory is not free. */
		if (fz_lend(s->link, tag, pages, right_for(opcode), &rkey))
			return 0;
		cmd.rkey = cpu_to_le32(rkey);
		break;
	case KDBLK_OP_LOGIN:
		size = sizeof(l);
		cmd.length = cpu_to_le32(size);
		cmd.flags = KDBLK_CMD_INLINE;
		fallthrough;
	case KDBLK_OP_KEEPALIVE:
	case KDBLK_OP_FENCE:
		cmd.tag = cpu_to_le16(KDBLK_TAG_ADMIN);
		break;
	}
	if (!fz_rnd(3)) {
		for (n = 1 + fz_rnd(3); n; n--)
			((u8 *)&cmd)[fz_rnd(fz_rnd(4) ? 28 : sizeof(cmd))] ^= 1 << fz_rnd(8);
	} else if (!fz_rnd(30)) {
		fz_rnd_bytes(&cmd, sizeof(cmd));
	}
	if (!fz_rnd(40))
		size = fz_rnd(s->inline_size + 512);
	if (!fz_rnd(60))
		return fz_send(s->link, &cmd, fz_rnd(sizeof(cmd)));
	if (!fz_rnd(80))
		return fz_send_invalidate(s->link, &cmd, sizeof(cmd), fz_rnd(1 << 16));
	return send_with(s->link, &cmd, opcode == KDBLK_OP_LOGIN ? &l : NULL, size);
}

/* random N: messages, right and wrong */
int fz_random(char *arg)
{
	u32 i, n = fz_number(arg), sessions = 0, ended = 0, answers = 0;
	struct session s = {};
	int err = 0;

	for (i = 0; i < n && !err; i++) {
		if (!s.link) {
			err = open(&s, 2000, 1);
			sessions++;
			if (err)
				break;
		}
		if (random_one(&s) || !fz_rnd(300))
			fz_until(s.link, s.link->over, 50);
		fz_link_poll(s.link);
		if (!fz_rnd(8))
			fz_until(s.link, s.link->over, 3);
		if (s.link->over || !fz_rnd(500)) {
			ended += s.link->over;
			answers += s.link->nanswers;
			close(&s);
		}
	}
	close(&s);
	pr_info("%u messages at random: %u sessions, %u ended by the target, %u answers\n", n,
		sessions, ended, answers);
	return err ?: fz_good(NULL);
}

/* random-connect N: private data and logins at random */
int fz_random_connect(char *arg)
{
	u32 i, k, n = fz_number(arg), up = 0, in = 0;
	int err = 0;

	for (i = 0; i < n && !err; i++) {
		struct kdblk_connect h = hello_of(0, 0, 1 + fz_rnd(FZ_DEPTH));
		struct kdblk_login l = login_of(100 + fz_rnd(10000), 1 + fz_rnd(8));
		struct session s = {};
		int size = fz_rnd(4) ? sizeof(h) : fz_rnd(sizeof(h) + 1);

		if (fz_rnd(2))
			((u8 *)&h)[fz_rnd(sizeof(h))] ^= 1 << fz_rnd(8);
		for (k = fz_rnd(3); k; k--)
			((u8 *)&l)[fz_rnd(sizeof(l))] ^= 1 << fz_rnd(8);
		s.link = fz_link_new();
		if (!s.link)
			return -ENOMEM;
		err = fz_link_connect(s.link, &h, size);
		if (!err) {
			up++;
			err = log_in(&s, &l);
			in += !err;
		}
		if (err == -ECONNREFUSED || err == -ECONNRESET || err == -EACCES)
			err = 0;
		close(&s);
	}
	pr_info("%u connections at random, %u accepted, %u logged in\n", n, up, in);
	return err ?: fz_good(NULL);
}
