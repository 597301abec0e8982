/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * RDMA devices that behave like hardware: what their files share.
 *
 * Locks, from the outside in: iw_mutex; qp->rx (what arrives at a QP, one at a time;
 * nobody holds two); then the spinlocks of a send queue, of a receive queue or SRQ, of an MR,
 * of a CQ, of which only that of a CQ is taken inside another.
 */
#ifndef KDHCA_H
#define KDHCA_H

#include <linux/completion.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_netlink.h>

#undef pr_fmt
#define pr_fmt(fmt) "kdhca: " fmt

#define KDHCA_GIDS	64
#define KDHCA_DMA_LKEY	0x0000ff00
#define KDHCA_SEGS	32		/* segments of a work request at most, for any device */

#define to_dev(p)	container_of(p, struct kdhca_dev, ibdev)
#define to_cq(p)	container_of(p, struct kdhca_cq, ibcq)
#define to_srq(p)	container_of(p, struct kdhca_srq, ibsrq)
#define to_qp(p)	container_of(p, struct kdhca_qp, ibqp)
#define to_mr(p)	container_of(p, struct kdhca_mr, ibmr)
#define to_ah(p)	container_of(p, struct kdhca_ah, ibah)

/* settings.c: what a device is like */

/* Every field is a number, named and explained in the table of settings.c. */
struct kdhca_set {
	u32 iwarp, driver, dma, shift, mask;
	u32 max_qp_wr, max_cqe, max_send_sge, max_recv_sge, max_sge_rd, max_inline;
	u32 sq_units, round;
	u32 max_pages, max_block, dma_lkey;
	u32 max_srq_wr, max_srq_sge;
	u32 rd_in, rd_out, negotiate, req_depths, rep_depths;
	u32 fence, reads_late, pair, access_late, self, loop, grh, comm_est;
	u32 cq_ctx, event_ctx, missed, purge;
	u32 modify_ms, create_ms, destroy_ms, dereg_ms, flush_ms;
	u32 modify_fail, create_fail, dereg_fail, alloc_fail;
	u32 mad_loss;
	u32 complain, noio;
};

int kdhca_settings_parse(struct kdhca_set *set, const char *text);
int kdhca_settings_name(char *buf, size_t size, const struct kdhca_set *set);
int kdhca_settings_profile(struct kdhca_set *set, const char *name);

/* irq.c: from where a handler is called */

enum kdhca_ctx {
	KDHCA_THREAD,
	KDHCA_SOFTIRQ,
	KDHCA_HARDIRQ,
};

struct kdhca_irq {
	enum kdhca_ctx ctx;
	void (*fn)(struct kdhca_irq *irq);
	unsigned long events;		/* bits of enum ib_event_type to be told */
	struct work_struct work;
	struct tasklet_struct tasklet;
	struct hrtimer timer;
};

void kdhca_irq_init(struct kdhca_irq *irq, enum kdhca_ctx ctx, void (*fn)(struct kdhca_irq *irq));
void kdhca_irq_raise(struct kdhca_irq *irq);
void kdhca_irq_kill(struct kdhca_irq *irq);
void kdhca_irq_event(struct kdhca_irq *irq, enum ib_event_type type);
bool kdhca_irq_next(struct kdhca_irq *irq, struct ib_event *event);

/* complain.c */

enum kdhca_fault {
	KDHCA_EMPTY_LIST,	/* sg_list is not NULL where num_sge is 0 */
	KDHCA_NOIO,		/* a verb that may allocate, without PF_MEMALLOC_NOIO */
	KDHCA_FENCE,		/* a fence that the device does not honour */
	KDHCA_KEY_AGAIN,	/* the low byte of a key twice in a row */
	KDHCA_LATE_POST,	/* a post after the consumers were told to go */
	KDHCA_ATOMIC,		/* a verb that sleeps where nobody may */
	KDHCA_OFFSET,		/* iova and buffer differ in the offset within their page */
	KDHCA_UNMAPPED,		/* DMA to an address that is not mapped */
	KDHCA_PAIR,		/* a Write and a Send posted together, one without a list */
	KDHCA_FAULTS
};

/* Which verb, for those who sleep. */
enum kdhca_verb {
	KDHCA_CREATE,
	KDHCA_ALLOC,		/* of MRs */
	KDHCA_MODIFY,
	KDHCA_DESTROY,
	KDHCA_DEREG,
	KDHCA_VERBS
};

struct kdhca_dev;
void kdhca_complain(struct kdhca_dev *dev, enum kdhca_fault fault, const char *what, u64 n);
int kdhca_sleeps(struct kdhca_dev *dev, enum kdhca_verb verb);
void kdhca_check_list(struct kdhca_dev *dev, const void *sg_list, int num_sge);
void kdhca_check_late(struct kdhca_dev *dev);

/* The objects */

struct kdhca_dev {
	struct ib_device ibdev;
	struct list_head node;		/* in kdhca_devs */
	struct kdhca_set set;
	struct device *dma;		/* NULL: addresses are virtual */
	struct platform_device *pdev;
	struct net_device *ndev;
	struct xarray mrs;		/* by the upper 24 bits of the key */
	u32 next_mr;
	spinlock_t cq_lock;		/* cqs */
	struct list_head cqs;
	spinlock_t gid_lock;		/* gid */
	union ib_gid gid[KDHCA_GIDS];	/* RoCE: kept by the core */
	struct mutex gsi_lock;		/* gsi */
	struct kdhca_qp *gsi;		/* QP 1 of RoCE */
	struct kdhca_irq irq;		/* events of the port and of the device */
	atomic_t complaints[KDHCA_FAULTS];
	atomic_t calls[KDHCA_VERBS];	/* to let every Nth fail */
	bool here;			/* registered; kdhca_devs_lock */
	unsigned long leaving;		/* when the device was told to go; 0: not yet */
	bool left;			/* the consumers have let go of it */
	struct task_struct *remover;	/* who calls their remove */
	bool down;			/* the port, on order */
	struct dentry *dir;
	struct work_struct unplug;
	unsigned long unplugged;	/* bit 0: the work has been queued, which is done once */
};

struct kdhca_pd {
	struct ib_pd ibpd;
};

struct kdhca_ah {
	struct ib_ah ibah;
	union ib_gid dgid;
	union ib_gid sgid;
	bool v4;
};

/* A completion, as poll_cq will report it. */
struct kdhca_cqe {
	u64 wr_id;
	struct kdhca_qp *qp;
	atomic_t *tail;			/* of the queue in which places come free, */
	u32 frees;			/* and how many */
	u32 byte_len;
	u32 ex;				/* immediate data, or the invalidated key */
	u32 src_qp;
	u8 status;
	u8 opcode;
	u8 wc_flags;
	u8 net;				/* enum rdma_network_type of a MAD */
};

struct kdhca_cq {
	struct ib_cq ibcq;
	spinlock_t lock;		/* all of it */
	u32 armed;			/* 0, IB_CQ_SOLICITED or IB_CQ_NEXT_COMP */
	u32 head, tail, mask, depth;
	bool dead;			/* has overflowed, or so it was ordered */
	struct kdhca_cqe *ring;
	struct kdhca_irq irq;
	struct kdhca_irq event_irq;	/* IB_EVENT_CQ_ERR */
	struct list_head node;
};

/* A posted Receive. */
struct kdhca_rqe {
	u64 wr_id;
	u32 num_sge;
	struct ib_sge sge[];
};

struct kdhca_rq {
	spinlock_t lock;		/* all of it but tail */
	void *ring;
	size_t stride;
	u32 head;			/* posted so far */
	u32 next;			/* of these, taken by a message */
	atomic_t tail;			/* of these, polled */
	u32 mask, depth, max_sge;
};

struct kdhca_srq {
	struct ib_srq ibsrq;
	struct kdhca_rq rq;
	u32 limit;			/* under rq.lock */
	struct kdhca_irq irq;
};

enum kdhca_wqe_state { KDHCA_POSTED, KDHCA_READING, KDHCA_DONE };

/* A posted request. */
struct kdhca_wqe {
	u64 wr_id;
	u64 remote_addr;
	u32 rkey;			/* or the key to invalidate */
	u32 ex;
	u32 flags;
	u32 length;
	u16 num_sge;
	u8 opcode;			/* enum ib_wr_opcode */
	u8 state;			/* enum kdhca_wqe_state */
	u8 status;
	union {
		struct {
			struct kdhca_mr *mr;
			u64 iova, mr_length;
			u32 key, access, page_size, pages;
		} reg;
		struct {
			union ib_gid dgid, sgid;
			bool v4;
			u32 qpn;
		} ud;
	};
	u8 *inl;			/* inline data, in place of sge */
	struct ib_sge sge[];
};

struct kdhca_sq {
	spinlock_t lock;		/* head, and the places from there on */
	void *ring;
	size_t stride;
	u32 head;			/* posted so far */
	u32 next;			/* of these, begun */
	u32 done;			/* of these, completed in order */
	atomic_t tail;			/* of these, places that may be used again */
	u32 freed;			/* of these, told to a CQ */
	u32 mask, depth, max_sge;
};

/* A piece of memory: a range of an MR, of which somebody is a user, or DMA addresses. */
struct kdhca_span {
	struct kdhca_dev *dev;
	struct kdhca_mr *mr;
	u64 addr;
	u32 length;
	void *inl;			/* or inline data */
};

struct kdhca_spans {
	int n;
	struct kdhca_span span[KDHCA_SEGS];
};

struct kdhca_qp {
	struct ib_qp ibqp;
	struct kdhca_dev *dev;
	struct kdhca_cq *scq, *rcq;
	struct kdhca_srq *srq;
	struct kdhca_sq sq;
	struct kdhca_rq rq;
	struct ib_qp_cap cap;
	bool sig_all;
	enum ib_qp_state state;		/* changed under rx */
	struct ib_qp_attr attr;		/* what modify has set */
	struct mutex rx;		/* one message arrives at a time, or the QP is flushed */
	bool established;		/* COMM_EST has been told */
	bool last_told;			/* LAST_WQE_REACHED has */
	struct delayed_work work;	/* the engine */
	u32 reading;			/* Reads begun and not yet answered */
	u32 since;			/* requests begun since the oldest of these */
	u32 retries, rnr_retries;	/* left for the request that waits */
	u32 rnr_timer;			/* how long, as the peer says */
	bool waits;
	bool nak;			/* the peer has failed, after what came before */
	unsigned long wait_until;
	struct kdhca_irq irq;
	refcount_t ref;
	struct completion unused;
	struct iw_conn *conn;		/* iWARP; iw_mutex */
	struct kdhca_spans from, to;	/* of the request the engine is at */
	struct kdhca_rqe *rqe;		/* what it has taken of the peer */
};

struct kdhca_mr {
	struct ib_mr ibmr;
	struct kdhca_dev *dev;
	spinlock_t lock;		/* valid to live */
	bool valid;
	bool all;			/* any address: get_dma_mr() */
	bool written;			/* a peer has written since it was registered */
	u32 key;
	u32 access;
	u64 iova, length;
	u32 page_size;
	u32 users;			/* transfers under way */
	u64 *live;			/* pages while valid */
	wait_queue_head_t idle;

	u64 *list;			/* pages of the latest map_mr_sg */
	u32 max_pages, pages;
	u64 start;			/* address of its first byte */
	int last_byte;			/* low byte of the last key, -1: none */
	refcount_t ref;
	struct completion unused;
};

extern struct workqueue_struct *kdhca_wq;
extern struct list_head kdhca_devs;
extern struct mutex kdhca_devs_lock;
extern const struct ib_device_ops kdhca_ops, kdhca_roce_ops;

/* dev.c */
int kdhca_dev_setup(struct kdhca_dev *dev);
bool kdhca_dev_has_gid(struct kdhca_dev *dev, const union ib_gid *gid);
struct kdhca_dev *kdhca_dev_by_gid(const union ib_gid *gid);
bool kdhca_dev_up(const struct kdhca_dev *dev);

/* dma.c */
int kdhca_dma_bind(struct kdhca_dev *dev);
void kdhca_dma_unbind(struct kdhca_dev *dev);
int kdhca_dma_register(void);
void kdhca_dma_unregister(void);
int kdhca_copy(struct kdhca_spans *to, struct kdhca_spans *from, u32 length);

/* mr.c */
struct ib_mr *kdhca_get_dma_mr(struct ib_pd *ibpd, int access);
struct ib_mr *kdhca_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type, u32 max_pages);
int kdhca_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents, unsigned int *offset);
int kdhca_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);
int kdhca_mr_reg(struct kdhca_qp *qp, struct kdhca_wqe *wqe);
int kdhca_mr_invalidate(struct kdhca_qp *qp, u32 key, bool remote);
int kdhca_span_get(struct kdhca_span *span, struct ib_pd *pd, u32 key, u64 addr, u32 length,
		   int access);
int kdhca_spans_get(struct kdhca_spans *spans, struct ib_pd *pd, const struct ib_sge *sge,
		    int n, int access);
void kdhca_spans_put(struct kdhca_spans *spans);
void kdhca_mrs_free(struct kdhca_dev *dev);
u64 kdhca_span_dma(const struct kdhca_span *span, u32 offset, u32 *run);

/* cq.c */
int kdhca_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr, void *unused);
int kdhca_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
int kdhca_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc);
int kdhca_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);
void kdhca_cq_push(struct kdhca_cq *cq, const struct kdhca_cqe *cqe, bool solicited);
void kdhca_cq_purge(struct kdhca_cq *cq, struct kdhca_qp *qp);
void kdhca_cq_error(struct kdhca_cq *cq);

/* srq.c */
int kdhca_rq_init(struct kdhca_rq *rq, u32 depth, u32 max_sge);
int kdhca_rq_post(struct kdhca_dev *dev, struct kdhca_rq *rq, const struct ib_recv_wr *wr,
		  const struct ib_recv_wr **bad);
bool kdhca_rq_take(struct kdhca_rq *rq, struct kdhca_rqe *rqe);
void kdhca_rq_reset(struct kdhca_rq *rq);
int kdhca_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *attr, struct ib_udata *udata);
int kdhca_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr, enum ib_srq_attr_mask mask,
		     struct ib_udata *udata);
int kdhca_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr);
int kdhca_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata);
int kdhca_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
			const struct ib_recv_wr **bad);

/* qp.c */
int kdhca_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *init, struct ib_udata *udata);
int kdhca_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata);
int kdhca_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		   struct ib_qp_init_attr *init);
int kdhca_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);
void kdhca_qp_error(struct kdhca_qp *qp);
void kdhca_qp_kick(struct kdhca_qp *qp);
struct kdhca_qp *kdhca_qp_get(u32 number);
void kdhca_qp_put(struct kdhca_qp *qp);
struct kdhca_qp *kdhca_qp_next(struct kdhca_dev *dev, u32 *number);
extern struct xarray kdhca_qps;

/* post.c */
/* What there is to know of a kind of request. */
struct kdhca_op {
	u8 wc;				/* opcode of its completion */
	u8 fence;			/* its bit in the setting "fence" */
	u8 on;				/* 1: RoCE has it, 2: iWARP, 3: both */
	bool remote;			/* it names memory of the peer */
};

const struct kdhca_op *kdhca_op(enum ib_wr_opcode opcode);
int kdhca_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		    const struct ib_send_wr **bad);
int kdhca_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		    const struct ib_recv_wr **bad);

/* engine.c */
void kdhca_engine(struct work_struct *work);

static inline bool kdhca_is_read(enum ib_wr_opcode opcode)
{
	return opcode == IB_WR_RDMA_READ || opcode == IB_WR_RDMA_READ_WITH_INV;
}

static inline struct kdhca_wqe *kdhca_wqe(struct kdhca_sq *sq, u32 index)
{
	return sq->ring + (index & sq->mask) * sq->stride;
}

/* responder.c: what arrives at the peer */
enum kdhca_answer {
	KDHCA_ACK,
	KDHCA_NOBODY,		/* no QP, or not in a state to answer */
	KDHCA_RNR,
	KDHCA_NAK,		/* wqe->status says how */
};

enum kdhca_answer kdhca_deliver(struct kdhca_qp *qp, struct kdhca_wqe *wqe);
enum kdhca_answer kdhca_read_ask(struct kdhca_qp *qp, struct kdhca_wqe *wqe);
enum kdhca_answer kdhca_read_answer(struct kdhca_qp *qp, struct kdhca_wqe *wqe);
bool kdhca_recv_take(struct kdhca_qp *qp, struct kdhca_rqe *rqe);
void kdhca_recv_done(struct kdhca_qp *qp, const struct kdhca_rqe *rqe, struct kdhca_cqe *cqe,
		     bool solicited);
void kdhca_flush_recvs(struct kdhca_qp *qp);

/* mad.c */
void kdhca_mad_send(struct kdhca_qp *qp, struct kdhca_wqe *wqe);

/* cm_iw.c */
void kdhca_iw_setup(struct ib_device *ibdev);
void kdhca_iw_break(struct kdhca_qp *qp);
void kdhca_iw_exit(void);

/* order.c: debugfs */
void kdhca_order_init(void);
void kdhca_order_exit(void);
void kdhca_order_add(struct kdhca_dev *dev);
void kdhca_order_remove(struct kdhca_dev *dev);

/* main.c */
int kdhca_dev_unplug(struct kdhca_dev *dev);
void kdhca_dev_hide(struct kdhca_dev *dev);
void kdhca_dev_gone(struct kdhca_dev *dev);
extern struct rdma_link_ops kdhca_link_ops;

#endif /* KDHCA_H */
