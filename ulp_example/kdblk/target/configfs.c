// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * /sys/kernel/config/kdblk_target:
 *
 *	disks/NAME/	path read_only serial allow_any enable rescan sessions session_list
 *			kick last_error allowed/INITIATOR/
 *	portals/NAME/	ia port depth queues max_io buffers inline_size max_sessions enable
 *			state last_error
 *
 * Parameters can be changed only while the disk or portal is disabled. allow_any and
 * allowed can be changed at any time and apply to later logins.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/ctype.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "target.h"

static struct kdt_disk *kdt_to_disk(struct config_item *item)
{
	return container_of(to_config_group(item), struct kdt_disk, group);
}

static struct kdt_portal *kdt_to_portal(struct config_item *item)
{
	return container_of(to_config_group(item), struct kdt_portal, group);
}

/*
 * Return a copy of the written line without its newline. The caller frees it. It will appear in
 * the log, so there are no control characters in it.
 */
static char *kdt_line(const char *page, size_t count, size_t max)
{
	size_t i, n = count && page[count - 1] == '\n' ? count - 1 : count;

	if (n > max)
		return ERR_PTR(-EINVAL);
	for (i = 0; i < n; i++) {
		if (iscntrl(page[i]))
			return ERR_PTR(-EINVAL);
	}
	return kmemdup_nul(page, n, GFP_KERNEL) ?: ERR_PTR(-ENOMEM);
}

/*
 * Allowed initiators
 */

static struct kdt_name *kdt_to_name(struct config_item *item)
{
	return container_of(item, struct kdt_name, item);
}

static void kdt_name_release(struct config_item *item)
{
	kdblk_secret_clear(&kdt_to_name(item)->secret);
	kfree(kdt_to_name(item));
}

static ssize_t kdt_name_secret_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%s\n", READ_ONCE(kdt_to_name(item)->secret.length) ? "set" : "");
}

static ssize_t kdt_name_secret_store(struct config_item *item, const char *page, size_t count)
{
	struct kdt_disk *disk = container_of(to_config_group(item->ci_parent), struct kdt_disk,
					     allowed);
	struct kdblk_secret secret;
	int err = kdblk_secret_read(&secret, page, count);

	if (err == -EINVAL)
		return kdt_disk_fail(disk, err, "a secret has %d to %d characters",
				     KDBLK_SECRET_MIN, KDBLK_SECRET_MAX);
	if (err)
		return kdt_disk_fail(disk, err, "this kernel has no HMAC-SHA256 for secrets");
	mutex_lock(&kdt_lock);
	swap(kdt_to_name(item)->secret, secret);
	if (kdt_to_name(item)->secret.length)
		kdt_end_unproven(disk, item->ci_name);
	mutex_unlock(&kdt_lock);
	kdblk_secret_clear(&secret);
	return count;
}
CONFIGFS_ATTR(kdt_name_, secret);

static struct configfs_attribute *kdt_name_attrs[] = {
	&kdt_name_attr_secret,
	NULL
};

static struct configfs_item_operations kdt_name_item_ops = {
	.release = kdt_name_release,
};

static const struct config_item_type kdt_name_type = {
	.ct_item_ops = &kdt_name_item_ops,
	.ct_attrs = kdt_name_attrs,
	.ct_owner = THIS_MODULE,
};

static struct config_item *kdt_name_make(struct config_group *group, const char *initiator)
{
	struct kdt_disk *disk = container_of(group, struct kdt_disk, allowed);
	int err = kdblk_check_name(initiator);
	struct kdt_name *name;

	if (err)
		return ERR_PTR(err);
	name = kzalloc(sizeof(*name), GFP_KERNEL);
	if (!name)
		return ERR_PTR(-ENOMEM);
	config_item_init_type_name(&name->item, initiator, &kdt_name_type);
	mutex_lock(&kdt_lock);
	list_add_tail(&name->node, &disk->names);
	mutex_unlock(&kdt_lock);
	return &name->item;
}

static void kdt_name_drop(struct config_group *group, struct config_item *item)
{
	mutex_lock(&kdt_lock);
	list_del(&kdt_to_name(item)->node);
	mutex_unlock(&kdt_lock);
	config_item_put(item);
}

static struct configfs_group_operations kdt_allowed_group_ops = {
	.make_item = kdt_name_make,
	.drop_item = kdt_name_drop,
};

static const struct config_item_type kdt_allowed_type = {
	.ct_group_ops = &kdt_allowed_group_ops,
	.ct_owner = THIS_MODULE,
};

/*
 * Disks
 */

static int kdt_disk_busy(struct kdt_disk *disk, const char *file)
{
	return kdt_disk_fail(disk, -EBUSY, "%s can be changed only while the disk is disabled",
			     file);
}

/* A write has succeeded: clear last_error, which is about an earlier one. */
static ssize_t kdt_disk_done(struct kdt_disk *disk, size_t count)
{
	disk->last_error[0] = 0;
	return count;
}

static int kdt_disk_bool(struct kdt_disk *disk, const char *page, bool *yes)
{
	int err = kstrtobool(page, yes);

	return err ? kdt_disk_fail(disk, err, "0 or 1 is needed") : 0;
}

static char *kdt_disk_line(struct kdt_disk *disk, const char *page, size_t count, size_t max)
{
	char *line = kdt_line(page, count, max);

	if (IS_ERR(line))
		kdt_disk_fail(disk, PTR_ERR(line),
			      "a line of at most %zu characters is needed, without control characters",
			      max);
	return line;
}

static ssize_t kdt_disk_path_show(struct config_item *item, char *page)
{
	struct kdt_disk *disk = kdt_to_disk(item);
	ssize_t ret;

	mutex_lock(&disk->lock);
	ret = sysfs_emit(page, "%s\n", disk->path ?: "");
	mutex_unlock(&disk->lock);
	return ret;
}

static ssize_t kdt_disk_path_store(struct config_item *item, const char *page, size_t count)
{
	struct kdt_disk *disk = kdt_to_disk(item);
	char *path = kdt_disk_line(disk, page, count, PATH_MAX - 1);
	ssize_t ret;

	if (IS_ERR(path))
		return PTR_ERR(path);
	mutex_lock(&disk->lock);
	ret = disk->enabled ? kdt_disk_busy(disk, "path") : kdt_disk_done(disk, count);
	if (ret > 0)
		swap(disk->path, path);
	mutex_unlock(&disk->lock);
	kfree(path);
	return ret;
}

static ssize_t kdt_disk_serial_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%s\n", kdt_to_disk(item)->serial);
}

static ssize_t kdt_disk_serial_store(struct config_item *item, const char *page, size_t count)
{
	struct kdt_disk *disk = kdt_to_disk(item);
	char *serial = kdt_disk_line(disk, page, count, KDBLK_SERIAL_LEN - 1);
	ssize_t ret = count;

	if (IS_ERR(serial))
		return PTR_ERR(serial);
	mutex_lock(&disk->lock);
	if (disk->enabled)
		ret = kdt_disk_busy(disk, "serial");
	else if (!kdblk_printable(serial, strlen(serial)))
		ret = kdt_disk_fail(disk, -EINVAL, "a serial has ASCII characters only");
	else
		strscpy_pad(disk->serial, serial, sizeof(disk->serial));
	if (ret > 0)
		kdt_disk_done(disk, count);
	mutex_unlock(&disk->lock);
	kfree(serial);
	return ret;
}

static ssize_t kdt_disk_read_only_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", kdt_to_disk(item)->read_only);
}

static ssize_t kdt_disk_read_only_store(struct config_item *item, const char *page, size_t count)
{
	struct kdt_disk *disk = kdt_to_disk(item);
	bool yes;
	ssize_t ret = kdt_disk_bool(disk, page, &yes);

	if (ret)
		return ret;
	mutex_lock(&disk->lock);
	ret = disk->enabled ? kdt_disk_busy(disk, "read_only") : kdt_disk_done(disk, count);
	if (ret > 0)
		disk->read_only = yes;
	mutex_unlock(&disk->lock);
	return ret;
}

static ssize_t kdt_disk_allow_any_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", kdt_to_disk(item)->allow_any);
}

static ssize_t kdt_disk_allow_any_store(struct config_item *item, const char *page, size_t count)
{
	struct kdt_disk *disk = kdt_to_disk(item);
	bool yes;
	int err = kdt_disk_bool(disk, page, &yes);

	if (err)
		return err;
	mutex_lock(&kdt_lock);
	disk->allow_any = yes;
	mutex_unlock(&kdt_lock);
	return kdt_disk_done(disk, count);
}

static ssize_t kdt_disk_enable_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", kdt_to_disk(item)->enabled);
}

static void kdt_disk_switch(struct kdt_disk *disk, bool on)
{
	mutex_lock(&kdt_lock);
	disk->enabled = on;
	mutex_unlock(&kdt_lock);
}

static int kdt_disk_enable(struct kdt_disk *disk, bool on)
{
	int err = 0;

	mutex_lock(&disk->lock);
	if (on == disk->enabled)
		goto out;
	if (on) {
		err = kdt_disk_open(disk);
		if (!err)
			kdt_disk_switch(disk, true);
	} else {
		/* No login succeeds from here on. With the last session the file is unused. */
		kdt_disk_switch(disk, false);
		kdt_end_of_disk(disk, "the disk is disabled");
		kdt_disk_close(disk);
	}
out:
	mutex_unlock(&disk->lock);
	return err;
}

static ssize_t kdt_disk_enable_store(struct config_item *item, const char *page, size_t count)
{
	struct kdt_disk *disk = kdt_to_disk(item);
	bool yes;
	int err = kdt_disk_bool(disk, page, &yes) ?: kdt_disk_enable(disk, yes);

	return err ?: kdt_disk_done(disk, count);
}

static ssize_t kdt_disk_sessions_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%u\n", kdt_count_sessions(kdt_to_disk(item)));
}

static ssize_t kdt_disk_session_list_read(struct config_item *item, void *buf, size_t size)
{
	return kdt_list_sessions(kdt_to_disk(item), buf, size);
}

static ssize_t kdt_disk_kick_store(struct config_item *item, const char *page, size_t count)
{
	struct kdt_disk *disk = kdt_to_disk(item);
	u64 turn;
	int err = kstrtou64(page, 10, &turn);

	if (err)
		return kdt_disk_fail(disk, err, "the number of a session is needed");
	err = kdt_kick(disk, turn);
	if (err)
		return kdt_disk_fail(disk, err, "no session has the number %llu", turn);
	return kdt_disk_done(disk, count);
}

static ssize_t kdt_disk_rescan_store(struct config_item *item, const char *page, size_t count)
{
	struct kdt_disk *disk = kdt_to_disk(item);
	bool yes;
	int err = kdt_disk_bool(disk, page, &yes);

	if (err || !yes)
		return err ?: count;
	mutex_lock(&disk->lock);
	if (disk->enabled)
		err = kdt_disk_rescan(disk);
	else
		err = kdt_disk_fail(disk, -ENODEV, "the disk is not enabled");
	mutex_unlock(&disk->lock);
	return err ?: count;
}

/* Read without the lock, since disabling a disk may hold that for long. */
static ssize_t kdt_disk_last_error_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%.*s\n", KDT_ERROR_LEN, kdt_to_disk(item)->last_error);
}

CONFIGFS_ATTR(kdt_disk_, path);
CONFIGFS_ATTR(kdt_disk_, serial);
CONFIGFS_ATTR(kdt_disk_, read_only);
CONFIGFS_ATTR(kdt_disk_, allow_any);
CONFIGFS_ATTR(kdt_disk_, enable);
CONFIGFS_ATTR_WO(kdt_disk_, rescan);
CONFIGFS_ATTR_RO(kdt_disk_, sessions);
CONFIGFS_ATTR_WO(kdt_disk_, kick);
CONFIGFS_ATTR_RO(kdt_disk_, last_error);
/* Longer than a page, if there are many. */
CONFIGFS_BIN_ATTR_RO(kdt_disk_, session_list, NULL, SZ_16M);

static struct configfs_attribute *kdt_disk_attrs[] = {
	&kdt_disk_attr_path,
	&kdt_disk_attr_serial,
	&kdt_disk_attr_read_only,
	&kdt_disk_attr_allow_any,
	&kdt_disk_attr_enable,
	&kdt_disk_attr_rescan,
	&kdt_disk_attr_sessions,
	&kdt_disk_attr_kick,
	&kdt_disk_attr_last_error,
	NULL,
};

static struct configfs_bin_attribute *kdt_disk_bin_attrs[] = {
	&kdt_disk_attr_session_list,
	NULL,
};

static void kdt_disk_release(struct config_item *item)
{
	struct kdt_disk *disk = kdt_to_disk(item);

	kfree(disk->path);
	kfree(disk);
}

static struct configfs_item_operations kdt_disk_item_ops = {
	.release = kdt_disk_release,
};

static const struct config_item_type kdt_disk_type = {
	.ct_item_ops = &kdt_disk_item_ops,
	.ct_attrs = kdt_disk_attrs,
	.ct_bin_attrs = kdt_disk_bin_attrs,
	.ct_owner = THIS_MODULE,
};

static struct config_group *kdt_disk_make(struct config_group *group, const char *name)
{
	int err = kdblk_check_name(name);
	struct kdt_disk *disk;

	if (err)
		return ERR_PTR(err);
	disk = kzalloc(sizeof(*disk), GFP_KERNEL);
	if (!disk)
		return ERR_PTR(-ENOMEM);
	mutex_init(&disk->lock);
	INIT_LIST_HEAD(&disk->names);
	config_group_init_type_name(&disk->group, name, &kdt_disk_type);
	config_group_init_type_name(&disk->allowed, "allowed", &kdt_allowed_type);
	configfs_add_default_group(&disk->allowed, &disk->group);
	mutex_lock(&kdt_lock);
	list_add_tail(&disk->node, &kdt_disks);
	mutex_unlock(&kdt_lock);
	return &disk->group;
}

static void kdt_disk_drop(struct config_group *group, struct config_item *item)
{
	struct kdt_disk *disk = kdt_to_disk(item);

	kdt_disk_enable(disk, false);
	mutex_lock(&kdt_lock);
	list_del(&disk->node);
	mutex_unlock(&kdt_lock);
	config_item_put(item);
}

static struct configfs_group_operations kdt_disks_group_ops = {
	.make_group = kdt_disk_make,
	.drop_item = kdt_disk_drop,
};

static const struct config_item_type kdt_disks_type = {
	.ct_group_ops = &kdt_disks_group_ops,
	.ct_owner = THIS_MODULE,
};

/*
 * Portals
 */

static int kdt_portal_busy(struct kdt_portal *portal)
{
	return kdt_portal_fail(portal, -EBUSY, "this can be changed only while it is disabled");
}

/* A write has succeeded: clear last_error, which is about an earlier one. */
static ssize_t kdt_portal_done(struct kdt_portal *portal, size_t count)
{
	portal->last_error[0] = 0;
	return count;
}

static ssize_t kdt_portal_ia_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%s\n", kdt_to_portal(item)->ia_name);
}

static ssize_t kdt_portal_ia_store(struct config_item *item, const char *page, size_t count)
{
	struct kdt_portal *portal = kdt_to_portal(item);
	char *name = kdt_line(page, count, sizeof(portal->ia_name) - 1);
	ssize_t ret;

	mutex_lock(&portal->lock);
	if (IS_ERR(name)) {
		ret = kdt_portal_fail(portal, PTR_ERR(name),
				      "a line of at most %zu characters is needed, without control characters",
				      sizeof(portal->ia_name) - 1);
	} else if (portal->state == KDT_PORTAL_DISABLED) {
		strscpy(portal->ia_name, name, sizeof(portal->ia_name));
		ret = kdt_portal_done(portal, count);
	} else {
		ret = kdt_portal_busy(portal);
	}
	mutex_unlock(&portal->lock);
	if (!IS_ERR(name))
		kfree(name);
	return ret;
}

static ssize_t kdt_portal_set(struct kdt_portal *portal, u32 *value, const char *page,
			      size_t count, u32 min, u32 max, u32 multiple)
{
	ssize_t ret;
	u32 new;
	int err = kstrtou32(page, 0, &new);

	if (!err && (new < min || new > max))
		err = -ERANGE;
	else if (!err && new % multiple)
		err = -EINVAL;
	mutex_lock(&portal->lock);
	if (err) {
		ret = kdt_portal_fail(portal, err,
				      "the value must be a multiple of %u from %u to %u",
				      multiple, min, max);
	} else if (portal->state == KDT_PORTAL_DISABLED) {
		*value = new;
		ret = kdt_portal_done(portal, count);
	} else {
		ret = kdt_portal_busy(portal);
	}
	mutex_unlock(&portal->lock);
	return ret;
}

#define KDT_PORTAL_NUMBER(name, min, max, multiple)					\
static ssize_t kdt_portal_##name##_show(struct config_item *item, char *page)		\
{											\
	return sysfs_emit(page, "%u\n", kdt_to_portal(item)->cfg_##name);		\
}											\
static ssize_t kdt_portal_##name##_store(struct config_item *item, const char *page,	\
					 size_t count)					\
{											\
	struct kdt_portal *portal = kdt_to_portal(item);					\
											\
	return kdt_portal_set(portal, &portal->cfg_##name, page, count, min, max, multiple);	\
}											\
CONFIGFS_ATTR(kdt_portal_, name)

KDT_PORTAL_NUMBER(port, 1, 65535, 1);
KDT_PORTAL_NUMBER(depth, 1, KDBLK_MAX_DEPTH, 1);
KDT_PORTAL_NUMBER(queues, 1, KDBLK_MAX_QUEUES, 1);
KDT_PORTAL_NUMBER(max_io, PAGE_SIZE, KDBLK_MAX_IO, PAGE_SIZE);
KDT_PORTAL_NUMBER(buffers, 1, 4096, 1);
KDT_PORTAL_NUMBER(inline_size, KDBLK_MIN_INLINE, KDT_MAX_INLINE, PAGE_SIZE);
KDT_PORTAL_NUMBER(max_sessions, 1, 65535, 1);

static ssize_t kdt_portal_enable_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%d\n", kdt_to_portal(item)->state != KDT_PORTAL_DISABLED);
}

static ssize_t kdt_portal_enable_store(struct config_item *item, const char *page, size_t count)
{
	struct kdt_portal *portal = kdt_to_portal(item);
	bool yes;
	int err = kstrtobool(page, &yes);

	if (!err && !yes) {
		kdt_portal_disable(portal);
		return count;
	}
	mutex_lock(&portal->lock);
	if (err)
		kdt_portal_fail(portal, err, "0 or 1 is needed");
	else if (portal->state == KDT_PORTAL_DISABLED)
		err = kdt_portal_enable(portal);
	mutex_unlock(&portal->lock);
	return err ?: count;
}

static ssize_t kdt_portal_state_show(struct config_item *item, char *page)
{
	static const char * const names[] = {
		[KDT_PORTAL_DISABLED] = "disabled",
		[KDT_PORTAL_LISTENING] = "listening",
		[KDT_PORTAL_WAITING] = "waiting",
	};

	return sysfs_emit(page, "%s\n", names[READ_ONCE(kdt_to_portal(item)->state)]);
}

static ssize_t kdt_portal_last_error_show(struct config_item *item, char *page)
{
	return sysfs_emit(page, "%.*s\n", KDT_ERROR_LEN, kdt_to_portal(item)->last_error);
}

CONFIGFS_ATTR(kdt_portal_, ia);
CONFIGFS_ATTR(kdt_portal_, enable);
CONFIGFS_ATTR_RO(kdt_portal_, state);
CONFIGFS_ATTR_RO(kdt_portal_, last_error);

static struct configfs_attribute *kdt_portal_attrs[] = {
	&kdt_portal_attr_ia,
	&kdt_portal_attr_port,
	&kdt_portal_attr_depth,
	&kdt_portal_attr_queues,
	&kdt_portal_attr_max_io,
	&kdt_portal_attr_buffers,
	&kdt_portal_attr_inline_size,
	&kdt_portal_attr_max_sessions,
	&kdt_portal_attr_enable,
	&kdt_portal_attr_state,
	&kdt_portal_attr_last_error,
	NULL,
};

static void kdt_portal_release(struct config_item *item)
{
	kfree(kdt_to_portal(item));
}

static struct configfs_item_operations kdt_portal_item_ops = {
	.release = kdt_portal_release,
};

static const struct config_item_type kdt_portal_type = {
	.ct_item_ops = &kdt_portal_item_ops,
	.ct_attrs = kdt_portal_attrs,
	.ct_owner = THIS_MODULE,
};

static struct config_group *kdt_portal_make(struct config_group *group, const char *name)
{
	struct kdt_portal *portal;
	int err = kdblk_check_name(name);

	if (err)
		return ERR_PTR(err);
	portal = kzalloc(sizeof(*portal), GFP_KERNEL);
	if (!portal)
		return ERR_PTR(-ENOMEM);
	kdt_portal_init(portal);
	config_group_init_type_name(&portal->group, name, &kdt_portal_type);
	return &portal->group;
}

static void kdt_portal_drop_item(struct config_group *group, struct config_item *item)
{
	kdt_portal_drop(kdt_to_portal(item));
	config_item_put(item);
}

static struct configfs_group_operations kdt_portals_group_ops = {
	.make_group = kdt_portal_make,
	.drop_item = kdt_portal_drop_item,
};

static const struct config_item_type kdt_portals_type = {
	.ct_group_ops = &kdt_portals_group_ops,
	.ct_owner = THIS_MODULE,
};

/*
 * The subsystem
 */

static const struct config_item_type kdt_root_type = {
	.ct_owner = THIS_MODULE,
};

static struct config_group kdt_disks_group, kdt_portals_group;

static struct configfs_subsystem kdt_subsys = {
	.su_group.cg_item = {
		.ci_namebuf = "kdblk_target",
		.ci_type = &kdt_root_type,
	},
};

int kdt_configfs_init(void)
{
	mutex_init(&kdt_subsys.su_mutex);
	config_group_init(&kdt_subsys.su_group);
	config_group_init_type_name(&kdt_disks_group, "disks", &kdt_disks_type);
	configfs_add_default_group(&kdt_disks_group, &kdt_subsys.su_group);
	config_group_init_type_name(&kdt_portals_group, "portals", &kdt_portals_type);
	configfs_add_default_group(&kdt_portals_group, &kdt_subsys.su_group);
	return configfs_register_subsystem(&kdt_subsys);
}

void kdt_configfs_exit(void)
{
	configfs_unregister_subsystem(&kdt_subsys);
}
