// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Endpoints: the calls that connect them, and that set attributes of their connections.
 */
#include <linux/export.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "cm.h"

/**
 * struct connect_target - what a connecting call asks for
 * @addr: peer
 * @port: its listener's
 * @timeout: microseconds, or DAT_TIMEOUT_INFINITE
 * @pdata: private data for the request
 * @size: its size
 * @qos: quality of service; DAT_QOS_BEST_EFFORT: that of the EP's attributes
 */
struct connect_target {
	const struct sockaddr *addr;
	u16 port;
	DAT_TIMEOUT timeout;
	const void *pdata;
	DAT_COUNT size;
	DAT_QOS qos;
};

static bool connect_size_valid(struct kdapl_ep *ep, DAT_COUNT size)
{
	struct kdat_pdata_limits limits;

	kdapl_ia_pdata(ep->obj.ia, &limits);
	return size >= 0 && size <= limits.connect;
}

/* Check timeout and private data, which are arguments @arg to @arg + 2 of all connecting calls. */
static DAT_RETURN connect_check_request(struct kdapl_ep *ep, const struct connect_target *to,
					int arg)
{
	if (!to->timeout)
		return kdapl_arg_err(arg);
	if (!connect_size_valid(ep, to->size))
		return kdapl_arg_err(arg + 1);
	if (to->size && !to->pdata)
		return kdapl_arg_err(arg + 2);
	return DAT_SUCCESS;
}

/*
 * The type of service that stands for a quality of service: the DSCP of the class of that name in
 * RFC 4594; for economy that of RFC 8622, for premium that of RFC 2638 (D-106).
 */
static DAT_COUNT connect_tos(DAT_QOS qos)
{
	switch (qos) {
	case DAT_QOS_HIGH_THROUGHPUT:
		return 0x28;	/* AF11 */
	case DAT_QOS_LOW_LATENCY:
		return 0x48;	/* AF21 */
	case DAT_QOS_ECONOMY:
		return 0x04;	/* LE */
	case DAT_QOS_PREMIUM:
		return 0xb8;	/* EF */
	default:
		return KDAT_CONN_DEFAULT;
	}
}

/*
 * Move the EP to ACTIVE_CONNECTION_PENDING. -ENXIO: it has no QP, for lack of a PZ; other errnos
 * and @state: see kdapl_ep_may(). ep->mutex held.
 */
static int connect_begin(struct kdapl_ep *ep, DAT_EP_STATE *state)
{
	int ret;

	spin_lock_irq(&ep->lock);
	ret = kdapl_ep_may(ep, KDAPL_IN_CONNECT, state);
	if (!ret && !kdapl_ep_conn(ep))
		ret = -ENXIO;
	if (!ret)
		kdapl_ep_step(ep, KDAPL_IN_CONNECT);
	spin_unlock_irq(&ep->lock);
	return ret;
}

/* Send the request, with its private data. ep->mutex held. */
static int connect_send(struct kdapl_ep *ep, const struct connect_target *to)
{
	struct kdapl_conn *conn = kdapl_ep_conn(ep);
	unsigned int noio;
	int ret = -ENOMEM;

	/* storage consumers reconnect under writeback (D-32) */
	noio = memalloc_noio_save();
	kfree(conn->connect_pdata);
	conn->connect_pdata = to->size ? kmemdup(to->pdata, to->size, GFP_KERNEL) : NULL;
	conn->connect_pdata_len = to->size;
	if (!to->size || conn->connect_pdata)
		ret = kdapl_cm_connect(conn, to->addr, to->port, to->timeout,
				       connect_tos(to->qos ?: ep->conf.attr.qos));
	memalloc_noio_restore(noio);
	return ret;
}

/* Start an attempt; after an error the EP is as it was. ep->mutex held. */
static int connect_start(struct kdapl_ep *ep, const struct connect_target *to, DAT_EP_STATE *state)
{
	int ret, old;

	ret = connect_begin(ep, state);
	if (ret)
		return ret;
	ret = connect_send(ep, to);
	if (!ret)
		return 0;
	spin_lock_irq(&ep->lock);
	old = kdapl_ep_step(ep, KDAPL_IN_UNDO);
	spin_unlock_irq(&ep->lock);
	/* if dat_ep_disconnect() was faster, there is an attempt, and an event reports its end */
	return old == KDAPL_EP_NO_STEP ? 0 : ret;
}

/* What starting an attempt returns; @state: see kdapl_ep_may(). */
static DAT_RETURN connect_ret(int err, DAT_EP_STATE state)
{
	switch (err) {
	case -EBADF:
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	case -EBADFD:
		return kdapl_state_err(state);
	case -ENXIO:
		return kdapl_err(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_NOTREADY);
	default:
		return kdapl_errno_ret(err);
	}
}

/* What all connecting calls do after they have checked their arguments. */
static DAT_RETURN connect_to(struct kdapl_ep *ep, const struct connect_target *to)
{
	DAT_EP_STATE state = DAT_EP_STATE_UNCONNECTED;
	DAT_RETURN ret;
	int err;

	if (!kdapl_dev_enter(ep->obj.ia->dev))
		return kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	mutex_lock(&ep->mutex);
	if (ep->connect_evd) {
		err = connect_start(ep, to, &state);
		ret = connect_ret(err, state);
	} else {	/* it was there when the arguments were checked without the mutex */
		ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CONN);
	}
	mutex_unlock(&ep->mutex);
	kdapl_dev_exit(ep->obj.ia->dev);
	return ret;
}

/* Check the arguments of dat_ep_connect(). */
static DAT_RETURN connect_check(struct kdapl_ep *ep, const struct connect_target *to,
				DAT_CONN_QUAL conn_qual, DAT_CONNECT_FLAGS flags)
{
	int qos = kdapl_qos_check(ep->obj.ia->dev, to->qos);
	DAT_RETURN ret;

	if (!ep->connect_evd)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CONN);
	if (!to->addr)
		return kdapl_arg_err(2);
	if (!conn_qual || conn_qual > U16_MAX)
		return kdapl_arg_err(3);
	ret = connect_check_request(ep, to, 4);
	if (ret != DAT_SUCCESS)
		return ret;
	if (qos == -EINVAL)
		return kdapl_arg_err(7);
	if (flags & ~(DAT_CONNECT_MULTIPATH_REQUESTED_FLAG | DAT_CONNECT_MULTIPATH_REQUIRED_FLAG))
		return kdapl_arg_err(8);
	ret = kdapl_addr_ret(kdapl_addr_check(to->addr));
	if (ret != DAT_SUCCESS)
		return ret;
	if (qos || (flags & DAT_CONNECT_MULTIPATH_REQUIRED_FLAG))
		return kdapl_err(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	return DAT_SUCCESS;
}

/**
 * dat_ep_connect - connect to a listening peer
 * @ep_handle: EP in UNCONNECTED, with PZ and connect EVD
 * @remote_ia_address: IPv4 or IPv6 address; the IA must have an address of that family
 * @remote_conn_qual: port, 1 to 65535
 * @timeout: microseconds, or DAT_TIMEOUT_INFINITE; never expires early
 * @private_data_size: bytes for the peer's CR, at most max_private_data_size, see
 *	also kdat_ia_pdata_limits()
 * @private_data: copied during the call
 * @quality_of_service: one of dat_qos_supported of the provider attributes, for this
 *	connection; DAT_QOS_BEST_EFFORT: what the attributes of the EP say. A type of
 *	service set by kdat_ep_modify_conn() takes precedence
 * @connect_flags: DAT_CONNECT_DEFAULT_FLAG; multiple paths are ignored if
 *	requested, and refused if required
 *
 * After success the EP is in ACTIVE_CONNECTION_PENDING, and exactly one event on its
 * connect EVD tells the outcome: ESTABLISHED, PEER_REJECTED, NON_PEER_REJECTED,
 * UNREACHABLE, TIMED_OUT, DISCONNECTED if it was aborted, or BROKEN if the device goes.
 *
 * Context: may sleep; legal in upcalls that run in process context.
 * Return: DAT_SUCCESS (the attempt is under way, and an event will report its outcome);
 * DAT_INVALID_HANDLE (EP, EVD_CONN: it has none);
 * DAT_INVALID_PARAMETER (NULL address, port, timeout 0, private data, quality of
 * service, flags); DAT_INVALID_ADDRESS (MALFORMED: not the address of a host;
 * UNSUPPORTED: the IA has no address of that family; UNREACHABLE: the IA has none
 * at all, or IPv6 finds no route); DAT_MODEL_NOT_SUPPORTED (QoS that the
 * device does not have, or more than one; multipath);
 * DAT_INVALID_STATE (subtype its state, or EP_NOTREADY without a PZ);
 * DAT_INSUFFICIENT_RESOURCES (MEMORY; DEVICE); DAT_INTERNAL_ERROR (device
 * removed). After an error the EP is as it was.
 */
DAT_RETURN dat_ep_connect(DAT_EP_HANDLE ep_handle, DAT_IA_ADDRESS_PTR remote_ia_address,
			  DAT_CONN_QUAL remote_conn_qual, DAT_TIMEOUT timeout,
			  DAT_COUNT private_data_size, const DAT_PVOID private_data,
			  DAT_QOS quality_of_service, DAT_CONNECT_FLAGS connect_flags)
{
	struct kdapl_ep *ep = kdapl_obj_get(ep_handle, DAT_HANDLE_TYPE_EP);
	const struct connect_target to = {
		.addr = remote_ia_address,
		.port = remote_conn_qual,
		.timeout = timeout,
		.pdata = private_data,
		.size = private_data_size,
		.qos = quality_of_service,
	};
	DAT_RETURN ret;

	if (!ep)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	ret = connect_check(ep, &to, remote_conn_qual, connect_flags);
	if (ret == DAT_SUCCESS)
		ret = connect_to(ep, &to);
	kdapl_obj_put(&ep->obj);
	return ret;
}
EXPORT_SYMBOL(dat_ep_connect);

/* The state of an EP and, if that is CONNECTED, its peer. */
static DAT_EP_STATE connect_get_peer(struct kdapl_ep *ep, struct sockaddr_storage *peer)
{
	struct kdapl_conn *conn;
	DAT_EP_STATE state;

	spin_lock_irq(&ep->lock);
	conn = rcu_dereference_protected(ep->conn, lockdep_is_held(&ep->lock));
	state = ep->state;
	if (state == DAT_EP_STATE_CONNECTED)
		*peer = conn->remote;
	spin_unlock_irq(&ep->lock);
	return state;
}

/**
 * dat_ep_dup_connect - connect to the peer of another EP
 * @ep_handle: EP in UNCONNECTED, with PZ and connect EVD
 * @ep_dup_handle: EP of the same IA instance in CONNECTED, which stays as it is. It
 *	should be the side that connected: the port of a peer that connected has no
 *	listener
 * @timeout: as for dat_ep_connect()
 * @private_data_size: as for dat_ep_connect()
 * @private_data: as for dat_ep_connect()
 * @quality_of_service: as for dat_ep_connect()
 *
 * As dat_ep_connect() to the address and port of that peer.
 *
 * Context: may sleep; legal in upcalls that run in process context.
 * Return: as dat_ep_connect(); DAT_INVALID_HANDLE (EP: either of them, or of
 * different IA instances); DAT_INVALID_STATE (subtype that of @ep_dup_handle: it
 * is not connected).
 */
DAT_RETURN dat_ep_dup_connect(DAT_EP_HANDLE ep_handle, DAT_EP_HANDLE ep_dup_handle,
			      DAT_TIMEOUT timeout, DAT_COUNT private_data_size,
			      const DAT_PVOID private_data, DAT_QOS quality_of_service)
{
	struct kdapl_ep *ep = kdapl_obj_get(ep_handle, DAT_HANDLE_TYPE_EP);
	struct kdapl_ep *dup = kdapl_obj_get(ep_dup_handle, DAT_HANDLE_TYPE_EP);
	struct sockaddr_storage peer;
	struct connect_target to = {
		.addr = (struct sockaddr *)&peer,
		.timeout = timeout,
		.pdata = private_data,
		.size = private_data_size,
		.qos = quality_of_service,
	};
	DAT_EP_STATE state;
	DAT_RETURN ret;
	int qos;

	ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (!ep || !dup || ep->obj.ia != dup->obj.ia)
		goto out;
	ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CONN);
	if (!ep->connect_evd)
		goto out;
	ret = connect_check_request(ep, &to, 3);
	if (ret != DAT_SUCCESS)
		goto out;
	qos = kdapl_qos_check(ep->obj.ia->dev, to.qos);
	ret = kdapl_arg_err(6);
	if (qos == -EINVAL)
		goto out;
	ret = kdapl_err(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	if (qos)
		goto out;
	ret = kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	if (READ_ONCE(ep->obj.ia->dead))
		goto out;
	state = connect_get_peer(dup, &peer);
	ret = kdapl_state_err(state);
	if (state != DAT_EP_STATE_CONNECTED)
		goto out;
	to.port = kdapl_addr_port(&peer);
	ret = connect_to(ep, &to);
out:
	kdapl_obj_put(dup ? &dup->obj : NULL);
	kdapl_obj_put(ep ? &ep->obj : NULL);
	return ret;
}
EXPORT_SYMBOL(dat_ep_dup_connect);

/**
 * dat_ep_common_connect - connect to a socket address
 * @ep_handle: EP in UNCONNECTED, with PZ and connect EVD
 * @remote_ia_address: IPv4 or IPv6 address with the listener's port number, such
 *	as that of a CSP; of the domain of the EP's communicator, if dat_ep_modify()
 *	has set one
 * @timeout: as for dat_ep_connect()
 * @private_data_size: as for dat_ep_connect()
 * @private_data: as for dat_ep_connect()
 *
 * As dat_ep_connect() to the port in the address, with the quality of service of the EP's
 * attributes and a single path.
 *
 * Context: may sleep; legal in upcalls that run in process context.
 * Return: as dat_ep_connect(); DAT_INVALID_ADDRESS (MALFORMED: also without a
 * port number; UNSUPPORTED: also of a domain other than that of the communicator).
 */
DAT_RETURN dat_ep_common_connect(DAT_EP_HANDLE ep_handle, DAT_IA_ADDRESS_PTR remote_ia_address,
				 DAT_TIMEOUT timeout, DAT_COUNT private_data_size,
				 const DAT_PVOID private_data)
{
	struct kdapl_ep *ep = kdapl_obj_get(ep_handle, DAT_HANDLE_TYPE_EP);
	struct connect_target to = {
		.addr = remote_ia_address,
		.timeout = timeout,
		.pdata = private_data,
		.size = private_data_size,
	};
	DAT_RETURN ret;
	int domain;

	if (!ep)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CONN);
	if (!ep->connect_evd)
		goto out;
	ret = kdapl_arg_err(2);
	if (!to.addr)
		goto out;
	ret = connect_check_request(ep, &to, 3);
	if (ret != DAT_SUCCESS)
		goto out;
	ret = kdapl_addr_ret(kdapl_addr_check(to.addr));
	if (ret != DAT_SUCCESS)
		goto out;
	to.port = kdapl_addr_port((const struct sockaddr_storage *)to.addr);
	ret = kdapl_err(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED);
	if (!to.port)
		goto out;
	domain = READ_ONCE(ep->comm.domain);
	ret = kdapl_err(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED);
	if (!domain || domain == to.addr->sa_family)
		ret = connect_to(ep, &to);
out:
	kdapl_obj_put(&ep->obj);
	return ret;
}
EXPORT_SYMBOL(dat_ep_common_connect);

static bool connect_in_range(DAT_COUNT value, DAT_COUNT min, DAT_COUNT max)
{
	return value == KDAT_CONN_DEFAULT || (value >= min && value <= max);
}

static bool connect_attr_valid(const struct kdat_conn_attr *attr)
{
	return connect_in_range(attr->tos, 0, U8_MAX) &&
	       connect_in_range(attr->ack_timeout, 1, 31) &&
	       connect_in_range(attr->retry_count, 0, 7) &&
	       connect_in_range(attr->rnr_retry_count, 0, 7) &&
	       connect_in_range(attr->min_rnr_timer, 0, 31);
}

/*
 * May an attribute of the connections to come change in this state? DAT_SUCCESS, or why not.
 * ep->lock held.
 */
static DAT_RETURN connect_may_change(const struct kdapl_ep *ep)
{
	if (READ_ONCE(ep->obj.ia->dead))
		return kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	if (kdapl_ep_fields(ep->state) & DAT_EP_FIELD_EP_ATTR_QOS)
		return DAT_SUCCESS;
	return kdapl_state_err(ep->state);
}

/**
 * kdat_ep_modify_conn - set network parameters of the connections of an EP
 * @ep_handle: EP in UNCONNECTED, RESERVED, PASSIVE_ or
 *	TENTATIVE_CONNECTION_PENDING
 * @attr: all parameters; KDAT_CONN_DEFAULT in a member leaves it to the provider
 *
 * Applies to this connection and all after it. An extension of this provider.
 *
 * Context: any.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE; DAT_INVALID_PARAMETER (NULL, or a value
 * out of range); DAT_INVALID_STATE (subtype its state); DAT_INTERNAL_ERROR
 * (device removed).
 */
DAT_RETURN kdat_ep_modify_conn(DAT_EP_HANDLE ep_handle, const struct kdat_conn_attr *attr)
{
	struct kdapl_ep *ep = kdapl_obj_get(ep_handle, DAT_HANDLE_TYPE_EP);
	unsigned long flags;
	DAT_RETURN ret;

	if (!ep)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (attr && connect_attr_valid(attr)) {
		spin_lock_irqsave(&ep->lock, flags);
		ret = connect_may_change(ep);
		if (ret == DAT_SUCCESS)
			ep->net_attr = *attr;
		spin_unlock_irqrestore(&ep->lock, flags);
	} else {
		ret = kdapl_arg_err(2);
	}
	kdapl_obj_put(&ep->obj);
	return ret;
}
EXPORT_SYMBOL(kdat_ep_modify_conn);

/**
 * kdat_ep_query_conn - read what kdat_ep_modify_conn() has set
 * @ep_handle: EP in any state
 * @attr: filled entirely
 *
 * A member that was never set is KDAT_CONN_DEFAULT, not the value that the provider
 * chooses for it. An extension of this provider.
 *
 * Context: any.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE; DAT_INVALID_PARAMETER (NULL @attr).
 */
DAT_RETURN kdat_ep_query_conn(DAT_EP_HANDLE ep_handle, struct kdat_conn_attr *attr)
{
	struct kdapl_ep *ep = kdapl_obj_get(ep_handle, DAT_HANDLE_TYPE_EP);
	DAT_RETURN ret = DAT_SUCCESS;
	unsigned long flags;

	if (!ep)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (attr) {
		spin_lock_irqsave(&ep->lock, flags);
		*attr = ep->net_attr;
		spin_unlock_irqrestore(&ep->lock, flags);
	} else {
		ret = kdapl_arg_err(2);
	}
	kdapl_obj_put(&ep->obj);
	return ret;
}
EXPORT_SYMBOL(kdat_ep_query_conn);

/**
 * kdat_ep_serialise_posts - promise that the requests of an EP are posted one at a time
 * @ep_handle: EP in UNCONNECTED, RESERVED, PASSIVE_ or
 *	TENTATIVE_CONNECTION_PENDING
 * @serial: DAT_TRUE: the consumer promises; DAT_FALSE: it does not, which is the default
 *
 * The promise covers the calls that post a request on this EP, and dat_ep_disconnect() with
 * DAT_CLOSE_GRACEFUL_FLAG: each has returned before the consumer makes the next one, on
 * whatever CPU, in upcalls and interrupts as well. For example, the consumer holds a lock of
 * its own, or only one of its threads posts. Posting then takes no lock here. A broken
 * promise can corrupt the queue of the EP and the data it transfers.
 *
 * The calls that post requests are dat_ep_post_send(), dat_ep_post_send_with_invalidate(),
 * dat_ep_post_rdma_read(), dat_ep_post_rdma_read_to_rmr(), dat_ep_post_rdma_write(),
 * dat_rmr_bind(), dat_lmr_fmr(), dat_lmr_invalidate() and the extensions that do the same.
 * Receives may be posted, and all other calls made, at any time.
 *
 * Applies to this connection and all after it. If the provider has to post requests of its
 * own between those of the consumer (soft-iWARP), the promise is accepted but not used.
 *
 * An extension of this provider.
 *
 * Context: any.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE; DAT_INVALID_STATE (subtype its state);
 * DAT_INTERNAL_ERROR (device removed).
 */
DAT_RETURN kdat_ep_serialise_posts(DAT_EP_HANDLE ep_handle, DAT_BOOLEAN serial)
{
	struct kdapl_ep *ep = kdapl_obj_get(ep_handle, DAT_HANDLE_TYPE_EP);
	unsigned long flags;
	DAT_RETURN ret;

	if (!ep)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	spin_lock_irqsave(&ep->lock, flags);
	ret = connect_may_change(ep);
	if (ret == DAT_SUCCESS)
		ep->serial = serial;
	spin_unlock_irqrestore(&ep->lock, flags);
	kdapl_obj_put(&ep->obj);
	return ret;
}
EXPORT_SYMBOL(kdat_ep_serialise_posts);
