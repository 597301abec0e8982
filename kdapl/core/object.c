// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The common part of all objects: handle, reference count of the memory, use
 * count, place in the IA, the consumer's context; and the calls that work on
 * objects of any kind.
 *
 * Life of an object: kdapl_obj_init() sets one reference, which belongs to the
 * handle from kdapl_obj_publish() on. kdapl_obj_retire() ends the handle. It
 * succeeds for one caller only, which then destroys what the object owns and
 * drops that reference. Calls that sleep hold a reference of their own; posting
 * calls stay inside one RCU read section instead. "Users" are objects created on
 * top of this one: they keep it from being retired.
 */
#include <linux/export.h>
#include <linux/slab.h>

#include "core.h"

/**
 * kdapl_obj_init - prepare the common part
 * @obj: zeroed
 * @type: enum dat_handle_type
 * @ia: owning IA instance, or NULL if @obj is that IA
 * @ops: operations of its kind
 */
void kdapl_obj_init(struct kdapl_obj *obj, unsigned int type, struct kdapl_ia *ia,
		    const struct kdapl_obj_ops *ops)
{
	obj->type = type;
	obj->ops = ops;
	refcount_set(&obj->ref, 1);
	INIT_LIST_HEAD(&obj->node);
	obj->ia = ia;
	if (ia)
		refcount_inc(&ia->obj.ref);
}

/**
 * kdapl_obj_publish - give an object its handle and add it to its IA
 * @obj: initialised and complete
 *
 * Other calls may retire it as soon as it has its handle, so the caller gets a
 * reference of its own.
 *
 * Context: may sleep.
 * Return: 0; -ENOMEM; -ENOSPC: the handle table is full; -ESHUTDOWN: the IA is being
 * closed. For kdapl_publish_ret().
 */
int kdapl_obj_publish(struct kdapl_obj *obj)
{
	struct kdapl_ia *ia = obj->ia;
	DAT_HANDLE handle;
	int ret = 0;

	ret = kdapl_handle_alloc(obj, obj->type, &handle);
	if (ret)
		return ret;
	spin_lock_irq(&ia->lock);
	if (ia->closing) {
		ret = -ESHUTDOWN;
	} else {
		obj->handle = handle;
		obj->live = true;
		refcount_inc(&obj->ref);
		list_add_tail(&obj->node, &ia->objs[obj->type]);
	}
	spin_unlock_irq(&ia->lock);
	if (ret)
		kdapl_handle_free(handle);
	return ret;
}

/**
 * kdapl_obj_get - look up a handle and take a reference
 * @handle: any bit pattern
 * @type: the type it must have
 *
 * Return: the object, for kdapl_obj_put(), or NULL.
 */
void *kdapl_obj_get(DAT_HANDLE handle, unsigned int type)
{
	struct kdapl_obj *obj;

	rcu_read_lock();
	obj = kdapl_handle_peek(handle, type);
	if (obj && !refcount_inc_not_zero(&obj->ref))
		obj = NULL;
	rcu_read_unlock();
	return obj;
}

/**
 * kdapl_obj_put - drop a reference to the memory
 * @obj: the object, or NULL
 */
void kdapl_obj_put(struct kdapl_obj *obj)
{
	struct kdapl_ia *ia;

	if (!obj || !refcount_dec_and_test(&obj->ref))
		return;
	ia = obj->ia;
	obj->ops->release(obj);
	if (ia && &ia->obj != obj)
		kdapl_obj_put(&ia->obj);
}

/**
 * kdapl_obj_use - add a user: an object is created on top of this one
 * @obj: the lower object
 *
 * Return: 0; -ESTALE: @obj has been retired.
 */
int kdapl_obj_use(struct kdapl_obj *obj)
{
	unsigned long flags;
	int ret = -ESTALE;

	spin_lock_irqsave(&obj->ia->lock, flags);
	if (obj->live && !obj->ia->closing) {
		obj->users++;
		refcount_inc(&obj->ref);
		ret = 0;
	}
	spin_unlock_irqrestore(&obj->ia->lock, flags);
	return ret;
}

/**
 * kdapl_obj_unuse - drop a user: the object on top is gone
 * @obj: the lower object
 */
void kdapl_obj_unuse(struct kdapl_obj *obj)
{
	unsigned long flags;

	spin_lock_irqsave(&obj->ia->lock, flags);
	WARN_ON_ONCE(!obj->users);
	obj->users--;
	spin_unlock_irqrestore(&obj->ia->lock, flags);
	wake_up(&obj->ia->unused);
	kdapl_obj_put(obj);
}

/**
 * kdapl_obj_retire - end the life of a handle
 * @obj: the object; the caller has a reference
 *
 * On success no call finds the object any more. The caller must destroy it and drop the
 * reference of the handle as well as its own.
 *
 * Return: 0; -EBUSY: other objects use it; -ESTALE: it has been retired already. For
 * kdapl_retire_ret().
 */
int kdapl_obj_retire(struct kdapl_obj *obj)
{
	unsigned long flags;
	int ret = 0;

	spin_lock_irqsave(&obj->ia->lock, flags);
	if (!obj->live)
		ret = -ESTALE;
	else if (obj->users)
		ret = -EBUSY;
	if (!ret) {
		obj->live = false;
		if (obj->type == DAT_HANDLE_TYPE_EVD)
			list_move_tail(&obj->node, &obj->ia->retired_evds);
		else
			list_del_init(&obj->node);
	}
	spin_unlock_irqrestore(&obj->ia->lock, flags);
	if (!ret)
		kdapl_handle_free(obj->handle);
	return ret;
}

/**
 * kdapl_obj_evd_gone - the upcalls of a retired EVD have returned
 * @obj: the EVD; dat_ia_close() may be waiting for it
 */
void kdapl_obj_evd_gone(struct kdapl_obj *obj)
{
	spin_lock_irq(&obj->ia->lock);
	list_del_init(&obj->node);
	spin_unlock_irq(&obj->ia->lock);
	wake_up(&obj->ia->unused);
}

/**
 * kdat_wait_unused - wait until no other object uses this one
 * @dat_handle: an EVD, a PZ, an SRQ or another object that others are made on
 *
 * An EP that was freed inside an upcall is destroyed a little later, and until then its EVDs,
 * PZ and SRQ are in use. They become unused one after the other, so call this for each of them
 * before it is freed. It does not keep others from using the object again. An extension of this
 * provider.
 *
 * Context: may sleep; not inside an upcall with an event of such an EP.
 * Return: DAT_SUCCESS, or DAT_INVALID_HANDLE.
 */
DAT_RETURN kdat_wait_unused(DAT_HANDLE dat_handle)
{
	struct kdapl_obj *obj;
	unsigned int type;

	rcu_read_lock();
	obj = kdapl_handle_peek_any(dat_handle, &type);
	if (obj && !refcount_inc_not_zero(&obj->ref))
		obj = NULL;
	rcu_read_unlock();
	if (!obj)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	wait_event(obj->ia->unused, !READ_ONCE(obj->users));
	kdapl_obj_put(obj);
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(kdat_wait_unused);

/**
 * dat_set_consumer_context - attach a context of the consumer to an object
 * @dat_handle: any object
 * @context: opaque, replaces the old one; zero means none
 *
 * Only the handle is checked, and concurrent calls are not serialised.
 *
 * Context: any.
 * Return: DAT_SUCCESS, or DAT_INVALID_HANDLE.
 */
DAT_RETURN dat_set_consumer_context(DAT_HANDLE dat_handle, DAT_CONTEXT context)
{
	struct kdapl_obj *obj;
	unsigned int type;

	rcu_read_lock();
	obj = kdapl_handle_peek_any(dat_handle, &type);
	if (obj)
		WRITE_ONCE(obj->context.as_64, context.as_64);
	rcu_read_unlock();
	return obj ? DAT_SUCCESS : kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
}
EXPORT_SYMBOL(dat_set_consumer_context);

/**
 * dat_get_consumer_context - read the context set by dat_set_consumer_context()
 * @dat_handle: any object
 * @context: where the context goes; zero if none was set
 *
 * Concurrent calls are not serialised.
 *
 * Context: any.
 * Return: DAT_SUCCESS, DAT_INVALID_HANDLE, or DAT_INVALID_PARAMETER (NULL
 * @context).
 */
DAT_RETURN dat_get_consumer_context(DAT_HANDLE dat_handle, DAT_CONTEXT *context)
{
	struct kdapl_obj *obj;
	unsigned int type;
	DAT_RETURN ret = DAT_SUCCESS;

	rcu_read_lock();
	obj = kdapl_handle_peek_any(dat_handle, &type);
	if (!obj)
		ret = kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	else if (!context)
		ret = kdapl_arg_err(2);
	else
		context->as_64 = READ_ONCE(obj->context.as_64);
	rcu_read_unlock();
	return ret;
}
EXPORT_SYMBOL(dat_get_consumer_context);

/**
 * dat_get_handle_type - get the type of the object that a handle names
 * @dat_handle: any object
 * @handle_type: where the type goes
 *
 * For handles that may name objects of several kinds, such as the one in an
 * asynchronous event.
 *
 * Context: any.
 * Return: DAT_SUCCESS, DAT_INVALID_HANDLE, or DAT_INVALID_PARAMETER (NULL
 * @handle_type).
 */
DAT_RETURN dat_get_handle_type(DAT_HANDLE dat_handle, DAT_HANDLE_TYPE *handle_type)
{
	unsigned int type;
	void *obj;

	rcu_read_lock();
	obj = kdapl_handle_peek_any(dat_handle, &type);
	rcu_read_unlock();
	if (!obj)
		return kdapl_err(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	if (!handle_type)
		return kdapl_arg_err(2);
	*handle_type = type;
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_get_handle_type);
