// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Connections of a world: two Endpoints, both in the same hands. So it is known in which
 * states each can be, what was posted, and what its completion must say.
 */
#include <linux/vmalloc.h>

#include "kdtorture.h"

#define QLEN	64

/* States as bits. */
#define U	BIT(DAT_EP_STATE_UNCONNECTED)
#define A	BIT(DAT_EP_STATE_ACTIVE_CONNECTION_PENDING)
#define CP	BIT(DAT_EP_STATE_COMPLETION_PENDING)
#define C	BIT(DAT_EP_STATE_CONNECTED)
#define DP	BIT(DAT_EP_STATE_DISCONNECT_PENDING)
#define D	BIT(DAT_EP_STATE_DISCONNECTED)

enum { CLOSED, OPEN, TRYING, UP, TORN };
enum { FREE, POSTED };

/* What a request for a connection says about itself. */
struct hello {
	u64 pair;
	u32 attempt;
};

/* ---- messages ---- */

/* 64 bits: number, length, and then the number again and again. */
static void message_fill(void *p, u32 length, u64 number)
{
	u64 *word = p;
	u32 i;

	for (i = 0; i < length / 8; i++)
		word[i] = number;
	if (length >= 16)
		word[1] = length;
}

static bool message_good(const void *p, u32 length)
{
	const u64 *word = p;
	u32 i;

	for (i = 2; i < length / 8; i++) {
		if (word[i] != word[0])
			return false;
	}
	return length < 16 || word[1] == length;
}

/* Every word of a target is the number of one Write, of those that have this target. */
static bool targets_good(const struct end *e)
{
	const u64 *word = (void *)e->mem->target;
	u64 now, of;
	u32 i;

	for (i = 0; i < sizeof(e->mem->target) / 8; i++) {
		now = READ_ONCE(word[i]);
		of = i * 8 / TARGET;
		if (now && now % TARGETS != of)
			return false;
	}
	return true;
}

static void source_fill(struct end *e)
{
	u32 i;

	for (i = 0; i < SOURCE; i++)
		e->mem->source[i] = i * 7;
}

static bool sink_good(const u8 *sink, u32 length, u32 from)
{
	u32 i;

	for (i = 0; i < length; i++) {
		if (sink[i] != (u8)((from + i) * 7))
			return false;
	}
	return true;
}

/* ---- events ---- */

static const char *end_name(const struct end *e)
{
	return e == &e->pair->a ? "a" : "b";
}

/* Whose fault it is. */
static __printf(2, 3) void end_bad(const struct end *e, const char *fmt, ...)
{
	struct va_format vaf = { .fmt = fmt };
	va_list args;

	va_start(args, fmt);
	vaf.va = &args;
	tor_bad(e->side->w->t, "pair %d, end %s: %pV", (int)(e->pair - e->side->w->pair),
		end_name(e), &vaf);
	va_end(args);
}

/* What came before in this queue and had nothing to say has succeeded. e->lock held. */
static void op_settle(struct end *e, int queue, u64 before)
{
	int i;

	for (i = 0; i < OPS; i++) {
		if (e->op[queue][i].quiet && e->op[queue][i].seq < before &&
		    atomic_read(&e->op[queue][i].state) == POSTED)
			atomic_set(&e->op[queue][i].state, FREE);
	}
}

static int end_busy(const struct end *e, int queue, bool quiet)
{
	int i, n = 0;

	for (i = 0; i < OPS; i++) {
		if (atomic_read(&e->op[queue][i].state) == POSTED &&
		    (quiet || !e->op[queue][i].quiet))
			n++;
	}
	return n;
}

/* e->lock held. */
static void op_success(struct end *e, struct op *op, const DAT_DTO_COMPLETION_EVENT_DATA *dto)
{
	u32 slot = op - e->op[op->kind == DAT_DTO_RECEIVE ? RECEIVES : REQUESTS];
	u32 length = dto->transfered_length;

	if (op->quiet) {
		end_bad(e, "a suppressed request has an event for its success");
		return;
	}
	/* what has come early is told without ESTABLISHED if the attempt is given up */
	e->early |= !e->up;
	if (e->pair->shared && !e->side->w->ia->removable && e->over)
		end_bad(e, "operation %d has succeeded after %s", op->kind,
			kdat_event_name(e->over));
	switch (op->kind) {
	case DAT_DTO_RECEIVE:
		if (length > SLOT || !message_good(e->mem->in[slot], length))
			end_bad(e, "a message of %u bytes is not what was sent", length);
		e->received++;
		if (length >= 8 && !e->pair->many &&
		    *(u64 *)e->mem->in[slot] != e->received)
			end_bad(e, "message %llu has come as number %llu",
				*(u64 *)e->mem->in[slot], e->received);
		if (!targets_good(e))
			end_bad(e, "a Write has gone astray");
		break;
	case DAT_DTO_RDMA_READ:
		if (!sink_good(e->mem->sink[slot], op->length, slot * 8))
			end_bad(e, "a Read has not brought what is there");
		fallthrough;
	default:
		if (length != op->length)
			end_bad(e, "operation %d of %u bytes has moved %u", op->kind, op->length,
				length);
	}
	tor_note(N_MOVED);
}

static void dto_event(struct end *e, const DAT_DTO_COMPLETION_EVENT_DATA *dto, DAT_EVD_HANDLE evd)
{
	struct op *op = dto->user_cookie.as_ptr;
	int queue = op >= e->op[RECEIVES];

	if (op < e->op[queue] || op >= e->op[queue] + OPS || evd != e->queue[queue].evd) {
		end_bad(e, "a completion of queue %d with cookie %llx", queue,
			dto->user_cookie.as_64);
		return;
	}
	spin_lock_bh(&e->lock);
	if (atomic_cmpxchg(&op->state, POSTED, FREE) != POSTED)
		end_bad(e, "operation %d has completed twice, or was never posted", op->kind);
	if (dto->ep_handle != e->id)
		end_bad(e, "a completion of another Endpoint");
	if (dto->operation != op->kind)
		end_bad(e, "operation %d has completed as %d", op->kind, dto->operation);
	if (!e->pair->many) {
		if (op->seq <= e->done[queue])
			end_bad(e, "operations of queue %d have completed out of order", queue);
		e->done[queue] = op->seq;
		op_settle(e, queue, op->seq);
	}
	if (e->closed)
		end_bad(e, "a completion after the end of its EVD");
	if (dto->status == DAT_DTO_SUCCESS)
		op_success(e, op, dto);
	else
		tor_note(N_FLUSHED);
	/* who is not connected has nothing that succeeds */
	if (dto->status != DAT_DTO_SUCCESS && !(e->states & (D | DP)) && !e->side->w->ia->removable)
		end_bad(e, "operation %d ended with %s, states 0x%x", op->kind,
			kdat_dto_status_name(dto->status), e->states);
	spin_unlock_bh(&e->lock);
}

static void end_set(struct end *e, bool asked, u32 states)
{
	spin_lock_bh(&e->lock);
	e->asked = asked;
	e->states = states;
	spin_unlock_bh(&e->lock);
}

static void conn_event(struct end *e, const DAT_EVENT *event)
{
	spin_lock_bh(&e->lock);
	if (event->event_data.connect_event_data.ep_handle != e->id)
		end_bad(e, "a connection event of another Endpoint");
	if (!e->asked || e->over || e->closed)
		end_bad(e, "%s: asked %d, up %d, over %d, closed %d",
			kdat_event_name(event->event_number), e->asked, e->up, e->over, e->closed);
	switch (event->event_number) {
	case DAT_CONNECTION_EVENT_ESTABLISHED:
		if (e->up)
			end_bad(e, "connected twice");
		if (e->pair->shared && e->early)
			end_bad(e, "an operation has succeeded before ESTABLISHED");
		e->up = true;
		e->states = e->states & (DP | D) ? C | DP | D : C;
		tor_note(N_UP);
		break;
	default:
		e->over = event->event_number;
		if (!(e->states & D) && !e->side->w->ia->removable)
			end_bad(e, "%s in states 0x%x", kdat_event_name(event->event_number),
				e->states);
		e->states = D;
		tor_note(N_END);
	}
	spin_unlock_bh(&e->lock);
}

static void end_event(struct end *e, const DAT_EVENT *event)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;

	tor_note(N_EVENTS);
	if (event->event_number != DAT_DTO_COMPLETION_EVENT)
		conn_event(e, event);
	else
		dto_event(e, dto, event->evd_handle);
	wake_up_all(&e->side->w->wait);
}

/* With NOTIFY there is no event: all of them are there to be taken. */
static void end_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct queue *q = instance;
	DAT_EVENT mine;

	if (event)
		end_event(q->end, event);
	else
		while (dat_evd_dequeue(q->evd, &mine) == DAT_SUCCESS)
			end_event(q->end, &mine);
}

/* ---- requests ---- */

static void cr_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	DAT_CR_HANDLE cr = event->event_data.cr_arrival_event_data.cr_handle;
	struct world *w = instance;
	struct pair *pair = NULL;
	struct hello hello = {};
	DAT_CR_PARAM param = {};

	if (event->event_number != DAT_CONNECTION_REQUEST_EVENT) {
		tor_bad(w->t, "%s on an EVD for requests", kdat_event_name(event->event_number));
		return;
	}
	/* it dies with the device */
	if (DO(w->ia->removable ? OK | HANDLE : OK, dat_cr_query, cr, DAT_CR_FIELD_ALL, &param) &&
	    param.private_data_size >= (DAT_COUNT)sizeof(hello) && param.private_data) {
		memcpy(&hello, param.private_data, sizeof(hello));
		if (hello.pair < PAIRS)
			pair = &w->pair[hello.pair];
	}
	if (!pair) {
		if (!w->ia->removable)
			tor_bad(w->t, "a request without its private data");
		DO(OK | HANDLE, dat_cr_reject, cr, 0, NULL);
		return;
	}
	mutex_lock(&pair->lock);
	if (hello.attempt != pair->attempt || pair->refuse) {
		DO(w->ia->removable ? OK | HANDLE : OK, dat_cr_reject, cr, 0, NULL);
	} else {
		spin_lock_bh(&pair->b.lock);
		pair->b.asked = true;
		/* the other one may be gone already, or this one about to be */
		pair->b.states = pair->a.states & (DP | D) ? U | CP | C | D : U | CP | C;
		if (pair->b.left)
			pair->b.states |= DP | D;
		spin_unlock_bh(&pair->b.lock);
		if (!DO(w->ia->removable ? OK | HANDLE : OK, dat_cr_accept, cr, pair->b.ep, 0,
			NULL)) {
			end_set(&pair->b, false, U);
			DO(OK | HANDLE, dat_cr_reject, cr, 0, NULL);
		}
		/* until here a disconnect may have found it unconnected */
		spin_lock_bh(&pair->b.lock);
		if (pair->b.asked)
			pair->b.states &= ~U;
		spin_unlock_bh(&pair->b.lock);
	}
	mutex_unlock(&pair->lock);
	wake_up_all(&w->wait);
}

/* A request that came late would be lost with the EVD, and its object stay. */
static void requests_drain(struct world *w)
{
	DAT_EVENT event;

	DO(OK, dat_evd_modify_upcall, w->cr, DAT_UPCALL_TEARDOWN, NULL, DAT_UPCALL_INVOC_NEW);
	while (DO(OK | EMPTY, dat_evd_dequeue, w->cr, &event))
		cr_upcall(w, &event, DAT_FALSE);
}

void pairs_init(struct world *w)
{
	int i;

	for (i = 0; i < PAIRS; i++) {
		mutex_init(&w->pair[i].lock);
		w->pair[i].w = w;
	}
}

int pairs_open(struct world *w)
{
	const DAT_UPCALL_OBJECT upcall = { w, cr_upcall };

	if (!DO(OK, dat_evd_kcreate, w->side[0].ia, 32, DAT_UPCALL_SINGLE_INSTANCE, &upcall,
		DAT_EVD_CR_FLAG, &w->cr) ||
	    !DO(OK, dat_psp_create_any, w->side[0].ia, &w->port, w->cr, DAT_PSP_CONSUMER_FLAG,
		&w->psp))
		return -EIO;
	return 0;
}

/* ---- open and close ---- */

static bool end_open(struct end *e, struct pair *pair, struct end *peer, struct side *side)
{
	struct world *w = pair->w;
	DAT_UPCALL_POLICY policy = pair->many ? DAT_UPCALL_MANY : DAT_UPCALL_SINGLE_INSTANCE;
	struct kdat_evd_attr attr = KDAT_EVD_ATTR_INIT;
	DAT_REGION_DESCRIPTION region = {};
	DAT_PZ_HANDLE pz = w->pz[side - w->side];
	DAT_EP_ATTR size = {
		.max_message_size = SLOT, .max_rdma_size = SOURCE,
		.max_recv_dtos = OPS, .max_recv_iov = 1,
		.max_request_dtos = OPS, .max_request_iov = 2,
		.max_rdma_read_in = 4, .max_rdma_read_out = 4,
		.srq_soft_hw = DAT_HW_DEFAULT,
	};
	struct end_mem *mem = e->mem;
	struct queue *q;
	bool good;

	memset(e, 0, sizeof(*e));
	spin_lock_init(&e->lock);
	e->mem = mem ?: vzalloc(sizeof(*e->mem));
	e->pair = pair;
	e->peer = peer;
	e->side = side;
	e->states = U;
	if (!e->mem)
		return false;
	memset(e->mem, 0, sizeof(*e->mem));
	source_fill(e);
	region.for_va = e->mem;
	attr.context = tor_below(w->t, 2) ? KDAT_EVD_CONTEXT_WORKQUEUE : KDAT_EVD_CONTEXT_DEFAULT;
	good = true;
	for (q = e->queue; q < e->queue + QUEUES && good; q++) {
		const DAT_UPCALL_OBJECT upcall = { q, end_upcall };

		q->end = e;
		if (pair->shared && q > e->queue)
			q->evd = e->queue[0].evd;
		else if (pair->shared || q < e->queue + CONNECTS)
			good = DO(OK, kdat_evd_create, side->ia, QLEN, policy, &upcall,
				  pair->shared ? DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG :
						 DAT_EVD_DTO_FLAG, &attr, &q->evd);
		else
			good = DO(OK, dat_evd_kcreate, side->ia, 8, DAT_UPCALL_SINGLE_INSTANCE,
				  &upcall, DAT_EVD_CONNECTION_FLAG, &q->evd);
	}
	good = good &&
	       DO(OK, dat_lmr_kcreate, side->ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof(*e->mem), pz,
		  DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, DAT_MEM_OPTIMIZE_DONT_CARE, &e->lmr,
		  &e->key, &e->rkey, NULL, NULL) &&
	       DO(OK, dat_ep_create, side->ia, pz, e->queue[RECEIVES].evd, e->queue[REQUESTS].evd,
		  e->queue[CONNECTS].evd, &size, &e->ep);
	e->id = e->ep;
	return good;
}

static void one_free(struct world *w, enum tor_call call, DAT_RETURN (*free)(DAT_HANDLE),
		     DAT_HANDLE *h)
{
	if (!*h)
		return;
	w_ret(w, call, free(*h), OK);
	tor_died(w->t, *h);
	*h = NULL;
}

/* Nothing comes after this. */
static void end_close(struct end *e)
{
	struct world *w = e->side->w;
	int i;

	one_free(w, C_dat_ep_free, dat_ep_free, &e->ep);
	for (i = 0; i < QUEUES; i++) {
		if (e->pair->shared && i)
			e->queue[i].evd = NULL;
		one_free(w, C_dat_evd_free, dat_evd_free, &e->queue[i].evd);
	}
	one_free(w, C_dat_lmr_free, dat_lmr_free, &e->lmr);
	spin_lock_bh(&e->lock);
	e->closed = true;
	spin_unlock_bh(&e->lock);
}

/* A request that is on its way will be turned away. */
static void pair_forget(struct pair *pair)
{
	mutex_lock(&pair->lock);
	pair->attempt++;
	mutex_unlock(&pair->lock);
}

/* This end is about to leave: the other one may notice at any time. */
static void end_leaves(struct end *e)
{
	spin_lock_bh(&e->peer->lock);
	if (e->peer->asked)
		e->peer->states |= D;
	spin_unlock_bh(&e->peer->lock);
}

static void pair_close(struct pair *pair)
{
	if (!pair->fresh)
		return;
	/* a first: a request that is turned away for this ends there */
	end_leaves(&pair->b);
	pair_forget(pair);
	end_leaves(&pair->a);	/* b, which may have answered until now */
	if (tor_below(pair->w->t, 2)) {
		end_close(&pair->a);
		end_close(&pair->b);
	} else {
		end_close(&pair->b);
		end_close(&pair->a);
	}
	pair->fresh = false;
	pair->phase = CLOSED;
}

static void pair_open(struct pair *pair)
{
	struct world *w = pair->w;
	u32 sides = tor_below(w->t, 4);
	bool good;

	pair->many = tor_one_in(w->t, 4);
	pair->shared = tor_one_in(w->t, 2) && !pair->many;
	/* both, whatever comes of the first one: there are locks in them */
	good = end_open(&pair->a, pair, &pair->b, &w->side[sides & 1]);
	good &= end_open(&pair->b, pair, &pair->a, &w->side[0]);
	pair->fresh = true;
	pair->phase = OPEN;
	if (!good)
		pair_close(pair);
}

/* ---- what may come of a call ---- */

/* The states it may be in, of which those in can are good for the call. */
static u32 end_may(struct end *e, u32 can)
{
	u32 states = READ_ONCE(e->states);

	if (e->side->w->ia->removable && states != U)
		states |= D;
	return (states & can ? OK : 0) | (states & ~can ? STATE : 0);
}

/* ---- posting ---- */

static struct op *op_take(struct end *e, int queue, u8 kind, u32 length, bool quiet)
{
	struct op *op = NULL;
	int i;

	spin_lock_bh(&e->lock);
	for (i = 0; i < OPS && !op; i++) {
		if (atomic_read(&e->op[queue][i].state) != FREE)
			continue;
		op = &e->op[queue][i];
		op->kind = kind;
		op->length = length;
		op->quiet = quiet;
		op->seq = ++e->seq[queue];
		op->end = e;
		atomic_set(&op->state, POSTED);
	}
	spin_unlock_bh(&e->lock);
	return op;
}

static DAT_LMR_TRIPLET segment(struct end *e, void *p, u32 length)
{
	return (DAT_LMR_TRIPLET) {
		.virtual_address = (uintptr_t)p, .segment_length = length, .lmr_context = e->key,
	};
}

static bool post_recv(struct end *e)
{
	struct world *w = e->side->w;
	DAT_LMR_TRIPLET iov;
	struct op *op;
	bool good;

	/* soft-iWARP refuses one that meets its change of state (events.md) */
	if (w->iwarp && e->pair->phase == TRYING)
		return false;
	op = op_take(e, RECEIVES, DAT_DTO_RECEIVE, SLOT, false);
	if (!op)
		return false;
	iov = segment(e, e->mem->in[op - e->op[RECEIVES]], SLOT);
	good = DO(OK, dat_ep_post_recv, e->ep, 1, &iov, (DAT_DTO_COOKIE) { .as_ptr = op }, 0);
	if (good)
		e->credit++;
	else
		atomic_set(&op->state, FREE);
	return good;
}

/* A request of any kind; a Send if the peer has a Receive for it. */
static void post_request(struct end *e)
{
	struct world *w = e->side->w;
	struct tor *t = w->t;
	u32 pick = tor_below(t, 3), length = 8 * tor_below(t, SLOT / 8 + 1);
	bool quiet = !e->pair->many && tor_one_in(t, 3) && end_busy(e, REQUESTS, true) < OPS / 2;
	bool fenced = tor_one_in(t, 8) && w->fence;
	u32 may = end_may(e, C | D);
	DAT_COMPLETION_FLAGS flags = (quiet ? DAT_COMPLETION_SUPPRESS_FLAG : 0) |
				     (fenced ? DAT_COMPLETION_BARRIER_FENCE_FLAG : 0);
	static const u8 kinds[] = { DAT_DTO_SEND, DAT_DTO_RDMA_WRITE, DAT_DTO_RDMA_READ };
	DAT_RMR_TRIPLET remote = { .rmr_context = e->peer->rkey };
	DAT_LMR_TRIPLET iov;
	DAT_DTO_COOKIE cookie;
	enum tor_call call;
	DAT_RETURN ret;
	struct op *op;
	bool good;
	u32 slot;

	if (pick == 0 && !e->peer->credit)
		return;
	/* iWARP: who waited speaks second, or soft-iWARP gives up the attempt (events.md) */
	if (w->iwarp && e == &e->pair->b && e->asked && !READ_ONCE(e->peer->up))
		return;
	if (pick == 1)
		length = min_t(u32, length, TARGET);
	op = op_take(e, REQUESTS, kinds[pick], length, quiet);
	if (!op)
		return;
	slot = op - e->op[REQUESTS];
	cookie.as_ptr = op;
	iov = segment(e, e->mem->out[slot], length);
	switch (pick) {
	case 0:
		message_fill(e->mem->out[slot], length, e->sent + 1);
		call = C_dat_ep_post_send;
		/* a Send without contents counts as a message all the same */
		ret = dat_ep_post_send(e->ep, length ? 1 : 0, &iov, cookie, flags);
		break;
	case 1:
		e->writes++;
		message_fill(e->mem->out[slot], length, e->writes);
		if (length >= 16)
			((u64 *)e->mem->out[slot])[1] = e->writes;
		remote.virtual_address = (uintptr_t)e->peer->mem->target[e->writes % TARGETS];
		remote.segment_length = length;
		call = C_dat_ep_post_rdma_write;
		ret = dat_ep_post_rdma_write(e->ep, 1, &iov, cookie, &remote, flags);
		break;
	default:
		iov = segment(e, e->mem->sink[slot], length);
		remote.virtual_address = (uintptr_t)e->peer->mem->source + slot * 8;
		remote.segment_length = length;
		call = C_dat_ep_post_rdma_read;
		ret = dat_ep_post_rdma_read(e->ep, 1, &iov, cookie, &remote, flags);
		/* as many Reads as soft-iWARP takes may be under way */
		if (w->iwarp && may & OK)
			may |= SCARCE;
	}
	/* the state may have changed since */
	good = w_ret(w, call, ret, may | end_may(e, C | D));
	if (!good) {
		atomic_set(&op->state, FREE);
	} else if (pick == 0) {
		e->sent++;
		e->peer->credit--;
	}
}

static void post_requests(struct end *e, u32 n)
{
	/* no request for a connection is answered between the look and the post */
	bool alone = e->side->w->iwarp && e == &e->pair->b;

	while (n--) {
		if (alone)
			mutex_lock(&e->pair->lock);
		post_request(e);
		if (alone)
			mutex_unlock(&e->pair->lock);
	}
}

/* ---- the life of a connection ---- */

/* Whatever the policy was: events come by themselves from now on. */
static void end_listen(struct end *e)
{
	DAT_UPCALL_POLICY policy = e->pair->many ? DAT_UPCALL_MANY : DAT_UPCALL_SINGLE_INSTANCE;
	struct world *w = e->side->w;
	int i;

	for (i = 0; i < QUEUES; i++)
		DO(OK, dat_evd_modify_upcall, e->queue[i].evd,
		   i == CONNECTS ? DAT_UPCALL_SINGLE_INSTANCE : policy, NULL,
		   DAT_UPCALL_INVOC_ANY);
}

static void pair_connect(struct pair *pair)
{
	struct world *w = pair->w;
	struct hello hello = { .pair = pair - w->pair };
	struct end *a = &pair->a;
	bool good;

	mutex_lock(&pair->lock);
	hello.attempt = ++pair->attempt;
	pair->refuse = tor_one_in(w->t, 8);
	mutex_unlock(&pair->lock);
	end_set(a, true, pair->refuse ? A | D : A | C);
	good = DO(OK, dat_ep_connect, a->ep, (DAT_IA_ADDRESS_PTR)&w->addr, w->port,
		  DAT_TIMEOUT_INFINITE, sizeof(hello), &hello, DAT_QOS_BEST_EFFORT,
		  DAT_CONNECT_DEFAULT_FLAG);
	if (!good) {
		end_set(a, false, U);
		pair_forget(pair);
		return;
	}
	pair->phase = TRYING;
}

static bool wait_for(struct pair *pair, const char *what, bool (*done)(struct pair *pair))
{
	const struct end *e[] = { &pair->a, &pair->b };
	struct world *w = pair->w;
	int i;

	end_listen(&pair->a);
	end_listen(&pair->b);
	if (wait_event_idle_timeout(w->wait, done(pair), TOR_LONG))
		return true;
	for (i = 0; i < 2; i++)
		end_bad(e[i], "no %s: states 0x%x asked %d up %d over %d, under way: %d, %d", what,
			e[i]->states, e[i]->asked, e[i]->up, e[i]->over,
			end_busy(e[i], REQUESTS, false), end_busy(e[i], RECEIVES, false));
	return false;
}

static bool both_know(struct pair *pair)
{
	return READ_ONCE(pair->a.over) || (READ_ONCE(pair->a.up) &&
					   (READ_ONCE(pair->b.up) || READ_ONCE(pair->b.over)));
}

static bool end_over(struct end *e)
{
	if (!READ_ONCE(e->asked))
		return true;
	return READ_ONCE(e->over) && !end_busy(e, REQUESTS, false) && !end_busy(e, RECEIVES, false);
}

static bool both_over(struct pair *pair)
{
	return end_over(&pair->a) && end_over(&pair->b);
}

static void pair_disconnect(struct pair *pair, struct end *e)
{
	DAT_CLOSE_FLAGS how = tor_below(pair->w->t, 2) ? DAT_CLOSE_GRACEFUL_FLAG :
							 DAT_CLOSE_ABRUPT_FLAG;
	DAT_RETURN ret;
	u32 may;

	/* from now on the other one may be in D at any time, and this one too */
	spin_lock_bh(&e->lock);
	may = end_may(e, A | CP | C | DP | D);
	if (e->asked)
		e->states |= DP | D;
	e->left = true;		/* should a request be answered in between */
	spin_unlock_bh(&e->lock);
	end_leaves(e);
	ret = dat_ep_disconnect(e->ep, how);
	/* a request that is not there yet leaves b as it was; one may have come meanwhile */
	may |= end_may(e, A | CP | C | DP | D);
	if (w_ret(pair->w, C_dat_ep_disconnect, ret, may))
		pair->phase = TORN;
}

/* It has ended: both can be used again. */
static void pair_reset(struct pair *pair)
{
	struct end *e[] = { &pair->a, &pair->b };
	struct world *w = pair->w;
	bool good = true;
	int i, k;

	for (i = 0; i < 2; i++) {
		if (!e[i]->asked)
			continue;	/* and its Receives are as they were */
		if (!DO(OK, dat_ep_reset, e[i]->ep)) {
			good = false;
			continue;
		}
		/* an upcall may have the flush of a suppressed request in hand */
		DO(OK, dat_evd_modify_upcall, e[i]->queue[REQUESTS].evd, DAT_UPCALL_TEARDOWN, NULL,
		   DAT_UPCALL_INVOC_NEW);
		end_listen(e[i]);
		spin_lock_bh(&e[i]->lock);
		e[i]->states = U;
		e[i]->asked = false;
		e[i]->up = false;
		e[i]->early = false;
		e[i]->over = 0;
		e[i]->left = false;
		for (k = 0; k < OPS; k++)	/* the quiet ones at the end */
			atomic_set(&e[i]->op[REQUESTS][k].state, FREE);
		e[i]->credit = 0;
		spin_unlock_bh(&e[i]->lock);
	}
	if (!good) {
		pair_close(pair);
		return;
	}
	for (i = 0; i < 2; i++) {
		e[i]->sent = 0;
		e[i]->received = 0;
		memset(e[i]->mem->target, 0, sizeof(e[i]->mem->target));
	}
	pair->phase = OPEN;
}

static void pair_over(struct pair *pair)
{
	struct end *a = &pair->a, *b = &pair->b;
	struct world *w = pair->w;

	/*
	 * Not with iWARP: a peer that accepts and goes in the same moment may not be missed
	 * before something is sent (deviations.md).
	 */
	if (!w->iwarp && b->asked && b->left && !READ_ONCE(b->up)) {
		end_listen(a);
		end_listen(b);
		if (!wait_event_idle_timeout(w->wait, both_over(pair), HZ))
			pair_disconnect(pair, a);
	}
	/* nobody has torn it: it was refused, or the device has gone */
	if (!wait_for(pair, "end", both_over))
		goto close;
	pair_forget(pair);
	/* a request may have been answered in between */
	if (!wait_for(pair, "end after all", both_over))
		goto close;
	if (!a->asked && !b->asked)
		goto close;
	if (tor_below(w->t, 3)) {
		pair_reset(pair);
		return;
	}
close:
	pair_close(pair);
}

/* ---- steps ---- */

static void end_status(struct end *e)
{
	struct world *w = e->side->w;
	DAT_BOOLEAN recv, req;
	DAT_EP_STATE state;
	u32 before, after;
	bool good;

	/* a request that is answered brings b on by more than one state */
	mutex_lock(&e->pair->lock);
	before = READ_ONCE(e->states);
	good = DO(OK, dat_ep_get_status, e->ep, &state, &recv, &req);
	after = READ_ONCE(e->states);
	mutex_unlock(&e->pair->lock);
	if (!good)
		return;
	if (!(BIT(state) & (before | after | (w->ia->removable ? D : 0))))
		end_bad(e, "it is in state %d, not in 0x%x or 0x%x", state, before, after);
}

static void end_policy(struct end *e)
{
	static const DAT_UPCALL_POLICY policies[] = {
		DAT_UPCALL_DISABLE, DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_NOTIFY,
		DAT_UPCALL_TEARDOWN, DAT_UPCALL_MANY,
	};
	struct world *w = e->side->w;
	u32 n = tor_below(w->t, QUEUES);
	u32 policy = tor_below(w->t, e->pair->many && n < CONNECTS ? 5 : 4);

	DO(OK, dat_evd_modify_upcall, e->queue[n].evd, policies[policy], NULL,
	   tor_below(w->t, 2) ? DAT_UPCALL_INVOC_NEW : DAT_UPCALL_INVOC_ANY);
}

/* With upcalls off, or order would be lost between them and this. */
static void end_dequeue(struct end *e)
{
	struct world *w = e->side->w;
	DAT_EVD_HANDLE evd = e->queue[tor_below(w->t, QUEUES)].evd;
	DAT_EVENT event;

	DO(OK, dat_evd_modify_upcall, evd, DAT_UPCALL_TEARDOWN, NULL, DAT_UPCALL_INVOC_NEW);
	while (DO(OK | EMPTY, dat_evd_dequeue, evd, &event))
		end_event(e, &event);
}

static void end_other(struct end *e)
{
	struct world *w = e->side->w;
	struct kdat_conn_attr conn = KDAT_CONN_ATTR_INIT;
	DAT_EP_PARAM param = {};

	switch (tor_below(w->t, 7)) {
	case 0:
		DO(OK, dat_evd_resize, e->queue[REQUESTS].evd, QLEN + tor_below(w->t, QLEN));
		break;
	case 1:
		DO(OK, dat_ep_recv_query, e->ep, NULL, NULL);
		break;
	case 2:
		if (!DO(OK, dat_ep_query, e->ep, DAT_EP_FIELD_ALL, &param))
			break;
		if (param.ia_handle != e->side->ia ||
		    param.recv_evd_handle != e->queue[RECEIVES].evd ||
		    param.request_evd_handle != e->queue[REQUESTS].evd ||
		    param.connect_evd_handle != e->queue[CONNECTS].evd)
			end_bad(e, "dat_ep_query: another one");
		break;
	case 3:
		DO(OK, kdat_ep_query_conn, e->ep, &conn);
		break;
	case 4:
		/* something is attached to it */
		DO(STATE, dat_evd_free, e->queue[CONNECTS].evd);
		break;
	case 5:
		DO(STATE, dat_pz_free, w->pz[e->side - w->side]);
		break;
	default:
		end_status(e);
	}
}

static void pair_step(struct pair *pair)
{
	struct world *w = pair->w;
	struct tor *t = w->t;
	struct end *e = tor_below(t, 2) ? &pair->a : &pair->b;
	u32 pick = tor_below(t, 64), i, n = tor_below(t, 8);

	if (pair->phase == CLOSED) {
		if (!w->gone)
			pair_open(pair);
		return;
	}
	if (pick == 0) {
		pair_close(pair);
	} else if (pick < 4) {
		end_policy(e);
	} else if (pick < 8) {
		end_dequeue(e);
	} else if (pick < 14) {
		end_other(e);
	} else if (pick < 26) {
		for (i = 0; i < n; i++)
			post_recv(e);
	} else if (pick < 50 || (pick < 58 && pair->phase == UP)) {
		post_requests(e, n);
	} else if (pair->phase == OPEN) {
		pair_connect(pair);
	} else if (pair->phase == TRYING && pick < 62) {
		if (!wait_for(pair, "outcome", both_know)) {
			pair_close(pair);
			return;
		}
		pair->phase = READ_ONCE(pair->a.over) ? TORN : UP;
	} else if (pair->phase == TORN) {
		pair_over(pair);
	} else {
		pair_disconnect(pair, e);
	}
	if (w->gone && pair->phase != CLOSED && tor_one_in(t, 4))
		pair_close(pair);
}

void pairs_step(struct world *w)
{
	pair_step(&w->pair[tor_below(w->t, PAIRS)]);
}

void pairs_close(struct world *w)
{
	int i;

	for (i = 0; i < PAIRS; i++)
		pair_close(&w->pair[i]);
	one_free(w, C_dat_psp_free, dat_psp_free, &w->psp);
	if (w->cr)
		requests_drain(w);
	one_free(w, C_dat_evd_free, dat_evd_free, &w->cr);
}

/* When all handles are dead. */
void pairs_free(struct world *w)
{
	int i;

	for (i = 0; i < PAIRS; i++) {
		vfree(w->pair[i].a.mem);
		vfree(w->pair[i].b.mem);
	}
}
