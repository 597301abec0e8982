// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * From the key in a segment to the LMR.
 *
 * lmr_context is the MR's lkey. Its upper 24 bits are the index the device
 * chose, unique among its live MRs; the low byte changes with every
 * registration. The table is indexed by the former, the posting calls compare
 * the whole key and read it under RCU (kdapl_key_find()).
 */
#include "kdapl.h"

/**
 * kdapl_key_insert - make an LMR usable in segments
 * @ia: IA of the LMR
 * @lmr: complete LMR
 *
 * Context: may sleep.
 * Return: 0 or an errno.
 */
int kdapl_key_insert(struct kdapl_ia *ia, struct kdapl_lmr *lmr)
{
	return xa_insert(&ia->keys, lmr->key >> 8, lmr, GFP_KERNEL);
}

/**
 * kdapl_key_remove - segments that name this LMR fail from now on
 * @ia: IA of the LMR
 * @lmr: the LMR; it must live for another grace period
 *
 * Context: may sleep.
 */
void kdapl_key_remove(struct kdapl_ia *ia, struct kdapl_lmr *lmr)
{
	xa_cmpxchg(&ia->keys, lmr->key >> 8, lmr, NULL, GFP_KERNEL);
}
