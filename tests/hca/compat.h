/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Where the kernels from 6.1 to 7.2 differ: Kbuild has looked at their headers. */
#ifndef KDHCA_COMPAT_H
#define KDHCA_COMPAT_H

#include <linux/dma-direct.h>
#include <linux/hrtimer.h>

#ifndef KDHCA_HAVE_HRTIMER_SETUP
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *timer),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

/* One range in which DMA addresses are physical ones and so many more. */
static inline void kdhca_dma_shift(struct bus_dma_region *map, u64 shift)
{
	map->cpu_start = 0;
	map->dma_start = shift;
	map->size = shift;
#ifdef KDHCA_HAVE_DMA_OFFSET
	map->offset = -shift;
#endif
}

#endif /* KDHCA_COMPAT_H */
