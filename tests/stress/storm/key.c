// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Keys: while some threads register, bind, invalidate and free regions, and a peer
 * takes keys away, others on all CPUs ask what the keys stand for, by posts that are
 * flushed and by sync calls. A model says which answers are allowed.
 *
 * A region has a list of states. Who changes it appends the next state and raises
 * @hi before the call, and @lo when the change is certain. A question that began at
 * @lo and ended at @hi may have been answered by any state between them.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/scatterlist.h>

#include "kdstorm.h"

#define HISTORY		64
#define SIZE		8192	/* of the memory of a region */
#define PORT		28000
#define NO_PORT		28001	/* nobody listens there */
#define DEPTH		32	/* posts of a looker under way */

enum kind { FIXED, FMR, REMOTE, KINDS };

enum { ANSWER_OK = BIT(0), ANSWER_RANGE = BIT(1), ANSWER_KEY = BIT(2) };

struct state {
	u32 key;		/* 0: there is none */
	u64 start;
	u32 length;
};

struct region {
	enum kind kind;
	u32 lo, hi;		/* states; the rest of the list is older */
	struct state history[HISTORY];
	u8 *p;
	DAT_LMR_HANDLE lmr;
	struct storm_thread owner;
	u64 changes;
};

struct looker {
	struct test_end conn;
	struct storm_thread thread;
	u32 quota;
	u64 answers[3], flushed;
};

static struct keys {
	DAT_EVD_HANDLE dto[2], cm[2], flushed;
	DAT_PSP_HANDLE psp;
	struct test_end conn[2];	/* connected to each other */
	struct test_mem in, out;	/* messages of the peer */
	struct region region[KINDS];
	struct looker looker[STORM_CPUS];
	bool stop;
} *keys;

/* ---- the model ---- */

static void state_next(struct region *r, u32 key, u64 start, u32 length)
{
	struct state *s = &r->history[(r->hi + 1) % HISTORY];

	WRITE_ONCE(s->key, key);
	WRITE_ONCE(s->start, start);
	WRITE_ONCE(s->length, length);
	smp_store_release(&r->hi, r->hi + 1);	/* after the state, before the call */
}

static void state_certain(struct region *r)
{
	smp_store_release(&r->lo, r->hi);	/* after the call */
	r->changes++;
}

static u32 state_answer(const struct state *s, u32 key, u64 addr, u32 length)
{
	if (READ_ONCE(s->key) != key)
		return ANSWER_KEY;
	return addr >= READ_ONCE(s->start) &&
	       addr + length <= READ_ONCE(s->start) + READ_ONCE(s->length) ? ANSWER_OK :
	       ANSWER_RANGE;
}

/* Answers that are allowed since @lo; 0: that was too long ago. */
static u32 allowed(struct region *r, u32 lo, u32 key, u64 addr, u32 length)
{
	u32 hi = smp_load_acquire(&r->hi);	/* before the states */
	u32 at, answers = 0;

	if (hi - lo >= HISTORY / 2)
		return 0;
	for (at = lo; at != hi + 1; at++)
		answers |= state_answer(&r->history[at % HISTORY], key, addr, length);
	smp_rmb();	/* the list against its end */
	return READ_ONCE(r->hi) - lo < HISTORY / 2 ? answers : 0;
}

/* ---- what changes ---- */

static int region_fixed(struct region *r, u32 at, u32 length)
{
	DAT_LMR_CONTEXT key;
	DAT_LMR_HANDLE lmr;
	int err;

	err = test_lmr(&storm_a, storm_a.pz, r->p + at, length, LOCAL_RIGHTS, &lmr, &key, NULL);
	if (err)
		return err;
	state_next(r, key, (uintptr_t)r->p + at, length);
	state_certain(r);
	cond_resched();
	state_next(r, 0, 0, 0);
	err = TRY(dat_lmr_free, lmr);
	state_certain(r);
	return err;
}

static int region_bind(struct region *r, u32 at, u32 length, DAT_RMR_CONTEXT *rkey)
{
	struct kdat_sg piece = { .nents = 1, .offset = at, .length = length };
	DAT_LMR_CONTEXT foretold, key;
	struct scatterlist sg;
	struct test_op op;
	int err;

	sg_init_one(&sg, r->p, SIZE);
	piece.sgl = &sg;
	test_op_init(&op, NULL, NULL);
	err = TRY(kdat_lmr_next_contexts, r->lmr, &foretold, NULL);
	if (err)
		return err;
	state_next(r, foretold, virt_to_phys(r->p) + at, length);
	err = TRY(kdat_lmr_fmr_sg, r->lmr, &piece, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA,
		  keys->conn[0].ep, test_cookie(&op), 0, &key, rkey, NULL);
	if (err)
		return err;
	state_certain(r);
	if (key != foretold)
		storm_fault(STORM_KEYS, "key 0x%x instead of 0x%x", key, foretold);
	return test_op_good(&op, "fmr");
}

static int region_invalidate(struct region *r)
{
	struct test_op op;
	int err;

	test_op_init(&op, NULL, NULL);
	state_next(r, 0, 0, 0);
	err = TRY(dat_lmr_invalidate, r->lmr, keys->conn[0].ep, test_cookie(&op), 0);
	if (err)
		return err;
	state_certain(r);
	return test_op_good(&op, "invalidate");
}

/* The peer takes the key away; one Receive is posted for that. */
static int region_remote(struct region *r, DAT_RMR_CONTEXT rkey)
{
	DAT_LMR_TRIPLET in = test_segment(&keys->in, 0, 64), out = test_segment(&keys->out, 0, 64);
	struct test_op recv, send;
	int err;

	test_op_init(&recv, NULL, NULL);
	test_op_init(&send, NULL, NULL);
	err = TRY(dat_ep_post_recv, keys->conn[0].ep, 1, &in, test_cookie(&recv), 0);
	if (err)
		return err;
	state_next(r, 0, 0, 0);
	err = TRY(dat_ep_post_send_with_invalidate, keys->conn[1].ep, 1, &out, test_cookie(&send),
		  0, DAT_TRUE, rkey) ?:
	      test_op_good(&recv, "Receive with invalidate");
	if (err)
		return err;
	state_certain(r);
	return test_op_good(&send, "Send with invalidate");
}

static void owner(struct storm_thread *t)
{
	struct region *r = t->arg;
	DAT_RMR_CONTEXT rkey;
	u32 at, length;
	int err = 0;

	while (!READ_ONCE(keys->stop) && !err) {
		at = storm_rnd(&t->rnd, SIZE / 2);
		length = 1 + storm_rnd(&t->rnd, SIZE / 2);
		if (r->kind == FIXED)
			err = region_fixed(r, at, length);
		else
			err = region_bind(r, at, length, &rkey) ?:
			      (r->kind == FMR ? region_invalidate(r) : region_remote(r, rkey));
		cond_resched();
	}
	if (err)
		WRITE_ONCE(keys->stop, true);
}

/* ---- who asks ---- */

static u32 answer(DAT_RETURN ret)
{
	switch (DAT_GET_TYPE(ret)) {
	case DAT_SUCCESS:
		return ANSWER_OK;
	case DAT_INVALID_PARAMETER:
		return ANSWER_RANGE;
	case DAT_PRIVILEGES_VIOLATION:
		return ANSWER_KEY;
	default:
		return 0;
	}
}

static void ask(struct looker *looker, struct rnd_state *rnd)
{
	struct region *r = &keys->region[storm_rnd(rnd, KINDS)];
	DAT_DTO_COOKIE cookie = { .as_ptr = looker };
	u32 lo = smp_load_acquire(&r->lo);	/* before the question */
	u32 want, got;
	/* the state of now, or one of before */
	struct state *s = &r->history[(lo - storm_rnd(rnd, 3)) % HISTORY];
	DAT_LMR_TRIPLET iov = {
		.virtual_address = READ_ONCE(s->start),
		.segment_length = READ_ONCE(s->length),
		.lmr_context = READ_ONCE(s->key),
	};
	bool sync = storm_rnd(rnd, 2);
	DAT_RETURN ret;

	if (!iov.lmr_context || !iov.segment_length)
		return;
	switch (storm_rnd(rnd, 4)) {
	case 0:		/* a byte too far */
		iov.virtual_address++;
		break;
	case 1:		/* a byte too early */
		iov.virtual_address--;
		break;
	}
	if (sync)
		ret = dat_lmr_sync_rdma_read(storm_a.h, &iov, 1);
	else
		ret = dat_ep_post_send(looker->conn.ep, 1, &iov, cookie, 0);
	want = allowed(r, lo, iov.lmr_context, iov.virtual_address, iov.segment_length);
	if (!want || DAT_GET_TYPE(ret) == DAT_INSUFFICIENT_RESOURCES)
		return;
	if (sync && want & ANSWER_KEY)	/* which it does not tell from the other one */
		want |= ANSWER_RANGE;
	got = answer(ret);
	storm_checked(STORM_KEYS, 1);
	looker->answers[got == ANSWER_OK ? 0 : got == ANSWER_RANGE ? 1 : 2]++;
	if (!(got & want))
		storm_fault(STORM_KEYS, "%s, region %d, key 0x%x: 0x%x, allowed are %x",
			    sync ? "sync" : "Send", r->kind, iov.lmr_context, ret, want);
}

static void look(struct storm_thread *t)
{
	struct looker *looker = t->arg;
	u32 i;

	for (i = 0; i < looker->quota && !READ_ONCE(keys->stop); i++) {
		ask(looker, &t->rnd);
		if (i % 16 == 0)
			cond_resched();
	}
}

/* ---- the house ---- */

static void flushed_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	struct looker *looker = dto->user_cookie.as_ptr;

	looker->flushed++;
	if (dto->status != DAT_DTO_ERR_FLUSHED)
		storm_fault(STORM_KEYS, "a Send without a connection: status %d", dto->status);
}

static DAT_EP_HANDLE passive(u32 n)
{
	return keys->conn[1].ep;
}

static int ep_open(int side, DAT_EVD_HANDLE dto, struct test_end *conn)
{
	const DAT_EP_ATTR attr = {
		.max_message_size = SIZE,
		.max_recv_dtos = 4, .max_recv_iov = 1,
		.max_request_dtos = DEPTH, .max_request_iov = 1,
		.srq_soft_hw = DAT_HW_DEFAULT,
	};

	return test_end_open(side ? &storm_b : &storm_a, conn, dto, dto, keys->cm[side], &attr);
}

static int side_open(int side)
{
	struct test_ia *ia = side ? &storm_b : &storm_a;

	return test_evd(ia, 64, DAT_EVD_DTO_FLAG, test_op_upcall, NULL, &keys->dto[side]) ?:
	       test_evd(ia, 64, DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG, test_cm_upcall,
			passive, &keys->cm[side]) ?:
	       ep_open(side, keys->dto[side], &keys->conn[side]);
}

static int connected(void)
{
	return TRY(dat_psp_create, storm_b.h, PORT, keys->cm[1], DAT_PSP_CONSUMER_FLAG,
		   &keys->psp) ?:
	       test_connect(keys->conn[0].ep, &storm_b, PORT, 0) ?:
	       test_connected("the peer", &keys->conn[0], &keys->conn[1]);
}

/* Endpoints whose connection was refused: what is posted there is looked at and flushed. */
static int lookers_open(u32 quota)
{
	struct looker *looker;
	int i, err = test_evd(&storm_a, STORM_CPUS * DEPTH, DAT_EVD_DTO_FLAG, flushed_upcall,
			      NULL, &keys->flushed);

	for (i = 0; i < storm_cpus && !err; i++) {
		looker = &keys->looker[i];
		looker->quota = quota;
		err = ep_open(0, keys->flushed, &looker->conn) ?:
		      test_connect(looker->conn.ep, &storm_b, NO_PORT, i);
		if (!err && (!await(READ_ONCE(looker->conn.outcomes)) ||
			     looker->conn.outcome == DAT_CONNECTION_EVENT_ESTABLISHED))
			err = fail("nobody listens, and %s", kdat_event_name(looker->conn.outcome));
	}
	return err;
}

static int regions_open(void)
{
	struct region *r;
	int i, err = 0;

	for (i = 0; i < KINDS && !err; i++) {
		r = &keys->region[i];
		r->kind = i;
		r->p = kzalloc(SIZE, GFP_KERNEL);
		if (!r->p)
			return -ENOMEM;
		if (i != FIXED)
			err = TRY(dat_lmr_allocate, storm_a.h, storm_a.pz, 4, DAT_LMR_SCOPE_PZ,
				  &r->lmr);
	}
	return err;
}

static int run_all(void)
{
	struct looker *looker;
	int i, err = 0;

	for (i = 0; i < KINDS && !err; i++)
		err = storm_thread_start(&keys->region[i].owner, "owner", owner, &keys->region[i],
					 i, storm_cpu(i));
	for (i = 0; i < storm_cpus && !err; i++)
		err = storm_thread_start(&keys->looker[i].thread, "looker", look, &keys->looker[i],
					 i, storm_cpu(i));
	for (i = 0; i < storm_cpus && !err; i++) {
		looker = &keys->looker[i];
		while (!wait_for_completion_timeout(&looker->thread.done, HZ)) {
			if (storm_overtime())
				WRITE_ONCE(keys->stop, true);
		}
	}
	WRITE_ONCE(keys->stop, true);
	for (i = 0; i < KINDS; i++)
		storm_thread_stop(&keys->region[i].owner);
	for (i = 0; i < storm_cpus; i++) {
		looker = &keys->looker[i];
		storm_thread_stop(&looker->thread);
		pr_info("looker %d: good %llu, range %llu, key %llu\n", i, looker->answers[0],
			looker->answers[1], looker->answers[2]);
	}
	pr_info("changes: %llu registered, %llu bound, %llu by the peer\n",
		keys->region[FIXED].changes, keys->region[FMR].changes,
		keys->region[REMOTE].changes);
	return err;
}

static void close_keys(void)
{
	int i;

	FREE(dat_psp_free, &keys->psp);
	for (i = 0; i < 2; i++)
		FREE(dat_ep_free, &keys->conn[i].ep);
	for (i = 0; i < STORM_CPUS; i++)
		FREE(dat_ep_free, &keys->looker[i].conn.ep);
	for (i = 0; i < KINDS; i++) {
		FREE(dat_lmr_free, &keys->region[i].lmr);
		kfree(keys->region[i].p);
	}
	test_mem_close(&keys->in);
	test_mem_close(&keys->out);
	for (i = 0; i < 2; i++) {
		FREE(dat_evd_free, &keys->dto[i]);
		FREE(dat_evd_free, &keys->cm[i]);
	}
	FREE(dat_evd_free, &keys->flushed);
}

int storm_keys(u32 questions)
{
	int err;

	if (!questions || storm_overtime())
		return 0;
	keys = kzalloc(sizeof(*keys), GFP_KERNEL);
	if (!keys)
		return -ENOMEM;
	err = side_open(0) ?: side_open(1) ?:
	      test_mem_open(&storm_a, &keys->in, 64, LOCAL_RIGHTS) ?:
	      test_mem_open(&storm_b, &keys->out, 64, LOCAL_RIGHTS) ?: regions_open() ?:
	      connected() ?:
	      lookers_open(questions / storm_cpus) ?: run_all();
	close_keys();
	kfree(keys);
	return err;
}
