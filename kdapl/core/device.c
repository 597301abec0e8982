// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Devices: from ib_client.add to ib_client.remove.
 *
 * Removal takes every verbs object of the device back before it returns,
 * whatever consumers do, and posts nothing while it does (a provider that is
 * being unloaded may not process it any more). First the device is marked
 * gone, which makes every call answer DAT_INTERNAL_ERROR, and calls under way
 * are waited for. What may still be on its way (the reaper, the end of a connection, a
 * CM handler) and removal keep out of each other's way by the lock of the object
 * concerned; the second one finds the verbs part gone. What a free call has
 * begun to destroy, removal waits for, and the other way round (struct kdapl_res).
 * The consumers' objects stay as shells until they free them.
 */
#include <linux/nsproxy.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "core.h"
#include "trace.h"

static LIST_HEAD(kdapl_devices);
static DEFINE_MUTEX(kdapl_devices_lock);	/* the list, and devices' names */

/**
 * kdapl_dev_enter - begin to use a device's verbs objects
 * @dev: device
 *
 * Nests. May sleep inside; removal waits.
 *
 * Return: whether the device is still there and in order; if so,
 * kdapl_dev_exit() must follow.
 */
bool kdapl_dev_enter(struct kdapl_device *dev)
{
	return !READ_ONCE(dev->gone) && !READ_ONCE(dev->fatal) &&
	       refcount_inc_not_zero(&dev->users);
}

/**
 * kdapl_dev_exit - end what kdapl_dev_enter() began
 * @dev: device
 */
void kdapl_dev_exit(struct kdapl_device *dev)
{
	if (refcount_dec_and_test(&dev->users))
		complete(&dev->unused);
}

/**
 * kdapl_device_put - drop a reference
 * @dev: device
 */
void kdapl_device_put(struct kdapl_device *dev)
{
	if (refcount_dec_and_test(&dev->ref))
		kfree_rcu(dev, rcu);
}

/**
 * kdapl_res_add - the verbs part of an object is there
 * @dev: its device, entered
 * @res: part of the object
 * @kind: what it is
 * @destroy: gives it back
 *
 * Context: may sleep.
 */
void kdapl_res_add(struct kdapl_device *dev, struct kdapl_res *res, enum kdapl_res_kind kind,
		   void (*destroy)(struct kdapl_res *res))
{
	mutex_lock(&dev->lock);
	res->destroy = destroy;
	res->state = KDAPL_RES_LISTED;
	list_add_tail(&res->node, &dev->res[kind]);
	mutex_unlock(&dev->lock);
}

/* Off the list, to be destroyed. dev->lock held. */
static void device_res_take(struct kdapl_device *dev, struct kdapl_res *res)
{
	list_del(&res->node);
	res->state = KDAPL_RES_TAKEN;
	dev->taken++;
}

/* Destroy what was taken. A waiter may free it at once. */
static void device_res_destroy(struct kdapl_device *dev, struct kdapl_res *res)
{
	res->destroy(res);
	mutex_lock(&dev->lock);
	dev->taken--;
	/* pairs with the acquire in kdapl_res_release() */
	smp_store_release(&res->state, KDAPL_RES_NONE);
	wake_up(&dev->idle);
	mutex_unlock(&dev->lock);
}

/**
 * kdapl_res_release - give the verbs part of an object back
 * @dev: its device, referenced by the caller
 * @res: part of the object
 *
 * If removal of the device is just doing so, the call waits.
 *
 * Context: may sleep, without dev->lock.
 * Return: whether this call has destroyed it; else it is gone already, or never was.
 */
bool kdapl_res_release(struct kdapl_device *dev, struct kdapl_res *res)
{
	bool mine;

	mutex_lock(&dev->lock);
	mine = res->state == KDAPL_RES_LISTED;
	if (mine)
		device_res_take(dev, res);
	mutex_unlock(&dev->lock);
	if (mine) {
		device_res_destroy(dev, res);
		return true;
	}
	/* pairs with the release in device_res_destroy() */
	wait_event(dev->idle, smp_load_acquire(&res->state) == KDAPL_RES_NONE);
	return false;
}

/**
 * kdapl_link_add - there is a connection that removal has to end
 * @dev: its device, entered
 * @link: part of it
 * @ops: how it is ended
 *
 * Context: may sleep.
 */
void kdapl_link_add(struct kdapl_device *dev, struct kdapl_link *link,
		    const struct kdapl_link_ops *ops)
{
	mutex_lock(&dev->lock);
	link->ops = ops;
	list_add_tail(&link->node, &dev->links);
	mutex_unlock(&dev->lock);
}

/**
 * kdapl_link_leaves - a connection is giving back what it has
 * @dev: its device
 * @link: of the connection; kdapl_link_del() follows
 *
 * Context: may sleep.
 */
void kdapl_link_leaves(struct kdapl_device *dev, struct kdapl_link *link)
{
	mutex_lock(&dev->lock);
	link->leaving = true;
	mutex_unlock(&dev->lock);
}

/**
 * kdapl_link_del - a connection has nothing left of the device
 * @dev: its device
 * @link: of the connection
 *
 * Context: may sleep.
 */
void kdapl_link_del(struct kdapl_device *dev, struct kdapl_link *link)
{
	mutex_lock(&dev->lock);
	list_del_init(&link->node);
	wake_up(&dev->idle);
	mutex_unlock(&dev->lock);
}

/**
 * kdapl_device_id_made - there is a cm_id that removal has to wait for
 * @dev: device of the id
 *
 * Context: any in which removal cannot be past its wait: inside kdapl_dev_enter(), or
 * in the handler of an id that counts.
 */
void kdapl_device_id_made(struct kdapl_device *dev)
{
	refcount_inc(&dev->ref);
	atomic_inc(&dev->ids);
}

/**
 * kdapl_device_id_gone - such a cm_id is destroyed, or belongs to a connection
 * @dev: device of the id
 *
 * Context: any.
 */
void kdapl_device_id_gone(struct kdapl_device *dev)
{
	if (atomic_dec_and_test(&dev->ids))
		wake_up(&dev->idle);
	kdapl_device_put(dev);
}

/**
 * kdapl_device_walk - walk over all IAs there could be
 * @fn: called with device, port and @arg; a non-zero return ends the walk
 * @arg: for @fn
 *
 * Context: may sleep.
 * Return: what @fn returned last, or 0.
 */
int kdapl_device_walk(kdapl_port_fn *fn, void *arg)
{
	struct kdapl_device *dev;
	int ret = 0;
	u32 port;

	mutex_lock(&kdapl_devices_lock);
	list_for_each_entry(dev, &kdapl_devices, node) {
		for (port = 1; port <= dev->ports && !ret; port++)
			ret = fn(dev, port, arg);
	}
	mutex_unlock(&kdapl_devices_lock);
	return ret;
}

/**
 * struct device_find - looking for an IA
 * @name: what the consumer calls it
 * @how: what that may be, in the order in which it is tried
 * @net: where netdevs and addresses are looked for
 * @pick: beside the device, what the name says about addresses
 * @dev: what was found
 * @port: its port
 */
struct device_find {
	const char *name;
	enum {
		FIND_IA,	/* "<ibdev>-<port>" */
		FIND_IBDEV,	/* its first port */
		FIND_NETDEV,	/* netdev or address, in one network namespace */
		FIND_END
	} how;
	struct net *net;
	struct kdapl_pick *pick;
	struct kdapl_device *dev;
	u32 port;
};

static bool device_is_named(struct kdapl_device *dev, u32 port, struct device_find *find)
{
	char name[IB_DEVICE_NAME_MAX + 12];

	switch (find->how) {
	case FIND_IA:
		snprintf(name, sizeof(name), "%s-%u", dev->name, port);
		return !strcmp(name, find->name);
	case FIND_IBDEV:
		return !strcmp(dev->name, find->name);
	default:
		return kdapl_port_named(dev, port, find->name, find->net, find->pick);
	}
}

static int device_match(struct kdapl_device *dev, u32 port, void *arg)
{
	struct device_find *find = arg;

	if (!device_is_named(dev, port, find))
		return 0;
	refcount_inc(&dev->ref);
	find->dev = dev;
	find->port = port;
	return 1;
}

/**
 * kdapl_device_find - the device and port behind an IA name
 * @name: "<ibdev>-<port>", name of an ibdev or a netdev, or IP address; the last
 *	two in the caller's network namespace only
 * @port: where the port goes
 * @pick: where goes what the name says about addresses
 *
 * Context: may sleep.
 * Return: the device, to be put, or NULL.
 */
struct kdapl_device *kdapl_device_find(const char *name, u32 *port, struct kdapl_pick *pick)
{
	struct device_find find = {
		.name = name,
		.pick = pick,
		/* a task that exits has none any more */
		.net = current->nsproxy ? current->nsproxy->net_ns : &init_net,
	};

	memset(pick, 0, sizeof(*pick));
	for (find.how = FIND_IA; find.how < FIND_END && !find.dev; find.how++)
		kdapl_device_walk(device_match, &find);
	*port = find.port;
	return find.dev;
}

/* Tell all consumers that the device is lost, once. dev->lock held. */
static void device_catastrophe(struct kdapl_device *dev)
{
	struct kdapl_ia *ia;

	list_for_each_entry(ia, &dev->ias, dev_node) {
		if (ia->reported || !READ_ONCE(ia->obj.live))
			continue;	/* not open yet: see kdapl_device_opened() */
		WRITE_ONCE(ia->dead, true);
		ia->reported = true;
		trace_kdapl_ia_lost(ia->obj.handle, ia->name);
		kdapl_ia_async(ia, ia->obj.handle, DAT_ASYNC_ERROR_IA_CATASTROPHIC,
			       DAT_IA_CATASTROPHIC_ERROR);
	}
}

/**
 * kdapl_device_opened - an instance has got its handle
 * @dev: its device, entered
 *
 * Context: may sleep.
 */
void kdapl_device_opened(struct kdapl_device *dev)
{
	mutex_lock(&dev->lock);
	if (READ_ONCE(dev->fatal))	/* nobody could be told yet */
		device_catastrophe(dev);
	mutex_unlock(&dev->lock);
}

/*
 * All of them before anything goes: one end, or a request, going must not look
 * like a disconnect or a refusal to the other.
 */
static void device_mark_all(struct kdapl_device *dev)
{
	struct kdapl_link *link;
	struct kdapl_ia *ia;

	mutex_lock(&dev->lock);
	list_for_each_entry(ia, &dev->ias, dev_node)
		WRITE_ONCE(ia->dead, true);	/* calls answer DAT_INTERNAL_ERROR */
	list_for_each_entry(link, &dev->links, node)
		link->ops->lost(link);
	mutex_unlock(&dev->lock);
}

static void device_remove_ids(struct kdapl_device *dev);

/* The device is of no more use, though it is still there. */
static void device_fatal(struct kdapl_device *dev)
{
	struct kdapl_link *link;

	pr_err("%s: the device reports a fatal error: its connections break, its IAs are lost\n",
	       dev->name);
	WRITE_ONCE(dev->fatal, true);	/* nobody enters any more */
	device_mark_all(dev);
	mutex_lock(&dev->lock);
	list_for_each_entry(link, &dev->links, node) {
		if (!link->leaving)
			link->ops->fail(link);
	}
	mutex_unlock(&dev->lock);
	device_remove_ids(dev);
	mutex_lock(&dev->lock);
	device_catastrophe(dev);
	mutex_unlock(&dev->lock);
}

static void device_port_error(struct kdapl_device *dev, u32 port)
{
	struct kdapl_ia *ia;

	mutex_lock(&dev->lock);
	list_for_each_entry(ia, &dev->ias, dev_node) {
		if (ia->port == port && READ_ONCE(ia->obj.live))
			kdapl_ia_async(ia, ia->obj.handle,
				       DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR,
				       DAT_IA_OTHER_ERROR);
	}
	mutex_unlock(&dev->lock);
}

/**
 * kdapl_port_attr - attributes of a port, without asking the device
 * @dev: device
 * @port: its port
 * @attr: filled with what the port has answered last
 *
 * Most drivers of Ethernet adapters take RTNL in ib_query_port(), to learn the speed of
 * the link. The holder of RTNL may be waiting for memory, hence for the disk that the
 * caller is about to reconnect. So ports are asked when the device comes and after their
 * events, from a work item, and never on behalf of a consumer.
 *
 * Context: any.
 */
void kdapl_port_attr(struct kdapl_device *dev, u32 port, struct ib_port_attr *attr)
{
	unsigned long flags;

	spin_lock_irqsave(&dev->ports_lock, flags);
	*attr = dev->port_attrs[port - 1];
	spin_unlock_irqrestore(&dev->ports_lock, flags);
}

/* Ask all ports. The device cannot go meanwhile. */
static void device_ask_ports(struct kdapl_device *dev)
{
	struct ib_port_attr attr;
	unsigned long flags;
	u32 port;
	int err;

	mutex_lock(&dev->ports_mutex);
	for (port = 1; port <= dev->ports; port++) {
		err = ib_query_port(dev->ibdev, port, &attr);
		if (err) {	/* what is known of it stays */
			pr_warn_ratelimited("%s: port %u does not tell its attributes: %pe\n",
					    dev->name, port, ERR_PTR(err));
			continue;
		}
		spin_lock_irqsave(&dev->ports_lock, flags);
		dev->port_attrs[port - 1] = attr;
		spin_unlock_irqrestore(&dev->ports_lock, flags);
	}
	mutex_unlock(&dev->ports_mutex);
}

static void device_work_ports(struct work_struct *work)
{
	device_ask_ports(container_of(work, struct kdapl_device, ports_work));
}

/**
 * struct device_event - an event of the device on its way
 * @work: deals with it
 * @dev: device, entered
 * @event: the event
 */
struct device_event {
	struct work_struct work;
	struct kdapl_device *dev;
	struct ib_event event;
};

static void device_work_event(struct work_struct *work)
{
	struct device_event *ev = container_of(work, struct device_event, work);
	unsigned int noio = memalloc_noio_save();	/* others' ends are behind it (D-32) */

	if (ev->event.event == IB_EVENT_DEVICE_FATAL)
		device_fatal(ev->dev);
	else
		device_port_error(ev->dev, ev->event.element.port_num);
	kdapl_dev_exit(ev->dev);
	kfree(ev);
	memalloc_noio_restore(noio);
}

/* After which events may a port have other attributes? Those we use do not depend on GIDs. */
static bool device_port_may_differ(enum ib_event_type event)
{
	switch (event) {
	case IB_EVENT_PORT_ACTIVE:
	case IB_EVENT_PORT_ERR:
	case IB_EVENT_LID_CHANGE:
	case IB_EVENT_SM_CHANGE:
	case IB_EVENT_CLIENT_REREGISTER:
		return true;
	default:
		return false;
	}
}

/*
 * The core calls this with a lock held that comes after ours. Changes of LID, GID
 * or P_Key are not told: connections notice if they matter.
 */
static void device_on_event(struct ib_event_handler *handler, struct ib_event *event)
{
	struct kdapl_device *dev = container_of(handler, struct kdapl_device, event_handler);
	struct device_event *ev;

	/* waits for RTNL there, as ib_core itself does: not on a queue a reconnect needs */
	if (device_port_may_differ(event->event))
		queue_work(ib_wq, &dev->ports_work);
	if (event->event != IB_EVENT_DEVICE_FATAL && event->event != IB_EVENT_PORT_ERR)
		return;
	ev = kzalloc(sizeof(*ev), GFP_NOIO);
	if (!ev) {
		pr_err("%s: no memory to tell consumers of event %d of the device\n",
		       dev->name, event->event);
		return;
	}
	if (!kdapl_dev_enter(dev)) {	/* gone or failed: they know */
		kfree(ev);
		return;
	}
	INIT_WORK(&ev->work, device_work_event);
	ev->dev = dev;
	ev->event = *event;
	queue_work(kdapl_misc_wq, &ev->work);
}

/*
 * device_client_add - ib_client.add
 * @ibdev: new device
 *
 * Return: 0; -EOPNOTSUPP for devices that cannot be served honestly, which the log says.
 */
static int device_client_add(struct ib_device *ibdev)
{
	const char *refusal = kdapl_quirks_refusal(ibdev);
	struct kdapl_device *dev;
	unsigned int i;

	if (refusal) {
		pr_info("%s: no IA: %s\n", dev_name(&ibdev->dev), refusal);
		return -EOPNOTSUPP;
	}
	dev = kzalloc(struct_size(dev, port_attrs, ibdev->phys_port_cnt), GFP_KERNEL);
	if (!dev)
		return -ENOMEM;
	refcount_set(&dev->ref, 1);
	refcount_set(&dev->users, 1);
	init_completion(&dev->unused);
	dev->ibdev = ibdev;
	dev->attrs = ibdev->attrs;
	dev->ports = ibdev->phys_port_cnt;
	kdapl_quirks_derive(dev, rdma_protocol_iwarp(ibdev, rdma_start_port(ibdev)));
	kdapl_dma_init(dev);
	kdapl_quirks_probe(dev);
	strscpy(dev->name, dev_name(&ibdev->dev), sizeof(dev->name));
	mutex_init(&dev->lock);
	mutex_init(&dev->ports_mutex);
	spin_lock_init(&dev->ports_lock);
	INIT_WORK(&dev->ports_work, device_work_ports);
	init_waitqueue_head(&dev->idle);
	INIT_LIST_HEAD(&dev->ias);
	INIT_LIST_HEAD(&dev->links);
	for (i = 0; i < KDAPL_RES_KINDS; i++)
		INIT_LIST_HEAD(&dev->res[i]);
	INIT_IB_EVENT_HANDLER(&dev->event_handler, ibdev, device_on_event);
	ib_register_event_handler(&dev->event_handler);
	device_ask_ports(dev);	/* after that, so that no change is missed */
	ib_set_client_data(ibdev, &kdapl_client, dev);
	mutex_lock(&kdapl_devices_lock);
	list_add_tail(&dev->node, &kdapl_devices);
	mutex_unlock(&kdapl_devices_lock);
	return 0;
}

/*
 * device_client_rename - ib_client.rename
 * @ibdev: device with its new name
 * @client_data: kdapl_device
 *
 * Open IAs keep the name they were opened by.
 */
static void device_client_rename(struct ib_device *ibdev, void *client_data)
{
	struct kdapl_device *dev = client_data;

	mutex_lock(&kdapl_devices_lock);
	strscpy(dev->name, dev_name(&ibdev->dev), sizeof(dev->name));
	mutex_unlock(&kdapl_devices_lock);
}

/*
 * One object of the IA that has a cm_id, or an EP that waits for a request, referenced. Listeners
 * come first, so that no request arrives any more.
 */
static struct kdapl_obj *device_next_ia_id(struct kdapl_ia *ia)
{
	static const u8 types[] = {
		DAT_HANDLE_TYPE_PSP, DAT_HANDLE_TYPE_RSP, DAT_HANDLE_TYPE_CSP,
		DAT_HANDLE_TYPE_CR, DAT_HANDLE_TYPE_EP,
	};
	struct kdapl_obj *obj;
	int i;

	spin_lock_irq(&ia->lock);
	for (i = 0; i < ARRAY_SIZE(types); i++) {
		list_for_each_entry(obj, &ia->objs[types[i]], node) {
			if (obj->ops->has_id && obj->ops->has_id(obj))
				goto found;
		}
	}
	spin_unlock_irq(&ia->lock);
	return NULL;
found:
	refcount_inc(&obj->ref);
	spin_unlock_irq(&ia->lock);
	return obj;
}

/* The same of any IA. */
static struct kdapl_obj *device_next_id(struct kdapl_device *dev)
{
	struct kdapl_obj *obj = NULL;
	struct kdapl_ia *ia;

	mutex_lock(&dev->lock);
	list_for_each_entry(ia, &dev->ias, dev_node) {
		obj = device_next_ia_id(ia);
		if (obj)
			break;
	}
	mutex_unlock(&dev->lock);
	return obj;
}

static void device_remove_ids(struct kdapl_device *dev)
{
	struct kdapl_obj *obj;

	while ((obj = device_next_id(dev))) {
		obj->ops->device_lost(obj);
		kdapl_obj_put(obj);
	}
}

static void device_remove_links(struct kdapl_device *dev)
{
	struct kdapl_link *link;

	mutex_lock(&dev->lock);
again:
	list_for_each_entry(link, &dev->links, node) {
		if (link->leaving)
			continue;
		link->ops->hold(link);
		list_del_init(&link->node);
		mutex_unlock(&dev->lock);
		link->ops->remove(link);
		mutex_lock(&dev->lock);
		goto again;
	}
	mutex_unlock(&dev->lock);
	wait_event(dev->idle, list_empty_careful(&dev->links));
}

/*
 * A caller that was faster than device_remove_ids() may still be destroying an id, and
 * requests are refused later on soft-iWARP. rdma_cm waits for them as well, but it lets the device
 * go before an id that is being destroyed has given its GID back.
 */
static void device_await_ids(struct kdapl_device *dev)
{
	wait_event(dev->idle, !atomic_read(&dev->ids));
}

/* The first of a kind, to be destroyed, or NULL. */
static struct kdapl_res *device_take_res(struct kdapl_device *dev, enum kdapl_res_kind kind)
{
	struct kdapl_res *res;

	mutex_lock(&dev->lock);
	res = list_first_entry_or_null(&dev->res[kind], struct kdapl_res, node);
	if (res)
		device_res_take(dev, res);
	mutex_unlock(&dev->lock);
	return res;
}

/* One kind after the other, with what free calls had begun to destroy before. */
static void device_remove_res(struct kdapl_device *dev)
{
	enum kdapl_res_kind kind;
	struct kdapl_res *res;

	for (kind = 0; kind < KDAPL_RES_KINDS; kind++) {
		while ((res = device_take_res(dev, kind)))
			device_res_destroy(dev, res);
		wait_event(dev->idle, !READ_ONCE(dev->taken));
	}
}

/*
 * device_client_remove - ib_client.remove
 * @ibdev: device that goes
 * @client_data: kdapl_device
 *
 * Context: may sleep.
 */
static void device_client_remove(struct ib_device *ibdev, void *client_data)
{
	struct kdapl_device *dev = client_data;
	unsigned int noio = memalloc_noio_save();	/* freeing an EP may wait for this (D-32) */

	mutex_lock(&kdapl_devices_lock);
	list_del(&dev->node);
	mutex_unlock(&kdapl_devices_lock);
	ib_unregister_event_handler(&dev->event_handler);
	cancel_work_sync(&dev->ports_work);
	WRITE_ONCE(dev->gone, true);	/* nobody enters any more */
	kdapl_dev_exit(dev);
	wait_for_completion(&dev->unused);
	synchronize_rcu();	/* kdapl_dev_there() */

	device_mark_all(dev);
	device_remove_ids(dev);
	device_remove_links(dev);
	device_await_ids(dev);
	device_remove_res(dev);
	mutex_lock(&dev->lock);
	device_catastrophe(dev);
	mutex_unlock(&dev->lock);
	if (!list_empty(&dev->ias))
		pr_warn("%s: device removed while in use, its consumers have been told\n",
			dev->name);
	kdapl_device_put(dev);
	memalloc_noio_restore(noio);
}

struct ib_client kdapl_client = {
	.name = "kdapl",
	.add = device_client_add,
	.remove = device_client_remove,
	.rename = device_client_rename,
};
