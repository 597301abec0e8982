/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What the suites about connections share: requests, endpoints that come from
 * the provider, what a state refuses, and peers that are not kDAPL.
 */
#ifndef KDTEST_CONN_H
#define KDTEST_CONN_H

#include <linux/in6.h>
#include <rdma/rdma_cm.h>

#include "kdtest.h"

/* Connect and wait for the request on that EVD. */
DAT_CR_ARRIVAL_EVENT_DATA kdt_call(struct kunit *test, struct kdt_ep *ep, struct kdt_ia *to,
				   DAT_CONN_QUAL port, struct kdt_evd *cr);
DAT_EP_HANDLE kdt_cr_ep(struct kunit *test, DAT_CR_HANDLE cr);
/* The PZ and the EVDs of this endpoint, or some of them. */
#define KDT_GIVE_PZ	DAT_EP_FIELD_PZ_HANDLE
#define KDT_GIVE_EVDS	(DAT_EP_FIELD_RECV_EVD_HANDLE | DAT_EP_FIELD_REQUEST_EVD_HANDLE | \
			 DAT_EP_FIELD_CONNECT_EVD_HANDLE)
#define KDT_GIVE_ALL	(KDT_GIVE_PZ | KDT_GIVE_EVDS)
DAT_RETURN kdt_ep_give(struct kdt_ep *ep, DAT_EP_PARAM_MASK what);
/* The provider's endpoint of this request, with EVDs here and nothing given yet. */
void kdt_ep_from(struct kunit *test, struct kdt_ep *ep, struct kdt_ia *ia, DAT_CR_HANDLE cr);

/* Both hear that they are connected. */
void kdt_up(struct kunit *test, struct kdt_ep *c, struct kdt_ep *s);
/* A message each way; the buffers have at least 128 bytes. */
void kdt_talk(struct kunit *test, struct kdt_ep *c, struct kdt_ep *s, struct kdt_buf *from,
	      struct kdt_buf *to, u32 seed);
/* A Send of the first 64 bytes, into the Receive of that number. */
void kdt_say(struct kunit *test, struct kdt_ep *from, struct kdt_buf *buf, struct kdt_ep *to,
	     u64 cookie);

/* A call with a time-out and private data. */
DAT_RETURN kdt_ask(struct kdt_ep *ep, struct kdt_ia *to, DAT_CONN_QUAL port, u32 usec,
		   const void *data, int len);
/* Accepted, with the endpoint of this name or the request's own, and both are connected. */
void kdt_accept(struct kunit *test, DAT_CR_HANDLE cr, DAT_EP_HANDLE named, struct kdt_ep *c,
		struct kdt_ep *s);
/* The caller had gone when this one accepted. */
void kdt_too_late(struct kunit *test, struct kdt_ep *s);
/*
 * Rejected, and once more if the request comes again: the CM does not repeat a
 * reject that was lost.
 */
void kdt_reject(struct kunit *test, struct kdt_ep *caller, struct kdt_evd *cr, DAT_CR_HANDLE h,
		const void *data, int len);
/*
 * The next event is PEER_REJECTED, with this private data; false: soft-iWARP has
 * lost it, since it may notice the end of the stream before its last message.
 */
bool kdt_rejected(struct kunit *test, struct kdt_ep *ep, u32 len, u32 seed);
/* Refused by the kernel of the other side, which on iWARP may look like its consumer. */
void kdt_turned_down(struct kunit *test, struct kdt_ep *ep);
/* Somebody calls there and is refused as if nobody listened. */
void kdt_nobody(struct kunit *test, DAT_CONN_QUAL port);

/* All that listens. */
enum kdt_sp { KDT_PSP, KDT_PSP_PROVIDER, KDT_RSP, KDT_CSP, KDT_SPS };

DAT_RETURN kdt_listen(struct kdt_ia *ia, enum kdt_sp kind, DAT_CONN_QUAL port, struct kdt_evd *cr,
		      DAT_EP_HANDLE ep, DAT_HANDLE *h);
DAT_RETURN kdt_unlisten(enum kdt_sp kind, DAT_HANDLE h);

/* One endpoint each, what kdt_talk() needs, and where requests come in. Nothing listens. */
struct kdt_scene {
	struct kdt_ep c, s;
	struct kdt_buf *from, *to;
	struct kdt_evd *cr;
	DAT_CONN_QUAL port;
	DAT_HANDLE sp;
};

struct kdt_scene *kdt_scene_new(struct kunit *test);
/* Listens there with its only service point. */
void kdt_scene_listen(struct kunit *test, struct kdt_scene *t, enum kdt_sp kind);
/* Both have ended, and nothing is left in any EVD. */
void kdt_scene_done(struct kunit *test, struct kdt_scene *t);

/*
 * For cases in which a listener may go while somebody is calling it. soft-iWARP
 * reads a lock of its sockets with interrupts on that TCP takes inside of another
 * one for those whom nobody has accepted yet: lockdep reports that, which is
 * between the two, and is off from then on.
 */
void kdt_listener_goes(struct kunit *test, struct kdt_ia *ia);

/* Does its interface ask for neighbours? Without, what is sent to nobody is sent. */
bool kdt_ia_asks(struct kdt_ia *ia);
/* The namespace that has the address of this adapter; put_net() it. */
struct net *kdt_ia_net(struct kdt_ia *ia);
/* An address beside that of this adapter that nobody has. */
struct sockaddr_storage kdt_nobody_there(struct kdt_ia *ia);
/* An IPv6 address of the network device that has the IPv4 one. */
bool kdt_ia_ipv6(struct kdt_ia *ia, struct sockaddr_in6 *addr);

/* ---- a peer that uses the connection manager itself ---- */

struct kdt_raw {
	struct rdma_cm_id *id;
	struct rdma_cm_id *child;	/* what a listener got last */
	wait_queue_head_t wait;
	unsigned int seen[RDMA_CM_EVENT_TIMEWAIT_EXIT + 1];
	int status;			/* of the last event */
	struct rdma_conn_param conn;	/* of the last event with data */
	u8 pdata[256];
	u32 flow;			/* traffic class of the path of the request */
	u8 why[8], why_len, reason;	/* of kdt_raw_reject(); reason 0: not rejected */
	int stale;			/* so many requests are refused as known already */
	__be16 stale_port;		/* that the last of these came from */
	int refused;
};

/* At most KDT_RAWS in a case; closed at its end, or with kdt_raw_close(). */
struct kdt_raw *kdt_raw_listen(struct kunit *test, struct kdt_ia *ia, DAT_CONN_QUAL port);
/* Address and route are known after this; kdt_raw_request() asks. */
struct kdt_raw *kdt_raw_caller(struct kunit *test, struct kdt_ia *ia, struct kdt_ia *to,
			       DAT_CONN_QUAL port);
int kdt_raw_request(struct kdt_raw *raw, const void *pdata, u8 len, u32 qpn);
/* Reject the request. If the answer is lost, the request comes again, and gets it again. */
int kdt_raw_reject(struct kdt_raw *raw, u8 reason, const void *why, u8 len);
/* The caller's last word. */
int kdt_raw_ready(struct kdt_raw *raw);
/* As if it had a queue pair, one of KDT_RAW_QPN upwards: nobody has these. */
#define KDT_RAW_QPN	0xdead00
int kdt_raw_accept(struct rdma_cm_id *id, u32 qpn);
void kdt_raw_wait(struct kunit *test, struct kdt_raw *raw, enum rdma_cm_event_type event);

#endif /* KDTEST_CONN_H */
