// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Attributes of devices and ports, addresses, and what is made of them. */
#include <linux/etherdevice.h>
#include <linux/module.h>
#include <net/addrconf.h>
#include <net/ipv6.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_cache.h>

#include "kdhca.h"

static int kdhca_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
			      struct ib_udata *udata)
{
	const struct kdhca_set *set = &to_dev(ibdev)->set;

	attr->device_cap_flags = IB_DEVICE_MEM_MGT_EXTENSIONS | IB_DEVICE_RC_RNR_NAK_GEN |
				 IB_DEVICE_PORT_ACTIVE_EVENT | IB_DEVICE_SYS_IMAGE_GUID;
	attr->kernel_cap_flags = IBK_ALLOW_USER_UNREG |
				 (set->dma_lkey ? IBK_LOCAL_DMA_LKEY : 0);
	attr->sys_image_guid = ibdev->node_guid;
	attr->page_size_cap = GENMASK_ULL(min(set->max_block, 31U), PAGE_SHIFT);
	attr->max_mr_size = ~0ULL;
	attr->max_fast_reg_page_list_len = set->max_pages;
	attr->max_qp = BIT(16);
	attr->max_qp_wr = set->max_qp_wr;
	attr->max_send_sge = set->max_send_sge;
	attr->max_recv_sge = set->max_recv_sge;
	attr->max_sge_rd = set->max_sge_rd;
	attr->max_qp_rd_atom = set->rd_in;
	attr->max_qp_init_rd_atom = set->rd_out;
	attr->max_res_rd_atom = set->rd_in * BIT(16);
	attr->max_cq = BIT(16);
	attr->max_cqe = set->max_cqe;
	attr->max_mr = BIT(20);
	attr->max_pd = BIT(16);
	attr->max_ah = BIT(16);
	attr->max_srq = BIT(16);
	attr->max_srq_wr = set->max_srq_wr;
	attr->max_srq_sge = set->max_srq_sge;
	attr->max_pkeys = 1;
	attr->local_ca_ack_delay = 15;
	return 0;
}

/* Is there anything on the wire? */
bool kdhca_dev_up(const struct kdhca_dev *dev)
{
	return !READ_ONCE(dev->down) && netif_running(dev->ndev) && netif_carrier_ok(dev->ndev);
}

static int kdhca_query_port(struct ib_device *ibdev, u32 port, struct ib_port_attr *attr)
{
	struct kdhca_dev *dev = to_dev(ibdev);
	bool up = kdhca_dev_up(dev);

	attr->gid_tbl_len = dev->set.iwarp ? 1 : KDHCA_GIDS;
	attr->pkey_tbl_len = dev->set.iwarp ? 0 : 1;
	attr->max_msg_sz = BIT(31);
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = iboe_get_mtu(READ_ONCE(dev->ndev->mtu));
	attr->state = up ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	attr->phys_state = up ? IB_PORT_PHYS_STATE_LINK_UP : IB_PORT_PHYS_STATE_DISABLED;
	attr->port_cap_flags = IB_PORT_CM_SUP;
	attr->active_width = IB_WIDTH_4X;
	attr->active_speed = IB_SPEED_EDR;
	return 0;
}

static int kdhca_get_port_immutable(struct ib_device *ibdev, u32 port,
				    struct ib_port_immutable *immutable)
{
	if (to_dev(ibdev)->set.iwarp) {
		immutable->gid_tbl_len = 1;
		immutable->core_cap_flags = RDMA_CORE_PORT_IWARP;
		return 0;
	}
	immutable->gid_tbl_len = KDHCA_GIDS;
	immutable->pkey_tbl_len = 1;
	immutable->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	immutable->max_mad_size = IB_MGMT_MAD_SIZE;
	return 0;
}

static enum rdma_link_layer kdhca_get_link_layer(struct ib_device *ibdev, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

static int kdhca_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey)
{
	*pkey = IB_DEFAULT_PKEY_FULL;
	return 0;
}

static int kdhca_add_gid(const struct ib_gid_attr *attr, void **context)
{
	struct kdhca_dev *dev = to_dev(attr->device);

	if (attr->index >= KDHCA_GIDS)
		return -EINVAL;
	spin_lock_bh(&dev->gid_lock);
	dev->gid[attr->index] = attr->gid;
	spin_unlock_bh(&dev->gid_lock);
	return 0;
}

static int kdhca_del_gid(const struct ib_gid_attr *attr, void **context)
{
	struct kdhca_dev *dev = to_dev(attr->device);

	spin_lock_bh(&dev->gid_lock);
	memset(&dev->gid[attr->index], 0, sizeof(attr->gid));
	spin_unlock_bh(&dev->gid_lock);
	return 0;
}

/* Is the GID one of the device's? Context: any but hard interrupts. */
bool kdhca_dev_has_gid(struct kdhca_dev *dev, const union ib_gid *gid)
{
	bool found = false;
	int i;

	spin_lock_bh(&dev->gid_lock);
	for (i = 0; i < KDHCA_GIDS && !found; i++)
		found = !memcmp(&dev->gid[i], gid, sizeof(*gid));
	spin_unlock_bh(&dev->gid_lock);
	return found;
}

/* The device of a GID. Context: kdhca_devs_lock held. */
struct kdhca_dev *kdhca_dev_by_gid(const union ib_gid *gid)
{
	struct kdhca_dev *dev;

	list_for_each_entry(dev, &kdhca_devs, node) {
		if (dev->here && !dev->set.iwarp && kdhca_dev_has_gid(dev, gid))
			return dev;
	}
	return NULL;
}

static void dev_handler(struct kdhca_irq *irq)
{
	struct kdhca_dev *dev = container_of(irq, struct kdhca_dev, irq);
	struct ib_event event = { .device = &dev->ibdev, .element.port_num = 1 };

	while (kdhca_irq_next(irq, &event))
		ib_dispatch_event(&event);
}

static int kdhca_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	return kdhca_sleeps(to_dev(ibpd->device), KDHCA_CREATE);
}

static int kdhca_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	kdhca_sleeps(to_dev(ibpd->device), KDHCA_DESTROY);
	return 0;
}

static int kdhca_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *attr,
			   struct ib_udata *udata)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(attr->ah_attr);
	struct kdhca_ah *ah = to_ah(ibah);

	if (!(rdma_ah_get_ah_flags(attr->ah_attr) & IB_AH_GRH) || !grh->sgid_attr)
		return -EINVAL;
	ah->dgid = grh->dgid;
	ah->sgid = grh->sgid_attr->gid;
	ah->v4 = ipv6_addr_v4mapped((const struct in6_addr *)&ah->dgid);
	return 0;
}

static int kdhca_destroy_ah(struct ib_ah *ibah, u32 flags)
{
	return 0;
}

/* The core takes a device without this for one that the kernel cannot use. */
static struct ib_mr *kdhca_no_user_mr(void)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static void kdhca_dealloc_driver(struct ib_device *ibdev)
{
	struct kdhca_dev *dev = to_dev(ibdev);

	kdhca_order_remove(dev);
	kdhca_dev_hide(dev);
	kdhca_irq_kill(&dev->irq);
	kdhca_mrs_free(dev);
	kdhca_dma_unbind(dev);
	kdhca_dev_gone(dev);
}

const struct ib_device_ops kdhca_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,

	.alloc_mr = kdhca_alloc_mr,
	.alloc_pd = kdhca_alloc_pd,
	.create_cq = (void *)kdhca_create_cq,
	.create_qp = kdhca_create_qp,
	.create_srq = kdhca_create_srq,
	.dealloc_driver = kdhca_dealloc_driver,
	.dealloc_pd = kdhca_dealloc_pd,
	.dereg_mr = kdhca_dereg_mr,
	.destroy_cq = kdhca_destroy_cq,
	.destroy_qp = kdhca_destroy_qp,
	.destroy_srq = kdhca_destroy_srq,
	.get_dma_mr = kdhca_get_dma_mr,
	.get_link_layer = kdhca_get_link_layer,
	.get_port_immutable = kdhca_get_port_immutable,
	.map_mr_sg = kdhca_map_mr_sg,
	.modify_qp = kdhca_modify_qp,
	.modify_srq = kdhca_modify_srq,
	.poll_cq = kdhca_poll_cq,
	.post_recv = kdhca_post_recv,
	.post_send = kdhca_post_send,
	.post_srq_recv = kdhca_post_srq_recv,
	.query_device = kdhca_query_device,
	.query_port = kdhca_query_port,
	.query_qp = kdhca_query_qp,
	.query_srq = kdhca_query_srq,
	.reg_user_mr = (void *)kdhca_no_user_mr,
	.req_notify_cq = kdhca_req_notify_cq,

	INIT_RDMA_OBJ_SIZE(ib_cq, kdhca_cq, ibcq),
	INIT_RDMA_OBJ_SIZE(ib_pd, kdhca_pd, ibpd),
	INIT_RDMA_OBJ_SIZE(ib_qp, kdhca_qp, ibqp),
	INIT_RDMA_OBJ_SIZE(ib_srq, kdhca_srq, ibsrq),
};

const struct ib_device_ops kdhca_roce_ops = {
	.add_gid = kdhca_add_gid,
	.create_ah = kdhca_create_ah,
	.del_gid = kdhca_del_gid,
	.destroy_ah = kdhca_destroy_ah,
	.query_pkey = kdhca_query_pkey,

	INIT_RDMA_OBJ_SIZE(ib_ah, kdhca_ah, ibah),
};

/* Fill in a device before it is registered. */
int kdhca_dev_setup(struct kdhca_dev *dev)
{
	struct ib_device *ibdev = &dev->ibdev;
	struct net_device *ndev = dev->ndev;
	u8 mac[ETH_ALEN];

	xa_init_flags(&dev->mrs, XA_FLAGS_ALLOC1);
	INIT_LIST_HEAD(&dev->cqs);
	spin_lock_init(&dev->cq_lock);
	spin_lock_init(&dev->gid_lock);
	mutex_init(&dev->gsi_lock);
	kdhca_irq_init(&dev->irq, dev->set.event_ctx, dev_handler);
	if (ndev->addr_len == ETH_ALEN && !is_zero_ether_addr(ndev->dev_addr))
		ether_addr_copy(mac, ndev->dev_addr);
	else
		eth_random_addr(mac);
	addrconf_addr_eui48((u8 *)&ibdev->node_guid, mac);
	ibdev->phys_port_cnt = 1;
	ibdev->num_comp_vectors = num_possible_cpus();
	if (dev->set.dma_lkey)
		ibdev->local_dma_lkey = KDHCA_DMA_LKEY;
	strscpy(ibdev->node_desc, "kdhca", sizeof(ibdev->node_desc));
	if (dev->set.iwarp) {
		kdhca_iw_setup(ibdev);
	} else {
		ibdev->node_type = RDMA_NODE_IB_CA;
		ib_set_device_ops(ibdev, &kdhca_roce_ops);
	}
	ib_set_device_ops(ibdev, &kdhca_ops);
	ibdev->ops.driver_id = dev->set.driver;
	ibdev->link_ops = &kdhca_link_ops;
	return ib_device_set_netdev(ibdev, ndev, 1);
}
