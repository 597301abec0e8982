// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Copyright (c) 2026 The kDAPL for Linux authors */
/* Every supported kernel has these. If this fails, the other probes prove nothing. */
#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <dat2/kdat_ext.h>

static void (*probe)(struct request *, blk_status_t) __maybe_unused = blk_mq_end_request;
