// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Copyright (c) 2026 The kDAPL for Linux authors */
#include <linux/blk-mq.h>

static unsigned int probe __maybe_unused = BLK_MQ_F_SHOULD_MERGE;
