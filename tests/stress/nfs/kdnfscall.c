// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * kdnfscall - RPCs of a program of its own by proto=rdma, whose memory is watched: nobody writes
 * into it, or reads it, once its call is over, however that came about (README.md).
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cred.h>
#include <linux/gfp.h>
#include <linux/inet.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/prandom.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/sunrpc/clnt.h>
#include <linux/sunrpc/xdr.h>
#include <linux/sunrpc/xprt.h>
#include <net/net_namespace.h>
#include "../../lib/faults.h"
#include "program.h"

#define CALL_PAGES	160	/* of a call: more than one MR of some adapters */
#define CALL_SETS	4	/* of pages, for each thread */

static char *server = "192.0.2.1";
static ushort port = 20049;
static uint threads = 8;
static uint seconds = 10;
static uint timeout = 1000;
static uint kill_ms;
static uint seed = 1;

module_param(server, charp, 0444);
MODULE_PARM_DESC(server, "its address");
module_param(port, ushort, 0444);
module_param(threads, uint, 0444);
MODULE_PARM_DESC(threads, "that call at a time");
module_param(seconds, uint, 0444);
module_param(timeout, uint, 0444);
MODULE_PARM_DESC(timeout, "milliseconds after which a call is given up");
module_param(kill_ms, uint, 0444);
MODULE_PARM_DESC(kill_ms, "end all calls now and then, after so many milliseconds at most; 0: never");
module_param(seed, uint, 0444);

TEST_STATE;

struct call_set {
	struct page *pages[CALL_PAGES];
	u32 proc;		/* that has used it last, for messages */
	int result;
};

struct call_thread {
	struct task_struct *task;
	struct completion done;
	struct rnd_state random;
	struct call_set sets[CALL_SETS];
	u32 n, good;
};

struct call_args {
	struct page **pages;
	u32 base, length;
};

static struct rpc_clnt *call_clnt;
static unsigned long call_until;

/* ---- the program ---- */

static void call_results(struct rpc_rqst *req, const struct call_args *args, u32 flags)
{
	rpc_prepare_reply_pages(req, args->pages, args->base, args->length, 0);
	req->rq_rcv_buf.flags |= flags;
}

static void call_arguments(struct rpc_rqst *req, struct xdr_stream *xdr,
			   const struct call_args *args, u32 flags)
{
	xdr_write_pages(xdr, args->pages, args->base, args->length);
	req->rq_snd_buf.flags |= flags;
}

static void encode_get(struct rpc_rqst *req, struct xdr_stream *xdr, const void *args)
{
	call_results(req, args, XDRBUF_READ);
}

static void encode_put(struct rpc_rqst *req, struct xdr_stream *xdr, const void *args)
{
	call_arguments(req, xdr, args, XDRBUF_WRITE);
}

static void encode_reply(struct rpc_rqst *req, struct xdr_stream *xdr, const void *args)
{
	call_results(req, args, 0);
}

/* The first half is read, the second one written. */
static void encode_all(struct rpc_rqst *req, struct xdr_stream *xdr, const void *p)
{
	const struct call_args *args = p;
	struct call_args half = { args->pages, args->base, args->length / 2 };

	half.length = min(half.length, (u32)(CALL_PAGES / 2 * PAGE_SIZE - half.base));
	call_arguments(req, xdr, &half, 0);
	half.pages += CALL_PAGES / 2;
	call_results(req, &half, 0);
}

static int decode_any(struct rpc_rqst *req, struct xdr_stream *xdr, void *result)
{
	return 0;
}

static const struct rpc_procinfo call_procs[] = {
	[CALL_GET] = {
		.p_proc = CALL_GET, .p_encode = encode_get, .p_decode = decode_any,
		.p_arglen = 4, .p_replen = 4, .p_statidx = CALL_GET, .p_name = "get",
	},
	[CALL_PUT] = {
		.p_proc = CALL_PUT, .p_encode = encode_put, .p_decode = decode_any,
		.p_arglen = 4, .p_replen = 4, .p_statidx = CALL_PUT, .p_name = "put",
	},
	[CALL_REPLY] = {
		.p_proc = CALL_REPLY, .p_encode = encode_reply, .p_decode = decode_any,
		.p_arglen = 4, .p_replen = 4, .p_statidx = CALL_REPLY, .p_name = "reply",
	},
	[CALL_ALL] = {
		.p_proc = CALL_ALL, .p_encode = encode_all, .p_decode = decode_any,
		.p_arglen = 4, .p_replen = 4, .p_statidx = CALL_ALL, .p_name = "all",
	},
};

static unsigned int call_counts[ARRAY_SIZE(call_procs)];

static const struct rpc_version call_version = {
	.number = CALL_VERSION,
	.nrprocs = ARRAY_SIZE(call_procs),
	.procs = call_procs,
	.counts = call_counts,
};

static const struct rpc_version *call_versions[] = { NULL, &call_version };
static const struct rpc_program call_program;
static struct rpc_stat call_stat = { .program = &call_program };

static const struct rpc_program call_program = {
	.name = "kdnfscall",
	.number = CALL_PROGRAM,
	.nrvers = ARRAY_SIZE(call_versions),
	.version = call_versions,
	.stats = &call_stat,
};

/* ---- memory ---- */

static void set_fill(struct call_set *set, u8 with)
{
	int i;

	for (i = 0; i < CALL_PAGES; i++)
		memset(page_address(set->pages[i]), with, PAGE_SIZE);
}

static void set_check(const struct call_set *set)
{
	const u8 *bad;
	int i;

	for (i = 0; i < CALL_PAGES; i++) {
		bad = memchr_inv(page_address(set->pages[i]), CALL_GONE, PAGE_SIZE);
		if (bad) {
			fail("page %d of procedure %u, which gave %d, was written afterwards: 0x%x",
			     i, set->proc, set->result, *bad);
			return;
		}
	}
}

/* Around the range nothing changes; inside a call that has succeeded it may. */
static void set_check_around(const struct call_set *set, u32 base, u32 length, u8 was)
{
	u32 i, end = base + length;

	for (i = 0; i < CALL_PAGES * PAGE_SIZE; i++) {
		if (i == base && length)
			i = end;
		if (i >= CALL_PAGES * PAGE_SIZE)
			break;
		if (((u8 *)page_address(set->pages[i / PAGE_SIZE]))[i % PAGE_SIZE] != was) {
			fail("byte %u, outside of %u to %u, was written", i, base, end);
			return;
		}
	}
}

/* ---- threads ---- */

static void call_once(struct call_thread *t)
{
	struct call_set *set = &t->sets[t->n++ % CALL_SETS];
	u32 proc = CALL_GET + prandom_u32_state(&t->random) % (CALL_PROCS - CALL_GET);
	struct call_args args = { .pages = set->pages };
	const struct rpc_message msg = { .rpc_proc = &call_procs[proc], .rpc_argp = &args };
	static const u32 most[] = { 64, 5000, 70000, (CALL_PAGES - 1) * PAGE_SIZE };

	args.base = prandom_u32_state(&t->random) % PAGE_SIZE;
	args.length = 1 + prandom_u32_state(&t->random) %
			  most[prandom_u32_state(&t->random) % ARRAY_SIZE(most)];
	set_check(set);
	set_fill(set, CALL_OURS);
	set->proc = proc;
	set->result = rpc_call_sync(call_clnt, &msg, RPC_TASK_SOFT | RPC_TASK_SOFTCONN);
	if (!set->result)
		t->good++;
	if (proc == CALL_GET || proc == CALL_REPLY)
		set_check_around(set, args.base, args.length, CALL_OURS);
	else if (proc == CALL_PUT)
		set_check_around(set, 0, 0, CALL_OURS);
	set_fill(set, CALL_GONE);
	if (set->result == -ECONNREFUSED || set->result == -ENOTCONN)
		schedule_timeout_uninterruptible(HZ / 20);
}

static int call_thread(void *arg)
{
	struct call_thread *t = arg;
	int i;

	for (i = 0; i < CALL_SETS; i++)
		set_fill(&t->sets[i], CALL_GONE);
	while (time_before(jiffies, call_until) && !failed())
		call_once(t);
	schedule_timeout_uninterruptible(msecs_to_jiffies(2 * timeout));
	for (i = 0; i < CALL_SETS; i++)
		set_check(&t->sets[i]);
	kthread_complete_and_exit(&t->done, 0);
}

static void thread_free(struct call_thread *t)
{
	int i;

	for (i = 0; i < CALL_SETS * CALL_PAGES; i++)
		if (t->sets[i / CALL_PAGES].pages[i % CALL_PAGES])
			__free_page(t->sets[i / CALL_PAGES].pages[i % CALL_PAGES]);
}

static int thread_start(struct call_thread *t, u32 number)
{
	int i;

	init_completion(&t->done);
	prandom_seed_state(&t->random, seed + 1000 * number);
	for (i = 0; i < CALL_SETS * CALL_PAGES; i++) {
		t->sets[i / CALL_PAGES].pages[i % CALL_PAGES] = alloc_page(GFP_KERNEL);
		if (!t->sets[i / CALL_PAGES].pages[i % CALL_PAGES])
			return -ENOMEM;
	}
	t->task = kthread_run(call_thread, t, "kdnfscall/%u", number);
	if (!IS_ERR(t->task))
		return 0;
	i = PTR_ERR(t->task);
	t->task = NULL;
	return i;
}

static int call_create(void)
{
	struct rpc_timeout to = {
		.to_initval = msecs_to_jiffies(timeout),
		.to_maxval = msecs_to_jiffies(timeout),
	};
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct rpc_create_args args = {
		.net = current->nsproxy->net_ns,
		.protocol = XPRT_TRANSPORT_RDMA,
		.address = (struct sockaddr *)&addr,
		.addrsize = sizeof(addr),
		.timeout = &to,
		.servername = server,
		.program = &call_program,
		.version = CALL_VERSION,
		.authflavor = RPC_AUTH_NULL,
		.flags = RPC_CLNT_CREATE_NOPING,
		.cred = current_cred(),
	};

	if (!in4_pton(server, -1, (u8 *)&addr.sin_addr, -1, NULL))
		return -EINVAL;
	call_clnt = rpc_create(&args);
	return PTR_ERR_OR_ZERO(call_clnt);
}

static void call_kill(void)
{
	struct rnd_state random;

	prandom_seed_state(&random, seed);
	while (kill_ms && time_before(jiffies, call_until) && !failed()) {
		schedule_timeout_uninterruptible(1 + msecs_to_jiffies(prandom_u32_state(&random) %
								       kill_ms));
		rpc_killall_tasks(call_clnt);
	}
}

static int __init call_init(void)
{
	struct call_thread *t = kvcalloc(threads, sizeof(*t), GFP_KERNEL);
	u32 i, n = 0, good = 0;
	int err = t ? call_create() : -ENOMEM;

	if (err) {
		kvfree(t);
		return err;
	}
	call_until = jiffies + seconds * HZ;
	for (i = 0; i < threads && !err; i++)
		err = thread_start(&t[i], i);
	call_kill();
	for (i = 0; i < threads; i++) {
		if (t[i].task)
			wait_for_completion(&t[i].done);
		n += t[i].n;
		good += t[i].good;
		thread_free(&t[i]);
	}
	kvfree(t);
	pr_info("%s: %u calls, %u succeeded, seed %u\n", failed() || err ? "FAIL" : "PASS", n, good,
		seed);
	rpc_shutdown_client(call_clnt);
	return failed() ? -EIO : err;
}

static void __exit call_exit(void)
{
}

module_init(call_init);
module_exit(call_exit);
MODULE_DESCRIPTION("RPCs by proto=rdma whose memory is watched");
MODULE_AUTHOR("The kDAPL for Linux authors");
MODULE_LICENSE("Dual BSD/GPL");
