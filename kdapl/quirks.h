/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What devices can do and need beyond their attributes, derived once when a
 * device is added (quirks.c, which says how to add to it).
 */
#ifndef KDAPL_QUIRKS_H
#define KDAPL_QUIRKS_H

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
	bool reply_overrun;
};

const char *kdapl_quirks_refusal(struct ib_device *ibdev);
void kdapl_quirks_probe(struct kdapl_device *dev);
void kdapl_quirks_derive(struct kdapl_device *dev, bool iwarp);

#endif /* KDAPL_QUIRKS_H */
