/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * An owner exposes memory, a peer hammers it with RDMA Writes and Reads from its
 * upcalls, and never stops by itself. Both are here, so each byte can be judged by
 * its value: see the enum.
 */
#ifndef KDHAMMER_H
#define KDHAMMER_H

#include <linux/prandom.h>
#include <linux/scatterlist.h>

#include "../../lib/consumer.h"

#define MESSAGE		4096	/* bytes, at most, so one segment is not longer either */
#define SLOTS		8	/* requests of a hammer under way */
#define RECVS		4

/* Whose byte this is. What the peer writes has the highest bit set. */
enum {
	WINDOW = 0x11,		/* exposed */
	GUARD = 0x22,		/* never: before and behind it */
	SECRET = 0x33,		/* not any more */
	SINK = 0x44,		/* the peer's, before its Reads */
	LATER = 0x66,		/* not yet */
	PEER = 0x80,
};

/* Memory with a window in it, and guards around that. */
struct area {
	u8 *p;
	u32 size, at, length;
	bool vmalloc;
	struct scatterlist sg[16];
	int nents;
};

/* An end of a connection. */
struct end {
	struct link *link;
	struct test_end conn;
	DAT_EVD_HANDLE req, recv, conn_evd;
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
	struct test_mem buf;	/* SLOTS messages to write, SLOTS sinks, one for others */
};

/* A connection: the owner's end and the peer's. */
struct link {
	const char *name;
	struct end owner, peer;
	struct hammer hammer;
	struct test_mem inbox;
	struct test_op *inbox_op;	/* gets what the next Receive gets */
};

/* ---- main.c ---- */

extern struct test_ia ham_owner, ham_peer;
extern struct rnd_state ham_rnd;
extern bool ham_exact;			/* nothing comes amid a copy: no segment is late */
extern u64 ham_moved, ham_slack;

static inline u32 ham_below(u32 below)
{
	return prandom_u32_state(&ham_rnd) % below;
}

int area_open(struct area *area, u32 size);
void area_close(struct area *area);
void area_window(struct area *area, u32 at, u32 length, u8 value);
int area_sg(struct area *area);
void area_secret(struct area *area);
int area_check(struct area *area, const char *when);
int area_check_secret(struct area *area, const char *when);
int area_check_guards(struct area *area, const char *when);
int area_is(const struct area *area, u32 at, u32 length, u8 value, const char *what);

u32 number(const char *arg);	/* 1 when there is none */

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
int peer_write(struct link *link, struct test_op *op, u32 rkey, u64 addr, u32 length);
int peer_read(struct link *link, struct test_op *op, u32 rkey, u64 addr, u32 length);
int peer_send_inv(struct link *link, struct test_op *op, u32 rkey);

/* ---- rounds.c, reg.c ---- */

int lmr_over(const struct area *area, bool all, DAT_MEM_PRIV_FLAGS rights, DAT_LMR_HANDLE *lmr,
	     DAT_LMR_CONTEXT *lkey, DAT_RMR_CONTEXT *rkey);
int do_invalidate(char *arg);
int do_free(char *arg);
int do_rebind(char *arg);
int do_remote(char *arg);
int do_register(char *arg);
int do_registering(char *arg);
int do_registered(char *arg);
void reg_close(void);

#endif /* KDHAMMER_H */
