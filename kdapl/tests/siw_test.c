// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * What is done for soft-iWARP only, and that the consumer sees nothing of it:
 * short requests split at pages, empty Reads that go out as Writes, and the
 * requests of our own that keep a fresh connection awake.
 */
#include <linux/mm.h>

#include "kd_upcall.h"

#define SIW_KEY		0x4711
#define SIW_SHORT	64	/* longer ones take another path in its transmitter */

static struct kd_env *siw_open(struct kunit *test, enum rdma_driver_id driver, DAT_EP_ATTR *attr)
{
	struct fake_ib_caps caps = { .iwarp = true, .driver = driver };
	struct kd_env *env = kd_open(test, &caps);
	struct kdapl_device *dev = kd_ia(env)->dev;

	kdapl_quirks_derive(dev, true);	/* which the port does not say */
	KUNIT_EXPECT_EQ(test, dev->caps.short_page_bug, driver == RDMA_DRIVER_SIW);
	kd_attr(attr);
	attr->max_rdma_read_iov = 1;
	return env;
}

/* The same on soft-iWARP with a connected EP. */
static struct kd_env *siw_connected(struct kunit *test)
{
	struct kd_env *env;
	DAT_EP_ATTR attr;

	env = siw_open(test, RDMA_DRIVER_SIW, &attr);
	kd_ep(env, &attr);
	kd_connect(env);
	return env;
}

/* The device may not be unplugged as what it is not. */
static void siw_close(struct kd_env *env)
{
	kd_ep_free(env);
	kdapl_quirks_derive(kd_ia(env)->dev, false);
}

static DAT_RETURN siw_post(struct kd_env *env, enum kd_call call, u64 cookie, u32 length,
			   int flags)
{
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, length, SIW_KEY);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);

	iov.segment_length = min(length, 8U);
	return kd_post(env->ep, call, 1, &iov, cookie, &remote, flags);
}

/* The consumer sees what it has posted. */
static void siw_expect(struct kd_env *env, u64 cookie, enum kd_call call, u32 length)
{
	static const DAT_DTOS ops[] = {
		[KD_SEND] = DAT_DTO_SEND, [KD_WRITE] = DAT_DTO_RDMA_WRITE,
		[KD_READ] = DAT_DTO_RDMA_READ,
	};
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;

	dto = &event.event_data.dto_completion_event_data;
	KUNIT_ASSERT_TRUE(env->test, kd_next(env->req, &event));
	KUNIT_EXPECT_EQ(env->test, dto->user_cookie.as_64, cookie);
	KUNIT_EXPECT_EQ(env->test, (u32)dto->operation, (u32)ops[call]);
	KUNIT_EXPECT_EQ(env->test, (u32)dto->transfered_length, length);
}

/* What the device got is these bytes, and no short piece crosses a page. */
static void siw_check(struct kunit *test, const struct fake_ib_wr *wr, const DAT_LMR_TRIPLET *iov,
		      bool split)
{
	u64 at = iov->virtual_address;
	int i;

	KUNIT_EXPECT_EQ(test, wr->length, (u64)iov->segment_length);
	for (i = 0; i < wr->num_sge; i++) {
		const struct ib_sge *sge = &wr->sge[i];

		KUNIT_EXPECT_EQ(test, sge->addr, at);
		KUNIT_EXPECT_EQ(test, sge->lkey, iov->lmr_context);
		KUNIT_EXPECT_GT(test, sge->length, 0U);
		if (split)
			KUNIT_EXPECT_LE(test, offset_in_page(sge->addr) + sge->length, PAGE_SIZE);
		at += sge->length;
	}
	KUNIT_EXPECT_EQ(test, at, iov->virtual_address + iov->segment_length);
	if (!split)
		KUNIT_EXPECT_EQ(test, wr->num_sge, 1);
}

static void siw_split_test(struct kunit *test)
{
	static const enum rdma_driver_id drivers[] = { RDMA_DRIVER_SIW, RDMA_DRIVER_IRDMA };
	static const enum kd_call calls[] = { KD_SEND, KD_WRITE, KD_READ };
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 0, SIW_KEY);
	struct page *pages = alloc_pages(GFP_KERNEL | __GFP_ZERO, 1);
	DAT_LMR_TRIPLET iov = {};
	struct kdapl_device *dev;
	struct fake_ib_wr wr;
	u32 length, before;
	struct kd_env *env;
	struct kd_mem mem;
	DAT_EP_ATTR attr;
	int d, i, split;

	for (d = 0; d < ARRAY_SIZE(drivers); d++) {
		env = siw_open(test, drivers[d], &attr);
		attr.max_request_iov = 1;
		attr.max_rdma_write_iov = 1;
		kd_ep(env, &attr);
		kd_connect(env);
		/* memory with a page boundary in it; registered as on the device that it is */
		dev = kd_ia(env)->dev;
		kdapl_quirks_derive(dev, false);
		dev->caps.any_page_size = false;
		KD_ASSERT_OK(test, kd_lmr_create(env->ia, env->pz, page_address(pages),
						 2 * PAGE_SIZE, DAT_MEM_PRIV_ALL_FLAG, &mem));
		kdapl_quirks_derive(dev, true);
		iov.lmr_context = mem.lmr_context;
		for (i = 0; i < ARRAY_SIZE(calls) * 71 * 71; i++) {
			enum kd_call call = calls[i / (71 * 71)];

			length = i / 71 % 71;
			before = i % 71;
			if (!length || before > length)
				continue;
			iov.virtual_address = mem.addr + PAGE_SIZE - before;
			iov.segment_length = length;
			remote.segment_length = length;
			KD_EXPECT_OK(test, kd_post(env->ep, call, 1, &iov, 1, &remote, 0));
			KUNIT_ASSERT_TRUE(test, fake_ib_last_wr(env->qp, false, &wr));
			split = drivers[d] == RDMA_DRIVER_SIW && call != KD_READ &&
				length <= SIW_SHORT;
			siw_check(test, &wr, &iov, split);
			fake_ib_complete_all(env->qp, false, IB_WC_SUCCESS);
			siw_expect(env, 1, call, length);
		}
		siw_close(env);
		KD_EXPECT_OK(test, dat_lmr_free(mem.lmr));
		kd_again(test);
	}
	__free_pages(pages, 1);
}

/* As many Reads at a time as the peer takes, and not one more. */
static void siw_reads_test(struct kunit *test)
{
	struct kd_env *env = siw_connected(test);
	int i, depth = kd_conn_of(env)->read_depth;

	KUNIT_ASSERT_GT(test, depth, 0);
	KUNIT_ASSERT_LT(test, depth, 8);
	for (i = 0; i < depth; i++)
		KD_EXPECT_OK(test, siw_post(env, KD_READ, i, 8, 0));
	KD_EXPECT_RET(test, siw_post(env, KD_READ, i, 8, 0), DAT_INSUFFICIENT_RESOURCES,
		      DAT_RESOURCE_TEP);
	KD_EXPECT_OK(test, siw_post(env, KD_SEND, i, 8, 0));
	fake_ib_complete_all(env->qp, false, IB_WC_SUCCESS);
	kd_expect_dtos(test, env->req, 0, depth + 1, DAT_DTO_SUCCESS);
	KD_EXPECT_OK(test, siw_post(env, KD_READ, i, 8, 0));
	siw_close(env);
}

/* A Read of nothing: a Write of nothing on soft-iWARP, a Read elsewhere; a Read to the consumer. */
static void siw_empty_read_test(struct kunit *test)
{
	static const enum rdma_driver_id drivers[] = { RDMA_DRIVER_SIW, RDMA_DRIVER_IRDMA };
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 0, SIW_KEY);
	struct kd_env *env;
	struct fake_ib_wr wr;
	DAT_LMR_TRIPLET iov;
	DAT_EP_ATTR attr;
	int d, i, posted;

	for (d = 0; d < ARRAY_SIZE(drivers); d++) {
		env = siw_open(test, drivers[d], &attr);
		kd_ep(env, &attr);
		kd_connect(env);
		iov = kd_seg(env, KD_RW, 0, 8);
		for (i = 0; i < 4; i++) {
			KD_EXPECT_OK(test, kd_post(env->ep, KD_READ, i & 1, &iov, 7, &remote,
						   i & 2 ? DAT_COMPLETION_BARRIER_FENCE_FLAG : 0));
			KUNIT_ASSERT_TRUE(test, fake_ib_last_wr(env->qp, false, &wr));
			KUNIT_EXPECT_EQ(test, wr.length, 0ULL);
			KUNIT_EXPECT_EQ(test, (int)wr.opcode, d ? (int)IB_WR_RDMA_READ :
							       (int)IB_WR_RDMA_WRITE);
			KUNIT_EXPECT_EQ(test, wr.num_sge, d);
			fake_ib_complete_all(env->qp, false, IB_WC_SUCCESS);
			siw_expect(env, 7, KD_READ, 0);
			KD_EXPECT_EMPTY(test, env->req);
		}
		/* in order with Reads of something, which finish late */
		KD_EXPECT_OK(test, siw_post(env, KD_READ, 1, 8, 0));
		KD_EXPECT_OK(test, siw_post(env, KD_READ, 2, 0, 0));
		KD_EXPECT_OK(test, siw_post(env, KD_SEND, 3, 8, 0));
		if (!d) {
			posted = fake_ib_posted(env->qp, false);
			fake_ib_complete_seq(env->qp, false, posted - 2, IB_WC_SUCCESS);
			fake_ib_complete_seq(env->qp, false, posted - 1, IB_WC_SUCCESS);
			KD_EXPECT_EMPTY(test, env->req);
		}
		fake_ib_complete_all(env->qp, false, IB_WC_SUCCESS);
		kd_expect_dtos(test, env->req, 1, 3, DAT_DTO_SUCCESS);
		siw_close(env);
		kd_again(test);
	}
}

static void siw_kick(struct kd_env *env)
{
	unsigned int posted = fake_ib_posted(env->qp, false);
	struct kdapl_conn *conn = kd_conn_of(env);
	struct fake_ib_wr wr;

	mutex_lock(&conn->lock);
	kdapl_conn_start_kicks(conn);
	mutex_unlock(&conn->lock);
	KD_WAIT(env->test, fake_ib_posted(env->qp, false) != posted);
	KUNIT_ASSERT_TRUE(env->test, fake_ib_last_wr(env->qp, false, &wr));
	KUNIT_EXPECT_EQ(env->test, (int)wr.opcode, (int)IB_WR_RDMA_WRITE);
	KUNIT_EXPECT_EQ(env->test, wr.num_sge, 0);
}

/* Our own request is nobody's: no event, no slot, no business. */
static void siw_kick_test(struct kunit *test)
{
	static const int depths[] = { 1, 2, 4, 16 };
	DAT_BOOLEAN recv_idle, request_idle;
	struct kd_env *env;
	DAT_EP_ATTR attr;
	int i, n, depth;

	env = siw_open(test, RDMA_DRIVER_SIW, &attr);
	for (i = 0; i < 2 * ARRAY_SIZE(depths); i++) {
		depth = depths[i / 2];
		attr.max_request_dtos = depth;
		attr.max_rdma_read_out = i & 1 ? 4 : 0;
		kd_ep(env, &attr);
		kd_connect(env);
		siw_kick(env);
		KD_EXPECT_OK(test, dat_ep_get_status(env->ep, NULL, &recv_idle, &request_idle));
		KUNIT_EXPECT_EQ_MSG(test, (int)request_idle, (int)DAT_TRUE, "depth %d", depth);
		for (n = 0; n < depth; n++)
			KD_EXPECT_OK(test, siw_post(env, KD_SEND, n, 8, 0));
		KD_EXPECT_TYPE(test, siw_post(env, KD_SEND, 9, 8, 0), DAT_INSUFFICIENT_RESOURCES);
		fake_ib_complete_all(env->qp, false, IB_WC_SUCCESS);
		kd_expect_dtos(test, env->req, 0, depth, DAT_DTO_SUCCESS);
		/* an end with one under way is an end like any other */
		KD_EXPECT_OK(test, dat_ep_disconnect(env->ep, i & 2 ? DAT_CLOSE_GRACEFUL_FLAG :
								      DAT_CLOSE_ABRUPT_FLAG));
		KD_WAIT(test, kd_state(env, env->ep) == DAT_EP_STATE_DISCONNECTED ||
			(fake_ib_complete_all(env->qp, false, IB_WC_SUCCESS), false));
		KD_EXPECT_END(env, DISCONNECTED);
		KD_EXPECT_EMPTY(test, env->req);
		kd_ep_free(env);
	}
	siw_close(env);
}

/* One at a time, a few of them, and none when the device says no. */
static void siw_kick_count_test(struct kunit *test)
{
	struct kd_env *env = siw_connected(test);
	unsigned int posted;

	siw_kick(env);
	posted = fake_ib_posted(env->qp, false);
	/* it has not come back: no other is sent */
	kdapl_conn_kick(kd_conn_of(env));
	KUNIT_EXPECT_EQ(test, fake_ib_posted(env->qp, false), posted);
	KD_EXPECT_EMPTY(test, env->req);
	/* it fails: the connection breaks, and nothing else is told */
	fake_ib_complete(env->qp, false, IB_WC_RETRY_EXC_ERR);
	KD_EXPECT_EMPTY(test, env->req);
	KD_EXPECT_END(env, BROKEN);
	KD_EXPECT_EMPTY(test, env->req);
	siw_close(env);
	kd_again(test);

	env = siw_connected(test);
	fake_ib_fail(env->dev, FAKE_IB_POST_SEND, 1, -ENOTCONN);
	kdapl_conn_kick(kd_conn_of(env));
	/* the consumer's requests go on, as far as the device lets them */
	KD_EXPECT_OK(test, siw_post(env, KD_SEND, 1, 8, 0));
	kd_end(env, DAT_CONNECTION_EVENT_DISCONNECTED);
	KD_EXPECT_END(env, DISCONNECTED);
	siw_close(env);
}

/* The last one was 2^31 requests ago, or almost 2^32: it is not under way any more. */
static void siw_kick_wrap_test(struct kunit *test)
{
	static const u32 ago[] = { 1, BIT(31) - 1, BIT(31), BIT(31) + 1, U32_MAX - 16, U32_MAX };
	struct kd_env *env = siw_connected(test);
	struct kdapl_conn *conn = kd_conn_of(env);
	unsigned int posted;
	int i;

	kdapl_conn_kick(conn);
	fake_ib_complete_all(env->qp, false, IB_WC_SUCCESS);
	KD_EXPECT_EMPTY(test, env->req);
	for (i = 0; i < ARRAY_SIZE(ago); i++) {
		KD_EXPECT_OK(test, siw_post(env, KD_SEND, i, 8, DAT_COMPLETION_SUPPRESS_FLAG));
		posted = fake_ib_posted(env->qp, false);
		conn->kick_pos = conn->sq->tail - ago[i];
		kdapl_conn_kick(conn);
		KUNIT_EXPECT_EQ_MSG(test, fake_ib_posted(env->qp, false), posted + 1, "%u ago",
				    ago[i]);
		/* this one is */
		kdapl_conn_kick(conn);
		KUNIT_EXPECT_EQ_MSG(test, fake_ib_posted(env->qp, false), posted + 1, "%u ago",
				    ago[i]);
		fake_ib_complete_all(env->qp, false, IB_WC_SUCCESS);
		KD_EXPECT_EMPTY(test, env->req);
	}
	siw_close(env);
}

/* What proves that all is done proves it of no Read: the disconnect waits for that one, too. */
static void siw_marker_test(struct kunit *test)
{
	struct kd_env *env = siw_connected(test);
	unsigned int posted;

	posted = fake_ib_posted(env->qp, false);
	KD_EXPECT_OK(test, siw_post(env, KD_READ, 1, 8, 0));
	KD_EXPECT_OK(test, dat_ep_disconnect(env->ep, DAT_CLOSE_GRACEFUL_FLAG));
	KD_WAIT(test, fake_ib_posted(env->qp, false) == posted + 2);
	KUNIT_EXPECT_EQ(test, fake_ib_complete_seq(env->qp, false, posted + 1, IB_WC_SUCCESS), 0);
	KD_EXPECT_EMPTY(test, env->req);
	flush_workqueue(kdapl_misc_wq);
	KD_EXPECT_STATE(env, env->ep, DISCONNECT_PENDING);
	KUNIT_ASSERT_EQ(test, fake_ib_complete_seq(env->qp, false, posted, IB_WC_SUCCESS), 0);
	kd_expect_dto(test, env->req, 1, DAT_DTO_SUCCESS);
	KD_EXPECT_END(env, DISCONNECTED);
	siw_close(env);
}

/* Reads complete out of order. The consumer sees the order of posting, and so do late flushes. */
static void siw_order_test(struct kunit *test)
{
	struct kd_env *env = siw_connected(test);
	unsigned int first;
	int i;

	for (i = 0; i < 40; i++) {	/* more than the queue has entries */
		first = fake_ib_posted(env->qp, false);
		KD_EXPECT_OK(test, siw_post(env, KD_SEND, 1, 8, 0));
		KD_EXPECT_OK(test, siw_post(env, KD_SEND, 2, 8, DAT_COMPLETION_SUPPRESS_FLAG));
		KD_EXPECT_OK(test, siw_post(env, KD_SEND, 3, 8, 0));
		fake_ib_complete_all(env->qp, false, IB_WC_SUCCESS);
		kd_expect_dto(test, env->req, 1, DAT_DTO_SUCCESS);
		kd_expect_dto(test, env->req, 3, DAT_DTO_SUCCESS);
		if (i % 4)
			continue;
		/* a Read that takes its time */
		first = fake_ib_posted(env->qp, false);
		KD_EXPECT_OK(test, siw_post(env, KD_SEND, 4, 8, 0));
		KD_EXPECT_OK(test, siw_post(env, KD_READ, 5, 8, 0));
		KD_EXPECT_OK(test, siw_post(env, KD_SEND, 6, 8, 0));
		KUNIT_EXPECT_EQ(test, fake_ib_complete(env->qp, false, IB_WC_SUCCESS), 0);
		KUNIT_EXPECT_EQ(test, fake_ib_complete_seq(env->qp, false, first + 2,
							   IB_WC_SUCCESS), 0);
		kd_expect_dto(test, env->req, 4, DAT_DTO_SUCCESS);
		KD_EXPECT_EMPTY(test, env->req);
		KUNIT_EXPECT_EQ(test, fake_ib_complete(env->qp, false, IB_WC_SUCCESS), 0);
		kd_expect_dto(test, env->req, 5, DAT_DTO_SUCCESS);
		kd_expect_dto(test, env->req, 6, DAT_DTO_SUCCESS);
	}
	first = fake_ib_posted(env->qp, false);
	for (i = 0; i < 3; i++)
		KD_EXPECT_OK(test, siw_post(env, KD_SEND, i, 8,
					    i == 1 ? DAT_COMPLETION_SUPPRESS_FLAG : 0));
	KUNIT_EXPECT_EQ(test, fake_ib_complete_seq(env->qp, false, first + 2,
						   IB_WC_WR_FLUSH_ERR), 0);
	KUNIT_EXPECT_EQ(test, fake_ib_complete_seq(env->qp, false, first, IB_WC_SUCCESS), 0);
	kd_expect_dto(test, env->req, 0, DAT_DTO_SUCCESS);
	KD_EXPECT_EMPTY(test, env->req);
	KUNIT_EXPECT_EQ(test, fake_ib_complete(env->qp, false, IB_WC_WR_FLUSH_ERR), 0);
	kd_expect_dtos(test, env->req, 1, 2, DAT_DTO_ERR_FLUSHED);
	KD_EXPECT_EMPTY(test, env->req);
	kd_end(env, DAT_CONNECTION_EVENT_DISCONNECTED);
	KD_EXPECT_END(env, DISCONNECTED);
	siw_close(env);
}

/*
 * The connection breaks while the response to a Read arrives, which the device forgets. A
 * suppressed Send behind it succeeded, as the Send after that has shown, or the marker does.
 */
static void siw_forgotten_test(struct kunit *test)
{
	struct kd_env *env;
	unsigned int first;
	int i;

	for (i = 0; i < 2; i++) {
		env = siw_connected(test);
		fake_ib_hold_flush(env->dev, true);
		first = fake_ib_posted(env->qp, false);
		KD_EXPECT_OK(test, siw_post(env, KD_READ, 1, 8, 0));
		KD_EXPECT_OK(test, siw_post(env, KD_SEND, 2, 8, DAT_COMPLETION_SUPPRESS_FLAG));
		KD_EXPECT_OK(test, siw_post(env, KD_SEND, 3, 8, 0));
		if (!i)
			KUNIT_EXPECT_EQ(test, fake_ib_complete_seq(env->qp, false, first + 2,
								   IB_WC_SUCCESS), 0);
		KD_EXPECT_EMPTY(test, env->req);
		kdapl_conn_end(kd_conn_of(env), DAT_CONNECTION_EVENT_BROKEN);
		KD_WAIT(test, fake_ib_posted(env->qp, false) == first + 4);
		if (i)
			KUNIT_EXPECT_EQ(test, fake_ib_complete_seq(env->qp, false, first + 2,
								   IB_WC_WR_FLUSH_ERR), 0);
		KUNIT_EXPECT_EQ(test, fake_ib_complete_seq(env->qp, false, first + 3,
							   IB_WC_WR_FLUSH_ERR), 0);
		KD_EXPECT_END(env, BROKEN);
		kd_expect_dto(test, env->req, 1, DAT_DTO_ERR_FLUSHED);
		kd_expect_dto(test, env->req, 3, i ? DAT_DTO_ERR_FLUSHED : DAT_DTO_SUCCESS);
		KD_EXPECT_EMPTY(test, env->req);
		fake_ib_hold_flush(env->dev, false);
		siw_close(env);
		kd_again(test);
	}
}

/*
 * A graceful disconnect that goes on slowly, while an upcall keeps the EVD from seeing that: it is
 * not cut short.
 */
static void siw_slow_test(struct kunit *test)
{
	struct kd_sink *sink = kd_sink(test);
	struct kdapl_conn *conn;
	struct kd_env *env;
	unsigned int first;
	DAT_EP_ATTR attr;

	env = siw_open(test, RDMA_DRIVER_SIW, &attr);
	kd_evd_replace(env, &env->req, 64, DAT_UPCALL_SINGLE_INSTANCE, sink, DAT_EVD_DTO_FLAG,
		       KDAT_EVD_CONTEXT_WORKQUEUE);
	kd_ep(env, &attr);
	kd_connect(env);
	conn = kd_conn_of(env);
	kd_sink_pass(sink, 0);
	KD_EXPECT_OK(test, siw_post(env, KD_SEND, 1, 8, 0));
	fake_ib_complete_all(env->qp, false, IB_WC_SUCCESS);
	KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, 1, 0));
	first = fake_ib_posted(env->qp, false);
	KD_EXPECT_OK(test, siw_post(env, KD_READ, 2, 8, 0));
	KD_EXPECT_OK(test, siw_post(env, KD_READ, 3, 8, 0));
	KD_EXPECT_OK(test, dat_ep_disconnect(env->ep, DAT_CLOSE_GRACEFUL_FLAG));
	KUNIT_EXPECT_EQ(test, fake_ib_complete_seq(env->qp, false, first, IB_WC_SUCCESS), 0);
	/* time is up, had nothing come back */
	mutex_lock(&conn->lock);
	conn->sq_drain.deadline = jiffies - 1;
	mod_delayed_work(kdapl_misc_wq, &conn->timer, 0);
	mutex_unlock(&conn->lock);
	flush_delayed_work(&conn->timer);
	flush_workqueue(kdapl_misc_wq);
	KD_EXPECT_STATE(env, env->ep, DISCONNECT_PENDING);
	KUNIT_EXPECT_EQ(test, (int)fake_ib_qp_state(env->qp), (int)IB_QPS_RTS);
	fake_ib_complete_all(env->qp, false, IB_WC_SUCCESS);
	kd_sink_pass(sink, INT_MAX);
	KD_EXPECT_END(env, DISCONNECTED);
	kd_sink_expect(test, sink, 3);
	siw_close(env);
}

static struct kunit_case siw_cases[] = {
	KD_CASE(siw_split_test, "SEND-04,RDMAW-02: short requests across a page"),
	KD_CASE(siw_reads_test, "EP-POST-17: no more Reads than the peer takes"),
	KD_CASE(siw_empty_read_test, "RDMAR-02,RDMAR-10,EP-POST-21: Reads of nothing"),
	KD_CASE(siw_kick_test, "EP-POST-17,EP-STA-01,STAT-05: our own requests are nobody's"),
	KD_CASE(siw_kick_count_test, "STAT-01,STAT-05: one of our own at a time"),
	KD_CASE(siw_kick_wrap_test, "STAT-01: one of our own after very many requests"),
	KD_CASE(siw_marker_test,
		"FLUSH-09,EPSM-16: a graceful disconnect waits for Reads out of order"),
	KD_CASE(siw_order_test, "EP-POST-21,FLAG-03: in the order of posting, however they end"),
	KD_CASE(siw_slow_test, "FLUSH-09: a graceful disconnect goes on while an upcall runs"),
	KD_CASE(siw_forgotten_test, "FLAG-03,FLUSH-09: suppressed behind a Read that is forgotten"),
	{}
};

KD_SUITE("kdapl-siw", siw_cases, kd_init, kd_exit);
