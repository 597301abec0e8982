/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * What an EP is made of, for the calls that create and modify it.
 */
#ifndef KDAPL_EP_EP_CONF_H
#define KDAPL_EP_EP_CONF_H

#include "ep.h"

/*
 * The objects an EP is made of. A function that looks them up or begins to use them returns 0, a
 * negative errno, or the part whose handle is bad.
 */
enum kdapl_ep_part {
	KDAPL_EP_PZ = 1,
	KDAPL_EP_RECV_EVD,
	KDAPL_EP_REQUEST_EVD,
	KDAPL_EP_CONNECT_EVD,
	KDAPL_EP_SRQ,
	KDAPL_EP_PARTS
};

/**
 * struct kdapl_ep_named - the objects a call names, referenced; NULL if it names none
 * @pz: PZ
 * @recv: EVD of Receives
 * @request: EVD of requests
 * @connect: EVD of connection events
 * @srq: SRQ
 * @null: the null EVD of the IA, if it takes the place of one: kdapl_ep_conf_init()
 */
struct kdapl_ep_named {
	struct kdapl_pz *pz;
	struct kdapl_evd *recv;
	struct kdapl_evd *request;
	struct kdapl_evd *connect;
	struct kdapl_srq *srq;
	struct kdapl_evd *null;
};

/**
 * struct kdapl_ep_uses - the objects an EP uses at once
 * @obj: by enum kdapl_ep_part; NULL for a part it does not have
 */
struct kdapl_ep_uses {
	struct kdapl_obj *obj[KDAPL_EP_PARTS];
};

void kdapl_ep_attr_default(const DAT_IA_ATTR *ia, bool recv, bool request, DAT_EP_ATTR *attr);
int kdapl_ep_attr_check(const struct kdapl_device *dev, const DAT_IA_ATTR *ia,
			const DAT_EP_ATTR *attr, bool recv, bool request, bool srq);
void kdapl_ep_attr_grant(const DAT_IA_ATTR *ia, DAT_EP_ATTR *attr);
void kdapl_ep_attr_merge(DAT_EP_ATTR *attr, const DAT_EP_ATTR *want, u64 mask);

int kdapl_ep_named_get(struct kdapl_ep_named *named, struct kdapl_ia *ia, DAT_PZ_HANDLE pz,
		       DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request, DAT_EVD_HANDLE connect,
		       const DAT_SRQ_HANDLE *srq);
void kdapl_ep_named_put(struct kdapl_ep_named *named);
bool kdapl_ep_pz_fits_srq(const struct kdapl_pz *pz, const struct kdapl_srq *srq);

int kdapl_ep_conf_init(struct kdapl_ep_conf *conf, struct kdapl_ia *ia,
		       struct kdapl_ep_named *named, const DAT_EP_ATTR *attr);
void kdapl_ep_conf_apply(struct kdapl_ep *ep, const struct kdapl_ep_named *named,
			 const struct kdapl_ep_conf *conf);

void kdapl_ep_uses(struct kdapl_ep_uses *uses, const struct kdapl_ep_conf *conf,
		   struct kdapl_evd *connect, struct kdapl_srq *srq);
int kdapl_ep_use(const struct kdapl_ep_uses *uses);
void kdapl_ep_unuse(const struct kdapl_ep_uses *uses);

#endif /* KDAPL_EP_EP_CONF_H */
