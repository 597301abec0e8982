// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The same endpoints connected again and again, in all ways at once. */
#include <linux/slab.h>

#include "kdtest_conn.h"

/* How a round begins and ends, drawn from its number. */
static void rounds(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, 128);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, 128);
	struct kdt_ep *one = &pair->c, *two = &pair->s;
	DAT_CONN_QUAL back = kdt_new_port();
	struct kdt_evd *cr = kdt_evd_new(test, &env->a, DAT_EVD_CR_FLAG);
	struct kdt_ep *caller, *called;
	const DAT_EP_HANDLE always[] = { one->h, two->h };
	DAT_CR_HANDLE request;
	DAT_PSP_HANDLE psp;
	DAT_EVENT event;
	unsigned int i, up = 0;
	bool reject;
	u8 words[8];

	KDT_OK(test, dat_psp_create(env->a.h, back, cr->h, DAT_PSP_CONSUMER_FLAG, &psp));
	for (i = 0; i < kdt_rounds; i++) {
		/* either end calls */
		caller = i % 5 == 4 ? two : one;
		called = i % 5 == 4 ? one : two;
		reject = i % 7 == 6;
		kdt_fill(words, sizeof(words), i);
		KDT_OK(test, kdt_recv(caller, caller == one ? from : to, 64, 64, 1));
		if (!reject)	/* it would wait until the next time */
			KDT_OK(test, kdt_recv(called, called == one ? from : to, 64, 64, 2));
		KDT_OK(test, dat_ep_connect(caller->h, (DAT_IA_ADDRESS_PTR)&called->ia->addr,
					    caller == one ? pair->port : back, 60 * USEC_PER_SEC,
					    sizeof(words), words, 0, 0));
		request = kdt_arrival(test, caller == one ? pair->cr : cr).cr_handle;
		if (reject) {
			KDT_OK(test, dat_cr_reject(request, sizeof(words), words));
			kdt_conn(test, caller, DAT_CONNECTION_EVENT_PEER_REJECTED);
			kdt_dto(test, caller->recv, caller, 1, DAT_DTO_RECEIVE,
				DAT_DTO_ERR_FLUSHED, 0);
			KDT_OK(test, dat_ep_reset(caller->h));
			/* the other one has never been asked */
			KUNIT_EXPECT_EQ(test, (int)kdt_state(called->h), DAT_EP_STATE_UNCONNECTED);
			continue;
		}
		KDT_OK(test, dat_cr_accept(request, called->h, sizeof(words), words));
		KUNIT_ASSERT_TRUE(test, kdt_get(caller->conn, &event));
		KUNIT_ASSERT_EQ_MSG(test, (int)event.event_number,
				    DAT_CONNECTION_EVENT_ESTABLISHED, "round %u", i);
		KUNIT_EXPECT_TRUE(test, kdt_same(event.event_data.connect_event_data.private_data,
						 sizeof(words), i));
		kdt_conn(test, called, DAT_CONNECTION_EVENT_ESTABLISHED);
		up++;
		KDT_OK(test, kdt_send(caller, caller == one ? from : to, 0, 64, 3, 0));
		KDT_OK(test, kdt_send(called, called == one ? from : to, 0, 64, 4, 0));
		kdt_dto(test, caller->recv, caller, 1, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 64);
		kdt_dto(test, called->recv, called, 2, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 64);
		kdt_dto(test, caller->req, caller, 3, DAT_DTO_SEND, DAT_DTO_SUCCESS, 64);
		kdt_dto(test, called->req, called, 4, DAT_DTO_SEND, DAT_DTO_SUCCESS, 64);
		if (i % 3)
			kdt_talk(test, one, two, from, to, i);
		KDT_OK(test, kdt_recv(one, from, 64, 64, 10 + i));
		if (i % 2)
			KDT_OK(test, dat_ep_disconnect(one->h, i & 4 ? DAT_CLOSE_GRACEFUL_FLAG :
						       DAT_CLOSE_ABRUPT_FLAG));
		if (i % 2 == 0 || i % 11 == 10)
			KDT_OK(test, dat_ep_disconnect(two->h, i & 8 ? DAT_CLOSE_GRACEFUL_FLAG :
						       DAT_CLOSE_ABRUPT_FLAG));
		kdt_end(test, one);
		kdt_end(test, two);
		kdt_dto(test, one->recv, one, 10 + i, DAT_DTO_RECEIVE, DAT_DTO_ERR_FLUSHED, 0);
		KDT_OK(test, dat_ep_reset(one->h));
		KDT_OK(test, dat_ep_reset(two->h));
		KUNIT_EXPECT_EQ(test, (int)kdt_state(one->h), DAT_EP_STATE_UNCONNECTED);
	}
	kunit_info(test, "connected %u of %u times\n", up, kdt_rounds);
	KUNIT_EXPECT_EQ(test, up, kdt_rounds - kdt_rounds / 7);
	KUNIT_EXPECT_PTR_EQ(test, one->h, always[0]);
	KUNIT_EXPECT_PTR_EQ(test, two->h, always[1]);
	KUNIT_EXPECT_EQ(test, kdt_queued(pair->cr), 0);
	KUNIT_EXPECT_EQ(test, kdt_queued(cr), 0);
	kdt_ep_done(test, one);
	kdt_ep_done(test, two);
}

/* Sixteen endpoints with as many Receives as they may, on an EVD of length one. */
#define CROWD 16

static void crowd(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_evd *recv = kdt_evd_policy(test, &env->b, DAT_EVD_DTO_FLAG, 1,
					      DAT_UPCALL_SINGLE_INSTANCE);
	struct kdt_evd *req = kdt_evd_policy(test, &env->b, DAT_EVD_DTO_FLAG, 1,
					     DAT_UPCALL_DISABLE);
	struct kdt_evd *cr = kdt_evd_new(test, &env->b, DAT_EVD_CR_FLAG);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, 64);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, 64);
	struct kdt_ep *ep = kunit_kcalloc(test, CROWD, sizeof(*ep), GFP_KERNEL);
	DAT_EP_HANDLE *s = kunit_kcalloc(test, CROWD, sizeof(*s), GFP_KERNEL);
	struct kdt_evd *conn = kdt_evd_new(test, &env->b, DAT_EVD_CONNECTION_FLAG);
	int i, j, got[CROWD] = {};
	DAT_CONN_QUAL port;
	DAT_PSP_HANDLE psp;
	DAT_EP_ATTR attr;
	DAT_EVENT event;

	KUNIT_ASSERT_NOT_NULL(test, ep);
	KUNIT_ASSERT_NOT_NULL(test, s);
	kdt_attr(env, &attr);
	KDT_OK(test, dat_psp_create_any(env->b.h, &port, cr->h, DAT_PSP_CONSUMER_FLAG, &psp));
	for (i = 0; i < CROWD; i++) {
		kdt_ep_new(test, &ep[i], &env->a, NULL);
		KDT_OK(test, dat_ep_create(env->b.h, env->b.pz, recv->h, req->h, conn->h, &attr,
					   &s[i]));
		for (j = 0; j < 20; j++) {
			DAT_LMR_TRIPLET iov = kdt_seg(to, 0, 64);

			KDT_OK(test, dat_ep_post_recv(s[i], 1, &iov, kdt_cookie(i * 100 + j), 0));
		}
		KDT_OK(test, kdt_connect(&ep[i], &env->b, port));
		KDT_OK(test, dat_cr_accept(kdt_arrival(test, cr).cr_handle, s[i], 0, NULL));
		kdt_conn(test, &ep[i], DAT_CONNECTION_EVENT_ESTABLISHED);
		KUNIT_ASSERT_TRUE(test, kdt_get(conn, &event));
		KUNIT_EXPECT_EQ(test, (int)event.event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
	}
	for (j = 0; j < 20; j++)
		for (i = 0; i < CROWD; i++)
			KDT_OK(test, kdt_send(&ep[i], from, 0, 64, j,
					      DAT_COMPLETION_SUPPRESS_FLAG));
	for (i = 0; i < CROWD * 20; i++) {
		u64 cookie;

		KUNIT_ASSERT_EQ(test, (int)kdt_any_dto(test, recv, &cookie), DAT_DTO_SUCCESS);
		KUNIT_ASSERT_LT(test, cookie / 100, CROWD);
		/* each in its own order */
		KUNIT_EXPECT_EQ(test, cookie % 100, got[cookie / 100]++);
	}
	KUNIT_EXPECT_FALSE(test, dat_evd_dequeue(env->b.async, &event) == DAT_SUCCESS);
}

static struct kunit_case cases[] = {
	KD_CASE(rounds, "EP-RST-03,EP-CREATE-12,EPSM-30,EPSM-31,CONN-15: round after round"),
	KD_CASE(crowd, "EP-CREATE-11,EPSM-30: sixteen endpoints, an EVD of length one"),
	{}
};

struct kunit_suite kdt_reconn_suite = {
	.name = "kdtest-reconn",
	.init = kdt_init,
	.exit = kdt_exit,
	.test_cases = cases,
};
