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

/**
 * kd_suite_init - make the module's global state ready
 * @suite: the suite
 *
 * Some kernels run suites before the module's own initialisation.
 *
 * Return: 0 or an errno.
 */
int kd_suite_init(struct kunit_suite *suite)
{
	return kdapl_test_get();
}

/**
 * kd_suite_exit - the counterpart of kd_suite_init()
 * @suite: the suite
 */
void kd_suite_exit(struct kunit_suite *suite)
{
	kdapl_test_put();
}

/**
 * kd_init - .init of every suite on the fake device
 * @test: the case
 *
 * Return: 0 or -ENOMEM.
 */
int kd_init(struct kunit *test)
{
	struct kd_env *env = kunit_kzalloc(test, sizeof(*env), GFP_KERNEL);

	if (!env)
		return -ENOMEM;
	env->test = test;
	test->priv = env;
	return 0;
}

/**
 * kd_exit - .exit of every suite on the fake device
 * @test: the case
 */
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

/**
 * kd_again - end a round of a case, for kd_open() to begin the next one
 * @test: the case
 */
void kd_again(struct kunit *test)
{
	struct kd_env *env = test->priv;

	kd_exit(test);
	memset(env, 0, sizeof(*env));
	env->test = test;
}

static void kd_lmr(struct kd_env *env, enum kd_mem_kind kind, DAT_PZ_HANDLE pz,
		   DAT_MEM_PRIV_FLAGS priv)
{
	struct kd_mem *mem = &env->mem[kind];
	DAT_REGION_DESCRIPTION region = { .for_va = env->buf + kind * KD_MEM_SIZE };
	DAT_VLEN length = 0;
	DAT_VADDR addr = 0;

	KD_ASSERT_OK(env->test, dat_lmr_kcreate(env->ia, DAT_MEM_TYPE_VIRTUAL, region, KD_MEM_SIZE,
						pz, priv, DAT_VA_TYPE_VA,
						DAT_MEM_OPTIMIZE_DONT_CARE, &mem->lmr,
						&mem->lmr_context, &mem->rmr_context, &length,
						&addr));
	mem->addr = (uintptr_t)region.for_va;
	mem->length = KD_MEM_SIZE;
}

/**
 * kd_open - set everything up but the EP
 * @test: the case
 * @caps: what the device says of itself, or NULL
 *
 * Return: the environment, torn down by kd_exit().
 */
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

/**
 * kd_attr - the attributes most cases use
 * @attr: filled
 */
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

/**
 * kd_ep - create the EP
 * @env: environment without one
 * @attr: its attributes, or NULL for those of kd_attr()
 */
void kd_ep(struct kd_env *env, const DAT_EP_ATTR *attr)
{
	DAT_EP_ATTR usual;

	kd_attr(&usual);
	KD_ASSERT_OK(env->test, dat_ep_create(env->ia, env->pz, env->recv, env->req, env->conn,
					      attr ? attr : &usual, &env->ep));
	env->qp = fake_ib_newest_qp(env->dev);
	env->kep = kdapl_obj_get(env->ep, DAT_HANDLE_TYPE_EP);
	KUNIT_ASSERT_NOT_NULL(env->test, env->qp);
	KUNIT_ASSERT_NOT_NULL(env->test, env->kep);
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

/**
 * kd_bring_up - bring the EP to CONNECTED, as the end of a handshake does
 * @env: environment with a fresh EP
 */
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

/**
 * kd_connect - the same, and take the event that tells of it
 * @env: environment with a fresh EP
 */
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

/**
 * kd_connected - kd_open(), kd_ep() and kd_connect() in one
 * @test: the case
 * @attr: attributes of the EP, or NULL
 *
 * Return: the environment.
 */
struct kd_env *kd_connected(struct kunit *test, const DAT_EP_ATTR *attr)
{
	struct kd_env *env = kd_open(test, NULL);

	kd_ep(env, attr);
	kd_connect(env);
	return env;
}

/**
 * kd_conn_of - the connection of the EP
 * @env: environment with an EP
 *
 * Return: the connection, stable as long as the case does not reset the EP.
 */
struct kdapl_conn *kd_conn_of(struct kd_env *env)
{
	return rcu_dereference_protected(env->kep->conn, true);
}

/**
 * kd_set_state - write an EP state that has no way to it here
 * @env: environment with an EP
 * @state: the state; posting follows it as it does in kdapl_ep_step()
 */
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

/**
 * kd_reach - bring a fresh EP into a state
 * @env: environment with a fresh EP
 * @state: DAT_EP_STATE
 *
 * Without a peer: what is pending stays so, in DISCONNECT_PENDING because of a
 * Send that is outstanding. Events of the way there have been taken. To
 * RESERVED and the states behind it there is no other way than to write them.
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
		KUNIT_EXPECT_EQ(test, kd_expect_end(env),
				(u32)DAT_CONNECTION_EVENT_DISCONNECTED);
		break;
	default:
		kd_set_state(env, state);
	}
	KUNIT_ASSERT_EQ(test, (int)READ_ONCE(env->kep->state), (int)state);
}

/**
 * kd_pause - wait a moment for work that goes on elsewhere
 */
void kd_pause(void)
{
	usleep_range(2000, 4000);
}

/**
 * kd_end - end the connection from outside and wait for DISCONNECTED
 * @env: environment with a connected EP
 * @reason: connection event it ends with
 */
void kd_end(struct kd_env *env, int reason)
{
	int i;

	kdapl_conn_end(kd_conn_of(env), reason);
	for (i = 0; i < 5000 && READ_ONCE(env->kep->state) != DAT_EP_STATE_DISCONNECTED; i++)
		kd_pause();
	KUNIT_ASSERT_EQ(env->test, (int)READ_ONCE(env->kep->state),
			(int)DAT_EP_STATE_DISCONNECTED);
}

/**
 * kd_ep_free - free the EP, if there is one
 * @env: environment
 */
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

/**
 * kd_forget - leave everything to an abrupt dat_ia_close()
 * @env: environment
 *
 * Return: the IA, for the case to close.
 */
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

/**
 * kd_ia_more - another instance of the same adapter
 * @env: environment
 * @async: its EVD for asynchronous events, or where DAT_HANDLE_NULL is for a new one
 *
 * Return: the IA, for the case to close.
 */
DAT_IA_HANDLE kd_ia_more(struct kd_env *env, DAT_EVD_HANDLE *async)
{
	char name[DAT_NAME_MAX_LENGTH];
	DAT_IA_HANDLE ia = NULL;

	snprintf(name, sizeof(name), "%s-1", fake_ib_name(env->dev));
	KD_ASSERT_OK(env->test, dat_ia_open(name, 8, async, &ia));
	return ia;
}

/**
 * kd_post - one of the four posting calls
 * @ep: EP handle
 * @call: which one
 * @num: number of segments
 * @iov: segments
 * @cookie: cookie
 * @remote: remote range of a Write or Read
 * @flags: completion flags
 *
 * Return: what the call returned.
 */
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

/**
 * kd_seg - a segment in registered memory
 * @env: environment
 * @kind: which memory
 * @offset: where it starts
 * @length: how long it is
 *
 * Return: the triplet.
 */
DAT_LMR_TRIPLET kd_seg(struct kd_env *env, enum kd_mem_kind kind, u32 offset, u32 length)
{
	return (DAT_LMR_TRIPLET) {
		.virtual_address = env->mem[kind].addr + offset,
		.segment_length = length,
		.lmr_context = env->mem[kind].lmr_context,
	};
}

/**
 * kd_remote - a remote range
 * @addr: address
 * @length: length
 * @key: rmr_context
 *
 * Return: the triplet.
 */
DAT_RMR_TRIPLET kd_remote(u64 addr, u32 length, u32 key)
{
	return (DAT_RMR_TRIPLET) {
		.virtual_address = addr,
		.segment_length = length,
		.rmr_context = key,
	};
}

/**
 * kd_upcall - upcall that writes down its events
 * @data: struct kd_upcalls
 * @event: the event
 * @more: not looked at
 */
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

/**
 * kd_upcalls_on - replace an EVD of the environment by one with upcalls
 * @env: environment without EP
 * @evd: env->recv, env->req or env->conn
 * @flags: streams of the new one
 *
 * Return: where the upcalls are written down; freed with the case.
 */
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

/**
 * kd_upcalls_wait - wait for upcalls, and see that there are no more of them
 * @up: where they are written down
 * @n: how many are expected
 *
 * Return: how many there were.
 */
int kd_upcalls_wait(struct kd_upcalls *up, int n)
{
	int i;

	for (i = 0; i < 5000 && READ_ONCE(up->n) < n; i++)
		kd_pause();
	kd_settle(up->evd);
	return READ_ONCE(up->n);
}

/**
 * kd_expect_end - wait for the one event that ends the connection
 * @env: environment whose EP is coming to its end
 *
 * Return: its number; the EP is in DISCONNECTED, and no other event came.
 */
u32 kd_expect_end(struct kd_env *env)
{
	struct kunit *test = env->test;
	DAT_EVENT event;
	int i;

	for (i = 0; i < 5000 && !kd_next(env->conn, &event); i++)
		kd_pause();
	KUNIT_ASSERT_LT(test, i, 5000);
	KUNIT_EXPECT_PTR_EQ(test, event.event_data.connect_event_data.ep_handle, env->ep);
	KUNIT_EXPECT_EQ(test, (int)READ_ONCE(env->kep->state), (int)DAT_EP_STATE_DISCONNECTED);
	KD_EXPECT_EMPTY(test, env->conn);
	return event.event_number;
}

/**
 * kd_next - dequeue
 * @evd: EVD
 * @event: filled with the event, with rubbish before
 *
 * Return: false when the queue is empty.
 */
bool kd_next(DAT_EVD_HANDLE evd, DAT_EVENT *event)
{
	memset(event, 0x5a, sizeof(*event));
	return dat_evd_dequeue(evd, event) == DAT_SUCCESS;
}

/**
 * kd_expect_dto - the next event is this completion
 * @test: the case
 * @evd: EVD
 * @cookie: its cookie
 * @status: its status
 */
void kd_expect_dto(struct kunit *test, DAT_EVD_HANDLE evd, u64 cookie, int status)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;

	dto = &event.event_data.dto_completion_event_data;
	KUNIT_ASSERT_TRUE_MSG(test, kd_next(evd, &event), "no event for cookie %llx", cookie);
	KUNIT_EXPECT_EQ(test, (u32)event.event_number, (u32)DAT_DTO_COMPLETION_EVENT);
	KUNIT_EXPECT_EQ(test, (u64)dto->user_cookie.as_64, cookie);
	KUNIT_EXPECT_EQ(test, (int)dto->status, status);
}

/**
 * kd_logged - how often the kernel log says something
 * @what: what, all of it in the first 256 bytes of a line
 *
 * Return: the number of lines with it.
 */
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

/**
 * kd_evd_of - where the completions of a call go
 * @env: environment
 * @call: the call
 *
 * Return: the EVD.
 */
DAT_EVD_HANDLE kd_evd_of(struct kd_env *env, enum kd_call call)
{
	return kd_is_recv(call) ? env->recv : env->req;
}

/**
 * kd_wq_used - entries of a work queue in use
 * @wq: the work queue
 *
 * Return: how many.
 */
u32 kd_wq_used(struct kdapl_wq *wq)
{
	return READ_ONCE(wq->head) - READ_ONCE(wq->tail);
}

/**
 * kd_word - one word of a line of a table
 * @line: words, spaces between them
 * @n: number of the word
 * @out: where it goes, cut if need be; "" if there are not so many
 * @size: size of @out
 *
 * Return: @out.
 */
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
