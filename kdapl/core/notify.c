// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Notifiers: consumers are told the names of Interface Adapters that appear and go.
 *
 * A work item calls them, since the removal of a device waits for no consumer. It runs where
 * upcalls do: a callback may wait for the work of all later queues.
 *
 * There is no queue of events, which would need memory. What consumers have yet to be told is the
 * difference between the name a device has and the name they know it by (struct kdapl_notice). If
 * a device comes and goes before the work item runs, they are told nothing.
 */
#include <linux/export.h>
#include <linux/notifier.h>

#include "core.h"

/* Beside KDAT_IA_ADDED and KDAT_IA_REMOVED. */
#define NOTIFY_NOTHING	0
#define NOTIFY_FORGET	3	/* the device has gone, and consumers do not know it */

static LIST_HEAD(notify_devices);
static DEFINE_SPINLOCK(notify_lock);	/* notify_devices, names that devices have */
static DEFINE_MUTEX(notify_mutex);	/* names that are known, notify_chain, and the callbacks */
static RAW_NOTIFIER_HEAD(notify_chain);

/* The next action for a device. */
static unsigned long notify_due(const struct kdapl_notice *notice)
{
	if (*notice->known)
		return strcmp(notice->known, notice->name) ? KDAT_IA_REMOVED : NOTIFY_NOTHING;
	return *notice->name ? KDAT_IA_ADDED : NOTIFY_FORGET;
}

static struct kdapl_device *notify_find(unsigned long action)
{
	struct kdapl_device *dev;

	lockdep_assert_held(&notify_lock);
	list_for_each_entry(dev, &notify_devices, notice.node)
		if (notify_due(&dev->notice) == action)
			return dev;
	return NULL;
}

/* The next device that needs an action; NULL if none does. */
static struct kdapl_device *notify_next(unsigned long *action)
{
	/* in this order: another device may have the name by now */
	static const u8 order[] = { NOTIFY_FORGET, KDAT_IA_REMOVED, KDAT_IA_ADDED };
	struct kdapl_device *dev = NULL;
	int i;

	for (i = 0; i < ARRAY_SIZE(order) && !dev; i++) {
		*action = order[i];
		dev = notify_find(*action);
	}
	return dev;
}

/* Tell one consumer, or all of them, of each port. notify_mutex held. */
static void notify_tell(struct notifier_block *nb, const struct kdapl_device *dev,
			unsigned long action, const char *name)
{
	char ia_name[DAT_NAME_MAX_LENGTH];
	u32 port;

	for (port = 1; port <= dev->ports; port++) {
		snprintf(ia_name, sizeof(ia_name), "%s-%u", name, port);
		if (nb)
			nb->notifier_call(nb, action, ia_name);
		else
			raw_notifier_call_chain(&notify_chain, action, ia_name);
	}
}

/* Carry out the next action. notify_mutex held. False: there is none. */
static bool notify_step(void)
{
	struct kdapl_device *dev;
	unsigned long action;

	spin_lock(&notify_lock);
	dev = notify_next(&action);
	if (dev && action == NOTIFY_FORGET)
		list_del(&dev->notice.node);
	else if (dev && action == KDAT_IA_ADDED)
		strscpy(dev->notice.known, dev->notice.name, sizeof(dev->notice.known));
	spin_unlock(&notify_lock);
	if (!dev)
		return false;
	if (action == NOTIFY_FORGET) {
		kdapl_device_put(dev);
		return true;
	}
	notify_tell(NULL, dev, action, dev->notice.known);
	if (action == KDAT_IA_REMOVED)
		*dev->notice.known = '\0';
	return true;
}

static void notify_work_fn(struct work_struct *work)
{
	bool more;

	do {
		mutex_lock(&notify_mutex);
		more = notify_step();
		mutex_unlock(&notify_mutex);
	} while (more);
}

static DECLARE_WORK(notify_work, notify_work_fn);

/**
 * kdapl_notify - a device has appeared, has another name, or has gone
 * @dev: the device; kept until consumers know that it has gone
 * @name: its name; empty when it has gone
 *
 * Context: may sleep; one call at a time.
 */
void kdapl_notify(struct kdapl_device *dev, const char *name)
{
	spin_lock(&notify_lock);
	strscpy(dev->notice.name, name, sizeof(dev->notice.name));
	if (list_empty(&dev->notice.node)) {
		refcount_inc(&dev->ref);
		list_add_tail(&dev->notice.node, &notify_devices);
	}
	spin_unlock(&notify_lock);
	queue_work(kdapl_event_wq, &notify_work);
}

static bool notify_is_registered(const struct notifier_block *nb)
{
	const struct notifier_block *n;

	n = rcu_dereference_protected(notify_chain.head, lockdep_is_held(&notify_mutex));
	while (n && n != nb)
		n = rcu_dereference_protected(n->next, lockdep_is_held(&notify_mutex));
	return n;
}

/**
 * kdat_register_ia_notifier - register a notifier of IAs that appear and go
 * @nb: its notifier_call gets KDAT_IA_ADDED or KDAT_IA_REMOVED and the name of the IA, a string
 *	that is valid during the call; it ignores other actions, which a later version may have,
 *	and returns NOTIFY_OK
 *
 * IAs that are there already are reported as KDAT_IA_ADDED during the call. A device that is
 * renamed, or goes and comes back, is reported as gone and added, in this order. KDAT_IA_REMOVED
 * comes when the device has gone, or a little earlier; an open instance is told by
 * DAT_ASYNC_ERROR_IA_CATASTROPHIC. A device that goes before it could be reported is not.
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
	struct kdapl_device *dev;
	int err = -EEXIST;

	mutex_lock(&notify_mutex);
	if (notify_is_registered(nb))	/* the chain would warn */
		goto out;
	err = raw_notifier_chain_register(&notify_chain, nb);
	if (err)
		goto out;
	spin_lock(&notify_lock);
	list_for_each_entry(dev, &notify_devices, notice.node) {
		if (!*dev->notice.known)
			continue;
		/* devices leave the list under notify_mutex only */
		spin_unlock(&notify_lock);
		notify_tell(nb, dev, KDAT_IA_ADDED, dev->notice.known);
		spin_lock(&notify_lock);
	}
	spin_unlock(&notify_lock);
out:
	mutex_unlock(&notify_mutex);
	return err;
}
EXPORT_SYMBOL(kdat_register_ia_notifier);

/**
 * kdat_unregister_ia_notifier - unregister a notifier of IAs
 * @nb: as registered
 *
 * When the call returns, no callback is running and none will start. An extension of this
 * provider.
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
