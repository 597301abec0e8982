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
#define KM_OBJS		16
#define KM_EPS		2

#define KM_REMOTE	(DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG)
#define KM_LOCAL	(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG)

/**
 * struct km_ep - one of the EPs
 * @ep: its handle
 * @kep: the object
 * @qp: its QP
 */
struct km_ep {
	DAT_EP_HANDLE ep;
	struct kdapl_ep *kep;
	struct ib_qp *qp;
};

/**
 * struct km - what a case works with
 * @env: the usual; @env.req also takes RMR bind completions, and @env.ep is the
 *	EP that km_use() chose
 * @eps: the EPs there are
 * @page: pages, of which no two follow each other
 * @pa: their physical addresses
 * @lmrs: LMRs to be freed
 * @rmrs: RMRs to be freed
 */
struct km {
	struct kd_env env;
	struct km_ep eps[KM_EPS];
	struct page *page[KM_PAGES];
	DAT_PADDR pa[KM_PAGES];
	DAT_LMR_HANDLE lmrs[KM_OBJS];
	DAT_RMR_HANDLE rmrs[KM_OBJS];
};

/**
 * struct km_keys - what an fmr gives
 * @lmr: lmr_context
 * @rmr: rmr_context
 */
struct km_keys {
	DAT_LMR_CONTEXT lmr;
	DAT_RMR_CONTEXT rmr;
};

/**
 * struct km_trace - all that a refused call must leave alone
 * @posted: requests the device got
 * @maps: mappings of regions
 * @used: entries of the work queue
 */
struct km_trace {
	unsigned int posted;
	unsigned int maps;
	u32 used;
};

int km_init(struct kunit *test);
void km_exit(struct kunit *test);
struct km *km_of(struct kunit *test);
struct km *km_open(struct kunit *test, const struct fake_ib_caps *caps);
void km_ep(struct km *km, int i, const DAT_EP_ATTR *attr);
struct ib_qp *km_use(struct km *km, int i);
void km_ep_free(struct km *km, int i);
struct km *km_on(struct kunit *test, const struct fake_ib_caps *caps, const DAT_EP_ATTR *attr);
struct km *km_connected(struct kunit *test, const DAT_EP_ATTR *attr);

void km_keep_lmr(struct km *km, DAT_LMR_HANDLE lmr);
void km_drop_lmr(struct km *km, DAT_LMR_HANDLE lmr);
void km_drop_rmr(struct km *km, DAT_RMR_HANDLE rmr);
DAT_LMR_HANDLE km_lmr(struct km *km, DAT_COUNT pages, DAT_LMR_SCOPE scope);
DAT_RMR_HANDLE km_rmr(struct km *km, bool for_ep);
void *km_bytes(struct km *km, int page);
void km_fill(struct km *km, u8 seed);
u8 km_byte(u8 seed, int page, u32 offset);

DAT_RETURN km_try_fmr(struct km *km, DAT_LMR_HANDLE lmr, int first, u64 n, DAT_MEM_PRIV_FLAGS priv,
		      int flags, u64 cookie, struct km_keys *keys);
DAT_RETURN km_try_inv(struct km *km, DAT_LMR_HANDLE lmr, int flags, u64 cookie);
void km_bind(struct km *km, DAT_LMR_HANDLE lmr, int first, u64 n, DAT_MEM_PRIV_FLAGS priv,
	     struct km_keys *keys);
void km_unbind(struct km *km, DAT_LMR_HANDLE lmr);
DAT_RETURN km_try_rmr(struct km *km, DAT_RMR_HANDLE rmr, DAT_LMR_HANDLE lmr, u64 addr, u32 length,
		      DAT_LMR_CONTEXT key, DAT_MEM_PRIV_FLAGS priv, int flags, u64 cookie,
		      DAT_RMR_CONTEXT *context);
void km_expect(struct km *km, DAT_DTOS op, u64 cookie, int status);
void km_expect_bind(struct km *km, DAT_RMR_HANDLE rmr, u64 cookie, int status);
void km_done(struct km *km, enum ib_wc_status status);
bool km_bound(struct km *km, DAT_LMR_HANDLE lmr);
void km_param(struct km *km, DAT_LMR_HANDLE lmr, DAT_LMR_PARAM *param);
DAT_RETURN km_send(struct km *km, DAT_LMR_CONTEXT key, u64 addr, u32 length, u64 cookie);
void km_usable(struct km *km, DAT_LMR_CONTEXT key, u64 addr);
void km_window(struct km *km, DAT_RMR_HANDLE rmr, DAT_LMR_HANDLE lmr, u64 addr, u32 length,
	       DAT_LMR_CONTEXT key, DAT_RMR_CONTEXT *context);
void km_last(struct km *km, struct fake_ib_wr *wr);
void km_trace(struct km *km, struct km_trace *trace);
void km_untouched(struct km *km, const struct km_trace *before, const char *what);
void km_down(struct km *km);
void km_drain(DAT_EVD_HANDLE evd);
void km_settle(struct km *km);
DAT_RETURN km_kcreate(struct km *km, DAT_MEM_TYPE type, void *what, u64 length, int priv,
		      DAT_LMR_HANDLE *lmr, DAT_LMR_CONTEXT *key);

#define KM_EXPECT_TYPE(test, ret, type)						\
	KUNIT_EXPECT_EQ(test, (u32)DAT_GET_TYPE(ret), (u32)(type))

#endif /* KDAPL_KD_MEM_H */
