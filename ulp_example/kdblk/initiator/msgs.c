// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The messages of a queue. The data of small commands is part of them: it is copied, which costs
 * less than mapping or lending the pages of a request and waiting until the device is done.
 * The memory lives as long as the disk, its registration as long as the adapter is used.
 */
#define pr_fmt(fmt) "kdblk: " fmt

#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include "kdblk.h"

/* Every adapter can register that much scattered memory as one region. */
#define KDBLK_CHUNK	(256u << 10)

static size_t kdblk_chunk_size(const struct kdblk_msgs *msgs, u32 i)
{
	u32 n = min(msgs->count - (i << msgs->shift), 1u << msgs->shift);

	return PAGE_ALIGN((size_t)n * msgs->size);
}

/* The caller frees what was allocated, also after a failure. */
int kdblk_msgs_alloc(struct kdblk_msgs *msgs, u32 count, u32 size)
{
	u32 i;

	msgs->count = count;
	msgs->size = ALIGN(size, SMP_CACHE_BYTES);
	msgs->shift = ilog2(KDBLK_CHUNK / msgs->size);
	msgs->nchunks = DIV_ROUND_UP(count, 1u << msgs->shift);
	msgs->chunks = kcalloc(msgs->nchunks, sizeof(*msgs->chunks), GFP_KERNEL);
	if (!msgs->chunks)
		return -ENOMEM;
	for (i = 0; i < msgs->nchunks; i++) {
		msgs->chunks[i].va = kdblk_pages_alloc(kdblk_chunk_size(msgs, i));
		if (!msgs->chunks[i].va)
			return -ENOMEM;
	}
	return 0;
}

void kdblk_msgs_free(struct kdblk_msgs *msgs)
{
	u32 i;

	for (i = 0; msgs->chunks && i < msgs->nchunks; i++)
		kdblk_pages_free(msgs->chunks[i].va, kdblk_chunk_size(msgs, i));
	kfree(msgs->chunks);
	msgs->chunks = NULL;
}

/* Register what is not registered yet. */
int kdblk_msgs_register(struct kdblk_msgs *msgs, struct kdblk_disk *disk)
{
	DAT_REGION_DESCRIPTION region = {};
	struct kdblk_chunk *chunk;
	int err = 0;
	u32 i;

	for (i = 0; !err && i < msgs->nchunks; i++) {
		chunk = &msgs->chunks[i];
		region.for_va = chunk->va;
		err = chunk->lmr ? 0 :
		      KDBLK_TRY(kdblk_name(disk), dat_lmr_kcreate, disk->ia, DAT_MEM_TYPE_VIRTUAL,
				region, kdblk_chunk_size(msgs, i), disk->pz, KDBLK_LOCAL,
				DAT_VA_TYPE_VA, DAT_MEM_OPTIMIZE_DONT_CARE, &chunk->lmr,
				&chunk->lkey, NULL, NULL, NULL);
	}
	return err;
}

void kdblk_msgs_unregister(struct kdblk_msgs *msgs)
{
	u32 i;

	for (i = 0; msgs->chunks && i < msgs->nchunks; i++) {
		if (msgs->chunks[i].lmr)
			dat_lmr_free(msgs->chunks[i].lmr);
		msgs->chunks[i].lmr = NULL;
	}
}

/* The data of a WRITE goes into its command, that of a READ comes in its answer. */
void kdblk_copy_from(struct request *rq, void *to)
{
	struct req_iterator iter;
	struct bio_vec bv;

	rq_for_each_segment(bv, rq, iter) {
		memcpy_from_bvec(to, &bv);
		to += bv.bv_len;
	}
}

void kdblk_copy_to(struct request *rq, const void *from)
{
	struct req_iterator iter;
	struct bio_vec bv;

	rq_for_each_segment(bv, rq, iter) {
		memcpy_to_bvec(&bv, from);
		from += bv.bv_len;
	}
}
