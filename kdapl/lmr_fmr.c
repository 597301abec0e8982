// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Fast memory registration: LMRs that are bound and unbound on an EP.
 *
 * Such an LMR has its MR, and room for its list, from dat_lmr_allocate().
 * dat_lmr_fmr() maps the memory and posts the registration, dat_lmr_invalidate() its
 * end; what becomes of the binding is in lmr_state.c.
 */
#include <linux/export.h>
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "kdapl.h"

#define FLAGS_INVALIDATE (KDAPL_FLAGS_RDMA | DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG)

/**
 * struct fmr_request - one dat_lmr_fmr() or one of its relatives
 * @lmr: LMR
 * @mem_type: PHYSICAL or PHYSICAL_VAR_PAGES, of no meaning with @sg
 * @region: the pages, likewise
 * @num_pages: likewise
 * @sg: a piece of memory instead, or NULL
 * @priv: rights
 * @va_type: how addresses are counted
 * @arg: positions of memory, count, rights, va_type among the arguments
 * @post: the request
 * @key: out: key for segments and peers
 * @start: out: first address
 */
struct fmr_request {
	struct kdapl_lmr *lmr;
	DAT_MEM_TYPE mem_type;
	DAT_REGION_DESCRIPTION region;
	DAT_VLEN num_pages;
	const struct kdat_sg *sg;
	DAT_MEM_PRIV_FLAGS priv;
	DAT_VA_TYPE va_type;
	u8 arg[4];
	struct kdapl_post *post;
	u32 key;
	u64 start;
};

enum { ARG_MEM, ARG_COUNT, ARG_PRIV, ARG_VA };

/* Stands for NULL: the handles are looked at first. */
static const struct kdat_sg no_sg;

/* ------------------------------------------------------------------ */
/* dat_lmr_fmr                                                          */

/* Collects pieces of memory into the list of an LMR. */
struct fmr_list {
	struct scatterlist *sg;		/* the last one filled */
	unsigned int left;		/* entries behind it */
	unsigned int used;
	u32 max_entry;
	phys_addr_t start;
	phys_addr_t end;
	u64 length;
};

/* Another entry, for as much as fits into one. 0: there is none left. */
static u32 fmr_list_next(struct fmr_list *list, struct kdapl_mem *mem, phys_addr_t addr, u32 length)
{
	u32 part = min(length, list->max_entry - (u32)offset_in_page(addr));

	if (!list->used) {
		list->sg = mem->sgt.sgl;
		list->left = mem->sgt.orig_nents;
		list->start = addr;
	} else if (list->left) {
		list->sg = sg_next(list->sg);
	}
	if (!list->left)
		return 0;
	list->left--;
	list->used++;
	sg_set_page(list->sg, pfn_to_page(PHYS_PFN(addr)), part, offset_in_page(addr));
	return part;
}

/* False: it does not fit, or leaves a gap. Only the first entry may begin inside a page. */
static bool fmr_list_add(struct fmr_list *list, struct kdapl_mem *mem, phys_addr_t addr, u32 length)
{
	u32 part;

	if (list->used && list->end != addr && ((addr | list->end) & ~PAGE_MASK))
		return false;
	for (; length; length -= part, addr += part) {
		part = 0;
		if (list->used && list->end == addr)
			part = min(length, list->max_entry - list->sg->offset - list->sg->length);
		if (part)
			list->sg->length += part;
		else
			part = fmr_list_next(list, mem, addr, length);
		if (!part)
			return false;
		list->end = addr + part;
		list->length += part;
	}
	return true;
}

static DAT_RETURN fmr_fill_pages(const struct fmr_request *req, struct fmr_list *list)
{
	struct kdapl_mem *mem = &req->lmr->mem;
	u64 page_size = PAGE_SIZE, pos;
	const DAT_PADDR *pages = req->region.for_physical;
	DAT_VLEN i;

	if (req->mem_type == DAT_MEM_TYPE_PHYSICAL_VAR_PAGES) {
		page_size = req->region.for_array.page_size;
		pages = req->region.for_array.pages;
	}
	for (i = 0; i < req->num_pages; i++) {
		if (!IS_ALIGNED(pages[i], page_size) || pages[i] + page_size < pages[i] ||
		    (phys_addr_t)pages[i] != pages[i])
			return kdapl_arg_err(req->arg[ARG_MEM]);
		/* memory comes and goes in pieces not smaller than that */
		for (pos = 0; pos < page_size; pos += SZ_2M) {
			if (!pfn_valid(PHYS_PFN(pages[i] + pos)))
				return kdapl_arg_err(req->arg[ARG_MEM]);
		}
		if (!fmr_list_add(list, mem, pages[i], page_size))
			return kdapl_arg_err(req->arg[ARG_MEM]);
	}
	return DAT_SUCCESS;
}

static DAT_RETURN fmr_fill_sg(const struct fmr_request *req, struct fmr_list *list)
{
	const struct kdat_sg *in = req->sg;
	struct kdapl_mem *mem = &req->lmr->mem;
	u64 skip = in->offset, left = in->length;
	struct scatterlist *sg;
	u32 chunk;
	int i;

	for_each_sg(in->sgl, sg, in->nents, i) {
		if (!left)
			break;
		if (skip >= sg->length) {
			skip -= sg->length;
			continue;
		}
		if (!sg_page(sg))
			return kdapl_arg_err(req->arg[ARG_MEM]);
		chunk = min_t(u64, sg->length - skip, left);
		if (!fmr_list_add(list, mem, sg_phys(sg) + skip, chunk))
			return kdapl_arg_err(req->arg[ARG_MEM]);
		skip = 0;
		left -= chunk;
	}
	return left ? kdapl_arg_err(req->arg[ARG_MEM]) : DAT_SUCCESS;
}

static DAT_RETURN fmr_check_pages(const struct fmr_request *req)
{
	bool var = req->mem_type == DAT_MEM_TYPE_PHYSICAL_VAR_PAGES;
	u64 page_size = var ? req->region.for_array.page_size : PAGE_SIZE;
	const void *pages = var ? req->region.for_array.pages : req->region.for_physical;

	if (!pages || page_size < PAGE_SIZE || page_size > SZ_1G || !is_power_of_2(page_size))
		return kdapl_arg_err(req->arg[ARG_MEM]);
	if (!req->num_pages ||
	    (req->lmr->fmr && req->num_pages > req->lmr->mem.sgt.orig_nents))
		return kdapl_arg_err(req->arg[ARG_COUNT]);
	return DAT_SUCCESS;
}

static DAT_RETURN fmr_check(const struct fmr_request *req)
{
	DAT_RETURN ret = DAT_SUCCESS;

	if (!req->sg && req->mem_type != DAT_MEM_TYPE_PHYSICAL &&
	    req->mem_type != DAT_MEM_TYPE_PHYSICAL_VAR_PAGES)
		return kdapl_arg_err(2);
	if (!req->sg)
		ret = fmr_check_pages(req);
	else if (!req->sg->sgl || req->sg->nents <= 0 || !req->sg->length)
		ret = kdapl_arg_err(req->arg[ARG_MEM]);
	if (ret != DAT_SUCCESS)
		return ret;
	if (req->priv & ~DAT_MEM_PRIV_ALL_FLAG)
		return kdapl_arg_err(req->arg[ARG_PRIV]);
	if (req->va_type != DAT_VA_TYPE_VA && req->va_type != DAT_VA_TYPE_ZB)
		return kdapl_arg_err(req->arg[ARG_VA]);
	return DAT_SUCCESS;
}

/* Nobody has had a key for the memory: the device has not touched it. The claim is ours. */
static void fmr_take_back(struct kdapl_lmr *lmr)
{
	lmr->mem.sync = false;
	kdapl_mem_unmap(&lmr->mem, lmr->obj.ia->dev);
}

/* Show the memory to the device and to its page list. The claim is ours. */
static int fmr_map(struct kdapl_lmr *lmr, const struct fmr_list *list, u64 start,
		   DAT_MEM_PRIV_FLAGS priv)
{
	struct kdapl_ia *ia = lmr->obj.ia;
	struct kdapl_mem *mem = &lmr->mem;
	u32 page_size, blocks;
	int err;

	mem->used = list->used;
	if (unlikely(mem->common)) {
		if (list->length > mem->common_size)
			return -E2BIG;
		kdapl_mem_agree(mem);
	}
	err = kdapl_mem_map(mem, ia->dev, priv);
	if (err)
		return err;
	page_size = kdapl_mem_page_size(ia->dev, mem->sgt.sgl, mem->nents, start,
					kdapl_mem_page_sizes(ia->dev, true), lmr->mr.pages,
					&blocks);
	if (page_size) {
		err = kdapl_mr_map(&lmr->mr, mem->sgt.sgl, mem->nents, page_size, start);
	} else {
		pr_err_ratelimited("%s: %llu bytes do not fit into the %u pages an LMR was allocated for\n",
				   ia->name, list->length, lmr->mr.pages);
		err = -E2BIG;
	}
	if (err)
		fmr_take_back(lmr);
	return err;
}

/* Memory, MR and keys, as if it had been registered already. The claim is ours. */
static DAT_RETURN fmr_bind(struct fmr_request *req, struct kdapl_ep *ep, bool live)
{
	struct kdapl_lmr *lmr = req->lmr;
	struct kdapl_device *dev = lmr->obj.ia->dev;
	struct fmr_list list = { .max_entry = kdapl_dma_max_entry(dev) };
	struct kdapl_mr *mr = &lmr->mr;
	unsigned long flags;
	DAT_RETURN ret;
	int err;

	ret = req->sg ? fmr_fill_sg(req, &list) : fmr_fill_pages(req, &list);
	if (ret != DAT_SUCCESS)
		return ret;
	req->start = req->va_type == DAT_VA_TYPE_ZB ? 0 : list.start;
	if (req->va_type == DAT_VA_TYPE_ZB && (list.start & ~PAGE_MASK))
		return kdapl_arg_err(req->arg[ARG_MEM]);
	if (live) {
		err = fmr_map(lmr, &list, req->start, req->priv);
		if (err == -E2BIG)
			return kdapl_arg_err(req->arg[ARG_COUNT]);
		if (err)
			return kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY_REGION);
	}
	spin_lock_irqsave(&mr->lock, flags);
	if (lmr->state == KDAPL_LMR_DEAD) {
		ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	} else if (live) {
		lmr->mem.start = list.start;
		lmr->mem.length = list.length;
		lmr->priv = req->priv;
		lmr->va_type = req->va_type;
		lmr->mem_type = req->sg ? DAT_MEM_TYPE_PLATFORM : req->mem_type;
		lmr->region = req->region;
		lmr->length = req->sg ? req->sg->length : req->num_pages;
		lmr->ep = (unsigned long)ep->obj.handle;
		kdapl_mr_new_key(mr);
		req->key = mr->used;
		kdapl_lmr_publish(lmr);
	} else {
		req->key = kdapl_mr_skip_key(mr);
	}
	spin_unlock_irqrestore(&mr->lock, flags);
	if (unlikely(ret != DAT_SUCCESS))	/* whoever frees it waits for us */
		fmr_take_back(lmr);
	return ret;
}

/*
 * Everything but the posting. Where there is no connection any more the request
 * will be flushed: nothing is mapped and nothing changes (FMR-07).
 */
static DAT_RETURN fmr_begin(struct fmr_request *req, struct kdapl_ep *ep, struct kdapl_half *half)
{
	bool live = READ_ONCE(half->sq->mode) == KDAPL_RING_LIVE;
	struct kdapl_lmr *lmr = req->lmr;
	struct kdapl_post *post = req->post;
	DAT_RETURN ret;

	if (lmr->mr.pd != half->pd)
		return kdapl_err(DAT_PROTECTION_VIOLATION, DAT_NO_SUBTYPE);
	ret = kdapl_lmr_claim(lmr, KDAPL_LMR_REG, ep, half, live, &post->seq);
	if (ret != DAT_SUCCESS)
		return ret;
	ret = fmr_bind(req, ep, live);
	if (ret != DAT_SUCCESS) {
		kdapl_lmr_settle(lmr, KDAPL_LMR_REG, post->seq, KDAPL_NEVER);
		return ret;
	}
	post->obj = &lmr->obj;
	post->mr = lmr->mr.ibmr;
	post->key = req->key;
	post->access = kdapl_mr_access(req->priv);
	return ret;
}

static DAT_RETURN inv_begin(struct kdapl_lmr *lmr, struct kdapl_ep *ep, struct kdapl_half *half,
			    struct kdapl_post *post)
{
	DAT_RETURN ret;

	if (!lmr->fmr)
		return kdapl_err(DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE);
	if (lmr->mr.pd != half->pd)
		return kdapl_err(DAT_PROTECTION_VIOLATION, DAT_NO_SUBTYPE);
	ret = kdapl_lmr_claim(lmr, KDAPL_LMR_INV, ep, half,
			      READ_ONCE(half->sq->mode) == KDAPL_RING_LIVE, &post->seq);
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
	unsigned long flags;

	if (post->op == DAT_DTO_LMR_INVALIDATE)
		kdapl_lmr_settle(lmr, KDAPL_LMR_INV, post->seq, KDAPL_NEVER);
	if (post->op != DAT_DTO_LMR_FMR)
		return;
	/* what has failed has changed nothing: the key comes next, as has been foretold */
	spin_lock_irqsave(&lmr->mr.lock, flags);
	if (!post->soft && lmr->mr.live && lmr->mr.used == post->key)
		lmr->mr.next = post->key & 0xff;
	spin_unlock_irqrestore(&lmr->mr.lock, flags);
	kdapl_lmr_settle(lmr, KDAPL_LMR_REG, post->seq, KDAPL_NEVER);
}

static DAT_RETURN lmr_fmr_handle(struct kdapl_lmr *lmr)
{
	if (!lmr)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	if (lmr->reserved)
		return kdapl_err(DAT_RESERVED_LMR, DAT_NO_SUBTYPE);
	return DAT_SUCCESS;
}

/* Handles, arguments, flags, state, in the order of GEN-10; RCU read side. */
static DAT_RETURN fmr_check_call(const struct fmr_request *req, struct kdapl_ep *ep,
				 struct kdapl_half *half)
{
	DAT_RETURN ret;

	ret = fmr_check(req);
	if (ret == DAT_SUCCESS)
		ret = kdapl_request_check(ep, half, req->post, KDAPL_FLAGS_RDMA);
	if (ret == DAT_SUCCESS && !req->lmr->fmr)
		ret = kdapl_err(DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE);
	return ret;
}

/* Post what has begun. */
static DAT_RETURN lmr_op_post(struct kdapl_ep *ep, struct kdapl_half *half, struct kdapl_post *post)
{
	DAT_RETURN ret = kdapl_request_post(ep, half, post);

	if (ret != DAT_SUCCESS || post->soft)
		kdapl_lmr_op_undo(post);
	return ret;
}

static DAT_RETURN __lmr_fmr(struct fmr_request *req, DAT_LMR_HANDLE lmr_handle,
			    DAT_EP_HANDLE ep_handle)
{
	struct kdapl_ep *ep = kdapl_handle_peek(ep_handle, DAT_HANDLE_TYPE_EP);
	struct kdapl_half *half;
	DAT_RETURN ret;

	req->lmr = kdapl_handle_peek(lmr_handle, DAT_HANDLE_TYPE_LMR);
	ret = lmr_fmr_handle(req->lmr);
	if (ret != DAT_SUCCESS)
		return ret;
	if (!ep)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	half = rcu_dereference(ep->half);
	ret = fmr_check_call(req, ep, half);
	if (ret != DAT_SUCCESS)
		return ret;
	if (!kdapl_dev_there(half->dev))
		return kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	ret = fmr_begin(req, ep, half);
	if (ret == DAT_SUCCESS)
		ret = lmr_op_post(ep, half, req->post);
	return ret;
}

static DAT_RETURN lmr_fmr(struct fmr_request *req, DAT_LMR_HANDLE lmr_handle,
			  DAT_EP_HANDLE ep_handle, DAT_LMR_CONTEXT *lmr_context,
			  DAT_RMR_CONTEXT *rmr_context)
{
	DAT_RETURN ret;

	rcu_read_lock();
	ret = __lmr_fmr(req, lmr_handle, ep_handle);
	rcu_read_unlock();
	if (ret != DAT_SUCCESS)
		return ret;
	if (lmr_context)
		*lmr_context = req->key;
	if (rmr_context)
		*rmr_context = req->priv & KDAPL_PRIV_REMOTE ? req->key : 0;
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
	struct fmr_request req = {
		.mem_type = mem_type,
		.region = region_description,
		.num_pages = num_pages,
		.priv = mem_privileges,
		.va_type = va_type,
		.arg = { 3, 4, 5, 6 },
		.post = &post,
	};

	return lmr_fmr(&req, lmr_handle, ep_handle, lmr_context, rmr_context);
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
	struct fmr_request req = {
		.sg = sg,
		.priv = mem_privileges,
		.va_type = va_type,
		.arg = { 2, 2, 3, 4 },
		.post = &post,
	};
	DAT_RETURN ret;

	if (!sg)
		req.sg = &no_sg;
	ret = lmr_fmr(&req, lmr_handle, ep_handle, lmr_context, rmr_context);
	if (ret == DAT_SUCCESS && address)
		*address = req.start;
	return ret;
}
EXPORT_SYMBOL(kdat_lmr_fmr_sg);

static DAT_RETURN lmr_invalidate(DAT_LMR_HANDLE lmr_handle, DAT_EP_HANDLE ep_handle,
				 struct kdapl_post *post)
{
	struct kdapl_lmr *lmr = kdapl_handle_peek(lmr_handle, DAT_HANDLE_TYPE_LMR);
	struct kdapl_ep *ep = kdapl_handle_peek(ep_handle, DAT_HANDLE_TYPE_EP);
	struct kdapl_half *half;
	DAT_RETURN ret;

	ret = lmr_fmr_handle(lmr);
	if (ret != DAT_SUCCESS)
		return ret;
	if (!ep)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	half = rcu_dereference(ep->half);
	ret = kdapl_request_check(ep, half, post, FLAGS_INVALIDATE);
	if (ret == DAT_SUCCESS)
		ret = inv_begin(lmr, ep, half, post);
	if (ret == DAT_SUCCESS)
		ret = lmr_op_post(ep, half, post);
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
	ret = lmr_invalidate(lmr_handle, ep_handle, &post);
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_lmr_invalidate);

/**
 * kdapl_lmr_op_begin - prepare an LMR_FMR or LMR_INVALIDATE of a list
 * @ep: EP
 * @half: its half, or NULL
 * @in: what is asked for
 * @post: what is to be posted, with cookie, flags and operation
 *
 * Context: any; RCU read side, after kdapl_dev_there().
 * Return: DAT_SUCCESS: kdapl_lmr_op_undo() is due unless it is posted; or what
 * kdat_lmr_fmr_sg() and dat_lmr_invalidate() return.
 */
DAT_RETURN kdapl_lmr_op_begin(struct kdapl_ep *ep, struct kdapl_half *half,
			      const struct kdat_request *in, struct kdapl_post *post)
{
	struct fmr_request req = {
		.lmr = kdapl_handle_peek(in->lmr_handle, DAT_HANDLE_TYPE_LMR),
		.sg = in->sg ?: &no_sg,
		.priv = in->mem_privileges,
		.va_type = in->va_type,
		.arg = { 2, 2, 3, 4 },
		.post = post,
	};
	DAT_RETURN ret;

	ret = lmr_fmr_handle(req.lmr);
	if (ret != DAT_SUCCESS)
		return ret;
	if (post->op == DAT_DTO_LMR_FMR) {
		post->flags_arg = 7;
		ret = fmr_check_call(&req, ep, half);
		return ret == DAT_SUCCESS ? fmr_begin(&req, ep, half) : ret;
	}
	post->flags_arg = 4;
	ret = kdapl_request_check(ep, half, post, FLAGS_INVALIDATE);
	return ret == DAT_SUCCESS ? inv_begin(req.lmr, ep, half, post) : ret;
}

/**
 * kdat_lmr_next_contexts - the keys the next binding of an LMR will have
 * @lmr_handle: LMR of dat_lmr_allocate()
 * @lmr_context: where the key for local segments goes; may be NULL
 * @rmr_context: where the key for peers goes, if there will be remote rights; may be
 *	NULL
 *
 * For messages that carry the key and are posted in one list with the binding,
 * see kdat_ep_post_list(). The keys are worth nothing before. An extension of
 * this provider.
 *
 * Context: any.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE; DAT_RESERVED_LMR; DAT_INVALID_STATE
 * (subtype LMR_IN_USE: not of dat_lmr_allocate(), or its last binding was flushed and
 * the end of that connection has not been reported yet).
 */
DAT_RETURN kdat_lmr_next_contexts(DAT_LMR_HANDLE lmr_handle, DAT_LMR_CONTEXT *lmr_context,
				  DAT_RMR_CONTEXT *rmr_context)
{
	struct kdapl_lmr *lmr;
	unsigned long flags;
	DAT_RETURN ret;
	u32 key = 0;

	rcu_read_lock();
	lmr = kdapl_handle_peek(lmr_handle, DAT_HANDLE_TYPE_LMR);
	ret = lmr_fmr_handle(lmr);
	if (ret == DAT_SUCCESS && !lmr->fmr)
		ret = kdapl_err(DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE);
	if (ret == DAT_SUCCESS) {
		spin_lock_irqsave(&lmr->mr.lock, flags);
		key = kdapl_mr_next_key(&lmr->mr);
		if (lmr->state == KDAPL_LMR_DOUBTFUL)	/* another MR, other keys */
			ret = kdapl_err(DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE);
		spin_unlock_irqrestore(&lmr->mr.lock, flags);
	}
	if (ret == DAT_SUCCESS && lmr_context)
		*lmr_context = key;
	if (ret == DAT_SUCCESS && rmr_context)
		*rmr_context = key;
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(kdat_lmr_next_contexts);

/* ------------------------------------------------------------------ */
/* dat_lmr_allocate                                                     */

static int lmr_allocate(struct kdapl_lmr *lmr, u32 pages)
{
	int ret;

	ret = sg_alloc_table(&lmr->mem.sgt, pages, GFP_KERNEL);
	if (!ret)
		ret = kdapl_lmr_spare_list(lmr, pages);
	if (!ret && lmr->obj.ia->dev->dma == KDAPL_DMA_COPIES)
		ret = kdapl_mem_share(&lmr->mem, (u64)pages << PAGE_SHIFT);
	if (!ret)
		ret = kdapl_mr_create(&lmr->mr, pages);
	if (!ret)
		ret = kdapl_mr_prime(&lmr->mr);
	if (!ret)
		ret = kdapl_obj_publish(&lmr->obj);
	return ret;
}

/**
 * dat_lmr_allocate - make an LMR for dat_lmr_fmr()
 * @ia_handle: IA
 * @pz_handle: PZ
 * @max_pages: pages it is to be bound to at most, see kdat_ia_mem_limits()
 * @lmr_scope: DAT_LMR_SCOPE_EP: each binding is for the EP it is made on only;
 *	DAT_LMR_SCOPE_PZ, DAT_LMR_SCOPE_ANY: for every EP of the PZ
 * @lmr_handle: where the handle goes
 *
 * The LMR is bound to nothing yet and has no keys. What dat_lmr_fmr() needs is
 * taken from the device and from memory here, so that it does not have to.
 *
 * Context: may sleep.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE (IA, PZ); DAT_INVALID_PARAMETER (not
 * positive or more pages than a region can have, scope, NULL @lmr_handle);
 * DAT_INSUFFICIENT_RESOURCES (subtype MEMORY_REGION or MEMORY);
 * DAT_INTERNAL_ERROR (device removed).
 */
DAT_RETURN dat_lmr_allocate(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle, DAT_COUNT max_pages,
			    DAT_LMR_SCOPE lmr_scope, DAT_LMR_HANDLE *lmr_handle)
{
	struct kdapl_ia *ia = kdapl_obj_get(ia_handle, DAT_HANDLE_TYPE_IA);
	struct kdapl_pz *pz = NULL;
	struct kdapl_lmr *lmr;
	DAT_RETURN ret;
	int err;

	if (!ia)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	pz = kdapl_obj_get(pz_handle, DAT_HANDLE_TYPE_PZ);
	if (!pz || pz->obj.ia != ia) {
		ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
		goto out;
	}
	ret = kdapl_arg_err(3);
	if (max_pages <= 0 || max_pages > ia->dev->attrs.max_fast_reg_page_list_len)
		goto out;
	ret = kdapl_arg_err(4);
	if ((unsigned int)lmr_scope > DAT_LMR_SCOPE_ANY)
		goto out;
	ret = kdapl_arg_err(5);
	if (!lmr_handle)
		goto out;
	ret = kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	if (!kdapl_dev_enter(ia->dev))
		goto out;
	lmr = kdapl_lmr_alloc(ia, pz, pz_handle);
	if (IS_ERR(lmr)) {
		ret = kdapl_lmr_ret(PTR_ERR(lmr));
		goto out_exit;
	}
	lmr->fmr = true;
	lmr->scope = lmr_scope;
	err = lmr_allocate(lmr, max_pages);
	if (err) {
		ret = kdapl_lmr_ret(err == -EINVAL ? -EIO : err);
		kdapl_lmr_destroy(lmr);
		goto out_exit;
	}
	*lmr_handle = lmr->obj.handle;
	kdapl_obj_put(&lmr->obj);
	ret = DAT_SUCCESS;
out_exit:
	kdapl_dev_exit(ia->dev);
out:
	if (pz)
		kdapl_obj_put(&pz->obj);
	kdapl_obj_put(&ia->obj);
	return ret;
}
EXPORT_SYMBOL(dat_lmr_allocate);
