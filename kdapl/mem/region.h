/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The memory of LMRs as lists for the device, and synchronising it.
 */
#ifndef KDAPL_MEM_REGION_H
#define KDAPL_MEM_REGION_H

/**
 * struct kdapl_mem - a list of memory
 * @sgt: the list, with room for orig_nents entries
 * @used: entries in use
 * @nents: entries the device sees; 0 while it is not mapped
 * @foreign: the consumer gave addresses of the device: nothing is mapped or unmapped
 * @sync: while mapped: it has to be synchronised
 * @dir: while mapped: enum dma_data_direction, from the rights
 * @head: bytes of the first page before the memory, mapped with it
 * @tail: bytes of the last page after the memory, mapped with it
 * @start: address of the first byte, as the consumer names it
 * @length: bytes
 * @base: if the device may write a bounce buffer: the base copy of a three-way merge, the bytes
 *	when CPU and device were last in sync (core/dma.c); then a page for mem_sync.c to work in
 * @base_size: size of @base without that page
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
	u8 *base;
	u64 base_size;
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
u64 kdapl_mem_max_length(const struct kdapl_device *dev);
u32 kdapl_mem_page_size(struct kdapl_device *dev, struct scatterlist *sgl, unsigned int nents,
			u64 start, u64 sizes, u32 max_blocks, u32 *blocks);
u64 kdapl_mem_page_sizes(struct kdapl_device *dev, bool fmr);

/* Why memory is synchronised. */
enum kdapl_sync {
	KDAPL_SYNC_SOURCE,	/* the device is going to read it */
	KDAPL_SYNC_SINK,	/* only the device is going to write it */
	KDAPL_SYNC_FILLED,	/* the device has written it */
	KDAPL_SYNC_FAILED,	/* the device may have written some of it, which does not count */
	KDAPL_SYNC_SHARED,	/* peers may have written some bytes, and the CPU others */
};

/**
 * struct kdapl_sinks - the sinks of outstanding requests
 * @width: most segments of one request
 * @seg: segments of one request after the other; a segment without a key ends a list
 */
struct kdapl_sinks {
	u32 width;
	DAT_LMR_TRIPLET seg[];
};

void kdapl_dma_sync(struct kdapl_device *dev, u64 addr, u64 length, enum kdapl_sync why);
int kdapl_mem_alloc_base(struct kdapl_mem *mem, u64 length);
void kdapl_mem_free_base(struct kdapl_mem *mem);
void kdapl_mem_fill_base(struct kdapl_mem *mem);
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

void kdapl_maps_open(struct kdapl_ia *ia);
void kdapl_maps_close(struct kdapl_ia *ia);

#endif /* KDAPL_MEM_REGION_H */
