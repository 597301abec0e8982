// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Event Dispatchers: creation, policies, contexts, dequeue. */
#include <linux/completion.h>

#include "kdtest.h"

static void nothing(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
}

static void create_errors(struct kunit *test)
{
	static const struct {
		int arg, qlen, policy, func, flags;
	} bad[] = {
		{ 2, 0, DAT_UPCALL_DISABLE, 1, DAT_EVD_DTO_FLAG },
		{ 2, -1, DAT_UPCALL_DISABLE, 1, DAT_EVD_DTO_FLAG },
		{ 3, 8, DAT_UPCALL_TEARDOWN, 1, DAT_EVD_DTO_FLAG },
		{ 3, 8, 3, 1, DAT_EVD_DTO_FLAG },
		{ 3, 8, 50, 1, DAT_EVD_DTO_FLAG },
		{ 3, 8, 99, 1, DAT_EVD_DTO_FLAG },
		{ 3, 8, 101, 1, DAT_EVD_DTO_FLAG },
		{ 3, 8, -2, 1, DAT_EVD_DTO_FLAG },
		{ 4, 8, DAT_UPCALL_SINGLE_INSTANCE, 0, DAT_EVD_DTO_FLAG },
		{ 5, 8, DAT_UPCALL_DISABLE, 1, 0 },
		{ 5, 8, DAT_UPCALL_DISABLE, 1, 0x002 },
		{ 5, 8, DAT_UPCALL_DISABLE, 1, DAT_EVD_DTO_FLAG | 0x200 },
	};
	struct kdt_ia *a = &kdt_env(test)->a;
	DAT_EVD_HANDLE evd;
	int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		DAT_UPCALL_OBJECT upcall = { .upcall_func = bad[i].func ? nothing : NULL };
		DAT_RETURN want = DAT_ERROR(DAT_INVALID_PARAMETER,
					    (DAT_INVALID_ARG1 + bad[i].arg - 1));
		DAT_RETURN ret = dat_evd_kcreate(a->h, bad[i].qlen, bad[i].policy, &upcall,
						 bad[i].flags, &evd);

		KUNIT_EXPECT_TRUE_MSG(test, ret == want, "row %d: 0x%08x, not 0x%08x", i, ret,
				      want);
	}
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG4,
		    dat_evd_kcreate(a->h, 8, DAT_UPCALL_SINGLE_INSTANCE, NULL, DAT_EVD_DTO_FLAG,
				    &evd));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG6,
		    dat_evd_kcreate(a->h, 8, DAT_UPCALL_DISABLE, NULL, DAT_EVD_DTO_FLAG, NULL));
	if (a->attr.max_evd_qlen < INT_MAX)
		KDT_REFUSED(test, DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEVD,
			    dat_evd_kcreate(a->h, a->attr.max_evd_qlen + 1, DAT_UPCALL_DISABLE,
					    NULL, DAT_EVD_DTO_FLAG, &evd));
	/* What is not offered is said to be so. */
	if (a->prov.upcall_policy < DAT_UPCALL_MANY) {
		DAT_UPCALL_OBJECT upcall = { .upcall_func = nothing };

		KDT_REFUSED(test, DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE,
			    dat_evd_kcreate(a->h, 8, DAT_UPCALL_MANY, &upcall, DAT_EVD_DTO_FLAG,
					    &evd));
	}
}

static void create_query(struct kunit *test)
{
	static const int flags[] = {
		DAT_EVD_SOFTWARE_FLAG, DAT_EVD_CR_FLAG, DAT_EVD_DTO_FLAG, DAT_EVD_CONNECTION_FLAG,
		DAT_EVD_RMR_BIND_FLAG, DAT_EVD_ASYNC_FLAG, DAT_EVD_DEFAULT_FLAG,
		DAT_EVD_DEFAULT_FLAG | DAT_EVD_SOFTWARE_FLAG,
		DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG,
		DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG,
	};
	struct kdt_ia *a = &kdt_env(test)->a;
	DAT_EVD_PARAM param;
	DAT_EVD_HANDLE evd;
	DAT_EVENT event;
	int i;

	for (i = 0; i < ARRAY_SIZE(flags); i++) {
		DAT_UPCALL_OBJECT upcall = { .upcall_func = nothing, .instance_data = &param };

		KDT_OK(test, dat_evd_kcreate(a->h, 7 + i, DAT_UPCALL_SINGLE_INSTANCE, &upcall,
					     flags[i], &evd));
		upcall = DAT_UPCALL_NULL;
		KDT_OK(test, dat_evd_query(evd, DAT_EVD_FIELD_ALL, &param));
		KUNIT_EXPECT_PTR_EQ(test, param.ia_handle, a->h);
		KUNIT_EXPECT_GE(test, param.evd_qlen, 7 + i);
		KUNIT_EXPECT_EQ(test, (int)param.upcall_policy, DAT_UPCALL_SINGLE_INSTANCE);
		KUNIT_EXPECT_TRUE(test, param.upcall.upcall_func == nothing);
		KUNIT_EXPECT_PTR_EQ(test, param.upcall.instance_data, (void *)&param);
		KUNIT_EXPECT_EQ(test, (int)param.evd_flags, flags[i]);
		KDT_REFUSED(test, DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE, dat_evd_dequeue(evd, &event));
		KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
			    dat_evd_dequeue(evd, NULL));
		KDT_OK(test, dat_evd_query(evd, 0, NULL));
		KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
			    dat_evd_query(evd, 0x20, &param));
		KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
			    dat_evd_query(evd, DAT_EVD_FIELD_ALL, NULL));
		KDT_OK(test, dat_evd_free(evd));
		KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1, dat_evd_free(evd));
	}
}

static void free_in_use(struct kunit *test)
{
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	struct kdt_evd *evd[] = { pair->c.recv, pair->c.req, pair->c.conn, pair->cr };
	int i;

	for (i = 0; i < ARRAY_SIZE(evd); i++)
		KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EVD_IN_USE,
			    dat_evd_free(evd[i]->h));
	kdt_pair_connect(test, pair);
	kdt_pair_down(test, pair);
	KDT_OK(test, dat_ep_free(pair->c.h));
	KDT_OK(test, dat_psp_free(pair->psp));
	for (i = 0; i < ARRAY_SIZE(evd); i++)
		KDT_OK(test, dat_evd_free(evd[i]->h));
}

static bool free_me(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	*(DAT_RETURN *)evd->priv = dat_evd_free(evd->h);
	return false;
}

static void free_in_upcall(struct kunit *test)
{
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	DAT_RETURN ret = DAT_SUCCESS;

	pair->c.conn->priv = &ret;
	pair->c.conn->hook = free_me;
	kdt_pair_connect(test, pair);
	KUNIT_EXPECT_EQ(test, DAT_GET_TYPE(ret), (u32)DAT_INVALID_STATE);
	pair->c.conn->hook = NULL;
	kdt_pair_down(test, pair);
}

/* A pair whose server has this recv EVD. */
static struct kdt_pair *pair_with_recv_evd(struct kunit *test, struct kdt_evd *evd)
{
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	struct kdt_env *env = kdt_env(test);
	DAT_EP_ATTR attr;

	kdt_attr(env, &attr);
	KDT_OK(test, dat_ep_free(pair->s.h));
	pair->s.recv = evd;
	KDT_OK(test, dat_ep_create(env->b.h, env->b.pz, evd->h, pair->s.req->h, pair->s.conn->h,
				   &attr, &pair->s.h));
	kdt_pair_connect(test, pair);
	return pair;
}

static void disable_and_dequeue(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_evd *evd = kdt_evd_policy(test, &env->b, DAT_EVD_DTO_FLAG, 1,
					     DAT_UPCALL_DISABLE);
	struct kdt_pair *pair = pair_with_recv_evd(test, evd);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, KDT_DTOS);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, KDT_DTOS);
	DAT_EVENT event;
	int i;

	/* Far more than the one entry asked for: completions are never lost. */
	for (i = 0; i < KDT_DTOS; i++)
		KDT_OK(test, kdt_recv(&pair->s, to, i, 1, 1000 + i));
	for (i = 0; i < KDT_DTOS; i++)
		KDT_OK(test, kdt_send(&pair->c, from, i, 1, i, 0));
	for (i = 0; i < KDT_DTOS; i++)
		kdt_dto(test, pair->c.req, &pair->c, i, DAT_DTO_SEND, DAT_DTO_SUCCESS, 1);
	for (i = 0; i < KDT_DTOS; i++) {
		KUNIT_ASSERT_TRUE(test, kdt_dequeue(evd->h, &event));
		KUNIT_EXPECT_EQ(test, (int)event.event_number, DAT_DTO_COMPLETION_EVENT);
		KUNIT_EXPECT_PTR_EQ(test, event.evd_handle, evd->h);
		KUNIT_EXPECT_EQ(test, event.event_data.dto_completion_event_data.user_cookie.as_64,
				1000 + i);
	}
	KDT_REFUSED(test, DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE, dat_evd_dequeue(evd->h, &event));
	KUNIT_EXPECT_EQ(test, evd->calls, 0);
}

static void contexts(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, 64);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, 64);
	int i;

	for (i = 0; i < 20; i++) {
		KDT_OK(test, kdt_recv(&pair->s, to, 0, 64, i));
		KDT_OK(test, kdt_send(&pair->c, from, 0, 64, i, 0));
		kdt_dto(test, pair->c.req, &pair->c, i, DAT_DTO_SEND, DAT_DTO_SUCCESS, 64);
		kdt_dto(test, pair->s.recv, &pair->s, i, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 64);
	}
	kdt_pair_down(test, pair);
	KUNIT_EXPECT_TRUE(test, pair->s.recv->softirq);
	KUNIT_EXPECT_FALSE(test, pair->s.recv->process);
	KUNIT_EXPECT_TRUE(test, pair->c.req->softirq);
	KUNIT_EXPECT_FALSE(test, pair->c.req->process);
	KUNIT_EXPECT_TRUE(test, pair->c.conn->process);
	KUNIT_EXPECT_FALSE(test, pair->c.conn->softirq);
	KUNIT_EXPECT_TRUE(test, pair->cr->process);
	KUNIT_EXPECT_FALSE(test, pair->cr->softirq);
}

/* All streams of four pairs' servers on one EVD: one upcall at a time, order kept. */
static void single_instance(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_evd *evd = kdt_evd_policy(test, &env->b, DAT_EVD_DTO_FLAG, 256,
					     DAT_UPCALL_SINGLE_INSTANCE);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, 64);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, 64);
	u64 next[4] = {}, cookie;
	struct kdt_pair *pair[4];
	int i, j;

	for (i = 0; i < 4; i++)
		pair[i] = pair_with_recv_evd(test, evd);
	for (j = 0; j < 50; j++) {
		for (i = 0; i < 4; i++)
			KDT_OK(test, kdt_recv(&pair[i]->s, to, 0, 64, i << 16 | j));
		for (i = 0; i < 4; i++)
			KDT_OK(test, kdt_send(&pair[i]->c, from, 0, 64, j, 0));
	}
	for (j = 0; j < 4 * 50; j++) {
		KUNIT_EXPECT_EQ(test, (int)kdt_any_dto(test, evd, &cookie), DAT_DTO_SUCCESS);
		i = cookie >> 16;
		KUNIT_ASSERT_LT(test, i, 4);
		KUNIT_EXPECT_EQ(test, cookie & 0xffff, next[i]++);
	}
	KUNIT_EXPECT_EQ(test, evd->max_running, 1);
	for (i = 0; i < 4; i++) {
		for (j = 0; j < 50; j++)
			kdt_dto(test, pair[i]->c.req, &pair[i]->c, j, DAT_DTO_SEND,
				DAT_DTO_SUCCESS, 64);
		KUNIT_EXPECT_EQ(test, pair[i]->c.req->max_running, 1);
	}
}

struct taker {
	u64 next;
	unsigned int wrong_order, empty_handed, taken;
};

/* An event announced by more is there; what is taken here comes nowhere else. */
static bool take_more(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct taker *t = evd->priv;
	DAT_EVENT next;

	if (event->event_data.dto_completion_event_data.user_cookie.as_64 != t->next++)
		t->wrong_order++;
	if (!more)
		return false;
	if (dat_evd_dequeue(evd->h, &next) != DAT_SUCCESS) {
		t->empty_handed++;
		return false;
	}
	t->taken++;
	if (next.event_data.dto_completion_event_data.user_cookie.as_64 != t->next++)
		t->wrong_order++;
	return false;
}

static void dequeue_in_upcall(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, 64);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, 64);
	struct taker *t = kunit_kzalloc(test, sizeof(*t), GFP_KERNEL);
	int i, j;

	KUNIT_ASSERT_NOT_NULL(test, t);
	pair->s.recv->priv = t;
	pair->s.recv->hook = take_more;
	for (j = 0; j < 4; j++) {
		for (i = 0; i < KDT_DTOS; i++)
			KDT_OK(test, kdt_recv(&pair->s, to, 0, 64, j * KDT_DTOS + i));
		for (i = 0; i < KDT_DTOS; i++)
			KDT_OK(test, kdt_send(&pair->c, from, 0, 64, i, 0));
		for (i = 0; i < KDT_DTOS; i++)
			kdt_dto(test, pair->c.req, &pair->c, i, DAT_DTO_SEND, DAT_DTO_SUCCESS, 64);
		/* Each event once: as an upcall, or taken by one. */
		KUNIT_ASSERT_TRUE(test, wait_event_timeout(pair->s.recv->wait,
							   READ_ONCE(t->next) ==
							   (j + 1) * KDT_DTOS, KDT_WAIT));
	}
	pair->s.recv->hook = NULL;
	KUNIT_EXPECT_EQ(test, t->wrong_order, 0);
	KUNIT_EXPECT_EQ(test, t->empty_handed, 0);
	KUNIT_EXPECT_EQ(test, kdt_queued(pair->s.recv) + t->taken, 4 * KDT_DTOS);
}

/* All streams of an endpoint on one EVD: the order between them. */
static void one_evd_for_all(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_evd *evd = kdt_evd_policy(test, &env->b,
					     DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG |
					     DAT_EVD_CR_FLAG, 64, DAT_UPCALL_SINGLE_INSTANCE);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, 64);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, 64);
	DAT_CONN_QUAL port = kdt_new_port();
	struct kdt_ep s = { .ia = &env->b, .recv = evd, .req = evd, .conn = evd };
	struct kdt_ep c;
	DAT_EP_ATTR attr;
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;
	int i;

	kdt_attr(env, &attr);
	kdt_ep_new(test, &c, &env->a, NULL);
	KDT_OK(test, dat_ep_create(env->b.h, env->b.pz, evd->h, evd->h, evd->h, &attr, &s.h));
	KDT_OK(test, dat_psp_create(env->b.h, port, evd->h, DAT_PSP_CONSUMER_FLAG, &psp));
	for (i = 0; i < 8; i++)
		KDT_OK(test, kdt_recv(&s, to, 0, 64, i));
	KDT_OK(test, kdt_connect(&c, &env->b, port));
	KUNIT_ASSERT_TRUE(test, kdt_get(evd, &event));
	KUNIT_ASSERT_EQ(test, (int)event.event_number, DAT_CONNECTION_REQUEST_EVENT);
	KDT_OK(test, dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, s.h, 0, NULL));
	kdt_conn(test, &c, DAT_CONNECTION_EVENT_ESTABLISHED);
	for (i = 0; i < 4; i++)
		KDT_OK(test, kdt_send(&c, from, 0, 64, i, 0));
	for (i = 0; i < 4; i++)
		kdt_dto(test, c.req, &c, i, DAT_DTO_SEND, DAT_DTO_SUCCESS, 64);
	KDT_OK(test, dat_ep_disconnect(c.h, DAT_CLOSE_GRACEFUL_FLAG));

	/* ESTABLISHED, what arrived, only then the end. */
	kdt_conn(test, &s, DAT_CONNECTION_EVENT_ESTABLISHED);
	for (i = 0; i < 4; i++)
		kdt_dto(test, evd, &s, i, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 64);
	for (i = 0; i < 5; i++) {
		KUNIT_ASSERT_TRUE(test, kdt_get(evd, &event));
		if (event.event_number == DAT_DTO_COMPLETION_EVENT)
			KUNIT_EXPECT_EQ(test,
					(int)event.event_data.dto_completion_event_data.status,
					DAT_DTO_ERR_FLUSHED);
		else
			KUNIT_EXPECT_EQ(test, (int)event.event_number,
					DAT_CONNECTION_EVENT_DISCONNECTED);
	}
	/* Fed by more than completions: upcalls may sleep. */
	KUNIT_EXPECT_TRUE(test, evd->process);
	KUNIT_EXPECT_FALSE(test, evd->softirq);
	KDT_OK(test, dat_ep_free(s.h));
	KDT_OK(test, dat_psp_free(psp));
	KDT_OK(test, dat_evd_free(evd->h));
	KUNIT_EXPECT_EQ(test, kdt_queued(evd), 0);
}

static struct kunit_case cases[] = {
	KD_CASE(create_errors, "EVD-CR-01,EVD-CR-02,EVD-CR-04,EVD-CR-06,EVD-UP-10: refusals"),
	KD_CASE(create_query, "EVD-CR-03,EVD-CR-05,EVD-QRY-01,EVD-DQ-01,EVD-DQ-05: any streams"),
	KD_CASE(free_in_use, "EVD-FREE-01,EP-CREATE-17,GEN-11: not freed while it is fed"),
	KD_CASE(free_in_upcall, "EVD-FREE-03: not freed by its own upcall"),
	KD_CASE(disable_and_dequeue, "EVD-UP-05,EVD-DQ-01,EVD-DQ-02,STAT-05: DISABLE, dequeue"),
	KD_CASE(contexts, "CTX-04,SIL-06: softirq for completions, process for the others"),
	KD_CASE(single_instance, "EVD-UP-06,EVD-DQ-04,FLUSH-10: one upcall at a time, in order"),
	KD_CASE(dequeue_in_upcall, "EVD-UP-01,EVD-UP-12,EVD-DQ-03: more_events, dequeue in upcall"),
	KD_CASE(one_evd_for_all, "FLUSH-06,FLUSH-07,EVD-CR-07: order of streams on one EVD"),
	{}
};

struct kunit_suite kdt_evd_suite = {
	.name = "kdtest-evd",
	.init = kdt_init,
	.exit = kdt_exit,
	.test_cases = cases,
};
