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

#include "kd_test.h"

/* In the high half, from 0 on, without a gap; and DAT_NOT_IMPLEMENTED. */
static const char * const status_types[] = {
	"DAT_SUCCESS", "DAT_ABORT", "DAT_CONN_QUAL_IN_USE", "DAT_INSUFFICIENT_RESOURCES",
	"DAT_INTERNAL_ERROR", "DAT_INVALID_HANDLE", "DAT_INVALID_PARAMETER", "DAT_INVALID_STATE",
	"DAT_LENGTH_ERROR", "DAT_MODEL_NOT_SUPPORTED", "DAT_PROVIDER_NOT_FOUND",
	"DAT_PRIVILEGES_VIOLATION", "DAT_PROTECTION_VIOLATION", "DAT_QUEUE_EMPTY",
	"DAT_QUEUE_FULL", "DAT_TIMEOUT_EXPIRED", "DAT_PROVIDER_ALREADY_REGISTERED",
	"DAT_PROVIDER_IN_USE", "DAT_INVALID_ADDRESS", "DAT_INTERRUPTED_CALL",
	"DAT_CONN_QUAL_UNAVAILABLE", "DAT_RESERVED_LMR", "DAT_PORT_IN_USE",
	"DAT_COMM_NOT_SUPPORTED",
};

/* From 0 on, without a gap. */
static const char * const status_subtypes[] = {
	"DAT_NO_SUBTYPE", "DAT_SUB_INTERRUPTED", "DAT_RESOURCE_MEMORY", "DAT_RESOURCE_DEVICE",
	"DAT_RESOURCE_TEP", "DAT_RESOURCE_TEVD", "DAT_RESOURCE_PROTECTION_DOMAIN",
	"DAT_RESOURCE_MEMORY_REGION", "DAT_RESOURCE_ERROR_HANDLER", "DAT_RESOURCE_CREDITS",
	"DAT_RESOURCE_SRQ", "DAT_INVALID_HANDLE_IA", "DAT_INVALID_HANDLE_EP",
	"DAT_INVALID_HANDLE_LMR", "DAT_INVALID_HANDLE_RMR", "DAT_INVALID_HANDLE_PZ",
	"DAT_INVALID_HANDLE_PSP", "DAT_INVALID_HANDLE_RSP", "DAT_INVALID_HANDLE_CR",
	"DAT_INVALID_HANDLE_CNO", "DAT_INVALID_HANDLE_EVD_CR", "DAT_INVALID_HANDLE_EVD_REQUEST",
	"DAT_INVALID_HANDLE_EVD_RECV", "DAT_INVALID_HANDLE_EVD_CONN",
	"DAT_INVALID_HANDLE_EVD_ASYNC", "DAT_INVALID_HANDLE_SRQ", "DAT_INVALID_HANDLE_CSP",
	"DAT_INVALID_HANDLE1", "DAT_INVALID_HANDLE2", "DAT_INVALID_HANDLE3", "DAT_INVALID_HANDLE4",
	"DAT_INVALID_HANDLE5", "DAT_INVALID_HANDLE6", "DAT_INVALID_HANDLE7", "DAT_INVALID_HANDLE8",
	"DAT_INVALID_HANDLE9", "DAT_INVALID_HANDLE10", "DAT_INVALID_ARG1", "DAT_INVALID_ARG2",
	"DAT_INVALID_ARG3", "DAT_INVALID_ARG4", "DAT_INVALID_ARG5", "DAT_INVALID_ARG6",
	"DAT_INVALID_ARG7", "DAT_INVALID_ARG8", "DAT_INVALID_ARG9", "DAT_INVALID_ARG10",
	"DAT_INVALID_STATE_EP_UNCONNECTED", "DAT_INVALID_STATE_EP_ACTCONNPENDING",
	"DAT_INVALID_STATE_EP_PASSCONNPENDING", "DAT_INVALID_STATE_EP_TENTCONNPENDING",
	"DAT_INVALID_STATE_EP_CONNECTED", "DAT_INVALID_STATE_EP_DISCONNECTED",
	"DAT_INVALID_STATE_EP_RESERVED", "DAT_INVALID_STATE_EP_COMPLPENDING",
	"DAT_INVALID_STATE_EP_DISCPENDING", "DAT_INVALID_STATE_EP_PROVIDERCONTROL",
	"DAT_INVALID_STATE_EP_NOTREADY", "DAT_INVALID_STATE_EP_RECV_WATERMARK",
	"DAT_INVALID_STATE_EP_PZ", "DAT_INVALID_STATE_EP_EVD_REQUEST",
	"DAT_INVALID_STATE_EP_EVD_RECV", "DAT_INVALID_STATE_EP_EVD_CONNECT",
	"DAT_INVALID_STATE_EP_UNCONFIGURED", "DAT_INVALID_STATE_EP_UNCONFRESERVED",
	"DAT_INVALID_STATE_EP_UNCONFPASSIVE", "DAT_INVALID_STATE_EP_UNCONFTENTATIVE",
	"DAT_INVALID_STATE_CNO_IN_USE", "DAT_INVALID_STATE_CNO_DEAD", "DAT_INVALID_STATE_EVD_OPEN",
	"DAT_INVALID_STATE_EVD_ENABLED", "DAT_INVALID_STATE_EVD_DISABLED",
	"DAT_INVALID_STATE_EVD_WAITABLE", "DAT_INVALID_STATE_EVD_UNWAITABLE",
	"DAT_INVALID_STATE_EVD_IN_USE", "DAT_INVALID_STATE_EVD_CONFIG_NOTIFY",
	"DAT_INVALID_STATE_EVD_CONFIG_SOLICITED", "DAT_INVALID_STATE_EVD_CONFIG_THRESHOLD",
	"DAT_INVALID_STATE_EVD_WAITER", "DAT_INVALID_STATE_EVD_ASYNC",
	"DAT_INVALID_STATE_IA_IN_USE", "DAT_INVALID_STATE_LMR_IN_USE",
	"DAT_INVALID_STATE_LMR_FREE", "DAT_INVALID_STATE_PZ_IN_USE", "DAT_INVALID_STATE_PZ_FREE",
	"DAT_INVALID_STATE_SRQ_OPERATIONAL", "DAT_INVALID_STATE_SRQ_ERROR",
	"DAT_INVALID_STATE_SRQ_IN_USE", "DAT_PRIVILEGES_READ", "DAT_PRIVILEGES_WRITE",
	"DAT_PRIVILEGES_RDMA_READ", "DAT_PRIVILEGES_RDMA_WRITE", "DAT_PROTECTION_READ",
	"DAT_PROTECTION_WRITE", "DAT_PROTECTION_RDMA_READ", "DAT_PROTECTION_RDMA_WRITE",
	"DAT_INVALID_ADDRESS_UNSUPPORTED", "DAT_INVALID_ADDRESS_UNREACHABLE",
	"DAT_INVALID_ADDRESS_MALFORMED", "DAT_NAME_NOT_REGISTERED", "DAT_MAJOR_NOT_FOUND",
	"DAT_MINOR_NOT_FOUND", "DAT_THREAD_SAFETY_NOT_FOUND",
};

static const char *status_type(u32 value)
{
	if (value == 0x3fff)
		return "DAT_NOT_IMPLEMENTED";
	return value < ARRAY_SIZE(status_types) ? status_types[value] : NULL;
}

static void status_encoding_test(struct kunit *test)
{
	u32 type, subtype;
	DAT_RETURN ret;

	KUNIT_EXPECT_EQ(test, (u32)DAT_SUCCESS, 0U);
	KUNIT_EXPECT_EQ(test, (u32)DAT_CLASS_ERROR, 0x80000000U);
	KUNIT_EXPECT_EQ(test, (u32)DAT_CLASS_WARNING, 0x40000000U);
	for (type = 0x10000; type <= 0x3fff0000; type += 0x10000) {
		if (!status_type(type >> 16))
			continue;
		for (subtype = 0; subtype < ARRAY_SIZE(status_subtypes); subtype++) {
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

/* What it makes of a return; NULL: nothing, it is none. */
static void status_strerror(struct kunit *test, u32 ret, const char *major, const char *minor)
{
	const char *is_major = NULL, *is_minor = NULL;
	u32 is = dat_strerror(ret, &is_major, &is_minor);

	if (!major || !minor) {
		KUNIT_EXPECT_EQ(test, is, 0x80060000U | DAT_INVALID_ARG1);
		return;
	}
	KUNIT_EXPECT_EQ(test, is, 0U);
	KUNIT_ASSERT_NOT_NULL(test, is_major);
	KUNIT_ASSERT_NOT_NULL(test, is_minor);
	KUNIT_EXPECT_STREQ(test, is_major, major);
	KUNIT_EXPECT_STREQ(test, is_minor, minor);
}

static void status_strerror_test(struct kunit *test)
{
	const char *minor;
	u32 i;

	for (i = 0; i <= 0x3fff; i++)
		status_strerror(test, i ? 0x80000000U | i << 16 : 0, status_type(i), "");
	for (i = 0; i <= 0xffff; i++) {
		minor = i < ARRAY_SIZE(status_subtypes) ? status_subtypes[i] : NULL;
		status_strerror(test, 0x80060000U | i, "DAT_INVALID_PARAMETER", i ? minor : "");
	}
}

static void status_strerror_args_test(struct kunit *test)
{
	const char *major = NULL, *minor = NULL;

	status_strerror(test, DAT_SUCCESS, "DAT_SUCCESS", "");
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
	{ 0, 0 }, { -ENOMEM, 0x80030000 | 2 }, { -EAGAIN, 0x80030000 | 3 },
	{ -EDQUOT, 0x80030000 | 3 }, { -EMFILE, 0x80030000 | 3 }, { -ENFILE, 0x80030000 | 3 },
	{ -ENOBUFS, 0x80030000 | 3 }, { -ENOSPC, 0x80030000 | 3 }, { -EADDRINUSE, 0x80020000 },
	{ -EADDRNOTAVAIL, 0x80120000 | 97 }, { -EHOSTUNREACH, 0x80120000 | 97 },
	{ -ENETDOWN, 0x80120000 | 97 }, { -ENETUNREACH, 0x80120000 | 97 },
	{ -EAFNOSUPPORT, 0x80120000 | 96 }, { -EOPNOTSUPP, 0x80090000 },
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

/* Section 3 of the semantics, by numbers of the DAT side. */
static const u8 status_wcs[] = {
	[IB_WC_SUCCESS] = 0, [IB_WC_LOC_LEN_ERR] = 2, [IB_WC_LOC_QP_OP_ERR] = 3,
	[IB_WC_LOC_EEC_OP_ERR] = 3, [IB_WC_LOC_PROT_ERR] = 4, [IB_WC_WR_FLUSH_ERR] = 1,
	[IB_WC_MW_BIND_ERR] = 11, [IB_WC_BAD_RESP_ERR] = 5, [IB_WC_LOC_ACCESS_ERR] = 4,
	[IB_WC_REM_INV_REQ_ERR] = 7, [IB_WC_REM_ACCESS_ERR] = 6, [IB_WC_REM_OP_ERR] = 7,
	[IB_WC_RETRY_EXC_ERR] = 8, [IB_WC_RNR_RETRY_EXC_ERR] = 9, [IB_WC_LOC_RDD_VIOL_ERR] = 4,
	[IB_WC_REM_INV_RD_REQ_ERR] = 7, [IB_WC_REM_ABORT_ERR] = 7, [IB_WC_INV_EECN_ERR] = 8,
	[IB_WC_INV_EEC_STATE_ERR] = 8, [IB_WC_FATAL_ERR] = 8, [IB_WC_RESP_TIMEOUT_ERR] = 9,
	[IB_WC_GENERAL_ERR] = 8,
};

static void status_wc_test(struct kunit *test)
{
	int wc, want;

	KUNIT_EXPECT_EQ(test, (int)ARRAY_SIZE(status_wcs), IB_WC_GENERAL_ERR + 1);
	/* a status from the future is a transport error, never success */
	for (wc = -1; wc < 1000; wc++) {
		want = wc >= 0 && wc <= IB_WC_GENERAL_ERR ? status_wcs[wc] : DAT_DTO_ERR_TRANSPORT;
		KUNIT_EXPECT_EQ_MSG(test, (int)kdapl_wc_status(wc), want, "%d", wc);
		/* soft-RoCE reports a too long message this way */
		if (wc == IB_WC_LOC_QP_OP_ERR)
			want = DAT_DTO_ERR_LOCAL_LENGTH;
		KUNIT_EXPECT_EQ_MSG(test, (int)kdapl_wc_recv_status(wc), want, "Receive, %d", wc);
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
	KD_CASE(status_strerror_test,
		"MISC-ERR-01: dat_strerror knows all types and subtypes of 2.0 and no other"),
	KD_CASE(status_strerror_args_test, "MISC-ERR-01,MISC-ERR-02: success, NULL arguments"),
	KD_CASE(status_errno_test, "GEN-06: every errno has one return"),
	KD_CASE(status_wc_test,
		"STAT-01,STAT-03,RECV-10,SEND-21: every completion status has one DTO status"),
	KD_CASE(status_state_test, "GEN-03: every EP state has one subtype"),
	{}
};

KD_SUITE("kdapl-status", status_cases, NULL, NULL);
