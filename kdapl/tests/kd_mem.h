/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The common ground of the suites on memory: pages, LMRs and RMRs that are
 * freed with the case, and up to two connected EPs.
 */
#ifndef KDAPL_KD_MEM_H
#define KDAPL_KD_MEM_H

#include <linux/scatterlist.h>

#include "kd_test.h"

#define KM_PAGES	24
#define KM_OBJS		24
#define KM_EPS		2

#define KM_ALL		DAT_MEM_PRIV_ALL_FLAG
#define KM_REMOTE	(DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG)
#define KM_LOCAL	(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG)

/* The memory with all rights that every case has. */
#define KM_MEM(km)	(&(km)->env.mem[KD_RW])

/* One of the EPs. */
struct km_ep {
	DAT_EP_HANDLE ep;	/* its handle */
	struct kdapl_ep *kep;	/* the object */
	struct ib_qp *qp;	/* its QP */
};

/* What a case works with. */
struct km {
	/*
	 * the usual; @env.req also takes RMR bind completions, and @env.ep is the EP that
	 * km_use() chose
	 */
	struct kd_env env;
	struct km_ep eps[KM_EPS];	/* the EPs there are */
	struct page *page[KM_PAGES];	/* pages, of which no two follow each other */
	DAT_PADDR pa[KM_PAGES];	/* their physical addresses */
	DAT_LMR_HANDLE lmrs[KM_OBJS];	/* LMRs to be freed */
	DAT_RMR_HANDLE rmrs[KM_OBJS];	/* RMRs to be freed */
};

/* What an fmr gives. */
struct km_keys {
	DAT_LMR_CONTEXT lmr;	/* lmr_context */
	DAT_RMR_CONTEXT rmr;	/* rmr_context */
};

/* Memory of dat_lmr_kcreate(): what is asked for, and from @lmr on what comes. */
struct km_reg {
	DAT_PZ_HANDLE pz;	/* PZ; that of the EPs if it is NULL */
	int priv;		/* rights */
	int va;			/* DAT_VA_TYPE */
	int opt;		/* DAT_MEM_OPTIMIZE_FLAGS */
	DAT_LMR_HANDLE lmr;	/* handle */
	DAT_LMR_CONTEXT key;	/* lmr_context */
	DAT_RMR_CONTEXT rkey;	/* rmr_context */
	DAT_VLEN length;	/* registered length */
	DAT_VADDR addr;		/* registered address */
};

/* All that a refused call must leave alone. */
struct km_trace {
	unsigned int posted;	/* requests the device got */
	unsigned int maps;	/* mappings of regions */
	u32 used;		/* entries of the work queue */
};

/*
 * km_open() sets everything up but the EPs, after it has ended the round before if there was
 * one; km_ep() creates an EP and uses it, km_join() connects it, too; km_on() is all of that.
 * km_exit() frees EPs first, and with them what is outstanding.
 */
int km_init(struct kunit *test);
void km_exit(struct kunit *test);
struct km *km_of(struct kunit *test);
struct km *km_open(struct kunit *test, const struct fake_ib_caps *caps);
void km_ep(struct km *km, int i, const DAT_EP_ATTR *attr);
void km_join(struct km *km, int i, const DAT_EP_ATTR *attr);
struct km *km_on(struct kunit *test, const struct fake_ib_caps *caps, const DAT_EP_ATTR *attr);
struct km *km_connected(struct kunit *test, const DAT_EP_ATTR *attr);
/* Make one of the EPs the one that the helpers work with, or free it. */
struct ib_qp *km_use(struct km *km, int i);
void km_ep_free(struct km *km, int i);
/* Disconnect the EP abruptly, up to the event; wait for the one that says it is broken. */
void km_down(struct km *km);
void km_broken(struct km *km);

/* Objects that are freed with the case, or now, or by the case itself. */
DAT_LMR_HANDLE km_lmr(struct km *km, DAT_COUNT pages, DAT_LMR_SCOPE scope);
DAT_RMR_HANDLE km_rmr(struct km *km, bool for_ep);
void km_keep_lmr(struct km *km, DAT_LMR_HANDLE lmr);
void km_drop_lmr(struct km *km, DAT_LMR_HANDLE lmr);
void km_drop_rmr(struct km *km, DAT_RMR_HANDLE rmr);
void km_forget(struct km *km);
/* dat_lmr_kcreate(), and of linear memory, where it has to work. */
DAT_RETURN km_try_reg(struct km *km, struct km_reg *reg, DAT_MEM_TYPE type,
		      DAT_REGION_DESCRIPTION region, u64 length);
struct km_reg km_reg(struct km *km, void *va, u64 length, int priv, int va_type, int opt);

/* What is in a page; bytes of which each nearly has a value of its own. */
void *km_bytes(struct km *km, int page);
void km_fill(struct km *km, u8 seed);
u8 km_byte(u8 seed, int page, u32 offset);

/* dat_lmr_fmr() of @n pages from @first on, in an array that is scribbled over afterwards. */
DAT_RETURN km_try_fmr(struct km *km, DAT_LMR_HANDLE lmr, int first, u64 n, DAT_MEM_PRIV_FLAGS priv,
		      int flags, u64 cookie, struct km_keys *keys);
DAT_RETURN km_try_inv(struct km *km, DAT_LMR_HANDLE lmr, int flags, u64 cookie);
DAT_RETURN km_try_rmr(struct km *km, DAT_RMR_HANDLE rmr, DAT_LMR_HANDLE lmr, u64 addr, u32 length,
		      DAT_LMR_CONTEXT key, DAT_MEM_PRIV_FLAGS priv, int flags, u64 cookie,
		      DAT_RMR_CONTEXT *context);
/* The same for a part of KM_MEM() and both remote rights; or for nothing. */
DAT_RETURN km_try_part(struct km *km, DAT_RMR_HANDLE rmr, u32 offset, u32 length, int flags,
		       u64 cookie, DAT_RMR_CONTEXT *context);
DAT_RETURN km_try_unbind(struct km *km, DAT_RMR_HANDLE rmr, u64 cookie);
/* Each with nothing else outstanding, up to its event. */
void km_bind(struct km *km, DAT_LMR_HANDLE lmr, int first, u64 n, DAT_MEM_PRIV_FLAGS priv,
	     struct km_keys *keys);
void km_unbind(struct km *km, DAT_LMR_HANDLE lmr);
void km_window(struct km *km, DAT_RMR_HANDLE rmr, DAT_LMR_HANDLE lmr, u64 addr, u32 length,
	       DAT_LMR_CONTEXT key, DAT_RMR_CONTEXT *context);
/* A Send of one segment; or one of eight bytes up to its event. */
DAT_RETURN km_send(struct km *km, DAT_LMR_CONTEXT key, u64 addr, u32 length, u64 cookie);
void km_usable(struct km *km, DAT_LMR_CONTEXT key, u64 addr);

/* The oldest request comes back; all do, and nobody wants to hear of it. */
void km_done(struct km *km, enum ib_wc_status status);
void km_settle(struct km *km);
/* The next completion is this one; or will be, when the oldest request, or all, succeed. */
void km_expect(struct km *km, DAT_DTOS op, u64 cookie, int status);
void km_expect_bind(struct km *km, DAT_RMR_HANDLE rmr, u64 cookie, int status);
void km_finish(struct km *km, DAT_DTOS op, u64 cookie);
void km_finish_bind(struct km *km, DAT_RMR_HANDLE rmr, u64 cookie);
void km_drain(DAT_EVD_HANDLE evd);

/* Does the LMR stand for memory, as its query says? */
bool km_bound(struct km *km, DAT_LMR_HANDLE lmr);
void km_param(struct km *km, DAT_LMR_HANDLE lmr, DAT_LMR_PARAM *param);
/* Can a peer read that byte, or write it (a 1)? Is that key the one of a valid region? */
bool km_reads(struct km *km, u32 key, u64 addr);
bool km_writes(struct km *km, u32 key, u64 addr);
bool km_valid(struct km *km, u32 key);
/* The request the device got last. */
void km_last(struct km *km, struct fake_ib_wr *wr);
/* It has what a post with these completion flags asks for, and no forced signal. */
void km_expect_flags(struct km *km, const struct fake_ib_wr *wr, int flags);
void km_trace(struct km *km, struct km_trace *trace);
void km_untouched(struct km *km, const struct km_trace *before, const char *what);

#define KM_EXPECT_TYPE(test, ret, type)						\
	KUNIT_EXPECT_EQ(test, (u32)DAT_GET_TYPE(ret), (u32)(type))

#endif /* KDAPL_KD_MEM_H */
