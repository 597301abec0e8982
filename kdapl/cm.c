// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Connection management: rdma_cm events against transport halves.
 *
 * A fresh cm_id per attempt, and for each retry of it, never with a QP of its own:
 * the half's QP goes in by number. On InfiniBand and RoCE we move the QP with the attributes the
 * CM has learned; on iWARP the provider does.
 *
 * The handler runs in process context under the id's handler mutex and takes
 * half->lock inside. Nothing here waits for the handler while it holds that
 * lock: ids are destroyed by work items, outside of it.
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "kdapl.h"
#include "trace.h"

#define RESOLVE_MS		2000
#define SIW_READ_DEPTH		128	/* D-14 */
#define MIN_RNR_TIMER		12	/* 0.64 ms; the CM's 0 would mean 655 ms */
#define STALE_RETRIES		10	/* without a timeout of the consumer's */
#define STALE_TIME		(HZ / 10)
#define PORT_RETRIES		3
#define PDATA_MAX		U8_MAX	/* struct rdma_conn_param cannot say more */

/* The attempt is over, unless it is already known why. half->lock held. */
static void cm_fail(struct kdapl_half *half, DAT_EVENT_NUMBER active)
{
	if (half->phase != KDAPL_HALF_CONNECTING)
		return;
	kdapl_half_end(half, half->passive ? DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR : active);
}

static void cm_keep_pdata(struct kdapl_half *half, const struct rdma_conn_param *param)
{
	if (!param->private_data_len || half->pdata_len)
		return;
	memcpy(half->pdata, param->private_data, param->private_data_len);
	half->pdata_len = param->private_data_len;
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

/*
 * The peer's driver takes the attempt for failed if it finds more than our answer (D-86). So the
 * consumer, who might send at once, learns of the connection when the peer has sent something,
 * or may be supposed to have read the answer.
 */
static void cm_hold_back(struct kdapl_half *half, struct rdma_cm_id *id)
{
	if (READ_ONCE(half->spoken) || half->phase != KDAPL_HALF_CONNECTING) {
		cm_established(half, id);
		return;
	}
	half->cm_up = true;
	half->held_back = true;
	queue_delayed_work(kdapl_wq, &half->est_work, KDAPL_HOLD_TIME);
}

/* How many Reads the peer answers at a time. */
static void cm_read_granted(struct kdapl_half *half, const struct rdma_conn_param *conn)
{
	const struct kdapl_caps *caps = &half->dev->caps;

	half->read_depth = half->read_out;
	if (!caps->no_depths)
		half->read_depth = min(half->read_depth,
				       caps->own_depths ? conn->responder_resources :
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

/* Another id for the same attempt, later each time. half->lock held. */
static void cm_retry(struct kdapl_half *half)
{
	if (half->retries < STALE_RETRIES)
		half->retries++;
	queue_delayed_work(kdapl_conn_wq, &half->retry_work, half->retries * STALE_TIME);
}

/*
 * The peer still knows this QP number from a connection whose end it has missed,
 * because this host or device went away. The question has told it: ask again.
 */
static bool cm_retry_stale(struct kdapl_half *half, int status)
{
	if (half->dev->iwarp || status != IB_CM_REJ_STALE_CONN || half->passive ||
	    half->phase != KDAPL_HALF_CONNECTING ||
	    (!delayed_work_pending(&half->timer) && half->retries >= STALE_RETRIES))
		return false;
	cm_retry(half);
	return true;
}

/*
 * TCP remembers for a minute that the port which the CM has picked for us was that
 * of a connection to the same peer: try another one.
 */
static bool cm_retry_port(struct kdapl_half *half, int err)
{
	if (!half->dev->iwarp || (err != -EADDRNOTAVAIL && err != -EADDRINUSE) ||
	    half->phase != KDAPL_HALF_CONNECTING || half->retries >= PORT_RETRIES)
		return false;
	cm_retry(half);
	return true;
}

static void cm_rejected(struct kdapl_half *half, struct rdma_cm_event *event)
{
	if (cm_retry_stale(half, event->status))
		return;
	if (!cm_peer_said_no(half, event->status)) {
		cm_fail(half, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		return;
	}
	if (half->phase == KDAPL_HALF_CONNECTING && !half->passive)
		cm_keep_pdata(half, &event->param.conn);
	cm_fail(half, DAT_CONNECTION_EVENT_PEER_REJECTED);
}

/* What iWARP makes of rdma_connect(): after that the id can be destroyed. */
static bool cm_is_answer(enum rdma_cm_event_type event)
{
	switch (event) {
	case RDMA_CM_EVENT_ESTABLISHED:
	case RDMA_CM_EVENT_REJECTED:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_DISCONNECTED:
		return true;
	default:
		return false;
	}
}

/**
 * kdapl_cm_handler - events of a cm_id that works for a half
 * @id: cm_id
 * @event: what happened
 *
 * Return: 0, always: ids are destroyed by work items.
 */
int kdapl_cm_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct kdapl_half *half = id->context;
	unsigned int noio = memalloc_noio_save();

	trace_kdapl_cm_event(half->handle, event->event, event->status);
	mutex_lock(&half->lock);
	if (half->dev->iwarp && cm_is_answer(event->event))
		half->connecting = false;
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
		if (half->passive && half->dev->caps.reply_overrun)
			cm_hold_back(half, id);
		else
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
	case RDMA_CM_EVENT_ADDR_CHANGE:
		/* a bond has failed over: the QP has the old hardware address for ever */
		if (half->phase == KDAPL_HALF_UP)
			kdapl_half_end(half, DAT_CONNECTION_EVENT_BROKEN);
		else
			cm_fail(half, DAT_CONNECTION_EVENT_UNREACHABLE);
		break;
	case RDMA_CM_EVENT_REJECTED:
		if (half->phase < KDAPL_HALF_UP) {
			cm_rejected(half, event);
			break;
		}
		/* the peer went before our last word of the set-up reached it */
		fallthrough;
	case RDMA_CM_EVENT_DISCONNECTED:
		complete_all(&half->cm_down);
		/* who disconnects was connected: its last word of the set-up was overtaken */
		if (half->phase == KDAPL_HALF_CONNECTING && half->passive &&
		    (!half->dev->iwarp || half->held_back))
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
 * What the id must know before its QP is moved. Before the route is resolved the
 * timeout would become that of the CM's own messages.
 */
static void cm_set_timers(struct kdapl_half *half, struct rdma_cm_id *id)
{
	const struct kdat_conn_attr *conn = &half->conn;

	if (half->dev->iwarp)
		return;
	if (conn->ack_timeout != KDAT_CONN_DEFAULT)
		rdma_set_ack_timeout(id, conn->ack_timeout);
	rdma_set_min_rnr_timer(id, conn->min_rnr_timer == KDAT_CONN_DEFAULT ? MIN_RNR_TIMER :
									      conn->min_rnr_timer);
}

/* The EP's wishes at the beginning of an attempt. */
static void cm_copy_conn(struct kdapl_half *half)
{
	struct kdapl_ep *ep = half->ep;

	spin_lock_irq(&ep->lock);
	half->conn = ep->conn;
	spin_unlock_irq(&ep->lock);
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
		.retry_count = KDAPL_RETRY_COUNT,
		.rnr_retry_count = KDAPL_RNR_RETRY_COUNT,
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
	cm_set_timers(half, half->cm_id);
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
	default:	/* TIMED_OUT is for the consumer's timeout alone */
		outcome = DAT_CONNECTION_EVENT_UNREACHABLE;
	}
	if (ret && !cm_retry_port(half, ret))
		cm_fail(half, outcome);
	if (half->phase >= KDAPL_HALF_ENDING)	/* given up meanwhile: the id can go now */
		mod_delayed_work(kdapl_wq, &half->end_work, 0);
	mutex_unlock(&half->lock);
}

/*
 * A message arrived before the peer's last word of the set-up, which may be lost. Or nobody has
 * to wait any longer for the peer to see ours.
 */
static void cm_work_established(struct work_struct *work)
{
	struct kdapl_half *half = container_of(to_delayed_work(work), struct kdapl_half, est_work);
	unsigned int noio = memalloc_noio_save();

	mutex_lock(&half->lock);
	if (half->held_back)
		kdapl_half_established(half);
	else if (half->cm_id && half->passive && half->phase == KDAPL_HALF_CONNECTING &&
		 !half->dev->iwarp)
		rdma_notify(half->cm_id, IB_EVENT_COMM_EST);	/* ESTABLISHED follows */
	mutex_unlock(&half->lock);
	memalloc_noio_restore(noio);
}

static void cm_work_retry(struct work_struct *work);

static void cm_work_timer(struct work_struct *work)
{
	struct kdapl_half *half = container_of(to_delayed_work(work), struct kdapl_half, timer);

	mutex_lock(&half->lock);
	if (half->phase == KDAPL_HALF_UP && kdapl_half_drain_stuck(half))
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
	INIT_DELAYED_WORK(&half->retry_work, cm_work_retry);
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

/* An id on the way to half->remote, from the IA's address of that family. */
static struct rdma_cm_id *cm_create_id(struct kdapl_half *half)
{
	struct kdapl_ia *ia = half->ep->obj.ia;
	struct sockaddr_storage src;
	struct rdma_cm_id *id;
	struct net *net;

	if (kdapl_ia_address(ia, (struct sockaddr *)&half->remote, &src, &net))
		return ERR_PTR(-EADDRNOTAVAIL);
	id = __rdma_create_kernel_id(net, kdapl_cm_handler, half, RDMA_PS_TCP, IB_QPT_RC,
				     ia->consumer);
	put_net(net);	/* the id keeps its own reference */
	if (IS_ERR(id))
		return id;
	half->local = src;
	if (half->conn.tos != KDAT_CONN_DEFAULT)
		rdma_set_service_type(id, half->conn.tos);
	return id;
}

/* half->lock held: the handler runs from a work item and waits for it. */
static int cm_resolve(struct kdapl_half *half, struct rdma_cm_id *id)
{
	int ret = rdma_resolve_addr(id, (struct sockaddr *)&half->local,
				    (struct sockaddr *)&half->remote, RESOLVE_MS);

	if (ret)
		return ret == -ENOMEM ? ret : -EHOSTUNREACH;
	half->cm_id = id;
	return 0;
}

/* Once more, with a new id: the old one has had its answer. */
static void cm_work_retry(struct work_struct *work)
{
	struct kdapl_half *half = container_of(to_delayed_work(work), struct kdapl_half,
					       retry_work);
	struct rdma_cm_id *id = NULL, *old = NULL;
	unsigned int noio;

	if (!kdapl_dev_enter(half->dev))
		return;		/* ends with the device */
	noio = memalloc_noio_save();
	mutex_lock(&half->lock);
	if (half->phase == KDAPL_HALF_CONNECTING && half->connecting) {
		/* the last rdma_connect() is not through yet */
		queue_delayed_work(kdapl_conn_wq, &half->retry_work, STALE_TIME);
	} else if (half->phase == KDAPL_HALF_CONNECTING) {
		old = half->cm_id;
		half->cm_id = NULL;
	}
	mutex_unlock(&half->lock);
	if (!old)
		goto out;
	rdma_destroy_id(old);
	id = cm_create_id(half);
	mutex_lock(&half->lock);
	if (half->phase == KDAPL_HALF_CONNECTING &&
	    (IS_ERR(id) || cm_resolve(half, id)))
		cm_fail(half, DAT_CONNECTION_EVENT_UNREACHABLE);
	if (half->cm_id == id)
		id = NULL;
	mutex_unlock(&half->lock);
	if (!IS_ERR_OR_NULL(id))
		rdma_destroy_id(id);
out:
	memalloc_noio_restore(noio);
	kdapl_dev_exit(half->dev);
}

/*
 * 0: under way, or aborted already; -EADDRNOTAVAIL: no address to start from;
 * -ENODEV: the device has failed meanwhile.
 */
static int cm_start(struct kdapl_half *half, u32 usec)
{
	struct rdma_cm_id *id;
	int ret;

	id = cm_create_id(half);
	if (IS_ERR(id))
		return PTR_ERR(id);
	mutex_lock(&half->lock);
	if (half->phase != KDAPL_HALF_IDLE || atomic_read(&half->reason) != KDAPL_END_NONE) {
		mutex_unlock(&half->lock);
		rdma_destroy_id(id);
		return 0;	/* its end is under way */
	}
	ret = READ_ONCE(half->dev->fatal) ? -ENODEV : cm_resolve(half, id);
	if (!ret) {
		WRITE_ONCE(half->phase, KDAPL_HALF_CONNECTING);
		if (usec != DAT_TIMEOUT_INFINITE)
			queue_delayed_work(kdapl_wq, &half->timer, usecs_to_jiffies(usec) + 1);
	}
	mutex_unlock(&half->lock);
	if (!ret)
		return 0;
	rdma_destroy_id(id);
	return ret;
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
DAT_RETURN kdapl_cm_connect(struct kdapl_half *half, const struct sockaddr *dst, u16 port,
			    u32 usec)
{
	struct sockaddr_storage any;
	int ret;

	/* now, so that the answer's private data cannot be lost for lack of memory */
	half->pdata = half->pdata ?: kmalloc(PDATA_MAX, GFP_KERNEL);
	if (!half->pdata)
		return kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	memset(&half->remote, 0, sizeof(half->remote));
	memcpy(&half->remote, dst, kdapl_addr_len(dst));
	kdapl_addr_set_port(&half->remote, port);
	cm_read_depths(half);
	cm_copy_conn(half);
	ret = cm_start(half, usec);
	if (!ret)
		return DAT_SUCCESS;
	half->remote.ss_family = AF_UNSPEC;	/* there is no peer */
	if (ret == -ENODEV)
		return kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	if (ret == -EADDRNOTAVAIL && !kdapl_ia_address(half->ep->obj.ia, NULL, &any, NULL))
		return kdapl_err(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED);
	if (ret == -EADDRNOTAVAIL || ret == -EHOSTUNREACH)
		return kdapl_err(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE);
	return kdapl_errno_ret(ret);
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
		.rnr_retry_count = KDAPL_RNR_RETRY_COUNT,
		.srq = !!half->pool,
	};
	unsigned int noio = memalloc_noio_save();
	int ret;

	cm_read_depths(half);
	cm_copy_conn(half);
	cm_set_timers(half, id);
	rdma_lock_handler(id);
	mutex_lock(&half->lock);
	cr->cm_id = NULL;
	half->cm_id = id;
	kdapl_device_id_gone(half->dev);
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
	if (half->phase == KDAPL_HALF_IDLE && atomic_read(&half->reason) == KDAPL_END_NONE &&
	    !READ_ONCE(half->dev->fatal)) {
		WRITE_ONCE(half->phase, KDAPL_HALF_CONNECTING);
		param.qp_num = half->qp->qp_num;	/* idle halves may lose their QP */
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
