/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Connections by the hundred: with kDAPL (main.c), with the verbs alone (raw.c). */
#ifndef KDSCALE_H
#define KDSCALE_H

#include <linux/jiffies.h>
#include <linux/socket.h>
#include <linux/types.h>
#include <linux/wait.h>

struct net;

#define LONG	(240 * HZ)	/* for anything that must happen */

/* Nanoseconds of the phases of a block: all of a kind, window at a time. */
struct scale_times {
	u64 create, connect, disconnect, destroy;
};

extern wait_queue_head_t scale_wait;
extern struct net *raw_net;	/* the network namespace of whoever loads the module */

#define fail(fmt, ...)	({ pr_err("FAIL " fmt "\n", ##__VA_ARGS__); -EIO; })

int raw_open(const struct sockaddr_storage *addr, u32 count);
void raw_close(void);
int raw_block(const struct sockaddr_storage *addr, u16 port, u32 count, u32 window,
	      struct scale_times *times);

#endif /* KDSCALE_H */
