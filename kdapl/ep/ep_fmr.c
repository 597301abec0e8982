// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The requests that bind LMRs and end their bindings: checked, begun, posted. What they do to the
 * LMR is in lmr_fmr.c and lmr_state.c.
 */
#include <linux/export.h>
#include <linux/log2.h>
#include <linux/sizes.h>

#include "post.h"

#define FLAGS_INVALIDATE (KDAPL_FLAGS_RDMA | DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG)

/* Stands for NULL: the handles are looked at first. */
static const struct kdat_sg fmr_no_sg;

static DAT_RETURN fmr_check_pages(const struct kdapl_fmr *fmr)
{
	bool var = fmr->mem_type == DAT_MEM_TYPE_PHYSICAL_VAR_PAGES;
	u64 page_size = var ? fmr->region.for_array.page_size : PAGE_SIZE;
	const void *pages = var ? fmr->region.for_array.pages : fmr->region.for_physical;

	if (!pages || page_size < PAGE_SIZE || page_size > SZ_1G || !is_power_of_2(page_size))
		return kdapl_arg_err(fmr->arg[KDAPL_FMR_MEM]);
	if (!fmr->num_pages ||
	    (fmr->lmr->fmr && fmr->num_pages > fmr->lmr->mem.sgt.orig_nents))
		return kdapl_arg_err(fmr->arg[KDAPL_FMR_COUNT]);
	return DAT_SUCCESS;
}

static DAT_RETURN fmr_check(const struct kdapl_fmr *fmr)
{
	DAT_RETURN ret = DAT_SUCCESS;

	if (!fmr->sg && fmr->mem_type != DAT_MEM_TYPE_PHYSICAL &&
	    fmr->mem_type != DAT_MEM_TYPE_PHYSICAL_VAR_PAGES)
		return kdapl_arg_err(2);
	if (!fmr->sg)
		ret = fmr_check_pages(fmr);
	else if (!fmr->sg->sgl || fmr->sg->nents <= 0 || !fmr->sg->length)
		ret = kdapl_arg_err(fmr->arg[KDAPL_FMR_MEM]);
	if (ret != DAT_SUCCESS)
		return ret;
	if (fmr->priv & ~DAT_MEM_PRIV_ALL_FLAG)
		return kdapl_arg_err(fmr->arg[KDAPL_FMR_PRIV]);
	if (fmr->va_type != DAT_VA_TYPE_VA && fmr->va_type != DAT_VA_TYPE_ZB)
		return kdapl_arg_err(fmr->arg[KDAPL_FMR_VA]);
	return DAT_SUCCESS;
}

/* Everything but the posting. */
static __always_inline DAT_RETURN fmr_begin(struct kdapl_fmr *fmr, struct kdapl_conn *conn,
					    struct kdapl_post *post)
{
	struct kdapl_lmr *lmr = fmr->lmr;
	DAT_RETURN ret;

	if (lmr->mr.pd != conn->pd)
		return kdapl_err(DAT_PROTECTION_VIOLATION, DAT_NO_SUBTYPE);
	ret = kdapl_fmr_begin(fmr, (unsigned long)conn->handle, &conn->op_owner,
			      READ_ONCE(conn->sq->mode) == KDAPL_WQ_LIVE, &post->seq);
	if (ret != DAT_SUCCESS)
		return ret;
	post->obj = &lmr->obj;
	post->mr = lmr->mr.ibmr;
	post->key = fmr->key;
	post->access = kdapl_mr_access(fmr->priv);
	return ret;
}

static __always_inline DAT_RETURN fmr_begin_inv(struct kdapl_lmr *lmr, struct kdapl_conn *conn,
						struct kdapl_post *post)
{
	DAT_RETURN ret;

	if (!lmr->fmr)
		return kdapl_err(DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE);
	if (lmr->mr.pd != conn->pd)
		return kdapl_err(DAT_PROTECTION_VIOLATION, DAT_NO_SUBTYPE);
	ret = kdapl_lmr_claim(lmr, KDAPL_LMR_INV, (unsigned long)conn->handle, &conn->op_owner,
			      READ_ONCE(conn->sq->mode) == KDAPL_WQ_LIVE, &post->seq);
	if (ret != DAT_SUCCESS)
		return ret;
	post->obj = &lmr->obj;
	post->inv_key = lmr->mr.used;
	return DAT_SUCCESS;
}

/**
 * kdapl_lmr_op_undo - a request of dat_lmr_fmr() or dat_lmr_invalidate() was not posted
 * @post: the request, or any other
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
	if (!post->soft)	/* what will be flushed has had its key */
		kdapl_fmr_key_back(lmr, post->key);
	kdapl_lmr_op_done(lmr, KDAPL_LMR_REG, post->seq, KDAPL_NEVER);
}

/* Handles, arguments, flags, state, in the order of GEN-10; RCU read side. */
static DAT_RETURN fmr_check_call(const struct kdapl_fmr *fmr, struct kdapl_ep *ep,
				 struct kdapl_conn *conn, const struct kdapl_post *post)
{
	DAT_RETURN ret;

	ret = fmr_check(fmr);
	if (ret == DAT_SUCCESS)
		ret = kdapl_post_check_common(ep, conn, post, KDAPL_FLAGS_RDMA);
	if (ret == DAT_SUCCESS && !fmr->lmr->fmr)
		ret = kdapl_err(DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE);
	return ret;
}

/* Post what has begun. */
static DAT_RETURN fmr_post(struct kdapl_ep *ep, struct kdapl_conn *conn, struct kdapl_post *post)
{
	DAT_RETURN ret = kdapl_post_requests(ep, conn, post, 1);

	if (ret != DAT_SUCCESS || post->soft)
		kdapl_lmr_op_undo(post);
	return ret;
}

static DAT_RETURN __fmr_call(struct kdapl_fmr *fmr, struct kdapl_post *post,
			     DAT_LMR_HANDLE lmr_handle, DAT_EP_HANDLE ep_handle)
{
	struct kdapl_ep *ep = kdapl_handle_peek(ep_handle, DAT_HANDLE_TYPE_EP);
	struct kdapl_conn *conn;
	DAT_RETURN ret;

	fmr->lmr = kdapl_handle_peek(lmr_handle, DAT_HANDLE_TYPE_LMR);
	ret = kdapl_lmr_check(fmr->lmr);
	if (ret != DAT_SUCCESS)
		return ret;
	if (!ep)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	conn = rcu_dereference(ep->conn);
	ret = fmr_check_call(fmr, ep, conn, post);
	if (ret != DAT_SUCCESS)
		return ret;
	if (!kdapl_dev_there(conn->dev))
		return kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	ret = fmr_begin(fmr, conn, post);
	if (ret == DAT_SUCCESS)
		ret = fmr_post(ep, conn, post);
	return ret;
}

static DAT_RETURN fmr_call(struct kdapl_fmr *fmr, struct kdapl_post *post,
			   DAT_LMR_HANDLE lmr_handle, DAT_EP_HANDLE ep_handle,
			   DAT_LMR_CONTEXT *lmr_context, DAT_RMR_CONTEXT *rmr_context)
{
	DAT_RETURN ret;

	rcu_read_lock();
	ret = __fmr_call(fmr, post, lmr_handle, ep_handle);
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
 * @num_pages: how many, at most those the LMR was allocated for. Soft-RoCE counts
 *	pages of PAGE_SIZE, whatever their size
 * @mem_privileges: exactly these rights are given
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
 * The keys are new ones, and may be used in requests posted later on the same EP at
 * once. The pages must stay until the binding has ended: until dat_lmr_invalidate()
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
		.flags_arg = 9,
	};
	struct kdapl_fmr fmr = {
		.mem_type = mem_type,
		.region = region_description,
		.num_pages = num_pages,
		.priv = mem_privileges,
		.va_type = va_type,
		.arg = { 3, 4, 5, 6 },
	};

	return fmr_call(&fmr, &post, lmr_handle, ep_handle, lmr_context, rmr_context);
}
EXPORT_SYMBOL(dat_lmr_fmr);

/**
 * kdat_lmr_fmr_sg - bind an LMR to a piece of memory, on an EP
 * @lmr_handle: LMR of dat_lmr_allocate() that is not bound
 * @sg: the memory, to the byte: the block layer's scatterlist for instance. Where it
 *	does not go on, one entry has to end and the next to start on a page; as many
 *	entries as the LMR has pages
 * @mem_privileges: exactly these rights are given
 * @va_type: DAT_VA_TYPE_VA: the region starts at the physical address of the first
 *	byte; DAT_VA_TYPE_ZB: at 0, for memory that starts on a page
 * @ep_handle: EP, as for dat_lmr_fmr()
 * @user_cookie: comes back with the completion
 * @completion_flags: as for dat_lmr_fmr()
 * @lmr_context: where the key for local segments goes; may be NULL
 * @rmr_context: where the key for peers goes; may be NULL
 * @address: where the address of the first byte goes, as segments and peers name it;
 *	may be NULL
 *
 * As dat_lmr_fmr() else. Neither local segments nor peers get beyond the first
 * or the last byte. An extension of this provider.
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
		.flags_arg = 7,
	};
	struct kdapl_fmr fmr = {
		.sg = sg,
		.priv = mem_privileges,
		.va_type = va_type,
		.arg = { 2, 2, 3, 4 },
	};
	DAT_RETURN ret;

	if (!sg)
		fmr.sg = &fmr_no_sg;
	ret = fmr_call(&fmr, &post, lmr_handle, ep_handle, lmr_context, rmr_context);
	if (ret == DAT_SUCCESS && address)
		*address = fmr.start;
	return ret;
}
EXPORT_SYMBOL(kdat_lmr_fmr_sg);

static DAT_RETURN fmr_invalidate(DAT_LMR_HANDLE lmr_handle, DAT_EP_HANDLE ep_handle,
				 struct kdapl_post *post)
{
	struct kdapl_lmr *lmr = kdapl_handle_peek(lmr_handle, DAT_HANDLE_TYPE_LMR);
	struct kdapl_ep *ep = kdapl_handle_peek(ep_handle, DAT_HANDLE_TYPE_EP);
	struct kdapl_conn *conn;
	DAT_RETURN ret;

	ret = kdapl_lmr_check(lmr);
	if (ret != DAT_SUCCESS)
		return ret;
	if (!ep)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	conn = rcu_dereference(ep->conn);
	ret = kdapl_post_check_common(ep, conn, post, FLAGS_INVALIDATE);
	if (ret == DAT_SUCCESS)
		ret = fmr_begin_inv(lmr, conn, post);
	if (ret == DAT_SUCCESS)
		ret = fmr_post(ep, conn, post);
	return ret;
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
 * Requests posted later cannot name the keys. When the completion comes, with
 * operation DAT_DTO_LMR_INVALIDATE, peers cannot either, and the memory is the
 * consumer's. If it is flushed the binding is in effect as before, until it is
 * invalidated on another connection, or dat_lmr_free().
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
		.flags_arg = 4,
	};
	DAT_RETURN ret;

	rcu_read_lock();
	ret = fmr_invalidate(lmr_handle, ep_handle, &post);
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_lmr_invalidate);

/**
 * kdapl_lmr_op_begin - prepare an LMR_FMR or LMR_INVALIDATE of a list
 * @ep: EP
 * @conn: its connection, or NULL
 * @in: what is asked for
 * @post: what is to be posted, with cookie, flags and operation
 *
 * Context: any; RCU read side, after kdapl_dev_there().
 * Return: DAT_SUCCESS: kdapl_lmr_op_undo() is due unless it is posted; or what
 * kdat_lmr_fmr_sg() and dat_lmr_invalidate() return.
 */
DAT_RETURN kdapl_lmr_op_begin(struct kdapl_ep *ep, struct kdapl_conn *conn,
			      const struct kdat_request *in, struct kdapl_post *post)
{
	struct kdapl_fmr fmr = {
		.lmr = kdapl_handle_peek(in->lmr_handle, DAT_HANDLE_TYPE_LMR),
		.sg = in->sg ?: &fmr_no_sg,
		.priv = in->mem_privileges,
		.va_type = in->va_type,
		.arg = { 2, 2, 3, 4 },
	};
	DAT_RETURN ret;

	ret = kdapl_lmr_check(fmr.lmr);
	if (ret != DAT_SUCCESS)
		return ret;
	if (post->op == DAT_DTO_LMR_FMR) {
		post->flags_arg = 7;
		ret = fmr_check_call(&fmr, ep, conn, post);
		return ret == DAT_SUCCESS ? fmr_begin(&fmr, conn, post) : ret;
	}
	post->flags_arg = 4;
	ret = kdapl_post_check_common(ep, conn, post, FLAGS_INVALIDATE);
	return ret == DAT_SUCCESS ? fmr_begin_inv(fmr.lmr, conn, post) : ret;
}
