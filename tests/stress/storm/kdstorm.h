/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What the storms share: EVDs that check every event they hand out, while
 * somebody flips their policies, and the threads that feed them.
 *
 * An event belongs to a stream and has a number there. The number goes through
 * the provider in the pointer of a software event or the cookie of a DTO.
 */
#ifndef KDSTORM_H
#define KDSTORM_H

#include <linux/irq_work.h>
#include <linux/kthread.h>
#include <linux/prandom.h>
#include <linux/timer.h>

#define STORM_STREAMS	32	/* of one EVD, at most */
#define STORM_EPOCHS	64	/* upcall objects before an EVD must come to rest once */
#define STORM_CPUS	4	/* so many are used, at most */
#define STORM_THIEVES	2	/* threads that dequeue beside the upcalls */
#define STORM_QLEN	256
#define TEST_LONG	(90 * HZ)	/* without a single event */

/* What is checked. A line of the log for each says how often, and how it went. */
enum storm_check {
	STORM_ONCE,		/* an event comes once, and was posted */
	STORM_WAKE,		/* nothing stays behind without an upcall */
	STORM_ORDER,		/* of a stream */
	STORM_SINGLE,		/* one upcall at a time where that was promised */
	STORM_TEARDOWN,		/* then no upcall until they are enabled again */
	STORM_MORE,		/* more_events is exact */
	STORM_NOTIFY,		/* one notification, then silence until the EVD is found empty */
	STORM_CONTEXT,		/* softirq or process */
	STORM_FULL,		/* DAT_QUEUE_FULL only when it is */
	STORM_REFUSED,		/* no call is refused */
	STORM_DATA,		/* the right message in the right buffer */
	STORM_FREE,		/* no upcall after dat_evd_free() */
	STORM_CHECKS
};

void storm_checked(enum storm_check check, u64 times);
__printf(2, 3) void storm_fault(enum storm_check check, const char *fmt, ...);

#define fail(fmt, ...)	({ storm_fault(STORM_REFUSED, fmt, ##__VA_ARGS__); -EIO; })

#include "../../lib/consumer.h"

struct storm_thread {
	struct task_struct *task;
	struct completion done;
	void (*fn)(struct storm_thread *t);
	void *arg;
	int index;
	struct rnd_state rnd;
};

struct storm_stream {
	u32 max;		/* numbers are below */
	u32 top;		/* the highest that was taken, plus 1 */
	u32 taken;
	unsigned long *seen;
};

struct storm_evd;

/*
 * Each change of policy brings an upcall object of its own, so an upcall knows
 * under which policy it was started, however late it comes.
 */
struct storm_epoch {
	struct storm_evd *evd;
	u32 number;
	DAT_UPCALL_POLICY policy;
};

/* How an EVD is treated. */
struct storm_phase {
	const char *name;
	u32 policies;		/* STORM_P_... it is flipped between */
	bool thieves;		/* others dequeue too */
};

#define STORM_P_SINGLE		BIT(0)
#define STORM_P_MANY		BIT(1)
#define STORM_P_NOTIFY		BIT(2)
#define STORM_P_DISABLE		BIT(3)
#define STORM_P_TEARDOWN	BIT(4)
#define STORM_P_OFF		(STORM_P_DISABLE | STORM_P_TEARDOWN)

enum {
	STORM_STEADY_SINGLE, STORM_STEADY_MANY, STORM_STEADY_NOTIFY,
	STORM_FLIP_SINGLE, STORM_FLIP_ENABLED, STORM_FLIP_ALL,
	STORM_PHASES
};

extern const struct storm_phase storm_phases[STORM_PHASES];

/* A producer of software events: a stream of its own. */
struct storm_source {
	struct storm_evd *evd;
	u32 stream, next;
	bool pending, done;
	struct storm_thread thread;
};

/* Called for each event with DTO or connection data, where it was taken. */
typedef void (*storm_hook)(struct storm_evd *evd, const DAT_EVENT *event);

struct storm_evd {
	char name[48];
	DAT_EVD_HANDLE h;
	struct test_ia *ia;
	const struct storm_phase *phase;
	storm_hook hook;
	bool softirq;		/* where its upcalls must run */
	int qlen;		/* the shortest it has been */
	bool stop;		/* a storm that has gone wrong ends */
	bool freed;		/* or is about to be */
	bool settled;		/* nobody switches upcalls off any more */
	bool kicked;		/* a notification came */
	bool alone;		/* nobody takes events but one upcall at a time */

	/* under lock */
	spinlock_t lock;
	struct storm_stream stream[STORM_STREAMS];
	struct list_head running;	/* upcalls */
	bool quiet;		/* TEARDOWN has returned */
	u32 after[STORM_STREAMS];	/* tops when the last upcall ended */
	u32 after_epoch;
	s64 after_backlog;	/* software events that were queued then, at least */
	u64 taken, soft_taken;
	u64 upcalls, inside, outside, notes, empties, ordered, single;
	struct rnd_state rnd;
	u32 open;		/* dat_evd_dequeue() calls under way */
	u32 max_running;

	/* software events */
	atomic_t left;		/* to be claimed by the sources */
	atomic64_t begun, posted, full;
	u32 n_sources;		/* the last two post from softirq and hardirq */
	struct storm_source source[STORM_CPUS + 2];
	struct timer_list timer;
	struct irq_work irq_work;

	/* the flipper's */
	struct storm_epoch epoch[STORM_EPOCHS];
	u32 epoch_at, epochs;
	bool null_object;	/* the EVD has none to keep */
	u64 flips;
	struct storm_thread flipper, thief[STORM_THIEVES];
};

/* ---- main.c ---- */

extern struct test_ia storm_a, storm_b;
extern int storm_cpus;			/* that are used */
extern u64 storm_total;			/* events taken, of all storms that are over */

bool storm_failed(void);
bool storm_overtime(void);
int storm_cpu(int n);			/* the nth CPU that is online, round and round */

int storm_thread_start(struct storm_thread *t, const char *name, void (*fn)(struct storm_thread *),
		       void *arg, int index, int cpu);
void storm_thread_stop(struct storm_thread *t);
void storm_rnd_init(struct rnd_state *rnd);

static inline u32 storm_rnd(struct rnd_state *rnd, u32 below)
{
	return prandom_u32_state(rnd) % below;
}

/* A number in the log is worth more than the right one of two readings. */
static inline u64 storm_taken(struct storm_evd *evd)
{
	return READ_ONCE(evd->taken);
}

/*
 * Wait a moment for what somebody else does, at most a few ticks: a pace, never a
 * promise that it has been done.
 */
#define storm_pause(condition, ticks)	\
	((void)wait_event_idle_timeout(test_wait, (condition), (ticks)))

/* ---- evd.c ---- */

struct storm_evd *storm_evd_open(struct test_ia *ia, DAT_EVD_FLAGS flags, bool softirq,
				 const struct storm_phase *phase, storm_hook hook,
				 const char *name);
int storm_evd_stream(struct storm_evd *evd, u32 max);
int storm_evd_start(struct storm_evd *evd);
bool storm_wait_moving(struct storm_evd *evd, bool (*passed)(struct storm_evd *evd, u64 n), u64 n);
bool storm_evd_wait(struct storm_evd *evd, u64 taken);
void storm_evd_settle(struct storm_evd *evd, u64 taken);
void storm_evd_close(struct storm_evd *evd);
void storm_evd_free(struct storm_evd *evd);
bool storm_evd_take(struct storm_evd *evd, bool inside);
DAT_RETURN storm_post(struct storm_evd *evd, u32 stream, u32 number);

static inline u32 storm_mark(u32 stream, u32 number)
{
	return stream << 24 | number;
}

/* ---- soft.c ---- */

int storm_sources_open(struct storm_evd *evd, u32 events);
int storm_sources_start(struct storm_evd *evd);
void storm_sources_wait(struct storm_evd *evd);
void storm_sources_stop(struct storm_evd *evd);

int storm_both_start(struct storm_evd *evd[2]);
void storm_both_stop(struct storm_evd *evd[2]);

int storm_soft(u32 events);
int storm_freed(void);

/* ---- dto.c ---- */

int storm_dto(u32 events);

#endif /* KDSTORM_H */
