// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Service points: qualifiers of any number, qualifiers in use, socket addresses. */
#include <linux/in.h>
#include <linux/net.h>
#include <net/sock.h>

#include "kdtest_conn.h"

#define FREE_ONES 16

/* ---- dat_psp_create_any, dat_psp_free ---- */

static void any_many(struct kunit *test)
{
	DAT_PSP_HANDLE *psp = kdt_zalloc(test, FREE_ONES * sizeof(*psp));
	DAT_CONN_QUAL *port = kdt_zalloc(test, FREE_ONES * sizeof(*port));
	struct kdt_scene *t = kdt_scene_new(test);
	DAT_CR_ARRIVAL_EVENT_DATA arrival;
	DAT_PSP_PARAM param = {};
	int i, j;

	for (i = 0; i < FREE_ONES; i++) {
		int flag = i % 2 ? DAT_PSP_PROVIDER_FLAG : DAT_PSP_CONSUMER_FLAG;

		KDT_OK(test, dat_psp_create_any(t->s.ia->h, &port[i], t->cr->h, flag, &psp[i]));
		KUNIT_EXPECT_GE(test, port[i], 1024);
		KUNIT_EXPECT_LE(test, port[i], 65535);
		for (j = 0; j < i; j++)
			KUNIT_EXPECT_NE(test, port[i], port[j]);
		KDT_OK(test, dat_psp_query(psp[i], DAT_PSP_FIELD_ALL, &param));
		KUNIT_EXPECT_PTR_EQ(test, param.ia_handle, t->s.ia->h);
		KUNIT_EXPECT_EQ(test, param.conn_qual, port[i]);
		KUNIT_EXPECT_PTR_EQ(test, param.evd_handle, t->cr->h);
		KUNIT_EXPECT_EQ(test, (int)param.psp_flags, flag);
	}
	/* All are real: the first, one in the middle, the last; what has come outlives them. */
	for (i = 0; i < FREE_ONES; i += FREE_ONES / 2 - 2) {
		arrival = kdt_call(test, &t->c, t->s.ia, port[i], t->cr);
		KUNIT_EXPECT_PTR_EQ(test, arrival.sp_handle.psp_handle, psp[i]);
		KUNIT_EXPECT_EQ(test, arrival.conn_qual, port[i]);
		KDT_OK(test, dat_psp_free(psp[i]));
		kdt_accept(test, arrival.cr_handle, t->s.h, &t->c, &t->s);
		kdt_nobody(test, port[i]);
		kdt_talk(test, &t->c, &t->s, t->from, t->to, i);
		kdt_down(test, &t->c, &t->s);
		kdt_reset(test, &t->c, &t->s);
		/* a qualifier like any other, and free again */
		KDT_OK(test, kdt_listen(t->s.ia, KDT_PSP, port[i], t->cr, NULL,
					(DAT_HANDLE *)&psp[i]));
	}
	for (i = 0; i < FREE_ONES; i++)
		KDT_OK(test, dat_psp_free(psp[i]));
	kdt_scene_done(test, t);
}

/* ---- one qualifier, one service point ---- */

/* Nothing can be created there, by this instance. */
static void all_in_use(struct kunit *test, struct kdt_scene *t)
{
	DAT_HANDLE h;
	int k;

	for (k = 0; k < KDT_SPS; k++) {
		DAT_RETURN ret = kdt_listen(t->c.ia, k, t->port, t->cr, t->c.h, &h);

		KUNIT_EXPECT_TRUE_MSG(test, ret == DAT_ERROR((k == KDT_CSP ? DAT_PORT_IN_USE :
							      DAT_CONN_QUAL_IN_USE),
							     DAT_NO_SUBTYPE),
				      "kind %d: %s %s", k, kdt_major(ret), kdt_minor(ret));
		KUNIT_EXPECT_EQ(test, (int)kdt_state(t->c.h), DAT_EP_STATE_UNCONNECTED);
	}
}

static void in_use(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_scene *t = kdt_scene_new(test);
	struct kdt_raw *raw;
	struct socket *sock;
	int k;

	/* both endpoints are of the passive side */
	KDT_OK(test, dat_ep_free(t->c.h));
	kdt_ep_new(test, &t->c, &env->b, NULL);
	for (k = 0; k < KDT_SPS; k++) {
		kdt_scene_listen(test, t, k);
		all_in_use(test, t);
		KDT_OK(test, kdt_unlisten(k, t->sp));	/* and another kind at once */
	}
	/* Somebody else's listener counts, too, and on TCP a socket. */
	raw = kdt_raw_listen(test, &env->b, t->port);
	all_in_use(test, t);
	kdt_raw_close(raw);
	if (env->b.traits & KDT_TCP) {
		struct sockaddr_storage addr = env->b.addr;

		((struct sockaddr_in *)&addr)->sin_port = htons(t->port);
		KUNIT_ASSERT_EQ(test, sock_create_kern(&init_net, addr.ss_family, SOCK_STREAM,
						       IPPROTO_TCP, &sock), 0);
		/* kernels differ in the type of the address */
		if (kernel_bind(sock, (void *)&addr, sizeof(struct sockaddr_in)) ||
		    kernel_listen(sock, 1))
			KUNIT_FAIL(test, "no socket listens");
		else
			all_in_use(test, t);
		sock_release(sock);
	}
	for (k = 0; k < KDT_SPS; k++) {
		kdt_scene_listen(test, t, k);
		KDT_OK(test, kdt_unlisten(k, t->sp));
	}
	kdt_scene_done(test, t);
	KDT_OK(test, dat_evd_free(t->cr->h));
}

#define OPENED (KD_SLOW ? 16 : 50)

struct openers {
	struct kdt_scene *t;
	atomic_t there, holders;
	bool refused;
	DAT_RETURN wrong;
	struct completion done;
};

/* Has the qualifier so many times; the first time of all until the other one has asked for it. */
static int open_often(struct openers *o)
{
	unsigned long end = jiffies + KDT_WAIT;
	DAT_HANDLE psp;
	DAT_RETURN ret;
	int had = 0;

	atomic_inc(&o->there);
	while (had < OPENED && !READ_ONCE(o->wrong) && time_before(jiffies, end)) {
		ret = atomic_read(&o->there) < 2 ? DAT_CONN_QUAL_IN_USE :
		      kdt_listen(o->t->s.ia, KDT_PSP, o->t->port, o->t->cr, NULL, &psp);
		if (DAT_GET_TYPE(ret) == DAT_CONN_QUAL_IN_USE) {
			if (atomic_read(&o->there) == 2)
				WRITE_ONCE(o->refused, true);
			schedule_timeout_uninterruptible(1);
			continue;
		}
		if (ret == DAT_SUCCESS) {
			if (atomic_inc_return(&o->holders) != 1)
				ret = DAT_ABORT;
			while (!READ_ONCE(o->refused) && time_before(jiffies, end))
				schedule_timeout_uninterruptible(1);
			had++;
			atomic_dec(&o->holders);
			ret = dat_psp_free(psp) ?: ret;
		}
		if (ret != DAT_SUCCESS)
			WRITE_ONCE(o->wrong, ret);
	}
	return had;
}

static int opener(void *data)
{
	struct openers *o = data;

	if (open_often(o) == OPENED)
		complete(&o->done);
	return kdt_until_stopped();
}

/* Each time one of the two has it. */
static void beside(struct kunit *test)
{
	struct openers *o = kdt_zalloc(test, sizeof(*o));

	o->t = kdt_scene_new(test);
	init_completion(&o->done);
	kdt_beside(test, opener, o);
	KUNIT_EXPECT_EQ(test, open_often(o), OPENED);
	KUNIT_ASSERT_TRUE(test, wait_for_completion_timeout(&o->done, KDT_WAIT));
	KDT_OK(test, o->wrong);
	KUNIT_EXPECT_TRUE(test, o->refused);
	kdt_scene_listen(test, o->t, KDT_PSP);
	KDT_OK(test, dat_psp_free(o->t->sp));
	KDT_OK(test, dat_evd_free(o->t->cr->h));
}

/* ---- dat_csp_create, dat_ep_common_connect ---- */

static DAT_RETURN csp_create(struct kdt_scene *t, struct sockaddr_storage *addr, int protocol,
			     DAT_CSP_HANDLE *csp)
{
	DAT_COMM comm = {
		.domain = addr->ss_family, .type = SOCK_STREAM, .protocol = protocol,
	};
	struct sockaddr_storage given = *addr;
	DAT_RETURN ret;

	((struct sockaddr_in *)&given)->sin_port = htons(t->port);
	ret = dat_csp_create(t->s.ia->h, &comm, (DAT_IA_ADDRESS_PTR)&given, t->cr->h, csp);
	memset(&given, 0xee, sizeof(given));	/* copied during the call */
	memset(&comm, 0xee, sizeof(comm));
	return ret;
}

/* Listens there, is called there, says so. */
static void csp_at(struct kunit *test, struct sockaddr_storage addr, int protocol)
{
	struct kdt_scene *t = kdt_scene_new(test);
	DAT_CR_ARRIVAL_EVENT_DATA arrival;
	struct sockaddr_storage dst;
	DAT_CSP_PARAM param = {};
	DAT_CR_PARAM cr = {};
	DAT_CSP_HANDLE csp;
	u8 words[20];
	int i;

	KDT_OK(test, csp_create(t, &addr, protocol, &csp));
	((struct sockaddr_in *)&addr)->sin_port = htons(t->port);
	KDT_OK(test, dat_csp_query(csp, DAT_CSP_FIELD_ALL, &param));
	KUNIT_EXPECT_PTR_EQ(test, param.ia_handle, t->s.ia->h);
	KUNIT_EXPECT_PTR_EQ(test, param.evd_handle, t->cr->h);
	KUNIT_ASSERT_NOT_NULL(test, param.comm);
	KUNIT_EXPECT_EQ(test, param.comm->domain, (int)addr.ss_family);
	KUNIT_EXPECT_EQ(test, param.comm->type, SOCK_STREAM);
	KUNIT_EXPECT_EQ(test, param.comm->protocol, protocol);
	KUNIT_ASSERT_NOT_NULL(test, param.address_ptr);
	KUNIT_EXPECT_EQ(test, memcmp(param.address_ptr, &addr, addr.ss_family == AF_INET ? 8 : 24),
			0);
	for (i = 0; i < 2; i++) {
		struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&dst, mine;

		dst = addr;
		if (dst.ss_family == AF_INET6 && in6->sin6_scope_id) {
			KUNIT_ASSERT_TRUE(test, kdt_ia_ipv6(t->c.ia, &mine));
			in6->sin6_scope_id = mine.sin6_scope_id;	/* the caller's */
		}
		kdt_fill(words, sizeof(words), i);
		KDT_OK(test, dat_ep_common_connect(t->c.h, (DAT_IA_ADDRESS_PTR)&dst,
						   30 * USEC_PER_SEC, sizeof(words), words));
		memset(words, 0, sizeof(words));
		memset(&dst, 0xee, sizeof(dst));
		arrival = kdt_arrival(test, t->cr);
		KUNIT_EXPECT_PTR_EQ(test, arrival.sp_handle.csp_handle, csp);
		KUNIT_EXPECT_EQ(test, arrival.conn_qual, t->port);
		KUNIT_ASSERT_NOT_NULL(test, arrival.local_ia_address_ptr);
		KUNIT_EXPECT_EQ(test, (int)arrival.local_ia_address_ptr->sa_family,
				(int)addr.ss_family);
		KDT_OK(test, dat_cr_query(arrival.cr_handle, DAT_CR_FIELD_ALL, &cr));
		KUNIT_EXPECT_NULL(test, cr.local_ep_handle);
		KUNIT_EXPECT_TRUE(test, kdt_same(cr.private_data, sizeof(words), i));
		if (i)
			break;
		kdt_reject(test, &t->c, t->cr, arrival.cr_handle, NULL, 0);
		kdt_conn(test, &t->c, DAT_CONNECTION_EVENT_PEER_REJECTED);
		KDT_OK(test, dat_ep_reset(t->c.h));
	}
	/* What has come lives on. */
	KDT_OK(test, dat_csp_free(csp));
	kdt_accept(test, arrival.cr_handle, t->s.h, &t->c, &t->s);
	kdt_talk(test, &t->c, &t->s, t->from, t->to, 1);
	kdt_down(test, &t->c, &t->s);
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CSP, dat_csp_free(csp));
	if (addr.ss_family == t->s.ia->addr.ss_family)
		kdt_nobody(test, t->port);
	kdt_scene_done(test, t);
	KDT_OK(test, dat_evd_free(t->cr->h));
}

static void csp_ipv4(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct sockaddr_storage nobody = kdt_nobody_there(&env->b), lo = env->b.addr;
	struct kdt_scene *t = kdt_scene_new(test);
	DAT_CSP_HANDLE csp;

	/* Neither somebody else's address, nor one of this machine's other devices. */
	KDT_REFUSED(test, DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE,
		    csp_create(t, &nobody, 0, &csp));
	if (!kdt_same_address((struct sockaddr *)&env->a.addr, &env->b))
		KDT_REFUSED(test, DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE,
			    csp_create(t, &env->a.addr, 0, &csp));
	if (lo.ss_family == AF_INET) {
		((struct sockaddr_in *)&lo)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		KDT_REFUSED(test, DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE,
			    csp_create(t, &lo, 0, &csp));
	}
	KDT_OK(test, dat_evd_free(t->cr->h));
	csp_at(test, env->b.addr, 0);
	csp_at(test, env->b.addr, IPPROTO_TCP);
}

static void csp_ipv6(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct sockaddr_storage addr = {};
	struct sockaddr_in6 mine;

	if (!kdt_ia_ipv6(&env->b, (struct sockaddr_in6 *)&addr) || !kdt_ia_ipv6(&env->a, &mine))
		kunit_skip(test, "the network devices have no IPv6 addresses");
	csp_at(test, addr, 0);
}

static struct kunit_case cases[] = {
	KD_CASE(any_many, "PSP-01,PSP-07,PSP-08,PSP-09,PSP-11,CONN-10: free qualifiers, freed"),
	KD_CASE(in_use, "PSP-05,RSP-02,RSP-09,CSP-02,PSP-10: one qualifier, one service point"),
	KD_CASE(beside, "PSP-10,PSP-05: two create and free the same one"),
	KD_CASE(csp_ipv4, "CSP-01,CSP-02,CSP-03,SIL-24,CCON-01: a socket address of IPv4"),
	KD_CASE(csp_ipv6, "CSP-01,CSP-03,SIL-24: beside it one of IPv6"),
	{}
};

struct kunit_suite kdt_csp_suite = { .name = "kdtest-csp", KDT_CASES };
