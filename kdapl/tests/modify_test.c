// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Attributes of EPs: how they are created, queried and modified, what may change
 * when, what a change does to the QP, to Receives and to the objects it names.
 */
#include "kd_upcall.h"

#define MOD_BITS	31

#define F(name)		DAT_EP_FIELD_##name
#define A(name)		DAT_EP_FIELD_EP_ATTR_##name

static const u64 mod_fixed = F(IA_HANDLE) | F(EP_STATE) |
	F(LOCAL_IA_ADDRESS_PTR) | F(LOCAL_PORT_QUAL) |
	F(REMOTE_IA_ADDRESS_PTR) | F(REMOTE_PORT_QUAL) |
	F(SRQ_HANDLE);

/* A modify that is refused and leaves no trace. */
static void mod_refused(struct kd_env *env, u64 mask, const DAT_EP_PARAM *want, u32 type,
			u32 subtype, const char *what)
{
	unsigned int outstanding = fake_ib_outstanding(env->qp, true);
	u32 number = env->qp->qp_num;
	DAT_EP_PARAM before, after;
	DAT_RETURN ret;

	kd_query(env, env->ep, &before);
	ret = dat_ep_modify(env->ep, mask, want);
	KUNIT_EXPECT_EQ_MSG(env->test, (u32)DAT_GET_TYPE(ret), type, "%s, mask %#llx", what, mask);
	if (subtype)
		KUNIT_EXPECT_EQ_MSG(env->test, (u32)ret, (u32)DAT_ERROR(type, subtype),
				    "%s, mask %#llx", what, mask);
	kd_query(env, env->ep, &after);
	KUNIT_EXPECT_EQ_MSG(env->test, memcmp(&before, &after, sizeof(before)), 0,
			    "%s, mask %#llx", what, mask);
	KUNIT_EXPECT_PTR_EQ(env->test, kd_conn_of(env)->qp, env->qp);
	KUNIT_EXPECT_EQ(env->test, env->qp->qp_num, number);
	KUNIT_EXPECT_EQ(env->test, fake_ib_outstanding(env->qp, true), outstanding);
}

static void mod_bad_arg(struct kd_env *env, u64 mask, const DAT_EP_PARAM *want)
{
	mod_refused(env, mask, want, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3, "argument");
}

/* Because of Receives. */
static void mod_busy(struct kd_env *env, u64 mask, const DAT_EP_PARAM *want)
{
	mod_refused(env, mask, want, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONNECTED, "busy");
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

#define MOD_HANDLES	(F(PZ_HANDLE) | F(RECV_EVD_HANDLE) | \
			 F(REQUEST_EVD_HANDLE) | F(CONNECT_EVD_HANDLE))

/* Without attributes: all that an EP needs, so that those of a query make another one. */
static void mod_defaults_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(0, 8, 1);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	const DAT_EP_ATTR *attr;
	DAT_EP_HANDLE ep;
	DAT_EP_PARAM p;
	int i;

	attr = &p.ep_attr;
	/* EVDs for Receives and for requests: neither, one of them, both */
	for (i = 0; i < 4; i++) {
		const DAT_HANDLE want[] = {
			i ? env->pz : NULL, i & 1 ? env->recv : NULL, i & 2 ? env->req : NULL,
			i == 3 ? env->conn : NULL, NULL,	/* no SRQ */
		};

		KD_ASSERT_OK(test, dat_ep_create(env->ia, want[0], want[1], want[2], want[3], NULL,
						 &ep));
		kd_query(env, ep, &p);
		KUNIT_EXPECT_PTR_EQ(test, p.ia_handle, env->ia);
		KUNIT_EXPECT_EQ(test, (int)p.ep_state, (int)DAT_EP_STATE_UNCONNECTED);
		KUNIT_EXPECT_EQ(test, memcmp(&p.pz_handle, want, sizeof(want)), 0);
		KUNIT_EXPECT_EQ(test, (int)attr->service_type, (int)DAT_SERVICE_TYPE_RC);
		KUNIT_EXPECT_EQ(test, (int)attr->qos, (int)DAT_QOS_BEST_EFFORT);
		KUNIT_EXPECT_EQ(test, (int)attr->recv_completion_flags, 0);
		KUNIT_EXPECT_EQ(test, (int)attr->request_completion_flags, 0);
		KUNIT_EXPECT_GT(test, (u64)attr->max_message_size, 0ULL);
		KUNIT_EXPECT_GT(test, (u64)attr->max_rdma_size, 0ULL);
		KUNIT_EXPECT_GT(test, (int)attr->max_recv_iov, 0);
		KUNIT_EXPECT_GT(test, (int)attr->max_request_iov, 0);
		KUNIT_EXPECT_EQ(test, attr->max_recv_dtos > 0, i & 1);
		KUNIT_EXPECT_EQ(test, attr->max_request_dtos > 0, i >> 1);
		KUNIT_EXPECT_EQ(test, (int)attr->max_rdma_read_in, 4);
		KUNIT_EXPECT_EQ(test, (int)attr->max_rdma_read_out, 4);
		KD_EXPECT_OK(test, dat_ep_free(ep));
		KD_BAD_HANDLE(test, dat_ep_free(ep), _EP);
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
	} rows[] = {	/* in the order of DAT_EP_PARAM */
		{ F(PZ_HANDLE), DAT_INVALID_HANDLE_PZ },
		{ F(RECV_EVD_HANDLE), DAT_INVALID_HANDLE_EVD_RECV },
		{ F(REQUEST_EVD_HANDLE), DAT_INVALID_HANDLE_EVD_REQUEST },
		{ F(CONNECT_EVD_HANDLE), DAT_INVALID_HANDLE_EVD_CONN },
	};
	struct kd_env *env = kd_open(test, NULL);
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL, evd;
	DAT_IA_HANDLE ia = kd_ia_more(env, &async);
	DAT_EP_PARAM want;
	DAT_PZ_HANDLE pz;
	DAT_EP_HANDLE ep;
	int i, row;

	kd_ep(env, NULL);
	KD_ASSERT_OK(test, dat_pz_create(ia, &pz));
	KD_ASSERT_OK(test, dat_evd_kcreate(ia, 8, DAT_UPCALL_DISABLE, NULL,
					   DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG, &evd));
	for (i = 0; i < 4 * ARRAY_SIZE(rows); i++) {
		/* of another kind, of nothing, of another IA, without the stream */
		DAT_HANDLE bad[] = {
			env->ia, (DAT_HANDLE)0x1234567UL, i < 4 ? (DAT_HANDLE)pz : evd,
			i < 12 ? env->conn : env->recv,
		};

		row = i / 4;
		kd_query(env, env->ep, &want);
		(&want.pz_handle)[row] = bad[i % 4];
		mod_bad_arg(env, rows[row].mask, &want);
		KD_EXPECT_RET(test, dat_ep_create(env->ia, want.pz_handle, want.recv_evd_handle,
						  want.request_evd_handle, want.connect_evd_handle,
						  NULL, &ep),
			      DAT_INVALID_HANDLE, rows[row].subtype);
	}
	KD_BAD_ARG(test, dat_ep_create(env->ia, env->pz, NULL, NULL, NULL, NULL, NULL), 7);
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
	int i;

	kd_ep(env, NULL);
	kd_query(env, env->ep, &param);
	KD_EXPECT_OK(test, dat_ep_modify(env->ep, 0, NULL));
	KD_EXPECT_OK(test, dat_ep_modify(env->ep, 0, &param));
	mod_bad_arg(env, F(PZ_HANDLE), NULL);
	/* no attribute of a transport or a provider has a name here */
	want = param;
	want.ep_attr.ep_transport_specific_count = 1;
	want.ep_attr.ep_transport_specific = &named;
	want.ep_attr.ep_provider_specific_count = 1;
	want.ep_attr.ep_provider_specific = &named;
	mod_refused(env, A(NUM_TRANSPORT_ATTR) | A(TRANSPORT_SPECIFIC_ATTR), &want,
		    DAT_INVALID_PARAMETER, 0, "named");
	mod_refused(env, A(NUM_PROVIDER_ATTR) | A(PROVIDER_SPECIFIC_ATTR), &want,
		    DAT_INVALID_PARAMETER, 0, "named");
	for (i = 0; i < 3; i++) {	/* unconnected, connected, disconnected */
		KD_EXPECT_OK(test, dat_ep_query(env->ep, 0, NULL));
		KD_BAD_ARG(test, dat_ep_query(env->ep, 0x80000000ULL, &param), 2);
		KD_BAD_ARG(test, dat_ep_query(env->ep, 1ULL << 40, &param), 2);
		KD_BAD_ARG(test, dat_ep_query(env->ep, DAT_EP_FIELD_ALL, NULL), 3);
		KD_EXPECT_OK(test, dat_ep_get_status(env->ep, NULL, NULL, NULL));
		KD_EXPECT_OK(test, dat_ep_get_status(env->ep, &state, NULL, NULL));
		param.ep_state = -1;
		KD_EXPECT_OK(test, dat_ep_query(env->ep, F(EP_STATE), &param));
		KUNIT_EXPECT_EQ(test, (int)param.ep_state, (int)state);
		KD_BAD_ARG(test, dat_ep_disconnect(env->ep, 2), 2);
		KD_BAD_ARG(test, dat_ep_disconnect(env->ep, -1), 2);
		KUNIT_EXPECT_EQ(test, (int)READ_ONCE(env->kep->state), (int)state);
		if (i == 0)
			kd_connect(env);
		else if (i == 1)
			kd_end(env, DAT_CONNECTION_EVENT_DISCONNECTED);
	}
}

/* May the parameter be modified in the state, by table 6.3? */
static bool mod_allowed(u64 bit, const char *letter)
{
	bool u = !strcmp(letter, "U"), t = !strcmp(letter, "T");

	if (bit == A(SRQ_SOFT_HW))
		return true;
	if (bit == F(PZ_HANDLE))
		return u || t;
	if (bit & (A(NUM_TRANSPORT_ATTR) |
		   A(TRANSPORT_SPECIFIC_ATTR) |
		   A(NUM_PROVIDER_ATTR) |
		   A(PROVIDER_SPECIFIC_ATTR)))
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
	kd_query(env, env->ep, &param);
	for (i = 0; i < KD_STATES; i++) {
		const char *letter = kd_states[i].letter;
		u32 subtype = kd_states[i].subtype;
		bool u = kd_states[i].state == DAT_EP_STATE_UNCONNECTED;

		kd_set_state(env, kd_states[i].state);
		for (bit = 0; bit < 64; bit++) {
			mask = 1ULL << bit;
			if (bit >= MOD_BITS || (mask & mod_fixed) ||
			    (mask == F(COMM) && !u))
				mod_refused(env, mask, &param, DAT_INVALID_PARAMETER,
					    DAT_INVALID_ARG2, "fixed or undefined");
			else if (mask == F(COMM))
				continue;	/* see the suite of connections */
			else if (mod_allowed(mask, letter))
				mod_done(env, mask, &param, letter);
			else
				mod_refused(env, mask, &param, DAT_INVALID_STATE, subtype, letter);
		}
		/* together with others the watermark waits for them */
		if (!mod_allowed(A(MAX_RDMA_SIZE), letter))
			mod_refused(env, A(SRQ_SOFT_HW) | A(MAX_RDMA_SIZE), &param,
				    DAT_INVALID_STATE, subtype, letter);
		if (!mod_allowed(F(PZ_HANDLE), letter))
			mod_refused(env, A(SRQ_SOFT_HW) | F(CONNECT_EVD_HANDLE) | F(PZ_HANDLE),
				    &param, DAT_INVALID_STATE, subtype, letter);
	}
	kd_set_state(env, DAT_EP_STATE_UNCONNECTED);
}

/* One attribute: its mask bit, where it is, where its largest value is, its effect. */
#define MOD_ATTR(bit, member, limit, replaces)						\
	{ A(bit), offsetof(DAT_EP_ATTR, member),			\
	  offsetof(DAT_IA_ATTR, limit), replaces }

static const struct mod_attr {
	u64 mask;
	size_t offset, limit;
	bool replaces;		/* the QP */
} mod_attrs[] = {
	MOD_ATTR(MAX_RECV_DTOS, max_recv_dtos, max_dto_per_ep, true),
	MOD_ATTR(MAX_REQUEST_DTOS, max_request_dtos, max_dto_per_ep, true),
	MOD_ATTR(MAX_RECV_IOV, max_recv_iov, max_iov_segments_per_dto, true),
	MOD_ATTR(MAX_REQUEST_IOV, max_request_iov, max_iov_segments_per_dto, true),
	MOD_ATTR(MAX_RDMA_READ_IOV, max_rdma_read_iov, max_iov_segments_per_rdma_read, true),
	MOD_ATTR(MAX_RDMA_WRITE_IOV, max_rdma_write_iov, max_iov_segments_per_rdma_write, true),
	MOD_ATTR(MAX_RDMA_READ_IN, max_rdma_read_in, max_rdma_read_per_ep_in, false),
	MOD_ATTR(MAX_RDMA_READ_OUT, max_rdma_read_out, max_rdma_read_per_ep_out, false),
};

static DAT_COUNT *mod_value(DAT_EP_PARAM *param, const struct mod_attr *attr)
{
	return (void *)&param->ep_attr + attr->offset;
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

/* Values that no EP may have. */
static void mod_bad_values_test(struct kunit *test)
{
	static const struct {
		u64 mask;
		size_t offset;		/* of 32 bits, all of them */
		u32 value;
	} rows[] = {
		{ A(SERVICE_TYPE), offsetof(DAT_EP_ATTR, service_type), 99 },
		{ A(QOS), offsetof(DAT_EP_ATTR, qos), 0x100 },
		{ A(MAX_MESSAGE_SIZE), offsetof(DAT_EP_ATTR, max_message_size), ~0U },
		{ A(MAX_RDMA_SIZE), offsetof(DAT_EP_ATTR, max_rdma_size), ~0U },
		/* an EVD needs something that feeds it */
		{ A(MAX_RECV_DTOS), offsetof(DAT_EP_ATTR, max_recv_dtos), 0 },
		{ A(MAX_REQUEST_DTOS), offsetof(DAT_EP_ATTR, max_request_dtos), 0 },
	};
	struct kd_env *env = kd_open(test, NULL);
	DAT_EP_PARAM want;
	int i;

	kd_ep(env, NULL);
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		kd_query(env, env->ep, &want);
		memcpy((void *)&want.ep_attr + rows[i].offset, &rows[i].value, sizeof(u32));
		mod_bad(env, rows[i].mask, &want, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	}
	kd_query(env, env->ep, &want);
	want.ep_attr.qos = DAT_QOS_PREMIUM | DAT_QOS_ECONOMY;
	mod_bad(env, A(QOS), &want, DAT_MODEL_NOT_SUPPORTED, 0);
	want.ep_attr.srq_soft_hw = -2;
	mod_bad_arg(env, A(SRQ_SOFT_HW), &want);
}

/* Each attribute alone: values inside and outside, and what becomes of the QP. */
static void mod_values_test(struct kunit *test)
{
	static DAT_EP_PARAM zero;
	DAT_EP_PARAM param, want, now;
	struct kd_env *env = kd_open(test, NULL);
	const struct mod_attr *attr;
	DAT_EP_HANDLE ep;
	DAT_IA_ATTR ia;
	bool replaced;
	int v;

	KD_ASSERT_OK(test, dat_ia_query(env->ia, NULL, DAT_IA_FIELD_ALL, &ia, 0, NULL));
	kd_ep(env, NULL);
	for (attr = mod_attrs; attr < mod_attrs + ARRAY_SIZE(mod_attrs); attr++) {
		const long long max = *(DAT_COUNT *)((void *)&ia + attr->limit);
		const int good[] = { 1, 2, max, 3 };
		const int bad[] = { -1, INT_MIN, max + 1, INT_MAX };

		for (v = 0; v < ARRAY_SIZE(bad); v++) {
			kd_query(env, env->ep, &want);
			*mod_value(&want, attr) = bad[v];
			mod_bad(env, attr->mask, &want, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
		}
		for (v = 0; v < ARRAY_SIZE(good); v++) {
			kd_query(env, env->ep, &param);
			/* only what the mask names is looked at */
			memset(&want, 0xa5, sizeof(want));
			*mod_value(&want, attr) = good[v];
			replaced = mod_done(env, attr->mask, &want, "in range");
			KUNIT_EXPECT_EQ_MSG(test, replaced, attr->replaces &&
					    good[v] != *mod_value(&param, attr),
					    "mask %#llx, value %d", attr->mask, good[v]);
			kd_query(env, env->ep, &now);
			*mod_value(&param, attr) = good[v];
			KUNIT_EXPECT_EQ(test, memcmp(&param, &now, sizeof(now)), 0);
			/* nor is there another answer when it is created so */
			ep = kd_ep_new(env, &param.ep_attr);
			kd_query(env, ep, &now);
			KUNIT_EXPECT_EQ(test, memcmp(&param.ep_attr, &now.ep_attr,
						     sizeof(now.ep_attr)), 0);
			KD_EXPECT_OK(test, dat_ep_free(ep));
		}
	}
	/* one bad value among good ones: nothing changes */
	kd_query(env, env->ep, &want);
	want.ep_attr.max_request_dtos = 5;
	want.ep_attr.max_rdma_read_in = -1;
	want.pz_handle = env->pz2;
	mod_bad_arg(env, A(MAX_REQUEST_DTOS) | F(PZ_HANDLE) | A(MAX_RDMA_READ_IN), &want);
	/* queues of depth 0 need no EVD */
	mod_done(env, A(MAX_RECV_DTOS) | F(RECV_EVD_HANDLE), &zero, "no receives");
}

/* Every value of the completion flags and every other bit, modified and created. */
static void mod_flags_test(struct kunit *test)
{
	static const u64 mask[2] = {
		A(RECV_COMPLETION_FLAGS),
		A(REQUEST_COMPLETION_FLAGS),
	};
	struct kd_env *env = kd_open(test, NULL);
	DAT_EP_PARAM want, usual;
	DAT_EP_HANDLE other;
	int n, flags, role;

	kd_ep(env, NULL);
	kd_query(env, env->ep, &usual);
	for (n = 0; n < 2 * (16 + 28); n++) {
		flags = n / 2 < 16 ? n / 2 : BIT(n / 2 - 12);
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
	kd_query(env, env->ep, &want);
	want.ep_attr.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	want.ep_attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	mod_done(env, mask[0] | mask[1], &want, "unsignalled");
	other = kd_ep_new(env, &want.ep_attr);
	/* ... keeps both from changing, on these EVDs */
	for (role = 0; role < 2; role++)
		mod_bad_arg(env, mask[role], &usual);
	/* on an EVD of its own it goes; back again it does not */
	usual.recv_evd_handle = DAT_HANDLE_NULL;
	KUNIT_EXPECT_TRUE(test, mod_done(env, mask[0] | F(RECV_EVD_HANDLE), &usual, "own EVD"));
	usual.recv_evd_handle = env->recv;
	mod_bad_arg(env, F(RECV_EVD_HANDLE), &usual);
	/* solicited wait and requests do not share an EVD */
	usual.ep_attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	usual.recv_evd_handle = env->req;
	mod_bad_arg(env, F(RECV_EVD_HANDLE) | mask[0], &usual);
	KD_EXPECT_OK(test, dat_ep_free(other));
}

/* With Receives posted: what needs another QP is refused, the rest goes. */
static void mod_posted_test(struct kunit *test)
{
	static const u64 later[] = {
		F(PZ_HANDLE), F(RECV_EVD_HANDLE),
		F(REQUEST_EVD_HANDLE), A(RECV_COMPLETION_FLAGS),
		A(REQUEST_COMPLETION_FLAGS),
	};
	struct kd_env *env = kd_open(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	const struct mod_attr *attr;
	DAT_EP_PARAM want, now;
	struct kdapl_evd *evd;
	DAT_EVD_HANDLE conn;
	int i;

	kd_ep(env, NULL);
	for (i = 0; i < 5; i++)
		KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, i, NULL, 0));
	for (attr = mod_attrs; attr < mod_attrs + ARRAY_SIZE(mod_attrs); attr++) {
		kd_query(env, env->ep, &want);
		*mod_value(&want, attr) = 1;
		if (attr->replaces) {
			mod_busy(env, attr->mask, &want);
			continue;
		}
		KUNIT_EXPECT_FALSE(test, mod_done(env, attr->mask, &want, "no QP"));
		kd_query(env, env->ep, &now);
		KUNIT_EXPECT_EQ(test, memcmp(&want, &now, sizeof(now)), 0);
	}
	kd_query(env, env->ep, &want);
	want.pz_handle = env->pz2;
	want.recv_evd_handle = env->req;
	want.request_evd_handle = env->recv;
	want.ep_attr.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	want.ep_attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	for (i = 0; i < ARRAY_SIZE(later); i++)
		mod_busy(env, later[i], &want);
	/* the same value is no change */
	kd_query(env, env->ep, &want);
	for (i = 0; i < ARRAY_SIZE(later); i++)
		KUNIT_EXPECT_FALSE(test, mod_done(env, later[i], &want, "the same"));
	/* and the EVD does not remember what was refused */
	kd_query(env, env->ep, &want);
	want.ep_attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	mod_busy(env, A(RECV_COMPLETION_FLAGS), &want);
	evd = kdapl_obj_get(env->recv, DAT_HANDLE_TYPE_EVD);
	KUNIT_ASSERT_NOT_NULL(test, evd);
	KUNIT_EXPECT_EQ(test, evd->attached_with[1][DAT_COMPLETION_DEFAULT_FLAG], 1U);
	KUNIT_EXPECT_EQ(test, evd->attached[1], 1U);
	KUNIT_EXPECT_FALSE(test, evd->solicited);
	kdapl_obj_put(&evd->obj);
	kd_query(env, env->ep, &want);
	/* the connect EVD, the sizes */
	KD_ASSERT_OK(test, dat_evd_kcreate(env->ia, 8, DAT_UPCALL_DISABLE, NULL,
					   DAT_EVD_CONNECTION_FLAG, &conn));
	want.connect_evd_handle = conn;
	want.ep_attr.max_message_size = 100;
	want.ep_attr.max_rdma_size = 50;
	KUNIT_EXPECT_FALSE(test, mod_done(env, F(CONNECT_EVD_HANDLE) | A(MAX_MESSAGE_SIZE) |
					  A(MAX_RDMA_SIZE), &want, "in place"));
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
	KD_BAD_ARG(test, kd_post(env->ep, KD_SEND, 1, &iov, 0, NULL, 0), 3);
}

/* An EP beside the one that is being changed, on its EVD for Receives. */
static struct mod_beside {
	struct kd_env *env;
	bool recv;		/* this queue of it is there */
	int flags;		/* of that queue */
	DAT_EP_HANDLE ep;
	DAT_RETURN ret;
	bool solicited;		/* the EVD would not notify of everything */
} mod_beside;

static void mod_beside_create(void *arg)
{
	struct mod_beside *beside = arg;
	struct kd_env *env = beside->env;
	DAT_EP_ATTR attr;

	kd_attr(&attr);
	if (beside->recv)
		attr.recv_completion_flags = beside->flags;
	else
		attr.request_completion_flags = beside->flags;
	beside->ret = dat_ep_create(env->ia, env->pz, beside->recv ? env->recv : DAT_HANDLE_NULL,
				    beside->recv ? DAT_HANDLE_NULL : env->recv, env->conn, &attr,
				    &beside->ep);
}

/* Another thread, since this one has the lock of the EP. */
static void mod_beside_make(struct kdapl_ep *ep)
{
	struct kunit *test = mod_beside.env->test;
	struct kd_aside aside;

	mod_beside.solicited = READ_ONCE(ep->conf.recv_evd->solicited);
	kd_aside(test, &aside, mod_beside_create, &mod_beside);
	KUNIT_EXPECT_TRUE(test, kd_aside_wait(&aside));
}

/*
 * That a change of the completion flags is refused is known when the fresh connection is attached.
 * Until then nothing may come that the old flags or the new ones keep out.
 */
static void mod_beside_test(struct kunit *test)
{
	const int wait = DAT_COMPLETION_SOLICITED_WAIT_FLAG, uns = DAT_COMPLETION_UNSIGNALLED_FLAG;
	const struct {
		int from, to;		/* the change, refused because of the Receives */
		bool recv;		/* the queue of the other EP, and its flags */
		int flags;
		bool ok;
	} rows[] = {
		{ wait, 0, true, 0, false }, { wait, 0, false, 0, false },
		{ wait, 0, true, wait, false }, { 0, wait, true, wait, false },
		{ 0, wait, true, 0, false }, { 0, uns, true, uns, false },
		{ wait, uns, true, uns, false }, { 0, uns, false, 0, true },
	};
	struct kd_env *env = kd_open(test, NULL);
	struct kd_upcalls *up = kd_upcalls_on(env, &env->recv, DAT_EVD_DTO_FLAG);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	struct kdapl_evd *evd = kdapl_obj_get(env->recv, DAT_HANDLE_TYPE_EVD);
	DAT_EP_PARAM want = {};
	DAT_EP_ATTR attr;
	int i, n;

	KUNIT_ASSERT_NOT_NULL(test, evd);
	kdapl_obj_put(&evd->obj);	/* the handle keeps it */
	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		kd_attr(&attr);
		attr.recv_completion_flags = rows[i].from;
		kd_ep(env, &attr);
		for (n = 0; n < 3; n++)
			KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, n, NULL, 0));
		mod_beside = (struct mod_beside) {
			.env = env, .recv = rows[i].recv, .flags = rows[i].flags,
		};
		want.ep_attr.recv_completion_flags = rows[i].to;
		kdapl_test_fresh_conn = mod_beside_make;
		mod_busy(env, A(RECV_COMPLETION_FLAGS), &want);
		kdapl_test_fresh_conn = NULL;
		KUNIT_EXPECT_EQ_MSG(test, (u32)mod_beside.ret,
				    rows[i].ok ? (u32)DAT_SUCCESS :
				    (u32)DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG6),
				    "row %d", i);
		KUNIT_EXPECT_FALSE_MSG(test, mod_beside.solicited, "row %d", i);
		KUNIT_EXPECT_EQ_MSG(test, evd->solicited, rows[i].from == wait, "row %d", i);
		/* the EP is notified as before; the first time perhaps too early */
		kd_connect(env);
		KUNIT_EXPECT_EQ(test, fake_ib_recv(env->qp, 1, true), 0);
		KUNIT_EXPECT_EQ_MSG(test, kd_upcalls_wait(up, 1), 1, "row %d", i);
		KUNIT_EXPECT_EQ(test, fake_ib_recv(env->qp, 1, false), 0);
		n = rows[i].from == wait ? 1 : 2;
		KUNIT_EXPECT_EQ_MSG(test, kd_upcalls_wait(up, n), n, "row %d", i);
		KUNIT_EXPECT_EQ(test, fake_ib_recv(env->qp, 1, true), 0);
		KUNIT_EXPECT_EQ_MSG(test, kd_upcalls_wait(up, 3), 3, "row %d", i);
		if (mod_beside.ret == DAT_SUCCESS)
			KD_EXPECT_OK(test, dat_ep_free(mod_beside.ep));
		kd_ep_free(env);
		up->n = 0;
	}
}

/*
 * A change that succeeds, away from solicited wait: from now on every completion notifies. The
 * Receives stay and wait no longer; or they go to another EVD, and requests come in their place.
 */
static void mod_unwait_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kd_upcalls *up = kd_upcalls_on(env, &env->recv, DAT_EVD_DTO_FLAG);
	DAT_EVD_HANDLE other = kd_evd(env, 8, DAT_EVD_DTO_FLAG);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	DAT_EP_PARAM want;
	DAT_EP_ATTR attr;
	int moves, i;

	for (moves = 0; moves < 2; moves++) {
		kd_attr(&attr);
		attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
		kd_ep(env, &attr);
		kd_settle(up->evd);
		kd_query(env, env->ep, &want);
		want.ep_attr.recv_completion_flags = DAT_COMPLETION_DEFAULT_FLAG;
		want.recv_evd_handle = other;
		want.request_evd_handle = env->recv;
		mod_done(env, moves ? F(RECV_EVD_HANDLE) | F(REQUEST_EVD_HANDLE) :
				      A(RECV_COMPLETION_FLAGS), &want, "unwait");
		kd_connect(env);
		kd_settle(up->evd);
		up->n = 0;
		for (i = 1; i <= 2; i++) {
			if (moves) {
				kd_sent(env, env->ep, env->qp, i, 0);
			} else {
				KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, i, NULL, 0));
				KUNIT_EXPECT_EQ(test, fake_ib_recv(env->qp, 1, false), 0);
			}
			KUNIT_EXPECT_EQ_MSG(test, kd_upcalls_wait(up, i), i, "moves %d", moves);
		}
		kd_ep_free(env);
	}
	KD_EXPECT_OK(test, dat_evd_free(other));
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

	KD_BAD_STATE(test, dat_pz_free(used->pz), PZ_IN_USE);
	KD_EXPECT_OK(test, dat_pz_free(unused->pz));
	for (k = 0; k < 3; k++) {
		KD_BAD_STATE(test, dat_evd_free(used->evd[k]), EVD_IN_USE);
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
	DAT_EP_HANDLE ep;
	DAT_EP_ATTR attr;
	int i, k, to;

	mod_set_new(env, &set[0]);
	mod_set_new(env, &set[1]);
	kd_attr(&attr);
	KD_ASSERT_OK(test, dat_ep_create(env->ia, set[0].pz, set[0].evd[0], set[0].evd[1],
					 set[0].evd[2], &attr, &ep));
	kd_ep_take(env, ep);
	for (to = 1; to < 6; to++) {
		struct mod_set *now = &set[to & 1], *was = &set[!(to & 1)];

		kd_query(env, env->ep, &want);
		mod_set_name(now, &want);
		want.ep_attr.max_rdma_read_in = -1;
		mod_refused(env, MOD_HANDLES | A(MAX_RDMA_READ_IN), &want,
			    DAT_INVALID_PARAMETER, DAT_INVALID_ARG3, "uses");
		/* of CQs there is another try, smaller (evd_cqs_test.c) */
		fake_ib_fail(env->dev, to & 1 ? FAKE_IB_CREATE_QP : FAKE_IB_MODIFY_QP, 1, -ENOMEM);
		mod_refused(env, MOD_HANDLES, &want, DAT_INSUFFICIENT_RESOURCES, 0, "uses");
		KUNIT_EXPECT_EQ(test, fake_ib_failing(env->dev, FAKE_IB_CREATE_QP), 0U);
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
	DAT_EP_PARAM want, now, none = {};
	int i;

	kd_ep(env, NULL);
	kd_query(env, env->ep, &want);
	for (i = 0; i < 2; i++) {
		mod_done(env, MOD_HANDLES, &none, "none");
		KUNIT_EXPECT_NULL(test, env->qp);
		kd_query(env, env->ep, &now);
		KUNIT_EXPECT_EQ(test, memcmp(&now.pz_handle, &none.pz_handle,
					     4 * sizeof(DAT_HANDLE)), 0);
		KD_EXPECT_RET(test, kd_post(env->ep, KD_RECV, i, i ? &iov : NULL, 0, NULL, 0),
			      DAT_PROTECTION_VIOLATION, DAT_PROTECTION_WRITE);
		/* the state comes before the PZ */
		KD_BAD_STATE(test, kd_post(env->ep, KD_SEND, 1, &iov, 0, NULL, 0), EP_UNCONNECTED);
		/* attributes of an EP without QP change, too */
		want.ep_attr.max_recv_dtos = 4 + i;
		mod_done(env, A(MAX_RECV_DTOS), &want, "without QP");
		mod_done(env, MOD_HANDLES, &want, "back");
		KUNIT_ASSERT_NOT_NULL(test, env->qp);
		kd_query(env, env->ep, &now);
		KUNIT_EXPECT_EQ(test, memcmp(&now, &want, sizeof(now)), 0);
	}
	KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, 1, NULL, 0));
	kd_connect(env);
	KUNIT_EXPECT_EQ(test, fake_ib_recv(env->qp, 1, false), 0);
	kd_expect_dto(test, env->recv, 1, DAT_DTO_SUCCESS);
}

/* A Receive posted while the QP is being replaced is on the QP that stays. */
struct mod_race {
	struct kd_env *env;
	struct kd_aside aside;
	DAT_RETURN ret;
	int delay;
};

static void mod_race_post(void *arg)
{
	struct mod_race *race = arg;
	DAT_LMR_TRIPLET iov = kd_seg(race->env, KD_RW, 0, 8);

	usleep_range(race->delay, race->delay + 20);
	race->ret = kd_post(race->env->ep, KD_RECV, 1, &iov, 1, NULL, 0);
}

static void mod_race_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct mod_race race = { .env = env };
	DAT_EP_PARAM want;
	DAT_RETURN ret;
	int round;

	for (round = 0; round < 30; round++) {
		kd_ep(env, NULL);
		kd_query(env, env->ep, &want);
		want.ep_attr.max_recv_dtos = 9;
		race.delay = 10 * round;
		kd_aside(test, &race.aside, mod_race_post, &race);
		ret = dat_ep_modify(env->ep, A(MAX_RECV_DTOS), &want);
		KUNIT_ASSERT_TRUE(test, kd_aside_wait(&race.aside));
		KD_EXPECT_OK(test, race.ret);
		if (ret != DAT_SUCCESS)
			KD_BAD_STATE(test, ret, EP_UNCONNECTED);
		env->qp = kd_conn_of(env)->qp;
		KUNIT_EXPECT_EQ(test, fake_ib_outstanding(env->qp, true), 1U);
		kd_query(env, env->ep, &want);
		KUNIT_EXPECT_EQ(test, (int)want.ep_attr.max_recv_dtos, ret ? 8 : 9);
		kd_ep_free(env);
	}
}

/* An EP with an SRQ: the SRQ stays, its own buffers do not hinder a change. */
static void mod_srq(struct kunit *test, enum rdma_driver_id driver)
{
	struct fake_ib_caps caps = { .driver = driver };
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 8, .max_recv_iov = 1 };
	struct kd_env *env = kd_open(test, &caps);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	DAT_DTO_COOKIE cookie = { .as_64 = 6 };
	DAT_EP_PARAM want, now;
	DAT_SRQ_HANDLE srq;
	DAT_EP_ATTR ep_attr;
	DAT_EP_HANDLE ep;
	DAT_EVENT event;

	KD_ASSERT_OK(test, dat_srq_create(env->ia, env->pz, &attr, &srq));
	KD_EXPECT_OK(test, dat_srq_post_recv(srq, 1, &iov, cookie));
	kd_attr(&ep_attr);
	KD_ASSERT_OK(test, dat_ep_create_with_srq(env->ia, env->pz, env->recv, env->req, env->conn,
						  srq, &ep_attr, &ep));
	kd_ep_take(env, ep);
	kd_query(env, env->ep, &want);
	mod_refused(env, F(SRQ_HANDLE), &want, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, "SRQ");
	want.pz_handle = env->pz2;
	if (driver == RDMA_DRIVER_RXE)
		mod_bad_arg(env, F(PZ_HANDLE), &want);
	else
		KUNIT_EXPECT_TRUE(test, mod_done(env, F(PZ_HANDLE), &want, "PZ differs"));
	want.ep_attr.max_request_dtos = 3;
	want.ep_attr.srq_soft_hw = 0;
	KUNIT_EXPECT_TRUE(test, mod_done(env, A(MAX_REQUEST_DTOS) | A(SRQ_SOFT_HW), &want, "SRQ"));
	kd_query(env, env->ep, &now);
	KUNIT_EXPECT_PTR_EQ(test, now.srq_handle, srq);
	KUNIT_EXPECT_EQ(test, (int)now.ep_attr.srq_soft_hw, 0);
	kd_connect(env);
	KUNIT_EXPECT_EQ(test, fake_ib_recv(env->qp, 1, false), 0);
	kd_expect_dto(test, env->recv, 6, DAT_DTO_SUCCESS);
	/* the soft watermark came with it */
	kd_next_wait(env, env->async, &event);
	KUNIT_EXPECT_EQ(test, (int)event.event_data.asynch_error_event_data.reason,
			(int)DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT);
	KD_BAD_STATE(test, dat_srq_free(srq), SRQ_IN_USE);
	kd_ep_free(env);
	KD_EXPECT_OK(test, dat_srq_free(srq));
}

static void mod_srq_test(struct kunit *test)
{
	mod_srq(test, RDMA_DRIVER_UNKNOWN);
	kd_again(test);
	mod_srq(test, RDMA_DRIVER_RXE);
}

static struct kunit_case modify_cases[] = {
	KD_CASE(mod_defaults_test,
		"EP-CREATE-01,EP-CREATE-03,EP-CREATE-06,EP-CREATE-07,SIL-08: defaults"),
	KD_CASE(mod_handles_test,
		"EP-MOD-02,EP-CREATE-02,EP-CREATE-04..05,SIL-36,GEN-07,GEN-08: PZs and EVDs"),
	KD_CASE(mod_state_test, "EP-MOD-02,EP-CREATE-13: every bit in every state"),
	KD_CASE(mod_args_test,
		"EP-MOD-02,GEN-04,GEN-08,EP-QRY-03,EP-STA-02,EP-DIS-02: arguments"),
	KD_CASE(mod_bad_values_test,
		"EP-MOD-02,EP-CREATE-08..09,GEN-07: values that no EP may have"),
	KD_CASE(mod_values_test,
		"EP-MOD-01..02,EP-CREATE-08..10,SIL-08,GEN-07: values in and out of range"),
	KD_CASE(mod_flags_test,
		"EP-MOD-02,FLAG-12,FLAG-14..16,EP-CREATE-08,EP-CREATE-16: completion flags"),
	KD_CASE(mod_posted_test, "EP-MOD-03,EP-MOD-05,EP-MOD-01: with Receives posted"),
	KD_CASE(mod_beside_test,
		"FLAG-15,FLAG-16,EP-MOD-05: an EP comes beside one that is being changed"),
	KD_CASE(mod_unwait_test, "FLAG-01,FLAG-16,EP-MOD-01: away from solicited wait"),
	KD_CASE(mod_uses_test,
		"EP-MOD-06,EP-CREATE-17,GEN-06,GEN-07,GEN-11,PZ-02,EVD-FREE-01: uses move along"),
	KD_CASE(mod_null_test,
		"EP-MOD-07,RECV-18,EP-CREATE-02,EP-CREATE-03: no PZ, no EVDs, and back"),
	KD_CASE(mod_race_test, "EP-MOD-05,RECV-13,CTX-03: a Receive while the QP is replaced"),
	KD_CASE(mod_srq_test, "EP-MOD-02,EP-CREATE-13,EP-CREATE-14: EPs with an SRQ"),
	{}
};

KD_SUITE("kdapl-modify", modify_cases, kd_init, kd_exit);
