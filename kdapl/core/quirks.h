/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * What devices can do and need beyond their attributes, derived once when a
 * device is added (quirks.c, which says how to add to it).
 */
#ifndef KDAPL_CORE_QUIRKS_H
#define KDAPL_CORE_QUIRKS_H

#include <linux/types.h>

struct ib_device;
struct kdapl_device;

/**
 * enum kdapl_fence - what goes before a request that the device does not fence itself
 * @KDAPL_FENCE_WRITE: an empty fenced RDMA Write
 * @KDAPL_FENCE_INV: the invalidation of a region that was never valid, which waits for
 *	everything before it; nothing is posted with IB_SEND_FENCE
 * @KDAPL_FENCE_NONE: nothing fences it: the request is refused
 */
enum kdapl_fence {
	KDAPL_FENCE_WRITE,
	KDAPL_FENCE_INV,
	KDAPL_FENCE_NONE,
};

/**
 * struct kdapl_caps - what is special about a device; zero is ordinary
 * @fence_not_read: IB_SEND_FENCE does nothing on an RDMA Read
 * @fence_not_reg: nor on a registration
 * @fence_not_inv: nor on an invalidation
 * @fence_stalls: it may never let its request pass, or too early
 * @fence_send_inv: it works on Sends and invalidations only
 * @unfenced: these, as bits by opcode: requests that have to be fenced by another one
 * @fence_by: enum kdapl_fence: which one
 * @most_wrs: how many work requests one request of the consumer takes at most
 * @one_read_limit: the driver takes the limits of the two read depths for each other
 * @read_has_segment: an RDMA Read must have a local segment, also if it is empty
 * @pairs_peeked: of a Write and a Send posted as a pair the first segments are looked at,
 *	also if there are none
 * @sq_by_segments: how many requests a queue can hold depends on their segments
 * @sq_wrs: how many it can hold then that have as many as the device takes; 0: as many as
 *	the device says
 * @map_allocates: ib_map_mr_sg() may allocate, and splits large pages
 * @late_ack: a message is acknowledged after its completion, and not at all by a queue pair
 *	that is in ERR by then
 * @own_depths: an answer of the peer tells the two read depths from the device's side, each
 *	in the field of the other one
 * @no_depths: an answer of the peer tells no read depths
 * @no_asked_depths: a request of a peer does not tell the read depths it has asked for
 * @reject_resets: a refusal by the peer's consumer is told as -ECONNRESET
 * @reject_unsafe: a request may not be refused while the connection manager still works on it
 * @no_solicited: the solicited bit of a Send is ignored
 * @reads_unordered: a Read completes when its data are there, whatever was posted before it
 * @reads_deadlock: two ends that have Reads under way may wait for each other for ever
 * @reads_forgotten: a Read whose answer is coming when the queue pair fails never completes
 * @short_page_bug: a short segment that crosses a page is sent wrong
 * @early_data_unseen: data that arrive with the end of the connection setup wait for more
 * @empty_read_stale: an empty Read may be answered with bytes of another one
 * @lends_pages: the network reads the memory of a request without a completion later on
 * @inval_any_low_byte: a peer invalidates a region with any low byte of its key
 * @any_page_size: each entry of a page list has a length of its own
 * @no_last_wqe: the event that a queue pair takes no more from its SRQ never comes
 * @srq_pd_checked: an SRQ must be of the same PD as the queue pairs that use it
 * @reply_overrun: the side that connects fails if more than the answer is there when it
 *	reads that
 *
 * Constant once the device is known, and read without a lock.
 */
struct kdapl_caps {
	bool fence_not_read;
	bool fence_not_reg;
	bool fence_not_inv;
	bool fence_stalls;
	bool fence_send_inv;
	u64 unfenced;
	u8 fence_by;
	u8 most_wrs;
	bool one_read_limit;
	bool read_has_segment;
	bool pairs_peeked;
	bool sq_by_segments;
	u32 sq_wrs;
	bool map_allocates;
	bool late_ack;
	bool own_depths;
	bool no_depths;
	bool no_asked_depths;
	bool reject_resets;
	bool reject_unsafe;
	bool no_solicited;
	bool reads_unordered;
	bool reads_deadlock;
	bool reads_forgotten;
	bool short_page_bug;
	bool early_data_unseen;
	bool empty_read_stale;
	bool lends_pages;
	bool inval_any_low_byte;
	bool any_page_size;
	bool no_last_wqe;
	bool srq_pd_checked;
	bool reply_overrun;
};

/* Does each request need a closer look before it may take the fast path? */
static inline bool kdapl_caps_slow_posts(const struct kdapl_caps *caps)
{
	return caps->reads_unordered || caps->reads_deadlock || caps->short_page_bug ||
	       caps->lends_pages || caps->early_data_unseen;
}

const char *kdapl_quirks_refusal(struct ib_device *ibdev);
void kdapl_quirks_probe(struct kdapl_device *dev);
void kdapl_quirks_derive(struct kdapl_device *dev, bool iwarp);

#endif /* KDAPL_CORE_QUIRKS_H */
