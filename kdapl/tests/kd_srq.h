/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The common ground of the suites on Shared Receive Queues: one SRQ, and EPs
 * that take their buffers from it.
 */
#ifndef KDAPL_KD_SRQ_H
#define KDAPL_KD_SRQ_H

#include "kd_test.h"

#define SQ_EPS		8

/* One EP of the SRQ. */
struct sq_ep {
	DAT_EP_HANDLE ep;
	struct kdapl_ep *kep;
	struct ib_qp *qp;
};

/**
 * struct sq - what a case works with
 * @env: the usual; its EP is the one sq_use() chose
 * @srq: the SRQ
 * @ib: the device's side of it
 * @eps: EPs that use it
 * @mem: memory of the buffers; one that may be written only, unless a case has chosen
 */
struct sq {
	struct kd_env env;
	DAT_SRQ_HANDLE srq;
	struct ib_srq *ib;
	struct sq_ep eps[SQ_EPS];
	enum kd_mem_kind mem;
};

int sq_init(struct kunit *test);
struct sq *sq_of(struct kunit *test);
struct ib_qp *sq_use(struct sq *sq, int i);
void sq_ep_free(struct sq *sq, int i);
void sq_exit(struct kunit *test);
void sq_again(struct kunit *test);
struct sq *sq_open(struct kunit *test, const struct fake_ib_caps *caps);
DAT_RETURN sq_create(struct sq *sq, DAT_COUNT dtos, DAT_COUNT iov, DAT_COUNT low,
		     DAT_SRQ_HANDLE *srq);
void sq_srq(struct sq *sq, DAT_COUNT dtos);
void sq_srq_free(struct sq *sq);
DAT_RETURN sq_try_ep(struct sq *sq, const DAT_EP_ATTR *attr, DAT_EP_HANDLE *ep);
void sq_ep_on(struct sq *sq, int i, DAT_EVD_HANDLE recv, const DAT_EP_ATTR *attr);
struct ib_qp *sq_ep(struct sq *sq, int i);
DAT_RETURN sq_try_post(struct sq *sq, u64 cookie);
void sq_post(struct sq *sq, u64 cookie, int n);
void sq_expect_full(struct sq *sq);
void sq_recv(struct sq *sq, int i, int n, u32 length);
void sq_counts(struct sq *sq, DAT_SRQ_PARAM *param);
void sq_expect_counts(struct sq *sq, int available, int outstanding, const char *what);
void sq_expect(struct sq *sq, DAT_EVD_HANDLE evd, int i, u64 cookie, int status, u32 length);
void sq_got(struct sq *sq, int i, u64 cookie, u32 length);
void sq_settle(void);
int sq_async(struct sq *sq, DAT_HANDLE handle, int reason);
int sq_low_events(struct sq *sq);
int sq_soft_events(struct sq *sq);

#endif /* KDAPL_KD_SRQ_H */
