// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Copyright (c) 2026 The kDAPL for Linux authors */
/* Every supported kernel has these. If this fails, the other probes prove nothing. */
#include <linux/sunrpc/svc.h>
#include <linux/sunrpc/xprt.h>
#include <dat2/kdat_ext.h>

static void (*probe)(struct rpc_xprt *) __maybe_unused = xprt_force_disconnect;
