// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * What all folders use of IAs.
 */
#include "core.h"

/* What posts read shares no cache line with what others write, if lines have 64 bytes. */
#define LINE(type, member)	(offsetof(type, member) / 64)
#define APART(type, a, b) \
	(SMP_CACHE_BYTES != 64 || !IS_ENABLED(CONFIG_SMP) || !IS_ENABLED(CONFIG_64BIT) || \
	 LINE(type, a) != LINE(type, b))

static_assert(APART(struct kdapl_ia, dead, obj.node.prev));
static_assert(APART(struct kdapl_ia, dead, lock));
static_assert(APART(struct kdapl_ia, keys.table, async_evd));
static_assert(APART(struct kdapl_ia, keys.table, keys.mutex));
static_assert(APART(struct kdapl_device, gone, users));
static_assert(APART(struct kdapl_device, dma_coherent, users));

/**
 * kdapl_ia_async - report an asynchronous event to the consumer of an IA
 * @ia: IA
 * @handle: the object concerned
 * @number: DAT_ASYNC_ERROR_*
 * @reason: a value of the enum for the type of @handle
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
 * kdapl_ia_pdata - how much private data connect, accept and reject can carry
 * @ia: IA
 * @limits: filled
 */
void kdapl_ia_pdata(struct kdapl_ia *ia, struct kdat_pdata_limits *limits)
{
	static const struct kdat_pdata_limits ib = {
		.connect = 56,		/* 92 bytes, less the header of rdma_cm */
		.accept = IB_CM_REP_PRIVATE_DATA_SIZE,
		.reject = IB_CM_REJ_PRIVATE_DATA_SIZE,
	};
	/* the length is one byte, and enhanced connection setup takes four bytes */
	static const struct kdat_pdata_limits iw = {
		.connect = 251,
		.accept = 251,
		.reject = 251,
	};

	*limits = ia->dev->iwarp ? iw : ib;
}
