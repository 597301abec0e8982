/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Conversion of errnos, statuses and states to codes of the API.
 */
#ifndef KDAPL_CORE_STATUS_H
#define KDAPL_CORE_STATUS_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>

#include <dat2/kdat.h>

/* A code of the API and its name. */
struct kdapl_name {
	u32 code;
	const char *name;
};

const char *kdapl_name_find(const struct kdapl_name *table, size_t n, u32 code);

/**
 * kdapl_err - compose an error return
 * @type: type of the error
 * @subtype: its subtype, or DAT_NO_SUBTYPE
 *
 * Context: Any.
 * Return: the return value of a call.
 */
static inline DAT_RETURN kdapl_err(DAT_RETURN_TYPE type, DAT_RETURN_SUBTYPE subtype)
{
	return DAT_ERROR(type, subtype);
}

/**
 * kdapl_arg_err - compose the return for a bad argument
 * @n: position of the argument, counted from 1
 *
 * Positions above 10 have no subtype.
 *
 * Context: Any.
 * Return: DAT_INVALID_PARAMETER with the position.
 */
static inline DAT_RETURN kdapl_arg_err(unsigned int n)
{
	if (n < 1 || n > 10)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_NO_SUBTYPE);
	return DAT_ERROR(DAT_INVALID_PARAMETER, (DAT_INVALID_ARG1 + n - 1));
}

/* The errno for a verb that created no object: no memory, or else no room in the device. */
static inline int kdapl_create_errno(int err)
{
	return err == -ENOMEM ? err : -ENOSPC;
}

DAT_RETURN kdapl_errno_ret(int err);
DAT_RETURN kdapl_publish_ret(int err);
DAT_RETURN kdapl_retire_ret(int err, DAT_RETURN_SUBTYPE in_use, DAT_RETURN_SUBTYPE handle);
DAT_RETURN kdapl_addr_ret(int err);
DAT_RETURN kdapl_query_check(u64 mask, u64 all, const void *param);
DAT_DTO_COMPLETION_STATUS kdapl_wc_status(enum ib_wc_status status);
DAT_DTO_COMPLETION_STATUS kdapl_wc_recv_status(enum ib_wc_status status);
u16 kdapl_state_subtype(DAT_EP_STATE state);

/**
 * kdapl_state_err - compose the return for an Endpoint in the wrong state
 * @state: state of the Endpoint
 *
 * Context: Any.
 * Return: DAT_INVALID_STATE with the state as subtype.
 */
static inline DAT_RETURN kdapl_state_err(DAT_EP_STATE state)
{
	return DAT_ERROR(DAT_INVALID_STATE, kdapl_state_subtype(state));
}

/*
 * Why a post is refused. The functions that check and prepare a post return one of these.
 * ep/post_ret.c alone turns it into a DAT code, with the position of the bad argument in the call.
 */
enum kdapl_verdict {
	KDAPL_ACCEPTED,

	/* an argument is wrong */
	KDAPL_REFUSE_EP,		/* its connection allows no RDMA Reads */
	KDAPL_REFUSE_COUNT,		/* segments or pages: too many, too few */
	KDAPL_REFUSE_MEMORY,		/* no list, or memory that is not within its LMR */
	KDAPL_REFUSE_REMOTE,		/* no remote buffer, or one that is too long */
	KDAPL_REFUSE_PRIV,		/* rights that do not exist */
	KDAPL_REFUSE_VA_TYPE,
	KDAPL_REFUSE_MEM_TYPE,
	KDAPL_REFUSE_FLAGS,		/* completion flags that are not allowed here */
	KDAPL_REFUSE_OUT,		/* nowhere to put a result */
	KDAPL_REFUSE_REQUEST,		/* an operation that does not exist */
	KDAPL_REFUSE_ARGS,

	/* the handle is not of a live object */
	KDAPL_REFUSE_NO_EP = KDAPL_REFUSE_ARGS,
	KDAPL_REFUSE_NO_SRQ,
	KDAPL_REFUSE_NO_LMR,
	KDAPL_REFUSE_NO_RMR,

	/* an object's state */
	KDAPL_REFUSE_STATE,		/* the EP's */
	KDAPL_REFUSE_RESERVED_LMR,
	KDAPL_REFUSE_LMR_IN_USE,	/* bound, or an operation on it is outstanding */
	KDAPL_REFUSE_LMR_FREE,		/* not bound */
	KDAPL_REFUSE_RMR_IN_USE,	/* a bind of it is outstanding */
	KDAPL_REFUSE_NO_DEVICE,		/* it has been removed */
	KDAPL_REFUSE_NO_FENCE,		/* the device cannot fence such a request */
	KDAPL_REFUSE_NO_IMMED,		/* its Writes carry no immediate data */

	/* memory */
	KDAPL_REFUSE_READ,		/* no right to read it, or no such key */
	KDAPL_REFUSE_WRITE,
	KDAPL_REFUSE_RDMA_WRITE,
	KDAPL_REFUSE_PZ,		/* objects of different PZs, or an EP that may not */
	KDAPL_REFUSE_PZ_READ,
	KDAPL_REFUSE_PZ_WRITE,
	KDAPL_REFUSE_LENGTH,		/* more data than the target takes */

	/* resources */
	KDAPL_REFUSE_QUEUE_FULL,
	KDAPL_REFUSE_SRQ_FULL,
	KDAPL_REFUSE_NO_MR,		/* it cannot be mapped, or the MR could not be replaced */
	KDAPL_REFUSALS
};

#endif /* KDAPL_CORE_STATUS_H */
