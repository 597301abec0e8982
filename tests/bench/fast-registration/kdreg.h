/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Fast registrations: with kDAPL (dapl.c), with the verbs alone (raw.c). */
#ifndef KDREG_H
#define KDREG_H

#include <linux/scatterlist.h>

#include "../../lib/consumer.h"

struct net;

#define MAX_PAGES	64
#define MAX_SLOTS	16		/* chains under way at once */
#define RECVS		(2 * MAX_SLOTS)	/* posted at each end */
#define MSG		64		/* bytes of a message */

/* A message tells whose it is and the key it carries, or gives back. */
struct msg {
	u32 slot;
	u32 key;
	u8 rest[MSG - 2 * sizeof(u32)];
};

/* The messages of one end. */
struct msgs {
	struct msg send[MAX_SLOTS];
	struct msg recv[RECVS];
};

/* What a block consists of; the same for every block of a bench. */
struct plan {
	struct scatterlist *sgl;	/* what to register: so many pages, none beside the next */
	u32 pages;
	u32 slots;			/* chains under way at once */
	bool peer;			/* the peer invalidates, by its answer */
};

extern struct plan plan;
extern bool reg_blind;		/* the device moves no bytes */
extern struct net *raw_net;	/* the network namespace of whoever loads the module */

/* Something went wrong; whoever waits gives up. */
#define fault(fmt, ...)	({ fail(fmt, ##__VA_ARGS__); wake_up_all(&test_wait); -EIO; })

/*
 * What was received in this place. Of a device that moves no bytes it is known: there is one slot,
 * with this key.
 */
static inline struct msg reg_received(const struct msgs *msgs, u32 i, u32 key)
{
	return reg_blind ? (struct msg) { .key = key } : msgs->recv[i];
}

void reg_part(u32 slot);	/* a part of a slot's chain is done */

/* One way to do it. start() begins the chain of a slot, in softirq or with it off. */
struct way {
	const char *name;
	int (*start)(u32 slot);
};

int raw_open(const struct sockaddr_storage *addr, u16 port);
void raw_close(void);
int raw_start_list(u32 slot);
int raw_start_calls(u32 slot);

int dapl_open(char *ia, u16 port, struct sockaddr_storage *addr);
int dapl_close(void);
int dapl_start_list(u32 slot);
int dapl_start_calls(u32 slot);

#endif /* KDREG_H */
