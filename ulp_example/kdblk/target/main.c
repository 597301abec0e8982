// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Copyright (c) 2026 The kDAPL for Linux authors */
/* kdblk_target exports block devices and files over kDAPL: module init and exit. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/random.h>
#include <linux/uuid.h>

#include "../../../kdapl/version.h"
#include "target.h"

/* Protects kdt_disks, allowed names and all sessions. Taken only for setup and logins. */
DEFINE_MUTEX(kdt_lock);
LIST_HEAD(kdt_disks);
struct workqueue_struct *kdt_ctl_wq;
struct workqueue_struct *kdt_portal_wq;
u8 kdt_boot[KDBLK_ID_LEN];

/*
 * The kernel's boot id: it stays the same when this module is loaded again, since nothing that
 * the disks have in their caches is lost by that.
 */
static void __init kdt_read_boot_id(void)
{
	static const char name[] = "/proc/sys/kernel/random/boot_id";
	char text[UUID_STRING_LEN + 1] = {};
	struct file *file;
	loff_t pos = 0;
	uuid_t uuid;

	file = filp_open(name, O_RDONLY, 0);
	if (!IS_ERR(file)) {
		kernel_read(file, text, UUID_STRING_LEN, &pos);
		filp_close(file, NULL);
	}
	if (uuid_parse(text, &uuid)) {
		pr_warn("%s cannot be read: initiators will take each load of this module for a restart of the machine\n",
			name);
		generate_random_uuid(uuid.b);
	}
	memcpy(kdt_boot, uuid.b, sizeof(kdt_boot));
}

static int __init kdt_init(void)
{
	int err = -ENOMEM;

	kdt_read_boot_id();
	/*
	 * Memory reclaim may depend on commands. There are several workqueues because under
	 * memory pressure only one thread of each is guaranteed, and work waits for other
	 * work: a portal that closes for logins, a login for an end, an end for commands,
	 * which have a workqueue for each disk.
	 */
	kdt_ctl_wq = alloc_workqueue("kdblk_target", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	kdt_portal_wq = alloc_workqueue("kdblk_target_portal", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	if (!kdt_ctl_wq || !kdt_portal_wq)
		goto out;
	err = kdt_session_init();
	if (err)
		goto out;
	err = kdt_portals_init();
	if (err)
		goto out_session;
	err = kdt_configfs_init();
	if (!err)
		return 0;
	kdt_portals_exit();
out_session:
	kdt_session_exit();
out:
	if (kdt_portal_wq)
		destroy_workqueue(kdt_portal_wq);
	if (kdt_ctl_wq)
		destroy_workqueue(kdt_ctl_wq);
	return err;
}

/* configfs items hold a module reference, so no disk or portal exists by now. */
static void __exit kdt_exit(void)
{
	kdt_configfs_exit();
	kdt_portals_exit();
	destroy_workqueue(kdt_portal_wq);
	kdt_session_exit();
	destroy_workqueue(kdt_ctl_wq);
}

module_init(kdt_init);
module_exit(kdt_exit);
MODULE_DESCRIPTION("kdblk target: exports block devices and files over kDAPL");
MODULE_AUTHOR("The kDAPL for Linux authors");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION(KDAPL_VERSION);
