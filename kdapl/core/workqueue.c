// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The module's workqueues. Storage consumers run under writeback, so each has a rescuer.
 *
 * Upcalls run at normal priority. High-priority workers would keep kthreadd off a busy CPU, which
 * delays new workers. Linux 6.1 then leaves all waiting items to the one rescuer, which runs
 * upcalls that sleep one after the other (D-32).
 */
#include "core.h"

struct workqueue_struct *kdapl_event_wq;
struct workqueue_struct *kdapl_upcall_wq;
struct workqueue_struct *kdapl_many_wq;
struct workqueue_struct *kdapl_reap_wq;
struct workqueue_struct *kdapl_connect_wq;
struct workqueue_struct *kdapl_misc_wq;

static const struct {
	struct workqueue_struct **wq;
	const char *name;
	unsigned int flags;
	int max_active;
} workqueues[] = {
	/* work on one may wait for work on later ones only */
	{ &kdapl_event_wq, "kdapl_event", WQ_PERCPU, WQ_MAX_ACTIVE },
	/* each sleeping upcall takes one of the places */
	{ &kdapl_upcall_wq, "kdapl_upcall", WQ_PERCPU, WQ_MAX_ACTIVE },
	{ &kdapl_many_wq, "kdapl_many", WQ_UNBOUND, WQ_MAX_ACTIVE },
	{ &kdapl_reap_wq, "kdapl_reap", WQ_UNBOUND, WQ_MAX_ACTIVE },
	/* an attempt may last minutes on soft-iWARP */
	{ &kdapl_connect_wq, "kdapl_conn", WQ_UNBOUND, WQ_MAX_ACTIVE },
	/* ends may wait for handlers of the connection manager */
	{ &kdapl_misc_wq, "kdapl", WQ_HIGHPRI | WQ_PERCPU, WQ_MAX_ACTIVE },
};

static void workqueue_stop(unsigned int i)
{
	struct workqueue_struct *wq = *workqueues[i].wq;

	if (!wq)
		return;
	if (workqueues[i].wq == &kdapl_reap_wq) {
		/* twice: RCU callbacks queue work for the reaper, which leaves memory to RCU */
		rcu_barrier();
		flush_workqueue(wq);
		rcu_barrier();
	}
	destroy_workqueue(wq);
	*workqueues[i].wq = NULL;
}

/**
 * kdapl_workqueues_start - create all workqueues
 *
 * Return: 0 or -ENOMEM.
 */
int kdapl_workqueues_start(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(workqueues); i++) {
		*workqueues[i].wq = alloc_workqueue("%s", WQ_MEM_RECLAIM | workqueues[i].flags,
						    workqueues[i].max_active,
						    workqueues[i].name);
		if (!*workqueues[i].wq) {
			kdapl_workqueues_stop();
			return -ENOMEM;
		}
	}
	return 0;
}

/**
 * kdapl_workqueues_stop - wait for all work and for its RCU callbacks, destroy the workqueues
 */
void kdapl_workqueues_stop(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(workqueues); i++)
		workqueue_stop(i);
	rcu_barrier();	/* callbacks that run functions of the module */
}
