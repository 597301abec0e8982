/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * All sunrpc differences between kernel versions. The code is written for the newest kernel.
 * KX_HAVE_X is defined if the build could compile compat/x.c.
 */
#ifndef _KX_COMPAT_H_
#define _KX_COMPAT_H_

#include <linux/sunrpc/bc_xprt.h>
#include <linux/sunrpc/svc.h>
#include <linux/sunrpc/xprt.h>

#include "have.h"

#ifdef CONFIG_SUNRPC_BACKCHANNEL
/*
 * Hand a call of the server to the service; it holds the transport until bc_free_rqst. Returns
 * false if the service has gone.
 */
static inline bool kx_bc_enqueue(struct rpc_rqst *rqst)
{
#ifdef KX_HAVE_ENQUEUE_BC_REQUEST
	/* sunrpc counts the calls that are being served, and checks the count at the end */
	atomic_inc(&rqst->rq_xprt->bc_slot_count);
	xprt_enqueue_bc_request(rqst);
	return true;
#else
	struct rpc_xprt *xprt = rqst->rq_xprt;
	struct svc_serv *serv;
	bool there;

	/* @bc_serv stays when the service goes. NFS calls bc_destroy before, and bc_setup. */
	spin_lock(&xprt->bc_pa_lock);
	there = xprt->bc_alloc_max && xprt_get(xprt);
	if (there) {
		serv = xprt->bc_serv;
		atomic_inc(&xprt->bc_slot_count);
#ifdef KX_HAVE_WAKE_IDLE_THREAD
		lwq_enqueue(&rqst->rq_bc_list, &serv->sv_cb_list);
		svc_pool_wake_idle_thread(&serv->sv_pools[0]);
#else
		spin_lock(&serv->sv_cb_lock);
		list_add(&rqst->rq_bc_list, &serv->sv_cb_list);
		spin_unlock(&serv->sv_cb_lock);
		wake_up(&serv->sv_cb_waitq);
#endif
	}
	spin_unlock(&xprt->bc_pa_lock);
	return there;
#endif
}
#endif

#endif /* _KX_COMPAT_H_ */
