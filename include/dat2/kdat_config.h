/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Version of the API this header tree describes, and the thread-safety a
 * consumer asks for. dat_ia_open() hands all three to the registry.
 */
#ifndef _KDAT_CONFIG_H_
#define _KDAT_CONFIG_H_

#define DAT_VERSION_MAJOR	2
#define DAT_VERSION_MINOR	0

/* A consumer may define it as DAT_FALSE before it includes <dat2/kdat.h>. */
#ifndef DAT_THREADSAFE
#define DAT_THREADSAFE		DAT_TRUE
#endif

#endif /* _KDAT_CONFIG_H_ */
