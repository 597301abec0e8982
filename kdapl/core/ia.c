// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * What every floor asks of an IA.
 */
#include "core.h"

/**
 * kdapl_ia_async - an asynchronous event for the consumer of an IA
 * @ia: IA
 * @handle: the object concerned
 * @number: DAT_ASYNC_ERROR_*
 * @reason: of the enum that belongs to the type of @handle
 *
 * Context: any, without evd->lock.
 */
void kdapl_ia_async(struct kdapl_ia *ia, DAT_HANDLE handle, u32 number, DAT_COUNT reason)
{
	struct kdapl_obj *evd;
	unsigned long flags;

	spin_lock_irqsave(&ia->lock, flags);
	evd = ia->async_evd;
	if (evd)
		refcount_inc(&evd->ref);
	spin_unlock_irqrestore(&ia->lock, flags);
	if (evd) {
		evd->ops->async_event(evd, ia, handle, number, reason);
		kdapl_obj_put(evd);
	}
}

/**
 * kdapl_ia_pdata - private data that connect, accept and reject can carry
 * @ia: IA
 * @limits: filled
 */
void kdapl_ia_pdata(struct kdapl_ia *ia, struct kdat_pdata_limits *limits)
{
	static const struct kdat_pdata_limits ib = {
		.connect = 56,		/* less the header of RDMA_PS_TCP */
		.accept = IB_CM_REP_PRIVATE_DATA_SIZE,
		.reject = IB_CM_REJ_PRIVATE_DATA_SIZE,
	};
	/* MPA: one byte of length, and enhanced connection set-up takes four */
	static const struct kdat_pdata_limits iw = {
		.connect = 251,
		.accept = 251,
		.reject = 251,
	};

	*limits = ia->dev->iwarp ? iw : ib;
}
