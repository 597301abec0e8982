// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Copyright (c) 2026 The kDAPL for Linux authors */
/* Must compile for every supported kernel; otherwise the other probes prove nothing. */
#include <linux/netdevice.h>
#include <linux/workqueue.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

static void (*probe)(struct workqueue_struct *) __maybe_unused = destroy_workqueue;
static void (*probe_verbs)(struct ib_device *) __maybe_unused = ib_device_put;
