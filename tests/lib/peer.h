/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * An adapter, memory, and ends of connections, as most test modules that are a peer have them.
 * What cannot be made stops the making; closing takes what there is, and says with TRY() of
 * calls.h what went wrong.
 */
#ifndef TESTS_PEER_H
#define TESTS_PEER_H

#include <linux/in6.h>
#include <linux/inet.h>
#include <linux/string.h>
#include <linux/wait.h>
#include <net/net_namespace.h>
#include <dat2/kdat.h>

#include "calls.h"

#define PEER_LOCAL	(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG)

struct peer_ia {
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async, cr;
	DAT_PZ_HANDLE pz;
	DAT_PSP_HANDLE psp;
	struct sockaddr_storage addr;
	bool iwarp;			/* the answer to a Read is a Write */
	int reads_in, reads_out;	/* of an Endpoint, at most */
};

static inline DAT_RETURN peer_ia_open(struct peer_ia *p, const char *name)
{
	DAT_PROVIDER_ATTR provider;
	DAT_RETURN ret;
	DAT_IA_ATTR attr;

	ret = dat_ia_open((char *)name, 8, &p->async, &p->ia) ?:
	      dat_ia_query(p->ia, NULL, DAT_IA_FIELD_ALL, &attr,
			   DAT_PROVIDER_FIELD_RDMA_WRITE_FOR_RDMA_READ_REQ, &provider) ?:
	      dat_pz_create(p->ia, &p->pz);
	if (ret != DAT_SUCCESS)
		return ret;
	p->iwarp = provider.rdma_write_for_rdma_read_req;
	p->reads_in = attr.max_rdma_read_per_ep_in;
	p->reads_out = attr.max_rdma_read_per_ep_out;
	if (attr.ia_address_ptr)
		memcpy(&p->addr, attr.ia_address_ptr,
		       attr.ia_address_ptr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
								    sizeof(struct sockaddr_in));
	return DAT_SUCCESS;
}

static inline DAT_RETURN peer_ia_listen(struct peer_ia *p, u16 port, DAT_UPCALL_FUNC fn,
					void *instance)
{
	const DAT_UPCALL_OBJECT upcall = { instance, fn };

	return dat_evd_kcreate(p->ia, 16, DAT_UPCALL_SINGLE_INSTANCE, &upcall, DAT_EVD_CR_FLAG,
			       &p->cr) ?:
	       dat_psp_create(p->ia, port, p->cr, DAT_PSP_CONSUMER_FLAG, &p->psp);
}

/* Nobody is let in any more. */
#define peer_ia_deafen(p)						\
({									\
	struct peer_ia *_deaf = (p);					\
									\
	if (_deaf->psp)							\
		TRY(dat_psp_free, _deaf->psp);				\
	if (_deaf->cr)							\
		TRY(dat_evd_free, _deaf->cr);				\
	_deaf->psp = NULL;						\
	_deaf->cr = NULL;						\
})

/* A graceful close refuses while anything is left, so a leak shows itself here. */
#define peer_ia_close(p)						\
({									\
	struct peer_ia *_ia = (p);					\
	int _wrong = 0;							\
									\
	peer_ia_deafen(_ia);						\
	if (_ia->pz)							\
		_wrong = TRY(dat_pz_free, _ia->pz);			\
	if (_ia->ia && TRY(dat_ia_close, _ia->ia, DAT_CLOSE_GRACEFUL_FLAG)) {	\
		dat_ia_close(_ia->ia, DAT_CLOSE_ABRUPT_FLAG);		\
		_wrong = -EIO;						\
	}								\
	memset(_ia, 0, sizeof(*_ia));					\
	_wrong;								\
})

struct peer_mem {
	u8 *p;				/* it belongs to the module */
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT lctx;
	DAT_RMR_CONTEXT rctx;
};

static inline DAT_RETURN peer_mem_open(struct peer_ia *ia, struct peer_mem *mem, void *p,
				       size_t size, int rights)
{
	DAT_REGION_DESCRIPTION region = { .for_va = p };

	mem->p = p;
	if (!p)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	return dat_lmr_kcreate(ia->ia, DAT_MEM_TYPE_VIRTUAL, region, size, ia->pz,
			       (DAT_MEM_PRIV_FLAGS)rights, DAT_VA_TYPE_VA,
			       DAT_MEM_OPTIMIZE_DONT_CARE, &mem->lmr, &mem->lctx, &mem->rctx, NULL,
			       NULL);
}

/* An Endpoint with one EVD for what is posted and one for its connection. */
struct peer_end {
	DAT_EP_HANDLE ep;
	DAT_EVD_HANDLE dto, conn;
	wait_queue_head_t *wait;	/* woken by its connection's events */
	DAT_EVENT_NUMBER outcome, end;
	int outcomes, ends;
	u8 pdata[256];			/* that came with the outcome */
	int pdata_size;
};

static inline void peer_conn_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_CONNECTION_EVENT_DATA *data = &event->event_data.connect_event_data;
	struct peer_end *end = instance;

	switch (event->event_number) {
	case DAT_CONNECTION_EVENT_DISCONNECTED:
	case DAT_CONNECTION_EVENT_BROKEN:
		end->end = event->event_number;
		smp_store_release(&end->ends, end->ends + 1);		/* peer_ended() */
		break;
	default:
		end->outcome = event->event_number;
		end->pdata_size = clamp_t(int, data->private_data_size, 0, sizeof(end->pdata));
		if (end->pdata_size)
			memcpy(end->pdata, data->private_data, end->pdata_size);
		smp_store_release(&end->outcomes, end->outcomes + 1);	/* peer_answered() */
	}
	wake_up_all(end->wait);
}

static inline bool peer_answered(const struct peer_end *end)
{
	return smp_load_acquire(&end->outcomes);	/* pairs with peer_conn_upcall() */
}

static inline bool peer_ended(const struct peer_end *end)
{
	return smp_load_acquire(&end->ends);		/* pairs with peer_conn_upcall() */
}

static inline DAT_RETURN peer_end_open(struct peer_ia *ia, struct peer_end *end,
				       const DAT_EP_ATTR *attr, wait_queue_head_t *wait,
				       DAT_UPCALL_FUNC fn, void *instance)
{
	const DAT_UPCALL_OBJECT dto = { instance, fn }, conn = { end, peer_conn_upcall };

	DAT_COUNT length = attr ? attr->max_recv_dtos + attr->max_request_dtos + 4 : 256;

	memset(end, 0, sizeof(*end));
	end->wait = wait;
	return dat_evd_kcreate(ia->ia, length, DAT_UPCALL_SINGLE_INSTANCE, &dto, DAT_EVD_DTO_FLAG,
			       &end->dto) ?:
	       dat_evd_kcreate(ia->ia, 4, DAT_UPCALL_SINGLE_INSTANCE, &conn,
			       DAT_EVD_CONNECTION_FLAG, &end->conn) ?:
	       dat_ep_create(ia->ia, ia->pz, end->dto, end->dto, end->conn, attr, &end->ep);
}

/* The counts stay: after this nothing can come any more. */
static inline DAT_RETURN peer_end_close(struct peer_end *end)
{
	DAT_RETURN ret = DAT_SUCCESS;

	if (end->ep)
		ret = dat_ep_free(end->ep);
	if (end->conn)
		ret = dat_evd_free(end->conn) ?: ret;
	if (end->dto)
		ret = dat_evd_free(end->dto) ?: ret;
	end->ep = NULL;
	end->conn = NULL;
	end->dto = NULL;
	return ret;
}

static inline DAT_RETURN peer_connect(struct peer_end *end, const struct sockaddr_storage *to,
				      u16 port, DAT_TIMEOUT timeout, int size, const void *pdata)
{
	return dat_ep_connect(end->ep, (DAT_IA_ADDRESS_PTR)to, port, timeout, size,
			      (DAT_PVOID)pdata, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
}

static inline DAT_EP_STATE peer_state(struct peer_end *end)
{
	DAT_EP_STATE state;

	return dat_ep_get_status(end->ep, &state, NULL, NULL) == DAT_SUCCESS ?
		state : DAT_EP_STATE_RESERVED;
}

/* By number, and in whose network namespace it is meant. */
static inline int peer_address(struct net *net, const char *text, u16 port,
			       struct sockaddr_storage *to)
{
	char service[8];

	memset(to, 0, sizeof(*to));
	snprintf(service, sizeof(service), "%u", port);
	return inet_pton_with_scope(net, AF_UNSPEC, text, service, to);
}

#endif
