/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The common part of all objects.
 */
#ifndef KDAPL_CORE_OBJECT_H
#define KDAPL_CORE_OBJECT_H

/*
 * kmalloc() guarantees the alignment of a cache line only for sizes that are powers of two.
 * Such a size costs nothing here: kmalloc() rounds sizes beyond 192 bytes up to one anyway.
 */
static inline void *kdapl_zalloc_aligned(size_t size)
{
	return kzalloc(roundup_pow_of_two(size), GFP_KERNEL);
}

struct kdapl_obj;

/**
 * struct kdapl_obj_ops - operations on an object whose kind the caller does not know
 * @release: free what the object owns, and its memory by RCU; called by the last
 *	kdapl_obj_put(), so it must not sleep if that may be in atomic context
 * @has_id: does it have a cm_id, or wait for one? Called under ia->lock while the device is
 *	being removed. NULL: never
 * @device_lost: destroy the cm_id, or stop waiting for one; may sleep
 * @async_event: EVDs only: queue an asynchronous event
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
 * @handle: its handle, NULL before it is published
 * @type: enum dat_handle_type
 * @live: calls may use it; cleared once, under ia->lock
 * @ref: references to the memory; the handle holds one
 * @users: objects created on top of this one; ia->lock
 * @ia: owning IA instance (an IA owns itself); holds a reference
 * @node: in ia->objs[type]; ia->lock
 * @context: set by dat_set_consumer_context()
 * @ops: operations of its kind
 * @rcu: readers of the handle may look at the object for another grace period
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

/* The pointer kdapl_obj_get() returns is used as one to the object itself. */
#define KDAPL_OBJ_IS_FIRST(type)	static_assert(!offsetof(type, obj))

void kdapl_obj_init(struct kdapl_obj *obj, unsigned int type, struct kdapl_ia *ia,
		    const struct kdapl_obj_ops *ops);
int kdapl_obj_publish(struct kdapl_obj *obj);
void *kdapl_obj_get(DAT_HANDLE handle, unsigned int type);
void kdapl_obj_put(struct kdapl_obj *obj);
int kdapl_obj_use(struct kdapl_obj *obj);
void kdapl_obj_unuse(struct kdapl_obj *obj);
int kdapl_obj_retire(struct kdapl_obj *obj);
void kdapl_obj_evd_gone(struct kdapl_obj *obj);

#endif /* KDAPL_CORE_OBJECT_H */
