/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A server that accepts everybody: each client has an Endpoint, and memory in which Receives are
 * posted, again and again. What it answers is up to the module.
 */
#ifndef TESTS_SERVER_H
#define TESTS_SERVER_H

#include <linux/list.h>

#include "consumer.h"

/* A client. Modules with more to remember have this first in a structure of their own. */
struct test_peer {
	struct test_end end;	/* first: test_context() is both */
	struct list_head node;
	struct test_mem mem;	/* Receives one behind the other, then what the module has there */
	u32 n;			/* how many came before */
};

struct test_server {
	DAT_EP_ATTR attr;	/* Receives have the size of the longest message */
	u32 more;		/* memory behind the Receives */
	size_t peer_size;	/* of the module's structure */
	const void *hello;	/* private data of the acceptance */
	u32 hello_size;
	void (*heard)(struct test_peer *peer, void *message);
	DAT_UPCALL_FUNC dto;	/* for completions, if it does more than test_server_dto() */
	bool (*unused)(struct test_peer *peer);	/* whose connection is over: it may go */
	/* by test_server_open() */
	struct test_ia ia;
	DAT_EVD_HANDLE evd, conn_evd, cr_evd;
	DAT_PSP_HANDLE psp;
	struct list_head peers;	/* of one upcall */
	u32 npeers;
};

static inline int test_peer_receive(struct test_server *s, struct test_peer *peer, void *message)
{
	DAT_LMR_TRIPLET iov = test_segment(&peer->mem, (u8 *)message - peer->mem.p,
					   s->attr.max_message_size);

	return dat_ep_post_recv(peer->end.ep, 1, &iov, test_cookie(message), 0);
}

/* An answer, from there in its memory. The connection may be over already. */
static inline void test_peer_send(struct test_peer *peer, u32 at, u32 length, u32 key,
				  DAT_COMPLETION_FLAGS flags)
{
	DAT_LMR_TRIPLET iov = test_segment(&peer->mem, at, length);

	dat_ep_post_send_with_invalidate(peer->end.ep, 1, &iov, test_cookie(NULL), flags,
					 key ? DAT_TRUE : DAT_FALSE, key);
}

static inline void test_server_dto(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	struct test_peer *peer = test_context(dto->ep_handle);
	void *message = dto->user_cookie.as_ptr;
	struct test_server *s = instance;

	if (!peer || !message || dto->status != DAT_DTO_SUCCESS)
		return;
	s->heard(peer, message);
	test_peer_receive(s, peer, message);
}

static inline void test_peer_free(struct test_peer *peer)
{
	list_del(&peer->node);
	if (peer->end.ep)
		kdat_ep_drain(peer->end.ep);
	FREE(dat_ep_free, &peer->end.ep);
	test_mem_close(&peer->mem);
	kfree(peer);
}

static inline void test_server_reap(struct test_server *s)
{
	struct test_peer *peer, *next;

	list_for_each_entry_safe(peer, next, &s->peers, node) {
		if (!READ_ONCE(peer->end.overs))
			continue;
		/* first: what it has sent, and nobody has heard yet, may begin a use */
		kdat_ep_drain(peer->end.ep);
		if (s->unused(peer))
			test_peer_free(peer);
	}
}

static inline void test_server_asked(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	DAT_CR_HANDLE cr = event->event_data.cr_arrival_event_data.cr_handle;
	struct test_server *s = instance;
	u32 size = s->attr.max_message_size, n = s->attr.max_recv_dtos;
	struct test_peer *peer;
	u8 *message;
	int err;

	if (s->unused)
		test_server_reap(s);
	peer = kzalloc(s->peer_size, GFP_KERNEL);
	if (!peer) {
		dat_cr_reject(cr, 0, NULL);
		return;
	}
	peer->n = s->npeers++;
	list_add(&peer->node, &s->peers);
	err = test_mem_open(&s->ia, &peer->mem, n * size + s->more, LOCAL_RIGHTS) ?:
	      test_end_open(&s->ia, &peer->end, s->evd, s->evd, s->conn_evd, &s->attr);
	for (message = peer->mem.p; !err && message < peer->mem.p + n * size; message += size)
		err = test_peer_receive(s, peer, message);
	if (err || dat_cr_accept(cr, peer->end.ep, s->hello_size, (DAT_PVOID)s->hello))
		dat_cr_reject(cr, 0, NULL);
}

/* On an adapter that is open. @conn: an upcall for what becomes of connections */
static inline int test_server_open(struct test_server *s, u16 port, DAT_UPCALL_FUNC conn)
{
	INIT_LIST_HEAD(&s->peers);
	return test_evd(&s->ia, 16, DAT_EVD_DTO_FLAG, s->dto ?: test_server_dto, s, &s->evd) ?:
	       test_evd(&s->ia, 1024, DAT_EVD_CONNECTION_FLAG, conn, s, &s->conn_evd) ?:
	       test_evd(&s->ia, 32, DAT_EVD_CR_FLAG, test_server_asked, s, &s->cr_evd) ?:
	       TRY(dat_psp_create, s->ia.h, port, s->cr_evd, DAT_PSP_CONSUMER_FLAG, &s->psp);
}

static inline void test_server_close(struct test_server *s)
{
	struct test_peer *peer, *next;

	if (!s->peers.next)
		return;		/* it was never opened */
	FREE(dat_psp_free, &s->psp);
	FREE(dat_evd_free, &s->cr_evd);
	list_for_each_entry_safe(peer, next, &s->peers, node)
		test_peer_free(peer);
	FREE(dat_evd_free, &s->evd);
	FREE(dat_evd_free, &s->conn_evd);
}

#endif
