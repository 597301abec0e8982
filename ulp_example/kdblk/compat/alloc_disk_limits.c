// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Copyright (c) 2026 The kDAPL for Linux authors */
#include <linux/blk-mq.h>

/* Older kernels set the limits after the disk is allocated. */
static struct gendisk * __maybe_unused probe(struct blk_mq_tag_set *set, struct queue_limits *lim)
{
	return blk_mq_alloc_disk(set, lim, NULL);
}
