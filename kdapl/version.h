/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The version of kdapl.ko and of the modules that come with it.
 */
#ifndef KDAPL_VERSION_H
#define KDAPL_VERSION_H

#include <linux/stringify.h>

#define KDAPL_VERSION_MAJOR	0
#define KDAPL_VERSION_MINOR	9
#define KDAPL_VERSION_PATCH	0
#define KDAPL_VERSION		__stringify(KDAPL_VERSION_MAJOR) "." \
				__stringify(KDAPL_VERSION_MINOR) "." \
				__stringify(KDAPL_VERSION_PATCH)

#endif /* KDAPL_VERSION_H */
