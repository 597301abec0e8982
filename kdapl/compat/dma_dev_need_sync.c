// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Copyright (c) 2026 The kDAPL for Linux authors */
#include <linux/dma-mapping.h>

static bool (*probe)(const struct device *) __maybe_unused = dma_dev_need_sync;
