// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The hostile initiator. Each violation has a session of its own, which has to end, by an
 * event, within a finite time, and without an answer.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "kdblkfuzz.h"

#define LEND_READ	DAT_MEM_PRIV_REMOTE_READ_FLAG
#define LEND_WRITE	DAT_MEM_PRIV_REMOTE_WRITE_FLAG
#define POISON	0xa5

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

static int open(struct session *s, u32 keepalive_ms, u16 queues)
{
	struct kdblk_connect hello = hello_of(0, 0, FZ_DEPTH);
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

/* The status of a command that is right; or -errno. */
static int status_of(struct session *s, const struct kdblk_cmd *cmd)
{
	u32 before = s->link->nanswers;

	if (fz_send(s->link, cmd, sizeof(*cmd)))
		return -EIO;
	fz_until(s->link, s->link->nanswers > before || s->link->over, FZ_LONG_MS);
	return s->link->nanswers > before ? le16_to_cpu(last(s->link)->rsp.status) : -ECONNRESET;
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

/* good: somebody who does nothing wrong is served */
int fz_good(char *arg)
{
	struct session s;
	int err = open(&s, 5000, 1) ?: read_once(&s);

	if (err)
		err = fz_fail("a good initiator is not served: %d", err);
	close(&s);
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
	BAD_OPCODE, BAD_FLAGS, BAD_RESERVED, BAD_LENGTH, BAD_ABOVE, BAD_OFFSET, BAD_TAG,
	BAD_SIZE, BAD_INLINE, BAD_NO_USE, BAD_AGAIN, BAD_ADMIN, BAD_QUEUE, BAD_INVALIDATE,
	BAD_KEY, BAD_TWICE,
};

static const struct {
	const char *name;
	enum bad kind;
	u32 arg;
} bads[] = {
	{ "opcode-0", BAD_OPCODE, 0 },
	{ "opcode-3", BAD_OPCODE, 3 },
	{ "opcode-15", BAD_OPCODE, 15 },
	{ "opcode-21", BAD_OPCODE, 21 },
	{ "opcode-255", BAD_OPCODE, 255 },
	{ "read-inline", BAD_FLAGS, KDBLK_OP_READ << 8 | KDBLK_CMD_INLINE },
	{ "read-fua", BAD_FLAGS, KDBLK_OP_READ << 8 | KDBLK_CMD_FUA },
	{ "flush-fua", BAD_FLAGS, KDBLK_OP_FLUSH << 8 | KDBLK_CMD_FUA },
	{ "discard-nounmap", BAD_FLAGS, KDBLK_OP_DISCARD << 8 | KDBLK_CMD_NOUNMAP },
	{ "write-nounmap", BAD_FLAGS, KDBLK_OP_WRITE << 8 | KDBLK_CMD_NOUNMAP },
	{ "zeroes-inline", BAD_FLAGS, KDBLK_OP_WRITE_ZEROES << 8 | KDBLK_CMD_INLINE },
	{ "flags-08", BAD_FLAGS, KDBLK_OP_WRITE << 8 | 0x08 },
	{ "flags-80", BAD_FLAGS, KDBLK_OP_FLUSH << 8 | 0x80 },
	{ "reserved-first", BAD_RESERVED, 0 },
	{ "reserved-last", BAD_RESERVED, 35 },
	{ "length-0", BAD_LENGTH, 0 },
	{ "length-1", BAD_LENGTH, 1 },
	{ "length-part", BAD_LENGTH, 4096 + 256 },
	{ "length-ffffffff", BAD_LENGTH, 0xffffffff },
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
	{ "tag-depth", BAD_TAG, 0 },
	{ "tag-fffe", BAD_TAG, 1 },
	{ "tag-admin", BAD_TAG, 2 },
	{ "tag-in-flight", BAD_TWICE, 0 },
	{ "size-0", BAD_SIZE, 0 },
	{ "size-1", BAD_SIZE, 1 },
	{ "size-63", BAD_SIZE, 63 },
	{ "size-65", BAD_SIZE, 65 },
	{ "size-beyond-inline", BAD_SIZE, 32768 },
	{ "inline-less", BAD_INLINE, 512 },
	{ "inline-more", BAD_INLINE, 2048 },
	{ "inline-none", BAD_INLINE, 0 },
	{ "flush-offset", BAD_NO_USE, 0 },
	{ "flush-length", BAD_NO_USE, 1 },
	{ "flush-address", BAD_NO_USE, 2 },
	{ "flush-rkey", BAD_NO_USE, 3 },
	{ "discard-rkey", BAD_NO_USE, 4 },
	{ "write-inline-rkey", BAD_NO_USE, 5 },
	{ "login-again", BAD_AGAIN, 0 },
	{ "keepalive-tag", BAD_ADMIN, 0 },
	{ "keepalive-length", BAD_ADMIN, 1 },
	{ "keepalive-offset", BAD_ADMIN, 2 },
	{ "keepalive-address", BAD_ADMIN, 3 },
	{ "keepalive-inline", BAD_ADMIN, 4 },
	{ "keepalive-in-flight", BAD_TWICE, 1 },
	{ "keepalive-on-queue-1", BAD_QUEUE, KDBLK_OP_KEEPALIVE },
	{ "login-on-queue-1", BAD_QUEUE, KDBLK_OP_LOGIN },
	{ "invalidation", BAD_INVALIDATE, 0 },
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

int fz_bad_names(char *to, int size)
{
	int i, n = 0;

	for (i = 0; i < ARRAY_SIZE(bads); i++)
		n += scnprintf(to + n, size - n, "%s\n", bads[i].name);
	return n;
}

/*
 * What is written comes into the last MiB of the disk, should it come there against all
 * rules; what is read, nowhere at all.
 */
static int bad_key(struct session *s, const char *name, u32 arg)
{
	bool write = arg >= 5;
	struct kdblk_cmd cmd = cmd_of(write ? KDBLK_OP_WRITE : KDBLK_OP_READ, 3,
				      s->capacity - (1 << 20), FZ_IO / 2);
	u8 *data = s->link->data.va + 3 * FZ_IO;
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
	if (!err && fz_iwarp && arg == 7) {
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

/* Whether the second one comes before the first is answered is not ours to say. */
static int bad_twice(struct session *s, const char *name, bool keepalive)
{
	struct kdblk_cmd cmd = cmd_of(keepalive ? KDBLK_OP_KEEPALIVE : KDBLK_OP_FLUSH,
				      keepalive ? KDBLK_TAG_ADMIN : 5, 0, 0);
	int i, k;

	for (i = 0; i < 200 && !s->link->over; i++) {
		for (k = 0; k < 4; k++)
			fz_send(s->link, &cmd, sizeof(cmd));
		fz_until(s->link, s->link->over || s->link->sent >= 4 * (i + 1), 1000);
	}
	if (!fz_until(s->link, s->link->over, 100))
		pr_info("%s: never two at a time\n", name);
	return 0;
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

static int bad_one(struct session *s, const char *name, enum bad kind, u32 arg)
{
	u64 cap = s->capacity, there = cap - (1 << 20);
	u32 bs = s->block, size = 0, answers = s->link->nanswers;
	const u64 offsets[] = {
		cap, cap - bs, -(u64)bs, there + 1, there + bs / 2, 1ull << 63,
	};
	struct kdblk_cmd cmd = cmd_of(KDBLK_OP_READ, 1, there, bs);
	struct kdblk_login l = login_of(1000, 1);
	int err;

	switch (kind) {
	case BAD_OPCODE:
		cmd.opcode = arg;
		break;
	case BAD_FLAGS:
		cmd.opcode = arg >> 8;
		if (arg & KDBLK_CMD_INLINE)
			size = bs;
		if (cmd.opcode == KDBLK_OP_FLUSH)
			cmd = cmd_of(cmd.opcode, 1, 0, 0);
		cmd.flags = arg;
		break;
	case BAD_RESERVED:
		cmd = cmd_of(KDBLK_OP_FLUSH, 1, 0, 0);
		cmd.reserved[arg] = 1 + fz_rnd(255);
		break;
	case BAD_LENGTH:
		cmd.length = cpu_to_le32(arg);
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
	case BAD_TAG:
		cmd.tag = cpu_to_le16(arg == 0 ? s->depth : arg == 1 ? 0xfffe : KDBLK_TAG_ADMIN);
		break;
	case BAD_SIZE:
		cmd = cmd_of(KDBLK_OP_FLUSH, 1, 0, 0);
		if (arg < sizeof(cmd)) {
			err = fz_send(s->link, &cmd, arg);
			return err ?: has_ended(s, name, answers);
		}
		size = arg - sizeof(cmd);
		break;
	case BAD_INLINE:
		cmd.opcode = KDBLK_OP_WRITE;
		cmd.flags = KDBLK_CMD_INLINE;
		cmd.length = cpu_to_le32(2 * bs);
		size = arg;
		if (size == 2 * bs)
			size += bs;
		break;
	case BAD_NO_USE:
		cmd = arg == 4 ? cmd_of(KDBLK_OP_DISCARD, 1, there, bs) :
		      arg == 5 ? cmd_of(KDBLK_OP_WRITE, 1, there, bs) :
				 cmd_of(KDBLK_OP_FLUSH, 1, 0, 0);
		if (arg == 5) {
			cmd.flags = KDBLK_CMD_INLINE;
			size = bs;
		}
		if (arg == 0)
			cmd.offset = cpu_to_le64(bs);
		else if (arg == 1)
			cmd.length = cpu_to_le32(bs);
		else if (arg == 2)
			cmd.address = cpu_to_le64(4096);
		else
			cmd.rkey = cpu_to_le32(0x1234);
		break;
	case BAD_AGAIN:
		cmd = cmd_of(KDBLK_OP_LOGIN, KDBLK_TAG_ADMIN, 0, sizeof(l));
		cmd.flags = KDBLK_CMD_INLINE;
		err = send_with(s->link, &cmd, &l, sizeof(l));
		return err ?: has_ended(s, name, answers);
	case BAD_ADMIN:
		cmd = cmd_of(KDBLK_OP_KEEPALIVE, arg ? KDBLK_TAG_ADMIN : 0, arg == 2 ? bs : 0,
			     arg == 1 ? bs : 0);
		if (arg == 3)
			cmd.address = cpu_to_le64(1);
		if (arg == 4)
			cmd.flags = KDBLK_CMD_INLINE;
		break;
	case BAD_QUEUE:
		return bad_queue(s, name, arg);
	case BAD_INVALIDATE:
		cmd = cmd_of(KDBLK_OP_FLUSH, 1, 0, 0);
		err = fz_send_invalidate(s->link, &cmd, sizeof(cmd), fz_rnd(1 << 30));
		return err ?: has_ended(s, name, answers);
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
	struct session s;
	int i, err = -EINVAL;

	for (i = 0; i < ARRAY_SIZE(bads); i++) {
		if (strcmp(arg, bads[i].name))
			continue;
		err = open(&s, 10000, 2) ?: bad_one(&s, arg, bads[i].kind, bads[i].arg);
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

static const char * const hellos[] = {
	"none", "short", "magic", "version", "queue-256", "queue-65535", "queue-1-of-none",
	"session-of-queue-0", "session-unknown", "depth-0", "depth-1025", "depth-65535",
	"reserved-first", "reserved-last",
};

int fz_hello_names(char *to, int size)
{
	int i, n = 0;

	for (i = 0; i < ARRAY_SIZE(hellos); i++)
		n += scnprintf(to + n, size - n, "%s\n", hellos[i]);
	return n;
}

/* Where the transport carries it, the reason is the right one. */
static int is_refused(struct session *s, const char *what, int err, u16 reason)
{
	const struct kdblk_reject *no = (const void *)s->link->pdata;

	if (err != -ECONNREFUSED)
		return fz_fail("%s: not refused (%d)", what, err);
	if (s->link->event != DAT_CONNECTION_EVENT_PEER_REJECTED)
		return fz_iwarp ? 0 : fz_fail("%s: event 0x%x", what, s->link->event);
	if (s->link->pdata_size < sizeof(*no))
		return fz_iwarp ? 0 : fz_fail("%s: refused without a reason", what);
	if (le32_to_cpu(no->magic) != KDBLK_MAGIC || le16_to_cpu(no->version) != KDBLK_VERSION ||
	    le16_to_cpu(no->reason) != reason)
		return fz_fail("%s: refused with reason %u instead of %u", what,
			       le16_to_cpu(no->reason), reason);
	return 0;
}

int fz_hello(char *arg)
{
	struct kdblk_connect h = hello_of(0, 0, 4);
	struct session s = {};
	int i, err, size = sizeof(h);
	u16 reason = KDBLK_REFUSE_FORMAT;

	for (i = 0; i < ARRAY_SIZE(hellos) && strcmp(arg, hellos[i]); i++)
		;
	switch (i) {
	case 0:	/* none */
		size = 0;
		break;
	case 1:
		/* padded with zeroes on RoCE, which makes it one that wants a depth of 0 */
		size = 16;
		break;
	case 2:
		h.magic ^= cpu_to_le32(0x100);
		break;
	case 3:
		h.version = cpu_to_le16(2);
		reason = KDBLK_REFUSE_VERSION;
		break;
	case 4:
	case 5:
		h = hello_of(i == 4 ? 256 : 65535, 1, 4);
		break;
	case 6:
		h = hello_of(1, 0, 4);
		break;
	case 7:
		h = hello_of(0, 1, 4);
		break;
	case 8:
		h = hello_of(1, 0x123456789abcdefull, 4);
		reason = KDBLK_REFUSE_SESSION;
		break;
	case 9:
	case 10:
	case 11:
		h.depth = cpu_to_le16(i == 9 ? 0 : i == 10 ? 1025 : 65535);
		break;
	case 12:
	case 13:
		h.reserved[i == 12 ? 0 : sizeof(h.reserved) - 1] = 1;
		break;
	default:
		return -EINVAL;
	}
	s.link = fz_link_new();
	if (!s.link)
		return -ENOMEM;
	err = is_refused(&s, arg, fz_link_connect(s.link, &h, size), reason);
	close(&s);
	return err;
}

static const char * const logins[] = {
	"no-name", "no-disk", "name-without-end", "disk-without-end", "name-junk-behind",
	"disk-junk-behind", "keepalive-0", "keepalive-99", "keepalive-600001", "queues-0",
	"queues-257", "reserved-first", "reserved-last", "length-255", "length-257", "length-0",
	"not-inline", "tag-0", "offset", "unknown-disk", "twice-at-once",
};

int fz_login_names(char *to, int size)
{
	int i, n = 0;

	for (i = 0; i < ARRAY_SIZE(logins); i++)
		n += scnprintf(to + n, size - n, "%s\n", logins[i]);
	return n;
}

int fz_login(char *arg)
{
	struct kdblk_cmd cmd = cmd_of(KDBLK_OP_LOGIN, KDBLK_TAG_ADMIN, 0,
				      sizeof(struct kdblk_login));
	struct kdblk_connect hello = hello_of(0, 0, FZ_DEPTH);
	struct kdblk_login l = login_of(5000, 1);
	u32 size = sizeof(l), answers = 0, times = 1;
	struct session s = {};
	int i, err;

	for (i = 0; i < ARRAY_SIZE(logins) && strcmp(arg, logins[i]); i++)
		;
	cmd.flags = KDBLK_CMD_INLINE;
	switch (i) {
	case 0:
		memset(l.initiator, 0, sizeof(l.initiator));
		break;
	case 1:
		memset(l.disk, 0, sizeof(l.disk));
		break;
	case 2:
		memset(l.initiator, 'x', sizeof(l.initiator));
		break;
	case 3:
		memset(l.disk, 'x', sizeof(l.disk));
		break;
	case 4:
		l.initiator[KDBLK_NAME_LEN - 1] = 'x';
		break;
	case 5:
		l.disk[KDBLK_NAME_LEN - 1] = 'x';
		break;
	case 6:
	case 7:
	case 8:
		l.keepalive_ms = cpu_to_le32(i == 6 ? 0 : i == 7 ? 99 : 600001);
		break;
	case 9:
	case 10:
		l.queues = cpu_to_le16(i == 9 ? 0 : 257);
		break;
	case 11:
	case 12:
		l.reserved[i == 11 ? 0 : sizeof(l.reserved) - 1] = 1;
		break;
	case 13:
	case 14:
		size = i == 13 ? 255 : 257;
		cmd.length = cpu_to_le32(size);
		break;
	case 15:
		size = 0;
		cmd.length = 0;
		break;
	case 16:
		cmd.flags = 0;
		break;
	case 17:
		cmd.tag = 0;
		break;
	case 18:
		cmd.offset = cpu_to_le64(512);
		break;
	case 19:
		strscpy(l.disk, "no such disk", sizeof(l.disk));
		answers = 1;
		break;
	case 20:
		times = 2;
		break;
	default:
		return -EINVAL;
	}
	err = connect(&s, &hello);
	while (!err && times--)
		err = send_with(s.link, &cmd, &l, size);
	/* One that is right may have been answered before the second one came. */
	if (!err && !fz_until(s.link, s.link->over, FZ_LONG_MS))
		err = fz_fail("login %s: the session goes on", arg);
	else if (!err && i != 20 && s.link->nanswers != answers)
		err = fz_fail("login %s: %u answers", arg, s.link->nanswers);
	else if (!err && i == 19 && le16_to_cpu(last(s.link)->rsp.status) != KDBLK_STATUS_NO_DISK)
		err = fz_fail("login %s: another status", arg);
	close(&s);
	return err;
}

/* queues: more than were granted, one twice, one of nobody; the session is as well as before */
int fz_queues(char *arg)
{
	u32 granted, i;
	struct session s, q[4] = {}, no;
	struct kdblk_connect h;
	int err = open(&s, 20000, 4);

	if (err)
		return err;
	granted = le16_to_cpu(s.geo.queues);
	if (!granted || granted > 4)
		err = fz_fail("%u queues are granted, 4 were asked for", granted);
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

/* guess N: numbers of sessions */
int fz_guess(char *arg)
{
	u32 n = fz_number(arg);
	struct session s, no;
	int err = open(&s, 60000, 2);
	u64 number;

	while (n-- && !err) {
		struct kdblk_connect h;

		fz_rnd_bytes(&number, sizeof(number));
		if (fz_rnd(2))	/* near the right one */
			number = le64_to_cpu(s.geo.session) ^ (1ull << fz_rnd(64));
		h = hello_of(1, number ?: 1, 4);
		memset(&no, 0, sizeof(no));
		err = is_refused(&no, "a guess", connect(&no, &h), KDBLK_REFUSE_SESSION);
		close(&no);
	}
	err = err ?: read_once(&s);
	close(&s);
	return err;
}

/* ---- too many, too slow, too fast, gone ---- */

/* connects N: and no login */
int fz_connects(char *arg)
{
	u32 i, n = fz_number(arg), busy = 0;
	int err = 0;

	for (i = 0; i < n; i++) {
		struct kdblk_connect h = hello_of(0, 0, 1 + fz_rnd(FZ_DEPTH));
		struct session s = {};

		err = connect(&s, &h);
		if (err == -ECONNREFUSED) {
			busy++;
		} else if (!err && fz_rnd(2)) {
			dat_ep_disconnect(s.link->ep, fz_rnd(2) ? DAT_CLOSE_ABRUPT_FLAG :
								  DAT_CLOSE_GRACEFUL_FLAG);
			if (!fz_until(s.link, s.link->over, FZ_LONG_MS))
				fz_fail("a disconnect has no end");
		}
		close(&s);
	}
	pr_info("%u connections, %u of them refused\n", n, busy);
	return busy == n ? fz_fail("all are refused") : 0;
}

/* silent N: connections that say nothing, all of which end by themselves */
int fz_silent(char *arg)
{
	u32 i, n = fz_number(arg), up = 0;
	struct session *s = kvcalloc(n, sizeof(*s), GFP_KERNEL);
	int err = 0;

	if (!s)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		struct kdblk_connect h = hello_of(0, 0, 1);

		up += !connect(&s[i], &h);
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
	int i, err = open(&s, 300, 1);

	for (i = 0; i < 10 && !err; i++) {
		msleep(200);
		err = status_of(&s, &cmd);
		if (err)
			err = fz_fail("keepalive %d: %d", i, err);
	}
	start = jiffies;
	err = err ?: has_ended(&s, "no keepalive", s.link->nanswers);
	if (!err && time_before(jiffies, start + msecs_to_jiffies(300)))
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

/* burst N: the depth and N more at a time */
int fz_burst(char *arg)
{
	u32 i, n = fz_number(arg), before;
	struct session s;
	int err = open(&s, 20000, 1);

	if (err)
		return err;
	before = s.link->nanswers;
	n = min(n, 200u);
	for (i = 0; i < s.depth + n; i++) {
		struct kdblk_cmd cmd = cmd_of(KDBLK_OP_FLUSH, i % s.depth, 0, 0);

		if (fz_send(s.link, &cmd, sizeof(cmd)))
			break;
	}
	/* Either some were answered before others came, or it has ended. */
	if (!fz_until(s.link, s.link->over || s.link->nanswers - before == i,
		      FZ_LONG_MS))
		err = fz_fail("%u at a time, %u answers, and it does not end", i,
			      s.link->nanswers - before);
	pr_info("%u commands at a time, depth %u: %u answers%s\n", i, s.depth,
		s.link->nanswers - before, s.link->over ? ", ended" : "");
	close(&s);
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
		if (!err && s.link->rdma && !(fz_iwarp && write))
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
		KDBLK_OP_WRITE_ZEROES, KDBLK_OP_KEEPALIVE, KDBLK_OP_LOGIN,
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
