// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Sending: choose how call and reply are moved, make keys for the memory that goes by RDMA, and
 * write a header with the rest behind it into one page. All of it runs under XPRT_LOCKED, which
 * also orders the posts.
 */
#include <linux/highmem.h>
#include <linux/sunrpc/auth.h>
#include <linux/sunrpc/clnt.h>
#include "kx.h"

/* The data may move on its own unless it has to be encrypted or signed. */
static bool kx_data_may_move(const struct rpc_rqst *rqst, const struct xdr_buf *buf, u32 flag)
{
	return buf->flags & flag &&
	       !test_bit(RPCAUTH_AUTH_DATATOUCH, &rqst->rq_cred->cr_auth->au_flags);
}

/*
 * Some replies come into pages that are allocated only if something arrives there (ACLs). Here the
 * server has to know them in advance.
 */
static int kx_fill_sparse(struct xdr_buf *buf)
{
	struct page **page = buf->pages + (buf->page_base >> PAGE_SHIFT);
	u32 n = DIV_ROUND_UP(offset_in_page(buf->page_base) + buf->page_len, PAGE_SIZE);

	if (!(buf->flags & XDRBUF_SPARSE_PAGES))
		return 0;
	for (; n; n--, page++) {
		if (!*page)
			*page = alloc_page(GFP_NOWAIT);
		if (!*page)
			return -ENOBUFS;
	}
	return 0;
}

static void *kx_copy_pages(void *to, const struct xdr_buf *buf)
{
	struct page **page = buf->pages + (buf->page_base >> PAGE_SHIFT);
	u32 offset = offset_in_page(buf->page_base), left = buf->page_len, n;

	for (; left; left -= n) {
		n = min_t(u32, PAGE_SIZE - offset, left);
		memcpy_from_page(to, *page++, offset, n);
		to += n;
		offset = 0;
	}
	return to;
}

/*
 * What follows the header. If the data moves on its own, so does its padding: the tail begins with
 * it, and the rest of the tail has a multiple of four bytes.
 */
static u32 kx_copy_message(void *to, const struct xdr_buf *buf, enum kx_way way)
{
	u32 pad = way == KX_WAY_DATA ? buf->tail[0].iov_len & 3 : 0;
	void *p = to;

	if (way == KX_WAY_ALL)
		return 0;
	memcpy(p, buf->head[0].iov_base, buf->head[0].iov_len);
	p += buf->head[0].iov_len;
	if (way == KX_WAY_INLINE)
		p = kx_copy_pages(p, buf);
	if (buf->tail[0].iov_len) {
		memcpy(p, buf->tail[0].iov_base + pad, buf->tail[0].iov_len - pad);
		p += buf->tail[0].iov_len - pad;
	}
	return p - to;
}

static struct kx_message kx_message_of(const struct xdr_buf *buf, bool data)
{
	return (struct kx_message) {
		.head = buf->head[0].iov_len,
		.pages = buf->page_len,
		.tail = buf->tail[0].iov_len,
		.data = data,
	};
}

/* Choose, and take LMRs for what does not go inline. @results_from: see kx_post_call(). */
static int kx_map_call(struct kx_xprt *kx, struct kx_req *req, enum kx_way *way, u32 *results_from)
{
	struct rpc_rqst *rqst = &req->rqst;
	struct xdr_buf *snd = &rqst->rq_snd_buf, *rcv = &rqst->rq_rcv_buf;
	struct kx_message msg = kx_message_of(snd, kx_data_may_move(rqst, snd, XDRBUF_WRITE));
	const struct kx_limits *limits = &kx->conn->limits;
	struct kx_call *call = &req->call;
	enum kx_way results;
	int err;

	*call = (struct kx_call) { .xid = rqst->rq_xid, .credits = KX_CREDITS };
	kx->batch->n = 0;
	kx->batch->nents = 0;
	*way = kx_call_way(limits, &msg);
	call->proc = *way == KX_WAY_ALL ? KX_PROC_NOMSG : KX_PROC_MSG;
	call->position = *way == KX_WAY_ALL ? 0 : snd->head[0].iov_len;
	err = kx_map(kx, req, snd, *way, &call->read);
	*results_from = req->nmrs;
	msg = kx_message_of(rcv, kx_data_may_move(rqst, rcv, XDRBUF_READ));
	results = kx_reply_way(limits, &msg);
	err = err ?: kx_map(kx, req, rcv, results,
			    results == KX_WAY_DATA ? &call->write : &call->reply);
	/* A server does without, unless it is very old. */
	if (!err && results == KX_WAY_DATA && rcv->page_len & 3 &&
	    !READ_ONCE(kx->conn->pad_gone)) {
		call->write.seg[call->write.n] = kx->conn->pad;
		call->write.seg[call->write.n++].length = -rcv->page_len & 3;
	}
	return err;
}

static void kx_count_call(struct kx_stats *stats, const struct kx_call *call, u32 copied)
{
	u32 i;

	stats->read_chunks += call->read.n;
	stats->write_chunks += call->write.n;
	stats->reply_chunks += call->reply.n;
	for (i = 0; i < call->write.n; i++)
		stats->offered += call->write.seg[i].length;
	for (i = 0; i < call->reply.n; i++)
		stats->offered += call->reply.seg[i].length;
	stats->nomsg_calls += call->proc == KX_PROC_NOMSG;
	stats->pulled_up += copied;
}

/**
 * kx_send - send a call
 * @kx: the transport; XPRT_LOCKED, connected
 * @req: the request
 *
 * Return: 0; -EAGAIN: sunrpc calls again when there is an LMR; -ENOBUFS: after a while; -ENOTCONN:
 *	disconnect; others: the RPC fails.
 */
int kx_send(struct kx_xprt *kx, struct kx_req *req)
{
	enum kx_way way = KX_WAY_INLINE;
	u32 results_from = 0, copied;
	int err, header;

	/* There is a Receive for each reply that may come. */
	kx_reply_put(kx, req);
	err = kx_fill_sparse(&req->rqst.rq_rcv_buf) ?: kx_map_call(kx, req, &way, &results_from);
	if (err)
		goto out_unmap;
	header = kx_call_encode(req->msg, PAGE_SIZE, &req->call);
	if (header < 0) {
		err = header;
		goto out_unmap;
	}
	copied = kx_copy_message(req->msg + header, &req->rqst.rq_snd_buf, way);
	req->rqst.rq_xtime = ktime_get();
	err = kx_post_call(kx->conn, req, header + copied, results_from);
	if (err == -ENOTCONN)
		return err;	/* kx_disconnect() ends what is registered */
	if (err)
		goto out_unmap;
	kx_count_call(&kx->stats, &req->call, copied);
	return 0;

out_unmap:
	kx_unmap(kx, req);
	kx->stats.unmarshalled++;
	return err;
}

/* Send the reply to a call of the server. It is short, and has no chunks. */
int kx_send_reverse(struct kx_xprt *kx, struct kx_req *req)
{
	const struct kx_call header = {
		.xid = req->rqst.rq_xid,
		.credits = KX_BC_CREDITS,
		.proc = KX_PROC_MSG,
	};
	int length = kx_call_encode(req->msg, PAGE_SIZE, &header);

	if (length + req->rqst.rq_snd_buf.len > kx->conn->limits.send + KX_CALL_HEADER_MAX)
		return -EMSGSIZE;
	length += kx_copy_message(req->msg + length, &req->rqst.rq_snd_buf, KX_WAY_INLINE);
	return kx_post_call(kx->conn, req, length, 0);
}
