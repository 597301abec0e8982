// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Adapters: what they say of themselves, and opened by the destination they lead to. */
#include <linux/workqueue.h>
#include <net/net_namespace.h>

#include "kdtest_conn.h"

struct destination {
	struct work_struct work;
	struct net *net;
	const struct sockaddr_storage *dst, *src;
	DAT_EVD_HANDLE async;
	DAT_IA_HANDLE ia;
	DAT_RETURN ret;
};

static DAT_RETURN open_to(struct destination *d)
{
	d->async = DAT_HANDLE_NULL;
	return kdat_ia_open_to(d->net, (const struct sockaddr *)d->dst,
			       (const struct sockaddr *)d->src, 8, &d->async, &d->ia);
}

static void open_in_work(struct work_struct *work)
{
	struct destination *d = container_of(work, struct destination, work);

	d->ret = open_to(d);
}

/* It is the adapter @from, and connects to @to from the address that leads there. */
static void leads(struct kunit *test, struct destination *d, struct kdt_ia *from, struct kdt_ia *to)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_ia *opened = kdt_zalloc(test, sizeof(*opened));
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	struct kdt_ep c = {};
	DAT_IA_ATTR attr;
	DAT_CR_HANDLE cr;

	opened->name = from->name;
	opened->h = d->ia;
	KDT_OK(test, dat_ia_query(d->ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL));
	KUNIT_EXPECT_STREQ(test, attr.adapter_name, from->name);
	KUNIT_ASSERT_NOT_NULL(test, attr.ia_address_ptr);
	KUNIT_EXPECT_TRUE(test, kdt_same_address(attr.ia_address_ptr, from));
	KDT_OK(test, dat_pz_create(d->ia, &opened->pz));
	KDT_OK(test, kdt_ep_open(env, &c, opened, NULL));
	cr = kdt_call(test, &c, to, pair->port, pair->cr).cr_handle;
	KDT_OK(test, dat_cr_accept(cr, pair->s.h, 0, NULL));
	kdt_up(test, &c, &pair->s);
	kdt_down(test, &c, &pair->s);
	KDT_OK(test, dat_ia_close(d->ia, DAT_CLOSE_ABRUPT_FLAG));
}

static void by_destination(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct destination d = { .net = kdt_ia_net(&env->a), .dst = &env->b.addr };
	struct net *other = kdt_ia_net(&env->b);
	/* an address of the same host leads to the adapter that has it */
	struct kdt_ia *routed = net_eq(d.net, other) ? &env->b : &env->a;
	DAT_RETURN ret;

	put_net(other);
	/* what the routes say */
	ret = open_to(&d);
	if (ret == DAT_SUCCESS)
		leads(test, &d, routed, &env->b);
	/* from a work item, which has no namespace, and from an address of choice */
	d.src = &env->a.addr;
	INIT_WORK_ONSTACK(&d.work, open_in_work);
	schedule_work(&d.work);
	flush_work(&d.work);
	destroy_work_on_stack(&d.work);
	if (d.ret == DAT_SUCCESS)
		leads(test, &d, &env->a, &env->b);
	put_net(d.net);
	KDT_OK(test, ret);
	KDT_OK(test, d.ret);
}

static void no_answer(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct sockaddr_storage nobody = kdt_nobody_there(&env->a);
	struct destination d = { .net = kdt_ia_net(&env->a), .dst = &nobody };

	if (kdt_ia_asks(&env->a)) {
		KDT_REFUSED(test, DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE,
			    open_to(&d));
		/* an address of nobody to come from */
		d.dst = &env->b.addr;
		d.src = &nobody;
		KDT_REFUSED(test, DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED, open_to(&d));
	}
	KUNIT_EXPECT_PTR_EQ(test, d.async, (DAT_EVD_HANDLE)DAT_HANDLE_NULL);
	put_net(d.net);
	if (!kdt_ia_asks(&env->a))
		kunit_skip(test, "the interface asks for no neighbours");
}

/* ---- what a provider says of itself ---- */

static void query_values(struct kunit *test)
{
	struct kdt_ia *a = &kdt_env(test)->a;
	const DAT_PROVIDER_ATTR *prov = &a->prov;
	const DAT_IA_ATTR *attr = &a->attr;
	const struct {
		u64 value, least;
	} least[] = {
		{ attr->max_eps, 1 },
		{ attr->max_dto_per_ep, KDT_DTOS },
		{ attr->max_rdma_read_per_ep_in, 1 },
		{ attr->max_rdma_read_per_ep_out, 1 },
		{ attr->max_evds, 1 },
		{ attr->max_evd_qlen, 1 },
		{ attr->max_iov_segments_per_dto, KDT_IOV },
		{ attr->max_iov_segments_per_rdma_write, KDT_IOV },
		{ attr->max_iov_segments_per_rdma_read, 1 },
		{ attr->max_lmrs, 1 },
		{ attr->max_lmr_block_size, KDT_SIZE },
		{ attr->max_pzs, 1 },
		{ attr->max_message_size, KDT_SIZE },
		{ attr->max_rdma_size, KDT_SIZE },
		{ prov->optimal_buffer_alignment, 1 },
	};
	int i, j, need = DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_UNSIGNALLED_FLAG;

	KUNIT_EXPECT_STREQ(test, attr->adapter_name, kdt_ia_a);
	KUNIT_ASSERT_NOT_NULL(test, attr->ia_address_ptr);
	KUNIT_EXPECT_TRUE(test, attr->ia_address_ptr->sa_family == AF_INET ||
			  attr->ia_address_ptr->sa_family == AF_INET6);
	for (i = 0; i < ARRAY_SIZE(least); i++)
		KUNIT_EXPECT_GE_MSG(test, least[i].value, least[i].least, "value %d", i);
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
	KD_CASE(by_destination, "D-100: the adapter and the address that lead to a destination"),
	KD_CASE(no_answer, "D-100: destinations that do not answer, addresses of nobody"),
	KD_CASE(query_values, "IA-QRY-02,IA-QRY-04,FLAG-13,EVD-CR-03,SIL-09,SIL-35: attributes"),
	{}
};

struct kunit_suite kdt_open_suite = { .name = "kdtest-open", KDT_CASES };
