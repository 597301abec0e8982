// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Endpoints: the calls that create, look at, connect, disconnect, reset and
 * free them. What moves data is in post.c, the QP in ep_qp.c, the CM in cm.c.
 */
#include <linux/export.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "kdapl.h"

#define DEFAULT_DTOS	64
#define DEFAULT_IOV	4
#define REAP_TIMEOUT	(HZ / 4)

static void ep_release(struct kdapl_obj *obj)
{
	struct kdapl_ep *ep = container_of(obj, struct kdapl_ep, obj);

	kfree_rcu(ep, obj.rcu);
}

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
	attr->srq_soft_hw = DAT_HW_DEFAULT;
}

static bool ep_in_range(DAT_COUNT value, DAT_COUNT max)
{
	return value >= 0 && value <= max;
}

/* EP-CREATE-08, FLAG-14. */
static DAT_RETURN ep_check_attr(const DAT_IA_ATTR *ia, const DAT_EP_ATTR *attr, bool recv,
				bool request)
{
	DAT_RETURN bad = kdapl_arg_err(6);

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
	    !ep_in_range(attr->max_recv_iov, ia->max_iov_segments_per_dto) ||
	    !ep_in_range(attr->max_request_iov, ia->max_iov_segments_per_dto) ||
	    !ep_in_range(attr->max_rdma_read_iov, ia->max_iov_segments_per_rdma_read) ||
	    !ep_in_range(attr->max_rdma_write_iov, ia->max_iov_segments_per_rdma_write) ||
	    !ep_in_range(attr->max_rdma_read_in, ia->max_rdma_read_per_ep_in) ||
	    !ep_in_range(attr->max_rdma_read_out, ia->max_rdma_read_per_ep_out) ||
	    attr->srq_soft_hw < DAT_HW_DEFAULT)
		return bad;
	/* an EVD was named for a queue that can never hold anything (SIL-08) */
	if ((recv && !attr->max_recv_dtos) || (request && !attr->max_request_dtos))
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

static void ep_put_evd(struct kdapl_evd *evd)
{
	if (evd)
		kdapl_obj_put(&evd->obj);
}

static void ep_free_work(struct work_struct *work);

/*
 * Take the uses an EP needs, all or nothing. NULL entries are skipped. Returns
 * -1, or which one has been freed meanwhile.
 */
static int ep_use_all(struct kdapl_obj **objs, int n)
{
	int i, bad;

	for (i = 0; i < n; i++) {
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

static void ep_unuse_all(struct kdapl_ep *ep)
{
	if (ep->connect_evd)
		kdapl_obj_unuse(&ep->connect_evd->obj);
	kdapl_obj_unuse(&ep->request_evd->obj);
	kdapl_obj_unuse(&ep->recv_evd->obj);
	if (ep->pz)
		kdapl_obj_unuse(&ep->pz->obj);
}

static DAT_RETURN ep_half_ret(long err)
{
	if (err == -EBADRQC)
		return kdapl_arg_err(6);
	if (err == -ESHUTDOWN)
		return kdapl_publish_ret(err);
	if (err == -ENOMEM)
		return kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	return kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP);
}

/* Everything is checked: make the EP, referenced. Inside kdapl_dev_enter(). */
static DAT_RETURN ep_make(struct kdapl_ia *ia, struct kdapl_pz *pz, struct kdapl_evd *recv,
			  struct kdapl_evd *request, struct kdapl_evd *conn,
			  const DAT_EP_ATTR *attr, struct kdapl_ep **out)
{
	struct kdapl_evd *null_evd = recv && request ? NULL : kdapl_evd_null(ia);
	static const DAT_RETURN_SUBTYPE subtypes[4] = {
		DAT_INVALID_HANDLE_PZ, DAT_INVALID_HANDLE_EVD_RECV,
		DAT_INVALID_HANDLE_EVD_REQUEST, DAT_INVALID_HANDLE_EVD_CONN,
	};
	struct kdapl_obj *used[4];
	int i;
	struct kdapl_half *half;
	struct kdapl_ep *ep;
	DAT_RETURN ret;

	if (!null_evd && !(recv && request))
		return kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEVD);
	ep = kzalloc(sizeof(*ep), GFP_KERNEL);
	if (!ep)
		return kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	ep->pz_handle = pz ? pz->obj.handle : DAT_HANDLE_NULL;
	ep->recv_handle = recv ? recv->obj.handle : DAT_HANDLE_NULL;
	ep->request_handle = request ? request->obj.handle : DAT_HANDLE_NULL;
	ep->connect_handle = conn ? conn->obj.handle : DAT_HANDLE_NULL;
	ep->pz = pz;
	ep->recv_evd = recv ?: null_evd;
	ep->request_evd = request ?: null_evd;
	ep->connect_evd = conn;
	ep->attr = *attr;
	ep->max_message_size = attr->max_message_size;
	ep->max_rdma_size = attr->max_rdma_size;
	ep->state = DAT_EP_STATE_UNCONNECTED;
	spin_lock_init(&ep->lock);
	mutex_init(&ep->mutex);
	INIT_WORK(&ep->free_work, ep_free_work);
	used[0] = pz ? &pz->obj : NULL;
	used[1] = &ep->recv_evd->obj;
	used[2] = &ep->request_evd->obj;
	used[3] = conn ? &conn->obj : NULL;
	i = ep_use_all(used, ARRAY_SIZE(used));
	if (i >= 0) {
		kfree(ep);
		return kdapl_err(DAT_INVALID_HANDLE, subtypes[i]);
	}
	kdapl_obj_init(&ep->obj, DAT_HANDLE_TYPE_EP, ia, ep_release);
	/* the half needs the handle, for its events */
	i = kdapl_obj_publish(&ep->obj);
	if (i) {
		ret = kdapl_publish_ret(i);
		goto err_unuse;
	}
	mutex_lock(&ep->mutex);
	half = NULL;
	if (!ep->obj.live)	/* closed under our hands */
		half = ERR_PTR(-ESHUTDOWN);
	else if (pz)
		half = kdapl_half_create(ep);
	if (!IS_ERR(half))
		rcu_assign_pointer(ep->half, half);
	mutex_unlock(&ep->mutex);
	if (IS_ERR(half)) {
		ret = ep_half_ret(PTR_ERR(half));
		if (!kdapl_obj_retire(&ep->obj))
			kdapl_ep_destroy(ep);
		kdapl_obj_put(&ep->obj);
		return ret;
	}
	*out = ep;
	return DAT_SUCCESS;

err_unuse:
	ep_unuse_all(ep);
	kdapl_obj_put(&ep->obj);
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
 * @ep_attributes: copied; NULL for defaults (no RDMA Reads: ask for
 *	max_rdma_read_in and _out)
 * @ep_handle: where the handle goes
 *
 * Receives can be posted as soon as the EP exists.
 *
 * Context: may sleep.
 * Return: DAT_SUCCESS, the EP is UNCONNECTED; DAT_INVALID_HANDLE (IA, PZ,
 * EVD_RECV, EVD_REQUEST, EVD_CONN); DAT_INVALID_PARAMETER (attributes; also
 * completion flags that do not go together with an EVD);
 * DAT_MODEL_NOT_SUPPORTED (quality of service); DAT_INSUFFICIENT_RESOURCES
 * (subtype TEP, TEVD or MEMORY); DAT_INTERNAL_ERROR (device removed).
 */
DAT_RETURN dat_ep_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE pz_handle,
			 DAT_EVD_HANDLE recv_evd_handle, DAT_EVD_HANDLE request_evd_handle,
			 DAT_EVD_HANDLE connect_evd_handle, const DAT_EP_ATTR *ep_attributes,
			 DAT_EP_HANDLE *ep_handle)
{
	struct kdapl_ia *ia = kdapl_obj_get(ia_handle, DAT_HANDLE_TYPE_IA);
	struct kdapl_evd *recv = NULL, *request = NULL, *conn = NULL;
	struct kdapl_pz *pz = NULL;
	struct kdapl_ep *ep;
	DAT_IA_ATTR *limits;
	DAT_EP_ATTR attr;
	DAT_RETURN ret;

	if (!ia)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	limits = kzalloc(sizeof(*limits), GFP_KERNEL);
	ret = kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	if (!limits)
		goto out;
	kdapl_ia_limits(ia, limits);
	if (pz_handle != DAT_HANDLE_NULL) {
		pz = kdapl_obj_get(pz_handle, DAT_HANDLE_TYPE_PZ);
		ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
		if (!pz || pz->obj.ia != ia)
			goto out;
	}
	ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_RECV);
	if (!ep_get_evd(ia, recv_evd_handle, DAT_EVD_DTO_FLAG, &recv))
		goto out;
	ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_REQUEST);
	if (!ep_get_evd(ia, request_evd_handle, DAT_EVD_DTO_FLAG, &request))
		goto out;
	ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CONN);
	if (!ep_get_evd(ia, connect_evd_handle, DAT_EVD_CONNECTION_FLAG, &conn))
		goto out;
	ret = kdapl_arg_err(7);
	if (!ep_handle)
		goto out;
	if (ep_attributes) {
		attr = *ep_attributes;
		ret = ep_check_attr(limits, &attr, recv, request);
		if (ret != DAT_SUCCESS)
			goto out;
	} else {
		ep_default_attr(limits, recv, request, &attr);
	}
	ep_grant_attr(limits, &attr);
	ret = kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	if (!kdapl_dev_enter(ia->dev))
		goto out;
	ret = ep_make(ia, pz, recv, request, conn, &attr, &ep);
	if (ret == DAT_SUCCESS) {
		*ep_handle = ep->obj.handle;
		kdapl_obj_put(&ep->obj);
	}
	kdapl_dev_exit(ia->dev);
out:
	ep_put_evd(conn);
	ep_put_evd(request);
	ep_put_evd(recv);
	if (pz)
		kdapl_obj_put(&pz->obj);
	kfree(limits);
	kdapl_obj_put(&ia->obj);
	return ret;
}
EXPORT_SYMBOL(dat_ep_create);

/**
 * kdapl_ep_event - a connection event for the consumer
 * @half: whose connection it is about
 * @number: the event
 *
 * Context: any, without evd->lock.
 */
void kdapl_ep_event(struct kdapl_half *half, u32 number)
{
	struct kdapl_event ev = { .half = half, .number = number, .signalled = true };
	DAT_CONNECTION_EVENT_DATA *data = &ev.data.connect_event_data;
	struct kdapl_ep *ep = half->ep;

	if (!ep->connect_evd || READ_ONCE(half->discard))
		return;
	data->ep_handle = half->handle;
	if ((number == DAT_CONNECTION_EVENT_ESTABLISHED && !half->passive) ||
	    number == DAT_CONNECTION_EVENT_PEER_REJECTED) {
		data->private_data = half->pdata;
		data->private_data_size = half->pdata_len;
	}
	kdapl_evd_queue(ep->connect_evd, &ev);
}

/**
 * kdapl_ep_ended - the half has ended, everything it had was given back
 * @half: the half
 *
 * Context: may sleep.
 */
void kdapl_ep_ended(struct kdapl_half *half)
{
	struct kdapl_ep *ep = half->ep;
	int reason = atomic_read(&half->reason);
	int old = KDAPL_EP_REFUSED;

	spin_lock_irq(&ep->lock);
	if (rcu_access_pointer(ep->half) == half && reason != KDAPL_END_SILENT)
		old = kdapl_ep_step(ep, KDAPL_IN_ENDED);
	spin_unlock_irq(&ep->lock);
	if (reason == KDAPL_END_PEER)
		reason = DAT_CONNECTION_EVENT_DISCONNECTED;
	/* what broke before there was a connection is the outcome of the attempt */
	if (reason == DAT_CONNECTION_EVENT_BROKEN && !READ_ONCE(ep->obj.ia->dead)) {
		if (old == DAT_EP_STATE_ACTIVE_CONNECTION_PENDING)
			reason = DAT_CONNECTION_EVENT_NON_PEER_REJECTED;
		else if (old == DAT_EP_STATE_COMPLETION_PENDING)
			reason = DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR;
	}
	if (reason > KDAPL_END_SILENT)
		kdapl_ep_event(half, reason);
}

/**
 * kdapl_ep_begin_destroy - start the end of an EP that will be destroyed
 * @ep: EP
 *
 * Context: any.
 */
void kdapl_ep_begin_destroy(struct kdapl_ep *ep)
{
	struct kdapl_half *half;

	rcu_read_lock();
	half = rcu_dereference(ep->half);
	if (half) {
		WRITE_ONCE(half->discard, true);
		kdapl_half_end(half, KDAPL_END_SILENT);
	}
	rcu_read_unlock();
}

/* Release a half the EP no longer points to; it is out of the EVDs on return. */
static void ep_release_half(struct kdapl_half *half, bool wait)
{
	synchronize_rcu();	/* posting calls have left the rings */
	refcount_inc(&half->ref);
	kdapl_half_reap(half);
	/* usually a matter of milliseconds; a peer that has vanished takes longer */
	if (wait && !READ_ONCE(half->connecting))
		wait_for_completion_timeout(&half->gone, REAP_TIMEOUT);
	kdapl_half_put(half);
}

static void ep_destroy(struct kdapl_ep *ep, bool wait)
{
	struct kdapl_half *half;

	mutex_lock(&ep->mutex);
	half = kdapl_ep_half(ep);
	if (half) {
		kdapl_ep_begin_destroy(ep);
		wait_for_completion(&half->ended);
		kdapl_half_drop(half, true);
		kdapl_evd_wait_upcall(ep->recv_evd, half);
		kdapl_evd_wait_upcall(ep->request_evd, half);
		if (ep->connect_evd)
			kdapl_evd_wait_upcall(ep->connect_evd, half);
		spin_lock_irq(&ep->lock);
		rcu_assign_pointer(ep->half, NULL);
		spin_unlock_irq(&ep->lock);
		ep_release_half(half, wait);
	}
	mutex_unlock(&ep->mutex);
	ep_unuse_all(ep);
	kdapl_obj_put(&ep->obj);
}

/**
 * kdapl_ep_destroy - destroy a retired EP
 * @ep: retired; the handle's reference goes with it
 *
 * Context: may sleep; waits until the QP has given everything back.
 */
void kdapl_ep_destroy(struct kdapl_ep *ep)
{
	ep_destroy(ep, true);
}

/* The same from a workqueue, which does not wait for the reaper's. */
static void ep_free_work(struct work_struct *work)
{
	struct kdapl_ep *ep = container_of(work, struct kdapl_ep, free_work);

	ep_destroy(ep, false);
}

static bool ep_inside_upcall(struct kdapl_ep *ep)
{
	return kdapl_evd_inside_upcall(ep->recv_evd) ||
	       kdapl_evd_inside_upcall(ep->request_evd) ||
	       (ep->connect_evd && kdapl_evd_inside_upcall(ep->connect_evd));
}

/**
 * dat_ep_free - destroy an Endpoint
 * @ep_handle: EP in any state
 *
 * A connection ends abruptly, an attempt is aborted, what was posted is
 * destroyed without events. Inside an upcall of one of the EP's EVDs the
 * handle dies at once and the rest happens after the upcall; the EVDs and the
 * PZ stay in use until then. Elsewhere the call waits for an upcall that has an
 * event of this EP in hand: hold no lock that such an upcall takes.
 *
 * Context: may sleep; inside an upcall of one of its EVDs it does not.
 * Return: DAT_SUCCESS or DAT_INVALID_HANDLE.
 */
DAT_RETURN dat_ep_free(DAT_EP_HANDLE ep_handle)
{
	struct kdapl_ep *ep = kdapl_obj_get(ep_handle, DAT_HANDLE_TYPE_EP);
	struct kdapl_half *half;
	DAT_RETURN ret = DAT_SUCCESS;

	if (!ep)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (kdapl_obj_retire(&ep->obj)) {
		ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	} else if (ep_inside_upcall(ep)) {
		rcu_read_lock();
		half = rcu_dereference(ep->half);
		if (half)
			kdapl_half_drop(half, true);
		rcu_read_unlock();
		queue_work(kdapl_upcall_wq, &ep->free_work);
	} else {
		kdapl_ep_destroy(ep);
	}
	kdapl_obj_put(&ep->obj);
	return ret;
}
EXPORT_SYMBOL(dat_ep_free);

/**
 * dat_ep_query - read the parameters of an EP
 * @ep_handle: EP
 * @ep_param_mask: DAT_EP_FIELD_* bits of the members wanted; 0 is legal
 * @ep_param: filled entirely; its address pointers are valid until the EP
 *	changes its connection state or is freed
 *
 * Context: any.
 * Return: DAT_SUCCESS, DAT_INVALID_HANDLE, or DAT_INVALID_PARAMETER (undefined
 * mask bit, NULL @ep_param with a mask).
 */
DAT_RETURN dat_ep_query(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK ep_param_mask,
			DAT_EP_PARAM *ep_param)
{
	struct kdapl_ep *ep = kdapl_obj_get(ep_handle, DAT_HANDLE_TYPE_EP);
	struct kdapl_half *half;
	DAT_RETURN ret;

	if (!ep)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	ret = kdapl_query_check(ep_param_mask, DAT_EP_FIELD_ALL, ep_param);
	if (ret != DAT_SUCCESS || !ep_param)
		goto out;
	memset(ep_param, 0, sizeof(*ep_param));
	ep_param->ia_handle = ep->obj.ia->obj.handle;
	ep_param->ep_state = READ_ONCE(ep->state);
	ep_param->comm.domain = AF_INET;
	ep_param->comm.type = SOCK_STREAM;
	rcu_read_lock();
	half = rcu_dereference(ep->half);
	if (half && half->remote.ss_family) {
		ep_param->comm.domain = half->remote.ss_family;
		ep_param->local_ia_address_ptr = (DAT_IA_ADDRESS_PTR)&half->local;
		ep_param->local_port_qual = kdapl_addr_port(&half->local);
		ep_param->remote_ia_address_ptr = (DAT_IA_ADDRESS_PTR)&half->remote;
		ep_param->remote_port_qual = kdapl_addr_port(&half->remote);
	}
	rcu_read_unlock();
	ep_param->pz_handle = ep->pz_handle;
	ep_param->recv_evd_handle = ep->recv_handle;
	ep_param->request_evd_handle = ep->request_handle;
	ep_param->connect_evd_handle = ep->connect_handle;
	ep_param->srq_handle = DAT_HANDLE_NULL;
	ep_param->ep_attr = ep->attr;
out:
	kdapl_obj_put(&ep->obj);
	return ret;
}
EXPORT_SYMBOL(dat_ep_query);

static DAT_BOOLEAN ring_idle(struct kdapl_ring *ring)
{
	struct kdapl_evd *evd = rcu_dereference(ring->cq->evd);

	if (evd && READ_ONCE(ring->head) != READ_ONCE(ring->tail))
		kdapl_evd_sweep(evd, KDAPL_BATCH, false);
	return READ_ONCE(ring->head) == READ_ONCE(ring->tail) ? DAT_TRUE : DAT_FALSE;
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
	struct kdapl_half *half;
	struct kdapl_ep *ep;

	rcu_read_lock();
	ep = kdapl_handle_peek(ep_handle, DAT_HANDLE_TYPE_EP);
	if (!ep) {
		rcu_read_unlock();
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	}
	half = rcu_dereference(ep->half);
	if (recv_idle)
		*recv_idle = half ? ring_idle(half->rq) : DAT_TRUE;
	if (request_idle)
		*request_idle = half ? ring_idle(half->sq) : DAT_TRUE;
	if (ep_state)
		*ep_state = READ_ONCE(ep->state);
	rcu_read_unlock();
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_ep_get_status);

static DAT_RETURN ep_check_address(const struct sockaddr *addr)
{
	if (!kdapl_addr_len(addr))
		return kdapl_err(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED);
	if (addr->sa_family == AF_INET) {
		__be32 ip = ((const struct sockaddr_in *)addr)->sin_addr.s_addr;

		if (ipv4_is_multicast(ip) || ipv4_is_lbcast(ip) || ipv4_is_zeronet(ip))
			return kdapl_err(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED);
	} else {
		const struct in6_addr *ip = &((const struct sockaddr_in6 *)addr)->sin6_addr;

		if (ipv6_addr_is_multicast(ip) || ipv6_addr_any(ip))
			return kdapl_err(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED);
	}
	return DAT_SUCCESS;
}

static DAT_RETURN ep_check_connect(struct kdapl_ep *ep, const struct sockaddr *addr,
				   DAT_CONN_QUAL conn_qual, DAT_TIMEOUT timeout, DAT_COUNT size,
				   const void *pdata, DAT_QOS qos, DAT_CONNECT_FLAGS flags)
{
	DAT_RETURN ret;

	if (!ep->connect_evd)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CONN);
	if (!addr)
		return kdapl_arg_err(2);
	if (!conn_qual || conn_qual > U16_MAX)
		return kdapl_arg_err(3);
	if (!timeout)
		return kdapl_arg_err(4);
	if (size < 0 || size > kdapl_ia_max_pdata(ep->obj.ia))
		return kdapl_arg_err(5);
	if (size && !pdata)
		return kdapl_arg_err(6);
	if (qos & ~(DAT_QOS_HIGH_THROUGHPUT | DAT_QOS_LOW_LATENCY | DAT_QOS_ECONOMY |
		    DAT_QOS_PREMIUM))
		return kdapl_arg_err(7);
	if (flags & ~(DAT_CONNECT_MULTIPATH_REQUESTED_FLAG | DAT_CONNECT_MULTIPATH_REQUIRED_FLAG))
		return kdapl_arg_err(8);
	ret = ep_check_address(addr);
	if (ret != DAT_SUCCESS)
		return ret;
	if (qos != DAT_QOS_BEST_EFFORT || (flags & DAT_CONNECT_MULTIPATH_REQUIRED_FLAG))
		return kdapl_err(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	return DAT_SUCCESS;
}

/* State to ACTIVE_CONNECTION_PENDING and off; ep->mutex held. */
static DAT_RETURN ep_start_connect(struct kdapl_ep *ep, struct sockaddr *addr, u16 port,
				   u32 timeout, const void *pdata, u8 size)
{
	struct kdapl_half *half = kdapl_ep_half(ep);
	unsigned int noio;
	DAT_RETURN ret;
	int old;

	spin_lock_irq(&ep->lock);
	if (!half && ep->state == DAT_EP_STATE_UNCONNECTED)
		ret = kdapl_err(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_NOTREADY);
	else if (half && kdapl_half_spent(half))
		ret = kdapl_err(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_DISCONNECTED);
	else if (kdapl_ep_step(ep, KDAPL_IN_CONNECT) == KDAPL_EP_REFUSED)
		ret = kdapl_state_err(ep->state);
	else
		ret = DAT_SUCCESS;
	spin_unlock_irq(&ep->lock);
	if (ret != DAT_SUCCESS)
		return ret;

	/* storage consumers reconnect under writeback (D-32) */
	noio = memalloc_noio_save();
	kfree(half->conn_pdata);
	half->conn_pdata = size ? kmemdup(pdata, size, GFP_KERNEL) : NULL;
	half->conn_pdata_len = size;
	if (size && !half->conn_pdata)
		ret = kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	else
		ret = kdapl_cm_connect(half, addr, port, timeout);
	memalloc_noio_restore(noio);
	if (ret == DAT_SUCCESS)
		return ret;
	spin_lock_irq(&ep->lock);
	old = kdapl_ep_step(ep, KDAPL_IN_UNDO);
	spin_unlock_irq(&ep->lock);
	/* a dat_ep_disconnect that slipped in has made it an attempt with an end */
	return old == KDAPL_EP_REFUSED ? DAT_SUCCESS : ret;
}

/**
 * dat_ep_connect - connect to a listening peer
 * @ep_handle: EP in UNCONNECTED, with PZ and connect EVD
 * @remote_ia_address: IPv4 or IPv6 address, of the family of the IA's own
 * @remote_conn_qual: port, 1 to 65535
 * @timeout: microseconds, or DAT_TIMEOUT_INFINITE; never early
 * @private_data_size: bytes for the peer's CR, at most max_private_data_size
 * @private_data: copied during the call
 * @quality_of_service: DAT_QOS_BEST_EFFORT
 * @connect_flags: DAT_CONNECT_DEFAULT_FLAG; a wish for multiple paths is
 *	ignored, a demand refused
 *
 * After success the EP is in ACTIVE_CONNECTION_PENDING and exactly one event
 * on its connect EVD tells how it ended: ESTABLISHED, PEER_REJECTED,
 * NON_PEER_REJECTED, UNREACHABLE, TIMED_OUT or, aborted, DISCONNECTED.
 *
 * Context: may sleep; legal in upcalls that run in process context.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE (EP, EVD_CONN: it has none);
 * DAT_INVALID_PARAMETER; DAT_INVALID_ADDRESS; DAT_MODEL_NOT_SUPPORTED (QoS,
 * multipath); DAT_INVALID_STATE (subtype its state, or EP_NOTREADY without a
 * PZ); DAT_INSUFFICIENT_RESOURCES; DAT_INTERNAL_ERROR (device removed). After
 * an error the EP is as it was.
 */
DAT_RETURN dat_ep_connect(DAT_EP_HANDLE ep_handle, DAT_IA_ADDRESS_PTR remote_ia_address,
			  DAT_CONN_QUAL remote_conn_qual, DAT_TIMEOUT timeout,
			  DAT_COUNT private_data_size, const DAT_PVOID private_data,
			  DAT_QOS quality_of_service, DAT_CONNECT_FLAGS connect_flags)
{
	struct kdapl_ep *ep = kdapl_obj_get(ep_handle, DAT_HANDLE_TYPE_EP);
	DAT_RETURN ret;

	if (!ep)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	ret = ep_check_connect(ep, remote_ia_address, remote_conn_qual, timeout,
			       private_data_size, private_data, quality_of_service, connect_flags);
	if (ret != DAT_SUCCESS)
		goto out;
	ret = kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	if (!kdapl_dev_enter(ep->obj.ia->dev))
		goto out;
	mutex_lock(&ep->mutex);
	if (ep->obj.live)
		ret = ep_start_connect(ep, remote_ia_address, remote_conn_qual, timeout,
				       private_data, private_data_size);
	else
		ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	mutex_unlock(&ep->mutex);
	kdapl_dev_exit(ep->obj.ia->dev);
out:
	kdapl_obj_put(&ep->obj);
	return ret;
}
EXPORT_SYMBOL(dat_ep_connect);

/**
 * dat_ep_disconnect - end a connection or give up an attempt
 * @ep_handle: EP
 * @close_flags: DAT_CLOSE_ABRUPT_FLAG, or DAT_CLOSE_GRACEFUL_FLAG to let the
 *	requests under way finish first
 *
 * The DISCONNECTED event tells when it is done. In DISCONNECTED the call
 * succeeds without effect.
 *
 * Context: any.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE; DAT_INVALID_PARAMETER (flags);
 * DAT_INVALID_STATE (there is nothing to disconnect); DAT_INTERNAL_ERROR
 * (device removed, the connection has ended already).
 */
DAT_RETURN dat_ep_disconnect(DAT_EP_HANDLE ep_handle, DAT_CLOSE_FLAGS close_flags)
{
	enum kdapl_ep_input input = close_flags == DAT_CLOSE_GRACEFUL_FLAG ? KDAPL_IN_GRACEFUL :
									     KDAPL_IN_ABRUPT;
	DAT_RETURN ret = DAT_SUCCESS;
	struct kdapl_half *half;
	struct kdapl_ep *ep;
	unsigned long flags;
	int old, state;

	rcu_read_lock();
	ep = kdapl_handle_peek(ep_handle, DAT_HANDLE_TYPE_EP);
	if (!ep) {
		ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
		goto out;
	}
	if (close_flags != DAT_CLOSE_ABRUPT_FLAG && close_flags != DAT_CLOSE_GRACEFUL_FLAG) {
		ret = kdapl_arg_err(2);
		goto out;
	}
	if (READ_ONCE(ep->obj.ia->dead)) {
		ret = kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
		goto out;
	}
	spin_lock_irqsave(&ep->lock, flags);
	half = rcu_dereference(ep->half);
	old = kdapl_ep_step(ep, input);
	state = ep->state;
	spin_unlock_irqrestore(&ep->lock, flags);
	if (old == KDAPL_EP_REFUSED)
		ret = kdapl_state_err(state);
	else if (old == DAT_EP_STATE_CONNECTED && input == KDAPL_IN_GRACEFUL)
		kdapl_half_drain_gracefully(half);
	else if (old != DAT_EP_STATE_DISCONNECTED &&
		 !(old == DAT_EP_STATE_DISCONNECT_PENDING && input == KDAPL_IN_GRACEFUL))
		kdapl_half_end(half, DAT_CONNECTION_EVENT_DISCONNECTED);
out:
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_ep_disconnect);

/* DISCONNECTED to UNCONNECTED with a new half; ep->mutex held. */
static DAT_RETURN ep_replace_half(struct kdapl_ep *ep)
{
	struct kdapl_half *half = kdapl_ep_half(ep), *fresh;

	if (half) {
		wait_for_completion(&half->ended);
		fresh = kdapl_half_create(ep);
		if (IS_ERR(fresh))
			return ep_half_ret(PTR_ERR(fresh));
		spin_lock_irq(&ep->lock);
		rcu_assign_pointer(ep->half, fresh);
		kdapl_ep_step(ep, KDAPL_IN_RESET);
		spin_unlock_irq(&ep->lock);
		ep_release_half(half, true);
	}
	return DAT_SUCCESS;
}

/**
 * dat_ep_reset - make a disconnected EP ready to connect again
 * @ep_handle: EP in DISCONNECTED or UNCONNECTED
 *
 * In DISCONNECTED the QP is replaced; attributes, PZ and EVDs stay, completions
 * not yet dequeued are lost, private data of the old connection is freed. In
 * UNCONNECTED nothing happens, Receives stay posted.
 *
 * Context: may sleep.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE; DAT_INVALID_STATE;
 * DAT_INSUFFICIENT_RESOURCES (the EP stays DISCONNECTED); DAT_INTERNAL_ERROR
 * (device removed).
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
		ret = ep_replace_half(ep);
	mutex_unlock(&ep->mutex);
	memalloc_noio_restore(noio);
	kdapl_dev_exit(ep->obj.ia->dev);
out:
	kdapl_obj_put(&ep->obj);
	return ret;
}
EXPORT_SYMBOL(dat_ep_reset);
