// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * kdat_iser: what arrives. All of it runs in the upcall of one EVD, so one event at a time, in
 * softirq.
 *
 * When libiscsi learns that a command has ended, it gives back the memory. So an answer is passed
 * on only when the target can no longer reach that memory: the answer has invalidated its key, or
 * an invalidation posted here is done. The answer to task management waits for the memory of all
 * commands that it ends. Whatever else does not fit ends the connection.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include "kdiser.h"

static DAT_RETURN kdiser_post_receive(struct kdiser_conn *conn, u32 i)
{
	DAT_LMR_TRIPLET iov = { .lmr_context = conn->lkey };
	u32 size;

	iov.virtual_address = (uintptr_t)kdiser_receive(conn, i, &size);
	iov.segment_length = size;
	return dat_ep_post_recv(conn->ep, 1, &iov, kdiser_cookie(KDISER_RECEIVED, i),
				DAT_COMPLETION_DEFAULT_FLAG);
}

/* Context: any, but @count may be thousands. */
DAT_RETURN kdiser_post_receives(struct kdiser_conn *conn, u32 first, u32 count)
{
	DAT_RETURN ret = DAT_SUCCESS;
	u32 i;

	for (i = 0; i < count && ret == DAT_SUCCESS; i++)
		ret = kdiser_post_receive(conn, first + i);
	return ret;
}

/* Does this answer lead to the full feature phase? That of a discovery session does not count. */
static bool kdiser_login_ends(struct iscsi_conn *iscsi, const struct iscsi_hdr *hdr)
{
	const struct iscsi_login_rsp *rsp = (const struct iscsi_login_rsp *)hdr;

	return !iscsi->session->discovery_sess && !rsp->status_class &&
	       (rsp->flags & ISCSI_FLAG_LOGIN_TRANSIT) &&
	       (rsp->flags & ISCSI_FLAG_LOGIN_NEXT_STAGE_MASK) == ISCSI_FULL_FEATURE_PHASE;
}

static int kdiser_complete(struct kdiser_conn *conn, struct iscsi_conn *iscsi, u32 i)
{
	u32 size;
	struct kdiser_pdu *pdu = kdiser_receive(conn, i, &size);

	return iscsi_complete_pdu(iscsi, &pdu->iscsi, pdu->data, ntoh24(pdu->iscsi.dlength));
}

static void kdiser_delivered(struct kdiser_conn *conn, u32 i, int err)
{
	if (err && err != ISCSI_ERR_NO_SCSI_CMD)
		kdiser_fail(conn, err, "the target sent what does not fit");
	else if (kdiser_post_receive(conn, i) != DAT_SUCCESS)
		kdiser_fail(conn, ISCSI_ERR_CONN_FAILED, "a Receive could not be posted");
}

/* Give a PDU to libiscsi, and post its Receive again. */
static void kdiser_deliver(struct kdiser_conn *conn, struct iscsi_conn *iscsi, u32 i)
{
	kdiser_delivered(conn, i, kdiser_complete(conn, iscsi, i));
}

/*
 * Deliver the answer to task management, of slot @i. libiscsi takes any such answer for that to its
 * last request. There is an earlier request if the task that waited for its answer got a signal
 * (sg_reset). The answer to that one says nothing about the commands of the last request, and only
 * ends its own task.
 */
static void kdiser_deliver_management(struct kdiser_conn *conn, struct iscsi_conn *iscsi, u32 i)
{
	struct iscsi_session *session = iscsi->session;
	struct kdiser_slot *slot = &conn->slots[i];
	int err = 0;
	bool last;
	u32 answer;

	spin_lock(&session->frwd_lock);		/* it is sent under this lock */
	spin_lock(&conn->lock);
	last = conn->tm.itt == kdiser_slot_pdu(conn, i)->iscsi.itt;
	answer = slot->answer;
	slot->due = KDISER_NOTHING;
	spin_unlock(&conn->lock);
	if (last)
		err = kdiser_complete(conn, iscsi, answer);
	else
		iscsi_put_task(session->cmds[i]);
	spin_unlock(&session->frwd_lock);
	kdiser_delivered(conn, answer, err);
}

/* Deliver all such answers that have waited. */
static void kdiser_deliver_all_management(struct kdiser_conn *conn, struct iscsi_conn *iscsi)
{
	bool due;
	u32 i;

	for (i = 0; i < conn->nr_slots; i++) {
		spin_lock(&conn->lock);
		due = conn->slots[i].due == KDISER_TM_ANSWER && conn->slots[i].answered;
		spin_unlock(&conn->lock);
		if (due)
			kdiser_deliver_management(conn, iscsi, i);
	}
}

/*
 * iscsiadm does a discovery itself. It loses an answer that comes before the kernel has reported
 * that its PDU is sent, and a software device in the same machine is that fast. So these answers
 * wait for a tick.
 */
void kdiser_deliver_late(struct work_struct *work)
{
	struct kdiser_conn *conn = container_of(work, struct kdiser_conn, late_work.work);
	struct iscsi_conn *iscsi;
	unsigned long late;
	unsigned int i;

	local_bh_disable();		/* as in the upcall: libiscsi's lock wants that */
	spin_lock(&conn->lock);
	late = conn->late;
	conn->late = 0;
	iscsi = conn->iscsi;
	spin_unlock(&conn->lock);
	for_each_set_bit(i, &late, KDISER_LONG_RECEIVES)
		kdiser_deliver(conn, iscsi, i);
	local_bh_enable();
}

/* May the device or the target still use the memory of a command? */
static bool kdiser_used(const struct kdiser_slot *slot)
{
	return slot->registered || slot->sends;
}

/*
 * Take back the memory of a slot, once our own Sends do not read it any more: an invalidation
 * would not stop them. Its completion tells when the target can no longer reach the memory.
 */
static const char *kdiser_take_back(struct kdiser_conn *conn, u32 i)
{
	struct kdiser_slot *slot = &conn->slots[i];

	lockdep_assert_held(&conn->lock);
	if (!slot->registered || slot->sends || slot->returning)
		return NULL;
	slot->returning = true;
	return dat_lmr_invalidate(slot->lmr, conn->ep, kdiser_cookie(KDISER_TAKEN_BACK, i),
				  DAT_COMPLETION_DEFAULT_FLAG) == DAT_SUCCESS ?
	       NULL : "memory could not be taken back";
}

/* An answer to a command. Set @wait if it must wait. */
static const char *kdiser_answered(struct kdiser_conn *conn, struct iscsi_conn *iscsi, u32 receive,
				   const struct iscsi_hdr *hdr, bool invalidated,
				   DAT_RMR_CONTEXT rkey, bool *wait)
{
	u32 i = get_itt(hdr->itt);
	struct kdiser_slot *slot;

	lockdep_assert_held(&conn->lock);
	if (hdr->itt == RESERVED_ITT || i >= conn->nr_slots)
		return "an answer to no command";
	slot = &conn->slots[i];
	if (slot->itt != hdr->itt || slot->answered)
		return "an answer to no command";
	if (invalidated && (!slot->registered || slot->returning || slot->rkey != rkey))
		return "an answer that takes back the memory of another command";
	slot->answered = true;
	iscsi->rxdata_octets += slot->incoming;
	if (invalidated)
		slot->registered = false;
	*wait = kdiser_used(slot);
	slot->answer = receive;
	return kdiser_take_back(conn, i);
}

/* Does it end this command? Not one sent after it, as libiscsi does if no task waits for it. */
static bool kdiser_tm_covers(const struct iscsi_tm *tm, const struct kdiser_slot *slot)
{
	if (!iscsi_sna_lt(slot->cmdsn, be32_to_cpu(tm->cmdsn)))
		return false;
	switch (ISCSI_TM_FUNC_VALUE(tm)) {
	case ISCSI_TM_FUNC_ABORT_TASK:
		return slot->itt == tm->rtt;
	case ISCSI_TM_FUNC_LOGICAL_UNIT_RESET:
		return !memcmp(&slot->lun, &tm->lun, sizeof(tm->lun));
	default:
		return true;
	}
}

/*
 * An answer to task management: take back the memory of the commands that it has ended. It must not
 * overtake answers that wait, or a command would seem to be lost.
 */
static const char *kdiser_tm_answered(struct kdiser_conn *conn, u32 receive,
				      const struct iscsi_hdr *hdr)
{
	const struct iscsi_tm_rsp *rsp = (const struct iscsi_tm_rsp *)hdr;
	u32 i, tm = get_itt(rsp->itt);
	const char *wrong = NULL;

	lockdep_assert_held(&conn->lock);
	if (rsp->itt == RESERVED_ITT || tm >= conn->nr_slots ||
	    conn->slots[tm].due != KDISER_TM_ANSWER || conn->slots[tm].answered ||
	    kdiser_slot_pdu(conn, tm)->iscsi.itt != rsp->itt)
		return "an answer to no task management";
	conn->slots[tm].answered = true;
	conn->slots[tm].answer = receive;
	if (conn->tm.itt != rsp->itt)
		return NULL;
	for (i = 0; i < conn->nr_slots && !wrong; i++) {
		struct kdiser_slot *slot = &conn->slots[i];
		bool ended = rsp->response == ISCSI_TMF_RSP_COMPLETE &&
			     kdiser_tm_covers(&conn->tm, slot);

		if (slot->reset || !kdiser_used(slot) || (!slot->answered && !ended))
			continue;
		slot->reset = true;
		conn->tm_waits++;
		wrong = kdiser_take_back(conn, i);
	}
	return wrong;
}

/* A Send has completed, or the memory was taken back. Deliver what has waited for that. */
static void kdiser_settle(struct kdiser_conn *conn, u32 i, bool sent)
{
	struct kdiser_slot *slot = &conn->slots[i];
	bool answered = false, tm = false;
	const char *wrong = NULL;
	struct iscsi_conn *iscsi;

	spin_lock(&conn->lock);
	iscsi = conn->iscsi;
	if (sent) {
		slot->sends--;
	} else {
		slot->registered = false;
		slot->returning = false;
	}
	if (slot->answered || slot->reset)
		wrong = kdiser_take_back(conn, i);
	if (!kdiser_used(slot)) {
		answered = slot->answered;
		tm = slot->reset && !--conn->tm_waits;
		slot->reset = false;
	}
	spin_unlock(&conn->lock);
	if (wrong)
		kdiser_fail(conn, ISCSI_ERR_CONN_FAILED, wrong);
	if (answered)
		kdiser_deliver(conn, iscsi, slot->answer);
	if (tm)
		kdiser_deliver_all_management(conn, iscsi);
}

/* Is it what a target may send? Never trust numbers from a peer. */
static const char *kdiser_check(const struct kdiser_pdu *pdu, u32 length)
{
	u32 data;

	if (length < sizeof(*pdu))
		return "a message shorter than its headers";
	if ((pdu->iser.flags & 0xf0) != ISCSI_CTRL)
		return "a message that is none of iSCSI";
	data = ntoh24(pdu->iscsi.dlength);
	length -= sizeof(*pdu);
	if (pdu->iscsi.hlength || data > length || length - data >= ISCSI_PAD_LEN)
		return "a message of a wrong length";
	return NULL;
}

/* Is it a reject of a ping, which ends the ping as its answer does? */
static bool kdiser_rejects_ping(const struct kdiser_pdu *pdu, const struct iscsi_hdr *rejected)
{
	return ((const struct iscsi_reject *)&pdu->iscsi)->reason == ISCSI_REASON_IMM_CMD_REJECT &&
	       (rejected->opcode & ISCSI_OPCODE_MASK) == ISCSI_OP_NOOP_OUT;
}

/*
 * Does a target name a task that gets no such answer? A task without an answer ends when it is
 * sent, the others end by their answer. A second answer would end the task once more: libiscsi of
 * Linux 6.12 does not see that the task is free by then. In a reject, libiscsi goes by the header
 * of the rejected PDU.
 */
static const char *kdiser_check_task(struct kdiser_conn *conn, const struct kdiser_pdu *pdu)
{
	const struct iscsi_hdr *hdr = &pdu->iscsi;
	struct kdiser_slot *slot;
	bool ends = false;
	u8 opcode;
	u32 i;

	lockdep_assert_held(&conn->lock);
	switch (hdr->opcode & ISCSI_OPCODE_MASK) {
	case ISCSI_OP_LOGIN_RSP:
	case ISCSI_OP_TEXT_RSP:
	case ISCSI_OP_LOGOUT_RSP:
		ends = true;
		break;
	case ISCSI_OP_NOOP_IN:
		ends = hdr->itt != RESERVED_ITT;
		break;
	case ISCSI_OP_REJECT:
		hdr = (const struct iscsi_hdr *)pdu->data;
		ends = kdiser_rejects_ping(pdu, hdr) && hdr->itt != RESERVED_ITT;
		break;
	}
	opcode = hdr->opcode & ISCSI_OPCODE_MASK;
	i = get_itt(hdr->itt);
	if (hdr->itt == RESERVED_ITT || i >= conn->nr_slots)
		return ends ? "an answer to no request" : NULL;
	slot = &conn->slots[i];
	if (slot->due == KDISER_SEND ||
	    (slot->due == KDISER_TM_ANSWER && opcode != ISCSI_OP_SCSI_TMFUNC_RSP &&
	     opcode != ISCSI_OP_SCSI_TMFUNC))
		return "an answer to what gets none";
	if (ends) {
		if (slot->due != KDISER_ANSWER || kdiser_slot_pdu(conn, i)->iscsi.itt != hdr->itt)
			return "an answer to no request";
		slot->due = KDISER_NOTHING;
	}
	return NULL;
}

static void kdiser_received(struct kdiser_conn *conn, const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	bool invalidated = dto->operation == DAT_DTO_RECEIVE_WITH_INVALIDATE, wait = false;
	bool management = false;
	u32 size, i = (u32)dto->user_cookie.as_64;
	struct kdiser_pdu *pdu = kdiser_receive(conn, i, &size);
	struct iscsi_conn *iscsi;
	const char *wrong;
	u8 opcode;

	wrong = kdiser_check(pdu, dto->transfered_length);
	opcode = pdu->iscsi.opcode & ISCSI_OPCODE_MASK;
	spin_lock(&conn->lock);
	iscsi = conn->iscsi;
	if (!wrong && !iscsi)
		wrong = "a message before it was asked anything";
	if (!wrong && invalidated && opcode != ISCSI_OP_SCSI_CMD_RSP)
		wrong = "a message that takes back the memory of a command";
	if (!wrong)
		wrong = kdiser_check_task(conn, pdu);
	if (!wrong) {
		switch (opcode) {
		case ISCSI_OP_SCSI_CMD_RSP:
			wrong = kdiser_answered(conn, iscsi, i, &pdu->iscsi, invalidated,
						dto->rmr_context, &wait);
			break;
		case ISCSI_OP_SCSI_TMFUNC_RSP:
			wrong = kdiser_tm_answered(conn, i, &pdu->iscsi);
			wait = true;
			management = !wrong && !conn->tm_waits;
			break;
		case ISCSI_OP_LOGIN_RSP:
			/* iscsid does not always end the connection for it. */
			if (conn->full_feature)
				wrong = "an answer to no login";
			else
				conn->full_feature = kdiser_login_ends(iscsi, &pdu->iscsi);
			break;
		case ISCSI_OP_TEXT_RSP:
		case ISCSI_OP_LOGOUT_RSP:
		case ISCSI_OP_NOOP_IN:
		case ISCSI_OP_ASYNC_EVENT:
		case ISCSI_OP_REJECT:
			break;
		default:	/* iSER has no R2T and no Data-In */
			wrong = "a PDU that it may not send";
		}
	}
	if (!wrong && iscsi->session->discovery_sess && !conn->full_feature) {
		__set_bit(i, &conn->late);	/* only long Receives are posted yet */
		schedule_delayed_work(&conn->late_work, 1);
		wait = true;
	}
	spin_unlock(&conn->lock);
	if (wrong)
		kdiser_fail(conn, ISCSI_ERR_PROTO, wrong);
	else if (management)
		kdiser_deliver_all_management(conn, iscsi);
	else if (!wait)
		kdiser_deliver(conn, iscsi, i);
}

/* A PDU that gets no answer is sent: its task ends. */
static void kdiser_sent_unanswered(struct kdiser_conn *conn, u32 i)
{
	struct iscsi_conn *iscsi;

	spin_lock(&conn->lock);
	iscsi = conn->iscsi;
	conn->slots[i].due = KDISER_NOTHING;
	spin_unlock(&conn->lock);
	iscsi_put_task(iscsi->session->cmds[i]);
}

/* Data-Out buffer @i is free; return the command it was of. */
static u32 kdiser_data_out_sent(struct kdiser_conn *conn, u32 i)
{
	u32 slot;

	spin_lock(&conn->lock);
	slot = conn->data_slots[i];
	conn->data_outs[conn->nr_data_outs++] = i;
	spin_unlock(&conn->lock);
	return slot;
}

/* Context: softirq, one at a time. */
void kdiser_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	u32 index = (u32)dto->user_cookie.as_64;
	struct kdiser_conn *conn = instance;

	if (dto->status == DAT_DTO_ERR_FLUSHED)
		return;			/* the upcall for the connection follows */
	if (dto->status != DAT_DTO_SUCCESS) {
		kdiser_fail(conn, ISCSI_ERR_CONN_FAILED, kdat_dto_status_name(dto->status));
		return;
	}
	switch ((enum kdiser_cookie)(dto->user_cookie.as_64 >> 32)) {
	case KDISER_RECEIVED:
		kdiser_received(conn, dto);
		break;
	case KDISER_TAKEN_BACK:
		kdiser_settle(conn, index, false);
		break;
	case KDISER_DATA_SENT:
		kdiser_settle(conn, index, true);
		break;
	case KDISER_DATA_OUT_SENT:
		kdiser_settle(conn, kdiser_data_out_sent(conn, index), true);
		break;
	case KDISER_SENT_UNANSWERED:
		kdiser_sent_unanswered(conn, index);
		break;
	case KDISER_SENT:
		break;
	}
}
