/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What the consumers among the test modules have in common: adapters, memory, operations
 * somebody waits for, connections with one outcome and one end.
 */
#ifndef TESTS_CONSUMER_H
#define TESTS_CONSUMER_H

#include <linux/completion.h>
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/socket.h>
#include <linux/string.h>

#include <dat2/kdat.h>
#include <dat2/kdat_ext.h>

#include "faults.h"
#include "calls.h"

#define LOCAL_RIGHTS	(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG)
#define REMOTE_RIGHTS	(DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG)

/* ---- handles ---- */

static inline int test_free(const char *what, DAT_RETURN (*free)(DAT_HANDLE h), DAT_HANDLE *h)
{
	DAT_HANDLE old = *h;

	*h = NULL;
	return old ? check(what, free(old)) : 0;
}

/* Free what there may be. */
#define FREE(call, h)	test_free(#call, call, h)

/* ---- adapters ---- */

struct test_ia {
	const char *name;
	DAT_IA_HANDLE h;
	DAT_EVD_HANDLE async;
	DAT_PZ_HANDLE pz;
	struct sockaddr_storage addr;
	bool iwarp;		/* its RDMA Reads need the right to write at their sinks */
	bool sync;		/* dat_lmr_sync_rdma_read() and its sister are needed */
	bool fence;		/* all requests can be fenced */
};

static inline void test_addr_copy(struct sockaddr_storage *to, const struct sockaddr *from)
{
	memcpy(to, from, from->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
						       sizeof(struct sockaddr_in));
}

/* The same address with a port; IPv6 has it in the same place. */
static inline struct sockaddr_storage test_addr_port(const struct sockaddr_storage *addr, u16 port)
{
	struct sockaddr_storage with = *addr;

	((struct sockaddr_in *)&with)->sin_port = htons(port);
	return with;
}

static inline int test_ia_query(struct test_ia *ia)
{
	DAT_IA_ATTR *attr = kzalloc(sizeof(*attr), GFP_KERNEL);
	DAT_PROVIDER_ATTR prov = {};
	int err;

	if (!attr)
		return -ENOMEM;
	err = TRY(dat_ia_query, ia->h, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, attr,
		  DAT_PROVIDER_FIELD_RDMA_WRITE_FOR_RDMA_READ_REQ |
		  DAT_PROVIDER_FIELD_LMR_SYNC_REQ |
		  DAT_PROVIDER_FIELD_COMPLETION_FLAGS_SUPPORTED, &prov);
	if (!err && !attr->ia_address_ptr)
		err = fail("%s has no address", ia->name);
	if (!err)
		test_addr_copy(&ia->addr, (struct sockaddr *)attr->ia_address_ptr);
	ia->iwarp = prov.rdma_write_for_rdma_read_req;
	ia->sync = prov.lmr_sync_req;
	ia->fence = prov.completion_flags_supported & DAT_COMPLETION_BARRIER_FENCE_FLAG;
	kfree(attr);
	return err;
}

/* An instance with a PZ. */
static inline int test_ia_open(struct test_ia *ia, const char *name)
{
	*ia = (struct test_ia) { .name = name };
	return TRY(dat_ia_open, (char *)name, 64, &ia->async, &ia->h) ?: test_ia_query(ia) ?:
	       TRY(dat_pz_create, ia->h, &ia->pz);
}

/* Refused while anything is left. */
static inline void test_ia_close(struct test_ia *ia)
{
	if (!ia->h)
		return;
	FREE(dat_pz_free, &ia->pz);
	if (TRY(dat_ia_close, ia->h, DAT_CLOSE_GRACEFUL_FLAG))
		dat_ia_close(ia->h, DAT_CLOSE_ABRUPT_FLAG);
	ia->h = NULL;
}

/* No asynchronous event has come. */
static inline void test_ia_quiet(struct test_ia *ia)
{
	DAT_EVENT event;

	while (ia->h && dat_evd_dequeue(ia->async, &event) == DAT_SUCCESS)
		fail("%s: asynchronous event 0x%x", ia->name, event.event_number);
}

/* An EVD with upcalls one at a time. */
static inline int test_evd(const struct test_ia *ia, DAT_COUNT length, DAT_EVD_FLAGS flags,
			   DAT_UPCALL_FUNC upcall, void *instance, DAT_EVD_HANDLE *evd)
{
	const DAT_UPCALL_OBJECT object = { instance, upcall };

	return TRY(dat_evd_kcreate, ia->h, length, DAT_UPCALL_SINGLE_INSTANCE, &object, flags, evd);
}

/* ---- memory ---- */

struct test_mem {
	u8 *p;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT key;
	DAT_RMR_CONTEXT rkey;
};

/* dat_lmr_kcreate() of what lies at p; all that it tells is told, if there is a place for it. */
static inline int test_lmr(const struct test_ia *ia, DAT_PZ_HANDLE pz, void *p, u32 length,
			   DAT_MEM_PRIV_FLAGS rights, DAT_LMR_HANDLE *lmr, DAT_LMR_CONTEXT *key,
			   DAT_RMR_CONTEXT *rkey)
{
	const DAT_REGION_DESCRIPTION region = { .for_va = p };

	return TRY(dat_lmr_kcreate, ia->h, DAT_MEM_TYPE_VIRTUAL, region, length, pz, rights,
		   DAT_VA_TYPE_VA, DAT_MEM_OPTIMIZE_DONT_CARE, lmr, key, rkey, NULL, NULL);
}

static inline int test_mem_open(const struct test_ia *ia, struct test_mem *mem, u32 size,
				DAT_MEM_PRIV_FLAGS rights)
{
	mem->p = kvzalloc(size, GFP_KERNEL);
	if (!mem->p)
		return -ENOMEM;
	return test_lmr(ia, ia->pz, mem->p, size, rights, &mem->lmr, &mem->key, &mem->rkey);
}

static inline void test_mem_close(struct test_mem *mem)
{
	FREE(dat_lmr_free, &mem->lmr);
	kvfree(mem->p);
	mem->p = NULL;
}

static inline DAT_LMR_TRIPLET test_segment(const struct test_mem *mem, u32 at, u32 length)
{
	return (DAT_LMR_TRIPLET) {
		.virtual_address = (uintptr_t)mem->p + at, .segment_length = length,
		.lmr_context = mem->key,
	};
}

static inline DAT_RMR_TRIPLET test_target(const struct test_mem *mem, u32 at, u32 length)
{
	return (DAT_RMR_TRIPLET) {
		.virtual_address = (uintptr_t)mem->p + at, .segment_length = length,
		.rmr_context = mem->rkey,
	};
}

/* ---- operations ---- */

/* One whose end somebody waits for; its cookie is its address. */
struct test_op {
	void (*then)(struct test_op *op);	/* in the upcall, when it has succeeded; or NULL */
	void *arg;				/* for then() */
	bool bad;				/* then() was not content */
	struct completion done;
	DAT_DTO_COMPLETION_STATUS status;
	DAT_DTOS operation;
	u32 key;				/* that a Send has invalidated */
};

static inline void test_op_init(struct test_op *op, void (*then)(struct test_op *op), void *arg)
{
	*op = (struct test_op) { .then = then, .arg = arg };
	init_completion(&op->done);
}

static inline DAT_DTO_COOKIE test_cookie(const void *p)
{
	return (DAT_DTO_COOKIE) { .as_ptr = (void *)p };
}

static inline void test_op_done(struct test_op *op, DAT_DTO_COMPLETION_STATUS status,
				DAT_DTOS operation, u32 key)
{
	op->status = status;
	op->operation = operation;
	op->key = key;
	if (op->then && status == DAT_DTO_SUCCESS)
		op->then(op);
	complete(&op->done);
}

/* Of a completion whose cookie is an operation. */
static inline void test_op_event(const DAT_EVENT *event)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	const DAT_RMR_BIND_COMPLETION_EVENT_DATA *bind =
		&event->event_data.rmr_completion_event_data;

	if (event->event_number == DAT_RMR_BIND_COMPLETION_EVENT)
		test_op_done(bind->user_cookie.as_ptr, bind->status, DAT_DTO_BIND_MW, 0);
	else
		test_op_done(dto->user_cookie.as_ptr, dto->status, dto->operation,
			     dto->rmr_context);
}

static inline void test_op_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	test_op_event(event);
}

/* The end, whatever it is. The operation lies on the stack of the caller. */
static inline int test_op_wait(struct test_op *op, const char *what)
{
	if (wait_for_completion_timeout(&op->done, TEST_LONG))
		return op->bad ? -EIO : 0;
	fail("%s: no completion", what);
	wait_for_completion(&op->done);
	return -ETIMEDOUT;
}

/* And it must be a success. */
static inline int test_op_good(struct test_op *op, const char *what)
{
	int err = test_op_wait(op, what);

	if (!err && op->status != DAT_DTO_SUCCESS)
		err = fail("%s: %s", what, kdat_dto_status_name(op->status));
	return err;
}

/* ---- connections ---- */

/* What attempts of an Endpoint, whose context this is, have come to. */
struct test_end {
	DAT_EP_HANDLE ep;
	int outcomes, overs;
	DAT_EVENT_NUMBER outcome, over;
};

static inline int test_end_open(const struct test_ia *ia, struct test_end *end,
				DAT_EVD_HANDLE recv, DAT_EVD_HANDLE request, DAT_EVD_HANDLE conn,
				const DAT_EP_ATTR *attr)
{
	*end = (struct test_end) {};
	return TRY(dat_ep_create, ia->h, ia->pz, recv, request, conn, attr, &end->ep) ?:
	       TRY(dat_set_consumer_context, end->ep, test_cookie(end));
}

/* Before another attempt. */
static inline void test_end_begin(struct test_end *end)
{
	*end = (struct test_end) { .ep = end->ep };
}

/* What was given to an Endpoint as its context; NULL when it has been freed. */
static inline void *test_context(DAT_EP_HANDLE ep)
{
	DAT_CONTEXT context = {};

	return dat_get_consumer_context(ep, &context) == DAT_SUCCESS ? context.as_ptr : NULL;
}

static inline bool test_is_end(DAT_EVENT_NUMBER number)
{
	return number == DAT_CONNECTION_EVENT_DISCONNECTED ||
	       number == DAT_CONNECTION_EVENT_BROKEN;
}

static inline void test_conn_event(const DAT_EVENT *event)
{
	struct test_end *end = test_context(event->event_data.connect_event_data.ep_handle);

	if (!end)
		return;		/* freed meanwhile */
	if (test_is_end(event->event_number)) {
		end->over = event->event_number;
		WRITE_ONCE(end->overs, end->overs + 1);
	} else {
		end->outcome = event->event_number;
		WRITE_ONCE(end->outcomes, end->outcomes + 1);
	}
	wake_up_all(&test_wait);
}

/* A number in the private data of a request says which Endpoint is meant. */
static inline void test_answer(const DAT_EVENT *event, DAT_EP_HANDLE (*which)(u32 n))
{
	DAT_CR_HANDLE cr = event->event_data.cr_arrival_event_data.cr_handle;
	DAT_CR_PARAM param = {};
	DAT_EP_HANDLE ep = NULL;
	u32 n = 0;

	if (!TRY(dat_cr_query, cr, DAT_CR_FIELD_ALL, &param) &&
	    param.private_data_size >= (DAT_COUNT)sizeof(n)) {
		memcpy(&n, param.private_data, sizeof(n));
		ep = which(n);
	}
	if (!ep)
		fail("a request of nobody (%u)", n);
	if (!ep || TRY(dat_cr_accept, cr, ep, 0, NULL))
		dat_cr_reject(cr, 0, NULL);
}

/* An upcall for EVDs of connections and requests; @instance is the function for test_answer(). */
static inline void test_cm_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	if (event->event_number == DAT_CONNECTION_REQUEST_EVENT)
		test_answer(event, (DAT_EP_HANDLE (*)(u32 n))instance);
	else
		test_conn_event(event);
}

static inline int test_connect(DAT_EP_HANDLE ep, const struct test_ia *to, DAT_CONN_QUAL port,
			       u32 n)
{
	return TRY(dat_ep_connect, ep, (DAT_IA_ADDRESS_PTR)&to->addr, port, DAT_TIMEOUT_INFINITE,
		   sizeof(n), &n, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
}

static inline int test_connected(const char *what, const struct test_end *a,
				 const struct test_end *b)
{
	if (await(READ_ONCE(a->outcomes) && READ_ONCE(b->outcomes)) &&
	    a->outcome == DAT_CONNECTION_EVENT_ESTABLISHED && b->outcome == a->outcome)
		return 0;
	return fail("%s: no connection: %s, %s", what, kdat_event_name(a->outcome),
		    kdat_event_name(b->outcome));
}

/* It has ended, once at each end. */
static inline int test_over(const char *what, const struct test_end *a, const struct test_end *b)
{
	if (await(READ_ONCE(a->overs) && READ_ONCE(b->overs)) && a->overs == 1 && b->overs == 1)
		return 0;
	return fail("%s has ended %d and %d times: %s, %s", what, a->overs, b->overs,
		    kdat_event_name(a->over), kdat_event_name(b->over));
}

#endif
