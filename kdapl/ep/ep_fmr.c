// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Posting the requests that bind LMRs and end their bindings. What they do to the LMR is in
 * mem/lmr_fmr.c and mem/lmr_state.c.
 */
#include <linux/export.h>
#include <linux/log2.h>
#include <linux/sizes.h>

#include "post.h"

#define FLAGS_INVALIDATE (KDAPL_FLAGS_RDMA | DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG)

/* Stands for a NULL list, since NULL means pages here. Refused once the handles are checked. */
static const struct kdat_sg fmr_no_sg;

static enum kdapl_verdict fmr_check_lmr(const struct kdapl_lmr *lmr)
{
	if (!lmr)
		return KDAPL_REFUSE_NO_LMR;
	return lmr->reserved ? KDAPL_REFUSE_RESERVED_LMR : KDAPL_ACCEPTED;
}

static enum kdapl_verdict fmr_check_pages(const struct kdapl_fmr *fmr)
{
	bool var = fmr->mem_type == DAT_MEM_TYPE_PHYSICAL_VAR_PAGES;
	u64 page_size = var ? fmr->region.for_array.page_size : PAGE_SIZE;
	const void *pages = var ? fmr->region.for_array.pages : fmr->region.for_physical;

	if (!var && fmr->mem_type != DAT_MEM_TYPE_PHYSICAL)
		return KDAPL_REFUSE_MEM_TYPE;
	if (!pages || page_size < PAGE_SIZE || page_size > SZ_1G || !is_power_of_2(page_size))
		return KDAPL_REFUSE_MEMORY;
	if (!fmr->num_pages ||
	    (fmr->lmr->fmr && fmr->num_pages > fmr->lmr->mem.sgt.orig_nents))
		return KDAPL_REFUSE_COUNT;
	return KDAPL_ACCEPTED;
}

static enum kdapl_verdict fmr_check_sg(const struct kdat_sg *sg)
{
	return sg->sgl && sg->nents > 0 && sg->length ? KDAPL_ACCEPTED : KDAPL_REFUSE_MEMORY;
}

static enum kdapl_verdict fmr_check(const struct kdapl_fmr *fmr)
{
	enum kdapl_verdict why = fmr->sg ? fmr_check_sg(fmr->sg) : fmr_check_pages(fmr);

	if (why)
		return why;
	if (fmr->priv & ~DAT_MEM_PRIV_ALL_FLAG)
		return KDAPL_REFUSE_PRIV;
	if (fmr->va_type != DAT_VA_TYPE_VA && fmr->va_type != DAT_VA_TYPE_ZB)
		return KDAPL_REFUSE_VA_TYPE;
	return KDAPL_ACCEPTED;
}

/* Carry out a binding, up to posting the request. */
static __always_inline enum kdapl_verdict fmr_begin(struct kdapl_fmr *fmr, struct kdapl_conn *conn,
						    struct kdapl_post *post)
{
	struct kdapl_lmr *lmr = fmr->lmr;
	enum kdapl_verdict why;

	if (lmr->mr.pd != conn->pd)
		return KDAPL_REFUSE_PZ;
	why = kdapl_fmr_begin(fmr, (unsigned long)conn->handle, &conn->op_owner,
			      READ_ONCE(conn->sq->mode) == KDAPL_WQ_LIVE, &post->seq);
	if (why)
		return why;
	post->obj = &lmr->obj;
	post->mr = lmr->mr.ibmr;
	post->key = fmr->key;
	post->access = kdapl_mr_access(fmr->priv);
	return KDAPL_ACCEPTED;
}

/* The same for an invalidation. */
static __always_inline enum kdapl_verdict fmr_begin_inv(struct kdapl_lmr *lmr,
							struct kdapl_conn *conn,
							struct kdapl_post *post)
{
	enum kdapl_verdict why;

	if (!lmr->fmr)
		return KDAPL_REFUSE_LMR_IN_USE;
	if (lmr->mr.pd != conn->pd)
		return KDAPL_REFUSE_PZ;
	why = kdapl_lmr_claim(lmr, KDAPL_LMR_INV, (unsigned long)conn->handle, &conn->op_owner,
			      READ_ONCE(conn->sq->mode) == KDAPL_WQ_LIVE, &post->seq);
	if (why)
		return why;
	post->obj = &lmr->obj;
	post->inv_key = lmr->mr.used;
	return KDAPL_ACCEPTED;
}

/**
 * kdapl_lmr_op_undo - undo an operation on an LMR that was not posted to the device
 * @post: its request; any other request is ignored
 *
 * Context: any.
 */
void kdapl_lmr_op_undo(const struct kdapl_post *post)
{
	struct kdapl_lmr *lmr = container_of(post->obj, struct kdapl_lmr, obj);

	if (post->op == DAT_DTO_LMR_INVALIDATE)
		kdapl_lmr_op_done(lmr, KDAPL_LMR_INV, post->seq, KDAPL_NEVER);
	if (post->op != DAT_DTO_LMR_FMR)
		return;
	if (!post->unposted)	/* a request that will be flushed keeps its key */
		kdapl_fmr_key_back(lmr, post->key, post->seq);
	kdapl_lmr_op_done(lmr, KDAPL_LMR_REG, post->seq, KDAPL_NEVER);
}

/* Arguments, flags, state: the handles have been checked. RCU read side. */
static enum kdapl_verdict fmr_check_call(const struct kdapl_fmr *fmr, struct kdapl_ep *ep,
					 struct kdapl_conn *conn, const struct kdapl_post *post)
{
	enum kdapl_verdict why;

	why = fmr_check(fmr) ?: kdapl_post_check_state(ep, conn, post, KDAPL_FLAGS_RDMA);
	return !why && !fmr->lmr->fmr ? KDAPL_REFUSE_LMR_IN_USE : why;
}

/* Post an operation that has begun. */
static enum kdapl_verdict fmr_post(struct kdapl_conn *conn, struct kdapl_post *post)
{
	enum kdapl_verdict why = kdapl_post_requests(conn, post, 1);

	if (why || post->unposted)
		kdapl_lmr_op_undo(post);
	return why;
}

static enum kdapl_verdict fmr_request(struct kdapl_fmr *fmr, struct kdapl_post *post,
				      struct kdapl_ep *ep)
{
	enum kdapl_verdict why = fmr_check_lmr(fmr->lmr);
	struct kdapl_conn *conn;

	if (why)
		return why;
	if (!ep)
		return KDAPL_REFUSE_NO_EP;
	conn = rcu_dereference(ep->conn);
	why = fmr_check_call(fmr, ep, conn, post);
	if (why)
		return why;
	if (!kdapl_dev_there(conn->dev))
		return KDAPL_REFUSE_NO_DEVICE;
	return fmr_begin(fmr, conn, post) ?: fmr_post(conn, post);
}

static DAT_RETURN fmr_call(struct kdapl_fmr *fmr, struct kdapl_post *post, enum kdapl_call call,
			   DAT_LMR_HANDLE lmr_handle, DAT_EP_HANDLE ep_handle,
			   DAT_LMR_CONTEXT *lmr_context, DAT_RMR_CONTEXT *rmr_context)
{
	struct kdapl_ep *ep;
	DAT_RETURN ret;

	rcu_read_lock();
	fmr->lmr = kdapl_handle_peek(lmr_handle, DAT_HANDLE_TYPE_LMR);
	ep = kdapl_handle_peek(ep_handle, DAT_HANDLE_TYPE_EP);
	ret = kdapl_post_ret(fmr_request(fmr, post, ep), ep, call);
	rcu_read_unlock();
	if (ret != DAT_SUCCESS)
		return ret;
	if (lmr_context)
		*lmr_context = fmr->key;
	if (rmr_context)
		*rmr_context = fmr->priv & KDAPL_PRIV_REMOTE ? fmr->key : 0;
	return ret;
}

/**
 * dat_lmr_fmr - bind an LMR to pages, on an EP
 * @lmr_handle: LMR of dat_lmr_allocate() that is not bound
 * @mem_type: DAT_MEM_TYPE_PHYSICAL or DAT_MEM_TYPE_PHYSICAL_VAR_PAGES
 * @region_description: for_physical or for_array: physical addresses of pages that
 *	have a struct page; the array is read during the call only
 * @num_pages: their number, at most what the LMR was allocated for. Soft-RoCE counts
 *	pages of PAGE_SIZE, whatever their size
 * @mem_privileges: rights of the binding
 * @va_type: DAT_VA_TYPE_VA: the region starts at the address of the first page;
 *	DAT_VA_TYPE_ZB: at 0
 * @ep_handle: EP of the LMR's PZ in CONNECTED; in DISCONNECTED the request is flushed
 *	and the LMR stays as it is
 * @user_cookie: comes back with the completion
 * @completion_flags: SUPPRESS, BARRIER_FENCE; UNSIGNALLED if the EP is configured
 *	for it
 * @lmr_context: where the key for local segments goes; may be NULL
 * @rmr_context: where the key for peers goes, 0 without remote rights; may be NULL
 *
 * The keys are new. Requests that are posted later on the same EP may use them at once.
 * The pages must stay until the binding has ended: until dat_lmr_invalidate()
 * completes, the peer has invalidated the key, or dat_lmr_free() returns. The
 * completion comes on the request EVD, with operation DAT_DTO_LMR_FMR.
 *
 * Context: any; does not sleep or allocate.
 * Return: DAT_SUCCESS (the registration will complete);
 * DAT_INVALID_HANDLE (LMR, EP); DAT_RESERVED_LMR;
 * DAT_INVALID_PARAMETER (memory type, rights, address type, flags; pages: too many,
 * not of that size, or without a struct page); DAT_INVALID_STATE
 * (subtype that of the EP; or LMR_IN_USE: bound, about to be unbound, or not of
 * dat_lmr_allocate()); DAT_PROTECTION_VIOLATION (EP of another PZ);
 * DAT_INSUFFICIENT_RESOURCES (subtype MEMORY_REGION: it cannot be mapped; TEP:
 * max_request_dtos are outstanding); DAT_MODEL_NOT_SUPPORTED (BARRIER_FENCE on a
 * device that cannot fence a registration); DAT_INTERNAL_ERROR (device removed).
 */
DAT_RETURN dat_lmr_fmr(DAT_LMR_HANDLE lmr_handle, DAT_MEM_TYPE mem_type,
		       DAT_REGION_DESCRIPTION region_description, DAT_VLEN num_pages,
		       DAT_MEM_PRIV_FLAGS mem_privileges, DAT_VA_TYPE va_type,
		       DAT_EP_HANDLE ep_handle, DAT_LMR_COOKIE user_cookie,
		       DAT_COMPLETION_FLAGS completion_flags, DAT_LMR_CONTEXT *lmr_context,
		       DAT_RMR_CONTEXT *rmr_context)
{
	struct kdapl_post post = {
		.cookie = user_cookie,
		.flags = completion_flags,
		.op = DAT_DTO_LMR_FMR,
	};
	struct kdapl_fmr fmr = {
		.mem_type = mem_type,
		.region = region_description,
		.num_pages = num_pages,
		.priv = mem_privileges,
		.va_type = va_type,
	};

	return fmr_call(&fmr, &post, KDAPL_CALL_LMR_FMR, lmr_handle, ep_handle, lmr_context,
			rmr_context);
}
EXPORT_SYMBOL(dat_lmr_fmr);

/**
 * kdat_lmr_fmr_sg - bind an LMR to a piece of memory, on an EP
 * @lmr_handle: LMR of dat_lmr_allocate() that is not bound
 * @sg: the exact bytes, for instance from a scatterlist of the block layer. If an entry
 *	does not start where the one before ends, both places must be page boundaries.
 *	At most as many entries as the LMR has pages
 * @mem_privileges: rights of the binding
 * @va_type: DAT_VA_TYPE_VA: the region starts at the physical address of the first
 *	byte; DAT_VA_TYPE_ZB: at 0, for memory that starts on a page
 * @ep_handle: EP, as for dat_lmr_fmr()
 * @user_cookie: comes back with the completion
 * @completion_flags: as for dat_lmr_fmr()
 * @lmr_context: where the key for local segments goes; may be NULL
 * @rmr_context: where the key for peers goes; may be NULL
 * @address: where the address of the first byte goes, for use in segments and by peers;
 *	may be NULL
 *
 * Otherwise as dat_lmr_fmr(). Neither local segments nor peers reach memory before the first
 * or behind the last byte. An extension of this provider.
 *
 * Context: any; does not sleep or allocate.
 * Return: as dat_lmr_fmr(); DAT_INVALID_PARAMETER (@sg: NULL, empty, shorter
 * than its length, with gaps, or with more entries than the LMR has pages).
 */
DAT_RETURN kdat_lmr_fmr_sg(DAT_LMR_HANDLE lmr_handle, const struct kdat_sg *sg,
			   DAT_MEM_PRIV_FLAGS mem_privileges, DAT_VA_TYPE va_type,
			   DAT_EP_HANDLE ep_handle, DAT_LMR_COOKIE user_cookie,
			   DAT_COMPLETION_FLAGS completion_flags, DAT_LMR_CONTEXT *lmr_context,
			   DAT_RMR_CONTEXT *rmr_context, DAT_VADDR *address)
{
	struct kdapl_post post = {
		.cookie = user_cookie,
		.flags = completion_flags,
		.op = DAT_DTO_LMR_FMR,
	};
	struct kdapl_fmr fmr = {
		.sg = sg,
		.priv = mem_privileges,
		.va_type = va_type,
	};
	DAT_RETURN ret;

	if (!sg)
		fmr.sg = &fmr_no_sg;
	ret = fmr_call(&fmr, &post, KDAPL_CALL_LMR_FMR_SG, lmr_handle, ep_handle, lmr_context,
		       rmr_context);
	if (ret == DAT_SUCCESS && address)
		*address = fmr.start;
	return ret;
}
EXPORT_SYMBOL(kdat_lmr_fmr_sg);

static enum kdapl_verdict fmr_invalidate(struct kdapl_lmr *lmr, struct kdapl_ep *ep,
					 struct kdapl_post *post)
{
	enum kdapl_verdict why = fmr_check_lmr(lmr);
	struct kdapl_conn *conn;

	if (why)
		return why;
	if (!ep)
		return KDAPL_REFUSE_NO_EP;
	conn = rcu_dereference(ep->conn);
	return kdapl_post_check_state(ep, conn, post, FLAGS_INVALIDATE) ?:
	       fmr_begin_inv(lmr, conn, post) ?: fmr_post(conn, post);
}

/**
 * dat_lmr_invalidate - end the binding of an LMR, on an EP
 * @lmr_handle: LMR bound by dat_lmr_fmr()
 * @ep_handle: EP of the LMR's PZ in CONNECTED; with DAT_LMR_SCOPE_EP the one that has
 *	bound it. In DISCONNECTED the request is flushed and the binding stays
 * @user_cookie: comes back with the completion
 * @completion_flags: SUPPRESS, BARRIER_FENCE (wait for all Reads posted before),
 *	LMR_INVALIDATE_FENCE (wait for all requests posted before; some drivers
 *	promise it for Reads only, see Documentation/adapters.md); UNSIGNALLED if
 *	the EP is configured for it
 *
 * Requests posted later cannot use the keys. Once the completion comes, with operation
 * DAT_DTO_LMR_INVALIDATE, peers cannot either, and the memory is the consumer's. If the
 * request is flushed, the binding stays in effect until it is invalidated on another
 * connection, or until dat_lmr_free().
 *
 * Context: any; does not sleep or allocate.
 * Return: DAT_SUCCESS (the invalidation will complete);
 * DAT_INVALID_HANDLE (LMR, EP); DAT_RESERVED_LMR;
 * DAT_INVALID_PARAMETER (flags); DAT_INVALID_STATE (subtype that of the EP;
 * LMR_FREE: not bound, or being invalidated already; LMR_IN_USE: an RMR is bound
 * to it, or it is not of dat_lmr_allocate()); DAT_PROTECTION_VIOLATION (EP of
 * another PZ, or not the one that has bound it); DAT_INSUFFICIENT_RESOURCES
 * (max_request_dtos are outstanding); DAT_INTERNAL_ERROR (device removed).
 */
DAT_RETURN dat_lmr_invalidate(DAT_LMR_HANDLE lmr_handle, DAT_EP_HANDLE ep_handle,
			      DAT_LMR_COOKIE user_cookie, DAT_COMPLETION_FLAGS completion_flags)
{
	struct kdapl_post post = {
		.cookie = user_cookie,
		.flags = completion_flags,
		.op = DAT_DTO_LMR_INVALIDATE,
	};
	enum kdapl_verdict why;
	struct kdapl_ep *ep;
	DAT_RETURN ret;

	rcu_read_lock();
	ep = kdapl_handle_peek(ep_handle, DAT_HANDLE_TYPE_EP);
	why = fmr_invalidate(kdapl_handle_peek(lmr_handle, DAT_HANDLE_TYPE_LMR), ep, &post);
	ret = kdapl_post_ret(why, ep, KDAPL_CALL_LMR_INVALIDATE);
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_lmr_invalidate);

/**
 * kdapl_lmr_op_begin - check and begin an LMR_FMR or LMR_INVALIDATE of a list
 * @ep: EP
 * @conn: its connection, or NULL
 * @in: what is asked for
 * @post: what is to be posted, with cookie, flags and operation
 *
 * Context: any; RCU read side, after kdapl_dev_there().
 * Return: KDAPL_ACCEPTED: kdapl_lmr_op_undo() must be called unless it is posted; or the reason
 * to refuse it.
 */
enum kdapl_verdict kdapl_lmr_op_begin(struct kdapl_ep *ep, struct kdapl_conn *conn,
				      const struct kdat_request *in, struct kdapl_post *post)
{
	struct kdapl_fmr fmr = {
		.lmr = kdapl_handle_peek(in->lmr_handle, DAT_HANDLE_TYPE_LMR),
		.sg = in->sg ?: &fmr_no_sg,
		.priv = in->mem_privileges,
		.va_type = in->va_type,
	};
	enum kdapl_verdict why = fmr_check_lmr(fmr.lmr);

	if (why)
		return why;
	if (post->op == DAT_DTO_LMR_FMR)
		return fmr_check_call(&fmr, ep, conn, post) ?: fmr_begin(&fmr, conn, post);
	return kdapl_post_check_state(ep, conn, post, FLAGS_INVALIDATE) ?:
	       fmr_begin_inv(fmr.lmr, conn, post);
}
