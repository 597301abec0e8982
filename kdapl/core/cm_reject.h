/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Refusing connection requests.
 */
#ifndef KDAPL_CORE_CM_REJECT_H
#define KDAPL_CORE_CM_REJECT_H

void kdapl_cm_reject(struct kdapl_device *dev, struct rdma_cm_id *id, const void *pdata, u8 len,
		     u8 reason);
bool kdapl_cm_reject_new(struct kdapl_device *dev, struct rdma_cm_id *id, u8 reason);
void kdapl_cm_reject_stop(void);

#endif /* KDAPL_CORE_CM_REJECT_H */
