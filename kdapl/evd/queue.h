/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Event Dispatchers: events, completion queues, upcalls.
 */
#ifndef KDAPL_EVD_QUEUE_H
#define KDAPL_EVD_QUEUE_H

/**
 * struct kdapl_event - an event on its way through the EVD's backlog
 * @conn: its connection, for completions and connection events; else NULL
 * @buf: buffer of an SRQ, to be freed when the consumer has the event; or NULL
 * @number: DAT_EVENT_NUMBER
 * @signalled: may start an upcall
 * @immed: a Receive that a Write with immediate data has used: @data holds the immediate data in
 *	place of a key, and the length of the Write
 * @data: the payload
 */
struct kdapl_event {
	struct kdapl_conn *conn;
	struct kdapl_buf *buf;
	u32 number;
	bool signalled;
	bool immed;
	DAT_EVENT_DATA data;
};

/* Most events are completions of DTOs, which are short. */
static inline void kdapl_event_copy(struct kdapl_event *to, const struct kdapl_event *from)
{
	if (unlikely(from->number != DAT_DTO_COMPLETION_EVENT)) {
		*to = *from;
		return;
	}
	to->conn = from->conn;
	to->buf = from->buf;
	to->number = from->number;
	to->signalled = from->signalled;
	to->immed = from->immed;
	to->data.dto_completion_event_data = from->data.dto_completion_event_data;
}

static inline bool kdapl_event_connection(const struct kdapl_event *ev)
{
	return ev->number >= DAT_CONNECTION_EVENT_ESTABLISHED &&
	       ev->number <= DAT_CONNECTION_EVENT_UNREACHABLE;
}

/* The EP an event is about, if it is about one. */
static inline DAT_EP_HANDLE kdapl_event_ep(const struct kdapl_event *ev)
{
	if (likely(ev->number == DAT_DTO_COMPLETION_EVENT))
		return ev->data.dto_completion_event_data.ep_handle;
	if (ev->number == DAT_RMR_BIND_COMPLETION_EVENT)
		return ev->conn->handle;
	if (kdapl_event_connection(ev))
		return ev->data.connect_event_data.ep_handle;
	return DAT_HANDLE_NULL;
}

/**
 * struct kdapl_cq - a completion queue of an EVD
 * @ibcq: NULL once it is destroyed; evd->lock
 * @ref: the EVD and each work queue that completes here
 * @evd: NULL once the EVD is freed; RCU
 * @size: entries
 * @used: entries reserved for work queues; evd->mutex
 * @failed: the device has reported an error of it: attach no other work queue
 * @rcu: posts that look for room may use it for another grace period
 */
struct kdapl_cq {
	struct kdapl_device *dev;
	struct ib_cq *ibcq;
	refcount_t ref;
	struct kdapl_evd __rcu *evd;
	struct list_head evd_node;
	struct kdapl_res res;
	int size;
	int used;
	bool failed;
	struct rcu_head rcu;
};

#define KDAPL_BATCH	16

/**
 * struct kdapl_taken - a completion that was taken for an upcall, an ordinary one
 * @ep: handle of its EP
 * @cookie: the consumer's
 * @wq: its work queue, which cannot go before the upcall has begun
 * @length: bytes
 * @op: DAT_DTOS
 */
struct kdapl_taken {
	DAT_EP_HANDLE ep;
	u64 cookie;
	struct kdapl_wq *wq;
	u32 length;
	u32 op;
};

/* Most that are in hand at a time: the one left from last time, and a whole batch. */
#define KDAPL_TAKE	(KDAPL_BATCH + 1)

/**
 * struct kdapl_runner - a context that makes upcalls of an EVD, and the upcall it makes
 * @node: in evd->runners
 * @task: the task it runs in, while it runs
 * @seq: number of the EVD's upcall it is in, 0 for none
 * @ep: EP of its event
 * @event: the consumer's form of the event
 * @ev: the same before kdapl_event_fill(), on the slow path
 */
struct kdapl_runner {
	struct list_head node;
	struct task_struct *task;
	u64 seq;
	DAT_EP_HANDLE ep;
	DAT_EVENT event;
	struct kdapl_event ev;
};

/**
 * struct kdapl_helper - one of the runners of DAT_UPCALL_MANY
 * @work: runs one turn
 * @evd: its EVD
 * @runner: its state
 */
struct kdapl_helper {
	struct work_struct work;
	struct kdapl_evd *evd;
	struct kdapl_runner runner;
};

/**
 * struct kdapl_evd - an Event Dispatcher
 * @flags: DAT_EVD_FLAGS
 * @softirq: upcalls run in softirq, else in a workqueue
 * @discard: null EVD: completions are taken and dropped
 * @vector: completion vector asked for, KDAT_EVD_VECTOR_ANY for none
 * @mutex: attaching work queues, growing the backlog, changing length and policy; never
 *	held while something waits for an upcall
 *
 * Delivery happens under @lock. An event is taken, in this order, from the backlog, from
 * work queues with something to report, from the rest of the batch, from the CQs.
 * dat_evd_dequeue(), the upcall engine and polling ahead, which only moves completions to the
 * backlog, each take one event at a time, so the order is kept. Of ordinary completions the engine
 * takes several (@taken). Any other context takes the lock by kdapl_evd_lock_irq() or
 * kdapl_evd_lock_irqsave(), which put those whose upcalls have not begun back into the backlog.
 */
struct kdapl_evd {
	struct kdapl_obj obj;
	DAT_EVD_FLAGS flags;
	bool softirq;
	bool discard;
	bool closing;
	int qlen;
	int vector;
	struct mutex mutex;		/* attaching, shares, policy, helpers, qlen */
	struct list_head shares;	/* SRQs whose EPs complete here */

	spinlock_t lock;		/* delivery: all that follows */
	struct kdapl_event *backlog;	/* circular buffer of backlog_size entries */
	u32 backlog_size;
	u32 backlog_head;
	u32 backlog_count;
	u32 backlog_signalled;
	u32 backlog_others;		/* of those, not DTO or RMR: limited by qlen */
	u32 promised;			/* places kept for such events: kdapl_evd_promise() */
	bool overflow;			/* reported, and no event taken since */
	bool async_dead;		/* an asynchronous event was lost: no more of them */
	u32 reserve;			/* entries reserved for attached work queues */
	struct list_head ready;		/* work queues with entries to report */
	struct list_head cqs;
	struct ib_cq *cur;		/* CQ the batch came from */
	int batch_pos;
	int batch_n;
	struct ib_wc batch[KDAPL_BATCH];
	bool drained;			/* the runner knows that the CQs were empty behind it */
	unsigned int ending;		/* connections waiting for their last completion */
	unsigned int watching;		/* connections whose buffers are counted: poll always */
	u32 silent;			/* completions seen that were no events */
	struct kdapl_event scratch;	/* one event on its way */
	bool again;			/* polling stopped early, there may be more */
	bool solicited;			/* arm for solicited completions only */
	unsigned int attached[2];	/* work queues by direction, [1] receives; mutex */

	bool default_policy;		/* one upcall at a time, and no other reason to poll */
	DAT_UPCALL_POLICY policy;	/* sched reads it without the lock */
	DAT_UPCALL_OBJECT upcall;
	bool notified;			/* NOTIFY: the consumer has been called, and dequeues */
	struct list_head runners;	/* @runner, and those of the helpers */
	struct kdapl_runner runner;	/* the runner without helpers */
	struct kdapl_taken taken[KDAPL_TAKE];	/* by @runner, for its next upcalls */
	int ntaken;
	int take;			/* how many to take at a time */
	int take_good;			/* times since some were given back */
	/* of @taken, the last ones, without an upcall yet; @runner lowers it without the lock */
	atomic_t untold;
	unsigned int nrunning;		/* upcalls that run */
	u64 upcall_seq;			/* number of the last one started */
	wait_queue_head_t upcall_over;

	struct irq_poll iop;
	struct work_struct work;
	struct kdapl_helper *helpers;	/* NULL until the policy was MANY; then constant */
	unsigned int nhelpers;
	unsigned long idle;		/* helpers by number; atomic bits, no lock */
	/* of @attached, by direction and completion flags; mutex */
	unsigned int attached_with[2][DAT_COMPLETION_UNSIGNALLED_FLAG + 1];
	struct rcu_work gone_work;	/* handlers of CQs may use it for another grace period */
	struct lock_class_key key;	/* an upcall may free another EVD, but not its own */
};

/* evd.c */
struct kdapl_evd *kdapl_evd_create(struct kdapl_ia *ia, DAT_COUNT qlen, DAT_UPCALL_POLICY policy,
				   const DAT_UPCALL_OBJECT *upcall, DAT_EVD_FLAGS flags,
				   const struct kdat_evd_attr *attr);
void kdapl_evd_destroy(struct kdapl_evd *evd);
struct kdapl_evd *kdapl_evd_null(struct kdapl_ia *ia);

/* attach.c */
struct kdapl_cq *kdapl_evd_attach(struct kdapl_evd *evd, struct kdapl_wq *wq,
				  const struct kdapl_conn *old);
void kdapl_evd_detach(struct kdapl_evd *evd, struct kdapl_wq *wq);

/* cq.c */
void kdapl_cq_put(struct kdapl_cq *cq);
struct kdapl_evd *kdapl_cq_evd_get(struct kdapl_cq *cq);

/* backlog.c */
void kdapl_evd_give_back(struct kdapl_evd *evd);

/*
 * Give back what the runner has taken for upcalls that have not begun. evd->lock held: without it
 * evd->untold only falls, and never to 0, so that an ordinary read will do.
 */
static inline void kdapl_evd_settle(struct kdapl_evd *evd)
{
	if (unlikely(atomic_read(&evd->untold)))
		kdapl_evd_give_back(evd);
}

/* Take evd->lock, with all events whose upcalls have not begun back in the queue. */
static inline void kdapl_evd_lock_irq(struct kdapl_evd *evd) __acquires(&evd->lock)
{
	spin_lock_irq(&evd->lock);
	kdapl_evd_settle(evd);
}

/* The same; returns the flags for spin_unlock_irqrestore(). */
static inline unsigned long kdapl_evd_lock_irqsave(struct kdapl_evd *evd) __acquires(&evd->lock)
{
	unsigned long flags;

	spin_lock_irqsave(&evd->lock, flags);
	kdapl_evd_settle(evd);
	return flags;
}

bool kdapl_evd_full(struct kdapl_evd *evd);
bool kdapl_evd_promise(struct kdapl_evd *evd);
void kdapl_evd_unpromise(struct kdapl_evd *evd);
bool kdapl_evd_queue_promised(struct kdapl_evd *evd, const struct kdapl_event *ev);
bool kdapl_evd_queue(struct kdapl_evd *evd, const struct kdapl_event *ev);
void kdapl_evd_queue_of(struct kdapl_evd *evd, const struct kdapl_event *ev,
			const struct kdapl_obj *ep);
void kdapl_evd_queue_async(struct kdapl_evd *evd, struct kdapl_ia *ia,
			   const struct kdapl_event *ev);

/* wc.c */
void kdapl_wqe_done(struct ib_cq *cq, struct ib_wc *wc);

/* poll_ahead.c */
void kdapl_evd_poll_ahead(struct kdapl_evd *evd, int budget);
void kdapl_evd_poll_waiting(struct kdapl_evd *evd);
void kdapl_wq_poll_cq(struct kdapl_wq *wq);
void kdapl_wq_force_end(struct kdapl_wq *wq, bool flush_unsignaled);
void kdapl_wq_report_rest(struct kdapl_wq *wq);

/* wq_end.c */
bool kdapl_wq_try_end(struct kdapl_wq *wq);
u32 kdapl_wq_bury(struct kdapl_wq *wq);

/* conn_events.c */
void kdapl_wq_ready(struct kdapl_wq *wq);
void kdapl_evd_ending(struct kdapl_evd *evd, int delta);
void kdapl_evd_watch(struct kdapl_conn *conn);
void kdapl_conn_discard(struct kdapl_conn *conn);
void kdapl_evd_drop(struct kdapl_evd *evd, struct kdapl_conn *conn, DAT_EP_HANDLE ep);
void kdapl_evd_forget_pdata(struct kdapl_evd *evd, const struct kdapl_conn *conn);
bool kdapl_evd_owes(struct kdapl_evd *evd, const struct kdapl_conn *conn);

/* sched.c */
void kdapl_evd_sched(struct kdapl_evd *evd);
void kdapl_evd_wake_helper(struct kdapl_evd *evd);
void kdapl_evd_set_default_policy(struct kdapl_evd *evd);

/* evd_upcall.c */
void kdapl_evd_engine_init(struct kdapl_evd *evd);
void kdapl_evd_engine_stop(struct kdapl_evd *evd);
void kdapl_evd_make_helpers(struct kdapl_evd *evd);
void kdapl_evd_wait_upcall(struct kdapl_evd *evd, DAT_EP_HANDLE ep);
void kdapl_evd_wait_all(struct kdapl_evd *evd);
void kdapl_evd_wait_delivered(struct kdapl_evd *evd, struct kdapl_conn *conn);
bool kdapl_evd_other_upcall(const struct kdapl_evd *evd, DAT_EP_HANDLE ep);
bool kdapl_evd_inside_upcall(struct kdapl_evd *evd);

/* Do helpers make the upcalls? */
static inline bool kdapl_evd_many(const struct kdapl_evd *evd)
{
	/* pairs with the release in kdapl_evd_make_helpers() */
	return READ_ONCE(evd->policy) == DAT_UPCALL_MANY && smp_load_acquire(&evd->helpers);
}

/*
 * May an event start an upcall now? Not when upcalls are disabled or the consumer has been
 * notified. evd->lock held.
 */
static inline bool kdapl_evd_calls(const struct kdapl_evd *evd)
{
	return evd->policy != DAT_UPCALL_DISABLE && !evd->notified;
}

/*
 * Must the next upcall wait, since as many run as the policy allows? Upcalls of another policy may
 * still run when the policy has changed. The last of them checks the EVD again when it has
 * returned. evd->lock held.
 */
static inline bool kdapl_evd_held_up(const struct kdapl_evd *evd)
{
	return evd->nrunning >= (kdapl_evd_many(evd) ? evd->nhelpers : 1);
}

/* An upcall has returned: wake those that wait for it. evd->lock held. */
static inline void kdapl_evd_called(struct kdapl_evd *evd, struct kdapl_runner *runner)
{
	evd->nrunning--;
	runner->seq = 0;
	runner->ep = DAT_HANDLE_NULL;
	if (unlikely(waitqueue_active(&evd->upcall_over)))	/* both under the lock */
		wake_up(&evd->upcall_over);
}

#endif /* KDAPL_EVD_QUEUE_H */
