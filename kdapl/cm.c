// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Connection management: rdma_cm events against transport halves.
 *
 * One fresh cm_id per attempt, never with a QP of its own: the half's QP goes
 * in by number. On InfiniBand and RoCE we move the QP with the attributes the
 * CM has learned; on iWARP the provider does.
 *
 * The handler runs in process context under the id's handler mutex and takes
 * half->lock inside. Nothing here waits for the handler while it holds that
 * lock; destroying the id is left to the reaper.
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <net/ipv6.h>

#include "kdapl.h"

#define RESOLVE_MS		2000
#define SIW_READ_DEPTH		128	/* D-14 */
#define RETRY_COUNT		6	/* 7 means for ever on soft-RoCE */
#define RNR_RETRY_COUNT		6	/* 7 would mean for ever */

/**
 * kdapl_addr_port - port of a socket address
 * @addr: IPv4 or IPv6
 *
 * Return: the port in host order.
 */
u16 kdapl_addr_port(const struct sockaddr_storage *addr)
{
	if (addr->ss_family == AF_INET6)
		return ntohs(((const struct sockaddr_in6 *)addr)->sin6_port);
	return ntohs(((const struct sockaddr_in *)addr)->sin_port);
}

/**
 * kdapl_addr_set_port - set the port of a socket address
 * @addr: IPv4 or IPv6
 * @port: in host order
 */
void kdapl_addr_set_port(struct sockaddr_storage *addr, u16 port)
{
	if (addr->ss_family == AF_INET6)
		((struct sockaddr_in6 *)addr)->sin6_port = htons(port);
	else
		((struct sockaddr_in *)addr)->sin_port = htons(port);
}

/**
 * kdapl_addr_len - size of a socket address
 * @addr: any address a consumer handed in
 *
 * Return: bytes, or 0 when the family is not one of ours.
 */
int kdapl_addr_len(const struct sockaddr *addr)
{
	switch (addr->sa_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	default:
		return 0;
	}
}

/* The attempt is over, unless it is already known why. half->lock held. */
static void cm_fail(struct kdapl_half *half, DAT_EVENT_NUMBER active)
{
	if (half->phase != KDAPL_HALF_CONNECTING)
		return;
	kdapl_half_end(half, half->passive ? DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR : active);
}

static void cm_keep_pdata(struct kdapl_half *half, const struct rdma_conn_param *param)
{
	if (!param->private_data_len || half->pdata)
		return;
	half->pdata = kmemdup(param->private_data, param->private_data_len, GFP_KERNEL);
	half->pdata_len = half->pdata ? param->private_data_len : 0;
}

/* half->cm_id may be on its way out; @id, whose handler this is, is alive. */
static void cm_established(struct kdapl_half *half, struct rdma_cm_id *id)
{
	half->cm_up = true;
	if (atomic_read(&half->reason) > KDAPL_END_SUSPECT && half->phase >= KDAPL_HALF_ENDING) {
		/* given up meanwhile; nobody else will tell the peer */
		rdma_disconnect(id);
		return;
	}
	kdapl_half_established(half);
}

/* How many Reads the peer answers at a time. soft-iWARP says it in the other field. */
static void cm_read_granted(struct kdapl_half *half, const struct rdma_conn_param *conn)
{
	half->read_depth = min(half->read_out, half->dev->siw ? conn->responder_resources :
							       conn->initiator_depth);
}

static void cm_connect_response(struct kdapl_half *half, struct rdma_cm_id *id,
				struct rdma_cm_event *event)
{
	int ret;

	if (half->phase != KDAPL_HALF_CONNECTING ||
	    atomic_read(&half->reason) > KDAPL_END_SUSPECT) {
		/* not REJ_TIMEOUT, which the peer cannot match without our GUID in it */
		rdma_reject(id, NULL, 0, IB_CM_REJ_NO_RESOURCES);
		return;
	}
	cm_keep_pdata(half, &event->param.conn);
	cm_read_granted(half, &event->param.conn);
	ret = kdapl_half_to_rts(half, id);
	if (!ret)
		ret = rdma_accept(id, NULL);
	if (ret) {
		pr_err_ratelimited("%s: QP %u: cannot complete the connection to %pISpc: %pe\n",
				   half->dev->name, half->qp->qp_num, &half->remote, ERR_PTR(ret));
		rdma_reject(id, NULL, 0, IB_CM_REJ_NO_RESOURCES);
		cm_fail(half, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		return;
	}
	cm_established(half, id);
}

/* Did the peer's consumer say no, or somebody on the way (D-16)? */
static bool cm_peer_said_no(struct kdapl_half *half, int status)
{
	if (!half->dev->iwarp)
		return status == IB_CM_REJ_CONSUMER_DEFINED;
	return half->dev->siw ? status == -ECONNRESET : status == -ECONNREFUSED;
}

static void cm_rejected(struct kdapl_half *half, struct rdma_cm_event *event)
{
	if (!cm_peer_said_no(half, event->status)) {
		cm_fail(half, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		return;
	}
	if (half->phase == KDAPL_HALF_CONNECTING && !half->passive)
		cm_keep_pdata(half, &event->param.conn);
	cm_fail(half, DAT_CONNECTION_EVENT_PEER_REJECTED);
}

/**
 * kdapl_cm_handler - events of a cm_id that works for a half
 * @id: cm_id
 * @event: what happened
 *
 * Return: 0, always: ids are destroyed by the reaper.
 */
static int kdapl_cm_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct kdapl_half *half = id->context;
	unsigned int noio = memalloc_noio_save();

	mutex_lock(&half->lock);
	if (half->dev->iwarp && event->event != RDMA_CM_EVENT_ADDR_RESOLVED &&
	    event->event != RDMA_CM_EVENT_ROUTE_RESOLVED)
		half->connecting = false;	/* an answer, whatever it says */
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (id->device != half->dev->ibdev || id->port_num != half->ep->obj.ia->port ||
		    rdma_resolve_route(id, RESOLVE_MS))
			cm_fail(half, DAT_CONNECTION_EVENT_UNREACHABLE);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		half->local = id->route.addr.src_addr;
		if (half->phase == KDAPL_HALF_CONNECTING &&
		    atomic_read(&half->reason) == KDAPL_END_NONE) {
			half->connecting = true;
			queue_work(kdapl_conn_wq, &half->conn_work);
		}
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		cm_connect_response(half, id, event);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (!half->passive) {
			cm_keep_pdata(half, &event->param.conn);
			cm_read_granted(half, &event->param.conn);
		}
		cm_established(half, id);
		if (half->dev->siw && !half->passive)
			kdapl_half_nudge(half);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
		cm_fail(half, DAT_CONNECTION_EVENT_UNREACHABLE);
		break;
	case RDMA_CM_EVENT_CONNECT_ERROR:
		cm_fail(half, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		break;
	case RDMA_CM_EVENT_REJECTED:
		cm_rejected(half, event);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		complete_all(&half->cm_down);
		/* who disconnects was connected: its last word of the set-up was overtaken */
		if (half->phase == KDAPL_HALF_CONNECTING && half->passive && !half->dev->iwarp)
			cm_established(half, id);
		if (half->phase == KDAPL_HALF_UP)
			kdapl_half_end(half, KDAPL_END_PEER);
		else
			cm_fail(half, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		break;
	default:
		/* removal is handled by the ib_client, the rest has no meaning here */
		break;
	}
	if (half->phase >= KDAPL_HALF_ENDING && !half->cm_up && !half->connecting)
		mod_delayed_work(kdapl_wq, &half->end_work, 0);	/* the id can go now */
	mutex_unlock(&half->lock);
	memalloc_noio_restore(noio);
	return 0;
}

/*
 * On soft-iWARP rdma_connect() lasts as long as the TCP connect (D-17), and on
 * every iWARP the id cannot be destroyed before the peer has answered.
 */
static void cm_work_connect(struct work_struct *work)
{
	struct kdapl_half *half = container_of(work, struct kdapl_half, conn_work);
	struct rdma_conn_param param = {
		.private_data = half->conn_pdata,
		.private_data_len = half->conn_pdata_len,
		.responder_resources = half->read_in,
		.initiator_depth = half->read_out,
		.retry_count = RETRY_COUNT,
		.rnr_retry_count = RNR_RETRY_COUNT,
		.srq = !!half->pool,
	};
	DAT_EVENT_NUMBER outcome;
	unsigned int noio;
	int ret;

	mutex_lock(&half->lock);
	if (half->phase != KDAPL_HALF_CONNECTING) {	/* given up before it began */
		half->connecting = false;
		mod_delayed_work(kdapl_wq, &half->end_work, 0);
		mutex_unlock(&half->lock);
		return;
	}
	param.qp_num = half->qp->qp_num;
	mutex_unlock(&half->lock);

	noio = memalloc_noio_save();
	ret = rdma_connect(half->cm_id, &param);
	memalloc_noio_restore(noio);
	mutex_lock(&half->lock);
	if (ret || !half->dev->iwarp)
		half->connecting = false;
	switch (ret) {
	case 0:
		break;
	case -ECONNREFUSED:
	case -ECONNRESET:
		outcome = DAT_CONNECTION_EVENT_NON_PEER_REJECTED;
		break;
	case -ETIMEDOUT:
		outcome = DAT_CONNECTION_EVENT_TIMED_OUT;
		break;
	default:
		outcome = DAT_CONNECTION_EVENT_UNREACHABLE;
	}
	if (ret)
		cm_fail(half, outcome);
	if (half->phase >= KDAPL_HALF_ENDING)	/* given up meanwhile: the id can go now */
		mod_delayed_work(kdapl_wq, &half->end_work, 0);
	mutex_unlock(&half->lock);
}

/* A message arrived before the peer's last word of the set-up, which may be lost. */
static void cm_work_established(struct work_struct *work)
{
	struct kdapl_half *half = container_of(to_delayed_work(work), struct kdapl_half, est_work);

	mutex_lock(&half->lock);
	if (half->cm_id && half->passive && half->phase == KDAPL_HALF_CONNECTING)
		rdma_notify(half->cm_id, IB_EVENT_COMM_EST);	/* ESTABLISHED follows */
	mutex_unlock(&half->lock);
}

static void cm_work_timer(struct work_struct *work)
{
	struct kdapl_half *half = container_of(to_delayed_work(work), struct kdapl_half, timer);

	mutex_lock(&half->lock);
	if (half->phase == KDAPL_HALF_UP && READ_ONCE(half->draining))
		/* a graceful disconnect got stuck */
		kdapl_half_end(half, DAT_CONNECTION_EVENT_DISCONNECTED);
	else if (half->phase == KDAPL_HALF_CONNECTING)
		kdapl_half_end(half, DAT_CONNECTION_EVENT_TIMED_OUT);
	mutex_unlock(&half->lock);
}

/**
 * kdapl_cm_work_init - the CM's share of a new half
 * @half: the half
 */
void kdapl_cm_work_init(struct kdapl_half *half)
{
	INIT_WORK(&half->conn_work, cm_work_connect);
	INIT_DELAYED_WORK(&half->est_work, cm_work_established);
	INIT_DELAYED_WORK(&half->timer, cm_work_timer);
}

/* Read depths as this EP asks for them, within the device. */
static void cm_read_depths(struct kdapl_half *half)
{
	const DAT_EP_ATTR *attr = &half->attr;
	const struct ib_device_attr *dev = &half->dev->attrs;
	int in = attr->max_rdma_read_in, out = attr->max_rdma_read_out;

	if (half->dev->siw) {
		in = in ? SIW_READ_DEPTH : 0;
		out = out ? SIW_READ_DEPTH : 0;
	}
	half->read_in = min3(in, dev->max_qp_rd_atom, U8_MAX);
	half->read_out = min3(out, dev->max_qp_init_rd_atom, U8_MAX);
}

/**
 * kdapl_cm_connect - start an attempt
 * @half: idle half; its conn_pdata is set
 * @dst: where to
 * @port: of the listener
 * @usec: give up after that many microseconds, or DAT_TIMEOUT_INFINITE
 *
 * Context: may sleep; inside kdapl_dev_enter(), without half->lock.
 * Return: DAT_SUCCESS when the attempt is under way; otherwise nothing is.
 */
DAT_RETURN kdapl_cm_connect(struct kdapl_half *half, struct sockaddr *dst, u16 port, u32 usec)
{
	struct kdapl_ia *ia = half->ep->obj.ia;
	struct sockaddr_storage src;
	struct rdma_cm_id *id;
	struct net *net;
	int ret;

	ret = kdapl_ia_address(ia, &src, &net);
	if (ret)
		return kdapl_err(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE);
	if (src.ss_family != dst->sa_family) {
		put_net(net);
		return kdapl_err(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED);
	}
	id = rdma_create_id(net, kdapl_cm_handler, half, RDMA_PS_TCP, IB_QPT_RC);
	put_net(net);	/* the id keeps its own reference */
	if (IS_ERR(id))
		return kdapl_errno_ret(PTR_ERR(id));

	memset(&half->remote, 0, sizeof(half->remote));
	memcpy(&half->remote, dst, kdapl_addr_len(dst));
	kdapl_addr_set_port(&half->remote, port);
	half->local = src;
	cm_read_depths(half);
	/* the handler runs from a work item and waits for the lock */
	mutex_lock(&half->lock);
	if (half->phase != KDAPL_HALF_IDLE || atomic_read(&half->reason) != KDAPL_END_NONE) {
		mutex_unlock(&half->lock);
		rdma_destroy_id(id);
		return DAT_SUCCESS;	/* aborted already: its end is under way */
	}
	ret = rdma_resolve_addr(id, (struct sockaddr *)&src, (struct sockaddr *)&half->remote,
				RESOLVE_MS);
	if (!ret) {
		half->cm_id = id;
		WRITE_ONCE(half->phase, KDAPL_HALF_CONNECTING);
		if (usec != DAT_TIMEOUT_INFINITE)
			queue_delayed_work(kdapl_wq, &half->timer, usecs_to_jiffies(usec) + 1);
	}
	mutex_unlock(&half->lock);
	if (!ret)
		return DAT_SUCCESS;
	rdma_destroy_id(id);
	return ret == -ENOMEM ? kdapl_errno_ret(ret) :
	       kdapl_err(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE);
}

/**
 * kdapl_cm_accept - accept a request with the QP of a half
 * @half: idle half of an EP in COMPLETION_PENDING
 * @cr: the request; cr->mutex held
 * @pdata: private data for the peer
 * @len: its size
 *
 * The peer gets an answer in any case, so the request is used up even when
 * this fails.
 *
 * Context: may sleep; inside kdapl_dev_enter().
 * Return: 0 or an errno.
 */
int kdapl_cm_accept(struct kdapl_half *half, struct kdapl_cr *cr, const void *pdata, u8 len)
{
	struct rdma_cm_id *id = cr->cm_id;
	struct rdma_conn_param param = {
		.private_data = pdata,
		.private_data_len = len,
		.rnr_retry_count = RNR_RETRY_COUNT,
		.srq = !!half->pool,
		.qp_num = half->qp->qp_num,
	};
	unsigned int noio = memalloc_noio_save();
	int ret;

	cm_read_depths(half);
	rdma_lock_handler(id);
	mutex_lock(&half->lock);
	cr->cm_id = NULL;
	half->cm_id = id;
	id->context = half;
	id->event_handler = kdapl_cm_handler;
	half->local = cr->local;
	half->remote = cr->remote;
	half->passive = true;
	half->read_in = min(half->read_in, cr->read_in);
	half->read_out = min(half->read_out, cr->read_out);
	half->read_depth = half->read_out;
	param.responder_resources = half->read_in;
	param.initiator_depth = half->read_out;
	if (half->phase == KDAPL_HALF_IDLE && atomic_read(&half->reason) == KDAPL_END_NONE) {
		WRITE_ONCE(half->phase, KDAPL_HALF_CONNECTING);
		ret = kdapl_half_to_rts(half, id);
	} else {
		ret = -ECONNABORTED;	/* dat_ep_disconnect was faster */
		mod_delayed_work(kdapl_wq, &half->end_work, 0);	/* takes the id */
	}
	if (ret)
		rdma_reject(id, NULL, 0, IB_CM_REJ_NO_RESOURCES);
	else
		ret = rdma_accept(id, &param);
	mutex_unlock(&half->lock);
	rdma_unlock_handler(id);
	memalloc_noio_restore(noio);
	return ret;
}
