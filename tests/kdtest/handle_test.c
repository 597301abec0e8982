// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Handles of every call: NULL, made up, freed, of the wrong kind. And what takes any kind. */
#include "kdtest.h"

/* One live handle of each kind. */
struct kinds {
	DAT_HANDLE h[DAT_HANDLE_TYPE_CSP + 1];
	DAT_LMR_HANDLE freed;
	struct kdt_pair *pair;
};

struct attempt {
	const char *name;
	DAT_HANDLE_TYPE kind;
	bool null_ok;
	DAT_RETURN subtype;
	DAT_RETURN (*call)(struct kinds *k, DAT_HANDLE h);
};

static DAT_HANDLE out;
static DAT_COUNT param[200];		/* big enough for any query */
static u8 memory[64];

#define CALL(fn, expression)								\
static DAT_RETURN fn(struct kinds *k, DAT_HANDLE h)					\
{											\
	return expression;								\
}

#define REGION ((DAT_REGION_DESCRIPTION) { .for_va = memory })
#define IA (k->h[DAT_HANDLE_TYPE_IA])
#define CR (k->h[DAT_HANDLE_TYPE_CR])
#define ADDR ((DAT_IA_ADDRESS_PTR)&k->pair->s.ia->addr)

CALL(ia_query, dat_ia_query(h, NULL, 0, NULL, 0, NULL))
CALL(ia_close, dat_ia_close(h, DAT_CLOSE_GRACEFUL_FLAG))
CALL(pz_create, dat_pz_create(h, &out))
CALL(pz_query, dat_pz_query(h, DAT_PZ_FIELD_ALL, (void *)param))
CALL(pz_free, dat_pz_free(h))
CALL(lmr_create_ia, dat_lmr_kcreate(h, 0, REGION, 64, k->h[DAT_HANDLE_TYPE_PZ], 1, 0, 0, &out, NULL,
				    NULL, NULL, NULL))
CALL(lmr_create_pz, dat_lmr_kcreate(IA, 0, REGION, 64, h, 1, 0, 0, &out, NULL, NULL, NULL, NULL))
CALL(lmr_query, dat_lmr_query(h, DAT_LMR_FIELD_ALL, (void *)param))
CALL(lmr_free, dat_lmr_free(h))
CALL(evd_create, dat_evd_kcreate(h, 8, DAT_UPCALL_DISABLE, NULL, DAT_EVD_DTO_FLAG, &out))
CALL(evd_query, dat_evd_query(h, DAT_EVD_FIELD_ALL, (void *)param))
CALL(evd_dequeue, dat_evd_dequeue(h, (void *)param))
CALL(evd_free, dat_evd_free(h))
CALL(ep_create_ia, dat_ep_create(h, NULL, NULL, NULL, NULL, NULL, &out))
CALL(ep_create_pz, dat_ep_create(IA, h, NULL, NULL, NULL, NULL, &out))
CALL(ep_create_recv, dat_ep_create(IA, NULL, h, NULL, NULL, NULL, &out))
CALL(ep_create_request, dat_ep_create(IA, NULL, NULL, h, NULL, NULL, &out))
CALL(ep_create_conn, dat_ep_create(IA, NULL, NULL, NULL, h, NULL, &out))
CALL(ep_query, dat_ep_query(h, DAT_EP_FIELD_ALL, (void *)param))
CALL(ep_get_status, dat_ep_get_status(h, NULL, NULL, NULL))
CALL(ep_connect, dat_ep_connect(h, ADDR, 5000, 1000, 0, NULL, 0, 0))
CALL(ep_disconnect, dat_ep_disconnect(h, DAT_CLOSE_ABRUPT_FLAG))
CALL(ep_reset, dat_ep_reset(h))
CALL(ep_free, dat_ep_free(h))
CALL(post_send, dat_ep_post_send(h, 0, NULL, kdt_cookie(0), 0))
CALL(post_recv, dat_ep_post_recv(h, 0, NULL, kdt_cookie(0), 0))
CALL(post_write, dat_ep_post_rdma_write(h, 0, NULL, kdt_cookie(0), (void *)param, 0))
CALL(post_read, dat_ep_post_rdma_read(h, 0, NULL, kdt_cookie(0), (void *)param, 0))
CALL(psp_create_ia, dat_psp_create(h, 5001, k->pair->cr->h, DAT_PSP_CONSUMER_FLAG, &out))
CALL(psp_create_evd, dat_psp_create(k->pair->s.ia->h, 5001, h, DAT_PSP_CONSUMER_FLAG, &out))
CALL(psp_query, dat_psp_query(h, DAT_PSP_FIELD_ALL, (void *)param))
CALL(psp_free, dat_psp_free(h))
CALL(cr_query, dat_cr_query(h, DAT_CR_FIELD_ALL, (void *)param))
CALL(cr_accept_cr, dat_cr_accept(h, k->pair->s.h, 0, NULL))
CALL(cr_accept_ep, dat_cr_accept(CR, h, 0, NULL))
CALL(cr_reject, dat_cr_reject(h, 0, NULL))
CALL(set_context, dat_set_consumer_context(h, kdt_cookie(1)))
CALL(get_context, dat_get_consumer_context(h, (void *)param))
CALL(get_type, dat_get_handle_type(h, (void *)param))

/* Kind CSP stands for "any kind": no live handle is wrong there. */
#define ANY DAT_HANDLE_TYPE_CSP
#define ROW(call, kind, null_ok, subtype) { #call, kind, null_ok, subtype, call }
static const struct attempt attempts[] = {
	ROW(ia_query, DAT_HANDLE_TYPE_IA, false, DAT_INVALID_HANDLE_IA),
	ROW(ia_close, DAT_HANDLE_TYPE_IA, false, DAT_INVALID_HANDLE_IA),
	ROW(pz_create, DAT_HANDLE_TYPE_IA, false, DAT_INVALID_HANDLE_IA),
	ROW(pz_query, DAT_HANDLE_TYPE_PZ, false, DAT_INVALID_HANDLE_PZ),
	ROW(pz_free, DAT_HANDLE_TYPE_PZ, false, DAT_INVALID_HANDLE_PZ),
	ROW(lmr_create_ia, DAT_HANDLE_TYPE_IA, false, DAT_INVALID_HANDLE_IA),
	ROW(lmr_create_pz, DAT_HANDLE_TYPE_PZ, false, DAT_INVALID_HANDLE_PZ),
	ROW(lmr_query, DAT_HANDLE_TYPE_LMR, false, DAT_INVALID_HANDLE_LMR),
	ROW(lmr_free, DAT_HANDLE_TYPE_LMR, false, DAT_INVALID_HANDLE_LMR),
	ROW(evd_create, DAT_HANDLE_TYPE_IA, false, DAT_INVALID_HANDLE_IA),
	ROW(evd_query, DAT_HANDLE_TYPE_EVD, false, DAT_INVALID_HANDLE1),
	ROW(evd_dequeue, DAT_HANDLE_TYPE_EVD, false, DAT_INVALID_HANDLE1),
	ROW(evd_free, DAT_HANDLE_TYPE_EVD, false, DAT_INVALID_HANDLE1),
	ROW(ep_create_ia, DAT_HANDLE_TYPE_IA, false, DAT_INVALID_HANDLE_IA),
	ROW(ep_create_pz, DAT_HANDLE_TYPE_PZ, true, DAT_INVALID_HANDLE_PZ),
	ROW(ep_create_recv, DAT_HANDLE_TYPE_EVD, true, DAT_INVALID_HANDLE_EVD_RECV),
	ROW(ep_create_request, DAT_HANDLE_TYPE_EVD, true, DAT_INVALID_HANDLE_EVD_REQUEST),
	ROW(ep_create_conn, DAT_HANDLE_TYPE_EVD, true, DAT_INVALID_HANDLE_EVD_CONN),
	ROW(ep_query, DAT_HANDLE_TYPE_EP, false, DAT_INVALID_HANDLE_EP),
	ROW(ep_get_status, DAT_HANDLE_TYPE_EP, false, DAT_INVALID_HANDLE_EP),
	ROW(ep_connect, DAT_HANDLE_TYPE_EP, false, DAT_INVALID_HANDLE_EP),
	ROW(ep_disconnect, DAT_HANDLE_TYPE_EP, false, DAT_INVALID_HANDLE_EP),
	ROW(ep_reset, DAT_HANDLE_TYPE_EP, false, DAT_INVALID_HANDLE_EP),
	ROW(ep_free, DAT_HANDLE_TYPE_EP, false, DAT_INVALID_HANDLE_EP),
	ROW(post_send, DAT_HANDLE_TYPE_EP, false, DAT_INVALID_HANDLE_EP),
	ROW(post_recv, DAT_HANDLE_TYPE_EP, false, DAT_INVALID_HANDLE_EP),
	ROW(post_write, DAT_HANDLE_TYPE_EP, false, DAT_INVALID_HANDLE_EP),
	ROW(post_read, DAT_HANDLE_TYPE_EP, false, DAT_INVALID_HANDLE_EP),
	ROW(psp_create_ia, DAT_HANDLE_TYPE_IA, false, DAT_INVALID_HANDLE_IA),
	ROW(psp_create_evd, DAT_HANDLE_TYPE_EVD, false, DAT_INVALID_HANDLE_EVD_CR),
	ROW(psp_query, DAT_HANDLE_TYPE_PSP, false, DAT_INVALID_HANDLE_PSP),
	ROW(psp_free, DAT_HANDLE_TYPE_PSP, false, DAT_INVALID_HANDLE_PSP),
	ROW(cr_query, DAT_HANDLE_TYPE_CR, false, DAT_INVALID_HANDLE_CR),
	ROW(cr_accept_cr, DAT_HANDLE_TYPE_CR, false, DAT_INVALID_HANDLE_CR),
	ROW(cr_accept_ep, DAT_HANDLE_TYPE_EP, false, DAT_INVALID_HANDLE_EP),
	ROW(cr_reject, DAT_HANDLE_TYPE_CR, false, DAT_INVALID_HANDLE_CR),
	ROW(set_context, ANY, false, DAT_INVALID_HANDLE1),
	ROW(get_context, ANY, false, DAT_INVALID_HANDLE1),
	ROW(get_type, ANY, false, DAT_INVALID_HANDLE1),
};

static struct kinds *all_kinds(struct kunit *test)
{
	struct kinds *k = kunit_kzalloc(test, sizeof(*k), GFP_KERNEL);
	struct kdt_env *env = kdt_env(test);

	KUNIT_ASSERT_NOT_NULL(test, k);
	k->pair = kdt_pair_new(test, NULL);
	k->h[DAT_HANDLE_TYPE_IA] = env->a.h;
	k->h[DAT_HANDLE_TYPE_PZ] = env->a.pz;
	k->h[DAT_HANDLE_TYPE_LMR] = kdt_buf_new(test, &env->a, 64)->lmr;
	k->h[DAT_HANDLE_TYPE_EVD] = kdt_evd_new(test, &env->a, DAT_EVD_SOFTWARE_FLAG)->h;
	k->h[DAT_HANDLE_TYPE_CR] = kdt_pair_request(test, k->pair);
	k->h[DAT_HANDLE_TYPE_EP] = k->pair->c.h;
	k->h[DAT_HANDLE_TYPE_PSP] = k->pair->psp;
	k->freed = kdt_buf_new(test, &env->a, 64)->lmr;
	KDT_OK(test, dat_lmr_free(k->freed));
	return k;
}

static void refused(struct kunit *test, struct kinds *k, const struct attempt *a, DAT_HANDLE h,
		    const char *what)
{
	DAT_RETURN ret = a->call(k, h);

	KUNIT_EXPECT_TRUE_MSG(test, ret == DAT_ERROR(DAT_INVALID_HANDLE, a->subtype),
			      "%s with %s: %s %s (0x%08x)", a->name, what, kdt_major(ret),
			      kdt_minor(ret), ret);
}

static void null_and_garbage(struct kunit *test)
{
	static const u64 garbage[] = {
		1, 2, 7, 8, 0xff, 0x1000, 0xdeadbeef, 0x8000000000000000ULL, U64_MAX, U64_MAX - 1,
		0x5555555555555555ULL, 0xaaaaaaaaaaaaaaaaULL, 0xffff888000000000ULL,
		0xffffffff81000000ULL, 0x00000001ffffffffULL, 0x0123456789abcdefULL,
	};
	struct kinds *k = all_kinds(test);
	int i, j;

	for (i = 0; i < ARRAY_SIZE(attempts); i++) {
		if (!attempts[i].null_ok)
			refused(test, k, &attempts[i], DAT_HANDLE_NULL, "NULL");
		for (j = 0; j < ARRAY_SIZE(garbage); j++)
			refused(test, k, &attempts[i], (DAT_HANDLE)(uintptr_t)garbage[j],
				"garbage");
		/* A pointer to valid memory is no handle either. */
		refused(test, k, &attempts[i], k, "a pointer");
		refused(test, k, &attempts[i], k->freed, "a freed handle");
	}
}

/* Each bit of a live handle counts. */
static void flipped_bits(struct kunit *test)
{
	struct kinds *k = all_kinds(test);
	int i, j, bit;

	for (i = 0; i < ARRAY_SIZE(attempts); i++) {
		if (attempts[i].kind == ANY || attempts[i].kind == DAT_HANDLE_TYPE_EVD)
			continue;
		for (bit = 0; bit < BITS_PER_LONG; bit++) {
			uintptr_t h = (uintptr_t)k->h[attempts[i].kind] ^ 1UL << bit;

			/* Unless it happens to be another live handle. */
			for (j = 0; j <= DAT_HANDLE_TYPE_CSP; j++)
				if (h == (uintptr_t)k->h[j])
					break;
			if (j > DAT_HANDLE_TYPE_CSP && attempts[i].call != ia_close &&
			    attempts[i].call != pz_free && attempts[i].call != lmr_free &&
			    attempts[i].call != ep_free && attempts[i].call != psp_free &&
			    attempts[i].call != cr_reject)
				refused(test, k, &attempts[i], (DAT_HANDLE)h, "a flipped bit");
		}
	}
}

static void wrong_kind(struct kunit *test)
{
	struct kinds *k = all_kinds(test);
	int i, kind;

	for (i = 0; i < ARRAY_SIZE(attempts); i++) {
		for (kind = 0; kind <= DAT_HANDLE_TYPE_CSP; kind++) {
			if (!k->h[kind] || kind == attempts[i].kind || attempts[i].kind == ANY)
				continue;
			refused(test, k, &attempts[i], k->h[kind], "the wrong kind");
		}
	}
}

/* A handle dies with its object, and does not come back at once. */
static void freed_handles(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kinds *k = all_kinds(test);
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	DAT_HANDLE dead[DAT_HANDLE_TYPE_CSP + 1] = {};
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_PZ_HANDLE pz;
	int i, j;

	KDT_OK(test, dat_ia_open(kdt_ia_a, 8, &async, &dead[DAT_HANDLE_TYPE_IA]));
	KDT_OK(test, dat_ia_close(dead[DAT_HANDLE_TYPE_IA], DAT_CLOSE_GRACEFUL_FLAG));
	KDT_OK(test, dat_pz_create(env->a.h, &dead[DAT_HANDLE_TYPE_PZ]));
	KDT_OK(test, dat_pz_free(dead[DAT_HANDLE_TYPE_PZ]));
	dead[DAT_HANDLE_TYPE_EVD] = async;
	dead[DAT_HANDLE_TYPE_LMR] = k->freed;
	dead[DAT_HANDLE_TYPE_CR] = kdt_pair_request(test, pair);
	KDT_OK(test, dat_cr_reject(dead[DAT_HANDLE_TYPE_CR], 0, NULL));
	dead[DAT_HANDLE_TYPE_EP] = pair->c.h;
	kdt_conn(test, &pair->c, DAT_CONNECTION_EVENT_PEER_REJECTED);
	KDT_OK(test, dat_ep_free(pair->c.h));
	dead[DAT_HANDLE_TYPE_PSP] = pair->psp;
	KDT_OK(test, dat_psp_free(pair->psp));
	for (j = 0; j < 2; j++) {
		for (i = 0; i < ARRAY_SIZE(attempts); i++) {
			if (attempts[i].kind != ANY)
				refused(test, k, &attempts[i], dead[attempts[i].kind],
					"its freed object");
		}
		/* Again after new objects came. */
		for (i = 0; i < 20; i++)
			KDT_OK(test, dat_pz_create(env->a.h, &pz));
	}
}

static void context_and_type(struct kunit *test)
{
	struct kinds *k = all_kinds(test);
	DAT_HANDLE_TYPE type;
	DAT_CONTEXT context;
	int kind;

	for (kind = 0; kind <= DAT_HANDLE_TYPE_CSP; kind++) {
		if (!k->h[kind])
			continue;
		KDT_OK(test, dat_get_handle_type(k->h[kind], &type));
		KUNIT_EXPECT_EQ(test, (int)type, kind);
		KDT_OK(test, dat_get_consumer_context(k->h[kind], &context));
		KUNIT_EXPECT_EQ_MSG(test, context.as_64, 0, "kind %d", kind);
		KDT_OK(test, dat_set_consumer_context(k->h[kind],
						      kdt_cookie(0xfedcba9876543210ULL + kind)));
	}
	for (kind = 0; kind <= DAT_HANDLE_TYPE_CSP; kind++) {
		if (!k->h[kind])
			continue;
		KDT_OK(test, dat_get_consumer_context(k->h[kind], &context));
		KUNIT_EXPECT_EQ(test, context.as_64, 0xfedcba9876543210ULL + kind);
		KDT_OK(test, dat_set_consumer_context(k->h[kind], kdt_cookie(0)));
		KDT_OK(test, dat_get_consumer_context(k->h[kind], &context));
		KUNIT_EXPECT_EQ(test, context.as_64, 0);
		KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
			    dat_get_consumer_context(k->h[kind], NULL));
		KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
			    dat_get_handle_type(k->h[kind], NULL));
	}
}

static void strings(struct kunit *test)
{
	const char *major, *minor;

	KDT_OK(test, dat_strerror(DAT_SUCCESS, &major, &minor));
	KUNIT_EXPECT_STREQ(test, major, "DAT_SUCCESS");
	KUNIT_EXPECT_STREQ(test, minor, "");
	KDT_OK(test, dat_strerror(DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_CONNECTED),
				  &major, &minor));
	KUNIT_EXPECT_STREQ(test, major, "DAT_INVALID_STATE");
	KUNIT_EXPECT_STREQ(test, minor, "DAT_INVALID_STATE_EP_CONNECTED");
	KDT_OK(test, dat_strerror(DAT_ERROR(DAT_LENGTH_ERROR, DAT_NO_SUBTYPE), &major, &minor));
	KUNIT_EXPECT_STREQ(test, major, "DAT_LENGTH_ERROR");
	KUNIT_EXPECT_STREQ(test, minor, "");
	KDT_OK(test, dat_strerror(DAT_ERROR(DAT_COMM_NOT_SUPPORTED, 0), &major, NULL));
	KUNIT_EXPECT_STREQ(test, major, "DAT_COMM_NOT_SUPPORTED");
	KDT_TYPE(test, DAT_INVALID_PARAMETER, dat_strerror(DAT_SUCCESS, NULL, &minor));
	KDT_TYPE(test, DAT_INVALID_PARAMETER, dat_strerror(0x80500000, &major, &minor));
	KDT_TYPE(test, DAT_INVALID_PARAMETER,
		 dat_strerror(DAT_ERROR(DAT_INVALID_STATE, 103), &major, &minor));
}

static struct kunit_case cases[] = {
	KD_CASE(null_and_garbage, "GEN-04,SIL-02: NULL, made up and freed handles in every call"),
	KD_CASE(flipped_bits, "GEN-04,SIL-02: one wrong bit in a live handle"),
	KD_CASE(wrong_kind, "GEN-04,SIL-02: live handles of the wrong kind in every call"),
	KD_CASE(freed_handles, "GEN-05,IA-CLOSE-04,CR-ACC-04: handles of freed objects"),
	KD_CASE(context_and_type, "CTXT-01,CTXT-02,CTXT-03,SIL-43: context and type of any object"),
	KD_CASE(strings, "MISC-ERR-01,MISC-ERR-02: names of errors"),
	{}
};

struct kunit_suite kdt_handle_suite = {
	.name = "kdtest-handle",
	.init = kdt_init,
	.exit = kdt_exit,
	.test_cases = cases,
};
