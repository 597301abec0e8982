/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * A peer that speaks 2.0, for what 1.2 does not show. No type of either in here.
 */
#ifndef KDOLD_PEER_H
#define KDOLD_PEER_H

#include <linux/types.h>

bool kdo_peer_connect(void *ia, void *pz, void *address, u16 port);
bool kdo_peer_refused(void);

#endif /* KDOLD_PEER_H */
