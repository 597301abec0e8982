// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Arguments of the connection calls: all combinations of good and bad ones. Of
 * several that are wrong the first class of checks decides (handles, values and
 * pointers, flags, state), and a refused call has changed nothing. Of handles that
 * are none there are few here; kdapl-bad-handle has all.
 *
 * The fake device has no IP address, so a call with nothing wrong that needs one ends
 * with DAT_INVALID_ADDRESS, after all checks and before anything has happened.
 */
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
 * @args: values of its arguments
 */
struct ca_call {
	const char *name;
	DAT_RETURN (*fn)(const u64 *v);
	DAT_RETURN good;
	struct ca_arg args[CA_ARGS];
};

#define ALT(class, v, type, subtype)	{ class, DAT_ERROR(type, subtype), (u64)(uintptr_t)(v) }
#define GOOD(v)			{ CA_GOOD, DAT_SUCCESS, (u64)(uintptr_t)(v) }
#define BAD_HANDLE(v, kind)	ALT(CA_HANDLE, v, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_##kind)
#define BAD(v, n)		ALT(CA_VALUE, v, DAT_INVALID_PARAMETER, DAT_INVALID_ARG##n)
#define BAD_FLAG(v, n)		ALT(CA_FLAGS, v, DAT_INVALID_PARAMETER, DAT_INVALID_ARG##n)
#define BAD_ADDR(v, kind)	ALT(CA_FLAGS, v, DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_##kind)
#define UNSUPPORTED(v, type)	ALT(CA_FLAGS, v, type, DAT_NO_SUBTYPE)
#define BAD_STATE(v, kind)	ALT(CA_STATE, v, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_##kind)
#define ALTS(...)		{ .n = sizeof((struct ca_alt[]){ __VA_ARGS__ }) /	\
				       sizeof(struct ca_alt),				\
			  .alt = (const struct ca_alt[]){ __VA_ARGS__ } }

#define NO_ADDRESS	DAT_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE)

#define CALL(f, g, ...)	{ .name = #f, .fn = ca_##f, .good = (g), .args = { __VA_ARGS__ } }

/* Private data: its size, and whether there is any. */
static const struct {
	DAT_COUNT size;
	bool null;
} ca_pdata[] = {
	{ 0, true }, { 0, false }, { 56, false }, { 57, false }, { -1, false }, { 1, true },
	{ INT_MAX, false }, { INT_MIN, true }, { 149, false }, { 197, false },
};

static u8 ca_bytes[256];

static DAT_PVOID ca_data(u64 v)
{
	return ca_pdata[v].null ? NULL : ca_bytes;
}

/* Each call with its arguments as numbers: P() is a pointer, N() and D() are private data. */
#define P(i)		((void *)(uintptr_t)v[i])
#define N(i)		(ca_pdata[v[i]].size)
#define D(i)		ca_data(v[i])
#define CA_CALL(name, ...)							\
static DAT_RETURN ca_##name(const u64 *v)					\
{										\
	return name(__VA_ARGS__);						\
}

CA_CALL(dat_psp_create, P(0), v[1], P(2), v[3], P(4))
CA_CALL(dat_psp_create_any, P(0), P(1), P(2), v[3], P(4))
CA_CALL(dat_rsp_create, P(0), v[1], P(2), P(3), P(4))
CA_CALL(dat_csp_create, P(0), P(1), P(2), P(3), P(4))
CA_CALL(dat_ep_connect, P(0), P(1), v[2], v[3], N(4), D(4), v[5], v[6])
CA_CALL(dat_ep_common_connect, P(0), P(1), v[2], N(3), D(3))
CA_CALL(dat_ep_dup_connect, P(0), P(1), v[2], N(3), D(3), v[4])
CA_CALL(dat_psp_query, P(0), v[1], P(2))
CA_CALL(dat_rsp_query, P(0), v[1], P(2))
CA_CALL(dat_csp_query, P(0), v[1], P(2))
CA_CALL(dat_cr_query, P(0), v[1], P(2))
CA_CALL(dat_cr_handoff, P(0), v[1])
CA_CALL(dat_cr_reject, P(0), N(1), D(1))
CA_CALL(dat_cr_accept, P(0), P(1), N(2), D(2))

/* Does the return fit what was wrong? */
static bool ca_fits(const struct ca_call *call, const struct ca_alt *const *alt, DAT_RETURN ret)
{
	enum ca_class first = CA_STATE + 1;
	int i;

	for (i = 0; i < CA_ARGS && alt[i]; i++)
		if (alt[i]->class != CA_GOOD)
			first = min(first, alt[i]->class);
	if (first > CA_STATE)
		return ret == call->good;
	for (i = 0; i < CA_ARGS && alt[i]; i++)
		if (alt[i]->class == first && ret == alt[i]->want)
			return true;
	return false;
}

/* All combinations of all values. */
static void ca_run(struct kunit *test, const struct ca_call *call, int calls)
{
	const struct ca_alt *alt[CA_ARGS];
	int i, at[CA_ARGS], wrong;
	u64 v[CA_ARGS];
	DAT_RETURN ret;

	for (; calls--; call++) {
		memset(alt, 0, sizeof(alt));
		memset(at, 0, sizeof(at));
		wrong = 0;
		do {
			for (i = 0; i < CA_ARGS && call->args[i].n; i++) {
				alt[i] = &call->args[i].alt[at[i]];
				v[i] = alt[i]->value;
			}
			ret = call->fn(v);
			if (!ca_fits(call, alt, ret) && wrong++ < 5)
				KUNIT_FAIL(test, "%s: %#x with values %d %d %d %d %d %d %d",
					   call->name, ret, at[0], at[1], at[2], at[3], at[4],
					   at[5], at[6]);
			for (i = 0; i < CA_ARGS && call->args[i].n && ++at[i] == call->args[i].n;
			     i++)
				at[i] = 0;
		} while (i < CA_ARGS && call->args[i].n);
		KUNIT_EXPECT_EQ_MSG(test, wrong, 0, "%s", call->name);
	}
}

/* Objects of an IA. */
static int ca_objects(struct kd_env *env)
{
	struct kdapl_ia *ia = kd_ia(env);
	struct list_head *pos;
	int i, n = 0;

	for (i = 0; i < KDAPL_NTYPES; i++)
		list_for_each(pos, &ia->objs[i])
			n++;
	return n;
}

/**
 * struct ca - the usual and what else may be named
 * @env: the usual
 * @objects: how many there are
 * @ia2: another instance of the same IA
 * @cr_evd: EVD for requests
 * @cr_evd2: the same, of @ia2
 * @ep2: EP of @ia2
 * @ep_bare: EP without connect EVD
 * @ep_no_pz: EP without PZ
 * @ep_d: EP in DISCONNECTED
 * @ep_c: EP in CONNECTED
 * @psp: PSP
 * @rsp: RSP
 * @csp: CSP
 * @cr: request that came through @psp
 */
struct ca {
	struct kd_env *env;
	int objects;
	DAT_IA_HANDLE ia2;
	DAT_EVD_HANDLE cr_evd, cr_evd2;
	DAT_EP_HANDLE ep2, ep_bare, ep_no_pz, ep_d, ep_c;
	DAT_PSP_HANDLE psp;
	DAT_RSP_HANDLE rsp;
	DAT_CSP_HANDLE csp;
	DAT_CR_HANDLE cr;
};

static struct ca *ca_open(struct kunit *test)
{
	struct ca *ca = kunit_kzalloc(test, sizeof(*ca), GFP_KERNEL);
	struct kd_env *env = kd_open(test, NULL);
	DAT_EVD_HANDLE async2 = DAT_HANDLE_NULL;
	DAT_PZ_HANDLE pz2;
	DAT_EP_ATTR attr;

	KUNIT_ASSERT_NOT_NULL(test, ca);
	ca->env = env;
	ca->ia2 = kd_ia_more(env, &async2);
	KD_ASSERT_OK(test, dat_pz_create(ca->ia2, &pz2));
	KD_ASSERT_OK(test, dat_evd_kcreate(ca->ia2, 8, DAT_UPCALL_DISABLE, NULL, DAT_EVD_CR_FLAG |
					   DAT_EVD_CONNECTION_FLAG, &ca->cr_evd2));
	KD_ASSERT_OK(test, dat_ep_create(ca->ia2, pz2, NULL, NULL, ca->cr_evd2, NULL, &ca->ep2));
	ca->cr_evd = kd_cr_evd(env, 8);
	kd_attr(&attr);
	KD_ASSERT_OK(test, dat_ep_create(env->ia, env->pz, env->recv, env->req, NULL, &attr,
					 &ca->ep_bare));
	KD_ASSERT_OK(test, dat_ep_create(env->ia, NULL, env->recv, env->req, env->conn, &attr,
					 &ca->ep_no_pz));
	kd_ep(env, NULL);
	kd_reach(env, DAT_EP_STATE_CONNECTED);
	ca->ep_c = kd_ep_give(env);
	kd_ep(env, NULL);
	kd_reach(env, DAT_EP_STATE_DISCONNECTED);
	ca->ep_d = kd_ep_give(env);
	ca->psp = kd_psp(env, ca->cr_evd, 100, DAT_PSP_CONSUMER_FLAG);
	ca->rsp = kd_rsp(env, ca->cr_evd, 101, NULL);
	ca->csp = kd_csp(env, ca->cr_evd, 102);
	ca->cr = kd_cr(env, ca->psp, ca->cr_evd);
	kd_ep(env, NULL);
	ca->objects = ca_objects(env);
	return ca;
}

/* The EPs are as they were, nobody has got an event, and nothing is left over. */
static void ca_close(struct ca *ca)
{
	struct kd_env *env = ca->env;
	struct kunit *test = env->test;

	KUNIT_EXPECT_EQ(test, ca_objects(env), ca->objects);
	KD_EXPECT_STATE(env, env->ep, UNCONNECTED);
	KD_EXPECT_STATE(env, ca->ep_c, CONNECTED);
	KD_EXPECT_EMPTY(test, env->conn);
	KD_EXPECT_EMPTY(test, ca->cr_evd);
	KD_EXPECT_EMPTY(test, env->async);
	KD_EXPECT_OK(test, dat_ia_close(ca->ia2, DAT_CLOSE_ABRUPT_FLAG));
	KD_EXPECT_OK(test, dat_ia_close(kd_forget(env), DAT_CLOSE_ABRUPT_FLAG));
}

/* These are about the variables ca and env of the case. */
#define CA_QUAL_2	ALTS(GOOD(1), GOOD(65535), BAD(0, 2), BAD(65536, 2), BAD(1ULL << 32 | 7, 2))
#define CA_QUAL_3	ALTS(GOOD(1), GOOD(65535), BAD(0, 3), BAD(65536, 3), BAD(1ULL << 32 | 7, 3))
#define CA_OUT(p, n)	ALTS(GOOD(p), BAD(NULL, n))

/* Service points */

static struct sockaddr_in ca_zero = { .sin_family = AF_INET, .sin_port = htons(7) };
static struct sockaddr_in ca_family = { .sin_family = AF_UNIX, .sin_port = htons(7) };

static struct sockaddr_in ca_no_port = {
	.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a000002),
};

static struct sockaddr_in6 ca_in6 = {
	.sin6_family = AF_INET6, .sin6_port = htons(7), .sin6_addr = { { { 0xfd, [15] = 1 } } },
};

static void ca_sp_test(struct kunit *test)
{
	struct ca *ca = ca_open(test);
	struct kd_env *env = ca->env;
	DAT_CONN_QUAL qual;
	DAT_HANDLE out;
	const struct ca_arg ia = ALTS(GOOD(env->ia), BAD_HANDLE(NULL, IA), BAD_HANDLE(env->pz, IA));
	const struct ca_arg evd = ALTS(GOOD(ca->cr_evd), BAD_HANDLE(ca->cr_evd2, EVD_CR),
				       BAD_HANDLE(env->conn, EVD_CR), BAD_HANDLE(NULL, EVD_CR),
				       BAD_HANDLE(env->pz, EVD_CR));
	const struct ca_arg flags = ALTS(GOOD(DAT_PSP_CONSUMER_FLAG), GOOD(DAT_PSP_PROVIDER_FLAG),
					 BAD_FLAG(2, 4), BAD_FLAG(3, 4), BAD_FLAG(0x100, 4));
	const struct ca_call calls[] = {
		CALL(dat_psp_create, NO_ADDRESS, ia, CA_QUAL_2, evd, flags, CA_OUT(&out, 5)),
		CALL(dat_psp_create_any, NO_ADDRESS, ia, CA_OUT(&qual, 2), evd, flags,
		     CA_OUT(&out, 5)),
		CALL(dat_rsp_create, NO_ADDRESS, ia, CA_QUAL_2,
		     ALTS(GOOD(env->ep), GOOD(NULL), GOOD(ca->ep_bare), GOOD(ca->ep_no_pz),
			  BAD_HANDLE(ca->ep2, EP), BAD_HANDLE(env->pz, EP),
			  BAD_STATE(ca->ep_c, CONNECTED), BAD_STATE(ca->ep_d, DISCONNECTED)),
		     evd, CA_OUT(&out, 5)),
	};

	ca_run(test, calls, ARRAY_SIZE(calls));
	ca_close(ca);
}

#define UNKNOWN_COMM(i)	UNSUPPORTED(&comms[i], DAT_COMM_NOT_SUPPORTED)

static void ca_csp_test(struct kunit *test)
{
	static DAT_COMM comms[] = {
		{ AF_INET, SOCK_STREAM, 0 }, { AF_INET, SOCK_STREAM, IPPROTO_TCP },
		{ AF_INET, SOCK_STREAM, IPPROTO_UDP }, { AF_INET, SOCK_STREAM, -1 },
		{ AF_INET, SOCK_DGRAM, 0 }, { AF_INET, SOCK_RAW, 0 }, { AF_INET, 0, 0 },
		{ AF_INET, SOCK_SEQPACKET, IPPROTO_TCP }, { AF_UNIX, SOCK_STREAM, 0 },
		{ 0, SOCK_STREAM, 0 }, { -1, SOCK_STREAM, 0 },
	};
	DAT_COMM comm6 = { AF_INET6, SOCK_STREAM, IPPROTO_TCP };
	struct ca *ca = ca_open(test);
	struct kd_env *env = ca->env;
	DAT_HANDLE out;
	const struct ca_call calls[] = {
		CALL(dat_csp_create, NO_ADDRESS,
		     ALTS(GOOD(env->ia), BAD_HANDLE(NULL, IA), BAD_HANDLE(env->pz, IA)),
		     ALTS(GOOD(&comms[0]), GOOD(&comms[1]), BAD(NULL, 2), UNKNOWN_COMM(2),
			  UNKNOWN_COMM(3), UNKNOWN_COMM(4), UNKNOWN_COMM(5), UNKNOWN_COMM(6),
			  UNKNOWN_COMM(7), UNKNOWN_COMM(8), UNKNOWN_COMM(9), UNKNOWN_COMM(10)),
		     ALTS(GOOD(&kd_peer), BAD(NULL, 3), BAD_ADDR(&ca_zero, MALFORMED),
			  BAD_ADDR(&ca_no_port, MALFORMED), BAD_ADDR(&ca_in6, UNSUPPORTED),
			  BAD_ADDR(&ca_family, UNSUPPORTED)),
		     ALTS(GOOD(ca->cr_evd), BAD_HANDLE(NULL, EVD_CR), BAD_HANDLE(env->pz, EVD_CR)),
		     CA_OUT(&out, 5)),
		CALL(dat_csp_create, NO_ADDRESS, ALTS(GOOD(env->ia)), ALTS(GOOD(&comm6)),
		     ALTS(GOOD(&ca_in6), BAD_ADDR(&kd_peer, UNSUPPORTED)), ALTS(GOOD(ca->cr_evd)),
		     ALTS(GOOD(&out))),
	};

	ca_run(test, calls, ARRAY_SIZE(calls));
	ca_close(ca);
}

/* Connecting */

#define CA_PDATA_45	ALTS(GOOD(0), GOOD(1), GOOD(2), BAD(3, 4), BAD(4, 4), BAD(5, 5), \
			     BAD(6, 4), BAD(7, 4))
#define CA_PDATA_56	ALTS(GOOD(0), GOOD(1), GOOD(2), BAD(3, 5), BAD(4, 5), BAD(5, 6), \
			     BAD(6, 5), BAD(7, 5))

static struct sockaddr_in ca_multi = {
	.sin_family = AF_INET, .sin_port = htons(7), .sin_addr.s_addr = htonl(0xe0000001),
};

static struct sockaddr_in ca_broad = {
	.sin_family = AF_INET, .sin_port = htons(7), .sin_addr.s_addr = htonl(0xffffffff),
};

static struct sockaddr_in6 ca_multi6 = {
	.sin6_family = AF_INET6, .sin6_port = htons(7),
	.sin6_addr = { { { 0xff, 0x02, [15] = 1 } } },
};

#define CA_ADDR(no_port) ALTS(GOOD(&kd_peer), GOOD(&ca_in6), BAD(NULL, 2), \
			      BAD_ADDR(&ca_multi, MALFORMED), BAD_ADDR(&ca_broad, MALFORMED), \
			      BAD_ADDR(&ca_zero, MALFORMED), BAD_ADDR(&ca_multi6, MALFORMED), \
			      BAD_ADDR(&ca_family, UNSUPPORTED), no_port)
#define CA_EP		ALTS(GOOD(env->ep), BAD_HANDLE(NULL, EP), BAD_HANDLE(env->pz, EP), \
			     BAD_HANDLE(ca->ep_bare, EVD_CONN), \
			     BAD_STATE(ca->ep_no_pz, NOTREADY), \
			     BAD_STATE(ca->ep_c, CONNECTED), BAD_STATE(ca->ep_d, DISCONNECTED))
#define CA_TIMEOUT(n)	ALTS(GOOD(1), GOOD(DAT_TIMEOUT_INFINITE), BAD(0, n))
#define CA_QOS(n)	ALTS(GOOD(DAT_QOS_BEST_EFFORT), GOOD(DAT_QOS_PREMIUM), BAD_FLAG(0x10, n), \
			     UNSUPPORTED(DAT_QOS_LOW_LATENCY | DAT_QOS_PREMIUM, \
					 DAT_MODEL_NOT_SUPPORTED))

static void ca_connect_test(struct kunit *test)
{
	struct ca *ca = ca_open(test);
	struct kd_env *env = ca->env;
	struct kdapl_ep *dup = kdapl_obj_get(ca->ep_c, DAT_HANDLE_TYPE_EP);
	DAT_EP_PARAM *param = kunit_kcalloc(test, 2, sizeof(*param), GFP_KERNEL);
	const struct ca_arg ep = CA_EP;
	const struct ca_call calls[] = {
		CALL(dat_ep_connect, NO_ADDRESS, ep, CA_ADDR(GOOD(&ca_no_port)), CA_QUAL_3,
		     CA_TIMEOUT(4), CA_PDATA_56, CA_QOS(7),
		     ALTS(GOOD(DAT_CONNECT_DEFAULT_FLAG),
			  GOOD(DAT_CONNECT_MULTIPATH_REQUESTED_FLAG), BAD_FLAG(4, 8),
			  UNSUPPORTED(DAT_CONNECT_MULTIPATH_REQUIRED_FLAG,
				      DAT_MODEL_NOT_SUPPORTED))),
		CALL(dat_ep_common_connect, NO_ADDRESS, ep,
		     CA_ADDR(BAD_ADDR(&ca_no_port, MALFORMED)), CA_TIMEOUT(3),
		     CA_PDATA_45),
		CALL(dat_ep_dup_connect, NO_ADDRESS, ep,
		     ALTS(GOOD(ca->ep_c), BAD_HANDLE(ca->ep2, EP), BAD_HANDLE(NULL, EP),
			  BAD_HANDLE(env->pz, EP),
			  BAD_STATE(ca->ep_d, DISCONNECTED), BAD_STATE(ca->ep_bare, UNCONNECTED)),
		     CA_TIMEOUT(3), CA_PDATA_45, CA_QOS(6)),
	};

	/* a peer the fake device has not */
	memcpy(&rcu_dereference_protected(dup->conn, true)->remote, &kd_peer, sizeof(kd_peer));
	kdapl_obj_put(&dup->obj);
	KUNIT_ASSERT_NOT_NULL(test, param);
	kd_query(env, ca->ep_c, &param[0]);
	ca_run(test, calls, ARRAY_SIZE(calls));
	/* the same handle twice */
	KD_BAD_STATE(test, dat_ep_dup_connect(env->ep, env->ep, 1, 0, NULL, DAT_QOS_BEST_EFFORT),
		     EP_UNCONNECTED);
	KD_BAD_STATE(test, dat_ep_dup_connect(ca->ep_c, ca->ep_c, 1, 0, NULL, DAT_QOS_BEST_EFFORT),
		     EP_CONNECTED);
	kd_query(env, ca->ep_c, &param[1]);
	KUNIT_EXPECT_EQ(test, memcmp(&param[0], &param[1], sizeof(*param)), 0);
	ca_close(ca);
}

static DAT_RETURN ca_to(struct kd_env *env, int family)
{
	return dat_ep_common_connect(env->ep, family == AF_INET ? KD_PEER :
				     (DAT_IA_ADDRESS_PTR)&ca_in6, 1, 0, NULL);
}

/* The communicator: which there are, and that addresses have to fit it. */
static void ca_comm_test(struct kunit *test)
{
	static const int domains[] = { 0, AF_INET, AF_INET6, AF_UNIX, -1, 0x10000 | AF_INET };
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET, 0 };
	static const int protocols[] = { 0, IPPROTO_TCP, IPPROTO_UDP, -1 };
	const DAT_RETURN other = DAT_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED);
	struct kd_env *env = kd_open(test, NULL);
	DAT_EP_PARAM want = {}, before, now;
	int i, n = ARRAY_SIZE(domains) * ARRAY_SIZE(types) * ARRAY_SIZE(protocols);

	kd_ep(env, NULL);
	/* none set: any address will do */
	KUNIT_EXPECT_EQ(test, (u32)ca_to(env, AF_INET), (u32)NO_ADDRESS);
	KUNIT_EXPECT_EQ(test, (u32)ca_to(env, AF_INET6), (u32)NO_ADDRESS);
	for (i = 0; i <= n; i++) {
		u64 mask = DAT_EP_FIELD_COMM;
		DAT_RETURN ret;

		want.comm.domain = domains[i % ARRAY_SIZE(domains)];
		want.comm.type = types[i / ARRAY_SIZE(domains) % ARRAY_SIZE(types)];
		want.comm.protocol = protocols[i / ARRAY_SIZE(domains) / ARRAY_SIZE(types) %
					       ARRAY_SIZE(protocols)];
		if (i == n) {	/* a bad one takes others with it */
			want.ep_attr.max_rdma_size = 1;
			mask |= DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE;
		}
		kd_query(env, env->ep, &before);
		ret = dat_ep_modify(env->ep, mask, &want);
		kd_query(env, env->ep, &now);
		if ((want.comm.domain != AF_INET && want.comm.domain != AF_INET6) ||
		    want.comm.type != SOCK_STREAM ||
		    (want.comm.protocol && want.comm.protocol != IPPROTO_TCP)) {
			KD_EXPECT_RET(test, ret, DAT_COMM_NOT_SUPPORTED, DAT_NO_SUBTYPE);
			KUNIT_EXPECT_EQ(test, memcmp(&before, &now, sizeof(now)), 0);
			continue;
		}
		KD_EXPECT_OK(test, ret);
		KUNIT_EXPECT_EQ(test, memcmp(&want.comm, &now.comm, sizeof(now.comm)), 0);
		KUNIT_EXPECT_EQ(test, (u32)ca_to(env, want.comm.domain), (u32)NO_ADDRESS);
		KUNIT_EXPECT_EQ(test, (u32)ca_to(env, AF_INET + AF_INET6 - want.comm.domain),
				(u32)other);
	}
	/* kept by reset */
	kd_reach(env, DAT_EP_STATE_DISCONNECTED);
	kd_reset(env);
	kd_query(env, env->ep, &now);
	KUNIT_EXPECT_EQ(test, memcmp(&before.comm, &now.comm, sizeof(now.comm)), 0);
}

/* Requests and what listens: queries, answers, handles nobody has */

#define CA_MASK(all)	ALTS(GOOD(all), BAD(0x20, 2), BAD(~0U, 2))

static void ca_query_test(struct kunit *test)
{
	struct ca *ca = ca_open(test);
	struct kd_env *env = ca->env;
	DAT_PSP_PARAM psp;
	DAT_RSP_PARAM rsp;
	DAT_CSP_PARAM csp;
	DAT_CR_PARAM cr;
	const struct ca_call calls[] = {
		CALL(dat_psp_query, DAT_SUCCESS,
		     ALTS(GOOD(ca->psp), BAD_HANDLE(NULL, PSP), BAD_HANDLE(env->pz, PSP)),
		     CA_MASK(DAT_PSP_FIELD_ALL), CA_OUT(&psp, 3)),
		CALL(dat_rsp_query, DAT_SUCCESS,
		     ALTS(GOOD(ca->rsp), BAD_HANDLE(NULL, RSP), BAD_HANDLE(env->pz, RSP)),
		     CA_MASK(DAT_RSP_FIELD_ALL), CA_OUT(&rsp, 3)),
		CALL(dat_csp_query, DAT_SUCCESS,
		     ALTS(GOOD(ca->csp), BAD_HANDLE(NULL, CSP), BAD_HANDLE(env->pz, CSP)),
		     CA_MASK(DAT_CSP_FIELD_ALL), CA_OUT(&csp, 3)),
		CALL(dat_cr_query, DAT_SUCCESS,
		     ALTS(GOOD(ca->cr), BAD_HANDLE(NULL, CR), BAD_HANDLE(env->pz, CR)),
		     CA_MASK(DAT_CR_FIELD_ALL), CA_OUT(&cr, 3)),
	};

	ca_run(test, calls, ARRAY_SIZE(calls));
	/* nothing asked for */
	KD_EXPECT_OK(test, dat_psp_query(ca->psp, 0, NULL));
	KD_EXPECT_OK(test, dat_rsp_query(ca->rsp, 0, NULL));
	KD_EXPECT_OK(test, dat_csp_query(ca->csp, 0, NULL));
	KD_EXPECT_OK(test, dat_cr_query(ca->cr, 0, NULL));
	ca_close(ca);
}

/* Nothing of all this does anything to a request: after all it can be answered. */
static void ca_answer_test(struct kunit *test)
{
	struct ca *ca = ca_open(test);
	struct kd_env *env = ca->env;
	const struct ca_arg cr = ALTS(GOOD(ca->cr), BAD_HANDLE(NULL, CR), BAD_HANDLE(env->pz, CR));
	/* without what the EP lacks: that is looked at with its state */
	const struct ca_alt lacks = {
		CA_STATE, DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP),
		(u64)(uintptr_t)ca->ep_bare,
	};
	const struct ca_call calls[] = {
		CALL(dat_cr_accept, DAT_SUCCESS, cr,
		     ALTS(BAD_STATE(ca->ep_c, CONNECTED), BAD_STATE(ca->ep_d, DISCONNECTED), lacks,
			  BAD_HANDLE(ca->ep2, EP), BAD_HANDLE(NULL, EP), BAD_HANDLE(env->pz, EP)),
		     ALTS(GOOD(0), GOOD(2), GOOD(8), BAD(9, 3), BAD(4, 3), BAD(5, 4), BAD(6, 3),
			  BAD(7, 3))),
		CALL(dat_cr_reject, DAT_SUCCESS, cr,
		     ALTS(BAD(8, 2), BAD(9, 2), BAD(4, 2), BAD(5, 3), BAD(6, 2), BAD(7, 2))),
		CALL(dat_cr_handoff, DAT_SUCCESS, cr, ALTS(BAD(0, 2), BAD(65536 + 100, 2))),
	};

	ca_run(test, calls, ARRAY_SIZE(calls));
	KD_BAD_HANDLE(test, dat_cr_accept(ca->cr, ca->ep_no_pz, 0, NULL), _EP);
	KD_EXPECT_OK(test, dat_cr_reject(ca->cr, 148, ca_bytes));
	ca->cr = kd_cr(env, ca->psp, ca->cr_evd);
	ca_close(ca);
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
	static const int others[] = { 1000, INT_MAX, INT_MIN };
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

			attr = want;
			ca_set(&attr, m, value);
			if (value == KDAT_CONN_DEFAULT ||
			    (value >= ca_members[m].min && value <= ca_members[m].max)) {
				want = attr;
				KD_EXPECT_OK(test, kdat_ep_modify_conn(env->ep, &attr));
			} else {
				KD_BAD_ARG(test, kdat_ep_modify_conn(env->ep, &attr), 2);
			}
			KD_EXPECT_OK(test, kdat_ep_query_conn(env->ep, &now));
			KUNIT_EXPECT_EQ_MSG(test, memcmp(&now, &want, sizeof(now)), 0,
					    "member %d, value %d", m, value);
		}
	}
	/* one bad value among good ones, which goes before the state; and what was set is kept */
	attr = init;
	attr.tos = 1;
	kd_reach(env, DAT_EP_STATE_DISCONNECTED);
	KD_BAD_STATE(test, kdat_ep_modify_conn(env->ep, &attr), EP_DISCONNECTED);
	attr.min_rnr_timer = 32;
	KD_BAD_ARG(test, kdat_ep_modify_conn(env->ep, &attr), 2);
	kd_reset(env);
	KD_EXPECT_OK(test, kdat_ep_query_conn(env->ep, &now));
	KUNIT_EXPECT_EQ(test, memcmp(&now, &want, sizeof(now)), 0);
}

/* What private data may be, by transport; the attribute is what a request carries. */
static void ca_ext_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_PROVIDER_ATTR *provider = kunit_kzalloc(test, sizeof(*provider), GFP_KERNEL);
	struct kdapl_ia *ia = kd_ia(env);
	struct kdat_pdata_limits limits = {};
	int i;

	KUNIT_ASSERT_NOT_NULL(test, provider);
	kd_ep(env, NULL);
	KD_BAD_ARG(test, kdat_ep_modify_conn(env->ep, NULL), 2);
	KD_BAD_ARG(test, kdat_ep_query_conn(env->ep, NULL), 2);
	KD_BAD_ARG(test, kdat_ia_pdata_limits(env->ia, NULL), 2);
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
	KUNIT_EXPECT_EQ(test, (int)provider->ep_creator, (int)DAT_PSP_CREATES_EP_IFASKED);
	KUNIT_EXPECT_EQ(test, (int)provider->dat_qos_supported, 0xf);
}

/* Quality of service: one at a time, and none where the type of service is ignored. */
static void ca_qos_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kdapl_ia *ia = kd_ia(env);
	struct kdapl_caps *caps = &ia->dev->caps;
	DAT_PROVIDER_ATTR *provider = kunit_kzalloc(test, sizeof(*provider), GFP_KERNEL);
	DAT_EP_PARAM param = {};
	DAT_EP_HANDLE ep;
	DAT_EP_ATTR attr;
	DAT_RETURN ret;
	u32 type;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, provider);
	kd_ep(env, NULL);
	kd_attr(&attr);
	for (i = 0; i < 0x80; i++) {
		int qos = i & 0x3f;

		caps->no_tos = i & 0x40;
		type = qos & ~0xf ? DAT_INVALID_PARAMETER :
		       qos && (caps->no_tos || !is_power_of_2(qos)) ? DAT_MODEL_NOT_SUPPORTED :
								      DAT_SUCCESS;
		attr.qos = qos;
		param.ep_attr.qos = qos;
		ret = dat_ep_create(env->ia, env->pz, env->recv, env->req, env->conn, &attr, &ep);
		KUNIT_EXPECT_EQ_MSG(test, (u32)DAT_GET_TYPE(ret), type, "create, %#x", i);
		if (ret == DAT_SUCCESS)
			KD_EXPECT_OK(test, dat_ep_free(ep));
		ret = dat_ep_modify(env->ep, DAT_EP_FIELD_EP_ATTR_QOS, &param);
		KUNIT_EXPECT_EQ_MSG(test, (u32)DAT_GET_TYPE(ret), type, "modify, %#x", i);
		if (type == DAT_SUCCESS)	/* the device has no address */
			type = DAT_INVALID_ADDRESS;
		ret = dat_ep_connect(env->ep, KD_PEER, 7, 1, 0, NULL, qos,
				     DAT_CONNECT_DEFAULT_FLAG);
		KUNIT_EXPECT_EQ_MSG(test, (u32)DAT_GET_TYPE(ret), type, "connect, %#x", i);
	}
	KD_EXPECT_OK(test, dat_ia_query(env->ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, provider));
	KUNIT_EXPECT_EQ(test, (int)provider->dat_qos_supported, (int)DAT_QOS_BEST_EFFORT);
	caps->no_tos = false;
}

static struct kunit_case ca_cases[] = {
	KD_CASE(ca_sp_test,
		"PSP-03..05,PSP-07,RSP-01..03,RSP-09,GEN-09,GEN-10,SIL-10,SIL-32: service points"),
	KD_CASE(ca_csp_test, "CSP-02,GEN-09,GEN-10,SIL-24: common ones"),
	KD_CASE(ca_connect_test,
		"CONN-02..08,CONN-12..14,CCON-01,GEN-04,GEN-07,GEN-10,SIL-32: connecting"),
	KD_CASE(ca_comm_test, "CCON-01,EP-MOD-01,EP-MOD-02,SIL-24: the communicator"),
	KD_CASE(ca_query_test, "PSP-11,CR-QRY-01,GEN-04,GEN-09,GEN-10: queries"),
	KD_CASE(ca_answer_test, "CR-ACC-01,CR-ACC-02,CR-ACC-05..07,CR-REJ-01,GEN-07..10: answers"),
	KD_CASE(ca_conn_values_test, "EP-RST-03,GEN-07,GEN-10: kdat_ep_modify_conn: every value"),
	KD_CASE(ca_ext_test,
		"SIL-09,SIL-22,SIL-34,CONN-06,GEN-09,IA-QRY-04: extensions, private data limits"),
	KD_CASE(ca_qos_test, "SIL-34,CONN-07,EP-CREATE-09: quality of service"),
	{}
};

KD_SUITE("kdapl-conn-args", ca_cases, kd_init, kd_exit);
