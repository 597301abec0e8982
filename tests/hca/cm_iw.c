// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Connections of iWARP: what a provider does for the connection manager, without packets.
 *
 * Devices find each other's listeners in one list, by IP address and port. An attempt is a
 * struct kdhca_conn from iw_connect() on: first the listener's side has the request, known by
 * a number, then both sides have a QP. Whatever ends it takes it out of the table and tells
 * both sides; a late answer finds no number.
 */
#include <linux/in6.h>
#include <linux/slab.h>
#include <net/ipv6.h>

#include "kdhca.h"

#define SILENCE		(HZ / 2)

struct kdhca_listener {
	struct list_head node;
	struct iw_cm_id *cm_id;
};

struct kdhca_side {
	struct iw_cm_id *cm_id;
	struct kdhca_qp *qp;
};

struct kdhca_conn {
	u32 id;				/* for the one who answers */
	struct kdhca_side active;	/* who has asked */
	struct kdhca_side passive;	/* who has accepted; empty before */
	u32 ird, ord;			/* RDMA Reads the active side answers, and begins */
	unsigned long deadline;		/* nobody has the address, and says so then; 0: none */
};

static DEFINE_MUTEX(kdhca_cm_mutex);	/* this, and qp->conn */
static LIST_HEAD(listeners);
static DEFINE_XARRAY_ALLOC1(conns);
static u32 next_conn;

static void silence(struct work_struct *work);
static DECLARE_DELAYED_WORK(silence_work, silence);

static bool same_port(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	/* at the same place in both families */
	return a->ss_family == b->ss_family &&
	       ((const struct sockaddr_in *)a)->sin_port ==
	       ((const struct sockaddr_in *)b)->sin_port;
}

static bool same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	if (a->ss_family == AF_INET6)
		return ipv6_addr_equal(&((const struct sockaddr_in6 *)a)->sin6_addr,
				       &((const struct sockaddr_in6 *)b)->sin6_addr);
	return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
	       ((const struct sockaddr_in *)b)->sin_addr.s_addr;
}

/* Who listens at the address, or at any address of the device that has it. */
static struct iw_cm_id *find_listener(struct iw_cm_id *from)
{
	const struct sockaddr_storage zero = {};
	struct kdhca_listener *l;

	list_for_each_entry(l, &listeners, node) {
		if (same_port(&l->cm_id->local_addr, &from->remote_addr) &&
		    (same_address(&l->cm_id->local_addr, &from->remote_addr) ||
		     same_address(&l->cm_id->local_addr, &zero)) &&
		    kdhca_dev_owns(to_dev(l->cm_id->device), &from->remote_addr))
			return l->cm_id;
	}
	return NULL;
}

static void side_set(struct kdhca_side *side, struct kdhca_conn *conn, struct iw_cm_id *cm_id,
		     struct kdhca_qp *qp)
{
	side->cm_id = cm_id;
	side->qp = qp;
	qp->conn = conn;
	cm_id->add_ref(cm_id);
}

static void side_tell(struct kdhca_side *side, struct iw_cm_event event)
{
	event.local_addr = side->cm_id->local_addr;
	event.remote_addr = side->cm_id->remote_addr;
	side->cm_id->event_handler(side->cm_id, &event);
}

/* The last event of that side. */
static void side_end(struct kdhca_side *side, struct iw_cm_event event)
{
	side_tell(side, event);
	side->qp->conn = NULL;
	side->cm_id->rem_ref(side->cm_id);
}

/* Nobody has accepted, and nobody will. */
static void conn_refuse(struct kdhca_conn *conn, int status, const void *pdata, u8 len)
{
	xa_erase(&conns, conn->id);
	side_end(&conn->active, (struct iw_cm_event){
		.event = IW_CM_EVENT_CONNECT_REPLY,
		.status = status,
		.private_data = (void *)pdata,
		.private_data_len = len,
	});
	kfree(conn);
}

static void qp_end(struct kdhca_qp *qp)
{
	mutex_lock(&qp->rx);
	kdhca_qp_error(qp);
	mutex_unlock(&qp->rx);
}

static void conn_close(struct kdhca_conn *conn)
{
	const struct iw_cm_event close = { .event = IW_CM_EVENT_CLOSE };

	xa_erase(&conns, conn->id);
	qp_end(conn->active.qp);
	qp_end(conn->passive.qp);
	side_end(&conn->active, close);
	side_end(&conn->passive, close);
	kfree(conn);
}

/* Where nobody answers it takes a while to know. */
static void silence(struct work_struct *work)
{
	unsigned long now = jiffies, wait = ULONG_MAX, id;
	struct kdhca_conn *conn;

	mutex_lock(&kdhca_cm_mutex);
	xa_for_each(&conns, id, conn) {
		if (!conn->deadline)
			continue;
		if (time_before(now, conn->deadline))
			wait = min(wait, conn->deadline - now);
		else
			conn_refuse(conn, -ETIMEDOUT, NULL, 0);
	}
	if (wait != ULONG_MAX)
		mod_delayed_work(kdhca_wq, &silence_work, wait);
	mutex_unlock(&kdhca_cm_mutex);
}

/** kdhca_iw_exit - all connections are gone */
void kdhca_iw_exit(void)
{
	cancel_delayed_work_sync(&silence_work);
}

/* Does any device of ours answer there? */
static bool anybody(const struct sockaddr_storage *addr)
{
	struct kdhca_dev *dev;
	bool found = false;

	mutex_lock(&kdhca_devs_lock);
	list_for_each_entry(dev, &kdhca_devs, node)
		found |= dev->here && dev->set.iwarp && kdhca_dev_up(dev) &&
			 kdhca_dev_owns(dev, addr);
	mutex_unlock(&kdhca_devs_lock);
	return found;
}

/**
 * kdhca_iw_break - end a QP, and its connection or attempt
 * @qp: QP
 *
 * Context: may sleep.
 */
void kdhca_iw_break(struct kdhca_qp *qp)
{
	mutex_lock(&kdhca_cm_mutex);
	if (qp->conn && qp->conn->passive.qp)
		conn_close(qp->conn);
	else if (qp->conn)
		conn_refuse(qp->conn, -ECONNRESET, NULL, 0);
	if (READ_ONCE(qp->state) != IB_QPS_ERR)
		qp_end(qp);
	mutex_unlock(&kdhca_cm_mutex);
}

/* The QP of that number, if it can be connected with these depths. */
static struct kdhca_qp *find_qp(struct iw_cm_id *cm_id, const struct iw_cm_conn_param *param)
{
	struct kdhca_dev *dev = to_dev(cm_id->device);
	struct kdhca_qp *qp = xa_load(&kdhca_qps, param->qpn);

	return qp && qp->dev == dev && !qp->conn && READ_ONCE(qp->state) < IB_QPS_RTS &&
	       param->ird <= dev->set.rd_in && param->ord <= dev->set.rd_out &&
	       param->private_data_len <= U8_MAX ? qp : NULL;
}

/*
 * Depths of an event, of which the device answers @in Reads of the peer and begins @out. The
 * core hands ird on as the depth of the initiator, so cxgb4 and we exchange the two.
 */
static void tell_depths(struct iw_cm_event *event, u32 how, u32 in, u32 out)
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

static void tell_asked(struct iw_cm_event *event, const struct kdhca_set *set, u32 ird, u32 ord)
{
	event->ird = set->req_depths ? set->rd_in : ird;
	event->ord = set->req_depths == 2 ? 0 : set->req_depths ? set->rd_out : ord;
}

/* -ECONNREFUSED: nobody listens, or has room for a request. */
int kdhca_iw_connect(struct iw_cm_id *cm_id, struct iw_cm_conn_param *param)
{
	struct iw_cm_event event = {
		.event = IW_CM_EVENT_CONNECT_REQUEST,
		.local_addr = cm_id->remote_addr,
		.remote_addr = cm_id->local_addr,
		.private_data = (void *)param->private_data,
		.private_data_len = param->private_data_len,
	};
	struct kdhca_conn *conn = kzalloc(sizeof(*conn), GFP_KERNEL);
	bool silent = !anybody(&cm_id->remote_addr);
	struct iw_cm_id *listener;
	struct kdhca_qp *qp;
	int ret = -EINVAL;

	if (!conn)
		return -ENOMEM;
	conn->ird = param->ird;
	conn->ord = param->ord;
	mutex_lock(&kdhca_cm_mutex);
	qp = find_qp(cm_id, param);
	if (!qp)
		goto err;
	ret = -ECONNREFUSED;
	listener = find_listener(cm_id);
	if (!listener && !silent)
		goto err;
	ret = xa_alloc_cyclic(&conns, &conn->id, conn, xa_limit_31b, &next_conn, GFP_KERNEL);
	if (ret < 0)
		goto err;
	event.provider_data = (void *)(unsigned long)conn->id;
	tell_asked(&event, &to_dev(cm_id->device)->set, param->ird, param->ord);
	if (silent) {
		conn->deadline = (jiffies + SILENCE) | 1;
		queue_delayed_work(kdhca_wq, &silence_work, SILENCE);
	} else if (listener->event_handler(listener, &event)) {
		xa_erase(&conns, conn->id);
		ret = -ECONNREFUSED;
		goto err;
	}
	side_set(&conn->active, conn, cm_id, qp);
	mutex_unlock(&kdhca_cm_mutex);
	return 0;
err:
	mutex_unlock(&kdhca_cm_mutex);
	kfree(conn);
	return ret;
}

static struct kdhca_conn *find_request(struct iw_cm_id *cm_id)
{
	struct kdhca_conn *conn = xa_load(&conns, (unsigned long)cm_id->provider_data);

	return conn && !conn->passive.qp ? conn : NULL;
}

static void qp_live(struct kdhca_qp *qp, struct kdhca_qp *peer, u32 ird, u32 ord)
{
	mutex_lock(&qp->rx);
	qp->attr.dest_qp_num = peer->ibqp.qp_num;
	qp->attr.max_dest_rd_atomic = ird;
	qp->attr.max_rd_atomic = ord;
	WRITE_ONCE(qp->state, IB_QPS_RTS);
	mutex_unlock(&qp->rx);
}

/* -ECONNRESET: the one who asked has gone. */
int kdhca_iw_accept(struct iw_cm_id *cm_id, struct iw_cm_conn_param *param)
{
	const struct kdhca_set *set = &to_dev(cm_id->device)->set;
	bool agree = set->negotiate;
	struct iw_cm_event event = {};
	struct kdhca_qp *qp, *peer;
	struct kdhca_conn *conn;
	int ret = -ECONNRESET;

	mutex_lock(&kdhca_cm_mutex);
	conn = find_request(cm_id);
	if (!conn)
		goto out;
	qp = find_qp(cm_id, param);
	if (!qp) {
		conn_refuse(conn, -ECONNRESET, NULL, 0);
		ret = -EINVAL;
		goto out;
	}
	ret = 0;
	peer = conn->active.qp;
	side_set(&conn->passive, conn, cm_id, qp);
	qp_live(qp, peer, param->ird, agree ? min(param->ord, conn->ird) : param->ord);
	qp_live(peer, qp, conn->ird, agree ? min(conn->ord, param->ird) : conn->ord);
	event.event = IW_CM_EVENT_ESTABLISHED;
	tell_depths(&event, set->rep_depths, min(param->ird, conn->ord),
		    min(param->ord, conn->ird));
	side_tell(&conn->passive, event);
	event = (struct iw_cm_event){
		.event = IW_CM_EVENT_CONNECT_REPLY,
		.private_data = (void *)param->private_data,
		.private_data_len = param->private_data_len,
	};
	tell_depths(&event, set->rep_depths, min(conn->ird, param->ord),
		    min(conn->ord, param->ird));
	side_tell(&conn->active, event);
out:
	mutex_unlock(&kdhca_cm_mutex);
	return ret;
}

int kdhca_iw_reject(struct iw_cm_id *cm_id, const void *pdata, u8 len)
{
	struct kdhca_conn *conn;

	mutex_lock(&kdhca_cm_mutex);
	conn = find_request(cm_id);
	if (conn)
		conn_refuse(conn, -ECONNREFUSED, pdata, len);
	mutex_unlock(&kdhca_cm_mutex);
	return 0;
}

int kdhca_iw_create_listen(struct iw_cm_id *cm_id, int backlog)
{
	struct kdhca_listener *l = kzalloc(sizeof(*l), GFP_KERNEL);

	if (!l)
		return -ENOMEM;
	l->cm_id = cm_id;
	cm_id->add_ref(cm_id);
	cm_id->provider_data = l;
	mutex_lock(&kdhca_cm_mutex);
	list_add_tail(&l->node, &listeners);
	mutex_unlock(&kdhca_cm_mutex);
	return 0;
}

/*
 * Its requests may be with a consumer, who may still answer; or the manager drops them and
 * does not say so. Then whoever has asked waits until he ends his QP.
 */
int kdhca_iw_destroy_listen(struct iw_cm_id *cm_id)
{
	struct kdhca_listener *l = cm_id->provider_data;

	mutex_lock(&kdhca_cm_mutex);
	list_del(&l->node);
	mutex_unlock(&kdhca_cm_mutex);
	cm_id->rem_ref(cm_id);
	kfree(l);
	return 0;
}
