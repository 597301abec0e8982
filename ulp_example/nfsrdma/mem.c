// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Memory: the pages that messages are in, and keys to the memory of RPCs. A key is valid from the
 * call that carries it until one of these, each of which the RPC waits for:
 *
 *	the reply invalidates it	kx_invalidated()
 *	the reply does not		kx_invalidate(), and its completion
 *	there is no reply		kx_req_fence()
 *	the connection ends		kx_ended(), kx_disconnect()
 */
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include "kx.h"

/* ---- pages and buffers of a transport ---- */

void kx_mem_exit(struct kx_xprt *kx)
{
	int i;

	for (i = 0; kx->reqs && i < KX_REQS; i++) {
		free_page((unsigned long)kx->reqs[i].msg);
		kfree(kx->reqs[i].call_buf);
		kfree(kx->reqs[i].reply_buf);
	}
	for (i = 0; i < KX_REPS; i++)
		free_page((unsigned long)kx->reps[i].data);
	kvfree(kx->reqs);
	kvfree(kx->batch);
}

static int kx_req_init(struct kx_xprt *kx, int i)
{
	struct kx_req *req = &kx->reqs[i];

	req->number = i;
	refcount_set(&req->refs, 1);	/* the RPC layer's, also while it is free */
	init_completion(&req->fenced);
	list_add_tail(&req->node, i < KX_CREDITS ? &kx->free : &kx->bc_free);
	req->msg = (void *)__get_free_page(GFP_KERNEL);
	if (!req->msg)
		return -ENOMEM;
	/* The service that answers the server takes the buffer for a whole page. */
	return i < KX_CREDITS || kx_grow(kx, &req->call_buf, &req->call_size, PAGE_SIZE,
					 GFP_KERNEL) ? 0 : -ENOMEM;
}

/* What all connections of the transport use. After a failure kx_mem_exit() frees what there is. */
int kx_mem_init(struct kx_xprt *kx)
{
	int i, err = 0;

	INIT_LIST_HEAD(&kx->sent);
	INIT_LIST_HEAD(&kx->free);
	INIT_LIST_HEAD(&kx->bc_free);
	kx->batch = kvzalloc(sizeof(*kx->batch), GFP_KERNEL);
	kx->reqs = kvcalloc(KX_REQS, sizeof(*kx->reqs), GFP_KERNEL);
	if (!kx->batch || !kx->reqs)
		return -ENOMEM;
	sg_init_table(kx->batch->sgl, ARRAY_SIZE(kx->batch->sgl));
	for (i = 0; !err && i < KX_REQS; i++)
		err = kx_req_init(kx, i);
	for (i = 0; !err && i < KX_REPS; i++) {
		kx->reps[i].number = i;
		kx->reps[i].data = (void *)__get_free_page(GFP_KERNEL);
		if (!kx->reps[i].data)
			err = -ENOMEM;
	}
	return err;
}

/* Make a buffer large enough. It stays with its request, so this soon allocates nothing. */
bool kx_grow(struct kx_xprt *kx, void **buf, size_t *size, size_t want, gfp_t gfp)
{
	void *new;

	if (want <= *size)
		return true;
	want = roundup_pow_of_two(want);
	new = kmalloc(want, gfp);
	if (!new)
		return false;
	kfree(*buf);
	*buf = new;
	*size = want;
	kx->stats.grown += want;
	return true;
}

/* ---- LMRs of a connection ---- */

DAT_RETURN kx_mrs_create(struct kx_conn *conn)
{
	DAT_RETURN ret = DAT_SUCCESS;
	int i;

	for (i = 0; i < conn->nmrs && ret == DAT_SUCCESS; i++) {
		ret = dat_lmr_allocate(conn->ia, conn->pz, conn->mr_pages, DAT_LMR_SCOPE_EP,
				       &conn->mrs[i].lmr);
		if (ret == DAT_SUCCESS) {
			list_add_tail(&conn->mrs[i].node, &conn->free_mrs);
			conn->kx->stats.mrs_allocated++;
		}
	}
	/* Half of them will do, on an adapter that does not have more. */
	return i > conn->nmrs / 2 ? DAT_SUCCESS : ret;
}

static void kx_put_mr(struct kx_conn *conn, struct kx_req *req, u32 i)
{
	lockdep_assert_held(&conn->kx->lock);
	list_add(&req->mr[i]->node, &conn->free_mrs);
	req->mr[i] = req->mr[--req->nmrs];
}

/* ---- memory to key ---- */

/* The end of one range of memory: its key and its address go into the chunk. */
static int kx_map_end(struct kx_xprt *kx, struct kx_req *req, u32 from, u32 length,
		      struct kx_chunk *chunk)
{
	struct kx_batch *batch = kx->batch;
	DAT_LMR_CONTEXT lkey;
	struct kx_mr *mr;

	if (batch->n >= KX_REQ_MRS || chunk->n >= KX_SEGS)
		return -EIO;
	spin_lock(&kx->lock);
	mr = list_first_entry_or_null(&kx->conn->free_mrs, struct kx_mr, node);
	if (mr) {
		list_del(&mr->node);
		req->mr[req->nmrs++] = mr;
	} else {
		/* Before the lock is dropped: an LMR that becomes free wakes the sender. */
		xprt_wait_for_buffer_space(&kx->xprt);
		kx->stats.no_mrs++;
	}
	spin_unlock(&kx->lock);
	if (!mr)
		return -EAGAIN;
	if (kdat_lmr_next_contexts(mr->lmr, &lkey, &mr->key) != DAT_SUCCESS)
		return -ENOTCONN;
	batch->sg[batch->n++] = (struct kdat_sg) {
		.sgl = &batch->sgl[from],
		.nents = batch->nents - from,
		.length = length,
	};
	chunk->seg[chunk->n++] = (struct kx_seg) {
		.handle = mr->key,
		.length = length,
		.offset = sg_phys(&batch->sgl[from]),
	};
	return 0;
}

static int kx_add_page(struct kx_batch *batch, struct page *page, u32 length, u32 offset)
{
	if (batch->nents >= ARRAY_SIZE(batch->sgl))
		return -EIO;
	sg_set_page(&batch->sgl[batch->nents++], page, length, offset);
	return 0;
}

/* Head or tail: contiguous memory of the kernel. */
static int kx_map_kvec(struct kx_xprt *kx, struct kx_req *req, const struct kvec *vec,
		       struct kx_chunk *chunk)
{
	u32 from = kx->batch->nents;

	if (!vec->iov_len)
		return 0;
	return kx_add_page(kx->batch, virt_to_page(vec->iov_base), vec->iov_len,
			   offset_in_page(vec->iov_base)) ?:
	       kx_map_end(kx, req, from, vec->iov_len, chunk);
}

/* The pages: as many LMRs as it takes. */
static int kx_map_pages(struct kx_xprt *kx, struct kx_req *req, const struct xdr_buf *buf,
			struct kx_chunk *chunk)
{
	struct page **page = buf->pages + (buf->page_base >> PAGE_SHIFT);
	u32 offset = offset_in_page(buf->page_base), left = buf->page_len;
	u32 from, piece, done, length;
	int err = 0;

	for (; left && !err; left -= piece) {
		from = kx->batch->nents;
		piece = kx_piece(offset, left, kx->conn->mr_pages, PAGE_SIZE);
		for (done = 0; done < piece && !err; done += length) {
			length = min_t(u32, PAGE_SIZE - offset, piece - done);
			err = kx_add_page(kx->batch, *page++, length, offset);
			offset = 0;
		}
		err = err ?: kx_map_end(kx, req, from, piece, chunk);
	}
	return err;
}

/**
 * kx_map - take LMRs for memory of a call, and describe it to the server
 * @kx: the transport; XPRT_LOCKED
 * @req: the request
 * @buf: call or reply
 * @way: KX_WAY_DATA: the pages only; KX_WAY_ALL: head, pages and tail
 * @chunk: the segments are added here
 *
 * Return: 0; -EAGAIN if the sender is to wait for an LMR; -EIO if the memory needs too many.
 *	Whatever it is, kx_unmap() gives back what was taken, unless kx_post_call() has succeeded.
 */
int kx_map(struct kx_xprt *kx, struct kx_req *req, const struct xdr_buf *buf, enum kx_way way,
	   struct kx_chunk *chunk)
{
	if (way == KX_WAY_INLINE)
		return 0;
	if (way == KX_WAY_DATA)
		return kx_map_pages(kx, req, buf, chunk);
	return kx_map_kvec(kx, req, &buf->head[0], chunk) ?:
	       kx_map_pages(kx, req, buf, chunk) ?:
	       kx_map_kvec(kx, req, &buf->tail[0], chunk);
}

/* Nothing was posted: the LMRs are free again. */
void kx_unmap(struct kx_xprt *kx, struct kx_req *req)
{
	spin_lock(&kx->lock);
	while (req->nmrs)
		kx_put_mr(kx->conn, req, req->nmrs - 1);
	spin_unlock(&kx->lock);
}

/* ---- Sends ---- */

/*
 * A Send without a completion costs less. One of several has a completion, which by the order of
 * the queue covers those before it. A reply proves the same of its call: if the Send is repeated
 * after that, the server drops it by its sequence number. An answer to the server has no reply.
 */
static bool kx_wants_signal(const struct kx_xprt *kx, const struct kx_req *req)
{
	return req->number >= KX_CREDITS || kx->quiet + 1 >= KX_SIGNAL_EVERY;
}

/* Post the end of a call. The handlers of its reply and completion wait for the lock. */
static DAT_RETURN kx_post_send(struct kx_conn *conn, struct kx_req *req,
			       struct kdat_request *list, DAT_COUNT n, bool signalled)
{
	struct kx_xprt *kx = conn->kx;
	DAT_RETURN ret = DAT_INVALID_STATE;
	DAT_COUNT failed;

	spin_lock(&kx->lock);
	if (!conn->ended)
		ret = kdat_ep_post_list(conn->ep, list, n, &failed);
	if (ret == DAT_SUCCESS) {
		refcount_inc(&req->refs);
		req->signalled = signalled;
		req->sending = true;
		req->expected = req->number < KX_CREDITS;
		list_add_tail(&req->sent, &kx->sent);
		kx->quiet = signalled ? 0 : kx->quiet + 1;
	}
	spin_unlock(&kx->lock);
	return ret;
}

/* The Send of a request does not use its message any more. */
void kx_sent(struct kx_xprt *kx, struct kx_req *req)
{
	bool sending;

	spin_lock(&kx->lock);
	sending = req->sending;
	req->sending = false;
	if (sending)
		list_del(&req->sent);
	spin_unlock(&kx->lock);
	if (sending)
		kx_req_put(req);
}

/* The Send of @last has completed, and those before it. In the upcall. */
void kx_sent_until(struct kx_xprt *kx, struct kx_req *last)
{
	struct kx_req *req;

	do {
		spin_lock(&kx->lock);
		req = last->sending ? list_first_entry(&kx->sent, struct kx_req, sent) : last;
		spin_unlock(&kx->lock);
		kx_sent(kx, req);
	} while (req != last);
}

/**
 * kx_post_call - register the memory of a call, and send it
 * @conn: the connection; XPRT_LOCKED
 * @req: the request, @req->msg is complete. Nothing else looks at it until it is sent
 * @length: of the message
 * @results_from: the first so many LMRs are read by the server, the others are written
 *
 * Registrations ask for no completion: a Send that succeeds proves that they have, too.
 *
 * Return: 0; -ENOBUFS if there is no room and nothing was posted; -ENOTCONN: disconnect.
 */
int kx_post_call(struct kx_conn *conn, struct kx_req *req, u32 length, u32 results_from)
{
	DAT_LMR_TRIPLET iov = kx_segment(conn->send, req->number, length);
	struct kdat_request list[KDAT_POST_LIST_MAX];
	DAT_RETURN ret = DAT_SUCCESS;
	bool signalled = kx_wants_signal(conn->kx, req);
	u32 i, nmrs = req->nmrs, posted = 0;
	DAT_COUNT n = 0, failed;

	for (i = 0; i <= nmrs && ret == DAT_SUCCESS; i++) {
		if (i < nmrs)
			list[n++] = (struct kdat_request) {
				.op = KDAT_REQUEST_LMR_FMR,
				.completion_flags = DAT_COMPLETION_SUPPRESS_FLAG,
				.user_cookie.as_ptr = req,
				.lmr_handle = req->mr[i]->lmr,
				.sg = &conn->kx->batch->sg[i],
				.mem_privileges = i < results_from ? DAT_MEM_PRIV_REMOTE_READ_FLAG :
								     DAT_MEM_PRIV_REMOTE_WRITE_FLAG,
				.va_type = DAT_VA_TYPE_VA,
			};
		else
			list[n++] = (struct kdat_request) {
				.op = KDAT_REQUEST_SEND,
				.completion_flags = signalled ? DAT_COMPLETION_DEFAULT_FLAG :
								DAT_COMPLETION_SUPPRESS_FLAG,
				.user_cookie.as_ptr = req,
				.num_segments = 1,
				.local_iov = &iov,
			};
		if (n < ARRAY_SIZE(list) && i < nmrs)
			continue;
		ret = i < nmrs ? kdat_ep_post_list(conn->ep, list, n, &failed) :
				 kx_post_send(conn, req, list, n, signalled);
		if (ret == DAT_SUCCESS)
			posted += n;
		n = 0;
	}
	if (ret == DAT_SUCCESS)
		return 0;
	return DAT_GET_TYPE(ret) == DAT_INSUFFICIENT_RESOURCES && !posted ? -ENOBUFS : -ENOTCONN;
}

/* ---- the end of keys ---- */

#define KX_FENCE_PATIENCE	(5 * HZ)

/*
 * Has the reply invalidated a key of this request? Then that memory is ours again. The server may
 * choose that to the padding, too, which all requests have in common.
 */
bool kx_invalidated(struct kx_conn *conn, struct kx_req *req, DAT_RMR_CONTEXT key)
{
	struct kx_xprt *kx = conn->kx;
	bool found = false;
	u32 i;

	spin_lock(&kx->lock);
	for (i = 0; i < req->nmrs && !found; i++) {
		found = req->mr[i]->key == key;
		if (found)
			kx_put_mr(conn, req, i);
	}
	spin_unlock(&kx->lock);
	xprt_write_space(&kx->xprt);
	if (!found && key == conn->pad.handle) {
		WRITE_ONCE(conn->pad_gone, true);
		found = true;
	}
	return found;
}

/* Invalidate all keys of a request; kx_fenced() when the last one is. */
DAT_RETURN kx_invalidate(struct kx_conn *conn, struct kx_req *req)
{
	struct kdat_request list[KDAT_POST_LIST_MAX];
	DAT_RETURN ret = DAT_SUCCESS;
	DAT_COUNT n = 0, failed;
	u32 i;

	lockdep_assert_held(&conn->kx->lock);
	for (i = 0; i < req->nmrs && ret == DAT_SUCCESS; i++) {
		bool last = i + 1 == req->nmrs;

		list[n++] = (struct kdat_request) {
			.op = KDAT_REQUEST_LMR_INVALIDATE,
			.completion_flags = last ? DAT_COMPLETION_DEFAULT_FLAG :
						   DAT_COMPLETION_SUPPRESS_FLAG,
			.user_cookie.as_ptr = req,
			.lmr_handle = req->mr[i]->lmr,
		};
		if (n < ARRAY_SIZE(list) && !last)
			continue;
		ret = kdat_ep_post_list(conn->ep, list, n, &failed);
		n = 0;
	}
	conn->kx->stats.invalidated++;
	return ret;
}

/* No key of this request is valid any more: the memory is the caller's again. */
void kx_fenced(struct kx_conn *conn, struct kx_req *req)
{
	struct kx_xprt *kx = conn->kx;

	spin_lock(&kx->lock);
	while (req->nmrs)
		kx_put_mr(conn, req, req->nmrs - 1);
	kx_fence_end(req);
	spin_unlock(&kx->lock);
	xprt_write_space(&kx->xprt);
}

/* Under kx->lock. What LMRs @req still has go with the connection, which has ended. */
void kx_fence_end(struct kx_req *req)
{
	req->nmrs = 0;
	if (req->waiting)
		complete(&req->fenced);
	req->waiting = false;
}

/**
 * kx_req_fence - wait until the server does not reach the memory of an RPC
 * @kx: the transport
 * @req: its RPC ends without a reply, or is encoded anew
 * @hang_up: end the connection for that
 *
 * The wait ends with the last invalidation, the end of the connection, or kx_disconnect(). None of
 * them needs sunrpc's workqueues: when memory is short, the caller may be their only thread. If a
 * reply is being looked at, sunrpc itself waits for that.
 */
void kx_req_fence(struct kx_xprt *kx, struct kx_req *req, bool hang_up)
{
	struct kx_conn *conn;
	bool sent, wait;

	spin_lock(&kx->lock);
	conn = kx->conn;
	sent = req->expected;
	wait = sent && req->nmrs;
	req->expected = false;
	if (wait && conn && conn->ended) {
		kx_fence_end(req);
		wait = false;
	}
	if (wait) {
		reinit_completion(&req->fenced);
		req->waiting = true;
	}
	if (sent && conn && (hang_up || (wait && kx_invalidate(conn, req) != DAT_SUCCESS)))
		dat_ep_disconnect(conn->ep, DAT_CLOSE_ABRUPT_FLAG);
	spin_unlock(&kx->lock);
	if (!wait || wait_for_completion_timeout(&req->fenced, KX_FENCE_PATIENCE))
		return;
	/* Sends before the invalidation make no progress. */
	spin_lock(&kx->lock);
	if (req->waiting && kx->conn)
		dat_ep_disconnect(kx->conn->ep, DAT_CLOSE_ABRUPT_FLAG);
	spin_unlock(&kx->lock);
	wait_for_completion(&req->fenced);
}
