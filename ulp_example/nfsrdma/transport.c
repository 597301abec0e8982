// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * kdat_xprtrdma - RPC-over-RDMA for sunrpc, over kDAPL: mount -o proto=rdma (README.md). What
 * sunrpc calls, and the module.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/sunrpc/addr.h>
#include <linux/sunrpc/clnt.h>
#include <linux/sunrpc/msg_prot.h>
#include "../../kdapl/version.h"
#include "kx.h"

#define KX_BIND_TIMEOUT		(60 * HZ)
#define KX_RECONNECT_FIRST	(5 * HZ)	/* after a failed attempt; doubled each time */
#define KX_IDLE_TIMEOUT		(5 * 60 * HZ)

static const struct rpc_timeout kx_timeout = {
	.to_initval = 60 * HZ,
	.to_maxval = 60 * HZ,
};

struct workqueue_struct *kx_wq;
/*
 * Its work items allocate nothing and wait for no peer: memory that reclaim waits for is taken back
 * here even if one of kx_wq, which connects, waits for memory itself.
 */
struct workqueue_struct *kx_end_wq;

/* ---- requests ---- */

/* A request is free again when the RPC has ended and its Send has completed. */
void kx_req_put(struct kx_req *req)
{
	struct rpc_xprt *xprt = req->rqst.rq_xprt;
	struct kx_xprt *kx;

	if (!refcount_dec_and_test(&req->refs))
		return;
	kx = kx_of(xprt);
	refcount_set(&req->refs, 1);
	if (req->number >= KX_CREDITS) {	/* of the server */
		spin_lock(&kx->lock);
		list_add(&req->node, &kx->bc_free);
		spin_unlock(&kx->lock);
		return;
	}
	spin_lock(&xprt->reserve_lock);
	if (!xprt_wake_up_backlog(xprt, &req->rqst)) {
		memset(&req->rqst, 0, sizeof(req->rqst));
		list_add(&req->node, &kx->free);
	}
	spin_unlock(&xprt->reserve_lock);
}

static void kx_alloc_slot(struct rpc_xprt *xprt, struct rpc_task *task)
{
	struct kx_xprt *kx = kx_of(xprt);
	struct kx_req *req;

	spin_lock(&xprt->reserve_lock);
	req = list_first_entry_or_null(&kx->free, struct kx_req, node);
	if (req) {
		list_del(&req->node);
		task->tk_rqstp = &req->rqst;
		task->tk_status = 0;
	} else {
		task->tk_status = -EAGAIN;
		xprt_add_backlog(xprt, task);
	}
	spin_unlock(&xprt->reserve_lock);
}

static void kx_free_slot(struct rpc_xprt *xprt, struct rpc_rqst *rqst)
{
	struct kx_req *req = kx_req_of(rqst);

	kx_reply_put(kx_of(xprt), req);
	rqst->rq_xprt = xprt;
	kx_req_put(req);
}

static int kx_buf_alloc(struct rpc_task *task)
{
	struct rpc_rqst *rqst = task->tk_rqstp;
	struct kx_xprt *kx = kx_of(rqst->rq_xprt);
	struct kx_req *req = kx_req_of(rqst);
	gfp_t gfp = rpc_task_gfp_mask();

	if (!kx_grow(kx, &req->call_buf, &req->call_size, rqst->rq_callsize, gfp) ||
	    !kx_grow(kx, &req->reply_buf, &req->reply_size, rqst->rq_rcvsize, gfp))
		return -ENOMEM;
	rqst->rq_buffer = req->call_buf;
	rqst->rq_rbuffer = req->reply_buf;
	return 0;
}

/* The buffers stay. But the RPC may end while the server has keys to its memory. */
static void kx_buf_free(struct rpc_task *task)
{
	struct rpc_rqst *rqst = task->tk_rqstp;

	kx_req_fence(kx_of(rqst->rq_xprt), kx_req_of(rqst), false);
}

static int kx_send_request(struct rpc_rqst *rqst)
{
	struct rpc_xprt *xprt = rqst->rq_xprt;
	struct kx_xprt *kx = kx_of(xprt);
	struct kx_req *req = kx_req_of(rqst);
	int err;

	if (!xprt_connected(xprt) || !kx->conn)
		return -ENOTCONN;
	if (!rqst->rq_buffer) {			/* the reply to a call of the server */
		err = kx_send_reverse(kx, req);
	} else if (rqst->rq_connect_cookie == xprt->connect_cookie) {
		/* Each call goes once over a connection: otherwise two would share a credit. */
		err = -ENOTCONN;
	} else {
		if (!xprt_request_get_cong(xprt, rqst))
			return -EBADSLT;
		err = kx_send(kx, req);
	}
	if (!err) {
		rqst->rq_xmit_bytes_sent += rqst->rq_snd_buf.len;
		/* Without a reply the credit would never come back. */
		if (rqst->rq_buffer && !rpc_reply_expected(rqst->rq_task))
			err = -ENOTCONN;
	}
	if (err == -ENOTCONN)
		kx_close(xprt);
	return err;
}

/* ---- the connection ---- */

static void kx_connect_worker(struct work_struct *work)
{
	struct kx_xprt *kx = container_of(work, struct kx_xprt, connect_work.work);
	struct rpc_xprt *xprt = &kx->xprt;
	int err;

	kx_disconnect(kx);
	xprt_clear_connected(xprt);
	err = kx_connect(kx);
	kx->failed = err;
	xprt_clear_connecting(xprt);
	if (!err) {
		xprt->connect_cookie++;
		xprt->stat.connect_count++;
		xprt->stat.connect_time += (long)jiffies - xprt->stat.connect_start;
		xprt_set_connected(xprt);
		err = -EAGAIN;
	} else if (xprt->stat.connect_count && err != -ETIMEDOUT) {
		/* It has worked before: the adapter or the route may come back. */
		err = -ENOTCONN;
	}
	/* Before others may send, and wait for replies. */
	xprt_wake_pending_tasks(xprt, err);
	xprt_unlock_connect(xprt, kx);
}

static void kx_connect_op(struct rpc_xprt *xprt, struct rpc_task *task)
{
	struct kx_xprt *kx = kx_of(xprt);
	unsigned long delay = 0;

	WARN_ON_ONCE(!xprt_lock_connect(xprt, task, kx));
	if (kx->failed) {
		delay = xprt_reconnect_delay(xprt);
		xprt_reconnect_backoff(xprt, KX_RECONNECT_FIRST);
	}
	queue_delayed_work(kx_wq, &kx->connect_work, delay);
}

/* The end of a connection; sunrpc holds XPRT_LOCKED. */
void kx_close(struct rpc_xprt *xprt)
{
	kx_disconnect(kx_of(xprt));
	xprt->reestablish_timeout = 0;
	xprt->connect_cookie++;
	xprt_disconnect_done(xprt);
}

/*
 * A task that has waited for a reply goes on, in its own context. If there is no reply, after a
 * long time or because the connection is given up, the call is encoded anew as soon as this
 * returns, maybe into other pages. So no key to it may be valid any more.
 */
static void kx_woken(struct rpc_task *task)
{
	struct rpc_rqst *rqst = task->tk_rqstp;

	if (rqst->rq_reply_bytes_recvd) {
		if (task->tk_status == -ETIMEDOUT)
			task->tk_status = 0;
	} else if (task->tk_status < 0 && task->tk_status != -ERESTARTSYS) {
		if (task->tk_status == -ETIMEDOUT)
			xprt_force_disconnect(rqst->rq_xprt);
		kx_req_fence(kx_of(rqst->rq_xprt), kx_req_of(rqst), true);
	}
}

/* As xprt_wait_for_reply_request_def(), with another callback. Under queue_lock. */
static void kx_wait_for_reply(struct rpc_task *task)
{
	struct rpc_rqst *rqst = task->tk_rqstp;
	unsigned long limit = jiffies + rqst->rq_timeout;

	if (time_before(rqst->rq_majortimeo, limit))
		limit = rqst->rq_majortimeo;
	rpc_sleep_on_timeout(&rqst->rq_xprt->pending, task, kx_woken, limit);
}

/* sunrpc's fault injection, in a task that has sent; another one may hold XPRT_LOCKED. */
static void kx_inject_disconnect(struct rpc_xprt *xprt)
{
	struct kx_xprt *kx = kx_of(xprt);

	spin_lock(&kx->lock);
	if (kx->conn)
		dat_ep_disconnect(kx->conn->ep, DAT_CLOSE_ABRUPT_FLAG);
	spin_unlock(&kx->lock);
}

static void kx_set_connect_timeout(struct rpc_xprt *xprt, unsigned long connect_timeout,
				   unsigned long reconnect_timeout)
{
	struct kx_xprt *kx = kx_of(xprt);

	spin_lock(&xprt->transport_lock);
	if (connect_timeout < xprt->connect_timeout) {
		kx->timeout = *xprt->timeout;
		kx->timeout.to_initval = max(connect_timeout, 2UL * KX_RECONNECT_FIRST);
		kx->timeout.to_maxval = kx->timeout.to_initval;
		xprt->timeout = &kx->timeout;
		xprt->connect_timeout = connect_timeout;
	}
	if (reconnect_timeout < xprt->max_reconnect_timeout)
		xprt->max_reconnect_timeout = reconnect_timeout;
	spin_unlock(&xprt->transport_lock);
}

/* ---- addresses ---- */

static void kx_name_port(struct rpc_xprt *xprt)
{
	unsigned short port = rpc_get_port((struct sockaddr *)&xprt->addr);

	kfree(xprt->address_strings[RPC_DISPLAY_PORT]);
	kfree(xprt->address_strings[RPC_DISPLAY_HEX_PORT]);
	xprt->address_strings[RPC_DISPLAY_PORT] = kasprintf(GFP_KERNEL, "%u", port);
	xprt->address_strings[RPC_DISPLAY_HEX_PORT] = kasprintf(GFP_KERNEL, "%4hx", port);
}

static void kx_name_addresses(struct rpc_xprt *xprt)
{
	const struct sockaddr *sap = (struct sockaddr *)&xprt->addr;
	char buf[128] = "";

	rpc_ntop(sap, buf, sizeof(buf));
	xprt->address_strings[RPC_DISPLAY_ADDR] = kstrdup(buf, GFP_KERNEL);
	if (sap->sa_family == AF_INET6)
		xprt->address_strings[RPC_DISPLAY_HEX_ADDR] =
			kasprintf(GFP_KERNEL, "%pi6", &((struct sockaddr_in6 *)sap)->sin6_addr);
	else
		xprt->address_strings[RPC_DISPLAY_HEX_ADDR] =
			kasprintf(GFP_KERNEL, "%08x",
				  ntohl(((struct sockaddr_in *)sap)->sin_addr.s_addr));
	xprt->address_strings[RPC_DISPLAY_PROTO] = "rdma";
	xprt->address_strings[RPC_DISPLAY_NETID] = sap->sa_family == AF_INET6 ? "rdma6" : "rdma";
	kx_name_port(xprt);
}

static void kx_free_addresses(struct rpc_xprt *xprt)
{
	kfree(xprt->address_strings[RPC_DISPLAY_ADDR]);
	kfree(xprt->address_strings[RPC_DISPLAY_HEX_ADDR]);
	kfree(xprt->address_strings[RPC_DISPLAY_PORT]);
	kfree(xprt->address_strings[RPC_DISPLAY_HEX_PORT]);
}

static void kx_set_port(struct rpc_xprt *xprt, unsigned short port)
{
	rpc_set_port((struct sockaddr *)&xprt->addr, port);
	kx_name_port(xprt);
}

/* ---- statistics ---- */

/* In the columns that mountstats(8) expects of proto=rdma; 0 for what does not exist here. */
static void kx_print_stats(struct rpc_xprt *xprt, struct seq_file *seq)
{
	const struct kx_stats *s = &kx_of(xprt)->stats;
	long idle = xprt_connected(xprt) ? (long)(jiffies - xprt->last_used) / HZ : 0;

	seq_printf(seq, "\txprt:\trdma 0 %lu %lu %lu %ld %lu %lu %lu %llu %llu ",
		   xprt->stat.bind_count, xprt->stat.connect_count, xprt->stat.connect_time / HZ,
		   idle, xprt->stat.sends, xprt->stat.recvs, xprt->stat.bad_xids,
		   xprt->stat.req_u, xprt->stat.bklog_u);
	seq_printf(seq, "%lu %lu %lu %llu %llu %llu %llu %lu %lu %lu %lu ",
		   s->read_chunks, s->write_chunks, s->reply_chunks, s->offered, s->transferred,
		   s->pulled_up, s->fixed_up, s->grown, s->unmarshalled, s->bad_replies,
		   s->nomsg_calls);
	seq_printf(seq, "0 0 %lu %lu %lu 0\n", s->mrs_allocated, s->invalidated, s->no_mrs);
}

/* ---- transports ---- */

static void kx_destroy(struct rpc_xprt *xprt)
{
	struct kx_xprt *kx = kx_of(xprt);

	cancel_delayed_work_sync(&kx->connect_work);
	kx_disconnect(kx);
	kx_mem_exit(kx);
	kx_free_addresses(xprt);
	xprt_free(xprt);
	module_put(THIS_MODULE);
}

static int kx_enable_swap(struct rpc_xprt *xprt)
{
	return -EOPNOTSUPP;	/* connecting needs more memory than a swap device may */
}

static void kx_disable_swap(struct rpc_xprt *xprt)
{
}

static const struct rpc_xprt_ops kx_ops = {
	.reserve_xprt		= xprt_reserve_xprt_cong,
	.release_xprt		= xprt_release_xprt_cong,
	.alloc_slot		= kx_alloc_slot,
	.free_slot		= kx_free_slot,
	.release_request	= xprt_release_rqst_cong,
	.wait_for_reply_request	= kx_wait_for_reply,
	.rpcbind		= rpcb_getport_async,
	.set_port		= kx_set_port,
	.connect		= kx_connect_op,
	.buf_alloc		= kx_buf_alloc,
	.buf_free		= kx_buf_free,
	.send_request		= kx_send_request,
	.close			= kx_close,
	.destroy		= kx_destroy,
	.set_connect_timeout	= kx_set_connect_timeout,
	.print_stats		= kx_print_stats,
	.enable_swap		= kx_enable_swap,
	.disable_swap		= kx_disable_swap,
	.inject_disconnect	= kx_inject_disconnect,
#ifdef CONFIG_SUNRPC_BACKCHANNEL
	.bc_setup		= kx_bc_setup,
	.bc_maxpayload		= kx_bc_maxpayload,
	.bc_num_slots		= kx_bc_num_slots,
	.bc_free_rqst		= kx_bc_free_rqst,
	.bc_destroy		= kx_bc_destroy,
#endif
};

static struct rpc_xprt *kx_setup(struct xprt_create *args);

static struct xprt_class kx_class = {
	.list	= LIST_HEAD_INIT(kx_class.list),
	.name	= "rdma",
	.owner	= THIS_MODULE,
	.ident	= XPRT_TRANSPORT_RDMA,
	.setup	= kx_setup,
	.netid	= { "rdma", "rdma6", "" },
};

static struct rpc_xprt *kx_setup(struct xprt_create *args)
{
	struct rpc_xprt *xprt;
	struct kx_xprt *kx;
	int err;

	if (args->addrlen > sizeof(xprt->addr))
		return ERR_PTR(-EBADF);
	xprt = xprt_alloc(args->net, sizeof(*kx), 0, KX_CREDITS);
	if (!xprt)
		return ERR_PTR(-ENOMEM);
	kx = kx_of(xprt);
	spin_lock_init(&kx->lock);
	INIT_DELAYED_WORK(&kx->connect_work, kx_connect_worker);
	err = kx_mem_init(kx);
	if (err)
		goto err_free;
	xprt->ops = &kx_ops;
	xprt->xprt_class = &kx_class;
	xprt->prot = IPPROTO_TCP;	/* for code that takes the address as one of IP */
	xprt->timeout = &kx_timeout;
	xprt->connect_timeout = kx_timeout.to_initval;
	xprt->max_reconnect_timeout = kx_timeout.to_maxval;
	xprt->bind_timeout = KX_BIND_TIMEOUT;
	xprt->reestablish_timeout = KX_RECONNECT_FIRST;
	xprt->idle_timeout = KX_IDLE_TIMEOUT;
	xprt->max_payload = KX_MAX_DATA;
	xprt->addrlen = args->addrlen;
	memcpy(&xprt->addr, args->dstaddr, args->addrlen);
	kx_name_addresses(xprt);
	if (rpc_get_port(args->dstaddr))
		xprt_set_bound(xprt);
	__module_get(THIS_MODULE);	/* until kx_destroy() */
	return xprt;

err_free:
	kx_mem_exit(kx);
	xprt_free(xprt);
	return ERR_PTR(err);
}

static void kx_wqs_destroy(void)
{
	if (kx_end_wq)
		destroy_workqueue(kx_end_wq);
	if (kx_wq)
		destroy_workqueue(kx_wq);
}

static int __init kx_init(void)
{
	int err;

	kx_wq = alloc_workqueue("kdat_xprtrdma", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	kx_end_wq = alloc_workqueue("kdat_xprtrdma_end", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	if (!kx_wq || !kx_end_wq) {
		err = -ENOMEM;
		goto out;
	}
	err = xprt_register_transport(&kx_class);
	if (err == -EEXIST)
		pr_err("proto=rdma already belongs to another module: unload rpcrdma first\n");
	if (!err)
		return 0;
out:
	kx_wqs_destroy();
	return err;
}

static void __exit kx_exit(void)
{
	xprt_unregister_transport(&kx_class);
	kx_wqs_destroy();
}

module_init(kx_init);
module_exit(kx_exit);

MODULE_AUTHOR("The kDAPL for Linux authors");
MODULE_DESCRIPTION("NFS/RDMA client transport over kDAPL");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION(KDAPL_VERSION);
