// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Quirks: what kDAPL knows about providers.
 *
 * This is the only file that asks who provides a device. Each fact is a row of
 * the table below; it sets one member of struct kdapl_device, mostly of its
 * caps, when the device is added. All other code tests that member and knows no
 * provider by name.
 *
 * To add a fact: add a bool to struct kdapl_caps (quirks.h) that says what the
 * device does or needs, not who it is; add a row here, or, if the fact follows
 * from what the device says of itself, a line in kdapl_quirks_derive(). Zero is
 * the ordinary device, so that a provider unknown here needs no row. Tests set
 * the driver_id of the fake device (struct fake_ib_caps), or the member itself
 * before the first object is made.
 */
#include "kdapl.h"

/* Instead of a driver: rows that hold for a whole protocol. */
#define QUIRK_IWARP	-1

/**
 * struct kdapl_quirk - a fact about a provider
 * @driver: enum rdma_driver_id, or QUIRK_IWARP
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

/*
 * Rows that set iwarp, siw or rxe are facts whose code still tests these three. Each is
 * to get a member of its own in caps.
 */
static const struct kdapl_quirk quirks[] = {
	/* iWARP */
	{ QUIRK_IWARP, QUIRK_SETS(iwarp),
	  "the connection manager moves the queue pair itself", "by the protocol",
	  "no modify by hand", "D-14" },
	{ QUIRK_IWARP, QUIRK_SETS(iwarp),
	  "a Read has exactly one local segment, also when it is empty", "by the protocol",
	  "an empty segment is added", "D-14" },
	{ QUIRK_IWARP, QUIRK_SETS(iwarp),
	  "a Read writes into its sink by the sink's key, as a peer's Write does",
	  "by the protocol", "memory for Reads is registered for remote writing", "D-22" },
	{ QUIRK_IWARP, QUIRK_SETS(iwarp),
	  "a fence on a Read itself does nothing", "by the protocol",
	  "an empty fenced Write goes first", "D-14" },
	{ QUIRK_IWARP, QUIRK_SETS(iwarp),
	  "flushes come before the connection manager's word", "by the protocol",
	  "wait for that word before the connection counts as broken", "D-08" },
	{ QUIRK_IWARP, QUIRK_SETS(iwarp),
	  "a queue pair does not connect to itself", "by the protocol",
	  "the registration queue pair has a peer of its own, connected by rdma_cm", "D-21" },
	/* soft-iWARP */
	{ RDMA_DRIVER_SIW, QUIRK_SETS(siw),
	  "the solicited bit of a Send is ignored", "6.1 to 7.2",
	  "notify of every Receive", "D-01" },
	{ RDMA_DRIVER_SIW, QUIRK_SETS(siw),
	  "Reads complete out of order", "6.1 to 7.2",
	  "completions wait for the Reads before them", "D-09b" },
	{ RDMA_DRIVER_SIW, QUIRK_SETS(siw),
	  "two ends that both wait for the read queue wait for ever", "6.1 to 7.2",
	  "ask for the largest read depth and count Reads; a disconnect has a deadline",
	  "D-14" },
	{ RDMA_DRIVER_SIW, QUIRK_SETS(siw),
	  "rdma_cm has the two read depths in each other's field", "6.1 to 7.2",
	  "read the other field", "D-13" },
	{ RDMA_DRIVER_SIW, QUIRK_SETS(siw),
	  "short requests that cross a page go out with wrong bytes", "6.1 to 7.2",
	  "post them as two segments", "D-36" },
	{ RDMA_DRIVER_SIW, QUIRK_SETS(siw),
	  "data that overtakes the end of the connection setup is not looked at",
	  "6.1 to 7.2", "empty Writes wake the passive side", "D-37" },
	{ RDMA_DRIVER_SIW, QUIRK_SETS(siw),
	  "an empty Read may be answered with old bytes", "6.1 to 7.2",
	  "post an empty Write instead", "D-37" },
	{ RDMA_DRIVER_SIW, QUIRK_SETS(siw),
	  "TCP gets the pages of a request without a completion, not a copy", "6.1 to 7.2",
	  "such a request from a page on is always signaled", "D-75" },
	{ RDMA_DRIVER_SIW, QUIRK_SETS(siw),
	  "the low byte of an invalidated key is not compared", "6.1 to 7.2",
	  "a connection that invalidates a key which is not the valid one is ended", "D-69" },
	{ RDMA_DRIVER_SIW, QUIRK_SETS(siw),
	  "a request refused at once crashes the kernel", "6.1 to 7.2",
	  "refuse it later", "D-60" },
	{ RDMA_DRIVER_SIW, QUIRK_SETS(siw),
	  "page lists have entries of any length", "6.1 to 7.2",
	  "one entry for each segment", "D-22" },
	/* soft-RoCE */
	{ RDMA_DRIVER_RXE, QUIRK_SETS(rxe),
	  "a fence may never let its request pass, or let it pass too early", "6.1 to 7.2",
	  "an invalidation that invalidates nothing goes first instead", "D-83" },
	{ RDMA_DRIVER_RXE, QUIRK_SETS(rxe),
	  "Receives of an SRQ are checked against the PD of the queue pair", "6.1 to 7.2",
	  "an EP and its SRQ must have the same PZ", "D-15" },
	{ RDMA_DRIVER_RXE, QUIRK_SETS(rxe),
	  "mapping splits large pages and may allocate for that", "6.1 to 7.2",
	  "dat_lmr_fmr maps PAGE_SIZE only", "D-24, D-68" },
};

static bool quirk_holds(const struct kdapl_device *dev, const struct kdapl_quirk *quirk)
{
	if (quirk->driver == QUIRK_IWARP)
		return rdma_protocol_iwarp(dev->ibdev, rdma_start_port(dev->ibdev));
	return quirk->driver == dev->ibdev->ops.driver_id;
}

/**
 * kdapl_quirks_derive - find out what a new device can do and needs
 * @dev: device, with @ibdev and @attrs set and all else zero
 */
void kdapl_quirks_derive(struct kdapl_device *dev)
{
	const struct kdapl_quirk *quirk;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(quirks); i++) {
		quirk = &quirks[i];
		if (!quirk_holds(dev, quirk))
			continue;
		*(bool *)((char *)dev + quirk->member) = true;
		pr_debug("%s: %s (%s): %s (%s)\n", dev_name(&dev->ibdev->dev), quirk->fact,
			 quirk->since, quirk->cure, quirk->decision);
	}
}
