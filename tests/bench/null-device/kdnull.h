/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * An RDMA device without a wire: device (main.c), control verbs (verbs.c), posting and
 * polling (post.c), connections (cm.c).
 *
 * Locks, from the outside in: iw_mutex; lock of a CQ; lock of an SRQ. Nobody holds
 * the locks of two CQs.
 */
#ifndef KDNULL_H
#define KDNULL_H

#include <linux/cache.h>
#include <linux/completion.h>
#include <linux/interrupt.h>
#include <linux/list.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_verbs.h>

#define KDNULL_MAX_SGE		16
#define KDNULL_MAX_WR		16384
#define KDNULL_MAX_SRQ_WR	BIT(18)		/* for many QPs */
#define KDNULL_MAX_CQE		BIT(20)
#define KDNULL_MAX_PAGES	1024
#define KDNULL_MAX_READS	128
#define KDNULL_MAX_KEY		0xfffffe	/* an index: without the low byte of the key */
#define KDNULL_DMA_LKEY		0xffffff00

#define to_kdnull_dev(p)	container_of(p, struct kdnull_dev, ibdev)
#define to_kdnull_cq(p)		container_of(p, struct kdnull_cq, ibcq)
#define to_kdnull_srq(p)	container_of(p, struct kdnull_srq, ibsrq)
#define to_kdnull_qp(p)		container_of(p, struct kdnull_qp, ibqp)
#define to_kdnull_mr(p)		container_of(p, struct kdnull_mr, ibmr)

struct kdnull_dev {
	struct ib_device ibdev;
	struct list_head node;		/* in the list of all devices */
	struct xarray qps;		/* by number */
	struct xarray mrs;		/* by the upper 24 bits of the key */
	u32 next_qp, next_mr;		/* where to look for a free one */
	struct net_device *ndev;
};

struct kdnull_pd {
	struct ib_pd ibpd;
};

/* What a completion will say: written by a post, read by poll_cq. */
struct kdnull_cqe {
	u64 wr_id;
	struct ib_qp *qp;
	u32 byte_len;
	u32 ex;				/* immediate data, or the key that was invalidated */
	u8 status;
	u8 opcode;
	u8 wc_flags;
};

struct kdnull_cq {
	struct ib_cq ibcq;

	/* this line, and what completes here of the send and receive queues */
	spinlock_t lock ____cacheline_aligned_in_smp;
	u32 armed;			/* 0, IB_CQ_SOLICITED or IB_CQ_NEXT_COMP */
	u32 head;			/* entries written so far */
	u32 tail;			/* of these, polled */
	u32 mask;			/* size of the ring - 1 */
	u32 depth;			/* as many may be unpolled */
	struct kdnull_cqe *ring;

	struct tasklet_struct tasklet ____cacheline_aligned_in_smp; /* calls the handler */
};

/* A posted Receive. */
struct kdnull_recv {
	u64 wr_id;
	u32 length;
};

/* Posted Receives of a QP or an SRQ, first in, first out. */
struct kdnull_rq {
	struct kdnull_recv *ring;
	u32 head;			/* posted so far */
	u32 tail;			/* of these, consumed */
	u32 mask;			/* size of the ring - 1 */
	u32 depth;			/* as many may be posted */
	u32 max_sge;
};

struct kdnull_srq {
	struct ib_srq ibsrq;
	spinlock_t lock;		/* rq */
	struct kdnull_rq rq;
};

enum kdnull_qp_mode {
	KDNULL_QP_IDLE,			/* not connected yet: posts of requests are refused */
	KDNULL_QP_LIVE,
	KDNULL_QP_DEAD,			/* posts are flushed */
};

struct kdnull_qp {
	struct ib_qp ibqp;

	/* sending: under the lock of scq */
	struct kdnull_cq *scq ____cacheline_aligned_in_smp;
	struct kdnull_qp *peer;		/* whose Receives our Sends take, or NULL; RCU */
	u8 mode;			/* enum kdnull_qp_mode */
	u8 max_send_sge;
	bool sig_all;
	struct {
		u64 wr_id;
		u64 remote_addr;
		u32 rkey;
		u16 opcode;
		u16 flags;
		struct ib_sge sge[KDNULL_MAX_SGE];
	} wqe;				/* the latest request, as a device would see it */

	/* receiving: under the lock of rcq */
	struct kdnull_cq *rcq ____cacheline_aligned_in_smp;
	struct kdnull_srq *srq;		/* whose Receives are used instead of rq, or NULL */
	bool dead;			/* Receives are flushed */
	struct kdnull_rq rq;

	/* under iw_mutex */
	struct iw_conn *conn ____cacheline_aligned_in_smp; /* connection, attempt, or NULL */
	enum ib_qp_state state;		/* as told by query_qp */
	bool linked;			/* has been somebody's peer */

	struct ib_qp_cap cap;
	struct work_struct work;	/* breaks the connection, tells of the last Receive */
	unsigned long last_wqe;		/* the latter is to be told */
	refcount_t ref;			/* of the connection manager, and one */
	struct completion unused;	/* ref is zero */
};

/* A memory region: what it stands for at present. Nothing is checked against it. */
struct kdnull_mr {
	struct ib_mr ibmr;
	struct rcu_head rcu;
	u32 key;
	int access;
	bool valid;
	u32 max_pages;
	u32 pages;
	u64 page[];
};

extern const struct ib_device_ops kdnull_ops;

/* post.c */
int kdnull_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		     const struct ib_send_wr **bad);
int kdnull_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		     const struct ib_recv_wr **bad);
int kdnull_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
			 const struct ib_recv_wr **bad);
int kdnull_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc);
int kdnull_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);
void kdnull_qp_live(struct kdnull_qp *qp, struct kdnull_qp *peer);
void kdnull_qp_dead(struct kdnull_qp *qp);

/* cm.c */
void kdnull_cm_setup(struct ib_device *ibdev);
void kdnull_cm_rts(struct kdnull_qp *qp);
void kdnull_cm_break(struct kdnull_qp *qp);

#endif /* KDNULL_H */
