// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The world of one thread: two instances of an adapter, objects that use each other, and the
 * model of all that. Nobody else has the handles, so what each call returns is known exactly.
 */
#include "kdtorture.h"

#define OBJS		48
#define STEPS		300
#define MEM		(16 * PAGE_SIZE)
#define USES		4

struct obj {
	DAT_HANDLE h;
	DAT_HANDLE_TYPE type;
	u8 inst;
	int users;		/* objects that keep this one */
	struct obj *uses[USES];
	u64 context;
	/* of an EVD */
	DAT_EVD_FLAGS flags;
	DAT_COUNT qlen;
	DAT_UPCALL_POLICY policy;
	u64 put;
	atomic64_t seen;
	/* of an Endpoint or an SRQ: Receives */
	DAT_COUNT limit, posted, low;
	/* of an LMR */
	DAT_MEM_PRIV_FLAGS priv;
	DAT_VLEN length;
	bool fmr;
};

struct solo {
	struct obj obj[OBJS];
};

bool w_ret(struct world *w, enum tor_call call, DAT_RETURN ret, u32 allowed)
{
	if (w->ia->removable) {
		allowed |= GONE & tor_documented(call);
		if (DAT_GET_TYPE(ret) == DAT_INTERNAL_ERROR)
			WRITE_ONCE(w->gone, true);
	}
	return tor_ret(w->t, call, ret, allowed);
}

/* ---- objects ---- */

static struct obj *obj_any(struct world *w, DAT_HANDLE_TYPE type)
{
	struct obj *o = w->solo->obj;
	u32 from = tor_below(w->t, OBJS), i;

	for (i = 0; i < OBJS; i++) {
		if (o[(from + i) % OBJS].h && o[(from + i) % OBJS].type == type)
			return &o[(from + i) % OBJS];
	}
	return NULL;
}

static struct obj *obj_room(struct world *w)
{
	int i;

	for (i = 0; i < OBJS; i++) {
		if (!w->solo->obj[i].h)
			return memset(&w->solo->obj[i], 0, sizeof(w->solo->obj[i]));
	}
	return NULL;
}

/* A handle for an argument: mostly a good one; what the call may say to it is added to may. */
static struct obj *obj_arg(struct world *w, DAT_HANDLE_TYPE type, int inst, DAT_HANDLE *h,
			   u32 *may)
{
	struct obj *o = obj_any(w, type);

	if (!o || tor_one_in(w->t, 10)) {
		struct obj *other = obj_any(w, tor_below(w->t, TOR_KINDS));

		if (other && other->type != type && tor_below(w->t, 2))
			*h = other->h;
		else
			*h = tor_bad_handle(w->t, o ? o->h : NULL);
		*may |= HANDLE;
		return NULL;
	}
	*h = o->h;
	if (inst >= 0 && o->inst != inst)
		*may |= HANDLE;		/* of another instance */
	return o;
}

static u32 may_be(u32 wrong)
{
	return wrong ?: OK;
}

static void obj_born(struct world *w, struct obj *o, DAT_HANDLE_TYPE type, int inst, DAT_HANDLE h,
		     struct obj *uses)
{
	o->h = h;
	o->type = type;
	o->inst = inst;
	o->uses[0] = uses;
	if (uses)
		uses->users++;
}

static void obj_uses(struct obj *o, int i, struct obj *used)
{
	o->uses[i] = used;
	if (used)
		used->users++;
}

/* ---- software events ---- */

static void soft_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct obj *o = instance;
	DAT_EVENT mine;

	if (event) {
		atomic64_inc(&o->seen);
		return;
	}
	while (dat_evd_dequeue(READ_ONCE(o->h), &mine) == DAT_SUCCESS)
		atomic64_inc(&o->seen);
}

static void evd_post(struct world *w, struct obj *o)
{
	DAT_EVENT event = {
		.event_number = tor_one_in(w->t, 16) ? DAT_DTO_COMPLETION_EVENT :
						       DAT_SOFTWARE_EVENT,
	};
	u32 n = tor_below(w->t, 12), wrong = 0;
	s64 before;

	if (event.event_number != DAT_SOFTWARE_EVENT || !(o->flags & DAT_EVD_SOFTWARE_FLAG))
		wrong = PARAM;
	for (; n; n--) {
		before = o->put - atomic64_read(&o->seen);
		/* nobody but us takes them when upcalls are off */
		if (!wrong && before >= o->qlen)
			wrong = o->policy == DAT_UPCALL_DISABLE ? FULL : FULL | OK;
		if (DO(may_be(wrong), dat_evd_post_se, o->h, &event))
			o->put++;
		if (wrong & FULL)
			wrong = 0;
	}
}

/* All that was put in has come out once. */
static void evd_drain(struct world *w, struct obj *o)
{
	DAT_EVENT event;
	s64 more;

	DO(OK, dat_evd_modify_upcall, o->h, DAT_UPCALL_TEARDOWN, NULL, DAT_UPCALL_INVOC_NEW);
	o->policy = DAT_UPCALL_DISABLE;
	while (DO(OK | EMPTY, dat_evd_dequeue, o->h, &event))
		atomic64_inc(&o->seen);
	more = atomic64_read(&o->seen) - o->put;
	/* a device that goes flushes the Receives of its Endpoints */
	if (more && !(more > 0 && w->ia->removable && o->flags & DAT_EVD_DTO_FLAG))
		tor_bad(w->t, "%llu software events were posted, %llu have come", o->put,
			(u64)atomic64_read(&o->seen));
	atomic64_set(&o->seen, o->put);		/* upcalls are off */
}

static void evd_policy(struct world *w, struct obj *o)
{
	static const DAT_UPCALL_POLICY policies[] = {
		DAT_UPCALL_DISABLE, DAT_UPCALL_SINGLE_INSTANCE, DAT_UPCALL_NOTIFY, DAT_UPCALL_MANY,
		7, -2,
	};
	DAT_UPCALL_POLICY policy = policies[tor_below(w->t, ARRAY_SIZE(policies))];

	if (DO(policy == 7 || policy == -2 ? PARAM : OK, dat_evd_modify_upcall, o->h, policy, NULL,
	       DAT_UPCALL_INVOC_ANY))
		o->policy = policy;
}

/* ---- making ---- */

static void make_pz(struct world *w, struct obj *o, int inst)
{
	DAT_HANDLE h;

	if (DO(OK, dat_pz_create, w->side[inst].ia, &h))
		obj_born(w, o, DAT_HANDLE_TYPE_PZ, inst, h, NULL);
}

static void make_evd(struct world *w, struct obj *o, int inst)
{
	static const DAT_EVD_FLAGS flags[] = {
		DAT_EVD_SOFTWARE_FLAG, DAT_EVD_DTO_FLAG, DAT_EVD_CONNECTION_FLAG, DAT_EVD_CR_FLAG,
		DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG | DAT_EVD_SOFTWARE_FLAG,
		DAT_EVD_SOFTWARE_FLAG, 0, 0x2000,
	};
	struct tor *t = w->t;
	const DAT_UPCALL_OBJECT upcall = { o, soft_upcall };
	DAT_COUNT length = (DAT_COUNT)tor_below(t, 34) - 1;
	bool on = tor_below(t, 2);
	DAT_EVD_PARAM param = {};
	DAT_HANDLE h;
	u32 wrong = 0;

	memset(o, 0, sizeof(*o));
	o->flags = flags[tor_below(t, ARRAY_SIZE(flags))];
	o->policy = on ? DAT_UPCALL_SINGLE_INSTANCE : DAT_UPCALL_DISABLE;
	if (length <= 0 || !o->flags || o->flags & 0x2000)
		wrong = PARAM;
	if (!DO(may_be(wrong), dat_evd_kcreate, w->side[inst].ia, length, o->policy, &upcall,
		o->flags, &h))
		return;
	obj_born(w, o, DAT_HANDLE_TYPE_EVD, inst, h, NULL);
	if (!DO(OK, dat_evd_query, h, DAT_EVD_FIELD_ALL, &param))
		return;
	o->qlen = param.evd_qlen;
	if (param.evd_qlen < length || param.ia_handle != w->side[inst].ia ||
	    param.upcall_policy != o->policy || param.evd_flags != o->flags ||
	    param.upcall.instance_data != o)
		tor_bad(t, "dat_evd_query: length %d for %d, policy %d for %d, flags 0x%x for 0x%x",
			param.evd_qlen, length, param.upcall_policy, o->policy, param.evd_flags,
			o->flags);
}

static void make_lmr(struct world *w, struct obj *o, int inst)
{
	struct tor *t = w->t;
	u32 wrong = 0, at = tor_below(t, MEM), length = tor_below(t, MEM - at);
	DAT_MEM_PRIV_FLAGS priv = DAT_MEM_PRIV_ALL_FLAG & prandom_u32_state(&t->rnd);
	DAT_REGION_DESCRIPTION region = {};
	DAT_LMR_CONTEXT key;
	DAT_HANDLE pz, h;
	struct obj *zone = obj_arg(w, DAT_HANDLE_TYPE_PZ, inst, &pz, &wrong);
	bool good;

	if (tor_below(t, 3)) {
		if (!length)
			wrong |= PARAM;
		if (tor_one_in(t, 16)) {
			priv |= 0x400;
			wrong |= PARAM;
		}
		region.for_va = w->mem + at;
		good = DO(may_be(wrong), dat_lmr_kcreate, w->side[inst].ia, DAT_MEM_TYPE_VIRTUAL,
			  region, length, pz, priv, DAT_VA_TYPE_VA, 0, &h, &key, NULL, NULL, NULL);
	} else {
		length = tor_below(t, 9);
		if (!length)
			wrong |= PARAM;
		o->fmr = true;
		good = DO(may_be(wrong), dat_lmr_allocate, w->side[inst].ia, pz, length,
			  DAT_LMR_SCOPE_PZ, &h);
	}
	if (!good)
		return;
	o->priv = priv;
	o->length = length;
	obj_born(w, o, DAT_HANDLE_TYPE_LMR, inst, h, zone);
}

static void make_rmr(struct world *w, struct obj *o)
{
	u32 wrong = 0;
	DAT_HANDLE pz, h;
	struct obj *zone = obj_arg(w, DAT_HANDLE_TYPE_PZ, -1, &pz, &wrong);

	if (DO(may_be(wrong), dat_rmr_create, pz, &h))
		obj_born(w, o, DAT_HANDLE_TYPE_RMR, zone->inst, h, zone);
}

static void make_srq(struct world *w, struct obj *o, int inst)
{
	DAT_SRQ_ATTR attr = {
		.max_recv_dtos = (DAT_COUNT)tor_below(w->t, 20) - 1,
		.max_recv_iov = 1 + tor_below(w->t, 2),
	};
	u32 wrong = 0;
	DAT_HANDLE pz, h;
	struct obj *zone = obj_arg(w, DAT_HANDLE_TYPE_PZ, inst, &pz, &wrong);

	if (attr.max_recv_dtos <= 0)
		wrong |= PARAM;
	if (!DO(may_be(wrong), dat_srq_create, w->side[inst].ia, pz, &attr, &h))
		return;
	o->limit = attr.max_recv_dtos;
	obj_born(w, o, DAT_HANDLE_TYPE_SRQ, inst, h, zone);
}

static void make_ep(struct world *w, struct obj *o, int inst)
{
	DAT_EP_ATTR attr = {
		.max_message_size = 4096, .max_rdma_size = 4096,
		.max_recv_dtos = 1 + tor_below(w->t, 12), .max_request_dtos = 4,
		.max_recv_iov = 1, .max_request_iov = 1,
		.srq_soft_hw = DAT_HW_DEFAULT,
	};
	u32 wrong = 0;
	DAT_HANDLE pz, recv, h;
	struct obj *zone = obj_arg(w, DAT_HANDLE_TYPE_PZ, inst, &pz, &wrong);
	struct obj *evd = obj_arg(w, DAT_HANDLE_TYPE_EVD, inst, &recv, &wrong);

	/* NULL is none: legal here */
	if (!pz || !recv)
		return;
	if (evd && !(evd->flags & DAT_EVD_DTO_FLAG))
		wrong |= HANDLE;
	if (!DO(may_be(wrong), dat_ep_create, w->side[inst].ia, pz, recv, NULL, NULL, &attr, &h))
		return;
	o->limit = attr.max_recv_dtos;
	obj_born(w, o, DAT_HANDLE_TYPE_EP, inst, h, zone);
	obj_uses(o, 1, evd);
}

/* ---- using ---- */

static void use_ep(struct world *w, struct obj *o)
{
	DAT_DTO_COOKIE cookie = { .as_ptr = o };
	struct tor *t = w->t;
	DAT_EP_STATE state;
	u32 n;

	switch (tor_below(t, 4)) {
	case 0:
		if (DO(OK, dat_ep_get_status, o->h, &state, NULL, NULL) &&
		    state != DAT_EP_STATE_UNCONNECTED)
			tor_bad(t, "an Endpoint nobody has connected is in state %d", state);
		break;
	case 1:
		DO(STATE, dat_ep_post_send, o->h, 0, NULL, cookie, 0);
		DO(STATE, dat_ep_disconnect, o->h, DAT_CLOSE_ABRUPT_FLAG);
		break;
	case 2:
		DO(OK, dat_ep_reset, o->h);
		break;
	default:
		for (n = tor_below(t, 14); n; n--) {
			if (DO(o->posted < o->limit ? OK : SCARCE, dat_ep_post_recv, o->h, 0, NULL,
			       cookie, 0))
				o->posted++;
		}
	}
}

static void use_srq(struct world *w, struct obj *o)
{
	DAT_SRQ_PARAM param = {};
	DAT_DTO_COOKIE cookie = { .as_ptr = o };
	struct tor *t = w->t;
	DAT_COUNT to;
	u32 n;

	switch (tor_below(t, 4)) {
	case 0:
		if (DO(OK, dat_srq_query, o->h, DAT_SRQ_FIELD_ALL, &param) &&
		    (param.ia_handle != w->side[o->inst].ia || param.max_recv_dtos != o->limit ||
		     param.outstanding_dto_count != o->posted))
			tor_bad(t, "dat_srq_query: %d of %d, not %d of %d",
				param.outstanding_dto_count, param.max_recv_dtos, o->posted,
				o->limit);
		break;
	case 1:
		to = (DAT_COUNT)tor_below(t, 24) - 1;
		if (DO(to <= 0 ? PARAM : to < o->posted || to < o->low ? STATE :
		       to > o->limit && o->posted ? OK | SCARCE : OK, dat_srq_resize, o->h, to))
			o->limit = to;
		break;
	case 2:
		to = (DAT_COUNT)tor_below(t, 24) - 1;
		if (DO(to < 0 || to > o->limit ? PARAM : OK, dat_srq_set_lw, o->h, to))
			o->low = to;
		break;
	default:
		for (n = tor_below(t, 10); n; n--) {
			if (DO(o->posted < o->limit ? OK : SCARCE, dat_srq_post_recv, o->h, 0, NULL,
			       cookie))
				o->posted++;
		}
	}
}

static void use_lmr(struct world *w, struct obj *o)
{
	DAT_LMR_PARAM param = {};
	DAT_LMR_CONTEXT key;
	struct obj *ep = obj_any(w, DAT_HANDLE_TYPE_EP);
	DAT_LMR_COOKIE cookie = {};

	if (tor_below(w->t, 2)) {
		if (DO(OK, dat_lmr_query, o->h, DAT_LMR_FIELD_ALL, &param) &&
		    (param.ia_handle != w->side[o->inst].ia || param.pz_handle != o->uses[0]->h ||
		     (!o->fmr && (param.length != o->length || param.mem_priv != o->priv)) ||
		     param.lmr_state.fmr_support != (o->fmr ? DAT_TRUE : DAT_FALSE)))
			tor_bad(w->t, "dat_lmr_query: length %llu, not %llu, rights 0x%x, not 0x%x",
				param.length, o->length, param.mem_priv, o->priv);
		return;
	}
	DO(o->fmr ? OK : STATE, kdat_lmr_next_contexts, o->h, &key, &key);
	if (ep)
		DO(ep->inst == o->inst ? STATE | ZONE : STATE | ZONE | HANDLE, dat_lmr_invalidate,
		   o->h, ep->h, cookie, 0);
}

static void use_any(struct world *w, struct obj *o)
{
	DAT_CONTEXT context = { .as_64 = prandom_u32_state(&w->t->rnd) };
	DAT_HANDLE_TYPE type;

	if (DO(OK, dat_get_handle_type, o->h, &type) &&
	    type != o->type)
		tor_bad(w->t, "dat_get_handle_type: %d, not %d", type, o->type);
	if (tor_below(w->t, 2)) {
		if (DO(OK, dat_set_consumer_context, o->h, context))
			o->context = context.as_64;
		return;
	}
	if (DO(OK, dat_get_consumer_context, o->h, &context) &&
	    context.as_64 != o->context)
		tor_bad(w->t, "a context has become another one");
}

static void use(struct world *w, struct obj *o)
{
	DAT_PZ_PARAM pz = {};

	if (tor_one_in(w->t, 4)) {
		use_any(w, o);
		return;
	}
	switch (o->type) {
	case DAT_HANDLE_TYPE_EVD:
		if (tor_one_in(w->t, 6))
			evd_drain(w, o);
		else if (tor_one_in(w->t, 4))
			evd_policy(w, o);
		else
			evd_post(w, o);
		break;
	case DAT_HANDLE_TYPE_EP:
		use_ep(w, o);
		break;
	case DAT_HANDLE_TYPE_SRQ:
		use_srq(w, o);
		break;
	case DAT_HANDLE_TYPE_LMR:
		use_lmr(w, o);
		break;
	case DAT_HANDLE_TYPE_PZ:
		if (DO(OK, dat_pz_query, o->h, DAT_PZ_FIELD_ALL, &pz) &&
		    pz.ia_handle != w->side[o->inst].ia)
			tor_bad(w->t, "dat_pz_query: another IA");
		break;
	default:
		DO(PARAM, dat_rmr_query, o->h, 0x100, NULL);
	}
}

/* ---- freeing ---- */

const struct tor_free tor_frees[TOR_KINDS] = {
	[DAT_HANDLE_TYPE_PZ] = { C_dat_pz_free, dat_pz_free },
	[DAT_HANDLE_TYPE_EVD] = { C_dat_evd_free, dat_evd_free },
	[DAT_HANDLE_TYPE_LMR] = { C_dat_lmr_free, dat_lmr_free },
	[DAT_HANDLE_TYPE_RMR] = { C_dat_rmr_free, dat_rmr_free },
	[DAT_HANDLE_TYPE_SRQ] = { C_dat_srq_free, dat_srq_free },
	[DAT_HANDLE_TYPE_EP] = { C_dat_ep_free, dat_ep_free },
	[DAT_HANDLE_TYPE_PSP] = { C_dat_psp_free, dat_psp_free },
	[DAT_HANDLE_TYPE_RSP] = { C_dat_rsp_free, dat_rsp_free },
	[DAT_HANDLE_TYPE_CSP] = { C_dat_csp_free, dat_csp_free },
};

static void obj_free(struct world *w, struct obj *o)
{
	const struct tor_free *free = &tor_frees[o->type];
	int i;

	if (o->type == DAT_HANDLE_TYPE_EVD)
		evd_drain(w, o);
	if (!w_ret(w, free->call, free->free(o->h), o->users ? STATE : OK))
		return;
	tor_died(w->t, o->h);
	/* and it stays dead */
	w_ret(w, free->call, free->free(o->h), HANDLE);
	for (i = 0; i < USES; i++) {
		if (o->uses[i])
			o->uses[i]->users--;
	}
	o->h = NULL;
}

static void solo_step(struct world *w)
{
	struct tor *t = w->t;
	int inst = tor_below(t, 2);
	u32 pick = tor_below(t, 24);
	static const DAT_HANDLE_TYPE kinds[] = {
		DAT_HANDLE_TYPE_PZ, DAT_HANDLE_TYPE_EVD, DAT_HANDLE_TYPE_LMR, DAT_HANDLE_TYPE_RMR,
		DAT_HANDLE_TYPE_SRQ, DAT_HANDLE_TYPE_EP,
	};
	DAT_HANDLE_TYPE kind = kinds[tor_below(t, ARRAY_SIZE(kinds))];
	struct obj *o = pick < 10 ? obj_room(w) : obj_any(w, kind);

	if (!o)
		return;
	if (pick < 2)
		make_pz(w, o, inst);
	else if (pick < 4)
		make_evd(w, o, inst);
	else if (pick < 6)
		make_lmr(w, o, inst);
	else if (pick < 7)
		make_rmr(w, o);
	else if (pick < 8)
		make_srq(w, o, inst);
	else if (pick < 10)
		make_ep(w, o, inst);
	else if (pick < 14)
		obj_free(w, o);
	else
		use(w, o);
}

/* ---- a world ---- */

static void async_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_ASYNCH_ERROR_EVENT_DATA *data = &event->event_data.asynch_error_event_data;
	struct side *side = instance;

	if (event->event_number != DAT_ASYNC_ERROR_IA_CATASTROPHIC)
		return;
	if (data->dat_handle != side->ia)
		tor_bad(side->w->t, "IA_CATASTROPHIC of another IA");
	atomic_inc(&side->catastrophic);
	WRITE_ONCE(side->w->gone, true);
	wake_up_all(&side->w->wait);
}

static int side_open(struct world *w, struct side *side)
{
	const DAT_UPCALL_OBJECT upcall = { side, async_upcall };
	u32 absent = w->ia->removable ? ABSENT | SCARCE : 0;

	side->w = w;
	if (!w_ret(w, C_dat_ia_openv, dat_ia_open(w->ia->name, 8, &side->async, &side->ia),
		   OK | absent))
		return -ENODEV;
	DO(OK, dat_evd_modify_upcall, side->async, DAT_UPCALL_SINGLE_INSTANCE, &upcall,
	   DAT_UPCALL_INVOC_ANY);
	if (!DO(OK, dat_pz_create, side->ia, &w->pz[side - w->side]))
		return -ENODEV;
	return 0;
}

static int world_address(struct world *w)
{
	DAT_IA_ATTR *attr = kzalloc(sizeof(*attr), GFP_KERNEL);
	DAT_PROVIDER_ATTR prov = {};
	int err = -ENODEV;

	if (!attr)
		return -ENOMEM;
	if (DO(OK, dat_ia_query, w->side[0].ia, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, attr,
	       DAT_PROVIDER_FIELD_RDMA_WRITE_FOR_RDMA_READ_REQ |
	       DAT_PROVIDER_FIELD_COMPLETION_FLAGS_SUPPORTED,
	       &prov) &&
	    attr->ia_address_ptr) {
		test_addr_copy(&w->addr, attr->ia_address_ptr);
		w->iwarp = prov.rdma_write_for_rdma_read_req;
		w->fence = prov.completion_flags_supported & DAT_COMPLETION_BARRIER_FENCE_FLAG;
		err = 0;
	}
	kfree(attr);
	return err;
}

static void side_close(struct world *w, struct side *side, bool empty)
{
	if (!side->ia)
		return;
	if (READ_ONCE(w->gone) &&
	    !wait_event_idle_timeout(w->wait, atomic_read(&side->catastrophic), TOR_LONG))
		tor_bad(w->t, "the device has gone, and nobody says so");
	/* without a zone it is empty as well: the device went when it had just been opened */
	if (!empty && w->pz[side - w->side])
		DO(STATE, dat_ia_close, side->ia, DAT_CLOSE_GRACEFUL_FLAG);
	DO(OK, dat_ia_close, side->ia,
	   empty && tor_below(w->t, 2) ? DAT_CLOSE_GRACEFUL_FLAG : DAT_CLOSE_ABRUPT_FLAG);
	if (atomic_read(&side->catastrophic) > !!w->ia->removable)
		tor_bad(w->t, "IA_CATASTROPHIC %d times", atomic_read(&side->catastrophic));
	tor_died(w->t, side->ia);
	side->ia = NULL;
}

/* In any order that can be: what is used goes later. */
static void solo_close(struct world *w)
{
	bool again = true;
	int i;

	while (again) {
		again = false;
		for (i = 0; i < OBJS; i++) {
			struct obj *o = &w->solo->obj[i];

			if (!o->h || o->users)
				continue;
			obj_free(w, o);
			if (o->h)
				return;		/* which was told */
			again = true;
		}
	}
}

static void world_run(struct world *w)
{
	struct tor *t = w->t;
	bool empty;
	u32 i;

	if (side_open(w, &w->side[0]) || side_open(w, &w->side[1]) || world_address(w) ||
	    pairs_open(w)) {
		tor_note(N_UNFIT);
		if (!w->ia->removable)
			tor_bad(t, "there is no %s", w->ia->name);
		goto close;
	}
	tor_note(N_WORLDS);
	for (i = 1; i < STEPS && !tor_stop(); i++) {
		tor_begin(t, i);
		if (tor_below(t, 2))
			solo_step(w);
		else
			pairs_step(w);
		if (READ_ONCE(w->gone) && tor_one_in(t, 32))
			break;
		cond_resched();
	}
close:
	tor_begin(t, STEPS);
	empty = tor_below(t, 2);
	pairs_close(w);
	if (empty)
		solo_close(w);
	for (i = 0; i < 2 && empty; i++) {
		if (w->pz[i])
			DO(OK, dat_pz_free, w->pz[i]);
		w->pz[i] = NULL;
	}
	if (READ_ONCE(w->gone))
		tor_note(N_DEAD);
	side_close(w, &w->side[1], empty);
	side_close(w, &w->side[0], empty);
	pairs_free(w);
}

void solo_round(struct tor *t)
{
	struct world *w = kvzalloc(sizeof(*w), GFP_KERNEL);

	if (!w)
		return;
	w->t = t;
	w->ia = &tor_ias[tor_below(t, tor_nias)];
	init_waitqueue_head(&w->wait);
	pairs_init(w);
	w->solo = kvzalloc(sizeof(*w->solo), GFP_KERNEL);
	w->mem = kvzalloc(MEM, GFP_KERNEL);
	if (w->solo && w->mem)
		world_run(w);
	kvfree(w->mem);
	kvfree(w->solo);
	kvfree(w);
}
