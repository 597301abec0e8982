// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The stable interface for administrators and their scripts: generic netlink, described in
 * Documentation/netlink/specs/kdapl.yaml. debugfs has more, and may change.
 *
 * As in debugfs.c, a dump walks the table of handles under RCU and takes no lock. The values of an
 * object were not all read at the same moment.
 */
#include <net/genetlink.h>

#include "ia_api.h"

#define NL_SLICE	1024	/* entries of the table in one RCU read side section */

static struct genl_family kdapl_family;

static int nl_put_ia(struct sk_buff *skb, const struct kdapl_obj *obj)
{
	const struct kdapl_ia *ia = container_of(obj, struct kdapl_ia, obj);
	char device[IB_DEVICE_NAME_MAX];

	/* a copy keeps its length if the device is renamed now */
	kdapl_seen(strscpy(device, ia->dev->name, sizeof(device)));
	return nla_put_u32(skb, KDAPL_A_IA_ID, kdapl_id(obj->handle)) ?:
	       nla_put_string(skb, KDAPL_A_IA_NAME, ia->name) ?:
	       nla_put_string(skb, KDAPL_A_IA_DEVICE, device) ?:
	       nla_put_u32(skb, KDAPL_A_IA_PORT, ia->port) ?:
	       nla_put_u32(skb, KDAPL_A_IA_STATE, kdapl_ia_state(ia)) ?:
	       nla_put_string(skb, KDAPL_A_IA_CONSUMER, ia->consumer);
}

static int nl_put_peer(struct sk_buff *skb, const struct sockaddr_storage *peer)
{
	const struct sockaddr_in6 *v6 = (const void *)peer;
	const struct sockaddr_in *v4 = (const void *)peer;

	if (peer->ss_family == AF_INET)
		return nla_put_in_addr(skb, KDAPL_A_CONN_PEER, v4->sin_addr.s_addr) ?:
		       nla_put_be16(skb, KDAPL_A_CONN_PEER_PORT, v4->sin_port);
	if (peer->ss_family == AF_INET6)
		return nla_put_in6_addr(skb, KDAPL_A_CONN_PEER, &v6->sin6_addr) ?:
		       nla_put_be16(skb, KDAPL_A_CONN_PEER_PORT, v6->sin6_port);
	return 0;
}

/* These are of type uint, so a later version may use 64 bits. */
static int nl_put_counts(struct sk_buff *skb, const struct kdapl_conn *conn)
{
	const struct kdapl_wq *sq = conn->sq, *rq = conn->rq;

	return nla_put_u32(skb, KDAPL_A_CONN_REQUESTS, kdapl_seen(sq->dtos)) ?:
	       nla_put_u32(skb, KDAPL_A_CONN_REQUESTS_DONE, kdapl_seen(sq->dtos_done)) ?:
	       nla_put_u32(skb, KDAPL_A_CONN_RECEIVES, kdapl_seen(rq->head)) ?:
	       nla_put_u32(skb, KDAPL_A_CONN_RECEIVES_DONE, kdapl_seen(rq->tail));
}

/* -ENODATA: an EP that was not connected since it was made, or reset. */
static int nl_put_conn(struct sk_buff *skb, const struct kdapl_obj *obj)
{
	const struct kdapl_ep *ep = container_of(obj, struct kdapl_ep, obj);
	const struct kdapl_conn *conn = rcu_dereference(ep->conn);
	const struct kdapl_ia *ia = obj->ia;
	struct sockaddr_storage peer;
	unsigned int error;
	u32 event;
	int ret;

	if (!conn)
		return -ENODATA;
	peer = kdapl_seen(conn->remote);
	if (!peer.ss_family)
		return -ENODATA;
	event = READ_ONCE(conn->last_event);
	error = kdapl_conn_error(conn);
	ret = nla_put_u32(skb, KDAPL_A_CONN_ID, kdapl_id(obj->handle)) ?:
	      nla_put_u32(skb, KDAPL_A_CONN_IA_ID, kdapl_id(READ_ONCE(ia->obj.handle))) ?:
	      nla_put_string(skb, KDAPL_A_CONN_IA_NAME, ia->name) ?:
	      nla_put_string(skb, KDAPL_A_CONN_CONSUMER, ia->consumer) ?:
	      nla_put_string(skb, KDAPL_A_CONN_STATE,
			     kdat_ep_state_name(READ_ONCE(ep->state))) ?:
	      nla_put_u32(skb, KDAPL_A_CONN_QPN, conn->qpn) ?:
	      nl_put_peer(skb, &peer);
	if (!ret && kdapl_seen(conn->passive))
		ret = nla_put_flag(skb, KDAPL_A_CONN_PASSIVE);
	if (!ret && event)
		ret = nla_put_string(skb, KDAPL_A_CONN_LAST_EVENT, kdat_event_name(event));
	if (!ret && error)
		ret = nla_put_string(skb, KDAPL_A_CONN_ERROR, kdat_dto_status_name(error));
	return ret ?: nl_put_counts(skb, conn);
}

/* The kind of objects that a dump reports. */
struct nl_kind {
	u8 cmd;
	u8 type;
	int (*put)(struct sk_buff *skb, const struct kdapl_obj *obj);
};

/*
 * One message for each object in the next NL_SLICE entries. 1: there may be more; 0: there are no
 * more; -EMSGSIZE: the buffer is full, go on at *@index with the next one.
 */
static int nl_dump_slice(struct sk_buff *skb, struct netlink_callback *cb,
			 const struct nl_kind *kind, unsigned long *index)
{
	unsigned long end = *index + NL_SLICE;
	struct kdapl_obj *obj;
	int ret = 0;
	void *hdr;

	rcu_read_lock();
	for (; (obj = kdapl_handle_next(index, end)); ++*index) {
		/* the handle is in the table a moment before it is in the object */
		if (obj->type != kind->type || !READ_ONCE(obj->handle))
			continue;
		hdr = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
				  &kdapl_family, NLM_F_MULTI, kind->cmd);
		ret = hdr ? kind->put(skb, obj) : -EMSGSIZE;
		if (!ret) {
			genlmsg_end(skb, hdr);
			continue;
		}
		if (hdr)
			genlmsg_cancel(skb, hdr);
		if (ret != -ENODATA)
			break;
		ret = 0;
	}
	rcu_read_unlock();
	return ret ?: *index == end;
}

/* The next buffer of a dump; its place in the table is cb->args[0]. An empty one is its end. */
static int nl_dump(struct sk_buff *skb, struct netlink_callback *cb, const struct nl_kind *kind)
{
	unsigned long index = cb->args[0];
	int ret;

	do {
		ret = nl_dump_slice(skb, cb, kind, &index);
		cond_resched();
	} while (ret > 0 && !skb->len);
	cb->args[0] = index;
	return skb->len ?: ret;
}

static int nl_ia_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	static const struct nl_kind ias = { KDAPL_CMD_IA_GET, DAT_HANDLE_TYPE_IA, nl_put_ia };

	return nl_dump(skb, cb, &ias);
}

static int nl_conn_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	static const struct nl_kind conns = {
		KDAPL_CMD_CONN_GET, DAT_HANDLE_TYPE_EP, nl_put_conn
	};

	return nl_dump(skb, cb, &conns);
}

/* The connection with this id and QP. Inside rcu_read_lock(). */
static struct kdapl_conn *nl_find(u32 id, u32 qpn, struct netlink_ext_ack *extack)
{
	unsigned long index = id;
	struct kdapl_obj *obj = kdapl_handle_next(&index, index + 1);
	struct kdapl_conn *conn = NULL;

	if (obj && obj->type == DAT_HANDLE_TYPE_EP)
		conn = rcu_dereference(container_of(obj, struct kdapl_ep, obj)->conn);
	if (!conn)
		NL_SET_ERR_MSG(extack, "no connection has this id");
	else if (conn->qpn != qpn)
		NL_SET_ERR_MSG(extack, "this id has another queue pair by now");
	return conn && conn->qpn == qpn ? conn : NULL;
}

/**
 * kdapl_end_by_hand - end a connection for the administrator
 * @id: its id
 * @qpn: number of its QP, since the id may be another connection's by now
 * @extack: says why not; may be NULL
 *
 * Its consumer sees it break. If it is being disconnected gracefully that is cut short instead, as
 * by an abrupt dat_ep_disconnect(), and the event is the DISCONNECTED that the consumer waits for.
 *
 * Context: any.
 * Return: 0; -ENOENT: there is no such connection; -ENOTCONN: it is not connected; -EALREADY: it
 * ends already.
 */
int kdapl_end_by_hand(u32 id, u32 qpn, struct netlink_ext_ack *extack)
{
	struct kdapl_conn *conn;
	int ret = 0, state;

	rcu_read_lock();
	conn = nl_find(id, qpn, extack);
	state = conn ? READ_ONCE(conn->ep->state) : 0;
	if (!conn) {
		ret = -ENOENT;
	} else if (state != DAT_EP_STATE_CONNECTED && state != DAT_EP_STATE_DISCONNECT_PENDING) {
		NL_SET_ERR_MSG(extack, "it is not connected");
		ret = -ENOTCONN;
	} else if (kdapl_conn_stopping(conn) || kdapl_conn_spent(conn)) {
		/* it has another reason, which the log reports */
		NL_SET_ERR_MSG(extack, "it is ending already");
		ret = -EALREADY;
	} else if (state == DAT_EP_STATE_CONNECTED) {
		WRITE_ONCE(conn->by_hand, true);
		kdapl_conn_end(conn, DAT_CONNECTION_EVENT_BROKEN);
	} else {
		kdapl_conn_end(conn, DAT_CONNECTION_EVENT_DISCONNECTED);
	}
	rcu_read_unlock();
	return ret;
}

static int nl_conn_end(struct sk_buff *skb, struct genl_info *info)
{
	if (GENL_REQ_ATTR_CHECK(info, KDAPL_A_CONN_ID) ||
	    GENL_REQ_ATTR_CHECK(info, KDAPL_A_CONN_QPN)) {
		GENL_SET_ERR_MSG(info, "id and qpn are needed");
		return -EINVAL;
	}
	return kdapl_end_by_hand(nla_get_u32(info->attrs[KDAPL_A_CONN_ID]),
				 nla_get_u32(info->attrs[KDAPL_A_CONN_QPN]), info->extack);
}

static const struct nla_policy nl_policy[] = {
	[KDAPL_A_CONN_ID]	= { .type = NLA_U32 },
	[KDAPL_A_CONN_QPN]	= { .type = NLA_U32 },
};

static const struct genl_ops nl_ops[] = {
	{ .cmd = KDAPL_CMD_IA_GET, .dumpit = nl_ia_dump },
	{ .cmd = KDAPL_CMD_CONN_GET, .dumpit = nl_conn_dump },
	{
		.cmd = KDAPL_CMD_CONN_END, .doit = nl_conn_end, .flags = GENL_ADMIN_PERM,
		.policy = nl_policy, .maxattr = ARRAY_SIZE(nl_policy) - 1,
	},
};

static struct genl_family kdapl_family __ro_after_init = {
	.name = KDAPL_FAMILY_NAME,
	.version = KDAPL_FAMILY_VERSION,
	.module = THIS_MODULE,
	.ops = nl_ops,
	.n_ops = ARRAY_SIZE(nl_ops),
	.resv_start_op = KDAPL_CMD_IA_GET,
	.parallel_ops = true,	/* nothing here needs the lock of all families */
};

int kdapl_netlink_start(void)
{
	return genl_register_family(&kdapl_family);
}

void kdapl_netlink_stop(void)
{
	genl_unregister_family(&kdapl_family);
}
