// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Registry and interface adapter: names, list, open, query, close. */
#include <linux/in.h>
#include <linux/slab.h>

#include "kdtest.h"

static void list_providers(struct kunit *test)
{
	DAT_PROVIDER_INFO **list, *info;
	bool found_a = false, found_b = false;
	DAT_COUNT n = -1, got = -1, i;

	/* Too short, and that says how long. */
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		    dat_registry_list_providers(100, &n, NULL));
	KUNIT_ASSERT_GE(test, n, 1);
	list = kunit_kcalloc(test, n + 3, sizeof(*list), GFP_KERNEL);
	info = kunit_kcalloc(test, n + 3, sizeof(*info), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, list);
	KUNIT_ASSERT_NOT_NULL(test, info);
	for (i = 0; i < n + 3; i++)
		list[i] = &info[i];

	KDT_TYPE(test, DAT_INVALID_PARAMETER, dat_registry_list_providers(n - 1, &got, list));
	KUNIT_EXPECT_EQ(test, got, n);
	KDT_TYPE(test, DAT_INVALID_PARAMETER, dat_registry_list_providers(0, &got, list));
	KDT_TYPE(test, DAT_INVALID_PARAMETER, dat_registry_list_providers(-1, &got, list));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		    dat_registry_list_providers(n, NULL, list));
	list[n - 1] = NULL;
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		    dat_registry_list_providers(n, &got, list));
	list[n - 1] = &info[n - 1];

	KDT_OK(test, dat_registry_list_providers(n, &got, list));
	KUNIT_EXPECT_EQ(test, got, n);
	for (i = 0; i < n; i++) {
		found_a |= !strcmp(info[i].ia_name, kdt_ia_a);
		found_b |= !strcmp(info[i].ia_name, kdt_ia_b);
		KUNIT_EXPECT_EQ(test, info[i].dapl_version_major, 2);
		KUNIT_EXPECT_EQ(test, info[i].dapl_version_minor, 0);
		KUNIT_EXPECT_EQ(test, (int)info[i].is_thread_safe, DAT_TRUE);
	}
	KUNIT_EXPECT_TRUE(test, found_a);
	KUNIT_EXPECT_TRUE(test, found_b);
	KDT_OK(test, dat_registry_list_providers(n + 3, &got, list));
	KUNIT_EXPECT_EQ(test, got, n);
}

/* Opens and closes again; the result of the open is the result. */
static DAT_RETURN try_open(const char *name, u32 major, u32 minor, DAT_BOOLEAN safe)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;
	DAT_RETURN ret = dat_ia_openv((char *)name, 8, &async, &ia, major, minor, safe);

	if (ret == DAT_SUCCESS)
		dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
	return ret;
}

static void open_names(struct kunit *test)
{
	char *name = kunit_kzalloc(test, 2 * DAT_NAME_MAX_LENGTH, GFP_KERNEL);
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;

	KUNIT_ASSERT_NOT_NULL(test, name);
	KDT_OK(test, try_open(kdt_ia_a, 2, 0, DAT_TRUE));
	KDT_OK(test, try_open(kdt_ia_a, 2, 0, DAT_FALSE));
	KDT_REFUSED(test, DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED,
		    try_open("no-such-ia", 2, 0, DAT_TRUE));
	KDT_REFUSED(test, DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED,
		    try_open("192.0.2.77", 2, 0, DAT_TRUE));
	KDT_REFUSED(test, DAT_PROVIDER_NOT_FOUND, DAT_MAJOR_NOT_FOUND,
		    try_open(kdt_ia_a, 3, 0, DAT_TRUE));
	KDT_REFUSED(test, DAT_PROVIDER_NOT_FOUND, DAT_MINOR_NOT_FOUND,
		    try_open(kdt_ia_a, 2, 1, DAT_TRUE));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG1, try_open(NULL, 2, 0, DAT_TRUE));
	memset(name, 'x', 2 * DAT_NAME_MAX_LENGTH - 1);
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG1, try_open(name, 2, 0, DAT_TRUE));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		    dat_ia_open(kdt_ia_a, 8, NULL, &ia));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG4,
		    dat_ia_open(kdt_ia_a, 8, &async, NULL));
}

static void open_async(struct kunit *test)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_EVD_PARAM param;
	DAT_IA_HANDLE ia;

	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		    dat_ia_open(kdt_ia_a, 0, &async, &ia));
	async = DAT_HANDLE_NULL;
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		    dat_ia_open(kdt_ia_a, -1, &async, &ia));
	async = DAT_HANDLE_NULL;
	KDT_OK(test, dat_ia_open(kdt_ia_a, 5, &async, &ia));
	KDT_OK(test, dat_evd_query(async, DAT_EVD_FIELD_ALL, &param));
	KUNIT_EXPECT_PTR_EQ(test, param.ia_handle, ia);
	KUNIT_EXPECT_GE(test, param.evd_qlen, 5);
	KUNIT_EXPECT_EQ(test, (int)param.upcall_policy, DAT_UPCALL_DISABLE);
	KUNIT_EXPECT_TRUE(test, param.evd_flags & DAT_EVD_ASYNC_FLAG);
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE, dat_evd_free(async));
	KDT_OK(test, dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
	KDT_TYPE(test, DAT_INVALID_HANDLE, dat_evd_query(async, DAT_EVD_FIELD_ALL, &param));
}

static void open_own_async(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_evd *own = kdt_evd_new(test, &env->a, DAT_EVD_ASYNC_FLAG);
	struct kdt_evd *other = kdt_evd_new(test, &env->a, DAT_EVD_DTO_FLAG);
	DAT_EVD_HANDLE async, asked;
	DAT_EVD_PARAM param;
	DAT_IA_HANDLE ia;

	async = own->h;
	KDT_OK(test, dat_ia_open(kdt_ia_a, 0, &async, &ia));
	KUNIT_EXPECT_PTR_EQ(test, async, own->h);
	KDT_OK(test, dat_ia_query(ia, &asked, 0, NULL, 0, NULL));
	KUNIT_EXPECT_PTR_EQ(test, asked, own->h);
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE, dat_evd_free(own->h));
	KDT_OK(test, dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
	/* It was the consumer's and still is. */
	KDT_OK(test, dat_evd_query(own->h, DAT_EVD_FIELD_ALL, &param));
	KDT_OK(test, dat_evd_free(own->h));

	async = other->h;
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_ASYNC,
		    dat_ia_open(kdt_ia_a, 8, &async, &ia));
	async = own->h;
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_ASYNC,
		    dat_ia_open(kdt_ia_a, 8, &async, &ia));
	async = env->a.pz;
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_ASYNC,
		    dat_ia_open(kdt_ia_a, 8, &async, &ia));
}

static void instances(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	DAT_EVD_HANDLE async[3] = {};
	DAT_IA_HANDLE ia[3];
	DAT_PZ_HANDLE pz;
	DAT_EP_HANDLE ep;
	int i;

	for (i = 0; i < 3; i++)
		KDT_OK(test, dat_ia_open(kdt_ia_a, 8, &async[i], &ia[i]));
	KUNIT_EXPECT_PTR_NE(test, ia[0], ia[1]);
	KUNIT_EXPECT_PTR_NE(test, async[0], async[1]);
	/* Object spaces are separate. */
	KDT_OK(test, dat_pz_create(ia[0], &pz));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ,
		    dat_ep_create(ia[1], pz, NULL, NULL, NULL, NULL, &ep));
	KDT_OK(test, dat_ia_close(ia[1], DAT_CLOSE_GRACEFUL_FLAG));
	KDT_OK(test, dat_pz_free(pz));
	KDT_OK(test, dat_ia_close(ia[0], DAT_CLOSE_GRACEFUL_FLAG));
	KDT_OK(test, dat_ia_close(ia[2], DAT_CLOSE_GRACEFUL_FLAG));
	KDT_OK(test, dat_ia_query(env->a.h, NULL, 0, NULL, 0, NULL));
}

static void query_masks(struct kunit *test)
{
	DAT_PROVIDER_ATTR *prov = kunit_kzalloc(test, sizeof(*prov), GFP_KERNEL);
	DAT_IA_ATTR *attr = kunit_kzalloc(test, sizeof(*attr), GFP_KERNEL);
	struct kdt_env *env = kdt_env(test);
	DAT_IA_HANDLE ia = env->a.h;
	DAT_EVD_HANDLE async;

	KUNIT_ASSERT_NOT_NULL(test, prov);
	KUNIT_ASSERT_NOT_NULL(test, attr);
	KDT_OK(test, dat_ia_query(ia, NULL, 0, NULL, 0, NULL));
	KDT_OK(test, dat_ia_query(ia, &async, 0, NULL, 0, NULL));
	KUNIT_EXPECT_PTR_EQ(test, async, env->a.async);
	KDT_OK(test, dat_ia_query(ia, NULL, DAT_IA_FIELD_ALL, attr, DAT_PROVIDER_FIELD_ALL, prov));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		    dat_ia_query(ia, NULL, 1ULL << 40, attr, 0, NULL));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG4,
		    dat_ia_query(ia, NULL, DAT_IA_FIELD_IA_MAX_EPS, NULL, 0, NULL));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG5,
		    dat_ia_query(ia, NULL, 0, NULL, 1ULL << 33, prov));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG6,
		    dat_ia_query(ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, NULL));
}

static void query_values(struct kunit *test)
{
	struct kdt_ia *a = &kdt_env(test)->a;
	const DAT_PROVIDER_ATTR *prov = &a->prov;
	const DAT_IA_ATTR *attr = &a->attr;
	int i, j, need = DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_UNSIGNALLED_FLAG;

	KUNIT_EXPECT_STREQ(test, attr->adapter_name, kdt_ia_a);
	KUNIT_ASSERT_NOT_NULL(test, attr->ia_address_ptr);
	KUNIT_EXPECT_TRUE(test, attr->ia_address_ptr->sa_family == AF_INET ||
			  attr->ia_address_ptr->sa_family == AF_INET6);
	KUNIT_EXPECT_GT(test, attr->max_eps, 0);
	KUNIT_EXPECT_GE(test, attr->max_dto_per_ep, KDT_DTOS);
	KUNIT_EXPECT_GT(test, attr->max_rdma_read_per_ep_in, 0);
	KUNIT_EXPECT_GT(test, attr->max_rdma_read_per_ep_out, 0);
	KUNIT_EXPECT_GT(test, attr->max_evds, 0);
	KUNIT_EXPECT_GT(test, attr->max_evd_qlen, 0);
	KUNIT_EXPECT_GE(test, attr->max_iov_segments_per_dto, KDT_IOV);
	KUNIT_EXPECT_GE(test, attr->max_iov_segments_per_rdma_write, KDT_IOV);
	KUNIT_EXPECT_GE(test, attr->max_iov_segments_per_rdma_read, 1);
	KUNIT_EXPECT_GT(test, attr->max_lmrs, 0);
	KUNIT_EXPECT_GE(test, attr->max_lmr_block_size, KDT_SIZE);
	KUNIT_EXPECT_GT(test, attr->max_pzs, 0);
	KUNIT_EXPECT_GE(test, attr->max_message_size, KDT_SIZE);
	KUNIT_EXPECT_GE(test, attr->max_rdma_size, KDT_SIZE);

	KUNIT_EXPECT_EQ(test, prov->dapl_version_major, 2);
	KUNIT_EXPECT_EQ(test, prov->dapl_version_minor, 0);
	KUNIT_EXPECT_EQ(test, (int)prov->iov_ownership_on_return, DAT_IOV_CONSUMER);
	KUNIT_EXPECT_EQ(test, (int)prov->dat_qos_supported, DAT_QOS_BEST_EFFORT);
	KUNIT_EXPECT_EQ(test, (int)prov->is_thread_safe, DAT_TRUE);
	KUNIT_EXPECT_EQ(test, (int)prov->is_interrupt_safe, DAT_TRUE);
	KUNIT_EXPECT_EQ(test, (int)prov->dto_async_return_guaranteed, DAT_TRUE);
	KUNIT_EXPECT_EQ(test, (int)prov->supports_multipath, DAT_FALSE);
	KUNIT_EXPECT_EQ(test, prov->completion_flags_supported & need, need);
	KUNIT_EXPECT_EQ(test, !(prov->completion_flags_supported &
				DAT_COMPLETION_SOLICITED_WAIT_FLAG),
			!!(a->traits & KDT_UNSOLICITED));
	KUNIT_EXPECT_GT(test, prov->optimal_buffer_alignment, 0);
	KUNIT_EXPECT_EQ(test, 256 % prov->optimal_buffer_alignment, 0);
	if (a->iwarp)
		KUNIT_EXPECT_GE(test, prov->max_private_data_size, 64);
	else
		KUNIT_EXPECT_EQ(test, prov->max_private_data_size, 56);
	for (i = 0; i < 6; i++)
		for (j = 0; j < 6; j++)
			KUNIT_EXPECT_EQ(test, (int)prov->evd_stream_merging_supported[i][j],
					DAT_TRUE);
}

static void close_graceful(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL, evd;
	DAT_REGION_DESCRIPTION region = {};
	DAT_PSP_HANDLE psp;
	DAT_LMR_HANDLE lmr;
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	DAT_EP_HANDLE ep;

#define REFUSED() KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_IA_IN_USE, \
			      dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG))
	KDT_OK(test, dat_ia_open(kdt_ia_a, 8, &async, &ia));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, dat_ia_close(ia, 2));

	KDT_OK(test, dat_evd_kcreate(ia, 8, DAT_UPCALL_DISABLE, NULL, DAT_EVD_CR_FLAG, &evd));
	REFUSED();
	KDT_OK(test, dat_psp_create(ia, kdt_new_port(), evd, DAT_PSP_CONSUMER_FLAG, &psp));
	REFUSED();
	KDT_OK(test, dat_psp_free(psp));
	KDT_OK(test, dat_evd_free(evd));

	KDT_OK(test, dat_pz_create(ia, &pz));
	REFUSED();
	region.for_va = kunit_kzalloc(test, 100, GFP_KERNEL);
	KDT_OK(test, dat_lmr_kcreate(ia, DAT_MEM_TYPE_VIRTUAL, region, 100, pz,
				     DAT_MEM_PRIV_LOCAL_READ_FLAG, DAT_VA_TYPE_VA,
				     DAT_MEM_OPTIMIZE_DONT_CARE, &lmr, NULL, NULL, NULL, NULL));
	REFUSED();
	KDT_OK(test, dat_lmr_free(lmr));
	KDT_OK(test, dat_pz_free(pz));

	KDT_OK(test, dat_ep_create(ia, NULL, NULL, NULL, NULL, NULL, &ep));
	REFUSED();
	KDT_OK(test, dat_ep_free(ep));

	KDT_OK(test, dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA,
		    dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
	KDT_OK(test, dat_ia_query(env->a.h, NULL, 0, NULL, 0, NULL));
}

static void close_abrupt(struct kunit *test)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL, evd, cr_evd;
	DAT_REGION_DESCRIPTION region = {};
	DAT_EVENT event;
	DAT_PSP_HANDLE psp;
	DAT_LMR_HANDLE lmr;
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	DAT_EP_HANDLE ep;

	region.for_va = kunit_kzalloc(test, 100, GFP_KERNEL);
	KDT_OK(test, dat_ia_open(kdt_ia_a, 8, &async, &ia));
	KDT_OK(test, dat_pz_create(ia, &pz));
	KDT_OK(test, dat_evd_kcreate(ia, 8, DAT_UPCALL_DISABLE, NULL, DAT_EVD_DTO_FLAG, &evd));
	KDT_OK(test, dat_evd_kcreate(ia, 8, DAT_UPCALL_DISABLE, NULL, DAT_EVD_CR_FLAG, &cr_evd));
	KDT_OK(test, dat_psp_create(ia, kdt_new_port(), cr_evd, DAT_PSP_CONSUMER_FLAG, &psp));
	KDT_OK(test, dat_lmr_kcreate(ia, DAT_MEM_TYPE_VIRTUAL, region, 100, pz,
				     DAT_MEM_PRIV_LOCAL_WRITE_FLAG, DAT_VA_TYPE_VA,
				     DAT_MEM_OPTIMIZE_DONT_CARE, &lmr, NULL, NULL, NULL, NULL));
	KDT_OK(test, dat_ep_create(ia, pz, evd, evd, NULL, NULL, &ep));
	KDT_OK(test, dat_ep_post_recv(ep, 0, NULL, kdt_cookie(1), 0));

	KDT_OK(test, dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	KDT_TYPE(test, DAT_INVALID_HANDLE, dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	KDT_TYPE(test, DAT_INVALID_HANDLE, dat_ep_free(ep));
	KDT_TYPE(test, DAT_INVALID_HANDLE, dat_lmr_free(lmr));
	KDT_TYPE(test, DAT_INVALID_HANDLE, dat_pz_free(pz));
	KDT_TYPE(test, DAT_INVALID_HANDLE, dat_psp_free(psp));
	KDT_TYPE(test, DAT_INVALID_HANDLE, dat_evd_dequeue(evd, &event));
	KDT_TYPE(test, DAT_INVALID_HANDLE, dat_evd_free(cr_evd));
	KDT_TYPE(test, DAT_INVALID_HANDLE, dat_evd_dequeue(async, &event));
}

static struct kunit_case cases[] = {
	KD_CASE(list_providers, "REG-01,REG-02,REG-03: the list of adapters, exact, long, short"),
	KD_CASE(open_names, "IA-OPEN-02,REG-05,SIL-01: names, versions, thread safety"),
	KD_CASE(open_async, "IA-OPEN-03,EVD-FREE-04,IA-CLOSE-03: async EVD made by open"),
	KD_CASE(open_own_async, "IA-OPEN-04,IA-CLOSE-03: async EVD of the consumer"),
	KD_CASE(instances, "IA-OPEN-01,EP-CREATE-05,SIL-36: instances are separate"),
	KD_CASE(query_masks, "IA-QRY-01,GEN-08: masks and pointers of dat_ia_query"),
	KD_CASE(query_values, "IA-QRY-02,IA-QRY-04,FLAG-13,EVD-CR-03,SIL-09,SIL-35: attributes"),
	KD_CASE(close_graceful, "IA-CLOSE-01,IA-CLOSE-04: graceful close refuses leftovers"),
	KD_CASE(close_abrupt, "IA-CLOSE-02,IA-CLOSE-03,IA-CLOSE-04: abrupt close takes all along"),
	{}
};

struct kunit_suite kdt_registry_suite = {
	.name = "kdtest-registry-ia",
	.init = kdt_init,
	.exit = kdt_exit,
	.test_cases = cases,
};
