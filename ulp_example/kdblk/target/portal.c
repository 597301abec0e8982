// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Portals accept connections of initiators. A portal outlives its adapter: when that is removed,
 * all sessions end, and the portal waits for an adapter of that name. Adapters that appear and
 * addresses that come, go and move are reported, so nothing polls for them: see
 * kdt_portals_look().
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/inetdevice.h>
#include <linux/netdevice.h>
#include <linux/notifier.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <net/addrconf.h>

#include "target.h"

#define KDT_MIN_DEPTH		31	/* of a useful queue */
#define KDT_BACKLOG		64	/* requests waiting for their upcall */
#define KDT_MAX_REQUESTS	128	/* requests in work items */
/*
 * A new IPv6 address is used when the kernel has found that nobody else has it. That takes one or
 * two seconds by default, and its end is not reported: look so many times, once a second.
 */
#define KDT_DAD_LOOKS		5

static LIST_HEAD(kdt_portals);
static DEFINE_SPINLOCK(kdt_portals_lock);	/* kdt_portals */

struct kdt_request {
	struct work_struct work;
	struct kdt_adapter *adapter;
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
	u32 queue, depth, version;
	DAT_CR_PARAM cp;

	if (dat_cr_query(cr, DAT_CR_FIELD_ALL, &cp) != DAT_SUCCESS ||
	    cp.private_data_size < (DAT_COUNT)sizeof(*hello))
		return KDBLK_REFUSE_FORMAT;
	memcpy(hello, cp.private_data, sizeof(*hello));
	queue = le16_to_cpu(hello->queue);
	depth = le16_to_cpu(hello->depth);
	if (le32_to_cpu(hello->magic) != KDBLK_MAGIC)
		return KDBLK_REFUSE_FORMAT;
	version = le16_to_cpu(hello->version);
	if (version < KDBLK_VERSION_MIN || version > KDBLK_VERSION)
		return KDBLK_REFUSE_VERSION;
	if (version == KDBLK_VERSION_MIN && hello->answer_size)
		return KDBLK_REFUSE_FORMAT;
	if (((!queue || version == KDBLK_VERSION_MIN) &&
	     memchr_inv(hello->proof, 0, sizeof(hello->proof))) ||
	    !depth || depth > KDBLK_MAX_DEPTH || queue >= KDBLK_MAX_QUEUES ||
	    !queue != !hello->session)
		return KDBLK_REFUSE_FORMAT;
	return 0;
}

static void kdt_request_work(struct work_struct *work)
{
	struct kdt_request *request = container_of(work, struct kdt_request, work);
	struct kdt_portal *portal = request->adapter->portal;
	struct kdblk_connect hello;
	u16 reason;

	reason = kdt_check_hello(request->cr, &hello);
	if (!reason)
		reason = kdt_session_connect(request->adapter, request->cr, &hello);
	if (reason)
		kdt_reject(request->cr, reason);
	kdt_adapter_put(request->adapter);
	kfree(request);
	mutex_lock(&kdt_lock);
	WRITE_ONCE(portal->requests, portal->requests - 1);
	if (!portal->requests)
		wake_up(&portal->no_requests);
	mutex_unlock(&kdt_lock);
}

/* Process context, but setting up a queue takes long, so leave it to a work item. */
static void kdt_cr_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	DAT_CR_HANDLE cr = event->event_data.cr_arrival_event_data.cr_handle;
	struct kdt_adapter *adapter = instance;
	struct kdt_portal *portal = adapter->portal;
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
	kref_get(&adapter->ref);
	request->adapter = adapter;
	request->cr = cr;
	INIT_WORK(&request->work, kdt_request_work);
	queue_work(kdt_ctl_wq, &request->work);
}

/* Connections report their own errors. The only event of the IA is its removal. */
static void kdt_async_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct kdt_portal *portal = instance;

	if (event->event_number == DAT_ASYNC_ERROR_IA_CATASTROPHIC)
		mod_delayed_work(kdt_portal_wq, &portal->look, 0);
}

/* Refuse the requests that no upcall has taken: nobody else knows them, and the IA may stay. */
static void kdt_portal_refuse(DAT_EVD_HANDLE cr_evd)
{
	DAT_EVENT event;

	dat_evd_modify_upcall(cr_evd, DAT_UPCALL_TEARDOWN, DAT_UPCALL_SAME, DAT_UPCALL_INVOC_NEW);
	while (dat_evd_dequeue(cr_evd, &event) == DAT_SUCCESS)
		dat_cr_reject(event.event_data.cr_arrival_event_data.cr_handle, 0, NULL);
}

/* Accept no new connections. Those that are there go on. */
static void kdt_portal_unlisten(struct kdt_portal *portal)
{
	if (portal->psp)
		dat_psp_free(portal->psp);
	if (portal->cr_evd) {
		kdt_portal_refuse(portal->cr_evd);
		dat_evd_free(portal->cr_evd);
	}
	portal->psp = NULL;
	portal->cr_evd = NULL;
}

/* Also accepts what was opened only in part. */
static void kdt_adapter_release(struct kref *ref)
{
	struct kdt_adapter *adapter = container_of(ref, struct kdt_adapter, ref);

	kdt_pool_free(&adapter->pool);
	if (adapter->pz)
		dat_pz_free(adapter->pz);
	dat_ia_close(adapter->ia, DAT_CLOSE_ABRUPT_FLAG);
	kfree(adapter);
}

void kdt_adapter_put(struct kdt_adapter *adapter)
{
	kref_put(&adapter->ref, kdt_adapter_release);
}

/*
 * Give up the adapter. All its sessions end, but this does not wait for the last of their
 * commands: another adapter may be there already, and serve other disks.
 */
static void kdt_portal_leave(struct kdt_portal *portal, const char *why)
{
	struct kdt_adapter *adapter = portal->adapter;

	lockdep_assert_held(&portal->lock);
	kdt_portal_unlisten(portal);
	if (!adapter)
		return;
	mutex_lock(&kdt_lock);
	adapter->closing = true;
	kdt_end_of_adapter(adapter, why);
	mutex_unlock(&kdt_lock);
	portal->adapter = NULL;
	kdt_adapter_put(adapter);
}

/* Also wait for the end of all sessions, those of earlier adapters as well. */
static void kdt_portal_close(struct kdt_portal *portal, const char *why)
{
	kdt_portal_leave(portal, why);
	wait_event(portal->no_requests, !READ_ONCE(portal->requests));
	/* the last session holds this lock until it no longer uses the portal */
	mutex_lock(&kdt_lock);
	mutex_unlock(&kdt_lock);
	kdt_end_of_portal(portal, why);
}

/*
 * Each command context needs two requests, plus some whose completion is pending, and as many
 * events; each tag a Receive, and one more for administration: see kdt_queue_create().
 */
static int kdt_most_tags(const DAT_IA_ATTR *attr)
{
	int dtos = attr->max_dto_per_ep / 2 - 2 * KDT_MAX_BATCH - 1;
	int events = (attr->max_evd_qlen - 4 * KDT_MAX_BATCH) / 3 - 1;

	return min(dtos, events);
}

static int kdt_adapter_query(struct kdt_adapter *adapter)
{
	DAT_PROVIDER_ATTR *provider = kzalloc(sizeof(*provider), GFP_KERNEL);
	DAT_IA_ATTR *attr = kzalloc(sizeof(*attr), GFP_KERNEL);
	int err = -ENOMEM;

	if (attr && provider)
		err = kdat_errno(dat_ia_query(adapter->ia, NULL, DAT_IA_FIELD_ALL, attr,
					      DAT_PROVIDER_FIELD_ALL, provider));
	if (!err) {
		adapter->iwarp = provider->rdma_write_for_rdma_read_req;
		adapter->max_depth = max(kdt_most_tags(attr), 0);
		adapter->max_reads = attr->max_rdma_read_per_ep_out;
		if (adapter->max_depth < KDT_MIN_DEPTH || adapter->max_reads < 1)
			err = -EOPNOTSUPP;
	}
	kfree(attr);
	kfree(provider);
	return err;
}

/* Say why something failed, in the log and in last_error. Return @err. */
int kdt_portal_fail(struct kdt_portal *portal, int err, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(portal->last_error, sizeof(portal->last_error), fmt, args);
	va_end(args);
	pr_err("portal %s: %s\n", kdt_portal_name(portal), portal->last_error);
	return err;
}

/* Say why a portal does not listen, in last_error. */
static void kdt_portal_why(struct kdt_portal *portal, int err)
{
	const char *why = err == -ENODEV ? "this adapter does not exist" :
			  err == -EADDRNOTAVAIL ? "this adapter has no address" :
			  /* on RoCE a work item of the kernel makes a GID of it */
			  err == -EHOSTUNREACH ? "its address cannot be used yet" :
			  err == -EADDRINUSE ? "something else listens on this port" :
			  err == -EOPNOTSUPP ? "this adapter can do too few requests or Reads" :
			  err == -ENOMEM ? "out of memory" : NULL;

	snprintf(portal->last_error, sizeof(portal->last_error),
		 "cannot listen on %.64s, port %u%s%s (%pe)", portal->ia_name, portal->cfg_port,
		 why ? ": " : "", why ?: "", ERR_PTR(err));
}

/* Make what sessions need of an adapter. The portal owns @ia from now on, even after a failure. */
static int kdt_portal_take(struct kdt_portal *portal, DAT_IA_HANDLE ia, DAT_EVD_HANDLE async_evd)
{
	const DAT_UPCALL_OBJECT async = { portal, kdt_async_upcall };
	struct kdt_adapter *adapter = kzalloc(sizeof(*adapter), GFP_KERNEL);
	int err;

	if (!adapter) {
		dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
		return -ENOMEM;
	}
	kref_init(&adapter->ref);
	adapter->portal = portal;
	adapter->ia = ia;
	spin_lock_init(&adapter->buf_lock);
	INIT_LIST_HEAD(&adapter->pool.free);
	INIT_LIST_HEAD(&adapter->shares);
	INIT_LIST_HEAD(&adapter->hungry);
	err = kdat_errno(dat_evd_modify_upcall(async_evd, DAT_UPCALL_SINGLE_INSTANCE, &async,
					       DAT_UPCALL_INVOC_ANY)) ?:
	      kdat_errno(dat_pz_create(ia, &adapter->pz)) ?:
	      kdt_adapter_query(adapter);
	/* On iWARP each session has its own pool, see struct kdt_session. */
	if (!err && !adapter->iwarp)
		err = kdt_pool_alloc(&adapter->pool, ia, adapter->pz, portal->cfg_buffers,
				     portal->cfg_max_io, KDBLK_LOCAL);
	if (err)
		kdt_adapter_put(adapter);
	else
		portal->adapter = adapter;
	return err;
}

/*
 * Open the adapter by its name. A portal whose adapter has lost its address keeps the adapter and
 * its sessions, unless the name stands for another one that has an address.
 */
static int kdt_portal_adapter(struct kdt_portal *portal)
{
	DAT_EVD_HANDLE async_evd = DAT_HANDLE_NULL;
	struct kdblk_place place;
	DAT_IA_HANDLE ia;
	int err;

	err = kdat_errno(dat_ia_open(portal->ia_name, 16, &async_evd, &ia));
	if (err == -ENODEV && portal->adapter)	/* the name is an address that no adapter has now */
		return -EADDRNOTAVAIL;
	if (err)
		return err;
	if (portal->adapter && !kdblk_ia_place(ia, &place)) {
		dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
		return -EADDRNOTAVAIL;
	}
	kdt_portal_leave(portal, "the address has moved to another adapter");
	return kdt_portal_take(portal, ia, async_evd);
}

static int kdt_portal_listen(struct kdt_portal *portal)
{
	const DAT_UPCALL_OBJECT cr = { portal->adapter, kdt_cr_upcall };
	DAT_IA_HANDLE ia = portal->adapter->ia;
	DAT_RETURN ret;

	if (!kdblk_ia_place(ia, &portal->place))
		return -EADDRNOTAVAIL;
	ret = dat_evd_kcreate(ia, KDT_BACKLOG, DAT_UPCALL_SINGLE_INSTANCE, &cr, DAT_EVD_CR_FLAG,
			      &portal->cr_evd) ?:
	      dat_psp_create(ia, portal->cfg_port, portal->cr_evd, DAT_PSP_CONSUMER_FLAG,
			     &portal->psp);
	if (ret != DAT_SUCCESS) {
		kdt_portal_unlisten(portal);
		return kdat_errno(ret);
	}
	portal->state = KDT_PORTAL_LISTENING;
	portal->last_err = 0;
	portal->last_error[0] = 0;
	pr_info("portal %s: listening on %s, %pISc, port %u\n", kdt_portal_name(portal),
		portal->ia_name, &portal->place.address, portal->cfg_port);
	return 0;
}

/* Listen on the address that the adapter has now, if the portal does not do so already. */
static int kdt_portal_open(struct kdt_portal *portal)
{
	struct kdblk_place place;
	bool has_address;
	int err = 0;

	lockdep_assert_held(&portal->lock);
	if (portal->adapter && kdat_ia_lost(portal->adapter->ia))
		kdt_portal_leave(portal, "the adapter is gone");
	has_address = portal->adapter && kdblk_ia_place(portal->adapter->ia, &place);
	if (!portal->psp || !has_address || !kdblk_same_place(&place, &portal->place)) {
		kdt_portal_unlisten(portal);
		if (!has_address)
			err = kdt_portal_adapter(portal);
		err = err ?: kdt_portal_listen(portal);
	}
	if (!err)
		WRITE_ONCE(portal->looks, 0);
	return err;
}

/*
 * An adapter or address that comes is reported. After another failure, or while a new IPv6 address
 * cannot be used yet, try again a second later.
 */
static void kdt_portal_wait(struct kdt_portal *portal, int err)
{
	bool told = err == -ENODEV || err == -EADDRNOTAVAIL;
	int looks = READ_ONCE(portal->looks);

	kdt_portal_why(portal, err);
	if (err != portal->last_err)
		pr_warn("portal %s: %s; %s\n", kdt_portal_name(portal), portal->last_error,
			told ? "waiting for it" : "trying again every second");
	portal->last_err = err;
	portal->state = KDT_PORTAL_WAITING;
	if (!told || looks)
		queue_delayed_work(kdt_portal_wq, &portal->look, HZ);
	if (looks)
		WRITE_ONCE(portal->looks, looks - 1);
}

static void kdt_portal_look(struct work_struct *work)
{
	struct kdt_portal *portal = container_of(work, struct kdt_portal, look.work);
	int err;

	mutex_lock(&portal->lock);
	if (portal->state != KDT_PORTAL_DISABLED) {
		err = kdt_portal_open(portal);
		if (err)
			kdt_portal_wait(portal, err);
	}
	mutex_unlock(&portal->lock);
}

/* Adapters or addresses have changed. Context: any except hard interrupts. */
static void kdt_portals_look(int looks)
{
	struct kdt_portal *portal;

	spin_lock_bh(&kdt_portals_lock);
	list_for_each_entry(portal, &kdt_portals, node) {
		if (looks)
			WRITE_ONCE(portal->looks, looks);
		mod_delayed_work(kdt_portal_wq, &portal->look, 0);
	}
	spin_unlock_bh(&kdt_portals_lock);
}

static int kdt_adapter_notified(struct notifier_block *nb, unsigned long action, void *name)
{
	if (action == KDAT_IA_ADDED)	/* the addresses may be new as well */
		kdt_portals_look(KDT_DAD_LOOKS);
	return NOTIFY_OK;
}

/* An adapter may be named by a network device, and have the addresses of a bond or bridge. */
static int kdt_netdev_notified(struct notifier_block *nb, unsigned long action, void *info)
{
	switch (action) {
	case NETDEV_UP:
	case NETDEV_CHANGENAME:
	case NETDEV_CHANGEUPPER:
		kdt_portals_look(0);
		break;
	}
	return NOTIFY_OK;
}

static int kdt_inetaddr_notified(struct notifier_block *nb, unsigned long action, void *ifa)
{
	kdt_portals_look(0);
	return NOTIFY_OK;
}

static struct notifier_block kdt_adapter_nb = { .notifier_call = kdt_adapter_notified };
static struct notifier_block kdt_netdev_nb = { .notifier_call = kdt_netdev_notified };
static struct notifier_block kdt_inetaddr_nb = { .notifier_call = kdt_inetaddr_notified };

#if IS_ENABLED(CONFIG_IPV6)
/* Softirq, if a router announces the address. */
static int kdt_inet6addr_notified(struct notifier_block *nb, unsigned long action, void *info)
{
	const struct inet6_ifaddr *ifa = info;

	kdt_portals_look(ifa->flags & IFA_F_TENTATIVE ? KDT_DAD_LOOKS : 0);
	return NOTIFY_OK;
}

static struct notifier_block kdt_inet6addr_nb = { .notifier_call = kdt_inet6addr_notified };

static void kdt_inet6addr_watch(void)
{
	register_inet6addr_notifier(&kdt_inet6addr_nb);
}

static void kdt_inet6addr_unwatch(void)
{
	unregister_inet6addr_notifier(&kdt_inet6addr_nb);
}
#else
static void kdt_inet6addr_watch(void) { }
static void kdt_inet6addr_unwatch(void) { }
#endif

/* From now on changes of adapters and addresses are reported to portals. */
int kdt_portals_init(void)
{
	int err = register_netdevice_notifier(&kdt_netdev_nb);

	if (err)
		return err;
	register_inetaddr_notifier(&kdt_inetaddr_nb);
	kdt_inet6addr_watch();
	kdat_register_ia_notifier(&kdt_adapter_nb);
	return 0;
}

/* There is no portal any more. */
void kdt_portals_exit(void)
{
	kdat_unregister_ia_notifier(&kdt_adapter_nb);
	kdt_inet6addr_unwatch();
	unregister_inetaddr_notifier(&kdt_inetaddr_nb);
	unregister_netdevice_notifier(&kdt_netdev_nb);
}

void kdt_portal_init(struct kdt_portal *portal)
{
	mutex_init(&portal->lock);
	init_waitqueue_head(&portal->no_requests);
	INIT_DELAYED_WORK(&portal->look, kdt_portal_look);
	portal->cfg_port = KDBLK_PORT;
	portal->cfg_depth = 128;
	portal->cfg_queues = 16;
	portal->cfg_max_io = 131072;
	portal->cfg_buffers = 64;
	portal->cfg_inline_size = max_t(u32, 8192, PAGE_SIZE);
	portal->cfg_max_sessions = 64;
	spin_lock_bh(&kdt_portals_lock);
	list_add_tail(&portal->node, &kdt_portals);
	spin_unlock_bh(&kdt_portals_lock);
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
		return kdt_portal_fail(portal, -EINVAL, "ia has to be set first");
	portal->last_err = 0;
	WRITE_ONCE(portal->looks, KDT_DAD_LOOKS);
	err = kdt_portal_open(portal);
	if (err == -ENODEV || err == -EADDRNOTAVAIL || err == -EHOSTUNREACH) {
		kdt_portal_wait(portal, err);
		return 0;
	}
	if (err) {
		kdt_portal_close(portal, "the portal cannot be opened");
		kdt_portal_why(portal, err);
		pr_err("portal %s: %s\n", kdt_portal_name(portal), portal->last_error);
	}
	return err;
}

/* End all sessions and return when nothing of them is left. */
void kdt_portal_disable(struct kdt_portal *portal)
{
	mutex_lock(&portal->lock);
	kdt_portal_close(portal, "the portal is disabled");
	portal->state = KDT_PORTAL_DISABLED;
	portal->last_error[0] = 0;
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
	spin_lock_bh(&kdt_portals_lock);
	list_del(&portal->node);
	spin_unlock_bh(&kdt_portals_lock);
	cancel_delayed_work_sync(&portal->look);
}
