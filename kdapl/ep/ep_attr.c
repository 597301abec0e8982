// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Attributes of EPs: defaults, limits, and what is granted.
 */
#include "ep_conf.h"

#define ATTR_DTOS	64
#define ATTR_IOV	4
#define ATTR_READS	4	/* each way */

/**
 * kdapl_ep_attr_default - the default attributes of an EP
 * @ia: limits of its IA
 * @recv: an EVD was named for Receives
 * @request: an EVD was named for requests
 * @attr: filled entirely
 */
void kdapl_ep_attr_default(const DAT_IA_ATTR *ia, bool recv, bool request, DAT_EP_ATTR *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->service_type = DAT_SERVICE_TYPE_RC;
	attr->max_message_size = ia->max_message_size;
	attr->max_rdma_size = ia->max_rdma_size;
	attr->qos = DAT_QOS_BEST_EFFORT;
	attr->max_recv_dtos = recv ? min(ATTR_DTOS, ia->max_dto_per_ep) : 0;
	attr->max_request_dtos = request ? min(ATTR_DTOS, ia->max_dto_per_ep) : 0;
	attr->max_recv_iov = min(ATTR_IOV, ia->max_iov_segments_per_dto);
	attr->max_request_iov = min(ATTR_IOV, ia->max_iov_segments_per_dto);
	attr->max_rdma_read_in = min(ATTR_READS, ia->max_rdma_read_per_ep_in);
	attr->max_rdma_read_out = min(ATTR_READS, ia->max_rdma_read_per_ep_out);
	attr->srq_soft_hw = DAT_HW_DEFAULT;
}

static bool attr_in_range(DAT_COUNT value, DAT_COUNT max)
{
	return value >= 0 && value <= max;
}

static bool attr_flags_valid(const DAT_EP_ATTR *attr)
{
	switch (attr->recv_completion_flags) {
	case DAT_COMPLETION_DEFAULT_FLAG:
	case DAT_COMPLETION_UNSIGNALLED_FLAG:
	case DAT_COMPLETION_SOLICITED_WAIT_FLAG:
		break;
	default:
		return false;
	}
	return attr->request_completion_flags == DAT_COMPLETION_DEFAULT_FLAG ||
	       attr->request_completion_flags == DAT_COMPLETION_UNSIGNALLED_FLAG;
}

/**
 * kdapl_ep_attr_check - can an EP have these attributes?
 * @dev: the device
 * @ia: limits of its IA
 * @attr: as the consumer asks for them
 * @recv: an EVD is named for Receives
 * @request: an EVD is named for requests
 * @srq: Receives come from an SRQ
 *
 * The rules are EP-CREATE-08 and FLAG-14 (Documentation/conformance/semantics.md).
 *
 * Return: 0; -EINVAL if one of them is invalid or beyond its limit; -EOPNOTSUPP if they are
 * valid, but the device does not have this quality of service.
 */
int kdapl_ep_attr_check(const struct kdapl_device *dev, const DAT_IA_ATTR *ia,
			const DAT_EP_ATTR *attr, bool recv, bool request, bool srq)
{
	int qos = kdapl_qos_check(dev, attr->qos);

	if (attr->service_type != DAT_SERVICE_TYPE_RC ||
	    attr->max_message_size > ia->max_message_size ||
	    attr->max_rdma_size > ia->max_rdma_size)
		return -EINVAL;
	if (qos == -EINVAL)
		return -EINVAL;
	if (!attr_flags_valid(attr))
		return -EINVAL;
	if (!attr_in_range(attr->max_recv_dtos, ia->max_dto_per_ep) ||
	    !attr_in_range(attr->max_request_dtos, ia->max_dto_per_ep) ||
	    (!srq && !attr_in_range(attr->max_recv_iov, ia->max_iov_segments_per_dto)) ||
	    !attr_in_range(attr->max_request_iov, ia->max_iov_segments_per_dto) ||
	    !attr_in_range(attr->max_rdma_read_iov, ia->max_iov_segments_per_rdma_read) ||
	    !attr_in_range(attr->max_rdma_write_iov, ia->max_iov_segments_per_rdma_write) ||
	    !attr_in_range(attr->max_rdma_read_in, ia->max_rdma_read_per_ep_in) ||
	    !attr_in_range(attr->max_rdma_read_out, ia->max_rdma_read_per_ep_out) ||
	    attr->srq_soft_hw < DAT_HW_DEFAULT)
		return -EINVAL;
	/* an EVD is named for a queue that can never hold anything (SIL-08) */
	if ((recv && !srq && !attr->max_recv_dtos) || (request && !attr->max_request_dtos))
		return -EINVAL;
	if (attr->ep_transport_specific_count || attr->ep_provider_specific_count)
		return -EINVAL;
	return qos;
}

/**
 * kdapl_ep_attr_grant - choose the attributes that the consumer has left open
 * @ia: limits of the IA
 * @attr: checked
 */
void kdapl_ep_attr_grant(const DAT_IA_ATTR *ia, DAT_EP_ATTR *attr)
{
	if (!attr->max_rdma_read_iov)
		attr->max_rdma_read_iov = min(attr->max_request_iov,
					      ia->max_iov_segments_per_rdma_read);
	if (!attr->max_rdma_write_iov)
		attr->max_rdma_write_iov = attr->max_request_iov;
	attr->ep_transport_specific = NULL;
	attr->ep_provider_specific = NULL;
}

/**
 * kdapl_ep_attr_merge - change some attributes
 * @attr: those an EP has
 * @want: those it is to have
 * @mask: DAT_EP_FIELD_EP_ATTR_* bits of the ones to take from @want
 */
void kdapl_ep_attr_merge(DAT_EP_ATTR *attr, const DAT_EP_ATTR *want, u64 mask)
{
	if (mask & DAT_EP_FIELD_EP_ATTR_SERVICE_TYPE)
		attr->service_type = want->service_type;
	if (mask & DAT_EP_FIELD_EP_ATTR_MAX_MESSAGE_SIZE)
		attr->max_message_size = want->max_message_size;
	if (mask & DAT_EP_FIELD_EP_ATTR_MAX_RDMA_SIZE)
		attr->max_rdma_size = want->max_rdma_size;
	if (mask & DAT_EP_FIELD_EP_ATTR_QOS)
		attr->qos = want->qos;
	if (mask & DAT_EP_FIELD_EP_ATTR_RECV_COMPLETION_FLAGS)
		attr->recv_completion_flags = want->recv_completion_flags;
	if (mask & DAT_EP_FIELD_EP_ATTR_REQUEST_COMPLETION_FLAGS)
		attr->request_completion_flags = want->request_completion_flags;
	if (mask & DAT_EP_FIELD_EP_ATTR_MAX_RECV_DTOS)
		attr->max_recv_dtos = want->max_recv_dtos;
	if (mask & DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_DTOS)
		attr->max_request_dtos = want->max_request_dtos;
	if (mask & DAT_EP_FIELD_EP_ATTR_MAX_RECV_IOV)
		attr->max_recv_iov = want->max_recv_iov;
	if (mask & DAT_EP_FIELD_EP_ATTR_MAX_REQUEST_IOV)
		attr->max_request_iov = want->max_request_iov;
	if (mask & DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IN)
		attr->max_rdma_read_in = want->max_rdma_read_in;
	if (mask & DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_OUT)
		attr->max_rdma_read_out = want->max_rdma_read_out;
	if (mask & DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW)
		attr->srq_soft_hw = want->srq_soft_hw;
	if (mask & DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_IOV)
		attr->max_rdma_read_iov = want->max_rdma_read_iov;
	if (mask & DAT_EP_FIELD_EP_ATTR_MAX_RDMA_WRITE_IOV)
		attr->max_rdma_write_iov = want->max_rdma_write_iov;
	if (mask & DAT_EP_FIELD_EP_ATTR_NUM_TRANSPORT_ATTR)
		attr->ep_transport_specific_count = want->ep_transport_specific_count;
	if (mask & DAT_EP_FIELD_EP_ATTR_NUM_PROVIDER_ATTR)
		attr->ep_provider_specific_count = want->ep_provider_specific_count;
}
