/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The buffers of a Shared Receive Queue.
 */
#ifndef KDAPL_EVD_POOL_H
#define KDAPL_EVD_POOL_H

enum kdapl_buf_state {
	KDAPL_BUF_FREE,
	KDAPL_BUF_POSTED,	/* with the device */
	KDAPL_BUF_LOST,		/* with the device, but the QP that took it is gone */
	KDAPL_BUF_TAKEN,	/* filled or flushed, not reported yet */
	KDAPL_BUF_DEAD,		/* posted to an SRQ in error: never reported */
};

/**
 * struct kdapl_buf - context of one buffer of an SRQ, a cache line
 * @cqe: the completion's wr_cqe
 * @cookie: the consumer's
 * @node: in conn->early
 * @next: the next free one
 * @index: position in the pool, constant: leads back to it
 * @length: of the message, or of the Write with immediate data
 * @seq: order of posting
 * @key: invalidated rkey, or immediate data
 * @flags: KDAPL_WQE_INVALIDATED, KDAPL_WQE_IMMED
 * @state: enum kdapl_buf_state
 * @status: DAT_DTO_COMPLETION_STATUS
 */
struct kdapl_buf {
	struct ib_cqe cqe;
	u64 cookie;
	union {
		struct list_head node;
		struct kdapl_buf *next;
	};
	u32 index;
	u32 length;
	u32 seq;
	u32 key;
	u8 flags;
	u8 state;
	u8 status;
} __aligned(64);

/**
 * struct kdapl_srq - a Shared Receive Queue
 * @pz: PZ of the LMRs its buffers may use; holds a use
 * @pool: RCU: read by posting calls; NULL once the SRQ is freed
 * @mutex: serialises control calls
 * @low_work: queues the event of the low watermark
 * @low_fired: how many to queue
 */
struct kdapl_srq {
	struct kdapl_obj obj;
	struct kdapl_pool __rcu *pool;
	struct kdapl_pz *pz;
	DAT_PZ_HANDLE pz_handle;
	DAT_COUNT max_recv_iov;
	struct mutex mutex;		/* replacing the pool */
	struct work_struct low_work;
	atomic_t low_fired;
};

#define KDAPL_POOL_HASH_BITS	6	/* of the first table */

/**
 * struct kdapl_pool - verbs part of an SRQ
 * @ref: the SRQ and each connection that takes buffers from it
 * @entries: number of buffers, spare ones included
 * @ibsrq: NULL once it is destroyed
 * @srq: NULL once the SRQ is freed
 * @limit: buffers the consumer may have outstanding
 * @outstanding: buffers posted and not yet handed to the consumer
 * @available: of those, waiting on the SRQ
 * @lost: of those, taken by a QP that was destroyed without returning them
 * @low: below that many available ones an event is due, if @low_armed
 * @seq: number of the last post
 * @newest: highest number whose buffer has been taken
 * @free: buffers to post, the one used last first: it is in the cache
 * @conns: connections that may take buffers; RCU
 * @by_qp: hash table of @conns by the QP pointer that completions carry; grows with @nconns
 * @bits: @by_qp has 2^bits buckets
 * @rcu: posting calls may use the pool for another grace period
 * @sinks: beside @buf, where DMA has to be synchronised, or NULL
 */
struct kdapl_pool {
	struct kdapl_device *dev;
	struct kdapl_pd *pd;
	struct kdapl_res res;
	refcount_t ref;
	u32 entries;
	wait_queue_head_t detached;

	spinlock_t lock;		/* all that follows */
	struct ib_srq *ibsrq;
	struct kdapl_srq *srq;
	bool error;
	bool replaced;
	bool low_armed;
	u32 limit;
	u32 outstanding;
	u32 available;
	u32 lost;
	u32 low;
	u32 seq;
	u32 newest;
	u32 nconns;
	struct kdapl_buf *free;
	struct list_head conns;
	struct hlist_head *by_qp;
	unsigned int bits;
	struct rcu_head rcu;
	struct ib_sge *scratch;
	struct kdapl_sinks *sinks;
	struct kdapl_buf buf[];
};

static inline struct kdapl_pool *kdapl_buf_pool(struct kdapl_buf *buf)
{
	return container_of(buf - buf->index, struct kdapl_pool, buf[0]);
}

struct kdapl_pool *kdapl_pool_create(struct kdapl_srq *srq, u32 limit,
				     void (*done)(struct ib_cq *cq, struct ib_wc *wc));
void kdapl_pool_put(struct kdapl_pool *pool);
void kdapl_pool_limits(struct kdapl_device *dev, DAT_IA_ATTR *attr);
u32 kdapl_pool_spare(u32 limit);
u32 kdapl_pool_outstanding(const struct kdapl_pool *pool);
void kdapl_pool_check_low(struct kdapl_pool *pool);
void kdapl_pool_fail_all(struct kdapl_pool *pool);
void kdapl_pool_attach(struct kdapl_pool *pool, struct kdapl_conn *conn);
void kdapl_pool_detach(struct kdapl_conn *conn);
struct kdapl_buf *kdapl_buf_alloc(struct kdapl_pool *pool);
void kdapl_buf_unalloc(struct kdapl_pool *pool, struct kdapl_buf *buf);
struct kdapl_conn *kdapl_buf_taken(struct kdapl_buf *buf, struct ib_qp *qp);
bool kdapl_buf_is_event(struct kdapl_buf *buf, struct ib_qp *qp);
void kdapl_buf_failed(struct kdapl_buf *buf);
void kdapl_buf_free(struct kdapl_buf *buf);
void kdapl_pool_owe(struct kdapl_pool *pool, int n);
void kdapl_buf_done(struct ib_cq *cq, struct ib_wc *wc);

#endif /* KDAPL_EVD_POOL_H */
