// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * From the reason why a post is refused to what the call returns.
 */
#include "post.h"

/* The positions that arguments have in each call, counted from 1. */
static const u8 ret_args[][KDAPL_REFUSE_ARGS] = {
	[KDAPL_CALL_SEND] = {
		[KDAPL_REFUSE_COUNT] = 2, [KDAPL_REFUSE_MEMORY] = 3, [KDAPL_REFUSE_FLAGS] = 5,
	},
	[KDAPL_CALL_RDMA] = {
		[KDAPL_REFUSE_EP] = 1, [KDAPL_REFUSE_COUNT] = 2, [KDAPL_REFUSE_MEMORY] = 3,
		[KDAPL_REFUSE_REMOTE] = 5, [KDAPL_REFUSE_FLAGS] = 6,
	},
	[KDAPL_CALL_READ_TO_RMR] = {
		[KDAPL_REFUSE_EP] = 1, [KDAPL_REFUSE_MEMORY] = 2, [KDAPL_REFUSE_REMOTE] = 4,
		[KDAPL_REFUSE_FLAGS] = 5,
	},
	[KDAPL_CALL_RECV] = {
		[KDAPL_REFUSE_COUNT] = 2, [KDAPL_REFUSE_MEMORY] = 3, [KDAPL_REFUSE_FLAGS] = 5,
	},
	[KDAPL_CALL_SRQ_RECV] = {
		[KDAPL_REFUSE_COUNT] = 2, [KDAPL_REFUSE_MEMORY] = 3,
	},
	[KDAPL_CALL_LIST] = {
		[KDAPL_REFUSE_REQUEST] = 2,
	},
	[KDAPL_CALL_LMR_FMR] = {
		[KDAPL_REFUSE_MEM_TYPE] = 2, [KDAPL_REFUSE_MEMORY] = 3, [KDAPL_REFUSE_COUNT] = 4,
		[KDAPL_REFUSE_PRIV] = 5, [KDAPL_REFUSE_VA_TYPE] = 6, [KDAPL_REFUSE_FLAGS] = 9,
	},
	[KDAPL_CALL_LMR_FMR_SG] = {
		[KDAPL_REFUSE_MEMORY] = 2, [KDAPL_REFUSE_COUNT] = 2, [KDAPL_REFUSE_PRIV] = 3,
		[KDAPL_REFUSE_VA_TYPE] = 4, [KDAPL_REFUSE_FLAGS] = 7,
	},
	[KDAPL_CALL_LMR_INVALIDATE] = {
		[KDAPL_REFUSE_FLAGS] = 4,
	},
	[KDAPL_CALL_RMR_BIND] = {
		[KDAPL_REFUSE_MEMORY] = 3, [KDAPL_REFUSE_PRIV] = 4, [KDAPL_REFUSE_VA_TYPE] = 5,
		[KDAPL_REFUSE_FLAGS] = 8, [KDAPL_REFUSE_OUT] = 9,
	},
};

/* The reasons that mean the same for every call. */
static const DAT_RETURN ret_codes[] = {
	[KDAPL_REFUSE_NO_EP] = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP),
	[KDAPL_REFUSE_NO_SRQ] = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ),
	[KDAPL_REFUSE_NO_LMR] = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR),
	[KDAPL_REFUSE_NO_RMR] = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RMR),
	[KDAPL_REFUSE_RESERVED_LMR] = DAT_ERROR(DAT_RESERVED_LMR, DAT_NO_SUBTYPE),
	[KDAPL_REFUSE_LMR_IN_USE] = DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE),
	[KDAPL_REFUSE_LMR_FREE] = DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_FREE),
	[KDAPL_REFUSE_RMR_IN_USE] = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_NO_SUBTYPE),
	[KDAPL_REFUSE_NO_DEVICE] = DAT_ERROR(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE),
	[KDAPL_REFUSE_NO_FENCE] = DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE),
	[KDAPL_REFUSE_READ] = DAT_ERROR(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_READ),
	[KDAPL_REFUSE_WRITE] = DAT_ERROR(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_WRITE),
	[KDAPL_REFUSE_RDMA_WRITE] = DAT_ERROR(DAT_PRIVILEGES_VIOLATION,
					      DAT_PRIVILEGES_RDMA_WRITE),
	[KDAPL_REFUSE_PZ] = DAT_ERROR(DAT_PROTECTION_VIOLATION, DAT_NO_SUBTYPE),
	[KDAPL_REFUSE_PZ_READ] = DAT_ERROR(DAT_PROTECTION_VIOLATION, DAT_PROTECTION_READ),
	[KDAPL_REFUSE_PZ_WRITE] = DAT_ERROR(DAT_PROTECTION_VIOLATION, DAT_PROTECTION_WRITE),
	[KDAPL_REFUSE_LENGTH] = DAT_ERROR(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE),
	[KDAPL_REFUSE_QUEUE_FULL] = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP),
	[KDAPL_REFUSE_SRQ_FULL] = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ),
	[KDAPL_REFUSE_NO_MR] = DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY_REGION),
};

static_assert(ARRAY_SIZE(ret_codes) == KDAPL_REFUSALS);

/**
 * kdapl_post_ret - what a posting call returns
 * @why: KDAPL_ACCEPTED, or why it refuses
 * @ep: its EP, NULL if it has found none
 * @call: which call it is; of a list, the call that the request to blame stands for
 *
 * Context: any; RCU read side, for @ep.
 * Return: the DAT code.
 */
DAT_RETURN kdapl_post_ret(enum kdapl_verdict why, const struct kdapl_ep *ep,
			  enum kdapl_call call)
{
	if (why == KDAPL_ACCEPTED)
		return DAT_SUCCESS;
	if (why < KDAPL_REFUSE_ARGS)
		return kdapl_arg_err(ret_args[call][why]);
	if (why == KDAPL_REFUSE_STATE)
		return kdapl_state_err(READ_ONCE(ep->state));
	return ret_codes[why];
}

/**
 * kdapl_post_no_ep - refuse a post whose handle is not that of an EP
 * @ep_handle: the handle
 * @op: DAT_DTOS
 * @cookie: the consumer's
 *
 * Not inline: it would make the calls longer that have a fast path.
 *
 * Context: any.
 * Return: the DAT code.
 */
DAT_RETURN kdapl_post_no_ep(DAT_EP_HANDLE ep_handle, u8 op, DAT_DTO_COOKIE cookie)
{
	DAT_RETURN ret = ret_codes[KDAPL_REFUSE_NO_EP];

	trace_kdapl_post_refused(ep_handle, op, cookie.as_64, ret);
	return ret;
}
