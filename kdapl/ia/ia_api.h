/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The top of the module: IAs, debugfs, init and exit.
 */
#ifndef KDAPL_IA_IA_API_H
#define KDAPL_IA_IA_API_H

#include <uapi/linux/kdapl.h>

#include "../cm/cm.h"

struct netlink_ext_ack;

int kdapl_start(void);
void kdapl_stop(void);

#ifdef KDAPL_KUNIT
int kdapl_test_get(void);
void kdapl_test_put(void);
void kdapl_test_connect(struct kdapl_ep *ep);
extern void (*kdapl_test_lent)(struct kdapl_ia *ia);	/* before the IA has its async EVD */
#endif

/**
 * struct kdapl_ia_open - the IA to open
 * @dev: device, referenced by the caller
 * @port: its port
 * @pick: which of its addresses connections use
 * @name: name of the instance; copied
 * @consumer: name of the consumer's module, or NULL; copied
 */
struct kdapl_ia_open {
	struct kdapl_device *dev;
	u32 port;
	struct kdapl_pick pick;
	const char *name;
	const char *consumer;
};

DAT_RETURN kdapl_ia_open(const struct kdapl_ia_open *open, DAT_COUNT qlen, DAT_EVD_HANDLE *async,
			 DAT_IA_HANDLE *ia_handle);
void kdapl_ia_exit(void);
struct kdapl_device *kdapl_open_hold(const struct rdma_cm_id *id, char *name);

/* Read without a lock: the value is only shown. */
#define kdapl_seen(value)	data_race(value)

static inline enum kdapl_ia_state kdapl_ia_state(const struct kdapl_ia *ia)
{
	return kdapl_seen(ia->dead) ? KDAPL_IA_STATE_LOST :
	       kdapl_seen(ia->closing) ? KDAPL_IA_STATE_CLOSING : KDAPL_IA_STATE_OPEN;
}

void kdapl_debugfs_init(void);
void kdapl_debugfs_exit(void);
int kdapl_netlink_start(void);
void kdapl_netlink_stop(void);
int kdapl_end_by_hand(u32 id, u32 qpn, struct netlink_ext_ack *extack);

#endif /* KDAPL_IA_IA_API_H */
