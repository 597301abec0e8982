// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Lives of objects: verbs that fail at every step of their making, and the
 * device that goes away under all of them. A device that takes its time, and consumers that do
 * not share its fate: while an object of one is being destroyed the others create, reset and free
 * theirs, and the removal of the device waits for it. What storage may wait for allocates without
 * I/O.
 */
#include <linux/completion.h>
#include <linux/kthread.h>
#include <linux/rcupdate.h>

#include "kd_test.h"

/* Errors a failing verb may turn into: resources or our own fault, no other. */
static void life_expect_refusal(struct kunit *test, DAT_RETURN ret, const char *what, int n)
{
	u32 type = DAT_GET_TYPE(ret);

	KUNIT_EXPECT_TRUE_MSG(test, type == DAT_INSUFFICIENT_RESOURCES ||
			      type == DAT_INTERNAL_ERROR, "%s, verb %d: %#x", what, n, ret);
}

enum life_object {
	LIFE_IA, LIFE_PZ, LIFE_LMR, LIFE_EVD, LIFE_EP, LIFE_SRQ, LIFE_SRQ_EP, LIFE_OBJECTS
};

static const char * const life_names[] = { "IA", "PZ", "LMR", "EVD", "EP", "SRQ", "EP of an SRQ" };

static DAT_SRQ_HANDLE life_srq;		/* of LIFE_SRQ_EP */

static DAT_RETURN life_make(struct kd_env *env, enum life_object object, DAT_HANDLE *handle)
{
	DAT_REGION_DESCRIPTION region = { .for_va = env->buf };
	DAT_SRQ_ATTR srq_attr = { .max_recv_dtos = 8, .max_recv_iov = 1 };
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	char name[DAT_NAME_MAX_LENGTH];
	DAT_LMR_CONTEXT lmr;
	DAT_RMR_CONTEXT rmr;
	DAT_EP_ATTR attr;
	DAT_VLEN length;
	DAT_VADDR addr;

	switch (object) {
	case LIFE_IA:
		snprintf(name, sizeof(name), "%s-1", fake_ib_name(env->dev));
		return dat_ia_open(name, 8, &evd, handle);
	case LIFE_PZ:
		return dat_pz_create(env->ia, handle);
	case LIFE_LMR:
		return dat_lmr_kcreate(env->ia, DAT_MEM_TYPE_VIRTUAL, region, 100, env->pz2,
				       DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA,
				       DAT_MEM_OPTIMIZE_DONT_CARE, handle, &lmr, &rmr, &length,
				       &addr);
	case LIFE_EVD:
		return dat_evd_kcreate(env->ia, 8, DAT_UPCALL_DISABLE, NULL, DAT_EVD_DTO_FLAG,
				       handle);
	case LIFE_SRQ:
		return dat_srq_create(env->ia, env->pz, &srq_attr, handle);
	case LIFE_SRQ_EP:
		kd_attr(&attr);
		return dat_ep_create_with_srq(env->ia, env->pz, env->recv, env->req, env->conn,
					      life_srq, &attr, handle);
	default:
		kd_attr(&attr);
		return dat_ep_create(env->ia, env->pz, env->recv, env->req, env->conn, &attr,
				     handle);
	}
}

static DAT_RETURN life_free(enum life_object object, DAT_HANDLE handle)
{
	switch (object) {
	case LIFE_IA:
		return dat_ia_close(handle, DAT_CLOSE_ABRUPT_FLAG);
	case LIFE_PZ:
		return dat_pz_free(handle);
	case LIFE_LMR:
		return dat_lmr_free(handle);
	case LIFE_EVD:
		return dat_evd_free(handle);
	case LIFE_SRQ:
		return dat_srq_free(handle);
	default:
		return dat_ep_free(handle);
	}
}

/* An SRQ for LIFE_SRQ_EP; freed in life_exit(). */
static void life_make_srq(struct kd_env *env)
{
	KD_ASSERT_OK(env->test, life_make(env, LIFE_SRQ, &life_srq));
}

static void life_exit(struct kunit *test)
{
	if (life_srq)
		KD_EXPECT_OK(test, dat_srq_free(life_srq));
	life_srq = DAT_HANDLE_NULL;
	kd_exit(test);
}

/* What a device has no more of, by the subtype. */
static void life_subtype_test(struct kunit *test)
{
	static const struct {
		enum life_object object;
		int err;
		DAT_RETURN_SUBTYPE subtype;
	} rows[] = {
		{ LIFE_PZ, -ENOMEM, DAT_RESOURCE_MEMORY },
		{ LIFE_PZ, -ENOSPC, DAT_RESOURCE_PROTECTION_DOMAIN },
		{ LIFE_PZ, -EAGAIN, DAT_RESOURCE_PROTECTION_DOMAIN },
		{ LIFE_LMR, -ENOMEM, DAT_RESOURCE_MEMORY },
		{ LIFE_LMR, -ENOSPC, DAT_RESOURCE_MEMORY_REGION },
		{ LIFE_LMR, -EAGAIN, DAT_RESOURCE_MEMORY_REGION },
		{ LIFE_SRQ, -ENOMEM, DAT_RESOURCE_MEMORY },
		{ LIFE_SRQ, -ENOSPC, DAT_RESOURCE_SRQ },
		{ LIFE_SRQ, -EINVAL, DAT_RESOURCE_SRQ },
		{ LIFE_SRQ, -EOPNOTSUPP, DAT_RESOURCE_SRQ },
	};
	struct kd_env *env = kd_open(test, NULL);
	DAT_HANDLE handle;
	int i;

	for (i = 0; i < ARRAY_SIZE(rows); i++) {
		fake_ib_fail(env->dev, FAKE_IB_ANY, 1, rows[i].err);
		KD_EXPECT_RET(test, life_make(env, rows[i].object, &handle),
			      DAT_INSUFFICIENT_RESOURCES, rows[i].subtype);
		KUNIT_EXPECT_EQ(test, fake_ib_failing(env->dev, FAKE_IB_ANY), 0U);
	}
}

/* Nothing is made in an IA that is being closed. */
static void life_closing_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kdapl_ia *ia = kdapl_obj_get(env->ia, DAT_HANDLE_TYPE_IA);
	enum life_object object;
	DAT_HANDLE handle;
	DAT_RETURN ret;

	life_make_srq(env);
	spin_lock_irq(&ia->lock);
	ia->closing = true;
	spin_unlock_irq(&ia->lock);
	for (object = LIFE_PZ; object < LIFE_OBJECTS; object++) {
		ret = life_make(env, object, &handle);
		KUNIT_EXPECT_EQ_MSG(test, (u32)DAT_GET_TYPE(ret), (u32)DAT_INVALID_HANDLE, "%s",
				    life_names[object]);
		if (ret == DAT_SUCCESS)
			life_free(object, handle);
	}
	spin_lock_irq(&ia->lock);
	ia->closing = false;
	spin_unlock_irq(&ia->lock);
	kdapl_obj_put(&ia->obj);
}

static void life_nth_verb_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct fake_ib_live before, after;
	enum life_object object;
	DAT_HANDLE handle;
	DAT_RETURN ret;
	int n, i;

	life_make_srq(env);
	for (object = 0; object < LIFE_OBJECTS; object++) {
		for (n = 1; n < 50; n++) {
			fake_ib_live(env->dev, &before);
			fake_ib_fail(env->dev, FAKE_IB_ANY, n, -ENOMEM);
			ret = life_make(env, object, &handle);
			fake_ib_fail(env->dev, FAKE_IB_ANY, 0, 0);
			if (ret == DAT_SUCCESS) {
				KD_EXPECT_OK(test, life_free(object, handle));
				/* a verb may fail and be got over: until none is left */
				if (n > 20)
					break;
				continue;
			}
			life_expect_refusal(test, ret, life_names[object], n);
			/* nothing stays behind; freeing may go on in the background */
			for (i = 0; i < 500; i++) {
				fake_ib_live(env->dev, &after);
				if (!memcmp(&before, &after, sizeof(before)))
					break;
				kd_pause();
			}
			KUNIT_EXPECT_EQ_MSG(test, memcmp(&before, &after, sizeof(before)), 0,
					    "%s, verb %d", life_names[object], n);
		}
	}
}

/* The registration QP dies: one call may suffer, the next builds a new one. */
static void life_registration_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_HANDLE handle;
	DAT_RETURN ret;
	int i;

	fake_ib_auto_reg_status(env->dev, IB_WC_LOC_QP_OP_ERR);
	for (i = 0; i < 3; i++) {
		ret = life_make(env, LIFE_LMR, &handle);
		KUNIT_EXPECT_EQ(test, (u32)DAT_GET_TYPE(ret), (u32)DAT_INSUFFICIENT_RESOURCES);
	}
	fake_ib_auto_reg_status(env->dev, IB_WC_SUCCESS);
	for (i = 0; i < 3; i++) {
		KD_EXPECT_OK(test, life_make(env, LIFE_LMR, &handle));
		KD_EXPECT_OK(test, life_free(LIFE_LMR, handle));
	}
}

static void life_unplug_test(struct kunit *test)
{
	struct kd_env *env = kd_connected(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 8, 1);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	int i, flushed = 0, catastrophic = 0;
	struct fake_ib_live live;
	unsigned int posted;
	DAT_EP_STATE state;
	DAT_HANDLE handle;
	DAT_EVENT event;
	DAT_RETURN ret;

	life_make_srq(env);
	for (i = 0; i < 4; i++) {
		KD_EXPECT_OK(test, kd_post(env->ep, KD_WRITE, 1, &iov, i, &remote, 0));
		KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, i, NULL, 0));
	}
	fake_ib_complete(env->qp, false, IB_WC_SUCCESS);
	posted = fake_ib_count(env->dev, FAKE_IB_POST_SEND);
	fake_ib_unplug(env->dev);
	/* all of it is back, though the consumer has not moved; and nothing was posted */
	fake_ib_live(env->dev, &live);
	KUNIT_EXPECT_EQ(test, live.qps, 0);
	KUNIT_EXPECT_EQ(test, live.cqs, 0);
	KUNIT_EXPECT_EQ(test, live.mrs, 0);
	KUNIT_EXPECT_EQ(test, live.pds, 0);
	KUNIT_EXPECT_EQ(test, fake_ib_count(env->dev, FAKE_IB_POST_SEND), posted);

	KD_EXPECT_OK(test, dat_ep_get_status(env->ep, &state, NULL, NULL));
	KUNIT_EXPECT_EQ(test, (int)state, (int)DAT_EP_STATE_DISCONNECTED);
	KUNIT_ASSERT_TRUE(test, kd_next(env->conn, &event));
	KUNIT_EXPECT_EQ(test, (u32)event.event_number, (u32)DAT_CONNECTION_EVENT_BROKEN);
	KD_EXPECT_EMPTY(test, env->conn);
	while (kd_next(env->async, &event))
		catastrophic += event.event_number == DAT_ASYNC_ERROR_IA_CATASTROPHIC;
	KUNIT_EXPECT_EQ(test, catastrophic, 1);
	KUNIT_ASSERT_TRUE(test, kd_next(env->req, &event));
	KUNIT_EXPECT_EQ(test, (int)event.event_data.dto_completion_event_data.status,
			(int)DAT_DTO_SUCCESS);
	while (kd_next(env->req, &event))
		flushed += event.event_data.dto_completion_event_data.status ==
			   DAT_DTO_ERR_FLUSHED;
	KUNIT_EXPECT_EQ(test, flushed, 3);
	for (flushed = 0; kd_next(env->recv, &event);)
		flushed += event.event_data.dto_completion_event_data.status ==
			   DAT_DTO_ERR_FLUSHED;
	KUNIT_EXPECT_EQ(test, flushed, 4);
	/* whatever is asked now is refused */
	KD_EXPECT_RET(test, kd_post(env->ep, KD_WRITE, 1, &iov, 9, &remote, 0), DAT_INTERNAL_ERROR,
		      DAT_NO_SUBTYPE);
	KD_EXPECT_RET(test, kd_post(env->ep, KD_RECV, 1, &iov, 9, NULL, 0), DAT_INTERNAL_ERROR,
		      DAT_NO_SUBTYPE);
	for (i = LIFE_PZ; i < LIFE_OBJECTS; i++) {
		ret = life_make(env, i, &handle);
		KUNIT_EXPECT_EQ_MSG(test, (u32)DAT_GET_TYPE(ret), (u32)DAT_INTERNAL_ERROR, "%s",
				    life_names[i]);
	}
	/* kd_exit() frees everything, in the usual order */
}

/* How often something is freed until it is said that each time a grace period went by. */
#define GRACE_TRIES	50

static bool life_free_at_once(enum life_object object, DAT_HANDLE handle, struct kunit *test)
{
	unsigned long before = get_state_synchronize_rcu();

	KD_EXPECT_OK(test, life_free(object, handle));
	return !poll_state_synchronize_rcu(before);
}

/*
 * A grace period that ends in between is somebody else's. What waits for one has seen one
 * go by each time.
 */
static void life_grace_test(struct kunit *test)
{
	static const enum life_object objects[] = { LIFE_EVD, LIFE_EP, LIFE_SRQ };
	struct kd_env *env = kd_connected(test, NULL);
	bool at_once = false;
	unsigned long before;
	DAT_HANDLE handle;
	DAT_EVENT event;
	int i, n;

	if (IS_ENABLED(CONFIG_TINY_RCU))
		kunit_skip(test, "with one CPU every sleep is a grace period");
	for (i = 0; i < ARRAY_SIZE(objects); i++) {
		for (n = 0, at_once = false; n < GRACE_TRIES && !at_once; n++) {
			KD_ASSERT_OK(test, life_make(env, objects[i], &handle));
			at_once = life_free_at_once(objects[i], handle, test);
		}
		KUNIT_EXPECT_TRUE_MSG(test, at_once, "%s", life_names[objects[i]]);
	}
	for (n = 0, at_once = false; n < GRACE_TRIES && !at_once; n++) {
		if (n)
			kd_connect(env);
		kd_end(env, DAT_CONNECTION_EVENT_DISCONNECTED);
		KUNIT_ASSERT_TRUE(test, kd_next(env->conn, &event));
		before = get_state_synchronize_rcu();
		KD_EXPECT_OK(test, dat_ep_reset(env->ep));
		at_once = !poll_state_synchronize_rcu(before);
		env->qp = kd_conn_of(env)->qp;
	}
	KUNIT_EXPECT_TRUE_MSG(test, at_once, "reset");
}

/* The device never gives requests back: the QP is destroyed, that is proof enough. */
static void life_silent_device_test(struct kunit *test)
{
	struct kd_env *env = kd_connected(test, NULL);
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 8, 1);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	DAT_EVENT event;
	int i;

	fake_ib_hold_flush(env->dev, true);
	for (i = 0; i < 3; i++)
		KD_EXPECT_OK(test, kd_post(env->ep, KD_WRITE, 1, &iov, i, &remote, i == 1 ?
					   DAT_COMPLETION_SUPPRESS_FLAG : 0));
	KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, 9, NULL, 0));
	kd_end(env, DAT_CONNECTION_EVENT_DISCONNECTED);
	for (i = 0; i < 3; i++) {
		KUNIT_ASSERT_TRUE(test, kd_next(env->req, &event));
		KUNIT_EXPECT_EQ(test,
				event.event_data.dto_completion_event_data.user_cookie.as_64,
				(u64)i);
		KUNIT_EXPECT_EQ(test, (int)event.event_data.dto_completion_event_data.status,
				(int)DAT_DTO_ERR_FLUSHED);
	}
	KD_EXPECT_EMPTY(test, env->req);
	KUNIT_ASSERT_TRUE(test, kd_next(env->recv, &event));
	KD_EXPECT_EMPTY(test, env->recv);
}

#define BUSY_LONG	(10 * HZ)

/**
 * struct busy - somebody in the middle of destroying something
 * @env: what there is
 * @at: the device has been asked to
 * @go: it may
 * @freed: it has
 * @other: somebody else is through
 * @handle: of what is freed
 * @object: what that is
 * @ret: what came of it
 * @other_ret: and of what somebody else did
 */
struct busy {
	struct kd_env *env;
	struct completion at;
	struct completion go;
	struct completion freed;
	struct completion other;
	DAT_HANDLE handle;
	enum life_object object;
	DAT_RETURN ret;
	DAT_RETURN other_ret;
};

static void busy_block(void *arg)
{
	struct busy *busy = arg;

	complete_all(&busy->at);
	wait_for_completion(&busy->go);
}

static int busy_freer(void *arg)
{
	struct busy *busy = arg;

	busy->ret = life_free(busy->object, busy->handle);
	complete_all(&busy->freed);
	return 0;
}

/* Another instance, with an EP; and one that is reset, as every reconnect does. */
static DAT_RETURN busy_live(struct busy *busy)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia = kd_ia_more(busy->env, &async);
	DAT_PZ_HANDLE pz;
	DAT_EP_HANDLE ep;
	DAT_RETURN ret;

	ret = dat_pz_create(ia, &pz);
	if (ret == DAT_SUCCESS)
		ret = dat_ep_create(ia, pz, DAT_HANDLE_NULL, DAT_HANDLE_NULL, DAT_HANDLE_NULL,
				    NULL, &ep);
	if (ret == DAT_SUCCESS)
		ret = dat_ep_reset(busy->env->ep);
	if (ret == DAT_SUCCESS)
		ret = dat_ep_free(ep);
	if (ret == DAT_SUCCESS)
		ret = dat_pz_free(pz);
	dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
	return ret;
}

static int busy_other(void *arg)
{
	struct busy *busy = arg;

	busy->other_ret = busy_live(busy);
	complete_all(&busy->other);
	return 0;
}

static int busy_unplugger(void *arg)
{
	struct busy *busy = arg;

	fake_ib_unplug(busy->env->dev);
	complete_all(&busy->other);
	return 0;
}

static void busy_init(struct busy *busy, struct kd_env *env)
{
	memset(busy, 0, sizeof(*busy));
	busy->env = env;
	init_completion(&busy->at);
	init_completion(&busy->go);
	init_completion(&busy->freed);
	init_completion(&busy->other);
}

static bool busy_start(struct kunit *test, int (*fn)(void *arg), struct busy *busy)
{
	struct task_struct *task = kthread_run(fn, busy, "kdapl_busy");

	KUNIT_EXPECT_FALSE(test, IS_ERR(task));
	return !IS_ERR(task);
}

/* What the device is destroying when the others come. */
static const struct busy_kind {
	const char *name;
	enum life_object object;
	enum fake_ib_moment moment;
} busy_kinds[] = {
	{ "LMR", LIFE_LMR, FAKE_IB_DESTROY_MR },
	{ "EVD", LIFE_EVD, FAKE_IB_DESTROY_CQ },
	{ "SRQ", LIFE_SRQ, FAKE_IB_DESTROY_SRQ },
	{ "registration QP", LIFE_PZ, FAKE_IB_DESTROY_QP },
	{ "PZ", LIFE_PZ, FAKE_IB_DESTROY_PD },
};

/* A PZ that has had an LMR has a QP of its own to register by. */
static void busy_make(struct busy *busy, const struct busy_kind *kind)
{
	struct kd_env *env = busy->env;
	DAT_HANDLE lmr;

	busy->object = kind->object;
	KD_ASSERT_OK(env->test, life_make(env, kind->object, &busy->handle));
	if (kind->object == LIFE_PZ) {
		swap(env->pz2, busy->handle);
		KD_ASSERT_OK(env->test, life_make(env, LIFE_LMR, &lmr));
		swap(env->pz2, busy->handle);
		KD_EXPECT_OK(env->test, dat_lmr_free(lmr));
	}
}

static void busy_others_test(struct kunit *test)
{
	struct kd_env *env = kd_connected(test, NULL);
	struct busy busy;
	DAT_EVENT event;
	int i;

	for (i = 0; i < ARRAY_SIZE(busy_kinds); i++) {
		const struct busy_kind *kind = &busy_kinds[i];

		busy_init(&busy, env);
		busy_make(&busy, kind);
		if (i)
			kd_connect(env);
		kd_end(env, DAT_CONNECTION_EVENT_DISCONNECTED);
		fake_ib_at(env->dev, kind->moment, 1, busy_block, &busy);
		if (!busy_start(test, busy_freer, &busy))
			return;
		KUNIT_EXPECT_TRUE_MSG(test, wait_for_completion_timeout(&busy.at, BUSY_LONG), "%s",
				      kind->name);
		if (!busy_start(test, busy_other, &busy))
			complete_all(&busy.other);
		KUNIT_EXPECT_TRUE_MSG(test, wait_for_completion_timeout(&busy.other, BUSY_LONG),
				      "others wait while the device destroys a %s", kind->name);
		KUNIT_EXPECT_FALSE(test, completion_done(&busy.freed));
		complete_all(&busy.go);
		wait_for_completion(&busy.freed);
		wait_for_completion(&busy.other);
		KD_EXPECT_OK(test, busy.ret);
		KD_EXPECT_OK(test, busy.other_ret);
		env->qp = kd_conn_of(env)->qp;
		KUNIT_ASSERT_TRUE(test, kd_next(env->conn, &event));
	}
}

/*
 * The device goes while an object is on its way out, and the removal waits. Or the other way
 * round: removal is at it when the consumer frees the object. It is destroyed once.
 */
static void busy_unplug(struct kunit *test, const struct busy_kind *kind, bool late)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kdapl_ia *ia = kdapl_obj_get(env->ia, DAT_HANDLE_TYPE_IA);
	struct fake_ib_live live;
	struct busy busy;
	int i;

	busy_init(&busy, env);
	busy_make(&busy, kind);
	fake_ib_at(env->dev, kind->moment, 1, busy_block, &busy);
	if (!busy_start(test, late ? busy_unplugger : busy_freer, &busy))
		return;
	KUNIT_EXPECT_TRUE(test, wait_for_completion_timeout(&busy.at, BUSY_LONG));
	if (!busy_start(test, late ? busy_freer : busy_unplugger, &busy))
		complete_all(late ? &busy.freed : &busy.other);
	for (i = 0; i < 500 && !READ_ONCE(ia->dev->gone); i++)
		kd_pause();
	KUNIT_EXPECT_TRUE(test, READ_ONCE(ia->dev->gone));
	if (late)
		kd_pause();
	KUNIT_EXPECT_FALSE_MSG(test, completion_done(&busy.other), "%s", kind->name);
	complete_all(&busy.go);
	wait_for_completion(&busy.freed);
	wait_for_completion(&busy.other);
	KD_EXPECT_OK(test, busy.ret);
	fake_ib_live(env->dev, &live);
	KUNIT_EXPECT_EQ_MSG(test, live.pds + live.mrs + live.cqs + live.qps + live.srqs, 0, "%s",
			    kind->name);
	kdapl_obj_put(&ia->obj);
}

static void busy_unplug_test(struct kunit *test)
{
	int i;

	for (i = 0; i < 2 * ARRAY_SIZE(busy_kinds); i++) {
		if (i)
			kd_again(test);
		busy_unplug(test, &busy_kinds[i / 2], i & 1);
	}
}

/* All that a consumer calls to be connected again; the device looks at work items as well. */
static void busy_noio_test(struct kunit *test)
{
	struct kd_env *env = kd_connected(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 8, 1);
	DAT_EP_HANDLE ep;
	int i;

	fake_ib_frugal(env->dev, true);
	for (i = 0; i < 3; i++)
		KD_EXPECT_OK(test, kd_post(env->ep, KD_WRITE, 1, &iov, i, &remote, 0));
	KD_EXPECT_OK(test, dat_ep_disconnect(env->ep, DAT_CLOSE_ABRUPT_FLAG));
	for (i = 0; i < 500 && READ_ONCE(env->kep->state) != DAT_EP_STATE_DISCONNECTED; i++)
		kd_pause();
	KD_EXPECT_OK(test, dat_ep_reset(env->ep));
	KUNIT_EXPECT_EQ_MSG(test, fake_ib_violations(env->dev), 0, "reset: %s",
			    fake_ib_last_violation(env->dev));
	KD_EXPECT_OK(test, dat_ep_create(env->ia, env->pz, env->recv, env->req, env->conn, NULL,
					 &ep));
	KUNIT_EXPECT_EQ_MSG(test, fake_ib_violations(env->dev), 0, "create: %s",
			    fake_ib_last_violation(env->dev));
	KD_EXPECT_OK(test, dat_ep_free(ep));
	KUNIT_EXPECT_EQ_MSG(test, fake_ib_violations(env->dev), 0, "free: %s",
			    fake_ib_last_violation(env->dev));
	fake_ib_frugal(env->dev, false);
}

static struct kunit_case life_cases[] = {
	KD_CASE(life_subtype_test, "PZ-01,LMR-08,SRQ-CR-04: which resource there is no more of"),
	KD_CASE(life_closing_test, "IA-CLOSE-02: no object is made in an IA that is closing"),
	KD_CASE(life_nth_verb_test, "GEN-06,GEN-07: every verb of every creation fails once"),
	KD_CASE(life_registration_test, "GEN-06: a dead registration QP is replaced"),
	KD_CASE(life_unplug_test, "EPSM-24: the device goes while an EP is connected"),
	KD_CASE(life_grace_test, "EP-FREE-03,EP-RST-03: nobody waits for a grace period"),
	KD_CASE(life_silent_device_test, "FLUSH-01: a device that never answers"),
	KD_CASE(busy_others_test, "EP-RST-03: others go on while an object is being destroyed"),
	KD_CASE(busy_unplug_test, "EPSM-24: removal and freeing wait for each other"),
	KD_CASE(busy_noio_test, "EP-RST-03: nothing on the way to a connection waits for I/O"),
	{}
};

static struct kunit_suite life_suite = {
	.name = "kdapl-life",
	.suite_init = kd_suite_init,
	.suite_exit = kd_suite_exit,
	.init = kd_init,
	.exit = life_exit,
	.test_cases = life_cases,
};

kunit_test_suite(life_suite);
