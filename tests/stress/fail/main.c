// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * kdfail - each call with its first allocation failing, then with its second one, and so on
 * until it makes none that has not failed. It must succeed or say what its documentation says
 * of want; then everything is as before, and the same call succeeds as soon as there is
 * memory.
 *
 * All this happens while the module loads; the load fails if anything was wrong.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/sched.h>

#include "../../lib/consumer.h"
#include "../torture/outcomes.h"
#include "kdfail.h"

#define MOST	400		/* allocations in a call */
#define STRIDE	16		/* from one to the next where they are alike */

static uint rounds = 1;

module_param_named(ia, kdf.name, charp, 0444);
MODULE_PARM_DESC(ia, "interface adapter, e.g. rxe0-1 (required)");
module_param(rounds, uint, 0444);
MODULE_PARM_DESC(rounds, "how often (default 1)");

struct ground kdf;

TEST_STATE;

static u32 sweeps, total, refused;

/* ---- every call, and every sweep ---- */

#define CALL(name, outcomes)	{ #name, outcomes },

static const struct call {
	const char *name;
	u32 outcomes;
} calls[] = {
#include "../../../kdapl/tests/all_calls.h"
};

/* Those that are documented not to allocate: KUnit's suites count allocations of what is posted. */
static const char * const frugal[] = {
	"dat_cr_query", "dat_csp_query", "dat_ep_get_status", "dat_ep_post_rdma_read",
	"dat_ep_post_rdma_read_to_rmr", "dat_ep_post_rdma_write", "dat_ep_post_recv",
	"dat_ep_post_send", "dat_ep_post_send_with_invalidate", "dat_ep_query",
	"dat_ep_recv_query", "dat_ep_set_watermark", "dat_evd_dequeue", "dat_evd_post_se",
	"dat_evd_query", "dat_get_consumer_context", "dat_get_handle_type", "dat_ia_memtype_hint",
	"dat_ia_query", "dat_lmr_fmr", "dat_lmr_invalidate", "dat_lmr_query",
	"dat_lmr_sync_rdma_read", "dat_lmr_sync_rdma_write", "dat_psp_query", "dat_pz_query",
	"dat_registry_list_providers", "dat_registry_providers_related", "dat_rmr_bind",
	"dat_rmr_query", "dat_rsp_query", "dat_set_consumer_context", "dat_srq_post_recv",
	"dat_srq_query", "dat_srq_set_lw", "dat_strerror", "kdat_ep_drain", "kdat_ep_modify_conn",
	"kdat_ep_post_list", "kdat_ep_post_rdma_write_immed", "kdat_ep_query_conn",
	"kdat_ep_serialise_posts", "kdat_ia_device", "kdat_ia_dma_map", "kdat_ia_dma_unmap",
	"kdat_ia_mem_limits", "kdat_ia_pdata_limits", "kdat_lmr_by_context", "kdat_lmr_fmr_sg",
	"kdat_lmr_next_contexts", "kdat_wait_unused",
};

static const struct sweep * const tables[] = {
	sweeps_of_objects, sweeps_of_connections, sweeps_of_12,
};

static bool sweeps_it(const char *name, const char *call)
{
	size_t length = strlen(call);

	if (strncmp(name, call, length))
		return false;
	name += length;
	return !*name || !strcmp(name, "_as") || !strncmp(name, ", ", 2);
}

/*
 * What a sweep sweeps. A call of 1.2 is documented as its namesake is; what kdat_ia_openv() and
 * kdat_ia_open_to_as() are behind is documented as dat_ia_openv() and kdat_ia_open_to().
 */
static const struct call *call_of(const struct sweep *s)
{
	const char *name = s->name;
	int i, try;

	for (try = 0; try < 2; try++) {
		for (i = 0; i < ARRAY_SIZE(calls); i++) {
			if (sweeps_it(name, calls[i].name) ||
			    (!strncmp(name, "dat12_", 6) && !strncmp(calls[i].name, "dat_", 4) &&
			     sweeps_it(name + 6, calls[i].name + 4)))
				return &calls[i];
		}
		name++;
	}
	return NULL;
}

/* No call without a sweep, no sweep without a call. */
static int all_swept(void)
{
	const struct sweep *s;
	bool found;
	int i, t;

	for (i = 0; i < ARRAY_SIZE(calls); i++) {
		found = match_string(frugal, ARRAY_SIZE(frugal), calls[i].name) >= 0;
		for (t = 0; t < ARRAY_SIZE(tables); t++) {
			for (s = tables[t]; s->name; s++)
				found |= sweeps_it(s->name, calls[i].name);
		}
		if (!found)
			fail("%s has no sweep", calls[i].name);
	}
	for (t = 0; t < ARRAY_SIZE(tables); t++) {
		for (s = tables[t]; s->name; s++) {
			if (!call_of(s))
				fail("%s is not in all_calls.h", s->name);
		}
	}
	return failed() ? -EINVAL : 0;
}

/* ---- what can be seen of objects ---- */

struct view {
	DAT_RETURN ret;
	DAT_HANDLE_TYPE type;
	union {
		DAT_CR_PARAM cr;
		DAT_EP_PARAM ep;
		DAT_EVD_PARAM evd;
		DAT_LMR_PARAM lmr;
		DAT_PSP_PARAM psp;
		DAT_PZ_PARAM pz;
		DAT_RMR_PARAM rmr;
		DAT_RSP_PARAM rsp;
		DAT_SRQ_PARAM srq;
		DAT_CSP_PARAM csp;
	};
};

static DAT_RETURN view_type(DAT_HANDLE h, struct view *v)
{
	switch (v->type) {
	case DAT_HANDLE_TYPE_CR:
		return dat_cr_query(h, DAT_CR_FIELD_ALL, &v->cr);
	case DAT_HANDLE_TYPE_EP:
		return dat_ep_query(h, DAT_EP_FIELD_ALL, &v->ep);
	case DAT_HANDLE_TYPE_EVD:
		return dat_evd_query(h, DAT_EVD_FIELD_ALL, &v->evd);
	case DAT_HANDLE_TYPE_LMR:
		return dat_lmr_query(h, DAT_LMR_FIELD_ALL, &v->lmr);
	case DAT_HANDLE_TYPE_PSP:
		return dat_psp_query(h, DAT_PSP_FIELD_ALL, &v->psp);
	case DAT_HANDLE_TYPE_PZ:
		return dat_pz_query(h, DAT_PZ_FIELD_ALL, &v->pz);
	case DAT_HANDLE_TYPE_RMR:
		return dat_rmr_query(h, DAT_RMR_FIELD_ALL, &v->rmr);
	case DAT_HANDLE_TYPE_RSP:
		return dat_rsp_query(h, DAT_RSP_FIELD_ALL, &v->rsp);
	case DAT_HANDLE_TYPE_SRQ:
		return dat_srq_query(h, DAT_SRQ_FIELD_ALL, &v->srq);
	case DAT_HANDLE_TYPE_CSP:
		return dat_csp_query(h, DAT_CSP_FIELD_ALL, &v->csp);
	case DAT_HANDLE_TYPE_IA:
		break;
	}
	return DAT_SUCCESS;
}

static void view_one(DAT_HANDLE h, struct view *v)
{
	memset(v, 0, sizeof(*v));
	v->ret = dat_get_handle_type(h, &v->type);
	if (v->ret == DAT_SUCCESS)
		v->ret = view_type(h, v);
}

static const struct {
	const char *name;
	const DAT_HANDLE *handle;
} viewed[] = {
	{ "the object", &kdf.out },
	{ "the other object", &kdf.other },
	{ "the request", &kdf.cr },
	{ "the active Endpoint", &kdf.active },
	{ "the passive Endpoint", &kdf.passive },
	{ "a connected Endpoint", &kdf.near },
	{ "its peer", &kdf.far },
	{ "the SRQ", &kdf.srq },
	{ "the LMR", &kdf.lmr },
};

static struct view was[ARRAY_SIZE(viewed)], is[ARRAY_SIZE(viewed)];

static void view_all(struct view views[])
{
	int i;

	for (i = 0; i < ARRAY_SIZE(viewed); i++)
		view_one(*viewed[i].handle, &views[i]);
}

static bool alive(DAT_HANDLE h)
{
	DAT_HANDLE_TYPE type;

	return dat_get_handle_type(h, &type) == DAT_SUCCESS;
}

/* ---- the sweep ---- */

#ifdef CONFIG_FAULT_INJECTION
static void fail_from(u32 n)
{
	WRITE_ONCE(current->fail_nth, n);
}

static bool fail_reached(void)
{
	bool reached = !READ_ONCE(current->fail_nth);

	WRITE_ONCE(current->fail_nth, 0);
	return reached;
}
#else
static void fail_from(u32 n)
{
}

static bool fail_reached(void)
{
	return false;
}
#endif

/* It has been refused: for want of memory, and nothing has changed. */
static void judge_refusal(const struct sweep *s, u32 n, DAT_RETURN ret, bool reached)
{
	/* TCP/IP without memory for a port or a route says it is taken, or unreachable */
	u32 may = call_of(s)->outcomes & (SCARCE | TAKEN | ADDRESS);
	int i;

	if (s->how & NEEDY)
		may |= SCARCE;
	if (!reached || !(OUTCOME(DAT_GET_TYPE(ret)) & may))
		fail("allocation %u: %s %s", n, major_name(ret), minor_name(ret));
	view_all(is);
	for (i = 0; i < ARRAY_SIZE(viewed); i++) {
		if (memcmp(&was[i], &is[i], sizeof(was[i])))
			fail("allocation %u: %s is not as it was", n, viewed[i].name);
	}
}

static void judge_success(const struct sweep *s, u32 n, DAT_HANDLE out, DAT_HANDLE cr)
{
	if ((s->how & FREES) && alive(out))
		fail("allocation %u: the object is still there", n);
	if ((s->how & ANSWERS) && alive(cr))
		fail("allocation %u: the request is still there", n);
}

/* One try; true if there was a failing allocation. */
static bool sweep_try(const struct sweep *s, u32 n)
{
	DAT_HANDLE out, cr;
	DAT_RETURN ret;
	bool reached;

	kdf.out = NULL;
	kdf.other = NULL;
	if (s->before && check("setting up", s->before()))
		return false;
	view_all(was);
	out = kdf.out;
	cr = kdf.cr;
	fail_from(n);
	ret = s->call();
	reached = fail_reached();
	if (ret != DAT_SUCCESS) {
		refused++;
		judge_refusal(s, n, ret, reached);
		if (check("with memory", s->call()))
			return false;
	}
	judge_success(s, n, out, cr);
	if (s->after)
		check("undoing", s->after());
	return reached;
}

/*
 * Who listens on iWARP makes an allocation for each request that may wait. One such call is
 * swept entirely, all of them only with time for more than one round, in the first one.
 */
static void sweep_one(const struct sweep *s, bool all)
{
	u32 n = 1, before = refused;

	test_now = s->name;
	while (atomic_read(&test_faults) < TEST_FAULTS && n < MOST && sweep_try(s, n)) {
		total++;
		n += all || !(s->how & ALIKE) || n < 2 * STRIDE ? 1 : STRIDE;
	}
	if (n >= MOST)
		fail("it never ends");
	sweeps++;
	pr_info("%s: %u allocations, refused %u times\n", s->name, n - 1, refused - before);
}

static void sweep_all(bool all)
{
	const struct sweep *s;
	int t;

	for (t = 0; t < ARRAY_SIZE(tables); t++) {
		for (s = tables[t]; s->name && atomic_read(&test_faults) < TEST_FAULTS; s++)
			sweep_one(s, all);
	}
}

static int __init kdf_init(void)
{
	u32 round;
	int err;

	if (!kdf.name) {
		pr_err("ia= is missing\n");
		return -EINVAL;
	}
	err = all_swept();
	if (!err)
		err = objects_open() ?: connections_open();
	for (round = 0; round < rounds && !err && !failed(); round++)
		sweep_all(rounds > 1 && !round);
	test_now = "at the end";
	connections_close();
	objects_close();
	pr_info("%s calls=%zu sweeps=%u allocations=%u refused=%u\n",
		err || failed() || !total ? "FAIL" : "PASS", ARRAY_SIZE(calls), sweeps, total,
		refused);
	return err ?: failed() || !total ? -EIO : 0;
}

static void __exit kdf_exit(void)
{
}

module_init(kdf_init);
module_exit(kdf_exit);
MODULE_DESCRIPTION("kDAPL test: every call with each of its allocations failing");
MODULE_AUTHOR("The kDAPL for Linux authors");
MODULE_LICENSE("Dual BSD/GPL");
