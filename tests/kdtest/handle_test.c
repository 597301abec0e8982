// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Handles of every call: NULL, made up, freed, of the wrong kind. And what takes any kind. */
#include "kdtest.h"

/* One live handle of each kind. */
struct kinds {
	DAT_HANDLE h[DAT_HANDLE_TYPE_CSP + 1];
	DAT_LMR_HANDLE freed;
	struct kdt_pair *pair;
};

enum call {
	C_IA_QUERY,
	C_IA_CLOSE,
	C_PZ_CREATE,
	C_PZ_QUERY,
	C_PZ_FREE,
	C_LMR_CREATE_IA,
	C_LMR_CREATE_PZ,
	C_LMR_QUERY,
	C_LMR_FREE,
	C_EVD_CREATE,
	C_EVD_QUERY,
	C_EVD_DEQUEUE,
	C_EVD_FREE,
	C_EP_CREATE_IA,
	C_EP_CREATE_PZ,
	C_EP_CREATE_RECV,
	C_EP_CREATE_REQUEST,
	C_EP_CREATE_CONN,
	C_EP_WITH_SRQ_IA,
	C_EP_WITH_SRQ_PZ,
	C_EP_WITH_SRQ_RECV,
	C_EP_WITH_SRQ_REQUEST,
	C_EP_WITH_SRQ_CONN,
	C_EP_WITH_SRQ_SRQ,
	C_EP_QUERY,
	C_EP_MODIFY,
	C_EP_RECV_QUERY,
	C_EP_SET_WATERMARK,
	C_EP_GET_STATUS,
	C_EP_CONNECT,
	C_EP_DISCONNECT,
	C_EP_DRAIN,
	C_EP_RESET,
	C_EP_FREE,
	C_POST_SEND,
	C_POST_RECV,
	C_POST_WRITE,
	C_POST_READ,
	C_SRQ_CREATE_IA,
	C_SRQ_CREATE_PZ,
	C_SRQ_POST_RECV,
	C_SRQ_QUERY,
	C_SRQ_RESIZE,
	C_SRQ_SET_LW,
	C_SRQ_FREE,
	C_PSP_CREATE_IA,
	C_PSP_CREATE_EVD,
	C_PSP_QUERY,
	C_PSP_FREE,
	C_CR_QUERY,
	C_CR_ACCEPT_CR,
	C_CR_ACCEPT_EP,
	C_CR_REJECT,
	C_SET_CONTEXT,
	C_GET_CONTEXT,
	C_GET_TYPE,
};

struct attempt {
	const char *name;
	DAT_HANDLE_TYPE kind;
	bool null_ok;
	DAT_RETURN subtype;
	enum call call;
};

static DAT_HANDLE out;
static DAT_COUNT param[200];		/* big enough for any query */
static u8 memory[64];
static DAT_EP_ATTR ep_attr;
static DAT_SRQ_ATTR srq_attr = { .max_recv_dtos = 4, .max_recv_iov = 1 };

#define REGION ((DAT_REGION_DESCRIPTION) { .for_va = memory })
#define IA (k->h[DAT_HANDLE_TYPE_IA])
#define CR (k->h[DAT_HANDLE_TYPE_CR])
#define SRQ (k->h[DAT_HANDLE_TYPE_SRQ])
#define ADDR ((DAT_IA_ADDRESS_PTR)&k->pair->s.ia->addr)

static DAT_RETURN call(enum call c, struct kinds *k, DAT_HANDLE h)
{
	switch (c) {
	case C_IA_QUERY:
		return dat_ia_query(h, NULL, 0, NULL, 0, NULL);
	case C_IA_CLOSE:
		return dat_ia_close(h, DAT_CLOSE_GRACEFUL_FLAG);
	case C_PZ_CREATE:
		return dat_pz_create(h, &out);
	case C_PZ_QUERY:
		return dat_pz_query(h, DAT_PZ_FIELD_ALL, (void *)param);
	case C_PZ_FREE:
		return dat_pz_free(h);
	case C_LMR_CREATE_IA:
		return dat_lmr_kcreate(h, 0, REGION, 64, k->h[DAT_HANDLE_TYPE_PZ], 1, 0, 0, &out,
			NULL, NULL, NULL, NULL);
	case C_LMR_CREATE_PZ:
		return dat_lmr_kcreate(IA, 0, REGION, 64, h, 1, 0, 0, &out, NULL, NULL, NULL, NULL);
	case C_LMR_QUERY:
		return dat_lmr_query(h, DAT_LMR_FIELD_ALL, (void *)param);
	case C_LMR_FREE:
		return dat_lmr_free(h);
	case C_EVD_CREATE:
		return dat_evd_kcreate(h, 8, DAT_UPCALL_DISABLE, NULL, DAT_EVD_DTO_FLAG, &out);
	case C_EVD_QUERY:
		return dat_evd_query(h, DAT_EVD_FIELD_ALL, (void *)param);
	case C_EVD_DEQUEUE:
		return dat_evd_dequeue(h, (void *)param);
	case C_EVD_FREE:
		return dat_evd_free(h);
	case C_EP_CREATE_IA:
		return dat_ep_create(h, NULL, NULL, NULL, NULL, NULL, &out);
	case C_EP_CREATE_PZ:
		return dat_ep_create(IA, h, NULL, NULL, NULL, NULL, &out);
	case C_EP_CREATE_RECV:
		return dat_ep_create(IA, NULL, h, NULL, NULL, NULL, &out);
	case C_EP_CREATE_REQUEST:
		return dat_ep_create(IA, NULL, NULL, h, NULL, NULL, &out);
	case C_EP_CREATE_CONN:
		return dat_ep_create(IA, NULL, NULL, NULL, h, NULL, &out);
	case C_EP_WITH_SRQ_IA:
		return dat_ep_create_with_srq(h, NULL, NULL, NULL, NULL, SRQ, &ep_attr, &out);
	case C_EP_WITH_SRQ_PZ:
		return dat_ep_create_with_srq(IA, h, NULL, NULL, NULL, SRQ, &ep_attr, &out);
	case C_EP_WITH_SRQ_RECV:
		return dat_ep_create_with_srq(IA, NULL, h, NULL, NULL, SRQ, &ep_attr, &out);
	case C_EP_WITH_SRQ_REQUEST:
		return dat_ep_create_with_srq(IA, NULL, NULL, h, NULL, SRQ, &ep_attr, &out);
	case C_EP_WITH_SRQ_CONN:
		return dat_ep_create_with_srq(IA, NULL, NULL, NULL, h, SRQ, &ep_attr, &out);
	case C_EP_WITH_SRQ_SRQ:
		return dat_ep_create_with_srq(IA, NULL, NULL, NULL, NULL, h, &ep_attr, &out);
	case C_EP_QUERY:
		return dat_ep_query(h, DAT_EP_FIELD_ALL, (void *)param);
	case C_EP_MODIFY:
		return dat_ep_modify(h, DAT_EP_FIELD_EP_ATTR_SERVICE_TYPE, (void *)param);
	case C_EP_RECV_QUERY:
		return dat_ep_recv_query(h, param, param);
	case C_EP_SET_WATERMARK:
		return dat_ep_set_watermark(h, DAT_WATERMARK_INFINITE, DAT_WATERMARK_INFINITE);
	case C_EP_GET_STATUS:
		return dat_ep_get_status(h, NULL, NULL, NULL);
	case C_EP_CONNECT:
		return dat_ep_connect(h, ADDR, 5000, 1000, 0, NULL, 0, 0);
	case C_EP_DISCONNECT:
		return dat_ep_disconnect(h, DAT_CLOSE_ABRUPT_FLAG);
	case C_EP_DRAIN:
		return kdat_ep_drain(h);
	case C_EP_RESET:
		return dat_ep_reset(h);
	case C_EP_FREE:
		return dat_ep_free(h);
	case C_POST_SEND:
		return dat_ep_post_send(h, 0, NULL, kdt_cookie(0), 0);
	case C_POST_RECV:
		return dat_ep_post_recv(h, 0, NULL, kdt_cookie(0), 0);
	case C_POST_WRITE:
		return dat_ep_post_rdma_write(h, 0, NULL, kdt_cookie(0), (void *)param, 0);
	case C_POST_READ:
		return dat_ep_post_rdma_read(h, 0, NULL, kdt_cookie(0), (void *)param, 0);
	case C_SRQ_CREATE_IA:
		return dat_srq_create(h, k->h[DAT_HANDLE_TYPE_PZ], &srq_attr, &out);
	case C_SRQ_CREATE_PZ:
		return dat_srq_create(IA, h, &srq_attr, &out);
	case C_SRQ_POST_RECV:
		return dat_srq_post_recv(h, 0, NULL, kdt_cookie(0));
	case C_SRQ_QUERY:
		return dat_srq_query(h, DAT_SRQ_FIELD_ALL, (void *)param);
	case C_SRQ_RESIZE:
		return dat_srq_resize(h, 4);
	case C_SRQ_SET_LW:
		return dat_srq_set_lw(h, 0);
	case C_SRQ_FREE:
		return dat_srq_free(h);
	case C_PSP_CREATE_IA:
		return dat_psp_create(h, 5001, k->pair->cr->h, DAT_PSP_CONSUMER_FLAG, &out);
	case C_PSP_CREATE_EVD:
		return dat_psp_create(k->pair->s.ia->h, 5001, h, DAT_PSP_CONSUMER_FLAG, &out);
	case C_PSP_QUERY:
		return dat_psp_query(h, DAT_PSP_FIELD_ALL, (void *)param);
	case C_PSP_FREE:
		return dat_psp_free(h);
	case C_CR_QUERY:
		return dat_cr_query(h, DAT_CR_FIELD_ALL, (void *)param);
	case C_CR_ACCEPT_CR:
		return dat_cr_accept(h, k->pair->s.h, 0, NULL);
	case C_CR_ACCEPT_EP:
		return dat_cr_accept(CR, h, 0, NULL);
	case C_CR_REJECT:
		return dat_cr_reject(h, 0, NULL);
	case C_SET_CONTEXT:
		return dat_set_consumer_context(h, kdt_cookie(1));
	case C_GET_CONTEXT:
		return dat_get_consumer_context(h, (void *)param);
	case C_GET_TYPE:
		return dat_get_handle_type(h, (void *)param);
	}
	return DAT_SUCCESS;
}

/* Kind CSP stands for "any kind": no live handle is wrong there. */
#define ANY DAT_HANDLE_TYPE_CSP
#define ROW(call, kind, null_ok, subtype) { #call, kind, null_ok, subtype, call }
static const struct attempt attempts[] = {
	ROW(C_IA_QUERY, DAT_HANDLE_TYPE_IA, false, DAT_INVALID_HANDLE_IA),
	ROW(C_IA_CLOSE, DAT_HANDLE_TYPE_IA, false, DAT_INVALID_HANDLE_IA),
	ROW(C_PZ_CREATE, DAT_HANDLE_TYPE_IA, false, DAT_INVALID_HANDLE_IA),
	ROW(C_PZ_QUERY, DAT_HANDLE_TYPE_PZ, false, DAT_INVALID_HANDLE_PZ),
	ROW(C_PZ_FREE, DAT_HANDLE_TYPE_PZ, false, DAT_INVALID_HANDLE_PZ),
	ROW(C_LMR_CREATE_IA, DAT_HANDLE_TYPE_IA, false, DAT_INVALID_HANDLE_IA),
	ROW(C_LMR_CREATE_PZ, DAT_HANDLE_TYPE_PZ, false, DAT_INVALID_HANDLE_PZ),
	ROW(C_LMR_QUERY, DAT_HANDLE_TYPE_LMR, false, DAT_INVALID_HANDLE_LMR),
	ROW(C_LMR_FREE, DAT_HANDLE_TYPE_LMR, false, DAT_INVALID_HANDLE_LMR),
	ROW(C_EVD_CREATE, DAT_HANDLE_TYPE_IA, false, DAT_INVALID_HANDLE_IA),
	ROW(C_EVD_QUERY, DAT_HANDLE_TYPE_EVD, false, DAT_INVALID_HANDLE1),
	ROW(C_EVD_DEQUEUE, DAT_HANDLE_TYPE_EVD, false, DAT_INVALID_HANDLE1),
	ROW(C_EVD_FREE, DAT_HANDLE_TYPE_EVD, false, DAT_INVALID_HANDLE1),
	ROW(C_EP_CREATE_IA, DAT_HANDLE_TYPE_IA, false, DAT_INVALID_HANDLE_IA),
	ROW(C_EP_CREATE_PZ, DAT_HANDLE_TYPE_PZ, true, DAT_INVALID_HANDLE_PZ),
	ROW(C_EP_CREATE_RECV, DAT_HANDLE_TYPE_EVD, true, DAT_INVALID_HANDLE_EVD_RECV),
	ROW(C_EP_CREATE_REQUEST, DAT_HANDLE_TYPE_EVD, true, DAT_INVALID_HANDLE_EVD_REQUEST),
	ROW(C_EP_CREATE_CONN, DAT_HANDLE_TYPE_EVD, true, DAT_INVALID_HANDLE_EVD_CONN),
	ROW(C_EP_WITH_SRQ_IA, DAT_HANDLE_TYPE_IA, false, DAT_INVALID_HANDLE_IA),
	ROW(C_EP_WITH_SRQ_PZ, DAT_HANDLE_TYPE_PZ, true, DAT_INVALID_HANDLE_PZ),
	ROW(C_EP_WITH_SRQ_RECV, DAT_HANDLE_TYPE_EVD, true, DAT_INVALID_HANDLE_EVD_RECV),
	ROW(C_EP_WITH_SRQ_REQUEST, DAT_HANDLE_TYPE_EVD, true, DAT_INVALID_HANDLE_EVD_REQUEST),
	ROW(C_EP_WITH_SRQ_CONN, DAT_HANDLE_TYPE_EVD, true, DAT_INVALID_HANDLE_EVD_CONN),
	ROW(C_EP_WITH_SRQ_SRQ, DAT_HANDLE_TYPE_SRQ, false, DAT_INVALID_HANDLE_SRQ),
	ROW(C_EP_QUERY, DAT_HANDLE_TYPE_EP, false, DAT_INVALID_HANDLE_EP),
	ROW(C_EP_MODIFY, DAT_HANDLE_TYPE_EP, false, DAT_INVALID_HANDLE_EP),
	ROW(C_EP_RECV_QUERY, DAT_HANDLE_TYPE_EP, false, DAT_INVALID_HANDLE_EP),
	ROW(C_EP_SET_WATERMARK, DAT_HANDLE_TYPE_EP, false, DAT_INVALID_HANDLE_EP),
	ROW(C_EP_GET_STATUS, DAT_HANDLE_TYPE_EP, false, DAT_INVALID_HANDLE_EP),
	ROW(C_EP_CONNECT, DAT_HANDLE_TYPE_EP, false, DAT_INVALID_HANDLE_EP),
	ROW(C_EP_DISCONNECT, DAT_HANDLE_TYPE_EP, false, DAT_INVALID_HANDLE_EP),
	ROW(C_EP_DRAIN, DAT_HANDLE_TYPE_EP, false, DAT_INVALID_HANDLE_EP),
	ROW(C_EP_RESET, DAT_HANDLE_TYPE_EP, false, DAT_INVALID_HANDLE_EP),
	ROW(C_EP_FREE, DAT_HANDLE_TYPE_EP, false, DAT_INVALID_HANDLE_EP),
	ROW(C_POST_SEND, DAT_HANDLE_TYPE_EP, false, DAT_INVALID_HANDLE_EP),
	ROW(C_POST_RECV, DAT_HANDLE_TYPE_EP, false, DAT_INVALID_HANDLE_EP),
	ROW(C_POST_WRITE, DAT_HANDLE_TYPE_EP, false, DAT_INVALID_HANDLE_EP),
	ROW(C_POST_READ, DAT_HANDLE_TYPE_EP, false, DAT_INVALID_HANDLE_EP),
	ROW(C_SRQ_CREATE_IA, DAT_HANDLE_TYPE_IA, false, DAT_INVALID_HANDLE_IA),
	ROW(C_SRQ_CREATE_PZ, DAT_HANDLE_TYPE_PZ, false, DAT_INVALID_HANDLE_PZ),
	ROW(C_SRQ_POST_RECV, DAT_HANDLE_TYPE_SRQ, false, DAT_INVALID_HANDLE_SRQ),
	ROW(C_SRQ_QUERY, DAT_HANDLE_TYPE_SRQ, false, DAT_INVALID_HANDLE_SRQ),
	ROW(C_SRQ_RESIZE, DAT_HANDLE_TYPE_SRQ, false, DAT_INVALID_HANDLE_SRQ),
	ROW(C_SRQ_SET_LW, DAT_HANDLE_TYPE_SRQ, false, DAT_INVALID_HANDLE_SRQ),
	ROW(C_SRQ_FREE, DAT_HANDLE_TYPE_SRQ, false, DAT_INVALID_HANDLE_SRQ),
	ROW(C_PSP_CREATE_IA, DAT_HANDLE_TYPE_IA, false, DAT_INVALID_HANDLE_IA),
	ROW(C_PSP_CREATE_EVD, DAT_HANDLE_TYPE_EVD, false, DAT_INVALID_HANDLE_EVD_CR),
	ROW(C_PSP_QUERY, DAT_HANDLE_TYPE_PSP, false, DAT_INVALID_HANDLE_PSP),
	ROW(C_PSP_FREE, DAT_HANDLE_TYPE_PSP, false, DAT_INVALID_HANDLE_PSP),
	ROW(C_CR_QUERY, DAT_HANDLE_TYPE_CR, false, DAT_INVALID_HANDLE_CR),
	ROW(C_CR_ACCEPT_CR, DAT_HANDLE_TYPE_CR, false, DAT_INVALID_HANDLE_CR),
	ROW(C_CR_ACCEPT_EP, DAT_HANDLE_TYPE_EP, false, DAT_INVALID_HANDLE_EP),
	ROW(C_CR_REJECT, DAT_HANDLE_TYPE_CR, false, DAT_INVALID_HANDLE_CR),
	ROW(C_SET_CONTEXT, ANY, false, DAT_INVALID_HANDLE1),
	ROW(C_GET_CONTEXT, ANY, false, DAT_INVALID_HANDLE1),
	ROW(C_GET_TYPE, ANY, false, DAT_INVALID_HANDLE1),
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
	kdt_attr(env, &ep_attr);
	KDT_OK(test, dat_srq_create(env->a.h, env->a.pz, &srq_attr, &SRQ));
	k->freed = kdt_buf_new(test, &env->a, 64)->lmr;
	KDT_OK(test, dat_lmr_free(k->freed));
	return k;
}

static void refused(struct kunit *test, struct kinds *k, const struct attempt *a, DAT_HANDLE h,
		    const char *what)
{
	DAT_RETURN ret = call(a->call, k, h);

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
			if (j > DAT_HANDLE_TYPE_CSP && attempts[i].call != C_IA_CLOSE &&
			    attempts[i].call != C_PZ_FREE && attempts[i].call != C_LMR_FREE &&
			    attempts[i].call != C_EP_FREE && attempts[i].call != C_PSP_FREE &&
			    attempts[i].call != C_CR_REJECT && attempts[i].call != C_SRQ_FREE)
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
	KDT_OK(test, dat_srq_create(env->a.h, env->a.pz, &srq_attr, &dead[DAT_HANDLE_TYPE_SRQ]));
	KDT_OK(test, dat_srq_free(dead[DAT_HANDLE_TYPE_SRQ]));
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
