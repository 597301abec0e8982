// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Protection Zones. */
#include "kdtest.h"

static void create_query_free(struct kunit *test)
{
	struct kdt_ia *a = &kdt_env(test)->a;
	DAT_PZ_HANDLE pz, pz2;
	DAT_PZ_PARAM param = {};

	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, dat_pz_create(a->h, NULL));
	KDT_OK(test, dat_pz_create(a->h, &pz));
	KDT_OK(test, dat_pz_create(a->h, &pz2));
	KUNIT_EXPECT_PTR_NE(test, pz, pz2);
	KDT_OK(test, dat_pz_query(pz, DAT_PZ_FIELD_ALL, &param));
	KUNIT_EXPECT_PTR_EQ(test, param.ia_handle, a->h);
	KDT_OK(test, dat_pz_query(pz, 0, NULL));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, dat_pz_query(pz, 2, &param));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		    dat_pz_query(pz, DAT_PZ_FIELD_ALL, NULL));
	KDT_OK(test, dat_pz_free(pz));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ, dat_pz_free(pz));
	KDT_OK(test, dat_pz_free(pz2));
}

static void free_in_use(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_buf *buf = kdt_buf_new(test, &env->a, 100);
	struct kdt_ep ep;

	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE, dat_pz_free(env->a.pz));
	kdt_ep_new(test, &ep, &env->a, NULL);
	KDT_OK(test, dat_lmr_free(buf->lmr));
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE, dat_pz_free(env->a.pz));
	/* Refused without effect: it still makes and carries objects. */
	buf = kdt_buf_new(test, &env->a, 100);
	KDT_OK(test, kdt_recv(&ep, buf, 0, 100, 1));
	KDT_OK(test, dat_ep_free(ep.h));
	KDT_OK(test, dat_lmr_free(buf->lmr));
	KDT_OK(test, dat_pz_free(env->a.pz));
}

static struct kunit_case cases[] = {
	KD_CASE(create_query_free, "PZ-01,GEN-05,GEN-08: create, query, free"),
	KD_CASE(free_in_use, "PZ-02,GEN-11,EP-CREATE-17: not freed while an EP or LMR uses it"),
	{}
};

struct kunit_suite kdt_pz_suite = {
	.name = "kdtest-pz",
	.init = kdt_init,
	.exit = kdt_exit,
	.test_cases = cases,
};
