// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The common ground of the suites that work on the fake device.
 *
 * Every case ends with the same questions: did anybody misuse the device, and
 * did anything stay behind on it when it was unplugged.
 */
#include <linux/delay.h>
#include <linux/kmsg_dump.h>
#include <linux/mm.h>
#include <linux/slab.h>

#include "kd_upcall.h"

const char * const kd_call_names[KD_NR_CALLS] = { "send", "recv", "write", "read" };

/* In the order and by the letters of the requirements, section 5. */
const struct kd_state kd_states[KD_STATES] = {
	{ "U",  DAT_EP_STATE_UNCONNECTED, DAT_INVALID_STATE_EP_UNCONNECTED },
	{ "R",  DAT_EP_STATE_RESERVED, DAT_INVALID_STATE_EP_RESERVED },
	{ "P",  DAT_EP_STATE_PASSIVE_CONNECTION_PENDING, DAT_INVALID_STATE_EP_PASSCONNPENDING },
	{ "A",  DAT_EP_STATE_ACTIVE_CONNECTION_PENDING, DAT_INVALID_STATE_EP_ACTCONNPENDING },
	{ "T",  DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING, DAT_INVALID_STATE_EP_TENTCONNPENDING },
	{ "C",  DAT_EP_STATE_CONNECTED, DAT_INVALID_STATE_EP_CONNECTED },
	{ "DP", DAT_EP_STATE_DISCONNECT_PENDING, DAT_INVALID_STATE_EP_DISCPENDING },
	{ "D",  DAT_EP_STATE_DISCONNECTED, DAT_INVALID_STATE_EP_DISCONNECTED },
	{ "CP", DAT_EP_STATE_COMPLETION_PENDING, DAT_INVALID_STATE_EP_COMPLPENDING },
};

/*
 * Make the module's global state ready. Some kernels run suites before the module's own
 * initialisation.
 */
int kd_suite_init(struct kunit_suite *suite)
{
	return kdapl_test_get();
}

/* The counterpart of kd_suite_init(). */
void kd_suite_exit(struct kunit_suite *suite)
{
	kdapl_test_put();
}

/* .init of every suite on the fake device. */
int kd_init(struct kunit *test)
{
	struct kd_env *env = kunit_kzalloc(test, sizeof(*env), GFP_KERNEL);

	if (!env)
		return -ENOMEM;
	env->test = test;
	test->priv = env;
	return 0;
}

/* .exit of every suite on the fake device. */
void kd_exit(struct kunit *test)
{
	struct kd_env *env = test->priv;
	struct fake_ib_live live;
	int i;

	if (!env || !env->dev)
		return;
	fake_ib_hold_irq(env->dev, false);
	kd_ep_free(env);
	for (i = 0; i < KD_NR_MEMS; i++)
		if (env->mem[i].lmr)
			KD_EXPECT_OK(test, dat_lmr_free(env->mem[i].lmr));
	if (env->recv)
		KD_EXPECT_OK(test, dat_evd_free(env->recv));
	if (env->req)
		KD_EXPECT_OK(test, dat_evd_free(env->req));
	if (env->conn)
		KD_EXPECT_OK(test, dat_evd_free(env->conn));
	if (env->pz)
		KD_EXPECT_OK(test, dat_pz_free(env->pz));
	if (env->pz2)
		KD_EXPECT_OK(test, dat_pz_free(env->pz2));
	if (env->ia)
		KD_EXPECT_OK(test, dat_ia_close(env->ia, DAT_CLOSE_ABRUPT_FLAG));
	fake_ib_hold_flush(env->dev, false);
	fake_ib_unplug(env->dev);
	fake_ib_live(env->dev, &live);
	KUNIT_EXPECT_EQ(test, live.qps, 0);
	KUNIT_EXPECT_EQ(test, live.srqs, 0);
	KUNIT_EXPECT_EQ(test, live.cqs, 0);
	KUNIT_EXPECT_EQ(test, live.mrs, 0);
	KUNIT_EXPECT_EQ(test, live.pds, 0);
	KUNIT_EXPECT_EQ(test, fake_ib_violations(env->dev), 0);
	KUNIT_EXPECT_STREQ(test, fake_ib_last_violation(env->dev), "none");
	fake_ib_destroy(env->dev);
	env->dev = NULL;
	kfree(env->buf);
}

/* End a round of a case, for kd_open() to begin the next one. */
void kd_again(struct kunit *test)
{
	struct kd_env *env = test->priv;

	kd_exit(test);
	memset(env, 0, sizeof(*env));
	env->test = test;
}

/* Register memory. */
DAT_RETURN kd_lmr_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, void *buf, u32 length,
			 DAT_MEM_PRIV_FLAGS priv, struct kd_mem *mem)
{
	DAT_REGION_DESCRIPTION region = { .for_va = buf };
	DAT_VLEN registered;
	DAT_VADDR addr;

	mem->addr = (uintptr_t)buf;
	mem->length = length;
	return dat_lmr_kcreate(ia, DAT_MEM_TYPE_VIRTUAL, region, length, pz, priv, DAT_VA_TYPE_VA,
			       DAT_MEM_OPTIMIZE_DONT_CARE, &mem->lmr, &mem->lmr_context,
			       &mem->rmr_context, &registered, &addr);
}

static void kd_lmr(struct kd_env *env, enum kd_mem_kind kind, DAT_PZ_HANDLE pz,
		   DAT_MEM_PRIV_FLAGS priv)
{
	KD_ASSERT_OK(env->test, kd_lmr_create(env->ia, pz, env->buf + kind * KD_MEM_SIZE,
					      KD_MEM_SIZE, priv, &env->mem[kind]));
}

/* Set everything up but the EP. */
struct kd_env *kd_open(struct kunit *test, const struct fake_ib_caps *caps)
{
	struct kd_env *env = test->priv;
	struct fake_ib *dev = fake_ib_create(caps);
	char name[DAT_NAME_MAX_LENGTH];

	KUNIT_ASSERT_FALSE(test, IS_ERR(dev));
	env->dev = dev;
	snprintf(name, sizeof(name), "%s-1", fake_ib_name(dev));
	KD_ASSERT_OK(test, dat_ia_open(name, 16, &env->async, &env->ia));
	KD_ASSERT_OK(test, dat_pz_create(env->ia, &env->pz));
	KD_ASSERT_OK(test, dat_pz_create(env->ia, &env->pz2));
	env->buf = kzalloc(KD_NR_MEMS * KD_MEM_SIZE, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, env->buf);
	kd_lmr(env, KD_RW, env->pz, DAT_MEM_PRIV_ALL_FLAG);
	kd_lmr(env, KD_RO, env->pz, DAT_MEM_PRIV_LOCAL_READ_FLAG);
	kd_lmr(env, KD_WO, env->pz, DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
	kd_lmr(env, KD_REMOTE, env->pz,
	       DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG);
	kd_lmr(env, KD_FOREIGN, env->pz2, DAT_MEM_PRIV_ALL_FLAG);
	KD_ASSERT_OK(test, dat_evd_kcreate(env->ia, 64, DAT_UPCALL_DISABLE, NULL, DAT_EVD_DTO_FLAG,
					   &env->recv));
	KD_ASSERT_OK(test, dat_evd_kcreate(env->ia, 64, DAT_UPCALL_DISABLE, NULL, DAT_EVD_DTO_FLAG,
					   &env->req));
	KD_ASSERT_OK(test, dat_evd_kcreate(env->ia, 16, DAT_UPCALL_DISABLE, NULL,
					   DAT_EVD_CONNECTION_FLAG, &env->conn));
	return env;
}

/* The attributes most cases use. */
void kd_attr(DAT_EP_ATTR *attr)
{
	*attr = (DAT_EP_ATTR) {
		.service_type = DAT_SERVICE_TYPE_RC,
		.max_message_size = 1 << 20,
		.max_rdma_size = 1 << 20,
		.qos = DAT_QOS_BEST_EFFORT,
		.max_recv_dtos = 8,
		.max_request_dtos = 8,
		.max_recv_iov = 4,
		.max_request_iov = 4,
		.max_rdma_read_in = 4,
		.max_rdma_read_out = 4,
		.srq_soft_hw = DAT_HW_DEFAULT,
		.max_rdma_read_iov = 3,
		.max_rdma_write_iov = 4,
	};
}

/* An EP for the case to free, or for kd_ep_take(). */
DAT_EP_HANDLE kd_ep_new(struct kd_env *env, const DAT_EP_ATTR *attr)
{
	DAT_EP_HANDLE ep = DAT_HANDLE_NULL;
	DAT_EP_ATTR usual;

	kd_attr(&usual);
	KD_ASSERT_OK(env->test, dat_ep_create(env->ia, env->pz, env->recv, env->req, env->conn,
					      attr ?: &usual, &ep));
	return ep;
}

/* This is the EP from now on, until kd_ep_free(). */
void kd_ep_take(struct kd_env *env, DAT_EP_HANDLE ep)
{
	env->ep = ep;
	env->kep = kdapl_obj_get(ep, DAT_HANDLE_TYPE_EP);
	KUNIT_ASSERT_NOT_NULL(env->test, env->kep);
	env->qp = kd_conn_of(env)->qp;
}

/* The EP is no longer that of the environment: the case frees it. */
DAT_EP_HANDLE kd_ep_give(struct kd_env *env)
{
	DAT_EP_HANDLE ep = env->ep;

	kdapl_obj_put(&env->kep->obj);
	env->kep = NULL;
	env->ep = DAT_HANDLE_NULL;
	env->qp = NULL;
	return ep;
}

/**
 * kd_ep_gone - wait for the end of an EP that was freed inside an upcall
 * @test: the test
 * @ep: the EP; the reference is dropped
 *
 * It leaves its EVDs, its PZ and its SRQ one after the other.
 */
void kd_ep_gone(struct kunit *test, struct kdapl_ep *ep)
{
	KD_WAIT(test, refcount_read(&ep->obj.ref) == 1);
	kdapl_obj_put(&ep->obj);
}

/* Create the EP. */
void kd_ep(struct kd_env *env, const DAT_EP_ATTR *attr)
{
	kd_ep_take(env, kd_ep_new(env, attr));
	KUNIT_ASSERT_NOT_NULL(env->test, env->qp);
}

static void kd_qp_modify(struct kd_env *env, enum ib_qp_state state, int mask)
{
	struct ib_qp_attr attr = {
		.qp_state = state,
		.path_mtu = IB_MTU_1024,
		.dest_qp_num = env->qp->qp_num,
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 6,
		.min_rnr_timer = 12,
	};

	attr.ah_attr.type = RDMA_AH_ATTR_TYPE_IB;
	rdma_ah_set_port_num(&attr.ah_attr, 1);
	rdma_ah_set_dlid(&attr.ah_attr, 1);
	KUNIT_ASSERT_EQ(env->test, ib_modify_qp(env->qp, &attr, mask | IB_QP_STATE), 0);
}

/* Bring the EP to CONNECTED, as the end of a handshake does. */
void kd_bring_up(struct kd_env *env)
{
	if (fake_ib_qp_state(env->qp) == IB_QPS_INIT) {
		kd_qp_modify(env, IB_QPS_RTR, IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
			     IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
		kd_qp_modify(env, IB_QPS_RTS, IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
			     IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC);
	}
	kdapl_test_connect(env->kep);
}

/* The same, and take the event that tells of it. */
void kd_connect(struct kd_env *env)
{
	struct kunit *test = env->test;
	DAT_EVENT event;

	kd_bring_up(env);
	KUNIT_ASSERT_EQ(test, (int)READ_ONCE(env->kep->state), (int)DAT_EP_STATE_CONNECTED);
	KUNIT_ASSERT_TRUE(test, kd_next(env->conn, &event));
	KUNIT_EXPECT_EQ(test, (u32)event.event_number, (u32)DAT_CONNECTION_EVENT_ESTABLISHED);
	KUNIT_EXPECT_PTR_EQ(test, event.event_data.connect_event_data.ep_handle, env->ep);
}

/* kd_open(), kd_ep() and kd_connect() in one. */
struct kd_env *kd_connected(struct kunit *test, const DAT_EP_ATTR *attr)
{
	struct kd_env *env = kd_open(test, NULL);

	kd_ep(env, attr);
	kd_connect(env);
	return env;
}

/* The connection of the EP. */
struct kdapl_conn *kd_conn_of(struct kd_env *env)
{
	return rcu_dereference_protected(env->kep->conn, true);
}

/* Write an EP state that has no way to it here. */
void kd_set_state(struct kd_env *env, DAT_EP_STATE state)
{
	struct kdapl_ep *ep = env->kep;

	spin_lock_irq(&ep->lock);
	WRITE_ONCE(ep->state, state);
	kdapl_wq_set_mode(kd_conn_of(env)->sq, state == DAT_EP_STATE_CONNECTED ?
			    KDAPL_WQ_LIVE : KDAPL_WQ_REFUSE);
	spin_unlock_irq(&ep->lock);
}

/* An attempt of which no CM knows. */
static void kd_pending(struct kd_env *env, enum kdapl_ep_input input)
{
	struct kdapl_conn *conn = kd_conn_of(env);

	mutex_lock(&conn->lock);
	spin_lock_irq(&env->kep->lock);
	kdapl_ep_step(env->kep, input);
	spin_unlock_irq(&env->kep->lock);
	conn->passive = input != KDAPL_IN_CONNECT;
	conn->state = KDAPL_CONN_CONNECTING;
	mutex_unlock(&conn->lock);
}

/*
 * Bring a fresh EP into a state. Without a peer: what is pending stays so, in
 * DISCONNECT_PENDING because of a Send that is outstanding. Events of the way there have
 * been taken. To RESERVED and the states behind it there is no other way than to write them.
 */
void kd_reach(struct kd_env *env, DAT_EP_STATE state)
{
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	struct kunit *test = env->test;

	switch (state) {
	case DAT_EP_STATE_UNCONNECTED:
		break;
	case DAT_EP_STATE_ACTIVE_CONNECTION_PENDING:
		kd_pending(env, KDAPL_IN_CONNECT);
		break;
	case DAT_EP_STATE_COMPLETION_PENDING:
		kd_pending(env, KDAPL_IN_ACCEPT);
		break;
	case DAT_EP_STATE_CONNECTED:
		kd_connect(env);
		break;
	case DAT_EP_STATE_DISCONNECT_PENDING:
		kd_connect(env);
		KD_EXPECT_OK(test, kd_post(env->ep, KD_SEND, 1, &iov, 0, NULL, 0));
		KD_EXPECT_OK(test, dat_ep_disconnect(env->ep, DAT_CLOSE_GRACEFUL_FLAG));
		break;
	case DAT_EP_STATE_DISCONNECTED:
		kd_connect(env);
		KD_EXPECT_OK(test, dat_ep_disconnect(env->ep, DAT_CLOSE_ABRUPT_FLAG));
		KD_EXPECT_END(env, DISCONNECTED);
		break;
	default:
		kd_set_state(env, state);
	}
	KUNIT_ASSERT_EQ(test, (int)READ_ONCE(env->kep->state), (int)state);
}

/* Wait a moment for work that goes on elsewhere. */
void kd_pause(void)
{
	usleep_range(2000, 4000);
}

/* The instance, whose reference is that of its handle. */
struct kdapl_ia *kd_ia(struct kd_env *env)
{
	struct kdapl_ia *ia = kdapl_obj_get(env->ia, DAT_HANDLE_TYPE_IA);

	KUNIT_ASSERT_NOT_NULL(env->test, ia);
	kdapl_obj_put(&ia->obj);
	return ia;
}

/* An event of the whole device or port; ib_core hands it on from a work item, and so do we. */
void kd_device_event(struct kd_env *env, enum ib_event_type type)
{
	struct ib_event event = {
		.device = fake_ib_device(env->dev), .element.port_num = 1, .event = type,
	};

	ib_dispatch_event(&event);
	flush_workqueue(ib_wq);
	flush_workqueue(kdapl_misc_wq);
}

/* The state of an EP, as the consumer sees it. */
DAT_EP_STATE kd_state(struct kd_env *env, DAT_EP_HANDLE ep)
{
	DAT_EP_STATE state = -1;

	KD_EXPECT_OK(env->test, dat_ep_get_status(ep, &state, NULL, NULL));
	return state;
}

/* The EP as the consumer sees it; in between it is always the same. */
void kd_query(struct kd_env *env, DAT_EP_HANDLE ep, DAT_EP_PARAM *param)
{
	memset(param, 0x5a, sizeof(*param));
	KD_EXPECT_OK(env->test, dat_ep_query(ep, DAT_EP_FIELD_ALL, param));
}

/* Reset the EP; it has another QP then. */
void kd_reset(struct kd_env *env)
{
	KD_EXPECT_OK(env->test, dat_ep_reset(env->ep));
	KD_EXPECT_STATE(env, env->ep, UNCONNECTED);
	env->qp = kd_conn_of(env)->qp;
}

/* End the connection from outside and wait for DISCONNECTED. */
void kd_end(struct kd_env *env, int reason)
{
	kdapl_conn_end(kd_conn_of(env), reason);
	KD_WAIT(env->test, kd_state(env, env->ep) == DAT_EP_STATE_DISCONNECTED);
}

/* Free the EP, if there is one. */
void kd_ep_free(struct kd_env *env)
{
	if (env->kep) {
		int state = READ_ONCE(env->kep->state);

		/* written by kd_set_state(): nobody else leads out of it */
		if (!env->kep->cr && (state == DAT_EP_STATE_RESERVED ||
				      state == DAT_EP_STATE_PASSIVE_CONNECTION_PENDING ||
				      state == DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING))
			kd_set_state(env, DAT_EP_STATE_UNCONNECTED);
		kdapl_obj_put(&env->kep->obj);
	}
	env->kep = NULL;
	if (env->ep)
		KD_EXPECT_OK(env->test, dat_ep_free(env->ep));
	env->ep = NULL;
	env->qp = NULL;
}

/* Leave everything to an abrupt dat_ia_close(). */
DAT_IA_HANDLE kd_forget(struct kd_env *env)
{
	DAT_IA_HANDLE ia = env->ia;

	if (env->kep)
		kdapl_obj_put(&env->kep->obj);
	env->kep = NULL;
	env->ep = NULL;
	env->qp = NULL;
	env->ia = NULL;
	env->pz = NULL;
	env->pz2 = NULL;
	env->recv = NULL;
	env->req = NULL;
	env->conn = NULL;
	memset(env->mem, 0, sizeof(env->mem));
	return ia;
}

/* dat_ia_close() as a call that takes nothing but a handle. */
DAT_RETURN kd_close_abrupt(DAT_IA_HANDLE ia)
{
	return dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
}

/* Another instance of the same adapter. */
DAT_IA_HANDLE kd_ia_more(struct kd_env *env, DAT_EVD_HANDLE *async)
{
	char name[DAT_NAME_MAX_LENGTH];
	DAT_IA_HANDLE ia = NULL;

	snprintf(name, sizeof(name), "%s-1", fake_ib_name(env->dev));
	KD_ASSERT_OK(env->test, dat_ia_open(name, 8, async, &ia));
	return ia;
}

/* One of the four posting calls. */
DAT_RETURN kd_post(DAT_EP_HANDLE ep, enum kd_call call, int num, DAT_LMR_TRIPLET *iov,
		   u64 cookie, const DAT_RMR_TRIPLET *remote, int flags)
{
	DAT_DTO_COOKIE c = { .as_64 = cookie };

	switch (call) {
	case KD_SEND:
		return dat_ep_post_send(ep, num, iov, c, flags);
	case KD_RECV:
		return dat_ep_post_recv(ep, num, iov, c, flags);
	case KD_WRITE:
		return dat_ep_post_rdma_write(ep, num, iov, c, remote, flags);
	default:
		return dat_ep_post_rdma_read(ep, num, iov, c, remote, flags);
	}
}

/* A segment in registered memory. */
DAT_LMR_TRIPLET kd_seg(struct kd_env *env, enum kd_mem_kind kind, u32 offset, u32 length)
{
	return (DAT_LMR_TRIPLET) {
		.virtual_address = env->mem[kind].addr + offset,
		.segment_length = length,
		.lmr_context = env->mem[kind].lmr_context,
	};
}

/* A remote range. */
DAT_RMR_TRIPLET kd_remote(u64 addr, u32 length, u32 key)
{
	return (DAT_RMR_TRIPLET) {
		.virtual_address = addr,
		.segment_length = length,
		.rmr_context = key,
	};
}

/* Upcall that writes down its events. */
void kd_upcall(DAT_PVOID data, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct kd_upcalls *up = data;
	unsigned long flags;

	spin_lock_irqsave(&up->lock, flags);
	if (up->n < ARRAY_SIZE(up->events))
		up->events[up->n] = *event;
	WRITE_ONCE(up->n, up->n + 1);
	spin_unlock_irqrestore(&up->lock, flags);
}

/* Replace an EVD of the environment by one with upcalls. */
struct kd_upcalls *kd_upcalls_on(struct kd_env *env, DAT_EVD_HANDLE *evd, DAT_EVD_FLAGS flags)
{
	struct kd_upcalls *up = kunit_kzalloc(env->test, sizeof(*up), GFP_KERNEL);
	DAT_UPCALL_OBJECT object = { .instance_data = up, .upcall_func = kd_upcall };
	DAT_EVD_HANDLE old = *evd;

	KUNIT_ASSERT_NOT_NULL(env->test, up);
	spin_lock_init(&up->lock);
	*evd = DAT_HANDLE_NULL;
	if (old)
		KD_ASSERT_OK(env->test, dat_evd_free(old));
	KD_ASSERT_OK(env->test, dat_evd_kcreate(env->ia, 64, DAT_UPCALL_SINGLE_INSTANCE, &object,
						flags, evd));
	up->evd = *evd;
	return up;
}

/* Wait for upcalls, and see that there are no more of them. */
int kd_upcalls_wait(struct kd_upcalls *up, int n)
{
	int i;

	for (i = 0; i < 5000 && READ_ONCE(up->n) < n; i++)
		kd_pause();
	kd_settle(up->evd);
	return READ_ONCE(up->n);
}

/* Wait for the one event that ends the connection. */
u32 kd_expect_end(struct kd_env *env)
{
	struct kunit *test = env->test;
	DAT_EVENT event;

	kd_next_wait(env, env->conn, &event);
	KUNIT_EXPECT_PTR_EQ(test, event.event_data.connect_event_data.ep_handle, env->ep);
	KD_EXPECT_STATE(env, env->ep, DISCONNECTED);
	KD_EXPECT_EMPTY(test, env->conn);
	return event.event_number;
}

/* Dequeue. */
bool kd_next(DAT_EVD_HANDLE evd, DAT_EVENT *event)
{
	memset(event, 0x5a, sizeof(*event));
	return dat_evd_dequeue(evd, event) == DAT_SUCCESS;
}

/* Wait for an event that must come. */
void kd_next_wait(struct kd_env *env, DAT_EVD_HANDLE evd, DAT_EVENT *event)
{
	bool got = false;

	KD_WAIT(env->test, got || (got = kd_next(evd, event)));
	KUNIT_ASSERT_TRUE(env->test, got);
}

/* Wait for the next event, which must be this one; filled, if @event is not NULL. */
void kd_expect_event(struct kd_env *env, DAT_EVD_HANDLE evd, u32 number, DAT_EVENT *event)
{
	DAT_EVENT own;

	event = event ?: &own;
	kd_next_wait(env, evd, event);
	KUNIT_EXPECT_EQ(env->test, (u32)event->event_number, number);
	KUNIT_EXPECT_PTR_EQ(env->test, event->evd_handle, evd);
}

/* The next event is this completion. */
void kd_expect_dto(struct kunit *test, DAT_EVD_HANDLE evd, u64 cookie, int status)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;

	dto = &event.event_data.dto_completion_event_data;
	KUNIT_ASSERT_TRUE_MSG(test, kd_next(evd, &event), "no event for cookie %llx", cookie);
	KUNIT_EXPECT_EQ(test, (u32)event.event_number, (u32)DAT_DTO_COMPLETION_EVENT);
	KUNIT_EXPECT_EQ(test, (u64)dto->user_cookie.as_64, cookie);
	KUNIT_EXPECT_EQ_MSG(test, (int)dto->status, status, "cookie %llx", cookie);
}

/* The next events are these completions, and there are no more. */
void kd_expect_dtos(struct kunit *test, DAT_EVD_HANDLE evd, u64 first, int n, int status)
{
	while (n-- > 0)
		kd_expect_dto(test, evd, first++, status);
	KD_EXPECT_EMPTY(test, evd);
}

/* How often the kernel log says something. */
int kd_logged(const char *what)
{
	struct kmsg_dump_iter iter;
	char line[256];
	size_t len;
	int n = 0;

	kmsg_dump_rewind(&iter);
	while (kmsg_dump_get_line(&iter, false, line, sizeof(line), &len))
		n += !!strnstr(line, what, len);
	return n;
}

/* Where the completions of a call go. */
DAT_EVD_HANDLE kd_evd_of(struct kd_env *env, enum kd_call call)
{
	return kd_is_recv(call) ? env->recv : env->req;
}

/* Entries of a work queue in use. */
u32 kd_wq_used(struct kdapl_wq *wq)
{
	return READ_ONCE(wq->head) - READ_ONCE(wq->tail);
}

/* One word of a line of a table. */
const char *kd_word(const char *line, int n, char *out, size_t size)
{
	size_t len;

	line += strspn(line, " ");
	while (n--) {
		line += strcspn(line, " ");
		line += strspn(line, " ");
	}
	len = min(strcspn(line, " "), size - 1);
	memcpy(out, line, len);
	out[len] = '\0';
	return out;
}
