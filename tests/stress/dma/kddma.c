// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * kddma - what a device and a CPU see of the same memory: README.md.
 *
 * Each buffer has a second one beside it, with what must be in the first: a case does the same to
 * both, by the adapter and by memcpy(), and then all bytes are compared.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/io.h>
#include <linux/kfifo.h>
#include <linux/module.h>
#include <linux/vmalloc.h>

#include "../../lib/consumer.h"

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

TEST_STATE;

/* A buffer, of which an LMR has LENGTH bytes from START on. */
struct buffer {
	struct test_mem is;
	u8 *must;
};

static struct side {
	struct test_ia ia;
	DAT_EVD_HANDLE dto, cm;
	struct test_end end;
	struct buffer mem, back;
	DECLARE_KFIFO(events, DAT_DTO_COMPLETION_EVENT_DATA, 16);
} a, b;

static DAT_PSP_HANDLE psp;
static u32 counter;

/* Other bytes than there were, by the CPU. */
static void fill(struct buffer *mem, u32 at, u32 length)
{
	u32 i;

	counter++;
	for (i = 0; i < length; i++)
		mem->must[at + i] = (i * 2654435761u + counter * 40503u) >> 11;
	memcpy(mem->is.p + at, mem->must + at, length);
}

/* What a peer has done, or so it must be. */
static void done(struct buffer *to, u32 at, const struct buffer *from, u32 from_at, u32 length)
{
	memcpy(to->must + at, from->must + from_at, length);
}

static int compare(const char *what, const struct buffer *mem)
{
	u32 i;

	for (i = 0; i < SIZE; i++) {
		if (mem->is.p[i] != mem->must[i])
			return fail("%s: %02x, not %02x, at %u; the LMR has %lu bytes at %u", what,
				    mem->is.p[i], mem->must[i], i, (ulong)LENGTH, START);
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
	struct side *side = instance;

	if (event->event_number == DAT_DTO_COMPLETION_EVENT)
		kfifo_in(&side->events, &event->event_data.dto_completion_event_data, 1);
	wake_up_all(&test_wait);
}

static DAT_EP_HANDLE listening(u32 n)
{
	return b.end.ep;
}

/* The next completion, which must be this one. */
static int completed(struct side *side, u64 cookie)
{
	DAT_DTO_COMPLETION_EVENT_DATA dto;

	if (!await(!kfifo_is_empty(&side->events)) || !kfifo_out(&side->events, &dto, 1))
		return fail("no completion of %llu", cookie);
	if (dto.user_cookie.as_64 != cookie)
		return fail("a completion of %llu, not %llu", dto.user_cookie.as_64, cookie);
	return dto.status ? fail("%llu: %s", cookie, kdat_dto_status_name(dto.status)) : 0;
}

static DAT_CONTEXT cookie_of(u64 n)
{
	return (DAT_CONTEXT) { .as_64 = n };
}

/* a reads. */
static int rdma_read(struct buffer *to, u32 at, const struct buffer *from, u32 from_at, u32 length,
		     u64 cookie, DAT_COMPLETION_FLAGS flags)
{
	DAT_LMR_TRIPLET sink = test_segment(&to->is, at, length);
	DAT_RMR_TRIPLET source = test_target(&from->is, from_at, length);

	done(to, at, from, from_at, length);
	return TRY(dat_ep_post_rdma_read, a.end.ep, 1, &sink, cookie_of(cookie), &source, flags);
}

/* a writes; then a Read of a byte, before which all of that has arrived. */
static int rdma_write(const struct buffer *from, u32 from_at, struct buffer *to, u32 at, u32 length)
{
	DAT_LMR_TRIPLET source = test_segment(&from->is, from_at, length);
	DAT_RMR_TRIPLET target = test_target(&to->is, at, length);

	done(to, at, from, from_at, length);
	return TRY(dat_ep_post_rdma_write, a.end.ep, 1, &source, cookie_of(1), &target, 0) ?:
	       completed(&a, 1) ?:
	       rdma_read(&a.back, START + LAST, &b.back, START + LAST, 1, 2, 0) ?:
	       completed(&a, 2);
}

static int sync(struct side *side, const struct buffer *mem, u32 at, u32 length, bool for_read)
{
	DAT_LMR_TRIPLET segment = test_segment(&mem->is, at, length);

	return for_read ? TRY(dat_lmr_sync_rdma_read, side->ia.h, &segment, 1) :
	       TRY(dat_lmr_sync_rdma_write, side->ia.h, &segment, 1);
}

static int lmr_create(struct side *side, struct buffer *mem, DAT_MEM_PRIV_FLAGS rights)
{
	return test_lmr(&side->ia, side->ia.pz, mem->is.p + START, LENGTH, rights, &mem->is.lmr,
			&mem->is.key, &mem->is.rkey);
}

static int lmr_free(struct buffer *mem)
{
	return FREE(dat_lmr_free, &mem->is.lmr);
}

/* Odd ones, edges of pages and of the pieces of 2 KiB that bounce buffers have. */
static const struct {
	u32 at, length;
} pieces[] = {
	{ 0, 1 }, { 1, 2 }, { 3, 813 }, { 811, 2 }, { 812, 2049 }, { 2860, 1 }, { 2861, 4096 },
	{ 37, 9001 }, { 4095, 4097 }, { 0, LENGTH - 1 },
};

static int case_send(void)
{
	DAT_LMR_TRIPLET in, out;
	int i, err = 0;

	for (i = 0; i < ARRAY_SIZE(pieces) && !err; i++) {
		fill(&a.mem, START, LENGTH);
		in = test_segment(&b.back.is, START + pieces[i].at, pieces[i].length);
		out = test_segment(&a.mem.is, START + pieces[i].at, pieces[i].length);
		done(&b.back, START + pieces[i].at, &a.mem, START + pieces[i].at,
		     pieces[i].length);
		err = TRY(dat_ep_post_recv, b.end.ep, 1, &in, cookie_of(3), 0) ?:
		      TRY(dat_ep_post_send, a.end.ep, 1, &out, cookie_of(4), 0) ?:
		      completed(&a, 4) ?: completed(&b, 3);
	}
	return err;
}

static int case_pairs(bool read)
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

static int case_write(void)
{
	return case_pairs(false);
}

static int case_read(void)
{
	return case_pairs(true);
}

static int case_suppressed(void)
{
	fill(&b.mem, START, LAST);
	return sync(&b, &b.mem, START, LAST, true) ?:
	       rdma_read(&a.back, START + 5, &b.mem, START + 4001, 6007, 6,
			 DAT_COMPLETION_SUPPRESS_FLAG) ?:
	       rdma_read(&a.back, START + 7001, &b.mem, START + 3, 801, 7, 0) ?:
	       completed(&a, 7);
}

static int case_sync_write(void)
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

static int case_sync_read(void)
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

static int case_fmr(void)
{
	DAT_PADDR pages[PAGES - 2];
	DAT_REGION_DESCRIPTION region = { .for_physical = pages };
	struct test_mem fmr = {};	/* of the pages but the first and the last one */
	DAT_LMR_TRIPLET source;
	DAT_RMR_TRIPLET target;
	int i, err;

	/* the LMR of the whole is a copy of its own, which the end of this one must not need */
	err = lmr_free(&b.mem) ?:
	      TRY(dat_lmr_allocate, b.ia.h, b.ia.pz, PAGES - 2, DAT_LMR_SCOPE_PZ, &fmr.lmr);
	if (err)
		return err;
	for (i = 0; i < PAGES - 2; i++)
		pages[i] = page_to_phys(vmalloc_to_page(b.mem.is.p + (i + 1) * PAGE_SIZE));
	for (i = 0; i < 4 && !err; i++) {
		source = test_segment(&a.mem.is, START + 3, 6001);
		fill(&b.mem, 0, SIZE);
		err = TRY(dat_lmr_fmr, fmr.lmr, DAT_MEM_TYPE_PHYSICAL, region, PAGES - 2,
			  DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_ZB, b.end.ep, cookie_of(9), 0,
			  &fmr.key, &fmr.rkey) ?:
		      completed(&b, 9);
		fill(&a.mem, START, LAST);
		fill(&b.mem, PAGE_SIZE + 8001, 500);	/* meanwhile, the CPU */
		target = test_target(&fmr, 1999, 6001);	/* zero-based */
		done(&b.mem, PAGE_SIZE + 1999, &a.mem, START + 3, 6001);
		err = err ?:
		      TRY(dat_ep_post_rdma_write, a.end.ep, 1, &source, cookie_of(1), &target, 0) ?:
		      completed(&a, 1) ?:
		      rdma_read(&a.back, START + LAST, &b.back, START + LAST, 1, 2, 0) ?:
		      completed(&a, 2) ?:
		      TRY(dat_lmr_invalidate, fmr.lmr, b.end.ep, cookie_of(10), 0) ?:
		      completed(&b, 10) ?: all_right();
	}
	return FREE(dat_lmr_free, &fmr.lmr) ?: err ?: lmr_create(&b, &b.mem, DAT_MEM_PRIV_ALL_FLAG);
}

static int case_free(void)
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

static int case_free_source(void)
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
	{ "send", case_send },
	{ "write", case_write },
	{ "read", case_read },
	{ "suppressed", case_suppressed },
	{ "sync-write", case_sync_write },
	{ "sync-read", case_sync_read },
	{ "fmr", case_fmr },
	{ "free", case_free },
	{ "free-source", case_free_source },
};

static int mem_open(struct side *side, struct buffer *mem, DAT_MEM_PRIV_FLAGS rights)
{
	mem->is.p = vmalloc(SIZE);
	mem->must = vmalloc(SIZE);
	if (!mem->is.p || !mem->must)
		return -ENOMEM;
	fill(mem, 0, SIZE);
	return lmr_create(side, mem, rights);
}

static void mem_close(struct buffer *mem)
{
	test_mem_close(&mem->is);
	vfree(mem->must);
}

static int side_open(struct side *side, const char *name)
{
	const DAT_EP_ATTR attr = {
		.max_message_size = SIZE,
		.max_rdma_size = SIZE,
		.max_recv_dtos = 4, .max_recv_iov = 1,
		.max_request_dtos = 4, .max_request_iov = 1,
		.max_rdma_read_in = 4, .max_rdma_read_out = 4,
		.srq_soft_hw = DAT_HW_DEFAULT,
	};

	INIT_KFIFO(side->events);
	return test_ia_open(&side->ia, name) ?:
	       test_evd(&side->ia, 16, DAT_EVD_DTO_FLAG, dto_upcall, side, &side->dto) ?:
	       test_evd(&side->ia, 4, DAT_EVD_CONNECTION_FLAG | DAT_EVD_CR_FLAG, test_cm_upcall,
			listening, &side->cm) ?:
	       test_end_open(&side->ia, &side->end, side->dto, side->dto, side->cm, &attr);
}

static void side_close(struct side *side)
{
	FREE(dat_ep_free, &side->end.ep);
	mem_close(&side->back);
	mem_close(&side->mem);
	FREE(dat_evd_free, &side->cm);
	FREE(dat_evd_free, &side->dto);
	test_ia_close(&side->ia);
}

static int run(void)
{
	int i, err, bad = 0;

	err = side_open(&a, ia_a) ?: side_open(&b, ia_b) ?:
	      /* who only reads its memory has no copy of it that comes back */
	      mem_open(&a, &a.mem, DAT_MEM_PRIV_LOCAL_READ_FLAG) ?:
	      mem_open(&a, &a.back, DAT_MEM_PRIV_LOCAL_WRITE_FLAG |
		       (a.ia.iwarp ? DAT_MEM_PRIV_REMOTE_WRITE_FLAG : 0)) ?:
	      mem_open(&b, &b.mem, DAT_MEM_PRIV_ALL_FLAG) ?:
	      mem_open(&b, &b.back, DAT_MEM_PRIV_ALL_FLAG) ?:
	      TRY(dat_psp_create, b.ia.h, port, b.cm, DAT_PSP_CONSUMER_FLAG, &psp) ?:
	      test_connect(a.end.ep, &b.ia, port, 0) ?:
	      test_connected("the connection", &a.end, &b.end);
	if (err)
		return err;
	pr_info("lmr_sync_req is %d on %s, %d on %s\n", a.ia.sync, ia_a, b.ia.sync, ia_b);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		test_now = cases[i].name;
		err = cases[i].fn() ?: all_right();
		pr_info("%s %s\n", err ? "FAIL" : "ok", test_now);
		bad += !!err;
		if (err)
			break;		/* what comes after that shows nothing */
	}
	test_now = "close";
	err = TRY(dat_ep_disconnect, a.end.ep, DAT_CLOSE_ABRUPT_FLAG) ?:
	      test_over("the connection", &a.end, &b.end);
	return bad ? -EIO : err;
}

static int __init kddma_init(void)
{
	int err;

	if (!ia_a || !ia_b)
		return -EINVAL;
	err = run();
	FREE(dat_psp_free, &psp);
	side_close(&a);
	side_close(&b);
	return err ?: failed() ? -EIO : 0;
}

static void __exit kddma_exit(void)
{
}

module_init(kddma_init);
module_exit(kddma_exit);
MODULE_DESCRIPTION("kDAPL test: what a device and a CPU see of the same memory");
MODULE_AUTHOR("The kDAPL for Linux authors");
MODULE_LICENSE("Dual BSD/GPL");
