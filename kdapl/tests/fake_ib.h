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

/**
 * enum fake_ib_verb - the verbs that are counted and can be made to fail
 * @FAKE_IB_ANY: every verb below that can fail; counts them together
 * @FAKE_IB_NR_VERBS: number of verbs
 */
enum fake_ib_verb {
	FAKE_IB_ANY,
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
	FAKE_IB_NR_VERBS,
};

/**
 * enum fake_ib_moment - when a test can have something happen
 * @FAKE_IB_FOUND_EMPTY: a poll has found nothing
 * @FAKE_IB_BEFORE_ARM: a CQ is about to be armed
 * @FAKE_IB_AFTER_ARM: it has just been, its poller does not know yet
 * @FAKE_IB_QUERY_PORT: somebody asks for the attributes of the port, and may sleep
 * @FAKE_IB_DESTROY_PD: this and those that follow: such an object is about to be destroyed
 *	by somebody who may sleep
 * @FAKE_IB_DESTROY_MR: a region
 * @FAKE_IB_DESTROY_CQ: a completion queue
 * @FAKE_IB_DESTROY_QP: a queue pair
 * @FAKE_IB_DESTROY_SRQ: a shared receive queue
 * @FAKE_IB_MAPPING: a region is about to be mapped; nobody may sleep
 * @FAKE_IB_MOMENTS: number of moments
 */
enum fake_ib_moment {
	FAKE_IB_FOUND_EMPTY,
	FAKE_IB_BEFORE_ARM,
	FAKE_IB_AFTER_ARM,
	FAKE_IB_QUERY_PORT,
	FAKE_IB_DESTROY_PD,
	FAKE_IB_DESTROY_MR,
	FAKE_IB_DESTROY_CQ,
	FAKE_IB_DESTROY_QP,
	FAKE_IB_DESTROY_SRQ,
	FAKE_IB_MAPPING,
	FAKE_IB_MOMENTS,
};

/**
 * enum fake_ib_last_wqe - when IB_EVENT_QP_LAST_WQE_REACHED is raised
 * @FAKE_IB_LAST_WQE_NEVER: never, or by the test
 * @FAKE_IB_LAST_WQE_AT_ERR: inside the modify to the error state, after the flushes
 */
enum fake_ib_last_wqe {
	FAKE_IB_LAST_WQE_NEVER,
	FAKE_IB_LAST_WQE_AT_ERR,
};

/**
 * enum fake_ib_taken - the fate of requests taken from an SRQ when a QP ends
 * @FAKE_IB_TAKEN_FLUSHED: they come back flushed when the QP goes to ERR
 * @FAKE_IB_TAKEN_AT_DESTROY: they do when the QP is destroyed
 * @FAKE_IB_TAKEN_LOST: they never come back
 */
enum fake_ib_taken {
	FAKE_IB_TAKEN_FLUSHED,
	FAKE_IB_TAKEN_AT_DESTROY,
	FAKE_IB_TAKEN_LOST,
};

/**
 * struct fake_ib_step - one verb in the order of calls
 * @verb: which
 * @obj: the object it was called for, an address to compare with
 * @arg: new QP state, number of completions polled, opcode of a request, mask
 * @when: jiffies
 */
struct fake_ib_step {
	enum fake_ib_verb verb;
	const void *obj;
	int arg;
	unsigned long when;
};

/* The most pages of one registration that a recorded request keeps. */
#define FAKE_IB_WR_PAGES	16

/**
 * struct fake_ib_caps - what the device says of itself; 0 means the default
 * @iwarp: work requests follow the rules of iWARP. The port itself is always an
 *	InfiniBand one, the only kind that needs neither netdev nor address.
 * @max_send_sge: segments per Send or Write, at most FAKE_IB_MAX_SGE
 * @max_recv_sge: segments per Receive, at most FAKE_IB_MAX_SGE
 * @max_sge_rd: segments per Read, at most FAKE_IB_MAX_SGE
 * @max_qp: number of QPs, those the provider makes for itself included
 * @max_qp_wr: queue depth
 * @max_cqe: completion queue depth
 * @max_cq: completion queues
 * @max_rd_atom: read depth, both directions
 * @max_init_rd_atom: the one of this side's Reads, if it is another one
 * @max_pages: pages of one fast registration
 * @page_sizes: union of the sizes they may have; PAGE_SIZE only by default
 * @split_keys: lkey and rkey of a region differ, as on some hardware
 * @max_msg_sz: largest message of the port
 * @max_srq_wr: depth of an SRQ
 * @no_srq: the device has no SRQs
 * @raises: to arm a CQ reports no missed events: its handler is called instead, before
 *	the call returns, as an interrupt on another CPU would be that is taken at once
 * @vectors: completion vectors
 * @driver: whose quirks the device is suspected of; 0 for those of hardware
 * @copies: the device is given copies of memory, see fake_dma.h
 * @caches: it is given the memory itself, past caches that have to be told
 * @unfenced: opcodes whose IB_SEND_FENCE does nothing: one that is set is a violation
 * @sq_bytes: if not 0, how long a send queue can be; an entry takes as many bytes as on
 *	mlx5, by its segments
 * @no_cm: no port makes connections
 * @peeks: looks at the first segment of a Write and a Send that come as a pair,
 *	whether they have one or not
 * @grh: the port takes no path without a GID
 * @no_self: a QP cannot be connected to itself
 * @ports: ports, which are alike
 */
struct fake_ib_caps {
	bool iwarp;
	int max_send_sge;
	int max_recv_sge;
	int max_sge_rd;
	int max_qp;
	int max_qp_wr;
	int max_cqe;
	int max_cq;
	int max_rd_atom;
	int max_init_rd_atom;
	int max_pages;
	u64 page_sizes;
	bool split_keys;
	u32 max_msg_sz;
	int max_srq_wr;
	bool no_srq;
	bool raises;
	int vectors;
	enum rdma_driver_id driver;
	bool copies;
	bool caches;
	u64 unfenced;
	u32 sq_bytes;
	bool no_cm;
	bool peeks;
	bool grh;
	bool no_self;
	int ports;
};

/**
 * struct fake_ib_wr - one recorded work request
 * @seq: place in the order of all requests of its queue, from 0
 * @call: number of the ib_post_*() call that carried it
 * @pos: place in the chain of that call
 * @recv: a Receive; @opcode and the remote fields mean nothing then
 * @opcode: operation
 * @send_flags: IB_SEND_*
 * @cqe: completion callback entry given with the request
 * @num_sge: number of segments
 * @sge: copy of the segments
 * @length: sum of their lengths
 * @remote_addr: remote address of a Write or Read
 * @rkey: remote key of a Write or Read, key of a registration or invalidation
 * @mr: region of a registration
 * @access: rights of a registration
 * @page_size: of the pages of a registration
 * @npages: of them; the first address and the length are @remote_addr and @length
 * @pages: the first of their addresses, as the device sees them
 * @done: completed, with or without a work completion
 * @taken_by: with an SRQ, the QP that took it
 */
struct fake_ib_wr {
	unsigned int seq;
	unsigned int call;
	unsigned int pos;
	bool recv;
	enum ib_wr_opcode opcode;
	int send_flags;
	struct ib_cqe *cqe;
	int num_sge;
	struct ib_sge sge[FAKE_IB_MAX_SGE];
	u64 length;
	u64 remote_addr;
	u32 rkey;
	struct ib_mr *mr;
	int access;
	u32 page_size;
	u32 npages;
	u64 pages[FAKE_IB_WR_PAGES];
	bool done;
	struct ib_qp *taken_by;
};

/**
 * struct fake_ib_live - objects of the device that exist at the moment
 * @pds: protection domains
 * @cqs: completion queues
 * @qps: queue pairs
 * @srqs: shared receive queues
 * @mrs: memory regions, without the DMA regions that come with a PD
 */
struct fake_ib_live {
	int pds;
	int cqs;
	int qps;
	int srqs;
	int mrs;
};

/**
 * struct fake_ib_mr - what a region is at the moment
 * @mapped: its page list has been put together
 * @map_page_size: size of the pages in the list
 * @map_npages: how many
 * @map_offset: of the first byte in the first page
 * @map_length: bytes in the list
 * @maps: how often it was mapped
 * @valid: its keys can be used
 * @lkey: the local one, as registered last
 * @rkey: the remote one
 * @iova: first address
 * @length: bytes
 * @access: rights
 * @busy: requests for it that have not come back
 */
struct fake_ib_mr {
	bool mapped;
	u32 map_page_size;
	u32 map_npages;
	u64 map_offset;
	u64 map_length;
	unsigned int maps;
	bool valid;
	u32 lkey;
	u32 rkey;
	u64 iova;
	u64 length;
	int access;
	unsigned int busy;
};

struct fake_ib;

struct fake_ib *fake_ib_create(const struct fake_ib_caps *caps);
void fake_ib_unplug(struct fake_ib *fdev);
void fake_ib_destroy(struct fake_ib *fdev);
struct ib_device *fake_ib_device(struct fake_ib *fdev);
const char *fake_ib_name(struct fake_ib *fdev);
void fake_ib_refuse_paths(struct fake_ib *fdev);
int fake_ib_set_netdev(struct fake_ib *fdev, struct net_device *ndev);
void fake_ib_set_max_msg(struct fake_ib *fdev, u32 bytes);

void fake_ib_live(struct fake_ib *fdev, struct fake_ib_live *live);
int fake_ib_violations(struct fake_ib *fdev);
struct fake_dma *fake_ib_dma(struct ib_device *ibdev);
const char *fake_ib_last_violation(struct fake_ib *fdev);
unsigned int fake_ib_count(struct fake_ib *fdev, enum fake_ib_verb verb);
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

void fake_ib_hold_irq(struct fake_ib *fdev, bool hold);
void fake_ib_at(struct fake_ib *fdev, enum fake_ib_moment moment, unsigned int nth,
		void (*fn)(void *arg), void *arg);
int fake_ib_newest_vector(struct fake_ib *fdev);
void fake_ib_cq_event(struct ib_cq *cq, enum ib_event_type type);

int fake_ib_trace_start(struct fake_ib *fdev);
const struct fake_ib_step *fake_ib_trace(struct fake_ib *fdev, unsigned int i);

struct ib_srq *fake_ib_newest_srq(struct fake_ib *fdev);
unsigned int fake_ib_srq_posted(struct ib_srq *srq);
unsigned int fake_ib_srq_waiting(struct ib_srq *srq);
bool fake_ib_srq_wr(struct ib_srq *srq, unsigned int seq, struct fake_ib_wr *out);
void fake_ib_srq_size(struct ib_srq *srq, unsigned int *max_wr, unsigned int *max_sge);
void fake_ib_srq_event(struct ib_srq *srq, enum ib_event_type type);
int fake_ib_srq_take(struct ib_qp *qp);
int fake_ib_srq_finish(struct ib_qp *qp, unsigned int seq, enum ib_wc_status status,
		       u32 byte_len, bool solicited);
int fake_ib_srq_finish_as(struct ib_qp *qp, unsigned int seq, enum ib_wc_status status,
			  struct ib_qp *name);

struct ib_qp *fake_ib_newest_qp(struct fake_ib *fdev);
enum ib_qp_state fake_ib_qp_state(struct ib_qp *qp);
void fake_ib_qp_event(struct ib_qp *qp, enum ib_event_type event);
void fake_ib_qp_caps(struct ib_qp *qp, struct ib_qp_cap *cap);

unsigned int fake_ib_posted(struct ib_qp *qp, bool recv);
unsigned int fake_ib_outstanding(struct ib_qp *qp, bool recv);
bool fake_ib_wr(struct ib_qp *qp, bool recv, unsigned int seq, struct fake_ib_wr *out);
bool fake_ib_last_wr(struct ib_qp *qp, bool recv, struct fake_ib_wr *out);

int fake_ib_complete(struct ib_qp *qp, bool recv, enum ib_wc_status status);
int fake_ib_complete_seq(struct ib_qp *qp, bool recv, unsigned int seq,
			 enum ib_wc_status status);
int fake_ib_complete_all(struct ib_qp *qp, bool recv, enum ib_wc_status status);
int fake_ib_recv(struct ib_qp *qp, u32 byte_len, bool solicited);
int fake_ib_recv_inv(struct ib_qp *qp, u32 byte_len, u32 rkey);
void fake_ib_flush(struct ib_qp *qp);

bool fake_ib_mr(struct fake_ib *fdev, u32 key, struct fake_ib_mr *out);
bool fake_ib_mr_valid(struct fake_ib *fdev, u32 key);
int fake_ib_valid_mrs(struct fake_ib *fdev);
int fake_ib_access(struct fake_ib *fdev, u32 key, u64 addr, void *buf, u32 len, int access);

#endif /* KDAPL_FAKE_IB_H */
