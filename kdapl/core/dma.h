/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * DMA mappings, and how a device sees memory.
 */
#ifndef KDAPL_CORE_DMA_H
#define KDAPL_CORE_DMA_H

/* How a device sees memory, as far as that is known before anything is mapped. */
enum kdapl_dma_kind {
	KDAPL_DMA_SAME,		/* CPU and device always see the same bytes */
	KDAPL_DMA_CACHES,	/* the same memory, but caches are not coherent */
	KDAPL_DMA_COPIES,	/* mappings may need bounce buffers */
};

/* DMA operations of a test. */
struct kdapl_dma_ops {
	u8 kind;
	bool coherent;
	int (*map_sg)(struct ib_device *ibdev, struct scatterlist *sgl, int nents, int dir);
	void (*unmap_sg)(struct ib_device *ibdev, struct scatterlist *sgl, int nents, int dir);
	u64 (*map_single)(struct ib_device *ibdev, void *address, size_t size, int dir);
	void (*unmap_single)(struct ib_device *ibdev, u64 addr, size_t size, int dir);
	bool (*need_sync)(struct ib_device *ibdev, u64 addr);
	void (*sync)(struct ib_device *ibdev, u64 addr, size_t size, int dir, bool for_cpu);
};

#ifdef KDAPL_KUNIT
const struct kdapl_dma_ops *kdapl_test_dma(struct ib_device *ibdev);
#endif

void kdapl_dma_init(struct kdapl_device *dev);
u64 kdapl_dma_max_mapping(struct kdapl_device *dev);
u64 kdapl_dma_opt_mapping(struct kdapl_device *dev);
int kdapl_dma_map_sg(struct kdapl_device *dev, struct scatterlist *sgl, int nents, int dir);
void kdapl_dma_unmap_sg(struct kdapl_device *dev, struct scatterlist *sgl, int nents, int dir);
int kdapl_dma_map_single(struct kdapl_device *dev, void *address, size_t size, u64 *addr);
void kdapl_dma_unmap_single(struct kdapl_device *dev, u64 addr, size_t size);
void kdapl_dma_for_device(struct kdapl_device *dev, u64 addr, size_t size, int dir);
void kdapl_dma_for_cpu(struct kdapl_device *dev, u64 addr, size_t size);
bool kdapl_dma_need_sync(struct kdapl_device *dev, u64 addr);

#endif /* KDAPL_CORE_DMA_H */
