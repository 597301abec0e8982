/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The API version of these headers, and the thread safety that a consumer
 * requests. dat_ia_open() passes all three values to the registry.
 */
#ifndef _KDAT_CONFIG_H_
#define _KDAT_CONFIG_H_

#define DAT_VERSION_MAJOR	2
#define DAT_VERSION_MINOR	0

/* A consumer may define it as DAT_FALSE before including <dat2/kdat.h>. */
#ifndef DAT_THREADSAFE
#define DAT_THREADSAFE		DAT_TRUE
#endif

#endif /* _KDAT_CONFIG_H_ */
