// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * kdat_iser: sessions, and what iscsid asks of them, most of which libiscsi does. The order of a
 * session's life, as the iSCSI class has it:
 *
 *	ep_connect, ep_poll, create_session, create_conn, bind_conn
 *	send_pdu (logins), set_param, start_conn
 *	unbind_conn, ep_disconnect, stop_conn		after an error, or a logout
 *	ep_connect, ep_poll, bind_conn, ...		again, after an error
 *	destroy_conn, destroy_session
 *
 * If iscsid is not there when a connection fails, the class itself disconnects and stops.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <scsi/scsi.h>
#include <scsi/scsi_device.h>
#include <scsi/scsi_host.h>
#include "kdiser.h"

#define KDISER_MAX_LUNS		512
#define KDISER_CDB_SIZE		16
#define KDISER_SOON		(HZ / 10)	/* a connection nearby takes less */

static DEFINE_MUTEX(kdiser_mutex);		/* protects the list */
static LIST_HEAD(kdiser_conns);
static struct scsi_transport_template *kdiser_template;
static u32 kdiser_depth, kdiser_max_sectors;

/* ---- endpoints ---- */

/* The connection of an endpoint. iscsid passes a number, which may be of another transport. */
static struct kdiser_conn *kdiser_find(struct iscsi_endpoint *endpoint)
{
	struct kdiser_conn *conn, *found = NULL;

	mutex_lock(&kdiser_mutex);
	list_for_each_entry(conn, &kdiser_conns, node)
		if (conn->endpoint == endpoint)
			found = conn;
	mutex_unlock(&kdiser_mutex);
	return found;
}

/* @shost is of an interface that iscsid binds to; it is ignored. In iser the route decides. */
static struct iscsi_endpoint *kdiser_ep_connect(struct Scsi_Host *shost, struct sockaddr *target,
						int non_blocking)
{
	struct iscsi_endpoint *endpoint;
	struct kdiser_conn *conn;

	conn = kdiser_open(target, kdiser_depth, kdiser_max_sectors);
	if (IS_ERR(conn))
		return ERR_CAST(conn);
	endpoint = iscsi_create_endpoint(0);
	if (!endpoint) {
		kdiser_close(conn);
		kdiser_free(conn);
		return ERR_PTR(-ENOMEM);
	}
	endpoint->dd_data = conn;
	conn->endpoint = endpoint;
	mutex_lock(&kdiser_mutex);
	list_add_tail(&conn->node, &kdiser_conns);
	mutex_unlock(&kdiser_mutex);
	/* iscsid looks once, and then a second later. */
	if (non_blocking)
		wait_for_completion_timeout(&conn->settled, KDISER_SOON);
	else
		wait_for_completion(&conn->settled);	/* there is a time limit */
	return endpoint;
}

/* 1 if it is connected, 0 if not yet. */
static int kdiser_ep_poll(struct iscsi_endpoint *endpoint, int timeout_ms)
{
	struct kdiser_conn *conn = kdiser_find(endpoint);
	long left;

	if (!conn)
		return -EINVAL;
	left = wait_for_completion_interruptible_timeout(&conn->settled,
							 msecs_to_jiffies(timeout_ms));
	if (left <= 0)
		return left;
	return READ_ONCE(conn->state) == KDISER_UP ? 1 : kdiser_errno(conn);
}

static void kdiser_ep_disconnect(struct iscsi_endpoint *endpoint)
{
	struct kdiser_conn *conn = kdiser_find(endpoint);

	if (!conn)
		return;
	mutex_lock(&kdiser_mutex);
	list_del(&conn->node);
	mutex_unlock(&kdiser_mutex);
	kdiser_close(conn);
	kdiser_free(conn);
	iscsi_destroy_endpoint(endpoint);
}

static int kdiser_get_ep_param(struct iscsi_endpoint *endpoint, enum iscsi_param param, char *buf)
{
	struct kdiser_conn *conn = kdiser_find(endpoint);

	if (!conn)
		return -ENOTCONN;
	if (param != ISCSI_PARAM_CONN_PORT && param != ISCSI_PARAM_CONN_ADDRESS)
		return -EOPNOTSUPP;
	return iscsi_conn_get_addr_param(&conn->target, param, buf);
}

/* ---- sessions ---- */

/* Not const, because of Linux 6.1. */
static struct scsi_host_template kdiser_host = {
	.module = THIS_MODULE,
	.name = "iSER over kDAPL",
	.proc_name = "iscsi_iser",	/* where open-iscsi finds the name of the transport */
	.queuecommand = iscsi_queuecommand,
	.change_queue_depth = scsi_change_queue_depth,
	.eh_timed_out = iscsi_eh_cmd_timed_out,
	.eh_abort_handler = iscsi_eh_abort,
	.eh_device_reset_handler = iscsi_eh_device_reset,
	.eh_target_reset_handler = iscsi_eh_recover_target,
	.target_alloc = iscsi_target_alloc,
	.cmd_size = sizeof(struct iscsi_cmd),
	.cmd_per_lun = ISCSI_DEF_CMD_PER_LUN,
	.this_id = -1,
	.track_queue_depth = 1,
};

static struct iscsi_cls_session *kdiser_create_session(struct iscsi_endpoint *endpoint,
						       u16 cmds_max, u16 queue_depth, u32 cmdsn)
{
	struct kdiser_conn *conn = endpoint ? kdiser_find(endpoint) : NULL;
	struct iscsi_cls_session *session;
	struct device *parent = NULL;
	struct Scsi_Host *host;
	u64 sectors;
	int err;

	if (!conn || READ_ONCE(conn->state) != KDISER_UP)
		return NULL;
	/* false: sending never sleeps, so commands need no worker. */
	host = iscsi_host_alloc(&kdiser_host, 0, false);
	if (!host)
		return NULL;
	sectors = min_t(u64, (u64)conn->sg_tablesize * (PAGE_SIZE >> SECTOR_SHIFT),
			conn->limits.max_mapping >> SECTOR_SHIFT);
	host->transportt = kdiser_template;
	host->can_queue = min_t(u32, cmds_max, conn->depth);
	host->cmd_per_lun = queue_depth;
	host->max_id = 0;
	host->max_channel = 0;
	host->max_lun = KDISER_MAX_LUNS;
	host->max_cmd_len = KDISER_CDB_SIZE;
	host->sg_tablesize = conn->sg_tablesize;
	host->max_sectors = sectors;
	host->virt_boundary_mask = conn->limits.boundary - 1;
	if (kdat_ia_device(conn->ia, &parent) != DAT_SUCCESS)
		goto free;
	/*
	 * This sets the longest DMA segment of the adapter for all its users, and would set 64 KiB.
	 * A boundary needs longer segments: all that the adapter takes.
	 */
	host->max_segment_size = parent ? dma_get_max_seg_size(parent) : UINT_MAX;
	err = iscsi_host_add(host, parent);
	put_device(parent);
	if (err)
		goto free;
	session = iscsi_session_setup(&kdiser_transport, host, host->can_queue, 0,
				      sizeof(struct iscsi_hdr), cmdsn, 0);
	if (session)
		return session;
	iscsi_host_remove(host, false);
free:
	iscsi_host_free(host);
	return NULL;
}

/*
 * In a work item of the class only the session keeps the module loaded, so the session goes last.
 * It keeps the host, too.
 */
static void kdiser_destroy_session(struct iscsi_cls_session *session)
{
	struct Scsi_Host *host = iscsi_session_to_shost(session);

	iscsi_session_remove(session);
	iscsi_host_remove(host, false);
	iscsi_host_free(host);
	iscsi_session_free(session);
}

static struct iscsi_cls_conn *kdiser_create_conn(struct iscsi_cls_session *session, u32 cid)
{
	struct iscsi_cls_conn *cls_conn = iscsi_conn_setup(session, 0, cid);
	struct iscsi_conn *iscsi;

	if (!cls_conn)
		return NULL;
	iscsi = cls_conn->dd_data;
	/* What iscsid shows. It tells the target the number of its record, by default 262144. */
	iscsi->max_recv_dlength = KDISER_DATA_SIZE;
	return cls_conn;
}

/* Bring a connection of ours and one of libiscsi together. */
static int kdiser_bind_conn(struct iscsi_cls_session *session, struct iscsi_cls_conn *cls_conn,
			    u64 handle, int is_leading)
{
	struct iscsi_conn *iscsi = cls_conn->dd_data;
	const struct Scsi_Host *host = iscsi->session->host;
	struct iscsi_endpoint *endpoint;
	struct kdiser_conn *conn;
	int err = -EINVAL;

	endpoint = iscsi_lookup_endpoint(handle);
	if (!endpoint)
		return -EINVAL;
	conn = kdiser_find(endpoint);
	if (!conn || conn->slots || iscsi->dd_data || READ_ONCE(conn->state) != KDISER_UP)
		goto put;
	/* The adapter may not be the one that the session began on. */
	if (conn->sg_tablesize < host->sg_tablesize || conn->depth < iscsi->session->cmds_max ||
	    conn->limits.max_mapping >> SECTOR_SHIFT < host->max_sectors) {
		pr_warn("%pISpc: this adapter has no room for %d tasks of %u pages, %u sectors\n",
			&conn->target, iscsi->session->cmds_max, host->sg_tablesize,
			host->max_sectors);
		goto put;
	}
	err = kdiser_slots_create(conn, iscsi->session->cmds_max) ?:
	      iscsi_conn_bind(session, cls_conn, is_leading);
	if (err)
		goto put;
	spin_lock_bh(&conn->lock);
	iscsi->dd_data = conn;
	conn->iscsi = iscsi;
	spin_unlock_bh(&conn->lock);
	if (READ_ONCE(conn->state) != KDISER_UP)	/* its upcall could not tell libiscsi */
		kdiser_fail(conn, ISCSI_ERR_CONN_FAILED, NULL);
put:
	iscsi_put_endpoint(endpoint);
	return err;
}

/*
 * The login is over. Only now post the short Receives, which its answers would not fit into. What
 * a target sends unasked before that uses the long ones. A discovery has no short ones.
 */
static int kdiser_start_conn(struct iscsi_cls_conn *cls_conn)
{
	struct iscsi_conn *iscsi = cls_conn->dd_data;
	struct iscsi_session *session = iscsi->session;
	struct kdiser_conn *conn = iscsi->dd_data;
	DAT_RETURN ret = DAT_SUCCESS;

	if (!conn)
		return -ENOTCONN;
	if (conn->started)
		return -EALREADY;
	iscsi->max_xmit_dlength = min(iscsi->max_xmit_dlength, KDISER_MAX_PDU);
	if (!iscsi->max_xmit_dlength ||
	    (!session->initial_r2t_en &&
	     DIV_ROUND_UP(session->first_burst, iscsi->max_xmit_dlength) > KDISER_DATA_OUTS)) {
		iscsi_conn_printk(KERN_ERR, iscsi,
				  "FirstBurstLength %u takes more than %u PDUs of %u bytes: make it less, or set InitialR2T = Yes\n",
				  session->first_burst, KDISER_DATA_OUTS, iscsi->max_xmit_dlength);
		return -EINVAL;
	}
	conn->started = true;
	if (!session->discovery_sess)
		ret = kdiser_post_receives(conn, KDISER_LONG_RECEIVES,
					   conn->nr_slots + KDISER_MORE_RECEIVES);
	return kdat_errno(ret) ?: iscsi_conn_start(cls_conn);
}

/* The class disconnects first. If it has not, no command may be given up before that. */
static void kdiser_unreachable(struct iscsi_cls_conn *cls_conn)
{
	struct iscsi_conn *iscsi = cls_conn->dd_data;

	if (iscsi->dd_data)
		kdiser_close(iscsi->dd_data);
}

static void kdiser_stop_conn(struct iscsi_cls_conn *cls_conn, int flag)
{
	kdiser_unreachable(cls_conn);
	iscsi_conn_stop(cls_conn, flag);
}

static void kdiser_destroy_conn(struct iscsi_cls_conn *cls_conn)
{
	kdiser_unreachable(cls_conn);
	iscsi_conn_teardown(cls_conn);
}

/* ---- parameters ---- */

static int kdiser_set_param(struct iscsi_cls_conn *cls_conn, enum iscsi_param param, char *buf,
			    int buflen)
{
	int value;

	switch (param) {
	case ISCSI_PARAM_MAX_RECV_DLENGTH:
		return 0;		/* it is that of our Receives */
	case ISCSI_PARAM_HDRDGST_EN:
	case ISCSI_PARAM_DATADGST_EN:
	case ISCSI_PARAM_IFMARKER_EN:
	case ISCSI_PARAM_OFMARKER_EN:
		/* The transport below does what these are for. */
		return kstrtoint(buf, 10, &value) || value ? -EPROTO : 0;
	default:
		return iscsi_set_param(cls_conn, param, buf, buflen);
	}
}

static void kdiser_get_stats(struct iscsi_cls_conn *cls_conn, struct iscsi_stats *stats)
{
	struct iscsi_conn *iscsi = cls_conn->dd_data;

	stats->txdata_octets = iscsi->txdata_octets;
	stats->rxdata_octets = iscsi->rxdata_octets;
	stats->scsicmd_pdus = iscsi->scsicmd_pdus_cnt;
	stats->dataout_pdus = iscsi->dataout_pdus_cnt;
	stats->scsirsp_pdus = iscsi->scsirsp_pdus_cnt;
	stats->tmfcmd_pdus = iscsi->tmfcmd_pdus_cnt;
	stats->tmfrsp_pdus = iscsi->tmfrsp_pdus_cnt;
}

/* The files in sysfs. */
static umode_t kdiser_attr_is_visible(int type, int param)
{
	if (type == ISCSI_HOST_PARAM) {
		switch (param) {
		case ISCSI_HOST_PARAM_NETDEV_NAME:
		case ISCSI_HOST_PARAM_HWADDRESS:
		case ISCSI_HOST_PARAM_INITIATOR_NAME:
			return 0444;
		}
	} else if (type == ISCSI_PARAM) {
		switch (param) {
		case ISCSI_PARAM_MAX_RECV_DLENGTH:
		case ISCSI_PARAM_MAX_XMIT_DLENGTH:
		case ISCSI_PARAM_HDRDGST_EN:
		case ISCSI_PARAM_DATADGST_EN:
		case ISCSI_PARAM_CONN_ADDRESS:
		case ISCSI_PARAM_CONN_PORT:
		case ISCSI_PARAM_EXP_STATSN:
		case ISCSI_PARAM_PERSISTENT_ADDRESS:
		case ISCSI_PARAM_PERSISTENT_PORT:
		case ISCSI_PARAM_PING_TMO:
		case ISCSI_PARAM_RECV_TMO:
		case ISCSI_PARAM_INITIAL_R2T_EN:
		case ISCSI_PARAM_MAX_R2T:
		case ISCSI_PARAM_IMM_DATA_EN:
		case ISCSI_PARAM_FIRST_BURST:
		case ISCSI_PARAM_MAX_BURST:
		case ISCSI_PARAM_PDU_INORDER_EN:
		case ISCSI_PARAM_DATASEQ_INORDER_EN:
		case ISCSI_PARAM_TARGET_NAME:
		case ISCSI_PARAM_TPGT:
		case ISCSI_PARAM_USERNAME:
		case ISCSI_PARAM_PASSWORD:
		case ISCSI_PARAM_USERNAME_IN:
		case ISCSI_PARAM_PASSWORD_IN:
		case ISCSI_PARAM_FAST_ABORT:
		case ISCSI_PARAM_ABORT_TMO:
		case ISCSI_PARAM_LU_RESET_TMO:
		case ISCSI_PARAM_TGT_RESET_TMO:
		case ISCSI_PARAM_IFACE_NAME:
		case ISCSI_PARAM_INITIATOR_NAME:
		case ISCSI_PARAM_DISCOVERY_SESS:
			return 0444;
		}
	}
	return 0;
}

struct iscsi_transport kdiser_transport = {
	.owner = THIS_MODULE,
	.name = "iser",
	.caps = CAP_RECOVERY_L0 | CAP_MULTI_R2T | CAP_TEXT_NEGO,
	.ep_connect = kdiser_ep_connect,
	.ep_poll = kdiser_ep_poll,
	.ep_disconnect = kdiser_ep_disconnect,
	.get_ep_param = kdiser_get_ep_param,
	.create_session = kdiser_create_session,
	.destroy_session = kdiser_destroy_session,
	.get_session_param = iscsi_session_get_param,
	.session_recovery_timedout = iscsi_session_recovery_timedout,
	.create_conn = kdiser_create_conn,
	.bind_conn = kdiser_bind_conn,
	.start_conn = kdiser_start_conn,
	.unbind_conn = iscsi_conn_unbind,
	.stop_conn = kdiser_stop_conn,
	.destroy_conn = kdiser_destroy_conn,
	.get_conn_param = iscsi_conn_get_param,
	.set_param = kdiser_set_param,
	.get_stats = kdiser_get_stats,
	.attr_is_visible = kdiser_attr_is_visible,
	.get_host_param = iscsi_host_get_param,
	.set_host_param = iscsi_host_set_param,
	.send_pdu = iscsi_conn_send_pdu,
	.alloc_pdu = kdiser_alloc_pdu,
	.xmit_task = kdiser_xmit_task,
	.cleanup_task = kdiser_cleanup_task,
};

int kdiser_register(u32 depth, u32 max_sectors)
{
	kdiser_depth = depth;
	kdiser_max_sectors = max_sectors;
	kdiser_wq = alloc_workqueue("kdat_iser", WQ_UNBOUND | WQ_MEM_RECLAIM, 0);
	if (!kdiser_wq)
		return -ENOMEM;
	kdiser_template = iscsi_register_transport(&kdiser_transport);
	if (kdiser_template)
		return 0;
	destroy_workqueue(kdiser_wq);
	return -ENOMEM;
}

/* Sessions hold the module. Connections that iscsid left unbound when it ended do not. */
void kdiser_unregister(void)
{
	struct kdiser_conn *conn, *next;

	iscsi_unregister_transport(&kdiser_transport);
	list_for_each_entry_safe(conn, next, &kdiser_conns, node)
		kdiser_ep_disconnect(conn->endpoint);
	destroy_workqueue(kdiser_wq);
}
