// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Copyright (c) 2026 The kDAPL for Linux authors */
#include <linux/sunrpc/bc_xprt.h>
#include <linux/sunrpc/xprt.h>

static void (*probe)(struct rpc_rqst *) __maybe_unused = xprt_enqueue_bc_request;
