// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Sweeps of LMRs and RMRs, as far as they need no connection.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/io.h>
#include <linux/kernel.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "../calls.h"
#include "kdfail.h"

/* More pages than a page of a scatterlist has entries. */
#define SCATTERED	(200 * PAGE_SIZE)

static u8 *scattered;

static DAT_RETURN lmr_make(DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region, DAT_VLEN length)
{
	return dat_lmr_kcreate(kdf.ia, type, region, length, kdf.pz, DAT_MEM_PRIV_ALL_FLAG,
			       DAT_VA_TYPE_VA, 0, &kdf.out, NULL, NULL, NULL, NULL);
}

static DAT_RETURN lmr_virtual(void)
{
	return lmr_make(DAT_MEM_TYPE_VIRTUAL, (DAT_REGION_DESCRIPTION) { .for_va = kdf.mem }, MEM);
}

static DAT_RETURN lmr_scattered(void)
{
	return lmr_make(DAT_MEM_TYPE_VIRTUAL, (DAT_REGION_DESCRIPTION) { .for_va = scattered },
			SCATTERED);
}

static DAT_RETURN lmr_physical(void)
{
	DAT_PADDR pages[2] = { virt_to_phys(kdf.mem), virt_to_phys(kdf.mem) + PAGE_SIZE };

	return lmr_make(DAT_MEM_TYPE_PHYSICAL, (DAT_REGION_DESCRIPTION) { .for_physical = pages },
			2);
}

static DAT_RETURN lmr_var_pages(void)
{
	DAT_PADDR page = virt_to_phys(kdf.mem);
	const DAT_PHYSICAL_VAR_PAGES array = { .page_size = PAGE_SIZE, .pages = &page };

	return lmr_make(DAT_MEM_TYPE_PHYSICAL_VAR_PAGES,
			(DAT_REGION_DESCRIPTION) { .for_array = array }, 1);
}

static DAT_RETURN lmr_platform(void)
{
	struct scatterlist sg[2];
	struct sg_table sgt = { .sgl = sg, .nents = 2, .orig_nents = 2 };

	sg_init_table(sg, 2);
	sg_set_buf(&sg[0], kdf.mem, PAGE_SIZE);
	sg_set_buf(&sg[1], kdf.mem + 2 * PAGE_SIZE, PAGE_SIZE);
	return lmr_make(DAT_MEM_TYPE_PLATFORM, (DAT_REGION_DESCRIPTION) { .for_platform = &sgt },
			2 * PAGE_SIZE);
}

static DAT_RETURN lmr_of_lmr(void)
{
	return lmr_make(DAT_MEM_TYPE_LMR, (DAT_REGION_DESCRIPTION) { .for_lmr_handle = kdf.lmr },
			0);
}

static DAT_PADDR ia_address;

static DAT_RETURN dma_map(void)
{
	return kdat_ia_dma_map(kdf.ia, kdf.mem, PAGE_SIZE, &ia_address);
}

static DAT_RETURN dma_unmap(void)
{
	return kdat_ia_dma_unmap(kdf.ia, ia_address, PAGE_SIZE);
}

static DAT_RETURN lmr_ia(void)
{
	return lmr_make(DAT_MEM_TYPE_IA, (DAT_REGION_DESCRIPTION) { .for_ia = ia_address },
			PAGE_SIZE);
}

static DAT_RETURN lmr_ia_free(void)
{
	return kdf_lmr_free() ?: dma_unmap();
}

/* The first LMR of a PZ has the connection built that registers them. */
static DAT_RETURN pz_create(void)
{
	return dat_pz_create(kdf.ia, &kdf.other);
}

static DAT_RETURN lmr_first(void)
{
	const DAT_REGION_DESCRIPTION region = { .for_va = kdf.mem };

	return dat_lmr_kcreate(kdf.ia, DAT_MEM_TYPE_VIRTUAL, region, MEM, kdf.other,
			       DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, 0, &kdf.out, NULL, NULL,
			       NULL, NULL);
}

static DAT_RETURN lmr_first_free(void)
{
	return kdf_lmr_free() ?: dat_pz_free(kdf.other);
}

DAT_RETURN kdf_lmr_allocate(void)
{
	return dat_lmr_allocate(kdf.ia, kdf.pz, 16, DAT_LMR_SCOPE_PZ, &kdf.out);
}

static DAT_RETURN lmr_allocate_large(void)
{
	return dat_lmr_allocate(kdf.ia, kdf.pz, 200, DAT_LMR_SCOPE_EP, &kdf.out);
}

DAT_RETURN kdf_lmr_free(void)
{
	return dat_lmr_free(kdf.out);
}

static DAT_RETURN lmr_query(void)
{
	DAT_LMR_PARAM param;

	return dat_lmr_query(kdf.lmr, DAT_LMR_FIELD_ALL, &param);
}

static DAT_RETURN lmr_next(void)
{
	DAT_LMR_CONTEXT key;
	DAT_RMR_CONTEXT rkey;

	return kdat_lmr_next_contexts(kdf.out, &key, &rkey);
}

static DAT_RETURN lmr_by_context(void)
{
	DAT_LMR_HANDLE lmr;

	return kdat_lmr_by_context(kdf.ia, kdf.key, &lmr);
}

static DAT_RETURN lmr_sync(DAT_RETURN (*sync)(DAT_IA_HANDLE, const DAT_LMR_TRIPLET *, DAT_VLEN))
{
	const DAT_LMR_TRIPLET segment = {
		.virtual_address = (uintptr_t)kdf.mem, .segment_length = MEM,
		.lmr_context = kdf.key,
	};

	return sync(kdf.ia, &segment, 1);
}

static DAT_RETURN lmr_sync_read(void)
{
	return lmr_sync(dat_lmr_sync_rdma_read);
}

static DAT_RETURN lmr_sync_write(void)
{
	return lmr_sync(dat_lmr_sync_rdma_write);
}

DAT_RETURN kdf_rmr_create(void)
{
	return dat_rmr_create(kdf.pz, &kdf.out);
}

static DAT_RETURN rmr_create_for_ep(void)
{
	return dat_rmr_create_for_ep(kdf.pz, &kdf.out);
}

static DAT_RETURN rmr_query(void)
{
	DAT_RMR_PARAM param;

	return dat_rmr_query(kdf.out, DAT_RMR_FIELD_ALL, &param);
}

DAT_RETURN kdf_rmr_free(void)
{
	return dat_rmr_free(kdf.out);
}

const struct sweep sweeps_of_memory[] = {
	{ "kdat_ia_dma_map", NULL, dma_map, dma_unmap },
	{ "kdat_ia_dma_unmap", dma_map, dma_unmap },
	{ "dat_lmr_kcreate, first of a PZ", pz_create, lmr_first, lmr_first_free },
	{ "dat_lmr_kcreate, VIRTUAL", NULL, lmr_virtual, kdf_lmr_free },
	{ "dat_lmr_kcreate, VIRTUAL and scattered", NULL, lmr_scattered, kdf_lmr_free },
	{ "dat_lmr_kcreate, PHYSICAL", NULL, lmr_physical, kdf_lmr_free },
	{ "dat_lmr_kcreate, PHYSICAL_VAR_PAGES", NULL, lmr_var_pages, kdf_lmr_free },
	{ "dat_lmr_kcreate, PLATFORM", NULL, lmr_platform, kdf_lmr_free },
	{ "dat_lmr_kcreate, LMR", NULL, lmr_of_lmr, kdf_lmr_free },
	{ "dat_lmr_kcreate, IA", dma_map, lmr_ia, lmr_ia_free },
	{ "dat_lmr_allocate", NULL, kdf_lmr_allocate, kdf_lmr_free },
	{ "dat_lmr_allocate, large", NULL, lmr_allocate_large, kdf_lmr_free },
	{ "dat_lmr_query", NULL, lmr_query, NULL, FRUGAL },
	{ "kdat_lmr_next_contexts", kdf_lmr_allocate, lmr_next, kdf_lmr_free, FRUGAL },
	{ "kdat_lmr_by_context", NULL, lmr_by_context, NULL, FRUGAL },
	{ "dat_lmr_sync_rdma_read", NULL, lmr_sync_read, NULL, FRUGAL },
	{ "dat_lmr_sync_rdma_write", NULL, lmr_sync_write, NULL, FRUGAL },
	{ "dat_lmr_free", lmr_virtual, kdf_lmr_free, NULL, FREES },
	{ "dat_lmr_free, of dat_lmr_allocate", kdf_lmr_allocate, kdf_lmr_free, NULL, FREES },
	{ "dat_rmr_create", NULL, kdf_rmr_create, kdf_rmr_free },
	{ "dat_rmr_create_for_ep", NULL, rmr_create_for_ep, kdf_rmr_free },
	{ "dat_rmr_query", kdf_rmr_create, rmr_query, kdf_rmr_free, FRUGAL },
	{ "dat_rmr_free", kdf_rmr_create, kdf_rmr_free, NULL, FREES },
	{}
};

int memory_open(void)
{
	DAT_REGION_DESCRIPTION region;

	kdf.mem = kzalloc(MEM, GFP_KERNEL);
	scattered = vzalloc(SCATTERED);
	if (!kdf.mem || !scattered)
		return fail("no memory");
	region.for_va = kdf.mem;
	return TRY(dat_lmr_kcreate, kdf.ia, DAT_MEM_TYPE_VIRTUAL, region, MEM, kdf.pz,
		   DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, 0, &kdf.lmr, &kdf.key, &kdf.rkey, NULL,
		   NULL);
}

void memory_close(void)
{
	if (kdf.lmr)
		TRY(dat_lmr_free, kdf.lmr);
	vfree(scattered);
	kfree(kdf.mem);
}
