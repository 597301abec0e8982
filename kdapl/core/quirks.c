// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Quirks: what kDAPL knows about providers.
 *
 * This is the only file that asks which driver provides a device. Each fact is a row of
 * the table below; it sets one member of struct kdapl_device, mostly of its
 * caps, when the device is added. All other code tests that member and knows no
 * provider by name.
 *
 * To add a fact: add a bool to struct kdapl_caps (quirks.h) that says what the
 * device does or needs, not which it is; add a row here, or, if the fact follows
 * from what the device says of itself, a line in kdapl_quirks_derive(). Zero is
 * the ordinary device, so that a provider unknown here needs no row. Tests set
 * the driver_id of the fake device (struct fake_ib_caps), or the member itself
 * before the first object is made.
 */
#include "core.h"

/* Instead of a driver: rows that hold for a whole protocol. */
#define QUIRK_IWARP	-1

/* Rows that hold for one of the protocols of a driver. */
#define ON_IWARP(driver)	((driver) | QUIRK_ON_IWARP)
#define QUIRK_ON_IWARP		0x10000

/**
 * struct kdapl_quirk - a fact about a provider
 * @driver: enum rdma_driver_id, ON_IWARP() of one, or QUIRK_IWARP
 * @member: offset in struct kdapl_device of the bool that it sets
 * @fact: what the provider does
 * @since: kernels it was found in
 * @cure: what kDAPL does about it
 * @decision: where Documentation/conformance/decisions.md says why
 */
struct kdapl_quirk {
	int driver;
	unsigned int member;
	const char *fact;
	const char *since;
	const char *cure;
	const char *decision;
};

#define QUIRK_SETS(name)	offsetof(struct kdapl_device, name)

static const struct kdapl_quirk quirks[] = {
	/* iWARP */
	{ QUIRK_IWARP, QUIRK_SETS(iwarp),
	  "the connection manager moves the queue pair itself", "by the protocol",
	  "no modify by hand", "D-13" },
	{ QUIRK_IWARP, QUIRK_SETS(caps.read_has_segment),
	  "a Read has exactly one local segment, also when it is empty", "by the protocol",
	  "an empty segment is added", "D-96" },
	{ QUIRK_IWARP, QUIRK_SETS(iwarp),
	  "a Read writes into its sink by the sink's key, as a peer's Write does",
	  "by the protocol", "memory for Reads is registered for remote writing", "D-22" },
	{ QUIRK_IWARP, QUIRK_SETS(caps.fence_not_read),
	  "a fence on a Read itself does nothing", "by the protocol",
	  "an empty fenced Write goes first", "D-14" },
	{ QUIRK_IWARP, QUIRK_SETS(iwarp),
	  "flushes come before the connection manager's word", "by the protocol",
	  "wait for that word before the connection counts as broken", "D-08" },
	{ QUIRK_IWARP, QUIRK_SETS(iwarp),
	  "a queue pair does not connect to itself", "by the protocol",
	  "the registration queue pair has a peer of its own, connected by rdma_cm", "D-21" },
	/* soft-iWARP */
	{ RDMA_DRIVER_SIW, QUIRK_SETS(caps.no_solicited),
	  "the solicited bit of a Send is ignored", "6.1 to 7.2",
	  "notify of every Receive", "D-01" },
	{ RDMA_DRIVER_SIW, QUIRK_SETS(caps.reads_unordered),
	  "Reads complete out of order", "6.1 to 7.2",
	  "completions wait for the Reads before them", "D-09b" },
	{ RDMA_DRIVER_SIW, QUIRK_SETS(caps.reads_deadlock),
	  "two ends that both wait for the read queue wait for ever", "6.1 to 7.2",
	  "ask for the largest read depth and count Reads; a disconnect has a deadline",
	  "D-14" },
	{ RDMA_DRIVER_SIW, QUIRK_SETS(caps.own_depths),
	  "rdma_cm has the two read depths in each other's field", "6.1 to 7.2",
	  "read the other field", "D-13" },
	{ RDMA_DRIVER_SIW, QUIRK_SETS(caps.short_page_bug),
	  "short requests that cross a page go out with wrong bytes", "6.1 to 7.2",
	  "post them as two segments", "D-36" },
	{ RDMA_DRIVER_SIW, QUIRK_SETS(caps.early_data_unseen),
	  "data that overtakes the end of the connection setup is not looked at",
	  "6.1 to 7.2", "empty Writes wake the passive side", "D-37" },
	{ RDMA_DRIVER_SIW, QUIRK_SETS(caps.empty_read_stale),
	  "an empty Read may be answered with old bytes", "6.1 to 7.2",
	  "post an empty Write instead", "D-37" },
	{ RDMA_DRIVER_SIW, QUIRK_SETS(caps.lends_pages),
	  "TCP gets the pages of a request without a completion, not a copy", "6.1 to 7.2",
	  "such a request from a page on is always signaled", "D-75" },
	{ RDMA_DRIVER_SIW, QUIRK_SETS(caps.inval_any_low_byte),
	  "the low byte of an invalidated key is not compared", "6.1 to 7.2",
	  "a connection that invalidates a key which is not the valid one is ended", "D-69" },
	{ RDMA_DRIVER_SIW, QUIRK_SETS(caps.reject_unsafe),
	  "a request refused at once crashes the kernel", "6.1 to 7.2",
	  "refuse it later", "D-60" },
	{ RDMA_DRIVER_SIW, QUIRK_SETS(caps.any_page_size),
	  "page lists have entries of any length", "6.1 to 7.2",
	  "one entry for each segment", "D-64" },
	{ RDMA_DRIVER_SIW, QUIRK_SETS(caps.reject_resets),
	  "a refusal by the peer's consumer is told as a connection reset", "6.1 to 7.2",
	  "take it for PEER_REJECTED", "D-16" },
	{ RDMA_DRIVER_SIW, QUIRK_SETS(caps.no_last_wqe),
	  "LAST_WQE_REACHED is never reported", "6.1 to 7.2",
	  "the queue pair goes at once, buffers it took are found then", "D-15" },
	{ RDMA_DRIVER_SIW, QUIRK_SETS(caps.reads_forgotten),
	  "a Read whose answer was coming is not flushed", "6.1 to 7.2",
	  "the queue pair goes once what was posted behind has come back", "D-09b" },
	{ RDMA_DRIVER_SIW, QUIRK_SETS(caps.reply_overrun),
	  "the side that connects gives up if more than the answer is there when it reads",
	  "6.1 to 7.2",
	  "the accepting side reports ESTABLISHED a little later, or with the first message",
	  "D-86" },
	/* soft-RoCE */
	{ RDMA_DRIVER_RXE, QUIRK_SETS(caps.fence_stalls),
	  "a fence may never let its request pass, or let it pass too early", "6.1 to 7.2",
	  "an invalidation that invalidates nothing goes first instead", "D-83" },
	{ RDMA_DRIVER_RXE, QUIRK_SETS(caps.late_ack),
	  "a message is acknowledged after its completion, and not at all once the queue pair fails",
	  "6.1 to 7.2", "after a graceful disconnect the queue pair lives on for a moment",
	  "D-85" },
	{ RDMA_DRIVER_RXE, QUIRK_SETS(caps.srq_pd_checked),
	  "Receives of an SRQ are checked against the PD of the queue pair", "6.1 to 7.2",
	  "an EP and its SRQ must have the same PZ", "D-15" },
	{ RDMA_DRIVER_RXE, QUIRK_SETS(caps.map_allocates),
	  "mapping splits large pages and may allocate for that", "6.1 to 7.2",
	  "LMRs are bound in pages of PAGE_SIZE; each MR is mapped once before", "D-24, D-68" },
	/* hardware: read in the sources, see Documentation/adapters.md */
	{ RDMA_DRIVER_MLX5, QUIRK_SETS(caps.fence_not_reg),
	  "a registration has the fence that its firmware asks for, not the consumer's", "7.2",
	  "an empty fenced Write goes first", "D-95" },
	{ RDMA_DRIVER_BNXT_RE, QUIRK_SETS(caps.fence_not_reg),
	  "the fence of a registration is not handed on", "7.2",
	  "an empty fenced Write goes first", "D-95" },
	{ RDMA_DRIVER_BNXT_RE, QUIRK_SETS(caps.fence_not_inv),
	  "the fence of an invalidation is not handed on", "7.2",
	  "an empty fenced Write goes first", "D-95" },
	{ RDMA_DRIVER_BNXT_RE, QUIRK_SETS(caps.one_read_limit),
	  "each read depth is compared with the limit of the other one", "7.2",
	  "both have the smaller limit", "D-13" },
	{ RDMA_DRIVER_CXGB4, QUIRK_SETS(caps.fence_send_inv),
	  "only Sends and invalidations are fenced", "7.2",
	  "other fenced requests are refused", "D-95" },
	{ RDMA_DRIVER_CXGB4, QUIRK_SETS(caps.pairs_peeked),
	  "a Write and a Send posted as a pair are looked at without their counts", "7.2",
	  "the two are posted one after the other", "D-96" },
	{ RDMA_DRIVER_MLX5, QUIRK_SETS(caps.sq_by_segments),
	  "entries of the send queue grow with the segments, max_qp_wr is for one", "7.2",
	  "find out how many there can be, and say so in max_dto_per_ep", "D-97" },
	{ RDMA_DRIVER_ERDMA, QUIRK_SETS(caps.read_has_segment),
	  "a Read without a segment is refused, also on RoCE", "7.2",
	  "an empty segment is added", "D-96" },
	{ ON_IWARP(RDMA_DRIVER_IRDMA), QUIRK_SETS(caps.own_depths),
	  "rdma_cm has the two read depths of an answer in each other's field", "7.2",
	  "read the other field", "D-13" },
	{ ON_IWARP(RDMA_DRIVER_QEDR), QUIRK_SETS(caps.own_depths),
	  "rdma_cm has the two read depths of an answer in each other's field", "7.2",
	  "read the other field", "D-13" },
	{ ON_IWARP(RDMA_DRIVER_ERDMA), QUIRK_SETS(caps.no_depths),
	  "an answer has read depths of 0", "7.2",
	  "the consumer's own depths hold", "D-13" },
	{ ON_IWARP(RDMA_DRIVER_IRDMA), QUIRK_SETS(caps.no_asked_depths),
	  "a request has one read depth of 0 and the device's limit for the other", "7.2",
	  "the consumer's own depths hold", "D-13" },
	{ ON_IWARP(RDMA_DRIVER_ERDMA), QUIRK_SETS(caps.no_asked_depths),
	  "a request has the device's limits for read depths", "7.2",
	  "the consumer's own depths hold", "D-13" },
};

/**
 * struct kdapl_refusal - drivers whose devices cannot be served honestly
 * @driver: enum rdma_driver_id
 * @why: for the log
 */
struct kdapl_refusal {
	enum rdma_driver_id driver;
	const char *why;
};

static const struct kdapl_refusal refusals[] = {
	/* D-97: see Documentation/adapters.md */
	{ RDMA_DRIVER_HNS, "its driver cannot invalidate regions" },
	{ RDMA_DRIVER_HFI1, "its driver fixes the addresses of a region when it is mapped" },
	{ RDMA_DRIVER_OCRDMA, "its driver fixes the addresses of a region when it is mapped" },
};

/* Can connections be made on any port? */
static bool quirks_connects(struct ib_device *ibdev)
{
	u32 port;

	rdma_for_each_port(ibdev, port) {
		if (rdma_cap_ib_cm(ibdev, port) || rdma_cap_iw_cm(ibdev, port))
			return true;
	}
	return false;
}

/**
 * kdapl_quirks_refusal - is this a device we cannot serve honestly?
 * @ibdev: new device
 *
 * Return: what is wrong with it, or NULL.
 */
const char *kdapl_quirks_refusal(struct ib_device *ibdev)
{
	unsigned int i;

	if (!(ibdev->attrs.device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS) ||
	    !ibdev->attrs.max_fast_reg_page_list_len)
		return "the device has no fast registration";
	for (i = 0; i < ARRAY_SIZE(refusals); i++) {
		if (refusals[i].driver == ibdev->ops.driver_id)
			return refusals[i].why;
	}
	return quirks_connects(ibdev) ? NULL : "no port of the device makes connections";
}

#define FENCED_ALL	(BIT_ULL(IB_WR_SEND) | BIT_ULL(IB_WR_SEND_WITH_INV) | \
			 BIT_ULL(IB_WR_RDMA_WRITE) | BIT_ULL(IB_WR_RDMA_READ) | \
			 BIT_ULL(IB_WR_REG_MR))

/* Which requests need another one to be fenced, and which one that is. */
static void quirks_fences(struct kdapl_caps *caps)
{
	if (caps->fence_not_read)
		caps->unfenced |= BIT_ULL(IB_WR_RDMA_READ);
	if (caps->fence_not_reg)
		caps->unfenced |= BIT_ULL(IB_WR_REG_MR);
	if (caps->fence_not_inv)
		caps->unfenced |= BIT_ULL(IB_WR_LOCAL_INV);
	if (caps->fence_stalls) {
		caps->unfenced = FENCED_ALL;
		caps->fence_by = KDAPL_FENCE_INV;
	}
	/* what an invalidation of nothing does there is not to be seen in the source */
	if (caps->fence_send_inv) {
		caps->unfenced = FENCED_ALL & ~(BIT_ULL(IB_WR_SEND) |
						BIT_ULL(IB_WR_SEND_WITH_INV));
		caps->fence_by = KDAPL_FENCE_NONE;
	}
	/* an RMR that is bound anew is invalidated first, and a fence may go before that */
	caps->most_wrs = caps->unfenced & BIT_ULL(IB_WR_LOCAL_INV) ? 3 : 2;
}

static bool quirks_row_holds(const struct kdapl_quirk *quirk, int driver, bool iwarp)
{
	return quirk->driver == driver ||
	       (iwarp && (quirk->driver == QUIRK_IWARP || quirk->driver == ON_IWARP(driver)));
}

/**
 * kdapl_quirks_derive - find out what a new device can do and needs
 * @dev: device, with @ibdev and @attrs set
 * @iwarp: its protocol is iWARP
 */
void kdapl_quirks_derive(struct kdapl_device *dev, bool iwarp)
{
	const struct kdapl_quirk *quirk;
	unsigned int i;

	dev->iwarp = false;
	memset(&dev->caps, 0, sizeof(dev->caps));
	for (i = 0; i < ARRAY_SIZE(quirks); i++) {
		quirk = &quirks[i];
		if (!quirks_row_holds(quirk, dev->ibdev->ops.driver_id, iwarp))
			continue;
		*(bool *)((char *)dev + quirk->member) = true;
		pr_debug("%s: %s (%s): %s (%s)\n", dev_name(&dev->ibdev->dev), quirk->fact,
			 quirk->since, quirk->cure, quirk->decision);
	}
	quirks_fences(&dev->caps);
	if (dev->caps.one_read_limit) {
		dev->attrs.max_qp_rd_atom = min(dev->attrs.max_qp_rd_atom,
						dev->attrs.max_qp_init_rd_atom);
		dev->attrs.max_qp_init_rd_atom = dev->attrs.max_qp_rd_atom;
	}
}

static void quirks_probe_comp(struct ib_cq *cq, void *context)
{
}

/* Would the device make a queue pair for so many requests of this many segments? */
static bool quirks_probe_fits(struct ib_pd *pd, struct ib_cq *cq, u32 wrs, u32 segments)
{
	struct ib_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = {
			.max_send_wr = wrs,
			.max_recv_wr = 1,
			.max_send_sge = segments,
			.max_recv_sge = 1,
		},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
		.port_num = rdma_start_port(pd->device),
	};
	struct ib_qp *qp = ib_create_qp_kernel(pd, &init, KBUILD_MODNAME);

	if (IS_ERR(qp))
		return false;
	ib_destroy_qp(qp);
	return true;
}

/*
 * The deepest send queue, near enough, for requests with all their segments. What does
 * not fit the device is refused by the driver before it asks its firmware.
 */
static u32 quirks_probe_depth(struct ib_pd *pd, struct ib_cq *cq, u32 most, u32 segments)
{
	u32 fits = 0, limit = most, try = most;

	while (limit - fits > fits / 16 + 1) {
		if (quirks_probe_fits(pd, cq, try, segments))
			fits = try;
		else
			limit = try;
		if (fits == most)
			break;
		try = fits + (limit - fits) / 2;
	}
	return fits;
}

/**
 * kdapl_quirks_probe - find out by trying what a device does not say
 * @dev: new device, not yet known to anybody
 *
 * Context: may sleep.
 */
void kdapl_quirks_probe(struct kdapl_device *dev)
{
	const struct ib_device_attr *attrs = &dev->attrs;
	struct ib_cq_init_attr cq_attr = { .cqe = 1 };
	struct ib_pd *pd;
	struct ib_cq *cq;

	if (!dev->caps.sq_by_segments)
		return;
	/* if it cannot be tried: as if each segment took an entry */
	dev->caps.sq_wrs = max(1, attrs->max_qp_wr / max(1, attrs->max_send_sge));
	pd = ib_alloc_pd(dev->ibdev, 0);
	if (IS_ERR(pd))
		return;
	cq = ib_create_cq(dev->ibdev, quirks_probe_comp, NULL, NULL, &cq_attr);
	if (!IS_ERR(cq)) {
		dev->caps.sq_wrs = max(1U, quirks_probe_depth(pd, cq, min(attrs->max_qp_wr,
									  attrs->max_cqe),
						       attrs->max_send_sge));
		ib_destroy_cq(cq);
	}
	ib_dealloc_pd(pd);
}
