/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Sweeps, and what they work on: see README.md. A consumer of DAT 1.2 can include this, too.
 */
#ifndef KDFAIL_H
#define KDFAIL_H

#ifndef KDAPL_DAT_1_2
#include <dat2/kdat.h>
#include <dat2/kdat_ext.h>
#endif
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/socket.h>

#define LONG	(60 * HZ)

/**
 * struct sweep - a call that is to be made with its n-th allocation failing
 * @name: name of the call, and after ", " what is special about it
 * @before: makes what it works on, once for each try
 * @call: the call, and nothing else
 * @after: undoes both
 * @how: what else must be so
 */
struct sweep {
	const char *name;
	DAT_RETURN (*before)(void);
	DAT_RETURN (*call)(void);
	DAT_RETURN (*after)(void);
	u32 how;
};

#define FRUGAL	0x1	/* it makes no allocation */
#define FREES	0x2	/* kdf.out is gone after it */
#define ANSWERS	0x4	/* so is kdf.cr */
#define NEEDY	0x8	/* one of 1.2 that may want memory, unlike its namesake */
#define ALIKE	0x10	/* nearly all of its allocations are one in a loop: see sweep_one() */

/* Each ends with one that has no name. */
extern const struct sweep sweeps_of_objects[], sweeps_of_memory[], sweeps_of_connections[],
			  sweeps_of_posts[], sweeps_of_12[];

/**
 * struct ground - what calls work on
 * @name: of the adapter
 * @ia: instance of it, and all below are its objects
 * @pz: PZ of all of them
 * @dto: EVD of transfers whose events nobody looks at
 * @counted: EVD of transfers whose events are counted
 * @conn: EVD of connections
 * @cr_evd: EVD of requests
 * @psp: on @port
 * @making: the same, with DAT_PSP_PROVIDER_FLAG, on @making_port
 * @port: qualifier
 * @making_port: qualifier
 * @addr: the adapter's
 * @active: EP that connects
 * @passive: EP that accepts
 * @near: EP that is connected to @far
 * @far: its peer
 * @srq: SRQ
 * @lmr: LMR of @mem with all rights
 * @key: its key for segments
 * @rkey: its key for peers
 * @mem: MEM bytes of memory
 * @cr: the last request
 * @out: what a call has made, or the object it is called for
 * @other: one more
 */
struct ground {
	char *name;
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE dto, counted, conn, cr_evd;
	DAT_PSP_HANDLE psp, making;
	DAT_CONN_QUAL port, making_port;
	struct sockaddr_storage addr;
	DAT_EP_HANDLE active, passive, near, far;
	DAT_SRQ_HANDLE srq;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT key;
	DAT_RMR_CONTEXT rkey;
	u8 *mem;
	DAT_CR_HANDLE cr;
	DAT_HANDLE out, other;
};

extern struct ground kdf;

#define MEM	(5 * PAGE_SIZE)

/* ---- main.c ---- */

__printf(1, 2) int fail(const char *fmt, ...);

/* ---- objects.c ---- */

int objects_open(void);
void objects_close(void);
DAT_RETURN kdf_ep(DAT_EVD_HANDLE evd, DAT_COUNT reads, DAT_EP_HANDLE *ep);
DAT_RETURN kdf_evd_soft(void);
DAT_RETURN kdf_evd_free(void);
DAT_RETURN kdf_ep_create(void);
DAT_RETURN kdf_ep_free(void);
DAT_RETURN kdf_srq_create(void);
DAT_RETURN kdf_srq_free(void);

/* ---- memory.c ---- */

int memory_open(void);
void memory_close(void);
DAT_RETURN kdf_lmr_allocate(void);
DAT_RETURN kdf_lmr_free(void);
DAT_RETURN kdf_rmr_create(void);
DAT_RETURN kdf_rmr_free(void);

/* ---- connections.c ---- */

int connections_open(void);
void connections_close(void);
DAT_RETURN kdf_connect(DAT_EP_HANDLE active, DAT_EP_HANDLE passive);
DAT_RETURN kdf_request(void);
DAT_RETURN kdf_after_reject(void);
DAT_RETURN kdf_connected_over(void);
DAT_RETURN kdf_reset(void);

/* ---- posts.c ---- */

int posts_open(void);
void posts_close(void);
DAT_RETURN kdf_post_far_recv(void);
DAT_RETURN kdf_done_1(void);
DAT_RETURN kdf_done_2(void);
DAT_RETURN kdf_done_1_rmr(void);

#endif
