/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The common ground of the suites on upcalls: upcalls that write down what they
 * were called with and can be held open, and a way to wait until an EVD has
 * nothing left to do.
 */
#ifndef KDAPL_KD_UPCALL_H
#define KDAPL_KD_UPCALL_H

#include "kd_test.h"

#define KD_LONG		(60 * HZ)	/* for what must happen */
#define KD_MOMENT	20		/* ms: for what must not */
#define KD_SEEN		256
#define KD_NO_EVENT	(~0ULL)
#define KD_STREAMS	16

/* What cookies and software events carry: a stream and a number in it. */
#define KD_ID(stream, n)	((u64)(stream) << 32 | (n))
#define KD_STREAM(id)		((unsigned int)((id) >> 32))

/* One upcall. */
struct kd_seen {
	u64 id;				/* KD_NO_EVENT when there was none */
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
 * struct kd_aside - a call that is made by another thread
 * @fn: what it does
 * @arg: with what
 * @call: or the call that frees a handle
 * @handle: this one
 * @ret: what @call returned
 * @task: the thread
 * @done: completed when it has returned
 */
struct kd_aside {
	void (*fn)(void *arg);
	void *arg;
	DAT_RETURN (*call)(DAT_HANDLE handle);
	DAT_HANDLE handle;
	DAT_RETURN ret;
	struct task_struct *task;
	struct completion done;
};

/* Policies that call, and where. */
#define KD_CALLING	3
#define KD_CONTEXTS	2

extern const DAT_UPCALL_POLICY kd_calling[KD_CALLING];
extern const enum kdat_evd_context kd_contexts[KD_CONTEXTS];

struct kd_sink *kd_sink(struct kunit *test);
void kd_sink_init(struct kd_sink *sink);
DAT_UPCALL_OBJECT kd_sink_object(struct kd_sink *sink);
void kd_sink_pass(struct kd_sink *sink, int n);
bool kd_sink_wait(struct kd_sink *sink, int started, int ended);
void kd_sink_expect(struct kunit *test, struct kd_sink *sink, int n);

DAT_EVD_HANDLE kd_evd(struct kd_env *env, DAT_COUNT qlen, DAT_EVD_FLAGS flags);
u64 kd_event_id(const DAT_EVENT *event);
void kd_expect_id(struct kunit *test, DAT_EVD_HANDLE evd, u64 id);
DAT_RETURN kd_post_se(DAT_EVD_HANDLE evd, u64 id);
DAT_RETURN kd_evd_create(struct kd_env *env, DAT_COUNT qlen, DAT_UPCALL_POLICY policy,
			 struct kd_sink *sink, DAT_EVD_FLAGS flags, enum kdat_evd_context context,
			 DAT_EVD_HANDLE *evd);
void kd_evd_replace(struct kd_env *env, DAT_EVD_HANDLE *evd, DAT_COUNT qlen,
		    DAT_UPCALL_POLICY policy, struct kd_sink *sink, DAT_EVD_FLAGS flags,
		    enum kdat_evd_context context);
struct ib_qp *kd_more_ep(struct kd_env *env, DAT_EVD_HANDLE recv, DAT_EVD_HANDLE req,
			 const DAT_EP_ATTR *attr, DAT_EP_HANDLE *ep);
void kd_sent(struct kd_env *env, DAT_EP_HANDLE ep, struct ib_qp *qp, u64 id, int flags);
DAT_RETURN kd_policy(DAT_EVD_HANDLE evd, DAT_UPCALL_POLICY policy, DAT_UPCALL_FLAG flag);
bool kd_policy_becomes(DAT_EVD_HANDLE evd, DAT_UPCALL_POLICY policy);
const char *kd_policy_name(DAT_UPCALL_POLICY policy);
void kd_pin(void);
void kd_settle(DAT_EVD_HANDLE evd);
int kd_drain(DAT_EVD_HANDLE evd);

void kd_aside(struct kunit *test, struct kd_aside *aside, void (*fn)(void *arg), void *arg);
void kd_aside_call(struct kunit *test, struct kd_aside *aside,
		   DAT_RETURN (*call)(DAT_HANDLE handle), DAT_HANDLE handle);
bool kd_aside_returned(struct kd_aside *aside, unsigned int ms);
bool kd_aside_returns(struct kd_aside *aside);
bool kd_aside_wait(struct kd_aside *aside);

#endif /* KDAPL_KD_UPCALL_H */
