/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Local Memory Regions.
 */
#ifndef KDAPL_MEM_LMR_H
#define KDAPL_MEM_LMR_H

/* lmr_context of the reserved LMR: index 0, which no device hands out */
#define KDAPL_RESERVED_CONTEXT	0x52

/*
 * In the rights of a range only: CPU and device see the memory alike. The fast path asks for
 * it as for any right, so that what has to be synchronised takes the slow path.
 */
#define KDAPL_PRIV_DIRECT	((DAT_MEM_PRIV_FLAGS)0x40)

/* the same and the right to read it here, in one bit, which is quicker to ask for */
#define KDAPL_PRIV_SOURCE	((DAT_MEM_PRIV_FLAGS)0x80)

static inline u32 kdapl_priv_direct(u32 priv)
{
	return priv | KDAPL_PRIV_DIRECT |
	       (priv & DAT_MEM_PRIV_LOCAL_READ_FLAG ? KDAPL_PRIV_SOURCE : 0);
}

#define KDAPL_PRIV_REMOTE	(DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG)

/* How a request for an LMR or RMR has ended. */
enum kdapl_outcome {
	KDAPL_DONE,		/* the device has carried it out */
	KDAPL_NEVER,		/* the device has not seen it */
	KDAPL_UNKNOWN,		/* flushed or failed: it may have been carried out before */
};

enum kdapl_lmr_state {
	KDAPL_LMR_UNBOUND,	/* stands for nothing, or the peer has invalidated it */
	KDAPL_LMR_BOUND,
	KDAPL_LMR_ENDING,	/* an invalidate has been posted */
	KDAPL_LMR_MAPPED,	/* invalidated by the peer, and an RMR still needs its mapping */
	KDAPL_LMR_STALE,	/* a registration was flushed: its MR has to be replaced */
	KDAPL_LMR_DEAD,		/* being freed */
};

/* Operations on the request queue that change an LMR; each at most once at a time. */
enum kdapl_lmr_op {
	KDAPL_LMR_REG,
	KDAPL_LMR_INV,
	KDAPL_LMR_OPS
};

/**
 * struct kdapl_lmr - a Local Memory Region
 * @mr: its MR and keys; mr.lock protects what is said to be so
 * @pz: holds a use
 * @priv: what the consumer asked for; mr.lock
 * @va_type: mr.lock, as @mem_type, @region and @mem
 * @reserved: the IA's reserved LMR
 * @fmr: of dat_lmr_allocate()
 * @scope: PD or EP that may use what it is bound to
 * @state: enum kdapl_lmr_state; mr.lock
 * @ep: id of the EP that has bound it last, with DAT_LMR_SCOPE_EP; mr.lock
 * @op: connections with an operation for it that has not come back; mr.lock
 * @seq: how many operations of each kind there were; mr.lock
 * @windows: RMRs bound to it, or about to be; mr.lock
 * @mem: its memory
 * @old: the memory before, of a binding so large that it is unmapped a little later; its list
 *	is the spare one, if there is one; mr.lock
 * @unmapping: that has not been done yet, or is under way; mr.lock
 * @unmap_work: does it, unless somebody else was faster
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
	u64 length;			/* as asked for: bytes or pages */
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

/**
 * struct kdapl_fmr - what an LMR is to be bound to
 * @lmr: LMR of dat_lmr_allocate()
 * @mem_type: PHYSICAL or PHYSICAL_VAR_PAGES, of no meaning with @sg
 * @region: the pages, likewise
 * @num_pages: likewise
 * @sg: a piece of memory instead, or NULL
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
void kdapl_fmr_key_back(struct kdapl_lmr *lmr, u32 key);
void kdapl_lmr_reserved_destroy(struct kdapl_ia *ia);

#endif /* KDAPL_MEM_LMR_H */
