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
#include <linux/sched.h>

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
static struct workqueue_struct *unplug_wq;

/* Nobody finds the device any more. Context: may sleep. */
void kdhca_dev_hide(struct kdhca_dev *dev)
{
	mutex_lock(&kdhca_devs_lock);
	dev->here = false;
	mutex_unlock(&kdhca_devs_lock);
}

/*
 * The device is no more; its memory goes with that of the core.
 * The last thing that is done here: whoever removes the module waits for the core to be done
 * with all devices in the list.
 */
void kdhca_dev_gone(struct kdhca_dev *dev)
{
	dev_put(dev->ndev);
	mutex_lock(&kdhca_devs_lock);
	list_del(&dev->node);
	mutex_unlock(&kdhca_devs_lock);
}

/* From now on posts are late, after a while that calls under way may take. */
static void dev_leaves(struct kdhca_dev *dev)
{
	WRITE_ONCE(dev->remover, current);
	WRITE_ONCE(dev->leaving, jiffies ?: 1);
}

static void dev_unplug(struct work_struct *work)
{
	struct kdhca_dev *dev = container_of(work, struct kdhca_dev, unplug);

	dev_leaves(dev);
	ib_unregister_device_and_put(&dev->ibdev);
}

/* Have the device taken away, as a cable or a driver does; -ENODEV if that is under way. */
int kdhca_dev_unplug(struct kdhca_dev *dev)
{
	if (!ib_device_try_get(&dev->ibdev))
		return -ENODEV;
	if (!test_and_set_bit(0, &dev->unplugged) && queue_work(unplug_wq, &dev->unplug))
		return 0;	/* the work gives the device back */
	ib_device_put(&dev->ibdev);
	return -ENODEV;
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
	if (!ret) {
		dev->ibdev.dev.parent = dev->dma;	/* as drivers of adapters do */
		ret = ib_register_device(&dev->ibdev, name, dev->dma);
	}
	if (ret) {
		ib_dealloc_device(&dev->ibdev);		/* which calls dealloc_driver */
	} else if (ib_device_try_get(&dev->ibdev)) {
		mutex_lock(&kdhca_devs_lock);
		dev->here = true;
		mutex_unlock(&kdhca_devs_lock);
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

#ifdef KDHCA_HAVE_DELLINK
static int dev_delete(struct ib_device *ibdev)
{
	dev_leaves(to_dev(ibdev));
	return 0;
}
#endif

/* Where "rdma link delete" does not tell us, posts are late after the order "unplug" only. */
struct rdma_link_ops kdhca_link_ops = {
	.type = "kdhca",
	.newlink = dev_add,
#ifdef KDHCA_HAVE_DELLINK
	.dellink = dev_delete,
#endif
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
		if (!dev->here || dev->ndev != ndev)
			continue;
		if (event != NETDEV_UNREGISTER)
			kdhca_irq_event(&dev->irq, event == NETDEV_UP ? IB_EVENT_PORT_ACTIVE :
					IB_EVENT_PORT_ERR);
		else
			kdhca_dev_unplug(dev);
	}
	mutex_unlock(&kdhca_devs_lock);
	return NOTIFY_DONE;
}

static struct notifier_block netdev_notifier = { .notifier_call = netdev_event };

static struct kdhca_dev *first_dev(void)
{
	struct kdhca_dev *dev;

	mutex_lock(&kdhca_devs_lock);
	dev = list_first_entry_or_null(&kdhca_devs, struct kdhca_dev, node);
	if (dev)
		get_device(&dev->ibdev.dev);
	mutex_unlock(&kdhca_devs_lock);
	return dev;
}

/* The core removes clients in the reverse order of their coming, and we are there before any. */
static int watch_add(struct ib_device *ibdev)
{
	return ibdev->ops.owner == THIS_MODULE ? 0 : -EOPNOTSUPP;
}

static void watch_remove(struct ib_device *ibdev, void *data)
{
	WRITE_ONCE(to_dev(ibdev)->left, true);
}

static struct ib_client watch_client = {
	.name = "kdhca",
	.add = watch_add,
	.remove = watch_remove,
};

/* Whatever is still there; for what somebody else is taking away the core waits. */
static void remove_all(void)
{
	struct kdhca_dev *dev;

	while ((dev = first_dev())) {
		if (!READ_ONCE(dev->leaving))
			dev_leaves(dev);
		ib_unregister_device(&dev->ibdev);
		put_device(&dev->ibdev.dev);
	}
}

static int __init kdhca_init(void)
{
	int ret, i;

	kdhca_wq = alloc_workqueue("kdhca", WQ_UNBOUND | WQ_HIGHPRI | WQ_MEM_RECLAIM, 0);
	if (!kdhca_wq)
		return -ENOMEM;
	unplug_wq = alloc_workqueue("kdhca_unplug", WQ_UNBOUND, 0);
	ret = unplug_wq ? ib_register_client(&watch_client) : -ENOMEM;
	if (ret)
		goto err;
	ret = kdhca_dma_register();
	if (ret)
		goto err_client;
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
err_client:
	ib_unregister_client(&watch_client);
err:
	if (unplug_wq)
		destroy_workqueue(unplug_wq);
	destroy_workqueue(kdhca_wq);
	return ret;
}

static void __exit kdhca_exit(void)
{
	rdma_link_unregister(&kdhca_link_ops);
	remove_all();
	unregister_netdevice_notifier(&netdev_notifier);
	destroy_workqueue(unplug_wq);
	kdhca_iw_exit();
	kdhca_order_exit();
	kdhca_dma_unregister();
	ib_unregister_client(&watch_client);
	destroy_workqueue(kdhca_wq);
}

module_init(kdhca_init);
module_exit(kdhca_exit);

MODULE_ALIAS_RDMA_LINK("kdhca");
MODULE_AUTHOR("The kDAPL for Linux authors");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_DESCRIPTION("RDMA devices that behave like hardware, for tests");
