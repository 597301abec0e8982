// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Registry and interface adapter: what a real provider says of itself. */
#include <linux/in.h>

#include "kdtest.h"

static void listed(struct kunit *test)
{
	static DAT_PROVIDER_INFO info[16];
	DAT_PROVIDER_INFO *list[16];
	bool found_a = false, found_b = false;
	DAT_COUNT n, i;

	for (i = 0; i < ARRAY_SIZE(list); i++)
		list[i] = &info[i];
	KDT_OK(test, dat_registry_list_providers(ARRAY_SIZE(list), &n, list));
	for (i = 0; i < n; i++) {
		found_a |= !strcmp(info[i].ia_name, kdt_ia_a);
		found_b |= !strcmp(info[i].ia_name, kdt_ia_b);
	}
	KUNIT_EXPECT_TRUE(test, found_a);
	KUNIT_EXPECT_TRUE(test, found_b);
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
	/* all or, on some iWARP devices, none */
	if (!a->iwarp || prov->dat_qos_supported)
		KUNIT_EXPECT_EQ(test, (int)prov->dat_qos_supported, 0xf);
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

static struct kunit_case cases[] = {
	KD_CASE(listed, "REG-01: the providers are in the list"),
	KD_CASE(query_values, "IA-QRY-02,IA-QRY-04,FLAG-13,EVD-CR-03,SIL-09,SIL-35: attributes"),
	{}
};

struct kunit_suite kdt_registry_suite = {
	.name = "kdtest-registry-ia",
	.init = kdt_init,
	.exit = kdt_exit,
	.test_cases = cases,
};
