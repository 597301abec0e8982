// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Commands are received, checked, executed and answered.
 *
 *	READ inline	read the disk into memory; Send of both answer and data
 *	READ		read the disk into memory; RDMA Write and Send in one list
 *	WRITE inline	write the disk from the memory of the Receive; Send
 *	WRITE		RDMA Read into memory; write the disk; Send
 *
 * Completions of answers are suppressed except for every batch-th one, which frees all
 * commands answered earlier on that queue. The answer to a command that holds a buffer from
 * kdt_pool_get() always has a completion, since others may wait for the buffer.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "target.h"
#include "trace.h"

/* End the session without an answer. Other sessions are not affected. */
static void kdt_violation(struct kdt_queue *q, const char *what)
{
	struct kdt_session *s = q->s;

	pr_warn_ratelimited("portal %s: initiator %s, queue %u: %s; ending its session\n",
			    kdt_portal_name(s->portal),
			    s->initiator[0] ? s->initiator : "(no login yet)", q->n, what);
	kdt_session_end(s, "protocol error");
}

/**
 * kdt_rx_post - post a Receive
 * @q: its queue
 * @rx: Receive whose contents are no longer needed
 *
 * Context: any except hard interrupts.
 * Return: 0 or -errno, in which case the session ends.
 */
int kdt_rx_post(struct kdt_queue *q, struct kdt_rx *rx)
{
	DAT_RETURN ret;

	ret = dat_ep_post_recv(q->ep, ARRAY_SIZE(rx->seg), rx->seg, (DAT_CONTEXT){ .as_ptr = rx },
			       DAT_COMPLETION_DEFAULT_FLAG);
	if (likely(ret == DAT_SUCCESS))
		return 0;
	kdt_session_end(q->s, "cannot post a Receive");
	return kdat_errno(ret);
}

static void kdt_flush(struct kdt_queue *q)
{
	DAT_COUNT failed;

	lockdep_assert_held(&q->lock);
	if (kdat_ep_post_list(q->ep, q->pend, q->npend, &failed) != DAT_SUCCESS)
		kdt_session_end(q->s, "cannot answer");
	q->npend = 0;
}

/* A command is no longer in flight. A dead queue may be freed once the lock is dropped. */
static void kdt_leave(struct kdt_queue *q)
{
	lockdep_assert_held(&q->lock);
	if (!--q->inflight && unlikely(kdt_dead(q->s)))
		wake_up(&q->idle);
}

/**
 * kdt_drop - forget a command of a dead session
 * @cmd: command in flight
 */
void kdt_drop(struct kdt_cmd *cmd)
{
	struct kdt_queue *q = cmd->q;

	spin_lock_bh(&q->lock);
	kdt_leave(q);
	spin_unlock_bh(&q->lock);
}

/*
 * Answer a command. With @more, another one is answered at once: collect the answers, and post
 * them together, with one doorbell.
 */
static void kdt_answer_one(struct kdt_cmd *cmd, bool more)
{
	struct kdblk_rsp *rsp = &cmd->rsp->rsp;
	struct kdt_queue *q = cmd->q;
	struct kdat_request *req = &cmd->req[1];
	struct kdt_rx *rx = cmd->rx;
	DAT_COUNT n = 1;

	trace_kdt_done(cmd);
	rsp->tag = cpu_to_le16(cmd->tag);
	rsp->status = cpu_to_le16(cmd->status);
	rsp->opcode = cmd->opcode;
	req->op = cmd->remote ? KDAT_REQUEST_SEND_INVALIDATE : KDAT_REQUEST_SEND;
	req->rmr_context = cmd->peer.rmr_context;
	req->num_segments = 1;
	if (cmd->opcode == KDBLK_OP_READ && cmd->status == KDBLK_STATUS_OK && !cmd->remote) {
		cmd->rsp_seg[1].virtual_address = (uintptr_t)cmd->buf->va;
		cmd->rsp_seg[1].segment_length = cmd->length;
		cmd->rsp_seg[1].lmr_context = cmd->buf->key;
		req->num_segments = 2;
	} else if (cmd->opcode == KDBLK_OP_READ && cmd->status == KDBLK_STATUS_OK) {
		cmd->data_seg.virtual_address = (uintptr_t)cmd->buf->va;
		cmd->data_seg.segment_length = cmd->length;
		cmd->data_seg.lmr_context = cmd->buf->key;
		req = cmd->req;
		n = 2;
	}
	/* Repost before answering, since the peer may then send the next command. */
	if (rx) {
		cmd->rx = NULL;
		if (!kdt_dead(q->s))
			kdt_rx_post(q, rx);
	}

	spin_lock_bh(&q->lock);
	clear_bit(cmd->tag == KDBLK_TAG_ADMIN ? q->depth : cmd->tag, q->tags);
	if (likely(!kdt_dead(q->s))) {
		if (++q->quiet >= q->batch || cmd->pooled || cmd->opcode == KDBLK_OP_LOGIN) {
			q->quiet = 0;
			cmd->req[1].completion_flags = DAT_COMPLETION_DEFAULT_FLAG;
		} else {
			cmd->req[1].completion_flags = DAT_COMPLETION_SUPPRESS_FLAG;
		}
		list_add_tail(&cmd->node, &q->unacked);
		memcpy(&q->pend[q->npend], req, n * sizeof(*req));
		q->npend += n;
		if (!more || q->npend > KDAT_POST_LIST_MAX - 2)
			kdt_flush(q);
	}
	kdt_leave(q);
	spin_unlock_bh(&q->lock);
}

/**
 * kdt_answer - answer a finished command
 * @cmd: command with its status set; must not be accessed afterwards
 *
 * Context: any except hard interrupts.
 */
void kdt_answer(struct kdt_cmd *cmd)
{
	struct kdt_queue *q = cmd->q;

	/* Another upcall follows at once. */
	kdt_answer_one(cmd, READ_ONCE(q->upcall) == current && in_task() && q->more);
}

/**
 * kdt_answer_soon - have a finished command answered in softirq
 * @cmd: command with its status set; must not be accessed afterwards
 *
 * Context: any.
 */
void kdt_answer_soon(struct kdt_cmd *cmd)
{
	struct kdt_queue *q = cmd->q;

	/*
	 * The caller that finds the list empty raises the softirq. Nothing takes the command
	 * before that, and it keeps the queue, so that is still there.
	 */
	if (llist_add(&cmd->done, &q->done))
		kdblk_bh_raise(&q->answer_done);
}

/* Answer the commands that interrupts of the disk have left behind, in their order. */
void kdt_answer_done(struct kdblk_bh *bh)
{
	struct kdt_queue *q = container_of(bh, struct kdt_queue, answer_done);
	struct llist_node *node = llist_reverse_order(llist_del_all(&q->done)), *next;

	for (; node; node = next) {
		next = node->next;
		kdt_answer_one(llist_entry(node, struct kdt_cmd, done), next);
	}
}

/* Read the data of a WRITE. The command is not in flight here until the data has arrived. */
static void kdt_fetch(struct kdt_cmd *cmd)
{
	struct kdt_queue *q = cmd->q;
	DAT_RETURN ret;

	cmd->data_seg.virtual_address = (uintptr_t)cmd->buf->va;
	cmd->data_seg.segment_length = cmd->length;
	cmd->data_seg.lmr_context = cmd->buf->key;
	spin_lock_bh(&q->lock);
	if (!kdt_dead(q->s)) {
		ret = list_empty(&q->read_waiting) ?
		      dat_ep_post_rdma_read(q->ep, 1, &cmd->data_seg,
					    (DAT_CONTEXT){ .as_ptr = cmd }, &cmd->peer,
					    DAT_COMPLETION_DEFAULT_FLAG) :
		      (DAT_RETURN)DAT_INSUFFICIENT_RESOURCES;
		if (likely(ret == DAT_SUCCESS))
			q->reads++;
		else if (DAT_GET_TYPE(ret) == DAT_INSUFFICIENT_RESOURCES && q->reads)
			list_add_tail(&cmd->node, &q->read_waiting);
		else
			kdt_session_end(q->s, "cannot read from the initiator");
	}
	kdt_leave(q);
	spin_unlock_bh(&q->lock);
}

/* A Read has completed: post waiting ones. If none is left in flight, one must fit. */
static void kdt_fetch_more(struct kdt_queue *q)
{
	struct kdt_cmd *cmd;
	DAT_RETURN ret;

	lockdep_assert_held(&q->lock);
	while ((cmd = list_first_entry_or_null(&q->read_waiting, struct kdt_cmd, node))) {
		ret = dat_ep_post_rdma_read(q->ep, 1, &cmd->data_seg,
					    (DAT_CONTEXT){ .as_ptr = cmd }, &cmd->peer,
					    DAT_COMPLETION_DEFAULT_FLAG);
		if (ret != DAT_SUCCESS) {
			if (DAT_GET_TYPE(ret) != DAT_INSUFFICIENT_RESOURCES || !q->reads)
				kdt_session_end(q->s, "cannot read from the initiator");
			return;
		}
		list_del(&cmd->node);
		q->reads++;
	}
}

/**
 * kdt_begin - start a command that has memory for its data
 * @cmd: READ, or WRITE without inline data
 *
 * Context: may sleep, but not for long.
 */
void kdt_begin(struct kdt_cmd *cmd)
{
	if (cmd->opcode == KDBLK_OP_READ)
		kdt_execute(cmd);
	else
		kdt_fetch(cmd);
}

static void kdt_login(struct kdt_cmd *cmd)
{
	struct kdblk_login copy, *login = &copy;
	struct kdblk_login_rsp *rsp = cmd->rsp;
	struct kdt_session *s = cmd->q->s;
	struct kdt_disk *disk;
	u32 keepalive, queues;

	/* Check a copy: on iWARP the peer may be able to write to the received data. */
	memcpy(login, cmd->rx->buf.va, sizeof(*login));
	keepalive = le32_to_cpu(login->keepalive_ms);
	queues = le16_to_cpu(login->queues);
	/* Names appear in the log and in the list of sessions. */
	if (!kdblk_text_fits(login->initiator, KDBLK_NAME_LEN) ||
	    !kdblk_text_fits(login->disk, KDBLK_NAME_LEN) ||
	    kdblk_check_name(login->initiator) || kdblk_check_name(login->disk) ||
	    memchr_inv(login->reserved, 0, sizeof(login->reserved)) ||
	    keepalive < 100 || keepalive > 600000 || !queues || queues > KDBLK_MAX_QUEUES) {
		kdt_violation(cmd->q, "malformed login");
		kdt_drop(cmd);
		return;
	}
	cmd->status = kdt_session_login(s, login);
	disk = s->disk;
	if (cmd->status == KDBLK_STATUS_OK) {
		rsp->session = cpu_to_le64(s->number);
		rsp->capacity = cpu_to_le64(READ_ONCE(disk->capacity));
		rsp->block_size = cpu_to_le32(disk->block_size);
		rsp->physical_block_size = cpu_to_le32(disk->physical_block_size);
		rsp->max_io = cpu_to_le32(s->portal->cfg_max_io);
		rsp->max_range = cpu_to_le32(KDT_MAX_RANGE);
		rsp->discard_granularity = cpu_to_le32(disk->discard_granularity);
		rsp->queues = cpu_to_le16(s->queues);
		rsp->flags = cpu_to_le16(disk->flags);
		memcpy(rsp->serial, disk->serial, sizeof(rsp->serial));
		memcpy(rsp->boot, kdt_boot, sizeof(rsp->boot));
		kdt_session_prove(s, login, rsp);
		cmd->rsp_seg[0].segment_length = sizeof(*rsp);
	}
	kdt_answer(cmd);
}

/* The answer tells how large the disk is now. */
static void kdt_alive(struct kdt_cmd *cmd)
{
	struct kdblk_alive_rsp *rsp = (struct kdblk_alive_rsp *)cmd->rsp;

	rsp->capacity = cpu_to_le64(READ_ONCE(cmd->q->s->disk->capacity));
	memset(rsp->reserved, 0, sizeof(rsp->reserved));
	cmd->rsp_seg[0].segment_length = sizeof(*rsp);
	kdt_answer(cmd);
}

void kdt_cmd_work(struct work_struct *work)
{
	struct kdt_cmd *cmd = container_of(work, struct kdt_cmd, work);

	switch (cmd->stage) {
	case KDT_STAGE_LOGIN:
		kdt_login(cmd);
		return;
	case KDT_STAGE_FENCE:
		if (kdt_dead(cmd->q->s)) {
			kdt_drop(cmd);
			return;
		}
		cmd->status = kdt_session_fence(cmd->q->s, cmd->offset);
		kdt_answer(cmd);
		return;
	case KDT_STAGE_BEGIN:
	case KDT_STAGE_EXECUTE:
		break;
	}
	if (kdt_dead(cmd->q->s))
		kdt_drop(cmd);
	else if (cmd->stage == KDT_STAGE_BEGIN)
		kdt_begin(cmd);
	else
		kdt_execute_slow(cmd);
}

/* Does data follow the command? That of a READ follows its answer. */
static bool kdt_carries_data(const struct kdblk_cmd *wire)
{
	return wire->flags & KDBLK_CMD_INLINE && wire->opcode != KDBLK_OP_READ;
}

/* Check a message of @len bytes. Mark its tag as in flight and return NULL, or the fault. */
static const char *kdt_check(struct kdt_queue *q, const struct kdblk_cmd *wire, u32 len)
{
	const struct kdt_session *s = q->s;
	u32 length, max = KDT_MAX_RANGE;
	const struct kdt_disk *disk;
	u8 allowed = 0;
	bool data = false;
	u64 offset, capacity;
	u16 tag;

	if (len < sizeof(*wire))
		return "a message is too short";
	length = le32_to_cpu(wire->length);
	offset = le64_to_cpu(wire->offset);
	tag = le16_to_cpu(wire->tag);

	switch (wire->opcode) {
	case KDBLK_OP_LOGIN:
		allowed = KDBLK_CMD_INLINE;
		break;
	case KDBLK_OP_READ:
		/* a small one may have its data in the answer */
		if (length <= q->answer_size)
			allowed = KDBLK_CMD_INLINE;
		break;
	case KDBLK_OP_KEEPALIVE:
	case KDBLK_OP_FENCE:
	case KDBLK_OP_FLUSH:
	case KDBLK_OP_DISCARD:
		break;
	case KDBLK_OP_WRITE:
		allowed = KDBLK_CMD_INLINE | KDBLK_CMD_FUA;
		break;
	case KDBLK_OP_WRITE_ZEROES:
		allowed = KDBLK_CMD_FUA | KDBLK_CMD_NOUNMAP;
		break;
	default:
		return "unknown opcode";
	}
	if (wire->flags & ~allowed)
		return "a flag the command does not have";
	if (memchr_inv(wire->reserved, 0, sizeof(wire->reserved)))
		return "a reserved byte is set";
	if (len - sizeof(*wire) != (kdt_carries_data(wire) ? length : 0))
		return "a message has a wrong length";

	if ((wire->opcode == KDBLK_OP_READ || wire->opcode == KDBLK_OP_WRITE) &&
	    !(wire->flags & KDBLK_CMD_INLINE))
		data = true;
	if (!data && (wire->address || wire->rkey))
		return "an address without a use";

	if (wire->opcode < KDBLK_OP_READ) {
		if (q->n || tag != KDBLK_TAG_ADMIN)
			return "LOGIN, KEEPALIVE or FENCE on a wrong queue or tag";
		if (offset && (wire->opcode != KDBLK_OP_FENCE || offset > U16_MAX))
			return "an offset without a use";
		if (wire->opcode == KDBLK_OP_LOGIN) {
			if (!kdt_carries_data(wire) || length != sizeof(struct kdblk_login))
				return "a login has a wrong length";
			if (test_bit(KDT_LOGIN, &s->bits))
				return "another login";
		} else {
			if (length)
				return "a length without a use";
			if (!test_bit_acquire(KDT_LIVE, &s->bits))
				return "no login";
		}
		if (test_and_set_bit(q->depth, q->tags))
			return "the tag is in flight";
		return NULL;
	}

	if (!test_bit_acquire(KDT_LIVE, &s->bits))
		return "no login";
	disk = s->disk;		/* not before: a LOGIN may be under way */
	if (tag >= q->depth)
		return "the tag is too large";
	if (wire->opcode == KDBLK_OP_FLUSH) {
		if (length || offset)
			return "an offset or length without a use";
	} else {
		if (wire->opcode == KDBLK_OP_READ || wire->opcode == KDBLK_OP_WRITE)
			max = s->portal->cfg_max_io;
		if (!length || length > max)
			return "a length out of range";
		if ((length | offset) & (disk->block_size - 1))
			return "an offset or length not of whole blocks";
		capacity = READ_ONCE(disk->capacity);
		if (offset > capacity || length > capacity - offset)
			return "a range outside the disk";
	}
	if (test_and_set_bit(tag, q->tags))
		return "the tag is in flight";
	return NULL;
}

static void kdt_start(struct kdt_queue *q, struct kdt_rx *rx)
{
	const struct kdblk_cmd *wire = rx->wire;
	struct kdt_session *s = q->s;
	struct kdt_cmd *cmd;

	spin_lock_bh(&q->lock);
	cmd = list_first_entry_or_null(&q->free, struct kdt_cmd, node);
	if (cmd) {
		list_del(&cmd->node);
		q->inflight++;
	}
	spin_unlock_bh(&q->lock);
	if (unlikely(!cmd)) {	/* all are still waiting for completions of their answers */
		list_add_tail(&rx->node, &q->rx_waiting);
		return;
	}

	cmd->opcode = wire->opcode;
	cmd->flags = wire->flags;
	cmd->tag = le16_to_cpu(wire->tag);
	cmd->length = le32_to_cpu(wire->length);
	cmd->offset = le64_to_cpu(wire->offset);
	cmd->peer.virtual_address = le64_to_cpu(wire->address);
	cmd->peer.segment_length = cmd->length;
	cmd->peer.rmr_context = le32_to_cpu(wire->rkey);
	cmd->status = KDBLK_STATUS_OK;
	cmd->rsp_seg[0].segment_length = sizeof(cmd->rsp->rsp);
	cmd->remote = (cmd->opcode == KDBLK_OP_READ || cmd->opcode == KDBLK_OP_WRITE) &&
		      !(cmd->flags & KDBLK_CMD_INLINE);
	cmd->pooled = false;
	if (kdt_carries_data(wire)) {
		cmd->rx = rx;
		cmd->buf = &rx->buf;
	} else {
		cmd->rx = NULL;
		cmd->buf = &cmd->own;
		if (kdt_rx_post(q, rx)) {
			kdt_drop(cmd);
			return;
		}
	}

	if (cmd->opcode == KDBLK_OP_LOGIN) {
		set_bit(KDT_LOGIN, &s->bits);
		cmd->stage = KDT_STAGE_LOGIN;
		queue_work(kdt_ctl_wq, &cmd->work);
		return;
	}
	if (time_after(jiffies, READ_ONCE(s->heard)))
		WRITE_ONCE(s->heard, jiffies);
	if (cmd->opcode == KDBLK_OP_KEEPALIVE) {
		kdt_alive(cmd);
		return;
	}
	if (cmd->opcode == KDBLK_OP_FENCE) {
		cmd->stage = KDT_STAGE_FENCE;
		queue_work(kdt_ctl_wq, &cmd->work);
		return;
	}
	if (cmd->opcode != KDBLK_OP_READ && cmd->opcode != KDBLK_OP_FLUSH &&
	    s->disk->flags & KDBLK_DISK_READ_ONLY) {
		cmd->status = KDBLK_STATUS_READ_ONLY;
		kdt_answer(cmd);
		return;
	}
	if ((cmd->opcode == KDBLK_OP_DISCARD && !(s->disk->flags & KDBLK_DISK_DISCARD)) ||
	    (cmd->opcode == KDBLK_OP_WRITE_ZEROES &&
	     !(s->disk->flags & KDBLK_DISK_WRITE_ZEROES))) {
		cmd->status = KDBLK_STATUS_NOTSUPP;
		kdt_answer(cmd);
		return;
	}
	if (!cmd->remote)
		kdt_execute(cmd);
	else if (cmd->length <= q->inline_size || kdt_pool_get(cmd))
		kdt_begin(cmd);
}

static void kdt_received(struct kdt_queue *q, struct kdt_rx *rx, u32 len)
{
	const char *wrong = kdt_check(q, rx->wire, len);

	if (unlikely(wrong))
		kdt_violation(q, wrong);
	else
		kdt_start(q, rx);
}

/* The completion of an answer also covers all answers posted before it. */
static void kdt_answered(struct kdt_queue *q, struct kdt_cmd *last)
{
	struct kdt_cmd *cmd, *next;
	struct kdt_rx *rx;

	spin_lock_bh(&q->lock);
	list_for_each_entry_safe(cmd, next, &q->unacked, node) {
		if (cmd->pooled)
			kdt_pool_put(cmd);
		list_move(&cmd->node, &q->free);
		if (cmd == last)
			break;
	}
	spin_unlock_bh(&q->lock);
	if (unlikely(last->opcode == KDBLK_OP_LOGIN) && test_bit(KDT_REFUSED, &q->s->bits))
		kdt_session_refused(q->s);
	while (unlikely(!list_empty(&q->rx_waiting)) && !list_empty(&q->free)) {
		rx = list_first_entry(&q->rx_waiting, struct kdt_rx, node);
		list_del(&rx->node);
		kdt_start(q, rx);
	}
}

static void kdt_fetched(struct kdt_queue *q, struct kdt_cmd *cmd)
{
	spin_lock_bh(&q->lock);
	q->reads--;
	q->inflight++;
	if (unlikely(!list_empty(&q->read_waiting)))
		kdt_fetch_more(q);
	spin_unlock_bh(&q->lock);
	kdt_execute(cmd);
}

static void kdt_completion(struct kdt_queue *q, const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	void *cookie = dto->user_cookie.as_ptr;

	if (unlikely(dto->status != DAT_DTO_SUCCESS)) {
		/* The connection event that follows reports the reason for a flush. */
		if (dto->status == DAT_DTO_ERR_FLUSHED)
			return;
		if (!kdt_dead(q->s))
			pr_warn_ratelimited("portal %s: initiator %s, queue %u: operation %d failed with status %d; ending its session\n",
					    kdt_portal_name(q->s->portal), q->s->initiator, q->n,
					    dto->operation, dto->status);
		kdt_session_end(q->s, "a transfer failed");
		return;
	}
	switch (dto->operation) {
	case DAT_DTO_RECEIVE:
		kdt_received(q, cookie, dto->transfered_length);
		break;
	case DAT_DTO_SEND:
		kdt_answered(q, cookie);
		break;
	case DAT_DTO_RDMA_READ:
		kdt_fetched(q, cookie);
		break;
	case DAT_DTO_RECEIVE_WITH_INVALIDATE:
		kdt_violation(q, "it invalidated a key of this side");
		break;
	default:
		break;
	}
}

/*
 * The upcall for all events of a connection. It runs in a workqueue, since submitting a
 * bio may sleep, and one at a time.
 */
void kdt_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct kdt_queue *q = instance;

	q->more = more;
	WRITE_ONCE(q->upcall, current);
	switch (event->event_number) {
	case DAT_DTO_COMPLETION_EVENT:
		if (likely(!kdt_dead(q->s)))
			kdt_completion(q, &event->event_data.dto_completion_event_data);
		break;
	case DAT_CONNECTION_EVENT_ESTABLISHED:
		break;
	case DAT_CONNECTION_EVENT_DISCONNECTED:
		kdt_session_end(q->s, "the initiator has disconnected");
		break;
	case DAT_CONNECTION_EVENT_BROKEN:
		kdt_session_end(q->s, "the connection broke");
		break;
	default:
		kdt_session_end(q->s, "the connection was not established");
	}
	WRITE_ONCE(q->upcall, NULL);
	if (!more && q->npend) {
		spin_lock_bh(&q->lock);
		if (q->npend)
			kdt_flush(q);
		spin_unlock_bh(&q->lock);
	}
}
