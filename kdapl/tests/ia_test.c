// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Interface Adapters: the names they are opened by, the limits they report, who
 * is related to whom.
 */
#include <linux/if_arp.h>
#include <linux/if_infiniband.h>
#include <linux/inetdevice.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <net/addrconf.h>
#include <rdma/ib_cache.h>

#include "kd_conn.h"

static DAT_RETURN ian_open(const char *name, DAT_IA_HANDLE *ia)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;

	return dat_ia_open((char *)name, 8, &evd, ia);
}

/* The attributes of an IA. */
static DAT_IA_ATTR *ian_attr(struct kd_env *env, DAT_IA_HANDLE ia)
{
	DAT_IA_ATTR *attr = kunit_kzalloc(env->test, sizeof(*attr), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(env->test, attr);
	KD_EXPECT_OK(env->test, dat_ia_query(ia, NULL, DAT_IA_FIELD_ALL, attr, 0, NULL));
	return attr;
}

/* An IA of that name is this port, and says so. */
static void ian_expect(struct kd_env *env, const char *name)
{
	struct kunit *test = env->test;
	struct kdapl_ia *kia;
	DAT_IA_HANDLE ia;

	KUNIT_ASSERT_EQ_MSG(test, (u32)ian_open(name, &ia), (u32)DAT_SUCCESS, "%s", name);
	kia = kdapl_obj_get(ia, DAT_HANDLE_TYPE_IA);
	KUNIT_EXPECT_PTR_EQ(test, kia->dev->ibdev, fake_ib_device(env->dev));
	KUNIT_EXPECT_EQ(test, kia->port, 1U);
	kdapl_obj_put(&kia->obj);
	KUNIT_EXPECT_STREQ(test, ian_attr(env, ia)->adapter_name, name);
	KD_EXPECT_OK(test, dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

/* There is none of that name. */
static void ian_expect_none(struct kd_env *env, const char *name)
{
	DAT_IA_HANDLE ia;

	KUNIT_EXPECT_EQ_MSG(env->test, (u32)ian_open(name, &ia),
			    (u32)DAT_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED),
			    "\"%s\"", name);
}

static int ian_instances(struct kd_env *env)
{
	struct kdapl_ia *ia = kd_ia(env), *other;
	int n = 0;

	mutex_lock(&ia->dev->lock);
	list_for_each_entry(other, &ia->dev->ias, dev_node)
		n++;
	mutex_unlock(&ia->dev->lock);
	return n;
}

/* Names of the device, right and nearly right. */
static void ian_name_test(struct kunit *test)
{
	static const char * const wrong[] = {
		"%s-2", "%s-0", "%s-01", "%s-1 ", "%s-", "%s-11", " %s-1", "%s1-1", "x%s", "%s/1",
		"", "-1", "1", "nosuchdevice", "127.0.0.1.1", "10.11.12.13", "fd00::1234", "1.2",
		"0x7f000001", "%%s",
	};
	struct kd_env *env = kd_open(test, NULL);
	char name[DAT_NAME_MAX_LENGTH];
	DAT_IA_HANDLE ia;
	int i, n = ian_instances(env);

	ian_expect(env, fake_ib_name(env->dev));
	snprintf(name, sizeof(name), "%s-1", fake_ib_name(env->dev));
	ian_expect(env, name);
	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		snprintf(name, sizeof(name), wrong[i], fake_ib_name(env->dev));
		ian_expect_none(env, name);
	}
	/* as long as a name may be, and longer */
	memset(name, 'k', sizeof(name));
	KD_BAD_ARG(test, ian_open(name, &ia), 1);
	name[sizeof(name) - 1] = '\0';
	ian_expect_none(env, name);
	KUNIT_EXPECT_EQ(test, ian_instances(env), n);
}

/* Names and addresses of the port's network device. */
static void ian_netdev_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct net_device *lo = kd_loopback();
	const struct sockaddr_in *in;
	DAT_IA_HANDLE ia;

	KUNIT_ASSERT_NOT_NULL(test, lo);
	ian_expect_none(env, "lo");
	ian_expect_none(env, "127.0.0.1");
	KUNIT_ASSERT_EQ(test, fake_ib_set_netdev(env->dev, lo), 0);
	ian_expect(env, "lo");
	ian_expect(env, "127.0.0.1");
	ian_expect(env, fake_ib_name(env->dev));
	ian_expect_none(env, "127.0.0.2");
	ian_expect_none(env, "0.0.0.0");
	ian_expect_none(env, "::");
	/* opened by whatever name: the address that serves is told */
	KD_ASSERT_OK(test, ian_open("127.0.0.1", &ia));
	in = (const struct sockaddr_in *)ian_attr(env, ia)->ia_address_ptr;
	KUNIT_ASSERT_NOT_NULL(test, in);
	KUNIT_EXPECT_EQ(test, (int)in->sin_family, AF_INET);
	KUNIT_EXPECT_EQ(test, ntohl(in->sin_addr.s_addr), 0x7f000001U);
	/* it goes, and the IA stays, without one */
	KUNIT_ASSERT_EQ(test, fake_ib_set_netdev(env->dev, NULL), 0);
	KUNIT_EXPECT_NULL(test, ian_attr(env, ia)->ia_address_ptr);
	KUNIT_EXPECT_STREQ(test, ian_attr(env, ia)->adapter_name, "127.0.0.1");
	ian_expect_none(env, "lo");
	KUNIT_ASSERT_EQ(test, fake_ib_set_netdev(env->dev, lo), 0);
	KUNIT_EXPECT_NOT_NULL(test, ian_attr(env, ia)->ia_address_ptr);
	KUNIT_ASSERT_EQ(test, fake_ib_set_netdev(env->dev, NULL), 0);
	KD_EXPECT_OK(test, dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

static netdev_tx_t ian_xmit(struct sk_buff *skb, struct net_device *ndev)
{
	dev_kfree_skb(skb);
	return NETDEV_TX_OK;
}

static const struct net_device_ops ian_netdev_ops = {
	.ndo_start_xmit = ian_xmit,
};

static void ian_netdev_setup(struct net_device *ndev)
{
	ndev->netdev_ops = &ian_netdev_ops;
	ndev->type = ARPHRD_INFINIBAND;
	ndev->addr_len = INFINIBAND_ALEN;
	ndev->mtu = 2044;
}

/* An IPoIB network device of a partition: without parent, with a GID in its address. */
static struct net_device *ian_ipoib(struct kunit *test, const char *name, const union ib_gid *gid)
{
	struct net_device *ndev = alloc_netdev(0, name, NET_NAME_USER, ian_netdev_setup);
	u8 addr[INFINIBAND_ALEN] = {};

	KUNIT_ASSERT_NOT_NULL(test, ndev);
	memcpy(addr + 4, gid, sizeof(*gid));
	dev_addr_set(ndev, addr);
	KUNIT_ASSERT_EQ(test, register_netdev(ndev), 0);
	return ndev;
}

static void ian_partition_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct net_device *ndev[2];
	union ib_gid gid;
	int i;

	KUNIT_ASSERT_EQ(test, rdma_query_gid(fake_ib_device(env->dev), 1, 0, &gid), 0);
	gid.raw[15] ^= 1;	/* of another port */
	ndev[0] = ian_ipoib(test, "kdib0", &gid);
	gid.raw[15] ^= 1;
	ndev[1] = ian_ipoib(test, "kdib1", &gid);
	ian_expect(env, "kdib1");
	ian_expect_none(env, "kdib0");
	for (i = 0; i < ARRAY_SIZE(ndev); i++) {
		unregister_netdev(ndev[i]);
		free_netdev(ndev[i]);
	}
}

/* What is wrong with an open; and that it leaves nothing. */
static void ian_args_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct fake_ib *other = fake_ib_create(NULL);
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL, evd, dead, foreign = DAT_HANDLE_NULL;
	char name[DAT_NAME_MAX_LENGTH], name2[DAT_NAME_MAX_LENGTH];
	struct fake_ib_live before, after;
	int i, n = ian_instances(env);
	DAT_IA_HANDLE ia, ia2;
	const u32 param = DAT_INVALID_PARAMETER, none = DAT_PROVIDER_NOT_FOUND;
	const struct {
		char *name;
		int qlen;
		DAT_EVD_HANDLE *evd;
		DAT_IA_HANDLE *ia;
		u32 major, minor;
		DAT_BOOLEAN safe;
		u32 type, subtype;
	} rows[] = {
		{ NULL, 8, &async, &ia, 2, 0, DAT_TRUE, param, DAT_INVALID_ARG1 },
		{ name, 8, NULL, &ia, 2, 0, DAT_TRUE, param, DAT_INVALID_ARG3 },
		{ name, 8, &async, NULL, 2, 0, DAT_TRUE, param, DAT_INVALID_ARG4 },
		{ name, 0, &async, &ia, 2, 0, DAT_TRUE, param, DAT_INVALID_ARG2 },
		{ name, -1, &async, &ia, 2, 0, DAT_TRUE, param, DAT_INVALID_ARG2 },
		{ name, 8, &async, &ia, 1, 0, DAT_TRUE, none, DAT_MAJOR_NOT_FOUND },
		{ name, 8, &async, &ia, 3, 0, DAT_TRUE, none, DAT_MAJOR_NOT_FOUND },
		{ name, 8, &async, &ia, 2, 1, DAT_TRUE, none, DAT_MINOR_NOT_FOUND },
		{ name, 8, &async, &ia, 2, 0, 2, none, DAT_THREAD_SAFETY_NOT_FOUND },
	};

	KUNIT_ASSERT_FALSE(test, IS_ERR(other));
	snprintf(name, sizeof(name), "%s-1", fake_ib_name(env->dev));
	snprintf(name2, sizeof(name2), "%s-1", fake_ib_name(other));
	KD_ASSERT_OK(test, dat_ia_open(name2, 8, &foreign, &ia2));
	KD_ASSERT_OK(test, dat_evd_kcreate(env->ia, 1, DAT_UPCALL_DISABLE, NULL,
					   DAT_EVD_ASYNC_FLAG, &dead));
	KD_ASSERT_OK(test, dat_evd_free(dead));
	fake_ib_live(env->dev, &before);
	for (i = 0; i < ARRAY_SIZE(rows); i++)
		KUNIT_EXPECT_EQ_MSG(test, (u32)dat_ia_openv(rows[i].name, rows[i].qlen, rows[i].evd,
							    rows[i].ia, rows[i].major,
							    rows[i].minor, rows[i].safe),
				    (u32)DAT_ERROR(rows[i].type, rows[i].subtype), "row %d", i);
	for (i = 0; i < 7; i++) {
		DAT_EVD_HANDLE bad[] = {
			env->conn, dead, foreign, env->ia, env->pz, (DAT_EVD_HANDLE)~0UL,
			(DAT_EVD_HANDLE)env,
		};

		evd = bad[i];
		KD_BAD_HANDLE(test, dat_ia_openv(name, 8, &evd, &ia, 2, 0, DAT_TRUE), _EVD_ASYNC);
		KUNIT_EXPECT_PTR_EQ(test, evd, bad[i]);
	}
	KUNIT_EXPECT_NULL(test, async);
	KUNIT_EXPECT_EQ(test, ian_instances(env), n);
	fake_ib_live(env->dev, &after);
	KUNIT_EXPECT_EQ(test, memcmp(&before, &after, sizeof(before)), 0);
	/* with a good one neither the length nor the handle matters */
	evd = env->async;
	KD_EXPECT_OK(test, dat_ia_openv(name, -5, &evd, &ia, 2, 0, DAT_FALSE));
	KUNIT_EXPECT_PTR_EQ(test, evd, env->async);
	KD_EXPECT_OK(test, dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
	KD_EXPECT_OK(test, dat_ia_close(ia2, DAT_CLOSE_ABRUPT_FLAG));
	fake_ib_destroy(other);
}

/* Limits beyond what the attribute can say are as large as it can. */
static void ian_huge_test(struct kunit *test)
{
	const struct fake_ib_caps caps = {
		.max_pages = 1 << 21, .max_msg_sz = U32_MAX, .max_qp_wr = INT_MAX,
		.max_cqe = INT_MAX, .max_rd_atom = INT_MAX, .max_qp = INT_MAX,
		.max_srq_wr = INT_MAX,
	};
	struct kd_env *env = kd_open(test, &caps);
	const DAT_IA_ATTR *attr = ian_attr(env, env->ia);
	const DAT_COUNT counts[] = {
		attr->max_eps, attr->max_dto_per_ep, attr->max_evd_qlen,
		attr->max_rdma_read_per_ep_in, attr->max_rdma_read_per_ep_out,
		attr->max_rdma_read_in, attr->max_rdma_read_out, attr->max_srqs,
		attr->max_recv_per_srq, attr->max_ep_per_srq, attr->max_iov_segments_per_rdma_read,
		attr->max_iov_segments_per_rdma_write,
	};
	int i;

	/* 8 GiB in one registration */
	KUNIT_EXPECT_EQ(test, (u32)attr->max_lmr_block_size, U32_MAX);
	KUNIT_EXPECT_EQ(test, (u32)attr->max_message_size, U32_MAX);
	KUNIT_EXPECT_EQ(test, (u32)attr->max_rdma_size, U32_MAX);
	/* nothing wraps around */
	for (i = 0; i < ARRAY_SIZE(counts); i++)
		KUNIT_EXPECT_GT_MSG(test, (int)counts[i], 0, "limit %d", i);
	/* and what is offered can be had */
	kd_ep(env, NULL);
}

static void ian_asked(void *arg)
{
	*(bool *)arg = true;
}

/*
 * Real drivers take RTNL in ib_query_port(), whose holder may wait for the disk that is to
 * be connected again: nothing a consumer calls asks the port.
 */
static void ian_ask_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL, evd;
	struct kd_mem mem;
	bool asked = false;
	DAT_EP_HANDLE ep;
	DAT_PZ_HANDLE pz;
	DAT_IA_HANDLE ia;

	fake_ib_at(env->dev, FAKE_IB_QUERY_PORT, 1, ian_asked, &asked);
	ia = kd_ia_more(env, &async);
	ian_attr(env, ia);
	KD_ASSERT_OK(test, dat_pz_create(ia, &pz));
	/* the first one of a PZ makes what registers */
	KD_ASSERT_OK(test, kd_lmr_create(ia, pz, env->buf, 8, DAT_MEM_PRIV_ALL_FLAG, &mem));
	KD_ASSERT_OK(test, dat_evd_kcreate(ia, 8, DAT_UPCALL_DISABLE, NULL, DAT_EVD_DTO_FLAG,
					   &evd));
	KD_ASSERT_OK(test, dat_ep_create(ia, pz, evd, evd, DAT_HANDLE_NULL, NULL, &ep));
	KD_EXPECT_OK(test, dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	KUNIT_EXPECT_FALSE(test, asked);
	fake_ib_at(env->dev, FAKE_IB_QUERY_PORT, 0, NULL, NULL);
}

/* The module stays while anybody has an IA open. */
static void ian_module_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	char name[DAT_NAME_MAX_LENGTH];
	DAT_IA_HANDLE ias[5], none;
	int i, before;

	if (!__is_defined(MODULE))
		kunit_skip(test, "built into the kernel");
	before = module_refcount(THIS_MODULE);
	snprintf(name, sizeof(name), "%s-1", fake_ib_name(env->dev));
	for (i = 0; i < ARRAY_SIZE(ias); i++) {
		KD_ASSERT_OK(test, ian_open(name, &ias[i]));
		KUNIT_EXPECT_EQ(test, module_refcount(THIS_MODULE), before + i + 1);
		KUNIT_EXPECT_NE(test, (u32)ian_open("nosuchdevice", &none), (u32)DAT_SUCCESS);
		KUNIT_EXPECT_EQ(test, module_refcount(THIS_MODULE), before + i + 1);
	}
	/* also when there is nothing left to open */
	fake_ib_unplug(env->dev);
	KUNIT_EXPECT_EQ(test, module_refcount(THIS_MODULE), before + i);
	while (i--) {
		KD_EXPECT_OK(test, dat_ia_close(ias[i], i & 1 ? DAT_CLOSE_ABRUPT_FLAG :
								DAT_CLOSE_GRACEFUL_FLAG));
		KUNIT_EXPECT_EQ(test, module_refcount(THIS_MODULE), before + i);
	}
}

/* One of them at least is not known. */
static void ian_unrelated(struct kunit *test, char *a, char *b)
{
	DAT_HA_RELATIONSHIP answer;

	KD_EXPECT_RET(test, dat_registry_providers_related(a, b, &answer), DAT_PROVIDER_NOT_FOUND,
		      DAT_NAME_NOT_REGISTERED);
}

/* No two IAs know of each other. */
static void ian_related_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct fake_ib *other = fake_ib_create(NULL);
	char a[DAT_NAME_MAX_LENGTH], b[DAT_NAME_MAX_LENGTH], *names[] = { a, b, NULL };
	char *unknown = "nosuchdevice-1";
	DAT_HA_RELATIONSHIP answer;
	int i, k;

	KUNIT_ASSERT_FALSE(test, IS_ERR(other));
	snprintf(a, sizeof(a), "%s-1", fake_ib_name(env->dev));
	snprintf(b, sizeof(b), "%s-1", fake_ib_name(other));
	for (i = 0; i < 2; i++) {
		for (k = 0; k < 2; k++) {
			answer = 99;
			KD_EXPECT_OK(test, dat_registry_providers_related(names[i], names[k],
									  &answer));
			KUNIT_EXPECT_EQ(test, (int)answer, (int)(i == k ? DAT_HA_TRUE :
									  DAT_HA_FALSE));
		}
		ian_unrelated(test, names[i], unknown);
		ian_unrelated(test, unknown, names[i]);
		KD_BAD_ARG(test, dat_registry_providers_related(NULL, names[i], &answer), 1);
		KD_BAD_ARG(test, dat_registry_providers_related(names[i], NULL, &answer), 2);
		KD_BAD_ARG(test, dat_registry_providers_related(names[i], a, NULL), 3);
	}
	ian_unrelated(test, unknown, unknown);
	fake_ib_destroy(other);
	ian_unrelated(test, a, b);
}

/* What the attributes promise can be had, all of it at once; fewer segments may get more. */
static void ian_depth_test(struct kunit *test)
{
	static const struct fake_ib_caps caps[] = {
		{ .max_send_sge = 8, .max_recv_sge = 8 },
		{ .driver = RDMA_DRIVER_MLX5, .max_send_sge = 8, .max_recv_sge = 8,
		  .sq_bytes = 64 * 1024 },
		{ .driver = RDMA_DRIVER_MLX5, .max_send_sge = 8, .max_recv_sge = 8,
		  .sq_bytes = 1024 * 1024 },
		{ .driver = RDMA_DRIVER_MLX5, .max_send_sge = 8, .max_recv_sge = 8,
		  .sq_bytes = 16 * 1024 },
	};
	int i, most = 0, limit;
	struct kd_env *env;
	DAT_IA_ATTR *ia;
	DAT_EP_HANDLE ep;
	DAT_EP_ATTR attr;

	for (i = 0; i < ARRAY_SIZE(caps); i++) {
		env = kd_open(test, &caps[i]);
		ia = ian_attr(env, env->ia);
		kd_attr(&attr);
		attr.max_request_dtos = ia->max_dto_per_ep;
		attr.max_recv_dtos = ia->max_dto_per_ep;
		attr.max_request_iov = ia->max_iov_segments_per_dto;
		attr.max_recv_iov = ia->max_iov_segments_per_dto;
		attr.max_rdma_write_iov = ia->max_iov_segments_per_rdma_write;
		attr.max_rdma_read_iov = ia->max_iov_segments_per_rdma_read;
		kd_ep(env, &attr);
		kd_ep_free(env);
		most = max(most, ia->max_dto_per_ep);
		limit = caps[i].sq_bytes ? caps[i].sq_bytes / 320 : 1024;
		KUNIT_EXPECT_LE(test, ia->max_dto_per_ep, max(1, limit / 5 * 2));
		KUNIT_EXPECT_GE(test, ia->max_dto_per_ep, max(1, min(limit, 1024) / 3));
		if (i == 1) {
			/* a third of the bytes for each: half as many again */
			attr.max_request_dtos = ia->max_dto_per_ep * 3 / 2;
			attr.max_request_iov = 1;
			attr.max_rdma_write_iov = 1;
			attr.max_rdma_read_iov = 1;
			kd_ep(env, &attr);
			kd_ep_free(env);
			attr.max_request_dtos = most;
			KD_EXPECT_TYPE(test, dat_ep_create(env->ia, env->pz, env->recv, env->req,
							   env->conn, &attr, &ep),
				       DAT_INSUFFICIENT_RESOURCES);
		}
		kd_again(test);
	}
}

/* The read depths of a device; of a driver that swaps its limits, the smaller one for both. */
static void ian_reads_test(struct kunit *test)
{
	static const struct {
		struct fake_ib_caps caps;
		int in, out;
	} rows[] = {
		{ { .max_rd_atom = 16, .max_init_rd_atom = 8 }, 16, 8 },
		{ { .max_rd_atom = 8, .max_init_rd_atom = 16 }, 8, 16 },
		{ { .max_rd_atom = 16, .max_init_rd_atom = 8,
		    .driver = RDMA_DRIVER_BNXT_RE }, 8, 8 },
		{ { .max_rd_atom = 8, .max_init_rd_atom = 16,
		    .driver = RDMA_DRIVER_BNXT_RE }, 8, 8 },
	};
	struct kd_env *env;
	DAT_IA_ATTR *ia;
	int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		env = kd_open(test, &rows[i].caps);
		ia = ian_attr(env, env->ia);
		KUNIT_EXPECT_EQ_MSG(test, ia->max_rdma_read_per_ep_in, rows[i].in, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, ia->max_rdma_read_per_ep_out, rows[i].out, "row %d", i);
		kd_again(test);
	}
}

/* Devices that cannot be served honestly have no IA. */
static void ian_refused_test(struct kunit *test)
{
	static const struct fake_ib_caps caps[] = {
		{ .driver = RDMA_DRIVER_HNS },
		{ .driver = RDMA_DRIVER_HFI1 },
		{ .driver = RDMA_DRIVER_OCRDMA },
		{ .no_cm = true },
		{ .page_sizes = PAGE_SIZE / 16 | 2 * PAGE_SIZE },
	};
	struct fake_ib *dev;
	DAT_IA_HANDLE ia;
	int i;

	for (i = 0; i < ARRAY_SIZE(caps); i++) {
		dev = fake_ib_create(&caps[i]);
		KUNIT_ASSERT_FALSE(test, IS_ERR(dev));
		KD_EXPECT_RET(test, ian_open(fake_ib_name(dev), &ia), DAT_PROVIDER_NOT_FOUND,
			      DAT_NAME_NOT_REGISTERED);
		KUNIT_EXPECT_PTR_EQ(test, ib_get_client_data(fake_ib_device(dev), &kdapl_client),
				    (void *)NULL);
		fake_ib_destroy(dev);
	}
}

/* The list of adapters: too short, exact, longer. */
static void ian_list_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct fake_ib *other = fake_ib_create(NULL);
	char names[2][DAT_NAME_MAX_LENGTH];
	DAT_PROVIDER_INFO **list, *info;
	DAT_COUNT n = -1, got = -1;
	int i, k, found = 0;

	KUNIT_ASSERT_FALSE(test, IS_ERR(other));
	snprintf(names[0], sizeof(names[0]), "%s-1", fake_ib_name(env->dev));
	snprintf(names[1], sizeof(names[1]), "%s-1", fake_ib_name(other));
	KD_BAD_ARG(test, dat_registry_list_providers(100, &n, NULL), 3);
	KUNIT_ASSERT_GE(test, n, 2);
	list = kunit_kcalloc(test, n + 3, sizeof(*list), GFP_KERNEL);
	info = kunit_kcalloc(test, n + 3, sizeof(*info), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, list);
	KUNIT_ASSERT_NOT_NULL(test, info);
	for (i = 0; i < n + 3; i++)
		list[i] = &info[i];
	for (i = -1; i < n; i++) {
		got = -1;
		KD_EXPECT_TYPE(test, dat_registry_list_providers(i, &got, list),
			       DAT_INVALID_PARAMETER);
		KUNIT_EXPECT_EQ(test, got, n);
	}
	KD_BAD_ARG(test, dat_registry_list_providers(n, NULL, list), 2);
	list[n - 1] = NULL;
	KD_BAD_ARG(test, dat_registry_list_providers(n, &got, list), 3);
	list[n - 1] = &info[n - 1];
	/* as long as it is, and longer */
	for (k = 0; k < 2; k++) {
		KD_EXPECT_OK(test, dat_registry_list_providers(n + 3 * k, &got, list));
		KUNIT_EXPECT_EQ(test, got, n);
	}
	for (i = 0; i < n; i++) {
		found += !strcmp(info[i].ia_name, names[0]) || !strcmp(info[i].ia_name, names[1]);
		KUNIT_EXPECT_EQ(test, (int)info[i].dapl_version_major, 2);
		KUNIT_EXPECT_EQ(test, (int)info[i].dapl_version_minor, 0);
		KUNIT_EXPECT_EQ(test, (int)info[i].is_thread_safe, (int)DAT_TRUE);
	}
	KUNIT_EXPECT_EQ(test, found, 2);
	fake_ib_destroy(other);
}

/* The async EVD that open makes, and one that is the consumer's. */
static void ian_async_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL, own, asked;
	DAT_EVD_PARAM param;
	DAT_IA_HANDLE ia;

	ia = kd_ia_more(env, &async);
	KD_EXPECT_OK(test, dat_evd_query(async, DAT_EVD_FIELD_ALL, &param));
	KUNIT_EXPECT_PTR_EQ(test, param.ia_handle, ia);
	KUNIT_EXPECT_GE(test, (int)param.evd_qlen, 8);
	KUNIT_EXPECT_EQ(test, (int)param.upcall_policy, (int)DAT_UPCALL_DISABLE);
	KUNIT_EXPECT_TRUE(test, param.evd_flags & DAT_EVD_ASYNC_FLAG);
	KD_BAD_STATE(test, dat_evd_free(async), EVD_IN_USE);
	KD_EXPECT_OK(test, dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
	KD_BAD_HANDLE(test, dat_evd_query(async, DAT_EVD_FIELD_ALL, &param), 1);

	KD_ASSERT_OK(test, dat_evd_kcreate(env->ia, 8, DAT_UPCALL_DISABLE, NULL,
					   DAT_EVD_ASYNC_FLAG, &own));
	async = own;
	ia = kd_ia_more(env, &async);
	KUNIT_EXPECT_PTR_EQ(test, async, own);
	KD_EXPECT_OK(test, dat_ia_query(ia, &asked, 0, NULL, 0, NULL));
	KUNIT_EXPECT_PTR_EQ(test, asked, own);
	KD_BAD_STATE(test, dat_evd_free(own), EVD_IN_USE);
	KD_EXPECT_OK(test, dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
	/* it was the consumer's and still is */
	KD_EXPECT_OK(test, dat_evd_query(own, DAT_EVD_FIELD_ALL, &param));
	KD_EXPECT_OK(test, dat_evd_free(own));
}

static void ian_query_test(struct kunit *test)
{
	DAT_PROVIDER_ATTR *prov = kunit_kzalloc(test, sizeof(*prov), GFP_KERNEL);
	DAT_IA_ATTR *attr = kunit_kzalloc(test, sizeof(*attr), GFP_KERNEL);
	struct kd_env *env = kd_open(test, NULL);
	const struct {
		DAT_IA_ATTR_MASK mask;
		DAT_IA_ATTR *attr;
		DAT_PROVIDER_ATTR_MASK prov_mask;
		DAT_PROVIDER_ATTR *prov;
		u32 arg;
	} bad[] = {
		{ 1ULL << 40, attr, 0, NULL, DAT_INVALID_ARG3 },
		{ DAT_IA_FIELD_IA_MAX_EPS, NULL, 0, NULL, DAT_INVALID_ARG4 },
		{ 0, NULL, 1ULL << 33, prov, DAT_INVALID_ARG5 },
		{ 0, NULL, DAT_PROVIDER_FIELD_ALL, NULL, DAT_INVALID_ARG6 },
	};
	DAT_EVD_HANDLE async;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, prov);
	KUNIT_ASSERT_NOT_NULL(test, attr);
	KD_EXPECT_OK(test, dat_ia_query(env->ia, NULL, 0, NULL, 0, NULL));
	KD_EXPECT_OK(test, dat_ia_query(env->ia, &async, 0, NULL, 0, NULL));
	KUNIT_EXPECT_PTR_EQ(test, async, env->async);
	KD_EXPECT_OK(test, dat_ia_query(env->ia, NULL, DAT_IA_FIELD_ALL, attr,
					DAT_PROVIDER_FIELD_ALL, prov));
	for (i = 0; i < ARRAY_SIZE(bad); i++)
		KD_EXPECT_RET(test, dat_ia_query(env->ia, NULL, bad[i].mask, bad[i].attr,
						 bad[i].prov_mask, bad[i].prov),
			      DAT_INVALID_PARAMETER, bad[i].arg);
}

/* Instances are separate; a graceful close refuses whatever is left, an abrupt one takes it. */
static void ian_close_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL), other = *env;
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_HANDLE h[KD_ZOO] = {};
	DAT_HANDLE_TYPE type;
	DAT_EP_HANDLE ep;
	int i;

	other.ia = kd_ia_more(env, &async);
	KUNIT_EXPECT_PTR_NE(test, other.ia, env->ia);
	KUNIT_EXPECT_PTR_NE(test, async, env->async);
	KD_BAD_ARG(test, dat_ia_close(other.ia, 2), 2);
	kd_zoo(&other, 7, h);
	KD_BAD_HANDLE(test, dat_ep_create(env->ia, h[DAT_HANDLE_TYPE_PZ], NULL, NULL, NULL, NULL,
					  &ep), _PZ);
	for (i = 0; i < KD_ZOO_KINDS; i++) {
		KD_BAD_STATE(test, dat_ia_close(other.ia, DAT_CLOSE_GRACEFUL_FLAG), IA_IN_USE);
		KD_EXPECT_OK(test, kd_zoo_kinds[i].free(h[kd_zoo_kinds[i].type]));
	}
	KD_EXPECT_OK(test, dat_ia_close(other.ia, DAT_CLOSE_GRACEFUL_FLAG));
	KD_BAD_HANDLE(test, dat_ia_close(other.ia, DAT_CLOSE_GRACEFUL_FLAG), _IA);

	async = DAT_HANDLE_NULL;
	other.ia = kd_ia_more(env, &async);
	kd_zoo(&other, 7, h);
	KD_EXPECT_OK(test, dat_ia_close(other.ia, DAT_CLOSE_ABRUPT_FLAG));
	KD_BAD_HANDLE(test, dat_ia_close(other.ia, DAT_CLOSE_ABRUPT_FLAG), _IA);
	for (i = 0; i < KD_ZOO; i++)
		KD_BAD_HANDLE(test, dat_get_handle_type(h[i], &type), 1);
	KD_BAD_HANDLE(test, dat_get_handle_type(async, &type), 1);
	/* the other instance has noticed nothing */
	KD_EXPECT_OK(test, dat_ia_query(env->ia, NULL, 0, NULL, 0, NULL));
}

static void ian_pz_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_PZ_PARAM param = {};
	DAT_PZ_HANDLE pz;
	struct kd_mem mem;
	DAT_EP_HANDLE ep;

	KD_BAD_ARG(test, dat_pz_create(env->ia, NULL), 2);
	KD_ASSERT_OK(test, dat_pz_create(env->ia, &pz));
	KUNIT_EXPECT_PTR_NE(test, pz, env->pz);
	KD_EXPECT_OK(test, dat_pz_query(pz, DAT_PZ_FIELD_ALL, &param));
	KUNIT_EXPECT_PTR_EQ(test, param.ia_handle, env->ia);
	KD_EXPECT_OK(test, dat_pz_query(pz, 0, NULL));
	KD_BAD_ARG(test, dat_pz_query(pz, 2, &param), 2);
	KD_BAD_ARG(test, dat_pz_query(pz, DAT_PZ_FIELD_ALL, NULL), 3);
	/* used by an LMR, and by an EP; refused without effect */
	KD_ASSERT_OK(test, kd_lmr_create(env->ia, pz, env->buf, 8, DAT_MEM_PRIV_ALL_FLAG, &mem));
	KD_BAD_STATE(test, dat_pz_free(pz), PZ_IN_USE);
	KD_ASSERT_OK(test, dat_ep_create(env->ia, pz, NULL, NULL, NULL, NULL, &ep));
	KD_EXPECT_OK(test, dat_lmr_free(mem.lmr));
	KD_BAD_STATE(test, dat_pz_free(pz), PZ_IN_USE);
	KD_EXPECT_OK(test, dat_ep_free(ep));
	KD_EXPECT_OK(test, dat_pz_free(pz));
	KD_BAD_HANDLE(test, dat_pz_free(pz), _PZ);
}

static struct kunit_case ian_cases[] = {
	KD_CASE(ian_list_test, "REG-01,REG-02,REG-03: the list of adapters, exact, long, short"),
	KD_CASE(ian_async_test, "IA-OPEN-03,IA-OPEN-04,EVD-FREE-04,IA-CLOSE-03: async EVDs"),
	KD_CASE(ian_query_test, "IA-QRY-01,GEN-08: masks and pointers of dat_ia_query"),
	KD_CASE(ian_close_test,
		"IA-OPEN-01,IA-CLOSE-01..04,EP-CREATE-05,SIL-36: instances, and what is left"),
	KD_CASE(ian_pz_test, "PZ-01,PZ-02,GEN-05,GEN-08,GEN-11,EP-CREATE-17: PZs"),
	KD_CASE(ian_name_test, "IA-OPEN-02,IA-QRY-02,SIL-30: names of a device"),
	KD_CASE(ian_netdev_test, "SIL-30,IA-QRY-02: names and addresses of a network device"),
	KD_CASE(ian_partition_test, "SIL-30: names of network devices of InfiniBand partitions"),
	KD_CASE(ian_args_test,
		"IA-OPEN-01..04,IA-OPEN-07,REG-05,SIL-01,GEN-07: arguments, and what is left"),
	KD_CASE(ian_huge_test, "IA-QRY-03: limits beyond all bounds"),
	KD_CASE(ian_ask_test, "CTX-05: nothing a consumer calls asks the port"),
	KD_CASE(ian_module_test, "IA-OPEN-06,IA-CLOSE-06: the module is in use"),
	KD_CASE(ian_related_test, "REG-07: who is related to whom"),
	KD_CASE(ian_depth_test, "IA-QRY-03,EP-CREATE-08: as deep as the attributes say"),
	KD_CASE(ian_reads_test, "IA-QRY-03: the read depths of a device"),
	KD_CASE(ian_refused_test, "REG-01,IA-OPEN-02: devices that cannot be served"),
	{}
};

KD_SUITE("kdapl-ia", ian_cases, kd_init, kd_exit);
