/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * All block layer differences between kernel versions. The code is written for the newest
 * kernel. KDBLK_HAVE_X is defined if the build could compile compat/x.c; a feature that is a
 * macro is tested by its name.
 */
#ifndef _KDBLK_COMPAT_H_
#define _KDBLK_COMPAT_H_

#include <linux/blk-mq.h>
#include <linux/blkdev.h>
#include <linux/interrupt.h>
#include <linux/workqueue.h>

#include "have.h"

#ifdef KDBLK_HAVE_LINUX_HEX		/* formerly in linux/kernel.h */
#include <linux/hex.h>
#endif

#ifdef KDBLK_HAVE_MQ_SHOULD_MERGE		/* newer kernels always merge */
#define KDBLK_MQ_FLAGS	BLK_MQ_F_SHOULD_MERGE
#else
#define KDBLK_MQ_FLAGS	0
#endif

#ifndef KDBLK_HAVE_MAP_SG_OF_REQUEST
static inline int kdblk_map_sg(struct request *rq, struct scatterlist *sgl)
{
	return blk_rq_map_sg(rq->q, rq, sgl);
}

#define blk_rq_map_sg(rq, sgl)	kdblk_map_sg(rq, sgl)
#endif

/*
 * A function that runs in softirq after it has been raised, in any context. It runs on this CPU, or
 * on the one where it is running at that moment; never on two at a time.
 */
struct kdblk_bh {
	void (*func)(struct kdblk_bh *bh);
#ifdef KDBLK_HAVE_WQ_BH
	struct work_struct work;
#else
	struct tasklet_struct tasklet;
#endif
};

#ifdef KDBLK_HAVE_WQ_BH
static inline void kdblk_bh_run(struct work_struct *work)
{
	struct kdblk_bh *bh = container_of(work, struct kdblk_bh, work);

	bh->func(bh);
}

static inline void kdblk_bh_init(struct kdblk_bh *bh, void (*func)(struct kdblk_bh *bh))
{
	bh->func = func;
	INIT_WORK(&bh->work, kdblk_bh_run);
}

static inline void kdblk_bh_raise(struct kdblk_bh *bh)
{
	queue_work(system_bh_wq, &bh->work);
}

/* May sleep. Afterwards it does not run until it is raised again. */
static inline void kdblk_bh_stop(struct kdblk_bh *bh)
{
	cancel_work_sync(&bh->work);
}
#else
static inline void kdblk_bh_run(struct tasklet_struct *tasklet)
{
	struct kdblk_bh *bh = container_of(tasklet, struct kdblk_bh, tasklet);

	bh->func(bh);
}

static inline void kdblk_bh_init(struct kdblk_bh *bh, void (*func)(struct kdblk_bh *bh))
{
	bh->func = func;
	tasklet_setup(&bh->tasklet, kdblk_bh_run);
}

static inline void kdblk_bh_raise(struct kdblk_bh *bh)
{
	tasklet_schedule(&bh->tasklet);
}

static inline void kdblk_bh_stop(struct kdblk_bh *bh)
{
	tasklet_kill(&bh->tasklet);
}
#endif

static inline bool kdblk_bdev_rotational(struct block_device *bdev)
{
#ifdef BLK_FEAT_ROTATIONAL
	return bdev_get_queue(bdev)->limits.features & BLK_FEAT_ROTATIONAL;
#else
	return !bdev_nonrot(bdev);
#endif
}

#ifndef BLK_FEAT_WRITE_CACHE
/* Older kernels set features one by one after allocating the disk, still older ones limits, too. */
#define BLK_FEAT_WRITE_CACHE	BIT(0)
#define BLK_FEAT_FUA		BIT(1)
#define BLK_FEAT_ROTATIONAL	BIT(2)
#define BLK_FEAT_POLL		BIT(9)

struct kdblk_limits {
	unsigned int features;
	unsigned int logical_block_size, physical_block_size;
	unsigned int max_hw_sectors, max_segment_size;
	unsigned int max_hw_discard_sectors, discard_granularity, max_write_zeroes_sectors;
	unsigned short max_segments, max_discard_segments;
	unsigned long virt_boundary_mask;
};

#ifdef KDBLK_HAVE_ALLOC_DISK_LIMITS
static inline struct gendisk *kdblk_alloc_disk_limits(struct blk_mq_tag_set *set,
						      const struct kdblk_limits *lim, void *data)
{
	struct queue_limits limits = {
		.logical_block_size = lim->logical_block_size,
		.physical_block_size = lim->physical_block_size,
		.max_hw_sectors = lim->max_hw_sectors,
		.virt_boundary_mask = lim->virt_boundary_mask,
		.max_segments = lim->max_segments,
		.max_hw_discard_sectors = lim->max_hw_discard_sectors,
		.max_discard_segments = lim->max_discard_segments,
		.discard_granularity = lim->discard_granularity,
		.max_write_zeroes_sectors = lim->max_write_zeroes_sectors,
	};

	return blk_mq_alloc_disk(set, &limits, data);
}
#else
static inline struct gendisk *kdblk_alloc_disk_limits(struct blk_mq_tag_set *set,
						      const struct kdblk_limits *lim, void *data)
{
	struct gendisk *disk = blk_mq_alloc_disk(set, data);
	struct request_queue *q;

	if (IS_ERR(disk))
		return disk;
	q = disk->queue;
	blk_queue_logical_block_size(q, lim->logical_block_size);
	blk_queue_physical_block_size(q, lim->physical_block_size);
	blk_queue_max_hw_sectors(q, lim->max_hw_sectors);
	blk_queue_virt_boundary(q, lim->virt_boundary_mask);
	blk_queue_max_segments(q, lim->max_segments);
	blk_queue_max_discard_sectors(q, lim->max_hw_discard_sectors);
	q->limits.discard_granularity = lim->discard_granularity;
	blk_queue_max_write_zeroes_sectors(q, lim->max_write_zeroes_sectors);
	return disk;
}
#endif

static inline struct gendisk *kdblk_alloc_disk(struct blk_mq_tag_set *set,
					       struct kdblk_limits *lim, void *data)
{
	struct gendisk *disk = kdblk_alloc_disk_limits(set, lim, data);

	if (IS_ERR(disk))
		return disk;
	blk_queue_write_cache(disk->queue, lim->features & BLK_FEAT_WRITE_CACHE,
			      lim->features & BLK_FEAT_FUA);
	if (!(lim->features & BLK_FEAT_ROTATIONAL))
		blk_queue_flag_set(QUEUE_FLAG_NONROT, disk->queue);
	if (lim->features & BLK_FEAT_POLL)
		blk_queue_flag_set(QUEUE_FLAG_POLL, disk->queue);
	return disk;
}

#else
#define kdblk_limits queue_limits
#define kdblk_alloc_disk(set, lim, data)	blk_mq_alloc_disk(set, lim, data)
#endif

#endif /* _KDBLK_COMPAT_H_ */
