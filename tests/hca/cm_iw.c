// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Connections of iWARP. */
#include "kdhca.h"

#define IW_QP	struct kdhca_qp
#include "../lib/iw_cm.h"

static IW_QP *iw_qp_find(struct ib_device *ibdev, u32 number)
{
	struct kdhca_qp *qp = xa_load(&kdhca_qps, number);

	return qp && qp->dev == to_dev(ibdev) ? qp : NULL;
}

static struct iw_how iw_how(struct ib_device *ibdev)
{
	const struct kdhca_set *set = &to_dev(ibdev)->set;

	return (struct iw_how){
		.negotiate = set->negotiate,
		.req_depths = set->req_depths,
		.rep_depths = set->rep_depths,
		.rd_in = set->rd_in,
		.rd_out = set->rd_out,
	};
}

static struct net_device *iw_netdev(struct ib_device *ibdev)
{
	return to_dev(ibdev)->ndev;
}

static bool iw_anybody(const struct sockaddr_storage *addr)
{
	struct kdhca_dev *dev;
	bool found = false;

	mutex_lock(&kdhca_devs_lock);
	list_for_each_entry(dev, &kdhca_devs, node)
		found |= dev->here && dev->set.iwarp && kdhca_dev_up(dev) &&
			 iw_owns(dev->ndev, addr);
	mutex_unlock(&kdhca_devs_lock);
	return found;
}

static void iw_qp_end(IW_QP *qp)
{
	mutex_lock(&qp->rx);
	kdhca_qp_error(qp);
	mutex_unlock(&qp->rx);
}

static void iw_qp_live(IW_QP *qp, IW_QP *peer, u32 ird, u32 ord)
{
	mutex_lock(&qp->rx);
	qp->attr.dest_qp_num = peer->ibqp.qp_num;
	qp->attr.max_dest_rd_atomic = ird;
	qp->attr.max_rd_atomic = ord;
	WRITE_ONCE(qp->state, IB_QPS_RTS);
	mutex_unlock(&qp->rx);
}

/* End a QP, and its connection or attempt. Context: may sleep. */
void kdhca_iw_break(struct kdhca_qp *qp)
{
	iw_break(qp);
}

/* A device is to make connections. */
void kdhca_iw_setup(struct ib_device *ibdev)
{
	iw_setup(ibdev);
}

/* All connections are gone. */
void kdhca_iw_exit(void)
{
	cancel_delayed_work_sync(&iw_silence_work);
}
