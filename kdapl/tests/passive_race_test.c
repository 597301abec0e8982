// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The passive side under fire: requests arrive, two threads answer them in all
 * ways, right ones and wrong ones, another one does to the EPs whatever comes to
 * its mind, and at the end the ground is pulled away under all of them.
 *
 * Nobody here knows who is faster, so little is asked of a single call. What is:
 * that all end, that nothing is left, and that a lock checker has nothing to say.
 */
#include <linux/delay.h>
#include <linux/moduleparam.h>
#include <linux/random.h>
#include <linux/sched.h>

#include "kd_upcall.h"
#include "kd_conn.h"

#define PR_QUAL		100
#define PR_SLOTS	16
#define PR_PATIENCE	(60 * HZ)

/* Rounds of each storm; more of them are a matter of patience. */
static unsigned int passive_rounds = 40;
module_param(passive_rounds, uint, 0444);
MODULE_PARM_DESC(passive_rounds, "rounds of each storm on the passive side");

enum pr_end { PR_FREE, PR_CLOSE, PR_UNPLUG, PR_FATAL };

/**
 * struct pr - what everybody works with
 * @env: the usual
 * @cr_evd: EVD for requests
 * @psp: PSPs, with the consumer's and the provider's EPs
 * @stop: the threads are to end
 * @sp: service points for the one who sends requests, dead ones too
 * @cr: requests, dead ones too
 * @ep: EPs, dead ones too
 * @asides: the threads
 * @accepted: requests accepted
 * @rejected: requests rejected
 * @passed: requests handed off
 * @requests: requests that were reported, through an RSP: were to be
 * @events: events that told of one, or of one that was handed off
 * @wrong: calls that returned what they never may
 * @ret: the last of these
 */
struct pr {
	struct kd_env *env;
	DAT_EVD_HANDLE cr_evd;
	DAT_PSP_HANDLE psp[2];
	bool stop;
	DAT_HANDLE sp[PR_SLOTS];
	DAT_CR_HANDLE cr[PR_SLOTS];
	DAT_EP_HANDLE ep[PR_SLOTS];
	struct kd_aside asides[4];
	atomic_t accepted;
	atomic_t rejected;
	atomic_t passed;
	atomic_t requests;
	atomic_t events;
	atomic_t wrong;
	u32 ret;
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
	default:
		WRITE_ONCE(pr->ret, ret);
		atomic_inc(&pr->wrong);
		return false;
	}
}

/* Let the others have their turn; now and then long enough to fall asleep. */
static void pr_pause(u32 n)
{
	if (pr_random(n))
		schedule();
	else
		usleep_range(10, 50);
}

static void pr_requests(void *arg)
{
	struct pr *pr = arg;

	while (!READ_ONCE(pr->stop)) {
		int i = pr_random(pr_random(2) ? 2 : PR_SLOTS);

		if (kd_try_request(pr->env, READ_ONCE(pr->sp[i]), "hello", 6) > 0)
			atomic_inc(&pr->requests);
		pr_pause(3);
	}
}

static void pr_answers(void *arg)
{
	struct pr *pr = arg;
	DAT_CR_PARAM param = {};
	DAT_CR_HANDLE cr;
	DAT_EVENT event;
	int i;

	while (!READ_ONCE(pr->stop)) {
		i = pr_random(PR_SLOTS);
		if (kd_next(pr->cr_evd, &event)) {
			atomic_inc(&pr->events);
			WRITE_ONCE(pr->cr[i], event.event_data.cr_arrival_event_data.cr_handle);
		} else {
			pr_pause(3);
		}
		cr = READ_ONCE(pr->cr[pr_random(4) ? i : pr_random(PR_SLOTS)]);
		/* what the request came with is found by the other threads, too */
		if (pr_check(pr, dat_cr_query(cr, DAT_CR_FIELD_ALL, &param)) &&
		    param.local_ep_handle)
			WRITE_ONCE(pr->ep[pr_random(PR_SLOTS)], param.local_ep_handle);
		switch (pr_random(6)) {
		case 0:
			pr_check(pr, kd_configure(pr->env, param.local_ep_handle));
			if (pr_check(pr, dat_cr_accept(cr, NULL, 0, NULL)))
				atomic_inc(&pr->accepted);
			break;
		case 1:
			if (pr_check(pr, dat_cr_accept(cr, READ_ONCE(pr->ep[pr_random(PR_SLOTS)]),
						       0, NULL)))
				atomic_inc(&pr->accepted);
			break;
		case 2:
			if (pr_check(pr, dat_cr_reject(cr, 0, NULL)))
				atomic_inc(&pr->rejected);
			break;
		default:
			if (pr_check(pr, dat_cr_handoff(cr, PR_QUAL + pr_random(3))))
				atomic_inc(&pr->passed);
		}
	}
}

static void pr_eps(void *arg)
{
	struct pr *pr = arg;
	struct kd_env *env = pr->env;
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	DAT_EP_PARAM param = {}, out;
	DAT_EP_HANDLE ep;
	DAT_EVENT event;

	while (!READ_ONCE(pr->stop)) {
		ep = READ_ONCE(pr->ep[pr_random(PR_SLOTS)]);
		switch (pr_random(10)) {
		case 0:
			pr_check(pr, dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
			break;
		case 1:
			pr_check(pr, dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
			break;
		case 2:
			pr_check(pr, dat_ep_reset(ep));
			break;
		case 3:
			if (!pr_random(8))
				pr_check(pr, dat_ep_free(ep));
			break;
		case 4:
			pr_check(pr, kd_post(ep, KD_RECV, 1, &iov, 1, NULL, 0));
			break;
		case 5:
			pr_check(pr, dat_ep_query(ep, DAT_EP_FIELD_ALL, &out));
			break;
		case 6:
			param.ep_attr.max_recv_dtos = 1 + pr_random(8);
			pr_check(pr, dat_ep_modify(ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS,
						   &param));
			break;
		default:
			pr_check(pr, kd_configure(pr->env, ep));
		}
		while (kd_next(env->conn, &event) || kd_next(env->recv, &event))
			;
		pr_pause(3);
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
		if (pr_random(2)) {
			WRITE_ONCE(pr->sp[2 + pr_random(PR_SLOTS - 2)],
				   kd_rsp(env, pr->cr_evd, PR_QUAL + 10, ep));
		}
		WRITE_ONCE(pr->ep[pr_random(PR_SLOTS)], ep);
	}
	if (!pr_random(3))
		pr_check(pr, dat_rsp_free(READ_ONCE(pr->sp[2 + pr_random(PR_SLOTS - 2)])));
	usleep_range(500, 2000);
}

/* What is left when the threads are gone, object by object. Returns the number of CRs. */
static int pr_free_all(struct pr *pr)
{
	struct kd_env *env = pr->env;
	struct kunit *test = env->test;
	struct kdapl_ia *ia = kdapl_obj_get(env->ia, DAT_HANDLE_TYPE_IA);
	static const u8 order[] = {
		DAT_HANDLE_TYPE_RSP, DAT_HANDLE_TYPE_PSP, DAT_HANDLE_TYPE_CR, DAT_HANDLE_TYPE_EP,
	};
	struct kdapl_obj *obj;
	DAT_HANDLE handle;
	DAT_RETURN ret;
	int i, n, crs = 0;

	/* of an RSP that was used up the request may still be on its way */
	flush_workqueue(kdapl_misc_wq);
	for (i = 0; i < ARRAY_SIZE(order); i++) {
		for (n = 0; n < 10000; n++) {
			spin_lock_irq(&ia->lock);
			obj = list_first_entry_or_null(&ia->objs[order[i]], struct kdapl_obj,
						       node);
			handle = obj ? obj->handle : DAT_HANDLE_NULL;
			spin_unlock_irq(&ia->lock);
			if (!handle)
				break;
			ret = order[i] == DAT_HANDLE_TYPE_RSP ? dat_rsp_free(handle) :
			      order[i] == DAT_HANDLE_TYPE_PSP ? dat_psp_free(handle) :
			      order[i] == DAT_HANDLE_TYPE_CR ? dat_cr_reject(handle, 0, NULL) :
			      dat_ep_free(handle);
			KUNIT_ASSERT_EQ_MSG(test, (u32)ret, (u32)DAT_SUCCESS, "type %d",
					    order[i]);
			crs += order[i] == DAT_HANDLE_TYPE_CR;
		}
	}
	kdapl_obj_put(&ia->obj);
	return crs;
}

/* Each request that was told of was answered once, or was there at the end (@left). */
static void pr_expect_answers(struct pr *pr, int left)
{
	int answers = atomic_read(&pr->accepted) + atomic_read(&pr->rejected) +
		      atomic_read(&pr->passed) + left;
	struct kunit *test = pr->env->test;
	int events = atomic_read(&pr->events);

	KUNIT_EXPECT_EQ(test, answers, events);
	/* some were refused after all, no room: that of an RSP, and one that was passed on */
	KUNIT_EXPECT_LE(test, events, atomic_read(&pr->requests) + atomic_read(&pr->passed));
}

/* Every answer has been given, or nobody got that far in time. */
static bool pr_seen_all(struct pr *pr)
{
	return atomic_read(&pr->accepted) && atomic_read(&pr->rejected) &&
	       atomic_read(&pr->passed);
}

static void pr_storm(struct kunit *test, enum pr_end end)
{
	void (*const fns[])(void *arg) = { pr_requests, pr_answers, pr_answers, pr_eps };
	struct pr *pr = kunit_kzalloc(test, sizeof(*pr), GFP_KERNEL);
	struct kd_env *env = kd_open(test, NULL);
	unsigned long limit = jiffies + PR_PATIENCE;
	DAT_EVENT event;
	int i, left;

	KUNIT_ASSERT_NOT_NULL(test, pr);
	pr->env = env;
	pr->cr_evd = kd_cr_evd(env, 16);
	for (i = 0; i < 2; i++) {
		pr->psp[i] = kd_psp(env, pr->cr_evd, PR_QUAL + i,
				    i ? DAT_PSP_PROVIDER_FLAG : DAT_PSP_CONSUMER_FLAG);
		pr->sp[i] = pr->psp[i];
	}
	for (i = 0; i < ARRAY_SIZE(fns); i++)
		kd_aside(test, &pr->asides[i], fns[i], pr);
	for (i = 0; i < passive_rounds || (!pr_seen_all(pr) && time_before(jiffies, limit)); i++)
		pr_round(pr);
	KUNIT_EXPECT_TRUE(test, pr_seen_all(pr));
	if (end == PR_CLOSE) {
		KD_EXPECT_OK(test, dat_ia_close(env->ia, DAT_CLOSE_ABRUPT_FLAG));
	} else if (end == PR_UNPLUG) {
		fake_ib_unplug(env->dev);
	} else if (end == PR_FATAL) {
		struct ib_event fatal = {
			.device = fake_ib_device(env->dev), .event = IB_EVENT_DEVICE_FATAL,
		};

		ib_dispatch_event(&fatal);
	} else {
		KD_EXPECT_OK(test, dat_psp_free(pr->psp[0]));
	}
	usleep_range(2000, 5000);
	WRITE_ONCE(pr->stop, true);
	for (i = 0; i < ARRAY_SIZE(fns); i++)
		KUNIT_ASSERT_TRUE(test, kd_aside_wait(&pr->asides[i]));
	KUNIT_EXPECT_EQ_MSG(test, atomic_read(&pr->wrong), 0, "%#x", pr->ret);
	kunit_info(test, "%d requests: %d accepted, %d rejected, %d handed off\n",
		   atomic_read(&pr->requests), atomic_read(&pr->accepted),
		   atomic_read(&pr->rejected), atomic_read(&pr->passed));
	if (end == PR_CLOSE) {
		kd_forget(env);
		return;
	}
	flush_workqueue(ib_wq);
	left = pr_free_all(pr);
	while (kd_next(pr->cr_evd, &event))
		atomic_inc(&pr->events);
	pr_expect_answers(pr, left);
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

static struct kunit_suite pr_suite = {
	.name = "kdapl-passive-race",
	.suite_init = kd_suite_init,
	.suite_exit = kd_suite_exit,
	.init = kd_init,
	.exit = kd_exit,
	.test_cases = pr_cases,
};

kunit_test_suite(pr_suite);
