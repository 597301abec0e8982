// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * What user space sees of a disk beside the block device: /sys/class/kdblk/NAME, the parent of
 * the block device. It tells vendor, model, serial and wwid (lsblk and udev read them), and
 * sends a uevent when the connection is lost, when it is back and when recovery gives up.
 *
 * Its own parent is not the adapter: a disk outlives that, and may come back through another
 * one. The link "adapter" leads to the device of the adapter that is used.
 *
 * Uevents and links need locks whose holders allocate memory, and so may wait for writeback to
 * this very disk. Recovery must not wait for those, hence the work item.
 */
#define pr_fmt(fmt) "kdblk: " fmt

#include <linux/ctype.h>
#include <linux/device.h>
#include <linux/module.h>
#include "kdblk.h"

/*
 * A text of the target or of the administrator. udev makes file names of it, so only
 * characters that are harmless there are shown.
 */
static ssize_t kdblk_show_plain(char *page, const char *prefix, const char *text)
{
	ssize_t n = sysfs_emit(page, "%s", prefix);

	for (; *text; text++)
		n += sysfs_emit_at(page, n, "%c",
				   isascii(*text) && (isalnum(*text) || strchr("-_.:+=@", *text)) ?
				   *text : '_');
	return n + sysfs_emit_at(page, n, "\n");
}

static ssize_t vendor_show(struct device *dev, struct device_attribute *attr, char *page)
{
	return sysfs_emit(page, "kDAPL\n");
}

static ssize_t model_show(struct device *dev, struct device_attribute *attr, char *page)
{
	struct kdblk_disk *disk = dev_get_drvdata(dev);

	return kdblk_show_plain(page, "", disk->config.disk);
}

static ssize_t serial_show(struct device *dev, struct device_attribute *attr, char *page)
{
	struct kdblk_disk *disk = dev_get_drvdata(dev);

	return kdblk_show_plain(page, "", disk->geometry.serial);
}

/* All paths to a disk have the same one. */
static ssize_t wwid_show(struct device *dev, struct device_attribute *attr, char *page)
{
	struct kdblk_disk *disk = dev_get_drvdata(dev);

	return kdblk_show_plain(page, "kdblk.", disk->geometry.serial);
}

/* The address may be changed while the disk has failed; then this is one or the other. */
static ssize_t address_show(struct device *dev, struct device_attribute *attr, char *page)
{
	struct kdblk_disk *disk = dev_get_drvdata(dev);

	return sysfs_emit(page, "%pISpc\n", &disk->address);
}

static DEVICE_ATTR_RO(vendor);
static DEVICE_ATTR_RO(model);
static DEVICE_ATTR_RO(serial);
static DEVICE_ATTR_RO(wwid);
static DEVICE_ATTR_RO(address);

static struct attribute *kdblk_dev_attrs[] = {
	&dev_attr_vendor.attr,
	&dev_attr_model.attr,
	&dev_attr_serial.attr,
	&dev_attr_wwid.attr,
	&dev_attr_address.attr,
	NULL
};

/* Only the serial from the target distinguishes a disk from others. */
static umode_t kdblk_dev_attr_mode(struct kobject *kobj, struct attribute *attr, int n)
{
	struct kdblk_disk *disk = dev_get_drvdata(kobj_to_dev(kobj));

	if ((attr == &dev_attr_serial.attr || attr == &dev_attr_wwid.attr) &&
	    !disk->geometry.serial[0])
		return 0;
	return attr->mode;
}

static const struct attribute_group kdblk_dev_group = {
	.attrs = kdblk_dev_attrs,
	.is_visible = kdblk_dev_attr_mode,
};

static const struct attribute_group *kdblk_dev_groups[] = {
	&kdblk_dev_group,
	NULL
};

static struct class kdblk_class = {
	.name = "kdblk",
	.dev_groups = kdblk_dev_groups,
};

static void kdblk_uevent(struct kdblk_disk *disk, enum kdblk_state is)
{
	char state[32], name[KDBLK_NAME_LEN + 16], device[32];
	char *env[4] = { state, name, device, NULL };

	snprintf(state, sizeof(state), "KDBLK_STATE=%s", kdblk_state_name(is));
	snprintf(name, sizeof(name), "KDBLK_NAME=%s", dev_name(disk->dev));
	snprintf(device, sizeof(device), "KDBLK_DEVICE=kdblk%d", disk->minor);
	kobject_uevent_env(&disk->dev->kobj, KOBJ_CHANGE, env);
}

static void kdblk_link_adapter(struct kdblk_disk *disk)
{
	struct device *adapter = xchg(&disk->adapter, NULL);

	if (!adapter)
		return;
	sysfs_remove_link(&disk->dev->kobj, "adapter");
	if (sysfs_create_link(&disk->dev->kobj, &adapter->kobj, "adapter"))
		pr_info("%s: no link to adapter %s\n", kdblk_name(disk), dev_name(adapter));
	put_device(adapter);
}

/* Tell user space what has happened: a loss even if the connection is back by now. */
static void kdblk_event_work(struct work_struct *work)
{
	struct kdblk_disk *disk = container_of(work, struct kdblk_disk, event);
	int state;

	kdblk_link_adapter(disk);
	if (xchg(&disk->event_lost, 0))
		kdblk_uevent(disk, KDBLK_RECOVERING);
	state = READ_ONCE(disk->state);
	if (state == KDBLK_LIVE || (state == KDBLK_FAILED && !READ_ONCE(disk->stopping)))
		kdblk_uevent(disk, state);
}

/* The state may have changed. With @gate held. */
void kdblk_sysfs_event(struct kdblk_disk *disk)
{
	int state = READ_ONCE(disk->state);

	if (state == disk->event_state)
		return;
	disk->event_state = state;
	if (state == KDBLK_RECOVERING)
		xchg(&disk->event_lost, 1);
	schedule_work(&disk->event);
}

/* Remember the device of the adapter. Called while the IA cannot be closed. */
void kdblk_sysfs_adapter(struct kdblk_disk *disk)
{
	struct device *adapter = NULL;

	if (!disk->ia || kdat_ia_device(disk->ia, &adapter) != DAT_SUCCESS || !adapter)
		return;
	put_device(xchg(&disk->adapter, adapter));
}

/* Forget it, if it was not linked to. */
void kdblk_sysfs_no_adapter(struct kdblk_disk *disk)
{
	put_device(xchg(&disk->adapter, NULL));
}

/* Called before the block device is made. */
int kdblk_sysfs_add(struct kdblk_disk *disk)
{
	INIT_WORK(&disk->event, kdblk_event_work);
	disk->event_state = KDBLK_IDLE;
	disk->event_lost = 0;
	disk->dev = device_create(&kdblk_class, NULL, 0, disk, "%s", kdblk_name(disk));
	return PTR_ERR_OR_ZERO(disk->dev);
}

/* Called after the block device has gone, so that there are no events any more. */
void kdblk_sysfs_remove(struct kdblk_disk *disk)
{
	cancel_work_sync(&disk->event);
	device_unregister(disk->dev);
	disk->dev = NULL;
}

int kdblk_sysfs_init(void)
{
	return class_register(&kdblk_class);
}

void kdblk_sysfs_exit(void)
{
	class_unregister(&kdblk_class);
}
