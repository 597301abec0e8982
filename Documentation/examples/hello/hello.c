// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The smallest kDAPL module: it opens the Interface Adapter that leads to a machine. */
#include <linux/inet.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <dat2/kdat.h>
#include <dat2/kdat_ext.h>

static char *to = "";
module_param(to, charp, 0444);
MODULE_PARM_DESC(to, "address of the machine to talk to, IPv4 or IPv6");

static DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
static DAT_IA_HANDLE ia;
static DAT_IA_ATTR attr;

static int __init hello_init(void)
{
	struct net *net = current->nsproxy->net_ns;
	const char *type = "", *subtype = "";
	struct sockaddr_storage peer = {};
	DAT_RETURN ret;
	int err;

	err = inet_pton_with_scope(net, AF_UNSPEC, to, NULL, &peer);
	if (err)
		return err;
	ret = kdat_ia_open_to(net, (struct sockaddr *)&peer, NULL, 8, &async, &ia);
	if (ret != DAT_SUCCESS) {
		dat_strerror(ret, &type, &subtype);
		pr_err("hello: kdat_ia_open_to: %s %s\n", type, subtype);
		return kdat_errno(ret);
	}
	dat_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &attr, DAT_PROVIDER_FIELD_NONE, NULL);
	pr_info("hello: %s leads to %s, %d Endpoints, messages of up to %u bytes\n",
		attr.adapter_name, to, attr.max_eps, attr.max_message_size);
	return 0;
}

static void __exit hello_exit(void)
{
	dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG);
}

module_init(hello_init);
module_exit(hello_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("opens the Interface Adapter that leads to a machine");
