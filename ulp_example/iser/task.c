// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * kdat_iser: what libiscsi sends. Commands come from queuecommand, task management and pings from
 * anywhere, all under a spinlock of the session: nothing here sleeps or allocates.
 *
 *	READ			lend the memory, send the command
 *	short WRITE		copy the data behind the command
 *	longer WRITE		if the target takes all of it unasked: register the memory, send
 *				the command, and the data behind it and in Data-Out PDUs
 *	any other WRITE		lend the memory, send the command
 *	anything else		send the PDU
 *
 * Data is never sent from memory that is lent. The target may take back its key while a Send waits,
 * or has to be repeated since the network has lost its ACK. That Send would fail.
 *
 * The connection's lock is held from the moment at which an answer would be accepted to the end
 * of the post: a target that answers before it is asked finds nothing to complete.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <scsi/scsi_cmnd.h>
#include "kdiser.h"

/* The header that libiscsi fills in. The slot's copy of it is sent. */
int kdiser_alloc_pdu(struct iscsi_task *task, u8 opcode)
{
	task->hdr = task->dd_data;
	task->hdr_max = sizeof(struct iscsi_hdr);
	return 0;
}

/*
 * A Send without a completion costs less. One of several has a completion, which frees their
 * entries. So has each Send with data: memory may depend on it, and soft-iWARP is slower without.
 */
static DAT_COMPLETION_FLAGS kdiser_flags(struct kdiser_conn *conn, u32 data)
{
	lockdep_assert_held(&conn->lock);
	if (!data && ++conn->quiet < KDISER_SIGNAL_EVERY)
		return DAT_COMPLETION_SUPPRESS_FLAG;
	conn->quiet = 0;
	return DAT_COMPLETION_DEFAULT_FLAG;
}

static struct kdiser_pdu *kdiser_prepare(struct kdiser_conn *conn, struct iscsi_task *task)
{
	struct kdiser_pdu *pdu = kdiser_slot_pdu(conn, task->itt);
	struct kdiser_slot *slot = &conn->slots[task->itt];

	memset(&pdu->iser, 0, sizeof(pdu->iser));
	pdu->iser.flags = ISCSI_CTRL;
	pdu->iscsi = *task->hdr;
	slot->answered = false;
	slot->due = KDISER_NOTHING;
	return pdu;
}

static DAT_RETURN kdiser_send_plain(struct kdiser_conn *conn, u32 i, u32 data)
{
	DAT_LMR_TRIPLET iov = {
		.virtual_address = (uintptr_t)kdiser_slot_pdu(conn, i),
		.segment_length = sizeof(struct kdiser_pdu) + data,
		.lmr_context = conn->lkey,
	};

	return dat_ep_post_send(conn->ep, 1, &iov, kdiser_cookie(KDISER_SENT, i),
				kdiser_flags(conn, data));
}

/* Send the data of a WRITE that is not in the command. */
static DAT_RETURN kdiser_send_data_outs(struct kdiser_conn *conn, struct iscsi_task *task,
					DAT_VADDR address, DAT_LMR_CONTEXT lkey)
{
	struct iscsi_r2t_info *r2t = &task->unsol_r2t;
	DAT_RETURN ret = DAT_SUCCESS;

	while (iscsi_task_has_unsol_data(task) && ret == DAT_SUCCESS) {
		u16 i = conn->data_outs[--conn->nr_data_outs];
		struct kdiser_pdu *pdu = kdiser_data_pdu(conn, i);
		DAT_LMR_TRIPLET iov[] = {
			{ (uintptr_t)pdu, sizeof(*pdu), conn->lkey },
			{ .lmr_context = lkey },
		};

		memset(&pdu->iser, 0, sizeof(pdu->iser));
		pdu->iser.flags = ISCSI_CTRL;
		iscsi_prep_data_out_pdu(task, r2t, (struct iscsi_data *)&pdu->iscsi);
		iov[1].virtual_address = address + r2t->data_offset + r2t->sent;
		iov[1].segment_length = r2t->data_count;
		ret = dat_ep_post_send(conn->ep, ARRAY_SIZE(iov), iov,
				       kdiser_cookie(KDISER_DATA_OUT_SENT, i),
				       DAT_COMPLETION_DEFAULT_FLAG);
		r2t->sent += r2t->data_count;
		if (ret == DAT_SUCCESS) {
			conn->data_slots[i] = task->itt;
			conn->slots[task->itt].sends++;
		}
	}
	return ret;
}

/*
 * Register the memory of a command, and send the command. Either all data is sent, @immediate bytes
 * with the command and @more in Data-Outs, or the memory is lent to the target.
 */
static DAT_RETURN kdiser_send_registered(struct kdiser_conn *conn, struct iscsi_task *task,
					 u32 immediate, u32 more)
{
	struct kdiser_pdu *pdu = kdiser_slot_pdu(conn, task->itt);
	struct kdiser_slot *slot = &conn->slots[task->itt];
	struct scatterlist *sgl = scsi_sglist(task->sc);
	/* Do not expose addresses of our memory if that can be avoided. */
	bool zb = !offset_in_page(sgl->offset);
	DAT_VADDR address = zb ? 0 : sg_phys(sgl);
	struct kdat_sg sg = {
		.sgl = sgl,
		.nents = scsi_sg_count(task->sc),
		.length = scsi_bufflen(task->sc),
	};
	DAT_LMR_TRIPLET iov[] = {
		{ (uintptr_t)pdu, sizeof(*pdu), conn->lkey },
		{ address, immediate },
	};
	struct kdat_request list[] = {
		{
			.op = KDAT_REQUEST_LMR_FMR,
			.completion_flags = DAT_COMPLETION_SUPPRESS_FLAG,
			.user_cookie = kdiser_cookie(KDISER_SENT, task->itt),
			.lmr_handle = slot->lmr,
			.sg = &sg,
			.va_type = zb ? DAT_VA_TYPE_ZB : DAT_VA_TYPE_VA,
		}, {
			.op = KDAT_REQUEST_SEND,
			.completion_flags = kdiser_flags(conn, immediate),
			.user_cookie = kdiser_cookie(immediate ? KDISER_DATA_SENT : KDISER_SENT,
						     task->itt),
			.num_segments = immediate ? 2 : 1,
			.local_iov = iov,
		},
	};
	DAT_COUNT failed;
	DAT_RETURN ret;

	ret = kdat_lmr_next_contexts(slot->lmr, &iov[1].lmr_context, &slot->rkey);
	if (ret != DAT_SUCCESS)
		return ret;
	if (immediate + more) {
		list[0].mem_privileges = DAT_MEM_PRIV_LOCAL_READ_FLAG;
	} else if (task->sc->sc_data_direction == DMA_TO_DEVICE) {
		list[0].mem_privileges = DAT_MEM_PRIV_REMOTE_READ_FLAG;
		pdu->iser.flags |= ISER_WSV;
		pdu->iser.write_stag = cpu_to_be32(slot->rkey);
		pdu->iser.write_va = cpu_to_be64(address);
	} else {
		list[0].mem_privileges = DAT_MEM_PRIV_REMOTE_WRITE_FLAG;
		pdu->iser.flags |= ISER_RSV;
		pdu->iser.read_stag = cpu_to_be32(slot->rkey);
		pdu->iser.read_va = cpu_to_be64(address);
	}
	slot->registered = true;
	ret = kdat_ep_post_list(conn->ep, list, ARRAY_SIZE(list), &failed);
	if (ret != DAT_SUCCESS) {
		slot->registered = false;
		return ret;
	}
	slot->sends = !!immediate;
	if (more && kdiser_send_data_outs(conn, task, address, iov[1].lmr_context) != DAT_SUCCESS)
		/* The command is out, so it cannot be refused any more. */
		dat_ep_disconnect(conn->ep, DAT_CLOSE_ABRUPT_FLAG);
	return DAT_SUCCESS;
}

/* The target reads all data of a WRITE. If no Data-Outs follow, none has to be in the command. */
static void kdiser_send_no_data(struct iscsi_task *task)
{
	task->imm_count = 0;
	task->unsol_r2t.data_length = 0;
	task->hdr->flags |= ISCSI_FLAG_CMD_FINAL;
	hton24(task->hdr->dlength, 0);
}

static DAT_RETURN kdiser_send_command(struct kdiser_conn *conn, struct iscsi_task *task)
{
	struct kdiser_slot *slot = &conn->slots[task->itt];
	struct scsi_cmnd *sc = task->sc;
	bool write = sc->sc_data_direction == DMA_TO_DEVICE;
	u32 length = scsi_bufflen(sc), immediate, more;
	u64 xmit = task->conn->max_xmit_dlength;
	struct kdiser_pdu *pdu;
	DAT_RETURN ret;

	if (write && task->imm_count + task->unsol_r2t.data_length < length)
		kdiser_send_no_data(task);
	immediate = write ? task->imm_count : 0;
	more = write ? task->unsol_r2t.data_length : 0;
	/* All or nothing. kdiser_start_conn() makes sure that all fit, unless that is changed. */
	if (more > conn->nr_data_outs * xmit)
		return more > KDISER_DATA_OUTS * xmit ?
		       DAT_LENGTH_ERROR : DAT_INSUFFICIENT_RESOURCES;
	pdu = kdiser_prepare(conn, task);
	slot->lun = task->lun;
	slot->cmdsn = be32_to_cpu(task->cmdsn);
	slot->incoming = write ? 0 : length;
	slot->itt = task->hdr_itt;
	if (!length) {
		ret = kdiser_send_plain(conn, task->itt, 0);
	} else if (write && immediate == length && length <= conn->copy) {
		sg_copy_to_buffer(scsi_sglist(sc), scsi_sg_count(sc), pdu->data, length);
		ret = kdiser_send_plain(conn, task->itt, length);
	} else {
		ret = kdiser_send_registered(conn, task, immediate, more);
	}
	if (ret != DAT_SUCCESS)
		slot->itt = RESERVED_ITT;
	else if (write)
		task->conn->txdata_octets += length;
	return ret;
}

/* Logins, texts, pings, task management, logouts. Only the first two have data. */
static DAT_RETURN kdiser_send_control(struct kdiser_conn *conn, struct iscsi_task *task)
{
	struct kdiser_pdu *pdu = kdiser_prepare(conn, task);
	struct kdiser_slot *slot = &conn->slots[task->itt];
	bool management = (pdu->iscsi.opcode & ISCSI_OPCODE_MASK) == ISCSI_OP_SCSI_TMFUNC;
	bool answer = pdu->iscsi.itt != RESERVED_ITT;
	DAT_LMR_TRIPLET iov[] = {
		{ (uintptr_t)pdu, sizeof(*pdu), conn->lkey },
		{ (uintptr_t)kdiser_text(conn), task->data_count, conn->lkey },
	};
	DAT_RETURN ret;

	if (task->data_count > KDISER_TEXT_SIZE)
		return DAT_INVALID_PARAMETER;
	if (task->data_count)
		memcpy(kdiser_text(conn), task->data, task->data_count);
	if (management)
		conn->tm = *(struct iscsi_tm *)&pdu->iscsi;
	ret = dat_ep_post_send(conn->ep, task->data_count ? 2 : 1, iov,
			       kdiser_cookie(answer ? KDISER_SENT : KDISER_SENT_UNANSWERED,
					     task->itt),
			       answer ? kdiser_flags(conn, 0) : DAT_COMPLETION_DEFAULT_FLAG);
	if (ret == DAT_SUCCESS)
		slot->due = management ? KDISER_TM_ANSWER : answer ? KDISER_ANSWER : KDISER_SEND;
	return ret;
}

/*
 * A command that can never be sent ends here. It was not sent, so its number is for the next one:
 * take it back from the counts of libiscsi, whose lock is held. An error would not help, since
 * libiscsi would only try again.
 */
static void kdiser_refuse_command(struct kdiser_conn *conn, struct iscsi_task *task, DAT_RETURN why)
{
	struct iscsi_session *session = task->conn->session;
	struct scsi_cmnd *sc = task->sc;

	pr_err_ratelimited("%pISpc: a command of %u bytes in %u pieces fails, it cannot be sent: %pe\n",
			   &conn->target, scsi_bufflen(sc), scsi_sg_count(sc),
			   ERR_PTR(kdat_errno(why)));
	session->cmdsn--;
	session->queued_cmdsn--;
	sc->result = DID_ABORT << 16;
	scsi_set_resid(sc, scsi_bufflen(sc));
	iscsi_put_task(task);
}

/*
 * Whatever the error, the SCSI layer tries a command again. So return an error only if the cause
 * ends by itself: other commands have to be done first, or the connection has ended and its upcall
 * is about to tell libiscsi.
 */
int kdiser_xmit_task(struct iscsi_task *task)
{
	struct kdiser_conn *conn = task->conn->dd_data;
	DAT_RETURN ret;

	if (!conn || task->itt >= conn->nr_slots)
		return -ENOTCONN;
	spin_lock_bh(&conn->lock);
	if (task->sc)
		ret = kdiser_send_command(conn, task);
	else
		ret = kdiser_send_control(conn, task);
	spin_unlock_bh(&conn->lock);
	switch (DAT_GET_TYPE(ret)) {
	case DAT_SUCCESS:
		return 0;
	case DAT_INSUFFICIENT_RESOURCES:
		return -ENOBUFS;
	case DAT_INVALID_PARAMETER:
	case DAT_LENGTH_ERROR:
		if (!task->sc)
			return -EINVAL;
		kdiser_refuse_command(conn, task, ret);
		return 0;
	case DAT_INTERNAL_ERROR:	/* the device is gone */
		return -ENOTCONN;
	case DAT_INVALID_STATE:
		if (DAT_GET_SUBTYPE(ret) != DAT_INVALID_STATE_LMR_IN_USE)
			return -ENOTCONN;
		fallthrough;
	default:
		pr_err_ratelimited("%pISpc: connection given up: a task could not be sent: %pe\n",
				   &conn->target, ERR_PTR(kdat_errno(ret)));
		dat_ep_disconnect(conn->ep, DAT_CLOSE_ABRUPT_FLAG);
		return -ENOTCONN;
	}
}

/*
 * libiscsi is about to give back the memory of a task: after its answer, after the answer to task
 * management, or after kdiser_close(). In each case the memory is out of reach by now.
 */
void kdiser_cleanup_task(struct iscsi_task *task)
{
	struct kdiser_conn *conn = task->conn->dd_data;
	struct kdiser_slot *slot;

	if (!conn || !task->sc || task->itt >= conn->nr_slots)
		return;
	slot = &conn->slots[task->itt];
	spin_lock_bh(&conn->lock);
	slot->itt = RESERVED_ITT;
	spin_unlock_bh(&conn->lock);
}
