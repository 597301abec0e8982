// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Extensions that tell a consumer something: names, errnos, the device of an IA, and the IA
 * that leads to a destination.
 */
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/notifier.h>
#include <net/net_namespace.h>

#include "kd_upcall.h"

static void ext_names(struct kunit *test)
{
	KUNIT_EXPECT_STREQ(test, kdat_event_name(DAT_CONNECTION_EVENT_ESTABLISHED), "ESTABLISHED");
	KUNIT_EXPECT_STREQ(test, kdat_event_name(DAT_ASYNC_ERROR_EVD_OVERFLOW), "EVD_OVERFLOW");
	KUNIT_EXPECT_STREQ(test, kdat_event_name(DAT_SOFTWARE_EVENT), "SOFTWARE_EVENT");
	KUNIT_EXPECT_STREQ(test, kdat_event_name(0), "?");
	KUNIT_EXPECT_STREQ(test, kdat_dto_status_name(DAT_DTO_SUCCESS), "SUCCESS");
	KUNIT_EXPECT_STREQ(test, kdat_dto_status_name(DAT_DTO_ERR_FLUSHED), "FLUSHED");
	KUNIT_EXPECT_STREQ(test, kdat_dto_status_name(DAT_DTO_ERR_REMOTE_ACCESS), "REMOTE_ACCESS");
	KUNIT_EXPECT_STREQ(test, kdat_dto_status_name(99), "?");
	KUNIT_EXPECT_STREQ(test, kdat_ep_state_name(DAT_EP_STATE_UNCONNECTED), "UNCONNECTED");
	KUNIT_EXPECT_STREQ(test, kdat_ep_state_name(DAT_EP_STATE_DISCONNECTED), "DISCONNECTED");
	KUNIT_EXPECT_STREQ(test, kdat_ep_state_name(99), "?");
}

static const char *ext_reason(u32 number, DAT_HANDLE handle, DAT_COUNT reason)
{
	const DAT_EVENT event = {
		.event_number = number,
		.event_data.asynch_error_event_data = { .dat_handle = handle, .reason = reason },
	};

	return kdat_async_reason_name(&event);
}

/* The same value has a name for each type of handle; that of an object is enough. */
static void ext_reasons(struct kunit *test)
{
	const u32 fault = DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR;
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 4, .max_recv_iov = 1 };
	struct kd_env *env = kd_open(test, NULL);
	DAT_SRQ_HANDLE srq;

	kd_ep(env, NULL);
	KD_ASSERT_OK(test, dat_srq_create(env->ia, env->pz, &attr, &srq));
	KD_EXPECT_OK(test, dat_srq_free(srq));
	KUNIT_EXPECT_STREQ(test, ext_reason(fault, srq, DAT_SRQ_LOW_WATERMARK_EVENT),
			   "LOW_WATERMARK");
	KUNIT_EXPECT_STREQ(test, ext_reason(fault, srq, DAT_SRQ_OTHER_ERROR), "OTHER_ERROR");
	KUNIT_EXPECT_STREQ(test, ext_reason(fault, srq, 3), "?");
	KUNIT_EXPECT_STREQ(test, ext_reason(fault, srq, -1), "?");
	KUNIT_EXPECT_STREQ(test, ext_reason(fault, env->ep, DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT),
			   "SOFT_HIGH_WATERMARK");
	KUNIT_EXPECT_STREQ(test, ext_reason(DAT_ASYNC_ERROR_EP_BROKEN, env->ep,
					    DAT_EP_TRANSFER_TO_ERROR), "TRANSFER_TO_ERROR");
	KUNIT_EXPECT_STREQ(test, ext_reason(fault, env->ia, DAT_IA_OTHER_ERROR), "OTHER_ERROR");
	KUNIT_EXPECT_STREQ(test, ext_reason(fault, env->ia, 2), "?");
	KUNIT_EXPECT_STREQ(test, ext_reason(DAT_ASYNC_ERROR_EVD_OVERFLOW, env->recv,
					    DAT_EVD_OVERFLOW_ERROR), "OVERFLOW_ERROR");
	KUNIT_EXPECT_STREQ(test, ext_reason(fault, env->pz, 0), "?");
	KUNIT_EXPECT_STREQ(test, ext_reason(fault, (DAT_HANDLE)-1L, 0), "?");
	KUNIT_EXPECT_STREQ(test, ext_reason(DAT_SOFTWARE_EVENT, srq, 0), "?");
	KUNIT_EXPECT_STREQ(test, ext_reason(DAT_CONNECTION_EVENT_BROKEN, env->ep, 0), "?");
}

static const struct {
	DAT_RETURN ret;
	int err;
} ext_errnos[] = {
	{ DAT_SUCCESS, 0 },
	{ DAT_ERROR(DAT_ABORT, 0), -ECANCELED },
	{ DAT_ERROR(DAT_CONN_QUAL_IN_USE, 0), -EADDRINUSE },
	{ DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY), -ENOMEM },
	{ DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_DEVICE), -ENOSPC },
	{ DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEVD), -ENOSPC },
	{ DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP), -EAGAIN },
	{ DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ), -EAGAIN },
	{ DAT_ERROR(DAT_INTERNAL_ERROR, 0), -EIO },
	{ DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP), -EBADF },
	{ DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3), -EINVAL },
	{ DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_CONNECTED), -EBADFD },
	{ DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE), -EBUSY },
	{ DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_IA_IN_USE), -EBUSY },
	{ DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_LMR_IN_USE), -EBUSY },
	{ DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE), -EBUSY },
	{ DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_SRQ_IN_USE), -EBUSY },
	{ DAT_ERROR(DAT_LENGTH_ERROR, 0), -EMSGSIZE },
	{ DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, 0), -EOPNOTSUPP },
	{ DAT_ERROR(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED), -ENODEV },
	{ DAT_ERROR(DAT_PRIVILEGES_VIOLATION, DAT_PRIVILEGES_READ), -EACCES },
	{ DAT_ERROR(DAT_PROTECTION_VIOLATION, 0), -EPERM },
	{ DAT_ERROR(DAT_QUEUE_EMPTY, 0), -EAGAIN },
	{ DAT_ERROR(DAT_QUEUE_FULL, 0), -ENOBUFS },
	{ DAT_ERROR(DAT_TIMEOUT_EXPIRED, 0), -ETIMEDOUT },
	{ DAT_ERROR(DAT_PROVIDER_ALREADY_REGISTERED, 0), -EEXIST },
	{ DAT_ERROR(DAT_PROVIDER_IN_USE, 0), -EBUSY },
	{ DAT_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED), -EAFNOSUPPORT },
	{ DAT_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE), -EHOSTUNREACH },
	{ DAT_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED), -EINVAL },
	{ DAT_ERROR(DAT_INTERRUPTED_CALL, 0), -EINTR },
	{ DAT_ERROR(DAT_CONN_QUAL_UNAVAILABLE, 0), -EADDRNOTAVAIL },
	{ DAT_ERROR(DAT_RESERVED_LMR, 0), -EINVAL },
	{ DAT_ERROR(DAT_PORT_IN_USE, 0), -EADDRINUSE },
	{ DAT_ERROR(DAT_COMM_NOT_SUPPORTED, 0), -EPROTONOSUPPORT },
	{ DAT_ERROR(DAT_NOT_IMPLEMENTED, 0), -EOPNOTSUPP },
	{ DAT_ERROR(0x00770000, 0), -EIO },
};

static void ext_errno(struct kunit *test)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(ext_errnos); i++)
		KUNIT_EXPECT_EQ_MSG(test, kdat_errno(ext_errnos[i].ret), ext_errnos[i].err,
				    "row %d, %#x", i, (u32)ext_errnos[i].ret);
}

static void ext_device(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct device *parent = ERR_PTR(-EINVAL);
	struct kdat_mem_limits limits;
	DAT_IA_HANDLE ia;

	KD_BAD_HANDLE(test, kdat_ia_device(env->pz, &parent), _IA);
	KD_BAD_ARG(test, kdat_ia_device(env->ia, NULL), 2);
	KD_EXPECT_OK(test, kdat_ia_device(env->ia, &parent));
	KUNIT_EXPECT_FALSE(test, IS_ERR(parent));
	put_device(parent);
	KD_EXPECT_OK(test, kdat_ia_mem_limits(env->ia, &limits));
	KUNIT_EXPECT_GE(test, limits.max_mapping, (u64)PAGE_SIZE);
	KUNIT_EXPECT_LE(test, limits.opt_mapping, limits.max_mapping);
	KUNIT_EXPECT_EQ(test, kdat_ia_lost(env->ia), (DAT_BOOLEAN)DAT_FALSE);
	KUNIT_EXPECT_EQ(test, kdat_ia_lost(env->pz), (DAT_BOOLEAN)DAT_TRUE);
	ia = env->ia;
	fake_ib_unplug(env->dev);
	KUNIT_EXPECT_EQ(test, kdat_ia_lost(ia), (DAT_BOOLEAN)DAT_TRUE);
	KD_GONE(test, kdat_ia_device(ia, &parent));
}

/* Arguments that are wrong, by their number; nothing is asked of the connection manager. */
static void ext_open_args(struct kunit *test)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET }, zero = { .sin_family = AF_INET };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 }, local = { .sin6_family = AF_INET6 };
	const struct sockaddr *to = (struct sockaddr *)&v4, *none = (struct sockaddr *)&zero;
	const struct sockaddr *other = (struct sockaddr *)&v6;
	const struct sockaddr *unscoped = (struct sockaddr *)&local;
	const struct sockaddr strange = { .sa_family = AF_UNIX };
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL, *pasync = &async;
	DAT_IA_HANDLE ia, *pia = &ia;
	const struct {
		struct net *net;
		const struct sockaddr *dst, *src;
		DAT_COUNT qlen;
		DAT_EVD_HANDLE *async;
		DAT_IA_HANDLE *ia;
		DAT_RETURN want;
	} rows[] = {
#define ARG(n)	DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG##n)
#define ADDR(n)	DAT_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_##n)
		{ NULL, to, NULL, 8, pasync, pia, ARG(1) },
		{ &init_net, NULL, NULL, 8, pasync, pia, ARG(2) },
		{ &init_net, to, NULL, 0, pasync, pia, ARG(4) },
		{ &init_net, to, NULL, 8, NULL, pia, ARG(5) },
		{ &init_net, to, NULL, 8, pasync, NULL, ARG(6) },
		{ &init_net, none, NULL, 8, pasync, pia, ADDR(MALFORMED) },
		{ &init_net, &strange, NULL, 8, pasync, pia, ADDR(UNSUPPORTED) },
		{ &init_net, unscoped, NULL, 8, pasync, pia, ADDR(MALFORMED) },
		{ &init_net, to, none, 8, pasync, pia, ADDR(MALFORMED) },
		{ &init_net, other, unscoped, 8, pasync, pia, ADDR(MALFORMED) },
		{ &init_net, to, other, 8, pasync, pia, ADDR(UNSUPPORTED) },
		{ &init_net, to, &strange, 8, pasync, pia, ADDR(UNSUPPORTED) },
	};
	int i;

	v4.sin_addr.s_addr = htonl(0xc0000202);
	v6.sin6_addr.s6_addr[15] = 1;
	local.sin6_addr.s6_addr32[0] = htonl(0xfe800000);
	local.sin6_addr.s6_addr[15] = 1;
	for (i = 0; i < ARRAY_SIZE(rows); i++)
		KUNIT_EXPECT_EQ_MSG(test,
				    (u32)kdat_ia_open_to(rows[i].net, rows[i].dst, rows[i].src,
							 rows[i].qlen, rows[i].async, rows[i].ia),
				    (u32)rows[i].want, "row %d", i);
}

/* What a consumer was told of one adapter. */
struct ext_heard {
	struct notifier_block nb;
	wait_queue_head_t wait;
	char name[DAT_NAME_MAX_LENGTH];
	int added, removed;
};

static int ext_hear(struct notifier_block *nb, unsigned long action, void *name)
{
	struct ext_heard *heard = container_of(nb, struct ext_heard, nb);

	if (!strcmp(name, heard->name)) {
		if (action == KDAT_IA_ADDED)
			heard->added++;
		else if (action == KDAT_IA_REMOVED)
			heard->removed++;
		wake_up(&heard->wait);
	}
	return NOTIFY_DONE;
}

/* One that is there is told once, however early or late the consumer asks; so is its end. */
static void ext_notifier(struct kunit *test)
{
	struct ext_heard heard = { .nb.notifier_call = ext_hear };
	struct kd_env *env = kd_open(test, NULL);

	init_waitqueue_head(&heard.wait);
	snprintf(heard.name, sizeof(heard.name), "%s-1", fake_ib_name(env->dev));
	KUNIT_ASSERT_EQ(test, kdat_register_ia_notifier(&heard.nb), 0);
	KUNIT_EXPECT_NE(test, wait_event_timeout(heard.wait, heard.added, 60 * HZ), 0L);
	KUNIT_EXPECT_EQ(test, heard.removed, 0);
	KUNIT_EXPECT_EQ(test, kdat_unregister_ia_notifier(&heard.nb), 0);
	KUNIT_EXPECT_EQ(test, kdat_unregister_ia_notifier(&heard.nb), -ENOENT);
	/* it is known by now, so the call itself tells */
	KUNIT_ASSERT_EQ(test, kdat_register_ia_notifier(&heard.nb), 0);
	KUNIT_EXPECT_EQ(test, heard.added, 2);
	KUNIT_EXPECT_EQ(test, kdat_register_ia_notifier(&heard.nb), -EEXIST);
	KUNIT_EXPECT_EQ(test, heard.added, 2);
	fake_ib_unplug(env->dev);
	KUNIT_EXPECT_NE(test, wait_event_timeout(heard.wait, heard.removed, 60 * HZ), 0L);
	KUNIT_EXPECT_EQ(test, kdat_unregister_ia_notifier(&heard.nb), 0);
	KUNIT_EXPECT_EQ(test, heard.added, 2);
	KUNIT_EXPECT_EQ(test, heard.removed, 1);
	/* one that has gone is not told */
	KUNIT_ASSERT_EQ(test, kdat_register_ia_notifier(&heard.nb), 0);
	KUNIT_EXPECT_EQ(test, kdat_unregister_ia_notifier(&heard.nb), 0);
	KUNIT_EXPECT_EQ(test, heard.added, 2);
}

/* All that a consumer is told of the devices of a test, in order. */
struct ext_log {
	struct notifier_block nb;
	wait_queue_head_t wait;
	struct completion go;
	bool hold;		/* the next callback waits for @go */
	int n;
	char told[24][DAT_NAME_MAX_LENGTH];
};

static int ext_write(struct notifier_block *nb, unsigned long action, void *name)
{
	struct ext_log *log = container_of(nb, struct ext_log, nb);
	bool hold = READ_ONCE(log->hold);	/* the test may set it once n has grown */

	if (log->n < ARRAY_SIZE(log->told))
		snprintf(log->told[log->n], sizeof(log->told[0]), "%c%s",
			 action == KDAT_IA_ADDED ? '+' : '-', (char *)name);
	WRITE_ONCE(log->n, log->n + 1);
	wake_up(&log->wait);
	if (hold)
		wait_for_completion_timeout(&log->go, KD_LONG);
	return NOTIFY_DONE;
}

static bool ext_written(struct ext_log *log, int n)
{
	return wait_event_timeout(log->wait, READ_ONCE(log->n) >= n, KD_LONG);
}

/* What ib_core does, for a call that it does not export. */
static void ext_rename(struct fake_ib *dev, const char *name)
{
	struct ib_device *ibdev = fake_ib_device(dev);

	WARN_ON(device_rename(&ibdev->dev, name));
	kdapl_client.rename(ibdev, ib_get_client_data(ibdev, &kdapl_client));
}

/*
 * While nobody can be told, two devices exchange their names, a third one goes and comes back, and
 * a fourth one comes and goes: no name is told twice, and what has gone is told first.
 */
static void ext_notifier_order(struct kunit *test)
{
	static const struct fake_ib_caps two_ports = { .ports = 2 };
	static const struct {
		char sign;
		int dev, port;	/* of which device it was the name at first */
	} want[] = {
		{ '+', 0, 1 }, { '+', 0, 2 }, { '+', 1, 1 }, { '+', 2, 1 },
		{ '-', 0, 1 }, { '-', 0, 2 }, { '-', 1, 1 }, { '-', 2, 1 },
		{ '+', 1, 1 }, { '+', 1, 2 }, { '+', 0, 1 }, { '+', 2, 1 },
	};
	struct ext_log *log = kunit_kzalloc(test, sizeof(*log), GFP_KERNEL);
	char name[3][IB_DEVICE_NAME_MAX], line[DAT_NAME_MAX_LENGTH];
	struct fake_ib *dev[5] = {};
	int i;

	KUNIT_ASSERT_NOT_NULL(test, log);
	log->nb.notifier_call = ext_write;
	init_waitqueue_head(&log->wait);
	init_completion(&log->go);
	KUNIT_ASSERT_EQ(test, kdat_register_ia_notifier(&log->nb), 0);
	for (i = 0; i < 5; i++) {
		if (i == 2)
			WRITE_ONCE(log->hold, true);
		dev[i] = fake_ib_create(i ? NULL : &two_ports);
		KUNIT_ASSERT_FALSE(test, IS_ERR(dev[i]));
		if (i < 3) {
			strscpy(name[i], fake_ib_name(dev[i]), sizeof(name[i]));
			KUNIT_EXPECT_TRUE(test, ext_written(log, i + 2));
		}
		if (i == 2 || i == 4)	/* its name is free then */
			fake_ib_destroy(dev[i]);
	}
	ext_rename(dev[0], "kdswap");
	ext_rename(dev[1], name[0]);
	ext_rename(dev[0], name[1]);
	KUNIT_EXPECT_STREQ(test, fake_ib_name(dev[3]), name[2]);
	WRITE_ONCE(log->hold, false);
	complete(&log->go);
	KUNIT_EXPECT_TRUE(test, ext_written(log, ARRAY_SIZE(want)));
	KUNIT_EXPECT_EQ(test, kdat_unregister_ia_notifier(&log->nb), 0);
	KUNIT_EXPECT_EQ(test, log->n, (int)ARRAY_SIZE(want));
	for (i = 0; i < ARRAY_SIZE(want); i++) {
		snprintf(line, sizeof(line), "%c%s-%d", want[i].sign, name[want[i].dev],
			 want[i].port);
		KUNIT_EXPECT_STREQ_MSG(test, log->told[i], line, "line %d", i);
	}
	for (i = 0; i < 5; i++)
		if (i != 2 && i != 4)
			fake_ib_destroy(dev[i]);
}

/* A callback that waits for work of another queue. */
struct ext_waiter {
	struct notifier_block nb;
	struct work_struct work;
	struct completion done, called;
	char name[DAT_NAME_MAX_LENGTH];
	unsigned long left;
};

static void ext_waiter_work(struct work_struct *work)
{
	struct ext_waiter *w = container_of(work, struct ext_waiter, work);

	complete(&w->done);
}

static int ext_wait(struct notifier_block *nb, unsigned long action, void *name)
{
	struct ext_waiter *w = container_of(nb, struct ext_waiter, nb);

	if (action == KDAT_IA_REMOVED && !strcmp(name, w->name)) {
		queue_work(kdapl_misc_wq, &w->work);
		w->left = wait_for_completion_timeout(&w->done, 20 * HZ);
		complete(&w->called);
	}
	return NOTIFY_DONE;
}

/* A callback may wait for what ends connections, even when only the rescuer is left to do it. */
static void ext_notifier_waits(struct kunit *test)
{
	struct ext_waiter w = { .nb.notifier_call = ext_wait };
	struct kd_env *env = kd_open(test, NULL);

	init_completion(&w.done);
	init_completion(&w.called);
	INIT_WORK_ONSTACK(&w.work, ext_waiter_work);
	snprintf(w.name, sizeof(w.name), "%s-1", fake_ib_name(env->dev));
	KUNIT_ASSERT_EQ(test, kdat_register_ia_notifier(&w.nb), 0);
	/* all work in the queues of one CPU */
	kd_pin();
	workqueue_set_max_active(kdapl_misc_wq, 1);
	fake_ib_unplug(env->dev);
	KUNIT_EXPECT_NE(test, wait_for_completion_timeout(&w.called, 60 * HZ), 0UL);
	KUNIT_EXPECT_NE(test, w.left, 0UL);
	workqueue_set_max_active(kdapl_misc_wq, WQ_DFL_ACTIVE);
	KUNIT_EXPECT_EQ(test, kdat_unregister_ia_notifier(&w.nb), 0);
	flush_work(&w.work);
	destroy_work_on_stack(&w.work);
}

static void ext_free(struct kd_sink *sink, const DAT_EVENT *event, bool more)
{
	DAT_EP_HANDLE *ep = sink->arg;

	if (dat_ep_free(*ep) == DAT_SUCCESS)
		*ep = DAT_HANDLE_NULL;
}

/* An EP freed inside an upcall: once nobody uses its EVD and PZ, they can be freed. */
static void ext_wait_unused(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kd_sink *sink = kd_sink(test);
	DAT_EP_HANDLE ep;

	kd_evd_replace(env, &env->conn, 8, DAT_UPCALL_SINGLE_INSTANCE, sink,
		       DAT_EVD_CONNECTION_FLAG | DAT_EVD_SOFTWARE_FLAG, KDAT_EVD_CONTEXT_WORKQUEUE);
	sink->inside = ext_free;
	sink->arg = &ep;
	swap(env->pz, env->pz2);	/* without LMRs of its own */
	KD_EXPECT_OK(test, dat_lmr_free(env->mem[KD_FOREIGN].lmr));
	env->mem[KD_FOREIGN].lmr = DAT_HANDLE_NULL;
	ep = kd_ep_new(env, NULL);
	KD_BAD_HANDLE(test, kdat_wait_unused(DAT_HANDLE_NULL), 1);
	KD_BAD_STATE(test, dat_pz_free(env->pz), PZ_IN_USE);
	KD_ASSERT_OK(test, kd_post_se(env->conn, 1));
	KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, 1, 1));
	KUNIT_EXPECT_PTR_EQ(test, ep, (DAT_EP_HANDLE)DAT_HANDLE_NULL);
	KD_EXPECT_OK(test, kdat_wait_unused(env->conn));
	KD_EXPECT_OK(test, kdat_wait_unused(env->pz));
	KD_EXPECT_OK(test, dat_evd_free(env->conn));
	KD_EXPECT_OK(test, dat_pz_free(env->pz));
	env->conn = DAT_HANDLE_NULL;
	env->pz = DAT_HANDLE_NULL;
}

static struct kunit_case ext_cases[] = {
	KD_CASE(ext_names, "D-101: names of events, statuses and states"),
	KD_CASE(ext_reasons, "D-101,ASY-06,ASY-08: names of reasons; watermarks are told apart"),
	KD_CASE(ext_errno, "D-101: an errno for each return"),
	KD_CASE(ext_device, "D-101: the parent device, limits of mappings, a device that is lost"),
	KD_CASE(ext_open_args, "D-100: kdat_ia_open_to: arguments that are wrong"),
	KD_CASE(ext_notifier, "D-102: IAs that appear and go"),
	KD_CASE(ext_notifier_order, "D-102: devices renamed, gone and back meanwhile; port 2"),
	KD_CASE(ext_notifier_waits, "D-102: a callback waits for the work of later queues"),
	KD_CASE(ext_wait_unused, "D-103: EVD and PZ of an EP that was freed inside an upcall"),
	{}
};

KD_SUITE("kdapl-ext", ext_cases, kd_init, kd_exit);
