/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * DMA by copies for the fake device, as with swiotlb: what is mapped is a copy that begins on
 * a page, whatever the memory does; it is brought up to date by mapping and by what asks for
 * it, and forgotten when the mapping ends. A copy is at most 256 KiB long.
 *
 * Or DMA past caches that are not coherent: of the memory itself, and all that caches are told
 * is written down.
 */
#ifndef KDAPL_FAKE_DMA_H
#define KDAPL_FAKE_DMA_H

#include <linux/list.h>
#include <linux/spinlock.h>
#include <rdma/ib_verbs.h>

struct kdapl_dma_ops;

/**
 * struct fake_sync - what caches were told
 * @addr: first address
 * @size: bytes
 * @dir: enum dma_data_direction
 * @for_cpu: the CPU is going to look, else the device
 */
struct fake_sync {
	u64 addr;
	size_t size;
	int dir;
	bool for_cpu;
};

#define FAKE_SYNCS	8

typedef void fake_dma_fn(void *arg);

/**
 * struct fake_dma - DMA of one device
 * @lock: all that follows
 * @maps: mappings there are
 * @wrong: misuse: what is synchronised or unmapped is not mapped, or not like that
 * @dark_pages: pages unmapped with interrupts off
 * @fail: the nth mapping from now fails
 * @same: mappings from now on are of the memory itself
 * @caches: caches are not coherent
 * @parts: entries of lists mapped since that are not whole pages
 * @nsyncs: how often caches were told
 * @syncs: the first of it
 * @at_map: called once with @arg, when a piece has been mapped
 * @at_unmap: called once with @arg, when a list is about to be unmapped
 * @arg: its argument
 */
struct fake_dma {
	spinlock_t lock;	/* all that follows */
	struct list_head maps;
	unsigned int wrong;
	unsigned int dark_pages;
	unsigned int fail;
	bool same;
	bool caches;
	unsigned int parts;
	unsigned int nsyncs;
	struct fake_sync syncs[FAKE_SYNCS];
	fake_dma_fn *at_map;
	fake_dma_fn *at_unmap;
	void *arg;
};

extern const struct kdapl_dma_ops fake_copies_ops;
extern const struct kdapl_dma_ops fake_caches_ops;

void fake_dma_init(struct fake_dma *dma, bool caches);
int fake_dma_exit(struct fake_dma *dma);
struct fake_dma *fake_ib_dma(struct ib_device *ibdev);

#endif /* KDAPL_FAKE_DMA_H */
