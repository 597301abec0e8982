// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Sweeps of the calls of DAT 1.2 that make allocations of their own. */
#include <dat/kdat.h>

#include "kdfail.h"

static const DAT_UPCALL_OBJECT on_nothing = { NULL, kdf_nothing };
static DAT_PROVIDER_ATTR prov;
static DAT_IA_ATTR ia;

STEP(ia_open, dat_ia_open(kdf.name, 8, &(DAT_EVD_HANDLE) { DAT_HANDLE_NULL }, &kdf.out))
STEP(ia_close, dat_ia_close(kdf.out, DAT_CLOSE_GRACEFUL_FLAG))
STEP(ia_query, dat_ia_query(kdf.ia, &(DAT_EVD_HANDLE) { NULL }, DAT_IA_FIELD_ALL, &ia,
			    DAT_PROVIDER_FIELD_ALL, &prov))
STEP(evd_create, dat_evd_kcreate(kdf.ia, 16, DAT_UPCALL_MANY, &on_nothing,
				 DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG, &kdf.out))
STEP(evd_modify, dat_evd_modify_upcall(kdf.out, DAT_UPCALL_SINGLE_INSTANCE, &on_nothing))

const struct sweep sweeps_of_12[] = {
	{ "dat12_ia_openv", NULL, ia_open, ia_close },
	{ "dat12_ia_query", NULL, ia_query, NULL, NEEDY },
	{ "dat12_evd_kcreate", NULL, evd_create, kdf_evd_free },
	{ "dat12_evd_modify_upcall", evd_create, evd_modify, kdf_evd_free },
	{}
};
