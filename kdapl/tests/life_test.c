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
#include <linux/rcupdate.h>

#include "kd_upcall.h"

enum life_object {
	LIFE_IA, LIFE_PZ, LIFE_LMR, LIFE_EVD, LIFE_EP, LIFE_SRQ, LIFE_SRQ_EP, LIFE_OBJECTS
};

static const char * const life_names[] = { "IA", "PZ", "LMR", "EVD", "EP", "SRQ", "EP of an SRQ" };

static DAT_SRQ_HANDLE life_srq;		/* of LIFE_SRQ_EP */

static DAT_RETURN life_make(struct kd_env *env, enum life_object object, DAT_HANDLE *handle)
{
	DAT_SRQ_ATTR srq_attr = { .max_recv_dtos = 8, .max_recv_iov = 1 };
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	char name[DAT_NAME_MAX_LENGTH];
	struct kd_mem mem = {};
	DAT_EP_ATTR attr;
	DAT_RETURN ret;

	switch (object) {
	case LIFE_IA:
		snprintf(name, sizeof(name), "%s-1", fake_ib_name(env->dev));
		return dat_ia_open(name, 8, &evd, handle);
	case LIFE_PZ:
		return dat_pz_create(env->ia, handle);
	case LIFE_LMR:
		ret = kd_lmr_create(env->ia, env->pz2, env->buf, 100, DAT_MEM_PRIV_ALL_FLAG, &mem);
		*handle = mem.lmr;
		return ret;
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
	static DAT_RETURN (*const frees[])(DAT_HANDLE handle) = {
		kd_close_abrupt, dat_pz_free, dat_lmr_free, dat_evd_free, dat_ep_free, dat_srq_free,
		dat_ep_free,
	};

	return frees[object](handle);
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
	enum life_object object;
	DAT_HANDLE handle;
	DAT_RETURN ret;

	life_make_srq(env);
	kd_ia(env)->closing = true;
	for (object = LIFE_PZ; object < LIFE_OBJECTS; object++) {
		ret = life_make(env, object, &handle);
		KUNIT_EXPECT_EQ_MSG(test, (u32)DAT_GET_TYPE(ret), (u32)DAT_INVALID_HANDLE, "%s",
				    life_names[object]);
		if (ret == DAT_SUCCESS)
			life_free(object, handle);
	}
	kd_ia(env)->closing = false;
}

/* A call may have found the null EVD of an IA that is then closed, and look at it later. */
static void life_null_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE handle = kd_ia_more(env, &async);
	struct kdapl_ia *ia = kdapl_obj_get(handle, DAT_HANDLE_TYPE_IA);
	struct kdapl_evd *evd;

	KUNIT_ASSERT_NOT_NULL(test, ia);
	evd = kdapl_evd_null(ia);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(test, evd);
	KD_EXPECT_OK(test, dat_ia_close(handle, DAT_CLOSE_ABRUPT_FLAG));
	/* the last reference of the IA is dropped in the background */
	rcu_barrier();
	flush_workqueue(kdapl_reap_wq);
	KUNIT_ASSERT_EQ(test, refcount_read(&evd->obj.ref), 1U);
	KUNIT_EXPECT_EQ(test, kdapl_obj_use(&evd->obj), -ESTALE);
	KUNIT_EXPECT_PTR_EQ(test, kdapl_evd_null(ia), (struct kdapl_evd *)ERR_PTR(-ESHUTDOWN));
	kdapl_obj_put(&evd->obj);
	kdapl_obj_put(&ia->obj);
}

static bool life_as_before(struct kd_env *env, const struct fake_ib_live *before)
{
	struct fake_ib_live now;

	fake_ib_live(env->dev, &now);
	return !memcmp(before, &now, sizeof(now));
}

static void life_nth_verb_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct fake_ib_live before;
	enum life_object object;
	DAT_HANDLE handle;
	DAT_RETURN ret;
	int n;

	life_make_srq(env);
	for (object = 0; object < LIFE_OBJECTS; object++) {
		for (n = 1; n < 50; n++) {
			flush_workqueue(kdapl_reap_wq);	/* dat_ep_free() waits a moment only */
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
			KUNIT_EXPECT_TRUE_MSG(test,
					      DAT_GET_TYPE(ret) == DAT_INSUFFICIENT_RESOURCES ||
					      DAT_GET_TYPE(ret) == DAT_INTERNAL_ERROR,
					      "%s, verb %d: %#x", life_names[object], n, ret);
			/* nothing stays behind; freeing may go on in the background */
			KD_WAIT(test, life_as_before(env, &before));
		}
	}
}

/* How often something is freed until it is said that each time a grace period went by. */
#define GRACE_TRIES	50

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
	int i, n;

	if (IS_ENABLED(CONFIG_TINY_RCU))
		kunit_skip(test, "with one CPU every sleep is a grace period");
	/* and of a reset */
	for (i = 0; i <= ARRAY_SIZE(objects); i++) {
		for (n = 0, at_once = false; n < GRACE_TRIES && !at_once; n++) {
			if (i < ARRAY_SIZE(objects)) {
				KD_ASSERT_OK(test, life_make(env, objects[i], &handle));
			} else {
				kd_end(env, DAT_CONNECTION_EVENT_DISCONNECTED);
				kd_drain(env->conn);
			}
			before = get_state_synchronize_rcu();
			if (i < ARRAY_SIZE(objects))
				KD_EXPECT_OK(test, life_free(objects[i], handle));
			else
				KD_EXPECT_OK(test, dat_ep_reset(env->ep));
			at_once = !poll_state_synchronize_rcu(before);
			if (i == ARRAY_SIZE(objects)) {
				env->qp = kd_conn_of(env)->qp;
				kd_connect(env);
			}
		}
		KUNIT_EXPECT_TRUE_MSG(test, at_once, "object %d", i);
	}
}

/**
 * struct busy - somebody in the middle of destroying something
 * @env: what there is
 * @at: the device has been asked to
 * @go: it may
 * @handle: of what is freed
 * @object: what that is
 * @freer: the thread that frees it
 * @other: somebody else
 * @ret: what came of the one
 * @other_ret: and of the other
 */
struct busy {
	struct kd_env *env;
	struct completion at;
	struct completion go;
	DAT_HANDLE handle;
	enum life_object object;
	struct kd_aside freer;
	struct kd_aside other;
	DAT_RETURN ret;
	DAT_RETURN other_ret;
};

static void busy_block(void *arg)
{
	struct busy *busy = arg;

	complete_all(&busy->at);
	wait_for_completion(&busy->go);
}

static void busy_free(void *arg)
{
	struct busy *busy = arg;

	busy->ret = life_free(busy->object, busy->handle);
}

/* Another instance, with an EP; and one that is reset, as every reconnect does. */
static void busy_live(void *arg)
{
	struct busy *busy = arg;
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia = kd_ia_more(busy->env, &async);
	DAT_PZ_HANDLE pz;
	DAT_EP_HANDLE ep;

	busy->other_ret = dat_pz_create(ia, &pz) ?:
			  dat_ep_create(ia, pz, NULL, NULL, NULL, NULL, &ep) ?:
			  dat_ep_reset(busy->env->ep) ?: dat_ep_free(ep) ?: dat_pz_free(pz);
	dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
}

static void busy_unplug(void *arg)
{
	struct busy *busy = arg;

	fake_ib_unplug(busy->env->dev);
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

	init_completion(&busy->at);
	init_completion(&busy->go);
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
	struct busy *busy = kunit_kzalloc(test, sizeof(*busy), GFP_KERNEL);
	struct kd_env *env = kd_connected(test, NULL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, busy);
	busy->env = env;
	for (i = 0; i < ARRAY_SIZE(busy_kinds); i++) {
		const struct busy_kind *kind = &busy_kinds[i];

		busy_make(busy, kind);
		if (i)
			kd_connect(env);
		kd_end(env, DAT_CONNECTION_EVENT_DISCONNECTED);
		fake_ib_at(env->dev, kind->moment, 1, busy_block, busy);
		kd_aside(test, &busy->freer, busy_free, busy);
		KUNIT_EXPECT_TRUE_MSG(test, wait_for_completion_timeout(&busy->at, KD_LONG), "%s",
				      kind->name);
		kd_aside(test, &busy->other, busy_live, busy);
		KUNIT_EXPECT_TRUE_MSG(test, kd_aside_returns(&busy->other),
				      "others wait while the device destroys a %s", kind->name);
		KUNIT_EXPECT_FALSE(test, kd_aside_returned(&busy->freer, 0));
		complete_all(&busy->go);
		KUNIT_ASSERT_TRUE(test, kd_aside_wait(&busy->freer));
		KUNIT_ASSERT_TRUE(test, kd_aside_wait(&busy->other));
		KD_EXPECT_OK(test, busy->ret);
		KD_EXPECT_OK(test, busy->other_ret);
		env->qp = kd_conn_of(env)->qp;
		kd_drain(env->conn);
	}
}

/*
 * The device goes while an object is on its way out, and the removal waits. Or the other way
 * round: removal is at it when the consumer frees the object. It is destroyed once.
 */
static void busy_unplug_test(struct kunit *test)
{
	struct busy *busy = kunit_kzalloc(test, sizeof(*busy), GFP_KERNEL);
	const struct busy_kind *kind;
	struct fake_ib_live live;
	struct kdapl_device *dev;
	bool late;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, busy);
	for (i = 0; i < 2 * ARRAY_SIZE(busy_kinds); i++) {
		kind = &busy_kinds[i / 2];
		late = i & 1;
		busy->env = kd_open(test, NULL);
		dev = kd_ia(busy->env)->dev;
		busy_make(busy, kind);
		fake_ib_at(busy->env->dev, kind->moment, 1, busy_block, busy);
		kd_aside(test, late ? &busy->other : &busy->freer, late ? busy_unplug : busy_free,
			 busy);
		KUNIT_EXPECT_TRUE(test, wait_for_completion_timeout(&busy->at, KD_LONG));
		kd_aside(test, late ? &busy->freer : &busy->other, late ? busy_free : busy_unplug,
			 busy);
		KD_WAIT(test, READ_ONCE(dev->gone));
		KUNIT_EXPECT_FALSE_MSG(test, kd_aside_returned(&busy->other, KD_MOMENT), "%s",
				       kind->name);
		complete_all(&busy->go);
		KUNIT_ASSERT_TRUE(test, kd_aside_wait(&busy->freer));
		KUNIT_ASSERT_TRUE(test, kd_aside_wait(&busy->other));
		KD_EXPECT_OK(test, busy->ret);
		fake_ib_live(busy->env->dev, &live);
		KUNIT_EXPECT_EQ_MSG(test, live.pds + live.mrs + live.cqs + live.qps + live.srqs, 0,
				    "%s", kind->name);
		kd_again(test);
	}
}

static void hold_unplug(void *arg)
{
	fake_ib_unplug(arg);
}

/* The cm_id that finds the way to a destination: rdma_cm lets its device go a little too early. */
static void busy_hold_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct rdma_cm_id id = { .device = fake_ib_device(env->dev), .port_num = 2 };
	char name[DAT_NAME_MAX_LENGTH], expect[DAT_NAME_MAX_LENGTH];
	struct kd_aside unplug;
	struct kdapl_device *dev;

	KUNIT_EXPECT_NULL(test, kdapl_open_hold(&id, name));	/* it has one port */
	id.port_num = 1;
	dev = kdapl_open_hold(&id, name);
	KUNIT_ASSERT_PTR_EQ(test, dev, kd_ia(env)->dev);
	snprintf(expect, sizeof(expect), "%s-1", fake_ib_name(env->dev));
	KUNIT_EXPECT_STREQ(test, name, expect);
	kd_aside(test, &unplug, hold_unplug, env->dev);
	KD_WAIT(test, READ_ONCE(dev->gone));
	KUNIT_EXPECT_FALSE(test, kd_aside_returned(&unplug, 300));
	/* what is on its way out is not held any more */
	KUNIT_EXPECT_NULL(test, kdapl_open_hold(&id, name));
	kdapl_device_id_gone(dev);
	KUNIT_EXPECT_TRUE(test, kd_aside_wait(&unplug));
	id.device = NULL;
	KUNIT_EXPECT_NULL(test, kdapl_open_hold(&id, name));
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
	KD_WAIT(test, kd_state(env, env->ep) == DAT_EP_STATE_DISCONNECTED);
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
	KD_CASE(life_null_test, "IA-CLOSE-02: what a closing IA takes from calls under way"),
	KD_CASE(life_nth_verb_test, "GEN-06,GEN-07: every verb of every creation fails once"),
	KD_CASE(life_grace_test, "EP-FREE-03,EP-RST-03: nobody waits for a grace period"),
	KD_CASE(busy_others_test, "EP-RST-03: others go on while an object is being destroyed"),
	KD_CASE(busy_unplug_test, "EPSM-24: removal and freeing wait for each other"),
	KD_CASE(busy_hold_test, "D-82,EPSM-24: removal waits for the id that looks for a way"),
	KD_CASE(busy_noio_test, "EP-RST-03: nothing on the way to a connection waits for I/O"),
	{}
};

KD_SUITE("kdapl-life", life_cases, kd_init, life_exit);
