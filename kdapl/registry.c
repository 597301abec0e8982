// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The registry: which IAs there are. One per port of every device ib_core
 * shows us, so the list is made anew with every call.
 */
#include <linux/export.h>

#include "kdapl.h"

struct registry_list {
	DAT_PROVIDER_INFO **list;
	DAT_COUNT room;
	DAT_COUNT count;
	bool fits;
};

static int registry_add(struct kdapl_device *dev, u32 port, void *arg)
{
	struct registry_list *out = arg;
	DAT_PROVIDER_INFO *info = NULL;

	if (out->list && out->count < out->room)
		info = out->list[out->count];
	out->count++;
	if (!info) {
		out->fits = false;
		return 0;
	}
	snprintf(info->ia_name, sizeof(info->ia_name), "%s-%u", dev->name, port);
	info->dapl_version_major = DAT_VERSION_MAJOR;
	info->dapl_version_minor = DAT_VERSION_MINOR;
	info->is_thread_safe = DAT_TRUE;
	return 0;
}

/**
 * dat_registry_list_providers - list the IAs that can be opened
 * @max_to_return: entries in @dat_provider_list
 * @entries_returned: number of IAs listed, or, when the list is too small, of
 *	IAs there are
 * @dat_provider_list: array of pointers to structures of the caller's
 *
 * Context: may sleep.
 * Return: DAT_SUCCESS; DAT_INVALID_PARAMETER (negative or too small
 * @max_to_return, NULL @entries_returned, NULL list or element).
 */
DAT_RETURN dat_registry_list_providers(DAT_COUNT max_to_return, DAT_COUNT *entries_returned,
				       DAT_PROVIDER_INFO *dat_provider_list[])
{
	struct registry_list out = {
		.list = dat_provider_list,
		.room = max_to_return,
		.fits = true,
	};

	if (!entries_returned)
		return kdapl_arg_err(2);
	kdapl_device_walk(registry_add, &out);
	*entries_returned = out.count;
	if (max_to_return < 0 || (!out.fits && out.count > max_to_return))
		return kdapl_arg_err(1);
	return out.fits ? DAT_SUCCESS : kdapl_arg_err(3);
}
EXPORT_SYMBOL(dat_registry_list_providers);
