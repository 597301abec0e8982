// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The stable face for administrators and their scripts: generic netlink, described in
 * Documentation/netlink/specs/kdapl.yaml. debugfs has more, and may change.
 *
 * As in debugfs.c, a dump walks the table of handles under RCU and takes no lock, and what it says
 * of an object was not all read at the same moment.
 */
#include <net/genetlink.h>
#include <uapi/linux/kdapl.h>

#include "ia_api.h"

static struct genl_family kdapl_family;

static int nl_put_ia(struct sk_buff *skb, const struct kdapl_obj *obj)
{
	const struct kdapl_ia *ia = container_of(obj, struct kdapl_ia, obj);
	u32 state = READ_ONCE(ia->dead) ? KDAPL_IA_STATE_LOST :
		    READ_ONCE(ia->closing) ? KDAPL_IA_STATE_CLOSING : KDAPL_IA_STATE_OPEN;

	return nla_put_u32(skb, KDAPL_A_IA_ID, kdapl_id(obj->handle)) ?:
	       nla_put_string(skb, KDAPL_A_IA_NAME, ia->name) ?:
	       nla_put_string(skb, KDAPL_A_IA_DEVICE, ia->dev->name) ?:
	       nla_put_u32(skb, KDAPL_A_IA_PORT, ia->port) ?:
	       nla_put_u32(skb, KDAPL_A_IA_STATE, state) ?:
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

static int nl_put_counts(struct sk_buff *skb, const struct kdapl_conn *conn)
{
	const struct kdapl_wq *sq = conn->sq, *rq = conn->rq;

	return nla_put_u32(skb, KDAPL_A_CONN_REQUESTS, kdapl_seen(sq->dtos)) ?:
	       nla_put_u32(skb, KDAPL_A_CONN_REQUESTS_DONE, kdapl_seen(sq->dtos_done)) ?:
	       nla_put_u32(skb, KDAPL_A_CONN_RECEIVES, kdapl_seen(rq->head)) ?:
	       nla_put_u32(skb, KDAPL_A_CONN_RECEIVES_DONE, kdapl_seen(rq->tail));
}

/* -ENODATA: an EP that has no connection. */
static int nl_put_conn(struct sk_buff *skb, const struct kdapl_obj *obj)
{
	const struct kdapl_ep *ep = container_of(obj, struct kdapl_ep, obj);
	const struct kdapl_conn *conn = rcu_dereference(ep->conn);
	u32 event = READ_ONCE(ep->last_event);
	const struct kdapl_ia *ia = obj->ia;
	unsigned int error;
	int ret;

	if (!conn)
		return -ENODATA;
	error = kdapl_conn_error(conn);
	ret = nla_put_u32(skb, KDAPL_A_CONN_ID, kdapl_id(obj->handle)) ?:
	      nla_put_u32(skb, KDAPL_A_CONN_IA_ID, kdapl_id(READ_ONCE(ia->obj.handle))) ?:
	      nla_put_string(skb, KDAPL_A_CONN_IA_NAME, ia->name) ?:
	      nla_put_string(skb, KDAPL_A_CONN_CONSUMER, ia->consumer) ?:
	      nla_put_string(skb, KDAPL_A_CONN_STATE,
			     kdat_ep_state_name(READ_ONCE(ep->state))) ?:
	      nla_put_u32(skb, KDAPL_A_CONN_QPN, conn->qpn) ?:
	      nl_put_peer(skb, &conn->remote);
	if (!ret && kdapl_seen(conn->passive))
		ret = nla_put_flag(skb, KDAPL_A_CONN_PASSIVE);
	if (!ret && event)
		ret = nla_put_string(skb, KDAPL_A_CONN_LAST_EVENT, kdat_event_name(event));
	if (!ret && error)
		ret = nla_put_string(skb, KDAPL_A_CONN_ERROR, kdat_dto_status_name(error));
	return ret ?: nl_put_counts(skb, conn);
}

/* One message for each object of a kind, from index cb->args[0] on, until the buffer is full. */
static int nl_dump(struct sk_buff *skb, struct netlink_callback *cb, u8 cmd, u8 type,
		   int (*put)(struct sk_buff *skb, const struct kdapl_obj *obj))
{
	unsigned long index = cb->args[0];
	struct kdapl_obj *obj;
	int ret = 0;
	void *hdr;

	rcu_read_lock();
	for (; (obj = kdapl_handle_next(&index)); index++) {
		/* the handle is in the table a moment before it is in the object */
		if (obj->type != type || !READ_ONCE(obj->handle))
			continue;
		hdr = genlmsg_put(skb, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
				  &kdapl_family, NLM_F_MULTI, cmd);
		if (!hdr) {
			ret = -EMSGSIZE;
			break;
		}
		ret = put(skb, obj);
		if (!ret) {
			genlmsg_end(skb, hdr);
			continue;
		}
		genlmsg_cancel(skb, hdr);
		if (ret != -ENODATA)
			break;
		ret = 0;
	}
	rcu_read_unlock();
	cb->args[0] = index;
	return skb->len ?: ret;
}

static int nl_ia_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	return nl_dump(skb, cb, KDAPL_CMD_IA_GET, DAT_HANDLE_TYPE_IA, nl_put_ia);
}

static int nl_conn_dump(struct sk_buff *skb, struct netlink_callback *cb)
{
	return nl_dump(skb, cb, KDAPL_CMD_CONN_GET, DAT_HANDLE_TYPE_EP, nl_put_conn);
}

static int nl_conn_end(struct sk_buff *skb, struct genl_info *info)
{
	struct kdapl_conn *conn;
	struct kdapl_obj *obj;
	unsigned long index;
	struct kdapl_ep *ep;
	int ret = -ENOENT;
	u32 id, qpn;

	if (GENL_REQ_ATTR_CHECK(info, KDAPL_A_CONN_ID) ||
	    GENL_REQ_ATTR_CHECK(info, KDAPL_A_CONN_QPN))
		return -EINVAL;
	id = nla_get_u32(info->attrs[KDAPL_A_CONN_ID]);
	qpn = nla_get_u32(info->attrs[KDAPL_A_CONN_QPN]);
	index = id;
	rcu_read_lock();
	obj = kdapl_handle_next(&index);
	if (!obj || index != id || obj->type != DAT_HANDLE_TYPE_EP)
		goto out;
	ep = container_of(obj, struct kdapl_ep, obj);
	conn = rcu_dereference(ep->conn);
	if (!conn || conn->qpn != qpn)
		goto out;
	ret = -ENOTCONN;
	if (READ_ONCE(ep->state) != DAT_EP_STATE_CONNECTED)
		goto out;
	ret = -EALREADY;	/* it has another reason, which the log is to tell */
	if (kdapl_conn_stopping(conn) || kdapl_conn_spent(conn))
		goto out;
	WRITE_ONCE(conn->by_hand, true);
	kdapl_conn_end(conn, DAT_CONNECTION_EVENT_BROKEN);
	ret = 0;
out:
	rcu_read_unlock();
	return ret;
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
};

int kdapl_netlink_start(void)
{
	return genl_register_family(&kdapl_family);
}

void kdapl_netlink_stop(void)
{
	genl_unregister_family(&kdapl_family);
}
