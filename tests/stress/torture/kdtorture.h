/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Threads make random calls, and know what may come of each: see README.md.
 */
#ifndef KDTORTURE_H
#define KDTORTURE_H

#include <linux/mutex.h>
#include <linux/prandom.h>
#include <linux/sched.h>

#include "../../lib/consumer.h"

#include "outcomes.h"

#define CALL(name, ...)	C_##name,

enum tor_call {
#include "../../../kdapl/tests/all_calls.h"
	TOR_CALLS
};

#define TOR_KINDS	(DAT_HANDLE_TYPE_CSP + 1)
#define TOR_STALE	64
#define TOR_LONG	(90 * HZ)	/* for what must happen */

/* A thread. What it does in a step follows from seed, thread, round and step alone. */
struct tor {
	unsigned int id;
	u32 round, step;
	struct rnd_state rnd;
	struct task_struct *task;
	DAT_HANDLE stale[TOR_STALE];	/* handles that died by its hand */
	u32 nstale;
	bool calm;			/* it has interrupts off */
};

/* An adapter. */
struct tor_ia {
	char *name;
	bool removable;
};

/* ---- main.c ---- */

extern struct tor_ia tor_ias[2];
extern unsigned int tor_nias;

u32 tor_below(struct tor *t, u32 below);

static inline bool tor_one_in(struct tor *t, u32 n)
{
	return !tor_below(t, n);
}

__printf(2, 3) void tor_bad(const struct tor *t, const char *fmt, ...);
bool tor_ret(struct tor *t, enum tor_call call, DAT_RETURN ret, u32 allowed);
u32 tor_documented(enum tor_call call);
bool tor_stop(void);
void tor_begin(struct tor *t, u32 step);
void tor_note(u32 which);
DAT_HANDLE tor_bad_handle(struct tor *t, DAT_HANDLE live);
void tor_died(struct tor *t, DAT_HANDLE h);

/* A call in a thread of its own: counted, and looked at. True for success. */
#define TRY_IT(may, call, ...)	tor_ret(t, C_##call, call(__VA_ARGS__), may)

/* What happened, for the report. */
enum {
	N_UP, N_END, N_MOVED, N_FLUSHED, N_EVENTS, N_DEAD, N_WORLDS, N_UNFIT, TOR_NOTES
};

/* ---- world.c, pair.c ---- */

struct world;

void world_round(struct tor *t);

/* An IA instance of a thread alone, and what it knows of it. */
struct side {
	struct world *w;
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async;
	atomic_t catastrophic;
};

#define OPS		16	/* under way in a queue of an Endpoint, at most */
#define SLOT		256	/* bytes of a message */
#define TARGETS		64	/* for RDMA Writes, one after the other */
#define TARGET		64
#define SOURCE		2048	/* for RDMA Reads */

struct end;

struct op {
	atomic_t state;
	u8 kind;		/* enum dat_dtos */
	bool quiet;		/* no event when it succeeds */
	u32 length;
	u64 seq;		/* in its queue */
	struct end *end;
};

struct end_mem {
	u8 out[OPS][SLOT];
	u8 in[OPS][SLOT];
	u8 sink[OPS][SLOT];
	u8 target[TARGETS][TARGET];
	u8 source[SOURCE];
};

struct pair;

enum { REQUESTS, RECEIVES, CONNECTS, QUEUES };	/* whose events an end gets */

struct end {
	struct pair *pair;
	struct end *peer;
	struct side *side;
	DAT_EP_HANDLE ep;
	DAT_EP_HANDLE id;		/* ep, also when it has been freed: what events are of */
	struct queue {
		struct end *end;
		DAT_EVD_HANDLE evd;	/* its own, or that of all three */
	} queue[QUEUES];
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT key;
	DAT_RMR_CONTEXT rkey;
	struct end_mem *mem;
	spinlock_t lock;	/* of all below */
	u32 states;		/* it is in one of these */
	bool asked;		/* an attempt is under way or over */
	bool up, closed;
	bool early;		/* something has succeeded before it was up */
	DAT_EVENT_NUMBER over;	/* the event it has ended with */
	bool left;		/* by dat_ep_disconnect(), tried at least */
	struct op op[2][OPS];	/* requests, Receives */
	u64 seq[2], done[2];
	u64 sent, received, writes, credit;
};

struct pair {
	struct world *w;
	struct mutex lock;	/* of attempt, refuse, against the upcall that answers */
	u32 attempt;
	bool refuse;
	bool many;		/* upcalls of several events at a time: there is no order */
	bool shared;		/* an EVD of an end has all events of it, in order */
	bool fresh;		/* EVDs exist */
	int phase;
	struct end a, b;	/* b waits, a connects */
};

#define PAIRS	3

/* A thread's own adapters and all it makes of them: nobody else knows the handles. */
struct world {
	struct tor *t;
	const struct tor_ia *ia;
	bool iwarp;
	bool fence;		/* all requests can be fenced */
	bool gone;		/* a call has said that the device has gone */
	struct sockaddr_storage addr;
	struct side side[2];
	wait_queue_head_t wait;
	DAT_PZ_HANDLE pz[2];
	DAT_EVD_HANDLE cr;
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL port;
	struct pair pair[PAIRS];
};

bool w_ret(struct world *w, enum tor_call call, DAT_RETURN ret, u32 allowed);

/* The same in the world w, whose device may have gone. */
#define DO(may, call, ...)	w_ret(w, C_##call, call(__VA_ARGS__), may)

/* What frees objects of a kind that need nothing but their handles for that. */
extern const struct tor_free {
	enum tor_call call;
	DAT_RETURN (*free)(DAT_HANDLE h);
} tor_frees[TOR_KINDS];

void pairs_init(struct world *w);
int pairs_open(struct world *w);
void pairs_step(struct world *w);
void pairs_close(struct world *w);
void pairs_free(struct world *w);

/* ---- commons.c ---- */

int commons_open(void);
void commons_round(struct tor *t);
void commons_close(void);

#endif /* KDTORTURE_H */
