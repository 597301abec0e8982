// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Devices: from ib_client.add to ib_client.remove.
 *
 * Removal destroys every verbs object of the device before it returns, whatever
 * consumers do. It posts nothing meanwhile, since a provider that is being unloaded may
 * not process it any more. First the device is marked gone, so that every call returns
 * DAT_INTERNAL_ERROR, and removal waits for the calls under way. The reaper, the end of a
 * connection or a CM handler may still run. The lock of the object serialises it with
 * removal, and whichever comes second finds the verbs part gone. If removal or a free call
 * has begun to destroy a verbs object, the other one waits for it (struct kdapl_res).
 * The consumers' objects stay as shells until their consumers free them.
 */
#include <linux/nsproxy.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "core.h"
#include "trace.h"

static LIST_HEAD(kdapl_devices);
static DEFINE_MUTEX(kdapl_devices_lock);	/* the list, names of devices */

/**
 * kdapl_dev_enter - begin to use a device's verbs objects
 * @dev: device
 *
 * Nests. The caller may sleep inside; removal waits for it.
 *
 * Return: true if the device is there and has not failed; kdapl_dev_exit() must follow.
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
 * kdapl_res_add - register the verbs part of an object with its device
 * @dev: its device, entered
 * @res: part of the object
 * @kind: its kind
 * @destroy: destroys the verbs part
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

/* Take it off the list, to destroy it. dev->lock held. */
static void device_res_take(struct kdapl_device *dev, struct kdapl_res *res)
{
	list_del(&res->node);
	res->state = KDAPL_RES_TAKEN;
	dev->taken++;
}

/* Destroy what was taken. A waiter may free its memory as soon as the state says so. */
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
 * kdapl_res_release - destroy the verbs part of an object
 * @dev: its device, referenced by the caller
 * @res: part of the object
 *
 * Waits if removal of the device is destroying it.
 *
 * Context: may sleep, without dev->lock.
 * Return: true if this call has destroyed it; false if removal has, or there was none.
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
 * kdapl_dev_conn_add - register a connection, which removal has to end
 * @dev: its device, entered
 * @dev_conn: part of the connection
 * @ops: operations of the connection, which the device calls
 *
 * Context: may sleep.
 */
void kdapl_dev_conn_add(struct kdapl_device *dev, struct kdapl_dev_conn *dev_conn,
			const struct kdapl_dev_conn_ops *ops)
{
	mutex_lock(&dev->lock);
	dev_conn->ops = ops;
	list_add_tail(&dev_conn->node, &dev->conns);
	mutex_unlock(&dev->lock);
}

/**
 * kdapl_dev_conn_leaves - a connection has begun to destroy its verbs objects
 * @dev: its device
 * @dev_conn: of the connection; kdapl_dev_conn_del() follows
 *
 * Context: may sleep.
 */
void kdapl_dev_conn_leaves(struct kdapl_device *dev, struct kdapl_dev_conn *dev_conn)
{
	mutex_lock(&dev->lock);
	dev_conn->leaving = true;
	mutex_unlock(&dev->lock);
}

/**
 * kdapl_dev_conn_del - a connection has no verbs object left
 * @dev: its device
 * @dev_conn: of the connection
 *
 * Context: may sleep.
 */
void kdapl_dev_conn_del(struct kdapl_device *dev, struct kdapl_dev_conn *dev_conn)
{
	mutex_lock(&dev->lock);
	list_del_init(&dev_conn->node);
	wake_up(&dev->idle);
	mutex_unlock(&dev->lock);
}

/**
 * kdapl_device_id_made - count a cm_id that removal has to wait for
 * @dev: device of the id
 *
 * Context: any, as long as removal cannot be past its wait: inside kdapl_dev_enter(), in
 * the handler of a cm_id that is counted, or in kdapl_device_walk(), since removal takes the
 * device off the list first.
 */
void kdapl_device_id_made(struct kdapl_device *dev)
{
	refcount_inc(&dev->ref);
	atomic_inc(&dev->ids);
}

/**
 * kdapl_device_id_gone - a counted cm_id is destroyed, or has become a connection's
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
 * kdapl_device_walk - call a function for each port of each device
 * @fn: called with device, port and @arg; a non-zero return ends the walk
 * @arg: for @fn
 *
 * Context: may sleep.
 * Return: the last return of @fn, or 0.
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
 * struct device_find - a search for the device and port of a name
 * @name: the name
 * @how: what kind of name it is taken for, in the order in which they are tried
 * @net: network namespace of netdevs and addresses
 * @pick: out: which addresses of the port the name stands for
 * @dev: out: the device
 * @port: out: its port
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
 * @name: "<ibdev>-<port>", name of an ibdev or a netdev, or IP address; netdevs and
 *	addresses of the caller's network namespace only
 * @port: out: the port
 * @pick: out: which addresses of the port the name stands for
 *
 * Context: may sleep.
 * Return: the device, referenced, or NULL.
 */
struct kdapl_device *kdapl_device_find(const char *name, u32 *port, struct kdapl_pick *pick)
{
	struct device_find find = {
		.name = name,
		.pick = pick,
		/* an exiting task has none */
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
			continue;	/* still being opened, see kdapl_device_opened() */
		WRITE_ONCE(ia->dead, true);
		ia->reported = true;
		trace_kdapl_ia_lost(ia->obj.handle, ia->name);
		kdapl_ia_async(ia, ia->obj.handle, DAT_ASYNC_ERROR_IA_CATASTROPHIC,
			       DAT_IA_CATASTROPHIC_ERROR);
	}
}

/**
 * kdapl_device_opened - an IA instance has got its handle
 * @dev: its device, entered
 *
 * Context: may sleep.
 */
void kdapl_device_opened(struct kdapl_device *dev)
{
	mutex_lock(&dev->lock);
	if (READ_ONCE(dev->fatal))	/* the error came before this instance had its handle */
		device_catastrophe(dev);
	mutex_unlock(&dev->lock);
}

/*
 * Mark IAs and connections before any of them is taken down. Otherwise the end of one
 * connection or request would look like a disconnect or a refusal to the other side, which
 * may be on the same device.
 */
static void device_mark_all(struct kdapl_device *dev)
{
	struct kdapl_dev_conn *dev_conn;
	struct kdapl_ia *ia;

	mutex_lock(&dev->lock);
	list_for_each_entry(ia, &dev->ias, dev_node)
		WRITE_ONCE(ia->dead, true);	/* calls return DAT_INTERNAL_ERROR */
	list_for_each_entry(dev_conn, &dev->conns, node)
		dev_conn->ops->lost(dev_conn);
	mutex_unlock(&dev->lock);
}

static void device_remove_ids(struct kdapl_device *dev);

/*
 * End all connections. Whoever has one may be waiting for the device, so dev->lock is not held
 * meanwhile; connections may leave then. Those that come are idle, and no attempt begins any more.
 */
static void device_fail_conns(struct kdapl_device *dev)
{
	struct kdapl_dev_conn *dev_conn;

	mutex_lock(&dev->lock);
again:
	list_for_each_entry(dev_conn, &dev->conns, node) {
		if (dev_conn->leaving || dev_conn->failed)
			continue;
		dev_conn->failed = true;
		list_move_tail(&dev_conn->node, &dev->conns);	/* the next one is found soon */
		dev_conn->ops->hold(dev_conn);
		mutex_unlock(&dev->lock);
		dev_conn->ops->fail(dev_conn);
		mutex_lock(&dev->lock);
		goto again;
	}
	mutex_unlock(&dev->lock);
}

/* The device is unusable from now on, although it is still there. */
static void device_fatal(struct kdapl_device *dev)
{
	pr_err("%s: the device reports a fatal error: its connections break, its IAs are lost\n",
	       dev->name);
	WRITE_ONCE(dev->fatal, true);	/* nobody enters any more */
	device_mark_all(dev);
	device_fail_conns(dev);
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
 * kdapl_port_attr - attributes of a port, without querying the device
 * @dev: device
 * @port: its port
 * @attr: filled with the result of the last query
 *
 * Most drivers of Ethernet adapters take RTNL in ib_query_port(), to learn the speed of
 * the link. The holder of RTNL may be waiting for memory, hence for the disk that the
 * caller is about to reconnect. So ports are queried when the device is added, and from a
 * work item after events of a port, but never on behalf of a consumer (D-98).
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

/* Query all ports. The caller keeps the device from going away. */
static void device_query_ports(struct kdapl_device *dev)
{
	struct ib_port_attr attr;
	unsigned long flags;
	u32 port;
	int err;

	mutex_lock(&dev->ports_mutex);
	for (port = 1; port <= dev->ports; port++) {
		err = ib_query_port(dev->ibdev, port, &attr);
		if (err) {	/* keep the last result */
			pr_warn_ratelimited("%s: cannot query port %u: %pe\n",
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
	device_query_ports(container_of(work, struct kdapl_device, ports_work));
}

/**
 * struct device_event - an event of a device, handled in a work item
 * @work: the work item
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
	unsigned int noio = memalloc_noio_save();	/* reconnects may wait for this (D-32) */

	if (ev->event.event == IB_EVENT_DEVICE_FATAL)
		device_fatal(ev->dev);
	else
		device_port_error(ev->dev, ev->event.element.port_num);
	kdapl_dev_exit(ev->dev);
	kfree(ev);
	memalloc_noio_restore(noio);
}

/* Can this event change a port attribute that is used here? None of them depends on GIDs. */
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
 * ib_core calls this with a lock held that ranks inside ours, so none of ours may be taken.
 * Changes of LID, GID or P_Key are not reported to consumers: connections notice if they matter.
 */
static void device_on_event(struct ib_event_handler *handler, struct ib_event *event)
{
	struct kdapl_device *dev = container_of(handler, struct kdapl_device, event_handler);
	struct device_event *ev;

	/* may wait for RTNL, so not on one of our queues, which a reconnect needs */
	if (device_port_may_differ(event->event))
		queue_work(ib_wq, &dev->ports_work);
	if (event->event != IB_EVENT_DEVICE_FATAL && event->event != IB_EVENT_PORT_ERR)
		return;
	ev = kzalloc(sizeof(*ev), GFP_NOIO);
	if (!ev) {
		pr_err("%s: no memory to report event %d of the device\n",
		       dev->name, event->event);
		return;
	}
	if (!kdapl_dev_enter(dev)) {	/* gone or failed: consumers have been told */
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
 * Return: 0; -ENOMEM; -EOPNOTSUPP for a device that cannot be served, with a line in the log.
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
	dev = kdapl_zalloc_aligned(struct_size(dev, port_attrs, ibdev->phys_port_cnt));
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
	INIT_LIST_HEAD(&dev->conns);
	INIT_LIST_HEAD(&dev->notice.node);
	for (i = 0; i < KDAPL_RES_KINDS; i++)
		INIT_LIST_HEAD(&dev->res[i]);
	INIT_IB_EVENT_HANDLER(&dev->event_handler, ibdev, device_on_event);
	ib_register_event_handler(&dev->event_handler);
	device_query_ports(dev);	/* after registering, so that no change is missed */
	ib_set_client_data(ibdev, &kdapl_client, dev);
	mutex_lock(&kdapl_devices_lock);
	list_add_tail(&dev->node, &kdapl_devices);
	kdapl_notify(dev, dev->name);
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
	kdapl_notify(dev, dev->name);
	mutex_unlock(&kdapl_devices_lock);
}

/*
 * The next object of the IA that has a cm_id, or EP that waits for a request, referenced.
 * Listeners come first, so that no more requests arrive.
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

/* The next one of any IA. */
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

static void device_remove_conns(struct kdapl_device *dev)
{
	struct kdapl_dev_conn *dev_conn;

	mutex_lock(&dev->lock);
again:
	list_for_each_entry(dev_conn, &dev->conns, node) {
		if (dev_conn->leaving)
			continue;
		dev_conn->ops->hold(dev_conn);
		list_del_init(&dev_conn->node);
		mutex_unlock(&dev->lock);
		dev_conn->ops->remove(dev_conn);
		mutex_lock(&dev->lock);
		goto again;
	}
	mutex_unlock(&dev->lock);
	wait_event(dev->idle, list_empty_careful(&dev->conns));
}

/*
 * A call may still be destroying a cm_id, and on soft-iWARP requests are refused a little
 * later. rdma_cm waits for its ids as well, but it lets the device go before an id that is
 * being destroyed has released its GID (D-82).
 */
static void device_await_ids(struct kdapl_device *dev)
{
	wait_event(dev->idle, !atomic_read(&dev->ids));
}

/* Take the first of a kind, to destroy it; NULL if there is none. */
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

/* One kind after the other; each also waits for what free calls are still destroying. */
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
 * @ibdev: device to be removed
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
	kdapl_notify(dev, "");
	mutex_unlock(&kdapl_devices_lock);
	ib_unregister_event_handler(&dev->event_handler);
	cancel_work_sync(&dev->ports_work);
	WRITE_ONCE(dev->gone, true);	/* nobody enters any more */
	kdapl_dev_exit(dev);
	wait_for_completion(&dev->unused);
	synchronize_rcu();	/* readers of kdapl_dev_there() */

	device_mark_all(dev);
	device_remove_ids(dev);
	device_remove_conns(dev);
	device_await_ids(dev);
	device_remove_res(dev);
	mutex_lock(&dev->lock);
	device_catastrophe(dev);
	mutex_unlock(&dev->lock);
	if (!list_empty(&dev->ias))
		pr_warn("%s: device removed while in use, its consumers have been notified\n",
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
