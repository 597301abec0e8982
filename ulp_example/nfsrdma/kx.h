/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * kdat_xprtrdma: a transport for RPCs. sunrpc calls transport.c; each other file has its prototypes
 * below. What protects the data:
 *
 *	XPRT_LOCKED	sunrpc's lock for sending: send_request, the connect worker and close hold
 *			it. They use the connection, make it and end it
 *	kx->lock	for posting without XPRT_LOCKED: the connection stays while it is held. It
 *			also covers the lists of free LMRs and bc_free, what a request has
 *			registered once it is sent, and whether a reply is expected
 *	the upcall	one at a time for each connection, in a workqueue: replies, completions
 *
 * An RPC completes only when no key to its memory is valid any more. A request is used again only
 * when the RPC has ended and its Send has completed. A reply's buffer belongs to the RPC that reads
 * it until the RPC has ended or is sent again. After kx_disconnect() no device touches any memory.
 */
#ifndef _KX_H_
#define _KX_H_

#include <linux/completion.h>
#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/scatterlist.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>
#include <linux/sunrpc/xprt.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <dat2/kdat.h>
#include <dat2/kdat_ext.h>
#include "compat.h"
#include "proto.h"

#define KX_CREDITS	128		/* RPCs at a time */
#define KX_BC_CREDITS	16		/* calls of the server at a time */
#define KX_BC_REQS	(2 * KX_BC_CREDITS)
#define KX_REQS		(KX_CREDITS + KX_BC_REQS)
#define KX_REPS		KX_REQS		/* one part of each has as many pages */
#define KX_PART		80		/* pages of messages in one LMR, some adapters take 128 */
#define KX_PARTS	(KX_REQS / KX_PART)
#define KX_MRS		(2 * KX_CREDITS)
#define KX_FEW_MRS	32		/* where each has a copy of its memory (bounce buffers) */
#define KX_SIGNAL_EVERY	16		/* one of so many Sends has a completion */
#define KX_INLINE	4096u		/* bytes of the longest message, with its header */
#define KX_MAX_DATA	(1024 * 1024)	/* bytes of a READ or WRITE */
#define KX_MIN_PAGES	(SZ_512K / PAGE_SIZE)	/* of one MR, so that KX_SEGS suffice */
#define KX_MAX_PAGES	(KX_MAX_DATA / PAGE_SIZE + 1)
#define KX_REQ_MRS	(2 * KX_SEGS)	/* of a call with a Read and a Reply chunk */

struct kx_conn;
struct kx_rep;

/**
 * struct kx_mr - an LMR that memory of a request is registered with
 * @node: in the free list of the connection
 * @lmr: the LMR
 * @key: the key of the current registration
 */
struct kx_mr {
	struct list_head node;
	DAT_LMR_HANDLE lmr;
	DAT_RMR_CONTEXT key;
};

/**
 * struct kx_req - an RPC, or a call of the server, and what it needs to be sent
 * @rqst: sunrpc's part; the RPC layer knows no other
 * @node: in a free list
 * @refs: one of the RPC layer, one while a Send uses @msg
 * @sending: a Send uses @msg; under kx->lock
 * @signalled: that Send has a completion
 * @expected: it is sent and has no outcome yet: a reply may come; under kx->lock
 * @sent: in kx->sent while @sending
 * @number: index in kx->reqs
 * @msg: a page, registered while connected: header and call as they are sent
 * @call: what the kx_call_encode() of this call was given
 * @call_buf: the RPC layer encodes the call here
 * @call_size: its bytes
 * @reply_buf: the RPC layer finds the reply here if the server has written it by RDMA
 * @reply_size: its bytes
 * @mr: what memory is registered with; under kx->lock
 * @nmrs: how many; 0: no server reaches this memory
 * @rep: message whose buffer the reply is in
 * @reply: what its header said
 * @replied: pinned, since a reply is being looked at, or waits until no key is valid
 * @refused: with @replied: it waits for the end of the connection, which is near; under kx->lock
 * @status: with @replied: 0, or an errno
 * @waiting: kx_req_fence() waits for @fenced; under kx->lock
 * @fenced: no key is valid any more
 */
struct kx_req {
	struct rpc_rqst rqst;
	struct list_head node;
	refcount_t refs;
	bool sending;
	bool signalled;
	bool expected;
	struct list_head sent;
	u16 number;
	void *msg;
	struct kx_call call;
	void *call_buf;
	size_t call_size;
	void *reply_buf;
	size_t reply_size;
	struct kx_mr *mr[KX_REQ_MRS];
	u32 nmrs;
	struct kx_rep *rep;
	struct kx_reply reply;
	bool replied;
	bool refused;
	int status;
	bool waiting;
	struct completion fenced;
};

/**
 * struct kx_rep - a buffer for a message of the server
 * @data: a page, registered while connected
 * @length: bytes of the message that is in it
 * @number: index in kx->reps
 * @held: an RPC reads it: it must not be posted
 */
struct kx_rep {
	void *data;
	u32 length;
	u16 number;
	bool held;
};

/**
 * struct kx_batch - the requests with which one call is posted; built under XPRT_LOCKED
 * @sgl: all memory to register
 * @nents: entries in use
 * @sg: a part of @sgl for each MR
 * @n: MRs in use
 */
struct kx_batch {
	struct scatterlist sgl[2 * (KX_MAX_PAGES + 2)];
	u32 nents;
	struct kdat_sg sg[KX_REQ_MRS];
	u32 n;
};

/* Counters of print_stats, in its order. */
struct kx_stats {
	unsigned long read_chunks, write_chunks, reply_chunks;
	unsigned long long offered, transferred, pulled_up, fixed_up;
	unsigned long grown, unmarshalled, bad_replies, nomsg_calls;
	unsigned long mrs_allocated, invalidated, no_mrs;
};

/**
 * struct kx_xprt - a transport: a mount, or one of several of it (nconnect)
 * @xprt: sunrpc's part
 * @connect_work: connects
 * @failed: the last attempt to connect has failed: wait before the next
 * @timeout: of RPCs, if set_connect_timeout has changed it
 * @lock: see above
 * @conn: the connection, or NULL; events of one that was taken from here do not matter
 * @free: requests that the RPC layer may take
 * @bc_free: requests for calls of the server
 * @reqs: all of both
 * @reps: all buffers for messages of the server
 * @sent: requests whose Sends may not have completed, in their order; under @lock
 * @quiet: Sends since one had a completion; XPRT_LOCKED
 * @batch: scratch memory of send_request
 * @stats: for mountstats
 */
struct kx_xprt {
	struct rpc_xprt xprt;
	struct delayed_work connect_work;
	bool failed;
	struct rpc_timeout timeout;
	spinlock_t lock;			/* for posting, see above */
	struct kx_conn *conn;
	struct list_head free, bc_free;
	struct kx_req *reqs;
	struct kx_rep reps[KX_REPS];
	struct list_head sent;
	u32 quiet;
	struct kx_batch *batch;
	struct kx_stats stats;
};

/**
 * struct kx_part - an LMR with some of the pages that messages are in
 * @lmr: KX_PART pages
 * @key: its local key
 * @at: address of the first page
 */
struct kx_part {
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT key;
	DAT_VADDR at;
};

/**
 * struct kx_conn - a connection, or an attempt to make one
 * @kx: whose it is
 * @ia: adapter that leads to the server; closing it frees all below
 * @async_evd: of the IA
 * @pz: of its own, so that no other server can use its keys
 * @evd: all completions
 * @conn_evd: beginning and end of the connection
 * @ep: Endpoint
 * @send: the pages of all requests
 * @recv: the pages of all buffers for replies
 * @pad_lmr: where a server may write XDR padding
 * @pad: segment of @pad_lmr, its length aside
 * @pad_page: its memory
 * @pad_gone: a reply has invalidated its key, so it is offered no more
 * @limits: longest messages inline
 * @mr_pages: pages of an MR
 * @nmrs: how many there should be
 * @mrs: all of them
 * @free_mrs: those that are not in use
 * @wait: for @outcome
 * @outcome: event of the attempt, or 0
 * @end_work: after its last event: frees the LMRs
 * @ended: that is done, and no device reaches any memory; under kx->lock
 */
struct kx_conn {
	struct kx_xprt *kx;
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async_evd, evd, conn_evd;
	DAT_PZ_HANDLE pz;
	DAT_EP_HANDLE ep;
	struct kx_part send[KX_PARTS], recv[KX_PARTS];
	DAT_LMR_HANDLE pad_lmr;
	struct kx_seg pad;
	void *pad_page;
	bool pad_gone;
	struct kx_limits limits;
	u32 mr_pages;
	int nmrs;
	struct kx_mr mrs[KX_MRS];
	struct list_head free_mrs;
	wait_queue_head_t wait;
	DAT_EVENT_NUMBER outcome;
	struct work_struct end_work;
	bool ended;
};

static inline struct kx_xprt *kx_of(struct rpc_xprt *xprt)
{
	return container_of(xprt, struct kx_xprt, xprt);
}

static inline struct kx_req *kx_req_of(struct rpc_rqst *rqst)
{
	return container_of(rqst, struct kx_req, rqst);
}

/* The first @length bytes of page @number. */
static inline DAT_LMR_TRIPLET kx_segment(const struct kx_part *parts, u32 number, u32 length)
{
	const struct kx_part *part = &parts[number / KX_PART];

	return (DAT_LMR_TRIPLET) {
		part->at + number % KX_PART * PAGE_SIZE, length, part->key
	};
}

/* transport.c */
extern struct workqueue_struct *kx_wq, *kx_end_wq;
void kx_req_put(struct kx_req *req);
void kx_close(struct rpc_xprt *xprt);

/* conn.c */
int kx_connect(struct kx_xprt *kx);
void kx_disconnect(struct kx_xprt *kx);

/* mem.c */
int kx_mem_init(struct kx_xprt *kx);
void kx_mem_exit(struct kx_xprt *kx);
bool kx_grow(struct kx_xprt *kx, void **buf, size_t *size, size_t want, gfp_t gfp);
DAT_RETURN kx_mrs_create(struct kx_conn *conn);
int kx_map(struct kx_xprt *kx, struct kx_req *req, const struct xdr_buf *buf, enum kx_way way,
	   struct kx_chunk *chunk);
void kx_unmap(struct kx_xprt *kx, struct kx_req *req);
int kx_post_call(struct kx_conn *conn, struct kx_req *req, u32 length, u32 results_from);
DAT_RETURN kx_invalidate(struct kx_conn *conn, struct kx_req *req);
void kx_req_fence(struct kx_xprt *kx, struct kx_req *req, bool hang_up);
void kx_fence_end(struct kx_req *req);
bool kx_invalidated(struct kx_conn *conn, struct kx_req *req, DAT_RMR_CONTEXT key);
void kx_fenced(struct kx_conn *conn, struct kx_req *req);
void kx_sent(struct kx_xprt *kx, struct kx_req *req);
void kx_sent_until(struct kx_xprt *kx, struct kx_req *last);

/* send.c */
int kx_send(struct kx_xprt *kx, struct kx_req *req);
int kx_send_reverse(struct kx_xprt *kx, struct kx_req *req);

/* reply.c */
void kx_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more);
DAT_RETURN kx_rep_post(struct kx_conn *conn, struct kx_rep *rep);
void kx_rep_put(struct kx_xprt *kx, struct kx_rep *rep);
void kx_reply_put(struct kx_xprt *kx, struct kx_req *req);
void kx_reply_drop(struct kx_xprt *kx, struct kx_req *req);

/* backchannel.c */
#ifdef CONFIG_SUNRPC_BACKCHANNEL
bool kx_bc_receive(struct kx_xprt *kx, struct kx_rep *rep, const struct kx_reply *reply);
int kx_bc_setup(struct rpc_xprt *xprt, unsigned int reqs);
size_t kx_bc_maxpayload(struct rpc_xprt *xprt);
unsigned int kx_bc_num_slots(struct rpc_xprt *xprt);
void kx_bc_free_rqst(struct rpc_rqst *rqst);
void kx_bc_destroy(struct rpc_xprt *xprt, unsigned int reqs);
#else
static inline bool kx_bc_receive(struct kx_xprt *kx, struct kx_rep *rep,
				 const struct kx_reply *reply)
{
	return false;
}
#endif

#endif /* _KX_H_ */
