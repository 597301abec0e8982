// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Common Service Points, qualifiers of any number, qualifiers that are in use. */
#include <linux/in.h>
#include <linux/net.h>
#include <linux/slab.h>
#include <net/sock.h>

#include "kdtest_conn.h"

#define MANY 64

/* ---- dat_psp_create_any ---- */

static void any_arguments(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_evd *cr = kdt_evd_new(test, &env->b, DAT_EVD_CR_FLAG);
	struct kdt_evd *dto = kdt_evd_new(test, &env->b, DAT_EVD_DTO_FLAG);
	struct kdt_evd *other = kdt_evd_new(test, &env->a, DAT_EVD_CR_FLAG);
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL port;

	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA,
		    dat_psp_create_any(NULL, &port, cr->h, DAT_PSP_CONSUMER_FLAG, &psp));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CR,
		    dat_psp_create_any(env->b.h, &port, dto->h, DAT_PSP_CONSUMER_FLAG, &psp));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CR,
		    dat_psp_create_any(env->b.h, &port, other->h, DAT_PSP_CONSUMER_FLAG, &psp));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CR,
		    dat_psp_create_any(env->b.h, &port, NULL, DAT_PSP_CONSUMER_FLAG, &psp));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		    dat_psp_create_any(env->b.h, NULL, cr->h, DAT_PSP_CONSUMER_FLAG, &psp));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG4,
		    dat_psp_create_any(env->b.h, &port, cr->h, 7, &psp));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG5,
		    dat_psp_create_any(env->b.h, &port, cr->h, DAT_PSP_CONSUMER_FLAG, NULL));
	/* Nothing was left behind. */
	KDT_OK(test, dat_evd_free(cr->h));
}

static void any_many(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_evd *cr = kdt_evd_new(test, &env->b, DAT_EVD_CR_FLAG);
	DAT_PSP_HANDLE *psp = kunit_kcalloc(test, MANY, sizeof(*psp), GFP_KERNEL);
	DAT_CONN_QUAL *port = kunit_kcalloc(test, MANY, sizeof(*port), GFP_KERNEL);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, 128);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, 128);
	DAT_CR_ARRIVAL_EVENT_DATA arrival;
	DAT_PSP_PARAM param = {};
	struct kdt_ep c, s;
	int i, j;

	KUNIT_ASSERT_NOT_NULL(test, psp);
	KUNIT_ASSERT_NOT_NULL(test, port);
	for (i = 0; i < MANY; i++) {
		KDT_OK(test, dat_psp_create_any(env->b.h, &port[i], cr->h,
						i % 2 ? DAT_PSP_PROVIDER_FLAG :
						DAT_PSP_CONSUMER_FLAG, &psp[i]));
		KUNIT_EXPECT_GE(test, port[i], 1024);
		KUNIT_EXPECT_LE(test, port[i], 65535);
		for (j = 0; j < i; j++)
			KUNIT_EXPECT_NE(test, port[i], port[j]);
		KDT_OK(test, dat_psp_query(psp[i], DAT_PSP_FIELD_ALL, &param));
		KUNIT_EXPECT_PTR_EQ(test, param.ia_handle, env->b.h);
		KUNIT_EXPECT_EQ(test, param.conn_qual, port[i]);
		KUNIT_EXPECT_PTR_EQ(test, param.evd_handle, cr->h);
		KUNIT_EXPECT_EQ(test, (int)param.psp_flags,
				i % 2 ? DAT_PSP_PROVIDER_FLAG : DAT_PSP_CONSUMER_FLAG);
	}
	/* All of them are real: the first, one in the middle, the last. */
	kdt_ep_new(test, &c, &env->a, NULL);
	kdt_ep_new(test, &s, &env->b, NULL);
	for (i = 0; i < MANY; i += MANY / 2 - 2) {
		arrival = kdt_call(test, &c, &env->b, port[i], cr);
		KUNIT_EXPECT_PTR_EQ(test, arrival.sp_handle.psp_handle, psp[i]);
		KUNIT_EXPECT_EQ(test, arrival.conn_qual, port[i]);
		KDT_OK(test, dat_cr_accept(arrival.cr_handle, s.h, 0, NULL));
		kdt_up(test, &c, &s);
		kdt_talk(test, &c, &s, from, to, i);
		kdt_down(test, &c, &s);
		KDT_OK(test, dat_ep_reset(c.h));
		KDT_OK(test, dat_ep_reset(s.h));
	}
	for (i = 0; i < MANY; i++)
		KDT_OK(test, dat_psp_free(psp[i]));
	kdt_nobody(test, port[1]);
	/* It is a qualifier like any other, and free again. */
	KDT_OK(test, dat_psp_create(env->b.h, port[1], cr->h, DAT_PSP_CONSUMER_FLAG, &psp[1]));
	KDT_OK(test, dat_psp_free(psp[1]));
	kdt_ep_done(test, &c);
	kdt_ep_done(test, &s);
}

/* ---- one qualifier, one service point ---- */

enum kind { PSP, PSP_PROVIDER, RSP, CSP, NUM_KINDS };

static void with_port(struct sockaddr_storage *sa, DAT_CONN_QUAL port)
{
	((struct sockaddr_in *)sa)->sin_port = htons(port);	/* both families have it there */
}

static DAT_COMM stream(int domain)
{
	return (DAT_COMM) { .domain = domain, .type = SOCK_STREAM };
}

static DAT_RETURN create(struct kdt_ia *ia, enum kind kind, DAT_CONN_QUAL port, struct kdt_evd *cr,
			 DAT_EP_HANDLE ep, DAT_HANDLE *h)
{
	struct sockaddr_storage addr = ia->addr;
	DAT_COMM comm = stream(addr.ss_family);

	with_port(&addr, port);
	switch (kind) {
	case PSP:
		return dat_psp_create(ia->h, port, cr->h, DAT_PSP_CONSUMER_FLAG,
				      (DAT_PSP_HANDLE *)h);
	case PSP_PROVIDER:
		return dat_psp_create(ia->h, port, cr->h, DAT_PSP_PROVIDER_FLAG,
				      (DAT_PSP_HANDLE *)h);
	case RSP:
		return dat_rsp_create(ia->h, port, ep, cr->h, (DAT_RSP_HANDLE *)h);
	default:
		return dat_csp_create(ia->h, &comm, (DAT_IA_ADDRESS_PTR)&addr, cr->h,
				      (DAT_CSP_HANDLE *)h);
	}
}

static DAT_RETURN destroy(enum kind kind, DAT_HANDLE h)
{
	return kind == RSP ? dat_rsp_free(h) : kind == CSP ? dat_csp_free(h) : dat_psp_free(h);
}

/* Nothing can be created there, by this instance or another one. */
static void all_in_use(struct kunit *test, struct kdt_evd *cr, struct kdt_ep *ep,
		       DAT_CONN_QUAL port)
{
	struct kdt_env *env = kdt_env(test);
	DAT_HANDLE h;
	int k;

	for (k = 0; k < NUM_KINDS; k++) {
		DAT_RETURN ret = create(&env->b, k, port, cr, ep->h, &h);

		KUNIT_EXPECT_TRUE_MSG(test, ret == DAT_ERROR((k == CSP ? DAT_PORT_IN_USE :
							      DAT_CONN_QUAL_IN_USE),
							     DAT_NO_SUBTYPE),
				      "kind %d: %s %s", k, kdt_major(ret), kdt_minor(ret));
		KUNIT_EXPECT_EQ(test, (int)kdt_state(ep->h), DAT_EP_STATE_UNCONNECTED);
	}
}

static void in_use(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_evd *cr = kdt_evd_new(test, &env->b, DAT_EVD_CR_FLAG);
	struct kdt_ep ep, held;
	DAT_CONN_QUAL port = kdt_new_port();
	struct kdt_raw *raw;
	DAT_HANDLE h;
	int k;

	kdt_ep_new(test, &ep, &env->b, NULL);
	kdt_ep_new(test, &held, &env->b, NULL);
	for (k = 0; k < NUM_KINDS; k++) {
		KDT_OK(test, create(&env->b, k, port, cr, held.h, &h));
		all_in_use(test, cr, &ep, port);
		KDT_OK(test, destroy(k, h));
		/* Another kind at once. */
	}
	/* Somebody else's listener counts, too. */
	raw = kdt_raw_listen(test, &env->b, port);
	all_in_use(test, cr, &ep, port);
	kdt_raw_close(raw);
	for (k = 0; k < NUM_KINDS; k++) {
		KDT_OK(test, create(&env->b, k, port, cr, held.h, &h));
		KDT_OK(test, destroy(k, h));
	}
	kdt_ep_done(test, &ep);
	kdt_ep_done(test, &held);
	KDT_OK(test, dat_evd_free(cr->h));
}

static void in_use_by_socket(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_evd *cr = kdt_evd_new(test, &env->b, DAT_EVD_CR_FLAG);
	struct sockaddr_storage addr = env->b.addr;
	DAT_CONN_QUAL port = kdt_new_port();
	struct socket *sock;
	struct kdt_ep ep;
	DAT_HANDLE h;

	if (!(env->b.traits & KDT_TCP))
		kunit_skip(test, "ports of this transport are not those of TCP");
	kdt_ep_new(test, &ep, &env->b, NULL);
	KUNIT_ASSERT_EQ(test, sock_create_kern(&init_net, addr.ss_family, SOCK_STREAM, IPPROTO_TCP,
					       &sock), 0);
	with_port(&addr, port);
	/* kernels differ in the type of the address */
	if (kernel_bind(sock, (void *)&addr, sizeof(struct sockaddr_in)) ||
	    kernel_listen(sock, 1)) {
		sock_release(sock);
		KUNIT_FAIL(test, "no socket listens");
		return;
	}
	all_in_use(test, cr, &ep, port);
	sock_release(sock);
	KDT_OK(test, create(&env->b, PSP, port, cr, ep.h, &h));
	KDT_OK(test, dat_psp_free(h));
}

/* ---- dat_csp_create ---- */

static void csp_arguments(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_evd *cr = kdt_evd_new(test, &env->b, DAT_EVD_CR_FLAG);
	struct kdt_evd *dto = kdt_evd_new(test, &env->b, DAT_EVD_DTO_FLAG);
	struct sockaddr_storage addr = env->b.addr, bad;
	int family = addr.ss_family, k;
	const DAT_COMM wrong[] = {
		{ AF_UNIX, SOCK_STREAM, 0 }, { 0, SOCK_STREAM, 0 }, { -1, SOCK_STREAM, 0 },
		{ family, SOCK_DGRAM, 0 }, { family, SOCK_RAW, 0 }, { family, 0, 0 },
		{ family, SOCK_STREAM, IPPROTO_UDP }, { family, SOCK_STREAM, -1 },
		{ family, SOCK_STREAM, IPPROTO_ICMP }, { family, SOCK_SEQPACKET, 0 },
	};
	DAT_COMM comm = stream(family), other = stream(family == AF_INET ? AF_INET6 : AF_INET);
	DAT_IA_ADDRESS_PTR sa = (DAT_IA_ADDRESS_PTR)&addr;
	DAT_CSP_HANDLE csp;
	DAT_COMM tried;

	with_port(&addr, kdt_new_port());
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA,
		    dat_csp_create(NULL, &comm, sa, cr->h, &csp));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CR,
		    dat_csp_create(env->b.h, &comm, sa, dto->h, &csp));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CR,
		    dat_csp_create(env->b.h, &comm, sa, NULL, &csp));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		    dat_csp_create(env->b.h, NULL, sa, cr->h, &csp));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		    dat_csp_create(env->b.h, &comm, NULL, cr->h, &csp));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG5,
		    dat_csp_create(env->b.h, &comm, sa, cr->h, NULL));
	for (k = 0; k < ARRAY_SIZE(wrong); k++) {
		tried = wrong[k];
		KDT_REFUSED(test, DAT_COMM_NOT_SUPPORTED, DAT_NO_SUBTYPE,
			    dat_csp_create(env->b.h, &tried, sa, cr->h, &csp));
	}
	KDT_REFUSED(test, DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED,
		    dat_csp_create(env->b.h, &other, sa, cr->h, &csp));
	bad = addr;
	bad.ss_family = AF_UNIX;
	KDT_REFUSED(test, DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNSUPPORTED,
		    dat_csp_create(env->b.h, &comm, (DAT_IA_ADDRESS_PTR)&bad, cr->h, &csp));
	bad = addr;
	with_port(&bad, 0);
	KDT_REFUSED(test, DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED,
		    dat_csp_create(env->b.h, &comm, (DAT_IA_ADDRESS_PTR)&bad, cr->h, &csp));
	if (family == AF_INET) {
		struct sockaddr_in *in = (struct sockaddr_in *)&bad;

		bad = addr;
		in->sin_addr.s_addr = htonl(INADDR_ANY);
		KDT_REFUSED(test, DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_MALFORMED,
			    dat_csp_create(env->b.h, &comm, (DAT_IA_ADDRESS_PTR)&bad, cr->h, &csp));
		/* Neither somebody else's address, nor one of this machine's other devices. */
		in->sin_addr.s_addr = ((struct sockaddr_in *)&addr)->sin_addr.s_addr ^ htonl(0x55);
		KDT_REFUSED(test, DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE,
			    dat_csp_create(env->b.h, &comm, (DAT_IA_ADDRESS_PTR)&bad, cr->h, &csp));
		in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		KDT_REFUSED(test, DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE,
			    dat_csp_create(env->b.h, &comm, (DAT_IA_ADDRESS_PTR)&bad, cr->h, &csp));
		if (!kdt_same_address((struct sockaddr *)&env->a.addr, &env->b)) {
			bad = env->a.addr;
			with_port(&bad, kdt_new_port());
			KDT_REFUSED(test, DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE,
				    dat_csp_create(env->b.h, &comm, (DAT_IA_ADDRESS_PTR)&bad,
						   cr->h, &csp));
		}
	}
	KDT_OK(test, dat_evd_free(cr->h));
}

/* Listens there, is called there, says so. */
static void csp_at(struct kunit *test, struct sockaddr_storage *addr, int protocol)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_evd *cr = kdt_evd_new(test, &env->b, DAT_EVD_CR_FLAG);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, 128);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, 128);
	DAT_COMM comm = stream(addr->ss_family);
	DAT_CONN_QUAL port = kdt_new_port();
	struct sockaddr_storage given;
	DAT_CR_ARRIVAL_EVENT_DATA arrival;
	DAT_HANDLE_TYPE type = 0;
	DAT_CSP_PARAM param = {};
	DAT_CSP_HANDLE csp;
	struct kdt_ep c, s;
	int i;

	comm.protocol = protocol;
	with_port(addr, port);
	given = *addr;
	KDT_OK(test, dat_csp_create(env->b.h, &comm, (DAT_IA_ADDRESS_PTR)&given, cr->h, &csp));
	memset(&given, 0xee, sizeof(given));	/* copied during the call */
	memset(&comm, 0xee, sizeof(comm));
	KDT_OK(test, dat_get_handle_type(csp, &type));
	KUNIT_EXPECT_EQ(test, (int)type, DAT_HANDLE_TYPE_CSP);
	KDT_OK(test, dat_csp_query(csp, DAT_CSP_FIELD_ALL, &param));
	KUNIT_EXPECT_PTR_EQ(test, param.ia_handle, env->b.h);
	KUNIT_EXPECT_PTR_EQ(test, param.evd_handle, cr->h);
	KUNIT_ASSERT_NOT_NULL(test, param.comm);
	KUNIT_EXPECT_EQ(test, param.comm->domain, (int)addr->ss_family);
	KUNIT_EXPECT_EQ(test, param.comm->type, SOCK_STREAM);
	KUNIT_EXPECT_EQ(test, param.comm->protocol, protocol);
	KUNIT_ASSERT_NOT_NULL(test, param.address_ptr);
	KUNIT_EXPECT_EQ(test, (int)param.address_ptr->sa_family, (int)addr->ss_family);
	if (addr->ss_family == AF_INET)
		KUNIT_EXPECT_EQ(test, memcmp(param.address_ptr, addr, 8), 0);
	else
		KUNIT_EXPECT_EQ(test, memcmp(param.address_ptr, addr, 24), 0);
	KDT_OK(test, dat_csp_query(csp, 0, NULL));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		    dat_csp_query(csp, 0x10, &param));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		    dat_csp_query(csp, DAT_CSP_FIELD_ALL, NULL));

	kdt_ep_new(test, &c, &env->a, NULL);
	kdt_ep_new(test, &s, &env->b, NULL);
	for (i = 0; i < 2; i++) {
		struct sockaddr_storage dst = *addr;

		if (dst.ss_family == AF_INET6 && ((struct sockaddr_in6 *)&dst)->sin6_scope_id) {
			/* the caller's name for the link */
			struct sockaddr_in6 mine;

			KUNIT_ASSERT_TRUE(test, kdt_ia_ipv6(&env->a, &mine));
			((struct sockaddr_in6 *)&dst)->sin6_scope_id = mine.sin6_scope_id;
		}
		KDT_OK(test, dat_ep_common_connect(c.h, (DAT_IA_ADDRESS_PTR)&dst, 30 * USEC_PER_SEC,
						   0, NULL));
		arrival = kdt_arrival(test, cr);
		KUNIT_EXPECT_PTR_EQ(test, arrival.sp_handle.csp_handle, csp);
		KUNIT_EXPECT_EQ(test, arrival.conn_qual, port);
		KUNIT_ASSERT_NOT_NULL(test, arrival.local_ia_address_ptr);
		KUNIT_EXPECT_EQ(test, (int)arrival.local_ia_address_ptr->sa_family,
				(int)addr->ss_family);
		KUNIT_EXPECT_NULL(test, kdt_cr_ep(test, arrival.cr_handle));
		if (!i) {
			KDT_OK(test, dat_cr_reject(arrival.cr_handle, 0, NULL));
			kdt_conn(test, &c, DAT_CONNECTION_EVENT_PEER_REJECTED);
			KDT_OK(test, dat_ep_reset(c.h));
			continue;
		}
		/* What has come lives on. */
		KDT_OK(test, dat_csp_free(csp));
		KDT_OK(test, dat_cr_accept(arrival.cr_handle, s.h, 0, NULL));
		kdt_up(test, &c, &s);
		kdt_talk(test, &c, &s, from, to, 1);
		kdt_down(test, &c, &s);
	}
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CSP, dat_csp_free(csp));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CSP,
		    dat_csp_query(csp, DAT_CSP_FIELD_ALL, &param));
	if (addr->ss_family == env->b.addr.ss_family)
		kdt_nobody(test, port);
	kdt_ep_done(test, &c);
	kdt_ep_done(test, &s);
	KDT_OK(test, dat_evd_free(cr->h));
}

static void csp_ipv4(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct sockaddr_storage addr = env->b.addr;

	csp_at(test, &addr, 0);
	csp_at(test, &addr, IPPROTO_TCP);
}

static void csp_ipv6(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct sockaddr_storage addr = {};
	struct sockaddr_in6 mine;

	if (!kdt_ia_ipv6(&env->b, (struct sockaddr_in6 *)&addr) || !kdt_ia_ipv6(&env->a, &mine))
		kunit_skip(test, "the network devices have no IPv6 addresses");
	csp_at(test, &addr, 0);
}

static struct kunit_case cases[] = {
	KD_CASE(any_arguments, "PSP-03,PSP-04,PSP-07: what dat_psp_create_any refuses"),
	KD_CASE(any_many, "PSP-07,PSP-09,PSP-11: 64 free qualifiers, all different and real"),
	KD_CASE(in_use, "PSP-05,RSP-02,RSP-09,CSP-02,PSP-10: one qualifier, one service point"),
	KD_CASE(in_use_by_socket, "PSP-05,CSP-02: a port that belongs to a socket"),
	KD_CASE(csp_arguments, "CSP-02,SIL-24: what dat_csp_create refuses"),
	KD_CASE(csp_ipv4, "CSP-01,CSP-03,SIL-24,CCON-01: a Common Service Point on IPv4"),
	KD_CASE(csp_ipv6, "CSP-01,CSP-03,SIL-24: beside it one on IPv6"),
	{}
};

struct kunit_suite kdt_csp_suite = {
	.name = "kdtest-csp",
	.init = kdt_init,
	.exit = kdt_exit,
	.test_cases = cases,
};
