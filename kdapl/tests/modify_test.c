// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * dat_ep_modify: what may change when, what a change does to the QP behind the
 * EP, to Receives that are posted, and to the objects it names.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/random.h>

#include "kd_test.h"

#define MOD_BITS	31

static const u64 mod_fixed = DAT_EP_FIELD_IA_HANDLE | DAT_EP_FIELD_EP_STATE |
	DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR | DAT_EP_FIELD_LOCAL_PORT_QUAL |
	DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR | DAT_EP_FIELD_REMOTE_PORT_QUAL |
	DAT_EP_FIELD_SRQ_HANDLE;

/* The EP as the consumer sees it. */
static void mod_query(struct kd_env *env, DAT_EP_PARAM *param)
{
	memset(param, 0, sizeof(*param));
	KD_EXPECT_OK(env->test, dat_ep_query(env->ep, DAT_EP_FIELD_ALL, param));
}

/* A modify that is refused and leaves no trace. */
static void mod_refused(struct kd_env *env, u64 mask, const DAT_EP_PARAM *want, u32 type,
			u32 subtype, const char *what)
{
	unsigned int outstanding = fake_ib_outstanding(env->qp, true);
	u32 number = env->qp->qp_num;
	DAT_EP_PARAM before, after;
	DAT_RETURN ret;

	mod_query(env, &before);
	ret = dat_ep_modify(env->ep, mask, want);
	KUNIT_EXPECT_EQ_MSG(env->test, (u32)DAT_GET_TYPE(ret), type, "%s, mask %#llx", what, mask);
	if (subtype)
		KUNIT_EXPECT_EQ_MSG(env->test, (u32)ret, (u32)DAT_ERROR(type, subtype),
				    "%s, mask %#llx", what, mask);
	mod_query(env, &after);
	KUNIT_EXPECT_EQ_MSG(env->test, memcmp(&before, &after, sizeof(before)), 0,
			    "%s, mask %#llx", what, mask);
	KUNIT_EXPECT_PTR_EQ(env->test, kd_conn_of(env)->qp, env->qp);
	KUNIT_EXPECT_EQ(env->test, env->qp->qp_num, number);
	KUNIT_EXPECT_EQ(env->test, fake_ib_outstanding(env->qp, true), outstanding);
}

/* A modify that succeeds; env->qp follows. Was the QP replaced? */
static bool mod_done(struct kd_env *env, u64 mask, const DAT_EP_PARAM *want, const char *what)
{
	u32 number = env->qp ? env->qp->qp_num : 0;
	struct kdapl_conn *conn;
	DAT_RETURN ret;

	ret = dat_ep_modify(env->ep, mask, want);
	KUNIT_EXPECT_EQ_MSG(env->test, (u32)ret, (u32)DAT_SUCCESS, "%s, mask %#llx", what, mask);
	conn = kd_conn_of(env);
	env->qp = conn ? conn->qp : NULL;
	return (env->qp ? env->qp->qp_num : 0) != number;
}

/* May the parameter be modified in the state, by table 6.3? */
static bool mod_allowed(u64 bit, const char *letter)
{
	bool u = !strcmp(letter, "U"), t = !strcmp(letter, "T");

	if (bit == DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW)
		return true;
	if (bit == DAT_EP_FIELD_PZ_HANDLE)
		return u || t;
	if (bit & (DAT_EP_FIELD_EP_ATTR_NUM_TRANSPORT_ATTR |
		   DAT_EP_FIELD_EP_ATTR_TRANSPORT_SPECIFIC_ATTR |
		   DAT_EP_FIELD_EP_ATTR_NUM_PROVIDER_ATTR |
		   DAT_EP_FIELD_EP_ATTR_PROVIDER_SPECIFIC_ATTR))
		return u;
	return u || t || !strcmp(letter, "R") || !strcmp(letter, "P");
}

/* Every bit in every state, with the value the EP has. */
static void mod_state_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_EP_PARAM param;
	int i, bit;
	u64 mask;

	kd_ep(env, NULL);
	mod_query(env, &param);
	for (i = 0; i < KD_STATES; i++) {
		const char *letter = kd_states[i].letter;
		u32 subtype = kd_states[i].subtype;
		bool u = kd_states[i].state == DAT_EP_STATE_UNCONNECTED;

		kd_set_state(env, kd_states[i].state);
		for (bit = 0; bit < 64; bit++) {
			mask = 1ULL << bit;
			if (bit >= MOD_BITS || (mask & mod_fixed) ||
			    (mask == DAT_EP_FIELD_COMM && !u))
				mod_refused(env, mask, &param, DAT_INVALID_PARAMETER,
					    DAT_INVALID_ARG2, "fixed or undefined");
			else if (mask == DAT_EP_FIELD_COMM)
				continue;	/* see the suite of connections */
			else if (mod_allowed(mask, letter))
				mod_done(env, mask, &param, letter);
			else
				mod_refused(env, mask, &param, DAT_INVALID_STATE, subtype,
					    letter);
		}
		/* together with others the watermark waits for them */
		if (!mod_allowed(DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE, letter))
			mod_refused(env, DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW |
				    DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE, &param, DAT_INVALID_STATE,
				    subtype, letter);
		if (!mod_allowed(DAT_EP_FIELD_PZ_HANDLE, letter))
			mod_refused(env, DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW |
				    DAT_EP_FIELD_CONNECT_EVD_HANDLE | DAT_EP_FIELD_PZ_HANDLE,
				    &param, DAT_INVALID_STATE, subtype, letter);
	}
	kd_set_state(env, DAT_EP_STATE_UNCONNECTED);
}

static void mod_args_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL, evd;
	char name[DAT_NAME_MAX_LENGTH];
	DAT_EP_PARAM param, want;
	DAT_EP_HANDLE old;
	DAT_PZ_HANDLE pz;
	DAT_IA_HANDLE ia;
	int i;

	kd_ep(env, NULL);
	mod_query(env, &param);
	KD_EXPECT_RET(test, dat_ep_modify(NULL, 0, &param), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_EP);
	KD_EXPECT_RET(test, dat_ep_modify(env->pz, 0, &param), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_EP);
	KD_EXPECT_OK(test, dat_ep_modify(env->ep, 0, NULL));
	KD_EXPECT_OK(test, dat_ep_modify(env->ep, 0, &param));
	mod_refused(env, DAT_EP_FIELD_PZ_HANDLE, NULL, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		    "no values");
	/* handles: of another kind, dead, of another IA, without the stream */
	snprintf(name, sizeof(name), "%s-1", fake_ib_name(env->dev));
	KD_ASSERT_OK(test, dat_ia_open(name, 8, &async, &ia));
	KD_ASSERT_OK(test, dat_pz_create(ia, &pz));
	KD_ASSERT_OK(test, dat_evd_kcreate(ia, 8, DAT_UPCALL_DISABLE, NULL,
					   DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG, &evd));
	for (i = 0; i < 4; i++) {
		DAT_HANDLE bad[] = { env->ia, (DAT_HANDLE)0x1234567UL, pz, env->ep };

		want = param;
		want.pz_handle = bad[i];
		mod_refused(env, DAT_EP_FIELD_PZ_HANDLE, &want, DAT_INVALID_PARAMETER,
			    DAT_INVALID_ARG3, "bad PZ");
	}
	for (i = 0; i < 4; i++) {
		DAT_HANDLE bad[] = { env->ia, (DAT_HANDLE)0x1234567UL, evd, env->conn };

		want = param;
		want.recv_evd_handle = bad[i];
		want.request_evd_handle = bad[i];
		want.connect_evd_handle = i == 3 ? env->recv : bad[i];
		mod_refused(env, DAT_EP_FIELD_RECV_EVD_HANDLE, &want, DAT_INVALID_PARAMETER,
			    DAT_INVALID_ARG3, "bad recv EVD");
		mod_refused(env, DAT_EP_FIELD_REQUEST_EVD_HANDLE, &want, DAT_INVALID_PARAMETER,
			    DAT_INVALID_ARG3, "bad request EVD");
		mod_refused(env, DAT_EP_FIELD_CONNECT_EVD_HANDLE, &want, DAT_INVALID_PARAMETER,
			    DAT_INVALID_ARG3, "bad connect EVD");
	}
	KD_EXPECT_OK(test, dat_evd_free(evd));
	KD_EXPECT_OK(test, dat_pz_free(pz));
	KD_EXPECT_OK(test, dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
	old = env->ep;
	kd_ep_free(env);
	KD_EXPECT_RET(test, dat_ep_modify(old, DAT_EP_FIELD_PZ_HANDLE, &param),
		      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
}

/* One attribute: its mask bit, where it is, the largest legal value, its effect. */
struct mod_attr {
	u64 mask;
	size_t offset;
	long long max;
	bool replaces;		/* the QP */
};

#define MOD_ATTR(bit, member)	.mask = DAT_EP_FIELD_EP_ATTR_##bit, \
				.offset = offsetof(DAT_EP_ATTR, member)

static int mod_attrs(struct kd_env *env, struct mod_attr *attrs)
{
	DAT_IA_ATTR ia;
	int n = 0;

	KD_ASSERT_OK(env->test, dat_ia_query(env->ia, NULL, DAT_IA_FIELD_ALL, &ia, 0, NULL));
	attrs[n++] = (struct mod_attr) {
		MOD_ATTR(MAX_RECV_DTOS, max_recv_dtos), ia.max_dto_per_ep, true };
	attrs[n++] = (struct mod_attr) {
		MOD_ATTR(MAX_REQUEST_DTOS, max_request_dtos), ia.max_dto_per_ep, true };
	attrs[n++] = (struct mod_attr) {
		MOD_ATTR(MAX_RECV_IOV, max_recv_iov), ia.max_iov_segments_per_dto, true };
	attrs[n++] = (struct mod_attr) {
		MOD_ATTR(MAX_REQUEST_IOV, max_request_iov), ia.max_iov_segments_per_dto, true };
	attrs[n++] = (struct mod_attr) {
		MOD_ATTR(MAX_RDMA_READ_IOV, max_rdma_read_iov),
		ia.max_iov_segments_per_rdma_read, true };
	attrs[n++] = (struct mod_attr) {
		MOD_ATTR(MAX_RDMA_WRITE_IOV, max_rdma_write_iov),
		ia.max_iov_segments_per_rdma_write, true };
	attrs[n++] = (struct mod_attr) {
		MOD_ATTR(MAX_RDMA_READ_IN, max_rdma_read_in), ia.max_rdma_read_per_ep_in, false };
	attrs[n++] = (struct mod_attr) {
		MOD_ATTR(MAX_RDMA_READ_OUT, max_rdma_read_out), ia.max_rdma_read_per_ep_out,
		false };
	return n;
}

static void mod_set(DAT_EP_PARAM *param, const struct mod_attr *attr, long long value)
{
	*(DAT_COUNT *)((char *)&param->ep_attr + attr->offset) = value;
}

static int mod_get(const DAT_EP_PARAM *param, const struct mod_attr *attr)
{
	return *(const DAT_COUNT *)((const char *)&param->ep_attr + attr->offset);
}

/* Each count alone: values inside and outside, and what becomes of the QP. */
static void mod_values_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct mod_attr attrs[8];
	DAT_EP_PARAM param, want, now, zero = {};
	int i, v, n = mod_attrs(env, attrs);
	bool replaced;

	kd_ep(env, NULL);
	for (i = 0; i < n; i++) {
		const long long good[] = { 1, 2, attrs[i].max, 3 };
		const long long bad[] = { -1, -2, INT_MIN, attrs[i].max + 1, INT_MAX };

		for (v = 0; v < ARRAY_SIZE(bad); v++) {
			mod_query(env, &want);
			mod_set(&want, &attrs[i], bad[v]);
			mod_refused(env, attrs[i].mask, &want, DAT_INVALID_PARAMETER,
				    DAT_INVALID_ARG3, "out of range");
		}
		for (v = 0; v < ARRAY_SIZE(good); v++) {
			mod_query(env, &param);
			/* only what the mask names is looked at */
			memset(&want, 0xa5, sizeof(want));
			mod_set(&want, &attrs[i], good[v]);
			replaced = mod_done(env, attrs[i].mask, &want, "in range");
			KUNIT_EXPECT_EQ_MSG(test, replaced, attrs[i].replaces &&
					    good[v] != mod_get(&param, &attrs[i]),
					    "mask %#llx, value %lld", attrs[i].mask, good[v]);
			mod_query(env, &now);
			KUNIT_EXPECT_EQ(test, mod_get(&now, &attrs[i]), (int)good[v]);
			mod_set(&param, &attrs[i], good[v]);
			KUNIT_EXPECT_EQ(test, memcmp(&param, &now, sizeof(now)), 0);
		}
	}
	/* what is no count */
	mod_query(env, &want);
	want.ep_attr.service_type = 99;
	mod_refused(env, DAT_EP_FIELD_EP_ATTR_SERVICE_TYPE, &want, DAT_INVALID_PARAMETER,
		    DAT_INVALID_ARG3, "service type");
	want.ep_attr.qos = 0x100;
	mod_refused(env, DAT_EP_FIELD_EP_ATTR_QOS, &want, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		    "QoS");
	want.ep_attr.qos = DAT_QOS_PREMIUM;
	mod_refused(env, DAT_EP_FIELD_EP_ATTR_QOS, &want, DAT_MODEL_NOT_SUPPORTED, 0, "QoS");
	want.ep_attr.srq_soft_hw = -2;
	mod_refused(env, DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW, &want, DAT_INVALID_PARAMETER,
		    DAT_INVALID_ARG3, "watermark");
	want.ep_attr.max_message_size = ~(DAT_SEG_LENGTH)0;
	mod_refused(env, DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE, &want, DAT_INVALID_PARAMETER,
		    DAT_INVALID_ARG3, "message size");
	want.ep_attr.max_rdma_size = ~(DAT_SEG_LENGTH)0;
	mod_refused(env, DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE, &want, DAT_INVALID_PARAMETER,
		    DAT_INVALID_ARG3, "RDMA size");
	/* queues of depth 0 need no EVD, and an EVD needs a depth */
	mod_refused(env, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &zero, DAT_INVALID_PARAMETER,
		    DAT_INVALID_ARG3, "EVD for nothing");
	mod_done(env, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS | DAT_EP_FIELD_RECV_EVD_HANDLE, &zero,
		 "no receives");
	/* one bad value among good ones: nothing changes */
	mod_query(env, &want);
	want.ep_attr.max_request_dtos = 5;
	want.ep_attr.max_rdma_read_in = -1;
	want.pz_handle = env->pz2;
	mod_refused(env, DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS | DAT_EP_FIELD_PZ_HANDLE |
		    DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IN, &want, DAT_INVALID_PARAMETER,
		    DAT_INVALID_ARG3, "one of three");
}

/* Every value of the completion flags. */
static void mod_flags_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_EP_HANDLE other;
	DAT_EP_PARAM want;
	DAT_EP_ATTR attr;
	int flags;

	kd_ep(env, NULL);
	for (flags = 0; flags < 64; flags++) {
		mod_query(env, &want);
		want.ep_attr.recv_completion_flags = flags;
		if (flags == 0 || flags == 2 || flags == 4)
			mod_done(env, DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS, &want, "recv");
		else
			mod_refused(env, DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS, &want,
				    DAT_INVALID_PARAMETER, DAT_INVALID_ARG3, "recv");
		mod_query(env, &want);
		want.ep_attr.request_completion_flags = flags;
		if (flags == 0 || flags == 4)
			mod_done(env, DAT_EP_FIELD_EP_ATTR_REQUEST_COMPLETION_FLAGS, &want,
				 "request");
		else
			mod_refused(env, DAT_EP_FIELD_EP_ATTR_REQUEST_COMPLETION_FLAGS, &want,
				    DAT_INVALID_PARAMETER, DAT_INVALID_ARG3, "request");
	}
	/* recv: UNSIGNALLED, request: UNSIGNALLED. Another EP with the same ... */
	kd_attr(&attr);
	attr.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	KD_ASSERT_OK(test, dat_ep_create(env->ia, env->pz, env->recv, env->req, env->conn, &attr,
					 &other));
	/* ... keeps both from changing, on these EVDs */
	mod_query(env, &want);
	want.ep_attr.recv_completion_flags = 0;
	want.ep_attr.request_completion_flags = 0;
	mod_refused(env, DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS, &want, DAT_INVALID_PARAMETER,
		    DAT_INVALID_ARG3, "shared recv EVD");
	mod_refused(env, DAT_EP_FIELD_EP_ATTR_REQUEST_COMPLETION_FLAGS, &want,
		    DAT_INVALID_PARAMETER, DAT_INVALID_ARG3, "shared request EVD");
	/* on an EVD of its own it goes; back again it does not */
	want.recv_evd_handle = DAT_HANDLE_NULL;
	KUNIT_EXPECT_TRUE(test, mod_done(env, DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS |
					 DAT_EP_FIELD_RECV_EVD_HANDLE, &want, "own EVD"));
	want.recv_evd_handle = env->recv;
	mod_refused(env, DAT_EP_FIELD_RECV_EVD_HANDLE, &want, DAT_INVALID_PARAMETER,
		    DAT_INVALID_ARG3, "back on the shared EVD");
	/* solicited wait and requests do not share an EVD */
	want.ep_attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	want.recv_evd_handle = env->req;
	mod_refused(env, DAT_EP_FIELD_RECV_EVD_HANDLE |
		    DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS, &want, DAT_INVALID_PARAMETER,
		    DAT_INVALID_ARG3, "solicited wait with requests");
	KD_EXPECT_OK(test, dat_ep_free(other));
}

/* With Receives posted: what needs another QP is refused, the rest goes. */
static void mod_posted_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	struct mod_attr attrs[8];
	int i, n = mod_attrs(env, attrs);
	DAT_EP_PARAM want, now;
	struct kdapl_evd *evd;
	DAT_EVD_HANDLE conn;
	DAT_EVENT event;

	kd_ep(env, NULL);
	for (i = 0; i < 5; i++)
		KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, i, NULL, 0));
	for (i = 0; i < n; i++) {
		mod_query(env, &want);
		mod_set(&want, &attrs[i], 1);
		if (attrs[i].replaces) {
			mod_refused(env, attrs[i].mask, &want, DAT_INVALID_STATE,
				    DAT_INVALID_STATE_EP_UNCONNECTED, "receives posted");
		} else {
			KUNIT_EXPECT_FALSE(test, mod_done(env, attrs[i].mask, &want, "no QP"));
			mod_query(env, &now);
			KUNIT_EXPECT_EQ(test, mod_get(&now, &attrs[i]), 1);
		}
	}
	mod_query(env, &want);
	want.pz_handle = env->pz2;
	want.recv_evd_handle = env->req;
	want.request_evd_handle = env->recv;
	want.ep_attr.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	want.ep_attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	mod_refused(env, DAT_EP_FIELD_PZ_HANDLE, &want, DAT_INVALID_STATE,
		    DAT_INVALID_STATE_EP_UNCONNECTED, "PZ");
	mod_refused(env, DAT_EP_FIELD_RECV_EVD_HANDLE, &want, DAT_INVALID_STATE,
		    DAT_INVALID_STATE_EP_UNCONNECTED, "recv EVD");
	mod_refused(env, DAT_EP_FIELD_REQUEST_EVD_HANDLE, &want, DAT_INVALID_STATE,
		    DAT_INVALID_STATE_EP_UNCONNECTED, "request EVD");
	mod_refused(env, DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS, &want, DAT_INVALID_STATE,
		    DAT_INVALID_STATE_EP_UNCONNECTED, "recv flags");
	mod_refused(env, DAT_EP_FIELD_EP_ATTR_REQUEST_COMPLETION_FLAGS, &want, DAT_INVALID_STATE,
		    DAT_INVALID_STATE_EP_UNCONNECTED, "request flags");
	/* and the EVD does not remember what was refused */
	mod_query(env, &want);
	want.ep_attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	mod_refused(env, DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS, &want, DAT_INVALID_STATE,
		    DAT_INVALID_STATE_EP_UNCONNECTED, "recv flags");
	evd = kdapl_obj_get(env->recv, DAT_HANDLE_TYPE_EVD);
	KUNIT_ASSERT_NOT_NULL(test, evd);
	KUNIT_EXPECT_EQ(test, (int)evd->attr[1], DAT_COMPLETION_DEFAULT_FLAG);
	KUNIT_EXPECT_FALSE(test, evd->solicited);
	kdapl_obj_put(&evd->obj);
	mod_query(env, &want);
	/* the connect EVD, the sizes */
	KD_ASSERT_OK(test, dat_evd_kcreate(env->ia, 8, DAT_UPCALL_DISABLE, NULL,
					   DAT_EVD_CONNECTION_FLAG, &conn));
	want.connect_evd_handle = conn;
	want.ep_attr.max_message_size = 100;
	want.ep_attr.max_rdma_size = 50;
	KUNIT_EXPECT_FALSE(test, mod_done(env, DAT_EP_FIELD_CONNECT_EVD_HANDLE |
					  DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE |
					  DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE, &want, "in place"));
	swap(env->conn, conn);
	KD_EXPECT_OK(test, dat_evd_free(conn));
	/* the Receives are still there, and the new limits hold */
	kd_connect(env);
	for (i = 0; i < 5; i++) {
		KUNIT_EXPECT_EQ(test, fake_ib_recv(env->qp, i, false), 0);
		KUNIT_ASSERT_TRUE(test, kd_next(env->recv, &event));
		KUNIT_EXPECT_EQ(test, event.event_data.dto_completion_event_data.user_cookie.as_64,
				(u64)i);
	}
	iov.segment_length = 100;
	KD_EXPECT_OK(test, kd_post(env->ep, KD_SEND, 1, &iov, 0, NULL, 0));
	iov.segment_length = 101;
	KD_EXPECT_RET(test, kd_post(env->ep, KD_SEND, 1, &iov, 0, NULL, 0), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
}

/* After a change the EP works, with what it was given. */
static void mod_works_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_LMR_TRIPLET own = kd_seg(env, KD_RW, 0, 8), other = kd_seg(env, KD_FOREIGN, 0, 8);
	DAT_EVD_HANDLE recv = env->recv;
	struct ib_qp_cap cap;
	DAT_EP_PARAM want;
	DAT_EVENT event;
	int i;

	kd_ep(env, NULL);
	mod_query(env, &want);
	want.pz_handle = env->pz2;
	want.recv_evd_handle = env->req;
	want.request_evd_handle = env->recv;
	want.ep_attr.max_recv_dtos = 3;
	want.ep_attr.max_request_dtos = 5;
	want.ep_attr.max_recv_iov = 2;
	KUNIT_EXPECT_TRUE(test, mod_done(env, DAT_EP_FIELD_PZ_HANDLE |
					 DAT_EP_FIELD_RECV_EVD_HANDLE |
					 DAT_EP_FIELD_REQUEST_EVD_HANDLE |
					 DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS |
					 DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS |
					 DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV, &want, "much"));
	swap(env->recv, env->req);
	fake_ib_qp_caps(env->qp, &cap);
	KUNIT_EXPECT_EQ(test, (int)cap.max_recv_wr, 3);
	KUNIT_EXPECT_EQ(test, (int)cap.max_recv_sge, 2);
	KD_EXPECT_RET(test, kd_post(env->ep, KD_RECV, 1, &own, 0, NULL, 0),
		      DAT_PROTECTION_VIOLATION, DAT_PROTECTION_WRITE);
	for (i = 0; i < 3; i++)
		KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &other, i, NULL, 0));
	KD_EXPECT_RET(test, kd_post(env->ep, KD_RECV, 1, &other, 9, NULL, 0),
		      DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP);
	kd_connect(env);
	for (i = 0; i < 5; i++)
		KD_EXPECT_OK(test, kd_post(env->ep, KD_SEND, 1, &other, i, NULL, 0));
	KD_EXPECT_RET(test, kd_post(env->ep, KD_SEND, 1, &other, 9, NULL, 0),
		      DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP);
	fake_ib_complete_all(env->qp, false, IB_WC_SUCCESS);
	fake_ib_complete_all(env->qp, true, IB_WC_SUCCESS);
	for (i = 0; kd_next(env->recv, &event); i++)
		KUNIT_EXPECT_EQ(test, (u32)event.event_data.dto_completion_event_data.operation,
				(u32)DAT_DTO_RECEIVE);
	KUNIT_EXPECT_EQ(test, i, 3);
	for (i = 0; kd_next(env->req, &event); i++)
		KUNIT_EXPECT_EQ(test, (u32)event.event_data.dto_completion_event_data.operation,
				(u32)DAT_DTO_SEND);
	KUNIT_EXPECT_EQ(test, i, 5);
	/* reset keeps what was set */
	kd_end(env, DAT_CONNECTION_EVENT_DISCONNECTED);
	KD_EXPECT_OK(test, dat_ep_reset(env->ep));
	env->qp = kd_conn_of(env)->qp;
	fake_ib_qp_caps(env->qp, &cap);
	KUNIT_EXPECT_EQ(test, (int)cap.max_recv_wr, 3);
	mod_query(env, &want);
	KUNIT_EXPECT_PTR_EQ(test, want.pz_handle, env->pz2);
	KUNIT_EXPECT_PTR_EQ(test, want.request_evd_handle, recv);
	/* and so it can be changed again */
	want.pz_handle = env->pz;
	KUNIT_EXPECT_TRUE(test, mod_done(env, DAT_EP_FIELD_PZ_HANDLE, &want, "after reset"));
	KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &own, 0, NULL, 0));
	while (kd_next(env->conn, &event))
		;
}

/* Uses of PZs and EVDs move with the handles, once a change has succeeded. */
static void mod_uses_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_EVD_HANDLE evd[2][3];
	DAT_PZ_HANDLE pz[2];
	DAT_EP_PARAM want;
	DAT_EP_ATTR attr;
	int i, k, to;
	u64 mask;

	for (i = 0; i < 2; i++) {
		KD_ASSERT_OK(test, dat_pz_create(env->ia, &pz[i]));
		for (k = 0; k < 3; k++)
			KD_ASSERT_OK(test, dat_evd_kcreate(env->ia, 8, DAT_UPCALL_DISABLE, NULL,
							   k == 2 ? DAT_EVD_CONNECTION_FLAG :
							   DAT_EVD_DTO_FLAG, &evd[i][k]));
	}
	kd_attr(&attr);
	KD_ASSERT_OK(test, dat_ep_create(env->ia, pz[0], evd[0][0], evd[0][1], evd[0][2], &attr,
					 &env->ep));
	env->kep = kdapl_obj_get(env->ep, DAT_HANDLE_TYPE_EP);
	KUNIT_ASSERT_NOT_NULL(test, env->kep);
	env->qp = kd_conn_of(env)->qp;
	mask = DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE |
	       DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE;
	for (to = 1; to < 6; to++) {
		int now = to & 1, was = !now;

		mod_query(env, &want);
		want.pz_handle = pz[now];
		want.recv_evd_handle = evd[now][0];
		want.request_evd_handle = evd[now][1];
		want.connect_evd_handle = evd[now][2];
		/* refused: the new ones stay free, the old ones in use */
		want.ep_attr.max_rdma_read_in = -1;
		mod_refused(env, mask | DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IN, &want,
			    DAT_INVALID_PARAMETER, DAT_INVALID_ARG3, "uses");
		fake_ib_fail(env->dev, FAKE_IB_CREATE_QP, 1, -ENOMEM);
		mod_refused(env, mask, &want, DAT_INSUFFICIENT_RESOURCES, 0, "uses");
		KD_EXPECT_RET(test, dat_pz_free(pz[was]), DAT_INVALID_STATE,
			      DAT_INVALID_STATE_PZ_IN_USE);
		for (k = 0; k < 3; k++)
			KD_EXPECT_RET(test, dat_evd_free(evd[was][k]), DAT_INVALID_STATE,
				      DAT_INVALID_STATE_EVD_IN_USE);
		KD_EXPECT_OK(test, dat_pz_free(pz[now]));
		KD_ASSERT_OK(test, dat_pz_create(env->ia, &pz[now]));
		for (k = 0; k < 3; k++) {
			KD_EXPECT_OK(test, dat_evd_free(evd[now][k]));
			KD_ASSERT_OK(test, dat_evd_kcreate(env->ia, 8, DAT_UPCALL_DISABLE, NULL,
							   k == 2 ? DAT_EVD_CONNECTION_FLAG :
							   DAT_EVD_DTO_FLAG, &evd[now][k]));
		}
		/* granted: the other way round */
		want.pz_handle = pz[now];
		want.recv_evd_handle = evd[now][0];
		want.request_evd_handle = evd[now][1];
		want.connect_evd_handle = evd[now][2];
		mod_done(env, mask, &want, "uses");
		KD_EXPECT_RET(test, dat_pz_free(pz[now]), DAT_INVALID_STATE,
			      DAT_INVALID_STATE_PZ_IN_USE);
		for (k = 0; k < 3; k++)
			KD_EXPECT_RET(test, dat_evd_free(evd[now][k]), DAT_INVALID_STATE,
				      DAT_INVALID_STATE_EVD_IN_USE);
		KD_EXPECT_OK(test, dat_pz_free(pz[was]));
		KD_ASSERT_OK(test, dat_pz_create(env->ia, &pz[was]));
		for (k = 0; k < 3; k++) {
			KD_EXPECT_OK(test, dat_evd_free(evd[was][k]));
			KD_ASSERT_OK(test, dat_evd_kcreate(env->ia, 8, DAT_UPCALL_DISABLE, NULL,
							   k == 2 ? DAT_EVD_CONNECTION_FLAG :
							   DAT_EVD_DTO_FLAG, &evd[was][k]));
		}
	}
	kd_ep_free(env);
	for (i = 0; i < 2; i++) {
		KD_EXPECT_OK(test, dat_pz_free(pz[i]));
		for (k = 0; k < 3; k++)
			KD_EXPECT_OK(test, dat_evd_free(evd[i][k]));
	}
}

/* No PZ, no EVDs, and back. */
static void mod_null_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	struct fake_ib_live before, live;
	DAT_EP_PARAM want, now;
	DAT_EVENT event;
	u64 mask;
	int i;

	kd_ep(env, NULL);
	fake_ib_live(env->dev, &before);
	mod_query(env, &want);
	mask = DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE |
	       DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE;
	for (i = 0; i < 3; i++) {
		memset(&now, 0, sizeof(now));
		mod_done(env, mask, &now, "none");
		KUNIT_EXPECT_NULL(test, env->qp);
		fake_ib_live(env->dev, &live);
		KUNIT_EXPECT_EQ(test, live.qps, before.qps - 1);
		mod_query(env, &now);
		KUNIT_EXPECT_NULL(test, now.pz_handle);
		KUNIT_EXPECT_NULL(test, now.recv_evd_handle);
		KUNIT_EXPECT_NULL(test, now.request_evd_handle);
		KUNIT_EXPECT_NULL(test, now.connect_evd_handle);
		KD_EXPECT_RET(test, kd_post(env->ep, KD_RECV, 1, &iov, 0, NULL, 0),
			      DAT_PROTECTION_VIOLATION, DAT_PROTECTION_WRITE);
		/* attributes of an EP without QP change, too */
		now.ep_attr.max_recv_dtos = 4 + i;
		mod_done(env, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &now, "without QP");
		want.ep_attr.max_recv_dtos = 4 + i;
		mod_done(env, mask, &want, "back");
		KUNIT_ASSERT_NOT_NULL(test, env->qp);
		mod_query(env, &now);
		KUNIT_EXPECT_EQ(test, memcmp(&now, &want, sizeof(now)), 0);
	}
	KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, 1, NULL, 0));
	kd_connect(env);
	KUNIT_EXPECT_EQ(test, fake_ib_recv(env->qp, 1, false), 0);
	KUNIT_EXPECT_TRUE(test, kd_next(env->recv, &event));
}

/*
 * Each verb of a change fails once: refused, and the EP as it was. Not those of CQs, which are
 * asked for again, smaller (evd_cqs_test.c).
 */
static void mod_nth_verb_test(struct kunit *test)
{
	static const enum fake_ib_verb verbs[] = { FAKE_IB_CREATE_QP, FAKE_IB_MODIFY_QP };
	struct kd_env *env = kd_open(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	DAT_EP_PARAM want;
	int n;

	kd_ep(env, NULL);
	for (n = 0; n <= ARRAY_SIZE(verbs); n++) {
		struct kdapl_conn *conn;
		DAT_RETURN ret;

		mod_query(env, &want);
		want.ep_attr.max_recv_dtos = 200;	/* brings another CQ */
		want.pz_handle = env->pz2;
		if (n < ARRAY_SIZE(verbs))
			fake_ib_fail(env->dev, verbs[n], 1, -ENOMEM);
		ret = dat_ep_modify(env->ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS |
				    DAT_EP_FIELD_PZ_HANDLE, &want);
		conn = kd_conn_of(env);
		mod_query(env, &want);
		if (n == ARRAY_SIZE(verbs)) {
			KD_EXPECT_OK(test, ret);
			KUNIT_EXPECT_EQ(test, (int)want.ep_attr.max_recv_dtos, 200);
			env->qp = conn->qp;
			break;
		}
		KUNIT_EXPECT_EQ(test, fake_ib_failing(env->dev, verbs[n]), 0U);
		KUNIT_EXPECT_EQ(test, (u32)DAT_GET_TYPE(ret), (u32)DAT_INSUFFICIENT_RESOURCES);
		KUNIT_EXPECT_PTR_EQ(test, conn->qp, env->qp);
		KUNIT_EXPECT_EQ(test, (int)want.ep_attr.max_recv_dtos, 8);
		KUNIT_EXPECT_PTR_EQ(test, want.pz_handle, env->pz);
	}
	iov = kd_seg(env, KD_FOREIGN, 0, 8);
	KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, 1, NULL, 0));
}

/* A Receive posted while the QP is being replaced is on the QP that stays. */
struct mod_race {
	struct kd_env *env;
	struct completion go;
	struct completion done;
	DAT_RETURN ret;
	int delay;
};

static int mod_race_poster(void *arg)
{
	struct mod_race *race = arg;
	DAT_LMR_TRIPLET iov = kd_seg(race->env, KD_RW, 0, 8);

	while (!kthread_should_stop()) {
		if (!wait_for_completion_timeout(&race->go, HZ / 50))
			continue;
		if (race->delay < 100)
			udelay(race->delay);
		else
			usleep_range(race->delay, race->delay + 20);
		race->ret = kd_post(race->env->ep, KD_RECV, 1, &iov, 1, NULL, 0);
		complete(&race->done);
	}
	return 0;
}

static void mod_race_test(struct kunit *test)
{
	struct mod_race *race = kunit_kzalloc(test, sizeof(*race), GFP_KERNEL);
	struct kd_env *env = kd_open(test, NULL);
	int round, refused = 0, granted = 0;
	struct task_struct *task;
	DAT_EP_PARAM want;
	DAT_RETURN ret;

	KUNIT_ASSERT_NOT_NULL(test, race);
	race->env = env;
	init_completion(&race->go);
	init_completion(&race->done);
	task = kthread_run(mod_race_poster, race, "kdapl_modify");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	for (round = 0; round < 30; round++) {
		kd_ep(env, NULL);
		mod_query(env, &want);
		want.ep_attr.max_recv_dtos = 9;
		race->delay = get_random_u32() % (round & 1 ? 100 : 3000);
		complete(&race->go);
		ret = dat_ep_modify(env->ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &want);
		wait_for_completion(&race->done);
		KD_EXPECT_OK(test, race->ret);
		if (ret == DAT_SUCCESS) {
			granted++;
		} else {
			refused++;
			KD_EXPECT_RET(test, ret, DAT_INVALID_STATE,
				      DAT_INVALID_STATE_EP_UNCONNECTED);
		}
		env->qp = kd_conn_of(env)->qp;
		KUNIT_EXPECT_EQ(test, fake_ib_outstanding(env->qp, true), 1U);
		mod_query(env, &want);
		KUNIT_EXPECT_EQ(test, (int)want.ep_attr.max_recv_dtos, ret ? 8 : 9);
		kd_ep_free(env);
	}
	kthread_stop(task);
	kunit_info(test, "%d granted, %d refused", granted, refused);
}

/* An EP with an SRQ: the SRQ stays, its own buffers do not hinder a change. */
static void mod_srq_test(struct kunit *test)
{
	static const enum rdma_driver_id drivers[] = { RDMA_DRIVER_UNKNOWN, RDMA_DRIVER_RXE };
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 8, .max_recv_iov = 1 };
	struct fake_ib_caps caps = {};
	struct kd_env *env = test->priv;
	DAT_LMR_TRIPLET iov;
	DAT_EP_PARAM want;
	DAT_SRQ_HANDLE srq;
	DAT_EP_ATTR ep_attr;
	DAT_EVENT event;
	int i;

	for (i = 0; i < ARRAY_SIZE(drivers); i++) {
		caps.driver = drivers[i];
		kd_open(test, &caps);
		KD_ASSERT_OK(test, dat_srq_create(env->ia, env->pz, &attr, &srq));
		iov = kd_seg(env, KD_RW, 0, 8);
		KD_EXPECT_OK(test, dat_srq_post_recv(srq, 1, &iov, (DAT_DTO_COOKIE) {
						     .as_64 = 6 }));
		kd_attr(&ep_attr);
		KD_ASSERT_OK(test, dat_ep_create_with_srq(env->ia, env->pz, env->recv, env->req,
							  env->conn, srq, &ep_attr, &env->ep));
		env->kep = kdapl_obj_get(env->ep, DAT_HANDLE_TYPE_EP);
		KUNIT_ASSERT_NOT_NULL(test, env->kep);
		env->qp = kd_conn_of(env)->qp;
		mod_query(env, &want);
		mod_refused(env, DAT_EP_FIELD_SRQ_HANDLE, &want, DAT_INVALID_PARAMETER,
			    DAT_INVALID_ARG2, "SRQ");
		want.pz_handle = env->pz2;
		if (drivers[i] == RDMA_DRIVER_RXE)
			mod_refused(env, DAT_EP_FIELD_PZ_HANDLE, &want, DAT_INVALID_PARAMETER,
				    DAT_INVALID_ARG3, "PZ differs");
		else
			KUNIT_EXPECT_TRUE(test, mod_done(env, DAT_EP_FIELD_PZ_HANDLE, &want,
							 "PZ differs"));
		want.ep_attr.max_request_dtos = 3;
		want.ep_attr.srq_soft_hw = 0;
		KUNIT_EXPECT_TRUE(test, mod_done(env, DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS |
						 DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW, &want,
						 "with an SRQ"));
		mod_query(env, &want);
		KUNIT_EXPECT_PTR_EQ(test, want.srq_handle, srq);
		KUNIT_EXPECT_EQ(test, (int)want.ep_attr.srq_soft_hw, 0);
		kd_connect(env);
		KUNIT_EXPECT_EQ(test, fake_ib_recv(env->qp, 1, false), 0);
		KUNIT_ASSERT_TRUE(test, kd_next(env->recv, &event));
		KUNIT_EXPECT_EQ(test, event.event_data.dto_completion_event_data.user_cookie.as_64,
				6ULL);
		/* the soft watermark came with it */
		kd_pause();
		flush_workqueue(kdapl_event_wq);
		flush_workqueue(kdapl_upcall_wq);
		flush_workqueue(kdapl_misc_wq);
		KUNIT_ASSERT_TRUE(test, kd_next(env->async, &event));
		KUNIT_EXPECT_EQ(test, (int)event.event_data.asynch_error_event_data.reason,
				(int)DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT);
		KD_EXPECT_RET(test, dat_srq_free(srq), DAT_INVALID_STATE,
			      DAT_INVALID_STATE_SRQ_IN_USE);
		kd_ep_free(env);
		KD_EXPECT_OK(test, dat_srq_free(srq));
		kd_exit(test);
		memset(env, 0, sizeof(*env));
		env->test = test;
	}
}

static struct kunit_case modify_cases[] = {
	KD_CASE(mod_state_test, "EP-MOD-02,EP-CREATE-13: every bit in every state"),
	KD_CASE(mod_args_test, "EP-MOD-02,GEN-08,GEN-04: arguments and handles"),
	KD_CASE(mod_values_test, "EP-MOD-01,EP-MOD-02,EP-CREATE-08: values in and out of range"),
	KD_CASE(mod_flags_test, "EP-MOD-02,FLAG-14..16,EP-CREATE-16: completion flags"),
	KD_CASE(mod_posted_test, "EP-MOD-03,EP-MOD-05,EP-MOD-01: with Receives posted"),
	KD_CASE(mod_works_test, "EP-MOD-01,EP-MOD-05,EP-RST-03: the EP works with what it got"),
	KD_CASE(mod_uses_test, "EP-MOD-06,EP-CREATE-17,GEN-11,PZ-02,EVD-FREE-01: uses move along"),
	KD_CASE(mod_null_test, "EP-MOD-07,RECV-18,EP-CREATE-03: no PZ, no EVDs, and back"),
	KD_CASE(mod_nth_verb_test, "EP-MOD-01,GEN-06,GEN-07: verbs that fail"),
	KD_CASE(mod_race_test, "EP-MOD-05,RECV-13,CTX-03: a Receive while the QP is replaced"),
	KD_CASE(mod_srq_test, "EP-MOD-02,EP-CREATE-13,EP-CREATE-14: EPs with an SRQ"),
	{}
};

static struct kunit_suite modify_suite = {
	.name = "kdapl-modify",
	.suite_init = kd_suite_init,
	.suite_exit = kd_suite_exit,
	.init = kd_init,
	.exit = kd_exit,
	.test_cases = modify_cases,
};

kunit_test_suite(modify_suite);
