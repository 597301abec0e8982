// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Arguments of the connection calls: all combinations of good and bad ones. Of
 * several that are wrong the first class of checks decides (handles, values and
 * pointers, flags, state), and a refused call has changed nothing.
 *
 * The fake device has no IP address, so a call with nothing wrong ends with
 * DAT_INVALID_ADDRESS, after all checks and before anything has happened.
 */
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/limits.h>

#include "kd_conn.h"

enum ca_class { CA_GOOD, CA_HANDLE, CA_VALUE, CA_FLAGS, CA_STATE };

/* One value of an argument, and what a call with it returns if nothing worse is wrong. */
struct ca_alt {
	enum ca_class class;
	DAT_RETURN want;
	u64 value;
};

#define CA_ARGS		7

struct ca_arg {
	int n;
	const struct ca_alt *alt;
};

/**
 * struct ca_call - a call and the values of its arguments
 * @name: its name
 * @fn: calls it
 * @good: what it returns if nothing is wrong
 * @nargs: number of arguments
 * @args: their values
 */
struct ca_call {
	const char *name;
	DAT_RETURN (*fn)(const u64 *v);
	DAT_RETURN good;
	int nargs;
	struct ca_arg args[CA_ARGS];
};

#define GOOD(v)			{ CA_GOOD, DAT_SUCCESS, (u64)(uintptr_t)(v) }
#define BAD_HANDLE(v, kind)	{ CA_HANDLE, DAT_ERROR(DAT_INVALID_HANDLE,		\
						       DAT_INVALID_HANDLE_##kind),	\
				  (u64)(uintptr_t)(v) }
#define BAD(v, n)		{ CA_VALUE, DAT_ERROR(DAT_INVALID_PARAMETER,		\
						      DAT_INVALID_ARG##n), (u64)(uintptr_t)(v) }
#define BAD_FLAG(v, n)		{ CA_FLAGS, DAT_ERROR(DAT_INVALID_PARAMETER,		\
						      DAT_INVALID_ARG##n), (u64)(v) }
#define BAD_ADDR(v, kind)	{ CA_FLAGS, DAT_ERROR(DAT_INVALID_ADDRESS,		\
						      DAT_INVALID_ADDRESS_##kind),	\
				  (u64)(uintptr_t)(v) }
#define UNSUPPORTED(v, type)	{ CA_FLAGS, DAT_ERROR(type, DAT_NO_SUBTYPE),		\
				  (u64)(uintptr_t)(v) }
#define BAD_STATE(v, kind)	{ CA_STATE, DAT_ERROR(DAT_INVALID_STATE,		\
						      DAT_INVALID_STATE_EP_##kind),	\
				  (u64)(uintptr_t)(v) }
#define ALTS(...)		{ .n = sizeof((struct ca_alt[]){ __VA_ARGS__ }) /	\
				       sizeof(struct ca_alt),				\
			  .alt = (const struct ca_alt[]){ __VA_ARGS__ } }

#define NO_ADDRESS	DAT_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE)

static void *ca_ptr(u64 v)
{
	return (void *)(uintptr_t)v;
}

/* Does the return fit what was wrong? */
static bool ca_fits(const struct ca_call *call, const struct ca_alt *const *alt, DAT_RETURN ret)
{
	enum ca_class first = CA_STATE + 1;
	int i;

	for (i = 0; i < call->nargs; i++)
		if (alt[i]->class != CA_GOOD)
			first = min(first, alt[i]->class);
	if (first > CA_STATE)
		return ret == call->good;
	for (i = 0; i < call->nargs; i++)
		if (alt[i]->class == first && ret == alt[i]->want)
			return true;
	return false;
}

/* All combinations of all values. */
static void ca_run(struct kunit *test, const struct ca_call *call)
{
	const struct ca_alt *alt[CA_ARGS] = {};
	int i, at[CA_ARGS] = {}, wrong = 0;
	u64 v[CA_ARGS] = {};
	DAT_RETURN ret;

	for (;;) {
		for (i = 0; i < call->nargs; i++) {
			alt[i] = &call->args[i].alt[at[i]];
			v[i] = alt[i]->value;
		}
		ret = call->fn(v);
		if (!ca_fits(call, alt, ret) && wrong++ < 5)
			KUNIT_FAIL(test, "%s: %#x with values %d %d %d %d %d %d %d", call->name,
				   ret, at[0], at[1], at[2], at[3], at[4], at[5], at[6]);
		for (i = 0; i < call->nargs && ++at[i] == call->args[i].n; i++)
			at[i] = 0;
		if (i == call->nargs)
			break;
	}
	KUNIT_EXPECT_EQ_MSG(test, wrong, 0, "%s", call->name);
}

/* Objects of an IA. */
static int ca_objects(DAT_IA_HANDLE handle)
{
	struct kdapl_ia *ia = kdapl_obj_get(handle, DAT_HANDLE_TYPE_IA);
	struct list_head *pos;
	int i, n = 0;

	for (i = 0; i < KDAPL_NTYPES; i++)
		list_for_each(pos, &ia->objs[i])
			n++;
	kdapl_obj_put(&ia->obj);
	return n;
}

/**
 * struct ca - the usual and what else may be named
 * @env: the usual
 * @ia2: another instance of the same IA
 * @ia_dead: one that was closed
 * @async2: EVD for asynchronous events of @ia2
 * @cr_evd: EVD for requests
 * @cr_evd2: the same, of @ia2
 * @evd_dead: one that was freed
 * @ep2: EP of @ia2
 * @ep_dead: one that was freed
 * @ep_bare: EP without connect EVD
 * @ep_no_pz: EP without PZ
 * @ep_d: EP in DISCONNECTED
 * @ep_c: EP in CONNECTED
 * @pz2: PZ of @ia2
 */
struct ca {
	struct kd_env *env;
	DAT_IA_HANDLE ia2, ia_dead;
	DAT_EVD_HANDLE async2, cr_evd, cr_evd2, evd_dead;
	DAT_EP_HANDLE ep2, ep_dead, ep_bare, ep_no_pz, ep_d, ep_c;
	DAT_PZ_HANDLE pz2;
};

static DAT_EP_HANDLE ca_state_ep(struct ca *ca, DAT_EP_STATE state)
{
	struct kd_env *env = ca->env;
	DAT_EP_HANDLE ep;

	kd_ep(env, NULL);
	kd_reach(env, state);
	ep = env->ep;
	kdapl_obj_put(&env->kep->obj);
	env->kep = NULL;
	env->ep = DAT_HANDLE_NULL;
	return ep;
}

static struct ca *ca_open(struct kunit *test)
{
	struct ca *ca = kunit_kzalloc(test, sizeof(*ca), GFP_KERNEL);
	char name[DAT_NAME_MAX_LENGTH];
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	struct kd_env *env;
	DAT_EP_ATTR attr;

	KUNIT_ASSERT_NOT_NULL(test, ca);
	env = kd_open(test, NULL);
	ca->env = env;
	kd_attr(&attr);
	snprintf(name, sizeof(name), "%s-1", fake_ib_name(env->dev));
	KD_ASSERT_OK(test, dat_ia_open(name, 8, &async, &ca->ia_dead));
	KD_ASSERT_OK(test, dat_ia_close(ca->ia_dead, DAT_CLOSE_ABRUPT_FLAG));
	KD_ASSERT_OK(test, dat_ia_open(name, 8, &ca->async2, &ca->ia2));
	KD_ASSERT_OK(test, dat_pz_create(ca->ia2, &ca->pz2));
	KD_ASSERT_OK(test, dat_evd_kcreate(env->ia, 8, DAT_UPCALL_DISABLE, NULL, DAT_EVD_CR_FLAG,
					   &ca->cr_evd));
	KD_ASSERT_OK(test, dat_evd_kcreate(ca->ia2, 8, DAT_UPCALL_DISABLE, NULL,
					   DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG,
					   &ca->cr_evd2));
	KD_ASSERT_OK(test, dat_evd_kcreate(env->ia, 8, DAT_UPCALL_DISABLE, NULL, DAT_EVD_CR_FLAG,
					   &ca->evd_dead));
	KD_ASSERT_OK(test, dat_evd_free(ca->evd_dead));
	KD_ASSERT_OK(test, dat_ep_create(ca->ia2, ca->pz2, NULL, NULL, ca->cr_evd2, NULL,
					 &ca->ep2));
	KD_ASSERT_OK(test, dat_ep_create(env->ia, env->pz, env->recv, env->req, NULL, &attr,
					 &ca->ep_bare));
	KD_ASSERT_OK(test, dat_ep_create(env->ia, NULL, env->recv, env->req, env->conn, &attr,
					 &ca->ep_no_pz));
	KD_ASSERT_OK(test, dat_ep_create(env->ia, env->pz, env->recv, env->req, env->conn, &attr,
					 &ca->ep_dead));
	KD_ASSERT_OK(test, dat_ep_free(ca->ep_dead));
	ca->ep_c = ca_state_ep(ca, DAT_EP_STATE_CONNECTED);
	ca->ep_d = ca_state_ep(ca, DAT_EP_STATE_DISCONNECTED);
	kd_ep(env, NULL);
	return ca;
}

/* The EPs are as they were, nobody has got an event, and nothing is left over. */
static void ca_close(struct ca *ca, int objects)
{
	struct kd_env *env = ca->env;
	struct kunit *test = env->test;
	DAT_EP_STATE state;
	DAT_EVENT event;

	KUNIT_EXPECT_EQ(test, ca_objects(env->ia), objects);
	KD_EXPECT_OK(test, dat_ep_get_status(env->ep, &state, NULL, NULL));
	KUNIT_EXPECT_EQ(test, (int)state, (int)DAT_EP_STATE_UNCONNECTED);
	KD_EXPECT_OK(test, dat_ep_get_status(ca->ep_c, &state, NULL, NULL));
	KUNIT_EXPECT_EQ(test, (int)state, (int)DAT_EP_STATE_CONNECTED);
	KD_EXPECT_EMPTY(test, env->conn);
	KD_EXPECT_EMPTY(test, ca->cr_evd);
	KD_EXPECT_EMPTY(test, env->async);
	KD_EXPECT_OK(test, dat_ep_free(ca->ep_bare));
	KD_EXPECT_OK(test, dat_ep_free(ca->ep_no_pz));
	KD_EXPECT_OK(test, dat_ep_free(ca->ep_c));
	KD_EXPECT_OK(test, dat_ep_free(ca->ep_d));
	kd_ep_free(env);
	while (kd_next(env->conn, &event))
		;
	KD_EXPECT_OK(test, dat_evd_free(ca->cr_evd));
	KD_EXPECT_OK(test, dat_ia_close(ca->ia2, DAT_CLOSE_ABRUPT_FLAG));
}

/* Service points */

static DAT_RETURN ca_psp(const u64 *v)
{
	return dat_psp_create(ca_ptr(v[0]), v[1], ca_ptr(v[2]), v[3], ca_ptr(v[4]));
}

static DAT_RETURN ca_psp_any(const u64 *v)
{
	return dat_psp_create_any(ca_ptr(v[0]), ca_ptr(v[1]), ca_ptr(v[2]), v[3], ca_ptr(v[4]));
}

static DAT_RETURN ca_rsp(const u64 *v)
{
	return dat_rsp_create(ca_ptr(v[0]), v[1], ca_ptr(v[2]), ca_ptr(v[3]), ca_ptr(v[4]));
}

static DAT_RETURN ca_csp(const u64 *v)
{
	return dat_csp_create(ca_ptr(v[0]), ca_ptr(v[1]), ca_ptr(v[2]), ca_ptr(v[3]),
			      ca_ptr(v[4]));
}

/* These are about the variables ca and env of the case. */
#define CA_IA		ALTS(GOOD(env->ia), BAD_HANDLE(NULL, IA), BAD_HANDLE(ca->ia_dead, IA), \
			     BAD_HANDLE(env->pz, IA), BAD_HANDLE(~0UL, IA), BAD_HANDLE(env, IA))
#define CA_EVD		ALTS(GOOD(ca->cr_evd), BAD_HANDLE(NULL, EVD_CR), \
			     BAD_HANDLE(ca->evd_dead, EVD_CR), BAD_HANDLE(ca->cr_evd2, EVD_CR), \
			     BAD_HANDLE(env->conn, EVD_CR), BAD_HANDLE(env->ia, EVD_CR), \
			     BAD_HANDLE(~0UL, EVD_CR))
#define CA_QUAL_2	ALTS(GOOD(1), GOOD(65535), BAD(0, 2), BAD(65536, 2), BAD(1ULL << 32 | 7, 2))
#define CA_QUAL_3	ALTS(GOOD(1), GOOD(65535), BAD(0, 3), BAD(65536, 3), BAD(1ULL << 32 | 7, 3))
#define CA_PSP_FLAGS	ALTS(GOOD(DAT_PSP_CONSUMER_FLAG), GOOD(DAT_PSP_PROVIDER_FLAG), \
			     BAD_FLAG(2, 4), BAD_FLAG(3, 4), BAD_FLAG(0x100, 4))

static void ca_psp_test(struct kunit *test)
{
	struct ca *ca = ca_open(test);
	struct kd_env *env = ca->env;
	int objects = ca_objects(env->ia);
	DAT_HANDLE out;
	const struct ca_call psp = {
		.name = "dat_psp_create", .fn = ca_psp, .good = NO_ADDRESS, .nargs = 5,
		.args = { CA_IA, CA_QUAL_2, CA_EVD, CA_PSP_FLAGS,
			  ALTS(GOOD(&out), BAD(NULL, 5)) },
	};

	ca_run(test, &psp);
	ca_close(ca, objects);
}

static void ca_psp_any_test(struct kunit *test)
{
	struct ca *ca = ca_open(test);
	struct kd_env *env = ca->env;
	int objects = ca_objects(env->ia);
	DAT_CONN_QUAL qual;
	DAT_HANDLE out;
	const struct ca_call any = {
		.name = "dat_psp_create_any", .fn = ca_psp_any, .good = NO_ADDRESS, .nargs = 5,
		.args = { CA_IA, ALTS(GOOD(&qual), BAD(NULL, 2)), CA_EVD, CA_PSP_FLAGS,
			  ALTS(GOOD(&out), BAD(NULL, 5)) },
	};

	ca_run(test, &any);
	ca_close(ca, objects);
}

static void ca_rsp_test(struct kunit *test)
{
	struct ca *ca = ca_open(test);
	struct kd_env *env = ca->env;
	int objects = ca_objects(env->ia);
	DAT_HANDLE out;
	const struct ca_call rsp = {
		.name = "dat_rsp_create", .fn = ca_rsp, .good = NO_ADDRESS, .nargs = 5,
		.args = {
			CA_IA, CA_QUAL_2,
			ALTS(GOOD(env->ep), GOOD(NULL), GOOD(ca->ep_bare), GOOD(ca->ep_no_pz),
			     BAD_HANDLE(ca->ep_dead, EP), BAD_HANDLE(ca->ep2, EP),
			     BAD_HANDLE(env->conn, EP), BAD_HANDLE(~0UL, EP),
			     BAD_STATE(ca->ep_c, CONNECTED), BAD_STATE(ca->ep_d, DISCONNECTED)),
			CA_EVD, ALTS(GOOD(&out), BAD(NULL, 5)),
		},
	};

	ca_run(test, &rsp);
	ca_close(ca, objects);
}

static void ca_csp_test(struct kunit *test)
{
	static DAT_COMM comms[] = {
		{ AF_INET, SOCK_STREAM, 0 },
		{ AF_INET, SOCK_STREAM, IPPROTO_TCP },
		{ AF_INET, SOCK_STREAM, IPPROTO_UDP },
		{ AF_INET, SOCK_DGRAM, 0 },
		{ AF_INET, SOCK_SEQPACKET, IPPROTO_TCP },
		{ AF_UNIX, SOCK_STREAM, 0 },
		{ 0, 0, 0 },
		{ -1, SOCK_STREAM, 0 },
	};
	static struct sockaddr_in in = {
		.sin_family = AF_INET, .sin_port = htons(7), .sin_addr.s_addr = htonl(0x0a000001),
	};
	static struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(7) };
	static struct sockaddr_in no_port = {
		.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a000001),
	};
	static struct sockaddr_in6 in6 = {
		.sin6_family = AF_INET6, .sin6_port = htons(7),
		.sin6_addr = { { { 0xfd, [15] = 1 } } },
	};
	static struct sockaddr_in other = { .sin_family = AF_UNIX, .sin_port = htons(7) };
	struct ca *ca = ca_open(test);
	struct kd_env *env = ca->env;
	int objects = ca_objects(env->ia);
	DAT_HANDLE out;
	const struct ca_call csp = {
		.name = "dat_csp_create", .fn = ca_csp, .good = NO_ADDRESS, .nargs = 5,
		.args = {
			CA_IA,
			ALTS(GOOD(&comms[0]), GOOD(&comms[1]), BAD(NULL, 2),
			     UNSUPPORTED(&comms[2], DAT_COMM_NOT_SUPPORTED),
			     UNSUPPORTED(&comms[3], DAT_COMM_NOT_SUPPORTED),
			     UNSUPPORTED(&comms[4], DAT_COMM_NOT_SUPPORTED),
			     UNSUPPORTED(&comms[5], DAT_COMM_NOT_SUPPORTED),
			     UNSUPPORTED(&comms[6], DAT_COMM_NOT_SUPPORTED),
			     UNSUPPORTED(&comms[7], DAT_COMM_NOT_SUPPORTED)),
			ALTS(GOOD(&in), BAD(NULL, 3), BAD_ADDR(&any, MALFORMED),
			     BAD_ADDR(&no_port, MALFORMED), BAD_ADDR(&in6, UNSUPPORTED),
			     BAD_ADDR(&other, UNSUPPORTED)),
			CA_EVD, ALTS(GOOD(&out), BAD(NULL, 5)),
		},
	};
	DAT_COMM comm6 = { AF_INET6, SOCK_STREAM, IPPROTO_TCP };

	ca_run(test, &csp);
	KUNIT_EXPECT_EQ(test, (u32)dat_csp_create(env->ia, &comm6, (DAT_IA_ADDRESS_PTR)&in6,
						  ca->cr_evd, &out), (u32)NO_ADDRESS);
	KD_EXPECT_RET(test, dat_csp_create(env->ia, &comm6, (DAT_IA_ADDRESS_PTR)&in, ca->cr_evd,
					   &out), DAT_INVALID_ADDRESS,
		      DAT_INVALID_ADDRESS_UNSUPPORTED);
	ca_close(ca, objects);
}

/* Connecting */

static const struct {
	DAT_COUNT size;
	bool null;
} ca_pdata[] = {
	{ 0, true }, { 0, false }, { 56, false }, { 57, false }, { -1, false }, { 1, true },
	{ INT_MAX, false }, { INT_MIN, true },
};

static u8 ca_bytes[64];

static const void *ca_pdata_ptr(u64 v)
{
	return ca_pdata[v].null ? NULL : ca_bytes;
}

#define CA_PDATA_45	ALTS(GOOD(0), GOOD(1), GOOD(2), BAD(3, 4), BAD(4, 4), BAD(5, 5), \
			     BAD(6, 4), BAD(7, 4))
#define CA_PDATA_56	ALTS(GOOD(0), GOOD(1), GOOD(2), BAD(3, 5), BAD(4, 5), BAD(5, 6), \
			     BAD(6, 5), BAD(7, 5))

static DAT_RETURN ca_connect(const u64 *v)
{
	return dat_ep_connect(ca_ptr(v[0]), ca_ptr(v[1]), v[2], v[3], ca_pdata[v[4]].size,
			      (const DAT_PVOID)ca_pdata_ptr(v[4]), v[5], v[6]);
}

static DAT_RETURN ca_common(const u64 *v)
{
	return dat_ep_common_connect(ca_ptr(v[0]), ca_ptr(v[1]), v[2], ca_pdata[v[3]].size,
				     (const DAT_PVOID)ca_pdata_ptr(v[3]));
}

static DAT_RETURN ca_dup(const u64 *v)
{
	return dat_ep_dup_connect(ca_ptr(v[0]), ca_ptr(v[1]), v[2], ca_pdata[v[3]].size,
				  (const DAT_PVOID)ca_pdata_ptr(v[3]), v[4]);
}

static struct sockaddr_in ca_in = {
	.sin_family = AF_INET, .sin_port = htons(7), .sin_addr.s_addr = htonl(0x0a000002),
};

static struct sockaddr_in6 ca_in6 = {
	.sin6_family = AF_INET6, .sin6_port = htons(7), .sin6_addr = { { { 0xfd, [15] = 1 } } },
};

static struct sockaddr_in ca_multi = {
	.sin_family = AF_INET, .sin_port = htons(7), .sin_addr.s_addr = htonl(0xe0000001),
};

static struct sockaddr_in ca_broad = {
	.sin_family = AF_INET, .sin_port = htons(7), .sin_addr.s_addr = htonl(0xffffffff),
};

static struct sockaddr_in ca_zero = { .sin_family = AF_INET, .sin_port = htons(7) };
static struct sockaddr_in ca_family = { .sin_family = AF_UNIX, .sin_port = htons(7) };

static struct sockaddr_in6 ca_multi6 = {
	.sin6_family = AF_INET6, .sin6_port = htons(7),
	.sin6_addr = { { { 0xff, 0x02, [15] = 1 } } },
};

static struct sockaddr_in ca_no_port = {
	.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a000002),
};

#define CA_EP		ALTS(GOOD(env->ep), BAD_HANDLE(NULL, EP), BAD_HANDLE(ca->ep_dead, EP), \
			     BAD_HANDLE(env->conn, EP), BAD_HANDLE(~0UL, EP), \
			     BAD_HANDLE(ca->ep_bare, EVD_CONN), \
			     BAD_STATE(ca->ep_no_pz, NOTREADY), \
			     BAD_STATE(ca->ep_c, CONNECTED), BAD_STATE(ca->ep_d, DISCONNECTED))
#define CA_TIMEOUT(n)	ALTS(GOOD(1), GOOD(DAT_TIMEOUT_INFINITE), BAD(0, n))
#define CA_QOS(n)	ALTS(GOOD(DAT_QOS_BEST_EFFORT), BAD_FLAG(0x10, n), \
			     UNSUPPORTED(DAT_QOS_LOW_LATENCY, DAT_MODEL_NOT_SUPPORTED), \
			     UNSUPPORTED(DAT_QOS_PREMIUM, DAT_MODEL_NOT_SUPPORTED))

static void ca_connect_test(struct kunit *test)
{
	struct ca *ca = ca_open(test);
	struct kd_env *env = ca->env;
	int objects = ca_objects(env->ia);
	const struct ca_call call = {
		.name = "dat_ep_connect", .fn = ca_connect, .good = NO_ADDRESS, .nargs = 7,
		.args = {
			CA_EP,
			ALTS(GOOD(&ca_in), GOOD(&ca_in6), BAD(NULL, 2),
			     BAD_ADDR(&ca_multi, MALFORMED), BAD_ADDR(&ca_broad, MALFORMED),
			     BAD_ADDR(&ca_zero, MALFORMED), BAD_ADDR(&ca_multi6, MALFORMED),
			     BAD_ADDR(&ca_family, UNSUPPORTED)),
			CA_QUAL_3, CA_TIMEOUT(4), CA_PDATA_56, CA_QOS(7),
			ALTS(GOOD(DAT_CONNECT_DEFAULT_FLAG),
			     GOOD(DAT_CONNECT_MULTIPATH_REQUESTED_FLAG), BAD_FLAG(4, 8),
			     UNSUPPORTED(DAT_CONNECT_MULTIPATH_REQUIRED_FLAG,
					 DAT_MODEL_NOT_SUPPORTED)),
		},
	};

	ca_run(test, &call);
	ca_close(ca, objects);
}

static void ca_common_test(struct kunit *test)
{
	struct ca *ca = ca_open(test);
	struct kd_env *env = ca->env;
	int objects = ca_objects(env->ia);
	const struct ca_call call = {
		.name = "dat_ep_common_connect", .fn = ca_common, .good = NO_ADDRESS, .nargs = 4,
		.args = {
			CA_EP,
			ALTS(GOOD(&ca_in), GOOD(&ca_in6), BAD(NULL, 2),
			     BAD_ADDR(&ca_no_port, MALFORMED),
			     BAD_ADDR(&ca_multi, MALFORMED), BAD_ADDR(&ca_broad, MALFORMED),
			     BAD_ADDR(&ca_zero, MALFORMED), BAD_ADDR(&ca_multi6, MALFORMED),
			     BAD_ADDR(&ca_family, UNSUPPORTED)),
			CA_TIMEOUT(3), CA_PDATA_45,
		},
	};

	ca_run(test, &call);
	ca_close(ca, objects);
}

static void ca_dup_test(struct kunit *test)
{
	struct ca *ca = ca_open(test);
	struct kd_env *env = ca->env;
	int objects = ca_objects(env->ia);
	struct kdapl_ep *dup = kdapl_obj_get(ca->ep_c, DAT_HANDLE_TYPE_EP);
	DAT_EP_PARAM before, after;
	const struct ca_call call = {
		.name = "dat_ep_dup_connect", .fn = ca_dup, .good = NO_ADDRESS, .nargs = 5,
		.args = {
			CA_EP,
			ALTS(GOOD(ca->ep_c), BAD_HANDLE(NULL, EP), BAD_HANDLE(ca->ep_dead, EP),
			     BAD_HANDLE(env->ia, EP), BAD_HANDLE(ca->ep2, EP),
			     BAD_STATE(ca->ep_d, DISCONNECTED),
			     BAD_STATE(ca->ep_bare, UNCONNECTED)),
			CA_TIMEOUT(3), CA_PDATA_45, CA_QOS(6),
		},
	};

	/* a peer the fake device has not */
	memcpy(&rcu_dereference_protected(dup->conn, true)->remote, &ca_in, sizeof(ca_in));
	kdapl_obj_put(&dup->obj);
	KD_EXPECT_OK(test, dat_ep_query(ca->ep_c, DAT_EP_FIELD_ALL, &before));
	ca_run(test, &call);
	/* the same handle twice */
	KD_EXPECT_RET(test, dat_ep_dup_connect(env->ep, env->ep, 1, 0, NULL, DAT_QOS_BEST_EFFORT),
		      DAT_INVALID_STATE, DAT_INVALID_STATE_EP_UNCONNECTED);
	KD_EXPECT_RET(test, dat_ep_dup_connect(ca->ep_c, ca->ep_c, 1, 0, NULL,
					       DAT_QOS_BEST_EFFORT),
		      DAT_INVALID_STATE, DAT_INVALID_STATE_EP_CONNECTED);
	KD_EXPECT_OK(test, dat_ep_query(ca->ep_c, DAT_EP_FIELD_ALL, &after));
	KUNIT_EXPECT_EQ(test, memcmp(&before, &after, sizeof(before)), 0);
	ca_close(ca, objects);
}

/* The communicator: which there are, and that addresses have to fit it. */
static void ca_comm_test(struct kunit *test)
{
	static const int domains[] = { AF_INET, AF_INET6, AF_UNIX, 0, -1, 0x10000 | AF_INET };
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET, 0 };
	static const int protocols[] = { 0, IPPROTO_TCP, IPPROTO_UDP, -1 };
	struct kd_env *env = kd_open(test, NULL);
	DAT_EP_PARAM want = {}, before, now;
	int i, n = ARRAY_SIZE(domains) * ARRAY_SIZE(types) * ARRAY_SIZE(protocols);
	DAT_RETURN ret;
	bool good;

	kd_ep(env, NULL);
	/* none set: any address will do */
	KUNIT_EXPECT_EQ(test, (u32)dat_ep_common_connect(env->ep, (DAT_IA_ADDRESS_PTR)&ca_in, 1,
							 0, NULL), (u32)NO_ADDRESS);
	KUNIT_EXPECT_EQ(test, (u32)dat_ep_common_connect(env->ep, (DAT_IA_ADDRESS_PTR)&ca_in6, 1,
							 0, NULL), (u32)NO_ADDRESS);
	for (i = 0; i < n; i++) {
		want.comm.domain = domains[i % ARRAY_SIZE(domains)];
		want.comm.type = types[i / ARRAY_SIZE(domains) % ARRAY_SIZE(types)];
		want.comm.protocol = protocols[i / ARRAY_SIZE(domains) / ARRAY_SIZE(types)];
		good = (want.comm.domain == AF_INET || want.comm.domain == AF_INET6) &&
		       want.comm.type == SOCK_STREAM &&
		       (!want.comm.protocol || want.comm.protocol == IPPROTO_TCP);
		KD_EXPECT_OK(test, dat_ep_query(env->ep, DAT_EP_FIELD_ALL, &before));
		ret = dat_ep_modify(env->ep, DAT_EP_FIELD_COMM, &want);
		KD_EXPECT_OK(test, dat_ep_query(env->ep, DAT_EP_FIELD_ALL, &now));
		if (!good) {
			KUNIT_EXPECT_EQ(test, (u32)ret,
					(u32)DAT_ERROR(DAT_COMM_NOT_SUPPORTED, DAT_NO_SUBTYPE));
			KUNIT_EXPECT_EQ(test, memcmp(&before, &now, sizeof(now)), 0);
			continue;
		}
		KD_EXPECT_OK(test, ret);
		KUNIT_EXPECT_EQ(test, memcmp(&want.comm, &now.comm, sizeof(now.comm)), 0);
		ret = dat_ep_common_connect(env->ep, want.comm.domain == AF_INET ?
					    (DAT_IA_ADDRESS_PTR)&ca_in :
					    (DAT_IA_ADDRESS_PTR)&ca_in6, 1, 0, NULL);
		KUNIT_EXPECT_EQ(test, (u32)ret, (u32)NO_ADDRESS);
		ret = dat_ep_common_connect(env->ep, want.comm.domain == AF_INET ?
					    (DAT_IA_ADDRESS_PTR)&ca_in6 :
					    (DAT_IA_ADDRESS_PTR)&ca_in, 1, 0, NULL);
		KUNIT_EXPECT_EQ(test, (u32)ret, (u32)DAT_ERROR(DAT_INVALID_ADDRESS,
							       DAT_INVALID_ADDRESS_UNSUPPORTED));
	}
	/* one that is not supported takes the others with it */
	KD_EXPECT_OK(test, dat_ep_query(env->ep, DAT_EP_FIELD_ALL, &before));
	want.comm.domain = AF_UNIX;
	want.ep_attr.max_rdma_size = 1;
	KUNIT_EXPECT_NE(test, (u32)dat_ep_modify(env->ep, DAT_EP_FIELD_COMM |
						 DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE, &want),
			(u32)DAT_SUCCESS);
	KD_EXPECT_OK(test, dat_ep_query(env->ep, DAT_EP_FIELD_ALL, &now));
	KUNIT_EXPECT_EQ(test, memcmp(&before, &now, sizeof(now)), 0);
	/* kept by reset */
	kd_reach(env, DAT_EP_STATE_DISCONNECTED);
	KD_EXPECT_OK(test, dat_ep_reset(env->ep));
	KD_EXPECT_OK(test, dat_ep_query(env->ep, DAT_EP_FIELD_COMM, &now));
	KUNIT_EXPECT_EQ(test, memcmp(&before.comm, &now.comm, sizeof(now.comm)), 0);
}

/* A synchronous failure leaves the EP as it was, Receives included. */
static void ca_intact_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	DAT_EVD_HANDLE evd;
	DAT_HANDLE out;
	DAT_EVENT event;
	int i;

	kd_ep(env, NULL);
	KD_ASSERT_OK(test, dat_evd_kcreate(env->ia, 8, DAT_UPCALL_DISABLE, NULL, DAT_EVD_CR_FLAG,
					   &evd));
	for (i = 0; i < 5; i++)
		KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, i, NULL, 0));
	KUNIT_EXPECT_EQ(test, (u32)dat_ep_connect(env->ep, (DAT_IA_ADDRESS_PTR)&ca_in, 7, 1000, 8,
						  ca_bytes, DAT_QOS_BEST_EFFORT,
						  DAT_CONNECT_DEFAULT_FLAG), (u32)NO_ADDRESS);
	KUNIT_EXPECT_EQ(test, (u32)dat_ep_common_connect(env->ep, (DAT_IA_ADDRESS_PTR)&ca_in,
							 1000, 8, ca_bytes), (u32)NO_ADDRESS);
	KUNIT_EXPECT_EQ(test, (u32)dat_rsp_create(env->ia, 7, env->ep, evd, &out),
			(u32)NO_ADDRESS);
	KUNIT_EXPECT_EQ(test, (int)READ_ONCE(env->kep->state), (int)DAT_EP_STATE_UNCONNECTED);
	KUNIT_EXPECT_EQ(test, fake_ib_outstanding(env->qp, true), 5U);
	KD_EXPECT_EMPTY(test, env->recv);
	KD_EXPECT_EMPTY(test, env->conn);
	/* it can still be used, and the Receives are those of the connection */
	kd_connect(env);
	for (i = 0; i < 5; i++) {
		KUNIT_EXPECT_EQ(test, fake_ib_recv(env->qp, i, false), 0);
		KUNIT_ASSERT_TRUE(test, kd_next(env->recv, &event));
		KUNIT_EXPECT_EQ(test,
				event.event_data.dto_completion_event_data.user_cookie.as_64,
				(u64)i);
	}
	KD_EXPECT_OK(test, dat_evd_free(evd));
}

/* Handles no service point or request has, in all calls that take one. */
static void ca_handles_test(struct kunit *test)
{
	struct ca *ca = ca_open(test);
	struct kd_env *env = ca->env;
	int i, objects = ca_objects(env->ia);
	const DAT_HANDLE bad[] = {
		NULL, env->ia, env->ep, env->conn, ca->ep_dead, ca->ia_dead, (DAT_HANDLE)~0UL,
		(DAT_HANDLE)env, (DAT_HANDLE)1,
	};
	DAT_PSP_PARAM psp;
	DAT_RSP_PARAM rsp;
	DAT_CSP_PARAM csp;
	DAT_CR_PARAM cr;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		KD_EXPECT_RET(test, dat_psp_free(bad[i]), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE_PSP);
		KD_EXPECT_RET(test, dat_psp_query(bad[i], DAT_PSP_FIELD_ALL, &psp),
			      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PSP);
		KD_EXPECT_RET(test, dat_psp_query(bad[i], ~0U, NULL), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE_PSP);
		KD_EXPECT_RET(test, dat_rsp_free(bad[i]), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE_RSP);
		KD_EXPECT_RET(test, dat_rsp_query(bad[i], DAT_RSP_FIELD_ALL, &rsp),
			      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_RSP);
		KD_EXPECT_RET(test, dat_csp_free(bad[i]), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE_CSP);
		KD_EXPECT_RET(test, dat_csp_query(bad[i], DAT_CSP_FIELD_ALL, &csp),
			      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CSP);
		KD_EXPECT_RET(test, dat_cr_query(bad[i], DAT_CR_FIELD_ALL, &cr),
			      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR);
		KD_EXPECT_RET(test, dat_cr_accept(bad[i], env->ep, 0, NULL), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE_CR);
		KD_EXPECT_RET(test, dat_cr_accept(bad[i], NULL, -1, NULL), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE_CR);
		KD_EXPECT_RET(test, dat_cr_reject(bad[i], -1, NULL), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE_CR);
		KD_EXPECT_RET(test, dat_cr_handoff(bad[i], 0), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE_CR);
	}
	ca_close(ca, objects);
}

/* The extensions */

/* Each member of kdat_conn_attr: where it is, and what it may be. */
static const struct {
	size_t offset;
	int min;
	int max;
} ca_members[] = {
	{ offsetof(struct kdat_conn_attr, tos), 0, 255 },
	{ offsetof(struct kdat_conn_attr, ack_timeout), 1, 31 },
	{ offsetof(struct kdat_conn_attr, retry_count), 0, 7 },
	{ offsetof(struct kdat_conn_attr, rnr_retry_count), 0, 7 },
	{ offsetof(struct kdat_conn_attr, min_rnr_timer), 0, 31 },
};

static void ca_set(struct kdat_conn_attr *attr, int member, int value)
{
	*(DAT_COUNT *)((char *)attr + ca_members[member].offset) = value;
}

static void ca_conn_values_test(struct kunit *test)
{
	static const int others[] = { -2, 256, 1000, INT_MAX, INT_MIN };
	const struct kdat_conn_attr init = KDAT_CONN_ATTR_INIT;
	struct kd_env *env = kd_open(test, NULL);
	struct kdat_conn_attr attr, want, now;
	int m, v;

	kd_ep(env, NULL);
	KD_EXPECT_OK(test, kdat_ep_query_conn(env->ep, &now));
	KUNIT_EXPECT_EQ(test, memcmp(&now, &init, sizeof(now)), 0);
	want = init;
	for (m = 0; m < ARRAY_SIZE(ca_members); m++) {
		for (v = -3; v < 300 + (int)ARRAY_SIZE(others); v++) {
			int value = v < 300 ? v : others[v - 300];
			bool legal = value == KDAT_CONN_DEFAULT ||
				     (value >= ca_members[m].min && value <= ca_members[m].max);

			attr = want;
			ca_set(&attr, m, value);
			if (legal) {
				want = attr;
				KD_EXPECT_OK(test, kdat_ep_modify_conn(env->ep, &attr));
			} else {
				KD_EXPECT_RET(test, kdat_ep_modify_conn(env->ep, &attr),
					      DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
			}
			KD_EXPECT_OK(test, kdat_ep_query_conn(env->ep, &now));
			KUNIT_EXPECT_EQ_MSG(test, memcmp(&now, &want, sizeof(now)), 0,
					    "member %d, value %d", m, value);
		}
	}
	/* one bad value among good ones */
	attr = init;
	attr.tos = 1;
	attr.min_rnr_timer = 32;
	KD_EXPECT_RET(test, kdat_ep_modify_conn(env->ep, &attr), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG2);
	KD_EXPECT_OK(test, kdat_ep_query_conn(env->ep, &now));
	KUNIT_EXPECT_EQ(test, memcmp(&now, &want, sizeof(now)), 0);
}

/* In every state: what can still have an effect may be changed. */
static void ca_conn_state_test(struct kunit *test)
{
	struct kdat_conn_attr attr = KDAT_CONN_ATTR_INIT, now;
	struct kd_env *env = kd_open(test, NULL);
	int i;

	for (i = 0; i < KD_STATES; i++) {
		bool early = strstr("U R P T", kd_states[i].letter);
		DAT_RETURN ret;

		kd_ep(env, NULL);
		kd_reach(env, kd_states[i].state);
		attr.tos = i;
		ret = kdat_ep_modify_conn(env->ep, &attr);
		KUNIT_EXPECT_EQ_MSG(test, (u32)ret, early ? (u32)DAT_SUCCESS :
				    (u32)DAT_ERROR(DAT_INVALID_STATE, kd_states[i].subtype), "%s",
				    kd_states[i].letter);
		KD_EXPECT_OK(test, kdat_ep_query_conn(env->ep, &now));
		KUNIT_EXPECT_EQ_MSG(test, now.tos, early ? i : KDAT_CONN_DEFAULT, "%s",
				    kd_states[i].letter);
		KUNIT_EXPECT_EQ(test, (int)READ_ONCE(env->kep->state), (int)kd_states[i].state);
		/* values go before states */
		attr.retry_count = 8;
		KD_EXPECT_RET(test, kdat_ep_modify_conn(env->ep, &attr), DAT_INVALID_PARAMETER,
			      DAT_INVALID_ARG2);
		attr.retry_count = KDAT_CONN_DEFAULT;
		kd_ep_free(env);
	}
	/* kept by reset */
	kd_ep(env, NULL);
	attr.tos = 77;
	KD_EXPECT_OK(test, kdat_ep_modify_conn(env->ep, &attr));
	kd_reach(env, DAT_EP_STATE_DISCONNECTED);
	KD_EXPECT_OK(test, dat_ep_reset(env->ep));
	KD_EXPECT_OK(test, kdat_ep_query_conn(env->ep, &now));
	KUNIT_EXPECT_EQ(test, memcmp(&now, &attr, sizeof(now)), 0);
}

static void ca_ext_args_test(struct kunit *test)
{
	struct kdat_conn_attr attr = KDAT_CONN_ATTR_INIT;
	struct ca *ca = ca_open(test);
	struct kd_env *env = ca->env;
	int i, objects = ca_objects(env->ia);
	const DAT_HANDLE bad_ep[] = {
		NULL, ca->ep_dead, env->ia, env->conn, (DAT_HANDLE)~0UL, (DAT_HANDLE)env,
	};
	const DAT_HANDLE bad_ia[] = {
		NULL, ca->ia_dead, env->ep, env->conn, (DAT_HANDLE)~0UL, (DAT_HANDLE)env,
	};
	struct kdat_pdata_limits limits = {};
	DAT_PROVIDER_ATTR *provider;
	struct kdapl_ia *ia;

	for (i = 0; i < ARRAY_SIZE(bad_ep); i++) {
		KD_EXPECT_RET(test, kdat_ep_modify_conn(bad_ep[i], &attr), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE_EP);
		KD_EXPECT_RET(test, kdat_ep_modify_conn(bad_ep[i], NULL), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE_EP);
		KD_EXPECT_RET(test, kdat_ep_query_conn(bad_ep[i], &attr), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE_EP);
		KD_EXPECT_RET(test, kdat_ep_query_conn(bad_ep[i], NULL), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE_EP);
		KD_EXPECT_RET(test, kdat_ia_pdata_limits(bad_ia[i], &limits), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE_IA);
		KD_EXPECT_RET(test, kdat_ia_pdata_limits(bad_ia[i], NULL), DAT_INVALID_HANDLE,
			      DAT_INVALID_HANDLE_IA);
	}
	KD_EXPECT_RET(test, kdat_ep_modify_conn(env->ep, NULL), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG2);
	KD_EXPECT_RET(test, kdat_ep_modify_conn(ca->ep_c, NULL), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG2);
	KD_EXPECT_RET(test, kdat_ep_query_conn(env->ep, NULL), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG2);
	KD_EXPECT_RET(test, kdat_ia_pdata_limits(env->ia, NULL), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG2);
	/* what private data may be, by transport; the attribute is what a request carries */
	provider = kunit_kzalloc(test, sizeof(*provider), GFP_KERNEL);
	ia = kdapl_obj_get(env->ia, DAT_HANDLE_TYPE_IA);
	KUNIT_ASSERT_NOT_NULL(test, provider);
	for (i = 0; i < 2; i++) {
		ia->dev->iwarp = i;
		KD_EXPECT_OK(test, kdat_ia_pdata_limits(env->ia, &limits));
		KUNIT_EXPECT_EQ(test, limits.connect, i ? 251 : 56);
		KUNIT_EXPECT_EQ(test, limits.accept, i ? 251 : 196);
		KUNIT_EXPECT_EQ(test, limits.reject, i ? 251 : 148);
		KD_EXPECT_OK(test, dat_ia_query(env->ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL,
						provider));
		KUNIT_EXPECT_EQ(test, provider->max_private_data_size, limits.connect);
	}
	ia->dev->iwarp = false;
	kdapl_obj_put(&ia->obj);
	KUNIT_EXPECT_EQ(test, (int)provider->ep_creator, (int)DAT_PSP_CREATES_EP_IFASKED);
	KUNIT_EXPECT_EQ(test, (int)provider->dat_qos_supported, (int)DAT_QOS_BEST_EFFORT);
	ca_close(ca, objects);
}

/* Quality of service: best effort, whoever asks. */
static void ca_qos_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_EP_PARAM param = {};
	DAT_EP_HANDLE ep;
	DAT_EP_ATTR attr;
	DAT_RETURN ret;
	int qos;

	kd_ep(env, NULL);
	kd_attr(&attr);
	for (qos = 1; qos < 0x40; qos++) {
		u32 type = qos & ~0xf ? DAT_INVALID_PARAMETER : DAT_MODEL_NOT_SUPPORTED;

		attr.qos = qos;
		param.ep_attr.qos = qos;
		ret = dat_ep_create(env->ia, env->pz, env->recv, env->req, env->conn, &attr, &ep);
		KUNIT_EXPECT_EQ_MSG(test, (u32)DAT_GET_TYPE(ret), type, "create, %#x", qos);
		ret = dat_ep_modify(env->ep, DAT_EP_FIELD_EP_ATTR_QOS, &param);
		KUNIT_EXPECT_EQ_MSG(test, (u32)DAT_GET_TYPE(ret), type, "modify, %#x", qos);
		ret = dat_ep_connect(env->ep, (DAT_IA_ADDRESS_PTR)&ca_in, 7, 1, 0, NULL, qos,
				     DAT_CONNECT_DEFAULT_FLAG);
		KUNIT_EXPECT_EQ_MSG(test, (u32)DAT_GET_TYPE(ret), type, "connect, %#x", qos);
	}
}

static struct kunit_case ca_cases[] = {
	KD_CASE(ca_psp_test,
		"PSP-03,PSP-04,PSP-05,GEN-04,GEN-09,GEN-10,SIL-10,SIL-32: service points"),
	KD_CASE(ca_psp_any_test, "PSP-03,PSP-04,GEN-09,GEN-10: with any qualifier"),
	KD_CASE(ca_rsp_test, "RSP-01,RSP-02,RSP-03,RSP-09,GEN-09,GEN-10: reserved ones"),
	KD_CASE(ca_csp_test, "CSP-02,GEN-09,GEN-10,SIL-24: common ones"),
	KD_CASE(ca_connect_test,
		"CONN-02..08,GEN-04,GEN-07,GEN-10,SIL-32: dat_ep_connect, all combinations"),
	KD_CASE(ca_common_test, "CCON-01,CONN-03,GEN-07,GEN-10: dat_ep_common_connect"),
	KD_CASE(ca_comm_test, "CCON-01,EP-MOD-01,EP-MOD-02,SIL-24: the communicator"),
	KD_CASE(ca_dup_test, "CONN-13,CONN-14,GEN-07,GEN-10: dat_ep_dup_connect"),
	KD_CASE(ca_intact_test, "CONN-12,RSP-09,GEN-07: refused, and nothing has changed"),
	KD_CASE(ca_handles_test, "GEN-04,GEN-10: handles no service point or request has"),
	KD_CASE(ca_conn_values_test, "GEN-07: kdat_ep_modify_conn: every value"),
	KD_CASE(ca_conn_state_test, "EP-RST-03,GEN-10: kdat_ep_modify_conn: every state"),
	KD_CASE(ca_ext_args_test,
		"SIL-22,SIL-34,GEN-09,IA-QRY-04: arguments of extensions, private data limits"),
	KD_CASE(ca_qos_test, "SIL-34,CONN-07,EP-CREATE-09: quality of service"),
	{}
};

static struct kunit_suite ca_suite = {
	.name = "kdapl-conn-args",
	.suite_init = kd_suite_init,
	.suite_exit = kd_suite_exit,
	.init = kd_init,
	.exit = kd_exit,
	.test_cases = ca_cases,
};

kunit_test_suite(ca_suite);
