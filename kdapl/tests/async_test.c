// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Asynchronous errors: of ports, devices, QPs, CQs and SRQs, who is told of them
 * and who is not, and what works when the device does not.
 */
#include "kd_conn.h"
#include "kd_srq.h"
#include "kd_upcall.h"

/* An error of a port that the fake device has not, so ib_core would keep it to itself. */
static void as_other_port(struct kd_env *env)
{
	struct ib_event event = {
		.device = fake_ib_device(env->dev),
		.element.port_num = 2,
		.event = IB_EVENT_PORT_ERR,
	};
	struct ib_event_handler *handler = &kd_ia(env)->dev->event_handler;

	handler->handler(handler, &event);
	flush_workqueue(ib_wq);
	flush_workqueue(kdapl_misc_wq);
}

static void as_expect(struct kd_env *env, DAT_EVD_HANDLE evd, u32 number, DAT_HANDLE handle,
		      int reason)
{
	const DAT_ASYNCH_ERROR_EVENT_DATA *data;
	DAT_EVENT event;

	kd_expect_event(env, evd, number, &event);
	data = &event.event_data.asynch_error_event_data;
	KUNIT_EXPECT_PTR_EQ(env->test, data->dat_handle, handle);
	KUNIT_EXPECT_EQ(env->test, (int)data->reason, reason);
}

static void as_expect_port_error(struct kd_env *env, DAT_EVD_HANDLE evd, DAT_IA_HANDLE ia)
{
	as_expect(env, evd, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR, ia, DAT_IA_OTHER_ERROR);
}

/* Which events of a port are errors, and that every instance hears of them. */
static void as_port_test(struct kunit *test)
{
	static const enum ib_event_type harmless[] = {
		IB_EVENT_PORT_ACTIVE, IB_EVENT_LID_CHANGE, IB_EVENT_PKEY_CHANGE,
		IB_EVENT_SM_CHANGE, IB_EVENT_CLIENT_REREGISTER, IB_EVENT_GID_CHANGE,
	};
	DAT_EVD_HANDLE own = DAT_HANDLE_NULL, shared;
	struct kd_env *env = kd_connected(test, NULL);
	DAT_IA_HANDLE ia2, ia3;
	int i;

	ia2 = kd_ia_more(env, &own);
	shared = env->async;
	ia3 = kd_ia_more(env, &shared);
	KUNIT_EXPECT_PTR_EQ(test, shared, env->async);
	for (i = 0; i < 2; i++) {
		kd_device_event(env, IB_EVENT_PORT_ERR);
		as_expect_port_error(env, own, ia2);
		/* each of those that share an EVD, in the order they were opened */
		as_expect_port_error(env, env->async, env->ia);
		as_expect_port_error(env, env->async, ia3);
	}
	/* a connection may outlive it */
	KD_EXPECT_STATE(env, env->ep, CONNECTED);
	KD_EXPECT_EMPTY(test, env->conn);
	for (i = 0; i < ARRAY_SIZE(harmless); i++)
		kd_device_event(env, harmless[i]);
	as_other_port(env);
	KD_EXPECT_EMPTY(test, own);
	KD_EXPECT_EMPTY(test, env->async);
	KD_EXPECT_OK(test, dat_ia_close(ia3, DAT_CLOSE_ABRUPT_FLAG));
	kd_device_event(env, IB_EVENT_PORT_ERR);
	as_expect_port_error(env, env->async, env->ia);
	KD_EXPECT_EMPTY(test, env->async);
	KD_EXPECT_OK(test, dat_ia_close(ia2, DAT_CLOSE_ABRUPT_FLAG));
}

/* The instance an EVD belongs to goes before another one that reports there. */
static void as_lent_test(struct kunit *test)
{
	DAT_EVD_HANDLE lent = DAT_HANDLE_NULL;
	struct kd_env *env = kd_open(test, NULL);
	DAT_IA_HANDLE owner = kd_ia_more(env, &lent), other = kd_ia_more(env, &lent);
	DAT_EVENT event;

	kd_device_event(env, IB_EVENT_PORT_ERR);
	KD_EXPECT_OK(test, dat_ia_close(owner, DAT_CLOSE_ABRUPT_FLAG));
	KD_BAD_HANDLE(test, dat_evd_dequeue(lent, &event), 1);
	/* it has nobody to tell now */
	kd_device_event(env, IB_EVENT_PORT_ERR);
	KD_EXPECT_OK(test, dat_ia_query(other, &lent, 0, NULL, 0, NULL));
	KUNIT_EXPECT_PTR_EQ(test, lent, (DAT_EVD_HANDLE)DAT_HANDLE_NULL);
	KD_EXPECT_OK(test, dat_ia_close(other, DAT_CLOSE_GRACEFUL_FLAG));
	while (kd_next(env->async, &event))
		KUNIT_EXPECT_PTR_EQ(test, event.event_data.asynch_error_event_data.dat_handle,
				    env->ia);
}

static u32 as_max_message(struct kd_env *env)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia = kd_ia_more(env, &async);
	DAT_IA_ATTR *attr = kunit_kzalloc(env->test, sizeof(*attr), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(env->test, attr);
	KD_EXPECT_OK(env->test, dat_ia_query(ia, NULL, DAT_IA_FIELD_ALL, attr, 0, NULL));
	KD_EXPECT_OK(env->test, dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
	return attr->max_message_size;
}

/* What is remembered of a port is what it says after its last event. */
static void as_port_attr_test(struct kunit *test)
{
	static const enum ib_event_type events[] = {
		IB_EVENT_PORT_ACTIVE, IB_EVENT_LID_CHANGE, IB_EVENT_SM_CHANGE,
		IB_EVENT_CLIENT_REREGISTER, IB_EVENT_PORT_ERR,
	};
	struct kd_env *env = kd_open(test, NULL);
	int i;

	for (i = 0; i < ARRAY_SIZE(events); i++) {
		u32 before = as_max_message(env);

		fake_ib_set_max_msg(env->dev, SZ_64K << i);
		KUNIT_EXPECT_EQ(test, as_max_message(env), before);
		kd_device_event(env, events[i]);
		flush_work(&kd_ia(env)->dev->ports_work);
		KUNIT_EXPECT_EQ(test, as_max_message(env), (u32)SZ_64K << i);
	}
}

/* What belongs to an object goes to the instance that owns it. */
static void as_owner_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	struct kd_env *env = &sq->env;
	DAT_EVD_HANDLE own = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia2;
	struct ib_qp *qp;

	ia2 = kd_ia_more(env, &own);
	sq_srq(sq, 4);
	qp = sq_ep(sq, 0);
	/* the CQ of an EVD */
	fake_ib_cq_event(qp->send_cq, IB_EVENT_CQ_ERR);
	as_expect(env, env->async, DAT_ASYNC_ERROR_EVD_OVERFLOW, env->req, DAT_EVD_OVERFLOW_ERROR);
	fake_ib_cq_event(qp->recv_cq, IB_EVENT_CQ_ERR);
	as_expect(env, env->async, DAT_ASYNC_ERROR_EVD_OVERFLOW, env->recv, DAT_EVD_OVERFLOW_ERROR);
	/* a QP, which is gone then */
	fake_ib_qp_event(qp, IB_EVENT_QP_FATAL);
	as_expect(env, env->async, DAT_ASYNC_ERROR_EP_BROKEN, env->ep, DAT_EP_TRANSFER_TO_ERROR);
	kd_expect_event(env, env->conn, DAT_CONNECTION_EVENT_BROKEN, NULL);
	/* an SRQ */
	fake_ib_srq_event(sq->ib, IB_EVENT_SRQ_ERR);
	as_expect(env, env->async, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR, sq->srq,
		  DAT_SRQ_TRANSFER_TO_ERROR);
	KD_EXPECT_EMPTY(test, env->async);
	KD_EXPECT_EMPTY(test, own);
	KD_EXPECT_OK(test, dat_ia_close(ia2, DAT_CLOSE_ABRUPT_FLAG));
}

/* The CQ of an EP without an EVD. */
static void as_null_evd_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_EVD_HANDLE recv = env->recv;

	env->recv = DAT_HANDLE_NULL;
	kd_ep(env, NULL);
	fake_ib_cq_event(env->qp->recv_cq, IB_EVENT_CQ_ERR);
	as_expect(env, env->async, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR, env->ia,
		  DAT_IA_OTHER_ERROR);
	KD_EXPECT_EMPTY(test, env->async);
	kd_ep_free(env);
	env->recv = recv;
}

/* A driver that calls an SRQ failed when it is empty. */
static void as_srq_empty_test(struct kunit *test)
{
	static const struct fake_ib_caps caps = { .driver = RDMA_DRIVER_QEDR };
	struct sq *sq = sq_open(test, &caps);
	DAT_SRQ_PARAM param;

	sq_srq(sq, 4);
	fake_ib_srq_event(sq->ib, IB_EVENT_SRQ_ERR);
	KD_EXPECT_EMPTY(test, sq->env.async);
	KD_EXPECT_OK(test, dat_srq_query(sq->srq, DAT_SRQ_FIELD_ALL, &param));
	KUNIT_EXPECT_EQ(test, (int)param.srq_state, (int)DAT_SRQ_STATE_OPERATIONAL);
	sq_post(sq, 0, 4);
}

/* Errors of a QP in every state of its EP. */
static void as_qp_test(struct kunit *test)
{
	static const enum ib_event_type types[] = {
		IB_EVENT_QP_FATAL, IB_EVENT_QP_REQ_ERR, IB_EVENT_QP_ACCESS_ERR,
	};
	struct kd_env *env = kd_open(test, NULL);
	DAT_EVENT event;
	int s, i;

	for (s = 0; s < KD_STATES; s++) {
		DAT_EP_STATE state = kd_states[s].state;
		bool over = state == DAT_EP_STATE_DISCONNECTED;
		bool up = state == DAT_EP_STATE_CONNECTED ||
			  state == DAT_EP_STATE_DISCONNECT_PENDING;

		for (i = 0; i < ARRAY_SIZE(types); i++) {
			kd_ep(env, NULL);
			kd_reach(env, state);
			fake_ib_qp_event(env->qp, types[i]);
			if (!over)
				as_expect(env, env->async, DAT_ASYNC_ERROR_EP_BROKEN, env->ep,
					  DAT_EP_TRANSFER_TO_ERROR);
			if (up) {
				KD_EXPECT_END(env, BROKEN);
			} else {
				flush_workqueue(kdapl_misc_wq);
				KUNIT_EXPECT_EQ_MSG(test, (int)kd_state(env, env->ep), (int)state,
						    "%s", kd_states[s].letter);
			}
			KD_EXPECT_EMPTY(test, env->conn);
			KD_EXPECT_EMPTY(test, env->async);
			/* an attempt ends once, whatever else it comes to */
			if (state == DAT_EP_STATE_ACTIVE_CONNECTION_PENDING ||
			    state == DAT_EP_STATE_COMPLETION_PENDING) {
				kd_end(env, DAT_CONNECTION_EVENT_DISCONNECTED);
				kd_next_wait(env, env->conn, &event);
				KD_EXPECT_EMPTY(test, env->conn);
			}
			kd_ep_free(env);
			kd_drain(env->req);
		}
	}
}

/* Everything of an IA there is, for a look at what a broken device leaves of it. */
struct as_all {
	DAT_HANDLE h[KD_ZOO];
	DAT_EP_HANDLE pooled;		/* on the SRQ */
	DAT_EP_HANDLE fresh;
};

static void as_all(struct kd_env *env, struct as_all *all)
{
	DAT_EP_ATTR attr;

	kd_attr(&attr);
	kd_zoo(env, 10, all->h);
	KD_ASSERT_OK(env->test, dat_ep_create_with_srq(env->ia, env->pz, env->recv, env->req,
						       env->conn, all->h[DAT_HANDLE_TYPE_SRQ],
						       &attr, &all->pooled));
	all->fresh = kd_ep_new(env, NULL);
	kd_ep(env, NULL);
	kd_connect(env);
}

/* ASY-22: every call that would have to ask the device. */
static void as_refused(struct kd_env *env, struct as_all *all)
{
	DAT_SRQ_HANDLE srq = all->h[DAT_HANDLE_TYPE_SRQ];
	DAT_EVD_HANDLE evd = all->h[DAT_HANDLE_TYPE_EVD];
	DAT_CR_HANDLE cr = all->h[DAT_HANDLE_TYPE_CR];
	DAT_SRQ_ATTR srq_attr = { .max_recv_dtos = 4, .max_recv_iov = 1 };
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	DAT_RMR_TRIPLET remote = kd_remote(0x1000, 8, 1);
	struct kdat_conn_attr conn = KDAT_CONN_ATTR_INIT;
	DAT_COMM comm = { AF_INET, SOCK_STREAM, 0 };
	DAT_DTO_COOKIE cookie = { .as_64 = 1 };
	struct kunit *test = env->test;
	DAT_EP_PARAM param = {};
	DAT_CONN_QUAL qual;
	enum kd_call call;
	struct kd_mem mem;
	DAT_EP_ATTR attr;
	DAT_HANDLE h;
	int i;

	kd_attr(&attr);
	param.ep_attr = attr;
	KD_GONE(test, dat_pz_create(env->ia, &h));
	KD_GONE(test, dat_evd_kcreate(env->ia, 8, DAT_UPCALL_DISABLE, NULL, DAT_EVD_DTO_FLAG, &h));
	KD_GONE(test, kd_lmr_create(env->ia, env->pz, env->buf, 100, DAT_MEM_PRIV_ALL_FLAG, &mem));
	KD_GONE(test, dat_srq_create(env->ia, env->pz, &srq_attr, &h));
	KD_GONE(test, dat_srq_post_recv(srq, 0, NULL, cookie));
	KD_GONE(test, dat_srq_set_lw(srq, 1));
	KD_GONE(test, dat_srq_resize(srq, 8));
	KD_GONE(test, dat_ep_create(env->ia, env->pz, env->recv, env->req, env->conn, &attr, &h));
	KD_GONE(test, dat_ep_create_with_srq(env->ia, env->pz, env->recv, env->req, env->conn, srq,
					     &attr, &h));
	for (call = 0; call < KD_NR_CALLS; call++) {
		KD_GONE(test, kd_post(env->ep, call, 1, &iov, 1, &remote, 0));
		KD_GONE(test, kd_post(all->fresh, call, 1, &iov, 1, &remote, 0));
	}
	for (i = 0; i < 2; i++) {
		DAT_EP_HANDLE ep = i ? all->fresh : env->ep;

		KD_GONE(test, dat_ep_modify(ep, DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS, &param));
		KD_GONE(test, dat_ep_disconnect(ep, DAT_CLOSE_ABRUPT_FLAG));
		KD_GONE(test, dat_ep_disconnect(ep, DAT_CLOSE_GRACEFUL_FLAG));
		KD_GONE(test, dat_ep_reset(ep));
		KD_GONE(test, dat_ep_connect(ep, KD_PEER, 7, 1, 0, NULL, DAT_QOS_BEST_EFFORT,
					     DAT_CONNECT_DEFAULT_FLAG));
		KD_GONE(test, dat_ep_common_connect(ep, KD_PEER, 1, 0, NULL));
		KD_GONE(test, dat_ep_dup_connect(ep, i ? env->ep : all->fresh, 1, 0, NULL,
						 DAT_QOS_BEST_EFFORT));
		KD_GONE(test, kdat_ep_modify_conn(ep, &conn));
	}
	KD_GONE(test, dat_ep_set_watermark(all->pooled, 1, DAT_WATERMARK_INFINITE));
	KD_GONE(test, dat_psp_create(env->ia, 7, evd, DAT_PSP_CONSUMER_FLAG, &h));
	KD_GONE(test, dat_psp_create_any(env->ia, &qual, evd, DAT_PSP_PROVIDER_FLAG, &h));
	KD_GONE(test, dat_rsp_create(env->ia, 7, all->fresh, evd, &h));
	KD_GONE(test, dat_csp_create(env->ia, &comm, KD_PEER, evd, &h));
	KD_GONE(test, dat_cr_accept(cr, all->fresh, 0, NULL));
	KD_GONE(test, dat_cr_handoff(cr, 10));
	/* arguments are looked at first (GEN-06) */
	KD_BAD_HANDLE(test, dat_ep_reset(env->pz), _EP);
	KD_BAD_ARG(test, dat_cr_reject(cr, -1, NULL), 2);
	KD_BAD_ARG(test, dat_ep_disconnect(env->ep, 2), 2);
}

/* And what goes on to work: looking, dequeuing, and EVDs that need no device (D-43). */
static void as_works(struct kd_env *env, struct as_all *all)
{
	struct kunit *test = env->test;
	struct kdat_pdata_limits limits;
	struct kdat_conn_attr conn;
	DAT_PROVIDER_ATTR *provider = kunit_kzalloc(test, sizeof(*provider), GFP_KERNEL);
	DAT_IA_ATTR *ia = kunit_kzalloc(test, sizeof(*ia), GFP_KERNEL);
	DAT_PSP_PARAM psp;
	DAT_RSP_PARAM rsp;
	DAT_CSP_PARAM csp;
	DAT_LMR_PARAM lmr;
	DAT_SRQ_PARAM srq;
	DAT_EVD_PARAM evd;
	DAT_CONTEXT context = { .as_64 = 5 };
	DAT_EP_PARAM ep;
	DAT_CR_PARAM cr;
	DAT_PZ_PARAM pz;
	DAT_COUNT n;

	KUNIT_ASSERT_NOT_NULL(test, provider);
	KUNIT_ASSERT_NOT_NULL(test, ia);
	KD_EXPECT_OK(test, dat_ia_query(env->ia, NULL, DAT_IA_FIELD_ALL, ia,
					DAT_PROVIDER_FIELD_ALL, provider));
	KD_EXPECT_OK(test, kdat_ia_pdata_limits(env->ia, &limits));
	KD_EXPECT_OK(test, dat_pz_query(env->pz, DAT_PZ_FIELD_ALL, &pz));
	KD_EXPECT_OK(test, dat_lmr_query(env->mem[0].lmr, DAT_LMR_FIELD_ALL, &lmr));
	KD_EXPECT_OK(test, dat_srq_query(all->h[DAT_HANDLE_TYPE_SRQ], DAT_SRQ_FIELD_ALL, &srq));
	KD_EXPECT_OK(test, dat_evd_query(env->conn, DAT_EVD_FIELD_ALL, &evd));
	KD_EXPECT_OK(test, dat_psp_query(all->h[DAT_HANDLE_TYPE_PSP], DAT_PSP_FIELD_ALL, &psp));
	KD_EXPECT_OK(test, dat_rsp_query(all->h[DAT_HANDLE_TYPE_RSP], DAT_RSP_FIELD_ALL, &rsp));
	KD_EXPECT_OK(test, dat_csp_query(all->h[DAT_HANDLE_TYPE_CSP], DAT_CSP_FIELD_ALL, &csp));
	KD_EXPECT_OK(test, dat_cr_query(all->h[DAT_HANDLE_TYPE_CR], DAT_CR_FIELD_ALL, &cr));
	KD_EXPECT_OK(test, dat_ep_query(env->ep, DAT_EP_FIELD_ALL, &ep));
	KD_EXPECT_OK(test, dat_ep_recv_query(env->ep, &n, NULL));
	KD_EXPECT_OK(test, kdat_ep_query_conn(env->ep, &conn));
	KD_EXPECT_OK(test, dat_set_consumer_context(env->ep, context));
	KD_EXPECT_OK(test, dat_evd_resize(env->conn, 32));
	KD_EXPECT_OK(test, dat_evd_modify_upcall(env->conn, DAT_UPCALL_DISABLE, DAT_UPCALL_SAME,
						 DAT_UPCALL_INVOC_NEW));
}

/* All of it is freed, one by one; the peer hears nothing of the reject. */
static void as_free(struct kd_env *env, struct as_all *all)
{
	KD_EXPECT_OK(env->test, dat_ep_free(all->fresh));
	KD_EXPECT_OK(env->test, dat_ep_free(all->pooled));
	kd_zoo_free(env, all->h);
}

static void as_after_removal_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct fake_ib_live live, none = {};
	struct as_all all;

	as_all(env, &all);
	fake_ib_unplug(env->dev);
	/* all of it is back, though the consumer has not moved */
	fake_ib_live(env->dev, &live);
	KUNIT_EXPECT_EQ(test, memcmp(&live, &none, sizeof(live)), 0);
	as_refused(env, &all);
	as_works(env, &all);
	KD_EXPECT_END(env, BROKEN);
	as_expect(env, env->async, DAT_ASYNC_ERROR_IA_CATASTROPHIC, env->ia,
		  DAT_IA_CATASTROPHIC_ERROR);
	KD_EXPECT_EMPTY(test, env->async);
	as_free(env, &all);
	/* kd_exit() frees the rest; an instance with nothing in it closes gracefully, too */
}

/* The device says that it is broken, and is still there. */
static void as_fatal_test(struct kunit *test)
{
	DAT_EVD_HANDLE own = DAT_HANDLE_NULL;
	struct kd_env *env = kd_open(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	struct as_all all;
	DAT_IA_HANDLE ia2;
	DAT_EVENT event;
	int i;

	ia2 = kd_ia_more(env, &own);
	as_all(env, &all);
	KD_EXPECT_OK(test, kd_post(env->ep, KD_SEND, 1, &iov, 1, NULL, 0));
	KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, 2, NULL, 0));
	kd_device_event(env, IB_EVENT_DEVICE_FATAL);
	KD_EXPECT_END(env, BROKEN);
	kd_expect_dtos(test, env->req, 1, 1, DAT_DTO_ERR_FLUSHED);
	kd_expect_dtos(test, env->recv, 2, 1, DAT_DTO_ERR_FLUSHED);
	as_expect(env, env->async, DAT_ASYNC_ERROR_IA_CATASTROPHIC, env->ia,
		  DAT_IA_CATASTROPHIC_ERROR);
	as_expect(env, own, DAT_ASYNC_ERROR_IA_CATASTROPHIC, ia2, DAT_IA_CATASTROPHIC_ERROR);
	as_refused(env, &all);
	as_works(env, &all);
	/* said once, whatever else it says, also when it goes */
	kd_device_event(env, IB_EVENT_DEVICE_FATAL);
	kd_device_event(env, IB_EVENT_PORT_ERR);
	fake_ib_unplug(env->dev);
	for (i = 0; i < 2; i++)
		while (kd_next(i ? own : env->async, &event))
			KUNIT_EXPECT_NE(test, (u32)event.event_number,
					(u32)DAT_ASYNC_ERROR_IA_CATASTROPHIC);
	KD_EXPECT_EMPTY(test, env->conn);
	as_refused(env, &all);
	as_free(env, &all);
	KD_EXPECT_OK(test, dat_ia_close(ia2, DAT_CLOSE_GRACEFUL_FLAG));
}

/* A device that does not give requests back: the consumer hears why it took so long. */
static void as_silent_test(struct kunit *test)
{
	struct kd_env *env = kd_connected(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);

	fake_ib_hold_flush(env->dev, true);
	KD_EXPECT_OK(test, kd_post(env->ep, KD_SEND, 1, &iov, 1, NULL, 0));
	KD_EXPECT_OK(test, dat_ep_disconnect(env->ep, DAT_CLOSE_ABRUPT_FLAG));
	as_expect(env, env->async, DAT_ASYNC_ERROR_TIMED_OUT, env->ep, DAT_EP_OTHER_ERROR);
	/* ASY-21: beside the event of the connection, not in its place */
	KD_EXPECT_END(env, DISCONNECTED);
	KD_EXPECT_EMPTY(test, env->async);
	kd_expect_dtos(test, env->req, 1, 1, DAT_DTO_ERR_FLUSHED);
}

/* Set while an instance is being opened with the EVD of another one, which is closed then. */
static struct as_race {
	struct kunit *test;
	DAT_IA_HANDLE owner;
	struct kd_aside close;
} as_race;

static DAT_RETURN as_close_abrupt(DAT_HANDLE ia)
{
	return dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
}

static void as_close_owner(struct kdapl_ia *ia)
{
	kdapl_test_lent = NULL;
	kd_aside_call(as_race.test, &as_race.close, as_close_abrupt, as_race.owner);
	/* it gets as far as it can */
	KUNIT_EXPECT_FALSE(as_race.test, kd_aside_returned(&as_race.close, 300));
}

/* The owner need not wait for the instance that was about to share its EVD. */
static void as_lent_late_test(struct kunit *test)
{
	DAT_EVD_HANDLE lent = DAT_HANDLE_NULL;
	struct kd_env *env = kd_open(test, NULL);
	DAT_IA_HANDLE other;

	as_race.test = test;
	as_race.owner = kd_ia_more(env, &lent);
	kdapl_test_lent = as_close_owner;
	other = kd_ia_more(env, &lent);
	KUNIT_EXPECT_TRUE(test, kd_aside_returns(&as_race.close));
	KD_EXPECT_OK(test, dat_ia_query(other, &lent, 0, NULL, 0, NULL));
	KUNIT_EXPECT_PTR_EQ(test, lent, (DAT_EVD_HANDLE)DAT_HANDLE_NULL);
	KD_EXPECT_OK(test, dat_ia_close(other, DAT_CLOSE_GRACEFUL_FLAG));
	KUNIT_EXPECT_TRUE(test, kd_aside_wait(&as_race.close));
	KD_EXPECT_OK(test, as_race.close.ret);
}

/* An instance with everything in it, and a request on its way. */
static struct kd_env *as_full(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	struct as_all all;

	as_all(env, &all);
	KD_EXPECT_OK(test, kd_post(env->ep, KD_SEND, 1, &iov, 1, NULL, 0));
	return env;
}

/* Closing cannot fail: on a broken device, one that has gone, and with each verb refused once. */
static void as_close_test(struct kunit *test)
{
	bool failed = true;
	struct kd_env *env;
	unsigned int n;

	for (n = 0; n < 2; n++) {
		env = as_full(test);
		kd_device_event(env, IB_EVENT_DEVICE_FATAL);
		if (n)
			fake_ib_unplug(env->dev);
		KD_EXPECT_OK(test, dat_ia_close(kd_forget(env), DAT_CLOSE_ABRUPT_FLAG));
		kd_again(test);
	}
	for (n = 0; n < 100 && failed; n++) {
		env = as_full(test);
		fake_ib_fail(env->dev, FAKE_IB_ANY, n + 1, -ENOMEM);
		KUNIT_EXPECT_EQ_MSG(test, (u32)dat_ia_close(kd_forget(env), DAT_CLOSE_ABRUPT_FLAG),
				    (u32)DAT_SUCCESS, "verb %u", n + 1);
		/* what kd_exit() does then has nothing to do with that any more */
		failed = !fake_ib_failing(env->dev, FAKE_IB_ANY);
		fake_ib_fail(env->dev, FAKE_IB_ANY, 0, 0);
		kd_again(test);
	}
	/* at least the one that ends the connection, and the last one was reached, too */
	KUNIT_EXPECT_GT(test, n, 1U);
	KUNIT_EXPECT_FALSE(test, failed);
	kunit_info(test, "%u verbs\n", n - 1);
}

static struct kunit_case as_cases[] = {
	KD_CASE(as_port_attr_test, "CTX-05,IA-QRY-02: a port is asked again after its events"),
	KD_CASE(as_port_test, "ASY-04,IA-OPEN-05: errors of the port, to all instances"),
	KD_CASE(as_lent_test, "IA-OPEN-05,IA-CLOSE-02: the owner of a shared EVD closes first"),
	KD_CASE(as_lent_late_test, "IA-OPEN-05,IA-CLOSE-02: it closes while its EVD is being lent"),
	KD_CASE(as_qp_test, "ASY-05,EPSM-23,EPSM-17,EPSM-31: errors of the QP in every state"),
	KD_CASE(as_after_removal_test,
		"ASY-03,ASY-22,EPSM-24,GEN-06,SIL-27: every call when it has gone"),
	KD_CASE(as_fatal_test, "ASY-03,ASY-22,EPSM-24,FLUSH-01: every call when it is broken"),
	KD_CASE(as_null_evd_test, "ASY-02,EP-CREATE-03: errors of a CQ that no EVD shows"),
	KD_CASE(as_silent_test, "ASY-10,ASY-21: a device that does not answer"),
	KD_CASE(as_close_test, "IA-CLOSE-07,IA-CLOSE-02,ASY-22: closing, whatever fails"),
	{}
};

/* The one case with an SRQ. */
static struct kunit_case as_owner_cases[] = {
	KD_CASE(as_owner_test,
		"ASY-02,ASY-05,ASY-07,IA-OPEN-05: errors of an object, to its owner"),
	KD_CASE(as_srq_empty_test, "ASY-07: an SRQ that is empty has not failed"),
	{}
};

KD_SUITE("kdapl-async", as_cases, kd_init, kd_exit);
KD_SUITE("kdapl-async-owner", as_owner_cases, sq_init, sq_exit);
