// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Quirks: facts about providers.
 *
 * Only this file looks at the driver of a device. Each fact is a row of the table
 * below, which sets one member of struct kdapl_device, mostly of its caps, when the
 * device is added. All other code tests that member and knows no provider by name.
 *
 * To add a fact: add a bool to struct kdapl_caps (quirks.h) that says what the
 * device does or needs, not which device it is. Add a row here or, if the fact
 * follows from attributes of the device, a line in kdapl_quirks_derive(). Zero is
 * the ordinary device, so an unknown provider needs no row. If the fact matters to
 * single posts, extend kdapl_caps_post_quirks() and post_quirky_needs_slow(). Run
 * `make doc-tables`, which copies the rows to adapters.md. Tests set the driver_id
 * of the fake device (struct fake_ib_caps), or the member itself before they make
 * the first object.
 */
#include "core.h"

/* In place of a driver: a row for all devices of a protocol. */
#define QUIRK_IWARP	-1

/* A row for a driver on one of its protocols. */
#define ON_IWARP(driver)	((driver) | QUIRK_ON_IWARP)
#define QUIRK_ON_IWARP		0x10000

/**
 * struct kdapl_quirk - a fact about a provider
 * @driver: enum rdma_driver_id, ON_IWARP() of one, or QUIRK_IWARP
 * @member: offset in struct kdapl_device of the bool that it sets
 * @fact: what the provider does
 * @since: kernels it was found in
 * @cure: what kDAPL does about it
 * @decision: decision that gives the reason (Documentation/conformance/decisions.md)
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
	  "the queue pair is not moved by hand", "D-13" },
	{ QUIRK_IWARP, QUIRK_SETS(caps.read_has_segment),
	  "a Read has exactly one local segment, even if it is empty", "by the protocol",
	  "an empty segment is added", "D-96" },
	{ QUIRK_IWARP, QUIRK_SETS(iwarp),
	  "the response to a Read is written by the remote key of its sink, like a Write",
	  "by the protocol", "the sink of a Read needs the remote write right", "D-22" },
	{ QUIRK_IWARP, QUIRK_SETS(caps.fence_not_read),
	  "a fence on a Read itself does nothing", "by the protocol",
	  "an empty fenced Write goes first", "D-14" },
	{ QUIRK_IWARP, QUIRK_SETS(iwarp),
	  "requests are flushed before the connection manager reports the end",
	  "by the protocol", "a flush does not mean BROKEN before that report", "D-08" },
	{ QUIRK_IWARP, QUIRK_SETS(iwarp),
	  "a queue pair does not connect to itself", "by the protocol",
	  "the registration queue pair has a peer of its own, connected by rdma_cm", "D-21" },
	{ QUIRK_IWARP, QUIRK_SETS(caps.no_immed),
	  "a Write carries no immediate data", "by the protocol",
	  "a Write with immediate data is refused", "D-109" },
	/* soft-iWARP */
	{ RDMA_DRIVER_SIW, QUIRK_SETS(caps.no_solicited),
	  "the solicited bit of a Send is ignored", "6.1 to 7.2",
	  "every Receive notifies", "D-01" },
	{ RDMA_DRIVER_SIW, QUIRK_SETS(caps.reads_unordered),
	  "Reads complete out of order", "6.1 to 7.2",
	  "completions wait for the Reads before them", "D-09b" },
	{ RDMA_DRIVER_SIW, QUIRK_SETS(caps.reads_deadlock),
	  "two ends that wait for each other's read queue never go on", "6.1 to 7.2",
	  "the largest read depth is asked for, Reads are counted, a disconnect has a deadline",
	  "D-14" },
	{ RDMA_DRIVER_SIW, QUIRK_SETS(caps.own_depths),
	  "events of rdma_cm have the two read depths swapped", "6.1 to 7.2",
	  "they are swapped back", "D-13" },
	{ RDMA_DRIVER_SIW, QUIRK_SETS(caps.short_page_bug),
	  "short requests that cross a page are sent with wrong bytes", "6.1 to 7.2",
	  "they are posted as two segments", "D-36" },
	{ RDMA_DRIVER_SIW, QUIRK_SETS(caps.early_data_unseen),
	  "data that arrives during the end of the connection setup goes unnoticed",
	  "6.1 to 7.2", "empty Writes wake the passive side", "D-37" },
	{ RDMA_DRIVER_SIW, QUIRK_SETS(caps.empty_read_stale),
	  "the response to an empty Read may have old bytes", "6.1 to 7.2",
	  "an empty Write is posted instead", "D-37" },
	{ RDMA_DRIVER_SIW, QUIRK_SETS(caps.lends_pages),
	  "a request without a completion is sent from its pages, not from a copy", "6.1 to 7.2",
	  "such a request of a page or more is always signaled", "D-75" },
	{ RDMA_DRIVER_SIW, QUIRK_SETS(caps.inval_any_low_byte),
	  "the low byte of an invalidated key is not compared", "6.1 to 7.2",
	  "a connection whose peer invalidates any but the valid key is ended", "D-69" },
	{ RDMA_DRIVER_SIW, QUIRK_SETS(caps.reject_unsafe),
	  "refusing a connection request at once crashes the kernel", "6.1 to 7.2",
	  "it is refused a little later", "D-60" },
	{ RDMA_DRIVER_SIW, QUIRK_SETS(caps.any_page_size),
	  "entries of a page list have any length", "6.1 to 7.2",
	  "a page list has one entry for each segment", "D-64" },
	{ RDMA_DRIVER_SIW, QUIRK_SETS(caps.reject_resets),
	  "a refusal by the peer's consumer is reported as a connection reset", "6.1 to 7.2",
	  "a reset counts as PEER_REJECTED", "D-16" },
	{ RDMA_DRIVER_SIW, QUIRK_SETS(caps.no_last_wqe),
	  "LAST_WQE_REACHED is never reported", "6.1 to 7.2",
	  "the queue pair is destroyed at once; its buffers are accounted for then", "D-15" },
	{ RDMA_DRIVER_SIW, QUIRK_SETS(caps.reads_forgotten),
	  "a Read whose response was arriving is not flushed", "6.1 to 7.2",
	  "the queue pair is destroyed once everything posted behind it has come back", "D-09b" },
	{ RDMA_DRIVER_SIW, QUIRK_SETS(caps.reply_overrun),
	  "the active side fails if data follows the MPA reply before it has read it",
	  "6.1 to 7.2",
	  "the passive side reports ESTABLISHED 50 ms later, or with the first message",
	  "D-86" },
	{ RDMA_DRIVER_SIW, QUIRK_SETS(caps.no_tos),
	  "its sockets do not get the type of service", "6.1 to 7.2",
	  "best effort is the only quality of service", "D-106" },
	/* soft-RoCE */
	{ RDMA_DRIVER_RXE, QUIRK_SETS(caps.fence_stalls),
	  "a fenced request may never start, or start too early", "6.1 to 7.2",
	  "instead of the fence, a local invalidation without effect is posted before it", "D-83" },
	{ RDMA_DRIVER_RXE, QUIRK_SETS(caps.late_ack),
	  "a message is acknowledged after its completion, but not once the queue pair is in error",
	  "6.1 to 7.2",
	  "after a graceful disconnect the queue pair is kept for 10 to 20 ms and a grace period",
	  "D-85" },
	{ RDMA_DRIVER_RXE, QUIRK_SETS(caps.srq_pd_checked),
	  "Receives of an SRQ are checked against the PD of the queue pair", "6.1 to 7.2",
	  "an EP and its SRQ must have the same PZ", "D-15" },
	{ RDMA_DRIVER_RXE, QUIRK_SETS(caps.map_allocates),
	  "mapping an MR splits large pages and may allocate memory for that", "6.1 to 7.2",
	  "bindings use pages of PAGE_SIZE; each MR is mapped once in advance", "D-24, D-68" },
	/* hardware, from the sources of the drivers: see Documentation/adapters.md */
	{ RDMA_DRIVER_MLX5, QUIRK_SETS(caps.fence_not_reg),
	  "a registration gets the fence its firmware asks for, not the requested one", "7.2",
	  "an empty fenced Write goes first", "D-95" },
	{ RDMA_DRIVER_BNXT_RE, QUIRK_SETS(caps.fence_not_reg),
	  "the fence of a registration is dropped", "7.2",
	  "an empty fenced Write goes first", "D-95" },
	{ RDMA_DRIVER_BNXT_RE, QUIRK_SETS(caps.fence_not_inv),
	  "the fence of an invalidation is dropped", "7.2",
	  "an empty fenced Write goes first", "D-95" },
	{ RDMA_DRIVER_BNXT_RE, QUIRK_SETS(caps.one_read_limit),
	  "each read depth is compared with the limit of the other one", "7.2",
	  "the smaller limit holds for both", "D-13" },
	{ RDMA_DRIVER_CXGB4, QUIRK_SETS(caps.fence_send_inv),
	  "only Sends and invalidations are fenced", "7.2",
	  "other fenced requests are refused", "D-95" },
	{ RDMA_DRIVER_CXGB4, QUIRK_SETS(caps.pairs_peeked),
	  "a Write and a Send posted as a pair are read without their segment counts", "7.2",
	  "the two are posted one after the other", "D-96" },
	{ RDMA_DRIVER_MLX5, QUIRK_SETS(caps.sq_by_segments),
	  "entries of the send queue grow with the segments, max_qp_wr is for one segment", "7.2",
	  "the possible depth is probed and limits max_dto_per_ep", "D-97" },
	{ RDMA_DRIVER_ERDMA, QUIRK_SETS(caps.fixed_blocks),
	  "the block size of an MR is fixed when it is made, to the size of the kernel's pages",
	  "7.2", "page lists have blocks of PAGE_SIZE", "D-97" },
	{ RDMA_DRIVER_VMW_PVRDMA, QUIRK_SETS(caps.fixed_blocks),
	  "the block size of an MR is fixed when it is made, to the size of the kernel's pages",
	  "7.2", "page lists have blocks of PAGE_SIZE", "D-97" },
	{ RDMA_DRIVER_VMW_PVRDMA, QUIRK_SETS(caps.no_srq),
	  "SRQs are for user space only, although there is a number of them", "6.1 to 7.2",
	  "the device has none", "D-97" },
	{ RDMA_DRIVER_BNXT_RE, QUIRK_SETS(caps.short_srq),
	  "an SRQ of the largest size is refused", "6.1 to 7.2",
	  "none is as large", "D-97" },
	{ RDMA_DRIVER_QEDR, QUIRK_SETS(caps.srq_err_empty),
	  "the event for an SRQ that has failed is raised when one is empty", "6.1 to 7.2",
	  "it is ignored", "D-97" },
	{ RDMA_DRIVER_BNXT_RE, QUIRK_SETS(caps.short_length),
	  "a registration has the lower 32 bits of the length", "7.2",
	  "longer regions are refused", "D-97" },
	{ RDMA_DRIVER_CXGB4, QUIRK_SETS(caps.short_length),
	  "a registration has the lower 32 bits of the length", "7.2",
	  "longer regions are refused", "D-97" },
	{ RDMA_DRIVER_QEDR, QUIRK_SETS(caps.short_length),
	  "a registration has the lower 32 bits of the length", "7.2",
	  "longer regions are refused", "D-97" },
	{ RDMA_DRIVER_IRDMA, QUIRK_SETS(caps.short_lists),
	  "a page list of more than 512 blocks may have two levels, but is registered as one of one",
	  "7.2", "no page list is longer", "D-97" },
	{ RDMA_DRIVER_QEDR, QUIRK_SETS(caps.flat_lists),
	  "the blocks of a page list of two levels overwrite the upper one", "6.1 to 7.2",
	  "no page list has two levels", "D-97" },
	{ RDMA_DRIVER_ERDMA, QUIRK_SETS(caps.read_has_segment),
	  "a Read without a segment is refused, on RoCE as well", "7.2",
	  "an empty segment is added", "D-96" },
	{ ON_IWARP(RDMA_DRIVER_IRDMA), QUIRK_SETS(caps.own_depths),
	  "MPA replies have the two read depths swapped", "7.2",
	  "they are swapped back", "D-13" },
	{ ON_IWARP(RDMA_DRIVER_QEDR), QUIRK_SETS(caps.own_depths),
	  "MPA replies have the two read depths swapped", "7.2",
	  "they are swapped back", "D-13" },
	{ ON_IWARP(RDMA_DRIVER_QEDR), QUIRK_SETS(caps.no_tos),
	  "the type of service of a connection is ignored", "7.2",
	  "best effort is the only quality of service", "D-106" },
	{ ON_IWARP(RDMA_DRIVER_ERDMA), QUIRK_SETS(caps.no_tos),
	  "the type of service of a connection is ignored", "7.2",
	  "best effort is the only quality of service", "D-106" },
	{ ON_IWARP(RDMA_DRIVER_ERDMA), QUIRK_SETS(caps.no_depths),
	  "an MPA reply has read depths of 0", "7.2",
	  "the consumer's own depths hold", "D-13" },
	{ ON_IWARP(RDMA_DRIVER_IRDMA), QUIRK_SETS(caps.no_asked_depths),
	  "a request has one read depth of 0, and the limit of the device as the other", "7.2",
	  "the consumer's own depths hold", "D-13" },
	{ ON_IWARP(RDMA_DRIVER_ERDMA), QUIRK_SETS(caps.no_asked_depths),
	  "a request has the limits of the device as read depths", "7.2",
	  "the consumer's own depths hold", "D-13" },
};

/**
 * struct kdapl_refusal - a driver whose devices get no IA
 * @driver: enum rdma_driver_id
 * @why: reason, for the log
 */
struct kdapl_refusal {
	enum rdma_driver_id driver;
	const char *why;
};

static const struct kdapl_refusal refusals[] = {
	/* see Documentation/adapters.md (D-97) */
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
 * kdapl_quirks_refusal - why a device gets no IA
 * @ibdev: new device
 *
 * Return: the reason, or NULL: it gets one.
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
	/* pieces of memory meet at the kernel's pages, and irdma takes an unknown size for 4 KiB */
	if (ibdev->attrs.page_size_cap && !(ibdev->attrs.page_size_cap & PAGE_SIZE))
		return "the device has no blocks of the size of the kernel's pages";
	return quirks_connects(ibdev) ? NULL : "no port of the device makes connections";
}

#define FENCED_ALL	(BIT_ULL(IB_WR_SEND) | BIT_ULL(IB_WR_SEND_WITH_INV) | \
			 BIT_ULL(IB_WR_RDMA_WRITE) | BIT_ULL(IB_WR_RDMA_WRITE_WITH_IMM) | \
			 BIT_ULL(IB_WR_RDMA_READ) | BIT_ULL(IB_WR_REG_MR))

/* Which requests need another one to fence them, and which one does. */
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
	/* no fence can go first: the driver does not tell what invalidating no region would do */
	if (caps->fence_send_inv) {
		caps->unfenced = FENCED_ALL & ~(BIT_ULL(IB_WR_SEND) |
						BIT_ULL(IB_WR_SEND_WITH_INV));
		caps->fence_by = KDAPL_FENCE_NONE;
	}
	/* binding a bound RMR invalidates it first, and a fence may go before that */
	caps->most_wrs = caps->unfenced & BIT_ULL(IB_WR_LOCAL_INV) ? 3 : 2;
}

static bool quirks_row_holds(const struct kdapl_quirk *quirk, int driver, bool iwarp)
{
	return quirk->driver == driver ||
	       (iwarp && (quirk->driver == QUIRK_IWARP || quirk->driver == ON_IWARP(driver)));
}

/**
 * kdapl_quirks_derive - derive the capabilities and needs of a new device
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
	if (dev->caps.fixed_blocks)
		dev->attrs.page_size_cap = PAGE_SIZE;
	if (dev->caps.short_lists)
		dev->attrs.max_fast_reg_page_list_len =
			min(dev->attrs.max_fast_reg_page_list_len, KDAPL_SHORT_LIST);
	if (dev->caps.flat_lists)
		dev->attrs.max_fast_reg_page_list_len =
			min(dev->attrs.max_fast_reg_page_list_len, KDAPL_FLAT_LIST);
	if (dev->caps.no_srq)
		dev->attrs.max_srq = 0;
	if (dev->caps.short_srq)
		dev->attrs.max_srq_wr = max(dev->attrs.max_srq_wr - 1, 0);
	if (dev->caps.one_read_limit) {
		dev->attrs.max_qp_rd_atom = min(dev->attrs.max_qp_rd_atom,
						dev->attrs.max_qp_init_rd_atom);
		dev->attrs.max_qp_init_rd_atom = dev->attrs.max_qp_rd_atom;
	}
}

static void quirks_probe_comp(struct ib_cq *cq, void *context)
{
}

/* Can the device create a queue pair for so many requests of so many segments? */
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
 * The largest depth of a send queue for requests of so many segments, to within 1/16. The
 * driver refuses what does not fit without asking its firmware.
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
 * kdapl_quirks_probe - find out by trying what the attributes of a device do not say
 * @dev: new device, not published yet
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
	/* in case probing fails: as if each segment took an entry */
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
