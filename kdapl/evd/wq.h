/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Work queues: requests and Receives that were posted and have not been reported.
 *
 * A consumer posts requests and Receives. The device is given work requests (WRs: struct
 * ib_send_wr, ib_recv_wr), often one for each, sometimes up to three. Each WR has a work queue
 * entry here (struct kdapl_wqe), which its completion points to.
 */
#ifndef KDAPL_EVD_WQ_H
#define KDAPL_EVD_WQ_H

enum kdapl_wqe_state {
	KDAPL_WQE_POSTED,	/* with the device */
	KDAPL_WQE_DONE,		/* its completion came, status and length are set */
	KDAPL_WQE_UNPOSTED,	/* never posted to the device, will be reported FLUSHED */
};

/* Values of kdapl_wqe.op in addition to DAT_DTOS: our own requests, never reported. */
#define KDAPL_OP_INV		0xfc	/* invalidates the old key of an RMR */
#define KDAPL_OP_MARKER		0xfd
#define KDAPL_OP_FENCE		0xfe
#define KDAPL_OP_KICK		0xff

/* Values of kdapl_wqe.flags in addition to the completion flags of the post. */
#define KDAPL_WQE_BROKEN	0x10	/* request: our own before it, a part of it, has failed */
#define KDAPL_WQE_IMMED	0x10	/* receive: key holds the immediate data of a Write */
#define KDAPL_WQE_SIGNALED	0x40	/* has a completion even on success */
#define KDAPL_WQE_INVALIDATED	0x80	/* receive: key holds what the peer invalidated */
#define KDAPL_WQE_OP_PENDING	0x80	/* request: an operation on memory, not retired */

/* What the message of a Receive has brought in key. */
#define KDAPL_WQE_BROUGHT	(KDAPL_WQE_INVALIDATED | KDAPL_WQE_IMMED)

/**
 * struct kdapl_wqe - a work queue entry, two to a cache line
 * @cqe: the completion's wr_cqe
 * @cookie: the consumer's, all 64 bits
 * @index: position in wq->wqe[], constant: leads back to the work queue
 * @length: bytes as posted; for a finished receive the length of the message, or of the Write
 *	with immediate data; for operations on an LMR the number of the operation
 * @seq: requests: consumer requests posted up to and including this one
 * @key: receives: invalidated rkey, or immediate data
 * @op: DAT_DTOS or KDAPL_OP_*
 * @flags: completion flags of the post, KDAPL_WQE_*
 * @state: enum kdapl_wqe_state
 * @status: DAT_DTO_COMPLETION_STATUS once DONE
 * @retires: requests that are not DONE: its completion also retires suppressed operations on
 *	LMRs before it
 */
struct kdapl_wqe {
	struct ib_cqe cqe;
	u64 cookie;
	u32 index;
	u32 length;
	union {
		u32 seq;
		u32 key;
	};
	u8 op;
	u8 flags;
	u8 state;
	union {
		u8 status;
		u8 retires;
	};
};

static_assert(!((KDAPL_WQE_BROKEN | KDAPL_WQE_SIGNALED | KDAPL_WQE_OP_PENDING |
		 KDAPL_WQE_BROUGHT) &
		(DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG |
		 DAT_COMPLETION_UNSIGNALLED_FLAG | DAT_COMPLETION_BARRIER_FENCE_FLAG |
		 DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG)));
#ifdef CONFIG_64BIT
static_assert(sizeof(struct kdapl_wqe) == 32);
#endif

/* Entries of a work queue for our own requests: a kick, and a marker or two. */
#define KDAPL_OWN_WQES	3
/* How many of them can be with the device at a time. */
#define KDAPL_OWN_WRS	2

/* Of an operation on memory: the LMR or RMR, referenced until it is retired; then its handle. */
union kdapl_memop {
	struct kdapl_obj *obj;
	DAT_HANDLE handle;
};

enum kdapl_wq_mode {
	KDAPL_WQ_MOVED,	/* the EP has another connection: start over */
	KDAPL_WQ_REFUSE,	/* the EP state does not allow posts */
	KDAPL_WQ_LIVE,	/* to the device */
	KDAPL_WQ_FLUSHING,	/* into the work queue only, reported FLUSHED (D-06, D-07) */
};

/* A marker that is under way: what follows when it has completed. */
enum kdapl_wq_marker {
	KDAPL_MARKER_NONE,
	KDAPL_MARKER_DRAIN,	/* the connection ends, gracefully */
	KDAPL_MARKER_LAST,	/* the connection is ending: the work queue ends */
};

/* Why completions take the slow path: one may not simply report the entry at the tail. */
/* Before ESTABLISHED is queued, or the backlog was full: some are done; cleared in poll.c. */
#define KDAPL_SLOW_EARLY	0x1
/* Disorder, the end, or an EP being freed. Set once, never cleared. */
#define KDAPL_SLOW_ALWAYS	0x2
#define KDAPL_SLOW_SYNC		0x4	/* memory the device has written must be synchronised */
#define KDAPL_SLOW_READS	0x8	/* Reads complete out of order: while one is under way */

/* Operations with a fast path of posts: Send, Write, Read, by DAT_DTOS; Receives use [0]. */
#define KDAPL_FAST_OPS	(DAT_DTO_RDMA_READ + 1)

/**
 * struct kdapl_wq - work queue of one direction of one connection, in post order
 *
 * Indexes run freely and are masked on use. Entries between @tail and @head
 * belong to the provider. A completion for entry k on an in-order device means
 * that everything before k is done, so they are reclaimed by setting tail = k+1.
 *
 * Grouped by writer: a post reads one line and writes another, a completion
 * writes a third, beside that of the entry.
 */
struct kdapl_wq {
	/* read by posts; limits of requests on the fast path, once connected */
	struct kdapl_ia *ia;
	struct ib_qp *qp;
	unsigned long domain[2];	/* whose keys may be used: ids of PD and EP */
	u64 max_rdma;			/* bytes */
	u64 max_message;
	u32 mask;
	u16 max_iov[KDAPL_FAST_OPS];	/* segments the fast path takes */
	s8 not_flags[KDAPL_FAST_OPS];	/* completion flags it does not take, sign-extended */
	bool serial;			/* the consumer serialises its posts (D-78) */
	u8 sink;			/* rights an RDMA Read needs */

	/* producer: written under lock, or serialised by the consumer (serial) */
	spinlock_t lock ____cacheline_aligned_in_smp;	/* producer side, over the post */
	u8 mode;		/* enum kdapl_wq_mode */
	bool no_marker;		/* nothing was outstanding at the end: no marker was posted */
	bool memops_before;	/* suppressed ones since the last signaled request */
	u32 head;
	u32 cached_tail;
	u32 cached_done;
	u32 dtos;		/* consumer requests posted */
	u32 reads;		/* reads posted */
	u32 posted;		/* Receives handed to the device */
	u32 unsignaled;		/* in a row */
	u32 last_sup;		/* index of the last suppressed request */
	u32 marker;		/* enum kdapl_wq_marker; cleared under evd->lock */
	u32 memops;		/* operations on LMRs and RMRs handed to the device */
	/* constant after creation, for the producer */
	u32 max_wrs;		/* WRs a consumer may have in it */
	u32 depth;		/* DTOs the consumer asked for */
	u32 interval;		/* force a signal after so many suppressed ones */
	u32 room;		/* requests the fast path may post before it has to count again */

	/* consumer: written under the lock of cq's EVD */
	DAT_EP_HANDLE handle ____cacheline_aligned_in_smp;	/* of the EP; constant */
	u32 tail;
	u32 dtos_done;
	u32 reads_done;
	u32 reaped;		/* receives that have completed */
	u32 done_to;		/* unsignaled entries before this index are done */
	u32 memops_done;	/* of @memops, those retired */
	u32 done_mask;		/* mask; constant */
	bool marker_done;	/* the marker has completed */
	bool ended;		/* the device will complete nothing any more */
	bool dead;		/* with the reaper: nothing is reported any more */
	bool flush_unsignaled;	/* ended by force: unsignaled entries left are FLUSHED, too */
	u8 slow;		/* KDAPL_SLOW_*: why completions take the slow path */
	bool recv;		/* constant */
	bool ooo;		/* Reads complete out of order; constant */
	struct list_head ready;	/* in evd->ready: entries wait to be reported */

	/* constant after creation */
	struct kdapl_conn *conn ____cacheline_aligned_in_smp;
	struct kdapl_cq *cq;
	u32 max_reads;		/* Reads under way at once, 0: no limit */
	u16 quirky_iov[KDAPL_FAST_OPS];	/* max_iov of post_quirky_*() */
	u32 marker_pos;		/* index of the marker; written under lock */
	u32 max_sge;
	u32 stride;		/* segments of scratch per request */
	struct ib_sge *scratch;	/* for segments that must be rewritten, per request of a list */
	union kdapl_wr *chain;	/* send work queues: the WRs of one post */
	union kdapl_memop *memop;	/* send work queues: one for each of wqe[] */
	struct kdapl_sinks *sinks;	/* for wqe[], where DMA must be synchronised, or NULL */
	u32 synced;		/* send work queues with sinks: up to this index they are */

	/* statistics; written under the lock of cq's EVD */
	u32 flushed;		/* completions reported as flushed */
	u32 failed;		/* and with another error */
	u8 error;		/* DAT_DTO_COMPLETION_STATUS of the first of these */

	struct kdapl_wqe wqe[] ____cacheline_aligned_in_smp;
};

static inline struct kdapl_wq *kdapl_wqe_wq(const struct kdapl_wqe *wqe)
{
	return container_of(wqe - wqe->index, struct kdapl_wq, wqe[0]);
}

/* The index of an entry that has not left the work queue. The lock of cq's EVD is held. */
static inline u32 kdapl_wqe_pos(const struct kdapl_wq *wq, const struct kdapl_wqe *wqe)
{
	return wq->tail + ((wqe->index - wq->tail) & wq->mask);
}

/*
 * Is no Read under way, so that requests complete in order on any device? The poster counts a Read
 * before the device has it, so the completion of a later request finds it counted. evd->lock held.
 */
static inline bool kdapl_wq_no_reads(const struct kdapl_wq *wq)
{
	return READ_ONCE(wq->reads) == wq->reads_done;
}

/* A number that changes with each request that completes. Any context; a hint without a lock. */
static inline u32 kdapl_wq_progress(const struct kdapl_wq *sq)
{
	return READ_ONCE(sq->tail) + READ_ONCE(sq->done_to) + READ_ONCE(sq->reads_done) +
	       READ_ONCE(sq->memops_done);
}

#endif /* KDAPL_EVD_WQ_H */
