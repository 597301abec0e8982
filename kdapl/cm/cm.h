/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Connections: listeners, active side, passive side.
 */
#ifndef KDAPL_CM_CM_H
#define KDAPL_CM_CM_H

#include "../ep/ep.h"

/**
 * struct kdapl_sp - a service point: PSP, RSP or CSP, by obj.type
 * @conn_qual: port listened on
 * @flags: PSP: whether consumer or provider supplies EPs
 * @evd: where requests are reported; holds a use
 * @evd_handle: as the consumer gave it
 * @null_evd: the IA's, referenced, if EPs are made for requests
 * @ep: RSP: the reserved EP, referenced; NULL: one is made for the request
 * @comm: CSP: as the consumer gave it
 * @addr: CSP: address listened on
 * @mutex: @cm_id against removal of the device
 * @cm_id: the listener
 * @cr: RSP: the request that has used it up, referenced
 * @used_work: destroys the listener, then reports @cr
 * @out: where the consumer wants the handle, until it is there; ia->lock
 */
struct kdapl_sp {
	struct kdapl_obj obj;
	DAT_CONN_QUAL conn_qual;
	DAT_PSP_FLAGS flags;
	struct kdapl_evd *evd;
	DAT_EVD_HANDLE evd_handle;
	struct kdapl_evd *null_evd;
	struct kdapl_ep *ep;
	DAT_COMM comm;
	struct sockaddr_storage addr;
	struct mutex mutex;		/* cm_id */
	struct rdma_cm_id *cm_id;
	struct kdapl_cr *cr;
	struct work_struct used_work;
	DAT_HANDLE *out;
};

struct kdapl_evd *kdapl_sp_evd(struct kdapl_ia *ia, DAT_EVD_HANDLE handle);
struct kdapl_sp *kdapl_sp_alloc(struct kdapl_ia *ia, unsigned int type, struct kdapl_evd *evd);
int kdapl_sp_makes_eps(struct kdapl_sp *sp);
int kdapl_sp_start(struct kdapl_sp *sp, DAT_HANDLE *handle);
DAT_RETURN kdapl_sp_ret(int err);
bool kdapl_sp_request(struct kdapl_sp *sp, struct rdma_cm_id *id,
		      const struct rdma_conn_param *param);
int kdapl_sp_free(DAT_HANDLE handle, unsigned int type);
void kdapl_sp_destroy(struct kdapl_sp *sp);

struct kdapl_cr *kdapl_cr_create(struct kdapl_sp *sp, struct rdma_cm_id *id,
				 const struct rdma_conn_param *param);
bool kdapl_cr_announce(struct kdapl_sp *sp, struct kdapl_evd *evd, struct kdapl_cr *cr,
		       bool promised);
void kdapl_cr_refuse(struct kdapl_cr *cr);
void kdapl_cr_destroy(struct kdapl_cr *cr);

int kdapl_cm_connect(struct kdapl_conn *conn, const struct sockaddr *dst, u16 port, u32 usec,
		     DAT_COUNT tos);
int kdapl_cm_accept(struct kdapl_conn *conn, struct kdapl_cr *cr, const void *pdata, u8 len);
void kdapl_cm_set_ops(struct kdapl_conn *conn);
int kdapl_cm_handler(struct rdma_cm_id *id, struct rdma_cm_event *event);

#ifdef KDAPL_KUNIT
extern void (*kdapl_test_sp_start)(struct kdapl_sp *sp);	/* before it listens */
#endif

#endif /* KDAPL_CM_CM_H */
