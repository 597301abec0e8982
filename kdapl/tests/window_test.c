// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Two things at once, the second in the middle of the first: where the window is
 * too small to be hit, the first is stopped there, or done up to there by hand.
 */
#include <rdma/ib_cm.h>

#include "kd_conn.h"
#include "kd_srq.h"
#include "kd_upcall.h"
#include "../core/cm_reject.h"

#define WI_QUAL		100

/* The device goes, or breaks and stays. */
static void wi_remove(struct kd_env *env, bool fatal)
{
	if (fatal)
		kd_device_event(env, IB_EVENT_DEVICE_FATAL);
	else
		fake_ib_unplug(env->dev);
	flush_workqueue(kdapl_misc_wq);
}

/* An acceptance in another thread: of what, with what. */
struct wi_accept {
	DAT_CR_HANDLE cr;
	DAT_EP_HANDLE ep;
	DAT_RETURN ret;
};

static void wi_accept(void *arg)
{
	struct wi_accept *accept = arg;

	accept->ret = dat_cr_accept(accept->cr, accept->ep, 0, NULL);
}

/*
 * A disconnect overtakes an acceptance, with an SRQ and with a QP that cannot be stopped. It is
 * stopped where it waits for the handler of the request's cm_id, as it may have to.
 */
static void wi_accept_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	struct kd_env *env = &sq->env;
	DAT_EVD_HANDLE cr_evd = kd_cr_evd(env, 8);
	DAT_PSP_HANDLE psp = kd_psp(env, cr_evd, WI_QUAL, DAT_PSP_CONSUMER_FLAG);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	struct wi_accept accept;
	struct kd_aside aside;
	struct kdapl_cr *kcr;
	struct rdma_cm_id *id;
	bool srq;
	int i;

	sq_srq(sq, 4);
	for (i = 0; i < 2; i++) {
		srq = i;
		if (srq)
			sq_ep_on(sq, 0, env->recv, NULL);
		else
			kd_ep(env, NULL);
		accept = (struct wi_accept) { .cr = kd_cr(env, psp, cr_evd), .ep = env->ep };
		if (!srq) {	/* so its Receive will not come back before it is destroyed */
			KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, 1, NULL, 0));
			fake_ib_fail(env->dev, FAKE_IB_MODIFY_QP, 1, -EIO);
		}
		kcr = kdapl_obj_get(accept.cr, DAT_HANDLE_TYPE_CR);
		KUNIT_ASSERT_NOT_NULL(test, kcr);
		id = kcr->cm_id;
		rdma_lock_handler(id);
		kd_aside(test, &aside, wi_accept, &accept);
		KD_WAIT(test, kd_state(env, env->ep) == DAT_EP_STATE_COMPLETION_PENDING);
		KD_EXPECT_OK(test, dat_ep_disconnect(env->ep, DAT_CLOSE_ABRUPT_FLAG));
		KD_WAIT(test, !READ_ONCE(kd_conn_of(env)->qp));
		rdma_unlock_handler(id);
		KUNIT_ASSERT_TRUE(test, kd_aside_wait(&aside));
		kdapl_obj_put(&kcr->obj);
		KD_EXPECT_OK(test, accept.ret);
		KD_BAD_HANDLE(test, dat_cr_reject(accept.cr, 0, NULL), _CR);
		/* given up: one event, and the cm_id goes as well */
		KD_EXPECT_END(env, DISCONNECTED);
		KD_WAIT(test, !READ_ONCE(kd_conn_of(env)->cm_id));
		flush_workqueue(kdapl_misc_wq);
		KD_EXPECT_EMPTY(test, env->conn);
		KUNIT_EXPECT_EQ(test, kd_drain(env->recv), !srq);
		if (srq)
			sq_ep_free(sq, 0);
		else
			kd_ep_free(env);
	}
	KD_EXPECT_OK(test, dat_psp_free(psp));
	KD_EXPECT_EMPTY(test, cr_evd);
	KD_EXPECT_OK(test, dat_evd_free(cr_evd));
}

/* The peer has answered before rdma_connect() has returned: the next attempt has to wait. */
static void wi_retry_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kdapl_conn *conn;
	struct rdma_cm_id *id;
	int i;

	for (i = 0; i < 2; i++) {
		kd_ep(env, NULL);
		kd_reach(env, DAT_EP_STATE_ACTIVE_CONNECTION_PENDING);
		conn = kd_conn_of(env);
		id = kd_cm_id(env, WI_QUAL);
		KUNIT_ASSERT_FALSE(test, IS_ERR(id));
		mutex_lock(&conn->lock);
		conn->cm_id = id;
		conn->cm_busy = KDAPL_CM_CALL;
		mutex_unlock(&conn->lock);
		kdapl_cm_set_ops(conn);
		queue_delayed_work(kdapl_connect_wq, &conn->retry_work, 0);
		flush_delayed_work(&conn->retry_work);
		flush_workqueue(kdapl_misc_wq);
		KUNIT_EXPECT_PTR_EQ(test, READ_ONCE(conn->cm_id), id);
		KD_EXPECT_STATE(env, env->ep, ACTIVE_CONNECTION_PENDING);
		KD_EXPECT_EMPTY(test, env->conn);
		if (i) {	/* given up while it waits */
			KD_EXPECT_OK(test, dat_ep_disconnect(env->ep, DAT_CLOSE_ABRUPT_FLAG));
			KD_EXPECT_END(env, DISCONNECTED);
			KUNIT_EXPECT_PTR_EQ(test, READ_ONCE(conn->cm_id), id);
		}
		mutex_lock(&conn->lock);
		conn->cm_busy = 0;
		mutex_unlock(&conn->lock);
		if (!i)		/* it tries by itself; there is no address to start from */
			KD_EXPECT_END(env, UNREACHABLE);
		kd_ep_free(env);
	}
}

/* The timer of the attempt runs late, when the connection is being drained already. */
static void wi_timer_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	struct kdapl_conn *conn;

	kd_ep(env, NULL);
	kd_connect(env);
	conn = kd_conn_of(env);
	KD_EXPECT_OK(test, kd_post(env->ep, KD_SEND, 1, &iov, 1, NULL, 0));
	KD_EXPECT_OK(test, dat_ep_disconnect(env->ep, DAT_CLOSE_GRACEFUL_FLAG));
	queue_delayed_work(kdapl_misc_wq, &conn->timer, 0);
	flush_delayed_work(&conn->timer);
	flush_workqueue(kdapl_misc_wq);
	KD_EXPECT_STATE(env, env->ep, DISCONNECT_PENDING);
	KUNIT_EXPECT_EQ(test, (int)fake_ib_qp_state(env->qp), (int)IB_QPS_RTS);
	KD_EXPECT_EMPTY(test, env->conn);
	fake_ib_complete_all(env->qp, false, IB_WC_SUCCESS);
	KD_EXPECT_END(env, DISCONNECTED);
	kd_expect_dto(test, env->req, 1, DAT_DTO_SUCCESS);
}

/* The peer never confirms, and would have us wait for a day. */
static void wi_unconfirmed_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kdapl_conn *conn;

	kd_ep(env, NULL);
	kd_reach(env, DAT_EP_STATE_COMPLETION_PENDING);
	conn = kd_conn_of(env);
	conn->passive = true;
	queue_delayed_work(kdapl_misc_wq, &conn->timer, 0);
	KD_EXPECT_END(env, ACCEPT_COMPLETION_ERROR);
}

/* The EP that waits for an answer has broken before, and its consumer knows. */
static void wi_removed_late(struct kunit *test, bool fatal)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	DAT_EVD_HANDLE cr_evd = kd_cr_evd(env, 8);
	DAT_CR_HANDLE cr;

	kd_ep(env, NULL);
	cr = kd_cr(env, kd_rsp(env, cr_evd, WI_QUAL, env->ep), cr_evd);
	/* the device refuses a Receive, which shows that the QP is dead */
	fake_ib_fail(env->dev, FAKE_IB_POST_RECV, 1, -EINVAL);
	KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, 1, NULL, 0));
	kd_expect_event(env, env->conn, DAT_CONNECTION_EVENT_BROKEN, NULL);
	kd_expect_dto(test, env->recv, 1, DAT_DTO_ERR_FLUSHED);
	KD_EXPECT_STATE(env, env->ep, PASSIVE_CONNECTION_PENDING);
	wi_remove(env, fatal);
	KD_EXPECT_STATE(env, env->ep, DISCONNECTED);
	KD_EXPECT_EMPTY(test, env->conn);
	KD_EXPECT_EMPTY(test, env->recv);
	KD_EXPECT_OK(test, dat_cr_reject(cr, 0, NULL));
	KD_EXPECT_OK(test, dat_evd_free(cr_evd));
}

static void wi_removed_test(struct kunit *test)
{
	wi_removed_late(test, false);
	kd_again(test);
	wi_removed_late(test, true);
}

/* An open, in another thread. */
struct wi_open {
	char name[DAT_NAME_MAX_LENGTH];
	DAT_EVD_HANDLE async;
	DAT_IA_HANDLE ia;
	DAT_RETURN ret;
};

static void wi_open(void *arg)
{
	struct wi_open *open = arg;

	open->async = DAT_HANDLE_NULL;
	open->ret = dat_ia_open(open->name, 8, &open->async, &open->ia);
}

/* The device fails while an instance is being opened. */
static void wi_open_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct wi_open *open = kunit_kzalloc(test, sizeof(*open), GFP_KERNEL);
	struct kdapl_device *dev = kd_ia(env)->dev;
	struct ib_event fatal = {
		.device = fake_ib_device(env->dev), .event = IB_EVENT_DEVICE_FATAL,
	};
	struct kd_aside aside;
	unsigned int users;
	DAT_PZ_HANDLE pz;
	DAT_EVENT event;

	KUNIT_ASSERT_NOT_NULL(test, open);
	snprintf(open->name, sizeof(open->name), "%s-1", fake_ib_name(env->dev));
	/* stopped where the device has been entered and does not know of the instance yet */
	mutex_lock(&dev->lock);
	users = refcount_read(&dev->users);
	kd_aside(test, &aside, wi_open, open);
	KD_WAIT(test, refcount_read(&dev->users) != users);
	ib_dispatch_event(&fatal);
	KD_WAIT(test, READ_ONCE(dev->fatal));
	mutex_unlock(&dev->lock);
	KUNIT_ASSERT_TRUE(test, kd_aside_wait(&aside));
	flush_workqueue(kdapl_misc_wq);
	KD_GONE(test, dat_pz_create(env->ia, &pz));
	KD_ASSERT_OK(test, open->ret);
	kd_expect_event(env, open->async, DAT_ASYNC_ERROR_IA_CATASTROPHIC, &event);
	KUNIT_EXPECT_PTR_EQ(test, event.event_data.asynch_error_event_data.dat_handle, open->ia);
	KD_GONE(test, dat_pz_create(open->ia, &pz));
	/* once, also when it goes */
	fake_ib_unplug(env->dev);
	KD_EXPECT_EMPTY(test, open->async);
	KD_EXPECT_OK(test, dat_ia_close(open->ia, DAT_CLOSE_GRACEFUL_FLAG));
}

/*
 * The same where a request may not be refused at once: it is refused later (D-60). @idle: the end
 * has a reason, and has not begun.
 */
static void wi_accept_later(struct kd_env *env, DAT_CR_HANDLE cr, bool idle)
{
	struct kdapl_device *dev = kd_ia(env)->dev;
	struct wi_accept accept = { .cr = cr };
	struct kunit *test = env->test;
	struct kdapl_conn *conn;
	struct kd_aside aside;
	struct rdma_cm_id *id;
	struct kdapl_cr *kcr;

	kd_ep(env, NULL);
	accept.ep = env->ep;
	conn = kd_conn_of(env);
	kcr = kdapl_obj_get(cr, DAT_HANDLE_TYPE_CR);
	KUNIT_ASSERT_NOT_NULL(test, kcr);
	id = kcr->cm_id;
	if (idle)
		rdma_lock_handler(id);
	else
		mutex_lock(&conn->lock);
	kd_aside(test, &aside, wi_accept, &accept);
	KD_WAIT(test, kd_state(env, env->ep) == DAT_EP_STATE_COMPLETION_PENDING);
	if (idle) {
		kdapl_conn_end_in(conn, DAT_CONNECTION_EVENT_DISCONNECTED, KD_LONG);
		rdma_unlock_handler(id);
	} else {
		KD_EXPECT_OK(test, dat_ep_disconnect(env->ep, DAT_CLOSE_ABRUPT_FLAG));
		mutex_unlock(&conn->lock);
	}
	KUNIT_ASSERT_TRUE(test, kd_aside_wait(&aside));
	kdapl_obj_put(&kcr->obj);
	if (idle)
		mod_delayed_work(kdapl_misc_wq, &conn->end_work, 0);
	KD_EXPECT_OK(test, accept.ret);
	KD_EXPECT_END(env, DISCONNECTED);
	/* its cm_id has never been that of the connection, which would be destroyed at once */
	KUNIT_EXPECT_FALSE(test, conn->passive);
	KUNIT_EXPECT_NULL(test, READ_ONCE(conn->cm_id));
	KD_WAIT(test, !atomic_read(&dev->ids));
	kd_ep_free(env);
}

static void wi_accept_later_test(struct kunit *test)
{
	static const struct fake_ib_caps caps = { .driver = RDMA_DRIVER_SIW };
	struct kd_env *env = kd_open(test, &caps);
	DAT_EVD_HANDLE cr_evd = kd_cr_evd(env, 8);
	DAT_PSP_HANDLE psp = kd_psp(env, cr_evd, WI_QUAL, DAT_PSP_CONSUMER_FLAG);

	KUNIT_ASSERT_TRUE(test, kd_ia(env)->dev->caps.reject_unsafe);
	wi_accept_later(env, kd_cr(env, psp, cr_evd), false);
	wi_accept_later(env, kd_cr(env, psp, cr_evd), true);
	KD_EXPECT_OK(test, dat_psp_free(psp));
	KD_EXPECT_OK(test, dat_evd_free(cr_evd));
}

static struct kd_env *wi_env;

/* The connection manager reports the connection. */
static void wi_come_up(struct kdapl_conn *conn)
{
	kd_bring_up(wi_env);
}

/*
 * The QP fails before its connection comes up, or meanwhile: nobody may think that the other one
 * has seen it.
 */
static void wi_failed_test(struct kunit *test)
{
	static const enum ib_event_type types[] = {
		IB_EVENT_QP_FATAL, IB_EVENT_QP_REQ_ERR, IB_EVENT_QP_ACCESS_ERR,
		IB_EVENT_QP_LAST_WQE_REACHED,
	};
	struct kd_env *env = kd_open(test, NULL);
	bool before;
	int i;

	wi_env = env;
	for (i = 0; i < 2 * ARRAY_SIZE(types); i++) {
		before = i & 1;
		kd_ep(env, NULL);
		kdapl_test_conn_early = before ? NULL : wi_come_up;
		fake_ib_qp_event(env->qp, types[i / 2]);
		kdapl_test_conn_early = NULL;
		if (before)
			kd_bring_up(env);
		kd_expect_event(env, env->conn, DAT_CONNECTION_EVENT_ESTABLISHED, NULL);
		KD_EXPECT_END(env, BROKEN);
		kd_ep_free(env);
	}
	kd_drain(env->async);
}

/*
 * On iWARP the last Receive may be reported because the peer has disconnected, before the
 * connection manager has said a word. It says so later, or there was an error.
 */
static void wi_early_end_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kdapl_device *dev = kd_ia(env)->dev;
	int told;

	for (told = 0; told < 2; told++) {
		kd_ep(env, NULL);
		dev->iwarp = true;
		fake_ib_qp_event(env->qp, IB_EVENT_QP_LAST_WQE_REACHED);
		kd_connect(env);
		if (told) {
			kdapl_conn_end(kd_conn_of(env), KDAPL_END_PEER);
			KD_EXPECT_END(env, DISCONNECTED);
		} else {
			KD_EXPECT_END(env, BROKEN);
		}
		dev->iwarp = false;
		kd_ep_free(env);
	}
}

/* What is left in the work queues when a connection ends, on the EVD that tells of the end. */
static void wi_rest(struct kd_env *env, DAT_EVD_HANDLE evd, u32 number)
{
	struct kunit *test = env->test;
	u64 next[2] = { 1, 101 };
	DAT_EVENT event;
	int i;

	for (i = 0; i < 8; i++) {
		const DAT_DTO_COMPLETION_EVENT_DATA *dto =
			&event.event_data.dto_completion_event_data;
		bool recv;

		kd_next_wait(env, evd, &event);
		KUNIT_EXPECT_EQ_MSG(test, (u32)event.event_number, (u32)DAT_DTO_COMPLETION_EVENT,
				    "event %d", i);
		if (event.event_number != DAT_DTO_COMPLETION_EVENT)
			continue;
		recv = dto->user_cookie.as_64 > 100;
		KUNIT_EXPECT_EQ(test, dto->user_cookie.as_64, next[recv]++);
		KUNIT_EXPECT_EQ(test, (int)dto->status, (int)DAT_DTO_ERR_FLUSHED);
	}
	kd_expect_event(env, evd, number, NULL);
	KD_EXPECT_EMPTY(test, evd);
}

/*
 * The device gives nothing back, or is taken away: what it had is reported all the same, and then
 * the end.
 */
static void wi_rest_test(struct kunit *test)
{
	DAT_EVD_HANDLE evd, old[3];
	struct kd_env *env;
	int removed, i;

	for (removed = 0; removed < 2; removed++) {
		DAT_LMR_TRIPLET iov;

		env = kd_open(test, NULL);
		iov = kd_seg(env, KD_RW, 0, 8);
		memcpy(old, (DAT_EVD_HANDLE []) { env->recv, env->req, env->conn }, sizeof(old));
		evd = kd_evd(env, 64, DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG);
		env->recv = evd;
		env->req = evd;
		env->conn = evd;
		kd_ep(env, NULL);
		kd_connect(env);
		for (i = 0; i < 4; i++) {
			KD_EXPECT_OK(test, kd_post(env->ep, KD_SEND, 1, &iov, 1 + i, NULL, 0));
			KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, 101 + i, NULL, 0));
		}
		fake_ib_hold_flush(env->dev, true);
		if (removed)
			fake_ib_unplug(env->dev);
		else
			KD_EXPECT_OK(test, dat_ep_disconnect(env->ep, DAT_CLOSE_ABRUPT_FLAG));
		wi_rest(env, evd, removed ? DAT_CONNECTION_EVENT_BROKEN :
			DAT_CONNECTION_EVENT_DISCONNECTED);
		kd_ep_free(env);
		env->recv = old[0];
		env->req = old[1];
		env->conn = old[2];
		KD_EXPECT_OK(test, dat_evd_free(evd));
		kd_again(test);
	}
}

/**
 * struct wi_freed - an EP that is freed inside an upcall of its connect EVD
 * @sink: the upcalls of that EVD
 * @ep: the EP
 * @ret: what dat_ep_free() returned
 */
static struct wi_freed {
	struct kd_sink *sink;
	DAT_EP_HANDLE ep;
	DAT_RETURN ret;
} wi_freed;

static void wi_free(struct kd_sink *sink, const DAT_EVENT *event, bool more)
{
	if (event->event_number == DAT_SOFTWARE_EVENT)
		wi_freed.ret = dat_ep_free(wi_freed.ep);
}

/* An event of the EP is about to be queued: it is freed first. */
static void wi_freed_first(struct kdapl_ep *ep)
{
	kdapl_test_ep_event = NULL;
	kd_post_se(wi_freed.sink->evd, 1);
	kd_sink_wait(wi_freed.sink, 1, 1);
}

/*
 * The connection ends, and before its event is queued the EP is freed in an upcall, which leaves
 * the rest for later: the event must not come any more.
 */
static void wi_freed_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kd_sink *sink = kd_sink(test);
	const DAT_UPCALL_OBJECT object = kd_sink_object(sink);
	DAT_EVD_HANDLE old = env->conn;
	struct kdapl_evd *evd;
	struct kdapl_ep *ep;

	env->conn = kd_evd(env, 8, DAT_EVD_CONNECTION_FLAG | DAT_EVD_SOFTWARE_FLAG);
	KD_EXPECT_OK(test, dat_evd_free(old));
	kd_ep(env, NULL);
	kd_connect(env);
	ep = env->kep;
	refcount_inc(&ep->obj.ref);
	evd = kdapl_obj_get(env->conn, DAT_HANDLE_TYPE_EVD);
	KUNIT_ASSERT_NOT_NULL(test, evd);
	sink->evd = env->conn;
	sink->inside = wi_free;
	wi_freed = (struct wi_freed) { .sink = sink, .ep = env->ep, .ret = DAT_NOT_IMPLEMENTED };
	KD_EXPECT_OK(test, dat_evd_modify_upcall(env->conn, DAT_UPCALL_SINGLE_INSTANCE, &object,
						 DAT_UPCALL_INVOC_NEW));
	mutex_lock(&ep->mutex);		/* later is when this is free */
	kdapl_test_ep_event = wi_freed_first;
	KD_EXPECT_OK(test, dat_ep_disconnect(env->ep, DAT_CLOSE_ABRUPT_FLAG));
	KD_WAIT(test, !READ_ONCE(ep->obj.live));
	flush_workqueue(kdapl_misc_wq);
	kdapl_test_ep_event = NULL;
	/* kd_settle() would flush the workqueue on which free_work waits for this mutex */
	KD_WAIT(test, !work_busy(&evd->work));
	kd_sink_expect(test, sink, 1);
	mutex_unlock(&ep->mutex);
	kdapl_obj_put(&evd->obj);
	KD_EXPECT_OK(test, wi_freed.ret);
	kd_ep_give(env);
	kd_ep_gone(test, ep);
	kd_settle(env->conn);
	kd_sink_expect(test, sink, 1);
}

/*
 * The device fails while a call changes an EP that waits for the answer to its request. The call
 * may wait for the end of a connection, which needs the work item that tells of the failure.
 */
static void wi_lost_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct ib_event fatal = {
		.device = fake_ib_device(env->dev), .event = IB_EVENT_DEVICE_FATAL,
	};
	DAT_EVD_HANDLE cr_evd = kd_cr_evd(env, 8);
	DAT_CR_HANDLE cr;

	kd_ep(env, NULL);
	cr = kd_cr(env, kd_rsp(env, cr_evd, WI_QUAL, env->ep), cr_evd);
	mutex_lock(&env->kep->mutex);
	ib_dispatch_event(&fatal);
	KD_WAIT(test, kd_state(env, env->ep) == DAT_EP_STATE_DISCONNECTED);
	mutex_unlock(&env->kep->mutex);
	flush_workqueue(kdapl_misc_wq);
	kd_expect_event(env, env->conn, DAT_CONNECTION_EVENT_BROKEN, NULL);
	KD_EXPECT_OK(test, dat_cr_reject(cr, 0, NULL));
	KD_EXPECT_OK(test, dat_evd_free(cr_evd));
}

static void wi_hand_off(void *arg)
{
	struct wi_accept *accept = arg;

	accept->ret = dat_cr_handoff(accept->cr, WI_QUAL);
}

/*
 * The device fails when a call that answers a request is on its way, and the request loses its
 * cm_id. The request is still the consumer's, who must not be told that there is none.
 */
static void wi_cr_lost_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kdapl_device *dev = kd_ia(env)->dev;
	struct ib_event fatal = {
		.device = fake_ib_device(env->dev), .event = IB_EVENT_DEVICE_FATAL,
	};
	DAT_EVD_HANDLE cr_evd = kd_cr_evd(env, 8);
	DAT_PSP_HANDLE psp = kd_psp(env, cr_evd, WI_QUAL, DAT_PSP_CONSUMER_FLAG);
	struct wi_accept accept;
	struct kd_aside aside;
	struct rdma_cm_id *id;
	struct kdapl_cr *kcr;
	unsigned int users;

	kd_ep(env, NULL);
	/* a handoff: by hand, since the device would wait for the same mutex */
	accept = (struct wi_accept) { .cr = kd_cr(env, psp, cr_evd) };
	kcr = kdapl_obj_get(accept.cr, DAT_HANDLE_TYPE_CR);
	KUNIT_ASSERT_NOT_NULL(test, kcr);
	mutex_lock(&kcr->mutex);
	users = refcount_read(&dev->users);
	kd_aside(test, &aside, wi_hand_off, &accept);
	KD_WAIT(test, refcount_read(&dev->users) != users);
	id = kcr->cm_id;
	kcr->cm_id = NULL;
	mutex_unlock(&kcr->mutex);
	KUNIT_ASSERT_TRUE(test, kd_aside_wait(&aside));
	kdapl_cm_reject(dev, id, NULL, 0, IB_CM_REJ_NO_RESOURCES);
	KD_GONE(test, accept.ret);
	KD_EXPECT_EMPTY(test, cr_evd);
	KUNIT_EXPECT_TRUE(test, kcr->obj.live);
	kdapl_obj_put(&kcr->obj);
	KD_EXPECT_OK(test, dat_cr_reject(accept.cr, 0, NULL));
	/* an acceptance */
	accept = (struct wi_accept) { .cr = kd_cr(env, psp, cr_evd), .ep = env->ep };
	kcr = kdapl_obj_get(accept.cr, DAT_HANDLE_TYPE_CR);
	KUNIT_ASSERT_NOT_NULL(test, kcr);
	mutex_lock(&env->kep->mutex);
	users = refcount_read(&dev->users);
	kd_aside(test, &aside, wi_accept, &accept);
	KD_WAIT(test, refcount_read(&dev->users) != users);
	ib_dispatch_event(&fatal);
	KD_WAIT(test, !READ_ONCE(kcr->cm_id));
	mutex_unlock(&env->kep->mutex);
	KUNIT_ASSERT_TRUE(test, kd_aside_wait(&aside));
	flush_workqueue(kdapl_misc_wq);
	KD_GONE(test, accept.ret);
	KUNIT_EXPECT_TRUE(test, kcr->obj.live);
	kdapl_obj_put(&kcr->obj);
	KD_EXPECT_STATE(env, env->ep, UNCONNECTED);
	KD_EXPECT_EMPTY(test, env->conn);
	KD_EXPECT_OK(test, dat_cr_reject(accept.cr, 0, NULL));
	KD_EXPECT_OK(test, dat_psp_free(psp));
	KD_EXPECT_OK(test, dat_evd_free(cr_evd));
}

/* The device fails when dat_cr_accept() has moved the EP, and the connection is still idle. */
static void wi_accept_lost_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct ib_event fatal = {
		.device = fake_ib_device(env->dev), .event = IB_EVENT_DEVICE_FATAL,
	};
	DAT_EVD_HANDLE cr_evd = kd_cr_evd(env, 8);
	DAT_PSP_HANDLE psp = kd_psp(env, cr_evd, WI_QUAL, DAT_PSP_CONSUMER_FLAG);
	struct wi_accept accept;
	struct kd_aside aside;
	struct rdma_cm_id *id;
	struct kdapl_cr *kcr;

	kd_ep(env, NULL);
	accept = (struct wi_accept) { .cr = kd_cr(env, psp, cr_evd), .ep = env->ep };
	kcr = kdapl_obj_get(accept.cr, DAT_HANDLE_TYPE_CR);
	KUNIT_ASSERT_NOT_NULL(test, kcr);
	id = kcr->cm_id;
	rdma_lock_handler(id);
	kd_aside(test, &aside, wi_accept, &accept);
	KD_WAIT(test, kd_state(env, env->ep) == DAT_EP_STATE_COMPLETION_PENDING);
	ib_dispatch_event(&fatal);
	/* it comes last, so the device has looked at the connection */
	kd_expect_event(env, env->async, DAT_ASYNC_ERROR_IA_CATASTROPHIC, NULL);
	KD_EXPECT_EMPTY(test, env->conn);
	rdma_unlock_handler(id);
	KUNIT_ASSERT_TRUE(test, kd_aside_wait(&aside));
	kdapl_obj_put(&kcr->obj);
	KD_EXPECT_OK(test, accept.ret);
	KD_EXPECT_END(env, BROKEN);
	flush_workqueue(kdapl_misc_wq);
	KD_EXPECT_EMPTY(test, env->conn);
	KD_BAD_HANDLE(test, dat_cr_reject(accept.cr, 0, NULL), _CR);
	KD_EXPECT_OK(test, dat_psp_free(psp));
	KD_EXPECT_OK(test, dat_evd_free(cr_evd));
}

/* A request that is handed to a service point before that listens, and what came of it. */
static struct {
	DAT_CR_HANDLE cr;
	DAT_RETURN ret;
} wi_early;

static void wi_hand_off_early(struct kdapl_sp *sp)
{
	wi_early.ret = dat_cr_handoff(wi_early.cr, sp->conn_qual);
}

/* A PSP that is being made cannot be given a request: it may turn out that it cannot listen. */
static void wi_early_psp_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	DAT_EVD_HANDLE cr_evd = kd_cr_evd(env, 8), evd = kd_cr_evd(env, 8);
	DAT_PSP_HANDLE psp = kd_psp(env, cr_evd, WI_QUAL, DAT_PSP_CONSUMER_FLAG);
	DAT_PSP_HANDLE none = DAT_HANDLE_NULL;
	DAT_RETURN ret;
	DAT_EVENT event;

	wi_early.cr = kd_cr(env, psp, cr_evd);
	wi_early.ret = DAT_NOT_IMPLEMENTED;
	kdapl_test_sp_start = wi_hand_off_early;
	ret = dat_psp_create(env->ia, WI_QUAL + 1, evd, DAT_PSP_CONSUMER_FLAG, &none);
	kdapl_test_sp_start = NULL;
	/* there is no address to listen on */
	KUNIT_EXPECT_NE(test, (u32)ret, (u32)DAT_SUCCESS);
	KUNIT_EXPECT_PTR_EQ(test, none, DAT_HANDLE_NULL);
	KD_BAD_ARG(test, wi_early.ret, 2);
	KD_EXPECT_EMPTY(test, evd);
	/* still where it came from */
	KD_EXPECT_OK(test, dat_cr_handoff(wi_early.cr, WI_QUAL));
	kd_expect_event(env, cr_evd, DAT_CONNECTION_REQUEST_EVENT, &event);
	KD_EXPECT_OK(test, dat_cr_reject(event.event_data.cr_arrival_event_data.cr_handle, 0,
					 NULL));
	KD_EXPECT_OK(test, dat_psp_free(psp));
	KD_EXPECT_OK(test, dat_evd_free(cr_evd));
	KD_EXPECT_OK(test, dat_evd_free(evd));
}

/* Something that the driver waits for. */
struct wi_stuck {
	struct completion begun;
	struct completion go;
};

static void wi_stick(void *arg)
{
	struct wi_stuck *stuck = arg;

	complete(&stuck->begun);
	wait_for_completion(&stuck->go);
}

static struct kdapl_conn *wi_failing;	/* the connection that the device ends at the moment */

static void wi_dev_fails(struct kdapl_conn *conn)
{
	WRITE_ONCE(wi_failing, conn);
}

enum wi_how {
	WI_ENDING,	/* a connection is being ended, and the driver waits */
	WI_BUSY,	/* somebody has the lock of a connection, and may wait */
	WI_IDLE,	/* the same of an idle one, where the failure has to wait, too */
};

/*
 * The device fails while its driver waits for it, on behalf of a connection: whoever has nothing
 * to do with that connection does not wait. Nor do consumers wait to be told, unless it was idle.
 */
static void wi_fatal(struct kunit *test, enum wi_how how)
{
	struct kd_env *env = how == WI_IDLE ? kd_open(test, NULL) : kd_connected(test, NULL);
	struct ib_event fatal = {
		.device = fake_ib_device(env->dev), .event = IB_EVENT_DEVICE_FATAL,
	};
	DAT_EVD_HANDLE own = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia = kd_ia_more(env, &own);
	struct kdapl_conn *conn;
	struct wi_stuck stuck;
	struct kd_aside free;
	DAT_PZ_HANDLE pz;
	DAT_EVENT event;

	if (how == WI_IDLE)
		kd_ep(env, NULL);
	conn = kd_conn_of(env);
	KD_ASSERT_OK(test, dat_pz_create(ia, &pz));
	init_completion(&stuck.begun);
	init_completion(&stuck.go);
	if (how == WI_ENDING) {
		fake_ib_at(env->dev, FAKE_IB_TO_ERR, 1, wi_stick, &stuck);
		fake_ib_qp_event(env->qp, IB_EVENT_QP_FATAL);
		KUNIT_EXPECT_TRUE(test, wait_for_completion_timeout(&stuck.begun, KD_LONG));
	} else {
		mutex_lock(&conn->lock);
	}
	WRITE_ONCE(wi_failing, NULL);
	kdapl_test_dev_fail = wi_dev_fails;
	ib_dispatch_event(&fatal);
	KD_WAIT(test, READ_ONCE(wi_failing));
	kd_aside_call(test, &free, dat_pz_free, pz);
	KUNIT_EXPECT_TRUE(test, kd_aside_returns(&free));
	if (how != WI_IDLE) {
		KD_WAIT(test, kd_next(own, &event));
		KUNIT_EXPECT_EQ(test, (u32)event.event_number,
				(u32)DAT_ASYNC_ERROR_IA_CATASTROPHIC);
		KD_EXPECT_STATE(env, env->ep, CONNECTED);
	}
	if (how == WI_ENDING)
		complete(&stuck.go);
	else
		mutex_unlock(&conn->lock);
	KUNIT_ASSERT_TRUE(test, kd_aside_wait(&free));
	KD_EXPECT_OK(test, free.ret);
	if (how != WI_IDLE)
		KD_EXPECT_END(env, BROKEN);
	else
		kd_expect_event(env, own, DAT_ASYNC_ERROR_IA_CATASTROPHIC, NULL);
	flush_workqueue(kdapl_misc_wq);
	kdapl_test_dev_fail = NULL;
	KD_EXPECT_OK(test, dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

static void wi_fatal_test(struct kunit *test)
{
	wi_fatal(test, WI_ENDING);
	kd_again(test);
	wi_fatal(test, WI_BUSY);
	kd_again(test);
	wi_fatal(test, WI_IDLE);
}

static struct kunit *wi_leave_test;
static DAT_EP_HANDLE wi_leaving;
static DAT_RETURN wi_left;

/* The EP is freed, and its connection reaped: nobody has a reference any more. */
static void wi_leave_now(void *arg)
{
	wi_left = dat_ep_free(wi_leaving);
	flush_workqueue(kdapl_reap_wq);
	rcu_barrier();
	flush_workqueue(kdapl_reap_wq);
}

/* In another thread: this work item must not wait for what the reaper waits for. */
static void wi_leave(struct kdapl_conn *conn)
{
	struct kunit *test = wi_leave_test;
	struct kd_aside aside;

	if (wi_leaving == DAT_HANDLE_NULL || conn->handle != wi_leaving)
		return;
	kd_aside(test, &aside, wi_leave_now, NULL);
	KUNIT_EXPECT_TRUE(test, kd_aside_wait(&aside));
	wi_leaving = DAT_HANDLE_NULL;
}

/*
 * A connection that has ended leaves just when the device that has failed is about to end it. The
 * next one is ended, too.
 */
static void wi_fatal_leave_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct kdapl_ep *ep;

	kd_ep(env, NULL);
	kd_reach(env, DAT_EP_STATE_DISCONNECTED);
	ep = env->kep;
	refcount_inc(&ep->obj.ref);
	wi_leaving = kd_ep_give(env);
	wi_left = DAT_NOT_IMPLEMENTED;
	wi_leave_test = test;
	kd_ep(env, NULL);
	kd_connect(env);
	kdapl_test_dev_fail = wi_leave;
	kd_device_event(env, IB_EVENT_DEVICE_FATAL);
	kdapl_test_dev_fail = NULL;
	KD_EXPECT_OK(test, wi_left);
	kd_ep_gone(test, ep);
	KD_EXPECT_END(env, BROKEN);
	kd_expect_event(env, env->async, DAT_ASYNC_ERROR_IA_CATASTROPHIC, NULL);
}

static struct kunit_case wi_cases[] = {
	KD_CASE(wi_accept_test, "CR-ACC-03,EP-DIS-05,EPSM-30: disconnected inside dat_cr_accept"),
	KD_CASE(wi_retry_test, "EPSM-30,EP-DIS-05: a stale connection, known too early"),
	KD_CASE(wi_unconfirmed_test, "CR-ACC-03,EPSM-12: a peer that never confirms"),
	KD_CASE(wi_timer_test, "EPSM-18,FLUSH-09: the timer of the attempt comes too late"),
	KD_CASE(wi_accept_later_test, "CR-ACC-03,EP-DIS-05: the same, refused a little later"),
	KD_CASE(wi_failed_test, "ASY-05,EPSM-17: the QP fails while the connection comes up"),
	KD_CASE(wi_early_end_test, "EPSM-17,EPSM-20: the peer is gone before the CM says anything"),
	KD_CASE(wi_rest_test, "FLUSH-01,FLUSH-06,EPSM-24: what the device keeps, and the end"),
	KD_CASE(wi_freed_test, "EP-FREE-03,EP-FREE-06: freed in an upcall when an event is due"),
	KD_CASE(wi_lost_test, "EPSM-24: the device fails while a call has the EP"),
	KD_CASE(wi_fatal_test, "EPSM-24,ASY-03,PZ-02: the device fails while its driver waits"),
	KD_CASE(wi_fatal_leave_test, "EPSM-24,EP-FREE-03: the device fails, an EP is freed"),
	KD_CASE(wi_removed_test, "EPSM-24,EPSM-30: broken before the device goes"),
	KD_CASE(wi_open_test, "ASY-03,ASY-22,IA-OPEN-07: opened when the device fails"),
	KD_CASE(wi_cr_lost_test, "CR-ACC-05,CR-HO-01,ASY-22: answered when the device fails"),
	KD_CASE(wi_accept_lost_test, "EPSM-24,CR-ACC-03: the device fails inside dat_cr_accept"),
	KD_CASE(wi_early_psp_test, "CR-HO-02: handed to a PSP that is being made"),
	{}
};

KD_SUITE("kdapl-windows", wi_cases, sq_init, sq_exit);
