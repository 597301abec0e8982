// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Sweeps of what is posted. None of that allocates.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/io.h>
#include <linux/kernel.h>
#include <linux/scatterlist.h>
#include <linux/wait.h>

#include "../calls.h"
#include "kdfail.h"

/* What is where in the memory, by pages. */
enum { AT_OUT, AT_IN, AT_TARGET, AT_BOUND };

#define SIZE	512

static DECLARE_WAIT_QUEUE_HEAD(wait);
static atomic_t done;

static void counted_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	DAT_DTO_COMPLETION_STATUS status = event->event_data.dto_completion_event_data.status;

	if (event->event_number == DAT_RMR_BIND_COMPLETION_EVENT)
		status = event->event_data.rmr_completion_event_data.status;
	if (status != DAT_DTO_SUCCESS)
		fail("completed as %s", status_name(status));
	atomic_inc(&done);
	wake_up_all(&wait);
}

static const DAT_UPCALL_OBJECT on_counted = { NULL, counted_upcall };
static const DAT_CONTEXT cookie = { .as_64 = 4711 };

static DAT_RETURN completed(int n)
{
	if (!wait_event_idle_timeout(wait, atomic_read(&done) == n, LONG))
		fail("%d completions of %d", atomic_read(&done), n);
	atomic_set(&done, 0);
	return DAT_SUCCESS;
}

DAT_RETURN kdf_done_1(void)
{
	return completed(1);
}

DAT_RETURN kdf_done_2(void)
{
	return completed(2);
}

static DAT_LMR_TRIPLET segment(int page)
{
	return (DAT_LMR_TRIPLET) {
		.virtual_address = (uintptr_t)kdf.mem + page * PAGE_SIZE, .segment_length = SIZE,
		.lmr_context = kdf.key,
	};
}

static DAT_RMR_TRIPLET remote(DAT_RMR_CONTEXT key)
{
	return (DAT_RMR_TRIPLET) {
		.virtual_address = (uintptr_t)kdf.mem + AT_TARGET * PAGE_SIZE,
		.segment_length = SIZE, .rmr_context = key,
	};
}

/* ---- messages ---- */

static DAT_RETURN recv_on(DAT_EP_HANDLE ep)
{
	DAT_LMR_TRIPLET iov = segment(AT_IN);

	return dat_ep_post_recv(ep, 1, &iov, cookie, 0);
}

static DAT_RETURN send_on(DAT_EP_HANDLE ep)
{
	DAT_LMR_TRIPLET iov = segment(AT_OUT);

	return dat_ep_post_send(ep, 1, &iov, cookie, 0);
}

DAT_RETURN kdf_post_far_recv(void)
{
	return recv_on(kdf.far);
}

static DAT_RETURN post_recv(void)
{
	return recv_on(kdf.near);
}

static DAT_RETURN recv_used(void)
{
	return send_on(kdf.far) ?: completed(2);
}

static DAT_RETURN post_send(void)
{
	return send_on(kdf.near);
}

/* On soft-RoCE, and a Read on iWARP, two requests of the device. */
static DAT_RETURN send_fenced(void)
{
	DAT_LMR_TRIPLET iov = segment(AT_OUT);

	return dat_ep_post_send(kdf.near, 1, &iov, cookie, DAT_COMPLETION_BARRIER_FENCE_FLAG);
}

static DAT_RETURN recv_early(void)
{
	return recv_on(kdf.out);
}

static DAT_RETURN recv_late(void)
{
	return recv_on(kdf.active);
}

static DAT_RETURN send_late(void)
{
	return send_on(kdf.active);
}

static DAT_RETURN srq_recv(void)
{
	DAT_LMR_TRIPLET iov = segment(AT_IN);

	return dat_srq_post_recv(kdf.out, 1, &iov, cookie);
}

/* ---- windows ---- */

static DAT_RMR_CONTEXT window;		/* key of kdf.out */

static DAT_RETURN bind_on(DAT_EP_HANDLE ep, DAT_SEG_LENGTH length)
{
	DAT_LMR_TRIPLET part = segment(AT_TARGET);

	part.segment_length = length;
	return dat_rmr_bind(kdf.out, kdf.lmr, &part,
			    DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG,
			    DAT_VA_TYPE_VA, ep, cookie, 0, &window);
}

static DAT_RETURN bind(void)
{
	return bind_on(kdf.near, SIZE);
}

static DAT_RETURN bind_nothing(void)
{
	return bind_on(kdf.near, 0);
}

static DAT_RETURN bound(void)
{
	return kdf_rmr_create() ?: bind() ?: completed(1);
}

static DAT_RETURN bound_far(void)
{
	return kdf_rmr_create() ?: bind_on(kdf.far, SIZE) ?: completed(1) ?: kdf_post_far_recv();
}

DAT_RETURN kdf_done_1_rmr(void)
{
	return completed(1) ?: kdf_rmr_free();
}

static DAT_RETURN done_2_rmr(void)
{
	return completed(2) ?: kdf_rmr_free();
}

static DAT_RETURN send_inv(void)
{
	DAT_LMR_TRIPLET iov = segment(AT_OUT);

	return dat_ep_post_send_with_invalidate(kdf.near, 1, &iov, cookie, 0, DAT_TRUE, window);
}

static DAT_RETURN rdma_write(void)
{
	const DAT_RMR_TRIPLET to = remote(kdf.rkey);
	DAT_LMR_TRIPLET iov = segment(AT_OUT);

	return dat_ep_post_rdma_write(kdf.near, 1, &iov, cookie, &to, 0);
}

static DAT_RETURN rdma_read(void)
{
	const DAT_RMR_TRIPLET from = remote(kdf.rkey);
	DAT_LMR_TRIPLET iov = segment(AT_IN);

	return dat_ep_post_rdma_read(kdf.near, 1, &iov, cookie, &from, 0);
}

static DAT_RETURN rdma_read_rmr(void)
{
	const DAT_RMR_TRIPLET from = remote(kdf.rkey), to = remote(window);

	return dat_ep_post_rdma_read_to_rmr(kdf.near, &to, cookie, &from, 0);
}

/* ---- fast registration ---- */

static DAT_RETURN fmr_pages(DAT_MEM_TYPE type, DAT_REGION_DESCRIPTION region)
{
	DAT_LMR_CONTEXT key;
	DAT_RMR_CONTEXT rkey;

	return dat_lmr_fmr(kdf.out, type, region, 1, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA,
			   kdf.near, cookie, 0, &key, &rkey);
}

static DAT_RETURN fmr(void)
{
	DAT_PADDR page = virt_to_phys(kdf.mem + AT_BOUND * PAGE_SIZE);

	return fmr_pages(DAT_MEM_TYPE_PHYSICAL,
			 (DAT_REGION_DESCRIPTION) { .for_physical = &page });
}

static DAT_RETURN fmr_var_pages(void)
{
	DAT_PADDR page = virt_to_phys(kdf.mem + AT_BOUND * PAGE_SIZE);
	const DAT_PHYSICAL_VAR_PAGES array = { .page_size = PAGE_SIZE, .pages = &page };

	return fmr_pages(DAT_MEM_TYPE_PHYSICAL_VAR_PAGES,
			 (DAT_REGION_DESCRIPTION) { .for_array = array });
}

static DAT_RETURN fmr_sg(void)
{
	struct scatterlist sgl;
	const struct kdat_sg sg = { .sgl = &sgl, .nents = 1, .length = PAGE_SIZE };
	DAT_LMR_CONTEXT key;
	DAT_RMR_CONTEXT rkey;
	DAT_VADDR start;

	sg_init_one(&sgl, kdf.mem + AT_BOUND * PAGE_SIZE, PAGE_SIZE);
	return kdat_lmr_fmr_sg(kdf.out, &sg, DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, kdf.near,
			       cookie, 0, &key, &rkey, &start);
}

static DAT_RETURN lmr_invalidate(void)
{
	return dat_lmr_invalidate(kdf.out, kdf.near, cookie, 0);
}

static DAT_RETURN fmr_bound(void)
{
	return kdf_lmr_allocate() ?: fmr() ?: completed(1);
}

static DAT_RETURN done_1_lmr(void)
{
	return completed(1) ?: kdf_lmr_free();
}

/* ---- a list ---- */

static DAT_RETURN list_ready(void)
{
	return kdf_lmr_allocate() ?: kdf_post_far_recv();
}

static DAT_RETURN post_list(void)
{
	struct scatterlist sgl;
	const struct kdat_sg sg = { .sgl = &sgl, .nents = 1, .length = PAGE_SIZE };
	DAT_LMR_TRIPLET iov = segment(AT_OUT);
	const struct kdat_request requests[] = {
		{ .op = KDAT_REQUEST_LMR_FMR, .lmr_handle = kdf.out, .sg = &sg,
		  .mem_privileges = DAT_MEM_PRIV_ALL_FLAG, .user_cookie = cookie },
		{ .op = KDAT_REQUEST_SEND, .num_segments = 1, .local_iov = &iov,
		  .user_cookie = cookie },
		{ .op = KDAT_REQUEST_LMR_INVALIDATE, .lmr_handle = kdf.out,
		  .user_cookie = cookie },
	};
	DAT_COUNT failed;

	sg_init_one(&sgl, kdf.mem + AT_BOUND * PAGE_SIZE, PAGE_SIZE);
	return kdat_ep_post_list(kdf.near, requests, ARRAY_SIZE(requests), &failed);
}

static DAT_RETURN list_done(void)
{
	return completed(4) ?: kdf_lmr_free();
}

const struct sweep sweeps_of_posts[] = {
	{ "dat_ep_post_recv", NULL, post_recv, recv_used, FRUGAL },
	{ "dat_ep_post_recv, unconnected", kdf_ep_create, recv_early, kdf_ep_free, FRUGAL },
	{ "dat_ep_post_recv, flushed", kdf_connected_over, recv_late, kdf_reset, FRUGAL },
	{ "dat_ep_post_send", kdf_post_far_recv, post_send, kdf_done_2, FRUGAL },
	{ "dat_ep_post_send, fenced", kdf_post_far_recv, send_fenced, kdf_done_2, FRUGAL },
	{ "dat_ep_post_send, flushed", kdf_connected_over, send_late, kdf_reset, FRUGAL },
	{ "dat_ep_post_send_with_invalidate", bound_far, send_inv, done_2_rmr, FRUGAL },
	{ "dat_ep_post_rdma_write", NULL, rdma_write, kdf_done_1, FRUGAL },
	{ "dat_ep_post_rdma_read", NULL, rdma_read, kdf_done_1, FRUGAL },
	{ "dat_ep_post_rdma_read_to_rmr", bound, rdma_read_rmr, kdf_done_1_rmr, FRUGAL },
	{ "dat_srq_post_recv", kdf_srq_create, srq_recv, kdf_srq_free, FRUGAL },
	{ "dat_rmr_bind", kdf_rmr_create, bind, kdf_done_1_rmr, FRUGAL },
	{ "dat_rmr_bind, again", bound, bind, kdf_done_1_rmr, FRUGAL },
	{ "dat_rmr_bind, closing", bound, bind_nothing, kdf_done_1_rmr, FRUGAL },
	{ "dat_rmr_free, bound", bound, kdf_rmr_free, NULL, FREES },
	{ "dat_lmr_fmr", kdf_lmr_allocate, fmr, done_1_lmr, FRUGAL },
	{ "dat_lmr_fmr, PHYSICAL_VAR_PAGES", kdf_lmr_allocate, fmr_var_pages, done_1_lmr, FRUGAL },
	{ "kdat_lmr_fmr_sg", kdf_lmr_allocate, fmr_sg, done_1_lmr, FRUGAL },
	{ "dat_lmr_invalidate", fmr_bound, lmr_invalidate, done_1_lmr, FRUGAL },
	{ "dat_lmr_free, bound", fmr_bound, kdf_lmr_free, NULL, FREES },
	{ "kdat_ep_post_list", list_ready, post_list, list_done, FRUGAL },
	{}
};

/* ---- the ground ---- */

int posts_open(void)
{
	return TRY(dat_evd_kcreate, kdf.ia, 64, DAT_UPCALL_SINGLE_INSTANCE, &on_counted,
		   DAT_EVD_DTO_FLAG | DAT_EVD_RMR_BIND_FLAG, &kdf.counted) ?:
	       TRY(kdf_ep, kdf.counted, 1, &kdf.near) ?: TRY(kdf_ep, kdf.counted, 1, &kdf.far) ?:
	       TRY(kdf_connect, kdf.near, kdf.far);
}

void posts_close(void)
{
	if (kdf.near)
		TRY(dat_ep_free, kdf.near);
	if (kdf.far)
		TRY(dat_ep_free, kdf.far);
	if (kdf.counted)
		TRY(dat_evd_free, kdf.counted);
}
