// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Codes: the encoding of returns, dat_strerror() and the tables that translate
 * errno, work completion status and Endpoint state. The tables here repeat the
 * specification as numbers and strings, and every possible input is tried.
 */
#include <linux/err.h>
#include <linux/string.h>

#include "../ia/ia_api.h"
#include "kd_case.h"

struct status_name {
	u32 value;
	const char *name;
};

static const struct status_name status_types[] = {
	{ 0x00000000, "DAT_SUCCESS" },
	{ 0x00010000, "DAT_ABORT" },
	{ 0x00020000, "DAT_CONN_QUAL_IN_USE" },
	{ 0x00030000, "DAT_INSUFFICIENT_RESOURCES" },
	{ 0x00040000, "DAT_INTERNAL_ERROR" },
	{ 0x00050000, "DAT_INVALID_HANDLE" },
	{ 0x00060000, "DAT_INVALID_PARAMETER" },
	{ 0x00070000, "DAT_INVALID_STATE" },
	{ 0x00080000, "DAT_LENGTH_ERROR" },
	{ 0x00090000, "DAT_MODEL_NOT_SUPPORTED" },
	{ 0x000a0000, "DAT_PROVIDER_NOT_FOUND" },
	{ 0x000b0000, "DAT_PRIVILEGES_VIOLATION" },
	{ 0x000c0000, "DAT_PROTECTION_VIOLATION" },
	{ 0x000d0000, "DAT_QUEUE_EMPTY" },
	{ 0x000e0000, "DAT_QUEUE_FULL" },
	{ 0x000f0000, "DAT_TIMEOUT_EXPIRED" },
	{ 0x00100000, "DAT_PROVIDER_ALREADY_REGISTERED" },
	{ 0x00110000, "DAT_PROVIDER_IN_USE" },
	{ 0x00120000, "DAT_INVALID_ADDRESS" },
	{ 0x00130000, "DAT_INTERRUPTED_CALL" },
	{ 0x00140000, "DAT_CONN_QUAL_UNAVAILABLE" },
	{ 0x00150000, "DAT_RESERVED_LMR" },
	{ 0x00160000, "DAT_PORT_IN_USE" },
	{ 0x00170000, "DAT_COMM_NOT_SUPPORTED" },
	{ 0x3fff0000, "DAT_NOT_IMPLEMENTED" },
};

static const struct status_name status_subtypes[] = {
	{ 0, "DAT_NO_SUBTYPE" },
	{ 1, "DAT_SUB_INTERRUPTED" },
	{ 2, "DAT_RESOURCE_MEMORY" },
	{ 3, "DAT_RESOURCE_DEVICE" },
	{ 4, "DAT_RESOURCE_TEP" },
	{ 5, "DAT_RESOURCE_TEVD" },
	{ 6, "DAT_RESOURCE_PROTECTION_DOMAIN" },
	{ 7, "DAT_RESOURCE_MEMORY_REGION" },
	{ 8, "DAT_RESOURCE_ERROR_HANDLER" },
	{ 9, "DAT_RESOURCE_CREDITS" },
	{ 10, "DAT_RESOURCE_SRQ" },
	{ 11, "DAT_INVALID_HANDLE_IA" },
	{ 12, "DAT_INVALID_HANDLE_EP" },
	{ 13, "DAT_INVALID_HANDLE_LMR" },
	{ 14, "DAT_INVALID_HANDLE_RMR" },
	{ 15, "DAT_INVALID_HANDLE_PZ" },
	{ 16, "DAT_INVALID_HANDLE_PSP" },
	{ 17, "DAT_INVALID_HANDLE_RSP" },
	{ 18, "DAT_INVALID_HANDLE_CR" },
	{ 19, "DAT_INVALID_HANDLE_CNO" },
	{ 20, "DAT_INVALID_HANDLE_EVD_CR" },
	{ 21, "DAT_INVALID_HANDLE_EVD_REQUEST" },
	{ 22, "DAT_INVALID_HANDLE_EVD_RECV" },
	{ 23, "DAT_INVALID_HANDLE_EVD_CONN" },
	{ 24, "DAT_INVALID_HANDLE_EVD_ASYNC" },
	{ 25, "DAT_INVALID_HANDLE_SRQ" },
	{ 26, "DAT_INVALID_HANDLE_CSP" },
	{ 27, "DAT_INVALID_HANDLE1" },
	{ 28, "DAT_INVALID_HANDLE2" },
	{ 29, "DAT_INVALID_HANDLE3" },
	{ 30, "DAT_INVALID_HANDLE4" },
	{ 31, "DAT_INVALID_HANDLE5" },
	{ 32, "DAT_INVALID_HANDLE6" },
	{ 33, "DAT_INVALID_HANDLE7" },
	{ 34, "DAT_INVALID_HANDLE8" },
	{ 35, "DAT_INVALID_HANDLE9" },
	{ 36, "DAT_INVALID_HANDLE10" },
	{ 37, "DAT_INVALID_ARG1" },
	{ 38, "DAT_INVALID_ARG2" },
	{ 39, "DAT_INVALID_ARG3" },
	{ 40, "DAT_INVALID_ARG4" },
	{ 41, "DAT_INVALID_ARG5" },
	{ 42, "DAT_INVALID_ARG6" },
	{ 43, "DAT_INVALID_ARG7" },
	{ 44, "DAT_INVALID_ARG8" },
	{ 45, "DAT_INVALID_ARG9" },
	{ 46, "DAT_INVALID_ARG10" },
	{ 47, "DAT_INVALID_STATE_EP_UNCONNECTED" },
	{ 48, "DAT_INVALID_STATE_EP_ACTCONNPENDING" },
	{ 49, "DAT_INVALID_STATE_EP_PASSCONNPENDING" },
	{ 50, "DAT_INVALID_STATE_EP_TENTCONNPENDING" },
	{ 51, "DAT_INVALID_STATE_EP_CONNECTED" },
	{ 52, "DAT_INVALID_STATE_EP_DISCONNECTED" },
	{ 53, "DAT_INVALID_STATE_EP_RESERVED" },
	{ 54, "DAT_INVALID_STATE_EP_COMPLPENDING" },
	{ 55, "DAT_INVALID_STATE_EP_DISCPENDING" },
	{ 56, "DAT_INVALID_STATE_EP_PROVIDERCONTROL" },
	{ 57, "DAT_INVALID_STATE_EP_NOTREADY" },
	{ 58, "DAT_INVALID_STATE_EP_RECV_WATERMARK" },
	{ 59, "DAT_INVALID_STATE_EP_PZ" },
	{ 60, "DAT_INVALID_STATE_EP_EVD_REQUEST" },
	{ 61, "DAT_INVALID_STATE_EP_EVD_RECV" },
	{ 62, "DAT_INVALID_STATE_EP_EVD_CONNECT" },
	{ 63, "DAT_INVALID_STATE_EP_UNCONFIGURED" },
	{ 64, "DAT_INVALID_STATE_EP_UNCONFRESERVED" },
	{ 65, "DAT_INVALID_STATE_EP_UNCONFPASSIVE" },
	{ 66, "DAT_INVALID_STATE_EP_UNCONFTENTATIVE" },
	{ 67, "DAT_INVALID_STATE_CNO_IN_USE" },
	{ 68, "DAT_INVALID_STATE_CNO_DEAD" },
	{ 69, "DAT_INVALID_STATE_EVD_OPEN" },
	{ 70, "DAT_INVALID_STATE_EVD_ENABLED" },
	{ 71, "DAT_INVALID_STATE_EVD_DISABLED" },
	{ 72, "DAT_INVALID_STATE_EVD_WAITABLE" },
	{ 73, "DAT_INVALID_STATE_EVD_UNWAITABLE" },
	{ 74, "DAT_INVALID_STATE_EVD_IN_USE" },
	{ 75, "DAT_INVALID_STATE_EVD_CONFIG_NOTIFY" },
	{ 76, "DAT_INVALID_STATE_EVD_CONFIG_SOLICITED" },
	{ 77, "DAT_INVALID_STATE_EVD_CONFIG_THRESHOLD" },
	{ 78, "DAT_INVALID_STATE_EVD_WAITER" },
	{ 79, "DAT_INVALID_STATE_EVD_ASYNC" },
	{ 80, "DAT_INVALID_STATE_IA_IN_USE" },
	{ 81, "DAT_INVALID_STATE_LMR_IN_USE" },
	{ 82, "DAT_INVALID_STATE_LMR_FREE" },
	{ 83, "DAT_INVALID_STATE_PZ_IN_USE" },
	{ 84, "DAT_INVALID_STATE_PZ_FREE" },
	{ 85, "DAT_INVALID_STATE_SRQ_OPERATIONAL" },
	{ 86, "DAT_INVALID_STATE_SRQ_ERROR" },
	{ 87, "DAT_INVALID_STATE_SRQ_IN_USE" },
	{ 88, "DAT_PRIVILEGES_READ" },
	{ 89, "DAT_PRIVILEGES_WRITE" },
	{ 90, "DAT_PRIVILEGES_RDMA_READ" },
	{ 91, "DAT_PRIVILEGES_RDMA_WRITE" },
	{ 92, "DAT_PROTECTION_READ" },
	{ 93, "DAT_PROTECTION_WRITE" },
	{ 94, "DAT_PROTECTION_RDMA_READ" },
	{ 95, "DAT_PROTECTION_RDMA_WRITE" },
	{ 96, "DAT_INVALID_ADDRESS_UNSUPPORTED" },
	{ 97, "DAT_INVALID_ADDRESS_UNREACHABLE" },
	{ 98, "DAT_INVALID_ADDRESS_MALFORMED" },
	{ 99, "DAT_NAME_NOT_REGISTERED" },
	{ 100, "DAT_MAJOR_NOT_FOUND" },
	{ 101, "DAT_MINOR_NOT_FOUND" },
	{ 102, "DAT_THREAD_SAFETY_NOT_FOUND" },
};

static const char *status_lookup(const struct status_name *table, size_t n, u32 value)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (table[i].value == value)
			return table[i].name;
	return NULL;
}

static void status_encoding_test(struct kunit *test)
{
	u32 type, subtype, i, j;
	DAT_RETURN ret;

	KUNIT_EXPECT_EQ(test, (u32)DAT_SUCCESS, 0U);
	KUNIT_EXPECT_EQ(test, (u32)DAT_CLASS_ERROR, 0x80000000U);
	KUNIT_EXPECT_EQ(test, (u32)DAT_CLASS_WARNING, 0x40000000U);
	for (i = 1; i < ARRAY_SIZE(status_types); i++) {
		type = status_types[i].value;
		for (j = 0; j < ARRAY_SIZE(status_subtypes); j++) {
			subtype = status_subtypes[j].value;
			ret = DAT_ERROR(type, subtype);
			KUNIT_EXPECT_EQ(test, (u32)ret, 0x80000000U | type | subtype);
			KUNIT_EXPECT_EQ(test, (u32)DAT_GET_TYPE(ret), type);
			KUNIT_EXPECT_EQ(test, (u32)DAT_GET_SUBTYPE(ret), subtype);
			KUNIT_EXPECT_EQ(test, (u32)DAT_IS_WARNING(ret), 0U);
			KUNIT_EXPECT_EQ(test, (u32)kdapl_err(type, subtype), (u32)ret);
		}
	}
	KUNIT_EXPECT_NE(test, (u32)DAT_IS_WARNING(DAT_CLASS_WARNING), 0U);
}

static void status_arg_test(struct kunit *test)
{
	unsigned int i;

	for (i = 0; i < 20; i++)
		KUNIT_EXPECT_EQ(test, (u32)kdapl_arg_err(i),
				0x80060000U | (i >= 1 && i <= 10 ? 36 + i : 0));
}

static void status_strerror_types_test(struct kunit *test)
{
	const char *major, *minor, *want;
	DAT_RETURN ret;
	u32 type;

	for (type = 0; type <= 0x3fff; type++) {
		want = status_lookup(status_types, ARRAY_SIZE(status_types), type << 16);
		major = NULL;
		minor = NULL;
		ret = dat_strerror(type ? 0x80000000U | type << 16 : 0, &major, &minor);
		if (!want) {
			KUNIT_EXPECT_EQ(test, (u32)ret, 0x80060000U | DAT_INVALID_ARG1);
			continue;
		}
		KUNIT_EXPECT_EQ(test, (u32)ret, 0U);
		KUNIT_ASSERT_NOT_NULL(test, major);
		KUNIT_ASSERT_NOT_NULL(test, minor);
		KUNIT_EXPECT_STREQ(test, major, want);
		KUNIT_EXPECT_STREQ(test, minor, "");
	}
}

static void status_strerror_subtypes_test(struct kunit *test)
{
	const char *major, *minor, *want;
	DAT_RETURN ret;
	u32 subtype;

	for (subtype = 0; subtype <= 0xffff; subtype++) {
		want = status_lookup(status_subtypes, ARRAY_SIZE(status_subtypes), subtype);
		major = NULL;
		minor = NULL;
		ret = dat_strerror(0x80060000U | subtype, &major, &minor);
		if (!want) {
			KUNIT_EXPECT_EQ(test, (u32)ret, 0x80060000U | DAT_INVALID_ARG1);
			continue;
		}
		KUNIT_EXPECT_EQ(test, (u32)ret, 0U);
		KUNIT_ASSERT_NOT_NULL(test, major);
		KUNIT_ASSERT_NOT_NULL(test, minor);
		KUNIT_EXPECT_STREQ(test, major, "DAT_INVALID_PARAMETER");
		KUNIT_EXPECT_STREQ(test, minor, subtype ? want : "");
	}
}

static void status_strerror_args_test(struct kunit *test)
{
	const char *major = NULL, *minor = NULL;

	KUNIT_EXPECT_EQ(test, (u32)dat_strerror(DAT_SUCCESS, &major, &minor), 0U);
	KUNIT_EXPECT_STREQ(test, major, "DAT_SUCCESS");
	KUNIT_EXPECT_STREQ(test, minor, "");
	KUNIT_EXPECT_EQ(test, (u32)dat_strerror(DAT_SUCCESS, &major, NULL), 0U);
	KUNIT_EXPECT_EQ(test, (u32)dat_strerror(DAT_SUCCESS, NULL, &minor),
			0x80060000U | DAT_INVALID_ARG2);
	KUNIT_EXPECT_EQ(test, (u32)dat_strerror(0x80060025U, NULL, NULL),
			0x80060000U | DAT_INVALID_ARG2);
}

/* What the kernel may say and what the consumer hears; all others are our own fault. */
static const struct {
	int err;
	u32 ret;
} status_errnos[] = {
	{ 0, 0 },
	{ -ENOMEM, 0x80030000 | 2 },
	{ -EAGAIN, 0x80030000 | 3 },
	{ -EDQUOT, 0x80030000 | 3 },
	{ -EMFILE, 0x80030000 | 3 },
	{ -ENFILE, 0x80030000 | 3 },
	{ -ENOBUFS, 0x80030000 | 3 },
	{ -ENOSPC, 0x80030000 | 3 },
	{ -EADDRINUSE, 0x80020000 },
	{ -EADDRNOTAVAIL, 0x80120000 | 97 },
	{ -EHOSTUNREACH, 0x80120000 | 97 },
	{ -ENETDOWN, 0x80120000 | 97 },
	{ -ENETUNREACH, 0x80120000 | 97 },
	{ -EAFNOSUPPORT, 0x80120000 | 96 },
	{ -EOPNOTSUPP, 0x80090000 },
	{ -EPROTONOSUPPORT, 0x80090000 },
};

static void status_errno_test(struct kunit *test)
{
	const char *major, *minor;
	u32 ret, want;
	size_t i;
	int err;

	for (err = 0; err >= -MAX_ERRNO; err--) {
		want = 0x80040000;
		for (i = 0; i < ARRAY_SIZE(status_errnos); i++)
			if (status_errnos[i].err == err)
				want = status_errnos[i].ret;
		ret = kdapl_errno_ret(err);
		KUNIT_EXPECT_EQ(test, ret, want);
		KUNIT_EXPECT_EQ(test, (u32)dat_strerror(ret, &major, &minor), 0U);
	}
	/* an errno with the wrong sign is not a success */
	KUNIT_EXPECT_EQ(test, (u32)kdapl_errno_ret(EINVAL), 0x80040000U);
}

/* Section 3 of the semantics, by numbers of both sides. */
static const struct {
	int wc;
	int dto;
} status_wcs[] = {
	{ IB_WC_SUCCESS, 0 },
	{ IB_WC_LOC_LEN_ERR, 2 },
	{ IB_WC_LOC_QP_OP_ERR, 3 },
	{ IB_WC_LOC_EEC_OP_ERR, 3 },
	{ IB_WC_LOC_PROT_ERR, 4 },
	{ IB_WC_WR_FLUSH_ERR, 1 },
	{ IB_WC_MW_BIND_ERR, 11 },
	{ IB_WC_BAD_RESP_ERR, 5 },
	{ IB_WC_LOC_ACCESS_ERR, 4 },
	{ IB_WC_REM_INV_REQ_ERR, 7 },
	{ IB_WC_REM_ACCESS_ERR, 6 },
	{ IB_WC_REM_OP_ERR, 7 },
	{ IB_WC_RETRY_EXC_ERR, 8 },
	{ IB_WC_RNR_RETRY_EXC_ERR, 9 },
	{ IB_WC_LOC_RDD_VIOL_ERR, 4 },
	{ IB_WC_REM_INV_RD_REQ_ERR, 7 },
	{ IB_WC_REM_ABORT_ERR, 7 },
	{ IB_WC_INV_EECN_ERR, 8 },
	{ IB_WC_INV_EEC_STATE_ERR, 8 },
	{ IB_WC_FATAL_ERR, 8 },
	{ IB_WC_RESP_TIMEOUT_ERR, 9 },
	{ IB_WC_GENERAL_ERR, 8 },
};

static void status_wc_test(struct kunit *test)
{
	size_t i;
	int wc;

	KUNIT_EXPECT_EQ(test, (int)ARRAY_SIZE(status_wcs), IB_WC_GENERAL_ERR + 1);
	for (i = 0; i < ARRAY_SIZE(status_wcs); i++)
		KUNIT_EXPECT_EQ(test, (int)kdapl_wc_status(status_wcs[i].wc), status_wcs[i].dto);
	/* a status from the future is a transport error, never success */
	for (wc = IB_WC_GENERAL_ERR + 1; wc < 1000; wc++) {
		KUNIT_EXPECT_EQ(test, (int)kdapl_wc_status(wc), (int)DAT_DTO_ERR_TRANSPORT);
		KUNIT_EXPECT_EQ(test, (int)kdapl_wc_recv_status(wc), (int)DAT_DTO_ERR_TRANSPORT);
	}
	KUNIT_EXPECT_EQ(test, (int)kdapl_wc_status(-1), (int)DAT_DTO_ERR_TRANSPORT);
	KUNIT_EXPECT_EQ(test, (int)kdapl_wc_recv_status(-1), (int)DAT_DTO_ERR_TRANSPORT);
}

static void status_wc_recv_test(struct kunit *test)
{
	size_t i;
	int want;

	for (i = 0; i < ARRAY_SIZE(status_wcs); i++) {
		/* soft-RoCE reports a too long message this way */
		want = status_wcs[i].wc == IB_WC_LOC_QP_OP_ERR ? 2 : status_wcs[i].dto;
		KUNIT_EXPECT_EQ(test, (int)kdapl_wc_recv_status(status_wcs[i].wc), want);
	}
}

static const u8 status_states[] = {
	[DAT_EP_STATE_UNCONNECTED] = 47,
	[DAT_EP_STATE_UNCONFIGURED_UNCONNECTED] = 63,
	[DAT_EP_STATE_RESERVED] = 53,
	[DAT_EP_STATE_UNCONFIGURED_RESERVED] = 64,
	[DAT_EP_STATE_PASSIVE_CONNECTION_PENDING] = 49,
	[DAT_EP_STATE_UNCONFIGURED_PASSIVE] = 65,
	[DAT_EP_STATE_ACTIVE_CONNECTION_PENDING] = 48,
	[DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING] = 50,
	[DAT_EP_STATE_UNCONFIGURED_TENTATIVE] = 66,
	[DAT_EP_STATE_CONNECTED] = 51,
	[DAT_EP_STATE_DISCONNECT_PENDING] = 55,
	[DAT_EP_STATE_DISCONNECTED] = 52,
	[DAT_EP_STATE_COMPLETION_PENDING] = 54,
	[DAT_EP_STATE_CONNECTED_SINGLE_PATH] = 51,
	[DAT_EP_STATE_CONNECTED_MULTI_PATH] = 51,
};

static void status_state_test(struct kunit *test)
{
	unsigned int state;

	KUNIT_EXPECT_EQ(test, (int)ARRAY_SIZE(status_states), 15);
	for (state = 0; state < ARRAY_SIZE(status_states); state++) {
		KUNIT_EXPECT_EQ(test, (int)kdapl_state_subtype(state), (int)status_states[state]);
		KUNIT_EXPECT_EQ(test, (u32)kdapl_state_err(state),
				0x80070000U | status_states[state]);
	}
	for (; state < 100; state++)
		KUNIT_EXPECT_EQ(test, (int)kdapl_state_subtype(state), (int)DAT_NO_SUBTYPE);
}

static struct kunit_case status_cases[] = {
	KD_CASE(status_encoding_test, "GEN-03: class, type and subtype of every pair"),
	KD_CASE(status_arg_test, "GEN-03,GEN-09: positions of parameters"),
	KD_CASE(status_strerror_types_test,
		"MISC-ERR-01: dat_strerror knows all types of 2.0 and no other"),
	KD_CASE(status_strerror_subtypes_test,
		"MISC-ERR-01: dat_strerror knows all subtypes of 2.0 and no other"),
	KD_CASE(status_strerror_args_test, "MISC-ERR-01,MISC-ERR-02: success, NULL arguments"),
	KD_CASE(status_errno_test, "GEN-06: every errno has one return"),
	KD_CASE(status_wc_test, "STAT-01,STAT-03: every work completion status has one DTO status"),
	KD_CASE(status_wc_recv_test, "RECV-10,SEND-21: statuses of receives"),
	KD_CASE(status_state_test, "GEN-03: every EP state has one subtype"),
	{}
};

static struct kunit_suite status_suite = {
	.name = "kdapl-status",
	.test_cases = status_cases,
};

kunit_test_suite(status_suite);
