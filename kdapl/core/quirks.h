/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * What devices can do and need beyond their attributes, derived once when a
 * device is added. quirks.c says how to add a fact.
 */
#ifndef KDAPL_CORE_QUIRKS_H
#define KDAPL_CORE_QUIRKS_H

#include <linux/types.h>

struct ib_device;
struct kdapl_device;

/**
 * enum kdapl_fence - the request that fences another which the device does not fence itself
 * @KDAPL_FENCE_WRITE: an empty fenced RDMA Write
 * @KDAPL_FENCE_INV: the invalidation of a region that was never valid, which waits for
 *	everything before it; nothing is posted with IB_SEND_FENCE
 * @KDAPL_FENCE_NONE: there is none: the fenced request is refused
 */
enum kdapl_fence {
	KDAPL_FENCE_WRITE,
	KDAPL_FENCE_INV,
	KDAPL_FENCE_NONE,
};

/* The longest page list with @short_lists. */
#define KDAPL_SHORT_LIST	512U

/* The longest page list with @flat_lists: 64 KiB of addresses. */
#define KDAPL_FLAT_LIST		8192U

/**
 * struct kdapl_caps - what is special about a device; zero is ordinary
 * @fence_not_read: IB_SEND_FENCE has no effect on an RDMA Read
 * @fence_not_reg: IB_SEND_FENCE has no effect on a registration
 * @fence_not_inv: IB_SEND_FENCE has no effect on an invalidation
 * @fence_stalls: a request with IB_SEND_FENCE may stall for ever, or start too early
 * @fence_send_inv: IB_SEND_FENCE has an effect on Sends and invalidations only
 * @unfenced: opcodes, as bits, that another request has to fence; follows from the above
 * @fence_by: enum kdapl_fence: the request that does so
 * @most_wrs: most WRs that one request of the consumer can take
 * @one_read_limit: the driver mixes up the limits of the two read depths
 * @read_has_segment: an RDMA Read must have a local segment, even if it is empty
 * @pairs_peeked: if a Write and a Send are posted as a pair, the driver reads the first segment
 *	of both even if there is none
 * @sq_by_segments: the depth of a send queue depends on the segments of its requests
 * @sq_wrs: depth for requests with the most segments the device takes; 0: max_qp_wr
 * @map_allocates: ib_map_mr_sg() may allocate, and splits large pages
 * @late_ack: a message is acknowledged after its completion, and never if the queue pair is in
 *	ERR by then
 * @own_depths: an MPA reply has the two read depths as the device sees them, that is, swapped
 * @no_depths: an MPA reply has no read depths
 * @no_asked_depths: a connection request lacks the read depths that the peer asked for
 * @reject_resets: a refusal by the peer's consumer is reported as -ECONNRESET
 * @reject_unsafe: a request may not be refused while the connection manager still works on it
 * @no_solicited: the solicited bit of a Send is ignored
 * @reads_unordered: a Read completes as soon as its data has arrived, out of order
 * @reads_deadlock: two ends with outstanding Reads may wait for each other for ever
 * @reads_forgotten: a Read whose response is arriving when the queue pair fails never completes
 * @short_page_bug: a short segment that crosses a page is sent with wrong bytes
 * @early_data_unseen: data that arrives with the end of the connection setup goes unnoticed
 *	until more arrives
 * @empty_read_stale: the response to an empty Read may have old bytes
 * @lends_pages: a request without a completion is sent from its pages, perhaps later
 * @inval_any_low_byte: a key with any low byte invalidates its region
 * @any_page_size: each entry of a page list has a length of its own
 * @fixed_blocks: a registration does not tell the device the block size of its page list
 * @short_length: a registration has 32 bits for the length
 * @short_lists: a page list of more than KDAPL_SHORT_LIST blocks may be one that a registration
 *	gets wrong
 * @flat_lists: a page list of more than KDAPL_FLAT_LIST blocks has two levels, and is wrong
 * @no_srq: the driver makes no SRQ for the kernel
 * @short_srq: an SRQ of max_srq_wr entries is refused
 * @srq_err_empty: IB_EVENT_SRQ_ERR is raised when an SRQ is empty, and never for an error
 * @no_last_wqe: IB_EVENT_QP_LAST_WQE_REACHED is never reported
 * @srq_pd_checked: an SRQ must be of the same PD as the queue pairs that use it
 * @no_tos: the type of service of a connection is ignored
 * @no_immed: a Write carries no immediate data
 * @reply_overrun: the active side fails if data follows the MPA reply before it has read it
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
	bool fixed_blocks;
	bool short_length;
	bool short_lists;
	bool flat_lists;
	bool no_srq;
	bool short_srq;
	bool srq_err_empty;
	bool no_last_wqe;
	bool srq_pd_checked;
	bool no_tos;
	bool no_immed;
	bool reply_overrun;
};

/*
 * Do single posts take post_quirky_*(), the fast path of a device with quirks? It checks each
 * request for them. @early_data_unseen counts because of the kicks. These are requests of our own
 * between those of the consumer, so the lock is needed even if the consumer serialises its posts.
 */
static inline bool kdapl_caps_post_quirks(const struct kdapl_caps *caps)
{
	return caps->reads_unordered || caps->reads_deadlock || caps->short_page_bug ||
	       caps->lends_pages || caps->early_data_unseen;
}

const char *kdapl_quirks_refusal(struct ib_device *ibdev);
void kdapl_quirks_probe(struct kdapl_device *dev);
void kdapl_quirks_derive(struct kdapl_device *dev, bool iwarp);

#endif /* KDAPL_CORE_QUIRKS_H */
