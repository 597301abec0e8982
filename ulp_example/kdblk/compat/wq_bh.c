// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Copyright (c) 2026 The kDAPL for Linux authors */
#include <linux/workqueue.h>

/* Work items that run in softirq; before them there were tasklets only. */
static unsigned int probe __maybe_unused = WQ_BH;
