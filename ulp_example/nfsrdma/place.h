/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * place.c, which uses only the structures of sunrpc, so that the tests need no sunrpc.
 */
#ifndef _KX_PLACE_H_
#define _KX_PLACE_H_

#include <linux/types.h>

struct xdr_buf;

u32 kx_place(struct xdr_buf *buf, void *p, u32 length, u32 written, u32 *copied);

#endif /* _KX_PLACE_H_ */
