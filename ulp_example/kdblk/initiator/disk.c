// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The block device. Each hardware queue is a queue of the session with one Endpoint and
 * one Event Dispatcher. The default is one per CPU.
 */
#define pr_fmt(fmt) "kdblk: " fmt

#include <linux/delay.h>
#include <linux/idr.h>
#include <linux/module.h>
#include "../compat.h"
#include "kdblk.h"

#define KDBLK_CLOSE_TRIES	150	/* of 20 ms */

static DEFINE_IDA(kdblk_minors);

static blk_status_t kdblk_queue_rq(struct blk_mq_hw_ctx *hctx, const struct blk_mq_queue_data *bd)
{
	struct kdblk_io *io = blk_mq_rq_to_pdu(bd->rq);
	struct kdblk_queue *q = hctx->driver_data;

	if (!(bd->rq->rq_flags & RQF_DONTPREP)) {	/* first try */
		bd->rq->rq_flags |= RQF_DONTPREP;
		io->tries = 0;
	}
	/* Without a connection the queue is quiesced, unless its commands are to fail. */
	if (unlikely(READ_ONCE(q->disk->failing)))
		return BLK_STS_TRANSPORT;
	/* Connected again, or fenced: the target has ended the earlier copies of the command. */
	if (unlikely(io->tries > READ_ONCE(q->disk->config.reconnect_max))) {
		pr_err_ratelimited("%s: queue %u: a command fails, since it was lost with %u sessions\n",
				   kdblk_name(q->disk), q->index, io->tries);
		return BLK_STS_TRANSPORT;
	}
	return kdblk_queue_post(q, bd->rq);
}

static void kdblk_complete_rq(struct request *rq)
{
	struct kdblk_queue *q = rq->mq_hctx->driver_data;
	struct kdblk_io *io = blk_mq_rq_to_pdu(rq);

	/* The target asked to try again later. Limit the number of tries. */
	if (unlikely(io->status == BLK_STS_RESOURCE) &&
	    ++io->tries <= q->disk->config.reconnect_max) {
		blk_mq_requeue_request(rq, false);
		blk_mq_delay_kick_requeue_list(q->disk->gendisk->queue, KDBLK_AGAIN_MS);
		return;
	}
	blk_mq_end_request(rq, io->status);
}

static enum blk_eh_timer_return kdblk_timeout_rq(struct request *rq)
{
	struct kdblk_queue *q = rq->mq_hctx->driver_data;

	/* A task that submits and does not poll must not end the session of all others. */
	if (q->polled) {
		kdblk_queue_poll_all(q);
		if (blk_mq_rq_state(rq) != MQ_RQ_IN_FLIGHT)
			return BLK_EH_DONE;
	}
	/* The request keeps its tag; recovery replays it with the others. */
	kdblk_lost(q->disk, "the target did not answer a command in time");
	return BLK_EH_RESET_TIMER;
}

static int kdblk_poll_rq(struct blk_mq_hw_ctx *hctx, struct io_comp_batch *iob)
{
	return kdblk_queue_poll(hctx->driver_data);
}

static int kdblk_init_hctx(struct blk_mq_hw_ctx *hctx, void *data, unsigned int index)
{
	struct kdblk_disk *disk = data;

	hctx->driver_data = &disk->queues[index];
	return 0;
}

static void kdblk_map_queues(struct blk_mq_tag_set *set)
{
	struct kdblk_disk *disk = set->driver_data;
	u32 polled = kdblk_polled(disk), n = disk->nr_queues - polled;

	set->map[HCTX_TYPE_DEFAULT].nr_queues = n;
	blk_mq_map_queues(&set->map[HCTX_TYPE_DEFAULT]);
	if (set->nr_maps <= HCTX_TYPE_POLL)
		return;
	set->map[HCTX_TYPE_READ].nr_queues = 0;
	set->map[HCTX_TYPE_POLL].nr_queues = polled;
	set->map[HCTX_TYPE_POLL].queue_offset = n;
	blk_mq_map_queues(&set->map[HCTX_TYPE_POLL]);
}

static const struct blk_mq_ops kdblk_mq_ops = {
	.queue_rq = kdblk_queue_rq,
	.complete = kdblk_complete_rq,
	.timeout = kdblk_timeout_rq,
	.poll = kdblk_poll_rq,
	.init_hctx = kdblk_init_hctx,
	.map_queues = kdblk_map_queues,
};

/* Gendisks that still point into this module; their last reference may be dropped late. */
static atomic_t kdblk_gendisks = ATOMIC_INIT(0);

static void kdblk_free_gendisk(struct gendisk *gendisk)
{
	if (atomic_dec_and_test(&kdblk_gendisks))
		wake_up_var(&kdblk_gendisks);
}

static const struct block_device_operations kdblk_fops = {
	.owner = THIS_MODULE,
	.free_disk = kdblk_free_gendisk,
};

/* Called before the module is unloaded. An open disk holds a module reference. */
void kdblk_disk_exit(void)
{
	wait_var_event(&kdblk_gendisks, !atomic_read(&kdblk_gendisks));
}

/* Stop or restart the queues. Does nothing before the disk exists. */
static void kdblk_gate(struct kdblk_disk *disk, bool shut)
{
	mutex_lock(&disk->gate);
	if (disk->gendisk && disk->quiesced != shut) {
		disk->quiesced = shut;
		if (shut)
			blk_mq_quiesce_queue(disk->gendisk->queue);
		else
			blk_mq_unquiesce_queue(disk->gendisk->queue);
	}
	if (disk->gendisk)
		kdblk_sysfs_event(disk);
	mutex_unlock(&disk->gate);
}

/* When this returns, no command is being posted, and none will be. */
void kdblk_disk_quiesce(struct kdblk_disk *disk)
{
	kdblk_gate(disk, true);
}

/* Commands that waited are sent; without a connection they fail. */
void kdblk_disk_release(struct kdblk_disk *disk)
{
	kdblk_gate(disk, false);
}

bool kdblk_disk_exists(struct kdblk_disk *disk)
{
	bool exists;

	mutex_lock(&disk->gate);
	exists = disk->gendisk;
	mutex_unlock(&disk->gate);
	return exists;
}

static void kdblk_limits(const struct kdblk_disk *disk, u32 segments, struct kdblk_limits *lim)
{
	const struct kdblk_login_rsp *geo = &disk->geometry;
	u16 flags = le16_to_cpu(geo->flags);
	u32 range = le32_to_cpu(geo->max_range);

	lim->logical_block_size = le32_to_cpu(geo->block_size);
	lim->physical_block_size = max(le32_to_cpu(geo->physical_block_size),
				       le32_to_cpu(geo->block_size));
	lim->max_hw_sectors = disk->max_io >> SECTOR_SHIFT;
	lim->max_segments = segments;
	lim->virt_boundary_mask = disk->limits.boundary - 1;
	/* The block layer does not split what is larger than a granularity beyond the range. */
	lim->discard_granularity = max(le32_to_cpu(geo->discard_granularity),
				       lim->physical_block_size);
	if (flags & KDBLK_DISK_DISCARD && lim->discard_granularity <= range) {
		lim->max_hw_discard_sectors = range >> SECTOR_SHIFT;
		lim->max_discard_segments = 1;
	} else {
		lim->discard_granularity = 0;
	}
	if (flags & KDBLK_DISK_WRITE_ZEROES)
		lim->max_write_zeroes_sectors = min(range, KDBLK_MAX_ZEROES) >> SECTOR_SHIFT;
	if (flags & KDBLK_DISK_CACHE)
		lim->features |= BLK_FEAT_WRITE_CACHE | BLK_FEAT_FUA;
	if (flags & KDBLK_DISK_ROTATIONAL)
		lim->features |= BLK_FEAT_ROTATIONAL;
	if (kdblk_polled(disk))
		lim->features |= BLK_FEAT_POLL;
}

/* Called after the first login. May sleep; reads the partition table. */
int kdblk_disk_add(struct kdblk_disk *disk)
{
	u32 segments = DIV_ROUND_UP(disk->max_io, PAGE_SIZE) + 1;
	struct blk_mq_tag_set *set = &disk->tags;
	struct kdblk_limits lim = {};
	struct gendisk *gendisk;
	int err, state;

	memset(set, 0, sizeof(*set));
	set->ops = &kdblk_mq_ops;
	set->nr_hw_queues = disk->nr_queues;
	set->nr_maps = kdblk_polled(disk) ? HCTX_MAX_TYPES : 1;
	set->queue_depth = disk->depth;
	set->numa_node = disk->limits.numa_node;
	set->cmd_size = sizeof(struct kdblk_io) + segments * sizeof(struct scatterlist);
	set->flags = KDBLK_MQ_FLAGS;
	set->timeout = KDBLK_IO_TIMEOUT;
	set->driver_data = disk;
	err = blk_mq_alloc_tag_set(set);
	if (err)
		return err;
	err = ida_alloc(&kdblk_minors, GFP_KERNEL);
	if (err < 0)
		goto out_free_tags;
	disk->minor = err;
	err = kdblk_sysfs_add(disk);
	if (err)
		goto out_free_minor;
	kdblk_limits(disk, segments, &lim);
	gendisk = kdblk_alloc_disk(set, &lim, disk);
	if (IS_ERR(gendisk)) {
		err = PTR_ERR(gendisk);
		goto out_remove_sysfs;
	}
	snprintf(gendisk->disk_name, sizeof(gendisk->disk_name), "kdblk%d", disk->minor);
	gendisk->fops = &kdblk_fops;
	gendisk->private_data = disk;
	set_capacity(gendisk, le64_to_cpu(disk->geometry.capacity) >> SECTOR_SHIFT);
	set_disk_ro(gendisk, le16_to_cpu(disk->geometry.flags) & KDBLK_DISK_READ_ONLY);

	mutex_lock(&disk->gate);
	disk->gendisk = gendisk;
	/* The connection may be lost by now; then recovery unquiesces the queue. */
	state = READ_ONCE(disk->state);
	/* If commands are to fail, let them through. */
	disk->quiesced = state != KDBLK_LIVE && !READ_ONCE(disk->failing);
	if (disk->quiesced)
		blk_mq_quiesce_queue(gendisk->queue);
	kdblk_sysfs_event(disk);
	mutex_unlock(&disk->gate);

	atomic_inc(&kdblk_gendisks);
	err = device_add_disk(disk->dev, gendisk, NULL);
	if (!err)
		return 0;
	atomic_dec(&kdblk_gendisks);	/* free_disk is called only for added disks */
	mutex_lock(&disk->gate);
	disk->gendisk = NULL;
	mutex_unlock(&disk->gate);
	cancel_work_sync(&disk->grow);	/* it may hold the last reference, and the queue the tags */
	put_disk(gendisk);
out_remove_sysfs:
	kdblk_sysfs_remove(disk);
out_free_minor:
	ida_free(&kdblk_minors, disk->minor);
out_free_tags:
	blk_mq_free_tag_set(set);
	return err;
}

/*
 * An open device holds a reference on this module. The kernel closes a file of a task that has
 * ended a little later in some cases (io_uring). Wait for that, so that the module can be
 * unloaded when the disk is gone. If it stays open, log what keeps it.
 */
static void kdblk_await_closed(struct kdblk_disk *disk, struct gendisk *gendisk)
{
	int tries = KDBLK_CLOSE_TRIES;

	while (disk_openers(gendisk) && tries--)
		msleep(20);
	if (disk_openers(gendisk))
		pr_warn("%s: %s is still open; this module stays in use until it is closed\n",
			kdblk_name(disk), gendisk->disk_name);
}

/* May sleep until all outstanding commands are answered or have failed. */
void kdblk_disk_remove(struct kdblk_disk *disk)
{
	struct gendisk *gendisk = disk->gendisk;

	if (!gendisk)
		return;
	del_gendisk(gendisk);
	kdblk_await_closed(disk, gendisk);
	mutex_lock(&disk->gate);
	disk->gendisk = NULL;
	mutex_unlock(&disk->gate);
	kdblk_sysfs_remove(disk);
	put_disk(gendisk);
	blk_mq_free_tag_set(&disk->tags);
	ida_free(&kdblk_minors, disk->minor);
}
