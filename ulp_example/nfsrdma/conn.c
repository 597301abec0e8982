// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Connections, one after the other. Each opens all that it needs, including the adapter, since the
 * next one may lead elsewhere. Both functions run under XPRT_LOCKED, and may sleep.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/sunrpc/addr.h>
#include "kx.h"

#define KX_PATIENCE	(15 * USEC_PER_SEC)	/* with a server that does not answer */

static const struct kx_private kx_ours = {
	.invalidate = true,
	.send = KX_INLINE,
	.recv = KX_INLINE,
};

static int kx_outcome(DAT_EVENT_NUMBER event)
{
	switch (event) {
	case DAT_CONNECTION_EVENT_ESTABLISHED:
		return 0;
	case DAT_CONNECTION_EVENT_PEER_REJECTED:
	case DAT_CONNECTION_EVENT_NON_PEER_REJECTED:
		return -ECONNREFUSED;
	case DAT_CONNECTION_EVENT_UNREACHABLE:
		return -ENETUNREACH;
	case DAT_CONNECTION_EVENT_TIMED_OUT:
		return -ETIMEDOUT;
	default:
		return -ENOTCONN;
	}
}

/*
 * The QP is in the error state, and all that was posted has completed. Free the LMRs. If DMA goes
 * through bounce buffers, that copies what the server has written, and nothing comes after it.
 * kx_conn_free() waits for this. If both freed the LMRs, this one would not wait for one that the
 * other is just freeing, and would say too early that no memory is reached.
 */
static void kx_ended(struct work_struct *work)
{
	struct kx_conn *conn = container_of(work, struct kx_conn, end_work);
	unsigned int noio = memalloc_noio_save();
	struct kx_xprt *kx = conn->kx;
	int i;

	for (i = 0; i < KX_MRS; i++)
		if (conn->mrs[i].lmr)
			dat_lmr_free(conn->mrs[i].lmr);
	spin_lock(&kx->lock);
	conn->ended = true;
	for (i = 0; i < KX_REQS; i++)
		if (kx->reqs[i].waiting)
			kx_fence_end(&kx->reqs[i]);
	spin_unlock(&kx->lock);
	for (i = 0; i < KX_REQS; i++)
		if (READ_ONCE(kx->reqs[i].refused))
			kx_reply_drop(kx, &kx->reqs[i]);
	memalloc_noio_restore(noio);
}

/* Workqueue. The first event is the outcome of the attempt; a second one is the end. */
static void kx_conn_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_CONNECTION_EVENT_DATA *data = &event->event_data.connect_event_data;
	struct kx_conn *conn = instance;
	struct kx_private theirs;
	bool up;

	if (event->event_number == DAT_CONNECTION_EVENT_ESTABLISHED) {
		kx_private_decode(data->private_data, data->private_data_size, &theirs);
		spin_lock(&conn->kx->lock);
		kx_limits_of(&kx_ours, &theirs, &conn->limits);
		spin_unlock(&conn->kx->lock);
	} else if (conn->outcome == DAT_CONNECTION_EVENT_ESTABLISHED) {
		/* else it is being taken apart already: see kx_disconnect() */
		spin_lock(&conn->kx->lock);
		up = conn->kx->conn == conn;
		if (up)
			queue_work(kx_end_wq, &conn->end_work);
		spin_unlock(&conn->kx->lock);
		if (up)
			xprt_force_disconnect(&conn->kx->xprt);
	}
	if (!conn->outcome) {
		/* Pairs with the acquire in kx_connect(): the limits are there. */
		smp_store_release(&conn->outcome, event->event_number);
		wake_up_all(&conn->wait);
	}
}

static DAT_RETURN kx_register_part(struct kx_conn *conn, DAT_PADDR *pages,
				   DAT_MEM_PRIV_FLAGS right, struct kx_part *part)
{
	const DAT_REGION_DESCRIPTION region = { .for_physical = pages };

	return dat_lmr_kcreate(conn->ia, DAT_MEM_TYPE_PHYSICAL, region, KX_PART, conn->pz, right,
			       DAT_VA_TYPE_VA, DAT_MEM_OPTIMIZE_DONT_CARE, &part->lmr, &part->key,
			       NULL, NULL, &part->at);
}

/* The memory of messages, and four bytes that a server may pad its data with. */
static DAT_RETURN kx_register(struct kx_conn *conn)
{
	DAT_REGION_DESCRIPTION pad;
	struct kx_xprt *kx = conn->kx;
	DAT_RETURN ret = DAT_SUCCESS;
	DAT_PADDR pages[KX_PART];
	u32 i, n;

	BUILD_BUG_ON(KX_REQS % KX_PART);
	BUILD_BUG_ON(KX_INLINE > PAGE_SIZE);
	for (n = 0; n < KX_PARTS && ret == DAT_SUCCESS; n++) {
		for (i = 0; i < KX_PART; i++)
			pages[i] = virt_to_phys(kx->reqs[n * KX_PART + i].msg);
		ret = kx_register_part(conn, pages, DAT_MEM_PRIV_LOCAL_READ_FLAG, &conn->send[n]);
		for (i = 0; i < KX_PART; i++)
			pages[i] = virt_to_phys(kx->reps[n * KX_PART + i].data);
		ret = ret ?: kx_register_part(conn, pages, DAT_MEM_PRIV_LOCAL_WRITE_FLAG,
					      &conn->recv[n]);
	}
	/* Zero-based, so that no server learns an address; that takes the start of a page. */
	conn->pad_page = (void *)get_zeroed_page(GFP_KERNEL);
	if (ret == DAT_SUCCESS && !conn->pad_page)
		ret = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	pad.for_va = conn->pad_page;
	return ret ?: dat_lmr_kcreate(conn->ia, DAT_MEM_TYPE_VIRTUAL, pad, XDR_UNIT, conn->pz,
				      DAT_MEM_PRIV_REMOTE_WRITE_FLAG, DAT_VA_TYPE_ZB,
				      DAT_MEM_OPTIMIZE_DONT_CARE, &conn->pad_lmr, NULL,
				      &conn->pad.handle, NULL, &conn->pad.offset);
}

/* Connections report their own ends. But an EVD that is not read fills up. */
static void kx_async_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
}

/*
 * The adapter, how many RDMA Reads of a peer it answers at a time, and whether it works on copies
 * of the memory (bounce buffers).
 */
static DAT_RETURN kx_ia_open(struct kx_conn *conn, const struct rpc_xprt *xprt, DAT_COUNT *reads,
			     bool *copies)
{
	DAT_IA_ATTR *attr = kmalloc(sizeof(*attr), GFP_KERNEL);	/* too large for the stack */
	const DAT_UPCALL_OBJECT async = { conn, kx_async_upcall };
	DAT_RETURN ret = DAT_INSUFFICIENT_RESOURCES;
	DAT_PROVIDER_ATTR provider = {};

	if (attr)
		ret = kdat_ia_open_to(xprt->xprt_net, (const struct sockaddr *)&xprt->addr, NULL, 8,
				      &conn->async_evd, &conn->ia) ?:
		      dat_evd_modify_upcall(conn->async_evd, DAT_UPCALL_SINGLE_INSTANCE, &async,
					    DAT_UPCALL_INVOC_ANY) ?:
		      dat_ia_query(conn->ia, NULL, DAT_IA_FIELD_ALL, attr,
				   DAT_PROVIDER_FIELD_LMR_SYNC_REQ, &provider);
	*copies = provider.lmr_sync_req;
	if (ret == DAT_SUCCESS)
		*reads = min(attr->max_rdma_read_per_ep_in, 255);
	kfree(attr);
	return ret;
}

static DAT_RETURN kx_ep_create(struct kx_conn *conn, DAT_COUNT reads)
{
	const DAT_UPCALL_OBJECT all = { conn, kx_upcall }, ends = { conn, kx_conn_upcall };
	struct kdat_conn_attr conn_attr = KDAT_CONN_ATTR_INIT;
	struct kdat_evd_attr evd_attr = KDAT_EVD_ATTR_INIT;
	DAT_EP_ATTR attr = KDAT_EP_ATTR_INIT;

	/* sunrpc takes its locks without switching off softirqs. */
	evd_attr.context = KDAT_EVD_CONTEXT_WORKQUEUE;
	conn_attr.retry_count = 6;
	conn_attr.rnr_retry_count = 0;		/* credits guarantee that there is a Receive */
	attr.max_message_size = KX_INLINE;
	attr.max_recv_dtos = KX_REPS;
	attr.max_recv_iov = 1;
	/* Register and invalidate, send; of what has no completion, some are noticed late. */
	attr.max_request_dtos = 2 * KX_MRS + KX_REQS + KX_SIGNAL_EVERY * (KX_REQ_MRS + 1);
	attr.max_request_iov = 1;
	attr.max_rdma_read_in = reads;
	return kdat_evd_create(conn->ia, 4, DAT_UPCALL_SINGLE_INSTANCE, &all, DAT_EVD_DTO_FLAG,
			       &evd_attr, &conn->evd) ?:
	       dat_evd_kcreate(conn->ia, 4, DAT_UPCALL_SINGLE_INSTANCE, &ends,
			       DAT_EVD_CONNECTION_FLAG, &conn->conn_evd) ?:
	       dat_ep_create(conn->ia, conn->pz, conn->evd, conn->evd, conn->conn_evd, &attr,
			     &conn->ep) ?:
	       kdat_ep_modify_conn(conn->ep, &conn_attr);
}

/* All objects, on the adapter that leads to the server. */
static int kx_open(struct kx_conn *conn, const struct rpc_xprt *xprt)
{
	struct kdat_mem_limits limits;
	DAT_COUNT reads;
	DAT_RETURN ret;
	bool copies;

	ret = kx_ia_open(conn, xprt, &reads, &copies) ?: kdat_ia_mem_limits(conn->ia, &limits);
	if (ret != DAT_SUCCESS)
		return kdat_errno(ret);
	conn->mr_pages = min_t(u32, limits.lmr_pages, KX_MAX_PAGES);
	if (conn->mr_pages < KX_MIN_PAGES) {
		pr_warn("%s: the adapter registers %u pages at a time; needed are %u\n",
			xprt->address_strings[RPC_DISPLAY_ADDR], conn->mr_pages, (u32)KX_MIN_PAGES);
		return -EOPNOTSUPP;
	}
	conn->nmrs = KX_MRS;
	if (copies) {
		conn->mr_pages = KX_MIN_PAGES;
		conn->nmrs = KX_FEW_MRS;
	}
	ret = dat_pz_create(conn->ia, &conn->pz) ?: kx_register(conn) ?: kx_mrs_create(conn) ?:
	      kx_ep_create(conn, reads);
	return kdat_errno(ret);
}

/* From here on a buffer that has been read is posted again by its reader. */
static DAT_RETURN kx_publish(struct kx_conn *conn)
{
	struct kx_xprt *kx = conn->kx;
	DAT_RETURN ret = DAT_SUCCESS;
	int i;

	spin_lock(&kx->lock);
	for (i = 0; i < KX_REPS && ret == DAT_SUCCESS; i++)
		if (!kx->reps[i].held)
			ret = kx_rep_post(conn, &kx->reps[i]);
	if (ret == DAT_SUCCESS)
		WRITE_ONCE(kx->conn, conn);
	spin_unlock(&kx->lock);
	return ret;
}

static void kx_conn_free(struct kx_conn *conn)
{
	cancel_work_sync(&conn->end_work);	/* no upcall queues it any more */
	if (conn->ia)
		dat_ia_close(conn->ia, DAT_CLOSE_ABRUPT_FLAG);
	free_page((unsigned long)conn->pad_page);
	kfree(conn);
}

/* A server grants one credit by accepting, and more by its replies. */
static void kx_first_credit(struct rpc_xprt *xprt)
{
	spin_lock(&xprt->transport_lock);
	xprt->cwnd = RPC_CWNDSCALE;
	spin_unlock(&xprt->transport_lock);
}

/* @event: the outcome of the attempt, or 0 if it did not come to one. */
static void kx_log_failure(struct rpc_xprt *xprt, DAT_EVENT_NUMBER event, int err)
{
	if (event)
		pr_warn_ratelimited("%pISpc: cannot connect: %s\n", &xprt->addr,
				    kdat_event_name(event));
	else
		pr_warn_ratelimited("%pISpc: cannot connect: %pe\n", &xprt->addr, ERR_PTR(err));
}

/**
 * kx_connect - connect
 * @kx: the transport, without a connection; XPRT_LOCKED
 *
 * Return: 0, or an errno; then there is no connection.
 */
int kx_connect(struct kx_xprt *kx)
{
	unsigned int noio = memalloc_noio_save();
	struct rpc_xprt *xprt = &kx->xprt;
	DAT_EVENT_NUMBER event = 0;
	u8 hello[KX_PRIVATE_LEN];
	struct kx_conn *conn;
	int err = -ENOMEM;

	conn = kzalloc(sizeof(*conn), GFP_KERNEL);
	if (!conn)
		goto out;
	conn->kx = kx;
	INIT_LIST_HEAD(&conn->free_mrs);
	init_waitqueue_head(&conn->wait);
	INIT_WORK(&conn->end_work, kx_ended);
	err = kx_open(conn, xprt) ?: kdat_errno(kx_publish(conn));
	if (err) {
		kx_conn_free(conn);
		goto out;
	}
	kx_first_credit(xprt);
	kx_private_encode(hello, &kx_ours);
	err = kdat_errno(dat_ep_connect(conn->ep, (DAT_IA_ADDRESS_PTR)&xprt->addr,
					rpc_get_port((struct sockaddr *)&xprt->addr), KX_PATIENCE,
					sizeof(hello), hello, DAT_QOS_BEST_EFFORT,
					DAT_CONNECT_DEFAULT_FLAG));
	if (!err) {
		/* The outcome comes when the time limit is over, at the latest. */
		wait_event(conn->wait, smp_load_acquire(&conn->outcome));
		event = conn->outcome;
		err = kx_outcome(event);
	}
	if (err)
		kx_disconnect(kx);
out:
	memalloc_noio_restore(noio);
	/* Log only the first of several failed attempts in a row. */
	if (err && !kx->failed)
		kx_log_failure(xprt, event, err);
	return err;
}

/*
 * Detach a request from the connection that has ended. If it waits for a reply, sunrpc sends it
 * again.
 */
static void kx_req_reset(struct kx_xprt *kx, struct kx_req *req)
{
	kx_reply_drop(kx, req);
	spin_lock(&kx->lock);
	req->expected = false;
	kx_fence_end(req);
	spin_unlock(&kx->lock);
	kx_sent(kx, req);
}

/**
 * kx_disconnect - end the connection, if there is one
 * @kx: the transport; XPRT_LOCKED
 *
 * Afterwards no upcall runs, and no device reaches any memory: keys end with their LMRs, and those
 * with the IA.
 */
void kx_disconnect(struct kx_xprt *kx)
{
	unsigned int noio = memalloc_noio_save();
	struct rpc_xprt *xprt = &kx->xprt;
	struct kx_conn *conn;
	int i;

	spin_lock(&kx->lock);
	conn = kx->conn;
	WRITE_ONCE(kx->conn, NULL);
	spin_unlock(&kx->lock);
	if (!conn)
		goto out;
	kdat_ep_drain(conn->ep);
	kx_conn_free(conn);
	/* Credits go with the connection, and requests ask for new ones. */
	spin_lock(&xprt->transport_lock);
	for (i = 0; i < KX_REQS; i++)
		kx->reqs[i].rqst.rq_cong = 0;
	xprt->cong = 0;
	spin_unlock(&xprt->transport_lock);
	for (i = 0; i < KX_REQS; i++)
		kx_req_reset(kx, &kx->reqs[i]);
out:
	memalloc_noio_restore(noio);
}
