// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Connections. qp->state is under iw_mutex. */
#include "kdnull.h"

#define IW_QP	struct kdnull_qp
#include "../../lib/iw_cm.h"

static IW_QP *iw_qp_find(struct ib_device *ibdev, u32 number)
{
	return xa_load(&to_kdnull_dev(ibdev)->qps, number);
}

static struct iw_how iw_how(struct ib_device *ibdev)
{
	return (struct iw_how){ .negotiate = true, .rd_in = U32_MAX, .rd_out = U32_MAX };
}

static struct net_device *iw_netdev(struct ib_device *ibdev)
{
	return to_kdnull_dev(ibdev)->ndev;
}

static bool iw_anybody(const struct sockaddr_storage *addr)
{
	return true;
}

static void iw_qp_end(IW_QP *qp)
{
	WRITE_ONCE(qp->state, IB_QPS_ERR);
	kdnull_qp_dead(qp);
}

static void iw_qp_live(IW_QP *qp, IW_QP *peer, u32 ird, u32 ord)
{
	WRITE_ONCE(qp->state, IB_QPS_RTS);
	peer->linked = true;
	kdnull_qp_live(qp, peer);
}

/* End a QP, and its connection or attempt. */
void kdnull_cm_break(struct kdnull_qp *qp)
{
	iw_break(qp);
}

/* The QP is to do without a connection. */
void kdnull_cm_rts(struct kdnull_qp *qp)
{
	mutex_lock(&iw_mutex);
	if (qp->state != IB_QPS_ERR) {
		WRITE_ONCE(qp->state, IB_QPS_RTS);
		kdnull_qp_live(qp, NULL);
	}
	mutex_unlock(&iw_mutex);
}

void kdnull_cm_setup(struct ib_device *ibdev)
{
	iw_setup(ibdev);
}
