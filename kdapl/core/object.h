/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * What all objects have in common.
 */
#ifndef KDAPL_CORE_OBJECT_H
#define KDAPL_CORE_OBJECT_H

struct kdapl_obj;

/**
 * struct kdapl_obj_ops - what lower floors ask of an object without knowing its kind
 * @release: free what the object owns. The last kdapl_obj_put() calls it, which may sleep or
 *	not; the memory itself goes by RCU
 * @has_id: does it have a cm_id, or wait for one? Called under ia->lock while the device goes.
 *	NULL: never
 * @device_lost: give the cm_id back, or stop waiting; may sleep
 * @async_event: of EVDs: queue an asynchronous event
 */
struct kdapl_obj_ops {
	void (*release)(struct kdapl_obj *obj);
	bool (*has_id)(const struct kdapl_obj *obj);
	void (*device_lost)(struct kdapl_obj *obj);
	void (*async_event)(struct kdapl_obj *obj, struct kdapl_ia *ia, DAT_HANDLE handle,
			    u32 number, DAT_COUNT reason);
};

/**
 * struct kdapl_obj - head of every object with a handle
 * @handle: the consumer's name for it, NULL before publication
 * @type: enum dat_handle_type
 * @live: may still be named in calls; cleared once, under ia->lock
 * @ref: references to the memory; the handle itself holds one
 * @users: objects that were created on top of this one; ia->lock
 * @ia: owning IA instance (an IA owns itself); holds a reference
 * @node: in ia->objs[type]; ia->lock
 * @context: dat_set_consumer_context
 * @ops: what its kind does
 * @rcu: handle readers may still look at the object for a grace period
 */
struct kdapl_obj {
	DAT_HANDLE handle;
	u8 type;
	bool live;
	refcount_t ref;
	unsigned int users;
	struct kdapl_ia *ia;
	struct list_head node;
	DAT_CONTEXT context;
	const struct kdapl_obj_ops *ops;
	struct rcu_head rcu;
};

void kdapl_obj_init(struct kdapl_obj *obj, unsigned int type, struct kdapl_ia *ia,
		    const struct kdapl_obj_ops *ops);
int kdapl_obj_publish(struct kdapl_obj *obj);
void *kdapl_obj_get(DAT_HANDLE handle, unsigned int type);
void kdapl_obj_put(struct kdapl_obj *obj);
int kdapl_obj_use(struct kdapl_obj *obj);
void kdapl_obj_unuse(struct kdapl_obj *obj);
int kdapl_obj_retire(struct kdapl_obj *obj);
void kdapl_obj_gone(struct kdapl_obj *obj);

#endif /* KDAPL_CORE_OBJECT_H */
