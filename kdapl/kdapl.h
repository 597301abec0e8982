/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Private declarations of the kdapl module.
 *
 * Shape. A consumer sees objects (IA, PZ, LMR, EVD, EP, service points, CR) through
 * opaque handles. Every object is a shell: handle, reference count, state the
 * consumer can see. The verbs objects behind it (PD, MR, CQ, QP, cm_id) hang
 * off the shell and can be taken away by the removal of the device while the
 * shell, and the consumer's handle, live on.
 *
 * Locks, outermost first; nothing is ever taken against this order:
 *
 *   device users       held (kdapl_dev_enter) by every API call that touches verbs
 *   ep->mutex          control calls of one EP (connect, accept, reset, free)
 *   srq->mutex         replacing the pool of an SRQ
 *   ia->mutex          making the null EVD
 *   evd->mutex         attaching rings, length and policy of one EVD
 *   dev->lock          lists of what there is of a device; no verb is called inside,
 *                      since all consumers of the device need it (D-91)
 *   dev->ports_mutex   asking a device about its ports; inside it only RTNL and
 *                      dev->ports_lock. No call that a reconnect makes takes it
 *   sp, cr->mutex, pd->lock
 *                      one object's verbs part against removal of the device;
 *                      that of a CR nobody knows also inside the id's handler
 *   half->destroy_lock destroying cm_id and QP of one half
 *   rdma_cm's handler mutex of an id
 *   half->lock         mutex; verbs calls on one transport half, its phase; never
 *                      held while something waits for a CM handler
 *   keys->mutex        mutex; changing the table of keys of one IA; allocates inside,
 *                      without I/O
 *   ep->lock           irqsave; EP state
 *   ring->lock         irqsave; producer side of one ring, held over the post, unless
 *                      the consumer serialises its posts: RCU and kdapl_ring_quiesce()
 *                      keep those away from the end (D-78)
 *   ia->lock           irqsave; object lists and use counts of one IA
 *
 *   evd->lock          irqsave; everything a delivery touches: store, batch,
 *                      CQ polling, consumer side of the rings. Never nests
 *                      with ep->lock or ring->lock, in either direction, and
 *                      is never held while a consumer's upcall runs.
 *   rmr->lock          irqsave; what one RMR is bound to; inside evd->lock
 *   pool->lock         irqsave; buffers of one SRQ, held over the post to it; inside
 *                      evd->lock
 *   mr->lock           irqsave; keys and state of one MR and its LMR; innermost
 */
#ifndef KDAPL_H
#define KDAPL_H

#include <linux/cache.h>
#include <linux/completion.h>
#include <linux/hash.h>
#include <linux/irq_poll.h>
#include <linux/list.h>
#include <linux/log2.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/seqlock.h>
#include <linux/slab.h>
#include <linux/socket.h>
#include <linux/spinlock.h>
#include <linux/stringify.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>

#include <dat2/kdat_ext.h>

#include "compat/compat.h"
#include "quirks.h"
#include "status.h"

#undef pr_fmt
#define pr_fmt(fmt) "kdapl: " fmt

#define KDAPL_VERSION_MAJOR	0
#define KDAPL_VERSION_MINOR	8
#define KDAPL_VERSION		__stringify(KDAPL_VERSION_MAJOR) "." \
				__stringify(KDAPL_VERSION_MINOR) ".0"

#define KDAPL_NTYPES	(DAT_HANDLE_TYPE_CSP + 1)

struct kdapl_device;
struct kdapl_ia;
struct kdapl_ep;
struct kdapl_evd;
struct kdapl_half;
struct kdapl_cr;
struct kdapl_pd;
struct kdapl_cq;
struct kdapl_mr;
struct kdapl_pool;
struct kdapl_buf;
struct kdapl_post;

/* ------------------------------------------------------------------ */
/* handle.c: opaque handles                                            */

int kdapl_handle_alloc(void *obj, unsigned int type, DAT_HANDLE *handle);
void kdapl_handle_free(DAT_HANDLE handle);

#ifdef CONFIG_64BIT
#define KDAPL_HANDLE_INDEX_BITS	24
#define KDAPL_HANDLE_GEN_BITS	32
#else
#define KDAPL_HANDLE_INDEX_BITS	16
#define KDAPL_HANDLE_GEN_BITS	11
#endif
#define KDAPL_HANDLE_GEN_SHIFT	(1 + KDAPL_HANDLE_INDEX_BITS)
#define KDAPL_HANDLE_TYPE_SHIFT	(KDAPL_HANDLE_GEN_SHIFT + KDAPL_HANDLE_GEN_BITS)

/**
 * struct kdapl_handle_entry - one slot of the table
 * @obj: NULL when free
 * @word: the handle value when live; index of the next free entry << 1 else
 *
 * Writers order their stores so that a reader that loads @obj first and @word
 * second can never pair an old handle with a new object: freeing clears @word
 * before @obj, allocating stores @obj before @word.
 */
struct kdapl_handle_entry {
	void *obj;
	unsigned long word;
};

#define KDAPL_HANDLE_CHUNK	(PAGE_SIZE / sizeof(struct kdapl_handle_entry))
#define KDAPL_HANDLE_CHUNKS	4096

extern struct kdapl_handle_entry *kdapl_handle_chunks[KDAPL_HANDLE_CHUNKS];

/* The slot of an index that a handle may or may not have; NULL if there is none. */
static inline struct kdapl_handle_entry *kdapl_handle_entry(unsigned long index)
{
	struct kdapl_handle_entry *chunk;

	if (index / KDAPL_HANDLE_CHUNK >= KDAPL_HANDLE_CHUNKS)
		return NULL;
	/* pairs with the release in handle_grow() */
	chunk = smp_load_acquire(&kdapl_handle_chunks[index / KDAPL_HANDLE_CHUNK]);
	return chunk ? &chunk[index % KDAPL_HANDLE_CHUNK] : NULL;
}

static inline void *kdapl_handle_read(unsigned long word)
{
	struct kdapl_handle_entry *entry;
	void *obj;

	if (!(word & 1))
		return NULL;
	entry = kdapl_handle_entry(word >> 1 & (BIT(KDAPL_HANDLE_INDEX_BITS) - 1));
	if (unlikely(!entry))
		return NULL;
	/* @obj first, then @word; pairs with the releases of the writers */
	obj = smp_load_acquire(&entry->obj);
	if (unlikely(READ_ONCE(entry->word) != word))
		return NULL;
	/* a value guessed before it was given out could pair with the last owner */
	if (unlikely(READ_ONCE(entry->obj) != obj))
		return NULL;
	return obj;
}

/**
 * kdapl_handle_peek - look a handle up
 * @handle: any bit pattern
 * @type: the type it must have
 *
 * Context: inside rcu_read_lock(), to which the result is bound.
 * Return: the object, or NULL when @handle does not name a live one of @type.
 */
static inline void *kdapl_handle_peek(DAT_HANDLE handle, unsigned int type)
{
	unsigned long word = (unsigned long)handle;

	if (unlikely(word >> KDAPL_HANDLE_TYPE_SHIFT != type))
		return NULL;
	return kdapl_handle_read(word);
}

void *kdapl_handle_peek_any(DAT_HANDLE handle, unsigned int *type);
struct kdapl_obj *kdapl_handle_next(unsigned long *index);

/* The name of an object in traces and debugfs, its own as long as it lives; 0 for none. */
static inline u32 kdapl_id(DAT_HANDLE handle)
{
	return (unsigned long)handle >> 1 & (BIT(KDAPL_HANDLE_INDEX_BITS) - 1);
}

void kdapl_handles_exit(void);

/* ------------------------------------------------------------------ */
/* object.c: what all objects have in common                           */

/**
 * struct kdapl_obj - head of every object with a handle
 * @handle: the consumer's name for it, NULL before publication
 * @type: enum dat_handle_type
 * @live: may still be named in calls; cleared once, under ia->lock
 * @ref: who may still touch the memory; the handle itself holds one
 * @users: objects that were created on top of this one; ia->lock
 * @ia: owning IA instance (an IA owns itself); holds a reference
 * @node: in ia->objs[type]; ia->lock
 * @context: dat_set_consumer_context
 * @release: frees what the object owns, in a context that may sleep or not,
 *           as the last putter happens to run; the memory itself goes by RCU
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
	void (*release)(struct kdapl_obj *obj);
	struct rcu_head rcu;
};

void kdapl_obj_init(struct kdapl_obj *obj, unsigned int type, struct kdapl_ia *ia,
		    void (*release)(struct kdapl_obj *obj));
int kdapl_obj_publish(struct kdapl_obj *obj);
DAT_RETURN kdapl_publish_ret(int err);
DAT_RETURN kdapl_retire_ret(int err, DAT_RETURN_SUBTYPE in_use, DAT_RETURN_SUBTYPE handle);
DAT_RETURN kdapl_query_check(u64 mask, u64 all, const void *param);
void *kdapl_obj_get(DAT_HANDLE handle, unsigned int type);
void kdapl_obj_put(struct kdapl_obj *obj);
int kdapl_obj_use(struct kdapl_obj *obj);
void kdapl_obj_unuse(struct kdapl_obj *obj);
int kdapl_obj_retire(struct kdapl_obj *obj);
void kdapl_obj_gone(struct kdapl_obj *obj);

/* ------------------------------------------------------------------ */
/* device.c: one per ib_device, and the way back when it goes           */

enum kdapl_claim_state {
	KDAPL_CLAIM_NONE,	/* not made yet, or gone */
	KDAPL_CLAIM_LISTED,	/* there */
	KDAPL_CLAIM_TAKEN,	/* somebody is destroying it */
};

/**
 * struct kdapl_claim - the verbs part of an object, which is destroyed once
 * @node: in the device's list of its kind, while nobody is destroying it; dev->lock
 * @state: enum kdapl_claim_state; written under dev->lock
 *
 * Its last user and the removal of the device both want to destroy it. Whoever takes it
 * off the list does, without the lock, and the other one waits (D-91).
 */
struct kdapl_claim {
	struct list_head node;
	u8 state;
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
 * @siw: quirks of soft-iWARP (quirks.c); new code tests a member of @caps
 * @rxe: quirks of soft-RoCE, likewise
 * @caps: what else is special about it
 * @ports: number of ports
 * @dma: enum kdapl_dma_kind
 * @dma_coherent: caches need not be told of DMA
 * @lock: protects the lists below
 * @ias: open IA instances
 * @pds: protection domains
 * @cqs: completion queues
 * @halves: transport halves, the reaper's included
 * @pools: SRQs
 * @mrs: MRs
 * @claimed: how many of @pds, @cqs, @pools and @mrs are being destroyed; they are on no
 *	list
 * @ids: cm_ids of service points and of requests, until they are destroyed or belong
 *	to a half
 * @idle: woken when @halves becomes empty, @ids or @claimed 0, or a claim is given up
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
	bool siw;
	bool rxe;
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
	struct list_head pds;
	struct list_head cqs;
	struct list_head halves;
	struct list_head pools;
	struct list_head mrs;
	unsigned int claimed;
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

int kdapl_device_add(struct ib_device *ibdev);
void kdapl_device_remove(struct ib_device *ibdev, void *client_data);
void kdapl_device_rename(struct ib_device *ibdev, void *client_data);
struct kdapl_device *kdapl_device_find(const char *ia_name, u32 *port, struct kdapl_pick *pick);

typedef int kdapl_port_fn(struct kdapl_device *dev, u32 port, void *arg);
int kdapl_device_walk(kdapl_port_fn *fn, void *arg);

void kdapl_device_put(struct kdapl_device *dev);
void kdapl_device_id_made(struct kdapl_device *dev);
void kdapl_device_id_gone(struct kdapl_device *dev);
void kdapl_device_opened(struct kdapl_device *dev);
void kdapl_claim_made(struct kdapl_device *dev, struct kdapl_claim *claim, struct list_head *list);
bool kdapl_claim(struct kdapl_device *dev, struct kdapl_claim *claim);
void kdapl_claim_done(struct kdapl_device *dev, struct kdapl_claim *claim);
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

/*
 * Work on an earlier one may wait for work on a later one, never the other way:
 * each has a rescuer of its own.
 */
extern struct workqueue_struct *kdapl_event_wq;	/* upcalls without completions, deferred frees */
extern struct workqueue_struct *kdapl_upcall_wq;	/* upcalls with completions */
extern struct workqueue_struct *kdapl_many_wq;	/* upcalls of DAT_UPCALL_MANY */
extern struct workqueue_struct *kdapl_reap_wq;	/* reaper */
extern struct workqueue_struct *kdapl_conn_wq;	/* rdma_connect(), long in siw */
extern struct workqueue_struct *kdapl_wq;	/* ends, timers, early data */

/* ------------------------------------------------------------------ */
/* keys.c: from a key to its MR                                         */

/* Index of a free slot; those of keys have 24 bits. */
#define KDAPL_NO_INDEX	U32_MAX

/**
 * struct kdapl_key_slot - one slot of the table
 * @index: the upper 24 bits of a key; written once, KDAPL_NO_INDEX before
 * @mr: its MR; NULL where it has gone
 */
struct kdapl_key_slot {
	u32 index;
	struct kdapl_mr __rcu *mr;
};

/**
 * struct kdapl_key_table - the table proper, replaced as a whole when it is full
 * @rcu: readers may still look at it for a grace period
 * @bits: there are 2^bits slots
 * @mask: their number - 1
 * @left: free slots that may still be taken; at least half stay free
 * @slots: the slots
 */
struct kdapl_key_table {
	struct rcu_head rcu;
	u32 bits;
	u32 mask;
	u32 left;
	struct kdapl_key_slot slots[];
};

/**
 * struct kdapl_keys - the MRs of an IA by their keys
 * @table: never NULL; read under RCU
 * @count: MRs in it
 * @mutex: changing it
 */
struct kdapl_keys {
	struct kdapl_key_table __rcu *table;
	unsigned int count;
	struct mutex mutex;		/* all of it */
};

void kdapl_keys_init(struct kdapl_keys *keys);
void kdapl_keys_destroy(struct kdapl_keys *keys);
int kdapl_keys_insert(struct kdapl_keys *keys, struct kdapl_mr *mr);
void kdapl_keys_remove(struct kdapl_keys *keys, struct kdapl_mr *mr);

/*
 * The MR a key belongs to, whatever its low byte, or NULL; RCU read side. Whether the
 * key is valid the MR knows.
 */
static inline struct kdapl_mr *kdapl_keys_find(const struct kdapl_keys *keys, u32 key)
{
	const struct kdapl_key_table *table = rcu_dereference(keys->table);
	u32 index = key >> 8, i = hash_32(index, table->bits), found;

	for (;;) {
		found = READ_ONCE(table->slots[i].index);
		if (likely(found == index))
			return rcu_dereference(table->slots[i].mr);
		if (found == KDAPL_NO_INDEX)
			return NULL;
		i = (i + 1) & table->mask;
	}
}

/* ------------------------------------------------------------------ */
/* ia.c                                                                */

/**
 * struct kdapl_ia - one dat_ia_openv
 * @dev: the device; holds a reference, not the right to use @dev->ibdev
 * @port: RDMA port number
 * @name: the name used at open
 * @consumer: name of the module that opened it
 * @lock: protects @objs, @closing and the users/live of every object
 * @objs: the instance's objects by type
 * @closing: no new objects
 * @dead: the device is gone; calls answer DAT_INTERNAL_ERROR
 * @async_evd: where asynchronous events go
 * @own_async: @async_evd was made by dat_ia_openv and goes with the IA
 * @mutex: serialises the lazy creation of @null_evd
 * @null_evd: takes the completions of EP queues that name no EVD
 * @keys: its MRs by their keys
 * @reserved: the reserved LMR, once asked for; @mutex
 * @doubts: MRs to be replaced; @doubt_lock
 * @doubt_mutex: one at a time replaces them
 * @told: IA_CATASTROPHIC has been reported; dev->lock
 * @pick: which of the port's addresses it uses; constant
 * @addr: last address handed out by dat_ia_query
 * @max_msg: largest message of the port
 * @unused: woken when an object lost its last user
 */
struct kdapl_ia {
	struct kdapl_obj obj;
	struct kdapl_device *dev;
	u32 port;
	char name[DAT_NAME_MAX_LENGTH];
	const char *consumer;		/* name of its module; lives as long as ours */
	struct list_head dev_node;
	spinlock_t lock;		/* objs, closing, async_evd, live and users of objects */
	struct list_head objs[KDAPL_NTYPES];
	struct list_head going;		/* EVDs retired, whose upcalls may still run; lock */
	bool closing;
	bool told;
	struct kdapl_pick pick;
	struct kdapl_evd *async_evd;
	bool own_async;
	struct mutex mutex;		/* null_evd */
	struct kdapl_evd *null_evd;
	bool dead;			/* beside @keys: posts read both */
	struct kdapl_keys keys;
	struct kdapl_lmr *reserved;
	struct list_head doubts;
	spinlock_t doubt_lock;		/* doubts; inside mr->lock */
	struct mutex doubt_mutex;	/* inside dev->lock */
	struct sockaddr_storage addr;
	u32 max_msg;
	wait_queue_head_t unused;
};

void kdapl_ia_async(struct kdapl_ia *ia, DAT_HANDLE handle, u32 number, DAT_COUNT reason);
void kdapl_ia_exit(void);
void kdapl_ia_limits(struct kdapl_ia *ia, DAT_IA_ATTR *attr);
void kdapl_ia_pdata(struct kdapl_ia *ia, struct kdat_pdata_limits *limits);

/* ------------------------------------------------------------------ */
/* addr.c: names and IP addresses of IAs                                */

bool kdapl_port_named(struct kdapl_device *dev, u32 port, const char *name, struct net *net,
		      struct kdapl_pick *pick);
int kdapl_ia_address(struct kdapl_ia *ia, const struct sockaddr *dst,
		     struct sockaddr_storage *addr, struct net **net);
bool kdapl_ia_owns(struct kdapl_ia *ia, const struct sockaddr *addr,
		   struct sockaddr_storage *full, struct net **net);
u16 kdapl_addr_port(const struct sockaddr_storage *addr);
void kdapl_addr_set_port(struct sockaddr_storage *addr, u16 port);
int kdapl_addr_len(const struct sockaddr *addr);
DAT_RETURN kdapl_addr_check(const struct sockaddr *addr);
bool kdapl_comm_supported(const DAT_COMM *comm);

/* ------------------------------------------------------------------ */
/* pz.c and lmr_reg.c: PD and its registration QP                       */

/**
 * struct kdapl_pd - verbs half of a PZ
 * @pd: NULL once the device took it back
 * @ref: the PZ, each MR and each transport half
 * @lock: one registration at a time; protects @reg
 * @fence: with KDAPL_FENCE_INV: never valid; to invalidate it fences requests (D-83)
 * @reg: registration QP, built when first needed (lmr_reg.c)
 * @rcu: posts may still look at it for a grace period
 */
struct kdapl_pd {
	struct kdapl_device *dev;
	u32 port;
	struct ib_pd *pd;
	struct ib_mr *fence;
	struct kdapl_claim claim;
	refcount_t ref;
	struct mutex lock;		/* pd, reg */
	struct kdapl_reg *reg;
	struct rcu_head rcu;
};

void kdapl_pd_put(struct kdapl_pd *pd);
void kdapl_pd_destroy_verbs(struct kdapl_pd *pd);

struct kdapl_pz {
	struct kdapl_obj obj;
	struct kdapl_pd *pd;
};

void kdapl_pz_destroy(struct kdapl_pz *pz);

int kdapl_reg_mr(struct kdapl_ia *ia, struct kdapl_pd *pd, struct ib_mr *mr, int access);
int kdapl_reg_invalidate(struct kdapl_ia *ia, struct kdapl_pd *pd, u32 key);
void kdapl_reg_destroy(struct kdapl_pd *pd);

/* ------------------------------------------------------------------ */
/* mr.c: native MRs and their keys                                      */

/**
 * struct kdapl_span - what a key stands for, copied out of the MR
 * @domain: who may use it: id of a PD or of an EP, 0 for everybody
 * @start: first address as segments name it (0 when zero based)
 * @length: bytes
 * @priv: what the consumer asked for; posting checks use exactly this
 */
struct kdapl_span {
	unsigned long domain;
	u64 start;
	u64 length;
	DAT_MEM_PRIV_FLAGS priv;
};

/**
 * struct kdapl_mr - a native MR of an LMR or RMR
 * @owner: that LMR or RMR
 * @pd: PD it lives on; holds a reference
 * @ibmr: NULL once the device took it back, and for the reserved LMR
 * @claim: in dev->mrs
 * @mem: what is to be unmapped with it, or NULL
 * @doubt_node: in ia->doubts: a registration of it was flushed, which may mean anything
 * @pages: blocks it maps at most
 * @index: of its keys: what is left of them without the low byte; does not change while
 *	it is in the table of keys
 * @lock: all that follows; taken last
 * @seq: readers of the next three do not take @lock
 * @lkey: what segments name it by, 0 while they may not
 * @rkey: what peers name it by, 0 while they may not
 * @span: what both stand for
 * @next: low byte of the key to come
 * @step: what leads from it to the one after it, odd
 * @used: key of the last registration, 0 before the first
 * @live: that key is or may be valid
 *
 * What posts read is one cache line, from @seq on (asserted in mr.c), and nobody
 * writes there but who registers, invalidates or frees. Memory for what an MR is part of
 * comes from kdapl_zalloc_aligned().
 */
struct kdapl_mr {
	struct kdapl_obj *owner;
	struct kdapl_pd *pd;
	struct ib_mr *ibmr;
	struct kdapl_claim claim;
	struct kdapl_mem *mem;
	struct list_head doubt_node;
	u32 pages;
	u32 index;
	spinlock_t lock;		/* keys and what they stand for; innermost */

	seqcount_spinlock_t seq ____cacheline_aligned;
	u32 lkey;
	u32 rkey;
	struct kdapl_span span;
	u8 next;
	u8 step;
	bool live;
	u32 used;
};

/*
 * kmalloc() promises more than the alignment of a long for powers of two only. To ask for
 * such a size costs nothing: beyond 192 bytes it would round up to one anyway.
 */
static inline void *kdapl_zalloc_aligned(size_t size)
{
	return kzalloc(roundup_pow_of_two(size), GFP_KERNEL);
}

void kdapl_mr_init(struct kdapl_mr *mr, struct kdapl_obj *owner, struct kdapl_pd *pd);
int kdapl_mr_create(struct kdapl_mr *mr, u32 pages);
void kdapl_mr_destroy(struct kdapl_mr *mr);
void kdapl_mr_destroy_verbs(struct kdapl_mr *mr);
int kdapl_mr_prime(struct kdapl_mr *mr);
int kdapl_mr_map(struct kdapl_mr *mr, struct scatterlist *sgl, int nents, u32 page_size,
		 u64 start);
void kdapl_mr_publish(struct kdapl_mr *mr, u32 lkey, u32 rkey, const struct kdapl_span *span);
void kdapl_mr_hide(struct kdapl_mr *mr);
u32 kdapl_mr_next_key(struct kdapl_mr *mr);
u32 kdapl_mr_skip_key(struct kdapl_mr *mr);
void kdapl_mr_new_key(struct kdapl_mr *mr);
int kdapl_mr_access(DAT_MEM_PRIV_FLAGS priv);
void kdapl_mr_invalidated(struct kdapl_half *half, u32 rkey);
void kdapl_mr_doubt(struct kdapl_mr *mr);
void kdapl_mrs_resolve(struct kdapl_ia *ia);
struct kdapl_evd *kdapl_op_evd(struct kdapl_half *op);
void kdapl_op_wait(struct kdapl_ia *ia, spinlock_t *lock, struct kdapl_half **op);

/*
 * A key that is not the one of the moment is refused without a second look: that it
 * is becoming it just now is no reason to wait.
 */
static inline bool kdapl_mr_read(const struct kdapl_mr *mr, u32 key, bool remote,
				 struct kdapl_span *span)
{
	unsigned int seq;

	do {
		seq = read_seqcount_begin(&mr->seq);
		if (unlikely(key != READ_ONCE(*(remote ? &mr->rkey : &mr->lkey)) || !key))
			return false;
		*span = mr->span;
	} while (unlikely(read_seqcount_retry(&mr->seq, seq)));
	return true;
}

/* The MR a key belongs or has belonged to; RCU read side. */
static inline struct kdapl_mr *kdapl_mr_find(struct kdapl_ia *ia, u32 key)
{
	return kdapl_keys_find(&ia->keys, key);
}

/* What an lmr_context stands for; RCU read side. */
static inline bool kdapl_key_find(struct kdapl_ia *ia, u32 key, struct kdapl_span *span)
{
	const struct kdapl_mr *mr = kdapl_mr_find(ia, key);

	return likely(mr) && kdapl_mr_read(mr, key, false, span);
}

/* The same for an rmr_context. */
static inline bool kdapl_rkey_find(struct kdapl_ia *ia, u32 key, struct kdapl_span *span)
{
	const struct kdapl_mr *mr = kdapl_mr_find(ia, key);

	return likely(mr) && kdapl_mr_read(mr, key, true, span);
}

/* Ids of those who may use a key: a handle is odd, a pointer is not. */
static inline unsigned long kdapl_pd_domain(const struct kdapl_pd *pd)
{
	return (unsigned long)pd;
}

/* ------------------------------------------------------------------ */
/* lmr_mem.c: memory as the device sees it                              */

/**
 * struct kdapl_mem - a list of memory
 * @sgt: the list; orig_nents entries there are
 * @used: entries of it that say something
 * @nents: entries the device sees, 0 while it is not mapped
 * @foreign: the addresses were the device's already: nothing is mapped or unmapped
 * @sync: while mapped: the device may see other bytes than the CPU until told
 * @dir: while mapped: enum dma_data_direction, from the rights
 * @head: bytes of the first page before the memory that were mapped with it
 * @tail: bytes of the last page behind it that were
 * @start: address of the first byte, as the consumer names it
 * @length: bytes
 * @common: where the device may have a copy that it writes: the bytes as they were when
 *	CPU and device agreed last (dma.c); a page for dma.c to work in follows
 * @common_size: bytes there is room for in @common
 */
struct kdapl_mem {
	struct sg_table sgt;
	unsigned int used;
	unsigned int nents;
	bool foreign;
	bool sync;
	u8 dir;
	u32 head;
	u32 tail;
	u64 start;
	u64 length;
	u8 *common;
	u64 common_size;
};

#define KDAPL_MEM_OPTS	(DAT_MEM_OPTIMIZE_IA | DAT_MEM_OPTIMIZE_MIN_EXPOSURE | \
			 DAT_MEM_OPTIMIZE_EXACT_EXPOSURE)

static inline bool kdapl_mem_type_valid(DAT_MEM_TYPE type)
{
	return type == DAT_MEM_TYPE_VIRTUAL || type == DAT_MEM_TYPE_LMR ||
	       type == DAT_MEM_TYPE_PHYSICAL || type == DAT_MEM_TYPE_PLATFORM ||
	       type == DAT_MEM_TYPE_IA || type == DAT_MEM_TYPE_BYPASS ||
	       type == DAT_MEM_TYPE_PHYSICAL_VAR_PAGES;
}

int kdapl_mem_build(struct kdapl_mem *mem, struct kdapl_ia *ia, DAT_MEM_TYPE mem_type,
		    const DAT_REGION_DESCRIPTION *region, u64 length);
int kdapl_mem_map(struct kdapl_mem *mem, struct kdapl_device *dev, DAT_MEM_PRIV_FLAGS priv);
void kdapl_mem_unmap(struct kdapl_mem *mem, struct kdapl_device *dev);
void kdapl_mem_unmap_source(struct kdapl_mem *mem, struct kdapl_device *dev);
void kdapl_mem_free(struct kdapl_mem *mem);
u32 kdapl_mem_page_size(struct kdapl_device *dev, struct scatterlist *sgl, unsigned int nents,
			u64 start, u64 sizes, u32 max_blocks, u32 *blocks);
u64 kdapl_mem_page_sizes(struct kdapl_device *dev, bool fmr);

/* ------------------------------------------------------------------ */
/* dma.c: memory that CPU and device do not see alike                   */

/* What DMA makes of memory, as far as can be known of the device as a whole. */
enum kdapl_dma_kind {
	KDAPL_DMA_SAME,		/* CPU and device always see the same bytes */
	KDAPL_DMA_CACHES,	/* the same memory, but caches must be told */
	KDAPL_DMA_COPIES,	/* the device may be given a copy of the memory */
};

/* Why memory is synchronised. */
enum kdapl_sync {
	KDAPL_SYNC_SOURCE,	/* the device is going to read it */
	KDAPL_SYNC_SINK,	/* the device is going to write it, and nobody else */
	KDAPL_SYNC_FILLED,	/* the device has written it */
	KDAPL_SYNC_FAILED,	/* it may have, and what it has written is nothing */
	KDAPL_SYNC_SHARED,	/* peers have written some of it and the CPU other bytes */
};

/* A device's DMA that a test has made up. */
struct kdapl_dma_ops {
	u8 kind;
	bool coherent;
	int (*map_sg)(struct ib_device *ibdev, struct scatterlist *sgl, int nents, int dir);
	void (*unmap_sg)(struct ib_device *ibdev, struct scatterlist *sgl, int nents, int dir);
	u64 (*map_single)(struct ib_device *ibdev, void *address, size_t size, int dir);
	void (*unmap_single)(struct ib_device *ibdev, u64 addr, size_t size, int dir);
	bool (*need_sync)(struct ib_device *ibdev, u64 addr);
	void (*sync)(struct ib_device *ibdev, u64 addr, size_t size, int dir, bool for_cpu);
};

#ifdef KDAPL_KUNIT
const struct kdapl_dma_ops *kdapl_test_dma(struct ib_device *ibdev);
#endif

/**
 * struct kdapl_sinks - what outstanding requests are to fill
 * @width: segments of one request at most
 * @seg: of one request after the other; one without a key ends a list
 */
struct kdapl_sinks {
	u32 width;
	DAT_LMR_TRIPLET seg[];
};

void kdapl_dma_init(struct kdapl_device *dev);
u32 kdapl_dma_max_entry(struct kdapl_device *dev);
int kdapl_dma_map_sg(struct kdapl_device *dev, struct scatterlist *sgl, int nents, int dir);
void kdapl_dma_unmap_sg(struct kdapl_device *dev, struct scatterlist *sgl, int nents, int dir);
int kdapl_dma_map_single(struct kdapl_device *dev, void *address, size_t size, u64 *addr);
void kdapl_dma_unmap_single(struct kdapl_device *dev, u64 addr, size_t size);
bool kdapl_dma_need_sync(struct kdapl_device *dev, u64 addr);
void kdapl_dma_sync(struct kdapl_device *dev, u64 addr, u64 length, enum kdapl_sync why);
int kdapl_mem_share(struct kdapl_mem *mem, u64 length);
void kdapl_mem_unshare(struct kdapl_mem *mem);
void kdapl_mem_agree(struct kdapl_mem *mem);
void kdapl_mem_sync(struct kdapl_device *dev, struct kdapl_mem *mem, u64 pos, u64 length,
		    enum kdapl_sync why);

/* ------------------------------------------------------------------ */
/* lmr_sync.c: memory of segments, between CPU and device               */

void kdapl_sync_segments(struct kdapl_ia *ia, const DAT_LMR_TRIPLET *seg, int n, u64 length,
			 enum kdapl_sync why);
struct kdapl_sinks *kdapl_sinks_alloc(struct kdapl_device *dev, u32 requests, u32 width);
void kdapl_sinks_keep(struct kdapl_sinks *sinks, u32 index, const DAT_LMR_TRIPLET *seg, int n,
		      u64 length);
void kdapl_sinks_filled(struct kdapl_sinks *sinks, u32 index, struct kdapl_ia *ia, u64 length);
void kdapl_sinks_failed(struct kdapl_sinks *sinks, u32 index, struct kdapl_ia *ia);
void kdapl_sinks_forget(struct kdapl_sinks *sinks, u32 index);

/* ------------------------------------------------------------------ */
/* lmr.c, lmr_state.c, lmr_fmr.c                                        */

/* lmr_context of the reserved LMR: index 0, which no device hands out */
#define KDAPL_RESERVED_CONTEXT	0x52

/*
 * In the rights of a span only: CPU and device see the memory alike. The fast path asks for
 * it as for any right, so that what has to be synchronised takes the slow path.
 */
#define KDAPL_PRIV_DIRECT	((DAT_MEM_PRIV_FLAGS)0x40)

/* the same and the right to read it here, in one bit, which is quicker to ask for */
#define KDAPL_PRIV_SOURCE	((DAT_MEM_PRIV_FLAGS)0x80)

static inline u32 kdapl_priv_direct(u32 priv)
{
	return priv | KDAPL_PRIV_DIRECT |
	       (priv & DAT_MEM_PRIV_LOCAL_READ_FLAG ? KDAPL_PRIV_SOURCE : 0);
}

#define KDAPL_PRIV_REMOTE	(DAT_MEM_PRIV_REMOTE_READ_FLAG | DAT_MEM_PRIV_REMOTE_WRITE_FLAG)

/* How a request for an LMR or RMR has ended. */
enum kdapl_outcome {
	KDAPL_DONE,		/* the device has carried it out */
	KDAPL_NEVER,		/* the device has not seen it */
	KDAPL_UNKNOWN,		/* flushed or failed: it may have been carried out before */
};

enum kdapl_lmr_state {
	KDAPL_LMR_UNBOUND,	/* stands for nothing, or the peer has invalidated it */
	KDAPL_LMR_BOUND,
	KDAPL_LMR_ENDING,	/* an invalidate has been posted */
	KDAPL_LMR_STALE,	/* invalidated by the peer, and an RMR still needs its mapping */
	KDAPL_LMR_DOUBTFUL,	/* a registration was flushed: its MR has to be replaced */
	KDAPL_LMR_DEAD,		/* being freed */
};

/* Operations on the request queue that change an LMR; each at most once at a time. */
enum kdapl_lmr_op {
	KDAPL_LMR_REG,
	KDAPL_LMR_INV,
	KDAPL_LMR_OPS
};

/**
 * struct kdapl_lmr - a Local Memory Region
 * @mr: its MR and keys; mr.lock protects what is said to be so
 * @pz: holds a use
 * @priv: what the consumer asked for; mr.lock
 * @va_type: mr.lock, as @mem_type, @region and @mem
 * @reserved: the IA's reserved LMR
 * @fmr: of dat_lmr_allocate()
 * @scope: who may use what it is bound to
 * @state: enum kdapl_lmr_state; mr.lock
 * @ep: id of the EP that has bound it last, with DAT_LMR_SCOPE_EP; mr.lock
 * @op: halves with an operation for it that has not come back; mr.lock
 * @seq: how many operations of each kind there were; mr.lock
 * @windows: RMRs bound to it, or about to be; mr.lock
 * @mem: its memory
 * @old: the memory before, of a binding so large that it is unmapped a little later; its list
 *	is the spare one, if there is one; mr.lock
 * @unmapping: that has not been done yet, whoever is at it; mr.lock
 * @unmap_work: does it, unless somebody else was faster
 */
struct kdapl_lmr {
	struct kdapl_obj obj;
	struct kdapl_mr mr;
	struct kdapl_pz *pz;
	DAT_PZ_HANDLE pz_handle;
	DAT_MEM_PRIV_FLAGS priv;
	DAT_VA_TYPE va_type;
	DAT_MEM_TYPE mem_type;
	DAT_REGION_DESCRIPTION region;
	u64 length;			/* as asked for: bytes or pages */
	bool reserved;
	bool fmr;
	DAT_LMR_SCOPE scope;
	u8 state;
	unsigned long ep;
	struct kdapl_half *op[KDAPL_LMR_OPS];
	u32 seq[KDAPL_LMR_OPS];
	unsigned int windows;
	bool unmapping;
	struct kdapl_mem mem;
	struct kdapl_mem old;
	struct work_struct unmap_work;
};

static inline u64 kdapl_lmr_start(const struct kdapl_lmr *lmr)
{
	return lmr->va_type == DAT_VA_TYPE_ZB ? 0 : lmr->mem.start;
}

struct kdapl_lmr *kdapl_lmr_alloc(struct kdapl_ia *ia, struct kdapl_pz *pz, DAT_PZ_HANDLE handle);
void kdapl_lmr_destroy(struct kdapl_lmr *lmr);
DAT_RETURN kdapl_lmr_ret(int err);
void kdapl_lmr_publish(struct kdapl_lmr *lmr);
DAT_RETURN kdapl_lmr_claim(struct kdapl_lmr *lmr, enum kdapl_lmr_op op, struct kdapl_ep *ep,
			   struct kdapl_half *half, bool live, u32 *seq);
void kdapl_lmr_settle(struct kdapl_lmr *lmr, enum kdapl_lmr_op op, u32 seq,
		      enum kdapl_outcome outcome);
void kdapl_lmr_resolved(struct kdapl_lmr *lmr);
void kdapl_lmr_invalidated(struct kdapl_lmr *lmr, u32 rkey);
void kdapl_lmr_unbound_rmr(struct kdapl_lmr *lmr);
void kdapl_lmr_quiesce(struct kdapl_lmr *lmr);
void kdapl_lmr_unmap_init(struct kdapl_lmr *lmr);
int kdapl_lmr_spare_list(struct kdapl_lmr *lmr, u32 pages);
void kdapl_lmr_unmap(struct kdapl_lmr *lmr);
DAT_RETURN kdapl_lmr_op_begin(struct kdapl_ep *ep, struct kdapl_half *half,
			      const struct kdat_request *in, struct kdapl_post *post);
void kdapl_lmr_op_undo(const struct kdapl_post *post);
void kdapl_lmr_reserved_destroy(struct kdapl_ia *ia);

/* ------------------------------------------------------------------ */
/* rmr.c                                                                */

/**
 * struct kdapl_binding - what an RMR stands for
 * @lmr: whose memory; counts in its windows; NULL: nothing
 * @mr: which of the two MRs
 * @span: what its key stands for
 * @triplet: as asked for
 * @priv: as asked for
 * @va_type: as asked for
 * @context: key for peers
 */
struct kdapl_binding {
	struct kdapl_lmr *lmr;
	struct kdapl_mr *mr;
	struct kdapl_span span;
	DAT_LMR_TRIPLET triplet;
	DAT_MEM_PRIV_FLAGS priv;
	DAT_VA_TYPE va_type;
	DAT_RMR_CONTEXT context;
};

/**
 * struct kdapl_rmr - a Remote Memory Region
 * @mr: two, so that the one a peer may still use is never mapped anew
 * @pz: holds a use
 * @scope: who may bind it
 * @lock: all that follows; outside of the locks of MRs
 * @now: what it is bound to
 * @next: what a bind under way will bind it to
 * @op: half with a bind that has not come back
 * @inv_done: the old key is gone already, whatever becomes of the bind
 * @next_gone: the new key is, by the peer's doing
 * @doubtful: a bind was flushed: the MR of @next has to be replaced
 * @dead: being freed
 * @ep: id of the EP that has bound it, with DAT_RMR_SCOPE_EP
 * @sgl: room for the part of an LMR that is bound
 */
struct kdapl_rmr {
	struct kdapl_obj obj;
	struct kdapl_mr mr[2];
	struct kdapl_pz *pz;
	DAT_PZ_HANDLE pz_handle;
	DAT_RMR_SCOPE scope;

	spinlock_t lock;		/* all that follows */
	struct kdapl_binding now;
	struct kdapl_binding next;
	struct kdapl_half *op;
	bool inv_done;
	bool next_gone;
	bool doubtful;
	bool dead;
	unsigned long ep;
	struct scatterlist *sgl;
};

u32 kdapl_rmr_pages(struct kdapl_device *dev);
void kdapl_rmr_destroy(struct kdapl_rmr *rmr);
void kdapl_rmr_settle(struct kdapl_rmr *rmr, u8 op, enum kdapl_outcome outcome);
void kdapl_rmr_resolved(struct kdapl_rmr *rmr);
void kdapl_rmr_invalidated(struct kdapl_rmr *rmr, struct kdapl_mr *mr, u32 rkey);
bool kdapl_rmr_behind(struct kdapl_rmr *rmr, const DAT_LMR_TRIPLET *seg, DAT_LMR_TRIPLET *behind);

/* ------------------------------------------------------------------ */
/* ep_qp.c: rings and the transport half                                */

enum kdapl_wr_state {
	KDAPL_WR_NATIVE,	/* with the device */
	KDAPL_WR_DONE,		/* its completion came, status and length are set */
	KDAPL_WR_SOFT,		/* never reached the device, will be reported FLUSHED */
};

/* Values of kdapl_wr.op beside DAT_DTOS: never visible to the consumer. */
#define KDAPL_OP_INV		0xfc	/* of the old key of an RMR */
#define KDAPL_OP_MARKER		0xfd
#define KDAPL_OP_FENCE		0xfe
#define KDAPL_OP_NUDGE		0xff

/* Values of kdapl_wr.flags beside the completion flags of the post. */
#define KDAPL_WR_BROKEN		0x10	/* our own request before it, a part of it, has failed */
#define KDAPL_WR_SIGNALED	0x40	/* has a completion even on success */
#define KDAPL_WR_INVALIDATED	0x80	/* receive: key holds what the peer invalidated */
#define KDAPL_WR_UNSETTLED	0x80	/* request: its LMR or RMR waits for the outcome */

/**
 * struct kdapl_wr - context of one work request, two to a cache line
 * @cqe: what the completion points at
 * @cookie: the consumer's, all 64 bits
 * @index: position in the ring array, constant: leads back to the ring
 * @length: bytes as posted; for a finished receive the message length; for what is done
 *	to an LMR, which time it is
 * @seq: requests: consumer requests posted up to and including this one
 * @key: receives: invalidated rkey
 * @op: DAT_DTOS or KDAPL_OP_*
 * @flags: completion flags of the post, KDAPL_WR_*
 * @state: enum kdapl_wr_state
 * @status: DAT_DTO_COMPLETION_STATUS once DONE
 * @settles: requests until then: suppressed ones about LMRs lie before it, whose outcome
 *	its completion tells
 */
struct kdapl_wr {
	struct ib_cqe cqe;
	u64 cookie;
	u32 index;
	u32 length;
	union {
		u32 seq;
		u32 key;
	};
	u8 op;
	u8 flags;
	u8 state;
	union {
		u8 status;
		u8 settles;
	};
};

static_assert(!((KDAPL_WR_BROKEN | KDAPL_WR_SIGNALED | KDAPL_WR_UNSETTLED |
		 KDAPL_WR_INVALIDATED) &
		(DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_SOLICITED_WAIT_FLAG |
		 DAT_COMPLETION_UNSIGNALLED_FLAG | DAT_COMPLETION_BARRIER_FENCE_FLAG |
		 DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG)));
#ifdef CONFIG_64BIT
static_assert(sizeof(struct kdapl_wr) == 32);
#endif

/* Our own requests there can be in a ring: a nudge, and a marker or two. */
#define KDAPL_MARKERS	3
/* Of those, with the device at a time. */
#define KDAPL_OWN_WRS	2

/* What a request does something to: the LMR or RMR, referenced while unsettled, then its handle. */
union kdapl_slot {
	struct kdapl_obj *obj;
	DAT_HANDLE handle;
};

enum kdapl_ring_mode {
	KDAPL_RING_MOVED,	/* the EP has another half: look again */
	KDAPL_RING_REFUSE,	/* the EP state does not allow posts */
	KDAPL_RING_LIVE,	/* to the device */
	KDAPL_RING_SOFT,	/* into the ring only, reported FLUSHED (D-06, D-07) */
};

/* Why a completion may not be one to one with the entry at the tail (evd_poll.c). */
#define KDAPL_ODD_EARLY		0x1	/* Receives: the connection is not known yet */
#define KDAPL_ODD_EVER		0x2	/* the device, disorder, the end, or an EP being freed */
#define KDAPL_ODD_SYNC		0x4	/* what the device has written must be shown to the CPU */

/* What has a straight way (post.c): Send, Write, Read, by DAT_DTOS; Receives have [0]. */
#define KDAPL_STRAIGHT_OPS	(DAT_DTO_RDMA_READ + 1)

/**
 * struct kdapl_ring - work requests of one direction of one half, in post order
 *
 * Indexes run freely and are masked on use. Entries between @tail and @head
 * belong to the provider. A completion for entry k on an in-order device means
 * that everything before k is done, so reclaiming is the one store tail = k+1.
 *
 * By who writes what: a post reads one line and writes another, a completion
 * writes a third, beside that of the entry.
 */
struct kdapl_ring {
	/* read by posts; for requests, what may be without a closer look once connected */
	struct kdapl_ia *ia;
	struct ib_qp *qp;
	unsigned long domain[2];	/* whose keys may be used: ids of PD and EP */
	u64 max_rdma;			/* bytes */
	u64 max_message;
	u32 mask;
	u16 max_iov[KDAPL_STRAIGHT_OPS];	/* segments the straight way takes */
	u8 flags[KDAPL_STRAIGHT_OPS];	/* and completion flags */
	bool serial;			/* the consumer serialises what it posts (D-78) */
	u8 sink;			/* rights an RDMA Read needs */

	/* producer: written under lock, or by the consumer's word (serial) */
	spinlock_t lock ____cacheline_aligned_in_smp;	/* producer side, over the post */
	u8 mode;		/* enum kdapl_ring_mode */
	bool marker;		/* a marker is under way; cleared under evd->lock */
	bool drained;		/* at the end the device had nothing to give back */
	bool memops_before;	/* suppressed ones, since the last completion asked for */
	u32 head;
	u32 cached_tail;
	u32 cached_done;
	u32 dtos;		/* consumer requests posted */
	u32 reads;		/* reads posted */
	u32 native;		/* receives handed to the device */
	u32 unsignaled;		/* in a row */
	u32 last_sup;		/* index of the last suppressed request */
	u32 marker_pos;
	u32 memops;		/* operations on LMRs and RMRs handed to the device */
	/* constant after creation, for the producer */
	u32 slots;		/* WRs a consumer may have in the ring */
	u32 depth;		/* DTOs the consumer asked for */
	u32 interval;		/* force a signal after so many suppressed ones */

	/* consumer: written under the lock of cq's EVD */
	DAT_EP_HANDLE handle ____cacheline_aligned_in_smp;	/* of the EP; constant */
	u32 tail;
	u32 dtos_done;
	u32 reads_done;
	u32 reaped;		/* receives whose completion came */
	u32 sent;		/* ooo: everything unsignaled before this index is done */
	u32 memops_done;	/* of @memops, those settled */
	u32 done_mask;		/* mask; constant */
	bool marker_done;	/* the marker's completion came */
	bool ended;		/* no native completion will come any more */
	bool dead;		/* with the reaper: never reported again */
	bool lost;		/* ended by force: what is left is reported FLUSHED */
	u8 odd;			/* KDAPL_ODD_*: a completion needs more than the usual look */
	bool recv;		/* constant */
	bool ooo;		/* reads complete out of order (siw); constant */
	struct list_head ready;	/* in evd->ready: entries wait to be reported */

	/* constant after creation */
	struct kdapl_half *half ____cacheline_aligned_in_smp;
	struct kdapl_cq *cq;
	u32 max_reads;		/* reads under way at once (siw), 0: no limit */
	u32 max_sge;
	u32 stride;		/* segments of scratch per request */
	struct ib_sge *scratch;	/* for segments that must be rewritten, per request of a list */
	union kdapl_native_wr *chain;	/* send rings: for the list */
	union kdapl_slot *slot;	/* send rings: beside wr[] */
	struct kdapl_sinks *sinks;	/* beside wr[], where DMA has to be synchronised, or NULL */
	u32 shown;		/* send rings with sinks: up to this index they have been */

	/* for debugfs; written under the lock of cq's EVD */
	u32 flushed;		/* what was reported so */
	u32 failed;		/* or otherwise than as a success */
	u8 error;		/* DAT_DTO_COMPLETION_STATUS of the first of these */

	struct kdapl_wr wr[] ____cacheline_aligned_in_smp;
};

static inline struct kdapl_ring *kdapl_wr_ring(const struct kdapl_wr *wr)
{
	return container_of(wr - wr->index, struct kdapl_ring, wr[0]);
}

enum kdapl_half_phase {
	KDAPL_HALF_IDLE,	/* QP in INIT, receives may be posted */
	KDAPL_HALF_CONNECTING,	/* a cm_id works for it */
	KDAPL_HALF_UP,		/* ESTABLISHED is queued */
	KDAPL_HALF_ENDING,	/* QP in ERR, waiting for the last completion */
	KDAPL_HALF_ENDED,	/* end event queued; only software flushes from here */
};

/**
 * struct kdapl_patience - how long a device may do nothing
 * @seen: kdapl_half_progress() when it was last looked at
 * @span: jiffies it may stand still; 0: not at all
 * @deadline: jiffies when that ends
 */
struct kdapl_patience {
	u32 seen;
	unsigned long span;
	unsigned long deadline;
};

/* Reasons of kdapl_half_end() beside DAT_CONNECTION_EVENT_*. */
#define KDAPL_END_NONE		0
#define KDAPL_END_SUSPECT	1	/* unexpected flush on iWARP (D-08) */
#define KDAPL_END_SILENT	2	/* the EP is being freed: no event */
#define KDAPL_END_PEER		3	/* the CM says so: DISCONNECTED, if nothing worse is seen */

/*
 * How long data may be there before the CM is told that there must be a
 * connection. Its own word normally follows within microseconds; telling it
 * nevertheless lets a disconnect of the peer overtake that word.
 */
#define KDAPL_EST_TIME	(HZ / 20)

/*
 * How long the accepting side keeps ESTABLISHED from its consumer where the peer gives up if
 * more than the answer is there when it reads that. Nothing tells when it has; its work items
 * do it within a millisecond or two, unless its CPUs are busy.
 */
#define KDAPL_HOLD_TIME	(HZ / 20)

/* What a QP does unless the consumer says otherwise. */
#define KDAPL_RETRY_COUNT	6	/* 7 means for ever on soft-RoCE */
#define KDAPL_RNR_RETRY_COUNT	6	/* 7 would mean for ever */

/**
 * struct kdapl_half - the replaceable transport half of an EP
 * @ep: back pointer, holds a memory reference
 * @handle: the EP's handle, for events
 * @attr: the EP's attributes this half was made for
 * @recv_evd: EVDs of the rings, valid until the reaper has it
 * @request_evd: the same
 * @replaces: until this half is in its place: the one it is to replace on the
 *	same EVDs
 * @pool: where Receives come from, with an SRQ
 * @pool_node: in pool->halves, until no completion can come; pool->lock
 * @qp_node: in pool->by_qp, as long
 * @early: buffers of the SRQ that were filled before ESTABLISHED, in order; lock
 *	of the recv EVD, as for @held and @watched
 * @held: buffers of the SRQ not yet handed to the consumer
 * @watched: counted in recv_evd->watching
 * @last_wqe: the device says that it takes no more buffers from the SRQ
 * @pool_deadline: jiffies when waiting for that ends
 * @destroy_lock: held while cm_id and QP are destroyed, without @lock
 * @lock: verbs calls and @phase
 * @phase: enum kdapl_half_phase; written under @lock
 * @qpn: of the QP, also when that is gone; constant
 * @reason: why it ends: KDAPL_END_* or a DAT_EVENT_NUMBER, first one wins
 * @passive: made by dat_cr_accept
 * @hurried: nothing is waited for at the end: the QP goes at once
 * @retries: how often an old connection was in the way of the attempt, here or at the peer
 * @conn: how to treat the network, as asked for
 * @cm_up: the CM considers the connection made, so it wants rdma_disconnect
 * @draining: a graceful disconnect waits for its marker; under sq->lock
 * @stopping: the QP was or is about to be moved to ERR by ourselves
 * @wc_failed: an error completion came before the half was up
 * @discard: completions are dropped, the EP was freed or reset: kdapl_half_discard()
 * @owed: it had ended before: whatever is dropped is something the consumer was to see
 * @dropped: such completions, by the locks of two EVDs
 * @reaping: the reaper has it; dev->lock
 * @connecting: rdma_connect has not returned or, on iWARP, has no answer yet: the
 *	cm_id can be destroyed only by somebody who may wait for it
 * @spoken: passive: the peer has sent something, so it has seen our answer
 * @held_back: the CM considers the connection made, the consumer does not know yet
 * @read_in: reads the peer may have outstanding, as asked from or granted by the CM
 * @read_out: reads this side would like to have outstanding
 * @read_depth: reads this side may have outstanding, as negotiated
 * @reads_refused: the log says that one was refused for lack of that
 * @flush: how long to wait for what is flushed
 * @drain: how long a graceful disconnect waits, where it does not wait for ever
 * @cm_id: of the attempt or its retry; @lock, taken out before it is destroyed
 * @local: own address and port, once known
 * @remote: peer's address and port
 * @pdata: private data that came with ESTABLISHED or PEER_REJECTED; there is room for
 *	it from the beginning of the attempt
 * @nudge_work: keeps soft-iWARP awake at the start of a connection
 * @nudges: how many there were
 * @nudged: one has been posted; lock of the ring
 * @nudge_pos: where the last one is in the ring; lock of the ring
 * @cm_down: completed when the CM knows that both ends are disconnected, or the
 *	device is lost
 * @gone: completed when reaped
 * @free_work: the rest, a grace period later, for posting calls may still look at the rings
 */
struct kdapl_half {
	/* what posts and completions read; constant */
	struct kdapl_ring *sq;
	struct kdapl_ring *rq;
	DAT_EP_HANDLE handle;
	struct kdapl_device *dev;
	struct kdapl_ep *ep;
	struct kdapl_pd *pd;
	struct ib_qp *qp;

	refcount_t ref;
	u32 qpn;
	struct list_head dev_node;
	DAT_EP_ATTR attr;
	struct kdapl_evd *recv_evd;
	struct kdapl_evd *request_evd;
	struct kdapl_half *replaces;

	struct kdapl_pool *pool;
	struct list_head pool_node;
	struct hlist_node qp_node;
	struct ib_qp *pool_qp;		/* key in pool->by_qp, a value only */
	struct list_head early;
	u32 held;
	bool watched;
	bool last_wqe;
	unsigned long pool_deadline;

	struct mutex destroy_lock;	/* destroying cm_id and QP; never taken by a handler */
	struct mutex lock;		/* verbs calls, phase, cm_id */
	u8 phase;
	bool passive;
	bool cm_up;
	bool stopping;
	bool draining;
	bool wc_failed;
	bool discard;
	bool owed;
	bool reaping;
	bool connecting;
	bool hurried;
	bool spoken;
	bool held_back;
	u8 retries;
	atomic_t reason;
	struct kdat_conn_attr conn;
	u8 read_in;
	u8 read_out;
	u8 read_depth;
	bool reads_refused;
	atomic_t dropped;
	struct kdapl_patience flush;
	struct kdapl_patience drain;

	struct rdma_cm_id *cm_id;
	struct sockaddr_storage local;
	struct sockaddr_storage remote;
	void *pdata;
	u32 pdata_len;
	void *conn_pdata;	/* private data of the request until it is sent */
	u8 conn_pdata_len;

	struct work_struct conn_work;	/* rdma_connect */
	struct delayed_work est_work;	/* data came before the CM's word */
	struct delayed_work nudge_work;
	unsigned int nudges;
	bool nudged;
	u32 nudge_pos;
	struct delayed_work retry_work;	/* after an old connection was in the way */
	struct delayed_work timer;	/* dat_ep_connect timeout */
	struct delayed_work end_work;
	struct work_struct reap_work;
	struct completion ended;
	struct completion cm_down;
	struct completion gone;
	struct rcu_work free_work;
};

/*
 * A number that changes whenever the device gives something back. Any context; not more than a
 * hint, since nothing is locked.
 */
static inline u32 kdapl_half_progress(const struct kdapl_half *half)
{
	const struct kdapl_ring *sq = half->sq;

	return READ_ONCE(sq->tail) + READ_ONCE(sq->sent) + READ_ONCE(sq->reads_done) +
	       READ_ONCE(sq->memops_done) + READ_ONCE(half->rq->reaped);
}

/* Something has ended this half already: it will carry no connection. */
static inline bool kdapl_half_spent(struct kdapl_half *half)
{
	return atomic_read(&half->reason) != KDAPL_END_NONE;
}

/**
 * struct kdapl_ep_conf - what a half is made of
 * @attr: attributes, as granted
 * @pz: NULL: no half
 * @recv_evd: never NULL
 * @request_evd: never NULL
 */
struct kdapl_ep_conf {
	DAT_EP_ATTR attr;
	struct kdapl_pz *pz;
	struct kdapl_evd *recv_evd;
	struct kdapl_evd *request_evd;
};

struct kdapl_half *kdapl_half_create(struct kdapl_ep *ep, const struct kdapl_ep_conf *conf,
				     struct kdapl_half *old);
void kdapl_half_put(struct kdapl_half *half);
void kdapl_half_end(struct kdapl_half *half, int reason);
void kdapl_half_drain_gracefully(struct kdapl_half *half);
void kdapl_half_drop(struct kdapl_half *half, bool all_events);
void kdapl_half_reap(struct kdapl_half *half);
void kdapl_half_remove(struct kdapl_half *half);
void kdapl_patience_start(struct kdapl_patience *patience, const struct kdapl_half *half,
			  unsigned long span);
void kdapl_half_drained(struct kdapl_half *half);
bool kdapl_half_drain_stuck(struct kdapl_half *half);
bool kdapl_patience_over(struct kdapl_patience *patience, const struct kdapl_half *half);
void kdapl_half_qp_attr(const struct kdapl_half *half, int mask, struct ib_qp_attr *attr);
int kdapl_half_to_rts(struct kdapl_half *half, struct rdma_cm_id *id);
void kdapl_half_established(struct kdapl_half *half);
void kdapl_half_nudge(struct kdapl_half *half);
void kdapl_half_nudge_now(struct kdapl_half *half);
void kdapl_ring_set_mode(struct kdapl_ring *ring, enum kdapl_ring_mode mode);
void kdapl_ring_quiesce(struct kdapl_ring *ring);

/* ------------------------------------------------------------------ */
/* ep.c, ep_state.c                                                     */

enum kdapl_ep_input {
	KDAPL_IN_CONNECT,	/* dat_ep_connect() and its relatives */
	KDAPL_IN_UNDO,		/* they failed before anything happened */
	KDAPL_IN_RESERVE,	/* dat_rsp_create() */
	KDAPL_IN_UNRESERVE,	/* dat_rsp_free() */
	KDAPL_IN_REQUEST,	/* a request arrived at the RSP */
	KDAPL_IN_ACCEPT,	/* dat_cr_accept() with this EP */
	KDAPL_IN_ACCEPT_OWN,	/* dat_cr_accept() of a request that has this EP */
	KDAPL_IN_DECLINE,	/* dat_cr_reject() or dat_cr_handoff() of it */
	KDAPL_IN_ESTABLISHED,
	KDAPL_IN_GRACEFUL,	/* dat_ep_disconnect() */
	KDAPL_IN_ABRUPT,	/* the same */
	KDAPL_IN_ENDED,		/* the half has ended, for whatever reason */
	KDAPL_IN_REMOVED,	/* the device has gone or failed, with the request */
	KDAPL_IN_RESET,		/* dat_ep_reset() */
	KDAPL_IN_FREE,		/* dat_ep_free() */
	KDAPL_EP_INPUTS
};

/**
 * struct kdapl_watermark - fires once per setting
 * @value: as set; DAT_WATERMARK_INFINITE for never
 * @armed: the same until it has fired, then DAT_WATERMARK_INFINITE
 * @fired: events still to be queued
 */
struct kdapl_watermark {
	int value;
	atomic_t armed;
	atomic_t fired;
};

static inline void kdapl_watermark_set(struct kdapl_watermark *wm, int value)
{
	WRITE_ONCE(wm->value, value);
	atomic_set(&wm->armed, value);
}

/* Is @count above the watermark, for the first time? */
static inline bool kdapl_watermark_above(struct kdapl_watermark *wm, u32 count)
{
	int value = atomic_read(&wm->armed);

	return value >= 0 && count > value &&
	       atomic_cmpxchg(&wm->armed, value, DAT_WATERMARK_INFINITE) == value;
}

#define KDAPL_EP_STATES		(DAT_EP_STATE_COMPLETION_PENDING + 1)
#define KDAPL_EP_REFUSED	(-1)

/**
 * struct kdapl_ep - the long-lived half of an endpoint
 * @half: transport half, RCU: read by posting calls; NULL without a PZ
 * @state: DAT_EP_STATE; written under @lock, read anywhere
 * @lock: protects @state
 * @mutex: one control call at a time
 * @conf: attributes, PZ and EVDs; without an EVD, the IA's null EVD
 * @comm: what dat_ep_common_connect() connects by; @mutex
 * @conn: how its connections treat the network; @lock
 * @serial: the consumer serialises what it posts; @lock
 * @last_event: the last connection event, 0 before the first
 * @cr: request the EP waits for, in PASSIVE_ and TENTATIVE_CONNECTION_PENDING;
 *	@lock
 * @last: the half of an EP that is being destroyed
 * @soft: high watermarks of the buffers taken from the SRQ
 * @soft_work: queues the asynchronous event of @soft
 * @free_work: dat_ep_free from a context that may not wait
 */
struct kdapl_ep {
	struct kdapl_obj obj;
	struct kdapl_half __rcu *half;
	int state;

	spinlock_t lock;		/* state, conn, serial, cr */
	struct mutex mutex;		/* control calls */
	struct kdapl_ep_conf conf;
	struct kdapl_srq *srq;		/* constant */
	DAT_SRQ_HANDLE srq_handle;
	struct kdapl_evd *connect_evd;	/* may be NULL */
	DAT_PZ_HANDLE pz_handle;	/* these as the consumer gave them */
	DAT_EVD_HANDLE recv_handle;
	DAT_EVD_HANDLE request_handle;
	DAT_EVD_HANDLE connect_handle;
	DAT_COMM comm;
	struct kdat_conn_attr conn;
	bool serial;
	u32 last_event;
	struct kdapl_cr *cr;
	struct kdapl_half *last;
	struct kdapl_watermark soft;
	struct kdapl_watermark hard;
	struct work_struct soft_work;
	struct work_struct free_work;
};

int kdapl_ep_next_state(int state, enum kdapl_ep_input input);
int kdapl_ep_step(struct kdapl_ep *ep, enum kdapl_ep_input input);
u64 kdapl_ep_fields(int state);
DAT_RETURN kdapl_ep_may(struct kdapl_ep *ep, enum kdapl_ep_input input);
void kdapl_ep_event(struct kdapl_half *half, u32 number);
void kdapl_ep_ended(struct kdapl_half *half);
void kdapl_ep_held(struct kdapl_half *half);
struct kdapl_ep *kdapl_ep_tentative(struct kdapl_ia *ia, struct kdapl_evd *null_evd,
				    struct kdapl_cr *cr);
void kdapl_ep_request(struct kdapl_ep *ep, struct kdapl_cr *cr);
void kdapl_ep_leave(struct kdapl_ep *ep, enum kdapl_ep_input input);
void kdapl_ep_removed(struct kdapl_ep *ep);
void kdapl_ep_take_back(struct kdapl_ep *ep, bool wait);
void kdapl_eps_destroy(struct list_head *eps);

static inline struct kdapl_half *kdapl_ep_half(struct kdapl_ep *ep)
{
	return rcu_dereference_protected(ep->half, lockdep_is_held(&ep->mutex));
}

/* ------------------------------------------------------------------ */
/* evd.c, evd_poll.c, evd_usual.c, evd_upcall.c                         */

/**
 * struct kdapl_event - an event on its way through the EVD's store
 * @half: whose completion or connection event it is, NULL for others
 * @buf: buffer of an SRQ that is the SRQ's again when the consumer has the event
 * @number: DAT_EVENT_NUMBER
 * @signalled: may start an upcall
 * @data: the payload
 */
struct kdapl_event {
	struct kdapl_half *half;
	struct kdapl_buf *buf;
	u32 number;
	bool signalled;
	DAT_EVENT_DATA data;
};

/* A completion of a DTO, which most are, is the shortest of all. */
static inline void kdapl_event_copy(struct kdapl_event *to, const struct kdapl_event *from)
{
	if (unlikely(from->number != DAT_DTO_COMPLETION_EVENT)) {
		*to = *from;
		return;
	}
	to->half = from->half;
	to->buf = from->buf;
	to->number = from->number;
	to->signalled = from->signalled;
	to->data.dto_completion_event_data = from->data.dto_completion_event_data;
}

static inline bool kdapl_event_connection(const struct kdapl_event *ev)
{
	return ev->number >= DAT_CONNECTION_EVENT_ESTABLISHED &&
	       ev->number <= DAT_CONNECTION_EVENT_UNREACHABLE;
}

/* The EP an event is about, if it is about one. */
static inline DAT_EP_HANDLE kdapl_event_ep(const struct kdapl_event *ev)
{
	if (likely(ev->number == DAT_DTO_COMPLETION_EVENT))
		return ev->data.dto_completion_event_data.ep_handle;
	if (ev->number == DAT_RMR_BIND_COMPLETION_EVENT)
		return ev->half->handle;
	if (kdapl_event_connection(ev))
		return ev->data.connect_event_data.ep_handle;
	return DAT_HANDLE_NULL;
}

/**
 * struct kdapl_cq - verbs half of an EVD, one of possibly several
 * @ibcq: NULL once the device took it back; evd->lock
 * @ref: the EVD and each ring that completes here
 * @evd: NULL once the EVD is freed; RCU
 * @size: entries
 * @used: entries promised to rings; evd->mutex
 * @failed: the device has reported an error of it: no ring may be added
 * @rcu: posts that look for room may still be at it for a grace period
 */
struct kdapl_cq {
	struct kdapl_device *dev;
	struct ib_cq *ibcq;
	refcount_t ref;
	struct kdapl_evd __rcu *evd;
	struct list_head evd_node;
	struct kdapl_claim claim;
	int size;
	int used;
	bool failed;
	struct rcu_head rcu;
};

#define KDAPL_BATCH	16

/**
 * struct kdapl_upcall - what a runner has in hand
 * @node: in evd->runners
 * @task: who runs, when it does
 * @seq: which of the EVD's upcalls it is in, 0 for none
 * @ep: whose event it has in hand
 * @event: what the consumer sees
 * @ev: what it is made of, if it is no ordinary completion
 */
struct kdapl_upcall {
	struct list_head node;
	struct task_struct *task;
	u64 seq;
	DAT_EP_HANDLE ep;
	DAT_EVENT event;
	struct kdapl_event ev;
};

/**
 * struct kdapl_helper - one of the runners of DAT_UPCALL_MANY
 * @work: its turn
 * @evd: EVD it works for
 * @run: what it has in hand
 */
struct kdapl_helper {
	struct work_struct work;
	struct kdapl_evd *evd;
	struct kdapl_upcall run;
};

/**
 * struct kdapl_evd - an Event Dispatcher
 * @flags: DAT_EVD_FLAGS
 * @softirq: upcalls run in softirq, else in a workqueue
 * @discard: null EVD: completions are taken and dropped
 * @vector: completion vector asked for, KDAT_EVD_VECTOR_ANY for none
 * @mutex: attaching rings, growing the store, changing length and policy; never
 *	held while something waits for an upcall
 *
 * Delivery, all under @lock. An event is taken, in this order, from the store,
 * from rings with something to report, from the rest of the batch, from the
 * CQs. Whoever takes (upcall engine, dat_evd_dequeue, a sweep that only moves
 * completions into the store) takes one at a time, so nobody overtakes.
 */
struct kdapl_evd {
	struct kdapl_obj obj;
	DAT_EVD_FLAGS flags;
	bool softirq;
	bool discard;
	bool closing;
	int qlen;
	int vector;
	struct mutex mutex;		/* attaching, shares, policy, helpers, qlen */
	struct list_head shares;	/* SRQs whose EPs complete here */

	spinlock_t lock;		/* delivery: all that follows */
	struct kdapl_event *slots;	/* ring array of store_size entries */
	u32 store_size;
	u32 store_head;
	u32 store_count;
	u32 store_signalled;
	u32 store_others;		/* of those, not DTO or RMR: limited by qlen */
	bool overflow;			/* already reported this episode */
	bool async_dead;		/* an asynchronous event was lost: no more of them */
	u32 reserve;			/* store entries promised to attached rings */
	struct list_head ready;		/* rings with entries to report */
	struct list_head cqs;
	struct ib_cq *cur;		/* CQ the batch came from */
	int batch_pos;
	int batch_n;
	struct ib_wc batch[KDAPL_BATCH];
	unsigned int ending;		/* halves waiting for their last completion */
	unsigned int watching;		/* halves whose buffers are counted: poll always */
	u32 silent;			/* completions seen that were no events */
	struct kdapl_event scratch;	/* one on its way */
	bool again;			/* polling stopped early, more is there */
	bool solicited;			/* arm for solicited completions only */
	DAT_COMPLETION_FLAGS attr[2];	/* completion flags of attached rings, by direction */
	unsigned int attached[2];	/* rings by direction, [1] receives; mutex */

	bool plain;			/* upcalls one at a time, and nothing else to look after */
	bool dat12;			/* made through DAT 1.2: its upcalls are of that version */
	DAT_UPCALL_POLICY policy;	/* sched reads it without the lock */
	DAT_UPCALL_OBJECT upcall;
	bool notified;			/* NOTIFY: the consumer knows, and dequeues */
	struct list_head runners;	/* the one, and the helpers */
	struct kdapl_upcall run;	/* of the one */
	unsigned int nrunning;		/* upcalls */
	u64 upcall_seq;			/* the last one started */
	wait_queue_head_t upcall_over;

	struct irq_poll iop;
	struct work_struct work;
	struct kdapl_helper *helpers;	/* NULL until MANY is asked for; then constant */
	unsigned int nhelpers;
	unsigned long idle;		/* helpers by number; atomic bits, no lock */
	struct rcu_work gone_work;	/* handlers of CQs may look at it for a grace period */
	struct lock_class_key key;	/* an upcall may free another EVD, not its own */
};

/* What kdapl_evd_usual() has found. */
enum kdapl_next {
	KDAPL_NEXT_NONE,	/* no event */
	KDAPL_NEXT_USUAL,	/* an ordinary completion, and here it is */
	KDAPL_NEXT_OTHER,	/* something else, for kdapl_evd_take() to find out */
};

struct kdapl_evd *kdapl_evd_create(struct kdapl_ia *ia, DAT_COUNT qlen, DAT_UPCALL_POLICY policy,
				   const DAT_UPCALL_OBJECT *upcall, DAT_EVD_FLAGS flags,
				   const struct kdat_evd_attr *attr, DAT_RETURN *ret);
DAT_RETURN kdapl_evd_kcreate(DAT_IA_HANDLE ia_handle, DAT_COUNT evd_min_qlen,
			     DAT_UPCALL_POLICY upcall_policy, const DAT_UPCALL_OBJECT *upcall,
			     DAT_EVD_FLAGS evd_flags, const struct kdat_evd_attr *attr,
			     DAT_EVD_HANDLE *evd_handle, int evd_handle_arg, bool dat12);
void kdapl_evd_destroy(struct kdapl_evd *evd);
struct kdapl_evd *kdapl_evd_null(struct kdapl_ia *ia);
struct kdapl_cq *kdapl_evd_attach(struct kdapl_evd *evd, struct kdapl_ring *ring,
				  DAT_COMPLETION_FLAGS attr);
void kdapl_evd_detach(struct kdapl_evd *evd, struct kdapl_ring *ring);
void kdapl_cq_put(struct kdapl_cq *cq);
void kdapl_cq_destroy_verbs(struct kdapl_cq *cq);
struct kdapl_evd *kdapl_cq_evd_get(struct kdapl_cq *cq);

bool kdapl_evd_take(struct kdapl_evd *evd, struct kdapl_event *ev);
bool kdapl_evd_poll(struct kdapl_evd *evd, struct kdapl_event *ev);
bool kdapl_evd_refill(struct kdapl_evd *evd);
bool kdapl_evd_more(struct kdapl_evd *evd);
bool kdapl_evd_room(struct kdapl_evd *evd);
bool kdapl_evd_store(struct kdapl_evd *evd, const struct kdapl_event *ev);
bool kdapl_evd_full(struct kdapl_evd *evd);
bool kdapl_evd_queue(struct kdapl_evd *evd, const struct kdapl_event *ev);
void kdapl_evd_queue_async(struct kdapl_evd *evd, struct kdapl_ia *ia,
			   const struct kdapl_event *ev);
void kdapl_evd_sweep_locked(struct kdapl_evd *evd, int budget, bool teardown);
void kdapl_evd_sweep(struct kdapl_evd *evd, int budget, bool teardown);
void kdapl_evd_settle(struct kdapl_evd *evd);
u32 kdapl_evd_depth(const struct kdapl_evd *evd);
void kdapl_evd_ending(struct kdapl_evd *evd, int delta);
void kdapl_half_discard(struct kdapl_half *half);
void kdapl_evd_drop(struct kdapl_evd *evd, struct kdapl_half *half, bool all_events);
bool kdapl_evd_arm(struct kdapl_evd *evd);
void kdapl_ring_ready(struct kdapl_ring *ring);
void kdapl_ring_sweep(struct kdapl_ring *ring);
void kdapl_ring_force_end(struct kdapl_ring *ring, bool lost);
bool kdapl_ring_ended(struct kdapl_ring *ring);
void kdapl_wr_done(struct ib_cq *cq, struct ib_wc *wc);
u32 kdapl_ring_bury(struct kdapl_ring *ring);
bool kdapl_evd_owes(struct kdapl_evd *evd, const struct kdapl_half *half);
void kdapl_evd_hurry(struct kdapl_evd *evd, const struct kdapl_half *half);
void kdapl_evd_watch(struct kdapl_half *half);
void kdapl_event_release(const struct kdapl_event *ev);

/* evd_usual.c */
enum kdapl_next kdapl_evd_usual(struct kdapl_evd *evd, DAT_EVENT *event);
int kdapl_evd_run_usual(struct kdapl_evd *evd, struct kdapl_upcall *run, int budget, bool *none);

/* dat12.c */
void kdapl_dat12_upcall(const DAT_UPCALL_OBJECT *upcall, const DAT_EVENT *event, DAT_BOOLEAN more);

/* evd_upcall.c */
void kdapl_evd_sched(struct kdapl_evd *evd);
void kdapl_evd_engine_init(struct kdapl_evd *evd);
void kdapl_evd_engine_stop(struct kdapl_evd *evd);
void kdapl_evd_make_helpers(struct kdapl_evd *evd);
void kdapl_evd_set_plain(struct kdapl_evd *evd);
bool kdapl_evd_calls(const struct kdapl_evd *evd);
bool kdapl_evd_held_up(const struct kdapl_evd *evd);
void kdapl_evd_wait_upcall(struct kdapl_evd *evd, DAT_EP_HANDLE ep);
void kdapl_evd_wait_all(struct kdapl_evd *evd);
void kdapl_evd_wait_delivered(struct kdapl_evd *evd, struct kdapl_half *half);
bool kdapl_evd_in_other_hands(const struct kdapl_evd *evd, DAT_EP_HANDLE ep);
bool kdapl_evd_inside_upcall(struct kdapl_evd *evd);
void kdapl_event_fill(struct kdapl_evd *evd, const struct kdapl_event *ev, DAT_EVENT *out);

/* An upcall is over: whoever waits for that may look. evd->lock held. */
static inline void kdapl_evd_called(struct kdapl_evd *evd, struct kdapl_upcall *run)
{
	evd->nrunning--;
	run->seq = 0;
	run->ep = DAT_HANDLE_NULL;
	if (unlikely(waitqueue_active(&evd->upcall_over)))	/* both under the lock */
		wake_up(&evd->upcall_over);
}

/* ------------------------------------------------------------------ */
/* srq.c                                                                */

enum kdapl_buf_state {
	KDAPL_BUF_FREE,
	KDAPL_BUF_NATIVE,	/* with the device */
	KDAPL_BUF_LOST,		/* the same, but the QP that took it is gone */
	KDAPL_BUF_TAKEN,	/* filled or flushed, the consumer does not know yet */
	KDAPL_BUF_DEAD,		/* posted to an SRQ in error: never reported */
};

/**
 * struct kdapl_buf - context of one buffer of an SRQ
 * @cqe: what the completion points at
 * @cookie: the consumer's
 * @node: in pool->free, pool->native or half->early
 * @index: position in the pool, constant: leads back to it
 * @length: of the message
 * @seq: order of posting
 * @key: invalidated rkey
 * @flags: KDAPL_WR_INVALIDATED
 * @state: enum kdapl_buf_state
 * @status: DAT_DTO_COMPLETION_STATUS
 */
struct kdapl_buf {
	struct ib_cqe cqe;
	u64 cookie;
	struct list_head node;
	u32 index;
	u32 length;
	u32 seq;
	u32 key;
	u8 flags;
	u8 state;
	u8 status;
};

#define KDAPL_POOL_HASH_BITS	6	/* of the first table */

/**
 * struct kdapl_pool - verbs half of an SRQ
 * @ref: the SRQ and each transport half that takes buffers from it
 * @entries: buffers there are, the consumer's and spare ones
 * @ibsrq: NULL once the device took it back
 * @srq: NULL once the SRQ is freed
 * @limit: buffers the consumer may have outstanding
 * @outstanding: buffers posted and not yet handed to the consumer
 * @available: of those, waiting on the SRQ
 * @lost: of those, taken by a QP that went without giving them back
 * @low: below that many available ones an event is due, if @low_armed
 * @seq: number of the last post
 * @newest: highest number whose buffer has been taken
 * @native: buffers with the device, in order of posting
 * @halves: that may take buffers; RCU
 * @by_qp: the same by the value of the QP, which completions carry: grows with them
 * @bits: @by_qp has 2^bits buckets
 * @rcu: posting calls may still look at it for a grace period
 * @sinks: beside @buf, where DMA has to be synchronised, or NULL
 */
struct kdapl_pool {
	struct kdapl_device *dev;
	struct kdapl_pd *pd;
	struct kdapl_claim claim;
	refcount_t ref;
	u32 entries;
	wait_queue_head_t detached;

	spinlock_t lock;		/* all that follows */
	struct ib_srq *ibsrq;
	struct kdapl_srq *srq;
	bool error;
	bool replaced;
	bool low_armed;
	u32 limit;
	u32 outstanding;
	u32 available;
	u32 lost;
	u32 low;
	u32 seq;
	u32 newest;
	u32 nhalves;
	struct list_head free;
	struct list_head native;
	struct list_head halves;
	struct hlist_head *by_qp;
	unsigned int bits;
	struct rcu_head rcu;
	struct ib_sge *scratch;
	struct kdapl_sinks *sinks;
	struct kdapl_buf buf[];
};

static inline struct kdapl_pool *kdapl_buf_pool(struct kdapl_buf *buf)
{
	return container_of(buf - buf->index, struct kdapl_pool, buf[0]);
}

/**
 * struct kdapl_srq - a Shared Receive Queue
 * @pz: whose LMRs its buffers may use; holds a use
 * @pool: RCU: read by posting calls; NULL once the SRQ is freed
 * @mutex: one control call at a time
 * @low_work: queues the event of the low watermark
 * @low_fired: how many of them
 */
struct kdapl_srq {
	struct kdapl_obj obj;
	struct kdapl_pool __rcu *pool;
	struct kdapl_pz *pz;
	DAT_PZ_HANDLE pz_handle;
	DAT_COUNT max_recv_iov;
	struct mutex mutex;		/* replacing the pool */
	struct work_struct low_work;
	atomic_t low_fired;
};

void kdapl_srq_limits(struct kdapl_device *dev, DAT_IA_ATTR *attr);
void kdapl_srq_destroy(struct kdapl_srq *srq);
void kdapl_pool_put(struct kdapl_pool *pool);
void kdapl_pool_destroy_verbs(struct kdapl_pool *pool);
struct kdapl_pool *kdapl_srq_pool_get(struct kdapl_srq *srq);
void kdapl_pool_attach(struct kdapl_pool *pool, struct kdapl_half *half);
void kdapl_pool_detach(struct kdapl_half *half);
struct kdapl_buf *kdapl_buf_alloc(struct kdapl_pool *pool);
void kdapl_buf_posted(struct kdapl_pool *pool, struct kdapl_buf *buf);
void kdapl_buf_unalloc(struct kdapl_pool *pool, struct kdapl_buf *buf);
struct kdapl_half *kdapl_buf_taken(struct kdapl_buf *buf, struct ib_qp *qp);
void kdapl_buf_failed(struct kdapl_buf *buf);
void kdapl_buf_free(struct kdapl_buf *buf);
void kdapl_buf_done(struct ib_cq *cq, struct ib_wc *wc);

/* ------------------------------------------------------------------ */
/* post.c                                                               */

/* A native request of any kind that is posted here. */
union kdapl_native_wr {
	struct ib_send_wr wr;
	struct ib_rdma_wr rdma;
	struct ib_reg_wr reg;
};

/* Native requests a request can take: a fence and an invalidation may come before it. */
#define KDAPL_NATIVE_MAX	3

#define KDAPL_FLAGS_RDMA	(DAT_COMPLETION_SUPPRESS_FLAG | DAT_COMPLETION_UNSIGNALLED_FLAG | \
				 DAT_COMPLETION_BARRIER_FENCE_FLAG)

/**
 * struct kdapl_post - one request or Receive to be posted
 * @iov: local segments
 * @n: how many
 * @cookie: the consumer's
 * @flags: completion flags
 * @op: DAT_DTOS; DAT_DTO_BIND_MW for an RMR
 * @flags_arg: position of the flags among the arguments
 * @invalidate: the peer is to invalidate @inv_key with the message
 * @rewrite: the list cannot go through as it is
 * @sync: some of the memory has to be synchronised
 * @soft: out: did not reach the device, will be reported FLUSHED
 * @remote: remote buffer of RDMA
 * @length: bytes to transfer
 * @obj: LMR or RMR the request does something to
 * @mr: MR to be registered
 * @key: its key then
 * @access: its rights then
 * @inv_key: key to be invalidated, first
 * @seq: which operation on the LMR it is
 * @behind: with @sync: what @iov stands for, by keys of LMRs; NULL: @iov itself
 */
struct kdapl_post {
	const DAT_LMR_TRIPLET *iov;
	DAT_COUNT n;
	DAT_DTO_COOKIE cookie;
	DAT_COMPLETION_FLAGS flags;
	u8 op;
	u8 flags_arg;
	bool invalidate;
	bool rewrite;
	bool sync;
	bool soft;
	const DAT_RMR_TRIPLET *remote;
	u64 length;
	struct kdapl_obj *obj;
	struct ib_mr *mr;
	u32 key;
	int access;
	u32 inv_key;
	u32 seq;
	const DAT_LMR_TRIPLET *behind;
};

DAT_RETURN kdapl_request_check(struct kdapl_ep *ep, struct kdapl_half *half,
			       const struct kdapl_post *post, DAT_COMPLETION_FLAGS legal);
DAT_RETURN kdapl_request_post(struct kdapl_ep *ep, struct kdapl_half *half,
			      struct kdapl_post *post);
DAT_RETURN kdapl_request_prepare(struct kdapl_ep *ep, struct kdapl_half *half,
				 struct kdapl_post *post);
DAT_RETURN kdapl_request_post_list(struct kdapl_ep *ep, struct kdapl_half *half,
				   struct kdapl_post *posts, int n);

/* ------------------------------------------------------------------ */
/* sp.c, psp.c, rsp.c, csp.c, cr.c, cm.c                                */

/**
 * struct kdapl_sp - a service point: PSP, RSP or CSP, by obj.type
 * @conn_qual: port listened on
 * @flags: PSP: who supplies EPs
 * @evd: where requests are reported; holds a use
 * @evd_handle: as the consumer gave it
 * @null_evd: the IA's, if EPs are made for requests
 * @ep: RSP: EP it waits for, referenced; NULL asks for a new one
 * @comm: CSP: what was asked for
 * @addr: CSP: address listened on
 * @mutex: @cm_id against removal of the device
 * @cm_id: the listener
 * @cr: RSP: the request that has used it up, referenced
 * @used_work: reports @cr, once the listener is gone
 */
struct kdapl_sp {
	struct kdapl_obj obj;
	DAT_CONN_QUAL conn_qual;
	DAT_PSP_FLAGS flags;
	struct kdapl_evd *evd;
	DAT_EVD_HANDLE evd_handle;
	struct kdapl_evd *null_evd;
	struct kdapl_ep *ep;
	DAT_COMM comm;
	struct sockaddr_storage addr;
	struct mutex mutex;		/* cm_id */
	struct rdma_cm_id *cm_id;
	struct kdapl_cr *cr;
	struct work_struct used_work;
};

DAT_RETURN kdapl_sp_evd(struct kdapl_ia *ia, DAT_EVD_HANDLE handle, struct kdapl_evd **evd);
struct kdapl_sp *kdapl_sp_alloc(struct kdapl_ia *ia, unsigned int type, struct kdapl_evd *evd,
				DAT_RETURN *ret);
DAT_RETURN kdapl_sp_start(struct kdapl_sp *sp, DAT_HANDLE *handle);
bool kdapl_sp_request(struct kdapl_sp *sp, struct rdma_cm_id *id,
		      const struct rdma_conn_param *param);
bool kdapl_sp_announce(struct kdapl_sp *sp, struct kdapl_evd *evd, struct kdapl_cr *cr);
DAT_RETURN kdapl_sp_free(DAT_HANDLE handle, unsigned int type, DAT_RETURN_SUBTYPE subtype);
void kdapl_sp_destroy(struct kdapl_sp *sp);
void kdapl_sp_destroy_verbs(struct kdapl_sp *sp);

/**
 * struct kdapl_cr - a connection request nobody has answered yet
 * @mutex: one answer only; protects @cm_id
 * @cm_id: NULL once answered or taken by removal
 * @ep: the EP that comes with it, referenced; constant
 * @local: this and @remote are what event and queries point to
 * @made: @ep was made for it, and goes with it unless it is accepted
 */
struct kdapl_cr {
	struct kdapl_obj obj;
	struct mutex mutex;		/* cm_id: one answer only */
	struct rdma_cm_id *cm_id;
	struct kdapl_ep *ep;
	bool made;
	struct sockaddr_storage local;
	struct sockaddr_storage remote;
	u8 read_in;		/* what the peer will at most send us */
	u8 read_out;		/* what the peer will at most take from us */
	u32 pdata_len;
	u8 pdata[];
};

struct kdapl_cr *kdapl_cr_create(struct kdapl_sp *sp, struct rdma_cm_id *id,
				 const struct rdma_conn_param *param);
bool kdapl_cr_turn_away(struct kdapl_device *dev, struct rdma_cm_id *id, u8 reason);
void kdapl_cr_stop(void);
void kdapl_cr_refuse(struct kdapl_cr *cr);
void kdapl_cr_destroy(struct kdapl_cr *cr);
void kdapl_cr_destroy_verbs(struct kdapl_cr *cr);

DAT_RETURN kdapl_cm_connect(struct kdapl_half *half, const struct sockaddr *dst, u16 port,
			    u32 usec);
int kdapl_cm_accept(struct kdapl_half *half, struct kdapl_cr *cr, const void *pdata, u8 len);
int kdapl_cm_handler(struct rdma_cm_id *id, struct rdma_cm_event *event);
void kdapl_cm_work_init(struct kdapl_half *half);

/* ------------------------------------------------------------------ */
/* debugfs.c                                                            */

/**
 * struct kdapl_stats - what one CPU has done since the module was loaded
 * @softirq: turns of upcalls in softirq
 * @work: turns of upcalls in work items
 * @upcalls: upcalls made in them; events of an EVD that goes, dropped
 * @full: turns that ended because as much was done as one may
 * @again: turns after which something was there when notification was asked for
 * @flushed: events of transfers that were flushed
 * @failed: events of transfers that failed
 * @refused: connection requests turned away before a consumer heard of them
 * @dropped: completions that were there when their EP was freed or reset, and nobody saw
 */
struct kdapl_stats {
	unsigned long softirq;
	unsigned long work;
	unsigned long upcalls;
	unsigned long full;
	unsigned long again;
	unsigned long flushed;
	unsigned long failed;
	unsigned long refused;
	unsigned long dropped;
};

DECLARE_PER_CPU(struct kdapl_stats, kdapl_stats);

/* Anywhere: one of them more, or n. */
#define kdapl_count(member)		this_cpu_inc(kdapl_stats.member)
#define kdapl_count_many(member, n)	this_cpu_add(kdapl_stats.member, n)

void kdapl_debugfs_init(void);
void kdapl_debugfs_exit(void);

/* ------------------------------------------------------------------ */
/* main.c                                                               */

extern struct ib_client kdapl_client;

int kdapl_start(void);
void kdapl_stop(void);

#ifdef KDAPL_KUNIT
int kdapl_test_get(void);
void kdapl_test_put(void);
void kdapl_test_connect(struct kdapl_ep *ep);
extern bool kdapl_test_no_key_table;	/* as if there were no memory for one */
#endif

#endif /* KDAPL_H */
