// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Bad handles: made up, dead, of another kind, with a bit turned round, NULL. Each must be
 * refused with DAT_INVALID_HANDLE, by every call, in each of its arguments.
 */
#include <linux/net.h>
#include <linux/scatterlist.h>

#include "kdtorture.h"

#define DAT_HANDLE_TYPE_ANY	TOR_KINDS

/* A call may be there more than once, its line may not. */
static const struct {
	int line;
	enum tor_call call;
	unsigned int kind;
} probe_table[] = {
#define PROBE(name, kind, ...)	{ __LINE__, C_##name, DAT_HANDLE_TYPE_##kind },
#include "all_probes.h"
#undef PROBE
};

static noinline DAT_RETURN probe_call(int line, DAT_HANDLE h, const DAT_HANDLE *g)
{
	struct kdat_conn_attr conn = KDAT_CONN_ATTR_INIT;
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(7) };
	DAT_LMR_TRIPLET lmr = {};
	DAT_RMR_TRIPLET rmr = {};
	DAT_COMM comm = { AF_INET, SOCK_STREAM, 0 };
	DAT_SRQ_ATTR srq = { .max_recv_dtos = 8, .max_recv_iov = 1 };
	DAT_REGION_DESCRIPTION region = { .for_va = &conn };
	struct kdat_request request = { .op = KDAT_REQUEST_SEND };
	struct kdat_pdata_limits pdata;
	struct device *parent;
	struct kdat_mem_limits limits;
	struct kdat_sg sg = {};
	DAT_EVENT event = { .event_number = DAT_SOFTWARE_EVENT };
	DAT_CONTEXT cookie = {};
	DAT_HANDLE_TYPE kind;
	DAT_LMR_CONTEXT context;
	DAT_CONN_QUAL qual;
	struct kdat_dma_map map = {};
	DAT_VLEN length;
	DAT_HANDLE out;

	switch (line) {
#define PROBE(name, kind, expression)	case __LINE__: return expression;
#include "all_probes.h"
#undef PROBE
	}
	return DAT_SUCCESS;
}

void tor_died(struct tor *t, DAT_HANDLE h)
{
	t->stale[t->nstale++ % TOR_STALE] = h;
}

/* Never one that lives: each number is given out once, so only all of its bits make it. */
DAT_HANDLE tor_bad_handle(struct tor *t, DAT_HANDLE live)
{
	u32 r = prandom_u32_state(&t->rnd);
	u64 word = prandom_u32_state(&t->rnd);

	switch (r % 8) {
	case 0:
		return NULL;
	case 1:
		return (DAT_HANDLE)(unsigned long)(word % 4096);
	case 2:
		return t;
	case 3:
		return (DAT_HANDLE)(unsigned long)(word << 32 | prandom_u32_state(&t->rnd));
	case 4:
		/* sign bits and tag included */
		return (DAT_HANDLE)((unsigned long)live ^ BIT((r >> 3) % BITS_PER_LONG));
	default:
		if (t->nstale)
			return t->stale[(r >> 3) % min_t(u32, t->nstale, TOR_STALE)];
		return (DAT_HANDLE)((unsigned long)live ^ BIT((r >> 3) % BITS_PER_LONG));
	}
}

/* One good handle of each kind a thread can have without a peer. */
static bool probe_open(struct tor *t, DAT_HANDLE *g)
{
	const struct tor_ia *ia = &tor_ias[tor_nias - 1];	/* the one that stays */
	DAT_REGION_DESCRIPTION region = { .for_va = t };
	DAT_SRQ_ATTR srq = { .max_recv_dtos = 8, .max_recv_iov = 1 };
	DAT_EVD_HANDLE async = NULL;
	u32 absent = ia->removable ? ABSENT | GONE | SCARCE : 0;
	DAT_CONN_QUAL port;

	if (!tor_ret(t, C_dat_ia_openv,
		     dat_ia_open(ia->name, 8, &async, &g[DAT_HANDLE_TYPE_IA]), OK | absent))
		return false;
	return TRY_IT(OK | absent, dat_pz_create, g[DAT_HANDLE_TYPE_IA], &g[DAT_HANDLE_TYPE_PZ]) &&
	       TRY_IT(OK | absent, dat_evd_kcreate, g[DAT_HANDLE_TYPE_IA], 8, DAT_UPCALL_DISABLE,
		      NULL, DAT_EVD_CR_FLAG, &g[DAT_HANDLE_TYPE_EVD]) &&
	       TRY_IT(OK | absent, dat_ep_create, g[DAT_HANDLE_TYPE_IA], g[DAT_HANDLE_TYPE_PZ],
		      NULL, NULL, NULL, NULL, &g[DAT_HANDLE_TYPE_EP]) &&
	       TRY_IT(OK | absent, dat_srq_create, g[DAT_HANDLE_TYPE_IA], g[DAT_HANDLE_TYPE_PZ],
		      &srq, &g[DAT_HANDLE_TYPE_SRQ]) &&
	       TRY_IT(OK | absent, dat_psp_create_any, g[DAT_HANDLE_TYPE_IA], &port,
		      g[DAT_HANDLE_TYPE_EVD], 0, &g[DAT_HANDLE_TYPE_PSP]) &&
	       TRY_IT(OK | absent, dat_rmr_create, g[DAT_HANDLE_TYPE_PZ],
		      &g[DAT_HANDLE_TYPE_RMR]) &&
	       TRY_IT(OK | absent, dat_lmr_kcreate, g[DAT_HANDLE_TYPE_IA], DAT_MEM_TYPE_VIRTUAL,
		      region, 8, g[DAT_HANDLE_TYPE_PZ], DAT_MEM_PRIV_LOCAL_READ_FLAG, 0, 0,
		      &g[DAT_HANDLE_TYPE_LMR], NULL, NULL, NULL, NULL);
}

/* How many were made. */
u64 probe_burst(struct tor *t, u32 n)
{
	DAT_HANDLE g[TOR_KINDS + 1] = {};
	u32 i, which, kind, other;
	DAT_HANDLE h;

	if (!probe_open(t, g))
		n = 0;
	for (i = 0; i < n; i++) {
		which = tor_below(t, ARRAY_SIZE(probe_table));
		kind = probe_table[which].kind;
		other = tor_below(t, 2 * TOR_KINDS);
		/* a good one, but of another kind */
		if (other < TOR_KINDS && other != kind && kind != DAT_HANDLE_TYPE_ANY && g[other])
			h = g[other];
		else
			h = tor_bad_handle(t, g[other % TOR_KINDS]);
		tor_ret(t, probe_table[which].call,
			probe_call(probe_table[which].line, h, g), HANDLE);
	}
	if (!g[DAT_HANDLE_TYPE_IA])
		return n;
	TRY_IT(OK, dat_ia_close, g[DAT_HANDLE_TYPE_IA], DAT_CLOSE_ABRUPT_FLAG);
	for (i = 0; i < TOR_KINDS; i++) {
		if (g[i])
			tor_died(t, g[i]);
	}
	return n;
}
