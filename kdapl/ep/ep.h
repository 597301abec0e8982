/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Endpoints: connections, states, and what is posted.
 */
#ifndef KDAPL_EP_EP_H
#define KDAPL_EP_EP_H

#include "../evd/evd.h"
#include "../mem/mem.h"

/* A send WR of any kind that is posted here. */
union kdapl_wr {
	struct ib_send_wr send;
	struct ib_rdma_wr rdma;
	struct ib_reg_wr reg;
};

/* Most WRs of one request: a fence and an invalidation may come before it. */
#define KDAPL_MAX_WRS	3

/**
 * struct kdapl_ep_conf - what a connection is made of
 * @attr: attributes, as granted
 * @pz: NULL: there can be no connection
 * @recv_evd: never NULL
 * @request_evd: never NULL
 */
struct kdapl_ep_conf {
	DAT_EP_ATTR attr;
	struct kdapl_pz *pz;
	struct kdapl_evd *recv_evd;
	struct kdapl_evd *request_evd;
};

void kdapl_ia_limits(struct kdapl_ia *ia, DAT_IA_ATTR *attr);
int kdapl_ia_sure_dtos(const struct kdapl_device *dev, int most);
DAT_QOS kdapl_qos_supported(const struct kdapl_device *dev);
int kdapl_qos_check(const struct kdapl_device *dev, DAT_QOS qos);

struct kdapl_wq *kdapl_wq_alloc(struct kdapl_conn *conn, bool recv, u32 max_wrs, u32 max_sge);
void kdapl_wq_free(struct kdapl_wq *wq);
void kdapl_wq_set_mode(struct kdapl_wq *wq, enum kdapl_wq_mode mode);
void kdapl_wq_quiesce(struct kdapl_wq *wq);
int kdapl_wq_post_own(struct kdapl_wq *wq, u8 op);
int kdapl_wq_post_marker(struct kdapl_wq *wq, enum kdapl_wq_marker why);

struct kdapl_conn *kdapl_conn_create(struct kdapl_ep *ep, const struct kdapl_ep_conf *conf,
				     struct kdapl_conn *old);
void kdapl_conn_qp_attr(const struct kdapl_conn *conn, int mask, struct ib_qp_attr *attr);
int kdapl_conn_to_rts(struct kdapl_conn *conn, struct rdma_cm_id *id);
void kdapl_conn_established(struct kdapl_conn *conn);
void kdapl_conn_start_kicks(struct kdapl_conn *conn);
void kdapl_conn_kick(struct kdapl_conn *conn);

extern const struct kdapl_dev_conn_ops kdapl_conn_dev_ops;

void kdapl_conn_init_end(struct kdapl_conn *conn);
void kdapl_conn_drain_sq(struct kdapl_conn *conn);
void kdapl_conn_drop_events(struct kdapl_conn *conn, bool all_events);
void kdapl_conn_reap(struct kdapl_conn *conn);
void kdapl_conn_wait_reaped(struct kdapl_conn *conn);
void kdapl_conn_release(struct kdapl_conn *conn);
void kdapl_conn_put(struct kdapl_conn *conn);

enum kdapl_ep_input {
	KDAPL_IN_CONNECT,	/* dat_ep_connect() and its relatives */
	KDAPL_IN_UNDO,		/* they failed, and nothing has happened */
	KDAPL_IN_RESERVE,	/* dat_rsp_create() */
	KDAPL_IN_UNRESERVE,	/* dat_rsp_free() */
	KDAPL_IN_REQUEST,	/* a request arrived at the RSP */
	KDAPL_IN_ACCEPT,	/* dat_cr_accept() with this EP */
	KDAPL_IN_ACCEPT_OWN,	/* dat_cr_accept() of a request that has this EP */
	KDAPL_IN_DECLINE,	/* dat_cr_reject() or dat_cr_handoff() of such a request */
	KDAPL_IN_ESTABLISHED,
	KDAPL_IN_GRACEFUL,	/* dat_ep_disconnect() */
	KDAPL_IN_ABRUPT,	/* the same */
	KDAPL_IN_ENDED,		/* the connection has ended */
	KDAPL_IN_REMOVED,	/* the device has gone or failed, with the request */
	KDAPL_IN_RESET,		/* dat_ep_reset() */
	KDAPL_IN_FREE,		/* dat_ep_free() */
	KDAPL_EP_INPUTS
};

/**
 * struct kdapl_cr - a connection request that has not been answered
 * @mutex: protects @cm_id, so that there is one answer only
 * @cm_id: NULL once the request is answered, or the device is removed
 * @ep: the EP that comes with the request, referenced; constant
 * @local: events and queries point to it, as to @remote
 * @made: @ep was made for the request, and is destroyed with it unless accepted
 */
struct kdapl_cr {
	struct kdapl_obj obj;
	struct mutex mutex;		/* cm_id */
	struct rdma_cm_id *cm_id;
	struct kdapl_ep *ep;
	bool made;
	struct sockaddr_storage local;
	struct sockaddr_storage remote;
	u8 read_in;		/* most Reads the peer will have outstanding */
	u8 read_out;		/* most Reads the peer answers at a time */
	u32 pdata_len;
	u8 pdata[];
};

#define KDAPL_EP_STATES		(DAT_EP_STATE_COMPLETION_PENDING + 1)
#define KDAPL_EP_NO_STEP	(-1)	/* the table has no such transition */

/**
 * struct kdapl_ep - an Endpoint
 * @conn: connection, RCU: read by posting calls; NULL without a PZ
 * @state: DAT_EP_STATE; written under @lock, read anywhere
 * @lock: protects @state
 * @mutex: one control call at a time
 * @conf: attributes, PZ and EVDs; the IA's null EVD where the consumer named none
 * @comm: what dat_ep_common_connect() connects by; @mutex
 * @net_attr: how its connections treat the network; @lock
 * @serial: the consumer serialises what it posts; @lock
 * @cr: request the EP belongs to, in PASSIVE_ and TENTATIVE_CONNECTION_PENDING; @lock
 * @last_conn: the connection of an EP that is being destroyed
 * @marks: high watermarks of the buffers taken from the SRQ
 * @free_work: destroys the EP for callers that may not wait
 */
struct kdapl_ep {
	struct kdapl_obj obj;
	struct kdapl_conn __rcu *conn;
	int state;

	spinlock_t lock;		/* state, net_attr, serial, cr */
	struct mutex mutex;		/* control calls */
	struct kdapl_ep_conf conf;
	struct kdapl_srq *srq;		/* constant */
	DAT_SRQ_HANDLE srq_handle;
	struct kdapl_evd *connect_evd;	/* may be NULL */
	DAT_PZ_HANDLE pz_handle;	/* handles as the consumer passed them */
	DAT_EVD_HANDLE recv_handle;
	DAT_EVD_HANDLE request_handle;
	DAT_EVD_HANDLE connect_handle;
	DAT_COMM comm;
	struct kdat_conn_attr net_attr;
	bool serial;
	struct kdapl_cr *cr;
	struct kdapl_conn *last_conn;
	struct kdapl_marks marks;
	struct work_struct free_work;
};

int kdapl_ep_next_state(int state, enum kdapl_ep_input input);
int kdapl_ep_step(struct kdapl_ep *ep, enum kdapl_ep_input input);
u64 kdapl_ep_fields(int state);
int kdapl_ep_may(struct kdapl_ep *ep, enum kdapl_ep_input input, DAT_EP_STATE *state);
void kdapl_ep_queue_event(struct kdapl_ep *ep, const struct kdapl_event *ev);
void kdapl_ep_drop_events(struct kdapl_ep *ep);
void kdapl_ep_forget_pdata(struct kdapl_conn *conn);
void kdapl_ep_event(struct kdapl_conn *conn, u32 number);
void kdapl_ep_ended(struct kdapl_conn *conn);
struct kdapl_ep *kdapl_ep_tentative(struct kdapl_ia *ia, struct kdapl_evd *null_evd,
				    struct kdapl_cr *cr);
void kdapl_ep_request(struct kdapl_ep *ep, struct kdapl_cr *cr);
void kdapl_ep_leave(struct kdapl_ep *ep, enum kdapl_ep_input input);
void kdapl_ep_take_back(struct kdapl_ep *ep, bool wait);
void kdapl_eps_destroy(struct list_head *eps);

static inline struct kdapl_conn *kdapl_ep_conn(struct kdapl_ep *ep)
{
	return rcu_dereference_protected(ep->conn, lockdep_is_held(&ep->mutex));
}

struct kdapl_pool *kdapl_srq_pool_get(struct kdapl_srq *srq);
void kdapl_srq_destroy(struct kdapl_srq *srq);

#ifdef KDAPL_KUNIT
extern void (*kdapl_test_fresh_conn)(struct kdapl_ep *ep);	/* before the EP gets it */
extern void (*kdapl_test_ep_event)(struct kdapl_ep *ep);	/* before it is queued */
extern void (*kdapl_test_dev_fail)(struct kdapl_conn *conn);	/* its device fails */
#endif

#endif /* KDAPL_EP_EP_H */
