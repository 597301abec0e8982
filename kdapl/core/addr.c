// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Names and IP addresses of IAs. A port has those of its netdev and of the netdevs
 * stacked on it (VLANs, bridges, bonds); on InfiniBand, of those of its partitions as well.
 * Nothing is cached: they are looked up anew each time.
 */
#include <linux/if_arp.h>
#include <linux/in.h>
#include <linux/inet.h>
#include <linux/inetdevice.h>
#include <net/addrconf.h>
#include <rdma/ib_cache.h>

#include "core.h"

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

/**
 * kdapl_addr_check - can this be the address of a peer or of a listener?
 * @addr: any address a consumer handed in
 *
 * Return: 0; -EAFNOSUPPORT: neither IPv4 nor IPv6; -EINVAL: not the address of a single host.
 */
int kdapl_addr_check(const struct sockaddr *addr)
{
	if (!kdapl_addr_len(addr))
		return -EAFNOSUPPORT;
	if (addr->sa_family == AF_INET) {
		__be32 ip = ((const struct sockaddr_in *)addr)->sin_addr.s_addr;

		if (ipv4_is_multicast(ip) || ipv4_is_lbcast(ip) || ipv4_is_zeronet(ip))
			return -EINVAL;
	} else {
		const struct in6_addr *ip = &((const struct sockaddr_in6 *)addr)->sin6_addr;

		if (ipv6_addr_is_multicast(ip) || ipv6_addr_any(ip))
			return -EINVAL;
	}
	return 0;
}

/**
 * kdapl_comm_supported - does this communicator stand for RDMA_PS_TCP?
 * @comm: communicator of a consumer
 *
 * Return: whether it does.
 */
bool kdapl_comm_supported(const DAT_COMM *comm)
{
	return (comm->domain == AF_INET || comm->domain == AF_INET6) &&
	       comm->type == SOCK_STREAM &&
	       (!comm->protocol || comm->protocol == IPPROTO_TCP);
}

static bool addr_same_ip(const struct sockaddr *a, const struct sockaddr_storage *b)
{
	const struct sockaddr_in6 *a6, *b6;

	if (a->sa_family != b->ss_family)
		return false;
	if (a->sa_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)b)->sin_addr.s_addr;
	a6 = (const struct sockaddr_in6 *)a;
	b6 = (const struct sockaddr_in6 *)b;
	/* a VLAN device shares the link-local address of the device below it */
	return ipv6_addr_equal(&a6->sin6_addr, &b6->sin6_addr) &&
	       (!a6->sin6_scope_id || !b6->sin6_scope_id ||
		a6->sin6_scope_id == b6->sin6_scope_id);
}

/**
 * struct addr_search - a search for an address of a port
 * @pick: name or address the IA was opened by, or NULL
 * @exact: the address looked for, or NULL for any
 * @family: wanted family; AF_UNSPEC: IPv4 before IPv6
 * @scope: index of the netdev a link-local address is wanted on; 0: a global address
 * @name: name of the netdev, or NULL
 * @net: namespace of the netdev, or NULL if @pick has it
 * @addr: out: the address found, port 0
 * @ndev: out: its netdev; valid under RCU
 * @ifindex: out: index of @ndev
 * @cookie: out: cookie of its namespace
 */
struct addr_search {
	const struct kdapl_pick *pick;
	const struct sockaddr *exact;
	int family;
	int scope;
	const char *name;
	struct net *net;
	struct sockaddr_storage addr;
	struct net_device *ndev;
	int ifindex;
	u64 cookie;
};

static bool addr_find_v4(struct addr_search *s, struct net_device *ndev,
			 const struct sockaddr *exact)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&s->addr;
	struct in_device *in_dev = __in_dev_get_rcu(ndev);
	const struct in_ifaddr *ifa;

	if (!in_dev)
		return false;
	in_dev_for_each_ifa_rcu(ifa, in_dev) {
		memset(&s->addr, 0, sizeof(s->addr));
		in->sin_family = AF_INET;
		in->sin_addr.s_addr = ifa->ifa_local;
		if (!exact || addr_same_ip(exact, &s->addr))
			return true;
	}
	return false;
}

#if IS_ENABLED(CONFIG_IPV6)
static bool addr_find_v6(struct addr_search *s, struct net_device *ndev,
			 const struct sockaddr *exact)
{
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&s->addr;
	struct inet6_dev *in6_dev = __in6_dev_get(ndev);
	const struct inet6_ifaddr *ifa;
	bool local;

	if (!in6_dev)
		return false;
	list_for_each_entry_rcu(ifa, &in6_dev->addr_list, if_list) {
		/* not usable before duplicate address detection has passed */
		if (ifa->flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED))
			continue;
		local = ipv6_addr_type(&ifa->addr) & IPV6_ADDR_LINKLOCAL;
		memset(&s->addr, 0, sizeof(s->addr));
		in6->sin6_family = AF_INET6;
		in6->sin6_addr = ifa->addr;
		in6->sin6_scope_id = local ? ndev->ifindex : 0;
		if (exact ? addr_same_ip(exact, &s->addr) : s->scope == in6->sin6_scope_id)
			return true;
	}
	return false;
}
#else
static bool addr_find_v6(struct addr_search *s, struct net_device *ndev,
			 const struct sockaddr *exact)
{
	return false;
}
#endif

static bool addr_find(struct addr_search *s, struct net_device *ndev, int family,
		      const struct sockaddr *exact)
{
	if (family != AF_INET6 && addr_find_v4(s, ndev, exact))
		return true;
	return family != AF_INET && addr_find_v6(s, ndev, exact);
}

/* Does this netdev match the search? RCU read side. */
static bool addr_try(struct addr_search *s, struct net_device *ndev)
{
	const struct kdapl_pick *pick = s->pick;
	const struct sockaddr *picked;

	if (s->net && !net_eq(dev_net(ndev), s->net))
		return false;
	if (s->name)
		return !strcmp(ndev->name, s->name);
	/* indexes and addresses repeat across namespaces */
	if (pick && pick->kind != KDAPL_PICK_ANY && dev_net(ndev)->net_cookie != pick->cookie)
		return false;
	if (s->exact)
		return addr_find(s, ndev, s->exact->sa_family, s->exact);
	switch (pick->kind) {
	case KDAPL_PICK_NETDEV:
		return ndev->ifindex == pick->ifindex && addr_find(s, ndev, s->family, NULL);
	case KDAPL_PICK_ADDRESS:
		picked = (const struct sockaddr *)&pick->addr;
		if (!addr_find(s, ndev, picked->sa_family, picked))
			return false;
		return s->family == AF_UNSPEC || s->family == picked->sa_family ||
		       addr_find(s, ndev, s->family, NULL);
	default:
		return addr_find(s, ndev, s->family, NULL);
	}
}

static int addr_try_upper(struct net_device *ndev, struct netdev_nested_priv *priv)
{
	struct addr_search *s = priv->data;

	if (!addr_try(s, ndev))
		return 0;
	s->ndev = ndev;
	return 1;
}

/* Search a netdev and those stacked on it. RCU read side. */
static bool addr_search_from(struct addr_search *s, struct net_device *ndev)
{
	struct netdev_nested_priv priv = { .data = s };

	if (addr_try(s, ndev))
		s->ndev = ndev;
	else
		netdev_walk_all_upper_dev_rcu(ndev, addr_try_upper, &priv);
	return s->ndev;
}

/*
 * Does this netdev belong to an IPoIB port? It has the same parent device and the number of the
 * port. One for a partition has neither, but the GID of the port in its address.
 */
static bool addr_is_ipoib(const struct ib_device *ibdev, u32 port, const union ib_gid *gid,
			  const struct net_device *ndev)
{
	if (ndev->type != ARPHRD_INFINIBAND)
		return false;
	if (ndev->dev.parent)
		return ndev->dev.parent == ibdev->dev.parent && ndev->dev_port == port - 1;
	return !memcmp(ndev->dev_addr + 4, gid, sizeof(*gid));
}

/* Search the netdevs of an IPoIB port. RCU read side. */
static void addr_search_ipoib(struct addr_search *s, const struct ib_device *ibdev, u32 port,
			      const union ib_gid *gid)
{
	struct net_device *ndev;
	struct net *net;

	for_each_net_rcu(net) {
		for_each_netdev_rcu(net, ndev) {
			if (addr_is_ipoib(ibdev, port, gid, ndev) && addr_search_from(s, ndev))
				return;
		}
	}
}

/*
 * Search the netdevs of a port. @net, if not NULL, gets the namespace, referenced. May sleep;
 * the caller keeps the device from going away.
 */
static bool addr_search(struct kdapl_device *dev, u32 port, struct addr_search *s,
			struct net **net)
{
	struct net_device *ndev = ib_device_get_netdev(dev->ibdev, port);
	union ib_gid gid;

	s->ndev = NULL;
	if (!ndev && rdma_query_gid(dev->ibdev, port, 0, &gid))
		return false;
	rcu_read_lock();
	if (ndev)
		addr_search_from(s, ndev);
	else
		addr_search_ipoib(s, dev->ibdev, port, &gid);
	if (s->ndev) {
		s->ifindex = s->ndev->ifindex;
		s->cookie = dev_net(s->ndev)->net_cookie;
	}
	if (s->ndev && net) {
		*net = maybe_get_net(dev_net(s->ndev));
		if (!*net)
			s->ndev = NULL;
	}
	rcu_read_unlock();
	dev_put(ndev);
	return s->ndev;
}

/**
 * kdapl_port_named - may an IA be opened by this name?
 * @dev: device; the caller keeps it from going away
 * @port: its port
 * @name: name of a netdev, or IP address
 * @net: namespace to look in
 * @pick: filled on success
 *
 * Context: may sleep.
 * Return: whether the port has such a netdev or address.
 */
bool kdapl_port_named(struct kdapl_device *dev, u32 port, const char *name, struct net *net,
		      struct kdapl_pick *pick)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&pick->addr;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&pick->addr;
	struct addr_search s = { .name = name, .net = net };

	memset(pick, 0, sizeof(*pick));
	if (addr_search(dev, port, &s, NULL)) {
		pick->kind = KDAPL_PICK_NETDEV;
		pick->ifindex = s.ifindex;
		pick->cookie = s.cookie;
		return true;
	}
	if (in4_pton(name, -1, (u8 *)&in->sin_addr, '\0', NULL))
		in->sin_family = AF_INET;
	else if (in6_pton(name, -1, (u8 *)&in6->sin6_addr, '\0', NULL))
		in6->sin6_family = AF_INET6;
	else
		return false;
	pick->kind = KDAPL_PICK_ADDRESS;
	s.name = NULL;
	s.exact = (const struct sockaddr *)&pick->addr;
	if (!addr_search(dev, port, &s, NULL))
		return false;
	pick->cookie = s.cookie;
	return true;
}

/**
 * kdapl_ia_address - look up an IP address of an IA
 * @ia: IA
 * @dst: destination to reach, or NULL: IPv4 before IPv6
 * @addr: out: the address, port 0
 * @net: out: network namespace of its netdev, referenced; may be NULL
 *
 * This is the address the IA was opened by, or else the first one. It is link-local only if the
 * destination is.
 *
 * Context: may sleep; inside kdapl_dev_enter().
 * Return: 0 or -EADDRNOTAVAIL.
 */
int kdapl_ia_address(struct kdapl_ia *ia, const struct sockaddr *dst,
		     struct sockaddr_storage *addr, struct net **net)
{
	const struct sockaddr_in6 *dst6 = (const struct sockaddr_in6 *)dst;
	struct addr_search s = {
		.pick = &ia->pick,
		.family = dst ? dst->sa_family : AF_UNSPEC,
	};

	if (dst && dst->sa_family == AF_INET6 &&
	    (ipv6_addr_type(&dst6->sin6_addr) & IPV6_ADDR_LINKLOCAL))
		s.scope = dst6->sin6_scope_id;
	if (!addr_search(ia->dev, ia->port, &s, net))
		return -EADDRNOTAVAIL;
	*addr = s.addr;
	return 0;
}

/**
 * kdapl_ia_owns - is this an address of the IA's port?
 * @ia: IA
 * @addr: IPv4 or IPv6
 * @full: out: the address with its scope, port 0
 * @net: out: network namespace of its netdev, referenced
 *
 * Context: may sleep; inside kdapl_dev_enter().
 * Return: whether it is.
 */
bool kdapl_ia_owns(struct kdapl_ia *ia, const struct sockaddr *addr,
		   struct sockaddr_storage *full, struct net **net)
{
	struct addr_search s = { .pick = &ia->pick, .exact = addr };

	if (!addr_search(ia->dev, ia->port, &s, net))
		return false;
	*full = s.addr;
	return true;
}
