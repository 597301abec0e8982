// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Short connections, whose events all go to one EVD per side, that of every stream:
 * requests, ESTABLISHED, transfers, the end; beside software events. In the
 * upcalls, connections are accepted, messages sent, connections ended.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/sched.h>
#include <linux/slab.h>

#include "kdstorm.h"

#define LINKS	4	/* at a time */
#define RECVS	4
#define SENDS	3
#define MSG	64

enum { IDLE, UP, OVER };

struct end {
	DAT_EP_HANDLE ep;
	struct storm_evd *evd;
	struct storm_mem in, out;
	u32 use;		/* connections so far */
	int state;
	u32 recvs, sends;	/* completed */
	u32 received, sent;	/* with success */
	u32 posted;		/* Sends */
	enum { PEER_LEAVES, LEAVE_EARLY, LEAVE_LATE } how;
	struct end *peer;
};

struct link {
	struct end end[2];	/* the active one first */
	struct storm_thread thread;
	u32 number, connections;
};

static struct {
	struct storm_evd *evd[2];
	DAT_PSP_HANDLE psp;
	DAT_CONN_QUAL port;
	struct link link[LINKS];
} *all;

static DAT_LMR_TRIPLET segment(const struct storm_mem *mem, u32 n)
{
	return (DAT_LMR_TRIPLET) {
		.virtual_address = (uintptr_t)mem->p + n * MSG,
		.segment_length = MSG,
		.lmr_context = mem->key,
	};
}

static DAT_DTO_COOKIE cookie(const struct end *end, bool recv, u32 n)
{
	return (DAT_DTO_COOKIE) {
		.as_64 = STORM_OWN | (u64)end->use << 16 | recv << 8 | n
	};
}

static bool over(const struct end *end)
{
	return READ_ONCE(end->state) == OVER && READ_ONCE(end->recvs) == RECVS &&
	       READ_ONCE(end->sends) == READ_ONCE(end->posted);
}

static void leave(struct end *end)
{
	/* The other one may have been faster. */
	dat_ep_disconnect(end->ep, DAT_CLOSE_GRACEFUL_FLAG);
}

static void accept(DAT_CR_HANDLE cr)
{
	DAT_CR_PARAM param;
	u32 n;

	if (dat_cr_query(cr, DAT_CR_FIELD_ALL, &param) == DAT_SUCCESS &&
	    param.private_data_size >= sizeof(n)) {
		memcpy(&n, param.private_data, sizeof(n));
		if (n < LINKS && !TRY(dat_cr_accept, cr, all->link[n].end[1].ep, 0, NULL))
			return;
	}
	storm_fault(STORM_LINK, "a connection request of nobody");
	dat_cr_reject(cr, 0, NULL);
}

static void speak(struct end *end)
{
	DAT_LMR_TRIPLET iov;
	int i;

	for (i = 0; i < SENDS; i++) {
		iov = segment(&end->out, i);
		/* Refused once the peer is leaving. */
		if (dat_ep_post_send(end->ep, 1, &iov, cookie(end, false, end->posted), 0) ==
		    DAT_SUCCESS)
			end->posted++;
	}
	if (end->how == LEAVE_EARLY)
		leave(end);
}

/* On iWARP the active side speaks first. */
static bool must_listen(const struct end *end)
{
	return storm_a.iwarp && end->evd == all->evd[1];
}

static void established(struct end *end)
{
	if (end->state != IDLE)
		storm_fault(STORM_LINK, "%s: ESTABLISHED in state %d", end->evd->name, end->state);
	end->state = UP;
	if (!must_listen(end))
		speak(end);
}

/* soft-iWARP fails the last Send if the peer that has it leaves too fast. */
static void leave_late(struct end *end)
{
	if (READ_ONCE(end->received) == SENDS && READ_ONCE(end->sent) == SENDS &&
	    (!storm_a.iwarp || READ_ONCE(end->peer->sent) == SENDS) &&
	    cmpxchg(&end->how, LEAVE_LATE, PEER_LEAVES) == LEAVE_LATE)
		leave(end);
}

static void completed(struct end *end, const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	bool recv = dto->user_cookie.as_64 & 0x100;
	u32 n = recv ? end->recvs : end->sends;

	if (dto->user_cookie.as_64 != cookie(end, recv, n).as_64)
		storm_fault(STORM_LINK, "%s: cookie %llx, not %llx", end->evd->name,
			    dto->user_cookie.as_64, cookie(end, recv, n).as_64);
	if (dto->status == DAT_DTO_SUCCESS) {
		if (end->state != UP)
			storm_fault(STORM_LINK, "%s: a DTO has succeeded in state %d",
				    end->evd->name, end->state);
		if (recv)
			end->received++;
		else
			end->sent++;
	} else if (dto->status != DAT_DTO_ERR_FLUSHED || end->state == IDLE) {
		storm_fault(STORM_LINK, "%s: status %d of %s %u in state %d", end->evd->name,
			    dto->status, recv ? "Receive" : "Send", n, end->state);
	}
	if (recv)
		WRITE_ONCE(end->recvs, n + 1);
	else
		WRITE_ONCE(end->sends, n + 1);
	if (recv && end->received == 1 && !end->posted && must_listen(end))
		speak(end);
	smp_mb();	/* of two that complete at a time, one sees both */
	leave_late(end);
	leave_late(end->peer);
}

static void link_event(struct storm_evd *evd, const DAT_EVENT *event)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	const DAT_CONNECTION_EVENT_DATA *conn = &event->event_data.connect_event_data;
	DAT_EP_HANDLE ep = event->event_number == DAT_DTO_COMPLETION_EVENT ? dto->ep_handle :
									     conn->ep_handle;
	DAT_CONTEXT context = {};
	struct end *end;

	storm_checked(STORM_LINK, 1);
	if (event->event_number == DAT_CONNECTION_REQUEST_EVENT) {
		accept(event->event_data.cr_arrival_event_data.cr_handle);
		return;
	}
	dat_get_consumer_context(ep, &context);
	end = context.as_ptr;
	if (!end || end->evd != evd) {
		storm_fault(STORM_LINK, "%s: event 0x%x of nobody", evd->name,
			    event->event_number);
		return;
	}
	switch (event->event_number) {
	case DAT_DTO_COMPLETION_EVENT:
		completed(end, dto);
		break;
	case DAT_CONNECTION_EVENT_ESTABLISHED:
		established(end);
		break;
	case DAT_CONNECTION_EVENT_DISCONNECTED:
	case DAT_CONNECTION_EVENT_BROKEN:
		if (end->state == UP) {
			WRITE_ONCE(end->state, OVER);
			break;
		}
		fallthrough;
	default:
		storm_fault(STORM_LINK, "%s: event 0x%x in state %d", evd->name,
			    event->event_number, end->state);
		WRITE_ONCE(end->state, OVER);
	}
	if (over(end))
		wake_up_all(&storm_wait);
}

static int end_open(struct end *end, int side)
{
	struct storm_ia *ia = side ? &storm_b : &storm_a;
	const DAT_EP_ATTR attr = {
		.max_message_size = MSG,
		.max_recv_dtos = RECVS, .max_recv_iov = 1,
		.max_request_dtos = SENDS, .max_request_iov = 1,
		.srq_soft_hw = DAT_HW_DEFAULT,
	};
	DAT_CONTEXT context = { .as_ptr = end };

	end->evd = all->evd[side];
	end->peer = side ? end - 1 : end + 1;
	return storm_mem_open(ia, &end->in, RECVS * MSG) ?:
	       storm_mem_open(ia, &end->out, SENDS * MSG) ?:
	       TRY(dat_ep_create, ia->h, ia->pz, end->evd->h, end->evd->h, end->evd->h, &attr,
		   &end->ep) ?:
	       TRY(dat_set_consumer_context, end->ep, context);
}

static void end_close(struct end *end)
{
	dat_ep_free(end->ep);
	storm_mem_close(&end->in);
	storm_mem_close(&end->out);
}

static int end_begin(struct end *end, int how)
{
	DAT_LMR_TRIPLET iov;
	int i, err = 0;

	end->use++;
	end->state = IDLE;
	end->recvs = 0;
	end->sends = 0;
	end->received = 0;
	end->sent = 0;
	end->posted = 0;
	end->how = how;
	for (i = 0; i < RECVS && !err; i++) {
		iov = segment(&end->in, i);
		err = TRY(dat_ep_post_recv, end->ep, 1, &iov, cookie(end, true, i), 0);
	}
	return err;
}

/* One connection: who leaves, and when, is left to chance; one of the two does. */
static int connection(struct link *link, struct rnd_state *rnd)
{
	struct end *end = link->end;
	int how[2] = { storm_rnd(rnd, 3), PEER_LEAVES };
	int i, err;

	if (how[0] == PEER_LEAVES)
		how[1] = 1 + storm_rnd(rnd, 2);
	/* soft-iWARP takes a peer that is gone at once for an attempt that has failed. */
	for (i = 0; i < 2 && storm_a.iwarp; i++)
		how[i] = how[i] == LEAVE_EARLY ? LEAVE_LATE : how[i];
	err = end_begin(&end[0], how[0]) ?: end_begin(&end[1], how[1]) ?:
	      TRY(dat_ep_connect, end->ep, (DAT_IA_ADDRESS_PTR)&storm_b.addr, all->port,
		  DAT_TIMEOUT_INFINITE, sizeof(link->number), &link->number,
		  DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
	if (!err && !wait_event_idle_timeout(storm_wait, over(&end[0]) && over(&end[1]),
					     STORM_PATIENCE)) {
		for (i = 0; i < 2; i++)
			storm_fault(STORM_LINK, "link %u/%u: state %d, %u Receives, %u of %u Sends",
				    link->number, i, end[i].state, end[i].recvs,
				    end[i].sends, end[i].posted);
		err = -ETIMEDOUT;
	}
	return err ?: TRY(dat_ep_reset, end[0].ep) ?: TRY(dat_ep_reset, end[1].ep);
}

static void link_thread(struct storm_thread *t)
{
	struct link *link = t->arg;
	u32 n;

	for (n = 0; n < link->connections && !storm_overtime(); n++) {
		if (connection(link, &t->rnd))
			break;
	}
}

static int open_all(const struct storm_phase *phase, u32 connections, DAT_CONN_QUAL port)
{
	const DAT_EVD_FLAGS flags = DAT_EVD_DEFAULT_FLAG | DAT_EVD_SOFTWARE_FLAG;
	int i, err = 0;

	for (i = 0; i < 2 && !err; i++) {
		all->evd[i] = storm_evd_open(i ? &storm_b : &storm_a, flags, false, phase,
					     link_event, "everything");
		if (!all->evd[i])
			return -ENOMEM;
		all->evd[i]->paced = true;
		err = storm_sources_open(all->evd[i], 1 << 18);
	}
	for (i = 0; i < 2 * LINKS && !err; i++)
		err = end_open(&all->link[i / 2].end[i % 2], i % 2);
	all->port = port;
	return err ?: TRY(dat_psp_create, storm_b.h, port, all->evd[1]->h, DAT_PSP_CONSUMER_FLAG,
			  &all->psp);
}

static int start(u32 connections)
{
	int i, err = 0;

	for (i = 0; i < 2 && !err; i++)
		err = storm_evd_start(all->evd[i]) ?: storm_sources_start(all->evd[i]);
	for (i = 0; i < LINKS && !err; i++) {
		all->link[i].number = i;
		all->link[i].connections = connections / LINKS + 1;
		err = storm_thread_start(&all->link[i].thread, "link", link_thread, &all->link[i],
					 i, storm_cpu(i));
	}
	return err;
}

static void finish(void)
{
	struct storm_evd *evd;
	u64 others;
	int i;

	for (i = 0; i < LINKS; i++)
		wait_for_completion(&all->link[i].thread.done);
	for (i = 0; i < 2; i++) {
		evd = all->evd[i];
		atomic_set(&evd->left, 0);
		evd->paced = false;
		if (!storm_sources_wait(evd))
			storm_fault(STORM_WAKE, "%s: posting has come to a halt", evd->name);
		/* Of the others, all were waited for. */
		spin_lock_irq(&evd->lock);
		others = evd->taken - evd->soft_taken;
		spin_unlock_irq(&evd->lock);
		storm_evd_settle(evd, others + atomic64_read(&evd->posted));
	}
}

static int link_storm(const struct storm_phase *phase, u32 connections)
{
	static DAT_CONN_QUAL port = 22000;
	int i, err;

	all = kzalloc(sizeof(*all), GFP_KERNEL);
	if (!all)
		return -ENOMEM;
	err = open_all(phase, connections, ++port) ?: start(connections);
	if (!err)
		finish();
	for (i = 0; i < LINKS; i++)
		storm_thread_stop(&all->link[i].thread);
	for (i = 0; i < 2; i++) {
		if (!all->evd[i])
			continue;
		all->evd[i]->stop = true;
		storm_sources_stop(all->evd[i]);
	}
	dat_psp_free(all->psp);
	for (i = 0; i < 2 * LINKS; i++)
		end_close(&all->link[i / 2].end[i % 2]);
	for (i = 0; i < 2; i++)
		storm_evd_close(all->evd[i]);
	kfree(all);
	return err;
}

int storm_links(u32 connections)
{
	if (!connections || storm_overtime())
		return 0;
	return link_storm(&storm_phases[STORM_STEADY_SINGLE], connections / 2) ?:
	       link_storm(&storm_phases[STORM_FLIP_SINGLE], connections / 2);
}
