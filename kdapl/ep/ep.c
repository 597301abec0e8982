// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Endpoints: the calls that create, query, modify, reset and free them. Their
 * connections are in conn.c, posting is in post.c; the calls that connect them are
 * in cm/.
 */
#include <linux/export.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "ep.h"
#include "../core/trace.h"

#define DEFAULT_DTOS	64
#define DEFAULT_IOV	4
#define DEFAULT_READS	4	/* each way */
#define REAP_TIMEOUT	(HZ / 4)

static void ep_default_attr(const DAT_IA_ATTR *ia, bool recv, bool request, DAT_EP_ATTR *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->service_type = DAT_SERVICE_TYPE_RC;
	attr->max_message_size = ia->max_message_size;
	attr->max_rdma_size = ia->max_rdma_size;
	attr->qos = DAT_QOS_BEST_EFFORT;
	attr->max_recv_dtos = recv ? min(DEFAULT_DTOS, ia->max_dto_per_ep) : 0;
	attr->max_request_dtos = request ? min(DEFAULT_DTOS, ia->max_dto_per_ep) : 0;
	attr->max_recv_iov = min(DEFAULT_IOV, ia->max_iov_segments_per_dto);
	attr->max_request_iov = min(DEFAULT_IOV, ia->max_iov_segments_per_dto);
	attr->max_rdma_read_in = min(DEFAULT_READS, ia->max_rdma_read_per_ep_in);
	attr->max_rdma_read_out = min(DEFAULT_READS, ia->max_rdma_read_per_ep_out);
	attr->srq_soft_hw = DAT_HW_DEFAULT;
}

static bool ep_in_range(DAT_COUNT value, DAT_COUNT max)
{
	return value >= 0 && value <= max;
}

/**
 * struct ep_named - what a call names, referenced
 * @pz: PZ
 * @recv: EVD of Receives
 * @request: EVD of requests
 * @conn: EVD of connection events
 * @srq: SRQ
 */
struct ep_named {
	struct kdapl_pz *pz;
	struct kdapl_evd *recv;
	struct kdapl_evd *request;
	struct kdapl_evd *conn;
	struct kdapl_srq *srq;
};

/* EP-CREATE-08, FLAG-14. @arg: where the attributes are among the arguments. */
static DAT_RETURN ep_check_attr(const DAT_IA_ATTR *ia, const DAT_EP_ATTR *attr, bool recv,
				bool request, bool srq, int arg)
{
	DAT_RETURN bad = kdapl_arg_err(arg);

	if (attr->service_type != DAT_SERVICE_TYPE_RC ||
	    attr->max_message_size > ia->max_message_size ||
	    attr->max_rdma_size > ia->max_rdma_size)
		return bad;
	if (attr->qos & ~(DAT_QOS_HIGH_THROUGHPUT | DAT_QOS_LOW_LATENCY | DAT_QOS_ECONOMY |
			  DAT_QOS_PREMIUM))
		return bad;
	switch (attr->recv_completion_flags) {
	case DAT_COMPLETION_DEFAULT_FLAG:
	case DAT_COMPLETION_UNSIGNALLED_FLAG:
	case DAT_COMPLETION_SOLICITED_WAIT_FLAG:
		break;
	default:
		return bad;
	}
	if (attr->request_completion_flags != DAT_COMPLETION_DEFAULT_FLAG &&
	    attr->request_completion_flags != DAT_COMPLETION_UNSIGNALLED_FLAG)
		return bad;
	if (!ep_in_range(attr->max_recv_dtos, ia->max_dto_per_ep) ||
	    !ep_in_range(attr->max_request_dtos, ia->max_dto_per_ep) ||
	    (!srq && !ep_in_range(attr->max_recv_iov, ia->max_iov_segments_per_dto)) ||
	    !ep_in_range(attr->max_request_iov, ia->max_iov_segments_per_dto) ||
	    !ep_in_range(attr->max_rdma_read_iov, ia->max_iov_segments_per_rdma_read) ||
	    !ep_in_range(attr->max_rdma_write_iov, ia->max_iov_segments_per_rdma_write) ||
	    !ep_in_range(attr->max_rdma_read_in, ia->max_rdma_read_per_ep_in) ||
	    !ep_in_range(attr->max_rdma_read_out, ia->max_rdma_read_per_ep_out) ||
	    attr->srq_soft_hw < DAT_HW_DEFAULT)
		return bad;
	/* an EVD was named for a queue that can never hold anything (SIL-08) */
	if ((recv && !srq && !attr->max_recv_dtos) || (request && !attr->max_request_dtos))
		return bad;
	if (attr->ep_transport_specific_count || attr->ep_provider_specific_count)
		return bad;
	if (attr->qos != DAT_QOS_BEST_EFFORT)
		return kdapl_err(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	return DAT_SUCCESS;
}

/* What the consumer left open (iov limits of RDMA) is granted here. */
static void ep_grant_attr(const DAT_IA_ATTR *ia, DAT_EP_ATTR *attr)
{
	if (!attr->max_rdma_read_iov)
		attr->max_rdma_read_iov = min(attr->max_request_iov,
					      ia->max_iov_segments_per_rdma_read);
	if (!attr->max_rdma_write_iov)
		attr->max_rdma_write_iov = attr->max_request_iov;
	attr->ep_transport_specific = NULL;
	attr->ep_provider_specific = NULL;
}

/*
 * Look up an EVD a consumer named, NULL allowed. False: not an EVD of this IA
 * with the right stream.
 */
static bool ep_get_evd(struct kdapl_ia *ia, DAT_EVD_HANDLE handle, DAT_EVD_FLAGS need,
		       struct kdapl_evd **evd)
{
	*evd = NULL;
	if (handle == DAT_HANDLE_NULL)
		return true;
	*evd = kdapl_obj_get(handle, DAT_HANDLE_TYPE_EVD);
	return *evd && (*evd)->obj.ia == ia && ((*evd)->flags & need);
}

/*
 * Look up what a call names. NULL handles are legal, but for the SRQ where one
 * is asked for. Whatever is returned, the caller puts all of it.
 */
static DAT_RETURN ep_get_named(struct kdapl_ia *ia, DAT_PZ_HANDLE pz, DAT_EVD_HANDLE recv,
			       DAT_EVD_HANDLE request, DAT_EVD_HANDLE conn,
			       const DAT_SRQ_HANDLE *srq, struct ep_named *named)
{
	if (pz != DAT_HANDLE_NULL) {
		named->pz = kdapl_obj_get(pz, DAT_HANDLE_TYPE_PZ);
		if (!named->pz || named->pz->obj.ia != ia)
			return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	}
	if (!ep_get_evd(ia, recv, DAT_EVD_DTO_FLAG, &named->recv))
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_RECV);
	if (!ep_get_evd(ia, request, DAT_EVD_DTO_FLAG, &named->request))
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_REQUEST);
	if (!ep_get_evd(ia, conn, DAT_EVD_CONNECTION_FLAG, &named->conn))
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CONN);
	if (srq) {
		named->srq = kdapl_obj_get(*srq, DAT_HANDLE_TYPE_SRQ);
		if (!named->srq || named->srq->obj.ia != ia)
			return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ);
	}
	return DAT_SUCCESS;
}

static void ep_put_named(struct ep_named *named)
{
	kdapl_obj_put(named->pz ? &named->pz->obj : NULL);
	kdapl_obj_put(named->recv ? &named->recv->obj : NULL);
	kdapl_obj_put(named->request ? &named->request->obj : NULL);
	kdapl_obj_put(named->conn ? &named->conn->obj : NULL);
	kdapl_obj_put(named->srq ? &named->srq->obj : NULL);
}

/* The device cannot take Receives from an SRQ of another PZ (EP-CREATE-14). */
static bool ep_pz_differs(struct kdapl_ia *ia, struct kdapl_pz *pz, struct kdapl_srq *srq)
{
	return srq && pz && ia->dev->caps.srq_pd_checked && srq->pz != pz;
}

static void ep_destroy(struct kdapl_ep *ep);
static void ep_free_work(struct work_struct *work);
static void ep_soft_work(struct work_struct *work);

/* What an EP may use at once: PZ, three EVDs, SRQ. */
#define EP_USES		5

/*
 * Take the uses an EP needs, all or nothing. NULL entries are skipped. Returns
 * -1, or which one has been freed meanwhile.
 */
static int ep_use_all(struct kdapl_obj *const *objs)
{
	int i, bad;

	for (i = 0; i < EP_USES; i++) {
		if (!objs[i] || !kdapl_obj_use(objs[i]))
			continue;
		bad = i;
		while (i--) {
			if (objs[i])
				kdapl_obj_unuse(objs[i]);
		}
		return bad;
	}
	return -1;
}

static void ep_unuse_all(struct kdapl_obj *const *objs)
{
	int i;

	for (i = EP_USES - 1; i >= 0; i--) {
		if (objs[i])
			kdapl_obj_unuse(objs[i]);
	}
}

static void ep_uses(const struct kdapl_ep_conf *conf, struct kdapl_evd *conn,
		    struct kdapl_srq *srq, struct kdapl_obj **objs)
{
	objs[0] = conf->pz ? &conf->pz->obj : NULL;
	objs[1] = &conf->recv_evd->obj;
	objs[2] = &conf->request_evd->obj;
	objs[3] = conn ? &conn->obj : NULL;
	objs[4] = srq ? &srq->obj : NULL;
}

/* @arg: where the attributes are among the arguments. */
static DAT_RETURN ep_conn_ret(long err, int arg)
{
	if (err == -EBADRQC)
		return kdapl_arg_err(arg);
	if (err == -ESHUTDOWN)
		return kdapl_publish_ret(err);
	if (err == -ENOMEM)
		return kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	return kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP);
}

/*
 * Attributes and EVDs of a new EP or of one that is modified; without an EVD
 * completions go to the IA's null EVD.
 */
static DAT_RETURN ep_set_conf(struct kdapl_ia *ia, const struct ep_named *named,
			      const DAT_EP_ATTR *attr, struct kdapl_ep_conf *conf)
{
	struct kdapl_evd *null_evd = NULL;

	if (!named->recv || !named->request) {
		null_evd = kdapl_evd_null(ia);
		if (!null_evd)
			return kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEVD);
	}
	conf->attr = *attr;
	conf->pz = named->pz;
	conf->recv_evd = named->recv ?: null_evd;
	conf->request_evd = named->request ?: null_evd;
	return DAT_SUCCESS;
}

/* How the consumer sees it; ep->lock held, or nobody else knows the EP. */
static void ep_apply(struct kdapl_ep *ep, const struct ep_named *named,
		     const struct kdapl_ep_conf *conf)
{
	ep->conf = *conf;
	WRITE_ONCE(ep->connect_evd, named->conn);
	ep->pz_handle = named->pz ? named->pz->obj.handle : DAT_HANDLE_NULL;
	ep->recv_handle = named->recv ? named->recv->obj.handle : DAT_HANDLE_NULL;
	ep->request_handle = named->request ? named->request->obj.handle : DAT_HANDLE_NULL;
	ep->connect_handle = named->conn ? named->conn->obj.handle : DAT_HANDLE_NULL;
}

/* What kdapl_obj_get() returns is used as the object itself. */
static_assert(!offsetof(struct kdapl_ep, obj));

static void ep_release(struct kdapl_obj *obj)
{
	struct kdapl_ep *ep = container_of(obj, struct kdapl_ep, obj);

	kfree_rcu(ep, obj.rcu);
}

static const struct kdapl_obj_ops ep_ops;

static const DAT_RETURN_SUBTYPE ep_use_subtypes[EP_USES] = {
	DAT_INVALID_HANDLE_PZ, DAT_INVALID_HANDLE_EVD_RECV, DAT_INVALID_HANDLE_EVD_REQUEST,
	DAT_INVALID_HANDLE_EVD_CONN, DAT_INVALID_HANDLE_SRQ,
};

/* An EP with its handle, referenced, but without a connection. */
static struct kdapl_ep *ep_new(struct kdapl_ia *ia, const struct ep_named *named,
			       const struct kdapl_ep_conf *conf, struct kdapl_cr *cr,
			       DAT_RETURN *ret)
{
	static const struct kdat_conn_attr conn = KDAT_CONN_ATTR_INIT;
	struct kdapl_obj *uses[EP_USES];
	struct kdapl_ep *ep;
	int i;

	ep = kzalloc(sizeof(*ep), GFP_KERNEL);
	if (!ep) {
		*ret = kdapl_errno_ret(-ENOMEM);
		return NULL;
	}
	ep_apply(ep, named, conf);
	ep->srq = named->srq;
	ep->srq_handle = named->srq ? named->srq->obj.handle : DAT_HANDLE_NULL;
	ep->state = cr ? DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING : DAT_EP_STATE_UNCONNECTED;
	ep->cr = cr;
	ep->comm.type = SOCK_STREAM;
	ep->net = conn;
	spin_lock_init(&ep->lock);
	mutex_init(&ep->mutex);
	INIT_WORK(&ep->free_work, ep_free_work);
	INIT_WORK(&ep->marks.soft_work, ep_soft_work);
	ep->marks.ep = &ep->obj;
	kdapl_watermark_set(&ep->marks.soft, conf->attr.srq_soft_hw);
	kdapl_watermark_set(&ep->marks.hard, DAT_WATERMARK_INFINITE);
	ep_uses(conf, named->conn, named->srq, uses);
	i = ep_use_all(uses);
	if (i >= 0) {
		*ret = kdapl_err(DAT_INVALID_HANDLE, ep_use_subtypes[i]);
		kfree(ep);
		return NULL;
	}
	kdapl_obj_init(&ep->obj, DAT_HANDLE_TYPE_EP, ia, &ep_ops);
	i = kdapl_obj_publish(&ep->obj);
	if (i) {
		ep_unuse_all(uses);
		kdapl_obj_put(&ep->obj);
		*ret = kdapl_publish_ret(i);
		return NULL;
	}
	return ep;
}

/* Everything is checked: make the EP, referenced. Inside kdapl_dev_enter(). */
static DAT_RETURN ep_make(struct kdapl_ia *ia, const struct ep_named *named,
			  const DAT_EP_ATTR *attr, int attr_arg, struct kdapl_ep **out)
{
	struct kdapl_conn *conn = NULL;
	struct kdapl_ep_conf conf;
	struct kdapl_ep *ep;
	DAT_RETURN ret;

	ret = ep_set_conf(ia, named, attr, &conf);
	if (ret != DAT_SUCCESS)
		return ret;
	/* the connection needs the handle, for its events */
	ep = ep_new(ia, named, &conf, NULL, &ret);
	if (!ep)
		return ret;
	mutex_lock(&ep->mutex);
	if (!ep->obj.live)	/* closed under our hands */
		conn = ERR_PTR(-ESHUTDOWN);
	else if (conf.pz)
		conn = kdapl_conn_create(ep, &conf, NULL);
	if (!IS_ERR(conn))
		rcu_assign_pointer(ep->conn, conn);
	mutex_unlock(&ep->mutex);
	if (IS_ERR(conn)) {
		ret = ep_conn_ret(PTR_ERR(conn), attr_arg);
		if (!kdapl_obj_retire(&ep->obj))
			ep_destroy(ep);
		kdapl_obj_put(&ep->obj);
		return ret;
	}
	*out = ep;
	return DAT_SUCCESS;
}

/**
 * kdapl_ep_tentative - an EP that comes with a request
 * @ia: IA
 * @null_evd: its null EVD
 * @cr: the request: how many Reads the peer would like to have outstanding, and answer
 *
 * Context: may sleep; the listener's handler, or with the lock of a CR held.
 * Return: the EP, without PZ, EVDs and connection, referenced, or an ERR_PTR.
 */
struct kdapl_ep *kdapl_ep_tentative(struct kdapl_ia *ia, struct kdapl_evd *null_evd,
				    struct kdapl_cr *cr)
{
	struct kdapl_ep_conf conf = { .recv_evd = null_evd, .request_evd = null_evd };
	const struct ep_named named = {};
	struct kdapl_ep *ep;
	DAT_IA_ATTR *limits;
	DAT_RETURN ret;

	limits = kzalloc(sizeof(*limits), GFP_NOIO);
	if (!limits)
		return ERR_PTR(-ENOMEM);
	kdapl_ia_limits(ia, limits);
	ep_default_attr(limits, true, true, &conf.attr);
	conf.attr.max_rdma_read_in = min_t(int, cr->read_in, limits->max_rdma_read_per_ep_in);
	conf.attr.max_rdma_read_out = min_t(int, cr->read_out, limits->max_rdma_read_per_ep_out);
	ep_grant_attr(limits, &conf.attr);
	kfree(limits);
	ep = ep_new(ia, &named, &conf, cr, &ret);
	return ep ?: ERR_PTR(-ENOMEM);
}

/* Both creating calls; @srq is NULL for the one without. */
static DAT_RETURN ep_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
			    DAT_EVD_HANDLE recv_evd_handle, DAT_EVD_HANDLE request_evd_handle,
			    DAT_EVD_HANDLE connect_evd_handle, const DAT_SRQ_HANDLE *srq,
			    const DAT_EP_ATTR *ep_attributes, DAT_EP_HANDLE *ep_handle)
{
	struct kdapl_ia *ia = kdapl_obj_get(ia_handle, DAT_HANDLE_TYPE_IA);
	int attr_arg = srq ? 7 : 6;
	struct ep_named named = {};
	struct kdapl_ep *ep;
	DAT_IA_ATTR *limits;
	unsigned int noio;
	DAT_EP_ATTR attr;
	DAT_RETURN ret;

	if (!ia)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	limits = kzalloc(sizeof(*limits), GFP_NOIO);
	ret = kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	if (!limits)
		goto out;
	kdapl_ia_limits(ia, limits);
	ret = ep_get_named(ia, pz_handle, recv_evd_handle, request_evd_handle,
			   connect_evd_handle, srq, &named);
	if (ret != DAT_SUCCESS)
		goto out;
	ret = kdapl_arg_err(attr_arg + 1);
	if (!ep_handle)
		goto out;
	ret = kdapl_arg_err(attr_arg);
	if (srq && !ep_attributes)
		goto out;
	ret = kdapl_arg_err(2);
	if (ep_pz_differs(ia, named.pz, named.srq))
		goto out;
	if (ep_attributes) {
		attr = *ep_attributes;
		ret = ep_check_attr(limits, &attr, named.recv, named.request, srq, attr_arg);
		if (ret != DAT_SUCCESS)
			goto out;
	} else {
		ep_default_attr(limits, named.recv, named.request, &attr);
	}
	ep_grant_attr(limits, &attr);
	ret = kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	if (!kdapl_dev_enter(ia->dev))
		goto out;
	/* some reconnect with another EP, and resets take the mutexes of the EVDs (D-32) */
	noio = memalloc_noio_save();
	ret = ep_make(ia, &named, &attr, attr_arg, &ep);
	memalloc_noio_restore(noio);
	if (ret == DAT_SUCCESS) {
		*ep_handle = ep->obj.handle;
		kdapl_obj_put(&ep->obj);
	}
	kdapl_dev_exit(ia->dev);
out:
	ep_put_named(&named);
	kfree(limits);
	kdapl_obj_put(&ia->obj);
	return ret;
}

/**
 * dat_ep_create - create an Endpoint
 * @ia_handle: IA
 * @pz_handle: PZ of the LMRs that may be used over the EP; NULL leaves it open
 * @recv_evd_handle: EVD with the DTO flag for Receives; NULL: not interested
 * @request_evd_handle: EVD with the DTO flag for Sends and RDMA; NULL: not
 *	interested
 * @connect_evd_handle: EVD with the CONNECTION flag; needed for connecting
 * @ep_attributes: copied; NULL for defaults
 * @ep_handle: where the handle goes
 *
 * Receives can be posted as soon as the EP exists, if it has a PZ. The default
 * attributes are up to 64 requests and Receives (0 of a kind without EVD) of up
 * to 4 segments, messages and RDMA as long as the IA takes them, and 4 RDMA Reads
 * under way in each direction, or as many as the IA has, if fewer. dat_ep_query() tells what
 * was granted.
 *
 * Context: may sleep.
 * Return: DAT_SUCCESS, the EP is UNCONNECTED; DAT_INVALID_HANDLE (IA, PZ,
 * EVD_RECV, EVD_REQUEST, EVD_CONN); DAT_INVALID_PARAMETER (attributes: beyond
 * those of the IA, or 0 of what an EVD was named for; also completion flags that
 * do not go together with an EVD); DAT_MODEL_NOT_SUPPORTED (quality of service);
 * DAT_INSUFFICIENT_RESOURCES (subtype TEP, TEVD or MEMORY); DAT_INTERNAL_ERROR
 * (device removed).
 */
DAT_RETURN dat_ep_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
			 DAT_EVD_HANDLE recv_evd_handle, DAT_EVD_HANDLE request_evd_handle,
			 DAT_EVD_HANDLE connect_evd_handle, const DAT_EP_ATTR *ep_attributes,
			 DAT_EP_HANDLE *ep_handle)
{
	return ep_create(ia_handle, pz_handle, recv_evd_handle, request_evd_handle,
			 connect_evd_handle, NULL, ep_attributes, ep_handle);
}
EXPORT_SYMBOL(dat_ep_create);

/**
 * dat_ep_create_with_srq - create an Endpoint that takes its Receives from an SRQ
 * @ia_handle: IA
 * @pz_handle: PZ of the LMRs of its requests; that of the SRQ, unless the
 *	provider attribute srq_ep_pz_difference_supported is TRUE; NULL leaves it
 *	open
 * @recv_evd_handle: EVD with the DTO flag for Receives; NULL: not interested
 * @request_evd_handle: as for dat_ep_create()
 * @connect_evd_handle: as for dat_ep_create()
 * @srq_handle: SRQ of the same IA, for the life of the EP
 * @ep_attributes: copied; max_recv_iov is ignored, max_recv_dtos not used
 * @ep_handle: where the handle goes
 *
 * As dat_ep_create() else. Receives are posted with dat_srq_post_recv() only.
 * Each one that a message takes from the SRQ is reported on the recv EVD of the
 * EP that it arrived on.
 *
 * Context: may sleep.
 * Return: as dat_ep_create(); DAT_INVALID_HANDLE (SRQ); DAT_INVALID_PARAMETER
 * (NULL @ep_attributes; ARG2: PZs of SRQ and EP that must not differ);
 * DAT_INSUFFICIENT_RESOURCES (more EPs than the device has QPs).
 */
DAT_RETURN dat_ep_create_with_srq(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
				  DAT_EVD_HANDLE recv_evd_handle,
				  DAT_EVD_HANDLE request_evd_handle,
				  DAT_EVD_HANDLE connect_evd_handle, DAT_SRQ_HANDLE srq_handle,
				  const DAT_EP_ATTR *ep_attributes, DAT_EP_HANDLE *ep_handle)
{
	return ep_create(ia_handle, pz_handle, recv_evd_handle, request_evd_handle,
			 connect_evd_handle, &srq_handle, ep_attributes, ep_handle);
}
EXPORT_SYMBOL(dat_ep_create_with_srq);

static bool ep_has_id(const struct kdapl_obj *obj)
{
	const struct kdapl_ep *ep = container_of(obj, struct kdapl_ep, obj);

	return kdapl_ep_next_state(READ_ONCE(ep->state), KDAPL_IN_REMOVED) != KDAPL_EP_REFUSED;
}

/* The device has gone or failed, and with it the request the EP waited on. */
static void ep_device_lost(struct kdapl_obj *obj)
{
	struct kdapl_ep *ep = container_of(obj, struct kdapl_ep, obj);
	struct kdapl_event ev = {
		.number = DAT_CONNECTION_EVENT_BROKEN,
		.signalled = true,
		.data.connect_event_data.ep_handle = ep->obj.handle,
	};
	int old = KDAPL_EP_REFUSED;
	struct kdapl_conn *conn;

	rcu_read_lock();	/* keeps the EVD if dat_ep_free() comes now */
	spin_lock_irq(&ep->lock);
	conn = rcu_dereference_protected(ep->conn, lockdep_is_held(&ep->lock));
	if (READ_ONCE(ep->obj.live))
		old = kdapl_ep_step(ep, KDAPL_IN_REMOVED);
	if (old != KDAPL_EP_REFUSED) {
		ep->cr = NULL;
		if (conn)	/* its end is told when everything has been given back */
			kdapl_conn_end(conn, DAT_CONNECTION_EVENT_BROKEN);
	}
	spin_unlock_irq(&ep->lock);
	if (old != KDAPL_EP_REFUSED && !conn)
		kdapl_ep_queue_event(ep, &ev);
	rcu_read_unlock();
}

static const struct kdapl_obj_ops ep_ops = {
	.release = ep_release,
	.has_id = ep_has_id,
	.device_lost = ep_device_lost,
};

/**
 * kdapl_ep_may - may an attempt to be connected begin?
 * @ep: EP; ep->lock held
 * @input: KDAPL_IN_CONNECT, _RESERVE, _ACCEPT or _ACCEPT_OWN
 *
 * Return: DAT_SUCCESS if kdapl_ep_step() is going to allow it, or why not.
 */
DAT_RETURN kdapl_ep_may(struct kdapl_ep *ep, enum kdapl_ep_input input)
{
	struct kdapl_conn *conn = rcu_dereference_protected(ep->conn,
							    lockdep_is_held(&ep->lock));

	if (!ep->obj.live)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (kdapl_ep_next_state(ep->state, input) == KDAPL_EP_REFUSED)
		return kdapl_state_err(ep->state);
	if (conn && kdapl_conn_spent(conn))	/* on its way to that state */
		return kdapl_err(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_DISCONNECTED);
	return DAT_SUCCESS;
}

/**
 * kdapl_ep_request - the request an EP was reserved for has arrived
 * @ep: EP of an RSP that was retired for it
 * @cr: the request, with a reference to the EP
 *
 * Context: any.
 */
void kdapl_ep_request(struct kdapl_ep *ep, struct kdapl_cr *cr)
{
	unsigned long flags;

	spin_lock_irqsave(&ep->lock, flags);
	if (kdapl_ep_step(ep, KDAPL_IN_REQUEST) != KDAPL_EP_REFUSED)
		ep->cr = cr;
	spin_unlock_irqrestore(&ep->lock, flags);
}

/**
 * kdapl_ep_leave - the EP waits for no request any more
 * @ep: EP
 * @input: KDAPL_IN_UNRESERVE or KDAPL_IN_DECLINE
 *
 * If its QP has broken meanwhile the EP goes on to where it would have gone then.
 *
 * Context: any.
 */
void kdapl_ep_leave(struct kdapl_ep *ep, enum kdapl_ep_input input)
{
	struct kdapl_conn *conn;
	unsigned long flags;

	spin_lock_irqsave(&ep->lock, flags);
	if (kdapl_ep_step(ep, input) != KDAPL_EP_REFUSED) {
		ep->cr = NULL;
		conn = rcu_dereference_protected(ep->conn, lockdep_is_held(&ep->lock));
		if (conn && READ_ONCE(conn->state) == KDAPL_CONN_ENDED &&
		    atomic_read(&conn->reason) != KDAPL_END_SILENT)
			kdapl_ep_step(ep, KDAPL_IN_ENDED);
	}
	spin_unlock_irqrestore(&ep->lock, flags);
}

static void ep_soft_work(struct work_struct *work)
{
	struct kdapl_ep *ep = container_of(work, struct kdapl_ep, marks.soft_work);

	while (atomic_dec_if_positive(&ep->marks.soft.fired) >= 0) {
		if (READ_ONCE(ep->obj.live))
			kdapl_ia_async(ep->obj.ia, ep->obj.handle,
				       DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR,
				       DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT);
	}
	kdapl_obj_put(&ep->obj);
}

/* Start the end of an EP that will be destroyed. */
static void ep_begin_destroy(struct kdapl_ep *ep)
{
	struct kdapl_conn *conn;

	/* Control calls that were faster are through, later ones see that it is dead. */
	mutex_lock(&ep->mutex);
	conn = kdapl_ep_conn(ep);
	if (conn) {
		kdapl_conn_discard(conn);
		kdapl_conn_end(conn, KDAPL_END_SILENT);
	}
	mutex_unlock(&ep->mutex);
}

/*
 * Wait for that end and for upcalls, and take the connection out of the EP. Nothing is
 * locked meanwhile: the upcall waited for may be in a call that names the EP.
 */
static void ep_unlink(struct kdapl_ep *ep)
{
	DAT_EP_HANDLE handle = ep->obj.handle;

	ep->last = rcu_dereference_protected(ep->conn, !ep->obj.live);
	if (ep->last) {
		wait_for_completion(&ep->last->ended);
		kdapl_conn_drop(ep->last, true);
	}
	kdapl_evd_wait_upcall(ep->conf.recv_evd, handle);
	kdapl_evd_wait_upcall(ep->conf.request_evd, handle);
	if (ep->connect_evd)
		kdapl_evd_wait_upcall(ep->connect_evd, handle);
	spin_lock_irq(&ep->lock);
	rcu_assign_pointer(ep->conn, NULL);
	spin_unlock_irq(&ep->lock);
}

/* Hand a connection to the reaper. The EP does not point to it any more. */
static void ep_reap_conn(struct kdapl_conn *conn)
{
	refcount_inc(&conn->ref);
	kdapl_conn_reap(conn);
}

/* Usually a matter of milliseconds; a peer that has vanished takes longer. */
static void ep_wait_reaped(struct kdapl_conn *conn)
{
	if (!READ_ONCE(conn->cm_busy))
		wait_for_completion_timeout(&conn->gone, REAP_TIMEOUT);
}

/* The rest of an EP whose connection is with the reaper. */
static void ep_finish_destroy(struct kdapl_ep *ep)
{
	struct kdapl_obj *uses[EP_USES];

	if (ep->last)
		kdapl_conn_put(ep->last);
	ep_uses(&ep->conf, ep->connect_evd, ep->srq, uses);
	ep_unuse_all(uses);
	kdapl_obj_put(&ep->obj);
}

/* Release a connection the EP no longer points to; it is out of the EVDs on return. */
static void ep_release_conn(struct kdapl_conn *conn)
{
	ep_reap_conn(conn);
	ep_wait_reaped(conn);
	kdapl_conn_put(conn);
}

/**
 * kdapl_eps_destroy - destroy retired EPs, all at once
 * @eps: list of them, by obj.node; the handles' references go with them
 *
 * Context: may sleep; waits until the QPs have given everything back.
 */
void kdapl_eps_destroy(struct list_head *eps)
{
	struct kdapl_ep *ep, *next;

	list_for_each_entry(ep, eps, obj.node)
		ep_begin_destroy(ep);
	list_for_each_entry(ep, eps, obj.node)
		ep_unlink(ep);
	list_for_each_entry(ep, eps, obj.node) {
		if (ep->last)
			ep_reap_conn(ep->last);
	}
	list_for_each_entry_safe(ep, next, eps, obj.node) {
		list_del_init(&ep->obj.node);
		if (ep->last)
			ep_wait_reaped(ep->last);
		ep_finish_destroy(ep);
	}
}

static void ep_destroy(struct kdapl_ep *ep)
{
	LIST_HEAD(eps);

	list_add(&ep->obj.node, &eps);
	kdapl_eps_destroy(&eps);
}

/* The same from a workqueue, which does not wait for the reaper's. */
static void ep_free_work(struct work_struct *work)
{
	struct kdapl_ep *ep = container_of(work, struct kdapl_ep, free_work);
	unsigned int noio = memalloc_noio_save();	/* D-32 */

	ep_begin_destroy(ep);
	ep_unlink(ep);
	if (ep->last)
		ep_reap_conn(ep->last);
	ep_finish_destroy(ep);
	memalloc_noio_restore(noio);
}

static bool ep_inside_upcall(struct kdapl_ep *ep)
{
	struct kdapl_evd *conn;
	bool inside;

	rcu_read_lock();	/* dat_ep_modify() may exchange and free them */
	conn = READ_ONCE(ep->connect_evd);
	inside = kdapl_evd_inside_upcall(READ_ONCE(ep->conf.recv_evd)) ||
		 kdapl_evd_inside_upcall(READ_ONCE(ep->conf.request_evd)) ||
		 (conn && kdapl_evd_inside_upcall(conn));
	rcu_read_unlock();
	return inside;
}

/* A retired EP goes, later if this is an upcall of one of its EVDs. */
static void ep_dispose(struct kdapl_ep *ep)
{
	struct kdapl_conn *conn;
	unsigned int noio;

	if (!ep_inside_upcall(ep)) {
		noio = memalloc_noio_save();	/* some reconnect with another EP (D-32) */
		ep_destroy(ep);
		memalloc_noio_restore(noio);
		return;
	}
	rcu_read_lock();
	conn = rcu_dereference(ep->conn);
	if (conn)
		kdapl_conn_drop(conn, true);
	rcu_read_unlock();
	queue_work(kdapl_event_wq, &ep->free_work);
}

/**
 * kdapl_ep_take_back - an EP that was made for a request goes with it
 * @ep: EP in TENTATIVE_CONNECTION_PENDING, or what the device's removal made of it
 * @wait: until it has gone, unless this is an upcall of one of its EVDs
 *
 * Context: may sleep if @wait; inside an upcall of one of its EVDs it does not.
 */
void kdapl_ep_take_back(struct kdapl_ep *ep, bool wait)
{
	unsigned long flags;
	int ret;

	spin_lock_irqsave(&ep->lock, flags);
	ep->cr = NULL;
	ret = kdapl_obj_retire(&ep->obj);
	spin_unlock_irqrestore(&ep->lock, flags);
	if (ret)
		return;		/* the consumer or dat_ia_close() has freed it */
	if (wait)
		ep_dispose(ep);
	else
		queue_work(kdapl_event_wq, &ep->free_work);
}

/**
 * dat_ep_free - destroy an Endpoint
 * @ep_handle: EP in any state but RESERVED (free the RSP first) and PASSIVE_ or
 *	TENTATIVE_CONNECTION_PENDING (answer the request first)
 *
 * A connection ends abruptly, an attempt is aborted, what was posted is
 * destroyed without events, and events that its EVDs still hold are taken back.
 * Completions that nobody has taken are lost, and with them the buffers an SRQ has
 * lent: call kdat_ep_drain() before to see them all.
 * Inside an upcall of one of the EP's EVDs the handle dies at once and the rest
 * happens after the upcall; the EVDs and the PZ stay in use until then.
 * Elsewhere the call waits for an upcall that has an event of this EP in hand:
 * hold no lock that such an upcall takes.
 *
 * Context: may sleep; inside an upcall of one of its EVDs it does not.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE; DAT_INVALID_STATE (subtype its state).
 */
DAT_RETURN dat_ep_free(DAT_EP_HANDLE ep_handle)
{
	struct kdapl_ep *ep = kdapl_obj_get(ep_handle, DAT_HANDLE_TYPE_EP);
	DAT_RETURN ret = DAT_SUCCESS;
	unsigned long flags;

	if (!ep)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	spin_lock_irqsave(&ep->lock, flags);
	if (kdapl_ep_next_state(ep->state, KDAPL_IN_FREE) == KDAPL_EP_REFUSED)
		ret = kdapl_state_err(ep->state);
	else if (kdapl_obj_retire(&ep->obj))
		ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	spin_unlock_irqrestore(&ep->lock, flags);
	if (ret == DAT_SUCCESS)
		ep_dispose(ep);
	kdapl_obj_put(&ep->obj);
	return ret;
}
EXPORT_SYMBOL(dat_ep_free);

static void ep_tell_peer(DAT_EP_PARAM *param, struct sockaddr_storage *local,
			 struct sockaddr_storage *remote)
{
	if (!param->comm.domain)
		param->comm.domain = remote->ss_family;
	param->local_ia_address_ptr = (DAT_IA_ADDRESS_PTR)local;
	param->local_port_qual = kdapl_addr_port(local);
	param->remote_ia_address_ptr = (DAT_IA_ADDRESS_PTR)remote;
	param->remote_port_qual = kdapl_addr_port(remote);
}

/**
 * dat_ep_query - read the parameters of an EP
 * @ep_handle: EP
 * @ep_param_mask: DAT_EP_FIELD_* bits of the members wanted; 0 is legal
 * @ep_param: filled entirely; its address pointers are valid until the EP
 *	changes its connection state or is freed
 *
 * The attributes are those granted. Addresses and ports are those of the
 * connection, or of the request the EP came with; without either they are NULL
 * and 0.
 *
 * Context: any.
 * Return: DAT_SUCCESS, DAT_INVALID_HANDLE, or DAT_INVALID_PARAMETER (undefined
 * mask bit, NULL @ep_param with a mask).
 */
DAT_RETURN dat_ep_query(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK ep_param_mask,
			DAT_EP_PARAM *ep_param)
{
	struct kdapl_ep *ep = kdapl_obj_get(ep_handle, DAT_HANDLE_TYPE_EP);
	struct kdapl_conn *conn;
	unsigned long flags;
	DAT_RETURN ret;

	if (!ep)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	ret = kdapl_query_check(ep_param_mask, DAT_EP_FIELD_ALL, ep_param);
	if (ret != DAT_SUCCESS || !ep_param)
		goto out;
	memset(ep_param, 0, sizeof(*ep_param));
	ep_param->ia_handle = ep->obj.ia->obj.handle;
	ep_param->ep_state = READ_ONCE(ep->state);
	ep_param->comm = ep->comm;
	ep_param->srq_handle = ep->srq_handle;
	spin_lock_irqsave(&ep->lock, flags);
	conn = rcu_dereference_protected(ep->conn, lockdep_is_held(&ep->lock));
	if (ep->cr)
		ep_tell_peer(ep_param, &ep->cr->local, &ep->cr->remote);
	else if (conn && conn->remote.ss_family)
		ep_tell_peer(ep_param, &conn->local, &conn->remote);
	ep_param->pz_handle = ep->pz_handle;
	ep_param->recv_evd_handle = ep->recv_handle;
	ep_param->request_evd_handle = ep->request_handle;
	ep_param->connect_evd_handle = ep->connect_handle;
	ep_param->ep_attr = ep->conf.attr;
	ep_param->ep_attr.srq_soft_hw = READ_ONCE(ep->marks.soft.value);
	spin_unlock_irqrestore(&ep->lock, flags);
out:
	kdapl_obj_put(&ep->obj);
	return ret;
}
EXPORT_SYMBOL(dat_ep_query);

/* Requests are counted as the consumer posts them, without our own. */
static bool wq_busy(struct kdapl_wq *wq)
{
	return wq->recv ? READ_ONCE(wq->head) != READ_ONCE(wq->tail) :
			    READ_ONCE(wq->dtos) != READ_ONCE(wq->dtos_done);
}

static DAT_BOOLEAN wq_idle(struct kdapl_wq *wq)
{
	if (wq_busy(wq))
		kdapl_wq_drain_cq(wq);
	return wq_busy(wq) ? DAT_FALSE : DAT_TRUE;
}

/**
 * dat_ep_get_status - state and idleness of an EP
 * @ep_handle: EP
 * @ep_state: where the state goes; may be NULL
 * @recv_idle: where DAT_TRUE goes if no Receive is outstanding; may be NULL
 * @request_idle: the same for requests; may be NULL. A suppressed request
 *	counts as outstanding until a later one has completed
 *
 * A snapshot. Completions that wait to be dequeued do not make a queue busy.
 *
 * Context: any.
 * Return: DAT_SUCCESS or DAT_INVALID_HANDLE.
 */
DAT_RETURN dat_ep_get_status(DAT_EP_HANDLE ep_handle, DAT_EP_STATE *ep_state,
			     DAT_BOOLEAN *recv_idle, DAT_BOOLEAN *request_idle)
{
	struct kdapl_conn *conn;
	struct kdapl_ep *ep;

	rcu_read_lock();
	ep = kdapl_handle_peek(ep_handle, DAT_HANDLE_TYPE_EP);
	if (!ep) {
		rcu_read_unlock();
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	}
	conn = rcu_dereference(ep->conn);
	if (recv_idle)
		*recv_idle = conn ? wq_idle(conn->rq) : DAT_TRUE;
	if (request_idle)
		*request_idle = conn ? wq_idle(conn->sq) : DAT_TRUE;
	if (ep_state)
		*ep_state = READ_ONCE(ep->state);
	rcu_read_unlock();
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_ep_get_status);

/* Entries between tail and head; RCU read side. */
static u32 wq_count(struct kdapl_wq *wq)
{
	u32 tail = smp_load_acquire(&wq->tail);	/* first: it follows head */

	return READ_ONCE(wq->head) - tail;
}

/**
 * dat_ep_recv_query - how many Receive buffers an EP has
 * @ep_handle: EP in any state
 * @nbufs_allocated: where the count goes; may be NULL. With an SRQ: buffers
 *	taken from it that the consumer does not have back yet; otherwise:
 *	Receives posted that have not completed
 * @bufs_alloc_span: the number of Receives that can still complete with them;
 *	the same number, since every message takes one buffer; may be NULL
 *
 * A snapshot. The device is looked at first, as dat_evd_dequeue() does.
 *
 * Context: any.
 * Return: DAT_SUCCESS or DAT_INVALID_HANDLE.
 */
DAT_RETURN dat_ep_recv_query(DAT_EP_HANDLE ep_handle, DAT_COUNT *nbufs_allocated,
			     DAT_COUNT *bufs_alloc_span)
{
	struct kdapl_conn *conn;
	struct kdapl_ep *ep;
	DAT_COUNT n = 0;

	rcu_read_lock();
	ep = kdapl_handle_peek(ep_handle, DAT_HANDLE_TYPE_EP);
	if (!ep) {
		rcu_read_unlock();
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	}
	conn = rcu_dereference(ep->conn);
	if (conn) {
		kdapl_wq_drain_cq(conn->rq);
		n = conn->pool ? READ_ONCE(conn->held) : wq_count(conn->rq);
	}
	rcu_read_unlock();
	if (nbufs_allocated)
		*nbufs_allocated = n;
	if (bufs_alloc_span)
		*bufs_alloc_span = n;
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_ep_recv_query);

static void ep_set_watermark(struct kdapl_ep *ep, DAT_COUNT soft, const DAT_COUNT *hard)
{
	struct kdapl_conn *conn;

	kdapl_watermark_set(&ep->marks.soft, soft);
	if (hard)
		kdapl_watermark_set(&ep->marks.hard, *hard);
	rcu_read_lock();
	conn = rcu_dereference(ep->conn);
	if (conn && conn->pool) {
		kdapl_evd_watch(conn);
		kdapl_wq_drain_cq(conn->rq);
		kdapl_conn_held(conn);
	}
	rcu_read_unlock();
}

/**
 * dat_ep_set_watermark - set and arm the high watermarks of an EP with an SRQ
 * @ep_handle: EP in any state
 * @soft_high_watermark: buffers, or DAT_WATERMARK_INFINITE. The first time the EP
 *	holds more, one asynchronous event DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR
 *	with the EP's handle and reason DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT is queued
 * @hard_high_watermark: buffers, or DAT_WATERMARK_INFINITE. When a connected EP
 *	holds more, the connection is broken
 *
 * Held are the buffers taken from the SRQ whose events the consumer does not
 * have yet. Both watermarks are armed anew, each fires once; possibly during
 * the call.
 *
 * Context: any.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE; DAT_INVALID_PARAMETER (negative);
 * DAT_MODEL_NOT_SUPPORTED (EP without SRQ); DAT_INTERNAL_ERROR (device removed).
 */
DAT_RETURN dat_ep_set_watermark(DAT_EP_HANDLE ep_handle, DAT_COUNT soft_high_watermark,
				DAT_COUNT hard_high_watermark)
{
	struct kdapl_ep *ep = kdapl_obj_get(ep_handle, DAT_HANDLE_TYPE_EP);
	DAT_RETURN ret = DAT_SUCCESS;

	if (!ep)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (soft_high_watermark < DAT_WATERMARK_INFINITE)
		ret = kdapl_arg_err(2);
	else if (hard_high_watermark < DAT_WATERMARK_INFINITE)
		ret = kdapl_arg_err(3);
	else if (!ep->srq)
		ret = kdapl_err(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	else if (READ_ONCE(ep->obj.ia->dead))
		ret = kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	else
		ep_set_watermark(ep, soft_high_watermark, &hard_high_watermark);
	kdapl_obj_put(&ep->obj);
	return ret;
}
EXPORT_SYMBOL(dat_ep_set_watermark);

/* The attributes an EP would have. */
static void ep_merge_attr(DAT_EP_ATTR *attr, const DAT_EP_ATTR *want, u64 mask)
{
	if (mask & DAT_EP_FIELD_EP_ATTR_SERVICE_TYPE)
		attr->service_type = want->service_type;
	if (mask & DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE)
		attr->max_message_size = want->max_message_size;
	if (mask & DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE)
		attr->max_rdma_size = want->max_rdma_size;
	if (mask & DAT_EP_FIELD_EP_ATTR_QOS)
		attr->qos = want->qos;
	if (mask & DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS)
		attr->recv_completion_flags = want->recv_completion_flags;
	if (mask & DAT_EP_FIELD_EP_ATTR_REQUEST_COMPLETION_FLAGS)
		attr->request_completion_flags = want->request_completion_flags;
	if (mask & DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS)
		attr->max_recv_dtos = want->max_recv_dtos;
	if (mask & DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS)
		attr->max_request_dtos = want->max_request_dtos;
	if (mask & DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV)
		attr->max_recv_iov = want->max_recv_iov;
	if (mask & DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV)
		attr->max_request_iov = want->max_request_iov;
	if (mask & DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IN)
		attr->max_rdma_read_in = want->max_rdma_read_in;
	if (mask & DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_OUT)
		attr->max_rdma_read_out = want->max_rdma_read_out;
	if (mask & DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW)
		attr->srq_soft_hw = want->srq_soft_hw;
	if (mask & DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IOV)
		attr->max_rdma_read_iov = want->max_rdma_read_iov;
	if (mask & DAT_EP_FIELD_EP_ATTR_MAX_RDMA_WRITE_IOV)
		attr->max_rdma_write_iov = want->max_rdma_write_iov;
	if (mask & DAT_EP_FIELD_EP_ATTR_NUM_TRANSPORT_ATTR)
		attr->ep_transport_specific_count = want->ep_transport_specific_count;
	if (mask & DAT_EP_FIELD_EP_ATTR_NUM_PROVIDER_ATTR)
		attr->ep_provider_specific_count = want->ep_provider_specific_count;
}

/* Does the change need another QP, or other work queues? */
static bool ep_needs_conn(struct kdapl_device *dev, const struct kdapl_ep_conf *old,
			  const struct kdapl_ep_conf *conf)
{
	const DAT_EP_ATTR *a = &old->attr, *b = &conf->attr;

	return conf->pz != old->pz || conf->recv_evd != old->recv_evd ||
	       conf->request_evd != old->request_evd ||
	       a->recv_completion_flags != b->recv_completion_flags ||
	       a->request_completion_flags != b->request_completion_flags ||
	       a->max_recv_dtos != b->max_recv_dtos ||
	       a->max_request_dtos != b->max_request_dtos ||
	       a->max_recv_iov != b->max_recv_iov || a->max_request_iov != b->max_request_iov ||
	       a->max_rdma_read_iov != b->max_rdma_read_iov ||
	       a->max_rdma_write_iov != b->max_rdma_write_iov ||
	       (dev->iwarp && !a->max_rdma_read_out != !b->max_rdma_read_out);
}

/* A connection that never carried a connection goes. */
static void ep_discard_conn(struct kdapl_conn *conn)
{
	synchronize_rcu();	/* posting calls that saw it have been sent on */
	kdapl_conn_discard(conn);
	kdapl_conn_end(conn, KDAPL_END_SILENT);
	wait_for_completion(&conn->ended);
	ep_release_conn(conn);
}

/*
 * Put a new connection, and what it was made of, into the place of the old one, which
 * must be unused: there is no second copy of Receives that are posted (D-11).
 * ep->mutex held.
 */
static DAT_RETURN ep_swap_conn(struct kdapl_ep *ep, const struct ep_named *named,
			       const struct kdapl_ep_conf *conf, u64 mask,
			       struct kdapl_conn *fresh)
{
	struct kdapl_conn *old = kdapl_ep_conn(ep);
	DAT_RETURN ret = DAT_SUCCESS;

	spin_lock_irq(&ep->lock);
	if (mask & ~kdapl_ep_fields(ep->state)) {
		ret = kdapl_state_err(ep->state);
	} else if (old && kdapl_conn_spent(old)) {
		ret = kdapl_err(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_DISCONNECTED);
	} else if (old) {
		spin_lock(&old->rq->lock);
		if (old->rq->head != old->rq->tail) {
			ret = kdapl_state_err(ep->state);
		} else {
			old->rq->mode = KDAPL_WQ_MOVED;
			WRITE_ONCE(old->discard, true);	/* it has nothing to report */
			rcu_assign_pointer(ep->conn, fresh);
		}
		spin_unlock(&old->rq->lock);
	} else {
		rcu_assign_pointer(ep->conn, fresh);
	}
	if (ret == DAT_SUCCESS) {
		ep_apply(ep, named, conf);
		if (fresh)
			fresh->replaces = NULL;
	}
	spin_unlock_irq(&ep->lock);
	return ret;
}

/* What does not concern the QP changes in place. ep->mutex held. */
static DAT_RETURN ep_change_in_place(struct kdapl_ep *ep, const struct ep_named *named,
				     const struct kdapl_ep_conf *conf, u64 mask)
{
	struct kdapl_conn *conn = kdapl_ep_conn(ep);
	DAT_RETURN ret = DAT_SUCCESS;

	spin_lock_irq(&ep->lock);
	if (mask & ~kdapl_ep_fields(ep->state)) {
		ret = kdapl_state_err(ep->state);
	} else {
		ep_apply(ep, named, conf);
		if (conn)	/* only requests look at these, and there are none yet */
			conn->attr = conf->attr;
	}
	spin_unlock_irq(&ep->lock);
	return ret;
}

/* Everything but handles and the state has been checked; ep->mutex held. */
static DAT_RETURN ep_modify(struct kdapl_ep *ep, const struct ep_named *named,
			    const DAT_EP_ATTR *attr, u64 mask)
{
	struct kdapl_conn *old = kdapl_ep_conn(ep), *fresh = NULL;
	struct kdapl_obj *uses[EP_USES], *old_uses[EP_USES];
	struct kdapl_ia *ia = ep->obj.ia;
	struct kdapl_ep_conf conf;
	DAT_RETURN ret;

	ret = ep_set_conf(ia, named, attr, &conf);
	if (ret != DAT_SUCCESS)
		return ret;
	ep_uses(&conf, named->conn, ep->srq, uses);
	ep_uses(&ep->conf, ep->connect_evd, ep->srq, old_uses);
	if (ep_use_all(uses) >= 0)
		return kdapl_arg_err(3);	/* freed meanwhile */
	if (!ep_needs_conn(ia->dev, &ep->conf, &conf)) {
		ret = ep_change_in_place(ep, named, &conf, mask);
	} else {
		if (conf.pz)
			fresh = kdapl_conn_create(ep, &conf, old);
		if (IS_ERR(fresh)) {
			ret = ep_conn_ret(PTR_ERR(fresh), 3);
		} else {
			ret = ep_swap_conn(ep, named, &conf, mask, fresh);
			if (ret != DAT_SUCCESS)
				old = fresh;
			if (old)
				ep_discard_conn(old);
		}
	}
	ep_unuse_all(ret == DAT_SUCCESS ? old_uses : uses);
	return ret;
}

/* The handles an EP would have: those asked for, or what it has. */
static DAT_RETURN ep_modify_named(struct kdapl_ep *ep, u64 mask, const DAT_EP_PARAM *param,
				  struct ep_named *named)
{
	DAT_RETURN ret;

	ret = ep_get_named(ep->obj.ia,
			   mask & DAT_EP_FIELD_PZ_HANDLE ? param->pz_handle : ep->pz_handle,
			   mask & DAT_EP_FIELD_RECV_EVD_HANDLE ? param->recv_evd_handle :
								 ep->recv_handle,
			   mask & DAT_EP_FIELD_REQUEST_EVD_HANDLE ? param->request_evd_handle :
								    ep->request_handle,
			   mask & DAT_EP_FIELD_CONNECT_EVD_HANDLE ? param->connect_evd_handle :
								    ep->connect_handle,
			   NULL, named);
	if (ret == DAT_SUCCESS && !ep_pz_differs(ep->obj.ia, named->pz, ep->srq))
		return DAT_SUCCESS;
	return kdapl_arg_err(3);
}

/* All of it but the device; ep->mutex held. */
static DAT_RETURN ep_modify_checked(struct kdapl_ep *ep, const DAT_IA_ATTR *limits, u64 mask,
				    const DAT_EP_PARAM *param)
{
	u64 others = mask & ~DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW;
	struct ep_named named = {};
	DAT_EP_ATTR attr = ep->conf.attr;
	DAT_RETURN ret;

	/* outside UNCONNECTED it is as fixed as the address */
	if ((mask & DAT_EP_FIELD_COMM) && ep->state != DAT_EP_STATE_UNCONNECTED)
		return kdapl_arg_err(2);
	if ((mask & DAT_EP_FIELD_COMM) && !kdapl_comm_supported(&param->comm))
		return kdapl_err(DAT_COMM_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	ep_merge_attr(&attr, &param->ep_attr, mask);
	ret = ep_modify_named(ep, mask, param, &named);
	if (ret == DAT_SUCCESS)
		ret = ep_check_attr(limits, &attr, named.recv, named.request, ep->srq, 3);
	if (ret != DAT_SUCCESS)
		goto out;
	ep_grant_attr(limits, &attr);
	if (mask & ~kdapl_ep_fields(ep->state))
		ret = kdapl_state_err(ep->state);
	else if (others)
		ret = ep_modify(ep, &named, &attr, others);
	if (ret == DAT_SUCCESS && (mask & DAT_EP_FIELD_COMM))
		ep->comm = param->comm;
	if (ret == DAT_SUCCESS && (mask & DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW))
		ep_set_watermark(ep, attr.srq_soft_hw, NULL);
out:
	ep_put_named(&named);
	return ret;
}

/**
 * dat_ep_modify - change parameters of an EP
 * @ep_handle: EP in UNCONNECTED, RESERVED, PASSIVE_ or
 *	TENTATIVE_CONNECTION_PENDING, the PZ in the first and the last only; for
 *	srq_soft_hw, which has no effect without an SRQ, in any state
 * @ep_param_mask: DAT_EP_FIELD_* bits of the members to change; none of IA,
 *	state, addresses, ports and SRQ; the communicator in UNCONNECTED only
 * @ep_param: the new values; NULL is a legal PZ or EVD
 *
 * All of them change, or none. What needs another QP (PZ, recv and request EVD,
 * completion flags, numbers of DTOs and segments) cannot change while Receives
 * are posted. The connect EVD, maximum sizes and read depths can; srq_soft_hw
 * arms the soft watermark anew, as dat_ep_set_watermark() does.
 *
 * Context: may sleep; legal in upcalls that run in process context.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE; DAT_INVALID_PARAMETER (ARG2: mask;
 * ARG3: values, bad handles among them); DAT_INVALID_STATE (subtype its state,
 * also: Receives are posted); DAT_MODEL_NOT_SUPPORTED (quality of service);
 * DAT_COMM_NOT_SUPPORTED (not TCP over IPv4 or IPv6); DAT_INSUFFICIENT_RESOURCES
 * (another QP cannot be had); DAT_INTERNAL_ERROR (device removed).
 */
DAT_RETURN dat_ep_modify(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK ep_param_mask,
			 const DAT_EP_PARAM *ep_param)
{
	struct kdapl_ep *ep = kdapl_obj_get(ep_handle, DAT_HANDLE_TYPE_EP);
	DAT_IA_ATTR *limits;
	unsigned int noio;
	DAT_RETURN ret;

	if (!ep)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	limits = kzalloc(sizeof(*limits), GFP_NOIO);
	ret = kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	if (!limits)
		goto out;
	ret = kdapl_query_check(ep_param_mask, kdapl_ep_fields(-1), ep_param);
	if (ret != DAT_SUCCESS || !ep_param_mask)
		goto out;
	kdapl_ia_limits(ep->obj.ia, limits);
	ret = kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	if (!kdapl_dev_enter(ep->obj.ia->dev))
		goto out;
	noio = memalloc_noio_save();	/* resets take the mutexes of the EVDs (D-32) */
	mutex_lock(&ep->mutex);
	if (ep->obj.live)
		ret = ep_modify_checked(ep, limits, ep_param_mask, ep_param);
	else
		ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	mutex_unlock(&ep->mutex);
	memalloc_noio_restore(noio);
	kdapl_dev_exit(ep->obj.ia->dev);
out:
	kfree(limits);
	kdapl_obj_put(&ep->obj);
	return ret;
}
EXPORT_SYMBOL(dat_ep_modify);

/* DISCONNECTED to UNCONNECTED with a new connection; ep->mutex held. */
static DAT_RETURN ep_replace_conn(struct kdapl_ep *ep)
{
	struct kdapl_conn *conn = kdapl_ep_conn(ep), *fresh;

	if (conn) {
		wait_for_completion(&conn->ended);
		fresh = kdapl_conn_create(ep, &ep->conf, conn);
		if (IS_ERR(fresh))
			return ep_conn_ret(PTR_ERR(fresh), 1);
		fresh->replaces = NULL;
		spin_lock_irq(&ep->lock);
		rcu_assign_pointer(ep->conn, fresh);
		kdapl_ep_step(ep, KDAPL_IN_RESET);
		spin_unlock_irq(&ep->lock);
		ep_release_conn(conn);
	}
	return DAT_SUCCESS;
}

/**
 * dat_ep_reset - make a disconnected EP ready to connect again
 * @ep_handle: EP in DISCONNECTED or UNCONNECTED
 *
 * In DISCONNECTED the QP is replaced; attributes, PZ and EVDs stay, completions
 * not yet dequeued are lost unless kdat_ep_drain() was called before, private data
 * of the old connection is freed. An upcall that has such a completion in hand
 * already is not waited for, since it may be what resets; dat_ep_free() and
 * dat_evd_modify_upcall() with DAT_UPCALL_TEARDOWN wait. In UNCONNECTED nothing
 * happens, Receives stay posted.
 *
 * Context: may sleep.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE; DAT_INVALID_STATE (subtype its
 * state); DAT_INSUFFICIENT_RESOURCES (the EP stays DISCONNECTED);
 * DAT_INTERNAL_ERROR (device removed).
 */
DAT_RETURN dat_ep_reset(DAT_EP_HANDLE ep_handle)
{
	struct kdapl_ep *ep = kdapl_obj_get(ep_handle, DAT_HANDLE_TYPE_EP);
	unsigned int noio;
	DAT_RETURN ret;
	int state;

	if (!ep)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	ret = kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	if (!kdapl_dev_enter(ep->obj.ia->dev))
		goto out;
	noio = memalloc_noio_save();	/* part of every reconnect (D-32) */
	mutex_lock(&ep->mutex);
	state = READ_ONCE(ep->state);
	if (!ep->obj.live)
		ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	else if (kdapl_ep_next_state(state, KDAPL_IN_RESET) == KDAPL_EP_REFUSED)
		ret = kdapl_state_err(state);
	else if (state == DAT_EP_STATE_UNCONNECTED)
		ret = DAT_SUCCESS;
	else
		ret = ep_replace_conn(ep);
	mutex_unlock(&ep->mutex);
	memalloc_noio_restore(noio);
	kdapl_dev_exit(ep->obj.ia->dev);
out:
	kdapl_obj_put(&ep->obj);
	return ret;
}
EXPORT_SYMBOL(dat_ep_reset);
