// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Each handle of each call: NULL, made up, freed, of the wrong kind. And what takes any kind.
 */
#include <linux/in.h>
#include <linux/net.h>
#include <linux/socket.h>

#include "kd_conn.h"

#define BH_KINDS		KD_ZOO
#define DAT_HANDLE_TYPE_ANY	BH_KINDS
#define BH_QUAL			7

/* A call may be there more than once, its line may not. */
static const struct bh_arg {
	int line;
	const char *call, *parameter;
	unsigned int kind;
	DAT_RETURN_SUBTYPE subtype;
	bool null_ok;
} bh_args[] = {
#define HANDLE_ARG(call, parameter, kind, subtype, ...)				\
	{ __LINE__, #call, #parameter, DAT_HANDLE_TYPE_##kind,			\
	  DAT_INVALID_HANDLE##subtype, false },
#define NULL_ARG(call, parameter, kind, subtype, ...)				\
	{ __LINE__, #call, #parameter, DAT_HANDLE_TYPE_##kind,			\
	  DAT_INVALID_HANDLE##subtype, true },
#include "all_calls.h"
};

/**
 * struct bh - what the calls work with
 * @env: the usual
 * @good: a live handle of each kind
 * @dead: one of a freed object of each kind
 * @dead_async: of the EVD that went with an IA
 */
struct bh {
	struct kd_env *env;
	DAT_HANDLE good[BH_KINDS];
	DAT_HANDLE dead[BH_KINDS];
	DAT_EVD_HANDLE dead_async;
};

static noinline DAT_RETURN bh_call(struct bh *bh, int line, DAT_HANDLE h)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(BH_QUAL) };
	struct kdat_request request = { .op = KDAT_REQUEST_SEND };
	struct kdat_conn_attr conn = KDAT_CONN_ATTR_INIT;
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };
	DAT_SRQ_ATTR srq = { .max_recv_dtos = 8, .max_recv_iov = 1 };
	DAT_REGION_DESCRIPTION region = { .for_va = bh->env->buf };
	DAT_COMM comm = { AF_INET, SOCK_STREAM, 0 };
	struct kdat_pdata_limits pdata;
	struct device *parent;
	struct kdat_mem_limits limits;
	DAT_LMR_CONTEXT context;
	DAT_LMR_TRIPLET lmr = {};
	DAT_RMR_TRIPLET rmr = {};
	DAT_CONTEXT cookie = {};
	struct kdat_sg sg = {};
	struct kdat_dma_map map = {};
	DAT_HANDLE_TYPE kind;
	DAT_CONN_QUAL qual;
	DAT_VLEN length;
	DAT_HANDLE out;

	switch (line) {
#define GOOD(kind)	(bh->good[DAT_HANDLE_TYPE_##kind])
#define HANDLE_ARG(call, parameter, kind, subtype, ...)	case __LINE__: return __VA_ARGS__;
#define NULL_ARG(call, parameter, kind, subtype, ...)	case __LINE__: return __VA_ARGS__;
#include "all_calls.h"
	}
	return DAT_SUCCESS;
}

static void bh_refused(struct bh *bh, const struct bh_arg *arg, DAT_HANDLE h, const char *what)
{
	KUNIT_EXPECT_EQ_MSG(bh->env->test, (u32)bh_call(bh, arg->line, h),
			    (u32)DAT_ERROR(DAT_INVALID_HANDLE, arg->subtype),
			    "%s: %s is %s", arg->call, arg->parameter, what);
}

/* What is not freed goes with the IA, in kd_exit(). */
static struct bh *bh_open(struct kunit *test)
{
	struct bh *bh = kunit_kzalloc(test, sizeof(*bh), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, bh);
	bh->env = kd_open(test, NULL);
	bh->good[DAT_HANDLE_TYPE_IA] = bh->env->ia;
	kd_zoo(bh->env, BH_QUAL, bh->good);
	kd_zoo(bh->env, BH_QUAL, bh->dead);
	kd_zoo_free(bh->env, bh->dead);
	bh->dead[DAT_HANDLE_TYPE_IA] = kd_ia_more(bh->env, &bh->dead_async);
	KD_EXPECT_OK(test, dat_ia_close(bh->dead[DAT_HANDLE_TYPE_IA], DAT_CLOSE_GRACEFUL_FLAG));
	return bh;
}

/* No two handles differ in one bit: each number is given out once. */
static void bh_garbage_test(struct kunit *test)
{
	static const u64 garbage[] = {
		1, 2, 7, 8, 0xff, 0x1000, 0xdeadbeef, 0x8000000000000000ULL, U64_MAX, U64_MAX - 1,
		0x5555555555555555ULL, 0xffff888000000000ULL, 0x00000001ffffffffULL,
	};
	struct bh *bh = bh_open(test);
	const struct bh_arg *arg;
	int kind, i;

	for (arg = bh_args; arg < bh_args + ARRAY_SIZE(bh_args); arg++) {
		if (!arg->null_ok)
			bh_refused(bh, arg, DAT_HANDLE_NULL, "NULL");
		for (i = 0; i < ARRAY_SIZE(garbage); i++)
			bh_refused(bh, arg, (DAT_HANDLE)(uintptr_t)garbage[i], "garbage");
		bh_refused(bh, arg, bh, "a pointer to memory");
		kind = arg->kind == DAT_HANDLE_TYPE_ANY ? DAT_HANDLE_TYPE_EP : arg->kind;
		for (i = 0; i < BITS_PER_LONG; i++)
			bh_refused(bh, arg, (DAT_HANDLE)((uintptr_t)bh->good[kind] ^ BIT(i)),
				   "a good one but for one bit");
	}
}

static void bh_kind_test(struct kunit *test)
{
	struct bh *bh = bh_open(test);
	const struct bh_arg *arg;
	int kind;

	for (arg = bh_args; arg < bh_args + ARRAY_SIZE(bh_args); arg++)
		for (kind = 0; kind < BH_KINDS; kind++)
			if (kind != arg->kind && arg->kind != DAT_HANDLE_TYPE_ANY)
				bh_refused(bh, arg, bh->good[kind], "of another kind");
}

/* A handle dies with its object, and does not come back with the next ones. */
static void bh_dead_test(struct kunit *test)
{
	struct bh *bh = bh_open(test);
	const struct bh_arg *arg;
	DAT_PZ_HANDLE pz[20];
	int i, kind;

	for (i = 0; i < ARRAY_SIZE(pz); i++)
		KD_EXPECT_OK(test, dat_pz_create(bh->env->ia, &pz[i]));
	for (arg = bh_args; arg < bh_args + ARRAY_SIZE(bh_args); arg++) {
		for (kind = 0; kind < BH_KINDS; kind++)
			bh_refused(bh, arg, bh->dead[kind], "of a freed object");
		bh_refused(bh, arg, bh->dead_async, "of a freed object");
	}
	for (i = 0; i < ARRAY_SIZE(pz); i++)
		KD_EXPECT_OK(test, dat_pz_free(pz[i]));
}

static void bh_context_test(struct kunit *test)
{
	const u64 word = 0xfedcba9876543210ULL;
	struct bh *bh = bh_open(test);
	DAT_HANDLE_TYPE type;
	DAT_CONTEXT context;
	int kind;

	for (kind = 0; kind < BH_KINDS; kind++) {
		KD_EXPECT_OK(test, dat_get_handle_type(bh->good[kind], &type));
		KUNIT_EXPECT_EQ(test, (int)type, kind);
		KD_EXPECT_OK(test, dat_get_consumer_context(bh->good[kind], &context));
		KUNIT_EXPECT_EQ_MSG(test, context.as_64, 0, "kind %d", kind);
		context.as_64 = word + kind;
		KD_EXPECT_OK(test, dat_set_consumer_context(bh->good[kind], context));
	}
	for (kind = 0; kind < BH_KINDS; kind++) {
		KD_EXPECT_OK(test, dat_get_consumer_context(bh->good[kind], &context));
		KUNIT_EXPECT_EQ_MSG(test, context.as_64, word + kind, "kind %d", kind);
		context.as_64 = 0;
		KD_EXPECT_OK(test, dat_set_consumer_context(bh->good[kind], context));
		context.as_64 = 1;
		KD_EXPECT_OK(test, dat_get_consumer_context(bh->good[kind], &context));
		KUNIT_EXPECT_EQ(test, context.as_64, 0);
		KD_BAD_ARG(test, dat_get_consumer_context(bh->good[kind], NULL), 2);
		KD_BAD_ARG(test, dat_get_handle_type(bh->good[kind], NULL), 2);
	}
}

static struct kunit_case bh_cases[] = {
	KD_CASE(bh_garbage_test, "GEN-04,SIL-02: NULL, numbers, one wrong bit, in every call"),
	KD_CASE(bh_kind_test, "GEN-04,SIL-02: live handles of another kind, in every call"),
	KD_CASE(bh_dead_test, "GEN-05,IA-CLOSE-04,CR-ACC-04: of freed objects, in every call"),
	KD_CASE(bh_context_test, "CTXT-01,CTXT-02,CTXT-03,SIL-43: context and type of any object"),
	{}
};

KD_SUITE("kdapl-bad-handle", bh_cases, kd_init, kd_exit);
