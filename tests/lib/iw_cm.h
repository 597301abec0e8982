/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Connections of a device of iWARP without packets: what its provider does for the connection
 * manager. One file of a module includes this. It has defined IW_QP, a type of queue pair with
 * ibqp, conn (under iw_mutex), state, ref and unused, and the functions that follow.
 *
 * Devices find each other's listeners in one list, by IP address and port. An attempt is a
 * struct iw_conn from iw_connect() on: first the listener's side has the request, known by
 * a number, then both sides have a QP. Whatever ends it takes it out of the table and tells
 * both sides; a late answer finds no number. The manager delivers events from a work item of
 * its own, so they may be told with our mutex held.
 */
#ifndef TESTS_IW_CM_H
#define TESTS_IW_CM_H

#include <linux/in6.h>
#include <linux/inetdevice.h>
#include <linux/slab.h>
#include <net/addrconf.h>
#include <net/ipv6.h>
#include <rdma/iw_cm.h>

#define IW_SILENCE	(HZ / 2)

struct iw_how {
	bool negotiate;			/* the two ends agree on depths */
	u32 req_depths, rep_depths;	/* what is told of them: tests/hca/README.md */
	u32 rd_in, rd_out;		/* Reads the device answers, and begins */
};

static void iw_qp_live(IW_QP *qp, IW_QP *peer, u32 ird, u32 ord);
static void iw_qp_end(IW_QP *qp);
static IW_QP *iw_qp_find(struct ib_device *ibdev, u32 number);
static struct iw_how iw_how(struct ib_device *ibdev);
static struct net_device *iw_netdev(struct ib_device *ibdev);
static bool iw_anybody(const struct sockaddr_storage *addr);	/* does a device answer there? */

struct iw_listener {
	struct list_head node;
	struct iw_cm_id *cm_id;
};

struct iw_side {
	struct iw_cm_id *cm_id;
	IW_QP *qp;
};

struct iw_conn {
	u32 id;				/* for the one who answers */
	struct iw_side active;		/* who has asked */
	struct iw_side passive;		/* who has accepted; empty before */
	u32 ird, ord;			/* RDMA Reads the active side answers, and begins */
	unsigned long deadline;		/* nobody has the address, and says so then; 0: none */
};

static DEFINE_MUTEX(iw_mutex);		/* this, and qp->conn */
static LIST_HEAD(iw_listeners);
static DEFINE_XARRAY_ALLOC1(iw_conns);
static u32 iw_next_conn;

static void iw_silence(struct work_struct *work);
static DECLARE_DELAYED_WORK(iw_silence_work, iw_silence);

static bool iw_same_port(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	/* at the same place in both families */
	return a->ss_family == b->ss_family &&
	       ((const struct sockaddr_in *)a)->sin_port ==
	       ((const struct sockaddr_in *)b)->sin_port;
}

static bool iw_same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	if (a->ss_family == AF_INET6)
		return ipv6_addr_equal(&((const struct sockaddr_in6 *)a)->sin6_addr,
				       &((const struct sockaddr_in6 *)b)->sin6_addr);
	return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
	       ((const struct sockaddr_in *)b)->sin_addr.s_addr;
}

static bool iw_owns(struct net_device *ndev, const struct sockaddr_storage *addr)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;
	const struct sockaddr_in *in = (const struct sockaddr_in *)addr;
	const struct in_ifaddr *ifa;
	struct in_device *in_dev;
	bool found = false;

	if (addr->ss_family == AF_INET6)
		return ipv6_chk_addr(dev_net(ndev), &in6->sin6_addr, ndev, 0);
	rcu_read_lock();
	in_dev = __in_dev_get_rcu(ndev);
	if (in_dev) {
		in_dev_for_each_ifa_rcu(ifa, in_dev)
			found |= ifa->ifa_local == in->sin_addr.s_addr;
	}
	rcu_read_unlock();
	return found;
}

/* Who listens at the address, or at any address of the device that has it. */
static struct iw_cm_id *iw_find_listener(struct iw_cm_id *from)
{
	const struct sockaddr_storage zero = {};
	struct iw_listener *l;

	list_for_each_entry(l, &iw_listeners, node) {
		if (iw_same_port(&l->cm_id->local_addr, &from->remote_addr) &&
		    (iw_same_address(&l->cm_id->local_addr, &from->remote_addr) ||
		     iw_same_address(&l->cm_id->local_addr, &zero)) &&
		    iw_owns(iw_netdev(l->cm_id->device), &from->remote_addr))
			return l->cm_id;
	}
	return NULL;
}

static void iw_side_set(struct iw_side *side, struct iw_conn *conn, struct iw_cm_id *cm_id,
			IW_QP *qp)
{
	side->cm_id = cm_id;
	side->qp = qp;
	qp->conn = conn;
	cm_id->add_ref(cm_id);
}

static void iw_side_tell(struct iw_side *side, struct iw_cm_event event)
{
	event.local_addr = side->cm_id->local_addr;
	event.remote_addr = side->cm_id->remote_addr;
	side->cm_id->event_handler(side->cm_id, &event);
}

/* The last event of that side. */
static void iw_side_end(struct iw_side *side, struct iw_cm_event event)
{
	iw_side_tell(side, event);
	side->qp->conn = NULL;
	side->cm_id->rem_ref(side->cm_id);
}

/* Nobody has accepted, and nobody will. */
static void iw_refuse(struct iw_conn *conn, int status, const void *pdata, u8 len)
{
	xa_erase(&iw_conns, conn->id);
	iw_side_end(&conn->active, (struct iw_cm_event){
		.event = IW_CM_EVENT_CONNECT_REPLY,
		.status = status,
		.private_data = (void *)pdata,
		.private_data_len = len,
	});
	kfree(conn);
}

static void iw_close(struct iw_conn *conn)
{
	const struct iw_cm_event close = { .event = IW_CM_EVENT_CLOSE };

	xa_erase(&iw_conns, conn->id);
	iw_qp_end(conn->active.qp);
	iw_qp_end(conn->passive.qp);
	iw_side_end(&conn->active, close);
	iw_side_end(&conn->passive, close);
	kfree(conn);
}

/* Where nobody answers it takes a while to know. */
static void iw_silence(struct work_struct *work)
{
	unsigned long now = jiffies, wait = ULONG_MAX, id;
	struct iw_conn *conn;

	mutex_lock(&iw_mutex);
	xa_for_each(&iw_conns, id, conn) {
		if (!conn->deadline)
			continue;
		if (time_before(now, conn->deadline))
			wait = min(wait, conn->deadline - now);
		else
			iw_refuse(conn, -ETIMEDOUT, NULL, 0);
	}
	if (wait != ULONG_MAX)
		schedule_delayed_work(&iw_silence_work, wait);
	mutex_unlock(&iw_mutex);
}

/* End a QP, and its connection or attempt. */
static void iw_break(IW_QP *qp)
{
	mutex_lock(&iw_mutex);
	if (qp->conn && qp->conn->passive.qp)
		iw_close(qp->conn);
	else if (qp->conn)
		iw_refuse(qp->conn, -ECONNRESET, NULL, 0);
	if (READ_ONCE(qp->state) != IB_QPS_ERR)
		iw_qp_end(qp);
	mutex_unlock(&iw_mutex);
}

/* The QP of that number, if it can be connected with these depths. */
static IW_QP *iw_free_qp(struct iw_cm_id *cm_id, const struct iw_cm_conn_param *param)
{
	const struct iw_how how = iw_how(cm_id->device);
	IW_QP *qp = iw_qp_find(cm_id->device, param->qpn);

	return qp && !qp->conn && READ_ONCE(qp->state) < IB_QPS_RTS &&
	       param->ird <= how.rd_in && param->ord <= how.rd_out &&
	       param->private_data_len <= U8_MAX ? qp : NULL;
}

/*
 * Depths of an event, of which the device answers @in Reads of the peer and begins @out. The
 * core hands ird on as the depth of the initiator, so cxgb4 and we exchange the two.
 */
static void iw_tell_depths(struct iw_cm_event *event, u32 how, u32 in, u32 out)
{
	switch (how) {
	case 0:
		event->ird = out;
		event->ord = in;
		break;
	case 1:
		event->ird = in;
		event->ord = out;
		break;
	default:
		break;
	}
}

/* -ECONNREFUSED: nobody listens, or has room for a request. */
static int iw_connect(struct iw_cm_id *cm_id, struct iw_cm_conn_param *param)
{
	struct iw_cm_event event = {
		.event = IW_CM_EVENT_CONNECT_REQUEST,
		.local_addr = cm_id->remote_addr,
		.remote_addr = cm_id->local_addr,
		.private_data = (void *)param->private_data,
		.private_data_len = param->private_data_len,
	};
	struct iw_conn *conn = kzalloc(sizeof(*conn), GFP_KERNEL);
	const struct iw_how how = iw_how(cm_id->device);
	bool silent = !iw_anybody(&cm_id->remote_addr);
	struct iw_cm_id *listener;
	int ret = -EINVAL;
	IW_QP *qp;

	if (!conn)
		return -ENOMEM;
	conn->ird = param->ird;
	conn->ord = param->ord;
	mutex_lock(&iw_mutex);
	qp = iw_free_qp(cm_id, param);
	if (!qp)
		goto err;
	ret = -ECONNREFUSED;
	listener = iw_find_listener(cm_id);
	if (!listener && !silent)
		goto err;
	ret = xa_alloc_cyclic(&iw_conns, &conn->id, conn, xa_limit_31b, &iw_next_conn, GFP_KERNEL);
	if (ret < 0)
		goto err;
	event.provider_data = (void *)(unsigned long)conn->id;
	event.ird = how.req_depths ? how.rd_in : param->ird;
	event.ord = how.req_depths == 2 ? 0 : how.req_depths ? how.rd_out : param->ord;
	if (silent) {
		conn->deadline = (jiffies + IW_SILENCE) | 1;
		schedule_delayed_work(&iw_silence_work, IW_SILENCE);
	} else if (listener->event_handler(listener, &event)) {
		xa_erase(&iw_conns, conn->id);
		ret = -ECONNREFUSED;
		goto err;
	}
	iw_side_set(&conn->active, conn, cm_id, qp);
	mutex_unlock(&iw_mutex);
	return 0;
err:
	mutex_unlock(&iw_mutex);
	kfree(conn);
	return ret;
}

static struct iw_conn *iw_find_request(struct iw_cm_id *cm_id)
{
	struct iw_conn *conn = xa_load(&iw_conns, (unsigned long)cm_id->provider_data);

	return conn && !conn->passive.qp ? conn : NULL;
}

/* -ECONNRESET: the one who asked has gone. */
static int iw_accept(struct iw_cm_id *cm_id, struct iw_cm_conn_param *param)
{
	const struct iw_how how = iw_how(cm_id->device);
	struct iw_cm_event event = {};
	struct iw_conn *conn;
	int ret = -ECONNRESET;
	IW_QP *qp, *peer;

	mutex_lock(&iw_mutex);
	conn = iw_find_request(cm_id);
	if (!conn)
		goto out;
	qp = iw_free_qp(cm_id, param);
	if (!qp) {
		iw_refuse(conn, -ECONNRESET, NULL, 0);
		ret = -EINVAL;
		goto out;
	}
	ret = 0;
	peer = conn->active.qp;
	iw_side_set(&conn->passive, conn, cm_id, qp);
	iw_qp_live(qp, peer, param->ird, how.negotiate ? min(param->ord, conn->ird) : param->ord);
	iw_qp_live(peer, qp, conn->ird, how.negotiate ? min(conn->ord, param->ird) : conn->ord);
	event.event = IW_CM_EVENT_ESTABLISHED;
	iw_tell_depths(&event, how.rep_depths, min(param->ird, conn->ord),
		       min(param->ord, conn->ird));
	iw_side_tell(&conn->passive, event);
	event = (struct iw_cm_event){
		.event = IW_CM_EVENT_CONNECT_REPLY,
		.private_data = (void *)param->private_data,
		.private_data_len = param->private_data_len,
	};
	iw_tell_depths(&event, how.rep_depths, min(conn->ird, param->ord),
		       min(conn->ord, param->ird));
	iw_side_tell(&conn->active, event);
out:
	mutex_unlock(&iw_mutex);
	return ret;
}

static int iw_reject(struct iw_cm_id *cm_id, const void *pdata, u8 len)
{
	struct iw_conn *conn;

	mutex_lock(&iw_mutex);
	conn = iw_find_request(cm_id);
	if (conn)
		iw_refuse(conn, -ECONNREFUSED, pdata, len);
	mutex_unlock(&iw_mutex);
	return 0;
}

static int iw_create_listen(struct iw_cm_id *cm_id, int backlog)
{
	struct iw_listener *l = kzalloc(sizeof(*l), GFP_KERNEL);

	if (!l)
		return -ENOMEM;
	l->cm_id = cm_id;
	cm_id->add_ref(cm_id);
	cm_id->provider_data = l;
	mutex_lock(&iw_mutex);
	list_add_tail(&l->node, &iw_listeners);
	mutex_unlock(&iw_mutex);
	return 0;
}

/*
 * Its requests may be with a consumer, who may still answer; or the manager drops them and
 * does not say so. Then whoever has asked waits until he ends his QP.
 */
static int iw_destroy_listen(struct iw_cm_id *cm_id)
{
	struct iw_listener *l = cm_id->provider_data;

	mutex_lock(&iw_mutex);
	list_del(&l->node);
	mutex_unlock(&iw_mutex);
	cm_id->rem_ref(cm_id);
	kfree(l);
	return 0;
}

static struct ib_qp *iw_get_qp(struct ib_device *ibdev, int number)
{
	IW_QP *qp = iw_qp_find(ibdev, number);

	return qp ? &qp->ibqp : NULL;
}

static void iw_add_ref(struct ib_qp *ibqp)
{
	refcount_inc(&container_of(ibqp, IW_QP, ibqp)->ref);
}

static void iw_rem_ref(struct ib_qp *ibqp)
{
	IW_QP *qp = container_of(ibqp, IW_QP, ibqp);

	if (refcount_dec_and_test(&qp->ref))
		complete(&qp->unused);
}

static int iw_query_gid(struct ib_device *ibdev, u32 port, int index, union ib_gid *gid)
{
	const __be64 guid = ibdev->node_guid;

	/* There is one, made of a MAC address. */
	memset(gid, 0, sizeof(*gid));
	memcpy(gid->raw, &guid, 3);
	memcpy(gid->raw + 3, (const u8 *)&guid + 5, 3);
	gid->raw[0] ^= 2;
	return 0;
}

static const struct ib_device_ops iw_ops = {
	.iw_accept = iw_accept,
	.iw_add_ref = iw_add_ref,
	.iw_connect = iw_connect,
	.iw_create_listen = iw_create_listen,
	.iw_destroy_listen = iw_destroy_listen,
	.iw_get_qp = iw_get_qp,
	.iw_reject = iw_reject,
	.iw_rem_ref = iw_rem_ref,
	.query_gid = iw_query_gid,
};

/* Before the device is registered, beside its own operations. */
static void iw_setup(struct ib_device *ibdev)
{
	ibdev->node_type = RDMA_NODE_RNIC;
	ibdev->iw_driver_flags = IW_F_NO_PORT_MAP;
	strscpy(ibdev->iw_ifname, iw_netdev(ibdev)->name, sizeof(ibdev->iw_ifname));
	ib_set_device_ops(ibdev, &iw_ops);
}

#endif
