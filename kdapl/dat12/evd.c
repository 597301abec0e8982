// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Event Dispatchers of DAT 1.2: events and upcalls.
 *
 * An EVD gets an upcall object of 2.0 whose function is dat12_upcall() and whose instance
 * data is a number. The table here leads from the number to the consumer's object of 1.2. So
 * the EVD itself stores which object it has, and upcalls that run while it gets another one
 * finish with the old one. Objects never change, and an EVD that gets the same object again
 * gets the same number.
 *
 * A number is valid as long as its EVD has a handle, since upcalls with a replaced object may
 * still start. Objects of EVDs that have been freed, through 1.2 or 2.0, are removed when there
 * are many. An upcall that does not find its object is one of an EVD that is being freed, whose
 * events are dropped anyway. Objects are copied under RCU before the consumer is called.
 */
#include <linux/export.h>
#include <linux/hashtable.h>
#include <linux/minmax.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/xarray.h>

#include <dat/dat12.h>

#include "evd.h"

#define DAT12_PRUNE_MIN	64	/* with fewer objects none are removed */

struct dat12_object {
	DAT12_UPCALL_OBJECT upcall;
	DAT_EVD_HANDLE evd;		/* NULL while it is being made */
	struct hlist_node node;		/* in dat12_by_evd, once it has one */
	u32 id;
	struct rcu_head rcu;
};

/* Objects by number. Its lock protects everything here. */
static DEFINE_XARRAY_FLAGS(dat12_objects, XA_FLAGS_ALLOC1 | XA_FLAGS_LOCK_BH);
static DEFINE_HASHTABLE(dat12_by_evd, 8);
static u32 dat12_next_id;
static unsigned int dat12_count;
static unsigned int dat12_prune_at = DAT12_PRUNE_MIN;

/* ------------------------------------------------------------------ */
/* upcall objects                                                       */

/* The array is locked. */
static void dat12_object_free(struct dat12_object *object)
{
	__xa_erase(&dat12_objects, object->id);
	if (object->evd)
		hash_del(&object->node);
	dat12_count--;
	kfree_rcu(object, rcu);
}

/* Remove the objects of EVDs that have been freed. The array is locked. */
static void dat12_objects_prune(void)
{
	struct dat12_object *object;
	unsigned long id;

	xa_for_each(&dat12_objects, id, object) {
		if (object->evd && dat_evd_query(object->evd, 0, NULL) != DAT_SUCCESS)
			dat12_object_free(object);
	}
	dat12_prune_at = max(2 * dat12_count, DAT12_PRUNE_MIN);
}

/* The number of this object if the EVD has had it before, or 0. The array is locked. */
static u32 dat12_object_find(DAT_EVD_HANDLE evd, const DAT12_UPCALL_OBJECT *upcall)
{
	const struct dat12_object *object;

	hash_for_each_possible(dat12_by_evd, object, node, (unsigned long)evd) {
		if (object->evd == evd && object->upcall.upcall_func == upcall->upcall_func &&
		    object->upcall.instance_data == upcall->instance_data)
			return object->id;
	}
	return 0;
}

/* Store an object; @evd may be NULL. Returns its number, or 0 if there is no memory. */
static u32 dat12_object_new(DAT_EVD_HANDLE evd, const DAT12_UPCALL_OBJECT *upcall, gfp_t gfp)
{
	struct dat12_object *object = kzalloc(sizeof(*object), gfp);
	u32 id = 0;

	if (!object)
		return 0;
	object->upcall = *upcall;
	xa_lock_bh(&dat12_objects);
	if (dat12_count >= dat12_prune_at)
		dat12_objects_prune();
	/* cyclic, so that a late upcall does not find another object under its number */
	if (__xa_alloc_cyclic(&dat12_objects, &object->id, object, xa_limit_32b,
			      &dat12_next_id, gfp) < 0) {
		kfree(object);
	} else {
		id = object->id;
		dat12_count++;
		object->evd = evd;
		if (evd)
			hash_add(dat12_by_evd, &object->node, (unsigned long)evd);
	}
	xa_unlock_bh(&dat12_objects);
	return id;
}

/**
 * dat12_objects_exit - free all upcall objects
 *
 * Context: unload; no consumer is left.
 */
void dat12_objects_exit(void)
{
	struct dat12_object *object;
	unsigned long id;

	xa_for_each(&dat12_objects, id, object)
		kfree(object);
	xa_destroy(&dat12_objects);
}

/* Copy the consumer's object with this number; false if it has been removed. */
static bool dat12_object_get(DAT_PVOID id, DAT12_UPCALL_OBJECT *upcall)
{
	const struct dat12_object *object;

	rcu_read_lock();
	object = xa_load(&dat12_objects, (unsigned long)id);
	if (object)
		*upcall = object->upcall;
	rcu_read_unlock();
	return object;
}

/* ------------------------------------------------------------------ */
/* events                                                               */

static void dat12_event_out(DAT12_EVENT *to, const DAT_EVENT *from)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &from->event_data.dto_completion_event_data;
	const DAT_CR_ARRIVAL_EVENT_DATA *cr = &from->event_data.cr_arrival_event_data;
	DAT12_EVENT_DATA *data = &to->event_data;

	memset(to, 0, sizeof(*to));
	to->event_number = from->event_number;
	to->evd_handle = from->evd_handle;
	switch (from->event_number) {
	case DAT_DTO_COMPLETION_EVENT:
		data->dto_completion_event_data.ep_handle = dto->ep_handle;
		data->dto_completion_event_data.user_cookie = dto->user_cookie;
		data->dto_completion_event_data.transfered_length = dto->transfered_length;
		data->dto_completion_event_data.status =
			dto->status == DAT_DTO_ERR_LOCAL_MM_ERROR ? DAT_RMR_OPERATION_FAILED :
			dto->status;
		break;
	case DAT_CONNECTION_REQUEST_EVENT:
		data->cr_arrival_event_data.sp_handle.psp_handle = cr->sp_handle.psp_handle;
		data->cr_arrival_event_data.local_ia_address_ptr = cr->local_ia_address_ptr;
		data->cr_arrival_event_data.conn_qual = cr->conn_qual;
		data->cr_arrival_event_data.cr_handle = cr->cr_handle;
		break;
	case DAT_RMR_BIND_COMPLETION_EVENT:
		data->rmr_completion_event_data = from->event_data.rmr_completion_event_data;
		break;
	case DAT_SOFTWARE_EVENT:
		data->software_event_data = from->event_data.software_event_data;
		break;
	case DAT_ASYNC_ERROR_EVD_OVERFLOW:
	case DAT_ASYNC_ERROR_IA_CATASTROPHIC:
	case DAT_ASYNC_ERROR_EP_BROKEN:
	case DAT_ASYNC_ERROR_TIMED_OUT:
	case DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR:
		data->asynch_error_event_data = from->event_data.asynch_error_event_data;
		break;
	case DAT_CONNECTION_EVENT_PEER_REJECTED:	/* 1.2 has no private data here */
		data->connect_event_data.ep_handle = from->event_data.connect_event_data.ep_handle;
		break;
	default:
		data->connect_event_data = from->event_data.connect_event_data;
	}
}

static void dat12_upcall(DAT_PVOID id, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	DAT12_UPCALL_OBJECT upcall;
	DAT12_EVENT event12;

	if (!dat12_object_get(id, &upcall))
		return;
	if (event)
		dat12_event_out(&event12, event);
	upcall.upcall_func(upcall.instance_data, event ? &event12 : NULL, more);
}

/* An object without a function needs no number: the call of 2.0 decides whether it is legal. */
static int dat12_upcall_in(DAT_UPCALL_OBJECT *to, DAT_EVD_HANDLE evd,
			   const DAT12_UPCALL_OBJECT *from, gfp_t gfp)
{
	u32 id = 0;

	*to = (DAT_UPCALL_OBJECT){};
	if (!from)
		return 0;
	to->instance_data = from->instance_data;
	if (!from->upcall_func)
		return 0;
	if (evd) {
		xa_lock_bh(&dat12_objects);
		id = dat12_object_find(evd, from);
		xa_unlock_bh(&dat12_objects);
	}
	if (!id)
		id = dat12_object_new(evd, from, gfp);
	if (!id)
		return -ENOMEM;
	to->instance_data = (DAT_PVOID)(unsigned long)id;
	to->upcall_func = dat12_upcall;
	return 0;
}

/* An object of 1.2 cannot have a function of 2.0: leave it out. False: the EVD has been freed. */
static bool dat12_upcall_out(DAT12_UPCALL_OBJECT *to, const DAT_UPCALL_OBJECT *from)
{
	if (from->upcall_func == dat12_upcall)
		return dat12_object_get(from->instance_data, to);
	*to = (DAT12_UPCALL_OBJECT){ .instance_data = from->instance_data };
	return true;
}

/* Bind the object to the EVD that was made, or remove it if none was (NULL). */
static void dat12_upcall_made(const DAT_UPCALL_OBJECT *upcall, DAT_EVD_HANDLE evd)
{
	struct dat12_object *object;

	if (!upcall->upcall_func)
		return;
	xa_lock_bh(&dat12_objects);
	object = xa_load(&dat12_objects, (unsigned long)upcall->instance_data);
	if (evd) {
		object->evd = evd;
		hash_add(dat12_by_evd, &object->node, (unsigned long)evd);
	} else {
		dat12_object_free(object);
	}
	xa_unlock_bh(&dat12_objects);
}

/**
 * dat12_evd_kcreate - make an EVD whose upcalls are of 1.2
 * @ia_handle: as in dat_evd_kcreate()
 * @evd_min_qlen: as in dat_evd_kcreate()
 * @upcall_policy: as in dat_evd_kcreate()
 * @upcall: as in dat_evd_kcreate()
 * @evd_flags: as in dat_evd_kcreate()
 * @evd_handle: as in dat_evd_kcreate()
 *
 * Context: that of dat_evd_kcreate().
 * Return: that of dat_evd_kcreate().
 */
DAT_RETURN dat12_evd_kcreate(DAT_IA_HANDLE ia_handle, DAT_COUNT evd_min_qlen,
			     DAT_UPCALL_POLICY upcall_policy, const DAT12_UPCALL_OBJECT *upcall,
			     DAT_EVD_FLAGS evd_flags, DAT_EVD_HANDLE *evd_handle)
{
	DAT_EVD_HANDLE evd = DAT_HANDLE_NULL;
	DAT_UPCALL_OBJECT object;
	DAT_RETURN ret;

	/* a reconnect may make EVDs (D-32) */
	if (dat12_upcall_in(&object, DAT_HANDLE_NULL, upcall, GFP_NOIO))
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	ret = dat_evd_kcreate(ia_handle, evd_min_qlen, upcall_policy, upcall ? &object : NULL,
			      evd_flags, evd_handle ? &evd : NULL);
	dat12_upcall_made(&object, evd);
	if (ret == DAT_SUCCESS)
		*evd_handle = evd;
	return ret;
}
EXPORT_SYMBOL(dat12_evd_kcreate);

/**
 * dat12_evd_modify_upcall - change policy and upcall object of an EVD
 * @evd_handle: as in dat_evd_modify_upcall()
 * @upcall_policy: as in dat_evd_modify_upcall()
 * @upcall: as in dat_evd_modify_upcall(); each different object takes some memory until
 *	the EVD is freed
 *
 * Events that are queued already start no upcall (DAT_UPCALL_INVOC_NEW). The version of
 * the call that has last set the object of an EVD is the version of its upcalls.
 *
 * Context: that of dat_evd_modify_upcall().
 * Return: that of dat_evd_modify_upcall(); DAT_INSUFFICIENT_RESOURCES (MEMORY: for a copy
 * of @upcall).
 */
DAT_RETURN dat12_evd_modify_upcall(DAT_EVD_HANDLE evd_handle, DAT_UPCALL_POLICY upcall_policy,
				   const DAT12_UPCALL_OBJECT *upcall)
{
	/* TEARDOWN in an upcall in softirq is a mistake that is reported, so do not sleep */
	gfp_t gfp = upcall_policy == DAT_UPCALL_TEARDOWN ? GFP_ATOMIC : GFP_NOIO;
	DAT_UPCALL_OBJECT object;
	DAT_RETURN ret;

	ret = dat_evd_query(evd_handle, 0, NULL);	/* an object needs an EVD to go with */
	if (ret != DAT_SUCCESS)
		return ret;
	/* an object that the call then refuses stays stored, once */
	if (dat12_upcall_in(&object, evd_handle, upcall, gfp))
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	return dat_evd_modify_upcall(evd_handle, upcall_policy, upcall ? &object : NULL,
				     DAT_UPCALL_INVOC_NEW);
}
EXPORT_SYMBOL(dat12_evd_modify_upcall);

/**
 * dat12_evd_query - read the parameters of an EVD, with an upcall object of 1.2
 * @evd_handle: as in dat_evd_query()
 * @evd_param_mask: as in dat_evd_query()
 * @evd_param: as in dat_evd_query(); the function is NULL if it is one of 2.0
 *
 * Context: that of dat_evd_query().
 * Return: that of dat_evd_query().
 */
DAT_RETURN dat12_evd_query(DAT_EVD_HANDLE evd_handle, DAT_EVD_PARAM_MASK evd_param_mask,
			   DAT12_EVD_PARAM *evd_param)
{
	DAT12_UPCALL_OBJECT upcall;
	DAT_EVD_PARAM param;
	DAT_RETURN ret;

	ret = dat_evd_query(evd_handle, evd_param_mask, evd_param ? &param : NULL);
	if (ret != DAT_SUCCESS || !evd_param)
		return ret;
	if (!dat12_upcall_out(&upcall, &param.upcall))	/* the EVD was freed meanwhile */
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	evd_param->ia_handle = param.ia_handle;
	evd_param->evd_qlen = param.evd_qlen;
	evd_param->upcall_policy = param.upcall_policy;
	evd_param->upcall = upcall;
	evd_param->evd_flags = param.evd_flags;
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat12_evd_query);

/**
 * dat12_evd_post_se - queue a software event
 * @evd_handle: as in dat_evd_post_se()
 * @event: as in dat_evd_post_se()
 *
 * Context: that of dat_evd_post_se().
 * Return: that of dat_evd_post_se().
 */
DAT_RETURN dat12_evd_post_se(DAT_EVD_HANDLE evd_handle, const DAT12_EVENT *event)
{
	DAT_EVENT event20 = {};

	if (event) {
		event20.event_number = event->event_number;
		event20.evd_handle = event->evd_handle;
		event20.event_data.software_event_data = event->event_data.software_event_data;
	}
	return dat_evd_post_se(evd_handle, event ? &event20 : NULL);
}
EXPORT_SYMBOL(dat12_evd_post_se);

/**
 * dat12_evd_dequeue - take the next event, as one of 1.2
 * @evd_handle: as in dat_evd_dequeue()
 * @event: as in dat_evd_dequeue()
 *
 * Context: that of dat_evd_dequeue().
 * Return: that of dat_evd_dequeue().
 */
DAT_RETURN dat12_evd_dequeue(DAT_EVD_HANDLE evd_handle, DAT12_EVENT *event)
{
	DAT_EVENT event20;
	DAT_RETURN ret;

	ret = dat_evd_dequeue(evd_handle, event ? &event20 : NULL);
	if (ret == DAT_SUCCESS)
		dat12_event_out(event, &event20);
	return ret;
}
EXPORT_SYMBOL(dat12_evd_dequeue);
