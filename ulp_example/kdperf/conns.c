// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Many connections: what it takes to make and to end them, and their memory.
 *
 * A block creates all EPs, both ends of each connection, and frees them; connects new ones, a
 * few at a time; looks at the free memory; and ends all of them. Blocks with verbs and with kDAPL
 * alternate, as in the other modes.
 */
#include <linux/mm.h>
#include <linux/rcupdate.h>
#include <linux/sched/signal.h>

#include "kdperf.h"

static struct sockaddr_storage conns_addr;

static s64 conns_free_memory(void)
{
	struct sysinfo info;

	rcu_barrier();		/* what was freed by RCU */
	si_meminfo(&info);
	return (s64)info.freeram * info.mem_unit;
}

static int conns_phase(int (*phase)(void), u32 number, enum metric m, u32 ops)
{
	u64 start = perf_cycles();
	int err = phase();

	stats_add(number & 1, m, number / 2, 0, perf_cycles() - start, ops);
	return err ?: perf_faults() ? -EIO : 0;
}

static int conns_block(const struct conns_way *way, u32 number, u16 port)
{
	s64 memory = conns_free_memory();
	int err, ret;

	err = way->open(&conns_addr, port) ?:
	      conns_phase(way->create, number, M_CREATE, 2 * run.eps) ?:
	      conns_phase(way->free, number, M_FREE, 2 * run.eps) ?:
	      conns_phase(way->connect, number, M_CONNECT, run.eps);
	if (!err) {
		memory -= conns_free_memory();
		stats_add(number & 1, M_MEMORY, number / 2, 0, max_t(s64, memory, 0),
			  2 * run.eps);
		err = conns_phase(way->disconnect, number, M_END, run.eps);
	}
	ret = way->close();
	return err ?: ret;
}

/* Run all blocks. The verbs use the port after @port. */
int conns_measure(const struct sockaddr_storage *addr, u16 port)
{
	static const struct conns_way *const ways[] = { &raw_conns, &dapl_conns };
	int err;
	u32 i;

	conns_addr = *addr;
	/* a warm-up round that does not count */
	err = conns_block(ways[0], 0, port + 1) ?: conns_block(ways[1], 1, port);
	stats_clock(true);
	for (i = 0; i <= 2 * run.blocks && !err; i++) {
		err = conns_block(ways[i & 1], i, port + !(i & 1));
		if (signal_pending(current))
			err = -EINTR;
	}
	stats_clock(false);
	return err;
}
