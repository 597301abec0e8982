// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The registry: which IAs there are. There is one for each port of each device
 * that ib_core has, so nothing is stored: every call walks the devices.
 */
#include <linux/export.h>

#include "core.h"

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
 * @entries_returned: where the number of IAs listed goes or, if the list is too
 *	small, the number of IAs there are
 * @dat_provider_list: array of pointers to structures of the caller's
 *
 * There is one for each port of each RDMA device that has fast registration, on
 * any transport. Devices come and go, so the list may be out of date when it is
 * read. With @max_to_return 0 the call only counts: it stores the number of IAs and,
 * if there are any, returns DAT_INVALID_PARAMETER.
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

/**
 * dat_registry_providers_related - can one IA stand in for another one?
 * @name1: name of an IA, as for dat_ia_openv()
 * @name2: name of another one
 * @answer: where the answer goes: DAT_HA_TRUE for two names of the same IA, otherwise
 *	DAT_HA_FALSE, since this provider moves no connection from one port to another
 *
 * Names are looked up as dat_ia_openv() does.
 *
 * Context: may sleep.
 * Return: DAT_SUCCESS; DAT_INVALID_PARAMETER (NULL, or a name of
 * DAT_NAME_MAX_LENGTH characters or more); DAT_PROVIDER_NOT_FOUND (there is no IA
 * with one of the names).
 */
DAT_RETURN dat_registry_providers_related(const DAT_NAME_PTR name1, const DAT_NAME_PTR name2,
					  DAT_HA_RELATIONSHIP *answer)
{
	struct kdapl_device *dev1, *dev2;
	struct kdapl_pick pick;
	u32 port1, port2;
	DAT_RETURN ret = DAT_SUCCESS;

	if (!name1 || strnlen(name1, DAT_NAME_MAX_LENGTH) == DAT_NAME_MAX_LENGTH)
		return kdapl_arg_err(1);
	if (!name2 || strnlen(name2, DAT_NAME_MAX_LENGTH) == DAT_NAME_MAX_LENGTH)
		return kdapl_arg_err(2);
	if (!answer)
		return kdapl_arg_err(3);
	dev1 = kdapl_device_find(name1, &port1, &pick);
	dev2 = kdapl_device_find(name2, &port2, &pick);
	if (!dev1 || !dev2)
		ret = kdapl_err(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	else
		*answer = dev1 == dev2 && port1 == port2 ? DAT_HA_TRUE : DAT_HA_FALSE;
	if (dev1)
		kdapl_device_put(dev1);
	if (dev2)
		kdapl_device_put(dev2);
	return ret;
}
EXPORT_SYMBOL(dat_registry_providers_related);
