/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What the suites of kdtest share: two open interface adapters (a is the active
 * side of connections, b the passive one), EVDs whose upcalls feed a queue a
 * test can wait on, registered buffers, endpoints and connected pairs of them.
 *
 * Everything is owned by the environment and goes away with kdt_env_close():
 * a test that stops in the middle leaks nothing. Functions named kdt_x_open()
 * return errors and serve code without a test too; the others assert.
 */
#ifndef KDTEST_H
#define KDTEST_H

#include <linux/completion.h>
#include <linux/list.h>
#include <linux/socket.h>
#include <linux/spinlock.h>
#include <linux/wait.h>

#include <dat2/kdat_ext.h>

#include "kd_case.h"

#define KDT_WAIT	(120 * HZ)	/* for anything that must happen, slowly */
#define KDT_RING	512		/* events an EVD's queue here holds */
#define KDT_DTOS	64		/* depth of the queues of a default EP */
#define KDT_IOV		4		/* segments of a default EP */
#define KDT_SIZE	(256 * 1024)	/* largest transfer of a default EP */
#define KDT_GUARD	PAGE_SIZE	/* at least so much is watched around a buffer */

#define KDT_RIGHTS	((DAT_MEM_PRIV_FLAGS)DAT_MEM_PRIV_ALL_FLAG)

extern char *kdt_ia_a, *kdt_ia_b, *kdt_gone, *kdt_traits;	/* module parameters */
extern unsigned int kdt_rounds;
extern DAT_COMPLETION_FLAGS kdt_fence;	/* BARRIER_FENCE where all requests can be fenced, else 0 */

/*
 * What a provider does and others of its protocol may not: the module parameter "traits" says
 * which, else it is taken for soft-RoCE or soft-iWARP.
 */
enum kdt_trait {
	KDT_TCP = 1 << 0,		/* connections are sockets */
	KDT_GRANTS = 1 << 1,		/* the peer grants every read depth; Reads are counted */
	KDT_LAX = 1 << 2,		/* Reads of memory that is not open to them are answered */
	KDT_UNSOLICITED = 1 << 3,	/* the solicited bit of a Send is ignored */
	KDT_SRQ_PD = 1 << 4,		/* buffers of an SRQ are checked against the PD of the QP */
	KDT_UNASKED = 1 << 5,		/* who accepts is not told the caller's read depths */
};

struct kdt_ia {
	const char *name;
	DAT_IA_HANDLE h;
	DAT_EVD_HANDLE async;
	DAT_PZ_HANDLE pz;
	DAT_IA_ATTR attr;
	DAT_PROVIDER_ATTR prov;
	struct sockaddr_storage addr;
	bool iwarp;
	u32 traits;
};

#define KDT_MORE_IAS	16
#define KDT_TASKS	8
#define KDT_RAWS	4

struct kdt_raw;
void kdt_raw_close(struct kdt_raw *raw);

struct kdt_env {
	struct kdt_ia a, b;
	DAT_IA_HANDLE more[KDT_MORE_IAS];	/* further instances, see kdt_ia_more() */
	struct task_struct *tasks[KDT_TASKS];	/* see kdt_beside() */
	struct kdt_raw *raws[KDT_RAWS];		/* see kdtest_conn.h */
	u8 syn_retries;				/* as they were, see kdt_patient_tcp() */
	struct list_head evds, bufs;
	char at[64];				/* the row of a table, see kdt_row() */
};

struct kdt_evd;
/* Runs in the upcall; true: the event is consumed and not queued. */
typedef bool (*kdt_hook)(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more);

struct kdt_evd {
	DAT_EVD_HANDLE h;
	struct kdt_ia *ia;
	struct list_head link;
	spinlock_t lock;		/* the queue */
	wait_queue_head_t wait;
	unsigned int head, tail;
	bool lost;			/* more events than the queue holds */
	atomic_t running;		/* upcalls now */
	int max_running;		/* upcalls at a time, ever */
	unsigned int calls;
	unsigned int entered;		/* the same, counted when they begin */
	bool softirq, process;		/* contexts upcalls were seen in */
	bool quiet;			/* no upcalls: kdt_get() and all that use it dequeue */
	bool strange;			/* an event that names another EVD, or no handle yet */
	bool keep;			/* NOTIFY: leave the events where they are */
	kdt_hook hook;
	void *priv;			/* the hook's */
	DAT_EVENT *ring;
};

/* The LMR covers p to p + len; what is around it must never change. */
struct kdt_buf {
	struct list_head link;
	u8 *base;			/* where the front guard starts */
	u8 *p;
	u64 shift;			/* what segments add to p to name it */
	u32 len;
	DAT_PADDR *pages;		/* kdt_mem_new(): where its pages are */
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT lctx;
	DAT_RMR_CONTEXT rctx;
};

struct kdt_ep {
	DAT_EP_HANDLE h;
	struct kdt_ia *ia;
	struct kdt_evd *recv, *req, *conn;
};

struct kdt_pair {
	struct kdt_ep c, s;
	struct kdt_evd *cr;
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL port;
};

int kdt_env_open(struct kdt_env *env);
void kdt_env_close(struct kdt_env *env);
/*
 * TCP tries to connect for two minutes, which is what soft-iWARP waits for, until
 * it shall be as before, at the end of the environment at the latest.
 */
void kdt_patient_tcp(struct kdt_env *env);
void kdt_impatient_tcp(struct kdt_env *env);

DAT_RETURN kdt_evd_open(struct kdt_env *env, struct kdt_ia *ia, DAT_EVD_FLAGS flags,
			DAT_COUNT qlen, DAT_UPCALL_POLICY policy, struct kdt_evd **evd);
/* The same with a context or a completion vector of one's own. */
DAT_RETURN kdt_evd_open_attr(struct kdt_env *env, struct kdt_ia *ia, DAT_EVD_FLAGS flags,
			     DAT_COUNT qlen, DAT_UPCALL_POLICY policy,
			     const struct kdat_evd_attr *attr, struct kdt_evd **evd);
/* A software event with a number; kdt_soft_number() reads it. */
DAT_RETURN kdt_soft(struct kdt_evd *evd, unsigned long number);
unsigned long kdt_soft_number(const DAT_EVENT *event);
/* No upcall of this EVD is running; waits until it is so. */
bool kdt_idle(struct kdt_evd *evd);
DAT_RETURN kdt_buf_open(struct kdt_env *env, struct kdt_ia *ia, DAT_PZ_HANDLE pz, u32 len,
			DAT_MEM_PRIV_FLAGS rights, struct kdt_buf **buf);
/* EVDs for an endpoint that comes from elsewhere. */
DAT_RETURN kdt_ep_evds(struct kdt_env *env, struct kdt_ep *ep, struct kdt_ia *ia);
DAT_RETURN kdt_ep_open(struct kdt_env *env, struct kdt_ep *ep, struct kdt_ia *ia,
		       const DAT_EP_ATTR *attr);
DAT_RETURN kdt_pair_open(struct kdt_env *env, struct kdt_pair *pair, const DAT_EP_ATTR *attr);
int kdt_pair_link(struct kdt_pair *pair);
DAT_RETURN kdt_connect(struct kdt_ep *ep, struct kdt_ia *to, DAT_CONN_QUAL port);
DAT_CONN_QUAL kdt_new_port(void);
void kdt_attr(const struct kdt_env *env, DAT_EP_ATTR *attr);
/* Family and address; ports are told separately. */
bool kdt_same_address(const struct sockaddr *sa, const struct kdt_ia *ia);

bool kdt_get(struct kdt_evd *evd, DAT_EVENT *event);
bool kdt_get_timeout(struct kdt_evd *evd, DAT_EVENT *event, long timeout);
unsigned int kdt_queued(struct kdt_evd *evd);
bool kdt_dequeue(DAT_EVD_HANDLE evd, DAT_EVENT *event);
DAT_EP_STATE kdt_state(DAT_EP_HANDLE ep);

/* A pattern by position and seed; kdt_same() says whether it is there. */
void kdt_fill(u8 *p, u32 len, u32 seed);
bool kdt_same(const u8 *p, u32 len, u32 seed);
bool kdt_all(const u8 *p, u32 len, u8 value);
/* Nothing was written around this buffer; kdt_exit() asks it of all of them. */
bool kdt_guarded(const struct kdt_buf *buf);

DAT_LMR_TRIPLET kdt_seg(const struct kdt_buf *buf, u32 offset, u32 len);
DAT_RMR_TRIPLET kdt_rseg(const struct kdt_buf *buf, u32 offset, u32 len);
DAT_DTO_COOKIE kdt_cookie(u64 value);
DAT_RETURN kdt_send(struct kdt_ep *ep, struct kdt_buf *buf, u32 offset, u32 len, u64 cookie,
		    int flags);
DAT_RETURN kdt_recv(struct kdt_ep *ep, struct kdt_buf *buf, u32 offset, u32 len, u64 cookie);
DAT_RETURN kdt_write(struct kdt_ep *ep, struct kdt_buf *buf, u32 offset, u32 len,
		     struct kdt_buf *to, u32 to_offset, u64 cookie, int flags);
DAT_RETURN kdt_read(struct kdt_ep *ep, struct kdt_buf *buf, u32 offset, u32 len,
		    struct kdt_buf *from, u32 from_offset, u64 cookie, int flags);

const char *kdt_major(DAT_RETURN ret);
const char *kdt_minor(DAT_RETURN ret);

/* What no event announces: looked at again at each tick, with a limit. */
#define kdt_until(condition)								\
({											\
	unsigned long kdt_end_ = jiffies + KDT_WAIT;					\
	bool kdt_met;									\
											\
	while (!(kdt_met = (condition)) && time_before(jiffies, kdt_end_))		\
		schedule_timeout_uninterruptible(1);					\
	kdt_met;									\
})

/* ---- with a test ---- */

static inline struct kdt_env *kdt_env(struct kunit *test)
{
	return test->priv;
}

int kdt_init(struct kunit *test);
void kdt_exit(struct kunit *test);
/* Messages say from now on that it was here: a row of a table, a step of a list. */
__printf(2, 3) void kdt_row(struct kunit *test, const char *fmt, ...);
static inline const char *kdt_at(struct kunit *test)
{
	return kdt_env(test)->at;
}

/* Zeroed, and there until the end of the case. */
void *kdt_zalloc(struct kunit *test, size_t size);

/* What all suites have: the cases of the file. */
#define KDT_CASES	.init = kdt_init, .exit = kdt_exit, .test_cases = cases

/* Goes on only after DAT_SUCCESS. */
#define KDT_OK(test, call)								\
do {											\
	struct kunit *kdt_t = (test);							\
	DAT_RETURN kdt_r = (call);							\
											\
	KUNIT_ASSERT_TRUE_MSG(kdt_t, kdt_r == DAT_SUCCESS, "%s: %s %s (0x%08x) %s", #call, \
			      kdt_major(kdt_r), kdt_minor(kdt_r), kdt_r, kdt_at(kdt_t)); \
} while (0)

#define KDT_FAILS(test, condition, want, call)						\
do {											\
	struct kunit *kdt_t = (test);							\
	DAT_RETURN kdt_r = (call);							\
											\
	KUNIT_EXPECT_TRUE_MSG(kdt_t, condition, "%s: %s %s (0x%08x), not " want " %s", #call, \
			      kdt_major(kdt_r), kdt_minor(kdt_r), kdt_r, kdt_at(kdt_t)); \
} while (0)

/* Refused with exactly this type and subtype. */
#define KDT_REFUSED(test, type, subtype, call)						\
	KDT_FAILS(test, kdt_r == DAT_ERROR(type, (subtype)), #type " " #subtype, call)

/* Refused with this type, whatever the subtype. */
#define KDT_TYPE(test, type, call)							\
	KDT_FAILS(test, kdt_r != DAT_SUCCESS && DAT_GET_TYPE(kdt_r) == (type), #type, call)

struct kdt_evd *kdt_evd_new(struct kunit *test, struct kdt_ia *ia, int flags);
struct kdt_evd *kdt_evd_policy(struct kunit *test, struct kdt_ia *ia, int flags, DAT_COUNT qlen,
			       DAT_UPCALL_POLICY policy);
struct kdt_evd *kdt_evd_context(struct kunit *test, struct kdt_ia *ia, int flags, DAT_COUNT qlen,
				DAT_UPCALL_POLICY policy, enum kdat_evd_context context);
/* Another instance of an adapter, closed with the others. */
DAT_IA_HANDLE kdt_ia_more(struct kunit *test, struct kdt_ia *ia, DAT_COUNT qlen,
			  DAT_EVD_HANDLE *async);
void kdt_ia_less(struct kunit *test, DAT_IA_HANDLE ia);
/*
 * A task beside the test; the function ends with kdt_until_stopped(). Stopped at
 * the end of the case in any event.
 */
struct task_struct *kdt_beside(struct kunit *test, int (*fn)(void *), void *data);
void kdt_stop(struct kunit *test, struct task_struct *task);
int kdt_until_stopped(void);
struct kdt_buf *kdt_buf_new(struct kunit *test, struct kdt_ia *ia, u32 len);
void kdt_ep_new(struct kunit *test, struct kdt_ep *ep, struct kdt_ia *ia, const DAT_EP_ATTR *attr);
/* Endpoints and a listener, nothing connected. */
struct kdt_pair *kdt_pair_new(struct kunit *test, const DAT_EP_ATTR *attr);
/* Before it is connected: the server gets another EP, with an SRQ. */
DAT_SRQ_HANDLE kdt_pair_srq(struct kunit *test, struct kdt_pair *pair);
/* The same with these EVDs; NULL stands for one of its own. */
struct kdt_pair *kdt_pair_with(struct kunit *test, const struct kdt_pair *evds,
			       const DAT_EP_ATTR *attr_c, const DAT_EP_ATTR *attr_s);
void kdt_pair_connect(struct kunit *test, struct kdt_pair *pair);
/* Both at once. */
struct kdt_pair *kdt_pair_up(struct kunit *test);
/* The same, and nobody looks at the client's requests unless the test does. */
struct kdt_pair *kdt_pair_quiet(struct kunit *test, const DAT_EP_ATTR *attr);
/* Ends a connection that is up and checks that each side hears of it once. */
void kdt_pair_down(struct kunit *test, struct kdt_pair *pair);
void kdt_down(struct kunit *test, struct kdt_ep *c, struct kdt_ep *s);
/* The next event of this EVD is a request; its data. */
DAT_CR_ARRIVAL_EVENT_DATA kdt_arrival(struct kunit *test, struct kdt_evd *cr);
/* Connect and leave the request unanswered: a is in ACTIVE_CONNECTION_PENDING. */
DAT_CR_HANDLE kdt_pair_request(struct kunit *test, struct kdt_pair *pair);

/* The next event of this EVD is this connection event of this endpoint. */
void kdt_conn(struct kunit *test, struct kdt_ep *ep, DAT_EVENT_NUMBER number);
/* The next event is the end of the connection: DISCONNECTED or BROKEN. */
DAT_EVENT_NUMBER kdt_end(struct kunit *test, struct kdt_ep *ep);
/* The next event is this completion. */
void kdt_dto(struct kunit *test, struct kdt_evd *evd, struct kdt_ep *ep, u64 cookie, DAT_DTOS op,
	     DAT_DTO_COMPLETION_STATUS status, u32 len);
/* The next request has succeeded, the next Receive; the next of either was flushed. */
void kdt_sent(struct kunit *test, struct kdt_ep *ep, u64 cookie, DAT_DTOS op, u32 len);
void kdt_came(struct kunit *test, struct kdt_ep *ep, u64 cookie, u32 len);
void kdt_flushed(struct kunit *test, struct kdt_ep *ep, u64 cookie, DAT_DTOS op);
/* A message, a Write, a Read: posted, and all of it has succeeded. */
void kdt_message(struct kunit *test, struct kdt_ep *from, struct kdt_buf *out, struct kdt_ep *to,
		 struct kdt_buf *in, u32 len);
void kdt_put(struct kunit *test, struct kdt_ep *ep, struct kdt_buf *buf, u32 offset, u32 len,
	     struct kdt_buf *to, u32 to_offset);
void kdt_fetch(struct kunit *test, struct kdt_ep *ep, struct kdt_buf *buf, u32 offset, u32 len,
	       struct kdt_buf *from, u32 from_offset);
/* The next event is a completion; status and cookie are returned. */
DAT_DTO_COMPLETION_STATUS kdt_any_dto(struct kunit *test, struct kdt_evd *evd, u64 *cookie);
/* An empty Send, behind which all earlier Writes of the client are in the server's memory. */
void kdt_settle(struct kunit *test, struct kdt_pair *pair);
/* Frees the endpoint and its EVDs, and nothing was left in them. */
void kdt_ep_done(struct kunit *test, struct kdt_ep *ep);
void kdt_pair_done(struct kunit *test, struct kdt_pair *pair);
/* Both, which are in DISCONNECTED. */
void kdt_reset(struct kunit *test, struct kdt_ep *c, struct kdt_ep *s);

extern struct kunit_suite kdt_attr_suite, kdt_close_suite, kdt_conn_suite, kdt_cr_suite;
extern struct kunit_suite kdt_csp_suite, kdt_data_suite, kdt_error_suite, kdt_evd_suite;
extern struct kunit_suite kdt_fmr_suite, kdt_list_suite, kdt_mem_suite, kdt_open_suite;
extern struct kunit_suite kdt_outcome_suite, kdt_pdata_suite, kdt_rsp_suite, kdt_sinv_suite;
extern struct kunit_suite kdt_srq_suite, kdt_state_suite, kdt_xfer_suite, kdt_immed_suite;

/* ---- hold.c ---- */

int kdt_hold_start(void);
void kdt_hold_stop(void);

/* ---- states.c ---- */

int kdt_states_start(void);
void kdt_states_stop(void);

#endif /* KDTEST_H */
