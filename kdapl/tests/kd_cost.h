/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * What a call costs: calls of the device, allocations, sleeps. The call is made
 * with interrupts off and watched by the kernel's own trace points, so an
 * allocation or a switch to another task is seen on every kernel; those with
 * DEBUG_ATOMIC_SLEEP complain of mere readiness to sleep.
 */
#ifndef KDAPL_KD_COST_H
#define KDAPL_KD_COST_H

#include "kd_upcall.h"

/**
 * struct kd_cost - of one call
 * @irq: interrupts were so before
 * @verbs: verbs that can fail, all together
 * @send: of these, posts to a send queue
 * @recv: posts to a receive queue
 * @srq: posts to an SRQ
 * @polls: CQs polled or armed
 * @wrs: work requests the device got
 * @allocs: allocations
 * @sleeps: sleeps
 */
struct kd_cost {
	unsigned long irq;
	unsigned int verbs;
	unsigned int send;
	unsigned int recv;
	unsigned int srq;
	unsigned int polls;
	unsigned int wrs;
	unsigned int allocs;
	unsigned int sleeps;
};

int kd_cost_init(struct kunit *test);
void kd_cost_exit(struct kunit *test);
bool kd_cost_watch(bool on, unsigned int *allocs, unsigned int *sleeps);
DAT_RETURN kd_cost_enter(struct kd_env *env, struct kd_cost *cost);
DAT_RETURN kd_cost_leave(DAT_RETURN ret);

/* What the call returns; it neither allocates nor sleeps. */
#define KD_COST(env, cost, call)	kd_cost_leave(kd_cost_enter(env, cost) ?: (call))

#endif /* KDAPL_KD_COST_H */
