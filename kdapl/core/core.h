/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The lowest folder: handles, objects, devices, IAs.
 *
 * Every object of a consumer (IA, PZ, LMR, EVD, EP, service point, CR) is a shell:
 * handle, reference count, and the state the consumer can see. The verbs objects behind it
 * (PD, MR, CQ, QP, cm_id) hang off the shell. Removal of the device takes them away; shell
 * and handle live until the consumer frees them.
 *
 * Lock order, outermost first. A lock may be taken inside any lock above it, never inside
 * one below it. The table in Documentation/architecture.md is made from this list
 * (make doc-tables), and make lint checks that no lock of kdapl.ko is missing here.
 *
 *   notify_mutex        mutex: notifiers of IAs, and the IAs they were told about; held while
 *                       they are called
 *   ia_consumer_lock    mutex: names of consumers; nothing is taken inside
 *   kdapl_devices_lock  mutex: list of devices and their names; addresses of ports are looked
 *                       up inside
 *   dev->ports_mutex    mutex: querying the ports of a device, which may take RTNL; no call of
 *                       a consumer takes it
 *   device users        count: held by calls that use verbs and may sleep (kdapl_dev_enter()).
 *                       Entering never waits. Removal waits until all have left, and holds no
 *                       lock of ours meanwhile
 *   ep->mutex           mutex: serialises control calls on an EP
 *   srq->mutex          mutex: replacing the pool of an SRQ
 *   ia->mutex           mutex: creating the null EVD and the reserved LMR of an IA
 *   evd->mutex          mutex: attaching work queues, growing the backlog, length and policy
 *   dev->lock           mutex: lists of a device. All its consumers need it, so no verb is
 *                       called inside: an object is taken off its list first, then destroyed
 *   sp->mutex           mutex: cm_id of a listener, against removal
 *   cr->mutex           mutex: cm_id of a request, so that only one caller gets it. Before the
 *                       handle is published it is taken in the listener's handler, too
 *   pd->lock            mutex: registration QP of a PZ, against removal
 *   conn->destroy_lock  mutex: destroying cm_id and QP of a connection; handlers never take it
 *   handler mutex       mutex of rdma_cm: held while an event of a cm_id is handled
 *   conn->lock          mutex: state of a connection, verbs on its QP. Waiting for a handler
 *                       inside would deadlock
 *   ia->stale_mutex     mutex: replacing MRs whose registration was flushed
 *   keys->mutex         mutex: changing the key table of an IA, which posts read under RCU;
 *                       memory is allocated inside, without I/O
 *   source_mutex        mutex: page lists of LMRs that are being copied or widened
 *   ep->lock            spinlock, irq: state of an EP
 *   wq->lock            spinlock, irq: producer side of a work queue, held over the post. Not
 *                       taken if the consumer serialises its posts, see kdapl_wq_quiesce()
 *   ia->lock            spinlock, irq: lists of objects and their users
 *   evd->lock           spinlock, irq: backlog and batch of an EVD, polling its CQs, consumer
 *                       side of its work queues. Never held together with ep->lock or
 *                       wq->lock, nor over an upcall
 *   rmr->lock           spinlock, irq: binding of an RMR
 *   pool->lock          spinlock, irq: buffers of an SRQ, held over the post
 *   mr->lock            spinlock, irq: keys of an MR and state of its LMR; readers of the keys
 *                       use mr->seq
 *   ia->stale_lock      spinlock, irq: list of the MRs to be replaced
 *   ia->maps_lock       spinlock, irq: DMA mappings of the consumer of an IA; removal of the
 *                       device unmaps them inside
 *   dev->ports_lock     spinlock, irq: attributes of the ports
 *   notify_lock         spinlock: the names of devices, for the work item that calls notifiers
 *   handle_lock         spinlock, irq: table of handles; lookups use RCU
 *   reject_lock         spinlock: connection requests to be refused later
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

#include "handle.h"
#include "object.h"
#include "quirks.h"
#include "device.h"
#include "keys.h"
#include "dma.h"
#include "ia.h"
#include "stats.h"

/*
 * Each has a rescuer of its own. Work on one may wait for work on a later one of this list,
 * never on an earlier one.
 */
extern struct workqueue_struct *kdapl_event_wq;	/* upcalls without completions, notifiers, frees */
extern struct workqueue_struct *kdapl_upcall_wq;	/* upcalls with completions */
extern struct workqueue_struct *kdapl_many_wq;	/* upcalls of DAT_UPCALL_MANY */
extern struct workqueue_struct *kdapl_reap_wq;	/* reaper */
extern struct workqueue_struct *kdapl_connect_wq;	/* rdma_connect(), which may take minutes */
extern struct workqueue_struct *kdapl_misc_wq;	/* ends, timers, early data, unmapping */

int kdapl_workqueues_start(void);
void kdapl_workqueues_stop(void);

#ifdef KDAPL_KUNIT
extern bool kdapl_test_no_key_table;	/* allocating one fails */

/* A place where a unit test may interrupt the code. @hook: pointer to a function, or NULL */
#define kdapl_test_point(hook, arg)		\
	do {					\
		typeof(hook) _hook = (hook);	\
						\
		if (_hook)			\
			_hook(arg);		\
	} while (0)
#else
#define kdapl_test_point(...)	do { } while (0)
#endif

#endif /* KDAPL_CORE_CORE_H */
