// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * kdnfskeys - a server of kdnfscall's program that uses the keys of calls when it must not
 * (README.md). It knows no call, but the chunks of each.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include "../../lib/server.h"
#include "../../../ulp_example/nfsrdma/proto.h"
#include "program.h"

#define CALLS		32	/* of a client at a time */
#define SIZE		4096	/* of a message */
#define DATA		32768	/* bytes that are written at a time */
#define SENT_AT		(CALLS * SIZE)		/* messages that are sent */
#define SOURCE		(SENT_AT + CALLS * SIZE)	/* what is written */
#define SINK		(SOURCE + DATA)		/* what is read */

static char *ia;
static ushort port = KX_PORT;
static uint seed = 1;
static uint late = 1000;
static uint acts;
static uint gone;
static int only = -1;

module_param(ia, charp, 0444);
MODULE_PARM_DESC(ia, "interface adapter");
module_param(port, ushort, 0444);
module_param(seed, uint, 0444);
MODULE_PARM_DESC(seed, "what is at random follows from it");
module_param(late, uint, 0444);
MODULE_PARM_DESC(late, "milliseconds after which callers give up, about");
module_param(only, int, 0644);
MODULE_PARM_DESC(only, "do only that to each call; -1: something at random");
module_param(acts, uint, 0444);
MODULE_PARM_DESC(acts, "read: calls that came");
module_param(gone, uint, 0444);
MODULE_PARM_DESC(gone, "read: bytes that were read after the end of their call");

TEST_STATE;

static struct rnd_state keys_random;
static DEFINE_SPINLOCK(keys_lock);
static struct workqueue_struct *keys_wq;

static struct test_server keys_server;

struct keys_peer {
	struct test_peer peer;	/* first */
	u32 pending;		/* things that are done later; under keys_lock */
};

/* What is known of a call. */
struct keys_call {
	u32 xid, credits;
	struct kx_chunk read, write, reply;
	u32 at;			/* of the memory for its reply */
};

/* Something that is done later. */
struct keys_later {
	struct delayed_work work;
	struct test_peer *peer;
	struct keys_call call;
	void (*act)(struct test_peer *peer, const struct keys_call *call);
};

static u32 keys_below(u32 n)
{
	unsigned long flags;
	u32 r;

	spin_lock_irqsave(&keys_lock, flags);
	r = prandom_u32_state(&keys_random) % n;
	spin_unlock_irqrestore(&keys_lock, flags);
	return r;
}

/* ---- the header of a call; it comes from our own client, so only its end is looked after ---- */

static u32 word(const __be32 **p, const __be32 *end)
{
	return *p < end ? be32_to_cpu(*(*p)++) : 0;
}

static void get_seg(const __be32 **p, const __be32 *end, struct kx_chunk *chunk)
{
	struct kx_seg seg;

	seg.handle = word(p, end);
	seg.length = word(p, end);
	seg.offset = (u64)word(p, end) << 32;
	seg.offset |= word(p, end);
	if (chunk->n < KX_SEGS_PAD)
		chunk->seg[chunk->n++] = seg;
}

static void get_array(const __be32 **p, const __be32 *end, struct kx_chunk *chunk)
{
	u32 n = word(p, end);

	while (n-- && *p < end)
		get_seg(p, end, chunk);
}

static void get_call(const void *message, struct keys_call *call)
{
	const __be32 *p = message, *end = p + SIZE / 4;

	memset(call, 0, sizeof(*call));
	call->xid = word(&p, end);
	p += 3;
	while (word(&p, end)) {
		word(&p, end);		/* its position */
		get_seg(&p, end, &call->read);
	}
	if (word(&p, end)) {
		get_array(&p, end, &call->write);
		word(&p, end);
	}
	if (word(&p, end))
		get_array(&p, end, &call->reply);
}

/* ---- what is done ---- */

static const struct kx_chunk *results(const struct keys_call *call)
{
	return call->write.n ? &call->write : &call->reply;
}

static void put_chunk(__be32 **p, const struct kx_chunk *chunk)
{
	u32 i;

	*(*p)++ = cpu_to_be32(1);
	*(*p)++ = cpu_to_be32(chunk->n);
	for (i = 0; i < chunk->n; i++) {
		*(*p)++ = cpu_to_be32(chunk->seg[i].handle);
		*(*p)++ = cpu_to_be32(chunk->seg[i].length);
		*(*p)++ = cpu_to_be32(upper_32_bits(chunk->seg[i].offset));
		*(*p)++ = cpu_to_be32(lower_32_bits(chunk->seg[i].offset));
	}
}

static void put_reply(__be32 **p, u32 xid, u32 status)
{
	const u32 words[] = { xid, 1, 0, 0, 0, status };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(words); i++)
		*(*p)++ = cpu_to_be32(words[i]);
}

/* A good reply, if the chunks were written; @key is invalidated. */
static void reply_key(struct test_peer *peer, const struct keys_call *call, u32 key)
{
	__be32 *start = (__be32 *)(peer->mem.p + call->at), *p = start;
	static const u32 credits[] = { 1, 2, 8, 32, 128 };

	*p++ = cpu_to_be32(call->xid);
	*p++ = cpu_to_be32(KX_VERSION);
	*p++ = cpu_to_be32(call->credits ?: credits[keys_below(ARRAY_SIZE(credits))]);
	*p++ = cpu_to_be32(call->reply.n ? KX_PROC_NOMSG : KX_PROC_MSG);
	*p++ = 0;
	if (call->write.n)
		put_chunk(&p, &call->write);
	*p++ = 0;
	if (call->reply.n)
		put_chunk(&p, &call->reply);
	else
		*p++ = 0;
	if (!call->reply.n)
		put_reply(&p, call->xid, 0);
	test_peer_send(peer, call->at, (void *)p - (void *)start, key, 0);
}

static void reply(struct test_peer *peer, const struct keys_call *call)
{
	reply_key(peer, call, 0);
}

/* That the arguments are garbage; the call will be made again. */
static void reply_useless(struct test_peer *peer, const struct keys_call *call)
{
	const u32 words[] = { call->xid, KX_VERSION, CALLS, KX_PROC_MSG, 0, 0, 0 };
	__be32 *start = (__be32 *)(peer->mem.p + call->at), *p = start;
	u32 i;

	for (i = 0; i < ARRAY_SIZE(words); i++)
		*p++ = cpu_to_be32(words[i]);
	put_reply(&p, call->xid, 4);
	test_peer_send(peer, call->at, (void *)p - (void *)start, 0, 0);
}

static u32 first_key(const struct keys_call *call)
{
	return results(call)->n ? results(call)->seg[0].handle :
	       call->read.n ? call->read.seg[0].handle : 0;
}

static void reply_inv(struct test_peer *peer, const struct keys_call *call)
{
	reply_key(peer, call, first_key(call));
}

/* Write to a segment, @more bytes beyond it. */
static void write_seg(struct test_peer *peer, const struct kx_seg *seg, u32 more)
{
	DAT_LMR_TRIPLET iov = test_segment(&peer->mem, SOURCE, min(seg->length + more, DATA));
	DAT_RMR_TRIPLET to = {
		.rmr_context = seg->handle,
		.virtual_address = seg->offset + seg->length + more - iov.segment_length,
		.segment_length = iov.segment_length,
	};

	dat_ep_post_rdma_write(peer->end.ep, 1, &iov, test_cookie(NULL), &to, 0);
}

/* All of the chunk, as far as one write of each segment goes; and in front the reply itself. */
static void write_all(struct test_peer *peer, const struct keys_call *call)
{
	const struct kx_chunk *to = results(call);
	__be32 *p = (__be32 *)(peer->mem.p + call->at + SIZE / 2);
	struct kx_seg head;
	u32 i;

	for (i = 0; i < to->n; i++)
		write_seg(peer, &to->seg[i], 0);
	if (!call->reply.n)
		return;
	put_reply(&p, call->xid, 0);
	head = call->reply.seg[0];
	if (head.length >= 24) {
		DAT_LMR_TRIPLET iov = test_segment(&peer->mem, call->at + SIZE / 2, 24);
		DAT_RMR_TRIPLET at = { .rmr_context = head.handle, .virtual_address = head.offset,
				       .segment_length = 24 };

		dat_ep_post_rdma_write(peer->end.ep, 1, &iov, test_cookie(NULL), &at, 0);
	}
}

static void read_all(struct test_peer *peer, const struct keys_call *call)
{
	DAT_RMR_TRIPLET from;
	DAT_LMR_TRIPLET iov;
	u32 i;

	for (i = 0; i < call->read.n && !keys_server.ia.iwarp; i++) {
		iov = test_segment(&peer->mem, SINK, min(call->read.seg[i].length, DATA));
		from = (DAT_RMR_TRIPLET) {
			.rmr_context = call->read.seg[i].handle,
			.virtual_address = call->read.seg[i].offset,
			.segment_length = iov.segment_length,
		};
		dat_ep_post_rdma_read(peer->end.ep, 1, &iov, test_cookie(peer->mem.p + SINK +
									 iov.segment_length - 1),
				      &from, 0);
	}
}

static u32 keys_pending;	/* things that are done later; under keys_lock */
static bool keys_over;		/* no more of them */

static bool keys_count(struct test_peer *peer, int more)
{
	unsigned long flags;
	bool ok;

	spin_lock_irqsave(&keys_lock, flags);
	ok = more < 0 || !keys_over;
	if (ok) {
		keys_pending += more;
		container_of(peer, struct keys_peer, peer)->pending += more;
	}
	spin_unlock_irqrestore(&keys_lock, flags);
	wake_up_all(&test_wait);
	return ok;
}

static void later_work(struct work_struct *work)
{
	struct keys_later *later = container_of(work, struct keys_later, work.work);

	later->act(later->peer, &later->call);
	keys_count(later->peer, -1);
	kfree(later);
}

static void later(struct test_peer *peer, const struct keys_call *call, u32 ms,
		  void (*act)(struct test_peer *peer, const struct keys_call *call))
{
	struct keys_later *later = kmalloc(sizeof(*later), GFP_ATOMIC);

	if (!later || !keys_count(peer, 1)) {
		kfree(later);
		return;
	}
	INIT_DELAYED_WORK(&later->work, later_work);
	later->peer = peer;
	later->call = *call;
	later->act = act;
	queue_delayed_work(keys_wq, &later->work, msecs_to_jiffies(ms));
}

static void hang_up(struct test_peer *peer, const struct keys_call *call)
{
	dat_ep_disconnect(peer->end.ep, DAT_CLOSE_ABRUPT_FLAG);
}

static void act_good(struct test_peer *peer, const struct keys_call *call)
{
	write_all(peer, call);
	reply(peer, call);
}

static void act_good_inv(struct test_peer *peer, const struct keys_call *call)
{
	write_all(peer, call);
	reply_inv(peer, call);
}

static void act_write_after(struct test_peer *peer, const struct keys_call *call)
{
	act_good(peer, call);
	write_all(peer, call);
}

static void act_write_after_inv(struct test_peer *peer, const struct keys_call *call)
{
	act_good_inv(peer, call);
	write_all(peer, call);
}

static void act_twice(struct test_peer *peer, const struct keys_call *call)
{
	act_good_inv(peer, call);
	reply_inv(peer, call);
}

/* Another message has its second key. */
static void act_each(struct test_peer *peer, const struct keys_call *call)
{
	u32 i;

	act_good(peer, call);
	for (i = 0; i < results(call)->n; i++)
		reply_key(peer, call, results(call)->seg[i].handle);
}

static void act_silent(struct test_peer *peer, const struct keys_call *call)
{
	u32 i;

	write_all(peer, call);
	for (i = 0; i < 8; i++)
		later(peer, call, late * (7 + i) / 10, write_all);
	later(peer, call, late * 3 / 2, read_all);
}

static void act_late(struct test_peer *peer, const struct keys_call *call)
{
	later(peer, call, late * (18 + keys_below(5)) / 20, act_good_inv);
}

static void act_key_first(struct test_peer *peer, const struct keys_call *call)
{
	struct keys_call other = *call;

	other.xid ^= 0x10000;
	write_all(peer, call);
	reply_inv(peer, &other);
	reply(peer, call);
}

static void act_hang_up(struct test_peer *peer, const struct keys_call *call)
{
	write_all(peer, call);
	later(peer, call, keys_below(4), hang_up);
	write_all(peer, call);
}

static void act_reply_and_hang_up(struct test_peer *peer, const struct keys_call *call)
{
	act_good_inv(peer, call);
	hang_up(peer, call);
}

static void act_beyond(struct test_peer *peer, const struct keys_call *call)
{
	if (results(call)->n)
		write_seg(peer, &results(call)->seg[results(call)->n - 1], 1);
	reply(peer, call);
}

static void act_read_after(struct test_peer *peer, const struct keys_call *call)
{
	read_all(peer, call);
	reply(peer, call);
	later(peer, call, 20, read_all);
}

static void act_write_to_source(struct test_peer *peer, const struct keys_call *call)
{
	if (call->read.n)
		write_seg(peer, &call->read.seg[0], 0);
	reply(peer, call);
}

/* Calls of the server, as long as can be, among them one with the XID of the call. */
static void act_calls(struct test_peer *peer, const struct keys_call *call)
{
	__be32 *p = (__be32 *)(peer->mem.p + call->at);
	u32 i;

	memset(p, 0, SIZE);
	p[0] = cpu_to_be32(keys_below(2) ? call->xid : call->xid ^ 0x20000);
	p[1] = cpu_to_be32(KX_VERSION);
	p[2] = cpu_to_be32(8);
	p[7] = p[0];
	for (i = 0; i < 8; i++)
		test_peer_send(peer, call->at, SIZE, 0, 0);
	later(peer, call, 5, act_good);
}

/* A reply that is of no use, and no other. One after the other in the upcall. */
static void act_useless(struct test_peer *peer, const struct keys_call *call)
{
	static bool done;

	if (!done)
		reply_useless(peer, call);
	done = true;
}

/* The last key, which may be that to the padding of the data. */
static void act_last_key(struct test_peer *peer, const struct keys_call *call)
{
	const struct kx_chunk *to = results(call);

	write_all(peer, call);
	reply_key(peer, call, to->n ? to->seg[to->n - 1].handle : first_key(call));
}

static void (*const keys_acts[])(struct test_peer *peer, const struct keys_call *call) = {
	act_good, act_good_inv, act_write_after, act_write_after_inv, act_twice, act_each,
	act_silent, act_late, act_key_first, act_hang_up, act_reply_and_hang_up, act_beyond,
	act_read_after, act_write_to_source, act_calls,
	act_useless, act_last_key,	/* not at random */
};

#define KEYS_RANDOM	(ARRAY_SIZE(keys_acts) - 2)

/* Good ones are as many as the others together: else nothing would come of the rest. */
static void keys_heard(struct test_peer *peer, void *message)
{
	struct keys_call call;
	u32 n = only >= 0 ? only : (int)keys_below(2 * KEYS_RANDOM);

	get_call(message, &call);
	call.at = SENT_AT + ((u8 *)message - peer->mem.p);
	WRITE_ONCE(acts, acts + 1);
	keys_acts[n < KEYS_RANDOM || n == only ? n : n & 1](peer, &call);
}

/* What an RDMA Read has brought: the cookie is its last byte. */
static void keys_read(struct test_peer *peer, void *last)
{
	const u8 *p = peer->mem.p + SINK;
	u32 n = 0;

	for (; p <= (u8 *)last; p++)
		n += *p == CALL_GONE;
	if (n)
		WRITE_ONCE(gone, gone + n);
}

static void keys_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	struct test_peer *peer = test_context(dto->ep_handle);

	if (dto->operation != DAT_DTO_RDMA_READ)
		test_server_dto(instance, event, more);
	else if (peer && dto->status == DAT_DTO_SUCCESS)
		keys_read(peer, dto->user_cookie.as_ptr);
}

static void keys_conn_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct test_peer *peer = test_context(event->event_data.connect_event_data.ep_handle);

	if (peer && event->event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
		memset(peer->mem.p + SOURCE, CALL_DATA, DATA);
	test_conn_event(event);
}

static bool keys_unused(struct test_peer *peer)
{
	return !READ_ONCE(container_of(peer, struct keys_peer, peer)->pending);
}

static const u8 keys_hello[] = { 0xf6, 0xab, 0x0e, 0x18, 1, 0, 3, 3 };

static struct test_server keys_server = {
	.attr = {
		.max_message_size = SIZE,
		.max_rdma_size = DATA,
		.max_recv_dtos = CALLS, .max_recv_iov = 1,
		.max_request_dtos = 1024, .max_request_iov = 1,
		.max_rdma_read_out = 1, .max_rdma_read_iov = 1, .max_rdma_write_iov = 1,
		.srq_soft_hw = DAT_HW_DEFAULT,
	},
	.more = CALLS * SIZE + 2 * DATA,
	.peer_size = sizeof(struct keys_peer),
	.hello = keys_hello, .hello_size = sizeof(keys_hello),
	.heard = keys_heard,
	.dto = keys_upcall,
	.unused = keys_unused,
};

static void keys_stop(void)
{
	keys_over = true;
	smp_mb();	/* before the number is read */
	wait_event(test_wait, !READ_ONCE(keys_pending));
	destroy_workqueue(keys_wq);
	test_server_close(&keys_server);
	test_ia_close(&keys_server.ia);
}

static int __init keys_init(void)
{
	int err;

	prandom_seed_state(&keys_random, seed);
	keys_wq = alloc_workqueue("kdnfskeys", WQ_UNBOUND, 0);
	if (!keys_wq)
		return -ENOMEM;
	err = test_ia_open(&keys_server.ia, ia) ?:
	      test_server_open(&keys_server, port, keys_conn_upcall);
	if (err)
		keys_stop();
	return err;
}

module_init(keys_init);
module_exit(keys_stop);
MODULE_DESCRIPTION("a server that uses keys when it must not");
MODULE_AUTHOR("The kDAPL for Linux authors");
MODULE_LICENSE("Dual BSD/GPL");
