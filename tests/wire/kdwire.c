// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * kdwire - one end of the scenarios between two machines (tests/guest/wire.sh).
 *
 * What is shown here needs help from outside: a cable that is cut, a machine that
 * is destroyed. So a script gives the orders, one line each, to the file kdwire/do
 * in debugfs; a write returns when the order has been carried out, and fails, with
 * the reason in the kernel log, when what was seen is not what was wanted. The
 * orders are at the end.
 *
 * There are at most two connections: the active one (act), which the orders are
 * about, and the passive one (pas), served by a work item.
 *
 * Each posted operation lives in a slot; the cookie is the number of the slot and
 * of its use, so a completion that is reported twice, or was never asked for, is
 * told from all others.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/vmalloc.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include "../lib/orders.h"
#include "../lib/peer.h"

#define SIZE		(1024 * 1024)	/* of every buffer, and the largest transfer */
#define RECVS		4
#define REQUESTS	12
#define SLOTS		(RECVS + REQUESTS)	/* the Receives first */
#define PIECES		4		/* RDMA operations a transfer is cut into */
#define LONG		(180 * HZ)	/* for anything that must happen */
#define FILL		0xa5		/* what lies where nothing was written */

static char *ia;
static ushort port = 4712;

module_param(ia, charp, 0444);
MODULE_PARM_DESC(ia, "interface adapter, e.g. rxe0-1 (required)");
module_param(port, ushort, 0444);
MODULE_PARM_DESC(port, "connection qualifier (default 4712)");

enum { ASK_WINDOW = 1, ASK_ECHO, ASK_CHECK, ASK_FILL, ASK_NOTHING };

struct msg {
	__le32 what;
	__le32 seed, off, len;
	__le32 bad;		/* answers: what was asked for failed */
	__le32 key;		/* answer to ASK_WINDOW */
	__le64 addr;
};

/* A page of FILL lies before it and after it. */
#define raw(mem)	((mem)->p - PAGE_SIZE)

struct slot {
	enum { IDLE, POSTED, DONE } state;
	u32 use;
	DAT_DTOS what;
	DAT_DTO_COMPLETION_STATUS status;
	u32 len;
};

struct conn {
	const char *name;
	bool open;
	struct peer_end end;
	struct work_struct work;
	wait_queue_head_t wait;
	spinlock_t lock;	/* everything down to flood_done */
	struct slot slot[SLOTS];
	int next_recv;		/* the Receive that completes next */
	u32 events;		/* grows with each event */
	u32 stray;		/* completions of nothing that was posted */
	u32 seen[2][16];	/* by status: Receives, requests */
	u32 flood_done;
	char flood[REQUESTS + 1];
	bool stop;
	struct peer_mem in[RECVS], out, win, back;
	DAT_RMR_TRIPLET peer;	/* its window */
	u32 seed;
};

static struct peer_ia kdw;
static struct workqueue_struct *kdw_wq;
static struct dentry *kdw_dir;
static struct conn act = { .name = "act" }, pas = { .name = "pas" };

#define fail(fmt, ...)	({ pr_err("FAIL " fmt "\n", ##__VA_ARGS__); -EIO; })

/* ---- memory ---- */

static int mem_open(struct peer_mem *mem)
{
	u8 *p = vmalloc(SIZE + 2 * PAGE_SIZE);

	if (!p)
		return -ENOMEM;
	memset(p, FILL, SIZE + 2 * PAGE_SIZE);
	return TRY(peer_mem_open, &kdw, mem, p + PAGE_SIZE, SIZE, DAT_MEM_PRIV_ALL_FLAG);
}

static void mem_close(struct peer_mem *mem)
{
	if (mem->lmr)
		TRY(dat_lmr_free, mem->lmr);
	if (mem->p)
		vfree(raw(mem));
	memset(mem, 0, sizeof(*mem));
}

static void pattern(u8 *p, u32 len, u32 seed)
{
	u32 x = seed * 40503 + 1;

	while (len--) {
		*p++ = x >> 13;
		x += 2654435761u;
	}
}

/* The pattern is there, and nowhere around it anything was written. Then clean. */
static int check_pattern(struct peer_mem *mem, u32 off, u32 len, u32 seed)
{
	u32 x = seed * 40503 + 1, i;
	void *wrong;
	int err = 0;

	for (i = 0; i < len && mem->p[off + i] == (u8)(x >> 13); i++)
		x += 2654435761u;
	if (i < len)
		err = fail("byte %u of %u is wrong", i, len);
	wrong = memchr_inv(raw(mem), FILL, PAGE_SIZE + off) ?:
		memchr_inv(mem->p + off + len, FILL, SIZE - off - len + PAGE_SIZE);
	if (wrong)
		err = fail("byte %ld was touched, %u bytes from %u were meant",
			   (long)((u8 *)wrong - mem->p), len, off);
	memset(mem->p + off, FILL, len);
	if (wrong)
		memset(raw(mem), FILL, SIZE + 2 * PAGE_SIZE);
	return err;
}

/* ---- events ---- */

static void dto_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	u32 n = dto->user_cookie.as_64 & 0xff, use = dto->user_cookie.as_64 >> 8;
	struct conn *conn = instance;
	struct slot *slot = &conn->slot[n % SLOTS];

	spin_lock_bh(&conn->lock);
	if (event->event_number != DAT_DTO_COMPLETION_EVENT || n >= SLOTS || slot->use != use ||
	    slot->state != POSTED || slot->what != dto->operation ||
	    dto->ep_handle != conn->end.ep) {
		conn->stray++;
	} else {
		slot->state = DONE;
		slot->status = dto->status;
		slot->len = dto->transfered_length;
		conn->seen[n >= RECVS][dto->status & 15]++;
	}
	conn->events++;
	spin_unlock_bh(&conn->lock);
	wake_up_all(&conn->wait);
}

/* Waits for a condition; false when it does not come, or somebody kills us. */
#define await(who, condition)								\
({											\
	struct conn *who_ = (who);							\
											\
	wait_event_killable_timeout(who_->wait, (condition) || READ_ONCE(who_->stop),	\
				    LONG) > 0 && !READ_ONCE(who_->stop);		\
})

static bool is_done(const struct slot *slot)
{
	/* pairs with the lock of the upcall */
	return smp_load_acquire(&slot->state) == DONE;
}

static int in_flight(struct conn *conn)
{
	int i, n = 0;

	spin_lock_bh(&conn->lock);
	for (i = 0; i < SLOTS; i++)
		n += conn->slot[i].state == POSTED;
	spin_unlock_bh(&conn->lock);
	return n;
}

/* ---- operations ---- */

static int post(struct conn *conn, int n, DAT_DTOS what, struct peer_mem *mem, u32 off, u32 len,
		u32 remote)
{
	DAT_LMR_TRIPLET iov = { (uintptr_t)mem->p + off, len, mem->lctx };
	DAT_RMR_TRIPLET to = conn->peer;
	struct slot *slot = &conn->slot[n];
	int segments = len ? 1 : 0;
	DAT_DTO_COOKIE cookie;
	DAT_RETURN ret;

	spin_lock_bh(&conn->lock);
	slot->state = POSTED;
	slot->what = what;
	slot->use++;
	cookie.as_64 = (u64)slot->use << 8 | n;
	spin_unlock_bh(&conn->lock);
	to.virtual_address += remote;
	to.segment_length = len;
	switch (what) {
	case DAT_DTO_RECEIVE:
		ret = dat_ep_post_recv(conn->end.ep, segments, &iov, cookie, 0);
		break;
	case DAT_DTO_SEND:
		ret = dat_ep_post_send(conn->end.ep, segments, &iov, cookie, 0);
		break;
	case DAT_DTO_RDMA_WRITE:
		ret = dat_ep_post_rdma_write(conn->end.ep, segments, &iov, cookie, &to, 0);
		break;
	default:
		ret = dat_ep_post_rdma_read(conn->end.ep, segments, &iov, cookie, &to, 0);
		break;
	}
	if (ret == DAT_SUCCESS)
		return 0;
	spin_lock_bh(&conn->lock);
	slot->state = IDLE;
	spin_unlock_bh(&conn->lock);
	return check("post", ret);
}

/* Posts a request; its slot. */
static int request(struct conn *conn, DAT_DTOS what, struct peer_mem *mem, u32 off, u32 len,
		   u32 remote)
{
	int n = RECVS;

	while (n < SLOTS && READ_ONCE(conn->slot[n].state) != IDLE)
		n++;
	if (n == SLOTS)
		return fail("%s: no free slot", conn->name);
	return post(conn, n, what, mem, off, len, remote) ?: n;
}

/* Waits for a request and frees its slot. A negative one has failed already. */
static int reap(struct conn *conn, int n, u32 len)
{
	struct slot *slot = &conn->slot[n < 0 ? 0 : n];

	if (n < 0)
		return n;
	if (!await(conn, is_done(slot)))
		return fail("%s: operation %d does not end", conn->name, slot->what);
	if (slot->status != DAT_DTO_SUCCESS)
		return fail("%s: operation %d of %u bytes: %s", conn->name, slot->what, len,
			    kdat_dto_status_name(slot->status));
	if (slot->len != len)
		return fail("%s: operation %d: %u bytes, not %u", conn->name, slot->what,
			    slot->len, len);
	WRITE_ONCE(slot->state, IDLE);
	return 0;
}

/* Waits for the next message; the slot of its Receive, or -ECONNRESET at the end. */
static int receive(struct conn *conn)
{
	struct slot *slot = &conn->slot[conn->next_recv];

	if (!await(conn, is_done(slot)))
		return conn->stop ? -EINTR : fail("%s: no message comes", conn->name);
	if (slot->status != DAT_DTO_SUCCESS)
		return -ECONNRESET;
	return conn->next_recv;
}

static int receive_again(struct conn *conn)
{
	int n = conn->next_recv;

	conn->next_recv = (n + 1) % RECVS;
	return post(conn, n, DAT_DTO_RECEIVE, &conn->in[n], 0, SIZE, 0);
}

/* A message without data behind it; checked, copied, and the Receive posted again. */
static int receive_msg(struct conn *conn, struct msg *msg)
{
	int n = receive(conn);
	struct peer_mem *in;

	if (n < 0)
		return n;
	in = &conn->in[n];
	if (conn->slot[n].len != sizeof(*msg))
		return fail("%s: a message of %u bytes", conn->name, conn->slot[n].len);
	memcpy(msg, in->p, sizeof(*msg));
	memset(in->p, FILL, sizeof(*msg));
	return receive_again(conn) ?: check_pattern(in, 0, 0, 0);
}

static int send_msg(struct conn *conn, u32 what, u32 off, u32 len, u32 seed, bool bad)
{
	struct msg *msg = (struct msg *)conn->out.p;

	msg->what = cpu_to_le32(what);
	msg->off = cpu_to_le32(off);
	msg->len = cpu_to_le32(len);
	msg->seed = cpu_to_le32(seed);
	msg->bad = cpu_to_le32(bad);
	msg->key = cpu_to_le32(conn->win.rctx);
	msg->addr = cpu_to_le64((uintptr_t)conn->win.p);
	return reap(conn, request(conn, DAT_DTO_SEND, &conn->out, 0, sizeof(*msg), 0),
		    sizeof(*msg));
}

static int ask(struct conn *conn, u32 what, u32 off, u32 len, u32 seed, struct msg *answer)
{
	int err = send_msg(conn, what, off, len, seed, false) ?: receive_msg(conn, answer);

	if (!err && (answer->bad || answer->what != cpu_to_le32(what)))
		err = fail("the peer complains (question %u, %u bytes)", what, len);
	return err;
}

/* ---- connections ---- */

static void conn_close(struct conn *conn)
{
	int i;

	if (!conn->open)
		return;
	WRITE_ONCE(conn->stop, true);
	wake_up_all(&conn->wait);
	flush_work(&conn->work);
	TRY(peer_end_close, &conn->end);
	for (i = 0; i < RECVS; i++)
		mem_close(&conn->in[i]);
	mem_close(&conn->out);
	mem_close(&conn->win);
	mem_close(&conn->back);
	conn->stop = false;
	conn->open = false;
}

/* A clean state, and Receives for the peer's first messages. */
static int conn_ready(struct conn *conn)
{
	int i, err = 0;

	spin_lock_bh(&conn->lock);
	for (i = 0; i < SLOTS; i++)
		conn->slot[i].state = IDLE;
	conn->next_recv = 0;
	conn->stray = 0;
	conn->end.outcome = 0;
	conn->end.end = 0;
	conn->end.outcomes = 0;
	conn->end.ends = 0;
	conn->stop = false;
	memset(conn->seen, 0, sizeof(conn->seen));
	spin_unlock_bh(&conn->lock);
	memset(conn->back.p, FILL, SIZE);
	for (i = 0; i < RECVS && !err; i++) {
		memset(conn->in[i].p, FILL, SIZE);
		err = post(conn, i, DAT_DTO_RECEIVE, &conn->in[i], 0, SIZE, 0);
	}
	return err;
}

static int conn_open(struct conn *conn)
{
	const DAT_EP_ATTR attr = {
		.max_message_size = SIZE,
		.max_rdma_size = SIZE,
		.max_recv_dtos = RECVS, .max_recv_iov = 1,
		.max_request_dtos = REQUESTS, .max_request_iov = 1,
		.max_rdma_read_in = PIECES, .max_rdma_read_out = PIECES,
		.srq_soft_hw = DAT_HW_DEFAULT,
	};
	int i, err = 0;

	conn->open = true;
	for (i = 0; i < RECVS && !err; i++)
		err = mem_open(&conn->in[i]);
	return err ?: mem_open(&conn->out) ?: mem_open(&conn->win) ?: mem_open(&conn->back) ?:
	       TRY(peer_end_open, &kdw, &conn->end, &attr, &conn->wait, dto_upcall, conn) ?:
	       conn_ready(conn);
}

/* The connection is over: one event said so, and all that was posted has come back once. */
static int check_over(struct conn *conn)
{
	bool flushed = false;
	int i, n, status;

	if (!await(conn, peer_ended(&conn->end)))
		return fail("%s: no event ends the connection", conn->name);
	flush_work(&conn->work);
	if (!await(conn, !in_flight(conn)))
		return fail("%s: %d operations do not come back", conn->name, in_flight(conn));
	pr_info("%s: %s\n", conn->name, kdat_event_name(conn->end.end));
	for (i = 0; i < 2; i++) {
		for (status = 0; status < 16; status++) {
			if (conn->seen[i][status])
				pr_info("%s: %u %s %s\n", conn->name, conn->seen[i][status],
					i ? "requests" : "Receives", kdat_dto_status_name(status));
		}
	}
	/* Messages that nobody has looked at, then flushed ones to the end. */
	for (i = 0, n = conn->next_recv; i < RECVS; i++, n = (n + 1) % RECVS) {
		status = conn->slot[n].status;
		if (conn->slot[n].state != DONE || (status != DAT_DTO_ERR_FLUSHED && status) ||
		    (flushed && !status))
			return fail("%s: Receive %d: %s", conn->name, n,
				    kdat_dto_status_name(status));
		flushed |= status == DAT_DTO_ERR_FLUSHED;
	}
	if (peer_state(&conn->end) != DAT_EP_STATE_DISCONNECTED)
		return fail("%s: state %d", conn->name, peer_state(&conn->end));
	if (conn->stray || conn->end.ends != 1 || conn->end.outcomes != 1)
		return fail("%s: %u stray completions, %d ends, %d outcomes", conn->name,
			    conn->stray, conn->end.ends, conn->end.outcomes);
	return 0;
}

/* What is posted now comes back at once. */
static int check_flushed(struct conn *conn)
{
	static const DAT_DTOS what[] = { DAT_DTO_SEND, DAT_DTO_RDMA_WRITE, DAT_DTO_RDMA_READ,
					 DAT_DTO_RECEIVE };
	int i, n, err;

	for (i = 0; i < ARRAY_SIZE(what); i++) {
		n = what[i] == DAT_DTO_RECEIVE ? 0 : RECVS;
		err = post(conn, n, what[i], &conn->out, 0, 64, 0);
		if (err)
			return err;
		if (!await(conn, is_done(&conn->slot[n])) ||
		    conn->slot[n].status != DAT_DTO_ERR_FLUSHED)
			return fail("%s: operation %d after the end is not FLUSHED", conn->name,
				    what[i]);
	}
	return conn->stray ? fail("%s: %u stray completions", conn->name, conn->stray) : 0;
}

/* ---- the passive connection ---- */

/* Back goes what the Receive holds. */
static int serve_echo(struct conn *conn, u32 len, u32 seed)
{
	int n = receive(conn), err, sent;
	struct peer_mem *in;
	bool bad;

	if (n < 0)
		return n;
	in = &conn->in[n];
	bad = conn->slot[n].len != len;
	if (bad)
		fail("%s: %u bytes came, not %u", conn->name, conn->slot[n].len, len);
	/* The check wipes it. */
	memcpy(conn->back.p, in->p, len);
	bad |= check_pattern(in, 0, len, seed) != 0;
	err = receive_again(conn) ?: send_msg(conn, ASK_ECHO, 0, len, seed, bad);
	if (err)
		return err;
	sent = request(conn, DAT_DTO_SEND, &conn->back, 0, len, 0);
	err = reap(conn, sent, len);
	memset(conn->back.p, FILL, len);
	return err;
}

static void serve(struct work_struct *work)
{
	struct conn *conn = container_of(work, struct conn, work);
	struct msg msg;
	int err = 0;

	if (!await(conn, peer_answered(&conn->end)))
		return;
	while (conn->end.outcome == DAT_CONNECTION_EVENT_ESTABLISHED && !err) {
		u32 off, len, seed, what;
		bool bad = false;

		err = receive_msg(conn, &msg);
		if (err)
			break;
		what = le32_to_cpu(msg.what);
		off = le32_to_cpu(msg.off);
		len = le32_to_cpu(msg.len);
		seed = le32_to_cpu(msg.seed);
		if (off > SIZE || len > SIZE - off) {
			fail("%s: %u bytes from %u", conn->name, len, off);
			break;
		}
		if (what == ASK_ECHO) {
			err = serve_echo(conn, len, seed);
			continue;
		}
		if (what == ASK_CHECK)
			bad = check_pattern(&conn->win, off, len, seed) != 0;
		else if (what == ASK_FILL)
			pattern(conn->win.p + off, len, seed);
		err = send_msg(conn, what, off, len, seed, bad);
	}
}

static void cr_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	DAT_CR_HANDLE cr = event->event_data.cr_arrival_event_data.cr_handle;
	int err;

	/* The peer has only one: what it had has ended, even if we have not heard of it. */
	conn_close(&pas);
	err = conn_open(&pas) ?: TRY(dat_cr_accept, cr, pas.end.ep, 0, NULL);
	if (err)
		dat_cr_reject(cr, 0, NULL);
	else
		queue_work(kdw_wq, &pas.work);
}

static int do_listen(char *arg)
{
	return TRY(peer_ia_listen, &kdw, port, cr_upcall, NULL);
}

/* ---- orders about the active connection ---- */

static int begin_connect(const char *address, DAT_TIMEOUT timeout)
{
	struct sockaddr_storage to;
	int err = peer_address(&init_net, address, port, &to);

	if (!err && !act.open)
		err = conn_open(&act);
	return err ?: TRY(peer_connect, &act.end, &to, port, timeout, 0, NULL);
}

static int do_connect(char *arg)
{
	int err = begin_connect(arg, 60 * USEC_PER_SEC);
	struct msg msg;

	if (err)
		return err;
	if (!await(&act, peer_answered(&act.end)) ||
	    act.end.outcome != DAT_CONNECTION_EVENT_ESTABLISHED)
		return fail("connecting to %s: %s", arg, kdat_event_name(act.end.outcome));
	err = ask(&act, ASK_WINDOW, 0, 0, 0, &msg);
	if (err)
		return fail("connected, but no answer from %s (%d)", arg, err);
	act.peer.virtual_address = le64_to_cpu(msg.addr);
	act.peer.rmr_context = le32_to_cpu(msg.key);
	return 0;
}

/* Nobody is there. */
static int do_refuse(char *arg)
{
	int err = begin_connect(arg, 4 * USEC_PER_SEC), i;

	if (err)
		return err;
	if (!await(&act, peer_answered(&act.end)) || !await(&act, !in_flight(&act)))
		return fail("%s: no outcome", arg);
	pr_info("act: connecting to %s: %s\n", arg, kdat_event_name(act.end.outcome));
	if (act.end.outcome != DAT_CONNECTION_EVENT_UNREACHABLE &&
	    act.end.outcome != DAT_CONNECTION_EVENT_TIMED_OUT)
		return fail("that is not TIMED_OUT or UNREACHABLE");
	for (i = 0; i < RECVS; i++) {
		if (act.slot[i].status != DAT_DTO_ERR_FLUSHED)
			return fail("Receive %d is not FLUSHED", i);
	}
	return act.end.outcomes == 1 && !act.end.ends && !act.stray ?
		0 : fail("more than one outcome");
}

static int do_reset(char *arg)
{
	int err = TRY(dat_ep_reset, act.end.ep);

	if (!err && peer_state(&act.end) != DAT_EP_STATE_UNCONNECTED)
		err = fail("state %d", peer_state(&act.end));
	return err ?: conn_ready(&act);
}

static int echo(u32 len)
{
	u32 seed = ++act.seed;
	struct msg msg;
	int sent, n, err;

	pattern(act.back.p, len, seed);
	err = send_msg(&act, ASK_ECHO, 0, len, seed, false);
	if (err)
		return err;
	sent = request(&act, DAT_DTO_SEND, &act.back, 0, len, 0);
	err = reap(&act, sent, len) ?: receive_msg(&act, &msg);
	if (err)
		return err;
	memset(act.back.p, FILL, len);
	n = receive(&act);
	if (n < 0)
		return fail("the message does not come back");
	if (msg.bad || act.slot[n].len != len)
		return fail("the peer complains of a message of %u bytes, %u came back", len,
			    act.slot[n].len);
	return check_pattern(&act.in[n], 0, len, seed) ?: receive_again(&act);
}

/*
 * In pieces that are under way together, somewhere in the middle of the memory.
 * A short Read across a page is left out: soft-iWARP of Linux 6.1 to 7.2 gets it
 * wrong (siw_try_1seg()).
 */
static int rdma(DAT_DTOS what, u32 len)
{
	u32 shift = what == DAT_DTO_RDMA_READ && len < 128 ? 512 : 0;
	u32 seed = ++act.seed, off = (SIZE - len) / 2 + shift, done, part;
	int i, err = 0, n[PIECES];
	struct msg msg;

	if (what == DAT_DTO_RDMA_WRITE)
		pattern(act.back.p + off, len, seed);
	else
		err = ask(&act, ASK_FILL, off, len, seed, &msg);
	if (err)
		return err;
	for (i = 0, done = 0; i < PIECES; i++, done += part) {
		part = i == PIECES - 1 ? len - done : len / PIECES;
		n[i] = request(&act, what, &act.back, off + done, part, off + done);
	}
	/* Behind Writes a Send needs no waiting. */
	if (what == DAT_DTO_RDMA_WRITE)
		err = ask(&act, ASK_CHECK, off, len, seed, &msg);
	for (i = 0, done = 0; i < PIECES; i++, done += part) {
		part = i == PIECES - 1 ? len - done : len / PIECES;
		err = reap(&act, n[i], part) ?: err;
	}
	/* A Read must not have changed the source either: the peer looks, and wipes. */
	return err ?: check_pattern(&act.back, off, len, seed) ?:
	       (what == DAT_DTO_RDMA_READ ? ask(&act, ASK_CHECK, off, len, seed, &msg) : 0);
}

/* traffic SIZES: each kind of transfer in each of these sizes. */
static int do_traffic(char *arg)
{
	u64 bytes = 0, start = ktime_get_ns();
	int n = 0, err = 0;
	char *word;
	u32 len;

	while (!err && (word = strsep(&arg, " ")) != NULL) {
		if (kstrtou32(word, 0, &len) || len > SIZE)
			return -EINVAL;
		err = echo(len) ?: rdma(DAT_DTO_RDMA_WRITE, len) ?: rdma(DAT_DTO_RDMA_READ, len);
		bytes += 4 * len;
		n++;
	}
	pr_info("traffic: %d sizes, %llu bytes, %llu ms\n", n, bytes,
		div_u64(ktime_get_ns() - start, NSEC_PER_MSEC));
	return err;
}

/* A Send of a flood asks for an answer, which is what lets the next one go. */
static void flood_answers(int *credits)
{
	while (is_done(&act.slot[act.next_recv]) &&
	       act.slot[act.next_recv].status == DAT_DTO_SUCCESS) {
		if (receive_again(&act))
			break;
		(*credits)++;
	}
}

static void flood(struct work_struct *work)
{
	int n[REQUESTS], i, credits = RECVS, len = 16384;
	struct msg *msg = (struct msg *)act.out.p;
	bool over = false;
	u32 events;

	memset(n, -1, sizeof(n));
	memset(msg, 0, sizeof(*msg));
	msg->what = cpu_to_le32(ASK_NOTHING);
	while (!over && !READ_ONCE(act.stop)) {
		events = READ_ONCE(act.events);
		flood_answers(&credits);
		for (i = 0; act.flood[i]; i++) {
			struct slot *slot = &act.slot[n[i] < 0 ? RECVS : n[i]];

			if (n[i] >= 0 && is_done(slot)) {
				over |= slot->status != DAT_DTO_SUCCESS;
				if (slot->status == DAT_DTO_SUCCESS) {
					act.flood_done++;
					WRITE_ONCE(slot->state, IDLE);
					n[i] = -1;
				}
			}
			if (n[i] >= 0 || over || peer_ended(&act.end))
				continue;
			if (act.flood[i] == 's' && credits) {
				credits--;
				n[i] = request(&act, DAT_DTO_SEND, &act.out, 0, sizeof(*msg), 0);
			} else if (act.flood[i] == 'w') {
				n[i] = request(&act, DAT_DTO_RDMA_WRITE, &act.back, 0, len, 0);
			} else if (act.flood[i] == 'r') {
				n[i] = request(&act, DAT_DTO_RDMA_READ, &act.win, 0, len, 0);
			}
		}
		wake_up_all(&act.wait);
		over = over || !await(&act, READ_ONCE(act.events) != events ||
					    peer_ended(&act.end)) || peer_ended(&act.end);
	}
}

/* flood KINDS: that many Sends (s), Writes (w), Reads (r) under way, on and on. */
static int do_flood(char *arg)
{
	if (!*arg || strlen(arg) > REQUESTS || arg[strspn(arg, "swr")])
		return -EINVAL;
	strscpy(act.flood, arg, sizeof(act.flood));
	act.flood_done = 0;
	queue_work(kdw_wq, &act.work);
	if (!await(&act, READ_ONCE(act.flood_done) >= 4 * strlen(arg) || peer_ended(&act.end)) ||
	    act.end.ends)
		return fail("the flood does not flow");
	return 0;
}

/* broken [or-disconnected]: the transport notices, after whatever time it takes. */
static int do_broken(char *arg)
{
	u64 start = ktime_get_ns();
	u32 failed;
	int err = check_over(&act);

	pr_info("act: noticed after %llu ms\n", div_u64(ktime_get_ns() - start, NSEC_PER_MSEC));
	if (err)
		return err;
	if (act.end.end != DAT_CONNECTION_EVENT_BROKEN && strcmp(arg, "or-disconnected"))
		return fail("the end is %s", kdat_event_name(act.end.end));
	failed = act.seen[1][DAT_DTO_ERR_TRANSPORT] + act.seen[1][DAT_DTO_ERR_FLUSHED];
	if (!failed)
		return fail("no request was outstanding");
	return check_flushed(&act);
}

/* over: the connection has ended, in whatever way. */
static int do_over(char *arg)
{
	return check_over(&act);
}

static int do_disconnect(char *arg)
{
	int err = TRY(dat_ep_disconnect, act.end.ep, DAT_CLOSE_GRACEFUL_FLAG) ?: check_over(&act);

	if (!err && act.end.end != DAT_CONNECTION_EVENT_DISCONNECTED)
		err = fail("the end is %s", kdat_event_name(act.end.end));
	return err;
}

/* ---- orders about the passive connection ---- */

/* ended: the peer has left. */
static int do_ended(char *arg)
{
	int err = check_over(&pas);

	if (!err && pas.end.end != DAT_CONNECTION_EVENT_DISCONNECTED)
		err = fail("the end is %s", kdat_event_name(pas.end.end));
	conn_close(&pas);
	return err;
}

/* quiet: nothing has been noticed. */
static int do_quiet(char *arg)
{
	if (!pas.open || pas.end.ends || pas.end.outcomes != 1 || pas.stray)
		return fail("pas: %d ends, %d outcomes", pas.end.ends, pas.end.outcomes);
	if (peer_state(&pas.end) != DAT_EP_STATE_CONNECTED || in_flight(&pas) != RECVS)
		return fail("pas: state %d, %d in flight", peer_state(&pas.end), in_flight(&pas));
	return 0;
}

/* leave: we leave; that needs no peer. */
static int do_leave(char *arg)
{
	return TRY(dat_ep_disconnect, pas.end.ep, DAT_CLOSE_ABRUPT_FLAG) ?: do_ended(arg);
}

/* ---- all orders ---- */

static const struct order orders[] = {
	{ "listen", do_listen },
	{ "connect", do_connect },	/* ADDRESS */
	{ "refuse", do_refuse },	/* ADDRESS */
	{ "traffic", do_traffic },	/* SIZES */
	{ "flood", do_flood },		/* KINDS */
	{ "broken", do_broken },	/* [or-disconnected] */
	{ "over", do_over },
	{ "disconnect", do_disconnect },
	{ "reset", do_reset },
	{ "ended", do_ended },
	{ "quiet", do_quiet },
	{ "leave", do_leave },
	{}
};

static void kdw_close(void)
{
	DAT_EVENT event;

	debugfs_remove_recursive(kdw_dir);
	peer_ia_deafen(&kdw);
	conn_close(&act);
	conn_close(&pas);
	while (kdw.async && dat_evd_dequeue(kdw.async, &event) == DAT_SUCCESS)
		pr_info("asynchronous event 0x%x\n", event.event_number);
	peer_ia_close(&kdw);
	if (kdw_wq)
		destroy_workqueue(kdw_wq);
}

static void conn_init(struct conn *conn, work_func_t work)
{
	INIT_WORK(&conn->work, work);
	init_waitqueue_head(&conn->wait);
	spin_lock_init(&conn->lock);
}

static int __init kdw_init(void)
{
	int err;

	if (!ia)
		return -EINVAL;
	conn_init(&act, flood);
	conn_init(&pas, serve);
	kdw_wq = alloc_workqueue("kdwire", WQ_UNBOUND, 0);
	if (!kdw_wq)
		return -ENOMEM;
	err = TRY(peer_ia_open, &kdw, ia);
	if (err) {
		kdw_close();
		return err;
	}
	kdw_dir = orders_open("kdwire", orders);
	return 0;
}

static void __exit kdw_exit(void)
{
	kdw_close();
}

module_init(kdw_init);
module_exit(kdw_exit);
MODULE_DESCRIPTION("kDAPL test: scenarios between two machines");
MODULE_AUTHOR("The kDAPL for Linux authors");
MODULE_LICENSE("Dual BSD/GPL");
