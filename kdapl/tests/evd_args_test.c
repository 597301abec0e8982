// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Arguments of the EVD calls: every combination of good and bad ones, which of
 * them is named, and that a refused call has changed nothing.
 */
#include <linux/delay.h>

#include "kd_conn.h"
#include "kd_upcall.h"

#define ARG_QLEN	4
#define ARG_STREAMS	(DAT_EVD_DEFAULT_FLAG | DAT_EVD_SOFTWARE_FLAG)

/* No upcall with this function is ever started. */
static void arg_never(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	WARN_ONCE(1, "an upcall nobody asked for");
}

static const DAT_UPCALL_OBJECT arg_func = { .upcall_func = arg_never };
static const DAT_UPCALL_OBJECT arg_func2 = { (void *)1, arg_never };
static const DAT_UPCALL_OBJECT arg_null = { .instance_data = (void *)2 };

static DAT_EVD_HANDLE arg_evd(struct kd_env *env, int flags)
{
	DAT_EVD_HANDLE evd;

	KD_ASSERT_OK(env->test, dat_evd_kcreate(env->ia, ARG_QLEN, DAT_UPCALL_DISABLE, NULL, flags,
						&evd));
	return evd;
}

static DAT_RETURN arg_error(int n)
{
	static const DAT_RETURN_SUBTYPE subtypes[] = {
		DAT_NO_SUBTYPE, DAT_INVALID_ARG1, DAT_INVALID_ARG2, DAT_INVALID_ARG3,
		DAT_INVALID_ARG4, DAT_INVALID_ARG5, DAT_INVALID_ARG6, DAT_INVALID_ARG7,
	};

	return n ? DAT_ERROR(DAT_INVALID_PARAMETER, subtypes[n]) : DAT_SUCCESS;
}

static bool arg_same_param(const DAT_EVD_PARAM *a, const DAT_EVD_PARAM *b)
{
	return a->ia_handle == b->ia_handle && a->evd_qlen == b->evd_qlen &&
	       a->upcall_policy == b->upcall_policy && a->evd_flags == b->evd_flags &&
	       a->upcall.upcall_func == b->upcall.upcall_func &&
	       a->upcall.instance_data == b->upcall.instance_data;
}

static void arg_query(struct kunit *test, DAT_EVD_HANDLE evd, DAT_EVD_PARAM *param)
{
	memset(param, 0, sizeof(*param));
	KD_EXPECT_OK(test, dat_evd_query(evd, DAT_EVD_FIELD_ALL, param));
}

static bool arg_policy_on(int policy)
{
	return policy == DAT_UPCALL_SINGLE_INSTANCE || policy == DAT_UPCALL_NOTIFY ||
	       policy == DAT_UPCALL_MANY;
}

/* Policies there are, and all kinds of others. */
static const int arg_policies[] = {
	DAT_UPCALL_DISABLE, DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_NOTIFY, DAT_UPCALL_MANY,
	DAT_UPCALL_TEARDOWN, -2, 3, 4, 50, 99, 101, 1000, 0x10001, INT_MIN, INT_MAX,
};

static bool arg_policy_known(int policy)
{
	return arg_policy_on(policy) || policy == DAT_UPCALL_DISABLE ||
	       policy == DAT_UPCALL_TEARDOWN;
}

/* ---- handles ---- */

#define ARG_BAD(call)	KD_EXPECT_RET(test, call, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1)

/* Named before any other argument. */
static void arg_handle_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_HANDLE bad[] = {
		arg_evd(env, DAT_EVD_SOFTWARE_FLAG), DAT_HANDLE_NULL, env->ia, env->pz,
		(DAT_HANDLE)~0UL, (DAT_HANDLE)env,
	};
	int i;

	KD_EXPECT_OK(test, dat_evd_free(bad[0]));
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		ARG_BAD(dat_evd_modify_upcall(bad[i], 77, &arg_null, 7));
		ARG_BAD(dat_evd_resize(bad[i], 0));
		ARG_BAD(dat_evd_post_se(bad[i], NULL));
		ARG_BAD(dat_evd_query(bad[i], 0x20, NULL));
		ARG_BAD(dat_evd_dequeue(bad[i], NULL));
		ARG_BAD(dat_evd_free(bad[i]));
		KD_EXPECT_RET(test, kdat_evd_create(bad[i] == env->ia ? env->recv : bad[i], 0, 77,
						    NULL, 0, NULL, NULL),
			      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	}
}

/* ---- dat_evd_modify_upcall ---- */

struct arg_modify {
	const DAT_UPCALL_OBJECT *kept;	/* what is there already */
	int before;
	int policy;
	const DAT_UPCALL_OBJECT *upcall;
	int flag;
};

static DAT_RETURN arg_modify_want(const struct arg_modify *row)
{
	if (!arg_policy_known(row->policy))
		return arg_error(2);
	if (arg_policy_on(row->policy) && !(row->upcall ?: row->kept)->upcall_func)
		return arg_error(3);
	if (row->flag != DAT_UPCALL_INVOC_NEW && row->flag != DAT_UPCALL_INVOC_ANY)
		return arg_error(4);
	return DAT_SUCCESS;
}

static bool arg_modify_one(struct kunit *test, DAT_EVD_HANDLE evd, const struct arg_modify *row)
{
	DAT_RETURN want = arg_modify_want(row);
	DAT_EVD_PARAM before, after;

	KD_EXPECT_OK(test, dat_evd_modify_upcall(evd, row->before, row->kept,
						 DAT_UPCALL_INVOC_NEW));
	arg_query(test, evd, &before);
	KUNIT_EXPECT_PTR_EQ(test, before.upcall.instance_data, row->kept->instance_data);
	KUNIT_EXPECT_EQ_MSG(test, (u32)dat_evd_modify_upcall(evd, row->policy, row->upcall,
							     row->flag), (u32)want,
			    "policy %d, upcall %p over %p, flag %d", row->policy, row->upcall,
			    row->kept, row->flag);
	arg_query(test, evd, &after);
	if (want == DAT_SUCCESS) {
		before.upcall_policy = arg_policy_on(row->policy) ? row->policy :
								    DAT_UPCALL_DISABLE;
		if (row->upcall)
			before.upcall = *row->upcall;
	}
	KUNIT_EXPECT_TRUE_MSG(test, arg_same_param(&before, &after),
			      "policy %d, upcall %p over %p, flag %d", row->policy, row->upcall,
			      row->kept, row->flag);
	return want == DAT_SUCCESS;
}

/* All combinations, on EVDs without function, with one, and on one that calls. */
static void arg_modify_test(struct kunit *test)
{
	static const int flags[] = { DAT_UPCALL_INVOC_NEW, DAT_UPCALL_INVOC_ANY, 2, -1, 0x100 };
	struct kd_env *env = kd_open(test, NULL);
	struct kd_sink *sink = kd_sink(test);
	const DAT_UPCALL_OBJECT busy = kd_sink_object(sink);
	const DAT_UPCALL_OBJECT *kept[] = { &arg_null, &arg_func, &busy };
	const DAT_UPCALL_OBJECT *upcalls[] = { DAT_UPCALL_SAME, &arg_func2, &arg_null };
	DAT_EVD_HANDLE evd = arg_evd(env, DAT_EVD_SOFTWARE_FLAG);
	struct arg_modify row;
	int i, n = 0;

	sink->evd = evd;
	for (i = 0; i < 9 * (int)(ARRAY_SIZE(arg_policies) * ARRAY_SIZE(flags)); i++) {
		row.kept = kept[i % 3];
		row.before = i % 3 == 2 ? DAT_UPCALL_SINGLE_INSTANCE : DAT_UPCALL_DISABLE;
		row.upcall = upcalls[i / 3 % 3];
		row.flag = flags[i / 9 % ARRAY_SIZE(flags)];
		row.policy = arg_policies[i / 9 / ARRAY_SIZE(flags)];
		if (arg_modify_one(test, evd, &row) || i % 3 != 2)
			continue;
		/* it goes on calling, with the old object */
		KD_EXPECT_OK(test, kd_post_se(evd, KD_ID(1, n++)));
		KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, n, n));
	}
	KUNIT_EXPECT_GT(test, n, 100);
	KD_EXPECT_OK(test, dat_evd_free(evd));
	kd_sink_expect(test, sink, n);
}

/* ---- dat_evd_resize, dat_evd_post_se ---- */

static void arg_resize_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_EVD_HANDLE evd = arg_evd(env, DAT_EVD_SOFTWARE_FLAG);
	DAT_EVD_PARAM before, after;
	DAT_IA_ATTR attr;
	int lengths[] = { 0, -1, INT_MIN, INT_MAX, 0, 1, ARG_QLEN, 0 };
	int i, wrong;

	KD_ASSERT_OK(test, dat_ia_query(env->ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL));
	lengths[4] = attr.max_evd_qlen + 1;
	lengths[7] = attr.max_evd_qlen;
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		wrong = lengths[i] <= 0 || lengths[i] > attr.max_evd_qlen ? 2 : 0;
		arg_query(test, evd, &before);
		KUNIT_EXPECT_EQ_MSG(test, (u32)dat_evd_resize(evd, lengths[i]),
				    (u32)arg_error(wrong), "length %d", lengths[i]);
		arg_query(test, evd, &after);
		if (!wrong) {
			KUNIT_EXPECT_GE(test, after.evd_qlen, lengths[i]);
			before.evd_qlen = after.evd_qlen;
		}
		KUNIT_EXPECT_TRUE(test, arg_same_param(&before, &after));
	}
	KD_EXPECT_OK(test, dat_evd_free(evd));
}

static void arg_post_se_test(struct kunit *test)
{
	static const u32 numbers[] = {
		DAT_SOFTWARE_EVENT, 0, DAT_DTO_COMPLETION_EVENT, DAT_CONNECTION_REQUEST_EVENT,
		DAT_CONNECTION_EVENT_ESTABLISHED, DAT_ASYNC_ERROR_EVD_OVERFLOW,
		DAT_SOFTWARE_EVENT + 1, ~0U,
	};
	struct kd_env *env = kd_open(test, NULL);
	/* all streams but this one */
	DAT_EVD_HANDLE evd = arg_evd(env, DAT_EVD_SOFTWARE_FLAG | DAT_EVD_DTO_FLAG);
	DAT_EVD_HANDLE other = arg_evd(env, DAT_EVD_DEFAULT_FLAG);
	DAT_EVENT event, out, copy;
	int i;

	KD_EXPECT_RET(test, dat_evd_post_se(evd, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	for (i = 0; i < ARRAY_SIZE(numbers); i++) {
		memset(&event, 0x77, sizeof(event));
		event.event_number = numbers[i];
		event.event_data.software_event_data.pointer = &event;
		copy = event;
		KUNIT_EXPECT_EQ_MSG(test, (u32)dat_evd_post_se(other, &event), (u32)arg_error(1),
				    "number %d", i);
		KUNIT_EXPECT_EQ_MSG(test, (u32)dat_evd_post_se(evd, &event),
				    (u32)arg_error(i ? 2 : 0), "number %d", i);
		KUNIT_EXPECT_EQ(test, memcmp(&copy, &event, sizeof(event)), 0);
	}
	/* what was posted comes, with the EVD it was posted to */
	memset(&event, 0, sizeof(event));
	KUNIT_ASSERT_TRUE(test, kd_next(evd, &out));
	KUNIT_EXPECT_EQ(test, (u32)out.event_number, (u32)DAT_SOFTWARE_EVENT);
	KUNIT_EXPECT_PTR_EQ(test, out.evd_handle, evd);
	KUNIT_EXPECT_PTR_EQ(test, out.event_data.software_event_data.pointer, (void *)&event);
	KD_EXPECT_EMPTY(test, evd);
	KD_EXPECT_EMPTY(test, other);
	KD_EXPECT_OK(test, dat_evd_free(evd));
	KD_EXPECT_OK(test, dat_evd_free(other));
}

/* ---- creation ---- */

/* One call of kdat_evd_create() or dat_evd_kcreate(), and which argument is wrong. */
struct arg_create {
	int qlen;
	int policy;
	const DAT_UPCALL_OBJECT *upcall;
	int flags;
	struct kdat_evd_attr attr;
	int wrong;
};

/* What was asked for is there, and can be looked at, dequeued from, and freed once. */
static void arg_created(struct kunit *test, DAT_EVD_HANDLE evd, const DAT_EVD_PARAM *want)
{
	DAT_EVD_PARAM param;
	DAT_EVENT event;

	arg_query(test, evd, &param);
	KUNIT_EXPECT_GE(test, param.evd_qlen, want->evd_qlen);
	param.evd_qlen = want->evd_qlen;
	KUNIT_EXPECT_TRUE_MSG(test, arg_same_param(&param, want), "policy %d, flags %#x",
			      want->upcall_policy, want->evd_flags);
	KD_EXPECT_OK(test, dat_evd_query(evd, 0, NULL));
	KD_EXPECT_RET(test, dat_evd_query(evd, 0x20, &param), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG2);
	KD_EXPECT_RET(test, dat_evd_query(evd, DAT_EVD_FIELD_ALL, NULL), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
	KD_EXPECT_RET(test, dat_evd_dequeue(evd, &event), DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE);
	KD_EXPECT_RET(test, dat_evd_dequeue(evd, NULL), DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	KD_EXPECT_OK(test, dat_evd_free(evd));
	KD_EXPECT_RET(test, dat_evd_free(evd), DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
}

static void arg_create_one(struct kunit *test, const struct arg_create *row, bool ext)
{
	DAT_UPCALL_OBJECT object = row->upcall ? *row->upcall : DAT_UPCALL_NULL;
	DAT_EVD_HANDLE evd = (DAT_EVD_HANDLE)0x5a5a;
	struct kd_env *env = test->priv;
	struct fake_ib_live before, after;
	DAT_EVD_PARAM want = {
		.ia_handle = env->ia, .evd_qlen = row->qlen, .upcall_policy = row->policy,
		.upcall = object, .evd_flags = row->flags,
	};
	DAT_RETURN ret;

	fake_ib_live(env->dev, &before);
	ret = ext ? kdat_evd_create(env->ia, row->qlen, row->policy, row->upcall ? &object : NULL,
				    row->flags, &row->attr, &evd) :
		    dat_evd_kcreate(env->ia, row->qlen, row->policy, row->upcall ? &object : NULL,
				    row->flags, &evd);
	/* the object was copied */
	memset(&object, 0x5a, sizeof(object));
	KUNIT_EXPECT_EQ_MSG(test, (u32)ret, (u32)arg_error(row->wrong),
			    "length %d, policy %d, flags %#x, context %d, vector %d", row->qlen,
			    row->policy, row->flags, row->attr.context, row->attr.comp_vector);
	if (ret == DAT_SUCCESS) {
		arg_created(test, evd, &want);
		return;
	}
	KUNIT_EXPECT_PTR_EQ(test, evd, (DAT_EVD_HANDLE)0x5a5a);
	fake_ib_live(env->dev, &after);
	KUNIT_EXPECT_EQ(test, memcmp(&before, &after, sizeof(before)), 0);
}

static void arg_create_call(struct kunit *test, bool ext)
{
	static const int lengths[] = { 0, -1, INT_MIN };
	struct arg_create row = {
		.qlen = 1, .policy = DAT_UPCALL_DISABLE, .flags = DAT_EVD_SOFTWARE_FLAG,
		.attr = KDAT_EVD_ATTR_INIT,
	};
	int i, bit;

	for (row.wrong = 2, i = 0; i < ARRAY_SIZE(lengths); i++) {
		row.qlen = lengths[i];
		arg_create_one(test, &row, ext);
	}
	row.qlen = 7;
	for (i = 0; i < ARRAY_SIZE(arg_policies); i++) {
		row.policy = arg_policies[i];
		row.wrong = arg_policy_known(row.policy) &&
			    row.policy != DAT_UPCALL_TEARDOWN ? 0 : 3;
		row.upcall = &arg_func2;
		arg_create_one(test, &row, ext);
		if (arg_policy_on(row.policy))
			row.wrong = 4;
		row.upcall = &arg_null;
		arg_create_one(test, &row, ext);
		row.upcall = NULL;
		arg_create_one(test, &row, ext);
	}
	row.policy = DAT_UPCALL_DISABLE;
	row.wrong = 5;
	row.flags = 0;
	arg_create_one(test, &row, ext);
	for (bit = 0; bit < 32; bit++) {
		if (ARG_STREAMS & 1U << bit)
			continue;
		row.flags = 1U << bit;
		arg_create_one(test, &row, ext);
		row.flags |= DAT_EVD_SOFTWARE_FLAG;
		arg_create_one(test, &row, ext);
	}
}

static void arg_create_test(struct kunit *test)
{
	const int sw = DAT_EVD_SOFTWARE_FLAG;
	struct kd_env *env = kd_open(test, NULL);
	DAT_PROVIDER_ATTR *prov = kunit_kzalloc(test, sizeof(*prov), GFP_KERNEL);
	DAT_EVD_HANDLE evd;
	DAT_IA_ATTR ia;

	KUNIT_ASSERT_NOT_NULL(test, prov);
	KD_ASSERT_OK(test, dat_ia_query(env->ia, NULL, DAT_IA_FIELD_ALL, &ia,
					DAT_PROVIDER_FIELD_ALL, prov));
	/* all policies are offered, so none is refused for that */
	KUNIT_EXPECT_EQ(test, (int)prov->upcall_policy, (int)DAT_UPCALL_MANY);
	arg_create_call(test, false);
	arg_create_call(test, true);
	KD_EXPECT_RET(test, kdat_evd_create(env->ia, 1, DAT_UPCALL_DISABLE, NULL, sw, NULL, NULL),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG7);
	KD_EXPECT_RET(test, dat_evd_kcreate(env->ia, 1, DAT_UPCALL_DISABLE, NULL, sw, NULL),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	/* too long is a matter of resources */
	KD_EXPECT_RET(test, kdat_evd_create(env->ia, ia.max_evd_qlen + 1, DAT_UPCALL_DISABLE, NULL,
					    sw, NULL, &evd),
		      DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEVD);
	KD_EXPECT_OK(test, kdat_evd_create(env->ia, ia.max_evd_qlen, DAT_UPCALL_DISABLE, NULL, sw,
					   NULL, &evd));
	KD_EXPECT_OK(test, dat_evd_free(evd));
}

/* The attributes of the extension: contexts by streams, vectors. */
static void arg_context_test(struct kunit *test)
{
	static const int contexts[] = {
		KDAT_EVD_CONTEXT_DEFAULT, KDAT_EVD_CONTEXT_SOFTIRQ, KDAT_EVD_CONTEXT_WORKQUEUE,
		3, -1, INT_MAX, INT_MIN,
	};
	static const int vectors[] = { KDAT_EVD_VECTOR_ANY, 0, 1, INT_MAX, -2, -3, INT_MIN };
	const int quiet = DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG | DAT_EVD_SOFTWARE_FLAG;
	struct arg_create row = {
		.qlen = 1, .policy = DAT_UPCALL_MANY, .upcall = &arg_func,
		.attr = KDAT_EVD_ATTR_INIT,
	};
	int i;

	kd_open(test, NULL);
	for (row.flags = 1; row.flags <= ARG_STREAMS; row.flags++) {
		for (i = 0; i < ARRAY_SIZE(contexts) && !(row.flags & ~ARG_STREAMS); i++) {
			row.attr.context = contexts[i];
			row.wrong = i > 2 || (i == 1 && row.flags & ~quiet) ? 6 : 0;
			arg_create_one(test, &row, true);
		}
	}
	row.flags = DAT_EVD_DTO_FLAG;
	row.attr.context = KDAT_EVD_CONTEXT_DEFAULT;
	for (i = 0; i < ARRAY_SIZE(vectors); i++) {
		row.attr.comp_vector = vectors[i];
		row.wrong = vectors[i] < -1 ? 6 : 0;
		arg_create_one(test, &row, true);
	}
}

/* What an EVD is not made for, it is not fed with. */
static void arg_stream_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_EVD_HANDLE no_dto = arg_evd(env, ARG_STREAMS & ~DAT_EVD_DTO_FLAG);
	DAT_EVD_HANDLE no_conn = arg_evd(env, ARG_STREAMS & ~DAT_EVD_CONNECTION_FLAG);
	DAT_EVD_HANDLE no_cr = arg_evd(env, ARG_STREAMS & ~DAT_EVD_CR_FLAG);
	DAT_EVD_HANDLE no_async = arg_evd(env, ARG_STREAMS & ~DAT_EVD_ASYNC_FLAG);
	DAT_EVD_HANDLE evds[] = { no_dto, no_conn, no_cr, no_async };
	DAT_EVD_HANDLE async = no_async;
	char name[DAT_NAME_MAX_LENGTH];
	DAT_EP_ATTR attr;
	DAT_HANDLE h;
	int i;

	kd_attr(&attr);
	KD_EXPECT_RET(test, dat_ep_create(env->ia, env->pz, no_dto, no_cr, no_cr, &attr, &h),
		      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_RECV);
	KD_EXPECT_RET(test, dat_ep_create(env->ia, env->pz, no_cr, no_dto, no_cr, &attr, &h),
		      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_REQUEST);
	KD_EXPECT_RET(test, dat_ep_create(env->ia, env->pz, no_cr, no_cr, no_conn, &attr, &h),
		      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CONN);
	KD_EXPECT_RET(test, dat_psp_create(env->ia, 7, no_cr, DAT_PSP_CONSUMER_FLAG, &h),
		      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CR);
	snprintf(name, sizeof(name), "%s-1", fake_ib_name(env->dev));
	KD_EXPECT_RET(test, dat_ia_open(name, 8, &async, &h), DAT_INVALID_HANDLE,
		      DAT_INVALID_HANDLE_EVD_ASYNC);
	for (i = 0; i < ARRAY_SIZE(evds); i++)
		KD_EXPECT_OK(test, dat_evd_free(evds[i]));
}

/* Completion vectors: the one asked for, modulo what there is; else all in turn. */
static void arg_vector_test(struct kunit *test)
{
	struct fake_ib_caps caps = { .vectors = 3 };
	struct kd_env *env = kd_open(test, &caps);
	int used[3] = {}, i, vector;
	DAT_EVD_HANDLE evd[6];

	for (i = 0; i < 10; i++) {
		struct kdat_evd_attr attr = { .comp_vector = i < 9 ? i : INT_MAX };

		KD_ASSERT_OK(test, kdat_evd_create(env->ia, 1, DAT_UPCALL_DISABLE, NULL,
						   DAT_EVD_DTO_FLAG, &attr, &evd[0]));
		KUNIT_EXPECT_EQ(test, fake_ib_newest_vector(env->dev), attr.comp_vector % 3);
		KD_EXPECT_OK(test, dat_evd_free(evd[0]));
	}
	for (i = 0; i < ARRAY_SIZE(evd); i++) {
		KD_ASSERT_OK(test, dat_evd_kcreate(env->ia, 1, DAT_UPCALL_DISABLE, NULL,
						   DAT_EVD_DTO_FLAG, &evd[i]));
		vector = fake_ib_newest_vector(env->dev);
		KUNIT_ASSERT_TRUE(test, vector >= 0 && vector < 3);
		used[vector]++;
	}
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, used[i], 2);
	for (i = 0; i < ARRAY_SIZE(evd); i++)
		KD_EXPECT_OK(test, dat_evd_free(evd[i]));
}

/* The device is gone, the EVD is not. */
static void arg_removed_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kd_sink *sink = kd_sink(test);
	DAT_EVD_HANDLE evd;
	DAT_EVENT event;

	KD_ASSERT_OK(test, kd_evd_create(env, ARG_QLEN, DAT_UPCALL_DISABLE, sink,
					 DAT_EVD_SOFTWARE_FLAG | DAT_EVD_DTO_FLAG,
					 KDAT_EVD_CONTEXT_DEFAULT, &evd));
	KD_EXPECT_OK(test, kd_post_se(evd, KD_ID(1, 0)));
	fake_ib_unplug(env->dev);
	KD_EXPECT_OK(test, kd_post_se(evd, KD_ID(1, 1)));
	KUNIT_ASSERT_TRUE(test, kd_next(evd, &event));
	KUNIT_EXPECT_EQ(test, kd_event_id(&event), KD_ID(1, 0));
	KD_EXPECT_OK(test, dat_evd_resize(evd, 2 * ARG_QLEN));
	KD_EXPECT_OK(test, kd_policy(evd, DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_INVOC_ANY));
	KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, 1, 1));
	KD_EXPECT_OK(test, kd_post_se(evd, KD_ID(1, 2)));
	kd_sink_expect(test, sink, 2);
	KUNIT_EXPECT_EQ(test, sink->seen[0].id, KD_ID(1, 1));
	KUNIT_EXPECT_EQ(test, sink->seen[1].id, KD_ID(1, 2));
	KD_EXPECT_OK(test, kd_policy(evd, DAT_UPCALL_TEARDOWN, DAT_UPCALL_INVOC_NEW));
	KD_EXPECT_OK(test, dat_evd_free(evd));
}

/* What a thread does to an EVD that another one frees. */
struct arg_race {
	DAT_EVD_HANDLE evd;
	int wrong;
	bool stop;
};

static void arg_racer(void *arg)
{
	struct arg_race *race = arg;
	DAT_EVENT event;
	int i = 0;
	u32 type;

	while (!READ_ONCE(race->stop)) {
		DAT_EVD_HANDLE evd = READ_ONCE(race->evd);

		switch (i++ % 5) {
		case 0:
			type = dat_evd_resize(evd, 1 + i % 100);
			if (DAT_GET_TYPE(type) == DAT_INVALID_STATE)
				type = DAT_SUCCESS;
			break;
		case 1:
			type = dat_evd_modify_upcall(evd, i & 1 ? DAT_UPCALL_MANY :
						     DAT_UPCALL_DISABLE, DAT_UPCALL_SAME,
						     DAT_UPCALL_INVOC_ANY);
			break;
		case 2:
			type = kd_policy(evd, DAT_UPCALL_TEARDOWN, DAT_UPCALL_INVOC_NEW);
			break;
		case 3:
			type = kd_post_se(evd, KD_ID(1, 0));
			break;
		default:
			type = dat_evd_dequeue(evd, &event);
			break;
		}
		type = DAT_GET_TYPE(type);
		race->wrong += type != DAT_SUCCESS && type != DAT_INVALID_HANDLE &&
			       type != DAT_QUEUE_FULL && type != DAT_QUEUE_EMPTY;
		if (!(i % 16))
			usleep_range(20, 60);
	}
}

/* All calls race with dat_evd_free. The debug kernels see what goes wrong. */
static void arg_free_race_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kd_sink *sink = kd_sink(test);
	struct arg_race race = {};
	struct kd_aside aside[2];
	DAT_EVD_HANDLE evd;
	int i;

	KD_ASSERT_OK(test, kd_evd_create(env, 8, DAT_UPCALL_DISABLE, sink, DAT_EVD_SOFTWARE_FLAG,
					 KDAT_EVD_CONTEXT_DEFAULT, &race.evd));
	for (i = 0; i < 2; i++)
		kd_aside(test, &aside[i], arg_racer, &race);
	for (i = 0; i < 30; i++) {
		kd_pause();
		evd = race.evd;
		KD_EXPECT_OK(test, dat_evd_free(evd));
		KUNIT_EXPECT_EQ(test, sink->started, sink->ended);
		KD_EXPECT_OK(test, kd_evd_create(env, 8, DAT_UPCALL_DISABLE, sink,
						 DAT_EVD_SOFTWARE_FLAG, KDAT_EVD_CONTEXT_DEFAULT,
						 &evd));
		WRITE_ONCE(race.evd, evd);
	}
	WRITE_ONCE(race.stop, true);
	for (i = 0; i < 2; i++)
		KUNIT_EXPECT_TRUE(test, kd_aside_wait(&aside[i]));
	KUNIT_EXPECT_EQ(test, race.wrong, 0);
	KD_EXPECT_OK(test, dat_evd_free(race.evd));
}

static struct kunit_case arg_cases[] = {
	KD_CASE(arg_handle_test, "EVD-MOD-08,GEN-06: handles"),
	KD_CASE(arg_modify_test,
		"EVD-MOD-01,EVD-MOD-04,EVD-MOD-08,EVD-UP-10,SIL-41: dat_evd_modify_upcall"),
	KD_CASE(arg_resize_test, "EVD-RSZ-02: dat_evd_resize"),
	KD_CASE(arg_post_se_test, "EVD-SE-01,EVD-SE-02: dat_evd_post_se"),
	KD_CASE(arg_create_test,
		"EVD-CR-01,EVD-CR-02,EVD-CR-04..06,EVD-QRY-01,EVD-DQ-01,EVD-DQ-05,EVD-UP-10: new"),
	KD_CASE(arg_context_test, "EVD-CR-03,EVD-CR-07,CTX-04,SIL-06: streams and contexts"),
	KD_CASE(arg_stream_test, "EVD-CR-08: streams it is not made for"),
	KD_CASE(arg_vector_test, "SIL-06: completion vectors"),
	KD_CASE(arg_removed_test, "EVD-SE-01,EVD-RSZ-01,EVD-MOD-01: after the device has gone"),
	KD_CASE(arg_free_race_test, "EVD-FREE-03,GEN-05: calls racing with dat_evd_free"),
	{}
};

static struct kunit_suite arg_suite = {
	.name = "kdapl-evd-args",
	.suite_init = kd_suite_init,
	.suite_exit = kd_suite_exit,
	.init = kd_init,
	.exit = kd_exit,
	.test_cases = arg_cases,
};

kunit_test_suite(arg_suite);
