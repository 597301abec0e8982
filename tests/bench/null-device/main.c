// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Devices kdnull0, kdnull1, ..., one for each network device it is told, which lends its
 * addresses. They must go (rmmod) before their network devices do.
 */
#include <linux/etherdevice.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/nsproxy.h>
#include <net/addrconf.h>

#include "kdnull.h"

#define MAX_DEVS	8

static char *netdev[MAX_DEVS];
static int netdevs;

module_param_array(netdev, charp, &netdevs, 0444);
MODULE_PARM_DESC(netdev, "network devices, each of which gets an RDMA device");
static unsigned int driver = RDMA_DRIVER_UNKNOWN;
module_param(driver, uint, 0444);
MODULE_PARM_DESC(driver, "the devices pose as those of this driver (enum rdma_driver_id)");

static LIST_HEAD(devs);

static int dev_register(struct kdnull_dev *dev, struct net_device *ndev)
{
	struct ib_device *ibdev = &dev->ibdev;
	u8 mac[ETH_ALEN];
	int ret;

	xa_init_flags(&dev->qps, XA_FLAGS_ALLOC1);
	xa_init_flags(&dev->mrs, XA_FLAGS_ALLOC1);
	if (ndev->addr_len == ETH_ALEN)
		ether_addr_copy(mac, ndev->dev_addr);
	else
		eth_random_addr(mac);
	addrconf_addr_eui48((u8 *)&ibdev->node_guid, mac);
	dev->ndev = ndev;
	ibdev->phys_port_cnt = 1;
	ibdev->num_comp_vectors = num_possible_cpus();
	ibdev->local_dma_lkey = KDNULL_DMA_LKEY;
	strscpy(ibdev->node_desc, "kdnull", sizeof(ibdev->node_desc));
	ib_set_device_ops(ibdev, &kdnull_ops);
	kdnull_cm_setup(ibdev);
	ibdev->ops.driver_id = driver;
	ret = ib_device_set_netdev(ibdev, ndev, 1);
	if (ret)
		return ret;
	return ib_register_device(ibdev, "kdnull%d", NULL);
}

static int dev_add(const char *name)
{
	struct net_device *ndev = dev_get_by_name(current->nsproxy->net_ns, name);
	struct kdnull_dev *dev;
	int ret;

	if (!ndev) {
		pr_err("kdnull: no network device %s\n", name);
		return -ENODEV;
	}
	ret = -ENOMEM;
	dev = ib_alloc_device(kdnull_dev, ibdev);
	if (dev) {
		ret = dev_register(dev, ndev);
		if (ret)
			ib_dealloc_device(&dev->ibdev);
		else
			list_add_tail(&dev->node, &devs);
	}
	dev_put(ndev);
	return ret;
}

static void remove_all(void)
{
	struct kdnull_dev *dev, *next;

	list_for_each_entry_safe_reverse(dev, next, &devs, node) {
		list_del(&dev->node);
		ib_unregister_device(&dev->ibdev);
		WARN_ON(!xa_empty(&dev->qps) || !xa_empty(&dev->mrs));
		ib_dealloc_device(&dev->ibdev);
	}
}

static int __init kdnull_init(void)
{
	int ret = 0, i;

	if (!netdevs) {
		pr_err("kdnull: netdev=: which network devices?\n");
		return -EINVAL;
	}
	for (i = 0; i < netdevs && !ret; i++)
		ret = dev_add(netdev[i]);
	if (ret)
		remove_all();
	return ret;
}

static void __exit kdnull_exit(void)
{
	remove_all();
}

module_init(kdnull_init);
module_exit(kdnull_exit);

MODULE_AUTHOR("The kDAPL for Linux authors");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_DESCRIPTION("RDMA device without a wire, to measure what is above it");
