// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * kdnfsfuzz - a server that breaks RPC-over-RDMA (README.md).
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/prandom.h>
#include "../../lib/consumer.h"
#include "../../../ulp_example/nfsrdma/proto.h"

#define CALLS		32	/* of a client at a time */
#define SIZE		4096	/* of a message */

static char *ia;
static ushort port = KX_PORT;
static uint seed = 1;
static uint faults;

module_param(ia, charp, 0444);
MODULE_PARM_DESC(ia, "interface adapter");
module_param(port, ushort, 0444);
module_param(seed, uint, 0444);
MODULE_PARM_DESC(seed, "what is at random follows from it");
module_param(faults, uint, 0444);
MODULE_PARM_DESC(faults, "read: wrong replies that were sent");

TEST_STATE;

struct fuzz_peer {
	struct test_end end;
	struct list_head node;
	struct test_mem mem;	/* CALLS messages received, as many to send */
};

static struct test_ia fuzz_ia;
static DAT_EVD_HANDLE fuzz_evd, fuzz_conn_evd, fuzz_cr_evd;
static DAT_PSP_HANDLE fuzz_psp;
static LIST_HEAD(fuzz_peers);	/* of one upcall */
static struct rnd_state fuzz_random;

/* A message that is being made. */
struct fuzz_msg {
	__be32 *p;
	u32 n;
};

static void put(struct fuzz_msg *m, u32 word)
{
	m->p[m->n++] = cpu_to_be32(word);
}

static void put_header(struct fuzz_msg *m, u32 xid, u32 credits, u32 proc)
{
	put(m, xid);
	put(m, KX_VERSION);
	put(m, credits);
	put(m, proc);
}

static void put_no_lists(struct fuzz_msg *m)
{
	put(m, 0);
	put(m, 0);
	put(m, 0);
}

static void put_array(struct fuzz_msg *m, u32 nsegs, u32 length)
{
	put(m, 1);
	put(m, nsegs);
	while (nsegs--) {
		put(m, 0x1234);
		put(m, length);
		put(m, 0);
		put(m, 0x5678);
	}
}

/* An RPC reply: accepted, and executed if there was nothing to do (the NULL procedure). */
static void put_reply(struct fuzz_msg *m, u32 xid, bool null)
{
	put(m, xid);
	put(m, 1);
	put(m, 0);
	put(m, 0);
	put(m, 0);
	put(m, null ? 0 : 5);
}

static void fuzz_send(struct fuzz_peer *peer, u32 slot, u32 length, u32 key)
{
	DAT_LMR_TRIPLET iov = test_segment(&peer->mem, (CALLS + slot) * SIZE, length);

	/* The connection may be over already. */
	if (key)
		dat_ep_post_send_with_invalidate(peer->end.ep, 1, &iov, test_cookie(NULL), 0,
						 DAT_TRUE, key);
	else
		dat_ep_post_send(peer->end.ep, 1, &iov, test_cookie(NULL), 0);
}

/* Answer a call in a way that must not be, one way after the other. */
static void fuzz_answer(struct fuzz_peer *peer, u32 slot, u32 xid, bool null)
{
	struct fuzz_msg m = { (__be32 *)(peer->mem.p + (CALLS + slot) * SIZE) };
	u32 fault = faults % 20, length = 0, key = 0, times = 1, i;

	memset(m.p, 0, SIZE);
	switch (fault) {
	case 0:		/* shorter than any header */
		put(&m, xid);
		length = prandom_u32_state(&fuzz_random) % 16;
		break;
	case 1:		/* ends in the lists */
		put_header(&m, xid, 1, KX_PROC_MSG);
		length = 16 + prandom_u32_state(&fuzz_random) % 12;
		break;
	case 2:		/* another XID */
		put_header(&m, xid ^ 0x10000, 1, KX_PROC_MSG);
		put_no_lists(&m);
		put_reply(&m, xid ^ 0x10000, null);
		break;
	case 3:		/* no credits, and a good reply */
	case 4:		/* very many */
		put_header(&m, xid, fault == 3 ? 0 : 0xffffffff, KX_PROC_MSG);
		put_no_lists(&m);
		put_reply(&m, xid, null);
		break;
	case 5:		/* more in a Write chunk than there is, or at all */
		put_header(&m, xid, 8, KX_PROC_MSG);
		put(&m, 0);
		put_array(&m, 1, 0xffffffff);
		put(&m, 0);
		put(&m, 0);
		put_reply(&m, xid, null);
		break;
	case 6:		/* a Reply chunk that was not offered */
		put_header(&m, xid, 8, KX_PROC_NOMSG);
		put(&m, 0);
		put(&m, 0);
		put_array(&m, 1, 100);
		break;
	case 7:		/* segments without number */
		put_header(&m, xid, 8, KX_PROC_MSG);
		put(&m, 0);
		put(&m, 1);
		put(&m, 0xfffffff0);
		length = SIZE;
		break;
	case 8:
		put_header(&m, xid, 8, KX_PROC_ERROR);
		put(&m, KX_ERR_VERS);
		put(&m, 2);
		put(&m, 2);
		break;
	case 9:
		put_header(&m, xid, 8, KX_PROC_ERROR);
		put(&m, KX_ERR_CHUNK);
		break;
	case 10:	/* an error that there is not */
		put_header(&m, xid, 8, KX_PROC_ERROR);
		put(&m, 77);
		break;
	case 11:	/* an error without its kind */
		put_header(&m, xid, 8, KX_PROC_ERROR);
		break;
	case 12:	/* another version */
		put(&m, xid);
		put(&m, 2);
		put(&m, 8);
		put(&m, KX_PROC_MSG);
		put_no_lists(&m);
		put_reply(&m, xid, null);
		break;
	case 13:	/* invalidates a key that there is not */
		put_header(&m, xid, 8, KX_PROC_MSG);
		put_no_lists(&m);
		put_reply(&m, xid, null);
		key = 0x12345600 + slot;
		break;
	case 14:	/* twice */
		put_header(&m, xid, 8, KX_PROC_MSG);
		put_no_lists(&m);
		put_reply(&m, xid, null);
		times = 2;
		break;
	case 15:	/* a Read list */
		put_header(&m, xid, 8, KX_PROC_MSG);
		put(&m, 1);
		put_no_lists(&m);
		put_no_lists(&m);
		put_reply(&m, xid, null);
		break;
	case 16:	/* a call of the server, of no program, many times: nobody serves it yet */
		put_header(&m, xid ^ 0x20000, 8, KX_PROC_MSG);
		put_no_lists(&m);
		put(&m, xid ^ 0x20000);
		put(&m, 0);
		put(&m, 2);
		put(&m, 0x40000000);
		times = 48;
		break;
	case 17:	/* a reply that is longer than any */
		put_header(&m, xid, 8, KX_PROC_MSG);
		put_no_lists(&m);
		put_reply(&m, xid, null);
		length = SIZE;
		break;
	case 18:	/* a header and no RPC message */
		put_header(&m, xid, 8, KX_PROC_MSG);
		put_no_lists(&m);
		break;
	default:	/* at random behind the XID */
		put(&m, xid);
		put(&m, KX_VERSION);
		for (i = prandom_u32_state(&fuzz_random) % 64; i; i--)
			put(&m, prandom_u32_state(&fuzz_random) >>
				(prandom_u32_state(&fuzz_random) % 32));
		break;
	}
	WRITE_ONCE(faults, faults + 1);
	while (times--)
		fuzz_send(peer, slot, length ?: 4 * m.n, key);
}

static int fuzz_receive(struct fuzz_peer *peer, u32 slot)
{
	DAT_LMR_TRIPLET iov = test_segment(&peer->mem, slot * SIZE, SIZE);

	return dat_ep_post_recv(peer->end.ep, 1, &iov, test_cookie(peer->mem.p + slot * SIZE), 0);
}

/* Where the RPC message of a call is: behind the lists, if there are none. */
static void fuzz_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	const __be32 *msg = dto->user_cookie.as_ptr;
	struct fuzz_peer *peer = test_context(dto->ep_handle);
	u32 slot;

	if (!peer || dto->status != DAT_DTO_SUCCESS || dto->operation == DAT_DTO_SEND)
		return;
	slot = ((u8 *)msg - peer->mem.p) / SIZE;
	fuzz_answer(peer, slot, be32_to_cpu(msg[0]),
		    !msg[4] && !msg[5] && !msg[6] && !msg[12]);
	fuzz_receive(peer, slot);
}

static void fuzz_conn_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	test_conn_event(event);
}

static void fuzz_cr_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	static const u8 hello[] = { 0xf6, 0xab, 0x0e, 0x18, 1, 0, 3, 3 };
	DAT_CR_HANDLE cr = event->event_data.cr_arrival_event_data.cr_handle;
	struct fuzz_peer *peer = kzalloc(sizeof(*peer), GFP_KERNEL);
	DAT_EP_ATTR attr = DAT_EP_ATTR_INIT;
	int i, err;

	if (!peer) {
		dat_cr_reject(cr, 0, NULL);
		return;
	}
	list_add(&peer->node, &fuzz_peers);
	attr.max_message_size = SIZE;
	attr.max_recv_dtos = CALLS;
	attr.max_recv_iov = 1;
	attr.max_request_dtos = 256;
	attr.max_request_iov = 1;
	attr.max_rdma_read_out = 1;
	err = test_mem_open(&fuzz_ia, &peer->mem, 2 * CALLS * SIZE, LOCAL_RIGHTS) ?:
	      test_end_open(&fuzz_ia, &peer->end, fuzz_evd, fuzz_evd, fuzz_conn_evd, &attr);
	for (i = 0; !err && i < CALLS; i++)
		err = fuzz_receive(peer, i);
	if (err || dat_cr_accept(cr, peer->end.ep, sizeof(hello), (DAT_PVOID)hello) != DAT_SUCCESS)
		dat_cr_reject(cr, 0, NULL);
}

static void fuzz_stop(void)
{
	struct fuzz_peer *peer, *next;

	FREE(dat_psp_free, &fuzz_psp);
	FREE(dat_evd_free, &fuzz_cr_evd);
	list_for_each_entry_safe(peer, next, &fuzz_peers, node) {
		if (peer->end.ep)
			kdat_ep_drain(peer->end.ep);
		FREE(dat_ep_free, &peer->end.ep);
		test_mem_close(&peer->mem);
		kfree(peer);
	}
	FREE(dat_evd_free, &fuzz_evd);
	FREE(dat_evd_free, &fuzz_conn_evd);
	test_ia_close(&fuzz_ia);
}

static int __init fuzz_init(void)
{
	int err;

	prandom_seed_state(&fuzz_random, seed);
	err = test_ia_open(&fuzz_ia, ia) ?:
	      test_evd(&fuzz_ia, 16, DAT_EVD_DTO_FLAG, fuzz_upcall, NULL, &fuzz_evd) ?:
	      test_evd(&fuzz_ia, 1024, DAT_EVD_CONNECTION_FLAG, fuzz_conn_upcall, NULL,
		       &fuzz_conn_evd) ?:
	      test_evd(&fuzz_ia, 32, DAT_EVD_CR_FLAG, fuzz_cr_upcall, NULL, &fuzz_cr_evd) ?:
	      TRY(dat_psp_create, fuzz_ia.h, port, fuzz_cr_evd, DAT_PSP_CONSUMER_FLAG,
		  &fuzz_psp);
	if (err)
		fuzz_stop();
	return err;
}

module_init(fuzz_init);
module_exit(fuzz_stop);
MODULE_DESCRIPTION("a hostile server of NFS/RDMA");
MODULE_AUTHOR("The kDAPL for Linux authors");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION("1.0");
