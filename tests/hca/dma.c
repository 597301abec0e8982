// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The device that does DMA, and the memory behind its addresses. It is a PCI device that does
 * nothing itself (edu or pci-testdev of QEMU), the next one of those there are for each of ours,
 * else a platform device. Data are moved page by page to and from what a DMA address stands for:
 * a place of the IOMMU's domain, a bounce buffer, or a physical address.
 */
#include <linux/highmem.h>
#include <linux/iommu.h>
#include <linux/pci.h>
#include <linux/platform_device.h>
#include <linux/slab.h>

#include "compat.h"
#include "kdhca.h"

#ifdef CONFIG_PCI
#define MAX_PCI	4

static struct device *pci_dma[MAX_PCI];	/* of each of them our devices use the next one */
static atomic_t next_pci;
static int pcis;

static int kdhca_pci_probe(struct pci_dev *pci, const struct pci_device_id *id)
{
	int ret;

	if (pcis == MAX_PCI)
		return -EBUSY;
	ret = pci_enable_device(pci);
	if (ret)
		return ret;
	pci_set_master(pci);
	pci_dma[pcis++] = &pci->dev;
	return 0;
}

/* None is used any more: the module goes. */
static void kdhca_pci_remove(struct pci_dev *pci)
{
	pci_disable_device(pci);
}

static const struct pci_device_id kdhca_pci_ids[] = {
	{ PCI_DEVICE(0x1234, 0x11e8) },		/* edu */
	{ PCI_DEVICE(0x1b36, 0x0005) },		/* pci-testdev */
	{}
};

static struct pci_driver kdhca_pci = {
	.name = "kdhca",
	.id_table = kdhca_pci_ids,
	.probe = kdhca_pci_probe,
	.remove = kdhca_pci_remove,
	.driver.suppress_bind_attrs = true,
};

static struct device *dma_pci(void)
{
	return pcis ? pci_dma[(u32)atomic_inc_return(&next_pci) % pcis] : NULL;
}

int kdhca_dma_register(void)
{
	return pci_register_driver(&kdhca_pci);
}

void kdhca_dma_unregister(void)
{
	pci_unregister_driver(&kdhca_pci);
}
#else
static struct device *dma_pci(void)
{
	return NULL;
}

int kdhca_dma_register(void)
{
	return 0;
}

void kdhca_dma_unregister(void)
{
}
#endif

/* DMA addresses that nobody takes for physical or virtual ones. */
static int dma_shift(struct device *dma, u32 gib)
{
	struct bus_dma_region *map;

	if (!gib)
		return 0;
	map = kcalloc(2, sizeof(*map), GFP_KERNEL);
	if (!map)
		return -ENOMEM;
	kdhca_dma_shift(map, (u64)gib << 30);
	dma->dma_range_map = map;
	return 0;
}

/* Find a device that does DMA. */
int kdhca_dma_bind(struct kdhca_dev *dev)
{
	int ret;

	if (!dev->set.dma)
		return 0;
	dev->dma = dma_pci();
	if (!dev->dma) {
		dev->pdev = platform_device_register_simple("kdhca", PLATFORM_DEVID_AUTO, NULL, 0);
		if (IS_ERR(dev->pdev)) {
			ret = PTR_ERR(dev->pdev);
			dev->pdev = NULL;
			return ret;
		}
		dev->dma = &dev->pdev->dev;
		ret = dma_shift(dev->dma, dev->set.shift);
		if (ret)
			goto err;
	}
	ret = dma_coerce_mask_and_coherent(dev->dma, DMA_BIT_MASK(min(dev->set.mask, 64U)));
	if (ret)
		goto err;
	dma_set_max_seg_size(dev->dma, UINT_MAX);
	return 0;
err:
	kdhca_dma_unbind(dev);
	return ret;
}

void kdhca_dma_unbind(struct kdhca_dev *dev)
{
	const void *map;

	if (dev->pdev) {
		map = dev->pdev->dev.dma_range_map;
		dev->pdev->dev.dma_range_map = NULL;
		platform_device_unregister(dev->pdev);
		kfree(map);
	}
	dev->pdev = NULL;
	dev->dma = NULL;
}

/* The memory behind a DMA address, to the end of its page; NULL: there is none. */
static void *dma_memory(struct kdhca_dev *dev, u64 addr)
{
	struct iommu_domain *domain;
	phys_addr_t phys;

	if (!dev->dma)
		return (void *)(unsigned long)addr;
	domain = iommu_get_domain_for_dev(dev->dma);
	phys = domain ? iommu_iova_to_phys(domain, addr) : dma_to_phys(dev->dma, addr);
	if (!phys || !pfn_valid(PHYS_PFN(phys))) {
		kdhca_complain(dev, KDHCA_UNMAPPED, "DMA", addr);
		return NULL;
	}
	return phys_to_virt(phys);
}

/* What is @offset bytes into a span; as many bytes as @run, at most, lie there together. */
static void *span_memory(struct kdhca_span *span, u32 offset, u32 *run)
{
	u64 addr;

	*run = min(*run, span->length - offset);
	if (span->inl)
		return span->inl + offset;
	addr = kdhca_span_dma(span, offset, run);
	*run = min_t(u64, *run, PAGE_SIZE - offset_in_page(addr));
	return dma_memory(span->dev, addr);
}

/* Move data. Both are long enough; -EFAULT: there is no memory at an address. */
int kdhca_copy(struct kdhca_spans *to, struct kdhca_spans *from, u32 length)
{
	struct kdhca_span *t = to->span, *f = from->span;
	u32 at_t = 0, at_f = 0, run;
	void *dst, *src;

	while (length) {
		while (at_t == t->length) {
			t++;
			at_t = 0;
		}
		while (at_f == f->length) {
			f++;
			at_f = 0;
		}
		run = length;
		dst = span_memory(t, at_t, &run);
		src = span_memory(f, at_f, &run);
		if (!dst || !src)
			return -EFAULT;
		memmove(dst, src, run);
		at_t += run;
		at_f += run;
		length -= run;
	}
	return 0;
}
