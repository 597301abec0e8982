/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * PDs, and the native MRs on them.
 */
#ifndef KDAPL_MEM_MR_H
#define KDAPL_MEM_MR_H

/**
 * struct kdapl_pd - verbs part of a PZ
 * @pd: NULL once the device took it back
 * @ref: the PZ, each MR and each connection
 * @lock: one registration at a time; protects @reg
 * @fence: with KDAPL_FENCE_INV: never valid; to invalidate it fences requests (D-83)
 * @reg: registration QP, built when first needed (reg.c)
 * @rcu: posts may still look at it for a grace period
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

int kdapl_reg_mr(struct kdapl_ia *ia, struct kdapl_pd *pd, struct ib_mr *mr, int access);
int kdapl_reg_invalidate(struct kdapl_ia *ia, struct kdapl_pd *pd, u32 key);
void kdapl_reg_destroy(struct kdapl_pd *pd);

/**
 * struct kdapl_range - what a key stands for, copied out of the MR
 * @domain: id of the PD or EP that may use it, 0 for any
 * @start: first address as segments name it (0 when zero based)
 * @length: bytes
 * @priv: what the consumer asked for; posting checks use exactly this
 */
struct kdapl_range {
	unsigned long domain;
	u64 start;
	u64 length;
	DAT_MEM_PRIV_FLAGS priv;
};

/**
 * struct kdapl_mr_ops - what becomes of an MR, told to the LMR or RMR it is part of
 * @invalidated: a peer's Send has invalidated one of its keys, not necessarily the valid one;
 *	any context, under the lock of an EVD
 * @resolved: it was stale and has been replaced; any context
 * @unmap: it has gone, and so has to go the mapping of its memory; may sleep, the device is
 *	there; NULL: the memory is somebody else's
 */
struct kdapl_mr_ops {
	void (*invalidated)(struct kdapl_mr *mr, u32 rkey);
	void (*resolved)(struct kdapl_mr *mr);
	void (*unmap)(struct kdapl_mr *mr);
};

/**
 * struct kdapl_mr - a native MR of an LMR or RMR
 * @owner: that LMR or RMR
 * @pd: PD it lives on; holds a reference
 * @ibmr: NULL once the device took it back, and for the reserved LMR
 * @res: what the device has to give back
 * @ops: what @owner is told
 * @stale_node: in ia->stale_mrs: a registration of it was flushed, which may mean anything
 * @pages: blocks it maps at most
 * @index: of its keys: what is left of them without the low byte; does not change while
 *	it is in the table of keys
 * @lock: all that follows; taken last
 * @seq: readers of the next three do not take @lock
 * @lkey: what segments name it by, 0 while they may not
 * @rkey: what peers name it by, 0 while they may not
 * @range: what both stand for
 * @next: low byte of the key to come
 * @step: what leads from it to the one after it, odd
 * @used: key of the last registration, 0 before the first
 * @live: that key is or may be valid
 *
 * What posts read is one cache line, from @seq on (asserted in mr.c). Only registering,
 * invalidating and freeing write there. Memory for what an MR is part of
 * comes from kdapl_zalloc_aligned().
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

/*
 * kmalloc() promises more than the alignment of a long for powers of two only. To ask for
 * such a size costs nothing: beyond 192 bytes it would round up to one anyway.
 */
static inline void *kdapl_zalloc_aligned(size_t size)
{
	return kzalloc(roundup_pow_of_two(size), GFP_KERNEL);
}

void kdapl_mr_init(struct kdapl_mr *mr, struct kdapl_obj *owner, const struct kdapl_mr_ops *ops,
		   struct kdapl_pd *pd);
int kdapl_mr_create(struct kdapl_mr *mr, u32 pages);
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

/*
 * A key that is not the one of the moment is refused without a second look: that it
 * is becoming it just now is no reason to wait.
 */
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

/* The MR a key belongs or has belonged to; RCU read side. */
static inline struct kdapl_mr *kdapl_mr_find(struct kdapl_ia *ia, u32 key)
{
	return kdapl_keys_find(&ia->keys, key);
}

/* What an lmr_context stands for; RCU read side. */
static inline bool kdapl_key_find(struct kdapl_ia *ia, u32 key, struct kdapl_range *range)
{
	const struct kdapl_mr *mr = kdapl_mr_find(ia, key);

	return likely(mr) && kdapl_mr_read(mr, key, false, range);
}

/* The same for an rmr_context. */
static inline bool kdapl_rkey_find(struct kdapl_ia *ia, u32 key, struct kdapl_range *range)
{
	const struct kdapl_mr *mr = kdapl_mr_find(ia, key);

	return likely(mr) && kdapl_mr_read(mr, key, true, range);
}

/* Ids of users of a key: an EP's is its handle, which is odd; a PD's is a pointer. */
static inline unsigned long kdapl_pd_domain(const struct kdapl_pd *pd)
{
	return (unsigned long)pd;
}

#endif /* KDAPL_MEM_MR_H */
