/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The only place where kernel versions differ. All other code is written for the
 * newest kernel, and this header supplies what older ones lack. KDAPL_HAVE_X is
 * defined if the file x.c in this folder compiles for the kernel at hand
 * (probe.mk); version numbers are never compared.
 */
#ifndef KDAPL_COMPAT_COMPAT_H
#define KDAPL_COMPAT_COMPAT_H

#include <linux/dma-map-ops.h>
#include <linux/netdevice.h>
#include <linux/rcupdate.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>

#include "have.h"

#if !defined(KDAPL_HAVE_DMA_DEV_NEED_SYNC) && IS_ENABLED(CONFIG_IOMMU_API)
#include <linux/iommu.h>
#include <linux/pci.h>
#endif

/* a macro, so it needs no file */
#ifndef __uninitialized
#define __uninitialized
#endif

#ifndef KDAPL_HAVE_WQ_PERCPU
#define WQ_PERCPU 0
#endif

#ifndef KDAPL_HAVE_IB_DEVICE_GET_NETDEV
/* The reverse lookup: which netdev has this device? */
static inline struct net_device *kdapl_search_netdev(struct ib_device *ibdev)
{
	struct net_device *ndev, *found = NULL;
	struct ib_device *of;
	struct net *net;

	rcu_read_lock();
	for_each_net_rcu(net) {
		for_each_netdev_rcu(net, ndev) {
			of = found ? NULL : ib_device_get_by_netdev(ndev,
								  ibdev->ops.driver_id);
			if (of == ibdev) {
				found = ndev;
				dev_hold(found);
			}
			if (of)
				ib_device_put(of);
		}
	}
	rcu_read_unlock();
	return found;
}

/*
 * Older kernels do not export the lookup. A RoCE port has its netdev in the device
 * operation or in its first GID; an iWARP port may have it in neither.
 */
static inline struct net_device *ib_device_get_netdev(struct ib_device *ibdev, u32 port)
{
	struct net_device *ndev = NULL;
	const struct ib_gid_attr *attr;

	if (ibdev->ops.get_netdev)
		return ibdev->ops.get_netdev(ibdev, port);
	attr = rdma_get_gid_attr(ibdev, port, 0);
	if (IS_ERR(attr))
		return kdapl_search_netdev(ibdev);
	rcu_read_lock();
	ndev = rcu_dereference(attr->ndev);
	if (ndev)
		dev_hold(ndev);
	rcu_read_unlock();
	rdma_put_gid_attr(attr);
	return ndev ?: kdapl_search_netdev(ibdev);
}
#endif

/*
 * Does the memory behind a DMA address have to be synchronised? Older kernels say yes for
 * every address behind an IOMMU, although only untrusted devices get bounce buffers there.
 */
static inline bool kdapl_compat_need_sync(struct device *dev, dma_addr_t addr)
{
#if !defined(KDAPL_HAVE_DMA_DEV_NEED_SYNC) && IS_ENABLED(CONFIG_IOMMU_API)
	struct iommu_domain *domain = iommu_get_domain_for_dev(dev);

	if (domain && (domain->type & __IOMMU_DOMAIN_DMA_API) && dev_is_dma_coherent(dev) &&
	    !(dev_is_pci(dev) && to_pci_dev(dev)->untrusted))
		return false;
#endif
	return dma_need_sync(dev, addr);
}

#endif /* KDAPL_COMPAT_COMPAT_H */
