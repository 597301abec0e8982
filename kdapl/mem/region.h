/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * A list of memory, as a device sees it.
 */
#ifndef KDAPL_MEM_REGION_H
#define KDAPL_MEM_REGION_H

/**
 * struct kdapl_mem - a list of memory
 * @sgt: the list; orig_nents entries there are
 * @used: entries of it that say something
 * @nents: entries the device sees, 0 while it is not mapped
 * @foreign: the addresses were the device's already: nothing is mapped or unmapped
 * @sync: while mapped: the device may see other bytes than the CPU until told
 * @dir: while mapped: enum dma_data_direction, from the rights
 * @head: bytes of the first page before the memory that were mapped with it
 * @tail: bytes of the last page behind it that were
 * @start: address of the first byte, as the consumer names it
 * @length: bytes
 * @common: where the device may have a copy that it writes: the bytes as they were when
 *	CPU and device agreed last (dma.c); a page for dma.c to work in follows
 * @common_size: bytes there is room for in @common
 */
struct kdapl_mem {
	struct sg_table sgt;
	unsigned int used;
	unsigned int nents;
	bool foreign;
	bool sync;
	u8 dir;
	u32 head;
	u32 tail;
	u64 start;
	u64 length;
	u8 *common;
	u64 common_size;
};

#define KDAPL_MEM_OPTS	(DAT_MEM_OPTIMIZE_IA | DAT_MEM_OPTIMIZE_MIN_EXPOSURE | \
			 DAT_MEM_OPTIMIZE_EXACT_EXPOSURE)

static inline bool kdapl_mem_type_valid(DAT_MEM_TYPE type)
{
	return type == DAT_MEM_TYPE_VIRTUAL || type == DAT_MEM_TYPE_LMR ||
	       type == DAT_MEM_TYPE_PHYSICAL || type == DAT_MEM_TYPE_PLATFORM ||
	       type == DAT_MEM_TYPE_IA || type == DAT_MEM_TYPE_BYPASS ||
	       type == DAT_MEM_TYPE_PHYSICAL_VAR_PAGES;
}

int kdapl_mem_build(struct kdapl_mem *mem, struct kdapl_ia *ia, DAT_MEM_TYPE mem_type,
		    const DAT_REGION_DESCRIPTION *region, u64 length);
int kdapl_mem_map(struct kdapl_mem *mem, struct kdapl_device *dev, DAT_MEM_PRIV_FLAGS priv);
void kdapl_mem_unmap(struct kdapl_mem *mem, struct kdapl_device *dev);
void kdapl_mem_unmap_source(struct kdapl_mem *mem, struct kdapl_device *dev);
void kdapl_mem_free(struct kdapl_mem *mem);
u32 kdapl_mem_page_size(struct kdapl_device *dev, struct scatterlist *sgl, unsigned int nents,
			u64 start, u64 sizes, u32 max_blocks, u32 *blocks);
u64 kdapl_mem_page_sizes(struct kdapl_device *dev, bool fmr);

/* Why memory is synchronised. */
enum kdapl_sync {
	KDAPL_SYNC_SOURCE,	/* the device is going to read it */
	KDAPL_SYNC_SINK,	/* the device is going to write it, and nobody else */
	KDAPL_SYNC_FILLED,	/* the device has written it */
	KDAPL_SYNC_FAILED,	/* it may have, and what it has written is nothing */
	KDAPL_SYNC_SHARED,	/* peers have written some of it and the CPU other bytes */
};

/**
 * struct kdapl_sinks - what outstanding requests are to fill
 * @width: segments of one request at most
 * @seg: of one request after the other; one without a key ends a list
 */
struct kdapl_sinks {
	u32 width;
	DAT_LMR_TRIPLET seg[];
};

void kdapl_dma_sync(struct kdapl_device *dev, u64 addr, u64 length, enum kdapl_sync why);
int kdapl_mem_share(struct kdapl_mem *mem, u64 length);
void kdapl_mem_unshare(struct kdapl_mem *mem);
void kdapl_mem_agree(struct kdapl_mem *mem);
void kdapl_mem_sync(struct kdapl_device *dev, struct kdapl_mem *mem, u64 pos, u64 length,
		    enum kdapl_sync why);

void kdapl_sync_segments(struct kdapl_ia *ia, const DAT_LMR_TRIPLET *seg, int n, u64 length,
			 enum kdapl_sync why);
struct kdapl_sinks *kdapl_sinks_alloc(struct kdapl_device *dev, u32 requests, u32 width);
void kdapl_sinks_keep(struct kdapl_sinks *sinks, u32 index, const DAT_LMR_TRIPLET *seg, int n,
		      u64 length);
void kdapl_sinks_filled(struct kdapl_sinks *sinks, u32 index, struct kdapl_ia *ia, u64 length);
void kdapl_sinks_failed(struct kdapl_sinks *sinks, u32 index, struct kdapl_ia *ia);
void kdapl_sinks_forget(struct kdapl_sinks *sinks, u32 index);

#endif /* KDAPL_MEM_REGION_H */
