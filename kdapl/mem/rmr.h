/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Remote Memory Regions.
 */
#ifndef KDAPL_MEM_RMR_H
#define KDAPL_MEM_RMR_H

/**
 * struct kdapl_binding - the memory an RMR is bound to
 * @lmr: LMR with the memory, counted in its windows; NULL: unbound
 * @mr: the MR in use
 * @range: what its key stands for
 * @triplet: as requested
 * @priv: as requested
 * @va_type: as requested
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
 * @mr: two, so that one which a peer may still use is never mapped again (D-61)
 * @pz: its PZ, which it uses
 * @scope: whether all EPs of the PZ or only one may bind it
 * @lock: protects all that follows; taken outside the locks of MRs
 * @now: current binding
 * @next: binding of the outstanding bind
 * @op: connection with an outstanding bind
 * @inv_done: the old key has been invalidated, even if the bind fails
 * @inv_failed: that has failed
 * @next_gone: the peer has invalidated the new key
 * @stale: MRs that have to be replaced: that of @next if the bind was flushed, that of @now if its
 *	key could not be invalidated
 * @dead: being freed
 * @ep: id of the EP that has bound it, with DAT_RMR_SCOPE_EP
 * @sgl: room for the list of the bound part of an LMR
 */
struct kdapl_rmr {
	struct kdapl_obj obj;
	struct kdapl_mr mr[2];
	struct kdapl_pz *pz;
	DAT_PZ_HANDLE pz_handle;
	DAT_RMR_SCOPE scope;

	spinlock_t lock;		/* the members below */
	struct kdapl_binding now;
	struct kdapl_binding next;
	struct kdapl_op_owner *op;
	bool inv_done;
	bool inv_failed;
	bool next_gone;
	u8 stale;
	bool dead;
	unsigned long ep;
	struct scatterlist *sgl;
};

/**
 * struct kdapl_bind - a request to bind an RMR
 * @lmr: LMR with the memory; NULL to unbind the RMR
 * @part: the part of the LMR
 * @priv: rights
 * @va_type: how addresses are counted
 * @ep: id of the EP it is bound on
 * @mr: out: the MR that is not in use, to be registered if there is an LMR
 * @context: out: its new key for peers
 * @old: out: key to be invalidated first, 0 for none
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
