// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Interface Adapters: opened by a name, or by the destination that they reach.
 */
#include <linux/export.h>
#include <linux/sched/mm.h>
#include <net/ipv6.h>
#include <rdma/rdma_cm.h>

#include "ia_api.h"

/* The arguments that all calls here have, @arg being the position of the first. */
static DAT_RETURN open_check(DAT_COUNT qlen, const DAT_EVD_HANDLE *async,
			     const DAT_IA_HANDLE *ia_handle, int arg)
{
	if (!async)
		return kdapl_arg_err(arg + 1);
	if (!ia_handle)
		return kdapl_arg_err(arg + 2);
	if (*async == DAT_HANDLE_NULL && qlen <= 0)
		return kdapl_arg_err(arg);
	return DAT_SUCCESS;
}

/**
 * kdat_ia_openv - dat_ia_openv() for a consumer with a name
 * @provider: as in dat_ia_openv()
 * @asynch_evd_min_qlen: as in dat_ia_openv()
 * @asynch_evd_handle: as in dat_ia_openv()
 * @ia_handle: as in dat_ia_openv()
 * @dat_major: as in dat_ia_openv()
 * @dat_minor: as in dat_ia_openv()
 * @thread_safety: as in dat_ia_openv()
 * @consumer: name of the module; copied, up to MODULE_NAME_LEN, and kept until kdapl.ko is
 *	unloaded, so use a few fixed names only. NULL: kdapl
 *
 * The header turns dat_ia_openv() and dat_ia_open() into this call, with KBUILD_MODNAME.
 * `rdma resource show` shows the name with the protection domains, queues and connections of
 * the IA, as for other kernel consumers of verbs; debugfs has it, too.
 *
 * Context: may sleep; does not wait for RTNL.
 * Return: DAT_SUCCESS; DAT_INVALID_PARAMETER (name, length, NULL pointers);
 * DAT_INVALID_HANDLE (EVD_ASYNC: not such an EVD, or of another device or port);
 * DAT_PROVIDER_NOT_FOUND (subtype says what did not match);
 * DAT_INSUFFICIENT_RESOURCES (subtype TEVD: longer than max_evd_qlen; MEMORY).
 */
DAT_RETURN kdat_ia_openv(const DAT_NAME_PTR provider, DAT_COUNT asynch_evd_min_qlen,
			 DAT_EVD_HANDLE *asynch_evd_handle, DAT_IA_HANDLE *ia_handle,
			 DAT_UINT32 dat_major, DAT_UINT32 dat_minor, DAT_BOOLEAN thread_safety,
			 const char *consumer)
{
	struct kdapl_ia_open open = { .name = provider, .consumer = consumer };
	DAT_RETURN ret;

	if (!provider || strnlen(provider, DAT_NAME_MAX_LENGTH) == DAT_NAME_MAX_LENGTH)
		return kdapl_arg_err(1);
	ret = open_check(asynch_evd_min_qlen, asynch_evd_handle, ia_handle, 2);
	if (ret != DAT_SUCCESS)
		return ret;
	open.dev = kdapl_device_find(provider, &open.port, &open.pick);
	if (!open.dev)
		return kdapl_err(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	if (dat_major != DAT_VERSION_MAJOR)
		ret = kdapl_err(DAT_PROVIDER_NOT_FOUND, DAT_MAJOR_NOT_FOUND);
	else if (dat_minor > DAT_VERSION_MINOR)
		ret = kdapl_err(DAT_PROVIDER_NOT_FOUND, DAT_MINOR_NOT_FOUND);
	else if (thread_safety != DAT_TRUE && thread_safety != DAT_FALSE)
		ret = kdapl_err(DAT_PROVIDER_NOT_FOUND, DAT_THREAD_SAFETY_NOT_FOUND);
	else
		ret = kdapl_ia_open(&open, asynch_evd_min_qlen, asynch_evd_handle, ia_handle);
	kdapl_device_put(open.dev);
	return ret;
}
EXPORT_SYMBOL(kdat_ia_openv);

#undef dat_ia_openv

/**
 * dat_ia_openv - open an Interface Adapter
 * @provider: name of the IA, "<ibdev>-<port>" as dat_registry_list_providers()
 *	gives it; or the name of the RDMA device, for its first port; or that of
 *	a network device the port has, or an IPv4 or IPv6 address of one, in the
 *	caller's network namespace. Work items, kernel threads, and tasks without
 *	namespaces have the initial one. Connections then use addresses of that
 *	network device, or that address
 * @asynch_evd_min_qlen: length of the async EVD, if one is to be made
 * @asynch_evd_handle: in: an EVD with the ASYNC flag of another instance of the
 *	same IA, or DAT_HANDLE_NULL; out, for DAT_HANDLE_NULL: a new EVD with upcalls
 *	disabled, which is destroyed with the IA
 * @ia_handle: where the handle goes
 * @dat_major: DAT version of the consumer; dat_ia_open() fills this in
 * @dat_minor: the same
 * @thread_safety: DAT_TRUE or DAT_FALSE; calls are thread-safe with either
 *
 * dat_ia_open() is this call with the version and the thread safety of the
 * headers. Each call makes an instance with objects and keys of its own, which
 * cannot be used together with those of another instance. The instance holds a
 * reference to kdapl.ko until dat_ia_close(), even if the device is removed, but
 * none to the consumer's module, which must close it before it is unloaded.
 *
 * Context: may sleep; does not wait for RTNL.
 * Return: DAT_SUCCESS; DAT_INVALID_PARAMETER (name, length, NULL pointers);
 * DAT_INVALID_HANDLE (EVD_ASYNC: not such an EVD, or of another device or port);
 * DAT_PROVIDER_NOT_FOUND (subtype says what did not match);
 * DAT_INSUFFICIENT_RESOURCES (subtype TEVD: longer than max_evd_qlen; MEMORY).
 */
DAT_RETURN dat_ia_openv(const DAT_NAME_PTR provider, DAT_COUNT asynch_evd_min_qlen,
			DAT_EVD_HANDLE *asynch_evd_handle, DAT_IA_HANDLE *ia_handle,
			DAT_UINT32 dat_major, DAT_UINT32 dat_minor, DAT_BOOLEAN thread_safety)
{
	return kdat_ia_openv(provider, asynch_evd_min_qlen, asynch_evd_handle, ia_handle,
			     dat_major, dat_minor, thread_safety, NULL);
}
EXPORT_SYMBOL(dat_ia_openv);

/* The time limit of the connection manager for finding a route and a neighbour. */
#define OPEN_RESOLVE_MS		4000

/**
 * struct open_route - the connection manager's answer about a destination
 * @done: completed when the answer is there
 * @err: 0 or an errno
 */
struct open_route {
	struct completion done;
	int err;
};

static int open_cm_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct open_route *route = id->context;

	if (event->event != RDMA_CM_EVENT_ADDR_RESOLVED)
		route->err = event->status ?: -ENODEV;
	complete(&route->done);
	return 0;
}

struct open_find {
	const struct ib_device *ibdev;
	u32 port;
	char *name;
	struct kdapl_device *dev;
};

static int open_match(struct kdapl_device *dev, u32 port, void *arg)
{
	struct open_find *find = arg;

	if (dev->ibdev != find->ibdev || port != find->port)
		return 0;
	kdapl_device_id_made(dev);
	find->dev = dev;
	snprintf(find->name, DAT_NAME_MAX_LENGTH, "%s-%u", dev->name, port);
	return 1;
}

/**
 * kdapl_open_hold - have the removal of a device wait for the end of an id (D-82)
 * @id: id that rdma_resolve_addr() was called for
 * @name: out: the name of its IA
 *
 * Context: may sleep.
 * Return: its device, for kdapl_device_id_gone() when the id is destroyed; or NULL: it has none
 * that has IAs.
 */
struct kdapl_device *kdapl_open_hold(const struct rdma_cm_id *id, char *name)
{
	struct open_find find = { .ibdev = id->device, .port = id->port_num, .name = name };

	if (find.ibdev)
		kdapl_device_walk(open_match, &find);
	return find.dev;
}

/* The IA of a resolved id: its device, referenced, and the address that connections come from. */
static void open_take_route(const struct rdma_cm_id *id, struct net *net, struct kdapl_device *dev,
			    struct kdapl_ia_open *open)
{
	refcount_inc(&dev->ref);
	open->dev = dev;
	open->port = id->port_num;
	open->pick.kind = KDAPL_PICK_ADDRESS;
	open->pick.cookie = net->net_cookie;
	open->pick.addr = id->route.addr.src_addr;
	kdapl_addr_set_port(&open->pick.addr, 0);
}

/* Ask the connection manager which device leads to @dst. @name: room for the name of the IA. */
static int open_resolve(struct net *net, const struct sockaddr *dst, const struct sockaddr *src,
			struct kdapl_ia_open *open, char *name)
{
	struct sockaddr_storage from = {}, to = {};
	struct open_route route = {};
	struct kdapl_device *dev;
	struct rdma_cm_id *id;
	int err;

	init_completion(&route.done);
	memcpy(&to, dst, kdapl_addr_len(dst));
	if (src)
		memcpy(&from, src, kdapl_addr_len(src));
	id = rdma_create_id(net, open_cm_handler, &route, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	err = rdma_resolve_addr(id, src ? (struct sockaddr *)&from : NULL,
				(struct sockaddr *)&to, OPEN_RESOLVE_MS);
	if (!err) {
		/* always completed: by an address, an error, or removal of the device */
		wait_for_completion(&route.done);
		err = route.err;
	}
	dev = kdapl_open_hold(id, name);
	open->name = name;
	if (!err && dev)
		open_take_route(id, net, dev, open);
	else if (!err)
		err = -ENODEV;
	rdma_destroy_id(id);
	if (dev)
		kdapl_device_id_gone(dev);
	return err;
}

/* What finding no device means to the caller. */
static DAT_RETURN open_resolve_ret(int err)
{
	switch (err) {
	case -ENOMEM:
		return kdapl_errno_ret(err);
	case -ENODEV:
	case -EADDRNOTAVAIL:
		return kdapl_err(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	default:
		return kdapl_err(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE);
	}
}

/* Does a link-local address lack the interface? The connection manager would take any. */
static bool open_lacks_scope(const struct sockaddr *addr)
{
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)addr;

	return addr->sa_family == AF_INET6 && !in6->sin6_scope_id &&
	       ipv6_addr_type(&in6->sin6_addr) & IPV6_ADDR_LINKLOCAL;
}

/* Check the addresses of kdat_ia_open_to(). */
static DAT_RETURN open_check_addr(struct net *net, const struct sockaddr *dst,
				  const struct sockaddr *src)
{
	DAT_RETURN ret;

	if (!net)
		return kdapl_arg_err(1);
	if (!dst)
		return kdapl_arg_err(2);
	ret = kdapl_addr_ret(kdapl_addr_check(dst));
	if (ret == DAT_SUCCESS && src)
		ret = kdapl_addr_ret(kdapl_addr_check(src));
	if (ret == DAT_SUCCESS && src && src->sa_family != dst->sa_family)
		ret = kdapl_err(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED);
	if (ret == DAT_SUCCESS && (open_lacks_scope(dst) || (src && open_lacks_scope(src))))
		ret = kdapl_err(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED);
	return ret;
}

/**
 * kdat_ia_open_to_as - kdat_ia_open_to() for a consumer with a name
 * @net: as in kdat_ia_open_to()
 * @dst: as in kdat_ia_open_to()
 * @src: as in kdat_ia_open_to()
 * @asynch_evd_min_qlen: as in dat_ia_openv()
 * @asynch_evd_handle: as in dat_ia_openv()
 * @ia_handle: as in dat_ia_openv()
 * @consumer: name of the module, as in kdat_ia_openv()
 *
 * The header turns kdat_ia_open_to() into this call, with KBUILD_MODNAME. An extension of
 * this provider.
 *
 * Context: may sleep; takes 4 seconds if the destination does not answer; does no I/O to free
 * memory; does not wait for RTNL.
 * Return: as kdat_ia_open_to().
 */
DAT_RETURN kdat_ia_open_to_as(struct net *net, const struct sockaddr *dst,
			      const struct sockaddr *src, DAT_COUNT asynch_evd_min_qlen,
			      DAT_EVD_HANDLE *asynch_evd_handle, DAT_IA_HANDLE *ia_handle,
			      const char *consumer)
{
	struct kdapl_ia_open open = { .consumer = consumer };
	char name[DAT_NAME_MAX_LENGTH];
	unsigned int noio;
	DAT_RETURN ret;
	int err;

	ret = open_check_addr(net, dst, src);
	if (ret == DAT_SUCCESS)
		ret = open_check(asynch_evd_min_qlen, asynch_evd_handle, ia_handle, 4);
	if (ret != DAT_SUCCESS)
		return ret;
	/* storage consumers reconnect under writeback (D-32) */
	noio = memalloc_noio_save();
	err = open_resolve(net, dst, src, &open, name);
	if (err) {
		ret = open_resolve_ret(err);
		goto out;
	}
	ret = kdapl_ia_open(&open, asynch_evd_min_qlen, asynch_evd_handle, ia_handle);
	kdapl_device_put(open.dev);
out:
	memalloc_noio_restore(noio);
	return ret;
}
EXPORT_SYMBOL(kdat_ia_open_to_as);

#undef kdat_ia_open_to

/**
 * kdat_ia_open_to - open the Interface Adapter that leads to a destination
 * @net: network namespace; the caller keeps it
 * @dst: IPv4 or IPv6 address of a peer; its port number does not matter. A link-local address
 *	needs the index of the network device
 * @src: address to connect from, or NULL: what the routes say
 * @asynch_evd_min_qlen: as in dat_ia_openv()
 * @asynch_evd_handle: as in dat_ia_openv()
 * @ia_handle: as in dat_ia_openv()
 *
 * The connection manager finds the device, through VLANs and bonds, as it does when it
 * connects: the neighbour has to answer. The instance connects from the address found in
 * that namespace. A work item can use this call, while dat_ia_openv() there looks in the
 * initial namespace only. An extension of this provider.
 *
 * Context: may sleep; takes 4 seconds if the destination does not answer; does no I/O to free
 * memory; does not wait for RTNL.
 * Return: as dat_ia_openv(); DAT_INVALID_PARAMETER (NULL @net or @dst); DAT_INVALID_ADDRESS
 * (MALFORMED: not the address of a host, or link-local without a network device;
 * UNSUPPORTED: of another family, or of different ones; UNREACHABLE: no route, or no
 * answer); DAT_PROVIDER_NOT_FOUND (the route leads to no IA, or @src is no address of one).
 */
DAT_RETURN kdat_ia_open_to(struct net *net, const struct sockaddr *dst,
			   const struct sockaddr *src, DAT_COUNT asynch_evd_min_qlen,
			   DAT_EVD_HANDLE *asynch_evd_handle, DAT_IA_HANDLE *ia_handle)
{
	return kdat_ia_open_to_as(net, dst, src, asynch_evd_min_qlen, asynch_evd_handle, ia_handle,
				  NULL);
}
EXPORT_SYMBOL(kdat_ia_open_to);
