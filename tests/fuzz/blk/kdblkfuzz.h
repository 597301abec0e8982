/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * kdblkfuzz: an initiator and a target of kdblk that mean no good.
 *
 *	main.c		orders, the adapter, chance
 *	link.c		a connection: events are taken by whoever waits for them
 *	initiator.c	what is done to kdblk_target.ko
 *	target.c	what is done to kdblk.ko
 */
#ifndef KDBLKFUZZ_H
#define KDBLKFUZZ_H

#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/printk.h>
#include <linux/socket.h>
#include <dat2/kdat_ext.h>
#include "../../../ulp_example/kdblk/proto.h"

#define fail	fz_fail
#include "../../lib/peer.h"

#define FZ_LONG_MS	30000		/* for anything that must happen */
#define FZ_DEPTH	16		/* tags of a queue */
#define FZ_IO		65536u		/* memory for the data of each */
#define FZ_INLINE	4096u		/* that our target takes, and our initiator in answers */
#define FZ_TX		(512u << 10)	/* messages, one behind the other, round and round */
#define FZ_RX		(sizeof(struct kdblk_cmd) + FZ_INLINE)
#define FZ_ANSWERS	64		/* that are remembered */
#define FZ_FAULTS	20		/* that are described */

struct fz_answer {
	u32 length;
	bool invalidated;
	DAT_RMR_CONTEXT rkey;
	union {
		struct kdblk_rsp rsp;
		struct kdblk_login_rsp login;
	};
};

/* One connection, of either side. Touched by one task at a time. */
struct fz_link {
	struct list_head node;
	DAT_EVD_HANDLE evd;		/* no upcalls: DTO and connection events */
	DAT_EP_HANDLE ep;
	struct peer_mem rx, tx, data;	/* data: FZ_IO for each tag */
	DAT_LMR_HANDLE lent[FZ_DEPTH];	/* initiator: over data, when lent to the target */
	u32 tx_at;
	bool deaf;			/* posts no Receive */
	/* what was seen */
	DAT_EVENT_NUMBER event;		/* the last one of the connection, 0 before */
	bool up, over;
	DAT_DTO_COMPLETION_STATUS failed;	/* the first failure that is no flush, or 0 */
	u32 sent, rdma, rdma_failed;	/* completions */
	u32 nanswers;
	struct fz_answer answers[FZ_ANSWERS];
	u32 pdata_size;
	u8 pdata[64];
	/* our target: what came, in the memory of a Receive; and the end of an RDMA */
	void (*heard)(struct fz_link *link, const void *msg, u32 length);
	void (*moved)(struct fz_link *link, u32 cookie, bool ok);
	u16 queue, depth;
	bool holds;			/* the answer to the command with this tag */
	u32 held;
	struct kdblk_cmd cmds[FZ_DEPTH];	/* that are worked on */
};

/* link.c */
struct fz_link *fz_link_new(void);
void fz_link_free(struct fz_link *link);
int fz_link_ready(struct fz_link *link);	/* Receives are posted */
int fz_link_connect(struct fz_link *link, const void *pdata, int size);
void fz_link_poll(struct fz_link *link);
void *fz_tx(struct fz_link *link, u32 size);
int fz_send(struct fz_link *link, const void *msg, u32 size);
int fz_send_invalidate(struct fz_link *link, const void *msg, u32 size, u32 rkey);
int fz_rdma(struct fz_link *link, bool write, u32 tag, u32 length, u64 address, u32 rkey,
	    u32 cookie);
int fz_poison(struct fz_link *link, u32 length, u64 address, u32 rkey, u32 cookie);
int fz_lend(struct fz_link *link, u32 tag, u32 pages, int rights, u32 *rkey);

/* Takes events until it is so, or the time is up; whether it is so. */
#define fz_until(link, cond, ms)						\
({										\
	unsigned long _end = jiffies + msecs_to_jiffies(ms);			\
	bool _yes;								\
	for (;;) {								\
		bool _late = time_after(jiffies, _end);				\
										\
		fz_link_poll(link);						\
		_yes = (cond);							\
		if (_yes || _late)						\
			break;							\
		usleep_range(100, 300);						\
	}									\
	_yes;									\
})

/* main.c */
extern char *fz_disk;
extern struct sockaddr_storage fz_to;
extern ushort fz_port, fz_own_port;
extern struct peer_ia fz_ia;
extern DAT_COUNT fz_reads;
extern atomic_t fz_faults;
u32 fz_number(const char *word);
u32 fz_rnd(u32 below);
void fz_rnd_bytes(void *to, u32 size);

/* What is wrong has a name; tables of such begin with it. */
struct fz_table {
	const char *const *name;
	size_t stride, size;
};

#define FZ_TABLE(rows)	{ &(rows)[0].name, sizeof((rows)[0]), sizeof(rows) }

extern const struct fz_table fz_bads, fz_hellos, fz_logins, fz_acts;
int fz_find(const struct fz_table *table, const char *name);	/* -EINVAL: it is none */

/* A field of a message has another value; where it has more than 8 bytes, each of them. */
struct fz_patch {
	u16 at, size;
	u64 value;
};

#define FZ_PATCH(type, field, bytes, to)	{ offsetof(struct type, field), bytes, to }
#define FZ_LAST(type, field, to)		{ offsetofend(struct type, field) - 1, 1, to }

void fz_patch(void *msg, const struct fz_patch *patch);

/* A violation of ours went wrong, or of the other side was seen. */
#define fz_fail(fmt, ...)							\
({										\
	if (atomic_inc_return(&fz_faults) <= FZ_FAULTS)				\
		pr_err("FAIL " fmt "\n", ##__VA_ARGS__);			\
	-EIO;									\
})

/* initiator.c: orders */
int fz_bad(char *arg);
int fz_hello(char *arg);
int fz_login(char *arg);
int fz_identity(char *arg);
int fz_queues(char *arg);
int fz_read_only(char *arg);
int fz_prove(char *secret);
int fz_silent(char *arg);
int fz_keepalive(char *arg);
int fz_inflight(char *arg);
int fz_deaf(char *arg);
int fz_attack(char *arg);
int fz_random(char *arg);
int fz_random_connect(char *arg);
int fz_good(char *arg);

/* target.c: orders */
int fz_listen(char *arg);
int fz_serve(char *arg);
int fz_served(char *arg);
void fz_listen_stop(void);

#endif
