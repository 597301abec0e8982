/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Remote Memory Regions.
 */
#ifndef KDAPL_MEM_RMR_H
#define KDAPL_MEM_RMR_H

/**
 * struct kdapl_binding - what an RMR stands for
 * @lmr: whose memory; counts in its windows; NULL: nothing
 * @mr: which of the two MRs
 * @range: what its key stands for
 * @triplet: as asked for
 * @priv: as asked for
 * @va_type: as asked for
 * @context: key for peers
 */
struct kdapl_binding {
	struct kdapl_lmr *lmr;
	struct kdapl_mr *mr;
	struct kdapl_range range;
	DAT_LMR_TRIPLET triplet;
	DAT_MEM_PRIV_FLAGS priv;
	DAT_VA_TYPE va_type;
	DAT_RMR_CONTEXT context;
};

/**
 * struct kdapl_rmr - a Remote Memory Region
 * @mr: two, so that the one a peer may still use is never mapped anew
 * @pz: holds a use
 * @scope: PD or EP that may bind it
 * @lock: all that follows; outside of the locks of MRs
 * @now: what it is bound to
 * @next: what a bind under way will bind it to
 * @op: connection with a bind that has not come back
 * @inv_done: the old key is gone already, whatever becomes of the bind
 * @next_gone: the new key is, by the peer's doing
 * @stale: a bind was flushed: the MR of @next has to be replaced
 * @dead: being freed
 * @ep: id of the EP that has bound it, with DAT_RMR_SCOPE_EP
 * @sgl: room for the part of an LMR that is bound
 */
struct kdapl_rmr {
	struct kdapl_obj obj;
	struct kdapl_mr mr[2];
	struct kdapl_pz *pz;
	DAT_PZ_HANDLE pz_handle;
	DAT_RMR_SCOPE scope;

	spinlock_t lock;		/* all that follows */
	struct kdapl_binding now;
	struct kdapl_binding next;
	struct kdapl_op_owner *op;
	bool inv_done;
	bool next_gone;
	bool stale;
	bool dead;
	unsigned long ep;
	struct scatterlist *sgl;
};

/**
 * struct kdapl_bind - what an RMR is to be bound to
 * @lmr: whose memory, NULL to close the window
 * @part: which part of it
 * @priv: rights
 * @va_type: how addresses are counted
 * @ep: id of the EP it is bound on
 * @mr: out: the MR that is not bound; to be registered, if there is an LMR
 * @context: out: its key then, for peers
 * @old: out: key that goes before, 0 for none
 */
struct kdapl_bind {
	struct kdapl_lmr *lmr;
	const DAT_LMR_TRIPLET *part;
	DAT_MEM_PRIV_FLAGS priv;
	DAT_VA_TYPE va_type;
	unsigned long ep;
	struct kdapl_mr *mr;
	u32 context;
	u32 old;
};

u32 kdapl_rmr_pages(struct kdapl_device *dev);
void kdapl_rmr_destroy(struct kdapl_rmr *rmr);
enum kdapl_verdict kdapl_rmr_claim(struct kdapl_rmr *rmr, struct kdapl_bind *bind,
				   struct kdapl_op_owner *owner);
enum kdapl_verdict kdapl_rmr_begin(struct kdapl_rmr *rmr, struct kdapl_bind *bind);
void kdapl_rmr_inv_done(struct kdapl_rmr *rmr, enum kdapl_outcome outcome);
void kdapl_rmr_op_done(struct kdapl_rmr *rmr, enum kdapl_outcome outcome);
bool kdapl_rmr_behind(struct kdapl_rmr *rmr, const DAT_LMR_TRIPLET *seg, DAT_LMR_TRIPLET *behind);

#endif /* KDAPL_MEM_RMR_H */
