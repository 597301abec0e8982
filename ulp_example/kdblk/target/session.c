// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Copyright (c) 2026 The kDAPL for Linux authors */
/* Sessions and their queues, from the first connection to the end. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bitmap.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "target.h"
#include "trace.h"

#define KDT_MAX_READS	16	/* RDMA Reads in flight on one queue */
#define KDT_CHUNK	(256u << 10)

static LIST_HEAD(kdt_sessions);		/* under kdt_lock */
static u64 kdt_turn;			/* under kdt_lock */
static struct workqueue_struct *kdt_end_wq;

static void kdt_session_release(struct kref *ref)
{
	kfree(container_of(ref, struct kdt_session, ref));
}

static void kdt_session_put(struct kdt_session *s)
{
	kref_put(&s->ref, kdt_session_release);
}

/**
 * kdt_session_end - end a session
 * @s: session that the caller holds, or that cannot be freed yet
 * @why: reason for the log; a constant string
 *
 * A work item does the work. Only the first call has an effect.
 *
 * Context: any except hard interrupts.
 */
void kdt_session_end(struct kdt_session *s, const char *why)
{
	if (test_and_set_bit(KDT_DEAD, &s->bits))
		return;
	s->why = why;
	queue_work(kdt_end_wq, &s->end);
}

/* End the session after the Send of a refusal has completed. */
void kdt_session_refused(struct kdt_session *s)
{
	/* On iWARP the answer may not have arrived yet. */
	mod_delayed_work(kdt_ctl_wq, &s->timer, s->adapter->iwarp ? HZ / 2 : 0);
}

static void kdt_session_timer(struct work_struct *work)
{
	struct kdt_session *s = container_of(work, struct kdt_session, timer.work);
	unsigned long due;

	if (test_bit(KDT_REFUSED, &s->bits)) {
		kdt_session_end(s, "login refused");
	} else if (test_bit_acquire(KDT_LIVE, &s->bits)) {
		due = READ_ONCE(s->heard) + 3 * s->keepalive;
		if (time_after_eq(jiffies, due))
			kdt_session_end(s, "nothing heard from the initiator");
		else
			mod_delayed_work(kdt_ctl_wq, &s->timer, due - jiffies);
	} else if (test_bit(KDT_LOGIN, &s->bits)) {	/* waiting for an old session to end */
		mod_delayed_work(kdt_ctl_wq, &s->timer, msecs_to_jiffies(KDT_LOGIN_MS));
	} else {
		kdt_session_end(s, "no login");
	}
}

static bool kdt_queue_idle(struct kdt_queue *q)
{
	bool idle;

	spin_lock_bh(&q->lock);
	idle = !q->inflight;
	spin_unlock_bh(&q->lock);
	return idle;
}

/* Also accepts a queue that was built only in part. No EP, no command in flight. */
static void kdt_queue_free(struct kdt_queue *q)
{
	u32 i;

	kdblk_bh_stop(&q->answer_done);	/* it may have answered the last one just now */
	for (i = 0; q->cmds && i < q->ncmds; i++) {
		if (q->cmds[i].pooled && q->cmds[i].buf)
			kdt_pool_put(&q->cmds[i]);
		kdt_buf_exit(&q->cmds[i].own);
	}
	for (i = 0; q->rx && i < q->nrx; i++)
		kdt_buf_exit(&q->rx[i].buf);
	for (i = 0; q->chunks && i < q->nchunks; i++)
		kdt_chunk_free(&q->chunks[i]);
	kdt_chunk_free(&q->head);
	kvfree(q->chunks);
	kvfree(q->cmds);
	kvfree(q->rx);
	bitmap_free(q->tags);
	kvfree(q);
}

/* Afterwards the queue gets no upcall, and the device does not access its memory. */
static void kdt_queue_stop(struct kdt_queue *q)
{
	if (q->ep)
		dat_ep_free(q->ep);
	if (q->evd)
		dat_evd_free(q->evd);
}

static void kdt_cmd_init(struct kdt_queue *q, struct kdt_cmd *cmd, struct kdblk_login_rsp *rsp)
{
	cmd->q = q;
	cmd->rsp = rsp;
	INIT_WORK(&cmd->work, kdt_cmd_work);
	cmd->rsp_seg[0].virtual_address = (uintptr_t)rsp;
	cmd->rsp_seg[0].segment_length = sizeof(rsp->rsp);
	cmd->rsp_seg[0].lmr_context = q->head.key;
	cmd->req[0].op = KDAT_REQUEST_RDMA_WRITE;
	cmd->req[0].completion_flags = DAT_COMPLETION_SUPPRESS_FLAG;
	cmd->req[0].user_cookie.as_ptr = cmd;
	cmd->req[0].num_segments = 1;
	cmd->req[0].local_iov = &cmd->data_seg;
	cmd->req[0].remote_iov = &cmd->peer;
	cmd->req[1].user_cookie.as_ptr = cmd;
	cmd->req[1].local_iov = cmd->rsp_seg;
	list_add_tail(&cmd->node, &q->free);
}

static void kdt_rx_init(struct kdt_queue *q, struct kdt_rx *rx, struct kdblk_cmd *wire)
{
	rx->wire = wire;
	rx->seg[0].virtual_address = (uintptr_t)wire;
	rx->seg[0].segment_length = sizeof(*wire);
	rx->seg[0].lmr_context = q->head.key;
	rx->seg[1].virtual_address = (uintptr_t)rx->buf.va;
	rx->seg[1].segment_length = q->inline_size;
	rx->seg[1].lmr_context = rx->buf.key;
}

static int kdt_queue_memory(struct kdt_queue *q)
{
	struct kdt_session *s = q->s;
	int rights = KDBLK_LOCAL | (s->adapter->iwarp ? DAT_MEM_PRIV_REMOTE_WRITE_FLAG : 0);
	u32 i, bufs = q->nrx + q->ncmds, each = max(KDT_CHUNK / q->inline_size, 1U);
	DAT_IA_HANDLE ia = s->adapter->ia;
	struct kdblk_login_rsp *rsp;
	struct kdblk_cmd *wire;
	struct kdt_buf *buf;
	int err;

	q->nchunks = DIV_ROUND_UP(bufs, each);
	q->rx = kvcalloc(q->nrx, sizeof(*q->rx), GFP_KERNEL);
	q->cmds = kvcalloc(q->ncmds, sizeof(*q->cmds), GFP_KERNEL);
	q->chunks = kvcalloc(q->nchunks, sizeof(*q->chunks), GFP_KERNEL);
	q->tags = bitmap_zalloc(q->depth + 1, GFP_KERNEL);
	if (!q->rx || !q->cmds || !q->chunks || !q->tags)
		return -ENOMEM;
	err = kdt_chunk_alloc(&q->head, ia, s->pz,
			      q->nrx * sizeof(*wire) + q->ncmds * sizeof(*rsp), KDBLK_LOCAL);
	for (i = 0; i < q->nchunks && !err; i++)
		err = kdt_chunk_alloc(&q->chunks[i], ia, s->pz, min(each, bufs - i * each) *
				      (size_t)q->inline_size, rights);
	for (i = 0; i < bufs && !err; i++) {
		buf = i < q->nrx ? &q->rx[i].buf : &q->cmds[i - q->nrx].own;
		err = kdt_buf_init(buf, &q->chunks[i / each], i % each * (size_t)q->inline_size,
				   q->inline_size);
	}
	if (err)
		return err;
	rsp = q->head.va;
	for (i = 0; i < q->ncmds; i++)
		kdt_cmd_init(q, &q->cmds[i], rsp++);
	wire = (struct kdblk_cmd *)rsp;
	for (i = 0; i < q->nrx; i++)
		kdt_rx_init(q, &q->rx[i], wire++);
	return 0;
}

static int kdt_queue_connectable(struct kdt_queue *q)
{
	const DAT_UPCALL_OBJECT upcall = { q, kdt_upcall };
	const struct kdat_evd_attr evd_attr = {
		.context = KDAT_EVD_CONTEXT_WORKQUEUE,
		.comp_vector = q->n,
	};
	struct kdt_adapter *adapter = q->s->adapter;
	DAT_EP_ATTR attr = KDAT_EP_ATTR_INIT;
	DAT_RETURN ret;
	int err = 0;
	u32 i;

	attr.max_message_size = sizeof(struct kdblk_cmd) + q->inline_size;	/* the longest */
	attr.max_rdma_size = max(q->s->portal->cfg_max_io, q->inline_size);
	attr.max_recv_dtos = q->nrx;
	attr.max_request_dtos = 2 * q->ncmds;
	attr.max_recv_iov = 2;
	attr.max_request_iov = 2;
	attr.max_rdma_read_out = min(KDT_MAX_READS, adapter->max_reads);
	ret = kdat_evd_create(adapter->ia, q->nrx + 2 * q->ncmds, DAT_UPCALL_SINGLE_INSTANCE,
			      &upcall, DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG, &evd_attr,
			      &q->evd);
	if (ret == DAT_SUCCESS)
		ret = dat_ep_create(adapter->ia, q->s->pz, q->evd, q->evd, q->evd, &attr, &q->ep);
	if (ret == DAT_SUCCESS)
		ret = kdat_ep_serialise_posts(q->ep, DAT_TRUE);
	if (ret != DAT_SUCCESS)
		return kdat_errno(ret);
	for (i = 0; i < q->nrx && !err; i++)
		err = kdt_rx_post(q, &q->rx[i]);
	return err;
}

static int kdt_queue_create(struct kdt_session *s, u32 n, u32 depth, u32 answer_size)
{
	struct kdt_queue *q = kvzalloc(sizeof(*q), GFP_KERNEL);
	int err;

	if (!q)
		return -ENOMEM;
	q->s = s;
	q->n = n;
	q->depth = depth;
	q->inline_size = s->portal->cfg_inline_size;
	q->answer_size = min(answer_size, q->inline_size);
	q->batch = clamp_t(u32, depth / 4, 1, KDT_MAX_BATCH);
	q->nrx = depth + 1;
	/* Up to batch answers have no completion yet. Twice that many spares avoid waiting. */
	q->ncmds = depth + 1 + 2 * q->batch;
	spin_lock_init(&q->lock);
	INIT_LIST_HEAD(&q->free);
	INIT_LIST_HEAD(&q->unacked);
	INIT_LIST_HEAD(&q->read_waiting);
	INIT_LIST_HEAD(&q->rx_waiting);
	init_waitqueue_head(&q->idle);
	init_llist_head(&q->done);
	kdblk_bh_init(&q->answer_done, kdt_answer_done);
	err = kdt_queue_memory(q) ?: kdt_queue_connectable(q);
	if (err) {
		kdt_queue_stop(q);
		kdt_queue_free(q);
		return err;
	}
	s->queue[n] = q;
	return 0;
}

static void kdt_session_log_end(struct kdt_session *s)
{
	if (test_bit(KDT_LIVE, &s->bits))
		pr_info_ratelimited("disk %s: session of %s on portal %s has ended: %s\n",
				    kdt_disk_name(s->disk), s->initiator,
				    kdt_portal_name(s->portal), s->why);
	else
		pr_info_ratelimited("portal %s: a connection without a session has ended: %s\n",
				    kdt_portal_name(s->portal), s->why);
}

static void kdt_session_end_work(struct work_struct *work)
{
	struct kdt_session *s = container_of(work, struct kdt_session, end);
	struct kdt_portal *portal = s->portal;
	u32 i;

	/* Later holders of the lock see that the session is dead, and add no queue. */
	mutex_lock(&s->lock);
	mutex_unlock(&s->lock);

	for (i = 0; i < KDBLK_MAX_QUEUES; i++) {
		if (s->queue[i])
			dat_ep_disconnect(s->queue[i]->ep, DAT_CLOSE_ABRUPT_FLAG);
	}
	for (i = 0; i < KDBLK_MAX_QUEUES; i++) {
		if (s->queue[i])
			kdt_queue_stop(s->queue[i]);
	}
	/* No new command starts. Wait for those that have started. */
	kdt_pool_cancel(s);
	for (i = 0; i < KDBLK_MAX_QUEUES; i++) {
		if (s->queue[i])
			wait_event(s->queue[i]->idle, kdt_queue_idle(s->queue[i]));
	}
	for (i = 0; i < KDBLK_MAX_QUEUES; i++) {
		if (s->queue[i])
			kdt_queue_free(s->queue[i]);
		s->queue[i] = NULL;
	}
	/* Nothing can restart the timer any more. */
	cancel_delayed_work_sync(&s->timer);
	kdt_share_leave(s);
	kdt_pool_free(&s->pool);
	if (s->pz && s->pz != s->adapter->pz)
		dat_pz_free(s->pz);
	trace_kdt_session_end(s);
	kdt_session_log_end(s);
	kdt_adapter_put(s->adapter);

	mutex_lock(&kdt_lock);
	list_del(&s->node);
	if (!s->turn)
		portal->half_open--;
	mutex_unlock(&kdt_lock);
	/* From here on the disk and the portal may be freed. */
	complete_all(&s->ended);
	kdt_session_put(s);
}

static struct kdt_session *kdt_session_create(struct kdt_adapter *adapter)
{
	struct kdt_session *s = kzalloc(sizeof(*s), GFP_KERNEL), *other;
	struct kdt_portal *portal = adapter->portal;
	bool taken = true;

	if (!s)
		return NULL;
	kref_init(&s->ref);
	mutex_init(&s->lock);
	init_completion(&s->ended);
	INIT_WORK(&s->end, kdt_session_end_work);
	INIT_DELAYED_WORK(&s->timer, kdt_session_timer);
	INIT_LIST_HEAD(&s->waiting);
	INIT_LIST_HEAD(&s->hungry);
	s->portal = portal;
	mutex_lock(&kdt_lock);
	if (adapter->closing || portal->half_open >= KDT_MAX_HALF_OPEN) {
		mutex_unlock(&kdt_lock);
		kfree(s);
		return NULL;
	}
	kref_get(&adapter->ref);
	s->adapter = adapter;
	/* The number must be unpredictable, since it authorises adding queues. */
	while (taken) {
		s->number = get_random_u64();
		taken = !s->number;
		list_for_each_entry(other, &kdt_sessions, node)
			taken |= other->number == s->number;
	}
	portal->half_open++;
	list_add_tail(&s->node, &kdt_sessions);
	kref_get(&s->ref);	/* for the caller */
	/* before anybody can end it, which cancels this */
	queue_delayed_work(kdt_ctl_wq, &s->timer, msecs_to_jiffies(KDT_LOGIN_MS));
	mutex_unlock(&kdt_lock);
	return s;
}

static struct kdt_name *kdt_find_name(struct kdt_disk *disk, const char *initiator)
{
	struct kdt_name *name;

	lockdep_assert_held(&kdt_lock);
	list_for_each_entry(name, &disk->names, node) {
		if (!strcmp(name->item.ci_name, initiator))
			return name;
	}
	return NULL;
}

/* Without it, who sees the session number could add a queue before the initiator does. */
static bool kdt_queue_proven(const struct kdt_session *s, const struct kdblk_connect *hello)
{
	const struct kdt_name *name = kdt_find_name(s->disk, s->initiator);
	u8 proof[KDBLK_QUEUE_PROOF_LEN];

	return !name || !name->secret.length ||
	       (!kdblk_queue_prove(&name->secret, s->nonce, hello, proof) &&
		kdblk_proof_same(proof, hello->proof, sizeof(proof)));
}

static struct kdt_session *kdt_session_find(struct kdt_adapter *adapter,
					    const struct kdblk_connect *hello)
{
	struct kdt_session *s, *found = NULL;

	mutex_lock(&kdt_lock);
	list_for_each_entry(s, &kdt_sessions, node) {
		if (s->number != le64_to_cpu(hello->session) || s->adapter != adapter ||
		    !test_bit_acquire(KDT_LIVE, &s->bits) || kdt_dead(s))
			continue;
		if (kdt_queue_proven(s, hello)) {
			kref_get(&s->ref);
			found = s;
		} else {
			pr_warn_ratelimited("disk %s: a queue of %s is refused: no proof that it knows its secret\n",
					    kdt_disk_name(s->disk), s->initiator);
		}
		break;
	}
	mutex_unlock(&kdt_lock);
	return found;
}

/**
 * kdt_session_connect - accept the connection of a queue
 * @adapter: adapter that received the request
 * @cr: the request; consumed on success
 * @hello: its private data, already checked for its format
 *
 * Return: 0, or the reason for a refusal, enum kdblk_refusal.
 */
u16 kdt_session_connect(struct kdt_adapter *adapter, DAT_CR_HANDLE cr,
			const struct kdblk_connect *hello)
{
	u32 n = le16_to_cpu(hello->queue), depth;
	struct kdt_portal *portal = adapter->portal;
	struct kdblk_accept yes = {};
	struct kdt_session *s;
	DAT_RETURN ret;
	u16 reason = 0;
	int err = 0;

	depth = min3(portal->cfg_depth, adapter->max_depth, (u32)le16_to_cpu(hello->depth));
	s = n ? kdt_session_find(adapter, hello) : kdt_session_create(adapter);
	if (!s)
		return n ? KDBLK_REFUSE_SESSION : KDBLK_REFUSE_RESOURCES;

	mutex_lock(&s->lock);
	if (kdt_dead(s) || (n && (n >= s->queues || s->queue[n]))) {
		reason = KDBLK_REFUSE_SESSION;
		goto out;
	}
	if (!n && adapter->iwarp)
		err = kdat_errno(dat_pz_create(adapter->ia, &s->pz));
	else if (!n)
		s->pz = adapter->pz;
	err = err ?: kdt_queue_create(s, n, depth, le16_to_cpu(hello->answer_size));
	if (err) {
		pr_warn_ratelimited("portal %s: a connection is refused: queue %u of depth %u cannot be made (%pe)\n",
				    kdt_portal_name(portal), n, depth, ERR_PTR(err));
		reason = KDBLK_REFUSE_RESOURCES;
		if (!n)
			kdt_session_end(s, "no queue could be made for it");
		goto out;
	}
	yes.magic = cpu_to_le32(KDBLK_MAGIC);
	yes.version = hello->version;
	yes.depth = cpu_to_le16(depth);
	yes.inline_size = cpu_to_le32(portal->cfg_inline_size);
	if (!n) {
		get_random_bytes(s->nonce, sizeof(s->nonce));
		memcpy(yes.nonce, s->nonce, sizeof(yes.nonce));
	}
	ret = dat_cr_accept(cr, s->queue[n]->ep, sizeof(yes), &yes);
	if (ret != DAT_SUCCESS) {
		kdt_session_end(s, "cannot accept a connection");
		reason = KDBLK_REFUSE_RESOURCES;
	}
out:
	mutex_unlock(&s->lock);
	kdt_session_put(s);
	return reason;
}

/*
 * End all sessions that match, and wait until none is left. If @waiter is set, also stop
 * waiting when that session is dead.
 */
static void kdt_end_all(bool (*match)(const struct kdt_session *s, const void *arg),
			const void *arg, const char *why, const struct kdt_session *waiter)
{
	struct kdt_session *s, *first;

	do {
		first = NULL;
		mutex_lock(&kdt_lock);
		list_for_each_entry(s, &kdt_sessions, node) {
			if (!match(s, arg))
				continue;
			kdt_session_end(s, why);
			if (!first) {
				kref_get(&s->ref);
				first = s;
			}
		}
		mutex_unlock(&kdt_lock);
		if (first) {
			while (!wait_for_completion_timeout(&first->ended, HZ / 10))
				if (waiter && kdt_dead(waiter))
					break;
			kdt_session_put(first);
		}
	} while (first && !(waiter && kdt_dead(waiter)));
}

static bool kdt_of_disk(const struct kdt_session *s, const void *disk)
{
	return s->disk == disk;
}

void kdt_end_of_disk(struct kdt_disk *disk, const char *why)
{
	kdt_end_all(kdt_of_disk, disk, why, NULL);
}

static bool kdt_of_portal(const struct kdt_session *s, const void *portal)
{
	return s->portal == portal;
}

/* Whoever logged in before the initiator had a secret may be anybody. */
void kdt_end_unproven(const struct kdt_disk *disk, const char *initiator)
{
	struct kdt_session *s;

	lockdep_assert_held(&kdt_lock);
	list_for_each_entry(s, &kdt_sessions, node) {
		if (s->disk == disk && !s->proven && !strcmp(s->initiator, initiator))
			kdt_session_end(s, "its initiator has a secret now");
	}
}

void kdt_end_of_portal(struct kdt_portal *portal, const char *why)
{
	kdt_end_all(kdt_of_portal, portal, why, NULL);
}

/* Does not wait for their ends. The caller holds kdt_lock, and no session begins any more. */
void kdt_end_of_adapter(struct kdt_adapter *adapter, const char *why)
{
	struct kdt_session *s;

	lockdep_assert_held(&kdt_lock);
	list_for_each_entry(s, &kdt_sessions, node) {
		if (s->adapter == adapter)
			kdt_session_end(s, why);
	}
}

static bool kdt_same_machine(const struct kdt_session *a, const struct kdt_session *b)
{
	return !strcmp(a->initiator, b->initiator) && !memcmp(a->id, b->id, sizeof(a->id)) &&
	       !memcmp(a->instance, b->instance, KDBLK_START_LEN);
}

/*
 * Whether a session has to end before @new may begin: an earlier one of the same disk and id,
 * of the same path or of another start of the machine. Sessions wait only for earlier ones, so
 * no two wait for each other.
 */
static bool kdt_replaced_by(const struct kdt_session *s, const void *arg)
{
	const struct kdt_session *new = arg;

	return s->turn && s->turn < new->turn && s->disk == new->disk &&
	       !memcmp(s->id, new->id, sizeof(s->id)) &&
	       (s->path == new->path || !kdt_same_machine(s, new));
}

/*
 * Find an earlier session of another instance, or under another name, that still lives. The
 * caller puts it.
 */
static struct kdt_session *kdt_rival(struct kdt_session *new)
{
	struct kdt_session *s, *found = NULL;

	mutex_lock(&kdt_lock);
	list_for_each_entry(s, &kdt_sessions, node) {
		if (kdt_replaced_by(s, new) && test_bit(KDT_LIVE, &s->bits) && !kdt_dead(s) &&
		    (memcmp(s->instance, new->instance, sizeof(s->instance)) ||
		     strcmp(s->initiator, new->initiator))) {
			kref_get(&s->ref);
			found = s;
			break;
		}
	}
	mutex_unlock(&kdt_lock);
	return found;
}

/*
 * Another initiator has logged in with the same id. Either it is the same machine after a
 * restart, and the old session is silent; or it is a copy of the machine, and both are running.
 * A live session sends something at least once in its keepalive period. Wait half as long again.
 * Return true if the old session was heard.
 */
static bool kdt_rival_lives(struct kdt_session *new)
{
	struct kdt_session *old;
	unsigned long start;
	bool lives = false;

	while (!lives && !kdt_dead(new) && (old = kdt_rival(new))) {
		start = jiffies;
		while (!lives && !kdt_dead(new) && !kdt_dead(old) &&
		       time_before(jiffies, start + old->keepalive + old->keepalive / 2)) {
			wait_for_completion_timeout(&old->ended, HZ / 20);
			lives = time_after(READ_ONCE(old->heard), start);
		}
		if (!lives && !kdt_dead(new))
			kdt_session_end(old, "it is silent, and its id has logged in again");
		kdt_session_put(old);
	}
	return lives;
}

/* Has the initiator proven that it knows its secret? */
static bool kdt_proven(const struct kdt_session *s, const struct kdt_name *name,
		       const struct kdblk_login *login)
{
	u8 proof[KDBLK_PROOF_LEN];
	struct kdblk_login copy;

	if (!name || !name->secret.length)
		return true;
	copy = *login;
	memset(copy.proof, 0, sizeof(copy.proof));
	return !kdblk_secret_prove(&name->secret, KDBLK_ROLE_INITIATOR, s->nonce, &copy,
				   sizeof(copy), proof) &&
	       kdblk_proof_same(proof, login->proof, sizeof(proof));
}

/**
 * kdt_session_prove - prove to an initiator that this target knows its secret
 * @s: session
 * @login: the login that is granted
 * @rsp: the answer; complete, but for its proof
 *
 * Without a secret the place of the proof stays zero.
 *
 * Context: may sleep.
 */
void kdt_session_prove(struct kdt_session *s, const struct kdblk_login *login,
		       struct kdblk_login_rsp *rsp)
{
	u8 proof[KDBLK_PROOF_LEN] = {};
	struct kdt_name *name;

	memset(rsp->proof, 0, sizeof(rsp->proof));
	mutex_lock(&kdt_lock);
	name = kdt_find_name(s->disk, s->initiator);
	if (name && name->secret.length &&
	    kdblk_secret_prove(&name->secret, KDBLK_ROLE_TARGET, login->nonce, &rsp->session,
			       KDBLK_PROVEN_LEN, proof))
		memset(proof, 0, sizeof(proof));
	mutex_unlock(&kdt_lock);
	memcpy(rsp->proof, proof, sizeof(rsp->proof));
}

static u16 kdt_session_admit(struct kdt_session *s, const struct kdblk_login *login)
{
	struct kdt_disk *disk, *found = NULL;
	struct kdt_session *other;
	struct kdt_name *name;
	u32 n = 0, all = 0;

	lockdep_assert_held(&kdt_lock);
	list_for_each_entry(disk, &kdt_disks, node) {
		if (!strcmp(kdt_disk_name(disk), login->disk))
			found = disk;
	}
	if (!found)
		return KDBLK_STATUS_NO_DISK;
	name = kdt_find_name(found, login->initiator);
	if (!name && !found->allow_any)
		return KDBLK_STATUS_DENIED;
	if (!kdt_proven(s, name, login))
		return KDBLK_STATUS_UNPROVEN;
	if (!found->enabled)
		return KDBLK_STATUS_OFFLINE;
	s->disk = found;
	s->turn = ++kdt_turn;
	s->proven = name && name->secret.length;
	/*
	 * One that may end for this one does not count. One that is ending still has its memory,
	 * until its last command is done.
	 */
	list_for_each_entry(other, &kdt_sessions, node) {
		if (other == s || other->portal != s->portal || !other->turn ||
		    (kdt_replaced_by(other, s) && test_bit(KDT_LIVE, &other->bits)))
			continue;
		n += !kdt_dead(other);
		all++;
	}
	if (n >= s->portal->cfg_max_sessions || all >= 2 * s->portal->cfg_max_sessions) {
		s->disk = NULL;
		s->turn = 0;
		return KDBLK_STATUS_FULL;
	}
	/* It may have to wait for long, and must not keep others from logging in. */
	s->portal->half_open--;
	return KDBLK_STATUS_OK;
}

static u16 kdt_session_buffers(struct kdt_session *s)
{
	const struct kdt_portal *portal = s->portal;
	bool iwarp = s->adapter->iwarp;
	int err;

	err = kdt_pool_alloc(&s->pool, s->adapter->ia, s->pz,
			     iwarp ? portal->cfg_buffers : KDT_OWN_BUFFERS, portal->cfg_max_io,
			     KDBLK_LOCAL | (iwarp ? DAT_MEM_PRIV_REMOTE_WRITE_FLAG : 0)) ?:
	      kdt_share_join(s);
	return err ? KDBLK_STATUS_RESOURCE : KDBLK_STATUS_OK;
}

static const char *kdt_refusal(u16 status)
{
	switch (status) {
	case KDBLK_STATUS_NO_DISK:
		return "no such disk";
	case KDBLK_STATUS_DENIED:
		return "not in its allowed list";
	case KDBLK_STATUS_UNPROVEN:
		return "it did not prove that it knows its secret";
	case KDBLK_STATUS_OFFLINE:
		return "the disk is not enabled";
	case KDBLK_STATUS_IN_USE:
		return "another initiator with the same id is alive: is one a copy?";
	case KDBLK_STATUS_FULL:
		return "the portal has max_sessions sessions";
	case KDBLK_STATUS_IO:
		return "the session has ended";
	default:
		return "out of memory";
	}
}

/**
 * kdt_session_login - grant or refuse a login
 * @s: session
 * @login: the request, already checked for its format
 *
 * Waits until earlier sessions of this path and of earlier starts of the machine have ended, so
 * that replayed commands execute after all commands of the old sessions.
 *
 * Context: may sleep, on kdt_ctl_wq.
 * Return: enum kdblk_status.
 */
u16 kdt_session_login(struct kdt_session *s, const struct kdblk_login *login)
{
	struct kdt_portal *portal = s->portal;
	u16 status;

	mutex_lock(&kdt_lock);
	memcpy(s->id, login->id, sizeof(s->id));
	memcpy(s->instance, login->instance, sizeof(s->instance));
	s->path = le16_to_cpu(login->path);
	strscpy(s->initiator, login->initiator, sizeof(s->initiator));
	/* A session that has ended must not end newer ones. */
	status = kdt_dead(s) ? KDBLK_STATUS_IO : kdt_session_admit(s, login);
	mutex_unlock(&kdt_lock);
	if (status == KDBLK_STATUS_OK && kdt_rival_lives(s))
		status = KDBLK_STATUS_IN_USE;
	if (status == KDBLK_STATUS_OK) {
		kdt_end_all(kdt_replaced_by, s, "the initiator has logged in again", s);
		/* If this one is dead by now, the answer will not reach the initiator. */
		status = kdt_dead(s) ? KDBLK_STATUS_IO : kdt_session_buffers(s);
	}
	trace_kdt_login(s, login->disk, status);
	if (status != KDBLK_STATUS_OK) {
		pr_warn_ratelimited("portal %s: initiator %s is refused disk %s: %s\n",
				    kdt_portal_name(portal), login->initiator, login->disk,
				    kdt_refusal(status));
		set_bit(KDT_REFUSED, &s->bits);
		return status;
	}
	s->queues = min_t(u32, le16_to_cpu(login->queues), portal->cfg_queues);
	s->keepalive = msecs_to_jiffies(le32_to_cpu(login->keepalive_ms));
	s->heard = jiffies;
	s->since = jiffies;
	mutex_lock(&kdt_lock);
	smp_mb__before_atomic();	/* pairs with test_bit_acquire() */
	set_bit(KDT_LIVE, &s->bits);
	mutex_unlock(&kdt_lock);
	mod_delayed_work(kdt_ctl_wq, &s->timer, 3 * s->keepalive);
	if (!kdt_dead(s))
		pr_info_ratelimited("disk %s: %s has logged in on portal %s, path %u, %u queue%s\n",
				    kdt_disk_name(s->disk), s->initiator, kdt_portal_name(portal),
				    s->path, s->queues, s->queues > 1 ? "s" : "");
	return KDBLK_STATUS_OK;
}

/**
 * kdt_session_fence - end what is left of another path of an initiator
 * @s: session of the initiator
 * @path: number of the other path
 *
 * Context: may sleep, but not for long.
 * Return: KDBLK_STATUS_OK if no session of that path is left, and so none of its commands;
 * KDBLK_STATUS_RESOURCE if one is ending.
 */
u16 kdt_session_fence(struct kdt_session *s, u16 path)
{
	u16 status = KDBLK_STATUS_OK;
	struct kdt_session *other;

	mutex_lock(&kdt_lock);
	list_for_each_entry(other, &kdt_sessions, node) {
		if (other == s || !other->turn || other->disk != s->disk || other->path != path ||
		    !kdt_same_machine(other, s))
			continue;
		kdt_session_end(other, "the initiator goes on without it, on another path");
		status = KDBLK_STATUS_RESOURCE;
	}
	mutex_unlock(&kdt_lock);
	return status;
}

static bool kdt_listed(const struct kdt_session *s, const struct kdt_disk *disk)
{
	return s->disk == disk && test_bit(KDT_LIVE, &s->bits);
}

u32 kdt_count_sessions(struct kdt_disk *disk)
{
	struct kdt_session *s;
	u32 n = 0;

	mutex_lock(&kdt_lock);
	list_for_each_entry(s, &kdt_sessions, node)
		n += kdt_listed(s, disk);
	mutex_unlock(&kdt_lock);
	return n;
}

/**
 * kdt_list_sessions - write a line for each session of a disk
 * @disk: disk
 * @buf: where to, or NULL to learn the size
 * @size: bytes there; what is not needed becomes empty lines
 *
 * Return: bytes written, or needed.
 */
ssize_t kdt_list_sessions(struct kdt_disk *disk, char *buf, size_t size)
{
	char line[2 * KDBLK_NAME_LEN + 2 * KDBLK_ID_LEN + 64];
	struct kdt_session *s;
	size_t n = 0, len;

	if (buf)
		memset(buf, '\n', size);
	mutex_lock(&kdt_lock);
	list_for_each_entry(s, &kdt_sessions, node) {
		if (!kdt_listed(s, disk))
			continue;
		len = scnprintf(line, sizeof(line), "%llu %s %s %*phN %u %u %lu\n", s->turn,
				s->initiator, kdt_portal_name(s->portal), KDBLK_ID_LEN, s->id,
				s->path, s->queues, (jiffies - s->since) / HZ);
		if (buf && len > size - n)
			break;		/* one more than when the size was asked for */
		if (buf)
			memcpy(buf + n, line, len);
		n += len;
	}
	mutex_unlock(&kdt_lock);
	return buf ? size : n;
}

/**
 * kdt_kick - end one session of a disk
 * @disk: disk
 * @turn: number of the session in the list
 *
 * The initiator may log in again, unless it is not allowed to any more.
 *
 * Return: 0, or -ENOENT if there is no such session.
 */
int kdt_kick(struct kdt_disk *disk, u64 turn)
{
	struct kdt_session *s;
	int err = -ENOENT;

	mutex_lock(&kdt_lock);
	list_for_each_entry(s, &kdt_sessions, node) {
		if (kdt_listed(s, disk) && s->turn == turn) {
			kdt_session_end(s, "the administrator has ended it");
			err = 0;
		}
	}
	mutex_unlock(&kdt_lock);
	return err;
}

int kdt_session_init(void)
{
	kdt_end_wq = alloc_workqueue("kdblk_target_end", WQ_MEM_RECLAIM | WQ_UNBOUND, 0);
	return kdt_end_wq ? 0 : -ENOMEM;
}

void kdt_session_exit(void)
{
	destroy_workqueue(kdt_end_wq);
}
