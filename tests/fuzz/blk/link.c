// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A connection whose events nobody is called for: who wants to know something looks for
 * them. What is sent is neither checked nor waited for.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/io.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include "kdblkfuzz.h"

#define NRX	(FZ_DEPTH + 1)
#define REQUESTS 256

enum { COOKIE_RX = 1, COOKIE_TX, COOKIE_RDMA };

static DAT_DTO_COOKIE cookie(u32 kind, u32 n)
{
	return (DAT_DTO_COOKIE){ .as_64 = (u64)kind << 32 | n };
}

static int mem_create(struct peer_mem *mem, u32 size, int rights)
{
	return peer_mem_open(&fz_ia, mem, vzalloc(size), size, rights) == DAT_SUCCESS ? 0 : -EIO;
}

static void mem_destroy(struct peer_mem *mem)
{
	if (mem->lmr)
		dat_lmr_free(mem->lmr);
	vfree(mem->p);
}

void fz_link_free(struct fz_link *link)
{
	u32 i;

	if (link->ep)
		dat_ep_free(link->ep);
	if (link->evd)
		dat_evd_free(link->evd);
	for (i = 0; i < FZ_DEPTH; i++) {
		if (link->lent[i])
			dat_lmr_free(link->lent[i]);
	}
	mem_destroy(&link->data);
	mem_destroy(&link->tx);
	mem_destroy(&link->rx);
	kvfree(link);
}

struct fz_link *fz_link_new(void)
{
	struct kdat_evd_attr evd_attr = KDAT_EVD_ATTR_INIT;
	const DAT_EP_ATTR attr = {
		.max_message_size = 65536,
		.max_rdma_size = 1 << 20,
		.max_recv_dtos = NRX, .max_recv_iov = 1,
		.max_request_dtos = REQUESTS, .max_request_iov = 1,
		.max_rdma_read_in = fz_reads, .max_rdma_read_out = fz_reads,
		.srq_soft_hw = DAT_HW_DEFAULT,
	};
	struct fz_link *link = kvzalloc(sizeof(*link), GFP_KERNEL);
	DAT_RETURN ret;

	if (!link)
		return NULL;
	INIT_LIST_HEAD(&link->node);
	evd_attr.context = KDAT_EVD_CONTEXT_WORKQUEUE;
	ret = kdat_evd_create(fz_ia.ia, NRX + REQUESTS + 8, DAT_UPCALL_DISABLE, NULL,
			      DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG, &evd_attr, &link->evd);
	if (ret == DAT_SUCCESS)
		ret = dat_ep_create(fz_ia.ia, fz_ia.pz, link->evd, link->evd, link->evd, &attr,
				    &link->ep);
	/* iWARP: the sink of a Read is open to the peer. Nothing there is secret. */
	if (ret == DAT_SUCCESS && !mem_create(&link->rx, NRX * FZ_RX, PEER_LOCAL) &&
	    !mem_create(&link->tx, FZ_TX, PEER_LOCAL) &&
	    !mem_create(&link->data, FZ_DEPTH * FZ_IO, PEER_LOCAL |
			(fz_ia.iwarp ? DAT_MEM_PRIV_REMOTE_WRITE_FLAG : 0)))
		return link;
	pr_err("no connection can be set up (0x%08x)\n", ret);
	fz_link_free(link);
	return NULL;
}

static int post_rx(struct fz_link *link, u32 i)
{
	DAT_LMR_TRIPLET iov = { (uintptr_t)link->rx.p + i * FZ_RX, FZ_RX, link->rx.lctx };

	return dat_ep_post_recv(link->ep, 1, &iov, cookie(COOKIE_RX, i),
				DAT_COMPLETION_DEFAULT_FLAG) == DAT_SUCCESS ? 0 : -EIO;
}

int fz_link_ready(struct fz_link *link)
{
	int err = 0;
	u32 i;

	for (i = 0; i < NRX && !err && !link->deaf; i++)
		err = post_rx(link, i);
	return err;
}

/* Connected, or refused: link->event says it. */
int fz_link_connect(struct fz_link *link, const void *pdata, int size)
{
	int err = fz_link_ready(link);

	if (err)
		return err;
	if (dat_ep_connect(link->ep, (DAT_IA_ADDRESS_PTR)&fz_to, fz_port, 10 * USEC_PER_SEC, size,
			   (DAT_PVOID)pdata, DAT_QOS_BEST_EFFORT,
			   DAT_CONNECT_DEFAULT_FLAG) != DAT_SUCCESS)
		return -EIO;
	if (!fz_until(link, link->event, FZ_LONG_MS))
		return fz_fail("a connection request has no outcome");
	return link->up ? 0 : -ECONNREFUSED;
}

static void received(struct fz_link *link, const DAT_DTO_COMPLETION_EVENT_DATA *dto, u32 i)
{
	const void *msg = link->rx.p + i * FZ_RX;
	u32 length = dto->transfered_length;
	struct fz_answer *a;

	if (link->heard) {
		link->heard(link, msg, length);
	} else {
		a = &link->answers[link->nanswers++ % FZ_ANSWERS];
		a->length = length;
		a->invalidated = dto->operation == DAT_DTO_RECEIVE_WITH_INVALIDATE;
		a->rkey = a->invalidated ? dto->rmr_context : 0;
		memcpy(&a->login, msg, min_t(u32, length, sizeof(a->login)));
	}
	if (!link->deaf)
		post_rx(link, i);
}

static void completed(struct fz_link *link, const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	u32 kind = dto->user_cookie.as_64 >> 32, n = dto->user_cookie.as_64;
	bool ok = dto->status == DAT_DTO_SUCCESS;

	if (!ok && dto->status != DAT_DTO_ERR_FLUSHED && !link->failed)
		link->failed = dto->status;
	switch (kind) {
	case COOKIE_RX:
		if (ok)
			received(link, dto, n);
		break;
	case COOKIE_TX:
		link->sent += ok;
		break;
	case COOKIE_RDMA:
		link->rdma += ok;
		link->rdma_failed += !ok;
		if (link->moved)
			link->moved(link, n, ok);
		break;
	}
}

void fz_link_poll(struct fz_link *link)
{
	DAT_EVENT event;
	u32 n = 0;

	while (n++ < 256 && dat_evd_dequeue(link->evd, &event) == DAT_SUCCESS) {
		const DAT_CONNECTION_EVENT_DATA *conn = &event.event_data.connect_event_data;

		if (event.event_number == DAT_DTO_COMPLETION_EVENT) {
			completed(link, &event.event_data.dto_completion_event_data);
			continue;
		}
		link->event = event.event_number;
		link->up = link->event == DAT_CONNECTION_EVENT_ESTABLISHED;
		link->over = !link->up;
		if (link->up || link->event == DAT_CONNECTION_EVENT_PEER_REJECTED) {
			link->pdata_size = min_t(u32, conn->private_data_size, sizeof(link->pdata));
			memcpy(link->pdata, conn->private_data, link->pdata_size);
		}
	}
}

/* Room for a message. It comes to be used again when much else was sent. */
void *fz_tx(struct fz_link *link, u32 size)
{
	void *va;

	if (link->tx_at + size > FZ_TX)
		link->tx_at = 0;
	va = link->tx.p + link->tx_at;
	link->tx_at += round_up(size, 64);
	return va;
}

static DAT_LMR_TRIPLET copied(struct fz_link *link, const void *msg, u32 size)
{
	void *va = fz_tx(link, size);

	if (msg)
		memcpy(va, msg, size);
	return (DAT_LMR_TRIPLET){ (uintptr_t)va, size, link->tx.lctx };
}

int fz_send(struct fz_link *link, const void *msg, u32 size)
{
	DAT_LMR_TRIPLET iov = copied(link, msg, size);

	return dat_ep_post_send(link->ep, size ? 1 : 0, &iov, cookie(COOKIE_TX, 0),
				DAT_COMPLETION_DEFAULT_FLAG) == DAT_SUCCESS ? 0 : -EIO;
}

int fz_send_invalidate(struct fz_link *link, const void *msg, u32 size, u32 rkey)
{
	DAT_LMR_TRIPLET iov = copied(link, msg, size);

	return dat_ep_post_send_with_invalidate(link->ep, size ? 1 : 0, &iov,
						cookie(COOKIE_TX, 0), DAT_COMPLETION_DEFAULT_FLAG,
						DAT_TRUE, rkey) == DAT_SUCCESS ? 0 : -EIO;
}

/* Between the data of a tag and memory of the peer. */
int fz_rdma(struct fz_link *link, bool write, u32 tag, u32 length, u64 address, u32 rkey, u32 n)
{
	DAT_LMR_TRIPLET iov = { (uintptr_t)link->data.p + tag * FZ_IO, length, link->data.lctx };
	DAT_RMR_TRIPLET remote = {
		.virtual_address = address, .segment_length = length, .rmr_context = rkey,
	};
	DAT_RETURN ret;

	ret = write ? dat_ep_post_rdma_write(link->ep, 1, &iov, cookie(COOKIE_RDMA, n), &remote,
					     DAT_COMPLETION_DEFAULT_FLAG) :
		      dat_ep_post_rdma_read(link->ep, 1, &iov, cookie(COOKIE_RDMA, n), &remote,
					    DAT_COMPLETION_DEFAULT_FLAG);
	return ret == DAT_SUCCESS ? 0 : -EIO;
}

/* An RDMA Write of what is found again if it comes anywhere. */
int fz_poison(struct fz_link *link, u32 length, u64 address, u32 rkey, u32 n)
{
	DAT_LMR_TRIPLET iov = copied(link, NULL, length);
	DAT_RMR_TRIPLET remote = {
		.virtual_address = address, .segment_length = length, .rmr_context = rkey,
	};

	memset((void *)(uintptr_t)iov.virtual_address, 0x5a, length);
	return dat_ep_post_rdma_write(link->ep, 1, &iov, cookie(COOKIE_RDMA, n), &remote,
				      DAT_COMPLETION_DEFAULT_FLAG) == DAT_SUCCESS ? 0 : -EIO;
}

/* Lets the peer at the first pages of the data of a tag, from address 0 on. */
int fz_lend(struct fz_link *link, u32 tag, u32 pages, int rights, u32 *rkey)
{
	DAT_PADDR page[FZ_IO / PAGE_SIZE];
	DAT_REGION_DESCRIPTION region = { .for_physical = page };
	DAT_LMR_CONTEXT lkey;
	u32 i;

	if (!link->lent[tag] &&
	    dat_lmr_allocate(fz_ia.ia, fz_ia.pz, FZ_IO / PAGE_SIZE, DAT_LMR_SCOPE_EP,
			     &link->lent[tag]) != DAT_SUCCESS)
		return -ENOMEM;
	for (i = 0; i < pages; i++)
		page[i] = page_to_phys(vmalloc_to_page(link->data.p + tag * FZ_IO +
						       i * PAGE_SIZE));
	return dat_lmr_fmr(link->lent[tag], DAT_MEM_TYPE_PHYSICAL, region, pages, rights,
			   DAT_VA_TYPE_ZB, link->ep, (DAT_LMR_COOKIE){ .as_64 = 0 },
			   DAT_COMPLETION_SUPPRESS_FLAG, &lkey, rkey) == DAT_SUCCESS ? 0 : -EBUSY;
}
