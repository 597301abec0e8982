/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * What kdnfscall calls, and kdnfskeys answers.
 */
#ifndef TESTS_STRESS_NFS_PROGRAM_H
#define TESTS_STRESS_NFS_PROGRAM_H

#define CALL_PROGRAM	0x20006b64
#define CALL_VERSION	1

enum call_proc {
	CALL_GET = 1,	/* pages by a Write chunk */
	CALL_PUT,	/* by a Read chunk */
	CALL_REPLY,	/* the whole reply in a Reply chunk */
	CALL_ALL,	/* the whole call in a Read chunk, and the reply as well */
	CALL_PROCS
};

/* What memory is full of. */
#define CALL_DATA	0x5d	/* the server has written it */
#define CALL_OURS	0xa0	/* the server may read it */
#define CALL_GONE	0xee	/* its call has ended */

#endif
