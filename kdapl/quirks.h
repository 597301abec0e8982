/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What devices can do and need beyond their attributes, derived once when a
 * device is added (quirks.c, which says how to add to it).
 */
#ifndef KDAPL_QUIRKS_H
#define KDAPL_QUIRKS_H

#include <linux/types.h>

struct kdapl_device;

/**
 * struct kdapl_caps - what is special about a device; zero is ordinary
 *
 * Constant once the device is known, and read without a lock.
 */
struct kdapl_caps {
};

void kdapl_quirks_derive(struct kdapl_device *dev);

#endif /* KDAPL_QUIRKS_H */
