// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Copyright (c) 2026 The kDAPL for Linux authors */
#include <rdma/ib_verbs.h>

static struct net_device *(*probe)(struct ib_device *, u32) __maybe_unused =
	ib_device_get_netdev;
