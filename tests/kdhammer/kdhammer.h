/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * An owner exposes memory, a peer hammers it with RDMA Writes and Reads from its
 * upcalls, and never stops by itself. Both are here, so each byte can be judged by
 * its value: see the enum.
 */
#ifndef KDHAMMER_H
#define KDHAMMER_H

#include <linux/completion.h>
#include <linux/prandom.h>
#include <linux/scatterlist.h>
#include <linux/socket.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include <dat2/kdat.h>
#include <dat2/kdat_ext.h>

/* What is wrong goes to the log, and the order fails: -EIO. */
__printf(1, 2) int fail(const char *fmt, ...);

#include "../calls.h"

#define MESSAGE		4096	/* bytes, at most, so one segment is not longer either */
#define SLOTS		8	/* requests of a hammer under way */
#define RECVS		4
#define LONG		(60 * HZ)	/* for what must happen */

/* Whose byte this is. What the peer writes has the highest bit set. */
enum {
	WINDOW = 0x11,		/* exposed */
	GUARD = 0x22,		/* never: before and behind it */
	SECRET = 0x33,		/* not any more */
	SINK = 0x44,		/* the peer's, before its Reads */
	LATER = 0x66,		/* not yet */
	PEER = 0x80,
};

struct side {
	const char *name;
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async;
	DAT_PZ_HANDLE pz;
	struct sockaddr_storage addr;
	bool iwarp;
};

/* Memory with a window in it, and guards around that. */
struct area {
	u8 *p;
	u32 size, at, length;
	bool vmalloc;
	struct scatterlist sg[16];
	int nents;
};

/* A request or Receive whose end somebody waits for. */
struct op {
	void (*then)(struct op *op);	/* in the upcall, when it has succeeded; or NULL */
	struct area *area;
	struct completion done;
	DAT_DTO_COMPLETION_STATUS status;
	DAT_DTOS operation;
	u32 key;			/* that a Send has invalidated */
	bool bad;			/* then() was not content */
};

struct link;

struct end {
	struct link *link;
	struct side *side;
	DAT_EVD_HANDLE req, recv, conn;
	DAT_EP_HANDLE ep;
	int ups, overs;
	DAT_EVENT_NUMBER outcome, over;
};

struct slot {
	bool busy, read;
	u32 length;
};

struct hammer {
	spinlock_t lock;	/* of all below */
	bool on;
	u32 rkey;
	u64 addr;		/* of the window, as peers name it */
	u32 length;
	int busy;
	int status;		/* that has ended it */
	u64 moved, late;
	u32 seen;		/* Reads that have brought a secret */
	struct slot slot[SLOTS];
	struct rnd_state rnd;
	u8 *buf;		/* SLOTS messages to write, SLOTS sinks, one for others */
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT key;
};

/* A connection: the owner's end and the peer's. */
struct link {
	const char *name;
	struct end owner, peer;
	struct hammer hammer;
	struct op recv[RECVS];
	u8 *inbox;
	DAT_LMR_HANDLE inbox_lmr;
	DAT_LMR_CONTEXT inbox_key;
	struct op *inbox_op;		/* gets what the next Receive gets */
};

/* ---- main.c ---- */

extern struct side ham_owner, ham_peer;
extern struct rnd_state ham_rnd;
extern wait_queue_head_t ham_wait;
extern bool ham_exact;			/* nothing comes amid a copy: no segment is late */
extern u64 ham_moved, ham_slack;

bool ham_failed(void);

static inline u32 ham_below(u32 below)
{
	return prandom_u32_state(&ham_rnd) % below;
}

#define await(condition)	(wait_event_idle_timeout(ham_wait, condition, LONG) > 0)

int area_open(struct area *area, u32 size);
void area_close(struct area *area);
void area_window(struct area *area, u32 at, u32 length, u8 value);
int area_sg(struct area *area);
void area_secret(struct area *area);
int area_check(struct area *area, const char *when);
int area_check_secret(struct area *area, const char *when);
int area_check_guards(struct area *area, const char *when);
int area_is(const struct area *area, u32 at, u32 length, u8 value, const char *what);

void op_init(struct op *op, void (*then)(struct op *op), struct area *area);
int op_wait(struct op *op, const char *what);

static inline DAT_DTO_COOKIE op_cookie(struct op *op)
{
	return (DAT_DTO_COOKIE) { .as_ptr = op };
}

/* ---- link.c ---- */

int links_open(void);
void links_close(void);
extern struct link ham_link, ham_other;
int link_up(struct link *link);
int link_over(struct link *link);
int link_again(struct link *link);
int link_talk(struct link *link);
int hammer_start(struct link *link, u32 rkey, u64 addr, u32 length);
int hammer_wait(struct link *link, u32 messages);
int hammer_stop(struct link *link);
int peer_write(struct link *link, struct op *op, u32 rkey, u64 addr, u32 length);
int peer_read(struct link *link, struct op *op, u32 rkey, u64 addr, u32 length);
int peer_send_inv(struct link *link, struct op *op, u32 rkey);

/* ---- rounds.c, stale.c, reg.c ---- */

int lmr_over(struct side *side, DAT_PZ_HANDLE pz, const struct area *area, bool all,
	     DAT_MEM_PRIV_FLAGS priv, DAT_LMR_HANDLE *lmr, DAT_LMR_CONTEXT *lkey,
	     DAT_RMR_CONTEXT *rkey);
int fmr_over(struct link *link, DAT_LMR_HANDLE lmr, struct area *area, DAT_LMR_CONTEXT *lkey,
	     DAT_RMR_CONTEXT *rkey, u64 *addr);
int do_invalidate(char *arg);
int do_free(char *arg);
int do_rebind(char *arg);
int do_remote(char *arg);
int do_keys(char *arg);
int do_stale(char *arg);
int do_register(char *arg);
int do_registering(char *arg);
int do_registered(char *arg);
int do_press(char *arg);
int do_crowd(char *arg);
int do_crowded(char *arg);
int do_zones(char *arg);
void reg_close(void);
void reg_free(void);

#define REMOTE	(DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG)
#define LOCAL	(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG)

#endif /* KDHAMMER_H */
