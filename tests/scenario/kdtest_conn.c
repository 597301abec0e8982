// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Tools of the suites about connections; kdtest_conn.h says what they do. */
#include <linux/in.h>
#include <linux/inetdevice.h>
#include <linux/rtnetlink.h>
#include <net/addrconf.h>
#include <net/net_namespace.h>
#include <rdma/ib_cm.h>

#include "kdtest_conn.h"

DAT_CR_ARRIVAL_EVENT_DATA kdt_call(struct kunit *test, struct kdt_ep *ep, struct kdt_ia *to,
				   DAT_CONN_QUAL port, struct kdt_evd *cr)
{
	KDT_OK(test, kdt_connect(ep, to, port));
	return kdt_arrival(test, cr);
}

DAT_EP_HANDLE kdt_cr_ep(struct kunit *test, DAT_CR_HANDLE cr)
{
	DAT_CR_PARAM param = {};

	KDT_OK(test, dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
	return param.local_ep_handle;
}

DAT_RETURN kdt_ep_give(struct kdt_ep *ep, DAT_EP_PARAM_MASK what)
{
	DAT_EP_PARAM param;

	memset(&param, 0xee, sizeof(param));	/* what is not asked for is not looked at */
	param.pz_handle = ep->ia->pz;
	param.recv_evd_handle = ep->recv->h;
	param.request_evd_handle = ep->req->h;
	param.connect_evd_handle = ep->conn->h;
	return dat_ep_modify(ep->h, what, &param);
}

void kdt_ep_from(struct kunit *test, struct kdt_ep *ep, struct kdt_ia *ia, DAT_CR_HANDLE cr)
{
	KDT_OK(test, kdt_ep_evds(kdt_env(test), ep, ia));
	ep->h = kdt_cr_ep(test, cr);
	KUNIT_ASSERT_NOT_NULL(test, ep->h);
}

void kdt_up(struct kunit *test, struct kdt_ep *c, struct kdt_ep *s)
{
	kdt_conn(test, c, DAT_CONNECTION_EVENT_ESTABLISHED);
	kdt_conn(test, s, DAT_CONNECTION_EVENT_ESTABLISHED);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(c->h), DAT_EP_STATE_CONNECTED);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(s->h), DAT_EP_STATE_CONNECTED);
}

void kdt_talk(struct kunit *test, struct kdt_ep *c, struct kdt_ep *s, struct kdt_buf *from,
	      struct kdt_buf *to, u32 seed)
{
	kdt_fill(from->p, 64, seed);
	memset(to->p, 0, 64);
	memset(from->p + 64, 0, 64);
	KDT_OK(test, kdt_recv(s, to, 0, 64, 0x101));
	KDT_OK(test, kdt_recv(c, from, 64, 64, 0x102));
	KDT_OK(test, kdt_send(c, from, 0, 64, 0x103, 0));
	kdt_came(test, s, 0x101, 64);
	kdt_sent(test, c, 0x103, DAT_DTO_SEND, 64);
	KUNIT_EXPECT_TRUE(test, kdt_same(to->p, 64, seed));
	KDT_OK(test, kdt_send(s, to, 0, 64, 0x104, 0));
	kdt_came(test, c, 0x102, 64);
	kdt_sent(test, s, 0x104, DAT_DTO_SEND, 64);
	KUNIT_EXPECT_TRUE(test, kdt_same(from->p + 64, 64, seed));
}

void kdt_say(struct kunit *test, struct kdt_ep *from, struct kdt_buf *buf, struct kdt_ep *to,
	     u64 cookie)
{
	KDT_OK(test, kdt_send(from, buf, 0, 64, 0x105, 0));
	kdt_sent(test, from, 0x105, DAT_DTO_SEND, 64);
	kdt_came(test, to, cookie, 64);
}

DAT_RETURN kdt_ask(struct kdt_ep *ep, struct kdt_ia *to, DAT_CONN_QUAL port, u32 usec,
		   const void *data, int len)
{
	return dat_ep_connect(ep->h, (DAT_IA_ADDRESS_PTR)&to->addr, port, usec, len,
			      (DAT_PVOID)data, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
}

void kdt_accept(struct kunit *test, DAT_CR_HANDLE cr, DAT_EP_HANDLE named, struct kdt_ep *c,
		struct kdt_ep *s)
{
	KDT_OK(test, dat_cr_accept(cr, named, 0, NULL));
	kdt_up(test, c, s);
}

void kdt_too_late(struct kunit *test, struct kdt_ep *s)
{
	DAT_EVENT event;

	KUNIT_ASSERT_TRUE(test, kdt_get(s->conn, &event));
	if (s->ia->iwarp && event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
		kdt_end(test, s);	/* D-17: the answer is all that establishing takes there */
	else
		KUNIT_EXPECT_EQ(test, (int)event.event_number,
				DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(s->h), DAT_EP_STATE_DISCONNECTED);
}

void kdt_reject(struct kunit *test, struct kdt_ep *caller, struct kdt_evd *cr, DAT_CR_HANDLE h,
		const void *data, int len)
{
	DAT_EVENT event;

	KDT_OK(test, dat_cr_reject(h, len, (DAT_PVOID)data));
	while (!kdt_queued(caller->conn)) {
		if (!kdt_get_timeout(cr, &event, 1))
			continue;
		h = event.event_data.cr_arrival_event_data.cr_handle;
		KDT_OK(test, dat_cr_reject(h, len, (DAT_PVOID)data));
	}
}

bool kdt_rejected(struct kunit *test, struct kdt_ep *ep, u32 len, u32 seed)
{
	DAT_CONNECTION_EVENT_DATA *data;
	DAT_EVENT event;
	int size;

	KUNIT_ASSERT_TRUE_MSG(test, kdt_get(ep->conn, &event), "not rejected in time");
	KUNIT_ASSERT_EQ(test, (int)event.event_number, DAT_CONNECTION_EVENT_PEER_REJECTED);
	data = &event.event_data.connect_event_data;
	KUNIT_EXPECT_PTR_EQ(test, data->ep_handle, ep->h);
	size = data->private_data_size;
	if (ep->ia->iwarp && !size && len)
		return false;
	if (ep->ia->iwarp) {
		KUNIT_ASSERT_EQ(test, size, len);
	} else {	/* the size of the field, padded with zeros */
		KUNIT_ASSERT_EQ(test, size, 148);
		KUNIT_EXPECT_TRUE(test, kdt_all(data->private_data + len, size - len, 0));
	}
	if (len)
		KUNIT_EXPECT_TRUE_MSG(test, kdt_same(data->private_data, len, seed),
				      "%u bytes are not these", len);
	return true;
}

void kdt_turned_down(struct kunit *test, struct kdt_ep *ep)
{
	DAT_EVENT event;

	KUNIT_ASSERT_TRUE(test, kdt_get(ep->conn, &event));
	if (!ep->ia->iwarp || event.event_number != DAT_CONNECTION_EVENT_PEER_REJECTED)
		KUNIT_EXPECT_EQ(test, (int)event.event_number,
				DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
}

void kdt_nobody(struct kunit *test, DAT_CONN_QUAL port)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_ep ep;

	kdt_ep_new(test, &ep, &env->a, NULL);
	KDT_OK(test, kdt_connect(&ep, &env->b, port));
	kdt_conn(test, &ep, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	kdt_ep_done(test, &ep);
}

DAT_RETURN kdt_listen(struct kdt_ia *ia, enum kdt_sp kind, DAT_CONN_QUAL port, struct kdt_evd *cr,
		      DAT_EP_HANDLE ep, DAT_HANDLE *h)
{
	struct sockaddr_storage addr = ia->addr;
	DAT_COMM comm = { .domain = addr.ss_family, .type = SOCK_STREAM };

	switch (kind) {
	case KDT_RSP:
		return dat_rsp_create(ia->h, port, ep, cr->h, (DAT_RSP_HANDLE *)h);
	case KDT_CSP:
		((struct sockaddr_in *)&addr)->sin_port = htons(port);	/* in both families */
		return dat_csp_create(ia->h, &comm, (DAT_IA_ADDRESS_PTR)&addr, cr->h,
				      (DAT_CSP_HANDLE *)h);
	default:
		return dat_psp_create(ia->h, port, cr->h, kind == KDT_PSP ?
				      DAT_PSP_CONSUMER_FLAG : DAT_PSP_PROVIDER_FLAG,
				      (DAT_PSP_HANDLE *)h);
	}
}

DAT_RETURN kdt_unlisten(enum kdt_sp kind, DAT_HANDLE h)
{
	return kind == KDT_RSP ? dat_rsp_free(h) : kind == KDT_CSP ? dat_csp_free(h) :
								     dat_psp_free(h);
}

struct kdt_scene *kdt_scene_new(struct kunit *test)
{
	struct kdt_scene *t = kdt_zalloc(test, sizeof(*t));
	struct kdt_env *env = kdt_env(test);

	t->cr = kdt_evd_new(test, &env->b, DAT_EVD_CR_FLAG);
	t->port = kdt_new_port();
	t->from = kdt_buf_new(test, &env->a, 128);
	t->to = kdt_buf_new(test, &env->b, 128);
	kdt_ep_new(test, &t->c, &env->a, NULL);
	kdt_ep_new(test, &t->s, &env->b, NULL);
	return t;
}

void kdt_scene_listen(struct kunit *test, struct kdt_scene *t, enum kdt_sp kind)
{
	KDT_OK(test, kdt_listen(t->s.ia, kind, t->port, t->cr, t->s.h, &t->sp));
}

void kdt_scene_done(struct kunit *test, struct kdt_scene *t)
{
	kdt_ep_done(test, &t->c);
	kdt_ep_done(test, &t->s);
	KUNIT_EXPECT_EQ(test, kdt_queued(t->cr), 0);
}

void kdt_listener_goes(struct kunit *test, struct kdt_ia *ia)
{
	if (ia->iwarp && IS_ENABLED(CONFIG_PROVE_LOCKING))
		kunit_skip(test, "lockdep minds how soft-iWARP and TCP lock a backlog");
}

/* ---- where an adapter lives ---- */

/* The namespace that has the address of this adapter; put_net() it. */
struct net *kdt_ia_net(struct kdt_ia *ia)
{
	__be32 addr = ((struct sockaddr_in *)&ia->addr)->sin_addr.s_addr;
	struct net *net, *found = NULL;

	if (ia->addr.ss_family != AF_INET)
		return get_net(&init_net);
	rcu_read_lock();
	for_each_net_rcu(net) {
		if (__ip_dev_find(net, addr, false)) {
			found = maybe_get_net(net);
			if (found)
				break;
		}
	}
	rcu_read_unlock();
	return found ?: get_net(&init_net);
}

bool kdt_ia_asks(struct kdt_ia *ia)
{
	struct net *net = kdt_ia_net(ia);
	struct net_device *dev = NULL;
	bool asks = true;

	rcu_read_lock();
	if (ia->addr.ss_family == AF_INET)
		dev = __ip_dev_find(net, ((struct sockaddr_in *)&ia->addr)->sin_addr.s_addr, false);
	if (dev)
		asks = !(dev->flags & IFF_NOARP);
	rcu_read_unlock();
	put_net(net);
	return asks;
}

struct sockaddr_storage kdt_nobody_there(struct kdt_ia *ia)
{
	struct sockaddr_storage sa = ia->addr;

	if (sa.ss_family == AF_INET6)
		((struct sockaddr_in6 *)&sa)->sin6_addr.s6_addr[15] ^= 0x55;
	else
		((struct sockaddr_in *)&sa)->sin_addr.s_addr ^= htonl(0x55);
	return sa;
}

bool kdt_ia_ipv6(struct kdt_ia *ia, struct sockaddr_in6 *addr)
{
	struct net *net = kdt_ia_net(ia);
	struct inet6_ifaddr *ifa;
	struct net_device *dev;
	struct inet6_dev *in6;
	bool found = false;

	if (ia->addr.ss_family != AF_INET)
		goto out;
	rtnl_lock();
	rcu_read_lock();
	dev = __ip_dev_find(net, ((struct sockaddr_in *)&ia->addr)->sin_addr.s_addr, false);
	rcu_read_unlock();
	in6 = dev ? __in6_dev_get(dev) : NULL;
	if (in6) {
		list_for_each_entry(ifa, &in6->addr_list, if_list) {
			bool local = ipv6_addr_type(&ifa->addr) & IPV6_ADDR_LINKLOCAL;

			if (ifa->flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED) || (found && local))
				continue;
			memset(addr, 0, sizeof(*addr));
			addr->sin6_family = AF_INET6;
			addr->sin6_addr = ifa->addr;
			addr->sin6_scope_id = local ? dev->ifindex : 0;
			found = true;
		}
	}
	rtnl_unlock();
out:
	put_net(net);
	return found;
}

/* ---- a peer that uses the connection manager itself ---- */

/* The port that a request comes from; at the same place in both families. */
static __be16 kdt_raw_port(struct rdma_cm_id *id)
{
	return ((struct sockaddr_in *)&id->route.addr.dst_addr)->sin_port;
}

static int kdt_raw_handler(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct kdt_raw *raw = id->context;

	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		if (raw->stale) {
			/* from the same port: the same request, whose refusal was lost */
			if (raw->stale_port != kdt_raw_port(id)) {
				raw->stale_port = kdt_raw_port(id);
				raw->stale--;
				/* before the caller knows */
				WRITE_ONCE(raw->refused, raw->refused + 1);
			}
			rdma_reject(id, NULL, 0, IB_CM_REJ_STALE_CONN);
			wake_up(&raw->wait);
			return -ESTALE;	/* it goes */
		}
		if (raw->child) {	/* one is enough */
			if (smp_load_acquire(&raw->reason))
				rdma_reject(id, raw->why, raw->why_len, raw->reason);
			return -EBUSY;
		}
		raw->child = id;
		if (id->route.path_rec)
			raw->flow = id->route.path_rec->traffic_class;
	}
	if (event->event == RDMA_CM_EVENT_CONNECT_REQUEST ||
	    event->event == RDMA_CM_EVENT_CONNECT_RESPONSE ||
	    event->event == RDMA_CM_EVENT_ESTABLISHED ||
	    event->event == RDMA_CM_EVENT_REJECTED) {
		raw->conn = event->param.conn;
		raw->conn.private_data = NULL;
		if (event->param.conn.private_data_len)
			memcpy(raw->pdata, event->param.conn.private_data,
			       event->param.conn.private_data_len);
	}
	raw->status = event->status;
	smp_wmb();	/* before the count */
	WRITE_ONCE(raw->seen[event->event], raw->seen[event->event] + 1);
	wake_up(&raw->wait);
	return 0;
}

static struct kdt_raw *kdt_raw_new(struct kunit *test, struct kdt_ia *ia, DAT_CONN_QUAL port)
{
	struct kdt_raw *raw = kdt_zalloc(test, sizeof(*raw));
	struct sockaddr_storage addr = ia->addr;
	struct kdt_env *env = kdt_env(test);
	struct net *net;
	int i;

	for (i = 0; i < KDT_RAWS && env->raws[i] && env->raws[i]->id; i++)
		;
	KUNIT_ASSERT_LT(test, i, KDT_RAWS);
	init_waitqueue_head(&raw->wait);
	net = kdt_ia_net(ia);
	raw->id = rdma_create_id(net, kdt_raw_handler, raw, RDMA_PS_TCP, IB_QPT_RC);
	put_net(net);
	KUNIT_ASSERT_FALSE(test, IS_ERR(raw->id));
	env->raws[i] = raw;
	((struct sockaddr_in *)&addr)->sin_port = htons(port);
	KUNIT_ASSERT_EQ(test, rdma_bind_addr(raw->id, (struct sockaddr *)&addr), 0);
	return raw;
}

struct kdt_raw *kdt_raw_listen(struct kunit *test, struct kdt_ia *ia, DAT_CONN_QUAL port)
{
	struct kdt_raw *raw = kdt_raw_new(test, ia, port);

	KUNIT_ASSERT_EQ(test, rdma_listen(raw->id, 16), 0);
	return raw;
}

void kdt_raw_wait(struct kunit *test, struct kdt_raw *raw, enum rdma_cm_event_type event)
{
	KUNIT_ASSERT_TRUE_MSG(test, wait_event_timeout(raw->wait, READ_ONCE(raw->seen[event]),
						       KDT_WAIT),
			      "no event %d of the connection manager, status %d", event,
			      raw->status);
	smp_rmb();	/* what came with it */
}

struct kdt_raw *kdt_raw_caller(struct kunit *test, struct kdt_ia *ia, struct kdt_ia *to,
			       DAT_CONN_QUAL port)
{
	struct kdt_raw *raw = kdt_raw_new(test, ia, 0);
	struct sockaddr_storage addr = to->addr;

	((struct sockaddr_in *)&addr)->sin_port = htons(port);
	KUNIT_ASSERT_EQ(test, rdma_resolve_addr(raw->id, NULL, (struct sockaddr *)&addr, 10000), 0);
	kdt_raw_wait(test, raw, RDMA_CM_EVENT_ADDR_RESOLVED);
	KUNIT_ASSERT_EQ(test, rdma_resolve_route(raw->id, 10000), 0);
	kdt_raw_wait(test, raw, RDMA_CM_EVENT_ROUTE_RESOLVED);
	return raw;
}

int kdt_raw_request(struct kdt_raw *raw, const void *pdata, u8 len, u32 qpn)
{
	struct rdma_conn_param param = {
		.private_data = pdata,
		.private_data_len = len,
		.responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 6,
		.rnr_retry_count = 6,
		.qp_num = qpn,
	};

	return rdma_connect(raw->id, &param);
}

int kdt_raw_reject(struct kdt_raw *raw, u8 reason, const void *why, u8 len)
{
	raw->why_len = min_t(u8, len, sizeof(raw->why));
	memcpy(raw->why, why, raw->why_len);
	smp_store_release(&raw->reason, reason);	/* with what goes with it */
	return rdma_reject(raw->child, raw->why, raw->why_len, reason);
}

/* Who is not in a handler has its lock to take for this. */
static int kdt_raw_answer(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	int err;

	rdma_lock_handler(id);
	err = rdma_accept(id, param);
	rdma_unlock_handler(id);
	return err;
}

int kdt_raw_ready(struct kdt_raw *raw)
{
	return kdt_raw_answer(raw->id, NULL);
}

int kdt_raw_accept(struct rdma_cm_id *id, u32 qpn)
{
	struct rdma_conn_param param = {
		.responder_resources = 1,
		.initiator_depth = 1,
		.rnr_retry_count = 6,
		.qp_num = qpn,
	};

	return kdt_raw_answer(id, &param);
}

void kdt_raw_close(struct kdt_raw *raw)
{
	if (raw->child)
		rdma_destroy_id(raw->child);
	if (raw->id)
		rdma_destroy_id(raw->id);
	raw->child = NULL;
	raw->id = NULL;
}
