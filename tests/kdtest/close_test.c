// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Closing an adapter in the middle of everything. */
#include "kdtest_conn.h"

#define PAIRS 4

struct traffic {
	struct kdt_ep *ep;
	struct kdt_buf *buf;
	atomic_t upcalls;
};

/* Keeps the ball in the air until the connection ends. */
static bool bounce(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct traffic *t = evd->priv;

	atomic_inc(&t->upcalls);
	if (event->event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS) {
		kdt_recv(t->ep, t->buf, 0, 1024, 0);
		kdt_send(t->ep, t->buf, 1024, 1024, 0, DAT_COMPLETION_SUPPRESS_FLAG);
	}
	return true;
}

static void start(struct kunit *test, struct kdt_ep *ep, struct traffic *t)
{
	int i;

	t->ep = ep;
	t->buf = kdt_buf_new(test, ep->ia, 2048);
	ep->recv->priv = t;
	ep->recv->hook = bounce;
	for (i = 0; i < 8; i++)
		KDT_OK(test, kdt_recv(ep, t->buf, 0, 1024, 0));
}

static void abrupt_with_traffic(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct traffic *t = kunit_kcalloc(test, 2 * PAIRS, sizeof(*t), GFP_KERNEL);
	struct kdt_pair *pair[PAIRS];
	int i, j, seen[PAIRS];
	DAT_EVENT event;

	KUNIT_ASSERT_NOT_NULL(test, t);
	for (i = 0; i < PAIRS; i++) {
		pair[i] = kdt_pair_new(test, NULL);
		start(test, &pair[i]->c, &t[i]);
		start(test, &pair[i]->s, &t[PAIRS + i]);
		kdt_pair_connect(test, pair[i]);
	}
	for (i = 0; i < PAIRS; i++)
		for (j = 0; j < 4; j++)
			KDT_OK(test, kdt_send(&pair[i]->c, t[i].buf, 1024, 1024, 0,
					      DAT_COMPLETION_SUPPRESS_FLAG));
	/* In full swing. */
	for (i = 0; i < 2 * PAIRS; i++)
		KUNIT_ASSERT_TRUE(test, wait_event_timeout(t[i].ep->recv->wait,
							   atomic_read(&t[i].upcalls) > 50,
							   KDT_WAIT));
	KDT_OK(test, dat_ia_close(env->a.h, DAT_CLOSE_ABRUPT_FLAG));
	/* No upcall runs or starts any more on this side. */
	for (i = 0; i < PAIRS; i++)
		seen[i] = atomic_read(&t[i].upcalls);
	for (i = 0; i < PAIRS; i++) {
		kdt_end(test, &pair[i]->s);
		KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
			    dat_ep_free(pair[i]->c.h));
	}
	for (i = 0; i < PAIRS; i++) {
		KUNIT_EXPECT_EQ(test, atomic_read(&t[i].upcalls), seen[i]);
		KUNIT_EXPECT_EQ(test, atomic_read(&pair[i]->c.recv->running), 0);
	}
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA,
		    dat_ia_close(env->a.h, DAT_CLOSE_ABRUPT_FLAG));
	env->a.h = DAT_HANDLE_NULL;
	/* The other side has lost its connections and nothing else. */
	for (i = 0; i < PAIRS; i++) {
		KDT_OK(test, dat_ep_reset(pair[i]->s.h));
		KDT_OK(test, dat_ep_free(pair[i]->s.h));
		while (kdt_get_timeout(pair[i]->s.conn, &event, 0))
			KUNIT_FAIL(test, "another event 0x%x", event.event_number);
	}
}

static void abrupt_while_connecting(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair[3];
	int i;

	kdt_listener_goes(test, &env->b);
	/* One attempt unanswered, one half way, one listener with a request in hand. */
	for (i = 0; i < 3; i++)
		pair[i] = kdt_pair_new(test, NULL);
	kdt_pair_request(test, pair[0]);
	KDT_OK(test, dat_cr_accept(kdt_pair_request(test, pair[1]), pair[1]->s.h, 0, NULL));
	KDT_OK(test, kdt_connect(&pair[2]->c, &env->b, pair[2]->port));
	KDT_OK(test, dat_ia_close(env->a.h, DAT_CLOSE_ABRUPT_FLAG));
	KDT_OK(test, dat_ia_close(env->b.h, DAT_CLOSE_ABRUPT_FLAG));
	env->a.h = DAT_HANDLE_NULL;
	env->b.h = DAT_HANDLE_NULL;
}

static bool close_ia(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	DAT_RETURN *ret = evd->priv;
	DAT_EVD_PARAM param;

	if (dat_evd_query(evd->h, DAT_EVD_FIELD_ALL, &param) == DAT_SUCCESS)
		*ret = dat_ia_close(param.ia_handle, DAT_CLOSE_ABRUPT_FLAG);
	return false;
}

static void close_in_upcall(struct kunit *test)
{
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	DAT_RETURN ret = DAT_SUCCESS;

	pair->c.conn->priv = &ret;
	pair->c.conn->hook = close_ia;
	kdt_pair_connect(test, pair);
	KUNIT_EXPECT_EQ(test, DAT_GET_TYPE(ret), (u32)DAT_INVALID_STATE);
	pair->c.conn->hook = NULL;
	kdt_pair_down(test, pair);
}

static struct kunit_case cases[] = {
	KD_CASE(abrupt_with_traffic, "IA-CLOSE-02,IA-CLOSE-05,IA-CLOSE-06,SIL-40: with traffic"),
	KD_CASE(abrupt_while_connecting, "IA-CLOSE-02,CR-LIFE-01: while connections are made"),
	KD_CASE(close_in_upcall, "IA-CLOSE-05: not from an upcall of the instance"),
	{}
};

struct kunit_suite kdt_close_suite = {
	.name = "kdtest-close",
	.init = kdt_init,
	.exit = kdt_exit,
	.test_cases = cases,
};
