/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Copyright (c) 2026 The kDAPL for Linux authors */
/* kdperf: one job, done with verbs alone (raw*.c) and with kDAPL (dapl*.c). */
#ifndef KDPERF_H
#define KDPERF_H

#include <linux/atomic.h>
#include <linux/cache.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/socket.h>
#include <linux/spinlock.h>
#include <linux/timex.h>
#include <linux/types.h>
#include <linux/wait.h>

struct net;

#define LONG		(60 * HZ)	/* time limit for anything that must happen */
#define MAX_SEGS	32
#define MAX_POSTERS	16
#define MAX_BLOCKS	101
#define MAX_EPS	16384
#define MAX_IAS	1024

enum { MODE_POST, MODE_PINGPONG, MODE_STREAM, MODE_REFUSE, MODE_CONNS };
enum { OP_SEND, OP_WRITE, OP_READ, OP_SRQ };
enum { CTX_SOFTIRQ, CTX_WORK, CTX_POLL };
enum { BAD_GARBAGE, BAD_NULL, BAD_STALE, BAD_TYPE, BAD_LKEY, BAD_RANGE, BAD_NOTHING };
enum { UNIT_NS, UNIT_CYCLES, UNIT_INSN };

/* The parameters of a run, see main.c. */
struct run {
	u32 mode, op, ctx, bad, unit;
	u32 size;		/* bytes per operation */
	u32 segs;		/* segments per operation */
	u32 lmrs, random;	/* registrations to take segments from; in random order? */
	u32 eps;		/* per poster, used in turn */
	u32 batch;		/* operations between two readings of the clock */
	u32 depth;		/* of each queue, in operations */
	u32 signal;		/* every signal-th operation has a completion */
	u32 posters, shared;	/* number of posting CPUs; on the same EP? */
	u32 serial;		/* use kdat_ep_serialise_posts() */
	u32 bare;		/* register no memory that only we use */
	u32 churn;		/* another CPU registers memory and frees it meanwhile */
	u32 irqs;		/* interrupts are on while operations are timed */
	u32 evd;		/* events of each EVD; 0: as many as its EPs may have */
	u32 ias;		/* open IAs, of which one is used */
	u32 window;		/* MODE_CONNS: connections under way at a time */
	u32 blocks, groups;	/* blocks with kDAPL; batches in each */
	u32 bound;		/* noise limit: the verbs' difference from themselves, per cent */
};

/* Position in the EPs and keys of a poster. */
struct turn {
	u32 n;			/* operations so far */
	u32 ep, round, key;
};

/*
 * One end of a poster's EPs, 0 or 1. Only its completion handler writes the first cache
 * line, and calls of the handler are serialised.
 */
struct side {
	u64 sum ____cacheline_aligned;	/* of the numbers of completed operations */
	u32 got;
	u32 index;
	struct lane *lane;
	u32 want ____cacheline_aligned;	/* completions to wait for */
	struct turn turn;
	u32 recvs;			/* posted */
};

/* A poster: a CPU, EPs, and a CQ or EVD for each of their ends. */
struct lane {
	struct side side[2];
	u32 n;
	int err;
	u32 gates;
	spinlock_t lock;		/* stream: protects the next member */
	u32 started;
	u64 start;			/* pingpong: start time of the round trip */
	const struct way *way;		/* of the current block */
	u32 b, block;			/* index of the way, and number of its block */
	struct completion *done;
};

struct segment {
	u32 offset, length;
};

/* A way to do the job. Each function handles a batch, so that its call cost does not count. */
struct way {
	const char *name;
	/* post @n operations at end @side of the EPs; bottom halves are off */
	int (*post)(struct lane *lane, u32 side, u32 n);
	int (*recv)(struct lane *lane, u32 side, u32 n);	/* NULL: no completions either */
	/* CTX_POLL: handle all available completions and return their number */
	int (*poll)(struct lane *lane, u32 side);
	int (*churn)(void);	/* make an LMR or MR, and free it */
};

extern struct run run;
extern char *perf_ia;		/* name of the IA */
extern struct lane *lanes;
extern struct segment perf_seg[MAX_SEGS];
extern void *perf_mem[2];	/* memory of requests; memory of Receives and for the peer */
extern wait_queue_head_t perf_wait;

#define fail(fmt, ...)	({ pr_err("FAIL " fmt "\n", ##__VA_ARGS__); -EIO; })

/* Something went wrong: log the first few faults and make all waiters give up. */
#define fault(fmt, ...)							\
({									\
	if (perf_fault() <= 20)						\
		fail(fmt, ##__VA_ARGS__);				\
	-EIO;								\
})

#define await(condition)						\
	(wait_event_timeout(perf_wait, (condition) || perf_faults(), LONG) && !perf_faults())

int perf_fault(void);		/* counts a fault and returns the number of faults */
int perf_faults(void);
void perf_next(struct side *side, bool recv);
int perf_wait_done(struct lane *lane, u32 from, u32 to, u64 *spent);
void perf_shuffle(u32 *keys);

static inline size_t perf_bytes(void)
{
	return PAGE_ALIGN(max(run.size, 1U));
}

/* Does each operation need a Receive? */
static inline bool perf_recvs(void)
{
	return run.op == OP_SEND || run.op == OP_SRQ;
}

/* The number of posters with their own EPs. */
static inline u32 perf_owners(void)
{
	return run.shared ? 1 : run.posters;
}

/* The number of requests in one queue. */
static inline u32 perf_requests(void)
{
	return run.depth * (run.shared ? run.posters : 1);
}

/* Does the next operation of this end have a completion? */
static inline bool turn_signaled(const struct turn *turn)
{
	return turn->round == run.signal - 1;
}

static inline void turn_next(struct turn *turn)
{
	turn->n++;
	if (++turn->ep == run.eps) {
		turn->ep = 0;
		if (++turn->round == run.signal)
			turn->round = 0;
	}
}

static inline u32 turn_key(struct turn *turn, const u32 *keys)
{
	u32 key = keys[turn->key];

	if (++turn->key == run.lmrs)
		turn->key = 0;
	return key;
}

/* Operation @n of this end, or operation @n received there, is done. */
static inline void perf_done(struct side *side, u32 n, bool recv)
{
	side->sum += n;
	WRITE_ONCE(side->got, side->got + 1);
	if (unlikely(run.mode != MODE_POST))
		perf_next(side, recv);
	if (side->got == READ_ONCE(side->want))
		wake_up(&perf_wait);
}

/* User Mode Linux has no get_cycles(), but the instruction works there. */
static inline u64 perf_cycles(void)
{
#ifdef CONFIG_X86_64
	u32 low, high;

	/* earlier instructions have finished, later ones have not started */
	asm volatile("lfence; rdtsc; lfence" : "=a" (low), "=d" (high) : : "memory");
	return (u64)high << 32 | low;
#else
	return get_cycles() ?: ktime_get_ns();
#endif
}

/* A way to make and to end many connections. Each function returns when all is done. */
struct conns_way {
	int (*open)(const struct sockaddr_storage *addr, u16 port);	/* what they share */
	int (*create)(void);		/* all EPs, without connections */
	int (*free)(void);
	int (*connect)(void);		/* all connections, with new EPs */
	int (*disconnect)(void);	/* all of them, and free the EPs */
	int (*close)(void);		/* also after an error */
};

extern const struct conns_way raw_conns, dapl_conns;

/* conns.c */
int conns_measure(const struct sockaddr_storage *addr, u16 port);

/* raw.c */
struct ib_cq;
struct ib_wc;
struct ib_device;

struct raw_req;
struct raw_req *raw_make_reqs(u32 n, void (*done)(struct ib_cq *cq, struct ib_wc *wc));
u32 raw_sq_entries(struct ib_device *dev, u32 port);
extern const struct way raw_way;
int raw_open(const struct sockaddr_storage *addr, u16 port);
void raw_close(void);

/* dapl.c */
struct limits {
	struct sockaddr_storage addr;	/* of the IA */
	u32 segs;			/* of an operation of this kind */
};

extern const struct way dapl_way, accept_way, refuse_way;
int dapl_check(const char *what, u32 ret);	/* logs a DAT_RETURN that is an error */
int dapl_open_ia(const char *name, struct limits *limits);
int dapl_open(u16 port, const struct sockaddr_storage *addr);
int dapl_close(void);

/* stats.c */
enum metric {
	M_POST, M_RECV, M_DONE, M_DONE2,
	M_CREATE = 0, M_FREE, M_CONNECT, M_END, M_MEMORY,	/* MODE_CONNS */
	METRICS
};

int stats_open(u32 per_block);
void stats_close(void);
/* Record sample @i of a block: @ticks for @ops operations. */
void stats_add(int side, enum metric m, u32 block, u32 i, u64 ticks, u32 ops);
void stats_clock(bool start);
u64 perf_loop(void);
void stats_tell(u32 number, const char *ia, const struct way *const *ways);

/* The two files with results. */
struct text {
	char *buf;
	u32 len;
};

extern struct text perf_result, perf_json;
#define TEXT_SIZE	(256 * 1024)
__printf(2, 3) void say(struct text *text, const char *fmt, ...);
void params_print(struct text *text, bool json);

#endif /* KDPERF_H */
