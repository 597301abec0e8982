// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Keys that are not good for what the peer does with them: each ends in an error of
 * its connection, and in nothing else.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/mm.h>
#include <linux/slab.h>

#include "kdhammer.h"

#define SIZE	1024	/* of the window */

struct stale {
	struct area area;
	DAT_PZ_HANDLE pz;		/* another one */
	DAT_LMR_HANDLE lmr, source;
	DAT_RMR_HANDLE rmr;
	DAT_RMR_CONTEXT rkey;
	u64 addr;
	u32 length;
	bool read, skip;
};

/* Soft-iWARP looks at key, PZ and range of a Read, but not for the right to read. */
static bool reads_are_free(void)
{
	return ham_owner.iwarp;
}

static int stale_lmr(struct stale *s, DAT_MEM_PRIV_FLAGS priv)
{
	DAT_LMR_CONTEXT lkey;
	int err = lmr_over(&ham_owner, s->pz ?: ham_owner.pz, &s->area, false, priv, &s->lmr,
			   &lkey, &s->rkey);

	if (!err && !(priv & REMOTE)) {
		if (s->rkey)
			return fail("a key for peers without a right for peers");
		s->rkey = lkey;
	}
	return err;
}

static int stale_fmr(struct stale *s)
{
	DAT_LMR_CONTEXT lkey;

	return TRY(dat_lmr_allocate, ham_owner.ia, ham_owner.pz, 16, DAT_LMR_SCOPE_PZ, &s->lmr) ?:
	       fmr_over(&ham_link, s->lmr, &s->area, &lkey, &s->rkey, &s->addr);
}

static int stale_invalidate(struct stale *s)
{
	struct op op;

	op_init(&op, NULL, NULL);
	return TRY(dat_lmr_invalidate, s->lmr, ham_link.owner.ep, op_cookie(&op), 0) ?:
	       op_wait(&op, "invalidate");
}

static int stale_bind(struct stale *s, u32 length, DAT_MEM_PRIV_FLAGS priv, DAT_RMR_CONTEXT *key)
{
	DAT_LMR_TRIPLET part = { .virtual_address = s->addr, .segment_length = length };
	DAT_LMR_PARAM param;
	struct op op;
	int err = 0;

	if (!s->source)
		err = lmr_over(&ham_owner, ham_owner.pz, &s->area, true, LOCAL, &s->source, NULL,
			       NULL) ?: TRY(dat_rmr_create, ham_owner.pz, &s->rmr);
	err = err ?: TRY(dat_lmr_query, s->source, DAT_LMR_FIELD_ALL, &param);
	if (err)
		return err;
	part.lmr_context = param.lmr_context;
	op_init(&op, NULL, NULL);
	err = TRY(dat_rmr_bind, s->rmr, s->source, &part, priv, DAT_VA_TYPE_VA, ham_link.owner.ep,
		  op_cookie(&op), 0, key) ?: op_wait(&op, "bind");
	if (!err && op.status != DAT_DTO_SUCCESS)
		err = fail("bind: %s", status_name(op.status));
	return err;
}

static int freed_lmr(struct stale *s)
{
	int err = stale_lmr(s, LOCAL | REMOTE) ?: TRY(dat_lmr_free, s->lmr);

	s->lmr = NULL;
	return err;
}

static int invalidated(struct stale *s)
{
	return stale_fmr(s) ?: stale_invalidate(s);
}

static int bound_again(struct stale *s)
{
	DAT_LMR_CONTEXT lkey;
	DAT_RMR_CONTEXT rkey;
	u64 addr;

	return invalidated(s) ?: fmr_over(&ham_link, s->lmr, &s->area, &lkey, &rkey, &addr);
}

static int freed_fmr(struct stale *s)
{
	int err = stale_fmr(s) ?: TRY(dat_lmr_free, s->lmr);

	s->lmr = NULL;
	return err;
}

static int foretold(struct stale *s)
{
	DAT_LMR_CONTEXT lkey;

	return invalidated(s) ?: TRY(kdat_lmr_next_contexts, s->lmr, &lkey, &s->rkey);
}

static int unbound_rmr(struct stale *s)
{
	DAT_RMR_CONTEXT none;

	return stale_bind(s, SIZE, REMOTE, &s->rkey) ?: stale_bind(s, 0, REMOTE, &none);
}

static int rebound_rmr(struct stale *s)
{
	DAT_RMR_CONTEXT key;

	return stale_bind(s, SIZE, REMOTE, &s->rkey) ?: stale_bind(s, SIZE, REMOTE, &key);
}

static int freed_rmr(struct stale *s)
{
	int err = stale_bind(s, SIZE, REMOTE, &s->rkey) ?: TRY(dat_rmr_free, s->rmr);

	s->rmr = NULL;
	return err;
}

static int read_only_rmr(struct stale *s)
{
	s->read = false;
	return stale_bind(s, SIZE, DAT_MEM_PRIV_REMOTE_READ_FLAG, &s->rkey);
}

static int write_only_rmr(struct stale *s)
{
	s->read = true;
	s->skip = reads_are_free();
	return stale_bind(s, SIZE, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, &s->rkey);
}

static int behind_rmr(struct stale *s)
{
	return stale_bind(s, SIZE - 1, REMOTE, &s->rkey);
}

static int taken_by_peer(struct stale *s)
{
	struct op recv, send;
	int err = stale_fmr(s);

	if (err)
		return err;
	op_init(&recv, NULL, NULL);
	op_init(&send, NULL, NULL);
	WRITE_ONCE(ham_link.inbox_op, &recv);
	return peer_send_inv(&ham_link, &send, s->rkey) ?: op_wait(&send, "Send with invalidate") ?:
	       op_wait(&recv, "Receive with invalidate");
}

static int read_only(struct stale *s)
{
	s->read = false;
	return stale_lmr(s, LOCAL | DAT_MEM_PRIV_REMOTE_READ_FLAG);
}

static int write_only(struct stale *s)
{
	s->read = true;
	s->skip = reads_are_free();
	return stale_lmr(s, LOCAL | DAT_MEM_PRIV_REMOTE_WRITE_FLAG);
}

static int local_only(struct stale *s)
{
	s->read &= !reads_are_free();
	return stale_lmr(s, LOCAL);
}

static int before(struct stale *s)
{
	s->addr--;
	return stale_lmr(s, LOCAL | REMOTE);
}

static int behind(struct stale *s)
{
	s->addr++;
	return stale_lmr(s, LOCAL | REMOTE);
}

static int fmr_behind(struct stale *s)
{
	int err = stale_fmr(s);

	s->addr += SIZE;
	s->length = 1;
	return err;
}

static int other_pz(struct stale *s)
{
	return TRY(dat_pz_create, ham_owner.ia, &s->pz) ?: stale_lmr(s, LOCAL | REMOTE);
}

static int no_key(struct stale *s)
{
	s->rkey = 0;
	return 0;
}

static int guessed(struct stale *s)
{
	int err = stale_lmr(s, LOCAL | REMOTE);

	s->rkey = (s->rkey & ~0xff) | ((s->rkey + 1 + ham_below(255)) & 0xff);
	return err;
}

/* What reaches all memory locally is no key for peers. */
static int reserved(struct stale *s)
{
	DAT_LMR_HANDLE lmr;
	DAT_RETURN ret = dat_ia_reserved_lmr(ham_owner.ia, &lmr, &s->rkey);

	s->read &= !reads_are_free();
	s->skip = DAT_GET_TYPE(ret) == DAT_MODEL_NOT_SUPPORTED;
	return s->skip ? 0 : check("dat_ia_reserved_lmr", ret);
}

static const struct {
	const char *name;
	int (*make)(struct stale *s);
} kinds[] = {
	{ "of a freed LMR", freed_lmr },
	{ "of an invalidated LMR", invalidated },
	{ "of an LMR that is bound again", bound_again },
	{ "of an LMR that was freed while bound", freed_fmr },
	{ "that an LMR will have", foretold },
	{ "of an RMR that is not bound any more", unbound_rmr },
	{ "of an RMR before it was bound again", rebound_rmr },
	{ "of a freed RMR", freed_rmr },
	{ "of an RMR to read, to write", read_only_rmr },
	{ "of an RMR to write, to read", write_only_rmr },
	{ "of an RMR, a byte too far", behind_rmr },
	{ "that the peer has invalidated", taken_by_peer },
	{ "to read, to write", read_only },
	{ "to write, to read", write_only },
	{ "for local use", local_only },
	{ "of an LMR, a byte too early", before },
	{ "of an LMR, a byte too far", behind },
	{ "of a bound LMR, behind it", fmr_behind },
	{ "of another PZ", other_pz },
	{ "0", no_key },
	{ "that was guessed", guessed },
	{ "of the reserved LMR", reserved },
};

static int one_stale(int kind)
{
	struct stale s = { .length = SIZE, .read = ham_below(2) };
	struct op op;
	int err = area_open(&s.area, 3 * PAGE_SIZE);

	if (err)
		return err;
	area_window(&s.area, 1 + ham_below(2 * PAGE_SIZE - 2), SIZE, SECRET);
	s.addr = (uintptr_t)s.area.p + s.area.at;
	err = kinds[kind].make(&s);
	if (err)
		return err;
	op_init(&op, NULL, NULL);
	if (!s.skip) {
		err = (s.read ? peer_read : peer_write)(&ham_link, &op, s.rkey, s.addr, s.length) ?:
		      op_wait(&op, "a request with a stale key");
		/* Soft-iWARP is content once it has sent a Write. */
		if (!err && op.status == DAT_DTO_SUCCESS && (s.read || !ham_peer.iwarp))
			err = fail("the peer has succeeded");
		err = err ?: link_over(&ham_link);
		if (err)
			return err;
		err = area_check_guards(&s.area, "stale key") ?:
		      area_is(&s.area, s.area.at, SIZE, SECRET, "stale key") ?:
		      link_again(&ham_link);
	}
	if (s.lmr)
		err = err ?: TRY(dat_lmr_free, s.lmr);
	if (s.rmr)
		err = err ?: TRY(dat_rmr_free, s.rmr);
	if (s.source)
		err = err ?: TRY(dat_lmr_free, s.source);
	if (s.pz)
		err = err ?: TRY(dat_pz_free, s.pz);
	if (!err)
		area_close(&s.area);
	return err;
}

/* stale N */
int do_stale(char *arg)
{
	u32 n, i, kind = 0;
	int err = 0;

	if (kstrtouint(arg, 10, &n))
		n = 1;
	for (i = 0; i < n && !err; i++) {
		for (kind = 0; kind < ARRAY_SIZE(kinds) && !err; kind++) {
			err = one_stale(kind) ?: link_talk(&ham_other);
			if (ham_failed() && !err)
				err = -EIO;
			if (err)
				fail("key %s", kinds[kind].name);
		}
	}
	pr_info("%s stale rounds=%u kinds=%zu\n", err ? "FAIL" : "PASS", i, ARRAY_SIZE(kinds));
	return err;
}

/* ---- zones ---- */

static int refused(const char *what, DAT_RETURN ret, DAT_RETURN type)
{
	if (DAT_GET_TYPE(ret) == type)
		return 0;
	return fail("%s: %s %s", what, major_name(ret), minor_name(ret));
}

/* What a consumer can do wrong in one PZ; everything is refused. */
static int mistakes(DAT_PZ_HANDLE pz, DAT_LMR_HANDLE lmr, DAT_LMR_CONTEXT lkey, DAT_LMR_HANDLE fmr,
		    struct area *area, struct op *op)
{
	DAT_LMR_TRIPLET iov = {
		.virtual_address = (uintptr_t)area->p, .segment_length = 64, .lmr_context = lkey,
	};
	DAT_REGION_DESCRIPTION region = {};
	DAT_EP_HANDLE ep = ham_link.owner.ep;
	DAT_LMR_HANDLE out;
	struct kdat_sg sg = { .sgl = area->sg, .nents = area->nents, .length = area->length };

	region.for_va = area->p;
	return refused("a PZ in use is freed", dat_pz_free(pz), DAT_INVALID_STATE) ?:
	       refused("no length", dat_lmr_kcreate(ham_owner.ia, DAT_MEM_TYPE_VIRTUAL, region, 0,
						    pz, LOCAL, DAT_VA_TYPE_VA, 0, &out, NULL, NULL,
						    NULL, NULL), DAT_INVALID_PARAMETER) ?:
	       refused("unknown rights", dat_lmr_kcreate(ham_owner.ia, DAT_MEM_TYPE_VIRTUAL, region,
							 64, pz, 0x4000, DAT_VA_TYPE_VA, 0, &out,
							 NULL, NULL, NULL, NULL),
		       DAT_INVALID_PARAMETER) ?:
	       refused("a Send from another PZ", dat_ep_post_send(ep, 1, &iov, op_cookie(op), 0),
		       DAT_PROTECTION_VIOLATION) ?:
	       refused("an fmr in another PZ", kdat_lmr_fmr_sg(fmr, &sg, LOCAL, DAT_VA_TYPE_VA, ep,
							       op_cookie(op), 0, NULL, NULL, NULL),
		       DAT_PROTECTION_VIOLATION) ?:
	       refused("an invalidate of what is not bound",
		       dat_lmr_invalidate(fmr, ep, op_cookie(op), 0), DAT_PROTECTION_VIOLATION) ?:
	       refused("an invalidate of what is never bound",
		       dat_lmr_invalidate(lmr, ep, op_cookie(op), 0), DAT_INVALID_STATE);
}

/* zones N: what goes wrong in one PZ is not noticed in another one */
int do_zones(char *arg)
{
	DAT_LMR_HANDLE lmr, fmr;
	DAT_LMR_CONTEXT lkey;
	DAT_PZ_HANDLE pz;
	struct area area;
	struct op op;
	u32 n, i;
	int err;

	if (kstrtouint(arg, 10, &n))
		n = 1;
	op_init(&op, NULL, NULL);
	err = area_open(&area, 3 * PAGE_SIZE) ?: area_sg(&area) ?:
	      TRY(dat_pz_create, ham_owner.ia, &pz) ?:
	      TRY(dat_lmr_allocate, ham_owner.ia, pz, 16, DAT_LMR_SCOPE_PZ, &fmr);
	for (i = 0; i < n && !err; i++) {
		err = lmr_over(&ham_owner, pz, &area, true, LOCAL | REMOTE, &lmr, &lkey, NULL) ?:
		      mistakes(pz, lmr, lkey, fmr, &area, &op) ?: link_talk(&ham_link) ?:
		      TRY(dat_lmr_free, lmr) ?:
		      refused("an LMR is freed twice", dat_lmr_free(lmr), DAT_INVALID_HANDLE) ?:
		      link_talk(&ham_other);
	}
	err = err ?: TRY(dat_lmr_free, fmr) ?: TRY(dat_pz_free, pz);
	area_close(&area);
	pr_info("%s zones rounds=%u\n", err ? "FAIL" : "PASS", i);
	return err;
}
