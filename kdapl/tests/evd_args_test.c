// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Arguments of the EVD calls: every combination of good and bad ones, which of
 * them is named, and that a refused call has changed nothing.
 */
#include <linux/delay.h>

#include "kd_upcall.h"

#define ARG_QLEN	4

/* No upcall of this suite is ever started. */
static void arg_never(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	WARN_ONCE(1, "an upcall nobody asked for");
}

static const DAT_UPCALL_OBJECT arg_func = { .upcall_func = arg_never };
static const DAT_UPCALL_OBJECT arg_func2 = { (void *)1, arg_never };
static const DAT_UPCALL_OBJECT arg_null = { .instance_data = (void *)2 };

/* Handles a call for EVDs has to refuse. */
enum arg_handle {
	ARG_GOOD, ARG_NULL, ARG_FREED, ARG_IA, ARG_PZ, ARG_ONES, ARG_POINTER, ARG_HANDLES,
};

static DAT_EVD_HANDLE arg_handle(struct kd_env *env, DAT_EVD_HANDLE good, enum arg_handle which)
{
	DAT_EVD_HANDLE freed;

	switch (which) {
	case ARG_GOOD:
		return good;
	case ARG_FREED:
		KD_ASSERT_OK(env->test, dat_evd_kcreate(env->ia, 1, DAT_UPCALL_DISABLE, NULL,
							DAT_EVD_SOFTWARE_FLAG, &freed));
		KD_ASSERT_OK(env->test, dat_evd_free(freed));
		return freed;
	case ARG_IA:
		return env->ia;
	case ARG_PZ:
		return env->pz;
	case ARG_ONES:
		return (DAT_EVD_HANDLE)~0UL;
	case ARG_POINTER:
		return (DAT_EVD_HANDLE)env;
	default:
		return DAT_HANDLE_NULL;
	}
}

static DAT_RETURN arg_error(int n)
{
	static const DAT_RETURN_SUBTYPE subtypes[] = {
		DAT_NO_SUBTYPE, DAT_INVALID_ARG1, DAT_INVALID_ARG2, DAT_INVALID_ARG3,
		DAT_INVALID_ARG4, DAT_INVALID_ARG5, DAT_INVALID_ARG6, DAT_INVALID_ARG7,
	};

	return DAT_ERROR(DAT_INVALID_PARAMETER, subtypes[n]);
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

static const int arg_flags[] = { DAT_UPCALL_INVOC_NEW, DAT_UPCALL_INVOC_ANY, 2, -1, 0x100 };
static const DAT_UPCALL_OBJECT * const arg_upcalls[] = {
	DAT_UPCALL_SAME, &arg_func2, &arg_null,
};

/* One call of dat_evd_modify_upcall(), over an object that is there already. */
struct arg_modify {
	enum arg_handle h;
	int policy;
	const DAT_UPCALL_OBJECT *upcall;
	const DAT_UPCALL_OBJECT *kept;
	int flag;
};

static DAT_RETURN arg_modify_want(const struct arg_modify *row)
{
	if (row->h != ARG_GOOD)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	if (!arg_policy_known(row->policy))
		return arg_error(2);
	if (arg_policy_on(row->policy) && !(row->upcall ?: row->kept)->upcall_func)
		return arg_error(3);
	if (row->flag != DAT_UPCALL_INVOC_NEW && row->flag != DAT_UPCALL_INVOC_ANY)
		return arg_error(4);
	return DAT_SUCCESS;
}

static void arg_modify_one(struct kunit *test, DAT_EVD_HANDLE evd, DAT_EVD_HANDLE handle,
			   const struct arg_modify *row)
{
	DAT_RETURN want = arg_modify_want(row), ret;
	DAT_EVD_PARAM before, after;

	KD_EXPECT_OK(test, dat_evd_modify_upcall(evd, DAT_UPCALL_DISABLE, row->kept,
						 DAT_UPCALL_INVOC_NEW));
	arg_query(test, evd, &before);
	KUNIT_EXPECT_PTR_EQ(test, before.upcall.instance_data, row->kept->instance_data);
	ret = dat_evd_modify_upcall(handle, row->policy, row->upcall, row->flag);
	KUNIT_EXPECT_EQ_MSG(test, (u32)ret, (u32)want,
			    "handle %d, policy %d, upcall %p over %p, flag %d", row->h,
			    row->policy, row->upcall, row->kept, row->flag);
	arg_query(test, evd, &after);
	if (want == DAT_SUCCESS) {
		before.upcall_policy = arg_policy_on(row->policy) ? row->policy :
								    DAT_UPCALL_DISABLE;
		if (row->upcall)
			before.upcall = *row->upcall;
	}
	KUNIT_EXPECT_TRUE_MSG(test, arg_same_param(&before, &after),
			      "handle %d, policy %d, upcall %p over %p, flag %d", row->h,
			      row->policy, row->upcall, row->kept, row->flag);
}

/* dat_evd_modify_upcall: all combinations, on EVDs with and without a function. */
static void arg_modify_test(struct kunit *test)
{
	const int policies = ARRAY_SIZE(arg_policies), upcalls = ARRAY_SIZE(arg_upcalls);
	struct kd_env *env = kd_open(test, NULL);
	struct arg_modify row;
	DAT_EVD_HANDLE evd, handle;
	int i;

	KD_ASSERT_OK(test, dat_evd_kcreate(env->ia, ARG_QLEN, DAT_UPCALL_DISABLE, NULL,
					   DAT_EVD_SOFTWARE_FLAG, &evd));
	for (row.h = 0; row.h < ARG_HANDLES; row.h++) {
		handle = arg_handle(env, evd, row.h);
		for (i = 0; i < 2 * policies * upcalls * (int)ARRAY_SIZE(arg_flags); i++) {
			row.kept = i & 1 ? &arg_null : &arg_func;
			row.policy = arg_policies[i / 2 % policies];
			row.upcall = arg_upcalls[i / 2 / policies % upcalls];
			row.flag = arg_flags[i / 2 / policies / upcalls];
			arg_modify_one(test, evd, handle, &row);
		}
	}
	KD_EXPECT_OK(test, dat_evd_free(evd));
}

/* The same refusals by an EVD that calls: it goes on calling, with the old object. */
static void arg_modify_busy_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kd_sink *sink = kd_sink(test);
	const struct {
		int policy;
		const DAT_UPCALL_OBJECT *upcall;
		int flag;
	} bad[] = {
		{ 7, &arg_func, DAT_UPCALL_INVOC_NEW },
		{ DAT_UPCALL_SINGLE_INSTANCE, &arg_null, DAT_UPCALL_INVOC_NEW },
		{ DAT_UPCALL_DISABLE, &arg_func, 2 },
		{ DAT_UPCALL_TEARDOWN, &arg_func, 2 },
		{ DAT_UPCALL_MANY, &arg_func, -1 },
	};
	DAT_EVD_HANDLE evd;
	int i;

	KD_ASSERT_OK(test, kd_evd_create(env, ARG_QLEN, DAT_UPCALL_SINGLE_INSTANCE, sink,
					 DAT_EVD_SOFTWARE_FLAG, KDAT_EVD_CONTEXT_DEFAULT, &evd));
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		KUNIT_EXPECT_NE(test, (u32)dat_evd_modify_upcall(evd, bad[i].policy, bad[i].upcall,
								 bad[i].flag), (u32)DAT_SUCCESS);
		KD_EXPECT_OK(test, kd_post_se(evd, KD_ID(1, i)));
		KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, i + 1, i + 1));
	}
	kd_sink_expect(test, sink, ARRAY_SIZE(bad));
	KD_EXPECT_OK(test, dat_evd_free(evd));
}

/* dat_evd_resize. */
static void arg_resize_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_EVD_PARAM before, after;
	DAT_EVD_HANDLE evd;
	DAT_IA_ATTR attr;
	int h, i, queued;

	KD_ASSERT_OK(test, dat_ia_query(env->ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL));
	KD_ASSERT_OK(test, dat_evd_kcreate(env->ia, ARG_QLEN, DAT_UPCALL_DISABLE, NULL,
					   DAT_EVD_SOFTWARE_FLAG, &evd));
	for (queued = 0; queued <= ARG_QLEN; queued++) {
		const struct {
			int qlen;
			DAT_RETURN want;
		} rows[] = {
			{ 0, arg_error(2) },
			{ -1, arg_error(2) },
			{ INT_MIN, arg_error(2) },
			{ INT_MAX, arg_error(2) },
			{ attr.max_evd_qlen + 1, arg_error(2) },
			{ 1, queued > 1 ? DAT_ERROR(DAT_INVALID_STATE, 0) : DAT_SUCCESS },
			{ ARG_QLEN - 1, queued > ARG_QLEN - 1 ? DAT_ERROR(DAT_INVALID_STATE, 0) :
			  DAT_SUCCESS },
			{ ARG_QLEN, DAT_SUCCESS },
			{ attr.max_evd_qlen, DAT_SUCCESS },
		};

		if (queued)
			KD_EXPECT_OK(test, kd_post_se(evd, KD_ID(1, queued)));
		for (h = 0; h < ARG_HANDLES; h++) {
			DAT_EVD_HANDLE handle = arg_handle(env, evd, h);

			for (i = 0; i < ARRAY_SIZE(rows); i++) {
				DAT_RETURN want = rows[i].want, ret;

				KD_EXPECT_OK(test, dat_evd_resize(evd, ARG_QLEN));
				arg_query(test, evd, &before);
				if (h != ARG_GOOD)
					want = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
				ret = dat_evd_resize(handle, rows[i].qlen);
				KUNIT_EXPECT_EQ_MSG(test, (u32)ret, (u32)want,
						    "%d events, handle %d, length %d", queued, h,
						    rows[i].qlen);
				arg_query(test, evd, &after);
				if (want == DAT_SUCCESS) {
					KUNIT_EXPECT_GE(test, after.evd_qlen, rows[i].qlen);
					before.evd_qlen = after.evd_qlen;
				}
				KUNIT_EXPECT_TRUE(test, arg_same_param(&before, &after));
			}
		}
	}
	KUNIT_EXPECT_EQ(test, kd_drain(evd), ARG_QLEN);
	KD_EXPECT_OK(test, dat_evd_free(evd));
}

/* dat_evd_post_se. */
static void arg_post_se_test(struct kunit *test)
{
	static const u32 numbers[] = {
		DAT_SOFTWARE_EVENT, 0, DAT_DTO_COMPLETION_EVENT, DAT_CONNECTION_REQUEST_EVENT,
		DAT_CONNECTION_EVENT_ESTABLISHED, DAT_ASYNC_ERROR_EVD_OVERFLOW,
		DAT_SOFTWARE_EVENT + 1, ~0U,
	};
	struct kd_env *env = kd_open(test, NULL);
	DAT_EVD_HANDLE evd[2], handle;
	DAT_EVENT event, out, copy;
	DAT_RETURN ret, want;
	int h, i, e, n = 0;

	KD_ASSERT_OK(test, dat_evd_kcreate(env->ia, ARG_QLEN, DAT_UPCALL_DISABLE, NULL,
					   DAT_EVD_SOFTWARE_FLAG | DAT_EVD_DTO_FLAG, &evd[0]));
	/* all streams but this one */
	KD_ASSERT_OK(test, dat_evd_kcreate(env->ia, ARG_QLEN, DAT_UPCALL_DISABLE, NULL,
					   DAT_EVD_DEFAULT_FLAG, &evd[1]));
	for (e = 0; e < 2; e++) {
		for (h = 0; h < ARG_HANDLES; h++) {
			handle = arg_handle(env, evd[e], h);
			for (i = -1; i < (int)ARRAY_SIZE(numbers); i++) {
				memset(&event, 0x77, sizeof(event));
				event.event_number = i < 0 ? 0 : numbers[i];
				event.event_data.software_event_data.pointer = &event;
				copy = event;
				want = DAT_SUCCESS;
				if (h != ARG_GOOD)
					want = DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
				else if (e)
					want = arg_error(1);
				else if (i < 0 || numbers[i] != DAT_SOFTWARE_EVENT)
					want = arg_error(2);
				ret = dat_evd_post_se(handle, i < 0 ? NULL : &event);
				KUNIT_EXPECT_EQ_MSG(test, (u32)ret, (u32)want,
						    "EVD %d, handle %d, number %d", e, h, i);
				KUNIT_EXPECT_EQ(test, memcmp(&copy, &event, sizeof(event)), 0);
				memset(&event, 0, sizeof(event));
				if (want != DAT_SUCCESS)
					continue;
				/* what was posted comes, with the EVD it was posted to */
				n++;
				KUNIT_ASSERT_TRUE(test, kd_next(evd[0], &out));
				KUNIT_EXPECT_EQ(test, (u32)out.event_number,
						(u32)DAT_SOFTWARE_EVENT);
				KUNIT_EXPECT_PTR_EQ(test, out.evd_handle, evd[0]);
				KUNIT_EXPECT_PTR_EQ(test,
						    out.event_data.software_event_data.pointer,
						    (void *)&event);
			}
		}
		KD_EXPECT_EMPTY(test, evd[e]);
	}
	KUNIT_EXPECT_EQ(test, n, 1);
	for (e = 0; e < 2; e++)
		KD_EXPECT_OK(test, dat_evd_free(evd[e]));
}

/* One call of kdat_evd_create() or dat_evd_kcreate(), and which argument is wrong. */
struct arg_create {
	int qlen;
	int policy;
	const DAT_UPCALL_OBJECT *upcall;
	int flags;
	struct kdat_evd_attr attr;
	int wrong;
};

static void arg_create_one(struct kunit *test, struct kd_env *env, const struct arg_create *row,
			   bool ext)
{
	DAT_EVD_HANDLE evd = (DAT_EVD_HANDLE)0x5a5a;
	struct fake_ib_live before, after;
	DAT_RETURN ret, want;

	fake_ib_live(env->dev, &before);
	want = row->wrong ? arg_error(row->wrong) : DAT_SUCCESS;
	ret = ext ? kdat_evd_create(env->ia, row->qlen, row->policy, row->upcall, row->flags,
				    &row->attr, &evd) :
		    dat_evd_kcreate(env->ia, row->qlen, row->policy, row->upcall, row->flags,
				    &evd);
	KUNIT_EXPECT_EQ_MSG(test, (u32)ret, (u32)want,
			    "length %d, policy %d, flags %#x, context %d, vector %d", row->qlen,
			    row->policy, row->flags, row->attr.context, row->attr.comp_vector);
	if (ret == DAT_SUCCESS) {
		KD_EXPECT_OK(test, dat_evd_free(evd));
		return;
	}
	KUNIT_EXPECT_PTR_EQ(test, evd, (DAT_EVD_HANDLE)0x5a5a);
	fake_ib_live(env->dev, &after);
	KUNIT_EXPECT_EQ(test, memcmp(&before, &after, sizeof(before)), 0);
}

static void arg_create_test(struct kunit *test)
{
	const struct kdat_evd_attr any = KDAT_EVD_ATTR_INIT;
	const int sw = DAT_EVD_SOFTWARE_FLAG, all = DAT_EVD_DEFAULT_FLAG | DAT_EVD_SOFTWARE_FLAG;
	struct kd_env *env = kd_open(test, NULL);
	DAT_EVD_HANDLE evd;
	DAT_IA_ATTR ia;
	int i, bit, wrong;

	KD_ASSERT_OK(test, dat_ia_query(env->ia, NULL, DAT_IA_FIELD_ALL, &ia, 0, NULL));
	for (i = 0; i < 2; i++) {
		struct arg_create row = {
			.qlen = 1, .policy = DAT_UPCALL_DISABLE, .flags = sw, .attr = any,
		};
		const int lengths[] = { 0, -1, INT_MIN };
		int n;

		arg_create_one(test, env, &row, i);
		for (n = 0; n < ARRAY_SIZE(lengths); n++) {
			row.qlen = lengths[n];
			row.wrong = 2;
			arg_create_one(test, env, &row, i);
		}
		row.qlen = 1;
		for (n = 0; n < ARRAY_SIZE(arg_policies); n++) {
			row.policy = arg_policies[n];
			wrong = arg_policy_known(row.policy) &&
				row.policy != DAT_UPCALL_TEARDOWN ? 0 : 3;
			row.upcall = &arg_func;
			row.wrong = wrong;
			arg_create_one(test, env, &row, i);
			if (arg_policy_on(row.policy))
				wrong = 4;
			row.upcall = &arg_null;
			row.wrong = wrong;
			arg_create_one(test, env, &row, i);
			row.upcall = NULL;
			arg_create_one(test, env, &row, i);
		}
		row.policy = DAT_UPCALL_DISABLE;
		row.flags = 0;
		row.wrong = 5;
		arg_create_one(test, env, &row, i);
		for (bit = 0; bit < 32; bit++) {
			if (all & 1U << bit)
				continue;
			row.flags = 1U << bit;
			arg_create_one(test, env, &row, i);
			row.flags |= sw;
			arg_create_one(test, env, &row, i);
		}
	}
	/* the handle of the IA, and nowhere to put the new one */
	for (i = ARG_NULL; i < ARG_HANDLES; i++) {
		DAT_IA_HANDLE bad = i == ARG_IA ? env->recv : arg_handle(env, NULL, i);

		KD_EXPECT_RET(test, kdat_evd_create(bad, 0, 77, NULL, 0, NULL, NULL),
			      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	}
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
	const int all = DAT_EVD_DEFAULT_FLAG | DAT_EVD_SOFTWARE_FLAG;
	struct kd_env *env = kd_open(test, NULL);
	int c, v, flags;

	for (flags = 1; flags <= all; flags++) {
		if (flags & ~all)
			continue;
		/* every context with each stream alone and with all, else one that fits */
		for (c = 0; c < ARRAY_SIZE(contexts); c++) {
			struct arg_create row = {
				.qlen = 1, .policy = DAT_UPCALL_MANY, .upcall = &arg_func,
				.flags = flags, .attr = KDAT_EVD_ATTR_INIT,
			};

			row.attr.context = contexts[c];
			if (c > 2 || (c == 1 && flags & ~quiet))
				row.wrong = 6;
			else if (c == 2 && hweight32(flags) > 1 && flags != all)
				continue;
			arg_create_one(test, env, &row, true);
		}
	}
	for (v = 0; v < ARRAY_SIZE(vectors); v++) {
		struct arg_create row = {
			.qlen = 1, .policy = DAT_UPCALL_DISABLE, .flags = DAT_EVD_DTO_FLAG,
			.attr = { .comp_vector = vectors[v] },
			.wrong = vectors[v] < -1 ? 6 : 0,
		};

		arg_create_one(test, env, &row, true);
	}
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
	static const u32 legal[] = {
		DAT_SUCCESS, DAT_INVALID_HANDLE, DAT_QUEUE_FULL, DAT_QUEUE_EMPTY,
	};
	struct arg_race *race = arg;
	DAT_EVENT event;
	int i = 0, n;
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
		for (n = 0; n < ARRAY_SIZE(legal); n++)
			if (DAT_GET_TYPE(type) == legal[n])
				break;
		race->wrong += n == ARRAY_SIZE(legal);
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
	KD_CASE(arg_modify_test,
		"EVD-MOD-01,EVD-MOD-04,EVD-MOD-08,EVD-UP-10,SIL-41: dat_evd_modify_upcall"),
	KD_CASE(arg_modify_busy_test, "EVD-MOD-08: refused changes of an EVD that calls"),
	KD_CASE(arg_resize_test, "EVD-RSZ-02: dat_evd_resize"),
	KD_CASE(arg_post_se_test, "EVD-SE-01,EVD-SE-02: dat_evd_post_se"),
	KD_CASE(arg_create_test,
		"EVD-CR-01,EVD-CR-02,EVD-CR-04,EVD-UP-10,SIL-41: creation"),
	KD_CASE(arg_context_test, "EVD-CR-03,EVD-CR-07,CTX-04,SIL-06: streams and contexts"),
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
