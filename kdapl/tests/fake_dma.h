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

/* What caches were told. */
struct fake_sync {
	u64 addr;		/* first address */
	size_t size;		/* bytes */
	int dir;		/* enum dma_data_direction */
	bool for_cpu;		/* the CPU is going to look, else the device */
};

#define FAKE_SYNCS	8

typedef void fake_dma_fn(void *arg);

/* DMA of one device. */
struct fake_dma {
	spinlock_t lock;	/* all that follows */
	struct list_head maps;	/* mappings there are */
	/* misuse: what is synchronised or unmapped is not mapped, or not like that */
	unsigned int wrong;
	unsigned int dark_pages;	/* pages unmapped with interrupts off */
	unsigned int fail;	/* the nth mapping from now fails */
	bool same;		/* mappings from now on are of the memory itself */
	bool caches;		/* caches are not coherent */
	unsigned int parts;	/* entries of lists mapped since that are not whole pages */
	unsigned int nsyncs;	/* how often caches were told */
	struct fake_sync syncs[FAKE_SYNCS];	/* the first of it */
	fake_dma_fn *at_map;	/* called once with @arg, when a piece has been mapped */
	fake_dma_fn *at_unmap;	/* called once with @arg, when a list is about to be unmapped */
	void *arg;		/* its argument */
};

extern const struct kdapl_dma_ops fake_copies_ops;
extern const struct kdapl_dma_ops fake_caches_ops;

void fake_dma_init(struct fake_dma *dma, bool caches);
int fake_dma_exit(struct fake_dma *dma);
struct fake_dma *fake_ib_dma(struct ib_device *ibdev);

#endif /* KDAPL_FAKE_DMA_H */
