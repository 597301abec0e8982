// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The upcall with completions, one at a time for each connection: Sends, invalidations, and
 * messages of the server. A reply completes its RPC at once if no key of it is valid any more, else
 * with the last invalidation; until then sunrpc keeps the request, since it is pinned.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "kx.h"
#include "place.h"

/* ---- buffers ---- */

DAT_RETURN kx_rep_post(struct kx_conn *conn, struct kx_rep *rep)
{
	DAT_LMR_TRIPLET iov = kx_segment(conn->recv, rep->number, KX_INLINE);

	return dat_ep_post_recv(conn->ep, 1, &iov, (DAT_DTO_COOKIE){ .as_ptr = rep },
				DAT_COMPLETION_DEFAULT_FLAG);
}

/* A buffer has been read: let the server use it again. Without a connection, the next one does. */
void kx_rep_put(struct kx_xprt *kx, struct kx_rep *rep)
{
	DAT_RETURN ret = DAT_SUCCESS;

	spin_lock(&kx->lock);
	rep->held = false;
	if (kx->conn)
		ret = kx_rep_post(kx->conn, rep);
	spin_unlock(&kx->lock);
	if (ret != DAT_SUCCESS)
		xprt_force_disconnect(&kx->xprt);
}

/* ---- replies ---- */

/* The RPC has read its reply, or could not use it and is sent again. */
void kx_reply_put(struct kx_xprt *kx, struct kx_req *req)
{
	if (req->rep)
		kx_rep_put(kx, req->rep);
	req->rep = NULL;
}

static u32 kx_place_reply(struct kx_xprt *kx, struct kx_req *req)
{
	const struct kx_reply *reply = &req->reply;
	u32 length, copied;

	length = kx_place(&req->rqst.rq_rcv_buf, req->rep->data + reply->length,
			  req->rep->length - reply->length, reply->written, &copied);
	kx->stats.transferred += reply->written;
	kx->stats.fixed_up += copied;
	return length;
}

/* The server has written the whole reply. */
static u32 kx_count_reply(struct kx_xprt *kx, struct kx_req *req)
{
	kx->stats.transferred += req->reply.replied;
	return min_t(u32, req->reply.replied, req->rqst.rq_rcv_buf.buflen);
}

/* Hand the reply to the RPC layer. No key to its memory is valid. */
static void kx_complete(struct kx_xprt *kx, struct kx_req *req)
{
	struct rpc_rqst *rqst = &req->rqst;
	u32 copied = 0;

	WARN_ON_ONCE(req->nmrs);
	if (req->status) {
		kx->stats.bad_replies++;
		rqst->rq_task->tk_status = req->status;
	} else {
		copied = req->reply.proc == KX_PROC_MSG ? kx_place_reply(kx, req) :
							  kx_count_reply(kx, req);
		rqst->rq_private_buf = rqst->rq_rcv_buf;
	}
	req->replied = false;
	spin_lock(&kx->xprt.queue_lock);
	xprt_complete_rqst(rqst->rq_task, copied);
	xprt_unpin_rqst(rqst);
	spin_unlock(&kx->xprt.queue_lock);
}

/*
 * The connection has ended while keys were to be invalidated: as if no reply had come. The call
 * will be sent again, or given up.
 */
void kx_reply_drop(struct kx_xprt *kx, struct kx_req *req)
{
	bool dropped;

	spin_lock(&kx->lock);
	dropped = req->replied;
	req->replied = false;
	req->refused = false;
	if (dropped)
		req->expected = true;
	spin_unlock(&kx->lock);
	if (!dropped)
		return;
	spin_lock(&kx->xprt.queue_lock);
	xprt_unpin_rqst(&req->rqst);
	spin_unlock(&kx->xprt.queue_lock);
}

/* Keys cannot be invalidated. Their RPC waits for the end of the connection. */
static void kx_reply_refused(struct kx_conn *conn, struct kx_req *req)
{
	bool ended;

	spin_lock(&conn->kx->lock);
	ended = conn->ended;
	req->refused = !ended && req->replied;
	if (!ended)
		dat_ep_disconnect(conn->ep, DAT_CLOSE_ABRUPT_FLAG);
	spin_unlock(&conn->kx->lock);
	if (ended)
		kx_reply_drop(conn->kx, req);
}

static void kx_credits(struct kx_xprt *kx, u32 credits)
{
	unsigned long cwnd = clamp(credits, 1u, (u32)KX_CREDITS) << RPC_CWNDSHIFT;

	if (READ_ONCE(kx->xprt.cwnd) == cwnd)
		return;
	spin_lock(&kx->xprt.transport_lock);
	kx->xprt.cwnd = cwnd;
	spin_unlock(&kx->xprt.transport_lock);
}

/* What a header says about the RPC: 0 if there is a reply. */
static int kx_reply_status(struct kx_xprt *kx, const struct kx_rep *rep, struct kx_req *req)
{
	const char *server = kx->xprt.address_strings[RPC_DISPLAY_ADDR];

	if (kx_reply_decode(rep->data, rep->length, &req->call, &req->reply)) {
		pr_warn_ratelimited("%s: a malformed reply\n", server);
		return -EIO;
	}
	if (req->reply.proc != KX_PROC_ERROR)
		return 0;
	if (req->reply.error == KX_ERR_VERS)
		pr_warn_ratelimited("%s: the server has versions %u to %u of RPC-over-RDMA, not %u\n",
				    server, req->reply.low, req->reply.high, KX_VERSION);
	else
		pr_warn_ratelimited("%s: the server could not use the chunks of a call\n", server);
	return -EIO;
}

/*
 * The request that has this XID, pinned, or NULL. sunrpc has it in its list before it is sent, too,
 * and a server may know its XID from an earlier connection: only what is sent has a reply.
 */
static struct kx_req *kx_find(struct kx_xprt *kx, __be32 xid)
{
	struct rpc_rqst *rqst;
	struct kx_req *req;
	bool found;

	spin_lock(&kx->xprt.queue_lock);
	rqst = xprt_lookup_rqst(&kx->xprt, xid);
	if (rqst)
		xprt_pin_rqst(rqst);
	spin_unlock(&kx->xprt.queue_lock);
	if (!rqst)
		return NULL;
	req = kx_req_of(rqst);
	spin_lock(&kx->lock);
	found = req->expected;
	req->expected = false;
	if (found)
		req->replied = true;
	spin_unlock(&kx->lock);
	if (found)
		return req;
	spin_lock(&kx->xprt.queue_lock);
	xprt_unpin_rqst(rqst);
	spin_unlock(&kx->xprt.queue_lock);
	return NULL;
}

/* Take a reply; return what is wrong with the server, or NULL. */
static const char *kx_reply(struct kx_conn *conn, struct kx_req *req, struct kx_rep *rep,
			    const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	struct kx_xprt *kx = conn->kx;
	DAT_RETURN ret = DAT_SUCCESS;
	const char *wrong = NULL;
	u32 nmrs;

	if (!req->signalled)
		kx_sent(kx, req);
	kx_reply_put(kx, req);		/* of a connection that ended */
	req->rep = rep;			/* kept until the slot is free, or the call is sent again */
	req->status = kx_reply_status(kx, rep, req);
	if (dto->operation == DAT_DTO_RECEIVE_WITH_INVALIDATE &&
	    !kx_invalidated(conn, req, dto->rmr_context)) {
		req->status = -EIO;
		wrong = "a reply has invalidated memory of another call";
	}
	spin_lock(&kx->lock);
	nmrs = req->nmrs;
	if (nmrs)
		ret = kx_invalidate(conn, req);
	spin_unlock(&kx->lock);
	if (!nmrs)
		kx_complete(kx, req);
	else if (ret != DAT_SUCCESS)
		kx_reply_refused(conn, req);
	return ret == DAT_SUCCESS ? wrong : "memory could not be taken back";
}

/* A message of the server; return what is wrong with the server, or NULL. */
static const char *kx_receive(struct kx_conn *conn, struct kx_rep *rep,
			      const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	struct kx_xprt *kx = conn->kx;
	struct kx_reply reply;
	struct kx_req *req;

	kx->xprt.reestablish_timeout = 0;	/* the server is there: reconnect at once */
	rep->length = dto->transfered_length;
	rep->held = true;
	if (kx_reply_fixed(rep->data, rep->length, &reply)) {
		kx_rep_put(kx, rep);
		return "a message without a header";
	}
	if (reply.version != KX_VERSION && reply.proc != KX_PROC_ERROR) {
		kx_rep_put(kx, rep);
		return "a message of another version";
	}
	if (kx_reverse_call(rep->data, rep->length, &reply) && kx_bc_receive(kx, rep, &reply))
		return NULL;
	req = kx_find(kx, reply.xid);
	if (!req) {
		/*
		 * A reply to an RPC that was given up, for example, or a second reply. If it has
		 * invalidated memory of another RPC, that cannot be invalidated later on, which
		 * ends the connection.
		 */
		kx_rep_put(kx, rep);
		return NULL;
	}
	kx_credits(kx, reply.credits);
	req->reply = reply;
	return kx_reply(conn, req, rep, dto);
}

static void kx_invalidate_done(struct kx_conn *conn, struct kx_req *req)
{
	kx_fenced(conn, req);
	if (req->replied)
		kx_complete(conn->kx, req);
}

void kx_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	struct kx_conn *conn = instance;
	const char *wrong = NULL;

	if (dto->status != DAT_DTO_SUCCESS) {
		/* The connection ends; kx_ended() and kx_disconnect() look after the rest. */
		if (dto->operation == DAT_DTO_LMR_INVALIDATE)
			kx_reply_refused(conn, dto->user_cookie.as_ptr);
		if (dto->status != DAT_DTO_ERR_FLUSHED)
			wrong = kdat_dto_status_name(dto->status);
	} else if (dto->operation == DAT_DTO_SEND) {
		kx_sent_until(conn->kx, dto->user_cookie.as_ptr);
	} else if (dto->operation == DAT_DTO_LMR_INVALIDATE) {
		kx_invalidate_done(conn, dto->user_cookie.as_ptr);
	} else {
		wrong = kx_receive(conn, dto->user_cookie.as_ptr, dto);
	}
	if (wrong && READ_ONCE(conn->kx->conn) == conn) {
		pr_warn_ratelimited("%s: connection given up: %s\n",
				    conn->kx->xprt.address_strings[RPC_DISPLAY_ADDR], wrong);
		xprt_force_disconnect(&conn->kx->xprt);
	}
}
