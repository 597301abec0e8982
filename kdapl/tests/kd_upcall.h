/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The common ground of the suites on upcalls: upcalls that write down what they
 * were called with and can be held open, a model that says which upcalls are
 * right, and a way to wait until an EVD has nothing left to do.
 */
#ifndef KDAPL_KD_UPCALL_H
#define KDAPL_KD_UPCALL_H

#include "kd_test.h"

#define KD_LONG		(60 * HZ)	/* for what must happen */
#define KD_MOMENT	20		/* ms: for what must not */
#define KD_SEEN		256
#define KD_QUEUED	1024
#define KD_NO_EVENT	(~0ULL)
#define KD_STREAMS	16

/* What cookies and software events carry: a stream and a number in it. */
#define KD_ID(stream, n)	((u64)(stream) << 32 | (n))
#define KD_STREAM(id)		((unsigned int)((id) >> 32))

/**
 * struct kd_seen - one upcall
 * @id: of its event, KD_NO_EVENT when there was none
 * @more: as told
 * @softirq: it came in softirq
 */
struct kd_seen {
	u64 id;
	bool more;
	bool softirq;
};

/**
 * struct kd_sink - instance data of the upcalls of an EVD
 * @lock: everything below
 * @wait: woken by each start and each end
 * @started: upcalls that have begun
 * @noted: of those, the ones @inside has seen
 * @ended: of those, the ones that are about to return
 * @most: how many there were at a time
 * @pass: upcalls from this number on are held open; only where they may sleep
 * @evd: whose upcalls these are
 * @foreign: events that named another EVD
 * @changed: events that changed while their upcall ran
 * @inside: called in each upcall, or NULL
 * @arg: for @inside
 * @seen: the first upcalls
 */
struct kd_sink {
	spinlock_t lock;		/* everything below */
	wait_queue_head_t wait;
	int started;
	int noted;
	int ended;
	int most;
	int pass;
	DAT_EVD_HANDLE evd;
	int foreign;
	int changed;
	void (*inside)(struct kd_sink *sink, const DAT_EVENT *event, bool more);
	void *arg;
	struct kd_seen seen[KD_SEEN];
};

/**
 * struct kd_model - which upcalls are right
 * @lock: everything below
 * @fifo: all events come through one CQ: they come out as they went in; without
 *	it only the order of each stream is known
 * @loose: upcalls start at the same time, so who is seen first is open
 * @policy: in force
 * @reported: NOTIFY: the consumer knows
 * @due: events at the head of the queue that upcalls are to be started for
 * @n: events queued
 * @newest: ordinal of the event that arrived last
 * @upcalls: upcalls seen
 * @wrong: the first thing that was wrong, or NULL
 * @wrong_id: the event it happened to
 * @q: queued events in order of arrival
 *
 * Knows nothing of stores, CQs and engines: events arrive, policies change, and
 * from that follows what is to come.
 */
struct kd_model {
	spinlock_t lock;		/* everything below */
	bool fifo;
	bool loose;
	DAT_UPCALL_POLICY policy;
	bool reported;
	int due;
	int n;
	u64 newest;
	int upcalls;
	const char *wrong;
	u64 wrong_id;
	struct {
		u64 id;
		u64 ordinal;
	} q[KD_QUEUED];
};

/**
 * struct kd_aside - a call that is made by another thread
 * @fn: what it does
 * @arg: with what
 * @task: the thread
 * @done: completed when @fn has returned
 */
struct kd_aside {
	void (*fn)(void *arg);
	void *arg;
	struct task_struct *task;
	struct completion done;
};

struct kd_sink *kd_sink(struct kunit *test);
void kd_sink_init(struct kd_sink *sink);
DAT_UPCALL_OBJECT kd_sink_object(struct kd_sink *sink);
void kd_sink_pass(struct kd_sink *sink, int n);
bool kd_sink_wait(struct kd_sink *sink, int started, int ended);
void kd_sink_expect(struct kunit *test, struct kd_sink *sink, int n);

u64 kd_event_id(const DAT_EVENT *event);
DAT_RETURN kd_post_se(DAT_EVD_HANDLE evd, u64 id);
DAT_RETURN kd_evd_create(struct kd_env *env, DAT_COUNT qlen, DAT_UPCALL_POLICY policy,
			 struct kd_sink *sink, DAT_EVD_FLAGS flags, enum kdat_evd_context context,
			 DAT_EVD_HANDLE *evd);
DAT_RETURN kd_policy(DAT_EVD_HANDLE evd, DAT_UPCALL_POLICY policy, DAT_UPCALL_FLAG flag);
const char *kd_policy_name(DAT_UPCALL_POLICY policy);
void kd_pin(void);
void kd_settle(DAT_EVD_HANDLE evd);
int kd_drain(DAT_EVD_HANDLE evd);

void kd_model_init(struct kd_model *model, bool fifo);
void kd_model_policy(struct kd_model *model, DAT_UPCALL_POLICY policy, DAT_UPCALL_FLAG flag);
void kd_model_arrive(struct kd_model *model, u64 id, bool signalled);
void kd_model_unarrive(struct kd_model *model);
void kd_model_upcall(struct kd_model *model, const DAT_EVENT *event, bool more);
void kd_model_dequeued(struct kd_model *model, DAT_RETURN ret, const DAT_EVENT *event);
void kd_model_settled(struct kd_model *model);
void kd_model_sink(struct kd_sink *sink, const DAT_EVENT *event, bool more);

void kd_aside(struct kunit *test, struct kd_aside *aside, void (*fn)(void *arg), void *arg);
bool kd_aside_returned(struct kd_aside *aside, unsigned int ms);
bool kd_aside_wait(struct kd_aside *aside);

#endif /* KDAPL_KD_UPCALL_H */
