/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Event Dispatchers: completions, other events, and upcalls.
 */
#ifndef KDAPL_EVD_EVD_H
#define KDAPL_EVD_EVD_H

#include "../mem/mem.h"
#include "wq.h"
#include "conn.h"
#include "queue.h"
#include "pool.h"

#endif /* KDAPL_EVD_EVD_H */
