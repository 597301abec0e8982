// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Portals accept connections of initiators. A portal outlives its IA: when the IA is
 * removed, all sessions end, and the portal tries to reopen it once a second.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/slab.h>
#include <linux/string.h>

#include "target.h"

#define KDT_MIN_DTOS		128	/* minimum for queues of a useful depth */
#define KDT_BACKLOG		64	/* requests waiting for their upcall */
#define KDT_MAX_REQUESTS	128	/* requests in work items */

struct kdt_request {
	struct work_struct work;
	struct kdt_portal *portal;
	DAT_CR_HANDLE cr;
};

static void kdt_reject(DAT_CR_HANDLE cr, u16 reason)
{
	struct kdblk_reject no = {
		.magic = cpu_to_le32(KDBLK_MAGIC),
		.version = cpu_to_le16(KDBLK_VERSION),
		.reason = cpu_to_le16(reason),
	};

	dat_cr_reject(cr, sizeof(no), &no);
}

/* The private data may be longer: InfiniBand and RoCE pad it with zeroes. */
static u16 kdt_check_hello(DAT_CR_HANDLE cr, struct kdblk_connect *hello)
{
	u32 queue, depth;
	DAT_CR_PARAM cp;

	if (dat_cr_query(cr, DAT_CR_FIELD_ALL, &cp) != DAT_SUCCESS ||
	    cp.private_data_size < (DAT_COUNT)sizeof(*hello))
		return KDBLK_REFUSE_FORMAT;
	memcpy(hello, cp.private_data, sizeof(*hello));
	queue = le16_to_cpu(hello->queue);
	depth = le16_to_cpu(hello->depth);
	if (le32_to_cpu(hello->magic) != KDBLK_MAGIC)
		return KDBLK_REFUSE_FORMAT;
	if (le16_to_cpu(hello->version) != KDBLK_VERSION)
		return KDBLK_REFUSE_VERSION;
	if (memchr_inv(hello->reserved, 0, sizeof(hello->reserved)) ||
	    !depth || depth > KDBLK_MAX_DEPTH || queue >= KDBLK_MAX_QUEUES ||
	    !queue != !hello->session)
		return KDBLK_REFUSE_FORMAT;
	return 0;
}

static void kdt_request_work(struct work_struct *work)
{
	struct kdt_request *request = container_of(work, struct kdt_request, work);
	struct kdt_portal *portal = request->portal;
	struct kdblk_connect hello;
	u16 reason;

	reason = kdt_check_hello(request->cr, &hello);
	if (!reason)
		reason = kdt_session_connect(portal, request->cr, &hello);
	if (reason)
		kdt_reject(request->cr, reason);
	kfree(request);
	mutex_lock(&kdt_lock);
	if (!--portal->requests)
		wake_up(&portal->no_requests);
	mutex_unlock(&kdt_lock);
}

/* Process context, but setting up a queue takes long, so leave it to a work item. */
static void kdt_cr_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	DAT_CR_HANDLE cr = event->event_data.cr_arrival_event_data.cr_handle;
	struct kdt_portal *portal = instance;
	struct kdt_request *request;

	request = kzalloc(sizeof(*request), GFP_KERNEL);
	mutex_lock(&kdt_lock);
	if (!request || portal->requests >= KDT_MAX_REQUESTS) {
		mutex_unlock(&kdt_lock);
		kfree(request);
		kdt_reject(cr, KDBLK_REFUSE_RESOURCES);
		return;
	}
	portal->requests++;
	mutex_unlock(&kdt_lock);
	request->portal = portal;
	request->cr = cr;
	INIT_WORK(&request->work, kdt_request_work);
	queue_work(kdt_ctl_wq, &request->work);
}

static bool kdt_no_requests(struct kdt_portal *portal)
{
	bool none;

	mutex_lock(&kdt_lock);
	none = !portal->requests;
	mutex_unlock(&kdt_lock);
	return none;
}

/* Connections report their own errors. The only event of the IA is its removal. */
static void kdt_async_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct kdt_portal *portal = instance;

	if (event->event_number != DAT_ASYNC_ERROR_IA_CATASTROPHIC)
		return;
	WRITE_ONCE(portal->ia_gone, true);
	queue_work(kdt_portal_wq, &portal->gone);
}

/* Also accepts a portal that was opened only in part. */
static void kdt_portal_close(struct kdt_portal *portal, const char *why)
{
	lockdep_assert_held(&portal->lock);
	if (portal->psp)
		dat_psp_free(portal->psp);
	if (portal->cr_evd)
		dat_evd_free(portal->cr_evd);
	mutex_lock(&kdt_lock);
	portal->closing = true;
	mutex_unlock(&kdt_lock);
	wait_event(portal->no_requests, kdt_no_requests(portal));
	kdt_end_of_portal(portal, why);
	kdt_pool_free(&portal->pool);
	if (portal->pz)
		dat_pz_free(portal->pz);
	if (portal->ia)
		dat_ia_close(portal->ia, DAT_CLOSE_ABRUPT_FLAG);
	portal->psp = NULL;
	portal->cr_evd = NULL;
	portal->pz = NULL;
	portal->ia = NULL;
	portal->async_evd = NULL;
}

static int kdt_portal_query(struct kdt_portal *portal)
{
	DAT_PROVIDER_ATTR *provider = kzalloc(sizeof(*provider), GFP_KERNEL);
	DAT_IA_ATTR *attr = kzalloc(sizeof(*attr), GFP_KERNEL);
	int err = -ENOMEM;

	if (attr && provider)
		err = kdblk_errno(dat_ia_query(portal->ia, NULL, DAT_IA_FIELD_ALL, attr,
					       DAT_PROVIDER_FIELD_ALL, provider));
	if (!err) {
		portal->iwarp = provider->rdma_write_for_rdma_read_req;
		portal->max_dtos = attr->max_dto_per_ep;
		portal->max_reads = attr->max_rdma_read_per_ep_out;
		if (portal->max_dtos < KDT_MIN_DTOS || portal->max_reads < 1)
			err = -EOPNOTSUPP;
	}
	kfree(attr);
	kfree(provider);
	return err;
}

static int kdt_portal_open(struct kdt_portal *portal)
{
	const DAT_UPCALL_OBJECT async = { portal, kdt_async_upcall };
	const DAT_UPCALL_OBJECT cr = { portal, kdt_cr_upcall };
	DAT_RETURN ret;
	int err;

	lockdep_assert_held(&portal->lock);
	portal->closing = false;
	portal->ia_gone = false;
	ret = dat_ia_open(portal->ia_name, 16, &portal->async_evd, &portal->ia);
	if (ret == DAT_SUCCESS)
		ret = dat_evd_modify_upcall(portal->async_evd, DAT_UPCALL_SINGLE_INSTANCE, &async,
					    DAT_UPCALL_INVOC_ANY);
	if (ret == DAT_SUCCESS)
		ret = dat_pz_create(portal->ia, &portal->pz);
	err = kdblk_errno(ret) ?: kdt_portal_query(portal);
	/* On iWARP each session has its own pool, see struct kdt_session. */
	if (!err && !portal->iwarp)
		err = kdt_pool_alloc(&portal->pool, portal->ia, portal->pz, portal->cfg_buffers,
				     portal->cfg_max_io, KDBLK_LOCAL);
	if (!err) {
		ret = dat_evd_kcreate(portal->ia, KDT_BACKLOG, DAT_UPCALL_SINGLE_INSTANCE, &cr,
				      DAT_EVD_CR_FLAG, &portal->cr_evd);
		if (ret == DAT_SUCCESS)
			ret = dat_psp_create(portal->ia, portal->cfg_port, portal->cr_evd,
					     DAT_PSP_CONSUMER_FLAG, &portal->psp);
		err = kdblk_errno(ret);
	}
	if (err) {
		kdt_portal_close(portal, "the portal cannot be opened");
		return err;
	}
	portal->state = KDT_PORTAL_LISTENING;
	pr_info("portal %s: listening on %s, port %u\n", kdt_portal_name(portal), portal->ia_name,
		portal->cfg_port);
	return 0;
}

static void kdt_portal_wait(struct kdt_portal *portal, int err)
{
	if (err != portal->last_err)
		pr_warn("portal %s: cannot listen on %s (%pe), trying again every second\n",
			kdt_portal_name(portal), portal->ia_name, ERR_PTR(err));
	portal->last_err = err;
	portal->state = KDT_PORTAL_WAITING;
	queue_delayed_work(kdt_portal_wq, &portal->look, HZ);
}

static void kdt_portal_look(struct work_struct *work)
{
	struct kdt_portal *portal = container_of(work, struct kdt_portal, look.work);
	int err;

	mutex_lock(&portal->lock);
	if (portal->state == KDT_PORTAL_WAITING) {
		err = kdt_portal_open(portal);
		if (err)
			kdt_portal_wait(portal, err);
		else
			portal->last_err = 0;
	}
	mutex_unlock(&portal->lock);
}

static void kdt_portal_gone(struct work_struct *work)
{
	struct kdt_portal *portal = container_of(work, struct kdt_portal, gone);

	mutex_lock(&portal->lock);
	if (portal->state == KDT_PORTAL_LISTENING && READ_ONCE(portal->ia_gone)) {
		kdt_portal_close(portal, "the adapter is gone");
		kdt_portal_wait(portal, -ENODEV);
	}
	mutex_unlock(&portal->lock);
}

void kdt_portal_init(struct kdt_portal *portal)
{
	mutex_init(&portal->lock);
	init_waitqueue_head(&portal->no_requests);
	INIT_DELAYED_WORK(&portal->look, kdt_portal_look);
	INIT_WORK(&portal->gone, kdt_portal_gone);
	portal->cfg_port = KDBLK_PORT;
	portal->cfg_depth = 128;
	portal->cfg_queues = 16;
	portal->cfg_max_io = 131072;
	portal->cfg_buffers = 64;
	portal->cfg_inline_size = 8192;
}

/**
 * kdt_portal_enable - start to listen
 * @portal: disabled portal
 *
 * If the IA does not exist or has no address, the portal waits for it.
 *
 * Return: 0 or -errno.
 */
int kdt_portal_enable(struct kdt_portal *portal)
{
	int err;

	lockdep_assert_held(&portal->lock);
	if (!portal->ia_name[0])
		return -EINVAL;
	portal->last_err = 0;
	err = kdt_portal_open(portal);
	if (err == -ENODEV || err == -EADDRNOTAVAIL) {
		kdt_portal_wait(portal, err);
		return 0;
	}
	if (err)
		pr_err("portal %s: cannot listen on %s, port %u: %pe\n", kdt_portal_name(portal),
		       portal->ia_name, portal->cfg_port, ERR_PTR(err));
	return err;
}

/* End all sessions and return when nothing of them is left. */
void kdt_portal_disable(struct kdt_portal *portal)
{
	mutex_lock(&portal->lock);
	if (portal->state == KDT_PORTAL_LISTENING)
		kdt_portal_close(portal, "the portal is disabled");
	portal->state = KDT_PORTAL_DISABLED;
	mutex_unlock(&portal->lock);
}

/* Called before the portal is freed, when it can no longer be enabled. */
void kdt_portal_drop(struct kdt_portal *portal)
{
	kdt_portal_disable(portal);
	/*
	 * Cancel the work only here, not in kdt_portal_disable(): a concurrent enable relies
	 * on it. Work that runs for a disabled portal checks the state and does nothing.
	 */
	cancel_delayed_work_sync(&portal->look);
	cancel_work_sync(&portal->gone);
}
