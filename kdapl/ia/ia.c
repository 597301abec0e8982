// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Interface Adapters: creating, querying and closing instances.
 */
#include <linux/export.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/slab.h>

#include "ia_api.h"
#include "../core/trace.h"

KDAPL_OBJ_IS_FIRST(struct kdapl_ia);

/* Provider attributes without a member of their own: for devices without and with the feature. */
static const DAT_NAMED_ATTR ia_named_attrs[2][1] = {
	{ { KDAT_ATTR_IMMED_DATA, "FALSE" } },
	{ { KDAT_ATTR_IMMED_DATA, "TRUE" } },
};

static void ia_provider_attr(struct kdapl_ia *ia, DAT_PROVIDER_ATTR *attr)
{
	DAT_BOOLEAN *merging = (DAT_BOOLEAN *)attr->evd_stream_merging_supported;
	struct kdat_pdata_limits limits;
	const DAT_NAMED_ATTR *named;
	size_t i;

	memset(attr, 0, sizeof(*attr));
	strscpy(attr->provider_name, KBUILD_MODNAME, sizeof(attr->provider_name));
	attr->provider_version_major = KDAPL_VERSION_MAJOR;
	attr->provider_version_minor = KDAPL_VERSION_MINOR;
	attr->dapl_version_major = DAT_VERSION_MAJOR;
	attr->dapl_version_minor = DAT_VERSION_MINOR;
	attr->lmr_mem_types_supported = DAT_MEM_TYPE_VIRTUAL | DAT_MEM_TYPE_LMR |
		DAT_MEM_TYPE_PHYSICAL | DAT_MEM_TYPE_PHYSICAL_VAR_PAGES |
		DAT_MEM_TYPE_PLATFORM | DAT_MEM_TYPE_IA;
	attr->iov_ownership_on_return = DAT_IOV_CONSUMER;
	attr->dat_qos_supported = kdapl_qos_supported(ia->dev);
	attr->completion_flags_supported = DAT_COMPLETION_SUPPRESS_FLAG |
		DAT_COMPLETION_UNSIGNALLED_FLAG | DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG |
		(ia->dev->caps.fence_by == KDAPL_FENCE_NONE ? 0 :
		 DAT_COMPLETION_BARRIER_FENCE_FLAG) |
		(ia->dev->caps.no_solicited ? 0 : DAT_COMPLETION_SOLICITED_WAIT_FLAG);
	attr->is_thread_safe = DAT_TRUE;
	kdapl_ia_pdata(ia, &limits);
	attr->max_private_data_size = limits.connect;
	attr->supports_multipath = DAT_FALSE;
	attr->ep_creator = DAT_PSP_CREATES_EP_IFASKED;
	attr->upcall_policy = DAT_UPCALL_MANY;
	attr->optimal_buffer_alignment = min_t(u32, cache_line_size(), DAT_OPTIMAL_ALIGNMENT);
	for (i = 0; i < sizeof(attr->evd_stream_merging_supported) / sizeof(*merging); i++)
		merging[i] = DAT_TRUE;
	attr->srq_supported = ia->dev->attrs.max_srq > 0 ? DAT_TRUE : DAT_FALSE;
	attr->srq_watermarks_supported = 1;
	attr->srq_ep_pz_difference_supported = ia->dev->caps.srq_pd_checked ? DAT_FALSE : DAT_TRUE;
	attr->srq_info_supported = 1;
	attr->ep_recv_info_supported = 1;
	if (kdapl_dev_enter(ia->dev)) {
		attr->lmr_sync_req = ia->dev->dma != KDAPL_DMA_SAME ? DAT_TRUE : DAT_FALSE;
		kdapl_dev_exit(ia->dev);
	}
	attr->dto_async_return_guaranteed = DAT_TRUE;
	attr->rdma_write_for_rdma_read_req = ia->dev->iwarp ? DAT_TRUE : DAT_FALSE;
	attr->rdma_read_lmr_rmr_context_exposure = ia->dev->iwarp ? DAT_TRUE : DAT_FALSE;
	attr->rmr_scope_supported = DAT_RMR_SCOPE_ANY;
	attr->is_interrupt_safe = DAT_TRUE;
	attr->fmr_supported = DAT_TRUE;
	attr->lmr_for_fmr_scope_supported = DAT_LMR_SCOPE_ANY;
	attr->ha_supported = DAT_FALSE;
	attr->ha_loadbalancing = DAT_HA_LB_NONE;
	named = ia_named_attrs[!ia->dev->caps.no_immed];
	attr->num_provider_specific_attr = ARRAY_SIZE(ia_named_attrs[0]);
	attr->provider_specific_attr = (DAT_NAMED_ATTR *)named;	/* the standard has no const */
}

static void ia_release(struct kdapl_obj *obj)
{
	struct kdapl_ia *ia = container_of(obj, struct kdapl_ia, obj);

	kdapl_keys_destroy(&ia->keys);
	kdapl_device_put(ia->dev);
	kfree_rcu(ia, obj.rcu);
}

static const struct kdapl_obj_ops ia_ops = {
	.release = ia_release,
};

/* Names of consumers. They are kept until unload, since ib_core keeps pointers to them. */
struct ia_consumer {
	struct list_head node;
	char name[];
};

static LIST_HEAD(ia_consumers);
static DEFINE_MUTEX(ia_consumer_lock);	/* the list */

static const char *ia_consumer_name(const char *name)
{
	struct ia_consumer *consumer;
	const char *ret = NULL;
	size_t length;

	if (!name || !*name)
		return KBUILD_MODNAME;
	length = strnlen(name, MODULE_NAME_LEN);
	mutex_lock(&ia_consumer_lock);
	list_for_each_entry(consumer, &ia_consumers, node)
		if (!strncmp(consumer->name, name, length) && !consumer->name[length])
			ret = consumer->name;
	if (!ret) {
		/* no I/O: a reconnect may wait for the mutex (D-32) */
		consumer = kzalloc(struct_size(consumer, name, length + 1), GFP_NOIO);
		if (consumer) {
			memcpy(consumer->name, name, length);
			list_add(&consumer->node, &ia_consumers);
			ret = consumer->name;
		}
	}
	mutex_unlock(&ia_consumer_lock);
	return ret ?: KBUILD_MODNAME;	/* no memory for the name */
}

/**
 * kdapl_ia_exit - free the names of consumers
 *
 * Context: unload; nothing is open.
 */
void kdapl_ia_exit(void)
{
	struct ia_consumer *consumer, *next;

	list_for_each_entry_safe(consumer, next, &ia_consumers, node) {
		list_del(&consumer->node);
		kfree(consumer);
	}
}

static struct kdapl_ia *ia_create(const struct kdapl_ia_open *open)
{
	struct ib_port_attr port_attr;
	struct kdapl_ia *ia;
	int i;

	kdapl_port_attr(open->dev, open->port, &port_attr);
	ia = kdapl_zalloc_aligned(sizeof(*ia));
	if (!ia)
		return NULL;
	kdapl_obj_init(&ia->obj, DAT_HANDLE_TYPE_IA, NULL, &ia_ops);
	ia->obj.ia = ia;
	ia->dev = open->dev;
	refcount_inc(&open->dev->ref);
	ia->port = open->port;
	ia->pick = open->pick;
	ia->max_msg = port_attr.max_msg_sz ?: SZ_1G;
	strscpy(ia->name, open->name, sizeof(ia->name));
	ia->consumer = ia_consumer_name(open->consumer);
	INIT_LIST_HEAD(&ia->dev_node);
	spin_lock_init(&ia->lock);
	mutex_init(&ia->mutex);
	init_waitqueue_head(&ia->unused);
	kdapl_keys_init(&ia->keys);
	INIT_LIST_HEAD(&ia->stale_mrs);
	spin_lock_init(&ia->stale_lock);
	mutex_init(&ia->stale_mutex);
	for (i = 0; i < KDAPL_NTYPES; i++)
		INIT_LIST_HEAD(&ia->objs[i]);
	INIT_LIST_HEAD(&ia->retired_evds);
	return ia;
}

#ifdef KDAPL_KUNIT
/* The async EVD is in use, and the IA does not have it yet. */
void (*kdapl_test_lent)(struct kdapl_ia *ia);
#endif

/* Set the async EVD: the consumer's, or a new one. -ESTALE: the consumer's has been freed. */
static int ia_set_async(struct kdapl_ia *ia, DAT_COUNT qlen, struct kdapl_evd *evd)
{
	int ret;

	if (!evd) {
		evd = kdapl_evd_create(ia, qlen, DAT_UPCALL_DISABLE, NULL, DAT_EVD_ASYNC_FLAG,
				       NULL);
		if (IS_ERR(evd))
			return PTR_ERR(evd);
		ret = kdapl_obj_publish(&evd->obj);
		if (ret) {
			kdapl_evd_destroy(evd);
			return ret;
		}
		ia->own_async = true;
	}
	/* in one go: ia_recall_evds() finds this use, or it was made too late and is refused */
	mutex_lock(&ia->dev->lock);
	ret = kdapl_obj_use(&evd->obj);
	kdapl_test_point(kdapl_test_lent, ia);
	if (!ret) {
		spin_lock_irq(&ia->lock);
		ia->async_evd = &evd->obj;
		spin_unlock_irq(&ia->lock);
	}
	mutex_unlock(&ia->dev->lock);
	if (ia->own_async)
		kdapl_obj_put(&evd->obj);
	return ret;
}

static void ia_unset_async(struct kdapl_ia *ia)
{
	struct kdapl_obj *evd;

	spin_lock_irq(&ia->lock);
	evd = ia->async_evd;
	ia->async_evd = NULL;
	spin_unlock_irq(&ia->lock);
	if (evd)
		kdapl_obj_unuse(evd);
}

/* The first object of a type, referenced. */
static struct kdapl_obj *ia_first(struct kdapl_ia *ia, unsigned int type)
{
	struct kdapl_obj *obj;

	spin_lock_irq(&ia->lock);
	obj = list_first_entry_or_null(&ia->objs[type], struct kdapl_obj, node);
	if (obj)
		refcount_inc(&obj->ref);
	spin_unlock_irq(&ia->lock);
	return obj;
}

/* Retire an object of a closing IA as soon as no other object uses it. */
static bool ia_retire(struct kdapl_obj *obj)
{
	int ret;

	wait_event(obj->ia->unused, (ret = kdapl_obj_retire(obj)) != -EBUSY);
	return !ret;
}

static void ia_destroy_object(struct kdapl_obj *obj)
{
	switch (obj->type) {
	case DAT_HANDLE_TYPE_PSP:
	case DAT_HANDLE_TYPE_RSP:
	case DAT_HANDLE_TYPE_CSP:
		kdapl_sp_destroy(container_of(obj, struct kdapl_sp, obj));
		break;
	case DAT_HANDLE_TYPE_CR:
		kdapl_cr_destroy(container_of(obj, struct kdapl_cr, obj));
		break;
	case DAT_HANDLE_TYPE_SRQ:
		kdapl_srq_destroy(container_of(obj, struct kdapl_srq, obj));
		break;
	case DAT_HANDLE_TYPE_RMR:
		kdapl_rmr_destroy(container_of(obj, struct kdapl_rmr, obj));
		break;
	case DAT_HANDLE_TYPE_LMR:
		kdapl_lmr_destroy(container_of(obj, struct kdapl_lmr, obj));
		break;
	case DAT_HANDLE_TYPE_PZ:
		kdapl_pz_destroy(container_of(obj, struct kdapl_pz, obj));
		break;
	case DAT_HANDLE_TYPE_EVD:
		kdapl_evd_destroy(container_of(obj, struct kdapl_evd, obj));
		break;
	}
}

/* Retire and destroy all objects of a type. */
static void ia_destroy_all(struct kdapl_ia *ia, unsigned int type)
{
	struct kdapl_obj *obj;

	while ((obj = ia_first(ia, type))) {
		if (ia_retire(obj))
			ia_destroy_object(obj);
		kdapl_obj_put(obj);
	}
}

/* The same for EPs, all at once: their connections must not wait for each other to end. */
static void ia_destroy_eps(struct kdapl_ia *ia)
{
	struct kdapl_obj *obj;
	LIST_HEAD(eps);

	while ((obj = ia_first(ia, DAT_HANDLE_TYPE_EP))) {
		if (ia_retire(obj))
			list_add_tail(&obj->node, &eps);
		kdapl_obj_put(obj);
	}
	kdapl_eps_destroy(&eps);
}

/* Take back EVDs of this instance that are the async EVD of another one. */
static void ia_recall_evds(struct kdapl_ia *ia)
{
	struct kdapl_device *dev = ia->dev;
	struct kdapl_obj *evd;
	struct kdapl_ia *other;

	mutex_lock(&dev->lock);
	list_for_each_entry(other, &dev->ias, dev_node) {
		spin_lock_irq(&other->lock);
		evd = other->async_evd;
		if (other == ia || (evd && evd->ia != ia))
			evd = NULL;
		if (evd)
			other->async_evd = NULL;
		spin_unlock_irq(&other->lock);
		if (evd)
			kdapl_obj_unuse(evd);
	}
	mutex_unlock(&dev->lock);
}

/* Destroy the objects of the instance, users first. @closing is set. */
static void ia_destroy(struct kdapl_ia *ia)
{
	struct kdapl_evd *null_evd;

	ia_destroy_all(ia, DAT_HANDLE_TYPE_PSP);
	ia_destroy_all(ia, DAT_HANDLE_TYPE_CSP);
	ia_destroy_all(ia, DAT_HANDLE_TYPE_RSP);
	ia_destroy_all(ia, DAT_HANDLE_TYPE_CR);
	ia_destroy_eps(ia);
	/* an EP freed inside an upcall may be connected for a moment more, with memory posted */
	wait_event(ia->unused, !atomic_read(&ia->eps));
	ia_destroy_all(ia, DAT_HANDLE_TYPE_SRQ);
	ia_destroy_all(ia, DAT_HANDLE_TYPE_RMR);
	ia_destroy_all(ia, DAT_HANDLE_TYPE_LMR);
	kdapl_lmr_reserved_destroy(ia);
	kdapl_maps_close(ia);
	ia_destroy_all(ia, DAT_HANDLE_TYPE_PZ);
	ia_unset_async(ia);
	ia_recall_evds(ia);
	ia_destroy_all(ia, DAT_HANDLE_TYPE_EVD);
	/* dat_evd_free() may wait for an upcall at the same time */
	wait_event(ia->unused, list_empty_careful(&ia->retired_evds));
	mutex_lock(&ia->mutex);
	null_evd = ia->null_evd;	/* closing is set, so no new one will be made */
	mutex_unlock(&ia->mutex);
	if (null_evd) {
		/* EPs freed inside an upcall are destroyed a little later */
		wait_event(ia->unused, !READ_ONCE(null_evd->obj.users));
		kdapl_evd_destroy(null_evd);
	}
	mutex_lock(&ia->dev->lock);
	list_del_init(&ia->dev_node);
	mutex_unlock(&ia->dev->lock);
}

static bool ia_has_objects(struct kdapl_ia *ia)
{
	struct kdapl_obj *obj;
	int i;

	for (i = 0; i < KDAPL_NTYPES; i++) {
		if (i == DAT_HANDLE_TYPE_IA)
			continue;
		list_for_each_entry(obj, &ia->objs[i], node) {
			if (!ia->own_async || obj != ia->async_evd)
				return true;
		}
	}
	return false;
}

static bool ia_inside_upcall(struct kdapl_ia *ia)
{
	struct kdapl_evd *evd;

	list_for_each_entry(evd, &ia->objs[DAT_HANDLE_TYPE_EVD], obj.node) {
		if (kdapl_evd_inside_upcall(evd))
			return true;
	}
	list_for_each_entry(evd, &ia->retired_evds, obj.node) {
		if (kdapl_evd_inside_upcall(evd))
			return true;
	}
	return false;
}

/* The consumer's EVD for asynchronous events, referenced. NULL: it is none for this IA. */
static struct kdapl_evd *ia_find_async(const struct kdapl_ia_open *open, DAT_EVD_HANDLE handle)
{
	struct kdapl_evd *evd = kdapl_obj_get(handle, DAT_HANDLE_TYPE_EVD);

	if (!evd)
		return NULL;
	if ((evd->flags & DAT_EVD_ASYNC_FLAG) && evd->obj.ia->dev == open->dev &&
	    evd->obj.ia->port == open->port)
		return evd;
	kdapl_obj_put(&evd->obj);
	return NULL;
}

/**
 * kdapl_ia_open - make an instance
 * @open: what the calls of open.c have found out
 * @qlen: length of the async EVD, if one is to be made
 * @async: as in dat_ia_openv()
 * @ia_handle: where the handle goes
 *
 * Context: may sleep.
 * Return: as dat_ia_openv().
 */
DAT_RETURN kdapl_ia_open(const struct kdapl_ia_open *open, DAT_COUNT qlen, DAT_EVD_HANDLE *async,
			 DAT_IA_HANDLE *ia_handle)
{
	struct kdapl_device *dev = open->dev;
	struct kdapl_evd *evd = NULL;
	struct kdapl_ia *ia;
	DAT_RETURN ret;
	int err;

	if (*async != DAT_HANDLE_NULL) {
		evd = ia_find_async(open, *async);
		if (!evd)
			return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_ASYNC);
	} else if (qlen > dev->attrs.max_cqe) {
		return kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEVD);
	}
	ret = kdapl_err(DAT_PROVIDER_NOT_FOUND, DAT_NAME_NOT_REGISTERED);
	if (!kdapl_dev_enter(dev))
		goto out_evd;
	ret = kdapl_err(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	if (!try_module_get(THIS_MODULE))
		goto out_exit;
	ia = ia_create(open);
	if (!ia)
		goto out_module;
	/* on the list before it uses an EVD of another instance, see ia_recall_evds() */
	mutex_lock(&dev->lock);
	list_add_tail(&ia->dev_node, &dev->ias);
	mutex_unlock(&dev->lock);
	kdapl_maps_open(ia);
	err = ia_set_async(ia, qlen, evd);
	if (err) {
		ret = err == -ESTALE ? kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_ASYNC) :
				       kdapl_errno_ret(err);
		goto out_ia;
	}
	err = kdapl_obj_publish(&ia->obj);
	if (err) {
		ret = kdapl_publish_ret(err);
		goto out_ia;
	}
	kdapl_device_opened(dev);
	if (ia->own_async)
		*async = ia->async_evd->handle;
	*ia_handle = ia->obj.handle;
	trace_kdapl_ia_opened(ia->obj.handle, ia->name);
	kdapl_obj_put(&ia->obj);
	ret = DAT_SUCCESS;
	goto out_exit;

out_ia:
	ia->closing = true;
	ia_destroy(ia);
	kdapl_obj_put(&ia->obj);
out_module:
	module_put(THIS_MODULE);
out_exit:
	kdapl_dev_exit(dev);
out_evd:
	if (evd)
		kdapl_obj_put(&evd->obj);
	return ret;
}

/**
 * dat_ia_query - read the attributes of an IA and of its provider
 * @ia_handle: IA
 * @async_evd_handle: where the handle of the async EVD goes; may be NULL
 * @ia_attr_mask: DAT_IA_FIELD_* bits of the members wanted
 * @ia_attr: filled entirely; may be NULL with mask 0
 * @provider_attr_mask: DAT_PROVIDER_FIELD_* bits of the members wanted
 * @provider_attr: filled entirely; may be NULL with mask 0
 *
 * Limits are those of the device, whatever is in use. ia_address_ptr points to
 * memory of the IA that the next query overwrites; it is NULL while the port has no
 * address. provider_specific_attr points to constants, which stay as long as kdapl.ko.
 *
 * Context: may sleep; does not wait for RTNL.
 * Return: DAT_SUCCESS, DAT_INVALID_HANDLE, or DAT_INVALID_PARAMETER (undefined
 * mask bit, NULL structure with a mask).
 */
DAT_RETURN dat_ia_query(DAT_IA_HANDLE ia_handle, DAT_EVD_HANDLE *async_evd_handle,
			DAT_IA_ATTR_MASK ia_attr_mask, DAT_IA_ATTR *ia_attr,
			DAT_PROVIDER_ATTR_MASK provider_attr_mask, DAT_PROVIDER_ATTR *provider_attr)
{
	struct kdapl_ia *ia = kdapl_obj_get(ia_handle, DAT_HANDLE_TYPE_IA);
	DAT_RETURN ret = DAT_SUCCESS;
	struct sockaddr_storage addr;

	if (!ia)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (ia_attr_mask & ~DAT_IA_FIELD_ALL)
		ret = kdapl_arg_err(3);
	else if (ia_attr_mask && !ia_attr)
		ret = kdapl_arg_err(4);
	else if (provider_attr_mask & ~DAT_PROVIDER_FIELD_ALL)
		ret = kdapl_arg_err(5);
	else if (provider_attr_mask && !provider_attr)
		ret = kdapl_arg_err(6);
	if (ret != DAT_SUCCESS)
		goto out;
	if (async_evd_handle) {
		spin_lock_irq(&ia->lock);
		*async_evd_handle = ia->async_evd ? ia->async_evd->handle : DAT_HANDLE_NULL;
		spin_unlock_irq(&ia->lock);
	}
	if (ia_attr) {
		memset(ia_attr, 0, sizeof(*ia_attr));
		kdapl_ia_limits(ia, ia_attr);
		ia_attr->max_dto_per_ep = kdapl_ia_sure_dtos(ia->dev, ia_attr->max_dto_per_ep);
		strscpy(ia_attr->adapter_name, ia->name, sizeof(ia_attr->adapter_name));
		snprintf(ia_attr->vendor_name, sizeof(ia_attr->vendor_name), "0x%06x:0x%04x",
			 ia->dev->attrs.vendor_id, ia->dev->attrs.vendor_part_id);
		if (kdapl_dev_enter(ia->dev)) {
			if (!kdapl_ia_address(ia, NULL, &addr, NULL)) {
				ia->addr = addr;
				ia_attr->ia_address_ptr = (DAT_IA_ADDRESS_PTR)&ia->addr;
			}
			kdapl_dev_exit(ia->dev);
		}
	}
	if (provider_attr)
		ia_provider_attr(ia, provider_attr);
out:
	kdapl_obj_put(&ia->obj);
	return ret;
}
EXPORT_SYMBOL(dat_ia_query);

/**
 * dat_ia_close - close an instance
 * @ia_handle: IA
 * @close_flags: DAT_CLOSE_GRACEFUL_FLAG refuses while objects exist;
 *	DAT_CLOSE_ABRUPT_FLAG destroys them, connected or not
 *
 * After the return no upcall of the instance runs or starts.
 *
 * Context: may sleep; not inside an upcall of the instance.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE; DAT_INVALID_PARAMETER (flags);
 * DAT_INVALID_STATE (subtype IA_IN_USE: objects exist, or the call comes from an
 * upcall of the instance).
 */
DAT_RETURN dat_ia_close(DAT_IA_HANDLE ia_handle, DAT_CLOSE_FLAGS close_flags)
{
	struct kdapl_ia *ia = kdapl_obj_get(ia_handle, DAT_HANDLE_TYPE_IA);
	DAT_RETURN ret = DAT_SUCCESS;

	if (!ia)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (close_flags != DAT_CLOSE_ABRUPT_FLAG && close_flags != DAT_CLOSE_GRACEFUL_FLAG) {
		ret = kdapl_arg_err(2);
		goto out;
	}
	spin_lock_irq(&ia->lock);
	if (ia->closing)
		ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	else if (ia_inside_upcall(ia) ||
		 (close_flags == DAT_CLOSE_GRACEFUL_FLAG && ia_has_objects(ia)))
		ret = kdapl_err(DAT_INVALID_STATE, DAT_INVALID_STATE_IA_IN_USE);
	else
		ia->closing = true;
	spin_unlock_irq(&ia->lock);
	if (ret == DAT_SUCCESS && !kdapl_obj_retire(&ia->obj)) {
		ia_destroy(ia);
		trace_kdapl_ia_closed(ia_handle, ia->name);
		kdapl_obj_put(&ia->obj);
		module_put(THIS_MODULE);
	}
out:
	kdapl_obj_put(&ia->obj);
	return ret;
}
EXPORT_SYMBOL(dat_ia_close);

/**
 * kdat_ia_pdata_limits - how much private data a connection can carry
 * @ia_handle: IA
 * @limits: filled entirely
 *
 * The limits for connect, accept and reject depend on the transport: 56, 196 and 148
 * bytes on InfiniBand and RoCE, 251 on iWARP. Calls with more are refused; private
 * data is never truncated. An extension of this provider.
 *
 * Context: any.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE; DAT_INVALID_PARAMETER (NULL @limits).
 */
DAT_RETURN kdat_ia_pdata_limits(DAT_IA_HANDLE ia_handle, struct kdat_pdata_limits *limits)
{
	struct kdapl_ia *ia = kdapl_obj_get(ia_handle, DAT_HANDLE_TYPE_IA);
	DAT_RETURN ret = DAT_SUCCESS;

	if (!ia)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (limits)
		kdapl_ia_pdata(ia, limits);
	else
		ret = kdapl_arg_err(2);
	kdapl_obj_put(&ia->obj);
	return ret;
}
EXPORT_SYMBOL(kdat_ia_pdata_limits);

/**
 * kdat_ia_device - the parent device for a block or SCSI host of this IA
 * @ia_handle: IA
 * @parent: the device, with a reference that put_device() drops; NULL if the RDMA device has
 *	none, such as one in software over a virtual network device
 *
 * This is the parent of the RDMA device: a PCI function, in most cases. For device_add_disk()
 * and scsi_add_host(). An extension of this provider.
 *
 * Context: any.
 * Return: DAT_SUCCESS; DAT_INVALID_HANDLE; DAT_INVALID_PARAMETER (NULL @parent);
 * DAT_INTERNAL_ERROR (device removed).
 */
DAT_RETURN kdat_ia_device(DAT_IA_HANDLE ia_handle, struct device **parent)
{
	struct kdapl_ia *ia = kdapl_obj_get(ia_handle, DAT_HANDLE_TYPE_IA);
	DAT_RETURN ret = DAT_SUCCESS;

	if (!ia)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (!parent) {
		ret = kdapl_arg_err(2);
	} else if (kdapl_dev_enter(ia->dev)) {
		*parent = get_device(ia->dev->ibdev->dev.parent);
		kdapl_dev_exit(ia->dev);
	} else {
		ret = kdapl_err(DAT_INTERNAL_ERROR, DAT_NO_SUBTYPE);
	}
	kdapl_obj_put(&ia->obj);
	return ret;
}
EXPORT_SYMBOL(kdat_ia_device);

/**
 * kdat_ia_lost - has the device of an IA gone?
 * @ia_handle: IA
 *
 * Calls on an IA whose device was removed return DAT_INTERNAL_ERROR, and so do calls that find
 * a fault of the provider; this call tells the two apart. After DAT_TRUE the instance can only
 * be closed. The answer is DAT_TRUE by the time the first call fails, some milliseconds before
 * the event that reports the loss. An extension of this provider.
 *
 * Context: any.
 * Return: DAT_TRUE if it has, or if @ia_handle is not that of an open IA.
 */
DAT_BOOLEAN kdat_ia_lost(DAT_IA_HANDLE ia_handle)
{
	struct kdapl_ia *ia = kdapl_obj_get(ia_handle, DAT_HANDLE_TYPE_IA);
	DAT_BOOLEAN lost;

	if (!ia)
		return DAT_TRUE;
	rcu_read_lock();
	lost = READ_ONCE(ia->dead) || !kdapl_dev_there(ia->dev) ? DAT_TRUE : DAT_FALSE;
	rcu_read_unlock();
	kdapl_obj_put(&ia->obj);
	return lost;
}
EXPORT_SYMBOL(kdat_ia_lost);
