/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Interface Adapters, their names and addresses.
 */
#ifndef KDAPL_CORE_IA_H
#define KDAPL_CORE_IA_H

/**
 * struct kdapl_ia - an instance of an IA, made by dat_ia_openv()
 * @dev: the device; holds a reference to it, but does not enter it
 * @port: RDMA port number
 * @dead: the device is gone; calls return DAT_INTERNAL_ERROR
 * @name: the name it was opened by
 * @consumer: name of the module that opened it
 * @lock: protects @objs, @closing and the users/live of every object
 * @objs: the instance's objects by type
 * @closing: no new objects may be made
 * @async_evd: EVD of asynchronous events
 * @own_async: @async_evd was made by dat_ia_openv() and is destroyed with the IA
 * @mutex: serialises the creation of @null_evd and @reserved at first use
 * @null_evd: takes the completions of EP queues that name no EVD
 * @keys: its MRs by their keys
 * @reserved: the reserved LMR, made at first use; @mutex
 * @stale_mrs: MRs to be replaced; @stale_lock
 * @stale_mutex: serialises replacing them
 * @maps: DMA mappings of its consumer; @maps_lock
 * @maps_closed: nothing more is mapped; @maps_lock
 * @maps_res: unmaps what is left, if the device is removed or the IA is closed
 * @reported: IA_CATASTROPHIC has been reported; dev->lock
 * @pick: which of the port's addresses it uses; constant
 * @addr: the last address returned by dat_ia_query()
 * @max_msg: largest message of the port
 * @unused: woken when an object has lost its last user, and when the last EP is gone
 * @eps: number of EPs, also of those that are still being destroyed
 */
struct kdapl_ia {
	struct kdapl_obj obj;
	struct kdapl_device *dev;
	u32 port;
	bool dead;			/* read by posts: its neighbours are constant */
	char name[DAT_NAME_MAX_LENGTH];
	const char *consumer;		/* name of its module; lives as long as ours */
	struct list_head dev_node;
	spinlock_t lock;		/* objs, closing, async_evd, live and users of objects */
	struct list_head objs[KDAPL_NTYPES];
	struct list_head retired_evds;	/* whose upcalls may still run; lock */
	bool closing;
	bool reported;
	struct kdapl_pick pick;
	struct kdapl_obj *async_evd;
	bool own_async;
	struct mutex mutex;		/* null_evd, reserved */
	struct kdapl_evd *null_evd;
	struct kdapl_keys keys;
	struct kdapl_lmr *reserved;
	struct list_head stale_mrs;
	spinlock_t stale_lock;		/* stale_mrs */
	struct mutex stale_mutex;	/* replacing them */
	struct hlist_head maps;		/* of struct kdat_dma_map */
	spinlock_t maps_lock;		/* maps, maps_closed */
	bool maps_closed;
	struct kdapl_res maps_res;
	struct sockaddr_storage addr;
	u32 max_msg;
	wait_queue_head_t unused;
	atomic_t eps;
};

void kdapl_ia_async(struct kdapl_ia *ia, DAT_HANDLE handle, u32 number, DAT_COUNT reason);
void kdapl_ia_pdata(struct kdapl_ia *ia, struct kdat_pdata_limits *limits);

bool kdapl_port_named(struct kdapl_device *dev, u32 port, const char *name, struct net *net,
		      struct kdapl_pick *pick);
int kdapl_ia_address(struct kdapl_ia *ia, const struct sockaddr *dst,
		     struct sockaddr_storage *addr, struct net **net);
bool kdapl_ia_owns(struct kdapl_ia *ia, const struct sockaddr *addr,
		   struct sockaddr_storage *full, struct net **net);
u16 kdapl_addr_port(const struct sockaddr_storage *addr);
void kdapl_addr_set_port(struct sockaddr_storage *addr, u16 port);
int kdapl_addr_len(const struct sockaddr *addr);
int kdapl_addr_check(const struct sockaddr *addr);
bool kdapl_comm_supported(const DAT_COMM *comm);

#endif /* KDAPL_CORE_IA_H */
