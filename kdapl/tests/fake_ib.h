/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * A fake RDMA device for unit tests. It registers with the real ib_core, moves
 * no data, and remembers each work request it is handed. A test then decides
 * for each request whether it succeeds, fails or stays outstanding.
 *
 * Left alone, only REG_MR and LOCAL_INV on QPs that allow no remote access (the
 * registration QPs) complete, from a work item and never inside the post, so
 * that memory registration works; everything else waits for the test. A QP
 * moved to the error state flushes what it holds.
 *
 * Memory is real: a region knows its page list and fake_ib_access() moves bytes
 * through it, as a peer would.
 *
 * The device also polices its consumer: a post that a real device would refuse
 * or corrupt (queue overrun, too many or empty segments, a key that is not
 * valid for the range, a send outside RTS, registration of a key in use) is
 * refused where hardware would refuse it and always counted in
 * fake_ib_violations(), which every test checks to be zero at its end. So is
 * misuse of a region: mapping or registration of one that is valid or has
 * requests under way, a key used twice running, invalidation of a key that is not
 * the live one, on soft-RoCE a mapping larger than all before it where nobody may sleep, a first
 * address that was not set before the mapping. So is a verb that may allocate, called
 * from a work item without memalloc_noio_save(): storage may wait for what work items do.
 */
#ifndef KDAPL_FAKE_IB_H
#define KDAPL_FAKE_IB_H

#include <linux/types.h>
#include <rdma/ib_verbs.h>

#define FAKE_IB_MAX_SGE		8

/* The verbs that are counted and can be made to fail. */
enum fake_ib_verb {
	FAKE_IB_ANY,		/* every verb below that can fail; counts them together */
	FAKE_IB_ALLOC_PD,
	FAKE_IB_CREATE_CQ,
	FAKE_IB_CREATE_QP,
	FAKE_IB_MODIFY_QP,
	FAKE_IB_CREATE_SRQ,
	FAKE_IB_MODIFY_SRQ,
	FAKE_IB_ALLOC_MR,
	FAKE_IB_GET_DMA_MR,
	FAKE_IB_MAP_MR_SG,
	FAKE_IB_POST_SEND,
	FAKE_IB_POST_RECV,
	FAKE_IB_POST_SRQ_RECV,
	/* counted only */
	FAKE_IB_POLL_CQ,
	FAKE_IB_NOTIFY_CQ,
	FAKE_IB_DESTROY,
	FAKE_IB_NR_VERBS,	/* number of verbs */
};

/* When a test can have something happen. */
enum fake_ib_moment {
	FAKE_IB_FOUND_EMPTY,	/* a poll has found nothing */
	FAKE_IB_BEFORE_ARM,	/* a CQ is about to be armed */
	FAKE_IB_AFTER_ARM,	/* it has just been, its poller does not know yet */
	FAKE_IB_QUERY_PORT,	/* somebody asks for the attributes of the port, and may sleep */
	FAKE_IB_TO_ERR,		/* a QP is about to go to the error state; its owner may sleep */
	/*
	 * this and those that follow: such an object is about to be destroyed by somebody who
	 * may sleep
	 */
	FAKE_IB_DESTROY_PD,
	FAKE_IB_DESTROY_MR,	/* a region */
	FAKE_IB_DESTROY_CQ,	/* a completion queue */
	FAKE_IB_DESTROY_QP,	/* a queue pair */
	FAKE_IB_DESTROY_SRQ,	/* a shared receive queue */
	FAKE_IB_MAPPING,	/* a region is about to be mapped; nobody may sleep */
	FAKE_IB_MOMENTS,	/* number of moments */
};

/* When IB_EVENT_QP_LAST_WQE_REACHED is raised. */
enum fake_ib_last_wqe {
	FAKE_IB_LAST_WQE_NEVER,	/* never, or by the test */
	/* inside the modify to the error state, after the flushes */
	FAKE_IB_LAST_WQE_AT_ERR,
};

/* The fate of requests taken from an SRQ when a QP ends. */
enum fake_ib_taken {
	FAKE_IB_TAKEN_FLUSHED,	/* they come back flushed when the QP goes to ERR */
	FAKE_IB_TAKEN_AT_DESTROY,	/* they do when the QP is destroyed */
	FAKE_IB_TAKEN_LOST,	/* they never come back */
};

/* One verb in the order of calls. */
struct fake_ib_step {
	enum fake_ib_verb verb;	/* which */
	const void *obj;	/* the object it was called for, an address to compare with */
	/* new QP state, number of completions polled, opcode of a request, mask */
	int arg;
	unsigned long when;	/* jiffies */
};

/* The most pages of one registration that a recorded request keeps. */
#define FAKE_IB_WR_PAGES	16

/* What the device says of itself; 0 means the default. */
struct fake_ib_caps {
	/*
	 * work requests follow the rules of iWARP. The port itself is always an InfiniBand
	 * one, the only kind that needs neither netdev nor address.
	 */
	bool iwarp;
	int max_send_sge;	/* segments per Send or Write, at most FAKE_IB_MAX_SGE */
	int max_recv_sge;	/* segments per Receive, at most FAKE_IB_MAX_SGE */
	int max_sge_rd;		/* segments per Read, at most FAKE_IB_MAX_SGE */
	int max_qp;		/* number of QPs, those the provider makes for itself included */
	int max_qp_wr;		/* queue depth */
	int max_cqe;		/* completion queue depth */
	int max_cq;		/* completion queues */
	int max_rd_atom;	/* read depth, both directions */
	int max_init_rd_atom;	/* the one of this side's Reads, if it is another one */
	int max_pages;		/* pages of one fast registration */
	u64 page_sizes;		/* union of the sizes they may have; PAGE_SIZE only by default */
	bool split_keys;	/* lkey and rkey of a region differ, as on some hardware */
	u32 max_msg_sz;		/* largest message of the port */
	int max_srq_wr;		/* depth of an SRQ */
	bool no_srq;		/* the device has no SRQs */
	/*
	 * to arm a CQ reports no missed events: its handler is called instead, before the call
	 * returns, as an interrupt on another CPU would be that is taken at once
	 */
	bool raises;
	int vectors;		/* completion vectors */
	/* whose quirks the device is suspected of; 0 for those of hardware */
	enum rdma_driver_id driver;
	bool copies;		/* the device is given copies of memory, see fake_dma.h */
	/* it is given the memory itself, past caches that have to be told */
	bool caches;
	/* opcodes whose IB_SEND_FENCE does nothing: one that is set is a violation */
	u64 unfenced;
	/*
	 * if not 0, how long a send queue can be; an entry takes as many bytes as on mlx5, by
	 * its segments
	 */
	u32 sq_bytes;
	bool no_cm;		/* no port makes connections */
	/*
	 * looks at the first segment of a Write and a Send that come as a pair, whether they
	 * have one or not
	 */
	bool peeks;
	bool grh;		/* the port takes no path without a GID */
	bool no_self;		/* a QP cannot be connected to itself */
	int ports;		/* ports, which are alike */
};

/* One recorded work request. */
struct fake_ib_wr {
	unsigned int seq;	/* place in the order of all requests of its queue, from 0 */
	unsigned int call;	/* number of the ib_post_*() call that carried it */
	unsigned int pos;	/* place in the chain of that call */
	bool recv;		/* a Receive; @opcode and the remote fields mean nothing then */
	enum ib_wr_opcode opcode;	/* operation */
	int send_flags;		/* IB_SEND_* */
	struct ib_cqe *cqe;	/* completion callback entry given with the request */
	int num_sge;		/* number of segments */
	struct ib_sge sge[FAKE_IB_MAX_SGE];	/* copy of the segments */
	u64 length;		/* sum of their lengths */
	u64 remote_addr;	/* remote address of a Write or Read */
	/* remote key of a Write or Read, key of a registration or invalidation */
	u32 rkey;
	u32 immed;		/* immediate data of a Write */
	struct ib_mr *mr;	/* region of a registration */
	int access;		/* rights of a registration */
	u32 page_size;		/* of the pages of a registration */
	/* of them; the first address and the length are @remote_addr and @length */
	u32 npages;
	u64 pages[FAKE_IB_WR_PAGES];	/* the first of their addresses, as the device sees them */
	bool done;		/* completed, with or without a work completion */
	struct ib_qp *taken_by;	/* with an SRQ, the QP that took it */
};

/* Objects of the device that exist at the moment. */
struct fake_ib_live {
	int pds;		/* protection domains */
	int cqs;		/* completion queues */
	int qps;		/* queue pairs */
	int srqs;		/* shared receive queues */
	int mrs;		/* memory regions, without the DMA regions that come with a PD */
};

/* What a region is at the moment. */
struct fake_ib_mr {
	bool mapped;		/* its page list has been put together */
	u32 map_page_size;	/* size of the pages in the list */
	u32 map_npages;		/* how many */
	u64 map_offset;		/* of the first byte in the first page */
	u64 map_length;		/* bytes in the list */
	unsigned int maps;	/* how often it was mapped */
	bool valid;		/* its keys can be used */
	u32 lkey;		/* the local one, as registered last */
	u32 rkey;		/* the remote one */
	u64 iova;		/* first address */
	u64 length;		/* bytes */
	int access;		/* rights */
	unsigned int busy;	/* requests for it that have not come back */
};

struct fake_ib;

/*
 * fake_ib_create() registers the device; the clients of ib_core have seen it when the call
 * returns. After fake_ib_unplug() what they left behind can still be looked at, until
 * fake_ib_destroy().
 */
struct fake_ib *fake_ib_create(const struct fake_ib_caps *caps);
void fake_ib_unplug(struct fake_ib *fdev);
void fake_ib_destroy(struct fake_ib *fdev);
struct ib_device *fake_ib_device(struct fake_ib *fdev);
const char *fake_ib_name(struct fake_ib *fdev);
struct fake_dma *fake_ib_dma(struct ib_device *ibdev);

/* Objects there are; how often the device was misused, and how, the last time. */
void fake_ib_live(struct fake_ib *fdev, struct fake_ib_live *live);
int fake_ib_violations(struct fake_ib *fdev);
const char *fake_ib_last_violation(struct fake_ib *fdev);
/* How often a verb was called, failed calls included; for posts, the number of chains. */
unsigned int fake_ib_count(struct fake_ib *fdev, enum fake_ib_verb verb);
/* The @nth call from now on returns @err, once; 0 takes it back. How many calls until then? */
void fake_ib_fail(struct fake_ib *fdev, enum fake_ib_verb verb, unsigned int nth, int err);
unsigned int fake_ib_failing(struct fake_ib *fdev, enum fake_ib_verb verb);

/* Settings, which hold from now on, and what they are at first. */
/* How REG_MR and LOCAL_INV end on registration QPs: with success. */
void fake_ib_auto_reg_status(struct fake_ib *fdev, enum ib_wc_status status);
/* Segments may name what is no region any more, since another task takes keys away: off. */
void fake_ib_lax_keys(struct fake_ib *fdev, bool on);
/* A QP that goes to the error state keeps its requests until fake_ib_flush(): off. */
void fake_ib_hold_flush(struct fake_ib *fdev, bool hold);
/* Requests and receives complete before their post returns: off. */
void fake_ib_instant(struct fake_ib *fdev, bool on);
/* Verbs that may allocate want memalloc_noio_save() of every caller: off. */
void fake_ib_frugal(struct fake_ib *fdev, bool on);
/* A QP with an SRQ says that it takes no more from it: never. */
void fake_ib_last_wqe(struct fake_ib *fdev, enum fake_ib_last_wqe when);
/* What a QP took from an SRQ and never filled: flushed when the QP goes to the error state. */
void fake_ib_taken(struct fake_ib *fdev, enum fake_ib_taken what);
/* No QP can be connected to the device's own port any more, where all its paths lead. */
void fake_ib_refuse_paths(struct fake_ib *fdev);
/* The network device that gives the port a name and addresses; NULL: none. May sleep. */
int fake_ib_set_netdev(struct fake_ib *fdev, struct net_device *ndev);
/* The largest message of the port, when somebody asks. */
void fake_ib_set_max_msg(struct fake_ib *fdev, u32 bytes);

/*
 * Completions take effect, and the calls of their handlers are held back; or those that were
 * are made now. No CQ may be destroyed meanwhile.
 */
void fake_ib_hold_irq(struct fake_ib *fdev, bool hold);
/*
 * Call @fn when such a moment comes the @nth time from now on, once, perhaps in an interrupt
 * and with locks of the module held; 0 takes it back.
 */
void fake_ib_at(struct fake_ib *fdev, enum fake_ib_moment moment, unsigned int nth,
		void (*fn)(void *arg), void *arg);
/* Asynchronous events. */
void fake_ib_cq_event(struct ib_cq *cq, enum ib_event_type type);
void fake_ib_srq_event(struct ib_srq *srq, enum ib_event_type type);
void fake_ib_qp_event(struct ib_qp *qp, enum ib_event_type type);

/* Write down the verbs from now on; step @i of it, valid until the next start, or NULL. */
int fake_ib_trace_start(struct fake_ib *fdev);
const struct fake_ib_step *fake_ib_trace(struct fake_ib *fdev, unsigned int i);

/* The object made last and still there, or NULL; of the CQ its vector, or -ENOENT. */
struct ib_qp *fake_ib_newest_qp(struct fake_ib *fdev);
struct ib_srq *fake_ib_newest_srq(struct fake_ib *fdev);
int fake_ib_newest_vector(struct fake_ib *fdev);
enum ib_qp_state fake_ib_qp_state(struct ib_qp *qp);
/* What they were created with. */
void fake_ib_qp_caps(struct ib_qp *qp, struct ib_qp_cap *cap);
void fake_ib_srq_size(struct ib_srq *srq, unsigned int *max_wr, unsigned int *max_sge);

/* Requests a queue was ever handed, refused ones left out. */
unsigned int fake_ib_posted(struct ib_qp *qp, bool recv);
unsigned int fake_ib_srq_posted(struct ib_srq *srq);
/* Those that have not completed; with an SRQ, of those taken from it. */
unsigned int fake_ib_outstanding(struct ib_qp *qp, bool recv);
/* A copy of request @seq, from 0, or of the last one; false: not posted, or forgotten. */
bool fake_ib_wr(struct ib_qp *qp, bool recv, unsigned int seq, struct fake_ib_wr *out);
bool fake_ib_last_wr(struct ib_qp *qp, bool recv, struct fake_ib_wr *out);
bool fake_ib_srq_wr(struct ib_srq *srq, unsigned int seq, struct fake_ib_wr *out);

/*
 * Complete the oldest request, one of any place, or all in order, and say how many. A request
 * that succeeds and is not signaled completes silently, a Receive that succeeds is filled.
 * What is not outstanding: -ENOENT, here and below.
 */
int fake_ib_complete(struct ib_qp *qp, bool recv, enum ib_wc_status status);
int fake_ib_complete_seq(struct ib_qp *qp, bool recv, unsigned int seq,
			 enum ib_wc_status status);
int fake_ib_complete_all(struct ib_qp *qp, bool recv, enum ib_wc_status status);
/* A message arrives in the oldest Receive; @solicited as its sender asked; or as an invalidate. */
int fake_ib_recv(struct ib_qp *qp, u32 byte_len, bool solicited);
int fake_ib_recv_inv(struct ib_qp *qp, u32 byte_len, u32 rkey);
/* One that brings immediate data: a Write of so many bytes, or a Send. */
int fake_ib_recv_immed(struct ib_qp *qp, u32 byte_len, u32 immed, bool write);
/* Both queues. */
void fake_ib_flush(struct ib_qp *qp);
/* A message begins to arrive at a QP with an SRQ: the number of the request that it takes. */
int fake_ib_srq_take(struct ib_qp *qp);
/* Request @seq that the QP has taken completes; @byte_len U32_MAX: all of the buffer. */
int fake_ib_srq_finish(struct ib_qp *qp, unsigned int seq, enum ib_wc_status status,
		       u32 byte_len, bool solicited);
/* The same in the name of another QP, which need not point anywhere. */
int fake_ib_srq_finish_as(struct ib_qp *qp, unsigned int seq, enum ib_wc_status status,
			  struct ib_qp *name);

/* The region that has or had this key. */
bool fake_ib_mr(struct fake_ib *fdev, u32 key, struct fake_ib_mr *out);
/* Is it the very key of a valid region? How many are valid, but for those of PDs? */
bool fake_ib_mr_valid(struct fake_ib *fdev, u32 key);
int fake_ib_valid_mrs(struct fake_ib *fdev);
/*
 * Reach memory by a key, as a peer does or the device itself: write @buf there, or read into
 * it. @access: IB_ACCESS_REMOTE_READ, IB_ACCESS_REMOTE_WRITE, IB_ACCESS_LOCAL_WRITE, or 0 for
 * local reading. -EACCES: no such key, no such right, or out of range.
 */
int fake_ib_access(struct fake_ib *fdev, u32 key, u64 addr, void *buf, u32 len, int access);

#endif /* KDAPL_FAKE_IB_H */
