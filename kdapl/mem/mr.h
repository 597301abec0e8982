/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * PDs, and the native MRs on them. The checks of a post against them are in ep/post.h (fast) and
 * ep/post_check.c (slow).
 */
#ifndef KDAPL_MEM_MR_H
#define KDAPL_MEM_MR_H

/**
 * struct kdapl_pd - verbs part of a PZ
 * @pd: NULL once it has been destroyed
 * @ref: references: the PZ, each MR and each connection
 * @lock: serialises registrations; protects @pd and @reg
 * @fence: with KDAPL_FENCE_INV: an MR that is never valid; invalidating it fences requests (D-83)
 * @reg: registration QP, built when first needed (reg.c)
 * @rcu: posts may look at it for another grace period
 */
struct kdapl_pd {
	struct kdapl_device *dev;
	u32 port;
	struct ib_pd *pd;
	struct ib_mr *fence;
	struct kdapl_res res;
	refcount_t ref;
	struct mutex lock;		/* pd, reg */
	struct kdapl_reg *reg;
	struct rcu_head rcu;
};

void kdapl_pd_put(struct kdapl_pd *pd);

struct kdapl_pz {
	struct kdapl_obj obj;
	struct kdapl_pd *pd;
};

void kdapl_pz_destroy(struct kdapl_pz *pz);

#define KDAPL_REG_NONCE	16

/**
 * struct kdapl_reg_door - which request the listener of a registration pair accepts
 * @nonce: it must carry this
 * @addr: and come from this address, our own
 * @taken: there was one
 */
struct kdapl_reg_door {
	u8 nonce[KDAPL_REG_NONCE];
	struct sockaddr_storage addr;
	atomic_t taken;
};

bool kdapl_reg_admits(struct kdapl_reg_door *door, const struct sockaddr_storage *from,
		      const void *pdata, u8 len);
int kdapl_reg_mr(struct kdapl_ia *ia, struct kdapl_pd *pd, struct ib_mr *mr, int access);
int kdapl_reg_invalidate(struct kdapl_ia *ia, struct kdapl_pd *pd, u32 key);
void kdapl_reg_destroy(struct kdapl_pd *pd);

/**
 * struct kdapl_range - what a key stands for
 * @domain: id of the PD or EP that may use it, 0 for any
 * @start: first address, as segments name it (0 if zero based)
 * @length: bytes
 * @priv: rights the consumer asked for; posts are checked against exactly these
 */
struct kdapl_range {
	unsigned long domain;
	u64 start;
	u64 length;
	DAT_MEM_PRIV_FLAGS priv;
};

/**
 * struct kdapl_mr_ops - callbacks of the LMR or RMR an MR is part of
 * @invalidated: a peer's Send has invalidated one of its keys, not necessarily the valid one;
 *	any context, under the lock of an EVD
 * @resolved: it was stale and has been replaced; any context
 * @unmap: it has been destroyed: unmap its memory; may sleep, the device is there. NULL: the
 *	memory belongs to another object
 */
struct kdapl_mr_ops {
	void (*invalidated)(struct kdapl_mr *mr, u32 rkey);
	void (*resolved)(struct kdapl_mr *mr);
	void (*unmap)(struct kdapl_mr *mr);
};

/**
 * struct kdapl_mr - a native MR of an LMR or RMR
 * @owner: the LMR or RMR
 * @pd: its PD; holds a reference
 * @ibmr: NULL once it has been destroyed, for the reserved LMR, and if it is @local
 * @res: its verbs part, for removal of the device
 * @ops: callbacks of @owner
 * @stale_node: in ia->stale_mrs while it is stale: a registration of it was flushed
 * @pages: most blocks it can map
 * @index: upper 24 bits of its keys; constant while it is in the key table
 * @local: the device knows nothing of it: posts replace its key by the local key of their PD
 * @shift: with @local: from the consumer's address to the device's
 * @lock: protects all that follows; taken last
 * @seq: for readers of the next three members, which do not take @lock
 * @lkey: key for segments, 0 while there is none
 * @rkey: key for peers, 0 while there is none
 * @range: what both keys stand for
 * @next: low byte of the next key
 * @step: constant of the sequence of low bytes, an odd number
 * @used: key of the last registration, 0 before the first
 * @live: @used is valid, or may be
 *
 * Posts read one cache line, from @seq on (asserted in mr.c). Only registering, invalidating
 * and freeing write to it. The structure an MR is part of is allocated by
 * kdapl_zalloc_aligned().
 */
struct kdapl_mr {
	struct kdapl_obj *owner;
	struct kdapl_pd *pd;
	struct ib_mr *ibmr;
	struct kdapl_res res;
	const struct kdapl_mr_ops *ops;
	struct list_head stale_node;
	u32 pages;
	u32 index;
	bool local;
	u64 shift;
	spinlock_t lock;		/* keys and what they stand for; innermost */

	seqcount_spinlock_t seq ____cacheline_aligned;
	u32 lkey;
	u32 rkey;
	struct kdapl_range range;
	u8 next;
	u8 step;
	bool live;
	u32 used;
};

void kdapl_mr_init(struct kdapl_mr *mr, struct kdapl_obj *owner, const struct kdapl_mr_ops *ops,
		   struct kdapl_pd *pd);
int kdapl_mr_create(struct kdapl_mr *mr, u32 pages);
int kdapl_mr_create_local(struct kdapl_mr *mr, u64 shift);
void kdapl_mr_destroy(struct kdapl_mr *mr);
int kdapl_mr_prime(struct kdapl_mr *mr);
int kdapl_mr_map(struct kdapl_mr *mr, struct scatterlist *sgl, int nents, u32 page_size,
		 u64 start);
void kdapl_mr_publish(struct kdapl_mr *mr, u32 lkey, u32 rkey, const struct kdapl_range *range);
void kdapl_mr_hide(struct kdapl_mr *mr);
u32 kdapl_mr_next_key(struct kdapl_mr *mr);
u32 kdapl_mr_skip_key(struct kdapl_mr *mr);
void kdapl_mr_new_key(struct kdapl_mr *mr);
int kdapl_mr_access(DAT_MEM_PRIV_FLAGS priv);
bool kdapl_mr_invalidated(struct kdapl_ia *ia, const struct kdapl_caps *caps, u32 rkey);
void kdapl_mr_set_stale(struct kdapl_mr *mr);
void kdapl_mrs_replace_stale(struct kdapl_ia *ia);

/* False if the key is not valid. One that is becoming valid at this moment may be missed. */
static inline bool kdapl_mr_read(const struct kdapl_mr *mr, u32 key, bool remote,
				 struct kdapl_range *range)
{
	unsigned int seq;

	do {
		seq = read_seqcount_begin(&mr->seq);
		if (unlikely(key != READ_ONCE(*(remote ? &mr->rkey : &mr->lkey)) || !key))
			return false;
		*range = mr->range;
	} while (unlikely(read_seqcount_retry(&mr->seq, seq)));
	return true;
}

/* The MR with the index of a key, valid or not; RCU read side. */
static inline struct kdapl_mr *kdapl_mr_find(struct kdapl_ia *ia, u32 key)
{
	return kdapl_keys_find(&ia->keys, key);
}

/* Look up an lmr_context; RCU read side. */
static inline bool kdapl_key_find(struct kdapl_ia *ia, u32 key, struct kdapl_range *range)
{
	const struct kdapl_mr *mr = kdapl_mr_find(ia, key);

	return likely(mr) && kdapl_mr_read(mr, key, false, range);
}

/* Look up an rmr_context; RCU read side. */
static inline bool kdapl_rkey_find(struct kdapl_ia *ia, u32 key, struct kdapl_range *range)
{
	const struct kdapl_mr *mr = kdapl_mr_find(ia, key);

	return likely(mr) && kdapl_mr_read(mr, key, true, range);
}

/* Id of a PD in kdapl_range. Those of EPs are their handles, which are odd numbers. */
static inline unsigned long kdapl_pd_domain(const struct kdapl_pd *pd)
{
	return (unsigned long)pd;
}

#endif /* KDAPL_MEM_MR_H */
