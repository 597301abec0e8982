// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The smallest kDAPL module: it opens an Interface Adapter and logs its properties. */
#include <linux/module.h>
#include <dat2/kdat.h>
#include <dat2/kdat_ext.h>

static char *at;
module_param(at, charp, 0444);
MODULE_PARM_DESC(at, "network interface or address of this machine, or name of an adapter");

static DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
static DAT_IA_HANDLE ia;
static DAT_IA_ATTR attr;

static int __init hello_init(void)
{
	const char *type = "", *subtype = "";
	DAT_RETURN ret;

	ret = dat_ia_open(at, 8, &async, &ia);
	if (ret != DAT_SUCCESS) {
		dat_strerror(ret, &type, &subtype);
		pr_err("hello: dat_ia_open: %s %s\n", type, subtype);
		return kdat_errno(ret);
	}
	dat_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &attr, DAT_PROVIDER_FIELD_NONE, NULL);
	pr_info("hello: %s at %pISc, %d Endpoints, messages of up to %u bytes\n",
		attr.adapter_name, attr.ia_address_ptr, attr.max_eps, attr.max_message_size);
	return 0;
}

static void __exit hello_exit(void)
{
	dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG);
}

module_init(hello_init);
module_exit(hello_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("opens an Interface Adapter and logs its properties");
