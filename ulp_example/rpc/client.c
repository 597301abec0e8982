// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The calling side. Three contexts share the work:
 *
 *	kdrpc_submit()	any context, hard interrupts included: puts a call on a list and wakes the
 *			upcall by dat_evd_post_se(), the one call that is legal there
 *	kdrpc_upcall()	softirq, one at a time: posts requests, takes answers. It neither sleeps
 *			nor allocates
 *	kdrpc_work()	work item, one at a time: connects, cleans up after a connection. It alone
 *			makes and frees objects
 *
 * Calls wait while there is no connection. A call without an answer when the connection ends is
 * sent again on the next one, so the server may carry it out twice.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/notifier.h>
#include <linux/slab.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <dat2/kdat.h>
#include <dat2/kdat_ext.h>
#include "client.h"

#define KDRPC_LOCAL	(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG)
/* data may begin inside a page, of any size */
#define KDRPC_PAGES	(DIV_ROUND_UP(KDRPC_MAX_DATA, PAGE_SIZE) + 1)
#define KDRPC_RETRY	HZ		/* between attempts to connect */
#define KDRPC_PATIENCE	(10 * HZ)	/* with a server: longer than its slowest call takes */
#define KDRPC_PAUSE	(HZ / 10)	/* before the first one: servers may end each connection */

struct kdrpc_messages {			/* a page that the adapter may access */
	struct kdrpc_request request[KDRPC_SLOTS];
	struct kdrpc_answer answer[KDRPC_SLOTS];	/* the Receives */
};

struct kdrpc_slot {			/* a call that waits for its answer */
	struct kdrpc_call *call;	/* NULL: the slot is free */
	DAT_LMR_HANDLE lmr;		/* for the memory that the call lends */
	DAT_RMR_CONTEXT key;		/* the server's key to that */
	u8 turn;			/* distinguishes its answer from that to an earlier call */
	bool lent;			/* the server may access it */
	bool answered;			/* without giving the key back */
};

struct kdrpc_client {
	struct net *net;
	struct sockaddr_storage server;
	u16 port;
	struct list_head node;			/* in kdrpc_clients */
	struct delayed_work work;
	wait_queue_head_t wait;			/* for event, stopping */
	DAT_EVENT_NUMBER event;			/* the last one of the connection, or 0 */
	bool stopping;
	struct llist_head submitted;		/* calls from any context */

	spinlock_t lock;			/* for these, taken in softirq */
	bool ready;				/* connected: requests may be posted */
	u16 in_flight;
	unsigned long heard;			/* last answer, or first call after a while */
	struct list_head waiting;		/* calls without a slot */
	struct kdrpc_slot slots[KDRPC_SLOTS];

	struct kdrpc_messages *messages;	/* these belong to the work item */
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async_evd, evd, conn_evd;
	DAT_PZ_HANDLE pz;
	DAT_LMR_HANDLE lmr;			/* of the messages */
	DAT_LMR_CONTEXT key;
	DAT_EP_HANDLE ep;
	bool used;				/* ep has to be reset before it connects */
	bool said;				/* it is logged why there is no connection */
};

static struct workqueue_struct *kdrpc_wq;
static LIST_HEAD(kdrpc_clients);
static DEFINE_MUTEX(kdrpc_mutex);	/* for kdrpc_clients */

/* ---- softirq: requests and answers ---- */

static DAT_RETURN kdrpc_post_receive(struct kdrpc_client *c, u32 i)
{
	DAT_LMR_TRIPLET iov = { (uintptr_t)&c->messages->answer[i], sizeof(struct kdrpc_answer),
				c->key };

	return dat_ep_post_recv(c->ep, 1, &iov, (DAT_DTO_COOKIE){ .as_64 = i },
				DAT_COMPLETION_DEFAULT_FLAG);
}

/*
 * Lend the memory of a call and send the request, with one doorbell: the key is known before the
 * device has made it. Neither asks for a completion. The answer proves that both have succeeded,
 * and a failure is reported all the same.
 */
static DAT_RETURN kdrpc_post_request(struct kdrpc_client *c, u16 n, struct kdrpc_call *call)
{
	struct kdrpc_slot *slot = &c->slots[n];
	struct kdrpc_request *msg = &c->messages->request[n];
	DAT_LMR_TRIPLET iov = { (uintptr_t)msg, sizeof(*msg), c->key };
	struct kdat_sg sg = { .sgl = call->sgl, .nents = call->nents, .length = call->length };
	const struct kdat_request list[] = {
		{
			.op = KDAT_REQUEST_LMR_FMR,
			.completion_flags = DAT_COMPLETION_SUPPRESS_FLAG,
			.lmr_handle = slot->lmr,
			.sg = &sg,
			.mem_privileges = call->op == KDRPC_PUT ? DAT_MEM_PRIV_REMOTE_READ_FLAG :
								  DAT_MEM_PRIV_REMOTE_WRITE_FLAG,
			.va_type = DAT_VA_TYPE_VA,
		}, {
			.op = KDAT_REQUEST_SEND,
			.completion_flags = DAT_COMPLETION_SUPPRESS_FLAG,
			.num_segments = 1,
			.local_iov = &iov,
		},
	};
	DAT_LMR_CONTEXT lkey;
	DAT_COUNT failed;

	*msg = (struct kdrpc_request) {
		.slot = cpu_to_le16(n),
		.op = call->op,
		.turn = ++slot->turn,
		.value = cpu_to_le32(call->value),
		.length = cpu_to_le32(call->length),
	};
	slot->answered = false;
	slot->lent = call->length;
	if (!slot->lent)
		return kdat_ep_post_list(c->ep, &list[1], 1, &failed);
	msg->address = cpu_to_le64(sg_phys(call->sgl));
	if (kdat_lmr_next_contexts(slot->lmr, &lkey, &slot->key) == DAT_SUCCESS)
		msg->key = cpu_to_le32(slot->key);
	return kdat_ep_post_list(c->ep, list, ARRAY_SIZE(list), &failed);
}

static void kdrpc_finish(struct kdrpc_client *c, struct kdrpc_slot *slot, struct list_head *done)
{
	list_add_tail(&slot->call->node, done);
	slot->call = NULL;
	c->in_flight--;
}

/* Post what waits, as far as there are slots. */
static void kdrpc_start(struct kdrpc_client *c, struct list_head *done)
{
	struct llist_node *all = llist_reverse_order(llist_del_all(&c->submitted));
	struct kdrpc_call *call, *next;
	DAT_RETURN ret;
	u16 n;

	llist_for_each_entry_safe(call, next, all, submitted)
		list_add_tail(&call->node, &c->waiting);
	for (n = 0; c->ready && n < KDRPC_SLOTS && !list_empty(&c->waiting); n++) {
		if (c->slots[n].call)
			continue;
		call = list_first_entry(&c->waiting, struct kdrpc_call, node);
		ret = kdrpc_post_request(c, n, call);
		if (ret == DAT_SUCCESS) {
			list_del(&call->node);
			c->slots[n].call = call;
			if (!c->in_flight++)
				c->heard = jiffies;
			continue;
		}
		/*
		 * The connection ends, or the device goes: wait for the next connection. Or there
		 * is no room: wait for an answer.
		 */
		if (DAT_GET_TYPE(ret) == DAT_INVALID_STATE ||
		    DAT_GET_TYPE(ret) == DAT_INTERNAL_ERROR ||
		    (DAT_GET_TYPE(ret) == DAT_INSUFFICIENT_RESOURCES && c->in_flight))
			return;
		call->err = kdat_errno(ret);
		list_move_tail(&call->node, done);
		n--;			/* this slot is still free: for the next one */
	}
}

/* Take an answer; return what is wrong with it, or NULL. Never trust numbers from a peer. */
static const char *kdrpc_answered(struct kdrpc_client *c, struct list_head *done,
				  const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	const struct kdrpc_answer *answer = &c->messages->answer[dto->user_cookie.as_64];
	DAT_LMR_COOKIE cookie = {};
	bool invalidated = dto->operation == DAT_DTO_RECEIVE_WITH_INVALIDATE;
	u16 n = le16_to_cpu(answer->slot);
	struct kdrpc_slot *slot;

	if (dto->transfered_length != sizeof(*answer) || answer->reserved)
		return "a malformed answer";
	if (n >= KDRPC_SLOTS)
		return "an answer to no call";
	slot = &c->slots[n];
	if (!slot->call || slot->answered || slot->turn != answer->turn)
		return "an answer to no call";
	if (invalidated && (!slot->lent || dto->rmr_context != slot->key))
		return "an answer that takes back the memory of another call";
	slot->call->err = 0;
	slot->call->result = le32_to_cpu(answer->value);
	slot->answered = true;
	c->heard = jiffies;
	/* Post the Receive again while the slot is taken: the next request relies on it. */
	if (kdrpc_post_receive(c, dto->user_cookie.as_64) != DAT_SUCCESS)
		return "no Receive could be posted";
	if (!slot->lent || invalidated) {
		kdrpc_finish(c, slot, done);
		return NULL;
	}
	/* This server does not take back memory by its answers, so do it here. */
	cookie.as_64 = n;
	return dat_lmr_invalidate(slot->lmr, c->ep, cookie, DAT_COMPLETION_DEFAULT_FLAG) ?
	       "memory could not be taken back" : NULL;
}

static void kdrpc_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	bool completion = event->event_number == DAT_DTO_COMPLETION_EVENT;
	struct kdrpc_client *c = instance;
	struct kdrpc_call *call, *next;
	const char *wrong = NULL;
	LIST_HEAD(done);

	spin_lock(&c->lock);
	if (completion && dto->status == DAT_DTO_SUCCESS) {
		if (dto->operation == DAT_DTO_LMR_INVALIDATE)
			kdrpc_finish(c, &c->slots[dto->user_cookie.as_64], &done);
		else
			wrong = kdrpc_answered(c, &done, dto);
	} else if (completion && dto->status != DAT_DTO_ERR_FLUSHED) {
		wrong = kdat_dto_status_name(dto->status);
	}
	kdrpc_start(c, &done);
	spin_unlock(&c->lock);
	if (wrong) {
		pr_warn_ratelimited("%pISpc: connection given up: %s\n", &c->server, wrong);
		dat_ep_disconnect(c->ep, DAT_CLOSE_ABRUPT_FLAG);
	}
	list_for_each_entry_safe(call, next, &done, node)
		call->done(call);
}

/* Let the upcall run. It does no harm if this fails: there is no EVD, or events are queued. */
static void kdrpc_kick(struct kdrpc_client *c)
{
	const DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };

	dat_evd_post_se(READ_ONCE(c->evd), &event);
}

/* Begin a call. Context: any, hard interrupts included (with PREEMPT_RT only threaded ones). */
void kdrpc_submit(struct kdrpc_client *c, struct kdrpc_call *call)
{
	/* The upcall takes all that are on the list, so the first one wakes it for the others. */
	if (llist_add(&call->submitted, &c->submitted))
		kdrpc_kick(c);
}

/* ---- process context: the connection ---- */

static void kdrpc_conn_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct kdrpc_client *c = instance;

	WRITE_ONCE(c->event, event->event_number);
	wake_up_all(&c->wait);			/* the work item waits for the outcome */
	if (event->event_number == DAT_CONNECTION_EVENT_DISCONNECTED ||
	    event->event_number == DAT_CONNECTION_EVENT_BROKEN)
		mod_delayed_work(kdrpc_wq, &c->work, KDRPC_PAUSE);
}

static void kdrpc_set_ready(struct kdrpc_client *c, bool ready)
{
	spin_lock_bh(&c->lock);
	c->ready = ready;
	spin_unlock_bh(&c->lock);
}

/*
 * Take back the calls that had no answer. No completion can arrive any more. The memory of a call
 * is safe from the server when its LMR has been freed.
 */
static void kdrpc_take_back(struct kdrpc_client *c)
{
	int n;

	for (n = KDRPC_SLOTS - 1; n >= 0; n--) {
		struct kdrpc_slot *slot = &c->slots[n];

		if (!slot->call)
			continue;
		if (slot->lent) {
			dat_lmr_free(slot->lmr);
			slot->lmr = NULL;
		}
		spin_lock_bh(&c->lock);
		list_add(&slot->call->node, &c->waiting);
		slot->call = NULL;
		spin_unlock_bh(&c->lock);
	}
	c->in_flight = 0;
}

/* The adapter has gone, or the client goes: one call frees all that was made. */
static void kdrpc_close(struct kdrpc_client *c)
{
	int n;

	if (c->ia)
		dat_ia_close(c->ia, DAT_CLOSE_ABRUPT_FLAG);
	kdrpc_take_back(c);
	for (n = 0; n < KDRPC_SLOTS; n++)
		c->slots[n].lmr = NULL;
	WRITE_ONCE(c->evd, NULL);
	c->async_evd = NULL;
	c->ep = NULL;
	c->ia = NULL;
}

static DAT_RETURN kdrpc_post_receives(struct kdrpc_client *c)
{
	DAT_RETURN ret = DAT_SUCCESS;
	u32 i;

	for (i = 0; i < KDRPC_SLOTS && ret == DAT_SUCCESS; i++)
		ret = kdrpc_post_receive(c, i);
	c->used = ret != DAT_SUCCESS;
	return ret;
}

/* Connections report their own ends. But an EVD that is not read fills up. */
static void kdrpc_async_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
}

/* Open the adapter that leads to the server, and make what outlives connections. */
static DAT_RETURN kdrpc_open(struct kdrpc_client *c)
{
	const DAT_REGION_DESCRIPTION region = { .for_va = c->messages };
	const DAT_UPCALL_OBJECT async = { c, kdrpc_async_upcall }, conn = { c, kdrpc_conn_upcall };
	const DAT_UPCALL_OBJECT dto = { c, kdrpc_upcall };
	struct kdat_conn_attr conn_attr = KDAT_CONN_ATTR_INIT;
	struct kdat_evd_attr evd_attr = KDAT_EVD_ATTR_INIT;
	DAT_EP_ATTR attr = KDAT_EP_ATTR_INIT;

	/* Without limit: when the SRQ of the server is empty, requests wait. (Not on iWARP.) */
	conn_attr.rnr_retry_count = 7;
	/* An EVD with software events makes its upcalls in a workqueue by default. */
	evd_attr.context = KDAT_EVD_CONTEXT_SOFTIRQ;
	attr.max_message_size = sizeof(struct kdrpc_request);
	attr.max_recv_dtos = KDRPC_SLOTS;
	attr.max_recv_iov = 1;
	attr.max_request_dtos = 3 * KDRPC_SLOTS;	/* lend, send, invalidate */
	attr.max_request_iov = 1;
	attr.max_rdma_size = KDRPC_MAX_DATA;
	attr.max_rdma_read_in = KDRPC_READS;		/* the server reads */
	return kdat_ia_open_to(c->net, (struct sockaddr *)&c->server, NULL, 8, &c->async_evd,
			       &c->ia) ?:
	       dat_evd_modify_upcall(c->async_evd, DAT_UPCALL_SINGLE_INSTANCE, &async,
				     DAT_UPCALL_INVOC_ANY) ?:
	       dat_pz_create(c->ia, &c->pz) ?:
	       dat_lmr_kcreate(c->ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof(*c->messages), c->pz,
			       KDRPC_LOCAL, DAT_VA_TYPE_VA, DAT_MEM_OPTIMIZE_DONT_CARE, &c->lmr,
			       &c->key, NULL, NULL, NULL) ?:
	       kdat_evd_create(c->ia, 4, DAT_UPCALL_SINGLE_INSTANCE, &dto,
			       DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG, &evd_attr, &c->evd) ?:
	       dat_evd_kcreate(c->ia, 4, DAT_UPCALL_SINGLE_INSTANCE, &conn,
			       DAT_EVD_CONNECTION_FLAG, &c->conn_evd) ?:
	       dat_ep_create(c->ia, c->pz, c->evd, c->evd, c->conn_evd, &attr, &c->ep) ?:
	       kdat_ep_modify_conn(c->ep, &conn_attr) ?:
	       kdrpc_post_receives(c);
}

/* After the end of a connection or an attempt: the Endpoint can connect again. */
static DAT_RETURN kdrpc_recover(struct kdrpc_client *c)
{
	if (!c->used)
		return DAT_SUCCESS;
	/* Afterwards no upcall with a completion of that connection runs, and none will. */
	kdat_ep_drain(c->ep);
	kdrpc_take_back(c);
	return dat_ep_reset(c->ep) ?: kdrpc_post_receives(c);
}

static DAT_RETURN kdrpc_connect(struct kdrpc_client *c)
{
	struct kdrpc_hello hello = { cpu_to_le32(KDRPC_MAGIC), cpu_to_le32(KDRPC_VERSION) };
	DAT_RETURN ret = DAT_SUCCESS;
	u32 i;

	for (i = 0; i < KDRPC_SLOTS && ret == DAT_SUCCESS; i++)
		if (!c->slots[i].lmr)
			ret = dat_lmr_allocate(c->ia, c->pz, KDRPC_PAGES, DAT_LMR_SCOPE_EP,
					       &c->slots[i].lmr);
	c->event = 0;
	ret = ret ?: dat_ep_connect(c->ep, (DAT_IA_ADDRESS_PTR)&c->server, c->port,
				    5 * USEC_PER_SEC, sizeof(hello), &hello,
				    DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
	if (ret != DAT_SUCCESS)
		return ret;
	c->used = true;
	/* The outcome comes when the time limit is over, at the latest. */
	wait_event(c->wait, READ_ONCE(c->event) || READ_ONCE(c->stopping));
	return DAT_SUCCESS;
}

/* While connected: a server that owes an answer and does not send one is given up. */
static void kdrpc_watch(struct kdrpc_client *c)
{
	bool stuck;

	spin_lock_bh(&c->lock);
	stuck = c->in_flight && time_after(jiffies, c->heard + KDRPC_PATIENCE);
	spin_unlock_bh(&c->lock);
	if (stuck) {
		pr_warn("%pISpc: connection given up: no answer\n", &c->server);
		dat_ep_disconnect(c->ep, DAT_CLOSE_ABRUPT_FLAG);
	}
	queue_delayed_work(kdrpc_wq, &c->work, KDRPC_PATIENCE / 2);
}

/*
 * Connect, unless connected. If the adapter has gone, the objects on it are of no use, so open
 * another one. Otherwise all its objects are still good, so use it again.
 */
static void kdrpc_work(struct work_struct *work)
{
	struct kdrpc_client *c = container_of(work, struct kdrpc_client, work.work);
	bool was = c->ready;
	DAT_RETURN ret;

	if (READ_ONCE(c->stopping))
		return;
	if (was && READ_ONCE(c->event) == DAT_CONNECTION_EVENT_ESTABLISHED) {
		kdrpc_watch(c);
		return;
	}
	if (was)
		pr_warn("%pISpc: %s\n", &c->server, kdat_event_name(c->event));
	kdrpc_set_ready(c, false);
	if (c->ia && !kdat_ia_lost(c->ia)) {
		ret = kdrpc_recover(c);
	} else {
		kdrpc_close(c);
		ret = kdrpc_open(c);
		if (ret != DAT_SUCCESS)
			kdrpc_close(c);
	}
	ret = ret ?: kdrpc_connect(c);
	if (READ_ONCE(c->stopping))
		return;			/* kdrpc_client_close() does the rest */
	if (ret == DAT_SUCCESS && READ_ONCE(c->event) == DAT_CONNECTION_EVENT_ESTABLISHED) {
		pr_info("%pISpc: connected\n", &c->server);
		c->said = false;
		kdrpc_set_ready(c, true);
		kdrpc_kick(c);
		queue_delayed_work(kdrpc_wq, &c->work, KDRPC_PATIENCE / 2);
		return;
	}
	if (!c->said && ret)
		pr_warn("%pISpc: cannot connect: %pe\n", &c->server, ERR_PTR(kdat_errno(ret)));
	else if (!c->said)
		pr_warn("%pISpc: cannot connect: %s\n", &c->server, kdat_event_name(c->event));
	c->said = true;
	/* The adapter has lost its address, which another one may have by now. */
	if (DAT_GET_TYPE(ret) == DAT_INVALID_ADDRESS)
		kdrpc_close(c);
	queue_delayed_work(kdrpc_wq, &c->work, KDRPC_RETRY);
}

/* An adapter has appeared, which may lead to a server: do not wait for the next attempt. */
static int kdrpc_notified(struct notifier_block *nb, unsigned long action, void *name)
{
	struct kdrpc_client *c;

	mutex_lock(&kdrpc_mutex);
	list_for_each_entry(c, &kdrpc_clients, node)
		if (action == KDAT_IA_ADDED)
			mod_delayed_work(kdrpc_wq, &c->work, 0);
	mutex_unlock(&kdrpc_mutex);
	return NOTIFY_OK;
}

static struct notifier_block kdrpc_notifier = { .notifier_call = kdrpc_notified };

/* ---- clients ---- */

/* A client of the server at @server, in whose namespace @net is; NULL without memory. */
struct kdrpc_client *kdrpc_client_create(struct net *net, const struct sockaddr *server, u16 port)
{
	struct kdrpc_client *c = kzalloc(sizeof(*c), GFP_KERNEL);

	BUILD_BUG_ON(sizeof(*c->messages) > PAGE_SIZE);
	if (c)
		c->messages = (void *)get_zeroed_page(GFP_KERNEL);
	if (!c || !c->messages) {
		kfree(c);
		return NULL;
	}
	c->net = get_net(net);
	memcpy(&c->server, server, server->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
								   sizeof(struct sockaddr_in));
	((struct sockaddr_in *)&c->server)->sin_port = cpu_to_be16(port); /* same place in IPv6 */
	c->port = port;
	spin_lock_init(&c->lock);
	init_llist_head(&c->submitted);
	INIT_LIST_HEAD(&c->waiting);
	init_waitqueue_head(&c->wait);
	INIT_DELAYED_WORK(&c->work, kdrpc_work);
	mutex_lock(&kdrpc_mutex);
	list_add_tail(&c->node, &kdrpc_clients);
	mutex_unlock(&kdrpc_mutex);
	mod_delayed_work(kdrpc_wq, &c->work, 0);
	return c;
}

/* End a client that no call is submitted to any more. Calls without an answer fail. */
void kdrpc_client_close(struct kdrpc_client *c)
{
	struct kdrpc_call *call, *next;

	mutex_lock(&kdrpc_mutex);
	list_del(&c->node);		/* no notifier queues the work any more */
	mutex_unlock(&kdrpc_mutex);
	WRITE_ONCE(c->stopping, true);
	wake_up_all(&c->wait);
	cancel_delayed_work_sync(&c->work);
	kdrpc_set_ready(c, false);
	/* Graceful, so that the server's last answers are acknowledged; within limits. */
	dat_ep_disconnect(c->ep, DAT_CLOSE_GRACEFUL_FLAG);
	wait_event_timeout(c->wait, READ_ONCE(c->event) != DAT_CONNECTION_EVENT_ESTABLISHED,
			   5 * HZ);
	dat_ep_disconnect(c->ep, DAT_CLOSE_ABRUPT_FLAG);
	kdat_ep_drain(c->ep);
	kdrpc_close(c);			/* no upcall queues the work any more */
	cancel_delayed_work_sync(&c->work);
	llist_for_each_entry_safe(call, next, llist_del_all(&c->submitted), submitted)
		list_add_tail(&call->node, &c->waiting);
	list_for_each_entry_safe(call, next, &c->waiting, node) {
		call->err = -ESHUTDOWN;
		call->done(call);
	}
	put_net(c->net);
	free_page((unsigned long)c->messages);
	kfree(c);
}

int kdrpc_clients_init(void)
{
	int err;

	kdrpc_wq = alloc_workqueue("kdrpc", WQ_UNBOUND, 0);
	if (!kdrpc_wq)
		return -ENOMEM;
	err = kdat_register_ia_notifier(&kdrpc_notifier);
	if (err)
		destroy_workqueue(kdrpc_wq);
	return err;
}

void kdrpc_clients_exit(void)
{
	kdat_unregister_ia_notifier(&kdrpc_notifier);
	destroy_workqueue(kdrpc_wq);
}
