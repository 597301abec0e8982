// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Limits of an IA, from those of its device and from what work queues need.
 */
#include "ep.h"

#define LIMITS_MAX_DTOS	16384	/* per EP and direction, even if the device has more */

/*
 * The most DTOs for which conn_sq_wrs() needs no more than @wrs WRs: it adds a quarter, and
 * multiplies by the WRs of one request.
 */
static int limits_max_dtos(const struct kdapl_device *dev, int wrs)
{
	return clamp((wrs - 2) / 5 * 4 / dev->caps.most_wrs, 1, LIMITS_MAX_DTOS);
}

/**
 * kdapl_ia_sure_dtos - DTOs an EP can have even with as many segments as the IA allows
 * @dev: the device
 * @most: DTOs an EP may ask for
 *
 * Return: their number, for each direction.
 */
int kdapl_ia_sure_dtos(const struct kdapl_device *dev, int most)
{
	return dev->caps.sq_wrs ? min(most, limits_max_dtos(dev, dev->caps.sq_wrs)) : most;
}

#define LIMITS_QOS	(DAT_QOS_HIGH_THROUGHPUT | DAT_QOS_LOW_LATENCY | DAT_QOS_ECONOMY | \
			 DAT_QOS_PREMIUM)

/**
 * kdapl_qos_supported - which qualities of service connections can have
 * @dev: the device
 *
 * Return: union of DAT_QOS values.
 */
DAT_QOS kdapl_qos_supported(const struct kdapl_device *dev)
{
	return dev->caps.no_tos ? DAT_QOS_BEST_EFFORT : LIMITS_QOS;
}

/**
 * kdapl_qos_check - can a connection have this quality of service?
 * @dev: the device
 * @qos: as the consumer asks for it
 *
 * Return: 0; -EINVAL: no such value; -EOPNOTSUPP: not on this device, or more than
 * one at a time.
 */
int kdapl_qos_check(const struct kdapl_device *dev, DAT_QOS qos)
{
	if (qos & ~LIMITS_QOS)
		return -EINVAL;
	if (qos == DAT_QOS_BEST_EFFORT)
		return 0;
	return is_power_of_2(qos) && (qos & kdapl_qos_supported(dev)) ? 0 : -EOPNOTSUPP;
}

/**
 * kdapl_ia_limits - the numeric part of the IA attributes
 * @ia: IA
 * @attr: filled except names and address; max_dto_per_ep is the most an EP may ask for, but
 *	with many segments the device may have room for fewer
 */
void kdapl_ia_limits(struct kdapl_ia *ia, DAT_IA_ATTR *attr)
{
	const struct ib_device_attr *dev = &ia->dev->attrs;

	attr->hardware_version_major = dev->hw_ver;
	attr->hardware_version_minor = 0;
	attr->firmware_version_major = upper_32_bits(dev->fw_ver);
	attr->firmware_version_minor = lower_32_bits(dev->fw_ver);
	attr->max_eps = dev->max_qp;
	attr->max_dto_per_ep = limits_max_dtos(ia->dev, min(dev->max_qp_wr, dev->max_cqe));
	attr->max_rdma_read_per_ep_in = min_t(int, dev->max_qp_rd_atom, U8_MAX);
	attr->max_rdma_read_per_ep_out = min_t(int, dev->max_qp_init_rd_atom, U8_MAX);
	attr->max_evds = dev->max_cq;
	attr->max_evd_qlen = dev->max_cqe;
	attr->max_iov_segments_per_dto = min(dev->max_send_sge, dev->max_recv_sge);
	attr->max_lmrs = dev->max_mr;
	attr->max_lmr_block_size = min3(dev->max_mr_size, (u64)U32_MAX,
					(u64)dev->max_fast_reg_page_list_len * PAGE_SIZE);
	attr->max_lmr_virtual_address = ~0ULL;
	attr->max_pzs = dev->max_pd;
	attr->max_message_size = ia->max_msg;
	attr->max_rdma_size = ia->max_msg;
	attr->max_rmrs = dev->max_mr / 2;	/* each has two */
	attr->max_rmr_target_address = ~0ULL;
	kdapl_pool_limits(ia->dev, attr);
	attr->max_iov_segments_per_rdma_read = min(dev->max_sge_rd ?: dev->max_send_sge,
						   dev->max_send_sge);
	attr->max_iov_segments_per_rdma_write = dev->max_send_sge;
	attr->max_rdma_read_in = dev->max_res_rd_atom ?: dev->max_qp_rd_atom;
	attr->max_rdma_read_out = dev->max_qp_init_rd_atom;
	attr->max_rdma_read_per_ep_in_guaranteed = DAT_TRUE;
	attr->max_rdma_read_per_ep_out_guaranteed = DAT_TRUE;
	attr->zb_supported = DAT_TRUE;
	attr->reserved_lmr_supported = DAT_TRUE;
	attr->num_transport_attr = 0;
	attr->transport_attr = NULL;
	attr->num_vendor_attr = 0;
	attr->vendor_attr = NULL;
}
