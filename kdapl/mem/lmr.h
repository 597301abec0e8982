/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Local Memory Regions.
 */
#ifndef KDAPL_MEM_LMR_H
#define KDAPL_MEM_LMR_H

/* lmr_context of the reserved LMR: index 0, which no device uses */
#define KDAPL_RESERVED_CONTEXT	0x52

/*
 * In the rights of a range only: the device takes its segments as they are, and the memory needs
 * no synchronising. The fast path requires it like any right, so requests for memory without it
 * take the slow path.
 */
#define KDAPL_PRIV_DIRECT	((DAT_MEM_PRIV_FLAGS)0x40)

/* The same and the local read right, in one bit, which is faster to test. */
#define KDAPL_PRIV_SOURCE	((DAT_MEM_PRIV_FLAGS)0x80)

/* The memory needs no synchronising. */
#define KDAPL_PRIV_SAME		((DAT_MEM_PRIV_FLAGS)0x100)

/* Posts replace key and address (D-107). */
#define KDAPL_PRIV_LOCAL	((DAT_MEM_PRIV_FLAGS)0x200)

static inline u32 kdapl_priv_direct(u32 priv)
{
	return priv | KDAPL_PRIV_DIRECT | KDAPL_PRIV_SAME |
	       (priv & DAT_MEM_PRIV_LOCAL_READ_FLAG ? KDAPL_PRIV_SOURCE : 0);
}

#define KDAPL_PRIV_REMOTE	(DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG)

/* How an operation on an LMR or RMR has ended. */
enum kdapl_outcome {
	KDAPL_DONE,		/* the device has carried it out */
	KDAPL_NEVER,		/* it never reached the device */
	KDAPL_UNKNOWN,		/* flushed: the device may have carried it out or not */
	KDAPL_FAILED,		/* with an error: nobody knows, and to try again may fail again */
};

enum kdapl_lmr_state {
	KDAPL_LMR_UNBOUND,	/* not bound, or invalidated by the peer */
	KDAPL_LMR_BOUND,
	KDAPL_LMR_ENDING,	/* an invalidate has been posted */
	KDAPL_LMR_MAPPED,	/* invalidated by the peer, but an RMR still needs its mapping */
	/* a registration was flushed, or an invalidation has failed: its MR has to be replaced */
	KDAPL_LMR_STALE,
	KDAPL_LMR_DEAD,		/* being freed */
};

/* Operations on the request queue that change an LMR; at most one of each is outstanding. */
enum kdapl_lmr_op {
	KDAPL_LMR_REG,
	KDAPL_LMR_INV,
	KDAPL_LMR_OPS
};

/**
 * struct kdapl_lmr - a Local Memory Region
 * @mr: its MR and keys; mr.lock protects the members marked below
 * @pz: its PZ, which it uses
 * @priv: rights the consumer asked for; mr.lock
 * @va_type: how addresses are counted; mr.lock, as for @mem_type, @region and @mem
 * @reserved: the IA's reserved LMR
 * @fmr: an LMR of dat_lmr_allocate()
 * @scope: whether the PZ or only one EP may use the memory it is bound to
 * @state: enum kdapl_lmr_state; mr.lock
 * @ep: id of the EP that has bound it last, with DAT_LMR_SCOPE_EP; mr.lock
 * @op: connections with an outstanding operation on it; mr.lock
 * @seq: number of operations of each kind so far; mr.lock
 * @windows: RMRs bound to it, or about to be; mr.lock
 * @mem: its memory
 * @old: the memory of the previous binding, if it is so large that it is unmapped a little
 *	later; else the spare list, if there is one; mr.lock
 * @unmapping: @old has not been unmapped yet; mr.lock
 * @unmap_work: unmaps @old, unless another caller does so first
 */
struct kdapl_lmr {
	struct kdapl_obj obj;
	struct kdapl_mr mr;
	struct kdapl_pz *pz;
	DAT_PZ_HANDLE pz_handle;
	DAT_MEM_PRIV_FLAGS priv;
	DAT_VA_TYPE va_type;
	DAT_MEM_TYPE mem_type;
	DAT_REGION_DESCRIPTION region;
	u64 length;			/* as requested: bytes or pages */
	bool reserved;
	bool fmr;
	DAT_LMR_SCOPE scope;
	u8 state;
	unsigned long ep;
	struct kdapl_op_owner *op[KDAPL_LMR_OPS];
	u32 seq[KDAPL_LMR_OPS];
	unsigned int windows;
	bool unmapping;
	struct kdapl_mem mem;
	struct kdapl_mem old;
	struct work_struct unmap_work;
};

static inline u64 kdapl_lmr_start(const struct kdapl_lmr *lmr)
{
	return lmr->va_type == DAT_VA_TYPE_ZB ? 0 : lmr->mem.start;
}

/* May a call use the LMR it was given? -EBADF: there is none; -EPERM: it is the reserved one. */
static inline int kdapl_lmr_check(const struct kdapl_lmr *lmr)
{
	if (!lmr)
		return -EBADF;
	return lmr->reserved ? -EPERM : 0;
}

/* Return value of that call. */
static inline DAT_RETURN kdapl_lmr_check_ret(int err)
{
	if (!err)
		return DAT_SUCCESS;
	if (err == -EPERM)
		return kdapl_err(DAT_RESERVED_LMR, DAT_NO_SUBTYPE);
	return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
}

/**
 * struct kdapl_fmr - what an LMR is to be bound to
 * @lmr: LMR of dat_lmr_allocate()
 * @mem_type: PHYSICAL or PHYSICAL_VAR_PAGES; ignored with @sg
 * @region: the pages; ignored with @sg
 * @num_pages: number of pages; ignored with @sg
 * @sg: a piece of memory in place of pages, or NULL
 * @priv: rights
 * @va_type: how addresses are counted
 * @key: out: key for segments and peers
 * @start: out: first address
 */
struct kdapl_fmr {
	struct kdapl_lmr *lmr;
	DAT_MEM_TYPE mem_type;
	DAT_REGION_DESCRIPTION region;
	DAT_VLEN num_pages;
	const struct kdat_sg *sg;
	DAT_MEM_PRIV_FLAGS priv;
	DAT_VA_TYPE va_type;
	u32 key;
	u64 start;
};

struct kdapl_lmr *kdapl_lmr_alloc(struct kdapl_ia *ia, struct kdapl_pz *pz, DAT_PZ_HANDLE handle);
void kdapl_lmr_destroy(struct kdapl_lmr *lmr);
DAT_RETURN kdapl_lmr_ret(int err);
void kdapl_lmr_publish(struct kdapl_lmr *lmr);
enum kdapl_verdict kdapl_lmr_claim(struct kdapl_lmr *lmr, enum kdapl_lmr_op op, unsigned long ep,
				   struct kdapl_op_owner *owner, bool live, u32 *seq);
void kdapl_lmr_op_done(struct kdapl_lmr *lmr, enum kdapl_lmr_op op, u32 seq,
		       enum kdapl_outcome outcome);
void kdapl_lmr_unbound_rmr(struct kdapl_lmr *lmr);
void kdapl_lmr_quiesce(struct kdapl_lmr *lmr);
void kdapl_lmr_state_init(struct kdapl_lmr *lmr, struct kdapl_pd *pd);
int kdapl_lmr_spare_list(struct kdapl_lmr *lmr, u32 pages);
enum kdapl_verdict kdapl_fmr_begin(struct kdapl_fmr *fmr, unsigned long ep,
				   struct kdapl_op_owner *owner, bool live, u32 *seq);
void kdapl_fmr_key_back(struct kdapl_lmr *lmr, u32 key, u32 seq);
void kdapl_lmr_reserved_destroy(struct kdapl_ia *ia);

#endif /* KDAPL_MEM_LMR_H */
