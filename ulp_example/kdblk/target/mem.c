// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Memory that the adapter may access. It is registered when a portal or queue is set up,
 * so that commands neither allocate nor register memory.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/mm.h>
#include <linux/slab.h>

#include "target.h"

/**
 * kdt_chunk_alloc - allocate and register zeroed memory
 * @chunk: filled in; kdt_chunk_free() accepts it even after a failure
 * @ia: the adapter
 * @pz: a Protection Zone of it
 * @size: bytes, rounded up to pages. At most KDBLK_MAX_IO: every adapter can register
 *	that many scattered pages as one region.
 * @rights: DAT_MEM_PRIV_*
 *
 * Return: 0 or -errno.
 */
int kdt_chunk_alloc(struct kdt_chunk *chunk, DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, size_t size,
		    int rights)
{
	DAT_REGION_DESCRIPTION region = {};
	DAT_RETURN ret;

	chunk->size = PAGE_ALIGN(size);
	chunk->va = kdblk_pages_alloc(chunk->size);
	if (!chunk->va)
		return -ENOMEM;
	chunk->scattered = is_vmalloc_addr(chunk->va);
	region.for_va = chunk->va;
	ret = dat_lmr_kcreate(ia, DAT_MEM_TYPE_VIRTUAL, region, chunk->size, pz, rights,
			      DAT_VA_TYPE_VA, DAT_MEM_OPTIMIZE_DONT_CARE, &chunk->lmr,
			      &chunk->key, NULL, NULL, NULL);
	return kdat_errno(ret);
}

void kdt_chunk_free(struct kdt_chunk *chunk)
{
	if (chunk->lmr)
		dat_lmr_free(chunk->lmr);
	kdblk_pages_free(chunk->va, chunk->size);
	memset(chunk, 0, sizeof(*chunk));
}

int kdt_buf_init(struct kdt_buf *buf, const struct kdt_chunk *chunk, size_t offset, u32 size)
{
	u32 i;

	buf->va = chunk->va + offset;
	buf->key = chunk->key;
	buf->scattered = chunk->scattered;
	buf->bvec = &buf->one;
	if (!buf->scattered) {
		buf->one.bv_page = virt_to_page(buf->va);
		return 0;
	}
	buf->bvec = kcalloc(size / PAGE_SIZE, sizeof(*buf->bvec), GFP_KERNEL);
	if (!buf->bvec)
		return -ENOMEM;
	for (i = 0; i < size / PAGE_SIZE; i++)
		buf->bvec[i].bv_page = vmalloc_to_page(buf->va + i * PAGE_SIZE);
	return 0;
}

void kdt_buf_exit(struct kdt_buf *buf)
{
	if (buf->bvec != &buf->one)
		kfree(buf->bvec);
	buf->bvec = NULL;
}

/* Make the bvecs describe the first @length bytes. Return their number. */
unsigned short kdt_buf_fill(struct kdt_buf *buf, u32 length)
{
	unsigned short n;

	if (likely(!buf->scattered)) {
		buf->bvec[0].bv_len = length;
		return 1;
	}
	for (n = 0; length; n++) {
		buf->bvec[n].bv_len = min_t(u32, length, PAGE_SIZE);
		length -= buf->bvec[n].bv_len;
	}
	return n;
}

int kdt_pool_alloc(struct kdt_pool *pool, DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, u32 nbufs, u32 size,
		   int rights)
{
	u32 i;
	int err;

	INIT_LIST_HEAD(&pool->free);
	pool->nbufs = nbufs;
	pool->bufs = kvcalloc(nbufs, sizeof(*pool->bufs), GFP_KERNEL);
	pool->chunks = kvcalloc(nbufs, sizeof(*pool->chunks), GFP_KERNEL);
	if (!pool->bufs || !pool->chunks) {
		kdt_pool_free(pool);
		return -ENOMEM;
	}
	for (i = 0; i < nbufs; i++) {
		err = kdt_chunk_alloc(&pool->chunks[i], ia, pz, size, rights) ?:
		      kdt_buf_init(&pool->bufs[i], &pool->chunks[i], 0, size);
		if (err) {
			kdt_pool_free(pool);
			return err;
		}
		pool->bufs[i].pool = pool;
		list_add_tail(&pool->bufs[i].node, &pool->free);
	}
	return 0;
}

/* Also accepts a pool that was built only in part, or not at all. */
void kdt_pool_free(struct kdt_pool *pool)
{
	u32 i;

	for (i = 0; pool->bufs && pool->chunks && i < pool->nbufs; i++) {
		kdt_buf_exit(&pool->bufs[i]);
		kdt_chunk_free(&pool->chunks[i]);
	}
	kvfree(pool->chunks);
	kvfree(pool->bufs);
	pool->chunks = NULL;
	pool->bufs = NULL;
	pool->nbufs = 0;
	INIT_LIST_HEAD(&pool->free);
}

/**
 * kdt_share_join - count a session among the users of its disk
 * @s: session with a disk and with its own buffers
 *
 * Return: 0 or -ENOMEM.
 */
int kdt_share_join(struct kdt_session *s)
{
	struct kdt_share *new = kzalloc(sizeof(*new), GFP_KERNEL), *share;
	struct kdt_adapter *adapter = s->adapter;

	if (!new)
		return -ENOMEM;
	new->disk = s->disk;
	spin_lock_bh(&adapter->buf_lock);
	list_for_each_entry(share, &adapter->shares, node) {
		if (share->disk == s->disk)
			s->share = share;
	}
	if (!s->share) {
		list_add(&new->node, &adapter->shares);
		s->share = new;
		new = NULL;
	}
	s->share->sessions++;
	spin_unlock_bh(&adapter->buf_lock);
	kfree(new);
	return 0;
}

/* The session holds no buffer any more, and no command waits for one. */
void kdt_share_leave(struct kdt_session *s)
{
	struct kdt_adapter *adapter = s->adapter;
	struct kdt_share *share = s->share;

	if (!share)
		return;
	spin_lock_bh(&adapter->buf_lock);
	s->share = NULL;
	if (--share->sessions)
		share = NULL;
	else
		list_del(&share->node);
	spin_unlock_bh(&adapter->buf_lock);
	kfree(share);
}

/*
 * Take a buffer: one of the session's own, or one of the adapter's as long as the disk holds
 * less than half of them, and this session less than a quarter if others use the disk as well.
 * So commands never hold all buffers, even if a disk does not complete them, or an initiator does
 * not take their answers.
 */
static struct kdt_buf *kdt_pool_take(struct kdt_session *s)
{
	struct kdt_pool *pool = &s->pool;
	struct kdt_buf *buf;
	u32 most;

	lockdep_assert_held(&s->adapter->buf_lock);
	if (list_empty(&pool->free)) {
		pool = &s->adapter->pool;
		most = max(pool->nbufs / (s->share->sessions > 1 ? 4 : 2), 1U);
		if (list_empty(&pool->free) || s->held >= most ||
		    s->share->held >= max(pool->nbufs / 2, 1U))
			return NULL;
		s->held++;
		s->share->held++;
	}
	buf = list_first_entry(&pool->free, struct kdt_buf, node);
	list_del(&buf->node);
	return buf;
}

/**
 * kdt_pool_get - get a buffer for a command
 * @cmd: command; its member buf is set
 *
 * If there is no buffer for its session, the command waits for one and then continues in a
 * work item at KDT_STAGE_BEGIN.
 *
 * Context: any except hard interrupts.
 * Return: true if the command has a buffer now.
 */
bool kdt_pool_get(struct kdt_cmd *cmd)
{
	struct kdt_session *s = cmd->q->s;
	struct kdt_adapter *adapter = s->adapter;
	struct kdt_buf *buf = NULL;

	spin_lock_bh(&adapter->buf_lock);
	if (list_empty(&s->waiting))
		buf = kdt_pool_take(s);
	cmd->pooled = true;
	cmd->buf = buf;
	if (!buf) {
		cmd->stage = KDT_STAGE_BEGIN;
		list_add_tail(&cmd->node, &s->waiting);
		if (list_empty(&s->hungry))
			list_add_tail(&s->hungry, &adapter->hungry);
	}
	spin_unlock_bh(&adapter->buf_lock);
	return buf;	/* do not access a waiting command from here on */
}

/* The sessions take turns. A buffer that has come back is of use to one command at most. */
static struct kdt_cmd *kdt_pool_next(struct kdt_adapter *adapter)
{
	struct kdt_session *s;
	struct kdt_cmd *cmd;
	struct kdt_buf *buf;

	lockdep_assert_held(&adapter->buf_lock);
	list_for_each_entry(s, &adapter->hungry, hungry) {
		buf = kdt_pool_take(s);
		if (!buf)
			continue;
		cmd = list_first_entry(&s->waiting, struct kdt_cmd, node);
		list_del(&cmd->node);
		cmd->buf = buf;
		if (list_empty(&s->waiting))
			list_del_init(&s->hungry);
		else
			list_move_tail(&s->hungry, &adapter->hungry);
		return cmd;
	}
	return NULL;
}

/**
 * kdt_pool_put - give back the buffer of a command
 * @cmd: command with a buffer from kdt_pool_get()
 *
 * Context: any except hard interrupts.
 */
void kdt_pool_put(struct kdt_cmd *cmd)
{
	struct kdt_session *s = cmd->q->s;
	struct kdt_adapter *adapter = s->adapter;
	struct kdt_buf *buf = cmd->buf;
	struct kdt_cmd *next;

	cmd->pooled = false;
	cmd->buf = NULL;
	spin_lock_bh(&adapter->buf_lock);
	list_add(&buf->node, &buf->pool->free);
	if (buf->pool == &adapter->pool) {
		s->held--;
		s->share->held--;
	}
	next = kdt_pool_next(adapter);
	spin_unlock_bh(&adapter->buf_lock);
	/* It counts as in flight, so it exists until it is dropped or answered. */
	if (next)
		queue_work(next->q->s->disk->wq, &next->work);
}

/* Drop the commands of a session that wait for a buffer. */
void kdt_pool_cancel(struct kdt_session *s)
{
	struct kdt_adapter *adapter = s->adapter;
	struct kdt_cmd *cmd, *next;
	LIST_HEAD(mine);

	spin_lock_bh(&adapter->buf_lock);
	list_splice_init(&s->waiting, &mine);
	list_del_init(&s->hungry);
	spin_unlock_bh(&adapter->buf_lock);
	list_for_each_entry_safe(cmd, next, &mine, node)
		kdt_drop(cmd);
}
