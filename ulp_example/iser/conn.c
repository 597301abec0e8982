// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * kdat_iser: connections. Each opens an instance of the adapter that leads to its target, with a
 * Protection Zone of its own, so no target can use memory that is lent to another one.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include "kdiser.h"

#define KDISER_CONNECT_TIMEOUT	(30 * USEC_PER_SEC)	/* iscsid gives up sooner */
/* Finite, so that a cut link ends the connection. On soft-RoCE 7 means without limit. */
#define KDISER_RETRIES		6
#define KDISER_MAX_READS	255

struct workqueue_struct *kdiser_wq;

/* The outcome of an attempt, and the end of a connection. Context: a workqueue. */
static void kdiser_conn_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct kdiser_conn *conn = instance;
	bool was_up = conn->state == KDISER_UP;

	if (event->event_number == DAT_CONNECTION_EVENT_ESTABLISHED) {
		WRITE_ONCE(conn->state, KDISER_UP);
	} else {
		conn->event = event->event_number;
		WRITE_ONCE(conn->state, KDISER_DOWN);
		pr_info("%pISpc: %s: %s\n", &conn->target, was_up ? "the connection has ended" :
			"cannot connect", kdat_event_name(event->event_number));
	}
	complete_all(&conn->settled);
	if (was_up)
		kdiser_fail(conn, ISCSI_ERR_CONN_FAILED, NULL);
}

/* Why a connection is down. */
int kdiser_errno(struct kdiser_conn *conn)
{
	if (conn->err)
		return conn->err;
	switch (conn->event) {
	case DAT_CONNECTION_EVENT_PEER_REJECTED:
	case DAT_CONNECTION_EVENT_NON_PEER_REJECTED:	return -ECONNREFUSED;
	case DAT_CONNECTION_EVENT_UNREACHABLE:		return -EHOSTUNREACH;
	case DAT_CONNECTION_EVENT_TIMED_OUT:		return -ETIMEDOUT;
	default:					return -ECONNRESET;
	}
}

/*
 * End a connection, and log @why unless NULL. libiscsi is told, and has iscsid close it, or closes
 * it itself if iscsid is not there. It is told once: iscsid would take a second report for the end
 * of its next connection. Context: any, but without locks of libiscsi.
 */
void kdiser_fail(struct kdiser_conn *conn, enum iscsi_err err, const char *why)
{
	struct iscsi_conn *iscsi;

	if (why)
		pr_warn_ratelimited("%pISpc: connection given up: %s\n", &conn->target, why);
	dat_ep_disconnect(conn->ep, DAT_CLOSE_ABRUPT_FLAG);
	spin_lock_bh(&conn->lock);
	iscsi = conn->told ? NULL : conn->iscsi;
	if (iscsi)
		conn->told = true;
	spin_unlock_bh(&conn->lock);
	/* It stays until kdiser_close(), which waits for the upcall that has called this. */
	if (iscsi)
		iscsi_conn_failure(iscsi, err);
}

static DAT_RETURN kdiser_create_ep(struct kdiser_conn *conn, u32 reads, u32 max_data)
{
	const DAT_UPCALL_OBJECT dto = { conn, kdiser_upcall }, cm = { conn, kdiser_conn_upcall };
	struct kdat_conn_attr conn_attr = KDAT_CONN_ATTR_INIT;
	struct kdat_evd_attr evd_attr = KDAT_EVD_ATTR_INIT;
	DAT_EP_ATTR attr = KDAT_EP_ATTR_INIT;
	DAT_COUNT qlen;

	evd_attr.context = KDAT_EVD_CONTEXT_SOFTIRQ;
	conn_attr.retry_count = KDISER_RETRIES;
	conn_attr.rnr_retry_count = 6;
	attr.max_message_size = sizeof(struct kdiser_pdu) + KDISER_MAX_PDU;
	attr.max_recv_dtos = KDISER_LONG_RECEIVES + conn->depth + KDISER_MORE_RECEIVES;
	attr.max_recv_iov = 1;
	/* Each command may lend memory and take it back. Most Sends are noticed late. */
	attr.max_request_dtos = 3 * conn->depth + KDISER_DATA_OUTS + 4 * KDISER_SIGNAL_EVERY;
	attr.max_request_iov = 2;
	attr.max_rdma_size = max_data;
	attr.max_rdma_read_in = reads;		/* the target reads the data of WRITEs */
	qlen = attr.max_recv_dtos + attr.max_request_dtos;
	return kdat_evd_create(conn->ia, qlen, DAT_UPCALL_SINGLE_INSTANCE, &dto, DAT_EVD_DTO_FLAG,
			       &evd_attr, &conn->dto_evd) ?:
	       dat_evd_kcreate(conn->ia, 4, DAT_UPCALL_SINGLE_INSTANCE, &cm,
			       DAT_EVD_CONNECTION_FLAG, &conn->conn_evd) ?:
	       dat_ep_create(conn->ia, conn->pz, conn->dto_evd, conn->dto_evd, conn->conn_evd,
			     &attr, &conn->ep) ?:
	       kdat_ep_modify_conn(conn->ep, &conn_attr);
}

/*
 * An Endpoint for as many tasks as wanted, or as the adapter ever has room for, in a queue and in
 * the region of messages. Other errors may pass, and a session goes on only with as many tasks as
 * it began with.
 */
static DAT_RETURN kdiser_fit_ep(struct kdiser_conn *conn, u32 reads, u32 max_data)
{
	const u32 wanted = conn->depth;
	DAT_RETURN ret;

	while (!kdiser_messages_fit(conn) && conn->depth > KDISER_MIN_DEPTH)
		conn->depth /= 2;
	for (;; conn->depth /= 2) {
		ret = kdiser_create_ep(conn, reads, max_data);
		if (DAT_GET_TYPE(ret) != DAT_INVALID_PARAMETER || conn->ep ||
		    conn->depth <= KDISER_MIN_DEPTH)
			break;
		dat_evd_free(conn->dto_evd);
		dat_evd_free(conn->conn_evd);
		conn->dto_evd = NULL;
		conn->conn_evd = NULL;
	}
	if (ret == DAT_SUCCESS && conn->depth < wanted)
		pr_info_ratelimited("%pISpc: the adapter has room for %u tasks, not %u\n",
				    &conn->target, conn->depth, wanted);
	return ret;
}

/* Connections report their own ends. But an EVD that is not read fills up. */
static void kdiser_async_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
}

/* Make what a connection needs, and begin to connect. Takes seconds if no target is there. */
static int kdiser_connect(struct kdiser_conn *conn)
{
	/* No flag forbids the target to invalidate keys by its answers, so it may. */
	const DAT_UPCALL_OBJECT async = { conn, kdiser_async_upcall };
	const struct iser_cm_hdr hello = { .flags = ISER_ZBVA_NOT_SUP };
	/* IPv6 has it in the same place */
	u16 port = be16_to_cpu(((struct sockaddr_in *)&conn->target)->sin_port);
	DAT_IA_ATTR *attr;
	DAT_RETURN ret;
	int err;

	attr = kzalloc(sizeof(*attr), GFP_KERNEL);
	if (!attr)
		return -ENOMEM;
	/* Like the netlink socket of iSCSI, which is in that namespace only. */
	ret = kdat_ia_open_to(&init_net, (struct sockaddr *)&conn->target, NULL, 8,
			      &conn->async_evd, &conn->ia) ?:
	      dat_evd_modify_upcall(conn->async_evd, DAT_UPCALL_SINGLE_INSTANCE, &async,
				    DAT_UPCALL_INVOC_ANY) ?:
	      dat_ia_query(conn->ia, NULL, DAT_IA_FIELD_ALL, attr, 0, NULL) ?:
	      kdat_ia_mem_limits(conn->ia, &conn->limits) ?:
	      dat_pz_create(conn->ia, &conn->pz);
	if (ret == DAT_SUCCESS) {
		/* A page at least, which may be 128 sectors. */
		conn->sg_tablesize = clamp(conn->max_sectors / (u32)(PAGE_SIZE >> SECTOR_SHIFT), 1U,
					   (u32)conn->limits.lmr_pages - 1);
		ret = kdiser_fit_ep(conn, min(attr->max_rdma_read_per_ep_in, KDISER_MAX_READS),
				    conn->sg_tablesize * PAGE_SIZE);
	}
	kfree(attr);
	err = kdat_errno(ret) ?: kdiser_messages_create(conn);
	if (err)
		return err;
	/* Post before connecting, so that the first answer finds a Receive. */
	return kdat_errno(kdiser_post_receives(conn, 0, KDISER_LONG_RECEIVES) ?:
			  dat_ep_connect(conn->ep, (DAT_IA_ADDRESS_PTR)&conn->target, port,
					 KDISER_CONNECT_TIMEOUT, sizeof(hello), (DAT_PVOID)&hello,
					 DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG));
}

static void kdiser_connect_work(struct work_struct *work)
{
	struct kdiser_conn *conn = container_of(work, struct kdiser_conn, connect_work);
	unsigned int noio = memalloc_noio_save();	/* disks may wait for this connection */

	conn->err = kdiser_connect(conn);
	memalloc_noio_restore(noio);
	if (!conn->err)
		return;
	pr_warn_ratelimited("%pISpc: cannot connect: %pe\n", &conn->target, ERR_PTR(conn->err));
	WRITE_ONCE(conn->state, KDISER_DOWN);
	complete_all(&conn->settled);
}

/*
 * Begin to connect to @target. conn->settled completes when that has succeeded or failed. The
 * class does one thing at a time, for all sessions, so a work item does the rest.
 */
struct kdiser_conn *kdiser_open(const struct sockaddr *target, u32 depth, u32 max_sectors)
{
	struct kdiser_conn *conn;

	if (target->sa_family != AF_INET && target->sa_family != AF_INET6)
		return ERR_PTR(-EAFNOSUPPORT);
	conn = kzalloc(sizeof(*conn), GFP_NOIO);
	if (!conn)
		return ERR_PTR(-ENOMEM);
	memcpy(&conn->target, target, target->sa_family == AF_INET ? sizeof(struct sockaddr_in) :
								     sizeof(struct sockaddr_in6));
	conn->depth = depth;
	conn->max_sectors = max_sectors;
	spin_lock_init(&conn->lock);
	init_completion(&conn->settled);
	INIT_WORK(&conn->connect_work, kdiser_connect_work);
	INIT_DELAYED_WORK(&conn->late_work, kdiser_deliver_late);
	queue_work(kdiser_wq, &conn->connect_work);
	return conn;
}

/*
 * End the connection and free all that was made on the adapter. Afterwards commands without an
 * answer can be given up: their memory is out of reach. May be called again.
 */
void kdiser_close(struct kdiser_conn *conn)
{
	unsigned int noio = memalloc_noio_save();
	struct iscsi_conn *iscsi;

	cancel_work_sync(&conn->connect_work);
	/* Its caller ends it and needs no report. */
	spin_lock_bh(&conn->lock);
	conn->told = true;
	spin_unlock_bh(&conn->lock);
	if (conn->ep) {
		dat_ep_disconnect(conn->ep, DAT_CLOSE_ABRUPT_FLAG);
		kdat_ep_drain(conn->ep);
		cancel_delayed_work_sync(&conn->late_work);
	}
	if (conn->ia)
		dat_ia_close(conn->ia, DAT_CLOSE_ABRUPT_FLAG);	/* waits for upcalls */
	conn->ep = NULL;
	conn->ia = NULL;
	iscsi = conn->iscsi;
	if (iscsi) {
		/* These are held by libiscsi while it sends, or gives up, a task. */
		spin_lock_bh(&iscsi->session->frwd_lock);
		spin_lock(&iscsi->session->back_lock);
		iscsi->dd_data = NULL;
		spin_unlock(&iscsi->session->back_lock);
		spin_unlock_bh(&iscsi->session->frwd_lock);
		conn->iscsi = NULL;
	}
	memalloc_noio_restore(noio);
}

void kdiser_free(struct kdiser_conn *conn)
{
	kdiser_mem_free(conn);
	kfree(conn);
}
