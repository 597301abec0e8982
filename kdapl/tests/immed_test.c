// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Writes with immediate data: what the device gets, and the Receives of those that a peer sends,
 * which put nothing into the memory of the Receive.
 */
#include "fake_dma.h"
#include "kd_mem.h"
#include "kd_srq.h"

#define IM_VALUES	{ 0, 1, 0x80000000, 0xffffffff, 0x12345678 }

static DAT_RETURN im_write(struct km *km, int num, DAT_LMR_TRIPLET *iov, u64 cookie,
			   const DAT_RMR_TRIPLET *remote, int flags, u32 immed)
{
	DAT_DTO_COOKIE c = { .as_64 = cookie };

	return kdat_ep_post_rdma_write_immed(km->env.ep, num, iov, c, remote, flags, immed);
}

static void im_write_test(struct kunit *test)
{
	static const u32 values[] = IM_VALUES;
	struct km *km = km_open(test, NULL);
	DAT_RMR_TRIPLET remote;
	DAT_LMR_TRIPLET iov;
	struct fake_ib_wr wr;
	int n, flags;
	DAT_EP_ATTR attr;
	bool silent;
	u32 length;

	kd_attr(&attr);
	attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	km_join(km, 0, &attr);
	for (n = 0; n < 16 * 2 * ARRAY_SIZE(values); n++) {
		flags = n % 16;
		length = n / 16 % 2 ? 5 : 0;
		silent = flags & DAT_COMPLETION_SUPPRESS_FLAG;
		/* first a signaled one: then no signal is forced */
		remote = kd_remote(0x1000, 8, 0x99);
		KD_EXPECT_OK(test, kd_post(km->env.ep, KD_WRITE, 0, NULL, 8, &remote, 0));
		iov = kd_seg(&km->env, KD_RO, 3, length);
		KD_EXPECT_OK(test, im_write(km, 1, &iov, 9, &remote, flags, values[n / 32]));
		memset(&iov, 0xee, sizeof(iov));
		memset(&remote, 0xee, sizeof(remote));
		km_last(km, &wr);
		KUNIT_EXPECT_EQ(test, (int)wr.opcode, (int)IB_WR_RDMA_WRITE_WITH_IMM);
		KUNIT_EXPECT_EQ(test, wr.immed, values[n / 32]);
		KUNIT_EXPECT_EQ(test, wr.remote_addr, 0x1000ULL);
		KUNIT_EXPECT_EQ(test, wr.rkey, 0x99U);
		km_expect_flags(km, &wr, flags);
		KUNIT_EXPECT_EQ(test, wr.num_sge, length ? 1 : 0);
		KUNIT_EXPECT_EQ(test, wr.length, (u64)length);
		fake_ib_complete_all(km->env.qp, false, IB_WC_SUCCESS);
		km_expect(km, DAT_DTO_RDMA_WRITE, 8, DAT_DTO_SUCCESS);
		if (!silent)
			km_expect(km, DAT_DTO_RDMA_WRITE, 9, DAT_DTO_SUCCESS);
		KD_EXPECT_EMPTY(test, km->env.req);
	}
	/* a fault of the peer's memory, and the end */
	remote = kd_remote(0x1000, 8, 0x99);
	KD_EXPECT_OK(test, im_write(km, 0, NULL, 1, &remote, DAT_COMPLETION_SUPPRESS_FLAG, 1));
	km_done(km, IB_WC_REM_ACCESS_ERR);
	km_expect(km, DAT_DTO_RDMA_WRITE, 1, DAT_DTO_ERR_REMOTE_ACCESS);
	km_broken(km);
	KD_EXPECT_OK(test, im_write(km, 0, NULL, 2, &remote, DAT_COMPLETION_SUPPRESS_FLAG, 1));
	km_expect(km, DAT_DTO_RDMA_WRITE, 2, DAT_DTO_ERR_FLUSHED);
}

static void im_list_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 8, 0x99);
	DAT_LMR_TRIPLET iov = kd_seg(&km->env, KD_RO, 0, 8);
	struct kdat_request list[2] = {
		{ .op = KDAT_REQUEST_RDMA_WRITE_IMMED, .immed = 0xfeedf00d },
		{ .op = KDAT_REQUEST_RDMA_WRITE, .immed = 0xfeedf00d },
	};
	struct fake_ib_wr wr;
	int i;

	for (i = 0; i < 2; i++) {
		list[i].num_segments = 1;
		list[i].local_iov = &iov;
		list[i].remote_iov = &remote;
		list[i].user_cookie.as_64 = i;
	}
	KD_EXPECT_OK(test, kdat_ep_post_list(km->env.ep, list, 2, NULL));
	for (i = 0; i < 2; i++) {
		KUNIT_ASSERT_TRUE(test, fake_ib_wr(km->env.qp, false, i, &wr));
		KUNIT_EXPECT_EQ(test, (int)wr.opcode,
				(int)(i ? IB_WR_RDMA_WRITE : IB_WR_RDMA_WRITE_WITH_IMM));
		KUNIT_EXPECT_EQ(test, wr.immed, i ? 0U : 0xfeedf00dU);
		km_finish(km, DAT_DTO_RDMA_WRITE, i);
	}
}

/* What is refused, with which code, and that the device hears nothing of it. */
static void im_refused_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 8, 0x99);
	DAT_LMR_TRIPLET iov[5], wo, far, out;
	struct km_trace before;
	int i;

	for (i = 0; i < 5; i++)
		iov[i] = kd_seg(&km->env, KD_RW, 8 * i, 8);
	wo = kd_seg(&km->env, KD_WO, 0, 8);
	far = kd_seg(&km->env, KD_FOREIGN, 0, 8);
	out = kd_seg(&km->env, KD_RW, KD_MEM_SIZE, 1);
	km_trace(km, &before);
	KD_BAD_ARG(test, im_write(km, -1, iov, 1, &remote, 0, 1), 2);
	KD_BAD_ARG(test, im_write(km, 5, iov, 1, &remote, 0, 1), 2);
	KD_BAD_ARG(test, im_write(km, 1, NULL, 1, &remote, 0, 1), 3);
	KD_BAD_ARG(test, im_write(km, 1, &out, 1, &remote, 0, 1), 3);
	KD_BAD_ARG(test, im_write(km, 1, iov, 1, NULL, 0, 1), 5);
	KD_BAD_ARG(test, im_write(km, 0, NULL, 1, NULL, 0, 1), 5);
	KD_BAD_ARG(test, im_write(km, 1, iov, 1, &remote,
				  DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG, 1), 6);
	KD_BAD_ARG(test, im_write(km, 1, iov, 1, &remote, DAT_COMPLETION_UNSIGNALLED_FLAG, 1), 6);
	/* a plain Write solicits nothing */
	KD_BAD_ARG(test, kd_post(km->env.ep, KD_WRITE, 1, iov, 1, &remote,
				 DAT_COMPLETION_SOLICITED_WAIT_FLAG), 6);
	KD_EXPECT_RET(test, im_write(km, 1, &wo, 1, &remote, 0, 1), DAT_PRIVILEGES_VIOLATION,
		      DAT_PRIVILEGES_READ);
	KD_EXPECT_TYPE(test, im_write(km, 1, &far, 1, &remote, 0, 1), DAT_PROTECTION_VIOLATION);
	KD_EXPECT_TYPE(test, im_write(km, 2, iov, 1, &remote, 0, 1), DAT_LENGTH_ERROR);
	km_untouched(km, &before, "a refusal");
	KD_EXPECT_EMPTY(test, km->env.req);
}

static const char *im_attr(struct km *km)
{
	DAT_PROVIDER_ATTR attr;
	int i;

	KD_EXPECT_OK(km->env.test, dat_ia_query(km->env.ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL,
						&attr));
	for (i = 0; i < attr.num_provider_specific_attr; i++) {
		if (!strcmp(attr.provider_specific_attr[i].name, KDAT_ATTR_IMMED_DATA))
			return attr.provider_specific_attr[i].value;
	}
	return "";
}

/* A device without says so, in every state in which no argument is wrong. */
static void im_none_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 8, 0x99);
	DAT_LMR_TRIPLET iov = kd_seg(&km->env, KD_RW, 0, 8);
	struct kdapl_device *dev = kd_ia(&km->env)->dev;
	struct kdat_request request = {
		.op = KDAT_REQUEST_RDMA_WRITE_IMMED,
		.num_segments = 1,
		.local_iov = &iov,
		.remote_iov = &remote,
	};
	struct km_trace before;

	KUNIT_EXPECT_STREQ(test, im_attr(km), "TRUE");
	kdapl_quirks_derive(dev, true);	/* which the port does not say */
	KUNIT_EXPECT_STREQ(test, im_attr(km), "FALSE");
	km_trace(km, &before);
	KD_EXPECT_RET(test, im_write(km, 1, &iov, 1, &remote, 0, 1), DAT_MODEL_NOT_SUPPORTED,
		      DAT_NO_SUBTYPE);
	KD_EXPECT_RET(test, kdat_ep_post_list(km->env.ep, &request, 1, NULL),
		      DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	KD_BAD_ARG(test, im_write(km, 1, &iov, 1, NULL, 0, 1), 5);
	km_untouched(km, &before, "a refusal");
	KD_EXPECT_OK(test, kd_post(km->env.ep, KD_WRITE, 1, &iov, 1, &remote, 0));
	km_finish(km, DAT_DTO_RDMA_WRITE, 1);
	kdapl_quirks_derive(dev, false);	/* it is not unplugged as what it is not */
	km_down(km);
	KD_EXPECT_OK(test, im_write(km, 1, &iov, 2, &remote, 0, 1));
	km_expect(km, DAT_DTO_RDMA_WRITE, 2, DAT_DTO_ERR_FLUSHED);
}

static void im_post_recv(struct kd_env *env, u32 length, u64 cookie)
{
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_WO, 0, length);

	KD_EXPECT_OK(env->test, kd_post(env->ep, KD_RECV, !!length, &iov, cookie, NULL, 0));
}

/*
 * A Receive, of the EP or of its SRQ. @immed: a Write of @length bytes with this value has used
 * it, and filled nothing; NULL: it has got a message of @length bytes.
 */
static void im_told(struct kunit *test, const DAT_EVENT *event, u64 cookie, u32 length,
		    const u32 *immed)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	const struct kdat_immed *found = kdat_event_immed(event);

	KUNIT_EXPECT_EQ(test, (u32)event->event_number, (u32)DAT_DTO_COMPLETION_EVENT);
	KUNIT_EXPECT_EQ(test, (u64)dto->user_cookie.as_64, cookie);
	KUNIT_EXPECT_EQ(test, (int)dto->status, (int)DAT_DTO_SUCCESS);
	KUNIT_EXPECT_EQ(test, (int)dto->operation, (int)DAT_DTO_RECEIVE);
	KUNIT_EXPECT_EQ(test, (u32)dto->transfered_length, immed ? 0 : length);
	KUNIT_EXPECT_EQ(test, (u32)dto->rmr_context, 0U);
	KUNIT_EXPECT_EQ(test, !!found, !!immed);
	if (immed && found) {
		KUNIT_EXPECT_EQ(test, found->data, *immed);
		KUNIT_EXPECT_EQ(test, (u64)found->length, (u64)length);
	} else if (!immed) {
		KUNIT_EXPECT_TRUE(test, !memchr_inv(event->event_extension_data, 0,
						    sizeof(event->event_extension_data)));
	}
}

static void im_next(struct kd_env *env, u64 cookie, u32 length, const u32 *immed)
{
	DAT_EVENT event;

	KUNIT_ASSERT_TRUE(env->test, kd_next(env->recv, &event));
	im_told(env->test, &event, cookie, length, immed);
}

/* Receives of all lengths, and Writes longer than they; Sends around them, and with a value. */
static void im_recv_test(struct kunit *test)
{
	static const u32 values[] = IM_VALUES;
	struct km *km = km_connected(test, NULL);
	struct kd_env *env = &km->env;
	int i;

	for (i = 0; i < 2 * ARRAY_SIZE(values); i++) {
		const u32 *value = &values[i / 2];

		im_post_recv(env, 64, 1);
		im_post_recv(env, i % 2 ? 64 : 0, 2);
		im_post_recv(env, 64, 3);
		im_post_recv(env, 64, 4);
		KUNIT_EXPECT_EQ(test, fake_ib_recv(env->qp, 7, false), 0);
		KUNIT_EXPECT_EQ(test, fake_ib_recv_immed(env->qp, 100000 * i, *value, true), 0);
		KUNIT_EXPECT_EQ(test, fake_ib_recv_immed(env->qp, 8, *value, false), 0);
		KUNIT_EXPECT_EQ(test, fake_ib_recv(env->qp, 9, false), 0);
		im_next(env, 1, 7, NULL);
		im_next(env, 2, 100000 * i, value);
		im_next(env, 3, 8, NULL);
		im_next(env, 4, 9, NULL);
		KD_EXPECT_EMPTY(test, env->recv);
	}
	/* one that is flushed has none */
	im_post_recv(env, 64, 5);
	km_down(km);
	kd_expect_dto(test, env->recv, 5, DAT_DTO_ERR_FLUSHED);
}

/* It arrives before the connection is reported. */
static void im_early_test(struct kunit *test)
{
	static const u32 value = 0xabcdef01;
	struct kd_env *env = kd_open(test, NULL);
	int i;

	kd_ep(env, NULL);
	for (i = 0; i < 3; i++)
		im_post_recv(env, 64, i);
	KUNIT_EXPECT_EQ(test, fake_ib_recv(env->qp, 5, false), 0);
	KUNIT_EXPECT_EQ(test, fake_ib_recv_immed(env->qp, 5000, value, true), 0);
	KUNIT_EXPECT_EQ(test, fake_ib_recv(env->qp, 6, false), 0);
	KD_EXPECT_EMPTY(test, env->recv);
	kd_connect(env);
	im_next(env, 0, 5, NULL);
	im_next(env, 1, 5000, &value);
	im_next(env, 2, 6, NULL);
}

/* By upcalls, one after the other and many at once, through the backlog. */
static void im_upcall_test(struct kunit *test)
{
	static const u32 values[] = { 0x1823344, 0, 0x55667788, 0 };
	struct kd_env *env = kd_open(test, NULL);
	struct kd_upcalls *up = kd_upcalls_on(env, &env->recv, DAT_EVD_DTO_FLAG);
	int round, i;

	kd_ep(env, NULL);
	kd_connect(env);
	for (round = 0; round < 2; round++) {
		for (i = 0; i < 8; i++)
			im_post_recv(env, 64, i);
		up->n = 0;
		fake_ib_hold_irq(env->dev, !round);
		for (i = 0; i < 8; i++) {
			if (values[i % 4])
				KUNIT_EXPECT_EQ(test, fake_ib_recv_immed(env->qp, i,
									 values[i % 4], true), 0);
			else
				KUNIT_EXPECT_EQ(test, fake_ib_recv(env->qp, i, false), 0);
			if (round)
				KUNIT_EXPECT_EQ(test, kd_upcalls_wait(up, i + 1), i + 1);
		}
		fake_ib_hold_irq(env->dev, false);
		KUNIT_EXPECT_EQ(test, kd_upcalls_wait(up, 8), 8);
		for (i = 0; i < 8; i++)
			im_told(test, &up->events[i], i, i, values[i % 4] ? &values[i % 4] : NULL);
	}
}

static void im_srq_test(struct kunit *test)
{
	static const u32 value = 0xabcdef01;
	struct sq *sq = sq_open(test, NULL);
	struct kd_env *env = &sq->env;

	sq_srq(sq, 8);
	sq_ep(sq, 0);
	sq_post(sq, 1, 4);
	KUNIT_EXPECT_EQ(test, fake_ib_recv_immed(env->qp, 100000, value, true), 0);
	sq_recv(sq, 0, 1, 13);
	KUNIT_EXPECT_EQ(test, fake_ib_recv_immed(env->qp, 8, value, false), 0);
	im_next(env, 1, 100000, &value);
	im_next(env, 2, 13, NULL);
	im_next(env, 3, 8, NULL);
	/* the buffers can be used again, with nothing left of what they brought */
	sq_post(sq, 5, 7);
	sq_recv(sq, 0, 8, 3);
	sq_got(sq, 0, 4, 3);
	sq_got(sq, 0, 5, 3);
	sq_ep_free(sq, 0);
}

/* Where the device has copies of memory: the CPU's bytes in the Receive stay. */
static void im_copies_test(struct kunit *test)
{
	static const struct fake_ib_caps caps = { .copies = true };
	static const u32 value = 0xabcdef01;
	struct km *km = km_on(test, &caps, NULL);
	struct kd_env *env = &km->env;
	u8 *bytes = (u8 *)(uintptr_t)env->mem[KD_WO].addr;

	im_post_recv(env, 64, 1);
	memset(bytes, '-', 64);
	KUNIT_EXPECT_EQ(test, fake_ib_recv_immed(env->qp, 5000, value, true), 0);
	im_next(env, 1, 5000, &value);
	KUNIT_EXPECT_TRUE(test, !memchr_inv(bytes, '-', 64));
}

static struct kunit_case immed_cases[] = {
	KD_CASE(im_write_test, "IMM-01,IMM-02: what reaches the device, for all flags and values"),
	KD_CASE(im_list_test, "IMM-01: in a list"),
	KD_CASE(im_refused_test, "IMM-01,IMM-02,GEN-10: what is refused"),
	KD_CASE(im_none_test, "IMM-06: a device without immediate data"),
	KD_CASE(im_recv_test, "IMM-03,IMM-04,IMM-05: the Receive of it, among others"),
	KD_CASE(im_early_test, "IMM-03,FLUSH-07: before ESTABLISHED"),
	KD_CASE(im_upcall_test, "IMM-03,IMM-05: by upcalls"),
	KD_CASE(im_copies_test, "IMM-04: the memory of the Receive stays as it is"),
	{}
};

KD_SUITE("kdapl-immed", immed_cases, km_init, km_exit);

static struct kunit_case immed_srq_cases[] = {
	KD_CASE(im_srq_test, "IMM-03,IMM-04,IMM-05: a buffer of an SRQ"),
	{}
};

KD_SUITE("kdapl-immed-srq", immed_srq_cases, sq_init, sq_exit);
