// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The connection of an EP: one QP and its two work queues, from creation to ESTABLISHED. How a
 * connection ends is in conn_teardown.c.
 *
 * A struct kdapl_conn is made with its EP, so that Receives can be posted before anything is
 * connected. It connects at most once and is never reused: when it has ended, dat_ep_reset()
 * replaces it or dat_ep_free() releases it. So late completions of an old connection find the
 * old struct.
 */
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "ep.h"

/* The QP takes nothing more from its SRQ. */
static void conn_last_wqe(struct kdapl_conn *conn)
{
	if (conn->dev->iwarp)	/* maybe the peer's disconnect: the CM will tell */
		kdapl_conn_end(conn, KDAPL_END_SUSPECT);
	else	/* the QP has failed, maybe with no request posted that would fail */
		kdapl_conn_end_in(conn, DAT_CONNECTION_EVENT_BROKEN, KDAPL_ACK_TIME);
}

static void conn_qp_event(struct ib_event *event, void *context)
{
	struct kdapl_conn *conn = context;
	struct kdapl_ep *ep = conn->ep;

	switch (event->event) {
	case IB_EVENT_COMM_EST:
		queue_delayed_work(kdapl_misc_wq, &conn->est_work, KDAPL_EST_TIME);
		break;
	case IB_EVENT_QP_FATAL:
	case IB_EVENT_QP_REQ_ERR:
	case IB_EVENT_QP_ACCESS_ERR:
		if (READ_ONCE(conn->discard))
			break;
		if (!kdapl_conn_stopping(conn))
			kdapl_ia_async(ep->obj.ia, conn->handle, DAT_ASYNC_ERROR_EP_BROKEN,
				       DAT_EP_TRANSFER_TO_ERROR);
		WRITE_ONCE(conn->wc_failed, true);
		if (!kdapl_conn_early(conn) && atomic_read(&conn->reason) != KDAPL_END_PEER)
			/* once the CM has reported the end, this may be part of an orderly close */
			kdapl_conn_end_in(conn, DAT_CONNECTION_EVENT_BROKEN, KDAPL_ACK_TIME);
		break;
	case IB_EVENT_QP_LAST_WQE_REACHED:
		WRITE_ONCE(conn->last_wqe, true);
		if (kdapl_conn_stopping(conn))
			mod_delayed_work(kdapl_misc_wq, &conn->end_work, 0);
		else if (!kdapl_conn_early(conn))
			conn_last_wqe(conn);
		break;
	default:
		break;
	}
}

static int conn_qp_init(struct kdapl_conn *conn)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = conn->ep->obj.ia->port,
		/*
		 * All of them, always: without them some devices refuse even a zero-length
		 * Write, such as the peer's marker. Keys say what a peer may read or write.
		 */
		.qp_access_flags = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
				   IB_ACCESS_REMOTE_READ,
	};

	return ib_modify_qp(conn->qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			    IB_QP_ACCESS_FLAGS);
}

static int conn_create_qp(struct kdapl_conn *conn)
{
	struct ib_qp_init_attr init = {
		.event_handler = conn_qp_event,
		.qp_context = conn,
		.send_cq = conn->sq->cq->ibcq,
		.recv_cq = conn->rq->cq->ibcq,
		.srq = conn->pool ? conn->pool->ibsrq : NULL,
		.cap = {
			.max_send_wr = conn->sq->max_wrs + KDAPL_OWN_WRS,
			.max_recv_wr = conn->pool ? 0 : max(conn->rq->max_wrs, 1U),
			.max_send_sge = max(conn->sq->max_sge,
					   conn->dev->caps.short_page_bug ? 2U : 1U),
			.max_recv_sge = conn->pool ? 0 : max(conn->rq->max_sge, 1U),
		},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
		.port_num = conn->ep->obj.ia->port,
	};
	struct ib_qp *qp;
	int ret;

	qp = ib_create_qp_kernel(conn->pd->pd, &init, conn->ep->obj.ia->consumer);
	if (IS_ERR(qp))
		return kdapl_create_errno(PTR_ERR(qp));
	conn->qp = qp;
	conn->qpn = qp->qp_num;
	ret = conn_qp_init(conn);
	return ret ? kdapl_create_errno(ret) : 0;
}

static void conn_set_fast_wq(struct kdapl_wq *wq)
{
	struct kdapl_conn *conn = wq->conn;

	wq->ia = conn->ep->obj.ia;
	wq->qp = conn->qp;
	wq->domain[0] = kdapl_pd_domain(conn->pd);
	wq->domain[1] = (unsigned long)conn->handle;
	wq->sink = DAT_MEM_PRIV_LOCAL_WRITE_FLAG | KDAPL_PRIV_DIRECT;
}

/*
 * Set what the fast path of posts (post.c) reads, except the limits of requests. Those depend on
 * the connection: conn_set_fast_limits().
 */
static void conn_set_fast_wqs(struct kdapl_conn *conn)
{
	conn_set_fast_wq(conn->sq);
	conn_set_fast_wq(conn->rq);
	conn->rq->max_iov[0] = conn->attr.max_recv_iov;
	conn->rq->not_flags[0] = ~(conn->attr.recv_completion_flags &
				   DAT_COMPLETION_UNSIGNALLED_FLAG);
}

/* The fast path may fence requests of a kind that the device fences itself. */
static u8 conn_fence_flag(const struct kdapl_conn *conn, enum ib_wr_opcode opcode)
{
	return conn->dev->caps.unfenced & BIT_ULL(opcode) ? 0 : DAT_COMPLETION_BARRIER_FENCE_FLAG;
}

/* Set the limits that the fast path has for Send, Write and Read on this connection. */
static void conn_set_fast_limits(struct kdapl_conn *conn)
{
	bool quirky = kdapl_caps_post_quirks(&conn->dev->caps);
	const DAT_EP_ATTR *attr = &conn->attr;
	struct kdapl_wq *wq = conn->sq;
	u16 *max_iov = quirky ? wq->quirky_iov : wq->max_iov;
	u8 flags = DAT_COMPLETION_SUPPRESS_FLAG |
		   (attr->request_completion_flags & DAT_COMPLETION_UNSIGNALLED_FLAG);

	wq->max_message = attr->max_message_size;
	wq->max_rdma = attr->max_rdma_size;
	wq->not_flags[DAT_DTO_SEND] = ~(flags | DAT_COMPLETION_SOLICITED_WAIT_FLAG |
					conn_fence_flag(conn, IB_WR_SEND));
	wq->not_flags[DAT_DTO_RDMA_WRITE] = ~(flags | conn_fence_flag(conn, IB_WR_RDMA_WRITE));
	wq->not_flags[DAT_DTO_RDMA_READ] = ~(flags | conn_fence_flag(conn, IB_WR_RDMA_READ));
	if (conn->dev->iwarp)
		wq->sink |= DAT_MEM_PRIV_REMOTE_WRITE_FLAG;	/* the peer writes there (D-22) */
	if (conn->dev->caps.reads_deadlock)
		wq->max_reads = conn->read_depth;
	wq->serial = !quirky && conn->ep->serial;
	/* a post that sees a limit sees the rest; pairs with post_fast(), post_quirky() */
	smp_wmb();
	WRITE_ONCE(max_iov[DAT_DTO_SEND], attr->max_request_iov);
	WRITE_ONCE(max_iov[DAT_DTO_RDMA_WRITE], attr->max_rdma_write_iov);
	if (attr->max_rdma_read_out && conn->read_depth)
		WRITE_ONCE(max_iov[DAT_DTO_RDMA_READ], attr->max_rdma_read_iov);
}

/*
 * Can a fence take a place of its own in the send queue? If the device does not fence a request
 * itself, another one before it does. Registrations do not count: a fenced one takes room that is
 * there for suppressed requests (D-95).
 */
static bool conn_fences_take_room(const struct kdapl_conn *conn, const DAT_EP_ATTR *attr)
{
	const struct kdapl_caps *caps = &conn->dev->caps;
	u64 unfenced = caps->unfenced & ~BIT_ULL(IB_WR_REG_MR);

	if (!attr->max_rdma_read_out)
		unfenced &= ~BIT_ULL(IB_WR_RDMA_READ);
	return unfenced && caps->fence_by != KDAPL_FENCE_NONE;
}

/*
 * How many WRs the send queue must hold, and after how many suppressed requests in a row one is
 * signaled (D-09).
 */
static u32 conn_sq_wrs(struct kdapl_conn *conn, const DAT_EP_ATTR *attr, u32 *interval)
{
	u32 requests, wrs = 1;

	*interval = max(1, attr->max_request_dtos / 4);
	if (!attr->max_request_dtos)
		return 0;
	requests = attr->max_request_dtos + *interval - 1;
	/* a request, and another one that fences it (D-14, D-83, D-95) */
	if (conn_fences_take_room(conn, attr))
		wrs = 2;
	/* rebinding an RMR takes several (D-25), besides the fence */
	if (conn->request_evd->flags & DAT_EVD_RMR_BIND_FLAG)
		wrs = conn->dev->caps.most_wrs;
	return requests * wrs + 1;	/* one more: a kick must not take a request's place */
}

static int conn_attach(struct kdapl_conn *conn, const struct kdapl_conn *old)
{
	struct kdapl_cq *cq;

	cq = kdapl_evd_attach(conn->request_evd, conn->sq, old);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	conn->sq->cq = cq;
	cq = kdapl_evd_attach(conn->recv_evd, conn->rq, old);
	if (IS_ERR(cq)) {
		kdapl_evd_detach(conn->request_evd, conn->sq);
		kdapl_cq_put(conn->sq->cq);
		conn->sq->cq = NULL;
		return PTR_ERR(cq);
	}
	conn->rq->cq = cq;
	return 0;
}

static void conn_detach(struct kdapl_conn *conn)
{
	kdapl_evd_detach(conn->request_evd, conn->sq);
	kdapl_evd_detach(conn->recv_evd, conn->rq);
}

/**
 * kdapl_conn_established - move to UP, and tell the consumer
 * @conn: the connection; conn->lock held
 *
 * The state of the EP changes before the consumer can see the event. The event is queued before
 * any completion of this connection: Receives that complete early, and requests of a consumer that
 * has looked at the state, wait in their work queue until the connection is UP.
 */
void kdapl_conn_established(struct kdapl_conn *conn)
{
	struct kdapl_ep *ep = conn->ep;
	bool up;

	lockdep_assert_held(&conn->lock);
	if (!kdapl_conn_may(conn, KDAPL_CONN_IN_ESTABLISHED) ||
	    atomic_read(&conn->reason) > KDAPL_END_SUSPECT)
		return;
	cancel_delayed_work(&conn->timer);
	spin_lock_irq(&ep->lock);
	conn_set_fast_limits(conn);
	up = kdapl_ep_step(ep, KDAPL_IN_ESTABLISHED) != KDAPL_EP_NO_STEP;
	spin_unlock_irq(&ep->lock);
	if (!up)
		return;		/* dat_ep_disconnect() was faster: the end is under way */
	kdapl_ep_event(conn, DAT_CONNECTION_EVENT_ESTABLISHED);
	kdapl_conn_step(conn, KDAPL_CONN_IN_ESTABLISHED);
	kdapl_wq_ready(conn->rq);
	kdapl_wq_ready(conn->sq);
	smp_mb();	/* the state before what has happened; pairs with kdapl_conn_early() */
	if (READ_ONCE(conn->wc_failed))
		kdapl_conn_end(conn, DAT_CONNECTION_EVENT_BROKEN);
	else if (READ_ONCE(conn->last_wqe))
		conn_last_wqe(conn);
}

#define KICKS		5
#define KICK_TIME	(HZ / 10)

/*
 * Is the last kick still in the work queue? Its position does not tell after 2^31 requests, but the
 * entry there does. wq->lock held.
 */
static bool conn_kick_under_way(const struct kdapl_conn *conn)
{
	const struct kdapl_wq *wq = conn->sq;
	u32 tail = smp_load_acquire(&wq->tail);	/* pairs with the release in kdapl_wq_advance() */

	return conn->kick_pos - tail < wq->head - tail &&
	       wq->wqe[conn->kick_pos & wq->mask].op == KDAPL_OP_KICK;
}

/* Post an empty request, unless the last one is still under way. */
static int conn_post_kick(struct kdapl_conn *conn)
{
	struct kdapl_wq *wq = conn->sq;
	int ret = 0;

	spin_lock_irq(&wq->lock);
	/* a serial work queue needs no kick: there each operation on an LMR is signaled */
	if (wq->mode == KDAPL_WQ_LIVE && !wq->serial && !kdapl_conn_stopping(conn) &&
	    !READ_ONCE(conn->dev->gone) && !conn_kick_under_way(conn)) {
		conn->kick_pos = wq->head;
		ret = kdapl_wq_post_own(wq, KDAPL_OP_KICK);
	}
	spin_unlock_irq(&wq->lock);
	return ret;
}

/**
 * kdapl_conn_kick - learn which requests the device is done with
 * @conn: connection with requests that have no completion of their own
 *
 * Posts an empty request; its completion shows that the device is done with all before it.
 *
 * Context: may sleep.
 */
void kdapl_conn_kick(struct kdapl_conn *conn)
{
	if (conn_post_kick(conn))
		kdapl_conn_end(conn, KDAPL_END_SUSPECT);
}

static void conn_work_kick(struct work_struct *work)
{
	struct kdapl_conn *conn = container_of(to_delayed_work(work), struct kdapl_conn,
					       kick_work);

	kdapl_conn_kick(conn);
	if (++conn->kicks < KICKS && conn->sq->mode == KDAPL_WQ_LIVE)
		queue_delayed_work(kdapl_misc_wq, &conn->kick_work, KICK_TIME << conn->kicks);
}

/**
 * kdapl_conn_start_kicks - make sure that the peer notices the first message
 * @conn: active side on soft-iWARP, just established; conn->lock held
 *
 * Soft-iWARP on the passive side loses the wake-up for data that arrives between
 * its MPA reply and its own change to data mode: a first message stays in the socket
 * until something follows it. A few empty requests do.
 */
void kdapl_conn_start_kicks(struct kdapl_conn *conn)
{
	lockdep_assert_held(&conn->lock);
	if (conn->state == KDAPL_CONN_UP)
		queue_delayed_work(kdapl_misc_wq, &conn->kick_work, KICK_TIME);
}

/*
 * Limits of what the peer says about the ACK timeout, 4.096 us * 2^n. Below 17 ms a busy peer looks
 * dead, and 0 means for ever. With 4.3 s, seven attempts take half a minute.
 */
#define ACK_TIMEOUT_MIN	12
#define ACK_TIMEOUT_MAX	20

/**
 * kdapl_conn_qp_attr - replace attributes of the QP that the CM has chosen
 * @conn: the connection, its read depths agreed with the peer
 * @mask: attributes that are going to be modified
 * @attr: as rdma_init_qp_attr() has filled it
 *
 * Read depths: until rdma_accept() the CM knows only what the peer has asked for, which may be
 * more than the device has, or more than we are going to grant. Retries: the peer may ask for
 * none, or for retries without end. ACK timeout: it is what the peer's REQ says, or derived from
 * its REP, unless the consumer has set it.
 */
void kdapl_conn_qp_attr(const struct kdapl_conn *conn, int mask, struct ib_qp_attr *attr)
{
	const struct kdat_conn_attr *net = &conn->net_attr;

	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		attr->max_dest_rd_atomic = conn->read_in;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		attr->max_rd_atomic = conn->read_depth;
	if (mask & IB_QP_RETRY_CNT)
		attr->retry_cnt = net->retry_count == KDAT_CONN_DEFAULT ? KDAPL_RETRY_COUNT :
									   net->retry_count;
	if (mask & IB_QP_RNR_RETRY)
		attr->rnr_retry = net->rnr_retry_count == KDAT_CONN_DEFAULT ?
				  KDAPL_RNR_RETRY_COUNT : net->rnr_retry_count;
	if ((mask & IB_QP_TIMEOUT) && net->ack_timeout == KDAT_CONN_DEFAULT)
		attr->timeout = clamp_t(u8, attr->timeout, ACK_TIMEOUT_MIN, ACK_TIMEOUT_MAX);
}

/* Move the QP to a state, as the CM would. Not for iWARP. */
static int conn_modify(struct kdapl_conn *conn, struct rdma_cm_id *id, enum ib_qp_state state)
{
	struct ib_qp_attr attr = { .qp_state = state };
	int mask, ret;

	ret = rdma_init_qp_attr(id, &attr, &mask);
	if (ret)
		return ret;
	if (state == IB_QPS_INIT)
		/* our access flags, not those of the CM: see conn_qp_init() */
		attr.qp_access_flags = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
				       IB_ACCESS_REMOTE_READ;
	kdapl_conn_qp_attr(conn, mask, &attr);
	return ib_modify_qp(conn->qp, &attr, mask);
}

/**
 * kdapl_conn_to_rts - bring the QP up with the addresses the CM has learned
 * @conn: the connection; conn->lock held
 * @id: its cm_id
 *
 * It goes through INIT again, because pkey index and port of the path are known only now.
 *
 * Return: 0 or an errno.
 */
int kdapl_conn_to_rts(struct kdapl_conn *conn, struct rdma_cm_id *id)
{
	int ret;

	lockdep_assert_held(&conn->lock);
	if (conn->dev->iwarp)
		return 0;	/* the provider moves the QP itself */
	ret = conn_modify(conn, id, IB_QPS_INIT);
	if (!ret)
		ret = conn_modify(conn, id, IB_QPS_RTR);
	if (!ret)
		ret = conn_modify(conn, id, IB_QPS_RTS);
	return ret;
}

/* Posts convert one pointer into the other at no cost. */
static_assert(!offsetof(struct kdapl_conn, op_owner));

static struct kdapl_conn *conn_op_conn(struct kdapl_op_owner *owner)
{
	return container_of(owner, struct kdapl_conn, op_owner);
}

/*
 * The memory of the CQ lives as long as that of the connection. When no work queue completes on
 * the CQ any more, it may have no EVD.
 */
static struct kdapl_obj *conn_op_evd_get(struct kdapl_op_owner *owner)
{
	struct kdapl_evd *evd = kdapl_cq_evd_get(conn_op_conn(owner)->sq->cq);

	return evd ? &evd->obj : NULL;
}

static void conn_op_evd_poll(struct kdapl_obj *obj, bool wait)
{
	struct kdapl_evd *evd = container_of(obj, struct kdapl_evd, obj);

	if (wait)
		kdapl_evd_poll_waiting(evd);
	else
		kdapl_evd_poll_ahead(evd, KDAPL_BATCH);
}

static void conn_op_hold(struct kdapl_op_owner *owner)
{
	refcount_inc(&conn_op_conn(owner)->ref);
}

static void conn_op_put(struct kdapl_op_owner *owner)
{
	kdapl_conn_put(conn_op_conn(owner));
}

static void conn_op_kick(struct kdapl_op_owner *owner)
{
	kdapl_conn_kick(conn_op_conn(owner));
}

static u32 conn_op_progress(struct kdapl_op_owner *owner)
{
	return kdapl_wq_progress(conn_op_conn(owner)->sq);
}

static void conn_op_end(struct kdapl_op_owner *owner)
{
	kdapl_conn_end(conn_op_conn(owner), DAT_CONNECTION_EVENT_BROKEN);
}

static const struct kdapl_op_owner_ops conn_op_ops = {
	.evd_get = conn_op_evd_get,
	.evd_poll = conn_op_evd_poll,
	.hold = conn_op_hold,
	.put = conn_op_put,
	.kick = conn_op_kick,
	.progress = conn_op_progress,
	.end = conn_op_end,
};

static void conn_work_connect(struct work_struct *work)
{
	struct kdapl_conn *conn = container_of(work, struct kdapl_conn, connect_work);

	conn->cm->connect(conn);
}

static void conn_work_retry(struct work_struct *work)
{
	struct kdapl_conn *conn = container_of(to_delayed_work(work), struct kdapl_conn,
					       retry_work);

	conn->cm->retry(conn);
}

/*
 * Either a message has arrived before the peer's RTU, which may be lost; or ESTABLISHED has been
 * held back for long enough.
 */
static void conn_work_established(struct work_struct *work)
{
	struct kdapl_conn *conn = container_of(to_delayed_work(work), struct kdapl_conn, est_work);
	unsigned int noio = memalloc_noio_save();

	mutex_lock(&conn->lock);
	if (conn->state == KDAPL_CONN_HELD) {
		if (READ_ONCE(conn->spoken) || !--conn->hold_steps)
			kdapl_conn_established(conn);
		else
			queue_delayed_work(kdapl_misc_wq, &conn->est_work, KDAPL_HOLD_STEP);
	} else if (conn->cm_id && conn->passive && conn->state == KDAPL_CONN_CONNECTING &&
		   !conn->dev->iwarp) {
		rdma_notify(conn->cm_id, IB_EVENT_COMM_EST);	/* ESTABLISHED follows */
	}
	mutex_unlock(&conn->lock);
	memalloc_noio_restore(noio);
}

/**
 * kdapl_conn_create - make a connection for an EP
 * @ep: EP; with an SRQ, in use by it
 * @conf: its configuration
 * @old: connection that it will replace on the same EVDs, or NULL
 *
 * Context: may sleep; inside kdapl_dev_enter().
 * Return: the connection, with its QP in INIT, or an ERR_PTR: -EINVAL if the completion flags of
 * the EP conflict with its EVDs, -ENOMEM, or -ENOSPC if the device has no room for it.
 */
struct kdapl_conn *kdapl_conn_create(struct kdapl_ep *ep, const struct kdapl_ep_conf *conf,
				     struct kdapl_conn *old)
{
	struct kdapl_device *dev = ep->obj.ia->dev;
	const DAT_EP_ATTR *attr = &conf->attr;
	struct kdapl_conn *conn;
	u32 interval, sq_wrs;
	int ret = -ENOMEM;

	conn = kzalloc(sizeof(*conn), GFP_KERNEL);
	if (!conn)
		return ERR_PTR(-ENOMEM);
	conn->op_owner.ops = &conn_op_ops;
	refcount_set(&conn->ref, 1);
	conn->dev = dev;
	conn->ep = ep;
	conn->marks = &ep->marks;
	conn->handle = ep->obj.handle;
	conn->attr = *attr;
	conn->recv_evd = conf->recv_evd;
	conn->request_evd = conf->request_evd;
	INIT_LIST_HEAD(&conn->early);
	INIT_LIST_HEAD(&conn->pool_node);
	INIT_HLIST_NODE(&conn->qp_node);
	if (ep->srq)
		conn->pool = kdapl_srq_pool_get(ep->srq);
	mutex_init(&conn->lock);
	kdapl_conn_init_end(conn);
	INIT_DELAYED_WORK(&conn->kick_work, conn_work_kick);
	INIT_WORK(&conn->connect_work, conn_work_connect);
	INIT_DELAYED_WORK(&conn->retry_work, conn_work_retry);
	INIT_DELAYED_WORK(&conn->est_work, conn_work_established);

	sq_wrs = conn_sq_wrs(conn, attr, &interval);
	conn->sq = kdapl_wq_alloc(conn, false, sq_wrs,
				  max3(attr->max_request_iov, attr->max_rdma_read_iov,
				       attr->max_rdma_write_iov));
	conn->rq = kdapl_wq_alloc(conn, true, conn->pool ? 0 : attr->max_recv_dtos,
				  conn->pool ? 0 : attr->max_recv_iov);
	if (!conn->sq || !conn->rq)
		goto err_free;
	conn->sq->depth = attr->max_request_dtos;
	conn->sq->interval = interval;
	conn->sq->ooo = dev->caps.reads_unordered;
	if (conn->sq->ooo)
		conn->sq->slow |= KDAPL_SLOW_READS;
	conn->rq->depth = conn->rq->max_wrs;

	conn->pd = conf->pz->pd;
	refcount_inc(&conn->pd->ref);
	ret = conn_attach(conn, old);
	if (ret)
		goto err_pd;
	ret = conn_create_qp(conn);
	if (ret)
		goto err_qp;
	conn_set_fast_wqs(conn);
	if (conn->pool) {
		kdapl_pool_attach(conn->pool, conn);
		kdapl_evd_watch(conn);
	}
	refcount_inc(&ep->obj.ref);
	refcount_inc(&dev->ref);
	kdapl_dev_conn_add(dev, &conn->dev_conn, &kdapl_conn_dev_ops);
	return conn;

err_qp:
	if (conn->qp)
		ib_destroy_qp(conn->qp);
	conn_detach(conn);
	kdapl_cq_put(conn->sq->cq);
	kdapl_cq_put(conn->rq->cq);
err_pd:
	kdapl_pd_put(conn->pd);
err_free:
	kdapl_wq_free(conn->sq);
	kdapl_wq_free(conn->rq);
	kdapl_pool_put(conn->pool);
	kfree(conn);
	return ERR_PTR(ret);
}
