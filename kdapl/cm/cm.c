// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Connection management: what rdma_cm events do to connections; sending REQ and REP.
 *
 * Each attempt, and each retry of it, has a fresh cm_id. The id has no QP of its own; it knows the
 * connection's QP by number. On InfiniBand and RoCE the QP is moved here, with the attributes the
 * CM has learned; on iWARP the provider moves it.
 *
 * The handler runs in process context under the handler mutex of the id, and takes conn->lock
 * inside. So nothing here may wait for the handler with that lock held: ids are destroyed by work
 * items, without it.
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "cm.h"
#include "../core/cm_reject.h"
#include "../core/trace.h"

#define RESOLVE_MS		2000
#define CM_DEEP_READS		128	/* where two ends with fewer could deadlock (D-14) */
#define MIN_RNR_TIMER		12	/* 0.64 ms; the CM's default of 0 means 655 ms */
#define STALE_RETRIES		10	/* if the consumer has set no timeout */
#define STALE_TIME		(HZ / 10)
#define PORT_RETRIES		3
/*
 * The peer's REQ says how long and how often the REP is repeated, which may be for a day. The CM of
 * Linux asks for 66 s, and a peer that is busy may ask for as much again.
 */
#define ACCEPT_TIME		(140 * HZ)
#define PDATA_MAX		U8_MAX	/* the limit of struct rdma_conn_param */

/* End the attempt, unless it has an outcome. @active: event if we connect. conn->lock held. */
static void cm_fail(struct kdapl_conn *conn, DAT_EVENT_NUMBER active)
{
	if (!kdapl_conn_attempting(conn))
		return;
	kdapl_conn_end(conn, conn->passive ? DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR : active);
}

static void cm_keep_pdata(struct kdapl_conn *conn, const struct rdma_conn_param *param)
{
	if (!param->private_data_len || conn->pdata_len)
		return;
	memcpy(conn->pdata, param->private_data, param->private_data_len);
	conn->pdata_len = param->private_data_len;
}

/* @id is alive, since this is its handler; conn->cm_id may be about to be destroyed. */
static void cm_established(struct kdapl_conn *conn, struct rdma_cm_id *id)
{
	conn->cm_up = true;
	if (atomic_read(&conn->reason) > KDAPL_END_SUSPECT && conn->state >= KDAPL_CONN_ENDING) {
		/* the end has begun meanwhile, without telling the peer */
		rdma_disconnect(id);
		return;
	}
	kdapl_conn_established(conn);
}

/*
 * siw on the peer fails the attempt if data follows our MPA reply in the TCP stream before it has
 * read the reply (D-86). Our consumer may send at once, so it gets ESTABLISHED only when the peer
 * has sent something, or has had time to read the reply.
 */
static void cm_hold_back(struct kdapl_conn *conn, struct rdma_cm_id *id)
{
	if (READ_ONCE(conn->spoken) || !kdapl_conn_step(conn, KDAPL_CONN_IN_HOLD)) {
		cm_established(conn, id);
		return;
	}
	conn->cm_up = true;
	conn->hold_steps = KDAPL_HOLD_STEPS;
	queue_delayed_work(kdapl_misc_wq, &conn->est_work, KDAPL_HOLD_STEP);
}

/* Limit the read depth to what the REP or MPA reply says the peer takes. */
static void cm_set_read_depth(struct kdapl_conn *conn, const struct rdma_conn_param *param)
{
	const struct kdapl_caps *caps = &conn->dev->caps;

	conn->read_depth = conn->read_out;
	if (!caps->no_depths)
		conn->read_depth = min(conn->read_depth,
				       caps->own_depths ? param->responder_resources :
							  param->initiator_depth);
}

static void cm_connect_response(struct kdapl_conn *conn, struct rdma_cm_id *id,
				struct rdma_cm_event *event)
{
	int ret;

	if (conn->state != KDAPL_CONN_CONNECTING ||
	    atomic_read(&conn->reason) > KDAPL_END_SUSPECT) {
		/*
		 * Not IB_CM_REJ_TIMEOUT: the peer matches that one by our GUID in the ARI, which
		 * rdma_reject() does not send.
		 */
		rdma_reject(id, NULL, 0, IB_CM_REJ_NO_RESOURCES);
		return;
	}
	cm_keep_pdata(conn, &event->param.conn);
	cm_set_read_depth(conn, &event->param.conn);
	ret = kdapl_conn_to_rts(conn, id);
	if (!ret)
		ret = rdma_accept(id, NULL);
	if (ret) {
		pr_err_ratelimited("%s: QP %u: cannot complete the connection to %pISpc: %pe\n",
				   conn->dev->name, conn->qp->qp_num, &conn->remote, ERR_PTR(ret));
		rdma_reject(id, NULL, 0, IB_CM_REJ_NO_RESOURCES);
		cm_fail(conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		return;
	}
	cm_established(conn, id);
}

/* Was it the peer's consumer that rejected? If not, a CM did, or there is no listener (D-16). */
static bool cm_consumer_rejected(struct kdapl_conn *conn, int status)
{
	if (!conn->dev->iwarp)
		return status == IB_CM_REJ_CONSUMER_DEFINED;
	return status == (conn->dev->caps.reject_resets ? -ECONNRESET : -ECONNREFUSED);
}

/* Retry with another id, after a delay that grows each time. conn->lock held. */
static void cm_retry(struct kdapl_conn *conn)
{
	if (conn->retries < STALE_RETRIES)
		conn->retries++;
	queue_delayed_work(kdapl_connect_wq, &conn->retry_work, conn->retries * STALE_TIME);
}

/*
 * The peer still knows our QP number from a connection whose end it has missed, because our host
 * or device went away. Our REQ has told it that the connection is stale: send another one.
 */
static bool cm_retry_stale(struct kdapl_conn *conn, int status)
{
	if (conn->dev->iwarp || status != IB_CM_REJ_STALE_CONN || conn->passive ||
	    conn->state != KDAPL_CONN_CONNECTING ||
	    (!delayed_work_pending(&conn->timer) && conn->retries >= STALE_RETRIES))
		return false;
	cm_retry(conn);
	return true;
}

/*
 * The CM has picked a port that a connection to the same peer has had less than a minute ago, and
 * TCP does not take it again so soon: try another one (D-59).
 */
static bool cm_retry_port(struct kdapl_conn *conn, int err)
{
	if (!conn->dev->iwarp || (err != -EADDRNOTAVAIL && err != -EADDRINUSE) ||
	    conn->state != KDAPL_CONN_CONNECTING || conn->retries >= PORT_RETRIES)
		return false;
	cm_retry(conn);
	return true;
}

static void cm_rejected(struct kdapl_conn *conn, struct rdma_cm_event *event)
{
	if (cm_retry_stale(conn, event->status))
		return;
	if (!cm_consumer_rejected(conn, event->status)) {
		cm_fail(conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		return;
	}
	if (conn->state == KDAPL_CONN_CONNECTING && !conn->passive)
		cm_keep_pdata(conn, &event->param.conn);
	cm_fail(conn, DAT_CONNECTION_EVENT_PEER_REJECTED);
}

/* Is this the outcome of rdma_connect() on iWARP, after which the id can be destroyed? */
static bool cm_is_outcome(enum rdma_cm_event_type event)
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
 * kdapl_cm_handler - handle an event of the cm_id of a connection
 * @id: cm_id
 * @event: what happened
 *
 * Return: 0, so that the CM keeps the id: work items destroy it.
 */
int kdapl_cm_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct kdapl_conn *conn = id->context;
	unsigned int noio = memalloc_noio_save();

	trace_kdapl_cm_event(conn->handle, event->event, event->status);
	mutex_lock(&conn->lock);
	if (conn->dev->iwarp && cm_is_outcome(event->event))
		conn->cm_busy &= ~KDAPL_CM_OUTCOME;
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (id->device != conn->dev->ibdev || id->port_num != conn->ep->obj.ia->port ||
		    rdma_resolve_route(id, RESOLVE_MS))
			cm_fail(conn, DAT_CONNECTION_EVENT_UNREACHABLE);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		conn->local = id->route.addr.src_addr;
		if (conn->state == KDAPL_CONN_CONNECTING &&
		    atomic_read(&conn->reason) == KDAPL_END_NONE) {
			conn->cm_busy = KDAPL_CM_CALL;
			if (conn->dev->iwarp)
				conn->cm_busy |= KDAPL_CM_OUTCOME;
			queue_work(kdapl_connect_wq, &conn->connect_work);
		}
		break;
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		cm_connect_response(conn, id, event);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (!conn->passive) {
			cm_keep_pdata(conn, &event->param.conn);
			cm_set_read_depth(conn, &event->param.conn);
		}
		if (conn->passive && conn->dev->caps.reply_overrun)
			cm_hold_back(conn, id);
		else
			cm_established(conn, id);
		if (conn->dev->caps.early_data_unseen && !conn->passive)
			kdapl_conn_start_kicks(conn);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
		cm_fail(conn, DAT_CONNECTION_EVENT_UNREACHABLE);
		break;
	case RDMA_CM_EVENT_CONNECT_ERROR:
		cm_fail(conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		break;
	case RDMA_CM_EVENT_ADDR_CHANGE:
		/* a bond has failed over, and the QP keeps the old hardware address */
		if (conn->state == KDAPL_CONN_UP)
			kdapl_conn_end(conn, DAT_CONNECTION_EVENT_BROKEN);
		else
			cm_fail(conn, DAT_CONNECTION_EVENT_UNREACHABLE);
		break;
	case RDMA_CM_EVENT_REJECTED:
		if (conn->state < KDAPL_CONN_UP) {
			cm_rejected(conn, event);
			break;
		}
		/* the peer has gone before our RTU reached it */
		fallthrough;
	case RDMA_CM_EVENT_DISCONNECTED:
		complete_all(&conn->cm_down);
		/* the DREQ has overtaken the RTU, or ESTABLISHED is held back: report it first */
		if (conn->state == KDAPL_CONN_HELD ||
		    (conn->state == KDAPL_CONN_CONNECTING && conn->passive && !conn->dev->iwarp))
			cm_established(conn, id);
		if (conn->state == KDAPL_CONN_UP)
			kdapl_conn_end(conn, KDAPL_END_PEER);
		else
			cm_fail(conn, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
		break;
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		/*
		 * Of another device with our address (D-57), before the address was resolved: its
		 * removal waits for the id, and nothing follows. Ids of our own device are gone
		 * by then: our ib_client has destroyed them.
		 */
		if (id->device != conn->dev->ibdev)
			cm_fail(conn, DAT_CONNECTION_EVENT_UNREACHABLE);
		break;
	default:
		break;	/* other events do not concern connections */
	}
	if (conn->state >= KDAPL_CONN_ENDING && !conn->cm_up && !conn->cm_busy)
		mod_delayed_work(kdapl_misc_wq, &conn->end_work, 0);	/* the id can go now */
	mutex_unlock(&conn->lock);
	memalloc_noio_restore(noio);
	return 0;
}

/*
 * Set the timers of the id, before the QP is moved but after the route is resolved. If set
 * earlier, the ACK timeout would become that of the CM's own messages.
 */
static void cm_set_timers(struct kdapl_conn *conn, struct rdma_cm_id *id)
{
	const struct kdat_conn_attr *net = &conn->net_attr;

	if (conn->dev->iwarp)
		return;
	if (net->ack_timeout != KDAT_CONN_DEFAULT)
		rdma_set_ack_timeout(id, net->ack_timeout);
	rdma_set_min_rnr_timer(id, net->min_rnr_timer == KDAT_CONN_DEFAULT ? MIN_RNR_TIMER :
									      net->min_rnr_timer);
}

/*
 * Copy the network attributes that the consumer has set, at the beginning of an attempt. @tos:
 * type of service if it has set none.
 */
static void cm_copy_net_attr(struct kdapl_conn *conn, DAT_COUNT tos)
{
	struct kdapl_ep *ep = conn->ep;

	spin_lock_irq(&ep->lock);
	conn->net_attr = ep->net_attr;
	spin_unlock_irq(&ep->lock);
	if (conn->net_attr.tos == KDAT_CONN_DEFAULT)
		conn->net_attr.tos = tos;
}

/*
 * A call with the cm_id has returned. Before that the id must not go, whatever has become of the
 * connection: the call may still be unlocking a mutex of it. conn->lock held.
 */
static void cm_call_done(struct kdapl_conn *conn)
{
	conn->cm_busy &= ~KDAPL_CM_CALL;
	if (conn->state >= KDAPL_CONN_ENDING)	/* given up meanwhile: the id can go now */
		mod_delayed_work(kdapl_misc_wq, &conn->end_work, 0);
}

/*
 * Send the REQ. On soft-iWARP rdma_connect() takes as long as the TCP connect (D-17), and on every
 * iWARP device the id cannot be destroyed before the MPA reply.
 */
static void cm_work_connect(struct kdapl_conn *conn)
{
	struct rdma_conn_param param = {
		.private_data = conn->connect_pdata,
		.private_data_len = conn->connect_pdata_len,
		.responder_resources = conn->read_in,
		.initiator_depth = conn->read_out,
		.retry_count = KDAPL_RETRY_COUNT,
		.rnr_retry_count = KDAPL_RNR_RETRY_COUNT,
		.srq = !!conn->pool,
	};
	DAT_EVENT_NUMBER outcome;
	unsigned int noio;
	int ret;

	mutex_lock(&conn->lock);
	if (conn->state != KDAPL_CONN_CONNECTING) {	/* given up before it began */
		conn->cm_busy = 0;
		cm_call_done(conn);
		mutex_unlock(&conn->lock);
		return;
	}
	param.qp_num = conn->qp->qp_num;
	mutex_unlock(&conn->lock);

	noio = memalloc_noio_save();
	cm_set_timers(conn, conn->cm_id);
	ret = rdma_connect(conn->cm_id, &param);
	memalloc_noio_restore(noio);
	mutex_lock(&conn->lock);
	if (ret)
		conn->cm_busy = 0;	/* there will be no outcome */
	switch (ret) {
	case 0:
		break;
	case -ECONNREFUSED:
	case -ECONNRESET:
		outcome = DAT_CONNECTION_EVENT_NON_PEER_REJECTED;
		break;
	default:	/* not TIMED_OUT, which stands for the consumer's timeout */
		outcome = DAT_CONNECTION_EVENT_UNREACHABLE;
	}
	if (ret && !cm_retry_port(conn, ret))
		cm_fail(conn, outcome);
	cm_call_done(conn);
	mutex_unlock(&conn->lock);
}

/* The read depths that the EP asks for, within those of the device. */
static void cm_limit_read_depths(struct kdapl_conn *conn)
{
	const DAT_EP_ATTR *attr = &conn->attr;
	const struct ib_device_attr *dev = &conn->dev->attrs;
	int in = attr->max_rdma_read_in, out = attr->max_rdma_read_out;

	if (conn->dev->caps.reads_deadlock) {
		in = in ? CM_DEEP_READS : 0;
		out = out ? CM_DEEP_READS : 0;
	}
	conn->read_in = min3(in, dev->max_qp_rd_atom, U8_MAX);
	conn->read_out = min3(out, dev->max_qp_init_rd_atom, U8_MAX);
}

/* Make an id for a connection to conn->remote, from the IA's address of that family. */
static struct rdma_cm_id *cm_create_id(struct kdapl_conn *conn)
{
	struct kdapl_ia *ia = conn->ep->obj.ia;
	struct sockaddr_storage src;
	struct rdma_cm_id *id;
	struct net *net;

	if (kdapl_ia_address(ia, (struct sockaddr *)&conn->remote, &src, &net))
		return ERR_PTR(-EADDRNOTAVAIL);
	id = __rdma_create_kernel_id(net, kdapl_cm_handler, conn, RDMA_PS_TCP, IB_QPT_RC,
				     ia->consumer);
	put_net(net);	/* the id keeps its own reference */
	if (IS_ERR(id))
		return id;
	conn->local = src;
	if (conn->net_attr.tos != KDAT_CONN_DEFAULT)
		rdma_set_service_type(id, conn->net_attr.tos);
	return id;
}

/* conn->lock held: the handler runs in a work item, and waits for the lock. */
static int cm_resolve(struct kdapl_conn *conn, struct rdma_cm_id *id)
{
	int ret = rdma_resolve_addr(id, (struct sockaddr *)&conn->local,
				    (struct sockaddr *)&conn->remote, RESOLVE_MS);

	if (ret)
		return ret == -ENOMEM ? ret : -EHOSTUNREACH;
	conn->cm_id = id;
	return 0;
}

/* Begin the attempt anew, with a new id: the old one has been used up. */
static void cm_work_retry(struct kdapl_conn *conn)
{
	struct rdma_cm_id *id = NULL, *old = NULL;
	unsigned int noio;

	if (!kdapl_dev_enter(conn->dev))
		return;		/* the attempt ends with the device */
	noio = memalloc_noio_save();
	mutex_lock(&conn->lock);
	if (conn->state == KDAPL_CONN_CONNECTING && conn->cm_busy) {
		/* the last rdma_connect() has not returned */
		queue_delayed_work(kdapl_connect_wq, &conn->retry_work, STALE_TIME);
	} else if (conn->state == KDAPL_CONN_CONNECTING) {
		old = conn->cm_id;
		conn->cm_id = NULL;
	}
	mutex_unlock(&conn->lock);
	if (!old)
		goto out;
	rdma_destroy_id(old);
	id = cm_create_id(conn);
	mutex_lock(&conn->lock);
	if (conn->state == KDAPL_CONN_CONNECTING &&
	    (IS_ERR(id) || cm_resolve(conn, id)))
		cm_fail(conn, DAT_CONNECTION_EVENT_UNREACHABLE);
	if (conn->cm_id == id)
		id = NULL;
	mutex_unlock(&conn->lock);
	if (!IS_ERR_OR_NULL(id))
		rdma_destroy_id(id);
out:
	memalloc_noio_restore(noio);
	kdapl_dev_exit(conn->dev);
}

static const struct kdapl_conn_cm_ops cm_ops = {
	.connect = cm_work_connect,
	.retry = cm_work_retry,
};

/**
 * kdapl_cm_set_ops - let the work items of an attempt call this file
 * @conn: connection whose attempt begins
 */
void kdapl_cm_set_ops(struct kdapl_conn *conn)
{
	conn->cm = &cm_ops;
}

/*
 * 0: the attempt is under way, or has been aborted; -EADDRNOTAVAIL: the IA has no address to start
 * from; -ENODEV: the device has failed.
 */
static int cm_start(struct kdapl_conn *conn, u32 usec)
{
	struct rdma_cm_id *id;
	int ret;

	id = cm_create_id(conn);
	if (IS_ERR(id))
		return PTR_ERR(id);
	mutex_lock(&conn->lock);
	if (!kdapl_conn_may(conn, KDAPL_CONN_IN_ATTEMPT) || kdapl_conn_spent(conn)) {
		mutex_unlock(&conn->lock);
		rdma_destroy_id(id);
		return 0;	/* its end is under way */
	}
	ret = READ_ONCE(conn->dev->fatal) ? -ENODEV : cm_resolve(conn, id);
	if (!ret) {
		kdapl_conn_step(conn, KDAPL_CONN_IN_ATTEMPT);
		if (usec != DAT_TIMEOUT_INFINITE)
			queue_delayed_work(kdapl_misc_wq, &conn->timer, usecs_to_jiffies(usec) + 1);
	}
	mutex_unlock(&conn->lock);
	if (!ret)
		return 0;
	rdma_destroy_id(id);
	return ret;
}

/**
 * kdapl_cm_connect - start an attempt
 * @conn: idle; its connect_pdata is set
 * @dst: address of the peer
 * @port: of the listener
 * @usec: give up after that many microseconds, or DAT_TIMEOUT_INFINITE
 * @tos: type of service if the consumer has set none, or KDAT_CONN_DEFAULT
 *
 * Context: may sleep; inside kdapl_dev_enter(), without conn->lock.
 * Return: 0 once the attempt is under way; otherwise an errno for kdapl_errno_ret(), and no attempt
 * was started: -EAFNOSUPPORT if the IA has an address, but none of that family;
 * -EADDRNOTAVAIL if it has none at all; -EHOSTUNREACH; -ENODEV if the device has failed; -ENOMEM;
 * another errno of the RDMA CM.
 */
int kdapl_cm_connect(struct kdapl_conn *conn, const struct sockaddr *dst, u16 port, u32 usec,
		     DAT_COUNT tos)
{
	struct sockaddr_storage any;
	int ret;

	/* now, so that there is memory for the private data of the REP, MPA reply or REJ */
	conn->pdata = conn->pdata ?: kmalloc(PDATA_MAX, GFP_KERNEL);
	if (!conn->pdata)
		return -ENOMEM;
	kdapl_cm_set_ops(conn);
	memset(&conn->remote, 0, sizeof(conn->remote));
	memcpy(&conn->remote, dst, kdapl_addr_len(dst));
	kdapl_addr_set_port(&conn->remote, port);
	cm_limit_read_depths(conn);
	cm_copy_net_attr(conn, tos);
	ret = cm_start(conn, usec);
	if (!ret)
		return 0;
	conn->remote.ss_family = AF_UNSPEC;	/* there is no peer */
	if (ret == -EADDRNOTAVAIL && !kdapl_ia_address(conn->ep->obj.ia, NULL, &any, NULL))
		return -EAFNOSUPPORT;
	return ret;
}

/**
 * kdapl_cm_accept - accept a request with the QP of a connection
 * @conn: idle connection of an EP in COMPLETION_PENDING
 * @cr: the request; cr->mutex held
 * @pdata: private data for the peer
 * @len: its size
 *
 * The peer gets a REP or a REJ in any case, so the request is used up even if this fails.
 *
 * Context: may sleep; inside kdapl_dev_enter().
 * Return: 0 or an errno.
 */
int kdapl_cm_accept(struct kdapl_conn *conn, struct kdapl_cr *cr, const void *pdata, u8 len)
{
	struct rdma_cm_id *id = cr->cm_id;
	struct rdma_conn_param param = {
		.private_data = pdata,
		.private_data_len = len,
		.rnr_retry_count = KDAPL_RNR_RETRY_COUNT,
		.srq = !!conn->pool,
	};
	unsigned int noio = memalloc_noio_save();
	int ret;

	kdapl_cm_set_ops(conn);
	cm_limit_read_depths(conn);
	cm_copy_net_attr(conn, KDAT_CONN_DEFAULT);
	cm_set_timers(conn, id);
	rdma_lock_handler(id);
	mutex_lock(&conn->lock);
	cr->cm_id = NULL;
	if (kdapl_conn_spent(conn) || READ_ONCE(conn->dev->fatal) ||
	    !kdapl_conn_step(conn, KDAPL_CONN_IN_ATTEMPT)) {
		/* dat_ep_disconnect() was faster */
		mutex_unlock(&conn->lock);
		rdma_unlock_handler(id);
		kdapl_cm_reject(conn->dev, id, NULL, 0, IB_CM_REJ_NO_RESOURCES);
		memalloc_noio_restore(noio);
		return -ECONNABORTED;
	}
	conn->cm_id = id;
	conn->cm_busy = KDAPL_CM_CALL;
	kdapl_device_id_gone(conn->dev);
	id->context = conn;
	id->event_handler = kdapl_cm_handler;
	conn->local = cr->local;
	conn->remote = cr->remote;
	conn->passive = true;
	conn->read_in = min(conn->read_in, cr->read_in);
	conn->read_out = min(conn->read_out, cr->read_out);
	conn->read_depth = conn->read_out;
	param.responder_resources = conn->read_in;
	param.initiator_depth = conn->read_out;
	param.qp_num = conn->qp->qp_num;
	ret = kdapl_conn_to_rts(conn, id);
	if (ret)
		rdma_reject(id, NULL, 0, IB_CM_REJ_NO_RESOURCES);
	else
		ret = rdma_accept(id, &param);
	if (!ret && !conn->dev->iwarp)	/* on iWARP the outcome is there already */
		queue_delayed_work(kdapl_misc_wq, &conn->timer, ACCEPT_TIME);
	mutex_unlock(&conn->lock);
	rdma_unlock_handler(id);
	mutex_lock(&conn->lock);
	cm_call_done(conn);
	mutex_unlock(&conn->lock);
	memalloc_noio_restore(noio);
	return ret;
}
