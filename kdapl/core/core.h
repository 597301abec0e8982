/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What every floor stands on: handles, objects, devices, IAs.
 *
 * Every object of a consumer (IA, PZ, LMR, EVD, EP, service point, CR) is a shell:
 * handle, reference count, the state the consumer can see. The verbs objects behind it
 * (PD, MR, CQ, QP, cm_id) hang off the shell. Removal of the device takes them away; the
 * shell, and the handle, live until the consumer frees them.
 */
#ifndef KDAPL_CORE_CORE_H
#define KDAPL_CORE_CORE_H

#include <linux/cache.h>
#include <linux/completion.h>
#include <linux/hash.h>
#include <linux/irq_poll.h>
#include <linux/list.h>
#include <linux/log2.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/seqlock.h>
#include <linux/slab.h>
#include <linux/socket.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>
#include <dat2/kdat_ext.h>
#include "../compat/compat.h"
#include "../version.h"
#include "status.h"

#undef pr_fmt
#define pr_fmt(fmt) "kdapl: " fmt

#define KDAPL_NTYPES	(DAT_HANDLE_TYPE_CSP + 1)

struct kdapl_device;
struct kdapl_ia;
struct kdapl_ep;
struct kdapl_evd;
struct kdapl_conn;
struct kdapl_cr;
struct kdapl_pd;
struct kdapl_cq;
struct kdapl_mr;
struct kdapl_pool;
struct kdapl_buf;
struct kdapl_post;

#include "handle.h"
#include "object.h"
#include "quirks.h"
#include "device.h"
#include "keys.h"
#include "dma.h"
#include "ia.h"
#include "stats.h"

/*
 * Work on an earlier one may wait for work on a later one, never the other way:
 * each has a rescuer of its own.
 */
extern struct workqueue_struct *kdapl_event_wq;	/* upcalls without completions, deferred frees */
extern struct workqueue_struct *kdapl_upcall_wq;	/* upcalls with completions */
extern struct workqueue_struct *kdapl_many_wq;	/* upcalls of DAT_UPCALL_MANY */
extern struct workqueue_struct *kdapl_reap_wq;	/* reaper */
extern struct workqueue_struct *kdapl_connect_wq;	/* rdma_connect(), which may take minutes */
extern struct workqueue_struct *kdapl_misc_wq;	/* ends, timers, early data, unmapping */

int kdapl_workqueues_start(void);
void kdapl_workqueues_stop(void);

#ifdef KDAPL_KUNIT
extern bool kdapl_test_no_key_table;	/* as if there were no memory for one */
#endif

#endif /* KDAPL_CORE_CORE_H */
