// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * QP 1: what the connection manager of RoCE sends. A datagram goes to the QP 1 of the device
 * that has the destination's GID, wherever that is, or is lost.
 */
#include <linux/ip.h>
#include <linux/random.h>
#include <rdma/ib_pack.h>

#include "kdhca.h"

/* What a RoCE v2 device puts in front of a datagram. */
static void mad_header(u8 *buf, const struct kdhca_wqe *wqe)
{
	struct ib_grh *grh = (struct ib_grh *)buf;
	struct iphdr *ip = (struct iphdr *)(buf + 20);

	memset(buf, 0, sizeof(*grh));
	if (!wqe->ud.v4) {
		grh->version_tclass_flow = cpu_to_be32(6 << 28);
		grh->paylen = cpu_to_be16(wqe->length);
		grh->next_hdr = IPPROTO_UDP;
		grh->hop_limit = 64;
		grh->sgid = wqe->ud.sgid;
		grh->dgid = wqe->ud.dgid;
		return;
	}
	ip->version = 4;
	ip->ihl = 5;
	ip->ttl = 64;
	ip->protocol = IPPROTO_UDP;
	ip->tot_len = cpu_to_be16(wqe->length + sizeof(*ip));
	memcpy(&ip->saddr, &wqe->ud.sgid.raw[12], sizeof(ip->saddr));
	memcpy(&ip->daddr, &wqe->ud.dgid.raw[12], sizeof(ip->daddr));
	ip->check = ip_fast_csum(ip, ip->ihl);
}

static void mad_receive(struct kdhca_qp *qp, struct kdhca_qp *peer, struct kdhca_wqe *wqe)
{
	u8 header[sizeof(struct ib_grh)];
	struct kdhca_cqe cqe = {
		.opcode = IB_WC_RECV,
		.byte_len = wqe->length + sizeof(header),
		.wc_flags = IB_WC_GRH | IB_WC_WITH_NETWORK_HDR_TYPE,
		.src_qp = qp->ibqp.qp_num,
		.net = wqe->ud.v4 ? RDMA_NETWORK_IPV4 : RDMA_NETWORK_IPV6,
	};
	int ret;

	mutex_lock(&peer->rx);
	if ((peer->state == IB_QPS_RTR || peer->state == IB_QPS_RTS) &&
	    kdhca_recv_take(peer, qp->rqe)) {
		mad_header(header, wqe);
		memmove(&qp->from.span[1], &qp->from.span[0],
			qp->from.n * sizeof(qp->from.span[0]));
		qp->from.span[0] = (struct kdhca_span){ .inl = header, .length = sizeof(header) };
		qp->from.n++;
		ret = kdhca_spans_get(&qp->to, peer->ibqp.pd, qp->rqe->sge, qp->rqe->num_sge,
				      IB_ACCESS_LOCAL_WRITE);
		if (!ret)
			ret = kdhca_copy(&qp->to, &qp->from, cqe.byte_len);
		if (ret)
			cqe.status = IB_WC_LOC_PROT_ERR;
		kdhca_spans_put(&qp->to);
		kdhca_recv_done(peer, qp->rqe, &cqe, true);
	}
	mutex_unlock(&peer->rx);
}

/* A datagram leaves. */
void kdhca_mad_send(struct kdhca_qp *qp, struct kdhca_wqe *wqe)
{
	const struct kdhca_set *set = &qp->dev->set;
	struct kdhca_dev *to;

	if (wqe->ud.qpn != qp->ibqp.qp_num ||
	    (set->mad_loss && get_random_u32() % 1000 < set->mad_loss))
		return;
	if (kdhca_spans_get(&qp->from, qp->ibqp.pd, wqe->sge, wqe->num_sge, 0))
		return;
	/* the lock keeps devices from going */
	mutex_lock(&kdhca_devs_lock);
	to = kdhca_dev_by_gid(&wqe->ud.dgid);
	if (to && kdhca_dev_up(qp->dev) && kdhca_dev_up(to)) {
		mutex_lock(&to->gsi_lock);
		if (to->gsi)
			mad_receive(qp, to->gsi, wqe);
		mutex_unlock(&to->gsi_lock);
	}
	mutex_unlock(&kdhca_devs_lock);
	kdhca_spans_put(&qp->from);
}
