// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Interface Adapters that appear and go: consumers are told their names.
 *
 * A work item tells them, since the removal of a device waits for no consumer. It runs where
 * upcalls do: a callback may wait for the work of all later queues.
 */
#include <linux/export.h>
#include <linux/notifier.h>
#include <linux/slab.h>

#include "core.h"

/* An adapter that has appeared or gone, or, in notify_known, that all consumers know of. */
struct notify_adapter {
	struct list_head node;
	unsigned long action;
	char name[DAT_NAME_MAX_LENGTH];
};

static LIST_HEAD(notify_changes);
static DEFINE_SPINLOCK(notify_lock);	/* notify_changes */
static LIST_HEAD(notify_known);
static DEFINE_MUTEX(notify_mutex);	/* notify_known, notify_chain, and the callbacks */
static RAW_NOTIFIER_HEAD(notify_chain);

static struct notify_adapter *notify_next(void)
{
	struct notify_adapter *adapter;

	spin_lock(&notify_lock);
	adapter = list_first_entry_or_null(&notify_changes, struct notify_adapter, node);
	if (adapter)
		list_del(&adapter->node);
	spin_unlock(&notify_lock);
	return adapter;
}

static void notify_forget(const char *name)
{
	struct notify_adapter *adapter, *next;

	list_for_each_entry_safe(adapter, next, &notify_known, node) {
		if (strcmp(adapter->name, name))
			continue;
		list_del(&adapter->node);
		kfree(adapter);
	}
}

static void notify_work_fn(struct work_struct *work)
{
	struct notify_adapter *adapter;

	while ((adapter = notify_next())) {
		mutex_lock(&notify_mutex);
		raw_notifier_call_chain(&notify_chain, adapter->action, adapter->name);
		if (adapter->action == KDAT_IA_ADDED) {
			list_add_tail(&adapter->node, &notify_known);
		} else {
			notify_forget(adapter->name);
			kfree(adapter);
		}
		mutex_unlock(&notify_mutex);
	}
}

static DECLARE_WORK(notify_work, notify_work_fn);

/**
 * kdapl_notify - the ports of a device have appeared or gone
 * @name: name of the device
 * @ports: how many it has
 * @action: KDAT_IA_ADDED or KDAT_IA_REMOVED
 *
 * Context: may sleep.
 */
void kdapl_notify(const char *name, u32 ports, unsigned long action)
{
	struct notify_adapter *adapter;
	u32 port;

	for (port = 1; port <= ports; port++) {
		/* no I/O: the device may be that of a disk */
		adapter = kzalloc(sizeof(*adapter), GFP_NOIO);
		if (!adapter)
			break;
		adapter->action = action;
		snprintf(adapter->name, sizeof(adapter->name), "%s-%u", name, port);
		spin_lock(&notify_lock);
		list_add_tail(&adapter->node, &notify_changes);
		spin_unlock(&notify_lock);
	}
	queue_work(kdapl_event_wq, &notify_work);
}

/**
 * kdapl_notify_exit - forget all adapters
 *
 * Context: unload; no device is left, and the work queues have been flushed.
 */
void kdapl_notify_exit(void)
{
	struct notify_adapter *adapter, *next;

	list_splice_init(&notify_changes, &notify_known);
	list_for_each_entry_safe(adapter, next, &notify_known, node) {
		list_del(&adapter->node);
		kfree(adapter);
	}
}

/**
 * kdat_register_ia_notifier - be told of IAs that appear and go
 * @nb: its notifier_call gets KDAT_IA_ADDED or KDAT_IA_REMOVED and the name of the IA, a string
 *	that is valid during the call; it returns NOTIFY_OK
 *
 * IAs that are there already are reported as KDAT_IA_ADDED during the call. A device that is
 * renamed is reported as gone and added. KDAT_IA_REMOVED comes when the device has gone, or a
 * little earlier; an open instance hears of it by DAT_ASYNC_ERROR_IA_CATASTROPHIC.
 *
 * The callback runs in a work item, or inside this call, one at a time. It may sleep and call
 * everything but this function and kdat_unregister_ia_notifier(). An extension of this
 * provider.
 *
 * Context: may sleep.
 * Return: 0, or -EEXIST if @nb is registered already.
 */
int kdat_register_ia_notifier(struct notifier_block *nb)
{
	struct notify_adapter *adapter;
	int err;

	mutex_lock(&notify_mutex);
	err = raw_notifier_chain_register(&notify_chain, nb);
	if (!err)
		list_for_each_entry(adapter, &notify_known, node)
			nb->notifier_call(nb, KDAT_IA_ADDED, adapter->name);
	mutex_unlock(&notify_mutex);
	return err;
}
EXPORT_SYMBOL(kdat_register_ia_notifier);

/**
 * kdat_unregister_ia_notifier - be told no more
 * @nb: as registered
 *
 * When it returns no callback runs or will start. An extension of this provider.
 *
 * Context: may sleep; not inside a callback.
 * Return: 0, or -ENOENT if @nb is not registered.
 */
int kdat_unregister_ia_notifier(struct notifier_block *nb)
{
	int err;

	mutex_lock(&notify_mutex);
	err = raw_notifier_chain_unregister(&notify_chain, nb);
	mutex_unlock(&notify_mutex);
	return err;
}
EXPORT_SYMBOL(kdat_unregister_ia_notifier);
