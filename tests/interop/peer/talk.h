/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What the hostile peer and its victim say to each other in private data, so that
 * each knows what the other one is about to show.
 */
#ifndef KDPEER_TALK_H
#define KDPEER_TALK_H

#include <linux/types.h>

#define TALK_MAGIC	0x6b647072
#define VICTIM_READS	4	/* at a time, each way, of its Endpoints */

enum {
	TALK_NOTHING,		/* as its policy says */
	TALK_CHECK,		/* arg bytes in all, of a pattern */
	TALK_LEAVE,		/* once ESTABLISHED, disconnect at once */
};

struct talk {
	__be32 magic;
	u8 what, arg;
};

static inline void talk_pattern(u8 *p, int len, int arg)
{
	int i;

	for (i = sizeof(struct talk); i < len; i++)
		p[i] = arg * 7 + i * 13 + 1;
}

#endif /* KDPEER_TALK_H */
