/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Connections by the hundred: with kDAPL (main.c), with the verbs alone (raw.c). */
#ifndef KDSCALE_H
#define KDSCALE_H

struct net;

#define TEST_LONG	(240 * HZ)	/* for anything that must happen */

#include "../../lib/consumer.h"

/* Nanoseconds of the phases of a block: all of a kind, window at a time. */
struct scale_times {
	u64 create, connect, disconnect, destroy;
};

extern struct net *raw_net;	/* the network namespace of whoever loads the module */

/* In time, and nothing has gone wrong. */
#define in_order(condition)	(await((condition) || failed()) && !failed())

void raw_close(void);
int raw_block(const struct sockaddr_storage *addr, u16 port, u32 count, u32 window,
	      struct scale_times *times);

#endif /* KDSCALE_H */
