/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Memory that devices and peers may access: protection zones, regions, windows.
 */
#ifndef KDAPL_MEM_MEM_H
#define KDAPL_MEM_MEM_H

#include "../core/core.h"
#include "op.h"
#include "mr.h"
#include "region.h"
#include "lmr.h"
#include "rmr.h"

#endif /* KDAPL_MEM_MEM_H */
