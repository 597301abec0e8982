// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * kdat_iser - iSCSI Extensions for RDMA over kDAPL: the transport "iser" of open-iscsi, in place
 * of ib_iser.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kernel.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/namei.h>
#include "../../kdapl/version.h"
#include "kdiser.h"

#define KDISER_MAX_DEPTH	2048	/* entries of a device's queues are three times as many */
#define KDISER_MAX_SECTORS	16384

static uint queue_depth = 128, max_sectors = 1024;

module_param(queue_depth, uint, 0444);
MODULE_PARM_DESC(queue_depth, "tasks a session can have, a power of two, 32..2048 (default 128)");
module_param(max_sectors, uint, 0444);
MODULE_PARM_DESC(max_sectors, "sectors of 512 bytes a command can have, 64..16384 (default 1024)");

/* The iSCSI class refuses a second transport with the same name, but with a stack trace. */
static bool kdiser_name_taken(void)
{
	struct path path;

	if (kern_path("/sys/class/iscsi_transport/iser", LOOKUP_FOLLOW, &path))
		return false;
	path_put(&path);
	return true;
}

static int __init kdiser_init(void)
{
	if (queue_depth < KDISER_MIN_DEPTH || queue_depth > KDISER_MAX_DEPTH ||
	    !is_power_of_2(queue_depth) || max_sectors < 64 || max_sectors > KDISER_MAX_SECTORS) {
		pr_err("queue_depth or max_sectors is out of its range, see modinfo\n");
		return -EINVAL;
	}
	if (kdiser_name_taken()) {
		pr_err("another module, ib_iser most likely, is the transport 'iser' already: unload that one first\n");
		return -EEXIST;
	}
	return kdiser_register(queue_depth, max_sectors);
}

static void __exit kdiser_exit(void)
{
	kdiser_unregister();
}

module_init(kdiser_init);
module_exit(kdiser_exit);
MODULE_AUTHOR("The kDAPL for Linux authors");
MODULE_DESCRIPTION("iSER initiator over kDAPL, the transport 'iser' of open-iscsi");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION(KDAPL_VERSION);
