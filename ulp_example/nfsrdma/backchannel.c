// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Calls of the server over the client's connection (RFC 8167), as NFS 4.1 and later need them: to
 * recall a delegation, for example. Call and reply are short, and go inline.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/sunrpc/bc_xprt.h>
#include "kx.h"

static struct kx_req *kx_bc_get(struct kx_xprt *kx)
{
	struct kx_req *req;

	spin_lock(&kx->lock);
	req = list_first_entry_or_null(&kx->bc_free, struct kx_req, node);
	if (req)
		list_del(&req->node);
	spin_unlock(&kx->lock);
	return req;
}

/**
 * kx_bc_receive - hand a call of the server to its service
 * @kx: the transport
 * @rep: the message; belongs to the service until kx_bc_free_rqst()
 * @reply: its header
 *
 * Return: false if there is no such service; the message is still the caller's.
 */
bool kx_bc_receive(struct kx_xprt *kx, struct kx_rep *rep, const struct kx_reply *reply)
{
	u32 length = rep->length - KX_HEADER_MIN;
	struct rpc_rqst *rqst;
	struct kx_req *req;

	if (!READ_ONCE(kx->xprt.bc_serv))
		return false;
	req = kx_bc_get(kx);
	if (!req) {
		pr_warn_ratelimited("%s: more calls at a time than the server may make\n",
				    kx->xprt.address_strings[RPC_DISPLAY_ADDR]);
		xprt_force_disconnect(&kx->xprt);
		kx_rep_put(kx, rep);
		return true;
	}
	rqst = &req->rqst;
	memset(rqst, 0, sizeof(*rqst));
	__set_bit(RPC_BC_PA_IN_USE, &rqst->rq_bc_pa_state);
	rqst->rq_xprt = &kx->xprt;
	rqst->rq_xid = reply->xid;
	req->rep = rep;
	xdr_buf_init(&rqst->rq_snd_buf, req->call_buf, req->call_size);
	rqst->rq_rcv_buf.head[0].iov_base = rep->data + KX_HEADER_MIN;
	rqst->rq_rcv_buf.head[0].iov_len = length;
	rqst->rq_rcv_buf.len = length;
	rqst->rq_private_buf.len = length;
	if (kx_bc_enqueue(rqst))
		return true;
	req->rep = NULL;
	kx_req_put(req);
	return false;
}

/* Everything was made with the transport. The count is for kx_bc_enqueue(). */
int kx_bc_setup(struct rpc_xprt *xprt, unsigned int reqs)
{
	spin_lock(&xprt->bc_pa_lock);
	xprt->bc_alloc_max += reqs;
	spin_unlock(&xprt->bc_pa_lock);
	return 0;
}

size_t kx_bc_maxpayload(struct rpc_xprt *xprt)
{
	struct kx_xprt *kx = kx_of(xprt);
	size_t most = 1024;

	spin_lock(&kx->lock);
	if (kx->conn && kx->conn->limits.send)
		most = min(kx->conn->limits.send + KX_CALL_HEADER_MAX,
			   kx->conn->limits.recv + KX_REPLY_HEADER_MAX);
	spin_unlock(&kx->lock);
	return most - KX_HEADER_MIN;
}

unsigned int kx_bc_num_slots(struct rpc_xprt *xprt)
{
	return KX_BC_CREDITS;
}

void kx_bc_free_rqst(struct rpc_rqst *rqst)
{
	struct rpc_xprt *xprt = rqst->rq_xprt;
	struct kx_req *req = kx_req_of(rqst);

	kx_reply_put(kx_of(xprt), req);
	kx_req_put(req);
	xprt_put(xprt);		/* kx_bc_enqueue() */
}

void kx_bc_destroy(struct rpc_xprt *xprt, unsigned int reqs)
{
	spin_lock(&xprt->bc_pa_lock);
	xprt->bc_alloc_max -= min(reqs, xprt->bc_alloc_max);
	spin_unlock(&xprt->bc_pa_lock);
}
