// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Service points and connection requests without a network.
 *
 * The fake device has no IP address to listen on. What is made here is what
 * dat_psp_create() and dat_rsp_create() make, without the listener; requests go
 * where the handler of that listener takes them. Their cm_id is real but knows no
 * peer: to reject it has no effect, and to accept it fails.
 */
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>

#include "kd_conn.h"

/* Where nobody is. */
struct sockaddr_in kd_peer = {
	.sin_family = AF_INET, .sin_port = htons(7), .sin_addr.s_addr = htonl(0x0a000002),
};

/* An EVD for requests. */
DAT_EVD_HANDLE kd_cr_evd(struct kd_env *env, DAT_COUNT qlen)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;

	KD_ASSERT_OK(env->test, dat_evd_kcreate(env->ia, qlen, DAT_UPCALL_DISABLE, NULL,
						DAT_EVD_CR_FLAG, &evd));
	return evd;
}

/* A service point that hears nothing, referenced and not yet published. */
static struct kdapl_sp *sp_make(struct kd_env *env, unsigned int type, DAT_EVD_HANDLE handle,
				DAT_CONN_QUAL qual, bool makes_eps)
{
	struct kdapl_ia *ia = kdapl_obj_get(env->ia, DAT_HANDLE_TYPE_IA);
	struct kdapl_evd *evd = kdapl_obj_get(handle, DAT_HANDLE_TYPE_EVD);
	struct kdapl_sp *sp;

	KUNIT_ASSERT_NOT_NULL(env->test, ia);
	KUNIT_ASSERT_NOT_NULL(env->test, evd);
	sp = kdapl_sp_alloc(ia, type, evd);
	KUNIT_ASSERT_NOT_ERR_OR_NULL(env->test, sp);
	sp->conn_qual = qual;
	if (makes_eps)
		KUNIT_ASSERT_EQ(env->test, kdapl_sp_makes_eps(sp), 0);
	kdapl_obj_put(&evd->obj);
	kdapl_obj_put(&ia->obj);
	return sp;
}

static DAT_HANDLE sp_publish(struct kd_env *env, struct kdapl_sp *sp)
{
	DAT_HANDLE handle;

	KUNIT_ASSERT_EQ(env->test, kdapl_obj_publish(&sp->obj), 0);
	handle = sp->obj.handle;
	kdapl_obj_put(&sp->obj);
	return handle;
}

/* A PSP that hears nothing. */
DAT_PSP_HANDLE kd_psp(struct kd_env *env, DAT_EVD_HANDLE evd, DAT_CONN_QUAL qual,
		      DAT_PSP_FLAGS flags)
{
	struct kdapl_sp *sp = sp_make(env, DAT_HANDLE_TYPE_PSP, evd, qual,
				      flags == DAT_PSP_PROVIDER_FLAG);

	sp->flags = flags;
	return sp_publish(env, sp);
}

/* An RSP that hears nothing. */
DAT_RSP_HANDLE kd_rsp(struct kd_env *env, DAT_EVD_HANDLE evd, DAT_CONN_QUAL qual,
		      DAT_EP_HANDLE handle)
{
	struct kdapl_sp *sp = sp_make(env, DAT_HANDLE_TYPE_RSP, evd, qual, !handle);
	struct kdapl_ep *ep;

	if (handle) {
		ep = kdapl_obj_get(handle, DAT_HANDLE_TYPE_EP);
		KUNIT_ASSERT_NOT_NULL(env->test, ep);
		spin_lock_irq(&ep->lock);
		kdapl_ep_step(ep, KDAPL_IN_RESERVE);
		spin_unlock_irq(&ep->lock);
		KUNIT_EXPECT_EQ(env->test, ep->state, (int)DAT_EP_STATE_RESERVED);
		sp->ep = ep;		/* with the reference */
	}
	return sp_publish(env, sp);
}

/* A CSP that hears nothing. */
DAT_CSP_HANDLE kd_csp(struct kd_env *env, DAT_EVD_HANDLE evd, DAT_CONN_QUAL qual)
{
	struct kdapl_sp *sp = sp_make(env, DAT_HANDLE_TYPE_CSP, evd, qual, false);
	struct sockaddr_in *in = (struct sockaddr_in *)&sp->addr;

	sp->comm.domain = AF_INET;
	sp->comm.type = SOCK_STREAM;
	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(0x0a000001);
	in->sin_port = htons(qual);
	return sp_publish(env, sp);
}

static int conn_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	return 0;
}

/* The service point, and what a real one keeps as long as its handler runs. */
static struct kdapl_sp *conn_enter(DAT_HANDLE handle)
{
	struct kdapl_sp *sp = kdapl_obj_get(handle, DAT_HANDLE_TYPE_RSP);
	bool live;

	if (!sp)
		sp = kdapl_obj_get(handle, DAT_HANDLE_TYPE_PSP);
	if (!sp)
		sp = kdapl_obj_get(handle, DAT_HANDLE_TYPE_CSP);
	if (!sp)
		return NULL;
	live = kdapl_dev_enter(sp->obj.ia->dev);
	if (live) {
		spin_lock_irq(&sp->obj.ia->lock);
		live = sp->obj.live;
		if (live) {
			sp->evd->obj.users++;
			refcount_inc(&sp->evd->obj.ref);
			if (sp->null_evd) {
				sp->null_evd->obj.users++;
				refcount_inc(&sp->null_evd->obj.ref);
			}
		}
		spin_unlock_irq(&sp->obj.ia->lock);
		if (!live)
			kdapl_dev_exit(sp->obj.ia->dev);
	}
	if (live)
		return sp;
	kdapl_obj_put(&sp->obj);
	return NULL;
}

static void conn_exit(struct kdapl_sp *sp, struct kdapl_evd *evd)
{
	struct kdapl_device *dev = sp->obj.ia->dev;

	if (sp->null_evd)
		kdapl_obj_unuse(&sp->null_evd->obj);
	kdapl_obj_unuse(&evd->obj);
	kdapl_dev_exit(dev);
	kdapl_obj_put(&sp->obj);
}

/* A cm_id that knows nobody. */
struct rdma_cm_id *kd_cm_id(struct kd_env *env, DAT_CONN_QUAL qual)
{
	struct rdma_cm_id *id;
	struct sockaddr_in *in;

	id = rdma_create_id(&init_net, conn_handler, NULL, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return id;
	id->device = fake_ib_device(env->dev);
	id->port_num = 1;
	in = (struct sockaddr_in *)&id->route.addr.src_addr;
	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(0x0a000001);
	in->sin_port = htons(qual);
	in = (struct sockaddr_in *)&id->route.addr.dst_addr;
	in->sin_family = AF_INET;
	in->sin_addr.s_addr = htonl(0x0a000002);
	in->sin_port = htons(KD_PEER_PORT);
	return id;
}

/*
 * A request arrives, for any thread. Return: 1 when it was reported, for an RSP: will be; 0 when
 * it was refused; -ENOENT when the service point is gone; or another errno.
 */
int kd_try_request(struct kd_env *env, DAT_HANDLE handle, const void *pdata, u8 len)
{
	const struct rdma_conn_param param = {
		.private_data = pdata,
		.private_data_len = len,
		.responder_resources = KD_PEER_READS_OUT,
		.initiator_depth = KD_PEER_READS_IN,
	};
	struct kdapl_sp *sp = conn_enter(handle);
	struct kdapl_evd *evd;
	struct rdma_cm_id *id;
	int ret;

	if (!sp)
		return -ENOENT;
	evd = sp->evd;
	id = kd_cm_id(env, sp->conn_qual);
	if (IS_ERR(id)) {
		ret = PTR_ERR(id);
		goto out;
	}
	ret = kdapl_sp_request(sp, id, &param);
	if (!ret)
		rdma_destroy_id(id);
out:
	conn_exit(sp, evd);
	return ret;
}

/* A request arrives. Return: whether it was reported, for an RSP: will be. */
bool kd_request(struct kd_env *env, DAT_HANDLE sp, const void *pdata, u8 len)
{
	int ret = kd_try_request(env, sp, pdata, len);

	KUNIT_ASSERT_GE(env->test, ret, 0);
	return ret;
}

/* A request arrives and is reported. */
DAT_CR_HANDLE kd_cr(struct kd_env *env, DAT_HANDLE sp, DAT_EVD_HANDLE evd)
{
	DAT_EVENT event;

	KUNIT_ASSERT_TRUE(env->test, kd_request(env, sp, NULL, 0));
	kd_next_wait(env, evd, &event);
	KUNIT_ASSERT_EQ(env->test, (u32)event.event_number, (u32)DAT_CONNECTION_REQUEST_EVENT);
	return event.event_data.cr_arrival_event_data.cr_handle;
}

/* The EP a CR came with. */
DAT_EP_HANDLE kd_cr_ep(struct kd_env *env, DAT_CR_HANDLE cr)
{
	DAT_CR_PARAM param = {};

	KD_EXPECT_OK(env->test, dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	return param.local_ep_handle;
}

/* Give a provider's EP what it lacks. */
DAT_RETURN kd_configure(struct kd_env *env, DAT_EP_HANDLE ep)
{
	const DAT_EP_PARAM param = {
		.pz_handle = env->pz,
		.recv_evd_handle = env->recv,
		.request_evd_handle = env->req,
		.connect_evd_handle = env->conn,
	};

	return dat_ep_modify(ep, DAT_EP_FIELD_PZ_HANDLE | DAT_EP_FIELD_RECV_EVD_HANDLE |
			     DAT_EP_FIELD_REQUEST_EVD_HANDLE | DAT_EP_FIELD_CONNECT_EVD_HANDLE,
			     &param);
}

static DAT_RETURN zoo_reject(DAT_CR_HANDLE cr)
{
	return dat_cr_reject(cr, 0, NULL);
}

/* Users first. */
const struct kd_zoo_kind kd_zoo_kinds[KD_ZOO_KINDS] = {
	{ DAT_HANDLE_TYPE_CR, zoo_reject }, { DAT_HANDLE_TYPE_PSP, dat_psp_free },
	{ DAT_HANDLE_TYPE_RSP, dat_rsp_free }, { DAT_HANDLE_TYPE_CSP, dat_csp_free },
	{ DAT_HANDLE_TYPE_EP, dat_ep_free }, { DAT_HANDLE_TYPE_SRQ, dat_srq_free },
	{ DAT_HANDLE_TYPE_RMR, dat_rmr_free }, { DAT_HANDLE_TYPE_LMR, dat_lmr_free },
	{ DAT_HANDLE_TYPE_PZ, dat_pz_free }, { DAT_HANDLE_TYPE_EVD, dat_evd_free },
};

/* One object of each kind of kd_zoo_kinds, by DAT_HANDLE_TYPE_*; the EVD is for requests. */
void kd_zoo(struct kd_env *env, DAT_CONN_QUAL qual, DAT_HANDLE *h)
{
	DAT_SRQ_ATTR srq = { .max_recv_dtos = 4, .max_recv_iov = 1 };
	DAT_EVD_HANDLE evd = kd_cr_evd(env, 8);

	h[DAT_HANDLE_TYPE_EVD] = evd;
	KD_ASSERT_OK(env->test, dat_pz_create(env->ia, &h[DAT_HANDLE_TYPE_PZ]));
	KD_ASSERT_OK(env->test, dat_lmr_allocate(env->ia, h[DAT_HANDLE_TYPE_PZ], 4,
						 DAT_LMR_SCOPE_PZ, &h[DAT_HANDLE_TYPE_LMR]));
	KD_ASSERT_OK(env->test, dat_rmr_create(h[DAT_HANDLE_TYPE_PZ], &h[DAT_HANDLE_TYPE_RMR]));
	KD_ASSERT_OK(env->test, dat_srq_create(env->ia, h[DAT_HANDLE_TYPE_PZ], &srq,
					       &h[DAT_HANDLE_TYPE_SRQ]));
	KD_ASSERT_OK(env->test, dat_ep_create(env->ia, NULL, NULL, NULL, NULL, NULL,
					      &h[DAT_HANDLE_TYPE_EP]));
	h[DAT_HANDLE_TYPE_PSP] = kd_psp(env, evd, qual, DAT_PSP_CONSUMER_FLAG);
	h[DAT_HANDLE_TYPE_RSP] = kd_rsp(env, evd, qual + 1, DAT_HANDLE_NULL);
	h[DAT_HANDLE_TYPE_CSP] = kd_csp(env, evd, qual + 2);
	h[DAT_HANDLE_TYPE_CR] = kd_cr(env, h[DAT_HANDLE_TYPE_PSP], evd);
}

void kd_zoo_free(struct kd_env *env, DAT_HANDLE *h)
{
	int i;

	for (i = 0; i < KD_ZOO_KINDS; i++)
		KD_EXPECT_OK(env->test, kd_zoo_kinds[i].free(h[kd_zoo_kinds[i].type]));
}

/* A network device with an address, for fake_ib_set_netdev(). */
struct net_device *kd_loopback(void)
{
	struct net_device *lo = init_net.loopback_dev;
	int err;

	rtnl_lock();
	err = lo->flags & IFF_UP ? 0 : dev_open(lo, NULL);
	rtnl_unlock();
	return err ? NULL : lo;
}
