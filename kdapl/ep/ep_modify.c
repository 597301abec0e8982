// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Endpoints: the calls that change one, with a fresh connection where the change needs one.
 */
#include <linux/export.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "ep_conf.h"

#ifdef KDAPL_KUNIT
/* A fresh connection is there, and the EP does not have it yet. */
void (*kdapl_test_fresh_conn)(struct kdapl_ep *ep);
#endif

static void modify_watermark(struct kdapl_ep *ep, DAT_COUNT soft, const DAT_COUNT *hard)
{
	struct kdapl_conn *conn;

	kdapl_watermark_set(&ep->marks.soft, soft);
	if (hard)
		kdapl_watermark_set(&ep->marks.hard, *hard);
	smp_mb();	/* the marks before ep->conn; pairs with modify_watch() */
	rcu_read_lock();
	conn = rcu_dereference(ep->conn);
	if (conn && conn->pool) {
		kdapl_evd_watch(conn);
		kdapl_wq_poll_cq(conn->rq);
		kdapl_conn_check_marks(conn);
	}
	rcu_read_unlock();
}

/**
 * dat_ep_set_watermark - set and arm the high watermarks of an EP with an SRQ
 * @ep_handle: EP in any state
 * @soft_high_watermark: buffers, or DAT_WATERMARK_INFINITE. The first time the EP
 *	holds more, one asynchronous event DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR
 *	with the EP's handle and reason DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT is queued
 * @hard_high_watermark: buffers, or DAT_WATERMARK_INFINITE. When a connected EP
 *	holds more, the connection is broken
 *
 * An EP holds the buffers that it has taken from the SRQ and whose events the consumer
 * does not have yet. Both watermarks are armed anew, and each fires once, possibly
 * during the call.
 *
 * Context: any.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE; DAT_INVALID_PARAMETER (negative);
 * DAT_MODEL_NOT_SUPPORTED (EP without SRQ); DAT_INTERNAL_ERROR (device removed).
 */
DAT_RETURN dat_ep_set_watermark(DAT_EP_HANDLE ep_handle, DAT_COUNT soft_high_watermark,
				DAT_COUNT hard_high_watermark)
{
	struct kdapl_ep *ep = kdapl_obj_get(ep_handle, DAT_HANDLE_TYPE_EP);
	DAT_RETURN ret = DAT_SUCCESS;

	if (!ep)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	if (soft_high_watermark < DAT_WATERMARK_INFINITE)
		ret = kdapl_arg_err(2);
	else if (hard_high_watermark < DAT_WATERMARK_INFINITE)
		ret = kdapl_arg_err(3);
	else if (!ep->srq)
		ret = kdapl_err(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	else if (READ_ONCE(ep->obj.ia->dead))
		ret = kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	else
		modify_watermark(ep, soft_high_watermark, &hard_high_watermark);
	kdapl_obj_put(&ep->obj);
	return ret;
}
EXPORT_SYMBOL(dat_ep_set_watermark);

/**
 * struct modify_change - a change of an EP
 * @mask: DAT_EP_FIELD_* bits of what changes
 * @named: the objects the EP is to have
 * @attr: the attributes it is to have
 * @conf: made of both
 * @state: if the change is refused with -EBADFD: the state that does not allow it
 */
struct modify_change {
	u64 mask;
	struct kdapl_ep_named named;
	DAT_EP_ATTR attr;
	struct kdapl_ep_conf conf;
	DAT_EP_STATE state;
};

/* Does the change need another QP or other work queues? */
static bool modify_needs_conn(struct kdapl_device *dev, const struct kdapl_ep_conf *old,
			      const struct kdapl_ep_conf *conf)
{
	const DAT_EP_ATTR *a = &old->attr, *b = &conf->attr;

	return conf->pz != old->pz || conf->recv_evd != old->recv_evd ||
	       conf->request_evd != old->request_evd ||
	       a->recv_completion_flags != b->recv_completion_flags ||
	       a->request_completion_flags != b->request_completion_flags ||
	       a->max_recv_dtos != b->max_recv_dtos ||
	       a->max_request_dtos != b->max_request_dtos ||
	       a->max_recv_iov != b->max_recv_iov || a->max_request_iov != b->max_request_iov ||
	       a->max_rdma_read_iov != b->max_rdma_read_iov ||
	       a->max_rdma_write_iov != b->max_rdma_write_iov ||
	       (dev->iwarp && !a->max_rdma_read_out != !b->max_rdma_read_out);
}

/* End a connection that has never been connected, and release it. */
static void modify_discard_conn(struct kdapl_conn *conn)
{
	synchronize_rcu();	/* posting calls that found it have looked again since */
	kdapl_conn_discard(conn);
	kdapl_conn_end(conn, KDAPL_END_NO_EVENT);
	wait_for_completion(&conn->ended);
	kdapl_conn_release(conn);
}

/*
 * The EP has a fresh connection. Watermarks that were set since it was made have reached only the
 * old one.
 */
static void modify_watch(struct kdapl_conn *fresh)
{
	smp_mb();	/* ep->conn before the marks; pairs with modify_watermark() */
	if (fresh->pool)
		kdapl_evd_watch(fresh);
}

/* Without ep->lock the answer may be out of date at once. */
static int modify_check_state(struct kdapl_ep *ep, struct modify_change *change)
{
	change->state = READ_ONCE(ep->state);
	return change->mask & ~kdapl_ep_fields(change->state) ? -EBADFD : 0;
}

/*
 * Replace the connection by a fresh one, and apply the configuration it was made for. The old one
 * must be unused: Receives that are posted to it cannot be moved (D-11). ep->mutex held.
 */
static int modify_swap_conn(struct kdapl_ep *ep, struct modify_change *change,
			    struct kdapl_conn *fresh)
{
	struct kdapl_conn *old = kdapl_ep_conn(ep);
	int ret;

	spin_lock_irq(&ep->lock);
	ret = modify_check_state(ep, change);
	if (!ret && old && kdapl_conn_spent(old)) {
		change->state = DAT_EP_STATE_DISCONNECTED;	/* where it is about to go */
		ret = -EBADFD;
	}
	if (!ret && old) {
		spin_lock(&old->rq->lock);
		if (old->rq->head != old->rq->tail) {
			ret = -EBADFD;
		} else {
			old->rq->mode = KDAPL_WQ_MOVED;
			WRITE_ONCE(old->discard, true);	/* it has nothing to report */
			rcu_assign_pointer(ep->conn, fresh);
		}
		spin_unlock(&old->rq->lock);
	} else if (!ret) {
		rcu_assign_pointer(ep->conn, fresh);
	}
	if (!ret)
		kdapl_ep_conf_apply(ep, &change->named, &change->conf);
	spin_unlock_irq(&ep->lock);
	return ret;
}

/* Change what does not concern the QP. ep->mutex held. */
static int modify_in_place(struct kdapl_ep *ep, struct modify_change *change)
{
	struct kdapl_conn *conn = kdapl_ep_conn(ep);
	int ret;

	spin_lock_irq(&ep->lock);
	ret = modify_check_state(ep, change);
	if (!ret) {
		kdapl_ep_conf_apply(ep, &change->named, &change->conf);
		if (conn)	/* only requests look at these, and there are none yet */
			conn->attr = change->conf.attr;
	}
	spin_unlock_irq(&ep->lock);
	return ret;
}

/* Change what needs a fresh connection. ep->mutex held. */
static int modify_with_conn(struct kdapl_ep *ep, struct modify_change *change)
{
	struct kdapl_conn *old = kdapl_ep_conn(ep), *fresh = NULL;
	int ret;

	if (change->conf.pz)
		fresh = kdapl_conn_create(ep, &change->conf, old);
	if (IS_ERR(fresh))
		return PTR_ERR(fresh);
	kdapl_test_point(kdapl_test_fresh_conn, ep);
	ret = modify_swap_conn(ep, change, fresh);
	if (ret)
		old = fresh;
	else if (fresh)
		modify_watch(fresh);
	if (old)
		modify_discard_conn(old);
	return ret;
}

/* Change objects and attributes that have been checked. ep->mutex held. */
static int modify_conf(struct kdapl_ep *ep, struct modify_change *change)
{
	struct kdapl_ep_uses uses, old_uses;
	int ret;

	ret = kdapl_ep_conf_init(&change->conf, ep->obj.ia, &change->named, &change->attr);
	if (ret)
		return ret;
	kdapl_ep_uses(&uses, &change->conf, change->named.connect, ep->srq);
	kdapl_ep_uses(&old_uses, &ep->conf, ep->connect_evd, ep->srq);
	ret = kdapl_ep_use(&uses);
	if (ret)
		return ret;
	if (modify_needs_conn(ep->obj.ia->dev, &ep->conf, &change->conf))
		ret = modify_with_conn(ep, change);
	else
		ret = modify_in_place(ep, change);
	kdapl_ep_unuse(ret ? &uses : &old_uses);
	return ret;
}

/* Look up the objects the EP is to have: those the call names, otherwise those it has. */
static int modify_get_named(struct kdapl_ep *ep, u64 mask, const DAT_EP_PARAM *param,
			    struct kdapl_ep_named *named)
{
	return kdapl_ep_named_get(named, ep->obj.ia,
				  mask & DAT_EP_FIELD_PZ_HANDLE ? param->pz_handle :
								  ep->pz_handle,
				  mask & DAT_EP_FIELD_RECV_EVD_HANDLE ? param->recv_evd_handle :
									ep->recv_handle,
				  mask & DAT_EP_FIELD_REQUEST_EVD_HANDLE ?
				  param->request_evd_handle : ep->request_handle,
				  mask & DAT_EP_FIELD_CONNECT_EVD_HANDLE ?
				  param->connect_evd_handle : ep->connect_handle,
				  NULL);
}

/*
 * Check a change and make it. Returns 0, the enum kdapl_ep_part whose handle is bad, or an errno,
 * see modify_ret(). Inside kdapl_dev_enter(), ep->mutex held.
 */
static int modify_ep(struct kdapl_ep *ep, const DAT_IA_ATTR *limits, u64 mask,
		     const DAT_EP_PARAM *param, struct modify_change *change)
{
	struct kdapl_ep_named *named = &change->named;
	int ret;

	change->attr = ep->conf.attr;
	kdapl_ep_attr_merge(&change->attr, &param->ep_attr, mask);
	ret = modify_get_named(ep, mask, param, named);
	if (!ret && !kdapl_ep_pz_fits_srq(named->pz, ep->srq))
		ret = -EXDEV;
	if (!ret)
		ret = kdapl_ep_attr_check(ep->obj.ia->dev, limits, &change->attr, named->recv,
					  named->request, ep->srq);
	if (ret)
		goto out;
	kdapl_ep_attr_grant(limits, &change->attr);
	change->mask = mask;
	ret = modify_check_state(ep, change);
	change->mask &= ~DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW;	/* set below */
	if (!ret && change->mask)
		ret = modify_conf(ep, change);
	if (!ret && (mask & DAT_EP_FIELD_COMM))
		ep->comm = param->comm;
	if (!ret && (mask & DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW))
		modify_watermark(ep, change->attr.srq_soft_hw, NULL);
out:
	kdapl_ep_named_put(named);
	return ret;
}

/* What dat_ep_modify() returns; @state: see struct modify_change. */
static DAT_RETURN modify_ret(int err, DAT_EP_STATE state)
{
	switch (err) {
	case 0:
		return DAT_SUCCESS;
	case -EBADFD:
		return kdapl_state_err(state);
	case -EOPNOTSUPP:	/* quality of service */
		return kdapl_err(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	case -ENOMEM:
		return kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	case -ENOBUFS:		/* no null EVD */
		return kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEVD);
	case -ENOSPC:		/* no connection */
		return kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP);
	default:		/* a bad handle or attribute */
		return kdapl_arg_err(3);
	}
}

/**
 * dat_ep_modify - change parameters of an EP
 * @ep_handle: EP in UNCONNECTED, RESERVED, PASSIVE_ or
 *	TENTATIVE_CONNECTION_PENDING, the PZ in the first and the last only; for
 *	srq_soft_hw, which has no effect without an SRQ, in any state
 * @ep_param_mask: DAT_EP_FIELD_* bits of the members to change; not IA, state,
 *	addresses, ports or SRQ; the communicator in UNCONNECTED only
 * @ep_param: the new values; NULL is a legal PZ or EVD
 *
 * All of them change, or none. PZ, recv and request EVD, completion flags, and numbers
 * of DTOs and segments need another QP, so they cannot change while Receives are
 * posted. On iWARP the same is true of max_rdma_read_out, to or from 0. The connect EVD,
 * maximum sizes and other read depths can change. srq_soft_hw arms the soft watermark
 * anew, as dat_ep_set_watermark() does.
 *
 * Context: may sleep; legal in upcalls that run in process context.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE; DAT_INVALID_PARAMETER (ARG2: mask;
 * ARG3: values, bad handles among them); DAT_INVALID_STATE (subtype its state,
 * also: Receives are posted); DAT_MODEL_NOT_SUPPORTED (quality of service);
 * DAT_COMM_NOT_SUPPORTED (not TCP over IPv4 or IPv6); DAT_INSUFFICIENT_RESOURCES
 * (no other QP is left); DAT_INTERNAL_ERROR (device removed).
 */
DAT_RETURN dat_ep_modify(DAT_EP_HANDLE ep_handle, DAT_EP_PARAM_MASK ep_param_mask,
			 const DAT_EP_PARAM *ep_param)
{
	struct kdapl_ep *ep = kdapl_obj_get(ep_handle, DAT_HANDLE_TYPE_EP);
	struct modify_change change = {};
	DAT_IA_ATTR *limits;
	unsigned int noio;
	DAT_RETURN ret;
	int err;

	if (!ep)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	limits = kzalloc(sizeof(*limits), GFP_NOIO);
	ret = kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	if (!limits)
		goto out;
	ret = kdapl_query_check(ep_param_mask, kdapl_ep_fields(-1), ep_param);
	if (ret != DAT_SUCCESS || !ep_param_mask)
		goto out;
	kdapl_ia_limits(ep->obj.ia, limits);
	ret = kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	if (!kdapl_dev_enter(ep->obj.ia->dev))
		goto out;
	noio = memalloc_noio_save();	/* resets take the mutexes of the EVDs (D-32) */
	mutex_lock(&ep->mutex);
	if (!ep->obj.live) {
		ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	} else if ((ep_param_mask & DAT_EP_FIELD_COMM) && ep->state != DAT_EP_STATE_UNCONNECTED) {
		ret = kdapl_arg_err(2);		/* later it is as fixed as the peer's address */
	} else if ((ep_param_mask & DAT_EP_FIELD_COMM) && !kdapl_comm_supported(&ep_param->comm)) {
		ret = kdapl_err(DAT_COMM_NOT_SUPPORTED, DAT_NO_SUBTYPE);
	} else {
		err = modify_ep(ep, limits, ep_param_mask, ep_param, &change);
		ret = modify_ret(err, change.state);
	}
	mutex_unlock(&ep->mutex);
	memalloc_noio_restore(noio);
	kdapl_dev_exit(ep->obj.ia->dev);
out:
	kfree(limits);
	kdapl_obj_put(&ep->obj);
	return ret;
}
EXPORT_SYMBOL(dat_ep_modify);

/* Move a disconnected EP to UNCONNECTED, with a fresh connection. ep->mutex held. */
static int modify_reset(struct kdapl_ep *ep)
{
	struct kdapl_conn *conn = kdapl_ep_conn(ep), *fresh;

	if (!conn)
		return 0;
	wait_for_completion(&conn->ended);
	fresh = kdapl_conn_create(ep, &ep->conf, conn);
	if (IS_ERR(fresh))
		return PTR_ERR(fresh);
	kdapl_test_point(kdapl_test_fresh_conn, ep);
	spin_lock_irq(&ep->lock);
	rcu_assign_pointer(ep->conn, fresh);
	kdapl_ep_step(ep, KDAPL_IN_RESET);
	spin_unlock_irq(&ep->lock);
	modify_watch(fresh);
	kdapl_ep_forget_pdata(conn);	/* all its events are queued: it has ended */
	kdapl_conn_release(conn);
	return 0;
}

/* What dat_ep_reset() returns. */
static DAT_RETURN modify_reset_ret(int err)
{
	switch (err) {
	case 0:
		return DAT_SUCCESS;
	case -EINVAL:	/* completion flags now conflict with an EVD */
		return kdapl_arg_err(1);
	case -ENOMEM:
		return kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	default:	/* no connection */
		return kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP);
	}
}

/**
 * dat_ep_reset - make a disconnected EP ready to connect again
 * @ep_handle: EP in DISCONNECTED or UNCONNECTED
 *
 * In DISCONNECTED the QP is replaced. Attributes, PZ and EVDs stay, private data of the
 * old connection is freed, and completions that have not been dequeued are lost; call
 * kdat_ep_drain() first to see them all. The call does not wait for an upcall that is
 * handling such a completion, because the reset may come from that upcall;
 * dat_ep_free() and dat_evd_modify_upcall() with DAT_UPCALL_TEARDOWN wait. Queued
 * connection events stay, without private data: take the one that reports the end first,
 * or it looks like the outcome of the next attempt. In UNCONNECTED nothing happens, and
 * Receives stay posted.
 *
 * Context: may sleep.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE; DAT_INVALID_STATE (subtype its
 * state); DAT_INVALID_PARAMETER (ARG1: its completion flags conflict with those that an EVD
 * has got meanwhile); DAT_INSUFFICIENT_RESOURCES (the EP stays DISCONNECTED);
 * DAT_INTERNAL_ERROR (device removed).
 */
DAT_RETURN dat_ep_reset(DAT_EP_HANDLE ep_handle)
{
	struct kdapl_ep *ep = kdapl_obj_get(ep_handle, DAT_HANDLE_TYPE_EP);
	unsigned int noio;
	DAT_RETURN ret;
	int state;

	if (!ep)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	ret = kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	if (!kdapl_dev_enter(ep->obj.ia->dev))
		goto out;
	noio = memalloc_noio_save();	/* part of every reconnect (D-32) */
	mutex_lock(&ep->mutex);
	state = READ_ONCE(ep->state);
	if (!ep->obj.live)
		ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP);
	else if (kdapl_ep_next_state(state, KDAPL_IN_RESET) == KDAPL_EP_NO_STEP)
		ret = kdapl_state_err(state);
	else if (state == DAT_EP_STATE_UNCONNECTED)
		ret = DAT_SUCCESS;
	else
		ret = modify_reset_ret(modify_reset(ep));
	mutex_unlock(&ep->mutex);
	memalloc_noio_restore(noio);
	kdapl_dev_exit(ep->obj.ia->dev);
out:
	kdapl_obj_put(&ep->obj);
	return ret;
}
EXPORT_SYMBOL(dat_ep_reset);
