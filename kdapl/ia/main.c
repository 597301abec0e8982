// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Module init and exit.
 */
#include <linux/module.h>

#include "ia_api.h"
#include "../core/cm_reject.h"

/**
 * kdapl_start - set up the module
 *
 * Return: 0 or an errno.
 */
int kdapl_start(void)
{
	int ret;

	ret = kdapl_workqueues_start();
	if (ret)
		return ret;
	kdapl_debugfs_init();
	ret = ib_register_client(&kdapl_client);
	if (ret)
		goto err_debugfs;
	/* last, and the first to go: requests come as soon as the family is there */
	ret = kdapl_netlink_start();
	if (ret)
		goto err_client;
	return 0;

err_client:
	ib_unregister_client(&kdapl_client);
err_debugfs:
	kdapl_debugfs_exit();
	kdapl_workqueues_stop();
	return ret;
}

/**
 * kdapl_stop - take down the module
 *
 * Context: unload; no consumer is left, since each one holds a reference to the module.
 */
void kdapl_stop(void)
{
	kdapl_netlink_stop();
	kdapl_debugfs_exit();
	ib_unregister_client(&kdapl_client);
	kdapl_cm_reject_stop();
	kdapl_workqueues_stop();
	kdapl_ia_exit();
	kdapl_handles_exit();
}

static int __init kdapl_init(void)
{
#ifdef KDAPL_UNCHECKED
	pr_warn("built for benches only: keys, rights and ranges of posts are not checked\n");
#endif
	return kdapl_start();
}

static void __exit kdapl_exit(void)
{
	kdapl_stop();
}

module_init(kdapl_init);
module_exit(kdapl_exit);

MODULE_DESCRIPTION("Direct Access Programming Library for kernel consumers");
MODULE_AUTHOR("The kDAPL for Linux authors");
MODULE_LICENSE("Dual BSD/GPL");
#ifdef KDAPL_UNCHECKED
MODULE_VERSION(KDAPL_VERSION "-unchecked");
#else
MODULE_VERSION(KDAPL_VERSION);
#endif
