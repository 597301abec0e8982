/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Sweeps, and what they work on: see README.md. The consumer of DAT 1.2 includes this, too.
 */
#ifndef KDFAIL_H
#define KDFAIL_H

#ifndef KDAPL_DAT_1_2
#include <dat2/kdat.h>
#include <dat2/kdat_ext.h>
#endif
#include <linux/mm.h>
#include <linux/socket.h>

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

#define FREES	0x2	/* kdf.out is gone after it */
#define ANSWERS	0x4	/* so is kdf.cr */
#define NEEDY	0x8	/* one of 1.2 that may want memory, unlike its namesake */
#define ALIKE	0x10	/* nearly all of its allocations are one in a loop: see sweep_one() */

/* Each ends with one that has no name. */
extern const struct sweep sweeps_of_objects[], sweeps_of_connections[], sweeps_of_12[];

/* A call, or some one after the other, under a name; KDF(): one that other files use. */
#define KDF(name, calls)	DAT_RETURN kdf_##name(void) { return calls; }
#define STEP(name, calls)	static DAT_RETURN name(void) { return calls; }

/* What calls work on: an adapter and objects of it. */
struct ground {
	char *name;
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE dto;		/* of transfers whose events nobody looks at */
	DAT_EVD_HANDLE counted;		/* of those whose events are counted */
	DAT_EVD_HANDLE conn, cr_evd;
	DAT_PSP_HANDLE psp, making;	/* making: with DAT_PSP_PROVIDER_FLAG */
	DAT_CONN_QUAL port, making_port;
	struct sockaddr_storage addr;
	DAT_EP_HANDLE active, passive;	/* that connect and accept */
	DAT_EP_HANDLE near, far;	/* connected to each other */
	DAT_SRQ_HANDLE srq;
	DAT_LMR_HANDLE lmr;		/* of mem, with all rights */
	DAT_LMR_CONTEXT key;
	DAT_RMR_CONTEXT rkey;
	u8 *mem;
	DAT_CR_HANDLE cr;		/* the last request */
	DAT_HANDLE out;			/* what a call has made, or is called for */
	DAT_HANDLE other;		/* one more */
};

extern struct ground kdf;

#define MEM	(5 * PAGE_SIZE)
int objects_open(void);
void objects_close(void);
int connections_open(void);
void connections_close(void);

void kdf_nothing(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more);
DAT_RETURN kdf_evd_free(void);

#ifndef KDAPL_DAT_1_2
DAT_RETURN kdf_ep(DAT_EVD_HANDLE evd, DAT_COUNT reads, DAT_EP_HANDLE *ep);
DAT_RETURN kdf_ep_create(void);
DAT_RETURN kdf_ep_free(void);
DAT_RETURN kdf_srq_create(void);
DAT_RETURN kdf_srq_free(void);
DAT_RETURN kdf_lmr_allocate(void);
DAT_RETURN kdf_lmr_free(void);
DAT_RETURN kdf_rmr_create(void);
DAT_RETURN kdf_rmr_free(void);
#endif

#endif
