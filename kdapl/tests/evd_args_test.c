// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Arguments of the EVD calls: every combination of good and bad ones, which of
 * them is named, and that a refused call has changed nothing.
 */
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

/* The n-th argument is wrong, or none. */
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

/* Policies there are, those that call first, and all kinds of others. */
#define ARG_CALLING	3
#define ARG_KNOWN	5

static const int arg_policies[] = {
	DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_NOTIFY, DAT_UPCALL_MANY,
	DAT_UPCALL_DISABLE, DAT_UPCALL_TEARDOWN,
	-2, 3, 4, 50, 99, 101, 1000, 0x10001, INT_MIN, INT_MAX,
};

/* All combinations, on EVDs without function, with one, and on one that calls. */
static void arg_modify_test(struct kunit *test)
{
	static const int flags[] = { DAT_UPCALL_INVOC_NEW, DAT_UPCALL_INVOC_ANY, 2, -1, 0x100 };
	struct kd_env *env = kd_open(test, NULL);
	struct kd_sink *sink = kd_sink(test);
	const DAT_UPCALL_OBJECT busy = kd_sink_object(sink);
	const DAT_UPCALL_OBJECT *kept[] = { &arg_null, &arg_func, &busy };
	const DAT_UPCALL_OBJECT *upcalls[] = { DAT_UPCALL_SAME, &arg_func2, &arg_null };
	DAT_EVD_HANDLE evd = kd_evd(env, ARG_QLEN, DAT_EVD_SOFTWARE_FLAG);
	int i, k, u, f, p, n = 0, wrong;
	DAT_EVD_PARAM before, after;

	sink->evd = evd;
	for (i = 0; i < 9 * (int)(ARRAY_SIZE(arg_policies) * ARRAY_SIZE(flags)); i++) {
		k = i % 3;
		u = i / 3 % 3;
		f = i / 9 % ARRAY_SIZE(flags);
		p = i / 9 / ARRAY_SIZE(flags);
		wrong = p >= ARG_KNOWN ? 2 :
			p < ARG_CALLING && !(upcalls[u] ?: kept[k])->upcall_func ? 3 :
			f > 1 ? 4 : 0;
		KD_EXPECT_OK(test, dat_evd_modify_upcall(evd, k == 2 ? DAT_UPCALL_SINGLE_INSTANCE :
							 DAT_UPCALL_DISABLE, kept[k],
							 DAT_UPCALL_INVOC_NEW));
		arg_query(test, evd, &before);
		KUNIT_EXPECT_PTR_EQ(test, before.upcall.instance_data, kept[k]->instance_data);
		KUNIT_EXPECT_EQ_MSG(test, (u32)dat_evd_modify_upcall(evd, arg_policies[p],
								     upcalls[u], flags[f]),
				    (u32)arg_error(wrong), "policy %d, upcall %d over %d, flag %d",
				    arg_policies[p], u, k, flags[f]);
		arg_query(test, evd, &after);
		if (!wrong) {
			before.upcall_policy = p < ARG_CALLING ? arg_policies[p] :
								 DAT_UPCALL_DISABLE;
			if (upcalls[u])
				before.upcall = *upcalls[u];
		}
		KUNIT_EXPECT_TRUE_MSG(test, arg_same_param(&before, &after),
				      "policy %d, upcall %d over %d, flag %d", arg_policies[p], u,
				      k, flags[f]);
		if (!wrong || k != 2)
			continue;
		/* it goes on calling, with the old object */
		KD_EXPECT_OK(test, kd_post_se(evd, KD_ID(1, n++)));
		KUNIT_EXPECT_TRUE(test, kd_sink_wait(sink, n, n));
	}
	KUNIT_EXPECT_GT(test, n, 100);
	KD_EXPECT_OK(test, dat_evd_free(evd));
	kd_sink_expect(test, sink, n);
}

static void arg_resize_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_EVD_HANDLE evd = kd_evd(env, ARG_QLEN, DAT_EVD_SOFTWARE_FLAG);
	DAT_EVD_PARAM before, after;
	DAT_IA_ATTR attr;
	int i;

	KD_ASSERT_OK(test, dat_ia_query(env->ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL));
	{
		const struct {
			int qlen, wrong;
		} rows[] = {
			{ 0, 2 }, { -1, 2 }, { INT_MIN, 2 }, { INT_MAX, 2 },
			{ attr.max_evd_qlen + 1, 2 }, { 1, 0 }, { ARG_QLEN, 0 },
			{ attr.max_evd_qlen, 0 },
		};

		for (i = 0; i < ARRAY_SIZE(rows); i++) {
			arg_query(test, evd, &before);
			KUNIT_EXPECT_EQ_MSG(test, (u32)dat_evd_resize(evd, rows[i].qlen),
					    (u32)arg_error(rows[i].wrong), "length %d",
					    rows[i].qlen);
			arg_query(test, evd, &after);
			if (!rows[i].wrong) {
				KUNIT_EXPECT_GE(test, after.evd_qlen, rows[i].qlen);
				before.evd_qlen = after.evd_qlen;
			}
			KUNIT_EXPECT_TRUE(test, arg_same_param(&before, &after));
		}
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
	DAT_EVD_HANDLE evd = kd_evd(env, ARG_QLEN, DAT_EVD_SOFTWARE_FLAG | DAT_EVD_DTO_FLAG);
	/* all streams but this one */
	DAT_EVD_HANDLE other = kd_evd(env, ARG_QLEN, DAT_EVD_DEFAULT_FLAG);
	DAT_EVENT event, copy;
	int i;

	KD_BAD_ARG(test, dat_evd_post_se(evd, NULL), 2);
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
	kd_expect_id(test, evd, (uintptr_t)&event);
	KD_EXPECT_EMPTY(test, evd);
	KD_EXPECT_EMPTY(test, other);
	KD_EXPECT_OK(test, dat_evd_free(evd));
	KD_EXPECT_OK(test, dat_evd_free(other));
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
	KD_BAD_ARG(test, dat_evd_query(evd, 0x20, &param), 2);
	KD_BAD_ARG(test, dat_evd_query(evd, DAT_EVD_FIELD_ALL, NULL), 3);
	KD_EXPECT_RET(test, dat_evd_dequeue(evd, &event), DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE);
	KD_BAD_ARG(test, dat_evd_dequeue(evd, NULL), 2);
	KD_EXPECT_OK(test, dat_evd_free(evd));
	KD_BAD_HANDLE(test, dat_evd_free(evd), 1);
}

static void arg_create_one(struct kunit *test, const struct arg_create *row, bool ext)
{
	DAT_UPCALL_OBJECT object = row->upcall ? *row->upcall : DAT_UPCALL_NULL;
	const DAT_UPCALL_OBJECT *upcall = row->upcall ? &object : NULL;
	DAT_EVD_HANDLE evd = (DAT_EVD_HANDLE)0x5a5a;
	struct kd_env *env = test->priv;
	struct fake_ib_live before, after;
	DAT_EVD_PARAM want = {
		.ia_handle = env->ia, .evd_qlen = row->qlen, .upcall_policy = row->policy,
		.upcall = object, .evd_flags = row->flags,
	};
	DAT_RETURN ret;

	fake_ib_live(env->dev, &before);
	ret = ext ? kdat_evd_create(env->ia, row->qlen, row->policy, upcall, row->flags,
				    &row->attr, &evd) :
		    dat_evd_kcreate(env->ia, row->qlen, row->policy, upcall, row->flags, &evd);
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
	const DAT_UPCALL_OBJECT *upcalls[] = { &arg_func2, &arg_null, NULL };
	static const int lengths[] = { 0, -1, INT_MIN };
	struct arg_create row = {
		.policy = DAT_UPCALL_DISABLE, .flags = DAT_EVD_SOFTWARE_FLAG,
		.attr = KDAT_EVD_ATTR_INIT,
	};
	int i, bit;

	for (row.wrong = 2, i = 0; i < ARRAY_SIZE(lengths); i++) {
		row.qlen = lengths[i];
		arg_create_one(test, &row, ext);
	}
	row.qlen = 7;
	for (i = 0; i < 3 * (int)ARRAY_SIZE(arg_policies); i++) {
		row.policy = arg_policies[i / 3];
		row.upcall = upcalls[i % 3];
		row.wrong = row.policy == DAT_UPCALL_DISABLE ? 0 : i / 3 >= ARG_CALLING ? 3 :
			    i % 3 ? 4 : 0;
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
	KD_BAD_ARG(test, kdat_evd_create(env->ia, 1, DAT_UPCALL_DISABLE, NULL, sw, NULL, NULL), 7);
	KD_BAD_ARG(test, dat_evd_kcreate(env->ia, 1, DAT_UPCALL_DISABLE, NULL, sw, NULL), 6);
	/* too long is a matter of resources */
	KD_EXPECT_RET(test, kdat_evd_create(env->ia, ia.max_evd_qlen + 1, DAT_UPCALL_DISABLE, NULL,
					    sw, NULL, &evd),
		      DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEVD);
	KD_EXPECT_OK(test, dat_evd_free(kd_evd(env, ia.max_evd_qlen, sw)));
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
	static const DAT_EVD_FLAGS lacks[] = {
		DAT_EVD_DTO_FLAG, DAT_EVD_CONNECTION_FLAG, DAT_EVD_CR_FLAG, DAT_EVD_ASYNC_FLAG,
	};
	enum { NO_DTO, NO_CONN, NO_CR, NO_ASYNC };
	struct kd_env *env = kd_open(test, NULL);
	DAT_EVD_HANDLE evd[4], async;
	char name[DAT_NAME_MAX_LENGTH];
	DAT_EP_ATTR attr;
	DAT_HANDLE h;
	int i;

	for (i = 0; i < 4; i++)
		evd[i] = kd_evd(env, ARG_QLEN, ARG_STREAMS & ~lacks[i]);
	kd_attr(&attr);
#define ARG_EP(recv, req, conn)	\
	dat_ep_create(env->ia, env->pz, evd[recv], evd[req], evd[conn], &attr, &h)
	KD_BAD_HANDLE(test, ARG_EP(NO_DTO, NO_CR, NO_CR), _EVD_RECV);
	KD_BAD_HANDLE(test, ARG_EP(NO_CR, NO_DTO, NO_CR), _EVD_REQUEST);
	KD_BAD_HANDLE(test, ARG_EP(NO_CR, NO_CR, NO_CONN), _EVD_CONN);
	KD_BAD_HANDLE(test, dat_psp_create(env->ia, 7, evd[NO_CR], DAT_PSP_CONSUMER_FLAG, &h),
		      _EVD_CR);
	snprintf(name, sizeof(name), "%s-1", fake_ib_name(env->dev));
	async = evd[NO_ASYNC];
	KD_BAD_HANDLE(test, dat_ia_open(name, 8, &async, &h), _EVD_ASYNC);
	for (i = 0; i < 4; i++)
		KD_EXPECT_OK(test, dat_evd_free(evd[i]));
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
		evd[i] = kd_evd(env, 1, DAT_EVD_DTO_FLAG);
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

	KD_ASSERT_OK(test, kd_evd_create(env, ARG_QLEN, DAT_UPCALL_DISABLE, sink,
					 DAT_EVD_SOFTWARE_FLAG | DAT_EVD_DTO_FLAG,
					 KDAT_EVD_CONTEXT_DEFAULT, &evd));
	KD_EXPECT_OK(test, kd_post_se(evd, KD_ID(1, 0)));
	fake_ib_unplug(env->dev);
	KD_EXPECT_OK(test, kd_post_se(evd, KD_ID(1, 1)));
	kd_expect_id(test, evd, KD_ID(1, 0));
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

static struct kunit_case arg_cases[] = {
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
	{}
};

KD_SUITE("kdapl-evd-args", arg_cases, kd_init, kd_exit);
