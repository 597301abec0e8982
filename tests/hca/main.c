// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * RDMA devices that behave like hardware. One is made for each network device that is told at
 * load, or by "rdma link add NAME type kdhca netdev NETDEV", with the personality that
 * "profile" names then; it goes by "rdma link delete", by an order in debugfs, with its network
 * device, or with the module.
 */
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/nsproxy.h>
#include <rdma/rdma_netlink.h>

#include "kdhca.h"

#define MAX_DEVS	8

static char *netdev[MAX_DEVS];
static int netdevs;
static char profile[256] = "plain";

module_param_array(netdev, charp, &netdevs, 0444);
MODULE_PARM_DESC(netdev, "network devices, each of which gets an RDMA device");
module_param_string(profile, profile, sizeof(profile), 0644);
MODULE_PARM_DESC(profile, "NAME[+SETTING=NUMBER,...]: what the next devices are like");

struct workqueue_struct *kdhca_wq;
LIST_HEAD(kdhca_devs);
DEFINE_MUTEX(kdhca_devs_lock);		/* the list */
static DECLARE_WAIT_QUEUE_HEAD(all_gone);

/**
 * kdhca_dev_gone - the device is no more; its memory goes with that of the core
 * @dev: device
 */
void kdhca_dev_gone(struct kdhca_dev *dev)
{
	dev_put(dev->ndev);
	mutex_lock(&kdhca_devs_lock);
	list_del(&dev->node);
	mutex_unlock(&kdhca_devs_lock);
	wake_up(&all_gone);
}

/**
 * kdhca_dev_leave - take the device away, as a cable or a driver does
 * @dev: device; ib_device_try_get() done, which is given back
 *
 * Posts are late from then on, after a while that calls under way may take.
 *
 * Context: may sleep.
 */
void kdhca_dev_leave(struct kdhca_dev *dev)
{
	WRITE_ONCE(dev->leaving, jiffies ?: 1);
	ib_unregister_device_and_put(&dev->ibdev);
}

static void dev_unplug(struct work_struct *work)
{
	kdhca_dev_leave(container_of(work, struct kdhca_dev, unplug));
}

static int dev_add(const char *name, struct net_device *ndev)
{
	struct kdhca_set set;
	struct kdhca_dev *dev;
	int ret;

	ret = kdhca_settings_profile(&set, profile);
	if (ret)
		return ret;
	dev = ib_alloc_device(kdhca_dev, ibdev);
	if (!dev)
		return -ENOMEM;
	dev->set = set;
	dev->ndev = ndev;
	INIT_WORK(&dev->unplug, dev_unplug);
	ret = kdhca_dma_bind(dev);
	if (ret) {
		ib_dealloc_device(&dev->ibdev);
		return ret;
	}
	ret = kdhca_dev_setup(dev);
	dev_hold(ndev);
	mutex_lock(&kdhca_devs_lock);
	list_add_tail(&dev->node, &kdhca_devs);
	mutex_unlock(&kdhca_devs_lock);
	if (!ret)
		ret = ib_register_device(&dev->ibdev, name, dev->dma);
	if (ret) {
		ib_dealloc_device(&dev->ibdev);		/* which calls dealloc_driver */
	} else if (ib_device_try_get(&dev->ibdev)) {
		kdhca_order_add(dev);
		ib_device_put(&dev->ibdev);
	}
	return ret;
}

static int dev_add_named(const char *name)
{
	struct net_device *ndev = dev_get_by_name(current->nsproxy->net_ns, name);
	int ret;

	if (!ndev) {
		pr_err("no network device %s\n", name);
		return -ENODEV;
	}
	ret = dev_add("kdhca%d", ndev);
	dev_put(ndev);
	return ret;
}

static struct rdma_link_ops kdhca_link_ops = {
	.type = "kdhca",
	.newlink = dev_add,
};

/* A network device takes its RDMA device along. */
static int netdev_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct net_device *ndev = netdev_notifier_info_to_dev(ptr);
	struct kdhca_dev *dev;

	if (event != NETDEV_UNREGISTER && event != NETDEV_UP && event != NETDEV_DOWN)
		return NOTIFY_DONE;
	mutex_lock(&kdhca_devs_lock);
	list_for_each_entry(dev, &kdhca_devs, node) {
		if (dev->ndev != ndev)
			continue;
		if (event != NETDEV_UNREGISTER)
			kdhca_dev_event(dev, event == NETDEV_UP ? IB_EVENT_PORT_ACTIVE :
					IB_EVENT_PORT_ERR);
		else if (ib_device_try_get(&dev->ibdev))
			kdhca_dev_unplug(dev);
	}
	mutex_unlock(&kdhca_devs_lock);
	return NOTIFY_DONE;
}

static struct notifier_block netdev_notifier = { .notifier_call = netdev_event };

/* Whatever is still there; what somebody else is taking away is waited for. */
static void remove_all(void)
{
	struct kdhca_dev *dev, *found;

	do {
		found = NULL;
		mutex_lock(&kdhca_devs_lock);
		list_for_each_entry(dev, &kdhca_devs, node) {
			if (!found && ib_device_try_get(&dev->ibdev))
				found = dev;
		}
		mutex_unlock(&kdhca_devs_lock);
		if (found)
			kdhca_dev_leave(found);
	} while (found);
	wait_event(all_gone, list_empty_careful(&kdhca_devs));
}

static int __init kdhca_init(void)
{
	int ret, i;

	kdhca_wq = alloc_workqueue("kdhca", WQ_UNBOUND | WQ_HIGHPRI | WQ_MEM_RECLAIM, 0);
	if (!kdhca_wq)
		return -ENOMEM;
	ret = kdhca_dma_register();
	if (ret)
		goto err;
	kdhca_order_init();
	ret = register_netdevice_notifier(&netdev_notifier);
	if (ret)
		goto err_dma;
	rdma_link_register(&kdhca_link_ops);
	for (i = 0; i < netdevs && !ret; i++)
		ret = dev_add_named(netdev[i]);
	if (!ret)
		return 0;
	rdma_link_unregister(&kdhca_link_ops);
	remove_all();
	unregister_netdevice_notifier(&netdev_notifier);
err_dma:
	kdhca_order_exit();
	kdhca_dma_unregister();
err:
	destroy_workqueue(kdhca_wq);
	return ret;
}

static void __exit kdhca_exit(void)
{
	rdma_link_unregister(&kdhca_link_ops);
	remove_all();
	unregister_netdevice_notifier(&netdev_notifier);
	kdhca_iw_exit();
	kdhca_order_exit();
	kdhca_dma_unregister();
	destroy_workqueue(kdhca_wq);
}

module_init(kdhca_init);
module_exit(kdhca_exit);

MODULE_ALIAS_RDMA_LINK("kdhca");
MODULE_AUTHOR("The kdapl authors");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_DESCRIPTION("RDMA devices that behave like hardware, for tests");
