/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* What the hostile peer and its victim know of each other. */
#ifndef KDPEER_TALK_H
#define KDPEER_TALK_H

#define TALK_LEAVE	"kdpeer: leave at once"	/* private data: when ESTABLISHED, disconnect */
#define VICTIM_READS	4	/* at a time, each way, of its Endpoints */

#endif
