// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The fake RDMA device of the unit tests, see fake_ib.h.
 *
 * One spinlock guards everything of a device. Completion handlers are called
 * without it but with interrupts off, the worst context a real provider uses,
 * and a handler that polls or arms its queue there is counted as a violation.
 */
#include <linux/irqflags.h>
#include <linux/list.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>

#include "../ia/ia_api.h"
#include "fake_dma.h"
#include "fake_ib.h"

#define FAKE_IB_LID	1
#define FAKE_IB_MIN_LOG	64
#define FAKE_IB_TRACE	256
#define FAKE_IB_SRQ_SGE		4

struct fake_ib_fail {
	unsigned int nth;
	int err;
};

struct fake_ib_hook {
	unsigned int nth;
	void (*fn)(void *arg);
	void *arg;
};

struct fake_ib {
	struct ib_device ibdev;
	struct fake_ib_caps caps;
	struct workqueue_struct *wq;
	bool registered;
	struct fake_dma dma;

	spinlock_t lock;		/* everything below, and all queues */
	struct list_head cqs;
	struct list_head qps;
	struct list_head srqs;
	struct list_head mrs;
	unsigned int counts[FAKE_IB_NR_VERBS];
	struct fake_ib_fail fail[FAKE_IB_NR_VERBS];
	struct fake_ib_live live;
	bool set_lax_keys;
	enum ib_wc_status set_auto_reg_status;
	bool set_hold_flush;
	bool hold_irq;
	bool set_instant;
	bool set_frugal;
	bool no_path;
	struct fake_ib_hook hooks[FAKE_IB_MOMENTS];
	enum fake_ib_last_wqe set_last_wqe;
	enum fake_ib_taken set_taken;
	bool tracing;
	struct fake_ib_step trace[FAKE_IB_TRACE];
	unsigned int traced;
	u32 key_seq;
	atomic_t qp_seq;
	int violations;
	const char *last_violation;
	unsigned long flags;		/* interrupts, as they were before the lock was taken */
};

struct fake_pd {
	struct ib_pd ibpd;
};

/* A page list, and what it is called by once it is registered. */
struct fake_map {
	u64 *pages;
	u32 npages;
	u32 page_size;
	u64 offset;			/* of the first byte in the first page */
	u64 said;			/* the first address, as it was when mapping began */
	u64 iova;
	u64 length;
	int access;
	u8 key;
};

struct fake_mr {
	struct ib_mr ibmr;
	struct list_head node;
	struct fake_ib *fdev;
	bool dma;			/* the local DMA key of a PD */
	bool mapped;
	bool valid;
	bool registered;		/* at least once */
	bool posted;			/* since it was mapped last */
	u32 max_pages;
	u32 primed_pages;		/* the largest mapping there was */
	u32 primed_size;
	unsigned int maps;
	struct fake_map map;		/* as mapped last */
	struct fake_map live;		/* as registered last */
	unsigned int busy;		/* requests for it that have not come back */
	struct ib_qp *want_qp;		/* where the last of them was posted */
	bool want_valid;		/* and what it will make of the region */
	u8 want_key;
};

struct fake_cq {
	struct ib_cq ibcq;
	struct list_head node;
	struct ib_wc *wq;
	unsigned int vector;
	unsigned int size;
	unsigned int head;
	unsigned int tail;
	bool armed;
	bool armed_solicited;
	unsigned int solicited;		/* behind the last that is, or that failed */
	bool late;			/* its interrupt is held back */
	struct task_struct *in_handler;
};

struct fake_queue {
	struct fake_ib_wr *log;
	unsigned int log_size;		/* power of two, more than depth */
	unsigned int depth;
	unsigned int max_sge;
	unsigned int posted;
	unsigned int oldest;		/* no request before it is outstanding */
	unsigned int outstanding;
	unsigned int calls;
};

/* Requests posted to an SRQ; a queue pair takes one when its message begins. */
struct fake_srq {
	struct ib_srq ibsrq;
	struct list_head node;
	struct fake_ib *fdev;
	struct fake_queue q;
	unsigned int next;		/* the one to be taken next */
	unsigned int limit;
};

struct fake_qp {
	struct ib_qp ibqp;
	struct list_head node;
	struct fake_ib *fdev;
	struct fake_srq *srq;
	enum ib_qp_state state;
	struct ib_qp_cap cap;
	bool all_signaled;
	bool inward;			/* no remote access: a registration QP */
	struct fake_queue q[2];		/* [0] requests, [1] receives */
	struct work_struct work;
};

#define to_fdev(dev)	container_of(dev, struct fake_ib, ibdev)
#define to_fcq(cq)	container_of(cq, struct fake_cq, ibcq)
#define to_fqp(qp)	container_of(qp, struct fake_qp, ibqp)
#define to_fsrq(srq)	container_of(srq, struct fake_srq, ibsrq)
#define to_fmr(mr)	container_of(mr, struct fake_mr, ibmr)

static void fake_lock(struct fake_ib *fdev)
	__acquires(&fdev->lock)
{
	unsigned long flags;

	spin_lock_irqsave(&fdev->lock, flags);
	fdev->flags = flags;
}

static void fake_unlock(struct fake_ib *fdev)
	__releases(&fdev->lock)
{
	unsigned long flags = fdev->flags;

	spin_unlock_irqrestore(&fdev->lock, flags);
}

static void fake_violation(struct fake_ib *fdev, const char *what)
{
	lockdep_assert_held(&fdev->lock);
	fdev->violations++;
	fdev->last_violation = what;
}

static void fake_wrong_if(struct fake_ib *fdev, bool wrong, const char *what)
{
	if (wrong)
		fake_violation(fdev, what);
}

/* Count a verb; an error when a test has asked for one here. */
static int fake_verb_locked(struct fake_ib *fdev, enum fake_ib_verb verb, const void *obj,
			    int arg)
{
	int i;

	lockdep_assert_held(&fdev->lock);
	fdev->counts[verb]++;
	if (fdev->tracing && fdev->traced < FAKE_IB_TRACE)
		fdev->trace[fdev->traced++] = (struct fake_ib_step) {
			.verb = verb, .obj = obj, .arg = arg, .when = jiffies,
		};
	if (verb >= FAKE_IB_POLL_CQ)
		return 0;
	fdev->counts[FAKE_IB_ANY]++;
	for (i = 0; i < 2; i++) {
		struct fake_ib_fail *fail = &fdev->fail[i ? FAKE_IB_ANY : verb];

		if (fail->nth && --fail->nth == 0)
			return fail->err;
	}
	return 0;
}

/* Something that is to happen just now, if a test has asked for it. */
static void fake_moment(struct fake_ib *fdev, enum fake_ib_moment moment)
{
	struct fake_ib_hook *hook = &fdev->hooks[moment];
	void (*fn)(void *arg) = NULL;

	if (!READ_ONCE(hook->nth))
		return;
	fake_lock(fdev);
	if (hook->nth && --hook->nth == 0)
		fn = hook->fn;
	fake_unlock(fdev);
	if (fn)
		fn(hook->arg);
}

/*
 * A verb that may sleep and allocate, as drivers do even where something is destroyed: may
 * the caller do so? What work items do is part of reconnecting, so there no I/O may be
 * waited for; elsewhere a test says when.
 */
static void fake_allocates(struct fake_ib *fdev, const char *what)
{
	might_sleep();
	if ((current->flags & PF_MEMALLOC_NOIO) ||
	    !(READ_ONCE(fdev->set_frugal) || (current->flags & PF_WQ_WORKER)))
		return;
	fake_lock(fdev);
	fake_violation(fdev, what);
	fake_unlock(fdev);
}

/* A verb that makes an object: an error if that has to fail. */
static int fake_makes(struct fake_ib *fdev, enum fake_ib_verb verb, const void *obj,
		      const char *what)
{
	int err;

	fake_allocates(fdev, what);
	fake_lock(fdev);
	err = fake_verb_locked(fdev, verb, obj, 0);
	fake_unlock(fdev);
	return err;
}

/* It is there; or it is gone. A PD is in no list. */
static void fake_born(struct fake_ib *fdev, struct list_head *node, struct list_head *list,
		      int *live)
{
	fake_lock(fdev);
	if (node)
		list_add_tail(node, list);
	++*live;
	fake_unlock(fdev);
}

static void fake_gone(struct fake_ib *fdev, const void *obj, struct list_head *node, int *live)
{
	fake_lock(fdev);
	fake_verb_locked(fdev, FAKE_IB_DESTROY, obj, 0);
	if (node)
		list_del(node);
	--*live;
	fake_unlock(fdev);
}

/* Device and port */

static int fake_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
			     struct ib_udata *udata)
{
	struct fake_ib *fdev = to_fdev(ibdev);

	attr->device_cap_flags = IB_DEVICE_MEM_MGT_EXTENSIONS | IB_DEVICE_RC_RNR_NAK_GEN;
	attr->max_mr_size = ~0ULL;
	attr->page_size_cap = fdev->caps.page_sizes;
	attr->vendor_id = 0x6b64;
	attr->hw_ver = 1;
	attr->max_qp = fdev->caps.max_qp;
	attr->max_qp_wr = fdev->caps.max_qp_wr;
	attr->max_send_sge = fdev->caps.max_send_sge;
	attr->max_recv_sge = fdev->caps.max_recv_sge;
	attr->max_sge_rd = fdev->caps.max_sge_rd;
	attr->max_cq = fdev->caps.max_cq;
	attr->max_cqe = fdev->caps.max_cqe;
	attr->max_mr = 65536;
	attr->max_pd = 1024;
	attr->max_qp_rd_atom = fdev->caps.max_rd_atom;
	attr->max_qp_init_rd_atom = fdev->caps.max_init_rd_atom;
	attr->max_res_rd_atom = 65536;
	attr->max_fast_reg_page_list_len = fdev->caps.max_pages;
	attr->max_pkeys = 1;
	if (!fdev->caps.no_srq) {
		attr->max_srq = 64;
		attr->max_srq_wr = fdev->caps.max_srq_wr;
		attr->max_srq_sge = FAKE_IB_SRQ_SGE;
	}
	attr->local_ca_ack_delay = 15;
	return 0;
}

static int fake_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr)
{
	fake_moment(to_fdev(ibdev), FAKE_IB_QUERY_PORT);
	attr->state = IB_PORT_ACTIVE;
	attr->phys_state = IB_PORT_PHYS_STATE_LINK_UP;
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = IB_MTU_4096;
	attr->gid_tbl_len = 1;
	attr->pkey_tbl_len = 1;
	attr->max_msg_sz = READ_ONCE(to_fdev(ibdev)->caps.max_msg_sz);
	attr->lid = FAKE_IB_LID;
	attr->sm_lid = FAKE_IB_LID;
	attr->active_width = IB_WIDTH_4X;
	attr->active_speed = IB_SPEED_QDR;
	return 0;
}

static int fake_get_port_immutable(struct ib_device *ibdev, u32 port,
				   struct ib_port_immutable *immutable)
{
	immutable->gid_tbl_len = 1;
	immutable->pkey_tbl_len = 1;
	/* No MAD layer below the IB port: nothing here ever talks to a peer. */
	immutable->core_cap_flags = RDMA_CORE_CAP_PROT_IB;
	if (!container_of(ibdev, struct fake_ib, ibdev)->caps.no_cm)
		immutable->core_cap_flags |= RDMA_CORE_CAP_IB_CM;
	if (to_fdev(ibdev)->caps.grh)
		immutable->core_cap_flags |= RDMA_CORE_CAP_IB_GRH_REQUIRED;
	return 0;
}

static int fake_query_gid(struct ib_device *ibdev, u32 port, int index, union ib_gid *gid)
{
	gid->global.subnet_prefix = cpu_to_be64(0xfe80000000000000ULL);
	gid->global.interface_id = ibdev->node_guid;
	return 0;
}

static int fake_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey)
{
	*pkey = 0xffff;
	return 0;
}

/* Protection domains and memory regions */

static int fake_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct fake_ib *fdev = to_fdev(ibpd->device);
	int err = fake_makes(fdev, FAKE_IB_ALLOC_PD, ibpd, "alloc_pd without noio");

	if (!err)
		fake_born(fdev, NULL, NULL, &fdev->live.pds);
	return err;
}

static int fake_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct fake_ib *fdev = to_fdev(ibpd->device);

	fake_allocates(fdev, "dealloc_pd without noio");
	fake_moment(fdev, FAKE_IB_DESTROY_PD);
	fake_gone(fdev, ibpd, NULL, &fdev->live.pds);
	return 0;
}

static void fake_free_mr(struct fake_mr *mr)
{
	kvfree(mr->map.pages);
	kvfree(mr->live.pages);
	kfree(mr);
}

/* Keys are sparse. */
static struct fake_mr *fake_new_mr(struct fake_ib *fdev, struct ib_pd *ibpd, u32 max_pages)
{
	struct fake_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL);

	if (!mr)
		return NULL;
	mr->fdev = fdev;
	mr->dma = !max_pages;
	mr->max_pages = max_pages;
	if (max_pages) {
		mr->map.pages = kvcalloc(max_pages, sizeof(u64), GFP_KERNEL);
		mr->live.pages = kvcalloc(max_pages, sizeof(u64), GFP_KERNEL);
		if (!mr->map.pages || !mr->live.pages) {
			fake_free_mr(mr);
			return NULL;
		}
	}
	/* the core fills these in later; a registration may be validated before */
	mr->ibmr.device = ibpd->device;
	mr->ibmr.pd = ibpd;
	fake_lock(fdev);
	fdev->key_seq++;
	mr->ibmr.lkey = ((fdev->key_seq * 0x9e3779U) << 8 & 0x7fffff00U) | 0x01;
	mr->ibmr.rkey = mr->ibmr.lkey ^ (fdev->caps.split_keys ? 0x80000000U : 0);
	list_add_tail(&mr->node, &fdev->mrs);
	if (!mr->dma)
		fdev->live.mrs++;
	fake_unlock(fdev);
	return mr;
}

static struct ib_mr *fake_get_dma_mr(struct ib_pd *ibpd, int access)
{
	struct fake_ib *fdev = to_fdev(ibpd->device);
	int err = fake_makes(fdev, FAKE_IB_GET_DMA_MR, ibpd, "get_dma_mr without noio");
	struct fake_mr *mr;

	if (err)
		return ERR_PTR(err);
	mr = fake_new_mr(fdev, ibpd, 0);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->valid = true;
	mr->live.access = access;
	return &mr->ibmr;
}

static struct ib_mr *fake_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type, u32 max_pages)
{
	struct fake_ib *fdev = to_fdev(ibpd->device);
	int err = fake_makes(fdev, FAKE_IB_ALLOC_MR, ibpd, "alloc_mr without noio");
	struct fake_mr *mr;

	if (err)
		return ERR_PTR(err);
	if (type != IB_MR_TYPE_MEM_REG || !max_pages)
		return ERR_PTR(-EINVAL);
	if (max_pages > fdev->caps.max_pages)
		return ERR_PTR(-ENOMEM);
	mr = fake_new_mr(fdev, ibpd, max_pages);
	return mr ? &mr->ibmr : ERR_PTR(-ENOMEM);
}

static int fake_set_page(struct ib_mr *ibmr, u64 addr)
{
	struct fake_mr *mr = to_fmr(ibmr);

	if (mr->map.npages == mr->max_pages)
		return -ENOMEM;
	mr->map.pages[mr->map.npages++] = addr;
	return 0;
}

/*
 * A mapping larger than all before it, in number or size of pages, needs memory,
 * as on soft-RoCE, and may thus sleep.
 */
static void fake_map_grows(struct fake_mr *mr, bool atomic)
{
	if (mr->fdev->ibdev.ops.driver_id != RDMA_DRIVER_RXE ||
	    (mr->map.npages <= mr->primed_pages && mr->map.page_size <= mr->primed_size))
		return;
	if (atomic)
		fake_violation(mr->fdev, "mapping that may sleep where nobody may");
	mr->primed_pages = max(mr->primed_pages, mr->map.npages);
	mr->primed_size = max(mr->primed_size, mr->map.page_size);
}

static int fake_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents,
			  unsigned int *offset)
{
	bool atomic = irqs_disabled() || in_interrupt();
	struct fake_mr *mr = to_fmr(ibmr);
	struct fake_ib *fdev = mr->fdev;
	int ret;

	fake_moment(fdev, FAKE_IB_MAPPING);
	fake_lock(fdev);
	ret = fake_verb_locked(fdev, FAKE_IB_MAP_MR_SG, ibmr, nents);
	if (ret)
		goto out;
	fake_wrong_if(fdev, mr->valid, "mapping of a region still in use");
	fake_wrong_if(fdev, mr->busy, "mapping of a region with a request under way");
	if (!is_power_of_2(ibmr->page_size) || !(ibmr->page_size & fdev->caps.page_sizes))
		fake_violation(fdev, "mapping by a page size the device does not have");
	mr->map.npages = 0;
	mr->map.said = ibmr->iova;
	mr->map.page_size = ibmr->page_size;
	ret = ib_sg_to_pages(ibmr, sg, nents, offset, fake_set_page);
	mr->map.offset = ibmr->iova & (ibmr->page_size - 1);
	mr->map.length = ibmr->length;
	mr->mapped = ret == nents;
	mr->posted = false;
	mr->maps++;
	fake_map_grows(mr, atomic);
out:
	fake_unlock(fdev);
	return ret;
}

static int fake_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata)
{
	struct fake_mr *mr = to_fmr(ibmr);
	struct fake_ib *fdev = mr->fdev;

	fake_allocates(fdev, "dereg_mr without noio");
	fake_moment(fdev, FAKE_IB_DESTROY_MR);
	fake_lock(fdev);
	fake_verb_locked(fdev, FAKE_IB_DESTROY, ibmr, 0);
	fake_wrong_if(fdev, mr->busy, "region destroyed with a request under way");
	list_del(&mr->node);
	if (!mr->dma)
		fdev->live.mrs--;
	fake_unlock(fdev);
	fake_free_mr(mr);
	return 0;
}

static struct ib_mr *fake_no_user_mr(void)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static bool fake_is_rxe(const struct fake_ib *fdev)
{
	return fdev->ibdev.ops.driver_id == RDMA_DRIVER_RXE;
}

static struct fake_mr *fake_mr_by(struct fake_ib *fdev, u32 key, bool remote)
{
	struct fake_mr *mr;

	lockdep_assert_held(&fdev->lock);
	list_for_each_entry(mr, &fdev->mrs, node) {
		if (!((key ^ (remote ? mr->ibmr.rkey : mr->ibmr.lkey)) & ~0xffU))
			return mr;
	}
	return NULL;
}

static bool fake_mr_exists(struct fake_ib *fdev, const struct fake_mr *wanted)
{
	struct fake_mr *mr;

	lockdep_assert_held(&fdev->lock);
	list_for_each_entry(mr, &fdev->mrs, node) {
		if (mr == wanted)
			return true;
	}
	return false;
}

static bool fake_inside(u64 start, u64 size, u64 addr, u64 length)
{
	return length <= size && addr - start <= size - length;
}

/*
 * May a request posted on @qp (or an SRQ) name this memory? What was posted
 * before it on the same QP will be done by then.
 */
static bool fake_lkey_ok(struct fake_ib *fdev, struct ib_pd *ibpd, struct ib_qp *qp,
			 const struct ib_sge *sge)
{
	struct fake_mr *mr;
	bool ahead;

	mr = fake_mr_by(fdev, sge->lkey, false);
	if (!mr || mr->ibmr.pd != ibpd)
		return false;
	if (mr->dma)
		return sge->lkey == mr->ibmr.lkey;
	ahead = mr->busy && (!qp || mr->want_qp == qp);
	if (mr->valid && (u8)sge->lkey == mr->live.key && !(ahead && qp && !mr->want_valid))
		return fake_inside(mr->live.iova, mr->live.length, sge->addr, sge->length);
	return ahead && mr->want_valid && (u8)sge->lkey == mr->want_key &&
	       fake_inside(mr->map.iova, mr->map.length, sge->addr, sge->length);
}

/* Completion queues */

/*
 * The third parameter changed its type between kernels (user data, then an
 * attribute bundle); neither is looked at.
 */
static int fake_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr, void *unused)
{
	struct fake_ib *fdev = to_fdev(ibcq->device);
	struct fake_cq *cq = to_fcq(ibcq);
	int err = fake_makes(fdev, FAKE_IB_CREATE_CQ, ibcq, "create_cq without noio");

	if (err)
		return err;
	if (!attr->cqe || attr->cqe > fdev->caps.max_cqe ||
	    attr->comp_vector >= ibcq->device->num_comp_vectors)
		return -EINVAL;
	if (READ_ONCE(fdev->live.cqs) >= fdev->caps.max_cq)
		return -ENOMEM;
	cq->wq = kvcalloc(attr->cqe, sizeof(*cq->wq), GFP_KERNEL);
	if (!cq->wq)
		return -ENOMEM;
	cq->size = attr->cqe;
	cq->vector = attr->comp_vector;
	ibcq->cqe = attr->cqe;
	fake_born(fdev, &cq->node, &fdev->cqs, &fdev->live.cqs);
	return 0;
}

static int fake_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct fake_ib *fdev = to_fdev(ibcq->device);

	fake_allocates(fdev, "destroy_cq without noio");
	fake_moment(fdev, FAKE_IB_DESTROY_CQ);
	fake_gone(fdev, ibcq, &to_fcq(ibcq)->node, &fdev->live.cqs);
	kvfree(to_fcq(ibcq)->wq);
	return 0;
}

static void fake_check_handler(struct fake_ib *fdev, struct fake_cq *cq)
{
	fake_wrong_if(fdev, cq->in_handler == current && irqs_disabled(),
		      "completion queue used inside its own handler");
}

static int fake_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc)
{
	struct fake_ib *fdev = to_fdev(ibcq->device);
	struct fake_cq *cq = to_fcq(ibcq);
	int n;

	fake_check_handler(fdev, cq);
	fake_lock(fdev);
	for (n = 0; n < num && cq->tail != cq->head; n++)
		wc[n] = cq->wq[cq->tail++ % cq->size];
	fake_verb_locked(fdev, FAKE_IB_POLL_CQ, ibcq, n);
	fake_unlock(fdev);
	if (!n)
		fake_moment(fdev, FAKE_IB_FOUND_EMPTY);
	return n;
}

static void fake_call_handler(struct fake_cq *cq)
{
	struct ib_cq *ibcq = &cq->ibcq;
	unsigned long flags;

	local_irq_save(flags);
	cq->in_handler = current;
	ibcq->comp_handler(ibcq, ibcq->cq_context);
	cq->in_handler = NULL;
	local_irq_restore(flags);
}

static int fake_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags notify)
{
	struct fake_ib *fdev = to_fdev(ibcq->device);
	struct fake_cq *cq = to_fcq(ibcq);
	bool raise = false;
	int missed;

	fake_check_handler(fdev, cq);
	fake_moment(fdev, FAKE_IB_BEFORE_ARM);
	fake_lock(fdev);
	fake_verb_locked(fdev, FAKE_IB_NOTIFY_CQ, ibcq, notify);
	cq->armed = true;
	cq->armed_solicited = (notify & IB_CQ_SOLICITED_MASK) == IB_CQ_SOLICITED;
	missed = (notify & IB_CQ_REPORT_MISSED_EVENTS) && cq->tail != cq->head;
	if (fdev->caps.raises) {
		missed = 0;
		raise = (int)((cq->armed_solicited ? cq->solicited : cq->head) - cq->tail) > 0;
		cq->armed = !raise;
		cq->late |= raise && fdev->hold_irq;
		raise &= !fdev->hold_irq;
	}
	fake_unlock(fdev);
	if (raise)
		fake_call_handler(cq);
	fake_moment(fdev, FAKE_IB_AFTER_ARM);
	return missed;
}

/* Queue one work completion; true when the handler is to be called. */
static bool fake_push(struct fake_ib *fdev, struct fake_cq *cq, const struct ib_wc *wc,
		      bool solicited)
{
	lockdep_assert_held(&fdev->lock);
	if (cq->head - cq->tail == cq->size) {
		fake_violation(fdev, "completion queue overrun");
		return false;
	}
	cq->wq[cq->head++ % cq->size] = *wc;
	if (solicited || wc->status != IB_WC_SUCCESS)
		cq->solicited = cq->head;
	if (!cq->armed)
		return false;
	if (cq->armed_solicited && !solicited && wc->status == IB_WC_SUCCESS)
		return false;
	cq->armed = false;
	cq->late |= fdev->hold_irq;
	return !fdev->hold_irq;
}

/* Queue pairs */

static enum ib_wc_opcode fake_wc_opcode(const struct fake_ib_wr *wr)
{
	if (wr->recv)
		return IB_WC_RECV;
	switch (wr->opcode) {
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		return IB_WC_RDMA_WRITE;
	case IB_WR_RDMA_READ:
	case IB_WR_RDMA_READ_WITH_INV:
		return IB_WC_RDMA_READ;
	case IB_WR_LOCAL_INV:
		return IB_WC_LOCAL_INV;
	case IB_WR_REG_MR:
		return IB_WC_REG_MR;
	default:
		return IB_WC_SEND;
	}
}

/* A request for a region is posted: what is wrong with it? */
static void fake_want_reg(struct fake_qp *qp, struct fake_ib_wr *rec, const struct ib_reg_wr *reg)
{
	struct fake_ib *fdev = qp->fdev;
	struct fake_mr *mr = to_fmr(reg->mr);

	rec->mr = reg->mr;
	rec->rkey = reg->key;
	rec->access = reg->access;
	rec->remote_addr = reg->mr->iova;
	rec->page_size = mr->map.page_size;
	rec->npages = mr->map.npages;
	memcpy(rec->pages, mr->map.pages,
	       min_t(u32, mr->map.npages, FAKE_IB_WR_PAGES) * sizeof(u64));
	fake_wrong_if(fdev, !mr->mapped, "registration of a region that is not mapped");
	/* a driver may change the list for its device (cxgb4) */
	fake_wrong_if(fdev, mr->posted, "registration of a list that was posted before");
	fake_wrong_if(fdev, mr->busy ? mr->want_valid || mr->want_qp != &qp->ibqp : mr->valid,
		      "registration of a region still in use");
	fake_wrong_if(fdev, reg->key != reg->mr->rkey && reg->key != reg->mr->lkey,
		      "registration with a foreign key");
	fake_wrong_if(fdev, mr->registered && (u8)reg->key == mr->live.key,
		      "registration with the key of the last one");
	fake_wrong_if(fdev, reg->mr->pd != qp->ibqp.pd, "registration across protection domains");
	fake_wrong_if(fdev, !reg->mr->length, "registration of an empty region");
	fake_wrong_if(fdev, reg->mr->iova != mr->map.said, "first address changed after mapping");
	fake_wrong_if(fdev, (reg->mr->iova ^ mr->map.offset) & (mr->map.page_size - 1),
		      "first address does not fit into the first page");
	if ((reg->access & (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_LOCAL_WRITE)) ==
	    IB_ACCESS_REMOTE_WRITE)
		fake_violation(fdev, "remote without local write access");
	mr->map.iova = reg->mr->iova;
	mr->map.access = reg->access;
	mr->map.key = reg->key;
}

static void fake_want_inv(struct fake_qp *qp, struct fake_ib_wr *rec)
{
	struct fake_mr *mr = fake_mr_by(qp->fdev, rec->rkey, true);
	struct fake_ib *fdev = qp->fdev;
	bool ahead;

	if (!mr || mr->dma) {
		fake_violation(fdev, "invalidation of an unknown key");
		return;
	}
	/* it fences, and invalidates nothing (D-83): nobody hears of it */
	if (fake_is_rxe(fdev) && !mr->registered && !(rec->send_flags & IB_SEND_SIGNALED))
		return;
	rec->mr = &mr->ibmr;
	ahead = mr->busy && mr->want_qp == &qp->ibqp;
	if ((u8)rec->rkey != (ahead && mr->want_valid ? mr->want_key : mr->live.key))
		fake_violation(fdev, "invalidation of a key that is not the live one");
	fake_wrong_if(fdev, mr->busy && !mr->want_valid, "invalidation with another one under way");
}

/* It has been accepted. */
static void fake_wanted(struct fake_qp *qp, const struct fake_ib_wr *rec)
{
	struct fake_mr *mr;

	if (!rec->mr)
		return;
	mr = to_fmr(rec->mr);
	mr->busy++;
	mr->want_qp = &qp->ibqp;
	mr->want_valid = rec->opcode == IB_WR_REG_MR;
	mr->want_key = rec->rkey;
	mr->posted |= mr->want_valid;
}

static void fake_execute_reg(struct fake_mr *mr, const struct fake_ib_wr *wr)
{
	u64 *pages = mr->live.pages;

	if (mr->valid)
		fake_violation(mr->fdev, "region registered while it was valid");
	mr->live = mr->map;
	mr->live.pages = pages;
	memcpy(pages, mr->map.pages, mr->map.npages * sizeof(u64));
	mr->live.key = wr->rkey;
	mr->valid = true;
	mr->registered = true;
}

/* What a memory operation does to its region when it has come back. */
static void fake_execute(struct fake_ib *fdev, const struct fake_ib_wr *wr, bool done)
{
	struct fake_mr *mr;

	if (!wr->mr)
		return;
	mr = to_fmr(wr->mr);
	if (!fake_mr_exists(fdev, mr))
		return;
	mr->busy--;
	if (!done)
		return;
	if (wr->opcode == IB_WR_REG_MR) {
		fake_execute_reg(mr, wr);
	} else {
		fake_wrong_if(fdev, mr->live.key != (u8)wr->rkey,
			      "another key than the live one was invalidated");
		mr->valid = false;
	}
}

/* What a Send with Invalidate does at the peer: only to the very key. */
static void fake_peer_inv(struct fake_ib *fdev, u32 rkey)
{
	struct fake_mr *mr = fake_mr_by(fdev, rkey, true);

	if (mr && !mr->dma && mr->live.key == (u8)rkey)
		mr->valid = false;
}

static struct fake_ib_wr *fake_slot(struct fake_queue *q, unsigned int seq)
{
	return &q->log[seq & (q->log_size - 1)];
}

/* How a request ends. */
struct fake_end {
	enum ib_wc_status status;
	u32 byte_len;			/* of a Receive; U32_MAX: all of it */
	bool solicited;
	u32 inv_rkey;			/* the key that the message invalidates, or 0 */
	u32 immed;			/* its immediate data, if @brings */
	bool brings;
	bool write;			/* it is a Write */
	bool other;
	struct ib_qp *name;		/* whose completion it then says it is */
};

static void fake_slot_done(struct fake_queue *q, struct fake_ib_wr *wr)
{
	wr->done = true;
	q->outstanding--;
	while (q->oldest != q->posted && fake_slot(q, q->oldest)->done)
		q->oldest++;
}

/*
 * Finish one recorded request; whether the handler of its CQ is to be called. Fields that the
 * verbs contract leaves undefined are filled with rubbish, so that nobody comes to rely on them.
 */
static bool fake_finish_wr(struct fake_qp *qp, struct fake_queue *q, struct fake_ib_wr *wr,
			   const struct fake_end *end, struct fake_cq *cq)
{
	struct fake_ib *fdev = qp->fdev;
	bool ok = end->status == IB_WC_SUCCESS;
	struct ib_wc wc;

	lockdep_assert_held(&fdev->lock);
	fake_slot_done(q, wr);
	if (!wr->recv)
		fake_execute(fdev, wr, ok);
	if (end->inv_rkey)
		fake_peer_inv(fdev, end->inv_rkey);
	if (ok && !wr->recv && !(wr->send_flags & IB_SEND_SIGNALED) && !qp->all_signaled)
		return false;
	memset(&wc, 0xa5, sizeof(wc));
	wc.wr_cqe = wr->cqe;
	wc.qp = end->other ? end->name : &qp->ibqp;
	wc.status = end->status;
	wc.wc_flags = 0;
	wc.vendor_err = 0;
	wc.opcode = ok ? fake_wc_opcode(wr) : 0;
	if (!ok)
		wc.byte_len = 0;
	else if (wr->recv)
		wc.byte_len = end->byte_len == U32_MAX ? wr->length : end->byte_len;
	if (end->inv_rkey) {
		wc.wc_flags = IB_WC_WITH_INVALIDATE;
		wc.ex.invalidate_rkey = end->inv_rkey;
	} else if (end->brings) {
		wc.wc_flags = IB_WC_WITH_IMM;
		wc.ex.imm_data = cpu_to_be32(end->immed);
		if (end->write)
			wc.opcode = IB_WC_RECV_RDMA_WITH_IMM;
	}
	return fake_push(fdev, cq, &wc, end->solicited);
}

/* Finish request @seq of a queue of the QP, or of its SRQ, and call the handler if it is armed. */
static int fake_finish(struct fake_qp *qp, struct fake_queue *q, unsigned int seq,
		       const struct fake_end *end)
{
	bool of_srq = qp->srq && q == &qp->srq->q;
	struct fake_cq *cq = to_fcq(q == &qp->q[0] ? qp->ibqp.send_cq : qp->ibqp.recv_cq);
	bool call = false;
	int err = -ENOENT;
	unsigned int last;

	fake_lock(qp->fdev);
	last = of_srq ? qp->srq->next : q->posted;
	if (seq - q->oldest < last - q->oldest && !fake_slot(q, seq)->done) {
		call = fake_finish_wr(qp, q, fake_slot(q, seq), end, cq);
		err = 0;
	}
	fake_unlock(qp->fdev);
	if (call)
		fake_call_handler(cq);
	return err;
}

void fake_ib_srq_event(struct ib_srq *srq, enum ib_event_type type)
{
	struct ib_event event = { .device = srq->device, .element.srq = srq, .event = type };
	unsigned long flags;

	local_irq_save(flags);
	if (srq->event_handler)
		srq->event_handler(&event, srq->srq_context);
	local_irq_restore(flags);
}

int fake_ib_srq_take(struct ib_qp *ibqp)
{
	struct fake_qp *qp = to_fqp(ibqp);
	struct fake_srq *srq = qp->srq;
	bool limit = false;
	int seq = -ENOENT;

	fake_lock(qp->fdev);
	if (srq->next != srq->q.posted) {
		seq = srq->next++;
		fake_slot(&srq->q, seq)->taken_by = &qp->ibqp;
		if (srq->q.posted - srq->next < srq->limit) {
			srq->limit = 0;
			limit = true;
		}
	}
	fake_unlock(qp->fdev);
	if (limit)
		fake_ib_srq_event(&srq->ibsrq, IB_EVENT_SRQ_LIMIT_REACHED);
	return seq;
}

static const struct fake_end fake_flushed = { .status = IB_WC_WR_FLUSH_ERR, .solicited = true };

/* What @qp took from its SRQ comes back flushed, or not at all. */
static void fake_srq_flush(struct fake_qp *qp, bool lose)
{
	struct fake_queue *q = &qp->srq->q;
	struct fake_ib *fdev = qp->fdev;
	struct fake_ib_wr *wr;
	unsigned int seq;
	bool mine;

	for (seq = READ_ONCE(q->oldest); seq != READ_ONCE(qp->srq->next); seq++) {
		fake_lock(fdev);
		wr = fake_slot(q, seq);
		mine = wr->taken_by == &qp->ibqp && !wr->done;
		if (mine && lose)
			fake_slot_done(q, wr);
		fake_unlock(fdev);
		if (mine && !lose)
			fake_finish(qp, q, seq, &fake_flushed);
	}
}

static void fake_flush_queue(struct fake_qp *qp, bool recv)
{
	struct fake_queue *q = &qp->q[recv];
	unsigned int seq;

	if (recv && qp->srq) {
		if (READ_ONCE(qp->fdev->set_taken) == FAKE_IB_TAKEN_FLUSHED)
			fake_srq_flush(qp, false);
		return;
	}
	for (seq = READ_ONCE(q->oldest); seq != READ_ONCE(q->posted); seq++)
		fake_finish(qp, q, seq, &fake_flushed);
}

/* Complete on our own what no test has to look after. */
static void fake_qp_work(struct work_struct *work)
{
	struct fake_qp *qp = container_of(work, struct fake_qp, work);
	struct fake_ib *fdev = qp->fdev;
	struct fake_queue *q = &qp->q[0];
	struct fake_end end = {};

	if (READ_ONCE(qp->state) == IB_QPS_ERR) {
		if (!READ_ONCE(fdev->set_hold_flush))
			fake_ib_flush(&qp->ibqp);
		return;
	}
	while (READ_ONCE(qp->inward)) {
		unsigned int seq = READ_ONCE(q->oldest);
		struct fake_ib_wr *wr = fake_slot(q, seq);

		if (seq == READ_ONCE(q->posted))
			break;
		if (wr->opcode != IB_WR_REG_MR && wr->opcode != IB_WR_LOCAL_INV)
			break;
		end.status = READ_ONCE(fdev->set_auto_reg_status);
		if (fake_finish(qp, q, seq, &end))
			break;
	}
}

static int fake_alloc_queue(struct fake_queue *q, unsigned int depth, unsigned int max_sge)
{
	q->depth = depth;
	q->max_sge = max_sge;
	q->log_size = roundup_pow_of_two(max(2 * depth, (unsigned int)FAKE_IB_MIN_LOG));
	q->log = kvcalloc(q->log_size, sizeof(*q->log), GFP_KERNEL);
	return q->log ? 0 : -ENOMEM;
}

static int fake_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr,
			  struct ib_udata *udata)
{
	struct fake_ib *fdev = to_fdev(ibqp->device);
	struct fake_qp *qp = to_fqp(ibqp);
	const struct ib_qp_cap *cap = &attr->cap;
	int err = fake_makes(fdev, FAKE_IB_CREATE_QP, ibqp, "create_qp without noio");

	if (err)
		return err;
	if (READ_ONCE(fdev->live.qps) >= fdev->caps.max_qp)
		return -ENOMEM;
	if (attr->qp_type != IB_QPT_RC ||
	    cap->max_send_wr > fdev->caps.max_qp_wr ||
	    cap->max_recv_wr > fdev->caps.max_qp_wr ||
	    cap->max_send_sge > fdev->caps.max_send_sge ||
	    cap->max_recv_sge > fdev->caps.max_recv_sge)
		return -EINVAL;
	if (fdev->caps.sq_bytes && cap->max_send_wr * ALIGN(132 + 16 * cap->max_send_sge, 64) >
				   fdev->caps.sq_bytes)
		return -ENOMEM;
	err = fake_alloc_queue(&qp->q[0], cap->max_send_wr, cap->max_send_sge);
	if (err)
		return err;
	if (attr->srq)
		qp->srq = to_fsrq(attr->srq);
	err = fake_alloc_queue(&qp->q[1], qp->srq ? 0 : cap->max_recv_wr, cap->max_recv_sge);
	if (err) {
		kvfree(qp->q[0].log);
		return err;
	}
	qp->fdev = fdev;
	qp->state = IB_QPS_RESET;
	qp->cap = *cap;
	qp->all_signaled = attr->sq_sig_type == IB_SIGNAL_ALL_WR;
	INIT_WORK(&qp->work, fake_qp_work);
	ibqp->qp_num = atomic_inc_return(&fdev->qp_seq);
	fake_born(fdev, &qp->node, &fdev->qps, &fdev->live.qps);
	return 0;
}

static int fake_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct fake_qp *qp = to_fqp(ibqp);
	struct fake_ib *fdev = qp->fdev;
	unsigned int seq;

	fake_allocates(fdev, "destroy_qp without noio");
	fake_moment(fdev, FAKE_IB_DESTROY_QP);
	/* some devices flush late, into a CQ that outlives the QP */
	if (qp->srq)
		fake_srq_flush(qp, READ_ONCE(fdev->set_taken) != FAKE_IB_TAKEN_AT_DESTROY);
	fake_lock(fdev);
	fake_verb_locked(fdev, FAKE_IB_DESTROY, ibqp, 0);
	list_del(&qp->node);
	fdev->live.qps--;
	/* what it still has will never be carried out */
	for (seq = qp->q[0].oldest; seq != qp->q[0].posted; seq++) {
		struct fake_ib_wr *wr = fake_slot(&qp->q[0], seq);

		if (!wr->done)
			fake_execute(fdev, wr, false);
	}
	fake_unlock(fdev);
	cancel_work_sync(&qp->work);
	kvfree(qp->q[0].log);
	kvfree(qp->q[1].log);
	return 0;
}

static int fake_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
			  struct ib_udata *udata)
{
	struct fake_qp *qp = to_fqp(ibqp);
	struct fake_ib *fdev = qp->fdev;
	int err;

	fake_allocates(fdev, "modify_qp without noio");
	if ((mask & IB_QP_STATE) && attr->qp_state == IB_QPS_ERR)
		fake_moment(fdev, FAKE_IB_TO_ERR);
	fake_lock(fdev);
	err = fake_verb_locked(fdev, FAKE_IB_MODIFY_QP, ibqp, attr->qp_state);
	if (!err && (mask & IB_QP_STATE)) {
		enum ib_qp_state cur = mask & IB_QP_CUR_STATE ? attr->cur_qp_state : qp->state;

		if (!fdev->caps.iwarp &&
		    !ib_modify_qp_is_ok(cur, attr->qp_state, ibqp->qp_type, mask)) {
			fake_violation(fdev, "illegal QP transition");
			err = -EINVAL;
		} else if (fdev->caps.no_self && attr->qp_state == IB_QPS_RTR &&
			   (mask & IB_QP_DEST_QPN) && attr->dest_qp_num == ibqp->qp_num) {
			err = -EINVAL;
		} else if (fdev->no_path && (mask & IB_QP_AV)) {
			err = -EINVAL;
		} else {
			qp->state = attr->qp_state;
		}
	}
	if (!err && (mask & IB_QP_ACCESS_FLAGS))
		qp->inward = !attr->qp_access_flags;
	fake_unlock(fdev);
	if (!err && (mask & IB_QP_STATE) && attr->qp_state == IB_QPS_ERR && !fdev->set_hold_flush) {
		fake_ib_flush(ibqp);
		if (qp->srq && READ_ONCE(fdev->set_last_wqe) == FAKE_IB_LAST_WQE_AT_ERR)
			fake_ib_qp_event(ibqp, IB_EVENT_QP_LAST_WQE_REACHED);
	}
	return err;
}

/* Shared receive queues */

static int fake_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *attr,
			   struct ib_udata *udata)
{
	struct fake_ib *fdev = to_fdev(ibsrq->device);
	struct fake_srq *srq = to_fsrq(ibsrq);
	int err = fake_makes(fdev, FAKE_IB_CREATE_SRQ, ibsrq, "create_srq without noio");
	/* this driver refuses what it says is the largest size */
	bool less = fdev->ibdev.ops.driver_id == RDMA_DRIVER_BNXT_RE;

	if (err)
		return err;
	if (attr->srq_type != IB_SRQT_BASIC || !attr->attr.max_wr ||
	    attr->attr.max_wr + less > fdev->caps.max_srq_wr ||
	    attr->attr.max_sge > FAKE_IB_SRQ_SGE)
		return -EINVAL;
	err = fake_alloc_queue(&srq->q, attr->attr.max_wr, attr->attr.max_sge);
	if (err)
		return err;
	srq->fdev = fdev;
	srq->limit = attr->attr.srq_limit;
	fake_born(fdev, &srq->node, &fdev->srqs, &fdev->live.srqs);
	return 0;
}

static int fake_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct fake_srq *srq = to_fsrq(ibsrq);
	struct fake_ib *fdev = srq->fdev;

	fake_allocates(fdev, "destroy_srq without noio");
	fake_moment(fdev, FAKE_IB_DESTROY_SRQ);
	fake_gone(fdev, ibsrq, &srq->node, &fdev->live.srqs);
	kvfree(srq->q.log);
	return 0;
}

static int fake_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
			   enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	struct fake_srq *srq = to_fsrq(ibsrq);
	struct fake_ib *fdev = srq->fdev;
	int err;

	fake_lock(fdev);
	err = fake_verb_locked(fdev, FAKE_IB_MODIFY_SRQ, ibsrq, mask);
	if (!err && (mask & IB_SRQ_MAX_WR))
		err = -EOPNOTSUPP;	/* as soft-iWARP and others */
	if (!err && (mask & IB_SRQ_LIMIT)) {
		if (attr->srq_limit > srq->q.depth)
			err = -EINVAL;
		else
			srq->limit = attr->srq_limit;
	}
	fake_unlock(fdev);
	return err;
}

static int fake_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	struct fake_srq *srq = to_fsrq(ibsrq);

	attr->max_wr = srq->q.depth;
	attr->max_sge = srq->q.max_sge;
	attr->srq_limit = READ_ONCE(srq->limit);
	return 0;
}

static int fake_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
			 struct ib_qp_init_attr *init_attr)
{
	struct fake_qp *qp = to_fqp(ibqp);

	attr->qp_state = READ_ONCE(qp->state);
	attr->cur_qp_state = attr->qp_state;
	attr->cap = qp->cap;
	init_attr->cap = qp->cap;
	return 0;
}

/* Checks common to both queues; records the segments. */
static int fake_record(struct fake_ib *fdev, struct ib_pd *pd, struct ib_qp *qp,
		       struct fake_ib_wr *wr, const struct ib_sge *sgl, int num_sge,
		       unsigned int max_sge)
{
	int i;

	if (num_sge < 0 || num_sge > max_sge || num_sge > FAKE_IB_MAX_SGE) {
		fake_violation(fdev, "too many segments");
		return -EINVAL;
	}
	wr->num_sge = num_sge;
	/* irdma looks at the first segment if there is a list, without the count */
	fake_wrong_if(fdev, !num_sge && sgl, "a list without segments that is not NULL");
	for (i = 0; i < num_sge; i++) {
		wr->sge[i] = sgl[i];
		wr->length += sgl[i].length;
		if (!sgl[i].length) {
			/* a Read has exactly one on iWARP, also when it is empty */
			if (!fdev->caps.iwarp || wr->opcode != IB_WR_RDMA_READ || wr->recv)
				fake_violation(fdev, "empty segment handed to the device");
		} else if (!fdev->set_lax_keys && !fake_lkey_ok(fdev, pd, qp, &sgl[i])) {
			fake_violation(fdev, "segment outside any valid region of the PD");
		}
	}
	return 0;
}

static struct fake_ib_wr *fake_claim(struct fake_ib *fdev, struct fake_queue *q, bool recv,
				     unsigned int call, unsigned int pos)
{
	struct fake_ib_wr *wr;

	if (q->outstanding == q->depth) {
		fake_violation(fdev, recv ? "receive queue overrun" : "send queue overrun");
		return NULL;
	}
	/* a request of an SRQ that a QP keeps for long fills the log: "no memory" */
	if (q->posted - q->oldest == q->log_size)
		return NULL;
	wr = fake_slot(q, q->posted);
	memset(wr, 0, sizeof(*wr));
	wr->seq = q->posted;
	wr->call = call;
	wr->pos = pos;
	wr->recv = recv;
	return wr;
}

static int fake_record_send(struct fake_qp *qp, struct fake_ib_wr *rec,
			    const struct ib_send_wr *wr)
{
	struct fake_ib *fdev = qp->fdev;
	struct fake_queue *q = &qp->q[0];
	unsigned int max_sge = q->max_sge;
	int err;

	rec->opcode = wr->opcode;
	rec->send_flags = wr->send_flags;
	rec->cqe = wr->wr_cqe;
	fake_wrong_if(fdev, !wr->wr_cqe, "request without completion entry");
	fake_wrong_if(fdev, fdev->caps.iwarp && wr->opcode == IB_WR_RDMA_WRITE_WITH_IMM,
		      "immediate data on iWARP");
	fake_wrong_if(fdev, fake_is_rxe(fdev) && (wr->send_flags & IB_SEND_FENCE),
		      "a fence that soft-RoCE may never pass");
	if ((fdev->caps.unfenced & BIT_ULL(wr->opcode)) && (wr->send_flags & IB_SEND_FENCE))
		fake_violation(fdev, "a fence that the device does not honour");
	switch (wr->opcode) {
	case IB_WR_RDMA_READ:
	case IB_WR_RDMA_READ_WITH_INV:
		max_sge = min_t(unsigned int, max_sge, fdev->caps.max_sge_rd);
		if (fdev->caps.iwarp && wr->num_sge != 1) {
			fake_violation(fdev, "iWARP read without exactly one segment");
			return -EINVAL;
		}
		if (fdev->caps.iwarp && (wr->send_flags & IB_SEND_FENCE)) {
			fake_violation(fdev, "fence on an iWARP read");
			return -EINVAL;
		}
		fallthrough;
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		rec->remote_addr = rdma_wr(wr)->remote_addr;
		rec->rkey = rdma_wr(wr)->rkey;
		rec->immed = be32_to_cpu(wr->ex.imm_data);
		break;
	case IB_WR_SEND:
		break;
	case IB_WR_SEND_WITH_INV:
		rec->rkey = wr->ex.invalidate_rkey;
		break;
	case IB_WR_LOCAL_INV:
		rec->rkey = wr->ex.invalidate_rkey;
		fake_want_inv(qp, rec);
		break;
	case IB_WR_REG_MR:
		fake_want_reg(qp, rec, reg_wr(wr));
		break;
	default:
		fake_violation(fdev, "unknown opcode");
		return -EINVAL;
	}
	err = fake_record(fdev, qp->ibqp.pd, &qp->ibqp, rec, wr->sg_list, wr->num_sge, max_sge);
	if (wr->opcode == IB_WR_REG_MR)
		rec->length = reg_wr(wr)->mr->length;
	return err;
}

/* As cxgb4's way for a Write and a Send: the length of what may be no segment. */
static void fake_check_peek(struct fake_ib *fdev, const struct ib_send_wr *wr)
{
	if (!fdev->caps.peeks || wr->opcode != IB_WR_RDMA_WRITE || !wr->next || wr->next->next)
		return;
	if (!wr->sg_list)
		fake_violation(fdev, "no list for the Write of a pair");
	else if (wr->sg_list[0].length && !wr->next->sg_list &&
		 (wr->next->opcode == IB_WR_SEND || wr->next->opcode == IB_WR_SEND_WITH_INV))
		fake_violation(fdev, "no list for the Send of a pair");
}

static int fake_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
			  const struct ib_send_wr **bad)
{
	struct fake_qp *qp = to_fqp(ibqp);
	struct fake_ib *fdev = qp->fdev;
	struct fake_queue *q = &qp->q[0];
	unsigned int call, pos = 0;
	bool kick = false;
	int err;

	fake_lock(fdev);
	err = fake_verb_locked(fdev, FAKE_IB_POST_SEND, ibqp, wr->opcode);
	call = q->calls++;
	fake_check_peek(fdev, wr);
	if (!err && qp->state != IB_QPS_RTS && qp->state != IB_QPS_ERR) {
		fake_violation(fdev, "request posted before the QP is ready");
		err = -EINVAL;
	}
	for (; !err && wr; wr = wr->next) {
		struct fake_ib_wr *rec = fake_claim(fdev, q, false, call, pos++);

		err = rec ? fake_record_send(qp, rec, wr) : -ENOMEM;
		if (err)
			break;
		q->posted++;
		q->outstanding++;
		fake_wanted(qp, rec);
		if (wr->opcode == IB_WR_REG_MR || wr->opcode == IB_WR_LOCAL_INV)
			kick = true;
	}
	if (err)
		*bad = wr;
	else if (kick || qp->state == IB_QPS_ERR)
		queue_work(fdev->wq, &qp->work);
	fake_unlock(fdev);
	if (!err && READ_ONCE(fdev->set_instant))
		fake_ib_complete_all(ibqp, false, IB_WC_SUCCESS);
	return err;
}

/* Receives of a QP or of an SRQ, as many as are in the chain. */
static int fake_post_receives(struct fake_ib *fdev, struct fake_queue *q, struct ib_pd *pd,
			      const struct ib_recv_wr *wr, const struct ib_recv_wr **bad, int err)
{
	unsigned int call = q->calls++, pos = 0;

	lockdep_assert_held(&fdev->lock);
	for (; !err && wr; wr = wr->next) {
		struct fake_ib_wr *rec = fake_claim(fdev, q, true, call, pos++);

		if (!rec) {
			err = -ENOMEM;
			break;
		}
		rec->cqe = wr->wr_cqe;
		fake_wrong_if(fdev, !wr->wr_cqe, "receive without completion entry");
		err = fake_record(fdev, pd, NULL, rec, wr->sg_list, wr->num_sge, q->max_sge);
		if (err)
			break;
		q->posted++;
		q->outstanding++;
	}
	if (err)
		*bad = wr;
	return err;
}

static int fake_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
			  const struct ib_recv_wr **bad)
{
	struct fake_qp *qp = to_fqp(ibqp);
	struct fake_ib *fdev = qp->fdev;
	int err;

	fake_lock(fdev);
	err = fake_verb_locked(fdev, FAKE_IB_POST_RECV, ibqp, 0);
	if (!err && qp->state == IB_QPS_RESET) {
		fake_violation(fdev, "receive posted in RESET");
		err = -EINVAL;
	}
	if (!err && qp->srq) {
		fake_violation(fdev, "receive posted to a QP that has an SRQ");
		err = -EINVAL;
	}
	err = fake_post_receives(fdev, &qp->q[1], ibqp->pd, wr, bad, err);
	if (!err && qp->state == IB_QPS_ERR)
		queue_work(fdev->wq, &qp->work);
	fake_unlock(fdev);
	if (!err && READ_ONCE(fdev->set_instant))
		fake_ib_complete_all(ibqp, true, IB_WC_SUCCESS);
	return err;
}

static int fake_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
			      const struct ib_recv_wr **bad)
{
	struct fake_srq *srq = to_fsrq(ibsrq);
	struct fake_ib *fdev = srq->fdev;
	int err;

	fake_lock(fdev);
	err = fake_verb_locked(fdev, FAKE_IB_POST_SRQ_RECV, ibsrq, 0);
	err = fake_post_receives(fdev, &srq->q, ibsrq->pd, wr, bad, err);
	fake_unlock(fdev);
	return err;
}

static const struct ib_device_ops fake_ib_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.uverbs_abi_ver = 1,

	.alloc_mr = fake_alloc_mr,
	.alloc_pd = fake_alloc_pd,
	.create_cq = (void *)fake_create_cq,
	.create_qp = fake_create_qp,
	.create_srq = fake_create_srq,
	.dealloc_pd = fake_dealloc_pd,
	.dereg_mr = fake_dereg_mr,
	.destroy_cq = fake_destroy_cq,
	.destroy_qp = fake_destroy_qp,
	.destroy_srq = fake_destroy_srq,
	.get_dma_mr = fake_get_dma_mr,
	.get_port_immutable = fake_get_port_immutable,
	.map_mr_sg = fake_map_mr_sg,
	.modify_qp = fake_modify_qp,
	.modify_srq = fake_modify_srq,
	.poll_cq = fake_poll_cq,
	.post_recv = fake_post_recv,
	.post_send = fake_post_send,
	.post_srq_recv = fake_post_srq_recv,
	.query_device = fake_query_device,
	.query_gid = fake_query_gid,
	.query_pkey = fake_query_pkey,
	.query_port = fake_query_port,
	.query_qp = fake_query_qp,
	.query_srq = fake_query_srq,
	/* mandatory for a kernel provider, never called; arguments vary by kernel */
	.reg_user_mr = (void *)fake_no_user_mr,
	.req_notify_cq = fake_req_notify_cq,

	INIT_RDMA_OBJ_SIZE(ib_cq, fake_cq, ibcq),
	INIT_RDMA_OBJ_SIZE(ib_pd, fake_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_qp, fake_qp, ibqp),
	INIT_RDMA_OBJ_SIZE(ib_srq, fake_srq, ibsrq),
};

struct fake_dma *fake_ib_dma(struct ib_device *ibdev)
{
	return &to_fdev(ibdev)->dma;
}

const struct kdapl_dma_ops *kdapl_test_dma(struct ib_device *ibdev)
{
	const struct fake_ib_caps *caps = &to_fdev(ibdev)->caps;

	if (ibdev->ops.post_send != fake_post_send || (!caps->copies && !caps->caches))
		return NULL;
	return caps->copies ? &fake_copies_ops : &fake_caches_ops;
}

struct fake_ib *fake_ib_create(const struct fake_ib_caps *caps)
{
	struct fake_ib *fdev = ib_alloc_device(fake_ib, ibdev);
	static atomic_t guid = ATOMIC_INIT(0);
	struct fake_ib_caps *c;
	int err;

	if (!fdev)
		return ERR_PTR(-ENOMEM);
	if (caps)
		fdev->caps = *caps;
	c = &fdev->caps;
	c->max_send_sge = c->max_send_sge ?: 4;
	c->max_recv_sge = c->max_recv_sge ?: 4;
	c->max_sge_rd = c->max_sge_rd ?: (c->iwarp ? 1 : 3);
	c->max_qp = c->max_qp ?: 1024;
	c->max_qp_wr = c->max_qp_wr ?: 1024;
	c->max_cqe = c->max_cqe ?: 4096;
	c->max_cq = c->max_cq ?: 1024;
	c->max_rd_atom = c->max_rd_atom ?: 16;
	c->max_init_rd_atom = c->max_init_rd_atom ?: c->max_rd_atom;
	c->max_pages = c->max_pages ?: 64;
	c->page_sizes = c->page_sizes ?: PAGE_SIZE;
	c->max_msg_sz = c->max_msg_sz ?: 1 << 30;
	c->max_srq_wr = c->max_srq_wr ?: 1024;
	c->vectors = c->vectors ?: 2;
	spin_lock_init(&fdev->lock);
	fake_dma_init(&fdev->dma, c->caches);
	INIT_LIST_HEAD(&fdev->cqs);
	INIT_LIST_HEAD(&fdev->qps);
	INIT_LIST_HEAD(&fdev->srqs);
	INIT_LIST_HEAD(&fdev->mrs);
	fdev->set_auto_reg_status = IB_WC_SUCCESS;
	fdev->wq = alloc_ordered_workqueue("kdfake", WQ_MEM_RECLAIM);
	if (!fdev->wq) {
		ib_dealloc_device(&fdev->ibdev);
		return ERR_PTR(-ENOMEM);
	}
	fdev->ibdev.node_type = RDMA_NODE_IB_CA;
	fdev->ibdev.phys_port_cnt = c->ports ?: 1;
	fdev->ibdev.num_comp_vectors = c->vectors;
	fdev->ibdev.node_guid = cpu_to_be64(0x6b6461706c000000ULL + atomic_inc_return(&guid));
	strscpy(fdev->ibdev.node_desc, "kdapl unit test device", sizeof(fdev->ibdev.node_desc));
	ib_set_device_ops(&fdev->ibdev, &fake_ib_ops);
	if (c->driver)
		fdev->ibdev.ops.driver_id = c->driver;
	if (c->no_srq)
		fdev->ibdev.ops.create_srq = NULL;
	err = ib_register_device(&fdev->ibdev, "kdfake%d", NULL);
	if (err) {
		destroy_workqueue(fdev->wq);
		ib_dealloc_device(&fdev->ibdev);
		return ERR_PTR(err);
	}
	fdev->registered = true;
	return fdev;
}

void fake_ib_unplug(struct fake_ib *fdev)
{
	if (!fdev->registered)
		return;
	fdev->registered = false;
	ib_unregister_device(&fdev->ibdev);
}

void fake_ib_destroy(struct fake_ib *fdev)
{
	fake_ib_unplug(fdev);
	destroy_workqueue(fdev->wq);
	WARN_ON(fake_dma_exit(&fdev->dma));	/* kdapl has let go of the device */
	ib_dealloc_device(&fdev->ibdev);
}

struct ib_device *fake_ib_device(struct fake_ib *fdev)
{
	return &fdev->ibdev;
}

const char *fake_ib_name(struct fake_ib *fdev)
{
	return dev_name(&fdev->ibdev.dev);
}

int fake_ib_set_netdev(struct fake_ib *fdev, struct net_device *ndev)
{
	return ib_device_set_netdev(&fdev->ibdev, ndev, 1);
}

void fake_ib_refuse_paths(struct fake_ib *fdev)
{
	WRITE_ONCE(fdev->no_path, true);
}

void fake_ib_set_max_msg(struct fake_ib *fdev, u32 bytes)
{
	WRITE_ONCE(fdev->caps.max_msg_sz, bytes);
}

void fake_ib_live(struct fake_ib *fdev, struct fake_ib_live *live)
{
	fake_lock(fdev);
	*live = fdev->live;
	fake_unlock(fdev);
}

int fake_ib_violations(struct fake_ib *fdev)
{
	return READ_ONCE(fdev->violations) + READ_ONCE(fdev->dma.wrong);
}

const char *fake_ib_last_violation(struct fake_ib *fdev)
{
	return fdev->last_violation ? fdev->last_violation : "none";
}

unsigned int fake_ib_count(struct fake_ib *fdev, enum fake_ib_verb verb)
{
	return READ_ONCE(fdev->counts[verb]);
}

void fake_ib_fail(struct fake_ib *fdev, enum fake_ib_verb verb, unsigned int nth, int err)
{
	fake_lock(fdev);
	fdev->fail[verb].nth = nth;
	fdev->fail[verb].err = err;
	fake_unlock(fdev);
}

unsigned int fake_ib_failing(struct fake_ib *fdev, enum fake_ib_verb verb)
{
	return READ_ONCE(fdev->fail[verb].nth);
}

/* What holds from now on: fake_ib.h says what it is. */
#define FAKE_IB_SETTING(name, type)					\
void fake_ib_##name(struct fake_ib *fdev, type value)			\
{									\
	WRITE_ONCE(fdev->set_##name, value);				\
}

FAKE_IB_SETTING(auto_reg_status, enum ib_wc_status)
FAKE_IB_SETTING(lax_keys, bool)
FAKE_IB_SETTING(hold_flush, bool)
FAKE_IB_SETTING(instant, bool)
FAKE_IB_SETTING(frugal, bool)
FAKE_IB_SETTING(last_wqe, enum fake_ib_last_wqe)
FAKE_IB_SETTING(taken, enum fake_ib_taken)

/* A CQ whose interrupt was held back. */
static struct fake_cq *fake_late_cq(struct fake_ib *fdev)
{
	struct fake_cq *cq;

	list_for_each_entry(cq, &fdev->cqs, node) {
		if (cq->late) {
			cq->late = false;
			return cq;
		}
	}
	return NULL;
}

void fake_ib_hold_irq(struct fake_ib *fdev, bool hold)
{
	struct fake_cq *cq;

	do {
		fake_lock(fdev);
		fdev->hold_irq = hold;
		cq = hold ? NULL : fake_late_cq(fdev);
		fake_unlock(fdev);
		if (cq)
			fake_call_handler(cq);
	} while (cq);
}

void fake_ib_at(struct fake_ib *fdev, enum fake_ib_moment moment, unsigned int nth,
		void (*fn)(void *arg), void *arg)
{
	fake_lock(fdev);
	fdev->hooks[moment] = (struct fake_ib_hook) { .nth = nth, .fn = fn, .arg = arg };
	fake_unlock(fdev);
}

void fake_ib_cq_event(struct ib_cq *cq, enum ib_event_type type)
{
	struct ib_event event = { .device = cq->device, .element.cq = cq, .event = type };

	if (cq->event_handler)
		cq->event_handler(&event, cq->cq_context);
}

int fake_ib_trace_start(struct fake_ib *fdev)
{
	fake_lock(fdev);
	fdev->tracing = true;
	fdev->traced = 0;
	fake_unlock(fdev);
	return 0;
}

const struct fake_ib_step *fake_ib_trace(struct fake_ib *fdev, unsigned int i)
{
	return i < READ_ONCE(fdev->traced) ? &fdev->trace[i] : NULL;
}

unsigned int fake_ib_srq_posted(struct ib_srq *srq)
{
	return READ_ONCE(to_fsrq(srq)->q.posted);
}

/* A copy of a request that is not forgotten. */
static bool fake_look(struct fake_ib *fdev, struct fake_queue *q, unsigned int seq,
		      struct fake_ib_wr *out)
{
	bool ok;

	fake_lock(fdev);
	ok = seq < q->posted && q->posted - seq <= q->log_size;
	if (ok)
		*out = *fake_slot(q, seq);
	fake_unlock(fdev);
	return ok;
}

bool fake_ib_srq_wr(struct ib_srq *srq, unsigned int seq, struct fake_ib_wr *out)
{
	return fake_look(to_fsrq(srq)->fdev, &to_fsrq(srq)->q, seq, out);
}

void fake_ib_srq_size(struct ib_srq *srq, unsigned int *max_wr, unsigned int *max_sge)
{
	*max_wr = to_fsrq(srq)->q.depth;
	*max_sge = to_fsrq(srq)->q.max_sge;
}

int fake_ib_srq_finish(struct ib_qp *qp, unsigned int seq, enum ib_wc_status status,
		       u32 byte_len, bool solicited)
{
	const struct fake_end end = { status, byte_len, solicited };

	return fake_finish(to_fqp(qp), &to_fqp(qp)->srq->q, seq, &end);
}

int fake_ib_srq_finish_as(struct ib_qp *qp, unsigned int seq, enum ib_wc_status status,
			  struct ib_qp *name)
{
	const struct fake_end end = { status, U32_MAX, .other = true, .name = name };

	return fake_finish(to_fqp(qp), &to_fqp(qp)->srq->q, seq, &end);
}

/* Who asks has just made it, and nobody else makes any. */
static struct list_head *fake_newest(struct list_head *list)
{
	return list_empty(list) ? NULL : list->prev;
}

struct ib_qp *fake_ib_newest_qp(struct fake_ib *fdev)
{
	struct list_head *newest = fake_newest(&fdev->qps);

	return newest ? &list_entry(newest, struct fake_qp, node)->ibqp : NULL;
}

struct ib_srq *fake_ib_newest_srq(struct fake_ib *fdev)
{
	struct list_head *newest = fake_newest(&fdev->srqs);

	return newest ? &list_entry(newest, struct fake_srq, node)->ibsrq : NULL;
}

int fake_ib_newest_vector(struct fake_ib *fdev)
{
	struct list_head *newest = fake_newest(&fdev->cqs);

	return newest ? list_entry(newest, struct fake_cq, node)->vector : -ENOENT;
}

enum ib_qp_state fake_ib_qp_state(struct ib_qp *qp)
{
	return READ_ONCE(to_fqp(qp)->state);
}

void fake_ib_qp_caps(struct ib_qp *qp, struct ib_qp_cap *cap)
{
	*cap = to_fqp(qp)->cap;
}

void fake_ib_qp_event(struct ib_qp *qp, enum ib_event_type type)
{
	struct ib_event event = { .device = qp->device, .element.qp = qp, .event = type };

	if (qp->event_handler)
		qp->event_handler(&event, qp->qp_context);
}

unsigned int fake_ib_posted(struct ib_qp *qp, bool recv)
{
	return READ_ONCE(to_fqp(qp)->q[recv].posted);
}

unsigned int fake_ib_outstanding(struct ib_qp *qp, bool recv)
{
	struct fake_qp *fqp = to_fqp(qp);
	unsigned int seq, n = 0;

	if (!recv || !fqp->srq)
		return READ_ONCE(fqp->q[recv].outstanding);
	fake_lock(fqp->fdev);
	for (seq = fqp->srq->q.oldest; seq != fqp->srq->next; seq++) {
		struct fake_ib_wr *wr = fake_slot(&fqp->srq->q, seq);

		n += wr->taken_by == qp && !wr->done;
	}
	fake_unlock(fqp->fdev);
	return n;
}

bool fake_ib_wr(struct ib_qp *qp, bool recv, unsigned int seq, struct fake_ib_wr *out)
{
	return fake_look(to_fqp(qp)->fdev, &to_fqp(qp)->q[recv], seq, out);
}

bool fake_ib_last_wr(struct ib_qp *qp, bool recv, struct fake_ib_wr *out)
{
	return fake_ib_wr(qp, recv, fake_ib_posted(qp, recv) - 1, out);
}

int fake_ib_complete(struct ib_qp *qp, bool recv, enum ib_wc_status status)
{
	return fake_ib_complete_seq(qp, recv, READ_ONCE(to_fqp(qp)->q[recv].oldest), status);
}

int fake_ib_complete_seq(struct ib_qp *qp, bool recv, unsigned int seq,
			 enum ib_wc_status status)
{
	const struct fake_end end = { status, U32_MAX };

	return fake_finish(to_fqp(qp), &to_fqp(qp)->q[recv], seq, &end);
}

int fake_ib_complete_all(struct ib_qp *qp, bool recv, enum ib_wc_status status)
{
	int n = 0;

	while (!fake_ib_complete(qp, recv, status))
		n++;
	return n;
}

/* A message arrives in the oldest receive. */
static int fake_arrive(struct fake_qp *qp, const struct fake_end *end)
{
	int seq = qp->srq ? fake_ib_srq_take(&qp->ibqp) : (int)READ_ONCE(qp->q[1].oldest);

	if (qp->srq && seq < 0)
		return seq;
	return fake_finish(qp, qp->srq ? &qp->srq->q : &qp->q[1], seq, end);
}

int fake_ib_recv(struct ib_qp *qp, u32 byte_len, bool solicited)
{
	return fake_arrive(to_fqp(qp), &(struct fake_end){ IB_WC_SUCCESS, byte_len, solicited });
}

int fake_ib_recv_inv(struct ib_qp *qp, u32 byte_len, u32 rkey)
{
	return fake_arrive(to_fqp(qp), &(struct fake_end){ IB_WC_SUCCESS, byte_len, false, rkey });
}

int fake_ib_recv_immed(struct ib_qp *qp, u32 byte_len, u32 immed, bool write)
{
	return fake_arrive(to_fqp(qp), &(struct fake_end){
		.status = IB_WC_SUCCESS,
		.byte_len = byte_len,
		.immed = immed,
		.brings = true,
		.write = write,
	});
}

void fake_ib_flush(struct ib_qp *qp)
{
	fake_flush_queue(to_fqp(qp), false);
	fake_flush_queue(to_fqp(qp), true);
}

bool fake_ib_mr(struct fake_ib *fdev, u32 key, struct fake_ib_mr *out)
{
	struct fake_mr *mr;

	memset(out, 0, sizeof(*out));
	fake_lock(fdev);
	mr = fake_mr_by(fdev, key, false) ?: fake_mr_by(fdev, key, true);
	if (mr)
		*out = (struct fake_ib_mr) {
			.mapped = mr->mapped,
			.map_page_size = mr->map.page_size,
			.map_npages = mr->map.npages,
			.map_offset = mr->map.offset,
			.map_length = mr->map.length,
			.maps = mr->maps,
			.valid = mr->valid,
			.lkey = (mr->ibmr.lkey & ~0xffU) | mr->live.key,
			.rkey = (mr->ibmr.rkey & ~0xffU) | mr->live.key,
			.iova = mr->live.iova,
			.length = mr->live.length,
			.access = mr->live.access,
			.busy = mr->busy,
		};
	fake_unlock(fdev);
	return mr;
}

bool fake_ib_mr_valid(struct fake_ib *fdev, u32 key)
{
	struct fake_ib_mr mr;

	return fake_ib_mr(fdev, key, &mr) && mr.valid && (key == mr.lkey || key == mr.rkey);
}

int fake_ib_valid_mrs(struct fake_ib *fdev)
{
	struct fake_mr *mr;
	int n = 0;

	fake_lock(fdev);
	list_for_each_entry(mr, &fdev->mrs, node)
		n += mr->valid && !mr->dma;
	fake_unlock(fdev);
	return n;
}

/* Move bytes between a buffer and the pages of a region. */
static void fake_move(const struct fake_map *map, u64 addr, void *buf, u32 len, bool write)
{
	u64 pos = addr - map->iova + map->offset;

	while (len) {
		u32 in_page = pos & (map->page_size - 1);
		u32 part = min(len, map->page_size - in_page);
		u64 page = map->pages[pos >> ilog2(map->page_size)];
		void *at = (void *)(uintptr_t)(page + in_page);

		if (write)
			memcpy(at, buf, part);
		else
			memcpy(buf, at, part);
		buf += part;
		pos += part;
		len -= part;
	}
}

int fake_ib_access(struct fake_ib *fdev, u32 key, u64 addr, void *buf, u32 len, int access)
{
	bool remote = access & (IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE);
	struct fake_mr *mr;
	int ret = -EACCES;

	fake_lock(fdev);
	mr = fake_mr_by(fdev, key, remote);
	if (mr && !mr->dma && mr->valid && mr->live.key == (u8)key &&
	    (mr->live.access & access) == access &&
	    fake_inside(mr->live.iova, mr->live.length, addr, len)) {
		fake_move(&mr->live, addr, buf, len,
			  access & (IB_ACCESS_REMOTE_WRITE | IB_ACCESS_LOCAL_WRITE));
		ret = 0;
	}
	fake_unlock(fdev);
	return ret;
}
