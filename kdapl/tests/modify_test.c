// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Attributes of EPs: how they are created, queried and modified, what may change
 * when, what a change does to the QP, to Receives and to the objects it names.
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

#define MOD_HANDLES	(DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE | \
			 DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE)

/* Without attributes: all that an EP needs, so that those of a query make another one. */
static void mod_defaults_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(0, 8, 1);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	const DAT_EP_ATTR *attr;
	DAT_EP_HANDLE ep;
	DAT_EP_PARAM p;
	DAT_IA_ATTR ia;
	int i;

	KD_ASSERT_OK(test, dat_ia_query(env->ia, NULL, DAT_IA_FIELD_ALL, &ia, 0, NULL));
	attr = &p.ep_attr;
	/* EVDs for Receives and for requests: neither, one of them, both */
	for (i = 0; i < 4; i++) {
		DAT_EVD_HANDLE recv = i & 1 ? env->recv : NULL, req = i & 2 ? env->req : NULL;

		KD_ASSERT_OK(test, dat_ep_create(env->ia, i ? env->pz : NULL, recv, req,
						 i == 3 ? env->conn : NULL, NULL, &ep));
		memset(&p, 0xee, sizeof(p));
		KD_ASSERT_OK(test, dat_ep_query(ep, DAT_EP_FIELD_ALL, &p));
		KUNIT_EXPECT_PTR_EQ(test, p.ia_handle, env->ia);
		KUNIT_EXPECT_EQ(test, (int)p.ep_state, (int)DAT_EP_STATE_UNCONNECTED);
		KUNIT_EXPECT_PTR_EQ(test, p.pz_handle, i ? env->pz : NULL);
		KUNIT_EXPECT_PTR_EQ(test, p.recv_evd_handle, recv);
		KUNIT_EXPECT_PTR_EQ(test, p.request_evd_handle, req);
		KUNIT_EXPECT_PTR_EQ(test, p.connect_evd_handle, i == 3 ? env->conn : NULL);
		KUNIT_EXPECT_NULL(test, p.srq_handle);
		KUNIT_EXPECT_EQ(test, (int)attr->service_type, (int)DAT_SERVICE_TYPE_RC);
		KUNIT_EXPECT_EQ(test, (int)attr->qos, (int)DAT_QOS_BEST_EFFORT);
		KUNIT_EXPECT_EQ(test, (int)attr->recv_completion_flags, 0);
		KUNIT_EXPECT_EQ(test, (int)attr->request_completion_flags, 0);
		KUNIT_EXPECT_GT(test, (u64)attr->max_message_size, 0ULL);
		KUNIT_EXPECT_GT(test, (u64)attr->max_rdma_size, 0ULL);
		KUNIT_EXPECT_GT(test, (int)attr->max_recv_iov, 0);
		KUNIT_EXPECT_EQ(test, attr->max_recv_dtos > 0, i & 1);
		KUNIT_EXPECT_EQ(test, attr->max_request_dtos > 0, i >> 1);
		KUNIT_EXPECT_EQ(test, (int)attr->max_rdma_read_in,
				min(4, ia.max_rdma_read_per_ep_in));
		KUNIT_EXPECT_EQ(test, (int)attr->max_rdma_read_out,
				min(4, ia.max_rdma_read_per_ep_out));
		KD_EXPECT_OK(test, dat_ep_free(ep));
		KD_EXPECT_RET(test, dat_ep_free(ep), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	}
	kd_ep(env, attr);
	kd_connect(env);
	KD_EXPECT_OK(test, kd_post(env->ep, KD_READ, 1, &iov, 0, &remote, 0));
	KUNIT_EXPECT_FALSE(test, atomic_read(&kd_conn_of(env)->reads_refused));
}

/* PZs and EVDs that no EP may have, when it is made and later. */
static void mod_handles_test(struct kunit *test)
{
	static const struct {
		u64 mask;
		DAT_RETURN_SUBTYPE subtype;
	} rows[] = {
		{ DAT_EP_FIELD_PZ_HANDLE, DAT_INVALID_HANDLE_PZ },
		{ DAT_EP_FIELD_RECV_EVD_HANDLE, DAT_INVALID_HANDLE_EVD_RECV },
		{ DAT_EP_FIELD_REQUEST_EVD_HANDLE, DAT_INVALID_HANDLE_EVD_REQUEST },
		{ DAT_EP_FIELD_CONNECT_EVD_HANDLE, DAT_INVALID_HANDLE_EVD_CONN },
	};
	struct kd_env *env = kd_open(test, NULL);
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL, evd;
	char name[DAT_NAME_MAX_LENGTH];
	DAT_EP_PARAM want;
	DAT_PZ_HANDLE pz;
	DAT_EP_HANDLE ep;
	DAT_IA_HANDLE ia;
	int i, row;

	kd_ep(env, NULL);
	snprintf(name, sizeof(name), "%s-1", fake_ib_name(env->dev));
	KD_ASSERT_OK(test, dat_ia_open(name, 8, &async, &ia));
	KD_ASSERT_OK(test, dat_pz_create(ia, &pz));
	KD_ASSERT_OK(test, dat_evd_kcreate(ia, 8, DAT_UPCALL_DISABLE, NULL,
					   DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG, &evd));
	for (i = 0; i < 4 * ARRAY_SIZE(rows); i++) {
		/* of another kind, of nothing, of another IA, without the stream */
		DAT_HANDLE bad[] = { env->ia, (DAT_HANDLE)0x1234567UL, evd, env->conn };

		row = i / 4;
		mod_query(env, &want);
		if (row == 0)
			want.pz_handle = i == 2 ? (DAT_HANDLE)pz : bad[i % 4];
		else if (row == 1)
			want.recv_evd_handle = bad[i % 4];
		else if (row == 2)
			want.request_evd_handle = bad[i % 4];
		else
			want.connect_evd_handle = i % 4 == 3 ? env->recv : bad[i % 4];
		mod_refused(env, rows[row].mask, &want, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
			    "bad handle");
		KD_EXPECT_RET(test, dat_ep_create(env->ia, want.pz_handle, want.recv_evd_handle,
						  want.request_evd_handle,
						  want.connect_evd_handle, NULL, &ep),
			      DAT_INVALID_HANDLE, rows[row].subtype);
	}
	KD_EXPECT_RET(test, dat_ep_create(env->ia, env->pz, NULL, NULL, NULL, NULL, NULL),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG7);
	/* what was refused holds nothing: kd_exit() frees the others */
	KD_EXPECT_OK(test, dat_evd_free(evd));
	KD_EXPECT_OK(test, dat_pz_free(pz));
	KD_EXPECT_OK(test, dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

/* Arguments of modify; in U, C and D those of query, status and disconnect. */
static void mod_args_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_NAMED_ATTR named = { "a", "b" };
	DAT_EP_PARAM param, want;
	DAT_EP_STATE state;
	DAT_EP_HANDLE old;
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
	/* no attribute of a transport or a provider has a name here */
	want = param;
	want.ep_attr.ep_transport_specific_count = 1;
	want.ep_attr.ep_transport_specific = &named;
	want.ep_attr.ep_provider_specific_count = 1;
	want.ep_attr.ep_provider_specific = &named;
	mod_refused(env, DAT_EP_FIELD_EP_ATTR_NUM_TRANSPORT_ATTR |
		    DAT_EP_FIELD_EP_ATTR_TRANSPORT_SPECIFIC_ATTR, &want, DAT_INVALID_PARAMETER, 0,
		    "named");
	mod_refused(env, DAT_EP_FIELD_EP_ATTR_NUM_PROVIDER_ATTR |
		    DAT_EP_FIELD_EP_ATTR_PROVIDER_SPECIFIC_ATTR, &want, DAT_INVALID_PARAMETER, 0,
		    "named");
	for (i = 0; i < 3; i++) {	/* unconnected, connected, disconnected */
		KD_EXPECT_OK(test, dat_ep_query(env->ep, 0, NULL));
		KD_EXPECT_RET(test, dat_ep_query(env->ep, 0x80000000ULL, &param),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		KD_EXPECT_RET(test, dat_ep_query(env->ep, 1ULL << 40, &param),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
		KD_EXPECT_RET(test, dat_ep_query(env->ep, DAT_EP_FIELD_ALL, NULL),
			      DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
		KD_EXPECT_RET(test, dat_ep_query(env->pz, DAT_EP_FIELD_ALL, &param),
			      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
		KD_EXPECT_OK(test, dat_ep_get_status(env->ep, NULL, NULL, NULL));
		KD_EXPECT_OK(test, dat_ep_get_status(env->ep, &state, NULL, NULL));
		param.ep_state = -1;
		KD_EXPECT_OK(test, dat_ep_query(env->ep, DAT_EP_FIELD_EP_STATE, &param));
		KUNIT_EXPECT_EQ(test, (int)param.ep_state, (int)state);
		KD_EXPECT_RET(test, dat_ep_disconnect(env->ep, 2), DAT_INVALID_PARAMETER,
			      DAT_INVALID_ARG2);
		KD_EXPECT_RET(test, dat_ep_disconnect(env->ep, -1), DAT_INVALID_PARAMETER,
			      DAT_INVALID_ARG2);
		KUNIT_EXPECT_EQ(test, (int)READ_ONCE(env->kep->state), (int)state);
		if (i == 0)
			kd_connect(env);
		else if (i == 1)
			kd_end(env, DAT_CONNECTION_EVENT_DISCONNECTED);
	}
	old = env->ep;
	kd_ep_free(env);
	KD_EXPECT_RET(test, dat_ep_modify(old, DAT_EP_FIELD_PZ_HANDLE, &param),
		      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
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

#define MOD_ATTRS	8

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

	KD_ASSERT_OK(env->test, dat_ia_query(env->ia, NULL, DAT_IA_FIELD_ALL, &ia, 0, NULL));
	memcpy(attrs, (struct mod_attr[]) {
		{ MOD_ATTR(MAX_RECV_DTOS, max_recv_dtos), ia.max_dto_per_ep, true },
		{ MOD_ATTR(MAX_REQUEST_DTOS, max_request_dtos), ia.max_dto_per_ep, true },
		{ MOD_ATTR(MAX_RECV_IOV, max_recv_iov), ia.max_iov_segments_per_dto, true },
		{ MOD_ATTR(MAX_REQUEST_IOV, max_request_iov), ia.max_iov_segments_per_dto, true },
		{ MOD_ATTR(MAX_RDMA_READ_IOV, max_rdma_read_iov),
		  ia.max_iov_segments_per_rdma_read, true },
		{ MOD_ATTR(MAX_RDMA_WRITE_IOV, max_rdma_write_iov),
		  ia.max_iov_segments_per_rdma_write, true },
		{ MOD_ATTR(MAX_RDMA_READ_IN, max_rdma_read_in), ia.max_rdma_read_per_ep_in, false },
		{ MOD_ATTR(MAX_RDMA_READ_OUT, max_rdma_read_out), ia.max_rdma_read_per_ep_out,
		  false },
	}, MOD_ATTRS * sizeof(*attrs));
	return MOD_ATTRS;
}

static void mod_set(DAT_EP_PARAM *param, const struct mod_attr *attr, long long value)
{
	*(DAT_COUNT *)((char *)&param->ep_attr + attr->offset) = value;
}

static int mod_get(const DAT_EP_PARAM *param, const struct mod_attr *attr)
{
	return *(const DAT_COUNT *)((const char *)&param->ep_attr + attr->offset);
}

/* Refused for an EP that is there, and for one that is made. */
static void mod_bad(struct kd_env *env, u64 mask, const DAT_EP_PARAM *want, u32 type, u32 subtype)
{
	DAT_EP_HANDLE ep;
	DAT_RETURN ret;

	mod_refused(env, mask, want, type, subtype, "modified");
	ret = dat_ep_create(env->ia, env->pz, env->recv, env->req, env->conn, &want->ep_attr, &ep);
	KUNIT_EXPECT_EQ_MSG(env->test, (u32)ret,
			    (u32)DAT_ERROR(type, (subtype ? DAT_INVALID_ARG6 : 0)),
			    "created, mask %#llx", mask);
	if (ret == DAT_SUCCESS)
		dat_ep_free(ep);
}

/* Each attribute alone: values inside and outside, and what becomes of the QP. */
static void mod_values_test(struct kunit *test)
{
#define MOD_ROW(bit, member, value, type, subtype)					\
	{ DAT_EP_FIELD_EP_ATTR_##bit, offsetof(DAT_EP_ATTR, member), value, type, subtype }
	static const struct {
		u64 mask;
		size_t offset;		/* of 32 bits, all of them */
		u32 value, type, subtype;
	} rows[] = {
		MOD_ROW(SERVICE_TYPE, service_type, 99, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3),
		MOD_ROW(QOS, qos, 0x100, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3),
		MOD_ROW(QOS, qos, DAT_QOS_PREMIUM | DAT_QOS_ECONOMY, DAT_MODEL_NOT_SUPPORTED, 0),
		MOD_ROW(SRQ_SOFT_HW, srq_soft_hw, -2, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3),
		MOD_ROW(MAX_MESSAGE_SIZE, max_message_size, ~0U, DAT_INVALID_PARAMETER,
			DAT_INVALID_ARG3),
		MOD_ROW(MAX_RDMA_SIZE, max_rdma_size, ~0U, DAT_INVALID_PARAMETER,
			DAT_INVALID_ARG3),
		/* an EVD needs something that feeds it */
		MOD_ROW(MAX_RECV_DTOS, max_recv_dtos, 0, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3),
		MOD_ROW(MAX_REQUEST_DTOS, max_request_dtos, 0, DAT_INVALID_PARAMETER,
			DAT_INVALID_ARG3),
	};
	struct kd_env *env = kd_open(test, NULL);
	struct mod_attr attrs[MOD_ATTRS];
	DAT_EP_PARAM param, want, now, zero = {};
	int i, v, n = mod_attrs(env, attrs);
	DAT_EP_HANDLE ep;
	bool replaced;

	kd_ep(env, NULL);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		mod_query(env, &want);
		memcpy((void *)&want.ep_attr + rows[i].offset, &rows[i].value, sizeof(u32));
		if (rows[i].mask == DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW)	/* a new EP has no SRQ */
			mod_refused(env, rows[i].mask, &want, rows[i].type, rows[i].subtype, "row");
		else
			mod_bad(env, rows[i].mask, &want, rows[i].type, rows[i].subtype);
	}
	for (i = 0; i < n; i++) {
		const long long good[] = { 1, 2, attrs[i].max, 3 };
		const long long bad[] = { -1, -2, INT_MIN, attrs[i].max + 1, INT_MAX };

		for (v = 0; v < ARRAY_SIZE(bad); v++) {
			mod_query(env, &want);
			mod_set(&want, &attrs[i], bad[v]);
			mod_bad(env, attrs[i].mask, &want, DAT_INVALID_PARAMETER,
				DAT_INVALID_ARG3);
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
			/* nor is there another answer when it is created so */
			KD_ASSERT_OK(test, dat_ep_create(env->ia, env->pz, env->recv, env->req,
							 env->conn, &param.ep_attr, &ep));
			KD_EXPECT_OK(test, dat_ep_query(ep, DAT_EP_FIELD_ALL, &now));
			KUNIT_EXPECT_EQ(test, memcmp(&param.ep_attr, &now.ep_attr,
						     sizeof(now.ep_attr)), 0);
			KD_EXPECT_OK(test, dat_ep_free(ep));
		}
	}
	/* one bad value among good ones: nothing changes */
	mod_query(env, &want);
	want.ep_attr.max_request_dtos = 5;
	want.ep_attr.max_rdma_read_in = -1;
	want.pz_handle = env->pz2;
	mod_refused(env, DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS | DAT_EP_FIELD_PZ_HANDLE |
		    DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IN, &want, DAT_INVALID_PARAMETER,
		    DAT_INVALID_ARG3, "one of three");
	/* queues of depth 0 need no EVD */
	mod_done(env, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS | DAT_EP_FIELD_RECV_EVD_HANDLE, &zero,
		 "no receives");
}

/* Every value of the completion flags, modified and created. */
static void mod_flags_test(struct kunit *test)
{
	static const u64 mask[2] = {
		DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS,
		DAT_EP_FIELD_EP_ATTR_REQUEST_COMPLETION_FLAGS,
	};
	struct kd_env *env = kd_open(test, NULL);
	DAT_EP_PARAM want, usual;
	DAT_EP_HANDLE other;
	DAT_EP_ATTR attr;
	int n, flags, role;

	kd_ep(env, NULL);
	mod_query(env, &usual);
	for (n = 0; n < 2 * (256 + 24); n++) {
		flags = n / 2 < 256 ? n / 2 : BIT(n / 2 - 248);
		role = n & 1;
		want = usual;
		if (role)
			want.ep_attr.request_completion_flags = flags;
		else
			want.ep_attr.recv_completion_flags = flags;
		if (flags && flags != 4 && (role || flags != 2)) {
			mod_bad(env, mask[role], &want, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
			continue;
		}
		mod_done(env, mask[role], &want, "flags");
		KD_ASSERT_OK(test, dat_ep_create(env->ia, env->pz, role ? DAT_HANDLE_NULL :
						 env->recv, role ? env->req : DAT_HANDLE_NULL,
						 env->conn, &want.ep_attr, &other));
		KD_EXPECT_OK(test, dat_ep_free(other));
		mod_done(env, mask[role], &usual, "back");
	}
	/* Another EP with the same ... */
	mod_query(env, &want);
	want.ep_attr.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	want.ep_attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	mod_done(env, mask[0] | mask[1], &want, "unsignalled");
	attr = want.ep_attr;
	KD_ASSERT_OK(test, dat_ep_create(env->ia, env->pz, env->recv, env->req, env->conn, &attr,
					 &other));
	/* ... keeps both from changing, on these EVDs */
	for (role = 0; role < 2; role++)
		mod_refused(env, mask[role], &usual, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
			    "shared EVD");
	/* on an EVD of its own it goes; back again it does not */
	usual.recv_evd_handle = DAT_HANDLE_NULL;
	KUNIT_EXPECT_TRUE(test, mod_done(env, mask[0] | DAT_EP_FIELD_RECV_EVD_HANDLE, &usual,
					 "own EVD"));
	usual.recv_evd_handle = env->recv;
	mod_refused(env, DAT_EP_FIELD_RECV_EVD_HANDLE, &usual, DAT_INVALID_PARAMETER,
		    DAT_INVALID_ARG3, "back on the shared EVD");
	/* solicited wait and requests do not share an EVD */
	usual.ep_attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	usual.recv_evd_handle = env->req;
	mod_refused(env, DAT_EP_FIELD_RECV_EVD_HANDLE | mask[0], &usual, DAT_INVALID_PARAMETER,
		    DAT_INVALID_ARG3, "solicited wait with requests");
	KD_EXPECT_OK(test, dat_ep_free(other));
}

/* With Receives posted: what needs another QP is refused, the rest goes. */
static void mod_posted_test(struct kunit *test)
{
	static const u64 later[] = {
		DAT_EP_FIELD_PZ_HANDLE, DAT_EP_FIELD_RECV_EVD_HANDLE,
		DAT_EP_FIELD_REQUEST_EVD_HANDLE, DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS,
		DAT_EP_FIELD_EP_ATTR_REQUEST_COMPLETION_FLAGS,
	};
	struct kd_env *env = kd_open(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	struct mod_attr attrs[MOD_ATTRS];
	int i, n = mod_attrs(env, attrs);
	DAT_EP_PARAM want, now;
	struct kdapl_evd *evd;
	DAT_EVD_HANDLE conn;

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
	for (i = 0; i < ARRAY_SIZE(later); i++)
		mod_refused(env, later[i], &want, DAT_INVALID_STATE,
			    DAT_INVALID_STATE_EP_UNCONNECTED, "receives posted");
	/* the same value is no change */
	mod_query(env, &want);
	for (i = 0; i < ARRAY_SIZE(later); i++)
		KUNIT_EXPECT_FALSE(test, mod_done(env, later[i], &want, "the same"));
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
		kd_expect_dto(test, env->recv, i, DAT_DTO_SUCCESS);
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

/* A PZ and EVDs for an EP. */
struct mod_set {
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE evd[3];
};

static void mod_set_new(struct kd_env *env, struct mod_set *set)
{
	int k;

	KD_ASSERT_OK(env->test, dat_pz_create(env->ia, &set->pz));
	for (k = 0; k < 3; k++)
		KD_ASSERT_OK(env->test, dat_evd_kcreate(env->ia, 8, DAT_UPCALL_DISABLE, NULL,
							k == 2 ? DAT_EVD_CONNECTION_FLAG :
							DAT_EVD_DTO_FLAG, &set->evd[k]));
}

static void mod_set_name(const struct mod_set *set, DAT_EP_PARAM *param)
{
	param->pz_handle = set->pz;
	param->recv_evd_handle = set->evd[0];
	param->request_evd_handle = set->evd[1];
	param->connect_evd_handle = set->evd[2];
}

/* One of these is in use; the other one is not, since it can be freed. */
static void mod_set_used(struct kd_env *env, const struct mod_set *used, struct mod_set *unused)
{
	struct kunit *test = env->test;
	int k;

	KD_EXPECT_RET(test, dat_pz_free(used->pz), DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE);
	KD_EXPECT_OK(test, dat_pz_free(unused->pz));
	for (k = 0; k < 3; k++) {
		KD_EXPECT_RET(test, dat_evd_free(used->evd[k]), DAT_INVALID_STATE,
			      DAT_INVALID_STATE_EVD_IN_USE);
		KD_EXPECT_OK(test, dat_evd_free(unused->evd[k]));
	}
	mod_set_new(env, unused);
}

/* Uses of PZs and EVDs move with the handles, once a change has succeeded. */
static void mod_uses_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct mod_set set[2];
	DAT_EP_PARAM want;
	DAT_EP_ATTR attr;
	int i, k, to;

	mod_set_new(env, &set[0]);
	mod_set_new(env, &set[1]);
	kd_attr(&attr);
	KD_ASSERT_OK(test, dat_ep_create(env->ia, set[0].pz, set[0].evd[0], set[0].evd[1],
					 set[0].evd[2], &attr, &env->ep));
	env->kep = kdapl_obj_get(env->ep, DAT_HANDLE_TYPE_EP);
	KUNIT_ASSERT_NOT_NULL(test, env->kep);
	env->qp = kd_conn_of(env)->qp;
	for (to = 1; to < 6; to++) {
		struct mod_set *now = &set[to & 1], *was = &set[!(to & 1)];

		mod_query(env, &want);
		mod_set_name(now, &want);
		want.ep_attr.max_rdma_read_in = -1;
		mod_refused(env, MOD_HANDLES | DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IN, &want,
			    DAT_INVALID_PARAMETER, DAT_INVALID_ARG3, "uses");
		fake_ib_fail(env->dev, FAKE_IB_CREATE_QP, 1, -ENOMEM);
		mod_refused(env, MOD_HANDLES, &want, DAT_INSUFFICIENT_RESOURCES, 0, "uses");
		mod_set_used(env, was, now);
		mod_set_name(now, &want);
		mod_done(env, MOD_HANDLES, &want, "uses");
		mod_set_used(env, now, was);
	}
	kd_ep_free(env);
	for (i = 0; i < 2; i++) {
		KD_EXPECT_OK(test, dat_pz_free(set[i].pz));
		for (k = 0; k < 3; k++)
			KD_EXPECT_OK(test, dat_evd_free(set[i].evd[k]));
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
	int i;

	kd_ep(env, NULL);
	fake_ib_live(env->dev, &before);
	mod_query(env, &want);
	for (i = 0; i < 3; i++) {
		memset(&now, 0, sizeof(now));
		mod_done(env, MOD_HANDLES, &now, "none");
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
		KD_EXPECT_RET(test, kd_post(env->ep, KD_RECV, 0, NULL, 0, NULL, 0),
			      DAT_PROTECTION_VIOLATION, DAT_PROTECTION_WRITE);
		/* the state comes before the PZ */
		KD_EXPECT_RET(test, kd_post(env->ep, KD_SEND, 1, &iov, 0, NULL, 0),
			      DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONNECTED);
		/* attributes of an EP without QP change, too */
		now.ep_attr.max_recv_dtos = 4 + i;
		mod_done(env, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &now, "without QP");
		want.ep_attr.max_recv_dtos = 4 + i;
		mod_done(env, MOD_HANDLES, &want, "back");
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
		kd_expect_dto(test, env->recv, 6, DAT_DTO_SUCCESS);
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
		kd_again(test);
	}
}

static struct kunit_case modify_cases[] = {
	KD_CASE(mod_defaults_test,
		"EP-CREATE-01,EP-CREATE-03,EP-CREATE-06,EP-CREATE-07,SIL-08: defaults"),
	KD_CASE(mod_handles_test,
		"EP-MOD-02,EP-CREATE-02,EP-CREATE-04..05,SIL-36,GEN-07,GEN-08: PZs and EVDs"),
	KD_CASE(mod_state_test, "EP-MOD-02,EP-CREATE-13: every bit in every state"),
	KD_CASE(mod_args_test,
		"EP-MOD-02,GEN-04,GEN-08,EP-QRY-03,EP-STA-02,EP-DIS-02: arguments"),
	KD_CASE(mod_values_test,
		"EP-MOD-01..02,EP-CREATE-08..10,SIL-08,GEN-07: values in and out of range"),
	KD_CASE(mod_flags_test,
		"EP-MOD-02,FLAG-12,FLAG-14..16,EP-CREATE-08,EP-CREATE-16: completion flags"),
	KD_CASE(mod_posted_test, "EP-MOD-03,EP-MOD-05,EP-MOD-01: with Receives posted"),
	KD_CASE(mod_works_test, "EP-MOD-01,EP-MOD-05,EP-RST-03: the EP works with what it got"),
	KD_CASE(mod_uses_test, "EP-MOD-06,EP-CREATE-17,GEN-11,PZ-02,EVD-FREE-01: uses move along"),
	KD_CASE(mod_null_test,
		"EP-MOD-07,RECV-18,EP-CREATE-02,EP-CREATE-03: no PZ, no EVDs, and back"),
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
