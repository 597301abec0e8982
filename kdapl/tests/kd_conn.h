/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Service points and connection requests without a network: listeners that are
 * none, and requests whose peer nobody can answer.
 */
#ifndef KDAPL_KD_CONN_H
#define KDAPL_KD_CONN_H

#include <linux/in.h>

#include "kd_test.h"

#define KD_PEER_PORT		4711
#define KD_PEER_READS_OUT	3	/* Reads it would like to have outstanding */
#define KD_PEER_READS_IN	2	/* Reads it answers at a time */

extern struct sockaddr_in kd_peer;
#define KD_PEER		((DAT_IA_ADDRESS_PTR)&kd_peer)

DAT_EVD_HANDLE kd_cr_evd(struct kd_env *env, DAT_COUNT qlen);
DAT_PSP_HANDLE kd_psp(struct kd_env *env, DAT_EVD_HANDLE evd, DAT_CONN_QUAL qual,
		      DAT_PSP_FLAGS flags);
DAT_RSP_HANDLE kd_rsp(struct kd_env *env, DAT_EVD_HANDLE evd, DAT_CONN_QUAL qual,
		      DAT_EP_HANDLE ep);
DAT_CSP_HANDLE kd_csp(struct kd_env *env, DAT_EVD_HANDLE evd, DAT_CONN_QUAL qual);
struct rdma_cm_id *kd_cm_id(struct kd_env *env, DAT_CONN_QUAL qual);
int kd_try_request(struct kd_env *env, DAT_HANDLE handle, const void *pdata, u8 len);
bool kd_request(struct kd_env *env, DAT_HANDLE sp, const void *pdata, u8 len);
DAT_CR_HANDLE kd_cr(struct kd_env *env, DAT_HANDLE sp, DAT_EVD_HANDLE evd);
DAT_EP_HANDLE kd_cr_ep(struct kd_env *env, DAT_CR_HANDLE cr);
DAT_RETURN kd_configure(struct kd_env *env, DAT_EP_HANDLE ep);

#define KD_ZOO_KINDS		10
#define KD_ZOO			(DAT_HANDLE_TYPE_CSP + 1)

/* A kind of object, and how to get rid of one. */
struct kd_zoo_kind {
	unsigned int type;
	DAT_RETURN (*free)(DAT_HANDLE handle);
};

extern const struct kd_zoo_kind kd_zoo_kinds[KD_ZOO_KINDS];

void kd_zoo(struct kd_env *env, DAT_CONN_QUAL qual, DAT_HANDLE *h);
void kd_zoo_free(struct kd_env *env, DAT_HANDLE *h);
struct net_device *kd_loopback(void);

#endif /* KDAPL_KD_CONN_H */
