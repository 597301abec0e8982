// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The hostile target: a disk in memory, served as it should be but for one thing, which is
 * done so many times, or always. One thread does everything.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kthread.h>
#include <linux/minmax.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "kdblkfuzz.h"

#define DISK		(16u << 20)
#define RANGE		(1024u << 10)	/* of a DISCARD or WRITE_ZEROES */
#define MAX_LINKS	64
#define QUEUES		2
#define DISK_FLAGS	(KDBLK_DISK_CACHE | KDBLK_DISK_DISCARD | KDBLK_DISK_WRITE_ZEROES)

/* Which message has one wrong field; or what is done otherwise. */
enum act {
	GOOD,
	ACCEPT, ACCEPT_EMPTY, ACCEPT_LEAVE, REJECT, REJECT_EMPTY, REJECT_JUNK, SILENCE,
	LOGIN, LOGIN_SILENT, LOGIN_SHORT, LOGIN_EMPTY, LOGIN_LONG, LOGIN_TWICE, LOGIN_REFUSED,
	LOGIN_INVALIDATE, LOGIN_LEAVE, LOGIN_JUNK,
	ANSWER, TAG_IDLE, TWICE, OPCODE, SIZE, DATA, NO_INVALIDATION, OTHER_KEY, MUTE, LEAVE,
	LATE_WRITE, LATE_READ, WRONG_WAY, BEYOND, STEAL, FLOOD, EARLY, RANDOM,
	SWAPPED_KEYS, STRAY_KEY, DIFFERS, DIFFERS_ACCEPT,
	ALIVE, ALIVE_MUTE, ALIVE_TWICE, ALIVE_LONG, ALIVE_ELSEWHERE, ALIVE_INVALIDATE,
	RESTART, RESTART_UNSEEN, FENCE_MUTE, FENCE_LONG, FENCE_STATUS,
};

#define ROW(name, act, type, field, bytes, to) \
	{ name, act, FZ_PATCH(kdblk_##type, field, bytes, to) }

static const struct {
	const char *name;
	enum act act;
	struct fz_patch patch;	/* or a number */
} acts[] = {
	{ "good", GOOD },
	ROW("accept-depth-0", ACCEPT, accept, depth, 2, 0),
	ROW("accept-depth-more", ACCEPT, accept, depth, 2, FZ_DEPTH + 1),
	ROW("accept-inline-0", ACCEPT, accept, inline_size, 4, 0),
	ROW("accept-magic", ACCEPT, accept, magic, 4, 0),
	ROW("accept-version", ACCEPT, accept, version, 2, 7),
	ROW("accept-reserved-first", ACCEPT, accept, reserved[0], 1, 1),
	{ "accept-reserved-last", ACCEPT, FZ_LAST(kdblk_accept, reserved, 1) },
	{ "accept-empty", ACCEPT_EMPTY },
	{ "accept-leave", ACCEPT_LEAVE },
	{ "reject-empty", REJECT_EMPTY },
	{ "reject-junk", REJECT_JUNK },
	ROW("reject-format", REJECT, reject, reason, 2, KDBLK_REFUSE_FORMAT),
	ROW("reject-version", REJECT, reject, reason, 2, KDBLK_REFUSE_VERSION),
	ROW("reject-session", REJECT, reject, reason, 2, KDBLK_REFUSE_SESSION),
	ROW("reject-again", REJECT, reject, reason, 2, KDBLK_REFUSE_RESOURCES),
	ROW("reject-777", REJECT, reject, reason, 2, 777),
	{ "silence", SILENCE },
	{ "login-silent", LOGIN_SILENT },
	{ "login-short", LOGIN_SHORT },
	{ "login-empty", LOGIN_EMPTY },
	{ "login-long", LOGIN_LONG },
	ROW("login-tag", LOGIN, login_rsp, rsp.tag, 2, 0),
	ROW("login-opcode", LOGIN, login_rsp, rsp.opcode, 1, KDBLK_OP_KEEPALIVE),
	ROW("login-reserved", LOGIN, login_rsp, rsp.reserved[0], 1, 1),
	ROW("login-status-1", LOGIN_REFUSED, rsp, status, 2, KDBLK_STATUS_IO),
	ROW("login-status-7", LOGIN_REFUSED, rsp, status, 2, KDBLK_STATUS_RESOURCE),
	ROW("login-status-64", LOGIN_REFUSED, rsp, status, 2, KDBLK_STATUS_NO_DISK),
	ROW("login-status-65", LOGIN_REFUSED, rsp, status, 2, KDBLK_STATUS_DENIED),
	ROW("login-status-777", LOGIN_REFUSED, rsp, status, 2, 777),
	{ "login-invalidate", LOGIN_INVALIDATE },
	{ "login-leave", LOGIN_LEAVE },
	ROW("geo-capacity-0", LOGIN, login_rsp, capacity, 8, 0),
	ROW("geo-capacity-odd", LOGIN, login_rsp, capacity, 8, DISK - 100),
	ROW("geo-capacity-negative", LOGIN, login_rsp, capacity, 8, -512ull),
	ROW("geo-block-0", LOGIN, login_rsp, block_size, 4, 0),
	ROW("geo-block-1", LOGIN, login_rsp, block_size, 4, 1),
	ROW("geo-block-1024", LOGIN, login_rsp, block_size, 4, 1024),
	ROW("geo-block-ffffffff", LOGIN, login_rsp, block_size, 4, 0xffffffff),
	ROW("geo-physical-0", LOGIN, login_rsp, physical_block_size, 4, 0),
	ROW("geo-physical-256", LOGIN, login_rsp, physical_block_size, 4, 256),
	ROW("geo-physical-3000", LOGIN, login_rsp, physical_block_size, 4, 3000),
	ROW("geo-physical-80000000", LOGIN, login_rsp, physical_block_size, 4, 0x80000000),
	ROW("geo-max-io-0", LOGIN, login_rsp, max_io, 4, 0),
	ROW("geo-max-io-512", LOGIN, login_rsp, max_io, 4, 512),
	ROW("geo-max-io-odd", LOGIN, login_rsp, max_io, 4, 65537),
	ROW("geo-max-io-2m", LOGIN, login_rsp, max_io, 4, 2 << 20),
	ROW("geo-max-io-ffffffff", LOGIN, login_rsp, max_io, 4, 0xffffffff),
	ROW("geo-max-range-0", LOGIN, login_rsp, max_range, 4, 0),
	ROW("geo-max-range-odd", LOGIN, login_rsp, max_range, 4, 1000),
	ROW("geo-granularity-0", LOGIN, login_rsp, discard_granularity, 4, 0),
	ROW("geo-granularity-odd", LOGIN, login_rsp, discard_granularity, 4, 1000),
	ROW("geo-queues-0", LOGIN, login_rsp, queues, 2, 0),
	ROW("geo-queues-more", LOGIN, login_rsp, queues, 2, 255),
	ROW("geo-flags", LOGIN, login_rsp, flags, 2, 0x8000 | DISK_FLAGS),
	ROW("geo-session-0", LOGIN, login_rsp, session, 8, 0),
	ROW("geo-reserved-first", LOGIN, login_rsp, reserved[0], 1, 1),
	{ "geo-reserved-last", LOGIN, FZ_LAST(kdblk_login_rsp, reserved, 1) },
	ROW("geo-serial", LOGIN, login_rsp, serial, KDBLK_SERIAL_LEN, 'x'),
	ROW("geo-serial-control", LOGIN, login_rsp, serial[1], 1, '\n'),
	ROW("geo-serial-junk-behind", LOGIN, login_rsp, serial[20], 1, 'x'),
	/* strange, but not senseless: no more is wanted than that nothing breaks */
	{ "odd-login-twice", LOGIN_TWICE },
	ROW("odd-inline-huge", ACCEPT, accept, inline_size, 4, 0xffffffff),
	ROW("odd-capacity-huge", LOGIN, login_rsp, capacity, 8, 0x7ffffffffffffe00ull),
	ROW("odd-physical-1m", LOGIN, login_rsp, physical_block_size, 4, 1 << 20),
	ROW("odd-max-range-huge", LOGIN, login_rsp, max_range, 4, 0xfffffe00),
	ROW("odd-granularity-1536", LOGIN, login_rsp, discard_granularity, 4, 1536),
	ROW("odd-granularity-large", LOGIN, login_rsp, discard_granularity, 4, 1 << 30),
	ROW("odd-granularity-huge", LOGIN, login_rsp, discard_granularity, 4, 0xfffffe00),
	{ "odd-junk", LOGIN_JUNK },
	ROW("answer-tag-unknown", ANSWER, rsp, tag, 2, 0x1234),
	ROW("answer-tag-depth", ANSWER, rsp, tag, 2, FZ_DEPTH),
	{ "answer-tag-idle", TAG_IDLE },
	ROW("answer-tag-admin", ANSWER, rsp, tag, 2, KDBLK_TAG_ADMIN),
	{ "answer-twice", TWICE },
	{ "answer-opcode", OPCODE },
	ROW("answer-reserved-first", ANSWER, rsp, reserved[0], 1, 1),
	{ "answer-reserved-last", ANSWER, FZ_LAST(kdblk_rsp, reserved, 1) },
	{ "answer-size-0", SIZE, { .value = 0 } },
	{ "answer-size-8", SIZE, { .value = 8 } },
	{ "answer-size-15", SIZE, { .value = 15 } },
	{ "answer-size-17", SIZE, { .value = 17 } },
	{ "answer-size-128", SIZE, { .value = 128 } },
	{ "answer-size-129", SIZE, { .value = 129 } },
	{ "answer-size-60000", SIZE, { .value = 60000 } },
	/* of a READ whose data comes in the answer: so many bytes */
	{ "answer-data-0", DATA, { .value = 0 } },
	{ "answer-data-112", DATA, { .value = 112 } },
	{ "answer-data-less", DATA, { .value = 4095 } },
	{ "answer-data-more", DATA, { .value = 4097 } },
	{ "answer-data-8192", DATA, { .value = 8192 } },
	{ "answer-without-invalidation", NO_INVALIDATION },
	{ "answer-other-key", OTHER_KEY },
	/* the right one, of another command; and one, where no memory is lent */
	{ "answer-swapped-keys", SWAPPED_KEYS },
	{ "answer-stray-key", STRAY_KEY },
	{ "answer-mute", MUTE },
	{ "answer-leave", LEAVE },
	{ "answer-late-write", LATE_WRITE },
	{ "answer-late-read", LATE_READ },
	{ "answer-wrong-way", WRONG_WAY },
	{ "answer-beyond", BEYOND },
	{ "answer-steal", STEAL },
	{ "answer-flood", FLOOD },
	{ "answer-early", EARLY },
	ROW("answer-status-777", ANSWER, rsp, status, 2, 777),
	ROW("answer-status-again", ANSWER, rsp, status, 2, KDBLK_STATUS_RESOURCE),
	{ "answer-random", RANDOM },
	{ "alive-mute", ALIVE_MUTE },
	ROW("alive-opcode", ALIVE, rsp, opcode, 1, KDBLK_OP_READ),
	{ "alive-twice", ALIVE_TWICE },
	{ "alive-long", ALIVE_LONG },
	{ "alive-on-queue-1", ALIVE_ELSEWHERE },
	/* of memory that another command has lent */
	{ "alive-invalidate", ALIVE_INVALIDATE },
	ROW("alive-reserved", ALIVE, rsp, reserved[3], 1, 1),
	{ "alive-reserved-last", ALIVE, FZ_LAST(kdblk_alive_rsp, reserved, 1) },
	ROW("alive-capacity-less", ALIVE, alive_rsp, capacity, 8, DISK - 512),
	ROW("alive-capacity-odd", ALIVE, alive_rsp, capacity, 8, DISK + 100),
	ROW("alive-capacity-negative", ALIVE, alive_rsp, capacity, 8, -512ull),
	/* the machine: connections end, the next logins are told another boot id */
	{ "restart", RESTART },
	/* the same, but the initiator does not notice yet that its connections have ended */
	{ "restart-unseen", RESTART_UNSEEN },
	/* one path is lost and cannot come back; what is asked about it is not answered */
	{ "fence-mute", FENCE_MUTE },
	/* the same, but the answer is not right */
	{ "fence-long", FENCE_LONG },
	{ "fence-status-777", FENCE_STATUS },
	/* a command ends the session, and in the next one this is another disk or target */
	ROW("differs-block", DIFFERS, login_rsp, block_size, 4, 4096),
	ROW("differs-max-io", DIFFERS, login_rsp, max_io, 4, FZ_IO / 2),
	ROW("differs-max-range", DIFFERS, login_rsp, max_range, 4, 1 << 19),
	ROW("differs-flags", DIFFERS, login_rsp, flags, 2, DISK_FLAGS ^ KDBLK_DISK_CACHE),
	{ "differs-serial", DIFFERS, FZ_LAST(kdblk_login_rsp, serial[6], 'E') },
	ROW("differs-capacity", DIFFERS, login_rsp, capacity, 8, DISK - 4096),
	ROW("differs-queues", DIFFERS, login_rsp, queues, 2, 1),
	ROW("differs-depth", DIFFERS_ACCEPT, accept, depth, 2, FZ_DEPTH / 2),
};

const struct fz_table fz_acts = FZ_TABLE(acts);

static struct {
	struct mutex lock;	/* all of it */
	struct task_struct *task;
	DAT_EVD_HANDLE cr_evd;
	DAT_PSP_HANDLE psp;
	struct list_head links;
	DAT_CR_HANDLE unanswered[16];
	u32 nunanswered;
	u32 nlinks;
	u8 *disk;
	u64 session;
	u8 boot;
	u32 number;		/* of what is done */
	u32 times;		/* it is still done; ~0: always */
	u32 done;
} tgt = { .lock = __MUTEX_INITIALIZER(tgt.lock), .links = LIST_HEAD_INIT(tgt.links) };

/* Is it this one's turn to go wrong? */
static bool now(enum act act)
{
	if (acts[tgt.number].act != act || !tgt.times)
		return false;
	if (tgt.times != ~0)
		tgt.times--;
	tgt.done++;
	return true;
}

/* A message whose turn it is to have a wrong field. */
static bool patch(enum act act, void *msg)
{
	bool yes = now(act);

	if (yes)
		fz_patch(msg, &acts[tgt.number].patch);
	return yes;
}

/* The session has ended, and something is different now. */
static bool differs(enum act act, void *msg)
{
	if (acts[tgt.number].act != act || !tgt.done)
		return false;
	fz_patch(msg, &acts[tgt.number].patch);
	return true;
}

static bool fences(void)
{
	enum act act = acts[tgt.number].act;

	return act == FENCE_MUTE || act == FENCE_LONG || act == FENCE_STATUS;
}

static void leave(struct fz_link *link)
{
	dat_ep_disconnect(link->ep, DAT_CLOSE_ABRUPT_FLAG);
}

/* The command that was held back. @rkey: what the answer invalidates, or 0 */
static void answer_held(struct fz_link *link, u32 rkey)
{
	const struct kdblk_cmd *cmd = &link->cmds[link->held];
	struct kdblk_rsp rsp = { .tag = cmd->tag, .opcode = cmd->opcode };

	link->holds = false;
	if (rkey)
		fz_send_invalidate(link, &rsp, sizeof(rsp), rkey);
	else
		fz_send(link, &rsp, sizeof(rsp));
}

static u32 held_key(const struct fz_link *link)
{
	return le32_to_cpu(link->cmds[link->held].rkey);
}

static struct fz_link *on_queue_1(void)
{
	struct fz_link *link;

	list_for_each_entry(link, &tgt.links, node) {
		if (link->queue == 1 && link->up)
			return link;
	}
	return NULL;
}

static struct fz_link *that_holds(void)
{
	struct fz_link *link;

	list_for_each_entry(link, &tgt.links, node) {
		if (link->holds && link->up)
			return link;
	}
	return NULL;
}

static void answer_admin(struct fz_link *link, u8 opcode, u32 size)
{
	struct kdblk_alive_rsp rsp[5] = { {
		.rsp = { .tag = cpu_to_le16(KDBLK_TAG_ADMIN), .opcode = opcode },
		.capacity = cpu_to_le64(DISK),
	} };
	struct fz_link *holds;

	if (that_holds() && now(ALIVE_INVALIDATE)) {
		fz_send_invalidate(link, rsp, size, held_key(that_holds()));
		return;
	}
	/* No other command came that was to go wrong with it, on whatever queue. */
	while ((holds = that_holds()))
		answer_held(holds, held_key(holds));
	if (now(ALIVE_MUTE))
		return;
	if (acts[tgt.number].act == ALIVE_ELSEWHERE && on_queue_1() && now(ALIVE_ELSEWHERE))
		link = on_queue_1();
	patch(ALIVE, rsp);
	if (now(ALIVE_LONG))
		size = sizeof(struct kdblk_login_rsp);
	if (now(ALIVE_TWICE))
		fz_send(link, rsp, size);
	fz_send(link, rsp, size);
}

static void answer_login(struct fz_link *link, const struct kdblk_login *login)
{
	struct kdblk_login_rsp rsp[2] = { {
		.rsp.tag = cpu_to_le16(KDBLK_TAG_ADMIN),
		.rsp.opcode = KDBLK_OP_LOGIN,
		.session = cpu_to_le64(++tgt.session),
		.capacity = cpu_to_le64(DISK),
		.block_size = cpu_to_le32(512),
		.physical_block_size = cpu_to_le32(4096),
		.max_io = cpu_to_le32(FZ_IO),
		.max_range = cpu_to_le32(RANGE),
		.discard_granularity = cpu_to_le32(4096),
		.flags = cpu_to_le16(DISK_FLAGS),
		.serial = "hostile",
		.boot = { tgt.boot },
	} };
	u32 size = sizeof(*rsp), i;

	rsp->queues = cpu_to_le16(min_t(u16, le16_to_cpu(login->queues), QUEUES));
	if (now(LOGIN_SILENT))
		return;
	if (now(LOGIN_LEAVE)) {
		leave(link);
		return;
	}
	if (now(LOGIN_INVALIDATE)) {
		fz_send_invalidate(link, rsp, size, fz_rnd(1 << 16));
		return;
	}
	if (now(LOGIN_SHORT))
		size = sizeof(rsp->rsp);
	if (now(LOGIN_EMPTY))
		size = 0;
	if (now(LOGIN_LONG))
		size++;
	patch(LOGIN, rsp);
	differs(DIFFERS, rsp);
	if (patch(LOGIN_REFUSED, rsp))
		size = sizeof(rsp->rsp);
	if (now(LOGIN_JUNK)) {
		for (i = 1 + fz_rnd(4); i; i--)
			((u8 *)rsp)[16 + fz_rnd(sizeof(*rsp) - 16)] ^= 1 << fz_rnd(8);
	}
	if (now(LOGIN_TWICE))
		fz_send(link, rsp, size);
	fz_send(link, rsp, size);
}

/* Lies at random, on top of what was done. */
static void answer_random(struct fz_link *link, struct kdblk_rsp *rsp, bool lent, u32 rkey)
{
	u8 msg[256] = {};
	u32 size = sizeof(*rsp), n;

	if (fz_rnd(3))
		for (n = 1 + fz_rnd(3); n; n--)
			((u8 *)rsp)[fz_rnd(sizeof(*rsp))] ^= 1 << fz_rnd(8);
	if (!fz_rnd(4))
		size = fz_rnd(140);
	if (!fz_rnd(4))
		lent = !lent;
	if (!fz_rnd(4))
		rkey ^= 1 << fz_rnd(fz_rnd(2) ? 8 : 32);
	memcpy(msg, rsp, sizeof(*rsp));
	for (n = fz_rnd(4) ? 1 : fz_rnd(5); n; n--) {
		if (lent)
			fz_send_invalidate(link, msg, size, rkey);
		else
			fz_send(link, msg, size);
	}
	if (!fz_rnd(8))
		leave(link);
}

/* On iWARP a Write has succeeded when it was sent; who reads back what was written knows. */
static void trespass(struct fz_link *link, bool write, u32 tag, u64 address, u32 rkey)
{
	if (write)
		fz_poison(link, 512, address, rkey, fz_ia.iwarp ? FZ_DEPTH + 1 : FZ_DEPTH);
	else
		fz_rdma(link, false, tag, 512, address, rkey, FZ_DEPTH);
}

/* Does its data come in the answer? */
static bool answer_has_data(const struct kdblk_cmd *cmd)
{
	return cmd->opcode == KDBLK_OP_READ && cmd->flags & KDBLK_CMD_INLINE;
}

static void send_data(struct fz_link *link, const struct kdblk_rsp *rsp,
		      const struct kdblk_cmd *cmd, u32 length)
{
	u8 *msg = kzalloc(sizeof(*rsp) + length, GFP_KERNEL);

	if (!msg)
		return;
	memcpy(msg, rsp, sizeof(*rsp));
	memcpy(msg + sizeof(*rsp), tgt.disk + le64_to_cpu(cmd->offset),
	       min(length, le32_to_cpu(cmd->length)));
	fz_send(link, msg, sizeof(*rsp) + length);
	kfree(msg);
}

static void answer(struct fz_link *link, u32 tag)
{
	struct kdblk_cmd *cmd = &link->cmds[tag];
	struct kdblk_rsp rsp[64] = { { .tag = cpu_to_le16(tag), .opcode = cmd->opcode } };
	u32 rkey = le32_to_cpu(cmd->rkey), size = sizeof(*rsp), n;
	u32 length = acts[tgt.number].patch.value;
	u64 address = le64_to_cpu(cmd->address);
	bool lent = (cmd->opcode == KDBLK_OP_READ || cmd->opcode == KDBLK_OP_WRITE) &&
		    !(cmd->flags & KDBLK_CMD_INLINE);
	bool write = cmd->opcode == KDBLK_OP_WRITE;

	if (now(MUTE)) {
		if (cmd->opcode == KDBLK_OP_FLUSH)
			pr_info("a FLUSH is not answered\n");
		return;
	}
	if (now(RESTART)) {
		tgt.boot++;
		list_for_each_entry(link, &tgt.links, node)
			leave(link);
		return;
	}
	if (now(RESTART_UNSEEN))
		tgt.boot++;
	if ((acts[tgt.number].act == DIFFERS || acts[tgt.number].act == DIFFERS_ACCEPT) &&
	    tgt.done) {
		fz_fail("%s: a command comes all the same", acts[tgt.number].name);
		return;
	}
	if (now(FENCE_MUTE) || now(FENCE_LONG) || now(FENCE_STATUS) || now(DIFFERS) ||
	    now(DIFFERS_ACCEPT) || now(LEAVE)) {
		leave(link);
		return;
	}
	if (fz_rnd(4) == 0 && now(RANDOM)) {
		answer_random(link, rsp, lent, rkey);
		return;
	}
	if (now(FLOOD)) {
		for (n = 0; n < 100; n++)
			fz_send(link, rsp, size);
	}
	patch(ANSWER, rsp);
	if (now(TAG_IDLE))
		rsp->tag = cpu_to_le16((tag + FZ_DEPTH / 2) % FZ_DEPTH);
	if (now(OPCODE))
		rsp->opcode ^= 1;
	if (now(SIZE)) {
		u8 *msg = kzalloc(max_t(u32, length, sizeof(*rsp)), GFP_KERNEL);

		if (msg) {
			memcpy(msg, rsp, sizeof(*rsp));
			if (lent)
				fz_send_invalidate(link, msg, length, rkey);
			else
				fz_send(link, msg, length);
		}
		kfree(msg);
		return;
	}
	/* Memory that is not ours, in one way or the other. */
	if (lent && now(WRONG_WAY))
		trespass(link, write, tag, address, rkey);
	if (lent && now(BEYOND))
		trespass(link, !write, tag, address + le32_to_cpu(cmd->length) - 511, rkey);
	if (now(STEAL))
		trespass(link, fz_rnd(2), tag, fz_rnd(2) ? 0 : (uintptr_t)fz_listen,
			 fz_rnd(64) << 8 | fz_rnd(256));
	if (acts[tgt.number].act == SWAPPED_KEYS && lent && tgt.times) {
		if (!link->holds) {
			link->held = tag;
			link->holds = true;
			return;
		}
		n = held_key(link);
		answer_held(link, rkey);
		if (now(SWAPPED_KEYS))
			rkey = n;
	}
	if (acts[tgt.number].act == ALIVE_INVALIDATE && lent && tgt.times) {
		link->held = tag;
		link->holds = true;
		return;
	}
	/* An inline WRITE is here before the data of those sent with it. */
	if (acts[tgt.number].act == STRAY_KEY && tgt.times) {
		if (write && !lent && !link->holds) {
			link->held = tag;
			link->holds = true;
			return;
		}
		if (lent && link->holds && now(STRAY_KEY)) {
			answer_held(link, rkey);
			return;
		}
	}
	if (lent && now(NO_INVALIDATION))
		lent = false;
	if (lent && now(OTHER_KEY))
		rkey ^= 1 + fz_rnd(255);
	if (answer_has_data(cmd) && now(DATA)) {
		send_data(link, rsp, cmd, length);
		return;
	}
	if (now(TWICE))
		fz_send(link, rsp, size);
	if (lent)
		fz_send_invalidate(link, rsp, size, rkey);
	else if (answer_has_data(cmd) && !rsp->status)
		send_data(link, rsp, cmd, le32_to_cpu(cmd->length));
	else
		fz_send(link, rsp, size);
	if (lent && !write && now(LATE_WRITE))
		trespass(link, true, tag, address, rkey);
	if (lent && write && now(LATE_READ))
		trespass(link, false, tag, address, rkey);
}

static void moved(struct fz_link *link, u32 tag, bool ok)
{
	struct kdblk_cmd *cmd;

	if (tag >= FZ_DEPTH) {
		if (ok && tag == FZ_DEPTH)
			fz_fail("%s: RDMA at memory that is not lent works",
				acts[tgt.number].name);
		return;
	}
	cmd = &link->cmds[tag];
	if (!ok || cmd->opcode != KDBLK_OP_WRITE)
		return;
	memcpy(tgt.disk + le64_to_cpu(cmd->offset), link->data.p + tag * FZ_IO,
	       le32_to_cpu(cmd->length));
	answer(link, tag);
}

static const char *what_is_wrong(const struct kdblk_cmd *cmd, u32 length)
{
	u32 n = le32_to_cpu(cmd->length);
	u64 offset = le64_to_cpu(cmd->offset);

	if (length < sizeof(*cmd) ||
	    length != sizeof(*cmd) + (cmd->flags & KDBLK_CMD_INLINE && !answer_has_data(cmd) ?
				      n : 0))
		return "size";
	if (answer_has_data(cmd) && n > FZ_INLINE)
		return "length of the data in its answer";
	if (le16_to_cpu(cmd->tag) >= FZ_DEPTH)
		return "tag";
	if (memchr_inv(cmd->reserved, 0, sizeof(cmd->reserved)))
		return "reserved";
	if (offset > DISK || n > DISK - offset)
		return "range";
	if (n > (cmd->opcode == KDBLK_OP_READ || cmd->opcode == KDBLK_OP_WRITE ? FZ_IO : RANGE))
		return "length";
	return NULL;
}

static void heard(struct fz_link *link, const void *msg, u32 length)
{
	struct kdblk_rsp done[2] = { {
		.tag = cpu_to_le16(KDBLK_TAG_ADMIN),
		.opcode = KDBLK_OP_FENCE,
	} };
	const struct kdblk_cmd *cmd = msg;
	const char *wrong;
	u64 offset;
	u32 tag, n;

	if (length >= sizeof(*cmd) && cmd->opcode == KDBLK_OP_LOGIN) {
		answer_login(link, (const void *)(cmd + 1));
		return;
	}
	if (length >= sizeof(*cmd) && cmd->opcode == KDBLK_OP_KEEPALIVE) {
		answer_admin(link, cmd->opcode, sizeof(struct kdblk_alive_rsp));
		return;
	}
	if (length >= sizeof(*cmd) && cmd->opcode == KDBLK_OP_FENCE) {
		if (acts[tgt.number].act == FENCE_STATUS)
			done[0].status = cpu_to_le16(777);
		if (acts[tgt.number].act == FENCE_MUTE)
			pr_info("a FENCE is not answered\n");
		else
			fz_send(link, done, acts[tgt.number].act == FENCE_LONG ? sizeof(done) :
						sizeof(*done));
		return;
	}
	wrong = what_is_wrong(cmd, length);
	if (wrong) {
		/* Where the geometry was a lie, what follows is no fault of the initiator. */
		if (acts[tgt.number].act != LOGIN && acts[tgt.number].act != LOGIN_JUNK)
			fz_fail("the initiator sends a command with a wrong %s", wrong);
		leave(link);
		return;
	}
	tag = le16_to_cpu(cmd->tag);
	offset = le64_to_cpu(cmd->offset);
	n = le32_to_cpu(cmd->length);
	link->cmds[tag] = *cmd;
	if (now(EARLY)) {	/* before anything was done, and all the others, too */
		struct kdblk_rsp rsp = { .opcode = cmd->opcode };

		for (tag = 0; tag < FZ_DEPTH; tag++) {
			rsp.tag = cpu_to_le16(tag);
			fz_send(link, &rsp, sizeof(rsp));
		}
		return;
	}
	switch (cmd->opcode) {
	case KDBLK_OP_READ:
		if (answer_has_data(cmd))
			break;
		memcpy(link->data.p + tag * FZ_IO, tgt.disk + offset, n);
		fz_rdma(link, true, tag, n, le64_to_cpu(cmd->address), le32_to_cpu(cmd->rkey), tag);
		break;
	case KDBLK_OP_WRITE:
		if (!(cmd->flags & KDBLK_CMD_INLINE)) {
			fz_rdma(link, false, tag, n, le64_to_cpu(cmd->address),
				le32_to_cpu(cmd->rkey), tag);
			return;
		}
		memcpy(tgt.disk + offset, cmd + 1, n);
		break;
	case KDBLK_OP_DISCARD:
	case KDBLK_OP_WRITE_ZEROES:
		memset(tgt.disk + offset, 0, n);
		break;
	}
	answer(link, tag);
}

static void reject(DAT_CR_HANDLE cr, const void *pdata, u32 size)
{
	dat_cr_reject(cr, size, (DAT_PVOID)pdata);
}

static void requested(DAT_CR_HANDLE cr)
{
	struct kdblk_accept yes = {
		.magic = cpu_to_le32(KDBLK_MAGIC),
		.version = cpu_to_le16(KDBLK_VERSION),
		.inline_size = cpu_to_le32(FZ_INLINE),
	};
	struct kdblk_reject no = {
		.magic = cpu_to_le32(KDBLK_MAGIC),
		.version = cpu_to_le16(KDBLK_VERSION),
		.reason = cpu_to_le16(KDBLK_REFUSE_RESOURCES),
	};
	u8 junk[60];
	u32 size = sizeof(yes);
	struct kdblk_connect hello;
	struct fz_link *link;
	DAT_CR_PARAM cp;
	bool gone;

	if (dat_cr_query(cr, DAT_CR_FIELD_ALL, &cp) != DAT_SUCCESS ||
	    cp.private_data_size < sizeof(hello)) {
		reject(cr, NULL, 0);
		return;
	}
	memcpy(&hello, cp.private_data, sizeof(hello));
	if (now(SILENCE)) {
		if (tgt.nunanswered < ARRAY_SIZE(tgt.unanswered))
			tgt.unanswered[tgt.nunanswered++] = cr;
		else
			reject(cr, NULL, 0);
		return;
	}
	if (now(REJECT_EMPTY)) {
		reject(cr, NULL, 0);
		return;
	}
	if (fences()) {
		reject(cr, &no, sizeof(no));
		return;
	}
	if (now(REJECT_JUNK)) {
		fz_rnd_bytes(junk, sizeof(junk));
		reject(cr, junk, 1 + fz_rnd(sizeof(junk)));
		return;
	}
	if (patch(REJECT, &no)) {
		no.version = no.reason;
		reject(cr, &no, sizeof(no));
		return;
	}
	link = tgt.nlinks < MAX_LINKS ? fz_link_new() : NULL;
	if (!link) {
		reject(cr, &no, sizeof(no));
		return;
	}
	link->heard = heard;
	link->moved = moved;
	link->queue = le16_to_cpu(hello.queue);
	link->depth = min_t(u16, le16_to_cpu(hello.depth), FZ_DEPTH);
	yes.depth = cpu_to_le16(link->depth);
	patch(ACCEPT, &yes);
	differs(DIFFERS_ACCEPT, &yes);
	if (now(ACCEPT_EMPTY))
		size = 0;
	gone = now(ACCEPT_LEAVE);
	if (fz_link_ready(link) ||
	    dat_cr_accept(cr, link->ep, size, size ? &yes : NULL) != DAT_SUCCESS) {
		reject(cr, &no, sizeof(no));
		fz_link_free(link);
		return;
	}
	list_add_tail(&link->node, &tgt.links);
	tgt.nlinks++;
	if (gone)
		leave(link);
}

static int serve_thread(void *unused)
{
	struct fz_link *link, *next;
	DAT_EVENT event;

	while (!kthread_should_stop()) {
		mutex_lock(&tgt.lock);
		while (dat_evd_dequeue(tgt.cr_evd, &event) == DAT_SUCCESS)
			requested(event.event_data.cr_arrival_event_data.cr_handle);
		list_for_each_entry_safe(link, next, &tgt.links, node) {
			fz_link_poll(link);
			if (!link->over)
				continue;
			list_del(&link->node);
			tgt.nlinks--;
			fz_link_free(link);
		}
		mutex_unlock(&tgt.lock);
		usleep_range(50, 200);
	}
	return 0;
}

static void answer_the_silent(void)
{
	while (tgt.nunanswered)
		reject(tgt.unanswered[--tgt.nunanswered], NULL, 0);
}

/* listen: is a target */
int fz_listen(char *unused)
{
	int err = 0;

	if (tgt.task)
		return -EEXIST;
	tgt.disk = vzalloc(DISK);
	if (!tgt.disk)
		return -ENOMEM;
	if (dat_evd_kcreate(fz_ia.ia, 16, DAT_UPCALL_DISABLE, NULL, DAT_EVD_CR_FLAG,
			    &tgt.cr_evd) != DAT_SUCCESS ||
	    dat_psp_create(fz_ia.ia, fz_own_port, tgt.cr_evd, DAT_PSP_CONSUMER_FLAG,
			   &tgt.psp) != DAT_SUCCESS)
		err = -EIO;
	if (!err) {
		tgt.task = kthread_run(serve_thread, NULL, "kdblkfuzz");
		err = PTR_ERR_OR_ZERO(tgt.task);
		if (err)
			tgt.task = NULL;
	}
	if (err)
		fz_listen_stop();
	return err;
}

void fz_listen_stop(void)
{
	struct fz_link *link, *next;

	if (tgt.task)
		kthread_stop(tgt.task);
	tgt.task = NULL;
	answer_the_silent();
	if (tgt.psp)
		dat_psp_free(tgt.psp);
	if (tgt.cr_evd)
		dat_evd_free(tgt.cr_evd);
	tgt.psp = NULL;
	tgt.cr_evd = NULL;
	list_for_each_entry_safe(link, next, &tgt.links, node) {
		list_del(&link->node);
		fz_link_free(link);
	}
	tgt.nlinks = 0;
	vfree(tgt.disk);
	tgt.disk = NULL;
}

/* serve WHAT [TIMES]: from now on, always or so many times */
int fz_serve(char *words)
{
	char *name = strsep(&words, " ");
	u32 times = words ? fz_number(words) : ~0;
	int i = fz_find(&fz_acts, name);

	if (i < 0)
		return i;
	mutex_lock(&tgt.lock);
	answer_the_silent();
	tgt.number = i;
	tgt.times = times;
	tgt.done = 0;
	mutex_unlock(&tgt.lock);
	return 0;
}

/* served [N]: it was done, at least so many times */
int fz_served(char *words)
{
	u32 n = *words ? fz_number(words) : 1, done;

	mutex_lock(&tgt.lock);
	done = tgt.done;
	mutex_unlock(&tgt.lock);
	if (done < n)
		return fz_fail("%s: done %u times", acts[tgt.number].name, done);
	return atomic_read(&fz_faults) ? -EIO : 0;
}
