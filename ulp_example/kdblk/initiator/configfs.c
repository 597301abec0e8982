// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The administrator's interface: a directory for each disk under
 * /sys/kernel/config/kdblk/. README.md describes the files.
 */
#define pr_fmt(fmt) "kdblk: " fmt

#include <linux/cpumask.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/utsname.h>
#include "../../../kdapl/version.h"
#include "../compat.h"
#include "kdblk.h"

struct workqueue_struct *kdblk_wq;

static struct kdblk_disk *kdblk_to_disk(struct config_item *item)
{
	return container_of(item, struct kdblk_disk, item);
}

/* Parameters must not change while they are in use. */
static bool kdblk_fixed(const struct kdblk_disk *disk)
{
	int state = READ_ONCE(disk->state);

	return state != KDBLK_IDLE && (state != KDBLK_FAILED || disk->gendisk);
}

/* Store a nonempty line in @to, without its newline. */
static ssize_t kdblk_store_text(struct kdblk_disk *disk, char *to, size_t size,
				const char *page, size_t count)
{
	size_t n = count && page[count - 1] == '\n' ? count - 1 : count;
	ssize_t ret = count;

	if (!n || n >= size || memchr(page, '\n', n) || memchr(page, 0, n))
		return -EINVAL;
	mutex_lock(&disk->admin);
	if (kdblk_fixed(disk)) {
		ret = -EBUSY;
	} else {
		memset(to, 0, size);
		memcpy(to, page, n);
	}
	mutex_unlock(&disk->admin);
	return ret;
}

static ssize_t kdblk_store_number(struct kdblk_disk *disk, u32 *to, u32 min, u32 max,
				  const char *page, size_t count)
{
	ssize_t ret = count;
	u32 n;
	int err = kstrtou32(page, 0, &n);

	if (err)
		return err;
	if (n < min || n > max)
		return -ERANGE;
	mutex_lock(&disk->admin);
	if (kdblk_fixed(disk))
		ret = -EBUSY;
	else
		*to = n;
	mutex_unlock(&disk->admin);
	return ret;
}

#define KDBLK_TEXT(name, size)								\
static char *kdblk_##name##_of(struct config_item *item)				\
{											\
	return kdblk_to_disk(item)->config.name;						\
}											\
static ssize_t kdblk_##name##_show(struct config_item *item, char *page)		\
{											\
	return sysfs_emit(page, "%s\n", kdblk_##name##_of(item));			\
}											\
static ssize_t kdblk_##name##_store(struct config_item *item, const char *page,		\
				    size_t count)					\
{											\
	return kdblk_store_text(kdblk_to_disk(item), kdblk_##name##_of(item), size, page,	\
				count);							\
}

#define KDBLK_NUMBER(name, min, max)							\
static u32 *kdblk_##name##_of(struct config_item *item)					\
{											\
	return &kdblk_to_disk(item)->config.name;						\
}											\
static ssize_t kdblk_##name##_show(struct config_item *item, char *page)		\
{											\
	return sysfs_emit(page, "%u\n", *kdblk_##name##_of(item));			\
}											\
static ssize_t kdblk_##name##_store(struct config_item *item, const char *page,		\
				    size_t count)					\
{											\
	return kdblk_store_number(kdblk_to_disk(item), kdblk_##name##_of(item), min, max, page,	\
				  count);						\
}

KDBLK_TEXT(ia, DAT_NAME_MAX_LENGTH)
CONFIGFS_ATTR(kdblk_, ia);
KDBLK_TEXT(address, KDBLK_ADDRESS_LEN)
CONFIGFS_ATTR(kdblk_, address);
KDBLK_TEXT(disk, KDBLK_NAME_LEN)
CONFIGFS_ATTR(kdblk_, disk);
KDBLK_TEXT(initiator, KDBLK_NAME_LEN)
CONFIGFS_ATTR(kdblk_, initiator);
KDBLK_NUMBER(port, 1, 65535)
CONFIGFS_ATTR(kdblk_, port);
KDBLK_NUMBER(queues, 1, 128)
CONFIGFS_ATTR(kdblk_, queues);
KDBLK_NUMBER(poll_queues, 0, 128)
CONFIGFS_ATTR(kdblk_, poll_queues);
KDBLK_NUMBER(depth, 1, KDBLK_MAX_DEPTH)
CONFIGFS_ATTR(kdblk_, depth);
KDBLK_NUMBER(keepalive_ms, 100, 600000)
CONFIGFS_ATTR(kdblk_, keepalive_ms);
KDBLK_NUMBER(reconnect_delay_ms, 1, 600000)
CONFIGFS_ATTR(kdblk_, reconnect_delay_ms);
KDBLK_NUMBER(reconnect_max, 1, 1000000)
CONFIGFS_ATTR(kdblk_, reconnect_max);

static ssize_t kdblk_connect_show(struct config_item *item, char *page)
{
	int state = READ_ONCE(kdblk_to_disk(item)->state);

	return sysfs_emit(page, "%d\n", state == KDBLK_LIVE || state == KDBLK_RECOVERING);
}

static ssize_t kdblk_connect_store(struct config_item *item, const char *page, size_t count)
{
	struct kdblk_disk *disk = kdblk_to_disk(item);
	bool on;
	int err = kstrtobool(page, &on);

	if (err)
		return err;
	mutex_lock(&disk->admin);
	if (on)
		err = kdblk_start(disk);
	else if (disk->state != KDBLK_IDLE)
		kdblk_stop(disk);
	mutex_unlock(&disk->admin);
	return err ?: count;
}
CONFIGFS_ATTR(kdblk_, connect);

static ssize_t kdblk_state_show(struct config_item *item, char *page)
{
	static const char * const name[] = {
		[KDBLK_IDLE] = "idle",
		[KDBLK_CONNECTING] = "connecting",
		[KDBLK_LIVE] = "live",
		[KDBLK_RECOVERING] = "recovering",
		[KDBLK_FAILED] = "failed",
	};

	return sysfs_emit(page, "%s\n", name[READ_ONCE(kdblk_to_disk(item)->state)]);
}
CONFIGFS_ATTR_RO(kdblk_, state);

static ssize_t kdblk_device_show(struct config_item *item, char *page)
{
	struct kdblk_disk *disk = kdblk_to_disk(item);
	ssize_t n;

	mutex_lock(&disk->gate);
	n = sysfs_emit(page, "%s\n", disk->gendisk ? disk->gendisk->disk_name : "");
	mutex_unlock(&disk->gate);
	return n;
}
CONFIGFS_ATTR_RO(kdblk_, device);

static ssize_t kdblk_last_error_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", READ_ONCE(kdblk_to_disk(item)->last_error));
}
CONFIGFS_ATTR_RO(kdblk_, last_error);

static ssize_t kdblk_stats_show(struct config_item *item, char *page)
{
	struct kdblk_disk *disk = kdblk_to_disk(item);

	return sysfs_emit(page, "connects %llu\nlosses %llu\nreplayed %llu\nattempts %u\n",
			  disk->connects, disk->losses, disk->replayed, disk->attempts);
}
CONFIGFS_ATTR_RO(kdblk_, stats);

static ssize_t kdblk_id_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%*phN\n", KDBLK_ID_LEN, kdblk_to_disk(item)->id);
}

static ssize_t kdblk_id_store(struct config_item *item, const char *page, size_t count)
{
	struct kdblk_disk *disk = kdblk_to_disk(item);
	size_t n = count && page[count - 1] == '\n' ? count - 1 : count;
	ssize_t ret = count;
	u8 id[KDBLK_ID_LEN];

	if (n != 2 * sizeof(id) || hex2bin(id, page, sizeof(id)))
		return -EINVAL;
	mutex_lock(&disk->admin);
	if (kdblk_fixed(disk))
		ret = -EBUSY;
	else
		memcpy(disk->id, id, sizeof(id));
	mutex_unlock(&disk->admin);
	return ret;
}
CONFIGFS_ATTR(kdblk_, id);

static struct configfs_attribute *kdblk_attrs[] = {
	&kdblk_attr_id,
	&kdblk_attr_ia,
	&kdblk_attr_address,
	&kdblk_attr_port,
	&kdblk_attr_disk,
	&kdblk_attr_initiator,
	&kdblk_attr_queues,
	&kdblk_attr_poll_queues,
	&kdblk_attr_depth,
	&kdblk_attr_keepalive_ms,
	&kdblk_attr_reconnect_delay_ms,
	&kdblk_attr_reconnect_max,
	&kdblk_attr_connect,
	&kdblk_attr_state,
	&kdblk_attr_device,
	&kdblk_attr_last_error,
	&kdblk_attr_stats,
	NULL
};

static void kdblk_release(struct config_item *item)
{
	kfree(kdblk_to_disk(item));
}

static struct configfs_item_operations kdblk_item_ops = {
	.release = kdblk_release,
};

static const struct config_item_type kdblk_item_type = {
	.ct_item_ops = &kdblk_item_ops,
	.ct_attrs = kdblk_attrs,
	.ct_owner = THIS_MODULE,
};

static struct config_item *kdblk_make_item(struct config_group *group, const char *name)
{
	struct kdblk_disk *disk = kzalloc(sizeof(*disk), GFP_KERNEL);

	if (!disk)
		return ERR_PTR(-ENOMEM);
	kdblk_session_init(disk);
	disk->config.port = KDBLK_PORT;
	disk->config.queues = min(num_online_cpus(), 128u);
	disk->config.depth = 128;
	disk->config.keepalive_ms = 5000;
	disk->config.reconnect_delay_ms = 2000;
	disk->config.reconnect_max = 30;
	strscpy(disk->config.initiator, utsname()->nodename, sizeof(disk->config.initiator));
	config_item_init_type_name(&disk->item, name, &kdblk_item_type);
	return &disk->item;
}

static void kdblk_drop_item(struct config_group *group, struct config_item *item)
{
	struct kdblk_disk *disk = kdblk_to_disk(item);

	mutex_lock(&disk->admin);
	if (disk->state != KDBLK_IDLE)
		kdblk_stop(disk);
	mutex_unlock(&disk->admin);
	config_item_put(item);
}

static struct configfs_group_operations kdblk_group_ops = {
	.make_item = kdblk_make_item,
	.drop_item = kdblk_drop_item,
};

static const struct config_item_type kdblk_group_type = {
	.ct_group_ops = &kdblk_group_ops,
	.ct_owner = THIS_MODULE,
};

static struct configfs_subsystem kdblk_subsys = {
	.su_group.cg_item = {
		.ci_namebuf = "kdblk",
		.ci_type = &kdblk_group_type,
	},
};

static int __init kdblk_init(void)
{
	int err;

	/* Writeback to these disks frees memory, so recovery must not wait for memory. */
	kdblk_wq = alloc_workqueue("kdblk", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	if (!kdblk_wq)
		return -ENOMEM;
	config_group_init(&kdblk_subsys.su_group);
	mutex_init(&kdblk_subsys.su_mutex);
	err = configfs_register_subsystem(&kdblk_subsys);
	if (err)
		destroy_workqueue(kdblk_wq);
	return err;
}

static void __exit kdblk_exit(void)
{
	configfs_unregister_subsystem(&kdblk_subsys);
	kdblk_disk_exit();
	destroy_workqueue(kdblk_wq);
}

module_init(kdblk_init);
module_exit(kdblk_exit);

MODULE_DESCRIPTION("kdblk initiator: block devices of another machine over kDAPL");
MODULE_AUTHOR("The kDAPL for Linux authors");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION(KDAPL_VERSION);
