// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Copyright (c) 2026 The kDAPL for Linux authors */
#include <linux/sunrpc/svc.h>
#include <linux/sunrpc/xprt.h>

/* Linux 6.6 has the function already, and waits for calls of the server elsewhere. */
static void __maybe_unused probe(struct svc_serv *serv, struct rpc_rqst *rqst)
{
	lwq_enqueue(&rqst->rq_bc_list, &serv->sv_cb_list);
	svc_pool_wake_idle_thread(&serv->sv_pools[0]);
}
