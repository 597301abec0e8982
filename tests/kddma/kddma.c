// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * kddma - what a device and a CPU see of the same memory: README.md.
 *
 * Each buffer has a second one beside it, with what must be in the first: a case does the same to
 * both, by the adapter and by memcpy(), and then all bytes are compared.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/in6.h>
#include <linux/io.h>
#include <linux/kfifo.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <linux/wait.h>
#include <dat2/kdat.h>

#include "../calls.h"

#define LONG	(60 * HZ)
#define PAGES	6
#define SIZE	(PAGES * PAGE_SIZE)
#define START	1235			/* of the LMR in its buffer */
#define LENGTH	(SIZE - START - 777)
#define LAST	(LENGTH - 1)		/* byte of the LMR that no case but this file writes */

static char *ia_a, *ia_b;
static ushort port = 4735;

module_param(ia_a, charp, 0444);
MODULE_PARM_DESC(ia_a, "interface adapter that connects, e.g. kdhca0-1 (required)");
module_param(ia_b, charp, 0444);
MODULE_PARM_DESC(ia_b, "interface adapter that listens (required)");
module_param(port, ushort, 0444);
MODULE_PARM_DESC(port, "connection qualifier (default 4735)");

static const char *now = "open";	/* the case */

#define fail(fmt, ...)	({ pr_err("%s: " fmt "\n", now, ##__VA_ARGS__); -EIO; })

static DECLARE_WAIT_QUEUE_HEAD(woken);

/* A buffer and an LMR of a part of it. */
struct mem {
	u8 *is, *must;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT lctx;
	DAT_RMR_CONTEXT rctx;
	u32 start;			/* of the LMR */
};

static struct end {
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async, dto, conn, cr;
	DAT_PZ_HANDLE pz;
	DAT_PSP_HANDLE psp;
	DAT_EP_HANDLE ep;
	DAT_EVENT_NUMBER last;		/* event of the connection */
	bool sync, iwarp;
	struct mem mem, back;
	DECLARE_KFIFO(events, DAT_DTO_COMPLETION_EVENT_DATA, 16);
} a, b;

static u32 counter;

/* Other bytes than there were, by the CPU. */
static void fill(struct mem *mem, u32 at, u32 length)
{
	u32 i;

	counter++;
	for (i = 0; i < length; i++)
		mem->must[at + i] = (i * 2654435761u + counter * 40503u) >> 11;
	memcpy(mem->is + at, mem->must + at, length);
}

/* What a peer has done, or so it must be. */
static void done(struct mem *to, u32 at, const struct mem *from, u32 from_at, u32 length)
{
	memcpy(to->must + at, from->must + from_at, length);
}

static int compare(const char *what, const struct mem *mem)
{
	u32 i;

	for (i = 0; i < SIZE; i++) {
		if (mem->is[i] != mem->must[i])
			return fail("%s: %02x, not %02x, at %u; the LMR has %lu bytes at %u", what,
				    mem->is[i], mem->must[i], i, (ulong)LENGTH, mem->start);
	}
	return 0;
}

static int all_right(void)
{
	return compare("the buffer of a", &a.mem) ?: compare("the other one of a", &a.back) ?:
	       compare("the buffer of b", &b.mem) ?: compare("the other one of b", &b.back);
}

static void dto_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct end *end = instance;

	if (event->event_number == DAT_DTO_COMPLETION_EVENT)
		kfifo_in(&end->events, &event->event_data.dto_completion_event_data, 1);
	wake_up_all(&woken);
}

static void conn_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	WRITE_ONCE(((struct end *)instance)->last, event->event_number);
	wake_up_all(&woken);
}

static void cr_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	TRY(dat_cr_accept, event->event_data.cr_arrival_event_data.cr_handle, b.ep, 0, NULL);
}

/* The next completion, which must be this one. */
static int completed(struct end *end, u64 cookie)
{
	DAT_DTO_COMPLETION_EVENT_DATA dto;

	if (!wait_event_timeout(woken, !kfifo_is_empty(&end->events), LONG) ||
	    !kfifo_out(&end->events, &dto, 1))
		return fail("no completion of %llu", cookie);
	if (dto.user_cookie.as_64 != cookie)
		return fail("a completion of %llu, not %llu", dto.user_cookie.as_64, cookie);
	return dto.status ? fail("%llu: %s", cookie, status_name(dto.status)) : 0;
}

static DAT_LMR_TRIPLET local(const struct mem *mem, u32 at, u32 length)
{
	return (DAT_LMR_TRIPLET){
		.virtual_address = (uintptr_t)mem->is + at,
		.segment_length = length,
		.lmr_context = mem->lctx,
	};
}

static DAT_RMR_TRIPLET remote(const struct mem *mem, u32 at, u32 length)
{
	return (DAT_RMR_TRIPLET){
		.virtual_address = (uintptr_t)mem->is + at,
		.segment_length = length,
		.rmr_context = mem->rctx,
	};
}

static DAT_CONTEXT cookie_of(u64 n)
{
	return (DAT_CONTEXT) { .as_64 = n };
}

/* a reads. */
static int rdma_read(struct mem *to, u32 at, const struct mem *from, u32 from_at, u32 length,
		     u64 cookie, DAT_COMPLETION_FLAGS flags)
{
	DAT_LMR_TRIPLET sink = local(to, at, length);
	DAT_RMR_TRIPLET source = remote(from, from_at, length);

	done(to, at, from, from_at, length);
	return TRY(dat_ep_post_rdma_read, a.ep, 1, &sink, cookie_of(cookie), &source, flags);
}

/* a writes; then a Read of a byte, before which all of that has arrived. */
static int rdma_write(const struct mem *from, u32 from_at, struct mem *to, u32 at, u32 length)
{
	DAT_LMR_TRIPLET source = local(from, from_at, length);
	DAT_RMR_TRIPLET target = remote(to, at, length);

	done(to, at, from, from_at, length);
	return TRY(dat_ep_post_rdma_write, a.ep, 1, &source, cookie_of(1), &target, 0) ?:
	       completed(&a, 1) ?:
	       rdma_read(&a.back, START + LAST, &b.back, START + LAST, 1, 2, 0) ?:
	       completed(&a, 2);
}

static int sync(struct end *end, const struct mem *mem, u32 at, u32 length, bool for_read)
{
	DAT_LMR_TRIPLET segment = local(mem, at, length);

	return for_read ? TRY(dat_lmr_sync_rdma_read, end->ia, &segment, 1) :
	       TRY(dat_lmr_sync_rdma_write, end->ia, &segment, 1);
}

static int lmr_create(struct end *end, struct mem *mem, DAT_MEM_PRIV_FLAGS rights)
{
	DAT_REGION_DESCRIPTION region = { .for_va = mem->is + START };

	mem->start = START;
	return TRY(dat_lmr_kcreate, end->ia, DAT_MEM_TYPE_VIRTUAL, region, LENGTH, end->pz, rights,
		   DAT_VA_TYPE_VA, DAT_MEM_OPTIMIZE_DONT_CARE, &mem->lmr, &mem->lctx, &mem->rctx,
		   NULL, NULL);
}

static int lmr_free(struct mem *mem)
{
	DAT_LMR_HANDLE lmr = mem->lmr;

	mem->lmr = NULL;
	return TRY(dat_lmr_free, lmr);
}

/* Odd ones, edges of pages and of the pieces of 2 KiB that bounce buffers have. */
static const struct {
	u32 at, length;
} pieces[] = {
	{ 0, 1 }, { 1, 2 }, { 3, 813 }, { 811, 2 }, { 812, 2049 }, { 2860, 1 }, { 2861, 4096 },
	{ 37, 9001 }, { 4095, 4097 }, { 0, LENGTH - 1 },
};

static int test_send(void)
{
	DAT_LMR_TRIPLET in, out;
	int i, err = 0;

	for (i = 0; i < ARRAY_SIZE(pieces) && !err; i++) {
		fill(&a.mem, START, LENGTH);
		in = local(&b.back, START + pieces[i].at, pieces[i].length);
		out = local(&a.mem, START + pieces[i].at, pieces[i].length);
		done(&b.back, START + pieces[i].at, &a.mem, START + pieces[i].at,
		     pieces[i].length);
		err = TRY(dat_ep_post_recv, b.ep, 1, &in, cookie_of(3), 0) ?:
		      TRY(dat_ep_post_send, a.ep, 1, &out, cookie_of(4), 0) ?:
		      completed(&a, 4) ?: completed(&b, 3);
	}
	return err;
}

static int test_pairs(bool read)
{
	u32 from, to, length;
	int i, k, err = 0;

	for (i = 0; i < ARRAY_SIZE(pieces) && !err; i++) {
		for (k = 0; k < ARRAY_SIZE(pieces) && !err; k++) {
			from = START + pieces[i].at;
			to = START + pieces[k].at;
			length = min(pieces[i].length, pieces[k].length);
			/* a source is sent as it is at the post; what a peer reads is told */
			fill(read ? &b.mem : &a.mem, from, length);
			if (read)
				err = sync(&b, &b.mem, from, length, true) ?:
				      rdma_read(&a.back, to, &b.mem, from, length, 5, 0) ?:
				      completed(&a, 5);
			else
				err = rdma_write(&a.mem, from, &b.mem, to, length) ?:
				      sync(&b, &b.mem, to, length, false);
			err = err ?: all_right();
		}
	}
	return err;
}

static int test_write(void)
{
	return test_pairs(false);
}

static int test_read(void)
{
	return test_pairs(true);
}

static int test_suppressed(void)
{
	fill(&b.mem, START, LAST);
	return sync(&b, &b.mem, START, LAST, true) ?:
	       rdma_read(&a.back, START + 5, &b.mem, START + 4001, 6007, 6,
			 DAT_COMPLETION_SUPPRESS_FLAG) ?:
	       rdma_read(&a.back, START + 7001, &b.mem, START + 3, 801, 7, 0) ?:
	       completed(&a, 7);
}

static int test_sync_write(void)
{
	int err;

	/* around the range, in the same pages: the CPU's before, and after the peer's */
	fill(&b.mem, START, 5000);
	err = sync(&b, &b.mem, START, 5000, false);
	fill(&a.mem, START, LAST);
	err = err ?: rdma_write(&a.mem, START + 99, &b.mem, START + 1001, 2500) ?:
	      sync(&b, &b.mem, START + 1001, 2500, false) ?: all_right();
	fill(&b.mem, START + 900, 1001);	/* over the first half of it */
	err = err ?: sync(&b, &b.mem, START + 900, 1001, false) ?:
	      rdma_write(&a.mem, START + 7, &b.mem, START + 2000, 3) ?:
	      sync(&b, &b.mem, START, LENGTH, false);
	return err;
}

static int test_sync_read(void)
{
	int i, err = 0;

	for (i = 0; i < 4 && !err; i++) {
		fill(&b.mem, START + 11, 4999);
		err = sync(&b, &b.mem, START + 11, 4999, true) ?:
		      rdma_read(&a.back, START + 12, &b.mem, START + 11, 4999, 8, 0) ?:
		      completed(&a, 8);
	}
	return err;
}

static int test_fmr(void)
{
	DAT_PADDR pages[PAGES - 2];
	DAT_REGION_DESCRIPTION region = { .for_physical = pages };
	struct mem fmr = b.mem;		/* its pages but the first and the last one */
	DAT_LMR_TRIPLET source;
	DAT_RMR_TRIPLET target;
	int i, err;

	/* the LMR of the whole is a copy of its own, which the end of this one must not need */
	err = lmr_free(&b.mem) ?:
	      TRY(dat_lmr_allocate, b.ia, b.pz, PAGES - 2, DAT_LMR_SCOPE_PZ, &fmr.lmr);
	if (err)
		return err;
	for (i = 0; i < PAGES - 2; i++)
		pages[i] = page_to_phys(vmalloc_to_page(b.mem.is + (i + 1) * PAGE_SIZE));
	for (i = 0; i < 4 && !err; i++) {
		source = local(&a.mem, START + 3, 6001);
		fill(&b.mem, 0, SIZE);
		err = TRY(dat_lmr_fmr, fmr.lmr, DAT_MEM_TYPE_PHYSICAL, region, PAGES - 2,
			  DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_ZB, b.ep, cookie_of(9), 0, &fmr.lctx,
			  &fmr.rctx) ?:
		      completed(&b, 9);
		fill(&a.mem, START, LAST);
		fill(&b.mem, PAGE_SIZE + 8001, 500);	/* meanwhile, the CPU */
		target = (DAT_RMR_TRIPLET){
			.virtual_address = 1999,
			.segment_length = 6001,
			.rmr_context = fmr.rctx,
		};
		done(&b.mem, PAGE_SIZE + 1999, &a.mem, START + 3, 6001);
		err = err ?:
		      TRY(dat_ep_post_rdma_write, a.ep, 1, &source, cookie_of(1), &target, 0) ?:
		      completed(&a, 1) ?:
		      rdma_read(&a.back, START + LAST, &b.back, START + LAST, 1, 2, 0) ?:
		      completed(&a, 2) ?:
		      TRY(dat_lmr_invalidate, fmr.lmr, b.ep, cookie_of(10), 0) ?:
		      completed(&b, 10) ?: all_right();
	}
	return lmr_free(&fmr) ?: err ?: lmr_create(&b, &b.mem, DAT_MEM_PRIV_ALL_FLAG);
}

static int test_free(void)
{
	int err;

	fill(&a.mem, START, LAST);
	fill(&b.mem, START + 5001, 700);	/* which nobody tells the device of */
	err = rdma_write(&a.mem, START + 1, &b.mem, START + 1001, 4000) ?: lmr_free(&b.mem) ?:
	      all_right();
	/* the device has no copy of it any more that could come back */
	fill(&b.mem, 0, SIZE);
	return err ?: all_right() ?: lmr_create(&b, &b.mem, DAT_MEM_PRIV_ALL_FLAG);
}

static int test_free_source(void)
{
	int err;

	fill(&a.mem, START, LAST);
	err = rdma_write(&a.mem, START, &b.mem, START, LAST) ?:
	      sync(&b, &b.mem, START, LAST, false);
	fill(&a.mem, 0, SIZE);
	return err ?: lmr_free(&a.mem) ?: all_right() ?:
	       lmr_create(&a, &a.mem, DAT_MEM_PRIV_LOCAL_READ_FLAG);
}

static const struct {
	const char *name;
	int (*fn)(void);
} cases[] = {
	{ "send", test_send },
	{ "write", test_write },
	{ "read", test_read },
	{ "suppressed", test_suppressed },
	{ "sync-write", test_sync_write },
	{ "sync-read", test_sync_read },
	{ "fmr", test_fmr },
	{ "free", test_free },
	{ "free-source", test_free_source },
};

static int mem_open(struct end *end, struct mem *mem, DAT_MEM_PRIV_FLAGS rights)
{
	mem->is = vmalloc(SIZE);
	mem->must = vmalloc(SIZE);
	if (!mem->is || !mem->must)
		return -ENOMEM;
	fill(mem, 0, SIZE);
	return lmr_create(end, mem, rights);
}

static void mem_close(struct mem *mem)
{
	if (mem->lmr)
		lmr_free(mem);
	vfree(mem->must);
	vfree(mem->is);
}

/* Everything up to an Endpoint. @addr: out: where it is. */
static int end_open(struct end *end, char *name, struct sockaddr_storage *addr)
{
	const DAT_UPCALL_OBJECT dto = { end, dto_upcall }, conn = { end, conn_upcall };
	const DAT_EP_ATTR attr = {
		.max_message_size = SIZE,
		.max_rdma_size = SIZE,
		.max_recv_dtos = 4, .max_recv_iov = 1,
		.max_request_dtos = 4, .max_request_iov = 1,
		.max_rdma_read_in = 4, .max_rdma_read_out = 4,
		.srq_soft_hw = DAT_HW_DEFAULT,
	};
	DAT_IA_ATTR *ia_attr = kzalloc(sizeof(*ia_attr), GFP_KERNEL);
	DAT_PROVIDER_ATTR provider;
	int err;

	INIT_KFIFO(end->events);
	if (!ia_attr)
		return -ENOMEM;
	err = TRY(dat_ia_open, name, 8, &end->async, &end->ia) ?:
	      TRY(dat_ia_query, end->ia, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, ia_attr,
		  DAT_PROVIDER_FIELD_LMR_SYNC_REQ |
		  DAT_PROVIDER_FIELD_RDMA_WRITE_FOR_RDMA_READ_REQ, &provider) ?:
	      TRY(dat_pz_create, end->ia, &end->pz) ?:
	      TRY(dat_evd_kcreate, end->ia, 16, DAT_UPCALL_SINGLE_INSTANCE, &dto, DAT_EVD_DTO_FLAG,
		  &end->dto) ?:
	      TRY(dat_evd_kcreate, end->ia, 4, DAT_UPCALL_SINGLE_INSTANCE, &conn,
		  DAT_EVD_CONNECTION_FLAG, &end->conn) ?:
	      TRY(dat_ep_create, end->ia, end->pz, end->dto, end->dto, end->conn, &attr, &end->ep);
	if (!err) {
		memcpy(addr, ia_attr->ia_address_ptr,
		       ia_attr->ia_address_ptr->sa_family == AF_INET6 ?
		       sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
		end->sync = provider.lmr_sync_req;
		end->iwarp = provider.rdma_write_for_rdma_read_req;
	}
	kfree(ia_attr);
	return err;
}

static void end_close(struct end *end)
{
	if (end->psp)
		TRY(dat_psp_free, end->psp);
	if (end->cr)
		TRY(dat_evd_free, end->cr);
	if (end->ep)
		TRY(dat_ep_free, end->ep);
	mem_close(&end->back);
	mem_close(&end->mem);
	if (end->conn)
		TRY(dat_evd_free, end->conn);
	if (end->dto)
		TRY(dat_evd_free, end->dto);
	if (end->pz)
		TRY(dat_pz_free, end->pz);
	if (end->ia && TRY(dat_ia_close, end->ia, DAT_CLOSE_GRACEFUL_FLAG))
		dat_ia_close(end->ia, DAT_CLOSE_ABRUPT_FLAG);
}

static int connect(struct sockaddr_storage *addr)
{
	const DAT_UPCALL_OBJECT cr = { NULL, cr_upcall };
	int err;

	err = TRY(dat_evd_kcreate, b.ia, 4, DAT_UPCALL_SINGLE_INSTANCE, &cr, DAT_EVD_CR_FLAG,
		  &b.cr) ?:
	      TRY(dat_psp_create, b.ia, port, b.cr, DAT_PSP_CONSUMER_FLAG, &b.psp) ?:
	      TRY(dat_ep_connect, a.ep, (DAT_IA_ADDRESS_PTR)addr, port, DAT_TIMEOUT_INFINITE, 0,
		  NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
	if (err)
		return err;
	if (!wait_event_timeout(woken, READ_ONCE(a.last) && READ_ONCE(b.last), LONG) ||
	    a.last != DAT_CONNECTION_EVENT_ESTABLISHED ||
	    b.last != DAT_CONNECTION_EVENT_ESTABLISHED)
		return fail("%s and %s", event_name(a.last), event_name(b.last));
	return 0;
}

static int run(void)
{
	const DAT_EVENT_NUMBER up = DAT_CONNECTION_EVENT_ESTABLISHED;
	struct sockaddr_storage addr_a, addr_b;
	int i, err, bad = 0;

	err = end_open(&a, ia_a, &addr_a) ?: end_open(&b, ia_b, &addr_b) ?:
	      /* who only reads its memory has no copy of it that comes back */
	      mem_open(&a, &a.mem, DAT_MEM_PRIV_LOCAL_READ_FLAG) ?:
	      mem_open(&a, &a.back, DAT_MEM_PRIV_LOCAL_WRITE_FLAG |
		       (a.iwarp ? DAT_MEM_PRIV_REMOTE_WRITE_FLAG : 0)) ?:
	      mem_open(&b, &b.mem, DAT_MEM_PRIV_ALL_FLAG) ?:
	      mem_open(&b, &b.back, DAT_MEM_PRIV_ALL_FLAG) ?:
	      connect(&addr_b);
	if (err)
		return err;
	pr_info("lmr_sync_req is %d on %s, %d on %s\n", a.sync, ia_a, b.sync, ia_b);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		now = cases[i].name;
		err = cases[i].fn() ?: all_right();
		pr_info("%s %s\n", err ? "FAIL" : "ok", now);
		bad += !!err;
		if (err)
			break;		/* what comes after that shows nothing */
	}
	now = "close";
	err = TRY(dat_ep_disconnect, a.ep, DAT_CLOSE_ABRUPT_FLAG);
	if (!err && !wait_event_timeout(woken, READ_ONCE(a.last) != up && READ_ONCE(b.last) != up,
					LONG))
		err = fail("no end: %s and %s", event_name(a.last), event_name(b.last));
	return bad ? -EIO : err;
}

static int __init kddma_init(void)
{
	int err;

	if (!ia_a || !ia_b)
		return -EINVAL;
	err = run();
	end_close(&a);
	end_close(&b);
	return err;
}

static void __exit kddma_exit(void)
{
}

module_init(kddma_init);
module_exit(kddma_exit);
MODULE_DESCRIPTION("kDAPL test: what a device and a CPU see of the same memory");
MODULE_AUTHOR("The kdapl authors");
MODULE_LICENSE("Dual BSD/GPL");
