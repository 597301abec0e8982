/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The common ground of the suites that work on the fake device: one IA with
 * PZs, memory of all kinds of rights, EVDs without upcall, and one EP that is
 * connected without a peer.
 */
#ifndef KDAPL_KD_TEST_H
#define KDAPL_KD_TEST_H

#include <kunit/test.h>

#include "../ia/ia_api.h"
#include "fake_ib.h"
#include "kd_case.h"

#define KD_MEM_SIZE	4096

enum kd_mem_kind {
	KD_RW,			/* all rights */
	KD_RO,			/* local read */
	KD_WO,			/* local write */
	KD_REMOTE,		/* remote rights only */
	KD_FOREIGN,		/* all rights, but in the other PZ */
	KD_NR_MEMS,
};

struct kd_mem {
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT lmr_context;
	DAT_RMR_CONTEXT rmr_context;
	u64 addr;
	u32 length;
};

/**
 * struct kd_env - what a case works with
 * @dev: the fake device
 * @ia: IA on its port
 * @async: EVD for asynchronous events
 * @pz: PZ of the EP and of most memory
 * @pz2: another one
 * @mem: registered memory, KD_MEM_SIZE bytes each
 * @buf: that memory
 * @recv: EVD for Receives
 * @req: EVD for requests
 * @conn: EVD for connection events
 * @ep: the EP under test
 * @kep: the object behind @ep, referenced
 * @qp: its QP
 */
struct kd_env {
	struct kunit *test;
	struct fake_ib *dev;
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async;
	DAT_PZ_HANDLE pz;
	DAT_PZ_HANDLE pz2;
	struct kd_mem mem[KD_NR_MEMS];
	u8 *buf;
	DAT_EVD_HANDLE recv;
	DAT_EVD_HANDLE req;
	DAT_EVD_HANDLE conn;
	DAT_EP_HANDLE ep;
	struct kdapl_ep *kep;
	struct ib_qp *qp;
};

/**
 * struct kd_upcalls - what the upcalls of an EVD brought
 * @evd: that EVD
 * @lock: everything below
 * @n: number of upcalls
 * @events: the first of them
 */
struct kd_upcalls {
	DAT_EVD_HANDLE evd;
	spinlock_t lock;	/* everything below */
	int n;
	DAT_EVENT events[32];
};

enum kd_call {
	KD_SEND,
	KD_RECV,
	KD_WRITE,
	KD_READ,
	KD_NR_CALLS,
};

extern const char * const kd_call_names[KD_NR_CALLS];

#define KD_STATES	9

/**
 * struct kd_state - a state an EP can be in
 * @letter: its letter in the requirements
 * @state: DAT_EP_STATE
 * @subtype: what DAT_INVALID_STATE says
 */
struct kd_state {
	const char *letter;
	DAT_EP_STATE state;
	DAT_RETURN_SUBTYPE subtype;
};

extern const struct kd_state kd_states[KD_STATES];

int kd_suite_init(struct kunit_suite *suite);
void kd_suite_exit(struct kunit_suite *suite);
int kd_init(struct kunit *test);
void kd_exit(struct kunit *test);
void kd_again(struct kunit *test);

struct kd_env *kd_open(struct kunit *test, const struct fake_ib_caps *caps);
void kd_attr(DAT_EP_ATTR *attr);
DAT_EP_HANDLE kd_ep_new(struct kd_env *env, const DAT_EP_ATTR *attr);
void kd_ep_take(struct kd_env *env, DAT_EP_HANDLE ep);
DAT_EP_HANDLE kd_ep_give(struct kd_env *env);
void kd_ep_gone(struct kunit *test, struct kdapl_ep *ep);
void kd_ep(struct kd_env *env, const DAT_EP_ATTR *attr);
void kd_bring_up(struct kd_env *env);
void kd_connect(struct kd_env *env);
struct kd_env *kd_connected(struct kunit *test, const DAT_EP_ATTR *attr);
void kd_set_state(struct kd_env *env, DAT_EP_STATE state);
void kd_reach(struct kd_env *env, DAT_EP_STATE state);
void kd_pause(void);
struct kdapl_ia *kd_ia(struct kd_env *env);
void kd_device_event(struct kd_env *env, enum ib_event_type type);
DAT_EP_STATE kd_state(struct kd_env *env, DAT_EP_HANDLE ep);
void kd_query(struct kd_env *env, DAT_EP_HANDLE ep, DAT_EP_PARAM *param);
void kd_reset(struct kd_env *env);
void kd_end(struct kd_env *env, int reason);
void kd_ep_free(struct kd_env *env);
DAT_IA_HANDLE kd_forget(struct kd_env *env);
DAT_RETURN kd_close_abrupt(DAT_IA_HANDLE ia);
DAT_IA_HANDLE kd_ia_more(struct kd_env *env, DAT_EVD_HANDLE *async);
struct kdapl_conn *kd_conn_of(struct kd_env *env);

DAT_RETURN kd_lmr_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, void *buf, u32 length,
			 DAT_MEM_PRIV_FLAGS priv, struct kd_mem *mem);
DAT_RETURN kd_post(DAT_EP_HANDLE ep, enum kd_call call, int num, DAT_LMR_TRIPLET *iov,
		   u64 cookie, const DAT_RMR_TRIPLET *remote, int flags);
DAT_LMR_TRIPLET kd_seg(struct kd_env *env, enum kd_mem_kind kind, u32 offset, u32 length);
DAT_RMR_TRIPLET kd_remote(u64 addr, u32 length, u32 key);
void kd_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more);
struct kd_upcalls *kd_upcalls_on(struct kd_env *env, DAT_EVD_HANDLE *evd, DAT_EVD_FLAGS flags);
int kd_upcalls_wait(struct kd_upcalls *up, int n);
u32 kd_expect_end(struct kd_env *env);
bool kd_next(DAT_EVD_HANDLE evd, DAT_EVENT *event);
void kd_next_wait(struct kd_env *env, DAT_EVD_HANDLE evd, DAT_EVENT *event);
void kd_expect_event(struct kd_env *env, DAT_EVD_HANDLE evd, u32 number, DAT_EVENT *event);
void kd_expect_dto(struct kunit *test, DAT_EVD_HANDLE evd, u64 cookie, int status);
void kd_expect_dtos(struct kunit *test, DAT_EVD_HANDLE evd, u64 first, int n, int status);
int kd_logged(const char *what);
DAT_EVD_HANDLE kd_evd_of(struct kd_env *env, enum kd_call call);
u32 kd_wq_used(struct kdapl_wq *wq);
const char *kd_word(const char *line, int n, char *out, size_t size);

static inline bool kd_is_recv(enum kd_call call)
{
	return call == KD_RECV;
}

#define KD_EXPECT_OK(test, ret)							\
	KUNIT_EXPECT_EQ(test, (u32)(ret), (u32)DAT_SUCCESS)

#define KD_ASSERT_OK(test, ret)							\
	KUNIT_ASSERT_EQ(test, (u32)(ret), (u32)DAT_SUCCESS)

#define KD_EXPECT_RET(test, ret, type, subtype)					\
	KUNIT_EXPECT_EQ(test, (u32)(ret), (u32)DAT_ERROR(type, (subtype)))

/* Refusals by what is wrong: the n-th argument, a handle (_EP, 1), the state (EP_CONNECTED). */
#define KD_BAD_ARG(test, ret, n)						\
	KD_EXPECT_RET(test, ret, DAT_INVALID_PARAMETER, DAT_INVALID_ARG##n)

#define KD_BAD_HANDLE(test, ret, what)						\
	KD_EXPECT_RET(test, ret, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE##what)

#define KD_BAD_STATE(test, ret, what)						\
	KD_EXPECT_RET(test, ret, DAT_INVALID_STATE, DAT_INVALID_STATE_##what)

/* And with a device that has gone. */
#define KD_GONE(test, ret)							\
	KD_EXPECT_RET(test, ret, DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE)

#define KD_EXPECT_TYPE(test, ret, type)						\
	KUNIT_EXPECT_EQ(test, (u32)DAT_GET_TYPE(ret), (u32)(type))

#define KD_EXPECT_STATE(env, ep, name)						\
do {										\
	struct kd_env *__env = (env);						\
										\
	KUNIT_EXPECT_EQ(__env->test, (int)kd_state(__env, ep), (int)DAT_EP_STATE_##name); \
} while (0)

/* The connection of the EP ends, with this event. */
#define KD_EXPECT_END(env, name)						\
do {										\
	struct kd_env *__env = (env);						\
										\
	KUNIT_EXPECT_EQ(__env->test, kd_expect_end(__env), (u32)DAT_CONNECTION_EVENT_##name); \
} while (0)

/* Wait for what must become true, 30 s at least. */
#define KD_WAIT(test, cond)							\
do {										\
	int __n;								\
										\
	for (__n = 0; __n < 15000 && !(cond); __n++)				\
		kd_pause();							\
	KUNIT_EXPECT_LT_MSG(test, __n, 15000, "waiting for " #cond);		\
} while (0)

#define KD_EXPECT_EMPTY(test, evd)						\
do {										\
	DAT_EVENT __event;							\
										\
	KUNIT_EXPECT_FALSE(test, kd_next(evd, &__event));			\
} while (0)

/* What the CPUs have counted, as debugfs sums it up. */
#define kd_stat(member)								\
({										\
	unsigned long _sum = 0;							\
	int _cpu;								\
										\
	for_each_possible_cpu(_cpu)						\
		_sum += per_cpu(kdapl_stats.member, _cpu);			\
	_sum;									\
})

/* A suite of its own of the cases in @list. */
#define KD_SUITE(title, list, at_init, at_exit)					\
static struct kunit_suite list##_suite = {					\
	.name = (title),							\
	.suite_init = kd_suite_init,						\
	.suite_exit = kd_suite_exit,						\
	.init = (at_init),							\
	.exit = (at_exit),							\
	.test_cases = (list),							\
};										\
										\
kunit_test_suite(list##_suite)

#endif /* KDAPL_KD_TEST_H */
