// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Copyright (c) 2026 The kDAPL for Linux authors */
#include <linux/sunrpc/svc.h>

static void (*probe)(struct svc_pool *) __maybe_unused = svc_pool_wake_idle_thread;
