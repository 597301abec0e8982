// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * mode=states: endpoints in every state, service points, requests nobody has
 * answered, memory, SRQs and EVDs of every policy on both adapters, so that the
 * device can be taken away under all of it. Unloading looks at what became of each
 * and prints one line:
 *
 *	kdtest-states: PASS eps=40 requests=8 ...
 *	kdtest-states: FAIL <first thing that was wrong>
 *
 * gone= says whose device must be gone by then: a, b, ab or none (the default).
 *
 * finish= says what kind of consumer this is: free, one that frees everything one
 * by one when it unloads; close, one that notices nothing and closes its adapters
 * in the end; upcall, one that frees in the upcalls that bring the bad news, and
 * closes its adapter gracefully, while the removal may still be under way.
 *
 * again=1: the device is back under the same name: a new instance must work beside
 * the dead one.
 *
 * A write to /sys/module/kdtest/parameters/accept accepts one request of each side,
 * for whoever has cut the wire: those endpoints wait for the last word of the peer.
 */
#define pr_fmt(fmt) "kdtest-states: " fmt

#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/workqueue.h>

#include "kdtest_conn.h"

#define ST_EPS		24	/* of a side, at most */
#define ST_CRS		8
#define ST_RECVS	2	/* posted on each endpoint */
#define ST_SIZE		256
#define ST_SRQ_BUFS	8

static char *finish = "free";
static bool again;

module_param(finish, charp, 0444);
MODULE_PARM_DESC(finish, "mode=states: free, close, upcall: how the consumer ends");
module_param(again, bool, 0644);
MODULE_PARM_DESC(again, "mode=states: the device is back, a new instance must work");

struct st_side;

struct st_ep {
	struct kdt_ep ep;
	struct st_side *side;
	const char *what;
	DAT_EP_STATE state;		/* when everything is set up */
	atomic_t freed;
	atomic_t posted, completed;
	bool srq;
};

struct st_side {
	struct kdt_ia *ia;
	struct st_side *peer;
	struct st_ep eps[ST_EPS];
	int neps;
	DAT_CR_HANDLE crs[ST_CRS];	/* not answered */
	struct st_ep *cr_eps[ST_CRS];	/* the endpoint such a request came with */
	int ncrs;
	DAT_CR_HANDLE late_cr;		/* for the parameter accept */
	struct st_ep *late_ep;
	DAT_RSP_HANDLE rsp;		/* waits */
	struct st_ep *rsp_ep;
	DAT_HANDLE psp, psp_own, psp_late, csp;
	DAT_CONN_QUAL port, port_own, port_late, port_common;
	DAT_SRQ_HANDLE srq;
	struct kdt_buf *buf;
	struct kdt_evd *cr_evd, *soft;
	struct work_struct work;	/* finish=upcall */
	atomic_t catastrophic, other_async;
	bool gone, closed;
};

static struct kdt_env *st_env;
static struct st_side st_sides[2];
static unsigned int st_policy;
static int st_wrong;

static __printf(1, 2) void wrong(const char *fmt, ...)
{
	struct va_format vaf;
	va_list args;

	if (st_wrong++ > 8)
		return;
	va_start(args, fmt);
	vaf.fmt = fmt;
	vaf.va = &args;
	pr_err("FAIL %pV\n", &vaf);
	va_end(args);
}

static bool st_reacts(void)
{
	return !strncmp(finish, "upcall", 6);
}

static bool st_closes(void)
{
	return !strncmp(finish, "close", 5);
}

#define CALL(want, call)									\
do {											\
	DAT_RETURN st_ret = (call);							\
											\
	if (DAT_GET_TYPE(st_ret) != (want))						\
		wrong("%s, line %d: %s: %s %s", side->ia->name, __LINE__, #call,	\
		      kdt_major(st_ret), kdt_minor(st_ret));				\
} while (0)

/* ---- what upcalls do ---- */

static bool st_is_end(const DAT_EVENT *event)
{
	return event->event_number != DAT_CONNECTION_EVENT_ESTABLISHED;
}

/* Whoever is first frees it. */
static void st_ep_free(struct st_ep *e)
{
	struct st_side *side = e->side;

	if (e->ep.h && !atomic_xchg(&e->freed, 1))
		CALL(DAT_SUCCESS, dat_ep_free(e->ep.h));
}

/* A connection has ended; who reacts frees the endpoint here and now. */
static bool st_conn_hook(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct st_ep *e = evd->priv;

	/* one the provider has made goes with its request */
	if (st_reacts() && event->event_number == DAT_CONNECTION_EVENT_BROKEN &&
	    e->state != DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING)
		st_ep_free(e);
	return false;
}

static bool st_dto_hook(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct st_ep *e = evd->priv;

	atomic_inc(&e->completed);
	return true;
}

static void st_async_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_ASYNCH_ERROR_EVENT_DATA *data = &event->event_data.asynch_error_event_data;
	struct st_side *side = instance;

	if (event->event_number != DAT_ASYNC_ERROR_IA_CATASTROPHIC) {
		atomic_inc(&side->other_async);
		return;
	}
	if (data->dat_handle != side->ia->h || data->reason != DAT_IA_CATASTROPHIC_ERROR)
		wrong("%s: wrong data in IA_CATASTROPHIC", side->ia->name);
	if (atomic_inc_return(&side->catastrophic) == 1 && st_reacts())
		schedule_work(&side->work);
}

/* ---- setting up ---- */

static int st_failed(struct st_side *side, int line, const char *call, DAT_RETURN ret)
{
	if (ret == DAT_SUCCESS)
		return 0;
	pr_err("%s, line %d: %s: %s %s\n", side->ia->name, line, call, kdt_major(ret),
	       kdt_minor(ret));
	return -EIO;
}

/* The error of a call, 0 after success: these are chained with ?: */
#define TRY(call)	st_failed(side, __LINE__, #call, call)

static int st_evds(struct st_ep *e)
{
	static const DAT_UPCALL_POLICY policies[] = {
		DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_NOTIFY, DAT_UPCALL_DISABLE, DAT_UPCALL_MANY,
	};
	DAT_UPCALL_POLICY policy = policies[st_policy++ % ARRAY_SIZE(policies)];
	struct st_side *side = e->side;
	struct kdt_ep *ep = &e->ep;
	struct kdt_evd **evds[] = { &ep->recv, &ep->req, &ep->conn };
	int i, err = 0;

	ep->ia = side->ia;
	for (i = 0; i < 3 && !err; i++) {
		err = TRY(kdt_evd_open(st_env, side->ia, i < 2 ? DAT_EVD_DTO_FLAG :
				       DAT_EVD_CONNECTION_FLAG, KDT_DTOS, policy, evds[i]));
		if (err)
			break;
		(*evds[i])->priv = e;
		(*evds[i])->hook = i < 2 ? st_dto_hook : st_conn_hook;
	}
	return err;
}

static int st_receives(struct st_ep *e)
{
	struct st_side *side = e->side;
	int i, err = 0;

	for (i = 0; i < ST_RECVS && !e->srq && !err; i++) {
		atomic_inc(&e->posted);
		err = TRY(kdt_recv(&e->ep, side->buf, i * ST_SIZE, ST_SIZE, i));
	}
	return err;
}

static struct st_ep *st_slot(struct st_side *side, const char *what, DAT_EP_STATE state)
{
	struct st_ep *e = &side->eps[side->neps++];

	if (WARN_ON(side->neps > ST_EPS))
		return NULL;
	e->side = side;
	e->what = what;
	e->state = state;
	return e;
}

static int st_ep(struct st_side *side, const char *what, DAT_EP_STATE state, bool srq, bool recvs,
		 struct st_ep **out)
{
	struct st_ep *e = st_slot(side, what, state);
	struct kdt_ep *ep = &e->ep;
	struct kdt_ia *ia = side->ia;
	int err = st_evds(e);
	DAT_EP_ATTR attr;

	if (err)
		return err;
	kdt_attr(st_env, &attr);
	attr.max_recv_dtos = 8;
	attr.max_request_dtos = 8;
	e->srq = srq;
	*out = e;
	if (srq)
		err = TRY(dat_ep_create_with_srq(ia->h, ia->pz, ep->recv->h, ep->req->h,
						 ep->conn->h, side->srq, &attr, &ep->h));
	else
		err = TRY(dat_ep_create(ia->h, ia->pz, ep->recv->h, ep->req->h, ep->conn->h, &attr,
					&ep->h));
	return err ?: recvs ? st_receives(e) : 0;
}

static DAT_RETURN st_connect(struct st_ep *e, DAT_CONN_QUAL port)
{
	return dat_ep_connect(e->ep.h, (DAT_IA_ADDRESS_PTR)&e->side->peer->ia->addr, port,
			      DAT_TIMEOUT_INFINITE, 0, NULL, DAT_QOS_BEST_EFFORT,
			      DAT_CONNECT_DEFAULT_FLAG);
}

/* The peer asks at this port, and the request is there. */
static int st_request(struct st_side *side, DAT_CONN_QUAL port, const char *what, DAT_CR_HANDLE *cr)
{
	struct st_ep *e;
	DAT_EVENT event;
	int err;

	err = st_ep(side->peer, what, DAT_EP_STATE_ACTIVE_CONNECTION_PENDING, false, true, &e) ?:
	      TRY(st_connect(e, port));
	if (err)
		return err;
	if (!kdt_get(side->cr_evd, &event) || event.event_number != DAT_CONNECTION_REQUEST_EVENT) {
		pr_err("%s: no request of '%s'\n", side->ia->name, what);
		return -ETIMEDOUT;
	}
	*cr = event.event_data.cr_arrival_event_data.cr_handle;
	return 0;
}

/* The same, and nobody answers; with the endpoint it came with, if any. */
static int st_unanswered(struct st_side *side, DAT_CONN_QUAL port, const char *what,
			 struct st_ep *e)
{
	int err = st_request(side, port, what, &side->crs[side->ncrs]);

	side->cr_eps[side->ncrs++] = e;
	return err;
}

static int st_event(struct st_ep *e, DAT_EVENT_NUMBER number)
{
	DAT_EVENT event;

	if (kdt_get(e->ep.conn, &event) && event.event_number == number)
		return 0;
	pr_err("%s: '%s': not event 0x%x\n", e->side->ia->name, e->what, number);
	return -ENOTCONN;
}

/* A connection from this side to the other one. */
static int st_link(struct st_side *side, struct st_ep *c, struct st_ep *s)
{
	DAT_EVENT event;
	int err = TRY(st_connect(c, side->peer->port));

	if (err)
		return err;
	if (!kdt_get(side->peer->cr_evd, &event))
		return -ETIMEDOUT;
	return TRY(dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, s->ep.h, 0,
				 NULL)) ?:
	       st_event(c, DAT_CONNECTION_EVENT_ESTABLISHED) ?:
	       st_event(s, DAT_CONNECTION_EVENT_ESTABLISHED);
}

static int st_connected(struct st_side *side)
{
	struct st_ep *c, *s;

	return st_ep(side, "connected", DAT_EP_STATE_CONNECTED, false, true, &c) ?:
	       st_ep(side->peer, "connected, SRQ", DAT_EP_STATE_CONNECTED, true, false, &s) ?:
	       st_link(side, c, s);
}

static int st_disconnected(struct st_side *side)
{
	struct st_ep *c, *s;
	DAT_EVENT event;

	return st_ep(side, "disconnected", DAT_EP_STATE_DISCONNECTED, false, true, &c) ?:
	       st_ep(side->peer, "left", DAT_EP_STATE_DISCONNECTED, false, false, &s) ?:
	       st_link(side, c, s) ?:
	       TRY(dat_ep_disconnect(c->ep.h, DAT_CLOSE_ABRUPT_FLAG)) ?:
	       (kdt_get(s->ep.conn, &event) ? 0 : -ETIMEDOUT) ?:
	       st_event(c, DAT_CONNECTION_EVENT_DISCONNECTED);
}

/* A Send for which the peer never has a Receive, which RoCE repeats for ever. */
static int st_disconnecting(struct st_side *side)
{
	struct kdat_conn_attr attr = KDAT_CONN_ATTR_INIT;
	struct st_ep *c, *s;
	int err;

	if (side->ia->iwarp)
		return 0;
	attr.rnr_retry_count = 7;
	attr.retry_count = 7;
	err = st_ep(side, "disconnecting", DAT_EP_STATE_DISCONNECT_PENDING, false, true, &c) ?:
	      st_ep(side->peer, "has no Receive", DAT_EP_STATE_CONNECTED, false, false, &s) ?:
	      TRY(kdat_ep_modify_conn(c->ep.h, &attr)) ?:
	      TRY(kdat_ep_modify_conn(s->ep.h, &attr)) ?:
	      st_link(side, c, s);
	if (err)
		return err;
	atomic_inc(&c->posted);
	return TRY(kdt_send(&c->ep, side->buf, 0, ST_SIZE, 99, 0)) ?:
	       TRY(dat_ep_disconnect(c->ep.h, DAT_CLOSE_GRACEFUL_FLAG));
}

/* What listens; and what everything else needs. */
static int st_ground(struct st_side *side)
{
	DAT_SRQ_ATTR srq_attr = { .max_recv_dtos = ST_SRQ_BUFS, .max_recv_iov = 1 };
	DAT_UPCALL_OBJECT upcall = {
		.instance_data = side, .upcall_func = st_async_upcall,
	};
	struct kdt_ia *ia = side->ia;
	DAT_LMR_TRIPLET iov;
	int i, err;

	err = TRY(dat_evd_modify_upcall(ia->async, DAT_UPCALL_SINGLE_INSTANCE, &upcall,
					DAT_UPCALL_INVOC_ANY)) ?:
	      TRY(kdt_buf_open(st_env, ia, ia->pz, 4 * ST_SIZE, KDT_RIGHTS, &side->buf)) ?:
	      TRY(dat_srq_create(ia->h, ia->pz, &srq_attr, &side->srq)) ?:
	      TRY(kdt_evd_open(st_env, ia, DAT_EVD_CR_FLAG, 32, DAT_UPCALL_SINGLE_INSTANCE,
			       &side->cr_evd)) ?:
	      TRY(kdt_evd_open(st_env, ia, DAT_EVD_SOFTWARE_FLAG, 8, DAT_UPCALL_DISABLE,
			       &side->soft)) ?:
	      TRY(kdt_soft(side->soft, 1));
	for (i = 0; i < ST_SRQ_BUFS && !err; i++) {
		iov = kdt_seg(side->buf, 0, ST_SIZE);
		err = TRY(dat_srq_post_recv(side->srq, 1, &iov, kdt_cookie(i)));
	}
	side->port = kdt_new_port();
	side->port_late = kdt_new_port();
	side->port_common = kdt_new_port();
	return err ?:
	       TRY(kdt_listen(ia, KDT_PSP, side->port, side->cr_evd, NULL, &side->psp)) ?:
	       TRY(kdt_listen(ia, KDT_PSP, side->port_late, side->cr_evd, NULL, &side->psp_late)) ?:
	       TRY(dat_psp_create_any(ia->h, &side->port_own, side->cr_evd->h,
				      DAT_PSP_PROVIDER_FLAG, (DAT_PSP_HANDLE *)&side->psp_own)) ?:
	       TRY(kdt_listen(ia, KDT_CSP, side->port_common, side->cr_evd, NULL, &side->csp));
}

/* A request that comes with an endpoint, which gets what it needs or stays as it is. */
static int st_tentative(struct st_side *side, bool bare)
{
	struct st_ep *e = st_slot(side, bare ? "tentative, bare" : "tentative",
				  DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING);
	DAT_CR_PARAM cr;
	int err;

	err = st_unanswered(side, side->port_own, "asks for an endpoint", e) ?:
	      TRY(dat_cr_query(side->crs[side->ncrs - 1], DAT_CR_FIELD_ALL, &cr));
	if (err)
		return err;
	e->ep.h = cr.local_ep_handle;
	e->ep.ia = side->ia;
	if (bare)
		return 0;
	return st_evds(e) ?: TRY(kdt_ep_give(&e->ep, KDT_GIVE_ALL)) ?: st_receives(e);
}

/* Requests that nobody answers. */
static int st_pending(struct st_side *side)
{
	DAT_CONN_QUAL port = kdt_new_port();
	DAT_RSP_HANDLE rsp;
	struct st_ep *e;
	int err;

	err = st_ep(side, "passive pending", DAT_EP_STATE_PASSIVE_CONNECTION_PENDING, false, true,
		    &e) ?:
	      TRY(dat_rsp_create(side->ia->h, port, e->ep.h, side->cr_evd->h, &rsp)) ?:
	      st_unanswered(side, port, "asks an RSP", e);
	if (err)
		return err;
	CALL(DAT_INVALID_HANDLE, dat_rsp_free(rsp));
	return st_tentative(side, false) ?: st_tentative(side, true) ?:
	       st_unanswered(side, side->port, "asks a PSP", NULL) ?:
	       st_unanswered(side, side->port_common, "asks a CSP", NULL);
}

/* One request that is accepted later, over a wire that is cut. */
static int st_late(struct st_side *side)
{
	return st_ep(side, "completion pending", DAT_EP_STATE_UNCONNECTED, false, true,
		     &side->late_ep) ?:
	       st_request(side, side->port_late, "waits for the answer", &side->late_cr);
}

/* soft-iWARP is inside of a connect that nobody answers. */
static int st_blocked(struct st_side *side)
{
	struct sockaddr_storage nobody = kdt_nobody_there(side->ia);
	struct st_ep *e;

	if (!side->ia->iwarp || kdt_ia_asks(side->ia))
		return 0;
	return st_ep(side, "calls nobody", DAT_EP_STATE_ACTIVE_CONNECTION_PENDING, false, true,
		     &e) ?:
	       TRY(dat_ep_connect(e->ep.h, (DAT_IA_ADDRESS_PTR)&nobody, 5000, DAT_TIMEOUT_INFINITE,
				  0, NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
}

static int st_set_up(struct st_side *side)
{
	struct st_ep *e;

	return st_ep(side, "unconnected", DAT_EP_STATE_UNCONNECTED, false, true, &e) ?:
	       st_ep(side, "reserved", DAT_EP_STATE_RESERVED, false, true, &side->rsp_ep) ?:
	       TRY(dat_rsp_create(side->ia->h, kdt_new_port(), side->rsp_ep->ep.h,
				  side->cr_evd->h, &side->rsp)) ?:
	       st_disconnected(side) ?: st_connected(side) ?: st_disconnecting(side);
}

static int accept_set(const char *text, const struct kernel_param *kp)
{
	int i;

	for (i = 0; i < 2 && st_env; i++) {
		struct st_side *side = &st_sides[i];

		if (TRY(dat_cr_accept(side->late_cr, side->late_ep->ep.h, 0, NULL)))
			return -EIO;
		side->late_cr = DAT_HANDLE_NULL;
		side->late_ep->state = DAT_EP_STATE_COMPLETION_PENDING;
		if (kdt_state(side->late_ep->ep.h) != DAT_EP_STATE_COMPLETION_PENDING) {
			pr_err("the wire is not cut\n");
			return -EISCONN;
		}
	}
	return 0;
}

static const struct kernel_param_ops accept_ops = { .set = accept_set };
module_param_cb(accept, &accept_ops, NULL, 0200);
MODULE_PARM_DESC(accept, "mode=states: accept one request of each side, over a cut wire");

/* Everything is in the state it is called by. */
static int st_all_there(void)
{
	struct st_ep *e;
	int i, j;

	for (i = 0; i < 2; i++) {
		for (j = 0; j < st_sides[i].neps; j++) {
			e = &st_sides[i].eps[j];
			if (kdt_state(e->ep.h) == e->state)
				continue;
			pr_err("%s: '%s' is in state %d\n", e->side->ia->name, e->what,
			       kdt_state(e->ep.h));
			return -EBUSY;
		}
	}
	return 0;
}

static void st_react_work(struct work_struct *work);

int kdt_states_start(void)
{
	/* last, for transports that do not wait for an answer for ever: what nobody answers */
	static int (*const set_up[])(struct st_side *) = {
		st_ground, st_set_up, st_pending, st_late, st_blocked,
	};
	int i, k, err;

	st_env = kzalloc(sizeof(*st_env), GFP_KERNEL);
	if (!st_env)
		return -ENOMEM;
	for (i = 0; i < 2; i++) {
		st_sides[i].peer = &st_sides[1 - i];
		st_sides[i].ia = i ? &st_env->b : &st_env->a;
		INIT_WORK(&st_sides[i].work, st_react_work);
	}
	err = kdt_env_open(st_env);
	for (k = 0; k < ARRAY_SIZE(set_up); k++) {
		if (set_up[k] == st_blocked)
			kdt_patient_tcp(st_env);
		for (i = 0; i < 2 && !err; i++)
			err = set_up[k](&st_sides[i]);
	}
	if (!err)
		err = st_all_there();
	kdt_impatient_tcp(st_env);
	if (err) {
		kdt_env_close(st_env);
		kfree(st_env);
		st_env = NULL;
		pr_err("FAIL to start, error %d\n", err);
		return err == -EINVAL ? -EIO : err;
	}
	pr_info("READY eps=%d\n", st_sides[0].neps + st_sides[1].neps);
	return 0;
}

/* ---- afterwards ---- */

/* Everything of a side, in an order in which nothing is in use any more. */
static void st_free_all(struct st_side *side)
{
	struct kdt_evd *evd;
	struct kdt_buf *buf;
	DAT_RETURN ret;
	int i;

	CALL(DAT_SUCCESS, dat_psp_free(side->psp));
	CALL(DAT_SUCCESS, dat_psp_free(side->psp_own));
	CALL(DAT_SUCCESS, dat_psp_free(side->psp_late));
	CALL(DAT_SUCCESS, dat_csp_free(side->csp));
	CALL(DAT_INVALID_STATE, dat_ep_free(side->rsp_ep->ep.h));
	CALL(DAT_SUCCESS, dat_rsp_free(side->rsp));
	if (kdt_state(side->rsp_ep->ep.h) != DAT_EP_STATE_UNCONNECTED)
		wrong("%s: state %d after dat_rsp_free", side->ia->name,
		      kdt_state(side->rsp_ep->ep.h));
	for (i = 0; i < side->ncrs; i++) {
		struct st_ep *e = side->cr_eps[i];
		bool made = e && e->state == DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING;

		/* it is free to go before, if the device has gone */
		if (made && side->gone && !e->ep.conn)
			st_ep_free(e);
		CALL(DAT_SUCCESS, dat_cr_reject(side->crs[i], 0, NULL));
		if (made && !atomic_xchg(&e->freed, 1))
			CALL(DAT_INVALID_HANDLE, dat_ep_free(e->ep.h));
	}
	if (side->late_cr)
		CALL(DAT_SUCCESS, dat_cr_reject(side->late_cr, 0, NULL));
	for (i = 0; i < side->neps; i++)
		st_ep_free(&side->eps[i]);
	/* what was freed in an upcall keeps its EVDs a moment longer, and then its PZ */
	list_for_each_entry(evd, &st_env->evds, link) {
		if (evd->ia != side->ia || !evd->h)
			continue;
		kdt_until((ret = dat_evd_free(evd->h), DAT_GET_TYPE(ret) != DAT_INVALID_STATE) ||
			  !st_reacts());
		CALL(DAT_SUCCESS, ret);
	}
	CALL(DAT_SUCCESS, dat_srq_free(side->srq));
	list_for_each_entry(buf, &st_env->bufs, link) {
		if (buf == side->buf)
			CALL(DAT_SUCCESS, dat_lmr_free(buf->lmr));
	}
	kdt_until((ret = dat_pz_free(side->ia->pz), DAT_GET_TYPE(ret) != DAT_INVALID_STATE) ||
		  !st_reacts());
	CALL(DAT_SUCCESS, ret);
	CALL(DAT_SUCCESS, dat_ia_close(side->ia->h, DAT_CLOSE_GRACEFUL_FLAG));
	side->closed = true;
}

static void st_react_work(struct work_struct *work)
{
	struct st_side *side = container_of(work, struct st_side, work);

	side->gone = true;
	st_free_all(side);
}

/* All has completed; what nobody else takes is taken here. */
static bool st_take_all(struct st_ep *e)
{
	struct kdt_evd *evds[] = { e->ep.recv, e->ep.req };
	DAT_EVENT event;
	int i;

	for (i = 0; i < 2; i++)
		while (evds[i]->quiet && dat_evd_dequeue(evds[i]->h, &event) == DAT_SUCCESS)
			atomic_inc(&e->completed);
	return atomic_read(&e->completed) == atomic_read(&e->posted);
}

/* One end, and the right one; none for who had no connection. */
static void st_check_ep(struct st_ep *e, bool must_break)
{
	struct st_side *side = e->side;
	DAT_EP_STATE state;
	DAT_EVENT event;

	if (e->state == DAT_EP_STATE_UNCONNECTED || e->state == DAT_EP_STATE_RESERVED ||
	    e->state == DAT_EP_STATE_DISCONNECTED) {
		state = e->state;
	} else {
		state = DAT_EP_STATE_DISCONNECTED;
		if (!e->ep.conn)
			;
		else if (!kdt_get(e->ep.conn, &event))
			wrong("%s: '%s': no event", side->ia->name, e->what);
		else if (!st_is_end(&event) ||
			 (must_break && event.event_number != DAT_CONNECTION_EVENT_BROKEN))
			wrong("%s: '%s': event 0x%x", side->ia->name, e->what, event.event_number);
	}
	if (kdt_state(e->ep.h) != state)
		wrong("%s: '%s': state %d", side->ia->name, e->what, kdt_state(e->ep.h));
	if (e->ep.conn && kdt_get_timeout(e->ep.conn, &event, 1))
		wrong("%s: '%s': event 0x%x too many", side->ia->name, e->what, event.event_number);
	if (state != DAT_EP_STATE_DISCONNECTED || !e->ep.recv)
		return;
	if (!kdt_until(st_take_all(e)))
		wrong("%s: '%s': %d posted, %d completed", side->ia->name, e->what,
		      atomic_read(&e->posted), atomic_read(&e->completed));
}

/* What a consumer gets that has not noticed anything yet. */
static void st_check_calls(struct st_side *side)
{
	struct kdt_ep *u = &side->eps[0].ep, *p = &side->cr_eps[0]->ep;
	struct kdt_ia *ia = side->ia;
	DAT_EP_PARAM param;
	DAT_CR_PARAM cr_param;
	DAT_EVENT event;
	DAT_HANDLE h;

	CALL(DAT_INTERNAL_ERROR, dat_pz_create(ia->h, &h));
	CALL(DAT_INTERNAL_ERROR, dat_psp_create(ia->h, kdt_new_port(), side->cr_evd->h,
						DAT_PSP_CONSUMER_FLAG, &h));
	CALL(DAT_INTERNAL_ERROR, st_connect(&side->eps[0], kdt_new_port()));
	CALL(DAT_INTERNAL_ERROR, dat_ep_reset(p->h));
	CALL(DAT_INTERNAL_ERROR, kdt_recv(u, side->buf, 0, ST_SIZE, 0));
	CALL(DAT_INTERNAL_ERROR, dat_cr_accept(side->crs[0], DAT_HANDLE_NULL, 0, NULL));
	CALL(DAT_SUCCESS, dat_cr_query(side->crs[0], DAT_CR_FIELD_ALL, &cr_param));
	CALL(DAT_SUCCESS, dat_ep_query(p->h, DAT_EP_FIELD_ALL, &param));
	CALL(DAT_SUCCESS, dat_evd_dequeue(side->soft->h, &event));
	CALL(DAT_SUCCESS, kdt_soft(side->soft, 2));
	CALL(DAT_SUCCESS, dat_evd_dequeue(side->soft->h, &event));
	CALL(DAT_INVALID_STATE, dat_ia_close(ia->h, DAT_CLOSE_GRACEFUL_FLAG));
}

static void st_check_gone(struct st_side *side, bool must_break)
{
	int i;

	for (i = 0; i < side->neps; i++)
		st_check_ep(&side->eps[i], must_break);
	st_check_calls(side);
}

/* The name leads to the new device: another instance, and all is well. */
static void st_check_again(void)
{
	struct kdt_env *env = kzalloc(sizeof(*env), GFP_KERNEL);
	struct st_side *side = &st_sides[0];
	struct kdt_buf *out, *in;
	struct kdt_pair pair;
	DAT_EVENT event;
	int err;

	if (!env) {
		wrong("no memory");
		return;
	}
	err = kdt_env_open(env);
	if (err) {
		wrong("no new instance: %d", err);
		goto out;
	}
	CALL(DAT_SUCCESS, kdt_pair_open(env, &pair, NULL));
	CALL(DAT_SUCCESS, kdt_buf_open(env, &env->a, env->a.pz, ST_SIZE, KDT_RIGHTS, &out));
	CALL(DAT_SUCCESS, kdt_buf_open(env, &env->b, env->b.pz, ST_SIZE, KDT_RIGHTS, &in));
	if (st_wrong)
		goto out;
	kdt_fill(out->p, ST_SIZE, 1);
	CALL(DAT_SUCCESS, kdt_recv(&pair.s, in, 0, ST_SIZE, 1));
	err = kdt_pair_link(&pair);
	if (err) {
		wrong("no new connection: %d", err);
		goto out;
	}
	CALL(DAT_SUCCESS, kdt_send(&pair.c, out, 0, ST_SIZE, 1, 0));
	if (!kdt_get(pair.s.recv, &event) || !kdt_same(in->p, ST_SIZE, 1))
		wrong("no message over the new connection");
out:
	kdt_env_close(env);
	kfree(env);
}

void kdt_states_stop(void)
{
	const char *gone = strncmp(kdt_gone, "auto", 4) ? kdt_gone : "none";
	bool same = !strcmp(st_env->a.name, st_env->b.name);
	int i, eps = 0, requests = 0;

	for (i = 0; i < 2; i++) {
		struct st_side *side = &st_sides[i];

		side->gone = strchr(gone, 'a' + i);
		if (side->gone && st_reacts()) {
			/* the event was queued before the removal ended */
			if (!kdt_until(atomic_read(&side->catastrophic)))
				wrong("%s: no IA_CATASTROPHIC", side->ia->name);
			flush_work(&side->work);
		}
		eps += side->neps;
		requests += side->ncrs;
	}
	for (i = 0; i < 2; i++) {
		struct st_side *side = &st_sides[i];

		/* of two devices the first one that goes says goodbye to the other */
		if (side->gone && !st_reacts())
			st_check_gone(side, (same || !side->peer->gone) && !side->ia->iwarp);
	}
	if (again)
		st_check_again();
	for (i = 0; i < 2; i++) {
		struct st_side *side = &st_sides[i];

		if (side->closed)
			continue;
		if (st_closes()) {
			CALL(DAT_SUCCESS, dat_ia_close(side->ia->h, DAT_CLOSE_ABRUPT_FLAG));
			side->closed = true;
		} else {
			st_free_all(side);
		}
	}
	for (i = 0; i < 2; i++) {
		struct st_side *side = &st_sides[i];

		if (atomic_read(&side->catastrophic) != side->gone)
			wrong("%s: %d times IA_CATASTROPHIC", side->ia->name,
			      atomic_read(&side->catastrophic));
		if (side->closed)
			side->ia->h = DAT_HANDLE_NULL;
	}
	kdt_env_close(st_env);
	kfree(st_env);
	if (!st_wrong)
		pr_info("PASS eps=%d requests=%d finish=%s gone=%s again=%d\n", eps, requests,
			finish, gone, again);
}
