// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Module init and exit.
 */
#include <linux/module.h>

#include "kdapl.h"

struct workqueue_struct *kdapl_event_wq;
struct workqueue_struct *kdapl_upcall_wq;
struct workqueue_struct *kdapl_many_wq;
struct workqueue_struct *kdapl_reap_wq;
struct workqueue_struct *kdapl_conn_wq;
struct workqueue_struct *kdapl_wq;

struct ib_client kdapl_client = {
	.name = "kdapl",
	.add = kdapl_device_add,
	.remove = kdapl_device_remove,
	.rename = kdapl_device_rename,
};

/**
 * kdapl_start - bring up what is global
 *
 * Return: 0 or an errno.
 */
int kdapl_start(void)
{
	int ret = -ENOMEM;

	/* storage consumers run under writeback, hence the rescuers */
	kdapl_wq = alloc_workqueue("kdapl", WQ_MEM_RECLAIM | WQ_HIGHPRI | WQ_PERCPU, 0);
	if (!kdapl_wq)
		return ret;
	/* an attempt, and a half that waits for one, may last minutes on soft-iWARP */
	kdapl_conn_wq = alloc_workqueue("kdapl_conn", WQ_MEM_RECLAIM | WQ_UNBOUND, WQ_MAX_ACTIVE);
	if (!kdapl_conn_wq)
		goto err_wq;
	kdapl_reap_wq = alloc_workqueue("kdapl_reap", WQ_MEM_RECLAIM | WQ_UNBOUND, WQ_MAX_ACTIVE);
	if (!kdapl_reap_wq)
		goto err_conn;
	/* each upcall that sleeps takes one of the places, whoever's it is */
	kdapl_upcall_wq = alloc_workqueue("kdapl_upcall",
					  WQ_MEM_RECLAIM | WQ_HIGHPRI | WQ_PERCPU, WQ_MAX_ACTIVE);
	if (!kdapl_upcall_wq)
		goto err_reap;
	/* kdat_ep_drain() sleeps there for those above: not in their places */
	kdapl_event_wq = alloc_workqueue("kdapl_event",
					 WQ_MEM_RECLAIM | WQ_HIGHPRI | WQ_PERCPU, WQ_MAX_ACTIVE);
	if (!kdapl_event_wq)
		goto err_upcall;
	kdapl_many_wq = alloc_workqueue("kdapl_many",
					WQ_MEM_RECLAIM | WQ_HIGHPRI | WQ_UNBOUND, WQ_MAX_ACTIVE);
	if (!kdapl_many_wq)
		goto err_event;
	kdapl_debugfs_init();
	ret = ib_register_client(&kdapl_client);
	if (ret)
		goto err_debugfs;
	return 0;

err_debugfs:
	kdapl_debugfs_exit();
	destroy_workqueue(kdapl_many_wq);
err_event:
	destroy_workqueue(kdapl_event_wq);
err_upcall:
	destroy_workqueue(kdapl_upcall_wq);
err_reap:
	destroy_workqueue(kdapl_reap_wq);
err_conn:
	destroy_workqueue(kdapl_conn_wq);
err_wq:
	destroy_workqueue(kdapl_wq);
	return ret;
}

/**
 * kdapl_stop - take it down again
 *
 * No consumer is left: each one holds the module.
 */
void kdapl_stop(void)
{
	kdapl_debugfs_exit();
	ib_unregister_client(&kdapl_client);
	kdapl_cr_stop();
	/* in the order in which they wait for each other */
	destroy_workqueue(kdapl_event_wq);
	destroy_workqueue(kdapl_upcall_wq);
	destroy_workqueue(kdapl_many_wq);
	/* twice: a half goes to the reaper, and a grace period later its memory does */
	rcu_barrier();
	flush_workqueue(kdapl_reap_wq);
	rcu_barrier();
	destroy_workqueue(kdapl_reap_wq);
	destroy_workqueue(kdapl_conn_wq);
	destroy_workqueue(kdapl_wq);
	rcu_barrier();	/* memory, and functions of ours that free it */
	kdapl_ia_exit();
	kdapl_handles_exit();
}

static int __init kdapl_init(void)
{
#ifdef KDAPL_UNCHECKED
	pr_warn("built for benches only: keys, rights and ranges of posts are not looked at\n");
#endif
	return kdapl_start();
}

static void __exit kdapl_exit(void)
{
	kdapl_stop();
}

module_init(kdapl_init);
module_exit(kdapl_exit);

MODULE_DESCRIPTION("Direct Access Programming Library for kernel consumers");
MODULE_AUTHOR("The kDAPL for Linux authors");
MODULE_LICENSE("Dual BSD/GPL");
#ifdef KDAPL_UNCHECKED
MODULE_VERSION(KDAPL_VERSION "-unchecked");
#else
MODULE_VERSION(KDAPL_VERSION);
#endif
