// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The passive side under fire: requests arrive, two threads answer them in all ways, another one
 * does to the EPs whatever comes to its mind, and then the ground is pulled away under them.
 *
 * Nobody knows who is faster, so little is asked of a single call: that it returns what it may.
 * Each request is answered once, all threads end, nothing is left.
 */
#include <linux/delay.h>
#include <linux/random.h>

#include "kd_conn.h"
#include "kd_upcall.h"

#define PR_QUAL		100
#define PR_SLOTS	16
#define PR_ROUNDS	40

enum pr_end { PR_FREE, PR_CLOSE, PR_UNPLUG, PR_FATAL };

/**
 * struct pr - what everybody works with
 * @env: the usual
 * @cr_evd: EVD for requests
 * @stop: the threads are to end
 * @sp: service points, dead ones too; two PSPs, the others are RSPs
 * @cr: requests, dead ones too
 * @ep: EPs, dead ones too
 * @events: events that told of a request
 * @answers: of each kind
 * @wrong: calls that returned what they never may
 */
struct pr {
	struct kd_env *env;
	DAT_EVD_HANDLE cr_evd;
	bool stop;
	DAT_HANDLE sp[PR_SLOTS];
	DAT_CR_HANDLE cr[PR_SLOTS];
	DAT_EP_HANDLE ep[PR_SLOTS];
	atomic_t events;
	atomic_t answers[3];
	atomic_t wrong;
};

static u32 pr_random(u32 n)
{
	return get_random_u32() % n;
}

/* A call that races may fail for these reasons and for no other. */
static bool pr_check(struct pr *pr, DAT_RETURN ret)
{
	switch (DAT_GET_TYPE(ret)) {
	case DAT_SUCCESS:
		return true;
	case DAT_INVALID_HANDLE:
	case DAT_INVALID_STATE:
	case DAT_INVALID_PARAMETER:
	case DAT_INTERNAL_ERROR:
	case DAT_PROTECTION_VIOLATION:
	case DAT_INSUFFICIENT_RESOURCES:
		return false;
	}
	atomic_inc(&pr->wrong);
	return false;
}

static void pr_requests(void *arg)
{
	struct pr *pr = arg;

	while (!READ_ONCE(pr->stop)) {
		kd_try_request(pr->env, READ_ONCE(pr->sp[pr_random(pr_random(2) ? 2 : PR_SLOTS)]),
			       "hello", 6);
		usleep_range(10, 50);
	}
}

static void pr_answers(void *arg)
{
	struct pr *pr = arg;
	DAT_CR_PARAM param = {};
	DAT_CR_HANDLE cr;
	DAT_EVENT event;
	DAT_RETURN ret;
	int i, way;

	while (!READ_ONCE(pr->stop)) {
		i = pr_random(PR_SLOTS);
		if (kd_next(pr->cr_evd, &event)) {
			atomic_inc(&pr->events);
			WRITE_ONCE(pr->cr[i], event.event_data.cr_arrival_event_data.cr_handle);
		} else {
			usleep_range(10, 50);
		}
		cr = READ_ONCE(pr->cr[pr_random(4) ? i : pr_random(PR_SLOTS)]);
		/* what the request came with is found by the other threads, too */
		if (pr_check(pr, dat_cr_query(cr, DAT_CR_FIELD_ALL, &param)) &&
		    param.local_ep_handle)
			WRITE_ONCE(pr->ep[pr_random(PR_SLOTS)], param.local_ep_handle);
		pr_check(pr, kd_configure(pr->env, param.local_ep_handle));
		way = pr_random(3);
		if (way == 0)
			ret = dat_cr_accept(cr, pr_random(2) ? NULL :
					    READ_ONCE(pr->ep[pr_random(PR_SLOTS)]), 0, NULL);
		else if (way == 1)
			ret = dat_cr_reject(cr, 0, NULL);
		else
			ret = dat_cr_handoff(cr, PR_QUAL + pr_random(3));
		if (pr_check(pr, ret))
			atomic_inc(&pr->answers[way]);
	}
}

static void pr_eps(void *arg)
{
	struct pr *pr = arg;
	struct kd_env *env = pr->env;
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	DAT_EP_PARAM param = {};
	DAT_EP_HANDLE ep;

	while (!READ_ONCE(pr->stop)) {
		ep = READ_ONCE(pr->ep[pr_random(PR_SLOTS)]);
		pr_check(pr, kd_configure(env, ep));
		pr_check(pr, kd_post(ep, KD_RECV, 1, &iov, 1, NULL, 0));
		param.ep_attr.max_recv_dtos = 1 + pr_random(8);
		pr_check(pr, dat_ep_modify(ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &param));
		pr_check(pr, dat_ep_disconnect(ep, pr_random(2) ? DAT_CLOSE_ABRUPT_FLAG :
							       DAT_CLOSE_GRACEFUL_FLAG));
		pr_check(pr, pr_random(8) ? dat_ep_reset(ep) : dat_ep_free(ep));
		kd_drain(env->conn);
		kd_drain(env->recv);
		usleep_range(10, 50);
	}
}

/* New EPs, some of them with an RSP; service points come and go. */
static void pr_round(struct pr *pr)
{
	struct kd_env *env = pr->env;
	DAT_EP_HANDLE ep;
	DAT_EP_ATTR attr;

	kd_attr(&attr);
	if (dat_ep_create(env->ia, env->pz, env->recv, env->req, env->conn, &attr, &ep) ==
	    DAT_SUCCESS) {
		if (pr_random(2))
			WRITE_ONCE(pr->sp[2 + pr_random(PR_SLOTS - 2)],
				   kd_rsp(env, pr->cr_evd, PR_QUAL + 10, ep));
		WRITE_ONCE(pr->ep[pr_random(PR_SLOTS)], ep);
	}
	if (!pr_random(3))
		pr_check(pr, dat_rsp_free(READ_ONCE(pr->sp[2 + pr_random(PR_SLOTS - 2)])));
	usleep_range(500, 2000);
}

static DAT_RETURN pr_reject(DAT_CR_HANDLE cr)
{
	return dat_cr_reject(cr, 0, NULL);
}

/* What is left when the threads are gone, object by object. Returns the number of CRs. */
static int pr_free_all(struct pr *pr)
{
	static const struct {
		unsigned int type;
		DAT_RETURN (*free)(DAT_HANDLE handle);
	} order[] = {
		{ DAT_HANDLE_TYPE_RSP, dat_rsp_free }, { DAT_HANDLE_TYPE_PSP, dat_psp_free },
		{ DAT_HANDLE_TYPE_CR, pr_reject }, { DAT_HANDLE_TYPE_EP, dat_ep_free },
	};
	struct kdapl_ia *ia = kd_ia(pr->env);
	struct kdapl_obj *obj;
	DAT_HANDLE handle;
	int i, crs = 0;

	/* of an RSP that was used up the request may still be on its way */
	flush_workqueue(kdapl_misc_wq);
	for (i = 0; i < ARRAY_SIZE(order); i++) {
		for (;;) {
			spin_lock_irq(&ia->lock);
			obj = list_first_entry_or_null(&ia->objs[order[i].type], struct kdapl_obj,
						       node);
			handle = obj ? obj->handle : DAT_HANDLE_NULL;
			spin_unlock_irq(&ia->lock);
			if (!handle)
				break;
			KD_ASSERT_OK(pr->env->test, order[i].free(handle));
			crs += order[i].type == DAT_HANDLE_TYPE_CR;
		}
	}
	return crs;
}

static bool pr_seen_all(struct pr *pr)
{
	return atomic_read(&pr->answers[0]) && atomic_read(&pr->answers[1]) &&
	       atomic_read(&pr->answers[2]);
}

static void pr_storm(struct kunit *test, enum pr_end end)
{
	void (*const fns[])(void *arg) = { pr_requests, pr_answers, pr_answers, pr_eps };
	struct pr *pr = kunit_kzalloc(test, sizeof(*pr), GFP_KERNEL);
	struct kd_env *env = kd_open(test, NULL);
	unsigned long limit = jiffies + KD_LONG;
	struct kd_aside asides[4];
	int i, n;

	KUNIT_ASSERT_NOT_NULL(test, pr);
	pr->env = env;
	pr->cr_evd = kd_cr_evd(env, 16);
	for (i = 0; i < 2; i++)
		pr->sp[i] = kd_psp(env, pr->cr_evd, PR_QUAL + i,
				   i ? DAT_PSP_PROVIDER_FLAG : DAT_PSP_CONSUMER_FLAG);
	for (i = 0; i < ARRAY_SIZE(fns); i++)
		kd_aside(test, &asides[i], fns[i], pr);
	for (i = 0; i < PR_ROUNDS || (!pr_seen_all(pr) && time_before(jiffies, limit)); i++)
		pr_round(pr);
	KUNIT_EXPECT_TRUE(test, pr_seen_all(pr));
	if (end == PR_CLOSE)
		KD_EXPECT_OK(test, dat_ia_close(env->ia, DAT_CLOSE_ABRUPT_FLAG));
	else if (end == PR_UNPLUG)
		fake_ib_unplug(env->dev);
	else if (end == PR_FATAL)
		kd_device_event(env, IB_EVENT_DEVICE_FATAL);
	else
		KD_EXPECT_OK(test, dat_psp_free(pr->sp[0]));
	kd_pause();
	WRITE_ONCE(pr->stop, true);
	for (i = 0; i < ARRAY_SIZE(fns); i++)
		KUNIT_ASSERT_TRUE(test, kd_aside_wait(&asides[i]));
	KUNIT_EXPECT_EQ(test, atomic_read(&pr->wrong), 0);
	if (end == PR_CLOSE) {
		kd_forget(env);
		return;
	}
	/* each request that was told of was answered once, or was there at the end */
	n = pr_free_all(pr);
	for (i = 0; i < 3; i++)
		n += atomic_read(&pr->answers[i]);
	KUNIT_EXPECT_EQ(test, n, atomic_read(&pr->events) + kd_drain(pr->cr_evd));
	KD_EXPECT_OK(test, dat_evd_free(pr->cr_evd));
}

static void pr_free_test(struct kunit *test)
{
	pr_storm(test, PR_FREE);
}

static void pr_close_test(struct kunit *test)
{
	pr_storm(test, PR_CLOSE);
}

static void pr_unplug_test(struct kunit *test)
{
	pr_storm(test, PR_UNPLUG);
}

static void pr_fatal_test(struct kunit *test)
{
	pr_storm(test, PR_FATAL);
}

static struct kunit_case pr_cases[] = {
	KD_CASE(pr_free_test, "CTX-03,CR-ACC-04,RSP-08,PSP-08: all answers at once"),
	KD_CASE(pr_close_test, "IA-CLOSE-02,GEN-05: closed under it"),
	KD_CASE(pr_unplug_test, "EPSM-24,ASY-22: the device goes under it"),
	KD_CASE(pr_fatal_test, "EPSM-24,ASY-03: the device breaks under it"),
	{}
};

KD_SUITE("kdapl-passive-race", pr_cases, kd_init, kd_exit);
