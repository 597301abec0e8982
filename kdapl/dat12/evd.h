/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Copyright (c) 2026 The kDAPL for Linux authors */
#ifndef KDAPL_DAT12_EVD_H
#define KDAPL_DAT12_EVD_H

void dat12_objects_exit(void);

#endif /* KDAPL_DAT12_EVD_H */
