/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Devices: one for each ib_device, and what it takes to remove it.
 */
#ifndef KDAPL_CORE_DEVICE_H
#define KDAPL_CORE_DEVICE_H

/* What removal destroys, in this order: each kind depends on later ones. */
enum kdapl_res_kind {
	KDAPL_RES_MR,
	KDAPL_RES_SRQ,
	KDAPL_RES_CQ,
	KDAPL_RES_MAPS,
	KDAPL_RES_PD,
	KDAPL_RES_KINDS
};

enum kdapl_res_state {
	KDAPL_RES_NONE,		/* not created yet, or destroyed */
	KDAPL_RES_LISTED,	/* exists */
	KDAPL_RES_TAKEN,	/* being destroyed */
};

/**
 * struct kdapl_res - the verbs part of an object, which is destroyed once
 * @node: in the device's list of its kind until it is being destroyed; dev->lock
 * @state: enum kdapl_res_state; written under dev->lock
 * @destroy: destroys the verbs part; may sleep
 *
 * Its last user and the removal of the device may both want to destroy it. The first one takes
 * it off the list and destroys it without the lock, and the other one waits (D-91).
 */
struct kdapl_res {
	struct list_head node;
	u8 state;
	void (*destroy)(struct kdapl_res *res);
};

struct kdapl_dev_conn;

/**
 * struct kdapl_dev_conn_ops - called on a connection when its device fails or is removed
 * @lost: called before any connection is ended: make it end with BROKEN; dev->lock held
 * @hold: take a reference to its memory; dev->lock held
 * @fail: end it, although the device is still there, and drop the reference of @hold; may sleep
 * @remove: destroy its verbs objects, and drop the reference of @hold; may sleep
 */
struct kdapl_dev_conn_ops {
	void (*lost)(struct kdapl_dev_conn *dev_conn);
	void (*hold)(struct kdapl_dev_conn *dev_conn);
	void (*fail)(struct kdapl_dev_conn *dev_conn);
	void (*remove)(struct kdapl_dev_conn *dev_conn);
};

/**
 * struct kdapl_dev_conn - entry of a connection in the list of its device
 * @node: in dev->conns; dev->lock
 * @leaving: it is destroying its verbs objects by itself; dev->lock
 * @failed: it has been ended because the device has failed, or is just about to be; dev->lock
 * @ops: operations of the connection
 */
struct kdapl_dev_conn {
	struct list_head node;
	bool leaving;
	bool failed;
	const struct kdapl_dev_conn_ops *ops;
};

/**
 * struct kdapl_notice - what consumers have to be told about a device (notify.c)
 * @node: in the list of devices that exist or that consumers know
 * @name: its name, empty when it has gone
 * @known: the name that consumers know it by, empty if they do not
 */
struct kdapl_notice {
	struct list_head node;
	char name[IB_DEVICE_NAME_MAX];
	char known[IB_DEVICE_NAME_MAX];
};

/**
 * struct kdapl_device - an ib_device, and what is left of it while IAs still refer to it
 * @ibdev: valid inside kdapl_dev_enter() only
 * @attrs: copy of the device limits, for queries after removal
 * @gone: set by removal before it gives up its share of @users
 * @fatal: the device has reported a fatal error: treated as gone, except that its objects
 *	still have to be destroyed
 * @iwarp: the protocol is iWARP: no modify by hand, Reads with one segment, ...
 * @caps: what else is special about it (quirks.c)
 * @ports: number of ports
 * @dma: enum kdapl_dma_kind
 * @dma_coherent: DMA is cache coherent
 * @dma_max_entry: bytes of the longest piece of memory that can be mapped
 * @users: API calls that touch verbs objects, and the device itself
 * @unused: completed when removal has given up its share of @users and all calls have left
 * @lock: protects the lists below
 * @ias: open IA instances
 * @conns: connections, the reaper's included
 * @res: verbs objects to be destroyed by removal, by enum kdapl_res_kind
 * @taken: number of @res being destroyed, which are on no list
 * @ids: number of cm_ids of service points and requests that are neither destroyed nor a
 *	connection's
 * @idle: woken when @conns becomes empty, @ids or @taken 0, or one of @res is destroyed
 * @rcu: posting calls read the flags under RCU
 * @ports_work: queries the ports after an event
 * @ports_mutex: serialises queries, so that the last result stays
 * @ports_lock: protects @port_attrs
 * @port_attrs: last result of each port, from 1 on: kdapl_port_attr()
 *
 * Posts on all EPs read the members before @users. Other calls write the rest.
 */
struct kdapl_device {
	struct ib_device *ibdev;
	struct ib_device_attr attrs;
	char name[IB_DEVICE_NAME_MAX];
	bool gone;
	bool fatal;
	bool iwarp;
	struct kdapl_caps caps;
	u32 ports;
	u8 dma;
	bool dma_coherent;
	u32 dma_max_entry;
#ifdef KDAPL_KUNIT
	const struct kdapl_dma_ops *dma_ops;
#endif

	refcount_t users ____cacheline_aligned_in_smp;
	struct completion unused;
	refcount_t ref;
	struct list_head node;
	struct kdapl_notice notice;
	struct ib_event_handler event_handler;

	struct mutex lock;		/* the lists */
	struct list_head ias;
	struct list_head conns;
	struct list_head res[KDAPL_RES_KINDS];
	unsigned int taken;
	atomic_t ids;
	wait_queue_head_t idle;
	struct rcu_head rcu;

	struct work_struct ports_work;
	struct mutex ports_mutex;	/* queries; RTNL is taken inside */
	spinlock_t ports_lock;		/* port_attrs */
	struct ib_port_attr port_attrs[];
};

/* Which addresses of the port an IA uses: those that the name it was opened by stands for. */
enum kdapl_pick_kind {
	KDAPL_PICK_ANY,		/* any address of the port */
	KDAPL_PICK_NETDEV,	/* addresses of one netdev */
	KDAPL_PICK_ADDRESS,	/* one address, for its family */
};

/**
 * struct kdapl_pick - which addresses of a port an IA uses
 * @kind: enum kdapl_pick_kind
 * @ifindex: of the netdev
 * @cookie: network namespace of either
 * @addr: the address
 */
struct kdapl_pick {
	u8 kind;
	int ifindex;
	u64 cookie;
	struct sockaddr_storage addr;
};

extern struct ib_client kdapl_client;

void kdapl_notify(struct kdapl_device *dev, const char *name);

struct kdapl_device *kdapl_device_find(const char *ia_name, u32 *port, struct kdapl_pick *pick);

typedef int kdapl_port_fn(struct kdapl_device *dev, u32 port, void *arg);
int kdapl_device_walk(kdapl_port_fn *fn, void *arg);

void kdapl_device_id_made(struct kdapl_device *dev);
void kdapl_device_id_gone(struct kdapl_device *dev);
void kdapl_device_opened(struct kdapl_device *dev);
void kdapl_res_add(struct kdapl_device *dev, struct kdapl_res *res, enum kdapl_res_kind kind,
		   void (*destroy)(struct kdapl_res *res));
bool kdapl_res_release(struct kdapl_device *dev, struct kdapl_res *res);
void kdapl_dev_conn_add(struct kdapl_device *dev, struct kdapl_dev_conn *dev_conn,
			const struct kdapl_dev_conn_ops *ops);
void kdapl_dev_conn_leaves(struct kdapl_device *dev, struct kdapl_dev_conn *dev_conn);
void kdapl_dev_conn_del(struct kdapl_device *dev, struct kdapl_dev_conn *dev_conn);
void kdapl_port_attr(struct kdapl_device *dev, u32 port, struct ib_port_attr *attr);
bool kdapl_dev_enter(struct kdapl_device *dev);
void kdapl_dev_exit(struct kdapl_device *dev);

/**
 * kdapl_device_put - drop a reference
 * @dev: device
 */
static inline void kdapl_device_put(struct kdapl_device *dev)
{
	if (refcount_dec_and_test(&dev->ref))
		kfree_rcu(dev, rcu);
}

/*
 * Does the device stay until the end of this RCU read section, which removal waits for? For
 * posting calls: if they entered the device, all CPUs would write the same counter.
 */
static inline bool kdapl_dev_there(const struct kdapl_device *dev)
{
	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "not inside an RCU read section");
	return !READ_ONCE(dev->gone) && !READ_ONCE(dev->fatal);
}

#endif /* KDAPL_CORE_DEVICE_H */
