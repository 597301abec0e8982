/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * One for each ib_device, and the way back when it goes.
 */
#ifndef KDAPL_CORE_DEVICE_H
#define KDAPL_CORE_DEVICE_H

/* What a device gives back when it goes, in this order: each kind rests on later ones. */
enum kdapl_res_kind {
	KDAPL_RES_MR,
	KDAPL_RES_SRQ,
	KDAPL_RES_CQ,
	KDAPL_RES_PD,
	KDAPL_RES_KINDS
};

enum kdapl_res_state {
	KDAPL_RES_NONE,		/* not made yet, or gone */
	KDAPL_RES_LISTED,	/* there */
	KDAPL_RES_TAKEN,	/* somebody is destroying it */
};

/**
 * struct kdapl_res - the verbs part of an object, which is destroyed once
 * @node: in the device's list of its kind, while nobody is destroying it; dev->lock
 * @state: enum kdapl_res_state; written under dev->lock
 * @destroy: gives it back to the device; may sleep
 *
 * Its last user and the removal of the device both want to destroy it. The one that takes
 * it off the list does so, without the lock, and the other one waits (D-91).
 */
struct kdapl_res {
	struct list_head node;
	u8 state;
	void (*destroy)(struct kdapl_res *res);
};

struct kdapl_link;

/**
 * struct kdapl_link_ops - what the device asks of a connection when it fails or goes
 * @lost: before any connection ends: it is to end with BROKEN; dev->lock held
 * @fail: end it, although the device is still there; dev->lock held
 * @hold: keep its memory; dev->lock held
 * @remove: give all of it back to the device, and drop what @hold took; may sleep
 */
struct kdapl_link_ops {
	void (*lost)(struct kdapl_link *link);
	void (*fail)(struct kdapl_link *link);
	void (*hold)(struct kdapl_link *link);
	void (*remove)(struct kdapl_link *link);
};

/**
 * struct kdapl_link - a connection, as its device knows it
 * @node: in dev->links; dev->lock
 * @leaving: it is giving everything back by itself; dev->lock
 * @ops: what it does
 */
struct kdapl_link {
	struct list_head node;
	bool leaving;
	const struct kdapl_link_ops *ops;
};

/**
 * struct kdapl_device - an ib_device as long as anybody remembers it
 * @ibdev: valid inside kdapl_dev_enter() only
 * @attrs: copy of the device limits, for queries after removal
 * @users: API calls that touch verbs objects, and the device itself
 * @gone: set by removal before it gives up its share of @users
 * @fatal: the device has reported a fatal error: as good as gone, but for what
 *	must be given back to it
 * @unused: completed when removal has taken its share of @users and all calls left
 * @iwarp: the protocol is iWARP: no modify by hand, one-SGE reads, ...
 * @caps: what else is special about it (quirks.c)
 * @ports: number of ports
 * @dma: enum kdapl_dma_kind
 * @dma_coherent: caches need not be told of DMA
 * @lock: protects the lists below
 * @ias: open IA instances
 * @links: connections, the reaper's included
 * @res: what it has to give back, by enum kdapl_res_kind
 * @taken: how many of @res are being destroyed; they are on no list
 * @ids: cm_ids of service points and of requests, until they are destroyed or belong
 *	to a connection
 * @idle: woken when @links becomes empty, @ids or @taken 0, or one of @res is destroyed
 * @rcu: posting calls look at the flags
 * @ports_work: asks the ports again after one of them has changed
 * @ports_mutex: one asks at a time, so that the last answer is the one that stays
 * @ports_lock: protects @port_attrs
 * @port_attrs: what each port, from 1 on, has answered last: kdapl_port_attr()
 */
struct kdapl_device {
	struct ib_device *ibdev;
	struct ib_device_attr attrs;
	char name[IB_DEVICE_NAME_MAX];
	refcount_t users;
	struct completion unused;
	bool gone;
	bool fatal;
	bool iwarp;
	struct kdapl_caps caps;
	u32 ports;
	u8 dma;
	bool dma_coherent;
#ifdef KDAPL_KUNIT
	const struct kdapl_dma_ops *dma_ops;
#endif
	refcount_t ref;
	struct list_head node;
	struct ib_event_handler event_handler;

	struct mutex lock;		/* the lists */
	struct list_head ias;
	struct list_head links;
	struct list_head res[KDAPL_RES_KINDS];
	unsigned int taken;
	atomic_t ids;
	wait_queue_head_t idle;
	struct rcu_head rcu;

	struct work_struct ports_work;
	struct mutex ports_mutex;	/* asking; RTNL is taken inside */
	spinlock_t ports_lock;		/* port_attrs */
	struct ib_port_attr port_attrs[];
};

/* What an IA was opened by, beside the name of its device. */
enum kdapl_pick_kind {
	KDAPL_PICK_ANY,		/* nothing: any address of the port serves */
	KDAPL_PICK_NETDEV,	/* a netdev: its addresses serve */
	KDAPL_PICK_ADDRESS,	/* an address: it serves, for its family */
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

struct kdapl_device *kdapl_device_find(const char *ia_name, u32 *port, struct kdapl_pick *pick);

typedef int kdapl_port_fn(struct kdapl_device *dev, u32 port, void *arg);
int kdapl_device_walk(kdapl_port_fn *fn, void *arg);

void kdapl_device_put(struct kdapl_device *dev);
void kdapl_device_id_made(struct kdapl_device *dev);
void kdapl_device_id_gone(struct kdapl_device *dev);
void kdapl_device_opened(struct kdapl_device *dev);
void kdapl_res_add(struct kdapl_device *dev, struct kdapl_res *res, enum kdapl_res_kind kind,
		   void (*destroy)(struct kdapl_res *res));
bool kdapl_res_release(struct kdapl_device *dev, struct kdapl_res *res);
void kdapl_link_add(struct kdapl_device *dev, struct kdapl_link *link,
		    const struct kdapl_link_ops *ops);
void kdapl_link_leaves(struct kdapl_device *dev, struct kdapl_link *link);
void kdapl_link_del(struct kdapl_device *dev, struct kdapl_link *link);
void kdapl_port_attr(struct kdapl_device *dev, u32 port, struct ib_port_attr *attr);
bool kdapl_dev_enter(struct kdapl_device *dev);
void kdapl_dev_exit(struct kdapl_device *dev);

/*
 * The same until the end of an RCU read section, which removal waits for: calls that post do not
 * count themselves, since all CPUs would write one counter.
 */
static inline bool kdapl_dev_there(const struct kdapl_device *dev)
{
	RCU_LOCKDEP_WARN(!rcu_read_lock_held(), "not inside an RCU read section");
	return !READ_ONCE(dev->gone) && !READ_ONCE(dev->fatal);
}

#endif /* KDAPL_CORE_DEVICE_H */
