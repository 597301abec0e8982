// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * What an EP is made of: the objects a call names for it, and the uses the EP holds on them.
 */
#include "ep_conf.h"

/* NULL handles are legal. False: this is no EVD of the IA with the right stream. */
static bool conf_get_evd(struct kdapl_ia *ia, DAT_EVD_HANDLE handle, DAT_EVD_FLAGS need,
			 struct kdapl_evd **evd)
{
	*evd = NULL;
	if (handle == DAT_HANDLE_NULL)
		return true;
	*evd = kdapl_obj_get(handle, DAT_HANDLE_TYPE_EVD);
	return *evd && (*evd)->obj.ia == ia && ((*evd)->flags & need);
}

/**
 * kdapl_ep_named_get - look up the objects a call names
 * @named: zeroed; the caller calls kdapl_ep_named_put(), also after an error
 * @ia: IA they must belong to
 * @pz: PZ, or NULL
 * @recv: EVD of Receives, or NULL
 * @request: EVD of requests, or NULL
 * @connect: EVD of connection events, or NULL
 * @srq: where the handle of an SRQ is; NULL: the call names none
 *
 * Return: 0, or the enum kdapl_ep_part whose handle is bad.
 */
int kdapl_ep_named_get(struct kdapl_ep_named *named, struct kdapl_ia *ia, DAT_PZ_HANDLE pz,
		       DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request, DAT_EVD_HANDLE connect,
		       const DAT_SRQ_HANDLE *srq)
{
	if (pz != DAT_HANDLE_NULL) {
		named->pz = kdapl_obj_get(pz, DAT_HANDLE_TYPE_PZ);
		if (!named->pz || named->pz->obj.ia != ia)
			return KDAPL_EP_PZ;
	}
	if (!conf_get_evd(ia, recv, DAT_EVD_DTO_FLAG, &named->recv))
		return KDAPL_EP_RECV_EVD;
	if (!conf_get_evd(ia, request, DAT_EVD_DTO_FLAG, &named->request))
		return KDAPL_EP_REQUEST_EVD;
	if (!conf_get_evd(ia, connect, DAT_EVD_CONNECTION_FLAG, &named->connect))
		return KDAPL_EP_CONNECT_EVD;
	if (srq) {
		named->srq = kdapl_obj_get(*srq, DAT_HANDLE_TYPE_SRQ);
		if (!named->srq || named->srq->obj.ia != ia)
			return KDAPL_EP_SRQ;
	}
	return 0;
}

/**
 * kdapl_ep_named_put - drop the references to the objects a call names
 * @named: from kdapl_ep_named_get()
 */
void kdapl_ep_named_put(struct kdapl_ep_named *named)
{
	kdapl_obj_put(named->pz ? &named->pz->obj : NULL);
	kdapl_obj_put(named->recv ? &named->recv->obj : NULL);
	kdapl_obj_put(named->request ? &named->request->obj : NULL);
	kdapl_obj_put(named->connect ? &named->connect->obj : NULL);
	kdapl_obj_put(named->srq ? &named->srq->obj : NULL);
	kdapl_obj_put(named->null ? &named->null->obj : NULL);
}

/**
 * kdapl_ep_pz_fits_srq - can an EP with this PZ take its Receives from this SRQ?
 * @pz: PZ of the EP, or NULL
 * @srq: SRQ of the EP, or NULL
 *
 * Some devices check a Receive against the PD of the QP. There the two must have the same PZ
 * (EP-CREATE-14).
 */
bool kdapl_ep_pz_fits_srq(const struct kdapl_pz *pz, const struct kdapl_srq *srq)
{
	return !pz || !srq || srq->pz == pz || !srq->obj.ia->dev->caps.srq_pd_checked;
}

/**
 * kdapl_ep_conf_init - the configuration of a new EP, or of one that is modified
 * @conf: filled entirely
 * @ia: IA
 * @named: objects; the null EVD is added if it is needed
 * @attr: attributes, as granted
 *
 * Without an EVD completions go to the null EVD of the IA.
 *
 * Context: may sleep; inside kdapl_dev_enter().
 * Return: 0; -ENOBUFS if the IA has no null EVD and cannot make one; -ESHUTDOWN if it is being
 * closed.
 */
int kdapl_ep_conf_init(struct kdapl_ep_conf *conf, struct kdapl_ia *ia,
		       struct kdapl_ep_named *named, const DAT_EP_ATTR *attr)
{
	struct kdapl_evd *null_evd;

	if (!named->recv || !named->request) {
		null_evd = kdapl_evd_null(ia);
		if (IS_ERR(null_evd))
			return PTR_ERR(null_evd);
		named->null = null_evd;
	}
	conf->attr = *attr;
	conf->pz = named->pz;
	conf->recv_evd = named->recv ?: named->null;
	conf->request_evd = named->request ?: named->null;
	return 0;
}

/**
 * kdapl_ep_conf_apply - set the configuration of an EP, for itself and for queries
 * @ep: the EP; ep->lock held, unless the EP is new
 * @named: objects
 * @conf: from kdapl_ep_conf_init()
 */
void kdapl_ep_conf_apply(struct kdapl_ep *ep, const struct kdapl_ep_named *named,
			 const struct kdapl_ep_conf *conf)
{
	ep->conf = *conf;
	WRITE_ONCE(ep->connect_evd, named->connect);
	ep->pz_handle = named->pz ? named->pz->obj.handle : DAT_HANDLE_NULL;
	ep->recv_handle = named->recv ? named->recv->obj.handle : DAT_HANDLE_NULL;
	ep->request_handle = named->request ? named->request->obj.handle : DAT_HANDLE_NULL;
	ep->connect_handle = named->connect ? named->connect->obj.handle : DAT_HANDLE_NULL;
}

/**
 * kdapl_ep_uses - list the objects that an EP uses
 * @uses: filled entirely
 * @conf: configuration of the EP
 * @connect: its connect EVD, or NULL
 * @srq: its SRQ, or NULL
 */
void kdapl_ep_uses(struct kdapl_ep_uses *uses, const struct kdapl_ep_conf *conf,
		   struct kdapl_evd *connect, struct kdapl_srq *srq)
{
	*uses = (struct kdapl_ep_uses) {
		.obj[KDAPL_EP_PZ] = conf->pz ? &conf->pz->obj : NULL,
		.obj[KDAPL_EP_RECV_EVD] = &conf->recv_evd->obj,
		.obj[KDAPL_EP_REQUEST_EVD] = &conf->request_evd->obj,
		.obj[KDAPL_EP_CONNECT_EVD] = connect ? &connect->obj : NULL,
		.obj[KDAPL_EP_SRQ] = srq ? &srq->obj : NULL,
	};
}

/* Stop using the parts before @end. */
static void conf_unuse(const struct kdapl_ep_uses *uses, int end)
{
	while (end--) {
		if (uses->obj[end])
			kdapl_obj_unuse(uses->obj[end]);
	}
}

/**
 * kdapl_ep_use - begin to use objects, all of them or none
 * @uses: the objects
 *
 * Return: 0, or the enum kdapl_ep_part that has been freed meanwhile.
 */
int kdapl_ep_use(const struct kdapl_ep_uses *uses)
{
	int part;

	for (part = 0; part < KDAPL_EP_PARTS; part++) {
		if (uses->obj[part] && kdapl_obj_use(uses->obj[part])) {
			conf_unuse(uses, part);
			return part;
		}
	}
	return 0;
}

/**
 * kdapl_ep_unuse - stop using objects
 * @uses: as for kdapl_ep_use()
 */
void kdapl_ep_unuse(const struct kdapl_ep_uses *uses)
{
	conf_unuse(uses, KDAPL_EP_PARTS);
}
