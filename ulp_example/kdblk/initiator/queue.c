// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * One queue of a disk: its Endpoint and Event Dispatchers, its commands and answers, and the
 * memory lent for large ones. Posting a command and handling its answer neither allocate
 * memory nor sleep.
 */
#define pr_fmt(fmt) "kdblk: " fmt

#include <linux/slab.h>
#include "../compat.h"
#include "kdblk.h"
#include "trace.h"

#define KDBLK_POLL_BUDGET	64
/* Finite, so that a cut link ends the connection. On some devices 7 means no limit. */
#define KDBLK_RETRIES		6

/* An error of the target's disk is not one of the path, so multipath does not try another. */
static blk_status_t kdblk_status(u16 status)
{
	switch (status) {
	case KDBLK_STATUS_OK:		return BLK_STS_OK;
	case KDBLK_STATUS_NOSPC:	return BLK_STS_NOSPC;
	case KDBLK_STATUS_NOTSUPP:	return BLK_STS_NOTSUPP;
	case KDBLK_STATUS_MEDIUM:	return BLK_STS_MEDIUM;
	case KDBLK_STATUS_TIMEOUT:	return BLK_STS_TIMEOUT;
	case KDBLK_STATUS_RESOURCE:	return BLK_STS_RESOURCE;
	case KDBLK_STATUS_PROTECTION:	return BLK_STS_PROTECTION;
	case KDBLK_STATUS_OFFLINE:	return BLK_STS_OFFLINE;
	default:			return BLK_STS_TARGET;
	}
}

/* ---- memory that lives as long as the disk ---- */

int kdblk_queue_alloc(struct kdblk_queue *q, const struct kdblk_config *config)
{
	u32 size = config->inline_size, n = config->depth + 1;
	int err = -ENOMEM;

	q->asked = config->depth;
	spin_lock_init(&q->poll_lock);
	q->slots = kvcalloc(q->asked, sizeof(*q->slots), GFP_KERNEL);
	if (q->slots)
		err = kdblk_msgs_alloc(&q->cmds, n, sizeof(struct kdblk_cmd) +
				       max_t(u32, size, sizeof(struct kdblk_login))) ?:
		      kdblk_msgs_alloc(&q->rsps, n, max(sizeof(struct kdblk_rsp) + size,
							sizeof(struct kdblk_login_rsp)));
	if (err)
		kdblk_queue_free(q);
	return err;
}

void kdblk_queue_free(struct kdblk_queue *q)
{
	kdblk_msgs_free(&q->cmds);
	kdblk_msgs_free(&q->rsps);
	kvfree(q->slots);
	q->slots = NULL;
}

/* ---- answers ---- */

static DAT_LMR_TRIPLET kdblk_iov(const struct kdblk_msgs *msgs, u32 i, u32 length)
{
	return (DAT_LMR_TRIPLET){
		.virtual_address = (uintptr_t)kdblk_msg(msgs, i),
		.segment_length = length,
		.lmr_context = kdblk_msg_chunk(msgs, i)->lkey,
	};
}

/*
 * From here on an answer may arrive. A faulty target can even answer before the command is
 * sent, so all fields that an answer is compared with must be set by now. Counting the post
 * in pending keeps the request from completing before it has been posted.
 */
static void kdblk_expect(struct kdblk_slot *slot, struct request *rq)
{
	atomic_set(&slot->answered, 0);
	atomic_set(&slot->pending, 2);
	smp_store_release(&slot->rq, rq);	/* pairs with kdblk_answered() */
}

/* Drop one count of pending: the answer, or the post. */
static void kdblk_slot_done(struct kdblk_slot *slot)
{
	struct request *rq = slot->rq;

	if (!atomic_dec_and_test(&slot->pending))
		return;
	slot->rq = NULL;
	blk_mq_complete_request(rq);
}

static DAT_RETURN kdblk_post_receive(struct kdblk_queue *q, u32 i)
{
	DAT_LMR_TRIPLET iov = kdblk_iov(&q->rsps, i, q->rsps.size);

	return dat_ep_post_recv(q->ep, 1, &iov, (DAT_DTO_COOKIE){ .as_64 = i },
				DAT_COMPLETION_DEFAULT_FLAG);
}

/* The disk may have grown. */
static const char *kdblk_alive_answered(struct kdblk_disk *disk, const struct kdblk_alive_rsp *rsp)
{
	u64 capacity = le64_to_cpu(rsp->capacity), known = READ_ONCE(disk->capacity);

	if (memchr_inv(rsp->reserved, 0, sizeof(rsp->reserved)))
		return "a malformed answer";
	if (capacity < known || capacity > LLONG_MAX ||
	    capacity & (le32_to_cpu(disk->geometry.block_size) - 1))
		return "a wrong size of its disk";
	if (capacity > known) {
		WRITE_ONCE(disk->capacity, capacity);
		schedule_work(&disk->grow);
	}
	disk->alive = true;
	return NULL;
}

static u32 kdblk_admin_length(const struct kdblk_disk *disk, const struct kdblk_rsp *rsp)
{
	if (disk->admin_opcode == KDBLK_OP_KEEPALIVE)
		return sizeof(struct kdblk_alive_rsp);
	if (disk->admin_opcode == KDBLK_OP_LOGIN && rsp->status == KDBLK_STATUS_OK)
		return sizeof(struct kdblk_login_rsp);
	return sizeof(*rsp);
}

static const char *kdblk_admin_answered(struct kdblk_queue *q, u32 i, u32 length)
{
	const struct kdblk_login_rsp *rsp = kdblk_msg(&q->rsps, i);
	struct kdblk_disk *disk = q->disk;
	const char *wrong = NULL;

	if (!READ_ONCE(disk->admin_busy) || rsp->rsp.opcode != disk->admin_opcode)
		return "an answer to a command that was not sent";
	if (length != kdblk_admin_length(disk, &rsp->rsp))
		return "an answer of a wrong length";
	if (disk->admin_opcode == KDBLK_OP_KEEPALIVE)
		wrong = kdblk_alive_answered(disk, (const struct kdblk_alive_rsp *)rsp);
	if (wrong)
		return wrong;
	memcpy(&disk->answer, rsp, length);
	/* Repost the Receive before another administration command may be sent. */
	if (kdblk_post_receive(q, i) != DAT_SUCCESS)
		return "more answers than its Endpoint has Receives for";
	WRITE_ONCE(disk->heard, true);
	smp_store_release(&disk->admin_busy, false);	/* pairs with kdblk_login() */
	wake_up_all(&disk->wait);
	return NULL;
}

/* Complete the request of an answer. Return the fault of the answer, or NULL. */
static const char *kdblk_answered(struct kdblk_queue *q, const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	const struct kdblk_rsp *buf = kdblk_msg(&q->rsps, dto->user_cookie.as_64);
	bool invalidated = dto->operation == DAT_DTO_RECEIVE_WITH_INVALIDATE;
	struct kdblk_rsp rsp = *buf;
	u16 tag = le16_to_cpu(rsp.tag);
	u32 data = 0;
	struct kdblk_slot *slot;
	struct kdblk_io *io;
	struct request *rq;

	if (dto->transfered_length < sizeof(rsp) ||
	    memchr_inv(rsp.reserved, 0, sizeof(rsp.reserved)))
		return "a malformed answer";
	if (tag == KDBLK_TAG_ADMIN && !q->index && !invalidated)
		return kdblk_admin_answered(q, dto->user_cookie.as_64, dto->transfered_length);
	slot = &q->slots[tag];
	if (tag >= q->depth)
		return "an answer to a command that was not sent";
	rq = smp_load_acquire(&slot->rq);	/* pairs with kdblk_expect() */
	if (!rq || atomic_read(&slot->answered) || slot->opcode != rsp.opcode)
		return "an answer to a command that was not sent";
	if (slot->data && le16_to_cpu(rsp.status) == KDBLK_STATUS_OK)
		data = blk_rq_bytes(rq);
	if (dto->transfered_length != sizeof(rsp) + data)
		return "an answer of a wrong length";
	/* Only this completion proves that the target can no longer reach the memory. */
	if (slot->lent != invalidated || (slot->lent && dto->rmr_context != slot->rkey))
		return "an answer that does not give back the memory of its command";
	/* A post that has failed meanwhile has given the request back. */
	if (atomic_xchg(&slot->answered, 1))
		return "an answer to a command that was not sent";
	slot->lent = false;
	if (unlikely(!READ_ONCE(q->disk->heard)))
		WRITE_ONCE(q->disk->heard, true);
	if (unlikely(!READ_ONCE(q->disk->answered)))
		WRITE_ONCE(q->disk->answered, true);
	io = blk_mq_rq_to_pdu(rq);
	io->status = kdblk_status(le16_to_cpu(rsp.status));
	if (slot->cached && !READ_ONCE(q->disk->dirty))
		kdblk_unflushed(q->disk);
	if (slot->covers)
		kdblk_flush_over(q->disk, io->status);
	trace_kdblk_done(q, tag, rsp.opcode, le16_to_cpu(rsp.status));
	if (data)
		kdblk_copy_to(rq, buf + 1);
	/* Repost before completing the request, since the next command relies on the Receive. */
	if (kdblk_post_receive(q, dto->user_cookie.as_64) != DAT_SUCCESS)
		kdblk_lost(q->disk, "a Receive could not be posted");
	kdblk_slot_done(slot);
	return NULL;
}

/* Handle the completion of a Receive. Calls are serialised per queue. */
static void kdblk_completed(struct kdblk_queue *q, const DAT_EVENT *event)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	const char *wrong;

	if (unlikely(event->event_number != DAT_DTO_COMPLETION_EVENT))
		return;
	if (unlikely(dto->status != DAT_DTO_SUCCESS)) {
		/* The connection event that follows reports the reason for a flush. */
		if (dto->status != DAT_DTO_ERR_FLUSHED)
			kdblk_lost(q->disk, "a transfer failed");
		return;
	}
	wrong = kdblk_answered(q, dto);
	if (unlikely(wrong)) {
		pr_warn_ratelimited("%s: queue %u: the target sent %s\n", kdblk_name(q->disk),
				    q->index, wrong);
		kdblk_lost(q->disk, "the target broke the protocol");
	}
}

/* Runs in softirq. */
static void kdblk_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	kdblk_completed(instance, event);
}

static int kdblk_queue_reap(struct kdblk_queue *q, int budget)
{
	DAT_EVENT event;
	int n = 0;

	lockdep_assert_held(&q->poll_lock);
	while (n < budget && q->evd && dat_evd_dequeue(q->evd, &event) == DAT_SUCCESS) {
		kdblk_completed(q, &event);
		n++;
	}
	return n;
}

/* Poll a queue without upcalls. Any number of tasks may call this concurrently. */
int kdblk_queue_poll(struct kdblk_queue *q)
{
	int n;

	if (!spin_trylock(&q->poll_lock))
		return 0;
	n = kdblk_queue_reap(q, KDBLK_POLL_BUDGET);
	spin_unlock(&q->poll_lock);
	return n;
}

/* Take all answers that are there. Process context. */
void kdblk_queue_poll_all(struct kdblk_queue *q)
{
	spin_lock(&q->poll_lock);
	kdblk_queue_reap(q, q->asked + 1);
	spin_unlock(&q->poll_lock);
}

/* ---- commands ---- */

/* Post a command that lends memory. Its key is known before the post. */
static DAT_RETURN kdblk_post_lent(struct kdblk_queue *q, struct kdblk_slot *slot,
				  struct kdblk_cmd *cmd, struct kdblk_io *io, int nents, u16 tag)
{
	u32 length = le32_to_cpu(cmd->length);
	bool zb = !io->sgl[0].offset;
	struct kdat_sg sg = { .sgl = io->sgl, .nents = nents, .length = length };
	DAT_LMR_TRIPLET iov = kdblk_iov(&q->cmds, tag, sizeof(*cmd));
	const struct kdat_request list[] = {
		{
			.op = KDAT_REQUEST_LMR_FMR,
			.completion_flags = DAT_COMPLETION_SUPPRESS_FLAG,
			.user_cookie.as_64 = tag,
			.lmr_handle = slot->lmr,
			.sg = &sg,
			.mem_privileges = cmd->opcode == KDBLK_OP_READ ?
					  DAT_MEM_PRIV_REMOTE_WRITE_FLAG :
					  DAT_MEM_PRIV_REMOTE_READ_FLAG,
			/* do not expose addresses of our memory if possible */
			.va_type = zb ? DAT_VA_TYPE_ZB : DAT_VA_TYPE_VA,
		}, {
			.op = KDAT_REQUEST_SEND,
			.completion_flags = DAT_COMPLETION_SUPPRESS_FLAG,
			.user_cookie.as_64 = tag,
			.num_segments = 1,
			.local_iov = &iov,
		},
	};
	DAT_LMR_CONTEXT lkey;
	DAT_COUNT failed;
	DAT_RETURN ret;

	ret = kdat_lmr_next_contexts(slot->lmr, &lkey, &slot->rkey);
	if (ret != DAT_SUCCESS) {
		/* What is there is of the last command with this tag; this one is not sent. */
		atomic_set(&slot->answered, 0);
		return ret;
	}
	cmd->rkey = cpu_to_le32(slot->rkey);
	cmd->address = cpu_to_le64(zb ? 0 : sg_phys(io->sgl));
	slot->lent = true;
	kdblk_expect(slot, blk_mq_rq_from_pdu(io));
	return kdat_ep_post_list(q->ep, list, ARRAY_SIZE(list), &failed);
}

/* Post a command that lends none, with @length bytes of data behind it. */
static DAT_RETURN kdblk_post_plain(struct kdblk_queue *q, struct kdblk_slot *slot,
				   struct request *rq, u16 tag, u32 length)
{
	DAT_LMR_TRIPLET iov = kdblk_iov(&q->cmds, tag, sizeof(struct kdblk_cmd) + length);

	kdblk_expect(slot, rq);
	return dat_ep_post_send(q->ep, 1, &iov, (DAT_DTO_COOKIE){ .as_64 = tag },
				DAT_COMPLETION_SUPPRESS_FLAG);
}

static DAT_RETURN kdblk_post_data(struct kdblk_queue *q, struct request *rq,
				  struct kdblk_slot *slot, struct kdblk_cmd *cmd, u16 tag)
{
	struct kdblk_io *io = blk_mq_rq_to_pdu(rq);
	u32 length = blk_rq_bytes(rq);

	if (cmd->opcode == KDBLK_OP_READ && length <= q->inline_size) {
		cmd->flags |= KDBLK_CMD_INLINE;
		slot->data = true;
		return kdblk_post_plain(q, slot, rq, tag, 0);
	}
	if (cmd->opcode == KDBLK_OP_WRITE && length <= q->inline_size) {
		cmd->flags |= KDBLK_CMD_INLINE;
		kdblk_copy_from(rq, cmd + 1);
		return kdblk_post_plain(q, slot, rq, tag, length);
	}
	sg_init_table(io->sgl, blk_rq_nr_phys_segments(rq));
	return kdblk_post_lent(q, slot, cmd, io, blk_rq_map_sg(rq, io->sgl), tag);
}

/* Return the opcode of a request, or 0 if unsupported, and set its flags. */
static u8 kdblk_opcode(struct request *rq, u8 *flags)
{
	u8 fua = rq->cmd_flags & REQ_FUA ? KDBLK_CMD_FUA : 0;

	*flags = 0;
	switch (req_op(rq)) {
	case REQ_OP_READ:
		return KDBLK_OP_READ;
	case REQ_OP_WRITE:
		*flags = fua;
		return KDBLK_OP_WRITE;
	case REQ_OP_FLUSH:
		return KDBLK_OP_FLUSH;
	case REQ_OP_DISCARD:
		return KDBLK_OP_DISCARD;
	case REQ_OP_WRITE_ZEROES:
		*flags = fua | (rq->cmd_flags & REQ_NOUNMAP ? KDBLK_CMD_NOUNMAP : 0);
		return KDBLK_OP_WRITE_ZEROES;
	default:
		return 0;
	}
}

/*
 * Translate a failed post into a block status. If the connection is at fault, the request
 * is tried again on a new one.
 */
static blk_status_t kdblk_refused(struct kdblk_queue *q, struct kdblk_slot *slot, DAT_RETURN ret)
{
	/* A faulty target has answered a command that was not sent. That completes the request. */
	if (atomic_xchg(&slot->answered, 1)) {
		kdblk_lost(q->disk, "the target broke the protocol");
		kdblk_slot_done(slot);
		return BLK_STS_OK;
	}
	slot->lent = false;
	slot->rq = NULL;
	if (slot->covers)
		kdblk_flush_over(q->disk, true);
	switch (DAT_GET_TYPE(ret)) {
	case DAT_INVALID_STATE:
		/* The state of the Endpoint: a connection event with the reason will follow. */
		if (DAT_GET_SUBTYPE(ret) == DAT_INVALID_STATE_LMR_IN_USE ||
		    DAT_GET_SUBTYPE(ret) == DAT_INVALID_STATE_LMR_FREE)
			kdblk_lost(q->disk, "memory of an earlier command is still lent");
		return BLK_STS_RESOURCE;
	case DAT_INSUFFICIENT_RESOURCES:
		return BLK_STS_RESOURCE;
	case DAT_INVALID_HANDLE:
	case DAT_INTERNAL_ERROR:
		kdblk_lost(q->disk, "a command could not be posted");
		return BLK_STS_RESOURCE;
	default:
		pr_err_ratelimited("%s: queue %u: a command was refused (0x%08x)\n",
				   kdblk_name(q->disk), q->index, ret);
		return BLK_STS_IOERR;
	}
}

/* Context: any from which blk-mq may queue a request. */
blk_status_t kdblk_queue_post(struct kdblk_queue *q, struct request *rq)
{
	u16 tag = rq->tag;
	struct kdblk_slot *slot = &q->slots[tag];
	struct kdblk_cmd *cmd = kdblk_msg(&q->cmds, tag);
	DAT_RETURN ret;
	u8 flags;

	cmd->opcode = kdblk_opcode(rq, &flags);
	if (unlikely(!cmd->opcode))
		return BLK_STS_NOTSUPP;
	if (cmd->opcode == KDBLK_OP_FLUSH && kdblk_flush_fails(q->disk))
		return BLK_STS_TARGET;
	cmd->flags = flags;
	cmd->tag = cpu_to_le16(tag);
	cmd->length = 0;
	cmd->offset = 0;
	cmd->address = 0;
	cmd->rkey = 0;
	if (cmd->opcode != KDBLK_OP_FLUSH) {
		cmd->length = cpu_to_le32(blk_rq_bytes(rq));
		cmd->offset = cpu_to_le64((u64)blk_rq_pos(rq) << SECTOR_SHIFT);
	}
	slot->opcode = cmd->opcode;
	slot->data = false;
	slot->cached = (cmd->opcode == KDBLK_OP_WRITE || cmd->opcode == KDBLK_OP_WRITE_ZEROES) &&
		       !(flags & KDBLK_CMD_FUA);
	slot->covers = cmd->opcode == KDBLK_OP_FLUSH && kdblk_flush_covers(q->disk);
	blk_mq_start_request(rq);
	if (cmd->opcode == KDBLK_OP_READ || cmd->opcode == KDBLK_OP_WRITE)
		ret = kdblk_post_data(q, rq, slot, cmd, tag);
	else
		ret = kdblk_post_plain(q, slot, rq, tag, 0);
	if (unlikely(ret != DAT_SUCCESS))
		return kdblk_refused(q, slot, ret);
	kdblk_slot_done(slot);
	return BLK_STS_OK;
}

/* Send LOGIN, KEEPALIVE, or FENCE of @path. The answer clears admin_busy. */
int kdblk_queue_admin(struct kdblk_queue *q, u8 opcode, u16 path)
{
	struct kdblk_cmd *cmd = kdblk_msg(&q->cmds, q->asked);
	u32 length = opcode == KDBLK_OP_LOGIN ? sizeof(struct kdblk_login) : 0;
	DAT_LMR_TRIPLET iov = kdblk_iov(&q->cmds, q->asked, sizeof(*cmd) + length);

	cmd->opcode = opcode;
	cmd->flags = length ? KDBLK_CMD_INLINE : 0;
	cmd->tag = cpu_to_le16(KDBLK_TAG_ADMIN);
	cmd->length = cpu_to_le32(length);
	cmd->offset = cpu_to_le64(path);
	q->disk->admin_opcode = opcode;
	WRITE_ONCE(q->disk->admin_busy, true);
	return kdat_errno(dat_ep_post_send(q->ep, 1, &iov,
					    (DAT_DTO_COOKIE){ .as_64 = KDBLK_TAG_ADMIN },
					    DAT_COMPLETION_SUPPRESS_FLAG));
}

/* ---- the connection ---- */

/* Copy the private data of the target, which is valid only during the upcall. */
void kdblk_queue_conn_event(struct kdblk_queue *q, const DAT_EVENT *event)
{
	const DAT_CONNECTION_EVENT_DATA *conn = &event->event_data.connect_event_data;

	switch (event->event_number) {
	case DAT_CONNECTION_EVENT_ESTABLISHED:
		q->conn_data = conn->private_data_size >= sizeof(q->accept);
		if (q->conn_data)
			memcpy(&q->accept, conn->private_data, sizeof(q->accept));
		break;
	case DAT_CONNECTION_EVENT_PEER_REJECTED:
		q->conn_data = conn->private_data_size >= sizeof(q->reject);
		if (q->conn_data)
			memcpy(&q->reject, conn->private_data, sizeof(q->reject));
		break;
	default:
		break;
	}
	smp_store_release(&q->conn_event, event->event_number);	/* pairs with its reader */
}

static int kdblk_queue_accepted(struct kdblk_queue *q)
{
	const struct kdblk_accept *a = &q->accept;
	u16 depth = le16_to_cpu(a->depth);

	if (!q->conn_data || le32_to_cpu(a->magic) != KDBLK_MAGIC ||
	    le16_to_cpu(a->version) != KDBLK_VERSION || !depth || depth > q->asked ||
	    le32_to_cpu(a->inline_size) < KDBLK_MIN_INLINE ||
	    memchr_inv(a->reserved, 0, sizeof(a->reserved))) {
		return kdblk_why(q->disk, -EPROTO,
				 "the peer that accepted the connection is not a kdblk target");
	}
	q->depth = depth;
	q->inline_size = min(le32_to_cpu(a->inline_size), q->disk->config.inline_size);
	return 0;
}

static int kdblk_queue_rejected(struct kdblk_queue *q)
{
	const struct kdblk_reject *r = &q->reject;

	if (!q->conn_data || le32_to_cpu(r->magic) != KDBLK_MAGIC)
		return -ECONNREFUSED;
	switch (le16_to_cpu(r->reason)) {
	case KDBLK_REFUSE_VERSION:
		return kdblk_why(q->disk, -EPROTONOSUPPORT,
				 "the target speaks version %u of the protocol, this is version %u",
				 le16_to_cpu(r->version), KDBLK_VERSION);
	case KDBLK_REFUSE_RESOURCES:
		return kdblk_why(q->disk, -EBUSY, "the target has no room for a connection");
	case KDBLK_REFUSE_SESSION:
		return kdblk_why(q->disk, -ESTALE, "the target has ended the session");
	default:
		return kdblk_why(q->disk, -EPROTO, "the target refused the connection: reason %u",
				 le16_to_cpu(r->reason));
	}
}

/* Wait for the outcome. kDAPL reports one when the connect timeout expires at the latest. */
static int kdblk_queue_outcome(struct kdblk_queue *q)
{
	struct kdblk_disk *disk = q->disk;

	/* pairs with kdblk_queue_conn_event() */
	wait_event(disk->wait, smp_load_acquire(&q->conn_event) || READ_ONCE(disk->broken) ||
		   READ_ONCE(disk->stopping));
	/* The end of another queue may have been reported first. */
	if (!READ_ONCE(q->conn_event))
		wait_event_timeout(disk->wait, READ_ONCE(q->conn_event) ||
				   READ_ONCE(disk->stopping), HZ);
	smp_rmb();	/* pairs with kdblk_queue_conn_event() */
	if (!q->conn_event)
		return READ_ONCE(disk->stopping) ? -EINTR : -ECONNRESET;
	switch (q->conn_event) {
	case DAT_CONNECTION_EVENT_ESTABLISHED:		return kdblk_queue_accepted(q);
	case DAT_CONNECTION_EVENT_PEER_REJECTED:	return kdblk_queue_rejected(q);
	case DAT_CONNECTION_EVENT_NON_PEER_REJECTED:	return -ECONNREFUSED;
	case DAT_CONNECTION_EVENT_UNREACHABLE:		return -EHOSTUNREACH;
	case DAT_CONNECTION_EVENT_TIMED_OUT:		return -ETIMEDOUT;
	default:					return -ECONNRESET;
	}
}

/*
 * Requests have an EVD of their own without upcalls, so their completions raise no interrupt: the
 * answer to a command says all that matters. All are suppressed, and a post that finds no room
 * reaps those that are done. If one fails, the connection ends, which flushes the Receives.
 */
static int kdblk_queue_evds(struct kdblk_queue *q)
{
	const DAT_UPCALL_OBJECT upcall = { q, kdblk_upcall };
	const struct kdat_evd_attr attr = {
		.context = KDAT_EVD_CONTEXT_SOFTIRQ,
		.comp_vector = q->index,
	};
	const char *name = kdblk_name(q->disk);
	int err = 0;

	if (!q->sent)
		err = KDBLK_TRY(name, kdat_evd_create, q->disk->ia, KDBLK_TAG_DTOS * (q->asked + 1),
				DAT_UPCALL_DISABLE, NULL, DAT_EVD_DTO_FLAG, &attr, &q->sent);
	if (!q->evd && !err)
		err = KDBLK_TRY(name, kdat_evd_create, q->disk->ia, q->asked + 1,
				q->polled ? DAT_UPCALL_DISABLE : DAT_UPCALL_SINGLE_INSTANCE,
				&upcall, DAT_EVD_DTO_FLAG, &attr, &q->evd);
	return err;
}

/* Make what the queue needs of the adapter, unless it is there. */
static int kdblk_queue_attach(struct kdblk_queue *q)
{
	return kdblk_queue_evds(q) ?:
	       kdblk_msgs_register(&q->cmds, q->disk) ?:
	       kdblk_msgs_register(&q->rsps, q->disk);
}

/* The adapter is given up. There is no connection. */
void kdblk_queue_detach(struct kdblk_queue *q)
{
	DAT_EVD_HANDLE evd;

	spin_lock(&q->poll_lock);
	evd = q->evd;
	q->evd = NULL;
	spin_unlock(&q->poll_lock);
	if (evd)
		dat_evd_free(evd);
	if (q->sent)
		dat_evd_free(q->sent);
	q->sent = NULL;
	kdblk_msgs_unregister(&q->cmds);
	kdblk_msgs_unregister(&q->rsps);
}

static int kdblk_queue_ep(struct kdblk_queue *q)
{
	struct kdblk_disk *disk = q->disk;
	struct kdat_conn_attr conn = KDAT_CONN_ATTR_INIT;
	const char *name = kdblk_name(disk);
	DAT_EP_ATTR attr = KDAT_EP_ATTR_INIT;

	attr.max_message_size = max(q->cmds.size, q->rsps.size);
	attr.max_rdma_size = KDBLK_MAX_IO;
	attr.max_recv_dtos = q->asked + 1;
	attr.max_recv_iov = 1;
	attr.max_request_dtos = KDBLK_TAG_DTOS * (q->asked + 1);
	attr.max_request_iov = 1;
	attr.max_rdma_read_in = disk->read_depth;	/* the target reads the data of a WRITE */
	conn.tos = disk->config.tos;
	conn.retry_count = KDBLK_RETRIES;
	return KDBLK_TRY(name, dat_ep_create, disk->ia, disk->pz, q->evd, q->sent, disk->conn_evd,
			 &attr, &q->ep) ?:
	       KDBLK_TRY(name, kdat_ep_modify_conn, q->ep, &conn);
}

/* Did a peer answer the last attempt, even if it refused? */
bool kdblk_queue_peer_there(const struct kdblk_queue *q)
{
	return q->conn_event == DAT_CONNECTION_EVENT_ESTABLISHED ||
	       q->conn_event == DAT_CONNECTION_EVENT_PEER_REJECTED ||
	       q->conn_event == DAT_CONNECTION_EVENT_NON_PEER_REJECTED;
}

/* Build and connect the queue. May sleep. On failure, the caller calls kdblk_queue_close(). */
int kdblk_queue_connect(struct kdblk_queue *q)
{
	struct kdblk_disk *disk = q->disk;
	struct kdblk_connect hello = {
		.magic = cpu_to_le32(KDBLK_MAGIC),
		.version = cpu_to_le16(KDBLK_VERSION),
		.queue = cpu_to_le16(q->index),
		.session = cpu_to_le64(q->index ? disk->session : 0),
		.depth = cpu_to_le16(q->asked),
		.answer_size = cpu_to_le16(disk->config.inline_size),
	};
	u32 i;
	int err;

	q->conn_event = 0;
	if (q->index && disk->secret.length) {
		err = kdblk_queue_prove(&disk->secret, disk->queues[0].accept.nonce, &hello,
					hello.proof);
		if (err)
			return kdblk_why(disk, err, "the proof of the secret cannot be computed");
	}
	err = kdblk_queue_attach(q) ?: kdblk_queue_ep(q);
	for (i = 0; !err && i <= q->asked; i++)
		err = kdblk_check(kdblk_name(disk), "dat_ep_post_recv", kdblk_post_receive(q, i));
	return err ?:
	       KDBLK_TRY(kdblk_name(disk), dat_ep_connect, q->ep,
			 (DAT_IA_ADDRESS_PTR)&disk->address, disk->config.port,
			 jiffies_to_usecs(KDBLK_CONNECT_TIMEOUT), sizeof(hello), &hello,
			 DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG) ?:
	       kdblk_queue_outcome(q);
}

/* Allocate one LMR per tag, for memory of up to @max_io bytes. */
int kdblk_queue_memory(struct kdblk_queue *q, u32 max_io)
{
	struct kdblk_disk *disk = q->disk;
	u32 i, pages = DIV_ROUND_UP(max_io, PAGE_SIZE) + 1;
	int err = 0;

	for (i = 0; !err && i < disk->depth; i++)
		err = KDBLK_TRY(kdblk_name(disk), dat_lmr_allocate, disk->ia, disk->pz, pages,
				DAT_LMR_SCOPE_EP, &q->slots[i].lmr);
	return err;
}

void kdblk_queue_disconnect(struct kdblk_queue *q)
{
	if (q->ep)
		dat_ep_disconnect(q->ep, DAT_CLOSE_ABRUPT_FLAG);
}

/*
 * Requeue a command of a lost session, and count the try. A limit keeps a command that kills
 * every session, or is never answered, from blocking its issuer forever: kdblk_queue_rq(). It
 * does not fail here, since the target may still execute it.
 */
static void kdblk_again(struct kdblk_queue *q, struct request *rq)
{
	struct kdblk_io *io = blk_mq_rq_to_pdu(rq);

	q->disk->unanswered++;
	if (++io->tries <= q->disk->config.reconnect_max)
		q->disk->replayed++;
	blk_mq_requeue_request(rq, true);
}

/*
 * Free the resources of the connection. The caller makes sure that no request is being
 * posted. Afterwards no completion can arrive and the target can reach no memory, so
 * unanswered commands can be replayed.
 */
void kdblk_queue_close(struct kdblk_queue *q)
{
	struct kdblk_slot *slot;
	struct request *rq;
	u32 i;

	/* It waits for upcalls with events of this Endpoint, and takes back what is queued. */
	if (q->ep)
		dat_ep_free(q->ep);
	q->ep = NULL;
	/* A task that polls may have taken one before. */
	spin_lock(&q->poll_lock);
	spin_unlock(&q->poll_lock);
	for (i = 0; i < q->asked; i++) {
		slot = &q->slots[i];
		if (slot->lmr)
			dat_lmr_free(slot->lmr);
		slot->lmr = NULL;
		slot->lent = false;
		rq = slot->rq;
		slot->rq = NULL;
		if (rq && slot->covers)
			kdblk_flush_over(q->disk, true);
		if (rq)
			kdblk_again(q, rq);
	}
}
