// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The underlying disk: a block device or a file. A block device gets bios that are embedded
 * in the commands. File operations, and block operations that need more than one bio, run
 * in the work item of the command.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/file.h>
#include <linux/fs.h>
#include <linux/falloc.h>	/* needs types of linux/fs.h */
#include <linux/pgtable.h>
#include <linux/preempt.h>
#include <linux/sched/mm.h>
#include <linux/uio.h>

#include "target.h"

#define KDT_FILE_BLOCK	512

/* Say why something failed, in the log and in last_error. Return @err. */
int kdt_disk_fail(struct kdt_disk *disk, int err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(disk->last_error, sizeof(disk->last_error), fmt, args);
	va_end(args);
	pr_err("disk %s: %s\n", kdt_disk_name(disk), disk->last_error);
	return err;
}

static int kdt_disk_check_bdev(struct kdt_disk *disk)
{
	struct block_device *bdev = I_BDEV(disk->file->f_mapping->host);

	disk->bdev = bdev;
	disk->block_size = bdev_logical_block_size(bdev);
	if (disk->block_size != 512 && disk->block_size != 4096)
		return kdt_disk_fail(disk, -EINVAL,
				     "%s has blocks of %u bytes, only 512 and 4096 are exported",
				     disk->path, disk->block_size);
	disk->physical_block_size = min_t(u32, bdev_physical_block_size(bdev), KDBLK_MAX_IO);
	if (bdev_write_cache(bdev))
		disk->flags |= KDBLK_DISK_CACHE;
	if (bdev_max_discard_sectors(bdev))
		disk->flags |= KDBLK_DISK_DISCARD;
	/* If the device lacks it, zeroes written by the initiator are as good as ours. */
	if (bdev_write_zeroes_sectors(bdev))
		disk->flags |= KDBLK_DISK_WRITE_ZEROES;
	if (kdblk_bdev_rotational(bdev))
		disk->flags |= KDBLK_DISK_ROTATIONAL;
	disk->discard_granularity = max(bdev_discard_granularity(bdev), disk->block_size);
	if (disk->discard_granularity > KDT_MAX_RANGE)	/* no DISCARD would do anything */
		disk->discard_granularity = disk->block_size;
	return 0;
}

static int kdt_disk_check_file(struct kdt_disk *disk)
{
	struct inode *inode = file_inode(disk->file);

	disk->bdev = NULL;
	if (!disk->file->f_op->read_iter || !disk->file->f_op->write_iter)
		return kdt_disk_fail(disk, -EINVAL, "the file system of %s cannot be exported",
				     disk->path);
	disk->block_size = KDT_FILE_BLOCK;
	disk->physical_block_size = clamp_t(u32, i_blocksize(inode), KDT_FILE_BLOCK,
					    KDBLK_MAX_IO);
	/* The page cache is a volatile cache. */
	disk->flags |= KDBLK_DISK_CACHE;
	if (disk->file->f_op->fallocate)
		disk->flags |= KDBLK_DISK_DISCARD | KDBLK_DISK_WRITE_ZEROES;
	disk->discard_granularity = disk->physical_block_size;
	return 0;
}

static u64 kdt_disk_size(const struct kdt_disk *disk)
{
	u64 size = disk->bdev ? bdev_nr_bytes(disk->bdev) : i_size_read(file_inode(disk->file));

	return round_down(size, disk->block_size);
}

/**
 * kdt_disk_open - open the device or file of a disk
 * @disk: disk
 *
 * A block device is opened exclusively, so it cannot be mounted while it is exported.
 *
 * Return: 0 or -errno after logging the reason.
 */
int kdt_disk_open(struct kdt_disk *disk)
{
	umode_t mode;
	int err;

	lockdep_assert_held(&disk->lock);
	disk->last_error[0] = 0;
	if (!disk->path || !disk->path[0])
		return kdt_disk_fail(disk, -EINVAL, "path has to be set first");
	disk->flags = disk->read_only ? KDBLK_DISK_READ_ONLY : 0;
	disk->wq = alloc_workqueue("kdblk_target/%.16s", WQ_MEM_RECLAIM | WQ_UNBOUND, 0,
				   kdt_disk_name(disk));
	if (!disk->wq)
		return kdt_disk_fail(disk, -ENOMEM, "out of memory");
	disk->file = filp_open(disk->path, (disk->read_only ? O_RDONLY : O_RDWR) | O_LARGEFILE |
			       O_EXCL, 0);
	if (IS_ERR(disk->file)) {
		err = PTR_ERR(disk->file);
		disk->file = NULL;
		kdt_disk_fail(disk, err, "cannot open %s: %pe", disk->path, ERR_PTR(err));
		goto out;
	}
	mode = file_inode(disk->file)->i_mode;
	if (S_ISBLK(mode))
		err = kdt_disk_check_bdev(disk);
	else if (S_ISREG(mode))
		err = kdt_disk_check_file(disk);
	else
		err = kdt_disk_fail(disk, -EINVAL,
				    "%s is neither a block device nor a regular file", disk->path);
	if (err)
		goto out;
	disk->capacity = kdt_disk_size(disk);
	if (!disk->capacity) {
		err = kdt_disk_fail(disk, -EINVAL, "%s is empty", disk->path);
		goto out;
	}
	if (disk->read_only)
		disk->flags &= ~(KDBLK_DISK_DISCARD | KDBLK_DISK_WRITE_ZEROES);
	return 0;
out:
	kdt_disk_close(disk);
	return err;
}

/* Also accepts a disk that was opened only in part. */
void kdt_disk_close(struct kdt_disk *disk)
{
	lockdep_assert_held(&disk->lock);
	destroy_workqueue(disk->wq);
	disk->wq = NULL;
	if (disk->file)
		filp_close(disk->file, NULL);
	disk->file = NULL;
	disk->bdev = NULL;
}

/**
 * kdt_disk_rescan - look for the size of an enabled disk again
 * @disk: enabled disk
 *
 * Initiators learn of a larger size with the answer to their next KEEPALIVE.
 *
 * Return: 0, or -ERANGE after logging the reason if the disk is smaller than before.
 */
int kdt_disk_rescan(struct kdt_disk *disk)
{
	u64 size = kdt_disk_size(disk);

	lockdep_assert_held(&disk->lock);
	disk->last_error[0] = 0;
	if (size < disk->capacity)
		return kdt_disk_fail(disk, -ERANGE,
				     "%s has shrunk from %llu to %llu bytes, and initiators may have data behind that: size unchanged; to shrink the disk, disable it",
				     disk->path, disk->capacity, size);
	if (size > disk->capacity)
		pr_info("disk %s: %s has grown from %llu to %llu bytes\n", kdt_disk_name(disk),
			disk->path, disk->capacity, size);
	WRITE_ONCE(disk->capacity, size);
	return 0;
}

static u16 kdt_status(blk_status_t status)
{
	switch (status) {
	case BLK_STS_OK:
		return KDBLK_STATUS_OK;
	case BLK_STS_NOSPC:
		return KDBLK_STATUS_NOSPC;
	case BLK_STS_NOTSUPP:
		return KDBLK_STATUS_NOTSUPP;
	case BLK_STS_MEDIUM:
		return KDBLK_STATUS_MEDIUM;
	case BLK_STS_TIMEOUT:
		return KDBLK_STATUS_TIMEOUT;
	case BLK_STS_RESOURCE:
	case BLK_STS_DEV_RESOURCE:
	case BLK_STS_AGAIN:
		return KDBLK_STATUS_RESOURCE;
	case BLK_STS_PROTECTION:
		return KDBLK_STATUS_PROTECTION;
	default:
		return KDBLK_STATUS_IO;
	}
}

/* Runs in any context. */
static void kdt_bio_done(struct bio *bio)
{
	struct kdt_cmd *cmd = container_of(bio, struct kdt_cmd, bio);

	cmd->status = kdt_status(bio->bi_status);
	bio_uninit(bio);
	/* The queue's lock cannot be taken here. */
	if (in_hardirq() || irqs_disabled())
		kdt_answer_soon(cmd);
	else
		kdt_answer(cmd);
}

static void kdt_submit(struct kdt_cmd *cmd, blk_opf_t opf)
{
	struct bio *bio = &cmd->bio;
	unsigned short n = cmd->length ? kdt_buf_fill(cmd->buf, cmd->length) : 0;

	bio_init(bio, cmd->q->s->disk->bdev, n ? cmd->buf->bvec : NULL, n, opf);
	bio->bi_end_io = kdt_bio_done;
	bio->bi_vcnt = n;
	bio->bi_iter.bi_size = cmd->length;
	bio->bi_iter.bi_sector = cmd->offset >> SECTOR_SHIFT;
	submit_bio(bio);
}

/**
 * kdt_execute - execute a command on the disk
 * @cmd: command that was checked, with its data in place if it has any
 *
 * The command will be answered, possibly before this returns.
 *
 * Context: may sleep, but not for long.
 */
void kdt_execute(struct kdt_cmd *cmd)
{
	if (cmd->q->s->disk->bdev) {
		switch (cmd->opcode) {
		case KDBLK_OP_READ:
			kdt_submit(cmd, REQ_OP_READ);
			return;
		case KDBLK_OP_WRITE:
			/* The initiator waits for each WRITE: do not throttle it as writeback. */
			kdt_submit(cmd, REQ_OP_WRITE | REQ_SYNC | REQ_IDLE |
				   (cmd->flags & KDBLK_CMD_FUA ? REQ_FUA : 0));
			return;
		case KDBLK_OP_FLUSH:
			kdt_submit(cmd, REQ_OP_WRITE | REQ_PREFLUSH);
			return;
		}
	}
	cmd->stage = KDT_STAGE_EXECUTE;
	queue_work(cmd->q->s->disk->wq, &cmd->work);
}

static int kdt_execute_bdev(struct kdt_cmd *cmd)
{
	struct block_device *bdev = cmd->q->s->disk->bdev;
	sector_t sector = cmd->offset >> SECTOR_SHIFT, n = cmd->length >> SECTOR_SHIFT;
	int err;

	if (cmd->opcode == KDBLK_OP_DISCARD)
		return blkdev_issue_discard(bdev, sector, n, GFP_NOIO);
	err = blkdev_issue_zeroout(bdev, sector, n, GFP_NOIO,
				   cmd->flags & KDBLK_CMD_NOUNMAP ? BLKDEV_ZERO_NOUNMAP : 0);
	if (!err && cmd->flags & KDBLK_CMD_FUA)
		err = blkdev_issue_flush(bdev);
	return err;
}

static int kdt_file_iter(struct kdt_cmd *cmd, struct iov_iter *iter, loff_t pos, bool write)
{
	struct file *file = cmd->q->s->disk->file;
	struct kiocb iocb;
	ssize_t ret;

	init_sync_kiocb(&iocb, file);
	iocb.ki_pos = pos;
	if (cmd->flags & KDBLK_CMD_FUA)
		iocb.ki_flags |= IOCB_DSYNC;
	while (iov_iter_count(iter)) {
		if (write) {
			file_start_write(file);
			ret = file->f_op->write_iter(&iocb, iter);
			file_end_write(file);
		} else {
			ret = file->f_op->read_iter(&iocb, iter);
		}
		if (ret <= 0)
			return ret ?: -EIO;	/* the file has become shorter */
	}
	return 0;
}

static int kdt_file_rw(struct kdt_cmd *cmd)
{
	bool write = cmd->opcode == KDBLK_OP_WRITE;
	struct iov_iter iter;

	iov_iter_bvec(&iter, write ? ITER_SOURCE : ITER_DEST, cmd->buf->bvec,
		      kdt_buf_fill(cmd->buf, cmd->length), cmd->length);
	return kdt_file_iter(cmd, &iter, cmd->offset, write);
}

/* Write zeroes, for file systems that cannot zero a range without punching a hole. */
static int kdt_file_zeroes(struct kdt_cmd *cmd)
{
	struct bio_vec bvec[16];
	struct iov_iter iter;
	u32 i, n, done;
	int err = 0;

	for (i = 0; i < ARRAY_SIZE(bvec); i++) {
		bvec[i].bv_page = ZERO_PAGE(0);
		bvec[i].bv_len = PAGE_SIZE;
		bvec[i].bv_offset = 0;
	}
	for (done = 0; done < cmd->length && !err; done += n) {
		n = min_t(u32, cmd->length - done, ARRAY_SIZE(bvec) * PAGE_SIZE);
		iov_iter_bvec(&iter, ITER_SOURCE, bvec, ARRAY_SIZE(bvec), n);
		err = kdt_file_iter(cmd, &iter, cmd->offset + done, true);
		cond_resched();
	}
	return err;
}

static int kdt_execute_file(struct kdt_cmd *cmd)
{
	struct file *file = cmd->q->s->disk->file;
	int err;

	switch (cmd->opcode) {
	case KDBLK_OP_READ:
	case KDBLK_OP_WRITE:
		return kdt_file_rw(cmd);
	case KDBLK_OP_FLUSH:
		return vfs_fsync(file, 1);
	case KDBLK_OP_DISCARD:
		return vfs_fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				     cmd->offset, cmd->length);
	}
	err = vfs_fallocate(file, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, cmd->offset,
			    cmd->length);
	if (err == -EOPNOTSUPP && !(cmd->flags & KDBLK_CMD_NOUNMAP))
		err = vfs_fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				    cmd->offset, cmd->length);
	if (err == -EOPNOTSUPP)
		err = kdt_file_zeroes(cmd);
	if (!err && cmd->flags & KDBLK_CMD_FUA)
		err = vfs_fsync_range(file, cmd->offset, cmd->offset + cmd->length - 1, 1);
	return err;
}

/*
 * Execute an operation that takes long, in the work item of the command. An initiator on
 * this machine may depend on it for memory reclaim, hence memalloc_noio_save().
 */
void kdt_execute_slow(struct kdt_cmd *cmd)
{
	/* As in loop and nfsd: dirty pages may wait for the data written here. */
	unsigned int throttled = current->flags & PF_LOCAL_THROTTLE;
	unsigned int noio = memalloc_noio_save();
	int err;

	current->flags |= PF_LOCAL_THROTTLE;

	err = cmd->q->s->disk->bdev ? kdt_execute_bdev(cmd) : kdt_execute_file(cmd);
	memalloc_noio_restore(noio);
	if (!throttled)
		current->flags &= ~PF_LOCAL_THROTTLE;
	cmd->status = kdt_status(errno_to_blk_status(err));
	/* The file system reports a lost write once: if this were repeated, it would succeed. */
	if (cmd->status == KDBLK_STATUS_RESOURCE && !cmd->q->s->disk->bdev &&
	    (cmd->opcode == KDBLK_OP_FLUSH || cmd->flags & KDBLK_CMD_FUA))
		cmd->status = KDBLK_STATUS_IO;
	kdt_answer(cmd);
}
