// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The world of one thread: two instances of an adapter, and connections on them. Nobody else has
 * the handles, so what each call may return is known.
 */
#include "kdtorture.h"

#define STEPS		300

bool w_ret(struct world *w, enum tor_call call, DAT_RETURN ret, u32 allowed)
{
	if (w->ia->removable) {
		allowed |= GONE & tor_documented(call);
		if (DAT_GET_TYPE(ret) == DAT_INTERNAL_ERROR)
			WRITE_ONCE(w->gone, true);
	}
	return tor_ret(w->t, call, ret, allowed);
}

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
		pairs_step(w);
		if (READ_ONCE(w->gone) && tor_one_in(t, 32))
			break;
		cond_resched();
	}
close:
	tor_begin(t, STEPS);
	empty = tor_below(t, 2);
	pairs_close(w);
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

void world_round(struct tor *t)
{
	struct world *w = kvzalloc(sizeof(*w), GFP_KERNEL);

	if (!w)
		return;
	w->t = t;
	w->ia = &tor_ias[tor_below(t, tor_nias)];
	init_waitqueue_head(&w->wait);
	pairs_init(w);
	world_run(w);
	kvfree(w);
}
