// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * kdnfsboth - the kernel's NFS/RDMA server and kdat_xprtrdma in one kernel (README.md).
 *
 * rpcrdma.ko is loaded. While this module is, sunrpc does not know the two transports of it: that
 * of a client, whose number kdat_xprtrdma wants, and that of calls of the server. The latter
 * comes back as soon as kdat_xprtrdma is there, and stands behind it in sunrpc's list: it has no
 * table of names, so nobody who looks for a name may get as far as that.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/err.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/string.h>
#include <linux/sunrpc/xprt.h>

static struct xprt_class *both_client, *both_server;
static bool both_calls;		/* that of calls of the server is back */

static struct rpc_xprt *both_setup(struct xprt_create *args)
{
	return ERR_PTR(-EIO);
}

/* The last one of sunrpc's list, by which its head is found. */
static struct xprt_class both_last = {
	.list	= LIST_HEAD_INIT(both_last.list),
	.name	= "kdnfsboth",
	.owner	= THIS_MODULE,
	.ident	= 0x6b64,
	.setup	= both_setup,
	.netid	= { "" },
};

/* A test knows that no transport comes or goes meanwhile. */
static struct xprt_class *both_find(int ident)
{
	struct list_head *node;
	struct xprt_class *class;

	for (node = both_last.list.next->next; node != &both_last.list; node = node->next) {
		class = list_entry(node, struct xprt_class, list);
		if (class->ident == ident && try_module_get(class->owner))
			return class;
	}
	return NULL;
}

static int both_calls_set(bool on)
{
	if (!both_server || both_calls == on)
		return 0;
	both_calls = on;
	return on ? xprt_register_transport(both_server) : xprt_unregister_transport(both_server);
}

static int both_module(struct notifier_block *nb, unsigned long what, void *data)
{
	const struct module *module = data;

	if (strcmp(module->name, "kdat_xprtrdma"))
		return NOTIFY_DONE;
	if (what == MODULE_STATE_LIVE)
		both_calls_set(true);
	else if (what == MODULE_STATE_GOING)
		both_calls_set(false);
	return NOTIFY_OK;
}

static struct notifier_block both_nb = {
	.notifier_call = both_module,
};

static void both_put(struct xprt_class *class)
{
	if (!class)
		return;
	xprt_register_transport(class);
	module_put(class->owner);
}

static int __init both_init(void)
{
	int err = xprt_register_transport(&both_last);

	if (err)
		return err;
	both_client = both_find(XPRT_TRANSPORT_RDMA);
	both_server = both_find(XPRT_TRANSPORT_BC_RDMA);
	if (both_client)
		xprt_unregister_transport(both_client);
	if (both_server)
		xprt_unregister_transport(both_server);
	xprt_unregister_transport(&both_last);
	if (!both_client || !both_server) {
		both_put(both_client);
		both_put(both_server);
		pr_err("load rpcrdma first\n");
		return -ENOENT;
	}
	return register_module_notifier(&both_nb);
}

static void __exit both_exit(void)
{
	unregister_module_notifier(&both_nb);
	both_calls_set(false);
	both_put(both_client);
	both_put(both_server);
}

module_init(both_init);
module_exit(both_exit);
MODULE_DESCRIPTION("the kernel's NFS/RDMA server and kdat_xprtrdma in one kernel, for tests");
MODULE_AUTHOR("The kDAPL for Linux authors");
MODULE_LICENSE("Dual BSD/GPL");
