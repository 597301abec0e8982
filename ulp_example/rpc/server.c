// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * kdrpc_server - the serving side. It listens on every adapter of the machine, including those
 * that appear later.
 *
 *	struct kdrpc_adapter	an adapter: the listener, the shared Receives (SRQ), the clients
 *	struct kdrpc_peer	a connected client, with memory for as many calls as it may make
 *	struct kdrpc_call	a call: from the request in softirq, over kdrpc_serve() in a work
 *				item, which may sleep, to the answer
 *
 * Objects are made in upcalls and work items that may sleep. Nothing is allocated for a call.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/crc32.h>
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <dat2/kdat.h>
#include <dat2/kdat_ext.h>
#include "../../kdapl/version.h"	/* a module of your own has a version of its own */
#include "proto.h"

#define KDRPC_LOCAL	(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG)
#define KDRPC_PEERS	256		/* clients of an adapter */
#define KDRPC_BUFS	(KDRPC_PEERS * KDRPC_SLOTS)	/* Receives of an adapter, at most */
#define KDRPC_RETRY	HZ		/* between attempts to listen */

static ushort port = KDRPC_PORT;
module_param(port, ushort, 0444);
MODULE_PARM_DESC(port, "connection qualifier, 1..65535 (default 4713)");
static ushort batch = 64;
module_param(batch, ushort, 0444);
MODULE_PARM_DESC(batch, "Receives an adapter begins with, and is given when half of these are left, 2..4096 (default 64)");
static bool invalidate = true;
module_param(invalidate, bool, 0644);
MODULE_PARM_DESC(invalidate, "take back the memory of calls by their answers (default Y)");

struct kdrpc_buf {			/* a Receive; its address is the cookie */
	struct kdrpc_request request;
	DAT_LMR_CONTEXT key;
};

struct kdrpc_batch {			/* Receives that were added together */
	struct list_head node;
	DAT_LMR_HANDLE lmr;
	struct kdrpc_buf bufs[] ____cacheline_aligned;	/* the device writes here */
};

struct kdrpc_adapter {
	char name[DAT_NAME_MAX_LENGTH];
	struct list_head node;
	struct delayed_work work;
	bool iwarp, said;
	bool leaving;			/* the work item has nothing to do any more */
	DAT_IA_HANDLE ia;		/* NULL: it does not listen */
	DAT_EVD_HANDLE async_evd, evd, conn_evd, cr_evd;
	DAT_PZ_HANDLE pz;
	DAT_SRQ_HANDLE srq;
	DAT_PSP_HANDLE psp;
	struct mutex bufs_lock;		/* for nbufs, batches */
	u32 nbufs;
	struct list_head batches;
	u32 npeers;			/* written under kdrpc_lock */
	struct list_head peers;
};

struct kdrpc_call {			/* its address is the cookie of its Read */
	struct work_struct work;
	struct kdrpc_peer *peer;
	struct kdrpc_request request;
	bool busy;			/* from the request to the answer */
};

struct kdrpc_peer {
	struct kdrpc_adapter *ad;
	struct list_head node;
	struct work_struct end;
	DAT_EP_HANDLE ep;		/* its consumer context is this structure */
	DAT_LMR_HANDLE lmr;		/* of memory */
	DAT_LMR_CONTEXT key;
	struct kdrpc_memory {
		u8 data[KDRPC_SLOTS][KDRPC_MAX_DATA];
		struct kdrpc_answer answer[KDRPC_SLOTS];
	} *memory;
	struct kdrpc_call calls[KDRPC_SLOTS];	/* by the client's numbers */
};

static struct workqueue_struct *kdrpc_wq;
static LIST_HEAD(kdrpc_adapters);		/* of the notifier */
static DEFINE_SPINLOCK(kdrpc_lock);		/* for the peers of adapters */
static DECLARE_WAIT_QUEUE_HEAD(kdrpc_gone);	/* a peer has gone */

/* ---- calls ---- */

/* The service: replace this. It may sleep. Return the value of the answer. */
static u32 kdrpc_serve(u8 op, u32 value, void *data, u32 length)
{
	if (op == KDRPC_ECHO)
		return value;
	if (op == KDRPC_GET)
		kdrpc_fill(data, length, value);
	return crc32_le(~0, data, length);
}

static void kdrpc_hang_up(struct kdrpc_peer *peer, const char *why)
{
	pr_warn_ratelimited("%s: a client is disconnected: %s\n", peer->ad->name, why);
	dat_ep_disconnect(peer->ep, DAT_CLOSE_ABRUPT_FLAG);
}

/* Work item: carry out a call and answer it, with one doorbell for data and answer. */
static void kdrpc_call_work(struct work_struct *work)
{
	struct kdrpc_call *call = container_of(work, struct kdrpc_call, work);
	const struct kdrpc_request *msg = &call->request;
	struct kdrpc_peer *peer = call->peer;
	u16 n = le16_to_cpu(msg->slot);
	u32 length = le32_to_cpu(msg->length);
	struct kdrpc_answer *answer = &peer->memory->answer[n];
	u8 *data = peer->memory->data[n];
	const DAT_LMR_TRIPLET from = { (uintptr_t)data, length, peer->key };
	const DAT_LMR_TRIPLET iov = { (uintptr_t)answer, sizeof(*answer), peer->key };
	const DAT_RMR_TRIPLET to = { le64_to_cpu(msg->address), length, le32_to_cpu(msg->key) };
	bool get = msg->op == KDRPC_GET;
	const struct kdat_request list[] = {
		{
			.op = KDAT_REQUEST_RDMA_WRITE,
			.completion_flags = DAT_COMPLETION_SUPPRESS_FLAG,
			.num_segments = 1,
			.local_iov = &from,
			.remote_iov = &to,
		}, {
			.op = length && READ_ONCE(invalidate) ? KDAT_REQUEST_SEND_INVALIDATE :
								KDAT_REQUEST_SEND,
			.completion_flags = DAT_COMPLETION_SUPPRESS_FLAG,
			.num_segments = 1,
			.local_iov = &iov,
			.rmr_context = le32_to_cpu(msg->key),
		},
	};
	DAT_COUNT failed;

	answer->slot = msg->slot;
	answer->turn = msg->turn;
	answer->value = cpu_to_le32(kdrpc_serve(msg->op, le32_to_cpu(msg->value), data, length));
	/* The next request with this number may arrive before the post has returned. */
	smp_store_release(&call->busy, false);	/* pairs with kdrpc_begin() */
	/* It fails when the client or the device goes; a client without an answer must go. */
	if (kdat_ep_post_list(peer->ep, get ? list : &list[1], get ? 2 : 1, &failed))
		dat_ep_disconnect(peer->ep, DAT_CLOSE_ABRUPT_FLAG);
}

/* Softirq: begin a call. Return what is wrong with it, or NULL. Never trust a peer. */
static const char *kdrpc_begin(struct kdrpc_peer *peer, const struct kdrpc_request *msg)
{
	u32 length = le32_to_cpu(msg->length);
	bool echo = msg->op == KDRPC_ECHO;
	u16 n = le16_to_cpu(msg->slot);
	DAT_RMR_TRIPLET from = { le64_to_cpu(msg->address), length, le32_to_cpu(msg->key) };
	DAT_LMR_TRIPLET to = { .segment_length = length, .lmr_context = peer->key };
	struct kdrpc_call *call;

	if (n >= KDRPC_SLOTS || msg->op < KDRPC_ECHO || msg->op > KDRPC_GET ||
	    length > KDRPC_MAX_DATA || !length != echo)
		return "a request that makes no sense";
	call = &peer->calls[n];
	if (smp_load_acquire(&call->busy))	/* pairs with kdrpc_call_work() */
		return "a request with the number of another one";
	call->busy = true;
	call->request = *msg;
	if (msg->op != KDRPC_PUT) {
		queue_work(kdrpc_wq, &call->work);
		return NULL;
	}
	to.virtual_address = (uintptr_t)peer->memory->data[n];
	return dat_ep_post_rdma_read(peer->ep, 1, &to, (DAT_DTO_COOKIE){ .as_ptr = call }, &from,
				     DAT_COMPLETION_DEFAULT_FLAG) == DAT_SUCCESS ?
	       NULL : "a Read could not be posted";
}

static void kdrpc_post_buf(struct kdrpc_adapter *ad, struct kdrpc_buf *buf)
{
	DAT_LMR_TRIPLET iov = { (uintptr_t)&buf->request, sizeof(buf->request), buf->key };

	/* If it fails, the device has gone, or the SRQ has one buffer less. */
	dat_srq_post_recv(ad->srq, 1, &iov, (DAT_DTO_COOKIE){ .as_ptr = buf });
}

/* Softirq: a message of any client of the adapter, or the data of a PUT have arrived. */
static void kdrpc_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	struct kdrpc_buf *buf = dto->user_cookie.as_ptr;
	struct kdrpc_call *call = dto->user_cookie.as_ptr;
	struct kdrpc_request msg;
	DAT_CONTEXT peer = {};
	const char *wrong;

	if (dto->operation == DAT_DTO_RDMA_READ && dto->status == DAT_DTO_SUCCESS)
		queue_work(kdrpc_wq, &call->work);
	if (dto->operation != DAT_DTO_RECEIVE && dto->operation != DAT_DTO_RECEIVE_WITH_INVALIDATE)
		return;		/* a failure: the end of the connection is reported as well */
	/* Copy the request, so that the buffer serves another client while this call lasts. */
	msg = buf->request;
	kdrpc_post_buf(instance, buf);	/* after a failure, too: it is ours again */
	if (dto->status != DAT_DTO_SUCCESS ||
	    dat_get_consumer_context(dto->ep_handle, &peer) != DAT_SUCCESS)
		return;
	wrong = dto->transfered_length == sizeof(msg) ? kdrpc_begin(peer.as_ptr, &msg) :
							"a message of another length";
	if (wrong)
		kdrpc_hang_up(peer.as_ptr, wrong);
}

/* ---- clients ---- */

/*
 * Called once for each client: by the event of its end, or by kdrpc_cr_upcall() if it was not
 * accepted, since there is no event then.
 */
static void kdrpc_peer_free(struct kdrpc_peer *peer)
{
	int n;

	/* After the drain no completion begins a call, and none has a buffer of the SRQ. */
	kdat_ep_drain(peer->ep);
	for (n = 0; n < KDRPC_SLOTS; n++)
		cancel_work_sync(&peer->calls[n].work);
	dat_ep_free(peer->ep);
	dat_lmr_free(peer->lmr);
	vfree(peer->memory);
	spin_lock(&kdrpc_lock);
	list_del(&peer->node);
	WRITE_ONCE(peer->ad->npeers, peer->ad->npeers - 1);
	wake_up_all(&kdrpc_gone);	/* then the adapter may go */
	spin_unlock(&kdrpc_lock);
	kvfree(peer);
}

static void kdrpc_end_work(struct work_struct *work)
{
	kdrpc_peer_free(container_of(work, struct kdrpc_peer, end));
}

/* Each acceptance is followed by exactly one event other than ESTABLISHED: the end. */
static void kdrpc_conn_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	DAT_CONTEXT peer = {};

	if (event->event_number != DAT_CONNECTION_EVENT_ESTABLISHED &&
	    dat_get_consumer_context(event->event_data.connect_event_data.ep_handle, &peer) ==
	    DAT_SUCCESS)
		queue_work(kdrpc_wq, &((struct kdrpc_peer *)peer.as_ptr)->end);
}

static DAT_RETURN kdrpc_peer_setup(struct kdrpc_peer *peer, struct kdrpc_adapter *ad)
{
	const DAT_REGION_DESCRIPTION region = { .for_va = peer->memory };
	DAT_EP_ATTR attr = KDAT_EP_ATTR_INIT;

	attr.max_message_size = sizeof(struct kdrpc_request);
	attr.max_rdma_size = KDRPC_MAX_DATA;
	attr.max_request_dtos = 4 * KDRPC_SLOTS;	/* Read, Write, answer, an earlier answer */
	attr.max_request_iov = 1;
	attr.max_rdma_read_out = KDRPC_READS;
	return dat_lmr_kcreate(ad->ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof(*peer->memory), ad->pz,
			       /* On iWARP the sink of a Read has to be writable by the peer. */
			       KDRPC_LOCAL | (ad->iwarp ? DAT_MEM_PRIV_REMOTE_WRITE_FLAG : 0),
			       DAT_VA_TYPE_VA, DAT_MEM_OPTIMIZE_DONT_CARE, &peer->lmr, &peer->key,
			       NULL, NULL, NULL) ?:
	       dat_ep_create_with_srq(ad->ia, ad->pz, ad->evd, ad->evd, ad->conn_evd, ad->srq,
				      &attr, &peer->ep) ?:
	       dat_set_consumer_context(peer->ep, (DAT_CONTEXT){ .as_ptr = peer });
}

/* NULL: there is no memory, or there are enough clients. */
static struct kdrpc_peer *kdrpc_peer_create(struct kdrpc_adapter *ad)
{
	struct kdrpc_peer *peer;
	int n;

	if (READ_ONCE(ad->npeers) >= KDRPC_PEERS)
		return NULL;
	peer = kvzalloc(sizeof(*peer), GFP_KERNEL);

	if (peer)
		peer->memory = vzalloc(sizeof(*peer->memory));
	if (!peer || !peer->memory) {
		kvfree(peer);
		return NULL;
	}
	peer->ad = ad;
	INIT_WORK(&peer->end, kdrpc_end_work);
	for (n = 0; n < KDRPC_SLOTS; n++) {
		peer->calls[n].peer = peer;
		INIT_WORK(&peer->calls[n].work, kdrpc_call_work);
	}
	spin_lock(&kdrpc_lock);
	list_add_tail(&peer->node, &ad->peers);
	WRITE_ONCE(ad->npeers, ad->npeers + 1);
	spin_unlock(&kdrpc_lock);
	return peer;
}

/* ---- adapters ---- */

/* Post more Receives, and ask to be told when half a batch is left. bufs_lock held. */
static DAT_RETURN kdrpc_more_bufs(struct kdrpc_adapter *ad)
{
	DAT_REGION_DESCRIPTION region = {};
	struct kdrpc_batch *more;
	DAT_LMR_CONTEXT key;
	DAT_RETURN ret;
	int i;

	if (ad->nbufs + batch > KDRPC_BUFS)
		return DAT_SUCCESS;		/* then messages wait, or their senders do */
	more = kvzalloc(struct_size(more, bufs, batch), GFP_KERNEL);
	if (!more)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	region.for_va = more->bufs;
	ret = dat_lmr_kcreate(ad->ia, DAT_MEM_TYPE_VIRTUAL, region, batch * sizeof(more->bufs[0]),
			      ad->pz, KDRPC_LOCAL, DAT_VA_TYPE_VA, DAT_MEM_OPTIMIZE_DONT_CARE,
			      &more->lmr, &key, NULL, NULL, NULL);
	if (ret != DAT_SUCCESS) {
		kvfree(more);
		return ret;
	}
	list_add(&more->node, &ad->batches);
	for (i = 0; i < batch; i++) {
		more->bufs[i].key = key;
		kdrpc_post_buf(ad, &more->bufs[i]);
	}
	ad->nbufs += batch;
	pr_info("%s: %u Receives\n", ad->name, ad->nbufs);
	return dat_srq_set_lw(ad->srq, batch / 2);
}

/*
 * The low watermark was passed, or there is a new client. InfiniBand and RoCE repeat a message that
 * finds no Receive. iWARP ends its connection, so there each client adds as many as it may use.
 */
static void kdrpc_enough_bufs(struct kdrpc_adapter *ad, bool low)
{
	mutex_lock(&ad->bufs_lock);
	if (low)
		kdrpc_more_bufs(ad);
	while (ad->iwarp && ad->nbufs < READ_ONCE(ad->npeers) * KDRPC_SLOTS &&
	       ad->nbufs + batch <= KDRPC_BUFS &&
	       kdrpc_more_bufs(ad) == DAT_SUCCESS)
		;
	mutex_unlock(&ad->bufs_lock);
}

/* Process context. The low watermark has no event number of its own. */
static void kdrpc_async_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_ASYNCH_ERROR_EVENT_DATA *data = &event->event_data.asynch_error_event_data;
	struct kdrpc_adapter *ad = instance;

	if (event->event_number == DAT_ASYNC_ERROR_IA_CATASTROPHIC)
		mod_delayed_work(kdrpc_wq, &ad->work, 0);
	else if (data->dat_handle == ad->srq && data->reason == DAT_SRQ_LOW_WATERMARK_EVENT)
		kdrpc_enough_bufs(ad, true);
	else
		pr_warn("%s: %s\n", ad->name, kdat_event_name(event->event_number));
}

/* Process context, one request at a time. Each must be answered. */
static void kdrpc_cr_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	DAT_CR_HANDLE cr = event->event_data.cr_arrival_event_data.cr_handle;
	struct kdrpc_adapter *ad = instance;
	struct kdrpc_peer *peer = NULL;
	struct kdrpc_hello hello;
	DAT_CR_PARAM param;

	/* InfiniBand and RoCE pad private data with zeroes, so it may be longer. */
	if (dat_cr_query(cr, DAT_CR_FIELD_ALL, &param) == DAT_SUCCESS &&
	    param.private_data_size >= (DAT_COUNT)sizeof(hello)) {
		memcpy(&hello, param.private_data, sizeof(hello));
		if (hello.magic == cpu_to_le32(KDRPC_MAGIC) &&
		    hello.version == cpu_to_le32(KDRPC_VERSION))
			peer = kdrpc_peer_create(ad);
	}
	kdrpc_enough_bufs(ad, false);
	if (peer && kdrpc_peer_setup(peer, ad) == DAT_SUCCESS &&
	    dat_cr_accept(cr, peer->ep, 0, NULL) == DAT_SUCCESS)
		return;
	dat_cr_reject(cr, 0, NULL);
	if (peer)
		kdrpc_peer_free(peer);
}

static bool kdrpc_no_peers(struct kdrpc_adapter *ad)
{
	bool none;

	spin_lock(&kdrpc_lock);
	none = list_empty(&ad->peers);
	spin_unlock(&kdrpc_lock);
	return none;
}

/*
 * Free users before what they use: new clients, clients, the SRQ, its memory, the rest. The device
 * may have gone or be going, and clients may be leaving. Whatever ends a connection, one event
 * reports that, and frees the client.
 */
static void kdrpc_close(struct kdrpc_adapter *ad)
{
	struct kdrpc_batch *old, *next;
	struct kdrpc_peer *peer;

	if (!ad->ia)
		return;
	dat_evd_modify_upcall(ad->async_evd, DAT_UPCALL_TEARDOWN, DAT_UPCALL_SAME,
			      DAT_UPCALL_INVOC_NEW);	/* it adds Receives */
	dat_psp_free(ad->psp);
	dat_evd_free(ad->cr_evd);
	spin_lock(&kdrpc_lock);
	list_for_each_entry(peer, &ad->peers, node)
		dat_ep_disconnect(peer->ep, DAT_CLOSE_ABRUPT_FLAG);
	spin_unlock(&kdrpc_lock);
	wait_event(kdrpc_gone, kdrpc_no_peers(ad));	/* each has an event with its end */
	dat_srq_free(ad->srq);				/* takes back all Receives */
	list_for_each_entry_safe(old, next, &ad->batches, node) {
		dat_lmr_free(old->lmr);
		kvfree(old);
	}
	INIT_LIST_HEAD(&ad->batches);
	dat_ia_close(ad->ia, DAT_CLOSE_ABRUPT_FLAG);	/* ends all upcalls */
	ad->ia = NULL;
	ad->pz = NULL;
	ad->async_evd = NULL;
	ad->srq = NULL;
	ad->psp = NULL;
	ad->cr_evd = NULL;
	ad->nbufs = 0;
}

/* Open the adapter, unless it is open. One without an address is of no use. */
static DAT_RETURN kdrpc_open(struct kdrpc_adapter *ad)
{
	DAT_RETURN ret = DAT_SUCCESS;
	DAT_PROVIDER_ATTR provider;
	DAT_IA_ATTR attr;

	if (!ad->ia)
		ret = dat_ia_open(ad->name, 16, &ad->async_evd, &ad->ia);
	ret = ret ?: dat_ia_query(ad->ia, NULL, DAT_IA_FIELD_ALL, &attr,
				  DAT_PROVIDER_FIELD_RDMA_WRITE_FOR_RDMA_READ_REQ, &provider);
	if (ret != DAT_SUCCESS)
		return ret;
	ad->iwarp = provider.rdma_write_for_rdma_read_req;
	return attr.ia_address_ptr ? DAT_SUCCESS :
	       DAT_ERROR(DAT_INVALID_ADDRESS, DAT_INVALID_ADDRESS_UNREACHABLE);
}

static DAT_RETURN kdrpc_listen(struct kdrpc_adapter *ad)
{
	const DAT_UPCALL_OBJECT async = { ad, kdrpc_async_upcall }, dto = { ad, kdrpc_upcall };
	const DAT_UPCALL_OBJECT conn = { ad, kdrpc_conn_upcall }, cr = { ad, kdrpc_cr_upcall };
	const DAT_SRQ_ATTR srq = {
		.max_recv_dtos = KDRPC_BUFS,
		.max_recv_iov = 1,
		.low_watermark = DAT_SRQ_LW_DEFAULT,	/* it is set when Receives are posted */
	};

	return dat_pz_create(ad->ia, &ad->pz) ?:
	       dat_srq_create(ad->ia, ad->pz, &srq, &ad->srq) ?:
	       dat_evd_modify_upcall(ad->async_evd, DAT_UPCALL_SINGLE_INSTANCE, &async,
				     DAT_UPCALL_INVOC_ANY) ?:
	       dat_evd_kcreate(ad->ia, 1, DAT_UPCALL_SINGLE_INSTANCE, &dto, DAT_EVD_DTO_FLAG,
			       &ad->evd) ?:
	       /* Two events for each client, and the backlog of the listener. */
	       dat_evd_kcreate(ad->ia, 2 * KDRPC_PEERS, DAT_UPCALL_SINGLE_INSTANCE, &conn,
			       DAT_EVD_CONNECTION_FLAG, &ad->conn_evd) ?:
	       dat_evd_kcreate(ad->ia, 32, DAT_UPCALL_SINGLE_INSTANCE, &cr, DAT_EVD_CR_FLAG,
			       &ad->cr_evd) ?:
	       kdrpc_more_bufs(ad) ?:	/* needs no lock: nothing else runs yet */
	       dat_psp_create(ad->ia, port, ad->cr_evd, DAT_PSP_CONSUMER_FLAG, &ad->psp);
}

/*
 * Listen or, if the device has gone, clean up. Nothing more happens to this adapter then: a device
 * that comes back is another one, even under the same name, and the notifier reports both. A new
 * address is not reported: without one the IA stays open, and the work item looks again.
 */
static void kdrpc_adapter_work(struct work_struct *work)
{
	struct kdrpc_adapter *ad = container_of(work, struct kdrpc_adapter, work.work);
	DAT_RETURN ret;

	if (READ_ONCE(ad->leaving))
		return;
	if (ad->ia && kdat_ia_lost(ad->ia)) {
		kdrpc_close(ad);
		return;
	}
	if (ad->pz)
		return;
	ret = kdrpc_open(ad) ?: kdrpc_listen(ad);
	if (ret == DAT_SUCCESS) {
		pr_info("%s: serving on port %u\n", ad->name, port);
		ad->said = false;
		return;
	}
	if (ad->pz)
		kdrpc_close(ad);
	if (DAT_GET_TYPE(ret) == DAT_PROVIDER_NOT_FOUND)
		return;			/* it has gone, and the notifier is on its way */
	if (!ad->said && DAT_GET_TYPE(ret) == DAT_INVALID_ADDRESS)
		pr_warn("%s: cannot serve, trying again: it has no address\n", ad->name);
	else if (!ad->said)
		pr_warn("%s: cannot serve, trying again: %pe\n", ad->name,
			ERR_PTR(kdat_errno(ret)));
	ad->said = true;
	queue_delayed_work(kdrpc_wq, &ad->work, KDRPC_RETRY);
}

static void kdrpc_adapter_free(struct kdrpc_adapter *ad)
{
	list_del(&ad->node);
	WRITE_ONCE(ad->leaving, true);	/* an upcall may still queue the work */
	cancel_delayed_work_sync(&ad->work);
	kdrpc_close(ad);		/* ends the upcalls that queue it */
	cancel_delayed_work_sync(&ad->work);
	kfree(ad);
}

/* Called once at a time, first for the adapters that are there. */
static int kdrpc_notified(struct notifier_block *nb, unsigned long action, void *name)
{
	struct kdrpc_adapter *ad, *next;

	if (action == KDAT_IA_ADDED) {
		ad = kzalloc(sizeof(*ad), GFP_KERNEL);
		if (!ad)
			return NOTIFY_OK;
		strscpy(ad->name, name, sizeof(ad->name));
		mutex_init(&ad->bufs_lock);
		INIT_LIST_HEAD(&ad->batches);
		INIT_LIST_HEAD(&ad->peers);
		INIT_DELAYED_WORK(&ad->work, kdrpc_adapter_work);
		list_add_tail(&ad->node, &kdrpc_adapters);
		queue_delayed_work(kdrpc_wq, &ad->work, 0);
		return NOTIFY_OK;
	}
	list_for_each_entry_safe(ad, next, &kdrpc_adapters, node)
		if (action == KDAT_IA_REMOVED && !strcmp(ad->name, name))
			kdrpc_adapter_free(ad);
	return NOTIFY_OK;
}

static struct notifier_block kdrpc_notifier = { .notifier_call = kdrpc_notified };

static int __init kdrpc_server_init(void)
{
	int err;

	if (!port || batch < 2 || batch > KDRPC_BUFS) {
		pr_err("port= must be 1..65535, batch= 2..%u\n", KDRPC_BUFS);
		return -EINVAL;
	}
	kdrpc_wq = alloc_workqueue("kdrpc_server", WQ_UNBOUND, 0);
	if (!kdrpc_wq)
		return -ENOMEM;
	err = kdat_register_ia_notifier(&kdrpc_notifier);
	if (err)
		destroy_workqueue(kdrpc_wq);
	return err;
}

static void __exit kdrpc_server_exit(void)
{
	struct kdrpc_adapter *ad, *next;

	kdat_unregister_ia_notifier(&kdrpc_notifier);
	list_for_each_entry_safe(ad, next, &kdrpc_adapters, node)
		kdrpc_adapter_free(ad);
	destroy_workqueue(kdrpc_wq);
}

module_init(kdrpc_server_init);
module_exit(kdrpc_server_exit);
MODULE_DESCRIPTION("kDAPL example: answers calls, many clients over a Shared Receive Queue");
MODULE_AUTHOR("The kDAPL for Linux authors");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION(KDAPL_VERSION);
