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
#include <linux/random.h>
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

/*
 * Parameters must not change while they are in use. Those of the connection alone, @link, are
 * not in use while the disk has failed.
 */
static bool kdblk_fixed(const struct kdblk_disk *disk, bool link)
{
	int state = READ_ONCE(disk->state);

	return state != KDBLK_IDLE && (state != KDBLK_FAILED || (disk->gendisk && !link));
}

static int kdblk_busy(struct kdblk_disk *disk, bool link)
{
	kdblk_why(disk, -EBUSY, "this can be changed only while the disk is not connected%s",
		  link ? ", or has failed" : "");
	return kdblk_refuse(disk, -EBUSY);
}

/* Store a line in @to, without its newline. */
static ssize_t kdblk_store_text(struct kdblk_disk *disk, char *to, size_t size, bool link,
				const char *page, size_t count)
{
	size_t n = count && page[count - 1] == '\n' ? count - 1 : count;
	ssize_t ret = count;

	mutex_lock(&disk->admin);
	if (n >= size || !kdblk_printable(page, n)) {
		kdblk_why(disk, -EINVAL, "a line of less than %zu printable characters is needed",
			  size);
		ret = kdblk_refuse(disk, -EINVAL);
	} else if (kdblk_fixed(disk, link)) {
		ret = kdblk_busy(disk, link);
	} else {
		memset(to, 0, size);
		memcpy(to, page, n);
	}
	mutex_unlock(&disk->admin);
	return ret;
}

/* The same for a name that the target has to know; empty: it is not set. */
static ssize_t kdblk_store_name(struct kdblk_disk *disk, char *to, size_t size, bool link,
				const char *page, size_t count)
{
	size_t n = count && page[count - 1] == '\n' ? count - 1 : count;
	char name[KDBLK_NAME_LEN] = {};
	int err = 0;

	if (n < sizeof(name))
		memcpy(name, page, n);
	if (n && (n >= sizeof(name) || strlen(name) != n || kdblk_check_name(name)))
		err = -EINVAL;
	if (!err)
		return kdblk_store_text(disk, to, size, link, page, count);
	mutex_lock(&disk->admin);
	kdblk_why(disk, err,
		  "a name has less than %u printable characters, without spaces and '/'",
		  KDBLK_NAME_LEN);
	kdblk_refuse(disk, err);
	mutex_unlock(&disk->admin);
	return err;
}

static ssize_t kdblk_store_number(struct kdblk_disk *disk, u32 *to, u32 min, u32 max, bool link,
				  const char *page, size_t count)
{
	ssize_t ret = count;
	u32 n;
	int err = kstrtou32(page, 0, &n);

	if (!err && (n < min || n > max))
		err = -ERANGE;
	mutex_lock(&disk->admin);
	if (err) {
		kdblk_why(disk, err, "a number from %u to %u is needed", min, max);
		ret = kdblk_refuse(disk, err);
	} else if (kdblk_fixed(disk, link)) {
		ret = kdblk_busy(disk, link);
	} else {
		*to = n;
	}
	mutex_unlock(&disk->admin);
	return ret;
}

#define KDBLK_LINE(name, kind, size, link)						\
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
	return kdblk_store_##kind(kdblk_to_disk(item), kdblk_##name##_of(item), size, link,	\
				page, count);						\
}

#define KDBLK_NUMBER(name, min, max, link)						\
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
	return kdblk_store_number(kdblk_to_disk(item), kdblk_##name##_of(item), min, max, link,	\
				  page, count);						\
}

KDBLK_LINE(ia, text, DAT_NAME_MAX_LENGTH, true)
CONFIGFS_ATTR(kdblk_, ia);
KDBLK_LINE(address, text, KDBLK_ADDRESS_LEN, true)
CONFIGFS_ATTR(kdblk_, address);
KDBLK_LINE(disk, name, KDBLK_NAME_LEN, false)
CONFIGFS_ATTR(kdblk_, disk);
KDBLK_LINE(initiator, name, KDBLK_NAME_LEN, false)
CONFIGFS_ATTR(kdblk_, initiator);
KDBLK_NUMBER(port, 1, 65535, true)
CONFIGFS_ATTR(kdblk_, port);
KDBLK_NUMBER(path, 0, 65535, false)
CONFIGFS_ATTR(kdblk_, path);
KDBLK_NUMBER(queues, 1, 128, false)
CONFIGFS_ATTR(kdblk_, queues);
KDBLK_NUMBER(poll_queues, 0, 128, false)
CONFIGFS_ATTR(kdblk_, poll_queues);
KDBLK_NUMBER(depth, 1, KDBLK_MAX_DEPTH, false)
CONFIGFS_ATTR(kdblk_, depth);
KDBLK_NUMBER(inline_size, 0, KDBLK_INLINE_MAX, false)
CONFIGFS_ATTR(kdblk_, inline_size);
KDBLK_NUMBER(keepalive_ms, 100, 600000, true)
CONFIGFS_ATTR(kdblk_, keepalive_ms);
KDBLK_NUMBER(reconnect_delay_ms, 1, 600000, true)
CONFIGFS_ATTR(kdblk_, reconnect_delay_ms);
KDBLK_NUMBER(reconnect_max, 1, 1000000, true)
CONFIGFS_ATTR(kdblk_, reconnect_max);
KDBLK_NUMBER(fast_io_fail_ms, 0, 600000, true)
CONFIGFS_ATTR(kdblk_, fast_io_fail_ms);

/* Empty: what the adapter uses by default. */
static ssize_t kdblk_tos_show(struct config_item *item, char *page)
{
	int tos = READ_ONCE(kdblk_to_disk(item)->config.tos);

	return tos < 0 ? sysfs_emit(page, "\n") : sysfs_emit(page, "%d\n", tos);
}

static ssize_t kdblk_tos_store(struct config_item *item, const char *page, size_t count)
{
	struct kdblk_disk *disk = kdblk_to_disk(item);
	u32 tos = KDAT_CONN_DEFAULT;
	ssize_t ret;

	if (count > 1 || (count && *page != '\n')) {
		ret = kdblk_store_number(disk, &tos, 0, 255, true, page, count);
		if (ret < 0)
			return ret;
	}
	ret = count;
	mutex_lock(&disk->admin);
	if (kdblk_fixed(disk, true))
		ret = kdblk_busy(disk, true);
	else
		WRITE_ONCE(disk->config.tos, (int)tos);
	mutex_unlock(&disk->admin);
	return ret;
}
CONFIGFS_ATTR(kdblk_, tos);

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

	if (!err && !on)
		kdblk_interrupt(disk);
	mutex_lock(&disk->admin);
	if (err)
		kdblk_refuse(disk, kdblk_why(disk, err, "1 connects, 0 disconnects"));
	else if (on)
		err = kdblk_start(disk);
	else if (disk->state != KDBLK_IDLE)
		kdblk_stop(disk);
	mutex_unlock(&disk->admin);
	return err ?: count;
}
CONFIGFS_ATTR(kdblk_, connect);

static ssize_t kdblk_state_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%s\n",
			  kdblk_state_name(READ_ONCE(kdblk_to_disk(item)->state)));
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
	return sysfs_emit(page, "%.*s\n", KDBLK_ERROR_LEN, kdblk_to_disk(item)->reason);
}
CONFIGFS_ATTR_RO(kdblk_, last_error);

static ssize_t kdblk_stats_show(struct config_item *item, char *page)
{
	struct kdblk_disk *disk = kdblk_to_disk(item);

	return sysfs_emit(page,
			  "connects %llu\nlosses %llu\nreplayed %llu\nattempts %u\nfailing %d\nadapters %llu\n",
			  disk->connects, disk->losses, disk->replayed, disk->attempts,
			  READ_ONCE(disk->failing), disk->adapters);
}
CONFIGFS_ATTR_RO(kdblk_, stats);

static ssize_t kdblk_id_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%*phN\n", KDBLK_ID_LEN, kdblk_to_disk(item)->id);
}

/* A machine without a name is called by its id. */
static void kdblk_set_id(struct kdblk_disk *disk, const u8 *id)
{
	char before[2 * KDBLK_ID_LEN + 1], name[2 * KDBLK_ID_LEN + 1];

	snprintf(before, sizeof(before), "%*phN", KDBLK_ID_LEN, disk->id);
	snprintf(name, sizeof(name), "%*phN", KDBLK_ID_LEN, id);
	if (!strcmp(disk->config.initiator, before))
		strscpy(disk->config.initiator, name, sizeof(disk->config.initiator));
	memcpy(disk->id, id, KDBLK_ID_LEN);
}

static ssize_t kdblk_id_store(struct config_item *item, const char *page, size_t count)
{
	struct kdblk_disk *disk = kdblk_to_disk(item);
	size_t n = count && page[count - 1] == '\n' ? count - 1 : count;
	ssize_t ret = count;
	u8 id[KDBLK_ID_LEN];

	mutex_lock(&disk->admin);
	if (n != 2 * sizeof(id) || hex2bin(id, page, sizeof(id))) {
		kdblk_why(disk, -EINVAL, "32 hexadecimal digits are needed");
		ret = kdblk_refuse(disk, -EINVAL);
	} else if (kdblk_fixed(disk, false)) {
		ret = kdblk_busy(disk, false);
	} else {
		kdblk_set_id(disk, id);
	}
	mutex_unlock(&disk->admin);
	return ret;
}
CONFIGFS_ATTR(kdblk_, id);

static ssize_t kdblk_secret_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%s\n", kdblk_to_disk(item)->secret.length ? "set" : "");
}

static ssize_t kdblk_secret_store(struct config_item *item, const char *page, size_t count)
{
	struct kdblk_disk *disk = kdblk_to_disk(item);
	struct kdblk_secret secret;
	ssize_t ret = count;
	int err;

	mutex_lock(&disk->admin);
	err = kdblk_secret_read(&secret, page, count);
	if (err == -EINVAL) {
		kdblk_why(disk, err, "a secret has %d to %d characters", KDBLK_SECRET_MIN,
			  KDBLK_SECRET_MAX);
		ret = kdblk_refuse(disk, err);
	} else if (err) {
		kdblk_why(disk, err, "this kernel has no HMAC-SHA256 for secrets");
		ret = kdblk_refuse(disk, err);
	} else if (kdblk_fixed(disk, true)) {
		ret = kdblk_busy(disk, true);
	} else {
		swap(disk->secret, secret);
	}
	kdblk_secret_clear(&secret);
	mutex_unlock(&disk->admin);
	return ret;
}
CONFIGFS_ATTR(kdblk_, secret);

static struct configfs_attribute *kdblk_attrs[] = {
	&kdblk_attr_id,
	&kdblk_attr_ia,
	&kdblk_attr_address,
	&kdblk_attr_port,
	&kdblk_attr_path,
	&kdblk_attr_disk,
	&kdblk_attr_initiator,
	&kdblk_attr_secret,
	&kdblk_attr_queues,
	&kdblk_attr_poll_queues,
	&kdblk_attr_depth,
	&kdblk_attr_inline_size,
	&kdblk_attr_keepalive_ms,
	&kdblk_attr_reconnect_delay_ms,
	&kdblk_attr_reconnect_max,
	&kdblk_attr_fast_io_fail_ms,
	&kdblk_attr_tos,
	&kdblk_attr_connect,
	&kdblk_attr_state,
	&kdblk_attr_device,
	&kdblk_attr_last_error,
	&kdblk_attr_stats,
	NULL
};

static void kdblk_release(struct config_item *item)
{
	kdblk_secret_clear(&kdblk_to_disk(item)->secret);
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
	int err = kdblk_check_name(name);
	struct kdblk_disk *disk;

	if (err)
		return ERR_PTR(err);
	disk = kzalloc(sizeof(*disk), GFP_KERNEL);
	if (!disk)
		return ERR_PTR(-ENOMEM);
	kdblk_session_init(disk);
	disk->config.port = KDBLK_PORT;
	disk->config.queues = min(num_online_cpus(), 128u);
	disk->config.depth = 128;
	disk->config.inline_size = 8192;
	disk->config.keepalive_ms = 5000;
	disk->config.reconnect_delay_ms = 2000;
	disk->config.reconnect_max = 30;
	disk->config.tos = KDAT_CONN_DEFAULT;
	strscpy(disk->config.initiator, utsname()->nodename, sizeof(disk->config.initiator));
	if (kdblk_check_name(disk->config.initiator) ||
	    !strcmp(disk->config.initiator, "(none)"))
		snprintf(disk->config.initiator, sizeof(disk->config.initiator), "%*phN",
			 KDBLK_ID_LEN, disk->id);
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

	get_random_bytes(kdblk_start_id, sizeof(kdblk_start_id));
	/*
	 * Writeback to these disks frees memory, so recovery must not wait for memory. Nor must the
	 * keepalives of some disks wait for the recovery of many others.
	 */
	kdblk_wq = alloc_workqueue("kdblk", WQ_MEM_RECLAIM | WQ_UNBOUND, WQ_MAX_ACTIVE);
	if (!kdblk_wq)
		return -ENOMEM;
	config_group_init(&kdblk_subsys.su_group);
	mutex_init(&kdblk_subsys.su_mutex);
	err = kdblk_sysfs_init();
	if (err)
		goto out_destroy_wq;
	err = configfs_register_subsystem(&kdblk_subsys);
	if (err)
		goto out_sysfs;
	return 0;
out_sysfs:
	kdblk_sysfs_exit();
out_destroy_wq:
	destroy_workqueue(kdblk_wq);
	return err;
}

static void __exit kdblk_exit(void)
{
	configfs_unregister_subsystem(&kdblk_subsys);
	kdblk_disk_exit();
	kdblk_paths_exit();
	kdblk_sysfs_exit();
	destroy_workqueue(kdblk_wq);
}

module_init(kdblk_init);
module_exit(kdblk_exit);

MODULE_DESCRIPTION("kdblk initiator: block devices of another machine over kDAPL");
MODULE_AUTHOR("The kDAPL for Linux authors");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION(KDAPL_VERSION);
