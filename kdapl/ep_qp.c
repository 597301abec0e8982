// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The transport half of an EP: one QP, its two rings, and its way out.
 *
 * A half is made with its EP, so that receives can be posted before anything
 * is connected, carries at most one connection and is never used again: it
 * ends, and dat_ep_reset() or dat_ep_free() replace or release it. Late
 * completions of an old half therefore find the old half.
 *
 * The end. Whatever ends a connection or an attempt calls kdapl_half_end()
 * with the connection event it stands for; the first reason wins. A work item
 * then stops posting, moves the QP to ERR, tells the CM, and waits until the
 * device has given everything back: receives are counted, requests end with a
 * marker posted behind them, since suppressed ones that succeeded have no
 * completion of their own. Only then the EP goes to DISCONNECTED and the event
 * is queued: after every successful completion, exactly once. If the device
 * gives nothing back for END_TIMEOUT the QP is destroyed, which is proof as well.
 *
 * ep_end.pml is a model of the end, with the rules that make it right.
 */
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "kdapl.h"
#include "trace.h"

#define END_TIMEOUT	(5 * HZ)	/* without progress */
#define SLOW_TIMEOUT	(60 * HZ)	/* the same, where nobody waits for anybody */
#define END_POLL	(HZ / 20)	/* look even if the engine is held up in an upcall */
#define SUSPECT_TIMEOUT	HZ		/* D-08 */
#define ANSWER_TIME	(HZ / 100 + 1)	/* for what the peer has sent, right or wrong */
#define CM_DOWN_TIMEOUT	(2 * HZ)
#define LAST_WQE_TIMEOUT	(HZ / 10)	/* D-15: not every device says it */

/*
 * What a post reads is one line and what it writes another, and completions have a third:
 * where lines have 64 bytes and locks four, that is.
 */
#define IN_LINE(type, first, last) \
	(SMP_CACHE_BYTES != 64 || !IS_ENABLED(CONFIG_SMP) || sizeof(spinlock_t) > 4 || \
	 offsetof(type, first) / 64 == (offsetofend(type, last) - 1) / 64)

static_assert(IN_LINE(struct kdapl_ring, ia, sink));
static_assert(IN_LINE(struct kdapl_ring, lock, interval));
static_assert(IN_LINE(struct kdapl_ring, handle, ready));
static_assert(IN_LINE(struct kdapl_ring, wr[0], wr[1]));
static_assert(IN_LINE(struct kdapl_half, sq, qp));

static void kdapl_ring_free(struct kdapl_ring *ring)
{
	if (!ring)
		return;
	kvfree(ring->sinks);
	kvfree(ring->slot);
	kvfree(ring->chain);
	kvfree(ring->scratch);
	kvfree(ring);
}

static int ring_alloc_lists(struct kdapl_ring *ring, u32 size)
{
	u32 lists = ring->recv ? 1 : KDAT_POST_LIST_MAX;
	struct kdapl_sinks *sinks = kdapl_sinks_alloc(ring->half->dev, size, ring->max_sge);

	if (IS_ERR(sinks))
		return PTR_ERR(sinks);
	ring->sinks = sinks;
	if (sinks)
		ring->odd |= KDAPL_ODD_SYNC;
	ring->scratch = kvcalloc(lists * ring->stride, sizeof(*ring->scratch), GFP_KERNEL);
	if (!ring->scratch)
		return -ENOMEM;
	if (ring->recv)
		return 0;
	ring->slot = kvcalloc(size, sizeof(*ring->slot), GFP_KERNEL);
	ring->chain = kvcalloc(KDAT_POST_LIST_MAX * KDAPL_NATIVE_MAX, sizeof(*ring->chain),
			       GFP_KERNEL);
	return ring->slot && ring->chain ? 0 : -ENOMEM;
}

static struct kdapl_ring *kdapl_ring_alloc(struct kdapl_half *half, bool recv, u32 slots,
					   u32 max_sge)
{
	u32 size = roundup_pow_of_two(slots + KDAPL_MARKERS);
	struct kdapl_ring *ring;
	u32 i;

	ring = kvzalloc(struct_size(ring, wr, size), GFP_KERNEL);
	if (!ring)
		return NULL;
	ring->half = half;
	ring->handle = half->handle;
	ring->recv = recv;
	ring->mask = size - 1;
	ring->done_mask = ring->mask;
	ring->odd = recv ? KDAPL_ODD_EARLY : 0;
	ring->slots = slots;
	ring->max_sge = max_sge;
	ring->stride = max(max_sge, 2U);	/* two: siw_split_short() */
	ring->last_sup = -1;
	ring->mode = recv ? KDAPL_RING_LIVE : KDAPL_RING_REFUSE;
	spin_lock_init(&ring->lock);
	INIT_LIST_HEAD(&ring->ready);
	for (i = 0; i < size; i++) {
		ring->wr[i].cqe.done = kdapl_wr_done;
		ring->wr[i].index = i;
	}
	if (ring_alloc_lists(ring, size)) {
		kdapl_ring_free(ring);
		return NULL;
	}
	return ring;
}

/**
 * kdapl_ring_set_mode - decide what becomes of posts
 * @ring: the ring
 * @mode: enum kdapl_ring_mode
 *
 * After the return no post to the device is under way in another mode, but for a ring
 * whose consumer serialises its posts: see kdapl_ring_quiesce().
 */
void kdapl_ring_set_mode(struct kdapl_ring *ring, enum kdapl_ring_mode mode)
{
	unsigned long flags;

	spin_lock_irqsave(&ring->lock, flags);
	/* pairs with the acquire in ring_check_recv_end() */
	smp_store_release(&ring->mode, mode);
	spin_unlock_irqrestore(&ring->lock, flags);
}

/**
 * kdapl_ring_quiesce - wait for the last post that does not hold the lock
 * @ring: a ring that is not live any more
 *
 * Where the consumer serialises its posts they take no lock, but they are inside an RCU
 * section, and look at the mode there. Expedited, since somebody waits for the end of the
 * connection.
 *
 * Context: may sleep.
 */
void kdapl_ring_quiesce(struct kdapl_ring *ring)
{
	if (ring->serial)
		synchronize_rcu_expedited();
}

/*
 * Post a request of our own, a signaled zero-length RDMA Write. It moves no byte
 * and is not checked against any key. ring->lock held.
 */
static int ring_post_own(struct kdapl_ring *ring, u8 op)
{
	struct kdapl_wr *wr = &ring->wr[ring->head & ring->mask];
	struct ib_rdma_wr post = {
		.wr = {
			.wr_cqe = &wr->cqe,
			.opcode = IB_WR_RDMA_WRITE,
			.send_flags = IB_SEND_SIGNALED,
		},
	};
	int ret;

	wr->op = op;
	wr->flags = KDAPL_WR_SIGNALED;
	wr->state = KDAPL_WR_NATIVE;
	wr->seq = ring->dtos;
	/* pairs with the acquire in ring_next() */
	smp_store_release(&ring->head, ring->head + 1);
	ret = ib_post_send(ring->half->qp, &post.wr, NULL);
	if (ret)
		WRITE_ONCE(wr->state, KDAPL_WR_SOFT);
	return ret;
}

/*
 * Post the marker: when it completes, in whatever way, everything before it is
 * done. ring->lock held. -EALREADY: nothing to wait for.
 */
static int ring_post_marker(struct kdapl_ring *ring)
{
	int ret;

	/* pairs with the release in ring_advance() */
	if (smp_load_acquire(&ring->tail) == ring->head)
		return -EALREADY;
	if (ring->marker)
		return 0;
	ring->marker = true;
	ring->marker_pos = ring->head;
	ret = ring_post_own(ring, KDAPL_OP_MARKER);
	if (ret)
		WRITE_ONCE(ring->marker, false);
	return ret;
}

static void half_end_in(struct kdapl_half *half, int reason, unsigned long delay);
static void half_work_end(struct work_struct *work);
static void half_work_reap(struct work_struct *work);
static void half_work_free(struct work_struct *work);
static void half_work_nudge(struct work_struct *work);

static void half_qp_event(struct ib_event *event, void *context)
{
	struct kdapl_half *half = context;
	struct kdapl_ep *ep = half->ep;

	switch (event->event) {
	case IB_EVENT_COMM_EST:
		queue_delayed_work(kdapl_wq, &half->est_work, KDAPL_EST_TIME);
		break;
	case IB_EVENT_QP_FATAL:
	case IB_EVENT_QP_REQ_ERR:
	case IB_EVENT_QP_ACCESS_ERR:
		if (READ_ONCE(half->discard))
			break;
		if (!READ_ONCE(half->stopping))
			kdapl_ia_async(ep->obj.ia, half->handle, DAT_ASYNC_ERROR_EP_BROKEN,
				       DAT_EP_TRANSFER_TO_ERROR);
		if (READ_ONCE(half->phase) < KDAPL_HALF_UP)
			WRITE_ONCE(half->wc_failed, true);
		else if (atomic_read(&half->reason) != KDAPL_END_PEER)
			/* after the CM's word it may be part of an orderly close */
			half_end_in(half, DAT_CONNECTION_EVENT_BROKEN, ANSWER_TIME);
		break;
	case IB_EVENT_QP_LAST_WQE_REACHED:
		WRITE_ONCE(half->last_wqe, true);
		if (READ_ONCE(half->stopping))
			mod_delayed_work(kdapl_wq, &half->end_work, 0);
		else if (READ_ONCE(half->phase) < KDAPL_HALF_UP)
			WRITE_ONCE(half->wc_failed, true);
		else if (half->dev->iwarp)	/* or the peer has disconnected: the CM will say */
			kdapl_half_end(half, KDAPL_END_SUSPECT);
		else	/* the QP has failed, maybe with nothing posted that would tell */
			half_end_in(half, DAT_CONNECTION_EVENT_BROKEN, ANSWER_TIME);
		break;
	default:
		break;
	}
}

static int half_qp_init(struct kdapl_half *half)
{
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT,
		.port_num = half->ep->obj.ia->port,
		/*
		 * Always: a zero-length Write, the peer's marker, is refused by
		 * some devices otherwise. What may be read or written is a
		 * matter of the keys.
		 */
		.qp_access_flags = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
				   IB_ACCESS_REMOTE_READ,
	};

	return ib_modify_qp(half->qp, &attr, IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT |
			    IB_QP_ACCESS_FLAGS);
}

static int half_create_qp(struct kdapl_half *half)
{
	struct ib_qp_init_attr init = {
		.event_handler = half_qp_event,
		.qp_context = half,
		.send_cq = half->sq->cq->ibcq,
		.recv_cq = half->rq->cq->ibcq,
		.srq = half->pool ? half->pool->ibsrq : NULL,
		.cap = {
			.max_send_wr = half->sq->slots + KDAPL_OWN_WRS,
			.max_recv_wr = half->pool ? 0 : max(half->rq->slots, 1U),
			.max_send_sge = max(half->sq->max_sge, half->dev->siw ? 2U : 1U),
			.max_recv_sge = half->pool ? 0 : max(half->rq->max_sge, 1U),
		},
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.qp_type = IB_QPT_RC,
		.port_num = half->ep->obj.ia->port,
	};
	int ret;

	half->qp = ib_create_qp_kernel(half->pd->pd, &init, half->ep->obj.ia->consumer);
	if (IS_ERR(half->qp)) {
		ret = PTR_ERR(half->qp);
		half->qp = NULL;
		return ret;
	}
	half->qpn = half->qp->qp_num;
	return half_qp_init(half);
}

static void ring_open(struct kdapl_ring *ring)
{
	struct kdapl_half *half = ring->half;

	ring->ia = half->ep->obj.ia;
	ring->qp = half->qp;
	ring->domain[0] = kdapl_pd_domain(half->pd);
	ring->domain[1] = (unsigned long)half->handle;
	ring->sink = DAT_MEM_PRIV_LOCAL_WRITE_FLAG | KDAPL_PRIV_DIRECT;
}

/*
 * What both rings need for posts without a closer look (post.c), and what Receives may be
 * there; of requests nothing is known yet.
 */
static void half_open_rings(struct kdapl_half *half)
{
	ring_open(half->sq);
	ring_open(half->rq);
	half->rq->max_iov[0] = half->attr.max_recv_iov;
	half->rq->flags[0] = half->attr.recv_completion_flags & DAT_COMPLETION_UNSIGNALLED_FLAG;
}

/* A request that the device fences itself may be posted fenced without a closer look. */
static u8 half_fence_flag(const struct kdapl_half *half, enum ib_wr_opcode opcode)
{
	return half->dev->caps.unfenced & BIT_ULL(opcode) ? 0 : DAT_COMPLETION_BARRIER_FENCE_FLAG;
}

/* The same for Send, Write and Read, once it is known what the connection allows. */
static void half_open_requests(struct kdapl_half *half)
{
	const DAT_EP_ATTR *attr = &half->attr;
	struct kdapl_ring *ring = half->sq;
	u8 flags = DAT_COMPLETION_SUPPRESS_FLAG |
		   (attr->request_completion_flags & DAT_COMPLETION_UNSIGNALLED_FLAG);

	ring->max_message = attr->max_message_size;
	ring->max_rdma = attr->max_rdma_size;
	ring->flags[DAT_DTO_SEND] = flags | DAT_COMPLETION_SOLICITED_WAIT_FLAG |
				    half_fence_flag(half, IB_WR_SEND);
	ring->flags[DAT_DTO_RDMA_WRITE] = flags | half_fence_flag(half, IB_WR_RDMA_WRITE);
	ring->flags[DAT_DTO_RDMA_READ] = flags | half_fence_flag(half, IB_WR_RDMA_READ);
	if (half->dev->iwarp)
		ring->sink |= DAT_MEM_PRIV_REMOTE_WRITE_FLAG;	/* D-22 */
	/* it wants nudges, and a closer look at all that has segments */
	if (half->dev->siw) {
		ring->max_reads = half->read_depth;
		return;
	}
	ring->serial = half->ep->serial;
	/* who sees what follows sees the rest; pairs with the acquire in straight_post() */
	smp_wmb();
	WRITE_ONCE(ring->max_iov[DAT_DTO_SEND], attr->max_request_iov);
	WRITE_ONCE(ring->max_iov[DAT_DTO_RDMA_WRITE], attr->max_rdma_write_iov);
	if (attr->max_rdma_read_out && half->read_depth)
		WRITE_ONCE(ring->max_iov[DAT_DTO_RDMA_READ], attr->max_rdma_read_iov);
}

/*
 * Are there fences that take a place in the queue? Registrations do not count: those that
 * are fenced live on the room for suppressed requests (D-95).
 */
static bool half_fences_take_room(const struct kdapl_half *half, const DAT_EP_ATTR *attr)
{
	const struct kdapl_caps *caps = &half->dev->caps;
	u64 unfenced = caps->unfenced & ~BIT_ULL(IB_WR_REG_MR);

	if (!attr->max_rdma_read_out)
		unfenced &= ~BIT_ULL(IB_WR_RDMA_READ);
	return unfenced && caps->fence_by != KDAPL_FENCE_NONE;
}

/* How many WRs and DTOs the send queue must hold (D-09). */
static u32 half_sq_slots(struct kdapl_half *half, const DAT_EP_ATTR *attr, u32 *interval)
{
	u32 slots, wrs = 1;

	*interval = max(1, attr->max_request_dtos / 4);
	if (!attr->max_request_dtos)
		return 0;
	slots = attr->max_request_dtos + *interval - 1;
	/* two WRs: what another request must fence (D-14, D-83, D-95) */
	if (half_fences_take_room(half, attr))
		wrs = 2;
	/* an RMR that is bound anew (D-25), with what fences that */
	if (half->request_evd->flags & DAT_EVD_RMR_BIND_FLAG)
		wrs = half->dev->caps.most_wrs;
	return slots * wrs + 1;	/* a nudge takes nobody's place */
}

static int half_attach(struct kdapl_half *half)
{
	struct kdapl_cq *cq;

	cq = kdapl_evd_attach(half->request_evd, half->sq, half->attr.request_completion_flags);
	if (IS_ERR(cq))
		return PTR_ERR(cq);
	half->sq->cq = cq;
	cq = kdapl_evd_attach(half->recv_evd, half->rq, half->attr.recv_completion_flags);
	if (IS_ERR(cq)) {
		kdapl_evd_detach(half->request_evd, half->sq);
		kdapl_cq_put(half->sq->cq);
		half->sq->cq = NULL;
		return PTR_ERR(cq);
	}
	half->rq->cq = cq;
	return 0;
}

static void half_detach(struct kdapl_half *half)
{
	kdapl_evd_detach(half->request_evd, half->sq);
	kdapl_evd_detach(half->recv_evd, half->rq);
}

/**
 * kdapl_half_create - a fresh transport half for an EP
 * @ep: EP; with an SRQ, in use by it
 * @conf: what to make it of
 * @old: half that it will replace on the same EVDs, or NULL
 *
 * Context: may sleep; inside kdapl_dev_enter().
 * Return: the half, with its QP in INIT, or an ERR_PTR: -EBADRQC when the EP's
 * completion flags do not fit its EVDs, other errnos for lack of resources.
 */
struct kdapl_half *kdapl_half_create(struct kdapl_ep *ep, const struct kdapl_ep_conf *conf,
				     struct kdapl_half *old)
{
	struct kdapl_device *dev = ep->obj.ia->dev;
	const DAT_EP_ATTR *attr = &conf->attr;
	struct kdapl_half *half;
	u32 interval, slots;
	int ret = -ENOMEM;

	half = kzalloc(sizeof(*half), GFP_KERNEL);
	if (!half)
		return ERR_PTR(-ENOMEM);
	refcount_set(&half->ref, 1);
	half->dev = dev;
	half->ep = ep;
	half->handle = ep->obj.handle;
	half->attr = *attr;
	half->recv_evd = conf->recv_evd;
	half->request_evd = conf->request_evd;
	half->replaces = old;
	INIT_LIST_HEAD(&half->early);
	INIT_LIST_HEAD(&half->pool_node);
	INIT_HLIST_NODE(&half->qp_node);
	if (ep->srq)
		half->pool = kdapl_srq_pool_get(ep->srq);
	mutex_init(&half->lock);
	mutex_init(&half->destroy_lock);
	init_completion(&half->ended);
	init_completion(&half->cm_down);
	init_completion(&half->gone);
	INIT_LIST_HEAD(&half->dev_node);
	INIT_DELAYED_WORK(&half->end_work, half_work_end);
	INIT_WORK(&half->reap_work, half_work_reap);
	INIT_RCU_WORK(&half->free_work, half_work_free);
	INIT_DELAYED_WORK(&half->nudge_work, half_work_nudge);
	kdapl_cm_work_init(half);

	slots = half_sq_slots(half, attr, &interval);
	half->sq = kdapl_ring_alloc(half, false, slots,
				    max3(attr->max_request_iov, attr->max_rdma_read_iov,
					 attr->max_rdma_write_iov));
	half->rq = kdapl_ring_alloc(half, true, half->pool ? 0 : attr->max_recv_dtos,
				    half->pool ? 0 : attr->max_recv_iov);
	if (!half->sq || !half->rq)
		goto err_free;
	half->sq->depth = attr->max_request_dtos;
	half->sq->interval = interval;
	half->sq->ooo = dev->siw;
	if (half->sq->ooo)
		half->sq->odd |= KDAPL_ODD_EVER;
	half->rq->depth = half->rq->slots;

	half->pd = conf->pz->pd;
	refcount_inc(&half->pd->ref);
	ret = half_attach(half);
	if (ret)
		goto err_pd;
	ret = half_create_qp(half);
	if (ret)
		goto err_qp;
	half_open_rings(half);
	if (half->pool) {
		kdapl_pool_attach(half->pool, half);
		kdapl_evd_watch(half);
	}
	refcount_inc(&ep->obj.ref);
	refcount_inc(&dev->ref);
	mutex_lock(&dev->lock);
	list_add_tail(&half->dev_node, &dev->halves);
	mutex_unlock(&dev->lock);
	return half;

err_qp:
	if (half->qp)
		ib_destroy_qp(half->qp);
	half_detach(half);
	kdapl_cq_put(half->sq->cq);
	kdapl_cq_put(half->rq->cq);
err_pd:
	kdapl_pd_put(half->pd);
err_free:
	kdapl_ring_free(half->sq);
	kdapl_ring_free(half->rq);
	kdapl_pool_put(half->pool);
	kfree(half);
	return ERR_PTR(ret);
}

/**
 * kdapl_half_put - drop a memory reference
 * @half: the half
 *
 * Posting calls may still look at the rings of a half that has been replaced,
 * so the memory outlives a grace period: the reaper's reference does. The last putter
 * may sleep.
 */
void kdapl_half_put(struct kdapl_half *half)
{
	if (!refcount_dec_and_test(&half->ref))
		return;
	kdapl_ring_free(half->sq);
	kdapl_ring_free(half->rq);
	kfree(half->pdata);
	kfree(half->conn_pdata);
	kdapl_obj_put(&half->ep->obj);
	kdapl_device_put(half->dev);
	kfree(half);
}

/*
 * As kdapl_half_end(), to be acted on later. A device may tell of a peer's bad
 * request before it has answered it; our disconnect must not be there first.
 */
static void half_end_in(struct kdapl_half *half, int reason, unsigned long delay)
{
	int old = atomic_read(&half->reason);
	bool better;

	do {
		better = old <= KDAPL_END_SUSPECT ||
			 (old == KDAPL_END_PEER && reason == DAT_CONNECTION_EVENT_BROKEN);
		if (!better || old == reason)
			return;
	} while (!atomic_try_cmpxchg(&half->reason, &old, reason));
	mod_delayed_work(kdapl_wq, &half->end_work, delay);
}

/**
 * kdapl_half_end - something ended the connection or the attempt
 * @half: the half
 * @reason: the connection event it stands for, or KDAPL_END_*
 *
 * The first reason stays, except that a suspicion gives way to knowledge, and
 * the CM's word about the peer to an error seen here: soft-iWARP may tell of
 * both in any order (D-08).
 *
 * Context: any.
 */
void kdapl_half_end(struct kdapl_half *half, int reason)
{
	half_end_in(half, reason, reason == KDAPL_END_SUSPECT ? SUSPECT_TIMEOUT : 0);
}

/**
 * kdapl_patience_start - begin to wait for a device
 * @patience: how long
 * @half: what it is to give things back of
 * @span: jiffies that it may do nothing
 *
 * A device that is slow is not one that hangs: the span begins anew whenever something has
 * come back (kdapl_half_progress()). Whoever waits sees to it that completions are taken.
 *
 * Context: any.
 */
void kdapl_patience_start(struct kdapl_patience *patience, const struct kdapl_half *half,
			  unsigned long span)
{
	patience->seen = kdapl_half_progress(half);
	patience->span = span;
	patience->deadline = jiffies + span;
}

/**
 * kdapl_patience_over - has the device done nothing for too long?
 * @patience: started
 * @half: as for the start
 *
 * Context: any; one at a time.
 * Return: true if it has; @patience->deadline is when it may become true otherwise.
 */
bool kdapl_patience_over(struct kdapl_patience *patience, const struct kdapl_half *half)
{
	u32 now = kdapl_half_progress(half);

	if (patience->span && now != patience->seen) {
		patience->seen = now;
		patience->deadline = jiffies + patience->span;
	}
	return !time_before(jiffies, patience->deadline);
}

/**
 * kdapl_half_drained - what a graceful disconnect has waited for is done
 * @half: the half
 *
 * A consumer that has its answer may leave before its device has acknowledged that. Where a
 * queue pair in ERR does not do it any more, it lives on for a moment: otherwise the peer would
 * see a message FLUSHED that was received (D-85).
 *
 * Context: any.
 */
void kdapl_half_drained(struct kdapl_half *half)
{
	half_end_in(half, DAT_CONNECTION_EVENT_DISCONNECTED,
		    half->dev->caps.late_ack ? ANSWER_TIME : 0);
}

/* Until when has something to happen for a graceful disconnect to go on? 0: no limit. */
static unsigned long half_drain_span(const struct kdapl_half *half)
{
	const struct kdapl_ring *ring = half->sq;

	if (!half->dev->siw)
		return 0;
	/* with Reads under way two ends may wait for each other for ever there (D-14) */
	return READ_ONCE(ring->reads) != READ_ONCE(ring->reads_done) ? END_TIMEOUT : SLOW_TIMEOUT;
}

/**
 * kdapl_half_drain_gracefully - let the requests under way finish, then end
 * @half: half of an EP that just went to DISCONNECT_PENDING
 *
 * Context: any.
 */
void kdapl_half_drain_gracefully(struct kdapl_half *half)
{
	struct kdapl_ring *ring = half->sq;
	unsigned long flags, span;
	bool draining = false;
	int ret = 0;

	spin_lock_irqsave(&ring->lock, flags);
	span = half_drain_span(half);
	/* stopping is set before half_stop() takes the lock: the QP is alive here */
	if (READ_ONCE(half->dev->gone)) {
		ret = -ENODEV;	/* nothing is posted any more */
	} else if (!READ_ONCE(half->stopping) && !half->draining) {
		ret = ring_post_marker(ring);
		draining = !ret;
		if (draining) {
			kdapl_patience_start(&half->drain, half, span);
			/* pairs with the acquire in kdapl_half_drain_stuck() */
			smp_store_release(&half->draining, true);
		}
	}
	spin_unlock_irqrestore(&ring->lock, flags);
	if (draining)
		kdapl_evd_ending(half->request_evd, 1);
	if (ret)
		kdapl_half_drained(half);
	else if (draining && span)
		mod_delayed_work(kdapl_wq, &half->timer, span);
}

/**
 * kdapl_half_drain_stuck - has a graceful disconnect stopped to advance?
 * @half: the half; half->lock held, phase UP
 *
 * Return: true if it has: end it now.
 */
bool kdapl_half_drain_stuck(struct kdapl_half *half)
{
	struct kdapl_patience *drain = &half->drain;

	lockdep_assert_held(&half->lock);
	/* pairs with the release in kdapl_half_drain_gracefully() */
	if (!smp_load_acquire(&half->draining) || !drain->span)
		return false;	/* not yet, or without a limit */
	/* the Reads are done, and so is the danger */
	if (drain->span == END_TIMEOUT && half_drain_span(half) == SLOW_TIMEOUT)
		kdapl_patience_start(drain, half, SLOW_TIMEOUT);
	if (kdapl_patience_over(drain, half))
		return true;
	queue_delayed_work(kdapl_wq, &half->timer, max_t(long, drain->deadline - jiffies, 1));
	return false;
}

/*
 * Destroy cm_id and QP of a half that stops, in this order and without the
 * lock: the provider may wait for a CM handler that waits for the lock. Where
 * the CM does not know the QP, the id may stay to tell the peer.
 */
static void half_destroy_verbs(struct kdapl_half *half, bool keep_id)
{
	struct rdma_cm_id *id;
	struct ib_qp *qp;

	/* who finds them gone must not go on before they are */
	mutex_lock(&half->destroy_lock);
	mutex_lock(&half->lock);
	id = keep_id ? NULL : half->cm_id;
	qp = half->qp;
	if (id)
		half->cm_id = NULL;
	half->qp = NULL;
	mutex_unlock(&half->lock);
	if (id)
		rdma_destroy_id(id);
	if (qp)
		ib_destroy_qp(qp);
	mutex_unlock(&half->destroy_lock);
}

/* No further posts, QP to ERR, peer told. half->lock held. */
static void half_stop(struct kdapl_half *half, bool removal)
{
	struct kdapl_ep *ep = half->ep;
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	struct kdapl_ring *ring = half->sq;
	bool idle = half->phase == KDAPL_HALF_IDLE;
	bool refuse;
	int ret = 0;

	lockdep_assert_held(&half->lock);
	if (atomic_read(&half->reason) != KDAPL_END_SILENT)
		trace_kdapl_conn_end(half->handle, half->qpn, atomic_read(&half->reason));
	removal |= READ_ONCE(half->dev->gone);
	WRITE_ONCE(half->stopping, true);
	WRITE_ONCE(half->phase, KDAPL_HALF_ENDING);
	kdapl_patience_start(&half->flush, half, END_TIMEOUT);
	half->pool_deadline = jiffies + LAST_WQE_TIMEOUT;

	spin_lock_irq(&ep->lock);
	refuse = ep->state != DAT_EP_STATE_CONNECTED && ep->state != DAT_EP_STATE_DISCONNECTED;
	/* in any case: nobody is inside a post to the device after this */
	kdapl_ring_set_mode(half->sq, refuse ? KDAPL_RING_REFUSE : KDAPL_RING_SOFT);
	kdapl_ring_set_mode(half->rq, KDAPL_RING_SOFT);
	spin_unlock_irq(&ep->lock);
	kdapl_ring_quiesce(half->sq);

	ret = ib_modify_qp(half->qp, &attr, IB_QP_STATE);
	if (half->cm_id && half->cm_up)
		rdma_disconnect(half->cm_id);
	if (!removal && !ret) {
		spin_lock_irq(&ring->lock);
		ret = ring_post_marker(ring);
		if (ret == -EALREADY)	/* what is posted from now on needs no marker */
			WRITE_ONCE(ring->drained, true);
		spin_unlock_irq(&ring->lock);
	}
	half->hurried = removal || (ret && ret != -EALREADY);
	if (half->hurried)
		kdapl_patience_start(&half->flush, half, 0);	/* destroying the QP is the proof */
	if (removal || half->dev->siw || idle)	/* it never says so, or has no buffer */
		half->pool_deadline = jiffies;

	if (!half->draining)	/* stays as set: stopping, and the ring lock was taken */
		kdapl_evd_ending(half->request_evd, 1);
	kdapl_evd_ending(half->recv_evd, 1);
}

/*
 * Is there anything to wait for? What was taken from an SRQ is known only when
 * the QP is gone; before that the device gets a little time to finish (D-15).
 */
static bool half_may_destroy(struct kdapl_half *half, bool sq_ended, bool last_wqe, bool late)
{
	/* a QP inside rdma_connect() cannot be destroyed yet (D-17) */
	if (half->connecting && half->qp)
		return false;
	if (half->pool && sq_ended &&
	    (last_wqe || !time_before(jiffies, half->pool_deadline)))
		return true;
	/* soft-iWARP forgets a Read whose answer was coming; the marker is past it */
	if (half->dev->siw && READ_ONCE(half->sq->marker_done) &&
	    !time_before(jiffies, half->flush.deadline - half->flush.span + LAST_WQE_TIMEOUT))
		return true;
	return late;
}

static void half_was_silent(struct kdapl_half *half)
{
	struct kdapl_ia *ia = half->ep->obj.ia;

	pr_warn("%s: QP %u: the device did not give back what was posted within %u s, the QP is destroyed\n",
		ia->name, half->qp ? half->qp->qp_num : 0, END_TIMEOUT / HZ);
	kdapl_ia_async(ia, half->handle, DAT_ASYNC_ERROR_TIMED_OUT, DAT_EP_OTHER_ERROR);
}

/* Has everything come back? half->lock held, may be dropped; phase ENDING. */
static bool half_try_finish(struct kdapl_half *half, bool lost)
{
	u32 recvs = half->pool ? half->pool->entries : half->rq->slots;
	/* before the CQ is polled: what came until then must not go with the QP */
	bool last_wqe = READ_ONCE(half->last_wqe);
	bool sq_ended, rq_ended, late;

	kdapl_evd_sweep(half->request_evd, half->sq->slots + KDAPL_OWN_WRS, true);
	kdapl_evd_sweep(half->recv_evd, recvs + 1, true);
	/* both, not one or the other: each call looks for its own ring's end */
	sq_ended = kdapl_ring_ended(half->sq);
	rq_ended = kdapl_ring_ended(half->rq);
	late = kdapl_patience_over(&half->flush, half);
	if (half->pool && sq_ended && half->connecting && half->qp) {
		/* never connected: it took no buffer; the reaper has it for long */
		kdapl_ring_force_end(half->rq, lost);
	} else if (!sq_ended || !rq_ended) {
		if (!half_may_destroy(half, sq_ended, last_wqe, late))
			return false;
		if (!half->hurried && !half->discard && !(half->pool && sq_ended) && late)
			half_was_silent(half);
		mutex_unlock(&half->lock);
		half_destroy_verbs(half, !half->dev->iwarp);
		mutex_lock(&half->lock);
		if (half->phase == KDAPL_HALF_ENDED)
			return false;	/* removal has finished it meanwhile */
		if (!sq_ended)
			kdapl_ring_force_end(half->sq, lost);
		kdapl_ring_force_end(half->rq, lost);
	}
	kdapl_pool_detach(half);
	kdapl_evd_ending(half->request_evd, -1);
	kdapl_evd_ending(half->recv_evd, -1);
	WRITE_ONCE(half->phase, KDAPL_HALF_ENDED);
	return true;
}

/*
 * An attempt that ended without a connection gives its cm_id back as soon as its
 * end has been reported, so that the peer learns of it. Not before: destroying
 * the id may last for as long as the CM repeats a message. Soft-iWARP may still
 * be inside rdma_connect().
 */
static void half_destroy_dead_id(struct kdapl_half *half)
{
	struct rdma_cm_id *id = NULL;

	/* whoever destroys the QP finds the id there, or gone for good */
	mutex_lock(&half->destroy_lock);
	mutex_lock(&half->lock);
	if (half->phase == KDAPL_HALF_ENDED && !half->cm_up && !half->connecting) {
		id = half->cm_id;
		half->cm_id = NULL;
	}
	mutex_unlock(&half->lock);
	if (id)
		rdma_destroy_id(id);
	mutex_unlock(&half->destroy_lock);
}

static void half_work_end(struct work_struct *work)
{
	struct kdapl_half *half = container_of(to_delayed_work(work), struct kdapl_half, end_work);
	unsigned int noio = memalloc_noio_save();	/* part of every reconnect (D-32) */
	bool finished = false;

	mutex_lock(&half->lock);
	if (half->phase < KDAPL_HALF_ENDING && atomic_read(&half->reason) != KDAPL_END_NONE) {
		/* A suspicion nobody explained in time was right. */
		atomic_cmpxchg(&half->reason, KDAPL_END_SUSPECT, DAT_CONNECTION_EVENT_BROKEN);
		half_stop(half, false);
	}
	if (half->phase == KDAPL_HALF_ENDING) {
		finished = half_try_finish(half, true);
		if (!finished)
			queue_delayed_work(kdapl_wq, &half->end_work, END_POLL);
	}
	mutex_unlock(&half->lock);
	if (finished) {
		kdapl_mrs_resolve(half->ep->obj.ia);
		kdapl_ep_ended(half);
		complete_all(&half->ended);
	}
	/* the CM may take its time over this; the reaper waits for us, nobody else */
	half_destroy_dead_id(half);
	memalloc_noio_restore(noio);
}

/**
 * kdapl_half_established - the connection is made
 * @half: the half; half->lock held
 *
 * The state changes before the event can be seen, and the event is queued
 * before any completion of this connection: receives that came early wait in
 * the ring until the phase says UP.
 */
void kdapl_half_established(struct kdapl_half *half)
{
	struct kdapl_ep *ep = half->ep;
	bool up;

	lockdep_assert_held(&half->lock);
	if (half->phase != KDAPL_HALF_CONNECTING ||
	    atomic_read(&half->reason) > KDAPL_END_SUSPECT)
		return;
	cancel_delayed_work(&half->timer);
	spin_lock_irq(&ep->lock);
	half_open_requests(half);
	up = kdapl_ep_step(ep, KDAPL_IN_ESTABLISHED) != KDAPL_EP_REFUSED;
	spin_unlock_irq(&ep->lock);
	if (!up)
		return;		/* dat_ep_disconnect was faster, its end is under way */
	kdapl_ep_event(half, DAT_CONNECTION_EVENT_ESTABLISHED);
	WRITE_ONCE(half->phase, KDAPL_HALF_UP);
	kdapl_ring_ready(half->rq);
	if (READ_ONCE(half->wc_failed))
		kdapl_half_end(half, DAT_CONNECTION_EVENT_BROKEN);
}

#define NUDGES		5
#define NUDGE_TIME	(HZ / 10)

/* Post an empty request, unless the last one is still under way. */
static int half_post_nudge(struct kdapl_half *half)
{
	struct kdapl_ring *ring = half->sq;
	int ret = 0;
	u32 tail;

	spin_lock_irq(&ring->lock);
	/* pairs with the release in ring_advance() */
	tail = smp_load_acquire(&ring->tail);
	/* in a serial ring everything about LMRs has a completion of its own */
	if (ring->mode == KDAPL_RING_LIVE && !ring->serial && !READ_ONCE(half->stopping) &&
	    !READ_ONCE(half->dev->gone) &&
	    (!half->nudged || (s32)(tail - half->nudge_pos) > 0)) {
		half->nudged = true;
		half->nudge_pos = ring->head;
		ret = ring_post_own(ring, KDAPL_OP_NUDGE);
	}
	spin_unlock_irq(&ring->lock);
	return ret;
}

/**
 * kdapl_half_nudge_now - have the device tell how far it is
 * @half: a half with requests that have no completion of their own
 *
 * Context: may sleep.
 */
void kdapl_half_nudge_now(struct kdapl_half *half)
{
	if (half_post_nudge(half))
		kdapl_half_end(half, KDAPL_END_SUSPECT);
}

static void half_work_nudge(struct work_struct *work)
{
	struct kdapl_half *half = container_of(to_delayed_work(work), struct kdapl_half,
					       nudge_work);

	kdapl_half_nudge_now(half);
	if (++half->nudges < NUDGES && half->sq->mode == KDAPL_RING_LIVE)
		queue_delayed_work(kdapl_wq, &half->nudge_work, NUDGE_TIME << half->nudges);
}

/**
 * kdapl_half_nudge - see to it that the peer notices what is sent first
 * @half: active side on soft-iWARP, just established; half->lock held
 *
 * Soft-iWARP on the passive side loses the wake-up for data that arrives between
 * its answer and its own change to data mode: a first message stays in the socket
 * until something follows it. So something does, a few times.
 */
void kdapl_half_nudge(struct kdapl_half *half)
{
	lockdep_assert_held(&half->lock);
	if (half->phase == KDAPL_HALF_UP)
		queue_delayed_work(kdapl_wq, &half->nudge_work, NUDGE_TIME);
}

/**
 * kdapl_half_qp_attr - replace what the CM would have the QP do
 * @half: the half, its read depths agreed with the peer
 * @mask: what is going to be modified
 * @attr: as rdma_init_qp_attr() has filled it
 *
 * Read depths: until rdma_accept() the CM knows only what the peer has asked for, which may be
 * more than the device has, or more than we are going to grant. Retries: the peer may ask for
 * none, or for retries without end.
 */
void kdapl_half_qp_attr(const struct kdapl_half *half, int mask, struct ib_qp_attr *attr)
{
	const struct kdat_conn_attr *conn = &half->conn;

	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		attr->max_dest_rd_atomic = half->read_in;
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		attr->max_rd_atomic = half->read_depth;
	if (mask & IB_QP_RETRY_CNT)
		attr->retry_cnt = conn->retry_count == KDAT_CONN_DEFAULT ? KDAPL_RETRY_COUNT :
									   conn->retry_count;
	if (mask & IB_QP_RNR_RETRY)
		attr->rnr_retry = conn->rnr_retry_count == KDAT_CONN_DEFAULT ?
				  KDAPL_RNR_RETRY_COUNT : conn->rnr_retry_count;
}

/* One step of the CM's, for IB and RoCE. */
static int half_modify(struct kdapl_half *half, struct rdma_cm_id *id, enum ib_qp_state state)
{
	struct ib_qp_attr attr = { .qp_state = state };
	int mask, ret;

	ret = rdma_init_qp_attr(id, &attr, &mask);
	if (ret)
		return ret;
	if (state == IB_QPS_INIT)
		/* the CM has an opinion on access flags; keep ours, see half_qp_init() */
		attr.qp_access_flags = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
				       IB_ACCESS_REMOTE_READ;
	kdapl_half_qp_attr(half, mask, &attr);
	return ib_modify_qp(half->qp, &attr, mask);
}

/**
 * kdapl_half_to_rts - bring the QP up with the addresses the CM has learned
 * @half: the half; half->lock held
 * @id: its cm_id
 *
 * INIT again, because only now pkey index and port of the path are known.
 *
 * Return: 0 or an errno.
 */
int kdapl_half_to_rts(struct kdapl_half *half, struct rdma_cm_id *id)
{
	int ret;

	lockdep_assert_held(&half->lock);
	if (half->dev->iwarp)
		return 0;	/* the provider moves the QP itself */
	ret = half_modify(half, id, IB_QPS_INIT);
	if (!ret)
		ret = half_modify(half, id, IB_QPS_RTR);
	if (!ret)
		ret = half_modify(half, id, IB_QPS_RTS);
	return ret;
}

/**
 * kdapl_half_drop - forget the events of a half and keep new ones from coming
 * @half: the half
 * @all_events: connection events too
 *
 * Context: any.
 */
void kdapl_half_drop(struct kdapl_half *half, bool all_events)
{
	struct kdapl_evd *conn;

	kdapl_half_discard(half);
	if (half->pool)
		kdapl_evd_watch(half);
	kdapl_evd_drop(half->request_evd, half, all_events);
	kdapl_evd_drop(half->recv_evd, half, all_events);
	rcu_read_lock();
	conn = READ_ONCE(half->ep->connect_evd);
	if (conn && all_events)
		kdapl_evd_drop(conn, half, true);
	rcu_read_unlock();
}

/* Completions were there, and dat_ep_free() or dat_ep_reset() came before the consumer. */
static void half_note_dropped(struct kdapl_half *half)
{
	u32 n = atomic_read(&half->dropped);

	if (!n || !half->owed)
		return;
	kdapl_count_many(dropped, n);
	pr_info_ratelimited("%s: QP %u: %u completions were dropped with their EP, which nobody had taken yet%s: kdat_ep_drain() waits for them\n",
			    half->ep->obj.ia->name, half->qpn, n,
			    half->pool ? ", buffers of an SRQ perhaps among them" : "");
}

/**
 * kdapl_half_reap - release a half that has ended
 * @half: no longer reachable through its EP; gives up the EP's reference
 *
 * Posting calls that found it before may still be at its rings. Those are not live any
 * more, so they touch neither QP nor CQ, and the memory outlives them: nobody waits for a
 * grace period here (D-92).
 *
 * The EVDs are free of it on return. The rest goes in the background, since
 * soft-iWARP can hold QP and cm_id for as long as a TCP connect lasts.
 *
 * Context: may sleep; without half->lock.
 */
void kdapl_half_reap(struct kdapl_half *half)
{
	struct kdapl_device *dev = half->dev;

	/* it has been said; who knows better now says it to nobody */
	atomic_set(&half->reason, KDAPL_END_SILENT);
	kdapl_half_drop(half, false);
	atomic_add(kdapl_ring_bury(half->sq), &half->dropped);
	atomic_add(kdapl_ring_bury(half->rq), &half->dropped);
	half_note_dropped(half);
	half_detach(half);
	mutex_lock(&dev->lock);
	half->reaping = true;
	mutex_unlock(&dev->lock);
	queue_work(kdapl_reap_wq, &half->reap_work);
}

/* CM and QP of an ended half go. May wait for rdma_connect. */
static void half_release_verbs(struct kdapl_half *half)
{
	/* in this order: a retry queues the other */
	cancel_delayed_work_sync(&half->retry_work);
	cancel_work_sync(&half->conn_work);
	half_destroy_verbs(half, false);
	/* nobody is left who could queue these again */
	cancel_delayed_work_sync(&half->timer);
	cancel_delayed_work_sync(&half->nudge_work);
	cancel_delayed_work_sync(&half->est_work);
}

static void half_work_reap(struct work_struct *work)
{
	struct kdapl_half *half = container_of(work, struct kdapl_half, reap_work);
	unsigned int noio = memalloc_noio_save();	/* dat_ep_reset() waits for it (D-32) */
	struct kdapl_device *dev = half->dev;

	/*
	 * Destroying the id takes back a disconnect request that is still on
	 * its way, and the peer would never learn: wait for the answer, but
	 * not for ever, and not when the device goes.
	 */
	if (half->cm_up && !dev->iwarp && !READ_ONCE(dev->gone))
		wait_for_completion_timeout(&half->cm_down, CM_DOWN_TIMEOUT);
	half_release_verbs(half);
	cancel_delayed_work_sync(&half->end_work);
	kdapl_pool_put(half->pool);
	kdapl_cq_put(half->sq->cq);
	kdapl_cq_put(half->rq->cq);
	kdapl_pd_put(half->pd);
	mutex_lock(&dev->lock);
	list_del_init(&half->dev_node);
	wake_up(&dev->idle);
	mutex_unlock(&dev->lock);
	complete_all(&half->gone);
	queue_rcu_work(kdapl_reap_wq, &half->free_work);
	memalloc_noio_restore(noio);
}

/* A grace period later: those that were late are through. */
static void half_work_free(struct work_struct *work)
{
	struct kdapl_half *half = container_of(to_rcu_work(work), struct kdapl_half, free_work);

	/* what they may have queued once more finds nothing to do */
	cancel_delayed_work_sync(&half->end_work);
	cancel_delayed_work_sync(&half->timer);
	kdapl_half_put(half);
}

/**
 * kdapl_half_remove - the device goes: give back its objects now
 * @half: referenced by the caller, not in the hands of the reaper
 *
 * Nothing is posted. What has not completed when the QP is gone is reported
 * FLUSHED; a connection or an attempt ends with BROKEN.
 *
 * Context: may sleep.
 */
void kdapl_half_remove(struct kdapl_half *half)
{
	bool finished = false;

	mutex_lock(&half->lock);
	if (half->phase < KDAPL_HALF_ENDING) {
		int reason = half->phase == KDAPL_HALF_IDLE ? KDAPL_END_SILENT :
							      DAT_CONNECTION_EVENT_BROKEN;

		if (atomic_cmpxchg(&half->reason, KDAPL_END_NONE, reason) == KDAPL_END_SUSPECT)
			atomic_set(&half->reason, DAT_CONNECTION_EVENT_BROKEN);
		half_stop(half, true);
	}
	mutex_unlock(&half->lock);
	cancel_delayed_work_sync(&half->end_work);	/* may be destroying the QP */
	half_release_verbs(half);
	mutex_lock(&half->lock);
	if (half->phase == KDAPL_HALF_ENDING) {
		kdapl_patience_start(&half->flush, half, 0);
		finished = half_try_finish(half, false);
	}
	mutex_unlock(&half->lock);
	if (finished) {
		kdapl_mrs_resolve(half->ep->obj.ia);
		kdapl_ep_ended(half);
		complete_all(&half->ended);
	}
}
